// Traced functions: what a replay does with its list. Joined, merged and dropped lines give the bits that the body
// gives when it runs eagerly (any NaN stands for any other), and what must not be merged or dropped is not.
#include "test.h"
#include "printed.h"

// ---- a function, replayed, against the body

static bool same_bits(eg_tensor *a, eg_tensor *b) {
    const size_t size = (size_t)eg_dtype_size(eg_dtype_of(a));
    const char *p = (const char *)eg_data(a), *q = (const char *)eg_data(b);
    if (eg_dtype_of(a) != eg_dtype_of(b) || eg_size(a) != eg_size(b)) return false;
    for (int64_t i = 0; i < eg_size(a); i++, p += size, q += size) {
        if (!memcmp(p, q, size)) continue;
        float f[2];
        double d[2];
        if (eg_dtype_of(a) == EG_FLOAT32) {
            memcpy(&f[0], p, 4);
            memcpy(&f[1], q, 4);
            if (f[0] != f[0] && f[1] != f[1]) continue;
        } else if (eg_dtype_of(a) == EG_FLOAT64) {
            memcpy(&d[0], p, 8);
            memcpy(&d[1], q, 8);
            if (d[0] != d[0] && d[1] != d[1]) continue;
        }
        return false;
    }
    return true;
}
enum { MOST = 24 };
// Three replays of the body against an eager run of it; returns how many steps a replay has, or -1 where it differs.
static int64_t replays(eg_function_body *body, void *user, eg_tensor *const *in, int n, int m) {
    eg_tensor *want[MOST], *got[MOST];
    eg_function *f = eg_function_new(body, user, .no_recheck = true);
    eg_run_functions_eagerly(true);
    CHECK(eg_function_call(f, in, n, want, m));
    eg_run_functions_eagerly(false);
    bool same = true;
    for (int call = 0; call < 3 && same; call++) {
        CHECK(eg_function_call(f, in, n, got, m));
        for (int i = 0; i < m && same; i++) {
            same = (want[i] == NULL) == (got[i] == NULL) && (!want[i] || same_bits(want[i], got[i]));
            if (!same) printf("    call %d, output %d differs\n", call, i);
        }
    }
    const eg_function_info info = eg_function_counts(f);
    if (test_on_host) {
        CHECK(!eg_function_reason(f));
        CHECK_INT(info.replays, 2);
        if (!same) eg_function_print(f);
    }
    CHECK(same);
    eg_function_release(f);
    return same ? info.steps : -1;
}
// Values with zeros, denormals, infinities and NaN among them.
static eg_tensor *data(eg_dtype dtype, eg_shape shape, int seed, bool special) {
    static const double specials[] = {0, -0.0, 1, -1, 1e-40, 3e38, INFINITY, -INFINITY, NAN, 0.5, -2};
    double n = 1;
    for (int i = 0; i < shape.rank; i++) n *= (double)shape.dims[i];
    eg_tensor *x = eg_sin(eg_mul(eg_add(eg_range(EG_FLOAT64, 0, n, 1), seed), 1.7 + seed));
    if (special && n > 0) {
        eg_tensor *s = eg_from_data(EG_FLOAT64, EG_SHAPE(11), specials);
        eg_tensor *at = eg_mod(eg_range(EG_INT64, 0, n, 1), 11);
        x = eg_where(eg_equal(eg_mod(eg_range(EG_INT64, seed, seed + n, 1), 3), 0), eg_gather(s, at), x);
    }
    return eg_reshape(eg_cast(x, dtype), shape);
}

// ---- chains of elementwise ops that a number chooses

typedef struct chain { uint32_t seed; int length, order; bool bools; } chain;
static uint32_t next(uint32_t *seed) { return (*seed = *seed * 1664525u + 1013904223u) >> 8; }
static eg_tensor *chain_op(uint32_t *seed, eg_tensor *a, eg_tensor *b, eg_tensor *c) {
    switch (next(seed) % 26) {
    case 0: return eg_add(a, b);
    case 1: return eg_sub(a, b);
    case 2: return eg_mul(a, b);
    case 3: return eg_div(a, b);
    case 4: return eg_maximum(a, b);
    case 5: return eg_minimum(b, a);
    case 6: return eg_tanh(a);
    case 7: return eg_exp(eg_minimum(a, 3));
    case 8: return eg_sigmoid(a);
    case 9: return eg_square(a);
    case 10: return eg_negative(a);
    case 11: return eg_abs(a);
    case 12: return eg_relu(a);
    case 13: return eg_gelu(a);
    case 14: return eg_where(eg_greater(a, b), c, a);
    case 15: return eg_where(eg_less_equal(b, 0.25), 0, c);
    case 16: return eg_mul(a, 1);
    case 17: return eg_sub(1, a);
    case 18: return eg_div(a, 3);
    case 19: return eg_clip_by_value(a, -0.75, 0.5);
    case 20: return eg_softplus(a);
    case 21: return eg_sqrt(eg_abs(a));
    case 22: return eg_squared_difference(a, b);
    case 23: return eg_divide_no_nan(a, b);
    case 24: return eg_add(eg_negative(eg_negative(a)), eg_mul(eg_ones_like(b), b));
    default: return eg_leaky_relu(a, 0.1);
    }
}
static eg_tensor *chain_value(chain *s, eg_tensor *const *in, int n, eg_tensor **more) {
    eg_tensor *v[6];
    uint32_t seed = s->seed;
    for (int i = 0; i < 6; i++) v[i] = in[i % n];
    for (int i = 0; i < s->length; i++) {
        const uint32_t a = next(&seed) % 6, b = next(&seed) % 6, c = next(&seed) % 6;
        v[a] = chain_op(&seed, v[a], v[b], v[c]);
    }
    eg_tensor *y = v[0];
    for (int i = 1; i < 6; i++) y = eg_add(y, eg_mul(v[i], 0.5));
    if (more) {
        more[0] = v[1];
        more[1] = eg_greater(v[2], v[3]);
        more[2] = eg_less(v[2], 0.5);
        more[3] = v[4];
    }
    return y;
}
// Outputs: the chain's value and values on the way; with order 1 and 2, the gradients of all inputs as well.
static bool chain_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    chain *s = (chain *)user;
    eg_tensor *more[4];
    memset(out, 0, 13 * sizeof *out);
    if (s->order == 0) {
        out[0] = chain_value(s, in, 4, more);
        for (int i = 0; i < 4; i++) out[i + 1] = more[i];
    } else {
        eg_tape *outer = s->order > 1 ? eg_tape_begin() : NULL, *inner = eg_tape_begin();
        for (int i = 0; i < 4 && outer; i++) eg_tape_watch(outer, in[i]);
        for (int i = 0; i < 4; i++) eg_tape_watch(inner, in[i]);
        out[0] = chain_value(s, in, 4, NULL);
        eg_tape_gradients(inner, out[0], in, 4, out + 1);
        if (outer) {
            eg_tensor *sum = eg_reduce_sum(out[0]);
            for (int i = 0; i < 4; i++) if (out[i + 1]) sum = eg_add(sum, eg_reduce_sum(eg_square(out[i + 1])));
            eg_tape_gradients(outer, sum, in, 4, out + 5);
        }
    }
    for (int i = 0; i < 13; i++) if (out[i]) out[i] = eg_keep(out[i]);
    return eg_error() == EG_OK;
}
static void chain_compare(eg_dtype dtype, const eg_shape *shapes, uint32_t seed, int length, int order, bool special) {
    EG_SCOPE;
    chain s = {seed, length, order, false};
    eg_tensor *in[4];
    for (int i = 0; i < 4; i++) in[i] = data(dtype, shapes[i], i + 1, special);
    if (replays(chain_body, &s, in, 4, 13) < 0)
        printf("    %s, seed %u, length %d, order %d, %d elements\n", eg_dtype_name(dtype), seed, length, order,
               (int)eg_size(in[0]));
}
static const int sizes[] = {0,  1,  2,  3,  4,   5,   7,   8,    15,   16,   17,  31,
                            33, 63, 64, 65, 127, 130, 999, 1000, 1001, 4095, 4096, 5000};
TEST(chains_of_one_shape) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++)
            for (uint32_t seed = 0; seed < 3; seed++) {
                const eg_shape shape = EG_SHAPE(sizes[i]), shapes[] = {shape, shape, shape, shape};
                chain_compare((eg_dtype)dtype, shapes, seed * 31 + (uint32_t)i, 5 + (int)seed * 20, 0, seed < 2);
            }
}
TEST(chains_with_rows_columns_and_numbers) {
    static const int dims[][2] = {{1, 1}, {1, 7}, {3, 5}, {5, 64}, {4, 65}, {16, 100}, {70, 3}, {1, 1000}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++)
            for (uint32_t seed = 0; seed < 4; seed++) {
                const int a = dims[i][0], b = dims[i][1];
                const eg_shape shapes[] = {EG_SHAPE(a, b), EG_SHAPE(b), EG_SHAPE(a, 1),
                                           seed % 2 ? EG_SHAPE(1) : EG_SHAPE(a, b)};
                chain_compare((eg_dtype)dtype, shapes, seed * 77 + (uint32_t)i, 6 + (int)seed * 9, 0, seed < 2);
            }
}
TEST(gradients_of_chains_to_second_order) {
    static const int dims[][2] = {{1, 4}, {3, 5}, {4, 65}, {5, 13}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++)
            for (uint32_t seed = 0; seed < 4; seed++)
                for (int order = 1; order < 3; order++) {
                    const int a = dims[i][0], b = dims[i][1];
                    const eg_shape shapes[] = {EG_SHAPE(a, b), EG_SHAPE(b), EG_SHAPE(a, 1), EG_SHAPE(1)};
                    chain_compare((eg_dtype)dtype, shapes, seed * 5 + (uint32_t)i, 4 + (int)seed * 5, order, false);
                }
}
// Products and sums in turn, by an operand and by a constant, which a program computes two at a time. Each rounds by
// itself; the product that is an output as well stands between two of them.
static bool sums_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int how = *(const int *)user;
    eg_tensor *v = in[0];
    for (int i = 0; i < 9; i++) {
        eg_tensor *p = how & 1 ? eg_mul(v, 1.1) : eg_mul(v, in[1]);
        if (i == 4) out[1] = p;
        v = how & 2 ? eg_add(p, -0.3) : eg_add(p, in[2]);
    }
    out[0] = v;
    return true;
}
TEST(sums_behind_products_round_twice) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++)
            for (int how = 0; how < 8; how++) {
                EG_SCOPE;
                eg_tensor *in[3];
                for (int k = 0; k < 3; k++)
                    in[k] = data((eg_dtype)dtype, k && how & 4 ? EG_SHAPE(1) : EG_SHAPE(sizes[i]), k + 1, false);
                if (replays(sums_body, &how, in, 3, 2) < 0)
                    printf("    %s, %d elements, %d\n", eg_dtype_name((eg_dtype)dtype), sizes[i], how);
            }
}
TEST(a_long_chain_is_split) {
    const eg_shape shape = EG_SHAPE(6), shapes[] = {shape, shape, shape, shape};
    chain_compare(EG_FLOAT32, shapes, 5, 400, 0, false);
    chain_compare(EG_FLOAT32, shapes, 6, 60, 1, false);
    chain_compare(EG_FLOAT32, shapes, 7, 3000, 0, true);
}

// ---- the passes, by what is left

static bool twice_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int what = *(int *)user;
    eg_tensor *x = in[0];
    eg_tensor *s = eg_reduce_sum(x, .axes = EG_AXES(0), .keepdims = true);
    eg_tensor *t = eg_reduce_sum(x, .axes = EG_AXES(0), .keepdims = true);
    switch (what) {
    case 0: out[0] = eg_matmul(x, x); out[1] = NULL; break;                 // s and t are dead
    case 1: out[0] = eg_sub(eg_matmul(s, x), eg_matmul(t, x)); out[1] = NULL; break;     // t is s, as are the products
    case 2: out[0] = s; out[1] = t; break;                                  // both are outputs: both are computed
    case 3: out[0] = eg_matmul(eg_mul(eg_ones_like(x), x), x); out[1] = NULL; break;     // 1 x is x
    case 4: out[0] = eg_matmul(eg_negative(eg_negative(x)), x); out[1] = NULL; break;
    case 5: out[0] = eg_matmul(x, eg_mul(eg_div(eg_ones_like(x), 3), 2)); out[1] = NULL; break;  // a constant
    case 6: out[0] = eg_add(eg_mul(x, 2), 1); out[1] = eg_add(1, eg_mul(x, 2)); break;
    default: out[0] = eg_add(eg_mul(x, 0), -0.0); out[1] = eg_add(x, 0); break;   // neither may be left out
    }
    for (int i = 0; i < 2; i++) if (out[i]) out[i] = eg_keep(out[i]);
    return true;
}
TEST(dead_and_common_lines_identities_and_constants) {
    static const int steps[] = {1, 3, 2, 1, 1, 1, 1, 1};
    eg_tensor *x = data(EG_FLOAT32, EG_SHAPE(5, 5), 1, false);
    for (int what = 0; what < 8; what++) {
        const int64_t left = replays(twice_body, &what, &x, 1, 2);
        if (test_on_host && left != steps[what]) printf("    case %d\n", what);
        if (test_on_host) CHECK_INT(left, steps[what]);
    }
    x = data(EG_FLOAT32, EG_SHAPE(5, 5), 0, true);
    for (int what = 5; what < 8; what++) replays(twice_body, &what, &x, 1, 2);
}
// A line that repeats one which hands on its operand reads what wrote that operand, and so runs behind it.
static bool repeated_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *v = (eg_tensor *)user;
    out[0] = eg_keep(eg_exp(eg_abs(in[0])));
    eg_assign(v, eg_mul(v, 1.25));
    eg_tensor *p = eg_mul(v, eg_ones(EG_FLOAT32, EG_SHAPE(1))), *q = eg_mul(v, eg_ones(EG_FLOAT32, EG_SHAPE(1)));
    out[1] = eg_keep(eg_add(p, in[0]));
    out[2] = eg_keep(eg_add(q, 2));
    return out[2] != NULL;
}
TEST(lines_that_repeat_an_identity_keep_their_order) {
    float got[2][8][3];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        eg_tensor *v = eg_variable(eg_scalar(1), "v"), *x = data(EG_FLOAT32, EG_SHAPE(1), 1, false);
        eg_function *f = eg_function_new(repeated_body, v);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 8; i++) {
            EG_SCOPE;
            eg_tensor *y[3];
            CHECK(eg_function_call(f, &x, 1, y, 3));
            for (int k = 0; k < 3; k++) CHECK(eg_read_into(y[k], &got[traced][i][k], 1));
        }
        eg_run_functions_eagerly(false);
        eg_function_release(f);
        eg_release(v);
    }
    CHECK(!memcmp(got[0], got[1], sizeof got[0]));
}
// A group writes its result over an operand that nobody reads any more; not where the last pass of its program would
// read elements again, nor where the operand is read on.
static bool over_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int reads_on = *(const int *)user;
    eg_tensor *a = eg_matmul(in[0], in[1]), *b = eg_add(eg_mul(eg_tanh(a), 3), eg_square(a)), *c = eg_matmul(b, in[1]);
    if (reads_on) c = eg_add(c, eg_matmul(a, in[1]));
    out[0] = eg_keep(eg_reduce_sum(eg_mul(eg_sin(c), c)));
    out[1] = eg_keep(eg_matmul(eg_exp(eg_mul(c, 0.1)), in[1]));
    return out[1] != NULL;
}
TEST(results_take_over_memory) {
    static const int64_t rows[] = { 32, 33, 640, 1000, 32, 1 }, most[] = { 2, 3, 2, 2, 4, 3 };
    for (int k = 0; k < 6; k++) {
        int reads_on = k == 4;
        eg_tensor *in[2] = { data(EG_FLOAT32, EG_SHAPE(rows[k], 16), k, false),
                             data(EG_FLOAT32, EG_SHAPE(16, 16), k + 1, false) }, *out[2];
        CHECK(replays(over_body, &reads_on, in, 2, 2) > 0);
        eg_function *f = eg_function_new(over_body, &reads_on);
        CHECK(eg_function_call(f, in, 2, out, 2));
        if (test_on_host) CHECK(eg_function_counts(f).bytes <= most[k] * rows[k] * 64 + 64);
        eg_function_release(f);
    }
}
TEST(unfused_runs_each_line) {
    if (!test_on_host) return;
    int what = 1;
    eg_tensor *x = data(EG_FLOAT32, EG_SHAPE(5, 5), 1, false), *y[2], *z[2];
    eg_function *f = eg_function_new(twice_body, &what, .unfused = true), *g = eg_function_new(twice_body, &what);
    for (int i = 0; i < 3; i++) {
        CHECK(eg_function_call(f, &x, 1, y, 2) && eg_function_call(g, &x, 1, z, 2));
        CHECK(same_bits(y[0], z[0]));
    }
    CHECK_INT(eg_function_counts(f).steps, eg_function_counts(f).lines);
    CHECK_INT(eg_function_counts(f).lines, 5);
    CHECK_INT(eg_function_counts(g).steps, 3);
    CHECK(eg_function_print(g));
    eg_function_release(f);
    eg_function_release(g);
}
// Draws, a variable before and behind its assignment, and lent memory are never merged.
typedef struct versions { eg_tensor *v; eg_tensor *lent; } versions;
static bool versions_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    versions *s = (versions *)user;
    eg_tensor *a = eg_random_normal(EG_SHAPE(6)), *b = eg_random_normal(EG_SHAPE(6));
    out[0] = eg_keep(eg_sub(a, b));
    eg_tensor *before = eg_mul(s->v, 2);
    eg_assign_add(s->v, in[0]);
    eg_tensor *behind = eg_mul(s->v, 2);
    eg_assign(s->v, eg_mul(behind, 0.25));
    out[1] = eg_keep(before);
    out[2] = eg_keep(behind);
    out[3] = eg_keep(eg_mul(s->v, 2));
    out[4] = eg_keep(eg_add(s->lent, 0.5));
    return true;
}
TEST(draws_versions_and_lent_memory_are_kept_apart) {
    float lent[6] = {1, 2, 3, 4, 5, 6}, got[2][8][5][6];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        lent[0] = 1;                                         // a device copies it when it is lent
        eg_seed(3);
        eg_tensor *x = data(EG_FLOAT32, EG_SHAPE(6), 1, false);
        versions s = {eg_variable(data(EG_FLOAT32, EG_SHAPE(6), 4, false), "v"),
                      eg_wrap_data(EG_FLOAT32, EG_SHAPE(6), lent, NULL, NULL)};
        eg_function *f = eg_function_new(versions_body, &s);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 8; i++) {
            EG_SCOPE;
            eg_tensor *y[5];
            lent[0] = (float)i;
            CHECK(eg_function_call(f, &x, 1, y, 5));
            for (int k = 0; k < 5; k++) CHECK(eg_read_into(y[k], got[traced][i][k], 6));
        }
        eg_run_functions_eagerly(false);
        if (traced && test_on_host) CHECK(eg_function_counts(f).replays > 2);
        eg_function_release(f);
        eg_release(s.v);
    }
    CHECK(!memcmp(got[0], got[1], sizeof got[0]));
    CHECK(got[0][7][0][0] != 0);
}

// ---- products that add a row and apply relu as they are written back

typedef struct affine { bool ta, tb, row_first, relu; int kind; eg_tensor *v; } affine;
static bool affine_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const affine *s = (const affine *)user;
    eg_tensor *p = eg_matmul(in[0], in[1], .transpose_a = s->ta, .transpose_b = s->tb);
    eg_tensor *y = s->row_first ? eg_add(in[2], p) : eg_add(p, in[2]);
    out[0] = eg_keep(s->relu ? eg_relu(y) : y);
    return out[0] != NULL;
}
static eg_shape matrix(int64_t rows, int64_t columns, bool transposed) {
    return transposed ? EG_SHAPE(columns, rows) : EG_SHAPE(rows, columns);
}
TEST(products_take_a_row_and_relu_along) {
    static const int dims[][3] = { { 1, 1, 1 }, { 1, 5, 7 }, { 1, 64, 16 }, { 2, 0, 3 }, { 3, 4, 1 }, { 4, 1, 4 },
                                   { 5, 7, 2 }, { 8, 16, 8 }, { 17, 33, 9 }, { 32, 100, 24 }, { 33, 20, 100 },
                                   { 100, 3, 5 }, { 64, 600, 1 }, { 7, 700, 40 }, { 40, 64, 130 }, { 0, 4, 4 },
                                   { 4, 4, 0 }, { 32, 784, 128 } };
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int how = 0; how < 32; how++) {
            EG_SCOPE;
            const eg_dtype dtype = how & 16 ? EG_FLOAT64 : EG_FLOAT32;
            const int m = dims[i][0], k = dims[i][1], n = dims[i][2];
            affine s = { (how & 1) != 0, (how & 2) != 0, (how & 4) != 0, (how & 8) != 0, 0, NULL };
            eg_tensor *in[3] = { data(dtype, matrix(m, k, s.ta), 1, false), data(dtype, matrix(k, n, s.tb), 2, false),
                                 data(dtype, how & 1 ? EG_SHAPE(1, n) : EG_SHAPE(n), 3, how & 2) };
            const int64_t steps = replays(affine_body, &s, in, 3, 1);
            if (test_on_host) CHECK_INT(steps, m * n > 0);
            if (steps != (m * n > 0)) printf("    %d x %d x %d, %d\n", m, k, n, how);
        }
}
static eg_tensor *affine_of(const affine *s, eg_tensor *const *in, eg_tensor **more) {
    eg_tensor *x = in[0], *w = in[1], *b = in[2], *p;                   // (6, 4), (4, 4), (4)
    switch (s->kind) {
    case 0: return eg_add(eg_matmul(eg_transpose(eg_transpose(x)), w), eg_reshape(b, EG_SHAPE(1, 4)));
    case 1: return eg_add(eg_matmul(eg_reshape(x, EG_SHAPE(2, 3, 4)), w), b);
    case 2: return eg_relu(eg_add(eg_matmul(eg_reshape(x, EG_SHAPE(2, 3, 4)), eg_reshape(w, EG_SHAPE(1, 4, 4))), b));
    case 3: return eg_relu(eg_add(eg_reshape(eg_matmul(x, w), EG_SHAPE(3, 2, 4)), b));
    case 4: return eg_relu(eg_relu(eg_add(eg_matmul(x, w), b)));        // the second one is a step of its own
    case 5: return eg_add(eg_add(eg_matmul(x, w), b), b);
    case 6: return eg_tanh(eg_add(eg_matmul(x, w), b));                 // small: the row, but not tanh
    case 7: return eg_add(eg_matmul(x, w), eg_zeros(EG_FLOAT32, EG_SHAPE(4)));
    case 8: return eg_add(eg_matmul(eg_relu(eg_add(eg_matmul(x, w), b)), w), b);
    // what is not such a row
    case 9: return eg_add(eg_matmul(x, w), eg_reshape(eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(6, 1)), EG_SHAPE(6, 1)));
    case 10: return eg_add(eg_matmul(x, w), eg_reduce_sum(b));
    case 11: return eg_add(eg_matmul(x, w), 3);
    case 12: return eg_add(eg_matmul(x, w), x);
    case 13: return eg_add(eg_transpose(eg_matmul(w, eg_slice(w, EG_SHAPE(0, 0), EG_SHAPE(4, 4)))), b);
    case 14: return eg_add(eg_reshape(eg_matmul(x, w), EG_SHAPE(12, 2)), eg_slice(b, EG_SHAPE(0), EG_SHAPE(2)));
    case 15: return eg_add(eg_matmul(x, w), eg_strided_slice(x, EG_SHAPE(0, 0), EG_SHAPE(1, 4), EG_SHAPE(1, 1)));
    case 16: return eg_sub(eg_matmul(x, w), b);
    case 17: return eg_relu(eg_matmul(x, w));
    case 18: return eg_add(eg_matmul(x, w), eg_reverse(b, EG_AXES(0)));
    // what somebody else reads
    case 19: *more = p = eg_matmul(x, w); return eg_relu(eg_add(p, b));
    case 20: p = eg_matmul(x, w); return eg_matmul(eg_relu(eg_add(p, b)), eg_transpose(p));
    case 21: *more = p = eg_add(eg_matmul(x, w), b); return eg_relu(p);
    case 22: p = eg_add(eg_matmul(x, w), b); return eg_matmul(eg_relu(p), eg_transpose(p));
    // what is written between the product and the sum, and before both
    case 23: p = eg_matmul(x, s->v); eg_assign_add(s->v, w); return eg_add(p, b);
    case 24: p = eg_matmul(x, w); eg_assign_add(s->v, w); return eg_add(p, eg_reduce_sum(s->v, .axes = EG_AXES(0)));
    default: eg_assign_add(s->v, w); return eg_relu(eg_add(eg_matmul(x, s->v), b));
    }
}
static bool affines_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const affine *s = (const affine *)user;
    eg_tensor *more = NULL, *y = affine_of(s, in, &more);
    if (s->kind >= 23) eg_assign(s->v, eg_mul(in[1], 0.5));
    out[1] = more ? eg_keep(more) : NULL;
    out[0] = y ? eg_keep(y) : NULL;
    return y != NULL;
}
TEST(products_take_only_what_is_a_row_and_read_once) {
    static const int steps[] = { 1, 1, 1, 1, 2, 2, 2, 1, 2, 2, 3, 2, 2, 2, 2, 1, 2, 2, 2, 2, 3, 2, 3, 4, 6, 4 };
    for (int kind = 0; kind < (int)(sizeof steps / sizeof *steps); kind++) {
        EG_SCOPE;
        affine s = { false, false, false, false, kind, NULL };
        eg_tensor *in[3] = { data(EG_FLOAT32, EG_SHAPE(6, 4), 1, false), data(EG_FLOAT32, EG_SHAPE(4, 4), 2, false),
                             data(EG_FLOAT32, EG_SHAPE(4), 3, false) };
        s.v = eg_variable(eg_mul(in[1], 0.5), "v");
        const int64_t got = replays(affines_body, &s, in, 3, 2);
        CHECK(got >= 0);
        if (test_on_host && got != steps[kind]) printf("    kind %d\n", kind);
        if (test_on_host) CHECK_INT(got, steps[kind]);
        eg_release(s.v);
    }
}
// A large result that tanh reads at once: sum and tanh are one program behind the product.
TEST(a_large_sum_stays_in_the_program_behind_it) {
    EG_SCOPE;
    affine s = { false, false, false, false, 6, NULL };
    eg_tensor *in[3] = { data(EG_FLOAT32, EG_SHAPE(2000, 4), 1, false), data(EG_FLOAT32, EG_SHAPE(4, 4), 2, false),
                         data(EG_FLOAT32, EG_SHAPE(4), 3, false) }, *out[2];
    CHECK_INT(replays(affines_body, &s, in, 3, 2), test_on_host ? 2 : 3);       // on a device nothing is joined
    eg_function *f = eg_function_new(affines_body, &s);
    CHECK(eg_function_call(f, in, 3, out, 2));
    printed[0] = 0;
    eg_set_printer(keep_print, NULL);
    CHECK(eg_function_print(f));
    eg_set_printer(NULL, NULL);
    if (test_on_host) CHECK_CONTAINS(printed, "2 steps\n      0 matmul\n      1 add + 2 tanh: ");
    eg_function_release(f);
}
// What is printed before and after, and what a list shows that joins nothing.
TEST(products_with_a_row_are_shown) {
    affine s = { false, false, false, true, 0, NULL };
    eg_tensor *in[3] = { data(EG_FLOAT32, EG_SHAPE(6, 4), 1, false), data(EG_FLOAT32, EG_SHAPE(4, 2), 2, false),
                         data(EG_FLOAT32, EG_SHAPE(2), 3, false) }, *out[1];
    for (int how = 0; how < 3; how++) {                     // joined; not joined; under the NaN trap
        char text[8192];
        eg_function *f = eg_function_new(affine_body, &s, .unfused = how == 1);
        if (how == 2) eg_trap_nonfinite(true);
        const bool ok = eg_function_call(f, in, 3, out, 1);
        if (how == 2) eg_trap_nonfinite(false);
        CHECK(ok);
        if (!eg_function_counts(f).traces) { CHECK(!test_on_host); eg_function_release(f); continue; }
        printed[0] = 0;
        eg_set_printer(keep_print, NULL);
        CHECK(eg_function_print(f) && eg_function_dot(f, text, sizeof text) > 0);
        if (how < 2) CHECK(eg_function_cost(f, in, 3, 1, 3));   // without the trap it would be another list
        eg_set_printer(NULL, NULL);
        CHECK_CONTAINS(printed, "matmul                   %3[6, 2] <- in 0[6, 4] in 1[4, 2]\n");
        CHECK_CONTAINS(printed, "add                      %4[6, 2] <- %3[6, 2] in 2[2]\n");
        CHECK_CONTAINS(printed, "relu                     new 5[6, 2] <- %4[6, 2]\n");
        const bool joined = how == 0 && test_on_host;
        CHECK((strstr(printed, "1 step\n      0 matmul + 1 add + 2 relu: new 5[6, 2] <- in 0[6, 4] in 1[4, 2] in 2[2]")
               != NULL) == joined);
        CHECK((strstr(text, "sp0 -> s0;") && strstr(text, "sp1 -> s0;") && strstr(text, "sp2 -> s0;")) == joined);
        CHECK((strstr(text, "s0 [label=\"matmul + add + relu\\n[6, 2]\"];") != NULL) == joined);
        CHECK((strstr(printed, "    0  matmul + add + relu                                 120") != NULL) == joined);
        eg_function_release(f);
    }
}
// Under a tape, in a session, and in a function that was saved and loaded: the same lists, and so the same steps.
static bool learn_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < 3; i++) eg_tape_watch(tape, in[i]);
    eg_tensor *y = eg_relu(eg_add(eg_matmul(in[0], in[1]), in[2]));
    out[3] = eg_matmul(y, eg_transpose(in[0]));
    eg_tape_gradients(tape, out[3], in, 3, out);
    for (int i = 0; i < 4; i++) if (out[i]) out[i] = eg_keep(out[i]);
    return out[3] != NULL;
}
TEST(products_with_a_row_under_tapes) {
    for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++) {
        EG_SCOPE;
        eg_tensor *in[3] = { data((eg_dtype)dtype, EG_SHAPE(9, 5), 1, false),
                             data((eg_dtype)dtype, EG_SHAPE(5, 5), 2, false),
                             data((eg_dtype)dtype, EG_SHAPE(5), 3, false) };
        const int64_t steps = replays(learn_body, NULL, in, 3, 4);
        if (test_on_host) CHECK_INT(steps, 9);
        // an outer tape keeps relu's result, of which the gradient is made
        affine s = { false, false, false, true, 0, NULL };
        eg_tensor *grads[2][3];
        eg_function *f = eg_function_new(affine_body, &s);
        for (int call = 0; call < 9; call++)
            for (int eager = 0; eager < 2; eager++) {
                eg_tensor *y;
                eg_tape *tape = eg_tape_begin();
                for (int i = 0; i < 3; i++) eg_tape_watch(tape, in[i]);
                eg_run_functions_eagerly(eager);
                CHECK(eg_function_call(f, in, 3, &y, 1));
                eg_run_functions_eagerly(false);
                CHECK(eg_tape_gradients(tape, eg_square(y), in, 3, grads[eager]));
                for (int i = 0; i < 3 && eager; i++) CHECK(same_bits(grads[0][i], grads[1][i]));
            }
        if (test_on_host) CHECK(eg_function_counts(f).replays > 1);
        if (test_on_host) CHECK_INT(eg_function_counts(f).steps, 1);
        eg_function_release(f);
    }
}
TEST(products_with_a_row_in_sessions_and_files) {
    if (!test_on_host) return;
    eg_tensor *in[3] = { data(EG_FLOAT32, EG_SHAPE(9, 5), 1, false), data(EG_FLOAT32, EG_SHAPE(5, 5), 2, false),
                         data(EG_FLOAT32, EG_SHAPE(5), 3, false) };
    eg_tensor *want = eg_relu(eg_add(eg_matmul(in[0], in[1]), in[2])), *x, *y, *out;
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 5), "x");
        y = eg_relu(eg_add(eg_matmul(x, in[1]), in[2]));
    }
    eg_session *s = eg_session_new(g);
    eg_feed feed = { x, in[0] };
    for (int i = 0; i < 4; i++) {
        CHECK(eg_session_run(s, &feed, 1, &y, 1, &out));
        CHECK(same_bits(out, want));
    }
    CHECK_INT(eg_function_counts(eg_session_function(s)).lines, 3);
    CHECK_INT(eg_function_counts(eg_session_function(s)).steps, 1);
    CHECK(eg_function_save(eg_session_function(s), test_temp("products")));
    eg_session_release(s);
    eg_graph_release(g);
    eg_function *f = eg_function_load(test_temp("products"));
    REQUIRE(f != NULL);
    for (int i = 0; i < 4; i++) {
        CHECK(eg_function_call(f, in, 1, &out, 1));
        CHECK(same_bits(out, want));
    }
    CHECK_INT(eg_function_counts(f).steps, 1);
    eg_function_release(f);
}
// A dense layer is a product with its row already, which takes relu along; one with relu is a step of its own.
static bool dense_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_relu(eg_call((eg_layer *)user, in[0]));
    return out[0] && (out[0] = eg_keep(out[0])) != NULL;
}
TEST(a_dense_layer_takes_relu_along) {
    for (int how = 0; how < 3; how++) {
        EG_SCOPE;
        eg_layer *l = eg_layer_dense(4, .activation = how == 1 ? EG_RELU : EG_LINEAR, .no_bias = how == 2);
        eg_tensor *x = data(EG_FLOAT32, EG_SHAPE(6, 5), 1, false);
        CHECK(eg_call(l, x) != NULL);
        const int64_t steps = replays(dense_body, l, &x, 1, 1);
        if (test_on_host) CHECK_INT(steps, how ? 2 : 1);
        eg_layer_release(l);
    }
}
