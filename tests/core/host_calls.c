// eg_host_call: C functions called from lists. Replays give what eager code gives, in the same order, and gradients.
#include "faults.h"

typedef struct host {
    eg_tensor *v, *own, *kept;
    eg_optimizer *opt;
    double scale;
    int calls, fail, order;
    bool differentiable, draws;
    char log[4000];
} host;
static void log_text(const char *text, void *user) {
    host *s = (host *)user;
    if (text) strncat(s->log, text, sizeof s->log - strlen(s->log) - 1);
}
static eg_tensor *data_of(int call, int n) {
    return eg_sin(eg_mul(eg_range(EG_FLOAT32, call, call + n, 1), 0.7));
}

// ---- what happens at each replay

// C arithmetic on the values, eager ops, a draw or two, a variable of its own and one of the body's that it reads.
static bool counting_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    float x[3], y[3];
    char line[80];
    CHECK(eg_executing_eagerly());
    s->calls++;
    CHECK(eg_read_into(in[0], x, 3));
    for (int i = 0; i < 3; i++) y[i] = x[i] * (float)s->scale + (float)eg_item(eg_index(s->v, i));
    snprintf(line, sizeof line, "call %.6g %.6g\n", (double)x[0], eg_item(eg_index(s->v, 0)));
    log_text(line, s);
    eg_assign_add(s->own, 1);
    out[0] = eg_keep(eg_from_data(EG_FLOAT32, EG_SHAPE(3), y));
    if (s->draws) out[0] = eg_keep(eg_add(out[0], eg_random_uniform(EG_SHAPE(3 + 4 * (s->calls % 3)))));
    return out[0] != NULL;
}
static bool drawing_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    s->calls++;
    eg_random_normal(EG_SHAPE(1 + 9 * (s->calls % 4)));        // not the same number of draws at each call
    out[0] = eg_keep(eg_add(in[0], eg_random_uniform(EG_SHAPE(3))));
    return out[0] != NULL;
}
static bool ordered_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tensor *a = eg_random_uniform(EG_SHAPE(3)), *b, *c;
    eg_print(a);
    eg_assign_add(s->v, 1);
    if (!eg_host_call(counting_function, s, in, 1, &b, 1)) return false;
    eg_assign_add(s->v, b);
    if (!eg_host_call(drawing_function, s, &b, 1, &c, 1)) return false;
    eg_host_call(counting_function, s, &a, 1, &a, 1);       // of which nobody needs the result, and the same list
    eg_print(s->v);
    out[0] = eg_keep(eg_add(eg_mul(b, c), eg_random_normal(EG_SHAPE(3))));
    return eg_error() == EG_OK;
}
static bool adding_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_add(in[0], in[1]);
    return true;
}
TEST(lists_that_are_literals) {
    eg_tensor *y = NULL, *dx, *x = eg_scalar(2);
    CHECK(eg_host_call(adding_function, NULL, (eg_tensor *[]){x, eg_scalar(3)}, 2, &y, 1));
    CHECK_TENSOR(y, 0, 5);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK(eg_host_call(adding_function, NULL, (eg_tensor *[]){x, x}, 2, &y, 1, .differentiable = true,
                       .results = (eg_spec[]){{EG_FLOAT32, EG_SCALAR}}));
    CHECK(eg_tape_gradients(tape, y, &x, 1, &dx));
    CHECK_TENSOR(dx, 0, 2);
}
TEST(order_values_and_draws_are_those_of_eager_code) {
    static host s[2];
    static float values[2][12][3];
    eg_random_state random[2];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        memset(&s[traced], 0, sizeof s[traced]);
        eg_seed(9);
        s[traced].v = eg_variable(data_of(1, 3), "v");
        s[traced].own = eg_variable(eg_scalar(0), "own");
        eg_function *f = eg_function_new(ordered_body, &s[traced]);
        eg_run_functions_eagerly(!traced);
        eg_set_printer(log_text, &s[traced]);
        for (int i = 0; i < 12; i++) {
            EG_SCOPE;
            eg_tensor *x = data_of(i, 3), *y = NULL;
            s[traced].scale = 1 + i * 0.25;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            if (y) eg_read_into(y, values[traced][i], 3);
        }
        eg_set_printer(NULL, NULL);
        eg_run_functions_eagerly(false);
        if (traced) CHECK_STR(eg_function_reason(f), NULL);
        CHECK_INT(eg_function_counts(f).replays, traced ? 7 : 0);
        CHECK_INT(s[traced].calls, 36);
        CHECK_NEAR(eg_item(s[traced].own), 24, 0);
        random[traced] = eg_random_get_state();
        eg_function_release(f);
    }
    CHECK(strlen(s[0].log) > 1000);
    CHECK_STR(s[1].log, s[0].log);
    CHECK(!memcmp(values[0], values[1], sizeof values[0]));
    CHECK(!memcmp(&random[0], &random[1], sizeof random[0]));
    for (int k = 0; k < 2; k++) { eg_release(s[k].v); eg_release(s[k].own); }
}

// ---- gradients

static bool product_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    s->calls++;
    const double scale = eg_item(eg_reduce_max(in[0])) > 0.5 ? s->scale : 1;       // C decides
    out[0] = eg_keep(eg_mul(eg_mul(in[0], in[1]), scale));
    out[1] = eg_keep(eg_tanh(in[1]));
    return out[0] && out[1];
}
static bool training_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *pair[] = { eg_mul(in[0], 2), eg_mul(s->v, s->v) }, *y[2], *g;
    if (!eg_host_call(product_function, s, pair, 2, y, 2, .differentiable = true)) return false;
    eg_tensor *loss = eg_reduce_sum(eg_add(eg_square(y[0]), eg_mul(y[1], s->v)));
    if (!(g = eg_tape_gradient(tape, loss, s->v))) return false;
    out[0] = eg_keep(g);
    out[1] = eg_keep(loss);
    return eg_apply_gradients(s->opt, &g, &s->v, 1);
}
TEST(gradients_pass_through_a_differentiable_call) {
    static float values[2][14][4];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        host s;
        memset(&s, 0, sizeof s);
        s.v = eg_variable(data_of(1, 3), "v");
        s.opt = eg_adam(.learning_rate = .1);
        eg_function *f = eg_function_new(training_body, &s);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 14; i++) {
            EG_SCOPE;
            eg_tensor *x = data_of(i, 3), *y[2] = { NULL, NULL };
            s.scale = 1 + i % 3;
            CHECK(eg_function_call(f, &x, 1, y, 2));
            if (y[0]) eg_read_into(y[0], values[traced][i], 3);
            values[traced][i][3] = (float)eg_item(y[1]);
        }
        eg_run_functions_eagerly(false);
        if (traced) CHECK_STR(eg_function_reason(f), NULL);
        CHECK_INT(eg_function_counts(f).replays, traced ? 8 : 0);
        CHECK_INT(s.calls, 14);
        eg_function_release(f);
        eg_optimizer_release(s.opt);
        eg_release(s.v);
    }
    CHECK(!memcmp(values[0], values[1], sizeof values[0]));
}
// A gradient that comes back as one row for all is written whole, in the first call as well as in replays.
static bool one_more(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_add(in[0], 1)) != NULL;
}
static bool mean_of_rows(eg_tensor *const *in, eg_tensor **out, void *user) {
    if (!eg_host_call(one_more, user, in, 1, out, 1, .differentiable = true)) return false;
    return (out[0] = eg_reduce_mean(out[0], .axes = EG_AXES(0))) != NULL;
}
TEST(a_gradient_that_repeats_a_row_passes_through) {
    eg_function *f = eg_function_new(mean_of_rows, NULL);
    for (int i = 0; i < 6; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), *y;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(eg_tape_gradient(tape, eg_reduce_sum(eg_square(y)), x), 0, 3, 4, 3, 4);
    }
    CHECK_INT(eg_function_counts(f).replays, 2);
    eg_function_release(f);
}
// Six inputs, two of which are variables and one is whole; the call stands under a tape of the caller's.
static bool sum_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *y = eg_mul(in[0], in[1]);
    y = eg_add(eg_mul(y, in[2]), eg_mul(in[3], in[3]));
    out[0] = eg_keep(eg_add(eg_mul(y, in[5]), eg_cast(in[4], EG_FLOAT32)));
    return out[0] != NULL;
}
static bool sum_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tensor *list[] = { in[0], eg_mul(in[0], 3), s->v, eg_sin(in[0]), eg_constant_of(EG_INT32, EG_SHAPE(3), 1, 2, 3),
                          s->own }, *y;
    if (!eg_host_call(sum_function, s, list, 6, &y, 1, .differentiable = s->differentiable)) return false;
    out[0] = eg_keep(eg_square(y));
    return true;
}
TEST(gradients_through_a_call_under_an_outer_tape) {
    static float values[2][9][3][3];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        host s;
        memset(&s, 0, sizeof s);
        s.differentiable = true;
        s.v = eg_variable(data_of(1, 3), "v");
        s.own = eg_variable(data_of(5, 3), "own");
        eg_function *f = eg_function_new(sum_body, &s);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 9; i++) {
            EG_SCOPE;
            eg_tensor *x = data_of(i, 3), *y, *g[3], *of[] = { x, s.v, s.own };
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, x);
            CHECK(eg_function_call(f, &x, 1, &y, 1) && eg_tape_gradients(tape, y, of, 3, g));
            for (int k = 0; k < 3; k++) if (g[k]) eg_read_into(g[k], values[traced][i][k], 3);
            // d/dv of ((x 3x v + sin(x)^2) w + c)^2
            eg_tensor *z = eg_add(eg_mul(eg_add(eg_mul(eg_mul(x, eg_mul(x, 3)), s.v), eg_square(eg_sin(x))), s.own),
                                  eg_constant(EG_SHAPE(3), 1, 2, 3));
            CHECK_SAME(g[1], eg_mul(eg_mul(eg_mul(2, z), s.own), eg_mul(eg_mul(x, 3), x)), 1e-4);
        }
        eg_run_functions_eagerly(false);
        if (traced) CHECK_STR(eg_function_reason(f), NULL);
        CHECK_INT(eg_function_counts(f).replays, traced ? 4 : 0);
        eg_function_release(f);
        eg_release(s.v);
        eg_release(s.own);
    }
    CHECK(!memcmp(values[0], values[1], sizeof values[0]));
}
TEST(without_differentiable_the_missing_gradient_has_a_reason) {
    host s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(data_of(1, 3), "v");
    s.own = eg_variable(data_of(5, 3), "own");
    eg_function *f = eg_function_new(sum_body, &s);
    for (int i = 0; i < 12; i++) {
        EG_SCOPE;
        eg_tensor *x = data_of(i, 3), *y, *g = x;
        if (i == 6) eg_run_functions_eagerly(true);
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        CHECK(eg_function_call(f, &x, 1, &y, 1) && eg_tape_gradients(tape, y, &x, 1, &g));
        CHECK(g == NULL);
        CHECK_CONTAINS(eg_tape_unconnected_reason(), "eg_host_call without .differentiable");
    }
    eg_run_functions_eagerly(false);
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    eg_release(s.v);
    eg_release(s.own);
}
// An input on which the function does not depend: NULL at each replay, with the function's own reason.
static bool second_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    out[0] = eg_keep(eg_mul(in[1], s->scale != 0 ? in[0] : in[1]));
    return true;
}
static bool second_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *g[2], *y;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tape_watch(tape, in[1]);
    if (!eg_host_call(second_function, user, in, 2, &y, 1, .differentiable = true) ||
        !eg_tape_gradients(tape, y, in, 2, g))
        return false;
    out[0] = g[0] ? eg_keep(g[0]) : NULL;
    out[1] = eg_keep(g[1]);
    return true;
}
TEST(an_input_that_the_function_does_not_use_has_no_gradient) {
    EG_SCOPE;
    host s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(second_body, &s, .no_recheck = true);
    eg_tensor *x[] = { data_of(1, 2), eg_constant(EG_SHAPE(2), 3, 4) }, *y[2];
    for (int i = 0; i < 4; i++) {
        CHECK(eg_function_call(f, x, 2, y, 2));
        CHECK(y[0] == NULL);
        CHECK_TENSOR(y[1], 0, 6, 8);
        if (i == 0) CHECK_CONTAINS(eg_tape_unconnected_reason(), "does not depend on the source, inside an eg_host");
    }
    s.scale = 1;
    CHECK_ERROR(eg_function_call(f, x, 2, y, 2), EG_ERROR_GRADIENT, "depends on input 0 now");
    eg_function_release(f);
}
// Gradients of gradients: the function's ops are recorded, and the body runs eagerly.
static bool twice_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tape *outer = eg_tape_begin(), *inner = eg_tape_begin();
    eg_tape_watch(outer, in[0]);
    eg_tape_watch(inner, in[0]);
    eg_tensor *pair[] = { eg_square(in[0]), in[0] }, *y[2];
    if (!eg_host_call(product_function, s, pair, 2, y, 2, .differentiable = true)) return false;
    eg_tensor *g = eg_tape_gradient(inner, y[0], in[0]);           // 3 x^2
    out[0] = eg_keep(eg_tape_gradient(outer, g, in[0]));           // 6 x
    return out[0] != NULL;
}
TEST(gradients_of_gradients_run_eagerly) {
    host s;
    memset(&s, 0, sizeof s);
    s.scale = 1;
    eg_function *f = eg_function_new(twice_body, &s);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2 + i), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 1e-5, 6, 12 + 6.0 * i);
    }
    CHECK_CONTAINS(eg_function_reason(f), "eg_host_call with .differentiable under several tapes");
    CHECK_INT(s.calls, 4);
    eg_function_release(f);
}
static bool uses_a_variable(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    out[0] = eg_keep(eg_mul(in[0], s->v));
    return true;
}
TEST(a_variable_that_is_no_input_is_an_error) {
    EG_SCOPE;
    host s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(data_of(1, 3), "v");
    eg_tensor *x = data_of(2, 3), *y = x;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_ERROR(eg_host_call(uses_a_variable, &s, &x, 1, &y, 1, .differentiable = true), EG_ERROR_GRADIENT,
                "uses the variable v, which is none of its inputs");
    CHECK(y == NULL);
    CHECK(eg_host_call(uses_a_variable, &s, &x, 1, &y, 1));
    eg_release(s.v);
}

// ---- what the function does to variables

// Keeps the values of a variable that a later line writes, and assigns to one of its own or to the body's.
static bool keeping_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    (void)out;
    s->calls++;
    eg_release(s->kept);
    s->kept = s->fail == 2 ? NULL : eg_retain(eg_read(s->v));
    if (s->fail == 1) eg_assign_add(s->v, 5);
    return in[0] != NULL;
}
static bool keeping_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_assign_add(s->v, in[0]);
    if (!eg_host_call(keeping_function, s, in, 1, NULL, 0)) return false;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_reduce_sum(eg_square(s->v)), *g = eg_tape_gradient(tape, loss, s->v);
    out[0] = eg_keep(loss);
    return eg_apply_gradients(s->opt, &g, &s->v, 1);
}
TEST(what_the_function_keeps_of_a_variable_stays) {
    double left[2][3];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        host s;
        memset(&s, 0, sizeof s);
        s.v = eg_variable(data_of(1, 3), "v");
        s.opt = eg_sgd(.learning_rate = .1);
        s.fail = 2;                                         // keeps nothing while it is traced
        eg_function *f = eg_function_new(keeping_body, &s, .no_recheck = true);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 6; i++) {
            EG_SCOPE;
            eg_tensor *x = data_of(i, 3), *y;
            if (i == 2) s.fail = 0;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            if (i >= 2) CHECK_SAME(eg_mul(s.kept, .8), s.v, 1e-6);
        }
        eg_run_functions_eagerly(false);
        for (int k = 0; k < 3; k++) left[traced][k] = eg_item(eg_index(s.v, k));
        CHECK_INT(eg_function_counts(f).replays, traced ? 5 : 0);
        if (traced) {
            eg_tensor *x = data_of(1, 3), *y;
            s.fail = 1;
            CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, "assigns to variable v, which the traced");
        }
        eg_function_release(f);
        eg_optimizer_release(s.opt);
        eg_release(s.kept);
        eg_release(s.v);
    }
    for (int k = 0; k < 3; k++) CHECK_NEAR(left[0][k], left[1][k], 0);
}
// The function keeps the values from the first call on, in each call or in every second one, whatever the body does to
// the variable before and behind the call: the list is the same, and so are all values.
static bool sometimes_keeping(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    (void)out;
    if (s->calls++ % s->fail) return true;
    eg_release(s->kept);
    s->kept = eg_retain(eg_read(s->v));
    return in[0] != NULL;
}
static bool kept_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tensor *slope = eg_mul(in[0], 0.5), *before = NULL;
    switch (s->order) {
    case 0: eg_assign(s->v, eg_mul(s->v, in[0])); break;
    case 1: eg_assign_add(s->v, in[0]); break;
    case 2: eg_apply_gradients(s->opt, &slope, &s->v, 1); break;
    case 3: before = eg_mul(s->v, in[0]); break;
    default: break;
    }
    if (!eg_host_call(sometimes_keeping, s, in, 1, NULL, 0)) return false;
    switch (s->order) {
    case 3: case 4: eg_assign_add(s->v, in[0]); break;
    case 5: eg_assign_slice(s->v, EG_SHAPE(1), EG_SHAPE(1), eg_slice(in[0], EG_SHAPE(0), EG_SHAPE(1))); break;
    case 6: eg_assign(s->own, s->v); eg_assign_add(s->v, in[0]); break;
    default: eg_apply_gradients(s->opt, &slope, &s->v, 1);
    }
    if (s->order > 4 && !eg_host_call(sometimes_keeping, s, in, 1, NULL, 0)) return false;
    if (s->order > 5) eg_apply_gradients(s->opt, &slope, &s->v, 1);
    out[0] = eg_keep(before ? eg_add(before, s->v) : eg_mul(s->v, 1));
    return eg_error() == EG_OK;
}
static host host_of(double momentum, int order) {
    host s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(3)), "v");
    s.own = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(3)), "own");
    s.opt = eg_sgd(.learning_rate = .5, .momentum = momentum);
    s.order = order;
    return s;
}
TEST(what_the_function_keeps_from_the_first_call_on) {
    static float left[2][12][12];
    for (int kind = 0; kind < 8; kind++)
        for (int every = 1; every < 4; every++) {
            for (int traced = 0; traced < 2; traced++) {
                EG_SCOPE;
                host s = host_of(kind % 2 ? .9 : 0, kind);
                s.fail = every;
                eg_function *f = eg_function_new(kept_body, &s);
                eg_run_functions_eagerly(!traced);
                for (int i = 0; i < 12; i++) {
                    EG_SCOPE;
                    eg_tensor *x = data_of(i, 3), *y;
                    CHECK(eg_function_call(f, &x, 1, &y, 1));
                    CHECK(eg_read_into(y, left[traced][i], 3) && eg_read_into(s.v, left[traced][i] + 3, 3));
                    CHECK(eg_read_into(s.kept, left[traced][i] + 6, 3));
                    CHECK(eg_read_into(s.own, left[traced][i] + 9, 3));
                }
                eg_run_functions_eagerly(false);
                CHECK_INT(s.calls, kind > 4 ? 24 : 12);
                if (traced) CHECK_STR(eg_function_reason(f), NULL);
                if (traced) CHECK(eg_function_counts(f).replays >= 5);
                if (traced && eg_function_counts(f).replays < 5) printf("    kind %d, every %d\n", kind, every);
                eg_function_release(f);
                eg_optimizer_release(s.opt);
                eg_release(s.kept);
                eg_release(s.v);
                eg_release(s.own);
            }
            CHECK(!memcmp(left[0], left[1], sizeof left[0]));
        }
}
// Two variables share the values of which later lines write: an update of one and a part of the other. Both have what
// eager code gives them, whether the function keeps the values from the third call on (kind 1) or not, and where it is
// that of a custom gradient (kind 2).
static eg_tensor *reading_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c, (void)user;
    return eg_mul(in[0], eg_item(eg_reduce_sum(in[0])) > 0 ? 2 : 3);
}
static void reading_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], 2);
}
static bool sharing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tensor *x = in[0], *slope = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *w = s->own;
    eg_assign(s->own, s->v);
    if (s->order == 2) x = eg_custom_gradient(reading_forward, reading_backward, NULL, &x, 1);
    else if (!eg_host_call(keeping_function, s, &x, 1, NULL, 0)) return false;
    eg_assign_slice(s->v, EG_SHAPE(1), EG_SHAPE(1), x);
    out[0] = x ? eg_keep(eg_mul(x, 2)) : NULL;
    return eg_apply_gradients(s->opt, &slope, &w, 1);
}
TEST(variables_that_share_what_a_function_may_keep) {
    static float left[2][8][9];
    for (int kind = 0; kind < 3; kind++) {
        for (int traced = 0; traced < 2; traced++) {
            EG_SCOPE;
            host s = host_of(0, kind);
            s.fail = 2;                                     // keeps nothing
            eg_function *f = eg_function_new(sharing_body, &s, .no_recheck = true);
            eg_run_functions_eagerly(!traced);
            memset(left[traced], 0, sizeof left[traced]);
            for (int i = 0; i < 8; i++) {
                EG_SCOPE;
                eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1), i), *y;
                if (i == 2 && kind == 1) s.fail = 0;
                CHECK(eg_function_call(f, &x, 1, &y, 1));
                CHECK(eg_read_into(s.v, left[traced][i], 3) && eg_read_into(s.own, left[traced][i] + 3, 3));
                if (s.kept) CHECK(eg_read_into(s.kept, left[traced][i] + 6, 3));
            }
            eg_run_functions_eagerly(false);
            if (traced) CHECK(eg_function_counts(f).replays >= 5);
            eg_function_release(f);
            eg_optimizer_release(s.opt);
            eg_release(s.kept);
            eg_release(s.v);
            eg_release(s.own);
        }
        CHECK(!memcmp(left[0], left[1], sizeof left[0]));
    }
}

// The function assigns to a variable that the body uses before the call, behind it, in both places or as its input: the
// same error at each call, from the first one or the fourth one on (a replay), and the variable keeps its value.
static bool assigning_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tensor *slope = eg_scalar(-1);
    eg_assign_add(s->own, 1);
    if (++s->calls > s->fail) {
        if (s->draws) eg_apply_gradients(s->opt, &slope, &s->v, 1);
        else eg_assign_add(s->v, 1);
    }
    out[0] = eg_mul(in[0], 2);
    return true;
}
static bool used_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_tensor *y, *given = s->order == 4 ? s->v : in[0], *before = s->order & 1 ? eg_mul(in[0], s->v) : in[0];
    if (!eg_host_call(assigning_function, s, &given, 1, &y, 1)) return false;
    if (s->order == 3) eg_assign(s->v, eg_mul(s->v, 2));
    out[0] = s->order & 2 ? eg_mul(y, s->v) : eg_add(before, y);
    return true;
}
TEST(a_function_that_assigns_what_the_body_uses_is_an_error_at_each_call) {
    for (int kind = 0; kind < 20; kind++) {                 // order 0: the body does not use it
        EG_SCOPE;
        host s;
        memset(&s, 0, sizeof s);
        s.order = kind % 5;
        s.draws = kind / 5 % 2;
        s.fail = kind < 10 ? 0 : 3;
        s.v = eg_variable(eg_scalar(0), "v");
        s.own = eg_variable(eg_scalar(0), "own");
        s.opt = eg_sgd(.learning_rate = 1);
        eg_function *f = eg_function_new(used_body, &s);
        for (int i = 0; i < 8; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_scalar(1), *y = NULL;
            if (s.order && i >= s.fail)
                CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE,
                            "the function of an eg_host_call assigns to variable v, which the traced function uses; "
                            "return the values as outputs of the eg_host_call, and assign them in the body");
            else CHECK(eg_function_call(f, &x, 1, &y, 1));
            CHECK_NEAR(eg_item(s.v), s.order || i < s.fail ? 0 : i + 1 - s.fail, 0);
            CHECK_NEAR(eg_item(s.own), i + 1, 0);
        }
        CHECK_INT(s.calls, 8);
        if (!s.order) CHECK_INT(eg_function_counts(f).replays, 4);
        eg_function_release(f);
        eg_optimizer_release(s.opt);
        eg_release(s.v);
        eg_release(s.own);
    }
}
// The same of what loads values into a model that the body calls.
static const char *const loads[] = {"eg_load_weights", "eg_checkpoint_restore", "eg_layer_copy_weights",
                                    "eg_layer_soft_update"};
static eg_layer *one_by_one(double kernel) {
    eg_layer *l = eg_layer_dense(1, .no_bias = true);
    eg_tensor *w[1];
    (void)eg_call(l, eg_ones(EG_FLOAT32, EG_SHAPE(1, 1)));
    CHECK(eg_layer_weights(l, w, 1) == 1 && eg_assign(w[0], kernel));
    return l;
}
typedef struct loader { eg_layer *model, *other; eg_checkpoint *saved; int way, calls, fail, order; } loader;
static bool loading_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    loader *s = (loader *)user;
    if (++s->calls > s->fail) {
        if (s->way == 0) eg_load_weights(s->model, test_temp("loaded.npz"));
        else if (s->way == 1) eg_checkpoint_restore(s->saved, test_temp("saved-1"));
        else if (s->way == 2) eg_layer_copy_weights(s->model, s->other);
        else eg_layer_soft_update(s->model, s->other, .5);
    }
    out[0] = eg_mul(in[0], 2);
    return true;
}
static bool loaded_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    loader *s = (loader *)user;
    eg_tensor *y, *before = s->order & 1 ? eg_call(s->model, in[0]) : in[0];
    if (!eg_host_call(loading_function, s, in, 1, &y, 1)) return false;
    out[0] = s->order & 2 ? eg_add(y, eg_call(s->model, in[0])) : eg_add(before, y);
    return true;
}
TEST(a_function_that_loads_what_the_body_uses_is_an_error_at_each_call) {
    for (int kind = 0; kind < 32; kind++) {                 // order 0: the body does not use it
        EG_SCOPE;
        loader s = {one_by_one(1), one_by_one(5), eg_checkpoint_new(), kind % 4, 0, kind < 16 ? 0 : 3, kind / 4 % 4};
        eg_tensor *w;
        REQUIRE(eg_layer_weights(s.model, &w, 1) == 1 && eg_checkpoint_track_layer(s.saved, "model", s.model));
        REQUIRE(eg_save_weights(s.other, test_temp("loaded.npz")));
        eg_assign(w, 5);
        REQUIRE(eg_checkpoint_save(s.saved, test_temp("saved")));
        eg_assign(w, 1);
        eg_function *f = eg_function_new(loaded_body, &s);
        for (int i = 0; i < 8; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 1)), *y = NULL;
            char part[120];             // a body that uses it only behind the call fails at its end, and undoes that
            snprintf(part, sizeof part, "%s: the function of an eg_host_call assigns to variable dense/kernel",
                     s.order == 2 ? "" : loads[s.way]);
            if (s.order && i >= s.fail) CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, part);
            else CHECK(eg_function_call(f, &x, 1, &y, 1));
            if (s.order || i < s.fail) CHECK_NEAR(eg_item(w), 1, 0);
            else CHECK(eg_item(w) > 2.9);
        }
        CHECK_INT(s.calls, 8);
        eg_function_release(f);
        eg_checkpoint_release(s.saved);
        eg_layer_release(s.model);
        eg_layer_release(s.other);
    }
}

// ---- errors

static bool changing_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    const host *s = (const host *)user;
    eg_tensor *x = eg_mul(in[0], 2);
    switch (s->fail) {
    case 1: return false;
    case 2: return eg_raise(EG_ERROR_ARGUMENT, "the function's own") != NULL;
    case 3: (void)eg_add(in[0], eg_ones(EG_FLOAT32, EG_SHAPE(7))); break;
    case 4: x = eg_reshape(x, EG_SHAPE(1, 3)); break;
    case 5: x = eg_cast(x, EG_FLOAT64); break;
    case 6: x = NULL; break;
    default: break;
    }
    out[0] = x ? eg_keep(x) : NULL;
    return true;
}
static bool changing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y;
    if (!eg_host_call(changing_function, user, in, 1, &y, 1)) return false;
    out[0] = eg_keep(eg_add(y, 1));
    return true;
}
TEST(a_function_that_fails_fails_the_call) {
    static const struct { eg_error_code code; const char *says; bool everywhere; } all[] = {
        { EG_ERROR_STATE, "eg_host_call: the function failed without an error", true },
        { EG_ERROR_ARGUMENT, "the function's own", true }, { EG_ERROR_SHAPE, "eg_add", true },
        { EG_ERROR_SHAPE, "output 0 of the function is float32 [1, 3] (from eg_reshape), but float32 [3]", false },
        { EG_ERROR_SHAPE, "is float64 [3] (from eg_cast), but float32 [3] is expected", false },
        { EG_ERROR_NULL, "NULL", true } };
    EG_SCOPE;
    host s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(changing_body, &s, .no_recheck = true);
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 2, 3), *y;
    for (s.fail = 1; s.fail <= 6; s.fail++)
        if (all[s.fail - 1].everywhere) {
            CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), all[s.fail - 1].code, all[s.fail - 1].says);
            CHECK_ERROR(eg_host_call(changing_function, &s, &x, 1, &y, 1), all[s.fail - 1].code, all[s.fail - 1].says);
        }
    s.fail = 0;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    for (s.fail = 1; s.fail <= 6; s.fail++) {
        CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), all[s.fail - 1].code, all[s.fail - 1].says);
        CHECK(y == NULL);
    }
    s.fail = 0;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_TENSOR(y, 0, 3, 5, 7);
    CHECK_INT(eg_function_counts(f).replays, 7);
    eg_function_release(f);
}
// The function calls a traced function that assigns to one variable and reads another, which the list reads, too. That
// one is left alone, also when the two are compared, in turn or at once.
static bool assigns_and_reads(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    eg_assign_add(s->own, in[0]);
    return (out[0] = eg_mul(in[0], s->v)) != NULL;
}
typedef struct calling { host variables; eg_function *inner; } calling;
static bool calls_a_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_function_call(((calling *)user)->inner, in, 1, out, 1);
}
static bool reads_beside_a_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    calling *s = (calling *)user;
    eg_tensor *y;
    return eg_host_call(calls_a_function, s, in, 1, &y, 1) && (out[0] = eg_add(y, s->variables.v)) != NULL;
}
TEST(a_function_calls_one_that_assigns_something_else) {
    for (int beside = 0; beside < 3; beside++) {            // calls of the inner function before the third of the outer
        calling s;
        memset(&s, 0, sizeof s);
        s.variables.v = eg_variable(eg_constant(EG_SHAPE(2), 2, 3), "v");
        s.variables.own = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "own");
        eg_function *f = eg_function_new(reads_beside_a_call, &s);
        s.inner = eg_function_new(assigns_and_reads, &s.variables);
        int calls = 0;
        for (int i = 0; i < 20; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
            for (int k = 0; k < beside && i == 2; k++, calls++) CHECK(eg_function_call(s.inner, &x, 1, &y, 1));
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            CHECK_TENSOR(y, 0, 4, 6);
            calls++;
            CHECK_TENSOR(s.variables.own, 0, calls, calls);
        }
        CHECK(eg_function_reason(f) == NULL && eg_function_reason(s.inner) == NULL);
        CHECK(eg_function_counts(f).replays >= 10 && eg_function_counts(s.inner).replays >= 10);
        eg_function_release(f);
        eg_function_release(s.inner);
        eg_release(s.variables.v);
        eg_release(s.variables.own);
    }
}
// The function that is called only reads two variables that share their values, one of which the outer body reads, too:
// that one stays where it is, since memory of its own would seem an assignment.
static bool counts_and_reads_two(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *const *v = (eg_tensor *const *)user;
    return eg_assign_add(v[0], 1) && (out[0] = eg_mul(eg_add(in[0], v[1]), v[2])) != NULL;
}
static bool reads_around_a_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    calling *s = (calling *)user;
    eg_tensor *y = eg_mul(in[0], s->variables.v);
    return eg_host_call(calls_a_function, s, &y, 1, &y, 1) && (out[0] = eg_add(y, s->variables.v)) != NULL;
}
TEST(a_function_calls_one_that_reads_what_shares_its_values) {
    for (int of = 1; of < 3; of++) {
        calling s;
        memset(&s, 0, sizeof s);
        eg_tensor *v[3];
        for (int i = 0; i < 3; i++) v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), 3 * (i > 0)), "v");
        s.variables.v = v[of];
        eg_function *f = eg_function_new(reads_around_a_call, &s);
        s.inner = eg_function_new(counts_and_reads_two, v);
        for (int i = 0; i < 40; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
            eg_assign(v[2], v[1]);
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            CHECK_TENSOR(y, 0, 21, 21);
            CHECK_TENSOR(v[0], 0, i + 1, i + 1);
        }
        CHECK(eg_function_reason(f) == NULL && eg_function_reason(s.inner) == NULL);
        CHECK(eg_function_counts(f).replays >= 20 && eg_function_counts(s.inner).replays >= 20);
        eg_function_release(f);
        eg_function_release(s.inner);
        for (int i = 0; i < 3; i++) eg_release(v[i]);
    }
}
// A NULL in another function than the body is none of the inputs that the traced body was given.
static bool adds_null(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_add(in[0], NULL)) != NULL;
}
static bool calls_back(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return eg_host_call(adds_null, NULL, in, 1, out, 1);
}
static bool adds_null_behind_a_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    host *s = (host *)user;
    return eg_host_call(drawing_function, s, in, 1, out, 1) && (out[0] = eg_add(out[0], in[1])) != NULL;
}
static eg_tensor *forward_adds_null(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c, (void)user;
    return eg_add(in[0], NULL);
}
static bool calls_one_that_adds_null(eg_tensor *const *in, eg_tensor **out, void *user) {
    if (!*(const bool *)user) out[0] = eg_custom_gradient(forward_adds_null, reading_backward, NULL, in, 1);
    else (void)eg_cond(eg_greater(eg_reduce_sum(in[0]), 0), adds_null, adds_null, NULL, in, 1, out, 1);
    return out[0] != NULL;
}
TEST(a_null_of_the_function_is_not_the_bodys) {
    host s;
    memset(&s, 0, sizeof s);
    bool branches[2] = { false, true };
    eg_function *f[3] = { eg_function_new(calls_back, NULL), eg_function_new(calls_one_that_adds_null, branches),
                          eg_function_new(calls_one_that_adds_null, branches + 1) };
    eg_function *g = eg_function_new(adds_null_behind_a_call, &s);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
    for (int i = 0; i < 4; i++) {
        eg_run_functions_eagerly(i % 2);
        for (int k = 0; k < 3; k++) {
            CHECK(!eg_function_call(f[k], &x, 1, &y, 1));
            CHECK_CONTAINS(eg_error_message(), "eg_add: operand 1 is NULL");
            CHECK(!strstr(eg_error_message(), "in the body of a traced function"));
            eg_error_clear();
        }
        CHECK_ERROR(eg_function_call(g, &x, 1, &y, 1), EG_ERROR_NULL,
                    "operand 1 is NULL, in the body of a traced function called with 1 input at host_calls.c:");
    }
    eg_run_functions_eagerly(false);
    for (int k = 0; k < 3; k++) eg_function_release(f[k]);
    eg_function_release(g);
}
TEST(wrong_host_calls) {
    EG_SCOPE;
    host s;
    memset(&s, 0, sizeof s);
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 2, 3), *y = x, *none = NULL, *many[9];
    const eg_spec spec = { EG_FLOAT32, EG_SHAPE(-1) }, wrong = { EG_INT32, EG_SHAPE(3) };
    for (int i = 0; i < 9; i++) many[i] = x;
    CHECK_ERROR(eg_host_call(NULL, &s, &x, 1, &y, 1), EG_ERROR_NULL, "function");
    CHECK_ERROR(eg_host_call(changing_function, &s, NULL, 1, &y, 1), EG_ERROR_ARGUMENT, "eg_host_call");
    CHECK_ERROR(eg_host_call(changing_function, &s, &none, 1, &y, 1), EG_ERROR_NULL, "eg_host_call: operand 0 is NULL");
    CHECK_ERROR(eg_host_call(changing_function, &s, many, 9, &y, 1), EG_ERROR_ARGUMENT, "at most 8 inputs");
    CHECK_ERROR(eg_host_call(changing_function, &s, many, 1, &y, 99), EG_ERROR_ARGUMENT, "outputs, not 1 and 99");
    CHECK_ERROR(eg_host_call(changing_function, &s, many, 1, many, 5), EG_ERROR_ARGUMENT, "4 outputs, not 1 and 5");
    CHECK(eg_host_call(changing_function, &s, &x, 1, &y, 1, .results = &spec));
    CHECK_TENSOR(y, 0, 2, 4, 6);
    CHECK_ERROR(eg_host_call(changing_function, &s, &x, 1, &y, 1, .results = &wrong), EG_ERROR_SHAPE,
                "is float32 [3] (from eg_mul), but int32 [3] is expected");
    eg_tensor *number = eg_number(3);
    CHECK(eg_host_call(changing_function, &s, &number, 1, &y, 1));
    CHECK_TENSOR(y, 0, 6);
}

// ---- graphs

TEST(a_call_is_a_node_of_a_graph) {
    EG_SCOPE;
    host s;
    memset(&s, 0, sizeof s);
    s.scale = 2;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *w, *y[2], *grad, *none, *out[3];
    const eg_spec results[] = { { EG_FLOAT32, EG_SHAPE(-1) }, { EG_FLOAT32, EG_SHAPE(-1) } };
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        w = eg_variable(eg_scalar(3), "w");
        eg_tape *tape = eg_tape_begin();
        eg_tensor *pair[] = { eg_mul(x, 1), eg_mul(x, w) };
        CHECK(eg_host_call(product_function, &s, pair, 2, y, 2, .differentiable = true, .results = results));
        grad = eg_tape_gradient(tape, eg_reduce_sum(y[0]), w);
        CHECK(grad != NULL);
        tape = eg_tape_begin();
        CHECK(eg_host_call(product_function, &s, pair, 2, out, 2, .results = results));
        CHECK(!eg_tape_gradients(tape, out[0], &w, 1, &none) || !none);
        CHECK_CONTAINS(eg_tape_unconnected_reason(), "not watched");
        CHECK_ERROR(eg_host_call(product_function, &s, pair, 2, out, 2), EG_ERROR_ARGUMENT, ".results");
    }
    CHECK_INT(s.calls, 0);
    eg_session *session = eg_session_new(g);
    CHECK(eg_session_initialize(session, NULL, 0));
    eg_tensor *fetches[] = { y[0], grad, y[1] };
    for (int i = 0; i < 8; i++) {
        EG_SCOPE;
        const int n = 2 + i % 2;
        eg_tensor *v = eg_range(EG_FLOAT32, 1, 1 + n, 1);
        const eg_feed feed = { x, v };
        s.scale = 2 + i;
        CHECK(eg_session_run(session, &feed, 1, fetches, 3, out));
        CHECK_INT(s.calls, i + 1);
        CHECK_SAME(out[0], eg_mul(eg_square(v), 3 * s.scale), 1e-5);
        CHECK_SAME(out[1], eg_mul(eg_reduce_sum(eg_square(v)), s.scale), 1e-5);
        CHECK_SAME(out[2], eg_tanh(eg_mul(v, 3)), 1e-6);
        CHECK(eg_session_run(session, &feed, 1, &x, 1, out));       // which does not need the call
        CHECK_INT(s.calls, i + 1);
    }
    eg_session_release(session);
    eg_graph_release(g);
    eg_release(w);
}

static bool saved_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const eg_spec results = { EG_FLOAT32, EG_SHAPE(3) };
    return eg_host_call(changing_function, user, in, 1, out, 1, .results = &results) && eg_keep(out[0]);
}
TEST(no_file_holds_a_call) {
    EG_SCOPE;
    host s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(saved_body, &s);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_ERROR(eg_function_save(f, test_temp("host")), EG_ERROR_STATE, "an eg_host_call calls a function of");
    eg_function_release(f);
}

// ---- in a fit

static eg_tensor *clipping_call(eg_tensor *const *in, void *user) {
    eg_tensor *pair[] = { in[0], in[0] }, *y[2];
    return eg_host_call(product_function, user, pair, 2, y, 2, .differentiable = true) ? y[0] : NULL;
}
TEST(a_layer_of_a_traced_fit_calls_back) {
    double loss[2];
    host s;
    for (int eager = 0; eager < 2; eager++) {
        EG_SCOPE;
        memset(&s, 0, sizeof s);
        s.scale = 1.5;
        eg_seed(4);
        eg_tensor *x = eg_random_normal(EG_SHAPE(32, 3)), *y = eg_random_normal(EG_SHAPE(32, 1));
        eg_layer *m = eg_sequential(eg_layer_dense(4), eg_layer_custom("back", clipping_call, &s), eg_layer_dense(1));
        CHECK(eg_compile(m, eg_sgd(.learning_rate = .01), eg_mean_squared_error));
        const eg_history *h = eg_fit_arrays(m, x, y, .batch_size = 4, .epochs = 2, .quiet = true, .eager = eager);
        loss[eager] = eg_history_value(h, "loss", 1);
        CHECK_INT(s.calls, 16);
        if (!eager) CHECK_STR(eg_model_traced_reason(m), NULL);
        eg_layer_release(m);
    }
    CHECK_NEAR(loss[0], loss[1], 0);
}

// ---- memory

static bool all_of_it(void) {
    EG_SCOPE;
    host s;
    memset(&s, 0, sizeof s);
    s.scale = 2;
    s.v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(3)), "v");
    s.opt = eg_sgd(.learning_rate = .1);
    eg_function *f = s.v && s.opt ? eg_function_new(training_body, &s, .no_recheck = true) : NULL;
    bool ok = f != NULL;
    for (int i = 0; i < 3 && ok; i++) {
        EG_SCOPE;
        eg_tensor *x = data_of(i, 3), *y[2];
        ok = x && eg_function_call(f, &x, 1, y, 2);
    }
    eg_function_release(f);
    eg_optimizer_release(s.opt);
    eg_release(s.v);
    return ok;
}
TEST(host_calls_without_memory) {
    if (!test_on_host) SKIP("the device keeps memory of its own");
    faults_sweep(all_of_it);
}
