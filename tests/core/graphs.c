// Graphs and sessions: what is written inside EG_GRAPH, what a session computes of it, and that both give eager's bits.
#include "faults.h"

static bool says(const char *a, const char *b) {
    const char *message = eg_error_message();
    const bool ok = strstr(message, a) && (!b || strstr(message, b));
    if (!ok) printf("    %s\n", message);
    eg_error_clear();
    return ok;
}
#define RUN(s, feeds, n, fetch, out) eg_session_run(s, feeds, n, &fetch, 1, &out)

TEST(a_product_of_a_placeholder) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y, *out;
    {
        EG_GRAPH(g);
        CHECK(!eg_executing_eagerly());
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2, 2), "x");
        y = eg_matmul(x, x);
        eg_item(eg_reduce_sum(y));
        CHECK(says("is a node of a graph", "eg_session_run"));
    }
    CHECK(eg_executing_eagerly());
    eg_session *s = eg_session_new(g);
    const float values[] = {1, 2, 3, 4}, squares[] = {7, 10, 15, 22};
    eg_feed feed = {x, eg_from_data(EG_FLOAT32, EG_SHAPE(2, 2), values)};
    for (int i = 0; i < 4; i++) {
        CHECK(RUN(s, &feed, 1, y, out));
        CHECK(out && !memcmp(eg_data(out), squares, sizeof squares));
    }
    CHECK(!RUN(s, NULL, 0, y, out) && !out);
    CHECK(says("You must feed a value for placeholder 'x' (float32 [2, 2])", NULL));
    feed.value = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    CHECK(!RUN(s, &feed, 1, y, out) && says("feed 0 is float32 [2, 3]", "placeholder 'x' (float32 [2, 2])"));
    feed.value = eg_ones(EG_INT32, EG_SHAPE(2, 2));
    CHECK(!RUN(s, &feed, 1, y, out) && says("int32 [2, 2]", "eg_cast"));
    CHECK(!eg_matmul(x, eg_ones(EG_FLOAT32, EG_SHAPE(2, 2))) && says("graph", NULL));
    CHECK(!eg_add(x, x) && says("is a node of a graph", "eg_session_run"));
    CHECK(!eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "z") && says("no graph is being built", NULL));
    eg_session_release(s);
    eg_graph_release(g);
}
static eg_graph *counted_graph(eg_graph *g, int *times) {
    ++*times;
    return g;
}
TEST(a_graph_that_is_built_is_named_by_an_expression_of_any_kind) {
    eg_graph *g = eg_graph_new();
    int times = 0;
    {
        EG_GRAPH(counted_graph(g, &times));
        CHECK(!eg_executing_eagerly());
    }
    CHECK_INT(times, 1);
    CHECK(eg_executing_eagerly());
    {
        EG_GRAPH(NULL);
        CHECK(says("eg_graph_begin", NULL) && eg_executing_eagerly());
    }
    eg_graph_release(g);
}
TEST(a_node_of_a_view_fails_in_its_functions_name) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *row, *parts[2], *out;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        row = eg_index(x, 5);
        eg_split(x, 2, 1, parts);
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(3, 2))};
    CHECK(!RUN(s, &feed, 1, row, out) && says("eg_index: ", "do not lie inside axis 0"));
    CHECK(!eg_expand_dims(x, 0) && says("eg_expand_dims: ", "is a node of a graph"));
    CHECK(!eg_squeeze(eg_index(x, 0)) && says("eg_index: ", "is a node of a graph"));
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(graphs_and_sessions_are_shared_by_references) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    CHECK(eg_graph_retain(g) == g && !eg_graph_retain(NULL));
    eg_graph_release(g);
    eg_tensor *x, *y, *out;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        y = eg_square(x);
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_retain(s) == s && !eg_session_retain(NULL));
    eg_session_release(s);
    eg_graph_release(g);
    CHECK(!eg_error());
    eg_graph_retain(g);                                             // s still has it, but nobody may take it up again
    CHECK(says("eg_graph_retain: the graph was used after its last reference was released", NULL));
    eg_graph_release(g);
    CHECK(says("eg_graph_release: the graph was used after its last reference was released", NULL));
    const eg_feed feed = {x, eg_scalar(3)};
    CHECK(RUN(s, &feed, 1, y, out) && eg_item(out) == 9);
    eg_session_release(s);
}
TEST(only_what_is_fetched_runs_and_a_node_may_be_fed) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *z, *sum, *twice, *out[2];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(3), "x");
        z = eg_placeholder(EG_FLOAT32, EG_SHAPE(3), "z");
        sum = eg_add(eg_mul(x, 2), z);
        twice = eg_reduce_sum(eg_mul(sum, 2));
    }
    eg_session *s = eg_session_new(g);
    const float ones[] = {1, 2, 3};
    eg_tensor *v = eg_from_data(EG_FLOAT32, EG_SHAPE(3), ones);
    const eg_feed both[] = {{x, v}, {z, v}}, middle = {sum, v}, same[] = {{x, v}, {x, v}};
    eg_tensor *fetches[] = {sum, twice};
    CHECK(eg_session_run(s, both, 2, fetches, 2, out));
    CHECK_NEAR(eg_item(out[1]), 36, 0);
    CHECK_NEAR(eg_item(eg_reduce_sum(out[0])), 18, 0);
    CHECK(eg_session_run(s, &middle, 1, &twice, 1, out));
    CHECK_NEAR(eg_item(out[0]), 12, 0);
    CHECK(!eg_session_run(s, both, 1, &twice, 1, out) && says("placeholder 'z'", NULL));
    CHECK(!eg_session_run(s, same, 2, &twice, 1, out) &&
          says("feeds 0 and 1 are of one node, placeholder 'x' (float32 [3])", NULL));
    CHECK(!eg_session_run(s, both, 2, &v, 1, out) && says("fetch 0", "no node of this session's graph"));
    const eg_feed node = {x, sum};
    CHECK(!eg_session_run(s, &node, 1, &twice, 1, out));
    CHECK(says("the value of feed 0, for placeholder 'x' (float32 [3]), is a node of a graph itself: float32 [3] (from "
               "eg_add)", NULL));
    CHECK_STR(eg_name_of(x), "x");
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(an_open_dimension_takes_any_length) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *mean, *flat, *half, *out[3];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 4), "x");
        mean = eg_div(eg_reduce_sum(eg_square(x)), (double)eg_size(x));
        flat = eg_reshape(eg_concat(EG_TENSORS(x, eg_zeros_like(x)), 0), EG_SHAPE(-1));
        half = eg_reduce_mean(eg_slice(x, EG_SHAPE(1, 0), EG_SHAPE(-1, 2)));
    }
    eg_session *s = eg_session_new(g);
    eg_tensor *fetches[] = {mean, flat, half};
    for (int n = 2; n < 9; n++) {
        EG_SCOPE;
        eg_tensor *v = eg_random_normal(EG_SHAPE(n, 4));
        const eg_feed feed = {x, v};
        CHECK(eg_session_run(s, &feed, 1, fetches, 3, out));
        eg_tensor *expected = eg_div(eg_reduce_sum(eg_square(v)), (double)(4 * n));
        CHECK(!memcmp(eg_data(out[0]), eg_data(expected), 4));
        CHECK_INT(eg_size(out[1]), 8 * n);
        CHECK_NEAR(eg_item(out[2]), eg_item(eg_reduce_mean(eg_slice(v, EG_SHAPE(1, 0), EG_SHAPE(-1, 2)))), 0);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(variables_of_a_graph_and_of_the_program) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *shared = eg_variable(eg_scalar(10), "shared"), *own, *sum, *raise, *add, *read, *out;
    {
        EG_GRAPH(g);
        read = eg_identity(shared);
        own = eg_variable(eg_scalar(1), "own");
        sum = eg_add(own, shared);
        raise = eg_assign_add(own, 1);
        add = eg_assign(shared, eg_mul(shared, 2));
    }
    eg_session *a = eg_session_new(g), *b = eg_session_new(g);
    CHECK(!RUN(a, NULL, 0, sum, out) && says("variable 'own'", "eg_session_initialize"));
    CHECK(eg_session_initialize(a, NULL, 0) && eg_session_initialize(b, &own, 1));
    for (int i = 0; i < 3; i++) { CHECK(RUN(a, NULL, 0, raise, out)); CHECK_NEAR(eg_item(out), i + 2, 0); }
    CHECK(RUN(a, NULL, 0, sum, out));
    CHECK_NEAR(eg_item(out), 14, 0);
    CHECK(RUN(b, NULL, 0, sum, out));
    CHECK_NEAR(eg_item(out), 11, 0);
    CHECK(RUN(b, NULL, 0, add, out));
    CHECK_NEAR(eg_item(shared), 20, 0);
    eg_assign(shared, 5);
    CHECK(!eg_assign(own, 5) && says("eg_assign: a node of a graph cannot be written", "eg_session_variable"));
    CHECK(RUN(a, NULL, 0, sum, out));
    CHECK_NEAR(eg_item(out), 9, 0);
    CHECK(RUN(a, NULL, 0, read, out));
    CHECK_NEAR(eg_item(out), 5, 0);
    CHECK(!RUN(a, NULL, 0, shared, out) && says("fetch 0, float32 [] 'shared', is no node", "graphs.c:"));
    CHECK(!eg_session_initialize(a, &shared, 1) && says("variable 0, float32 [] 'shared', is no node", "graphs.c:"));
    CHECK(RUN(a, NULL, 0, own, out));
    CHECK_NEAR(eg_item(out), 4, 0);
    CHECK(eg_session_initialize(a, NULL, 0) && RUN(a, NULL, 0, own, out));
    CHECK_NEAR(eg_item(out), 1, 0);
    const eg_feed feed = {own, eg_scalar(3)};
    CHECK(!RUN(a, &feed, 1, sum, out) && says("feed 0: 'own' is a variable, which cannot be fed", NULL));
    eg_session_release(a);
    eg_session_release(b);
    eg_graph_release(g);
    eg_release(own);
    eg_release(shared);
}

// The same step eagerly and as a graph: a model of two layers, its loss, gradients, Adam.
static eg_layer *net(void) {
    return eg_sequential(eg_layer_dense(8, .activation = EG_TANH), eg_layer_batch_normalization(),
                         eg_layer_dense(3));
}
static eg_tensor *step(eg_layer *model, eg_optimizer *opt, eg_tensor *x, eg_tensor *labels) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *logits = eg_call(model, x, .training = true);
    eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, logits));
    eg_tensor *weights[16], *grads[16];
    const int n = eg_tape_watched_variables(tape, weights, 16);
    return n > 0 && eg_tape_gradients(tape, loss, weights, n, grads) && eg_apply_gradients(opt, grads, weights, n)
           ? loss : NULL;
}
TEST(a_training_step_gives_the_bits_of_eager_code) {
    EG_SCOPE;
    eg_layer *eager = net(), *written = net();
    eg_optimizer *adam = eg_adam(.learning_rate = 0.01), *of_graph = eg_adam(.learning_rate = 0.01);
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *labels, *loss, *train, *out[2];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 5), "x");
        labels = eg_placeholder(EG_INT32, EG_SHAPE(-1), "labels");
        loss = step(written, of_graph, x, labels);
        CHECK(loss != NULL);
        train = eg_graph_update();
    }
    eg_session *s = eg_session_new(g);
    eg_seed(3);
    CHECK(eg_session_initialize(s, NULL, 0));
    eg_seed(3);
    eg_tensor *fetches[] = {loss, train};
    for (int i = 0; i < 12; i++) {
        EG_SCOPE;
        const int rows = i % 5 == 4 ? 7 : 16;
        float data[80];
        int32_t classes[16];
        for (int k = 0; k < 80; k++) data[k] = (float)((k * 37 + i * 11) % 19) / 9 - 1;
        for (int k = 0; k < 16; k++) classes[k] = (k + i) % 3;
        eg_tensor *v = eg_from_data(EG_FLOAT32, EG_SHAPE(rows, 5), data),
                  *c = eg_from_data(EG_INT32, EG_SHAPE(rows), classes);
        const eg_feed feeds[] = {{x, v}, {labels, c}};
        CHECK(eg_session_run(s, feeds, 2, fetches, 2, out));
        if (i == 0) eg_seed(3);
        eg_tensor *expected = step(eager, adam, v, c);
        REQUIRE(expected && out[0]);
        CHECK(!memcmp(eg_data(out[0]), eg_data(expected), 4));
        CHECK_INT(eg_item_int(out[1]), i + 1);
    }
    const eg_function_info info = eg_function_counts(eg_session_function(s));
    CHECK(info.replays >= 8);
    eg_session_release(s);
    eg_layer_release(eager);
    eg_layer_release(written);
    eg_optimizer_release(adam);
    eg_optimizer_release(of_graph);
    eg_graph_release(g);
}

// d/dx (d/dx sum(x^3))^2 = 2 (3 x^2) (6 x), eagerly and in a graph.
static eg_tensor *penalty(eg_tensor *x) {
    eg_tape *outer = eg_tape_begin(), *inner = eg_tape_begin();
    eg_tape_watch(outer, x);
    eg_tape_watch(inner, x);
    eg_tensor *y = eg_reduce_sum(eg_mul(eg_square(x), x)), *g = eg_tape_gradient(inner, y, x);
    return g ? eg_tape_gradient(outer, eg_reduce_sum(eg_square(g)), x) : NULL;
}
TEST(gradients_of_gradients) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *dx, *out;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(-1), "x");
        dx = penalty(x);
    }
    REQUIRE(dx != NULL);
    eg_session *s = eg_session_new(g);
    const double values[] = {1, -2, 0.5, 3};
    for (int n = 1; n <= 4; n++) {
        EG_SCOPE;
        const eg_feed feed = {x, eg_from_data(EG_FLOAT64, EG_SHAPE(n), values)};
        CHECK(RUN(s, &feed, 1, dx, out));
        eg_tensor *expected = penalty(feed.value);
        CHECK(out && !memcmp(eg_data(out), eg_data(expected), (size_t)n * 8));
        CHECK_NEAR(eg_item(eg_index(out, 0)), 36, 0);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(each_run_draws_anew_as_eager_code_does) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *noise, *out;
    {
        EG_GRAPH(g);
        noise = eg_mul(eg_random_normal(EG_SHAPE(5)), 2);
    }
    eg_session *s = eg_session_new(g);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_random_state state = eg_random_get_state();
        CHECK(RUN(s, NULL, 0, noise, out));
        eg_random_set_state(state);
        CHECK(!memcmp(eg_data(out), eg_data(eg_mul(eg_random_normal(EG_SHAPE(5)), 2)), 20));
    }
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(what_cannot_be_written_is_an_error) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new(), *h = eg_graph_new();
    eg_tensor *x, *y, *out;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
        CHECK(!eg_graph_begin(g) && says("being built already", NULL));
        CHECK(!eg_graph_begin(h) && says("on this thread", NULL));
        CHECK(!eg_graph_update() && says("no update", NULL));
        CHECK(!eg_add(x, eg_ones(EG_FLOAT32, EG_SHAPE(3))) && says("do not broadcast", NULL));
        y = eg_negative(x);
    }
    {
        EG_GRAPH(h);
        CHECK(!eg_add(x, eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "z")));
        CHECK(says("eg_add: float32 [2] 'x' is a node of another graph", "graphs.c:"));
        CHECK(!eg_group(&x, 1) && says("eg_group: ", "is a node of another graph"));
        eg_tensor *z = eg_graph_node(h, "z");
        CHECK(!eg_graph_name(z, "") && says("eg_graph_name: the name is empty", NULL));
    }
    CHECK(!eg_to_dlpack(x) && says("eg_to_dlpack: float32 [2] 'x' is a node", "eg_session_run"));
    CHECK(!eg_to_dlpack_legacy(x) && says("eg_to_dlpack_legacy: ", "is a node of a graph"));
    CHECK(eg_graph_begin(h) && eg_placeholder(EG_FLOAT32, EG_SCALAR, NULL));
    eg_graph_end(h);
    eg_graph_end(h);
    CHECK(says("does not build the graph", NULL));
    eg_session *s = eg_session_new(h);
    CHECK(!RUN(s, NULL, 0, y, out) && says("no node of this session's graph", NULL));
    CHECK(!eg_session_run(s, NULL, 0, NULL, 0, NULL) && says("nothing is fetched", NULL));
    CHECK(!eg_session_function(s));
    CHECK(eg_graph_size(g) >= 2);
    eg_session_release(s);
    eg_graph_release(h);
    eg_graph_release(g);
    CHECK(!eg_add(y, 1) && says("is a node of a graph", NULL));       // its nodes keep the graph alive
}
// Of the program's own tensors ops compute at once, unless a number of theirs comes of an open dimension.
TEST(ops_on_tensors_from_before_the_graph) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *t = eg_constant(EG_SHAPE(2), 1, 10), *table = eg_zeros(EG_FLOAT32, EG_SHAPE(5000, 2));
    eg_tensor *x, *y, *z, *check;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        const int64_t n = eg_dim(x, 0);
        CHECK_TENSOR(eg_mul(t, 3), 0, 3, 30);
        CHECK_INT(eg_dim(eg_slice(table, EG_SHAPE(100, 0), EG_SHAPE(4000, 2)), 0), 4000);
        CHECK(eg_item(eg_reduce_sum(eg_reshape(table, EG_SHAPE(10000)))) == 0);
        CHECK(eg_item(eg_reduce_sum(eg_full_like(t, 1000000))) == 2000000);
        y = eg_mul(t, n);
        CHECK(isnan(eg_item(eg_reduce_sum(y))) && says("is a node of a graph", "eg_session_run"));
        CHECK(!eg_mul(t, n / 2) && says("eg_mul: the number 505820 seems to come of an open dimension", NULL));
        CHECK(!eg_tile(t, EG_SHAPE(n / 2)) && says("seems to come of an open dimension", NULL));
        z = eg_mul(eg_pad(x, EG_PADS(0, 0, 0, 1), .value = 1 / (double)n), n);
        CHECK(eg_is_nan(eg_mul(x, (double)NAN)) && eg_pad(x, EG_PADS(0, 0, 0, 1), .value = -(double)INFINITY));
        check = eg_identity(x);
        CHECK(eg_assert_equal(eg_reduce_sum(eg_mul(t, 0)), eg_sub(eg_reduce_sum(eg_ones_like(x)), eg_mul(2, n))));
        CHECK(eg_assert_equal(eg_add(t, 1), eg_constant(EG_SHAPE(2), 2, 11)));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 1; n < 6; n += 2) {
        const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(n, 2))};
        CHECK_TENSOR(eg_session_eval(s, y, &feed, 1), 0, n, 10 * n);
        CHECK(eg_item(eg_reduce_sum(eg_slice(eg_session_eval(s, z, &feed, 1), EG_SHAPE(0, 2), EG_SHAPE(n, 1)))) == n);
        CHECK(eg_session_eval(s, check, &feed, 1) != NULL);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
// The same inside functions that run for their shapes alone: what they broadcast to open lengths takes no memory.
static eg_tensor *weighted(eg_tensor *x, eg_tensor *weights) {
    return eg_mul(x, eg_square(eg_broadcast_to(weights, eg_shape_of(x))));
}
static eg_tensor *weighted_forward(eg_tensor *const *in, eg_grad_context *c, void *weights) {
    (void)c;
    return weighted(in[0], (eg_tensor *)weights);
}
static void weighted_backward(const eg_grad_context *c, eg_tensor **dx, void *weights) {
    dx[0] = weighted(c->upstream[0], (eg_tensor *)weights);
}
TEST(a_tolerance_of_an_open_length_is_an_error) {
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        CHECK(!eg_assert_near(x, x, 1.0 / (double)eg_dim(x, 0)));
        CHECK(strstr(eg_error_message(), "eg_assert_near: the tolerance, ") &&
              strstr(eg_error_message(), ", comes of an open dimension"));
        eg_error_clear();
        CHECK(eg_assert_near(x, x, 1e-6) && eg_assert_near(x, x, 0.001) && eg_assert_near(x, x, 2));
        CHECK(eg_assert_near(x, x, 1e-12) && eg_assert_near(x, x, 0.5) && eg_assert_equal(x, x));
    }
    eg_graph_release(g);
}
TEST(functions_on_tensors_from_before_the_graph) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *t = eg_constant(EG_SHAPE(2), 1, 2), *x, *nodes[2] = { NULL, NULL }, *out[2];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, 2), "x");
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        nodes[0] = eg_custom_gradient(weighted_forward, weighted_backward, t, &x, 1);
        nodes[1] = eg_tape_gradient(tape, eg_reduce_sum(nodes[0]), x);
    }
    eg_session *s = eg_session_new(g);
    for (int n = 1; n < 4; n++) {
        const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(n, 3, 2))};
        REQUIRE(eg_session_run(s, &feed, 1, nodes, 2, out));
        for (int i = 0; i < 2; i++) CHECK_INT(eg_item(eg_reduce_sum(out[i])), 15 * n);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(what_a_node_was_written_to_need) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *v, *w, *raise, *twice, *plain, *both, *twice_both;
    {
        EG_GRAPH(g);
        v = eg_variable(eg_scalar(1), "v");
        w = eg_variable(eg_scalar(10), "w");
        raise = eg_assign_add(v, 1);
        {
            EG_AFTER(raise);
            twice = eg_mul(v, 2);
        }
        plain = eg_mul(v, 3);
        both = eg_group(EG_TENSORS(eg_assign_add(v, 5), eg_assign_add(w, 5)));
        EG_AFTER(raise);
        EG_AFTER(both);
        twice_both = eg_add(v, w);
        CHECK(!eg_graph_after_begin(eg_number(1)) && says("is no node of the graph", NULL));
        CHECK(!eg_group(NULL, 0) && says("eg_group: the list is empty", NULL));
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    for (int i = 0; i < 4; i++) CHECK_NEAR(eg_item(eg_session_eval(s, twice, NULL, 0)), 2 * (i + 2), 0);
    for (int i = 0; i < 3; i++) CHECK_NEAR(eg_item(eg_session_eval(s, plain, NULL, 0)), 15, 0);
    CHECK_INT(eg_item_int(eg_session_eval(s, both, NULL, 0)), 2);
    CHECK_NEAR(eg_item(eg_session_eval(s, v, NULL, 0)), 10, 0);
    CHECK_NEAR(eg_item(eg_session_eval(s, w, NULL, 0)), 15, 0);
    CHECK_NEAR(eg_item(eg_session_eval(s, twice_both, NULL, 0)), 10 + 1 + 5 + 15 + 5, 0);
    const eg_feed feed = {raise, eg_scalar(0)};                    // what is fed does not run
    CHECK_NEAR(eg_item(eg_session_eval(s, twice, &feed, 1)), 32, 0);
    CHECK_NEAR(eg_item(eg_session_eval(s, v, NULL, 0)), 16, 0);
    CHECK(!eg_graph_after_begin(raise) && says("no graph is being built", NULL));
    CHECK(!eg_group(&raise, 1) && says("no graph is being built", NULL));
    eg_graph_after_end();
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
    eg_release(w);
}
// A view computes nothing that would stop at a node, and a node is no use outside of its graph.
static eg_tensor *view_of(eg_tensor *x, int i) {
    eg_tensor *parts[2];
    switch (i) {
    case 0: return eg_identity(x);
    case 1: return eg_reshape(x, EG_SHAPE(-1));
    case 2: return eg_transpose(x);
    case 3: return eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(1, 2));
    case 4: return eg_index(x, 0);
    case 5: return eg_broadcast_to(x, EG_SHAPE(4, 2, 3));
    case 6: return eg_cast(x, EG_FLOAT32);
    case 7: return eg_stop_gradient(x);
    case 8: return eg_read(x);
    case 9: return eg_reverse(x, EG_AXES(0));
    case 10: return eg_expand_dims(x, 0);
    case 11: return eg_split(x, 2, 0, parts) ? parts[0] : NULL;
    case 12: return eg_squeeze(x);
    default: return eg_to(x, test_device());
    }
}
TEST(a_view_of_a_node_outside_of_its_graph_is_an_error) {
    EG_SCOPE;
    static const char *const names[] = {"identity", "reshape", "transpose", "slice", "index", "broadcast_to", "cast",
                                        "stop_gradient", "read", "reverse", "expand_dims", "split", "squeeze", "to"};
    enum { VIEWS = sizeof names / sizeof names[0], NODES = 4 };
    eg_graph *g = eg_graph_new(), *h = eg_graph_new();
    eg_tensor *node[NODES], *inside[VIEWS], *out[VIEWS];
    eg_tensor *shared = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), "shared");
    {
        EG_GRAPH(g);
        node[0] = eg_placeholder(EG_FLOAT32, EG_SHAPE(2, 3), "x");
        node[1] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)), "w");
        node[2] = eg_add(eg_mul(node[0], node[1]), shared);
        node[3] = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
        for (int i = 0; i < VIEWS; i++) CHECK((inside[i] = view_of(node[2], i)) != NULL);
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    for (int k = 0; k < NODES; k++)
        for (int i = 0; i < VIEWS; i++) {
            char name[40];
            snprintf(name, sizeof name, "eg_%s: float32 [2, 3] ", names[i]);
            CHECK(!view_of(node[k], i) && strstr(eg_error_message(), "(at graphs.c:"));
            CHECK(says(name, k ? "is a node of a graph, and has a value only in a session: eg_session_run computes it"
                               : "'x' is a node of a graph, a placeholder, and has a value only in a session: "
                                 "feed it in eg_session_run"));
        }
    CHECK(!eg_reshape(eg_graph_node(g, "x"), EG_SHAPE(6)) &&
          says("eg_reshape: float32 [2, 3] 'x' is a node", "graphs.c:"));
    CHECK(!eg_dataset_from_slices(node[0]));
    CHECK(says("eg_dataset_from_slices: float32 [2, 3] 'x' is a node of a graph", "graphs.c:"));
    CHECK(!eg_dataset_from_tensors(node[2]) && says("eg_dataset_from_tensors: ", "graphs.c:"));
    CHECK(!eg_to(node[0], test_device()) && says("eg_to: float32 [2, 3] 'x' is a node of a graph", "graphs.c:"));
    eg_archive *archive = eg_archive_new();
    CHECK(!eg_archive_add(archive, "w", node[1]) && says("eg_archive_add: float32 [2, 3] 'w' is a node", "graphs.c:"));
    {
        EG_GRAPH(h);
        CHECK(!eg_reshape(node[0], EG_SHAPE(6)) &&
              says("eg_reshape: float32 [2, 3] 'x' is a node of another graph", NULL));
        eg_tensor *const mixed[] = {node[0], shared};
        CHECK(!eg_group(mixed, 2) && says("eg_group: entry 1, float32 [2, 3] 'shared', is no node", NULL));
        eg_tensor *const one[] = {eg_number(1)};
        CHECK(!eg_group(one, 1) && says("eg_group: entry 0, the number 1, is no node", NULL));
    }
    const eg_feed feed = {node[0], eg_ones(EG_FLOAT32, EG_SHAPE(2, 3))};
    REQUIRE(eg_session_run(s, &feed, 1, inside, VIEWS, out));
    for (int i = 0; i < VIEWS; i++) CHECK_NEAR(eg_item(eg_reduce_max(out[i])), 1, 0);
    {
        EG_SESSION(s);
        CHECK_NEAR(eg_item(eg_reduce_max(eg_index(shared, 0))), 1, 0);
        CHECK(eg_archive_add(archive, "w", node[1]));               // the session's value
        CHECK(!eg_transpose(node[1]) && says("eg_transpose: float32 [2, 3] 'w' is a node of a graph", NULL));
    }
    CHECK_TENSOR(eg_archive_get(archive, "w"), 0, 0, 0, 0, 0, 0, 0);
    eg_archive_release(archive);
    eg_session_release(s);
    eg_graph_release(h);
    eg_graph_release(g);
    eg_release(node[1]);
    eg_release(shared);
}
// Functions that copy or fill, or read by a part of theirs: each fails in its own name, at its own line, also behind
// others in it.
static bool copy_of(eg_tensor *x, int i) {
    static const char *path = "eager_node.npy";
    switch (i) {
    case 0: return eg_concat((eg_tensor *[]){x, x}, 2, 0) != NULL;
    case 1: return eg_zeros_like(x) != NULL;
    case 2: return eg_squeeze(eg_index(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), 0)) && eg_full_like(x, 3) != NULL;
    case 3: return eg_squeeze(eg_index(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), 0)) && eg_variable(x, "copy") != NULL;
    case 4: return eg_expand_dims(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), 0) && eg_index(x, 0) != NULL;
    case 5: return eg_stack((eg_tensor *[]){x, x}, 2, 0) != NULL;
    case 6: return eg_assert_equal(x, x);
    case 7: return eg_save_npy(x, path);
    default: return eg_ones_like(x) != NULL;
    }
}
TEST(a_node_used_eagerly_is_an_error_of_the_function_that_was_called) {
    EG_SCOPE;
    static const char *const names[] = { "concat", "zeros_like", "full_like", "variable", "index", "stack",
                                         "assert_equal", "save_npy", "ones_like" };
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y, *own = eg_ones(EG_FLOAT32, EG_SCALAR);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "x");
        y = eg_graph_name(eg_tanh(x), "y");
        CHECK(!eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "") && says("eg_placeholder: the name is empty", "graphs.c:"));
        eg_tensor *const mine[] = { eg_mul(own, 2) };      // computed at once
        CHECK(!eg_group(mine, 1) && says("eg_group: entry 0, float32 [] (from eg_mul), is no node, and nothing would "
                                         "run for it; a node is a placeholder, or what an op inside EG_GRAPH makes of "
                                         "nodes and variables", NULL));
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int k = 0; k < 2; k++) {
            char text[60];
            snprintf(text, sizeof text, "eg_%s: float32 [?, 3] '%s' is a node of a graph, ", names[i], k ? "y" : "x");
            CHECK(!copy_of(k ? y : x, (int)i) && strstr(eg_error_message(), "(at graphs.c:") && says(text, NULL));
        }
    eg_layer *dropout = eg_layer_dropout(0.5);
    CHECK(!eg_call(dropout, x, .training = true) && strstr(eg_error_message(), "(at graphs.c:"));
    CHECK(says("eg_call: float32 [?, 3] 'x' is a node of a graph, a placeholder", "in layer dropout"));
    eg_metric *m = eg_metric_binary_accuracy();
    CHECK(!eg_metric_update(m, x, y) && says("eg_metric_update: float32 [?, 3] 'y' is a node of a graph", "graphs.c:"));
    eg_metric_release(m);
    eg_layer_release(dropout);
    eg_graph_release(g);
}
// A layer that a graph built has no values outside of a session; one that was built before the graph serves both.
TEST(a_layer_built_in_a_graph_and_called_eagerly_says_what_to_do) {
    eg_graph *g = eg_graph_new();
    eg_layer *inside = eg_sequential(eg_layer_dense(3)), *before = eg_layer_dense(3);
    eg_tensor *rows = eg_ones(EG_FLOAT32, EG_SHAPE(2, 4));
    CHECK(eg_layer_build(before, EG_SHAPE(-1, 4)));
    {
        EG_GRAPH(g);
        eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 4), "x");
        CHECK(eg_call(inside, x) && eg_call(before, x));
    }
    CHECK(eg_call(before, rows) != NULL);
    CHECK(!eg_call(inside, rows) && says(
        "float32 [4, 3] 'sequential/dense/kernel' is a node of a graph, and float32 [2, 4] (from eg_ones) is not; "
        "inside EG_GRAPH a graph takes in other tensors, outside use what eg_session_run computes of this layer's "
        "call, or build the layer (eg_layer_build) before the graph: a layer built inside EG_GRAPH has its weights in "
        "sessions alone", "in layer sequential/dense"));
    eg_layer_release(inside);
    eg_layer_release(before);
    eg_graph_release(g);
}
// A length that is open, and what was computed of it, is "?" wherever an error shows it.
static bool shows_no_prime(bool done) {
    const char *message = eg_error_message(), *digits = message;
    bool ok = !done && *message && strchr(message, '?');
    while ((digits = strpbrk(digits, "0123456789")) != NULL) {
        const size_t n = strspn(digits, "0123456789");
        ok = ok && n < 5;
        digits += n;
    }
    if (!ok) printf("    %s\n", message);
    eg_error_clear();
    return ok;
}
TEST(an_open_length_in_an_error_is_a_question_mark) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_layer *dense = eg_layer_dense(2), *reshape = eg_layer_reshape(EG_SHAPE(3, 3)),
             *grouped = eg_layer_group_normalization(.groups = 3);
    eg_tensor *x, *y, *parts[3];
    REQUIRE(eg_call(dense, eg_ones(EG_FLOAT32, EG_SHAPE(2, 8, 4))));
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, 4), "x");
        y = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "y");
        const int64_t n = eg_dim(x, 0);
        CHECK(shows_no_prime(eg_unstack(x, 3, 0, parts)));
        CHECK(shows_no_prime(eg_einsum("ab,bc->ac", (eg_tensor *[]){y, y}, 2) != NULL));
        CHECK(shows_no_prime(eg_einsum("aa->a", &y, 1) != NULL));
        CHECK(shows_no_prime(eg_call(reshape, x) != NULL));
        CHECK(shows_no_prime(eg_call(dense, eg_transpose(x, .perm = EG_AXES(0, 2, 1))) != NULL));
        CHECK(shows_no_prime(eg_call(grouped, eg_transpose(y)) != NULL));
        CHECK(shows_no_prime(eg_conv1d(eg_transpose(x, .perm = EG_AXES(0, 2, 1)),
                                       eg_ones(EG_FLOAT32, EG_SHAPE(2, 3, 2))) != NULL));
        CHECK(shows_no_prime(eg_slice(y, EG_SHAPE(n + 1, 0), EG_SHAPE(1, 4)) != NULL));
        CHECK(shows_no_prime(eg_index(y, -n - 1) != NULL));
        CHECK(shows_no_prime(eg_pad(y, EG_PADS(0, 0, n, 0), .mode = EG_PAD_REFLECT) != NULL));
        CHECK(shows_no_prime(eg_top_k(y, n, NULL) != NULL));
        CHECK(shows_no_prime(eg_one_hot(eg_cast(y, EG_INT32), -n) != NULL));
        CHECK(shows_no_prime(eg_repeat(y, -n, 0) != NULL));
        CHECK(shows_no_prime(eg_constant(EG_SHAPE(n), 1, 2) != NULL));
    }
    CHECK(shows_no_prime(eg_matmul(x, y) != NULL));
    CHECK(shows_no_prime(eg_broadcast_to(y, eg_shape_of(x)) != NULL));
    CHECK(shows_no_prime(eg_slice(y, eg_shape_of(x), eg_shape_of(x)) != NULL));
    CHECK(shows_no_prime(eg_reshape(y, eg_shape_of(x)) != NULL));
    CHECK(shows_no_prime(eg_tile(y, eg_shape_of(x)) != NULL));
    CHECK(!eg_index(eg_ones(EG_FLOAT32, EG_SHAPE(3)), 1234567) && says("eg_index: 1234567 is out of range", NULL));
    eg_layer_release(dense);
    eg_layer_release(reshape);
    eg_layer_release(grouped);
    eg_graph_release(g);
}
static bool sums_with(eg_tensor *const *in, eg_tensor **out, void *user) {
    return (out[0] = eg_add(in[0], eg_reduce_sum(*(eg_tensor *const *)user))) != NULL;
}
static bool same(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_identity(in[0])) != NULL;
}
TEST(a_tensor_without_elements_is_read_first_by_a_body) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y, *none, *behind, *out[2];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        none = eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2));
        REQUIRE(eg_cond(eg_greater(x, 0), sums_with, same, &none, &x, 1, &y, 1));
        REQUIRE((behind = eg_concat(EG_TENSORS(none, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))), 0)) != NULL);
    }
    eg_session *s = eg_session_new(g);
    for (int i = -1; i < 2; i++) {
        const eg_feed feed = {x, eg_scalar(i)};
        eg_tensor *const fetches[] = {y, behind};
        REQUIRE(eg_session_run(s, &feed, 1, fetches, 2, out));
        CHECK_NEAR(eg_item(out[0]), i, 0);
        CHECK_TENSOR(out[1], 0, 1, 1);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
static bool in_sixes(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_reshape(in[0], EG_SHAPE(-1, 6))) != NULL;
}
// What no length tells is done by the host, whose results say how long they are.
TEST(a_reshape_that_fits_some_runs_says_what_to_do) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y = NULL, *mean, *slope, *out[3];
    const eg_spec sixes = {EG_FLOAT32, EG_SHAPE(-3, 6)};
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2), "x");
        CHECK(!eg_reshape(x, EG_SHAPE(-1, 6)));
        CHECK(says("eg_reshape: float32 [?, ?] 'x' has ? elements, which do not fill shape [?, 6]; let an "
                   "eg_host_call do it", "graphs.c:"));
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        REQUIRE(eg_host_call(in_sixes, NULL, &x, 1, &y, 1, .differentiable = true, .results = &sixes));
        mean = eg_div(eg_reduce_sum(eg_square(y)), (double)eg_dim(y, 0));
        REQUIRE((slope = eg_tape_gradient(tape, mean, x)) != NULL);
    }
    eg_session *s = eg_session_new(g);
    eg_tensor *const fetches[] = {y, mean, slope};
    for (int n = 1; n < 4; n++) {
        const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(2 * n, 3))};
        REQUIRE(eg_session_run(s, &feed, 1, fetches, 3, out));
        CHECK_INT(eg_dim(out[0], 0), n);
        CHECK_NEAR(eg_item(out[1]), 6, 0);
        CHECK_INT(eg_dim(out[2], 0), 2 * n);
        CHECK_NEAR(eg_item(eg_reduce_max(out[2])), 2.0 / n, 1e-6);
    }
    const eg_feed five = {x, eg_ones(EG_FLOAT32, EG_SHAPE(5, 1))};
    CHECK(!eg_session_run(s, &five, 1, fetches, 3, out) && says("eg_reshape: float32 [5, 1]", "5 elements"));
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(nodes_are_found_by_their_names) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        EG_SCOPE;
        eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        eg_tensor *w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), "w");
        eg_tensor *y = eg_matmul(x, w);
        CHECK(!eg_add(y, eg_ones(EG_FLOAT32, EG_SHAPE(2, 3))) && says("float32 [?, 1] (from eg_matmul)", NULL));
        CHECK(eg_graph_name(y, "y") == y && eg_graph_name(y, "also y") == y);
        CHECK_STR(eg_name_of(y), "y");
        CHECK(!eg_matmul(y, eg_ones(EG_FLOAT32, EG_SHAPE(2, 3))) && says("float32 [?, 1] 'y'", NULL));
        CHECK(!eg_graph_name(y, "x") && says("a node 'x' already", NULL));
        CHECK(!eg_graph_name(eg_number(1), "one") && says("is no node of the graph", NULL));
        eg_release(eg_variable(eg_scalar(1), "twin"));
        eg_release(eg_variable(eg_scalar(2), "twin"));
        eg_release(w);
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    eg_feed feed = {eg_graph_node(g, "x"), eg_full(EG_FLOAT32, EG_SHAPE(3, 2), 2)};
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, eg_graph_node(g, "y"), &feed, 1))), 12, 0);
    eg_assign(eg_session_variable(s, eg_graph_node(g, "w")), eg_full(EG_FLOAT32, EG_SHAPE(2, 1), 3));
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, eg_graph_node(g, "also y"), &feed, 1))), 36, 0);
    eg_tensor *more;
    {
        EG_GRAPH(g);                                               // a graph may grow
        more = eg_assign_sub(eg_graph_node(g, "w"), eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)));
    }
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, more, NULL, 0))), 4, 0);
    feed.node = eg_graph_node(g, "y");
    CHECK(!eg_add(feed.node, 1) && says("float32 [?, 1] 'y' is a node of a graph", NULL));
    feed.value = eg_ones(EG_FLOAT32, EG_SHAPE(3, 2));
    CHECK(!eg_session_eval(s, eg_graph_node(g, "also y"), &feed, 1) &&
          says("the node 'also y' (float32 [?, 1])", NULL));
    feed.value = eg_ones(EG_FLOAT32, EG_SHAPE(3, 1));
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, eg_graph_node(g, "also y"), &feed, 1))), 3, 0);
    CHECK(!eg_graph_node(g, "z") && says("0 nodes of the graph have the name 'z'", NULL));
    CHECK(!eg_graph_node(g, "twin") && says("2 nodes", "'twin'"));
    CHECK(!eg_graph_name(feed.node, "late") && says("no graph is being built", NULL));
    eg_session_release(s);
    eg_graph_release(g);
}
// ---- eg_cond and eg_while, whose bodies are nodes too

typedef struct flow { eg_tensor *w, *count; } flow;
static bool rises(eg_tensor *const *in, eg_tensor **out, void *user) {
    const flow *f = (const flow *)user;
    out[0] = eg_mul(eg_square(in[0]), f->w);
    return out[0] && (!f->count || eg_assign_add(f->count, 1));
}
static bool falls(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_negative(eg_exp(in[0]))) != NULL;
}
static bool halves(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(in[0], 0.5)) != NULL;
}
static bool is_small(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_less(eg_reduce_sum(eg_square(in[0])), 100)) != NULL;
}
static bool grows(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(in[0], ((const flow *)user)->w);
    out[1] = eg_add(in[1], 1);
    return out[0] && out[1];
}
static eg_tensor *chosen(eg_tensor *x, flow *f) {
    eg_tensor *y = NULL;
    return eg_cond(eg_greater(eg_reduce_sum(x), 0), rises, falls, f, &x, 1, &y, 1) ? eg_mul(y, 3) : NULL;
}
static eg_tensor *grown(eg_tensor *x, flow *f) {
    eg_tensor *s[] = {x, eg_scalar_of(EG_INT32, 0)};
    return eg_while(is_small, grows, f, s, s, 2, .max_steps = 50) ? eg_add(s[0], eg_cast(s[1], EG_FLOAT64)) : NULL;
}
// A branch that takes gradients through another branch.
static bool slopes(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tensor *y = chosen(in[0], (flow *)user);
    return (out[0] = eg_tape_gradient(tape, y, in[0])) != NULL;
}
static eg_tensor *nested(eg_tensor *x, flow *f) {
    eg_tensor *y = NULL;
    return eg_cond(eg_less(eg_reduce_max(x), 2), slopes, halves, f, &x, 1, &y, 1) ? y : NULL;
}
static eg_tensor *flowed(eg_tensor *x, flow *f, int which) {
    return which == 0 ? chosen(x, f) : which == 1 ? grown(x, f) : nested(x, f);
}
// d[0]: with respect to x, d[1]: to w, d[2]: of the sum of d[0]'s squares to x; each may be NULL.
static bool flow_slopes(eg_tensor *x, flow *f, int which, eg_tensor **d) {
    eg_tape *outer = eg_tape_begin();
    eg_tape_watch(outer, x);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = flowed(x, f, which), *of[2];
    of[0] = x;
    of[1] = f->w;
    if (!y || !eg_tape_gradients(tape, y, of, 2, d) || !d[0]) return false;
    d[2] = eg_tape_gradient(outer, eg_reduce_sum(eg_square(d[0])), x);
    return true;
}
static bool flow_same(eg_tensor *a, eg_tensor *b) {         // b NULL: a is 0
    if (a && !b) return eg_item(eg_reduce_max(eg_abs(a))) == 0;
    return a && eg_size(a) == eg_size(b) && !memcmp(eg_data(a), eg_data(b), (size_t)eg_size(a) * 8);
}
TEST(branches_and_loops_are_nodes) {
    EG_SCOPE;
    flow f = {eg_variable(eg_scalar_of(EG_FLOAT64, 1.5), "w"), NULL};
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y[3], *d[3][3], *fetches[12], *out[12], *expected[3];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(-1), "x");
        for (int k = 0; k < 3; k++) {
            REQUIRE((y[k] = flowed(x, &f, k)) && flow_slopes(x, &f, k, d[k]) && d[k][2]);
            fetches[4 * k] = y[k];
            for (int i = 0; i < 3; i++) fetches[4 * k + 1 + i] = d[k][i] ? d[k][i] : y[k];
        }
    }
    eg_session *s = eg_session_new(g);
    for (int i = 0; i < 24; i++) {
        EG_SCOPE;
        const int n = 1 + i / 2 % 3;
        const double sign = i % 2 ? -1 : 1;
        eg_tensor *some = eg_random_uniform(EG_SHAPE(n), .dtype = EG_FLOAT64);
        const eg_feed feed = {x, eg_mul(eg_add(some, 0.3 + i % 4), sign)};
        REQUIRE(eg_session_run(s, &feed, 1, fetches, 12, out));
        for (int k = 0; k < 3; k++) {
            CHECK(flow_same(out[4 * k], flowed(feed.value, &f, k)));
            REQUIRE(flow_slopes(feed.value, &f, k, expected));
            for (int j = 0; j < 3; j++)
                if (d[k][j]) CHECK(flow_same(out[4 * k + 1 + j], expected[j]));
        }
    }
    CHECK(!eg_function_reason(eg_session_function(s)));
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(f.w);
}
static bool keeps_inner(eg_tensor *const *in, eg_tensor **out, void *user) {
    *(eg_tensor **)user = eg_retain(eg_mul(in[0], 2));
    return (out[0] = in[0]) != NULL;
}
static bool other_shape(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_reduce_sum(in[0])) != NULL;
}
static bool makes_a_variable(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *v = eg_variable(in[0], "inner");
    out[0] = in[0];
    eg_release(v);
    return true;
}
TEST(a_branch_runs_alone_and_ends_with_its_outputs) {
    EG_SCOPE;
    flow f = {eg_variable(eg_scalar(1.5), "w"), NULL};
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *z, *inner = NULL, *y;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
        f.count = eg_variable(eg_scalar(0), "count");
        z = chosen(x, &f);
        eg_tensor *yes = eg_greater(eg_reduce_sum(x), 0);
        CHECK(!eg_cond(x, rises, falls, &f, &x, 1, &y, 1) && says("eg_cond: the condition is float32 [2]", NULL));
        CHECK(!eg_cond(yes, halves, other_shape, &f, &x, 1, &y, 1) &&
              says("eg_cond: output 0 of the function of true is float32 [2]", "float32 []"));
        CHECK(eg_cond(yes, keeps_inner, halves, (void *)&inner, &x, 1, &y, 1));
        CHECK(!eg_add(inner, 1) && says("computed in a body of eg_cond or eg_while", NULL));
        CHECK(!eg_cond(yes, makes_a_variable, halves, NULL, &x, 1, &y, 1) && says("'inner' is made in a body", NULL));
        CHECK(!eg_while(is_small, other_shape, NULL, &x, &y, 1) && says("eg_while: tensor 0 of the state", NULL));
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    for (int i = 0; i < 6; i++) {
        const eg_feed feed = {x, eg_full(EG_FLOAT32, EG_SHAPE(2), i % 2 ? 1 : -1)};
        CHECK(eg_session_eval(s, z, &feed, 1));
    }
    CHECK_NEAR(eg_item(eg_session_eval(s, f.count, NULL, 0)), 3, 0);   // the branch that is not taken assigns nothing
    CHECK(!eg_session_eval(s, inner, NULL, 0) && says("is computed in a body of eg_cond or eg_while", NULL));
    eg_session_release(s);
    eg_release(inner);
    eg_graph_release(g);
    eg_release(f.w);
    eg_release(f.count);
}
static bool counts(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in, (void)out;
    return eg_assign_add(((const flow *)user)->count, 1) != NULL;
}
static bool gives_nothing(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in, (void)out, (void)user;
    return true;
}
static bool counts_the_positive(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_add(in[0], 1);
    return out[0] && eg_cond(eg_greater(eg_reduce_sum(in[0]), 0), counts, gives_nothing, user, in, 1, NULL, 0);
}
// Nothing could name it in a session; in a body it runs with that body.
TEST(a_branch_without_outputs_stands_in_a_body) {
    EG_SCOPE;
    flow f = {NULL, NULL};
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y = NULL;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
        f.count = eg_variable(eg_scalar(0), "count");
        CHECK(!eg_cond(eg_greater(eg_reduce_sum(x), 0), counts, gives_nothing, &f, &x, 1, NULL, 0) &&
              says("eg_cond: in a graph it needs an output", NULL));
        REQUIRE(eg_while(is_small, counts_the_positive, &f, &x, &y, 1));
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    const eg_feed feed = {x, eg_full(EG_FLOAT32, EG_SHAPE(2), -3)};
    CHECK_NEAR(eg_item(eg_reduce_max(eg_session_eval(s, y, &feed, 1))), 8, 0);
    CHECK_NEAR(eg_item(eg_session_eval(s, f.count, NULL, 0)), 7, 0);         // from 1 to 7
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(f.count);
}
static bool one_row(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_add(in[0], in[1])) != NULL;
}
TEST(a_scan_over_an_open_length_says_what_to_do) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *whole, *sum, *out;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        whole = eg_placeholder(EG_FLOAT32, EG_SHAPE(3, 2), "whole");
        eg_tensor *zero = eg_zeros(EG_FLOAT32, EG_SHAPE(2));
        CHECK(!eg_scan(one_row, NULL, &zero, &out, 1, &x, 1, NULL, 0) && says("eg_scan: axis 0 of float32 [?, 2]",
                                                                             "eg_while"));
        CHECK(!eg_scan(one_row, NULL, &zero, &out, 1, NULL, 0, NULL, 0, .length = eg_dim(x, 0)) &&
              says("eg_scan: .length is an open dimension", "eg_while"));
        REQUIRE(eg_scan(one_row, NULL, &zero, &sum, 1, &whole, 1, NULL, 0));
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {whole, eg_constant(EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6)};
    CHECK_TENSOR(eg_session_eval(s, sum, &feed, 1), 0, 9, 12);
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(a_checkpoint_serves_a_session_and_eager_code) {
    EG_SCOPE;
    const char *prefix = test_temp("graph_checkpoint");
    eg_graph *g = eg_graph_new();
    eg_optimizer *adam = eg_adam(.learning_rate = 0.125), *eager_adam = eg_adam(.learning_rate = 0.125);
    eg_tensor *w, *train, *v = eg_variable(eg_scalar(4), "w");
    {
        EG_GRAPH(g);
        w = eg_variable(eg_scalar(4), "w");
        eg_tape *tape = eg_tape_begin();
        eg_tensor *grad = eg_tape_gradient(tape, eg_square(w), w);
        train = eg_apply_gradients(adam, &grad, &w, 1) ? eg_graph_update() : NULL;
    }
    eg_session *s = eg_session_new(g), *other = eg_session_new(g);
    CHECK(!eg_session_variable(s, w) && says("variable 'w'", "eg_session_initialize"));
    CHECK(!eg_session_variable(s, train) && says("is no variable", NULL));
    CHECK(eg_session_initialize(s, NULL, 0) && eg_session_initialize(other, NULL, 0));
    for (int i = 0; i < 5; i++) CHECK(eg_session_eval(s, train, NULL, 0));
    eg_checkpoint *written = eg_checkpoint_new(), *eagerly = eg_checkpoint_new(), *there = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(written, "w", eg_session_variable(s, w)));
    CHECK(eg_checkpoint_track_optimizer(written, "adam", eg_session_optimizer(s, adam)));
    CHECK(eg_checkpoint_track(eagerly, "w", v) && eg_checkpoint_track_optimizer(eagerly, "adam", eager_adam));
    CHECK(eg_checkpoint_track(there, "w", eg_session_variable(other, w)));
    CHECK(eg_checkpoint_track_optimizer(there, "adam", eg_session_optimizer(other, adam)));
    const char *path = eg_checkpoint_save(written, prefix);
    REQUIRE(path && eg_checkpoint_restore(eagerly, path));
    CHECK_NEAR(eg_item(v), eg_item(eg_session_eval(s, w, NULL, 0)), 0);
    for (int i = 0; i < 5; i++) {
        eg_tape *tape = eg_tape_begin();
        eg_tensor *grad = eg_tape_gradient(tape, eg_square(v), v);
        CHECK(eg_apply_gradients(eager_adam, &grad, &v, 1) && eg_session_eval(s, train, NULL, 0));
        CHECK_NEAR(eg_item(v), eg_item(eg_session_eval(s, w, NULL, 0)), 0);
    }
    path = eg_checkpoint_save(eagerly, prefix);
    REQUIRE(path && eg_checkpoint_restore(there, path));
    CHECK(eg_checkpoint_assert_consumed(eagerly));
    CHECK_INT(eg_item_int(eg_session_eval(other, train, NULL, 0)), 11);
    CHECK(eg_session_eval(s, train, NULL, 0));
    CHECK_NEAR(eg_item(eg_session_eval(other, w, NULL, 0)), eg_item(eg_session_eval(s, w, NULL, 0)), 0);
    eg_checkpoint_release(written);
    eg_checkpoint_release(eagerly);
    eg_checkpoint_release(there);
    eg_session_release(s);
    eg_session_release(other);
    eg_graph_release(g);
    eg_optimizer_release(adam);
    eg_optimizer_release(eager_adam);
    eg_release(w);
    eg_release(v);
}

// A graph with a variable, a gradient, an update, an assignment and a draw, built and run; false with an error.
static bool all_of_it(void) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_optimizer *adam = eg_adam();
    eg_session *s = NULL;
    eg_tensor *x = NULL, *w = NULL, *train = NULL, *count = NULL, *out[3] = { NULL };
    if (g && adam && eg_graph_begin(g)) {
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        w = eg_variable(eg_random_normal(EG_SHAPE(2, 1)), "w");
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_mean(eg_square(eg_add(eg_matmul(x, w), 1)));
        eg_tensor *grad = eg_tape_gradient(tape, loss, w);
        if (grad && eg_apply_gradients(adam, &grad, &w, 1)) train = eg_graph_update();
        if (train && eg_graph_after_begin(train)) count = eg_assign_add(w, eg_full(EG_FLOAT32, EG_SHAPE(2, 1), 2));
        if (count && eg_graph_name(count, "count")) count = eg_group(&count, 1);
        if (count) count = eg_graph_node(g, "count");
        eg_graph_end(g);
    }
    if (count) s = eg_session_new(g);
    bool ok = s && eg_session_initialize(s, NULL, 0);
    for (int i = 0; i < 3 && ok; i++) {
        EG_SCOPE;
        const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(i + 1, 2))};
        ok = eg_session_run(s, &feed, 1, (eg_tensor *[]){train, count, w}, 3, out);
    }
    eg_session_release(s);
    eg_graph_release(g);
    eg_optimizer_release(adam);
    eg_release(w);
    return ok;
}
static bool flows(void) {
    EG_SCOPE;
    flow f = {eg_variable(eg_scalar_of(EG_FLOAT64, 1.5), "w"), NULL};
    eg_graph *g = f.w ? eg_graph_new() : NULL;
    eg_session *s = NULL;
    eg_tensor *x = NULL, *y = NULL, *d[3] = { NULL };
    bool ok = g && eg_graph_begin(g);
    if (ok) {
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(2), "x");
        y = x ? grown(x, &f) : NULL;
        ok = y && flow_slopes(x, &f, 0, d) && !eg_error();
        eg_graph_end(g);
    }
    ok = ok && (s = eg_session_new(g)) != NULL;
    for (int i = 0; i < 3 && ok; i++) {
        EG_SCOPE;
        eg_tensor *out[2];
        const eg_feed feed = {x, eg_full(EG_FLOAT64, EG_SHAPE(2), i - 1)};
        ok = feed.value && eg_session_run(s, &feed, 1, (eg_tensor *[]){y, d[0]}, 2, out);
    }
    ok = ok && eg_function_save(eg_session_function(s), test_temp("flows"));
    eg_function *loaded = ok ? eg_function_load(test_temp("flows")) : NULL;
    ok = ok && loaded;
    eg_function_release(loaded);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(f.w);
    return ok;
}
TEST(every_allocation_may_fail) {
    if (!test_on_host) SKIP("the device keeps memory of its own");
    faults_sweep(all_of_it);
    faults_sweep(flows);
}
