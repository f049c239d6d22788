// Layers asked for what they cannot do: options, shapes, masks, names, functions of the user's and configurations, each
// with the sentence that comes and with what stays as it was. And the odd things that they can do.
#include "test.h"
#include "printed.h"

static eg_tensor *ones(eg_shape shape) { return eg_ones(EG_FLOAT32, shape); }
static eg_tensor *no_activation(eg_tensor *x) { return x; }      // no value of eg_activation
static void check_null(const void *p) { CHECK(p == NULL); }

static const char *config_of(eg_layer *layer) {
    static char text[4096];
    return layer && eg_layer_config(layer, text, sizeof text) < (int64_t)sizeof text ? text : "";
}
// Reading what was written gives the same text again; a layer that is given is released.
static void check_config(eg_layer *layer, const char *part, bool given) {
    char text[4096];
    snprintf(text, sizeof text, "%s", config_of(layer));
    CHECK_CONTAINS(text, part);
    eg_layer *again = eg_layer_from_config(text);
    CHECK_STR(config_of(again), text);
    eg_layer_release(again);
    if (given) eg_layer_release(layer);
}
// ---- options

TEST(each_option_has_a_range) {
    CHECK_ERROR(eg_layer_conv2d(4, 3, .strides = {1, -1}), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .strides is {1, -1}; each number must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .strides = {1 << 21}), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .strides is {2097152}; each number must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .dilations = {1, 1 << 21}), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .dilations is {1, 2097152}; each number must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_conv2d(4, -3, .kernel_size = {3, 3}), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: size is -3; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_conv2d(4, 1 << 21), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: size is 2097152; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .groups = -2), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .groups is -2; it must be at least 1");
    CHECK_ERROR(eg_layer_depthwise_conv2d(3, .depth_multiplier = 1 << 21), EG_ERROR_ARGUMENT,
                "eg_layer_depthwise_conv2d: .depth_multiplier is 2097152; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_max_pooling2d(.pool_size = {-1}), EG_ERROR_ARGUMENT,
                "eg_layer_max_pooling2d: .pool_size is {-1}; each number must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_dense(2, .activation = no_activation), EG_ERROR_ARGUMENT,
                "eg_layer_dense: .activation is another function; it must be a value of eg_activation");
    CHECK_ERROR(eg_layer_dense(2, .bias_initializer = (eg_initializer)99), EG_ERROR_ARGUMENT,
                "eg_layer_dense: .bias_initializer is 99; it must be a value of eg_initializer");
    CHECK_ERROR(eg_layer_dense(2, .input_shape = EG_SHAPE(3, -2)), EG_ERROR_ARGUMENT,
                "eg_layer_dense: .input_shape is {3, -2}; each number must be at least -1 and at most 1099511627776");
    CHECK_ERROR(
        eg_layer_dense(2, .input_shape = EG_SHAPE(INT64_C(1) << 41)), EG_ERROR_ARGUMENT,
        "eg_layer_dense: .input_shape is {2199023255552}; each number must be at least -1 and at most 1099511627776");
    eg_shape none = { -1, { 0 } };
    CHECK_ERROR(eg_layer_dense(2, .input_shape = none), EG_ERROR_ARGUMENT,
                "eg_layer_dense: the rank of .input_shape is -1; it must be at least 0 and at most 7");
    CHECK_ERROR(eg_layer_dense(INT64_C(1) << 62), EG_ERROR_ARGUMENT,
                "eg_layer_dense: units is 4611686018427387904; it must be at least 1 and at most 1099511627776");
    CHECK_ERROR(eg_layer_conv2d(INT64_C(1) << 62, 3), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: filters is 4611686018427387904; it must be");
    CHECK_ERROR(eg_layer_lstm(INT64_C(1) << 62), EG_ERROR_ARGUMENT,
                "eg_layer_lstm: units is 4611686018427387904; it must be");
    CHECK_ERROR(eg_layer_embedding(INT64_C(1) << 62, 2), EG_ERROR_ARGUMENT,
                "eg_layer_embedding: count is 4611686018427387904; it must be");
    CHECK_ERROR(eg_layer_dense(2, .kernel_l2 = -.1), EG_ERROR_ARGUMENT,
                "eg_layer_dense: .kernel_l2 is -0.1; it must be at least 0 and finite");
    CHECK_ERROR(eg_layer_dense(2, .bias_l1 = -.1), EG_ERROR_ARGUMENT,
                "eg_layer_dense: .bias_l1 is -0.1; it must be at least 0");
    CHECK_ERROR(eg_layer_lstm(2, .recurrent_l2 = -1), EG_ERROR_ARGUMENT,
                "eg_layer_lstm: .recurrent_l2 is -1; it must be at least 0");
    CHECK_ERROR(eg_layer_layer_normalization(.epsilon = -1e-3), EG_ERROR_ARGUMENT,
                "eg_layer_layer_normalization: .epsilon is -0.001; it must be at least 0");
    CHECK_ERROR(eg_layer_rms_normalization(.epsilon = -1e-3), EG_ERROR_ARGUMENT,
                "eg_layer_rms_normalization: .epsilon is -0.001; it must be at least 0");
    CHECK_ERROR(eg_layer_batch_normalization(.momentum = -.5), EG_ERROR_ARGUMENT,
                "eg_layer_batch_normalization: .momentum is -0.5; it must be at least 0 and at most 1");
    CHECK_ERROR(eg_layer_dense(2, .input_shape = EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), EG_ERROR_ARGUMENT,
                "eg_layer_dense: .input_shape is {1, 1, 1, 1, 1, 1, 1, ...}; it must be of at most 7 numbers");
    CHECK_ERROR(eg_layer_zero_padding1d(EG_PADS(1, -1)), EG_ERROR_ARGUMENT,
                "eg_layer_zero_padding1d: pads is {1, -1}; each number must be at least 0 and at most 1048576");
    CHECK_ERROR(eg_layer_zero_padding2d(EG_PADS(1 << 21)), EG_ERROR_ARGUMENT,
                "eg_layer_zero_padding2d: pads is {2097152}; each number must be at least 0 and at most 1048576");
    CHECK_ERROR(eg_layer_dropout(-0.1), EG_ERROR_ARGUMENT,
                "eg_layer_dropout: rate is -0.1; it must be at least 0 and at most 1");
    CHECK_ERROR(eg_layer_dropout((double)NAN), EG_ERROR_ARGUMENT,
                "eg_layer_dropout: rate is nan; it must be at least 0 and at most 1");
    CHECK_ERROR(eg_layer_lstm(2, .dropout = 1), EG_ERROR_ARGUMENT,
                "eg_layer_lstm: .dropout is 1; it must be at least 0 and below 1");
    CHECK_ERROR(eg_layer_gru(2, .recurrent_dropout = -0.5), EG_ERROR_ARGUMENT,
                "eg_layer_gru: .recurrent_dropout is -0.5; it must be at least 0 and below 1");
    CHECK_ERROR(eg_layer_multi_head_attention(0, 4), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: heads is 0; it must be at least 1");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 0), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: key_dim is 0; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .value_dim = -1), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: .value_dim is -1; it must be at least 1");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .output_units = -1), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: .output_units is -1; it must be at least 1");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .kv_heads = -1), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: .kv_heads is -1; it must be at least 1");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .kv_heads = 3), EG_ERROR_ARGUMENT,
                "4 heads cannot share the keys of 3");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 2, .rotary_base = -1), EG_ERROR_ARGUMENT,
                "eg_layer_multi_head_attention: .rotary_base is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_layer_multi_head_attention(4, 3, .rotary_base = 100), EG_ERROR_ARGUMENT,
                "rotary positions need an even key_dim");
    CHECK_ERROR(eg_layer_bidirectional(eg_layer_lstm(2), .merge = (eg_merge)9), EG_ERROR_ARGUMENT,
                "eg_layer_bidirectional: .merge is 9; it must be at least 0 and at most 3");
    CHECK_ERROR(eg_layer_bidirectional(eg_layer_lstm(2), .merge = (eg_merge)-1), EG_ERROR_ARGUMENT,
                "eg_layer_bidirectional: .merge is -1; it must be at least 0 and at most 3");
    CHECK_ERROR(eg_layer_bidirectional(eg_layer_dense(2)), EG_ERROR_ARGUMENT,
                "eg_layer_bidirectional: Dense is no recurrent layer");
    CHECK_ERROR(eg_layer_bidirectional(NULL), EG_ERROR_NULL, "eg_layer_bidirectional: the layer is NULL");
    CHECK_ERROR(eg_layer_position_embedding(0), EG_ERROR_ARGUMENT,
                "eg_layer_position_embedding: longest is 0; it must be at least 1");
    CHECK_ERROR(eg_initialize((eg_initializer)-1, 0, EG_FLOAT32, EG_SHAPE(2)), EG_ERROR_ARGUMENT,
                "-1 is no initializer");
    CHECK_ERROR(eg_activate(eg_scalar(1), no_activation), EG_ERROR_ARGUMENT,
                "eg_activate: the function is no value of eg_activation");
}

TEST(initializers_of_every_rank) {
    eg_shape none = {0, {0}};
    eg_tensor *one = eg_initialize(EG_INIT_HE_UNIFORM, 0, EG_FLOAT64, none);
    CHECK_INT(eg_rank(one), 0);
    CHECK(fabs(eg_item(one)) <= sqrt(6));
    CHECK(eg_item(eg_reduce_max(eg_abs(eg_initialize(EG_INIT_LECUN_UNIFORM, 0, EG_FLOAT32, EG_SHAPE(300))))) <= 0.1);
    CHECK_NEAR(eg_item(eg_reduce_std(eg_initialize(EG_INIT_NORMAL, 0, EG_FLOAT32, EG_SHAPE(200, 200)))), 0.05, 0.001);
    CHECK_NEAR(eg_item(eg_reduce_std(eg_initialize(EG_INIT_NORMAL, 2, EG_FLOAT32, EG_SHAPE(200, 200)))), 2, 0.04);
    CHECK(eg_item(eg_reduce_max(eg_initialize(EG_INIT_TRUNCATED_NORMAL, 0, EG_FLOAT32, EG_SHAPE(200, 200)))) <= 0.1001);
    CHECK_NEAR(eg_item(eg_reduce_std(eg_initialize(EG_INIT_GLOROT_NORMAL, 0, EG_FLOAT32, EG_SHAPE(100, 300)))),
               sqrt(1. / 200), 0.002);
    CHECK_NEAR(eg_item(eg_reduce_std(eg_initialize(EG_INIT_LECUN_NORMAL, 0, EG_FLOAT32, EG_SHAPE(100, 300)))), 0.1,
               0.003);
    CHECK_TENSOR(eg_initialize(EG_INIT_UNIFORM, EG_ZERO, EG_FLOAT32, EG_SHAPE(2)), 0, 0, 0);
    CHECK_TENSOR(eg_initialize(EG_INIT_CONSTANT, EG_ZERO, EG_FLOAT32, EG_SHAPE(2)), 0, 0, 0);
    CHECK_SHAPE(eg_initialize(EG_INIT_ORTHOGONAL, 0, EG_FLOAT32, EG_SHAPE(0, 3)), 0, 3);
    CHECK_ERROR(eg_initialize(EG_INIT_ORTHOGONAL, 0, EG_FLOAT32, EG_SHAPE(3)), EG_ERROR_SHAPE,
                "eg_initialize: an orthogonal matrix has two dimensions or more, not [3]");
    CHECK_ERROR(eg_initialize(EG_INIT_IDENTITY, 0, EG_FLOAT32, EG_SHAPE(2, 2, 2)), EG_ERROR_SHAPE,
                "eg_initialize: an identity has two dimensions, not [2, 2, 2]");
    CHECK_ERROR(eg_initialize(EG_INIT_ONES, 0, EG_FLOAT32, EG_SHAPE(-1)), EG_ERROR_SHAPE, "eg_initialize");
    CHECK_ERROR(eg_initialize(EG_INIT_NORMAL, 0, EG_INT32, EG_SHAPE(2)), EG_ERROR_DTYPE, "eg_initialize");
}

// ---- names and parts

static eg_tensor *same_call(eg_tensor *const *in, void *user) { (void)user; return in[0]; }
static bool pair_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = out[1] = in[0];
    return true;
}

TEST(names_of_layers_and_parts) {
    static const struct { const char *name, *shown; } wrong[] = {{NULL, "'NULL'"}, {"", "''"}, {"a/b", "'a/b'"}};
    eg_layer *own = eg_layer_custom("own", same_call, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_ERROR(eg_layer_custom(wrong[i].name, same_call, NULL), EG_ERROR_ARGUMENT, wrong[i].shown);
        CHECK_ERROR(eg_layer_lambda(wrong[i].name, same_call, NULL), EG_ERROR_ARGUMENT,
                    "is no name for a kind of layer");
        CHECK_ERROR(eg_layer_set_name(own, wrong[i].name), EG_ERROR_ARGUMENT, "is no name for a layer");
        if (!wrong[i].name) continue;
        CHECK_ERROR(eg_layer_weight(own, wrong[i].name, eg_scalar(1), true), EG_ERROR_ARGUMENT,
                    "is no name for a part of layer own");
        CHECK_ERROR(eg_layer_track(own, wrong[i].name, eg_layer_dense(1)), EG_ERROR_ARGUMENT,
                    "is no name for a part of layer own");
    }
    CHECK_ERROR(eg_layer_weight(own, NULL, eg_scalar(1), true), EG_ERROR_ARGUMENT,
                "eg_layer_weight: a weight needs a name");
    CHECK_ERROR(eg_layer_weight(own, "w", NULL, true), EG_ERROR_NULL, "eg_layer_weight");
    CHECK_ERROR(eg_layer_weight(NULL, "w", eg_scalar(1), true), EG_ERROR_NULL, "eg_layer_weight: the layer is NULL");
    CHECK_ERROR(eg_layer_track(NULL, "w", eg_layer_dense(1)), EG_ERROR_NULL, "eg_layer_track: the layer is NULL");
    CHECK_STR(eg_layer_name(own), "own");
    CHECK_INT(eg_layer_weights(own, NULL, 0), 0);
    CHECK_INT(eg_layer_layers(own, NULL, 0), 0);
    // A layer cannot be inside of itself, however deep; what a frozen layer gets is frozen; integers are not trained.
    eg_layer *outer = eg_layer_custom("outer", same_call, NULL), *most = eg_layer_custom("most", same_call, NULL);
    eg_layer_track(outer, "own", own);
    eg_layer_track(most, "outer", outer);
    CHECK_ERROR(eg_layer_track(own, "deep", eg_layer_retain(most)), EG_ERROR_ARGUMENT,
                "layer own cannot be a part of itself");
    eg_layer_set_trainable(most, false);
    CHECK(!eg_layer_trainable(eg_layer_track(most, "late", eg_layer_dense(1))));
    CHECK(!eg_trainable(eg_layer_weight(most, "w", eg_scalar(1), true)));
    CHECK(!eg_trainable(eg_layer_weight(most, "count", eg_constant_of(EG_INT32, EG_SHAPE(1), 3), true)));
    eg_layer_set_trainable(most, true);
    CHECK_INT(eg_layer_weights(most, NULL, 0), 2);
    CHECK_INT(eg_layer_trainable_weights(most, NULL, 0), 1);
    eg_layer_release(most);
}

TEST(functions_of_the_users_own_need_their_counts) {
    CHECK_ERROR(eg_layer_lambda("f", NULL, NULL), EG_ERROR_ARGUMENT, "eg_layer_lambda: the function is NULL");
    CHECK_ERROR(eg_layer_custom("f", NULL, NULL), EG_ERROR_ARGUMENT, "eg_layer_custom: the function is NULL");
    CHECK_ERROR(eg_layer_custom_multi("f", 1, 1, NULL, NULL), EG_ERROR_ARGUMENT,
                "a function, 1 to 16 inputs and 1 to 8 outputs are needed");
    static const int wrong[][2] = {{0, 1}, {17, 1}, {1, 0}, {1, 9}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_ERROR(eg_layer_custom_multi("f", wrong[i][0], wrong[i][1], pair_call, NULL), EG_ERROR_ARGUMENT,
                    "1 to 16 inputs and 1 to 8 outputs");
}

TEST(long_paths) {
    char name[301], path[1000];
    memset(name, 'n', 300);
    name[300] = 0;
    eg_layer *outer = eg_layer_custom("outer", same_call, NULL), *inner = outer;
    for (int i = 0; i < 3; i++) inner = eg_layer_track(inner, name, eg_layer_custom("inner", same_call, NULL));
    CHECK(eg_layer_weight(inner, "w", eg_scalar(1), true) != NULL);
    CHECK(eg_layer_weight(outer, "last", eg_scalar(1), true) != NULL);
    CHECK_INT(strlen(eg_layer_weight_path(outer, 0, path, sizeof path)), 3 * 301 + 1);
    CHECK(!strncmp(path, name, 300) && path[300] == '/' && path[902] == '/' && path[903] == 'w');
    CHECK_STR(eg_layer_weight_path(outer, 1, path, sizeof path), "last");
    CHECK_STR(eg_layer_weight_path(outer, 1, path, 3), "la");
    CHECK_ERROR(eg_layer_weight_path(outer, -1, path, sizeof path), EG_ERROR_INDEX,
                "has no weight -1; it has 2, from 0 to 1");
    // Of a layer that stands in two places the configuration tells the first.
    eg_layer *shared = eg_layer_dense(1);
    eg_layer_track(inner, "first", shared);
    eg_layer_track(outer, "second", eg_layer_retain(shared));
    int64_t length = eg_layer_config(outer, NULL, 0);
    char *text = (char *)malloc((size_t)length + 1);
    CHECK_INT(eg_layer_config(outer, text, (size_t)length + 1), length);
    CHECK_INT(strlen(text), length);
    free(text);
    // No path is cut, for weights are saved by it.
    for (int i = 0; i < 4; i++) inner = eg_layer_track(inner, name, eg_layer_custom("inner", same_call, NULL));
    CHECK(eg_layer_weight(inner, "w", eg_scalar(1), true) != NULL);
    CHECK_ERROR(eg_layer_weight_path(outer, 5, path, sizeof path), EG_ERROR_STATE,
                "of a weight is longer than 2047 bytes; give its layers shorter names");
    CHECK_ERROR(eg_save_weights(outer, test_temp("long.npz")), EG_ERROR_STATE, "of a weight is longer than 2047 bytes");
    eg_layer_release(outer);
}
static eg_tensor *failing_call(eg_tensor *const *in, void *user) { (void)user; return eg_matmul(in[0], in[0]); }
TEST(errors_deep_inside_name_the_way) {
    eg_layer *model = eg_layer_lambda("a_function_whose_name_is_quite_long_so_that_the_way_to_it_gets_cut",
                                      failing_call, NULL);
    for (int i = 0; i < 6; i++) model = eg_sequential(model);
    CHECK_ERROR(eg_call(model, ones(EG_SHAPE(2, 3))), EG_ERROR_SHAPE,
                ", in layer sequential/sequential/sequential/sequential/sequential/sequential/a_function_whose_name");
    for (int i = 0; i < 30; i++) model = eg_sequential(model);
    CHECK_ERROR(eg_call(model, ones(EG_SHAPE(2, 3))), EG_ERROR_SHAPE, "/sequential/sequential");
    eg_layer_release(model);
}

// A message of the user's own begins with no function; it names the layer and the line of the call all the same.
static eg_tensor *raising_call(eg_tensor *const *in, void *user) {
    (void)in;
    (void)user;
    return (eg_tensor *)eg_raise(EG_ERROR_STATE, "it rains");
}
TEST(errors_of_the_users_in_a_layer_name_the_line) {
    eg_layer *model = eg_sequential(eg_layer_lambda("raises", raising_call, NULL));
    eg_tensor *x = ones(EG_SHAPE(2, 3));
    CHECK_ERROR(eg_call(model, x), EG_ERROR_STATE, "it rains, in layer sequential/raises (at layers_errors.c:");
    eg_layer_release(model);
}
// The library names a failing op by the public function around it; a message of the user's stays as it is.
static eg_tensor *named_call(eg_tensor *const *in, void *user) {
    (void)in;
    (void)user;
    return (eg_tensor *)eg_raise(EG_ERROR_STATE, "eg_call: %s", "it rains");
}
TEST(errors_of_the_users_keep_their_words) {
    eg_layer *model = eg_sequential(eg_layer_lambda("raises", named_call, NULL));
    eg_tensor *x = ones(EG_SHAPE(2, 3));
    CHECK_ERROR(eg_predict(model, x), EG_ERROR_STATE, "eg_call: it rains, in layer sequential/raises");
    eg_layer_release(model);
}

TEST(layers_that_are_shared_are_met_once) {
    eg_layer *a = eg_layer_dense(2), *b = eg_layer_dense(2),
             *model = eg_sequential(a, b, eg_layer_retain(b), eg_layer_retain(a));
    char path[32];
    CHECK(eg_layer_build(model, EG_SHAPE(-1, 2)));
    CHECK_INT(eg_layer_weights(model, NULL, 0), 4);
    CHECK_STR(eg_layer_weight_path(model, 2, path, sizeof path), "dense_1/kernel");
    check_config(a, "{\"class\": \"Dense\", \"name\": \"dense\"", false);         // by itself it is no part of anything
    eg_layer *flat = eg_layer_flatten();
    CHECK(eg_layer_build(flat, EG_SHAPE(-1, 2)));
    CHECK_ERROR(eg_layer_weight_path(flat, 0, path, sizeof path), EG_ERROR_INDEX, "layer flatten has no weights");
    eg_layer_release(flat);
    eg_layer_release(model);
}
TEST(a_model_may_have_weights_of_its_own) {
    eg_layer *model = eg_sequential();
    eg_tensor *w = eg_layer_weight(model, "scale", eg_scalar(2), true), *x = ones(EG_SHAPE(1, 3));
    CHECK(w && eg_layer_add(model, eg_layer_dense(2, .kernel_initializer = EG_INIT_ONES)));
    CHECK(eg_layer_build(model, EG_SHAPE(-1, 3)));
    CHECK_INT(eg_layer_parameters(model), 9);
    CHECK_INT(eg_layer_output_shape(model).dims[1], 2);
    CHECK_TENSOR(eg_call(model, x), 0, 3, 3);
    eg_layer *list[2];
    CHECK_INT(eg_layer_layers(model, list, 2), 1);
    CHECK_CONTAINS(summary_of(model), "Total params: 9");
    eg_layer_release(model);
}

// ---- layers that cannot be built

// Whoever looks at a layer that knows its input has it built; where that fails each look says so and finds nothing.
TEST(looking_at_what_cannot_be_built) {
    eg_layer *conv = eg_layer_conv2d(4, 3, .input_shape = EG_SHAPE(2, 2, 1));
    static const char says[] = "the window is larger than the input";
    char text[100];
    CHECK_ERROR(CHECK_INT(eg_layer_weights(conv, NULL, 0), -1), EG_ERROR_SHAPE, says);
    CHECK_ERROR(CHECK_INT(eg_layer_trainable_weights(conv, NULL, 0), -1), EG_ERROR_SHAPE, says);
    CHECK_ERROR(check_null(eg_layer_weight_path(conv, 0, text, sizeof text)), EG_ERROR_SHAPE, says);
    CHECK_ERROR(CHECK_INT(eg_layer_parameters(conv), 0), EG_ERROR_SHAPE, says);
    CHECK_ERROR(check_null(eg_layer_losses(conv)), EG_ERROR_SHAPE, says);
    CHECK_ERROR(CHECK_INT(eg_layer_output_shape(conv).rank, -1), EG_ERROR_SHAPE, says);
    CHECK_ERROR(CHECK_STR(summary_of(conv), ""), EG_ERROR_SHAPE, says);
    eg_layer_release(conv);
    CHECK_ERROR(CHECK_STR(summary_of(NULL), ""), EG_ERROR_NULL, "eg_layer_summary: the layer is NULL");
    CHECK_ERROR(CHECK_INT(eg_layer_weights(NULL, NULL, 0), -1), EG_ERROR_NULL, "eg_layer_weights: the layer is NULL");
    CHECK_ERROR(CHECK_INT(eg_layer_output_shape(NULL).rank, -1), EG_ERROR_NULL,
                "eg_layer_output_shape: the layer is NULL");
    CHECK_ERROR(CHECK_INT(eg_layer_config(NULL, text, sizeof text), -1), EG_ERROR_NULL,
                "eg_layer_config: the layer is NULL");
    CHECK_STR(text, "");
}

TEST(the_last_dimension_must_be_known) {
    eg_layer *layers[] = {eg_layer_dense(2), eg_layer_conv2d(2, 1), eg_layer_conv2d_transpose(2, 1),
                          eg_layer_depthwise_conv2d(1), eg_layer_separable_conv2d(2, 1), eg_layer_conv1d(2, 1),
                          eg_layer_conv1d_transpose(2, 1), eg_layer_simple_rnn(2), eg_layer_position_embedding(4),
                          eg_layer_multi_head_attention(1, 2)};
    static const int rank[] = {2, 4, 4, 4, 4, 3, 3, 3, 3, 3};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        eg_shape shape = {rank[i], {-1, 4, rank[i] == 4 ? 4 : -1, -1}};
        if (rank[i] == 2) shape.dims[1] = -1;
        CHECK_ERROR(eg_layer_build(layers[i], shape), EG_ERROR_SHAPE,
                    "must be known, for the weights depend on it, in layer");
        CHECK_INT(eg_layer_parameters(layers[i]), 0);
        shape.dims[rank[i] - 1] = 3;
        CHECK(eg_layer_build(layers[i], shape));
        CHECK(eg_layer_parameters(layers[i]) > 0);
        shape.dims[rank[i] - 1] = -1;                  // of one that is built it need not be told again
        CHECK(eg_layer_build(layers[i], shape));
        eg_layer_release(layers[i]);
    }
}

// What comes out where dimensions of the input are not known.
TEST(free_dimensions_pass_through) {
    const struct { eg_layer *layer; eg_shape in, out; } cases[] = {
        {eg_layer_conv2d_transpose(4, 3, .strides = {2}), EG_SHAPE(-1, -1, 5, 3), EG_SHAPE(-1, -1, 11, 4)},
        {eg_layer_up_sampling2d(3), EG_SHAPE(-1, -1, 5, 3), EG_SHAPE(-1, -1, 15, 3)},
        {eg_layer_zero_padding2d(EG_PADS(1, 2, 3, 4)), EG_SHAPE(-1, -1, 5, -1), EG_SHAPE(-1, -1, 12, -1)},
        {eg_layer_zero_padding1d(EG_PADS(1, 2)), EG_SHAPE(-1, 4, 2), EG_SHAPE(-1, 7, 2)},
        {eg_layer_flatten(), EG_SHAPE(-1, -1, 5, 3), EG_SHAPE(-1, -1)},
        {eg_layer_flatten(), EG_SHAPE(-1), EG_SHAPE(-1, 1)},
        {eg_layer_reshape(EG_SHAPE(5, -1)), EG_SHAPE(-1, -1, 5), EG_SHAPE(-1, 5, -1)},
        {eg_layer_reshape(EG_SHAPE(5, -1)), EG_SHAPE(-1, 3, 5), EG_SHAPE(-1, 5, 3)},
        {eg_layer_max_pooling2d(), EG_SHAPE(-1, -1, 5, 3), EG_SHAPE(-1, -1, 2, 3)},
        {eg_layer_conv1d(2, 3, .causal = true), EG_SHAPE(-1, -1, 3), EG_SHAPE(-1, -1, 2)},
        {eg_layer_embedding(4, 2), EG_SHAPE(-1, -1), EG_SHAPE(-1, -1, 2)},
        {eg_layer_multi_head_attention(1, 2, .output_units = 7), EG_SHAPE(-1, -1, 3), EG_SHAPE(-1, -1, 7)},
        {eg_layer_bidirectional(eg_layer_gru(2, .return_sequences = true)), EG_SHAPE(-1, -1, 3), EG_SHAPE(-1, -1, 4)},
        {eg_layer_bidirectional(eg_layer_gru(2), .merge = EG_MERGE_SUM), EG_SHAPE(-1, -1, 3), EG_SHAPE(-1, 2)},
        {eg_layer_conv2d(2, 3), EG_SHAPE(-1, 5, 0, 3), EG_SHAPE(-1, 3, 0, 2)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[EG_SHAPE_TEXT], want[EG_SHAPE_TEXT];
        CHECK(eg_layer_build(cases[i].layer, cases[i].in));
        CHECK_STR(eg_shape_text(eg_layer_output_shape(cases[i].layer), got), eg_shape_text(cases[i].out, want));
        eg_layer_release(cases[i].layer);
    }
}

TEST(shapes_that_no_layer_is_built_for) {
    eg_shape bad = {-1, {0}}, high = {9, {0}};
    int64_t large = INT64_C(1) << 40;
    eg_layer *dense = eg_layer_dense(2),
             *flat = eg_layer_flatten(), *to = eg_layer_reshape(EG_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)),
             *repeat = eg_sequential(eg_layer_up_sampling1d(1 << 20), eg_layer_up_sampling1d(1 << 20));
    CHECK_ERROR(eg_layer_build(dense, bad), EG_ERROR_SHAPE, "eg_layer_build: rank -1 is not between 0 and 8");
    CHECK_ERROR(eg_layer_build(dense, high), EG_ERROR_SHAPE, "eg_layer_build: rank 9 is not between 0 and 8");
    CHECK_ERROR(eg_layer_build(dense, EG_SHAPE(-1, large + 1)), EG_ERROR_SHAPE,
                "eg_layer_build: dimension 1 of [-1, 1099511627777] is out of range");
    CHECK_ERROR(eg_layer_build(NULL, EG_SHAPE(1, 2)), EG_ERROR_NULL, "eg_layer_build: the layer is NULL");
    CHECK_ERROR(eg_layer_build(flat, EG_SHAPE(-1, large, large)), EG_ERROR_SHAPE, "is too large");
    CHECK_ERROR(eg_layer_build(to, EG_SHAPE(-1, large, large)), EG_ERROR_SHAPE,
                "eg_layer_build: [-1, 1099511627776, 1099511627776] is too large");
    CHECK_ERROR(eg_layer_build(to, EG_SHAPE(-1, 2)), EG_ERROR_SHAPE, "is too large");
    CHECK_ERROR(eg_layer_build(repeat, EG_SHAPE(-1, large, 1)), EG_ERROR_SHAPE, "out of range");
    const struct { eg_layer *layer; const char *says; } too_many[] = {
        {eg_layer_multi_head_attention(INT64_C(1) << 40, 1, .value_dim = INT64_C(1) << 40), "too many heads"},
        {eg_layer_multi_head_attention(INT64_C(1) << 40, 1, .value_dim = INT64_C(1) << 40, .kv_heads = 1),
         "too many heads"},
    };
    for (int i = 0; i < 2; i++) {
        CHECK_ERROR(eg_layer_build(too_many[i].layer, EG_SHAPE(-1, 3, 2)), EG_ERROR_SHAPE, too_many[i].says);
        CHECK_INT(eg_layer_parameters(too_many[i].layer), 0);
        eg_layer_release(too_many[i].layer);
    }
    eg_layer *none = eg_layer_reshape(EG_SHAPE(0, -1));
    CHECK_ERROR(eg_call(none, ones(EG_SHAPE(2, 3))), EG_ERROR_SHAPE,
                "cannot be reshaped to [0, -1] (3 against 0 elements)");
    CHECK_ERROR(eg_call(none, ones(EG_SHAPE(2, 0))), EG_ERROR_SHAPE,
                "cannot be reshaped to [0, -1] (0 against 0 elements)");
    eg_layer_release(none);
    CHECK_INT(eg_layer_output_shape(repeat).rank, -1);
    eg_layer_release(dense);
    eg_layer_release(flat);
    eg_layer_release(to);
    eg_layer_release(repeat);
}

TEST(axes_that_an_input_does_not_have) {
    eg_layer *(*const make[])(eg_layer_options) = {(eg_layer_batch_normalization), (eg_layer_layer_normalization),
                                                   (eg_layer_rms_normalization), (eg_layer_group_normalization),
                                                   (eg_layer_concatenate)};
    for (int i = 0; i < 5; i++) {
        eg_layer_options far, third;
        memset(&far, 0, sizeof far);
        far.axis = 5;
        third = far;
        third.axis = 2;
        eg_layer *layer = make[i](far), *later = make[i](third);
        eg_tensor *x = ones(EG_SHAPE(2, 3, 32)), *flat = ones(EG_SHAPE(2, 3)), *two[] = {x, x}, *flats[] = {flat, flat},
                  *y;
        int n = i == 4 ? 2 : 1;
        CHECK_ERROR(eg_call_multi(layer, two, n, &y, 1), EG_ERROR_ARGUMENT, "axis 5");
        CHECK_INT(eg_layer_parameters(layer), 0);
        CHECK(eg_call_multi(later, two, n, &y, 1));        // built for an axis that the next input lacks
        CHECK_ERROR(eg_call_multi(later, flats, n, &y, 1), EG_ERROR_ARGUMENT, "axis 2");
        CHECK(y == NULL);
        eg_layer_release(layer);
        eg_layer_release(later);
    }
    CHECK_ERROR(eg_layer_group_normalization(.groups = EG_ZERO), EG_ERROR_ARGUMENT,
                "eg_layer_group_normalization: .groups is 0; it must be -1 or at least 1");
    eg_layer *parts = eg_layer_group_normalization(.groups = -1), *deep = eg_layer_group_normalization(.groups = 1),
             *wide = eg_layer_embedding(3, 2);
    CHECK_ERROR(eg_call(parts, ones(EG_SHAPE(2, 0))), EG_ERROR_ARGUMENT, "0 groups do not divide 0 channels");
    CHECK_TENSOR(eg_call(parts, ones(EG_SHAPE(1, 2))), 0, 0, 0);
    CHECK_ERROR(eg_call(deep, ones(EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 2))), EG_ERROR_SHAPE,
                "eg_layer_group_normalization: rank 8 is too high");
    CHECK_ERROR(eg_layer_build(wide, EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), EG_ERROR_SHAPE,
                "rank 8 is too high for an embedding");
    CHECK_ERROR(eg_call(wide, eg_zeros(EG_INT32, EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1))), EG_ERROR_SHAPE,
                "would have more than 8 axes, in layer embedding");
    eg_layer_release(parts);
    eg_layer_release(deep);
    eg_layer_release(wide);
    // Along the batch a layer keeps it.
    static const int axes[] = {EG_ZERO, -2};
    for (int i = 0; i < 2; i++) {
        eg_layer *norm = eg_layer_batch_normalization(.axis = axes[i]);
        CHECK_SHAPE(eg_call(norm, ones(EG_SHAPE(4, 3))), 4, 3);
        CHECK_INT(eg_layer_output_shape(norm).dims[0], 4);
        CHECK_ERROR(eg_call(norm, ones(EG_SHAPE(5, 3))), EG_ERROR_SHAPE,
                    "built for inputs [4, 3], but is called with [5, 3] (4 against 5)");
        eg_layer_release(norm);
    }
}

TEST(inputs_that_do_not_fit) {
    eg_tensor *x = ones(EG_SHAPE(2, 3)), *two[] = {x, x}, *y = x;
    eg_layer *dense = eg_layer_dense(2, .input_shape = EG_SHAPE(3)), *grouped = eg_layer_conv2d(3, 1, .groups = 2);
    CHECK_ERROR(eg_layer_conv2d(2, 1, .groups = -1), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .groups is -1; it must be at least 1");
    CHECK_ERROR(eg_call_multi(dense, two, 2, &y, 1), EG_ERROR_ARGUMENT,
                "eg_call_multi: 2 inputs; Dense takes 1, in layer dense");
    CHECK(y == NULL);
    CHECK_ERROR(eg_call_multi(dense, two, 0, &y, 1), EG_ERROR_ARGUMENT,
                "eg_call_multi: 0 inputs; a layer takes 1 to 16");
    CHECK_ERROR(eg_call_multi(dense, two, 1, &y, 0), EG_ERROR_ARGUMENT,
                "eg_call_multi: 0 outputs asked for; the layer has 1");
    CHECK_ERROR(eg_call(dense, ones(EG_SHAPE(2, 2, 3))), EG_ERROR_SHAPE,
                "the input [2, 2, 3] is not the batch of [3] that .input_shape promised");
    eg_layer *batched = eg_layer_dense(2, .input_shape = EG_SHAPE(8, 3));
    CHECK_ERROR(eg_call(batched, ones(EG_SHAPE(8, 3))), EG_ERROR_SHAPE,
                "promised; .input_shape is that of one example, without the batch's axis");
    eg_layer_release(batched);
    CHECK_INT(eg_layer_parameters(dense), 8);
    CHECK(eg_layer_build(dense, EG_SHAPE(-1, -1)));     // it knows by now
    CHECK_ERROR(eg_call(grouped, ones(EG_SHAPE(1, 2, 2, 2))), EG_ERROR_ARGUMENT,
                "2 groups do not divide 2 channels and 3 filters");
    eg_layer_release(dense);
    eg_layer_release(grouped);
    eg_layer *permute = eg_layer_permute(EG_AXES(3, 1));
    CHECK_ERROR(eg_call(permute, ones(EG_SHAPE(1, 2, 3))), EG_ERROR_SHAPE, "[3, 1] is no order of the axes 1 to 2");
    eg_layer_release(permute);
}

// ---- what a user's function may get wrong

static bool odd_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    int how = *(int *)user;
    out[0] = in[0];
    if (how == 1) out[1] = in[0];
    if (how == 3) out[1] = eg_matmul(in[0], in[0]);
    return how != 0;
}
static eg_tensor *null_call(eg_tensor *const *in, void *user) { (void)in; (void)user; return NULL; }
TEST(functions_that_fail_or_forget) {
    int how = 0;
    eg_layer *odd = eg_layer_custom_multi("odd", 1, 2, odd_call, &how),
             *nothing = eg_layer_custom("nothing", null_call, NULL);
    eg_tensor *x = ones(EG_SHAPE(2, 3)), *out[2];
    CHECK_ERROR(eg_call_multi(odd, &x, 1, out, 2), EG_ERROR_NULL,
                "eg_call_multi: the layer's function failed, in layer odd");
    how = 2;
    CHECK_ERROR(eg_call_multi(odd, &x, 1, out, 2), EG_ERROR_NULL,
                "eg_call_multi: output 1 of the layer is NULL, in layer odd");
    CHECK(!out[0] && !out[1]);
    CHECK(eg_call_multi(odd, &x, 1, out, 1) && out[0] != NULL);
    how = 3;
    CHECK_ERROR(eg_call_multi(odd, &x, 1, out, 2), EG_ERROR_SHAPE, "eg_matmul");
    how = 1;
    CHECK(eg_call_multi(odd, &x, 1, out, 2));
    CHECK_TENSOR(out[1], 0, 1, 1, 1, 1, 1, 1);
    CHECK_ERROR(eg_call(nothing, x), EG_ERROR_NULL, "eg_call: the layer's function failed, in layer nothing");
    eg_layer_release(odd);
    eg_layer_release(nothing);
}

TEST(losses_of_mixed_precision) {
    eg_layer *model = eg_sequential(eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES, .kernel_l1 = 1, .bias_l2 = 1),
                                    eg_layer_dense(1, .dtype = EG_FLOAT64, .kernel_initializer = EG_INIT_ONES,
                                                   .kernel_l2 = 3));
    CHECK(eg_layer_build(model, EG_SHAPE(-1, 2)));
    eg_tensor *sum = eg_layer_losses(model);
    CHECK_DTYPE(sum, EG_FLOAT64);
    CHECK_TENSOR(sum, 0, 2 + 3);
    eg_layer_release(model);
}

// ---- masks

TEST(masks_are_put_on_and_taken_off) {
    eg_tensor *mask = eg_constant_of(EG_BOOL, EG_SHAPE(1, 2), 1, 0),
              *other = eg_constant_of(EG_BOOL, EG_SHAPE(1, 2), 0, 1), *x = ones(EG_SHAPE(1, 2, 3)),
              *v = eg_variable(x, "v");
    eg_tensor *with = eg_with_mask(x, mask), *of = eg_with_mask(v, mask);
    CHECK(eg_mask_of(with) == mask && !eg_mask_of(x) && eg_mask_of(of) == mask && !eg_mask_of(v));
    CHECK(eg_mask_of(eg_with_mask(with, other)) == other && eg_mask_of(with) == mask);
    CHECK(eg_mask_of(eg_with_mask(with, NULL)) == NULL);
    CHECK_ERROR(eg_with_mask(x, x), EG_ERROR_DTYPE, "eg_with_mask: the mask");
    CHECK_ERROR(eg_with_mask(NULL, mask), EG_ERROR_NULL, "eg_with_mask");
    eg_layer *act = eg_layer_activation(EG_RELU);
    eg_tensor *y = eg_call(act, with, .mask = mask);
    CHECK(eg_mask_of(y) == mask && eg_mask_of(eg_call(act, with, .mask = other)) == other && eg_mask_of(with) == mask);
    eg_layer_release(act);
    eg_release(v);
    // Over pictures a mask says nothing.
    eg_layer *mean = eg_layer_global_average_pooling2d(), *norm = eg_layer_batch_normalization();
    CHECK_TENSOR(eg_call(mean, ones(EG_SHAPE(1, 2, 2, 1)), .mask = mask), 0, 1);
    CHECK_SHAPE(eg_call(norm, ones(EG_SHAPE(1, 3)), .mask = eg_ones(EG_BOOL, EG_SHAPE(1)), .training = true), 1, 3);
    CHECK_ERROR(eg_call(norm, ones(EG_SHAPE(2, 3)), .mask = mask), EG_ERROR_SHAPE,
                "eg_call: the mask bool [1, 2] (from eg_constant) does not fit float32 [2, 3]");
    eg_layer_release(mean);
    eg_layer_release(norm);
}
static eg_tensor *mean_of_steps(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_reduce_mean(in[0], .axes = EG_AXES(1));
}
static eg_tensor *twice(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_mul(in[0], 2);
}
TEST(masks_of_steps_that_are_no_more) {
    eg_tensor *x = eg_with_mask(ones(EG_SHAPE(2, 3, 4)), eg_ones(EG_BOOL, EG_SHAPE(2, 3)));
    eg_layer *mean = eg_layer_lambda("mean", mean_of_steps, NULL), *product = eg_layer_lambda("twice", twice, NULL);
    CHECK(eg_mask_of(eg_call(product, x)) != NULL);
    CHECK(eg_mask_of(eg_call(mean, x)) == NULL);
    CHECK_INT(eg_error(), EG_OK);
    eg_layer_release(mean);
    eg_layer_release(product);
}
TEST(masks_that_do_not_fit) {
    eg_tensor *x = ones(EG_SHAPE(2, 3, 4)), *y;
    eg_layer *lstm = eg_layer_lstm(2), *attention = eg_layer_multi_head_attention(2, 2);
    const eg_shape wrong[] = {EG_SHAPE(6), EG_SHAPE(3, 3), EG_SHAPE(2, 4)};
    for (int i = 0; i < 3; i++) {
        eg_tensor *mask = eg_ones(EG_BOOL, wrong[i]);
        CHECK_ERROR(eg_call(lstm, x, .mask = mask), EG_ERROR_SHAPE, "does not fit float32 [2, 3, 4]");
        CHECK_ERROR(eg_with_mask(x, mask), EG_ERROR_SHAPE, "eg_with_mask: the mask bool");
        CHECK_ERROR(eg_call(attention, x, .mask = mask), EG_ERROR_SHAPE, "one bool for each step");
    }
    CHECK_ERROR(eg_call(lstm, ones(EG_SHAPE(2, 0, 4))), EG_ERROR_SHAPE, "LSTM of sequences of 0 steps");
    eg_tensor *pairs[] = {x, eg_ones(EG_BOOL, EG_SHAPE(2, 3, 2))},
              *deep[] = {x, eg_ones(EG_BOOL, EG_SHAPE(1, 2, 3, 3))}, *flat[] = {x, eg_ones(EG_BOOL, EG_SHAPE(3, 3))};
    CHECK_ERROR(eg_call_multi(attention, pairs, 2, &y, 1), EG_ERROR_SHAPE,
                "does not broadcast to (batch, queries, keys) [2, 3, 3]");
    CHECK_ERROR(eg_call_multi(attention, deep, 2, &y, 1), EG_ERROR_SHAPE,
                "does not broadcast to (batch, queries, keys)");
    CHECK(eg_call_multi(attention, flat, 2, &y, 1));
    CHECK(eg_assert_near(y, eg_call(attention, x), 1e-6));           // who may look at all looks as without
    eg_layer_release(lstm);
    eg_layer_release(attention);
}

TEST(what_attention_is_given) {
    eg_layer *attention = eg_layer_multi_head_attention(2, 2), *positions = eg_layer_position_embedding(2);
    eg_tensor *x = ones(EG_SHAPE(2, 3, 4)), *out[4] = {NULL, NULL, NULL, NULL};
    CHECK(eg_call_multi(attention, &x, 1, out, 4));
    CHECK_SHAPE(out[2], 2, 2, 3, 2);
    eg_tensor *again[] = {x, out[2], out[3]}, *crossed[] = {x, x, out[2], out[3]},
              *wrong[] = {x, out[2], eg_ones(EG_FLOAT32, EG_SHAPE(2, 2, 3, 5))}, *y;
    CHECK(eg_call_multi(attention, again, 3, &y, 1));
    CHECK_ERROR(eg_call_multi(attention, crossed, 4, &y, 1), EG_ERROR_ARGUMENT,
                "keys and values so far go with a query alone");
    CHECK_ERROR(eg_call_multi(attention, wrong, 3, &y, 1), EG_ERROR_SHAPE, "the values so far are");
    wrong[2] = out[3];
    wrong[1] = eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 3, 2));
    CHECK_ERROR(eg_call_multi(attention, wrong, 3, &y, 1), EG_ERROR_SHAPE, "the keys so far are");
    CHECK_ERROR(eg_call_multi(attention, again, 3, &y, 1, .mask = eg_ones(EG_BOOL, EG_SHAPE(2, 3))), EG_ERROR_ARGUMENT,
                "a mask of steps does not tell about the keys so far");
    eg_tensor *flat[] = {x, ones(EG_SHAPE(2, 3))}, *batch[] = {x, ones(EG_SHAPE(3, 3, 4))},
              *keys[] = {x, x, ones(EG_SHAPE(2, 5, 4))}, *many[] = {x, x, x, x};
    CHECK_ERROR(eg_call_multi(attention, flat, 2, &y, 1), EG_ERROR_SHAPE, "do not go together");
    CHECK_ERROR(eg_call_multi(attention, batch, 2, &y, 1), EG_ERROR_SHAPE, "do not go together");
    CHECK_ERROR(eg_call_multi(attention, keys, 3, &y, 1), EG_ERROR_SHAPE, "query ");
    CHECK_ERROR(eg_call_multi(attention, many, 4, &y, 1), EG_ERROR_ARGUMENT, "query, value and key");
    CHECK_ERROR(eg_call(positions, x), EG_ERROR_SHAPE, "has more than the 2 positions that are embedded");
    eg_layer_release(attention);
    eg_layer_release(positions);
    eg_layer *both = eg_layer_bidirectional(eg_layer_lstm(2));
    eg_tensor *states[] = {x, ones(EG_SHAPE(2, 2)), ones(EG_SHAPE(2, 2))};
    CHECK_ERROR(eg_call_multi(both, states, 3, &y, 1), EG_ERROR_ARGUMENT,
                "3 inputs; Bidirectional takes the sequences, and none or all of its 4 states");
    eg_layer_release(both);
}

// ---- configurations

TEST(configurations_tell_each_kind_of_option) {
    check_config(eg_layer_batch_normalization(.axis = EG_ZERO, .momentum = EG_ZERO), "\"axis\": 0, \"momentum\": 0",
                 true);
    check_config(eg_layer_dense(2, .dtype = EG_FLOAT64, .bias_initializer = EG_INIT_ONES),
                 "\"dtype\": \"float64\", \"bias_initializer\": \"ones\", \"units\": 2", true);
    check_config(eg_layer_conv2d(2, 0, .kernel_size = {3, 2}, .padding = EG_SAME, .groups = 2),
                 "\"kernel_size\": [3, 2], \"padding\": \"same\", \"groups\": 2", true);
    check_config(eg_layer_zero_padding2d(EG_PADS(1, 2, 3, 4)), "\"pads\": [1, 2, 3, 4]", true);
    check_config(eg_layer_reshape(EG_SHAPE(2, -1)), "\"target\": [2, -1]", true);
    check_config(eg_layer_bidirectional(eg_layer_gru(2, .reset_before = true), .merge = EG_MERGE_AVE), "\"merge\": 3",
                 true);
    check_config(eg_layer_embedding(3, 2, .mask_zero = true, .frozen = true), "\"frozen\": true", true);
    eg_layer *add = eg_layer_merge_add();
    eg_tensor *two[] = {ones(EG_SHAPE(2, 3)), ones(EG_SHAPE(2, 1))}, *y;
    CHECK(eg_call_multi(add, two, 2, &y, 1));
    check_config(add, "\"inputs\": [[-1, 3], [-1, 1]]", true);
    eg_layer *act = eg_layer_activation(EG_TANH);
    CHECK_NEAR(eg_item(eg_call(act, eg_scalar(0))), 0, 0);
    check_config(act, "\"inputs\": [[]]", true);
}
TEST(configurations_of_merges_have_shapes) {
    static const struct { const char *text; int64_t out[2]; } right[] = {
        {"{\"class\": \"Add\", \"name\": \"a\", \"inputs\": [[-1, -1], [-1, 3]]}", {-1, 3}},
        {"{\"class\": \"Add\", \"name\": \"a\", \"inputs\": [[-1, 1], [2, -1]]}", {2, -1}},
        {"{\"class\": \"Add\", \"name\": \"a\", \"inputs\": [[-1, 3], [4, 1]]}", {4, 3}},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"inputs\": [[-1, -1], [-1, 3]]}", {-1, -1}},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"inputs\": [[-1, 4], [-1, -1]]}", {-1, -1}},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"inputs\": [[5, 4], [-1, 3], [-1, 2]]}", {5, 9}},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"axis\": 0, \"inputs\": [[2, 4], [3, -1]]}", {5, 4}},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        eg_layer *layer = eg_layer_from_config(right[i].text);
        eg_shape out = eg_layer_output_shape(layer);
        CHECK_INT(out.rank, 2);
        CHECK_INT(out.dims[0], right[i].out[0]);
        CHECK_INT(out.dims[1], right[i].out[1]);
        eg_layer_release(layer);
    }
}

static eg_layer *twins_make(void *user) {                // one layer in two places of its own
    (void)user;
    eg_layer *twins = eg_layer_custom("twins", same_call, NULL), *one = eg_layer_dense(2);
    eg_layer_track(twins, "left", one);
    eg_layer_track(twins, "right", eg_layer_retain(one));
    return twins;
}
TEST(configurations_of_shared_layers) {
    eg_layer *deep = eg_layer_from_config(
        "{\"class\": \"Sequential\", \"name\": \"m\", \"layers\": [{\"part\": \"a\", \"class\": \"Sequential\", "
        "\"name\": \"a\", \"layers\": [{\"part\": \"d\", \"class\": \"Dense\", \"name\": \"d\", \"units\": 2}]}, "
        "{\"part\": \"b\", \"same\": \"a/d\"}]}");
    eg_layer *list[2] = {NULL, NULL};
    CHECK_INT(eg_layer_layers(deep, list, 2), 2);
    CHECK_STR(eg_layer_name(list[1]), "d");
    CHECK(eg_layer_build(deep, EG_SHAPE(-1, 2)));
    CHECK_INT(eg_layer_parameters(deep), 6);
    check_config(deep, "{\"part\": \"b\", \"same\": \"a/d\"}", true);
    CHECK_ERROR(eg_layer_from_config("{\"class\": \"Sequential\", \"name\": \"m\", \"layers\": [{\"part\": \"a\", "
                                     "\"class\": \"Flatten\", \"name\": \"a\"}, {\"part\": \"b\", \"same\": "
                                     "\"a/d\"}]}"), EG_ERROR_FILE, "\"same\" names no layer before it");
    CHECK(eg_layer_register("twins", twins_make, NULL));
    check_config(eg_sequential(twins_make(NULL), eg_layer_dense(1)), "\"part\": \"right\", \"same\": \"twins/left\"",
                 true);
}

static int made;                                       // how the maker below goes wrong
static eg_tensor *made_call(eg_tensor *const *in, void *user) { (void)user; return in[0]; }
static eg_layer *maker(void *user) {
    (void)user;
    if (made == 1) return NULL;
    if (made == 2) return eg_layer_dense(0);
    if (made == 3) return eg_layer_dense(3);
    if (made == 4) return eg_layer_custom("other", made_call, NULL);
    if (made == 5) return eg_layer_lambda("odd", made_call, NULL);
    return eg_layer_custom("odd", made_call, NULL);
}
TEST(makers_that_make_something_else) {
    static const char plain[] = "{\"class\": \"Custom\", \"name\": \"mine\", \"kind\": \"odd\"}";
    static const struct { int made; eg_error_code code; const char *says; } wrong[] = {
        {1, EG_ERROR_NULL, "the maker of 'odd' returned NULL"},
        {2, EG_ERROR_ARGUMENT, "eg_layer_dense: units is 0; it must be at least 1"},
        {3, EG_ERROR_FILE, "Custom 'mine' is expected where your function made Dense 'dense'"},
        {4, EG_ERROR_FILE, "Custom 'mine' is expected where your function made Custom 'other'"},
        {5, EG_ERROR_FILE, "Custom 'mine' is expected where your function made Lambda 'odd'"},
    };
    CHECK(eg_layer_register("odd", maker, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        made = wrong[i].made;
        CHECK_ERROR(check_null(eg_layer_from_config(plain)), wrong[i].code, wrong[i].says);
    }
    made = 0;
    eg_layer *mine = eg_layer_from_config(plain);
    CHECK_STR(eg_layer_name(mine), "mine");
    eg_layer_release(mine);
    CHECK_ERROR(eg_layer_from_config("{\"class\": \"Custom\", \"name\": \"mine\", \"kind\": \"odd\", \"layers\": "
                                     "[{\"part\": \"p\", \"class\": \"Flatten\", \"name\": \"f\"}]}"), EG_ERROR_FILE,
                "the layer 'odd' that your function made has no part 'p'");
    CHECK_ERROR(eg_layer_register(NULL, maker, NULL), EG_ERROR_ARGUMENT, "a name and a function are needed");
    CHECK_ERROR(eg_layer_register("odd", NULL, NULL), EG_ERROR_ARGUMENT, "a name and a function are needed");
}
TEST(configurations_that_hold_the_wrong_things) {
    static const struct { const char *text, *says; } wrong[] = {
        {"{\"class\": \"Dense\"}", "a layer needs its \"class\" and its \"name\""},
        {"{\"class\": \"Dense\", \"name\": \"\"}", "a layer needs its \"class\" and its \"name\""},
        {"{\"class\": \"Dense\", \"name\": 3}", "a layer needs its \"class\" and its \"name\""},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"axis\": 1.5}", "a small whole number is expected"},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"axis\": -1001}", "a small whole number is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"no_bias\": \"x\"}", "true or false is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"dtype\": \"int32\"}",
         "'int32' is no dtype of weights"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"bias_initializer\": \"some\"}",
         "'some' is no initializer"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"kernel_l2\": true}", "a number is expected"},
        {"{\"class\": \"Conv2D\", \"name\": \"a\", \"units\": 1, \"size\": 1, \"strides\": 2}",
         "a list of whole numbers is expected"},
        {"{\"class\": \"ZeroPadding2D\", \"name\": \"a\", \"pads\": [1.5]}", "a whole number is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"inputs\": []}", "a list of shapes is expected"},
        {"{\"class\": \"Add\", \"name\": \"a\", \"inputs\": [[1], [1], [1], [1]]}", "a list of shapes is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"inputs\": [[-1, 0.5]]}",
         "a whole number is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"inputs\": [3]}",
         "a list of whole numbers is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"inputs\": [[-1, 9999999999999]]}",
         "a dimension is out of range"},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"axis\": 3, \"inputs\": [[-1, 2], [-1, 3]]}", "axis 3"},
        {"{\"class\": \"Concatenate\", \"name\": \"a\", \"inputs\": [[-1, 2], [-1, 3, 4]]}", "shapes do not fit"},
        {"{\"class\": \"Sequential\", \"name\": \"a\", \"layers\": [{\"part\": \"f\", \"same\": \"g/h\"}]}",
         "\"same\" names no layer before it"},
        {"{\"class\": \"Sequential\", \"name\": \"a\", \"layers\": [3]}", "needs its \"part\""},
        {"{\"class\": \"Sequential\", \"name\": \"a\", \"layers\": [{\"part\": \"f\", \"class\": \"Dens\", \"name\": "
         "\"f\"}]}", "there is no layer 'Dens'"},
        {"{\"class\": \"Bidirectional\", \"name\": \"a\", \"layers\": [{\"part\": \"f\", \"class\": \"GRU\", "
         "\"name\": \"f\", \"units\": 1}, {\"part\": \"g\", \"class\": \"LSTM\", \"name\": \"g\", \"units\": 1}]}",
         "two recurrent layers of one kind"},
        {"{\"class\": \"Bidirectional\", \"name\": \"a\", \"layers\": [{\"part\": \"f\", \"class\": \"Flatten\", "
         "\"name\": \"f\"}, {\"part\": \"g\", \"class\": \"LSTM\", \"name\": \"g\", \"units\": 1}]}",
         "two recurrent layers of one kind"},
        {"{\"class\": \"Residual\", \"name\": \"a\", \"layers\": [{\"part\": \"f\", \"class\": \"Flatten\", \"name\": "
         "\"f\"}, {\"part\": \"g\", \"class\": \"Flatten\", \"name\": \"g\"}]}", "one layer is expected in a Residual"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!eg_layer_from_config(wrong[i].text));
        CHECK(eg_error() != EG_OK);
        CHECK_CONTAINS(eg_error_message(), wrong[i].says);
        eg_error_clear();
    }
}

// ---- summaries

TEST(summaries_of_odd_layers) {
    eg_layer *own = eg_layer_custom("kind", same_call, NULL), *flat = eg_layer_flatten();
    CHECK_CONTAINS(summary_of(own), "│ kind (Custom)                   │ ?                      │   0 (unbuilt) │");
    CHECK(eg_layer_set_name(own, "mine"));
    eg_layer_weight(own, "w", ones(EG_SHAPE(1500)), true);
    eg_layer_track(own, NULL, flat);
    CHECK_CONTAINS(summary_of(own), "│ flatten (Flatten)               │ ?                      │             0 │");
    CHECK_CONTAINS(printed, "Total params: 1,500 (5.86 KB)");
    CHECK(eg_call(own, ones(EG_SHAPE(3))) != NULL);
    eg_layer *around = eg_sequential(own);
    CHECK_CONTAINS(summary_of(around), "│ mine (kind)                     │ (None,)                │         1,500 │");
    eg_layer_release(around);
    // A shape that is longer than the name goes on in further lines.
    eg_layer *wide = eg_layer_lambda("f", same_call, NULL);
    CHECK(eg_call(wide, eg_broadcast_to(eg_scalar(1), EG_SHAPE(1, 1000000, 20000, 30000, 4, 5))) != NULL);
    CHECK_CONTAINS(summary_of(wide),
                   "│ f (Lambda)                      │ (None, 1000000, 20000, │             0 "
                   "│\n│                                 │ 30000, 4, 5)           │               │\n");
    eg_layer_release(wide);
}

// The last test: the registry is the program's, and full behind it.
TEST(the_registry_of_makers_has_an_end) {
    static char names[130][8];
    int i = 0;
    for (bool fits = true; fits && i < 130; i++) {
        snprintf(names[i], sizeof names[i], "kind%d", i);
        fits = eg_layer_register(names[i], maker, NULL);
    }
    CHECK_INT(eg_error(), EG_ERROR_ARGUMENT);
    CHECK_CONTAINS(eg_error_message(), "128 kinds of layers are registered; there is no room for 'kind");
    eg_error_clear();
    CHECK(eg_layer_register("kind0", maker, NULL));         // one that is known may still change
}

// Weights are what they are: it is the input that a caller can cast, and one sentence says so, whichever op would have
// met both first.
TEST(inputs_of_another_dtype) {
    eg_layer *layers[] = {eg_layer_dense(2), eg_layer_lstm(2), eg_layer_layer_normalization(),
                          eg_layer_batch_normalization(), eg_layer_multi_head_attention(2, 2),
                          eg_layer_position_embedding(6), eg_layer_conv1d(2, 3), eg_layer_simple_rnn(2),
                          eg_layer_gru(2)};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 5, 3));
        CHECK(eg_call(layers[i], x) != NULL);
        int64_t errors = eg_error_count();
        CHECK_ERROR(eg_call(layers[i], eg_cast(x, EG_FLOAT64)), EG_ERROR_DTYPE,
                    "eg_call: the weights are float32, and the input is float64 [1, 5, 3]");
        CHECK_INT(eg_error_count() - errors, 1);
        CHECK_ERROR(eg_call(layers[i], eg_cast(x, EG_UINT8)), EG_ERROR_DTYPE,
                    "; eg_cast(x, EG_FLOAT32) makes it fit, in layer ");
        CHECK_ERROR(eg_call(layers[i], eg_cast(x, EG_BOOL)), EG_ERROR_DTYPE,
                    "eg_call: the weights are float32, and the input is bool [1, 5, 3]");
        CHECK(eg_call(layers[i], x) != NULL);
        eg_layer_release(layers[i]);
    }
    eg_layer *mixed = eg_sequential(eg_layer_dense(4, .input_shape = EG_SHAPE(3)),
                                    eg_layer_dense(2, .dtype = EG_FLOAT64));
    CHECK_ERROR(eg_call(mixed, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), EG_ERROR_DTYPE,
                "the weights are float64, and the input is float32 [1, 4] (from eg_dense); give the layers before this "
                "one .dtype = EG_FLOAT64, too, and the model inputs of it, in layer sequential/dense_1");
    CHECK_ERROR(eg_call(mixed, eg_ones(EG_FLOAT64, EG_SHAPE(1, 3))), EG_ERROR_DTYPE, "the weights are float32, and the "
                "input is float64 [1, 3] (from eg_ones); eg_cast(x, EG_FLOAT32) makes it fit, or a layer made with "
                ".dtype = EG_FLOAT64, in layer sequential/dense");
    eg_layer_release(mixed);
    eg_layer *wide = eg_layer_dense(2, .dtype = EG_FLOAT64);
    CHECK_ERROR(
        eg_call(wide, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), EG_ERROR_DTYPE,
        "the weights are float64, and the input is float32 [1, 3] (from eg_ones); eg_cast(x, EG_FLOAT64) makes it fit");
    eg_layer_release(wide);
}
TEST(weights_that_are_not_made_yet) {
    char text[16] = "before";
    eg_tensor *w[4];
    eg_layer *model = eg_sequential(eg_layer_dense(2), eg_layer_flatten()), *none = eg_sequential(eg_layer_flatten()),
             *frozen = eg_layer_dense(2, .frozen = true, .input_shape = EG_SHAPE(3));
    CHECK_INT(eg_layer_weights(model, w, 4), 0);             // an empty list, as in Keras
    CHECK_INT(eg_layer_trainable_weights(model, w, 4), 0);
    CHECK_ERROR(eg_layer_weight_path(model, 0, text, sizeof text), EG_ERROR_INDEX, "has no weights yet");
    CHECK_STR(text, "");
    CHECK_INT(eg_layer_weights(none, w, 4), 0);
    CHECK_INT(eg_layer_trainable_weights(frozen, w, 4), 0);
    CHECK_INT(eg_error(), EG_OK);
    CHECK(eg_layer_build(model, EG_SHAPE(-1, 3)));
    CHECK_INT(eg_layer_trainable_weights(model, w, 4), 2);
    CHECK_STR(eg_layer_weight_path(model, 1, text, sizeof text), "dense/bias");
    eg_layer_release(model);
    eg_layer_release(none);
    eg_layer_release(frozen);
}
