// eg_cond, eg_while and eg_scan: values, gradients to second order, states, errors, memory.
#include "test.h"

// ---- values

static bool doubled(eg_tensor *const *in, eg_tensor **out, void *user) {
    ++*(int *)user;
    out[0] = eg_mul(in[0], 2);
    return true;
}
static bool negated(eg_tensor *const *in, eg_tensor **out, void *user) {
    *(int *)user += 10;
    out[0] = eg_negative(in[0]);
    return true;
}
TEST(cond_runs_one_of_two) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 3), *y;
    int ran = 0;
    CHECK(eg_cond(eg_less(eg_reduce_sum(x), 5), doubled, negated, &ran, &x, 1, &y, 1));
    CHECK_TENSOR(y, 0, 2, 6);
    CHECK_INT(ran, 1);
    CHECK(eg_cond(eg_reshape(eg_less(eg_reduce_sum(x), 4), EG_SHAPE(1, 1)), doubled, negated, &ran, &x, 1, &y, 1));
    CHECK_TENSOR(y, 0, -1, -3);
    CHECK_INT(ran, 11);
}
// Newton's method for the square root of a: x, step -> (x + a / x) / 2, step + 1.
static bool not_there(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_greater(eg_abs(eg_sub(eg_square(in[0]), *(eg_tensor **)user)), 1e-9);
    return true;
}
static bool newton(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(eg_add(in[0], eg_div(*(eg_tensor **)user, in[0])), 0.5);
    out[1] = eg_add(in[1], 1);
    return true;
}
static eg_tensor *root(eg_tensor *const *in, void *user) {
    (void)user;
    eg_tensor *a = in[0], *state[2] = { eg_scalar_of(EG_FLOAT64, 1), eg_scalar_of(EG_INT32, 0) };
    return eg_while(not_there, newton, &a, state, state, 2) ? state[0] : NULL;
}
TEST(while_finds_a_root) {
    eg_tensor *a = eg_scalar_of(EG_FLOAT64, 2), *state[2] = { eg_scalar_of(EG_FLOAT64, 1), eg_scalar_of(EG_INT32, 0) };
    eg_tensor *out[2];
    CHECK(eg_while(not_there, newton, &a, state, out, 2));
    CHECK_NEAR(eg_item(out[0]), sqrt(2), 1e-9);
    CHECK_INT(eg_item_int(out[1]), 4);
    CHECK(eg_while(not_there, newton, &a, state, out, 2, .max_steps = 2));
    CHECK_NEAR(eg_item(out[0]), 17.0 / 12, 1e-15);
    CHECK_INT(eg_item_int(out[1]), 2);
    CHECK(eg_while(not_there, newton, &a, out, out, 2, .max_steps = 1));      // the same list
    CHECK_INT(eg_item_int(out[1]), 3);
    // of no step: the state itself, a variable's value
    eg_tensor *v = eg_variable(eg_scalar_of(EG_FLOAT64, sqrt(2)), "v");
    state[0] = v;
    CHECK(eg_while(not_there, newton, &a, state, out, 2));
    CHECK(!eg_is_variable(out[0]));
    CHECK_NEAR(eg_item(out[0]), sqrt(2), 0);
    eg_release(v);
    // d sqrt(a) / da, once the steps have converged
    CHECK_NEAR(eg_item(eg_nth_gradient(root, NULL, a, 1)), 0.5 / sqrt(2), 1e-8);
    CHECK(eg_check_gradient(root, NULL, &a, 1, .order = 2));
}
// s, c -> s + row * c, c + 1; the result is s * s
static bool summed(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_add(in[0], eg_mul(in[2], in[1]));
    out[1] = eg_add(in[1], 1);
    out[2] = eg_square(out[0]);
    return true;
}
TEST(scan_carries_and_collects) {
    eg_tensor *carry[2] = { eg_constant(EG_SHAPE(2), 0, 1), eg_scalar(1) }, *out[2], *squares,
              *rows = eg_constant(EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    CHECK(eg_scan(summed, NULL, carry, out, 2, &rows, 1, &squares, 1));
    CHECK_TENSOR(out[0], 0, 22, 29);                                          // 1 + 2 * 3 + 3 * 5
    CHECK_TENSOR(out[1], 0, 4);
    CHECK_SHAPE(squares, 3, 2);
    CHECK_TENSOR(squares, 0, 1, 9, 49, 121, 484, 841);
    CHECK(eg_scan(summed, NULL, carry, out, 2, &rows, 1, &squares, 1, .reverse = true));
    CHECK_TENSOR(out[0], 0, 14, 21);                                          // 5 + 2 * 3 + 3 * 1
    CHECK_TENSOR(squares, 0, 196, 441, 121, 225, 25, 49);
}
static bool counted(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_add(in[0], 2);
    return true;
}
TEST(scan_of_a_length_and_of_nothing) {
    eg_tensor *x = eg_scalar(1), *y, *none = eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3)), *r;
    CHECK(eg_scan(counted, NULL, &x, &y, 1, NULL, 0, NULL, 0, .length = 4));
    CHECK_TENSOR(y, 0, 9);
    CHECK(eg_scan(counted, NULL, &x, &y, 1, &none, 1, NULL, 0));
    CHECK_TENSOR(y, 0, 1);
    CHECK(eg_scan(counted, NULL, &x, &y, 1, NULL, 0, NULL, 0));
    CHECK_TENSOR(y, 0, 1);
    CHECK_ERROR(eg_scan(counted, NULL, &x, &y, 1, &none, 1, &r, 1), EG_ERROR_ARGUMENT, "shapes are not known");
    CHECK(!y && !r);
}
// A recurrent cell, h -> tanh(x W + h U + b), beside the layer.
typedef struct cell { eg_tensor *w, *u, *b; } cell;
static bool cell_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const cell *c = (const cell *)user;
    out[0] = eg_tanh(eg_add(eg_add(eg_matmul(in[1], c->w), eg_matmul(in[0], c->u)), c->b));
    out[1] = out[0];
    return true;
}
TEST(scan_is_a_recurrent_layer) {
    eg_layer *l = eg_layer_simple_rnn(4, .return_sequences = true);
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 5, 3)), *g[2][3];
    eg_call(l, x);
    eg_list weights = eg_layer_trainable_weights_list(l);
    REQUIRE(weights.count == 3);
    cell c = { weights.tensors[0], weights.tensors[1], weights.tensors[2] };
    for (int way = 0; way < 2; way++) {
        eg_tape *tape = eg_tape_begin();
        eg_tensor *h = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 4)), *y = NULL,
                  *rows = eg_transpose(x, .perm = EG_AXES(1, 0, 2));
        if (way == 0) y = eg_call(l, x);
        else if (eg_scan(cell_body, &c, &h, &h, 1, &rows, 1, &y, 1)) y = eg_transpose(y, .perm = EG_AXES(1, 0, 2));
        CHECK(eg_tape_gradients(tape, eg_reduce_sum(eg_square(y)), (eg_tensor *[]){ c.w, c.u, c.b }, 3, g[way]));
    }
    for (int i = 0; i < 3; i++) CHECK_SAME(g[1][i], g[0][i], 1e-5);
    eg_layer_release(l);
}

// ---- gradients: two orders, by differences, of a captured variable, too

static bool scaled(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_tanh(eg_add(eg_mul(in[0], *(eg_tensor **)user), in[1]));
    out[1] = eg_sin(out[0]);
    return true;
}
static eg_tensor *scan_of(eg_tensor *const *in, void *user) {
    (void)user;
    eg_tensor *w = in[2], *h = in[0], *rows = in[1], *y;
    if (!eg_scan(scaled, &w, &h, &h, 1, &rows, 1, &y, 1, .reverse = true)) return NULL;
    return eg_add(eg_reduce_sum(eg_square(h)), eg_reduce_sum(eg_mul(y, y)));
}
TEST(gradients_against_differences) {
    eg_tensor *in[3] = { eg_constant(EG_SHAPE(2), 0.3, -0.4),
                         eg_constant(EG_SHAPE(3, 2), 0.1, 0.2, -0.5, 0.7, 0.4, -0.1),
                         eg_constant(EG_SHAPE(2), 0.8, 1.2) };
    CHECK(eg_check_gradient(scan_of, NULL, in, 3, .order = 2));
}

// ---- errors

static bool grows(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_concat((eg_tensor *[]){ in[0], in[0] }, 2, 0);
    return true;
}
static bool always(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    (void)user;
    out[0] = eg_equal(eg_scalar(1), 1);
    return true;
}
static bool number(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = in[0];
    return true;
}
static bool fails(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    (void)out;
    (void)user;
    return false;
}
static bool forgets(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    (void)out;
    (void)user;
    return true;
}
TEST(errors) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *one = eg_scalar(1), *y,
              *two[2] = { x, eg_ones(EG_FLOAT32, EG_SHAPE(2)) };
    int ran = 0;
    CHECK_ERROR(eg_while(always, grows, NULL, &x, &y, 1), EG_ERROR_SHAPE,
                "eg_while: tensor 0 of the state was float32 [3]");
    CHECK(!y);
    CHECK_ERROR(eg_while(number, grows, NULL, &x, &y, 1), EG_ERROR_DTYPE, "the condition is float32 [3]");
    CHECK_ERROR(eg_while(always, fails, NULL, &x, &y, 1), EG_ERROR_STATE, "eg_while: the body failed without an error");
    CHECK_ERROR(eg_while(always, forgets, NULL, &x, &y, 1), EG_ERROR_NULL, "eg_while: operand 0 is NULL");
    CHECK_ERROR(eg_while(always, NULL, NULL, &x, &y, 1), EG_ERROR_NULL, "body");
    CHECK_ERROR(eg_while(always, number, NULL, &x, &y, 1, .max_steps = -1), EG_ERROR_ARGUMENT, "max_steps is -1");
    CHECK_ERROR(eg_cond(one, doubled, negated, &ran, &x, 1, &y, 1), EG_ERROR_DTYPE, "the condition is float32 []");
    CHECK_ERROR(eg_cond(eg_less(x, 2), doubled, negated, &ran, &x, 1, &y, 1), EG_ERROR_DTYPE,
                "the condition is bool [3]");
    CHECK_ERROR(eg_cond(eg_less(one, 2), doubled, NULL, &ran, &x, 1, &y, 1), EG_ERROR_NULL, "otherwise");
    CHECK_INT(ran, 0);
    CHECK_ERROR(eg_scan(counted, NULL, &one, &y, 1, two, 2, NULL, 0), EG_ERROR_SHAPE, "rows 1 are float32 [2]");
    CHECK_ERROR(eg_scan(counted, NULL, &one, &y, 1, two, 1, NULL, 0, .length = 4), EG_ERROR_SHAPE,
                "no axis of 4 steps");
    CHECK_ERROR(eg_scan(grows, NULL, &x, &y, 1, two, 1, NULL, 0), EG_ERROR_SHAPE, "step 0 made it float32 [6]");
    CHECK_ERROR(eg_scan(counted, NULL, &one, &y, 1, NULL, 0, NULL, 0, .length = -1), EG_ERROR_ARGUMENT, "-1 steps");
}

// ---- memory, and traced functions

TEST(a_long_loop_keeps_the_memory_of_two_steps) {
#if defined(EAGER_DEBUG) || defined(TEST_SLOW)
    SKIP("dead handles stay for a while, so bytes are not counted exactly");
#endif
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1000)), *y;
    const int64_t before = eg_memory().live_bytes;
    for (int64_t steps = 10; steps <= 1000; steps *= 10) {
        EG_SCOPE;
        eg_memory_reset_peak();
        CHECK(eg_while(always, counted, NULL, &x, &y, 1, .max_steps = steps));
        CHECK(eg_memory().peak_bytes - before < 20000);
        CHECK_NEAR(eg_item(eg_reduce_max(y)), 2.0 * (double)steps, 0);
    }
}
static bool scan_in_a_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = in[0];
    return eg_scan(scaled, user, out, out, 1, &in[1], 1, &out[1], 1);
}
static bool while_in_a_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return eg_while(always, counted, NULL, in, out, 1, .max_steps = 3);
}
TEST(in_traced_functions) {
    eg_tensor *w = eg_variable(eg_constant(EG_SHAPE(2), 0.5, 2), "w"), *in[2], *out[2], *want[2];
    eg_function *f = eg_function_new(scan_in_a_function, &w), *g = eg_function_new(while_in_a_function, NULL);
    for (int i = 0; i < 6; i++) {
        in[0] = eg_random_normal(EG_SHAPE(2));
        in[1] = eg_random_normal(EG_SHAPE(4, 2));
        CHECK(eg_function_call(f, in, 2, out, 2) && scan_in_a_function(in, want, &w));
        CHECK_SAME(out[0], want[0], 0);
        CHECK_SAME(out[1], want[1], 0);
        CHECK(eg_function_call(g, in, 1, out, 1));
        CHECK_SAME(out[0], eg_add(eg_add(eg_add(in[0], 2), 2), 2), 0);
    }
    CHECK(eg_function_reason(f) == NULL && eg_function_counts(f).replays > 1);
    CHECK(eg_function_reason(g) != NULL);
    eg_function_release(f);
    eg_function_release(g);
    eg_release(w);
}
