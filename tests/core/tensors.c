// Making, reading and converting tensors, random numbers, devices: chapters 3, 18, 19 and 35.
// Printing is in printing.c, the generator's known answers are in ops_rows.c.
#ifndef EAGER_BACKEND
#define EAGER_BACKEND
#endif
#include "test.h"

// ---- making

TEST(constants_scalars_and_data) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    CHECK_SHAPE(x, 2, 3);
    CHECK_DTYPE(x, EG_FLOAT32);
    CHECK_TENSOR(x, 0, 1, 2, 3, 4, 5, 6);
    CHECK_INT(eg_size(x), 6);
    CHECK_INT(eg_dim(x, -1), 3);
    CHECK_INT(eg_dim(x, 0), 2);
    CHECK_STR(eg_name_of(x), "constant");
    CHECK_STR(eg_device_of(x), test_device());
    CHECK_INT(eg_rank(eg_scalar(3)), 0);
    CHECK_NEAR(eg_item(eg_scalar_of(EG_FLOAT64, 0.1)), 0.1, 0);
    CHECK_NEAR(eg_item(eg_scalar(0.1)), (double)0.1f, 0);
    CHECK_INT(eg_item_int(eg_scalar_of(EG_INT64, 9007199254740992.0)), 9007199254740992);
    const int64_t big[] = {INT64_MAX, INT64_MIN, 9007199254740993};
    eg_tensor *y = eg_from_data(EG_INT64, EG_SHAPE(3), big);
    for (int i = 0; i < 3; i++) CHECK_INT(eg_item_int(eg_index(y, i)), big[i]);
    CHECK_INT(((const int64_t *)eg_data(y))[2], big[2]);
    const unsigned char bytes[] = {0, 1, 255};
    CHECK_TENSOR(eg_from_data(EG_UINT8, EG_SHAPE(3), bytes), 0, 0, 1, 255);
    CHECK_TENSOR(eg_constant_of(EG_BOOL, EG_SHAPE(3), 0, 1, 7), 0, 0, 1, 1);
    CHECK_ERROR(eg_constant(EG_SHAPE(2, 2), 1, 2, 3), EG_ERROR_SHAPE, "needs 4 values, but 3 are given");
    CHECK_ERROR(eg_constant(EG_SHAPE(-1), 1), EG_ERROR_SHAPE, "negative");
    CHECK_ERROR(eg_constant_of(EG_INT32, EG_SHAPE(1), 0.5), EG_ERROR_DTYPE, "0.5 does not fit");
    CHECK_ERROR(eg_constant_of(EG_UINT8, EG_SHAPE(1), 256), EG_ERROR_DTYPE, "uint8");
    CHECK_ERROR(eg_constant_of(EG_INT32, EG_SHAPE(1), 2147483648.0), EG_ERROR_DTYPE, "int32");
    CHECK_ERROR(eg_constant_of(EG_INT64, EG_SHAPE(1), 9223372036854775808.0), EG_ERROR_DTYPE, "int64");
    CHECK_ERROR(eg_constant_of(EG_INT64, EG_SHAPE(1), (double)NAN), EG_ERROR_DTYPE, "int64");
    CHECK_ERROR(eg_zeros((eg_dtype)8, EG_SHAPE(1)), EG_ERROR_DTYPE, "8 is no dtype");
    CHECK_ERROR(eg_zeros(EG_NO_DTYPE, EG_SHAPE(1)), EG_ERROR_DTYPE, "no dtype");
    CHECK_ERROR(eg_item(x), EG_ERROR_SHAPE, "one element");
    CHECK_ERROR(eg_dim(x, 2), EG_ERROR_ARGUMENT, "out of range for rank 2");
    CHECK_ERROR(eg_dim(x, -3), EG_ERROR_ARGUMENT, "eg_dim");
}

TEST(filled_and_ruled) {
    CHECK_TENSOR(eg_zeros(EG_INT32, EG_SHAPE(2)), 0, 0, 0);
    CHECK_TENSOR(eg_ones(EG_UINT8, EG_SHAPE(1, 2)), 0, 1, 1);
    CHECK_TENSOR(eg_full(EG_FLOAT64, EG_SHAPE(2), -0.1), 0, -0.1, -0.1);
    CHECK_TENSOR(eg_full(EG_FLOAT16, EG_SHAPE(2), 1.5), 0, 1.5, 1.5);
    CHECK_TENSOR(eg_full(EG_INT64, EG_SHAPE(1), -4503599627370497.0), 0, -4503599627370497.0);
    CHECK_ERROR(eg_full(EG_INT32, EG_SHAPE(1), 1e10), EG_ERROR_DTYPE, "eg_full");
    CHECK(signbit(eg_item(eg_full(EG_FLOAT32, EG_SCALAR, -0.0))) != 0);
    eg_tensor *like = eg_zeros(EG_INT64, EG_SHAPE(2, 0, 3));
    CHECK_SHAPE(eg_ones_like(like), 2, 0, 3);
    CHECK_DTYPE(eg_zeros_like(like), EG_INT64);
    CHECK_TENSOR(eg_full_like(eg_transpose(eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2))), 4), 0, 4, 4);
    CHECK_ERROR(eg_full_like(like, 0.5), EG_ERROR_DTYPE, "eg_full_like");
    CHECK_TENSOR(eg_eye(EG_FLOAT32, 2, 3), 0, 1, 0, 0, 0, 1, 0);
    CHECK_TENSOR(eg_eye(EG_BOOL, 2, 1), 0, 1, 0);
    CHECK_INT(eg_size(eg_eye(EG_FLOAT32, 3, 0)), 0);
    CHECK_ERROR(eg_eye(EG_FLOAT32, -1, 2), EG_ERROR_SHAPE, "eg_eye");
    CHECK_TENSOR(eg_range(EG_INT32, 0, 5, 2), 0, 0, 2, 4);
    CHECK_TENSOR(eg_range(EG_FLOAT64, 1, 0, -0.25), 0, 1, 0.75, 0.5, 0.25);
    CHECK_TENSOR(eg_range(EG_UINT8, 3, 0, -1), 0, 3, 2, 1);
    CHECK_INT(eg_size(eg_range(EG_INT64, 5, 5, 1)), 0);
    CHECK_INT(eg_size(eg_range(EG_INT64, 5, 0, 1)), 0);
    CHECK_ERROR(eg_range(EG_INT64, 0, 5, 0), EG_ERROR_ARGUMENT, "eg_range");
    CHECK_ERROR(eg_range(EG_INT64, 0, (double)INFINITY, 1), EG_ERROR_ARGUMENT, "eg_range");
    CHECK_ERROR(eg_range(EG_INT64, 0, 5, (double)NAN), EG_ERROR_ARGUMENT, "eg_range");
    CHECK_ERROR(eg_range(EG_INT32, 0.5, 5, 1), EG_ERROR_DTYPE, "eg_range");
    CHECK_ERROR(eg_range(EG_UINT8, 250, 300, 10), EG_ERROR_DTYPE, "eg_range");
    CHECK_TENSOR(eg_linspace(EG_FLOAT64, 0, 1, 5), 0, 0, 0.25, 0.5, 0.75, 1);
    CHECK_TENSOR(eg_linspace(EG_FLOAT32, 3, 7, 1), 0, 3);
    CHECK_INT(eg_size(eg_linspace(EG_FLOAT32, 3, 7, 0)), 0);
    CHECK_NEAR(eg_item(eg_index(eg_linspace(EG_FLOAT64, 0, 0.7, 8), -1)), 0.7, 0);
    CHECK_TENSOR(eg_linspace(EG_FLOAT64, -1e308, 1e308, 3), 0, -1e308, 0, 1e308);  // whose difference is no float64
    CHECK_TENSOR(eg_div(eg_linspace(EG_FLOAT64, 1.6e308, -1.6e308, 5), 1e308), 1e-15, 1.6, .8, 0, -.8, -1.6);
    CHECK_TENSOR(eg_div(eg_linspace(EG_FLOAT32, -3e38, 3e38, 3), 1e38), 1e-6, -3, 0, 3);
    CHECK_ERROR(eg_linspace(EG_FLOAT64, 0, 1, -1), EG_ERROR_SHAPE, "negative");
    CHECK_ERROR(eg_linspace(EG_INT32, 0, 1, 2), EG_ERROR_DTYPE, "eg_linspace");
}

// What a plain number can be in a tensor's dtype, and what a value can be in a constructor's: each bound from both
// sides.
TEST(numbers_at_the_ends_of_dtypes) {
    eg_tensor *i = eg_ones(EG_INT32, EG_SHAPE(1)), *u = eg_ones(EG_UINT8, EG_SHAPE(1)),
              *b = eg_ones(EG_BOOL, EG_SHAPE(1)), *l = eg_ones(EG_INT64, EG_SHAPE(1));
    CHECK_TENSOR(eg_minimum(i, -2147483648.0), 0, -2147483648.0);
    CHECK_ERROR(eg_minimum(i, -2147483649.0), EG_ERROR_DTYPE, "is out of the range of dtype int32");
    CHECK_TENSOR(eg_maximum(u, 255), 0, 255);
    CHECK_TENSOR(eg_equal(b, 1), 0, 1);
    CHECK_TENSOR(eg_equal(b, 0), 0, 0);
    CHECK_ERROR(eg_equal(b, 2), EG_ERROR_DTYPE, "2 is out of the range of dtype bool");
    CHECK_INT(eg_item_int(eg_minimum(l, INT64_MIN)), INT64_MIN);
    CHECK_TENSOR(eg_minimum(l, -9223372036854775808.0), 0, -9223372036854775808.0);
    CHECK_ERROR(eg_minimum(l, -1e19), EG_ERROR_DTYPE, "-1e+19 is out of the range of dtype int64");
    CHECK_NEAR(eg_item(eg_add(eg_scalar_of(EG_FLOAT64, 0), 18446744073709551615u)), 18446744073709551616.0, 0);
    CHECK_ERROR(eg_add(l, 18446744073709551615u), EG_ERROR_DTYPE, "is out of the range of dtype int64");
    CHECK_INT(eg_item_int(eg_number(2.75)), 2);
    CHECK_INT(eg_item_int(eg_integer(INT64_MAX)), INT64_MAX);
    CHECK_NEAR(eg_item(eg_integer(3)), 3, 0);
    CHECK_ERROR(eg_item(NULL), EG_ERROR_NULL, "eg_item");
    CHECK_ERROR(eg_item_int(NULL), EG_ERROR_NULL, "eg_item_int");
    CHECK_ERROR(eg_full(EG_FLOAT16, EG_SHAPE(1), 65520), EG_ERROR_DTYPE, "65520 does not fit dtype float16");
    CHECK_ERROR(eg_scalar_of(EG_BFLOAT16, 3.4e38), EG_ERROR_DTYPE, "3.4e+38 does not fit dtype bfloat16");
    CHECK(eg_item(eg_cast(eg_scalar_of(EG_BFLOAT16, 3.396e38), EG_FLOAT64)) < HUGE_VAL);
    CHECK_ERROR(eg_full(EG_FLOAT32, EG_SHAPE(1), -1e39), EG_ERROR_DTYPE, "does not fit dtype float32");
    CHECK_TENSOR(eg_full(EG_FLOAT16, EG_SHAPE(1), (double)INFINITY), 0, (double)INFINITY);
    CHECK_TENSOR(eg_full(EG_FLOAT64, EG_SHAPE(1), -1e308), 0, -1e308);
    CHECK_ERROR(eg_full(EG_INT32, EG_SHAPE(1), (double)INFINITY), EG_ERROR_DTYPE, "does not fit dtype int32");
    CHECK_ERROR(eg_full(EG_UINT8, EG_SHAPE(1), -1), EG_ERROR_DTYPE, "-1 does not fit dtype uint8");
    CHECK_ERROR(eg_range((eg_dtype)77, 0, 2, 1), EG_ERROR_DTYPE, "eg_range: 77 is no dtype");
    CHECK_ERROR(eg_range(EG_UINT8, -1, 2, 1), EG_ERROR_DTYPE, "eg_range: the value -1 does not fit dtype uint8");
    CHECK_ERROR(eg_range(EG_INT32, 0, 2, .5), EG_ERROR_DTYPE, "eg_range: the value 0.5 does not fit dtype int32");
    CHECK_ERROR(eg_range(EG_UINT8, 5, 0, -.5), EG_ERROR_DTYPE, "eg_range: the value 0.5 does not fit dtype uint8");
    CHECK_ERROR(eg_linspace((eg_dtype)77, 0, 1, 2), EG_ERROR_DTYPE, "77 is no dtype");
    char text[EG_SHAPE_TEXT];
    eg_shape nine = {9, {1, 2, 3, 4, 5, 6, 7, 8}};
    CHECK_STR(eg_shape_text(nine, text), "(1, 2, 3, 4, 5, 6, 7, 8)");
}
static int deleted;
static void count_deleted(void *data, void *user) { (void)data; (void)user; deleted++; }
TEST(data_that_must_be_copied_is_not_borrowed) {
    static const unsigned char bools[4] = {0, 1, 2, 255};
    static const double aligned[3] = {1, 2, 3};
    char bytes[sizeof aligned + 1];
    memcpy(bytes + 1, aligned, sizeof aligned);
    deleted = 0;
    CHECK_TENSOR(eg_wrap_data(EG_BOOL, EG_SHAPE(4), bools, count_deleted, NULL), 0, 0, 1, 1, 1);
    CHECK_INT(deleted, 1);
    CHECK_TENSOR(eg_wrap_data(EG_FLOAT64, EG_SHAPE(3), (void *)(bytes + 1), count_deleted, NULL), 0, 1, 2, 3);
    CHECK_INT(deleted, 2);
    CHECK_TENSOR(eg_wrap_data(EG_FLOAT64, EG_SHAPE(3), (void *)(bytes + 1), NULL, NULL), 0, 1, 2, 3);
    eg_scope scope = eg_scope_begin();
    CHECK_TENSOR(eg_wrap_data(EG_BOOL, EG_SHAPE(2), bools, count_deleted, NULL), 0, 0, 1);
    if (test_on_host) CHECK_INT(deleted, 2);
    eg_scope_end(scope);
    CHECK_INT(deleted, 3);
    CHECK_ERROR(eg_wrap_data(EG_BOOL, EG_SHAPE(2), NULL, count_deleted, NULL), EG_ERROR_NULL,
                "eg_wrap_data: data is NULL");
    CHECK_INT(deleted, 3);
}

// Every constructor and reader with every dtype: the values survive the way in and out.
TEST(every_dtype) {
    const char *names[] = {"float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16"};
    const int sizes[] = {4, 8, 4, 8, 1, 1, 2, 2};
    for (int d = 0; d < 8; d++) {
        EG_SCOPE;
        eg_dtype t = (eg_dtype)d;
        CHECK_STR(eg_dtype_name(t), names[d]);
        CHECK_INT(eg_dtype_size(t), sizes[d]);
        eg_tensor *x = eg_constant_of(t, EG_SHAPE(2, 2), 0, 1, 1, 0), *y = eg_transpose(eg_eye(t, 2, 3));
        CHECK_TENSOR(x, 0, 0, 1, 1, 0);
        CHECK_TENSOR(eg_reshape(y, EG_SHAPE(6)), 0, 1, 0, 0, 1, 0, 0);
        CHECK_INT(eg_item_int(eg_index(eg_index(x, 0), 1)), 1);
        CHECK_TENSOR(eg_ones(t, EG_SHAPE(2)), 0, 1, 1);
        eg_tensor *copy = eg_from_data(t, EG_SHAPE(2, 2), eg_data(x)),
                  *wrapped = eg_wrap_data(t, EG_SHAPE(4), eg_data(x), NULL, NULL);
        CHECK_SAME(copy, x, 0);
        CHECK_TENSOR(wrapped, 0, 0, 1, 1, 0);
        CHECK_SAME(eg_concat(EG_TENSORS(x, x), 0), eg_tile(x, EG_SHAPE(2, 1)), 0);
        CHECK_SAME(eg_to(x, test_device()), x, 0);
        eg_tensor *v = eg_variable(x, names[d]);
        CHECK_STR(eg_name_of(v), names[d]);
        CHECK_SAME(eg_read(v), x, 0);
        eg_release(v);
    }
    CHECK_STR(eg_dtype_name(EG_NO_DTYPE), "?");
    CHECK_INT(eg_dtype_size((eg_dtype)99), 0);
}

TEST(zero_sizes_and_ranks) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2, 1, 2, 1, 2, 1, 2));
    CHECK_INT(eg_rank(x), 8);
    CHECK_INT(eg_size(eg_add(x, 1)), 16);
    CHECK_ERROR(eg_expand_dims(x, 0), EG_ERROR_SHAPE, "most axes");
    eg_shape nine = {9, {1, 1, 1, 1, 1, 1, 1, 1}}, minus = {-1, {0}};
    CHECK_ERROR(eg_zeros(EG_FLOAT32, nine), EG_ERROR_SHAPE, "rank 9");
    CHECK_ERROR(eg_zeros(EG_FLOAT32, minus), EG_ERROR_SHAPE, "rank -1");
    CHECK_ERROR(eg_reshape(x, nine), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_stack(EG_TENSORS(x, x), 0), EG_ERROR_SHAPE, "eg_");
    eg_tensor *none = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 0));
    CHECK_INT(eg_size(none), 0);
    CHECK_INT(eg_size(eg_add(none, 1)), 0);
    CHECK_INT(eg_size(eg_add(none, eg_ones(EG_FLOAT32, EG_SHAPE(3, 1)))), 0);
    CHECK_TENSOR(eg_reduce_sum(none), 0, 0);
    CHECK_TENSOR(eg_matmul(none, eg_transpose(none)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_INT(eg_size(eg_from_data(EG_INT32, EG_SHAPE(0), NULL)), 0);
    CHECK(eg_data(none) != NULL);
    CHECK_INT(eg_size(eg_cast(none, EG_INT64)), 0);
    CHECK_SHAPE(eg_concat(EG_TENSORS(none, eg_ones(EG_FLOAT32, EG_SHAPE(3, 2)), none), 1), 3, 2);
    CHECK_SHAPE(eg_reshape(none, EG_SHAPE(0, 7)), 0, 7);
    CHECK_ERROR(eg_item(none), EG_ERROR_SHAPE, "one element");
}

// No product of dimensions overflows without being told, a zero among them or not.
TEST(dimensions_that_overflow) {
    const int64_t huge = (int64_t)1 << 40;
    CHECK_ERROR(eg_zeros(EG_FLOAT32, EG_SHAPE(huge, huge)), EG_ERROR_SHAPE, "64 bits");
    CHECK_ERROR(eg_zeros(EG_FLOAT32, EG_SHAPE(huge, huge, 0)), EG_ERROR_SHAPE, "64 bits");
    CHECK_ERROR(eg_constant(EG_SHAPE(0, huge, huge), 1), EG_ERROR_SHAPE, "64 bits");
    CHECK_ERROR(eg_from_data(EG_UINT8, EG_SHAPE(INT64_MAX, 2), "x"), EG_ERROR_SHAPE, "64 bits");
    CHECK_ERROR(eg_wrap_data(EG_UINT8, EG_SHAPE(INT64_MAX, 2), "x", NULL, NULL), EG_ERROR_SHAPE, "64 bits");
    CHECK_ERROR(eg_eye(EG_FLOAT32, huge, huge), EG_ERROR_SHAPE, "64 bits");
    CHECK_ERROR(eg_random_normal(EG_SHAPE(huge, huge)), EG_ERROR_SHAPE, "64 bits");
    eg_tensor *none = eg_zeros(EG_FLOAT32, EG_SHAPE(huge, 0)), *one = eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1));
    CHECK_INT(eg_size(none), 0);
    CHECK_ERROR(eg_reshape(none, EG_SHAPE(0, huge, huge)), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_broadcast_to(one, EG_SHAPE(huge, huge)), EG_ERROR_SHAPE, "64 bits");
    CHECK_ERROR(eg_tile(one, EG_SHAPE(huge, huge)), EG_ERROR_SHAPE, "eg_tile");
    CHECK_ERROR(eg_repeat(none, huge, 0), EG_ERROR_ARGUMENT, "eg_repeat");
    CHECK_ERROR(eg_pad(one, EG_PADS(INT64_MAX, INT64_MAX, 0, 0)), EG_ERROR_SHAPE, "eg_pad");
    CHECK_ERROR(eg_one_hot(eg_zeros(EG_INT32, EG_SHAPE(4)), INT64_MAX / 2), EG_ERROR_SHAPE, "eg_one_hot");
    CHECK_ERROR(eg_add(eg_broadcast_to(one, EG_SHAPE(huge, 1)), eg_broadcast_to(one, EG_SHAPE(1, huge))),
                EG_ERROR_SHAPE, "eg_add");
    CHECK_ERROR(eg_matmul(eg_broadcast_to(one, EG_SHAPE(huge, 1)), eg_broadcast_to(one, EG_SHAPE(1, huge))),
                EG_ERROR_SHAPE, "eg_matmul");
    CHECK_ERROR(eg_scatter_nd(eg_zeros(EG_INT32, EG_SHAPE(1, 2)), one, EG_SHAPE(huge, huge)), EG_ERROR_SHAPE,
                "eg_scatter_nd");
}

TEST(reading_views) {
    eg_tensor *x = eg_range(EG_INT32, 0, 24, 1), *y = eg_reshape(x, EG_SHAPE(2, 3, 4)),
              *z = eg_transpose(y, .perm = EG_AXES(2, 0, 1));
    const int32_t *p = (const int32_t *)eg_data(z), *q = (const int32_t *)eg_data(y);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 3; k++) CHECK_INT(p[(i * 2 + j) * 3 + k], q[(j * 3 + k) * 4 + i]);
    CHECK(eg_data(z) == (const void *)p);                    // the copy is made once
    if (test_on_host) CHECK(eg_data(x) == (const void *)q);
    CHECK_INT(eg_item_int(eg_index(eg_index(eg_index(z, 3), 1), 2)), 23);
    CHECK_TENSOR(eg_index(eg_reverse(x, EG_AXES(0)), 1), 0, 22);
    char text[EG_SHAPE_TEXT];
    CHECK_STR(eg_shape_text(eg_shape_of(z), text), "(4, 2, 3)");
    CHECK_STR(eg_shape_text(EG_SHAPE(5), text), "(5,)");
    CHECK_STR(eg_shape_text(EG_SCALAR, text), "()");
    CHECK_INT(eg_item_int(eg_number(-2.75)), -2);
    CHECK_INT(eg_item_int(eg_integer(INT64_MAX)), INT64_MAX);
    CHECK_NEAR(eg_item(eg_number(2.75)), 2.75, 0);
    CHECK_NEAR(*(const float *)eg_data(eg_number(2.75)), 2.75, 0);
    CHECK_INT(eg_item_int(eg_scalar(1e30)), INT64_MAX);
    CHECK_INT(eg_item_int(eg_scalar((double)NAN)), 0);
}

// ---- conversions

// float16 the slow way: sign, 5 bits of exponent, 10 of fraction.
static double slow_half(unsigned h, int fraction, int bias) {
    int exponent = (int)(h >> fraction) & (2 * bias + 1), bits = (int)h & ((1 << fraction) - 1);
    double v = exponent == 2 * bias + 1 ? (bits ? (double)NAN : (double)INFINITY)
               : exponent ? ldexp(1 + ldexp(bits, -fraction), exponent - bias)
               : ldexp(bits, 1 - bias - fraction);
    return h >> 15 ? -v : v;
}
TEST(halves_all_65536) {
    static uint16_t all[65536];
    static double want[65536];
    for (unsigned i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    for (int b = 0; b < 2; b++) {
        EG_SCOPE;
        eg_dtype t = b ? EG_BFLOAT16 : EG_FLOAT16;
        for (unsigned i = 0; i < 65536; i++) want[i] = b ? slow_half(i, 7, 127) : slow_half(i, 10, 15);
        eg_tensor *x = eg_from_data(t, EG_SHAPE(65536), all), *f = eg_cast(x, EG_FLOAT32), *d = eg_cast(x, EG_FLOAT64);
        CHECK_VALUES(f, 0, want, 65536);
        CHECK_VALUES(d, 0, want, 65536);
        eg_tensor *back[2] = {eg_cast(f, t), eg_cast(d, t)};
        for (int k = 0; k < 2; k++) {
            const uint16_t *h = (const uint16_t *)eg_data(back[k]);
            int wrong = 0;
            for (unsigned i = 0; i < 65536; i++)
                wrong += isnan(want[i]) ? !isnan(b ? slow_half(h[i], 7, 127) : slow_half(h[i], 10, 15)) : h[i] != i;
            CHECK_INT(wrong, 0);
        }
    }
}
// To the nearest, ties to even, once: all values between neighbours, from float64 and float32 alike.
TEST(halves_are_rounded_once) {
    for (int b = 0; b < 2; b++) {
        static double from[40000];
        static float single[40000];
        int n = 0, fraction = b ? 7 : 10, bias = b ? 127 : 15, wrong = 0;
        unsigned top = (unsigned)(2 * bias + 1) << fraction;
        for (unsigned h = 0; h + 1 < top && n + 5 < 40000; h += h < 300 || h + 300 > top ? 1 : 7) {
            double low = slow_half(h, fraction, bias), high = slow_half(h + 1, fraction, bias),
                   middle = (low + high) / 2;
            from[n++] = middle;
            from[n++] = nextafter(middle, high);             // closer than a float32 can tell
            from[n++] = nextafter(middle, low);
            from[n++] = -(double)nextafterf((float)middle, (float)high);
        }
        EG_SCOPE;
        for (int i = 0; i < n; i++) single[i] = (float)from[i];
        for (int k = 0; k < 2; k++) {
            eg_tensor *x = k ? eg_from_data(EG_FLOAT64, EG_SHAPE(n),
                                            from) : eg_from_data(EG_FLOAT32, EG_SHAPE(n), single);
            const uint16_t *h = (const uint16_t *)eg_data(eg_cast(x, b ? EG_BFLOAT16 : EG_FLOAT16));
            for (int i = 0; i < n; i++) {
                double v = fabs(k ? from[i] : (double)single[i]);
                unsigned at = h[i] & 0x7fffu;
                double here = slow_half(at, fraction, bias),
                       below = at ? fabs(v - slow_half(at - 1, fraction, bias)) : HUGE_VAL,
                       above = fabs(v - slow_half(at + 1, fraction, bias));
                double distance = fabs(v - here);
                wrong += (h[i] >> 15 != 0) != (from[i] < 0) || distance > below || distance > above ||
                ((distance == below || distance == above) && at % 2);
            }
        }
        CHECK_INT(wrong, 0);
        double most = b ? ldexp(255, 120) : 65504, over = b ? ldexp(511, 119) : 65520;
        CHECK_TENSOR(eg_cast(eg_constant_of(EG_FLOAT64, EG_SHAPE(4), most, nextafter(over, 0), over, -1e300),
                             b ? EG_BFLOAT16 : EG_FLOAT16), 0, most, most, (double)INFINITY, -(double)INFINITY);
    }
}

TEST(casts_saturate_and_wrap) {
    eg_tensor *x = eg_constant_of(EG_FLOAT64, EG_SHAPE(9), -1.9, 1.9, 300, -300, 3e9, -3e9, 1e30, -(double)INFINITY,
                                  (double)NAN);
    CHECK_TENSOR(eg_cast(x, EG_UINT8), 0, 0, 1, 255, 0, 255, 0, 255, 0, 0);
    CHECK_TENSOR(eg_cast(x, EG_INT32), 0, -1, 1, 300, -300, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0);
    eg_tensor *whole = eg_cast(eg_cast(x, EG_FLOAT32), EG_INT64);
    CHECK_INT(eg_item_int(eg_index(whole, 6)), INT64_MAX);
    CHECK_INT(eg_item_int(eg_index(whole, 7)), INT64_MIN);
    CHECK_INT(eg_item_int(eg_index(whole, 8)), 0);
    CHECK_TENSOR(eg_cast(x, EG_BOOL), 0, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    CHECK_TENSOR(eg_cast(eg_constant(EG_SHAPE(3), 0, -0.0, 1e-30), EG_BOOL), 0, 0, 0, 1);
    const int64_t big[] = {INT64_MAX, INT64_MIN, ((int64_t)1 << 32) + 5, -3, 9007199254740993, 16777217,
                           ((int64_t)1 << 54) + ((int64_t)1 << 30) + 1};
    eg_tensor *y = eg_from_data(EG_INT64, EG_SHAPE(7), big);
    CHECK_TENSOR(eg_cast(y, EG_INT32), 0, -1, 0, 5, -3, 1, 16777217, (1 << 30) + 1);
    CHECK_TENSOR(eg_cast(y, EG_UINT8), 0, 255, 0, 5, 253, 1, 1, 1);
    CHECK_TENSOR(eg_cast(y, EG_BOOL), 0, 1, 1, 1, 1, 1, 1, 1);
    CHECK_TENSOR(eg_cast(y, EG_FLOAT64), 0, 9223372036854775808.0, -9223372036854775808.0, 4294967301.0, -3,
                 9007199254740992.0, 16777217, 18014399583223808.0);
    if (test_share == 1)  // valgrind takes the way by double, and rounds the last one twice
        CHECK_TENSOR(eg_cast(y, EG_FLOAT32), 0, 9223372036854775808.0, -9223372036854775808.0, 4294967296.0, -3,
                     9007199254740992.0, 16777216, 18014400656965632.0);
    CHECK_TENSOR(eg_cast(eg_constant_of(EG_INT32, EG_SHAPE(3), -1, 256, 70000), EG_UINT8), 0, 255, 0, 112);
    CHECK_TENSOR(eg_cast(eg_constant_of(EG_BOOL, EG_SHAPE(2), 0, 1), EG_FLOAT16), 0, 0, 1);
    CHECK_TENSOR(eg_cast(eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 1e300, 1e-300), EG_FLOAT32), 0, (double)INFINITY, 0);
    eg_tensor *f = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
    CHECK_TENSOR(eg_cast(eg_transpose(f), EG_INT64), 0, 1, 3, 2, 4);
    CHECK_TENSOR(eg_cast(eg_broadcast_to(eg_scalar(2.5), EG_SHAPE(3)), EG_INT32), 0, 2, 2, 2);
    CHECK_ERROR(eg_cast(f, (eg_dtype)12), EG_ERROR_DTYPE, "eg_cast");
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, f);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_mul(eg_cast(f, EG_FLOAT64), 3), f), 0, 3, 3, 3, 3);
    CHECK_ERROR(eg_add(eg_cast(f, EG_FLOAT16), 1), EG_ERROR_DTYPE, "it is for storage");
}

// ---- random numbers

TEST(draws_are_blocks_of_philox) {                            // counter 0, key 0; ops_rows.c has the other answers
    eg_seed(0);
    CHECK_TENSOR(eg_random_uniform(EG_SHAPE(4)), 0, 0x6627e8 / 16777216.0, 0xe169c5 / 16777216.0, 0xbc57ac / 16777216.0,
                 0x9b00db / 16777216.0);
    eg_seed(0);
    CHECK_INT(eg_item_int(eg_index(eg_random_integers(EG_SHAPE(2), 0, (int64_t)1 << 62), 0)),
              (int64_t)(0xe169c58d6627e8d5u >> 2));
}

TEST(a_seed_gives_the_same_bits) {
    for (int round = 0; round < 2; round++) {
        eg_seed(42);
        eg_tensor *all[] = {eg_random_uniform(EG_SHAPE(5)), eg_random_normal(EG_SHAPE(3, 3)),
                            eg_random_truncated_normal(EG_SHAPE(4)), eg_random_integers(EG_SHAPE(6), -3, 9),
                            eg_random_bernoulli(EG_SHAPE(5)), eg_random_permutation(7),
                            eg_random_uniform(EG_SHAPE(3), .dtype = EG_FLOAT64),
                            eg_random_normal(EG_SHAPE(2), .dtype = EG_FLOAT64)};
        eg_random_state after = eg_random_get_state();
        CHECK_INT(after.seed, 42);
        CHECK_INT(after.counter, 2 + 3 + 1 + 3 + 2 + 4 + 2 + 1);  // blocks: four numbers each of 32 bits, or two of 64
        eg_seed(42);
        CHECK_SAME(eg_random_uniform(EG_SHAPE(5)), all[0], 0);
        eg_random_state state = eg_random_get_state();
        CHECK_SAME(eg_random_normal(EG_SHAPE(3, 3)), all[1], 0);
        eg_random_set_state(state);
        CHECK_SAME(eg_reshape(eg_random_normal(EG_SHAPE(9)), EG_SHAPE(3, 3)), all[1], 0);
        CHECK_SAME(eg_random_truncated_normal(EG_SHAPE(4)), all[2], 0);
        CHECK_SAME(eg_random_integers(EG_SHAPE(6), -3, 9), all[3], 0);
        CHECK_SAME(eg_random_bernoulli(EG_SHAPE(5)), all[4], 0);
        CHECK_SAME(eg_random_permutation(7), all[5], 0);
        CHECK_SAME(eg_random_uniform(EG_SHAPE(3), .dtype = EG_FLOAT64), all[6], 0);
        CHECK_SAME(eg_random_normal(EG_SHAPE(2), .dtype = EG_FLOAT64), all[7], 0);
        eg_seed(43);
        CHECK(!eg_assert_equal(eg_random_uniform(EG_SHAPE(5)), all[0]));
        eg_error_clear();
    }
    // A draw does not depend on what is drawn along with it: the first numbers are the same.
    eg_seed(7);
    eg_tensor *few = eg_random_normal(EG_SHAPE(5));
    eg_seed(7);
    CHECK_SAME(eg_slice(eg_random_normal(EG_SHAPE(1000)), EG_SHAPE(0), EG_SHAPE(5)), few, 0);
    // The bits of today, so that tomorrow's, and those of other compilers, are the same.
    const eg_random_state start = {2024, 0};
    eg_random_set_state(start);
    CHECK_TENSOR(eg_random_integers(EG_SHAPE(2), 0, 1000000000), 0, 268563287, 83596025);
    eg_random_set_state(start);
    CHECK_TENSOR(eg_random_normal(EG_SHAPE(4)), 0, 0x1.3eef36p-1, 0x1.939774p-1, 0x1.5cb104p-3, -0x1.734294p-5);
    eg_random_set_state(start);
    CHECK_TENSOR(eg_random_normal(EG_SHAPE(2), .dtype = EG_FLOAT64), 0, 0x1.9124666908d73p+0, -0x1.ab1b0863fcd76p-2);
    eg_random_set_state(start);
    CHECK_TENSOR(eg_random_permutation(6), 0, 5, 3, 0, 2, 1, 4);
}

static void moments(eg_tensor *x, double *mean, double *deviation, double *least, double *most) {
    x = eg_cast(x, EG_FLOAT64);
    *mean = eg_item(eg_reduce_mean(x));
    *deviation = eg_item(eg_reduce_std(x));
    *least = eg_item(eg_reduce_min(x));
    *most = eg_item(eg_reduce_max(x));
}
TEST(distributions) {
    enum { N = 100000 };
    double mean, deviation, least, most;
    eg_seed(1);
    for (int d = 0; d < 2; d++) {
        eg_dtype t = d ? EG_FLOAT64 : EG_FLOAT32;
        moments(eg_random_normal(EG_SHAPE(N), .dtype = t, .mean = 3, .stddev = 2), &mean, &deviation, &least, &most);
        CHECK_NEAR(mean, 3, 0.01);
        CHECK_NEAR(deviation, 2, 0.01);
        CHECK(least < -4 && most > 10);
        moments(eg_random_truncated_normal(EG_SHAPE(N), .dtype = t, .stddev = 2), &mean, &deviation, &least, &most);
        CHECK_NEAR(mean, 0, 0.02);
        CHECK_NEAR(deviation, 2 * 0.87962566, 0.01);
        CHECK(least >= -4 && least < -3.99 && most <= 4 && most > 3.99);
        moments(eg_random_uniform(EG_SHAPE(N), .dtype = t, .minval = -1, .maxval = 3), &mean, &deviation, &least,
                &most);
        CHECK_NEAR(mean, 1, 0.01);
        CHECK_NEAR(deviation, 4 / sqrt(12), 0.01);
        CHECK(least >= -1 && least < -0.99 && most < 3 && most > 2.99);
        CHECK_INT(eg_dtype_of(eg_random_uniform(EG_SHAPE(1), .dtype = t)), t);
    }
    moments(eg_random_bernoulli(EG_SHAPE(N), .probability = 0.2), &mean, &deviation, &least, &most);
    CHECK_NEAR(mean, 0.2, 0.01);
    CHECK_NEAR(eg_item(eg_reduce_mean(eg_cast(eg_random_bernoulli(EG_SHAPE(N)), EG_FLOAT32))), 0.5, 0.01);
    CHECK_TENSOR(eg_random_bernoulli(EG_SHAPE(3), .probability = EG_ZERO), 0, 0, 0, 0);
    CHECK_TENSOR(eg_random_bernoulli(EG_SHAPE(3), .probability = 1), 0, 1, 1, 1);
    CHECK_TENSOR(eg_random_normal(EG_SHAPE(2), .mean = 5, .stddev = EG_ZERO), 0, 5, 5);
    eg_tensor *dice = eg_random_integers(EG_SHAPE(6 * N / 10), 1, 7);
    CHECK_DTYPE(dice, EG_INT32);
    for (int face = 1; face <= 6; face++)
        CHECK_NEAR(eg_item(eg_reduce_sum(eg_cast(eg_equal(dice, face), EG_FLOAT32))) / (N / 10), 1, 0.05);
    CHECK_DTYPE(eg_random_integers(EG_SHAPE(2), 0, (int64_t)1 << 40), EG_INT64);
    CHECK_TENSOR(eg_random_integers(EG_SHAPE(2), -5, -4), 0, -5, -5);
    moments(eg_random_integers(EG_SHAPE(N), INT64_MIN, INT64_MAX), &mean, &deviation, &least, &most);
    CHECK(least < -9.2e18 && most > 9.2e18 && fabs(mean) < 5e16);
    CHECK_ERROR(eg_random_integers(EG_SHAPE(2), 3, 3), EG_ERROR_ARGUMENT, "[3, 3)");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .minval = 3, .maxval = 1), EG_ERROR_ARGUMENT, "eg_random_uniform");
    CHECK_ERROR(eg_add(eg_scalar(3), eg_scalar_of(EG_INT32, 3)), EG_ERROR_DTYPE,
                "float32 [] (from eg_scalar) and int32 [] (from eg_scalar)");
    CHECK_ERROR(eg_scalar_of(EG_INT32, .5), EG_ERROR_DTYPE, "eg_scalar: the value 0.5");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .minval = 0.1), EG_ERROR_ARGUMENT,
                "give .maxval, which is 1 only where");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .minval = -1e308, .maxval = 1e308, .dtype = EG_FLOAT64),
                EG_ERROR_ARGUMENT, "eg_random_uniform");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .maxval = 1e300), EG_ERROR_ARGUMENT, "eg_random_uniform");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .maxval = (double)NAN), EG_ERROR_ARGUMENT, "eg_random_uniform");
    CHECK_ERROR(eg_random_bernoulli(EG_SHAPE(2), .probability = 1.5), EG_ERROR_ARGUMENT, "1.5");
    CHECK_ERROR(eg_random_normal(EG_SHAPE(2), .dtype = EG_INT32), EG_ERROR_DTYPE, "int32");
    CHECK_ERROR(eg_random_normal(EG_SHAPE(2), .dtype = EG_FLOAT16), EG_ERROR_DTYPE, "float16");
    CHECK_INT(eg_size(eg_random_normal(EG_SHAPE(0, 3))), 0);
}

TEST(permutations) {
    eg_seed(5);
    for (int n = 0; n < 60; n = n * 2 + 1) {
        EG_SCOPE;
        eg_tensor *p = eg_random_permutation(n);
        CHECK_DTYPE(p, EG_INT64);
        CHECK_SAME(eg_sort(p), eg_range(EG_INT64, 0, n, 1), 0);
    }
    int count[6] = {0};                                      // all six orders of three, equally often
    for (int i = 0; i < 6000 / test_share; i++) {
        EG_SCOPE;
        const int64_t *p = (const int64_t *)eg_data(eg_random_permutation(3));
        count[p[0] * 2 + (p[1] > p[2])]++;
    }
    for (int k = 0; k < 6; k++) CHECK_NEAR(count[k] / (1000.0 / test_share), 1, test_share > 1 ? 0.6 : 0.12);
    CHECK_ERROR(eg_random_permutation(-1), EG_ERROR_SHAPE, "negative");
}

// ---- devices

static void bad_without(egi_kernel kernel, const char *label) {
    eg_backend bad = *egi_backend_cpu();
    char text[80];
    bad.name = "bad:0";
    bad.kernel[kernel] = NULL;
    snprintf(text, sizeof text, "bad:0 lacks the kernel \"%s\"", label);
    CHECK_ERROR(egi_backend_register(&bad), EG_ERROR_DEVICE, text);
}
TEST(devices) {
    CHECK_INT(eg_device_count("cpu"), 1);
    CHECK_INT(eg_device_count("CPU"), 1);                    // TensorFlow's spelling
    CHECK_INT(eg_device_count("/device:CPU"), 1);
    CHECK_INT(eg_device_count("GPU"), eg_device_count("gpu"));
    CHECK_INT(eg_device_count("c"), 0);
    CHECK_INT(eg_device_count(NULL), 0);
    CHECK(eg_device_count("gpu") >= 0);
    CHECK_INT(eg_error(), EG_OK);                            // a query sets none
    CHECK_ERROR(eg_set_device("tpu:0"), EG_ERROR_DEVICE, "there is no device \"tpu:0\"");
    CHECK_ERROR(eg_set_device(NULL), EG_ERROR_DEVICE, "eg_set_device");
    CHECK_STR(eg_device_of(eg_scalar(1)), test_device());    // and the device stays
    if (eg_device_count("gpu") == 0) CHECK_ERROR(eg_set_device("gpu:0"), EG_ERROR_DEVICE, "EAGER_CUDA");
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2);
    CHECK_ERROR(eg_to(x, "cpu:7"), EG_ERROR_DEVICE, "eg_to: there is no device \"cpu:7\"");
    CHECK(eg_to(x, test_device()) == x);
    CHECK_TENSOR(eg_to(x, "cpu:0"), 0, 1, 2);
    eg_backend bad = *egi_backend_cpu();
    bad.name = "bad:0";
    bad.tensor_size += 8;
    CHECK_ERROR(egi_backend_register(&bad), EG_ERROR_DEVICE, "compiled against another eager.h");
    CHECK_ERROR(egi_backend_register(NULL), EG_ERROR_DEVICE, "egi_backend_register");
    bad = *egi_backend_cpu();
    CHECK_ERROR(egi_backend_register(&bad), EG_ERROR_DEVICE, "cpu:0 exists already");
    // A backend has every kernel but those that the list of kernels lets it lack.
#define NEEDED(NUMBER, label, ...) bad_without(EGI_##NUMBER, #label);
#define HAS(NUMBER, label, ...) CHECK(egi_backend_cpu()->kernel[EGI_##NUMBER] != NULL);
#define HAS_NOT(NUMBER, label, ...) CHECK(egi_backend_cpu()->kernel[EGI_##NUMBER] == NULL);
    EGI_KERNEL_TABLE(NEEDED, HAS, HAS_NOT)
}
#ifdef TEST_GUARD
TEST(two_devices) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y = eg_to(eg_transpose(eg_constant(EG_SHAPE(2, 1), 3, 4)), "cpu:0");
    CHECK_STR(eg_device_of(y), "cpu:0");
    CHECK_ERROR(eg_add(x, y), EG_ERROR_DEVICE, "operand 0 is on guard:0 and operand 1 on cpu:0");
    CHECK_ERROR(eg_concat(EG_TENSORS(y, eg_reshape(x, EG_SHAPE(1, 2))), 0), EG_ERROR_DEVICE, "guard:0");
    CHECK_ERROR(eg_matmul(y, x), EG_ERROR_DEVICE, "cpu:0");
    eg_tensor *v = eg_variable(x, "v");
    CHECK_ERROR(eg_assign(v, eg_reshape(y, EG_SHAPE(2))), EG_ERROR_DEVICE, "eg_assign");
    CHECK_TENSOR(eg_add(y, 1), 0, 4, 5);                     // numbers follow the tensor they meet
    // A gradient comes back to the device of its source.
    eg_tape *tape = eg_tape_begin();
    eg_tensor *z = eg_square(eg_to(v, "cpu:0")), *g = eg_tape_gradient(tape, z, v);
    CHECK_STR(eg_device_of(z), "cpu:0");
    CHECK_STR(eg_device_of(g), "guard:0");
    CHECK_TENSOR(g, 0, 2, 4);
    eg_release(v);
    // The same numbers on both.
    for (int kind = 0; kind < 6; kind++) {
        eg_tensor *both[2];
        for (int d = 0; d < 2; d++) {
            eg_set_device(d ? "cpu:0" : "guard:0");
            eg_seed(9);
            both[d] = kind == 0 ? eg_random_normal(EG_SHAPE(9))
                      : kind == 1 ? eg_random_uniform(EG_SHAPE(9), .dtype = EG_FLOAT64)
                      : kind == 2 ? eg_random_permutation(9)
                      : kind == 3 ? eg_random_integers(EG_SHAPE(9), 0, 100)
                      : kind == 4 ? eg_random_bernoulli(EG_SHAPE(9))
                      : eg_random_truncated_normal(EG_SHAPE(9));
        }
        eg_set_device("guard:0");
        CHECK_SAME(eg_to(both[0], "cpu:0"), both[1], 0);
    }
    // Copies to the host are counted; one stays with the tensor.
    int64_t copies = eg_memory().host_copies;
    eg_data(x);
    eg_data(x);
    CHECK_INT(eg_memory().host_copies, copies + 1);
    eg_item(eg_index(x, 0));
    CHECK_INT(eg_memory().host_copies, copies + 2);
    CHECK(guard_kernels > 0);
}
#endif

// The compiler compares the type that a pointer is to with the dtype (tests/checks/check_calls.sh); where it does not
// know the dtype, the function does.
static eg_dtype unknown(eg_dtype dtype) { return dtype; }
TEST(data_of_another_type_than_the_dtype) {
    const double d[2] = {1, 2};
    double rows[2][2] = {{1, 2}, {3, 4}};
    float cube[1][2][1] = {{{1}, {2}}}, eight[1][1][1][1][1][1][1][2] = {{{{{{{{5, 6}}}}}}}};
    int32_t labels[] = {0, 1, 2, 3};
    unsigned char bytes[4] = {0, 1, 2, 3};
    short narrow[4] = {0};
    size_t sizes[4] = {0};
    long double wide[2] = {0};
    float *list[2] = {cube[0][0], cube[0][1]};
    const void *any = d;
    CHECK_ERROR(eg_from_data(unknown(EG_FLOAT32), EG_SHAPE(2), d), EG_ERROR_DTYPE,
                "eg_from_data: the pointer is to double, the tensor's dtype is float32; eg_cast converts a tensor, and "
                "raw bytes are passed as (void *) (at tensors.c:");
    CHECK_ERROR(eg_from_data(unknown(EG_FLOAT32), EG_SHAPE(2, 2), rows), EG_ERROR_DTYPE, "the pointer is to double");
    CHECK_ERROR(eg_from_data(unknown(EG_INT64), EG_SHAPE(2), labels), EG_ERROR_DTYPE,
                "the pointer is to int, the tensor's dtype is int64");
    CHECK_ERROR(eg_from_data(unknown(EG_FLOAT32), EG_SHAPE(4), bytes), EG_ERROR_DTYPE,
                "the pointer is to unsigned char");
    CHECK_ERROR(eg_from_data(unknown(EG_INT32), EG_SHAPE(4), narrow), EG_ERROR_DTYPE, "the pointer is to short");
    CHECK_ERROR(eg_from_data(unknown(EG_INT64), EG_SHAPE(4), sizes), EG_ERROR_DTYPE, "the pointer is to unsigned long");
    CHECK_ERROR(eg_from_data(unknown(EG_FLOAT64), EG_SHAPE(2), wide), EG_ERROR_DTYPE, "the pointer is to long double");
    CHECK_ERROR(eg_from_data(unknown(EG_FLOAT32), EG_SHAPE(2), list), EG_ERROR_DTYPE, "the pointer is to another type");
    CHECK_ERROR(eg_wrap_data(unknown(EG_FLOAT32), EG_SHAPE(2, 2), rows, NULL, NULL), EG_ERROR_DTYPE,
                "eg_wrap_data: the pointer is to double");
    CHECK_TENSOR(eg_from_data(EG_FLOAT64, EG_SHAPE(2), d), 0, 1, 2);
    CHECK_TENSOR(eg_from_data(EG_FLOAT64, EG_SHAPE(2), any), 0, 1, 2);
    CHECK_TENSOR(eg_from_data(unknown(EG_FLOAT64), EG_SHAPE(2, 2), rows), 0, 1, 2, 3, 4);
    CHECK_TENSOR(eg_from_data(EG_FLOAT64, EG_SHAPE(2), rows[1]), 0, 3, 4);
    CHECK_TENSOR(eg_from_data(EG_FLOAT32, EG_SHAPE(2, 1), cube), 0, 1, 2);
    CHECK_TENSOR(eg_from_data(unknown(EG_FLOAT32), EG_SHAPE(2), eight), 0, 5, 6);
    CHECK_TENSOR(eg_wrap_data(EG_FLOAT32, EG_SHAPE(2), eight, NULL, NULL), 0, 5, 6);
    eg_tensor *literal = eg_from_data(EG_FLOAT32, EG_SHAPE(2, 1), (float[]){3, 4}),
              *borrowed = eg_wrap_data(EG_FLOAT32, EG_SHAPE(2), ((float[]){5, 6}), NULL, NULL);
    CHECK_TENSOR(literal, 0, 3, 4);
    CHECK_TENSOR(borrowed, 0, 5, 6);
    CHECK_TENSOR(eg_from_data(EG_INT32, EG_SHAPE(4), labels), 0, 0, 1, 2, 3);
    CHECK_TENSOR(eg_from_data(EG_BOOL, EG_SHAPE(4), bytes), 0, 0, 1, 1, 1);
    CHECK_TENSOR(eg_from_data(EG_UINT8, EG_SHAPE(2), "ab"), 0, 97, 98);
    CHECK_TENSOR(eg_from_data(EG_INT64, EG_SHAPE(1), &(long long){1LL << 40}), 0, 1099511627776.0);
    CHECK_TENSOR(eg_from_data(EG_FLOAT16, EG_SHAPE(1), &(uint16_t){0x3c00}), 0, 1);
    CHECK_ERROR(eg_from_data((eg_dtype)77, EG_SHAPE(2), d), EG_ERROR_DTYPE, "77 is no dtype");
}

// The elements of a tensor into memory of the caller's, whose type and size are compared first.
// The compiler tells how long an array is; in eg_from_data it does with optimization only; check_calls.sh runs that.
TEST(arrays_that_are_too_short) {
    static float three[3] = {1, 2, 3};
    static double pair[2][2];
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    CHECK_ERROR(eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), three, NULL, NULL), EG_ERROR_SHAPE,
                "the memory behind the pointer ends after 12 bytes, but float32 of shape [4] takes 16");
    CHECK_ERROR(eg_wrap_data(EG_FLOAT32, EG_SHAPE(3), three + 1, NULL, NULL), EG_ERROR_SHAPE, "ends after 8 bytes");
    CHECK_ERROR(eg_read_into(x, three, 4), EG_ERROR_SHAPE,
                "eg_read_into: the memory behind the pointer ends after 12 bytes");
    CHECK_ERROR(eg_read_into(x, three, 3), EG_ERROR_SHAPE, "but count is 3");
    CHECK(three[0] == 1 && three[2] == 3);
    CHECK(eg_wrap_data(EG_FLOAT64, EG_SHAPE(4), pair, NULL, NULL) &&
          eg_wrap_data(EG_FLOAT64, EG_SHAPE(2), pair[1], NULL, NULL));
    CHECK(eg_wrap_data(EG_FLOAT32, EG_SHAPE(0), three + 3, NULL, NULL) &&
          eg_read_into(eg_ones(EG_FLOAT32, EG_SHAPE(2)), three, 2));
#ifdef __OPTIMIZE__
    CHECK_ERROR(
        eg_from_data(EG_FLOAT32, EG_SHAPE(2, 2), three), EG_ERROR_SHAPE,
        "eg_from_data: the memory behind the pointer ends after 12 bytes, but float32 of shape [2, 2] takes 16");
#endif
    CHECK(eg_from_data(EG_FLOAT32, EG_SHAPE(3), three) && eg_from_data(EG_FLOAT64, EG_SHAPE(2, 2), pair));
}
TEST(elements_are_read_into_memory) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6),
              *n = eg_constant_of(EG_INT64, EG_SHAPE(2), 1LL << 40, -1);
    float rows[3][2], untouched[2] = {7, 8};
    CHECK(eg_read_into(eg_transpose(x), rows, 6));
    CHECK(rows[0][0] == 1 && rows[0][1] == 4 && rows[1][0] == 2 && rows[2][1] == 6);
    long long wide[2];
    CHECK(eg_read_into(n, wide, 2) && wide[0] == 1LL << 40 && wide[1] == -1);
    bool flags[2];
    uint8_t bytes[2];
    CHECK(eg_read_into(eg_greater(n, 0), flags, 2) && flags[0] && !flags[1]);
    CHECK(eg_read_into(eg_greater(n, 0), bytes, 2) && bytes[0] == 1 && bytes[1] == 0);
    uint16_t half[2];
    CHECK(eg_read_into(eg_cast(n, EG_BFLOAT16), half, 2) && half[1] == 0xbf80);
    float raw[6];
    CHECK(eg_read_into(x, (void *)raw, 6) && raw[5] == 6);
    CHECK((eg_read_into)(x, raw, 6));
    CHECK(eg_read_into(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2)), raw, 0) &&
          eg_read_into(eg_zeros(EG_FLOAT32, EG_SHAPE(0)), NULL, 0));
    int values[2];
    CHECK_ERROR(eg_read_into(n, values, 2), EG_ERROR_DTYPE,
                "eg_read_into: the pointer is to int, the tensor's dtype is int64");
    CHECK_ERROR(eg_read_into(n, untouched, 2), EG_ERROR_DTYPE, "the pointer is to float");
    CHECK_ERROR(eg_read_into(x, untouched, 2), EG_ERROR_SHAPE,
                "eg_read_into: the tensor of shape [2, 3] has 6 elements, but count is 2");
    CHECK_ERROR(eg_read_into(x, untouched, -1), EG_ERROR_SHAPE, "count is -1");
    CHECK_ERROR(eg_read_into(x, NULL, 6), EG_ERROR_NULL, "eg_read_into: values is NULL");
    CHECK_ERROR(eg_read_into(NULL, untouched, 2), EG_ERROR_NULL, "eg_read_into");
    CHECK(untouched[0] == 7 && untouched[1] == 8);
}

TEST(texts_are_vectors_of_bytes) {
    const char *const list[] = { "one", "", "three" };
    eg_tensor *x = eg_from_text("a.csv"), *all = eg_from_texts(list, 3);
    CHECK_INT(eg_dtype_of(x), EG_UINT8);
    CHECK_SHAPE(x, 5);
    CHECK_STR(eg_text(x), "a.csv");
    CHECK_STR(eg_text(eg_from_text("")), "");
    CHECK_SHAPE(all, 3, 5);
    CHECK_TENSOR(eg_index(all, 0), 0, 'o', 'n', 'e', 0, 0);
    for (int i = 0; i < 3; i++) CHECK_STR(eg_text(eg_index(all, i)), list[i]);      // up to its first 0
    CHECK_STR(eg_text(eg_slice(x, EG_SHAPE(2), EG_SHAPE(3))), "csv");
    const char *const none[] = { "", NULL };
    CHECK_SHAPE(eg_from_texts(none, 1), 1, 0);
    CHECK_ERROR(eg_from_texts(none, 2), EG_ERROR_NULL, "eg_from_texts: text 1 is NULL");
    CHECK_ERROR(eg_from_texts(NULL, 2), EG_ERROR_ARGUMENT, "a list of 2 is NULL");
    CHECK_ERROR(eg_from_texts(list, 0), EG_ERROR_ARGUMENT, "no texts");
    CHECK_ERROR(eg_from_text(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_text(all), EG_ERROR_SHAPE, "eg_text: a text is a vector of uint8, not uint8 [3, 5]");
    CHECK_ERROR(eg_text(eg_scalar(1)), EG_ERROR_DTYPE, "float32 []");
    CHECK_ERROR(eg_text(NULL), EG_ERROR_NULL, "eg_text");
}

// One value is written by vectors, whatever is left element by element.
TEST(tensors_of_one_value_have_it_in_every_element) {
    for (int dtype = EG_FLOAT32; dtype <= EG_BOOL; dtype++)
        for (int64_t n = 1; n < 80; n += n < 40 ? 1 : 7) {
            EG_SCOPE;
            eg_tensor *x = eg_ones((eg_dtype)dtype, EG_SHAPE(n));
            CHECK(eg_item(eg_reduce_sum(eg_cast(x, EG_FLOAT64))) == (double)n);
        }
}
