# Read by tests/cuda.sh and tests/bench/cuda.sh: is there a GPU, and eager_cuda.o for it. CUDA_LINK is what a program is linked with.
# Ends the script that reads it where something is missing, and says what.
[ -n "$NVCC" ] || { echo "no nvcc found: put CUDA's bin folder on PATH, or set NVCC"; exit 1; }
[ -n "$CC" ] || exit 1
if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
else echo "nvidia-smi is not there: perhaps no NVIDIA driver is installed"; fi
C=$B/cuda
mkdir -p "$C"
home=$(cd "$(dirname "$(command -v "$NVCC")")/.." && pwd)
for folder in lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib; do
    [ ! -e "$home/$folder/libcublas.so" ] || cuda_lib=$home/$folder
done
if [ -z "${cuda_lib-}" ]; then        # of a package for Python: versioned names only
    cuda_lib=$(find / -name 'libcublas.so.1[0-9]' -not -path '/proc/*' 2>/dev/null | head -n 1)
    cuda_lib=$(dirname "$cuda_lib")
fi
cuda_include=$home/include
export LD_LIBRARY_PATH="$cuda_lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
lt='' lt_flag=''
if [ -f "$cuda_include/cublasLt.h" ]; then lt=$(ls "$cuda_lib"/libcublasLt.so* 2>/dev/null | head -n 1); fi
[ -z "$lt" ] || lt_flag=-DEAGER_CUBLASLT
# -arch=native: for the GPU of this machine alone, which takes a quarter of the time.
echo "Compiling eager_cuda.cu for this machine's GPU"
if [ ! -f "$C/eager_cuda.o" ] || [ -n "$(find eager.h eager_cuda.cu -newer "$C/eager_cuda.o")" ]; then
    $NVCC -O2 -I. $lt_flag -arch=native -c eager_cuda.cu -o "$C/eager_cuda.o" || { echo "eager_cuda.cu does not compile here (without a GPU, -arch=native cannot)"; exit 1; }
fi
blas=$(ls "$cuda_lib"/libcublas.so* | head -n 1) runtime=$(ls "$cuda_lib"/libcudart.so* "$home"/lib64/libcudart.so* 2>/dev/null | head -n 1)
CUDA_LINK="$C/eager_cuda.o $blas $lt $runtime -Wl,-rpath,$cuda_lib -lstdc++"
printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$C/eager.c"
[ -f "$C/eager.o" ] && [ -z "$(find eager.h -newer "$C/eager.o")" ] || $CC -std=c11 -O2 -DEAGER_CUDA -I. -c "$C/eager.c" -o "$C/eager.o" || exit 1
printf '#include "eager.h"\nint main(void) { return !eg_set_device("gpu:0"); }\n' >"$C/probe.c"
$CC -std=c11 -I. "$C/probe.c" "$C/eager.o" $CUDA_LINK $LIBS -o "$C/probe" || exit 1
"$C/probe" || { echo "THERE IS NO GPU that can be used: nothing was run"; exit 1; }
