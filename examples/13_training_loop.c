//     cc -O2 -DEAGER_STATIC -I. examples/13_training_loop.c -lm -o training_loop && ./training_loop
//
// What eg_fit does, by hand: the loop in the middle is ten lines, and any of them can be yours. Layers, datasets,
// metrics and the tape know nothing of each other, so each can be used without the rest. The curves are drawn in
// training_loop.svg.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

static eg_dataset *dataset_of(int64_t count, uint64_t seed, int64_t shuffle) {
    digits d;
    if (!digits_draw(&d, count, seed)) return NULL;
    eg_tensor *images = eg_div(eg_cast(eg_from_data(EG_UINT8, EG_SHAPE(count, 28, 28, 1), d.pixels), EG_FLOAT32), 255);
    eg_dataset *data = eg_dataset_from_slices(images, eg_from_data(EG_INT32, EG_SHAPE(count), d.labels));
    digits_free(&d);
    return eg_dataset_batch(eg_dataset_shuffle(data, shuffle), 32);
}

int main(void) {
    enum { EPOCHS = 3 };
    eg_seed(1);
    eg_dataset *train = dataset_of(4000, 1, 1000), *test = dataset_of(1000, 2, 1);
    eg_layer *model = eg_sequential(
        eg_layer_conv2d(16, 3, .activation = EG_RELU, .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_max_pooling2d(),
        eg_layer_conv2d(32, 3, .activation = EG_RELU),
        eg_layer_max_pooling2d(),
        eg_layer_flatten(),
        eg_layer_dense(10));
    eg_optimizer *adam = eg_adam(.learning_rate = 1e-3);
    eg_metric *loss_so_far = eg_metric_mean(), *accuracy = eg_metric_accuracy();
    // lent by the model, which has them already: the input's shape is known
    eg_list weights = eg_layer_trainable_weights_list(model);

    eg_history *history = eg_history_new();                         // numbers to keep, and to draw

    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        eg_iterator *batches = eg_iterator_new(train);
        for (;;) {
            EG_SCOPE;                                               // what the step made, its end frees
            eg_tensor *batch[EG_MAX_COMPONENTS];
            if (eg_iterator_next(batches, batch) != EG_NEXT) break; // the end, or an error, which waits in eg_error()
            eg_tape *tape = eg_tape_begin();
            eg_tensor *logits = eg_call(model, batch[0], .training = true);
            eg_tensor *loss = eg_sparse_categorical_crossentropy(batch[1], logits);
            eg_list grads = eg_tape_gradients_list(tape, loss, weights);
            if (!eg_apply_gradients_list(adam, grads, weights)) break;
            eg_metric_add(loss_so_far, loss);
            eg_history_add_batch(history, eg_item(loss));
            eg_metric_update(accuracy, batch[1], logits);
        }
        eg_iterator_release(batches);
        eg_history_add(history, epoch, "loss", eg_metric_result(loss_so_far));
        eg_history_add(history, epoch, "accuracy", eg_metric_result(accuracy));
        eg_metric_reset(loss_so_far);
        eg_metric_reset(accuracy);

        batches = eg_iterator_new(test);
        for (;;) {  // the digits it has not learned from: no tape, no training
            EG_SCOPE;
            eg_tensor *batch[EG_MAX_COMPONENTS];
            if (eg_iterator_next(batches, batch) != EG_NEXT) break;
            if (!eg_metric_update(accuracy, batch[1], eg_call(model, batch[0]))) break;
        }
        eg_iterator_release(batches);
        eg_history_add(history, epoch, "val_accuracy", eg_metric_result(accuracy));
        eg_metric_reset(accuracy);
        printf("epoch %d: loss %.4f, %.1f%% right; of those held out: %.1f%%\n",
               epoch + 1, eg_history_value(history, "loss", -1), 100 * eg_history_value(history, "accuracy", -1),
               100 * eg_history_value(history, "val_accuracy", -1));
    }
    eg_history_svg(history, "training_loop.svg");

    eg_history_release(history);
    eg_metric_release(loss_so_far);
    eg_metric_release(accuracy);
    eg_optimizer_release(adam);
    eg_layer_release(model);
    eg_dataset_release(train);
    eg_dataset_release(test);
    return eg_error() != 0;
}
