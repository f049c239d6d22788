// The float32 functions of the chapter THE OP TABLE against libm in float64, in units in the last place: the errors
// that the reference states. The ordinary test takes 65,536 floats of every size, sign and kind. EAGER_LONG=1 takes
// 2^25 and prints what it finds. EAGER_LONG=all takes every float, and EAGER_LONG=all:NAME every float of one row: that
// is what the reference states. A row takes minutes where this file is compiled without -O.
#include "test.h"
#include <float.h>

// What is right, for n floats; the loops have no branches, so that a compiler may use vectors of the C library's
// functions.
typedef void exact_function(int n, const float *in, double *out);
#define EXACT(name, formula) \
    static void name(int n, const float *in, double *out) { \
        for (int i = 0; i < n; i++) { \
            const double x = (double)in[i]; \
            out[i] = formula; \
        } \
    }
#define SIGMOID(x) (1 / (1 + exp(-(x))))
EXACT(sqrt64, sqrt(x))
EXACT(rsqrt64, 1 / sqrt(x))
EXACT(reciprocal64, 1 / x)
EXACT(exp64, exp(x))
EXACT(expm164, expm1(x))
EXACT(log64, log(x))
EXACT(log1p64, log1p(x))
EXACT(sin64, sin(x))
EXACT(cos64, cos(x))
EXACT(tan64, tan(x))
EXACT(asin64, asin(x))
EXACT(acos64, acos(x))
EXACT(atan64, atan(x))
EXACT(sinh64, sinh(x))
EXACT(cosh64, cosh(x))
EXACT(tanh64, tanh(x))
EXACT(asinh64, asinh(x))
EXACT(acosh64, acosh(x))
EXACT(atanh64, atanh(x))
EXACT(erf64, erf(x))
EXACT(erfc64, erfc(x))
EXACT(sigmoid64, SIGMOID(x))
EXACT(softplus64, (x > 0 ? x : 0) + log1p(exp(-fabs(x))))
EXACT(softsign64, x / (1 + fabs(x)))
EXACT(silu64, x * SIGMOID(x))
EXACT(mish64, x * tanh((x > 0 ? x : 0) + log1p(exp(-fabs(x)))))
EXACT(selu64, 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x)))
EXACT(elu64, x > 0 ? x : expm1(x))
EXACT(gelu64, x * 0.5 * erfc(-x * 0.70710678118654752))
EXACT(gelu_tanh64, x * SIGMOID(x * (1.5957691216057308 + 0.07135481627260025 * x * x)))
EXACT(hard_sigmoid64, x / 6 + .5 < 0 ? 0 : x / 6 + .5 > 1 ? 1 : x / 6 + .5)
EXACT(elu_gradient64, x > 0 ? 1 : exp(x))
EXACT(selu_gradient64, x >= 0 ? 1.0507009873554805 : 1.7580993408473766 * exp(x))
static double exactly(exact_function *exact, float x) {
    double y;
    exact(1, &x, &y);
    return y;
}
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

// What is allowed, as the reference has it: so many units in the last place, and so many least floats, 2^-149, where a
// factor of the result is less than the least normal float. absolute: the row has a zero that its formula does not know
// of.
typedef struct ulps_row {
    const char *name; eg_tensor *(*op)(eg_tensor *); exact_function *exact; double ulps, least, absolute;
} ulps_row;
static const ulps_row ulps_rows[] = {
    {"sqrt", eg_sqrt, sqrt64, .5, 0, 0}, {"rsqrt", eg_rsqrt, rsqrt64, 1.5, 0, 0},
    {"reciprocal", eg_reciprocal, reciprocal64, .5, 0, 0}, {"exp", eg_exp, exp64, 1, 0, 0},
    {"expm1", eg_expm1, expm164, 1.8, 0, 0}, {"log", eg_log, log64, 1, 0, 0},
    {"log1p", eg_log1p, log1p64, 1.5, 0, 0}, {"sin", eg_sin, sin64, 1.6, 0, 0},
    {"cos", eg_cos, cos64, 1.6, 0, 0}, {"tan", eg_tan, tan64, 2.1, 0, 0}, {"asin", eg_asin, asin64, .8, 0, 0},
    {"acos", eg_acos, acos64, .8, 0, 0}, {"atan", eg_atan, atan64, 1.6, 0, 0},
    {"sinh", eg_sinh, sinh64, 1.7, 0, 0}, {"cosh", eg_cosh, cosh64, 1.1, 0, 0},
    {"tanh", eg_tanh, tanh64, 2.7, 0, 0}, {"asinh", eg_asinh, asinh64, 1.5, 0, 0},
    {"acosh", eg_acosh, acosh64, .6, 0, 0}, {"atanh", eg_atanh, atanh64, .6, 0, 0},
    {"erf", eg_erf, erf64, 1.6, 0, 0}, {"erfc", eg_erfc, erfc64, 5.6, 0, 0},
    {"sigmoid", eg_sigmoid, sigmoid64, 2.5, 0, 0}, {"softplus", eg_softplus, softplus64, 2, 0, 0},
    {"softsign", eg_softsign, softsign64, 1.5, 0, 0}, {"silu", eg_silu, silu64, 3.3, 75, 0},
    {"mish", eg_mish, mish64, 5.4, 75, 0}, {"selu", eg_selu, selu64, 2.1, 0, 0},
    {"elu", elu_of_1, elu64, 1.1, 0, 0}, {"gelu", eg_gelu, gelu64, 6.3, 12, 0},
    {"gelu_tanh", eg_gelu_tanh, gelu_tanh64, 215, 12, 0},
    {"hard_sigmoid", eg_hard_sigmoid, hard_sigmoid64, 2, 0, 6e-8},
    {"expm1's gradient", expm1_gradient, exp64, 1.1, 0, 0},
    {"elu's gradient", elu_gradient, elu_gradient64, 1.1, 0, 0},
    {"selu's gradient", selu_gradient, selu_gradient64, 1.9, 0, 0},
};

// How far floats are apart where `want` lies.
static double unit(double want) {
    const float near = (float)want;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    const uint32_t e = bits >> 23 & 255;
    const uint64_t power = (uint64_t)((e < 1 ? 1 : e > 254 ? 254 : e) + 1023 - 150) << 52;
    double u;
    memcpy(&u, &power, sizeof u);
    return u;
}
// The distances to what is right, in what is allowed; infinity where a NaN stands on one side alone. An infinity is
// 2^128, the float that would come next: what is nearly the largest float may be rounded to it.
static void excess(const ulps_row *r, int n, const float *got, const double *want, double *off) {
#ifdef TEST_CUDA
    // a GPU's functions are CUDA's, and in the tests on the host the C library's, whose acosh is 5 units off
    const double more = 5, less = 400;
#else
    const double more = 0, less = 0;
#endif
    const double ulps = r->ulps + more, rest = (r->least + less) * 0x1p-149 + r->absolute;
    for (int i = 0; i < n; i++) {
        const double right = fabs(want[i]) < 0x1p128 ? want[i] : copysign(0x1p128, want[i]);
        const double value = fabsf(got[i]) <= FLT_MAX ? (double)got[i] : copysign(0x1p128, (double)got[i]);
        const int nans = (want[i] != want[i]) + (got[i] != got[i]);
        off[i] = nans == 2 ? 0 : nans == 1 ? (double)INFINITY : fabs(value - right) / (ulps * unit(right) + rest);
    }
}
// Every `step`th float as a pattern of bits: how far the worst is off, in ulps where the result is 1e-36 or more and in
// least floats elsewhere.
static void check_ulps(const ulps_row *r, uint64_t step, bool tell) {
    enum { N = 1 << 16 };
    float *x = (float *)malloc(N * sizeof *x);
    double *want = (double *)malloc(N * sizeof *want), *off = (double *)malloc(N * sizeof *off), worst = 0, ulps = 0,
           least = 0;
    float at = 0, came = 0;
    for (uint64_t next = 0; x && want && off && next >> 32 == 0; ) {
        EG_SCOPE;
        int n = 0;
        for (; n < N && next >> 32 == 0; next += step) {
            const uint32_t bits = (uint32_t)next;
            memcpy(x + n++, &bits, sizeof bits);
        }
        const float *y = (const float *)eg_data(r->op(eg_from_data(EG_FLOAT32, EG_SHAPE(n), x)));
        if (!y) break;
        r->exact(n, x, want);
        excess(r, n, y, want, off);
        for (int i = 0; i < n; i++) {
            if (off[i] > worst) { worst = off[i]; at = x[i]; came = y[i]; }
            const double error = fabs((double)y[i] - want[i]);
            if (!tell || !(error < (double)INFINITY)) continue;
            double *found = fabs(want[i]) < 1e-36 ? &least : &ulps;
            const double size = error / (found == &least ? 0x1p-149 : unit(want[i]));
            if (size > *found) *found = size;
        }
    }
    if (tell) {
        printf("%-18s %.3f ulps; below 1e-36 %.1f least floats; %.3f of what is allowed at %.9g\n", r->name, ulps,
               least, worst, (double)at);
        fflush(stdout);
    }
    if (worst > 1)
        printf("%s(%.9g) = %.9g, not %.9g: %.3g times what the reference allows\n", r->name, (double)at, (double)came,
               exactly(r->exact, at), worst);
    CHECK(x && want && off && worst <= 1);
    free(x);
    free(want);
    free(off);
}
// The worst of all floats, which samples miss: what the reference states is not less than this.
TEST(float32_functions_where_they_are_worst) {
    static const struct { const char *name; float x; double off; } worst[] = {
        {"tanh", .0619055144f, 2.6}, {"erf", .995905459f, 1.5}, {"expm1", .376398802f, 1.7},
        {"mish", -3.33547616f, 5.3}, {"sigmoid", -4.1572938f, 2.4}, {"log", .707082272f, .9},
        {"tan", 7.56879983e11f, 2},
    };
    for (size_t i = 0; i < sizeof worst / sizeof *worst; i++)
        for (size_t r = 0; r < sizeof ulps_rows / sizeof *ulps_rows; r++) {
            if (strcmp(ulps_rows[r].name, worst[i].name)) continue;
            const float got = (float)eg_item(ulps_rows[r].op(eg_scalar((double)worst[i].x)));
            const double want = exactly(ulps_rows[r].exact, worst[i].x);
            double off;
            excess(&ulps_rows[r], 1, &got, &want, &off);
            CHECK(off <= 1);
            CHECK(ulps_rows[r].ulps > worst[i].off);
        }
}
TEST(float32_functions_are_as_near_as_the_reference_says) {
    const char *how = getenv("EAGER_LONG");
    const bool all = how && !strncmp(how, "all", 3);
    for (size_t r = 0; r < sizeof ulps_rows / sizeof *ulps_rows; r++)
        if (!all || !how[3] || !strcmp(how + 4, ulps_rows[r].name))
            check_ulps(&ulps_rows[r], all ? 1 : how ? 127 * (uint64_t)test_share : 65537, how != NULL);
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
