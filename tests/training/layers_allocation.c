// Every kind of layer without memory: made, called, differentiated; at every allocation an error, nothing left behind.
#include "test.h"
#define FAULTS_DENSE
#include "faults.h"

// The layer on these inputs, in training, with the gradients of its weights; it is released.
static bool trained(eg_layer *l, eg_tensor **in, int n, eg_tensor *mask) {
    eg_tensor *y = NULL, *weights[16], *grads[16];
    bool right = l != NULL;
    for (int i = 0; i < n; i++) right = right && in[i];
    eg_tape *tape = right ? eg_tape_begin() : NULL;
    right = tape && eg_call_multi(l, in, n, &y, 1, .training = true, .mask = mask);
    eg_tensor *loss = right ? eg_reduce_sum(eg_square(y)) : NULL;
    int count = loss ? eg_layer_trainable_weights(l, weights, 16) : 0;
    right = loss && (count == 0 || eg_tape_gradients(tape, loss, weights, count, grads)) && eg_error() == EG_OK;
    eg_layer_release(l);
    return right;
}
static bool on(eg_layer *l, eg_tensor *x) { return trained(l, &x, 1, NULL); }
static eg_tensor *pictures(void) { return eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 4, 2)); }
static eg_tensor *sequences(void) { return eg_ones(EG_FLOAT32, EG_SHAPE(2, 3, 4)); }
static eg_tensor *steps_mask(void) { return eg_constant_of(EG_BOOL, EG_SHAPE(2, 3), 1, 1, 0, 1, 0, 0); }

static bool act_of_convolutions(void) {
    return on(eg_layer_conv2d(2, 2, .groups = 2, .padding = EG_SAME), pictures()) &&
           on(eg_layer_conv2d_transpose(2, 2, .strides = {3}), pictures()) &&
           on(eg_layer_depthwise_conv2d(2, .depth_multiplier = 2), pictures()) &&
           on(eg_layer_separable_conv2d(3, 2), pictures()) &&
           on(eg_layer_conv1d(2, 2, .causal = true, .activation = EG_GELU), sequences()) &&
           on(eg_layer_conv1d_transpose(2, 2), sequences());
}
static bool act_of_shapes(void) {
    return on(eg_layer_max_pooling2d(), pictures()) && on(eg_layer_average_pooling1d(), sequences()) &&
           on(eg_layer_global_max_pooling2d(), pictures()) && on(eg_layer_flatten(), pictures()) &&
           on(eg_layer_reshape(EG_SHAPE(2, -1)), pictures()) && on(eg_layer_permute(EG_AXES(2, 1)), sequences()) &&
           on(eg_layer_repeat_vector(2), eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))) &&
           on(eg_layer_zero_padding2d(EG_PADS(1)), pictures()) && on(eg_layer_up_sampling2d(2), pictures()) &&
           on(eg_layer_up_sampling2d(2, .bilinear = true), pictures()) && on(eg_layer_up_sampling1d(2), sequences()) &&
           on(eg_layer_activation(EG_SOFTMAX), sequences()) && on(eg_layer_leaky_relu(0), sequences()) &&
           on(eg_layer_dropout(0.5), sequences());
}
static bool act_of_norms(void) {
    eg_tensor *x = sequences(), *mask = steps_mask();
    return on(eg_layer_layer_normalization(.axis = 1), sequences()) &&
           on(eg_layer_layer_normalization(), sequences()) && on(eg_layer_rms_normalization(), sequences()) &&
           on(eg_layer_group_normalization(.groups = 2, .axis = 1), eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 2))) &&
           mask && trained(eg_layer_batch_normalization(), &x, 1, mask) &&
           trained(eg_layer_global_average_pooling1d(), &x, 1, mask) && on(eg_layer_masking(1), sequences());
}
static bool act_of_recurrence(void) {
    eg_tensor *x = sequences(), *mask = steps_mask();
    return mask && trained(eg_layer_lstm(2, .return_sequences = true, .dropout = 0.1, .recurrent_dropout = 0.1),
                           &x, 1, mask) && on(eg_layer_gru(2, .reset_before = true), sequences()) &&
           trained(eg_layer_bidirectional(eg_layer_gru(2), .merge = EG_MERGE_AVE), &x, 1, mask) &&
           on(eg_layer_simple_rnn(2, .go_backwards = true, .no_bias = true), sequences());
}
// All steps as one op: with states given and returned, and its gradient where an outer tape records it.
static bool act_of_recurrence_as_one(void) {
    eg_tensor *x = sequences(), *h = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), *given[] = {x, h, h}, *y[3];
    bool right = h && trained(eg_layer_lstm(2, .return_sequences = true), given, 3, NULL) &&
                 trained(eg_layer_gru(2), given, 2, NULL) && trained(eg_layer_simple_rnn(2), &x, 1, steps_mask());
    eg_layer *layer = right ? eg_layer_gru(2) : NULL;
    eg_tape *outer = layer ? eg_tape_begin() : NULL, *inner = outer ? eg_tape_begin() : NULL;
    right = inner && eg_tape_watch(outer, x) && eg_tape_watch(inner, x) &&
            eg_call_multi(layer, &x, 1, y, 2, .mask = steps_mask());
    eg_tensor *dx = right ? eg_tape_gradient(inner, eg_reduce_sum(eg_mul(y[0], y[1])), x) : NULL;
    right = dx && eg_tape_gradient(outer, dx, x) && eg_error() == EG_OK;
    eg_layer_release(layer);
    return right;
}
static bool act_of_attention(void) {
    eg_tensor *x = sequences(), *cross[] = {x, sequences()}, *mask = steps_mask();
    return mask && trained(eg_layer_multi_head_attention(2, 2, .causal = true, .dropout = 0.1, .rotary_base = 100), &x,
                           1, mask) && trained(eg_layer_multi_head_attention(2, 2, .kv_heads = 1), cross, 2, NULL) &&
           on(eg_layer_position_embedding(5), sequences());
}
static bool act_of_merges(void) {
    eg_tensor *x = sequences(), *mask = steps_mask(), *two[2] = {x && mask ? eg_with_mask(x, mask) : NULL, sequences()};
    return mask && trained(eg_layer_merge_subtract(), two, 2, NULL) &&
           trained(eg_layer_merge_multiply(), two, 2, NULL) && trained(eg_layer_merge_average(), two, 2, NULL) &&
           trained(eg_layer_merge_maximum(), two, 2, NULL) && trained(eg_layer_merge_minimum(), two, 2, NULL) &&
           trained(eg_layer_concatenate(.axis = 1), two, 2, NULL) && trained(eg_layer_concatenate(), two, 2, NULL) &&
           on(eg_layer_residual(eg_layer_dense(4, .activation = EG_TANH, .bias_l1 = 0.1)), sequences());
}
// Configurations of layers within layers, and all that is asked of them.
static eg_tensor *doubled(eg_tensor *const *in, void *user) { (void)user; return eg_mul(in[0], 2); }
static bool act_of_questions(void) {
    char text[4096], path[200];
    eg_layer *shared = eg_layer_dense(2, .kernel_l2 = 0.1), *inner = eg_sequential(shared, eg_layer_retain(shared)),
             *model = eg_sequential(eg_layer_lambda("doubled", doubled, NULL), inner);
    eg_tensor *weights[4], *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 2));
    bool right = model && x && eg_call(model, x) && eg_layer_weights(model, weights, 4) == 2 &&
                 eg_layer_weight_path(model, 1, path, sizeof path) && eg_layer_losses(model) &&
                 eg_layer_parameters(model) == 6 && eg_layer_config(inner, text, sizeof text) > 0;
    eg_layer *again = right ? eg_layer_from_config(text) : NULL;
    right = right && again && eg_layer_set_name(again, "again");
    eg_layer_release(again);
    eg_layer_release(model);
    return right;
}
TEST(out_of_memory_in_convolutions) { faults_sweep(act_of_convolutions); }
TEST(out_of_memory_in_shapes) { faults_sweep(act_of_shapes); }
TEST(out_of_memory_in_norms) { faults_sweep(act_of_norms); }
TEST(out_of_memory_in_recurrence) { faults_sweep(act_of_recurrence); }
TEST(out_of_memory_in_recurrence_as_one) { faults_sweep(act_of_recurrence_as_one); }
TEST(out_of_memory_in_attention) { faults_sweep(act_of_attention); }
TEST(out_of_memory_in_merges) { faults_sweep(act_of_merges); }
TEST(out_of_memory_in_questions) { faults_sweep(act_of_questions); }
