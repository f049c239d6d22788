// The float32 functions of chapter 21 against libm in float64, in units in the last place: the errors that the reference states. The ordinary test
// takes 65,536 floats of every size, sign and kind. EAGER_LONG=1 takes 2^25 and prints what it finds. EAGER_LONG=all takes all floats from 2^-40 to
// 128 in magnitude, and one in 64 of the others, of which there is little to say: ten minutes, for the numbers that stand in the reference.
#include "test.h"

static double sigmoid64(double x) { return 1 / (1 + exp(-x)); }
static double softplus64(double x) { return x > 40 ? x : log1p(exp(x)); }
static double softsign64(double x) { return isinf(x) ? NAN : x / (1 + fabs(x)); }
static double silu64(double x) { return x * sigmoid64(x); }
static double mish64(double x) { return x * tanh(softplus64(x)); }
static double gelu64(double x) { return x * 0.5 * erfc(-x * 0.70710678118654752); }
static double gelu_tanh64(double x) { return x * sigmoid64(x * (1.5957691216057308 + 0.07135481627260025 * x * x)); }
static double selu64(double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x)); }
static double elu64(double x) { return x > 0 ? x : expm1(x); }
static double hard_sigmoid64(double x) { return isnan(x) ? x : fmin(fmax(x / 6 + .5, 0), 1); }
static double rsqrt64(double x) { return 1 / sqrt(x); }
static double reciprocal64(double x) { return 1 / x; }
static eg_tensor *elu_of_1(eg_tensor *x) { return eg_elu(x, 1); }

// Gradients that have a tail of their own.
static eg_tensor *gradient(eg_tensor *(*f)(eg_tensor *), eg_tensor *x) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    return eg_tape_gradient(tape, f(x), x);
}
static eg_tensor *expm1_gradient(eg_tensor *x) { return gradient(eg_expm1, x); }
static eg_tensor *elu_gradient(eg_tensor *x) { return gradient(elu_of_1, x); }
static eg_tensor *selu_gradient(eg_tensor *x) { return gradient(eg_selu, x); }
static double elu_gradient64(double x) { return x > 0 ? 1 : exp(x); }
static double selu_gradient64(double x) { return x >= 0 ? 1.0507009873554805 : 1.7580993408473766 * exp(x); }

// What is allowed, as the reference has it: so many units in the last place, and so many least floats, 2^-149, where a factor of the result is less
// than the least normal float. absolute: the row has a zero that its formula does not know of.
typedef struct ulps_row { const char *name; eg_tensor *(*op)(eg_tensor *); double (*exact)(double); double ulps, least, absolute; } ulps_row;
static const ulps_row ulps_rows[] = {
    {"sqrt", eg_sqrt, sqrt, .5, 0, 0}, {"rsqrt", eg_rsqrt, rsqrt64, 1.5, 0, 0}, {"reciprocal", eg_reciprocal, reciprocal64, .5, 0, 0}, {"exp", eg_exp, exp, 1.1, 0, 0},
    {"expm1", eg_expm1, expm1, 1.8, 0, 0}, {"log", eg_log, log, 1, 0, 0}, {"log1p", eg_log1p, log1p, 1.5, 0, 0}, {"sin", eg_sin, sin, 1, 0, 0}, {"cos", eg_cos, cos, 1, 0, 0},
    {"tan", eg_tan, tan, 1, 0, 0}, {"asin", eg_asin, asin, 1, 0, 0}, {"acos", eg_acos, acos, 1, 0, 0}, {"atan", eg_atan, atan, 1, 0, 0}, {"sinh", eg_sinh, sinh, 2, 0, 0},
    {"cosh", eg_cosh, cosh, 2, 0, 0}, {"tanh", eg_tanh, tanh, 2.7, 0, 0}, {"asinh", eg_asinh, asinh, 2, 0, 0}, {"acosh", eg_acosh, acosh, 2, 0, 0}, {"atanh", eg_atanh, atanh, 2, 0, 0},
    {"erf", eg_erf, erf, 1.6, 0, 0}, {"erfc", eg_erfc, erfc, 5.6, 0, 0}, {"sigmoid", eg_sigmoid, sigmoid64, 2.5, 0, 0}, {"softplus", eg_softplus, softplus64, 2.2, 0, 0},
    {"softsign", eg_softsign, softsign64, 1.5, 0, 0}, {"silu", eg_silu, silu64, 3.3, 75, 0}, {"mish", eg_mish, mish64, 5.4, 75, 0}, {"selu", eg_selu, selu64, 3, 0, 0},
    {"elu", elu_of_1, elu64, 1.8, 0, 0}, {"gelu", eg_gelu, gelu64, 6.3, 12, 0}, {"gelu_tanh", eg_gelu_tanh, gelu_tanh64, 205, 12, 0}, {"hard_sigmoid", eg_hard_sigmoid, hard_sigmoid64, 2, 0, 6e-8},
    {"expm1's gradient", expm1_gradient, exp, 1.1, 0, 0}, {"elu's gradient", elu_gradient, elu_gradient64, 1.1, 0, 0}, {"selu's gradient", selu_gradient, selu_gradient64, 2.5, 0, 0},
};

// The distance to what is right, in what is allowed.
static double excess(const ulps_row *r, float got, double want) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (isinf((float)want) || isinf(got)) return got == (float)want ? 0 : INFINITY;
    const float near = fabsf((float)want);
#ifdef TEST_CUDA
    const double more = 4, less = 400;                 // a GPU's are CUDA's, of which some may be 2 units off, as factors too
#else
    const double more = strstr(" sin cos tan asin acos atan sinh cosh asinh acosh atanh ", r->name) ? 1 : 0;       // the C library's: there are others
    const double less = 0;
#endif
    return fabs((double)got - want) / ((r->ulps + more) * ((double)nextafterf(near, INFINITY) - (double)near) + (r->least + less) * 0x1p-149 + r->absolute);
}
// Floats `step` apart as patterns of bits, or `far` apart where they are very small or large: how far the worst is off, in ulps where the result is
// 1e-36 or more and in least floats elsewhere.
static void check_ulps(const ulps_row *r, uint64_t step, uint64_t far, bool tell) {
    enum { N = 1 << 16 };
    float *x = (float *)malloc(N * sizeof *x);
    double worst = 0, ulps = 0, least = 0;
    float at = 0, came = 0;
    if (!x) return;
    for (uint64_t next = 0; next >> 32 == 0; ) {
        EG_SCOPE;
        int n = 0;
        while (n < N && next >> 32 == 0) {
            const uint32_t bits = (uint32_t)next, size = bits >> 23 & 255;
            memcpy(x + n++, &bits, sizeof bits);
            next += size < 127 - 40 || size > 127 + 6 ? far : step;
        }
        const float *y = (const float *)eg_data(r->op(eg_from_data(EG_FLOAT32, EG_SHAPE(n), x)));
        if (!y) break;
        for (int i = 0; i < n; i++) {
            const double want = r->exact((double)x[i]), off = excess(r, y[i], want), error = fabs((double)y[i] - want);
            if (off > worst) { worst = off; at = x[i]; came = y[i]; }
            if (!(error < INFINITY)) continue;
            if (fabs(want) < 1e-36) least = fmax(least, error * 0x1p149);
            else ulps = fmax(ulps, error / ((double)nextafterf(fabsf((float)want), INFINITY) - fabs((double)(float)want)));
        }
    }
    if (tell) { printf("%-18s %.2f ulps; below 1e-36 %.1f least floats\n", r->name, ulps, least); fflush(stdout); }
    if (worst > 1) printf("%s(%.9g) = %.9g, not %.9g: %.3g times what the reference allows\n", r->name, (double)at, (double)came, r->exact((double)at), worst);
    CHECK(worst <= 1);
    free(x);
}
// The worst of all floats, which samples miss: what the reference states is not less than this.
TEST(float32_functions_where_they_are_worst) {
    static const struct { const char *name; float x; double off; } worst[] = {
        {"tanh", .0619055144f, 2.6}, {"erf", .995905459f, 1.5}, {"expm1", .376398802f, 1.7}, {"mish", -3.33547616f, 5.3}, {"exp", -5.85670471f, 1.0}, {"sigmoid", -4.1572938f, 2.4}, {"log", .707082272f, .9},
    };
    for (size_t i = 0; i < sizeof worst / sizeof *worst; i++)
        for (size_t r = 0; r < sizeof ulps_rows / sizeof *ulps_rows; r++) {
            if (strcmp(ulps_rows[r].name, worst[i].name)) continue;
            CHECK(excess(&ulps_rows[r], (float)eg_item(ulps_rows[r].op(eg_scalar((double)worst[i].x))), ulps_rows[r].exact((double)worst[i].x)) <= 1);
            CHECK(ulps_rows[r].ulps > worst[i].off);
        }
}
TEST(float32_functions_are_as_near_as_the_reference_says) {
    const char *how = getenv("EAGER_LONG");
    for (size_t r = 0; r < sizeof ulps_rows / sizeof *ulps_rows; r++) {
        const bool all = how && !strcmp(how, "all");
        const uint64_t step = !how ? 65537 : 127 * (uint64_t)test_share;
        check_ulps(&ulps_rows[r], all ? 1 : step, all ? 64 : step, how != NULL);
    }
}
// The same bits whether an element stands in a long tensor or alone.
TEST(float32_functions_have_the_same_bits_in_any_place) {
    enum { N = 1 << 10 };
    float x[N];
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t bits = i * 4194301u;
        memcpy(x + i, &bits, sizeof bits);
    }
    for (size_t r = 0; r < sizeof ulps_rows / sizeof *ulps_rows; r++) {
        EG_SCOPE;
        const float *y = (const float *)eg_data(ulps_rows[r].op(eg_from_data(EG_FLOAT32, EG_SHAPE(N), x)));
        REQUIRE(y != NULL);
        for (int i = 0; i < N; i += 61) {
            EG_SCOPE;
            const float *alone = (const float *)eg_data(ulps_rows[r].op(eg_from_data(EG_FLOAT32, EG_SHAPE(1), x + i)));
            CHECK(memcmp(alone, y + i, sizeof *y) == 0 || (isnan(*alone) && isnan(y[i])));
        }
    }
}
