// What ops do at the edge of their domain: kinks, ties, zeros, infinities, overflow, nothing at all; and what they do
// with plain numbers. Each behaviour has a test of its name.
#include "test.h"

static eg_tensor *of(eg_dtype dtype, double a) { return eg_scalar_of(dtype, a); }
// The gradient at x of the sum of an expression in x, as a tensor. SLOPE(eg_square(x), eg_scalar(3)) is 6.
#define SLOPE(result, expression, at)                       \
    do {                                                    \
        eg_tensor *x = (at);                                \
        eg_tape *slope_tape = eg_tape_begin();              \
        eg_tape_watch(slope_tape, x);                       \
        result = eg_tape_gradient(slope_tape, (expression), x); \
    } while (0)
static const eg_dtype floats[] = { EG_FLOAT32, EG_FLOAT64 };

// ---- gradients at kinks and ties

TEST(gradient_of_relu_and_abs_at_zero_is_zero) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g, *x0 = eg_constant_of(floats[t], EG_SHAPE(4), 0, -0.0, -1, 2);
        SLOPE(g, eg_relu(x), x0);
        CHECK_TENSOR(g, 0, 0, 0, 0, 1);
        SLOPE(g, eg_abs(x), x0);
        CHECK_TENSOR(g, 0, 0, 0, -1, 1);
        SLOPE(g, eg_relu6(x), eg_constant_of(floats[t], EG_SHAPE(4), 0, 6, 3, 7));
        CHECK_TENSOR(g, 0, 0, 0, 1, 0);
        SLOPE(g, eg_sign(x), x0);
        CHECK_TENSOR(g, 0, 0, 0, 0, 0);
    }
}
TEST(gradient_of_sqrt_at_zero_is_infinite) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g;
        SLOPE(g, eg_sqrt(x), of(floats[t], 0));
        CHECK_TENSOR(g, 0, INFINITY);
    }
}
// As in PyTorch; TensorFlow and JAX have NaN, 0 times infinity.
TEST(gradient_of_std_of_equal_values_is_zero) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g, *equal = eg_constant_of(floats[t], EG_SHAPE(2, 3), .5, .5, .5, 1, 2, 3);
        CHECK_TENSOR(eg_reduce_std(equal, .axes = EG_AXES(1)), 1e-6, 0, sqrt(2. / 3));
        SLOPE(g, eg_reduce_std(x, .axes = EG_AXES(1)), equal);
        CHECK_TENSOR(g, 1e-6, 0, 0, 0, -1 / sqrt(6), 0, 1 / sqrt(6));
        SLOPE(g, eg_reduce_std(x), of(floats[t], 5));
        CHECK_TENSOR(g, 0, 0);
        SLOPE(g, eg_reduce_variance(x), equal);                    // which has no root
        CHECK_TENSOR(g, 1e-6, -.25, -.25, -.25, -1. / 12, .25, 7. / 12);
    }
    CHECK(eg_item(eg_reduce_std(eg_constant(EG_SHAPE(3), .1, .1, .1))) == 0);
    CHECK(isnan(eg_item(eg_reduce_std(eg_zeros(EG_FLOAT32, EG_SHAPE(0))))));
    // the squares overflow a float
    CHECK_NEAR(eg_item(eg_reduce_std(eg_constant(EG_SHAPE(2), 3e30, -3e30))), 3e30, 1e-6);
}
TEST(gradient_of_max_and_min_is_shared_by_ties) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g, *tie = eg_constant_of(floats[t], EG_SHAPE(2, 3), 5, 1, 5, 2, 2, 2);
        SLOPE(g, eg_reduce_max(x, .axes = EG_AXES(1)), tie);
        CHECK_TENSOR(g, 1e-7, .5, 0, .5, 1. / 3, 1. / 3, 1. / 3);
        SLOPE(g, eg_reduce_min(x), tie);
        CHECK_TENSOR(g, 0, 0, 1, 0, 0, 0, 0);
        SLOPE(g, eg_norm(x, .ord = INFINITY), eg_constant_of(floats[t], EG_SHAPE(3), -2, 2, 1));
        CHECK_TENSOR(g, 0, -.5, .5, 0);
        SLOPE(g, eg_max_pool2d(eg_reshape(x, EG_SHAPE(1, 2, 2, 1))),
              eg_constant_of(floats[t], EG_SHAPE(4), 1, 3, 3, 3));
        CHECK_TENSOR(g, 0, 0, 1, 0, 0);                            // a window's maximum is its first
    }
}
// As in TensorFlow: a NaN that wins makes NaN of the whole gradient, rather than 0.
TEST(gradient_of_a_maximum_that_is_nan_is_nan) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g, *x0 = eg_constant_of(floats[t], EG_SHAPE(2, 3), 1, NAN, 2, 5, INFINITY, 3);
        SLOPE(g, eg_reduce_max(x, .axes = EG_AXES(1)), x0);
        CHECK_TENSOR(g, 0, NAN, NAN, NAN, 0, 1, 0);
        SLOPE(g, eg_reduce_min(x, .axes = EG_AXES(1)), x0);
        CHECK_TENSOR(g, 0, NAN, NAN, NAN, 0, 0, 1);
        SLOPE(g, eg_reduce_max(x), of(floats[t], 2));
        CHECK_TENSOR(g, 0, 1);
    }
}
TEST(gradient_of_maximum_and_minimum_goes_to_the_first_of_a_tie) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *a = of(floats[t], 2), *b = of(floats[t], 2), *both[] = { a, b }, *g[2];
        eg_tape *tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, a);
        eg_tape_watch(tape, b);
        CHECK(eg_tape_gradients(tape, eg_maximum(a, b), both, 2, g));
        CHECK(eg_item(g[0]) == 1 && eg_item(g[1]) == 0);
        CHECK(eg_tape_gradients(tape, eg_minimum(a, b), both, 2, g));
        CHECK(eg_item(g[0]) == 1 && eg_item(g[1]) == 0);
    }
}
TEST(gradient_of_clip_at_its_bounds_is_one) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g;
        SLOPE(g, eg_clip_by_value(x, -1, 1), eg_constant_of(floats[t], EG_SHAPE(5), -2, -1, 0, 1, 2));
        CHECK_TENSOR(g, 0, 0, 1, 1, 1, 0);
    }
}
// min(max(x, low), high): with bounds in the wrong order it is high, whatever x is.
TEST(gradient_of_clip_belongs_to_the_value_returned) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *x = eg_constant_of(floats[t], EG_SHAPE(6), -2, 0, 1, 2, 3, 5),
                  *low = eg_full(floats[t], EG_SHAPE(6), 3), *high = eg_full(floats[t], EG_SHAPE(6), 1),
                  *in[] = { x, low, high }, *g[3];
        for (int swapped = 0; swapped < 2; swapped++) {
            eg_tape *tape = eg_tape_begin();
            for (int i = 0; i < 3; i++) eg_tape_watch(tape, in[i]);
            eg_tensor *y = eg_clip_by_value(x, in[1 + swapped], in[2 - swapped]);
            REQUIRE(eg_tape_gradients(tape, y, in, 3, g));
            if (!swapped) {
                CHECK_TENSOR(y, 0, 1, 1, 1, 1, 1, 1);
                CHECK_TENSOR(g[0], 0, 0, 0, 0, 0, 0, 0);
                CHECK_TENSOR(g[1], 0, 0, 0, 0, 0, 0, 0);
                CHECK_TENSOR(g[2], 0, 1, 1, 1, 1, 1, 1);
            } else {
                CHECK_TENSOR(y, 0, 1, 1, 1, 2, 3, 3);
                CHECK_TENSOR(g[0], 0, 0, 0, 1, 1, 1, 0);
                CHECK_TENSOR(g[2], 0, 1, 1, 0, 0, 0, 0);
                CHECK_TENSOR(g[1], 0, 0, 0, 0, 0, 0, 1);
            }
        }
    }
}
// Where a function is nearly 0 because it is the difference of two that are nearly equal. Values by mpmath, to 40
// digits; TensorFlow 2.21 has the same to 7 digits, but 0 for gelu_tanh from -5 on and for the slopes of elu and selu
// at -20.
static void check_ratios(eg_tensor *got, double tolerance, const double *want) {
    const double ones[] = { 1, 1, 1 };
    CHECK_VALUES(eg_div(eg_cast(got, EG_FLOAT64), eg_from_data(EG_FLOAT64, EG_SHAPE(3), want)), tolerance, ones, 3);
}
TEST(tails_keep_their_digits) {
    static const double gelu[] = { -1.43325785939597e-6, -5.91952587022619e-9, -4.97676845941743e-15 },
                        gelu_slope[] = { -7.14694600179229e-6, -3.5468709453902e-8, -3.9796072610868e-14 },
                        gelu_tanh[] = { -2.29179619662951e-7, -8.4396467007623e-11, -3.10778293750111e-21 },
                        gelu_tanh_slope[] = { -1.54636198753259e-6, -7.7099739309537e-10, -4.71478450410684e-20 },
                        erfc[] = { 1.541725790028e-8, 2.15197367124989e-17, 4.13703174651381e-37 },
                        slope[] = { 1.5229979744712628e-8, 2.061153622438558e-9, 9.357622968840175e-14 };
    for (int t = 0; t < 2; t++) {
        const double near = t ? 1e-11 : 1e-6;  // what a rounded argument does to an exponential is more, by its size
        eg_tensor *g, *x0 = eg_constant_of(floats[t], EG_SHAPE(3), -5, -6, -8),
                  *low = eg_constant_of(floats[t], EG_SHAPE(3), -18, -20, -30);
        check_ratios(eg_gelu(x0), near, gelu);
        SLOPE(g, eg_gelu(x), x0);
        check_ratios(g, 10 * near, gelu_slope);
        check_ratios(eg_gelu_tanh(x0), 20 * near, gelu_tanh);
        SLOPE(g, eg_gelu_tanh(x), x0);
        check_ratios(g, 20 * near, gelu_tanh_slope);
        check_ratios(eg_erfc(eg_constant_of(floats[t], EG_SHAPE(3), 4, 6, 9)), near, erfc);
        SLOPE(g, eg_expm1(x), low);
        check_ratios(g, near, slope);
        SLOPE(g, eg_elu(x, 1), low);
        check_ratios(g, near, slope);
        SLOPE(g, eg_selu(x), low);
        check_ratios(eg_div(g, 1.7580993408473766), near, slope);
    }
    CHECK_TENSOR(eg_div(eg_gelu(eg_scalar(-13)), -7.95231371941484e-38), 1e-6, 1);
    CHECK_TENSOR(eg_erfc(eg_constant(EG_SHAPE(6), 0, -9, INFINITY, -INFINITY, NAN, 11)), 0, 1, 2, 0, 2, NAN, 0);
}
TEST(gradient_of_norm_at_zero_is_zero) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g;
        SLOPE(g, eg_norm(x), eg_zeros(floats[t], EG_SHAPE(3)));
        CHECK_TENSOR(g, 0, 0, 0, 0);
        SLOPE(g, eg_norm(x, .axes = EG_AXES(1)), eg_constant_of(floats[t], EG_SHAPE(2, 2), 3, 4, 0, 0));
        CHECK_TENSOR(g, 1e-7, .6, .8, 0, 0);
        SLOPE(g, eg_norm(x, .ord = 1), eg_zeros(floats[t], EG_SHAPE(2)));
        CHECK_TENSOR(g, 0, 0, 0);
    }
}
TEST(gradient_of_prod_with_zeros) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g;
        SLOPE(g, eg_reduce_prod(x), eg_constant_of(floats[t], EG_SHAPE(3), 0, 2, 3));
        CHECK_TENSOR(g, 0, 6, 0, 0);
        SLOPE(g, eg_reduce_prod(x), eg_constant_of(floats[t], EG_SHAPE(3), 0, 2, 0));
        CHECK_TENSOR(g, 0, 0, 0, 0);
        SLOPE(g, eg_reduce_prod(x, .axes = EG_AXES(0)), eg_constant_of(floats[t], EG_SHAPE(2, 2), 0, 2, 5, 0));
        CHECK_TENSOR(g, 0, 5, 0, 0, 2);
    }
}
TEST(gradient_of_pow_at_zero) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g;
        SLOPE(g, eg_pow(x, 2), eg_constant_of(floats[t], EG_SHAPE(3), 0, -3, 2));
        CHECK_TENSOR(g, 0, 0, -6, 4);
        SLOPE(g, eg_pow(x, 0),
              eg_constant_of(floats[t], EG_SHAPE(8), 0, 5, -2, INFINITY, -INFINITY, 1e-39, -1e-45, 1e-37));
        CHECK_TENSOR(g, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        SLOPE(g, eg_pow(x, eg_constant_of(floats[t], EG_SHAPE(4), 0, 1, 2, -1)),
              eg_constant_of(floats[t], EG_SHAPE(4), INFINITY, INFINITY, -INFINITY, INFINITY));
        CHECK_TENSOR(g, 0, 0, 1, -INFINITY, 0);
        eg_tensor *a = of(floats[t], 4), *b = of(floats[t], 0);    // along a and then b: 1 / a
        eg_tape *outer = eg_tape_begin();
        eg_tape_watch(outer, b);
        SLOPE(g, eg_pow(x, b), a);
        CHECK_NEAR(eg_item(eg_tape_gradient(outer, g, b)), .25, 1e-6);
        SLOPE(g, eg_pow(x, 1), of(floats[t], 0));
        CHECK_TENSOR(g, 0, 1);
        SLOPE(g, eg_pow(2, x), of(floats[t], 0));
        CHECK_TENSOR(g, 1e-6, log(2));
        SLOPE(g, eg_pow(0, x), of(floats[t], 2));
        CHECK_TENSOR(g, 0, 0);
    }
}
TEST(gradient_of_divide_no_nan_at_zero_is_zero) {
    eg_tensor *g;
    SLOPE(g, eg_divide_no_nan(1, x), eg_constant(EG_SHAPE(2), 0, 2));
    CHECK_TENSOR(g, 0, 0, -.25);
    CHECK_TENSOR(eg_divide_no_nan(eg_constant(EG_SHAPE(3), 1, 0, NAN), 0), 0, 0, 0, 0);
}
TEST(gradient_where_not_chosen_is_zero_not_nan) {
    eg_tensor *g;
    SLOPE(g, eg_where(eg_greater(x, 0), x, 0), eg_constant(EG_SHAPE(3), NAN, -1, 2));
    CHECK_TENSOR(g, 0, 0, 0, 1);
    SLOPE(g, eg_elu(x, 1), eg_constant(EG_SHAPE(3), 1000, 1, -1));
    CHECK_TENSOR(g, 1e-6, 1, 1, exp(-1));
    SLOPE(g, eg_selu(x), eg_constant(EG_SHAPE(1), 1000));
    CHECK_TENSOR(g, 1e-6, 1.0507009873554805);
}
TEST(gradients_of_integer_paths_are_null) {
    eg_tensor *x = eg_scalar(2.5);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    CHECK(eg_tape_gradient(tape, eg_floor(x), x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "eg_floor");
    CHECK(eg_tape_gradient(tape, eg_cast(eg_cast(x, EG_INT32), EG_FLOAT32), x) == NULL);
    CHECK(eg_tape_gradient(tape, eg_stop_gradient(x), x) == NULL);
    CHECK_INT(eg_error(), EG_OK);
}

// ---- integers

TEST(floordiv_and_mod_round_down) {
    const eg_dtype dtypes[] = { EG_INT32, EG_INT64, EG_FLOAT32, EG_FLOAT64 };
    for (int t = 0; t < 4; t++) {
        eg_tensor *a = eg_constant_of(dtypes[t], EG_SHAPE(4), -7, 7, -7, 7),
                  *b = eg_constant_of(dtypes[t], EG_SHAPE(4), 2, -2, -2, 2);
        CHECK_TENSOR(eg_floordiv(a, b), 0, -4, -4, 3, 3);
        CHECK_TENSOR(eg_mod(a, b), 0, 1, -1, -1, 1);
        CHECK_DTYPE(eg_floordiv(a, b), dtypes[t]);
    }
    CHECK_TENSOR(eg_floordiv(eg_constant(EG_SHAPE(4), -1, 1, 5, -5), INFINITY), 0, -1, 0, 0, -1);
    // as in NumPy 2.4
    CHECK_TENSOR(eg_floordiv(eg_constant(EG_SHAPE(4), INFINITY, -INFINITY, INFINITY, 0),
                             eg_constant(EG_SHAPE(4), 2, 2, INFINITY, INFINITY)), 0, NAN, NAN, NAN, 0);
    CHECK_TENSOR(eg_floordiv(eg_constant(EG_SHAPE(3), 1, -1, 1), -INFINITY), 0, -1, 0, -1);
    CHECK_TENSOR(eg_mod(eg_constant(EG_SHAPE(2), -1, 1), INFINITY), 0, INFINITY, 1);
    CHECK_TENSOR(eg_mod(eg_constant(EG_SHAPE(2), 1, INFINITY), eg_constant(EG_SHAPE(2), 0, 2)), 0, NAN, NAN);
    CHECK_TENSOR(eg_floordiv(eg_constant(EG_SHAPE(3), 1, -1, 0), 0), 0, INFINITY, -INFINITY, NAN);
    // 0.1 is a little more than a tenth
    CHECK_TENSOR(eg_floordiv(eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 1, 0.3), 0.1), 0, 9, 2);
}
// One divisor for all elements is multiplied by; a tensor full of it is divided by. Both floor, as the definition does.
static void check_divisor(eg_dtype dtype, const int64_t *x, int64_t n, int64_t d) {
    EG_SCOPE;
    eg_tensor *a = eg_cast(eg_from_data(EG_INT64, EG_SHAPE(n), x), dtype),
              *b = eg_cast(eg_from_data(EG_INT64, EG_SHAPE(1), &d), dtype), *full = eg_tile(b, EG_SHAPE(n)),
              *one = eg_reshape(b, EG_SCALAR), *q = eg_floordiv(a, one), *r = eg_mod(a, one);
    const int64_t *quotient = (const int64_t *)eg_data(eg_cast(q, EG_INT64));
    bool right = eg_assert_equal(q, eg_floordiv(a, full)) && eg_assert_equal(r, eg_mod(a, full));
    for (int64_t i = 0; right && i < n; i++) {
        const bool wraps = d == -1 && x[i] == (dtype == EG_INT32 ? (int64_t)INT32_MIN : INT64_MIN);
        const int64_t whole = wraps ? x[i] : x[i] / d;
        right = quotient[i] == whole - (!wraps && whole * d != x[i] && (x[i] < 0) != (d < 0));
    }
    if (!right) printf("%s divided by %lld\n", eg_dtype_name(dtype), (long long)d);
    CHECK(right);
}
TEST(integers_divided_by_one_number) {
    enum { MOST = 400 };
    int64_t x[MOST];
    for (int i = 0; i < 256; i++) x[i] = i;
    for (int64_t d = 1; d < 256; d++) check_divisor(EG_UINT8, x, 256, d);
    for (int wide = 0; wide < 2; wide++) {
        const int bits = wide ? 64 : 32, high = bits - 1;
        const int64_t most = wide ? INT64_MAX : INT32_MAX, least = -most - 1;
        uint64_t random = 1;
        for (int k = 0; k < 3 * high + 40; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const int64_t power = k < 3 * high ? (int64_t)((uint64_t)1 << k / 3) + k % 3 - 1 : 0,
                          any = (int64_t)random >> (64 - bits) >> k % 29,
                          d = k < 3 * high && power ? (k % 2 ? power : -power) : any ? any : most - k % 2;
            for (int i = 0; i < MOST; i++) {     // around multiples of d, around the ends, and anywhere
                random = random * 6364136223846793005u + 1442695040888963407u;
                const int64_t some = (int64_t)random >> (64 - bits) >> i % high;
                x[i] = i < 8 ? (i % 2 ? least + i / 2 : most - i / 2) : i % 2 ? some
                       : some / 2 / d * d + i / 2 % 3 - 1;
            }
            check_divisor(wide ? EG_INT64 : EG_INT32, x, k % 2 ? MOST : 1 + k, d);
        }
    }
}
TEST(integer_division_by_zero_is_an_error) {
    const eg_dtype dtypes[] = { EG_INT32, EG_INT64, EG_UINT8 };
    for (int t = 0; t < 3; t++) {
        eg_tensor *a = eg_constant_of(dtypes[t], EG_SHAPE(2), 1, 2),
                  *zero = eg_constant_of(dtypes[t], EG_SHAPE(2), 1, 0);
        CHECK_ERROR(eg_floordiv(a, zero), EG_ERROR_MATH, "eg_floordiv: integer division by zero");
        CHECK_ERROR(eg_mod(a, zero), EG_ERROR_MATH, "eg_mod: integer division by zero");
        CHECK_ERROR(eg_mod(a, 0), EG_ERROR_MATH, "division by zero");
        CHECK_ERROR(eg_div(a, a), EG_ERROR_DTYPE, "eg_floordiv");
    }
    CHECK_SHAPE(eg_floordiv(eg_zeros(EG_INT32, EG_SHAPE(0)), eg_zeros(EG_INT32, EG_SHAPE(0))), 0);
}
TEST(integer_overflow_wraps) {
    eg_tensor *big = eg_constant_of(EG_INT32, EG_SHAPE(2), 2147483647, -2147483648.0);
    CHECK_TENSOR(eg_add(big, big), 0, -2, 0);
    CHECK_TENSOR(eg_sub(big, 1), 0, 2147483646, 2147483647);
    CHECK_TENSOR(eg_mul(big, big), 0, 1, 0);
    CHECK_TENSOR(eg_negative(big), 0, -2147483647, -2147483648.0);
    CHECK_TENSOR(eg_abs(big), 0, 2147483647, -2147483648.0);
    CHECK_TENSOR(eg_square(big), 0, 1, 0);
    CHECK_TENSOR(eg_pow(big, 2), 0, 1, 0);
    CHECK_TENSOR(eg_reduce_sum(eg_concat(EG_TENSORS(big, eg_constant_of(EG_INT32, EG_SHAPE(1), -5)), 0)), 0, -6);
    CHECK_TENSOR(eg_cumsum(eg_constant_of(EG_INT32, EG_SHAPE(2), 2147483647, 1)), 0, 2147483647, -2147483648.0);
    CHECK_TENSOR(eg_matmul(eg_reshape(big, EG_SHAPE(1, 2)), eg_reshape(big, EG_SHAPE(2, 1))), 0, 1);
    CHECK_TENSOR(eg_reduce_prod(big), 0, -2147483648.0);
    CHECK_TENSOR(eg_floordiv(big, -1), 0, -2147483647, -2147483648.0);       // the quotient of the least and -1
    CHECK_TENSOR(eg_mod(big, -1), 0, 0, 0);
    const int64_t most[] = { INT64_MAX, INT64_MIN };
    eg_tensor *wide = eg_from_data(EG_INT64, EG_SHAPE(2), most);
    const int64_t *y = (const int64_t *)eg_data(eg_add(wide, wide));
    CHECK(y && y[0] == -2 && y[1] == 0);
    y = (const int64_t *)eg_data(eg_floordiv(wide, -1));
    CHECK(y && y[0] == -INT64_MAX && y[1] == INT64_MIN);
    y = (const int64_t *)eg_data(eg_reduce_sum(eg_concat(EG_TENSORS(wide, wide), 0)));
    CHECK(y && y[0] == -2);
    eg_tensor *byte = eg_constant_of(EG_UINT8, EG_SHAPE(2), 200, 100);
    CHECK_TENSOR(eg_add(byte, byte), 0, 144, 200);
    CHECK_TENSOR(eg_sub(eg_constant_of(EG_UINT8, EG_SHAPE(2), 0, 1), 2), 0, 254, 255);
    CHECK_TENSOR(eg_mul(byte, byte), 0, 64, 16);
    CHECK_TENSOR(eg_reduce_sum(byte), 0, 44);
    CHECK_TENSOR(eg_pow(byte, 2), 0, 64, 16);
}
TEST(integer_pow) {
    eg_tensor *a = eg_constant_of(EG_INT32, EG_SHAPE(5), 0, 1, -1, 2, -3);
    CHECK_TENSOR(eg_pow(a, 0), 0, 1, 1, 1, 1, 1);
    CHECK_TENSOR(eg_pow(a, 3), 0, 0, 1, -1, 8, -27);
    CHECK_TENSOR(eg_pow(a, -1), 0, 0, 1, -1, 0, 0);
    CHECK_TENSOR(eg_pow(a, -2), 0, 0, 1, 1, 0, 0);
    CHECK_TENSOR(eg_pow(a, 2147483647), 0, 0, 1, -1, 0, 1431655765);
}
TEST(mean_of_integers_stays_integer) {
    CHECK_TENSOR(eg_reduce_mean(eg_constant_of(EG_INT32, EG_SHAPE(4), 1, 2, 3, 5)), 0, 2);
    CHECK_TENSOR(eg_reduce_mean(eg_constant_of(EG_INT64, EG_SHAPE(2), -1, -2)), 0, -1);
    CHECK_TENSOR(eg_reduce_mean(eg_constant_of(EG_UINT8, EG_SHAPE(2), 255, 254)), 0, 254);
    CHECK_DTYPE(eg_reduce_mean(eg_constant_of(EG_UINT8, EG_SHAPE(2), 255, 254)), EG_UINT8);
}
TEST(round_takes_halves_to_even) {
    for (int t = 0; t < 2; t++)
        CHECK_TENSOR(eg_round(eg_constant_of(floats[t], EG_SHAPE(8), 0.5, 1.5, 2.5, -0.5, -1.5, 2.4999, -2.5001, 3)), 0,
                     0, 2, 2, -0.0, -2, 2, -3, 3);
}

// ---- plain numbers and dtypes

TEST(dtypes_never_mix_by_themselves) {
    eg_tensor *of_dtype[6], *y = NULL;
    for (int t = 0; t < 6; t++) of_dtype[t] = eg_ones((eg_dtype)t, EG_SHAPE(2));
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++) {
            if (a == b) continue;
            CHECK_ERROR(y = eg_add(of_dtype[a], of_dtype[b]), EG_ERROR_DTYPE, "eg_add: dtypes differ");
            CHECK(y == NULL);
            CHECK_ERROR(eg_equal(of_dtype[a], of_dtype[b]), EG_ERROR_DTYPE, "eg_cast one of them");
            CHECK_ERROR(eg_concat(EG_TENSORS(of_dtype[a], of_dtype[b]), 0), EG_ERROR_DTYPE, "eg_concat: dtypes differ");
            CHECK_ERROR(eg_where(of_dtype[EG_BOOL], of_dtype[a], of_dtype[b]), EG_ERROR_DTYPE,
                        "eg_where: dtypes differ");
        }
}
TEST(plain_numbers_take_the_tensors_dtype) {
    for (int t = 0; t < EG_BOOL; t++) {
        eg_tensor *x = eg_constant_of((eg_dtype)t, EG_SHAPE(2), 3, 4);
        CHECK_DTYPE(eg_add(x, 1), (eg_dtype)t);
        CHECK_TENSOR(eg_add(x, 1), 0, 4, 5);
        CHECK_TENSOR(eg_sub(10, x), 0, 7, 6);
        CHECK_TENSOR(eg_add(x, 2.0), 0, 5, 6);                        // a whole double is as good
        CHECK_TENSOR(eg_maximum(x, 4), 0, 4, 4);
        CHECK_TENSOR(eg_less(x, 4), 0, 1, 0);
        CHECK_TENSOR(eg_clip_by_value(x, 0, 3), 0, 3, 3);
    }
    CHECK_TENSOR(eg_add(eg_constant_of(EG_INT32, EG_SHAPE(2, 2), 1, 2, 3, 4), 1), 0, 2, 3, 4, 5);
    eg_tensor *m = eg_constant_of(EG_INT32, EG_SHAPE(2, 2), 1, 2, 3, 4);
    CHECK_TENSOR(eg_mul(eg_add(m, 1), m), 0, 2, 6, 12, 20);
    CHECK_DTYPE(eg_mul(eg_add(m, 1), m), EG_INT32);
}
TEST(two_plain_numbers_make_float32) {
    eg_tensor *y = eg_add(1, 2);
    CHECK_DTYPE(y, EG_FLOAT32);
    CHECK_INT(eg_rank(y), 0);
    CHECK_TENSOR(y, 0, 3);
    CHECK_TENSOR(eg_div(1, 4), 0, .25);
    CHECK_TENSOR(eg_less(1, 2), 0, 1);
    CHECK_DTYPE(eg_less(1, 2), EG_BOOL);
    CHECK_DTYPE(eg_where(eg_constant_of(EG_BOOL, EG_SHAPE(2), 1, 0), 1, 2), EG_FLOAT32);
    CHECK_TENSOR(eg_where(eg_constant_of(EG_BOOL, EG_SHAPE(2), 1, 0), 1, 2), 0, 1, 2);
    CHECK_TENSOR(eg_clip_by_value(5, 0, 1), 0, 1);
    CHECK_TENSOR(eg_sqrt(eg_number(4)), 0, 2);
}
TEST(fractions_do_not_fit_integers) {
    const eg_dtype dtypes[] = { EG_INT32, EG_INT64, EG_UINT8 };
    for (int t = 0; t < 3; t++) {
        eg_tensor *x = eg_ones(dtypes[t], EG_SHAPE(2));
        CHECK_ERROR(eg_mul(x, 0.5), EG_ERROR_DTYPE, "0.5");
        CHECK_ERROR(eg_add(1.25, x), EG_ERROR_DTYPE, "1.25");
        CHECK_ERROR(eg_add(x, NAN), EG_ERROR_DTYPE, "nan");
        CHECK_ERROR(eg_add(x, INFINITY), EG_ERROR_DTYPE, "inf");
    }
}
TEST(numbers_out_of_range_are_errors) {
    CHECK_ERROR(eg_add(eg_ones(EG_UINT8, EG_SHAPE(2)), 256), EG_ERROR_DTYPE, "256 is out of the range");
    CHECK_ERROR(eg_add(eg_ones(EG_UINT8, EG_SHAPE(2)), -1), EG_ERROR_DTYPE, "-1 is out of the range");
    CHECK_ERROR(eg_add(eg_ones(EG_INT32, EG_SHAPE(2)), 2147483648u), EG_ERROR_DTYPE, "2147483648 is out of the range");
    CHECK_ERROR(eg_add(eg_ones(EG_INT64, EG_SHAPE(2)), 1e19), EG_ERROR_DTYPE, "1e+19 is out of the range");
    CHECK_TENSOR(eg_add(eg_ones(EG_INT64, EG_SHAPE(1)), INT64_C(9007199254740992)), 0, 9007199254740993.0);
    const int64_t *y = (const int64_t *)eg_data(eg_add(eg_ones(EG_INT64, EG_SHAPE(1)), INT64_C(9007199254740993)));
    CHECK(y && y[0] == 9007199254740994);                             // not by way of a double
}
TEST(logical_ops_take_any_bool_byte) {
    const unsigned char bytes[] = { 0, 1, 2, 255 };
    eg_tensor *x = eg_from_data(EG_BOOL, EG_SHAPE(4), bytes), *t = eg_ones(EG_BOOL, EG_SHAPE(4));
    CHECK_TENSOR(eg_logical_and(x, t), 0, 0, 1, 1, 1);
    CHECK_TENSOR(eg_logical_xor(x, t), 0, 1, 0, 0, 0);
    CHECK_TENSOR(eg_equal(x, t), 0, 0, 1, 1, 1);
    CHECK_TENSOR(eg_cast(x, EG_INT32), 0, 0, 1, 1, 1);
    CHECK_TENSOR(eg_logical_not(x), 0, 1, 0, 0, 0);
}

// ---- NaN and infinities

TEST(nan_passes_through) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *n = eg_constant_of(floats[t], EG_SHAPE(2), NAN, 1), *one = eg_ones(floats[t], EG_SHAPE(2));
        CHECK_TENSOR(eg_maximum(n, one), 0, NAN, 1);
        CHECK_TENSOR(eg_maximum(one, n), 0, NAN, 1);
        CHECK_TENSOR(eg_minimum(n, one), 0, NAN, 1);
        CHECK_TENSOR(eg_minimum(one, n), 0, NAN, 1);
        CHECK_TENSOR(eg_clip_by_value(n, -1, 1), 0, NAN, 1);
        CHECK_TENSOR(eg_sign(n), 0, NAN, 1);
        CHECK_TENSOR(eg_relu(n), 0, NAN, 1);
        CHECK_TENSOR(eg_relu6(n), 0, NAN, 1);
        CHECK_TENSOR(eg_sigmoid(n), 1e-6, NAN, 0.7310585786);
        CHECK_TENSOR(eg_softplus(n), 1e-6, NAN, 1.3132616875);
        CHECK_TENSOR(eg_softmax(n), 0, NAN, NAN);
        CHECK_TENSOR(eg_log_softmax(n), 0, NAN, NAN);
        CHECK_TENSOR(eg_hard_sigmoid(n), 1e-6, NAN, 2. / 3);
        CHECK_TENSOR(eg_leaky_relu(n, 0.1), 0, NAN, 1);
        CHECK_TENSOR(eg_elu(n, 1), 0, NAN, 1);
        CHECK_TENSOR(eg_selu(n), 1e-6, NAN, 1.0507009873554805);
        CHECK_TENSOR(eg_gelu(n), 1e-6, NAN, 0.8413447);
        CHECK_TENSOR(eg_silu(n), 1e-6, NAN, 0.7310585786);
        CHECK_TENSOR(eg_reduce_max(n), 0, NAN);
        CHECK_TENSOR(eg_reduce_min(n), 0, NAN);
        CHECK_TENSOR(eg_reduce_sum(n), 0, NAN);
        CHECK_TENSOR(eg_reduce_logsumexp(n), 0, NAN);
        CHECK_TENSOR(eg_norm(n), 0, NAN);
        CHECK_TENSOR(eg_cumsum(n), 0, NAN, NAN);
        CHECK_TENSOR(eg_equal(n, n), 0, 0, 1);
        CHECK_TENSOR(eg_not_equal(n, n), 0, 1, 0);
        CHECK_TENSOR(eg_less(n, 5), 0, 0, 1);
        CHECK_TENSOR(eg_greater_equal(n, 1), 0, 0, 1);
        CHECK_TENSOR(eg_is_nan(n), 0, 1, 0);
        CHECK_TENSOR(eg_is_finite(n), 0, 0, 1);
    }
}
TEST(infinities_pass_through) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *i = eg_constant_of(floats[t], EG_SHAPE(2), -INFINITY, INFINITY);
        CHECK_TENSOR(eg_sign(i), 0, -1, 1);
        CHECK_TENSOR(eg_relu(i), 0, 0, INFINITY);
        CHECK_TENSOR(eg_relu6(i), 0, 0, 6);
        CHECK_TENSOR(eg_clip_by_value(i, -2, 3), 0, -2, 3);
        CHECK_TENSOR(eg_sigmoid(i), 0, 0, 1);
        CHECK_TENSOR(eg_softplus(i), 0, 0, INFINITY);
        CHECK_TENSOR(eg_tanh(i), 0, -1, 1);
        CHECK_TENSOR(eg_erf(i), 0, -1, 1);
        CHECK_TENSOR(eg_exp(i), 0, 0, INFINITY);
        CHECK_TENSOR(eg_elu(i, 1), 0, -1, INFINITY);
        CHECK_TENSOR(eg_hard_sigmoid(i), 0, 0, 1);
        CHECK_TENSOR(eg_is_inf(i), 0, 1, 1);
        CHECK_TENSOR(eg_is_nan(i), 0, 0, 0);
        CHECK_TENSOR(eg_is_finite(i), 0, 0, 0);
        CHECK_TENSOR(eg_reduce_max(i), 0, INFINITY);
        CHECK_TENSOR(eg_reduce_sum(i), 0, NAN);
        CHECK_TENSOR(eg_atan2(i, i), 1e-6, -2.35619449, 0.785398163);
        CHECK_TENSOR(eg_log(eg_constant_of(floats[t], EG_SHAPE(2), 0, -1)), 0, -INFINITY, NAN);
    }
}
static eg_tensor *gelu_tanh_of(eg_tensor *const *in, void *user) { (void)user; return eg_gelu_tanh(in[0]); }
TEST(sigmoid_and_softplus_do_not_overflow) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g, *far = eg_constant_of(floats[t], EG_SHAPE(4), -1000, -100, 100, 1000);
        CHECK_TENSOR(eg_sigmoid(far), 1e-30, 0, t ? exp(-100) : 3.7835e-44, 1, 1);
        CHECK_TENSOR(eg_softplus(far), 1e-30, 0, exp(-100), 100, 1000);
        SLOPE(g, eg_sigmoid(x), far);
        CHECK_TENSOR(g, 1e-30, 0, exp(-100), 0, 0);
        SLOPE(g, eg_softplus(x), far);
        CHECK_TENSOR(g, 1e-30, 0, exp(-100), 1, 1);
        SLOPE(g, eg_silu(x), far);
        CHECK_TENSOR(g, 1e-30, 0, 0, 1, 1);
        SLOPE(g, eg_mish(x), far);
        CHECK_TENSOR(g, 1e-30, 0, 0, 1, 1);
        SLOPE(g, eg_gelu_tanh(x), far);
        CHECK_TENSOR(g, 1e-30, 0, 0, 1, 1);
        // whose cube is no float
        eg_tensor *farther = eg_constant_of(floats[t], EG_SHAPE(6), -INFINITY, -3e38, -1e20, 1e20, 3e38, INFINITY);
        SLOPE(g, eg_gelu_tanh(x), farther);
        CHECK_TENSOR(g, 0, 0, 0, 0, 1, 1, 1);
        CHECK_TENSOR(eg_nth_gradient(gelu_tanh_of, NULL, farther, 2), 0, 0, 0, 0, 0, 0, 0);
        SLOPE(g, eg_tanh(x), far);
        CHECK_TENSOR(g, 0, 0, 0, 0, 0);
        SLOPE(g, eg_sigmoid_cross_entropy_with_logits(eg_ones_like(x), x), far);
        CHECK_TENSOR(g, 1e-7, -1, -1, 0, 0);
    }
}
TEST(expm1_and_log1p_are_exact_near_zero) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *x = of(floats[t], 1e-10);
        CHECK_NEAR(eg_item(eg_expm1(x)) * 1e10, 1, 1e-6);
        CHECK_NEAR(eg_item(eg_log1p(x)) * 1e10, 1, 1e-6);
    }
}
TEST(large_logits_are_stable) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g, *big = eg_constant_of(floats[t], EG_SHAPE(2, 3), 1000, 0, -1000, -5000, -5000, -5001);
        eg_tensor *labels = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 0);
        CHECK_TENSOR(eg_softmax(big), 1e-6, 1, 0, 0, .42231879825, .42231879825, .1553624035);
        CHECK_TENSOR(eg_sparse_softmax_cross_entropy_with_logits(labels, big), 1e-6, 1000, .86199480);
        CHECK_TENSOR(eg_log_softmax(eg_constant_of(floats[t], EG_SHAPE(2), 1e5, 0)), 0, 0, -1e5);
        CHECK_TENSOR(eg_reduce_logsumexp(big, .axes = EG_AXES(1)), 1e-6, 1000, -4999.1380052);
        SLOPE(g, eg_sparse_softmax_cross_entropy_with_logits(labels, x), big);
        CHECK_TENSOR(g, 1e-6, 1, -1, 0, .42231879825 - 1, .42231879825, .1553624035);
        SLOPE(g, eg_softmax_cross_entropy_with_logits(eg_one_hot(labels, 3, .dtype = floats[t]), x), big);
        CHECK_TENSOR(g, 1e-6, 1, -1, 0, .42231879825 - 1, .42231879825, .1553624035);
    }
    CHECK_TENSOR(eg_sparse_softmax_cross_entropy_with_logits(eg_constant_of(EG_INT64, EG_SHAPE(1), 0),
                                                             eg_constant(EG_SHAPE(1, 3), 2, 1, .1)), 1e-6, .4170300);
    CHECK_TENSOR(eg_sigmoid_cross_entropy_with_logits(eg_constant(EG_SHAPE(2), 1, 0),
                                                      eg_constant(EG_SHAPE(2), -1e4, 1e4)), 0, 1e4, 1e4);
}
TEST(logsumexp_of_infinities) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *g;
        CHECK_TENSOR(eg_reduce_logsumexp(eg_constant_of(floats[t], EG_SHAPE(2), -INFINITY, -INFINITY)), 0, -INFINITY);
        CHECK_TENSOR(eg_reduce_logsumexp(eg_constant_of(floats[t], EG_SHAPE(2), -INFINITY, 3)), 0, 3);
        CHECK_TENSOR(eg_reduce_logsumexp(eg_constant_of(floats[t], EG_SHAPE(2), INFINITY, 3)), 0, INFINITY);
        CHECK_TENSOR(eg_reduce_logsumexp(eg_zeros(floats[t], EG_SHAPE(0))), 0, -INFINITY);
        SLOPE(g, eg_reduce_logsumexp(x), eg_constant_of(floats[t], EG_SHAPE(2), -INFINITY, 3));
        CHECK_TENSOR(g, 1e-7, 0, 1);
    }
}
TEST(softmax_masked_by_minus_infinity) {
    eg_tensor *g, *masked = eg_constant(EG_SHAPE(3), 1, -INFINITY, 1);
    CHECK_TENSOR(eg_softmax(masked), 1e-7, .5, 0, .5);
    SLOPE(g, eg_mul(eg_softmax(x), eg_constant(EG_SHAPE(3), 1, 2, 3)), masked);
    CHECK_TENSOR(g, 1e-6, -.5, 0, .5);
    CHECK_TENSOR(eg_softmax(eg_constant(EG_SHAPE(2), -INFINITY, -INFINITY)), 0, NAN, NAN);
}
TEST(pow_as_c_defines_it) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *a = eg_constant_of(floats[t], EG_SHAPE(7), 0, 0, -2, -2, 4, 0, NAN),
                  *b = eg_constant_of(floats[t], EG_SHAPE(7), 0, -1, 3, 0.5, 0.5, 3, 0);
        CHECK_TENSOR(eg_pow(a, b), 1e-7, 1, INFINITY, -8, NAN, 2, 0, 1);
    }
}

// ---- nothing at all

TEST(reductions_of_nothing) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *none = eg_zeros(floats[t], EG_SHAPE(2, 0));
        CHECK_TENSOR(eg_reduce_sum(none, .axes = EG_AXES(1)), 0, 0, 0);
        CHECK_TENSOR(eg_reduce_mean(none, .axes = EG_AXES(1)), 0, NAN, NAN);
        CHECK_TENSOR(eg_reduce_max(none, .axes = EG_AXES(-1)), 0, -INFINITY, -INFINITY);
        CHECK_TENSOR(eg_reduce_min(none), 0, INFINITY);
        CHECK_TENSOR(eg_reduce_prod(none), 0, 1);
        CHECK_TENSOR(eg_reduce_prod(none, .axes = EG_AXES(1)), 0, 1, 1);
        CHECK_TENSOR(eg_norm(none), 0, 0);
        CHECK_TENSOR(eg_norm(none, .ord = 1), 0, 0);
        CHECK_TENSOR(eg_norm(none, .ord = INFINITY), 0, 0);        // as in NumPy
        CHECK_TENSOR(eg_norm(none, .ord = INFINITY, .axes = EG_AXES(1)), 0, 0, 0);
        CHECK_TENSOR(eg_reduce_variance(none), 0, NAN);
        CHECK_SHAPE(eg_reduce_sum(none, .axes = EG_AXES(0)), 0);
        CHECK_SHAPE(eg_reduce_max(none, .axes = EG_AXES(0), .keepdims = true), 1, 0);
        CHECK_ERROR(eg_argmax(none, .axis = 1), EG_ERROR_SHAPE, "eg_argmax");
        CHECK_ERROR(eg_argmin(none, .axis = -1), EG_ERROR_SHAPE, "[2, 0]");
        CHECK_SHAPE(eg_argmax(none), 0);
    }
    CHECK_TENSOR(eg_reduce_max(eg_zeros(EG_INT32, EG_SHAPE(0))), 0, -2147483648.0);
    CHECK_TENSOR(eg_reduce_min(eg_zeros(EG_INT32, EG_SHAPE(0))), 0, 2147483647);
    CHECK_TENSOR(eg_reduce_max(eg_zeros(EG_UINT8, EG_SHAPE(0))), 0, 0);
    CHECK_TENSOR(eg_reduce_min(eg_zeros(EG_UINT8, EG_SHAPE(0))), 0, 255);
    CHECK_INT(eg_item_int(eg_reduce_max(eg_zeros(EG_INT64, EG_SHAPE(0)))), INT64_MIN);
    CHECK_INT(eg_item_int(eg_reduce_min(eg_zeros(EG_INT64, EG_SHAPE(0)))), INT64_MAX);
    CHECK_TENSOR(eg_reduce_mean(eg_zeros(EG_INT32, EG_SHAPE(0))), 0, 0);
    CHECK_TENSOR(eg_reduce_all(eg_zeros(EG_BOOL, EG_SHAPE(0))), 0, 1);
    CHECK_TENSOR(eg_reduce_any(eg_zeros(EG_BOOL, EG_SHAPE(0))), 0, 0);
}
TEST(ops_of_nothing) {
    eg_tensor *none = eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3));
    CHECK_SHAPE(eg_add(none, 1), 0, 3);
    CHECK_SHAPE(eg_add(none, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), 0, 3);
    CHECK_SHAPE(eg_add(none, eg_ones(EG_FLOAT32, EG_SHAPE(2, 1, 1))), 2, 0, 3);
    CHECK_SHAPE(eg_softmax(none), 0, 3);
    CHECK_SHAPE(eg_log_softmax(eg_transpose(none)), 3, 0);
    CHECK_SHAPE(eg_cumsum(none, .axis = 1), 0, 3);
    CHECK_SHAPE(eg_transpose(none), 3, 0);
    CHECK_TENSOR(eg_matmul(eg_transpose(none), none), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_SHAPE(eg_sparse_softmax_cross_entropy_with_logits(eg_zeros(EG_INT32, EG_SHAPE(0)), none), 0);
    CHECK_SHAPE(eg_softmax_cross_entropy_with_logits(none, none), 0);
    CHECK_SHAPE(eg_resize(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2, 2, 1)), 4, 4), 0, 4, 4, 1);
    CHECK_SHAPE(eg_resize(eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2, 2, 1)), 0, 4), 1, 0, 4, 1);
    CHECK_SHAPE(eg_reverse(none, EG_AXES(0, 1)), 0, 3);
    CHECK_SHAPE(eg_one_hot(eg_zeros(EG_INT32, EG_SHAPE(0)), 4), 0, 4);
    CHECK_SHAPE(eg_cast(none, EG_INT32), 0, 3);
}
TEST(reductions_of_a_scalar) {
    eg_tensor *x = eg_scalar(-3);
    CHECK_TENSOR(eg_reduce_sum(x), 0, -3);
    CHECK_TENSOR(eg_reduce_max(x), 0, -3);
    CHECK_TENSOR(eg_reduce_prod(x), 0, -3);
    CHECK_TENSOR(eg_norm(x), 0, 3);
    CHECK_TENSOR(eg_reduce_logsumexp(x), 1e-6, -3);
    CHECK_TENSOR(eg_reduce_variance(x), 0, 0);
    CHECK_TENSOR(eg_transpose(x), 0, -3);
    CHECK_TENSOR(eg_reduce_sum(5), 0, 5);
    CHECK_ERROR(eg_reduce_sum(x, .axes = EG_AXES(0)), EG_ERROR_ARGUMENT, "eg_reduce_sum: axis 0");
}

// ---- padding, resizing, picking

TEST(same_padding_puts_the_extra_row_at_the_bottom_and_right) {
    eg_tensor *f = eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 1, 1));
    CHECK_TENSOR(eg_conv2d(eg_ones(EG_FLOAT32, EG_SHAPE(1, 5, 5, 1)), f, .strides = { 2 }, .padding = EG_SAME), 0, 4, 6,
                 4, 6, 9, 6, 4, 6, 4);
    CHECK_TENSOR(eg_conv2d(eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 4, 1)), f, .strides = { 2 }, .padding = EG_SAME), 0, 9, 6,
                 6, 4);
    // the padding does not count
    CHECK_TENSOR(eg_avg_pool2d(eg_constant(EG_SHAPE(1, 1, 3, 1), 1, 2, 3), .size = { 1, 2 }, .padding = EG_SAME), 0,
                 1.5, 3);
    CHECK_TENSOR(eg_max_pool2d(eg_constant(EG_SHAPE(1, 1, 3, 1), -1, -2, -3), .size = { 1, 2 }, .padding = EG_SAME), 0,
                 -1, -3);
}
TEST(bilinear_resize_has_half_pixel_centres) {
    eg_tensor *x = eg_constant(EG_SHAPE(1, 1, 2, 1), 0, 4);
    CHECK_TENSOR(eg_resize(x, 1, 4), 1e-6, 0, 1, 3, 4);
    CHECK_TENSOR(eg_resize(eg_constant(EG_SHAPE(1, 1, 4, 1), 0, 1, 3, 4), 1, 2), 1e-6, .5, 3.5);
    CHECK_TENSOR(eg_resize(x, 1, 3, .method = EG_NEAREST), 0, 0, 4, 4);
    CHECK_TENSOR(eg_resize(x, 2, 1), 0, 2, 2);
}
// Values of TensorFlow 2.21's tf.image.resize of uint8 (2, 3, 2), in both methods.
TEST(resize_takes_integers_and_single_pictures) {
    eg_tensor *bytes = eg_constant_of(EG_UINT8, EG_SHAPE(2, 3, 2), 0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200,
                                      220), *y = eg_resize(bytes, 3, 4);
    CHECK_DTYPE(y, EG_FLOAT32);
    CHECK_SHAPE(y, 3, 4, 2);
    CHECK_TENSOR(y, 1e-5, 0, 20, 25, 45, 55, 75, 80, 100, 60, 80, 85, 105, 115, 135, 140, 160, 120, 140, 145, 165, 175,
                 195, 200, 220);
    y = eg_resize(bytes, 3, 4, .method = EG_NEAREST);
    CHECK_DTYPE(y, EG_UINT8);
    CHECK_SHAPE(y, 3, 4, 2);
    CHECK_TENSOR(y, 0, 0, 20, 40, 60, 40, 60, 80, 100, 120, 140, 160, 180, 160, 180, 200, 220, 120, 140, 160, 180, 160,
                 180, 200, 220);
    CHECK_DTYPE(eg_resize(bytes, 2, 3), EG_FLOAT32);               // of the same size, too
    CHECK_SHAPE(eg_resize(eg_expand_dims(bytes, 0), 1, 1), 1, 1, 1, 2);
    for (int t = 0; t < 2; t++) CHECK_DTYPE(eg_resize(eg_cast(bytes, t ? EG_INT64 : EG_INT32), 4, 4), EG_FLOAT32);
    for (int t = 0; t < 2; t++)
        CHECK_DTYPE(eg_resize(eg_cast(bytes, t ? EG_INT64 : EG_INT32), 4, 4, .method = EG_NEAREST),
                    t ? EG_INT64 : EG_INT32);
    CHECK_DTYPE(eg_resize(eg_cast(bytes, EG_FLOAT64), 4, 4), EG_FLOAT64);
    CHECK_DTYPE(eg_resize(eg_cast(bytes, EG_BOOL), 4, 4, .method = EG_NEAREST), EG_BOOL);
    CHECK_ERROR(eg_resize(eg_cast(bytes, EG_BOOL), 4, 4), EG_ERROR_DTYPE, "eg_resize");
    eg_tensor *g, *one = eg_constant(EG_SHAPE(1, 2, 1), 3, 5);     // a picture's gradient has its shape
    SLOPE(g, eg_resize(x, 1, 4), one);
    CHECK_SHAPE(g, 1, 2, 1);
    CHECK_TENSOR(g, 1e-6, 2, 2);
}
TEST(one_hot_out_of_range_is_a_row_of_zeros) {
    CHECK_TENSOR(eg_one_hot(eg_constant_of(EG_INT64, EG_SHAPE(3), -1, 1, 2), 2), 0, 0, 0, 0, 1, 0, 0);
    CHECK_INT(eg_error(), EG_OK);
}
TEST(one_hot_takes_bytes) {                                           // as MNIST's labels are
    CHECK_TENSOR(eg_one_hot(eg_constant_of(EG_UINT8, EG_SHAPE(3), 0, 2, 255), 3), 0, 1, 0, 0, 0, 0, 1, 0, 0, 0);
    eg_tensor *wide = eg_one_hot(eg_constant_of(EG_UINT8, EG_SHAPE(2), 255, 3), 300);
    CHECK_SHAPE(wide, 2, 300);
    CHECK(eg_item(eg_reduce_sum(wide)) == 2 &&
          eg_assert_equal(eg_argmax(wide, .axis = 1), eg_constant_of(EG_INT64, EG_SHAPE(2), 255, 3)));
}
TEST(index_out_of_range_names_index_and_position) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4)), *bad = eg_constant_of(EG_INT32, EG_SHAPE(2, 2), 0, 1, 2, 3),
              *negative = eg_constant_of(EG_INT64, EG_SHAPE(2), 0, -1);
    CHECK_ERROR(eg_gather(x, bad), EG_ERROR_INDEX, "eg_gather: index 3 at position [1, 1]");
    CHECK_ERROR(eg_gather(x, negative), EG_ERROR_INDEX, "index -1 at position [1]");
    CHECK_ERROR(eg_gather(x, eg_constant_of(EG_INT32, EG_SHAPE(1), 4), .axis = 1), EG_ERROR_INDEX, "[0, 4)");
    CHECK_ERROR(eg_gather(x, 7), EG_ERROR_INDEX, "index 7");
    CHECK_ERROR(eg_gather_nd(x, eg_constant_of(EG_INT32, EG_SHAPE(2, 2), 0, 3, 1, 4)), EG_ERROR_INDEX,
                "eg_gather_nd: index 4");
    CHECK_ERROR(eg_take_along_axis(x, eg_constant_of(EG_INT32, EG_SHAPE(1, 4), 0, 1, 2, 3), 0), EG_ERROR_INDEX,
                "eg_take_along_axis: index 3");
    CHECK_ERROR(eg_scatter_nd(eg_constant_of(EG_INT32, EG_SHAPE(1, 1), 5), eg_ones(EG_FLOAT32, EG_SHAPE(1)),
                              EG_SHAPE(5)), EG_ERROR_INDEX, "eg_scatter_nd: index 5");
    CHECK_ERROR(eg_segment_sum(x, eg_constant_of(EG_INT32, EG_SHAPE(3), 0, -1, 0), 2), EG_ERROR_INDEX,
                "eg_segment_sum: index -1 at position [1]");
    CHECK_ERROR(eg_index(x, 3), EG_ERROR_INDEX, "eg_index: 3");
    CHECK_ERROR(eg_index(x, -4), EG_ERROR_INDEX, "eg_index: -4");
}
TEST(gather_adds_up_the_gradient_of_duplicates) {
    eg_tensor *g;
    SLOPE(g, eg_gather(x, eg_constant_of(EG_INT32, EG_SHAPE(4), 2, 0, 2, 2)), eg_constant(EG_SHAPE(3), 5, 6, 7));
    CHECK_TENSOR(g, 0, 1, 0, 3);
}
TEST(label_out_of_range_is_an_error) {
    eg_tensor *logits = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4));
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(eg_constant_of(EG_INT32, EG_SHAPE(3), 0, 4, 1), logits),
                EG_ERROR_INDEX,
                test_on_host ? "eg_sparse_softmax_cross_entropy_with_logits: label 4 at position [1] of int32 [3] "
                "(from eg_constant) is none of the 4 classes, which count from 0"
                : "eg_sparse_softmax_cross_entropy_with_logits: label 4 at position [1] of int32 [3] ");
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(eg_constant_of(EG_INT64, EG_SHAPE(3), 0, 3, -1), logits),
                EG_ERROR_INDEX, "label -1 at position [2]");
}
TEST(labels_of_another_rank_are_an_error) {
    eg_tensor *logits = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4)), *column = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 1)),
              *row = eg_zeros(EG_FLOAT32, EG_SHAPE(3));
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(eg_zeros(EG_INT32, EG_SHAPE(3, 1)), logits), EG_ERROR_SHAPE,
                "[3, 1]");
    CHECK_ERROR(eg_softmax_cross_entropy_with_logits(row, logits), EG_ERROR_SHAPE, "[3]");
    CHECK_ERROR(eg_softmax_cross_entropy_with_logits(column, logits), EG_ERROR_SHAPE, "[3, 4]");
    CHECK_ERROR(eg_sigmoid_cross_entropy_with_logits(row, column), EG_ERROR_SHAPE,
                "eg_sigmoid_cross_entropy_with_logits: labels float32 [3]");
}

// ---- views and memory

TEST(views_share_memory_and_outlive_their_source) {
    eg_tensor *y;
    {
        EG_SCOPE;
        eg_tensor *x = eg_random_normal(EG_SHAPE(100, 100));
        eg_tensor *row = eg_index(eg_transpose(x), 7);
        bool here = !strcmp(eg_device_of(x), "cpu:0");             // elsewhere eg_data is a copy of a tensor's own
        CHECK(!here || eg_data(eg_reshape(x, EG_SHAPE(10000))) == eg_data(x));
        CHECK_SAME(eg_squeeze(eg_expand_dims(eg_transpose(x), 1)), eg_transpose(x), 0);
        CHECK(!here || eg_data(eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(2, -1))) == eg_data(x));
        y = eg_keep(row);
    }
    // no copy
    CHECK_SHAPE(eg_expand_dims(eg_broadcast_to(eg_scalar(1), EG_SHAPE(INT64_C(1) << 50)), 0), 1, INT64_C(1) << 50);
    CHECK_SHAPE(y, 100);
    CHECK(isfinite(eg_item(eg_reduce_sum(y))));
}
// An op that has nothing to do returns a result of its own all the same: it does not end with its operand.
TEST(results_outlive_their_operands) {
    eg_tensor *x, *y[4];
    {
        EG_SCOPE;
        x = eg_retain(eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(2)), 1));
    }
    y[0] = eg_cast(x, EG_FLOAT32);
    y[1] = eg_tile(x, EG_SHAPE(1));
    y[2] = eg_pad(x, EG_PADS(0, 0), .mode = EG_PAD_REFLECT);
    y[3] = eg_to(x, test_device());
    eg_release(x);
    for (int i = 0; i < 4; i++) CHECK_TENSOR(y[i], 0, 2, 2);
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "v"), *tiled = eg_tile(v, EG_SHAPE(1));
    eg_assign(v, 5);
    CHECK_TENSOR(tiled, 0, 1, 1);
    eg_release(v);
}
TEST(inputs_are_never_written) {
    const double before[] = { 3, -1, 2, 0 };
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 3, -1, 2, 0);
    eg_sort(x);
    eg_softmax(x);
    eg_cumsum(x);
    eg_relu(x);
    eg_matmul(x, x);
    eg_tensor_scatter_add(x, eg_zeros(EG_INT32, EG_SHAPE(1, 1)), eg_ones(EG_FLOAT32, EG_SHAPE(1, 2)));
    CHECK_VALUES(x, 0, before, 4);
}
TEST(rank_eight_works) {
    eg_tensor *wide = eg_reshape(eg_range(EG_FLOAT32, 0, 4, 1), EG_SHAPE(1, 1, 1, 2, 1, 1, 1, 2)), *sums;
    CHECK_TENSOR(eg_tile(wide, EG_SHAPE(1, 1, 1, 2, 1, 1, 1, 1)), 0, 0, 1, 2, 3, 0, 1, 2, 3);
    CHECK_TENSOR(eg_repeat(wide, 2, 3), 0, 0, 1, 0, 1, 2, 3, 2, 3);
    CHECK_TENSOR(eg_repeat(wide, 2, -1), 0, 0, 0, 1, 1, 2, 2, 3, 3);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, wide);
    sums = eg_reduce_sum(eg_square(wide));
    CHECK_TENSOR(eg_tape_jacobian(tape, sums, wide), 0, 0, 2, 4, 6);
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, 256, 1), EG_SHAPE(2, 2, 2, 2, 2, 2, 2, 2));
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_transpose(x))), 32640, 0);
    CHECK_TENSOR(eg_reduce_max(eg_transpose(x), .axes = EG_AXES(0, 2, 3, 4, 5, 6, 7)), 0, 253, 255);
    CHECK_INT(eg_rank(eg_add(x, eg_transpose(x))), 8);
    CHECK_ERROR(eg_expand_dims(x, 0), EG_ERROR_SHAPE, "eg_expand_dims");
    CHECK_SHAPE(eg_repeat(x, 2, 0), 4, 2, 2, 2, 2, 2, 2, 2);
}
TEST(assertions) {
    eg_tensor *a = eg_constant(EG_SHAPE(2, 2), 1, 2, NAN, 4), *b = eg_constant(EG_SHAPE(2, 2), 1, 2.5, NAN, 5);
    CHECK(eg_assert_equal(a, a));
    CHECK(eg_assert_near(a, b, 1));
    CHECK_ERROR(eg_assert_equal(a, b), EG_ERROR_ASSERT, "[0, 1]: 2 against 2.5");
    CHECK_ERROR(eg_assert_equal(a, b), EG_ERROR_ASSERT, "2 of 4");
    CHECK_ERROR(eg_assert_near(a, b, .6), EG_ERROR_ASSERT, "[1, 1]: 4 against 5");
    CHECK_ERROR(
        eg_assert_equal(a, eg_scalar(1)), EG_ERROR_ASSERT,
        "does not hold for 3 of 4 elements: at [0, 1]: 2 against 1; [1, 0]: nan against 1; [1, 1]: 4 against 1");
    CHECK_ERROR(eg_assert_equal(a, eg_cast(a, EG_FLOAT64)), EG_ERROR_ASSERT, "float64");
    CHECK(eg_assert_shape(a, EG_SHAPE(-1, 2)));
    CHECK_ERROR(eg_assert_shape(a, EG_SHAPE(2, 3)), EG_ERROR_ASSERT, "[2, 3]");
}
TEST(assertions_take_numbers_and_broadcast) {
    eg_tensor *ones = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *row = eg_constant(EG_SHAPE(3), 1, 2, 3),
              *rows = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 1, 2, 3), *column = eg_constant(EG_SHAPE(2, 1), 4, 5);
    CHECK(eg_assert_equal(ones, 1) && eg_assert_equal(1, ones) && eg_assert_equal(1, 1) && eg_assert_near(2.5, 2, .5) &&
          eg_assert_near(ones, 1.25, .25));
    // two numbers are no float32
    CHECK(eg_assert_equal(9007199254740993, 9007199254740993) && eg_assert_equal(.1, .1));
    CHECK_ERROR(eg_assert_equal(9007199254740993, 9007199254740992), EG_ERROR_ASSERT, "does not hold");
    CHECK_ERROR(eg_assert_equal(16777217, 16777216.0), EG_ERROR_ASSERT, "16777217 against 16777216");
    CHECK(eg_assert_equal(eg_constant_of(EG_INT64, EG_SHAPE(2), 7, 7), 7) &&
          eg_assert_equal(eg_constant_of(EG_UINT8, EG_SHAPE(1), 255), 255) && eg_assert_equal(eg_equal(ones, 1), true));
    CHECK(eg_assert_equal(rows, row) && eg_assert_equal(row, rows) &&
          eg_assert_equal(eg_add(column, row), eg_add(eg_broadcast_to(column, EG_SHAPE(2, 3)), rows)));
    CHECK(eg_assert_equal(eg_broadcast_to(column, EG_SHAPE(2, 3)), column) &&
          eg_assert_equal(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3)), row));
    CHECK_ERROR(eg_assert_equal(rows, column), EG_ERROR_ASSERT,
                "6 of 6 elements: at [0, 0]: 1 against 4; [0, 1]: 2 against 4; [0, 2]: 3 against 4");
    // (2, 1) and (3) meet as (2, 3)
    CHECK_ERROR(eg_assert_equal(column, row), EG_ERROR_ASSERT, "6 of 6 elements: at [0, 0]: 4 against 1");
    CHECK_ERROR(eg_assert_near(rows, 2, .5), EG_ERROR_ASSERT,
                "differ by more than 0.5 in 4 of 6 elements: at [0, 0]: 1 against 2");
    CHECK_ERROR(eg_assert_equal(row, eg_constant(EG_SHAPE(2), 1, 2)), EG_ERROR_ASSERT,
                "shapes differ, and neither broadcasts to the other: float32 [3]");
    CHECK_ERROR(eg_assert_equal(eg_constant_of(EG_INT32, EG_SHAPE(1), 1), .5), EG_ERROR_DTYPE, "0.5");
}

// Operands in every form (whole, a row, a column, one element, transposed, every second element, backwards, a part of
// longer rows) against the same values as a whole tensor.
enum { FORMS = 9 };
static eg_tensor *in_form(eg_dtype dtype, int form, int64_t rows, int64_t n, int seed) {
    static double v[3 * 2100];
    const int64_t room = 3 * 2100;
    for (int64_t i = 0; i < room; i++)
        v[i] = (double)((i * 7 + seed * 5 + i / 11) % 23) - (dtype == EG_UINT8 || dtype == EG_BOOL ? 0 : 11);
    eg_tensor *x = NULL;
    switch (form) {
        case 0: x = eg_from_data(EG_FLOAT64, EG_SHAPE(rows, n), v); break;
        case 1: x = eg_from_data(EG_FLOAT64, EG_SHAPE(n), v); break;
        case 2: x = eg_from_data(EG_FLOAT64, EG_SHAPE(1, n), v); break;
        case 3: x = eg_from_data(EG_FLOAT64, EG_SHAPE(rows, 1), v); break;
        case 4: x = eg_from_data(EG_FLOAT64, EG_SCALAR, v); break;
        case 5: x = eg_from_data(EG_FLOAT64, EG_SHAPE(n, rows), v); break;
        default: x = eg_from_data(EG_FLOAT64, EG_SHAPE(rows, 2 * n + 1), v); break;
    }
    x = dtype == EG_BOOL ? eg_greater(x, 9) : eg_cast(x, dtype);
    if (form == 5) x = eg_transpose(x);
    if (form == 6) x = eg_slice(x, EG_SHAPE(0, 1), EG_SHAPE(rows, n));
    if (form == 7) x = eg_strided_slice(x, EG_SHAPE(0, 1), EG_SHAPE(rows, 2 * n + 1), EG_SHAPE(1, 2));
    if (form == 8) x = eg_reverse(eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(rows, n)), EG_AXES(1));
    return x;
}
static eg_tensor *as_a_whole(eg_tensor *x, int64_t rows, int64_t n) {
    eg_tensor *y = eg_broadcast_to(x, EG_SHAPE(rows, n));
    return eg_from_data(eg_dtype_of(x), EG_SHAPE(rows, n), eg_data(y));
}
static void same_bytes(eg_tensor *x, eg_tensor *y, int op, int form_a, int form_b, int64_t n) {
    REQUIRE(x && y && eg_size(x) == eg_size(y));
    const bool same = !memcmp(eg_data(x), eg_data(y), (size_t)eg_size(x) * (size_t)eg_dtype_size(eg_dtype_of(x)));
    if (!same)
        printf("    op %d, %s, forms %d and %d, rows of %d\n", op, eg_dtype_name(eg_dtype_of(x)), form_a, form_b,
               (int)n);
    CHECK(same);
}
static eg_tensor *of_two(int op, eg_tensor *a, eg_tensor *b) {
    switch (op) {
        case 0: return eg_equal(a, b);
        case 1: return eg_where(eg_equal(a, a), b, a);
        case 2: return eg_sub(a, b);
        case 3: return eg_maximum(a, b);
        case 4: return eg_less(a, b);
        case 5: return eg_mul(a, b);
        default: return eg_clip_by_value(a, b, eg_add(b, a));
    }
}
TEST(operands_in_every_form) {
    static const int64_t lengths[] = { 1, 5, 63, 64, 65, 129, 257, 1001 };
    static const eg_dtype all[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8, EG_BOOL };
    for (int t = 0; t < 6; t++)
        for (int l = 0; l < 8; l++)
            for (int form_a = 0; form_a < FORMS; form_a++)
                for (int form_b = 0; form_b < FORMS; form_b++) {
                    EG_SCOPE;
                    const int64_t n = lengths[l], rows = 3;
                    // all forms beside a whole one, a third of the others
                    if (form_a && form_b && (form_a + form_b + l + t) % 3) continue;
                    eg_tensor *a = in_form(all[t], form_a, rows, n, 0), *b = in_form(all[t], form_b, rows, n, 1);
                    const int op = all[t] == EG_BOOL ? (form_a + form_b) % 2 : (form_a + form_b + l) % 7;
                    eg_tensor *y = eg_broadcast_to(of_two(op, a, b), EG_SHAPE(rows, n));
                    same_bytes(y, of_two(op, as_a_whole(a, rows, n), as_a_whole(b, rows, n)), op, form_a, form_b, n);
                }
}
// Running sums of int32 wrap around, at every length around the size of vectors.
TEST(running_sums_of_int32) {
    static int32_t v[70 * 3];
    for (int i = 0; i < 70 * 3; i++) v[i] = (int32_t)((uint32_t)(i + 1) * 0x9e3779b9u);
    for (int64_t n = 1; n <= 70; n++) {
        EG_SCOPE;
        eg_tensor *x = eg_from_data(EG_INT32, EG_SHAPE(3, n), v);
        for (int kind = 0; kind < 4; kind++) {
            const bool exclusive = kind & 1, reverse = kind > 1;
            eg_tensor *y = eg_cumsum(x, .axis = 1, .exclusive = exclusive, .reverse = reverse);
            const int32_t *got = (const int32_t *)eg_data(y);
            REQUIRE(got);
            int wrong = 0;
            for (int64_t r = 0; r < 3; r++) {
                uint32_t all = 0;
                for (int64_t k = 0; k < n; k++) {
                    const int64_t at = r * n + (reverse ? n - 1 - k : k);
                    const uint32_t before = all;
                    all += (uint32_t)v[at];
                    wrong += (uint32_t)got[at] != (exclusive ? before : all);
                }
            }
            CHECK_INT(wrong, 0);
        }
    }
}
// Operands whose columns follow each other in the memory, which are packed by tiles, around the sizes of vectors and
// tiles: whole, a part of a larger one, back to front, and with axes in front.
static eg_tensor *in_columns(eg_dtype dtype, int form, int64_t rows, int64_t n, int seed) {
    static double v[2 * 75 * 1105];
    const int64_t tall = n + 3, broad = rows + 4;
    for (int64_t i = 0; i < 2 * tall * broad; i++)
        v[i] = (double)((i * 7 + seed * 5 + i / 11) % 23) - (dtype == EG_UINT8 || dtype == EG_BOOL ? 0 : 11);
    eg_tensor *x = eg_from_data(EG_FLOAT64, EG_SHAPE(2, tall, broad), v);
    x = eg_slice(dtype == EG_BOOL ? eg_greater(x, 9) : eg_cast(x, dtype), EG_SHAPE(0, 1, 3), EG_SHAPE(2, n, rows));
    if (form < 3) x = eg_squeeze(eg_slice(x, EG_SHAPE(1, 0, 0), EG_SHAPE(1, n, rows)), .axes = EG_AXES(0));
    if (form == 0) x = eg_reshape(x, EG_SHAPE(n, rows));
    if (form == 2) x = eg_reverse(x, EG_AXES(0));
    return form < 3 ? eg_transpose(x) : eg_transpose(x, .perm = EG_AXES(0, 2, 1));
}
TEST(operands_in_columns) {
    static const int64_t many[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 64, 70 };
    static const int64_t lengths[] = { 1, 15, 63, 64, 65, 70, 170, 256, 257, 512, 513, 1100 };
    static const eg_dtype all[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8, EG_BOOL };
    for (int t = 0; t < 6; t++)
        for (int m = 0; m < 15; m++)
            for (int l = 0; l < 12; l++) {
                EG_SCOPE;
                const int64_t n = lengths[l], rows = many[m];
                const int form = (m + l) % 4, op = all[t] == EG_BOOL ? m % 2 : (m + 2 * l + t) % 7;
                eg_tensor *a = in_columns(all[t], form, rows, n, 0),
                          *b = in_columns(all[t], (form + l) % 3, rows, n, 1),
                          *whole = eg_from_data(all[t], eg_shape_of(a), eg_data(a)),
                          *y = eg_broadcast_to(b, eg_shape_of(a));
                y = eg_from_data(all[t], eg_shape_of(y), eg_data(y));
                same_bytes(of_two(op, a, b), of_two(op, whole, y), op, form, form, n);
                same_bytes(of_two(op, a, y), of_two(op, whole, y), op, form, 0, n);
                same_bytes(of_two(op, whole, b), of_two(op, whole, y), op, 0, form, n);
            }
}
TEST(columns_of_three_axes) {
    eg_tensor *x = eg_reshape(in_form(EG_FLOAT32, 0, 6, 70, 0), EG_SHAPE(2, 3, 70)),
              *planes = eg_constant(EG_SHAPE(2, 1, 1), 2, -3);
    eg_tensor *columns = eg_constant(EG_SHAPE(3, 1), 5, 7, 0.5), *row = in_form(EG_FLOAT32, 1, 1, 70, 2);
    const float *v = eg_data(x), *r = eg_data(row);
    static const float p[2] = { 2, -3 }, c[3] = { 5, 7, 0.5f };
    const float *products = eg_data(eg_mul(x, planes)), *sums = eg_data(eg_add(eg_mul(planes, columns), x)),
                *chosen = eg_data(eg_where(eg_greater(planes, 0), row, columns));
    const float *clipped = eg_data(eg_clip_by_value(x, columns, row));
    REQUIRE(v && r && products && sums && chosen && clipped);
    (void)chosen;
    bool same = true;
    for (int i = 0; i < 420; i++) {
        const float low = c[i / 70 % 3], high = r[i % 70], raised = v[i] > low ? v[i] : low;
        same = same && products[i] == v[i] * p[i / 210] && sums[i] == p[i / 210] * c[i / 70 % 3] + v[i];
        same = same && chosen[i] == (p[i / 210] > 0 ? high : low) && clipped[i] == (raised < high ? raised : high);
    }
    CHECK(same);
}
TEST(gradients_of_operands_in_every_form) {
    for (int form = 0; form < FORMS; form++)
        for (int64_t n = 63; n < 131; n += 67) {
            EG_SCOPE;
            eg_tensor *a = in_form(EG_FLOAT32, 0, 3, n, 0), *b = in_form(EG_FLOAT32, form, 3, n, 1),
                      *b_whole = as_a_whole(b, 3, n), *da[2], *x[2];
            for (int whole = 0; whole < 2; whole++) {
                eg_tensor *in[2] = { a, whole ? b_whole : b };
                eg_tape *tape = eg_tape_begin();
                eg_tape_watch(tape, a);
                eg_tensor *y = eg_add(eg_mul(in[0], in[1]), eg_squared_difference(in[1], in[0]));
                da[whole] = eg_tape_gradient(tape, y, a);
                x[whole] = y;
            }
            same_bytes(x[0], x[1], 10, 0, form, n);
            same_bytes(da[0], da[1], 11, 0, form, n);
        }
}

// eg_pow by the plain numbers that are products, roots and divisions: to the bit, with their gradients to the second
// order.
TEST(powers_by_plain_numbers) {
    for (int t = 0; t < 2; t++) {
        eg_tensor *x = of(floats[t], 0.3), *many = eg_cast(eg_constant(EG_SHAPE(5), 0.3, -2, 1e-3, 7, -0.0), floats[t]),
                  *root = eg_cast(eg_constant(EG_SHAPE(4), 0.3, 4, 2, 0), floats[t]);
        same_bytes(eg_pow(many, 2), eg_mul(many, many), 0, 0, 0, 5);
        same_bytes(eg_pow(many, 3), eg_mul(eg_mul(many, many), many), 1, 0, 0, 5);
        same_bytes(eg_pow(root, 0.5), eg_sqrt(root), 2, 0, 0, 4);
        same_bytes(eg_pow(many, -1), eg_div(1, many), 3, 0, 0, 5);
        static const double exponents[] = { 2, 3, 0.5, -1 };
        for (int i = 0; i < 4; i++) {
            const double k = exponents[i];
            eg_tape *outer = eg_tape_begin();
            eg_tape_watch(outer, x);
            eg_tape *inner = eg_tape_begin();
            eg_tape_watch(inner, x);
            eg_tensor *y = eg_pow(x, k), *dy = eg_tape_gradient(inner, y, x);
            CHECK_TENSOR(y, 1e-6, pow(0.3, k));
            CHECK_TENSOR(dy, 1e-5, k * pow(0.3, k - 1));
            CHECK_TENSOR(eg_tape_gradient(outer, dy, x), 1e-4, k * (k - 1) * pow(0.3, k - 2));
        }
    }
    CHECK_TENSOR(eg_pow(eg_constant_of(EG_INT32, EG_SHAPE(3), -3, 0, 46341), 2), 0, 9, 0, -2147479015);
    CHECK_TENSOR(eg_pow(eg_constant_of(EG_UINT8, EG_SHAPE(2), 3, 7), 3), 0, 27, 87);
    CHECK_ERROR(eg_pow(eg_constant_of(EG_INT32, EG_SHAPE(1), 4), 0.5), EG_ERROR_DTYPE, "eg_pow: ");
    CHECK_ERROR(eg_pow(eg_constant_of(EG_BOOL, EG_SHAPE(1), 1), 2), EG_ERROR_DTYPE, "eg_pow: does not take");
    CHECK_ERROR(eg_pow(NULL, 2), EG_ERROR_NULL, "eg_pow: operand 0 is NULL");
}

// Rows of up to 1,024 bytes that repeat are packed many times over (egi_rows_repeat), and columns are written out for
// each block: as with whole tensors.
static void same_values(eg_tensor *x, eg_tensor *y) { CHECK(eg_item(eg_reduce_all(eg_equal(x, y))) == 1); }
static eg_tensor *up_to_99(eg_dtype dtype, int64_t rows, int64_t columns) {
    return eg_cast(eg_random_uniform(EG_SHAPE(rows, columns), .minval = 1, .maxval = 99), dtype);
}
TEST(rows_and_columns_that_repeat) {
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
    static const int64_t widths[] = { 3, 10, 64, 100, 128, 250, 512, 1000, 1024, 1025 };
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int64_t n = 1; n < 600 || (n < 20000 && n * widths[w] < 100000); n = 9 * n + 8) {
                EG_SCOPE;
                eg_tensor *x = up_to_99(dtypes[t], n, widths[w]), *row = up_to_99(dtypes[t], 1, widths[w]),
                          *column = up_to_99(dtypes[t], n, 1), *m = eg_greater(x, 50), *rows = eg_repeat(row, n, 0),
                          *columns = eg_repeat(column, widths[w], 1);
                same_values(eg_sub(x, row), eg_sub(x, rows));
                same_values(eg_mod(row, x), eg_mod(rows, x));
                same_values(eg_less(x, row), eg_less(x, rows));
                same_values(eg_where(m, x, row), eg_where(m, x, rows));
                same_values(eg_where(eg_greater(row, 50), x, row), eg_where(eg_greater(rows, 50), x, rows));
                same_values(eg_sub(x, column), eg_sub(x, columns));
                same_values(eg_mod(column, x), eg_mod(columns, x));
                same_values(eg_maximum(column, row), eg_maximum(columns, rows));
                same_values(eg_where(eg_less(column, 50), x, row), eg_where(eg_less(columns, 50), x, rows));
                same_values(eg_where(eg_less(row, 50), column, x), eg_where(eg_less(rows, 50), columns, x));
                eg_tensor *every = eg_slice(eg_repeat(column, 2, 1), EG_SHAPE(0, 0), EG_SHAPE(n, 1));
                same_values(eg_sub(x, every), eg_sub(x, columns));
            }
}
// Two rows or columns of different lengths beside one tensor: a step is a multiple of both.
TEST(two_that_repeat) {
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_INT64, EG_UINT8 };
    static const int64_t widths[] = { 3, 17, 130, 260, 300, 520, 1030 };
    for (int k = 0; k < 3 * 3 * 7; k++) {
        const int64_t a = k / 21 + 1, b = 3, c = widths[k % 7];
        const eg_dtype dtype = dtypes[k / 7 % 3];
        const eg_shape shapes[] = { EG_SHAPE(c), EG_SHAPE(b, c), EG_SHAPE(b, 1), EG_SHAPE(a, 1, 1), EG_SHAPE(a, b, 1),
                                    EG_SHAPE(1, b, c) };
        for (int i = 0; i < 36; i++) {
            EG_SCOPE;
            const eg_shape shape = EG_SHAPE(a, b, c);
            eg_tensor *x = eg_cast(eg_random_uniform(shape, .minval = 1, .maxval = 99), dtype),
                      *low = eg_cast(eg_random_uniform(shapes[i / 6], .minval = 1, .maxval = 50), dtype),
                      *high = eg_cast(eg_random_uniform(shapes[i % 6], .minval = 50, .maxval = 99), dtype),
                      *lows = eg_add(eg_zeros(dtype, shape), low), *highs = eg_add(eg_zeros(dtype, shape), high);
            CHECK_SAME(eg_clip_by_value(x, low, high), eg_clip_by_value(x, lows, highs), 0);
        }
    }
}
// Numbers, single elements, rows and columns of small tensors are read in place or written out, whatever their place
// among the operands.
TEST(short_operands_have_the_bits_of_whole_tensors) {
    static eg_tensor *(*const rows[])(eg_tensor *, eg_tensor *) = {
        (eg_add), (eg_sub), (eg_mul), (eg_maximum), (eg_squared_difference), (eg_pow), (eg_floordiv), (eg_mod),
        (eg_less), (eg_equal), (eg_div), (eg_atan2)
    };
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
    static const int64_t sides[][2] = { { 1, 2 }, { 2, 2 }, { 3, 1 }, { 1, 5 }, { 3, 5 }, { 4, 4 }, { 3, 11 }, { 8, 8 },
                                        { 5, 13 }, { 16, 16 }, { 31, 33 }, { 40, 60 }, { 1, 4100 },
                                        { 1500, 3 }, { 700, 8 }, { 3, 1500 } };
    for (size_t d = 0; d < 5; d++)
        for (size_t s = 0; s < sizeof sides / sizeof *sides; s++) {
            EG_SCOPE;
            const int64_t r = sides[s][0], c = sides[s][1];
            eg_tensor *a = eg_cast(eg_add(eg_mul(eg_random_uniform(EG_SHAPE(r, c)), 7), 1), dtypes[d]), *b[8];
            const int forms = 8;
            for (int i = 0; i < forms; i++) {
                const eg_shape shape = i == 2 ? EG_SCALAR : i == 3 ? EG_SHAPE(1, 1) : i == 4 ? EG_SHAPE(c)
                                       : i == 5 ? EG_SHAPE(1, c) : i == 6 ? EG_SHAPE(r, 1) : EG_SHAPE(r, c);
                b[i] = i == 0 ? eg_integer(4) : i == 1 ? eg_number(5)
                       : eg_cast(eg_add(eg_mul(eg_random_uniform(shape), 7), 1), dtypes[d]);
            }
            for (size_t o = 0; o < sizeof rows / sizeof *rows; o++)
                for (int i = 0; i < forms && (o < 10 || d < 2); i++) {
                    eg_tensor *whole = eg_add(eg_zeros(dtypes[d], EG_SHAPE(r, c)), b[i]);
                    CHECK_SAME(rows[o](a, b[i]), rows[o](a, whole), 0);
                    CHECK_SAME(rows[o](b[i], a), rows[o](whole, a), 0);
                }
        }
    eg_tensor *x = eg_range(EG_FLOAT32, 0, 12, 1), *low = eg_constant(EG_SHAPE(1), 3);
    CHECK_TENSOR(eg_clip_by_value(x, low, 5), 0, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5, 5);
    CHECK_TENSOR(eg_clip_by_value(eg_reshape(x, EG_SHAPE(3, 4)), eg_constant(EG_SHAPE(3, 1), 1, 5, 9),
                                  eg_constant(EG_SHAPE(4), 9, 9, 9, 10)), 0, 1, 1, 2, 3, 5, 5, 6, 7, 9, 9, 9, 10);
    // shapes that only look like a row's or a column's
    CHECK_SHAPE(eg_add(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)), eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1, 1))), 1, 2, 3);
    CHECK_SHAPE(eg_add(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 1)), eg_zeros(EG_FLOAT32, EG_SHAPE(2))), 3, 2);
    CHECK_TENSOR(eg_add(eg_zeros(EG_INT32, EG_SHAPE(2, 2, 2)), eg_constant_of(EG_INT32, EG_SHAPE(2, 1, 2), 1, 2, 3, 4)),
                 0, 1, 2, 1, 2, 3, 4, 3, 4);
    CHECK_ERROR(eg_add(eg_zeros(EG_FLOAT32, EG_SHAPE(4)), eg_zeros(EG_FLOAT32, EG_SHAPE(2))), EG_ERROR_SHAPE, "eg_add");
    CHECK_ERROR(eg_floordiv(eg_ones(EG_INT32, EG_SHAPE(2, 2)), eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 0)),
                EG_ERROR_MATH, "integer division by zero");
    CHECK_ERROR(eg_add(eg_ones(EG_UINT8, EG_SHAPE(4)), 256), EG_ERROR_DTYPE, "range");
    CHECK_ERROR(eg_add(eg_ones(EG_INT32, EG_SHAPE(4)), 0.5), EG_ERROR_DTYPE, "does not fit");
}
