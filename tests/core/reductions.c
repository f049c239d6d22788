// Sums, means, norms, products, maxima and minima over any axes, against plain loops: every dtype, every set of axes,
// every layout, and rows of every length. Sums in float64 of small whole numbers are exact, so that most comparisons
// here are of bits.
#include "test.h"

static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static bool is_float(eg_dtype t) { return t == EG_FLOAT32 || t == EG_FLOAT64; }
// Of no order; uint8 gets the low bits of it. For products powers of two, whose products are exact, or odd integers.
static bool multiplied;
static double value_of(int64_t i) {
    const double v = (double)(i * 7919 % 1009 % 201) - 100;
    return !multiplied ? v : v < -40 ? 0.5 : v < 30 ? -1 : v == 30 ? 1 : 2;
}
static eg_tensor *values(eg_dtype dtype, eg_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++) n *= shape.dims[i];
    double *v = (double *)malloc((size_t)(n + 1) * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = multiplied && !is_float(dtype) ? 6 * value_of(i) + 9
               : value_of(i) + (dtype == EG_UINT8 ? 100 : 0);
    eg_tensor *x = eg_cast(eg_from_data(EG_FLOAT64, shape, v), dtype);
    free(v);
    return x;
}
// A value of what an integer dtype keeps of it.
static double wrapped(eg_dtype t, double v) {
    return t == EG_UINT8 ? (double)(uint8_t)(int64_t)v : t == EG_INT32 ? (double)(int32_t)(uint32_t)(int64_t)v : v;
}

typedef enum kind { SUM, MEAN, MOST, LEAST, NORM, PRODUCT, KINDS } kind;
static eg_tensor *reduce(kind k, eg_tensor *x, eg_axes axes, bool keepdims) {
    switch (k) {
        case SUM: return eg_reduce_sum(x, .axes = axes, .keepdims = keepdims);
        case MEAN: return eg_reduce_mean(x, .axes = axes, .keepdims = keepdims);
        case MOST: return eg_reduce_max(x, .axes = axes, .keepdims = keepdims);
        case PRODUCT: return eg_reduce_prod(x, .axes = axes, .keepdims = keepdims);
        case LEAST: return eg_reduce_min(x, .axes = axes, .keepdims = keepdims);
        default: return eg_norm(x, .axes = axes, .keepdims = keepdims);
    }
}
// The oracle: x's elements one after another, in row-major order, each taken up by its result. Returns how many results
// there are.
static int64_t expected(kind k, eg_tensor *x, unsigned mask, double *y) {
    eg_tensor *wide = eg_cast(x, EG_FLOAT64);
    const double *v = (const double *)eg_data(wide);
    eg_shape shape = eg_shape_of(x);
    eg_dtype t = eg_dtype_of(x);
    int64_t n = eg_size(x), results = 1, behind = 1;
    static uint64_t wholes[20000];                                   // products of integers, modulo 2^64
    for (int d = 0; d < shape.rank; d++) *(mask >> d & 1 ? &behind : &results) *= shape.dims[d];
    for (int64_t j = 0; j < results; j++) {
        y[j] = k == MOST ? -(double)INFINITY : k == LEAST ? (double)INFINITY : k == PRODUCT;
        wholes[j] = 1;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, step = 1;
        for (int d = shape.rank - 1; d >= 0; d--) {
            if (!(mask >> d & 1)) { at += rest % shape.dims[d] * step; step *= shape.dims[d]; }
            rest /= shape.dims[d];
        }
        if (k == MOST) { if (v[i] > y[at] || (v[i] != v[i] && y[at] == y[at])) y[at] = v[i]; }
        else if (k == LEAST) { if (v[i] < y[at] || (v[i] != v[i] && y[at] == y[at])) y[at] = v[i]; }
        else if (k == PRODUCT) { y[at] *= v[i]; wholes[at] *= (uint64_t)(int64_t)v[i]; }
        else y[at] += k == NORM ? v[i] * v[i] : v[i];
    }
    for (int64_t j = 0; j < results; j++) {
        if (k == NORM) y[j] = sqrt(y[j]);
        if (k == MEAN) y[j] = is_float(t) ? y[j] / (double)behind : trunc(y[j] / (double)behind);
        if (k == PRODUCT && !is_float(t))
            y[j] = t == EG_INT64 ? (double)(int64_t)wholes[j] : t == EG_INT32 ? (int32_t)(uint32_t)wholes[j]
                   : (uint8_t)wholes[j];
        else if (t == EG_FLOAT32) y[j] = (double)(float)y[j];
        else if (!is_float(t)) y[j] = wrapped(t, y[j]);
    }
    return results;
}
static void check(eg_tensor *x, unsigned mask) {
    static double want[20000];
    eg_axes axes = EG_AXES(0);
    axes.count = 0;
    for (int d = 0; d < eg_rank(x); d++) if (mask >> d & 1) axes.axes[axes.count++] = d;
    for (int k = 0; k < KINDS; k++) {
        EG_SCOPE;
        if ((k == NORM && !is_float(eg_dtype_of(x))) || (k == PRODUCT) != multiplied) continue;
        int64_t n = expected((kind)k, x, mask, want);
        eg_tensor *y = reduce((kind)k, x, axes, mask & 1);
        REQUIRE(y && eg_size(y) == n && eg_rank(y) == (mask & 1 ? eg_rank(x) : eg_rank(x) - axes.count));
        CHECK_VALUES(y, 0, want, n);
    }
}

// Rows and columns of every length around the sizes of vectors, beginning at any element.
static void check_lengths(void) {
    for (int d = 0; d < DTYPES; d++) {
        eg_tensor *all = values(dtypes[d], EG_SHAPE(9000));
        for (int64_t n = 1; n <= 1001; n += n < 70 ? 1 : n < 130 ? test_share : n < 990 ? 869 * test_share : 1) {
            EG_SCOPE;
            for (int64_t from = 0; from < 8; from += test_share) {
                eg_tensor *row = eg_slice(all, EG_SHAPE(from), EG_SHAPE(n)),
                          *rows = eg_slice(all, EG_SHAPE(from), EG_SHAPE(7 * n));
                check(row, 1);
                check(eg_reshape(rows, EG_SHAPE(7, n)), 1);
                check(eg_reshape(rows, EG_SHAPE(7, n)), 2);
                if (n <= 40) check(eg_reshape(rows, EG_SHAPE(n, 7)), 2);
            }
        }
    }
}
TEST(rows_and_columns_of_every_length) { check_lengths(); }
TEST(products_of_every_length) {
    multiplied = true;
    check_lengths();
    multiplied = false;
}
// Every set of axes of a tensor, and of views of it: transposed, reversed, with steps, broadcast.
static void check_layouts(void) {
    for (int d = 0; d < DTYPES; d++) {
        EG_SCOPE;
        eg_tensor *x = values(dtypes[d], EG_SHAPE(3, 4, 5, 6)), *wide = values(dtypes[d], EG_SHAPE(3, 8, 5, 11));
        eg_tensor *views[] = {
            x, eg_transpose(x), eg_transpose(x, .perm = EG_AXES(2, 0, 3, 1)),
            eg_transpose(x, .perm = EG_AXES(1, 0, 2, 3)), eg_reverse(x, EG_AXES(1, 3)),
            eg_strided_slice(wide, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(EG_END, EG_END, EG_END, EG_END),
                             EG_SHAPE(1, 2, 1, 2)),
            eg_strided_slice(wide, EG_SHAPE(0, 7, 4, 1), EG_SHAPE(EG_END, 1, 0, EG_END), EG_SHAPE(2, -2, -3, 3)),
            eg_broadcast_to(eg_slice(x, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(3, 1, 5, 1)), EG_SHAPE(3, 4, 5, 6)),
            eg_reshape(x, EG_SHAPE(3, 1, 20, 6)),
            eg_reshape(x, EG_SHAPE(30, 6, 2, 1)), eg_slice(x, EG_SHAPE(1, 1, 1, 1), EG_SHAPE(2, 3, 4, 5)) };
        for (size_t v = 0; v < sizeof views / sizeof *views; v++)
            for (unsigned mask = 1; mask < 16; mask++) check(views[v], mask);
    }
}
TEST(every_set_of_axes_of_every_layout) { check_layouts(); }
// Products of float32 are computed in float64 and rounded once: those of numbers near 1 are not biased, and what leaves
// float32 on the way comes back. The same holds for their gradients.
TEST(products_of_every_layout_and_of_what_is_odd) {
    multiplied = true;
    check_layouts();
    multiplied = false;
    enum { N = 100000 };
    float *factors = (float *)malloc(N * sizeof *factors);
    double want = 1;
    REQUIRE(factors);
    for (int i = 0; i < N; i++) {
        factors[i] = (float)(1 + value_of(i) * (i % 2 ? 9e-5 : -9e-5));
        want *= (double)factors[i];
    }
    eg_tensor *x = eg_from_data(EG_FLOAT32, EG_SHAPE(10, N / 10), factors);
    CHECK_NEAR(eg_item(eg_reduce_prod(x)) / want, 1, 6e-8);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_reduce_prod(x), *dx = eg_tape_gradient(tape, y, x);
    const float *slopes = (const float *)eg_data(dx);
    REQUIRE(slopes);
    double worst = 0;
    for (int i = 0; i < N; i++) worst = fmax(worst, fabs((double)slopes[i] * (double)factors[i] / want - 1));
    CHECK(worst < 1.3e-7);
    free(factors);
    eg_tensor *wide = eg_constant(EG_SHAPE(5), 1e30, -1e30, 1e-30, 1e-30, 3);
    CHECK_NEAR(eg_item(eg_reduce_prod(wide)), -3, 1e-6);
    CHECK_NEAR(eg_item(eg_reduce_prod(eg_full(EG_FLOAT32, EG_SHAPE(40), 3e38))), (double)INFINITY, 0);
    CHECK(isnan(eg_item(eg_reduce_prod(eg_constant(EG_SHAPE(3), INFINITY, 1, 0)))));
    CHECK(signbit(eg_item(eg_reduce_prod(eg_constant(EG_SHAPE(3), -0.0, 2, 3)))));
    CHECK_ERROR(eg_reduce_prod(eg_equal(wide, wide)), EG_ERROR_DTYPE, "eg_reduce_prod");
}
// The gradient of products of float32 is one launch where nothing looks at its ops. Under a second tape it is composed
// of halves in float64. The bits are the same: in shapes of few and many rows and columns, of which some are divided
// among threads, where the axes are apart, with zeros, and where products of some elements leave double's range.
static eg_tensor *product_slope(eg_tensor *x, eg_axes axes, bool composed) {
    eg_reduce_options o;
    memset(&o, 0, sizeof o);
    o.axes = axes;
    eg_tape *outer = composed ? eg_tape_begin() : NULL, *tape = eg_tape_begin();
    if (outer) eg_tape_watch(outer, x);
    eg_tape_watch(tape, x);
    eg_tensor *y = (eg_reduce_prod)(x, o);
    return eg_tape_gradient(tape, eg_mul(y, eg_sin(y)), x);
}
TEST(the_gradient_of_a_product_at_once) {
    const eg_shape shapes[] = {
        EG_SHAPE(1), EG_SHAPE(2), EG_SHAPE(31), EG_SHAPE(32), EG_SHAPE(33), EG_SHAPE(1025), EG_SHAPE(40001),
        EG_SHAPE(3, 7), EG_SHAPE(5, 64), EG_SHAPE(33, 35), EG_SHAPE(1100, 3), EG_SHAPE(40, 100), EG_SHAPE(2, 70, 33),
        EG_SHAPE(3, 1, 40), EG_SHAPE(4, 5, 6), EG_SHAPE(400), EG_SHAPE(1000, 2), EG_SHAPE(900, 200),
        EG_SHAPE(2, 3, 127), EG_SHAPE(2, 3, 128) };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (unsigned mask = 1; mask < 1u << shapes[s].rank; mask++)
            for (int form = 0; form < 5; form++) {
                EG_SCOPE;
                int64_t size = 1;
                eg_axes axes = { 0, 0, { 0 } };
                for (int i = 0; i < shapes[s].rank; i++) {
                    size *= shapes[s].dims[i];
                    if (mask >> i & 1) axes.axes[axes.count++] = i;
                }
                float *values = (float *)malloc((size_t)size * sizeof *values);
                REQUIRE(values);
                for (int64_t i = 0; i < size; i++) values[i] = (float)(1 + .02 * value_of(i) / sqrt((double)size));
                for (int64_t i = 0; i < size && form >= 3; i++)
                    values[i] = form == 3 ? 10 : 2 * i < size ? 1e-30f : 1e30f;
                for (int z = 0; z < form && form < 4; z++) values[(z * 37 + 11) % size] = 0;
                eg_tensor *x = eg_from_data(EG_FLOAT32, shapes[s], values);
                free(values);
                const float *once = (const float *)eg_data(product_slope(x, axes, false)),
                            *composed = (const float *)eg_data(product_slope(x, axes, true));
                REQUIRE(once && composed);
                for (int64_t i = 0; i < size; i++)
                    if (memcmp(&once[i], &composed[i], sizeof *once) != 0 && !(isnan(once[i]) && isnan(composed[i]))) {
                        fprintf(stderr, "shape %d, axes %u, values %d, element %lld: %.9g, %.9g\n", (int)s, mask, form,
                                (long long)i, (double)once[i], (double)composed[i]);
                        CHECK(once[i] == composed[i]);
                        break;
                    }
            }
}
// The second gradient of products of one element or none is 0, as that of products of more that are 1 long elsewhere.
TEST(second_gradients_of_products_of_one_element) {
    const eg_shape shapes[] = { EG_SHAPE(2, 1), EG_SHAPE(3, 0), EG_SHAPE(0, 3), EG_SHAPE(1, 2) };
    for (int s = 0; s < 4; s++)
        for (int axis = 0; axis < 2; axis++) {
            eg_tensor *x = eg_full(EG_FLOAT32, shapes[s], INFINITY);
            eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
            eg_tape_watch(outer, x);
            eg_tape_watch(tape, x);
            eg_tensor *dx = eg_tape_gradient(tape, eg_reduce_prod(x, .axes = EG_AXES(axis)), x),
                      *second = eg_tape_gradient(outer, dx, x);
            CHECK(dx && second && eg_size(second) == eg_size(x));
            if (shapes[s].dims[axis] > 1) continue;
            CHECK_NEAR(eg_item(eg_reduce_sum(dx)), (double)eg_size(x), 0);
            CHECK_NEAR(eg_item(eg_reduce_sum(second)), 0, 0);
        }
}
// More results than a block has accumulators, with short and long axes inside and outside of them.
TEST(blocks_of_results) {
    for (int d = 0; d < DTYPES; d += test_share > 1 ? 2 : 1) {
        EG_SCOPE;
        eg_tensor *x = values(dtypes[d], EG_SHAPE(2, 1030, 2)), *y = values(dtypes[d], EG_SHAPE(2, 1025, 17)),
                  *z = values(dtypes[d], EG_SHAPE(3, 40, 2, 41));
        for (unsigned mask = 1; mask < 8; mask++) {
            check(x, mask);
            check(y, mask);
            check(eg_transpose(y), mask);
            check(eg_transpose(x, .perm = EG_AXES(2, 0, 1)), mask);
        }
        for (unsigned mask = 1; mask < 16; mask++) check(z, mask);
        // Groups of channels, as group normalization has them, and rows of up to so many that are folded.
        eg_tensor *groups = eg_reshape(eg_slice(eg_reshape(y, EG_SHAPE(2 * 1025 * 17)), EG_SHAPE(0),
                                                EG_SHAPE(2 * 5 * 6 * 8 * 2)), EG_SHAPE(2, 5, 6, 8, 2));
        check(groups, 2 | 4 | 16);
        check(groups, 1 | 2 | 4 | 16);
        for (int64_t n = 1; n <= 18; n++)
            check(eg_reshape(eg_slice(eg_reshape(y, EG_SHAPE(2 * 1025 * 17)), EG_SHAPE(0), EG_SHAPE(1500 * n)),
                             EG_SHAPE(3, 500, n)), 4);
        check(eg_reshape(eg_slice(eg_reshape(y, EG_SHAPE(2 * 1025 * 17)), EG_SHAPE(0), EG_SHAPE(30000)),
                         EG_SHAPE(5, 2000, 3)), 1 | 4);
    }
}
// The greatest, the least and a NaN at each place of a row or a column; the greatest and least integers; infinities.
TEST(extremes_at_every_place_of_a_row) {
    for (int d = 0; d < DTYPES; d++)
        for (int64_t n = 1; n <= 140; n += n < 40 ? 1 : 33 * (1 + test_share / 20))
            for (int64_t place = 0; place < n; place += n < 10 ? 1 : 3)
                for (int odd = 0; odd < 4; odd++) {
                    EG_SCOPE;
                    static double v[2 * 140];
                    if (odd == 2 && !is_float(dtypes[d])) continue;
                    for (int64_t i = 0; i < 2 * n; i++) v[i] = value_of(i) + 100;
                    const double top = is_float(dtypes[d]) ? (double)INFINITY
                                       : dtypes[d] == EG_UINT8 ? 255
                                       : 2147483647;
                    const double low = is_float(dtypes[d]) ? -(double)INFINITY
                                       : dtypes[d] == EG_UINT8 ? 0
                                       : -2147483648.0;
                    v[place] = v[n + place] = odd == 0 ? top : odd == 1 ? low : odd == 2 ? (double)NAN : 0;
                    if (odd == 2) v[n - 1] = (double)INFINITY, v[0] = place ? -(double)INFINITY : v[0];
                    eg_tensor *x = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(2, n), v), dtypes[d]);
                    double want[2][140];
                    for (int64_t i = 0; i < 2; i++)
                        want[0][i] = odd == 2 && n > 1 && i == 0 && place == n - 1 ? (double)INFINITY : 0;
                    int64_t rows = expected(MOST, x, 2, want[0]);
                    CHECK_VALUES(eg_reduce_max(x, .axes = EG_AXES(1)), 0, want[0], rows);
                    expected(LEAST, x, 2, want[0]);
                    CHECK_VALUES(eg_reduce_min(x, .axes = EG_AXES(1)), 0, want[0], rows);
                    int64_t columns = expected(MOST, x, 1, want[1]);
                    CHECK_VALUES(eg_reduce_max(x, .axes = EG_AXES(0)), 0, want[1], columns);
                    expected(LEAST, x, 1, want[1]);
                    CHECK_VALUES(eg_reduce_min(x, .axes = EG_AXES(0)), 0, want[1], columns);
                    if (odd == 2 && n > 2 * (place + 1))
                        CHECK(isnan(eg_item(eg_reduce_max(x))) && isnan(eg_item(eg_reduce_min(x))));
                }
}
TEST(sums_of_what_is_odd) {
    eg_tensor *x = eg_constant(EG_SHAPE(5), 1e38, 3e38, -3e38, 1, 0);
    CHECK_NEAR(eg_item(eg_reduce_sum(x)), 1e38, 1e31);                      // in float64, beyond float32 on the way
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_full(EG_FLOAT32, EG_SHAPE(40), 3e38))), (double)INFINITY, 0);
    CHECK(isnan(eg_item(eg_reduce_sum(eg_constant(EG_SHAPE(3), INFINITY, 1, -INFINITY)))));
    float numbers[40] = { 0 };
    numbers[33] = NAN;
    CHECK(isnan(eg_item(eg_reduce_mean(eg_from_data(EG_FLOAT32, EG_SHAPE(2, 20), numbers)))));
    eg_tensor *tiny = eg_full(EG_FLOAT32, EG_SHAPE(33, 3), 1e-45);         // denormals
    CHECK_NEAR(eg_item(eg_reduce_sum(tiny)), 99 * 0x1p-149, 0);
    CHECK_NEAR(eg_item(eg_reduce_max(tiny)), 0x1p-149, 0);
    CHECK_INT(eg_item_int(eg_reduce_sum(eg_full(EG_INT32, EG_SHAPE(3), 2147483647))), 2147483645);
    CHECK_INT(eg_item_int(eg_reduce_sum(eg_full(EG_UINT8, EG_SHAPE(300), 255))), 300 * 255 % 256);
    CHECK_INT(eg_item_int(eg_reduce_mean(eg_full(EG_UINT8, EG_SHAPE(300), 255))), 255);
    CHECK_INT(eg_item_int(eg_reduce_mean(eg_full(EG_INT32, EG_SHAPE(7, 3), -2147483648.0))), -2147483648LL);
    CHECK_INT(eg_item_int(eg_reduce_mean(eg_constant_of(EG_INT32, EG_SHAPE(2), -3, -4))), -3);
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_scalar(3))), 3, 0);
    eg_tensor *none = eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3));
    CHECK_TENSOR(eg_reduce_sum(none, .axes = EG_AXES(0)), 0, 0, 0, 0);
    CHECK_INT(eg_size(eg_reduce_max(none, .axes = EG_AXES(1))), 0);
}
