// Layers and models: what they make, name, count, pass on and refuse. Their values stand against Keras in
// layers_fixtures.c.
#include "faults.h"
#include "printed.h"

static const char *path_of(eg_layer *layer, int i) {
    static char text[4][128];
    static int turn;
    char *t = text[turn++ % 4];
    return eg_layer_weight_path(layer, i, t, sizeof text[0]);
}
static eg_tensor *no_activation(eg_tensor *x) { return x; }      // no value of eg_activation
static eg_tensor *weight_of(eg_layer *layer, int i) {
    eg_tensor *list[64];
    return i < eg_layer_weights(layer, list, 64) ? list[i] : NULL;
}

// ---- one layer

TEST(dense) {
    eg_layer *dense = eg_layer_dense(3, .activation = EG_RELU, .kernel_initializer = EG_INIT_CONSTANT,
                                     .kernel_initializer_value = 2, .bias_initializer = EG_INIT_ONES);
    CHECK_INT(eg_layer_weights(dense, NULL, 0), 0);
    eg_tensor *y = eg_call(dense, eg_constant(EG_SHAPE(2, 2), 1, 2, -3, 0));
    CHECK_SHAPE(y, 2, 3);
    CHECK_TENSOR(y, 0, 7, 7, 7, 0, 0, 0);
    CHECK_INT(eg_layer_weights(dense, NULL, 0), 2);
    CHECK_STR(path_of(dense, 0), "kernel");
    CHECK_STR(path_of(dense, 1), "bias");
    CHECK_STR(eg_name_of(weight_of(dense, 0)), "dense/kernel");
    CHECK_INT(eg_layer_parameters(dense), 9);
    CHECK_SHAPE(eg_call(dense, eg_zeros(EG_FLOAT32, EG_SHAPE(4, 5, 2))), 4, 5, 3);
    CHECK_SHAPE(eg_call(dense, eg_zeros(EG_FLOAT32, EG_SHAPE(4, 0, 2))), 4, 0, 3);
    CHECK_ERROR(eg_call(dense, eg_zeros(EG_FLOAT32, EG_SHAPE(4, 5))), EG_ERROR_SHAPE,
                "built for inputs [?, 2], but is called with [4, 5] (2 against 5), in layer dense");
    CHECK_ERROR(eg_call(dense, eg_zeros(EG_FLOAT32, EG_SHAPE(2))), EG_ERROR_SHAPE,
                "Dense takes inputs of rank 2 or more, not [2] (rank 1); if it is one example, eg_expand_dims(x, 0) "
                "makes a batch of it, in layer dense");
    CHECK_ERROR(eg_layer_dense(0), EG_ERROR_ARGUMENT, "eg_layer_dense: units is 0; it must be at least 1");
    CHECK_ERROR(eg_layer_dense(2, .strides = {2}), EG_ERROR_ARGUMENT, "eg_layer_dense: has no option .strides");
    CHECK_ERROR(eg_layer_weight_path(dense, 2, (char[8]){0}, 8), EG_ERROR_INDEX,
                "layer dense has no weight 2; it has 2, from 0 to 1");
    eg_layer *unbuilt = eg_layer_dense(1);
    CHECK_ERROR(eg_layer_weight_path(unbuilt, 0, (char[8]){0}, 8), EG_ERROR_INDEX,
                "layer dense has no weights yet; eg_layer_build or its first call makes them");
    eg_layer_release(unbuilt);
    eg_layer_release(dense);
}

TEST(dense_without_bias_in_float64) {
    eg_layer *dense = eg_layer_dense(1, .no_bias = true, .name = "d");
    CHECK_DTYPE(eg_call(dense, eg_zeros(EG_FLOAT64, EG_SHAPE(2, 3))), EG_FLOAT64);
    CHECK_INT(eg_layer_parameters(dense), 3);
    CHECK_STR(eg_name_of(weight_of(dense, 0)), "d/kernel");
    CHECK_ERROR(eg_call(dense, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3))), EG_ERROR_DTYPE, "in layer d");
    eg_layer_release(dense);
}

TEST(orders_and_repetitions) {
    eg_layer *permute = eg_layer_permute(EG_AXES(2, 1)), *repeat = eg_layer_repeat_vector(2),
             *separable = eg_layer_separable_conv2d(4, 3, .depth_multiplier = 2, .input_shape = EG_SHAPE(5, 5, 3));
    CHECK_TENSOR(eg_call(permute, eg_constant(EG_SHAPE(1, 2, 3), 1, 2, 3, 4, 5, 6)), 0, 1, 4, 2, 5, 3, 6);
    CHECK_TENSOR(eg_call(repeat, eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)), 0, 1, 2, 1, 2, 3, 4, 3, 4);
    CHECK_SHAPE(eg_call(repeat, eg_zeros(EG_FLOAT32, EG_SHAPE(0, 7))), 0, 2, 7);
    CHECK_STR(path_of(separable, 0), "depthwise_kernel");
    CHECK_STR(path_of(separable, 1), "pointwise_kernel");
    CHECK_INT(eg_layer_parameters(separable), 3 * 3 * 3 * 2 + 6 * 4 + 4);
    CHECK_ERROR(eg_call(permute, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2))), EG_ERROR_SHAPE,
                "eg_layer_permute: [2, 1] is no order of the axes 1 to 1 of the input [1, 2]");
    eg_layer *twice = eg_layer_permute(EG_AXES(1, 1)), *zero = eg_layer_permute(EG_AXES(0, 1));
    CHECK(!eg_layer_build(twice, EG_SHAPE(-1, 2, 3)));
    CHECK_CONTAINS(eg_error_message(), "[1, 1] is no order of the axes 1 to 2 of the input [?, 2, 3]");
    eg_error_clear();
    CHECK_ERROR(eg_call(zero, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2, 3))), EG_ERROR_SHAPE, "no order");
    CHECK_ERROR(eg_layer_permute(EG_AXES(-2, 1)), EG_ERROR_ARGUMENT,
                "eg_layer_permute: order is {-2, 1}; each number must be at least -1 and at most 1099511627776");
    CHECK_ERROR(eg_layer_repeat_vector(0), EG_ERROR_ARGUMENT,
                "eg_layer_repeat_vector: steps is 0; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_separable_conv2d(0, 3), EG_ERROR_ARGUMENT,
                "eg_layer_separable_conv2d: filters is 0; it must be at least 1");
    eg_layer_release(permute);
    eg_layer_release(repeat);
    eg_layer_release(separable);
    eg_layer_release(twice);
    eg_layer_release(zero);
}

// ---- models

TEST(sequential_names_builds_and_grows) {
    eg_layer *model = eg_sequential(eg_layer_dense(4, .activation = EG_RELU, .input_shape = EG_SHAPE(3)),
                                    eg_layer_dense(2));
    CHECK_INT(eg_layer_weights(model, NULL, 0), 4);                       // the shape was given: built at once
    CHECK_STR(path_of(model, 0), "dense/kernel");
    CHECK_STR(path_of(model, 3), "dense_1/bias");
    CHECK_STR(eg_name_of(weight_of(model, 3)), "sequential/dense_1/bias");
    CHECK(eg_layer_add(model, eg_layer_dense(5, .name = "last")));
    CHECK_INT(eg_layer_weights(model, NULL, 0), 6);
    CHECK_STR(path_of(model, 5), "last/bias");
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(7, 3))), 7, 5);
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(7, 4))), EG_ERROR_SHAPE,
                "[7, 4] is not the batch of [3] that .input_shape promised, in layer sequential/dense");
    CHECK_ERROR(eg_layer_add(model, eg_layer_dense(5, .name = "last")), EG_ERROR_ARGUMENT,
                "has a part called last already");
    eg_layer_release(model);
}

TEST(models_in_models) {
    eg_layer *model = eg_sequential(eg_layer_dense(4), eg_sequential(eg_layer_dense(3), eg_layer_dense(2)),
                                    eg_sequential(eg_layer_dense(1)));
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 5))), 2, 1);
    CHECK_INT(eg_layer_weights(model, NULL, 0), 8);
    CHECK_STR(path_of(model, 2), "sequential/dense/kernel");
    CHECK_STR(path_of(model, 4), "sequential/dense_1/kernel");
    CHECK_STR(path_of(model, 7), "sequential_1/dense/bias");
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 6))), EG_ERROR_SHAPE,
                "(5 against 6), in layer sequential/dense");
    eg_layer_release(model);
}

// The Network container: a struct of the user's, two layers tracked.
typedef struct network { eg_layer *layer, *first, *second; int calls; bool trained; } network;
static eg_tensor *network_call(eg_tensor *const *in, void *user) {
    network *n = (network *)user;
    n->calls++;
    n->trained = eg_training();
    return eg_call(n->second, eg_call(n->first, in[0]));
}
TEST(network_container) {
    network n = {NULL, NULL, NULL, 0, false};
    n.layer = eg_layer_custom("network", network_call, &n);
    n.first = eg_layer_track(n.layer, "first", eg_layer_dense(10));
    n.second = eg_layer_track(n.layer, "second", eg_layer_dense(10));
    eg_tensor *y = eg_call(n.layer, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1, 784)));
    CHECK_SHAPE(y, 1, 1, 10);
    CHECK_TENSOR(y, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_INT(eg_layer_parameters(n.layer), 7960);
    CHECK_STR(path_of(n.layer, 2), "second/kernel");
    CHECK_STR(eg_name_of(weight_of(n.layer, 2)), "network/second/kernel");
    CHECK(!n.trained);
    eg_call(n.layer, y = eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1, 784)), .training = true);
    CHECK(n.trained && n.calls == 2 && !eg_training());
    eg_layer *list[4];
    CHECK_INT(eg_layer_layers(n.layer, list, 4), 2);
    CHECK(list[1] == n.second);
    CHECK_STR(eg_layer_name(n.second), "second");
    CHECK_ERROR(eg_layer_track(n.layer, "self", eg_layer_retain(n.layer)), EG_ERROR_ARGUMENT,
                "cannot be a part of itself");
    CHECK_ERROR(eg_call(n.layer, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1, 3))), EG_ERROR_SHAPE,
                "(784 against 3), in layer network/first");
    eg_layer_release(n.layer);
}

// ---- custom layers with weights of their own, several inputs and outputs

typedef struct scale { eg_layer *layer; eg_tensor *factor; } scale;
static eg_tensor *scale_call(eg_tensor *const *in, void *user) {
    scale *s = (scale *)user;
    if (!s->factor) s->factor = eg_layer_weight(s->layer, "factor", eg_scalar(3), true);
    return eg_mul(in[0], s->factor);
}
static void scale_release(void *user) { ((scale *)user)->layer = NULL; }
TEST(custom_layer_with_a_weight) {
    scale s = {NULL, NULL};
    s.layer = eg_layer_custom("scale", scale_call, &s);
    eg_layer_on_release(s.layer, scale_release);
    eg_layer *model = eg_sequential(eg_layer_retain(s.layer), eg_layer_dense(2));
    CHECK_ERROR(eg_layer_build(model, EG_SHAPE(-1, 3)), EG_ERROR_STATE,
                "eg_layer_build: layer sequential holds a function of yours (scale), so that a call makes its weights: "
                "eg_call(layer, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 3))), or your first batch");
    CHECK_SHAPE(eg_call(model, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), 1, 2);
    CHECK_STR(path_of(model, 0), "scale/factor");
    CHECK_STR(eg_name_of(s.factor), "sequential/scale/factor");
    eg_tensor *list[4];
    CHECK_INT(eg_layer_trainable_weights(model, list, 4), 3);
    eg_layer_set_trainable(s.layer, false);
    CHECK_INT(eg_layer_trainable_weights(model, list, 4), 2);
    CHECK(!eg_layer_trainable(s.layer) && eg_layer_trainable(model));
    eg_layer_set_trainable(model, true);
    CHECK(eg_trainable(s.factor));
    CHECK(eg_layer_set_name(s.layer, "other"));
    CHECK_STR(eg_layer_name(s.layer), "other");
    CHECK_ERROR(eg_layer_set_name(s.layer, "a/b"), EG_ERROR_ARGUMENT, "'a/b' is no name");
    CHECK_ERROR(eg_layer_weight(s.layer, "factor", eg_scalar(1), true), EG_ERROR_ARGUMENT,
                "a part called factor already");
    eg_layer_release(s.layer);
    CHECK(s.layer != NULL);
    eg_layer_release(model);
    CHECK(s.layer == NULL);
}

static bool both_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = in[1] ? eg_add(in[0], in[1]) : in[0];
    out[1] = eg_mul(in[0], 2);
    return out[0] && out[1];
}
TEST(several_inputs_and_outputs) {
    eg_layer *both = eg_layer_custom_multi("both", 2, 2, both_call, NULL);
    eg_tensor *in[] = {eg_scalar(1), eg_scalar(2), eg_scalar(3)}, *out[3];
    CHECK(eg_call_multi(both, in, 2, out, 2));
    CHECK_TENSOR(out[0], 0, 3);
    CHECK_TENSOR(out[1], 0, 2);
    CHECK_TENSOR(eg_call(both, in[0]), 0, 1);
    CHECK_ERROR(eg_call_multi(both, in, 3, out, 2), EG_ERROR_ARGUMENT,
                "3 inputs; Custom takes at most 2, in layer both");
    CHECK(!out[0] && !out[1]);
    CHECK_ERROR(eg_call_multi(both, in, 2, out, 3), EG_ERROR_ARGUMENT, "3 outputs asked for; the layer has 2");
    CHECK_ERROR(eg_call(both, in[0], .training = true, .inference = true), EG_ERROR_ARGUMENT,
                ".training and .inference");
    CHECK_ERROR(eg_call(both, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_call(NULL, in[0]), EG_ERROR_NULL, "the layer is NULL");
    eg_layer_release(both);
}

TEST(losses_of_regularizers) {
    eg_layer *model = eg_sequential(eg_layer_dense(1, .kernel_initializer = EG_INIT_CONSTANT,
                                                   .kernel_initializer_value = -2, .kernel_l1 = .5, .kernel_l2 = .25),
                                    eg_layer_dense(1, .bias_initializer = EG_INIT_CONSTANT, .bias_initializer_value = 3,
                                                   .bias_l2 = .1)), *list[2];
    CHECK(eg_layer_build(model, EG_SHAPE(-1, 3)));
    CHECK_TENSOR(eg_layer_losses(model), 1e-6, .5 * 6 + .25 * 12 + .1 * 9);
    eg_tape *tape = eg_tape_begin();
    CHECK_TENSOR(eg_tape_gradient(tape, eg_layer_losses(model), weight_of(model, 0)), 1e-6, -1.5, -1.5, -1.5);
    eg_layer_layers(model, list, 2);
    eg_layer_set_trainable(list[0], false);
    CHECK_TENSOR(eg_layer_losses(model), 1e-6, .1 * 9);
    eg_layer_set_trainable(list[1], false);
    CHECK(eg_layer_losses(model) == NULL);
    eg_layer_release(model);
}

TEST(masks_travel_with_outputs) {
    eg_layer *model = eg_sequential(eg_layer_dense(2), eg_layer_dense(2));
    eg_tensor *mask = eg_constant_of(EG_BOOL, EG_SHAPE(1, 3), 1, 1, 0), *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1, 3, 2)),
              *y = eg_call(model, x, .mask = mask);
    CHECK(eg_mask_of(y) == mask && eg_mask_of(x) == NULL && eg_mask_of(NULL) == NULL);
    CHECK(eg_mask_of(eg_call(model, y)) == mask);
    CHECK(eg_mask_of(eg_relu(y)) == NULL);
    CHECK_ERROR(eg_call(model, x, .mask = x), EG_ERROR_DTYPE, "is not bool, in layer sequential");
    eg_layer_release(model);
}

TEST(a_shared_layer_counts_once) {
    eg_layer *shared = eg_layer_dense(3),
             *model = eg_sequential(eg_layer_retain(shared), eg_layer_retain(shared), eg_layer_dense(1));
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3))), 2, 1);
    CHECK_INT(eg_layer_weights(model, NULL, 0), 4);
    CHECK_INT(eg_layer_parameters(model), 16);
    CHECK_STR(path_of(model, 2), "dense_2/kernel");
    eg_layer_release(shared);
    eg_layer_release(model);
}

TEST(activations_and_initializers) {
    CHECK_TENSOR(eg_activate(eg_constant(EG_SHAPE(2), -1, 2), EG_LEAKY_RELU), 1e-6, -.2, 2);
    CHECK_TENSOR(eg_activate(eg_constant(EG_SHAPE(2), -1, 2), EG_DEFAULT_ACTIVATION), 0, -1, 2);
    CHECK_ERROR(eg_activate(eg_scalar(1), no_activation), EG_ERROR_ARGUMENT, "is no value of eg_activation");
    CHECK_ERROR(eg_initialize((eg_initializer)99, 0, EG_FLOAT32, EG_SHAPE(2)), EG_ERROR_ARGUMENT,
                "99 is no initializer");
    eg_tensor *q = eg_initialize(EG_INIT_ORTHOGONAL, 0, EG_FLOAT64, EG_SHAPE(4, 9)), *one = eg_eye(EG_FLOAT64, 4, 4);
    CHECK(eg_assert_near(eg_matmul(q, q, .transpose_b = true), one, 1e-12));
    q = eg_initialize(EG_INIT_ORTHOGONAL, 2, EG_FLOAT64, EG_SHAPE(3, 3, 4));
    q = eg_reshape(q, EG_SHAPE(9, 4));
    CHECK(eg_assert_near(eg_matmul(q, q, .transpose_a = true), eg_mul(one, 4), 1e-12));
    eg_tensor *he = eg_initialize(EG_INIT_HE_NORMAL, 0, EG_FLOAT32, EG_SHAPE(200, 300));
    CHECK_NEAR(eg_item(eg_reduce_std(he)), .1, .002);
    CHECK(eg_item(eg_reduce_max(he)) < .2 / .8796);
    eg_tensor *glorot = eg_initialize(EG_DEFAULT_INITIALIZER, 0, EG_FLOAT32, EG_SHAPE(3, 3, 100, 100));
    double limit = sqrt(6. / 1800);
    CHECK(eg_item(eg_reduce_max(glorot)) < limit && eg_item(eg_reduce_max(glorot)) > .99 * limit);
    CHECK_TENSOR(eg_initialize(EG_INIT_IDENTITY, 3, EG_FLOAT32, EG_SHAPE(2, 2)), 0, 3, 0, 0, 3);
}

TEST(empty_models_and_failed_lists) {
    eg_layer *model = eg_sequential();
    CHECK_ERROR(eg_call(model, eg_scalar(1)), EG_ERROR_STATE, "the model has no layers");
    CHECK(eg_layer_add(model, eg_layer_dense(2, .input_shape = EG_SHAPE(3))));
    CHECK_INT(eg_layer_parameters(model), 8);
    CHECK_ERROR(eg_layer_add(model, NULL), EG_ERROR_NULL, "the layer is NULL");
    CHECK_ERROR(eg_sequential(eg_layer_dense(2), eg_layer_dense(0), eg_layer_dense(2)), EG_ERROR_ARGUMENT,
                "eg_layer_dense: units is 0; it must be at least 1");
    CHECK_ERROR(eg_sequential(eg_layer_dense(2, .input_shape = EG_SHAPE(-1))), EG_ERROR_SHAPE, "must be known");
    eg_layer *list[] = {eg_layer_dense(1), eg_layer_dense(1)}, *other = eg_sequential_of(list, 2);
    CHECK_ERROR(eg_layer_add(list[0], eg_layer_dense(1)), EG_ERROR_ARGUMENT, "is no eg_sequential");
    eg_layer_release(other);
    eg_layer_release(model);
    eg_layer_release(NULL);
}

// ---- the digit model, summaries

static eg_layer *digit_model(void) {
    return eg_sequential(eg_layer_conv2d(16, 3, .activation = EG_RELU), eg_layer_conv2d(16, 3, .activation = EG_RELU),
                         eg_layer_global_average_pooling2d(), eg_layer_dense(10));
}
TEST(digit_model_is_called_and_summed_up) {
    eg_layer *model = digit_model();
    CHECK_CONTAINS(summary_of(model), "│ conv2d_1 (Conv2D)               │ ?                      │   0 (unbuilt) │\n");
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 28, 28, 1))), 1, 10);
    CHECK_INT(eg_layer_parameters(model), 2650);
    CHECK_STR(summary_of(model),
              "Model: \"sequential\"\n"
              "┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓\n"
              "┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃\n"
              "┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩\n"
              "│ conv2d (Conv2D)                 │ (None, 26, 26, 16)     │           160 │\n"
              "├─────────────────────────────────┼────────────────────────┼───────────────┤\n"
              "│ conv2d_1 (Conv2D)               │ (None, 24, 24, 16)     │         2,320 │\n"
              "├─────────────────────────────────┼────────────────────────┼───────────────┤\n"
              "│ global_average_pooling2d        │ (None, 16)             │             0 │\n"
              "│ (GlobalAveragePooling2D)        │                        │               │\n"
              "├─────────────────────────────────┼────────────────────────┼───────────────┤\n"
              "│ dense (Dense)                   │ (None, 10)             │           170 │\n"
              "└─────────────────────────────────┴────────────────────────┴───────────────┘\n"
              " Total params: 2,650 (10.35 KB)\n"
              " Trainable params: 2,650 (10.35 KB)\n"
              " Non-trainable params: 0 (0.00 B)\n");
    CHECK_ERROR(
        eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 28, 28, 3))), EG_ERROR_SHAPE,
        "built for inputs [?, 28, 28, 1], but is called with [1, 28, 28, 3] (1 against 3), in layer sequential/conv2d");
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(28, 28, 1))), EG_ERROR_SHAPE,
                "Conv2D takes inputs of rank 4, not [28, 28, 1] (rank 3)");
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(32, 28, 28))), EG_ERROR_SHAPE,
                "not [32, 28, 28] (rank 3); if it is one example, eg_expand_dims(x, 0) makes a batch of it; if the "
                "pictures have no axis of channels, eg_expand_dims(x, -1) gives them one");
    eg_layer_release(model);
}
TEST(a_failed_first_call_leaves_nothing) {
    eg_layer *conv = eg_layer_conv2d(4, 3), *halves = eg_layer_dense(2), *w[1];
    eg_tensor *bad = eg_zeros(EG_FLOAT32, EG_SHAPE(8, 3, 2, 2)), *good = eg_zeros(EG_FLOAT32, EG_SHAPE(8, 6, 6, 1));
    CHECK_ERROR(eg_call(conv, bad), EG_ERROR_SHAPE, "in layer conv2d");
    CHECK_INT(eg_layer_parameters(conv), 0);
    CHECK(eg_call(conv, good) != NULL);
    CHECK_INT(eg_layer_parameters(conv), 40);
    CHECK_ERROR(eg_call(conv, bad), EG_ERROR_SHAPE, "built for inputs [?, 6, 6, 1]");      // what is built stays so
    CHECK_INT(eg_layer_parameters(conv), 40);
    // A layer that was built goes with the model that could not be, one that was built before does not.
    eg_layer *model = eg_sequential(halves, eg_layer_conv2d(4, 3), eg_layer_flatten());
    CHECK_ERROR(eg_call(model, eg_cast(bad, EG_FLOAT64)), EG_ERROR_SHAPE, "in layer sequential/conv2d");
    CHECK_INT(eg_layer_parameters(model), 0);
    CHECK_INT(eg_layer_output_shape(halves).rank, -1);
    CHECK_DTYPE(eg_call(model, good), EG_FLOAT32);
    CHECK_INT(eg_layer_parameters(model), 4 + 76);
    eg_layer *known = eg_layer_dense(3), *around = eg_sequential(known, eg_layer_conv2d(4, 3));
    CHECK(eg_layer_build(known, EG_SHAPE(-1, 2)));
    CHECK_ERROR(eg_layer_build(around, EG_SHAPE(-1, 2)), EG_ERROR_SHAPE, "Conv2D");
    CHECK_INT(eg_layer_layers(around, NULL, 0), 2);
    CHECK_INT(eg_layer_parameters(around), 9);
    // Inside of a layer there are layers that it made itself.
    eg_layer *attention = eg_layer_multi_head_attention(2, 4);
    eg_tensor *in[2] = { eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3, 8)), eg_zeros(EG_FLOAT32, EG_SHAPE(5, 3, 8)) },
              *out = NULL;
    CHECK_ERROR(eg_call_multi(attention, in, 2, &out, 1), EG_ERROR_SHAPE, "");
    CHECK_INT(eg_layer_parameters(attention), 0);
    CHECK_INT(eg_layer_layers(attention, w, 1), 0);
    CHECK(eg_call(attention, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3, 6))) != NULL);
    eg_layer_release(conv);
    eg_layer_release(model);
    eg_layer_release(around);
    eg_layer_release(attention);
}
static eg_tensor *scaled(eg_tensor *const *in, void *user) {    // makes its weight when it is called
    eg_layer *own = *(eg_layer **)user, *child = NULL;
    static eg_tensor *w;
    if (!eg_layer_layers(own, &child, 1)) {
        w = eg_layer_weight(own, "scale", eg_scalar(2), true);
        child = eg_layer_track(own, NULL, eg_layer_dense(2));
    }
    eg_tensor *y = w ? eg_mul(eg_call(child, in[0]), w) : NULL;
    return y ? eg_add(y, in[0]) : NULL;
}
TEST(what_a_layer_of_ones_own_has_made_stays) {
    eg_layer *own = NULL;
    own = eg_layer_custom("scaled", scaled, &own);
    CHECK_ERROR(eg_call(own, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 5))), EG_ERROR_SHAPE, "");
    CHECK_INT(eg_layer_parameters(own), 1);                    // the function knows of it; the Dense in it is as new
    CHECK(eg_call(own, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 2))) != NULL);
    CHECK_INT(eg_layer_parameters(own), 1 + 6);
    eg_layer_release(own);
}
TEST(free_dimensions_and_frozen_layers) {
    eg_layer *model = eg_sequential(eg_layer_conv2d(16, 3, .input_shape = EG_SHAPE(-1, -1, 1), .frozen = true),
                                    eg_layer_batch_normalization(), eg_layer_global_average_pooling2d(),
                                    eg_sequential(eg_layer_dense(10)));
    const char *text = summary_of(model);
    CHECK_CONTAINS(text, "│ conv2d (Conv2D)                 │ (None, None, None, 16) │           160 │\n");
    CHECK_CONTAINS(text, "│ batch_normalization             │ (None, None, None, 16) │            64 │\n│ "
                         "(BatchNormalization)            │");
    CHECK_CONTAINS(text, "│ sequential (Sequential)         │ (None, 10)             │           170 │\n");
    CHECK_CONTAINS(
        text,
        " Total params: 394 (1.54 KB)\n Trainable params: 202 (808.00 B)\n Non-trainable params: 192 (768.00 B)\n");
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 9, 7, 1))), 2, 10);
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 30, 30, 1))), 1, 10);
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2, 2, 1))), EG_ERROR_SHAPE,
                "in layer sequential/conv2d");
    eg_shape out = eg_layer_output_shape(model);
    CHECK(out.rank == 2 && out.dims[0] == -1 && out.dims[1] == 10);
    eg_layer_release(model);
    model = eg_sequential(eg_layer_dense(1000, .input_shape = EG_SHAPE(5000),
                                         .name = "a_layer_with_quite_a_long_name_to_wrap_maybe"));
    CHECK_CONTAINS(summary_of(model), "│ a_layer_with_quite_a_long_name… │ (None, 1000)           │     5,001,000 │\n│ "
                                      "(Dense)                         │");
    CHECK_CONTAINS(printed, " Total params: 5,001,000 (19.08 MB)\n");
    eg_layer_release(model);
}

// ---- randomness, statistics

TEST(dropout_keeps_the_mean_and_does_nothing_in_inference) {
    eg_layer *dropout = eg_layer_dropout(.25);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(100, 100));
    CHECK(eg_call(dropout, x) == x);
    eg_seed(3);
    eg_tensor *y = eg_call(dropout, x, .training = true);
    CHECK_NEAR(eg_item(eg_reduce_mean(y)), 1, .03);
    CHECK_NEAR(eg_item(eg_reduce_max(y)), 4. / 3, 1e-6);
    CHECK_NEAR(eg_item(eg_reduce_mean(eg_cast(eg_equal(y, 0), EG_FLOAT32))), .25, .02);
    eg_seed(3);
    CHECK(eg_assert_equal(eg_call(dropout, x, .training = true), y));
    eg_layer_release(dropout);
    dropout = eg_layer_dropout(1);
    CHECK_NEAR(eg_item(eg_reduce_max(eg_call(dropout, x, .training = true))), 0, 0);
    eg_layer_release(dropout);
    dropout = eg_layer_dropout(0);
    CHECK(eg_call(dropout, x, .training = true) == x);
    eg_layer_release(dropout);
    CHECK_ERROR(eg_layer_dropout(1.5), EG_ERROR_ARGUMENT,
                "eg_layer_dropout: rate is 1.5; it must be at least 0 and at most 1");
}

TEST(batch_statistics_move_only_in_training) {
    eg_layer *norm = eg_layer_batch_normalization();
    eg_tensor *x = eg_constant(EG_SHAPE(4, 1), 1, 2, 3, 6), *list[4];
    eg_tape *tape = eg_tape_begin_persistent();
    eg_call(norm, x);
    CHECK_INT(eg_layer_weights(norm, list, 4), 4);
    CHECK_TENSOR(list[2], 0, 0);
    eg_call(norm, x, .training = true);
    CHECK_TENSOR(list[2], 1e-6, .03);
    CHECK_TENSOR(list[3], 1e-6, .99 + .01 * 3.5);                          // biased
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 2);  // the statistics are no part of the mathematics
    eg_layer_set_trainable(norm, false);
    eg_call(norm, x, .training = true);
    CHECK_TENSOR(list[2], 1e-6, .03);
    CHECK_INT(eg_layer_trainable_weights(norm, NULL, 0), 0);
    eg_layer_set_trainable(norm, true);
    CHECK_INT(eg_layer_trainable_weights(norm, NULL, 0), 2);               // moving statistics stay out
    eg_layer_release(norm);
}

TEST(masks_from_embeddings_reach_pooling) {
    eg_layer *model = eg_sequential(eg_layer_embedding(5, 2, .mask_zero = true, .kernel_initializer = EG_INIT_ONES),
                                    eg_layer_dropout(.5), eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES),
                                    eg_layer_global_average_pooling1d());
    eg_tensor *x = eg_constant_of(EG_INT32, EG_SHAPE(2, 3), 1, 4, 0, 2, 0, 0), *list[3];
    CHECK_TENSOR(eg_call(model, x), 1e-6, 2, 2);
    eg_layer_weights(model, list, 3);
    eg_assign_slice(list[0], EG_SHAPE(0, 0), EG_SHAPE(1, 2), 50);  // what stands for the padding does not count
    CHECK_TENSOR(eg_call(model, x), 1e-6, 2, 2);
    CHECK_TENSOR(eg_call(model, eg_cast(x, EG_UINT8)), 1e-6, 2, 2);
#ifndef TEST_CUDA                    // a GPU tells it later, when the layer is done
    CHECK_ERROR(eg_call(model, eg_constant_of(EG_INT32, EG_SHAPE(1, 1), 5)), EG_ERROR_INDEX,
                "in layer sequential/embedding");
#endif
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1))), EG_ERROR_DTYPE, "in layer sequential/embedding");
    eg_layer_release(model);
}

TEST(inputs_in_a_list_that_is_a_literal) {
    eg_layer *add = eg_layer_merge_add();
    eg_tensor *y;
    CHECK(eg_call_multi(add, (eg_tensor *[]){eg_scalar(1), eg_scalar(2)}, 2, &y, 1));
    CHECK_TENSOR(y, 0, 3);
    CHECK(eg_call_multi(add, (eg_tensor *[]){eg_scalar(1), eg_scalar(2), eg_scalar(4)}, 3, &y, 1, .training = true));
    CHECK_TENSOR(y, 0, 7);
    eg_layer_release(add);
}
TEST(merging_checks_shapes_each_time) {
    eg_layer *add = eg_layer_merge_add(), *concat = eg_layer_concatenate(.axis = EG_ZERO);
    eg_tensor *a[] = {eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)),
                      eg_ones(EG_FLOAT32, EG_SHAPE(3))}, *y;
    CHECK(eg_call_multi(add, a, 2, &y, 1));
    CHECK_ERROR(eg_call_multi(add, a, 3, &y, 1), EG_ERROR_SHAPE,
                "Add of [2, 3] and [3]: shapes do not fit, in layer add");
    CHECK_ERROR(eg_call(add, a[0]), EG_ERROR_ARGUMENT, "1 input; Add takes 2");
    CHECK(eg_call_multi(concat, a, 2, &y, 1));
    CHECK_SHAPE(y, 4, 3);
    CHECK_ERROR(eg_call_multi(concat, a + 1, 2, &y, 1), EG_ERROR_SHAPE, "Concatenate of [2, 3] and [3] along axis 0");
    eg_tensor *many[17];
    for (int i = 0; i < 17; i++) many[i] = a[0];
    CHECK_ERROR(eg_call_multi(add, many, 17, &y, 1), EG_ERROR_ARGUMENT, "17 inputs");
    eg_layer_release(add);
    eg_layer_release(concat);
}

TEST(options_out_of_range) {
    CHECK_ERROR(eg_layer_conv2d(4, 0), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: size is 0; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_conv2d(0, 3), EG_ERROR_ARGUMENT, "eg_layer_conv2d: filters is 0; it must be at least 1");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .kernel_size = {3, 3}), EG_ERROR_ARGUMENT, "give one of them");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .strides = {-1}), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .strides is {-1}; each number must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .strides = {0, 2}), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .strides is {0, 2}; each number must be given; EG_ZERO is a 0");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .activation = no_activation), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .activation is another function; it must be a value of eg_activation");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .kernel_initializer = (eg_initializer)-1), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .kernel_initializer is -1; it must be a value of eg_initializer");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .padding = (eg_padding)5), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .padding is 5; it must be a value of eg_padding");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .kernel_l2 = (double)INFINITY), EG_ERROR_ARGUMENT,
                "eg_layer_conv2d: .kernel_l2 is inf; it must be at least 0 and finite");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .causal = true), EG_ERROR_ARGUMENT, "has no option .causal");
    CHECK_ERROR(eg_layer_conv2d(4, 3, .dtype = EG_INT32), EG_ERROR_DTYPE, "weights are float32 or float64, not int32");
    CHECK_ERROR(eg_layer_reshape(EG_SHAPE(-1, -1)), EG_ERROR_ARGUMENT,
                "eg_layer_reshape: [-1, -1] has more than one dimension of -1");
    CHECK_ERROR(eg_layer_zero_padding2d(EG_PADS(1, 2, 3)), EG_ERROR_ARGUMENT,
                "pads has 3 numbers; it must have one, one an axis, or two an axis");
    CHECK_ERROR(eg_layer_embedding(0, 2), EG_ERROR_ARGUMENT, "eg_layer_embedding: count is 0; it must be at least 1");
    CHECK_ERROR(eg_layer_up_sampling2d(0), EG_ERROR_ARGUMENT,
                "eg_layer_up_sampling2d: size is 0; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_depthwise_conv2d(3, .depth_multiplier = -1), EG_ERROR_ARGUMENT,
                "eg_layer_depthwise_conv2d: .depth_multiplier is -1; it must be at least 1 and at most 1048576");
    CHECK_ERROR(eg_layer_residual(NULL), EG_ERROR_NULL, "the layer is NULL");
    eg_layer *conv = eg_layer_conv2d(4, 3, .groups = 2), *norm = eg_layer_group_normalization(.groups = 3),
             *flat = eg_layer_reshape(EG_SHAPE(5));
    CHECK_ERROR(eg_call(conv, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 5, 5, 3))), EG_ERROR_ARGUMENT,
                "2 groups do not divide 3 channels");
    CHECK_ERROR(eg_call(norm, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 4))), EG_ERROR_ARGUMENT,
                "3 groups do not divide 4 channels");
    CHECK_ERROR(eg_call(flat, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 6))), EG_ERROR_SHAPE,
                "cannot be reshaped to [5] (6 against 5 elements)");
    CHECK_ERROR(eg_layer_build(conv, EG_SHAPE(-1, 2, 2, 4)), EG_ERROR_SHAPE,
                "the window is larger than the input [-1, 2, 2, 4]");
    CHECK_ERROR(eg_layer_build(norm, EG_SHAPE(-1, -1)), EG_ERROR_SHAPE, "axis 1 of [-1, -1] must be known");
    CHECK_ERROR(eg_layer_build(norm, EG_SHAPE(-1, -2)), EG_ERROR_SHAPE, "out of range");
    CHECK_INT(eg_layer_weights(norm, NULL, 0), 0);
    eg_layer_release(conv);
    eg_layer_release(norm);
    eg_layer_release(flat);
}

// ---- architectures as text

static eg_tensor *twice_call(eg_tensor *const *in, void *user) { (void)user; return eg_mul(in[0], 2); }
static eg_layer *twice_make(void *user) { return eg_layer_lambda("twice", twice_call, user); }
static eg_layer *network_make(void *user) {
    network *n = (network *)user;
    n->layer = eg_layer_custom("network", network_call, n);
    n->first = eg_layer_track(n->layer, "first", eg_layer_dense(4));
    n->second = eg_layer_track(n->layer, "second", eg_layer_dense(3));
    return n->layer;
}
static void check_same_weights(eg_layer *a, eg_layer *b) {
    int n = eg_layer_weights(a, NULL, 0);
    CHECK_INT(eg_layer_weights(b, NULL, 0), n);
    for (int i = 0; i < n; i++) {
        CHECK_STR(path_of(b, i), path_of(a, i));
        char x[EG_SHAPE_TEXT], y[EG_SHAPE_TEXT];
        CHECK_STR(eg_shape_text(eg_shape_of(weight_of(b, i)), x), eg_shape_text(eg_shape_of(weight_of(a, i)), y));
        CHECK(eg_trainable(weight_of(a, i)) == eg_trainable(weight_of(b, i)));
        eg_assign(weight_of(b, i), weight_of(a, i));
    }
}
static eg_layer *read_again(eg_layer *model) {
    static char text[8192], again[8192];
    CHECK(eg_layer_config(model, text, sizeof text) < (int64_t)sizeof text);
    eg_layer *read = eg_layer_from_config(text);
    if (!read) { CHECK_STR(eg_error_message(), ""); return NULL; }
    eg_layer_config(read, again, sizeof again);
    CHECK_STR(again, text);
    return read;
}
TEST(configurations_come_back) {
    eg_layer *shared = eg_layer_dense(6, .activation = EG_GELU, .kernel_initializer = EG_INIT_HE_NORMAL,
                                      .kernel_l2 = 1e-4);
    eg_layer *model = eg_sequential(
        eg_layer_conv2d(4, 0, .kernel_size = {3, 2}, .strides = {1, 2}, .padding = EG_SAME, .name = "stem",
                        .input_shape = EG_SHAPE(8, -1, 1), .frozen = true),
        eg_layer_batch_normalization(.axis = -1, .momentum = .9), eg_layer_max_pooling2d(.pool_size = {2}),
        eg_layer_zero_padding2d(EG_PADS(1, 2)), eg_layer_leaky_relu(EG_ZERO),
        eg_layer_global_max_pooling2d(), eg_layer_dense(6), eg_layer_retain(shared),
        eg_layer_residual(eg_layer_retain(shared)), eg_layer_reshape(EG_SHAPE(-1, 2)),
        eg_layer_flatten(), eg_layer_dropout(.1), eg_sequential(eg_layer_dense(2, .no_bias = true)));
    eg_layer *unbuilt = eg_sequential(eg_layer_dense(3), eg_layer_embedding(3, 2));
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 8, 6, 1));
    CHECK_SHAPE(eg_call(model, x), 2, 2);
    eg_layer *again = read_again(model);
    check_same_weights(model, again);
    CHECK(eg_assert_equal(eg_call(model, x), eg_call(again, x)));
    eg_layer_release(again);
    again = read_again(unbuilt);
    CHECK_INT(eg_layer_weights(again, NULL, 0), 0);
    char small[8];
    CHECK(eg_layer_config(unbuilt, small, sizeof small) > 100);
    CHECK_STR(small, "{\"class");
    eg_layer_release(again);
    eg_layer_release(unbuilt);
    eg_layer_release(shared);
    eg_layer_release(model);
}
TEST(configurations_with_layers_of_ones_own) {
    network a = {NULL, NULL, NULL, 0, false}, b = a;
    CHECK_ERROR(eg_layer_from_config("{\"class\": \"Custom\", \"name\": \"n\", \"kind\": \"network\"}"), EG_ERROR_FILE,
                "'network' is a layer of your own; tell how it is made by eg_layer_register");
    eg_layer *model = eg_sequential(network_make(&a), eg_layer_lambda("twice", twice_call, NULL), eg_layer_dense(2));
    eg_tensor *x = eg_random_normal(EG_SHAPE(5, 7));
    eg_call(model, x);
    CHECK(eg_layer_register("network", network_make, &b));
    CHECK(eg_layer_register("twice", twice_make, NULL));
    CHECK_ERROR(eg_layer_register("", twice_make, NULL), EG_ERROR_ARGUMENT, "a name and a function");
    eg_layer *again = read_again(model);
    check_same_weights(model, again);
    CHECK(eg_assert_equal(eg_call(model, x), eg_call(again, x)));
    CHECK_INT(b.calls, 1);
    eg_layer_release(again);
    eg_layer_release(model);
}
TEST(configurations_that_are_wrong) {
    static const struct { const char *text, *says; } wrong[] = {
        {"", "ends too early"},
        {"[]", "a layer, in braces, is expected"},
        {"{\"name\": \"a\"}", "a layer needs its \"class\" and its \"name\""},
        {"{\"class\": \"Dense\", \"name\": \"a/b\", \"units\": 1}", "a layer needs its"},
        {"{\"class\": \"Dens\", \"name\": \"a\"}", "there is no layer 'Dens'"},
        {"{\"class\": \"Lambda\", \"name\": \"a\"}", "there is no layer 'Lambda'"},
        {"{\"class\": \"Dense\", \"name\": \"a\"}", "eg_layer_dense: units is 0; it must be at least 1"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"unitz\": 1}", "no layer has such an option"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1.5}", "a whole number is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"strides\": [1, 1]}", "has no option .strides"},
        {"{\"class\": \"Conv2D\", \"name\": \"a\", \"units\": 1, \"size\": 1, \"strides\": [1, 1, 1]}",
         "a list of whole numbers is expected"},
        {"{\"class\": \"Conv2D\", \"name\": \"a\", \"units\": 1, \"size\": 1, \"strides\": [1, \"x\"]}",
         "a whole number is expected"},
        {"{\"class\": \"Conv2D\", \"name\": \"a\", \"units\": 1, \"size\": 1, \"padding\": \"full\"}",
         "'full' is no padding"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"activation\": \"relo\"}", "'relo' is no activation"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"activation\": 3}", "'?' is no activation"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"no_bias\": 3}", "true or false is expected"},
        {"{\"class\": \"Dropout\", \"name\": \"a\", \"rate\": \"x\"}", "a number is expected"},
        {"{\"class\": \"LayerNormalization\", \"name\": \"a\", \"axis\": 99999999999}",
         "a small whole number is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"inputs\": 3}", "a list of shapes is expected"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"inputs\": [[-1, -5]]}",
         "a dimension is out of range"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"inputs\": [[-1, 3], [2, 3]]}", "Dense takes"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1, \"layers\": [{\"part\": \"kernel\", \"class\": "
         "\"Flatten\", \"name\": \"f\"}]}", "there is no such part"},
        {"{\"class\": \"Sequential\", \"name\": \"a\", \"layers\": 3}", "a list of layers is expected"},
        {"{\"class\": \"Sequential\", \"name\": \"a\", \"layers\": [{\"class\": \"Flatten\", \"name\": \"f\"}]}",
         "needs its \"part\""},
        {"{\"class\": \"Sequential\", \"name\": \"a\", \"layers\": [{\"part\": \"f\", \"same\": \"g\"}]}",
         "\"same\" names no layer before it"},
        {"{\"class\": \"Residual\", \"name\": \"a\"}", "one layer is expected in a Residual"},
        {"{\"class\": \"Bidirectional\", \"name\": \"a\"}", "two recurrent layers"},
        {"{\"class\": \"Add\", \"name\": \"a\", \"inputs\": [[-1, 2], [-1, 3]]}", "shapes do not fit"},
        {"{\"class\": \"Dense\", \"name\": \"a\", \"units\": 1} 3", "there is more after its end"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!eg_layer_from_config(wrong[i].text));
        CHECK(eg_error() != EG_OK);
        CHECK_CONTAINS(eg_error_message(), wrong[i].says);
        eg_error_clear();
    }
    CHECK_ERROR(eg_layer_from_config(NULL), EG_ERROR_ARGUMENT, "the text is NULL");
}

// ---- memory

TEST(training_runs_in_constant_memory) {
    eg_layer *model = eg_sequential(eg_layer_conv2d(2, 3, .activation = EG_RELU), eg_layer_batch_normalization(),
                                    eg_layer_flatten(), eg_layer_dropout(.5), eg_layer_dense(3));
    eg_optimizer *adam = eg_adam();
    int64_t bytes = 0, tensors = 0;
    (void)bytes;
    for (int step = 0; step < 6; step++) {
        EG_SCOPE;
        eg_tensor *list[8], *grads[8];
        eg_tape *tape = eg_tape_begin();
        eg_tensor *y = eg_call(model, eg_random_normal(EG_SHAPE(4, 6, 6, 1)), .training = true),
                  *loss = eg_reduce_mean(eg_square(y));
        int n = eg_layer_trainable_weights(model, list, 8);
        CHECK(eg_tape_gradients(tape, loss, list, n, grads) && eg_apply_gradients(adam, grads, list, n));
        if (step == 2) { bytes = eg_memory().live_bytes; tensors = eg_memory().live_tensors; }
        if (step <= 2) continue;
        CHECK_INT(eg_memory().live_tensors, tensors);
#ifndef EAGER_DEBUG  // there, handles that died are kept for a while
        CHECK_INT(eg_memory().live_bytes, bytes);
#endif
    }
    eg_optimizer_release(adam);
    eg_layer_release(model);
}
TEST(inference_keeps_no_activations) {
    eg_layer *model = eg_sequential();
    for (int i = 0; i < 20; i++) eg_layer_add(model, eg_layer_dense(256, .no_bias = true));
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1024, 256));
    eg_call(model, x);
    int64_t before = eg_memory().live_bytes;
    eg_memory_reset_peak();
    eg_call(model, x);
    CHECK(eg_memory().peak_bytes - before < 5 * 1024 * 256 * 4);
    eg_layer_release(model);
}

// ---- out of memory

static bool act_of_layers(void) {
    eg_layer *model = eg_sequential(eg_layer_conv2d(2, 3, .activation = EG_RELU,
                                                    .kernel_initializer = EG_INIT_ORTHOGONAL, .kernel_l2 = .1),
                                    eg_layer_batch_normalization(), eg_layer_global_average_pooling2d(),
                                    eg_layer_residual(eg_layer_dense(2)), eg_layer_dropout(.5),
                                    eg_layer_group_normalization(.groups = 1), eg_layer_dense(3));
    char text[4096];
    bool right = model && eg_call(model, eg_ones(EG_FLOAT32, EG_SHAPE(2, 5, 5, 1)), .training = true) &&
                 eg_layer_losses(model) && eg_layer_weights(model, NULL, 0) == 12 &&
                 eg_layer_config(model, text, sizeof text) > 0;
    eg_layer *again = right ? eg_layer_from_config(text) : NULL;
    right = right && again && *summary_of(again);
    eg_layer_release(again);
    eg_layer_release(model);
    return right;
}
static bool act_of_masks(void) {
    network n = {NULL, NULL, NULL, 0, false};
    eg_layer *embedding = eg_layer_embedding(4, 2, .mask_zero = true), *own = network_make(&n),
             *add = eg_layer_merge_add();
    eg_tensor *x = eg_constant_of(EG_INT32, EG_SHAPE(1, 3), 1, 2, 0), *y = embedding ? eg_call(embedding, x) : NULL,
              *in[] = {y, y}, *z = NULL;
    bool right = y && own && add && eg_call_multi(add, in, 2, &z, 1) && eg_call(own, z, .mask = eg_mask_of(y));
    eg_layer_release(embedding);
    eg_layer_release(own);
    eg_layer_release(add);
    return right;
}
TEST(out_of_memory_in_layers) { faults_sweep(act_of_layers); }
TEST(out_of_memory_with_masks) { faults_sweep(act_of_masks); }

// ---- faults and threads

TEST(configurations_that_were_tampered_with) {
    eg_layer *model = eg_sequential(eg_layer_conv1d(3, 2, .causal = true, .input_shape = EG_SHAPE(4, 2)),
                                    eg_layer_batch_normalization(.axis = 1), eg_layer_bidirectional(eg_layer_gru(2)),
                                    eg_layer_residual(eg_layer_dense(4)), eg_layer_dropout(.5),
                                    eg_layer_reshape(EG_SHAPE(2, -1)), eg_layer_multi_head_attention(1, 2),
                                    eg_layer_flatten());
    char good[4096], bad[4096];
    int64_t length = eg_layer_config(model, good, sizeof good);
    CHECK(length > 0 && length < (int64_t)sizeof good);
    eg_layer_release(model);
    static const char letters[] = "0123456789-.eE\"{}[],:truefalsnul ";
    uint64_t random = 1;
    int read = 0;
    for (int i = 0; i < 4000 / test_share; i++) {
        EG_SCOPE;
        memcpy(bad, good, (size_t)length + 1);
        for (int k = 0; k <= i % 3; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bad[(random >> 33) % (uint64_t)length] = letters[(random >> 20) % (sizeof letters - 1)];
        }
        if (i % 7 == 0) bad[(random >> 30) % (uint64_t)length] = 0;
        char *dims = strstr(bad, "99");                                       // large sizes are another test's
        eg_layer *layer = dims ? NULL : eg_layer_from_config(bad);
        if (layer) { eg_call(layer, eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 2))); eg_layer_weights(layer, NULL, 0); read++; }
        eg_layer_release(layer);
        eg_error_clear();
    }
    CHECK(read > 0);
}
TEST(frozen_layers_come_back_frozen) {
    eg_layer *model = eg_sequential(eg_layer_dense(2, .input_shape = EG_SHAPE(2)),
                                    eg_sequential(eg_layer_dense(2), eg_layer_batch_normalization())), *list[2],
             *inner[2];
    eg_layer_set_trainable(model, false);
    eg_layer_layers(model, list, 2);
    eg_layer_layers(list[1], inner, 2);
    eg_layer_set_trainable(inner[1], true);
    eg_layer *again = read_again(model);
    check_same_weights(model, again);
    CHECK_INT(eg_layer_trainable_weights(again, NULL, 0), 2);
    CHECK(!eg_layer_trainable(again));
    eg_layer_release(again);
    eg_layer_release(model);
}

#ifndef EAGER_NO_THREADS
#include <pthread.h>
static eg_layer *common;
static void *infer(void *argument) {
    eg_set_device(test_device());
    for (int i = 0; i < 20; i++) {
        EG_SCOPE;
        eg_tensor *y = eg_call(common, eg_ones(EG_FLOAT32, EG_SHAPE(2, 6, 6, 1)));
        if (!y) return NULL;
        *(double *)argument = eg_item(eg_reduce_sum(y));
    }
    eg_shutdown();
    return argument;
}
TEST(threads_share_a_model_for_inference) {
    common = eg_sequential(eg_layer_conv2d(2, 3, .activation = EG_RELU), eg_layer_batch_normalization(),
                           eg_layer_flatten(), eg_layer_dropout(.5), eg_layer_dense(3));
    double first = eg_item(eg_reduce_sum(eg_call(common, eg_ones(EG_FLOAT32, EG_SHAPE(2, 6, 6, 1))))), sums[2] = {0, 0};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) REQUIRE(pthread_create(&threads[i], NULL, infer, &sums[i]) == 0);
    for (int i = 0; i < 2; i++) { pthread_join(threads[i], NULL); CHECK(sums[i] == first); }
    eg_layer_release(common);
}
#endif

TEST(a_layer_given_away_twice_is_refused) {
    eg_layer *dense = eg_layer_dense(2), *model = eg_sequential(dense);
    CHECK_ERROR(eg_sequential(dense), EG_ERROR_STATE,
                "layer dense belongs to another layer already; eg_layer_retain it");
    eg_layer *shared = eg_sequential(eg_layer_retain(dense));
    CHECK(shared != NULL);
    eg_layer_release(model);
    CHECK_SHAPE(eg_call(shared, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), 1, 2);
    eg_layer_release(shared);
    eg_layer *twice = eg_layer_dense(2);
    CHECK_ERROR(eg_sequential(twice, twice), EG_ERROR_STATE, "belongs to another layer");
}

// ---- the default float dtype

static bool made_of_numbers(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    (void)user;
    out[0] = eg_add(1, eg_reduce_mean(eg_random_uniform(EG_SHAPE(2))));
    return out[0] != NULL;
}
static void check_floats(eg_dtype dtype) {
    eg_tensor *v, *out[EG_MAX_COMPONENTS];
    CHECK_DTYPE(eg_scalar(.1), dtype);
    CHECK_DTYPE(eg_constant(EG_SHAPE(2), 1, 2), dtype);
    CHECK_DTYPE(eg_add(1, .5), dtype);
    CHECK_TENSOR(eg_less(.1, (double)(float).1), 0, dtype == EG_FLOAT64);              // compared in that dtype, too
    CHECK_TENSOR(eg_sub(eg_add(.1, .2), eg_add(.1, .2)), 0, 0);
    eg_tensor *chosen = eg_where(eg_greater(2, 1), 1, 2);
    CHECK_DTYPE(chosen, dtype);
    CHECK_DTYPE(eg_random_normal(EG_SHAPE(2)), dtype);
    CHECK_DTYPE(eg_random_truncated_normal(EG_SHAPE(2)), dtype);
    CHECK_DTYPE(eg_random_uniform(EG_SHAPE(2)), dtype);
    CHECK_DTYPE(eg_random_uniform(EG_SHAPE(2), .dtype = EG_FLOAT64), EG_FLOAT64);
    CHECK_DTYPE(eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(2)), .5), EG_FLOAT32);            // a number that meets a tensor
    CHECK_DTYPE(eg_add(eg_ones(EG_INT32, EG_SHAPE(2)), 1), EG_INT32);
    CHECK_DTYPE(eg_initialize(EG_INIT_GLOROT_UNIFORM, 0, EG_FLOAT32, EG_SHAPE(2, 2)), EG_FLOAT32);
    CHECK_DTYPE(eg_initialize(EG_INIT_NORMAL, 0, EG_FLOAT64, EG_SHAPE(2, 2)), EG_FLOAT64);
    v = eg_variable(eg_number(3), "v");
    CHECK_DTYPE(v, dtype);
    eg_release(v);
    eg_layer *all[] = { eg_layer_dense(2, .input_shape = EG_SHAPE(3)), eg_layer_lstm(2, .input_shape = EG_SHAPE(4, 3)),
                        eg_layer_bidirectional(eg_layer_gru(2), .input_shape = EG_SHAPE(4, 3)),
                        eg_layer_multi_head_attention(1, 2, .input_shape = EG_SHAPE(4, 3)),
                        eg_layer_batch_normalization(.input_shape = EG_SHAPE(3)) };
    for (int i = 0; i < 5; i++) {
        eg_list weights = eg_layer_weights_list(all[i]);
        CHECK(weights.count > 0);
        for (int k = 0; k < weights.count; k++) CHECK_DTYPE(weights.tensors[k], dtype);
        eg_layer_release(all[i]);
    }
    for (int threads = 0; threads < 3; threads += 2) {
        eg_dataset *d = eg_dataset_prefetch(eg_dataset_map(eg_dataset_range(0, 2, 1), made_of_numbers, NULL,
                                                           .threads = threads), 1);
        eg_iterator *it = eg_iterator_new(d);
        CHECK(eg_iterator_next(it, out) == EG_NEXT);
        CHECK_DTYPE(out[0], dtype);
        eg_iterator_release(it);
        eg_dataset_release(d);
    }
}
TEST(the_default_float_dtype) {
    CHECK_INT(eg_default_float(), EG_FLOAT32);
    check_floats(EG_FLOAT32);
    eg_layer *narrow = eg_layer_dense(2, .input_shape = EG_SHAPE(3)), *wide, *again;
    CHECK(eg_model_save(narrow, test_temp("narrow.npz")));
    CHECK_INT(eg_set_default_float(EG_FLOAT64), EG_FLOAT32);
    CHECK_INT(eg_default_float(), EG_FLOAT64);
    check_floats(EG_FLOAT64);
    CHECK_NEAR(eg_item(eg_div(1, 3)), 1.0 / 3, 1e-16);
    again = eg_model_load(test_temp("narrow.npz"));                // what is loaded keeps its own
    REQUIRE(again);
    CHECK_DTYPE(eg_layer_weights_list(again).tensors[0], EG_FLOAT32);
    eg_layer_release(again);
    again = eg_layer_copy(narrow);
    CHECK_DTYPE(eg_layer_weights_list(again).tensors[0], EG_FLOAT32);
    eg_layer_release(again);
    wide = eg_sequential(eg_layer_dense(4, .activation = EG_TANH), eg_layer_dropout(.5), eg_layer_dense(1));
    eg_tensor *x = eg_random_normal(EG_SHAPE(16, 3)), *y = eg_reduce_sum(x, .axes = EG_AXES(1), .keepdims = true);
    eg_compile(wide, eg_adam(.learning_rate = .01), eg_mean_squared_error);
    CHECK(eg_fit_arrays(wide, x, y, .epochs = 2, .quiet = true));
    CHECK_DTYPE(eg_call(wide, x), EG_FLOAT64);
    CHECK_ERROR(eg_call(wide, eg_cast(x, EG_FLOAT32)), EG_ERROR_DTYPE, "float64");
    CHECK_ERROR(eg_set_default_float(EG_INT32), EG_ERROR_DTYPE,
                "eg_set_default_float: int32; it is float32 or float64");
    CHECK_INT(eg_set_default_float(EG_FLOAT32), EG_FLOAT64);
    eg_layer_release(wide);
    eg_layer_release(narrow);
}

// ---- the dtype of weights: of what reaches a layer, whatever way the model is built

static void check_weights(const char *way, eg_layer *model, eg_dtype dtype, int count) {
    char path[128];
    const eg_list w = eg_layer_weights_list(model);
    test_int(__FILE__, __LINE__, way, w.count, count);
    for (int i = 0; i < w.count; i++)
        if (eg_dtype_of(w.tensors[i]) != dtype)
            test_say(__FILE__, __LINE__, way, eg_layer_weight_path(model, i, path, sizeof path));
}
// Calls, differentiates, saves and loads a float64 model; released here. Its input is x.
static void check_wide(const char *way, eg_layer *model, eg_tensor *x, int count) {
    check_weights(way, model, EG_FLOAT64, count);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_call(model, x), *loss = eg_reduce_mean(eg_square(y)), *grads[32];
    const eg_list w = eg_layer_trainable_weights_list(model);
    REQUIRE(y && w.count > 0 && w.count <= 32);
    CHECK_DTYPE(y, EG_FLOAT64);
    CHECK(eg_tape_gradients(tape, loss, w.tensors, w.count, grads));
    for (int i = 0; i < w.count; i++) if (grads[i]) CHECK_DTYPE(grads[i], EG_FLOAT64);
    CHECK(eg_model_save(model, test_temp("wide.npz")));
    eg_layer *copies[] = {eg_model_load(test_temp("wide.npz")), eg_layer_copy(model)};
    for (int i = 0; i < 2; i++) {
        REQUIRE(copies[i] != NULL);
        check_weights(way, copies[i], EG_FLOAT64, count);
        eg_tensor *again = eg_call(copies[i], x);
        REQUIRE(again != NULL);
        CHECK(eg_item(eg_reduce_max(eg_abs(eg_sub(again, eg_call(model, x))))) == 0);
        eg_layer_release(copies[i]);
    }
    eg_layer_release(model);
}
// first .dtype alone; the further layers take what reaches them. given: the first one has an .input_shape.
static eg_layer *wide_dense(bool given) {
    return eg_sequential(given ? eg_layer_dense(4, .dtype = EG_FLOAT64, .input_shape = EG_SHAPE(3))
                               : eg_layer_dense(4, .dtype = EG_FLOAT64),
                         eg_layer_dropout(.5), eg_layer_batch_normalization(), eg_layer_residual(eg_layer_dense(4)),
                         eg_sequential(eg_layer_dense(2), eg_layer_layer_normalization()), eg_layer_dense(1));
}
static eg_layer *wide_steps(bool given) {
    return eg_sequential(given ? eg_layer_embedding(9, 4, .dtype = EG_FLOAT64, .input_shape = EG_SHAPE(5))
                               : eg_layer_embedding(9, 4, .dtype = EG_FLOAT64),
                         eg_layer_position_embedding(8), eg_layer_multi_head_attention(2, 2), eg_layer_conv1d(4, 2),
                         eg_layer_bidirectional(eg_layer_lstm(3, .return_sequences = true)), eg_layer_gru(3),
                         eg_layer_dense(2));
}
static eg_layer *wide_pictures(bool given) {
    return eg_sequential(given ? eg_layer_conv2d(2, 2, .dtype = EG_FLOAT64, .input_shape = EG_SHAPE(6, 6, 1))
                               : eg_layer_conv2d(2, 2, .dtype = EG_FLOAT64),
                         eg_layer_max_pooling2d(), eg_layer_depthwise_conv2d(2),
                         eg_layer_group_normalization(.groups = 2), eg_layer_separable_conv2d(2, 1),
                         eg_layer_flatten(), eg_layer_rms_normalization(),
                         eg_layer_dense(1));
}
TEST(float64_reaches_every_layer) {
    eg_layer *(*const make[])(bool) = {wide_dense, wide_steps, wide_pictures};
    const int count[] = {2 + 4 + 2 + 2 + 2 + 2, 1 + 1 + 8 + 2 + 6 + 3 + 2, 2 + 2 + 2 + 3 + 1 + 2};
    eg_tensor *x[] = {eg_random_normal(EG_SHAPE(2, 3), .dtype = EG_FLOAT64),
                      eg_constant_of(EG_INT32, EG_SHAPE(2, 5), 1, 2, 3, 4, 5, 6, 7, 8, 0, 1),
                      eg_random_normal(EG_SHAPE(2, 6, 6, 1), .dtype = EG_FLOAT64)};
    const eg_shape shape[] = {EG_SHAPE(-1, 3), EG_SHAPE(-1, 5), EG_SHAPE(-1, 6, 6, 1)};
    for (int i = 0; i < 3; i++) {
        char json[8192];
        check_wide("by .input_shape", make[i](true), x[i], count[i]);
        eg_layer *built = make[i](false), *called = make[i](false), *inner = eg_sequential(make[i](true)), *read, *to;
        REQUIRE(eg_layer_config(built, json, sizeof json) < (int64_t)sizeof json);
        CHECK(eg_layer_build(built, shape[i]));
        read = eg_layer_from_config(json);
        REQUIRE(read && eg_layer_build(read, shape[i]));
        check_wide("by a configuration that is not built", read, x[i], count[i]);
        REQUIRE(eg_layer_config(built, json, sizeof json) < (int64_t)sizeof json);
        check_wide("by eg_layer_build", built, x[i], count[i]);
        read = eg_layer_from_config(json);
        REQUIRE(read != NULL);
        check_wide("by a configuration", read, x[i], count[i]);
        CHECK(eg_call(called, x[i]) != NULL);
        to = make[i](false);
        CHECK(eg_layer_copy_weights(to, called));
        check_wide("by eg_layer_copy_weights", to, x[i], count[i]);
        check_wide("by a call", called, x[i], count[i]);
        check_wide("in a model", inner, x[i], count[i]);
    }
}
// What has no weights passes on the dtype that reaches it, and a layer that is added later meets what a call, a build
// or a copy has found.
TEST(float64_reaches_a_layer_that_is_added) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 3), .dtype = EG_FLOAT64);
    for (int way = 0; way < 4; way++) {
        eg_layer *model = eg_sequential(eg_layer_flatten()), *copy;
        if (way == 0) CHECK(eg_layer_add(model, eg_layer_dense(4, .dtype = EG_FLOAT64)));
        if (way < 2) CHECK(eg_call(model, x) != NULL);
        else {
            CHECK(eg_layer_add(model, eg_layer_dense(4, .dtype = EG_FLOAT64)));
            CHECK(eg_layer_build(model, EG_SHAPE(-1, 3)));
        }
        copy = eg_layer_copy(model);
        if (way == 3) { eg_layer_release(model); model = copy; copy = eg_layer_copy(model); }
        REQUIRE(copy && eg_layer_add(model, eg_layer_dense(2)) && eg_layer_add(copy, eg_layer_dense(2)));
        check_wide("added", model, x, way == 1 ? 2 : 4);
        check_wide("added to a copy", copy, x, way == 1 ? 2 : 4);
    }
    // A model made without any .dtype takes the weights of one that a float64 call built.
    eg_layer *a = eg_sequential(eg_layer_dense(4), eg_layer_dense(1)),
             *b = eg_sequential(eg_layer_dense(4), eg_layer_dense(1));
    CHECK(eg_call(a, x) && eg_layer_copy_weights(b, a));
    check_wide("given", a, x, 4);
    check_wide("taken", b, x, 4);
    // A build that fails leaves the layers as they were made.
    a = eg_sequential(eg_layer_dense(4, .dtype = EG_FLOAT64), eg_layer_dense(3), eg_layer_reshape(EG_SHAPE(2)));
    CHECK_ERROR(eg_layer_build(a, EG_SHAPE(-1, 3)), EG_ERROR_SHAPE, "eg_layer_build");
    eg_layer *second = eg_layer_layers_list(a).layers[1];
    CHECK(eg_call(second, eg_ones(EG_FLOAT32, EG_SHAPE(1, 4))) != NULL);
    check_weights("after a failed build", second, EG_FLOAT32, 2);
    eg_layer_release(a);
}
