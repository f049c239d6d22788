//     cc -O2 -DEAGER_STATIC -I. examples/25_cluster.c -lm -o cluster && ./cluster
//
// The digits once more, learned by several processes: ./build.sh cluster starts two of them, with
//     mpicc -O2 -DEAGER_STATIC -DEAGER_MPI -I. examples/25_cluster.c -lm -o cluster && mpirun -n 2 ./cluster
// Built and started as above, the same program is one process. It is example 12 with a line more, eg_cluster_init, and
// an option more, .distribute. Each rank computes its rows of every batch, and the ranks apply the mean of their
// gradients; so a step is that of one process, whose numbers come out, but for rounding. Rank 0 prints.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

enum { BATCH = 32, EPOCHS = 3 };

static bool scale(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_div(eg_cast(in[0], EG_FLOAT32), 255);
    out[1] = in[1];
    return out[0] != NULL;
}
// Pictures (N,28,28,1) between 0 and 1, and labels (N). Every rank makes the whole; eg_fit takes its rows of a batch.
static eg_dataset *batches(const digits *d, int64_t shuffle) {
    eg_tensor *images = eg_from_data(EG_UINT8, EG_SHAPE(d->count, 28, 28, 1), d->pixels),
              *labels = eg_from_data(EG_INT32, EG_SHAPE(d->count), d->labels);
    eg_dataset *data = eg_dataset_from_slices(images, labels);
    if (shuffle) data = eg_dataset_shuffle(data, shuffle);
    return eg_dataset_map(eg_dataset_batch(data, BATCH), scale, NULL);
}

int main(int argc, char **argv) {
    if (!eg_cluster_init(&argc, &argv)) return 1;
    const bool prints = eg_cluster_rank() == 0;
    digits train, test;
    const char *wrong = argc > 1 ? digits_read(argv[1], &train, &test) : NULL;      // a folder with MNIST's files
    if (wrong && prints) fprintf(stderr, "%s\n", wrong);
    if (wrong || (argc < 2 && (!digits_draw(&train, 8000, 1) || !digits_draw(&test, 2000, 2)))) return 1;

    eg_seed(1);
    eg_dataset *learning = batches(&train, 1000), *held_out = batches(&test, 0);
    eg_layer *model = eg_sequential(
        eg_layer_conv2d(16, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL,
                        .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_max_pooling2d(),
        eg_layer_conv2d(32, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL),
        eg_layer_max_pooling2d(),
        eg_layer_flatten(),
        eg_layer_dense(10));
    eg_compile(model, eg_adam(.learning_rate = 1e-3), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY);
    const eg_history *history = eg_fit(model, learning, .epochs = EPOCHS, .validation = held_out, .distribute = true);

    if (prints) printf("Held-out accuracy of %d rank%s: %.2f%%\n", eg_cluster_size(), eg_cluster_size() > 1 ? "s" : "",
                       100 * eg_history_value(history, "val_accuracy", -1));
    eg_layer_release(model);
    eg_dataset_release(learning);
    eg_dataset_release(held_out);
    digits_free(&train);
    digits_free(&test);
    return eg_error() != EG_OK;
}
