// eg_cond, eg_while and eg_scan: values, gradients to second order, states, errors, memory, and in traced functions.
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
// The commas of array literals part their elements, and no operands.
TEST(lists_that_are_literals) {
    eg_tensor *a = eg_scalar_of(EG_FLOAT64, 2), *out[2], *squares;
    CHECK(eg_while(not_there, newton, &a, (eg_tensor *[]){ eg_scalar_of(EG_FLOAT64, 1), eg_scalar_of(EG_INT32, 0) },
                   out, 2));
    CHECK_INT(eg_item_int(out[1]), 4);
    CHECK(eg_while(not_there, newton, &a, (eg_tensor *[]){ eg_scalar_of(EG_FLOAT64, 1), eg_scalar_of(EG_INT32, 0) },
                   out, 2, .max_steps = 2));
    CHECK_INT(eg_item_int(out[1]), 2);
    CHECK(eg_scan(summed, NULL, (eg_tensor *[]){ eg_constant(EG_SHAPE(2), 0, 1), eg_scalar(1) }, out, 2,
                  (eg_tensor *[]){ eg_constant(EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6), NULL }, 1, &squares, 1,
                  .reverse = true));
    CHECK_TENSOR(out[0], 0, 14, 21);
    CHECK_TENSOR(squares, 0, 196, 441, 121, 225, 25, 49);
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
    CHECK_ERROR(eg_while(always, forgets, NULL, &x, &y, 1), EG_ERROR_NULL, "eg_while: result 0 of the body is NULL");
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
    CHECK(eg_function_reason(g) == NULL && eg_function_counts(g).replays > 1);
    eg_function_release(f);
    eg_function_release(g);
    eg_release(w);
}

// ---- branches and loops of a traced function: a list for each way that it took

// A step of training. The sum of x says which branch runs, and of which a draw and an update are part; the loop takes
// some steps more or less. Options say what happens before the branches.
typedef struct branching { eg_tensor *w, *v, *count; eg_optimizer *opt; bool early; int runs; } branching;
static bool with_w(eg_tensor *const *in, eg_tensor **out, void *user) {
    branching *s = (branching *)user;
    out[0] = eg_mul(in[0], eg_mul(s->w, 2));
    return eg_assign_add(s->count, 1) != NULL;
}
static bool with_v(eg_tensor *const *in, eg_tensor **out, void *user) {
    branching *s = (branching *)user;
    out[0] = eg_add(eg_mul(in[0], s->v), eg_random_normal(EG_SHAPE(3)));
    return out[0] != NULL;
}
static bool below_100(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_less(eg_reduce_sum(in[0]), 100);
    return true;
}
static bool larger(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(in[0], eg_add(eg_abs(((branching *)user)->w), 2.5));
    return true;
}
static bool branching_step(eg_tensor *const *in, eg_tensor **out, void *user) {
    branching *s = (branching *)user;
    s->runs++;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *z, *vars[] = { s->w, s->v }, *g[2];
    eg_assign_add(s->count, 0.5);
    if (s->early) {                                        // an update in place, which another way has to undo
        eg_tensor *first = eg_reduce_sum(eg_mul(s->w, s->v));
        if (!eg_tape_gradients(tape, first, vars, 2, g) || !eg_apply_gradients(s->opt, g, vars, 2)) return false;
        tape = eg_tape_begin();
    }
    eg_tensor *side = eg_random_uniform(EG_SHAPE(3));      // a struct of this call's, which no replay reads
    if (!eg_cond(eg_less(eg_reduce_sum(in[0]), 3), with_w, with_v, s, in, 1, &z, 1)) return false;
    z = eg_abs(eg_add(z, eg_mul(side, 0.1)));
    if (!eg_while(below_100, larger, s, &z, &z, 1, .max_steps = 9)) return false;
    eg_tensor *loss = eg_reduce_mean(eg_square(z));
    if (!eg_tape_gradients(tape, loss, vars, 2, g) || !eg_apply_gradients(s->opt, g, vars, 2)) return false;
    out[0] = eg_keep(loss);
    return true;
}
enum { BRANCHING_CALLS = 60 };
// The losses, then sums of the variables, of calls that are traced or not.
static void branching_run(bool early, bool traced, double *r) {
    EG_SCOPE;
    branching s = { .early = early };
    s.w = eg_variable(eg_constant(EG_SHAPE(3), .1, .2, .3), "w");
    s.v = eg_variable(eg_constant(EG_SHAPE(3), -.1, .2, -.3), "v");
    s.count = eg_variable(eg_scalar(0), "count");
    s.opt = eg_adam(.learning_rate = 1e-3);
    eg_seed(3);
    eg_function *f = eg_function_new(branching_step, &s);
    eg_run_functions_eagerly(!traced);
    for (int i = 0; i < BRANCHING_CALLS; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(3), (i * 7 % 11) * .3), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        r[i] = y ? eg_item(y) : 0;
    }
    eg_run_functions_eagerly(false);
    r[BRANCHING_CALLS] = eg_item(eg_reduce_sum(s.w));
    r[BRANCHING_CALLS + 1] = eg_item(eg_reduce_sum(s.v));
    r[BRANCHING_CALLS + 2] = eg_item(s.count);
    r[BRANCHING_CALLS + 3] = eg_item(eg_random_uniform(EG_SHAPE(1)));
    if (traced) {
        const eg_function_info n = eg_function_counts(f);
        CHECK_STR(eg_function_reason(f), NULL);
        CHECK(n.replays > 20 && n.traces > 3 && n.retraces == n.traces - 1);
        CHECK(s.runs + n.replays == BRANCHING_CALLS);
        CHECK(strstr(n.explanation, "went another way") != NULL);
    }
    eg_function_release(f);
    eg_release(s.w);
    eg_release(s.v);
    eg_release(s.count);
    eg_optimizer_release(s.opt);
}
TEST(branches_of_a_step_that_trains) {
    double r[2][BRANCHING_CALLS + 4];
    for (int early = 0; early < 2; early++) {
        for (int traced = 0; traced < 2; traced++) branching_run(early, traced, r[traced]);
        for (int i = 0; i < BRANCHING_CALLS + 4; i++) CHECK_NEAR(r[1][i], r[0][i], 0);
    }
}
// Gradients of first and second order pass through the calls, those of captured variables too.
static bool scaled_by_w(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(eg_square(in[0]), *(eg_tensor **)user);
    return true;
}
static bool cubed(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(eg_square(in[0]), in[0]);
    return true;
}
static bool branch_of_x(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_less(eg_reduce_sum(in[0]), 1), scaled_by_w, cubed, user, in, 1, out, 1);
}
TEST(gradients_through_calls_that_branch) {
    eg_tensor *w = eg_variable(eg_constant(EG_SHAPE(2), 0.5, 2), "w"), *got[2][3];
    eg_function *f = eg_function_new(branch_of_x, &w);
    for (int i = 0; i < 14; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2), i % 3 * 0.4), *y;
        for (int traced = 0; traced < 2; traced++) {
            eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
            eg_tape_watch(outer, x);
            eg_tape_watch(tape, x);
            REQUIRE(traced ? eg_function_call(f, &x, 1, &y, 1) : branch_of_x(&x, &y, &w));
            eg_tensor *both[] = { x, w };
            CHECK(eg_tape_gradients(tape, y, both, 2, got[traced]));
            got[traced][2] = eg_tape_gradient(outer, eg_reduce_sum(eg_square(got[traced][0])), x);
        }
        for (int k = 0; k < 3; k++) {
            CHECK((got[0][k] == NULL) == (got[1][k] == NULL));         // of w, where its branch did not run
            if (got[0][k] && got[1][k]) CHECK_SAME(got[1][k], got[0][k], 0);
        }
    }
    CHECK_INT(eg_function_counts(f).traces, 2);
    CHECK(eg_function_counts(f).replays >= 6);
    eg_function_release(f);
    eg_release(w);
}
// What cannot be undone before a branch keeps the function eager; a loop of ever other lengths does, too.
static bool calls_c(eg_tensor *const *in, eg_tensor **out, void *user) {
    ++*(int *)user;
    out[0] = eg_mul(in[0], 2);
    return true;
}
static bool decides_behind_a_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y;
    return eg_host_call(calls_c, user, in, 1, &y, 1) && branch_of_x(&y, out, (eg_tensor *[]){ eg_ones_like(y) });
}
static bool calls_behind_a_branch(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y;
    return branch_of_x(in, &y, (eg_tensor *[]){ eg_ones_like(in[0]) }) && eg_host_call(calls_c, user, &y, 1, out, 1);
}
static bool counts_to_x(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_less(eg_reduce_sum(in[1]), eg_reduce_sum(in[0]));
    return true;
}
static bool one_more(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = in[0];
    out[1] = eg_add(in[1], 1);
    return true;
}
static bool as_long_as_x(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *state[] = { in[0], eg_scalar(0) };
    if (!eg_while(counts_to_x, one_more, user, state, state, 2)) return false;
    out[0] = state[1];
    return true;
}
TEST(ways_that_are_not_traced) {
    int called = 0;
    eg_function *f = eg_function_new(decides_behind_a_call, &called);
    eg_function *g = eg_function_new(calls_behind_a_branch, &called);
    for (int i = 0; i < 12; i++) {
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2), i % 2), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, i % 2 * 8, i % 2 * 8);
        CHECK(eg_function_call(g, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, i % 2 * 2, i % 2 * 2);
    }
    CHECK_INT(called, 24);
    CHECK(strstr(eg_function_reason(f), "eg_cond decides after an eg_host_call, which cannot be undone") != NULL);
    CHECK_STR(eg_function_reason(g), NULL);
    CHECK(eg_function_counts(g).replays >= 4);
    eg_function_release(f);
    eg_function_release(g);
    f = eg_function_new(as_long_as_x, NULL);
    for (int i = 0; i < 100; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_scalar(i < 60 ? i % 12 : i), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(y), i < 60 ? i % 12 : i, 0);
        if (i == 59) CHECK(eg_function_reason(f) == NULL && eg_function_counts(f).replays >= 12);
    }
    CHECK(strstr(eg_function_reason(f), "took more ways than the 16") != NULL);
    CHECK_INT(eg_function_counts(f).dropped, 32);
    for (int i = 0; i < 300; i++) {                         // it is traced again when it has rested
        EG_SCOPE;
        eg_tensor *x = eg_scalar(i % 3), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(y), i % 3, 0);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    eg_function_release(f);
}
// A branch that first runs in a later call may make variables, and fail.
typedef struct late { eg_tensor *made; bool fails; } late;
static bool makes(eg_tensor *const *in, eg_tensor **out, void *user) {
    late *s = (late *)user;
    if (!s->made) s->made = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "made");
    eg_assign_add(s->made, 1);
    out[0] = eg_mul(eg_add(in[0], s->made), 2);
    return !s->fails || eg_raise(EG_ERROR_ARGUMENT, "the branch's own") != NULL;
}
static bool late_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_less(eg_reduce_sum(in[0]), 1), cubed, makes, user, in, 1, out, 1);
}
TEST(a_branch_that_runs_late) {
    late s = { NULL, false };
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(2)), *big = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    eg_function *f = eg_function_new(late_body, &s);
    for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_INT(eg_function_counts(f).replays, 1);
    s.fails = true;
    CHECK_ERROR(eg_function_call(f, &big, 1, &y, 1), EG_ERROR_ARGUMENT, "the branch's own");
    CHECK(y == NULL);
    CHECK_TENSOR(s.made, 0, 2, 2);
    s.fails = false;
    for (int i = 0; i < 8; i++) {
        CHECK(eg_function_call(f, i % 2 ? &x : &big, 1, &y, 1));
        CHECK_NEAR(eg_item(eg_index(y, 1)), i % 2 ? 0 : 8 + i, 0);
    }
    CHECK_TENSOR(s.made, 0, 6, 6);
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK_INT(eg_function_counts(f).traces, 2);
    eg_function_release(f);
    eg_release(s.made);
}
// Both branches of an eg_cond in a traced function give equal dtypes and shapes, whichever runs first and however
// deep it stands; eagerly only one runs, and nothing is compared.
typedef struct two_ways { eg_function_body *then, *otherwise; double below; } two_ways;
static bool twice_as_long(eg_tensor *const *in, eg_tensor **out, void *user) { return grows(in, out, user); }
static bool of_float64(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_cast(in[0], EG_FLOAT64);
    return true;
}
static bool either(eg_tensor *const *in, eg_tensor **out, void *user) {
    const two_ways *s = (const two_ways *)user;
    return eg_cond(eg_less(eg_reduce_sum(in[0]), s->below), s->then, s->otherwise, user, in, 1, out, 1);
}
static bool inner_way(eg_tensor *const *in, eg_tensor **out, void *user) {
    const two_ways *s = (const two_ways *)user;
    return eg_cond(eg_less(eg_reduce_sum(in[0]), 10), s->then, s->otherwise, user, in, 1, out, 1);
}
static bool nested_ways(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_less(eg_reduce_sum(in[0]), 100), inner_way, cubed, user, in, 1, out, 1);
}
TEST(branches_give_equal_dtypes_and_shapes) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(2)), *big = eg_full(EG_FLOAT32, EG_SHAPE(2), 20),
              *huge = eg_full(EG_FLOAT32, EG_SHAPE(2), 200), *y;
    for (int way = 0; way < 8; way++) {
        two_ways s = { cubed, way & 1 ? twice_as_long : of_float64, 10 };
        eg_function *f = eg_function_new(way & 4 ? nested_ways : either, &s);
        eg_tensor *first = way & 2 ? x : big, *second = way & 2 ? big : x;
        const char *longer = way & 1 ? "float32 [4]" : "float64 [2]";
        for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, &first, 1, &y, 1));
        if (way & 4) CHECK(eg_function_call(f, &huge, 1, &y, 1) == (way & 2 ? true : false));
        eg_error_clear();
        for (int i = 0; i < 2; i++) {
            y = x;
            char says[120];
            snprintf(says, sizeof says, "of %s is %s, but that of the function of %s was %s",
                     way & 2 ? "false" : "true", way & 2 ? longer : "float32 [2]", way & 2 ? "true" : "false",
                     way & 2 ? "float32 [2]" : longer);
            CHECK_ERROR(eg_function_call(f, &second, 1, &y, 1), EG_ERROR_SHAPE,
                        i ? says : "eg_cond: output 0 of the function of ");
            CHECK(y == NULL);
        }
        CHECK(eg_function_call(f, &first, 1, &y, 1));                      // what is traced stays
        eg_run_functions_eagerly(true);
        CHECK(eg_function_call(f, &second, 1, &y, 1));
        eg_run_functions_eagerly(false);
        eg_function_release(f);
    }
}
// A recording that begins inside a branch keeps the call eager.
static bool records(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(in[0], 2);
    return eg_record(test_temp("flow.npz"));
}
static bool records_in_a_branch(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_less(eg_reduce_sum(in[0]), 100), records, cubed, user, in, 1, out, 1);
}
TEST(a_recording_that_begins_in_a_branch) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    eg_function *f = eg_function_new(records_in_a_branch, NULL);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_TENSOR(y, 0, 2, 2);
    CHECK(eg_record_stop());
    CHECK_INT(eg_function_counts(f).traces, 0);
    eg_function_release(f);
}
// A tape records a loop of a traced function only if that says how many steps it may take.
typedef struct looping { eg_tensor *w; int64_t most; int how; } looping;
static bool below_50(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_less(eg_reduce_sum(in[0]), 50);
    return true;
}
static bool times_w(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(in[0], ((looping *)user)->w);
    return true;
}
static bool plain_twice(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(in[0], 2);
    return true;
}
static bool looping_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    looping *s = (looping *)user;
    eg_tape *tape = s->how == 1 ? NULL : eg_tape_begin();
    eg_tensor *y = in[0], *grad;
    if (s->how == 2) {                                      // no line of it is recorded
        EG_NO_RECORDING;
        if (!eg_while(below_50, times_w, s, &y, &y, 1)) return false;
    } else if (!eg_while(below_50, s->how == 3 ? plain_twice : times_w, s, &y, &y, 1, .max_steps = s->most))
        return false;
    y = eg_mul(y, s->w);
    out[0] = y;
    if (!tape) return true;
    if (!(grad = eg_tape_gradient(tape, y, s->w))) return false;
    out[0] = grad;
    return true;
}
TEST(a_gradient_through_a_loop_of_a_traced_function_needs_max_steps) {
    looping s = { eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), 3), "w"), 0, 0 };
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y = x, *want;
    CHECK(looping_body(&x, &want, &s));                     // eagerly it does not
    eg_function *f = eg_function_new(looping_body, &s);
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_GRADIENT, "eg_while: a tape records the loop, in a traced");
    CHECK(y == NULL);
    s.most = 20;
    for (int i = 0; i < 4; i++) {
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_SAME(y, want, 0);
    }
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    s.most = 0;
    for (s.how = 1; s.how < 4; s.how++) {                   // no tape, one that is paused, one that knows nothing of it
        f = eg_function_new(looping_body, &s);
        for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK(eg_function_counts(f).replays > 0);
        if (s.how == 1) {                                   // a tape around the call
            eg_tape *tape = eg_tape_begin();
            CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_GRADIENT, "needs .max_steps");
            (void)tape;
        }
        eg_function_release(f);
    }
    eg_release(s.w);
}
// A function of an eg_cond may come back to itself; without an end, that is an error.
static bool falls(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *less = eg_sub(in[0], 1);
    return eg_cond(eg_greater(eg_reduce_sum(in[0]), *(double *)user), falls, number, user, &less, 1, out, 1);
}
TEST(a_function_that_comes_back_to_itself) {
    eg_tensor *x = eg_scalar(5), *y;
    double end = 0;
    eg_function *f = eg_function_new(falls, &end);
    for (int i = 0; i < 4; i++) {
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(y), -1, 0);
    }
    CHECK(eg_function_counts(f).replays > 0);
    end = -1e9;
    y = x;
    CHECK_ERROR(falls(&x, &y, &end), EG_ERROR_STATE, "leads back to itself without end");
    eg_function_release(f);
    f = eg_function_new(falls, &end);
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, "leads back to itself without end");
    CHECK(y == NULL);
    eg_function_release(f);
}
// A list is compared with the body's when that took the same way; what C changes is noticed there.
static double factor_of_c;
static bool changed_by_c(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(in[0], factor_of_c);
    return true;
}
static bool changing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_less(eg_reduce_sum(in[0]), 1), cubed, changed_by_c, user, in, 1, out, 1);
}
TEST(a_way_is_compared_with_itself) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(2)), *big = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    eg_function *f = eg_function_new(changing_body, NULL);
    factor_of_c = 2;
    for (int i = 0; i < 6; i++) CHECK(eg_function_call(f, i % 2 ? &x : &big, 1, &y, 1));
    factor_of_c = 3;
    int failed = 0;
    eg_set_error_handler(NULL, NULL);
    for (int i = 0; i < 12; i++) failed += !eg_function_call(f, i % 2 ? &x : &big, 1, &y, 1);
    CHECK_INT(failed, 1);
    CHECK(strstr(eg_error_message(), "the body differs from its trace at line") != NULL);
    eg_error_clear();
    CHECK(eg_function_call(f, &big, 1, &y, 1));
    CHECK_TENSOR(y, 0, 3, 3);
    eg_function_release(f);
}
// A condition that C made is no condition of the call: where it differs, the comparison says so.
static bool c_decides(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_less(eg_scalar(factor_of_c), 1), cubed, changed_by_c, user, in, 1, out, 1);
}
TEST(a_condition_made_in_c_is_compared) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    eg_function *f = eg_function_new(c_decides, NULL);
    factor_of_c = 2;
    for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, &x, 1, &y, 1));
    factor_of_c = 0;
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, "the body differs from its trace at line");
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_TENSOR(y, 0, 1, 1);
    eg_function_release(f);
}
// One list for inputs and outputs, as eg_while and eg_function_call take it.
static bool doubles_it(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(in[0], 2)) != NULL;
}
TEST(cond_takes_one_list) {
    eg_tensor *a = eg_scalar(3);
    CHECK(eg_cond(eg_greater(a, 0), doubles_it, doubles_it, NULL, &a, 1, &a, 1));
    CHECK_TENSOR(a, 0, 6);
}
