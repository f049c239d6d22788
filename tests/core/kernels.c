// Chapter 35 at every size and place: each kernel against the plain loop that it stands for, in every dtype that it is
// stamped out for.
// What is special about floats and large sizes is in ops_values.c and ops_edges.c.
#ifndef EAGER_BACKEND
#define EAGER_BACKEND
#endif
#include "test.h"

// no order, and exact in every dtype once it is not negative
static double value_of(int64_t i) { return (double)(i * 37 % 23) - 11; }

// ---- the greatest and the least, and where they are: the extreme one, or a NaN, at each place of rows that are
// shorter and longer than a block

static void check_extremes(eg_dtype dtype, int64_t n, int64_t inner, int64_t place, int odd) {
    EG_SCOPE;
    double x[60], most[4], least[4], at_most[4], at_least[4];
    bool floating = dtype == EG_FLOAT32 || dtype == EG_FLOAT64;
    if (odd == 2 && !floating) return;
    for (int64_t i = 0; i < n * inner; i++) x[i] = value_of(i) + 12;
    for (int64_t j = 0; j < inner; j++) x[place * inner + j] = odd == 0 ? 99 : odd == 1 ? 0 : (double)NAN;
    for (int64_t j = 0; j < inner; j++) {
        at_most[j] = at_least[j] = 0;
        for (int64_t i = 1; i < n; i++) {
            double v = x[i * inner + j], top = x[(int64_t)at_most[j] * inner + j],
                   low = x[(int64_t)at_least[j] * inner + j];
            if (v > top || (v != v && top == top)) at_most[j] = (double)i;
            if (v < low || (v != v && low == low)) at_least[j] = (double)i;
        }
        most[j] = x[(int64_t)at_most[j] * inner + j];
        least[j] = x[(int64_t)at_least[j] * inner + j];
    }
    eg_tensor *t = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n, inner), x), dtype);
    CHECK_VALUES(eg_reduce_max(t, .axes = EG_AXES(0)), 0, most, inner);
    CHECK_VALUES(eg_reduce_min(t, .axes = EG_AXES(0)), 0, least, inner);
    CHECK_VALUES(eg_argmax(t), 0, at_most, inner);
    CHECK_VALUES(eg_argmin(t), 0, at_least, inner);
}
TEST(extremes_at_every_place) {
    const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64 };
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int64_t inner = 1; inner <= 3; inner += 2)
            for (int64_t n = 1; n <= 13; n += n < 6 ? 1 : 7)
                for (int64_t place = 0; place < n; place++)
                    for (int odd = 0; odd < 3; odd++) check_extremes(dtypes[d], n, inner, place, odd);
}

// ---- rows of softmax, from one element to several blocks

TEST(softmax_of_rows_of_every_length) {
    for (int64_t n = 1; n <= 200; n += n < 20 ? 1 : 9) {
        EG_SCOPE;
        double x[2][200], soft[2][200], logs[2][200], all[2];
        for (int r = 0; r < 2; r++) {
            double most = -1e9, sum = 0;
            for (int64_t i = 0; i < n; i++) {
                x[r][i] = value_of(i + r * 5) / 3 + (i == n / 2 ? 9 * r : 0);
                most = fmax(most, x[r][i]);
            }
            for (int64_t i = 0; i < n; i++) sum += exp(x[r][i] - most);
            for (int64_t i = 0; i < n; i++) {
                soft[r][i] = exp(x[r][i] - most) / sum;
                logs[r][i] = x[r][i] - most - log(sum);
            }
            all[r] = most + log(sum);
        }
        for (int r = 0; r < 2; r++)
            for (int wide = 0; wide < 2; wide++) {
                eg_tensor *t = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(1, n), x[r]), wide ? EG_FLOAT64 : EG_FLOAT32);
                CHECK_VALUES(eg_softmax(t), wide ? 1e-14 : 2e-6, soft[r], n);
                CHECK_VALUES(eg_log_softmax(t), wide ? 1e-13 : 4e-6, logs[r], n);
                CHECK_VALUES(eg_reduce_logsumexp(t, .axes = EG_AXES(-1)), wide ? 1e-14 : 2e-6, &all[r], 1);
            }
    }
}

// ---- few elements: kernels that take them all at once give the bits of those for many

// The first of x's 150 copies, all of which f sees at once, beside f of x alone.
static void check_few(eg_tensor *(*f)(eg_tensor *), eg_tensor *x) {
    eg_shape begin = { 0, { 0 } }, copies = { 0, { 0 } }, shape = eg_shape_of(x);
    for (copies.rank = 0; copies.rank < shape.rank; copies.rank++) copies.dims[copies.rank] = copies.rank ? 1 : 150;
    eg_tensor *alone = f(x), *all = f(eg_tile(x, copies));
    begin.rank = eg_rank(alone);
    CHECK_SAME(alone, eg_slice(all, begin, eg_shape_of(alone)), 0);
}
static eg_tensor *few_sums(eg_tensor *x) { return eg_reduce_sum(x, .axes = EG_AXES(1)); }
static eg_tensor *few_means(eg_tensor *x) { return eg_reduce_mean(x, .axes = EG_AXES(1)); }
static eg_tensor *few_products(eg_tensor *x) { return eg_reduce_prod(x, .axes = EG_AXES(1)); }
static eg_tensor *few_most(eg_tensor *x) { return eg_reduce_max(x, .axes = EG_AXES(1)); }
static eg_tensor *few_least(eg_tensor *x) { return eg_reduce_min(x, .axes = EG_AXES(1)); }
static eg_tensor *few_norms(eg_tensor *x) {
    return eg_norm(eg_dtype_of(x) <= EG_FLOAT64 ? x : eg_cast(x, EG_FLOAT32), .axes = EG_AXES(1));
}
static eg_tensor *few_from_the_most(eg_tensor *x) {
    return eg_sub(x, eg_reduce_max(x, .axes = EG_AXES(1), .keepdims = true));
}
static eg_tensor *few_turned(eg_tensor *x) { return eg_mul(eg_reverse(x, EG_AXES(2)), x); }
static eg_tensor *few_by_columns(eg_tensor *x) {
    return eg_maximum(eg_range(eg_dtype_of(x), 0, (double)eg_dim(x, 2), 1), x);
}
static eg_tensor *few_chosen(eg_tensor *x) {
    return eg_where(eg_greater(eg_reduce_max(x, .axes = EG_AXES(1), .keepdims = true), x), x, eg_square(x));
}
static eg_tensor *few_rows(eg_tensor *x) { return eg_softmax(eg_cast(x, EG_FLOAT32)); }
static eg_tensor *few_log_rows(eg_tensor *x) { return eg_log_softmax(eg_cast(x, EG_FLOAT64)); }
TEST(few_elements_have_the_bits_of_many) {
    static eg_tensor *(*const f[])(eg_tensor *) = {
        few_sums, few_means, few_products, few_most, few_least, few_norms, few_from_the_most, few_turned,
        few_by_columns, few_chosen, few_rows, few_log_rows };
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int64_t n = 1; n <= 18; n += n < 9 ? 1 : 3)
            for (int64_t inner = 1; inner <= 9; inner += n < 4 ? 1 : 3)
                for (int64_t outer = inner > 1 ? 1 : 2; outer < 8; outer += 3)
                    for (size_t k = 0; k < sizeof f / sizeof *f; k++) {
                        EG_SCOPE;
                        eg_tensor *x = eg_random_normal(EG_SHAPE(outer, n, inner), .stddev = 3);
                        if (dtypes[d] <= EG_FLOAT64 && n > 5)       // minus zeros, NaN and infinity in some rows
                            x = eg_where(eg_greater(x, 6), n % 2 ? NAN : INFINITY, eg_where(eg_less(x, -3), -0., x));
                        check_few(f[k], eg_cast(dtypes[d] == EG_UINT8 ? eg_abs(x) : x, dtypes[d]));
                    }
}

// ---- gradients of rows: a launch, where nobody sees the ops that they are otherwise

static eg_tensor *row_labels;
static eg_tensor *rows_cross_entropy(eg_tensor *x) {
    return eg_sparse_softmax_cross_entropy_with_logits(row_labels, x);
}
static eg_tensor *mean_cross_entropy(eg_tensor *x) { return eg_reduce_mean(rows_cross_entropy(x)); }
static eg_tensor *rows_softmax(eg_tensor *x) { return eg_softmax(x); }
static eg_tensor *rows_log_softmax(eg_tensor *x) { return eg_log_softmax(x); }
static eg_tensor *row_gradient(eg_tensor *(*f)(eg_tensor *), eg_tensor *x, eg_tensor *weights, bool seen) {
    eg_tape *outer = seen ? eg_tape_begin() : NULL;
    if (outer) eg_tape_watch(outer, x);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = f(x), *g = eg_tape_gradient(tape, eg_rank(y) == eg_rank(weights) ? eg_mul(y, weights) : y, x);
    if (outer) eg_tape_stop(outer);
    return g;
}
TEST(gradients_of_rows_are_those_of_their_ops) {
    static eg_tensor *(*const f[])(eg_tensor *) = { rows_softmax, rows_log_softmax, rows_cross_entropy,
                                                    mean_cross_entropy };
    for (int64_t n = 1; n <= 200; n += n < 20 ? 1 : 19)
        for (int wide = 0; wide < 2; wide++)
            for (int k = 0; k < 4; k++) {
                EG_SCOPE;
                eg_dtype dtype = wide ? EG_FLOAT64 : EG_FLOAT32;
                eg_tensor *x = eg_random_normal(EG_SHAPE(5, n), .stddev = 3, .dtype = dtype),
                          *w = eg_random_normal(k < 2 ? EG_SHAPE(5, n) : EG_SHAPE(5), .dtype = dtype);
                row_labels = eg_random_integers(EG_SHAPE(5), 0, n);
                eg_tensor *at_once = row_gradient(f[k], x, w, false), *op_by_op = row_gradient(f[k], x, w, true);
                CHECK(eg_item(eg_reduce_max(eg_abs(eg_sub(at_once, op_by_op)))) <= (wide ? 1e-14 : 4e-6));
                CHECK(n < 2 || eg_item(eg_reduce_max(eg_abs(at_once))) > 1e-3);
            }
}
TEST(gradients_of_rows_keep_nan_and_infinity) {
    float v[] = { 1, INFINITY, 2, NAN, 0, 1, -INFINITY, 3, 3 };
    eg_tensor *x = eg_from_data(EG_FLOAT32, EG_SHAPE(3, 3), v), *w = eg_ones(EG_FLOAT32, EG_SHAPE(3)),
              *empty = eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3));
    row_labels = eg_constant_of(EG_INT32, EG_SHAPE(3), 0, 1, 2);
    eg_tensor *g = row_gradient(rows_cross_entropy, x, w, false);
    const float *d = eg_data(g);
    for (int i = 0; i < 6; i++) CHECK(isnan(d[i]));
    CHECK(d[6] == 0 && fabsf(d[7] - .5f) < 1e-6f && fabsf(d[8] + .5f) < 1e-6f);
    row_labels = eg_zeros(EG_INT32, EG_SHAPE(0));
    CHECK_INT(eg_dim(row_gradient(rows_cross_entropy, empty, eg_zeros(EG_FLOAT32, EG_SHAPE(0)), false), 0), 0);
    CHECK_INT(eg_size(row_gradient(rows_softmax, empty, eg_ones(EG_FLOAT32, EG_SHAPE(0, 3)), false)), 0);
}

// ---- products of every form: exact, for all numbers are small and whole

static void check_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, eg_dtype dtype) {
    EG_SCOPE;
    static double a[90 * 90], b[90 * 90], c[90 * 90];
    for (int64_t i = 0; i < m * k; i++) a[i] = value_of(i);
    for (int64_t i = 0; i < k * n; i++) b[i] = value_of(i + 3);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double s = 0;
            for (int64_t p = 0; p < k; p++)
                s += (ta ? a[p * m + i] : a[i * k + p]) * (tb ? b[j * k + p] : b[p * n + j]);
            c[i * n + j] = s;
        }
    eg_tensor *x = eg_cast(eg_from_data(EG_FLOAT64, ta ? EG_SHAPE(k, m) : EG_SHAPE(m, k), a), dtype),
              *y = eg_cast(eg_from_data(EG_FLOAT64, tb ? EG_SHAPE(n, k) : EG_SHAPE(k, n), b), dtype);
    CHECK_VALUES(eg_matmul(x, y, .transpose_a = ta, .transpose_b = tb), 0, c, m * n);
}
TEST(products_of_every_form) {
    const int64_t sizes[] = { 1, 2, 3, 7, 16, 33, 64, 81 };
    for (int wide = 0; wide < 2; wide++)
        for (int form = 0; form < 4; form++)
            for (int m = 0; m < 8; m++)
                for (int n = 0; n < 8; n++)
                    for (int k = (m + n) % 2; k < 8; k += 2)
                        check_product(sizes[m], sizes[n], sizes[k], form & 1, form & 2, wide ? EG_FLOAT64 : EG_FLOAT32);
}

// ---- convolutions and pools: windows of one pixel, wider than the picture, with strides, groups and padding, forth
// and back

typedef struct conv { int64_t n, h, w, c, kh, kw, o, stride, across, dilation, groups; bool same; } conv;
static const conv convs[] = {
    { 2, 5, 6, 3, 1, 1, 4, 1, 1, 1, 1, false }, { 2, 5, 6, 3, 1, 1, 4, 2, 2, 1, 1, false },
    { 1, 5, 6, 4, 1, 1, 4, 1, 1, 1, 2, true }, { 2, 5, 6, 3, 1, 2, 4, 1, 1, 1, 1, true },
    { 2, 5, 6, 3, 2, 1, 4, 1, 1, 1, 1, true }, { 1, 7, 5, 2, 3, 3, 6, 1, 1, 1, 1, true },
    { 1, 7, 5, 2, 3, 3, 6, 2, 2, 1, 2, false }, { 1, 9, 9, 2, 3, 3, 3, 1, 1, 3, 1, true },
    { 1, 2, 3, 2, 5, 5, 3, 1, 1, 1, 1, true }, { 1, 1, 1, 3, 1, 1, 2, 1, 1, 1, 1, true },
    { 1, 3, 1, 2, 3, 7, 2, 3, 3, 1, 1, true }, { 1, 4, 4, 2, 3, 3, 4, 4, 4, 2, 1, true },
    { 0, 4, 4, 2, 3, 3, 4, 1, 1, 1, 1, true }, { 1, 6, 7, 1, 3, 3, 8, 1, 1, 1, 1, false } };
static double conv_at(const conv *c, const double *x, const double *f, int64_t oh, int64_t ow, int64_t i) {
    int64_t o = i % c->o, q = i / c->o % ow, p = i / c->o / ow % oh, n = i / c->o / ow / oh, each = c->c / c->groups,
            from = o / (c->o / c->groups) * each;
    int64_t need_h = (oh - 1) * c->stride + (c->kh - 1) * c->dilation + 1 - c->h,
            need_w = (ow - 1) * c->across + (c->kw - 1) * c->dilation + 1 - c->w;
    int64_t top = c->same && need_h > 0 ? need_h / 2 : 0, left = c->same && need_w > 0 ? need_w / 2 : 0;
    double s = 0;
    for (int64_t a = 0; a < c->kh; a++)
        for (int64_t b = 0; b < c->kw; b++) {
            int64_t y = p * c->stride + a * c->dilation - top, z = q * c->across + b * c->dilation - left;
            for (int64_t k = 0; k < each && y >= 0 && y < c->h && z >= 0 && z < c->w; k++)
                s += x[((n * c->h + y) * c->w + z) * c->c + from + k] * f[((a * c->kw + b) * each + k) * c->o + o];
        }
    return s;
}
TEST(convolutions_of_every_form) {
    static double x[1000], f[1000], want[2000];
    for (size_t k = 0; k < sizeof convs / sizeof *convs; k++)
        for (int wide = 0; wide < 2; wide++) {
            EG_SCOPE;
            const conv *c = &convs[k];
            eg_dtype dtype = wide ? EG_FLOAT64 : EG_FLOAT32;
            int64_t each = c->c / c->groups, n_x = c->n * c->h * c->w * c->c, n_f = c->kh * c->kw * each * c->o;
            for (int64_t i = 0; i < n_x; i++) x[i] = value_of(i);
            for (int64_t i = 0; i < n_f; i++) f[i] = value_of(i + 5);
            eg_tensor *in = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->n, c->h, c->w, c->c), x), dtype),
                      *filter = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->kh, c->kw, each, c->o), f), dtype);
            eg_tape *tape = eg_tape_begin_persistent();
            eg_tape_watch(tape, in);
            eg_tape_watch(tape, filter);
            eg_tensor *y = eg_conv2d(in, filter, .strides = { c->stride, c->across }, .dilations = { c->dilation },
                                     .groups = c->groups, .padding = c->same ? EG_SAME : EG_VALID),
                      *s = eg_reduce_sum(eg_mul(y, y));
            REQUIRE(y);
            int64_t oh = eg_dim(y, 1), ow = eg_dim(y, 2), n_y = eg_size(y);
            for (int64_t i = 0; i < n_y; i++) want[i] = conv_at(c, x, f, oh, ow, i);
            CHECK_VALUES(y, 0, want, n_y);
            // sum(y^2)'s gradient along x and along the filter: by Euler twice the sum, for y is linear in each.
            double twice = 2 * eg_item(s);
            CHECK_NEAR(eg_item(eg_reduce_sum(eg_mul(eg_tape_gradient(tape, s, in), in))), twice, 1e-6);
            CHECK_NEAR(eg_item(eg_reduce_sum(eg_mul(eg_tape_gradient(tape, s, filter), filter))), twice, 1e-6);
        }
}
// Many channels, where convolutions read the picture itself: y and both gradients against plain loops, exactly.
static const conv wide_convs[] = {
    { 2, 7, 9, 24, 3, 3, 20, 1, 1, 1, 1, true }, { 2, 9, 8, 24, 3, 3, 20, 2, 2, 1, 1, true },
    { 2, 9, 11, 24, 3, 3, 33, 3, 3, 1, 1, true }, { 1, 9, 9, 32, 1, 1, 16, 2, 2, 1, 1, false },
    { 1, 9, 9, 24, 2, 2, 24, 3, 3, 1, 1, false }, { 1, 9, 9, 24, 3, 3, 16, 1, 1, 2, 1, true },
    { 1, 9, 9, 24, 3, 3, 16, 2, 2, 2, 1, true }, { 1, 6, 7, 48, 3, 3, 48, 1, 1, 1, 2, true },
    { 1, 6, 7, 48, 3, 3, 48, 2, 2, 1, 2, true }, { 1, 5, 6, 96, 3, 3, 8, 1, 1, 1, 1, true },
    { 1, 2, 300, 12, 2, 3, 24, 1, 1, 1, 1, true }, { 1, 2, 140, 6, 2, 4, 5, 3, 3, 1, 1, true },
    { 1, 1, 2, 24, 1, 5, 24, 1, 1, 1, 1, true }, { 3, 1, 1, 25, 3, 3, 26, 1, 1, 1, 1, true },
    { 1, 16, 16, 3, 8, 8, 32, 8, 8, 1, 1, false }, { 1, 11, 13, 3, 7, 7, 24, 2, 2, 1, 1, false },
    { 2, 7, 9, 20, 3, 3, 20, 1, 1, 1, 20, true }, { 2, 7, 9, 37, 3, 2, 37, 2, 2, 1, 37, true },
    { 1, 9, 9, 64, 3, 3, 64, 1, 1, 2, 64, true }, { 1, 9, 9, 3, 2, 2, 3, 3, 3, 1, 3, false },
    { 2, 7, 14, 32, 3, 3, 32, 1, 1, 1, 32, true }, { 1, 7, 20, 16, 3, 3, 16, 1, 2, 1, 16, false },
    { 1, 3, 290, 9, 2, 9, 9, 1, 1, 1, 9, true }, { 1, 7, 9, 8, 3, 3, 16, 1, 1, 1, 8, true },
    { 2, 9, 10, 16, 3, 3, 16, 1, 1, 1, 1, false }, { 8, 3, 4, 32, 3, 3, 32, 2, 3, 1, 1, true },
    { 8, 7, 4, 32, 3, 3, 32, 2, 3, 1, 1, true }, { 8, 3, 4, 16, 3, 3, 32, 2, 3, 1, 1, true },
    { 8, 3, 4, 32, 2, 3, 32, 2, 3, 1, 1, true }, { 1, 14, 15, 12, 3, 2, 7, 1, 1, 1, 1, false },
    { 2, 20, 28, 40, 1, 1, 36, 1, 1, 1, 1, true }, { 2, 20, 28, 40, 1, 1, 36, 1, 1, 1, 2, true },
    // lines of taps beyond the picture are left out
    { 8, 8, 8, 24, 3, 3, 16, 1, 1, 1, 1, true }, { 30, 5, 4, 24, 3, 3, 33, 1, 1, 1, 1, true },
    { 11, 7, 7, 24, 3, 3, 16, 1, 1, 2, 1, true }, { 30, 6, 6, 24, 5, 3, 16, 1, 1, 1, 1, true },
    { 260, 2, 1, 48, 5, 1, 16, 1, 1, 1, 2, true }, { 80, 4, 4, 24, 6, 2, 8, 2, 1, 1, 1, true },
    // the filter's gradient reads x where it lies
    { 2, 9, 10, 48, 3, 3, 20, 1, 1, 1, 1, true }, { 2, 20, 18, 50, 3, 3, 20, 1, 1, 1, 1, true },
    { 1, 12, 9, 48, 3, 3, 16, 1, 1, 2, 1, true }, { 1, 13, 10, 48, 2, 2, 8, 1, 1, 1, 1, true },
    { 1, 3, 300, 48, 3, 3, 8, 1, 1, 1, 1, true }, { 1, 12, 12, 48, 3, 4, 8, 1, 2, 1, 1, true },
    { 1, 9, 10, 48, 7, 7, 4, 1, 1, 1, 1, true }, { 1, 11, 10, 48, 3, 3, 16, 1, 1, 2, 1, false },
    { 2, 11, 12, 48, 3, 3, 8, 1, 3, 1, 1, false }, { 1, 5, 16, 48, 9, 9, 4, 1, 1, 1, 1, true } };
enum { MOST = 45000 };
// Adds what g, the upstream gradient of y, gives to the gradients of x and of the filter.
static void conv_back(const conv *c, int64_t oh, int64_t ow, const double *g, const double *x, const double *f,
                      double *dx, double *df) {
    const int64_t each = c->c / c->groups, n_y = c->n * oh * ow * c->o,
                  need_h = (oh - 1) * c->stride + (c->kh - 1) * c->dilation + 1 - c->h,
                  need_w = (ow - 1) * c->across + (c->kw - 1) * c->dilation + 1 - c->w,
                  top = c->same && need_h > 0 ? need_h / 2 : 0, left = c->same && need_w > 0 ? need_w / 2 : 0;
    for (int64_t i = 0; i < n_y; i++) {
        int64_t o = i % c->o, b = i / c->o % ow, a = i / c->o / ow % oh, n = i / c->o / ow / oh,
                from = o / (c->o / c->groups) * each;
        for (int64_t t = 0; t < c->kh * c->kw; t++) {
            int64_t r = a * c->stride + t / c->kw * c->dilation - top,
                    s = b * c->across + t % c->kw * c->dilation - left;
            for (int64_t k = 0; k < each && r >= 0 && r < c->h && s >= 0 && s < c->w; k++) {
                int64_t at = ((n * c->h + r) * c->w + s) * c->c + from + k, tap = (t * each + k) * c->o + o;
                dx[at] += g[i] * f[tap];
                df[tap] += g[i] * x[at];
            }
        }
    }
}
TEST(convolutions_with_many_channels) {
    static double x[MOST], f[MOST], g[MOST], want[MOST], dx[MOST], df[MOST];
    for (size_t q = 0; q < sizeof wide_convs / sizeof *wide_convs; q++)
        for (int wide = 0; wide < 2; wide++) {
            EG_SCOPE;
            const conv *c = &wide_convs[q];
            eg_dtype dtype = wide ? EG_FLOAT64 : EG_FLOAT32;
            int64_t each = c->c / c->groups, n_x = c->n * c->h * c->w * c->c, n_f = c->kh * c->kw * each * c->o;
            REQUIRE(n_x <= MOST && n_f <= MOST);
            for (int64_t i = 0; i < n_x; i++) { x[i] = value_of(i); dx[i] = 0; }
            for (int64_t i = 0; i < n_f; i++) { f[i] = value_of(i + 5); df[i] = 0; }
            eg_tensor *in = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->n, c->h, c->w, c->c), x), dtype),
                      *filter = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->kh, c->kw, each, c->o), f), dtype);
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, in);
            eg_tape_watch(tape, filter);
            eg_tensor *y = eg_conv2d(in, filter, .strides = { c->stride, c->across }, .dilations = { c->dilation },
                                     .groups = c->groups, .padding = c->same ? EG_SAME : EG_VALID), *d[2];
            REQUIRE(y);
            int64_t oh = eg_dim(y, 1), ow = eg_dim(y, 2), n_y = eg_size(y);
            REQUIRE(n_y <= MOST);
            for (int64_t i = 0; i < n_y; i++) { want[i] = conv_at(c, x, f, oh, ow, i); g[i] = value_of(i + 7); }
            CHECK_VALUES(y, 0, want, n_y);
            conv_back(c, oh, ow, g, x, f, dx, df);
            eg_tensor *up = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->n, oh, ow, c->o), g), dtype);
            REQUIRE(eg_tape_gradients_from(tape, &y, 1, &up, (eg_tensor *[]){in, filter}, 2, d));
            CHECK_VALUES(d[0], 0, dx, n_x);
            CHECK_VALUES(d[1], 0, df, n_f);
        }
}
// One element of x or of the filter is infinite or a NaN: those elements of the gradients that do not depend on it are
// what they are without it.
static void check_gradient_beside(eg_tensor *got, const double *want, int64_t n) {
    const double *y = (const double *)eg_data(eg_cast(got, EG_FLOAT64));
    int64_t wrong = 0;
    REQUIRE(y && eg_size(got) == n);
    for (int64_t i = 0; i < n; i++) wrong += want[i] - want[i] == 0 ? y[i] != want[i] : y[i] - y[i] == 0;
    CHECK_INT(wrong, 0);
}
static void check_conv_beside(const conv *c, eg_dtype dtype, int64_t pixel, int64_t tap, double odd) {
    EG_SCOPE;
    static double x[MOST], f[MOST], g[MOST], dx[MOST], df[MOST];
    int64_t each = c->c / c->groups, n_x = c->n * c->h * c->w * c->c, n_f = c->kh * c->kw * each * c->o;
    for (int64_t i = 0; i < n_x; i++) { x[i] = value_of(i); dx[i] = 0; }
    for (int64_t i = 0; i < n_f; i++) { f[i] = value_of(i + 5); df[i] = 0; }
    if (pixel >= 0) x[pixel * c->c + pixel % c->c] = odd;
    else f[tap] = odd;
    eg_tensor *in = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->n, c->h, c->w, c->c), x), dtype),
              *filter = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->kh, c->kw, each, c->o), f), dtype), *d[2];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in);
    eg_tape_watch(tape, filter);
    eg_tensor *y = eg_conv2d(in, filter, .strides = { c->stride, c->across }, .dilations = { c->dilation },
                             .groups = c->groups, .padding = c->same ? EG_SAME : EG_VALID);
    REQUIRE(y);
    const int64_t oh = eg_dim(y, 1), ow = eg_dim(y, 2), n_y = eg_size(y);
    for (int64_t i = 0; i < n_y; i++) g[i] = value_of(i + 7);
    conv_back(c, oh, ow, g, x, f, dx, df);
    eg_tensor *up = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(c->n, oh, ow, c->o), g), dtype);
    REQUIRE(eg_tape_gradients_from(tape, &y, 1, &up, (eg_tensor *[]){in, filter}, 2, d));
    if (pixel < 0) check_gradient_beside(d[0], dx, n_x);
    else check_gradient_beside(d[1], df, n_f);
}
TEST(convolutions_beside_what_is_not_finite) {
    for (size_t q = 0; q < sizeof wide_convs / sizeof *wide_convs; q += test_share > 1 ? 3 : 1)
        for (int odd = 0; odd < 2; odd++) {
            const conv *c = &wide_convs[q];
            const int64_t row = (c->h / 2) * c->w, taps = c->kh * c->kw, tap = (taps - 1) * (c->c / c->groups) * c->o;
            const int64_t pixels[] = { row, row + 1 < row + c->w ? row + 1 : row, row + c->w - 1,
                                       row + (c->w > 2 ? c->w - 2 : 0), row + c->w / 2 };
            const eg_dtype dtype = q % 2 ? EG_FLOAT64 : EG_FLOAT32;
            for (int i = 0; i < 5; i++)
                check_conv_beside(c, dtype, pixels[i], 0, odd ? (double)NAN : (double)INFINITY);
#ifdef TEST_CUDA            // where dx multiplies the filter by zeros in place of dy's elements beyond its borders
            (void)tap;
#else
            check_conv_beside(c, dtype, -1, 0, odd ? (double)NAN : (double)INFINITY);
            check_conv_beside(c, dtype, -1, tap, odd ? (double)NAN : (double)INFINITY);
#endif
        }
}
TEST(pools_of_every_form) {
    static double x[4000], most[4000], mean[4000], g[4000], dx[4000];
    for (int wide = 0; wide < 2; wide++)
        for (int64_t size = 1; size <= 4; size++)
            for (int64_t stride = 1; stride <= 3; stride++)
                for (int same = 0; same < 2; same++)
                    for (int64_t channels = 1; channels <= 37; channels += 12) {
                        EG_SCOPE;
                        enum { H = 6, W = 8 };
                        for (int64_t i = 0; i < H * W * channels; i++) x[i] = value_of(i * 3), dx[i] = 0;
                        eg_tensor *in = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(1, H, W, channels), x),
                                                wide ? EG_FLOAT64 : EG_FLOAT32), *back;
                        eg_tape *tape = eg_tape_begin();
                        eg_tape_watch(tape, in);
                        eg_tensor *y = eg_max_pool2d(in, .size = { size }, .strides = { stride },
                                                     .padding = same ? EG_SAME : EG_VALID);
                        eg_tensor *z = eg_avg_pool2d(in, .size = { size }, .strides = { stride },
                                                     .padding = same ? EG_SAME : EG_VALID);
                        int64_t oh = eg_dim(y, 1), ow = eg_dim(y, 2), need_h = (oh - 1) * stride + size - H,
                                need_w = (ow - 1) * stride + size - W;
                        int64_t top = same && need_h > 0 ? need_h / 2 : 0, left = same && need_w > 0 ? need_w / 2 : 0;
                        for (int64_t i = 0; i < oh * ow * channels; i++) {
                            int64_t c = i % channels, q = i / channels % ow, p = i / channels / ow, n = 0;
                            double sum = 0, top_value = -1e9;
                            for (int64_t a = p * stride - top; a < p * stride - top + size; a++)
                                for (int64_t b = q * stride - left; b < q * stride - left + size; b++) {
                                    if (a < 0 || a >= H || b < 0 || b >= W) continue;
                                    double v = x[(a * W + b) * channels + c];
                                    top_value = fmax(top_value, v);
                                    sum += v;
                                    n++;
                                }
                            most[i] = top_value;
                            mean[i] = sum / (double)n;
                            g[i] = value_of(i * 5);
                            for (int64_t a = p * stride - top; a < p * stride - top + size; a++)
                                for (int64_t b = q * stride - left; b < q * stride - left + size; b++)
                                    if (a >= 0 && a < H && b >= 0 && b < W)
                                        dx[(a * W + b) * channels + c] += g[i] / (double)n;
                        }
                        CHECK_VALUES(y, 0, most, oh * ow * channels);
                        CHECK_VALUES(z, wide ? 1e-14 : 1e-6, mean, oh * ow * channels);
                        eg_tensor *up = eg_cast(eg_from_data(EG_FLOAT64, eg_shape_of(z), g), (eg_dtype)eg_dtype_of(z));
                        REQUIRE(eg_tape_gradients_from(tape, &z, 1, &up, &in, 1, &back));
                        CHECK_VALUES(back, wide ? 1e-14 : 1e-6, dx, H * W * channels);
                    }
}

// ---- windows over depth, height and width, as no public op has them yet: the kernels themselves against plain loops

static void windows_make(egi_windows *w, const int64_t *in, const int64_t *taps, const int64_t *stride,
                         const int64_t *dilation) {
    for (int i = 0; i < 3; i++) {
        egi_window a = { in[i], (in[i] + stride[i] - 1) / stride[i], taps[i], stride[i], dilation[i], 0 };
        int64_t pad = (a.out - 1) * a.stride + (a.taps - 1) * a.dilation + 1 - a.in;
        a.before = pad > 0 ? pad / 2 : 0;
        w->axis[i] = a;
    }
}
// The pixel of x that tap k of output o meets, or -1 in the padding; o and k are counted in rows.
static int64_t windows_pixel(const egi_windows *w, int64_t o, int64_t k) {
    int64_t pixel = 0, at[3];
    for (int i = 2; i >= 0; i--) {
        const egi_window *a = &w->axis[i];
        at[i] = o % a->out * a->stride - a->before + k % a->taps * a->dilation;
        o /= a->out;
        k /= a->taps;
        if (at[i] < 0 || at[i] >= a->in) return -1;
    }
    for (int i = 0; i < 3; i++) pixel = pixel * w->axis[i].in + at[i];
    return pixel;
}
static int64_t windows_count(const egi_windows *w, char what) {
    int64_t n = 1;
    for (int i = 0; i < 3; i++) n *= what == 'x' ? w->axis[i].in : what == 'f' ? w->axis[i].taps : w->axis[i].out;
    return n;
}
static bool windows_run(egi_kernel kernel, eg_tensor *a, eg_tensor *b, eg_tensor *out, const void *parameters) {
    eg_backend *on = a->buffer->backend;
    egi_args args;
    memset(&args, 0, sizeof args);
    args.op = egi_op_row(EGI_OP_conv2d);
    args.in[0] = a;
    args.in[1] = b;
    args.out[0] = out;
    args.parameters = parameters;
    egi_backend_cpu();                                   // fills the CPU's table
    return on->kernel[kernel](on, &args);
}
static bool windows_on_gpu(const eg_tensor *x) { return strncmp(x->buffer->backend->name, "gpu", 3) == 0; }
static void check_conv_of_three_axes(const egi_windows *w, eg_dtype dtype) {
    EG_SCOPE;
    enum { MOST_OF_THREE = 21000 };
    static double x[MOST_OF_THREE], f[MOST_OF_THREE], y[MOST_OF_THREE], dx[MOST_OF_THREE], df[MOST_OF_THREE];
    int64_t cg = w->c / w->groups, og = w->oc / w->groups, pixels = windows_count(w, 'x'), taps = windows_count(w, 'f'),
            outs = windows_count(w, 'y');
    int64_t n_x = w->n * pixels * w->c, n_f = taps * cg * w->oc, n_y = w->n * outs * w->oc;
    REQUIRE(n_x <= MOST_OF_THREE && n_f <= MOST_OF_THREE && n_y <= MOST_OF_THREE);
    for (int64_t i = 0; i < n_x; i++) { x[i] = value_of(i); dx[i] = 0; }
    for (int64_t i = 0; i < n_f; i++) { f[i] = value_of(i + 7); df[i] = 0; }
    for (int64_t i = 0; i < n_y; i++) y[i] = 0;
    for (int back = 0; back < 2; back++)                // y first: it is also the upstream gradient of the others
        for (int64_t image = 0; image < w->n; image++)
            for (int64_t o = 0; o < outs; o++)
                for (int64_t k = 0; k < taps; k++) {
                    int64_t pixel = windows_pixel(w, o, k);
                    for (int64_t c = 0; c < w->oc && pixel >= 0; c++)
                        for (int64_t q = 0; q < cg; q++) {
                            double *px = &x[(image * pixels + pixel) * w->c + c / og * cg + q],
                                   *pf = &f[(k * cg + q) * w->oc + c];
                            double *py = &y[(image * outs + o) * w->oc + c];
                            if (!back) { *py += *px * *pf; continue; }
                            dx[px - x] += *py * *pf;
                            df[pf - f] += *py * *px;
                        }
                }
    eg_tensor *tx = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n_x), x), dtype),
              *tf = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n_f), f), dtype);
    eg_tensor *ty = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n_y), y), dtype), *to[3];
    for (int kind = 0; kind < 3; kind++) {
        egi_conv_parameters p = { (egi_conv_kind)kind, *w, EG_PRECISION_FLOAT32 };
        to[kind] = eg_zeros(dtype, kind == EGI_CONV_FORWARD ? EG_SHAPE(n_y)
                                   : kind == EGI_CONV_INPUT ? EG_SHAPE(n_x)
                                   : EG_SHAPE(n_f));
        eg_tensor *a = kind == EGI_CONV_INPUT ? ty : tx, *b = kind == EGI_CONV_FILTER ? ty : tf;
        if (windows_on_gpu(tx))
            CHECK_ERROR(windows_run(EGI_CONV, a, b, to[kind], &p), EG_ERROR_DEVICE, "no kernel for three axes");
        else CHECK(windows_run(EGI_CONV, a, b, to[kind], &p));
    }
    if (windows_on_gpu(tx)) return;
    CHECK_VALUES(to[EGI_CONV_FORWARD], 0, y, n_y);       // small whole numbers: exact
    CHECK_VALUES(to[EGI_CONV_INPUT], 0, dx, n_x);
    CHECK_VALUES(to[EGI_CONV_FILTER], 0, df, n_f);
}
TEST(convolutions_of_three_axes) {
    const int64_t in[] = { 3, 4, 5 }, in_of_many[] = { 3, 8, 9 }, taps[][3] = { { 2, 3, 2 }, { 1, 1, 1 }, { 3, 1, 2 } },
                  stride[][3] = { { 1, 1, 1 }, { 2, 1, 3 } };
    const int64_t dilation[][3] = { { 1, 1, 1 }, { 1, 2, 2 } },
                  forms[][3] = { { 1, 2, 1 }, { 5, 3, 1 }, { 4, 4, 2 }, { 3, 3, 3 }, { 2, 4, 2 }, { 48, 8, 1 } };
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < 3 * 2 * 2 * 6; i++) {
            const int64_t *form = forms[i / 12];
            egi_windows w = { 2, form[0], form[1], form[2], { { 0, 0, 0, 0, 0, 0 } }, 0 };
            windows_make(&w, form[0] == 48 ? in_of_many : in, taps[i % 3], stride[i / 3 % 2], dilation[i / 6 % 2]);
            check_conv_of_three_axes(&w, wide ? EG_FLOAT64 : EG_FLOAT32);
        }
}
static void check_pool_of_three_axes(const egi_windows *w, eg_dtype dtype) {
    EG_SCOPE;
    static double x[4000], mean[4000], back[4000], most[4000];
    int64_t pixels = windows_count(w, 'x'), taps = windows_count(w, 'f'), outs = windows_count(w, 'y'),
            n_x = w->n * pixels * w->c, n_y = w->n * outs * w->c;
    REQUIRE(n_x <= 4000 && n_y <= 4000);
    for (int64_t i = 0; i < n_x; i++) { x[i] = value_of(i * 3); back[i] = 0; }
    for (int64_t i = 0; i < n_y; i++) {
        int64_t image = i / w->c / outs, o = i / w->c % outs, c = i % w->c, best = -1, n = 0;
        double sum = 0;
        for (int64_t k = 0; k < taps; k++) {
            int64_t pixel = windows_pixel(w, o, k), at = (image * pixels + pixel) * w->c + c;
            if (pixel < 0) continue;
            if (best < 0 || x[at] > x[best]) best = at;
            sum += x[at];
            n++;
        }
        most[i] = (double)best;
        mean[i] = sum / (double)n;
        for (int64_t k = 0; k < taps; k++) {            // the gradient for an upstream gradient of value_of(i)
            int64_t pixel = windows_pixel(w, o, k);
            if (pixel >= 0) back[(image * pixels + pixel) * w->c + c] += value_of(i) / (double)n;
        }
    }
    double *g = mean + 2000;
    REQUIRE(n_y <= 2000);
    for (int64_t i = 0; i < n_y; i++) g[i] = value_of(i);
    eg_tensor *tx = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n_x), x), dtype),
              *tg = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n_y), g), dtype);
    eg_tensor *to[] = { eg_zeros(EG_INT64, EG_SHAPE(n_y)), eg_zeros(dtype, EG_SHAPE(n_y)),
                        eg_zeros(dtype, EG_SHAPE(n_x)) };
    for (int kind = 0; kind < 3; kind++) {
        egi_pool_parameters p = { (egi_pool_kind)kind, *w };
        eg_tensor *a = kind == EGI_POOL_AVG_GRAD ? tg : tx;
        if (windows_on_gpu(tx))
            CHECK_ERROR(windows_run(EGI_POOL, a, NULL, to[kind], &p), EG_ERROR_DEVICE, "no kernel for three axes");
        else CHECK(windows_run(EGI_POOL, a, NULL, to[kind], &p));
    }
    if (windows_on_gpu(tx)) return;
    CHECK_VALUES(to[EGI_POOL_MAX_INDEX], 0, most, n_y);
    CHECK_VALUES(to[EGI_POOL_AVG], dtype == EG_FLOAT64 ? 1e-14 : 2e-6, mean, n_y);
    CHECK_VALUES(to[EGI_POOL_AVG_GRAD], dtype == EG_FLOAT64 ? 1e-13 : 1e-5, back, n_x);
}
TEST(pools_of_three_axes) {
    const int64_t in[] = { 3, 4, 5 }, taps[][3] = { { 2, 3, 2 }, { 3, 1, 2 } },
                  stride[][3] = { { 1, 1, 1 }, { 2, 1, 3 } }, dilation[] = { 1, 1, 1 };
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < 2 * 2 * 3; i++) {
            const int64_t c = i / 4 == 0 ? 1 : i / 4 == 1 ? 3 : 16;
            egi_windows w = { 2, c, c, c, { { 0, 0, 0, 0, 0, 0 } }, 0 };
            windows_make(&w, in, taps[i % 2], stride[i / 2 % 2], dilation);
            check_pool_of_three_axes(&w, wide ? EG_FLOAT64 : EG_FLOAT32);
        }
}
