//     cc -O2 -DEAGER_STATIC -I. examples/12_digits_fit.c -lm -o digits_fit && ./digits_fit
//
// The digits of example 11 once more, now with layers, a dataset and eg_fit: what filled that program's screens is in
// the library.
//     digits_fit               on 10,000 digits that it draws itself
//     digits_fit FOLDER        on the IDX files of MNIST (-DEAGER_ZLIB and -lz for .gz ones)
//     digits_fit --guide       the small model of TensorFlow's guide;  --better: a larger one, which misreads half as
//     many
//     digits_fit --epochs 8    ... and --curve FILE.svg draws how it went
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

// Two convolutions, then the mean over all places: 2,650 numbers to learn.
static eg_layer *guide_model(void) {
    return eg_sequential(
        eg_layer_conv2d(16, 3, .activation = EG_RELU, .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_conv2d(16, 3, .activation = EG_RELU),
        eg_layer_global_average_pooling2d(),
        eg_layer_dense(10));
}

// Example 11's: pooling halves the picture twice, and the dense layer sees what is left where. He's rule for the first
// weights, as there.
static eg_layer *plain_model(void) {
    return eg_sequential(
        eg_layer_conv2d(16, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL,
                        .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_max_pooling2d(),
        eg_layer_conv2d(32, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL),
        eg_layer_max_pooling2d(),
        eg_layer_flatten(),
        eg_layer_dense(10));
}

// Wider, with a hidden layer, and dropout so that it does not learn the training digits by heart.
static eg_layer *better_model(void) {
    return eg_sequential(
        eg_layer_conv2d(32, 3, .activation = EG_RELU, .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_max_pooling2d(),
        eg_layer_conv2d(64, 3, .activation = EG_RELU),
        eg_layer_max_pooling2d(),
        eg_layer_flatten(),
        eg_layer_dropout(0.25),
        eg_layer_dense(128, .activation = EG_RELU),
        eg_layer_dropout(0.5),
        eg_layer_dense(10));
}

// Bytes from 0 to 255 become numbers from 0 to 1, a batch at a time.
static bool scale(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_div(eg_cast(in[0], EG_FLOAT32), 255);
    out[1] = in[1];
    return out[0] != NULL;
}

static eg_dataset *batches(const digits *d, int64_t shuffle) {
    eg_tensor *images = eg_from_data(EG_UINT8, EG_SHAPE(d->count, 28, 28, 1), d->pixels),
              *labels = eg_from_data(EG_INT32, EG_SHAPE(d->count), d->labels);
    eg_dataset *data = eg_dataset_from_slices(images, labels);
    if (shuffle) data = eg_dataset_shuffle(data, shuffle);
    return eg_dataset_prefetch(eg_dataset_map(eg_dataset_batch(data, 32), scale, NULL), 2);
}

int main(int argc, char **argv) {
    const char *folder = NULL, *curve = NULL, *wrong = NULL;
    eg_layer *(*make)(void) = plain_model;
    long epochs = 3;
    bool known = true;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--guide")) make = guide_model;
        else if (!strcmp(argv[i], "--better")) make = better_model;
        else if (!strcmp(argv[i], "--epochs") && more) epochs = strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--curve") && more) curve = argv[++i];
        else if (argv[i][0] != '-' && !folder) folder = argv[i];
        else known = false;
    }
    if (!known || epochs < 1 || epochs > 1000) {
        fprintf(stderr,
                "usage: %s [FOLDER with MNIST's files] [--guide | --better] [--epochs 1 to 1000] [--curve FILE.svg]\n",
                argv[0]);
        return 2;
    }
    digits train, test;
    if (folder && (wrong = digits_read(folder, &train, &test))) {
        fprintf(stderr, "%s\n", wrong);
        return 1;
    }
    if (!folder && (!digits_draw(&train, 8000, 1) || !digits_draw(&test, 2000, 2))) return 1;

    eg_seed(1);
    eg_dataset *learning = batches(&train, 1000), *held_out = batches(&test, 0);
    eg_layer *model = make();
    eg_layer_summary(model);
    eg_compile(model, eg_adam(.learning_rate = 1e-3), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY);
    const eg_history *history = eg_fit(model, learning, .epochs = epochs, .validation = held_out);

    printf("Held-out accuracy: %.2f%%\n", 100 * eg_history_value(history, "val_accuracy", -1));
    if (curve && history && eg_history_svg(history, curve)) printf("The curves are in %s\n", curve);

    eg_layer_release(model);
    eg_dataset_release(learning);
    eg_dataset_release(held_out);
    digits_free(&train);
    digits_free(&test);
    return eg_error() != 0;
}
