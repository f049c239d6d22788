# What a program does not use, it does not have. Programs of one file are compiled with EAGER_STATIC, as the README shows; each may have
# so many bytes, and no function of a chapter that it does not call. The bytes are for x86-64; whatever the processor, the names are
# looked at.
. tests/checks/check.sh
T=$TEST_TEMP

cat >"$T/perceptron.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>
static eg_tensor *ones(int64_t rows, int64_t columns) { return eg_ones(EG_FLOAT32, EG_SHAPE(rows, columns)); }
int main(void) {
    eg_tensor *h = eg_relu(eg_add(eg_matmul(ones(1, 784), ones(784, 128)), ones(1, 128)));
    h = eg_relu(eg_add(eg_matmul(h, ones(128, 64)), ones(1, 64)));
    h = eg_add(eg_matmul(h, ones(64, 10)), ones(1, 10));
    const float *p = (const float *)eg_data(h);
    if (p) printf("%g\n", (double)p[0]);
    return 0;
}
END
cat >"$T/layer.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
int main(void) {
    eg_layer *layer = eg_layer_dense(10);
    eg_print(eg_call(layer, eg_ones(EG_FLOAT32, EG_SHAPE(1, 784))));
    eg_layer_release(layer);
    return 0;
}
END
cat >"$T/optimizer.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
int main(void) {
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(4)), "v"), *g = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    eg_optimizer *adam = eg_adam(.learning_rate = 0.1);
    eg_apply_gradients(adam, &g, &v, 1);
    eg_print(v);
    eg_optimizer_release(adam);
    eg_release(v);
    return 0;
}
END
# Functions and tables by chapter, as the beginnings of their names.
LAYERS='egi?_(layer|sequential|initialize|activat)'
TRAINING='egi?_(fit|compile_|evaluate|history|callback|metric|optimizer|adam|rule)'
FILES='egi?_(sink|source|json|crc|npz|zip|npy|safetensors|checkpoint|import|csv|summary|png|recorder_file|record_)'
DATASETS='egi?_(dataset|iterator|stage|cursor)'
KERNELS='egi_(cpu_)?(conv(_|[0-9])|pool|lstm|gru|simple_rnn|recurrent|attention|layer_norm|random|sort|argmax|choose|one_hot|cumsum|scatter)'

# Of nm's kinds of names, those that are looked at.
kinds=.

# program.c, most bytes, what of `size` they are (text, or all: text and data), the names it must not have, flags
lean() {
    source=$1 most=$2 what=$3 foreign=$4; shift 4
    $CC -std=c11 -DEAGER_STATIC -I. -Iexamples "$@" "$source" -o "$T/lean" $LIBS && (cd "$T" && ./lean >lean.out) || return
    nm "$T/lean" | awk -v kinds="$kinds" '$(NF - 1) ~ kinds { print $NF }' | grep -E "^($foreign)" >"$T/came_along" && { echo "came along, though it does not use them:"; cat "$T/came_along"; return 1; }
    bytes=$(size "$T/lean" | awk -v what="$what" 'NR == 2 { print what == "text" ? $1 : $1 + $2 }')
    echo "$bytes bytes, at most $most"
    case $(uname -m) in x86_64) ;; *) return 0 ;; esac
    [ "$bytes" -le "$most" ] || { echo "the largest symbols:"; nm -S --size-sort "$T/lean" | awk '{ print $2, $4 }' | tail -n 40; return 1; }
}
case $($CC --version 2>/dev/null | head -n 1) in
*clang*) tape=224200 layer=425800 perceptron=85700 optimizer=435700 ;;
*) tape=174900 layer=303500 perceptron=80000 optimizer=295000 ;;
esac
check tape lean examples/05_tape.c $tape all "$LAYERS|$TRAINING|$FILES|$DATASETS|$KERNELS|egi_trap_" -O2
check perceptron lean "$T/perceptron.c" $perceptron text "$LAYERS|$TRAINING|$FILES|$DATASETS|$KERNELS|egi?_tape_|egi_backward|egi_trap_|egi_(text|print)_" \
    -Os -ffunction-sections -fdata-sections -Wl,--gc-sections
# An optimizer has its own rules, and none of another's.
check optimizer lean "$T/optimizer.c" $optimizer all "$FILES|$DATASETS|egi_((f32|f64)_update_(avx2_)?|rule_|scalars_)([b-zB-Z]|ada[^m]|adamax)" -O2
check layer lean "$T/layer.c" $layer all "$TRAINING|$FILES|$DATASETS|egi_(cpu_)?(conv(_|[0-9])|pool|lstm|gru|simple_rnn|recurrent|attention)|egi_layer_type_[^d]|egi_layer_(build|call)_[^d]" -O2
# Without -O, too, gcc leaves out the functions that a program does not use (EGI_OBJECTS).
unoptimized() { kinds='[tT]'; lean examples/05_tape.c 186500 all "$LAYERS|$TRAINING|$FILES|$DATASETS|$KERNELS" -O0; }
case $($CC --version 2>/dev/null | head -n 1) in
*clang*) ;;
*) check unoptimized unoptimized ;;
esac
# With -Os a program has wide interpreters from its start if it has a function that wants them, called or not; else none.
cat >"$T/wide.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
int main(int argc, char **argv) {
    egi_program p;
    (void)argv;
    memset(&p, 0, sizeof p);
#ifdef WANTS
    if (argc > 1) eg_release(eg_exp(eg_ones(EG_FLOAT32, EG_SHAPE(4))));
#else
    (void)argc;
#endif
    return egi_program_runner_of(&p, EG_FLOAT32, true, 32) != egi_run_f32;
}
END
wide() {
    $CC -std=c11 -Os -DEAGER_STATIC -DEAGER_CORE -I. "$T/wide.c" -o "$T/wide" $LIBS && "$T/wide" &&
        $CC -std=c11 -Os -DEAGER_STATIC -DEAGER_CORE -DWANTS -I. "$T/wide.c" -o "$T/wide" $LIBS && { "$T/wide"; [ $? = 1 ]; }
}
case $(uname -m) in
x86_64) check wide wide ;;
*) skip wide "no interpreters with AVX2" ;;
esac
cat >"$T/reach.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Computes with x in ways that its dtype has.
static bool used(eg_tensor *x) {
    if (!x) return false;
    const eg_dtype dtype = eg_dtype_of(x);
    if (dtype == EG_FLOAT16 || dtype == EG_BFLOAT16) return eg_data(eg_cast(x, EG_FLOAT32)) != NULL;
    eg_tensor *eight[] = { x, x, x, x, x, x, x, x }, *many = eg_rank(x) ? eg_concat(eight, 8, 0) : x;
    eg_tensor *y = dtype == EG_BOOL ? eg_where(many, many, many) : eg_add(many, many);
    return y && eg_data(y) && (dtype == EG_BOOL || eg_data(eg_reduce_sum(y))) && eg_data(eg_equal(y, many));
}
// Whether two tensors have the same bytes.
static bool same(eg_tensor *x, eg_tensor *y) {
    return x && y && eg_dtype_of(x) == eg_dtype_of(y) && eg_size(x) == eg_size(y) &&
           !memcmp(eg_data(x), eg_data(y), (size_t)(eg_size(x) * eg_dtype_size(eg_dtype_of(x))));
}
int main(void) {
    static const int32_t ints[] = { 1, 0, 1 };
    static const char *const texts[] = { "abc" };
    const double values[] = { 1, 0, 1 };
    const eg_shape three = EG_SHAPE(3);
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 0, 1), *y = NULL;
    eg_tensor *picture = eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 4, 1));
    volatile int zero = 0;
    int failed = 0, n = 0;
    // Each case is the first of its process that makes another dtype than float32. It gives the same where such a tensor
    // has been made before.
#define CASE(...) \
    n++; \
    fflush(stdout); \
    switch (fork()) { \
        case 0: { \
            eg_seed(1); \
            eg_tensor *first = __VA_ARGS__; \
            if (!used(first)) _exit(1); \
            eg_zeros((eg_dtype)(EG_INT32 + zero), three); \
            eg_seed(1); \
            eg_tensor *again = __VA_ARGS__; \
            _exit(same(first, again) ? 0 : 2); \
        } \
        default: { \
            int status = 0; \
            wait(&status); \
            if (status) { printf("case %d, line %d: status %d\n", n, __LINE__, status); failed = 1; } \
        } \
    }
    for (int t = 0; t < 8; t++) {
        const eg_dtype dtype = (eg_dtype)(t + zero);
        CASE(eg_constant_of(dtype, three, 1, 0, 1))
        CASE(eg_constant_values(dtype, three, values, 3))
        CASE(eg_scalar_of(dtype, 1))
        CASE(eg_zeros(dtype, three))
        CASE(eg_ones(dtype, three))
        CASE(eg_full(dtype, three, 1))
        CASE((eg_ones)(dtype, three))
        CASE((eg_from_data)(dtype, three, (const void *)"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"))
        CASE((eg_wrap_data)(dtype, EG_SHAPE(1), (const void *)&values[1], NULL, NULL))
        CASE((eg_host_number)(dtype, (const void *)&values[1]))
        CASE(eg_cast(x, dtype))
        CASE(eg_cast(eg_number(1), dtype))
        CASE(eg_range(dtype, 0, 1, 1))
        CASE(eg_eye(dtype, 2, 2))
        CASE(eg_initialize(EG_INIT_ZEROS, 0, dtype <= EG_FLOAT64 ? dtype : EG_FLOAT32, three))
    }
    CASE(eg_zeros(EG_FLOAT64, three))
    CASE(eg_from_data(EG_INT32, three, ints))
    CASE(eg_wrap_data(EG_INT32, three, ints, NULL, NULL))
    CASE(eg_from_text("abc"))
    CASE(eg_from_texts(texts, 1))
    CASE((eg_set_default_float(EG_FLOAT64), eg_constant(EG_SHAPE(3), 1, 2, 3)))
    CASE((eg_set_default_float(EG_FLOAT64), eg_scalar(1)))
    CASE((eg_set_default_float(EG_FLOAT64), eg_add(1, 2)))
    CASE((eg_set_default_float(EG_FLOAT64), eg_random_normal(three)))
    CASE(eg_random_normal(three, .dtype = EG_FLOAT64))
    CASE(eg_random_uniform(three, .dtype = EG_FLOAT64))
    CASE(eg_random_integers(three, 0, 9))
    CASE(eg_random_permutation(3))
    CASE(eg_argmax(x))
    CASE(eg_argmin(x))
    CASE(eg_argsort(x))
    CASE((eg_top_k(x, 2, &y), y))
    CASE(eg_greater(x, 0))
    CASE(eg_equal(x, 0))
    CASE(eg_is_nan(x))
    CASE(eg_logical_and(1, 1))
    CASE(eg_reduce_any(eg_equal(x, 0)))
    CASE(eg_one_hot(eg_argmax(x), 3))
    CASE(eg_one_hot(eg_argmax(x), 3, .dtype = EG_INT32))
    CASE(eg_matmul(eg_ones((eg_dtype)(EG_FLOAT64 + zero), EG_SHAPE(2, 2)), eg_eye(EG_FLOAT64, 2, 2)))
    CASE(eg_max_pool2d(picture, .size = { 2 }))
    CASE(eg_where(eg_less(x, 1), x, eg_exp(x)))
    CASE(eg_linspace((eg_dtype)(EG_FLOAT64 + zero), 0, 1, 3))
    // windows of more than 256 elements are summed in float64
    eg_tensor *large = eg_ones(EG_FLOAT32, EG_SHAPE(1, 20, 20, 1)), *filter = eg_ones(EG_FLOAT32, EG_SHAPE(18, 18, 1, 1));
    CASE(eg_conv2d(large, filter))
    CASE(eg_conv2d_transpose(eg_ones(EG_FLOAT32, EG_SHAPE(1, 18, 18, 1)), filter))
    CASE(eg_depthwise_conv2d(large, filter))
    CASE(eg_avg_pool2d(large, .size = { 18 }))
    CASE(eg_scalar(eg_assert_near(1, 1.00000001, 1e-12)))
    CASE(eg_scalar(eg_assert_equal(16777217, 16777216)))
    return failed;
}
END
# What a program needs in dtypes other than float32 is there as soon as it makes such a tensor, in whatever way.
reach() { $CC -std=c11 -O0 -D_DEFAULT_SOURCE -DEAGER_STATIC -I. "$T/reach.c" -o "$T/reach" $LIBS && "$T/reach"; }
check reach reach
# With -Os, the gradients of masks that a tape records reach bools by themselves: a program has no other op that makes them.
cat >"$T/masks.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
int main(void) {
    eg_tensor *x = eg_mul(eg_ones(EG_FLOAT32, EG_SHAPE(20)), 3);
    eg_tape *outer = eg_tape_begin(), *inner;
    eg_tape_watch(outer, x);
    inner = eg_tape_begin();
    eg_tape_watch(inner, x);
    eg_tensor *slope = eg_tape_gradient(inner, eg_maximum(eg_mul(x, eg_mul(x, x)), x), x);
    eg_tensor *bend = eg_tape_gradient(outer, slope, x);
    const float *s = (const float *)eg_data(slope), *b = (const float *)eg_data(bend);
    return s && b && s[0] == 27 && s[19] == 27 && b[0] == 18 && b[19] == 18 ? 0 : 1;
}
END
masks() { $CC -std=c11 -Os -DEAGER_STATIC -I. "$T/masks.c" -o "$T/masks" $LIBS && "$T/masks"; }
check masks masks
static_with_cuda() {
    ! $CC -std=c11 -DEAGER_STATIC -DEAGER_CUDA -I. -fsyntax-only "$T/layer.c" 2>"$T/said" && grep -q 'leave out EAGER_STATIC with EAGER_CUDA' "$T/said"
}
check static_with_cuda static_with_cuda
# EAGER_ISA_BASE leaves out what needs AVX2 or AVX-512, and such a program computes the same sum.
base() {
    case $(uname -m) in x86_64) ;; *) return 0 ;; esac
    for flags in '' -DEAGER_ISA_BASE; do
        $CC -std=c11 -O0 $flags -DEAGER_STATIC -I. "$T/perceptron.c" -o "$T/base" $LIBS && "$T/base" || return
        nm "$T/base" | grep -c avx
    done >"$T/said"
    sed -n '1p;3p' "$T/said" | uniq | wc -l | grep -q 1 && [ "$(sed -n 2p "$T/said")" -gt 0 ] && [ "$(sed -n 4p "$T/said")" = 0 ] && return
    cat "$T/said"
    return 1
}
check base base
finish
