// Functions in files: what is saved is loaded by a program without the code that it was made of, computes the same
// bits, trains on, and is differentiated; what a file gets wrong is an error that names the file and the line.
#include "faults.h"

typedef struct network { eg_tensor *w, *b; eg_optimizer *adam; } network;
static void network_make(network *n) {
    EG_SCOPE;
    eg_seed(5);
    n->w = eg_variable(eg_random_normal(EG_SHAPE(4, 3)), "w");
    n->b = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(3)), "b");
    n->adam = eg_adam(.learning_rate = 0.05);
}
static void network_end(network *n) {
    eg_release(n->w);
    eg_release(n->b);
    eg_optimizer_release(n->adam);
}
static bool predict(eg_tensor *const *in, eg_tensor **out, void *user) {
    const network *n = (const network *)user;
    out[0] = eg_tanh(eg_add(eg_matmul(in[0], n->w), n->b));
    return out[0] != NULL;
}
static bool train(eg_tensor *const *in, eg_tensor **out, void *user) {
    network *n = (network *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y, *v[2], *g[2];
    if (!predict(in, &y, user)) return false;
    out[0] = eg_reduce_mean(eg_square(eg_sub(y, in[1])));
    v[0] = n->w;
    v[1] = n->b;
    return eg_tape_gradients(tape, out[0], v, 2, g) && eg_apply_gradients(n->adam, g, v, 2);
}
static eg_tensor *batch(int rows, int columns, int which) {
    float data[200];
    for (int i = 0; i < rows * columns; i++) data[i] = (float)((i * 37 + which * 11) % 23) / 11 - 1;
    return eg_from_data(EG_FLOAT32, EG_SHAPE(rows, columns), data);
}
static bool same(eg_tensor *a, eg_tensor *b) {
    if (!a || !b || eg_size(a) != eg_size(b) || eg_dtype_of(a) != eg_dtype_of(b)) return false;
    return !memcmp(eg_data(a), eg_data(b), (size_t)(eg_size(a) * eg_dtype_size(eg_dtype_of(a))));
}

TEST(a_function_there_and_back) {
    const char *const names[] = { "predict.safetensors", "predict.npz" };
    network n;
    network_make(&n);
    eg_tensor *x = batch(5, 4, 0), *y, *z;
    eg_function *f = eg_function_new(predict, &n);
    CHECK_ERROR(eg_function_save(f, test_temp("none")), EG_ERROR_STATE, "call the function first");
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    for (int i = 0; i < 2; i++) {
        REQUIRE(eg_function_save(f, test_temp(names[i]), .inputs = EG_NAMES("x"), .outputs = EG_NAMES("y")));
        CHECK_ERROR(eg_model_load(test_temp(names[i])), EG_ERROR_FILE,
                    "holds a function, not a model; eg_function_load reads it");
        eg_function *g = eg_function_load(test_temp(names[i]));
        REQUIRE(g != NULL);
        for (int k = 0; k < 4; k++) {
            CHECK(eg_function_call(g, &x, 1, &z, 1));
            CHECK(same(y, z));
        }
        CHECK(eg_function_counts(g).replays == 3);
        CHECK_INT(eg_function_input(g, "x"), 0);
        CHECK_INT(eg_function_output(g, "y"), 0);
        CHECK_ERROR(eg_function_output(g, "x"), EG_ERROR_ARGUMENT, "none of its 1 outputs is 'x'; the first is 'y'");
        eg_list v = eg_function_variables_list(g), own = eg_function_variables_list(f);
        CHECK_INT(v.count, 2);
        CHECK_INT(own.count, 2);
        for (int k = 0; k < 2 && v.count == 2; k++) {
            CHECK_STR(eg_name_of(v.tensors[k]), k ? "b" : "w");
            CHECK(v.tensors[k] != own.tensors[k] && same(v.tensors[k], k ? n.b : n.w));
        }
        eg_tensor *two[2] = { x, x }, *narrow = batch(5, 3, 0), *tall = batch(6, 4, 0);
        CHECK_ERROR(eg_function_call(g, two, 2, &z, 1), EG_ERROR_ARGUMENT, "2 inputs and 1 outputs");
        CHECK_ERROR(eg_function_call(g, &narrow, 1, &z, 1), EG_ERROR_SHAPE, "placeholder 'x' (float32 [5, 4])");
        CHECK_ERROR(eg_function_call(g, &tall, 1, &z, 1), EG_ERROR_SHAPE,
                    "eg_function_call: input 0 is float32 [6, 4]");
        CHECK_ERROR(eg_function_optimizer(g, 0), EG_ERROR_INDEX, "number 0 of 0");
        eg_function_release(g);
    }
    CHECK_ERROR(eg_function_input(f, "x"), EG_ERROR_STATE, "neither a loaded one nor a session's");
    eg_function_release(f);
    network_end(&n);
}
TEST(open_shapes_and_gradients_pass_through) {
    network n;
    network_make(&n);
    eg_tensor *x = batch(5, 4, 0), *y;
    eg_function *f = eg_function_new(predict, &n);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    const eg_shape open = EG_SHAPE(-1, 4);
    REQUIRE(eg_function_save(f, test_temp("open"), .shapes = &open));
    eg_function *g = eg_function_load(test_temp("open"));
    REQUIRE(g != NULL);
    eg_list v = eg_function_variables_list(g);
    REQUIRE(v.count == 2);
    for (int rows = 1; rows < 7; rows++)
        for (int again = 0; again < 3; again++) {
            EG_SCOPE;
            eg_tensor *in = batch(rows, 4, rows), *z, *dx[3], *dz[3], *of[3] = { in, n.w, n.b };
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, in);
            predict(&in, &y, &n);
            CHECK(eg_tape_gradients(tape, eg_reduce_sum(eg_square(y)), of, 3, dx));
            tape = eg_tape_begin();
            eg_tape_watch(tape, in);
            CHECK(eg_function_call(g, &in, 1, &z, 1));
            of[1] = v.tensors[0];
            of[2] = v.tensors[1];
            CHECK(eg_tape_gradients(tape, eg_reduce_sum(eg_square(z)), of, 3, dz));
            CHECK(same(y, z));
            for (int i = 0; i < 3; i++) CHECK(same(dx[i], dz[i]));
        }
    eg_function_release(g);
    eg_function_release(f);
    network_end(&n);
}
TEST(a_training_step_goes_on_where_it_was_saved) {
    network n;
    network_make(&n);
    eg_tensor *in[2], *a, *b;
    in[0] = batch(5, 4, 0);
    in[1] = batch(5, 3, 1);
    eg_function *f = eg_function_new(train, &n);
    for (int i = 0; i < 3; i++) CHECK(eg_function_call(f, in, 2, &a, 1));
    REQUIRE(eg_function_save(f, test_temp("train"), .inputs = EG_NAMES("x", "y"), .outputs = EG_NAMES("loss")));
    CHECK_INT(eg_optimizer_steps(n.adam), 3);                 // a save runs nothing
    eg_function *g = eg_function_load(test_temp("train"));
    REQUIRE(g != NULL);
    eg_optimizer *adam = eg_function_optimizer(g, 0);
    CHECK_INT(eg_optimizer_steps(adam), 3);
    CHECK_NEAR(eg_optimizer_learning_rate(adam), 0.05, 0);
    for (int i = 0; i < 8; i++) {
        if (i == 4) CHECK(eg_optimizer_set_learning_rate(adam, 0.01) && eg_optimizer_set_learning_rate(n.adam, 0.01));
        CHECK(eg_function_call(f, in, 2, &a, 1));
        CHECK(eg_function_call(g, in, 2, &b, 1));
        CHECK(same(a, b));
    }
    CHECK(eg_function_counts(g).replays == 7);
    eg_list v = eg_function_variables_list(g);
    CHECK(v.count >= 2 && same(v.tensors[0], n.w) && same(v.tensors[1], n.b));
    CHECK_INT(eg_optimizer_steps(adam), 11);
    // and once more from there
    REQUIRE(eg_function_save(g, test_temp("train again")));
    eg_function *h = eg_function_load(test_temp("train again"));
    REQUIRE(h != NULL);
    CHECK_INT(eg_function_input(h, "y"), 1);
    CHECK_INT(eg_function_output(h, "loss"), 0);
    for (int i = 0; i < 3; i++) {
        CHECK(eg_function_call(f, in, 2, &a, 1));
        CHECK(eg_function_call(h, in, 2, &b, 1));
        CHECK(same(a, b));
    }
    eg_function_release(h);
    eg_function_release(g);
    eg_function_release(f);
    network_end(&n);
}

// A body with ops of all kinds of attributes; its two inputs are (2, 6, 6, 3) and (2, 4) of positive numbers.
static bool zoo(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *x = in[0], *y = in[1], *sum = eg_zeros(EG_FLOAT32, EG_SCALAR), *list[40], *parts[2];
    int n = 0;
    (void)user;
    eg_tensor *f = eg_full(EG_FLOAT32, EG_SHAPE(3, 3, 3, 2), 0.1), *at = eg_constant_of(EG_INT32, EG_SHAPE(3), 1, 0, 1);
    list[n++] = eg_conv2d(x, f, .strides = {2}, .padding = EG_SAME);
    list[n++] = eg_conv2d(x, f, .dilations = {2});
    list[n++] = eg_conv2d_transpose(eg_conv2d(x, f), f, .strides = {2}, .padding = EG_SAME);
    list[n++] = eg_depthwise_conv2d(x, f, .strides = {2, 1});
    list[n++] = eg_max_pool2d(x);
    list[n++] = eg_avg_pool2d(x, .size = {3}, .strides = {2}, .padding = EG_SAME);
    list[n++] = eg_transpose(x, .perm = EG_AXES(3, 0, 2, 1));
    list[n++] = eg_slice(x, EG_SHAPE(0, 1, 2, 0), EG_SHAPE(2, 3, -1, 2));
    list[n++] = eg_strided_slice(y, EG_SHAPE(0, 3), EG_SHAPE(2, EG_END), EG_SHAPE(1, -2));
    list[n++] = eg_pad(y, EG_PADS(1, 2, 0, 1), .value = -2);
    list[n++] = eg_reverse(y, EG_AXES(1));
    list[n++] = eg_cast(eg_cast(eg_mul(y, 10), EG_INT32), EG_FLOAT32);
    list[n++] = eg_concat(EG_TENSORS(y, y, eg_mul(y, 2)), 1);
    list[n++] = eg_reduce_max(x, .axes = EG_AXES(1, 2), .keepdims = true);
    list[n++] = eg_reduce_prod(y, .axes = EG_AXES(0));
    list[n++] = eg_cast(eg_argmax(x, .axis = 2), EG_FLOAT32);
    list[n++] = eg_cumsum(y, .axis = 1, .reverse = true, .exclusive = true);
    list[n++] = eg_softmax(x, .axis = 1);
    list[n++] = eg_log_softmax(y);
    list[n++] = eg_cast(eg_argsort(y, .descending = true), EG_FLOAT32);
    list[n++] = eg_matmul(y, y, .transpose_b = true);
    list[n++] = eg_gather(x, at, .axis = 3);
    list[n++] = eg_scatter_nd(eg_expand_dims(at, 1), eg_ones(EG_FLOAT32, EG_SHAPE(3)), EG_SHAPE(4));
    list[n++] = eg_take_along_axis(y, eg_cast(eg_zeros_like(y), EG_INT64), 1);
    list[n++] = eg_gather_nd(y, eg_expand_dims(eg_slice(at, EG_SHAPE(0), EG_SHAPE(2)), 1));
    list[n++] = eg_one_hot(at, 4, .on_value = 2);
    list[n++] = eg_sparse_softmax_cross_entropy_with_logits(eg_slice(at, EG_SHAPE(0), EG_SHAPE(2)), y);
    list[n++] = eg_where(eg_greater(y, 0.5), y, eg_negative(y));
    list[n++] = eg_cast(eg_floordiv(eg_cast(eg_mul(y, 10), EG_INT32), 3), EG_FLOAT32);
    list[n++] = eg_tile(y, EG_SHAPE(2, 3));
    list[n++] = eg_norm(y);
    list[n++] = eg_clip_by_value(y, 0.2, HUGE_VAL);
    list[n++] = eg_einsum("ij,kj->ik", EG_TENSORS(y, y));
    list[n++] = eg_cast(eg_reduce_any(eg_greater(y, 0.9), .axes = EG_AXES(1)), EG_FLOAT32);
    if (eg_split(y, 2, 1, parts)) list[n++] = eg_sub(parts[0], parts[1]);
    for (int i = 0; i < n; i++) {
        if (!list[i]) { printf("    entry %d\n", i); return false; }
        sum = eg_add(sum, eg_reduce_sum(eg_mul(list[i], 1 + 0.1 * i)));
    }
    out[0] = sum;
    for (int i = 0; i < n; i++) out[1 + i] = list[i];
    return sum != NULL;
}
enum { ZOO = 36 };
TEST(ops_of_all_kinds) {
    eg_tensor *in[2], *a[ZOO], *b[ZOO], *da[2], *db[2];
    float data[216];
    for (int i = 0; i < 216; i++) data[i] = (float)((i * 37) % 101) / 101;
    in[0] = eg_from_data(EG_FLOAT32, EG_SHAPE(2, 6, 6, 3), data);
    in[1] = eg_from_data(EG_FLOAT32, EG_SHAPE(2, 4), data);
    eg_function *f = eg_function_new(zoo, NULL);
    REQUIRE(eg_function_call(f, in, 2, a, ZOO));
    REQUIRE(eg_function_save(f, test_temp("zoo")));
    eg_function *g = eg_function_load(test_temp("zoo"));
    REQUIRE(g != NULL);
    for (int k = 0; k < 3; k++) {
        CHECK(eg_function_call(g, in, 2, b, ZOO));
        for (int i = 0; i < ZOO; i++) CHECK(same(a[i], b[i]));
    }
    for (int k = 0; k < 2; k++) {
        eg_tape *tape = eg_tape_begin();
        for (int i = 0; i < 2; i++) eg_tape_watch(tape, in[i]);
        CHECK(eg_function_call(k ? g : f, in, 2, k ? b : a, ZOO));
        CHECK(eg_tape_gradients(tape, k ? b[0] : a[0], in, 2, k ? db : da));
    }
    for (int i = 0; i < 2; i++) CHECK(same(da[i], db[i]));
    eg_function_release(f);
    eg_function_release(g);
}

// A model with layers of many kinds; in training its dropout draws and its normalization assigns.
typedef struct model_step { eg_layer *model; eg_optimizer *opt; bool training; } model_step;
static bool model_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const model_step *s = (const model_step *)user;
    if (!s->training) return (out[0] = eg_call(s->model, in[0])) != NULL;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_call(s->model, in[0], .training = true), *v[32], *g[32];
    out[0] = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(in[1], y));
    const int n = eg_tape_watched_variables(tape, v, 32);
    return n > 0 && eg_tape_gradients(tape, out[0], v, n, g) && eg_apply_gradients(s->opt, g, v, n);
}
static void check_model(eg_layer *model, eg_optimizer *opt, eg_tensor *x) {
    const int32_t classes[] = {0, 2, 1, 1};
    eg_tensor *in[2], *a, *b, *y;
    in[0] = x;
    in[1] = eg_from_data(EG_INT32, EG_SHAPE(4), classes);
    model_step step = { model, opt, true }, eval = { model, opt, false };
    REQUIRE(eg_call(model, x) != NULL);
    eg_function *f = eg_function_new(model_body, &step), *p = eg_function_new(model_body, &eval), *g, *q;
    for (int i = 0; i < 2; i++) CHECK(eg_function_call(f, in, 2, &a, 1));
    CHECK(eg_function_call(p, in, 1, &y, 1));
    eg_random_state before = eg_random_get_state();
    CHECK(eg_function_save(f, test_temp("step")) && eg_function_save(p, test_temp("eval")));
    CHECK(eg_random_get_state().counter == before.counter);
    g = eg_function_load(test_temp("step"));
    q = eg_function_load(test_temp("eval"));
    REQUIRE(g && q);
    CHECK(eg_function_call(q, in, 1, &b, 1) && same(y, b));
    for (int i = 0; i < 5; i++) {
        EG_SCOPE;
        eg_random_state state = eg_random_get_state();
        CHECK(eg_function_call(f, in, 2, &a, 1));
        eg_random_state behind = eg_random_get_state();
        eg_random_set_state(state);
        CHECK(eg_function_call(g, in, 2, &b, 1));
        CHECK(same(a, b));
        CHECK(eg_random_get_state().counter == behind.counter);
    }
    CHECK(eg_function_call(q, in, 1, &b, 1) && same(y, b));   // what the other one trained is its own
    eg_function_release(f);
    eg_function_release(p);
    eg_function_release(g);
    eg_function_release(q);
    eg_layer_release(model);
    eg_optimizer_release(opt);
}
TEST(models_of_layers) {
    eg_seed(7);
    eg_layer *picture = eg_sequential(
        eg_layer_conv2d(4, 3, .activation = EG_RELU, .padding = EG_SAME), eg_layer_batch_normalization(),
        eg_layer_max_pooling2d(), eg_layer_dropout(0.3), eg_layer_flatten(), eg_layer_layer_normalization(),
        eg_layer_dense(3));
    check_model(picture, eg_adamw(.clipnorm = 1), eg_random_uniform(EG_SHAPE(4, 6, 6, 2)));
    eg_layer *words = eg_sequential(
        eg_layer_embedding(20, 6), eg_layer_lstm(5, .return_sequences = true), eg_layer_gru(4), eg_layer_dense(3));
    check_model(words, eg_rmsprop(.momentum = 0.9, .centered = true), eg_random_integers(EG_SHAPE(4, 7), 0, 20));
    eg_layer *attention = eg_sequential(eg_layer_dense(8), eg_layer_simple_rnn(6, .return_sequences = true),
                                        eg_layer_multi_head_attention(2, 3, .causal = true),
                                        eg_layer_global_average_pooling1d(),
                                        eg_layer_dense(3, .activation = EG_SOFTMAX));
    // On the stand-in for CUDA the norm of all gradients is read on the host, so that there is no trace.
    const double clip = test_on_cuda ? 0 : 2;
    check_model(attention, eg_sgd(.momentum = 0.9, .nesterov = true, .global_clipnorm = clip),
                eg_random_uniform(EG_SHAPE(4, 5, 3)));
}
TEST(every_optimizer) {
    eg_seed(9);
    for (int i = 0; i < 10; i++) {
        EG_SCOPE;
        eg_optimizer *const all[] = {
            eg_sgd(.learning_rate = EG_ZERO), eg_adam(.amsgrad = true, .epsilon = EG_ZERO), eg_adagrad(), eg_adadelta(),
            eg_adamax(.clipvalue = 0.5), eg_nadam(), eg_ftrl(.l1 = 0.01), eg_lion(.weight_decay = 0.1),
            eg_adamw(.weight_decay = EG_ZERO), eg_adam(.accumulate_steps = 2) };
        for (int k = 0; k < 10; k++) if (k != i) eg_optimizer_release(all[k]);
        check_model(eg_sequential(eg_layer_dense(3)), all[i], eg_random_uniform(EG_SHAPE(4, 3)));
    }
}

// d/dx (d/dx sum(x^3))^2 and a draw, which are gradients of gradients in the list.
static bool penalty(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tape *outer = eg_tape_begin(), *inner = eg_tape_begin();
    eg_tape_watch(outer, in[0]);
    eg_tape_watch(inner, in[0]);
    eg_tensor *g = eg_tape_gradient(inner, eg_reduce_sum(eg_mul(eg_square(in[0]), in[0])), in[0]);
    out[0] = g ? eg_tape_gradient(outer, eg_reduce_sum(eg_square(g)), in[0]) : NULL;
    out[1] = eg_add(in[0], eg_random_normal(EG_SHAPE(3), .stddev = 2));
    out[2] = NULL;
    return out[0] && out[1];
}
TEST(gradients_of_gradients_and_draws) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, -2, 0.5), *a[3], *b[3];
    eg_function *f = eg_function_new(penalty, NULL);
    CHECK(eg_function_call(f, &x, 1, a, 3));
    const uint64_t counter = eg_random_get_state().counter;
    REQUIRE(eg_function_save(f, test_temp("penalty")));
    eg_function *g = eg_function_load(test_temp("penalty"));
    REQUIRE(g != NULL);
    CHECK(eg_random_get_state().counter == counter);
    for (int i = 0; i < 4; i++) {
        eg_random_state state = eg_random_get_state();
        CHECK(eg_function_call(f, &x, 1, a, 3));
        eg_random_set_state(state);
        CHECK(eg_function_call(g, &x, 1, b, 3));
        CHECK(same(a[0], b[0]) && same(a[1], b[1]) && !b[2]);
    }
    eg_function_release(g);
    eg_function_release(f);
}
// A product with the Jacobian is the gradient of a gradient for what that was given. Its tape begins between the two,
// so its first line in a list is the gradient itself.
static eg_tensor *sine_of_square(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_sin(eg_square(in[0]));
}
static bool jacobian_product(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_jvp(sine_of_square, NULL, in, in, 1);
    return out[0] && eg_hvp(sine_of_square, NULL, in, in, 1, &out[1]);
}
TEST(products_with_jacobians) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, -2, 0.5), *a[2], *b[2], *p, *y[2];
    eg_function *f = eg_function_new(jacobian_product, NULL);
    CHECK(eg_function_call(f, &x, 1, a, 2));
    CHECK_SAME(a[0], eg_mul(eg_mul(2, eg_square(x)), eg_cos(eg_square(x))), 1e-6);
    REQUIRE(eg_function_save(f, test_temp("products")));
    eg_function *g = eg_function_load(test_temp("products"));
    CHECK(g && eg_function_call(g, &x, 1, b, 2));
    CHECK(same(a[0], b[0]) && same(a[1], b[1]));
    eg_graph *graph = eg_graph_new();
    {
        EG_GRAPH(graph);
        p = eg_placeholder(EG_FLOAT32, EG_SHAPE(3), "x");
        CHECK(jacobian_product(&p, y, NULL));
    }
    eg_session *s = eg_session_new(graph);
    const eg_feed feed = { p, x };
    CHECK(same(a[0], eg_session_eval(s, y[0], &feed, 1)) && same(a[1], eg_session_eval(s, y[1], &feed, 1)));
    eg_session_release(s);
    eg_graph_release(graph);
    eg_function_release(g);
    eg_function_release(f);
}
// Two tapes, whose gradients are those of eager code though the file and the session's run need the one of `inner`
// alone: rows in the gradients are others while a tape records. bits: `outer` and `inner` persistent or not, and
// whether they are stopped first.
static bool gradient_beside_a_tape(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int bits = *(const int *)user;
    EG_SCOPE;
    eg_tape *outer = bits & 1 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(outer, in[0]);
    eg_tape *inner = bits & 2 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(inner, in[0]);
    eg_tensor *y = eg_silu(eg_pow(eg_silu(in[0]), 3));
    if (bits & 4) eg_tape_stop(inner);
    if (bits & 8) eg_tape_stop(outer);
    out[0] = eg_keep(eg_tape_gradient(inner, y, in[0]));
    return out[0] && (bits & 8 || eg_tape_gradient(outer, out[0], in[0]));
}
// A file that does not say "taped", as of an earlier version, is read with that one's bits, which were mostly eager
// code's, too.
static bool reads_without_taped(eg_tensor *x, eg_tensor *expected) {
    eg_archive *a = eg_archive_load(test_temp("beside"));
    const char *text = eg_archive_text(a, "eager_function"), *key = strstr(text, ",\"taped\":");
    eg_tensor *y = NULL;
    char *older = (char *)malloc(strlen(text) + 1);
    if (key && older) snprintf(older, strlen(text) + 1, "%.*s%s", (int)(key - text), text, strpbrk(key + 1, ",}"));
    CHECK(key && !strstr(older, "taped") && eg_archive_set_text(a, "eager_function", older) &&
          eg_archive_save(a, test_temp("older")));
    eg_function *g = eg_function_load(test_temp("older"));
    const bool equal = g && eg_function_call(g, &x, 1, &y, 1) && same(y, expected);
    eg_function_release(g);
    eg_archive_release(a);
    free(older);
    return equal;
}
TEST(gradients_beside_tapes_that_a_run_does_not_need) {
    for (int bits = 0; bits < 16; bits++) {
        EG_SCOPE;
        eg_seed(5);
        eg_tensor *x = eg_random_normal(EG_SHAPE(200), .dtype = EG_FLOAT64), *a, *b, *p, *y;
        eg_function *f = eg_function_new(gradient_beside_a_tape, &bits);
        CHECK(eg_function_call(f, &x, 1, &a, 1));
        REQUIRE(eg_function_save(f, test_temp("beside")));
        eg_function *g = eg_function_load(test_temp("beside"));
        CHECK(g && eg_function_call(g, &x, 1, &b, 1) && same(a, b));
        if (bits & 2 && bits < 12) CHECK(reads_without_taped(x, a));
        eg_graph *graph = eg_graph_new();
        {
            EG_GRAPH(graph);
            p = eg_placeholder(EG_FLOAT64, EG_SHAPE(200), "x");
            CHECK(gradient_beside_a_tape(&p, &y, &bits));
        }
        eg_session *s = eg_session_new(graph);
        const eg_feed feed = { p, x };
        CHECK(same(a, eg_session_eval(s, y, &feed, 1)));
        eg_session_release(s);
        eg_graph_release(graph);
        eg_function_release(g);
        eg_function_release(f);
    }
}
// Gradients read after tapes were stopped, which must not be on the stopped ones. The gradient of the first by `outer`
// is 0. bits: as above, 16: `inner` is read twice, 32: with the gradient by `outer`, 64: all in a pause, 128: `inner`
// begins and ends in a pause.
static bool gradients_after_stops(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int bits = *(const int *)user;
    EG_SCOPE;
    if (bits & 64) eg_recording_pause();
    eg_tape *outer = bits & 1 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(outer, in[0]);
    eg_tape_unconnected_zeros(outer, true);
    if (bits & 128) eg_recording_pause();
    eg_tape *inner = bits & 2 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(inner, in[0]);
    eg_tensor *y = eg_silu(eg_pow(eg_silu(in[0]), 3));
    if (bits & 4) eg_tape_stop(inner);
    if (bits & 8) eg_tape_stop(outer);
    eg_tensor *g = eg_tape_gradient(inner, y, in[0]);
    if (g && bits & 16) g = eg_add(g, eg_tape_gradient(inner, y, in[0]));
    if (bits & 128) eg_recording_unpause();
    if (g && bits & 32) g = eg_add(g, eg_tape_gradient(outer, g, in[0]));
    if (bits & 64) eg_recording_unpause();
    out[0] = eg_keep(g);
    return g != NULL;
}
// A graph refuses what the run's tape would record and the program's did not: two reads of a persistent tape are added,
// and `inner` records the first one while `outer` is stopped; or `inner` records while `outer` pauses.
TEST(gradients_read_after_tapes_were_stopped) {
    for (int bits = 0; bits < 256; bits++) {
        if (bits & 16 && !(bits & 2)) continue;
        const bool seen = bits & 2 && (!(bits & 4) || (bits & 80) == 16);
        const bool refused = bits & 32 && (bits & 128 || (bits & 8 && seen));
        EG_SCOPE;
        eg_seed(5);
        eg_tensor *x = eg_random_normal(EG_SHAPE(200), .dtype = EG_FLOAT64), *eager, *a, *b, *p, *y = NULL;
        REQUIRE(gradients_after_stops(&x, &eager, &bits));
        eg_function *f = eg_function_new(gradients_after_stops, &bits);
        for (int i = 0; i < 3; i++) CHECK(eg_function_call(f, &x, 1, &a, 1) && same(a, eager));
        if (refused)
            CHECK_ERROR(eg_function_save(f, test_temp("stopped")), EG_ERROR_STATE, "what ran while eg_tape_stop");
        else {
            REQUIRE(eg_function_save(f, test_temp("stopped")));
            for (int how = 0; how < 3; how++) {                // 1: read in a pause, 2: beside a tape
                eg_scope scope = eg_scope_begin();
                if (how == 1) eg_recording_pause();
                if (how == 2) eg_tape_begin();
                eg_function *g = eg_function_load(test_temp("stopped"));
                if (how == 1) eg_recording_unpause();
                eg_scope_end(scope);
                CHECK(g && eg_function_call(g, &x, 1, &b, 1) && same(eager, b));
                eg_function_release(g);
            }
        }
        eg_graph *graph = eg_graph_new();
        {
            EG_GRAPH(graph);
            p = eg_placeholder(EG_FLOAT64, EG_SHAPE(200), "x");
            CHECK(gradients_after_stops(&p, &y, &bits) == !refused);
        }
        eg_error_clear();
        eg_session *s = eg_session_new(graph);
        const eg_feed feed = { p, x };
        for (int paused = 0; paused < 2 && y; paused++) {      // tapes of a run begin inside the caller's pause
            if (paused) eg_recording_pause();
            CHECK(same(eager, eg_session_eval(s, y, &feed, 1)));
            if (paused) eg_recording_unpause();
        }
        eg_session_release(s);
        eg_graph_release(graph);
        eg_function_release(f);
    }
}
// A caller's tapes record the gradients of a file and of a session's run, though the tapes of the run itself rest.
TEST(gradients_pass_through_gradients_of_a_file) {
    for (int bits = 0; bits < 32; bits++) {
        EG_SCOPE;
        eg_seed(5);
        int stops = bits & 15;
        eg_tensor *x = eg_random_normal(EG_SHAPE(20), .dtype = EG_FLOAT64), *p, *of_p, *y, *dy[2], *d2y[2];
        eg_function *f = eg_function_new(gradient_beside_a_tape, &stops);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        REQUIRE(eg_function_save(f, test_temp("through")));
        eg_function *g = eg_function_load(test_temp("through"));
        eg_graph *graph = eg_graph_new();
        {
            EG_GRAPH(graph);
            p = eg_placeholder(EG_FLOAT64, EG_SHAPE(20), "x");
            CHECK(gradient_beside_a_tape(&p, &of_p, &stops));
        }
        eg_session *s = eg_session_new(graph);
        const eg_feed feed = { p, x };
        for (int i = 0; i < 6; i++) {                       // the body itself, the file's function, a session
            eg_tape *outer = eg_tape_begin(), *tape = bits & 16 ? eg_tape_begin_persistent() : eg_tape_begin();
            eg_tape_watch(outer, x);
            eg_tape_watch(tape, x);
            CHECK(!i ? gradient_beside_a_tape(&x, &y, &stops) : i < 5 ? g && eg_function_call(g, &x, 1, &y, 1)
                  : (y = eg_session_eval(s, of_p, &feed, 1)) != NULL);
            const int to = i > 0;
            dy[to] = eg_tape_gradient(tape, y, x);
            if (bits & 16) eg_tape_stop(tape);
            d2y[to] = eg_tape_gradient(outer, dy[to], x);
            CHECK(dy[to] && d2y[to]);
            if (i) CHECK(same(dy[0], dy[1]) && same(d2y[0], d2y[1]));
        }
        eg_session_release(s);
        eg_graph_release(graph);
        eg_function_release(g);
        eg_function_release(f);
    }
}
// What a body does inside a pause is hidden from its caller's tape, also where a tape that began inside the pause
// records it. bits: 1: that tape is persistent, 2: its gradient is read inside, 4: outside, 8: it is all that is given.
static bool doubles_with_square(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(eg_square(in[0]), 2)) != NULL;
}
static bool tape_inside_a_pause(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int bits = *(const int *)user;
    EG_SCOPE;
    eg_tensor *d, *g = NULL, *p = eg_reduce_any(eg_greater(in[0], 0));
    eg_recording_pause();
    eg_tape *tape = bits & 1 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    bool ok = eg_cond(p, doubles_with_square, doubles_with_square, NULL, in, 1, &d, 1);
    if (ok && bits & 2) d = eg_add(d, eg_tape_gradient(tape, d, in[0]));
    eg_recording_unpause();
    if (ok && bits & 4) g = eg_tape_gradient(tape, d, in[0]);
    if (!(bits & 6) || bits & 1) eg_tape_stop(tape);
    if (g) d = eg_add(d, g);
    out[0] = eg_keep(bits & 8 ? d : eg_add(eg_square(in[0]), d));
    return ok && out[0];
}
TEST(what_a_tape_records_inside_a_pause_is_hidden_from_a_callers) {
    for (int bits = 0; bits < 16; bits++) {
        if ((bits & 6) == 6) continue;                          // an ordinary tape gives one gradient
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(2), 2, 3), *p, *of_p, *y[2], *dy[2];
        eg_function *f = eg_function_new(tape_inside_a_pause, &bits), *g;
        CHECK(eg_function_call(f, &x, 1, &y[0], 1));
        REQUIRE(eg_function_save(f, test_temp("inside")) && (g = eg_function_load(test_temp("inside"))) != NULL);
        REQUIRE(eg_function_save(g, test_temp("inside")));      // and a file of a file's
        eg_function *again = eg_function_load(test_temp("inside")), *const of[] = { f, f, g, g, g, again };
        eg_graph *graph = eg_graph_new();
        {
            EG_GRAPH(graph);
            p = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
            CHECK(tape_inside_a_pause(&p, &of_p, &bits));
        }
        eg_session *s = eg_session_new(graph);
        const eg_feed feed = { p, x };
        for (int i = 0; i < 8; i++) {                           // the body itself, functions, a session
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, x);
            const int to = i > 0;
            CHECK(!i ? tape_inside_a_pause(&x, &y[0], &bits) : i < 7 ? eg_function_call(of[i - 1], &x, 1, &y[1], 1)
                  : (y[1] = eg_session_eval(s, of_p, &feed, 1)) != NULL);
            dy[to] = eg_tape_gradient(tape, y[to], x);
            eg_error_clear();
            if (i) CHECK(same(y[0], y[1]) && !dy[0] == !dy[1] && (!dy[0] || same(dy[0], dy[1])));
        }
        CHECK(!dy[0] == ((bits & 12) == 8));
        eg_session_release(s);
        eg_graph_release(graph);
        eg_function_release(again);
        eg_function_release(g);
        eg_function_release(f);
    }
}
// The gradient for a source that the tape does not know, also where it is a target: zeros, or none.
static bool of_unwatched(eg_tensor *const *in, eg_tensor **out, void *user) {
    EG_SCOPE;
    eg_tape *tape = *(const int *)user & 1 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tape_unconnected_zeros(tape, *(const int *)user & 2);
    eg_tensor *xs[] = { in[0], in[1] }, *ys[] = { eg_mul(in[0], in[1]), in[1] }, *g[2];
    if (!eg_tape_gradients_from(tape, ys, 2, NULL, xs, 2, g)) return false;
    out[0] = eg_keep(g[1] ? eg_add(g[0], eg_mul(g[1], 8)) : g[0]);
    return out[0] && !g[1] == !(*(const int *)user & 2);
}
TEST(gradients_for_sources_that_were_never_watched) {
    for (int bits = 0; bits < 4; bits++) {
        EG_SCOPE;
        eg_tensor *in[] = { eg_constant(EG_SHAPE(2), 1, 2), eg_constant(EG_SHAPE(2), 3, 4) }, *p[2], *y;
        eg_function *f = eg_function_new(of_unwatched, &bits);
        for (int i = 0; i < 2; i++) CHECK(eg_function_call(f, in, 2, &y, 1) && same(y, in[1]));
        REQUIRE(eg_function_save(f, test_temp("unwatched")));
        eg_function *g = eg_function_load(test_temp("unwatched"));
        CHECK(g && eg_function_call(g, in, 2, &y, 1) && same(y, in[1]));
        eg_graph *graph = eg_graph_new();
        {
            EG_GRAPH(graph);
            for (int i = 0; i < 2; i++) p[i] = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), i ? "b" : "a");
            CHECK(of_unwatched(p, &y, &bits));
        }
        eg_session *s = eg_session_new(graph);
        const eg_feed feeds[] = { { p[0], in[0] }, { p[1], in[1] } };
        CHECK(same(eg_session_eval(s, y, feeds, 2), in[1]));
        eg_session_release(s);
        eg_graph_release(graph);
        eg_function_release(g);
        eg_function_release(f);
    }
}
// A function that calls a loaded one, which holds a constant or a variable, is saved as its own.
static bool times_tensor(eg_tensor *const *in, eg_tensor **out, void *user) {
    return (out[0] = eg_mul(in[0], (eg_tensor *)user)) != NULL;
}
static bool calls_loaded(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_function_call((eg_function *)user, in, 1, out, 1);
}
TEST(a_function_that_calls_a_loaded_one) {
    for (int variable = 0; variable < 2; variable++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y, *w = eg_constant(EG_SHAPE(2), 3, 4);
        if (variable) w = eg_variable(w, "w");
        eg_function *base = eg_function_new(times_tensor, w);
        CHECK(eg_function_call(base, &x, 1, &y, 1));
        REQUIRE(eg_function_save(base, test_temp("base")));
        eg_function *loaded = eg_function_load(test_temp("base")), *f = eg_function_new(calls_loaded, loaded);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        REQUIRE(eg_function_save(f, test_temp("caller")));
        eg_function *g = eg_function_load(test_temp("caller"));
        CHECK(g && eg_function_call(g, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 3, 8);
        eg_function_release(g);
        eg_function_release(f);
        eg_function_release(loaded);
        eg_function_release(base);
        if (variable) eg_release(w);
    }
}
// A variable that is not trainable has a gradient where it is watched, and none where it is not.
static eg_tensor *frozen;
static bool frozen_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int kind = *(const int *)user;
    eg_tape *tape = eg_tape_begin();
    if (kind & 1) eg_tape_watch(tape, frozen);
    eg_tape_watch(tape, in[0]);
    eg_tensor *ys[] = { eg_mul(eg_square(frozen), in[0]), kind & 2 ? frozen : in[0] }, *xs[] = { frozen, in[0] }, *g[2];
    if (!eg_tape_gradients_from(tape, ys, 2, NULL, xs, 2, g)) return false;
    out[0] = g[0] ? eg_keep(eg_mul(g[0], 1)) : NULL;
    out[1] = eg_keep(eg_mul(g[1], 1));
    return true;
}
TEST(a_watched_variable_that_is_not_trainable) {
    frozen = eg_variable(eg_constant(EG_SHAPE(3), 2, 3, 4), "frozen");
    eg_set_trainable(frozen, false);
    for (int kind = 0; kind < 4; kind++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(3), 1, -2, 0.5), *a[2], *b[2], *p, *y[2];
        eg_function *f = eg_function_new(frozen_body, &kind);
        CHECK(eg_function_call(f, &x, 1, a, 2));
        CHECK((a[0] != NULL) == (kind & 1));
        REQUIRE(eg_function_save(f, test_temp("frozen")));
        eg_function *g = eg_function_load(test_temp("frozen"));
        CHECK(g && eg_function_call(g, &x, 1, b, 2));
        CHECK(kind & 1 ? same(a[0], b[0]) : !b[0]);
        CHECK(same(a[1], b[1]));
        eg_graph *graph = eg_graph_new();
        {
            EG_GRAPH(graph);
            p = eg_placeholder(EG_FLOAT32, EG_SHAPE(3), "x");
            CHECK(frozen_body(&p, y, &kind));
        }
        eg_session *s = eg_session_new(graph);
        const eg_feed feed = { p, x };
        if (kind & 1) CHECK(same(a[0], eg_session_eval(s, y[0], &feed, 1)));
        CHECK(same(a[1], eg_session_eval(s, y[1], &feed, 1)));
        eg_session_release(s);
        eg_graph_release(graph);
        eg_function_release(g);
        eg_function_release(f);
    }
    eg_release(frozen);
}
// A source that is a target, too, and that the file holds as a tensor: the gradient names it by another handle than the
// op that reads it. With another source, and a target whose op has no gradient.
static eg_tensor *held_pair[2];
static bool own_target_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int kind = *(const int *)user;
    eg_tensor *g[3] = { NULL }, *x = in[0], *w = held_pair[1];
    eg_tensor *s = kind & 1 ? eg_sigmoid(held_pair[0]) : held_pair[0];
    eg_tape *tape = kind & 8 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(tape, s);
    if (kind & 2) eg_tape_watch(tape, w);
    eg_tensor *q = eg_leaky_relu(w, 0.3), *y = kind & 4 ? eg_mul(q, x) : eg_floordiv(held_pair[0], q);
    eg_tensor *ys[] = { y, s }, *xs[] = { s, s, w };
    if (!eg_tape_gradients_from(tape, ys, 2, NULL, xs, kind & 2 ? 3 : 2, g)) return false;
    for (int i = 0; i < 3; i++) if (g[i]) x = eg_add(eg_mul(x, 2), g[i]);
    out[0] = eg_keep(x);
    return true;
}
TEST(a_source_that_is_its_own_target) {
    held_pair[0] = eg_constant(EG_SHAPE(2), 3.5, 4);
    held_pair[1] = eg_constant(EG_SHAPE(2), 0.5, -4);
    for (int kind = 0; kind < 16; kind++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(2), 0.5, 0.7), *a, *b;
        eg_function *f = eg_function_new(own_target_body, &kind);
        CHECK(eg_function_call(f, &x, 1, &a, 1));
        REQUIRE(eg_function_save(f, test_temp("target")));
        eg_function *g = eg_function_load(test_temp("target"));
        for (int i = 0; i < 3; i++) CHECK(eg_function_call(g, &x, 1, &b, 1) && same(a, b));
        eg_function_release(g);
        eg_function_release(f);
    }
}
// An error that only a graph raises, and that the body clears: the file would hold what the body does behind it.
static bool clears_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tensor *y = eg_square(in[0]);
    eg_tape_stop(tape);
    y = eg_add(y, eg_sin(in[0]));
    eg_tape_resume(tape);
    eg_tensor *g = eg_tape_gradient(tape, eg_mul(y, in[0]), in[0]);
    eg_error_clear();
    out[0] = eg_keep(g ? g : in[0]);
    return true;
}
TEST(a_body_that_clears_the_error_of_a_graph) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 0.5, 0.7), *y;
    eg_function *f = eg_function_new(clears_body, NULL);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_ERROR(eg_function_save(f, test_temp("clears")), EG_ERROR_STATE,
                "the file would hold another function; leave the error: eg_tape_gradient: what ran while eg_tape_stop");
    eg_function_release(f);
}
// The same with errors of other codes, of a function that only a graph calls, and left pending; an error that eager
// code raises, too, is no hindrance.
static bool adds_one(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in, (void)out;
    return eg_assign_add((eg_tensor *)user, 1) != NULL;
}
static bool adds_wrong(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    return (out[0] = eg_keep(eg_add((eg_tensor *)user, eg_ones(EG_FLOAT32, EG_SHAPE(7, 3))))) != NULL;
}
static bool gives_it(eg_tensor *const *in, eg_tensor **out, void *user) {
    return (out[0] = eg_keep(eg_add(in[0], (eg_tensor *)user))) != NULL;
}
static bool only_looks(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in, (void)out, (void)user;
    return true;
}
typedef struct goes_on { eg_tensor *v; int kind; } goes_on;
static bool goes_on_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const goes_on *s = (const goes_on *)user;
    eg_tensor *p = eg_less(in[0], 3), *y = in[0];
    if (s->kind < 2 && !eg_cond(p, adds_one, adds_one, s->v, in, 1, NULL, 0) && !s->kind) eg_error_clear();
    if (s->kind == 2 && !eg_host_call(only_looks, NULL, in, 1, NULL, 0)) eg_error_clear();
    if (s->kind == 3 && !eg_cond(p, gives_it, adds_wrong, s->v, in, 1, &y, 1)) { eg_error_clear(); y = in[0]; }
    if (s->kind == 4) {
        { EG_SCOPE; y = eg_mul(in[0], 2); }
        if (!eg_add(y, 1)) eg_error_clear();
        y = in[0];
    }
    return (out[0] = eg_keep(eg_mul(y, s->v))) != NULL;
}
TEST(a_body_that_goes_on_after_an_error) {
    static const char *const says[] = { "leave the error: eg_cond: in a graph it needs an output", "it needs an output",
                                        "leave the error: eg_host_call: in a graph it needs outputs", "leave the err" };
    for (int kind = 0; kind < 5; kind++) {
        goes_on s = { eg_variable(eg_scalar(5), "v"), kind };
        eg_tensor *x = eg_scalar(2), *y, *z;
        eg_function *f = eg_function_new(goes_on_body, &s);
        for (int i = 0; i < 4; i++) REQUIRE(eg_function_call(f, &x, 1, &y, 1));
        if (kind < 4) {
            CHECK_ERROR(eg_function_save(f, test_temp("goes on")), kind == 1 ? EG_ERROR_ARGUMENT : EG_ERROR_STATE,
                        says[kind]);
        } else {
            CHECK(eg_function_save(f, test_temp("goes on")));
            eg_error_clear();
            eg_function *g = eg_function_load(test_temp("goes on"));
            REQUIRE(g);
            for (int i = 0; i < 4; i++) CHECK(eg_function_call(g, &x, 1, &z, 1) && same(y, z));
            eg_function_release(g);
        }
        eg_function_release(f);
        eg_release(s.v);
    }
}
// Two inputs that were one tensor in the trace that is saved: the file has two, so they may differ in a later call, and
// the other way round. The same holds without a file.
static bool two_inputs(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_sub(eg_mul(in[0], eg_sin(in[1])), eg_square(in[1]));
    out[1] = eg_mul(in[0], 3);
    return out[0] && out[1];
}
static void check_two(eg_function *f, int i, bool same_tensor) {
    EG_SCOPE;
    eg_tensor *x = eg_sin(eg_range(EG_FLOAT32, i, i + 3, 1)), *z = eg_cos(x), *in[] = { x, same_tensor ? x : z };
    eg_tensor *y[2][2], *g[2][2];
    for (int eager = 0; eager < 2; eager++) {
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tape_watch(tape, z);
        CHECK(eager ? two_inputs(in, y[1], NULL) : eg_function_call(f, in, 2, y[0], 2));
        CHECK(eg_tape_gradients(tape, eg_mul(eg_reduce_sum(y[eager][0]), eg_reduce_sum(y[eager][1])), in,
                                same_tensor ? 1 : 2, g[eager]));
    }
    for (int k = 0; k < 2; k++) CHECK(same(y[0][k], y[1][k]));
    for (int k = 0; k < (same_tensor ? 1 : 2); k++) CHECK(same(g[0][k], g[1][k]));
}
TEST(inputs_that_were_one_tensor) {
    for (int order = 0; order < 4; order++) {
        eg_function *f = eg_function_new(two_inputs, NULL, .no_recheck = true), *g;
        for (int i = 0; i < 12; i++) check_two(f, i, order < 2 ? (i < 6) == order : i % 2 == order - 2);
        CHECK(eg_function_counts(f).replays == 10);
        REQUIRE(eg_function_save(f, test_temp("two")));
        REQUIRE((g = eg_function_load(test_temp("two"))) != NULL);
        for (int i = 0; i < 8; i++) check_two(g, i, i % 2 == order % 2);
        eg_function_release(g);
        eg_function_release(f);
    }
}
TEST(a_session_there_and_back) {
    eg_graph *g = eg_graph_new();
    eg_optimizer *adam = eg_adam(.learning_rate = 0.1);
    eg_tensor *x, *y, *w, *loss, *step, *prediction, *out[2], *again[2];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 4), "x");
        y = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "y");
        w = eg_variable(eg_random_normal(EG_SHAPE(4, 3)), "w");
        eg_tape *tape = eg_tape_begin();
        prediction = eg_tanh(eg_matmul(x, w));
        loss = eg_reduce_mean(eg_square(eg_sub(prediction, y)));
        eg_tensor *grad = eg_tape_gradient(tape, loss, w);
        CHECK(eg_apply_gradients(adam, &grad, &w, 1));
        step = eg_graph_update();
    }
    eg_session *s = eg_session_new(g);
    eg_tensor *fetches[] = { loss, step };
    eg_feed feeds[] = { { x, batch(5, 4, 0) }, { y, batch(5, 3, 1) } };
    CHECK(!eg_session_run(s, feeds, 2, fetches, 2, out));
    eg_error_clear();
    CHECK_ERROR(eg_function_save(eg_session_function(s), test_temp("session")), EG_ERROR_STATE,
                "eg_function_save: variable 'w' (float32 [4, 3]) has no value in this session; eg_session_initialize");
    CHECK(eg_session_initialize(s, NULL, 0));
    for (int i = 0; i < 3; i++) CHECK(eg_session_run(s, feeds, 2, fetches, 2, out));
    REQUIRE(eg_function_save(eg_session_function(s), test_temp("session"), .outputs = EG_NAMES("loss", "steps")));
    eg_function *f = eg_function_load(test_temp("session"));
    REQUIRE(f != NULL);
    CHECK_INT(eg_function_input(f, "y"), 1);
    CHECK_INT(eg_function_output(f, "steps"), 1);
    CHECK_INT(eg_optimizer_steps(eg_function_optimizer(f, 0)), 3);
    eg_tensor *longer[] = { batch(5, 4, 0), batch(6, 3, 1) };
    CHECK_ERROR(eg_function_call(f, longer, 2, again, 2), EG_ERROR_SHAPE,
                "eg_function_call: dimension 0 of what is fed for placeholder 'y' (float32 [?, 3]) is 6, but 5");
    for (int rows = 2; rows < 7; rows++) {
        eg_tensor *in[2];
        in[0] = feeds[0].value = batch(rows, 4, rows);
        in[1] = feeds[1].value = batch(rows, 3, rows + 1);
        CHECK(eg_session_run(s, feeds, 2, fetches, 2, out));
        CHECK(eg_function_call(f, in, 2, again, 2));
        CHECK(same(out[0], again[0]) && same(out[1], again[1]));
    }
    // a prediction alone, from a node that is fed in the midst
    eg_feed middle = { prediction, batch(2, 3, 0) };
    fetches[0] = prediction;
    CHECK(eg_session_run(s, feeds, 1, fetches, 1, out));
    REQUIRE(eg_function_save(eg_session_function(s), test_temp("prediction")));
    eg_function *p = eg_function_load(test_temp("prediction"));
    CHECK(p && eg_function_call(p, &feeds[0].value, 1, again, 1) && same(out[0], again[0]));
    fetches[0] = loss;
    feeds[0] = middle;
    feeds[1].value = batch(2, 3, 4);
    CHECK(eg_session_run(s, feeds, 2, fetches, 1, out));
    REQUIRE(eg_function_save(eg_session_function(s), test_temp("middle"), .inputs = EG_NAMES("p", "y")));
    eg_function *m = eg_function_load(test_temp("middle"));
    eg_tensor *in[2] = { feeds[0].value, feeds[1].value };
    CHECK(m && eg_function_call(m, in, 2, again, 1) && same(out[0], again[0]) && eg_function_input(m, "p") == 0);
    CHECK_INT(eg_function_variables_list(m).count, 0);
    eg_function_release(m);
    eg_function_release(p);
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
    eg_optimizer_release(adam);
    eg_release(w);
}
// What EG_SESSION computes where a node is read is not what the session's function is.
TEST(what_was_run_is_saved_and_not_what_was_read) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y, *count, *z = NULL;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        count = eg_variable(eg_scalar(3), "count");
        y = eg_mul(x, count);
    }
    eg_session *s = eg_session_new(g);
    EG_SESSION(s);
    REQUIRE(eg_session_initialize(s, NULL, 0));
    CHECK_NEAR(eg_item(count), 3, 0);
    CHECK(!eg_session_function(s));
    CHECK_ERROR(eg_function_save(eg_session_function(s), test_temp("read")), EG_ERROR_NULL, "eg_function_save");
    eg_feed feed = { x, eg_ones(EG_FLOAT32, EG_SHAPE(2)) };
    REQUIRE(eg_session_eval(s, y, &feed, 1));
    CHECK_NEAR(eg_item(count), 3, 0);
    REQUIRE(eg_function_save(eg_session_function(s), test_temp("read")));
    eg_function *f = eg_function_load(test_temp("read"));
    CHECK(f && eg_function_input(f, "x") == 0 && eg_function_call(f, &feed.value, 1, &z, 1));
    CHECK_TENSOR(z, 0, 3, 3);
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(count);
}
// Two lengths that pooling has rounded to one number, and what has the shape of one of them.
TEST(what_is_like_a_tensor_is_so_in_a_file) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y[4], *out[4];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(1, -1, 4, 1), "x");
        eg_tensor *a = eg_max_pool2d(x, .size = {2, 1}, .strides = {2, 1});  // floor(n / 2)
        eg_tensor *b = eg_max_pool2d(x, .size = {3, 1}, .strides = {2, 1});  // floor((n - 1) / 2)
        y[0] = eg_add(a, eg_zeros_like(a));
        y[1] = eg_add(b, eg_ones_like(b));
        y[2] = eg_mul(a, eg_random_normal(eg_shape_of(a), .like = a));
        y[3] = eg_mul(b, eg_random_uniform(eg_shape_of(b), .like = b));
    }
    eg_session *s = eg_session_new(g);
    eg_feed feed = { x, eg_ones(EG_FLOAT32, EG_SHAPE(1, 8, 4, 1)) };
    REQUIRE(eg_session_run(s, &feed, 1, y, 4, out) && eg_function_save(eg_session_function(s), test_temp("like")));
    eg_function *f = eg_function_load(test_temp("like"));
    REQUIRE(f != NULL);
    for (int n = 10; n < 14; n++) {
        feed.value = eg_ones(EG_FLOAT32, EG_SHAPE(1, n, 4, 1));
        REQUIRE(eg_function_call(f, &feed.value, 1, out, 4));
        for (int k = 0; k < 4; k++) CHECK_INT(eg_dim(out[k], 1), k % 2 ? (n - 1) / 2 : n / 2);
    }
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
}
// The names of nodes are those of inputs and outputs, unless others are given.
TEST(names_of_nodes_go_into_the_file) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *w, *y, *middle, *out[3], *again[3];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), "w");
        middle = eg_graph_name(eg_mul(x, 3), "middle");
        y = eg_graph_name(eg_matmul(middle, w), "y");
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    eg_feed feed = { middle, batch(3, 2, 1) };
    REQUIRE(eg_session_run(s, &feed, 1, EG_TENSORS(y, w), out));
    eg_function *own = eg_session_function(s);
    CHECK_INT(eg_function_input(own, "middle"), 0);
    CHECK_INT(eg_function_output(own, "w"), 1);
    CHECK_ERROR(eg_function_output(own, "z"), EG_ERROR_ARGUMENT, "none of its 2 outputs is 'z'");
    REQUIRE(eg_function_save(own, test_temp("names")));
    eg_function *f = eg_function_load(test_temp("names"));
    REQUIRE(f != NULL);
    CHECK_INT(eg_function_input(f, "middle"), 0);
    CHECK_INT(eg_function_output(f, "y"), 0);
    CHECK_INT(eg_function_output(f, "w"), 1);
    CHECK(eg_function_call(f, &feed.value, 1, again, 2) && same(out[0], again[0]) && same(out[1], again[1]));
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(w);
}
// Three and four open dimensions stand as smaller primes, which the file names.
TEST(open_dimensions_of_all_sizes_there_and_back) {
    static const eg_shape shapes[] = { { 2, { -1, 4 } }, { 4, { -1, -2, -3, 3 } }, { 4, { -1, -1, -1, 512 } },
                                       { 5, { -2, -1, -3, -5, 3 } } };
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_graph *g = eg_graph_new();
        eg_tensor *x, *nodes[3], *out[3], *again[3], *more[3];
        {
            EG_GRAPH(g);
            x = eg_placeholder(EG_FLOAT64, shapes[i], "x");
            const double n = (double)eg_dim(x, 0), size = (double)eg_size(x);
            nodes[0] = eg_mul(eg_reduce_sum(x), 1 / size);
            nodes[1] = eg_reshape(eg_concat(EG_TENSORS(x, x), 0), EG_SHAPE(-1));
            nodes[2] = eg_full(EG_FLOAT64, EG_SHAPE(eg_dim(x, 0) + 3), n - 7);
        }
        eg_session *s = eg_session_new(g);
        eg_shape shape = shapes[i];
        eg_function *f = NULL, *twice = NULL;
        for (int k = 2; k < 5; k++) {
            for (int d = 0; d < shape.rank; d++) if (shapes[i].dims[d] < 0) shape.dims[d] = k - shapes[i].dims[d] / 2;
            const eg_feed feed = { x, eg_cast(eg_random_normal(shape), EG_FLOAT64) };
            REQUIRE(eg_session_run(s, &feed, 1, nodes, 3, out));
            if (!f) {
                REQUIRE(eg_function_save(eg_session_function(s), test_temp("sizes")));
                REQUIRE((f = eg_function_load(test_temp("sizes"))) != NULL);
                REQUIRE(eg_function_call(f, &feed.value, 1, again, 3) && eg_function_save(f, test_temp("sizes")));
                REQUIRE((twice = eg_function_load(test_temp("sizes"))) != NULL);
            }
            REQUIRE(eg_function_call(f, &feed.value, 1, again, 3) && eg_function_call(twice, &feed.value, 1, more, 3));
            for (int m = 0; m < 3; m++) CHECK(same(out[m], again[m]) && same(out[m], more[m]));
            CHECK_INT(eg_size(out[2]), shape.dims[0] + 3);
        }
        eg_function_release(twice);
        eg_function_release(f);
        eg_session_release(s);
        eg_graph_release(g);
    }
}
// Op `which` of t, a float32 [1, 3] that stands in the graph as it is, and of an open length n; NULL: there is none.
static eg_tensor *of_a_length(int which, eg_tensor *t, int64_t n) {
    eg_tensor *row = eg_reshape(t, EG_SHAPE(3)), *whole = eg_cast(row, EG_INT32), *two[] = { t, t }, *part[3];
    const double real = (double)n;
    switch (which) {
    case 0: return eg_mul(t, n);
    case 1: return eg_add(t, n + 1);
    case 2: return eg_div(t, n);
    case 3: return eg_sub(2 * n, t);
    case 4: return eg_pow(t, 5 / real);
    case 5: return eg_mod(t, n);
    case 6: return eg_maximum(t, n);
    case 7: return eg_minimum(n - 2, t);
    case 8: return eg_equal(t, n);
    case 9: return eg_greater(t, n - 2);
    case 10: return eg_where(eg_less(t, n - 1), t, eg_zeros_like(t));
    case 11: return eg_where(eg_less(t, 2), t, n);
    case 12: return eg_clip_by_value(t, 0, n - 2);
    case 13: return eg_squared_difference(t, n);
    case 14: return eg_atan2(t, n);
    case 15: return eg_floordiv(whole, n);
    case 16: return eg_mul(whole, n);
    case 17: return eg_tile(t, EG_SHAPE(n, 1));
    case 18: return eg_tile(t, EG_SHAPE(n, 2 * n));
    case 19: return eg_repeat(t, n, 0);
    case 20: return eg_repeat(t, n, 1);
    case 21: return eg_broadcast_to(t, EG_SHAPE(n, 3));
    case 22: return eg_square(eg_broadcast_to(t, EG_SHAPE(n, n + 1, 3)));
    case 23: return eg_pad(t, EG_PADS(0, n, 0, 0));
    case 24: return eg_pad(t, EG_PADS(n, 1, n + 1, 0));
    case 25: return eg_pad(t, EG_PADS(0, 1, 0, 0), .value = real);
    case 26: return eg_one_hot(whole, n);
    case 27: return eg_segment_sum(row, eg_mul(whole, 0), n);
    case 28: return eg_scatter_nd(eg_constant_of(EG_INT32, EG_SHAPE(1, 1), 0), t, EG_SHAPE(n, 3));
    case 29: return eg_resize(eg_reshape(t, EG_SHAPE(1, 1, 3, 1)), n, 3);
    case 30: return eg_resize(eg_reshape(t, EG_SHAPE(1, 1, 3, 1)), 2, n, .method = EG_BILINEAR);
    case 31: return eg_full_like(t, real);
    case 32: return eg_full_like(t, 1 / real);
    case 33: return eg_reduce_sum(eg_mul(eg_exp(t), n), .axes = EG_AXES(0));
    case 34: return eg_div(eg_reduce_sum(t), n);
    case 35: return eg_matmul(eg_broadcast_to(t, EG_SHAPE(n, 3)), t, .transpose_b = true);
    case 36: return eg_softmax(eg_mul(t, 1 / real));
    case 37: return eg_cumsum(eg_tile(t, EG_SHAPE(n, 1)), .axis = 0);
    case 38: return eg_concat(EG_TENSORS(eg_tile(t, EG_SHAPE(n, 1)), t), 0);
    case 39: return eg_concat(EG_TENSORS(eg_mul(t, n), t), 1);
    case 40: return eg_stack(two, 2, 0) ? eg_div(eg_stack(two, 2, 0), n) : NULL;
    case 41: return eg_split(t, 3, 1, part) ? eg_mul(part[1], n) : NULL;
    case 42: return eg_reverse(eg_tile(t, EG_SHAPE(n, 1)), EG_AXES(1));
    case 43: return eg_transpose(eg_tile(t, EG_SHAPE(1, n)));
    case 44: return eg_slice(eg_tile(t, EG_SHAPE(n, 1)), EG_SHAPE(n - 2, 0), EG_SHAPE(2, 2));
    case 45: return eg_gather(t, eg_cast(eg_zeros(EG_INT32, EG_SHAPE(n)), EG_INT32), .axis = 1);
    case 46: return eg_reshape(eg_tile(t, EG_SHAPE(n, 1)), EG_SHAPE(3 * n));
    case 47: return eg_sort(eg_tile(t, EG_SHAPE(1, n)));
    case 48: return eg_reduce_logsumexp(eg_broadcast_to(t, EG_SHAPE(n, 3)), .axes = EG_AXES(0));
    case 49: return eg_einsum("ij,kj->ik", EG_TENSORS(eg_tile(t, EG_SHAPE(n, 1)), t));
    case 50: return eg_leaky_relu(eg_sub(t, 1), 1 / real);
    case 51: return eg_range(EG_FLOAT32, 0, real, 1);
    case 52: return eg_eye(EG_FLOAT32, n, 3);
    case 53: return eg_linspace(EG_FLOAT32, 0, 1, n);
    case 54: return eg_cast(eg_logical_and(eg_less(t, n), eg_greater(t, n - 3)), EG_FLOAT32);
    case 55: return eg_max_pool1d(eg_tile(eg_reshape(t, EG_SHAPE(1, 3, 1)), EG_SHAPE(n, 1, 1)), .size = { 2 });
    case 56: return eg_expand_dims(eg_stop_gradient(eg_mul(t, real / 2)), 0);
    case 57: return eg_pad(t, EG_PADS(1, 0, 0, 0), .value = 1 / real);
    }
    return NULL;
}
enum { OF_A_LENGTH = 58 };
static const float three[] = { 0.5f, 1, 2 };
static bool alike(eg_tensor *a, eg_tensor *b) {
    if (!same(a, b) || eg_rank(a) != eg_rank(b)) return false;
    for (int i = 0; i < eg_rank(a); i++) if (eg_dim(a, i) != eg_dim(b, i)) return false;
    return true;
}
typedef struct lengthened { int which; eg_tensor *t; } lengthened;
static bool lengthen(eg_tensor *const *in, eg_tensor **out, void *user) {
    const lengthened *a = (const lengthened *)user;
    return (out[0] = of_a_length(a->which, a->t, eg_dim(in[0], 0))) != NULL;
}
// A function of op `which` in the file "lengths": of a tensor made before the graph (made 0) or in it (1), both of
// which a session computes as well, or traced (2). Its input is of the form `open`.
static eg_function *length_saved(int which, int made, eg_shape open, eg_tensor *t, eg_session **s, eg_tensor **x,
                                 eg_tensor **y) {
    lengthened a = { which, t };
    *s = NULL;
    if (made == 2) {
        eg_function *f = eg_function_new(lengthen, &a);
        eg_tensor *in = eg_zeros(EG_FLOAT32, open.rank == 1 ? EG_SHAPE(4) : EG_SHAPE(4, 2)), *out;
        const bool ok = eg_function_call(f, &in, 1, &out, 1) &&
                        eg_function_save(f, test_temp("lengths"), .shapes = &open);
        eg_function_release(f);
        return ok ? eg_function_load(test_temp("lengths")) : NULL;
    }
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        *x = eg_placeholder(EG_FLOAT32, open, "x");
        if (made) t = eg_from_data(EG_FLOAT32, EG_SHAPE(1, 3), three);
        *y = of_a_length(which, t, eg_dim(*x, 0));
    }
    *s = eg_session_new(g);
    eg_graph_release(g);
    const eg_feed feed = { *x, eg_zeros(EG_FLOAT32, open.rank == 1 ? EG_SHAPE(4) : EG_SHAPE(4, 2)) };
    return *y && eg_session_eval(*s, *y, &feed, 1) && eg_function_save(eg_session_function(*s), test_temp("lengths"))
           ? eg_function_load(test_temp("lengths")) : NULL;
}
// With one open dimension, which stands as a prime near a million while the graph is built, and with two, which stand
// as smaller ones.
TEST(ops_of_tensors_that_stand_in_a_graph_take_open_lengths) {
    static const int lengths[] = { 3, 2, 7 };
    for (int i = 0; i < 2 * 3 * OF_A_LENGTH; i++) {
        EG_SCOPE;
        const int which = i / 6, made = i / 2 % 3, rank = i % 2 + 1;
        eg_tensor *t = eg_from_data(EG_FLOAT32, EG_SHAPE(1, 3), three), *x = NULL, *y = NULL, *out;
        eg_session *s;
        eg_function *f = length_saved(which, made, rank == 1 ? EG_SHAPE(-1) : EG_SHAPE(-1, -2), t, &s, &x, &y);
        CHECK(f != NULL);
        if (!f) { printf("    op %d, made %d: %s\n", which, made, eg_error_message()); eg_error_clear(); }
        for (int k = 0; k < 3 && f; k++) {
            const int64_t n = lengths[k];
            eg_tensor *in = eg_zeros(EG_FLOAT32, rank == 1 ? EG_SHAPE(n) : EG_SHAPE(n, 2));
            eg_tensor *z = of_a_length(which, t, n);
            bool ok = eg_function_call(f, &in, 1, &out, 1) && alike(z, out);
            if (made < 2) {
                const eg_feed feed = { x, in };
                out = eg_session_eval(s, y, &feed, 1);
                ok = ok && alike(z, out);
            }
            CHECK(ok);
            if (!ok) printf("    op %d, made %d, length %d: %s\n", which, made, (int)n, eg_error_message());
            eg_error_clear();
        }
        eg_function_release(f);
        eg_session_release(s);
    }
}
// Pictures of open sizes, resized to a written one, and a product with a broadcast constant; with their gradients.
static eg_tensor *of_a_picture(int which, eg_tensor *x) {
    switch (which) {
    case 0: return eg_resize(x, 7, 8);
    case 1: return eg_resize(x, 7, 8, .method = EG_BILINEAR);
    case 2: return eg_resize(x, 2 * eg_dim(x, 1), eg_dim(x, 2) + 1);
    default:
        return eg_mul(x, eg_broadcast_to(eg_constant(EG_SHAPE(4, 1), 1, 2, 3, 4),
                                         EG_SHAPE(eg_dim(x, 0), eg_dim(x, 1), 4, 1)));
    }
}
static eg_tensor *of_a_picture_slope(int which, eg_tensor *x, eg_tensor **y) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    *y = of_a_picture(which, x);
    return eg_tape_gradient(tape, eg_reduce_sum(eg_square(*y)), x);
}
TEST(pictures_of_open_sizes_there_and_back) {
    static const int heights[] = { 5, 11, 2 };
    for (int which = 0; which < 4; which++) {
        EG_SCOPE;
        eg_graph *g = eg_graph_new();
        eg_tensor *x, *y[2], *out[2], *z[2], *e[2];
        {
            EG_GRAPH(g);
            x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, 4, 1), "x");
            y[1] = of_a_picture_slope(which, x, &y[0]);
        }
        eg_session *s = eg_session_new(g);
        eg_function *f = NULL;
        for (int k = 0; k < 3; k++) {
            const eg_feed feed = { x, eg_random_normal(EG_SHAPE(k + 1, heights[k], 4, 1)) };
            e[1] = of_a_picture_slope(which, feed.value, &e[0]);
            REQUIRE(eg_session_run(s, &feed, 1, y, 2, out));
            if (!f) REQUIRE(eg_function_save(eg_session_function(s), test_temp("pictures")));
            if (!f) REQUIRE((f = eg_function_load(test_temp("pictures"))) != NULL);
            CHECK(eg_function_call(f, &feed.value, 1, z, 2));
            for (int i = 0; i < 2; i++) CHECK(alike(out[i], e[i]) && alike(z[i], e[i]));
        }
        eg_function_release(f);
        eg_session_release(s);
        eg_graph_release(g);
    }
}
// Attention over an open batch and length, as a session's training step and as a traced function, in files.
typedef struct sequence { eg_layer *layer; eg_tensor *table; } sequence;
static bool attend(eg_tensor *const *in, eg_tensor **out, void *user) {
    const sequence *s = (const sequence *)user;
    eg_tensor *x = eg_add(in[0], eg_slice(s->table, EG_SHAPE(0, 0), EG_SHAPE(eg_dim(in[0], 1), -1)));
    out[0] = eg_mul(eg_call(s->layer, x), eg_expand_dims(eg_linspace(EG_FLOAT32, 0, 1, eg_dim(x, 1)), 1));
    return out[0] != NULL;
}
TEST(attention_over_open_lengths_there_and_back) {
    EG_SCOPE;
    sequence k = { eg_sequential(eg_layer_position_embedding(7),
                                 eg_layer_multi_head_attention(2, 4, .causal = true, .rotary_base = 100)),
                   eg_random_normal(EG_SHAPE(9, 4)) };
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 3, 4)), *y, *z, *nodes[2], *out[2], *again[2];
    const eg_shape open = EG_SHAPE(-1, -2, 4);
    eg_function *f = eg_function_new(attend, &k);
    for (int i = 0; i < 2; i++) REQUIRE(eg_function_call(f, &x, 1, &y, 1));
    REQUIRE(eg_function_save(f, test_temp("attention"), .shapes = &open));
    eg_function *g = eg_function_load(test_temp("attention"));
    REQUIRE(g && eg_function_save(g, test_temp("attention")));
    eg_function_release(g);
    REQUIRE((g = eg_function_load(test_temp("attention"))) != NULL);
    eg_optimizer *adam = eg_adam(.learning_rate = 0.01);
    eg_graph *graph = eg_graph_new();
    eg_layer *written = eg_layer_copy(k.layer);
    eg_tensor *in;
    {
        EG_GRAPH(graph);
        in = eg_placeholder(EG_FLOAT32, open, "x");
        eg_tape *tape = eg_tape_begin();
        REQUIRE(attend(&in, &y, &(sequence){ written, k.table }));
        eg_list v = eg_layer_trainable_weights_list(written);
        eg_tensor *grads[16];
        nodes[0] = eg_reduce_mean(eg_square(y));
        REQUIRE(v.count < 16 && eg_tape_gradients(tape, nodes[0], v.tensors, (int)v.count, grads) &&
                eg_apply_gradients(adam, grads, v.tensors, (int)v.count));
        nodes[1] = eg_graph_update();
    }
    eg_session *s = eg_session_new(graph);
    eg_function *h = NULL;
    for (int i = 0; i < 9; i++) {
        EG_SCOPE;
        eg_tensor *v = eg_random_normal(EG_SHAPE(1 + i % 3, 1 + i * 3 % 7, 4)), *dx[2];
        eg_tape *tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, v);
        CHECK(attend(&v, &y, &k) && eg_function_call(g, &v, 1, &z, 1) && same(y, z));
        dx[0] = eg_tape_gradient(tape, y, v);
        dx[1] = eg_tape_gradient(tape, z, v);
        eg_tape_stop(tape);
        CHECK(same(dx[0], dx[1]));
        const eg_feed feed = { in, v };
        REQUIRE(eg_session_run(s, &feed, 1, nodes, 2, out));
        if (h) CHECK(eg_function_call(h, &v, 1, again, 2) && same(out[0], again[0]) && same(out[1], again[1]));
        if (!h) {
            REQUIRE(eg_function_save(eg_session_function(s), test_temp("attention step")));
            REQUIRE((h = eg_function_load(test_temp("attention step"))) != NULL);
        }
    }
    x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 8, 4));
    CHECK_ERROR(eg_function_call(g, &x, 1, &y, 1) ? g : NULL, EG_ERROR_INDEX, "8 elements from 0 on");
    eg_function_release(h);
    eg_function_release(g);
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(graph);
    eg_layer_release(written);
    eg_layer_release(k.layer);
    eg_optimizer_release(adam);
}
TEST(what_runs_before_a_node_is_saved_with_it) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *v, *w, *y, *out, *again;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        v = eg_variable(eg_scalar(1), "v");
        w = eg_variable(eg_scalar(100), "w");
        eg_tensor *first = eg_group(EG_TENSORS(eg_assign_add(v, x), eg_assign_add(w, 1)));
        EG_AFTER(first);
        eg_tensor *halved = eg_assign(w, eg_mul(w, 0.5));
        EG_AFTER(halved);
        y = eg_add(v, w);
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = { x, eg_scalar(3) };
    CHECK(eg_session_initialize(s, NULL, 0));
    CHECK_NEAR(eg_item(eg_session_eval(s, y, &feed, 1)), 4 + 50.5, 0);
    REQUIRE(eg_function_save(eg_session_function(s), test_temp("after")));
    eg_function *f = eg_function_load(test_temp("after"));
    REQUIRE(f != NULL);
    for (int i = 0; i < 5; i++) {
        REQUIRE(out = eg_session_eval(s, y, &feed, 1));
        CHECK(eg_function_call(f, &feed.value, 1, &again, 1) && same(out, again));
    }
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
    eg_release(w);
}
// A checkpoint takes what a loaded function has, and puts it back.
TEST(a_checkpoint_of_a_loaded_function) {
    network n;
    network_make(&n);
    eg_tensor *in[2], *a, *b;
    in[0] = batch(5, 4, 0);
    in[1] = batch(5, 3, 1);
    eg_function *f = eg_function_new(train, &n);
    CHECK(eg_function_call(f, in, 2, &a, 1));                 // makes the optimizer's state, and so is no trace
    CHECK_ERROR(eg_function_save(f, test_temp("checked")), EG_ERROR_STATE, "there is no trace");
    CHECK(eg_function_call(f, in, 2, &a, 1) && eg_function_save(f, test_temp("checked")));
    eg_function *g = eg_function_load(test_temp("checked"));
    REQUIRE(g != NULL);
    eg_checkpoint *c = eg_checkpoint_new();
    eg_list v = eg_function_variables_list(g);
    for (int i = 0; i < v.count; i++) CHECK(eg_checkpoint_track(c, eg_name_of(v.tensors[i]), v.tensors[i]));
    CHECK(eg_checkpoint_track_optimizer(c, "adam", eg_function_optimizer(g, 0)));
    REQUIRE(eg_checkpoint_save(c, test_temp("ckpt")) != NULL);
    for (int i = 0; i < 3; i++) CHECK(eg_function_call(g, in, 2, &b, 1));
    CHECK(eg_checkpoint_restore(c, eg_checkpoint_latest(test_temp("ckpt"))));
    CHECK_INT(eg_optimizer_steps(eg_function_optimizer(g, 0)), 2);
    for (int i = 0; i < 3; i++) CHECK(eg_function_call(f, in, 2, &a, 1) && eg_function_call(g, in, 2, &b, 1));
    CHECK(same(a, b));
    eg_checkpoint_release(c);
    eg_function_release(g);
    eg_function_release(f);
    network_end(&n);
}
// Another program, which has not the code of the body: it is started by the test below with this variable set.
TEST(child_that_loads) {
    if (!getenv("SAVED_PATH")) SKIP("started by the test below");
    eg_tensor *in[2], *loss;
    in[0] = batch(5, 4, 0);
    in[1] = batch(5, 3, 1);
    eg_function *f = eg_function_load(getenv("SAVED_PATH"));
    REQUIRE(f != NULL);
    for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, in, 2, &loss, 1));
    CHECK(eg_function_save(f, getenv("SAVED_PATH")));
    eg_function_release(f);
}
TEST(another_program_trains_on) {
    char command[2000];
    network n;
    network_make(&n);
    eg_tensor *in[2], *a, *b;
    in[0] = batch(5, 4, 0);
    in[1] = batch(5, 3, 1);
    eg_function *f = eg_function_new(train, &n);
    for (int i = 0; i < 2; i++) CHECK(eg_function_call(f, in, 2, &a, 1));
    CHECK(eg_function_save(f, test_temp("there.safetensors")));
    snprintf(command, sizeof command, "SAVED_PATH='%s' '%s' child_that_loads >'%s'", test_temp("there.safetensors"),
             test_program, test_temp("said"));
    REQUIRE(system(command) == 0);
    eg_function *g = eg_function_load(test_temp("there.safetensors"));
    REQUIRE(g != NULL);
    for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, in, 2, &a, 1));
    CHECK(eg_function_call(f, in, 2, &a, 1) && eg_function_call(g, in, 2, &b, 1) && same(a, b));
    eg_function_release(g);
    eg_function_release(f);
    network_end(&n);
}

static eg_tensor *twice_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c, (void)user;
    return eg_mul(in[0], 2);
}
static void twice_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], 2);
}
static double host_value = 3;
static bool opaque(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int which = *(const int *)user;
    out[0] = which == 0 ? eg_custom_gradient(twice_forward, twice_backward, NULL, in, 1)
             : which == 1 ? eg_mul(in[0], eg_cast(eg_host_number(EG_FLOAT64, &host_value), EG_FLOAT32))
             : eg_mul(in[0], 2);
    return out[0] != NULL;
}
// Branches and loops in files: bodies, gradients through them and in them, assignments.
typedef struct turns { eg_tensor *w, *count; } turns;
static bool turn_up(eg_tensor *const *in, eg_tensor **out, void *user) {
    const turns *t = (const turns *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tensor *y = eg_mul(eg_mul(eg_square(in[0]), in[0]), t->w);
    out[0] = eg_tape_gradient(tape, y, in[0]);
    return out[0] && eg_assign_add(t->count, 1);
}
static bool turn_down(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_negative(eg_exp(in[0]))) != NULL;
}
static bool turn_again(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_less(eg_reduce_max(eg_abs(in[0])), 10)) != NULL;
}
static bool turn_on(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y;
    if (!eg_cond(eg_greater(eg_reduce_sum(in[0]), 0), turn_up, turn_down, user, in, 1, &y, 1)) return false;
    out[0] = eg_add(y, eg_sign(y));
    out[1] = eg_add(in[1], 1);
    return out[0] && out[1];
}
static bool turning(eg_tensor *const *in, eg_tensor **out, void *user) {
    turns *t = (turns *)user;
    eg_tensor *state[2], *of[2];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    state[0] = in[0];
    state[1] = eg_scalar_of(EG_INT32, 0);
    if (!eg_while(turn_again, turn_on, t, state, state, 2, .max_steps = 6)) return false;
    of[0] = in[0];
    of[1] = t->w;
    out[2] = state[0];
    out[3] = state[1];
    return eg_tape_gradients(tape, eg_reduce_sum(state[0]), of, 2, out) && out[0] && out[1];
}
TEST(branches_and_loops_there_and_back) {
    EG_SCOPE;
    turns t = { eg_variable(eg_scalar(0.7), "w"), eg_variable(eg_scalar(0), "count") };
    eg_function *f = eg_function_new(turning, &t), *g = NULL;
    eg_tensor *x[4], *a[4], *b[4];
    for (int i = 0; i < 4; i++) x[i] = eg_add(eg_random_uniform(EG_SHAPE(2)), 0.5 + i);
    CHECK(eg_function_call(f, x, 1, a, 4) && eg_function_save(f, test_temp("turns")));
    REQUIRE((g = eg_function_load(test_temp("turns"))) != NULL);
    eg_list own = eg_function_variables_list(g);
    REQUIRE(own.count == 2);
    for (int i = 0; i < 12; i++) {
        EG_SCOPE;
        CHECK(eg_function_call(f, &x[i % 4], 1, a, 4) && eg_function_call(g, &x[i % 4], 1, b, 4));
        for (int k = 0; k < 4; k++) CHECK(same(a[k], b[k]));
        for (int k = 0; k < 2; k++) {
            eg_tensor *v = strcmp(eg_name_of(own.tensors[k]), "w") ? t.count : t.w;
            CHECK(same(own.tensors[k], v));
        }
    }
    CHECK(eg_function_save(g, test_temp("turns again")));
    eg_function_release(g);
    REQUIRE((g = eg_function_load(test_temp("turns again"))) != NULL);
    CHECK(eg_function_call(f, x, 1, a, 4) && eg_function_call(g, x, 1, b, 4));
    for (int k = 0; k < 4; k++) CHECK(same(a[k], b[k]));
    eg_function_release(g);
    eg_function_release(f);
    eg_release(t.w);
    eg_release(t.count);
}
TEST(what_no_file_holds) {
    static const char *const says[] = {
        "eg_custom_gradient cannot be written into a file: no file holds a program's own code",
        "eg_host_number is work of the program itself, which no file holds" };
    eg_tensor *x = batch(2, 2, 0), *y;
    for (int which = 0; which < 2; which++) {
        eg_function *f = eg_function_new(opaque, &which);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_ERROR(eg_function_save(f, test_temp("opaque")), EG_ERROR_STATE, says[which]);
        eg_function_release(f);
    }
    network n;
    network_make(&n);
    eg_tensor *in[2];
    in[0] = batch(5, 4, 0);
    in[1] = batch(5, 3, 1);
    eg_optimizer_release(n.adam);
    n.adam = eg_adam(.schedule = eg_cosine_decay(0.1, 100, 0, 0, 0));
    eg_function *f = eg_function_new(train, &n);
    for (int i = 0; i < 2; i++) CHECK(eg_function_call(f, in, 2, &y, 1));
    CHECK_ERROR(eg_function_save(f, test_temp("opaque")), EG_ERROR_STATE, "eg_function_save: eg_adam has a .schedule");
    eg_function_release(f);
    network_end(&n);
    CHECK_ERROR(eg_function_load(test_temp("opaque")), EG_ERROR_FILE, "opaque.safetensors: cannot be opened");
    CHECK_ERROR(eg_function_load("f.pb"), EG_ERROR_FILE, "f.pb: its ending is neither .safetensors nor .npz");
    eg_archive *a = eg_archive_new();
    eg_archive_add(a, "x", x);
    CHECK(eg_archive_save(a, test_temp("none")));
    CHECK_ERROR(eg_function_load(test_temp("none")), EG_ERROR_FILE, "none: holds tensors, but no function");
    eg_archive_release(a);
}

// Loads this list of lines; what is wrong with it is told with the file and the line.
static eg_function *load_lines(const char *lines, const char *ends) {
    char text[4000];
    eg_archive *a = eg_archive_new();
    snprintf(text, sizeof text, "{\"version\":1,\"lines\":[%s],%s}", lines,
             ends ? ends : "\"inputs\":[{\"name\":\"x\",\"value\":0}],\"outputs\":[{\"name\":\"y\",\"value\":1}]");
    eg_archive_add(a, "W", eg_ones(EG_FLOAT32, EG_SHAPE(3)));
    CHECK(eg_archive_set_text(a, "eager_function", text) && eg_archive_save(a, test_temp("lines.safetensors")));
    eg_archive_release(a);
    return eg_function_load(test_temp("lines.safetensors"));
}
#define LINE(kind, rest) "{\"line\":\"" kind "\"," rest "}"
#define OP(name, in) LINE("op", "\"op\":\"" name "\",\"in\":[" in "]")
#define OP_WITH(name, in, attributes) \
    LINE("op", "\"op\":\"" name "\",\"in\":[" in "],\"attributes\":{" attributes "}")
#define X "{\"line\":\"placeholder\",\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[2,3]}"
#define POSITIVE \
    X "," OP_WITH("reduce_sum", "0", "\"mask\":3,\"keepdims\":0") "," OP("greater", "1,{\"integer\":0}")
#define WHOLE_3 "{\"line\":\"placeholder\",\"name\":\"w\",\"dtype\":\"int64\",\"shape\":[3]}"
#define HEADS "{\"line\":\"placeholder\",\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[1,2,3,4]}"
// An op that is a part of a public function fails in that one's name, as before it was saved; and so in a file that is
// made of the loaded function.
static bool convolves(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_conv1d(in[0], in[1]);
    out[1] = eg_mean_squared_error(out[0], out[0]);
    return out[0] && out[1];
}
static bool takes_row_4(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_index(in[0], 4)) != NULL;
}
TEST(errors_name_the_view_that_was_called) {
    eg_function_save_options o = { .shapes = (eg_shape[]){ EG_SHAPE(-1, 2) } };
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(6, 2)), *few = eg_ones(EG_FLOAT32, EG_SHAPE(3, 2)), *out;
    eg_function *f = eg_function_new(takes_row_4, NULL);
    REQUIRE(eg_function_call(f, &x, 1, &out, 1));
    REQUIRE((eg_function_save)(f, test_temp("row 4"), o));
    eg_function_release(f);
    f = eg_function_load(test_temp("row 4"));
    REQUIRE(f && eg_function_call(f, &x, 1, &out, 1));
    CHECK_ERROR(eg_function_call(f, &few, 1, &out, 1), EG_ERROR_INDEX, "eg_index: ");
    eg_function_release(f);
}
// Inputs that a function was not saved for: the error says which, and how it is saved for others.
TEST(inputs_of_another_shape_or_dtype) {
    network n;
    network_make(&n);
    eg_tensor *x = batch(5, 4, 0), *few = batch(2, 4, 0), *flat = eg_ones(EG_FLOAT32, EG_SHAPE(4)), *y;
    eg_function *f = eg_function_new(predict, &n), *g = NULL;
    REQUIRE(eg_function_call(f, &x, 1, &y, 1) && eg_function_save(f, test_temp("closed")));
    REQUIRE((g = eg_function_load(test_temp("closed"))) != NULL);
    CHECK(eg_function_call(g, &x, 1, &y, 1));
    CHECK_ERROR(eg_function_call(g, &few, 1, &y, 1), EG_ERROR_SHAPE, ", but float32 [5, 4] was expected; it takes "
                "other lengths where eg_placeholder, or .shapes of eg_function_save, had -1");
    CHECK_ERROR(eg_function_call(g, &flat, 1, &y, 1), EG_ERROR_SHAPE, ", but float32 [5, 4] was expected (at saved.c:");
    x = eg_cast(x, EG_INT32);
    CHECK_ERROR(eg_function_call(g, &x, 1, &y, 1), EG_ERROR_DTYPE, ", but float32 [5, 4] was expected; eg_cast it");
    eg_function_release(f);
    eg_function_release(g);
    network_end(&n);
}
TEST(errors_name_the_function_that_was_called) {
    eg_function_save_options o = { .shapes = (eg_shape[]){ EG_SHAPE(1, -1, 2), EG_SHAPE(3, 2, 1) } };
    eg_tensor *in[2], *out[2];
    in[0] = eg_ones(EG_FLOAT32, EG_SHAPE(1, 6, 2));
    in[1] = eg_ones(EG_FLOAT32, EG_SHAPE(3, 2, 1));
    eg_function *f = eg_function_new(convolves, NULL);
    REQUIRE(eg_function_call(f, in, 2, out, 2));
    REQUIRE((eg_function_save)(f, test_temp("conv1d"), o));
    eg_function_release(f);
    for (int again = 0; again < 2; again++) {
        f = eg_function_load(test_temp(again ? "conv1d again" : "conv1d"));
        REQUIRE(f && eg_function_call(f, in, 2, out, 2));
        CHECK_TENSOR(out[0], 0, 6, 6, 6, 6);
        eg_tensor *small[] = { eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 2)), in[1] };
        CHECK_ERROR(eg_function_call(f, small, 2, out, 2), EG_ERROR_SHAPE, "eg_conv1d: ");
        if (!again) CHECK(eg_function_call(f, in, 2, out, 2) && eg_function_save(f, test_temp("conv1d again")));
        eg_function_release(f);
    }
    static const struct { const char *line, *says; } called[] = {
        { "\"op\":\"matmul\",\"called\":\"einsum\",\"in\":[0,0]", "op matmul: eg_einsum: " },
        { "\"op\":\"matmul\",\"called\":\"huber\",\"in\":[0,0]", "op matmul: eg_huber: " },
        { "\"op\":\"matmul\",\"called\":\"system\",\"in\":[0,0]", "op matmul: eg_matmul: " },
        { "\"op\":\"matmul\",\"called\":7,\"in\":[0,0]", "op matmul: eg_matmul: " },
        { "\"op\":\"matmul\",\"called\":[\"einsum\"],\"in\":[0,0]", "op matmul: eg_matmul: " },
        { "\"op\":\"matmul\",\"called\":null,\"in\":[0,0]", "op matmul: eg_matmul: " },
        { "\"op\":\"transpose\",\"called\":\"einsum\",\"in\":[0],\"attributes\":{\"perm\":\"x\"}",
          "eg_function_load: " },
    };
    for (size_t i = 0; i < sizeof called / sizeof called[0]; i++) {
        char lines[400];
        snprintf(lines, sizeof lines, X ",{\"line\":\"op\",%s}", called[i].line);
        CHECK(!load_lines(lines, NULL));
        CHECK_CONTAINS(eg_error_message(), called[i].says);
        eg_error_clear();
    }
}
TEST(a_wrong_line_is_one_error) {
    int64_t before = eg_error_count();
    CHECK(!load_lines(X "," OP("tanh", "1"), NULL));
    CHECK_INT(eg_error_count() - before, 1);
    eg_error_clear();
}
TEST(lines_that_are_wrong) {
    static const struct { const char *lines, *says; } wrong[] = {
        { X "," OP("tanh", "1"), "line 1: its \"in\" is no whole number from 0 to 0" },
        { X "," OP("system", "0"), "line 1: there is no op 'system' that a file can name" },
        { X "," OP("tanh", "0,0"), "line 1: op tanh: eg_tanh: takes 1 operand, not 2" },
        { X "," OP("tanh", "null"), "line 1: op tanh: eg_tanh: operand 0 is NULL" },
        { X "," LINE("op", "\"op\":\"tanh\""), "line 1: it has no list \"in\"" },
        { X "," OP("tanh", "[0,1]"), "line 1: it reads result 1 of line 0, which has none" },
        { X "," OP("custom_gradient", "0"), "line 1: there is no op 'custom_gradient'" },
        { X "," OP("matmul", "0,0"), "line 1: op matmul: eg_matmul: inner dimensions differ" },
        { X "," OP_WITH("reshape", "0", "\"shape\":[7]"),
          "line 1: op reshape: eg_reshape: float32 [2, 3] 'x' has 6 elements, which do not fill" },
        { X "," OP_WITH("transpose", "0", "\"perm\":[1,1]"),
          "line 1: op transpose: eg_transpose: its perm does not fit" },
        { X "," OP_WITH("transpose", "0", "\"perm\":[1,0],\"offset\":3"),
          "line 1: eg_transpose has no such attributes" },
        { X "," OP_WITH("slice", "0", "\"begin\":[0,2],\"size\":[2,2],\"step\":[1,1]"),
          "line 1: op slice: eg_slice: 2 elements from 2 on in steps of 1 do not lie inside axis 1" },
        { X "," OP_WITH("reduce_sum", "0", "\"mask\":8"), "its mask does not fit" },
        { X "," OP_WITH("concat", "0,0", "\"axis\":-9"), "its axis does not fit" },
        { X "," OP_WITH("cast", "0", "\"dtype\":77"), "its dtype does not fit" },
        { X "," OP_WITH("attention", "0,0,0", "\"scale\":1"), "eg_attention: its list of operands does not fit" },
        { HEADS "," OP_WITH("attention", "0,0", "\"scale\":1"), "eg_attention: its list of operands does not fit" },
        { HEADS "," OP_WITH("attention", "0,0,0,0", "\"scale\":1"), "its list of operands does not fit" },
        { HEADS "," OP_WITH("attention", "0,0,0", "\"scale\":null"), "its list of operands does not fit" },
        { HEADS "," OP_WITH("attention", "0,0,0", "\"scale\":1,\"before\":-1"), "its list of operands does not fit" },
        // A state that no draw gives, and a draw without a chance.
        { HEADS "," WHOLE_3 "," OP_WITH("attention", "0,0,0,1", "\"scale\":1,\"kept\":0.5"),
          "its list of operands does not fit" },
        { HEADS "," OP("attention_draw", "0,0") "," OP_WITH("attention", "0,0,0,1", "\"scale\":1,\"kept\":0"),
          "its list of operands does not fit" },
        { X "," OP("attention_draw", "0,0"), "eg_attention_draw: its key does not fit" },
        { X "," LINE("tensor", "\"tensor\":\"V\""), "line 1: there is no tensor 'V' in the file" },
        { X "," LINE("tensor", "\"tensor\":\"W\"},{\"line\":\"assign\",\"in\":[1,0]"), "is no variable" },
        { X "," LINE("gradients", "\"in\":[0,null,0],\"of\":2,\"from\":0"),
          "its \"of\" is no whole number from 1 to 1" },
        { X "," LINE("update", "\"in\":[0,0],\"optimizer\":0"), "its \"optimizer\" is no whole number from 0 to -1" },
        { X "," LINE("call", "\"in\":[0]"), "line 1: there is no kind 'call' of lines" },
        { X ",{\"line\":7}", "line 1: it has no \"line\", which says its kind" },
        { X "," LINE("fill", "\"dtype\":\"uint8\",\"shape\":[2],\"value\":300"),
          "the value 300 does not fit dtype uint8" },
        { X "," LINE("fill", "\"dtype\":\"text\",\"shape\":[2],\"value\":3"), "line 1: 'text' is no dtype" },
        { X "," LINE("fill", "\"dtype\":\"float32\",\"shape\":[2],\"value\":3,\"like\":0"),
          "line 1: its shape is not that of what it is like" },
        { X "," LINE("fill", "\"dtype\":\"float32\",\"shape\":[2,3],\"value\":3,\"like\":1"),
          "is no whole number from 0 to 0" },
        { X "," LINE("random", "\"dtype\":\"int32\",\"shape\":[2],\"draws\":\"normal\",\"a\":0,\"b\":1,"
                               "\"low\":0,\"high\":0"),
          "line 1: its draw does not fit its numbers or its dtype" },
        { X "," LINE("work", "\"work\":\"shell\",\"of\":\"x\",\"in\":[0]"), "line 1: there is no work 'shell'" },
        { X "," LINE("placeholder", "\"dtype\":\"float32\",\"shape\":[-1]"), "is no input" },
        { X "," LINE("op", "\"op\":\"tanh\",\"in\":[0],\"after\":0"), "line 1: \"after\" is no list" },
        { X "," LINE("op", "\"op\":\"tanh\",\"in\":[0],\"after\":[1]"), "no whole number from 0 to 0" },
        { X "," LINE("fill", "\"in\":[]"), "eg_group: the list is empty" },
        { POSITIVE "," LINE("cond", "\"in\":[2],\"outputs\":1"), "after the lines: a body has no end" },
        { POSITIVE "," LINE("cond", "\"in\":[2],\"outputs\":1") "," LINE("gives", "\"in\":[0]"), "a body has no end" },
        { POSITIVE "," LINE("while", "\"in\":[0],\"max_steps\":4"), "a loop has no line for its state 0" },
        { POSITIVE "," LINE("while", "\"in\":[0],\"max_steps\":4") ",{\"line\":\"state\"}", "a body has no end" },
        { POSITIVE "," LINE("cond", "\"in\":[2],\"outputs\":0") "," LINE("gives", "\"in\":[]") ","
          LINE("gives", "\"in\":[]"), "line 3: cond: eg_cond: in a graph it needs an output" },
        { "7", "line 0: it has no \"line\"" }, { X, "after the lines: its \"in\" is no whole number from 0 to 0" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        eg_function *f = load_lines(wrong[i].lines, NULL);
        CHECK(f == NULL);
        CHECK_CONTAINS(eg_error_message(), "lines.safetensors: ");
        CHECK_CONTAINS(eg_error_message(), wrong[i].says);
        CHECK_CONTAINS(eg_error_message(), " (at saved.c:");
        eg_error_clear();
        eg_function_release(f);
    }
    CHECK_ERROR(load_lines(X, "\"inputs\":[]"), EG_ERROR_FILE, "it has no list of outputs");
    CHECK_ERROR(load_lines(X, "\"open\":[2]"), EG_ERROR_FILE, "entry 0 of its \"open\" is none");
    CHECK_ERROR(load_lines(X, "\"open\":[0,0,0,0,0,0,0,0,0]"), EG_ERROR_FILE, "its \"open\" has 9 entries");
    CHECK_ERROR(load_lines(X, "\"version\":1"), EG_ERROR_FILE, "the name 'version' stands there twice");
#define ENDS "\"inputs\":[{\"name\":\"x\",\"value\":0}],\"outputs\":[{\"name\":\"x\",\"value\":0}]"
    CHECK_ERROR(load_lines(X, ENDS ",\"optimizers\":[{\"kind\":\"adam\",\"l2\":0.5}]"), EG_ERROR_FILE,
                "lines.safetensors: eg_adam: has no option .l2 (at saved.c:");
    CHECK_ERROR(load_lines(X, ENDS ",\"optimizers\":[{\"kind\":\"adam\",\"beta_1\":1}]"), EG_ERROR_FILE,
                "lines.safetensors: eg_adam: .beta_1 is 1");
#define SGD(options) ENDS ",\"optimizers\":[{\"kind\":\"sgd\",\"momentum\":0.5," options "}]"
    CHECK_ERROR(load_lines(X, SGD("\"nesterov\":2")), EG_ERROR_FILE,
                "lines.safetensors: the \"nesterov\" of eg_sgd is neither true nor false (at saved.c:");
    CHECK_ERROR(load_lines(X, SGD("\"nesterov\":\"true\"")), EG_ERROR_FILE, "neither true nor false");
    CHECK_ERROR(load_lines(X, SGD("\"nesterov\":null")), EG_ERROR_FILE, "neither true nor false");
    CHECK_ERROR(load_lines(X, SGD("\"clipnorm\":\"1\"")), EG_ERROR_FILE, "the \"clipnorm\" of eg_sgd is no number");
    CHECK_ERROR(load_lines(X, SGD("\"clipnorm\":true")), EG_ERROR_FILE, "the \"clipnorm\" of eg_sgd is no number");
    CHECK_ERROR(load_lines(X "," LINE("op", "\"op\":\"tanh\",\"in\":[0],\"paused\":1"), NULL), EG_ERROR_FILE,
                "line 1: its \"paused\" is neither true nor false");
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *y;
    eg_function *f = load_lines(X "," LINE("op", "\"op\":\"mul\",\"in\":[0,{\"number\":2.5}]"), NULL);
    REQUIRE(f && eg_function_call(f, &x, 1, &y, 1));
    CHECK_TENSOR(y, 0, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5);
    eg_function_release(f);
}

static bool save_and_load(void) {
    EG_SCOPE;
    network n;
    network_make(&n);
    eg_tensor *in[2], *y = NULL;
    in[0] = batch(5, 4, 0);
    in[1] = batch(5, 3, 1);
    eg_function *f = n.w && n.b && n.adam && in[0] && in[1] ? eg_function_new(train, &n) : NULL, *g = NULL;
    bool ok = f != NULL;
    for (int i = 0; i < 6 && ok && !eg_function_counts(f).traces; i++) ok = eg_function_call(f, in, 2, &y, 1);
    ok = ok && eg_function_save(f, test_temp("faults"));
    if (ok) g = eg_function_load(test_temp("faults"));
    ok = g && eg_function_variables_list(g).count >= 2 && eg_function_call(g, in, 2, &y, 1) &&
         eg_function_call(g, in, 2, &y, 1);
    eg_function_release(g);
    eg_function_release(f);
    network_end(&n);
    return ok;
}
TEST(every_allocation_may_fail) {
    if (!test_on_host) SKIP("the device keeps memory of its own");
    faults_sweep(save_and_load);
}

// Files whose list of lines somebody else has changed: numbers, names, bytes. What still loads is called and
// differentiated; whatever comes is a result, or an error, and no more memory than a few arrays as large as the files'.
static uint64_t spoiled_state = 1;
static uint64_t spoiled_draw(uint64_t n) {
    spoiled_state = spoiled_state * 6364136223846793005u + 1442695040888963407u;
    return (spoiled_state >> 33) % n;
}
static void *spoiled_allocate(size_t size, void *user) { (void)user; return size > 1 << 24 ? NULL : malloc(size); }
static void spoiled_free(void *p, void *user) { (void)user; free(p); }
static void spoil(const char *from, char *to, size_t room) {
    static const char *const words[] = {
        "0", "1", "-1", "2", "3", "7", "8", "9", "100", "1000003", "2147483648", "-2147483649", "1099511627776",
        "9223372036854775807", "-9223372036854775808", "1e999", "0.5", "null", "[1,0]", "true", "\"x\"" };
    size_t n = strlen(from), at = spoiled_draw(n), end;
    while (at < n && !strchr("0123456789", from[at])) at++;       // a number
    for (end = at; end < n && strchr("0123456789.-e", from[end]);) end++;
    const char *word = words[spoiled_draw(sizeof words / sizeof words[0])];
    char letter[2] = { (char)(32 + spoiled_draw(95)), 0 };
    if (spoiled_draw(4) == 0) {                                    // or a byte, or the name of another op
        at = spoiled_draw(n);
        end = at + spoiled_draw(3);
        word = letter;
    } else if (spoiled_draw(6) == 0) {
        const char *op = strstr(from + spoiled_draw(n), "\"op\":\"");
        const char *other = strstr(from + spoiled_draw(n), "\"op\":\"");
        if (op && other) {
            static char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(other + 6, "\""), other + 6);
            at = (size_t)(op + 6 - from);
            end = at + strcspn(op + 6, "\"");
            word = name;
        }
    }
    if (end > n) end = n;
    snprintf(to, room, "%.*s%s%s", (int)at, from, word, from + end);
}
static char *copy_of(const char *text) {
    char *copy = (char *)malloc(strlen(text) + 1);
    return strcpy(copy, text);
}
static int64_t spoil_and_call(const char *path, eg_tensor *const *in, int n, int m, int times) {
    eg_archive *a = eg_archive_load(path);
    if (!a) { test_say(__FILE__, __LINE__, path, "is not loaded"); return 0; }
    char *text = copy_of(eg_archive_text(a, "eager_function")), *spoiled = (char *)malloc(strlen(text) + 200);
    int64_t good = 0;
    for (int i = 0; i < times; i++) {
        EG_SCOPE;
        eg_tensor *out[ZOO], *dx[2];
        spoil(text, spoiled, strlen(text) + 200);
        if (spoiled_draw(3) == 0) {
            char *twice = copy_of(spoiled);
            spoil(twice, spoiled, strlen(text) + 200);
            free(twice);
        }
        if (!eg_archive_set_text(a, "eager_function", spoiled) || !eg_archive_save(a, test_temp("spoiled"))) break;
        eg_function *f = eg_function_load(test_temp("spoiled"));
        CHECK((f != NULL) == (eg_error() == EG_OK));
        eg_tape *tape = f ? eg_tape_begin() : NULL;
        for (int k = 0; k < n && f; k++) if (eg_dtype_of(in[k]) == EG_FLOAT32) eg_tape_watch(tape, in[k]);
        for (int k = 0; k < 2 && f && eg_error() == EG_OK; k++)
            if (eg_function_call(f, in, n, out, m)) good += k;
        if (f && eg_error() == EG_OK && out[0]) eg_tape_gradients(tape, out[0], in, 1, dx);
        eg_function_release(f);
        eg_error_clear();
    }
    free(text);
    free(spoiled);
    eg_archive_release(a);
    return good;
}
// What a session has that traced functions have not: names of nodes, elements of an iterator, EG_AFTER and eg_group,
// slices that are assigned, captured variables, open dimensions and numbers that come of them.
static void save_a_session(const char *path) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_optimizer *adam = eg_adam(.learning_rate = 0.1);
    eg_tensor *labels = eg_constant_of(EG_INT64, EG_SHAPE(7), 0, 1, 2, 0, 1, 2, 0), *element[EG_MAX_COMPONENTS], *x, *y,
              *w, *count, *fetches[5], *out[5], *shared = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(3), 0.5), "shared");
    eg_dataset *d = eg_dataset_batch(eg_dataset_from_slices(labels), 5);
    eg_iterator *it = eg_iterator_new(d);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 4), "x");
        y = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "y");
        CHECK(eg_iterator_next(it, element) == EG_NEXT);
        w = eg_variable(eg_random_normal(EG_SHAPE(4, 3)), "w");
        count = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(4)), "count");
        eg_tape *tape = eg_tape_begin();
        eg_tensor *logits = eg_graph_name(eg_add(eg_matmul(x, w), shared), "logits");
        eg_tensor *loss = eg_mul(eg_reduce_sum(eg_square(eg_sub(logits, y))), 1 / (double)eg_size(y));
        loss = eg_add(loss, eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(element[0], logits)));
        eg_tensor *grad = eg_tape_gradient(tape, loss, w);
        CHECK(grad && eg_apply_gradients(adam, &grad, &w, 1));
        eg_tensor *train = eg_graph_update();
        EG_AFTER(train);
        eg_tensor *part = eg_assign_slice(count, EG_SHAPE(1), EG_SHAPE(2), 3);
        fetches[0] = eg_graph_name(loss, "loss");
        fetches[1] = eg_group(EG_TENSORS(train, part));
        eg_tensor *rows = eg_add(eg_slice(eg_ones(EG_FLOAT32, EG_SHAPE(9, 4)), EG_SHAPE(0, 0),
                                          EG_SHAPE(eg_dim(x, 0), -1)),
                                 eg_expand_dims(eg_range(EG_FLOAT32, 0, (double)eg_dim(x, 0), 1), 1));
        fetches[2] = eg_graph_name(eg_reshape(eg_concat(EG_TENSORS(x, rows), 0), EG_SHAPE(-1)), "flat");
        fetches[3] = eg_add(eg_random_normal(EG_SHAPE(eg_dim(x, 0) + 1)), eg_reduce_sum(count));
        fetches[4] = w;
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feeds[] = { { x, batch(5, 4, 0) }, { y, batch(5, 3, 1) } };
    CHECK(eg_session_initialize(s, NULL, 0) && eg_session_run(s, feeds, 2, fetches, 5, out));
    CHECK(eg_function_save(eg_session_function(s), path));
    eg_session_release(s);
    eg_graph_release(g);
    eg_iterator_release(it);
    eg_dataset_release(d);
    eg_optimizer_release(adam);
    eg_release(w);
    eg_release(count);
    eg_release(shared);
}
static void spoil_all(void) {
    EG_SCOPE;
    const int times = getenv("SAVED_TIMES") ? atoi(getenv("SAVED_TIMES")) : 400 / test_share;
    eg_tensor *in[2], *out[ZOO];
    network n;
    network_make(&n);
    if (getenv("SAVED_SEED")) spoiled_state = (uint64_t)atoll(getenv("SAVED_SEED"));
    eg_seed(3);
    in[0] = eg_random_uniform(EG_SHAPE(2, 6, 6, 3));
    in[1] = eg_random_uniform(EG_SHAPE(2, 4));
    eg_function *f = eg_function_new(zoo, NULL), *g = eg_function_new(train, &n);
    REQUIRE(eg_function_call(f, in, 2, out, ZOO) && eg_function_save(f, test_temp("whole zoo.safetensors")));
    eg_tensor *pair[2] = { batch(5, 4, 0), batch(5, 3, 1) };
    for (int i = 0; i < 2; i++) REQUIRE(eg_function_call(g, pair, 2, out, 1));
    const eg_shape open[] = { EG_SHAPE(-1, 4), EG_SHAPE(-1, 3) };
    REQUIRE(eg_function_save(g, test_temp("whole step.safetensors"), .shapes = open));
    eg_layer *words = eg_sequential(eg_layer_embedding(20, 6), eg_layer_lstm(5, .return_sequences = true),
                                    eg_layer_batch_normalization(), eg_layer_gru(4), eg_layer_dense(3));
    model_step step = { words, eg_adam(), true };
    eg_tensor *text[2] = { eg_random_integers(EG_SHAPE(4, 7), 0, 20), eg_random_integers(EG_SHAPE(4), 0, 3) };
    REQUIRE(eg_call(words, text[0]) != NULL);
    eg_function *h = eg_function_new(model_body, &step);
    for (int i = 0; i < 2; i++) REQUIRE(eg_function_call(h, text, 2, out, 1));
    REQUIRE(eg_function_save(h, test_temp("whole model.safetensors")));
    save_a_session(test_temp("whole session.safetensors"));
    turns t = { eg_variable(eg_scalar(0.7), "w"), eg_variable(eg_scalar(0), "count") };
    eg_function *turner = eg_function_new(turning, &t);
    eg_tensor *start = eg_constant(EG_SHAPE(2), 0.5, 1.5);
    REQUIRE(eg_function_call(turner, &start, 1, out, 4) &&
            eg_function_save(turner, test_temp("whole turns.safetensors")));
    eg_tensor *fed[3] = { batch(5, 4, 0), batch(5, 3, 1), eg_constant_of(EG_INT64, EG_SHAPE(5), 2, 0, 1, 1, 2) };
    const int64_t good = spoil_and_call(test_temp("whole session.safetensors"), fed, 3, 5, times) +
                         spoil_and_call(test_temp("whole zoo.safetensors"), in, 2, ZOO, times) +
                         spoil_and_call(test_temp("whole turns.safetensors"), &start, 1, 4, times) +
                         spoil_and_call(test_temp("whole step.safetensors"), pair, 2, 1, times) +
                         spoil_and_call(test_temp("whole model.safetensors"), text, 2, 1, times);
    if (getenv("SAVED_TIMES")) printf("%lld of %d are still functions\n", (long long)good, 5 * times);
    CHECK(good > 0);
    eg_function_release(turner);
    eg_release(t.w);
    eg_release(t.count);
    eg_function_release(f);
    eg_function_release(g);
    eg_function_release(h);
    eg_layer_release(words);
    eg_optimizer_release(step.opt);
    network_end(&n);
}
TEST(spoiled_files) {
    if (!test_on_host) SKIP("the device keeps memory of its own");
    eg_shutdown();
    REQUIRE(eg_set_allocator(spoiled_allocate, spoiled_free, NULL));
    spoil_all();
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}

// Variables that are not trainable as sources of gradients: where the program watches them they have gradients in
// graphs and files, too, wherever they are read; elsewhere none, or zeros.
typedef struct frozen_source { eg_tensor *v; bool zeros, watched, first, target; } frozen_source;
static bool frozen_source_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const frozen_source *k = (const frozen_source *)user;
    eg_tape *tape = eg_tape_begin();
    if (k->zeros) eg_tape_unconnected_zeros(tape, true);
    if (k->watched) eg_tape_watch(tape, k->v);
    eg_tape_watch(tape, in[0]);
    eg_tensor *y = k->first ? eg_mul(eg_square(k->v), in[0]) : eg_mul(eg_square(in[0]), k->v), *xs[] = { k->v, in[0] };
    if (k->target) y = eg_add(y, k->v);
    if (!eg_tape_gradients_from(tape, &y, 1, NULL, xs, 2, out)) return false;
    for (int i = 0; i < 2; i++) if (out[i]) out[i] = eg_mul(out[i], 1);
    return true;
}
TEST(frozen_variables_as_sources_of_gradients) {
    frozen_source k = { eg_variable(eg_constant(EG_SHAPE(2), 3, 4), "v"), false, false, false, false };
    eg_set_trainable(k.v, false);
    for (int kind = 0; kind < 16; kind++) {
        EG_SCOPE;
        k.zeros = kind & 1;
        k.watched = kind & 2;
        k.first = kind & 4;
        k.target = kind & 8;
        eg_tensor *x = eg_constant(EG_SHAPE(2), 0.5, 0.7), *eager[2] = { NULL, NULL }, *made[2] = { NULL, NULL };
        eg_tensor *loaded[2], *p;
        REQUIRE(frozen_source_body(&x, eager, &k));
        eg_function *f = eg_function_new(frozen_source_body, &k);
        for (int i = 0; i < 3; i++) CHECK(eg_function_call(f, &x, 1, loaded, 2));
        CHECK(eg_function_save(f, test_temp("sources")));
        eg_function *g = eg_function_load(test_temp("sources"));
        REQUIRE(g != NULL && eg_function_call(g, &x, 1, loaded, 2));
        eg_graph *graph = eg_graph_new();
        { EG_GRAPH(graph); p = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x"); CHECK(frozen_source_body(&p, made, &k)); }
        eg_session *s = eg_session_new(graph);
        const eg_feed feed = { p, x };
        for (int i = 0; i < 2; i++) {
            CHECK((eager[i] != NULL) == (loaded[i] != NULL) && (eager[i] != NULL) == (made[i] != NULL));
            for (int e = 0; e < 2 && eager[i]; e++) {
                const double want = eg_item(eg_index(eager[i], e));
                CHECK_NEAR(eg_item(eg_index(loaded[i], e)), want, 0);
                CHECK_NEAR(eg_item(eg_index(eg_session_eval(s, made[i], &feed, 1), e)), want, 0);
            }
        }
        eg_session_release(s);
        eg_graph_release(graph);
        eg_function_release(f);
        eg_function_release(g);
    }
    eg_release(k.v);
}
