// Options and operands at the edge of what ops take: each bound from both sides, layouts of every kind, sizes that 64
// bits do not count.
#include "test.h"

static eg_tensor *ramp(eg_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++) n *= shape.dims[i];
    return eg_reshape(eg_range(EG_FLOAT32, 0, (double)n, 1), shape);
}
static eg_tensor *ones(eg_shape shape) { return eg_ones(EG_FLOAT32, shape); }

TEST(reshaped_views_with_axes_of_one) {
    eg_tensor *x = eg_transpose(ramp(EG_SHAPE(2, 1, 3)));                  // (3, 1, 2), its rows apart
    CHECK_TENSOR(eg_reshape(x, EG_SHAPE(1, 3, 2, 1)), 0, 0, 3, 1, 4, 2, 5);
    CHECK_TENSOR(eg_reshape(eg_expand_dims(x, -1), EG_SHAPE(3, 2)), 0, 0, 3, 1, 4, 2, 5);
    CHECK_TENSOR(eg_reshape(x, EG_SHAPE(2, 3)), 0, 0, 3, 1, 4, 2, 5);
    CHECK_TENSOR(eg_reshape(x, EG_SHAPE(6)), 0, 0, 3, 1, 4, 2, 5);
    CHECK_SHAPE(eg_reshape(ones(EG_SHAPE(0, 3)), EG_SHAPE(5, 0, 7)), 5, 0, 7);
}

TEST(slices_and_pads_from_both_sides) {
    eg_tensor *x = ramp(EG_SHAPE(2, 3)), *none = ones(EG_SHAPE(0, 3)), *part[3] = {x, x, x};
    CHECK_ERROR(eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(1)), EG_ERROR_SHAPE, "must have an entry for each axis");
    CHECK_ERROR(eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(1, -2)), EG_ERROR_INDEX,
                "-2 elements from 0 on do not lie inside axis 1");
    CHECK_ERROR(eg_strided_slice(x, EG_SHAPE(0), EG_SHAPE(1), EG_SHAPE(1, 1)), EG_ERROR_SHAPE, "must have one length");
    eg_shape bad = {-1, {0}};
    CHECK_ERROR(eg_strided_slice(x, bad, bad, bad), EG_ERROR_SHAPE, "at most the rank");
    CHECK_ERROR(eg_unstack(x, 2, 0, NULL), EG_ERROR_ARGUMENT, "eg_unstack: a list of 2 is NULL");
    CHECK(eg_unstack(none, 0, 0, part));                                     // no slices: nothing to do
    CHECK(part[0] == x);
    CHECK_ERROR(eg_pad(x, EG_PADS(0, -1, 0, 0)), EG_ERROR_ARGUMENT, "paddings 0 and -1 of axis 0");
    CHECK_ERROR(eg_pad(x, EG_PADS(1, 2, 0, 0), .mode = EG_PAD_REFLECT), EG_ERROR_ARGUMENT,
                "paddings 1 and 2 of axis 0 do not fit");
    CHECK_TENSOR(eg_pad(x, EG_PADS(0, 0, 2, 2), .mode = EG_PAD_REFLECT), 0, 2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3);
    CHECK_TENSOR(eg_pad(x, EG_PADS(0, 1, 1, 0), .mode = EG_PAD_SYMMETRIC), 0, 0, 0, 1, 2, 3, 3, 4, 5, 3, 3, 4, 5);
    CHECK_SHAPE(eg_pad(none, EG_PADS(0, 0, 1, 0), .mode = EG_PAD_REFLECT), 0, 4);
    int64_t huge = INT64_C(1) << 59;
    CHECK_ERROR(eg_pad(eg_broadcast_to(eg_scalar(1), EG_SHAPE(huge)), EG_PADS(huge, huge), .mode = EG_PAD_SYMMETRIC),
                EG_ERROR_SHAPE, "eg_pad");
    CHECK_ERROR(eg_pad(none, EG_PADS(INT64_MAX, 1, 0, 0)), EG_ERROR_SHAPE,
                "axis 0 of the result has more elements than 64 bits count");
    eg_tensor *many[17];
    for (int i = 0; i < 17; i++) many[i] = eg_zeros(EG_FLOAT32, EG_SHAPE(huge, 0));
    CHECK_SHAPE(eg_concat(many, 3, 0), 3 * huge, 0);
    CHECK_ERROR(eg_concat(many, 17, 0), EG_ERROR_SHAPE, "eg_concat: too many elements");
}
TEST(an_infinity_that_was_asked_for_is_no_trap) {
    eg_tensor *x = ones(EG_SHAPE(1)), *y, *z;
    eg_trap_nonfinite(true);
    y = eg_pad(x, EG_PADS(1, 0), .value = -INFINITY);
    z = eg_pad(x, EG_PADS(1, 0), .value = 3);
    CHECK_TRAPPED(eg_log(eg_sub(x, x)), "eg_log");                          // it is on all the while
    eg_trap_nonfinite(false);
    CHECK_TENSOR(y, 0, -HUGE_VAL, 1);
    CHECK_TENSOR(z, 0, 3, 1);
}

// ---- matrices of every layout: rows apart, columns apart, repeated, of length 1; each product as of a copy

static eg_tensor *laid_out(int kind, int64_t rows, int64_t columns) {
    eg_shape all = EG_SHAPE(rows, columns);
    eg_tensor *x = ramp(all), *y = ramp(EG_SHAPE(columns, rows)), *wide = ramp(EG_SHAPE(2 * rows, 2 * columns));
    switch (kind) {
    case 0: return x;
    case 1: return eg_transpose(y);
    case 2: return eg_slice(wide, EG_SHAPE(1, 1), all);  // rows further apart
    case 3: return eg_transpose(eg_slice(eg_transpose(wide), EG_SHAPE(1, 1), EG_SHAPE(columns, rows)));
    // neither side has unit steps
    case 4: return eg_strided_slice(wide, EG_SHAPE(0, 0), EG_SHAPE(EG_END, EG_END), EG_SHAPE(2, 2));
    case 5: return eg_broadcast_to(ramp(EG_SHAPE(1, columns)), all);
    case 6: return eg_broadcast_to(ramp(EG_SHAPE(rows, 1)), all);
    default: return eg_reverse(x, EG_AXES(0));
    }
}
static eg_tensor *packed(eg_tensor *x) { return eg_from_data(EG_FLOAT32, eg_shape_of(x), eg_data(x)); }
TEST(products_of_every_layout) {
    static const int64_t sizes[][3] = {{2, 3, 4}, {1, 3, 4}, {2, 1, 4}, {2, 3, 1}, {1, 1, 4}, {1, 3, 1}, {2, 1, 1},
                                       {1, 1, 1}};
    for (int s = 0; s < 8; s++)
        for (int k = 0; k < 8 * 8 * 4; k++) {
            EG_SCOPE;
            int64_t m = sizes[s][0], inner = sizes[s][1], n = sizes[s][2];
            bool ta = k & 1, tb = k & 2;
            eg_tensor *a = ta ? laid_out(k / 4 % 8, inner, m) : laid_out(k / 4 % 8, m, inner),
                      *b = tb ? laid_out(k / 32, n, inner) : laid_out(k / 32, inner, n);
            CHECK_SAME(eg_matmul(a, b, .transpose_a = ta, .transpose_b = tb),
                       eg_matmul(packed(a), packed(b), .transpose_a = ta, .transpose_b = tb), 0);
        }
}
TEST(batches_of_products) {
    eg_tensor *a = ramp(EG_SHAPE(2, 3, 2, 2)), *b = ramp(EG_SHAPE(2, 2)), *b1 = eg_reshape(b, EG_SHAPE(1, 1, 2, 2)),
              *last = eg_matmul(eg_index(eg_index(a, 1), 2), b);
    eg_tensor *of[] = {eg_matmul(a, b), eg_matmul(a, b1),
                       eg_matmul(eg_transpose(eg_transpose(a, .perm = EG_AXES(1, 0, 2, 3)),
                                              .perm = EG_AXES(1, 0, 2, 3)), b),
                       eg_matmul(packed(eg_transpose(a, .perm = EG_AXES(0, 1, 3, 2))), b, .transpose_a = true)};
    for (int i = 0; i < 4; i++) {
        CHECK_SHAPE(of[i], 2, 3, 2, 2);
        CHECK_SAME(eg_index(eg_index(of[i], 1), 2), last, 0);
    }
    // batches of the right side alone
    CHECK_SAME(eg_index(eg_index(eg_matmul(eg_index(eg_index(a, 1), 2), b1), 0), 0), last, 0);
    eg_tensor *turned = eg_transpose(a, .perm = EG_AXES(1, 0, 2, 3));
    CHECK_SAME(eg_index(eg_index(eg_matmul(turned, b), 2), 1), last, 0);
    CHECK_ERROR(eg_matmul(ramp(EG_SHAPE(2, 3)), ramp(EG_SHAPE(2, 5)), .transpose_a = true, .transpose_b = true),
                EG_ERROR_SHAPE,
                "float32 [2, 3] (from eg_reshape) transposed and float32 [2, 5] (from eg_reshape) transposed");
}

// ---- convolution

TEST(each_bound_of_convolution) {
    eg_tensor *x = ones(EG_SHAPE(1, 4, 5, 4)), *k = ones(EG_SHAPE(3, 3, 4, 2)), *t = ones(EG_SHAPE(3, 3, 2, 4)),
              *one = ones(EG_SHAPE(1, 1, 1, 1));
    const int64_t far = INT64_C(1) << 33;
    static const char bounds[] = "strides, dilations and paddings must be between 1 and 2^31";
    CHECK_ERROR(eg_conv2d(x, k, .strides = {1, -1}), EG_ERROR_ARGUMENT, bounds);
    CHECK_ERROR(eg_conv2d(x, k, .strides = {1, far}), EG_ERROR_ARGUMENT, bounds);
    CHECK_ERROR(eg_conv2d(x, k, .dilations = {far}), EG_ERROR_ARGUMENT, bounds);
    CHECK_ERROR(eg_conv2d_transpose(x, t, .output_padding = {-1}), EG_ERROR_ARGUMENT, bounds);
    CHECK_ERROR(eg_conv2d_transpose(x, t, .output_padding = {0, far}), EG_ERROR_ARGUMENT, bounds);
    CHECK_ERROR(eg_conv2d_transpose(x, t, .groups = -1), EG_ERROR_ARGUMENT, "eg_conv2d_transpose: -1 groups");
    CHECK_ERROR(eg_conv2d(x, k, .output_padding = {1}), EG_ERROR_ARGUMENT,
                "eg_conv2d: .output_padding is for transposed convolution");
    CHECK_ERROR(eg_conv2d(x, k, .output_padding = {0, 1}), EG_ERROR_ARGUMENT,
                "eg_conv2d: .output_padding is for transposed convolution");
    CHECK_ERROR(eg_conv2d(x, ones(EG_SHAPE(3, 3, 2, 3)), .groups = 2), EG_ERROR_SHAPE,
                "eg_conv2d: 4 channels of float32 [1, 4, 5, 4] (from eg_ones) in 2 groups against 2 input channels");
    CHECK_ERROR(eg_conv2d(x, ones(EG_SHAPE(0, 3, 4, 2))), EG_ERROR_SHAPE,
                "the filter float32 [0, 3, 4, 2] (from eg_ones) is empty");
    CHECK_ERROR(eg_conv2d(x, ones(EG_SHAPE(3, 6, 4, 2))), EG_ERROR_SHAPE, "a window of 6 does not fit");
    CHECK_ERROR(eg_conv2d(x, NULL), EG_ERROR_NULL, "eg_conv2d");
    CHECK_ERROR(eg_conv2d_transpose(x, NULL), EG_ERROR_NULL, "eg_conv2d_transpose");
    CHECK_ERROR(eg_conv2d_transpose(x, ones(EG_SHAPE(0, 3, 2, 4))), EG_ERROR_SHAPE, "is empty or too large");
    CHECK_ERROR(eg_conv2d_transpose(x, ones(EG_SHAPE(3, 0, 2, 4))), EG_ERROR_SHAPE, "is empty or too large");
    CHECK_ERROR(eg_conv2d_transpose(ones(EG_SHAPE(1, 1, 1, 0)),
                                    eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1, INT64_C(1) << 60, 0)), .groups = 16),
                EG_ERROR_SHAPE, "is empty or too large");
    eg_tensor *wide = eg_broadcast_to(one, EG_SHAPE(1, INT64_C(1) << 40, 1, 1));
    CHECK_ERROR(eg_conv2d(one, wide, .dilations = {1 << 30}, .padding = EG_SAME), EG_ERROR_SHAPE,
                "dilated by 1073741824, is too large");
    CHECK_ERROR(eg_conv2d_transpose(one, wide, .dilations = {1, 1 << 30}), EG_ERROR_SHAPE,
                "dilated by 1073741824, is too large");
    eg_tensor *even = ones(EG_SHAPE(2, 2, 2, 4));
    CHECK_ERROR(
        eg_conv2d_transpose(x, t, .padding = EG_SAME, .output_padding = {2}, .strides = {2}), EG_ERROR_ARGUMENT,
        "an output padding of 2, and for a window of 3 and a stride of 2 with EG_SAME it must be between 0 and 1");
    CHECK_ERROR(
        eg_conv2d_transpose(x, even, .padding = EG_SAME, .output_padding = {0, EG_ZERO}, .strides = {2}),
        EG_ERROR_ARGUMENT,
        "an output padding of 0, and for a window of 2 and a stride of 2 with EG_SAME it must be between 1 and 2");
    CHECK_ERROR(eg_conv2d_transpose(x, even, .padding = EG_SAME, .output_padding = {0, 3}, .strides = {2}),
                EG_ERROR_ARGUMENT, "an output padding of 3, and for a window of 2");
    CHECK_ERROR(
        eg_conv2d_transpose(x, t, .output_padding = {0, 2}, .strides = {2}), EG_ERROR_ARGUMENT,
        "an output padding of 2, and for a window of 3 and a stride of 2 with EG_VALID it must be between 0 and 1");
    eg_tensor *tall = eg_broadcast_to(one, EG_SHAPE(1, INT64_C(1) << 57, 1, 1)),
              *broad = eg_broadcast_to(one, EG_SHAPE(1, 1, INT64_C(1) << 57, 1));
    CHECK_ERROR(eg_conv2d_transpose(tall, one, .strides = {1 << 20}), EG_ERROR_SHAPE, "the result is too large");
    CHECK_ERROR(eg_conv2d_transpose(broad, one, .strides = {1, 1 << 20}), EG_ERROR_SHAPE, "the result is too large");
    CHECK_ERROR(eg_conv2d_transpose(broad, one, .strides = {1, 63}), EG_ERROR_SHAPE, "the result is too large");
}
TEST(convolutions_of_nothing) {
    eg_tensor *k = ones(EG_SHAPE(3, 3, 2, 5)), *t = ones(EG_SHAPE(3, 3, 5, 2));
    CHECK_SHAPE(eg_conv2d(ones(EG_SHAPE(1, 0, 4, 2)), k, .padding = EG_SAME), 1, 0, 4, 5);
    CHECK_SHAPE(eg_conv2d(ones(EG_SHAPE(1, 4, 0, 2)), k, .padding = EG_SAME, .strides = {2}), 1, 2, 0, 5);
    CHECK_SHAPE(eg_conv2d_transpose(ones(EG_SHAPE(1, 0, 4, 2)), t), 1, 0, 6, 5);
    CHECK_SHAPE(eg_conv2d_transpose(ones(EG_SHAPE(1, 4, 0, 2)), t, .padding = EG_SAME, .strides = {2}), 1, 8, 0, 5);
    CHECK_SHAPE(eg_conv2d_transpose(ones(EG_SHAPE(1, 4, 0, 2)), t), 1, 6, 0, 5);
    CHECK_SHAPE(eg_max_pool2d(ones(EG_SHAPE(1, 0, 3, 2)), .padding = EG_SAME), 1, 0, 2, 2);
    CHECK_SHAPE(eg_resize(ones(EG_SHAPE(1, 0, 3, 2)), 0, 0), 1, 0, 0, 2);
}
TEST(each_bound_of_pooling_and_resizing) {
    eg_tensor *x = ramp(EG_SHAPE(1, 4, 5, 1));
    const int64_t far = INT64_C(1) << 33;
    CHECK_ERROR(eg_max_pool2d(x, .size = {far}), EG_ERROR_ARGUMENT,
                "eg_max_pool2d: size and strides must be between 1 and 2^31");
    CHECK_ERROR(eg_max_pool2d(x, .size = {2, 2}, .strides = {1, far}), EG_ERROR_ARGUMENT,
                "size and strides must be between 1 and 2^31");
    CHECK_ERROR(eg_max_pool2d(x, .size = {2, 6}), EG_ERROR_SHAPE, "a window of 6 does not fit");
    CHECK_TENSOR(eg_max_pool2d(x, .size = {4, 2}), 0, 16, 18);
    CHECK_ERROR(eg_resize(x, 2, -1), EG_ERROR_SHAPE, "2 x -1");
    CHECK_ERROR(eg_resize(ones(EG_SHAPE(1, 2, 0, 1)), 2, 0), EG_ERROR_SHAPE, "[1, 2, 0, 1]");
    CHECK_ERROR(eg_resize(ones(EG_SHAPE(1, 2, 0, 1)), 0, 2), EG_ERROR_SHAPE, "[1, 2, 0, 1]");
}

// ---- picking and scattering

TEST(each_bound_of_picking) {
    eg_tensor *x = ramp(EG_SHAPE(2, 3)), *i = eg_zeros(EG_INT32, EG_SHAPE(2));
    CHECK_ERROR(eg_gather_nd(x, eg_constant_of(EG_INT32, EG_SHAPE(1, 2), 0, -1)), EG_ERROR_INDEX,
                "eg_gather_nd: index -1 (entry 1 of");
    CHECK_ERROR(eg_scatter_nd(eg_scalar_of(EG_INT32, 0), eg_scalar(1), EG_SHAPE(2)), EG_ERROR_SHAPE,
                "the last axis of indices int32 []");
    CHECK_ERROR(eg_scatter_nd(eg_zeros(EG_INT32, EG_SHAPE(2, 1)), ones(EG_SHAPE(2, 4)), EG_SHAPE(4, 3)), EG_ERROR_SHAPE,
                "do not fit indices");
    // no axis is picked from: all of it
    CHECK_TENSOR(eg_gather_nd(x, eg_zeros(EG_INT32, EG_SHAPE(1, 0))), 0, 0, 1, 2, 3, 4, 5);
    CHECK_ERROR(eg_segment_sum(x, eg_zeros(EG_INT32, EG_SHAPE(2, 1)), 2), EG_ERROR_SHAPE, "one entry for each row");
    CHECK_ERROR(eg_segment_sum(eg_scalar(1), i, 2), EG_ERROR_SHAPE, "one entry for each row");
    CHECK_ERROR(eg_segment_sum(x, ones(EG_SHAPE(2)), 2), EG_ERROR_DTYPE,
                "eg_segment_sum: indices must be int32 or int64");
    CHECK_ERROR(eg_segment_sum(eg_ones(EG_BOOL, EG_SHAPE(2, 1)), i, 2), EG_ERROR_DTYPE, "eg_segment_sum");
    CHECK_ERROR(eg_take_along_axis(x, eg_zeros(EG_INT32, EG_SHAPE(2)), 1), EG_ERROR_SHAPE, "must agree but for axis 1");
    CHECK_TENSOR(eg_one_hot(eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 0), 2, .on_value = EG_ZERO, .off_value = 5), 0, 5,
                 0, 0, 5);
    CHECK_TENSOR(eg_one_hot(eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 0), 2, .on_value = 2, .off_value = EG_ZERO), 0, 0,
                 2, 2, 0);
    CHECK_TENSOR(eg_cumsum(x, .axis = EG_ZERO), 0, 0, 1, 2, 3, 5, 7);
    CHECK_ERROR(eg_argmax(eg_scalar(1)), EG_ERROR_SHAPE, "eg_argmax: float32 []");
}

// ---- einsum

TEST(equations_that_are_none) {
    eg_tensor *x = ones(EG_SHAPE(2, 3)), *y = ones(EG_SHAPE(3, 4)), *deep = ones(EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    static const struct { const char *equation, *says; eg_error_code code; } wrong[] = {
        {"i{,jk->ik", "is no equation such as \"ij,jk->ik\" (at position 1)", EG_ERROR_ARGUMENT},
        {"i[,jk->ik", "(at position 1)", EG_ERROR_ARGUMENT},
        {"i@,jk->ik", "(at position 1)", EG_ERROR_ARGUMENT},
        {"i.j,jk->ik", "(at position 1)", EG_ERROR_ARGUMENT},
        {"ijk...,jk->ik", "is no equation", EG_ERROR_ARGUMENT},
        {"ij,jk-ik", "\"ij,jk-ik\" is no equation", EG_ERROR_ARGUMENT},
        {"ij,jk->i-", "\"ij,jk->i-\" is no equation", EG_ERROR_ARGUMENT},
        {"ij,jk->i,k", "is no equation", EG_ERROR_ARGUMENT},
        {"ij,jk->i$", "is no equation such as", EG_ERROR_ARGUMENT},
        {"ij,jk->ijk...abcdefgh", "is no equation", EG_ERROR_ARGUMENT},
        {"i,jk->ik", "a term of \"i,jk->ik\" names 1 axes, but its operand has 2", EG_ERROR_SHAPE},
        {"ij", "does not name 2 operands", EG_ERROR_ARGUMENT},
        {"ij,kk->ij", "one letter stands for axes of 3 and 4", EG_ERROR_SHAPE},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        CHECK_ERROR(eg_einsum(wrong[k].equation, EG_TENSORS(x, y)), wrong[k].code, wrong[k].says);
    // one axis is no stretch of the other
    CHECK_ERROR(eg_einsum("ii->i", EG_TENSORS(ones(EG_SHAPE(1, 3)))), EG_ERROR_SHAPE,
                "one letter stands for axes of 1 and 3");
    CHECK_ERROR(eg_einsum("ij,kk->ij", EG_TENSORS(x, ones(EG_SHAPE(1, 3)))), EG_ERROR_SHAPE,
                "one letter stands for axes of 1 and 3");
    CHECK_ERROR(eg_einsum("...,a...->...bcdefghi", EG_TENSORS(deep, deep)), EG_ERROR_ARGUMENT, "eg_einsum");
    CHECK_ERROR(eg_einsum("ij->ij", (eg_tensor *[]){x}, 17), EG_ERROR_ARGUMENT, "17 operands; it takes 1 to 16");
}
TEST(equations_whose_steps_are_too_large) {
    int64_t large = INT64_C(1) << 40;
    eg_tensor *one = ones(EG_SHAPE(1)), *two = ones(EG_SHAPE(1, 1)), *far = eg_broadcast_to(one, EG_SHAPE(large));
    static const char says[] = "an intermediate result has more elements than 64 bits count";
    // what both share and keep
    CHECK_ERROR(eg_einsum("ij,ij,i,j->ij", EG_TENSORS(two, two, far, far)), EG_ERROR_SHAPE, says);
    CHECK_ERROR(eg_einsum("ij,ij->", EG_TENSORS(eg_broadcast_to(two, EG_SHAPE(1, large)),
                                                eg_broadcast_to(two, EG_SHAPE(large, 1)))), EG_ERROR_SHAPE, says);
    CHECK_ERROR(eg_einsum("ij,k,i,j->ijk", EG_TENSORS(two, one, far, far)), EG_ERROR_SHAPE, says);
    CHECK_ERROR(eg_einsum("k,ij,i,j->ijk", EG_TENSORS(one, two, far, far)), EG_ERROR_SHAPE, says);
    eg_tensor *five = ones(EG_SHAPE(1, 1, 1, 1, 1)), *four = ones(EG_SHAPE(1, 1, 1, 1));
    CHECK_ERROR(eg_einsum("abcde,fghi,abcd,efgh->i", EG_TENSORS(five, four, four, four)), EG_ERROR_SHAPE,
                "an intermediate result has more than 8 axes");
    CHECK_TENSOR(eg_einsum("Ab, bA ->A", EG_TENSORS(ramp(EG_SHAPE(2, 2)), ramp(EG_SHAPE(2, 2)))), 0, 2, 3 + 6 - 3 + 5);
}

// ---- random numbers, assertions

TEST(each_bound_of_random_numbers) {
    CHECK_ERROR(eg_random_normal(EG_SHAPE(2), .stddev = NAN), EG_ERROR_ARGUMENT, "stddev nan is negative");
    CHECK_ERROR(eg_random_truncated_normal(EG_SHAPE(2), .stddev = -1), EG_ERROR_ARGUMENT, "stddev -1 is negative");
    CHECK_ERROR(eg_random_truncated_normal(EG_SHAPE(2), .stddev = NAN), EG_ERROR_ARGUMENT, "stddev nan");
    CHECK_ERROR(eg_random_truncated_normal(EG_SHAPE(2), .dtype = EG_INT32), EG_ERROR_DTYPE,
                "makes float32 or float64, not int32");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .dtype = EG_BOOL), EG_ERROR_DTYPE, "makes float32 or float64, not bool");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .minval = NAN), EG_ERROR_ARGUMENT, "eg_random_uniform");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .minval = -1e39), EG_ERROR_ARGUMENT, "is too wide for float32");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .maxval = 1e39), EG_ERROR_ARGUMENT, "is too wide for float32");
    CHECK_ERROR(eg_random_uniform(EG_SHAPE(2), .minval = -1e308, .maxval = 1e308, .dtype = EG_FLOAT64),
                EG_ERROR_ARGUMENT, "is too wide for float64");
    static const double wrong[] = {-0.1, 1.1, NAN};
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(eg_random_bernoulli(EG_SHAPE(2), .probability = wrong[i]), EG_ERROR_ARGUMENT,
                    "is not between 0 and 1");
    CHECK_SHAPE(eg_random_normal(EG_SHAPE(0, 2)), 0, 2);
}
TEST(assertions_of_everything) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), INFINITY, NAN, 1), *y = eg_constant(EG_SHAPE(3), INFINITY, NAN, 1.5),
              *big = eg_add(eg_from_data(EG_INT64, EG_SHAPE(1), (const int64_t[]){INT64_C(1) << 60}), 1);
    CHECK(eg_assert_near(x, y, 0.5) && eg_assert_equal(x, x));
    CHECK_ERROR(eg_assert_near(x, eg_negative(x), 0.5), EG_ERROR_ASSERT,
                "2 of 3 elements: at [0]: inf against -inf; [2]: 1 against -1");
    CHECK_ERROR(eg_assert_equal(big, eg_sub(big, 1)), EG_ERROR_ASSERT, "1 of 1");  // a double cannot tell them apart
    CHECK_ERROR(eg_assert_equal(NULL, x), EG_ERROR_NULL, "eg_assert_equal");
    CHECK_ERROR(eg_assert_near(x, NULL, 1), EG_ERROR_NULL, "eg_assert_near");
    CHECK_ERROR(eg_assert_shape(NULL, EG_SHAPE(1)), EG_ERROR_NULL, "eg_assert_shape");
    CHECK_ERROR(eg_assert_shape(x, EG_SHAPE(3, 1)), EG_ERROR_ASSERT, "has not the shape [3, 1]");
    CHECK_ERROR(eg_assert_shape(x, EG_SHAPE(-1, -1)), EG_ERROR_ASSERT, "has not the shape");
    CHECK(eg_assert_shape(x, EG_SHAPE(-1)));
}
