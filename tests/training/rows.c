// The kernels that go along rows: softmax, cross entropy and the normalizations, held against plain loops in double at
// all lengths from 1 to 130 and at 999 to 1001, and their gradients against differences.
#include "test.h"
#include <math.h>

enum { MOST = 1 << 18 };

static const int64_t *lengths(int i) {
    static int64_t n;
    n = i < 130 ? i + 1 : 999 + i - 130;
    return i < 133 ? &n : NULL;
}
// Numbers around 0 that no two elements share.
static void fill(double *v, int64_t n, double seed) {
    for (int64_t i = 0; i < n; i++) v[i] = 2 * sin(seed + 1.7 * (double)i) + cos(0.3 * (double)(i * i % 97));
}
static eg_tensor *tensor(const double *v, eg_dtype dtype, eg_shape shape) {
    return eg_cast(eg_from_data(EG_FLOAT64, shape, v), dtype);
}
// How far x is from v, relative to the largest |v|, or to 1.
static double distance(eg_tensor *x, const double *v) {
    const double *got = (const double *)eg_data(eg_cast(x, EG_FLOAT64));
    double largest = 1, worst = 0;
    for (int64_t i = 0; got && i < eg_size(x); i++) largest = fmax(largest, fabs(v[i]));
    for (int64_t i = 0; got && i < eg_size(x); i++) {
        const double d = fabs(got[i] - v[i]) / largest;
        if (!(d <= worst)) worst = isnan(d) ? HUGE_VAL : d;
    }
    return got ? worst : HUGE_VAL;
}
static double bound(eg_dtype dtype) { return dtype == EG_FLOAT32 ? 3e-6 : 1e-12; }

// ---------------------------------------------------------------- softmax and cross entropy

static double x[MOST], g[MOST], want_y[MOST], want_dx[MOST], want_dgamma[MOST], want_dbeta[MOST], gamma_of[MOST],
              beta_of[MOST];

static void softmax_by_loops(int64_t rows, int64_t n, bool logs) {
    for (int64_t r = 0; r < rows; r++) {
        const double *a = x + r * n, *b = g + r * n;
        double top = -HUGE_VAL, sum = 0, dot = 0;
        for (int64_t i = 0; i < n; i++) top = fmax(top, a[i]);
        for (int64_t i = 0; i < n; i++) sum += exp(a[i] - top);
        for (int64_t i = 0; i < n; i++) {
            const double share = exp(a[i] - top) / sum;
            want_y[r * n + i] = logs ? a[i] - top - log(sum) : share;
            dot += b[i] * (logs ? 1 : share);
        }
        for (int64_t i = 0; i < n; i++) {
            const double share = exp(a[i] - top) / sum;
            want_dx[r * n + i] = logs ? b[i] - share * dot : share * (b[i] - dot);
        }
    }
}
TEST(softmax_at_all_lengths) {
    const int64_t rows = 3;
    for (int i = 0; lengths(i); i++)
        for (int kind = 0; kind < 4; kind++) {
            EG_SCOPE;
            const int64_t n = *lengths(i);
            const eg_dtype dtype = kind & 1 ? EG_FLOAT64 : EG_FLOAT32;
            fill(x, rows * n, 0.1);
            fill(g, rows * n, 0.7);
            softmax_by_loops(rows, n, kind > 1);
            eg_tensor *in = tensor(x, dtype, EG_SHAPE(rows, n)), *up = tensor(g, dtype, EG_SHAPE(rows, n)), *dx;
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, in);
            eg_tensor *y = kind > 1 ? eg_log_softmax(in) : eg_softmax(in);
            REQUIRE(eg_tape_gradients_from(tape, &y, 1, &up, &in, 1, &dx));
            CHECK(distance(y, want_y) < bound(dtype));
            CHECK(distance(dx, want_dx) < 2 * bound(dtype));
        }
}
TEST(cross_entropy_at_all_lengths) {
    const int64_t rows = 3;
    for (int i = 0; lengths(i); i++)
        for (int kind = 0; kind < 2; kind++) {
            EG_SCOPE;
            const int64_t n = *lengths(i);
            const eg_dtype dtype = kind ? EG_FLOAT64 : EG_FLOAT32;
            double loss[3];
            fill(x, rows * n, 0.4);
            for (int64_t r = 0; r < rows; r++) g[r] = 0;
            memset(g, 0, sizeof g);
            softmax_by_loops(rows, n, true);
            int64_t label[3] = {0, n / 2, n - 1};
            for (int64_t r = 0; r < rows; r++) {
                loss[r] = -want_y[r * n + label[r]];
                for (int64_t j = 0; j < n; j++)
                    want_dx[r * n + j] = (double)(r + 1) * (exp(want_y[r * n + j]) - (j == label[r]));
            }
            eg_tensor *in = tensor(x, dtype, EG_SHAPE(rows, n)), *dx,
                      *up = eg_cast(eg_constant(EG_SHAPE(3), 1, 2, 3), dtype);
            eg_tensor *labels = eg_from_data(EG_INT64, EG_SHAPE(3), label);
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, in);
            eg_tensor *y = eg_sparse_softmax_cross_entropy_with_logits(labels, in);
            REQUIRE(eg_tape_gradients_from(tape, &y, 1, &up, &in, 1, &dx));
            CHECK(distance(y, loss) < bound(dtype));
            CHECK(distance(dx, want_dx) < 2 * bound(dtype));
        }
}
// A row with a NaN or +inf, or of -inf alone, is NaN everywhere, and its neighbours are not touched; -inf is a share of
// 0.
TEST(softmax_of_special_values) {
    for (int64_t n = 1; n <= 300; n += n < 79 ? 13 : 221)
        for (int64_t at = 0; at < n; at += n < 80 ? 5 : 11)
            for (int what = 0; what < 4; what++) {
                EG_SCOPE;
                fill(x, 3 * n, 0.2);
                x[n + at] = what == 0 ? NAN : what == 1 ? INFINITY : -INFINITY;
                for (int64_t i = 0; what == 3 && i < n; i++) x[n + i] = -INFINITY;
                eg_tensor *y = eg_softmax(tensor(x, EG_FLOAT32, EG_SHAPE(3, n)));
                const float *v = (const float *)eg_data(y);
                double sum = 0;
                for (int64_t i = 0; i < n; i++) {
                    CHECK(v[i] == v[i] && v[2 * n + i] == v[2 * n + i]);
                    if (what != 2 || n == 1) CHECK(v[n + i] != v[n + i]);
                    else sum += (double)v[n + i];
                }
                if (what == 2 && n > 1) { CHECK_NEAR(sum, 1, 1e-6); CHECK(v[n + at] == 0); }
            }
}

// ---------------------------------------------------------------- normalizations

// x as (examples, positions, groups, channels, inner).
typedef struct form { int64_t n, s, groups, c, inner; bool centered; } form;
static int64_t place(const form *f, int64_t e, int64_t s, int64_t q, int64_t c, int64_t i) {
    return (((e * f->s + s) * f->groups + q) * f->c + c) * f->inner + i;
}
#define EACH_OF_GROUP(f, s_, c_, i_) \
    for (int64_t s_ = 0; s_ < (f)->s; s_++) \
        for (int64_t c_ = 0; c_ < (f)->c; c_++) for (int64_t i_ = 0; i_ < (f)->inner; i_++)
// Returns how much an error in the mean grows: the largest 1 / (variance + epsilon), at least 1.
static double normalize_by_loops(const form *f, double epsilon) {
    double grows = 1;
    const double m = (double)(f->s * f->c * f->inner);
    memset(want_dgamma, 0, (size_t)(f->groups * f->c) * sizeof *want_dgamma);
    memset(want_dbeta, 0, (size_t)(f->groups * f->c) * sizeof *want_dbeta);
    for (int64_t e = 0; e < f->n; e++)
        for (int64_t q = 0; q < f->groups; q++) {
            double mean = 0, variance = 0, even = 0, along = 0;
            EACH_OF_GROUP(f, s, c, i) mean += f->centered ? x[place(f, e, s, q, c, i)] / m : 0;
            EACH_OF_GROUP(f, s, c, i) variance += pow(x[place(f, e, s, q, c, i)] - mean, 2) / m;
            const double r = 1 / sqrt(variance + epsilon);
            grows = fmax(grows, r * r);
            EACH_OF_GROUP(f, s, c, i) {
                const int64_t at = place(f, e, s, q, c, i), k = q * f->c + c;
                const double n = (x[at] - mean) * r, h = g[at] * gamma_of[k];
                want_y[at] = n * gamma_of[k] + beta_of[k];
                want_dgamma[k] += g[at] * n;
                want_dbeta[k] += g[at];
                even += f->centered ? h / m : 0;
                along += h * n / m;
            }
            EACH_OF_GROUP(f, s, c, i) {
                const int64_t at = place(f, e, s, q, c, i);
                want_dx[at] = r * (g[at] * gamma_of[q * f->c + c] - even - (x[at] - mean) * r * along);
            }
        }
    return grows;
}
// A layer, which takes the reference, on x of the shape: its result and gradients against loops.
static void normalize(eg_layer *layer, eg_shape shape, form f, eg_dtype dtype, bool transposed) {
    EG_SCOPE;
    const int64_t size = f.n * f.s * f.groups * f.c * f.inner, features = f.groups * f.c;
    eg_tensor *w[4], *sources[3], *grads[3];
    fill(x, size, 0.3);
    // a mean far from 0; float32 holds the same numbers
    for (int64_t i = 0; i < size; i++) x[i] = (double)(float)(x[i] + 5);
    fill(g, size, 0.9);
    fill(gamma_of, features, 2);
    fill(beta_of, features, 3);
    if (!f.centered) memset(beta_of, 0, (size_t)features * sizeof *beta_of);
    const double near = bound(dtype) * normalize_by_loops(&f, 1e-3);
    eg_tensor *in = tensor(x, dtype, shape), *up = tensor(g, dtype, shape);
    // the same values, other strides
    if (transposed) in = eg_transpose(eg_reshape(eg_transpose(in), eg_shape_of(eg_transpose(in))));
    REQUIRE(eg_layer_build(layer, shape));
    const int n = eg_layer_trainable_weights(layer, w, 4);
    eg_assign(w[0], tensor(gamma_of, dtype, EG_SHAPE(features)));
    if (n > 1) eg_assign(w[1], tensor(beta_of, dtype, EG_SHAPE(features)));
    sources[0] = in;
    for (int i = 0; i < n; i++) sources[1 + i] = w[i];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in);
    eg_tensor *y = eg_call(layer, in, .training = true);
    REQUIRE(eg_tape_gradients_from(tape, &y, 1, &up, sources, 1 + n, grads));
    CHECK(distance(y, want_y) < 2 * near);
    CHECK(distance(grads[0], want_dx) < 4 * near);
    CHECK(distance(grads[1], want_dgamma) < 4 * near);
    if (n > 1) CHECK(distance(grads[2], want_dbeta) < 4 * near);
    eg_layer_release(layer);
}
TEST(normalizations_of_rows_at_all_lengths) {
    for (int i = 0; lengths(i); i++)
        for (int kind = 0; kind < 4; kind++) {
            const int64_t n = *lengths(i);
            const eg_dtype dtype = kind & 1 ? EG_FLOAT64 : EG_FLOAT32;
            normalize(kind & 2 ? eg_layer_rms_normalization(.epsilon = 1e-3, .dtype = dtype)
                      : eg_layer_layer_normalization(.epsilon = 1e-3, .dtype = dtype), EG_SHAPE(5, n),
                      (form){5, 1, 1, n, 1, !(kind & 2)}, dtype, i % 7 == 3);
        }
}
TEST(normalizations_over_the_batch) {
    static const int64_t rows[] = {2, 3, 31, 32, 33, 64, 67};
    for (int64_t c = 1; c < 80; c++)
        for (int i = 0; i < 7; i++) {
            const eg_dtype dtype = (c + i) % 3 ? EG_FLOAT32 : EG_FLOAT64;
            const int64_t n = rows[i];
            normalize(eg_layer_batch_normalization(.epsilon = 1e-3, .dtype = dtype), EG_SHAPE(n, c),
                      (form){1, n, c, 1, 1, true}, dtype, i == 2);
            if (c < 14)
                normalize(eg_layer_batch_normalization(.axis = 1, .epsilon = 1e-3, .dtype = dtype), EG_SHAPE(3, c, n),
                          (form){1, 3, c, 1, n, true}, dtype, i == 3);
        }
}
TEST(normalizations_of_groups) {
    static const int64_t channels[] = {1, 2, 3, 5, 8, 31, 32, 33, 40};
    for (int64_t groups = 1; groups < 10; groups++)
        for (int i = 0; i < 9; i++)
            for (int side = 2; side < 5; side += 2) {
                const eg_dtype dtype = (groups + i) % 3 ? EG_FLOAT32 : EG_FLOAT64;
                const int64_t c = channels[i], n = side == 2 ? 2 : 1;
                normalize(eg_layer_group_normalization(.groups = groups, .epsilon = 1e-3, .dtype = dtype),
                          EG_SHAPE(n, side, 3, groups * c), (form){n, 3 * side, groups, c, 1, true}, dtype, i == 4);
                normalize(eg_layer_group_normalization(.groups = groups, .axis = 1, .epsilon = 1e-3, .dtype = dtype),
                          EG_SHAPE(n, groups * c, side, 3), (form){n, 1, groups, c, 3 * side, true}, dtype, i == 5);
            }
    for (int64_t c = 1; c < 40; c += 3)
        normalize(eg_layer_group_normalization(.groups = -1, .epsilon = 1e-3), EG_SHAPE(2, 5, 3, c),
                  (form){2, 15, c, 1, 1, true}, EG_FLOAT32, false);
}
// Sizes at which the kernel is divided: into parts of the examples, or of the positions of few.
TEST(normalizations_in_parts) {
    static const int64_t channels[] = {1, 3, 64, 1000};
    for (int i = 0; i < 8; i++) {
        const eg_dtype dtype = i & 1 ? EG_FLOAT64 : EG_FLOAT32;
        const int64_t c = channels[i / 2], n = 200000 / c + 7;
        normalize(eg_layer_batch_normalization(.epsilon = 1e-3, .dtype = dtype), EG_SHAPE(n, c),
                  (form){1, n, c, 1, 1, true}, dtype, false);
        normalize(eg_layer_layer_normalization(.epsilon = 1e-3, .dtype = dtype), EG_SHAPE(n, c),
                  (form){n, 1, 1, c, 1, true}, dtype, false);
        normalize(eg_layer_rms_normalization(.epsilon = 1e-3, .dtype = dtype), EG_SHAPE(n, c),
                  (form){n, 1, 1, c, 1, false}, dtype, false);
    }
    for (int i = 0; i < 8; i++) {
        const eg_dtype dtype = i & 1 ? EG_FLOAT64 : EG_FLOAT32;
        const int64_t n = i & 2 ? 9 : 2, c = i & 4 ? 33 : 2, m = 200000 / n / c / 3 + 5;
        normalize(eg_layer_group_normalization(.groups = 3, .epsilon = 1e-3, .dtype = dtype), EG_SHAPE(n, m, 3 * c),
                  (form){n, m, 3, c, 1, true}, dtype, false);
        normalize(eg_layer_group_normalization(.groups = 3, .axis = 1, .epsilon = 1e-3, .dtype = dtype),
                  EG_SHAPE(n, 3 * c, m), (form){n, 1, 3, c, m, true}, dtype, false);
    }
    normalize(eg_layer_batch_normalization(.axis = 1, .epsilon = 1e-3), EG_SHAPE(67, 3, 1000),
              (form){1, 67, 3, 1, 1000, true}, EG_FLOAT32, false);
}
// The layers without weights, and what a batch leaves in the moving means.
TEST(normalizations_without_weights) {
    EG_SCOPE;
    fill(x, 120, 0.5);
    eg_tensor *in = tensor(x, EG_FLOAT32, EG_SHAPE(4, 30));
    eg_layer *plain = eg_layer_layer_normalization(.no_scale = true, .no_center = true),
             *whole = eg_layer_layer_normalization();
    CHECK_SAME(eg_call(plain, in), eg_call(whole, in), 1e-6);
    eg_layer_release(plain);
    eg_layer_release(whole);
    eg_layer *bare[] = { eg_layer_layer_normalization(.no_scale = true, .no_center = true),
                         eg_layer_rms_normalization(.no_scale = true),
                         eg_layer_batch_normalization(.no_scale = true, .no_center = true),
                         eg_layer_group_normalization(.groups = 5, .no_scale = true, .no_center = true) };
    for (int i = 0; i < 4; i++) {               // by one kernel, by single ops, and without rows
        eg_tensor *y = eg_call(bare[i], in, .training = true);
        eg_trap_nonfinite(true);
        CHECK_SAME(eg_call(bare[i], in, .training = true), y, 1e-6);
        eg_trap_nonfinite(false);
        CHECK_SHAPE(eg_call(bare[i], eg_zeros(EG_FLOAT32, EG_SHAPE(0, 30))), 0, 30);
        eg_layer_release(bare[i]);
    }
    eg_layer *batch = eg_layer_batch_normalization(.momentum = 0.5);
    eg_tensor *w[4], *mean = eg_reduce_mean(in, .axes = EG_AXES(0)),
              *variance = eg_reduce_mean(eg_square(eg_sub(in, mean)), .axes = EG_AXES(0));
    eg_call(batch, in, .training = true);
    CHECK_INT(eg_layer_weights(batch, w, 4), 4);
    CHECK_SAME(w[2], eg_mul(mean, 0.5), 1e-6);
    CHECK_SAME(w[3], eg_add(0.5, eg_mul(variance, 0.5)), 1e-6);
    eg_layer_release(batch);
}
// A NaN stays in its group.
TEST(normalizations_of_special_values) {
    for (int what = 0; what < 2; what++) {
        EG_SCOPE;
        fill(x, 3 * 70, 0.2);
        x[70 + 69] = what ? INFINITY : NAN;
        eg_layer *layer = eg_layer_layer_normalization();
        const float *v = (const float *)eg_data(eg_call(layer, tensor(x, EG_FLOAT32, EG_SHAPE(3, 70))));
        for (int i = 0; i < 70; i++) CHECK(v[i] == v[i] && v[70 + i] != v[70 + i] && v[140 + i] == v[140 + i]);
        eg_layer_release(layer);
        layer = eg_layer_layer_normalization();
        eg_tensor *same = eg_call(layer, eg_full(EG_FLOAT32, EG_SHAPE(2, 70), 3e7));              // no variance at all
        CHECK_SAME(same, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 70)), 0);
        CHECK_SHAPE(eg_call(layer, eg_zeros(EG_FLOAT32, EG_SHAPE(0, 70))), 0, 70);
        eg_layer_release(layer);
    }
}

static eg_tensor *called(eg_tensor *const *in, void *user) {
    return eg_reduce_sum(eg_square(eg_call((eg_layer *)user, in[0], .training = true)));
}
TEST(normalizations_against_differences) {
    for (int kind = 0; kind < 7; kind++) {
        EG_SCOPE;
        eg_layer *layer = kind == 0 ? eg_layer_layer_normalization(.epsilon = 1e-2, .dtype = EG_FLOAT64)
                          : kind == 1 ? eg_layer_rms_normalization(.epsilon = 1e-2, .dtype = EG_FLOAT64)
                          : kind == 2 ? eg_layer_batch_normalization(.epsilon = 1e-2, .dtype = EG_FLOAT64)
                          : kind == 3 ? eg_layer_batch_normalization(.axis = 1, .epsilon = 1e-2, .dtype = EG_FLOAT64)
                          : kind == 4 ? eg_layer_group_normalization(.groups = 2, .epsilon = 1e-2, .dtype = EG_FLOAT64)
                          : kind == 5 ? eg_layer_group_normalization(.groups = 3, .axis = 1, .epsilon = 1e-2,
                                                                     .dtype = EG_FLOAT64)
                          : eg_layer_layer_normalization(.no_scale = true, .epsilon = 1e-2, .dtype = EG_FLOAT64);
        eg_tensor *in = eg_random_normal(EG_SHAPE(2, 3, 4), .dtype = EG_FLOAT64), *w[4], *dx[2], *grads[3], *mixed[2];
        REQUIRE(eg_layer_build(layer, EG_SHAPE(2, 3, 4)));
        const int n = eg_layer_trainable_weights(layer, w, 4);
        for (int i = 0; i < n; i++) eg_assign(w[i], eg_random_normal(eg_shape_of(w[i]), .dtype = EG_FLOAT64));
        CHECK(eg_check_gradient(called, layer, &in, 1, .order = 2));
        // By one kernel, and composed of ops, which an outer tape records; then the derivative of dx along each weight.
        eg_tape *outer = eg_tape_begin_persistent();
        eg_tensor *direction = eg_random_normal(EG_SHAPE(2, 3, 4), .dtype = EG_FLOAT64), *slope = NULL;
        for (int k = 0; k < 2; k++) {
            if (k) eg_tape_stop(outer);
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, in);
            eg_tensor *sources[3] = {in, w[0], n > 1 ? w[1] : NULL}, *loss = called(&in, layer);
            REQUIRE(eg_tape_gradients(tape, loss, sources, 1 + n, grads));
            if (!k) {
                dx[0] = grads[0], mixed[0] = grads[1];
                eg_tensor *sum = eg_reduce_sum(eg_mul(dx[0], direction));
                slope = eg_tape_gradient(outer, sum, w[0]);
            } else dx[1] = grads[0], mixed[1] = grads[1];
        }
        CHECK_SAME(dx[0], dx[1], 1e-11);
        CHECK_SAME(mixed[0], mixed[1], 1e-11);
        eg_tensor *was = eg_read(w[0]), *along = eg_random_normal(eg_shape_of(w[0]), .dtype = EG_FLOAT64);
        double by[2];
        for (int side = 0; side < 2; side++) {
            eg_assign(w[0], eg_add(was, eg_mul(along, side ? 1e-5 : -1e-5)));
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, in);
            by[side] = eg_item(eg_reduce_sum(eg_mul(eg_tape_gradient(tape, called(&in, layer), in), direction)));
        }
        REQUIRE(slope);
        CHECK_NEAR((by[1] - by[0]) / 2e-5, eg_item(eg_reduce_sum(eg_mul(slope, along))), 1e-5 * (1 + fabs(by[0])));
        eg_layer_release(layer);
    }
}
