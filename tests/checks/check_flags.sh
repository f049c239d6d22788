# A user's flags change no bits: one program computes every elementwise row in every dtype with its gradients, and sums, products,
# softmax, convolutions, pooling, norms and random numbers, and prints a hash of each result. Compiled with other flags and by
# another compiler, it prints the same. -ffast-math is given to the compiler alone: the linker would switch denormals off.
# After each result no upper halves of vector registers may be in use.
. tests/checks/check.sh
T=$TEST_TEMP

cat >"$T/hashes.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"

enum { N = 263 };
static uint32_t state = 1;
static uint32_t next(void) { state = state * 1664525u + 1013904223u; return state; }
// Special values, numbers of every size, and numbers near 0.
static double number(int kind) {
    static const uint32_t special[] = { 0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x000116c2, 0x7f7fffff, 0xff7fffff };
    const uint32_t h = next();
    uint32_t bits = h % 8 == 0 ? special[(h >> 8) % 10] : h % 8 < 3 ? next() : 0;
    float x;
    if (kind == 1) return (double)(next() >> 8) / 8388608.0 - 1;               // -1 to 1
    memcpy(&x, &bits, sizeof x);
    return bits || h % 8 == 0 ? (double)x : ((double)(h >> 8) / 8388608.0 - 1) * 5;
}
static eg_tensor *numbers(int dtype, int kind, eg_shape shape) {
    const int64_t n = eg_size(eg_zeros(EG_FLOAT32, shape));
    static float f[1 << 14];
    static double d[1 << 14];
    static int64_t l[1 << 14];
    static uint8_t u[1 << 14];
    for (int64_t i = 0; i < n; i++) {
        d[i] = number(kind);
        memcpy(&f[i], &d[i], 4);
        f[i] = (float)d[i];
        l[i] = (int64_t)(next() >> 26) - 32;
        u[i] = (uint8_t)(l[i] & 1);
    }
    return eg_cast(eg_from_data(dtype <= EG_FLOAT64 ? dtype : dtype == EG_BOOL ? EG_BOOL : EG_INT64, shape,
                                dtype == EG_FLOAT32 ? (void *)f : dtype == EG_FLOAT64 ? (void *)d : dtype == EG_BOOL ? (void *)u : (void *)l), (eg_dtype)dtype);
}
// FNV-1a over the bytes; every NaN is one.
static uint64_t hash(uint64_t h, eg_tensor *x) {
    if (!x) return h * 31 + 7;
    const unsigned char *p = (const unsigned char *)eg_data(x);
    const int64_t n = eg_size(x);
    const int size = eg_dtype_size(eg_dtype_of(x));
    for (int64_t i = 0; i < n; i++) {
        unsigned char b[8];
        memcpy(b, p + i * size, (size_t)size);
        uint64_t bits = 0;
        memcpy(&bits, b, (size_t)size);
        if (eg_dtype_of(x) == EG_FLOAT32 && (bits & 0x7fffffff) > 0x7f800000) bits = 0x7fc00000;
        if (eg_dtype_of(x) == EG_FLOAT64 && (bits & INT64_MAX) > 0x7ff0000000000000) bits = 0x7ff8000000000000;
        h = (h ^ bits) * 1099511628211u;
        h ^= h >> 29;
    }
    return h;
}
// Whether the upper halves of vector registers are in use, where the processor tells (XINUSE: bit 2 is AVX, bit 6 AVX-512).
// Functions with AVX2 must free them before they return, or code with vectors of 16 bytes is up to fifty times slower.
static bool uppers_in_use(void) {
#ifdef __x86_64__
    uint32_t a = 0, b, c = 0, d, most;
    __asm__("cpuid" : "=a"(most), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
    if (most < 13 || !(c >> 27 & 1)) return false;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(13), "c"(1));
    if (!(a >> 2 & 1)) return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return a & 0x44;
#else
    return false;
#endif
}
static int failed;
static void tell(const char *name, int dtype, uint64_t h) {
    printf("%s %d %016llx\n", name, dtype, (unsigned long long)h);
    if (uppers_in_use()) failed = printf("%s leaves upper halves of registers in use\n", name);
}
static void row(const egi_op *op) {
    for (int dtype = 0; dtype < 6; dtype++) {
        if (!(op->dtypes >> dtype & 1)) continue;
        EG_SCOPE;
        eg_tensor *in[3], *dx[3] = { NULL }, *y;
        uint64_t h = 14695981039346656037u;
        state = 1;
        for (int i = 0; i < op->n_in; i++) {
            in[i] = numbers(i == 0 && op->flags & EGI_BOOL_FIRST ? EG_BOOL : dtype, 0, EG_SHAPE(N));
        }
        eg_tape *tape = eg_tape_begin();
        for (int i = 0; i < op->n_in; i++) if (dtype <= EG_FLOAT64 && eg_dtype_of(in[i]) <= EG_FLOAT64) eg_tape_watch(tape, in[i]);
        y = egi_elementwise(op, in);
        h = hash(h, y);
        if (dtype <= EG_FLOAT64 && y && eg_dtype_of(y) <= EG_FLOAT64 && !(op->flags & EGI_NOT_DIFFERENTIABLE)) {
            eg_tape_gradients(tape, y, in, op->n_in, dx);
            for (int i = 0; i < op->n_in; i++) h = hash(h, dx[i]);
        }
        tell(op->name, dtype, h);
        if (eg_error()) { printf("%s\n", eg_error_message()); eg_error_clear(); }
    }
}
// A value and its gradients for x (and w), of numbers from -1 to 1.
#define VALUE(name, dtype, xs, ws, expression) { \
        EG_SCOPE; \
        state = 1; \
        eg_tensor *v[2] = { numbers(dtype, 1, xs), numbers(dtype, 1, ws) }, *dx[2] = { NULL, NULL }, *x = v[0], *w = v[1]; \
        eg_tape *tape = eg_tape_begin(); \
        eg_tape_watch(tape, x); \
        eg_tape_watch(tape, w); \
        (void)w; \
        eg_tensor *y = expression; \
        uint64_t h = hash(1, y); \
        if (y && eg_tape_gradients(tape, y, v, 2, dx)) h = hash(hash(h, dx[0]), dx[1]); \
        tell(name, dtype, h); \
        if (eg_error()) { printf("%s\n", eg_error_message()); eg_error_clear(); } \
    }
static void others(int dtype) {
    const eg_shape m = EG_SHAPE(67, 45);
    VALUE("sum", dtype, m, m, eg_reduce_sum(x))
    VALUE("sum0", dtype, m, m, eg_reduce_sum(x, .axes = EG_AXES(0)))
    VALUE("mean1", dtype, m, m, eg_reduce_mean(x, .axes = EG_AXES(1)))
    VALUE("max1", dtype, m, m, eg_reduce_max(x, .axes = EG_AXES(1)))
    VALUE("prod0", dtype, m, m, eg_reduce_prod(x, .axes = EG_AXES(0)))
    VALUE("variance", dtype, m, m, eg_reduce_variance(x, .axes = EG_AXES(1)))
    VALUE("logsumexp", dtype, m, m, eg_reduce_logsumexp(x, .axes = EG_AXES(1)))
    VALUE("norm", dtype, m, m, eg_norm(x))
    VALUE("cumsum", dtype, m, m, eg_cumsum(x))
    VALUE("softmax", dtype, m, m, eg_softmax(x))
    VALUE("softmax0", dtype, m, m, eg_softmax(x, .axis = EG_ZERO))
    VALUE("log_softmax", dtype, m, m, eg_log_softmax(x))
    VALUE("sort", dtype, m, m, eg_sort(x))
    VALUE("matmul", dtype, m, EG_SHAPE(45, 71), eg_matmul(x, w))
    VALUE("matmul_t", dtype, m, m, eg_matmul(x, w, .transpose_b = true))
    VALUE("matvec", dtype, m, EG_SHAPE(45, 1), eg_matmul(x, w))
    VALUE("conv2d", dtype, EG_SHAPE(2, 9, 8, 6), EG_SHAPE(3, 3, 6, 10), eg_conv2d(x, w))
    VALUE("max_pool", dtype, EG_SHAPE(2, 9, 8, 6), m, eg_max_pool2d(x, .size = {2, 2}))
    VALUE("avg_pool", dtype, EG_SHAPE(2, 9, 8, 6), m, eg_avg_pool2d(x, .size = {3, 3}))
    VALUE("entropy", dtype, m, m, eg_reduce_mean(eg_square(eg_softmax_cross_entropy_with_logits(w, x))))
    VALUE("moments", dtype, m, m, eg_square(eg_sub(x, eg_reduce_mean(x))))
    VALUE("chain", dtype, m, m, eg_mul(eg_tanh(eg_add(eg_mul(x, w), 0.5)), eg_sigmoid(eg_sub(x, w))))
}
#ifdef EAGER_CORE
static void layers(void) {}
#else
static void layers(void) {
    eg_layer *all[] = {
        eg_layer_dense(7, .activation = EG_GELU), eg_layer_layer_normalization(), eg_layer_batch_normalization(), eg_layer_lstm(9), eg_layer_gru(9)
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        VALUE(i == 0 ? "dense" : i == 1 ? "layer_norm" : i == 2 ? "batch_norm" : i == 3 ? "lstm" : "gru", EG_FLOAT32, EG_SHAPE(5, 8, 12), EG_SHAPE(2),
              eg_call(all[i], x, .training = true))
        eg_layer_release(all[i]);
    }
}
#endif
// Attention's kernels, by their launches: two heads of keys serve four of queries, which see no later ones.
static void attention(int dtype) {
    EG_SCOPE;
    enum { H = 4, G = 2, T = 101, S = 130, K = 19, V = 23 };
    egi_attention_parameters p = { 0.25, true, 3 };
    state = 1;
    eg_tensor *q = numbers(dtype, 1, EG_SHAPE(1, H, T, K)), *k = numbers(dtype, 1, EG_SHAPE(1, G, S, K)), *v = numbers(dtype, 1, EG_SHAPE(1, G, S, V)),
              *g = numbers(dtype, 1, EG_SHAPE(1, T, H, V)), *y = eg_zeros((eg_dtype)dtype, EG_SHAPE(1, T, H, V)), *logs = eg_zeros((eg_dtype)dtype, EG_SHAPE(1, H, T)),
              *dq = eg_zeros((eg_dtype)dtype, EG_SHAPE(1, T, H, K)), *dk = eg_zeros((eg_dtype)dtype, EG_SHAPE(1, S, G, K)), *dv = eg_zeros((eg_dtype)dtype, EG_SHAPE(1, S, G, V));
    const egi_args forward = { &egi_op_softmax, 0, { q, k, v }, { y, logs }, &p }, back = { &egi_op_softmax, 0, { q, k, v, y, logs, g }, { dq, dk, dv }, &p };
    if (egi_cpu_attention(NULL, &forward) && egi_cpu_attention_grad(NULL, &back))
        tell("attention", dtype, hash(hash(hash(hash(hash(1, y), logs), dq), dk), dv));
}
#define ROW1(kind, name, ...) row(&egi_op_##name);
int main(void) {
    EGI_ELEMENTWISE_TABLE(ROW1, ROW1, ROW1, ROW1, ROW1, a, b, c, y, g)
    others(EG_FLOAT32);
    others(EG_FLOAT64);
    attention(EG_FLOAT32);
    attention(EG_FLOAT64);
    eg_seed(7);
    for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++) {
        const eg_dtype of = (eg_dtype)dtype;
        tell("normal", dtype, hash(1, eg_random_normal(EG_SHAPE(1001), .dtype = of)));
        tell("normal_of", dtype, hash(1, eg_random_normal(EG_SHAPE(1001), .mean = 0.1, .stddev = 1.7, .dtype = of)));
        tell("truncated", dtype, hash(1, eg_random_truncated_normal(EG_SHAPE(1001), .mean = 0.1, .dtype = of)));
        tell("uniform", dtype, hash(1, eg_random_uniform(EG_SHAPE(1001), .dtype = of)));
        tell("uniform_of", dtype, hash(1, eg_random_uniform(EG_SHAPE(1001), .minval = -0.3, .maxval = 1.7, .dtype = of)));
    }
    layers();
    return failed != 0;
}
END
# hashes NAME COMPILER FLAGS...: what the program prints when it is compiled so, and with vectors of 16 bytes in NAME.base.
hashes() {
    name=$1 compiler=$2; shift 2
    $compiler -std=c11 "$@" -DEAGER_STATIC -DEAGER_CORE -I. -c "$T/hashes.c" -o "$T/hashes.o" && $compiler "$T/hashes.o" -o "$T/hashes" $LIBS &&
        { "$T/hashes" >"$T/$name" 2>/dev/null || { grep leaves "$T/$name"; false; }; } && [ "$(wc -l <"$T/$name")" -gt 200 ] && EAGER_ISA=base "$T/hashes" >"$T/$name.base" 2>/dev/null
}
same() { hashes other "$@" && diff "$T/first" "$T/other" && diff "$T/first.base" "$T/other.base"; }
hashes first "$CC" -O0 || { echo "$0: the program of hashes does not run"; exit 1; }
# Vectors of 16 bytes: chosen at run time, compiled alone (with an allocator of the program's own), and on a processor without
# AVX2. With AVX2 there is FMA, which makes a family of bits of its own of float32 products and of what has exponentials,
# logarithms, sines or erf in it, and of float64's functions that are not libm's; everything else is the same in both families.
with_avx2='^((matmul|matmul_t|matvec|conv2d|dense|lstm|gru|softmax|softmax0|log_softmax|entropy) 0|(exp|expm1|log|log1p|sin|cos|tanh|erf|erfc|sigmoid|softplus|silu|mish|elu|selu|gelu|gelu_tanh|pow|sigmoid_cross_entropy_with_logits|log_cosh_difference|logsumexp|chain|attention) [01]) '
unfused() {
    grep -Ev "$with_avx2" "$T/first" >"$T/first_but" && grep -Ev "$with_avx2" "$T/first.base" | diff "$T/first_but" -
}
base_alone() {
    hashes alone "$CC" -O0 -DEAGER_ISA_BASE '-DEAGER_MALLOC(n)=malloc(n)' '-DEAGER_FREE(p)=free(p)' && diff "$T/first.base" "$T/alone"
}
# On AArch64 there is FMA, too. Some functions of float64 are libm's, which is another there.
aarch64() {
    aarch64-linux-gnu-gcc -std=c11 -O2 -static -DEAGER_STATIC -DEAGER_CORE -I. "$T/hashes.c" -o "$T/hashes_aarch64" -lm -lpthread &&
        qemu-aarch64 "$T/hashes_aarch64" 2>/dev/null | grep -Ev "$of_libm" >"$T/other_but" && grep -Ev "$of_libm" "$T/first" | diff - "$T/other_but"
}
of_libm='^(tan|asin|acos|atan|atan2|sinh|cosh|asinh|acosh|atanh|erf|erfc|gelu|pow) 1 '
# Some functions of float64 are libm's, which chooses by the processor, too.
no_avx2() {
    qemu-x86_64 -cpu Nehalem "$T/hashes" 2>/dev/null | grep -v ' 1 ' >"$T/emulated"
    grep -v ' 1 ' "$T/first.base" | diff - "$T/emulated"
}
if [ -n "${EAGER_LONG-}" ]; then
    check isa_base unfused
    case $(uname -m):$(command -v qemu-x86_64) in
    x86_64:?*) check isa_without_avx2 no_avx2 ;;
    *) skip isa_without_avx2 "no qemu-x86_64, or another processor" ;;
    esac
    check isa_base_alone base_alone
    case $(command -v aarch64-linux-gnu-gcc):$(command -v qemu-aarch64) in
    ?*:?*) check aarch64_has_the_bits_of_avx2 aarch64 ;;
    *) skip aarch64_has_the_bits_of_avx2 "no aarch64-linux-gnu-gcc, or no qemu-aarch64" ;;
    esac
fi
native=-march=native
$CC $native -fsyntax-only -xc /dev/null 2>/dev/null || native=
# Math that is fast, and products that are fused with sums wherever there is FMA: at once, for the largest and the smallest code.
fast='-ffast-math -ffp-contract=fast'
check O3_fast_math same "$CC" -O3 $native $fast
# Optimized programs use AVX-512 where there is some, so what was compared has its bits; without it they are the same.
avx2_alone() { EAGER_ISA=avx2 "$T/hashes" 2>/dev/null | diff "$T/other" -; }
case $(grep -c -m 1 avx512f /proc/cpuinfo 2>/dev/null) in
1) check avx2_alone avx2_alone ;;
*) skip avx2_alone "this processor has no AVX-512" ;;
esac
# With EAGER_LONG the other flags, and the other compiler. -O3 and -Os stand with -ffast-math: it allows what they do alone, and more.
if [ -n "${EAGER_LONG-}" ]; then
    check O2 same "$CC" -O2
    check fast_math-Os same "$CC" -Os $fast
    for other in gcc clang; do
        command -v $other >/dev/null && [ "$(readlink -f "$(command -v $other)")" != "$(readlink -f "$(command -v "${CC%% *}")")" ] || continue
        for flags in -O0 -O2 "-Os $fast" "-O3 $native $fast"; do
            check "${other}_$(echo "$flags" | tr -dc A-Za-z0-9)" same $other $flags
        done
    done
fi
finish
