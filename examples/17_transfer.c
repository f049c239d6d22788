//     cc -O2 -DEAGER_STATIC -I. examples/17_transfer.c -lm -o transfer && ./transfer
//
// A model that PyTorch trained, used and changed here. transfer.safetensors (8 KB, made by
// tests/fixtures/fixtures_files.py) is the state_dict of a small network that reads digits, in half precision. First it
// reads digits here as well as it did there; then its layers, frozen, carry a new head that learns another task from a
// hundred pictures, too few to learn it from nothing.
//     transfer [FILE]       the file's default place is this folder
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

typedef struct { eg_tensor *images, *labels; } pictures;
static pictures draw(int64_t count, uint64_t seed) {
    digits d;
    pictures p = {NULL, NULL};
    if (!digits_draw(&d, count, seed)) return p;
    p.images = eg_div(eg_cast(eg_from_data(EG_UINT8, EG_SHAPE(count, 28, 28, 1), d.pixels), EG_FLOAT32), 255);
    p.labels = eg_from_data(EG_INT32, EG_SHAPE(count), d.labels);
    digits_free(&d);
    return p;
}
static double accuracy(eg_layer *model, pictures p) {
    EG_SCOPE;
    eg_tensor *read = eg_cast(eg_argmax(eg_predict(model, p.images, .quiet = true), .axis = 1), EG_INT32);
    return eg_item(eg_reduce_mean(eg_cast(eg_equal(read, p.labels), EG_FLOAT32)));
}

// What PyTorch's modules conv1, conv2, fc1 and fc2 do, and probabilities behind them. There pictures are (N,C,H,W) and
// matrices stand the other way round; eg_load_weights sees to that.
static eg_layer *reader(void) {
    return eg_sequential(
        eg_layer_conv2d(6, 5, .strides = {2}, .activation = EG_RELU, .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_conv2d(8, 3, .strides = {2}, .activation = EG_RELU),
        eg_layer_flatten(),
        eg_layer_dense(16, .activation = EG_RELU),
        eg_layer_dense(10, .activation = EG_SOFTMAX));
}

// Learns whether digits are odd; returns how often it is right on others.
static double learn_odd(eg_layer *below, pictures few, pictures many) {
    eg_layer *model = eg_sequential(below, eg_layer_dense(2));
    few.labels = eg_mod(few.labels, 2);
    many.labels = eg_mod(many.labels, 2);
    eg_compile(model, eg_adam(.learning_rate = 0.01), eg_sparse_categorical_crossentropy);
    eg_fit_arrays(model, few.images, few.labels, .epochs = 40, .batch_size = 20, .quiet = true);
    double right = accuracy(model, many);
    eg_layer_release(model);
    return right;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "transfer.safetensors";
    FILE *here = fopen(path, "rb");
    if (here) fclose(here);
    else path = "examples/transfer.safetensors";
    eg_seed(1);
    pictures many = draw(1000, 2), few = draw(100, 3);

    eg_archive *file = eg_load_safetensors(path);
    for (int64_t i = 0; i < eg_archive_count(file); i++) {
        char shape[EG_SHAPE_TEXT];
        eg_tensor *x = eg_archive_get(file, eg_archive_name(file, i));
        printf("%-14s %s %s\n", eg_archive_name(file, i), eg_dtype_name(eg_dtype_of(x)),
               eg_shape_text(eg_shape_of(x), shape));
    }

    // Our layers, and which of theirs each is. What does not fit is told in one sentence: try eg_layer_dense(17) above.
    eg_layer *model = reader(), *fresh = reader();
    if (!eg_load_weights(model, path, .torch = true,
                         .names = EG_NAMES("conv2d", "conv1", "conv2d_1", "conv2", "dense", "fc1", "dense_1", "fc2")))
        return 1;
    printf("\nreads digits: %.1f%% right here, %.1f%% in PyTorch\n", 100 * accuracy(model, many),
           100 * atof(eg_archive_text(file, "accuracy")));
    eg_archive_release(file);

    // Another task, from a hundred pictures: is the digit odd?
    eg_layer_set_trainable(model, false);
    printf("\nodd or even, learned from 100 pictures:\n");
    printf("    a new layer on the frozen ones: %.0f%% right\n", 100 * learn_odd(model, few, many));
    printf("    all of it from nothing:         %.0f%% right\n", 100 * learn_odd(fresh, few, many));
    return eg_error() != 0;
}
