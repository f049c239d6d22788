# eager_cuda.cu without a GPU: nvcc compiles it for the architectures that are in use, without a word; no kernel that matters
# spills registers; it links; and the stand-in of tests/cuda_host/ would see a barrier that is missing.
. tests/check.sh
T=$TEST_TEMP
HOT='egi_gpu_f32|egi_gpu_convolveIf|egi_gpu_add_parts|egi_gpu_depthwise|egi_gpu_pool|egi_gpu_softmaxIf|egi_gpu_reduceIf|egi_f32_gpu_update|egi_gpu_transpose|egi_gpu_layer_norm|egi_gpu_attention|egi_gpu_cell'

# nvcc is slow: what was compiled from the same text (with what it sees of eager.h) is not compiled again.
compiles() {
    set -- $NVCC -I. -O2 -DEAGER_CUBLASLT -c eager_cuda.cu -o "$B/eager_cuda.o" -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80 \
        -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 -Xcompiler -Wall,-Wextra -Werror all-warnings -Xptxas -v
    text=$(${CXX:-$CC} -x c++ -E -P -DEAGER_CUBLASLT -Itests/cuda_host -I. eager_cuda.cu | cksum)
    [ -f "$B/eager_cuda.said" ] && [ "$(cat "$B/eager_cuda.how" 2>/dev/null)" = "$text $*" ] && return
    rm -f "$B/eager_cuda.how"
    "$@" >"$B/eager_cuda.said" 2>&1 || { grep -v '^ptxas info' "$B/eager_cuda.said"; return 1; }
    echo "$text $*" >"$B/eager_cuda.how"
}
quiet() { ! grep -iE 'warning|error' "$B/eager_cuda.said"; }
# ptxas names a kernel, then says what it spills.
spills() {
    awk -v hot="$HOT" '/Compiling entry function/ { name = $0 } / bytes spill stores/ && !/ 0 bytes spill stores/ && name ~ hot { print name; print; bad = 1 } END { exit bad }' \
        "$B/eager_cuda.said"
}
# With g++: the device code and the runtime bring C++ along.
links() {
    printf '%s\n' '#define EAGER_CUDA' '#define EAGER_IMPLEMENTATION' '#include "eager.h"' \
        'int main(void) { return eg_device_count("gpu") < 0; }' >"$T/link.c"
    home=$(dirname "$(dirname "$(command -v "$NVCC")")")
    $CC -std=c11 -O0 -I. "$T/link.c" "$B/eager_cuda.o" -L"$home/lib64" -L"$home/targets/x86_64-linux/lib" -lcublas -lcublasLt -lcudart -lstdc++ $LIBS -o "$T/link" &&
        LD_LIBRARY_PATH="$home/lib64" "$T/link"
}
broken_barrier() {
    printf '%s\n' '#define EAGER_CUDA' '#define EAGER_IMPLEMENTATION' '#include "eager.h"' 'int main(void) {' \
        '    if (!eg_set_device("gpu:0")) return 2;' \
        '    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 9, 9, 64)), *f = eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 64, 64));' \
        '    int bad = eg_item(eg_reduce_sum(eg_ones(EG_FLOAT32, EG_SHAPE(1000)))) != 1000;' \
        '    for (int p = EG_PRECISION_FLOAT32; p <= EG_PRECISION_BFLOAT16; p++) {' \
        '        eg_matmul_precision((eg_precision)p);' \
        '        const float *y = (const float *)eg_data(eg_conv2d(x, f));' \
        '        for (int i = 0; i < 7 * 7 * 64; i++) if (!(y[i] == 576)) bad |= 2 << p;' \
        '    }' \
        '    return bad; }' >"$T/barrier.c"
    [ -f "$T/barrier.o" ] || $CC -std=c11 -O0 -I. -c "$T/barrier.c" -o "$T/barrier.o" || return 9
    $CXX -std=c++17 -x c++ -O0 "$@" -Itests/cuda_host -I. -c eager_cuda.cu -o "$T/${1:-good}.o" && $CC "$T/barrier.o" "$T/${1:-good}.o" -lstdc++ $LIBS -o "$T/barrier" || return 9
    "$T/barrier"
}
# Each thing that can be missing is named; starting the device can fail at each call of the runtime, and be tried again; where
# there is no memory, it tries so itself.
starts() {
    cat >"$T/start.c" <<'END'
#define EAGER_CUDA
#define EAGER_IMPLEMENTATION
#include "eager.h"
extern int cuda_host_driver, cuda_host_devices, cuda_host_fail_with;
extern int64_t cuda_host_fail_at;
static int says(const char *device, const char *part) {
    eg_error_clear();
    bool failed = !eg_set_device(device) && eg_error() == EG_ERROR_DEVICE && strstr(eg_error_message(), part);
    if (!failed) printf("%s, expected: %s\n", eg_error_message(), part);
    return !failed;
}
int main(int argc, char **argv) {
    if (argc > 1) {                              // at that call there is no memory, once
        if (eg_device_count("gpu") != 2) return 1;
        cuda_host_fail_with = 2;
        cuda_host_fail_at = atoi(argv[1]);
        return !eg_set_device("gpu:0") || cuda_host_fail_at;
    }
    eg_set_error_handler(NULL, NULL);
    cuda_host_driver = 0;
    int bad = eg_device_count("gpu") != 0 || eg_error() != EG_OK || says("gpu:0", "\"gpu:0\": no NVIDIA driver is installed");
    cuda_host_driver = 1;
    cuda_host_devices = 0;
    bad |= eg_device_count("gpu") != 0 || says("gpu:0", "\"gpu:0\": no GPU is found");
    cuda_host_devices = 1;
    int failures = 0;
    for (cuda_host_fail_at = 1; !eg_set_device("gpu:0") && failures < 100; cuda_host_fail_at = ++failures + 1) {}
    cuda_host_fail_at = 0;
    bad |= failures < 10 || failures == 100;
    bad |= says("gpu:1", "no device \"gpu:1\"") || eg_device_count("gpu") != 1;
    eg_error_clear();
    return bad || eg_item(eg_reduce_sum(eg_ones(EG_FLOAT32, EG_SHAPE(3)))) != 3;
}
END
    $CC -std=c11 -O0 -I. -c "$T/start.c" -o "$T/start.o" && $CC "$T/start.o" "$T/good.o" -lstdc++ $LIBS -o "$T/start" && "$T/start" || return
    for at in 1 2 3 7 9 13 20 40 48 50 51 52; do "$T/start" $at || { echo "call $at has no memory"; return 1; }; done
}
# In reductions; convolutions; convolutions on tensor cores, by both kinds of rounding.
is_seen() {
    for barrier in '1 1' '2 2' '3 12'; do
        broken_barrier -DEGI_CUDA_BREAK_BARRIER="${barrier% *}"
        [ $? = "${barrier#* }" ] || return
    done
}

if [ -z "$NVCC" ]; then skip cuda_compiles "no nvcc"
else
    check cuda_compiles compiles
    check cuda_compiles_quietly quiet
    check cuda_hot_kernels_do_not_spill spills
    check cuda_links links
fi
if [ -z "$CXX" ] || [ "$(uname -s)" != Linux ]; then skip a_missing_barrier_is_seen "no C++ compiler, or not Linux"
else
    check a_barrier_works broken_barrier
    check a_missing_barrier_is_seen is_seen
    check what_is_missing_is_said starts
fi
finish
