// The functions of the chapter THE OP TABLE, in units in the last place: the errors that the reference states. Float32
// against libm in float64; at the end float64 against mpmath. The ordinary test takes 65,536 floats of every size, sign
// and kind. EAGER_LONG=1 takes 2^25 and prints what it finds. EAGER_LONG=all takes every float, and EAGER_LONG=all:NAME
// every float of one row: that is what the reference states. A row takes minutes where this file is compiled without
// -O.
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
    {"log1p", eg_log1p, log1p64, 1.6, 0, 0}, {"sin", eg_sin, sin64, 1.6, 0, 0},
    {"cos", eg_cos, cos64, 1.6, 0, 0}, {"tan", eg_tan, tan64, 1.9, 0, 0}, {"asin", eg_asin, asin64, .8, 0, 0},
    {"acos", eg_acos, acos64, .8, 0, 0}, {"atan", eg_atan, atan64, 1.6, 0, 0},
    {"sinh", eg_sinh, sinh64, 1.7, 0, 0}, {"cosh", eg_cosh, cosh64, 1.1, 0, 0},
    {"tanh", eg_tanh, tanh64, 2.7, 0, 0}, {"asinh", eg_asinh, asinh64, 1.5, 0, 0},
    {"acosh", eg_acosh, acosh64, .6, 0, 0}, {"atanh", eg_atanh, atanh64, .6, 0, 0},
    {"erf", eg_erf, erf64, 1.6, 0, 0}, {"erfc", eg_erfc, erfc64, .6, 0, 0},
    {"sigmoid", eg_sigmoid, sigmoid64, 2, 0, 0}, {"softplus", eg_softplus, softplus64, 2, 0, 0},
    {"softsign", eg_softsign, softsign64, 1.5, 0, 0}, {"silu", eg_silu, silu64, 3.4, 75, 0},
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
        {"mish", -3.33547616f, 5.3}, {"sigmoid", -4.1572938f, 1.2}, {"log", .707082272f, .9},
        {"tan", 1.49756584e15f, 1.8},
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
// Of two numbers, by samples: powers of any size, whose exponents end where floats do, and angles in all quarters.
static void check_two(const char *name, eg_tensor *(*op)(eg_tensor *, eg_tensor *), double (*exact)(double, double),
                      double ulps) {
    enum { N = 1 << 14 };
    static float x[N], y[N];
    static double want[N], off[N];
    const ulps_row r = { name, NULL, NULL, ulps, 0, 0 };
    const int rounds = getenv("EAGER_LONG") ? 400 / test_share : 2;
    uint64_t state = 1;
    double worst = 0;
    for (int round = 0; round < rounds; round++) {
        EG_SCOPE;
        for (int i = 0; i < N; i++) {
            double share[4];
            for (int k = 0; k < 4; k++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                share[k] = (double)(state >> 11) * 0x1p-53;
            }
            x[i] = (float)exp2(share[3] < .5 ? share[0] * 2 - 1 : share[0] * 254 - 126);
            y[i] = (float)(exact == pow ? (share[1] * 278 - 150) / log2((double)x[i])
                                        : exp2(share[1] * 40 - 20) * (double)x[i]);
            if (exact == atan2 && share[2] < .5) x[i] = -x[i];
            if (exact == atan2 && share[2] > .25 && share[2] < .75) y[i] = -y[i];
            want[i] = exact((double)x[i], (double)y[i]);
        }
        const float *got = (const float *)eg_data(op(eg_from_data(EG_FLOAT32, EG_SHAPE(N), x),
                                                     eg_from_data(EG_FLOAT32, EG_SHAPE(N), y)));
        REQUIRE(got);
        excess(&r, N, got, want, off);
        for (int i = 0; i < N; i++) {
            if (off[i] > worst) worst = off[i];
            if (!(off[i] <= 1)) printf("%s(%.9g, %.9g) = %.9g, not %.9g\n", name, (double)x[i], (double)y[i],
                                       (double)got[i], want[i]);
            CHECK(off[i] <= 1);
        }
    }
    if (rounds > 2) printf("%s: %.3g ulps in %d samples\n", name, worst * ulps, rounds * N);
}
TEST(float32_functions_of_two_numbers) {
    check_two("pow", eg_pow, pow, .6);
    check_two("atan2", eg_atan2, atan2, 1.6);
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

// Float64: values that mpmath made of 1,400 bits, as a double and what it lacks. Among them are thresholds of overflow
// and underflow, arguments where sin and cos nearly vanish, and those where errors were found to be largest.
static const struct { const char *name; eg_tensor *(*op)(eg_tensor *); double x, high, low; } float64_values[] = {
    {"exp", eg_exp, -745.1, 5e-324, -0},
    {"exp", eg_exp, -708.4, 2.217119081664265e-308, -0},
    {"exp", eg_exp, -1.0, 0.36787944117144233, -1.24e-17},
    {"exp", eg_exp, -0.3466, 0.7070881069410189, -4.77e-17},
    {"exp", eg_exp, 1e-17, 1.0, 1e-17},
    {"exp", eg_exp, 0.34657, 1.4142084849595797, -7.47e-17},
    {"exp", eg_exp, 1.0, 2.718281828459045, 1.45e-16},
    {"exp", eg_exp, 88.7, 3.325986980250579e+38, -2.56e+21},
    {"exp", eg_exp, 709.78, 1.7928227943945155e+308, 8.28e+291},
    {"expm1", eg_expm1, -37.5, -1.0, 5.18e-17},
    {"expm1", eg_expm1, -1.0, -0.6321205588285577, -1.24e-17},
    {"expm1", eg_expm1, -0.3466, -0.2929118930589812, 7.83e-18},
    {"expm1", eg_expm1, 1e-300, 1e-300, 0},
    {"expm1", eg_expm1, 1e-09, 1.0000000005000001e-09, -7.44e-26},
    {"expm1", eg_expm1, 0.34705, 0.4148874679752476, -1.69e-17},
    {"expm1", eg_expm1, 0.5, 0.6487212707001282, -4.73e-17},
    {"expm1", eg_expm1, 40.0, 2.3538526683702e+17, -15.6},
    {"expm1", eg_expm1, 709.78, 1.7928227943945155e+308, 8.28e+291},
    {"log", eg_log, 5e-324, -744.4400719213812, -4.42e-14},
    {"log", eg_log, 2.2250738585072014e-308, -708.3964185322641, -2.75e-14},
    {"log", eg_log, 0.7071, -0.346583180371942, 2.32e-17},
    {"log", eg_log, 0.70711, -0.3465690382006941, 3.63e-18},
    {"log", eg_log, 0.9999999999999999, -1.1102230246251565e-16, -6.16e-33},
    {"log", eg_log, 1.0000000000000002, 2.2204460492503128e-16, 3.65e-48},
    {"log", eg_log, 1.4142, 0.3465640001880033, -9.16e-18},
    {"log", eg_log, 2.5698, 0.9438280748672432, 6.28e-18},
    {"log", eg_log, 1.7976931348623157e+308, 709.782712893384, 2.36e-14},
    {"log1p", eg_log1p, -0.9999999999999999, -36.7368005696771, -6.74e-16},
    {"log1p", eg_log1p, -0.5, -0.6931471805599453, -2.32e-17},
    {"log1p", eg_log1p, -1.6664e-16, -1.6664000000000003e-16, 1.08e-32},
    {"log1p", eg_log1p, 5e-324, 5e-324, -0},
    {"log1p", eg_log1p, 1e-09, 9.999999995e-10, 7.49e-26},
    {"log1p", eg_log1p, 0.0076, 0.007571265496318075, 3.05e-19},
    {"log1p", eg_log1p, 0.41, 0.3435897043900769, -1.81e-17},
    {"log1p", eg_log1p, 1e+16, 36.841361487904734, -3.37e-15},
    {"log1p", eg_log1p, 1.7976931348623157e+308, 709.782712893384, 2.36e-14},
    {"sin", eg_sin, 1e-300, 1e-300, 0},
    {"sin", eg_sin, 0.785398, 0.7071066656470943, 3.97e-17},
    {"sin", eg_sin, 3.141592653589793, 1.2246467991473532e-16, -2.99e-33},
    {"sin", eg_sin, -6.0311, 0.2494238999009519, -2.83e-19},
    {"sin", eg_sin, 131071.9, -0.998324451488278, -3.13e-17},
    {"sin", eg_sin, 131072.1, -0.9899203116960155, -3.94e-18},
    {"sin", eg_sin, -102943.70807279, 4.034192193566435e-08, 1.47e-24},
    {"sin", eg_sin, 5.319372648326541e255, 1.0, -1.1e-37},
    {"sin", eg_sin, 1.7976931348623157e+308, 0.004961954789184062, -2.5e-19},
    {"cos", eg_cos, 1e-300, 1.0, 0},
    {"cos", eg_cos, 0.785398, 0.7071068967259818, -3.04e-17},
    {"cos", eg_cos, 1.5707963267948966, 6.123233995736766e-17, -1.5e-33},
    {"cos", eg_cos, -8.1052, -0.24858426531363326, -8.22e-19},
    {"cos", eg_cos, 131071.9, -0.057864406681731845, -2.33e-18},
    {"cos", eg_cos, 131072.1, 0.14162547966966813, 2.65e-18},
    {"cos", eg_cos, -102943.70807279, 0.9999999999999992, -3.66e-17},
    {"cos", eg_cos, 5.319372648326541e255, -4.687165924254628e-19, 4.37e-36},
    {"cos", eg_cos, 1e+308, -0.8913089376870335, 4.56e-17},
    {"tanh", eg_tanh, 1e-300, 1e-300, 0},
    {"tanh", eg_tanh, 1e-09, 1e-09, -3.33e-28},
    {"tanh", eg_tanh, -0.0306, -0.03059045270386654, 5.31e-19},
    {"tanh", eg_tanh, 0.1242, 0.12356529451187029, 6.65e-18},
    {"tanh", eg_tanh, -0.205, -0.20217575769673954, 8.53e-18},
    {"tanh", eg_tanh, 0.5493, 0.49999539173530155, 1.96e-17},
    {"tanh", eg_tanh, 1.0, 0.7615941559557649, 3.71e-17},
    {"tanh", eg_tanh, 18.715, 0.9999999999999999, 5.8e-21},
    {"tanh", eg_tanh, 19.1, 1.0, -5.14e-17},
    {"sigmoid", eg_sigmoid, -745.0, 5e-324, -0},
    {"sigmoid", eg_sigmoid, -40.0, 4.248354255291589e-18, 1.06e-34},
    {"sigmoid", eg_sigmoid, -1.1, 0.24973989440488237, 1.15e-17},
    {"sigmoid", eg_sigmoid, -0.6, 0.35434369377420455, 3.23e-18},
    {"sigmoid", eg_sigmoid, 1e-17, 0.5, 2.5e-18},
    {"sigmoid", eg_sigmoid, 0.5, 0.6224593312018546, -2.86e-17},
    {"sigmoid", eg_sigmoid, 11.95, 0.9999935408088644, -9.3e-18},
    {"sigmoid", eg_sigmoid, 36.8, 0.9999999999999999, 6.8e-18},
    {"sigmoid", eg_sigmoid, 700.0, 1.0, -9.86e-305},
    {"softplus", eg_softplus, -745.0, 5e-324, -0},
    {"softplus", eg_softplus, -36.0, 2.319522830243569e-16, -2.17e-33},
    {"softplus", eg_softplus, -2.0573, 0.1202675561014728, -4.85e-18},
    {"softplus", eg_softplus, -1e-09, 0.6931471800599454, -4.63e-17},
    {"softplus", eg_softplus, 7.37e-05, 0.6931840312389066, -3.57e-17},
    {"softplus", eg_softplus, 1.0, 1.3132616875182228, 2.52e-17},
    {"softplus", eg_softplus, 30.0, 30.000000000000092, 1.21e-15},
    {"softplus", eg_softplus, 36.7, 36.7, 1.15e-16},
    {"softplus", eg_softplus, 1e+300, 1e+300, 0},
};
#ifdef TEST_CUDA
static const double looser = 8;                 // a GPU's functions are CUDA's
#else
static const double looser = 1;
#endif
static double unit_64(double want) {
    int e;
    frexp(want, &e);
    return ldexp(1, e < -1021 ? -1074 : e - 53);
}
static void check_float64_values(void) {
    for (size_t i = 0; i < sizeof float64_values / sizeof *float64_values; i++) {
        EG_SCOPE;
        double x[16];                           // as many as the loop of a word alone takes, and one in a program
        for (int j = 0; j < 16; j++) x[j] = float64_values[i].x;
        const double *y = (const double *)eg_data(float64_values[i].op(eg_from_data(EG_FLOAT64, EG_SHAPE(16), x)));
        const double *one = (const double *)eg_data(float64_values[i].op(eg_from_data(EG_FLOAT64, EG_SHAPE(1), x)));
        REQUIRE(y && one);
        const double off = fabs((y[0] - float64_values[i].high) - float64_values[i].low) /
                           unit_64(float64_values[i].high);
        if (!(off <= 2)) printf("%s(%.17g) = %.17g: %g units off\n", float64_values[i].name, x[0], y[0], off);
        CHECK(off <= 2 * looser);
        CHECK(!memcmp(y, y + 1, 15 * sizeof *y) && !memcmp(y, one, sizeof *y));
    }
}
TEST(float64_functions_are_as_near_as_the_reference_says) { check_float64_values(); }
#define SPECIALS(X) \
    X(exp, exp) X(expm1, expm1) X(log, log) X(log1p, log1p) X(sin, sin) X(cos, cos) X(tan, tan) X(asin, asin) \
    X(acos, acos) X(atan, atan) X(sinh, sinh) X(cosh, cosh) X(tanh, tanh) X(asinh, asinh) X(acosh, acosh) \
    X(atanh, atanh) X(erf, erf) X(erfc, erfc) X(sqrt, sqrt) X(floor, floor) X(ceil, ceil) X(round, rint)
static void check_special(const char *name, int dtype, int n, const double *x, const double *y, const double *want) {
    REQUIRE(y != NULL);
    for (int i = 0; i < n; i++) {
        const double least = dtype == EG_FLOAT32 ? 1e-44 : 1e-323;
        const bool same = isnan(want[i]) ? isnan(y[i])
                          : isinf(want[i]) || want[i] == 0 ? y[i] == want[i] && signbit(y[i]) == signbit(want[i])
                          : fabs(y[i] - want[i]) <= fabs(want[i]) * looser * (dtype == EG_FLOAT32 ? 3e-7 : 5e-16) +
                                                  least * looser &&
                            (looser > 1 || signbit(y[i]) == signbit(want[i]));
        if (!same)
            printf("%s %s(%.17g) = %.17g, not %.17g\n", dtype == EG_FLOAT32 ? "float32" : "float64", name, x[i], y[i],
                   want[i]);
        CHECK(same);
    }
}
// Zeros with their signs, infinities, NaN, the least and the largest numbers: C's annex F, in both floats.
TEST(functions_of_special_values_are_those_of_c) {
    static const double special[] = { 0, -0.0, 1, -1, 2, INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 1e300, -1e300,
                                      4.9406564584124654e-324, -4.9406564584124654e-324, 1e-310, -2 };
    enum { N = sizeof special / sizeof *special };
    for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++) {
        EG_SCOPE;
        double x[N], want[N];
        eg_tensor *in = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(N), special), (eg_dtype)dtype), *y;
        for (int i = 0; i < N; i++) x[i] = dtype == EG_FLOAT32 ? (double)(float)special[i] : special[i];
#define SPECIAL(name, right) \
        for (int i = 0; i < N; i++) want[i] = dtype == EG_FLOAT32 ? (double)(float)right(x[i]) : right(x[i]); \
        y = eg_cast(eg_##name(in), EG_FLOAT64); \
        check_special(#name, dtype, N, x, (const double *)eg_data(y), want);
        SPECIALS(SPECIAL)
#undef SPECIAL
    }
}
// Elements far from 0, which are computed one by one, among those that are not, in tensors of several blocks.
TEST(sines_of_large_arguments_are_the_same_in_any_place) {
    enum { N = 5003 };
    static double x[N];
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t h = i * 2654435761u;
        x[i] = (double)(h >> 8) / 65536 - 128;
        if (h % 97 < 2 || i == 1023 || i == 2048 || i == N - 1) x[i] *= h % 2 ? 1e30 : 3000;
        if (i == 4001) x[i] = INFINITY;
    }
    for (int k = 0; k < 4; k++) {
        EG_SCOPE;
        eg_tensor *(*op)(eg_tensor *) = k % 2 ? eg_cos : eg_sin;
        eg_tensor *in = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(N), x), k < 2 ? EG_FLOAT32 : EG_FLOAT64);
        const double *y = (const double *)eg_data(eg_cast(op(in), EG_FLOAT64));
        const double *given = (const double *)eg_data(eg_cast(in, EG_FLOAT64));
        REQUIRE(y && given);
        CHECK(isnan(y[4001]));
        for (int i = 0; i < N; i += 1 + i % 3) {
            EG_SCOPE;
            if (i == 4001) continue;
            const double right = k % 2 ? cos(given[i]) : sin(given[i]);
            CHECK_NEAR(y[i], right, looser * (k < 2 ? 2e-7 : 4e-16));
            if (i % 7) continue;
            const double alone = eg_item(op(eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(1), x + i),
                                                    k < 2 ? EG_FLOAT32 : EG_FLOAT64)));
            CHECK(memcmp(&alone, y + i, sizeof alone) == 0);
        }
    }
}
// One element beyond 2^17, where sines take another way, at each place of a tensor of each length; the others keep
// their bits, and -0 its sign.
TEST(sines_of_one_far_element) {
    static const double odd[] = { 131072.5, -131073, 1e22, -1e38, 131071.5 };
    double v[140];
    for (int wide = 0; wide < 2; wide++)
        for (int64_t n = 1; n < 140; n += n < 40 ? 1 : 33)
            for (int64_t place = 0; place < n; place += 1 + n / 20) {
                EG_SCOPE;
                const eg_dtype t = wide ? EG_FLOAT64 : EG_FLOAT32;
                for (int64_t i = 0; i < n; i++) v[i] = i % 7 ? (double)(i * 37 % 101) - 50.25 : i % 2 ? -0.0 : 0.0;
                eg_tensor *x = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n), v), t);
                const double at = v[place] = odd[place % 5];
                eg_tensor *y = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n), v), t),
                          *s[] = { eg_sin(x), eg_sin(y), eg_cos(x), eg_cos(y) };
                const double want[] = { sin(wide ? at : (double)(float)at), cos(wide ? at : (double)(float)at) };
                for (int k = 0; k < 2; k++) {
                    const char *near = (const char *)eg_data(s[2 * k]), *all = (const char *)eg_data(s[2 * k + 1]);
                    const int64_t size = wide ? 8 : 4, after = (place + 1) * size;
                    REQUIRE(near && all);
                    CHECK(!memcmp(near, all, (size_t)(place * size)));
                    CHECK(!memcmp(near + after, all + after, (size_t)(n * size - after)));
                    double found = 0;
                    float narrow = 0;
                    if (wide) memcpy(&found, all + place * size, 8);
                    else { memcpy(&narrow, all + place * size, 4); found = (double)narrow; }
                    CHECK_NEAR(found, want[k], looser * (wide ? 4e-16 : 1.5e-7));
                    if (k == 0 && place != 7 && n > 7) CHECK((unsigned char)all[8 * size - 1] & 0x80);      // of -0
                }
            }
}
