// Recurrent layers and attention: sizes, states, masks, dropout, directions, gradients of gradients, and what is
// refused. rnn_fixtures.c holds their numbers against Keras.
#ifndef EAGER_BACKEND
#define EAGER_BACKEND
#endif
#include "test.h"

enum { MANY = 16 };

static eg_tensor *sequences(int64_t batch, int64_t steps, int64_t features) {
    return eg_random_normal(EG_SHAPE(batch, steps, features));
}
static eg_tensor *weight(eg_layer *layer, const char *path) {
    eg_tensor *all[MANY];
    char text[128];
    int n = eg_layer_weights(layer, all, MANY);
    for (int i = 0; i < n; i++)
        if (strcmp(eg_layer_weight_path(layer, i, text, sizeof text), path) == 0) return all[i];
    test_say(__FILE__, __LINE__, path, "there is no such weight");
    return NULL;
}
static eg_tensor *steps_of(eg_tensor *x, int64_t from, int64_t count) {
    return eg_slice(x, EG_SHAPE(0, from, 0), EG_SHAPE(-1, count, -1));
}

TEST(sizes_and_names) {
    eg_tensor *x = sequences(2, 5, 3);
    const struct { eg_layer *layer; int64_t parameters; const char *paths; } all[] = {
        {eg_layer_simple_rnn(8), 8 * 3 + 8 * 8 + 8, "kernel recurrent_kernel bias "},
        {eg_layer_lstm(8), 4 * (8 * 3 + 8 * 8 + 8), "kernel recurrent_kernel bias "},
        {eg_layer_lstm(8, .no_bias = true), 4 * (8 * 3 + 8 * 8), "kernel recurrent_kernel "},
        {eg_layer_gru(8), 3 * (8 * 3 + 8 * 8 + 2 * 8), "kernel recurrent_kernel bias "},
        {eg_layer_gru(8, .reset_before = true), 3 * (8 * 3 + 8 * 8 + 8), "kernel recurrent_kernel bias "},
        {eg_layer_bidirectional(eg_layer_gru(8, .no_bias = true)), 2 * 3 * (8 * 3 + 8 * 8),
         "forward_gru/kernel forward_gru/recurrent_kernel backward_gru/kernel backward_gru/recurrent_kernel "},
        {eg_layer_multi_head_attention(2, 4), 3 * (3 * 8 + 8) + 8 * 3 + 3,
         "query/kernel query/bias key/kernel key/bias value/kernel value/bias "
         "attention_output/kernel attention_output/bias "},
        {eg_layer_multi_head_attention(4, 2, .no_bias = true, .value_dim = 3, .output_units = 5, .kv_heads = 2),
         3 * 8 + 3 * 4 + 3 * 6 + 12 * 5,
         "query/kernel key/kernel value/kernel attention_output/kernel "},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char paths[512] = "", text[128];
        CHECK(eg_layer_build(all[i].layer, EG_SHAPE(-1, -1, 3)));
        CHECK_INT(eg_layer_parameters(all[i].layer), all[i].parameters);
        for (int k = 0; k < eg_layer_weights(all[i].layer, NULL, 0); k++) {
            strcat(paths, eg_layer_weight_path(all[i].layer, k, text, sizeof text));
            strcat(paths, " ");
        }
        CHECK_STR(paths, all[i].paths);
        eg_tensor *y = eg_call(all[i].layer, x);
        if (i < 5) CHECK_SHAPE(y, 2, 8);
        else if (i == 5) CHECK_SHAPE(y, 2, 16);
        else CHECK_SHAPE(y, 2, 5, i == 6 ? 3 : 5);
        eg_layer_release(all[i].layer);
    }
}

TEST(how_weights_start) {
    eg_layer *lstm = eg_layer_lstm(3), *plain = eg_layer_lstm(3, .no_forget_bias = true),
             *gru = eg_layer_gru(2, .bias_initializer = EG_INIT_ONES);
    CHECK(eg_layer_build(lstm, EG_SHAPE(-1, -1, 2)) && eg_layer_build(plain, EG_SHAPE(-1, -1, 2)) &&
          eg_layer_build(gru, EG_SHAPE(-1, -1, 2)));
    CHECK_TENSOR(weight(lstm, "bias"), 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0);
    CHECK_TENSOR(eg_reduce_sum(weight(plain, "bias")), 0, 0);
    CHECK_SHAPE(weight(gru, "bias"), 2, 6);
    CHECK_TENSOR(eg_reduce_sum(weight(gru, "bias")), 0, 12);
    eg_tensor *u = weight(lstm, "recurrent_kernel");
    CHECK_SAME(eg_matmul(u, u, .transpose_b = true), eg_eye(EG_FLOAT32, 3, 3), 1e-6);
    eg_layer_release(lstm);
    eg_layer_release(plain);
    eg_layer_release(gru);
}

TEST(a_sequence_in_two_pieces) {
    eg_layer *layers[] = {eg_layer_simple_rnn(4, .return_sequences = true), eg_layer_lstm(4, .return_sequences = true),
                          eg_layer_gru(4, .return_sequences = true),
                          eg_layer_gru(4, .return_sequences = true, .reset_before = true)};
    eg_tensor *x = sequences(3, 7, 2);
    for (int i = 0; i < 4; i++) {
        int n = i == 1 ? 3 : 2;
        eg_tensor *whole[3], *first[3], *second[3];
        REQUIRE(eg_call_multi(layers[i], &x, 1, whole, n));
        eg_tensor *start = steps_of(x, 0, 4);
        REQUIRE(eg_call_multi(layers[i], &start, 1, first, n));
        eg_tensor *rest[] = {steps_of(x, 4, 3), first[1], n == 3 ? first[2] : NULL};
        REQUIRE(eg_call_multi(layers[i], rest, n, second, n));
        eg_tensor *both[] = {first[0], second[0]};
        CHECK_SAME(eg_concat(both, 2, 1), whole[0], 1e-6);
        for (int s = 1; s < n; s++) CHECK_SAME(second[s], whole[s], 1e-6);
        CHECK_SAME(eg_reshape(steps_of(whole[0], 6, 1), EG_SHAPE(3, 4)), whole[1], 0);
        eg_layer_release(layers[i]);
    }
}

// What padding is masked gives what the sequence alone gives, through layer after layer.
TEST(masks_hide_padding) {
    eg_layer *model = eg_sequential(eg_layer_lstm(4, .return_sequences = true),
                                    eg_layer_bidirectional(eg_layer_gru(3, .return_sequences = true)),
                                    eg_layer_multi_head_attention(2, 2), eg_layer_simple_rnn(2));
    eg_tensor *x = sequences(2, 5, 3), *lengths = eg_constant_of(EG_BOOL, EG_SHAPE(2, 5), 1, 1, 1, 0, 0, 1, 1, 1, 1, 1);
    eg_tensor *y = eg_call(model, x, .mask = lengths);
    CHECK_SHAPE(y, 2, 2);
    CHECK(eg_mask_of(y) == NULL);
    CHECK_SAME(eg_index(y, 0), eg_index(eg_call(model, eg_slice(x, EG_SHAPE(0, 0, 0), EG_SHAPE(1, 3, 3))), 0), 1e-6);
    CHECK_SAME(eg_index(y, 1), eg_index(eg_call(model, eg_slice(x, EG_SHAPE(1, 0, 0), EG_SHAPE(1, 5, 3))), 0), 1e-6);
    CHECK_SAME(eg_call(model, eg_with_mask(x, lengths)), y, 0);
    eg_layer_release(model);

    eg_layer *back = eg_layer_lstm(2, .return_sequences = true, .go_backwards = true);
    eg_tensor *turned = eg_call(back, x, .mask = lengths);
    CHECK_SAME(eg_mask_of(turned), eg_reverse(lengths, EG_AXES(1)), 0);
    CHECK(eg_mask_of(eg_with_mask(turned, NULL)) == NULL);
    CHECK_ERROR(eg_with_mask(x, x), EG_ERROR_DTYPE, "eg_with_mask: the mask float32");
    CHECK_ERROR(eg_with_mask(NULL, lengths), EG_ERROR_NULL, "eg_with_mask");
    eg_layer_release(back);
}

TEST(dropout_only_in_training) {
    eg_layer *layer = eg_layer_gru(64, .dropout = .5, .kernel_initializer = EG_INIT_ONES,
                                   .recurrent_initializer = EG_INIT_ZEROS, .activation = EG_LINEAR,
                                   .recurrent_activation = EG_LINEAR, .no_bias = true);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(200, 1, 1));
    CHECK_TENSOR(eg_reduce_max(eg_call(layer, x)), 0, 0);                  // z = 1, h = (1 - z) 1
    eg_tensor *dropped = eg_index(eg_transpose(eg_call(layer, x, .training = true)), 0);
    for (int i = 0; i < 200; i++) {                                        // an input of 0, or of 2: z = 2, h = -2
        double h = eg_item(eg_index(dropped, i));
        CHECK(h == 0 || h == -2);
    }
    double share = eg_item(eg_reduce_mean(dropped)) / -2;
    CHECK(share > .35 && share < .65);
    eg_layer_release(layer);

    layer = eg_layer_simple_rnn(50, .recurrent_dropout = .5, .recurrent_initializer = EG_INIT_IDENTITY,
                                .kernel_initializer = EG_INIT_ONES, .activation = EG_LINEAR);
    x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 1));
    eg_tensor *h = eg_call(layer, x, .training = true);  // kept: 1 + 2 (1 + 2 (1 + 2)); dropped at every step: 1
    for (int i = 0; i < 50; i++) {
        double value = eg_item(eg_index(eg_index(h, 0), i));
        CHECK(value == 15 || value == 1);
    }
    CHECK_TENSOR(eg_reduce_mean(eg_call(layer, x)), 0, 4);
    eg_layer_release(layer);

    layer = eg_layer_multi_head_attention(2, 4, .dropout = .9);
    x = sequences(2, 6, 3);
    eg_tensor *still = eg_call(layer, x);
    CHECK_SAME(eg_call(layer, x), still, 0);
    CHECK(eg_item(eg_reduce_max(eg_abs(eg_sub(eg_call(layer, x, .training = true), still)))) > 0);
    eg_layer_release(layer);
}

// ---- directions

TEST(both_directions) {
    eg_layer *lstm = eg_layer_lstm(3, .return_sequences = true),
             *both = eg_layer_bidirectional(eg_layer_retain(lstm), .merge = EG_MERGE_SUM), *parts[2];
    eg_tensor *x = sequences(2, 4, 3), *out[5];
    REQUIRE(eg_call_multi(both, &x, 1, out, 5));
    CHECK_INT(eg_layer_layers(both, parts, 2), 2);
    CHECK(parts[0] == lstm);
    CHECK_STR(eg_layer_name(parts[1]), "backward_lstm");
    eg_tensor *ahead = eg_call(parts[0], x), *back = eg_reverse(eg_call(parts[1], x), EG_AXES(1));
    CHECK_SAME(out[0], eg_add(ahead, back), 1e-6);
    CHECK_SAME(out[1], eg_reshape(steps_of(ahead, 3, 1), EG_SHAPE(2, 3)), 0);
    CHECK_SAME(out[3], eg_reshape(steps_of(back, 0, 1), EG_SHAPE(2, 3)), 0);
    eg_layer_release(both);
    eg_layer_release(lstm);

    // the other way round
    lstm = eg_layer_bidirectional(eg_layer_lstm(2, .go_backwards = true, .return_sequences = true),
                                  .merge = EG_MERGE_AVE);
    REQUIRE(eg_call(lstm, x) != NULL);
    CHECK_INT(eg_layer_layers(lstm, parts, 2), 2);
    CHECK_SAME(eg_call(lstm, x), eg_mul(eg_add(eg_reverse(eg_call(parts[0], x), EG_AXES(1)), eg_call(parts[1], x)), .5),
               1e-6);
    eg_layer_release(lstm);
}

// ---- attention

TEST(causal_attention_does_not_look_ahead) {
    eg_layer *layer = eg_layer_multi_head_attention(2, 4, .causal = true);
    eg_tensor *x = sequences(1, 5, 6), *changed = eg_add(x, eg_constant(EG_SHAPE(1, 5, 1), 0, 0, 0, 1, 2)), *out[2];
    CHECK_SAME(steps_of(eg_call(layer, changed), 0, 3), steps_of(eg_call(layer, x), 0, 3), 1e-6);
    REQUIRE(eg_call_multi(layer, &x, 1, out, 2));
    CHECK_SHAPE(out[1], 1, 2, 5, 5);
    CHECK_SAME(eg_reduce_sum(out[1], .axes = EG_AXES(3)), eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 5)), 1e-6);
    eg_tensor *first = eg_index(eg_index(eg_index(out[1], 0), 0), 0);
    CHECK_TENSOR(first, 0, 1, 0, 0, 0, 0);
    eg_layer_release(layer);
}

TEST(a_mask_of_pairs_is_what_causal_makes) {
    eg_layer *layer = eg_layer_multi_head_attention(2, 3),
             *causal = eg_layer_multi_head_attention(2, 3, .causal = true);
    eg_tensor *x = sequences(2, 3, 4), *vars[8], *same[8], *y = eg_call(causal, x);
    eg_call(layer, x);
    CHECK_INT(eg_layer_weights(layer, vars, 8), 8);
    CHECK_INT(eg_layer_weights(causal, same, 8), 8);
    for (int i = 0; i < 8; i++) eg_assign(vars[i], same[i]);
    eg_tensor *mask = eg_constant_of(EG_BOOL, EG_SHAPE(3, 3), 1, 0, 0, 1, 1, 0, 1, 1, 1), *in[] = {x, mask}, *z;
    CHECK(eg_call_multi(layer, in, 2, &z, 1));
    CHECK_SAME(z, y, 1e-6);
    in[1] = eg_expand_dims(mask, 0);
    CHECK(eg_call_multi(layer, in, 2, &z, 1));
    CHECK_SAME(z, y, 1e-6);
    in[1] = eg_zeros(EG_BOOL, EG_SHAPE(2, 3, 3));  // nobody may look anywhere: only the bias is left
    CHECK(eg_call_multi(layer, in, 2, &z, 1));
    CHECK_TENSOR(eg_reduce_max(eg_abs(z)), 0, 0);
    eg_layer_release(layer);
    eg_layer_release(causal);
}

// Few keys that serve several queries are many keys that are alike.
TEST(grouped_queries) {
    eg_layer *few = eg_layer_multi_head_attention(4, 3, .kv_heads = 2, .causal = true),
             *many = eg_layer_multi_head_attention(4, 3, .causal = true);
    eg_tensor *x = sequences(2, 5, 6), *a[8], *b[8], *y = eg_call(few, x);
    eg_call(many, x);
    CHECK_INT(eg_layer_weights(few, a, 8), 8);
    CHECK_INT(eg_layer_weights(many, b, 8), 8);
    for (int i = 0; i < 8; i++) {
        bool shared = i >= 2 && i < 6;
        int64_t rows = eg_size(a[i]) / (eg_dim(a[i], -1));
        eg_tensor *w = shared ? eg_repeat(eg_reshape(a[i], EG_SHAPE(rows, 2, 3)), 2, 1) : a[i];
        eg_assign(b[i], eg_reshape(w, eg_shape_of(b[i])));
    }
    CHECK_SAME(eg_call(many, x), y, 1e-6);
    eg_layer_release(few);
    eg_layer_release(many);
}

// Step by step with the keys and values so far is the same as all at once.
TEST(keys_and_values_are_kept) {
    eg_layer *layers[] = {eg_layer_multi_head_attention(2, 4, .causal = true),
                          eg_layer_multi_head_attention(4, 2, .causal = true, .kv_heads = 2, .value_dim = 3,
                                                        .rotary_base = 100)};
    eg_tensor *x = sequences(2, 6, 3);
    for (int i = 0; i < 2; i++) {
        eg_tensor *in[3] = {steps_of(x, 0, 3)}, *out[4], *pieces[4], *whole[4];
        CHECK(eg_call_multi(layers[i], in, 1, out, 4));
        pieces[0] = out[0];
        for (int t = 3; t < 6; t++) {
            in[0] = steps_of(x, t, 1), in[1] = out[2], in[2] = out[3];
            REQUIRE(eg_call_multi(layers[i], in, 3, out, 4));
            pieces[t - 2] = out[0];
        }
        CHECK(eg_call_multi(layers[i], &x, 1, whole, 4));
        CHECK_SAME(eg_concat(pieces, 4, 1), whole[0], 1e-6);
        CHECK_SAME(out[2], whole[2], 1e-6);
        CHECK_SHAPE(out[3], 2, 2, 6, i ? 3 : 4);
        in[2] = whole[2];
        if (i) CHECK_ERROR(eg_call_multi(layers[i], in, 3, out, 1), EG_ERROR_SHAPE, "and must be [2, 2, 5, 3]");
        CHECK_ERROR((eg_call_multi)(layers[i], in, 3, out,
                                    1, (eg_call_options){.mask = eg_ones(EG_BOOL, EG_SHAPE(2, 1))}), EG_ERROR_ARGUMENT,
                    "a mask of steps does not tell");
        eg_tensor *many[] = {in[0], in[0], in[1], in[2]};
        CHECK_ERROR(eg_call_multi(layers[i], many, 4, out, 1), EG_ERROR_ARGUMENT, "go with a query alone");
        eg_layer_release(layers[i]);
    }
}

// Queries and keys that are all alike see each other by their distance alone.
TEST(rotary_positions) {
    eg_layer *layer = eg_layer_multi_head_attention(1, 4, .rotary_base = 100, .no_bias = true,
                                                    .kernel_initializer = EG_INIT_IDENTITY);
    eg_tensor *x = eg_mul(eg_constant(EG_SHAPE(4), 2, 0, 0, 3), eg_ones(EG_FLOAT32, EG_SHAPE(1, 3, 4))), *out[2],
              *scores[9];
    REQUIRE(eg_call_multi(layer, &x, 1, out, 2));
    for (int i = 0; i < 9; i++) {                                          // the second pair turns by 100^(-1/2) a step
        int apart = i / 3 - i % 3;
        scores[i] = eg_scalar((4 * cos(apart) + 9 * cos(.1 * apart)) / 2);
    }
    CHECK_SAME(eg_reshape(out[1], EG_SHAPE(3, 3)), eg_softmax(eg_reshape(eg_stack(scores, 9, 0), EG_SHAPE(3, 3))),
               1e-5);
    eg_layer_release(layer);
    CHECK_ERROR(eg_layer_multi_head_attention(1, 3, .rotary_base = 100), EG_ERROR_ARGUMENT, "an even key_dim");
}

TEST(positions) {
    eg_layer *layer = eg_layer_position_embedding(5);
    eg_tensor *x = sequences(2, 3, 4), *y = eg_call(layer, x);
    CHECK_SHAPE(weight(layer, "embeddings"), 5, 4);
    CHECK_SAME(y, eg_add(x, eg_slice(weight(layer, "embeddings"), EG_SHAPE(0, 0), EG_SHAPE(3, 4))), 0);
    CHECK_ERROR(eg_call(layer, sequences(2, 6, 4)), EG_ERROR_SHAPE, "has more than the 5 positions");
    CHECK_ERROR(eg_layer_position_embedding(0), EG_ERROR_ARGUMENT,
                "eg_layer_position_embedding: longest is 0; it must be at least 1");
    eg_layer_release(layer);
}

// A model of all these layers, from its configuration and its weights again.
TEST(configurations) {
    eg_layer *block = eg_layer_residual(eg_sequential(eg_layer_layer_normalization(), eg_layer_multi_head_attention(
            4, 2, .causal = true, .kv_heads = 2, .rotary_base = 100, .no_bias = true)));
    eg_layer *model = eg_sequential(eg_layer_embedding(7, 6, .mask_zero = true), eg_layer_position_embedding(5), block,
                                    eg_layer_bidirectional(eg_layer_lstm(3, .return_sequences = true,
                                                                         .no_forget_bias = true, .dropout = .1),
                                                           .merge = EG_MERGE_AVE),
                                    eg_layer_gru(3, .go_backwards = true, .reset_before = true,
                                    .recurrent_activation = EG_HARD_SIGMOID), eg_layer_dense(2));
    eg_tensor *ids = eg_constant_of(EG_INT32, EG_SHAPE(2, 4), 1, 2, 3, 0, 6, 5, 4, 3), *y = eg_call(model, ids),
              *vars[32], *same[32];
    char text[8192], again[8192];
    int64_t length = eg_layer_config(model, text, sizeof text);
    REQUIRE(length > 0 && length < (int64_t)sizeof text);
    eg_layer *copy = eg_layer_from_config(text);
    REQUIRE(copy != NULL);
    CHECK(eg_call(copy, ids) != NULL);
    eg_layer_config(copy, again, sizeof again);
    CHECK_STR(again, text);
    int n = eg_layer_weights(model, vars, 32);
    CHECK_INT(eg_layer_weights(copy, same, 32), n);
    for (int i = 0; i < n; i++) eg_assign(same[i], vars[i]);
    CHECK_SAME(eg_call(copy, ids), y, 0);
    eg_layer_release(model);
    eg_layer_release(copy);
}

// ---- gradients of any order

static eg_tensor *summed(eg_tensor *const *in, void *user) {
    eg_tensor *y = eg_call((eg_layer *)user, in[0]);
    return eg_reduce_sum(eg_mul(y, eg_square(y)));
}
TEST(gradients_of_gradients) {
    eg_layer *layers[] = {eg_layer_lstm(2), eg_layer_gru(2, .return_sequences = true),
                          eg_layer_bidirectional(eg_layer_simple_rnn(2)),
                          eg_layer_multi_head_attention(2, 2, .causal = true, .rotary_base = 10)};
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 3, 2), .dtype = EG_FLOAT64);
    for (int i = 0; i < 4; i++) {
        CHECK(eg_check_gradient(summed, layers[i], &x, 1, .order = 2));
        CHECK_DTYPE(eg_call(layers[i], x), EG_FLOAT64);
        eg_layer_release(layers[i]);
    }
}

// A bit that came first is told four steps later.
TEST(an_lstm_remembers) {
    eg_seed(3);
    eg_layer *model = eg_sequential(eg_layer_lstm(8), eg_layer_dense(1));
    eg_optimizer *adam = eg_adam(.learning_rate = .05);
    double last = 1;
    for (int step = 0; step < 200; step++) {
        EG_SCOPE;
        eg_tensor *x = eg_random_normal(EG_SHAPE(32, 5, 1)),
                  *y = eg_sign(eg_index(eg_transpose(x, .perm = EG_AXES(1, 0, 2)), 0)), *vars[MANY], *grads[MANY];
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_mean(eg_squared_difference(eg_call(model, x, .training = true), y));
        int n = eg_layer_trainable_weights(model, vars, MANY);
        CHECK(eg_tape_gradients(tape, loss, vars, n, grads) && eg_apply_gradients(adam, grads, vars, n));
        last = eg_item(loss);
    }
    CHECK(last < .5);
    eg_optimizer_release(adam);
    eg_layer_release(model);
}

// ---- all steps as one op, against the same in ops of their own (which the trap asks for)

static eg_precision as_one_precision;                    // of the latest run
#define AS_ONE_SEEN(args) (as_one_precision = ((const egi_recurrent_parameters *)(args)->parameters)->precision)
#define AS_ONE_KERNEL EGI_RECURRENT
#include "counted.h"

enum { RNN, LSTM, GRU, KINDS };
typedef struct variant {
    int kind; bool sequences, backwards, given, no_bias; int outputs; int64_t batch, steps, features, units;
    eg_dtype dtype; bool masked;
} variant;
static eg_layer *recurrent(const variant *v) {
    eg_layer_options o;
    memset(&o, 0, sizeof o);
    o.return_sequences = v->sequences;
    o.go_backwards = v->backwards;
    o.no_bias = v->no_bias;
    o.bias_initializer = EG_INIT_UNIFORM;
    o.bias_initializer_value = .5;
    return v->kind == RNN ? (eg_layer_simple_rnn)(v->units, o)
           : v->kind == LSTM ? (eg_layer_lstm)(v->units, o)
           : (eg_layer_gru)(v->units, o);
}
// The sum of all outputs asked for, each times numbers of its own. in: x and the states; *y: the outputs.
static eg_tensor *weighed(eg_layer *layer, const variant *v, eg_tensor *const *in, eg_tensor **y) {
    eg_tensor *sum = NULL;
    int states = v->kind == LSTM ? 2 : 1;
    eg_tensor *mask = NULL;                              // some steps in the middle, all of one sequence
    if (v->masked) {
        eg_tensor *row = eg_expand_dims(eg_range(EG_INT32, 0, (double)v->batch, 1), 1);
        mask = eg_logical_and(eg_not_equal(eg_mod(eg_add(row, eg_range(EG_INT32, 0, (double)v->steps, 1)), 3), 1),
                              eg_not_equal(row, 1));
    }
    if (!eg_call_multi(layer, in, v->given ? 1 + states : 1, y, v->outputs > 1 ? 1 + states : 1, .mask = mask))
        return NULL;
    for (int i = 0; i < (v->outputs > 1 ? 1 + states : 1); i++) {
        if (v->outputs == 3 && i == 0) continue;         // the states alone
        eg_tensor *w = eg_reshape(eg_sin(eg_range(v->dtype, 1 + 100 * i, 1 + 100 * i + (double)eg_size(y[i]), 1)),
                                  eg_shape_of(y[i]));
        eg_tensor *part = eg_reduce_sum(eg_mul(eg_add(y[i], eg_square(y[i])), w));
        sum = sum ? eg_add(sum, part) : part;
    }
    return sum;
}
// The outputs, the gradients of the weights, of x and of the states; order 2: those of the sum of squares of all these.
static int all_of(eg_layer *layer, const variant *v, eg_tensor *const *in, int order, eg_tensor **out) {
    eg_tensor *xs[MANY], *grads[MANY], *y[3] = {NULL, NULL, NULL}, *sum = NULL;
    int n = eg_layer_weights(layer, xs, MANY), states = v->kind == LSTM ? 2 : 1;
    for (int i = 0; i < (v->given ? 1 + states : 1); i++) xs[n++] = in[i];
    eg_tape *outer = order == 2 ? eg_tape_begin() : NULL, *tape = eg_tape_begin();
    for (int i = 0; i < n; i++) if (!eg_is_variable(xs[i])) {
        eg_tape_watch(tape, xs[i]);
        if (outer) eg_tape_watch(outer, xs[i]);
    }
    eg_tensor *loss = weighed(layer, v, in, y);
    if (!loss || !eg_tape_gradients(tape, loss, xs, n, grads)) return 0;
    for (int i = 0; i < n && outer; i++) {
        eg_tensor *part = eg_reduce_sum(eg_square(grads[i]));
        sum = sum ? eg_add(sum, part) : part;
    }
    if (outer && !eg_tape_gradients(outer, sum, xs, n, grads)) return 0;
    for (int i = 0; i < n; i++) out[i] = grads[i];
    for (int i = 0; i < 3; i++) if (y[i]) out[n++] = y[i];
    return n;
}
static void as_one_and_step_by_step(const variant *v, int order, double tolerance) {
    EG_SCOPE;
    eg_layer *layer = recurrent(v);
    eg_tensor *in[3], *got[MANY], *want[MANY];
    eg_shape state = EG_SHAPE(v->batch, v->units);
    in[0] = eg_random_normal(EG_SHAPE(v->batch, v->steps, v->features), .dtype = v->dtype);
    in[1] = eg_random_uniform(state, .minval = -1, .maxval = 1, .dtype = v->dtype);
    in[2] = eg_random_uniform(state, .minval = -1, .maxval = 1, .dtype = v->dtype);
    CHECK(eg_call(layer, in[0]) != NULL);
    count_as_one();
    int n = all_of(layer, v, in, order, got);
    CHECK_AS_ONE(1, 1);                                      // of order 2, on the way back to what came before
    eg_trap_nonfinite(true);
    CHECK_INT(all_of(layer, v, in, order, want), n);
    eg_trap_nonfinite(false);
    CHECK_AS_ONE(0, 0);
    CHECK(n > 0);
    for (int i = 0; i < n; i++) CHECK_SAME(got[i], want[i], tolerance);
    eg_layer_release(layer);
}

TEST(as_one_is_step_by_step) {
    static const int64_t sizes[][4] = {{1, 1, 1, 1}, {2, 5, 3, 4}, {7, 4, 2, 17}, {3, 2, 33, 40}};
    for (int kind = 0; kind < KINDS; kind++)
        for (int bits = 0; bits < 32; bits++)
            for (int s = 0; s < 4; s++) {
                if (test_share > 1 && (bits + s + kind) % 4) continue;
                variant v = {kind, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, bits % 5 == 0,
                             bits & 8 ? 3
                             : bits & 16 ? 2
                             : 1,
                             sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3], EG_FLOAT64, false};
                as_one_and_step_by_step(&v, 1, 1e-11);
                v.dtype = EG_FLOAT32;
                as_one_and_step_by_step(&v, 1, 2e-4);
                if (v.given) continue;
                v.masked = true;
                as_one_and_step_by_step(&v, 1, 2e-4);
            }
}
// More sequences and more units than a block of a product takes.
TEST(as_one_across_blocks) {
    static const int64_t sizes[][2] = {{100, 70}, {2, 260}};
    for (int kind = 0; kind < KINDS; kind++)
        for (int s = 0; s < 2; s++) {
            variant v = {kind, true, s > 0, s == 0, false, 2, sizes[s][0], 2, 3, sizes[s][1],
                         kind == GRU ? EG_FLOAT32 : EG_FLOAT64, false};
            as_one_and_step_by_step(&v, 1, kind == GRU ? 1e-3 : 1e-10);
        }
}
TEST(as_one_has_gradients_of_gradients) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int bits = 0; bits < 32; bits++) {
            if (test_share > 1 && bits % 5) continue;
            variant v = {kind, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, bits % 3 == 0,
                         bits & 8 ? 3
                         : bits & 16 ? 2
                         : 1, 2, 3, 2, 3, EG_FLOAT64, false};
            as_one_and_step_by_step(&v, 2, 1e-10);
            v.masked = true;
            if (!v.given) as_one_and_step_by_step(&v, 2, 1e-10);
        }
}
// Against differences of values: x and the states; weights are asked for by name.
typedef struct differences { eg_layer *layer; const variant *v; } differences;
static eg_tensor *differences_of(eg_tensor *const *in, void *user) {
    const differences *d = (const differences *)user;
    eg_tensor *y[3] = {NULL, NULL, NULL}, *w[MANY], *sum = weighed(d->layer, d->v, in, y);
    int n = eg_layer_weights(d->layer, w, MANY);
    for (int i = 0; i < n && sum; i++) sum = eg_add(sum, eg_mul(eg_reduce_sum(w[i]), 0.1));
    return sum;
}
TEST(as_one_against_differences) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int bits = 0; bits < 8; bits++) {
            EG_SCOPE;
            variant v = {kind, (bits & 1) != 0, (bits & 2) != 0, true, false, bits & 4 ? 2 : 1, 2, 4, 3, 5, EG_FLOAT64,
                         false};
            differences d = {recurrent(&v), &v};
            eg_tensor *in[3], *w[MANY], *grads[MANY], *y[3];
            for (int i = 0; i < 3; i++)
                in[i] = eg_random_normal(i ? EG_SHAPE(2, 5) : EG_SHAPE(2, 4, 3), .dtype = EG_FLOAT64);
            CHECK(eg_check_gradient(differences_of, &d, in, kind == LSTM ? 3 : 2, .order = 2));
            int n = eg_layer_weights(d.layer, w, MANY);
            eg_tape *tape = eg_tape_begin();
            REQUIRE(eg_tape_gradients(tape, weighed(d.layer, &v, in, y), w, n, grads));
            for (int i = 0; i < n; i++) {                // along a direction of each weight
                eg_tensor *was = eg_read(w[i]), *along = eg_random_normal(eg_shape_of(w[i]), .dtype = EG_FLOAT64);
                double by[2];
                for (int side = 0; side < 2; side++) {
                    eg_assign(w[i], eg_add(was, eg_mul(along, side ? 1e-5 : -1e-5)));
                    by[side] = eg_item(weighed(d.layer, &v, in, y));
                }
                eg_assign(w[i], was);
                CHECK_NEAR((by[1] - by[0]) / 2e-5, eg_item(eg_reduce_sum(eg_mul(grads[i], along))), 1e-6);
            }
            eg_layer_release(d.layer);
        }
}
// The same bits with a tape and without, each time; a persistent tape that records its own gradients; what only some
// outputs lead to.
TEST(as_one_and_tapes) {
    for (int kind = 0; kind < KINDS; kind++) {
        EG_SCOPE;
        variant v = {kind, true, false, false, false, 2, 3, 6, 4, 5, EG_FLOAT32, false};
        eg_layer *layer = recurrent(&v);
        eg_tensor *x = sequences(3, 6, 4), *without[3], *with[3], *w[MANY], *first[MANY], *again[MANY];
        REQUIRE(eg_call_multi(layer, &x, 1, without, 2));
        eg_tape *tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, x);
        REQUIRE(eg_call_multi(layer, &x, 1, with, 2));
        for (int i = 0; i < 2; i++) CHECK_SAME(with[i], without[i], 0);
        int n = eg_layer_weights(layer, w, MANY);
        eg_tensor *loss = eg_reduce_sum(eg_square(with[0]));
        eg_tape_stop(tape);
        count_as_one();
        REQUIRE(eg_tape_gradients(tape, loss, w, n, first) && eg_tape_gradients(tape, loss, w, n, again));
        CHECK_AS_ONE(0, 2);
        for (int i = 0; i < n; i++) CHECK_SAME(first[i], again[i], 0);
        eg_tape_resume(tape);
        eg_tensor *dx = eg_tape_gradient(tape, loss, x);
        CHECK_AS_ONE(0, 0);
        CHECK(eg_tape_gradient(tape, eg_reduce_sum(eg_square(dx)), x) != NULL);
        eg_tape_stop(tape);
        CHECK(eg_tape_gradient(tape, with[1], x) != NULL);
        eg_layer_release(layer);
    }
}
#ifndef TEST_CUDA
// Gradients obey the setting of the moment when they are computed, as those of products do.
TEST(as_one_in_the_precision_of_the_moment) {
    eg_layer *layer = eg_layer_gru(3);
    eg_tensor *x = sequences(2, 3, 4);
    REQUIRE(eg_call(layer, x));
    count_as_one();
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_matmul_precision(EG_PRECISION_TF32);
    eg_tensor *y = eg_call(layer, x);
    CHECK_INT(as_one_precision, EG_PRECISION_TF32);
    eg_matmul_precision(EG_PRECISION_FLOAT32);
    CHECK(eg_tape_gradient(tape, y, x) != NULL);
    CHECK_INT(as_one_precision, EG_PRECISION_FLOAT32);
    CHECK_AS_ONE(1, 1);
    eg_layer_release(layer);
}
#endif
// What eg_record sees goes step by step, the gradient of what came before it, too.
TEST(as_one_and_a_recording) {
    eg_layer *layer = eg_layer_lstm(3);
    eg_tensor *x = sequences(2, 3, 4), *dx[2];
    REQUIRE(eg_call(layer, x));
    for (int recorded = 0; recorded < 2; recorded++) {
        count_as_one();
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tensor *y = eg_call(layer, x);
        if (recorded) REQUIRE(eg_record(test_temp("recurrent.npz")));
        dx[recorded] = eg_tape_gradient(tape, y, x);
        if (recorded) CHECK(eg_record_stop());
        CHECK_AS_ONE(1, !recorded);
    }
    CHECK_SAME(dx[0], dx[1], 1e-6);
    eg_layer_release(layer);
}
// Where a device has the kernel, but not that of its gradient, the steps are ops of their own.
TEST(as_one_needs_the_gradient_too) {
    static eg_backend half;
    half = *egi_backend_cpu();
    half.name = "half:0";
    half.kernel[EGI_RECURRENT_GRAD] = NULL;
    REQUIRE(egi_backend_register(&half));
    eg_tensor *dx[2];
    for (int i = 0; i < 2; i++) {
        eg_with_device(i ? "half:0" : "cpu:0");
        eg_seed(3);
        eg_layer *layer = eg_layer_lstm(3);
        eg_tensor *x = sequences(2, 3, 4);
        REQUIRE(eg_call(layer, x));
        count_as_one();
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        dx[i] = eg_cpu(eg_tape_gradient(tape, eg_call(layer, x), x));
        CHECK_AS_ONE(!i, !i);
        eg_layer_release(layer);
    }
    CHECK_SAME(dx[0], dx[1], 1e-6);
}
// One tensor as both states has the sum of the gradients of both, with a tape around as without.
TEST(one_tensor_as_both_states) {
    eg_layer *layer = eg_layer_lstm(3, .dtype = EG_FLOAT64);
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 4, 3), .dtype = EG_FLOAT64),
              *s = eg_random_normal(EG_SHAPE(2, 3), .dtype = EG_FLOAT64);
    eg_tensor *in[] = {x, s, s}, *g[2];
    REQUIRE(eg_call(layer, x));
    for (int order = 1; order <= 2; order++) {
        eg_tape *outer = order == 2 ? eg_tape_begin() : NULL, *tape = eg_tape_begin();
        eg_tape_watch(tape, s);
        if (outer) eg_tape_watch(outer, s);
        eg_tensor *y;
        REQUIRE(eg_call_multi(layer, in, 3, &y, 1));
        g[order - 1] = eg_tape_gradient(tape, eg_reduce_sum(eg_square(y)), s);
        if (outer) CHECK(eg_tape_gradient(outer, eg_reduce_sum(eg_square(g[1])), s) != NULL);
    }
    CHECK_SAME(g[0], g[1], 1e-12);
    eg_layer_release(layer);
}
TEST(what_goes_step_by_step) {
    eg_tensor *x = sequences(2, 3, 4), *mask = eg_ones(EG_BOOL, EG_SHAPE(2, 3)),
              *h = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)), *given[] = {x, h, h};
    const struct { eg_layer *layer; eg_tensor *mask; bool training; int as_one; } all[] = {
        {eg_layer_lstm(3), NULL, true, 1},
        {eg_layer_lstm(3, .activation = EG_TANH, .recurrent_activation = EG_SIGMOID, .dropout = .5), NULL, true, 1},
        {eg_layer_bidirectional(eg_layer_gru(3, .return_sequences = true)), NULL, true, 2},
        {eg_layer_simple_rnn(3, .go_backwards = true), NULL, false, 1},
        {eg_layer_lstm(3, .recurrent_dropout = .5), NULL, false, 1},
        {eg_layer_lstm(3, .recurrent_dropout = .5), NULL, true, 0},
        {eg_layer_lstm(3), mask, false, 1},
        {eg_layer_bidirectional(eg_layer_gru(3, .return_sequences = true)), mask, true, 2},
        {eg_layer_lstm(3, .activation = EG_RELU), NULL, false, 0},
        {eg_layer_gru(3, .recurrent_activation = EG_HARD_SIGMOID), NULL, false, 0},
        {eg_layer_gru(3, .reset_before = true), NULL, false, 0},
        {eg_layer_simple_rnn(3, .activation = EG_RELU), NULL, false, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        count_as_one();
        CHECK(eg_call(all[i].layer, x, .training = all[i].training, .mask = all[i].mask) != NULL);
        CHECK_AS_ONE(all[i].as_one, 0);
        eg_layer_release(all[i].layer);
    }
    // No sequences at all; states that do not belong to them: as ever.
    eg_layer *layer = eg_layer_lstm(3, .return_sequences = true), *wide = eg_layer_gru(3);
    CHECK_SHAPE(eg_call(layer, sequences(0, 3, 4)), 0, 3, 3);
    CHECK_SHAPE(eg_call(wide, sequences(2, 3, 0)), 2, 3);
    eg_tensor *y[3];
    CHECK(eg_call_multi(layer, given, 3, y, 3));
    count_as_one();
    // before the first step that counts the output is 0, not the state
    CHECK(eg_call_multi(layer, given, 3, y, 3, .mask = mask));
    CHECK_AS_ONE(0, 0);
    given[1] = eg_cast(h, EG_FLOAT64);
    CHECK_ERROR(eg_call_multi(layer, given, 3, y, 3), EG_ERROR_DTYPE, "the input is float64");
    eg_layer_release(layer);
    eg_layer_release(wide);
}

// ---- what is refused

TEST(wrong_options) {
    CHECK_ERROR(eg_layer_lstm(0), EG_ERROR_ARGUMENT, "eg_layer_lstm: units is 0; it must be at least 1");
    CHECK_ERROR(eg_layer_gru(2, .dropout = 1), EG_ERROR_ARGUMENT,
                "eg_layer_gru: .dropout is 1; it must be at least 0 and below 1");
    CHECK_ERROR(eg_layer_simple_rnn(2, .recurrent_dropout = -.1), EG_ERROR_ARGUMENT,
                "eg_layer_simple_rnn: .recurrent_dropout is -0.1; it must be at least 0 and below 1");
    CHECK_ERROR(eg_layer_simple_rnn(2, .recurrent_activation = EG_TANH), EG_ERROR_ARGUMENT,
                "eg_layer_simple_rnn: has no option .recurrent_activation");
    CHECK_ERROR(eg_layer_lstm(2, .reset_before = true), EG_ERROR_ARGUMENT,
                "eg_layer_lstm: has no option .reset_before");
    CHECK_ERROR(eg_layer_multi_head_attention(0, 4), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: heads is 0; it must be at least 1");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 0), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: key_dim is 0; it must be at least 1");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .kv_heads = 3), EG_ERROR_ARGUMENT,
                "4 heads cannot share the keys of 3");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .value_dim = -1), EG_ERROR_ARGUMENT,
                ".value_dim is -1; it must be at least 1");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .dropout = 2), EG_ERROR_ARGUMENT,
                ".dropout is 2; it must be at least 0 and below 1");
    CHECK_ERROR(eg_layer_bidirectional(eg_layer_dense(2)), EG_ERROR_ARGUMENT,
                "eg_layer_bidirectional: Dense is no recurrent layer");
    CHECK_ERROR(eg_layer_bidirectional(NULL), EG_ERROR_NULL, "eg_layer_bidirectional");
    CHECK_ERROR(eg_layer_bidirectional(eg_layer_lstm(2), .merge = (eg_merge)7), EG_ERROR_ARGUMENT,
                ".merge is 7; it must be at least 0 and at most 3");
    CHECK_ERROR(eg_layer_bidirectional(eg_layer_lstm(2), .no_bias = true), EG_ERROR_ARGUMENT,
                "eg_layer_bidirectional: has no option .no_bias");
}

TEST(wrong_inputs) {
    eg_layer *lstm = eg_layer_lstm(4, .name = "memory"), *both = eg_layer_bidirectional(eg_layer_gru(4)),
             *attention = eg_layer_multi_head_attention(2, 4);
    eg_tensor *x = sequences(3, 5, 2), *out[5], *h = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4)),
              *wide = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 5));
    CHECK_ERROR(eg_call(lstm, eg_index(x, 0)), EG_ERROR_SHAPE, "LSTM takes inputs of rank 3, not [5, 2]");
    CHECK_ERROR(eg_call(lstm, eg_zeros(EG_FLOAT32, EG_SHAPE(3, 0, 2))), EG_ERROR_SHAPE, "sequences of 0 steps");
    eg_tensor *one[] = {x, h}, *wrong[] = {x, h, wide};
    CHECK_ERROR(eg_call_multi(lstm, one, 2, out, 1), EG_ERROR_ARGUMENT,
                "2 inputs; LSTM takes the sequences, and none or all of its 2 states");
    CHECK_ERROR(eg_call_multi(lstm, wrong, 3, out, 3), EG_ERROR_SHAPE, "state 1 of LSTM is float32 [3, 5]");
    CHECK(out[0] == NULL && out[2] == NULL);
    CHECK_ERROR(eg_call_multi(lstm, wrong, 3, out, 3), EG_ERROR_SHAPE, "it must be [3, 4]");
    CHECK_ERROR(eg_call_multi(lstm, wrong, 3, out, 3), EG_ERROR_SHAPE, "in layer memory");
    CHECK_ERROR(eg_call_multi(lstm, &x, 1, out, 4), EG_ERROR_ARGUMENT, "4 outputs");
    CHECK_ERROR(eg_call(lstm, x, .mask = eg_ones(EG_BOOL, EG_SHAPE(3, 4))), EG_ERROR_SHAPE, "the mask bool [3, 4]");
    CHECK_ERROR(eg_call(lstm, x, .mask = h), EG_ERROR_DTYPE, "is not bool");
    CHECK(eg_call(lstm, x) != NULL);
    CHECK_ERROR(eg_call(lstm, sequences(3, 5, 3)), EG_ERROR_SHAPE, "2 against 3");
    CHECK_ERROR(eg_call(lstm, eg_cast(x, EG_FLOAT64)), EG_ERROR_DTYPE, "in layer memory");
    CHECK_ERROR(eg_layer_build(both, EG_SHAPE(-1, -1, -1)), EG_ERROR_SHAPE, "must be known");
    CHECK_ERROR(eg_call_multi(both, one, 2, out, 1), EG_ERROR_ARGUMENT,
                "Bidirectional takes the sequences, and none or all of its 2 states");
    CHECK_ERROR(eg_call(both, x, .mask = eg_ones(EG_BOOL, EG_SHAPE(3, 4))), EG_ERROR_SHAPE, "in layer bidirectional");

    CHECK_ERROR(eg_call(attention, h), EG_ERROR_SHAPE, "MultiHeadAttention takes inputs of rank 3");
    eg_tensor *shorter[] = {x, sequences(3, 4, 2), sequences(3, 5, 2)};
    CHECK_ERROR(eg_call_multi(attention, shorter, 3, out, 1), EG_ERROR_SHAPE, "do not go together");
    shorter[1] = sequences(2, 5, 2);
    CHECK_ERROR(eg_call_multi(attention, shorter, 2, out, 1), EG_ERROR_SHAPE, "query float32 [3, 5, 2]");
    shorter[1] = eg_ones(EG_BOOL, EG_SHAPE(5, 4));
    CHECK_ERROR(eg_call_multi(attention, shorter, 2, out, 1), EG_ERROR_SHAPE, "the mask bool [5, 4]");
    CHECK_ERROR(eg_call(attention, x, .mask = eg_ones(EG_BOOL, EG_SHAPE(3, 6))), EG_ERROR_SHAPE,
                "the mask bool [3, 6]");
    CHECK(eg_call(attention, x) != NULL);
    CHECK_ERROR(eg_call(attention, sequences(3, 5, 3)), EG_ERROR_SHAPE, "2 against 3");
    eg_layer_release(lstm);
    eg_layer_release(both);
    eg_layer_release(attention);
}
