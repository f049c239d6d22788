// Traced functions under outer tapes: a call is one line there, and values and gradients of any order have the bits
// that the body gives when it runs eagerly. tests/core/ops.c has each op both ways, tests/core/threads.c threads, and
// tests/core/allocation.c failing allocations.
#include "test.h"

// ---- a function, called eagerly and traced under the same tapes

typedef struct setting {
    eg_tensor *v, *w, *captured;
    eg_layer *layer;
    eg_function *f, *inner;
    eg_tape *tape;
    int runs, what;
    bool ways;
} setting;
static eg_tensor *data_of(int step, eg_shape shape) {
    double n = 1;
    for (int i = 0; i < shape.rank; i++) n *= (double)shape.dims[i];
    return eg_reshape(eg_sin(eg_mul(eg_range(EG_FLOAT32, step, step + n, 1), 0.7)), shape);
}
// What one run gives: some tensors' bytes, one after the other.
typedef struct log_of { unsigned char bytes[1 << 17]; size_t size; } log_of;
static log_of logs[2];
static void log_tensor(log_of *log, eg_tensor *x) {
    if (!x) { log->bytes[log->size++] = 255; return; }
    const size_t size = (size_t)eg_size(x) * (eg_dtype_of(x) == EG_FLOAT64 ? 8 : eg_dtype_of(x) == EG_BOOL ? 1 : 4);
    if (log->size + size > sizeof log->bytes) return;
    eg_read_into(x, (void *)(log->bytes + log->size), eg_size(x));
    log->size += size;
}
typedef void scenario(setting *s, log_of *log, int step);
// Runs `steps` steps of a scenario eagerly and traced; both logs are equal. Returns how many calls were replays.
static int64_t compare(scenario *run, eg_function_body *body, int steps, void (*prepare)(setting *s)) {
    int64_t replays = 0;
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        setting s;
        memset(&s, 0, sizeof s);
        logs[traced].size = 0;
        eg_seed(11);
        s.v = eg_variable(data_of(1, EG_SHAPE(3)), "v");
        s.w = eg_variable(data_of(5, EG_SHAPE(3, 3)), "w");
        s.captured = eg_retain(data_of(9, EG_SHAPE(3)));
        if (prepare) prepare(&s);
        s.f = eg_function_new(body, &s);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < steps; i++) {
            EG_SCOPE;
            run(&s, &logs[traced], i);
        }
        eg_run_functions_eagerly(false);
        log_tensor(&logs[traced], s.v);
        log_tensor(&logs[traced], s.w);
        log_tensor(&logs[traced], eg_random_uniform(EG_SHAPE(1)));
        if (traced) {
            replays = eg_function_counts(s.f).replays;
            if (eg_function_reason(s.f)) printf("    eager: %s\n", eg_function_reason(s.f));
        }
        eg_function_release(s.f);
        eg_function_release(s.inner);
        eg_layer_release(s.layer);
        eg_release(s.v);
        eg_release(s.w);
        eg_release(s.captured);
    }
    CHECK(logs[0].size > 0 && logs[0].size == logs[1].size);
    CHECK(!memcmp(logs[0].bytes, logs[1].bytes, logs[0].size));
    return replays;
}
// y = f(x), and gradients of the sum of its squares by x, v and w, of as many orders as `what`.
static void orders(setting *s, log_of *log, int step) {
    eg_tape *tape[4];
    eg_tensor *x = data_of(step, EG_SHAPE(2, 3)), *y[2] = {NULL, NULL}, *xs[3] = {x, s->v, s->w}, *g[3];
    for (int i = 0; i < s->what; i++) { tape[i] = eg_tape_begin(); eg_tape_watch(tape[i], x); }
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    log_tensor(log, y[0]);
    log_tensor(log, y[1]);
    eg_tensor *z = eg_reduce_sum(eg_square(y[0]));
    for (int i = s->what; i-- > 0;) {
        CHECK(eg_tape_gradients(tape[i], z, xs, 3, g));
        for (int k = 0; k < 3; k++) log_tensor(log, g[k]);
        z = NULL;
        for (int k = 0; k < 3 && i; k++)
            if (g[k]) z = z ? eg_add(z, eg_reduce_sum(eg_square(g[k]))) : eg_reduce_sum(eg_square(g[k]));
        if (!z) break;
    }
}
static void first(setting *s) { s->what = 1; }
static void second(setting *s) { s->what = 2; }
static void first_of_ways(setting *s) { s->what = 1; s->ways = true; }
static void second_of_ways(setting *s) { s->what = 2; s->ways = true; }
static void third(setting *s) { s->what = 3; }
static int64_t compare_orders(eg_function_body *body) {
    const int64_t replays = compare(orders, body, 10, first);
    const int64_t more = compare(orders, body, 10, second), most = compare(orders, body, 10, third);
    return replays < more ? replays : more < most ? more : most;
}

// ---- bodies

static bool plain_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    s->runs++;
    eg_tensor *y = eg_tanh(eg_add(eg_matmul(in[0], s->w), s->v));
    out[0] = eg_keep(eg_mul(y, eg_add(eg_square(in[0]), s->captured)));
    out[1] = eg_keep(eg_transpose(y));
    return true;
}
TEST(variables_and_broadcasting) { CHECK(compare_orders(plain_body) >= 5); }
static bool views_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *a = eg_strided_slice(in[0], EG_SHAPE(0, 1), EG_SHAPE(2, 3), EG_SHAPE(1, 1));
    eg_tensor *b = eg_transpose(eg_strided_slice(s->w, EG_SHAPE(0, 0), EG_SHAPE(3, 2), EG_SHAPE(1, 1)));
    eg_tensor *c = eg_mul(eg_index(in[0], 0), eg_index(in[0], 1)), *d = eg_reverse(b, EG_AXES(0));
    eg_tensor *product = eg_matmul(a, eg_matmul(a, b, .transpose_a = true));
    out[0] = eg_keep(eg_concat((eg_tensor *[]){eg_mul(b, c), eg_square(d), eg_mul(product, 2)}, 3, 0));
    out[1] = eg_keep(a);
    return true;
}
TEST(views_slices_and_their_sums) { CHECK(compare_orders(views_body) >= 5); }
static bool assigned_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *before = eg_mul(s->v, in[0]);
    eg_assign_add(s->v, eg_mul(eg_reduce_mean(in[0], .axes = EG_AXES(0)), 0.1));
    eg_tensor *after = eg_mul(eg_square(s->v), in[0]);
    eg_assign(s->v, eg_mul(s->v, 0.5));
    out[0] = eg_keep(eg_mul(eg_add(before, after), eg_exp(s->v)));
    out[1] = NULL;
    return true;
}
TEST(variables_that_the_body_assigns) { CHECK(compare_orders(assigned_body) >= 5); }
static bool drawn_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *rows = eg_gather(s->w, eg_constant_of(EG_INT32, EG_SHAPE(4), 2, 0, 2, 2));
    eg_tensor *noise = eg_random_normal(EG_SHAPE(2, 3));
    out[0] = eg_keep(eg_matmul(eg_mul(in[0], noise), eg_matmul(rows, rows, .transpose_a = true)));
    out[1] = eg_keep(eg_argmax(rows, .axis = 1));
    return true;
}
TEST(draws_and_gathers) { CHECK(compare_orders(drawn_body) >= 5); }
static bool with_tape_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = eg_identity(in[0]);
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_reduce_sum(eg_mul(eg_exp(x), s->v)), *g = eg_tape_gradient(tape, y, x);
    out[0] = eg_keep(eg_mul(g, in[0]));
    out[1] = eg_keep(y);
    return true;
}
TEST(a_body_with_a_tape_of_its_own) { CHECK(compare_orders(with_tape_body) >= 5); }
static eg_tensor *cube_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    return eg_mul(in[0], eg_square(in[0]));
}
static void cube_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_mul(3, eg_square(c->saved[0])));
}
static bool custom_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *x = eg_mul(in[0], s->v);
    out[0] = eg_keep(eg_custom_gradient(cube_forward, cube_backward, NULL, &x, 1));
    out[1] = eg_keep(x);
    return out[0] != NULL;
}
TEST(custom_gradients_in_the_body) { CHECK(compare_orders(custom_body) >= 5); }
static bool inner_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *y[2];
    if (!eg_function_call(s->inner, in, 1, y, 2)) return false;
    out[0] = eg_keep(eg_mul(y[0], in[0]));
    out[1] = eg_keep(y[1]);
    return true;
}
static void with_inner(setting *s) { s->inner = eg_function_new(plain_body, s); s->what = 2; }
TEST(a_call_in_a_call) { CHECK(compare(orders, inner_body, 10, with_inner) >= 5); }
static bool in_float64_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *x = eg_cast(in[0], EG_FLOAT64), *w = eg_cast(s->w, EG_FLOAT64);
    out[0] = eg_keep(eg_cast(eg_log_softmax(eg_matmul(eg_sigmoid(x), w)), EG_FLOAT32));
    out[1] = eg_keep(eg_reduce_max(w, .axes = EG_AXES(0)));
    return true;
}
TEST(float64_and_casts) { CHECK(compare_orders(in_float64_body) >= 5); }
static bool same_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    out[0] = eg_keep(in[0]);
    out[1] = eg_keep(s->v);
    return true;
}
TEST(a_body_that_returns_what_it_is_given) { CHECK(compare(orders, same_body, 10, first) >= 5); }

// What a call reads inside adds to the sums that it had so far outside, in eager order.
static void sums(setting *s, log_of *log, int step) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, EG_SHAPE(2, 3)), *y[2], *z[2];
    eg_tape_watch(tape, x);
    eg_tensor *a = eg_mul(x, eg_index(x, 0));
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    CHECK(eg_function_call(s->f, &y[0], 1, z, 2));
    eg_tensor *b = eg_add(eg_mul(eg_exp(x), z[0]), eg_mul(eg_matmul(x, s->w), a));
    eg_tensor *xs[] = {x, s->v, s->w, y[0]}, *g[4];
    CHECK(eg_tape_gradients(tape, eg_add(b, eg_mul(eg_sin(x), y[0])), xs, 4, g));
    for (int i = 0; i < 4; i++) log_tensor(log, g[i]);
}
TEST(sums_go_on_in_eager_order) {
    CHECK(compare(sums, plain_body, 10, NULL) >= 12);
    CHECK(compare(sums, drawn_body, 10, NULL) >= 12);
}

// ---- layers, in training: the call is traced, the loss and the update stand outside

static bool layer_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_keep(eg_call(((setting *)user)->layer, in[0], .training = true));
    return out[0] != NULL;
}
static eg_shape layer_input;
static void train(setting *s, log_of *log, int step) {
    static eg_optimizer *adam;
    if (step == 0) adam = eg_adam(.learning_rate = 0.01);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, layer_input), *y, *g[32];
    CHECK(eg_function_call(s->f, &x, 1, &y, 1));
    eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(y, 0.3)));
    eg_list v = eg_tape_watched_variables_list(tape);
    CHECK(v.count > 0 && v.count <= 32);
    CHECK(eg_tape_gradients(tape, loss, v.tensors, v.count, g));
    CHECK(eg_apply_gradients(adam, g, v.tensors, v.count));
    log_tensor(log, loss);
    for (int i = 0; i < v.count; i++) { log_tensor(log, g[i]); log_tensor(log, v.tensors[i]); }
    if (step == 9) eg_optimizer_release(adam);
}
static void with_conv(setting *s) {
    s->layer = eg_sequential(eg_layer_conv2d(3, 3, .activation = EG_RELU), eg_layer_batch_normalization(),
                             eg_layer_max_pooling2d(), eg_layer_dropout(0.3), eg_layer_flatten(), eg_layer_dense(2));
}
static void with_lstm(setting *s) { s->layer = eg_sequential(eg_layer_lstm(4), eg_layer_dense(2)); }
static void with_gru(setting *s) {
    s->layer = eg_sequential(eg_layer_gru(4, .return_sequences = true), eg_layer_layer_normalization(),
                             eg_layer_global_average_pooling1d(), eg_layer_dense(2, .activation = EG_SOFTMAX));
}
TEST(a_convolution_with_statistics_and_dropout) {
    layer_input = EG_SHAPE(2, 6, 6, 2);
    CHECK(compare(train, layer_body, 10, with_conv) >= 4);
}
TEST(recurrent_layers) {
    layer_input = EG_SHAPE(2, 4, 3);
    CHECK(compare(train, layer_body, 10, with_lstm) >= 4);
    CHECK(compare(train, layer_body, 10, with_gru) >= 4);
}
static bool attention_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *x[] = {in[0], in[0]};
    return eg_call_multi(((setting *)user)->layer, x, 2, out, 1, .training = true) && eg_keep(out[0]);
}
static void with_attention(setting *s) { s->layer = eg_layer_multi_head_attention(2, 3); }
TEST(attention) {
    layer_input = EG_SHAPE(2, 4, 6);
    CHECK(compare(train, attention_body, 10, with_attention) >= 4);
}
static eg_tensor *loss_of(eg_tensor *const *in, void *user) {
    setting *s = (setting *)user;
    eg_tensor *y[2];
    return eg_function_call(s->f, in, 1, y, 2) ? eg_reduce_mean(eg_square(y[0])) : NULL;
}
static void minimize(setting *s, log_of *log, int step) {
    static eg_optimizer *sgd;
    if (step == 0) sgd = eg_sgd(.learning_rate = 0.1);
    eg_tensor *x = data_of(step, EG_SHAPE(2, 3));
    log_tensor(log, eg_minimize(sgd, loss_of, s, &x));
    log_tensor(log, s->v);
    if (step == 9) eg_optimizer_release(sgd);
}
TEST(minimize_finds_the_variables_of_a_call) {
    CHECK(compare(minimize, plain_body, 10, NULL) >= 5);
    CHECK(logs[0].size > 40);
}

// ---- functions of functions, and what tapes can do

static eg_tensor *scalar_of(eg_tensor *const *in, void *user) {
    setting *s = (setting *)user;
    eg_tensor *y[2];
    return eg_function_call(s->f, in, 1, y, 2) ? eg_reduce_sum(eg_mul(y[0], in[0])) : NULL;
}
static void transforms(setting *s, log_of *log, int step) {
    eg_tensor *x = data_of(step, EG_SHAPE(2, 3)), *v = data_of(step + 4, EG_SHAPE(2, 3)), *g = NULL;
    log_tensor(log, eg_hessian(scalar_of, s, x));
    CHECK(eg_hvp(scalar_of, s, &x, &v, 1, &g));
    log_tensor(log, g);
    log_tensor(log, eg_jvp(loss_of, s, &x, &v, 1));
    log_tensor(log, eg_nth_gradient(scalar_of, s, x, 3));
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *y[2];
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    log_tensor(log, eg_tape_jacobian(tape, y[0], x));
    log_tensor(log, eg_tape_batch_jacobian(tape, y[0], x));
    log_tensor(log, eg_tape_jacobian(tape, y[1], s->v));
    eg_tape_stop(tape);
    log_tensor(log, eg_tape_gradient(tape, y[0], s->w));
    log_tensor(log, eg_tape_gradient(tape, y[0], s->w));                  // twice: a persistent tape keeps its lines
}
TEST(jacobians_and_other_transforms) { CHECK(compare(transforms, plain_body, 6, NULL) >= 20); }
static void switches(setting *s, log_of *log, int step) {
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, EG_SHAPE(2, 3)), *y[2], *z[2], *xs[] = {x, s->v, s->captured}, *g[3];
    eg_tape_watch_variables(tape, step % 2);
    eg_tape_watch(tape, x);
    if (step % 3) eg_tape_watch(tape, s->captured);
    if (step % 4 == 1) eg_tape_watch(outer, s->captured);
    if (step % 4 == 3) eg_tape_watch(tape, s->v);
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    eg_tape_stop(tape);
    CHECK(eg_function_call(s->f, y, 1, z, 2));
    eg_tape_resume(tape);
    eg_recording_pause();
    CHECK(eg_function_call(s->f, z, 1, z, 2));
    eg_recording_unpause();
    CHECK(eg_tape_gradients(tape, eg_mul(z[0], y[0]), xs, 3, g));
    for (int k = 0; k < 3; k++) log_tensor(log, g[k]);
    CHECK(eg_tape_gradients(outer, z[0], xs, 3, g));
    for (int k = 0; k < 3; k++) log_tensor(log, g[k]);
}
TEST(what_tapes_watch_is_part_of_the_signature) { CHECK(compare(switches, plain_body, 30, NULL) >= 20); }

// ---- lengths that change

static int backwards;                                       // how often a gradient's function ran in C
static void counted_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    backwards++;
    cube_backward(c, dx, user);
}
static bool squared_by_v(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(eg_square(in[0]), ((setting *)user)->v);
    return out[0] != NULL;
}
static bool part_of_w(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(eg_matmul(in[0], ((setting *)user)->w), 1.0 / (double)eg_dim(in[0], 0));
    return out[0] != NULL;
}
static bool length_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    s->runs++;
    eg_tensor *x = eg_tanh(eg_add(eg_matmul(in[0], s->w), s->v)), *h = x;
    if (s->ways && !eg_cond(eg_greater(eg_reduce_sum(in[0]), 0), squared_by_v, part_of_w, s, &x, 1, &h, 1))
        return false;
    eg_tensor *cube = eg_custom_gradient(cube_forward, counted_backward, NULL, &h, 1);
    eg_tensor *all = eg_concat(EG_TENSORS(cube, eg_mul(h, 1.0 / (double)eg_dim(in[0], 0))), 0);
    out[0] = eg_keep(eg_reduce_mean(eg_square(all), .axes = EG_AXES(0)));
    out[1] = eg_keep(eg_slice(h, EG_SHAPE(1, 0), EG_SHAPE(-1, 2)));
    return out[1] != NULL;
}
static const int64_t lengths[] = { 5, 9, 7, 12, 64, 3, 128 };
static void at_lengths(setting *s, log_of *log, int step) {
    eg_tape *tape[2];
    eg_tensor *x = data_of(step, EG_SHAPE(lengths[step % 7], 3)), *y[2], *xs[3] = {x, s->v, s->w}, *g[3];
    for (int i = 0; i < s->what; i++) { tape[i] = eg_tape_begin(); eg_tape_watch(tape[i], x); }
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    log_tensor(log, y[0]);
    eg_tensor *z = eg_add(eg_reduce_sum(eg_square(y[0])), eg_reduce_mean(y[1]));
    for (int i = s->what; i-- > 0;) {
        CHECK(eg_tape_gradients(tape[i], z, xs, 3, g));
        for (int k = 0; k < 3; k++) log_tensor(log, g[k]);
        z = NULL;
        for (int k = 0; k < 3 && i; k++)
            z = z ? eg_add(z, eg_reduce_sum(eg_square(g[k]))) : eg_reduce_sum(eg_square(g[k]));
    }
    const eg_function_info info = eg_function_counts(s->f);
    const int ways = s->ways ? 2 : 1;
    if (step < 40 * ways || !info.calls || !info.traces) return;
    CHECK_INT(info.traces, 2 * ways);
    CHECK_INT(info.derived, 5 * ways);
}
TEST(a_further_length_under_tapes) {
    CHECK(compare(at_lengths, length_body, 49, first) >= 20);
    CHECK(compare(at_lengths, length_body, 49, second) >= 20);
}
TEST(a_further_length_of_two_ways_under_tapes) {
    CHECK(compare(at_lengths, length_body, 98, first_of_ways) >= 40);
    CHECK(compare(at_lengths, length_body, 98, second_of_ways) >= 40);
}
// What the gradients read does not show the lengths, and two of them change.
static bool of_sums_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    out[0] = eg_keep(eg_mul(eg_reduce_sum(in[0]), eg_reduce_sum(s->v)));
    return true;
}
static void at_two_lengths(setting *s, log_of *log, int step) {
    static const int64_t n[] = { 5, 7, 9, 11, 5, 5, 5, 7, 9, 9, 6, 1, 1 };
    static const int64_t m[] = { 4, 4, 4, 4, 7, 9, 11, 7, 9, 5, 6, 4, 7 };
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tensor *x = data_of(step, EG_SHAPE(n[step % 13], m[step % 13])), *y, *xs[2] = {x, s->v}, *g[2];
    eg_tape_watch(tape, x);
    CHECK(eg_function_call(s->f, &x, 1, &y, 1));
    for (int i = 0; i < 2; i++) {
        CHECK(eg_tape_gradients(tape, eg_square(y), xs, 2, g));
        for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
    }
}
TEST(two_lengths_under_tapes) { CHECK(compare(at_two_lengths, of_sums_body, 130, NULL) >= 30); }
// More lengths than lists are kept for: lists that went are derived again, and neither the body nor the gradient runs.
static void call_at_lengths(setting *s, int64_t n, int calls) {
    for (int i = 0; i < calls; i++) {
        EG_SCOPE;
        eg_tensor *x = data_of(i, EG_SHAPE(n, 3)), *y[2];
        eg_tape *tape = eg_tape_begin();
        CHECK(eg_function_call(s->f, &x, 1, y, 2));
        CHECK(eg_tape_gradient(tape, y[0], s->w) != NULL);
    }
}
TEST(known_lengths_under_tapes) {
    setting s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(data_of(1, EG_SHAPE(3)), "v");
    s.w = eg_variable(data_of(5, EG_SHAPE(3, 3)), "w");
    s.f = eg_function_new(length_body, &s);
    for (int i = 0; i < 75; i++) call_at_lengths(&s, 3 + i, 6);
    CHECK_INT(eg_function_counts(s.f).traces, 2);
    CHECK_INT(eg_function_counts(s.f).derived, 73);
    const int runs = s.runs, ran = backwards;
    for (int i = 0; i < 6; i++) call_at_lengths(&s, 5 + i, 2);
    CHECK_INT(s.runs, runs);
    if (test_on_host) CHECK_INT(backwards, ran);
    for (int i = 0; i < 300 / test_share + 75; i++) call_at_lengths(&s, 80 + i, 6);        // more than are known
    call_at_lengths(&s, 5, 3);
    CHECK_INT(eg_function_counts(s.f).traces, 2);
    CHECK_STR(eg_function_reason(s.f), NULL);
    eg_function_release(s.f);
    eg_release(s.v);
    eg_release(s.w);
}

// ---- any number of inputs and outputs

enum { MANY = 40 };
static bool many_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    for (int i = 0; i < MANY; i++) out[i] = i % 7 == 3 ? NULL : eg_keep(eg_mul(in[i], in[(i + 1) % MANY]));
    return true;
}
TEST(inputs_and_outputs_of_any_number) {
    eg_function *f = eg_function_new(many_body, NULL);
    float values[2][MANY][2];
    memset(values, 0, sizeof values);
    for (int call = 0; call < 6; call++) {
        EG_SCOPE;
        eg_tensor *x[MANY], *y[MANY], *g[MANY], *z = eg_scalar(0);
        eg_tape *tape = eg_tape_begin();
        for (int i = 0; i < MANY; i++) { x[i] = data_of(i, EG_SHAPE(2)); eg_tape_watch(tape, x[i]); }
        eg_run_functions_eagerly(call == 0);
        CHECK(eg_function_call(f, x, MANY, y, MANY));
        eg_run_functions_eagerly(false);
        for (int i = 0; i < MANY; i++) {
            CHECK((y[i] == NULL) == (i % 7 == 3));
            if (y[i] && i % 5) z = eg_add(z, eg_mul(y[i], i));
        }
        CHECK(eg_tape_gradients(tape, z, x, MANY, g));
        for (int i = 0; i < MANY; i++) if (g[i]) eg_read_into(g[i], values[call > 0][i], 2);
        CHECK(call == 0 || !memcmp(values[0], values[1], sizeof values[0]));
    }
    CHECK_INT(eg_function_counts(f).replays, 1);
    eg_function_release(f);
}

// ---- no gradient: NULL, with the body's own reason

static bool partly_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_mul(in[0], 2));
    out[1] = eg_keep(eg_mul(eg_floor(in[1]), 3));
    out[2] = eg_keep(eg_mul(eg_stop_gradient(in[1]), in[0]));
    out[3] = eg_keep(eg_argmax(in[1]));
    return true;
}
TEST(a_gradient_that_is_not_there_says_why) {
    static const char *const why[] = {"does not depend on", "eg_floor, which is not differentiable", "eg_stop_gradient",
                                      ", which makes int64"};
    for (int traced = 0; traced < 2; traced++) {
        eg_function *f = eg_function_new(partly_body, NULL, .no_recheck = true);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 12; i++) {
            EG_SCOPE;
            eg_tensor *x[] = {data_of(1, EG_SHAPE(3)), data_of(2, EG_SHAPE(3))}, *y[4];
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, x[0]);
            eg_tape_watch(tape, x[1]);
            CHECK(eg_function_call(f, x, 2, y, 4));
            CHECK(eg_tape_gradient(tape, i % 4 == 3 ? y[3] : eg_mul(y[i % 4], 2), x[1]) == NULL);
            CHECK_CONTAINS(eg_tape_unconnected_reason(), why[i % 4]);
        }
        eg_run_functions_eagerly(false);
        if (traced) CHECK_INT(eg_function_counts(f).replays, 11);
        eg_function_release(f);
    }
}
// The same reasons as in eager code, word for word: what cuts each path, in each kind of control flow and within it.
enum { APART, FLOORED, STOPPED, INTEGER, COMPARED, HOST_PLAIN, HOST_APART, HOST_FLOORED, CUSTOM, READING, CONSTANT,
       FROZEN, UNREAD, UNWATCHED, CUTS };
typedef struct way { int cut, flow[2], depth; eg_tensor *x, *z, *v; eg_function *inner; } way;
static bool pick_second(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_mul(in[1], 2));
    return true;
}
static bool floor_first(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_add(eg_floor(in[0]), in[1]));
    return true;
}
static eg_tensor *sum_of_both(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c;
    if (user) eg_item(eg_reduce_sum(in[0]));                // a function that reads in C is called at each replay
    return eg_add(in[0], in[1]);
}
static void second_only(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[1] = c->upstream[0];
}
// A result of z and of x, on which it depends in a way that has no gradient.
static eg_tensor *cut_off(const way *w) {
    eg_tensor *in[] = { w->x, w->z }, *y = NULL;
    switch (w->cut) {
    case APART: return eg_mul(w->z, 3);
    case FLOORED: return eg_mul(eg_floor(eg_mul(w->x, 2)), w->z);
    case STOPPED: return eg_mul(eg_stop_gradient(eg_mul(w->x, w->z)), w->z);
    case INTEGER: return eg_mul(eg_cast(eg_cast(w->x, EG_INT32), EG_FLOAT32), w->z);
    case COMPARED: return eg_mul(eg_cast(eg_greater(w->x, w->z), EG_FLOAT32), w->z);
    case HOST_PLAIN: eg_host_call(floor_first, NULL, in, 2, &y, 1); return y;
    case HOST_APART: eg_host_call(pick_second, NULL, in, 2, &y, 1, .differentiable = true); return y;
    case HOST_FLOORED: eg_host_call(floor_first, NULL, in, 2, &y, 1, .differentiable = true); return y;
    case CUSTOM: return eg_custom_gradient(sum_of_both, second_only, NULL, in, 2);
    case READING: return eg_custom_gradient(sum_of_both, second_only, &y, in, 2);
    case CONSTANT: return eg_zeros(EG_FLOAT32, EG_SHAPE(2));
    default: return eg_mul(eg_mul(w->v, w->x), w->z);       // v is asked for
    }
}
enum { STRAIGHT, LOOPED, CHOSEN, SCANNED, FLOWS };
static bool fewer_than_two(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_less(in[0], 2));
    return true;
}
static eg_tensor *flow_of(way *w);
static eg_tensor *flow_within(way *w) {
    w->depth++;
    eg_tensor *y = flow_of(w);
    w->depth--;
    return y;
}
static bool looped(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_keep(eg_add(in[0], 1));
    out[1] = eg_keep(eg_add(in[1], flow_within((way *)user)));
    return true;
}
static bool chosen(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    out[0] = eg_keep(flow_within((way *)user));
    return true;
}
static bool scanned(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_keep(eg_add(in[0], flow_within((way *)user)));
    return true;
}
static eg_tensor *flow_of(way *w) {
    eg_tensor *state[] = { eg_zeros(EG_FLOAT32, EG_SCALAR), eg_zeros(EG_FLOAT32, EG_SHAPE(2)) }, *y = NULL;
    if (w->depth == 2) return cut_off(w);
    switch (w->flow[w->depth]) {
    case LOOPED: return eg_while(fewer_than_two, looped, w, state, state, 2, .max_steps = 4) ? state[1] : NULL;
    case CHOSEN: return eg_cond(eg_less(state[0], 1), chosen, chosen, w, NULL, 0, &y, 1) ? y : NULL;
    case SCANNED: return eg_scan(scanned, w, &state[1], &y, 1, NULL, 0, NULL, 0, .length = 2) ? y : NULL;
    default: return flow_within(w);
    }
}
static bool cut_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    way *w = (way *)user;
    w->x = in[0];
    w->z = in[1];
    out[0] = eg_keep(flow_of(w));
    return out[0] != NULL;
}
static bool handing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *swapped[] = { eg_identity(in[0]), eg_mul(in[1], 1) };
    return eg_function_call(((way *)user)->inner, swapped, 2, out, 1);
}
static void why_of(way *w, eg_function *f, bool behind, char *why, size_t size) {
    EG_SCOPE;
    eg_tensor *in[] = { data_of(1, EG_SHAPE(2)), data_of(3, EG_SHAPE(2)) }, *y;
    eg_tape *tape = eg_tape_begin();
    if (w->cut != UNWATCHED) eg_tape_watch(tape, in[0]);
    eg_tape_watch(tape, in[1]);
    CHECK(eg_function_call(f, in, 2, &y, 1));
    eg_tensor *target = behind ? eg_mul(eg_add(y, in[1]), in[1]) : y,
              *source = w->cut == FROZEN || w->cut == UNREAD ? w->v : in[0];
    if (w->cut == UNREAD) target = eg_mul(in[1], 2);
    CHECK(eg_tape_gradient(tape, target, source) == NULL);
    snprintf(why, size, "%s", eg_tape_unconnected_reason());
}
TEST(a_reason_is_that_of_eager_code) {
    for (int cut = 0; cut < CUTS; cut++)
        for (int flow = 0; flow < FLOWS * FLOWS * 2; flow++) {
            way w;
            char why[2][320];
            memset(&w, 0, sizeof w);
            w.cut = cut;
            w.flow[0] = flow % FLOWS;
            w.flow[1] = flow / FLOWS % FLOWS;
            w.v = eg_variable(data_of(2, EG_SHAPE(2)), "vee");
            if (cut == FROZEN || cut == UNWATCHED) eg_set_trainable(w.v, false);
            const bool nested = flow >= FLOWS * FLOWS;
            w.inner = eg_function_new(cut_body, &w, .no_recheck = true);
            eg_function *outer = eg_function_new(handing_body, &w, .no_recheck = true), *f = nested ? outer : w.inner;
            for (int behind = 0; behind < 2; behind++) {
                eg_run_functions_eagerly(true);
                why_of(&w, f, behind, why[0], sizeof why[0]);
                eg_run_functions_eagerly(false);
                CHECK(why[0][0]);
                for (int call = 0; call < 3; call++) {
                    why_of(&w, f, behind, why[1], sizeof why[1]);
                    CHECK_STR(why[1], why[0]);
                }
            }
            // A condition behind a call of C cannot be replayed.
            const bool calls = cut == HOST_PLAIN || cut == HOST_APART || cut == HOST_FLOORED || cut == READING;
            CHECK(calls || eg_function_counts(f).replays >= 4);
            eg_function_release(outer);
            eg_function_release(w.inner);
            eg_release(w.v);
        }
}
// Of several calls, a source has the reason of that which cut its own path.
TEST(each_source_has_its_own_reason) {
    way w[2];
    eg_function *f[2];
    memset(w, 0, sizeof w);
    for (int first = 0; first < CONSTANT; first++)
        for (int second = 0; second < CONSTANT; second++) {
            for (int k = 0; k < 2; k++) {
                w[k].cut = k ? second : first;
                f[k] = eg_function_new(cut_body, &w[k], .no_recheck = true);
            }
            char why[4][2][320];
            for (int call = 0; call < 4; call++) {
                eg_run_functions_eagerly(call == 0);
                for (int k = 0; k < 2; k++) {
                    EG_SCOPE;
                    eg_tensor *x[] = { data_of(1, EG_SHAPE(2)), data_of(2, EG_SHAPE(2)) }, *z = data_of(3, EG_SHAPE(2));
                    eg_tape *tape = eg_tape_begin();
                    for (int i = 0; i < 2; i++) eg_tape_watch(tape, x[i]);
                    eg_tape_watch(tape, z);
                    eg_tensor *in[] = { x[0], z }, *more[] = { x[1], z }, *y[2], *g[2];
                    CHECK(eg_function_call(f[0], in, 2, &y[0], 1) && eg_function_call(f[1], more, 2, &y[1], 1));
                    eg_tensor *sources[] = { x[k], x[!k] };
                    CHECK(eg_tape_gradients(tape, eg_add(y[0], y[1]), sources, 2, g));
                    CHECK(!g[0] && !g[1]);
                    snprintf(why[call][k], sizeof why[call][k], "%s", eg_tape_unconnected_reason());
                    CHECK_STR(why[call][k], why[0][k]);
                }
            }
            eg_run_functions_eagerly(false);
            for (int k = 0; k < 2; k++) eg_function_release(f[k]);
        }
}
// An output that leads nowhere hands on NULL, not zeros: only the line of the other output runs.
static int backward_runs, upstream_nulls;
static bool two_forward(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)c;
    (void)user;
    out[0] = eg_mul(in[0], 2);
    return true;
}
static void two_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    backward_runs++;
    upstream_nulls += c->upstream[0] == NULL;
    dx[0] = eg_mul(c->upstream[0], 2);
}
static bool two_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    if (!eg_custom_gradient_multi(two_forward, two_backward, NULL, in, 1, out, 1)) return false;
    out[1] = eg_keep(eg_mul(in[0], 3));
    return eg_keep(out[0]) != NULL;
}
TEST(an_output_that_leads_nowhere_costs_nothing) {
    eg_function *f = eg_function_new(two_body, NULL);
    backward_runs = upstream_nulls = 0;
    for (int i = 0; i < 8; i++) {
        EG_SCOPE;
        eg_tensor *x = data_of(i, EG_SHAPE(3)), *y[2];
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        CHECK(eg_function_call(f, &x, 1, y, 2));
        CHECK_TENSOR(eg_tape_gradient(tape, y[1], x), 0, 3, 3, 3);
        CHECK_INT(backward_runs, 0);
    }
    eg_function_release(f);
}

// ---- what cannot be traced, and what is an error

// A custom gradient whose functions read tensors in C keeps the call eager under several tapes.
static eg_tensor *reading_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    eg_item(eg_reduce_sum(in[0]));
    return eg_square(in[0]);
}
static void reading_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_mul(c->saved[0], 2));
}
static bool reading_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *x = in[0], *y = s->what ? eg_custom_gradient(reading_forward, reading_backward, NULL, &x, 1)
                                       : eg_square(x);
    y = eg_mul(y, s->v);
    out[0] = eg_keep(eg_exp(y));
    return true;
}
TEST(a_call_that_cannot_be_traced_has_its_gradients) {
    setting s;
    memset(&s, 0, sizeof s);
    s.what = 1;
    s.v = eg_variable(data_of(1, EG_SHAPE(3)), "v");
    eg_function *f = eg_function_new(reading_body, &s);
    float values[4][2][3];
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x = data_of(4, EG_SHAPE(3)), *y, *g;
        eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
        eg_tape_watch(outer, x);
        eg_tape_watch(tape, x);
        eg_run_functions_eagerly(i == 0);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        eg_run_functions_eagerly(false);
        CHECK(i == 0 || strstr(eg_function_reason(f), i == 1 ? "traced at a later call" : "eg_item reads a tensor in"));
        g = eg_tape_gradient(tape, y, s.v);
        eg_read_into(g, values[i][0], 3);
        eg_read_into(eg_tape_gradient(outer, g, x), values[i][1], 3);
        CHECK(!memcmp(values[0], values[i], sizeof values[0]));
    }
    eg_function_release(f);
    eg_release(s.v);
}
static bool outer_tape_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *y = eg_square(in[0]);
    if (s->what == 0) eg_tape_watch(s->tape, y);
    if (s->what == 1) eg_tape_stop(s->tape);
    if (s->what == 2) y = eg_tape_gradient(s->tape, y, in[0]);
    out[0] = eg_keep(y);
    return eg_error() == EG_OK;
}
TEST(an_outer_tape_in_the_body_is_an_error) {
    for (int i = 0; i < 6; i++) {
        EG_SCOPE;
        setting s;
        memset(&s, 0, sizeof s);
        s.what = i % 3;
        eg_function *f = eg_function_new(outer_tape_body, &s);
        s.tape = eg_tape_begin();
        eg_tensor *x = data_of(1, EG_SHAPE(3)), *y = x;
        eg_tape_watch(s.tape, x);
        eg_run_functions_eagerly(i >= 3);
        CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_TAPE,
                    "the body of a traced function uses a tape that began outside it");
        eg_run_functions_eagerly(false);
        CHECK(y == NULL);
        eg_function_release(f);
    }
}
static bool failing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    out[0] = eg_keep(eg_gather(s->v, in[0]));
    return out[0] != NULL;
}
TEST(an_error_under_a_tape_leaves_it_usable) {
    if (!test_on_host) return;                              // a device tells later
    setting s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(data_of(1, EG_SHAPE(3)), "v");
    eg_function *f = eg_function_new(failing_body, &s, .no_recheck = true);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *good = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 1), *y;
        eg_tensor *bad = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 7);
        eg_tape *tape = eg_tape_begin();
        CHECK_ERROR(eg_function_call(f, &bad, 1, &y, 1), EG_ERROR_INDEX, i ? "recorded at taped.c:" : "eg_gather");
        CHECK(y == NULL);
        CHECK(eg_function_call(f, &good, 1, &y, 1));
        CHECK_TENSOR(eg_tape_gradient(tape, y, s.v), 0, 0, 2, 0);
    }
    eg_function_release(f);
    eg_release(s.v);
}

// ---- lifetimes

TEST(the_function_and_the_tape_may_go_first) {
    for (int i = 0; i < 4; i++) {
        setting s;
        memset(&s, 0, sizeof s);
        s.v = eg_variable(data_of(1, EG_SHAPE(3)), "v");
        s.w = eg_variable(data_of(5, EG_SHAPE(3, 3)), "w");
        s.captured = eg_retain(data_of(9, EG_SHAPE(3)));
        eg_function *f = eg_function_new(plain_body, &s);
        float values[6][3];
        for (int call = 0; call < 6; call++) {
            EG_SCOPE;
            eg_tensor *x = data_of(2, EG_SHAPE(2, 3)), *y[2], *g;
            eg_tape *tape = i % 2 ? eg_tape_begin_persistent() : eg_tape_begin();
            CHECK(eg_function_call(f, &x, 1, y, 2));
            if (call == 5 && i < 2) { eg_function_release(f); f = NULL; }
            if (call == 3) continue;                        // a tape that gives no gradient
            g = eg_tape_gradient(tape, y[0], s.v);
            if (i % 2) CHECK_SAME(eg_tape_gradient(tape, y[0], s.v), g, 0);
            eg_read_into(g, values[call], 3);
            CHECK(!memcmp(values[0], values[call], sizeof values[0]));
        }
        eg_function_release(f);
        eg_release(s.v);
        eg_release(s.w);
        eg_release(s.captured);
    }
}
// Many calls on one tape: each keeps its own values.
TEST(calls_keep_their_own_values) {
    setting s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(data_of(1, EG_SHAPE(3)), "v");
    s.what = 0;
    eg_function *f = eg_function_new(reading_body, &s);
    eg_tensor *g[2];
    for (int traced = 0; traced < 2; traced++) {
        eg_run_functions_eagerly(!traced);
        eg_tape *tape = eg_tape_begin();
        eg_tensor *z = eg_scalar(0);
        for (int i = 0; i < 20; i++) {
            eg_tensor *x = eg_mul(data_of(i, EG_SHAPE(3)), 0.5), *y;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            z = eg_add(z, eg_mul(y, i));
        }
        g[traced] = eg_tape_gradient(tape, z, s.v);
        eg_run_functions_eagerly(false);
    }
    CHECK_SAME(g[1], g[0], 0);
    CHECK(eg_function_counts(f).replays >= 10);
    eg_function_release(f);
    eg_release(s.v);
}

// ---- masks

static bool masked_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    out[0] = eg_keep(eg_call(s->layer, in[0]));
    out[1] = eg_mask_of(in[0]);
    if (out[1]) eg_keep(out[1]);
    return out[0] != NULL;
}
static void masked(setting *s, log_of *log, int step) {
    eg_layer *masking = eg_layer_masking(0);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = eg_mul(data_of(step, EG_SHAPE(2, 4, 3)), eg_constant(EG_SHAPE(1, 4, 1), 1, 0, 1, 0)), *y[2], *z[2];
    eg_tensor *m = step % 3 ? eg_call(masking, x) : x;
    eg_tape_watch(tape, m);
    CHECK(eg_function_call(s->f, &m, 1, y, 2));
    log_tensor(log, y[0]);
    log_tensor(log, y[1]);
    log_tensor(log, eg_mask_of(y[0]));
    eg_tensor *padded = eg_concat((eg_tensor *[]){y[0], x}, 2, 2);
    CHECK((eg_mask_of(y[0]) != NULL) == (step % 3 != 0));
    CHECK(eg_function_call(s->f, &m, 1, z, 2));
    eg_list v = eg_tape_watched_variables_list(tape);
    eg_tensor *g[8];
    CHECK(eg_tape_gradients(tape, eg_mul(padded, 2), v.tensors, v.count, g));
    for (int i = 0; i < v.count; i++) log_tensor(log, g[i]);
    eg_layer_release(masking);
}
static void with_masks(setting *s) { s->layer = eg_sequential(eg_layer_lstm(4, .return_sequences = true)); }
TEST(masks_of_inputs_and_outputs) { CHECK(compare(masked, masked_body, 12, with_masks) >= 8); }

// ---- the same tensor in several places

static bool twice_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    out[0] = eg_keep(eg_mul(eg_mul(in[0], in[1]), s->v));
    out[1] = eg_keep(eg_mul(eg_square(in[2]), s->v));
    out[2] = out[0];
    eg_keep(out[2]);
    return true;
}
static void twice(setting *s, log_of *log, int step) {
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, EG_SHAPE(3)), *in[] = {x, x, s->v}, *y[3], *xs[] = {x, s->v}, *g[2];
    eg_tape_watch(tape, x);
    eg_tape_watch(outer, x);
    CHECK(eg_function_call(s->f, in, 3, y, 3));
    CHECK(eg_tape_gradients(tape, eg_add(eg_mul(y[0], y[2]), y[1]), xs, 2, g));
    for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
    CHECK(eg_tape_gradients(outer, eg_mul(g[0], g[1]), xs, 2, g));
    for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
}
TEST(one_tensor_as_several_inputs_and_outputs) { CHECK(compare(twice, twice_body, 10, NULL) >= 5); }
// A variable as two inputs that the body captures besides.
static bool equals_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    out[0] = eg_keep(eg_mul(eg_mul(in[0], in[1]), eg_mul(in[2], s->v)));
    return true;
}
static void equals(setting *s, log_of *log, int step) {
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, EG_SHAPE(3)), *in[] = {s->v, s->v, x}, *y, *xs[] = {s->v, x}, *g[2];
    eg_tape_watch(tape, x);
    eg_tape_watch(outer, x);
    if (s->what) { eg_tape_watch(tape, s->v); eg_tape_watch(outer, s->v); }
    CHECK(eg_function_call(s->f, in, 3, &y, 1));
    CHECK(eg_tape_gradients(tape, eg_add(y, s->v), xs, 2, g));
    for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
    CHECK_SAME(g[0], eg_add(eg_mul(eg_mul(3, eg_square(s->v)), x), 1), 1e-5);
    CHECK(eg_tape_gradients(outer, eg_mul(g[0], g[1]), xs, 2, g));
    for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
}
static void watched_alone(setting *s) { s->what = 1; eg_set_trainable(s->v, false); }
TEST(one_variable_as_several_inputs) {
    CHECK(compare(equals, equals_body, 10, NULL) >= 5);
    CHECK(compare(equals, equals_body, 10, watched_alone) >= 5);
}
// What is given twice is one tensor for the body's lines, too: the parts of its gradient are summed in their order. A
// tape of the body's own, which watches one of two such inputs, knows the other.
static bool ordered_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tensor *a = eg_sin(eg_mul(in[0], 1.1)), *b = eg_tanh(eg_mul(in[1], 1.3)), *c = eg_exp(eg_mul(in[0], 1.7)),
              *d = eg_cos(eg_mul(in[1], 1.9));
    out[0] = eg_keep(eg_add(eg_add(a, b), eg_add(c, d)));
    eg_tensor *y = eg_mul(eg_mul(eg_tanh(eg_mul(in[0], s->v)), s->v), in[1]), *xs[] = {in[0], s->v}, *g[2];
    if (!eg_tape_gradients(tape, y, xs, 2, g)) return false;
    out[1] = eg_keep(g[0]);
    out[2] = eg_keep(g[1]);
    return true;
}
static void ordered(setting *s, log_of *log, int step) {
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, EG_SHAPE(5, 3)), *z = data_of(step + 2, EG_SHAPE(5, 3)), *y[3], *xs[] = {x, s->v},
              *g[2], *in[] = {x, step % 3 ? x : z};
    eg_tape_watch(tape, x);
    eg_tape_watch(outer, x);
    CHECK(eg_function_call(s->f, in, 2, y, 3));
    for (int k = 0; k < 3; k++) log_tensor(log, y[k]);
    CHECK(eg_tape_gradients(tape, eg_add(eg_mul(y[0], y[1]), y[2]), xs, 2, g));
    for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
    CHECK(eg_tape_gradients(outer, eg_mul(g[0], g[1]), xs, 2, g));
    for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
}
TEST(parts_of_one_gradient_are_summed_in_the_order_of_lines) {
    CHECK(compare(ordered, ordered_body, 16, NULL) >= 5);
}
// A custom gradient saves the variable's value, which its lines save, too: two values of one variable.
static eg_tensor *saving_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    return eg_mul(in[0], eg_sigmoid(in[1]));
}
static void saving_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_tanh(c->saved[0]));
    dx[1] = NULL;
}
static bool saving_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *list[] = {s->v, eg_reduce_mean(in[0], .axes = EG_AXES(0))},
              *y = eg_custom_gradient(saving_forward, saving_backward, NULL, list, 2);
    out[0] = eg_keep(eg_squared_difference(y, s->v));
    out[1] = eg_keep(eg_argmax(in[0], .axis = 0));
    return true;
}
TEST(values_of_one_variable_have_one_gradient) { CHECK(compare_orders(saving_body) >= 5); }
static bool doubled_here(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_mul(in[0], 2));
    return true;
}
// An output of integers has no gradient, and what reads it need not: a gather by it, whose own gradient goes on.
static bool indices_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    eg_tensor *y = eg_square(in[0]), *at = eg_argmax(in[0], .axis = 0);
    if (s->what) eg_host_call(doubled_here, NULL, &y, 1, &y, 1, .differentiable = true);
    out[0] = eg_keep(eg_gather(y, at));
    out[1] = eg_keep(at);
    return true;
}
static void indices(setting *s, log_of *log, int step) {
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, EG_SHAPE(5, 3)), *y[2];
    eg_tape_watch(tape, x);
    eg_tape_watch(outer, x);
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    eg_tensor *g = eg_tape_gradient(tape, eg_add(y[0], eg_gather(s->w, eg_mod(y[1], 3))), x);
    log_tensor(log, g);
    log_tensor(log, eg_tape_gradient(outer, g, x));
    tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    CHECK(eg_tape_gradient(tape, eg_gather(s->w, eg_mod(y[1], 3)), x) == NULL);
    CHECK_INT(eg_error(), EG_OK);
}
static void called_back(setting *s) { s->what = 1; }
TEST(an_output_of_integers_has_no_gradient) {
    CHECK(compare(indices, indices_body, 10, NULL) >= 5);
    compare(indices, indices_body, 4, called_back);         // under two tapes eager, for good
}
// A variable that the body uses for no output is one that the tape has watched, as in eager code.
static bool dead_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const setting *s = (const setting *)user;
    (void)eg_mul(s->v, 2);
    out[0] = eg_keep(eg_mul(in[0], 2));
    return true;
}
static void dead(setting *s, log_of *log, int step) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = data_of(step, EG_SHAPE(3)), *y;
    if (step % 2) eg_tape_watch(tape, x);
    CHECK(eg_function_call(s->f, &x, 1, &y, 1));
    eg_list list = eg_tape_watched_variables_list(tape);
    CHECK_INT(list.count, 1);
    CHECK(list.count == 1 && list.tensors[0] == s->v);
    log_tensor(log, eg_tape_gradient(tape, y, x));
}
TEST(variables_that_lead_nowhere_are_watched) { CHECK(compare(dead, dead_body, 12, NULL) >= 4); }
// Variables that are inputs are watched where the body uses them: in that order, and not where it does not.
static bool second_first_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const setting *s = (const setting *)user;
    out[0] = eg_keep(eg_add(eg_mul(s->v, in[2]), in[1]));
    return true;
}
static void second_first(setting *s, log_of *log, int step) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *other = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(3)), "other"), *y,
              *in[] = {s->w, step < 6 ? s->w : other, data_of(step, EG_SHAPE(3))};
    CHECK(eg_function_call(s->f, in, 3, &y, 1));
    eg_list list = eg_tape_watched_variables_list(tape);
    CHECK_INT(list.count, 2);
    CHECK(list.count == 2 && list.tensors[0] == s->v && list.tensors[1] == in[1]);
    log_tensor(log, eg_tape_gradient(tape, y, in[1]));
    eg_release(other);
}
TEST(variables_are_watched_in_the_order_of_use) { CHECK(compare(second_first, second_first_body, 12, NULL) >= 2); }
// A captured tensor that the body returns as it is has its gradient in replays, too.
static bool captured_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_keep(((const setting *)user)->captured);
    out[1] = eg_keep(eg_mul(in[0], 2));
    return true;
}
static void captured(setting *s, log_of *log, int step) {
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tensor *x = data_of(step, EG_SHAPE(3)), *y[2];
    eg_tape_watch(tape, s->captured);
    CHECK(eg_function_call(s->f, &x, 1, y, 2));
    log_tensor(log, eg_tape_gradient(tape, y[0], s->captured));
    log_tensor(log, eg_tape_gradient(tape, eg_mul(y[0], y[1]), s->captured));
}
TEST(a_captured_output_has_a_gradient) { CHECK(compare(captured, captured_body, 12, NULL) >= 5); }
static bool of_nothing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    setting *s = (setting *)user;
    (void)in;
    out[0] = eg_keep(eg_reduce_sum(eg_mul(s->v, s->captured)));
    out[1] = eg_keep(eg_mul(eg_strided_slice(s->w, EG_SHAPE(0), EG_SHAPE(0), EG_SHAPE(1)), 2));
    return true;
}
static void of_nothing(setting *s, log_of *log, int step) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y[2], *xs[] = {s->v, s->w}, *g[2];
    (void)step;
    CHECK(eg_function_call(s->f, NULL, 0, y, 2));
    CHECK(eg_tape_gradients(tape, eg_add(eg_reduce_sum(y[1]), y[0]), xs, 2, g));
    for (int k = 0; k < 2; k++) log_tensor(log, g[k]);
}
TEST(no_inputs_and_no_elements) { CHECK(compare(of_nothing, of_nothing_body, 10, NULL) >= 5); }

// ---- what else looks at a tape

static char shown[4000];
static void show(const char *text, void *user) {
    (void)user;
    if (text) strncat(shown, text, sizeof shown - strlen(shown) - 1);
}
TEST(a_tape_shows_calls_as_lines) {
    setting s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(data_of(1, EG_SHAPE(3)), "v");
    eg_function *f = eg_function_new(reading_body, &s);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x = data_of(4, EG_SHAPE(3)), *y;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        shown[0] = 0;
        eg_set_printer(show, NULL);
        eg_tape_print(tape);
        eg_set_printer(NULL, NULL);
        CHECK_CONTAINS(shown, "tape: 1 lines, 3 tensors, recording");
        CHECK_CONTAINS(shown, "= function_call(watched.0, v)  float32 [3]");
        CHECK(eg_tape_dot(tape, shown, sizeof shown) > 0);
        CHECK_CONTAINS(shown, "function_call");
        eg_trap_nonfinite(i % 2);                           // gradients under the trap run eagerly
        CHECK_SAME(eg_tape_gradient(tape, y, s.v), eg_mul(y, eg_square(x)), 1e-6);
        eg_trap_nonfinite(false);
    }
    eg_function_release(f);
    eg_release(s.v);
}

// Lengths of one list share their gradients' functions, and keep the reasons of gradients that are missing.
static bool pick_other(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(in[1], 2)) != NULL;
}
static bool picking(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return eg_host_call(pick_other, NULL, in, 2, out, 1, .differentiable = true);
}
TEST(lengths_keep_the_reasons_of_missing_gradients) {
    eg_function *f = eg_function_new(picking, NULL, .no_recheck = true);
    char first[320] = "";
    for (int call = 0; call < 12; call++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2 + call % 4)), *in[] = { x, eg_add(x, 1) }, *y;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tape_watch(tape, in[1]);
        REQUIRE(eg_function_call(f, in, 2, &y, 1));
        CHECK(!eg_tape_gradient(tape, y, x));
        if (!call) snprintf(first, sizeof first, "%s", eg_tape_unconnected_reason());
        CHECK(strstr(first, "host_call"));
        CHECK(!strcmp(first, eg_tape_unconnected_reason()));
        if (strcmp(first, eg_tape_unconnected_reason())) printf("    %d: %s\n", call, eg_tape_unconnected_reason());
    }
    eg_function_release(f);
}

// Parts of an output that a gradient is given for, too: lines of slices add to it in place where it is the tape's own,
// else to a new sum, with another bit where it is -0.
static bool parts_of_it_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_add(in[0], 1);
    for (int i = 0; i < 3; i++) out[1 + i] = eg_mul(eg_slice(out[0], EG_SHAPE(i), EG_SHAPE(2)), i + 2);
    return out[3] != NULL;
}
static void parts_of_it(setting *s, log_of *log, int step) {
    eg_tensor *x = data_of(step, EG_SHAPE(6)), *y[4], *dx;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK(eg_function_call(s->f, &x, 1, y, 4));
    // -0 stays -0 where nothing is added in place.
    eg_tensor *of_it = eg_negative(eg_relu(data_of(step + 3, EG_SHAPE(6)))), *copy = eg_add(of_it, -0.0),
              *g[] = { of_it, eg_ones(EG_FLOAT32, EG_SHAPE(2)), data_of(step, EG_SHAPE(2)), NULL };
    if (step % 2) y[0] = eg_mul(y[0], eg_ones(EG_FLOAT32, EG_SHAPE(6)));       // the call's gradient is the tape's own
    CHECK(eg_tape_gradients_from(tape, y, 4, g, &x, 1, &dx));
    log_tensor(log, dx);
    log_tensor(log, of_it);
    CHECK_SAME(of_it, copy, 0);
}
TEST(a_given_gradient_is_not_added_to) { CHECK(compare(parts_of_it, parts_of_it_body, 12, NULL) >= 5); }
// The same where the lines of an addition or a copy hand the given gradient on to the tensor whose parts are taken.
static bool parts_behind_it_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    for (int i = 0; i < 3; i++) out[1 + i] = eg_mul(eg_slice(in[0], EG_SHAPE(i), EG_SHAPE(2)), i + 2);
    out[0] = eg_identity(eg_add(in[0], 1));
    return out[3] != NULL;
}
TEST(a_given_gradient_is_handed_on) { CHECK(compare(parts_of_it, parts_behind_it_body, 12, NULL) >= 5); }
// A tensor that is returned several times is one in replays, too: its gradients are added in the order of eager code.
static bool same_thrice_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = out[1] = out[2] = eg_tanh(in[0]);
    return (out[3] = eg_square(out[0])) != NULL;
}
static void same_thrice(setting *s, log_of *log, int step) {
    eg_tensor *x = data_of(step, EG_SHAPE(40)), *y[4], *g[4] = { NULL }, *dx;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK(eg_function_call(s->f, &x, 1, y, 4));
    CHECK(y[0] == y[1] && y[1] == y[2] && y[2] != y[3]);
    for (int i = 0; i < 4; i++) y[i] = eg_mul(y[i], data_of(step + i + 1, EG_SHAPE(40)));
    CHECK(eg_tape_gradients_from(tape, y, 4, g, &x, 1, &dx));
    log_tensor(log, dx);
}
TEST(gradients_of_a_tensor_returned_thrice) { CHECK(compare(same_thrice, same_thrice_body, 12, NULL) >= 5); }
