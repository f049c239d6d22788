// Gradients of the ops: every differentiable row of the op table, every option that changes a gradient, against central
// differences in float64, to order 2 or more; and the fused float32 gradients against the same gradients in eager ops.
// tests/core/ops_rows.c holds these two tables against the header's: a new row needs a line here.
// Values are in tests/core/ops_values.c, what is special in tests/core/ops_edges.c, what is wrong in
// tests/core/ops_errors.c.
#include "test.h"

// ---- elementwise: one line a row

typedef eg_tensor *unary(eg_tensor *);
typedef eg_tensor *binary(eg_tensor *, eg_tensor *);
typedef eg_tensor *ternary(eg_tensor *, eg_tensor *, eg_tensor *);
typedef struct elementwise {
    const char *name; int n; unary *f1; binary *f2; ternary *f3; double range[3][2];
} elementwise;

static eg_tensor *where_positive(eg_tensor *a, eg_tensor *b, eg_tensor *c) {
    return (eg_where)((eg_greater)(a, eg_number(0)), b, c);
}

// Where each operand lies; both signs where the op has them. Values keep off the kinks (see `draw`).
#define ROW1(name, low, high)                     { #name, 1, eg_##name, NULL, NULL, { { low, high } } },
#define ROW2(name, low0, high0, low1, high1) \
    { #name, 2, NULL, (eg_##name), NULL, { { low0, high0 }, { low1, high1 } } },
#define ROW3(name, function, l0, h0, l1, h1, l2, h2) \
    { #name, 3, NULL, NULL, (function), { { l0, h0 }, { l1, h1 }, { l2, h2 } } },
static const elementwise rows[] = {
    ROW1(negative, -2, 2)
    ROW1(abs, -2, 2)
    ROW1(sign, -2, 2)
    ROW1(square, -2, 2)
    ROW1(sqrt, 0.3, 3)
    ROW1(rsqrt, 0.5, 3)
    ROW1(reciprocal, 0.5, 3)
    ROW1(exp, -2, 1)
    ROW1(expm1, -2, 1)
    ROW1(log, 0.3, 3)
    ROW1(log1p, -0.5, 3)
    ROW1(sin, -3, 3)
    ROW1(cos, -3, 3)
    ROW1(tan, -1, 1)
    ROW1(asin, -0.7, 0.7)
    ROW1(acos, -0.7, 0.7)
    ROW1(atan, -2, 2)
    ROW1(sinh, -2, 2)
    ROW1(cosh, -2, 2)
    ROW1(tanh, -2, 2)
    ROW1(asinh, -2, 2)
    ROW1(acosh, 1.5, 4)
    ROW1(atanh, -0.7, 0.7)
    ROW1(erf, -2, 2)
    ROW1(erfc, -2, 2)
    ROW1(sigmoid, -3, 3)
    ROW1(softplus, -3, 3)
    ROW1(softsign, -3, 3)
    ROW1(relu, -2, 2)
    ROW1(relu6, -2, 8)
    ROW1(selu, -2, 2)
    ROW1(silu, -3, 3)
    ROW1(mish, -3, 3)
    ROW1(gelu, -3, 3)
    ROW1(gelu_tanh, -3, 3)
    ROW1(hard_sigmoid, -5, 5)
    ROW2(add, -2, 2, -2, 2)
    ROW2(sub, -2, 2, -2, 2)
    ROW2(mul, -2, 2, -2, 2)
    ROW2(div, -2, 2, 0.5, 3)
    ROW2(divide_no_nan, -2, 2, 0.5, 3)
    ROW2(mod, -1.8, 1.8, 2, 3)
    ROW2(pow, 0.4, 2, -2, 3)
    ROW2(maximum, -2, 2, -2, 2)
    ROW2(minimum, -2, 2, -2, 2)
    ROW2(squared_difference, -2, 2, -2, 2)
    ROW2(log_cosh_difference, -2, 2, -2, 2)
    ROW2(atan2, -2, 2, 0.5, 3)
    ROW2(leaky_relu, -2, 2, 0.1, 0.5)
    ROW2(elu, -2, 2, 0.5, 2)
    ROW2(sigmoid_cross_entropy_with_logits, 0.1, 0.9, -3, 3)
    ROW3(where, where_positive, -2, 2, -2, 2, -2, 2)
    ROW3(huber_difference, eg_huber_difference, -2, 2, -2, 2, 0.5, 1)
    ROW3(hinge_margin, eg_hinge_margin, -1, 0.4, -2, 2, 1, 2)
    ROW3(clip_by_value, eg_clip_by_value, -2, 2, -1, -0.3, 0.3, 1)
};
enum { ROWS = (int)(sizeof rows / sizeof rows[0]) };

static eg_tensor *apply(const elementwise *row, eg_tensor *const *x) {
    return row->n == 1 ? row->f1(x[0]) : row->n == 2 ? row->f2(x[0], x[1]) : row->f3(x[0], x[1], x[2]);
}

static uint64_t random_state = 1;
static double random_unit(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / 9007199254740992.0;
}
// Random numbers in [low, high] on a grid of 0.1, each operand's a little off it by its own way: no two operands are
// equal, none is a multiple of 0.1 (where relu, relu6, hard_sigmoid ... have their kinks), no two elements tie, and no
// difference of the first two equals the third (Huber's kink). Each row's numbers depend on its name alone (check_row),
// so that a row more changes those of no other.
static eg_tensor *draw(eg_dtype dtype, eg_shape shape, int operand, double low, double high) {
    static const double offsets[] = { 0.025, 0.05, 0.045, 0.1 };
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++) n *= shape.dims[i];
    double *values = (double *)malloc((size_t)(n ? n : 1) * sizeof *values);
    for (int64_t i = 0; i < n; i++) {
        double v = floor((low + (high - low) * random_unit()) * 10) / 10 + offsets[operand] + (double)(i % 19) * 5e-4;
        values[i] = v > high ? v - 0.1 : v;
    }
    eg_tensor *x = eg_constant_values(dtype, shape, values, n);
    free(values);
    return x;
}

// How a case looks at its operands: as they are, or through a view.
typedef enum look { PLAIN, TRANSPOSED, STEPPED, REVERSED, BROADCAST, LOOKS } look;
static const char *const look_names[] = { "plain", "transposed", "stepped", "reversed", "broadcast" };
static eg_tensor *view(eg_tensor *x, look how) {
    eg_shape s = eg_shape_of(x);
    if (s.rank != 2) return x;
    switch (how) {
    case TRANSPOSED: return eg_transpose(x);
    case STEPPED: return eg_strided_slice(x, EG_SHAPE(1, 0), EG_SHAPE(EG_END, EG_END), EG_SHAPE(1, 2));
    case REVERSED: return eg_reverse(x, EG_AXES(0, 1));
    case BROADCAST: return eg_broadcast_to(eg_index(x, 0), EG_SHAPE(4, s.dims[1]));
    default: return x;
    }
}
typedef struct elementwise_case { const elementwise *row; look how; } elementwise_case;
static eg_tensor *elementwise_function(eg_tensor *const *in, void *user) {
    const elementwise_case *c = (const elementwise_case *)user;
    eg_tensor *x[3] = { NULL, NULL, NULL };
    for (int i = 0; i < c->row->n; i++) x[i] = view(in[i], c->how);
    return apply(c->row, x);
}
static void say(const char *name, const char *what) {
    printf("    %s, %s: %s\n", name, what, eg_error_message());
    eg_error_clear();
}
static bool check_row(const elementwise *row, const eg_shape *shapes, look how, int order, const char *what) {
    eg_scope scope = eg_scope_begin();
    elementwise_case c = { row, how };
    eg_tensor *x[3];
    random_state = (uint64_t)order;
    for (const char *p = row->name; *p; p++) random_state = (random_state ^ (unsigned char)*p) * 0x100000001b3u;
    for (int i = 0; i < row->n; i++) x[i] = draw(EG_FLOAT64, shapes[i], i, row->range[i][0], row->range[i][1]);
    bool ok = eg_check_gradient(elementwise_function, &c, x, row->n, .order = order, .directions = 1);
    if (!ok) say(row->name, what);
    eg_scope_end(scope);
    return ok;
}
// does not broadcast
static bool of_one_shape(const elementwise *row) { return !strcmp(row->name, "sigmoid_cross_entropy_with_logits"); }
TEST(elementwise_gradients) {
    const eg_shape shapes[][3] = {
        { EG_SHAPE(2, 3), EG_SHAPE(2, 3), EG_SHAPE(2, 3) },      { EG_SHAPE(2, 3), EG_SHAPE(3), EG_SCALAR },
        { EG_SHAPE(2, 1), EG_SHAPE(1, 3), EG_SHAPE(4, 1, 1) },   { EG_SCALAR, EG_SHAPE(2, 3), EG_SHAPE(3) },
        { EG_SCALAR, EG_SCALAR, EG_SCALAR },                     { EG_SHAPE(1), EG_SHAPE(2, 1, 2), EG_SHAPE(1, 1) },
        { EG_SHAPE(0, 3), EG_SHAPE(0, 3), EG_SHAPE(0, 3) },      { EG_SHAPE(2, 0), EG_SHAPE(2, 1), EG_SCALAR }
    };
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < (int)(sizeof shapes / sizeof shapes[0]); s++) {
            char what[32];
            snprintf(what, sizeof what, "shapes %d", s);
            if (of_one_shape(&rows[r]) && s != 0 && s != 4 && s != 6) continue;
            CHECK(check_row(&rows[r], shapes[s], PLAIN, s == 0 ? 3 : 2, what));
        }
}
TEST(elementwise_gradients_of_views) {
    const eg_shape square[3] = { EG_SHAPE(3, 4), EG_SHAPE(3, 4), EG_SHAPE(3, 4) };
    for (int r = 0; r < ROWS; r++)
        for (int how = TRANSPOSED; how < LOOKS; how++)
            CHECK(check_row(&rows[r], square, (look)how, 2, look_names[how]));
}

// The gradients of one row for inputs x; recorded: under an outer tape, which makes them a chain of eager ops.
static bool row_gradients(const elementwise *row, eg_tensor *const *x, eg_tensor *g, bool recorded, eg_tensor **grads) {
    eg_tape *outer = recorded ? eg_tape_begin() : NULL;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *in[3];
    for (int i = 0; i < row->n; i++) {
        eg_tape_watch(tape, x[i]);
        in[i] = x[i];
    }
    eg_tensor *y = apply(row, in);
    bool ok = y && eg_tape_gradients_from(tape, &y, 1, &g, x, row->n, grads);
    if (outer) eg_tape_stop(outer);
    return ok;
}
// 1030 elements are more than a block, so that operands in other layouts are packed twice.
static void fused_against_eager(eg_dtype dtype, double tol) {
    const eg_shape shapes[][3] = {
        { EG_SHAPE(2, 515), EG_SHAPE(2, 515), EG_SHAPE(2, 515) }, { EG_SHAPE(2, 515), EG_SHAPE(515), EG_SCALAR },
        { EG_SHAPE(2, 1), EG_SHAPE(1, 515), EG_SHAPE(2, 515) },   { EG_SCALAR, EG_SHAPE(2, 515), EG_SHAPE(2, 1) }
    };
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < 5; s++) {
            EG_SCOPE;
            if (of_one_shape(&rows[r]) && s != 0 && s != 4) continue;
            eg_tensor *x[3], *fused[3], *chain[3];
            for (int i = 0; i < rows[r].n; i++) {
                bool turned = s == 4;                              // the last time round as transposed views
                x[i] = draw(dtype, turned ? EG_SHAPE(515, 2) : shapes[s][i], i, rows[r].range[i][0],
                            rows[r].range[i][1]);
                if (turned) x[i] = eg_transpose(x[i]);
            }
            eg_tensor *y = apply(&rows[r], x);
            REQUIRE(y);
            eg_tensor *g = draw(dtype, eg_shape_of(y), 3, -1, 1);
            REQUIRE(row_gradients(&rows[r], x, g, false, fused) && row_gradients(&rows[r], x, g, true, chain));
            for (int i = 0; i < rows[r].n; i++) {
                CHECK((fused[i] == NULL) == (chain[i] == NULL));
                if (!fused[i] || !chain[i]) continue;
                double size = fmax(1, eg_item(eg_reduce_max(eg_abs(chain[i]))));
                CHECK_SAME(eg_div(fused[i], size), eg_div(chain[i], size), tol);
            }
            if (test_fails) { printf("    in eg_%s, shapes %d\n", rows[r].name, s); return; }
        }
}
TEST(fused_gradients_equal_the_eager_chain) { fused_against_eager(EG_FLOAT32, 1e-6); }
TEST(fused_gradients_equal_the_eager_chain_in_float64) { fused_against_eager(EG_FLOAT64, 1e-14); }

// Plain numbers as operands, in every place but one: gradients as with tensors of that value, in both dtypes, fused and
// not.
static bool number_gradients(const elementwise *row, int tensor, eg_tensor *const *as_tensors, const double *numbers,
                             bool recorded, eg_tensor **got, eg_tensor **want) {
    for (int numeric = 0; numeric < 2; numeric++) {
        eg_tape *outer = recorded ? eg_tape_begin() : NULL, *tape = eg_tape_begin();
        eg_tensor *x[3] = { NULL, NULL, NULL };
        for (int i = 0; i < row->n; i++) x[i] = numeric && i != tensor ? eg_number(numbers[i]) : as_tensors[i];
        eg_tape_watch(tape, x[tensor]);
        eg_tensor *g = eg_tape_gradient(tape, apply(row, x), x[tensor]);
        *(numeric ? got : want) = g;
        if (outer) eg_tape_stop(outer);
    }
    return eg_error() == EG_OK;
}
TEST(gradients_with_plain_numbers) {
    const double numbers[][3] = { { 0.75, 0.7, 0.9 }, { 1.25, 2.25, 1.5 } };
    for (int r = 0; r < ROWS; r++)
        for (int variant = 0; variant < 8 * rows[r].n && rows[r].n > 1; variant++) {
            EG_SCOPE;
            int tensor = variant / 8;
            const double *v = numbers[variant & 1];
            eg_dtype dtype = variant & 2 ? EG_FLOAT64 : EG_FLOAT32;
            eg_tensor *x[3], *got, *want;
            for (int i = 0; i < rows[r].n; i++)
                x[i] = i == tensor ? draw(dtype, EG_SHAPE(7), i, rows[r].range[i][0],
                                          rows[r].range[i][1]) : eg_scalar_of(dtype, v[i]);
            CHECK(number_gradients(&rows[r], tensor, x, v, variant & 4, &got, &want));
            if (got || want) CHECK_SAME(got, want, dtype == EG_FLOAT32 ? 1e-6 : 1e-14);
            if (test_fails) { say(rows[r].name, variant & 4 ? "numbers, recorded" : "numbers"); return; }
        }
}

// ---- all other ops: a function, the shapes of its inputs ("2 3" or "" for rank 0), the order

typedef struct gradient_case {
    const char *name; eg_function1 *f; const char *shapes[3]; int order; double low, high;
} gradient_case;

// G(what it is, its id, its value made of x[0], x[1] ..., order, low, high, shapes...)
#define CASES(G) \
    G(identity, 1, eg_identity(x[0]), 2, -2, 2, "2 3") \
    G(read_and_stop, 2, eg_mul(eg_stop_gradient(eg_ones_like(x[0])), x[0]), 2, -2, 2, "2 3") \
    G(reshape, 1, eg_square(eg_reshape(x[0], EG_SHAPE(3, -1))), 2, -2, 2, "2 3") \
    G(reshape, 2, eg_square(eg_reshape(eg_transpose(x[0]), EG_SHAPE(2, 3))), 2, -2, 2, "2 3") \
    G(reshape, 3, eg_square(eg_reshape(x[0], EG_SHAPE(0, 5))), 2, -2, 2, "2 0") \
    G(expand_dims, 1, eg_square(eg_expand_dims(x[0], -2)), 2, -2, 2, "2 3") \
    G(squeeze, 1, eg_square(eg_squeeze(x[0], .axes = EG_AXES(-1))), 2, -2, 2, "2 1") \
    G(transpose, 1, eg_square(eg_transpose(x[0])), 2, -2, 2, "2 3 2") \
    G(transpose, 2, eg_mul(eg_transpose(x[0], .perm = EG_AXES(1, 2, 0)), x[1]), 2, -2, 2, "2 3 4", "3 4 2") \
    G(broadcast_to, 1, eg_mul(eg_broadcast_to(x[0], EG_SHAPE(2, 3, 4)), x[1]), 2, -2, 2, "3 1", "2 3 4") \
    G(broadcast_to, 2, eg_square(eg_broadcast_to(x[0], EG_SHAPE(2, 0))), 2, -2, 2, "2 1") \
    G(slice, 1, eg_square(eg_slice(x[0], EG_SHAPE(1, 0), EG_SHAPE(-1, 2))), 2, -2, 2, "3 4") \
    G(slice, 2, eg_square(eg_strided_slice(x[0], EG_SHAPE(-1, 1), EG_SHAPE(EG_END, EG_END), EG_SHAPE(-2, 2))), 2, -2, \
      2, "4 5") \
    G(slice, 3, eg_square(eg_strided_slice(x[0], EG_SHAPE(2), EG_SHAPE(1), EG_SHAPE(1))), 2, -2, 2, "3 2") \
    G(slice, 4, eg_mul(eg_index(x[0], -1), eg_index(x[0], 0)), 2, -2, 2, "3 2") \
    G(slice, 5, eg_square(eg_strided_slice(eg_transpose(x[0]), EG_SHAPE(0, 3), EG_SHAPE(EG_END, 0), EG_SHAPE(3, -2))), \
      2, -2, 2, "4 5") \
    G(split, 1, split_product(x[0], 1, false), 2, -2, 2, "2 6") \
    G(unstack, 1, split_product(x[0], 1, true), 2, -2, 2, "2 3") \
    G(pad, 1, eg_square(eg_pad(x[0], EG_PADS(1, 0, 0, 2), .value = 3)), 2, -2, 2, "2 3") \
    G(pad, 2, eg_square(eg_pad(x[0], EG_PADS(1, 1, 0, 2), .mode = EG_PAD_REFLECT)), 2, -2, 2, "2 3") \
    G(pad, 3, eg_square(eg_pad(x[0], EG_PADS(2, 1, 3, 2), .mode = EG_PAD_SYMMETRIC)), 2, -2, 2, "2 3") \
    G(pad, 4, eg_square(eg_pad(x[0], EG_PADS(1, 0, 0, 2))), 2, -2, 2, "0 3") \
    G(reverse, 1, eg_mul(eg_reverse(x[0], EG_AXES(1)), x[0]), 2, -2, 2, "2 3") \
    G(cast, 1, eg_square(eg_cast(x[0], EG_FLOAT64)), 2, -2, 2, "2 3") \
    G(concat, 1, eg_square(eg_concat(x, 3, 0)), 2, -2, 2, "2 3", "1 3", "3 3") \
    G(concat, 2, eg_square(eg_concat(x, 2, -1)), 2, -2, 2, "2 3", "2 1") \
    G(concat, 3, eg_square(concat_many(x[0], x[1])), 2, -2, 2, "2", "3") \
    G(concat, 4, eg_square(eg_concat(x, 2, 0)), 2, -2, 2, "0 3", "1 3") \
    G(stack, 1, eg_square(eg_stack(x, 2, 1)), 2, -2, 2, "2 3", "2 3") \
    G(stack, 2, eg_square(eg_stack(x, 2, -1)), 2, -2, 2, "", "") \
    G(tile, 1, eg_mul(eg_tile(x[0], EG_SHAPE(2, 3)), x[1]), 2, -2, 2, "2 3", "4 9") \
    G(repeat, 1, eg_mul(eg_repeat(x[0], 2, 1), x[1]), 2, -2, 2, "2 3", "2 6") \
    G(reduce_sum, 1, eg_square(eg_reduce_sum(x[0])), 2, -2, 2, "2 3") \
    G(reduce_sum, 2, eg_square(eg_reduce_sum(x[0], .axes = EG_AXES(0, -1))), 2, -2, 2, "2 3 4") \
    G(reduce_sum, 3, eg_square(eg_reduce_sum(x[0], .axes = EG_AXES(1), .keepdims = true)), 2, -2, 2, "2 3 4") \
    G(reduce_sum, 4, eg_square(eg_reduce_sum(x[0], .axes = EG_AXES(0))), 2, -2, 2, "0 3") \
    G(reduce_sum, 5, eg_square(eg_reduce_sum(x[0])), 2, -2, 2, "") \
    G(reduce_mean, 1, eg_square(eg_reduce_mean(x[0])), 2, -2, 2, "2 3") \
    G(reduce_mean, 2, eg_square(eg_reduce_mean(x[0], .axes = EG_AXES(1))), 2, -2, 2, "2 3 4") \
    G(reduce_mean, 3, eg_square(eg_reduce_mean(eg_transpose(x[0]), .axes = EG_AXES(0, 2), .keepdims = true)), 2, -2, \
      2, "2 3 4") \
    G(reduce_max, 1, eg_square(eg_reduce_max(x[0])), 2, -2, 2, "2 3") \
    G(reduce_max, 2, eg_square(eg_reduce_max(x[0], .axes = EG_AXES(0, 2))), 2, -2, 2, "2 3 2") \
    G(reduce_max, 3, eg_square(eg_reduce_max(x[0], .axes = EG_AXES(-1), .keepdims = true)), 2, -2, 2, "2 3") \
    G(reduce_min, 1, eg_square(eg_reduce_min(x[0])), 2, -2, 2, "2 3") \
    G(reduce_min, 2, eg_square(eg_reduce_min(x[0], .axes = EG_AXES(1))), 2, -2, 2, "2 3") \
    G(reduce_prod, 1, eg_reduce_prod(x[0]), 3, -2, 2, "2 3") \
    G(reduce_prod, 2, eg_reduce_prod(x[0], .axes = EG_AXES(1)), 2, -2, 2, "2 5") \
    G(reduce_prod, 3, eg_reduce_prod(eg_mul(x[0], eg_constant_of(EG_FLOAT64, EG_SHAPE(4), 1, 0, 1, 0)), \
                                     .keepdims = true), 3, -2, 2, "4") \
    G(reduce_logsumexp, 1, eg_reduce_logsumexp(x[0]), 3, -2, 2, "2 3") \
    G(reduce_logsumexp, 2, eg_reduce_logsumexp(x[0], .axes = EG_AXES(0, 2)), 2, -2, 2, "2 3 2") \
    G(reduce_logsumexp, 3, eg_reduce_logsumexp(x[0], .axes = EG_AXES(-1), .keepdims = true), 2, 800, 801, "2 3") \
    G(reduce_variance, 1, eg_square(eg_reduce_variance(x[0])), 2, -2, 2, "2 3") \
    G(reduce_variance, 2, eg_square(eg_reduce_variance(x[0], .axes = EG_AXES(0))), 2, -2, 2, "4 3") \
    G(reduce_std, 1, eg_reduce_std(x[0], .axes = EG_AXES(1), .keepdims = true), 2, -2, 2, "2 4") \
    G(norm, 1, eg_norm(x[0]), 3, -2, 2, "2 3") \
    G(norm, 2, eg_norm(x[0], .axes = EG_AXES(0)), 2, -2, 2, "3 2") \
    G(norm, 3, eg_norm(x[0], .ord = 1, .axes = EG_AXES(1)), 2, -2, 2, "3 2") \
    G(norm, 4, eg_norm(x[0], .ord = INFINITY, .axes = EG_AXES(1), .keepdims = true), 2, -2, 2, "3 2") \
    G(cumsum, 1, eg_square(eg_cumsum(x[0])), 2, -2, 2, "4") \
    G(cumsum, 2, eg_square(eg_cumsum(x[0], .axis = 1, .exclusive = true)), 2, -2, 2, "2 4") \
    G(cumsum, 3, eg_square(eg_cumsum(x[0], .axis = -2, .reverse = true)), 2, -2, 2, "3 2") \
    G(cumsum, 4, eg_square(eg_cumsum(x[0], .axis = 1, .exclusive = true, .reverse = true)), 2, -2, 2, "2 3 2") \
    G(sort, 1, eg_mul(eg_sort(x[0]), x[1]), 2, -2, 2, "2 4", "2 4") \
    G(sort, 2, eg_mul(eg_sort(x[0], .axis = EG_ZERO, .descending = true), x[1]), 2, -2, 2, "3 2", "3 2") \
    G(top_k, 1, eg_square(eg_top_k(x[0], 2, NULL)), 2, -2, 2, "2 4") \
    G(softmax, 1, eg_softmax(x[0]), 3, -2, 2, "2 3") \
    G(softmax, 2, eg_softmax(x[0], .axis = EG_ZERO), 2, -2, 2, "3 2") \
    G(softmax, 3, eg_softmax(x[0], .axis = 1), 2, -2, 2, "2 3 2") \
    G(log_softmax, 1, eg_log_softmax(x[0]), 3, -2, 2, "2 3") \
    G(log_softmax, 2, eg_log_softmax(x[0], .axis = -2), 2, -2, 2, "2 3 2") \
    G(softmax_cross_entropy_with_logits, 1, eg_softmax_cross_entropy_with_logits(eg_softmax(x[0]), x[1]), 2, -2, 2, \
      "2 3", "2 3") \
    G(sparse_softmax_cross_entropy_with_logits, 1, \
      eg_sparse_softmax_cross_entropy_with_logits(eg_constant_of(EG_INT32, EG_SHAPE(3), 2, 0, 2), x[0]), 3, -2, 2, \
      "3 4") \
    G(sparse_softmax_cross_entropy_with_logits, 2, \
      eg_square(eg_sparse_softmax_cross_entropy_with_logits(eg_constant_of(EG_INT64, EG_SHAPE(2, 2), 2, 0, 1, 1), \
      x[0])), 2, -2, 2, "2 2 3") \
    G(matmul, 1, eg_matmul(x[0], x[1]), 2, -2, 2, "2 3", "3 4") \
    G(matmul, 2, eg_square(eg_matmul(x[0], x[1], .transpose_a = true)), 2, -2, 2, "3 2", "3 4") \
    G(matmul, 3, eg_square(eg_matmul(x[0], x[1], .transpose_b = true)), 2, -2, 2, "2 3", "4 3") \
    G(matmul, 4, eg_square(eg_matmul(x[0], x[1], .transpose_a = true, .transpose_b = true)), 2, -2, 2, "3 2", "4 3") \
    G(matmul, 5, eg_square(eg_matmul(x[0], x[1])), 2, -2, 2, "2 1 2 3", "4 3 2") \
    G(matmul, 6, eg_square(eg_matmul(x[0], x[1])), 2, -2, 2, "2 3", "4 3 2") \
    G(matmul, 7, eg_square(eg_matmul(x[0], x[1], .transpose_a = true, .transpose_b = true)), 2, -2, 2, "4 3 2", "5 3") \
    G(matmul, 8, eg_square(eg_matmul(eg_transpose(x[0]), eg_strided_slice(x[1], EG_SHAPE(0, 0), \
                                                                          EG_SHAPE(EG_END, EG_END), EG_SHAPE(2, 2)))), \
      2, -2, 2, "3 2", "5 4") \
    G(matmul, 9, eg_matmul(x[0], x[0]), 3, -2, 2, "3 3") \
    G(matmul, 10, eg_add(eg_matmul(x[0], x[1]), 1), 2, -2, 2, "2 0", "0 3") \
    G(matmul, 11, eg_matmul(x[0], x[1]), 2, -2, 2, "0 2", "2 3") \
    G(einsum, 1, eg_square(eg_einsum("ij,jk->ik", x, 2)), 2, -2, 2, "2 3", "3 2") \
    G(einsum, 2, eg_square(eg_einsum("bij,bkj->bki", x, 2)), 2, -2, 2, "2 3 2", "2 4 2") \
    G(einsum, 3, eg_square(eg_einsum("ii->i", x, 1)), 2, -2, 2, "3 3") \
    G(einsum, 4, eg_square(eg_einsum("...ij,...jk->...ik", x, 2)), 2, -2, 2, "2 2 3", "3 2") \
    G(einsum, 5, eg_square(eg_einsum("i,j,k->jik", x, 3)), 2, -2, 2, "2", "3", "2") \
    G(einsum, 6, eg_square(eg_einsum("iij,j->", x, 2)), 2, -2, 2, "2 2 3", "3") \
    G(einsum, 7, eg_square(eg_einsum("abc->b", x, 1)), 2, -2, 2, "2 3 2") \
    G(gather, 1, eg_square(eg_gather(x[0], eg_constant_of(EG_INT32, EG_SHAPE(3), 1, 1, 0))), 2, -2, 2, "2 3") \
    G(gather, 2, eg_square(eg_gather(x[0], eg_constant_of(EG_INT64, EG_SHAPE(2, 2), 1, 2, 2, 0), .axis = 1)), 2, -2, \
      2, "2 3 2") \
    G(gather, 3, eg_square(eg_gather(x[0], eg_zeros(EG_INT64, EG_SHAPE(0)), .axis = -1)), 2, -2, 2, "2 3") \
    G(gather, 4, eg_square(eg_gather(x[0], eg_scalar_of(EG_INT32, 1))), 2, -2, 2, "2 3") \
    G(gather_nd, 1, eg_square(eg_gather_nd(x[0], eg_constant_of(EG_INT32, EG_SHAPE(3, 2), 1, 1, 0, 2, 1, 1))), 2, -2, \
      2, "2 3 2") \
    G(take_along_axis, 1, \
      eg_square(eg_take_along_axis(x[0], eg_constant_of(EG_INT64, EG_SHAPE(2, 2), 1, 1, 0, 2), 1)), 2, -2, 2, "2 3") \
    G(scatter_nd, 1, eg_square(eg_scatter_nd(eg_constant_of(EG_INT32, EG_SHAPE(3, 1), 3, 1, 3), x[0], \
                                             EG_SHAPE(5, 2))), 2, -2, 2, "3 2") \
    G(tensor_scatter_add, \
      1, eg_square(eg_tensor_scatter_add(x[0], eg_constant_of(EG_INT64, EG_SHAPE(2, 2), 0, 1, 0, 1), x[1])), 2, -2, 2, \
      "2 3", "2") \
    G(scatter_add, 1, eg_square(eg_segment_sum(x[0], eg_constant_of(EG_INT32, EG_SHAPE(4), 2, 0, 2, 1), 4)), 2, -2, 2, \
      "4 2") \
    G(conv2d, 1, eg_conv2d(x[0], x[1]), 2, -2, 2, "1 4 5 2", "2 3 2 3") \
    G(conv2d, 2, eg_square(eg_conv2d(x[0], x[1], .padding = EG_SAME)), 2, -2, 2, "2 3 4 1", "3 2 1 2") \
    G(conv2d, 3, eg_square(eg_conv2d(x[0], x[1], .strides = { 2, 1 }, .padding = EG_SAME)), 2, -1, 1, "1 5 4 2", \
      "3 3 2 2") \
    G(conv2d, 4, eg_square(eg_conv2d(x[0], x[1], .dilations = { 2, 1 })), 2, -1, 1, "1 6 4 1", "2 2 1 2") \
    G(conv2d, 5, eg_square(eg_conv2d(x[0], x[1], .groups = 2, .strides = { 2 })), 2, -1, 1, "1 5 5 4", "2 2 2 4") \
    G(conv2d, 6, eg_conv2d(x[0], x[1], .strides = { 3 }), 2, -1, 1, "1 8 7 1", "2 2 1 1") \
    G(conv2d, 7, eg_conv2d(x[0], x[1]), 2, -1, 1, "0 4 4 1", "2 2 1 1") \
    G(conv1d, 1, eg_square(eg_conv1d(x[0], x[1], .strides = { 2 }, .padding = EG_SAME)), 2, -1, 1, "2 5 2", "3 2 2") \
    G(depthwise_conv2d, 1, eg_square(eg_depthwise_conv2d(x[0], x[1], .padding = EG_SAME)), 2, -1, 1, "1 4 4 2", \
      "3 3 2 2") \
    G(depthwise_conv2d, 2, eg_square(eg_depthwise_conv2d(x[0], x[1], .strides = { 2 }, .dilations = { 1, 2 })), 2, -1, \
      1, "1 5 6 3", "2 2 3 1") \
    G(conv2d_input, 1, eg_square(eg_conv2d_transpose(x[0], x[1])), 2, -1, 1, "1 3 2 2", "2 3 1 2") \
    G(conv2d_input, 2, eg_square(eg_conv2d_transpose(x[0], x[1], .strides = { 2 }, .padding = EG_SAME)), 2, -1, 1, \
      "1 3 2 2", "3 3 2 2") \
    G(conv2d_input, 3, eg_square(eg_conv2d_transpose(x[0], x[1], .strides = { 2, 3 }, .output_padding = { 1, 2 })), 2, \
      -1, 1, "1 2 2 1", "2 2 2 1") \
    G(conv2d_input, 5, eg_square(eg_conv2d_transpose(x[0], x[1], .strides = { 2, 3 }, .padding = EG_SAME, \
                                                     .output_padding = { 1, 2 })), 2, -1, 1, "1 2 2 1", "2 2 2 1") \
    G(conv2d_input, 4, eg_square(eg_conv2d_transpose(x[0], x[1], .groups = 2, .dilations = { 2 })), 2, -1, 1, \
      "1 3 2 4", "2 2 1 4") \
    G(conv1d_transpose, 1, eg_square(eg_conv1d_transpose(x[0], x[1], .strides = { 2 })), 2, -1, 1, "2 3 1", "3 2 1") \
    G(conv2d_filter, 1, filter_gradient(x[0], x[1]), 2, -1, 1, "1 4 4 2", "2 2 2 2") \
    G(max_pool_index, 1, eg_square(eg_max_pool2d(x[0])), 2, -2, 2, "1 4 5 2") \
    G(max_pool_index, 2, eg_square(eg_max_pool2d(x[0], .size = { 3, 2 }, .strides = { 2, 1 }, .padding = EG_SAME)), 2, \
      -2, 2, "2 4 3 1") \
    G(max_pool1d, 1, eg_square(eg_max_pool1d(x[0], .size = { 3 }, .strides = { 2 })), 2, -2, 2, "2 6 2") \
    G(avg_pool2d, 1, eg_square(eg_avg_pool2d(x[0])), 2, -2, 2, "1 4 5 2") \
    G(avg_pool2d, 2, eg_square(eg_avg_pool2d(x[0], .size = { 3, 2 }, .strides = { 1, 2 }, .padding = EG_SAME)), 2, -2, \
      2, "2 4 3 1") \
    G(avg_pool2d_grad, 1, pool_gradient(x[0], x[1]), 2, -2, 2, "1 4 4 1", "1 2 2 1") \
    G(avg_pool1d, 1, eg_square(eg_avg_pool1d(x[0], .padding = EG_SAME)), 2, -2, 2, "2 5 2") \
    G(resize, 1, eg_square(eg_resize(x[0], 4, 5)), 2, -2, 2, "1 2 3 2") \
    G(resize, 2, eg_square(eg_resize(x[0], 2, 3)), 2, -2, 2, "1 4 5 1") \
    G(resize, 3, eg_square(eg_resize(x[0], 3, 5, .method = EG_NEAREST)), 2, -2, 2, "1 2 3 2")

// The products of the parts along an axis, as one tensor.
static eg_tensor *split_product(eg_tensor *x, int axis, bool unstack) {
    eg_tensor *part[3];
    if (!(unstack ? eg_unstack(x, 3, axis, part) : eg_split(x, 3, axis, part))) return NULL;
    return eg_mul(eg_mul(part[0], part[1]), part[2]);
}
static eg_tensor *concat_many(eg_tensor *a, eg_tensor *b) {        // more than the tape's small arrays hold
    eg_tensor *list[40];
    for (int i = 0; i < 40; i++) list[i] = i % 3 ? eg_mul(a, i) : b;
    return eg_concat(list, 40, 0);
}
// Gradients as values of their own: what only another gradient runs is then checked like any op.
static eg_tensor *filter_gradient(eg_tensor *x, eg_tensor *f) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, f);
    return eg_tape_gradient(tape, eg_square(eg_conv2d(x, f)), f);
}
static eg_tensor *pool_gradient(eg_tensor *x, eg_tensor *w) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    return eg_tape_gradient(tape, eg_mul(eg_square(eg_avg_pool2d(x)), w), x);
}

#define FUNCTION(name, id, value, order, low, high, ...) \
    static eg_tensor *case_##name##_##id(eg_tensor *const *x, void *user) { (void)user; return value; }
CASES(FUNCTION)
#define LINE(name, id, value, order, low, high, ...) \
    { #name " " #id, case_##name##_##id, { __VA_ARGS__ }, order, low, high },
static const gradient_case cases[] = { CASES(LINE) };
enum { NUMBER_OF_CASES = (int)(sizeof cases / sizeof cases[0]) };

static eg_shape shape_from(const char *text) {
    eg_shape s = EG_SCALAR;
    for (char *end; *text; text = end) {
        s.dims[s.rank++] = strtoll(text, &end, 10);
        while (*end == ' ') end++;
    }
    return s;
}
TEST(gradients) {
    for (int k = 0; k < NUMBER_OF_CASES; k++) {
        EG_SCOPE;
        const gradient_case *c = &cases[k];
        eg_tensor *x[3];
        int n = 0;
        for (; n < 3 && c->shapes[n]; n++) x[n] = draw(EG_FLOAT64, shape_from(c->shapes[n]), n, c->low, c->high);
        bool ok = eg_check_gradient(c->f, NULL, x, n, .order = c->order);
        if (!ok) say(c->name, "gradient");
        CHECK(ok);
    }
}
// In float32 too, where kernels differ: the gradient that float64 has, to float32's accuracy.
TEST(gradients_in_float32) {
    for (int k = 0; k < NUMBER_OF_CASES; k++) {
        EG_SCOPE;
        const gradient_case *c = &cases[k];
        if (strstr(c->name, "cast") || strstr(c->name, "reduce_prod 3")) continue;
        eg_tensor *x[2][3], *grads[2][3];
        int n = 0;
        for (; n < 3 && c->shapes[n]; n++) {
            x[1][n] = draw(EG_FLOAT32, shape_from(c->shapes[n]), n, c->low, c->high);
            x[0][n] = eg_cast(x[1][n], EG_FLOAT64);
        }
        bool ok = true;
        for (int t = 0; t < 2 && ok; t++) ok = eg_gradients_function(c->f, NULL, x[t], n, grads[t]);
        CHECK(ok);
        for (int i = 0; i < n && ok; i++) CHECK_SAME(grads[1][i], eg_cast(grads[0][i], EG_FLOAT32), 1e-4);
        if (test_fails) { say(c->name, "float32 against float64"); return; }
    }
}

// ---- traced: a function of one op, called under tapes, against the op itself, bit by bit

typedef struct traced_case { eg_function1 *f; void *user; } traced_case;
static bool traced_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const traced_case *c = (const traced_case *)user;
    out[0] = eg_keep(c->f(in, c->user));
    return out[0] != NULL;
}
static eg_tensor *traced_call(eg_tensor *const *x, int n, const traced_case *c, eg_function *f) {
    eg_tensor *y = NULL;
    if (f) eg_function_call(f, x, n, &y, 1);
    else y = c->f(x, c->user);
    return y;
}
// The value, its gradient by a tape alone, by a tape in a tape, and the second one: 1 + 3 n tensors.
static bool traced_orders(const traced_case *c, eg_function *f, eg_tensor *const *x, int n, eg_tensor **g) {
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < n; i++) if (eg_dtype_of(x[i]) <= EG_FLOAT64) eg_tape_watch(tape, x[i]);
    g[0] = traced_call(x, n, c, f);
    if (!g[0] || !eg_tape_gradients(tape, g[0], x, n, g + 1)) return false;
    eg_tape *outer = eg_tape_begin(), *inner = eg_tape_begin();
    for (int i = 0; i < n; i++)
        if (eg_dtype_of(x[i]) <= EG_FLOAT64) { eg_tape_watch(outer, x[i]); eg_tape_watch(inner, x[i]); }
    eg_tensor *y = traced_call(x, n, c, f), *s = NULL;
    if (!eg_tape_gradients(inner, y, x, n, g + 1 + n)) return false;
    for (int i = 0; i < n; i++) {
        eg_tensor *d = g[1 + n + i];
        g[1 + 2 * n + i] = NULL;
        if (d) s = s ? eg_add(s, eg_reduce_sum(eg_square(d))) : eg_reduce_sum(eg_square(d));
    }
    return !s || eg_tape_gradients(outer, s, x, n, g + 1 + 2 * n);
}
static bool same_bits(eg_tensor *a, eg_tensor *b) {
    if (!a || !b) return !a && !b;
    const size_t bytes = (size_t)eg_size(a) * (eg_dtype_of(a) == EG_FLOAT64 ? 8 : eg_dtype_of(a) == EG_FLOAT32 ? 4 : 1);
    return eg_size(a) == eg_size(b) && eg_dtype_of(a) == eg_dtype_of(b) && !memcmp(eg_data(a), eg_data(b), bytes);
}
static bool traced_equals_eager(eg_function1 *f, void *user, eg_tensor *const *x, int n) {
    traced_case c = { f, user };
    eg_function *traced = eg_function_new(traced_body, &c, .no_recheck = true);
    eg_tensor *g[3][10];
    bool ok = traced_orders(&c, NULL, x, n, g[0]);
    // The first call runs the body, the second is a replay.
    for (int k = 1; k < 3 && ok; k++) ok = traced_orders(&c, traced, x, n, g[k]);
    for (int i = 0; i < 1 + 3 * n && ok; i++) {
        ok = same_bits(g[1][i], g[0][i]) && same_bits(g[2][i], g[0][i]);
        if (!ok) printf("    tensor %d: %s, %s\n", i, same_bits(g[1][i], g[0][i]) ? "equal at first" : "different",
                        same_bits(g[2][i], g[0][i]) ? "equal in a replay" : "different in a replay");
    }
    if (ok && (eg_function_counts(traced).replays != 2 || eg_function_reason(traced))) {
        printf("    %s\n", eg_function_reason(traced) ? eg_function_reason(traced) : "it was not replayed twice");
        ok = false;
    }
    eg_function_release(traced);
    return ok;
}
TEST(traced_elementwise_gradients_equal_eager_ones) {
    const eg_shape shapes[][3] = { { EG_SHAPE(2, 3), EG_SHAPE(2, 3), EG_SHAPE(2, 3) },
                                   { EG_SHAPE(2, 1), EG_SHAPE(1, 3), EG_SHAPE(4, 1, 1) },
                                   { EG_SHAPE(3, 4), EG_SHAPE(3, 4), EG_SHAPE(3, 4) } };
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < 6; s++) {
            EG_SCOPE;
            elementwise_case c = { &rows[r], s / 2 == 2 ? TRANSPOSED : PLAIN };
            eg_tensor *x[3];
            if (of_one_shape(&rows[r]) && s / 2 == 1) continue;
            for (int i = 0; i < rows[r].n; i++)
                x[i] = draw(s % 2 ? EG_FLOAT64 : EG_FLOAT32, shapes[s / 2][i], i, rows[r].range[i][0],
                            rows[r].range[i][1]);
            CHECK(traced_equals_eager(elementwise_function, &c, x, rows[r].n));
            if (test_fails) { say(rows[r].name, s % 2 ? "float64" : "float32"); return; }
        }
}
TEST(traced_gradients_equal_eager_ones) {
    for (int k = 0; k < 2 * NUMBER_OF_CASES; k++) {
        EG_SCOPE;
        const gradient_case *c = &cases[k / 2];
        eg_tensor *x[3];
        int n = 0;
        if (!(k % 2) && strstr(c->name, "reduce_prod 3")) continue;         // it holds numbers of float64
        for (; n < 3 && c->shapes[n]; n++)
            x[n] = draw(k % 2 ? EG_FLOAT64 : EG_FLOAT32, shape_from(c->shapes[n]), n, c->low, c->high);
        CHECK(traced_equals_eager(c->f, NULL, x, n));
        if (test_fails) { say(c->name, k % 2 ? "float64" : "float32"); return; }
    }
}
// Ops without a gradient: no op of the table leaves a function eager. What does is named where it is tested: eg_item,
// eg_data and eg_print (traced.c: reasons), copies between devices (traced.c: a_copy_between_devices_stays_eager),
// eg_cond and eg_while (flow.c).
enum { UNDIFFERENTIABLE = 28 };
static eg_tensor *undifferentiable(eg_tensor *const *x, void *user) {
    eg_tensor *a = x[0], *i = eg_cast(eg_add(eg_abs(x[0]), 1), EG_INT32), *b = eg_greater(a, x[1]), *indices = NULL;
    switch (*(const int *)user) {
    case 0: return eg_argmax(a, .axis = 1);
    case 1: return eg_argmin(a);
    case 2: return eg_argsort(a);
    case 3: return eg_top_k(a, 2, &indices) ? indices : NULL;
    case 4: return eg_one_hot(eg_minimum(i, 3), 4);
    case 5: return eg_reduce_all(b, .axes = EG_AXES(1));
    case 6: return eg_reduce_any(b);
    case 7: return eg_logical_xor(b, eg_logical_not(eg_logical_or(b, eg_less(a, 0))));
    case 8: return eg_is_nan(eg_log(a));
    case 9: return eg_floordiv(i, eg_add(i, 1));
    case 10: return eg_mod(7, i);
    case 11: return eg_gather(eg_cast(i, EG_INT64), eg_argmax(a), .axis = 0);
    case 12: return eg_gather_nd(a, eg_constant_of(EG_INT32, EG_SHAPE(2, 2), 1, 0, 0, 2));
    case 13: return eg_take_along_axis(i, eg_argsort(a), -1);
    case 14: return eg_scatter_nd(eg_reshape(eg_minimum(i, 3), EG_SHAPE(-1, 1)), eg_reshape(i, EG_SHAPE(-1)),
                                  EG_SHAPE(4));
    case 15: return eg_cumsum(i, .axis = 1);
    case 16: return eg_sort(i);
    case 17: return eg_reduce_prod(i);
    case 18: return eg_cast(b, EG_UINT8);
    case 19: return eg_add(a, eg_cast(eg_range(EG_INT32, 0, 3, 1), eg_dtype_of(a)));
    case 20: return eg_where(b, i, eg_negative(i));
    case 21: return eg_clip_by_norm(a, .5);
    case 22: return eg_round(eg_mul(a, 10));
    case 23: return eg_equal(eg_sign(a), eg_floor(a));
    case 24: return eg_matmul(eg_cast(i, EG_FLOAT32), eg_cast(b, EG_FLOAT32), .transpose_b = true);
    case 25: return eg_ceil(a);
    case 26: return eg_is_inf(eg_div(1, eg_floor(a)));
    default: return eg_pow(i, 2);
    }
}
TEST(no_op_of_the_table_stays_eager) {
    for (int which = 0; which < 2 * UNDIFFERENTIABLE; which++) {
        EG_SCOPE;
        int k = which / 2;
        const eg_dtype dtype = which % 2 ? EG_FLOAT64 : EG_FLOAT32;
        traced_case c = { undifferentiable, &k };
        eg_function *f = eg_function_new(traced_body, &c, .no_recheck = true);
        for (int call = 0; call < 3; call++) {
            eg_tensor *x[] = { draw(dtype, EG_SHAPE(2, 3), 0, -2, 2), draw(dtype, EG_SHAPE(2, 3), 1, -2, 2) };
            eg_tensor *y = NULL, *z = undifferentiable(x, &k);
            CHECK(z != NULL && eg_function_call(f, x, 2, &y, 1));
            CHECK_SAME(y, z, 0);
            CHECK_STR(eg_function_reason(f), NULL);
        }
        CHECK_INT(eg_function_counts(f).replays, 2);
        eg_function_release(f);
        if (test_fails) { printf("    op %d\n", k); return; }
    }
}
static eg_tensor *traced_value(eg_tensor *const *in, void *user) {
    eg_tensor *y = NULL;
    eg_function_call((eg_function *)user, in, 2, &y, 1);
    return y;
}
static eg_tensor *traced_product(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_tanh(eg_matmul(eg_softmax(in[0]), eg_square(in[1])));
}
TEST(traced_gradients_against_differences) {
    traced_case c = { traced_product, NULL };
    eg_function *f = eg_function_new(traced_body, &c);
    eg_tensor *x[] = { draw(EG_FLOAT64, EG_SHAPE(3, 4), 0, -1, 1), draw(EG_FLOAT64, EG_SHAPE(4, 2), 1, -1, 1) };
    CHECK(eg_check_gradient(traced_value, f, x, 2, .order = 3));
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
}
