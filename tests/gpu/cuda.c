// A GPU (or tests/gpu/cuda_host/, which stands in for one) against the CPU: each op on shapes that end inside a block,
// at its end and far beyond it, on views and on broadcast operands. Compiled with -DTEST_CUDA; otherwise there is
// nothing to do.
#define EAGER_BACKEND
#include "test.h"

#ifdef TEST_CUDA
#include <pthread.h>

// ---- the same on both

typedef struct given { eg_tensor *x[4]; int n; int64_t i[8]; double d[4]; } given;
typedef eg_tensor *work(const given *w);

static double worst(const void *a, const void *b, eg_dtype dtype, int64_t n, int64_t *at) {
    double most = 0;
    *at = -1;
    for (int64_t i = 0; i < n; i++) {
        double u = egi_dtype_load(dtype, (const char *)a + i * eg_dtype_size(dtype)),
               v = egi_dtype_load(dtype, (const char *)b + i * eg_dtype_size(dtype));
        if (u == v || (isnan(u) && isnan(v))) continue;
        double d = fabs(u - v) / fmax(1, fabs(v));
        if (!(d <= most)) { most = isnan(d) ? HUGE_VAL : d; *at = i; }
    }
    return most;
}
// What work makes of inputs on the CPU and of copies of them on the device, gradients (where asked for) included, is
// within tol.
static void compare(const char *what, int line, work *f, const given *w, bool gradients, double tol) {
    EG_SCOPE;
    eg_tensor *y[2], *dx[2][4] = { { NULL } };
    given here = *w;
    for (int d = 0; d < 2; d++) {
        eg_set_device(d ? test_device() : "cpu:0");
        for (int i = 0; i < w->n; i++) here.x[i] = d ? eg_gpu(w->x[i]) : w->x[i];
        eg_tape *tape = gradients ? eg_tape_begin() : NULL;
        if (gradients)
            for (int i = 0; i < w->n; i++)
                if (eg_dtype_of(here.x[i]) == EG_FLOAT32 || eg_dtype_of(here.x[i]) == EG_FLOAT64)
                    eg_tape_watch(tape, here.x[i]);
        eg_seed(5);
        y[d] = f(&here);
        if (gradients && y[d]) {
            eg_tape_stop(tape);
            eg_tensor *weights = eg_add(eg_mul(eg_cast(eg_reshape(eg_range(EG_INT32, 0, (double)eg_size(y[d]), 1),
                                                                  eg_shape_of(y[d])), eg_dtype_of(y[d])), 1e-3), 1),
                      *source[4], *got[4];
            int n = 0;
            for (int i = 0; i < w->n; i++)
                if (eg_dtype_of(here.x[i]) == EG_FLOAT32 || eg_dtype_of(here.x[i]) == EG_FLOAT64)
                    source[n++] = here.x[i];
            if (eg_tape_gradients_from(tape, &y[d], 1, &weights, source, n, got))
                for (int i = 0; i < n; i++) dx[d][i] = got[i];
        }
    }
    eg_set_device(test_device());
    if (!y[0] || !y[1] || eg_error() != EG_OK) {
        if (test_fail(__FILE__, line, what)) printf("    did not work on both: %s\n", eg_error_message());
        eg_error_clear();
        return;
    }
    for (int k = -1; k < 4; k++) {
        eg_tensor *a = k < 0 ? y[0] : dx[0][k], *b = k < 0 ? y[1] : dx[1][k];
        if (!a && !b) continue;
        if (!a || !b || eg_size(a) != eg_size(b)) {
            test_say(__FILE__, line, what, "gradients or shapes differ");
            continue;
        }
        int64_t at;
        double d = worst(eg_data(b), eg_data(a), eg_dtype_of(a), eg_size(a), &at);
        if (d <= tol || !test_fail(__FILE__, line, what)) continue;
        char text[EG_SHAPE_TEXT];
        printf("    %s%d of %s differs by %.3g at %lld: %.9g on the CPU, %.9g here\n",
               k < 0 ? "result " : "gradient ", k < 0 ? 0 : k, eg_shape_text(eg_shape_of(a), text), d,
               (long long)at,
               egi_dtype_load(eg_dtype_of(a), (const char *)eg_data(a) + at * eg_dtype_size(eg_dtype_of(a))),
               egi_dtype_load(eg_dtype_of(b), (const char *)eg_data(b) + at * eg_dtype_size(eg_dtype_of(b))));
    }
}
#define COMPARE(f, w, gradients, tol) compare(#f, __LINE__, f, w, gradients, tol)

static eg_tensor *made(eg_dtype dtype, eg_shape shape, double low, double high) {            // on the CPU
    eg_with_device("cpu:0");
    return eg_cast(eg_random_uniform(shape, .minval = low, .maxval = high), dtype);
}

// ---- every row of the table

typedef struct row { const char *name; int n; char kind; void (*f)(void); } row;
#define ROW1(kind, name, f, d0) { #name, 1, (#kind)[0], (void (*)(void))(eg_##name) },
#define ROW1_ND(kind, name, f) { #name, 1, (#kind)[0], (void (*)(void))(eg_##name) },
#define ROW2(kind, name, f, d0, d1) { #name, 2, (#kind)[0], (void (*)(void))(eg_##name) },
#define ROW2_ND(kind, name, f) { #name, 2, (#kind)[0], (void (*)(void))(eg_##name) },
#define ROW3(kind, name, f, d0, d1, d2) { #name, 3, (#kind)[0], (void (*)(void))(eg_##name) },
static const row rows[] = { EGI_ELEMENTWISE_TABLE(ROW1, ROW1_ND, ROW2, ROW2_ND, ROW3, a, b, c, y, g) };
static const row *row_now;
static int layout_now;

// Contiguous; rows that are read backwards in their axes; every other column, at an odd address; one value for each
// row.
static eg_tensor *laid(eg_tensor *x) {
    int64_t r = eg_dim(x, 0), c = eg_dim(x, 1);
    if (layout_now == 1) return eg_transpose(eg_reshape(x, EG_SHAPE(c, r)));
    if (layout_now == 2)
        return eg_strided_slice(eg_concat(EG_TENSORS(x, x), 1), EG_SHAPE(0, 1), EG_SHAPE(EG_END, EG_END),
                                EG_SHAPE(1, 2));
    if (layout_now == 3) return eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(1, c));
    if (layout_now == 4) return eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(r, 1));
    return x;
}
static eg_tensor *run_row(const given *w) {
    eg_tensor *x[3];
    // the last one is broadcast
    for (int i = 0; i < w->n; i++) x[i] = layout_now < 3 || (i > 0 && i == w->n - 1) ? laid(w->x[i]) : w->x[i];
    if (row_now->n == 1) return ((eg_tensor * (*)(eg_tensor *)) row_now->f)(x[0]);
    if (row_now->n == 2) return ((eg_tensor * (*)(eg_tensor *, eg_tensor *)) row_now->f)(x[0], x[1]);
    return ((eg_tensor * (*)(eg_tensor *, eg_tensor *, eg_tensor *)) row_now->f)(x[0], x[1], x[2]);
}
static void all_rows(eg_dtype dtype, const char *kinds, double low, double high, double tol) {
    static const int64_t sizes[][2] = { { 1, 1 }, { 3, 4 }, { 5, 7 }, { 33, 20 }, { 64, 128 } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        row_now = &rows[k];
        if (!strchr(kinds, row_now->kind)) continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (layout_now = 0; layout_now < 5; layout_now++) {
                EG_SCOPE;
                if (layout_now > 2 && egi_op_row((int)k)->flags & EGI_SAME_SHAPE) continue;
                given w = { { NULL }, row_now->n, { 0 }, { 0 } };
                for (int i = 0; i < row_now->n; i++) {
                    eg_seed((uint64_t)(i + 1));
                    bool condition = row_now->kind == 'W' && i == 0;
                    w.x[i] = made(condition ? EG_FLOAT32 : dtype, EG_SHAPE(sizes[s][0], sizes[s][1]), low, high);
                    eg_with_device("cpu:0");
                    if (condition) w.x[i] = eg_greater(w.x[i], (low + high) / 2);
                }
                char what[80];
                snprintf(what, sizeof what, "eg_%s, layout %d, %s", row_now->name, layout_now, eg_dtype_name(dtype));
                compare(what, __LINE__, run_row, &w, strchr("FMSNW", row_now->kind) && dtype <= EG_FLOAT64, tol);
            }
    }
}
TEST(cuda_rows_float32) { all_rows(EG_FLOAT32, "FMSNCEPW", 0.1, 0.9, 2e-5); }
TEST(cuda_rows_float32_any_sign) { all_rows(EG_FLOAT32, "SNCEPW", -3, 3, 2e-4); }
TEST(cuda_rows_float64) { all_rows(EG_FLOAT64, "FMSNCEPW", 0.1, 0.9, 1e-12); }
TEST(cuda_rows_int32) { all_rows(EG_INT32, "SNCEW", 1, 9, 0); }
TEST(cuda_rows_int64) { all_rows(EG_INT64, "SNCEW", 1, 9, 0); }
TEST(cuda_rows_uint8) { all_rows(EG_UINT8, "NCEW", 1, 9, 0); }
TEST(cuda_rows_bool) { all_rows(EG_BOOL, "EBW", 0, 1.5, 0); }
static eg_tensor *with_number(const given *w) {
    return eg_where(eg_greater(w->x[0], 0.25), eg_mul(w->x[0], 3), eg_sub(1, w->x[0]));
}
TEST(cuda_numbers) {
    for (int64_t n = 1; n < 9000; n = n * 3 + 1) {
        given w = { { made(EG_FLOAT32, EG_SHAPE(n), 0, 1) }, 1, { 0 }, { 0 } };
        COMPARE(with_number, &w, true, 1e-6);
    }
}

// ---- copies

static eg_tensor *transposed(const given *w) {
    return eg_reshape(eg_transpose(w->x[0], .perm = EG_AXES((int)w->i[0], (int)w->i[1], (int)w->i[2])), EG_SHAPE(-1));
}
static eg_tensor *cast(const given *w) { return eg_cast(eg_cast(w->x[0], (eg_dtype)w->i[0]), (eg_dtype)w->i[1]); }
TEST(cuda_copies) {
    static const int perms[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_UINT8 };
    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 6; k++) {
            EG_SCOPE;
            given w = { { made(dtypes[t], EG_SHAPE(3, 35, 66), 0, 200) }, 1, { perms[k][0], perms[k][1], perms[k][2] },
                        { 0 } };
            COMPARE(transposed, &w, false, 0);
        }
    for (int64_t from = 0; from < 8; from++)
        for (int64_t to = 0; to < 8; to++) {
            EG_SCOPE;
            given w = { { made(EG_FLOAT64, EG_SHAPE(301), -300.5, 300.5) }, 1, { from, to }, { 0 } };
            COMPARE(cast, &w, false, 0);
        }
    for (int64_t bytes = 1; bytes < 20000000; bytes = bytes * 7 + 3) {  // through the stage, in several parts
        EG_SCOPE;
        eg_tensor *x = made(EG_UINT8, EG_SHAPE(bytes), 0, 255);
        eg_tensor *back = eg_cpu(eg_gpu(x));
        CHECK(memcmp(eg_data(x), eg_data(back), (size_t)bytes) == 0);
        if (test_share > 1 && bytes > 5000000) break;
    }
}

// ---- reductions and rows

static eg_tensor *reduced(const given *w) {
    eg_reduce_options o;
    memset(&o, 0, sizeof o);
    o.axes = EG_AXES((int)w->i[1]);
    switch (w->i[0]) {
        case 0: return (eg_reduce_sum)(w->x[0], o);
        case 1: return (eg_reduce_mean)(w->x[0], o);
        case 2: return (eg_reduce_max)(w->x[0], o);
        case 3: return (eg_reduce_min)(w->x[0], o);
        case 4: return eg_norm(w->x[0], .axes = EG_AXES((int)w->i[1]));
        case 5: return eg_argmax(w->x[0], .axis = w->i[1] ? (int)w->i[1] : EG_ZERO);
        default: return eg_argmin(w->x[0], .axis = w->i[1] ? (int)w->i[1] : EG_ZERO);
    }
}
static eg_tensor *all_or_any(const given *w) {
    eg_tensor *c = eg_greater(w->x[0], 0.001);
    return eg_logical_xor(eg_reduce_all(c, .axes = EG_AXES((int)w->i[1])),
                          eg_reduce_any(eg_logical_not(c), .axes = EG_AXES((int)w->i[1])));
}
static const int64_t shapes[][3] = { { 1, 1, 1 }, { 2, 31, 3 }, { 3, 257, 1 }, { 1, 70001, 1 }, { 1, 20000, 2 },
                                     { 70, 10, 1 }, { 5, 40, 33 }, { 300, 3, 2 } };
TEST(cuda_reductions) {
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int t = 0; t < 5; t++)
            for (int64_t kind = 0; kind < 7; kind++) {
                EG_SCOPE;
                if (kind == 4 && t > 1) continue;
                given w = { { made(dtypes[t], EG_SHAPE(shapes[s][0], shapes[s][1], shapes[s][2]), 0, 200) }, 1,
                            { kind, 1 }, { 0 } };
                COMPARE(reduced, &w, t < 2 && kind < 5, t == 0 ? 1e-6 : 1e-12);
                if (t == 0 && kind == 0) COMPARE(all_or_any, &w, false, 0);
            }
}
TEST(cuda_reductions_of_nan) {
    float nan = NAN;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1000));
    x = eg_concat(EG_TENSORS(x, eg_from_data(EG_FLOAT32, EG_SHAPE(1), &nan), x), 0);
    CHECK(isnan(eg_item(eg_reduce_max(x))));
    CHECK(isnan(eg_item(eg_reduce_min(x))));
    CHECK(isnan(eg_item(eg_reduce_sum(x))));
    CHECK_INT(eg_item_int(eg_argmax(x, .axis = EG_ZERO)), 1000);
    CHECK_INT(eg_item_int(eg_argmin(eg_zeros(EG_FLOAT32, EG_SHAPE(5000)), .axis = EG_ZERO)), 0);
}
static eg_tensor *softmax(const given *w) { return eg_softmax(w->x[0], .axis = w->i[0] ? (int)w->i[0] : EG_ZERO); }
static eg_tensor *log_softmax(const given *w) {
    return eg_log_softmax(w->x[0], .axis = w->i[0] ? (int)w->i[0] : EG_ZERO);
}
static eg_tensor *cumsum(const given *w) {
    return eg_cumsum(w->x[0], .axis = w->i[0] ? (int)w->i[0] : EG_ZERO, .exclusive = w->i[1] & 1,
                     .reverse = w->i[1] & 2);
}
static eg_tensor *sorted(const given *w) {
    return eg_sort(w->x[0], .axis = w->i[0] ? (int)w->i[0] : EG_ZERO, .descending = w->i[1] & 1);
}
static eg_tensor *best(const given *w) { return eg_top_k(w->x[0], w->i[2], NULL); }
static eg_tensor *best_places(const given *w) {
    eg_tensor *where = NULL;
    eg_top_k(w->x[0], w->i[2], &where);
    return where;
}
static eg_tensor *argsort(const given *w) {
    return eg_argsort(w->x[0], .axis = w->i[0] ? (int)w->i[0] : EG_ZERO, .descending = w->i[1] & 1);
}
static eg_tensor *sparse(const given *w) { return eg_sparse_softmax_cross_entropy_with_logits(w->x[1], w->x[0]); }
static eg_tensor *sparse_mean(const given *w) { return eg_reduce_mean(sparse(w)); }
TEST(cuda_rows_of_softmax) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int axis = 0; axis < 3; axis++) {
            EG_SCOPE;
            given w = { { made(EG_FLOAT32, EG_SHAPE(shapes[s][0], shapes[s][1], shapes[s][2]), -5, 5) }, 1, { axis },
                        { 0 } };
            COMPARE(softmax, &w, true, 1e-5);
            COMPARE(log_softmax, &w, true, 2e-5);
            w.x[0] = made(EG_FLOAT64, EG_SHAPE(shapes[s][0], shapes[s][1], shapes[s][2]), -5, 5);
            COMPARE(softmax, &w, true, 1e-12);
            COMPARE(log_softmax, &w, true, 1e-12);
        }
    for (int64_t n = 1; n < 3000; n = n * 5 + 2) {
        EG_SCOPE;
        given w = { { made(EG_FLOAT32, EG_SHAPE(37, n), -5, 5), made(EG_INT32, EG_SHAPE(37), 0, (double)n) }, 2, { 0 },
                    { 0 } };
        COMPARE(sparse, &w, true, 1e-5);
        COMPARE(sparse_mean, &w, true, 1e-5);
        w.x[0] = made(EG_FLOAT64, EG_SHAPE(37, n), -5, 5);
        COMPARE(sparse_mean, &w, true, 1e-12);
    }
}
TEST(cuda_cumsum) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int64_t how = 0; how < 4; how++) {
            EG_SCOPE;
            given w = { { made(EG_FLOAT32, EG_SHAPE(shapes[s][0], shapes[s][1], shapes[s][2]), -1, 1) }, 1, { 1, how },
                        { 0 } };
            COMPARE(cumsum, &w, shapes[s][1] < 1000, 1e-5);
            w.x[0] = eg_cast(w.x[0], EG_INT64);
            COMPARE(cumsum, &w, false, 0);
        }
}
TEST(cuda_argsort) {
    for (int64_t n = 1; n < 6000; n = n * 3 + 1)
        for (int64_t how = 0; how < 2; how++) {
            EG_SCOPE;
            // many equal ones: stable
            given w = { { made(EG_INT32, EG_SHAPE(3, n), 0, 50) }, 1, { 1, how, (n + 2) / 3 }, { 0 } };
            COMPARE(argsort, &w, false, 0);
            COMPARE(best_places, &w, false, 0);
            w.x[0] = made(EG_FLOAT32, EG_SHAPE(2, n), 0, 1);
            COMPARE(argsort, &w, false, 0);
            COMPARE(sorted, &w, false, 0);
            COMPARE(best, &w, false, 0);
        }
}

// ---- products

static eg_tensor *product(const given *w) {
    return eg_matmul(w->x[0], w->x[1], .transpose_a = w->i[0] != 0, .transpose_b = w->i[1] != 0);
}
TEST(cuda_matmul) {
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 3, 5, 7 }, { 17, 33, 16 }, { 70, 1, 20 }, { 1, 90, 40 } };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int ta = 0; ta < 2; ta++)
            for (int tb = 0; tb < 2; tb++)
                for (int t = 0; t < 4; t++) {
                    EG_SCOPE;
                    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64 };
                    int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                    eg_shape a = ta ? EG_SHAPE(k, m) : EG_SHAPE(m, k), b = tb ? EG_SHAPE(n, k) : EG_SHAPE(k, n);
                    given w = { { made(dtypes[t], a, -9, 9), made(dtypes[t], b, -9, 9) }, 2, { ta, tb }, { 0 } };
                    COMPARE(product, &w, t < 2, t == 0 ? 1e-4 : 1e-11);
                }
    static const int64_t batches[][4] = { { 4, 1, 4, 1 }, { 3, 2, 1, 2 }, { 1, 2, 3, 1 }, { 2, 3, 1, 1 } };
    for (size_t s = 0; s < sizeof batches / sizeof *batches; s++)
        for (int t = 0; t < 2; t++) {
            EG_SCOPE;
            eg_dtype dtype = t ? EG_INT32 : EG_FLOAT32;
            given w = { { made(dtype, EG_SHAPE(batches[s][0], batches[s][1], 5, 6), -9, 9),
                          made(dtype, EG_SHAPE(batches[s][2], batches[s][3], 6, 4), -9, 9) }, 2, { 0 }, { 0 } };
            COMPARE(product, &w, !t, 1e-4);
        }
}

// A dense layer's product takes its bias and relu along: against the CPU's three ops. One input is NaN: it must not get
// lost.
static const eg_activation dense_activations[] = { EG_LINEAR, EG_RELU, EG_GELU };
static eg_tensor *dense(const given *w) {
    eg_layer *l = eg_layer_dense(eg_dim(w->x[1], 1), .activation = dense_activations[w->i[0]],
                                 .dtype = eg_dtype_of(w->x[1]), .no_bias = w->i[1] != 0);
    eg_layer_build(l, eg_shape_of(w->x[0]));
    eg_tensor *part[2], *y = NULL;
    int n = eg_layer_weights(l, part, 2);
    if (n == 2 - (int)w->i[1] && eg_assign(part[0], w->x[1]) && (n == 1 || eg_assign(part[1], w->x[2])))
        y = eg_call(l, w->x[0]);
    if (y) {                                              // the gradients of the weights are part of what is compared
        eg_tape *tape = eg_tape_begin();
        eg_tensor *again = eg_reduce_sum(eg_square(eg_call(l, w->x[0]))), *g[2];
        eg_tape_gradients(tape, again, part, n, g);
        y = eg_concat(EG_TENSORS(eg_reshape(y, EG_SHAPE(-1)), eg_reshape(g[0], EG_SHAPE(-1))), 0);
        if (n == 2) y = eg_concat(EG_TENSORS(y, g[1]), 0);
    }
    eg_keep(y);
    eg_layer_release(l);
    return y;
}
TEST(cuda_dense) {
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 5, 3, 8 }, { 33, 14, 20 }, { 64, 65, 17 }, { 3, 7, 1 } };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int a = 0; a < 3; a++)
            for (int kind = 0; kind < 4; kind++) {        // float32 and float64; rank 3; without a bias
                EG_SCOPE;
                eg_dtype dtype = kind == 1 ? EG_FLOAT64 : EG_FLOAT32;
                int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
                given w = { { made(dtype, kind == 2 ? EG_SHAPE(2, m, k) : EG_SHAPE(m, k), -1, 1),
                              made(dtype, EG_SHAPE(k, n), -1, 1), made(dtype, EG_SHAPE(n), -1, 1) },
                            3, { a, kind == 3 }, { 0 } };
                COMPARE(dense, &w, false, dtype == EG_FLOAT32 ? 2e-4 : 1e-10);
            }
    eg_layer *l = eg_layer_dense(4, .activation = EG_RELU);
    eg_tensor *y = eg_call(l, eg_full(EG_FLOAT32, EG_SHAPE(2, 3), NAN));
    CHECK(isnan(eg_item(eg_reduce_sum(y))));
    eg_layer_release(l);
}

// ---- layers that are one kernel there

static eg_layer *made_layer(const given *w) {
    if (w->i[0] == 0) return eg_layer_layer_normalization();
    if (w->i[0] == 1) return eg_layer_layer_normalization(.epsilon = 0.5);
    eg_layer_options o;
    memset(&o, 0, sizeof o);
    o.return_sequences = (w->i[2] & 1) != 0;
    o.go_backwards = (w->i[2] & 2) != 0;
    o.no_bias = (w->i[2] & 4) != 0;
    if (w->i[0] == 3) return (eg_layer_simple_rnn)(w->i[1], o);
    if (w->i[0] == 4) return (eg_layer_lstm)(w->i[1], o);
    if (w->i[0] == 5) return (eg_layer_gru)(w->i[1], o);
    return eg_layer_multi_head_attention(w->i[1], w->i[2], .kv_heads = w->i[3], .causal = w->i[4] != 0,
                                         .value_dim = w->i[5]);
}
static eg_tensor *call_layer(eg_layer *l, const given *w) {
    eg_tensor *in[3] = { w->x[0], w->x[1], w->x[2] }, *out[3] = { NULL, NULL, NULL };
    eg_call_options o;
    memset(&o, 0, sizeof o);
    if (w->i[0] < 3 && w->i[6]) o.mask = w->x[w->n - 1];                 // the last input is the mask of the steps
    if (w->i[0] < 3) return (eg_call_multi)(l, in, o.mask ? w->n - 1 : w->n, out, 1, o) ? out[0] : NULL;
    int n = w->i[0] == 4 ? 3 : 2;               // recurrent ones with their states
    if (w->i[3])
        o.mask = eg_reshape(eg_not_equal(eg_mod(eg_range(EG_INT32, 0, (double)(eg_dim(in[0], 0) * eg_dim(in[0], 1)), 1),
                                                3), 1), EG_SHAPE(eg_dim(in[0], 0), eg_dim(in[0], 1)));
    if (!(eg_call_multi)(l, in, w->n, out, n, o)) return NULL;
    for (int i = 0; i < n; i++) out[i] = eg_reshape(out[i], EG_SHAPE(-1));
    return w->i[2] & 8 ? out[n - 1] : eg_concat(out, n, 0);
}
static eg_tensor *layer(const given *w) {
    eg_layer *l = made_layer(w);
    eg_tensor *y = eg_keep(call_layer(l, w));
    eg_layer_release(l);
    return y;
}
// All weights' gradients in a row; where an outer tape records, those that are composed.
static eg_tensor *layer_gradients(const given *w) {
    eg_layer *l = made_layer(w);
    if (!call_layer(l, w)) return NULL;                   // builds it
    eg_tensor *v[16], *g[16];
    int n = eg_layer_weights(l, v, 16);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = call_layer(l, w),
              *weights = y ? eg_add(eg_mul(eg_cast(eg_reshape(eg_range(EG_INT32, 0, (double)eg_size(y), 1),
                                                              eg_shape_of(y)), eg_dtype_of(y)), 1e-3), 1) : NULL;
    if (!weights || !eg_tape_gradients(tape, eg_reduce_sum(eg_mul(eg_square(y), weights)), v, n, g)) return NULL;
    for (int i = 0; i < n; i++) g[i] = eg_reshape(g[i], EG_SHAPE(-1));
    y = eg_keep(eg_concat(g, n, 0));
    eg_layer_release(l);
    return y;
}
TEST(cuda_layer_norm) {
    static const int64_t all[][3] = { { 1, 1, 1 }, { 1, 3, 5 }, { 2, 9, 33 }, { 1, 300, 40 }, { 1, 2, 1000 },
                                      { 1, 9, 128 }, { 1, 3, 132 }, { 1, 3, 260 }, { 1, 3, 768 }, { 1, 2, 1028 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++)
        for (int64_t kind = 0; kind < 2; kind++) {
            EG_SCOPE;
            given w = { { made(EG_FLOAT32, EG_SHAPE(all[s][0], all[s][1], all[s][2]), -2, 3) }, 1, { kind }, { 0 } };
            COMPARE(layer, &w, true, 2e-5);
            COMPARE(layer_gradients, &w, false, 1e-4);
            if (s < 3) COMPARE(layer_gradients, &w, true, 5e-4);
        }
}
TEST(cuda_attention) {
    // batch, queries, keys (0: of the queries), features; heads, their size, heads of keys, causal, size of values
    static const int64_t all[][9] = { { 1, 1, 0, 4, 1, 4, 0, 0, 0 }, { 2, 5, 0, 8, 2, 4, 0, 1, 0 },
                                      { 2, 33, 0, 12, 3, 16, 0, 1, 0 }, { 1, 70, 0, 16, 4, 8, 2, 1, 0 },
                                      { 2, 7, 40, 8, 2, 40, 0, 0, 20 }, { 1, 100, 35, 8, 2, 64, 1, 1, 33 },
                                      { 1, 6, 0, 8, 1, 65, 0, 1, 0 },
                                      { 2, 50, 0, 8, 2, 128, 1, 1, 0 }, { 1, 37, 70, 8, 1, 100, 0, 0, 7 },
                                      { 1, 6, 0, 8, 1, 129, 0, 1, 0 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
        EG_SCOPE;
        const int64_t *a = all[s];
        given w = { { made(EG_FLOAT32, EG_SHAPE(a[0], a[1], a[3]), -1, 1),
                      a[2] ? made(EG_FLOAT32, EG_SHAPE(a[0], a[2], a[3]), -1, 1) : NULL }, a[2] ? 2 : 1,
                    { 2, a[4], a[5], a[6], a[7], a[8] }, { 0 } };
        COMPARE(layer, &w, true, 5e-5);
        COMPARE(layer_gradients, &w, false, 2e-4);
        if (s < 2 || s == 4) COMPARE(layer_gradients, &w, true, 2e-3);
    }
}
TEST(cuda_recurrent) {
    // batch, steps, features, units
    static const int64_t all[][4] = { { 1, 1, 1, 1 }, { 2, 5, 3, 4 }, { 3, 4, 6, 33 }, { 17, 3, 2, 20 } };
    for (int64_t kind = 3; kind < 6; kind++)
        for (int64_t bits = 0; bits < 32; bits++) {
            EG_SCOPE;
            const int64_t *a = all[bits % 4];
            eg_dtype dtype = bits % 3 ? EG_FLOAT32 : EG_FLOAT64;
            given w = { { made(dtype, EG_SHAPE(a[0], a[1], a[2]), -1, 1), made(dtype, EG_SHAPE(a[0], a[3]), -1, 1),
                          kind == 4 ? made(dtype, EG_SHAPE(a[0], a[3]), -1, 1) : NULL }, 1,
                        { kind, a[3], bits / 2 }, { 0 } };
            if (bits & 1) w.n = kind == 4 ? 3 : 2;
            else w.i[3] = bits % 4 == 0;
            double share = dtype == EG_FLOAT32 ? 1 : 1e-8;
            COMPARE(layer, &w, true, 2e-5 * share);
            COMPARE(layer_gradients, &w, false, 2e-4 * share);
            if (bits % 5 == 0) COMPARE(layer_gradients, &w, true, 1e-3 * share);
        }
}
// Masks of pairs, of all shapes that broadcast, and of steps; some queries see nobody: their results and gradients are
// 0, as those of the composition are.
TEST(cuda_attention_with_masks) {
    // batch, queries, keys (0: of the queries), heads, their size, heads of keys, causal; the mask's shape, or 0: of
    // steps
    static const int64_t all[][10] = { { 2, 5, 0, 2, 4, 0, 0, 0, 0, 0 }, { 3, 40, 0, 2, 8, 1, 1, 0, 0, 0 },
                                       { 2, 5, 0, 2, 4, 0, 0, 1, 5, 5 }, { 2, 37, 70, 4, 16, 2, 0, 2, 37, 70 },
                                       { 2, 70, 0, 2, 33, 0, 1, 2, 1, 70 }, { 2, 33, 9, 1, 4, 0, 1, 1, 33, 1 },
                                       { 2, 20, 36, 2, 128, 1, 0, 2, 20, 36 }, { 2, 37, 0, 2, 100, 0, 1, 0, 0, 0 },
                                       { 1, 3, 0, 1, 200, 0, 0, 1, 3, 3 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
        EG_SCOPE;
        const int64_t *a = all[s], keys = a[2] ? a[2] : a[1];
        eg_tensor *mask = a[7] ? made(EG_FLOAT32, EG_SHAPE(a[7], a[8], a[9]), 0,
                                      1) : made(EG_FLOAT32, EG_SHAPE(a[0], a[1]), 0, 1);
        given w = { { made(EG_FLOAT32, EG_SHAPE(a[0], a[1], 8), -1, 1),
                      made(EG_FLOAT32, EG_SHAPE(a[0], keys, 8), -1, 1) }, a[2] ? 2 : 1,
                    { 2, a[3], a[4], a[5], a[6], 0, a[7] == 0 }, { 0 } };
        eg_with_device("cpu:0");
        mask = eg_greater(mask, 0.4);
        // the first two see nobody
        if (a[7])
            mask = eg_logical_and(mask, eg_greater(eg_reshape(eg_range(EG_INT32, 0, (double)a[8], 1),
                                                              EG_SHAPE(1, a[8], 1)), a[8] > 1 ? 1 : -1));
        // nor do all of the first sequence
        else mask = eg_logical_and(mask, eg_greater(eg_reshape(eg_range(EG_INT32, 0, (double)a[0], 1),
                                                               EG_SHAPE(a[0], 1)), 0));
        w.x[w.n++] = mask;
        COMPARE(layer, &w, true, 5e-5);
        COMPARE(layer_gradients, &w, false, 2e-4);
        if (s == 0 || s == 2) COMPARE(layer_gradients, &w, true, 2e-3);
    }
}

// ---- convolution and pooling

static eg_tensor *conv(const given *w) {
    return eg_conv2d(w->x[0], w->x[1], .strides = { (int)w->i[0], (int)w->i[1] },
                     .dilations = { (int)w->i[2], (int)w->i[2] }, .groups = (int)w->i[3],
                     .padding = w->i[4] ? EG_SAME : EG_VALID);
}
static eg_tensor *pool(const given *w) {
    eg_pool_options o;
    memset(&o, 0, sizeof o);
    o.strides[0] = (int)w->i[1];
    o.strides[1] = (int)w->i[2];
    o.padding = w->i[3] ? EG_SAME : EG_VALID;
    o.size[0] = w->i[4];
    o.size[1] = w->i[5];
    return w->i[0] ? (eg_max_pool2d)(w->x[0], o) : (eg_avg_pool2d)(w->x[0], o);
}
// Products of small whole numbers, with both gradients: each must be the CPU's to the last bit, whatever the order of
// additions and whatever the factors are rounded to.
static eg_tensor *whole(eg_shape shape) {
    eg_with_device("cpu:0");
    return eg_cast(eg_random_integers(shape, -4, 5), EG_FLOAT32);
}
static eg_tensor *conv_and_gradients(const given *w) {           // w->i[5]: of numbers that are not whole
    eg_tensor *dx[2], *flat[3];
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < 2; i++) eg_tape_watch(tape, w->x[i]);
    eg_tensor *y = conv(w);
    if (!y) return NULL;
    eg_tape_stop(tape);
    eg_tensor *g = eg_to(w->i[5] ? made(EG_FLOAT32, eg_shape_of(y), -1, 1) : whole(eg_shape_of(y)), eg_device_of(y));
    if (!eg_tape_gradients_from(tape, &y, 1, &g, (eg_tensor *const *)w->x, 2, dx)) return NULL;
    flat[0] = eg_reshape(y, EG_SHAPE(-1));
    for (int i = 0; i < 2; i++) flat[i + 1] = eg_reshape(dx[i], EG_SHAPE(-1));
    return eg_concat(EG_TENSORS(flat[0], flat[1], flat[2]), 0);
}
// n h w c, kh kw oc, strides, dilation, groups
typedef int64_t conv_shape[11];
static void whole_convs(const conv_shape *all, size_t count) {
    for (size_t s = 0; s < count; s++)
        for (int same = 0; same < 2; same++)
            for (int precision = EG_PRECISION_FLOAT32; precision <= EG_PRECISION_BFLOAT16; precision++) {
                EG_SCOPE;
                const int64_t *d = all[s];
                given w = { { whole(EG_SHAPE(d[0], d[1], d[2], d[3])),
                              whole(EG_SHAPE(d[4], d[5], d[3] / d[10], d[6])) }, 2, { d[7], d[8], d[9], d[10], same },
                            { 0 } };
                char what[200];
                snprintf(what, sizeof what,
                         "convolution of (%d %d %d %d) by (%d %d %d), strides %d %d, dilation %d, groups %d, padding "
                         "%d, precision %d", (int)d[0], (int)d[1], (int)d[2], (int)d[3], (int)d[4], (int)d[5],
                         (int)d[6], (int)d[7], (int)d[8], (int)d[9], (int)d[10], same, precision);
                eg_matmul_precision((eg_precision)precision);
                if (!same && (d[1] < (d[4] - 1) * d[9] + 1 || d[2] < (d[5] - 1) * d[9] + 1)) continue;
                compare(what, __LINE__, conv_and_gradients, &w, false, 0);
            }
    eg_matmul_precision(EG_PRECISION_FLOAT32);
}
TEST(cuda_convolution) {
    static const conv_shape all[] = { { 1, 4, 3, 2, 2, 2, 3, 70000, 65536, 1, 1 },
                                      { 1, 5, 5, 1, 3, 3, 1, 1, 1, 1, 1 }, { 2, 9, 8, 3, 3, 3, 5, 1, 1, 1, 1 },
                                      { 2, 12, 11, 4, 3, 2, 70, 2, 1, 1, 1 }, { 1, 20, 20, 8, 5, 5, 16, 3, 2, 1, 1 },
                                      { 1, 13, 13, 6, 3, 3, 8, 1, 1, 2, 2 }, { 2, 10, 9, 4, 3, 3, 4, 1, 2, 1, 4 },
                                      { 1, 8, 8, 3, 3, 3, 9, 1, 1, 1, 3 },
                                      { 3, 30, 30, 2, 1, 1, 66, 1, 1, 1, 1 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++)
        for (int same = 0; same < 2; same++)
            for (int t = 0; t < 2; t++) {
                EG_SCOPE;
                const int64_t *d = all[s];
                eg_dtype dtype = t ? EG_FLOAT64 : EG_FLOAT32;
                given w = { { made(dtype, EG_SHAPE(d[0], d[1], d[2], d[3]), -1, 1),
                              made(dtype, EG_SHAPE(d[4], d[5], d[3] / d[10], d[6]), -1, 1) }, 2,
                            { d[7], d[8], d[9], d[10], same }, { 0 } };
                if (t && test_share > 1 && s % 2) continue;
                COMPARE(conv, &w, true, t ? 1e-11 : 5e-5);
            }
    whole_convs(all, test_share > 1 ? 4 : sizeof all / sizeof *all);
}
// What is chosen by size: each of the tiles, also by steps that begin in the middle of a tap; sums in parts; pixels of
// the input that no window sees, or those of some phases only; products by cuBLAS.
TEST(cuda_convolution_tiles) {
    static const conv_shape all[] = { { 2, 17, 16, 8, 3, 3, 132, 1, 1, 1, 1 }, { 2, 18, 16, 20, 2, 3, 64, 1, 1, 1, 1 },
                                      { 1, 9, 9, 36, 3, 3, 36, 1, 1, 1, 1 }, { 4, 17, 17, 12, 3, 3, 28, 2, 2, 1, 1 },
                                      { 2, 6, 6, 128, 3, 3, 16, 1, 1, 1, 1 }, { 3, 6, 5, 16, 3, 3, 160, 1, 2, 1, 1 },
                                      { 1, 11, 13, 8, 3, 2, 12, 3, 2, 1, 1 }, { 1, 10, 10, 8, 1, 1, 12, 2, 3, 1, 1 },
                                      { 2, 7, 7, 4, 7, 7, 8, 1, 1, 1, 1 }, { 2, 5, 5, 12, 1, 1, 20, 1, 1, 1, 1 },
                                      { 1, 13, 13, 16, 3, 3, 24, 1, 1, 2, 2 }, { 2, 1, 40, 8, 1, 5, 12, 1, 1, 1, 1 },
                                      { 4, 21, 20, 1, 5, 5, 16, 1, 1, 1, 1 },   { 2, 13, 12, 3, 7, 7, 64, 2, 2, 1, 1 },
                                      { 1, 12, 12, 8, 4, 4, 16, 4, 4, 1, 1 },
                                      { 2, 8, 8, 256, 1, 1, 8, 2, 2, 1, 1 } };
    whole_convs(all, test_share > 1 ? 6 : sizeof all / sizeof *all);
}
// One channel in for each group.
TEST(cuda_convolution_depthwise) {
    static const conv_shape all[] = { { 2, 9, 8, 4, 3, 3, 4, 1, 1, 1, 4 }, { 3, 11, 12, 40, 3, 3, 40, 2, 2, 1, 40 },
                                      { 2, 7, 7, 6, 3, 2, 6, 1, 2, 1, 6 }, { 1, 12, 10, 8, 3, 3, 24, 2, 1, 1, 8 },
                                      { 2, 10, 9, 5, 5, 3, 10, 1, 1, 2, 5 }, { 5, 24, 24, 2, 3, 3, 2, 1, 1, 1, 2 },
                                      { 1, 3, 3, 36, 3, 3, 36, 3, 3, 1, 36 } };
    whole_convs(all, test_share > 1 ? 4 : sizeof all / sizeof *all);
}
static int64_t drawn_from(uint64_t *state, const int64_t *from, int64_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return from[(*state >> 33) % (uint64_t)n];
}
TEST(cuda_convolution_of_any_shape) {
    static const int64_t channels[] = { 1, 2, 3, 4, 5, 8, 12, 16, 20, 33, 64 }, groups[] = { 1, 1, 1, 1, 2, 3, 4 },
                         small[] = { 1, 2, 3, 4 }, sizes[] = { 1, 3, 7, 10, 13, 16 };
    uint64_t state = 7;
    for (int i = 0; i < 60 / test_share; i++) {
        conv_shape d;
        d[0] = drawn_from(&state, small, 3);
        d[10] = drawn_from(&state, groups, 7);
        for (int k = 1; k < 3; k++) d[k] = drawn_from(&state, sizes, 6);
        for (int k = 4; k < 6; k++) d[k] = drawn_from(&state, small, 4);
        for (int k = 7; k < 9; k++) d[k] = drawn_from(&state, small, 3);
        d[9] = drawn_from(&state, small, 2);
        d[3] = d[10] * drawn_from(&state, channels, d[10] == 1 ? 11 : 7);
        d[6] = d[10] * drawn_from(&state, channels, d[10] == 1 ? 11 : 7);
        whole_convs((const conv_shape *)&d, 1);
    }
}
// A view that begins in the middle of four elements is not fetched four at a time.
static eg_tensor *conv_of_a_view(const given *w) {
    given v = *w;
    int64_t n = eg_size(w->x[0]) / 17;
    v.x[0] = eg_reshape(eg_slice(w->x[0], EG_SHAPE(1), EG_SHAPE(16 * n)), EG_SHAPE(1, 16, n / 8, 8));
    return conv_and_gradients(&v);
}
TEST(cuda_convolution_of_a_view) {
    given w = { { whole(EG_SHAPE(17 * 80)), whole(EG_SHAPE(3, 3, 8, 8)) }, 2, { 1, 1, 1, 1, 1 }, { 0 } };
    COMPARE(conv_of_a_view, &w, false, 0);
}
// On request, factors are rounded, sums are not.
TEST(cuda_convolution_by_tensor_cores) {
    static const conv_shape all[] = { { 2, 17, 16, 8, 3, 3, 132, 1, 1, 1, 1 }, { 2, 12, 12, 64, 3, 3, 64, 1, 1, 1, 1 },
                                      { 2, 13, 13, 16, 3, 3, 20, 2, 2, 1, 1 } };
    for (size_t s = 0; s < sizeof all / sizeof *all; s++)
        for (int same = 0; same < 2; same++) {
            EG_SCOPE;
            const int64_t *d = all[s];
            given w = { { made(EG_FLOAT32, EG_SHAPE(d[0], d[1], d[2], d[3]), -1, 1),
                          made(EG_FLOAT32, EG_SHAPE(d[4], d[5], d[3] / d[10], d[6]), -0.1, 0.1) }, 2,
                        { d[7], d[8], d[9], d[10], same, 1 }, { 0 } };
            eg_matmul_precision(EG_PRECISION_TF32);
            COMPARE(conv_and_gradients, &w, false, 1e-2);
            eg_matmul_precision(EG_PRECISION_BFLOAT16);
            COMPARE(conv_and_gradients, &w, false, 8e-2);
            eg_matmul_precision(EG_PRECISION_FLOAT32);
            COMPARE(conv_and_gradients, &w, false, 1e-5);
        }
}
TEST(cuda_pooling) {
    for (int64_t kind = 0; kind < 2; kind++)
        for (int64_t stride = 1; stride < 4; stride++)
            for (int64_t size = 1; size < 4; size++)
                for (int64_t same = 0; same < 2; same++) {
                    EG_SCOPE;
                    given w = { { made(EG_FLOAT32, EG_SHAPE(2, 11, 8, 5), -1, 1) }, 1,
                                { kind, stride, 2, same, size, 3 }, { 0 } };
                    COMPARE(pool, &w, true, 1e-5);
                    w.x[0] = eg_cast(w.x[0], EG_FLOAT64);
                    if (stride == 2) COMPARE(pool, &w, true, 1e-12);
                }
}

// ---- indices

static eg_tensor *gather(const given *w) { return eg_gather(w->x[0], w->x[1], .axis = (int)w->i[0]); }
static eg_tensor *segments(const given *w) { return eg_segment_sum(w->x[0], w->x[1], w->i[0]); }
TEST(cuda_gather_and_scatter) {
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
    for (int t = 0; t < 5; t++)
        for (int64_t inner = 1; inner < 40; inner = inner * 2 + 1)
            for (int axis = 0; axis < 2; axis++) {
                EG_SCOPE;
                given w = { { made(dtypes[t], EG_SHAPE(6, 9, inner), 0, 100), made(EG_INT64, EG_SHAPE(17, 3), 0, 6) },
                            2, { axis }, { 0 } };
                COMPARE(gather, &w, t < 2, 1e-6);
            }
    for (int64_t n = 1; n < 5000; n = n * 4 + 3) {
        EG_SCOPE;
        given w = { { made(EG_FLOAT32, EG_SHAPE(n, 3), 0, 1), made(EG_INT32, EG_SHAPE(n), 0, 20) }, 2, { 20 }, { 0 } };
        COMPARE(segments, &w, true, 1e-6);
    }
}
// What is scattered, by how often its rows occur: all updates for one row, each row once, runs of all lengths around a
// chunk's; for so many rows that they are sorted, and for so few that they are not. The same bits each time, integers'
// sums exactly.
static eg_tensor *scattered(const given *w) { return eg_segment_sum(w->x[0], w->x[1], w->i[0]); }
// of a table of shape i[0], i[1], i[2], of which i[3] is gathered from
static eg_tensor *gather_gradient(const given *w) {
    eg_tensor *table = eg_zeros(eg_dtype_of(w->x[0]), EG_SHAPE(w->i[0], w->i[1], w->i[2])), *g = NULL, *x = w->x[0];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, table);
    eg_tensor *y = eg_gather(table, w->x[1], .axis = (int)w->i[3]);
    eg_tape_gradients_from(tape, &y, 1, &x, &table, 1, &g);
    return g;
}
static eg_tensor *rows_of(int kind, int64_t n, int64_t high) {
    int64_t *v = (int64_t *)malloc((size_t)n * sizeof *v), length = 1, at = 0, at_row = 0;
    if (!v) return NULL;
    for (int64_t i = 0; i < n; i++) {
        if (kind == 2 && i - at == length) { at = i; length = (length * 3 + 1) % 97 + 1; at_row++; }
        v[i] = kind == 0 ? high - 1
               : kind == 1 ? (i * 7919) % high
               : kind == 2 ? at_row % high
               : (i * i * 31 + 7) % high * (i % 3 != 0);
    }
    eg_with_device("cpu:0");
    eg_tensor *index = kind % 2 ? eg_from_data(EG_INT64, EG_SHAPE(n),
                                               v) : eg_cast(eg_from_data(EG_INT64, EG_SHAPE(n), v), EG_INT32);
    free(v);
    return index;
}
TEST(cuda_scatter) {
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
    static const int64_t counts[] = { 1, 2, 31, 32, 33, 64, 65, 100, 511, 2500 };
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int kind = 0; kind < 4; kind++)
            for (int few = 0; few < 2; few++)
                for (int t = 0; t < 5; t++) {
                    EG_SCOPE;
                    int64_t n = counts[c], high = few ? 1 + (int64_t)c % 8 : n + 9,
                            inner = t == 0 && n < 100 ? 300 : 1 + (int64_t)(c + (size_t)t) % 3;
                    given w = { { made(dtypes[t], EG_SHAPE(n, inner), 0, 200), rows_of(kind, n, high) }, 2, { high },
                                { 0 } };
                    COMPARE(scattered, &w, t < 2 && n < 100, t == 0 ? 5e-6 : t == 1 ? 1e-14 : 0);
                    w.x[0] = eg_gpu(w.x[0]);
                    w.x[1] = eg_gpu(w.x[1]);
                    eg_tensor *y = scattered(&w), *z = scattered(&w);
                    CHECK(memcmp(eg_data(y), eg_data(z), (size_t)(eg_size(y) * eg_dtype_size(dtypes[t]))) == 0);
                }
    for (int64_t high = 5; high < 50; high += 40)            // rows along an axis in the middle
        for (int64_t n = 40; n < 400; n += 150) {
            EG_SCOPE;
            given w = { { made(EG_FLOAT32, EG_SHAPE(3, n, 7), -1, 1), rows_of(3, n, high) }, 2, { 3, high, 7, 1 },
                        { 0 } };
            COMPARE(gather_gradient, &w, false, 5e-6);
        }
}
TEST(cuda_scatter_of_bad_indices_and_of_nothing) {
    for (int64_t high = 4; high < 20; high += 10) {
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(5, 2)),
                  *bad = eg_constant_of(EG_INT32, EG_SHAPE(5), 0, 1, 90, 1, 1);
        CHECK(eg_synchronize());
        CHECK(eg_segment_sum(x, bad, high) != NULL);
        CHECK_ERROR(eg_synchronize(), EG_ERROR_INDEX,
                    "eg_segment_sum: index 90 at position [2] of int32 [5] is out of range [0, ");
        eg_tensor *nothing = eg_segment_sum(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2)), eg_zeros(EG_INT32, EG_SHAPE(0)),
                                            high);
        CHECK_NEAR(eg_item(eg_reduce_max(nothing)), 0, 0);
        CHECK_INT(eg_size(eg_segment_sum(eg_zeros(EG_FLOAT32, EG_SHAPE(5, 0)), eg_zeros(EG_INT32, EG_SHAPE(5)), high)),
                  0);
        CHECK(eg_segment_sum(eg_zeros(EG_FLOAT32, EG_SHAPE(5, 0)), bad, high) != NULL);
        CHECK_ERROR(eg_synchronize(), EG_ERROR_INDEX, "index 90");
    }
}
TEST(cuda_a_bad_index_is_told_later) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 2)), *bad = eg_constant_of(EG_INT32, EG_SHAPE(2, 2), 0, 1, 9, -7);
    CHECK(eg_synchronize());
    eg_tensor *y = eg_gather(x, bad);
    CHECK(y != NULL);
    CHECK_ERROR(eg_item(eg_index(x, 0)), EG_ERROR_SHAPE, "one element");            // not this one: nothing was read
    CHECK_ERROR(eg_synchronize(), EG_ERROR_INDEX,
                "eg_gather: index 9 at position [1, 0] of int32 [2, 2] is out of range [0, 4)");
    CHECK(eg_synchronize());                              // told once
    eg_gather(x, bad);
    CHECK_ERROR(eg_data(x), EG_ERROR_INDEX, "is out of range");
    CHECK(eg_data(x) != NULL);
}

// ---- random numbers, optimizers

static eg_tensor *drawn(const given *w) {
    eg_dtype dtype = w->i[2] ? EG_FLOAT64 : EG_FLOAT32;
    switch (w->i[0]) {
        case 0: return eg_random_uniform(EG_SHAPE(w->i[1]), .dtype = dtype, .minval = -2, .maxval = 5);
        case 1: return eg_random_bernoulli(EG_SHAPE(w->i[1]), .probability = 0.3);
        case 2: return eg_random_integers(EG_SHAPE(w->i[1]), -5, 1000);
        case 3: return eg_random_integers(EG_SHAPE(w->i[1]), -5, (int64_t)1 << 40);
        case 4: return eg_random_permutation(w->i[1]);
        case 5: return eg_random_normal(EG_SHAPE(w->i[1]), .dtype = dtype);
        default: return eg_random_truncated_normal(EG_SHAPE(w->i[1]), .dtype = dtype, .mean = 1, .stddev = 2);
    }
}
TEST(cuda_random) {
    for (int64_t kind = 0; kind < 7; kind++)
        for (int64_t n = 1; n < 5000; n = n * 6 + 5)
            for (int64_t wide = 0; wide < 2; wide++) {
                EG_SCOPE;
                given w = { { NULL }, 0, { kind, n, wide }, { 0 } };
                COMPARE(drawn, &w, false, kind < 5 ? 0 : wide ? 4 * 2.3e-16 : 1.2e-7);
            }
}
static eg_optimizer *made_optimizer(int i) {
    switch (i) {
        case 0: return eg_sgd(.learning_rate = 0.1);
        case 1: return eg_sgd(.learning_rate = 0.1, .momentum = 0.9);
        case 2: return eg_sgd(.learning_rate = 0.1, .momentum = 0.9, .nesterov = true);
        case 3: return eg_rmsprop();
        case 4: return eg_rmsprop(.centered = true, .momentum = 0.5);
        case 5: return eg_adam();
        case 6: return eg_adam(.amsgrad = true, .schedule = eg_cosine_decay(0.1, 100, 0.1, 0, 0));
        case 7: return eg_adamw(.weight_decay = 0.1);
        case 8: return eg_adagrad();
        case 9: return eg_adadelta();
        case 10: return eg_adamax();
        case 11: return eg_nadam();
        case 12: return eg_ftrl(.l1 = 0.01, .l2 = 0.01);
        case 13: return eg_lion();
        default: return NULL;
    }
}
TEST(cuda_optimizers) {
    for (int wide = 0; wide < 2; wide++)
        for (int elsewhere = 0; elsewhere < 2; elsewhere++)        // the optimizer's rate and step on the other device
            for (int i = 0; i < 14; i++) {
                EG_SCOPE;
                eg_tensor *first = made(wide ? EG_FLOAT64 : EG_FLOAT32, EG_SHAPE(1000), -1, 1), *result[2];
                for (int d = 0; d < 2; d++) {
                    eg_set_device(d && !elsewhere ? test_device() : "cpu:0");
                    eg_optimizer *o = made_optimizer(i);
                    eg_set_device(d ? test_device() : "cpu:0");
                    eg_tensor *v = eg_variable(d ? eg_gpu(first) : first, "v");
                    for (int step = 0; step < 4; step++) {
                        eg_tensor *g = eg_sub(eg_mul(v, 0.5), 0.1);
                        CHECK(eg_apply_gradients(o, &g, &v, 1));
                    }
                    CHECK_INT(eg_optimizer_steps(o), 4);
                    result[d] = eg_cpu(eg_add(v, 0));
                    eg_release(v);
                    eg_optimizer_release(o);
                }
                eg_set_device(test_device());
                int64_t at;
                double d = worst(eg_data(result[1]), eg_data(result[0]), eg_dtype_of(result[0]), 1000, &at);
                if (d > (wide ? 1e-12 : 2e-6) && test_fail(__FILE__, __LINE__, "an optimizer"))
                    printf("    number %d differs by %g\n", i, d);
            }
}
// Many variables at once, more than one launch's table holds, of sizes around a chunk's, of both dtypes, some without a
// gradient; with clipping by the global norm, which one launch more measures.
static void step_many(int which, double clip, int n, eg_tensor **result) {
    eg_tensor *v[100], *g[100];
    eg_optimizer_options o;
    memset(&o, 0, sizeof o);
    o.global_clipnorm = clip;
    eg_optimizer *opt = clip > 0 ? (which ? (eg_adam)(o) : (eg_sgd)(o)) : made_optimizer(which);
    for (int i = 0; i < n; i++) {
        eg_seed((uint64_t)i + 1);
        v[i] = eg_variable(eg_random_normal(EG_SHAPE(i == 50 ? 0
                                                     : i % 7 == 6 ? 3000 + i
                                                     : 1 + 13 * (i % 5)),
                                            .dtype = i % 3 == 2 ? EG_FLOAT64 : EG_FLOAT32), "v");
    }
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < n; i++) g[i] = i % 11 == 10 ? NULL : eg_sub(eg_mul(v[i], 0.5), 0.1);
        CHECK(eg_apply_gradients(opt, g, v, n));
    }
    for (int i = 0; i < n; i++) {
        result[i] = eg_cpu(eg_add(v[i], 0));
        eg_release(v[i]);
    }
    eg_optimizer_release(opt);
}
TEST(cuda_optimizers_of_many_variables) {
    static const double clips[] = { 0, 0.5, 1e6 };
    for (int which = 0; which < 14; which++)
        for (int c = 0; c < (which < 2 ? 3 : 1); c++) {
            EG_SCOPE;
            eg_tensor *result[2][100];
            for (int d = 0; d < 2; d++) {
                eg_set_device(d ? test_device() : "cpu:0");
                step_many(which, clips[c], 100, result[d]);
            }
            for (int i = 0; i < 100; i++) {
                int64_t at;
                double d = worst(eg_data(result[1][i]), eg_data(result[0][i]), eg_dtype_of(result[0][i]),
                                 eg_size(result[0][i]), &at);
                if (d > 3e-6 && test_fail(__FILE__, __LINE__, "an optimizer of many"))
                    printf("    number %d, clip %g, variable %d differs by %g\n", which, clips[c], i, d);
            }
        }
}
TEST(cuda_nonfinite) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 0, 2);
    eg_trap_nonfinite(true);
    CHECK_TRAPPED(eg_log(x), "eg_log: made 1 NaN or infinite");
    // Nothing waits for it: the op that was first is named at the next read, after many others, once.
    eg_tensor *y = eg_sqrt(eg_sub(x, 1)), *z = eg_exp(y);
    CHECK(y && z && eg_error() == EG_OK);
    for (int i = 0; i < 700; i++) { EG_SCOPE; eg_add(x, 1); }
    CHECK_INT(eg_error(), EG_ERROR_NONFINITE);                // the texts are for so many
    CHECK_CONTAINS(eg_error_message(), "eg_sqrt: made 1 NaN or infinite elements of [3] from finite inputs: float32 "
                                       "[3] (from eg_sub) (gpu:0 found it later)");
    eg_error_clear();
    CHECK_TENSOR(y, 0, 0, NAN, 1);
    eg_layer *l = eg_layer_dense(1, .name = "large", .kernel_initializer = EG_INIT_CONSTANT,
                                 .kernel_initializer_value = 3e38);
    eg_call(l, eg_ones(EG_FLOAT32, EG_SHAPE(1, 4)));
    CHECK_ERROR(eg_item(eg_scalar(1)), EG_ERROR_NONFINITE, "in layer large");
    eg_layer_release(l);
    eg_trap_nonfinite(false);
}

// More threads than numbers were once: each hears of its own op, and a thread that takes the number of one that has
// ended does not hear of that one's.
enum { TRAPPED = 80 };
static pthread_mutex_t trapped_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t trapped_all = PTHREAD_COND_INITIALIZER;
static int trapped_waiting, trapped_turn;
static void trapped_wait(void) {
    pthread_mutex_lock(&trapped_lock);
    const int turn = trapped_turn;
    if (++trapped_waiting == TRAPPED) { trapped_waiting = 0; trapped_turn++; pthread_cond_broadcast(&trapped_all); }
    else while (trapped_turn == turn) pthread_cond_wait(&trapped_all, &trapped_lock);
    pthread_mutex_unlock(&trapped_lock);
}
static bool trapped_right[TRAPPED];
static void *trapped_thread(void *number) {
    const int n = (int)(intptr_t)number;
    char text[64];
    eg_set_device(test_device());
    eg_trap_nonfinite(true);
    eg_tensor *x = eg_range(EG_FLOAT32, 0, n + 2, 1);
    eg_synchronize();
    trapped_wait();
    eg_tensor *y = n % 3 ? eg_exp(x) : eg_sqrt(eg_sub(x, n + 1.5));          // n + 2 are NaN
    trapped_wait();
    snprintf(text, sizeof text, "eg_sqrt: made %d NaN", n + 2);
    trapped_right[n] = y && eg_synchronize() == (n % 3 != 0) &&
                       (n % 3 ? eg_error() == EG_OK : strstr(eg_error_message(), text) != NULL);
    eg_error_clear();
    if (n % 2) eg_log(eg_sub(x, 1e6));                                       // nobody looks
    eg_trap_nonfinite(false);
    return NULL;
}
TEST(cuda_nonfinite_of_many_threads) {
    for (int round = 0; round < 2; round++) {
        pthread_t thread[TRAPPED];
        for (int i = 0; i < TRAPPED; i++)
            REQUIRE(!pthread_create(&thread[i], NULL, trapped_thread, (void *)(intptr_t)i));
        for (int i = 0; i < TRAPPED; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < TRAPPED; i++) CHECK(trapped_right[i]);
    }
}

// ---- the device

TEST(cuda_two_devices_do_not_mix) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y = eg_cpu(x);
    CHECK_ERROR(eg_add(x, y), EG_ERROR_DEVICE,
                "operand 0 is on gpu:0 and operand 1 on cpu:0; copy one of them, as in eg_to(x, \"gpu:0\")");
    if (eg_device_count("gpu") < 2) return;
    eg_tensor *z = eg_to(x, "gpu:1");
    CHECK_STR(eg_device_of(z), "gpu:1");
    CHECK_TENSOR(eg_add(z, 1), 0, 2, 2);
    CHECK_ERROR(eg_add(x, z), EG_ERROR_DEVICE, "operand 0 is on gpu:0 and operand 1 on gpu:1");
}
// From one GPU to another and back, in several parts, of a view, while both are at work; the gradient takes the way
// back.
TEST(cuda_copies_between_devices) {
    if (eg_device_count("gpu") < 2) SKIP("one GPU");
    for (int64_t n = 1; n < 3000000; n = n * 1300 + 7) {
        EG_SCOPE;
        eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, (double)(2 * n), 1), EG_SHAPE(2, n)), *y, *g;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        y = eg_to(eg_add(eg_transpose(eg_mul(x, 2)), 1), "gpu:1");
        y = eg_add(y, y);
        eg_tensor *back = eg_mul(eg_to(y, "gpu:0"), 0.5);
        CHECK(eg_tape_gradients(tape, back, &x, 1, &g));
        CHECK_STR(eg_device_of(y), "gpu:1");
        CHECK_STR(eg_device_of(back), "gpu:0");
        CHECK_STR(eg_device_of(g), "gpu:0");
        CHECK_NEAR(eg_item(eg_reduce_max(eg_abs(eg_sub(back, eg_add(eg_transpose(eg_mul(x, 2)), 1))))), 0, 0);
        CHECK_NEAR(eg_item(eg_reduce_min(g)), 2, 0);
        CHECK_NEAR(eg_item(eg_reduce_max(g)), 2, 0);
    }
}
// Prefetched elements are on the device before they are asked for, whole when they are read, also while other work uses
// memory that they had; and those that nobody takes do not write into it later.
static eg_dataset *numbered(int64_t n, int64_t columns) {
    eg_with_device("cpu:0");
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, (double)(n * columns), 1), EG_SHAPE(n, columns)),
              *y = eg_range(EG_INT64, 0, (double)n, 1);
    return eg_dataset_prefetch(eg_dataset_batch(eg_dataset_from_slices(x, y), 2), 3);
}
TEST(cuda_prefetched_to_the_device) {
    enum { COLUMNS = 5000 };
    eg_dataset *d = numbered(40, COLUMNS);
    for (int most = 1; most < 30; most += 19) {           // the first time it is left at once
        eg_iterator *it = eg_iterator_new(d);
        eg_tensor *out[EG_MAX_COMPONENTS], *sum = eg_zeros(EG_FLOAT64, EG_SHAPE(2));
        int64_t copies = eg_memory().device_copies;
        int taken = 0;
        while (taken < most && eg_iterator_next(it, out) == EG_NEXT) {
            CHECK_STR(eg_device_of(out[0]), test_device());
            for (int k = 0; k < 3; k++) { EG_SCOPE; eg_add(out[0], eg_full(EG_FLOAT32, EG_SHAPE(2, COLUMNS), 1)); }
            sum = eg_add(sum, eg_reduce_sum(eg_cast(out[0], EG_FLOAT64), .axes = EG_AXES(1)));
            taken++;
        }
        CHECK_INT(taken, most < 20 ? most : 20);
        int64_t last = 2 * taken - 1;                     // the sum of all odd rows' elements
        double want = 0;
        for (int64_t r = 1; r <= last; r += 2) want += COLUMNS * ((double)r * COLUMNS + (COLUMNS - 1) / 2.0);
        CHECK_NEAR(eg_item(eg_index(sum, 1)), want, 0);
        CHECK(eg_memory().device_copies - copies >= 2 * taken);
        if (most > 20) CHECK_INT(eg_memory().device_copies - copies, 2 * taken);
        eg_iterator_release(it);
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(20, COLUMNS), 7);
        CHECK_NEAR(eg_item(eg_reduce_max(x)), 7, 0);
    }
    eg_dataset_release(d);
}
TEST(cuda_memory_is_used_again) {
    for (int i = 0; i < 3; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1000, 1000));
        for (int k = 0; k < 20; k++) { EG_SCOPE; eg_add(x, k); }
        CHECK_NEAR(eg_item(eg_reduce_max(x)), 0, 0);
    }
    eg_memory_trim();
    CHECK_NEAR(eg_item(eg_scalar(3)), 3, 0);
}
#endif
