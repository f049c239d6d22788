# eager_cuda.cu without a GPU: nvcc compiles it for the architectures that are in use, without a word; no kernel that matters
# spills registers; it links; and the stand-in of tests/gpu/cuda_host/ would see a barrier that is missing.
. tests/checks/check.sh
T=$TEST_TEMP
HOT='egi_gpu_elementwise_f32|egi_gpu_convolveIf|egi_gpu_add_parts|egi_gpu_depthwise|egi_gpu_pool|egi_gpu_softmaxIf|egi_gpu_reduceIf|egi_f32_gpu_update|egi_gpu_transpose|egi_gpu_layer_norm|egi_gpu_attention|egi_gpu_cell'

# nvcc is slow: its targets are compiled side by side, each into a file of its own (the newest with the host's code and PTX, which is
# what is linked), and what was compiled from the same text (with what it sees of eager.h) is not compiled again.
TARGETS='75 80 90'
compiles_for() {
    case $1 in
    90) set -- 90 -c -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 -Xcompiler -Wall,-Wextra -o "$B/eager_cuda.o" ;;
    *) set -- "$1" -cubin -arch="sm_$1" -o "$B/eager_cuda.$1.cubin" ;;
    esac
    target=$1 said=$B/eager_cuda.$1.said how=$B/eager_cuda.$1.how; shift
    set -- $NVCC -I. -O2 -DEAGER_CUBLASLT eager_cuda.cu "$@" -Werror all-warnings -Xptxas -v
    [ -f "$said" ] && [ "$(cat "$how" 2>/dev/null)" = "$text $*" ] && return
    rm -f "$how"
    "$@" >"$said" 2>&1 && echo "$text $*" >"$how" && return
    echo "sm_$target:"; grep -v '^ptxas info' "$said"
    return 1
}
compiles() {
    text=$(${CXX:-$CC} -x c++ -E -P -DEAGER_CUBLASLT -Itests/gpu/cuda_host -I. eager_cuda.cu | cksum)
    pids='' failures=0
    for target in $TARGETS; do compiles_for "$target" & pids="$pids $!"; done
    for pid in $pids; do wait "$pid" || failures=1; done
    return $failures
}
said() { for target in $TARGETS; do cat "$B/eager_cuda.$target.said" || return; done; }
quiet() { said >"$T/said" && ! grep -iE 'warning|error' "$T/said"; }
# ptxas names a kernel, then says what it spills. Of each name in HOT there is a kernel.
spills() {
    said >"$T/said" && awk -v hot="$HOT" '/Compiling entry function/ { name = $0; for (i = split(hot, part, "|"); i; i--) if (name ~ part[i]) seen[part[i]] = 1 }
        / bytes spill stores/ && !/ 0 bytes spill stores/ && name ~ hot { print name; print; bad = 1 }
        END { for (i = split(hot, part, "|"); i; i--) if (!(part[i] in seen)) { print "no kernel " part[i]; bad = 1 }; exit bad }' "$T/said"
}
# With g++: the device code and the runtime bring C++ along.
links() {
    printf '%s\n' '#define EAGER_CUDA' '#define EAGER_IMPLEMENTATION' '#include "eager.h"' \
        'int main(void) { return eg_device_count("gpu") < 0; }' >"$T/link.c"
    home=$(dirname "$(dirname "$(command -v "$NVCC")")")
    $CC -std=c11 -O0 -I. "$T/link.c" "$B/eager_cuda.o" -L"$home/lib64" -L"$home/targets/x86_64-linux/lib" -lcublas -lcublasLt -lcudart -lstdc++ $LIBS -o "$T/link" &&
        LD_LIBRARY_PATH="$home/lib64" "$T/link"
}
# The stand-in as it is, and with one barrier missing each: eager_cuda.cu by g++, side by side. One library for all programs.
stand_ins() {
    printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$T/eager.c"
    printf '%s\n' '#include "eager.h"' 'int main(void) {' \
        '    if (!eg_set_device("gpu:0")) return 2;' \
        '    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 9, 9, 64)), *f = eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 64, 64));' \
        '    int bad = eg_item(eg_reduce_sum(eg_ones(EG_FLOAT32, EG_SHAPE(1000)))) != 1000;' \
        '    for (int p = EG_PRECISION_FLOAT32; p <= EG_PRECISION_BFLOAT16; p++) {' \
        '        eg_matmul_precision((eg_precision)p);' \
        '        const float *y = (const float *)eg_data(eg_conv2d(x, f));' \
        '        for (int i = 0; i < 7 * 7 * 64; i++) if (!(y[i] == 576)) bad |= 2 << p;' \
        '    }' \
        '    return bad; }' >"$T/barrier.c"
    { echo "$CC -std=c11 -O0 -DEAGER_CUDA -I. -c $T/eager.c -o $T/eager.o"
      for number in 0 1 2 3; do echo "$CXX -std=c++17 -x c++ -O0 -DEGI_CUDA_BREAK_BARRIER=$number -Itests/gpu/cuda_host -I. -c eager_cuda.cu -o $T/$number.o"; done
    } | xargs -P "$JOBS" -I COMMAND sh -c COMMAND
}
broken_barrier() {                          # of number $1; 0: none is
    $CC -std=c11 -O0 -I. "$T/barrier.c" "$T/eager.o" "$T/$1.o" -lstdc++ $LIBS -o "$T/barrier" || return 9
    "$T/barrier"
}
# Each thing that can be missing is named; starting the device can fail at each call of the runtime, and be tried again; where
# there is no memory, it tries so itself.
starts() {
    cat >"$T/start.c" <<'END'
#include "eager.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    $CC -std=c11 -O0 -I. "$T/start.c" "$T/eager.o" "$T/0.o" -lstdc++ $LIBS -o "$T/start" && "$T/start" || return
    for at in 1 2 3 7 9 13 20 40 48 50 51 52; do "$T/start" $at || { echo "call $at has no memory"; return 1; }; done
}
# In reductions; convolutions; convolutions on tensor cores, by both kinds of rounding.
is_seen() {
    for barrier in '1 1' '2 2' '3 12'; do
        broken_barrier "${barrier% *}"
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
    check stand_ins_compile stand_ins
    check a_barrier_works broken_barrier 0
    check a_missing_barrier_is_seen is_seen
    check what_is_missing_is_said starts
fi
finish
