// Layers and models: what they make, name, count, pass on and refuse. Their values stand against Keras in layers_fixtures.c.
#include "test.h"

static const char *path_of(eg_layer *layer, int i) {
    static char text[4][128];
    static int turn;
    char *t = text[turn++ % 4];
    return eg_layer_weight_path(layer, i, t, sizeof text[0]);
}
static eg_tensor *weight_of(eg_layer *layer, int i) {
    eg_tensor *list[64];
    return i < eg_layer_weights(layer, list, 64) ? list[i] : NULL;
}

// ---- one layer

TEST(dense) {
    eg_layer *dense = eg_layer_dense(3, .activation = EG_RELU, .kernel_initializer = EG_INIT_CONSTANT, .kernel_initializer_value = 2, .bias_initializer = EG_INIT_ONES);
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
    CHECK_ERROR(eg_call(dense, eg_zeros(EG_FLOAT32, EG_SHAPE(4, 5))), EG_ERROR_SHAPE, "built for inputs [2, 2], but is called with [4, 5] (2 against 5), in layer dense");
    CHECK_ERROR(eg_call(dense, eg_zeros(EG_FLOAT32, EG_SHAPE(2))), EG_ERROR_SHAPE, "Dense takes inputs of rank 2 or more, not [2] (rank 1), in layer dense");
    CHECK_ERROR(eg_layer_dense(0), EG_ERROR_ARGUMENT, "eg_layer_dense: 0 units");
    CHECK_ERROR(eg_layer_dense(2, .strides = {2}), EG_ERROR_ARGUMENT, "eg_layer_dense: has no option .strides");
    CHECK_ERROR(eg_layer_weight_path(dense, 2, (char[8]){0}, 8), EG_ERROR_INDEX, "has no weight 2");
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

// ---- models

TEST(sequential_names_builds_and_grows) {
    eg_layer *model = eg_sequential(eg_layer_dense(4, .activation = EG_RELU, .input_shape = EG_SHAPE(3)), eg_layer_dense(2));
    CHECK_INT(eg_layer_weights(model, NULL, 0), 4);                       // the shape was given: built at once
    CHECK_STR(path_of(model, 0), "dense/kernel");
    CHECK_STR(path_of(model, 3), "dense_1/bias");
    CHECK_STR(eg_name_of(weight_of(model, 3)), "sequential/dense_1/bias");
    CHECK(eg_layer_add(model, eg_layer_dense(5, .name = "last")));
    CHECK_INT(eg_layer_weights(model, NULL, 0), 6);
    CHECK_STR(path_of(model, 5), "last/bias");
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(7, 3))), 7, 5);
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(7, 4))), EG_ERROR_SHAPE, "[7, 4] is not the batch of [3] that .input_shape promised, in layer sequential/dense");
    CHECK_ERROR(eg_layer_add(model, eg_layer_dense(5, .name = "last")), EG_ERROR_ARGUMENT, "has a part called last already");
    eg_layer_release(model);
}

TEST(models_in_models) {
    eg_layer *model = eg_sequential(eg_layer_dense(4), eg_sequential(eg_layer_dense(3), eg_layer_dense(2)), eg_sequential(eg_layer_dense(1)));
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 5))), 2, 1);
    CHECK_INT(eg_layer_weights(model, NULL, 0), 8);
    CHECK_STR(path_of(model, 2), "sequential/dense/kernel");
    CHECK_STR(path_of(model, 4), "sequential/dense_1/kernel");
    CHECK_STR(path_of(model, 7), "sequential_1/dense/bias");
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 6))), EG_ERROR_SHAPE, "(5 against 6), in layer sequential/dense");
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
    CHECK_ERROR(eg_layer_track(n.layer, "self", eg_layer_retain(n.layer)), EG_ERROR_ARGUMENT, "cannot be a part of itself");
    CHECK_ERROR(eg_call(n.layer, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1, 3))), EG_ERROR_SHAPE, "(784 against 3), in layer network/first");
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
    CHECK_ERROR(eg_layer_build(model, EG_SHAPE(-1, 3)), EG_ERROR_STATE, "holds a function of yours");
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
    CHECK_ERROR(eg_layer_weight(s.layer, "factor", eg_scalar(1), true), EG_ERROR_ARGUMENT, "a part called factor already");
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
    CHECK_ERROR(eg_call_multi(both, in, 3, out, 2), EG_ERROR_ARGUMENT, "3 inputs; Custom takes at most 2, in layer both");
    CHECK(!out[0] && !out[1]);
    CHECK_ERROR(eg_call_multi(both, in, 2, out, 3), EG_ERROR_ARGUMENT, "3 outputs asked for; the layer has 2");
    CHECK_ERROR(eg_call(both, in[0], .training = true, .inference = true), EG_ERROR_ARGUMENT, ".training and .inference");
    CHECK_ERROR(eg_call(both, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_call(NULL, in[0]), EG_ERROR_NULL, "the layer is NULL");
    eg_layer_release(both);
}

TEST(losses_of_regularizers) {
    eg_layer *model = eg_sequential(eg_layer_dense(1, .kernel_initializer = EG_INIT_CONSTANT, .kernel_initializer_value = -2, .kernel_l1 = .5, .kernel_l2 = .25),
                                    eg_layer_dense(1, .bias_initializer = EG_INIT_CONSTANT, .bias_initializer_value = 3, .bias_l2 = .1)), *list[2];
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
    eg_tensor *mask = eg_constant_of(EG_BOOL, EG_SHAPE(1, 3), 1, 1, 0), *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1, 3, 2)), *y = eg_call(model, x, .mask = mask);
    CHECK(eg_mask_of(y) == mask && eg_mask_of(x) == NULL && eg_mask_of(NULL) == NULL);
    CHECK(eg_mask_of(eg_call(model, y)) == mask);
    CHECK(eg_mask_of(eg_relu(y)) == NULL);
    CHECK_ERROR(eg_call(model, x, .mask = x), EG_ERROR_DTYPE, "is not bool, in layer sequential");
    eg_layer_release(model);
}

TEST(a_shared_layer_counts_once) {
    eg_layer *shared = eg_layer_dense(3), *model = eg_sequential(eg_layer_retain(shared), eg_layer_retain(shared), eg_layer_dense(1));
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
    CHECK_ERROR(eg_activate(eg_scalar(1), (eg_activation)99), EG_ERROR_ARGUMENT, "99 is no activation");
    CHECK_ERROR(eg_initialize((eg_initializer)99, 0, EG_FLOAT32, EG_SHAPE(2)), EG_ERROR_ARGUMENT, "99 is no initializer");
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
    CHECK_ERROR(eg_sequential(eg_layer_dense(2), eg_layer_dense(0), eg_layer_dense(2)), EG_ERROR_ARGUMENT, "0 units");
    CHECK_ERROR(eg_sequential(eg_layer_dense(2, .input_shape = EG_SHAPE(-1))), EG_ERROR_SHAPE, "must be known");
    eg_layer *list[] = {eg_layer_dense(1), eg_layer_dense(1)}, *other = eg_sequential_of(list, 2);
    CHECK_ERROR(eg_layer_add(list[0], eg_layer_dense(1)), EG_ERROR_ARGUMENT, "is no eg_sequential");
    eg_layer_release(other);
    eg_layer_release(model);
    eg_layer_release(NULL);
}
