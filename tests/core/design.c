// The programs of the project's design page: they fix how the library feels. What they print is checked here with the
// same names in the same shapes; the page's first one stands in README.md and is run from there.
#include "test.h"

TEST(first_program) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
    CHECK_TENSOR(eg_matmul(x, x), 0, 7, 10, 15, 22);
    CHECK_TENSOR(eg_mul(eg_add(x, 1), 2), 0, 4, 6, 8, 10);
    CHECK_TENSOR(eg_sub(1, x), 0, 0, -1, -2, -3);
    CHECK_INT(eg_dtype_of(x), EG_FLOAT32);
}

TEST(linear_regression) {
    eg_seed(1);
    eg_tensor *x = eg_random_normal(EG_SHAPE(2000));
    eg_tensor *y = eg_add(eg_add(eg_mul(x, 3), 2), eg_random_normal(EG_SHAPE(2000)));

    eg_tensor *W = eg_variable(eg_scalar(5.0), "W");
    eg_tensor *B = eg_variable(eg_scalar(10.0), "B");
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.01);
    double first = 0, last = 0;

    for (int step = 0; step < 300; step++) {
        EG_SCOPE;  // what this block makes, its end frees; break and return too
        eg_tape *tape = eg_tape_begin();
        eg_tensor *error = eg_sub(eg_add(eg_mul(x, W), B), y);
        eg_tensor *loss = eg_reduce_mean(eg_square(error));
        eg_tensor *vars[] = {W, B}, *grads[2];
        // a second call is an error; eg_tape_begin_persistent() allows it
        eg_tape_gradients(tape, loss, vars, 2, grads);
        eg_apply_gradients(sgd, grads, vars, 2);
        if (step == 0) first = eg_item(loss);
        last = eg_item(loss);
    }
    CHECK(first > 62 && first < 76);
    CHECK(last > 0.85 && last < 1.15);
    CHECK_NEAR(eg_item(W), 3.01, 0.03);
    CHECK_NEAR(eg_item(B), 2.0, 0.04);
    eg_release(W);
    eg_release(B);
    eg_optimizer_release(sgd);
}

TEST(gradients_of_gradients) {
    eg_tensor *x = eg_scalar(3.0);
    eg_tape *outer = eg_tape_begin();  eg_tape_watch(outer, x);
    eg_tape *inner = eg_tape_begin();  eg_tape_watch(inner, x);
    eg_tensor *y = eg_mul(eg_mul(x, x), x);
    eg_tensor *dy = eg_tape_gradient(inner, y, x);             // 27
    eg_tensor *d2y = eg_tape_gradient(outer, dy, x);           // 18
    CHECK_TENSOR(dy, 0, 27);
    CHECK_TENSOR(d2y, 0, 18);
}

// A gradient of one's own: stable where the naive one gives nan. What the forward computed can be kept for the
// backward.
static eg_tensor *log1pexp(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    eg_tensor *e = c->saved[0] = eg_exp(in[0]);
    return eg_log(eg_add(e, 1));
}
// dx[i] left NULL: no gradient for input i
static void log1pexp_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_sub(1, eg_div(1, eg_add(1, c->saved[0]))));
}

TEST(custom_gradient) {
    const double at[] = {0, 100}, slope[] = {0.5, 1.0};
    for (int i = 0; i < 2; i++) {
        eg_tensor *x = eg_scalar(at[i]);
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tensor *y = eg_custom_gradient(log1pexp, log1pexp_grad, NULL, &x, 1);
        CHECK_TENSOR(eg_tape_gradient(tape, y, x), 1e-6, slope[i]);
    }
}

static char kept_text[4096];
static void keep_text(const char *text, void *user) {
    (void)user;
    strncat(kept_text, text, sizeof kept_text - strlen(kept_text) - 1);
}

TEST(model) {
    eg_seed(1);
    eg_tensor *images = eg_random_uniform(EG_SHAPE(64, 28, 28, 1)), *labels = eg_random_integers(EG_SHAPE(64), 0, 10);
    eg_dataset *test = eg_dataset_batch(eg_dataset_from_slices(images, labels), 32);
    eg_layer *model = eg_sequential(
        eg_layer_conv2d(16, 3, .activation = EG_RELU),
        eg_layer_conv2d(16, 3, .activation = EG_RELU),
        eg_layer_global_average_pooling2d(),
        eg_layer_dense(10));
    eg_dataset *train = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(images, labels), 1000), 32);
    eg_set_printer(keep_text, NULL);
    eg_compile(model, eg_adam(.learning_rate = 1e-3), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY);
    eg_fit(model, train, .epochs = 3, .validation = test);     // a progress bar, loss, accuracy, time per step
    eg_set_printer(NULL, NULL);
    CHECK_CONTAINS(kept_text, "Epoch 3/3");
    CHECK_CONTAINS(kept_text, "val_accuracy");
    CHECK_INT(eg_layer_parameters(model), 2650);
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 28, 28, 1))), 1, 10);
    CHECK_NEAR(eg_history_batch_loss(eg_model_history(model), 0), 2.302585, 0.1);
    eg_dataset_release(test);
    eg_dataset_release(train);
    eg_layer_release(model);
}
