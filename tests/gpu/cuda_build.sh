# Read by tests/gpu/cuda.sh and tests/bench/cuda.sh: is there a GPU, and eager_cuda.o for it. CUDA_LINK is what a program is linked with.
# Ends the script that reads it where something is missing, and says what. The compilers work in the background until cuda_ready waits
# for them. left says how many seconds of $limit there are: a GPU is borrowed by the minute.
begun=$(date +%s)
left() { echo $((limit - $(date +%s) + begun)); }
[ -n "$NVCC" ] || { echo "no nvcc found: put CUDA's bin folder on PATH, or set NVCC"; exit 1; }
[ -n "$CC" ] || exit 1
if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
else echo "nvidia-smi is not there: perhaps no NVIDIA driver is installed"; fi
C=$B/cuda
figures=${OUT:-$C}
mkdir -p "$C" "$figures"
home=$(command -v "$NVCC")
home=$(cd "$(dirname "$(readlink -f "$home" 2>/dev/null || echo "$home")")/.." && pwd)
anywhere() { find / -path /proc -prune -o -path /sys -prune -o -name "$1" -print 2>/dev/null | head -n 1; }
cuda_lib=''
for folder in lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib; do
    [ -n "$cuda_lib" ] || [ ! -e "$home/$folder/libcublas.so" ] || cuda_lib=$home/$folder
done
if [ -z "$cuda_lib" ]; then           # of a package for Python: versioned names only
    found=$(anywhere 'libcublas.so.1[0-9]')
    [ -n "$found" ] || { echo "no libcublas found, neither below $home nor elsewhere"; exit 1; }
    cuda_lib=$(dirname "$found")
fi
cuda_include=$home/include
if [ ! -f "$cuda_include/cublas_v2.h" ]; then
    found=$(anywhere cublas_v2.h)
    [ -n "$found" ] || { echo "no cublas_v2.h found, neither below $home nor elsewhere"; exit 1; }
    cuda_include="$home/include -I$(dirname "$found")"
fi
library() { ls "$cuda_lib/$1".so* "$home/lib64/$1".so* "$home"/targets/*/lib/"$1".so* 2>/dev/null | head -n 1; }
blas=$(library libcublas) runtime=$(library libcudart)
[ -n "$runtime" ] || runtime=$(anywhere 'libcudart.so.1[0-9]')
[ -n "$runtime" ] || { echo "no libcudart found, neither below $home nor elsewhere"; exit 1; }
lt='' lt_flag=''
for folder in $(echo "$cuda_include" | sed 's/-I//'); do [ ! -f "$folder/cublasLt.h" ] || lt=$(library libcublasLt); done
[ -z "$lt" ] || lt_flag=-DEAGER_CUBLASLT
# The programs know their folders themselves, for the libraries' own needs, too (that is what the old tags are for). LD_LIBRARY_PATH would
# give PyTorch and JAX this CUDA instead of the one they bring along, and JAX then works on the CPU.
CUDA_LINK="$C/eager_cuda.o $blas $lt $runtime -Wl,--disable-new-dtags,-rpath,$cuda_lib,-rpath,$(dirname "$runtime") -lstdc++"
# For the GPU of this machine alone, which takes a quarter of the time. A CUDA from a package for Python may lack what nvcc asks for it.
arch=native
[ -e "$home/bin/__nvcc_device_query" ] || arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | sed 's/\.//; s/^/sm_/')
echo "Compiling eager_cuda.cu for this machine's GPU (-arch=$arch)${lt:+, with cublasLt}"
how="$NVCC -O2 -I. -I$cuda_include $lt_flag -arch=${arch:-native} -c eager_cuda.cu -o $C/eager_cuda.o"
if [ "$(cat "$C/eager_cuda.how" 2>/dev/null)" != "$how" ] || [ -n "$(find eager.h eager_cuda.cu -newer "$C/eager_cuda.o")" ]; then
    rm -f "$C/eager_cuda.how"
    { $how >"$C/eager_cuda.said" 2>&1 && echo "$how" >"$C/eager_cuda.how"; } &
fi
printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$C/eager.c"
if [ ! -f "$C/eager.o" ] || [ -n "$(find eager.h -newer "$C/eager.o")" ]; then
    { $CC -std=c11 -O2 -DEAGER_CUDA -I. -c "$C/eager.c" -o "$C/eager.o.new" && mv "$C/eager.o.new" "$C/eager.o"; } &
fi
cuda_ready() {
    wait
    [ -f "$C/eager_cuda.how" ] || { head -n 20 "$C/eager_cuda.said"; echo "eager_cuda.cu does not compile here (without a GPU it cannot be told for which)"; exit 1; }
    [ -f "$C/eager.o" ] || exit 1
    printf '#include "eager.h"\nint main(void) { return !eg_set_device("gpu:0"); }\n' >"$C/probe.c"
    $CC -std=c11 -I. "$C/probe.c" "$C/eager.o" $CUDA_LINK $LIBS -o "$C/probe" || exit 1
    "$C/probe" || { echo "THERE IS NO GPU that can be used: nothing was run"; exit 1; }
    echo "Ready after $((limit - $(left))) s"
}
