//     cc -O2 -DEAGER_STATIC -I. examples/25_cluster.c -lm -o cluster && ./cluster
//
// The digits once more, learned by several processes: ./build.sh cluster starts two of them, with
//     mpicc -O2 -DEAGER_STATIC -DEAGER_MPI -I. examples/25_cluster.c -lm -o cluster && mpirun -n 2 ./cluster
// Built and started as above, the same program is one process. What it has that a program for one does not: it tells
// MPI that it has begun, says that the optimizer's gradients are means over all ranks, takes its part of the data, and
// lets one rank print.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

enum { BATCH = 32, EPOCHS = 3 };

// Part `rank` of `size` parts: pictures (N,28,28,1) between 0 and 1, and labels (N).
static eg_dataset *batches(const digits *d, int rank, int size) {
    int64_t count = d->count / size, first = count * rank;
    eg_tensor *images = eg_from_data(EG_UINT8, EG_SHAPE(count, 28, 28, 1), d->pixels + first * DIGITS_PIXELS),
              *labels = eg_from_data(EG_INT32, EG_SHAPE(count), d->labels + first);
    images = eg_div(eg_cast(images, EG_FLOAT32), 255);
    return eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(images, labels), 1000), BATCH / size);
}

static double accuracy(eg_layer *model, eg_dataset *data) {
    eg_metric *right = eg_metric_accuracy();
    eg_iterator *batches = eg_iterator_new(data);
    for (;;) {
        EG_SCOPE;
        eg_tensor *batch[EG_MAX_COMPONENTS];
        if (eg_iterator_next(batches, batch) != EG_NEXT) break;
        if (!eg_metric_update(right, batch[1], eg_call(model, batch[0]))) break;
    }
    double result = eg_metric_result(right);
    eg_iterator_release(batches);
    eg_metric_release(right);
    return result;
}

int main(int argc, char **argv) {
    if (!eg_cluster_init(&argc, &argv)) return 1;
    int rank = eg_cluster_rank(), size = eg_cluster_size();
    digits train, test;
    if (!digits_draw(&train, 8000, 1) || !digits_draw(&test, 2000, 2)) return 1;
    eg_seed(1);
    eg_layer *model = eg_sequential(
        eg_layer_conv2d(16, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL,
                        .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_max_pooling2d(),
        eg_layer_conv2d(32, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL),
        eg_layer_max_pooling2d(),
        eg_layer_flatten(),
        eg_layer_dense(10));
    eg_optimizer *adam = eg_adam(.learning_rate = 1e-3);
    if (!eg_distribute(adam)) return 1;                         // the line that a program for one process lacks
    eg_dataset *part = batches(&train, rank, size), *held_out = batches(&test, 0, 1);
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        eg_metric *loss_so_far = eg_metric_mean();
        eg_iterator *it = eg_iterator_new(part);
        for (;;) {
            EG_SCOPE;
            eg_tensor *batch[EG_MAX_COMPONENTS];
            if (eg_iterator_next(it, batch) != EG_NEXT) break;
            eg_tape *tape = eg_tape_begin();
            eg_tensor *loss = eg_sparse_categorical_crossentropy(batch[1], eg_call(model, batch[0], .training = true));
            if (!eg_tape_minimize(tape, loss, eg_layer_trainable_weights_list(model), adam)) return 1;
            eg_metric_add(loss_so_far, loss);
        }
        eg_iterator_release(it);
        eg_tensor *sum = eg_all_reduce(eg_scalar(eg_metric_result(loss_so_far)));      // of all ranks
        if (rank == 0) printf("epoch %d on %d rank%s: loss %.4f\n", epoch, size, size > 1 ? "s" : "",
                              eg_item(sum) / size);
        eg_metric_release(loss_so_far);
    }
    if (rank == 0) printf("Held-out accuracy: %.2f%%\n", 100 * accuracy(model, held_out));
    eg_dataset_release(part);
    eg_dataset_release(held_out);
    eg_layer_release(model);
    eg_optimizer_release(adam);
    digits_free(&train);
    digits_free(&test);
    return eg_error() != EG_OK;
}
