// Long sums in float32 against float64: products, convolutions and their gradients, pools, segments, what gather's
// gradient adds, running sums, means, norms and statistics. A plain loop that adds a million times .1 in one float is
// off by 1% and stands still at 2^24 terms; the header promises (512 + log2(n)) 2^-24 times the sum of magnitudes for
// products, and half a unit in the last place or little more for the rest.
#include "test.h"

static const double per_term = 1.0 / (1 << 24);  // half a unit in the last place of a number between 1/2 and 1
static double in_blocks(int64_t n) {
#ifdef EAGER_OPENBLAS
    return (2048 + log2((double)n)) * per_term;  // OpenBLAS adds up to some thousand terms before it begins anew
#else
    return (512 + log2((double)n)) * per_term;
#endif
}
static double promised(int64_t n) {
#ifdef TEST_CUDA
    if (n > 512) return (double)n * per_term;  // no promise: so much a plain loop may lose
#endif
    return in_blocks(n);
}
static eg_tensor *constant(eg_shape shape, double value) { return eg_add(eg_zeros(EG_FLOAT32, shape), value); }
enum { SEVENTHS = 7 };                                                            // 1/7, 2/7 .. 1: of no power of two
static float seventh(int64_t i) { return (float)((i * 5 + i / 11) % SEVENTHS + 1) / SEVENTHS; }
static eg_tensor *sevenths(eg_shape shape) {
    eg_tensor *x = eg_random_integers(shape, 0, SEVENTHS);
    return eg_div(eg_add(eg_cast(x, EG_FLOAT32), 1), SEVENTHS);
}
// What the largest element is off, against what the reference's largest element is.
static double off_by(eg_tensor *got, eg_tensor *want) {
    EG_SCOPE;
    return eg_item(eg_reduce_max(eg_abs(eg_sub(eg_cast(got, EG_FLOAT64), want)))) /
           eg_item(eg_reduce_max(eg_abs(want)));
}
static eg_tensor *wide(eg_tensor *x) { return eg_cast(x, EG_FLOAT64); }

// (m, k) x (k, n) in every layout.
static void check_product(int64_t m, int64_t n, int64_t k) {
    for (int form = 0; form < 4; form++) {
        EG_SCOPE;
        bool ta = form & 1, tb = form & 2;
        eg_tensor *a = sevenths(ta ? EG_SHAPE(k, m) : EG_SHAPE(m, k)),
                  *b = sevenths(tb ? EG_SHAPE(n, k) : EG_SHAPE(k, n));
        eg_tensor *got = eg_matmul(a, b, .transpose_a = ta, .transpose_b = tb),
                  *want = eg_matmul(wide(a), wide(b), .transpose_a = ta, .transpose_b = tb);
        double off = off_by(got, want);
        if (!(off <= promised(k)))
            printf("(%d, %d) x (%d, %d), form %d: off by %g\n", (int)m, (int)k, (int)k, (int)n, form, off);
        CHECK(off <= promised(k));
    }
}
TEST(products_of_a_million_terms) {
    const int64_t k = 1000000 / test_share;
    check_product(1, 1, k);
    check_product(1, 3, k);
    check_product(3, 1, k);
    check_product(2, 2, k);
    check_product(7, 5, k);
    check_product(1, 2050, 3000);  // wider than the columns that one pass takes
    check_product(20, 40, 3000);
}
// One number, seen as a matrix without being one: what needs memory is the sum alone.
TEST(products_of_very_many_equal_terms) {
    if (!test_on_host) SKIP("too long on a device that is played by the processor");
    const int64_t k = (int64_t)20000000 / test_share;
    eg_tensor *x = constant(EG_SHAPE(k), .1);
    const double want = (double)k * (double).1f * (double).1f;
    eg_tensor *row = eg_reshape(x, EG_SHAPE(1, k)), *column = eg_reshape(x, EG_SHAPE(k, 1));
    CHECK(fabs(eg_item(eg_matmul(row, column)) / want - 1) <= promised(k));
    eg_tensor *both = eg_reshape(x, EG_SHAPE(2, k / 2));
    CHECK(fabs(eg_item(eg_reduce_max(eg_matmul(both, both, .transpose_b = true))) / (want / 2) - 1) <= promised(k));
    eg_tensor *pairs = eg_reshape(x, EG_SHAPE(k / 2, 2));
    CHECK(fabs(eg_item(eg_reduce_max(eg_matmul(pairs, pairs, .transpose_a = true))) / (want / 2) - 1) <= promised(k));
    eg_tensor *in[] = { x, x };
    CHECK(fabs(eg_item(eg_einsum("i,i->", in, 2)) / want - 1) <= promised(k));
}

// Sums, means, norms and what is made of them.
TEST(reductions_of_a_million_terms) {
    const int64_t n = 1000000 / test_share;
    eg_tensor *x = sevenths(EG_SHAPE(n / 4, 4)), *all = eg_reshape(x, EG_SHAPE(n));
    CHECK(off_by(eg_reduce_sum(all), eg_reduce_sum(wide(all))) <= per_term);
    CHECK(off_by(eg_reduce_sum(x, .axes = EG_AXES(0)), eg_reduce_sum(wide(x), .axes = EG_AXES(0))) <= per_term);
    CHECK(off_by(eg_reduce_mean(x, .axes = EG_AXES(0)), eg_reduce_mean(wide(x), .axes = EG_AXES(0))) <= 2 * per_term);
    CHECK(off_by(eg_reduce_variance(x, .axes = EG_AXES(0)),
                 eg_reduce_variance(wide(x), .axes = EG_AXES(0))) <= 4 * per_term);
    CHECK(off_by(eg_norm(all), eg_norm(wide(all))) <= 2 * per_term);
    CHECK(off_by(eg_norm(all, .ord = 1), eg_norm(wide(all), .ord = 1)) <= 2 * per_term);
    CHECK(off_by(eg_reduce_logsumexp(all), eg_reduce_logsumexp(wide(all))) <= 4 * per_term);
    CHECK(off_by(eg_cumsum(all), eg_cumsum(wide(all))) <= per_term);
    eg_tensor *gradients[] = { all, NULL, all }, *same[] = { wide(all), NULL, wide(all) };
    CHECK(off_by(eg_global_norm(gradients, 3), eg_global_norm(same, 3)) <= 4 * per_term);
    eg_tensor *clipped[3];
    REQUIRE(eg_clip_by_global_norm(gradients, 3, 1, clipped));
    CHECK_NEAR(eg_item(eg_norm(wide(clipped[0]))), sqrt(.5), 1e-6);
    // What broadcasting has spread is added up again by the tape.
    eg_tensor *b = eg_scalar(1);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, b);
    CHECK(off_by(eg_tape_gradient(tape, eg_mul(all, b), b), eg_reduce_sum(wide(all))) <= per_term);
}
TEST(batch_statistics_of_a_million_terms) {
    const int64_t n = 1000000 / test_share / 2;
    eg_layer *norm = eg_layer_batch_normalization(.momentum = EG_ZERO);
    eg_tensor *x = sevenths(EG_SHAPE(n, 2)), *weights[4];
    eg_call(norm, x, .training = true);
    REQUIRE(eg_layer_weights(norm, weights, 4) == 4);
    CHECK(off_by(weights[2], eg_reduce_mean(wide(x), .axes = EG_AXES(0))) <= 4 * per_term);
    CHECK(off_by(weights[3], eg_reduce_variance(wide(x), .axes = EG_AXES(0))) <= 8 * per_term);
    eg_layer_release(norm);
}

// Rows added up by number: few and many rows, one column and several, one update a row and all in one row.
static void check_segments(int64_t n, int64_t rows, int64_t columns, int64_t skew) {
    EG_SCOPE;
    int64_t *number = (int64_t *)malloc((size_t)n * sizeof *number);
    double *want = (double *)calloc((size_t)(rows * columns), sizeof *want);
    eg_tensor *x = sevenths(EG_SHAPE(n, columns));
    const float *v = (const float *)eg_data(x);
    for (int64_t i = 0; i < n; i++) {
        number[i] = i % skew ? rows - 1 : i * 7 % rows;                            // most in the last row
        for (int64_t j = 0; j < columns; j++) want[number[i] * columns + j] += (double)v[i * columns + j];
    }
    eg_tensor *segments = eg_from_data(EG_INT64, EG_SHAPE(n), number),
              *right = eg_from_data(EG_FLOAT64, EG_SHAPE(rows, columns), want);
    eg_tensor *sum = eg_segment_sum(x, segments, rows);
    CHECK(off_by(sum, right) <= 33 * per_term);
    // Each row by itself, too: a short row must not hide behind a long one.
    eg_tensor *each = eg_div(eg_abs(eg_sub(wide(sum), right)), eg_maximum(right, 1e-30));
    CHECK(eg_item(eg_reduce_max(each)) <= 33 * per_term);
    // Gather's gradient is the same sum.
    eg_tensor *table = eg_zeros(EG_FLOAT32, EG_SHAPE(rows, columns));
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, table);
    eg_tensor *g = eg_tape_gradient(tape, eg_mul(eg_gather(table, segments), x), table);
    CHECK(off_by(g, right) <= 33 * per_term);
    free(number);
    free(want);
}
TEST(segments_of_a_million_rows) {
    const int64_t n = 1000000 / test_share;
    check_segments(n, 3, 1, 10);
    check_segments(n / 4, 5, 4, 2);
    check_segments(3000, 70000, 3, 2);  // a large table of which few rows are met
    check_segments(700, 300, 200, 1);   // wider than a block of columns
    check_segments(40, 5, 3, 3);
    check_segments(20, 1000, 2, 3);
    eg_tensor *x = constant(EG_SHAPE(2, n), .1), *index = eg_zeros(EG_INT32, EG_SHAPE(n));
    eg_tape *tape = eg_tape_begin();
    eg_tensor *t = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3));
    eg_tape_watch(tape, t);
    eg_tensor *g = eg_tape_gradient(tape, eg_mul(eg_gather(t, index, .axis = 1), x), t);
    const double all = (double)n * (double).1f;
    CHECK_TENSOR(eg_div(g, all), 1e-6, 1, 0, 0, 1, 0, 0);
}
TEST(segments_of_doubles_halves_and_integers) {
    eg_tensor *number = eg_constant_of(EG_INT32, EG_SHAPE(40), 1, 0, 1, 1, 3, 3, 1, 0, 1, 1, 1, 0, 1, 1, 3, 3, 1, 0, 1,
                                       1, 1, 0, 1, 1, 3, 3, 1, 0, 1, 1, 1, 0, 1, 1, 3, 3, 1, 0, 1, 1);
    eg_tensor *ones = eg_ones(EG_INT64, EG_SHAPE(40));
    const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64 };
    for (int d = 0; d < 4; d++) CHECK_TENSOR(eg_segment_sum(eg_cast(ones, dtypes[d]), number, 5), 0, 8, 24, 0, 8, 0);
    for (int d = 0; d < 2; d++) {  // the sign of zeros, and what is not finite
        eg_tensor *x = eg_mul(eg_cast(ones, dtypes[d]), INFINITY);
        CHECK_TENSOR(eg_segment_sum(x, number, 5), 0, INFINITY, INFINITY, 0, INFINITY, 0);
    }
}

// A convolution's filter sees every place of the picture: its gradient is a sum over all of them.
static void check_convolution(bool even, int64_t h, int64_t w, int64_t c, int64_t kh, int64_t kw, int64_t o,
                              int64_t groups) {
    EG_SCOPE;
    eg_shape in_shape = EG_SHAPE(1, h, w, c), filter_shape = EG_SHAPE(kh, kw, c / groups, o);
    eg_tensor *x = even ? constant(in_shape, .1) : sevenths(in_shape),
              *f = even ? constant(filter_shape, .3) : sevenths(filter_shape), *made[2][3];
    for (int k = 0; k < 2; k++) {
        eg_tensor *in = k ? wide(x) : x, *filter = k ? wide(f) : f;
        eg_tape *tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, in);
        eg_tape_watch(tape, filter);
        made[k][0] = eg_conv2d(in, filter, .groups = groups);
        eg_tensor *weights = eg_cast(eg_reshape(eg_mod(eg_range(EG_INT64, 0, (double)eg_size(made[k][0]), 1), 5),
                                                eg_shape_of(made[k][0])), eg_dtype_of(in));
        eg_tensor *s = even ? made[k][0] : eg_mul(made[k][0], eg_add(weights, 1));
        made[k][1] = eg_tape_gradient(tape, s, in);
        made[k][2] = eg_tape_gradient(tape, s, filter);
    }
    const int64_t terms[] = { kh * kw * c / groups, kh * kw * o / groups, (h - kh + 1) * (w - kw + 1) };
    for (int i = 0; i < 3; i++) {
        // A filter's gradient is added in blocks on every device, but for a filter of one pixel, which is a product.
        const double off = off_by(made[0][i], made[1][i]),
                     most = i == 2 && kh * kw > 1 ? in_blocks(terms[i]) : promised(terms[i]);
        if (!(off <= most))
            printf("%s of (%d, %d, %d), filter (%d, %d), groups %d: off by %g\n", i == 0 ? "y"
                                                                                  : i == 1 ? "dx"
                                                                                  : "df", (int)h, (int)w, (int)c,
                   (int)kh, (int)kw, (int)groups, off);
        CHECK(off <= most);
    }
}
TEST(convolutions_of_a_million_places) {
    const int64_t side = 1000 / (test_share > 1 ? 4 : 1);
    for (int even = 0; even < 2; even++) {
        check_convolution(even, side, side / 2, 1, 3, 3, 1, 1);
        check_convolution(even, side, side / 2, 2, 1, 2, 2, 2);                  // one filter a channel
        check_convolution(even, side, side / 2, 2, 1, 2, 4, 2);
        check_convolution(even, side, side / 2, 2, 1, 1, 2, 1);                  // seen where it lies
        check_convolution(even, side, side / 4, 4, 2, 2, 4, 2);
        check_convolution(even, 1, 3000, 1, 1, 1500, 1, 1);                      // a filter of many taps
        check_convolution(even, 1, 3000, 2, 1, 1500, 2, 2);
        check_convolution(even, side, side / 4, 4, 2, 2, 8, 1);
    }
}
TEST(pools_of_a_million_pixels) {
    const int64_t side = 1000 / (test_share > 1 ? 4 : 1);
    eg_tensor *x = sevenths(EG_SHAPE(1, side, side, 1));
    CHECK(off_by(eg_avg_pool2d(x, .size = { side }),
                 eg_reshape(eg_reduce_mean(wide(x)), EG_SHAPE(1, 1, 1, 1))) <= 2 * per_term);
    eg_tensor *line = sevenths(EG_SHAPE(1, 2000, 2)), *g[2];
    for (int k = 0; k < 2; k++) {  // windows that overlap hundredfold, and what each pixel gets of them
        eg_tensor *in = k ? wide(line) : line;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, in);
        eg_tensor *y = eg_avg_pool1d(in, .size = { 900 }, .strides = { 1 });
        g[k] = eg_tape_gradient(tape, eg_square(y), in);
    }
    CHECK(off_by(g[0], g[1]) <= 16 * per_term);
}
// The order of a sum depends on its sizes alone: the same bits every time.
TEST(long_sums_are_the_same_every_time) {
    eg_tensor *a = sevenths(EG_SHAPE(3, 100000 / test_share)), *b = sevenths(EG_SHAPE(100000 / test_share, 5));
    CHECK(eg_assert_equal(eg_matmul(a, b), eg_matmul(a, b)));
    float first[64], again[64];
    for (int i = 0; i < 64; i++) first[i] = again[i] = seventh(i);
    eg_tensor *x = eg_from_data(EG_FLOAT32, EG_SHAPE(8, 8), first),
              *y = eg_from_data(EG_FLOAT32, EG_SHAPE(8, 8), again);
    CHECK(eg_assert_equal(eg_segment_sum(x, eg_constant_of(EG_INT32, EG_SHAPE(8), 0, 1, 0, 1, 0, 1, 0, 1), 2),
                          eg_segment_sum(y, eg_constant_of(EG_INT32, EG_SHAPE(8), 0, 1, 0, 1, 0, 1, 0, 1), 2)));
}
