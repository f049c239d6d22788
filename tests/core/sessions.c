// Graphs and sessions, continued: open dimensions, iterators, a program's own ops, devices, the thread's session, many
// threads. core/graphs.c has the rest.
#include "faults.h"
#include "examples/digits.h"
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

static bool says(const char *a, const char *b) {
    const char *message = eg_error_message();
    const bool ok = strstr(message, a) && (!b || strstr(message, b));
    if (!ok) printf("    %s\n", message);
    eg_error_clear();
    return ok;
}
static bool same(eg_tensor *a, eg_tensor *b) {
    return a && b && eg_size(a) == eg_size(b) && eg_dtype_of(a) == eg_dtype_of(b) &&
           !memcmp(eg_data(a), eg_data(b), (size_t)(eg_size(a) * eg_dtype_size(eg_dtype_of(a))));
}

// ---- open dimensions

TEST(an_open_dimension_is_shown_as_a_question_mark) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *flat;
    const int64_t bytes = eg_memory().device_bytes;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, 3), "x");
        CHECK_INT(eg_memory().device_bytes, bytes);          // a node has no memory
        CHECK(!eg_matmul(x, eg_ones(EG_FLOAT32, EG_SHAPE(5, 5))) &&
              says("[?, ?, 3] x [5, 5] (3 against 5): float32 [?, ?, 3] 'x'", NULL));
        CHECK(!eg_add(x, eg_ones(EG_FLOAT32, EG_SHAPE(7, 3))) && says("(axis -2: ? against 7)", NULL));
        flat = eg_reshape(eg_concat(EG_TENSORS(x, x), 1), EG_SHAPE(-1));
        CHECK(!eg_reshape(flat, EG_SHAPE(2, 7)) && says("float32 [?]", NULL));
        eg_data(x);
        CHECK(says("eg_data: float32 [?, ?, 3]", "eg_session_run"));
        char text[EG_SHAPE_TEXT];
        CHECK_STR(eg_shape_text(eg_shape_of(x), text), "(?, ?, 3)");
        CHECK_STR(eg_shape_text(eg_shape_of(flat), text), "(?,)");
    }
    eg_print(x);
    CHECK(says("eg_print: float32 [?, ?, 3] 'x' is a node of a graph", "eg_session_run"));
    CHECK(isnan(eg_item(flat)) && says("eg_item: float32 [?]", NULL));
    eg_session *s = eg_session_new(g);
    eg_feed feed = {flat, eg_ones(EG_FLOAT32, EG_SHAPE(3, 3))};
    CHECK(!eg_session_eval(s, flat, &feed, 1) &&
          says("feed 0 is float32 [3, 3]", "the node of 'eg_reshape' (float32 [?])"));
    eg_session_release(s);
    eg_graph_release(g);
    // The program's own tensors keep their numbers.
    CHECK(!eg_reshape(eg_zeros(EG_UINT8, EG_SHAPE(1011641)), EG_SHAPE(5)) && says("[1011641]", NULL));
}
TEST(numbers_that_come_of_open_dimensions) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *part, *area, *filled, *drawn, *less, *out[5];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(-1, -2), "x");
        const double n = (double)eg_dim(x, 0), m = (double)eg_dim(x, 1);
        part = eg_mul(x, 3 / n);                                              // c / p
        area = eg_mul(x, n * m);                                              // a p q
        filled = eg_full(EG_FLOAT64, EG_SHAPE(eg_dim(x, 0) + 2), 1 / m);      // a p + b
        drawn = eg_random_integers(EG_SHAPE(100), 0, eg_dim(x, 1));
        less = eg_mul(x, (n - 1) / n);                                        // (p - 1) / p
        CHECK(!eg_mul(x, 1 / sqrt(n)) && says("eg_mul: the number", "neither a p + b nor a p q nor c / p"));
        CHECK(!eg_mul(x, sqrt(3 * n)) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, log(n)) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, n / (n - 1)) && says("eg_mul: the number", NULL));
        CHECK(!eg_full(EG_FLOAT64, EG_SHAPE(2), sqrt(m)) && says("eg_full: the number", NULL));
        CHECK(!eg_mul(x, (double)((eg_dim(x, 0) - 1) / 2)) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, (n + 1) / 7) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, eg_scalar_of(EG_FLOAT64, n)) && says("pass a plain number instead", NULL));
        CHECK(eg_mul(x, 1000000) && eg_mul(x, 0.001) && eg_mul(x, 0.7071067811865476) && eg_mul(x, 1.0001) &&
              eg_mul(x, 500000) && eg_mul(x, 1e-7) && eg_reshape(x, EG_SHAPE(-1)));
    }
    eg_session *s = eg_session_new(g);
    eg_tensor *fetches[] = {part, area, filled, drawn, less};
    for (int n = 2; n < 6; n++) {
        EG_SCOPE;
        const int m = 9 - n;
        eg_feed feed = {x, eg_full(EG_FLOAT64, EG_SHAPE(n, m), 2)};
        REQUIRE(eg_session_run(s, &feed, 1, fetches, 5, out));
        CHECK_NEAR(eg_item(eg_reduce_max(out[0])), 2 * (3.0 / n), 0);
        CHECK_NEAR(eg_item(eg_reduce_max(out[1])), 2 * n * m, 0);
        CHECK_INT(eg_size(out[2]), n + 2);
        CHECK_NEAR(eg_item(eg_reduce_max(out[2])), 1.0 / m, 0);
        CHECK(eg_item_int(eg_reduce_max(out[3])) == m - 1);
        CHECK_NEAR(eg_item(eg_reduce_max(out[4])), 2 * ((double)(n - 1) / n), 0);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
// Numbers of C's that come of the lengths of x, each computed in one way.
enum { WAYS = 16 };
static double way(int k, double n, double m, double size) {
    switch (k) {
    case 0: return 1 / size;
    case 1: return 0.1 / n;
    case 2: return -n;
    case 3: return n / 2;
    case 4: return 2 / (n * m);
    case 5: return size;
    case 6: return (n - 1) / n;
    case 7: return m / n;
    case 8: return 1 / (10 * m);
    case 9: return -1.5 / n;
    case 10: return m + 10;
    case 11: return 3 * n - 20;
    case 12: return 1 / (n * n * m);
    case 13: return n / 3;
    case 14: return 7 * n * m;
    default: return 0.25 * m;
    }
}
static void check_ways(eg_shape open, eg_shape a, eg_shape b) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *nodes[WAYS + 1], *out[WAYS + 1];
    {
        EG_GRAPH(g);
        REQUIRE((x = eg_placeholder(EG_FLOAT64, open, "x")) != NULL);
        const double n = (double)eg_dim(x, 0), m = (double)eg_dim(x, 1), size = (double)eg_size(x);
        for (int k = 0; k < WAYS; k++) REQUIRE((nodes[k] = eg_mul(eg_ones_like(x), way(k, n, m, size))) != NULL);
        nodes[WAYS] = eg_reshape(eg_concat(EG_TENSORS(x, x), 1), EG_SHAPE(-1));
        CHECK(!eg_mul(x, 1 / sqrt(size)) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, sqrt(3 * n)) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, 1 / (n - 1)) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, floor(n / 2)) && says("eg_mul: the number", NULL));
        // numbers of the program's own
        const double own[] = {1e-3, 1e-7, 0.7071067811865476, 3.141592653589793, 1.0 / 255, 1.0 / 784, 0.044715, 1.0001,
                              511.0 / 512, -1e9, 1e30, 50257, 30522, 100352, 65536, 1e6, 0.37};
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) CHECK(eg_mul(x, own[i]));
    }
    eg_session *s = eg_session_new(g);
    for (int i = 0; i < 2; i++) {
        const eg_feed feed = {x, eg_ones(EG_FLOAT64, i ? b : a)};
        REQUIRE(eg_session_run(s, &feed, 1, nodes, WAYS + 1, out));
        const double n = (double)eg_dim(feed.value, 0), m = (double)eg_dim(feed.value, 1);
        for (int k = 0; k < WAYS; k++)
            CHECK_NEAR(eg_item(eg_reduce_max(out[k])), way(k, n, m, (double)eg_size(feed.value)), 0);
        CHECK_INT(eg_size(out[WAYS]), 2 * eg_size(feed.value));
    }
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(numbers_of_one_to_four_open_dimensions) {
    check_ways(EG_SHAPE(-1, -2), EG_SHAPE(2, 4), EG_SHAPE(4, 16));
    check_ways(EG_SHAPE(-1, -2, 8), EG_SHAPE(2, 4, 8), EG_SHAPE(1, 2, 8));
    check_ways(EG_SHAPE(-1, -2, -3, 3), EG_SHAPE(2, 4, 5, 3), EG_SHAPE(8, 1, 1, 3));
    check_ways(EG_SHAPE(-1, -1, -1, 512), EG_SHAPE(2, 2, 2, 512), EG_SHAPE(4, 4, 4, 512));
    check_ways(EG_SHAPE(-1, -2, -3, -4, 3), EG_SHAPE(2, 4, 3, 5, 3), EG_SHAPE(1, 2, 3, 4, 3));
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        CHECK(eg_placeholder(EG_INT32, EG_SHAPE(-1), "labels") &&
              eg_placeholder(EG_FLOAT64, EG_SHAPE(-1, -2, -3, 512), "pictures"));
        CHECK(!eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -4, -5, -6, -7, 64), "too many") &&
              says("eg_placeholder: a tensor of shape [?, ?, ?, ?, ?, 64] has more bytes than 64 bits count", NULL));
    }
    eg_graph_release(g);
}
// A network without a size, as for pictures of any: it trains with three open dimensions.
static eg_tensor *all_convolutions(eg_layer *l, eg_tensor *x, eg_tensor **grads) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_reduce_mean(eg_square(eg_call(l, x)));
    return eg_tape_gradients(tape, y, &x, 1, grads) ? y : NULL;
}
TEST(pictures_of_any_size_through_convolutions) {
    EG_SCOPE;
    eg_layer *l = eg_sequential(eg_layer_conv2d(64, 3, .strides = {2, 2}, .activation = EG_RELU),
                                eg_layer_conv2d(512, 3, .padding = EG_SAME), eg_layer_conv2d(3, 1));
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *fetches[2], *out[2], *expected[2];
    REQUIRE(eg_call(l, eg_ones(EG_FLOAT64, EG_SHAPE(1, 9, 9, 3))) != NULL);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(-1, -2, -3, 3), "x");
        REQUIRE((fetches[0] = all_convolutions(l, x, &fetches[1])) != NULL);
    }
    eg_session *s = eg_session_new(g);
    for (int n = 1; n < 4; n++) {
        EG_SCOPE;
        const eg_feed feed = {x, eg_cast(eg_random_normal(EG_SHAPE(n, 6 + 2 * n, 9, 3)), EG_FLOAT64)};
        REQUIRE(eg_session_run(s, &feed, 1, fetches, 2, out));
        expected[0] = all_convolutions(l, feed.value, &expected[1]);
        CHECK(same(out[0], expected[0]) && same(out[1], expected[1]));
    }
    eg_session_release(s);
    eg_graph_release(g);
    eg_layer_release(l);
}
TEST(a_mismatch_at_a_run_names_placeholder_and_op) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *z, *sum, *five, *line, *v, *nodes[2], *out;
    char written[40];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 4), "x");
        line = eg_conv1d(eg_reshape(x, EG_SHAPE(1, -1, 4)), eg_ones(EG_FLOAT32, EG_SHAPE(5, 4, 1)));
        v = eg_variable(eg_reduce_sum(x), "v");
        CHECK(says("eg_variable: the initial value of 'v' reads placeholder 'x'",
                   "eg_session_initialize feeds nothing"));
        z = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 4), "z");
        sum = eg_add(x, z);
        snprintf(written, sizeof written, "(at sessions.c:%d)", __LINE__ + 1);
        five = eg_identity(eg_slice(eg_identity(x), EG_SHAPE(0, 0), EG_SHAPE(5, 4)));
        CHECK(!eg_reshape(x, EG_SHAPE(3, 4)) && says("float32 [?, 4] 'x' has ? elements", "[3, 4]"));
    }
    eg_session *s = eg_session_new(g);
    eg_feed feeds[] = {{x, eg_ones(EG_FLOAT32, EG_SHAPE(3, 4))}, {z, eg_ones(EG_FLOAT32, EG_SHAPE(2, 4))}};
    nodes[0] = nodes[1] = five;
    CHECK(!eg_session_eval(s, five, feeds, 1) &&
          says("eg_slice: 5 elements from 0 on in steps of 1 do not lie inside axis 0",
               "; fed were placeholder 'x' (float32 [?, 4]) with [3, 4]"));
    CHECK(!eg_session_run(s, feeds, 1, nodes, 1, &out) && says("eg_slice: ", "placeholder 'x' (float32 [?, 4])"));
    CHECK(!eg_session_run(s, feeds, 1, nodes, 1, &out) && says("eg_slice: ", written));     // where it was written
    CHECK(!eg_session_eval(s, sum, feeds, 2) &&
          says("dimension 0 of what is fed for placeholder 'z' (float32 [?, 4]) is 2, but 3 in what is fed for "
               "placeholder 'x' (float32 [?, 4])", NULL));
    CHECK(!eg_session_run(s, feeds, 1, &line, 1, &out) &&
          says("eg_conv1d: a window of 5 does not fit", "placeholder 'x' (float32 [?, 4])"));
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
}
// Layers made in a graph, over lengths that are open, beside the same layers called eagerly.
static eg_tensor *call_all(eg_layer **l, eg_tensor *sequence, eg_tensor *picture, eg_tensor *words, eg_tensor **out) {
    out[0] = eg_call(l[0], sequence);
    out[1] = eg_call(l[1], sequence);
    out[2] = eg_call(l[3], eg_call(l[2], words));
    out[3] = eg_call(l[4], picture);
    out[4] = eg_call(l[5], eg_call(l[6], picture, .training = true));
    out[5] = eg_call(l[7], picture);
    out[6] = eg_gather_nd(sequence, eg_constant_of(EG_INT32, EG_SHAPE(1, 2), 1, 1));
    out[7] = eg_call(l[8], sequence);
    return out[7];
}
TEST(layers_over_open_dimensions_give_eager_bits) {
    EG_SCOPE;
    enum { LAYERS = 9, OUT = 8 };
    eg_layer *l[LAYERS] = {
        eg_layer_lstm(4), eg_layer_bidirectional(eg_layer_gru(3, .return_sequences = true)),
        eg_layer_embedding(10, 4, .mask_zero = true), eg_layer_lstm(3), eg_layer_conv2d(3, 3, .strides = {2, 2}),
        eg_layer_max_pooling2d(), eg_layer_batch_normalization(),
        eg_layer_conv2d(2, 5, .strides = {3, 2}, .padding = EG_SAME),
        eg_layer_simple_rnn(2, .return_sequences = true) };
    eg_graph *g = eg_graph_new();
    eg_tensor *sequence, *picture, *words, *fetches[OUT], *out[OUT], *expected[OUT];
    // Built eagerly: the graph captures the weights.
    call_all(l, eg_ones(EG_FLOAT32, EG_SHAPE(2, 3, 5)), eg_ones(EG_FLOAT32, EG_SHAPE(2, 9, 9, 1)),
             eg_ones(EG_INT32, EG_SHAPE(2, 3)), expected);
    {
        EG_GRAPH(g);
        sequence = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, 5), "sequence");
        picture = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -3, -4, 1), "picture");
        words = eg_placeholder(EG_INT32, EG_SHAPE(-1, -2), "words");
        REQUIRE(call_all(l, sequence, picture, words, fetches));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 2; n < 7; n++) {
        EG_SCOPE;
        const eg_feed feeds[] = {{sequence, eg_random_normal(EG_SHAPE(n, n + 1, 5))},
                                 {picture, eg_random_normal(EG_SHAPE(n, 6 + n, 8 + n % 3, 1))},
                                 {words, eg_cast(eg_random_integers(EG_SHAPE(n, n + 1), 0, 10), EG_INT32)}};
        REQUIRE(eg_session_run(s, feeds, 3, fetches, OUT, out));
        call_all(l, feeds[0].value, feeds[1].value, feeds[2].value, expected);
        for (int i = 0; i < OUT; i++) CHECK(same(out[i], expected[i]));
    }
    eg_session_release(s);
    eg_graph_release(g);
    for (int i = 0; i < LAYERS; i++) eg_layer_release(l[i]);
}
// Their gradients: a graph can neither have nodes for each of an open number of steps, nor count T x T scores.
static bool steps_and_gradient(eg_layer *l, eg_tensor *x, eg_tensor **out) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    out[0] = eg_call(l, x);
    eg_tensor *sources[2] = {x, out[0] ? eg_layer_trainable_weights_list(l).tensors[0] : NULL};
    return out[0] && eg_tape_gradients(tape, eg_reduce_sum(eg_square(out[0])), sources, 2, out + 1);
}
static bool trained_and_gradient(eg_layer *l, eg_tensor *x, eg_tensor **out) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    out[0] = eg_call(l, x, .training = true);
    return out[0] && (out[1] = eg_tape_gradient(tape, eg_reduce_sum(eg_square(out[0])), x)) != NULL;
}
TEST(gradients_over_an_open_number_of_steps) {
    EG_SCOPE;
    enum { LAYERS = 6 };
    eg_layer *l[LAYERS] = { eg_layer_simple_rnn(3), eg_layer_lstm(3, .return_sequences = true), eg_layer_gru(2),
                            eg_layer_bidirectional(eg_layer_lstm(3)), eg_layer_multi_head_attention(2, 2),
                            eg_layer_multi_head_attention(2, 2, .causal = true) };
    eg_layer *by_steps = eg_layer_lstm(3, .activation = EG_RELU);
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *nodes[3 * LAYERS], *out[3 * LAYERS], *expected[3], *made = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3, 4));
    for (int k = 0; k < LAYERS; k++) REQUIRE(eg_call(l[k], made));
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, 4), "x");
        for (int k = 0; k < LAYERS; k++) REQUIRE(steps_and_gradient(l[k], x, nodes + 3 * k));
        CHECK(!eg_call(by_steps, x) && says("eg_call: a recurrent layer whose steps are single ops", "whole length"));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 1; n < 5; n++) {
        EG_SCOPE;
        const eg_feed feed = {x, eg_random_normal(EG_SHAPE(n, 7 - n, 4))};
        REQUIRE(eg_session_run(s, &feed, 1, nodes, 3 * LAYERS, out));
        for (int k = 0; k < LAYERS; k++) {
            REQUIRE(steps_and_gradient(l[k], feed.value, expected));
            for (int i = 0; i < 3; i++) CHECK(same(out[3 * k + i], expected[i]));
        }
    }
    eg_session_release(s);
    eg_graph_release(g);
    for (int k = 0; k < LAYERS; k++) eg_layer_release(l[k]);
    eg_layer_release(by_steps);
}
// Attention in training: one op with eager code's drops, in a graph, and in a file of it.
TEST(attention_with_dropout_in_a_graph) {
    EG_SCOPE;
    enum { LAYERS = 3 };
    eg_layer *l[LAYERS] = { eg_layer_multi_head_attention(2, 4, .dropout = 0.2),
                            eg_layer_multi_head_attention(4, 3, .dropout = 0.5, .causal = true, .kv_heads = 2),
                            eg_sequential(eg_layer_masking(0), eg_layer_multi_head_attention(2, 4, .dropout = 0.4)) };
    for (int k = 0; k < LAYERS; k++) REQUIRE(eg_call(l[k], eg_ones(EG_FLOAT32, EG_SHAPE(2, 3, 4))));
    for (int whole = 0; whole < 2; whole++) {
        eg_graph *g = eg_graph_new();
        eg_tensor *x, *nodes[2 * LAYERS], *out[2 * LAYERS], *again[2 * LAYERS];
        {
            EG_GRAPH(g);
            x = eg_placeholder(EG_FLOAT32, whole ? EG_SHAPE(3, 5, 4) : EG_SHAPE(-1, -2, 4), "x");
            for (int k = 0; k < LAYERS; k++) REQUIRE(trained_and_gradient(l[k], x, nodes + 2 * k));
        }
        eg_session *s = eg_session_new(g);
        eg_function *f = NULL;
        for (int i = 0; i < 5; i++) {
            EG_SCOPE;
            const eg_feed feed = {x, eg_random_normal(whole ? EG_SHAPE(3, 5, 4) : EG_SHAPE(1 + i % 3, 2 + 9 * i, 4))};
            const eg_random_state before = eg_random_get_state();
            REQUIRE(eg_session_run(s, &feed, 1, nodes, 2 * LAYERS, out));
            const uint64_t after = eg_random_get_state().counter;
            if (!f) {
                REQUIRE(eg_function_save(eg_session_function(s), test_temp("drops")));
                REQUIRE((f = eg_function_load(test_temp("drops"))) != NULL);
            }
            eg_random_set_state(before);
            REQUIRE(eg_function_call(f, &feed.value, 1, again, 2 * LAYERS));
            CHECK(eg_random_get_state().counter == after && after > before.counter);
            eg_random_set_state(before);
            for (int k = 0; k < LAYERS; k++) {
                eg_tensor *eager[2];
                REQUIRE(trained_and_gradient(l[k], feed.value, eager));
                for (int j = 0; j < 2; j++)
                    CHECK(same(out[2 * k + j], eager[j]) && same(again[2 * k + j], eager[j]));
            }
            CHECK(eg_random_get_state().counter == after);
        }
        eg_function_release(f);
        eg_session_release(s);
        eg_graph_release(g);
    }
    for (int k = 0; k < LAYERS; k++) eg_layer_release(l[k]);
}
TEST(a_recurrent_layer_made_in_a_graph_is_initialised_as_eagerly) {
    EG_SCOPE;
    eg_layer *eager = eg_layer_lstm(4), *written = eg_layer_lstm(4);
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, 3), "x");
        REQUIRE((y = eg_call(written, x)) != NULL);
    }
    eg_session *s = eg_session_new(g);
    eg_feed feed = {x, eg_random_normal(EG_SHAPE(2, 6, 3))};
    eg_seed(5);
    CHECK(eg_session_initialize(s, NULL, 0));
    eg_seed(5);
    eg_tensor *expected = eg_call(eager, feed.value);
    CHECK(same(eg_session_eval(s, y, &feed, 1), expected));
    eg_session_release(s);
    eg_graph_release(g);
    eg_layer_release(eager);
    eg_layer_release(written);
}

// ---- the thread's session

TEST(the_session_of_a_block_evaluates_nodes) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new(), *elsewhere = eg_graph_new();
    eg_tensor *x, *y, *count, *raise, *foreign;
    {
        EG_GRAPH(elsewhere);
        foreign = eg_add(eg_scalar(1), 2);
    }
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
        y = eg_mul(eg_constant(EG_SHAPE(2), 1, 2), 3);
        count = eg_variable(eg_scalar(0), "count");
        raise = eg_assign_add(count, 1);
    }
    eg_session *s = eg_session_new(g), *other = eg_session_new(g);
    {
        EG_SESSION(s);
        CHECK(eg_session_initialize(s, NULL, 0));
        float values[2];
        CHECK(eg_read_into(y, values, 2) && values[0] == 3 && values[1] == 6);
        CHECK(!eg_add(y, 1) && says("is a node of a graph", NULL));           // an op does not
        char text[80];
        CHECK(eg_format(y, text, sizeof text) > 0 && !strcmp(text, "[3. 6.]  shape=(2,) dtype=float32"));
        CHECK_NEAR(eg_item(raise), 1, 0);
        CHECK_NEAR(eg_item(raise), 2, 0);
        CHECK_NEAR(eg_item(count), 2, 0);                          // not what it was when it was read first
        char place[40];
        CHECK(isnan(eg_item(eg_graph_node(g, "x"))) &&
              says("eg_item: You must feed a value for placeholder 'x'", NULL));
        snprintf(place, sizeof place, "(at sessions.c:%d)", __LINE__ + 1);
        CHECK(!eg_data(x) && says("eg_data: You must feed a value for placeholder 'x'", place));
        snprintf(place, sizeof place, "(at sessions.c:%d)", __LINE__ + 1);
        CHECK(!eg_read_into(x, values, 2) && says("eg_read_into: You must feed a value for", place));
        CHECK(eg_item_int(x) == 0 && says("eg_item_int: You must feed a value for", NULL));
        CHECK(eg_format(x, text, sizeof text) < 0 && says("eg_format: You must feed a value for", NULL));
        CHECK(!eg_session_eval(s, x, NULL, 0) && says("eg_session_eval: You must feed a value for", NULL));
        CHECK(isnan(eg_item(foreign)) &&
              says("eg_item: operand 0, float32 [] (from eg_add), is no node of this session's graph", NULL));
        const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(2))};
        CHECK_TENSOR(eg_session_eval(NULL, x, &feed, 1), 0, 1, 1);
        {
            EG_SESSION(other);
            CHECK(isnan(eg_item(count)) && says("variable 'count'", "eg_session_initialize"));
        }
        CHECK_NEAR(eg_item(count), 2, 0);
    }
    CHECK(isnan(eg_item(count)) && says("is a node of a graph", "eg_session_run"));
    CHECK(!eg_session_eval(NULL, y, NULL, 0) && says("eg_session_eval", "NULL"));
    eg_session_release(s);
    eg_session_release(other);
    eg_graph_release(elsewhere);
    eg_graph_release(g);
    eg_release(count);
}

TEST(a_session_that_was_closed_is_an_error) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *y, *out;
    {
        EG_GRAPH(g);
        y = eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(2)), 1);
    }
    eg_session *s = eg_session_new(g);
    {
        EG_SESSION(s);
        CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, y, NULL, 0))), 4, 0);
        eg_session_release(s);
        CHECK(!eg_session_run(s, NULL, 0, &y, 1, &out) && says("the session was used after its last reference", NULL));
        CHECK(!eg_data(y) && says("eg_data: the session of EG_SESSION was used after its last reference", NULL));
    }
    eg_graph_release(g);
}

// ---- a softmax regression, fed

static eg_tensor *regression(eg_optimizer *sgd, eg_tensor *x, eg_tensor *labels, eg_tensor *W, eg_tensor *b) {
    eg_tensor *variables[] = {W, b}, *grads[2];
    eg_tape *tape = eg_tape_begin();
    eg_tensor *logits = eg_add(eg_matmul(eg_div(eg_cast(x, EG_FLOAT32), 255), W), b);
    eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, logits));
    return eg_tape_gradients(tape, loss, variables, 2, grads) && eg_apply_gradients(sgd, grads, variables, 2)
           ? loss : NULL;
}
// Digits for a softmax regression: MNIST's where EAGER_DATA has them, else patterns: digit d is a bright band in noise.
enum { MNIST_ROWS = 50, PATTERNS = 1500 };
static bool digits_of_mnist(digits *learn, digits *test) {
#ifdef EAGER_ZLIB
    char folder[4096];
    if (!test_data("mnist/t10k-labels-idx1-ubyte.gz")) return false;
    snprintf(folder, sizeof folder, "%s/mnist", getenv("EAGER_DATA"));
    const char *wrong = digits_read(folder, learn, test);
    CHECK_STR(wrong, NULL);
    return !wrong;
#else
    (void)learn, (void)test;
    return false;                                                  // the files are packed
#endif
}
static bool digits_of_bands(digits *d, int count) {
    if (!digits_allocate(d, count)) return false;
    for (int k = 0; k < count; k++) {
        d->labels[k] = (k * 7 + k / MNIST_ROWS) % 10;
        for (int p = 0; p < DIGITS_PIXELS; p++)
            d->pixels[k * DIGITS_PIXELS + p] =
                (unsigned char)((p / 78 == d->labels[k] ? 180 : 0) + (p * 31 + k * 17 + k / MNIST_ROWS * 13) % 64);
    }
    return true;
}
TEST(a_softmax_regression_is_fed_as_mnist_is) {
    EG_SCOPE;
    digits learn, held_out;
    const bool real = digits_of_mnist(&learn, &held_out);
    REQUIRE(real || (digits_of_bands(&learn, PATTERNS) && digits_of_bands(&held_out, 100)));
    eg_graph *g = eg_graph_new();
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.5), *eagerly = eg_sgd(.learning_rate = 0.5);
    eg_tensor *x, *labels, *W, *b, *loss, *train, *accuracy, *out[2];
    eg_tensor *w = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(DIGITS_PIXELS, 10)), "W"),
              *c = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "b");
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_UINT8, EG_SHAPE(-1, DIGITS_PIXELS), "x");
        labels = eg_placeholder(EG_INT32, EG_SHAPE(-1), "labels");
        W = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(DIGITS_PIXELS, 10)), "W");
        b = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "b");
        REQUIRE((loss = regression(sgd, x, labels, W, b)) != NULL);
        train = eg_graph_update();
        eg_tensor *logits = eg_add(eg_matmul(eg_div(eg_cast(x, EG_FLOAT32), 255), W), b);
        accuracy = eg_reduce_mean(eg_cast(eg_equal(eg_cast(eg_argmax(logits, .axis = 1), EG_INT32), labels),
                                          EG_FLOAT32));
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    double first = 0, last = 0;
    const int steps = (int)(learn.count / MNIST_ROWS);
    for (int i = 0; i < steps; i++) {
        EG_SCOPE;
        const int rows = i % 4 == 3 ? 20 : MNIST_ROWS;
        const eg_feed feeds[] = {
            {x, eg_from_data(EG_UINT8, EG_SHAPE(rows, DIGITS_PIXELS), learn.pixels + i * MNIST_ROWS * DIGITS_PIXELS)},
            {labels, eg_from_data(EG_INT32, EG_SHAPE(rows), learn.labels + i * MNIST_ROWS)}};
        REQUIRE(eg_session_run(s, feeds, 2, EG_TENSORS(loss, train), out));
        eg_tensor *expected = regression(eagerly, feeds[0].value, feeds[1].value, w, c);
        CHECK(same(out[0], expected));
        CHECK_INT(eg_item_int(out[1]), i + 1);
        last = eg_item(out[0]);
        if (i == 0) first = last;
    }
    CHECK_NEAR(first, log(10), 1e-6);
    CHECK(real || last < first / 4);
    const eg_feed test[] = {
        {x, eg_from_data(EG_UINT8, EG_SHAPE(held_out.count, DIGITS_PIXELS), held_out.pixels)},
        {labels, eg_from_data(EG_INT32, EG_SHAPE(held_out.count), held_out.labels)}};
    CHECK(eg_item(eg_session_eval(s, accuracy, test, 2)) > (real ? 0.85 : 0.99));
    CHECK(same(eg_session_variable(s, W), w) && same(eg_session_variable(s, b), c));
    eg_session_release(s);
    eg_graph_release(g);
    eg_optimizer_release(sgd);
    eg_optimizer_release(eagerly);
    eg_release(W);
    eg_release(b);
    eg_release(w);
    eg_release(c);
    digits_free(&learn);
    digits_free(&held_out);
}

// ---- slices of variables

TEST(a_part_of_a_variable_is_assigned) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *v, *nodes[4], *x, *part, *eager = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4)), "eager");
    {
        EG_GRAPH(g);
        v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4)), "v");
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2, 2), "x");
        nodes[0] = eg_assign_slice(v, EG_SHAPE(1, 1), EG_SHAPE(2, 2), x);
        nodes[1] = eg_assign_slice(v, EG_SHAPE(0, 0), EG_SHAPE(-1, 1), 7);
        nodes[2] = eg_assign_slice(v, EG_SHAPE(0, 0), EG_SHAPE(3, 4), 1);
        nodes[3] = eg_assign_slice(v, EG_SHAPE(1, 0), EG_SHAPE(0, 4), 9);
        CHECK(!eg_assign_slice(v, EG_SHAPE(2, 0), EG_SHAPE(2, 1), 0) && says("do not lie inside axis 0", NULL));
        CHECK(!eg_assign_slice(v, EG_SHAPE(0, 0), EG_SHAPE(1, 1), x) && says("eg_assign_slice", "shape"));
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    const eg_feed feed = {x, part = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)};
    for (int i = 0; i < 12; i++) {
        EG_SCOPE;
        const int k = (i * 5) % 4;
        eg_tensor *out = eg_session_eval(s, nodes[k], &feed, k == 0);
        if (k == 0) eg_assign_slice(eager, EG_SHAPE(1, 1), EG_SHAPE(2, 2), part);
        else if (k == 1) eg_assign_slice(eager, EG_SHAPE(0, 0), EG_SHAPE(-1, 1), 7);
        else if (k == 2) eg_assign_slice(eager, EG_SHAPE(0, 0), EG_SHAPE(3, 4), 1);
        CHECK(same(out, eager));
    }
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
    eg_release(eager);
}

// ---- a program's own ops

static eg_tensor *steep(eg_tensor *const *in, eg_grad_context *c, void *user) {
    eg_tensor *e = c->saved[0] = eg_exp(in[0]);
    (void)user;
    return eg_log(eg_add(e, 1));
}
static void steep_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    dx[0] = eg_mul(eg_mul(c->upstream[0], *(const double *)user), eg_sub(1, eg_div(1, eg_add(1, c->saved[0]))));
}
static eg_tensor *itself(eg_tensor *const *in, eg_grad_context *c, void *user) { (void)c, (void)user; return in[0]; }
static void reversed(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_negative(c->upstream[0]);
}
static bool parts(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    c->saved[1] = in[1];
    out[0] = eg_mul(in[0], in[1]);
    out[1] = eg_square(in[1]);
    return out[0] && out[1];
}
static void parts_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_mul(c->saved[1], 10));
    dx[1] = eg_add(eg_reduce_sum(eg_mul(c->upstream[0], c->saved[0]), .axes = EG_AXES(0)),
                   eg_mul(c->upstream[1], c->saved[1]));
}
static int parts_op(void) {
    static int op = -1;
    if (op < 0) op = eg_op_register(&(eg_op_definition){"two_parts", 2, 2, parts, parts_grad, NULL});
    return op;
}
static double five = 5;
static bool own_ops(eg_tensor *x, eg_tensor *w, eg_tensor **grads, eg_tensor **second) {
    eg_tensor *two[2], *xs[] = {x, w};
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tape_watch(outer, x);
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_custom_gradient(itself, reversed, NULL, &x, 1);
    y = eg_custom_gradient(steep, steep_grad, &five, &y, 1);
    eg_tensor *in[] = {y, w};
    if (!y || !eg_op_run(parts_op(), in, 2, two, 2)) return false;
    eg_tensor *loss = eg_add(eg_reduce_sum(two[0]), eg_reduce_sum(eg_mul(two[1], x)));
    if (!loss || !eg_tape_gradients(tape, loss, xs, 2, grads)) return false;
    return (*second = eg_tape_gradient(outer, eg_reduce_sum(eg_square(grads[0])), x)) != NULL;
}
TEST(own_ops_are_nodes_with_their_own_gradients) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *fetches[3], *out[3], *expected[3], *w = eg_variable(eg_constant(EG_SHAPE(3), 1, -2, .5), "w");
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "x");
        REQUIRE(own_ops(x, w, fetches, &fetches[2]));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 1; n < 6; n++) {
        EG_SCOPE;
        const eg_feed feed = {x, eg_random_normal(EG_SHAPE(n, 3))};
        REQUIRE(eg_session_run(s, &feed, 1, fetches, 3, out));
        REQUIRE(own_ops(feed.value, w, expected, &expected[2]));
        for (int i = 0; i < 3; i++) CHECK(same(out[i], expected[i]));
    }
    CHECK(!eg_function_save(eg_session_function(s), test_temp("own")) &&
          says("eg_custom_gradient cannot be written into a file", "no file holds a program's own code"));
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(w);
}
static eg_tensor *reads(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c, (void)user;
    return eg_data(in[0]) ? in[0] : NULL;
}
TEST(an_own_op_that_reads_values_says_so) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    EG_GRAPH(g);
    eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
    CHECK(!eg_custom_gradient(reads, reversed, NULL, &x, 1) && says("eg_data: float32 [?]", "is a node of a graph"));
    CHECK(eg_add(x, 1));                                           // and the graph goes on
    eg_graph_release(g);
}

// ---- iterators

TEST(get_next_takes_one_element_a_run) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *whole = eg_range(EG_INT64, 0, 7, 1);
    eg_dataset *d = eg_dataset_batch(eg_dataset_from_slices(eg_cast(whole, EG_FLOAT32), whole), 3);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *element[EG_MAX_COMPONENTS], *x, *twice, *sum, *total, *add, *out[3];
    {
        EG_GRAPH(g);
        CHECK_INT(eg_iterator_next(it, element), EG_NEXT);
        CHECK_INT(eg_rank(element[0]), 1);
        x = element[0];
        twice = eg_mul(x, 2);
        sum = eg_reduce_sum(element[1]);
        total = eg_variable(eg_scalar(0), "total");
        add = eg_assign_add(total, eg_reduce_sum(x));
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    eg_tensor *fetches[] = {twice, sum, add};
    const double sums[] = {3, 12, 6};
    for (int i = 0; i < 3; i++) {                                  // the last batch is a short one
        CHECK_INT(eg_session_next(s, NULL, 0, fetches, 3, out), EG_NEXT);
        CHECK_NEAR(eg_item(eg_reduce_sum(out[0])), 2 * sums[i], 0);
        CHECK_NEAR(eg_item(out[1]), sums[i], 0);
        CHECK_INT(eg_size(out[0]), i == 2 ? 1 : 3);
    }
    CHECK_INT(eg_session_next(s, NULL, 0, fetches, 3, out), EG_END_OF_SEQUENCE);
    CHECK(!out[0] && !out[2] && !eg_error());
    CHECK(!eg_session_run(s, NULL, 0, fetches, 3, out) &&
          says("eg_session_run: an iterator is at its end", "eg_session_next"));
    CHECK_NEAR(eg_item(eg_session_eval(s, total, NULL, 0)), 21, 0);          // needs no element
    // what is fed in the element's place takes none
    const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(5))};
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, twice, &feed, 1))), 10, 0);
    CHECK(eg_iterator_set(it, d));
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, x, NULL, 0))), 3, 0);
    CHECK_INT(eg_session_next(s, NULL, 0, &x, 0, out), EG_FAILED);
    CHECK(says("nothing is fetched", NULL));
    // A saved function is fed in get_next's place.
    CHECK(eg_session_run(s, NULL, 0, fetches, 2, out));
    eg_function *saved = NULL;
    REQUIRE(eg_function_save(eg_session_function(s), test_temp("next")));
    REQUIRE((saved = eg_function_load(test_temp("next"))) != NULL);
    CHECK_INT(eg_function_input(saved, "element 0"), 0);
    CHECK_INT(eg_function_input(saved, "element 1"), 1);
    eg_tensor *in[] = {eg_constant(EG_SHAPE(2), 5, 6), eg_constant_of(EG_INT64, EG_SHAPE(2), 5, 6)};
    CHECK(eg_function_call(saved, in, 2, out, 2));
    CHECK_TENSOR(out[0], 0, 10, 12);
    CHECK(!eg_function_call(saved, NULL, 0, out, 2) &&
          says("0 inputs and 2 outputs, but this function has 2 and 2",
               "; its input 0, 'element 0', stands where the graph took an iterator's element"));
    REQUIRE(eg_function_save(saved, test_temp("next"), .inputs = EG_NAMES("x", "numbers")));      // still so
    eg_function_release(saved);
    REQUIRE((saved = eg_function_load(test_temp("next"))) != NULL);
    CHECK(!eg_function_call(saved, in, 1, out, 2) &&
          says("1 inputs and 2 outputs, but this function has 2 and 2",
               "'x', stands where the graph took an iterator's element"));
    CHECK_INT(eg_function_input(saved, "numbers"), 1);
    eg_function_release(saved);
    eg_session_release(s);
    eg_graph_release(g);                                           // which had a reference to the iterator
    eg_iterator_release(it);
    eg_dataset_release(d);
    eg_release(total);
}
static eg_dataset *up_to(eg_tensor *const *feed, void *user) {
    (void)user;
    return eg_dataset_range(0, eg_item_int(feed[0]), 1);
}
static eg_dataset *rows_of(eg_tensor *const *feed, void *user) {
    (void)user;
    return eg_dataset_from_slices(feed[0]);
}
static eg_dataset *lines_of(eg_tensor *const *feed, void *user) {
    (void)user;
    char path[600];
    const int64_t n = eg_size(feed[0]);
    memcpy(path, eg_data(feed[0]), (size_t)n);
    path[n] = 0;
    const char *paths[] = {path};
    return eg_dataset_text_lines(paths, 1);
}
TEST(initializers_are_fed_bounds_arrays_and_file_names) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_iterator *numbers = eg_iterator_initializable(up_to, NULL), *rows = eg_iterator_initializable(rows_of, NULL),
                *lines = eg_iterator_initializable(lines_of, NULL);
    eg_tensor *bound, *array, *path, *begin[3], *next[3], *out;
    eg_spec whole = {EG_INT64, EG_SCALAR}, row = {EG_FLOAT32, EG_SHAPE(2)}, line = {EG_UINT8, EG_SHAPE(-2)};
    {
        EG_GRAPH(g);
        bound = eg_placeholder(EG_INT64, EG_SCALAR, "bound");
        array = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "array");
        path = eg_placeholder(EG_UINT8, EG_SHAPE(-3), "path");
        begin[0] = eg_graph_name(eg_graph_iterator_feed(numbers, &bound, 1), "first");
        begin[1] = eg_graph_iterator_feed(rows, &array, 1);
        begin[2] = eg_graph_iterator_feed(lines, &path, 1);
        eg_tensor *element[EG_MAX_COMPONENTS];
        CHECK_INT(eg_iterator_next(numbers, element), EG_FAILED);
        CHECK(says("eg_iterator_next: what an element looks like is not known", "eg_graph_next"));
        REQUIRE(eg_graph_next(eg_iterator_handle(numbers), &whole, 1, &next[0]));
        REQUIRE(eg_graph_next(eg_iterator_handle(rows), &row, 1, &next[1]));
        REQUIRE(eg_graph_next(eg_iterator_handle(lines), &line, 1, &next[2]));
        next[1] = eg_mul(next[1], 2);
    }
    eg_session *s = eg_session_new(g);
    CHECK_INT(eg_session_next(s, NULL, 0, &next[0], 1, &out), EG_FAILED);
    CHECK(says("eg_session_next: the iterator was not initialized: run its initializer first, the node 'first'",
               "eg_graph_iterator_feed, written at sessions.c:"));
    CHECK(!eg_session_eval(s, next[1], NULL, 0));
    CHECK(says("run its initializer first, the node of eg_graph_iterator_feed, written at sessions.c:", NULL));
    for (int n = 2; n < 5; n++) {
        EG_SCOPE;
        eg_feed feed = {bound, eg_constant_of(EG_INT64, EG_SCALAR, n)};
        CHECK(eg_session_eval(s, begin[0], &feed, 1));
        CHECK(!eg_function_save(eg_session_function(s), test_temp("initializer")) &&
              says("eg_function_save: an initializer of an iterator is among what is fetched", "sessions.c:"));
        for (int i = 0; i < n; i++) {
            CHECK_INT(eg_session_next(s, NULL, 0, &next[0], 1, &out), EG_NEXT);
            CHECK_INT(eg_item_int(out), i);
        }
        CHECK_INT(eg_session_next(s, NULL, 0, &next[0], 1, &out), EG_END_OF_SEQUENCE);
        feed = (eg_feed){array, eg_full(EG_FLOAT32, EG_SHAPE(n, 2), n)};
        CHECK(eg_session_eval(s, begin[1], &feed, 1));
        for (int i = 0; i < n; i++) {
            CHECK_INT(eg_session_next(s, NULL, 0, &next[1], 1, &out), EG_NEXT);
            CHECK_TENSOR(out, 0, 2 * n, 2 * n);
        }
        CHECK_INT(eg_session_next(s, NULL, 0, &next[1], 1, &out), EG_END_OF_SEQUENCE);
    }
    FILE *file = fopen(test_temp("lines.txt"), "w");
    REQUIRE(file != NULL);
    fputs("one\nthree\n", file);
    fclose(file);
    eg_feed feed = {path, eg_from_text(test_temp("lines.txt"))};
    CHECK(eg_session_eval(s, begin[2], &feed, 1));
    CHECK_INT(eg_session_next(s, NULL, 0, &next[2], 1, &out), EG_NEXT);
    CHECK(out && eg_size(out) == 3 && !memcmp(eg_data(out), "one", 3));
    CHECK_INT(eg_session_next(s, NULL, 0, &next[2], 1, &out), EG_NEXT);
    CHECK(out && eg_size(out) == 5 && !memcmp(eg_data(out), "three", 5));
    CHECK_INT(eg_session_next(s, NULL, 0, &next[2], 1, &out), EG_END_OF_SEQUENCE);
    feed.value = eg_from_text("/no/such/file");
    CHECK(!eg_session_eval(s, begin[2], &feed, 1) || eg_session_next(s, NULL, 0, &next[2], 1, &out) == EG_FAILED);
    CHECK(says("/no/such/file", NULL));
    eg_session_release(s);
    eg_graph_release(g);
    eg_iterator_release(numbers);
    eg_iterator_release(rows);
    eg_iterator_release(lines);
}
TEST(datasets_and_iterators_are_chosen_while_the_graph_runs) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_spec spec = {EG_INT64, EG_SCALAR}, wrong = {EG_FLOAT32, EG_SCALAR};
    eg_dataset *small = eg_dataset_range(0, 2, 1), *large = eg_dataset_range(100, 103, 1);
    eg_iterator *it = eg_iterator_from_specs(&spec, 1), *other = eg_iterator_new(large);
    eg_tensor *next[EG_MAX_COMPONENTS], *by_handle, *typed, *use_small, *use_large, *handle, *out;
    {
        EG_GRAPH(g);
        CHECK_INT(eg_iterator_next(it, next), EG_NEXT);
        use_small = eg_graph_iterator_set(it, small);
        use_large = eg_graph_iterator_set(it, large);
        handle = eg_placeholder(EG_INT64, EG_SCALAR, "handle");
        CHECK(eg_graph_next(handle, &spec, 1, &by_handle) && eg_graph_next(handle, &wrong, 1, &typed));
        by_handle = eg_mul(by_handle, 2);
        CHECK(!eg_graph_next(eg_number(1), &spec, 1, &out) && says("eg_graph_next: the number 1 is no handle", NULL));
        CHECK(!eg_graph_next(handle, &spec, 0, &out) && says("0 components", NULL));
        CHECK(!eg_graph_next(handle, &spec, 1000, &out) && says("1000 components", NULL));
        CHECK_INT(eg_iterator_next_by_handle(handle, next + 1), EG_FAILED);
        CHECK(says("eg_iterator_next_by_handle: what an element looks like is not known", "eg_graph_next"));
    }
    CHECK(!eg_graph_next(handle, &spec, 1, &out) && says("no graph is being built", NULL));
    CHECK(!eg_graph_iterator_set(it, small) && says("no graph is being built", NULL));
    eg_session *s = eg_session_new(g);
    CHECK_INT(eg_item_int(eg_session_eval(s, use_small, NULL, 0)), eg_item_int(eg_iterator_handle(it)));
    for (int i = 0; i < 2; i++) CHECK_INT(eg_item_int(eg_session_eval(s, next[0], NULL, 0)), i);
    CHECK_INT(eg_session_next(s, NULL, 0, next, 1, &out), EG_END_OF_SEQUENCE);
    CHECK(eg_session_eval(s, use_large, NULL, 0));
    CHECK_INT(eg_item_int(eg_session_eval(s, next[0], NULL, 0)), 100);
    eg_feed feed = {handle, eg_iterator_handle(other)};
    CHECK_INT(eg_item_int(eg_session_eval(s, by_handle, &feed, 1)), 200);
    CHECK_INT(eg_item_int(eg_session_eval(s, by_handle, &feed, 1)), 202);
    feed.value = eg_iterator_handle(it);
    CHECK_INT(eg_item_int(eg_session_eval(s, by_handle, &feed, 1)), 202);
    CHECK(!eg_session_eval(s, by_handle, NULL, 0) &&
          says("the handle of an iterator, placeholder 'handle' (int64 []), must be fed", NULL));
    CHECK(!eg_session_eval(s, typed, &feed, 1) && says("placeholder 'element 2' (float32 [])", "int64 []"));
    feed.value = eg_constant_of(EG_INT64, EG_SCALAR, 123456);
    CHECK(!eg_session_eval(s, by_handle, &feed, 1) && says("no iterator with the handle 123456", NULL));
    eg_session_release(s);
    eg_graph_release(g);
    eg_iterator_release(it);
    eg_iterator_release(other);
    eg_dataset_release(small);
    eg_dataset_release(large);
}

// ---- devices

static int times_in(const char *text, const char *part) {
    int n = 0;
    while ((text = strstr(text, part)) != NULL) { n++; text++; }
    return n;
}
TEST(nodes_are_placed_on_devices) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *here, *there, *back, *v, *train, *grad;
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.5);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        eg_tape *tape = eg_tape_begin();
        {
            eg_with_device("cpu:0");
            v = eg_variable(eg_scalar(3), "v");
            there = eg_mul(eg_mul(x, 2), eg_add(x, 1));           // x is copied once
        }
        eg_with_device("there:7");
        CHECK(says("no device \"there:7\"", NULL));
        here = eg_add(there, eg_mul(x, v));
        back = eg_to(here, "cpu:0");
        grad = eg_tape_gradient(tape, eg_reduce_sum(here), v);
        train = eg_apply_gradients(sgd, &grad, &v, 1) ? eg_graph_update() : NULL;
    }
    // x and `here` to cpu:0; `there` and v from it
    char dot[8000];
    CHECK(eg_graph_dot(g, dot, sizeof dot) > 0 && strstr(dot, "mul on cpu:0"));
    CHECK_INT(times_in(dot, "label=\"copy to cpu:0\""), 2);
    CHECK_INT(times_in(dot, "label=\"copy to the session's device\""), 2);
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    CHECK(!strcmp(eg_device_of(eg_session_variable(s, v)), "cpu:0"));
    const int64_t elsewhere = strcmp(test_device(), "cpu:0") != 0;
    eg_feed feed = {x, eg_constant(EG_SHAPE(2), 1, 2)};
    for (int i = 0; i < 4; i++) {
        const int64_t copies = eg_memory().device_copies;
        eg_tensor *out = eg_session_eval(s, there, &feed, 1);
        CHECK(out && !strcmp(eg_device_of(out), "cpu:0"));
        CHECK_TENSOR(out, 0, 4, 12);
        CHECK_INT(eg_memory().device_copies - copies, elsewhere);
        out = eg_session_eval(s, here, &feed, 1);
        CHECK(out && !strcmp(eg_device_of(out), test_device()));
        CHECK_TENSOR(out, 0, 7, 18);
        CHECK_INT(eg_memory().device_copies - copies, 4 * elsewhere);        // x there, `there` and v back
        out = eg_session_eval(s, back, &feed, 1);
        CHECK(out && !strcmp(eg_device_of(out), "cpu:0"));
    }
    CHECK_INT(eg_item_int(eg_session_eval(s, train, &feed, 1)), 1);
    CHECK_NEAR(eg_item(eg_session_eval(s, v, NULL, 0)), 3 - 0.5 * 3, 0);
    eg_session_release(s);
    eg_graph_release(g);
    eg_optimizer_release(sgd);
    eg_release(v);
}
// What was copied before is copied again where a tape must know it, and where a variable has changed.
TEST(copies_are_made_anew_for_tapes_and_assignments) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *before, *grad, *second, *v, *read, *raise, *again, *out[3];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        v = eg_variable(eg_scalar(3), "v");
        eg_with_device("cpu:0");
        before = eg_mul(eg_mul(x, 2), v);
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        grad = eg_tape_gradient(tape, eg_reduce_sum(eg_mul(eg_square(x), v)), x);
        tape = eg_tape_begin();
        second = eg_tape_gradient(tape, eg_reduce_sum(eg_mul(x, v)), v);
        REQUIRE(grad && second);
        read = eg_add(v, 1);
        raise = eg_assign_add(v, 10);
        EG_AFTER(raise);
        again = eg_add(v, 1);
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_constant(EG_SHAPE(2), 1, 2)};
    for (int i = 0; i < 4; i++) {
        CHECK(eg_session_initialize(s, NULL, 0));
        REQUIRE(eg_session_run(s, &feed, 1, EG_TENSORS(before, grad, second), out));
        CHECK_TENSOR(out[0], 0, 6, 12);
        CHECK_TENSOR(out[1], 0, 6, 12);
        CHECK_NEAR(eg_item(out[2]), 3, 0);
        REQUIRE(eg_session_run(s, NULL, 0, EG_TENSORS(read, again), out));
        CHECK_NEAR(eg_item(out[0]), 4, 0);
        CHECK_NEAR(eg_item(out[1]), 14, 0);
    }
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
}
TEST(a_session_runs_on_the_device_of_its_thread) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *w, *y;
    {
        EG_GRAPH(g);
        w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "w");
        y = eg_mul(w, eg_constant(EG_SHAPE(2), 1, 2));
    }
    eg_session *s = eg_session_new(g);
    {
        eg_with_device("cpu:0");
        CHECK(eg_session_initialize(s, NULL, 0));
        eg_tensor *out = eg_session_eval(s, y, NULL, 0);
        CHECK(out && !strcmp(eg_device_of(out), "cpu:0"));
        CHECK_TENSOR(out, 0, 1, 2);
    }
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(w);
}

// ---- pictures

TEST(a_graph_is_drawn) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x\"");
        eg_tensor *w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), "w");
        eg_tensor *raise = eg_assign_add(w, eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)));
        EG_AFTER(raise);
        eg_graph_name(eg_matmul(x, w), "y");
        eg_release(w);
    }
    char dot[8000], same_dot[8000];
    const int64_t size = eg_function_dot(g, dot, sizeof dot);
    CHECK(size > 0 && size == (int64_t)strlen(dot) && eg_graph_dot(g, same_dot, sizeof same_dot) == size);
    CHECK(!strcmp(dot, same_dot));
    CHECK(!strncmp(dot, "digraph", 7) && strstr(dot, "\"placeholder x\\\"\" + \"\\n[?, 2]\"") &&
          strstr(dot, "\"matmul y\" + \"\\n[?, 1]\""));
    CHECK(strstr(dot, "variable w") && strstr(dot, "[style=dashed]"));
    CHECK_INT(eg_graph_dot(g, NULL, 0), size);
    eg_graph_release(g);
}

// ---- what was wrong once

TEST(a_constant_that_nobody_reads_is_a_node) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *c, *x, *list;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(-1), "x");
        c = eg_graph_name(eg_constant(EG_SHAPE(2), 1, 2), "c");
        list = eg_constant_of(EG_FLOAT64, EG_SHAPE(2), (double)eg_dim(x, 0), 0);
        for (int i = 0; i < 2; i++)
            CHECK(!eg_reduce_sum(list) && says("comes of an open dimension", "pass a plain number instead"));
        eg_tensor *n = eg_scalar_of(EG_FLOAT64, (double)eg_dim(x, 0));
        for (int i = 0; i < 2; i++) CHECK(!eg_mul(x, n) && says("comes of an open dimension", NULL));
    }
    eg_session *s = eg_session_new(g);
    REQUIRE(eg_graph_node(g, "c"));
    CHECK_TENSOR(eg_session_eval(s, eg_graph_node(g, "c"), NULL, 0), 0, 1, 2);
    CHECK_TENSOR(eg_session_eval(s, c, NULL, 0), 0, 1, 2);
    const eg_feed feed = {c, eg_constant(EG_SHAPE(2), 5, 6)};
    CHECK_TENSOR(eg_session_eval(s, c, &feed, 1), 0, 5, 6);
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(variables_are_initialised_from_one_another) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *a, *b;
    {
        EG_GRAPH(g);
        a = eg_variable(eg_scalar(3), "a");
        b = eg_variable(eg_mul(a, 2), "b");
    }
    eg_session *s = eg_session_new(g);
    EG_SESSION(s);
    CHECK(!eg_session_initialize(NULL, &b, 1) && says("variable 'a'", "eg_session_initialize"));
    for (int i = 0; i < 2; i++) {
        CHECK(eg_session_initialize(NULL, NULL, 0));
        CHECK_NEAR(eg_item(a), 3, 0);
        CHECK_NEAR(eg_item(b), 6, 0);
        CHECK(eg_assign(eg_session_variable(NULL, a), 100));
    }
    CHECK(eg_session_initialize(NULL, &b, 1));
    CHECK_NEAR(eg_item(b), 200, 0);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(a);
    eg_release(b);
}
TEST(numbers_that_a_run_would_compute_wrongly_are_errors) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *drawn, *std, *out;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "x");
        const int64_t n = eg_dim(x, 0);
        const double d = (double)n;
        CHECK(!eg_mul(x, d * (d - 1)) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(x, (d + 1) * d / 2) && says("eg_mul: the number", NULL));
        float *zeros = (float *)calloc((size_t)n, sizeof *zeros);
        REQUIRE(zeros != NULL);
        CHECK(!eg_less(eg_from_data(EG_FLOAT32, EG_SHAPE(n), zeros), d) &&
              says("eg_from_data: float32 [?]", "as long as an open dimension"));
        free(zeros);
        CHECK(!eg_reshape(x, EG_SHAPE(INT64_MAX)) && says("eg_reshape", NULL));
        CHECK(!eg_placeholder(EG_FLOAT32, EG_SHAPE(INT64_MIN), "y") && says("eg_placeholder", NULL));
        CHECK(!eg_placeholder(EG_FLOAT32, EG_SHAPE(4, -9), "y") &&
              says("eg_placeholder: dimension 1 is -9; open dimensions are numbered from -1 to -8", NULL));
        drawn = eg_random_integers(EG_SHAPE(100), n, 2 * n);
        std = eg_reduce_std(x);
    }
    REQUIRE(drawn && std);
    eg_session *s = eg_session_new(g);
    for (int n = 2; n < 5; n++) {
        const eg_feed feed = {x, eg_random_normal(EG_SHAPE(n, 3))};
        REQUIRE((out = eg_session_eval(s, drawn, &feed, 1)) != NULL);
        CHECK(eg_item_int(eg_reduce_min(out)) == n && eg_item_int(eg_reduce_max(out)) == 2 * n - 1);
        CHECK(same(eg_session_eval(s, std, &feed, 1), eg_reduce_std(feed.value)));
    }
    eg_session_release(s);
    eg_graph_release(g);
}
// What eager code computes on the host for a length n, m or both, and what it takes of a table.
enum { COUNTED = 31 };
static eg_tensor *counted(int which, int64_t n, int64_t m, eg_tensor *table) {
    const double a = (double)n, b = (double)m;
    switch (which) {
    case 0: return eg_range(EG_FLOAT32, 0, a, 1);
    case 1: return eg_range(EG_INT64, 5, a + 5, 1);
    case 2: return eg_range(EG_FLOAT64, a - 1, -1, -1);
    case 3: return eg_range(EG_INT32, 1, a + 1, 1);
    case 4: return eg_range(EG_INT32, a - 1, 1, -1);
    case 5: return eg_range(EG_FLOAT32, a, 2 * a, 1);
    case 6: return eg_range(EG_INT32, a, a + 5, 1);
    case 7: return eg_range(EG_FLOAT32, 0, a * b, 1);
    case 8: return eg_range(EG_FLOAT32, -a, a, 1);
    case 9: return eg_range(EG_BOOL, 0, a, 1);
    case 10: return eg_range(EG_FLOAT32, a, 0, 1);                             // no element
    case 11: return eg_linspace(EG_FLOAT32, -0.3, 17.7, n);
    case 12: return eg_linspace(EG_FLOAT64, 3, b, n);
    case 13: return eg_linspace(EG_FLOAT64, 0, a - 1, 5);
    case 14: return eg_linspace(EG_FLOAT64, -1.5e308, 1.5e308, n);
    case 15: return eg_eye(EG_FLOAT32, n, n);
    case 16: return eg_eye(EG_INT32, n, 3);
    case 17: return eg_eye(EG_FLOAT64, m, n);
    case 18: return eg_slice(table, EG_SHAPE(0, 0), EG_SHAPE(n, m));
    case 19: return eg_slice(table, EG_SHAPE(n, 1), EG_SHAPE(2, -1));
    case 20: return eg_strided_slice(table, EG_SHAPE(0, 1), EG_SHAPE(n, EG_END), EG_SHAPE(1, 2));
    case 21: return eg_strided_slice(table, EG_SHAPE(n), EG_SHAPE(n + 3), EG_SHAPE(1));
    case 22: return eg_one_hot(eg_range(EG_INT32, 0, a, 1), m);
    case 23: return eg_resize(eg_reshape(counted(18, n, m, table), EG_SHAPE(1, n, m, 1)), 2 * n, 5);
    case 24: return eg_resize(eg_reshape(counted(18, n, m, table), EG_SHAPE(1, n, m, 1)), 5, m, .method = EG_NEAREST);
    case 25: return eg_resize(eg_reshape(counted(18, n, m, table), EG_SHAPE(1, n, m, 1)), m, n);
    case 26: return eg_pad(counted(18, n, m, table), EG_PADS(1, 1, 0, 0), .mode = EG_PAD_REFLECT);
    case 27: return eg_pad(counted(18, n, m, table), EG_PADS(2, 1, 1, 0), .mode = EG_PAD_SYMMETRIC);
    case 28: return eg_strided_slice(table, EG_SHAPE(n), EG_SHAPE(2 * n), EG_SHAPE(1));
    case 29: return eg_strided_slice(table, EG_SHAPE(n + 1), EG_SHAPE(n - 1), EG_SHAPE(1));         // no element
    default: return eg_ones(EG_FLOAT32, EG_SHAPE(n - 2));
    }
}
TEST(ranges_and_tables_of_open_lengths) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *node[3 * COUNTED], *out[3 * COUNTED], *v = eg_variable(eg_random_normal(EG_SHAPE(40, 40)), "table"),
              *table[3] = {eg_random_normal(EG_SHAPE(40, 40)), v, NULL};
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2), "x");
        table[2] = eg_mul(v, 2);
        const int64_t n = eg_dim(x, 0), m = eg_dim(x, 1);
        const double a = (double)n, b = (double)m;
        for (int t = 0; t < 3; t++)
            for (int k = 0; k < COUNTED; k++) REQUIRE((node[t * COUNTED + k] = counted(k, n, m, table[t])) != NULL);
        // whose number of elements, or whose elements, no run could find as eager code does
        const double ends[][3] = {{a, b, 1}, {0, 1, 1 / a}, {0, a / 2, 0.5}, {0, 0.1 * a, 0.1},
                                  {0, a * a, a}, {500, a, 1}, {0, floor(a / 2), 1}};
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
            CHECK(!eg_range(EG_FLOAT32, ends[i][0], ends[i][1], ends[i][2]) && says("eg_range: ", NULL));
        CHECK(!eg_linspace(EG_FLOAT32, 0, 1, n / 2) && says("eg_linspace: the number", NULL));
        CHECK(!eg_eye(EG_FLOAT32, n / 2, n) && says("eg_eye: the number", NULL));
        CHECK(!eg_slice(v, EG_SHAPE(0, 0), EG_SHAPE(n / 2, -1)) && says("eg_slice: the number", NULL));
        CHECK(!eg_slice(v, EG_SHAPE(0, 0), EG_SHAPE(41, -1)) && says("eg_slice: 41 elements", NULL));
        CHECK(!eg_slice(v, EG_SHAPE(n, 0), EG_SHAPE(-1, -1)) && says("eg_slice: -1 elements", NULL));
        CHECK(!eg_strided_slice(v, EG_SHAPE(-n), EG_SHAPE(EG_END), EG_SHAPE(1)) && says("eg_strided_slice: of axis 0",
                                                                                       "from the beginning"));
        CHECK(!eg_strided_slice(v, EG_SHAPE(n), EG_SHAPE(0), EG_SHAPE(-1)) && says("steps forward", NULL));
        const int64_t behind[] = {EG_END, -1, 5, m, n + m};        // what no run could count from n on
        for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++)
            CHECK(!eg_strided_slice(v, EG_SHAPE(n), EG_SHAPE(behind[i]), EG_SHAPE(1)) &&
                  says("eg_strided_slice: no run could compute how many elements of axis 0", NULL));
        CHECK(!eg_strided_slice(v, EG_SHAPE(m), EG_SHAPE(n), EG_SHAPE(1)) && says("eg_strided_slice: no run", NULL));
        CHECK_INT(eg_size(eg_range(EG_INT32, 0, 1012000, 1)), 1012000);        // the program's own
        eg_tape *tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, x);
        CHECK(!eg_tape_jacobian(tape, eg_square(x), x) && says("eg_tape_jacobian: a graph cannot have", "is open"));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 2; n < 20; n++) {
        EG_SCOPE;
        const int m = 1 + n * 7 % 9;
        const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(n, m))};
        REQUIRE(eg_session_run(s, &feed, 1, node, 3 * COUNTED, out));
        for (int t = 0; t < 3; t++)
            for (int k = 0; k < COUNTED; k++)
                CHECK(same(out[t * COUNTED + k], counted(k, n, m, t == 2 ? eg_mul(v, 2) : table[t])));
    }
    eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(41, 2))};
    for (int t = 0; t < 3; t++)
        for (int k = 18; k < 22; k++)
            CHECK(!eg_session_eval(s, node[t * COUNTED + k], &feed, 1) && says("elements from", "inside axis 0"));
    feed.value = eg_ones(EG_FLOAT32, EG_SHAPE(1, 2));
    CHECK(!eg_session_eval(s, node[COUNTED - 1], &feed, 1) && says("dimension 0 of [-1] is negative", NULL));
    CHECK(eg_item(eg_session_eval(s, node[11], &feed, 1)) == eg_item(eg_linspace(EG_FLOAT32, -0.3, 17.7, 1)));
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
}
// Their lengths are rounded, so that numbers which may come of these are errors behind them.
TEST(ranges_in_steps_over_open_lengths) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *node[3], *out[3];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        const double n = (double)eg_dim(x, 0);
        node[0] = eg_range(EG_INT32, 1, n + 1, 3);
        node[1] = eg_range(EG_FLOAT32, n - 1, -1, -2);
        node[2] = eg_mul(eg_cast(eg_range(EG_FLOAT64, 0, 2 * n, 2), EG_FLOAT32), x);
        CHECK(!eg_mul(x, (double)eg_size(node[0])) && says("eg_mul: the number", NULL));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 1; n < 12; n++) {
        EG_SCOPE;
        const eg_feed feed = {x, eg_random_normal(EG_SHAPE(n))};
        REQUIRE(eg_session_run(s, &feed, 1, node, 3, out));
        CHECK(same(out[0], eg_range(EG_INT32, 1, n + 1, 3)) && same(out[1], eg_range(EG_FLOAT32, n - 1, -1, -2)));
        CHECK(same(out[2], eg_mul(eg_range(EG_FLOAT32, 0, 2 * n, 2), feed.value)));
    }
    eg_session_release(s);
    eg_graph_release(g);
}
static eg_tensor *words_of(int n, int m, int which) {
    int32_t data[64];
    for (int i = 0; i < n * m; i++) data[i] = (i * 7 + which * 3) % 20;
    return eg_from_data(EG_INT32, EG_SHAPE(n, m), data);
}
static eg_tensor *read_on(eg_layer *l, eg_optimizer *opt, eg_tensor *x, eg_tensor *labels) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *weights[32], *grads[32], *logits = eg_call(l, x, .training = true),
              *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, logits));
    const int n = eg_tape_watched_variables(tape, weights, 32);
    return n > 0 && eg_tape_gradients(tape, loss, weights, n, grads) && eg_apply_gradients(opt, grads, weights, n)
           ? loss : NULL;
}
// A small transformer whose batch and length are both open: the scores of its heads are (batch, heads, length, length).
static eg_layer *reader(bool rotary) {
    return eg_sequential(
        eg_layer_embedding(20, 8), eg_layer_position_embedding(9),
        eg_layer_residual(eg_sequential(eg_layer_layer_normalization(),
            rotary ? eg_layer_multi_head_attention(12, 4, .causal = true, .rotary_base = 100, .kv_heads = 4)
                   : eg_layer_multi_head_attention(2, 4, .causal = true))),
        eg_layer_layer_normalization(), eg_layer_dense(20));
}
TEST(a_transformer_over_an_open_batch_and_length) {
    for (int form = 0; form < 4; form++) {
        EG_SCOPE;
        eg_layer *eager = reader(form % 2), *written = reader(form % 2);
        eg_optimizer *adam = eg_adam(.learning_rate = 0.01), *of_graph = eg_adam(.learning_rate = 0.01);
        eg_graph *g = eg_graph_new();
        eg_tensor *x, *labels, *loss, *train, *out[2];
        {
            EG_GRAPH(g);
            if (form > 1) CHECK(eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "weights"));     // the batch comes first
            x = eg_placeholder(EG_INT32, EG_SHAPE(-1, -2), "x");
            labels = eg_placeholder(EG_INT32, EG_SHAPE(-1, -2), "labels");
            REQUIRE((loss = read_on(written, of_graph, x, labels)) != NULL);
            train = eg_graph_update();
        }
        eg_session *s = eg_session_new(g);
        for (int i = 0; i < 12; i++) {
            EG_SCOPE;
            const int n = 1 + i % 4, m = 1 + i * 5 % 9;
            const eg_feed feeds[] = {{x, words_of(n, m, i)}, {labels, words_of(n, m, i + 1)}};
            if (!i) {                                          // the weights of both, in the same order
                eg_seed(3);
                REQUIRE(eg_call(eager, feeds[0].value));
                eg_seed(3);
                REQUIRE(eg_session_initialize(s, NULL, 0));
            }
            eg_seed((uint64_t)i + 1);
            REQUIRE(eg_session_run(s, feeds, 2, EG_TENSORS(loss, train), out));
            eg_seed((uint64_t)i + 1);
            CHECK(same(out[0], read_on(eager, adam, feeds[0].value, feeds[1].value)));
        }
        const eg_feed feeds[] = {{x, words_of(2, 10, 0)}, {labels, words_of(2, 10, 0)}};
        CHECK(!eg_session_run(s, feeds, 2, EG_TENSORS(loss, train), out) && says("10 elements", "embeddings"));
        eg_session_release(s);
        eg_graph_release(g);
        eg_layer_release(eager);
        eg_layer_release(written);
        eg_optimizer_release(adam);
        eg_optimizer_release(of_graph);
    }
}
TEST(a_number_that_may_be_the_programs_own_is_an_error) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y, *longer, *late, *own = eg_scalar(1012000), *out[3];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "x");
        CHECK(!eg_mul(x, 1012000) && says("eg_mul: the number 1012000 may be one of the program's own", "eg_scalar"));
        CHECK(!eg_mul(x, -2024000.0) && says("eg_mul: the number -2024000 may be", NULL));
        CHECK(!eg_full(EG_FLOAT32, EG_SHAPE(2), 1012000) && says("the number 1012000 may be", NULL));
        CHECK(!eg_zeros(EG_FLOAT32, EG_SHAPE(1012000, 3)) && says("eg_zeros: the number 1012000 may be", NULL));
        CHECK(!eg_broadcast_to(eg_mul(x, 0), EG_SHAPE(1012000, 5, 3)) && says("eg_broadcast_to", NULL));
        CHECK(!eg_random_integers(EG_SHAPE(3), 0, 1012000) && says("the number 1012000 may be", NULL));
        CHECK(!eg_add(x, eg_constant(EG_SHAPE(1), 1012000)) && says("the number 1012000 may be", NULL));
        CHECK(!eg_mul(x, (double)(eg_dim(x, 0) + 500) / (double)eg_dim(x, 0)) && says("eg_mul: the number", NULL));
        y = eg_mul(x, own);                                          // made before, it is what it is
        longer = eg_reshape(eg_concat(EG_TENSORS(x, eg_zeros(EG_FLOAT32, EG_SHAPE(500, 3))), 0), EG_SHAPE(-1));
        late = eg_strided_slice(x, EG_SHAPE(-100), EG_SHAPE(EG_END), EG_SHAPE(1));
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(150, 3))};
    REQUIRE(eg_session_run(s, &feed, 1, EG_TENSORS(y, longer, late), out));
    CHECK_NEAR(eg_item(eg_reduce_max(out[0])), 1012000, 0);
    CHECK(eg_size(out[1]) == 650 * 3 && eg_dim(out[2], 0) == 100);
    eg_session_release(s);
    eg_graph_release(g);
}
// What a graph cannot tell from a number of the program's own, and that the length as a tensor serves there.
TEST(what_c_computes_of_a_length_in_other_ways) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y[3], *out[3];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(-1, 2), "x");
        const double n = (double)eg_dim(x, 0), pi = acos(-1);
        const double told[] = {n * 0.37 + sqrt(n), n * log(n), pow(n, 0.7), -n / pi, n * n * pi, n * exp(1) + 0.5};
        for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
            CHECK(!eg_mul(x, told[i]) && says("eg_mul: the number", NULL));
            CHECK(!eg_full(EG_FLOAT64, EG_SHAPE(2), told[i]) && says("eg_full: the number", NULL));
            CHECK(!eg_add(x, eg_constant_of(EG_FLOAT64, EG_SHAPE(2), told[i], 1)) && says("the number", NULL));
        }
        CHECK(!eg_mul(x, 1000 * pi) && says("eg_mul: the number 3141.5926535897929 has been computed, perhaps from",
                                              "before EG_GRAPH"));
        const double own[] = {1234.5, -6371.0088, 44100.25, 299792.458, 1000.125, 123456.789, 2718.28125, 1e10 + 0.5,
                              (double)1234.567f, 1234.12345678, -1e30, 1e300, HUGE_VAL};
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) CHECK(eg_mul(x, own[i]));
        // within 64 of a multiple a p up to a = 1000 a number is a length, and farther on an error
        CHECK(eg_mul(x, 1011641.0 * 1000 + 64));
        CHECK(!eg_mul(x, 1011641.0 * 1000 + 65) && says("may be one of the program's own", NULL));
        CHECK(!eg_mul(x, 1011641.0 * 1001 + 1) && says("may be one of the program's own", NULL));
        CHECK(eg_mul(x, 1011641.0 * 4096));
        y[0] = eg_mul(eg_ones_like(x), (double)(eg_dim(x, 0) % 2));          // the limit: 1, whatever n is
        eg_tensor *length = eg_reduce_sum(eg_ones(EG_FLOAT64, EG_SHAPE(eg_dim(x, 0))));
        y[1] = eg_mod(length, 2);
        y[2] = eg_add(eg_mul(length, 0.37), eg_sqrt(length));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 4; n < 7; n++) {
        const eg_feed feed = {x, eg_ones(EG_FLOAT64, EG_SHAPE(n, 2))};
        REQUIRE(eg_session_run(s, &feed, 1, y, 3, out));
        CHECK_NEAR(eg_item(eg_reduce_max(out[0])), 1, 0);
        CHECK_NEAR(eg_item(out[1]), n % 2, 0);
        CHECK_NEAR(eg_item(out[2]), n * 0.37 + sqrt(n), 1e-15);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(whole_numbers_that_two_open_lengths_make) {
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        const int64_t p = eg_dim(eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x"), 0);
        const int64_t q = eg_dim(eg_placeholder(EG_FLOAT32, EG_SHAPE(-2, 2), "y"), 0);
        const int64_t wrong[] = {q - p, 3 * (q - p), p + q, 7 * p + 2 * q, 5 * q - 3 * p + 7, p * p + 1,
                                 (p - 1) * (q - 1), p * q + p};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            CHECK(!eg_ones(EG_FLOAT32, EG_SHAPE(wrong[i])) && says("eg_ones: the ", "open dimension"));
        const int64_t own[] = {2600, 8000, 30522, 100000, 1000000, 3000000, (int64_t)1 << 30};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) CHECK(eg_ones(EG_FLOAT32, EG_SHAPE(own[i])));
    }
    eg_graph_release(g);
}
// What a program makes of pictures behind a convolution in steps of 2, whose lengths are rounded.
enum { BEHIND = 11 };
static eg_tensor *behind(eg_tensor *x, eg_tensor *filter, int which) {
    eg_tensor *h = eg_conv2d(x, filter, .strides = {2});
    switch (which) {
    case 0: return eg_max_pool2d(h);
    case 1: return eg_reshape(h, EG_SHAPE(eg_dim(h, 0), eg_dim(h, 1) * eg_dim(h, 2), 2));
    case 2: return eg_reshape(h, EG_SHAPE(-1));
    case 3: return eg_slice(h, EG_SHAPE(0, 1, 1, 0), EG_SHAPE(-1, -1, -1, -1));
    case 4: return eg_strided_slice(h, EG_SHAPE(0, 0, -2), EG_SHAPE(EG_END, EG_END, EG_END), EG_SHAPE(1, 2, 1));
    case 5: return eg_slice(h, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(-1, eg_dim(h, 1) - 1, -1, -1));
    case 6: return eg_add(eg_ones_like(h), h);
    case 7: return eg_reduce_std(h, .axes = EG_AXES(1, 2));
    case 8: return eg_max_pool2d(eg_concat(EG_TENSORS(h, h), 1));
    case 9: return eg_conv2d_transpose(eg_conv2d(h, eg_reshape(eg_concat(EG_TENSORS(filter, filter), 2),
                                                               EG_SHAPE(3, 3, 2, 2)), .strides = {2}),
                                       eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 1, 2)), .strides = {2});
    default: return eg_broadcast_to(h, EG_SHAPE(3, eg_dim(h, 0), eg_dim(h, 1), eg_dim(h, 2), 2));
    }
}
TEST(lengths_that_shape_rules_round_follow_from_the_operands) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y[BEHIND], *pooled, *out[BEHIND], *filter = eg_random_normal(EG_SHAPE(3, 3, 1, 2));
    eg_layer *norm = eg_layer_batch_normalization(), *group = eg_layer_group_normalization(.groups = 2),
             *drop = eg_layer_dropout(0.5);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, -3, 1), "x");
        for (int k = 0; k < BEHIND; k++) REQUIRE((y[k] = behind(x, filter, k)) != NULL);
        eg_tensor *h = eg_conv2d(x, filter, .strides = {2});
        pooled = eg_call(drop, eg_call(group, eg_call(norm, h, .training = true)), .training = true);
        CHECK(!eg_mul(h, 1.0 / (double)(eg_dim(h, 1) * eg_dim(h, 2))) && says("eg_mul: the number", NULL));
        CHECK(!eg_mul(h, (double)eg_dim(h, 1)) && says("eg_mul: the number", NULL));
    }
    REQUIRE(pooled != NULL);
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    for (int n = 1; n < 3; n++)
        for (int h = 9; h < 13; h++) {
            EG_SCOPE;
            const eg_feed feed = {x, eg_random_normal(EG_SHAPE(n, h, 2 * h - 3, 1))};
            REQUIRE(eg_session_run(s, &feed, 1, y, BEHIND, out));
            for (int k = 0; k < BEHIND; k++) CHECK(same(out[k], behind(feed.value, filter, k)));
            CHECK(eg_session_eval(s, pooled, &feed, 1));
        }
    eg_session_release(s);
    eg_graph_release(g);
    eg_layer_release(norm);
    eg_layer_release(group);
    eg_layer_release(drop);
}
TEST(a_slice_of_a_written_length_is_not_measured_from_the_end) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y[5], *out[5];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, -2, -3, -4), "x");       // whose primes are near 10,000
        const int64_t n = eg_dim(x, 0);
        CHECK(!eg_slice(x, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(n - 70, -1, -1, -1)) &&
              says("eg_slice: the number", "may be one of the program's own"));
        CHECK(!eg_slice(x, EG_SHAPE(n - 70, 0, 0, 0), EG_SHAPE(-1, -1, -1, -1)) && says("may be one of the", NULL));
        y[0] = eg_slice(x, EG_SHAPE(3, 0, 0, 0), EG_SHAPE(-1, -1, -1, -1));
        y[1] = eg_slice(x, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(n - 20, -1, -1, -1));
        y[2] = eg_slice(x, EG_SHAPE(n - 20, 0, 0, 0), EG_SHAPE(-1, -1, -1, -1));
        y[3] = eg_slice(x, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(10000, -1, -1, -1));
        y[4] = eg_slice(x, EG_SHAPE(10000, 0, 0, 0), EG_SHAPE(-1, -1, -1, -1));
    }
    eg_session *s = eg_session_new(g);
    for (int n = 12000; n <= 20000; n += 8000) {
        EG_SCOPE;
        const int expected[] = {n - 3, n - 20, 20, 10000, n - 10000};
        const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(n, 1, 1, 1))};
        REQUIRE(eg_session_run(s, &feed, 1, y, 5, out));
        for (int k = 0; k < 5; k++) CHECK_INT(eg_size(out[k]), expected[k]);
    }
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(what_is_like_a_tensor_has_its_lengths_and_not_those_of_another) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new(), *equal = eg_graph_new();
    eg_layer *drop = eg_layer_dropout(0.5);
    eg_tensor *x, *z, *y[8], *out[8], *drawn;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(1, -1, 4, 1), "x");
        eg_tensor *a = eg_max_pool2d(x, .size = {2, 1}, .strides = {2, 1});  // floor(n / 2)
        eg_tensor *b = eg_max_pool2d(x, .size = {3, 1}, .strides = {2, 1});  // floor((n - 1) / 2)
        y[0] = eg_add(a, eg_zeros_like(a));
        y[1] = eg_add(b, eg_ones_like(b));
        y[2] = eg_call(drop, eg_square(a), .training = true);
        y[3] = eg_full_like(b, 2);
        CHECK(!eg_random_uniform(eg_shape_of(a)) && says("may be that of several tensors in the graph",
                                                         ".like = y"));
        y[4] = eg_random_uniform(eg_shape_of(a), .like = a);
        y[5] = eg_random_normal(eg_shape_of(b), .like = b);
        y[6] = eg_random_truncated_normal(eg_shape_of(a), .like = a);
        y[7] = eg_random_bernoulli(eg_shape_of(b), .like = b);
        CHECK(eg_random_uniform(eg_shape_of(x)) != NULL);
    }
    {
        EG_GRAPH(equal);                                                     // two branches with one rule
        z = eg_placeholder(EG_FLOAT32, EG_SHAPE(1, -1, 4, 1), "z");
        eg_tensor *a = eg_max_pool2d(eg_abs(z), .size = {2, 1}, .strides = {2, 1});
        eg_tensor *b = eg_square(eg_max_pool2d(z, .size = {2, 1}, .strides = {2, 1}));
        drawn = eg_add(eg_mul(a, eg_random_uniform(eg_shape_of(a))), b);
    }
    REQUIRE(drawn);
    for (int k = 0; k < 8; k++) REQUIRE(y[k] != NULL);
    eg_session *s = eg_session_new(g), *t = eg_session_new(equal);
    for (int n = 10; n < 14; n++) {
        EG_SCOPE;
        eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(1, n, 4, 1))};
        REQUIRE(eg_session_run(s, &feed, 1, y, 8, out));
        for (int k = 0; k < 8; k++) CHECK_INT(eg_dim(out[k], 1), k % 2 ? (n - 1) / 2 : n / 2);
        feed.node = z;
        CHECK_INT(eg_dim(eg_session_eval(t, drawn, &feed, 1), 1), n / 2);
    }
    eg_session_release(s);
    eg_session_release(t);
    eg_graph_release(g);
    eg_graph_release(equal);
    eg_layer_release(drop);
}
TEST(what_is_fed_for_a_computed_value_has_the_lengths_that_follow) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *h, *y, *z;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        h = eg_graph_name(eg_concat(EG_TENSORS(x, x, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2))), 0), "h");
        y = eg_add(eg_reduce_sum(h), eg_reduce_sum(x));
        z = eg_mul(eg_reduce_sum(h), (double)eg_dim(x, 0));
    }
    eg_session *s = eg_session_new(g);
    eg_feed feeds[] = {{x, eg_ones(EG_FLOAT32, EG_SHAPE(4, 2))}, {h, eg_ones(EG_FLOAT32, EG_SHAPE(7, 2))}};
    CHECK(!eg_session_eval(s, y, feeds, 2) && says("what is fed for the node 'h'", "7, but 9 follows"));
    feeds[1].value = eg_ones(EG_FLOAT32, EG_SHAPE(9, 2));
    CHECK_NEAR(eg_item(eg_session_eval(s, y, feeds, 2)), 26, 0);
    CHECK_NEAR(eg_item(eg_session_eval(s, z, feeds + 1, 1)), 18 * 4, 0);   // h alone says how long x would be
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(gradients_of_the_programs_own_tensors_and_zeros) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *dc, *zero, *out[2], *c = eg_scalar(3);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, c);
        dc = eg_tape_gradient(tape, eg_mul(eg_mul(c, c), x), c);
        tape = eg_tape_begin();
        eg_tape_unconnected_zeros(tape, true);
        eg_tape_watch(tape, x);
        eg_tape_watch(tape, c);
        zero = eg_tape_gradient(tape, eg_square(x), c);
    }
    REQUIRE(dc && zero);
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_scalar(2)};
    REQUIRE(eg_session_run(s, &feed, 1, EG_TENSORS(dc, zero), out));
    CHECK(eg_item(out[0]) == 12 && eg_item(out[1]) == 0);
    eg_function *f = NULL;
    CHECK(eg_function_save(eg_session_function(s), test_temp("zeros")));
    REQUIRE((f = eg_function_load(test_temp("zeros"))) != NULL);
    CHECK(eg_function_call(f, &feed.value, 1, out, 2) && eg_item(out[0]) == 12 && eg_item(out[1]) == 0);
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
}
static bool two_results(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(in[0], 2);
    out[1] = eg_mul(in[0], 3);
    return out[0] && out[1];
}
TEST(one_of_several_results_may_be_fed) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    const eg_spec specs[] = {{EG_FLOAT32, EG_SCALAR}, {EG_FLOAT32, EG_SCALAR}};
    eg_tensor *x, *y, *d[2], *h[2], *a, *b, *c, *out[4];
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        y = eg_placeholder(EG_FLOAT32, EG_SCALAR, "y");
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tape_watch(tape, y);
        REQUIRE(eg_tape_gradients(tape, eg_mul(x, y), EG_TENSORS(x, y), d));
        a = eg_mul(d[0], 10);
        b = eg_mul(d[1], 10);
        REQUIRE(eg_host_call(two_results, NULL, &x, 1, h, 2, .results = specs));
        c = eg_add(h[0], h[1]);
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feeds[] = {{x, eg_scalar(3)}, {y, eg_scalar(2)}, {d[1], eg_scalar(7)}, {h[0], eg_scalar(100)}};
    REQUIRE(eg_session_run(s, feeds, 4, EG_TENSORS(a, b, c), out));
    CHECK(eg_item(out[0]) == 20 && eg_item(out[1]) == 70 && eg_item(out[2]) == 109);
    REQUIRE(eg_session_run(s, feeds, 3, EG_TENSORS(d[0], d[1], a, b), out));
    CHECK(eg_item(out[0]) == 2 && eg_item(out[1]) == 7 && eg_item(out[2]) == 20 && eg_item(out[3]) == 70);
    eg_function *f = NULL;
    eg_tensor *in[3], *back[4];
    for (int i = 0; i < 3; i++) in[i] = feeds[i].value;
    CHECK(eg_function_save(eg_session_function(s), test_temp("fed")));
    REQUIRE((f = eg_function_load(test_temp("fed"))) != NULL);
    CHECK(eg_function_call(f, in, 3, back, 4));
    for (int i = 0; i < 4; i++) CHECK(same(out[i], back[i]));
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(constants_variables_and_what_is_fetched_directly) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *range, *four, *v, *sum;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        v = eg_variable(eg_scalar(2), "v");
        range = eg_range(EG_FLOAT32, 0, (double)eg_dim(x, 0), 1);
        eg_tensor *raise = eg_assign_add(v, 10);
        EG_AFTER(raise);
        four = eg_scalar(4);
        sum = eg_add(eg_reduce_sum(x), 0.5);
    }
    eg_session *s = eg_session_new(g);
    eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(3))};
    CHECK(eg_session_initialize(s, NULL, 0));
    CHECK_TENSOR(eg_session_eval(s, range, &feed, 1), 0, 0, 1, 2);
    CHECK_NEAR(eg_item(eg_session_eval(s, four, NULL, 0)), 4, 0);
    CHECK_NEAR(eg_item(eg_session_eval(s, v, NULL, 0)), 12, 0);          // a constant behind EG_AFTER needs it, too
    eg_tensor *fed = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(1)), "fed");
    eg_graph *h = eg_graph_new();
    eg_tensor *z, *w;
    {
        EG_GRAPH(h);
        z = eg_placeholder(EG_FLOAT32, EG_SHAPE(1), "z");
        eg_tensor *raise = eg_assign_add(fed, 10);
        EG_AFTER(raise);
        w = eg_add(z, 0.5);
    }
    eg_session *t = eg_session_new(h);
    feed.node = z;
    feed.value = fed;
    CHECK_NEAR(eg_item(eg_session_eval(t, w, &feed, 1)), 1.5, 0);        // what it was when the run began
    CHECK_NEAR(eg_item(eg_session_eval(t, w, &feed, 1)), 11.5, 0);
    CHECK(sum != NULL);
    eg_session_release(s);
    eg_session_release(t);
    eg_graph_release(g);
    eg_graph_release(h);
    eg_release(v);
    eg_release(fed);
}
TEST(a_graph_lives_until_its_block_ends) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        { EG_SCOPE; eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x"); }
        eg_graph_release(g);
    }
    CHECK(eg_executing_eagerly());
    CHECK_NEAR(eg_item(eg_mul(eg_scalar(2), 3)), 6, 0);
}
TEST(handles_of_a_node_take_no_memory_for_ever) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *v;
    {
        EG_GRAPH(g);
        eg_graph_name(eg_mul(eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x"), 2), "y");
        v = eg_variable(eg_scalar(2), "v");
        eg_set_trainable(v, false);
        eg_graph_name(eg_square(v), "square");
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    int64_t before = 0;
    for (int i = 0; i < 600; i++) {
        EG_SCOPE;
        const eg_feed feed = {eg_graph_node(g, "x"), eg_ones(EG_FLOAT32, EG_SHAPE(2))};
        CHECK(eg_session_eval(s, eg_graph_node(g, "y"), &feed, 1));
        if (i == 100) before = eg_memory().live_bytes;
    }
    CHECK(eg_memory().live_bytes <= before);
    // What may not be trained is not trained in sessions either, nor in files.
    CHECK(!eg_trainable(eg_graph_node(g, "v")) && !eg_trainable(eg_session_variable(s, v)));
    eg_tape *tape = eg_tape_begin();
    CHECK(eg_session_eval(s, eg_graph_node(g, "square"), NULL, 0));
    CHECK_INT(eg_tape_watched_variables_list(tape).count, 0);
    eg_function *f = NULL;
    CHECK(eg_function_save(eg_session_function(s), test_temp("fixed")));
    REQUIRE((f = eg_function_load(test_temp("fixed"))) != NULL);
    CHECK(!eg_trainable(eg_function_variables_list(f).tensors[0]));
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
}
TEST(files_take_what_a_session_holds) {
    EG_SCOPE;
    const char *prefix = test_temp("session_checkpoint");
    eg_graph *g = eg_graph_new();
    eg_layer *model = eg_layer_dense(2), *eager = eg_layer_dense(2);
    eg_optimizer *adam = eg_adam(.learning_rate = 0.125), *other = eg_adam(.learning_rate = 0.125);
    eg_tensor *x, *y, *train, *in = eg_random_normal(EG_SHAPE(3, 4)), *grads[2];
    eg_optimizer_set_learning_rate(adam, 0.25);                      // what sessions begin with
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 4), "x");
        eg_tape *tape = eg_tape_begin();
        y = eg_call(model, x);
        eg_list weights = eg_layer_weights_list(model);
        REQUIRE(eg_tape_gradients(tape, eg_reduce_sum(eg_square(y)), weights.tensors, 2, grads) &&
                eg_apply_gradients(adam, grads, weights.tensors, 2));
        train = eg_graph_update();
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, in};
    CHECK(eg_session_initialize(s, NULL, 0) && eg_session_eval(s, train, &feed, 1));
    CHECK_NEAR(eg_optimizer_learning_rate(eg_session_optimizer(s, adam)), 0.25, 0);
    eg_checkpoint *there = eg_checkpoint_new(), *here = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(there, "model", model) && eg_checkpoint_track_optimizer(there, "adam", adam));
    CHECK(!eg_checkpoint_save(there, prefix) && says("eg_checkpoint_save: variable", "EG_SESSION(s)"));
    CHECK(!eg_save_weights(model, test_temp("weights.npz")) && says("eg_save_weights: variable", "EG_SESSION(s)"));
    CHECK(!eg_optimizer_set_learning_rate(adam, 0.5) && says("optimizer 'adam' is a graph's", "eg_session_optimizer"));
    {
        eg_graph *none = eg_graph_new();                               // whose sessions know nothing of adam
        eg_session *foreign = eg_session_new(none);
        EG_SESSION(foreign);
        const char *no_update = "no update of this session's graph is made by that optimizer, an eg_adam";
        CHECK(eg_optimizer_steps(adam) == -1 && says("eg_optimizer_steps: ", no_update));
        CHECK(isnan(eg_optimizer_learning_rate(adam)) && says("eg_optimizer_learning_rate: ", no_update));
        CHECK(!eg_optimizer_set_learning_rate(adam, 0.5) && says("eg_optimizer_set_learning_rate: ", no_update));
        CHECK(eg_optimizer_state(adam, NULL, 0) == -1 && says("eg_optimizer_state: ", no_update));
        CHECK(eg_optimizer_state_list(adam).count == -1 && says("eg_optimizer_state_list: ", no_update));
        CHECK(!eg_session_optimizer(foreign, adam) && says("eg_session_optimizer: ", no_update));
        CHECK(!eg_save_weights(model, test_temp("weights.npz")) &&
              says("eg_save_weights: operand 0, ", "is no node of this session's graph"));
        eg_session_release(foreign);
        eg_graph_release(none);
    }
    eg_checkpoint *alone = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_optimizer(alone, "adam", adam) && !eg_checkpoint_save(alone, prefix) &&
          says("eg_checkpoint_save: optimizer 'adam' is a graph's", "eg_session_optimizer(s, optimizer)"));
    eg_checkpoint_release(alone);
    const char *path;
    {
        EG_SESSION(s);
        CHECK(eg_save_weights(model, test_temp("weights.npz")));
        CHECK(eg_optimizer_set_learning_rate(adam, 0.0625));
        CHECK(eg_optimizer_learning_rate(adam) == 0.0625 && eg_optimizer_steps(adam) == 1);
        CHECK_INT(eg_optimizer_state_list(adam).count, eg_optimizer_state(adam, NULL, 0));
        CHECK_INT(eg_optimizer_state_list(adam).count, 2 + 2 * 2);
        REQUIRE((path = eg_checkpoint_save(there, prefix)) != NULL);
    }
    CHECK(eg_optimizer_learning_rate(adam) == 0.25 && eg_optimizer_steps(adam) == 0);
    eg_call(eager, in);
    CHECK(eg_checkpoint_track_layer(here, "model", eager) && eg_checkpoint_track_optimizer(here, "adam", other));
    CHECK(eg_checkpoint_restore(here, path) && eg_checkpoint_assert_consumed(here));
    CHECK(eg_optimizer_learning_rate(other) == 0.0625 && eg_optimizer_steps(other) == 1);
    CHECK(same(eg_call(eager, in), eg_session_eval(s, y, &feed, 1)));
    for (int i = 0; i < 2; i++) {                                    // both train on, and give the file back
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_sum(eg_square(eg_call(eager, in)));
        eg_list weights = eg_layer_weights_list(eager);
        CHECK(eg_tape_gradients(tape, loss, weights.tensors, 2, grads) &&
              eg_apply_gradients(other, grads, weights.tensors, 2) && eg_session_eval(s, train, &feed, 1));
        CHECK(same(eg_call(eager, in), eg_session_eval(s, y, &feed, 1)));
    }
    eg_assign(eg_layer_weights_list(eager).tensors[1], eg_full(EG_FLOAT32, EG_SHAPE(2), 5));
    REQUIRE((path = eg_checkpoint_save(here, prefix)) != NULL);
    {
        EG_SESSION(s);
        CHECK(eg_checkpoint_restore(there, path) && eg_checkpoint_assert_consumed(there));
        CHECK_NEAR(eg_optimizer_steps(eg_session_optimizer(s, adam)), 3, 0);
        CHECK(same(eg_call(eager, in), eg_session_eval(s, y, &feed, 1)));
        CHECK(eg_load_weights(model, test_temp("weights.npz")));
    }
    CHECK(!same(eg_call(eager, in), eg_session_eval(s, y, &feed, 1)));
    eg_checkpoint_release(there);
    eg_checkpoint_release(here);
    eg_session_release(s);
    eg_graph_release(g);
    eg_layer_release(model);
    eg_layer_release(eager);
    eg_optimizer_release(adam);
    eg_optimizer_release(other);
}
static int64_t summary_bytes(eg_summary_writer *w) {
    CHECK(eg_summary_writer_flush(w));
    FILE *file = fopen(eg_summary_writer_path(w), "rb");
    if (!file) return 0;
    fseek(file, 0, SEEK_END);
    const int64_t bytes = (int64_t)ftell(file);
    fclose(file);
    return bytes;
}
TEST(summaries_of_nodes_are_written_in_each_run) {
    EG_SCOPE;
    eg_summary_writer *w = eg_summary_writer_open(test_temp("graph_summaries"));
    REQUIRE(w != NULL);
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *loss, *z;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        loss = eg_reduce_mean(eg_square(x));
        z = eg_mul(x, 3);
        CHECK(eg_summary_scalar("loss", loss, .writer = w) && eg_summary_histogram("x", x, .writer = w, .buckets = 3));
    }
    const int64_t empty = summary_bytes(w);
    eg_session *s = eg_session_new(g);
    eg_feed feed = {x, eg_constant(EG_SHAPE(2), 1, 3)};
    int64_t bytes[5];
    for (int i = 0; i < 5; i++) {
        eg_summary_set_step(i);
        feed.value = eg_full(EG_FLOAT32, EG_SHAPE(2), i);
        CHECK(eg_session_eval(s, loss, &feed, 1));
        bytes[i] = summary_bytes(w);
        CHECK(bytes[i] > (i ? bytes[i - 1] : empty));
    }
    eg_function *f = NULL;
    eg_tensor *out;
    CHECK(eg_function_save(eg_session_function(s), test_temp("summaries")));       // which holds none of them
    REQUIRE((f = eg_function_load(test_temp("summaries"))) != NULL);
    CHECK(eg_function_call(f, &feed.value, 1, &out, 1) && eg_item(out) == 16);
    CHECK_INT(summary_bytes(w), bytes[4]);
    CHECK(eg_session_eval(s, z, &feed, 1));                                        // x is fed: its histogram is written
    CHECK(summary_bytes(w) > bytes[4]);
    eg_function_release(f);
    eg_session_release(s);
    eg_graph_release(g);
    eg_summary_writer_release(w);
}
static eg_tensor *of_the_middle(eg_tensor *x, eg_tensor *w, eg_tensor **grads) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *h = eg_square(x), *of[2];
    of[0] = h;
    of[1] = x;
    return eg_tape_gradients(tape, eg_mul(eg_mul(h, h), w), of, 2, grads) ? h : NULL;
}
static bool middle_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tape *tape = eg_tape_begin();
    (void)user;
    eg_tape_watch(tape, in[0]);
    eg_tensor *h = eg_square(in[0]);
    return (out[0] = eg_tape_gradient(tape, eg_mul(h, h), h)) != NULL;
}
TEST(gradients_of_what_a_tape_saw_computed) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *grads[2], *out[2], *expected[2], *w = eg_constant(EG_SHAPE(1), 5);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(1), "x");
        REQUIRE(of_the_middle(x, w, grads));
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tensor *y = eg_square(x);
        CHECK(eg_tape_stop(tape));
        eg_tensor *z = eg_mul(x, 3);
        CHECK(eg_tape_resume(tape));
        CHECK(!eg_tape_gradient(tape, eg_mul(y, z), x) && says("eg_tape_stop", "EG_NO_RECORDING"));
        tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        y = eg_square(x);
        CHECK(eg_tape_stop(tape));
        z = eg_mul(y, x);
        eg_print(z);                                           // a node without a result behind what ran unseen
        CHECK(!eg_tape_gradient(tape, z, x) && says("eg_tape_stop", "EG_NO_RECORDING"));
        tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, x);
        y = eg_square(x);
        CHECK(eg_tape_stop(tape) && eg_sin(x) && eg_tape_gradient(tape, y, x) && eg_tape_gradient(tape, y, x));
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_constant(EG_SHAPE(1), 3)};
    REQUIRE(eg_session_run(s, &feed, 1, grads, 2, out) && of_the_middle(feed.value, w, expected));
    for (int i = 0; i < 2; i++) CHECK(same(out[i], expected[i]));
    eg_session_release(s);
    eg_graph_release(g);
    eg_function *f = eg_function_new(middle_body, NULL), *loaded = NULL;
    CHECK(eg_function_call(f, &feed.value, 1, out, 1) && eg_function_save(f, test_temp("middle")));
    REQUIRE((loaded = eg_function_load(test_temp("middle"))) != NULL);
    CHECK(eg_function_call(loaded, &feed.value, 1, expected, 1) && same(out[0], expected[0]));
    eg_function_release(loaded);
    eg_function_release(f);
}
TEST(an_update_takes_along_the_statistics_of_its_own_layers) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_layer *a = eg_layer_batch_normalization(), *b = eg_layer_batch_normalization(), *shared = eg_layer_dense(3);
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.1), *other = eg_sgd();
    eg_tensor *x, *y, *train;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "x");
        y = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 3), "y");
        eg_tape *tape = eg_tape_begin();
        eg_tensor *h = eg_call(shared, x), *v[8], *grads[8];
        eg_tensor *loss = eg_reduce_sum(eg_square(eg_call(a, h, .training = true)));
        CHECK(eg_call(b, eg_add(h, y), .training = true));
        v[0] = eg_layer_weights_list(shared).tensors[0];
        REQUIRE(eg_tape_gradients(tape, loss, v, 1, grads) && eg_apply_gradients(sgd, grads, v, 1));
        train = eg_graph_update();
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    const eg_feed feed = {x, eg_random_normal(EG_SHAPE(4, 3))};
    CHECK(eg_session_eval(s, train, &feed, 1));                    // needs no y
    eg_tensor *mean = eg_session_eval(s, eg_layer_weights_list(a).tensors[2], NULL, 0);
    CHECK(eg_item(eg_reduce_max(eg_abs(mean))) > 0);
    mean = eg_session_eval(s, eg_layer_weights_list(b).tensors[2], NULL, 0);
    CHECK_NEAR(eg_item(eg_reduce_max(eg_abs(mean))), 0, 0);
    CHECK(!eg_session_optimizer(s, other) && says("eg_session_optimizer", "by that optimizer"));
    CHECK(eg_session_optimizer(s, sgd));
    eg_session_release(s);
    eg_graph_release(g);
    eg_layer_release(a);
    eg_layer_release(b);
    eg_layer_release(shared);
    eg_optimizer_release(sgd);
    eg_optimizer_release(other);
}
static int printed;
static void count_print(const char *text, void *user) { (void)text, (void)user; printed++; }
TEST(assertions_and_prints_of_nodes_run_with_them) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y, *z;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1), "x");
        y = eg_mul(x, 2);
        z = eg_mul(x, 3);
        CHECK(eg_assert_near(y, eg_add(x, x), 1e-6) && eg_assert_equal(z, eg_full(EG_FLOAT32, EG_SHAPE(2), 3)));
        eg_print(y);
    }
    eg_session *s = eg_session_new(g);
    eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(2))};
    eg_set_printer(count_print, NULL);
    printed = 0;
    for (int i = 0; i < 4; i++) CHECK(eg_session_eval(s, y, &feed, 1));
    CHECK(printed >= 4);
    const int before = printed;
    CHECK(eg_session_eval(s, z, &feed, 1));
    feed.value = eg_zeros(EG_FLOAT32, EG_SHAPE(2));
    CHECK(!eg_session_eval(s, z, &feed, 1) && says("eg_assert_equal", NULL));
    CHECK_INT(printed, before);
    eg_set_printer(NULL, NULL);
    const eg_feed none = {x, NULL}, nowhere = {NULL, feed.value};
    CHECK(!eg_session_eval(s, y, &none, 1) && says("the value of feed 0 is NULL", NULL));
    CHECK(!eg_session_eval(s, y, &nowhere, 1) && says("the node of feed 0 is NULL", NULL));
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(no_rows_are_rows_too) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *scaled;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT64, EG_SHAPE(-1, 2), "x");
        scaled = eg_mul(x, 1 / (double)eg_dim(x, 0));
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_zeros(EG_FLOAT64, EG_SHAPE(0, 2))};
    eg_tensor *out = eg_session_eval(s, scaled, &feed, 1);
    CHECK(out && eg_size(out) == 0);
    eg_session_release(s);
    eg_graph_release(g);
}
TEST(a_function_does_not_outlive_its_session) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *y, *z, *out;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
        y = eg_graph_name(eg_mul(x, 2), "y");
        z = eg_graph_name(eg_mul(x, 3), "z");
    }
    eg_session *s = eg_session_new(g);
    CHECK(!eg_session_function(s));
    const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(2))};
    CHECK(eg_session_eval(s, y, &feed, 1) && eg_session_eval(s, z, &feed, 1) && eg_session_eval(s, y, &feed, 1));
    CHECK_INT(eg_function_output(eg_session_function(s), "y"), 0);             // which ran last
    for (int i = 0; i < 2; i++) {
        eg_function_release(eg_session_function(s));                           // nobody has retained it
        CHECK(says("eg_function_release: the function is its session's, which releases it", "sessions.c:"));
        CHECK_NEAR(eg_item(eg_reduce_sum(eg_session_eval(s, y, &feed, 1))), 4, 0);
    }
    eg_function *f = eg_function_retain(eg_session_function(s));
    CHECK(eg_function_call(f, &feed.value, 1, &out, 1));
    eg_session_release(s);
    for (int i = 0; i < 3; i++)
        CHECK(!eg_function_call(f, &feed.value, 1, &out, 1) && says("the session of this function was closed", NULL));
    CHECK(eg_function_input(f, "x") == -1 && says("eg_function_input", NULL));
    CHECK(!eg_function_save(f, test_temp("closed")) && says("was closed", NULL));
    eg_function_release(f);
    eg_graph_release(g);
}
TEST(a_tape_may_begin_with_what_the_program_computes) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *dx, *c = eg_constant(EG_SHAPE(1), 3);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(1), "x");
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, c);
        eg_tape_watch(tape, x);
        eg_tensor *d = eg_mul(c, c);
        dx = eg_tape_gradient(tape, eg_mul(d, eg_square(x)), x);
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_constant(EG_SHAPE(1), 2)};
    CHECK_TENSOR(eg_session_eval(s, dx, &feed, 1), 0, 36);
    eg_session_release(s);
    eg_graph_release(g);
}

TEST(a_source_is_watched_before_it_is_read) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *dread, *dx;
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        eg_tensor *read = eg_square(x);                                 // before the tapes: not recorded
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, read);
        eg_tensor *b = eg_mul(read, 3);
        eg_tensor *a = eg_mul(x, 2);                                    // x is not watched yet
        eg_tape_watch(tape, x);
        eg_tensor *y = eg_add(eg_mul(x, 5), a);
        CHECK(!eg_tape_gradient(tape, y, x));
        CHECK(says("'x' was watched after eg_mul had read it", "watch it before"));
        dread = eg_tape_gradient(tape, b, read);
        eg_tape *other = eg_tape_begin();
        eg_tape_watch(other, x);
        dx = eg_tape_gradient(other, eg_mul(x, eg_stop_gradient(eg_mul(x, 2))), x);
    }
    eg_session *s = eg_session_new(g);
    eg_tensor *fetches[] = {dread, dx}, *out[2];
    const eg_feed feed = {x, eg_scalar(4)};
    REQUIRE(eg_session_run(s, &feed, 1, fetches, 2, out));
    CHECK(eg_item(out[0]) == 3 && eg_item(out[1]) == 8);
    eg_session_release(s);
    eg_graph_release(g);
}

static bool releases(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_session *s = *(eg_session **)user;
    eg_session_release(eg_session_retain(s));                               // not the last reference
    if (eg_error()) return false;
    eg_session_release(s);
    out[0] = eg_mul(in[0], 2);
    return says("eg_session_release: the session is running", NULL) && out[0];
}
TEST(a_variable_is_watched_before_it_is_read) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *w;
    {
        EG_GRAPH(g);
        w = eg_variable(eg_scalar(2), "w");
        eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tape_watch_variables(tape, false);
        eg_tensor *y = eg_mul(w, x);
        eg_tape_watch(tape, w);
        CHECK(!eg_tape_gradient(tape, eg_mul(w, y), w) && says("was watched after eg_mul had read it", NULL));
    }
    eg_graph_release(g);
    eg_release(w);
}
TEST(a_session_is_not_released_by_its_own_run) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_session *s = eg_session_new(g);
    eg_tensor *x, *y;
    const eg_spec spec = {EG_FLOAT32, {0, {0}}};
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SCALAR, "x");
        REQUIRE(eg_host_call(releases, &s, &x, 1, &y, 1, .results = &spec));
    }
    const eg_feed feed = {x, eg_scalar(4)};
    for (int i = 0; i < 3; i++) CHECK_NEAR(eg_item(eg_session_eval(s, y, &feed, 1)), 8, 0);
    eg_session_release(s);
    eg_graph_release(g);
}

TEST(mistakes_with_nodes_are_told_by_name) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *x, *w, *y, *here = eg_ones(EG_FLOAT32, EG_SHAPE(2));
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
        CHECK(!eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x") && says("eg_placeholder: the graph has a node 'x'", NULL));
        w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "w");
        y = eg_mul(x, w);
    }
    CHECK(!eg_add(y, 1) && says("eg_add: float32 [2] (from eg_mul) is a node of a graph", "eg_session_run"));
    CHECK(!eg_add(y, here) && says("eg_add: float32 [2] (from eg_mul) is a node of a graph, and", "eg_session_run"));
    CHECK(!eg_assign(w, here) && says("float32 [2] 'w' is a node of a graph", "eg_session_variable"));
    CHECK(!eg_graph_node(g, "x:0") && says("names here have no \":0\"", NULL));
    eg_session *s = eg_session_new(g);
    eg_tensor *fetches[] = {y, x}, *out[2];
    const eg_feed feed = {x, here};
    CHECK(eg_session_initialize(s, NULL, 0) && eg_session_run(s, &feed, 1, fetches, 2, out));
    eg_function *f = eg_session_function(s);
    const char *path = test_temp("names");
    CHECK(!eg_function_save(f, path, .outputs = EG_NAMES("a")) && says(".outputs has 1 name for 2 outputs", NULL));
    CHECK(!eg_function_save(f, path, .outputs = EG_NAMES("a", "b", "c")) && says("3 names for 2 outputs", NULL));
    CHECK(!eg_function_save(f, path, .outputs = EG_NAMES("a", "a")) && says(".outputs names 'a' twice", NULL));
    CHECK(!eg_function_save(f, path, .inputs = EG_NAMES("a", "b")) && says(".inputs has 2 names for 1 input", NULL));
    CHECK(eg_function_save(f, path, .inputs = EG_NAMES("p"), .outputs = EG_NAMES("q", "r")));
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(w);
}

// ---- threads

#ifndef EAGER_NO_THREADS
enum { THREADS = 4 };
typedef struct runner {
    pthread_t thread;
    eg_session *s;
    eg_graph *g;
    eg_tensor *add, *read;
    int number, wrong;
} runner;
static void *run_it(void *argument) {
    runner *r = (runner *)argument;
    eg_set_device(test_device());
    for (int i = 0; i < 40; i++) {
        EG_SCOPE;
        const int n = 1 + (i + r->number) % 3;
        eg_tensor *y = eg_graph_node(r->g, i % 2 ? "y" : "z");             // handles are made meanwhile
        const eg_feed feed = {eg_graph_node(r->g, "x"), eg_full(EG_FLOAT32, EG_SHAPE(n, 2), r->number)};
        eg_tensor *out = eg_session_eval(r->s, y, &feed, 1);
        const double want = i % 2 ? 3.0 * n * 2 * r->number : 6.0 * n * r->number + 2 * n;
        r->wrong += !out || fabs(eg_item(eg_reduce_sum(out)) - want) > 0;
    }
    return NULL;
}
TEST(threads_run_one_session_at_once) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *w;
    {
        EG_GRAPH(g);
        eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        w = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), 3), "w");
        eg_tensor *y = eg_graph_name(eg_mul(x, w), "y");
        eg_graph_name(eg_add(y, eg_constant(EG_SHAPE(2), 1, 1)), "z");
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    runner r[THREADS];
    for (int i = 0; i < THREADS; i++) {
        r[i] = (runner){.s = s, .g = g, .number = i + 1};
        REQUIRE(!pthread_create(&r[i].thread, NULL, run_it, &r[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(r[i].thread, NULL);
        CHECK_INT(r[i].wrong, 0);
    }
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(w);
}
// A graph that one thread begins and another, whose tensors have smaller ids, continues: gradients, and J v, whose
// second tape has only lines of a gradient.
static eg_tensor *sine_of_square(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_sin(eg_square(in[0]));
}
static void *begin_it(void *argument) {
    EG_GRAPH((eg_graph *)argument);
    eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
    return NULL;
}
TEST(a_second_thread_continues_a_graph) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *v = eg_constant(EG_SHAPE(2), 3, 4), *gradient, *product;   // v's id is of an earlier block than x's
    pthread_t first;
    REQUIRE(!pthread_create(&first, NULL, begin_it, g));
    pthread_join(first, NULL);
    eg_tensor *x = eg_graph_node(g, "x");
    {
        EG_GRAPH(g);
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        gradient = eg_keep(eg_tape_gradient(tape, eg_mul(eg_square(x), x), x));
        product = eg_keep(eg_jvp(sine_of_square, NULL, &x, &x, 1));
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, v};
    CHECK_TENSOR(eg_session_eval(s, gradient, &feed, 1), 0, 27, 48);
    CHECK_SAME(eg_session_eval(s, product, &feed, 1), eg_jvp(sine_of_square, NULL, &v, &v, 1), 0);
    eg_session_release(s);
    eg_graph_release(g);
}
// A tape that is reset after it recorded a gradient: a run's tape begins at the reset, too.
static eg_tensor *after_reset(int kind, eg_tensor *x, eg_tensor *u) {
    eg_tape *cubes = eg_tape_begin_persistent();
    eg_tape_watch(cubes, x);
    eg_tensor *y = eg_mul(eg_square(x), x), *z = eg_sin(x), *g = NULL, *ys[2] = { y, z };
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, u);
    if (!eg_tape_gradients_from(cubes, &y, 1, &u, &x, 1, &g) || !eg_tape_gradient(tape, g, u)) return NULL;
    eg_tensor *q = eg_square(kind == 2 ? g : u), *seed[2] = { u, g };
    eg_tape_reset(tape);
    eg_tape_watch(tape, u);
    if (kind) return eg_tape_gradient(tape, eg_mul(q, u), u);
    if (!eg_tape_gradients_from(cubes, ys, 2, seed, &x, 1, &g)) return NULL;
    return eg_tape_gradient(tape, g, u);
}
TEST(a_tape_is_reset_in_a_graph) {
    for (int kind = 0; kind < 3; kind++) {
        EG_SCOPE;
        eg_graph *g = eg_graph_new();
        eg_tensor *x = eg_constant(EG_SHAPE(2), 0.5, 0.7), *u = eg_constant(EG_SHAPE(2), 2, 3), *a, *b, *y;
        {
            EG_GRAPH(g);
            a = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
            b = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "u");
            y = eg_keep(after_reset(kind, a, b));
        }
        REQUIRE(y);
        eg_session *s = eg_session_new(g);
        const eg_feed feeds[] = { { a, x }, { b, u } };
        CHECK_SAME(eg_session_eval(s, y, feeds, 2), after_reset(kind, x, u), 1e-5);
        eg_session_release(s);
        eg_graph_release(g);
    }
}
// One tape over two graphs: of each, a run's tape begins at its own nodes.
TEST(a_tape_stays_open_over_two_graphs) {
    EG_SCOPE;
    eg_tensor *x = eg_constant(EG_SHAPE(2), 0.5, 0.7), *u = eg_constant(EG_SHAPE(2), 2, 3);
    eg_tape *tape = eg_tape_begin_persistent();
    for (int more = 50; more >= 0; more -= 50) {
        eg_graph *g = eg_graph_new();
        eg_tensor *a, *b, *gradient, *y;
        {
            EG_GRAPH(g);
            a = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "x");
            b = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "u");
            for (int i = 0; i < more; i++) eg_square(a);
            eg_tape *cubes = eg_tape_begin_persistent();
            eg_tape_watch(cubes, a);
            eg_tensor *cube = eg_mul(eg_square(a), a);
            eg_tape_watch(tape, b);
            REQUIRE(eg_tape_gradients_from(cubes, &cube, 1, &b, &a, 1, &gradient));
            y = eg_keep(eg_tape_gradient(tape, eg_mul(gradient, b), b));
        }
        REQUIRE(y);
        eg_session *s = eg_session_new(g);
        const eg_feed feeds[] = { { a, x }, { b, u } };
        eg_tensor *run = eg_session_eval(s, y, feeds, 2);
        REQUIRE(run);
        CHECK_TENSOR(run, 1e-5, 3, 8.82);
        eg_session_release(s);
        eg_graph_release(g);
    }
}
// Threads that initialize, train, read and release one session: each call works, or is an error that says why.
static void *use_it(void *argument) {
    runner *r = (runner *)argument;
    eg_set_device(test_device());
    eg_set_error_handler(NULL, NULL);
    for (int i = 0; i < 60; i++) {
        EG_SCOPE;
        const int what = (i + r->number) % 3;
        eg_tensor *out = NULL;
        if (what == 0) (void)eg_session_initialize(r->s, NULL, 0);
        else out = eg_session_eval(r->s, what == 1 ? r->add : r->read, NULL, 0);
        const eg_error_code code = eg_error();
        r->wrong += (out && eg_item(out) < 1) || (code != EG_OK && code != EG_ERROR_STATE);
        eg_error_clear();
    }
    return NULL;
}
TEST(threads_that_initialize_and_assign_exclude_each_other) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *v, *add, *read;
    {
        EG_GRAPH(g);
        v = eg_variable(eg_scalar(1), "v");
        add = eg_assign_add(v, 1);
        read = eg_add(eg_mul(eg_ones(EG_FLOAT32, EG_SCALAR), 2), 1);
    }
    eg_session *s = eg_session_new(g);
    runner r[THREADS];
    for (int i = 0; i < THREADS; i++) {
        r[i] = (runner){.s = s, .g = g, .number = i, .add = add, .read = read};
        REQUIRE(!pthread_create(&r[i].thread, NULL, use_it, &r[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(r[i].thread, NULL);
        CHECK_INT(r[i].wrong, 0);
    }
    CHECK(eg_session_initialize(s, NULL, 0));
    CHECK_NEAR(eg_item(eg_session_eval(s, add, NULL, 0)), 2, 0);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
}
#endif

// ---- memory

static bool all_of_it(void) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_dataset *d = eg_dataset_batch(eg_dataset_range(0, 5, 1), 2);
    eg_iterator *it = d ? eg_iterator_new(d) : NULL, *own = eg_iterator_initializable(up_to, NULL);
    eg_session *s = NULL;
    const eg_spec spec = {EG_INT64, EG_SCALAR};
    eg_tensor *element[EG_MAX_COMPONENTS], *x = NULL, *y = NULL, *part = NULL, *v = NULL, *begin = NULL, *next = NULL,
              *table = eg_ones(EG_FLOAT32, EG_SHAPE(4)), *out[2];
    if (g && it && own && eg_graph_begin(g)) {
        x = eg_iterator_next(it, element) == EG_NEXT ? eg_cast(element[0], EG_FLOAT32) : NULL;
        if (x && table) x = eg_mul(x, eg_add(eg_slice(table, EG_SHAPE(0), EG_SHAPE(eg_dim(x, 0))),
                                             eg_range(EG_FLOAT32, 0, (double)eg_dim(x, 0), 1)));
        if (x) y = eg_custom_gradient(steep, steep_grad, &five, &x, 1);
        if (y) v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(4)), "v");
        if (v) part = eg_assign_slice(v, EG_SHAPE(1), EG_SHAPE(2), 3);
        if (part) begin = eg_graph_iterator_feed(own, EG_TENSORS(eg_constant_of(EG_INT64, EG_SCALAR, 3)));
        if (begin && !eg_graph_next(eg_iterator_handle(own), &spec, 1, &next)) next = NULL;
        if (next) next = eg_to(next, "cpu:0");
        eg_graph_end(g);
    }
    if (next) s = eg_session_new(g);
    bool ok = s && eg_graph_dot(g, NULL, 0) > 0 && eg_session_initialize(s, NULL, 0);
    for (int i = 0; i < 3 && ok; i++) {
        EG_SCOPE;
        EG_SESSION(s);
        ok = eg_session_next(s, NULL, 0, EG_TENSORS(y, part), out) == EG_NEXT && eg_session_eval(s, begin, NULL, 0) &&
             eg_item_int(next) == 0 && !eg_error();
    }
    eg_session_release(s);
    eg_graph_release(g);
    eg_iterator_release(it);
    eg_iterator_release(own);
    eg_dataset_release(d);
    eg_release(v);
    return ok;
}
TEST(every_allocation_may_fail) {
    if (!test_on_host) SKIP("the device keeps memory of its own");
    faults_sweep(all_of_it);
}

// eg_session_initialize sets back whether a variable is trained, as a setter: a body that asks is run again.
static bool asks_trainable(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(in[0], 1 + eg_trainable((eg_tensor *)user));
    return out[0] != NULL;
}
TEST(initializing_is_a_setter) {
    eg_graph *g = eg_graph_new();
    eg_tensor *v, *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    {
        EG_GRAPH(g);
        v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "v");
    }
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, NULL, 0));
    eg_tensor *w = eg_session_variable(s, v);
    eg_function *f = eg_function_new(asks_trainable, w);
    for (int i = 0; i < 40; i++) {
        EG_SCOPE;
        if (i % 10 == 7) eg_set_trainable(w, false);
        if (i % 10 == 9) CHECK(eg_session_initialize(s, NULL, 0));
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(eg_index(y, 0), 0, 1 + (i % 10 != 7 && i % 10 != 8));
    }
    CHECK(eg_function_counts(f).replays > 5);
    eg_function_release(f);
    eg_session_release(s);
    eg_release(v);
    eg_graph_release(g);
}
// A session's first values are no setter: lists of functions, which know none of its variables, are replayed.
static bool doubles(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(in[0], 2)) != NULL;
}
TEST(initializing_a_new_session_is_no_setter) {
    eg_graph *g = eg_graph_new();
    eg_tensor *v, *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    {
        EG_GRAPH(g);
        v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "v");
        eg_set_trainable(v, false);
    }
    eg_function *f = eg_function_new(doubles, NULL);
    for (int i = 0; i < 40; i++) {
        EG_SCOPE;
        eg_session *s = eg_session_new(g);
        CHECK(eg_session_initialize(s, NULL, 0) && !eg_trainable(eg_session_variable(s, v)));
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        eg_session_release(s);
    }
    CHECK(eg_function_counts(f).replays > 20);
    eg_function_release(f);
    eg_release(v);
    eg_graph_release(g);
}
