// Training: compile, fit, evaluate, predict, histories, callbacks, progress. What is printed is caught by
// eg_set_printer's hook.
#include "test.h"
#include <dirent.h>
#include <time.h>

enum { ROWS = 64 };

// Points and their class: whether the numbers of a row add up to more than 0.
static eg_tensor *points(void) {
    eg_seed(1);
    return eg_random_normal(EG_SHAPE(ROWS, 4));
}
static eg_tensor *classes(eg_tensor *x) {
    return eg_cast(eg_greater(eg_reduce_sum(x, .axes = EG_AXES(1)), 0), EG_INT32);
}
static eg_layer *small_model(void) {
    eg_layer *model = eg_sequential(eg_layer_dense(8, .activation = EG_TANH), eg_layer_dense(2));
    eg_seed(2);
    CHECK(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 4))) != NULL);
    return model;
}
static eg_layer *compiled(void) {
    eg_layer *model = small_model();
    CHECK(eg_compile(model, eg_adam(.learning_rate = 0.02), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY));
    return model;
}
// One weight and no bias: y = w x, w from 0.
static eg_layer *line_model(eg_optimizer *optimizer, eg_loss *loss) {
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true, .kernel_initializer = EG_INIT_ZEROS));
    CHECK(eg_compile(model, optimizer, loss));
    return model;
}
static double weight(eg_layer *model) {
    eg_tensor *w = NULL;
    CHECK_INT(eg_layer_weights(model, &w, 1), 1);
    return eg_item(w);
}

TEST(fit_learns) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_dataset *train = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, y), ROWS, .seed = 3), 16),
               *test = eg_dataset_batch(eg_dataset_from_slices(x, y), 20);
    const eg_history *h = eg_fit(model, train, .epochs = 20, .validation = test, .quiet = true);
    REQUIRE(h != NULL);
    CHECK_INT(eg_history_epochs(h), 20);
    CHECK_INT(eg_history_batches(h), 80);
    CHECK(eg_history_value(h, "loss", 0) > 0.4 && eg_history_value(h, "loss", -1) < 0.2);
    CHECK(eg_history_value(h, "accuracy", -1) > 0.95 && eg_history_value(h, "val_accuracy", 19) > 0.95);
    CHECK_NEAR(eg_history_value(h, "learning_rate", 3), 0.02, 1e-9);
    double none = 0;
    CHECK_ERROR((none = eg_history_value(h, "nothing", 0), isnan(none) ? NULL : h), EG_ERROR_ARGUMENT,
                "eg_history_value: the history has no 'nothing'; it has loss, accuracy, val_loss, val_accuracy, "
                "learning_rate (at");
    CHECK_ERROR((none = eg_history_value(h, "loss", 20), isnan(none) ? NULL : h), EG_ERROR_INDEX,
                "eg_history_value: epoch 20; there are 20, counted from 0, and -1 is the last (at");
    CHECK_STR(eg_history_name(h, 0), "loss");
    CHECK_STR(eg_history_name(h, 3), "val_accuracy");
    CHECK_STR(eg_history_name(h, 5), NULL);
    double mean = 0;
    for (int64_t i = 76; i < 80; i++) mean += eg_history_batch_loss(h, i) / 4;
    CHECK_NEAR(mean, eg_history_value(h, "loss", -1), 1e-6);
    CHECK_NEAR(eg_history_batch_loss(h, -1), eg_history_batch_loss(h, 79), 0);
    CHECK(eg_model_history(model) == h);
    double loss = eg_evaluate(model, test, .quiet = true), accuracy = eg_model_result(model, "accuracy");
    CHECK_NEAR(loss, eg_history_value(h, "val_loss", -1), 1e-9);
    CHECK_NEAR(accuracy, eg_history_value(h, "val_accuracy", -1), 0);
    CHECK_NEAR(eg_model_result(model, "loss"), loss, 0);
    CHECK_ERROR(eg_model_result(model, "mistakes"), EG_ERROR_ARGUMENT, "there are loss, accuracy");
    // The same by hand: the mean over all examples, whatever the batches are.
    eg_tensor *logits = eg_predict(model, x, .batch_size = 7);
    CHECK_SHAPE(logits, ROWS, 2);
    CHECK_NEAR(eg_item(eg_sparse_categorical_crossentropy(y, logits)), loss, 1e-6);
    CHECK_SAME(eg_predict_dataset(model, test), logits, 1e-6);
    CHECK_NEAR(eg_evaluate_arrays(model, x, y, .batch_size = 64, .quiet = true), loss, 1e-6);
    eg_dataset_release(train);
    eg_dataset_release(test);
    eg_layer_release(model);
}

TEST(the_same_by_hand) {                                     // bit by bit
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *fitted = compiled(), *looped = small_model();
    eg_optimizer *adam = eg_adam(.learning_rate = 0.02);
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y), 16);
    CHECK(eg_fit(fitted, data, .epochs = 3, .quiet = true) != NULL);
    for (int epoch = 0; epoch < 3; epoch++) {
        eg_iterator *it = eg_iterator_new(data);
        for (eg_tensor *c[EG_MAX_COMPONENTS]; eg_iterator_next(it, c) == EG_NEXT;) {
            EG_SCOPE;
            eg_tape *tape = eg_tape_begin();
            eg_tensor *loss = eg_sparse_categorical_crossentropy(c[1], eg_call(looped, c[0], .training = true)),
                      *vars[8], *grads[8];
            int n = eg_layer_trainable_weights(looped, vars, 8);
            CHECK(eg_tape_gradients(tape, loss, vars, n, grads) && eg_apply_gradients(adam, grads, vars, n));
        }
        eg_iterator_release(it);
    }
    CHECK_SAME(eg_call(fitted, x), eg_call(looped, x), 0);
    eg_optimizer_release(adam);
    eg_dataset_release(data);
    eg_layer_release(fitted);
    eg_layer_release(looped);
}

TEST(arrays_are_shuffled_and_validated) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled(), *again = compiled(), *still = compiled();
    eg_seed(5);
    const eg_history *h = eg_fit_arrays(model, x, y, .epochs = 2, .batch_size = 10, .validation_x = x,
                                        .validation_y = y, .quiet = true);
    eg_seed(5);
    const eg_history *same = eg_fit_arrays(again, x, y, .epochs = 2, .batch_size = 10, .quiet = true);
    const eg_history *ordered = eg_fit_arrays(still, x, y, .epochs = 2, .batch_size = 10, .no_shuffle = true,
                                              .quiet = true);
    REQUIRE(h && same && ordered);
    CHECK_INT(eg_history_batches(h), 14);
    CHECK_NEAR(eg_history_batch_loss(h, 13), eg_history_batch_loss(same, 13), 0);
    CHECK(eg_history_batch_loss(h, 0) != eg_history_batch_loss(ordered, 0));
    CHECK(!isnan(eg_history_value(h, "val_loss", -1)));
    double none = 0;
    CHECK_ERROR((none = eg_history_value(same, "val_loss", -1), isnan(none) ? NULL : same), EG_ERROR_ARGUMENT,
                "no 'val_loss'; it has loss, accuracy, learning_rate (no .validation was given)");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .validation_x = x), EG_ERROR_ARGUMENT, "both");
    CHECK_ERROR(eg_fit_arrays(model, x, eg_zeros(EG_INT32, EG_SHAPE(3))), EG_ERROR_SHAPE, "3");
    CHECK_ERROR(eg_fit_arrays(model, x, NULL), EG_ERROR_NULL, "NULL");
    eg_layer_release(model);
    eg_layer_release(again);
    eg_layer_release(still);
}

TEST(sample_and_class_weights) {
    // SGD at rate 1 on (w x - y)^2: the step is 2 mean of weight times y
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_constant(EG_SHAPE(2, 1), 0, 1),
              *w = eg_constant(EG_SHAPE(2), 5, 0.25);
    eg_layer *plain = line_model(eg_sgd(.learning_rate = 1), eg_mean_squared_error);
    CHECK_NEAR(eg_train_on_batch(plain, x, y), 0.5, 1e-6);
    CHECK_NEAR(weight(plain), 1, 1e-6);
    eg_layer *samples = line_model(eg_sgd(.learning_rate = 1), eg_mean_squared_error);
    CHECK_NEAR(eg_train_on_batch(samples, x, y, .sample_weights = w), 0.125, 1e-6);
    CHECK_NEAR(weight(samples), 0.25, 1e-6);
    eg_layer *by_class = line_model(eg_sgd(.learning_rate = 1), eg_mean_squared_error);
    CHECK_NEAR(eg_train_on_batch(by_class, x, y, .class_weights = EG_CLASS_WEIGHTS(7, 3)), 1.5, 1e-6);
    CHECK_NEAR(weight(by_class), 3, 1e-6);
    eg_layer *both = line_model(eg_sgd(.learning_rate = 1), eg_mean_squared_error);
    CHECK(eg_fit_arrays(both, x, y, .sample_weights = w, .class_weights = EG_CLASS_WEIGHTS(7, 3), .no_shuffle = true,
                        .quiet = true) != NULL);
    CHECK_NEAR(weight(both), 0.75, 1e-6);
    CHECK_NEAR(eg_test_on_batch(both, x, y), 0.5 * (0.75 * 0.75 + 0.0625), 1e-6);
    CHECK_ERROR(eg_train_on_batch(both, x, y, .sample_weights = eg_ones(EG_FLOAT32, EG_SHAPE(3))), EG_ERROR_SHAPE,
                "[3]");
    CHECK_NEAR(weight(both), 0.75, 1e-6);
    CHECK_ERROR(eg_train_on_batch(both, x, y, .class_weights = EG_CLASS_WEIGHTS(7, -3)), EG_ERROR_ARGUMENT,
                "class 1 weighs -3");
    CHECK_NEAR(weight(both), 0.75, 1e-6);
    CHECK_ERROR(eg_fit_arrays(both, x, y, .quiet = true, .validation_every = 3), EG_ERROR_ARGUMENT,
                ".validation_every is given, but no .validation");
    CHECK_ERROR(eg_fit_arrays(both, x, y, .quiet = true, .validation_steps = 1), EG_ERROR_ARGUMENT,
                ".validation_steps");
    eg_fit_options missing;
    memset(&missing, 0, sizeof missing);
    missing.callbacks.count = 1;
    missing.quiet = true;
    CHECK_ERROR((eg_fit_arrays)(both, x, y, missing), EG_ERROR_ARGUMENT,
                "eg_fit_arrays: .callbacks: a list of 1 is NULL; it is written .callbacks = EG_CALLBACKS(a, b)");
    CHECK_ERROR(eg_train_on_batch(both, x, y, .class_weights = EG_CLASS_WEIGHTS(7)), EG_ERROR_INDEX, "1");
#ifndef TEST_CUDA  // a GPU tells of a bad index when the loss is read, after the step
    CHECK_ERROR(eg_train_on_batch(both, x, y, .class_weights = EG_CLASS_WEIGHTS(7)), EG_ERROR_INDEX,
                "eg_train_on_batch: EG_CLASS_WEIGHTS gives 1 weight, but label 1 occurs");
    CHECK_ERROR(eg_fit_arrays(both, x, eg_mul(y, 3), .class_weights = EG_CLASS_WEIGHTS(7, 3), .quiet = true),
                EG_ERROR_INDEX, "eg_fit_arrays: EG_CLASS_WEIGHTS gives 2 weights, but label 3 occurs");
    CHECK_NEAR(weight(both), 0.75, 1e-6);
#endif
    // Of sparse and of one-hot labels
    eg_layer *sparse = compiled(), *hot = small_model();
    CHECK(eg_compile(hot, eg_adam(.learning_rate = 0.02), eg_categorical_crossentropy));
    eg_tensor *p = points(), *labels = classes(p);
    CHECK_NEAR(eg_train_on_batch(sparse, p, labels, .class_weights = EG_CLASS_WEIGHTS(1, 4)),
               eg_train_on_batch(hot, p, eg_one_hot(labels, 2), .class_weights = EG_CLASS_WEIGHTS(1, 4)), 1e-6);
    eg_layer_release(plain);
    eg_layer_release(samples);
    eg_layer_release(by_class);
    eg_layer_release(both);
    eg_layer_release(sparse);
    eg_layer_release(hot);
}

TEST(optimizers_and_metrics_belong_to_one_model) {
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1);
    eg_metric *error = eg_metric_mean_absolute_error();
    eg_layer *a = line_model(sgd, eg_mean_squared_error), *b = line_model(eg_sgd(), eg_mean_squared_error);
    CHECK_ERROR(eg_compile(b, sgd, eg_mean_squared_error), EG_ERROR_STATE,
                "the optimizer (sgd) belongs to another model already");
    CHECK_ERROR(eg_compile(a, sgd, eg_mean_squared_error), EG_ERROR_STATE, "eg_optimizer_retain it");
    CHECK(eg_compile(a, eg_sgd(), eg_mean_squared_error, error));          // and sgd is gone
    CHECK_ERROR(eg_compile(b, eg_sgd(), eg_mean_squared_error, error), EG_ERROR_STATE,
                "metric mean_absolute_error belongs to another model already");
#ifdef EAGER_DEBUG
    eg_optimizer *gone = eg_sgd();
    eg_metric *forgotten = eg_metric_mean_absolute_error();
    eg_optimizer_release(gone);
    eg_metric_release(forgotten);
    CHECK_ERROR(eg_compile(b, gone, eg_mean_squared_error), EG_ERROR_STATE,
                "eg_compile: the optimizer was used after its last reference was released");
    CHECK_ERROR(eg_compile(b, eg_sgd(), eg_mean_squared_error, forgotten), EG_ERROR_STATE,
                "eg_compile: the metric was used after its last reference was released");
#endif
    eg_metric *twice = eg_metric_mean_absolute_error();
    CHECK_ERROR(eg_compile(b, eg_sgd(), eg_mean_squared_error, twice, twice), EG_ERROR_STATE,
                "eg_compile: metric mean_absolute_error is listed more than once; make one for each, or "
                "eg_metric_retain it");
    sgd = eg_sgd(.learning_rate = 0.5);
    CHECK(eg_compile(b, sgd, eg_mean_squared_error, twice, eg_metric_retain(twice)));
    CHECK(eg_compile(a, eg_optimizer_retain(sgd), eg_mean_squared_error));             // two references, two models
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    CHECK_NEAR(eg_train_on_batch(a, x, x), 1, 1e-6);
    eg_layer_release(a);
    CHECK_NEAR(eg_train_on_batch(b, x, x), 1, 1e-6);
    CHECK_INT(eg_optimizer_steps(sgd), 2);
    eg_layer_release(b);
}
TEST(weights_in_the_dataset) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_constant(EG_SHAPE(2, 1), 0, 1),
              *w = eg_constant(EG_SHAPE(2), 5, 0.25);
    eg_layer *model = line_model(eg_sgd(.learning_rate = 1), eg_mean_squared_error);
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y, w), 2),
               *short_one = eg_dataset_batch(eg_dataset_from_slices(x), 2);
    CHECK(eg_fit(model, data, .quiet = true) != NULL);
    CHECK_NEAR(weight(model), 0.25, 1e-6);
    CHECK_ERROR(eg_fit(model, short_one, .quiet = true), EG_ERROR_ARGUMENT, "1 component(s)");
    eg_tensor *wide = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3));
    eg_dataset *odd = eg_dataset_batch(eg_dataset_from_slices(x, y, wide), 2);
    CHECK_ERROR(eg_fit(model, odd, .quiet = true), EG_ERROR_SHAPE,
                "component 2 of the dataset was read as sample weights");
    eg_fit_arrays(model, x, y, .sample_weights = wide, .quiet = true);
    CHECK(eg_error() == EG_ERROR_SHAPE && !strstr(eg_error_message(), "of the dataset"));
    eg_error_clear();
    eg_dataset_release(odd);
    eg_dataset *none = eg_dataset_batch(eg_dataset_from_slices(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 1)),
                                                               eg_zeros(EG_FLOAT32, EG_SHAPE(0, 1))), 2),
               *endless = eg_dataset_repeat(eg_dataset_retain(data), -1);
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .validation = none), EG_ERROR_ARGUMENT,
                "eg_fit: the validation dataset has no elements");
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .validation = endless), EG_ERROR_ARGUMENT,
                "eg_fit: the validation dataset has no end; give .validation_steps");
    CHECK_ERROR(eg_evaluate(model, none, .quiet = true), EG_ERROR_ARGUMENT, "eg_evaluate: the dataset has no elements");
    eg_dataset_release(none);
    const char *path = test_temp("only_a_header.csv");             // what was read is named
    FILE *file = fopen(path, "w");
    REQUIRE(file && fputs("a,b\n", file) >= 0 && !fclose(file));
    none = eg_dataset_batch(eg_dataset_csv(&path, 1, .header = true, .components = {{.columns = "a"},
                                                                                    {.columns = "b"}}), 2);
    CHECK_ERROR(eg_fit(model, none, .quiet = true), EG_ERROR_ARGUMENT, "eg_fit: the dataset has no elements; its first "
                "file is ");
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .validation = none), EG_ERROR_ARGUMENT, "only_a_header.csv");
    CHECK_ERROR(eg_evaluate(model, none, .quiet = true), EG_ERROR_ARGUMENT, "only_a_header.csv");
    CHECK_ERROR(eg_predict_dataset(model, none), EG_ERROR_ARGUMENT, "only_a_header.csv");
    eg_dataset_release(none);
    eg_dataset_release(endless);
    eg_dataset_release(data);
    eg_dataset_release(short_one);
    eg_layer_release(model);
}

TEST(accumulated_gradients) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1)), *y = eg_constant(EG_SHAPE(4, 1), 0, 1, 2, 3);
    eg_layer *whole = line_model(eg_sgd(.learning_rate = 0.5), eg_mean_squared_error),
             *parts = line_model(eg_sgd(.learning_rate = 0.5, .accumulate_steps = 4), eg_mean_squared_error);
    CHECK(eg_fit_arrays(whole, x, y, .batch_size = 4, .no_shuffle = true, .quiet = true) != NULL);
    CHECK(eg_fit_arrays(parts, x, y, .batch_size = 1, .no_shuffle = true, .quiet = true) != NULL);
    CHECK_NEAR(weight(parts), weight(whole), 1e-6);
    CHECK_NEAR(weight(whole), 1.5, 1e-6);
    eg_layer_release(whole);
    eg_layer_release(parts);
}

TEST(regularizers_count) {
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true, .kernel_initializer = EG_INIT_ONES,
                                                   .kernel_l2 = 0.5));
    CHECK(eg_compile(model, eg_sgd(.learning_rate = 1), eg_mean_squared_error));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    CHECK_NEAR(eg_train_on_batch(model, x, x), 0.5, 1e-6);   // no error, w = 1: the regularizer alone
    CHECK_NEAR(weight(model), 0, 1e-6);
    eg_layer_release(model);
}

static eg_tensor *more_in_training(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_add(in[0], eg_training() ? 1 : 0);
}

TEST(training_reaches_the_layers) {
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true, .kernel_initializer = EG_INIT_ONES),
                                    eg_layer_custom("more", more_in_training, NULL));
    CHECK(eg_compile(model, eg_sgd(.learning_rate = EG_ZERO), eg_mean_squared_error));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1));
    CHECK_NEAR(eg_train_on_batch(model, x, x), 1, 1e-6);
    CHECK_NEAR(eg_test_on_batch(model, x, x), 0, 1e-6);
    CHECK_TENSOR(eg_predict(model, x), 1e-6, 1, 1, 1, 1);
    eg_layer_release(model);
}

static eg_tensor *absolute(eg_tensor *y, eg_tensor *p) { return eg_abs(eg_sub(y, p)); }
static eg_tensor *nothing(eg_tensor *y, eg_tensor *p) { (void)y; (void)p; return NULL; }

TEST(losses_of_ones_own) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_constant(EG_SHAPE(2, 1), 1, 3);
    eg_layer *model = line_model(eg_sgd(.learning_rate = 0.5), absolute);
    CHECK_NEAR(eg_train_on_batch(model, x, y, .sample_weights = eg_constant(EG_SHAPE(2), 1, 0)), 0.5, 1e-6);
    CHECK_NEAR(weight(model), 0.25, 1e-6);
    CHECK(eg_compile(model, eg_sgd(), nothing));
    CHECK_ERROR(eg_train_on_batch(model, x, y), EG_ERROR_NULL, "the loss function returned NULL");
    eg_layer_release(model);
}

TEST(binary_metrics_see_probabilities) {
    eg_tensor *x = eg_constant(EG_SHAPE(4, 1), -2, -1, 0.2, 3), *y = eg_constant(EG_SHAPE(4, 1), 0, 0, 1, 1);
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true, .kernel_initializer = EG_INIT_ONES));
    CHECK(eg_compile(model, eg_sgd(), eg_binary_crossentropy, EG_METRIC_ACCURACY, eg_metric_auc()));
    eg_test_on_batch(model, x, y);
    CHECK_NEAR(eg_model_result(model, "accuracy"), 1, 0);
    CHECK_NEAR(eg_model_result(model, "auc"), 1, 1e-6);
    CHECK_STR(eg_metric_name(eg_model_metric(model, 1)), "auc");
    CHECK(eg_model_metric(model, 2) == NULL);
    CHECK(eg_model_reset_metrics(model));
    CHECK_NEAR(eg_metric_result(eg_model_metric(model, 0)), 0, 0);
    eg_layer_release(model);
}

static eg_tensor *first_step_only(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_with_mask(in[0], eg_reshape(eg_constant_of(EG_BOOL, EG_SHAPE(4), 1, 0, 1, 0), EG_SHAPE(2, 2)));
}

TEST(masked_steps_do_not_count) {  // two sequences of two steps, of which the second is padding
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true, .kernel_initializer = EG_INIT_ONES),
                                    eg_layer_custom("masking", first_step_only, NULL));
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error, eg_metric_mean_absolute_error()));
    eg_tensor *x = eg_reshape(eg_constant(EG_SHAPE(4), 1, 50, 3, 70), EG_SHAPE(2, 2, 1)), *y = eg_zeros_like(x);
    CHECK_NEAR(eg_test_on_batch(model, x, y), 5, 1e-6);
    CHECK_NEAR(eg_model_result(model, "mean_absolute_error"), 2, 1e-6);
    CHECK_NEAR(eg_test_on_batch(model, x, y, .sample_weights = eg_constant(EG_SHAPE(2), 2, 0)), 1, 1e-6);
    eg_layer_release(model);
}

// Losses of one's own: values a step are weighed by the mask; what takes the steps together has to have seen it.
static eg_tensor *step_errors(eg_tensor *y, eg_tensor *p) {
    return eg_reduce_mean(eg_squared_difference(p, y), .axes = EG_AXES(-1));
}
static eg_tensor *one_number(eg_tensor *y, eg_tensor *p) { return eg_reduce_mean(step_errors(y, p)); }
static eg_tensor *masked_number(eg_tensor *y, eg_tensor *p) {
    eg_tensor *count = eg_cast(eg_mask_of(p), EG_FLOAT32);
    return eg_div(eg_reduce_sum(eg_mul(step_errors(y, p), count)), eg_reduce_sum(count));
}
static eg_tensor *by_loss_mean(eg_tensor *y, eg_tensor *p) { return eg_loss_mean(eg_mean_squared_error, y, p); }
static eg_tensor *by_sequence(eg_tensor *y, eg_tensor *p) {
    return eg_reduce_sum(eg_mul(step_errors(y, p), eg_cast(eg_mask_of(p), EG_FLOAT32)), .axes = EG_AXES(1));
}
static eg_tensor *blind_by_sequence(eg_tensor *y, eg_tensor *p) {
    return eg_reduce_sum(step_errors(y, p), .axes = EG_AXES(1));
}
TEST(losses_that_sum_over_masked_steps) {
    eg_layer *model = eg_sequential(eg_layer_dense(1), eg_layer_custom("masking", first_step_only, NULL));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2, 1));
    CHECK(eg_compile(model, eg_sgd(), blind_by_sequence));
    CHECK_ERROR(isnan(eg_test_on_batch(model, x, x)), EG_ERROR_SHAPE, "and the predictions have a mask bool [2, 2]");
    eg_layer_release(model);
}
TEST(losses_of_ones_own_mind_masks) {
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true, .kernel_initializer = EG_INIT_ONES),
                                    eg_layer_custom("masking", first_step_only, NULL));
    eg_tensor *x = eg_reshape(eg_constant(EG_SHAPE(4), 1, 50, 3, 70), EG_SHAPE(2, 2, 1)), *y = eg_zeros_like(x),
              *weights = eg_constant(EG_SHAPE(2), 2, 0);
    static eg_loss *const losses[] = {step_errors, masked_number, by_loss_mean, by_sequence};
    for (int i = 0; i < 4; i++) {
        CHECK(eg_compile(model, eg_sgd(.learning_rate = EG_ZERO), losses[i]));
        CHECK_NEAR(eg_test_on_batch(model, x, y), 5, 1e-6);
        CHECK_NEAR(eg_train_on_batch(model, x, y), 5, 1e-6);
    }
    CHECK_NEAR(eg_test_on_batch(model, x, y, .sample_weights = weights), 1, 1e-6);
    CHECK(eg_compile(model, eg_sgd(), masked_number));
    CHECK_ERROR(isnan(eg_test_on_batch(model, x, y, .sample_weights = weights)), EG_ERROR_SHAPE,
                "with weights it must return one value an example");
    CHECK(eg_compile(model, eg_sgd(), one_number));
    CHECK_ERROR(isnan(eg_test_on_batch(model, x, y)), EG_ERROR_SHAPE,
                "with a mask it must return one value an example (a step), as eg_loss_per_example does, or mind "
                "eg_mask_of(predictions) itself");
    eg_layer_release(model);
}
TEST(a_loop_of_ones_own_minds_masks) {
    eg_tensor *x = eg_reshape(eg_constant(EG_SHAPE(4), 1, 50, 3, 70), EG_SHAPE(2, 2, 1)), *y = eg_zeros_like(x),
              *weights = eg_constant(EG_SHAPE(2), 2, 0);
    eg_tensor *p = first_step_only(&x, NULL);
    eg_metric *m = eg_metric_mean_absolute_error();
    CHECK_NEAR(eg_item(eg_loss_mean(eg_mean_squared_error, y, p)), 5, 1e-6);
    CHECK_NEAR(eg_item(eg_loss_mean(step_errors, y, p)), 5, 1e-6);
    CHECK_NEAR(eg_item(eg_loss_mean(eg_mean_squared_error, y, p, .weights = weights)), 1, 1e-6);
    CHECK(eg_metric_update(m, y, p));
    CHECK_NEAR(eg_metric_result(m), 2, 1e-6);
    CHECK(eg_metric_update(m, y, p, .weights = weights));
    CHECK_NEAR(eg_metric_result(m), (1 + 3 + 2 * 1) / 4., 1e-6);
    CHECK_ERROR(eg_metric_update(m, y, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(3))), EG_ERROR_SHAPE, "weights");
    CHECK_ERROR(eg_loss_mean(eg_mean_squared_error, y, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(3))), EG_ERROR_SHAPE,
                "weights");
    eg_metric_release(m);
}

static bool weighted_sum(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(*(eg_tensor **)user, eg_add(in[0], in[1]));
    return out[0] != NULL;
}

TEST(several_inputs) {
    eg_tensor *w = NULL, *a = eg_constant(EG_SHAPE(2, 1), 1, 2), *b = eg_constant(EG_SHAPE(2, 1), 3, 4);
    eg_layer *model = eg_layer_custom_multi("sum", 2, 1, weighted_sum, &w);
    w = eg_layer_weight(model, "w", eg_ones(EG_FLOAT32, EG_SHAPE(1)), true);
    CHECK(eg_compile(model, eg_sgd(.learning_rate = 0.01), eg_mean_squared_error));
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(a, b, eg_mul(2, eg_add(a, b))), 2);
    CHECK_NEAR(eg_evaluate(model, data, .inputs = 2, .quiet = true), 26, 1e-5);
    CHECK_TENSOR(eg_predict_dataset(model, data, .inputs = 2), 1e-6, 4, 6);
    CHECK(eg_fit(model, data, .inputs = 2, .epochs = 50, .quiet = true) != NULL);
    CHECK_TENSOR(w, 1e-3, 2);
    CHECK_ERROR(eg_predict_dataset(model, data, .inputs = 4), EG_ERROR_ARGUMENT, "4 inputs");
    CHECK_ERROR(eg_fit(model, data, .quiet = true), EG_ERROR_NULL, "operand 1 is NULL");
    eg_dataset_release(data);
    eg_layer_release(model);
}

// ---- the end of a dataset

// Two outputs: a class and a number. Values by Keras 3 (SGD at .1, loss_weights 1 and .5, two epochs of one batch).
typedef struct heads { eg_layer *a, *b; } heads;
static bool both_heads(eg_tensor *const *in, eg_tensor **out, void *user) {
    heads *h = (heads *)user;
    out[0] = eg_call(h->a, in[0]);
    out[1] = eg_call(h->b, in[0]);
    return out[0] && out[1];
}
static eg_layer *two_headed(heads *h) {
    eg_layer *model = eg_layer_custom_multi("heads", 1, 2, both_heads, h),
             *parts[2] = {h->a = eg_layer_dense(3), h->b = eg_layer_dense(1)};
    for (int i = 0; i < 2; i++) {
        CHECK(eg_layer_track(model, i ? "b" : "a", parts[i]) != NULL);
        CHECK(eg_layer_build(parts[i], EG_SHAPE(-1, 2)));
    }
    eg_tensor *w[4];
    CHECK_INT(eg_layer_weights(model, w, 4), 4);
    eg_assign(w[0], eg_constant(EG_SHAPE(2, 3), .1, .2, .3, -.1, .4, 0));
    eg_assign(w[1], eg_constant(EG_SHAPE(3), .1, 0, -.1));
    eg_assign(w[2], eg_constant(EG_SHAPE(2, 1), .5, -.5));
    eg_assign(w[3], eg_constant(EG_SHAPE(1), .25));
    return model;
}
TEST(several_outputs) {
    eg_tensor *x = eg_constant(EG_SHAPE(4, 2), 1, 2, 3, -1, -2, .5, .5, .5),
              *y1 = eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 2, 1, 2), *y2 = eg_constant(EG_SHAPE(4, 1), 1, 0, 2, -1);
    heads h;
    eg_layer *model = two_headed(&h);
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y1, y2), 4),
               *uneven = eg_dataset_batch(eg_dataset_from_slices(x, y1, y2), 3),
               *single = eg_dataset_batch(eg_dataset_from_slices(x, y1), 4);
    CHECK(eg_compile_outputs(model, eg_sgd(.learning_rate = 0.1), EG_OUTPUT("a", eg_sparse_categorical_crossentropy,
                                                                            .metrics = EG_METRICS(EG_METRIC_ACCURACY)),
                             EG_OUTPUT("b", eg_mean_squared_error, .weight = 0.5,
                                       .metrics = EG_METRICS(eg_metric_mean_absolute_error(.name = "mae")))));
    CHECK_NEAR(eg_evaluate(model, uneven, .quiet = true), 3.3003757, 1e-5);
    CHECK_NEAR(eg_model_result(model, "a_loss"), 1.1519382, 1e-5);           // however the batches are cut
    CHECK_NEAR(eg_model_result(model, "b_mae"), 1.9375, 1e-5);
    const eg_history *history =
        eg_fit(model, data, .epochs = 2, .validation = data, .quiet = true,
               .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.monitor = "val_b_loss", .patience = 3)));
    REQUIRE(history != NULL);
    static const struct { const char *name; double values[2]; } want[] = {{"loss", {3.3003757, 2.2716248}},
                                                                          {"a_loss", {1.1519382, 1.0494480}},
                                                                          {"b_loss", {4.2968750, 2.4443536}},
                                                                          {"a_accuracy", {.25, .5}},
                                                                          {"b_mae", {1.9375, 1.4910157}}};
    for (int i = 0; i < 5; i++) {
        CHECK_STR(eg_history_name(history, i), want[i].name);
        for (int e = 0; e < 2; e++) CHECK_NEAR(eg_history_value(history, want[i].name, e), want[i].values[e], 1e-5);
    }
    CHECK_NEAR(eg_history_value(history, "val_loss", 0), want[0].values[1], 1e-5);
    eg_tensor *w[4];
    CHECK_INT(eg_layer_weights(model, w, 4), 4);
    CHECK_TENSOR(w[0], 1e-6, .12324373, .07173049, .40502581, -.02357636, .36356485, -.03998849);
    CHECK_TENSOR(w[3], 1e-6, .29753909);
    CHECK_SAME(eg_predict(model, x, .batch_size = 3), eg_call(h.a, x), 1e-6);
    CHECK_SAME(eg_predict(model, x, .output = 1), eg_call(h.b, x), 1e-6);
    CHECK_ERROR(eg_predict(model, x, .output = 2), EG_ERROR_ARGUMENT, "3 outputs asked for; the layer has 2");
    CHECK_ERROR(eg_predict(model, x, .output = -1), EG_ERROR_ARGUMENT,
                "eg_predict: .output is -1; it must be at least 0 and at most 7");
    // Sample weights are for both; what does not fit is told.
    eg_dataset *weighted = eg_dataset_batch(eg_dataset_from_slices(x, y1, y2, eg_constant(EG_SHAPE(4), 0, 0, 0, 0)), 4);
    CHECK_NEAR(eg_evaluate(model, weighted, .quiet = true), 0, 0);
    CHECK_ERROR(
        eg_fit(model, single, .quiet = true), EG_ERROR_ARGUMENT,
        "an element has 2 component(s); for a model of 1 input and 2 outputs it must have 3, or 4 with sample weights");
    CHECK_ERROR(eg_train_on_batch(model, x, y1), EG_ERROR_ARGUMENT, "2 outputs");
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .class_weights = EG_CLASS_WEIGHTS(1, 2, 3)), EG_ERROR_ARGUMENT,
                ".class_weights are for models of one output");
    CHECK_ERROR(eg_compile_outputs(model, eg_sgd(), EG_OUTPUT("a", eg_huber), EG_OUTPUT("a", eg_huber)),
                EG_ERROR_ARGUMENT, "outputs 0 and 1 are both called 'a'");
    CHECK_ERROR(eg_compile_outputs(model, eg_sgd(), EG_OUTPUT("val", eg_huber), EG_OUTPUT("b", eg_huber)),
                EG_ERROR_ARGUMENT,
                "eg_compile_outputs: a result would be called 'val_loss', which means something else");
    CHECK_ERROR(eg_compile_outputs(model, eg_sgd(), EG_OUTPUT("", eg_huber), EG_OUTPUT("b", eg_huber)),
                EG_ERROR_ARGUMENT, "called 'loss'");
    CHECK_ERROR(eg_compile_outputs(model, eg_sgd(), EG_OUTPUT("a", eg_huber),
                                   EG_OUTPUT("b", eg_huber,
                                             .metrics = EG_METRICS(eg_metric_mean_absolute_error(.name = "loss")))),
                EG_ERROR_ARGUMENT, "called 'b_loss'");
    CHECK_ERROR(eg_compile_outputs(model,
                                   eg_sgd(), EG_OUTPUT("a", eg_huber, .metrics = EG_METRICS(eg_metric_auc(), NULL))),
                EG_ERROR_NULL, "metric");
    CHECK_ERROR(eg_compile_outputs(h.a, eg_sgd(), EG_OUTPUT("a", eg_huber), EG_OUTPUT("b", eg_huber)),
                EG_ERROR_ARGUMENT, "2 outputs; the model, a Dense, has 1");
    CHECK(eg_compile_outputs(model, eg_sgd(), EG_OUTPUT(NULL, eg_sparse_categorical_crossentropy),
                             EG_OUTPUT(NULL, eg_huber, .weight = EG_ZERO)));
    double loss = eg_evaluate(model, data, .quiet = true);
    CHECK_NEAR(loss, eg_model_result(model, "output_1_loss"), 1e-6);
    CHECK(eg_model_result(model, "output_2_loss") > 0);
    // of the others nothing is learned
    CHECK(eg_compile_outputs(model, eg_sgd(), EG_OUTPUT("first", eg_sparse_categorical_crossentropy,
                                                        .metrics = EG_METRICS(EG_METRIC_ACCURACY))));
    CHECK_NEAR(eg_evaluate(model, single, .quiet = true),
               eg_item(eg_sparse_categorical_crossentropy(y1, eg_call(h.a, x))), 1e-6);
    CHECK(!isnan(eg_model_result(model, "accuracy")));
    CHECK(eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy));
    CHECK_ERROR(eg_fit(model, data, .quiet = true), EG_ERROR_ARGUMENT,
                "an element has labels for 2 outputs, as many as the model has, and eg_compile gave one loss; "
                "eg_compile_outputs takes one for each");
    CHECK(eg_fit_arrays(model, x, y1, .sample_weights = eg_ones(EG_FLOAT32, EG_SHAPE(4)), .quiet = true) != NULL);
    eg_dataset_release(data);
    eg_dataset_release(uneven);
    eg_dataset_release(single);
    eg_dataset_release(weighted);
    eg_layer_release(model);
}

TEST(steps_and_datasets_without_end) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_dataset *endless = eg_dataset_repeat(eg_dataset_batch(eg_dataset_from_slices(x, y), 16), -1),
               *four = eg_dataset_batch(eg_dataset_from_slices(x, y), 16);
    CHECK_ERROR(eg_fit(model, endless, .quiet = true), EG_ERROR_ARGUMENT, ".steps_per_epoch");
    CHECK_ERROR(eg_evaluate(model, endless, .quiet = true), EG_ERROR_ARGUMENT, "no end");
    CHECK_ERROR(eg_predict_dataset(model, endless), EG_ERROR_ARGUMENT, ".steps");
    CHECK(!isnan(eg_evaluate(model, endless, .steps = 2, .quiet = true)));
    CHECK_SHAPE(eg_predict_dataset(model, endless, .steps = 2), 32, 2);
    const eg_history *h = eg_fit(model, endless, .epochs = 3, .steps_per_epoch = 5, .validation = endless,
                                 .validation_steps = 1, .quiet = true);
    CHECK_INT(eg_history_batches(h), 15);
    // begins again in the middle of an epoch
    h = eg_fit(model, four, .epochs = 2, .steps_per_epoch = 6, .quiet = true);
    CHECK_INT(eg_history_batches(h), 12);
    h = eg_fit(model, four, .epochs = 4, .initial_epoch = 2, .validation = four, .validation_every = 2, .quiet = true);
    CHECK_INT(eg_history_epochs(h), 2);
    CHECK(isnan(eg_history_value(h, "val_loss", 0)) && !isnan(eg_history_value(h, "val_loss", 1)));
    h = eg_fit(model, four, .epochs = 5, .validation = four, .validation_every = 2, .quiet = true);
    for (int epoch = 0; epoch < 5; epoch++) CHECK_INT(isnan(eg_history_value(h, "val_loss", epoch)), epoch % 2 == 0);
    CHECK_NEAR(eg_model_result(model, "val_loss"), eg_history_value(h, "val_loss", 3), 0);     // of the last validation
    h = eg_fit(model, four, .epochs = 8, .validation = four, .validation_every = 3, .quiet = true,
               .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.min_delta = 9)));
    CHECK_INT(eg_history_epochs(h), 6);                      // epochs without a validation do not count
    eg_dataset *empty = eg_dataset_take(eg_dataset_retain(four), 0);
    CHECK_ERROR(eg_fit(model, empty, .quiet = true), EG_ERROR_ARGUMENT, "no elements");
    CHECK_ERROR(eg_evaluate(model, empty, .quiet = true), EG_ERROR_ARGUMENT, "no elements");
    CHECK_ERROR(eg_predict_dataset(model, empty), EG_ERROR_ARGUMENT, "no elements");
    eg_dataset_release(empty);
    eg_dataset_release(endless);
    eg_dataset_release(four);
    eg_layer_release(model);
}

// ---- errors

static eg_status two_good_batches(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_ones(EG_FLOAT32, EG_SHAPE(2, i < 2 ? 1 : 3));
    out[1] = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    return EG_NEXT;
}

TEST(an_error_names_its_place) {
    eg_layer *model = line_model(eg_sgd(.learning_rate = 0.1), eg_mean_squared_error);
    eg_dataset *data = eg_dataset_from_generator(two_good_batches, NULL, 2, NULL);
    CHECK(eg_fit(model, data, .epochs = 1, .steps_per_epoch = 2, .quiet = true) != NULL);
    double before = weight(model);
    CHECK(eg_fit(model, data, .epochs = 9, .steps_per_epoch = 5, .quiet = true) == NULL);
    CHECK_CONTAINS(eg_error_message(), "(epoch 1, batch 3)");
    CHECK_INT(eg_history_batches(eg_model_history(model)), 2);
    eg_error_clear();
    CHECK(weight(model) > before);                           // what went before stays learned
    CHECK_ERROR(eg_scalar_of(EG_INT32, 0.5), EG_ERROR_DTYPE, "0.5");  // and later errors are in no batch
    (void)eg_scalar_of(EG_INT32, 0.5);
    CHECK(strstr(eg_error_message(), "batch") == NULL);
    eg_error_clear();
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    CHECK(!isnan(eg_train_on_batch(model, x, x)));           // it can be used
    CHECK(isnan(eg_evaluate(model, data, .steps = 4, .quiet = true)));
    CHECK_CONTAINS(eg_error_message(), "(batch 3)");
    eg_error_clear();
    eg_dataset_release(data);
    eg_layer_release(model);
}

TEST(what_cannot_be) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y), 16);
    CHECK_ERROR(eg_fit(model, data), EG_ERROR_STATE, "eg_compile");
    CHECK_ERROR(eg_evaluate(model, data), EG_ERROR_STATE, "eg_compile");
    CHECK_ERROR(eg_train_on_batch(model, x, y), EG_ERROR_STATE, "eg_compile");
    CHECK_ERROR(eg_compile(NULL, eg_sgd(), eg_huber, EG_METRIC_ACCURACY), EG_ERROR_NULL, "model");
    CHECK_ERROR(eg_compile(model, NULL, eg_huber), EG_ERROR_NULL, "optimizer");
    CHECK_ERROR(eg_compile(model, eg_sgd(), NULL), EG_ERROR_NULL, "loss");
    CHECK_ERROR(eg_compile(model, eg_sgd(), eg_huber, (eg_metric *)NULL), EG_ERROR_NULL, "metric");
    CHECK_ERROR(eg_compile(model, eg_sgd(), eg_huber, eg_metric_mean_absolute_error(.name = "loss")), EG_ERROR_ARGUMENT,
                "eg_compile: a result would be called 'loss'");
    CHECK_ERROR(eg_compile(model, eg_sgd(), eg_huber, eg_metric_mean_absolute_error(.name = "val_mae")),
                EG_ERROR_ARGUMENT, "called 'val_mae'");
    CHECK(eg_model_optimizer(model) == NULL && eg_model_history(model) == NULL);
    CHECK_ERROR(eg_adam(.rho = 1), EG_ERROR_ARGUMENT, "eg_adam: has no option .rho (at training.c:");
    eg_optimizer *sgd = eg_sgd();
    CHECK(eg_compile(model, sgd, eg_sparse_categorical_crossentropy));
    CHECK(eg_model_optimizer(model) == sgd);
    CHECK_ERROR(eg_fit(model, NULL), EG_ERROR_NULL, "dataset");
    CHECK_ERROR(eg_fit(NULL, data), EG_ERROR_NULL, "model");
    CHECK_ERROR(eg_fit(model, data, .batch_size = 3), EG_ERROR_ARGUMENT, "eg_fit_arrays");
    CHECK_ERROR(eg_fit(model, data, .epochs = -1), EG_ERROR_ARGUMENT, "eg_fit: .epochs is -1; it must be at least 1");
    CHECK_ERROR(eg_fit(model, data, .validation_every = -2), EG_ERROR_ARGUMENT, ".validation_every is -2");
    CHECK_ERROR(eg_fit(model, data, .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan(), NULL)), EG_ERROR_NULL,
                "callback 1");
    CHECK_ERROR(eg_predict(NULL, x), EG_ERROR_NULL, "model");
    CHECK_ERROR(eg_predict(model, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_evaluate(model, data, .batch_size = 3), EG_ERROR_ARGUMENT, "eg_evaluate_arrays");
    CHECK_ERROR(eg_evaluate(model, data, .output = 1), EG_ERROR_ARGUMENT, ".output is an option of eg_predict");
    CHECK_ERROR(eg_evaluate(model, data, .steps = -1), EG_ERROR_ARGUMENT, "eg_evaluate: .steps is -1");
    CHECK_ERROR(eg_predict(model, x, .steps = -1), EG_ERROR_ARGUMENT, "eg_predict: .steps is -1");
    eg_layer_set_trainable(model, false);
    CHECK_ERROR(eg_fit(model, data, .quiet = true), EG_ERROR_GRADIENT, "no trainable weights");
    eg_dataset_release(data);
    eg_layer_release(model);
}

// Probabilities where logits are wanted: an error that names both and the two ways out, in training, evaluation and by
// hand.
TEST(a_softmax_before_a_loss_on_logits) {
    eg_tensor *x = points(), *y = classes(x), *hot = eg_one_hot(y, 2),
              *column = eg_cast(eg_reshape(y, EG_SHAPE(ROWS, 1)), EG_FLOAT32);
    struct { eg_loss *logits, *shares; const char *name; eg_tensor *y; eg_activation activation; } cases[] = {
        {eg_sparse_categorical_crossentropy, eg_sparse_categorical_crossentropy_from_probabilities,
         "sparse_categorical_crossentropy", y, EG_SOFTMAX},
        {eg_categorical_crossentropy, eg_categorical_crossentropy_from_probabilities, "categorical_crossentropy", hot,
         EG_SOFTMAX},
        {eg_categorical_focal_crossentropy, eg_categorical_focal_crossentropy_from_probabilities,
         "categorical_focal_crossentropy", hot, EG_SOFTMAX},
        {eg_binary_crossentropy, eg_binary_crossentropy_from_probabilities, "binary_crossentropy", column, EG_SIGMOID},
        {eg_binary_focal_crossentropy, eg_binary_focal_crossentropy_from_probabilities, "binary_focal_crossentropy",
        column, EG_SIGMOID}};
    for (int i = 0; i < 5; i++) {
        char want[200];
        eg_layer *model = eg_sequential(eg_layer_dense(cases[i].y == column ? 1 : 2),
                                        eg_layer_activation(cases[i].activation));
        CHECK(eg_compile(model, eg_adam(), cases[i].logits));
        snprintf(want, sizeof want,
                 "eg_%s: it takes logits, and the predictions float32 [16, %d] (from eg_%s) are probabilities already",
                 cases[i].name, cases[i].y == column ? 1 : 2, cases[i].y == column ? "sigmoid" : "softmax");
        CHECK_ERROR(eg_fit_arrays(model, x, cases[i].y, .batch_size = 16, .quiet = true), EG_ERROR_ARGUMENT, want);
        snprintf(want, sizeof want, "or use eg_%s_from_probabilities (batch 1)", cases[i].name);
        CHECK_ERROR(eg_evaluate_arrays(model, x, cases[i].y, .quiet = true), EG_ERROR_ARGUMENT, want);
        CHECK_ERROR(cases[i].logits(cases[i].y, eg_call(model, x)), EG_ERROR_ARGUMENT, "EG_LINEAR");
        CHECK(eg_compile(model, eg_adam(), cases[i].shares, EG_METRIC_ACCURACY));
        CHECK(eg_fit_arrays(model, x, cases[i].y, .quiet = true) != NULL);
        eg_layer_release(model);
    }
    // A metric on logits gets logits, beside one that is given probabilities.
    eg_layer *model = eg_sequential(eg_layer_dense(1));
    CHECK(eg_compile(model, eg_adam(), eg_binary_focal_crossentropy, eg_metric_of(eg_binary_crossentropy),
                     eg_metric_auc()));
    CHECK(eg_fit_arrays(model, x, column, .quiet = true) != NULL);
    CHECK(eg_evaluate_arrays(model, x, column, .quiet = true) > 0);
    CHECK_NEAR(eg_model_result(model, "binary_crossentropy"),
               eg_item(eg_binary_crossentropy(column, eg_call(model, x))), 1e-6);
    eg_layer_release(model);
}

TEST(what_newcomers_feed) {                                  // single elements for batches, labels of another count
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_dataset *single = eg_dataset_from_slices(x, y),
               *good = eg_dataset_batch(eg_dataset_from_slices(x, eg_add(y, 1)), 16),
               *flat = eg_dataset_batch(eg_dataset_from_slices(y, y), 16);
    CHECK_ERROR(eg_fit(model, single, .quiet = true), EG_ERROR_SHAPE,
                "Dense takes inputs of rank 2 or more, not [4] (rank 1), in layer sequential/dense; is the dataset in "
                "batches? eg_dataset_batch(data, 32) makes some of single elements (epoch 1, batch 1)");
    CHECK_ERROR(eg_evaluate(model, single, .quiet = true), EG_ERROR_SHAPE, "eg_dataset_batch(data, 32)");
    CHECK_ERROR(eg_predict_dataset(model, single), EG_ERROR_SHAPE, "eg_dataset_batch(data, 32)");
    eg_fit(model, flat, .quiet = true);
    CHECK(eg_error() == EG_ERROR_SHAPE && !strstr(eg_error_message(), "eg_dataset_batch"));
    eg_error_clear();
    // no hint behind a fit
    CHECK_ERROR(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(4))), EG_ERROR_SHAPE,
                "makes a batch of it, in layer sequential/dense (at training.c:");
#ifndef TEST_CUDA                                        // a GPU tells of a bad label when the loss is read
    CHECK_ERROR(eg_fit(model, good, .quiet = true), EG_ERROR_INDEX,
                "eg_sparse_categorical_crossentropy: label 2 at position [");
    CHECK_ERROR(eg_fit(model, good, .quiet = true), EG_ERROR_INDEX,
                "is none of the 2 classes, which count from 0 (epoch 1, batch 1)");
    // not of the shuffled data's
    CHECK_ERROR(eg_fit(model, good, .quiet = true), EG_ERROR_INDEX, "] of this batch, int32 [16]");
#endif
    eg_dataset_release(single);
    eg_dataset_release(good);
    eg_dataset_release(flat);
    eg_layer_release(model);
}

TEST(what_newcomers_leave_out) {                              // an axis of the labels, or that of the batch
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = line_model(eg_sgd(), eg_mean_squared_error);
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true), EG_ERROR_SHAPE,
                "must have one shape: eg_expand_dims(labels, -1)");
    CHECK_ERROR(eg_mean_squared_error(y, eg_zeros(EG_FLOAT32, EG_SHAPE(ROWS, 2))), EG_ERROR_SHAPE,
                "class numbers are for the sparse losses");
    CHECK_ERROR(eg_call(model, eg_index(x, 0)), EG_ERROR_SHAPE,
                "(rank 1); if it is one example, eg_expand_dims(x, 0) makes a batch of it, in layer sequential/dense");
    CHECK_ERROR(eg_predict(model, eg_index(x, 0)), EG_ERROR_SHAPE, "eg_expand_dims(x, 0)");
    CHECK(eg_predict(model, eg_expand_dims(eg_index(x, 0), 0)) != NULL);
    eg_fit_arrays(model, y, y, .quiet = true);                 // many rows, each without an axis: no example at all
    CHECK(eg_error() == EG_ERROR_SHAPE && !strstr(eg_error_message(), "eg_expand_dims(x, 0)"));
    eg_error_clear();
    eg_layer_release(model);
}

TEST(arrays_are_named_in_errors) {
    eg_tensor *x = points(), *y = classes(x), *few = eg_zeros(EG_FLOAT32, EG_SHAPE(3)), *one = eg_scalar(1);
    eg_layer *model = compiled();
    CHECK_ERROR(eg_fit_arrays(model, x, NULL), EG_ERROR_NULL, "eg_fit_arrays: y is NULL");
    CHECK_ERROR(eg_fit_arrays(model, x, few), EG_ERROR_SHAPE,
                "(from eg_random_normal) has 64 rows, and y float32 [3] (from eg_zeros) has 3");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .sample_weights = few), EG_ERROR_SHAPE,
                "has 64 rows, and .sample_weights float32 [3]");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .validation_x = x, .validation_y = few), EG_ERROR_SHAPE,
                "has 64 rows, and .validation_y float32 [3]");
    CHECK_ERROR(eg_fit_arrays(model, one, y), EG_ERROR_SHAPE, "eg_fit_arrays: x is a scalar, which has no rows");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .batch_size = -2), EG_ERROR_ARGUMENT,
                "eg_fit_arrays: .batch_size is -2; it must be at least 1");
    CHECK_ERROR(eg_evaluate_arrays(model, x, few), EG_ERROR_SHAPE, "eg_evaluate_arrays: x float32");
    CHECK_ERROR(eg_evaluate_arrays(model, x, y, .batch_size = -1), EG_ERROR_ARGUMENT,
                "eg_evaluate_arrays: .batch_size is -1");
    CHECK_ERROR(eg_predict(model, one), EG_ERROR_SHAPE, "eg_predict: x is a scalar");
    CHECK_ERROR(eg_predict(model, x, .batch_size = -1), EG_ERROR_ARGUMENT, "eg_predict: .batch_size is -1");
    eg_layer_release(model);
}

static eg_tensor *gives_nothing(eg_tensor *const *in, void *user) { (void)in; (void)user; return NULL; }
TEST(an_error_of_a_stage_names_its_batch_once) {
    eg_tensor *x = points();
    eg_layer *model = compiled();
    eg_dataset *data = eg_dataset_batch(eg_dataset_map_one(eg_dataset_from_slices(x, classes(x)), gives_nothing, NULL),
                                        16);
    CHECK_ERROR(eg_fit(model, data, .quiet = true), EG_ERROR_NULL, "(epoch 1, batch 1)");
    eg_fit(model, data, .quiet = true);
    const char *mark = strstr(eg_error_message(), "(epoch 1, batch 1)");
    CHECK(mark && !strstr(mark + 1, "(epoch 1, batch 1)"));
    eg_error_clear();
    eg_dataset_release(data);
    eg_layer_release(model);
}

// ---- callbacks

typedef struct diary { char text[256]; int64_t batches; double losses; eg_layer *model; bool fail, stop; } diary;
static void note(diary *d, const char *word) { strncat(d->text, word, sizeof d->text - strlen(d->text) - 1); }
static bool on_begin(eg_fit_state *s, void *user) { note((diary *)user, "("); return s->epochs == 2; }
static bool on_epoch(eg_fit_state *s, void *user) { note((diary *)user, s->epoch == 0 ? "a" : "b"); return true; }
static bool on_batch_begin(eg_fit_state *s, void *user) { note((diary *)user, "<"); return s->batch < s->batches; }
static bool on_batch_end(eg_fit_state *s, void *user) {
    diary *d = (diary *)user;
    note(d, ">");
    d->batches++;
    d->losses += s->loss;
    CHECK_INT(eg_history_batches(s->history), d->batches);
    CHECK(s->iterator != NULL && eg_fit_value(s, "loss") > 0 && eg_fit_value(s, "accuracy") >= 0);
    CHECK(isnan(eg_fit_value(s, "other")));
    CHECK_NEAR(eg_fit_value(s, "learning_rate"), 0.02, 1e-9);
    if (d->stop && d->batches == 3) s->stop = true;
    if (d->fail) return eg_raise(EG_ERROR_ASSERT, "no more") != NULL;
    return true;
}
static bool on_epoch_end(eg_fit_state *s, void *user) {
    diary *d = (diary *)user;
    note(d, ".");
    CHECK_INT(eg_history_epochs(s->history), s->epoch + 1);
    CHECK_ERROR(eg_fit(s->model, NULL), EG_ERROR_NULL, "");
    CHECK_ERROR(eg_compile(s->model, eg_sgd(), eg_huber), EG_ERROR_STATE, "being fitted");
    return true;
}
static bool on_end(eg_fit_state *s, void *user) { (void)s; note((diary *)user, ")"); return true; }
static void on_release(void *user) { note((diary *)user, "!"); }
static const eg_callback_functions diary_functions = {on_begin, on_epoch, on_batch_begin, on_batch_end, on_epoch_end,
                                                      on_end, on_release, NULL};
static eg_callback *diary_new(diary *d) {
    eg_callback_functions f = diary_functions;
    f.user = d;
    return eg_callback_new(f);
}

TEST(callbacks_of_ones_own) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y), 32);
    diary d = {.batches = 0};
    const eg_history *h = eg_fit(model, data, .epochs = 2, .quiet = true, .callbacks = EG_CALLBACKS(diary_new(&d)));
    REQUIRE(h != NULL);
    CHECK_STR(d.text, "(a<><>.b<><>.)!");
    CHECK_NEAR(d.losses, eg_history_batch_loss(h, 0) + eg_history_batch_loss(h, 1) + eg_history_batch_loss(h, 2) +
                         eg_history_batch_loss(h, 3), 1e-9);
    diary stopped = {.stop = true};
    h = eg_fit(model, data, .epochs = 2, .quiet = true, .callbacks = EG_CALLBACKS(diary_new(&stopped)));
    CHECK_STR(stopped.text, "(a<><>.b<>.)!");
    CHECK_INT(eg_history_batches(h), 3);
    diary failing = {.fail = true};
    eg_callback *kept = diary_new(&failing);
    CHECK_ERROR(eg_fit(model, data, .epochs = 2, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_retain(kept))),
                EG_ERROR_ASSERT, "no more (epoch 1, batch 1)");
    CHECK_STR(failing.text, "(a<>");
    eg_callback_release(kept);
    CHECK_STR(failing.text, "(a<>!");
    eg_callback_release(NULL);
    eg_dataset_release(data);
    eg_layer_release(model);
}

static double rate_of(int64_t epoch, double rate, void *user) { return epoch == 0 ? *(double *)user : rate / 2; }

// The last rows, before anything is shuffled, as they were given by hand; with their weights.
TEST(a_split_for_validation) {
    eg_tensor *x = points(), *y = classes(x), *w = eg_random_uniform(EG_SHAPE(ROWS), .minval = 0.5, .maxval = 2);
    int64_t first = (int64_t)(ROWS * 0.7);
    double losses[2][2];
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        eg_seed(5);
        eg_layer *model = compiled();
        const eg_history *h;
        if (by_hand) {
            eg_tensor *rows[3] = {x, y, w}, *held[3];
            for (int i = 0; i < 3; i++) {
                eg_tensor *all = rows[i];
                rows[i] = eg_strided_slice(all, EG_SHAPE(0), EG_SHAPE(first), EG_SHAPE(1));
                held[i] = eg_strided_slice(all, EG_SHAPE(first), EG_SHAPE(EG_END), EG_SHAPE(1));
            }
            eg_dataset *validation = eg_dataset_batch(eg_dataset_from_slices(held[0], held[1], held[2]), 8);
            h = eg_fit_arrays(model, rows[0], rows[1], .epochs = 3, .batch_size = 8, .sample_weights = rows[2],
                              .validation = validation, .quiet = true);
            eg_dataset_release(validation);
        } else h = eg_fit_arrays(model, x, y, .epochs = 3, .batch_size = 8, .sample_weights = w,
                               .validation_split = 0.3, .quiet = true);
        REQUIRE(h != NULL);
        CHECK_INT(eg_history_batches(h), 3 * ((first + 7) / 8));
        losses[by_hand][0] = eg_history_value(h, "loss", -1);
        losses[by_hand][1] = eg_history_value(h, "val_loss", -1);
        eg_layer_release(model);
    }
    for (int i = 0; i < 2; i++) CHECK_NEAR(losses[0][i], losses[1][i], 0);
    eg_layer *model = compiled();
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y), 8);
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation_split = 1), EG_ERROR_ARGUMENT,
                "eg_fit_arrays: .validation_split is 1; it must be above 0 and below 1");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation_split = -0.1), EG_ERROR_ARGUMENT,
                ".validation_split is -0.1");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation_split = NAN), EG_ERROR_ARGUMENT,
                ".validation_split is nan");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation_split = 0.999), EG_ERROR_ARGUMENT,
                "of 64 rows leaves 0 for training and 64 for validation");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation_split = 0.5, .validation = data),
                EG_ERROR_ARGUMENT, "not both");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation_split = 0.5, .validation_x = x,
                              .validation_y = y), EG_ERROR_ARGUMENT, "not both");
    CHECK_ERROR(eg_fit_arrays(model, x, eg_slice(y, EG_SHAPE(0), EG_SHAPE(9)), .quiet = true, .validation_split = 0.5),
                EG_ERROR_SHAPE, "");
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .validation_split = 0.5), EG_ERROR_ARGUMENT,
                "eg_fit: .validation_split is an option of eg_fit_arrays; part a dataset by eg_dataset_take");
    eg_dataset_release(data);
    eg_layer_release(model);
}
// A schedule sets the rate: who wants to set it, too, is told so, before anything has changed.
TEST(learning_rates_and_a_schedule) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    double first = 0.5;
    CHECK(eg_compile(model, eg_adam(.schedule = eg_exponential_decay(0.1, 10, 0.5, false)),
                     eg_sparse_categorical_crossentropy));
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_learning_rate(.rate = rate_of, .user = &first))),
                EG_ERROR_STATE,
                "eg_callback_learning_rate: the learning rate of this eg_adam comes from its .schedule");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_plateau(.patience = 1))), EG_ERROR_STATE,
                "eg_callback_plateau: the learning rate");
    CHECK_INT(eg_optimizer_steps(eg_model_optimizer(model)), 0);
    CHECK_NEAR(eg_optimizer_learning_rate(eg_model_optimizer(model)), 0.1, 1e-9);
    eg_layer_release(model);
}

TEST(learning_rates) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    double first = 0.5;
    const eg_history *h =
        eg_fit_arrays(model, x, y, .epochs = 3, .quiet = true,
                      .callbacks = EG_CALLBACKS(eg_callback_learning_rate(.rate = rate_of, .user = &first)));
    CHECK_NEAR(eg_history_value(h, "learning_rate", 0), 0.5, 1e-9);
    CHECK_NEAR(eg_history_value(h, "learning_rate", 2), 0.125, 1e-9);
    CHECK_ERROR(eg_callback_learning_rate(), EG_ERROR_ARGUMENT, ".rate");
    first = NAN;
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_learning_rate(.rate = rate_of, .user = &first))),
                EG_ERROR_ARGUMENT, "eg_callback_learning_rate: nan is no learning rate (epoch 1) (at training.c:");
    CHECK(eg_optimizer_set_learning_rate(eg_model_optimizer(model), 1));
    // The loss cannot fall by 100: after the first epoch none is better.
    h = eg_fit_arrays(model, x, y, .epochs = 7, .quiet = true,
                      .callbacks = EG_CALLBACKS(eg_callback_plateau(.patience = 2, .min_delta = 100, .factor = 0.5,
                                                                    .cooldown = 1, .min_learning_rate = 0.3)));
    const double rates[] = {1, 1, 1, 0.5, 0.5, 0.3, 0.3};
    for (int i = 0; i < 7; i++) CHECK_NEAR(eg_history_value(h, "learning_rate", i), rates[i], 1e-9);
    eg_layer_release(model);
}

// Validation labels that have nothing to do with the data: its loss rises soon.
TEST(early_stopping) {
    eg_tensor *x = points(), *y = classes(x), *noise = eg_sub(1, y);
    eg_layer *model = compiled();
    const eg_history *h =
        eg_fit_arrays(model, x, y, .epochs = 50, .validation_x = x, .validation_y = noise, .quiet = true,
                      .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.patience = 3, .restore_best = true)));
    REQUIRE(h != NULL);
    CHECK_INT(eg_history_epochs(h), 4);                      // the first was the best
    CHECK_NEAR(eg_evaluate_arrays(model, x, noise, .quiet = true), eg_history_value(h, "val_loss", 0), 1e-7);
    h = eg_fit_arrays(model, x, y, .epochs = 6, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_early_stopping()));
    CHECK_INT(eg_history_epochs(h), 6);                      // without validation: the loss, which falls
    h = eg_fit_arrays(model, x, y, .epochs = 6, .quiet = true,
                      .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.monitor = "accuracy", .min_delta = 2)));
    CHECK_INT(eg_history_epochs(h), 2);
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.monitor = "val_accuracy"))),
                EG_ERROR_ARGUMENT, "there is no 'val_accuracy' to monitor; this fit has loss, accuracy, learning_rate");
    h = eg_fit_arrays(model, x, y, .epochs = 6, .quiet = true,
                      .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.monitor = "loss", .mode = EG_MAX)));
    CHECK_INT(eg_history_epochs(h), 2);
    CHECK_ERROR(eg_callback_early_stopping(.factor = 0.5), EG_ERROR_ARGUMENT, "factor");
    CHECK_ERROR(eg_callback_plateau(.factor = 2), EG_ERROR_ARGUMENT,
                "eg_callback_plateau: .factor is 2; it must be above 0 and below 1");
    CHECK_ERROR(eg_callback_plateau(.min_learning_rate = -1), EG_ERROR_ARGUMENT, ".min_learning_rate is -1");
    CHECK_ERROR(eg_callback_early_stopping(.patience = -3), EG_ERROR_ARGUMENT,
                "eg_callback_early_stopping: .patience is -3; it must be at least 0");
    eg_layer_release(model);
}

// What is no number is no better, so patience ends; nothing is the best then.
static int finite_batches;
static eg_tensor *breaking_loss(eg_tensor *y, eg_tensor *p) {
    eg_tensor *loss = eg_sparse_categorical_crossentropy(y, p);
    return --finite_batches >= 0 ? loss : eg_mul(loss, (double)NAN);
}
static bool hear_reason(eg_fit_state *s, void *user) {
    snprintf((char *)user, 128, "%s", s->reason ? s->reason : "");
    return true;
}
TEST(patience_ends_without_numbers) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    CHECK(eg_compile(model, eg_sgd(), breaking_loss));
    // two epochs, or none
    for (finite_batches = 8; finite_batches >= 0; finite_batches = finite_batches == 8 ? 0 : -1) {
        int good = finite_batches / 4;
        char said[128] = "";
        eg_callback *hears = eg_callback_new((eg_callback_functions){.fit_end = hear_reason, .user = said});
        const eg_history *h = eg_fit_arrays(model, x, y, .batch_size = 16, .epochs = 9, .quiet = true,
                                            .eager = true,         // the loss counts in C
                                            .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.patience = 2),
                                                                      hears));
        CHECK_INT(eg_history_epochs(h), good + 2);
        CHECK_CONTAINS(said,
                       good ? "Stopped after epoch 4: the best was" : "Stopped after epoch 2: loss was never a number");
        if (good) finite_batches = 8;
    }
    finite_batches = 0;
    CHECK(eg_fit_arrays(model, x, y, .batch_size = 16, .epochs = 4, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_plateau(.patience = 2))) != NULL);
    CHECK_NEAR(eg_optimizer_learning_rate(eg_model_optimizer(model)), 1e-4, 1e-12);
    eg_layer_release(model);
}

// A metric that fails does so before the update.
TEST(a_metric_that_fails_moves_no_weight) {
    eg_tensor *x = points(), *y = classes(x), *w[4], *before[4];
    eg_layer *model = small_model();
    CHECK(eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy, eg_metric_mean_iou(.classes = 1)));
    CHECK_INT(eg_layer_weights(model, w, 4), 4);
    for (int i = 0; i < 4; i++) before[i] = eg_read(w[i]);
    CHECK(isnan(eg_train_on_batch(model, x, y)));
    eg_error_clear();
    for (int i = 0; i < 4; i++) CHECK_SAME(w[i], before[i], 0);
    eg_layer_release(model);
}

// Told before the first batch, of each callback that monitors; errors between the batches name the epoch alone.
static bool fails(eg_fit_state *s, void *user) {
    (void)s;
    (void)user;
    return eg_raise(EG_ERROR_ASSERT, "no more") != NULL;
}
TEST(a_misspelt_monitor) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_callback *wrong[] = {eg_callback_early_stopping(.monitor = "val_acuracy"),
                            eg_callback_plateau(.monitor = "val_acuracy"),
                            eg_callback_checkpoint(test_temp("never.safetensors"), .monitor = "val_acuracy",
                            .save_best = true)};
    static const char *const names[] = {"early_stopping", "plateau", "checkpoint"};
    for (int i = 0; i < 3; i++) {
        char want[200];
        snprintf(want, sizeof want, "eg_callback_%s: there is no 'val_acuracy' to monitor; this fit has loss, "
                                    "accuracy, val_loss, val_accuracy, learning_rate", names[i]);
        diary d = {.batches = 0};
        CHECK_ERROR(eg_fit_arrays(model, x, y, .epochs = 2, .validation_x = x, .validation_y = y, .quiet = true,
                                  .callbacks = EG_CALLBACKS(diary_new(&d), wrong[i])), EG_ERROR_ARGUMENT, want);
        CHECK_STR(d.text, "(!");
        CHECK_INT(eg_history_batches(eg_model_history(model)), 0);
    }
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_plateau(.monitor = "val_loss"))), EG_ERROR_ARGUMENT,
                "(no .validation was given)");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_new((eg_callback_functions){.epoch_end = fails}))),
                EG_ERROR_ASSERT, "no more (epoch 1)");
    eg_layer_release(model);
}

TEST(stop_on_nan) {
    eg_tensor *x = eg_constant(EG_SHAPE(4, 1), 1, 1, INFINITY, 1), *y = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1));
    eg_layer *model = line_model(eg_sgd(), eg_mean_squared_error);
    const eg_history *h = eg_fit_arrays(model, x, y, .epochs = 5, .batch_size = 1, .no_shuffle = true, .quiet = true,
                                        .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan()));
    REQUIRE(h != NULL);
    CHECK_INT(eg_history_batches(h), 3);
    eg_layer_release(model);
}

static char *contents(const char *path) {
    static char text[65536];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    return text;
}

TEST(files_of_a_history) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    const char *log = test_temp("log.csv"), *path = test_temp("history.csv");
    for (int i = 0; i < 2; i++) {
        const eg_history *h = eg_fit_arrays(model, x, y, .epochs = 2 + 2 * i,
                                            .initial_epoch = 2 * i, .validation_x = x, .validation_y = y, .quiet = true,
                                            .callbacks = EG_CALLBACKS(eg_callback_csv(log, .append = i == 1)));
        REQUIRE(h != NULL);
        CHECK(eg_history_csv(h, path));
    }
    CHECK_CONTAINS(contents(log), "epoch,loss,accuracy,val_loss,val_accuracy,learning_rate\n1,0.");
    CHECK_CONTAINS(contents(log), "\n2,0.");
    CHECK_CONTAINS(contents(log), "\n4,0.");
    CHECK(strstr(strstr(contents(log), "loss") + 20, "epoch") == NULL);          // one head
    CHECK_CONTAINS(contents(path), "\n3,0.");
    CHECK(strstr(contents(path), "\n2,0.") == NULL);
    const eg_history *h = eg_model_history(model);
    CHECK(eg_history_batches_csv(h, path));
    CHECK_CONTAINS(contents(path), "epoch,batch,loss\n3,1,0.");
    CHECK_CONTAINS(contents(path), "\n4,2,0.");
    path = test_temp("history.svg");
    CHECK(eg_history_svg(h, path));
    CHECK_CONTAINS(contents(path), "<svg ");
    CHECK_CONTAINS(contents(path), ">accuracy</text>");
    CHECK_CONTAINS(contents(path), "validation");
    CHECK_CONTAINS(contents(path), "</svg>\n");
    CHECK(strstr(contents(path), "nan") == NULL && strstr(contents(path), "inf") == NULL);
    CHECK_ERROR(eg_history_csv(NULL, path), EG_ERROR_NULL, "history");
    CHECK_ERROR(eg_history_svg(h, NULL), EG_ERROR_NULL, "path");
    CHECK_ERROR(eg_callback_csv(NULL), EG_ERROR_NULL, "path");
    eg_layer_release(model);
}

TEST(checkpoints) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled(), *other = small_model();
    const char *best = test_temp("best.safetensors");
    char pattern[4200], path[4200];
    snprintf(pattern, sizeof pattern, "%s", test_temp("weights-{epoch:02d}-{val_accuracy:.1f}.safetensors"));
    const eg_history *h = eg_fit_arrays(model, x,
                                        y, .epochs = 4, .validation_x = x, .validation_y = eg_sub(1, y), .quiet = true,
                                        .callbacks = EG_CALLBACKS(eg_callback_checkpoint(pattern),
                                                                  eg_callback_checkpoint(best, .save_best = true)));
    REQUIRE(h != NULL);
    char name[64];
    snprintf(name, sizeof name, "weights-04-%.1f.safetensors", eg_history_value(h, "val_accuracy", 3));
    snprintf(path, sizeof path, "%s", test_temp(name));
    CHECK(eg_load_weights(other, path));
    CHECK_SAME(eg_call(other, x), eg_call(model, x), 0);
    CHECK(eg_load_weights(other, best));                     // of epoch 1, as the labels are turned round
    CHECK_NEAR(eg_item(eg_sparse_categorical_crossentropy(eg_sub(1, y), eg_call(other, x))),
               eg_history_value(h, "val_loss", 0), 1e-6);
    CHECK(eg_fit_arrays(model, x, y, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_checkpoint(test_temp("l-{loss}.safetensors")))) != NULL);
    snprintf(pattern, sizeof pattern, "l-%.4g.safetensors",
             round(eg_history_value(eg_model_history(model), "loss", -1) * 1e4) / 1e4);
    CHECK(eg_load_weights(other, test_temp(pattern)));
    CHECK(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_checkpoint(test_temp(
            "e{epoch:3d}_{epoch}_{epoch:3d}{learning_rate:.0e}{learning_rate:8.3g}{learning_rate:08.3f}.npz")))) !=
          NULL);
    CHECK(eg_load_weights(other, test_temp("e  1_1_  12e-02    0.020000.020.npz")));
    int64_t steps = eg_optimizer_steps(eg_model_optimizer(model));
    const char *wrong[][2] = {
        {"{epoch}-{val_los}.npz",
         "eg_callback_checkpoint: there is no 'val_los' to stand for {val_los} in the path '{epoch}-{val_los}.npz'; "
         "this fit has epoch, loss, accuracy, learning_rate (no .validation was given)"},
        {"{epoch:02d}-{nobody:.2f}.npz", "there is no 'nobody'"}, {"{}.npz", "there is no ''"},
        {"{epoch:.2f}.npz", "'{epoch:.2f}' in the path '{epoch:.2f}.npz' has a format that is not known"},
        {"{loss:d}.npz", "{loss:d}"}, {"{loss:}.npz", "{loss:}"}, {"{loss:.2}.npz", "{loss:.2}"},
        {"{loss:.200f}.npz", "{loss:.200f}"}, {"{loss:2fx}.npz", "{loss:2fx}"}, {"{epoch:200d}", "{epoch:200d}"}};
    for (int i = 0; i < (int)(sizeof wrong / sizeof *wrong); i++)
        CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                                  .callbacks = EG_CALLBACKS(eg_callback_checkpoint(wrong[i][0]))), EG_ERROR_ARGUMENT,
                    wrong[i][1]);
    CHECK_INT(eg_optimizer_steps(eg_model_optimizer(model)), steps);         // all told before the first batch
    CHECK_ERROR(eg_callback_checkpoint(NULL), EG_ERROR_NULL, "path");
    CHECK_ERROR(eg_callback_checkpoint(""), EG_ERROR_ARGUMENT, "eg_callback_checkpoint: the path is empty");
    CHECK_ERROR(eg_callback_csv(""), EG_ERROR_ARGUMENT, "eg_callback_csv: the path is empty");
    CHECK_ERROR(eg_callback_checkpoint("x", .patience = 3), EG_ERROR_ARGUMENT, "patience");
    eg_layer_release(model);
    eg_layer_release(other);
}

static bool stop_in_epoch(eg_fit_state *s, void *user) {
    if (s->epoch == *(int *)user && s->batch == 1) return eg_raise(EG_ERROR_STATE, "the power fails") != NULL;
    return true;
}
static bool power_fails(eg_layer *model, eg_dataset *data, const char *prefix, int epoch, const eg_history **h) {
    *h = eg_fit(model, data, .epochs = 5, .quiet = true, .callbacks = EG_CALLBACKS( eg_callback_new(
            (eg_callback_functions){.batch_end = stop_in_epoch, .user = &epoch}), eg_callback_backup(prefix)));
    return eg_error() != EG_OK;
}
static eg_tensor *shaky(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_training() ? eg_add(in[0], eg_random_normal(EG_SHAPE(1, 4), .stddev = 0.1)) : in[0];
}
static eg_layer *shaky_model(void) {
    eg_layer *model = eg_sequential(eg_layer_custom("shaky", shaky, NULL), eg_layer_dense(8, .activation = EG_TANH),
                                    eg_layer_dense(2));
    CHECK(eg_compile(model, eg_adam(.learning_rate = 0.02), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY));
    return model;
}

TEST(a_fit_that_was_stopped_goes_on) {  // twice, each time as a program that starts anew; with the same bits
    eg_tensor *x = points(), *y = classes(x), *want = NULL;
    double losses[2] = {0};
    char prefix[4200];
    snprintf(prefix, sizeof prefix, "%s", test_temp("backup"));
    for (int run = 0; run < 2; run++) {
        const eg_history *h = NULL;
        for (int at = run ? 1 : 9; !h; at += 2) {
            eg_seed(7);
            eg_dataset *data = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, y), ROWS), 16);
            eg_layer *model = shaky_model();
            if (run == 0) h = eg_fit(model, data, .epochs = 5, .quiet = true);
            else CHECK_INT(power_fails(model, data, prefix, at, &h), at < 5);
            eg_error_clear();
            if (h) losses[run] = eg_history_batch_loss(h, -1);
            if (h && run == 0) want = eg_call(model, x);
            if (h && run == 1) {
                CHECK_SAME(eg_call(model, x), want, 0);
                CHECK_INT(eg_history_epochs(h), 5);          // three of them were before
                CHECK(power_fails(model, data, prefix, 9, &h) == false);         // nothing is left to do
                CHECK_INT(eg_history_epochs(h), 5);
                CHECK_NEAR(eg_history_batch_loss(h, -1), losses[1], 0);
                CHECK_NEAR(eg_model_result(model, "accuracy"), eg_history_value(h, "accuracy", 4), 0);
            }
            eg_dataset_release(data);
            eg_layer_release(model);
        }
    }
    CHECK_NEAR(losses[1], losses[0], 0);
    CHECK_ERROR(eg_callback_backup(NULL), EG_ERROR_NULL, "prefix");
}

// The same within epochs, after any batch, with callbacks that count over epochs. Where it fails, a program starts
// anew.
enum { BACKUP_EPOCHS = 6, BACKUP_BATCHES = 4 };
typedef struct outage { int64_t at, batches; } outage;
static bool outage_batch(eg_fit_state *s, void *user) {
    outage *o = (outage *)user;
    CHECK_INT(eg_history_batches(s->history), s->epoch * BACKUP_BATCHES + s->batch + 1);
    o->batches++;
    return eg_history_batches(s->history) != o->at || eg_raise(EG_ERROR_STATE, "the power fails") != NULL;
}
static double falling(int64_t epoch, double rate, void *user) { (void)user; return epoch ? rate * 0.9 : 0.02; }
static eg_layer *backed_up(const char *prefix, const char *csv, uint64_t seed, int64_t at, int64_t every,
                           int64_t *batches) {
    eg_tensor *x = points(), *y = classes(x);
    outage o = {at, 0};
    eg_seed(seed);
    eg_dataset *data = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, y), ROWS, .seed = 11), 16),
               *other = eg_dataset_batch(eg_dataset_from_slices(x, eg_sub(1, y)), 16);
    eg_layer *model = shaky_model();
    eg_callback *breaks = eg_callback_new((eg_callback_functions){.batch_end = outage_batch, .user = &o});
    if (prefix) eg_fit(model, data, .epochs = BACKUP_EPOCHS, .validation = other, .quiet = true,
        .callbacks = EG_CALLBACKS(eg_callback_learning_rate(.rate = falling),
                                  eg_callback_plateau(.patience = 2, .cooldown = 1),
                                  eg_callback_early_stopping(.patience = 4), eg_callback_csv(csv),
                                  eg_callback_backup(prefix, .every = every), breaks));
    else
        eg_fit(model, data, .epochs = BACKUP_EPOCHS, .validation = other, .quiet = true,
               .callbacks = EG_CALLBACKS(eg_callback_learning_rate(.rate = falling),
                                         eg_callback_plateau(.patience = 2, .cooldown = 1),
                                         eg_callback_early_stopping(.patience = 4), eg_callback_csv(csv), breaks));
    *batches = o.batches;
    eg_dataset_release(data);
    eg_dataset_release(other);
    return model;
}
TEST(a_fit_goes_on_within_an_epoch) {
    char prefix[4200], csv[4200], want_csv[16384];
    int64_t n;
    snprintf(csv, sizeof csv, "%s", test_temp("backup.csv"));
    eg_layer *want = backed_up(NULL, csv, 7, -1, 0, &n);
    CHECK(eg_error() == EG_OK);
    const eg_history *h = eg_model_history(want);
    snprintf(want_csv, sizeof want_csv, "%s", contents(csv));
    int64_t epochs = eg_history_epochs(h);
    CHECK_INT(epochs, 5);                                    // early stopping
    CHECK_INT(n, epochs * BACKUP_BATCHES);
    for (int64_t at = 1; at <= n; at += test_share > 1 ? 7 : 1) {
        eg_error_clear();
        snprintf(prefix, sizeof prefix, "%s-%d", test_temp("within"), (int)at);
        int64_t every = 1 + at % 3, before, after, last;
        eg_layer *first = backed_up(prefix, csv, 7, at, every, &before);
        CHECK(eg_error() == EG_ERROR_STATE);
        eg_error_clear();
        int64_t begun = (at - 1) / BACKUP_BATCHES, within = at - begun * BACKUP_BATCHES,
                kept = begun * BACKUP_BATCHES + within / every * every;
        // the backup knows better than this seed
        eg_layer *model = backed_up(prefix, csv, kept ? 99 : 7, -1, every, &after);
        CHECK(eg_error() == EG_OK);
        CHECK_INT(before + after, n + at - kept);                            // no more is done twice than was lost
        const eg_history *now = eg_model_history(model);
        CHECK_INT(eg_history_epochs(now), epochs);
        REQUIRE(eg_history_batches(now) == n);
        for (int64_t i = 0; i < n; i++) CHECK_NEAR(eg_history_batch_loss(now, i), eg_history_batch_loss(h, i), 0);
        for (int k = 0; eg_history_name(h, k); k++)
            for (int64_t e = 0; e < epochs; e++)
                CHECK_NEAR(eg_history_value(now, eg_history_name(h, k), e),
                           eg_history_value(h, eg_history_name(h, k), e), 0);
        CHECK_STR(contents(csv), want_csv);
        eg_tensor *a[4], *b[4];
        CHECK_INT(eg_layer_weights(want, a, 4), eg_layer_weights(model, b, 4));
        for (int i = 0; i < 4; i++) CHECK_SAME(b[i], a[i], 0);
        // it was stopped early: once more, the epoch after
        eg_layer *done = backed_up(prefix, csv, 99, -1, every, &last);
        CHECK_INT(last, BACKUP_BATCHES);
        eg_layer_release(first);
        eg_layer_release(model);
        eg_layer_release(done);
    }
    eg_layer_release(want);
    CHECK_ERROR(eg_callback_backup("x", .every = -1), EG_ERROR_ARGUMENT, ".every is -1");
    CHECK_ERROR(eg_callback_backup("x", .patience = 1), EG_ERROR_ARGUMENT, "has no option .patience");
}
static void count_one(void *user) { ++*(int *)user; }
TEST(a_callback_given_twice_to_one_fit) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    int gone = 0;
    CHECK(eg_compile(model, eg_adam(), eg_sparse_categorical_crossentropy));
    eg_callback_functions f = {.release = count_one, .user = &gone};
    eg_callback *one = eg_callback_new(f), *kept = eg_callback_retain(eg_callback_retain(eg_callback_new(f)));
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(one, eg_callback_stop_on_nan(), one)), EG_ERROR_ARGUMENT,
                "eg_fit_arrays: callback 2 is callback 0 once more");
    CHECK_INT(gone, 1);
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(kept, kept)), EG_ERROR_ARGUMENT,
                "callback 1 is callback 0");
    CHECK_INT(gone, 1);
    eg_callback_release(kept);
    CHECK_INT(gone, 2);
    eg_layer_release(model);
}
TEST(a_callback_given_to_two_fits) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = shaky_model();
    eg_callback *once = eg_callback_stop_on_nan(), *twice = eg_callback_retain(eg_callback_stop_on_nan());
    CHECK(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(once, twice)) != NULL);
    int64_t steps = eg_optimizer_steps(eg_model_optimizer(model));
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_retain(twice), once)),
                EG_ERROR_STATE, "eg_fit_arrays: callback 1 was used after its last reference was released; a fit "
                                "releases those that it is given, so eg_callback_retain one");
    CHECK_INT(eg_optimizer_steps(eg_model_optimizer(model)), steps);
    CHECK(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(twice)) != NULL);
    eg_layer_release(model);
}
TEST(a_callback_released_too_often) {
    eg_callback *callback = eg_callback_early_stopping();
    eg_callback_release(callback);
    CHECK_ERROR(eg_callback_release(callback), EG_ERROR_STATE,
                "eg_callback_release: the callback was used after its last reference was released");
    CHECK_ERROR(eg_callback_retain(callback), EG_ERROR_STATE, "eg_callback_retain: the callback was used after");
}
// A program that is started again when all epochs are done has the trained model, too where the first call makes its
// weights, and the random numbers are those after the last epoch.
TEST(a_finished_backup_gives_the_weights) {
    char prefix[4200];
    double loss[2] = { 0 }, draw[2] = { 0 };
    snprintf(prefix, sizeof prefix, "%s", test_temp("finished"));
    for (int run = 0; run < 2; run++) {
        eg_seed(1);
        eg_tensor *x = eg_random_normal(EG_SHAPE(64, 3)), *y = eg_reduce_sum(x, .axes = EG_AXES(1), .keepdims = true);
        eg_layer *model = eg_sequential(eg_layer_dense(4, .activation = EG_TANH), eg_layer_dropout(0.2),
                                        eg_layer_dense(1));
        eg_compile(model, eg_adam(.learning_rate = 0.02), eg_mean_squared_error);
        CHECK(eg_fit_arrays(model, x, y, .epochs = 3, .batch_size = 10, .quiet = true,
                            .callbacks = EG_CALLBACKS(eg_callback_backup(prefix))) != NULL);
        draw[run] = eg_item(eg_random_uniform(EG_SHAPE(1)));
        CHECK_INT(eg_layer_weights_list(model).count, 4);
        loss[run] = eg_evaluate_arrays(model, x, y, .quiet = true);
        eg_layer_release(model);
    }
    CHECK_NEAR(loss[1], loss[0], 0);
    CHECK_NEAR(draw[1], draw[0], 0);
}
// R2's sums are as wide as its first batch, which a program that starts anew has not seen when it reads the backup.
static bool third_batch_fails(eg_fit_state *s, void *user) {
    (void)user;
    return s->batch < 2 || eg_raise(EG_ERROR_STATE, "the power fails") != NULL;
}
static eg_layer *fit_with_r2(const char *prefix, bool fails) {
    eg_tensor *x = points();
    eg_seed(7);
    eg_layer *model = eg_sequential(eg_layer_dense(4));
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, eg_mul(x, 3)), 16);
    eg_callback *ends = eg_callback_new((eg_callback_functions){.batch_end = fails ? third_batch_fails : NULL});
    CHECK(eg_compile(model, eg_adam(.learning_rate = 0.1), eg_mean_squared_error, eg_metric_r2()));
    if (prefix)
        eg_fit(model, data, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_backup(prefix, .every = 1), ends));
    else eg_fit(model, data, .quiet = true, .callbacks = EG_CALLBACKS(ends));
    eg_dataset_release(data);
    return model;
}
TEST(a_backup_of_r2) {
    eg_layer *want = fit_with_r2(NULL, false), *stopped = fit_with_r2(test_temp("r2"), true);
    CHECK(eg_error() == EG_ERROR_STATE);
    eg_error_clear();
    eg_layer *model = fit_with_r2(test_temp("r2"), false);
    CHECK_SHAPE(eg_metric_state(eg_model_metric(model, 0)), 4, 4);
    CHECK_NEAR(eg_model_result(model, "r2"), eg_model_result(want, "r2"), 0);
    eg_layer_release(want);
    eg_layer_release(stopped);
    eg_layer_release(model);
}
// The best epoch's weights are those of before, where the best epoch was before the power failed, twice.
TEST(a_backup_has_the_best_weights) {
    eg_tensor *x = points(), *y = classes(x), *noise = eg_sub(1, y);
    char prefix[4200];
    snprintf(prefix, sizeof prefix, "%s", test_temp("best"));
    double want = 0;
    for (int round = 0; round < 4; round++) {
        outage o = {round == 1 ? 6 : round == 2 ? 9 : 0, 0};
        eg_seed(2);
        eg_layer *model = eg_sequential(eg_layer_dense(8, .activation = EG_TANH), eg_layer_batch_normalization(),
                                        eg_layer_dense(2));
        CHECK(eg_compile(model, eg_adam(.learning_rate = 0.02), eg_sparse_categorical_crossentropy));
        eg_callback *breaks = eg_callback_new((eg_callback_functions){.batch_end = outage_batch, .user = &o});
        eg_callback *backup = round ? eg_callback_backup(prefix, .every = 2) : eg_callback_stop_on_nan();
        eg_callback *plain = eg_callback_early_stopping(.patience = 20),
                    *best = eg_callback_early_stopping(.patience = 5, .restore_best = true);
        const eg_history *h = eg_fit_arrays(model, x, y, .batch_size = 16,
                                            .epochs = 9, .quiet = true, .validation_x = x, .validation_y = noise,
                                            .callbacks = EG_CALLBACKS(plain, best, backup, breaks));
        CHECK((h == NULL) == (round == 1 || round == 2));
        eg_error_clear();
        if (round == 0) want = eg_evaluate_arrays(model, x, noise, .quiet = true);
        if (round == 3) CHECK_NEAR(eg_evaluate_arrays(model, x, noise, .quiet = true), want, 0);
        eg_layer_release(model);
    }
}
// Within an epoch as well, each metric from its own sums. A folder of the backup's name is no business of its.
TEST(a_backup_knows_its_own) {
    eg_tensor *x = points(), *y = classes(x);
    char prefix[4200], path[4300];
    snprintf(prefix, sizeof prefix, "%s", test_temp("own"));
    double want = 0;
    for (int round = 0; round < 3; round++) {
        outage o = {round == 1 ? 3 : 0, 0};
        eg_layer *model = small_model();
        if (round == 2)
            CHECK(eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy,
                             eg_metric_top_k(.k = 2, .name = "other"), EG_METRIC_ACCURACY));
        else CHECK(eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY));
        eg_callback *breaks = eg_callback_new((eg_callback_functions){.batch_end = outage_batch, .user = &o});
        eg_callback *backup = round ? eg_callback_backup(prefix, .every = 1) : eg_callback_stop_on_nan();
        const eg_history *h = eg_fit_arrays(model, x, y, .batch_size = 16, .epochs = 1, .no_shuffle = true,
                                            .quiet = true, .callbacks = EG_CALLBACKS(backup, breaks));
        CHECK((h == NULL) == (round == 1));
        eg_error_clear();
        if (round == 0) want = eg_history_value(h, "accuracy", 0);
        if (round == 2) CHECK_NEAR(eg_history_value(h, "accuracy", 0), want, 0);
        eg_layer_release(model);
    }
    eg_layer *model = compiled();
    snprintf(prefix, sizeof prefix, "%s", test_temp("both"));
    snprintf(path, sizeof path, "%s/w-{epoch}.safetensors", prefix);
    for (int epochs = 1; epochs <= 3; epochs++) {
        int64_t before = eg_optimizer_steps(eg_model_optimizer(model));
        CHECK(eg_fit_arrays(model, x, y, .epochs = epochs, .quiet = true,
                            .callbacks = EG_CALLBACKS(eg_callback_checkpoint(path),
                                                      eg_callback_backup(prefix))) != NULL);
        CHECK_INT(eg_optimizer_steps(eg_model_optimizer(model)) - before, 2);
    }
    eg_layer_release(model);
}
// A fit with another metric goes on, too: what was not there before is NaN for the epochs before. Of an older library
// there is no history.
TEST(a_backup_of_another_kind) {
    eg_tensor *x = points(), *y = classes(x);
    char prefix[4200];
    snprintf(prefix, sizeof prefix, "%s", test_temp("kinds"));
    eg_layer *model = compiled();
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_backup(prefix))) != NULL);
    CHECK(eg_compile(model, eg_adam(.learning_rate = 0.02), eg_sparse_categorical_crossentropy, eg_metric_top_k(.k = 1),
                     EG_METRIC_ACCURACY));
    const eg_history *h = eg_fit_arrays(model, x, y, .epochs = 3, .quiet = true,
                                        .callbacks = EG_CALLBACKS(eg_callback_backup(prefix)));
    REQUIRE(h != NULL && eg_history_epochs(h) == 3);
    CHECK(isnan(eg_history_value(h, "top_k", 1)) && eg_history_value(h, "accuracy", 1) > 0 &&
          eg_history_value(h, "top_k", 2) > 0);
    char path[4300];
    snprintf(path, sizeof path, "%s", eg_checkpoint_latest(prefix));
    eg_archive *old = eg_archive_load(path), *without = eg_archive_new();
    REQUIRE(old != NULL);
    for (int64_t i = 0; i < eg_archive_count(old); i++) {
        const char *name = eg_archive_name(old, i);
        if (!strstr(name, "history") && strcmp(name, "batch") && strcmp(name, "ends of epochs"))
            CHECK(eg_archive_add(without, name, eg_archive_get(old, name)));
    }
    CHECK(eg_archive_save(without, path));
    h = eg_fit_arrays(model, x, y, .epochs = 5, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_backup(prefix)));
    REQUIRE(h != NULL);
    CHECK_INT(eg_history_epochs(h), 2);
    eg_archive *wrong = eg_archive_new();                    // damaged: none of it is taken
    for (int64_t i = 0; i < eg_archive_count(old); i++)
        CHECK(eg_archive_add(wrong, eg_archive_name(old, i),
                             strstr(eg_archive_name(old, i), "ends") ? eg_zeros(EG_FLOAT32, EG_SHAPE(2, 2))
                             : eg_archive_get(old, eg_archive_name(old, i))));
    snprintf(path, sizeof path, "%s", eg_checkpoint_latest(prefix));
    CHECK(eg_archive_save(wrong, path));
    CHECK_ERROR(eg_fit_arrays(model, x, y, .epochs = 9, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_backup(prefix))), EG_ERROR_SHAPE, "ends of epochs");
    eg_archive_release(old);
    eg_archive_release(without);
    eg_archive_release(wrong);
    eg_layer_release(model);
}

// Whether an event file in the folder has this in it.
static bool events_hold(const char *folder, const char *part) {
    static char bytes[65536];
    bool found = false;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list)) != NULL;) {
        char path[8192];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *f = strstr(entry->d_name, "tfevents") ? fopen(path, "rb") : NULL;
        size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
        if (f) fclose(f);
        for (size_t i = 0; i + strlen(part) <= n; i++) found = found || memcmp(bytes + i, part, strlen(part)) == 0;
    }
    if (list) closedir(list);
    return found;
}

TEST(tensorboard) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    char folder[4200], run[4300];
    snprintf(folder, sizeof folder, "%s", test_temp("board"));
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .validation_x = x, .validation_y = y, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_tensorboard(folder, .every = 1))) != NULL);
    snprintf(run, sizeof run, "%s/train", folder);
    CHECK(events_hold(run, "epoch_accuracy") && events_hold(run, "epoch_learning_rate") &&
          events_hold(run, "batch_loss"));
    snprintf(run, sizeof run, "%s/validation", folder);
    CHECK(events_hold(run, "epoch_loss") && !events_hold(run, "batch_loss"));
    CHECK_ERROR(eg_callback_tensorboard(NULL), EG_ERROR_NULL, "folder");
    eg_layer_release(model);
}

TEST(odd_histories_are_drawn) {
    const char *path = test_temp("odd.svg");
    eg_tensor *x = eg_constant(EG_SHAPE(2, 1), INFINITY, 1), *y = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    eg_layer *model = line_model(eg_sgd(), eg_mean_squared_error);
    // nothing but NaN
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .batch_size = 1, .no_shuffle = true, .quiet = true) != NULL);
    CHECK(eg_history_svg(eg_model_history(model), path));
    CHECK(strstr(contents(path), "nan") == NULL);
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    for (int n = 0; n < 2; n++) {                            // no epoch; one with a loss that stays 0
        eg_tensor *w;
        eg_layer_weights(model, &w, 1);
        CHECK(eg_assign(w, 1) != NULL);
        CHECK(eg_fit_arrays(model, y, y, .epochs = n + 1, .initial_epoch = 1 - n, .quiet = true) != NULL);
        CHECK(eg_history_svg(eg_model_history(model), path));
        CHECK(strstr(contents(path), "nan") == NULL);
    }
    eg_layer_release(model);
}

// ---- what is printed

static char printed[16384];
static int writes;
static void catch_text(const char *text, void *user) {
    (void)user;
    writes++;
    strncat(printed, text, sizeof printed - strlen(printed) - 1);
}
static int count(const char *text, char c) {
    int n = 0;
    for (; *text; text++) n += *text == c;
    return n;
}

// A backup says from where it goes on, and that there is nothing to do.
static bool power_is_out(eg_fit_state *s, void *user) {
    return eg_history_batches(s->history) != ((outage *)user)->at ||
           eg_raise(EG_ERROR_STATE, "the power fails") != NULL;
}
TEST(a_backup_says_where_it_goes_on) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    char prefix[4200];
    snprintf(prefix, sizeof prefix, "%s", test_temp("told/run"));
    const int64_t every[] = {0, 0, 0, 3};
    const char *want[] = {"Epoch 1/2:", "-2.safetensors: going on with epoch 3\nEpoch 3/4:",
                          "-4.safetensors: all 4 epochs are done; remove it to begin anew\n",
                          ": going on in epoch 5, after batch 3\nEpoch 5/5:"};
    const int64_t epochs[] = {2, 4, 4, 5};
    for (int i = 0; i < 4; i++) {
        int64_t fails = i == 3 ? 4 : 0;
        outage o = {fails ? eg_history_batches(eg_model_history(model)) + fails : 0, 0};
        if (i == 3) {
            CHECK(!eg_fit_arrays(model, x, y, .batch_size = 8, .epochs = 5, .quiet = true,
                                 .callbacks = EG_CALLBACKS(eg_callback_new((eg_callback_functions){
                    .batch_end = power_is_out, .user = &o}), eg_callback_backup(prefix, .every = every[i]))));
            eg_error_clear();
        }
        printed[0] = 0;
        eg_set_printer(catch_text, NULL);
        CHECK(eg_fit_arrays(model, x, y, .batch_size = 8, .epochs = epochs[i],
                            .callbacks = EG_CALLBACKS(eg_callback_backup(prefix, .every = every[i]))) != NULL);
        eg_set_printer(NULL, NULL);
        CHECK_CONTAINS(printed, want[i]);
        if (i == 2) CHECK_INT(count(printed, '\n'), 1);
    }
    eg_layer_release(model);
}
// A NaN has no sign, wherever it is written.
static eg_tensor *minus_nan(eg_tensor *labels, eg_tensor *predictions) {
    (void)labels;
    return eg_mul(eg_reduce_sum(predictions), -(double)NAN);
}
TEST(nan_is_written_as_nan) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    char text[64];
    CHECK(eg_compile(model, eg_sgd(), minus_nan, eg_metric_of(minus_nan, .name = "none")));
    printed[0] = 0;
    eg_set_printer(catch_text, NULL);
    const eg_history *h = eg_fit_arrays(model, x, y, .callbacks = EG_CALLBACKS(eg_callback_csv(test_temp("nan.csv"))));
    CHECK(isnan(eg_evaluate_arrays(model, x, y)));
    eg_set_printer(NULL, NULL);
    REQUIRE(h != NULL);
    CHECK_CONTAINS(printed, "  loss nan  none nan");
    CHECK(!strstr(printed, "-nan") && !strstr(contents(test_temp("nan.csv")), "-nan"));
    snprintf(text, sizeof text, "%f %f %f", eg_history_value(h, "loss", 0), eg_history_batch_loss(h, 0),
             eg_model_result(model, "none"));
    CHECK_STR(text, "nan nan nan");
    eg_layer_release(model);
}

TEST(progress) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    printed[0] = 0;
    writes = 0;
    eg_set_printer(catch_text, NULL);
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .batch_size = 1, .validation_x = x, .validation_y = y) != NULL);
    CHECK_INT(count(printed, '\n'), 2);                      // a line an epoch, and no more
    CHECK_INT(writes, 2);
    CHECK_CONTAINS(printed, "Epoch 1/2: 64 steps  ");
    CHECK_CONTAINS(printed, "/step  ");
    CHECK_CONTAINS(printed, "  loss 0.");
    CHECK_CONTAINS(printed, "  val_accuracy ");
    printed[0] = 0;
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .batch_size = 1, .quiet = true) != NULL);
    CHECK_STR(printed, "");
    writes = 0;
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .batch_size = 1, .progress = EG_PROGRESS_BAR) != NULL);
    CHECK_CONTAINS(printed, "\rEpoch 1/2 ");
    CHECK_CONTAINS(printed, "1/64  ");
    CHECK_CONTAINS(printed, " left  loss ");
    CHECK_INT(count(printed, '\n'), 2);
    CHECK(writes < 128);                                     // not one a step
    printed[0] = 0;
    CHECK(eg_fit_arrays(model, x, y, .epochs = 9,
                        .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.monitor = "accuracy", .min_delta = 5))) !=
          NULL);
    CHECK_CONTAINS(printed, "\nStopped after epoch 2: the best was ");
    printed[0] = 0;
    CHECK(!isnan(eg_evaluate_arrays(model, x, y)));
    CHECK_CONTAINS(printed, "2 steps  ");
    CHECK_CONTAINS(printed, "  accuracy ");
    printed[0] = 0;
    CHECK(!isnan(eg_evaluate_arrays(model, x, y, .progress = EG_PROGRESS_BAR)));
    CHECK_CONTAINS(printed, "/2  evaluating");
    eg_set_printer(NULL, NULL);
    eg_layer_release(model);
}

// ---- mistakes, and what is rare

static bool quiet_failure(eg_fit_state *s, void *user) { (void)s; (void)user; return false; }
static bool asks_too_much(eg_fit_state *s, void *user) {
    eg_dataset *data = (eg_dataset *)user;
    CHECK_ERROR(eg_fit(s->model, data), EG_ERROR_STATE, "being fitted already");
    CHECK_ERROR(eg_evaluate(s->model, data), EG_ERROR_STATE, "use .validation or eg_predict");
    CHECK(eg_predict_dataset(s->model, data) != NULL);
    return true;
}
static int released;
static void count_release(void *user) { (void)user; released++; }
TEST(mistakes_around_a_fit) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y), 32),
               *endless = eg_dataset_repeat(eg_dataset_batch(eg_dataset_from_slices(x, y), 32), -1);
    eg_callback *own = eg_callback_new((eg_callback_functions){.epoch_end = asks_too_much,
                                                               .user = data, .release = count_release}),
                *again = eg_callback_retain(own);
    CHECK(eg_fit(model, data, .quiet = true, .callbacks = EG_CALLBACKS(own)) != NULL);
    CHECK_INT(released, 0);
    eg_callback_release(again);
    CHECK_INT(released, 1);
    CHECK(eg_callback_retain(NULL) == NULL && isnan(eg_fit_value(NULL, "loss")));
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .callbacks = EG_CALLBACKS(
            eg_callback_new((eg_callback_functions){.batch_begin = quiet_failure}))), EG_ERROR_STATE,
                "eg_fit: callback 0 failed in its batch_begin (epoch 1, batch 1)");
    CHECK_ERROR(eg_fit(model, data, .quiet = true,
                       .callbacks = EG_CALLBACKS(eg_callback_new((eg_callback_functions){.fit_end = quiet_failure}))),
                EG_ERROR_STATE, "eg_fit: callback 0 failed in its fit_end");
    CHECK_ERROR(eg_fit(model, endless), EG_ERROR_ARGUMENT, "the dataset has no end; give .steps_per_epoch");
    CHECK_ERROR(eg_evaluate(model, endless, .quiet = true), EG_ERROR_ARGUMENT, "has no end");
    CHECK_ERROR(eg_predict_dataset(model, endless), EG_ERROR_ARGUMENT, "give .steps");
    CHECK_SHAPE(eg_predict_dataset(model, endless, .steps = 3), 96, 2);
    CHECK_ERROR(eg_predict_dataset(model, data, .inputs = 3), EG_ERROR_ARGUMENT,
                "a model of 3 inputs, and elements of 2 components");
    CHECK_ERROR(eg_predict_dataset(model, data, .batch_size = 3), EG_ERROR_ARGUMENT, "eg_predict");
    CHECK_ERROR(eg_predict_dataset(model, NULL), EG_ERROR_NULL, "dataset");
    CHECK_ERROR(eg_evaluate(model, NULL), EG_ERROR_NULL, "dataset");
    CHECK_ERROR(eg_evaluate(NULL, data), EG_ERROR_NULL, "model");
    CHECK_ERROR(eg_evaluate_arrays(model, NULL, y), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_evaluate_arrays(model, x, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_model_reset_metrics(NULL), EG_ERROR_NULL, "model");
    CHECK_ERROR(eg_model_result(NULL, "loss"), EG_ERROR_NULL, "model");
    CHECK_ERROR(eg_model_result(model, NULL), EG_ERROR_ARGUMENT, "'NULL'");
    CHECK_ERROR((eg_compile_outputs)(model, eg_sgd(), NULL, 2), EG_ERROR_ARGUMENT, "a list of 2 is NULL");
    CHECK_ERROR(eg_fit(model, data, .no_shuffle = true), EG_ERROR_ARGUMENT, "options of eg_fit_arrays");
    CHECK_ERROR(eg_fit(model, data, .sample_weights = x), EG_ERROR_ARGUMENT, "options of eg_fit_arrays");
    CHECK_ERROR(eg_fit(model, data, .validation_x = x), EG_ERROR_ARGUMENT, "options of eg_fit_arrays");
    CHECK_ERROR(eg_fit(model, data, .validation_y = x), EG_ERROR_ARGUMENT, "options of eg_fit_arrays");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .validation = data, .validation_x = x, .validation_y = y), EG_ERROR_ARGUMENT,
                "or a .validation dataset");
    CHECK_ERROR(eg_fit_arrays(model, eg_scalar(1), y), EG_ERROR_SHAPE, "");
    CHECK(eg_model_optimizer(NULL) == NULL && eg_model_metric(NULL, 0) == NULL && eg_model_metric(model, -1) == NULL &&
          eg_model_metric(model, 1) == NULL && eg_model_history(NULL) == NULL);
    // With an error that is pending, what fails for want of what failed says nothing of its own.
    (void)eg_scalar_of(EG_INT32, 0.5);
    CHECK(eg_fit(model, NULL) == NULL && eg_predict(model, NULL) == NULL && isnan(eg_evaluate(model, NULL)) &&
          isnan(eg_model_result(NULL, "loss")) && !eg_history_csv(NULL, "x"));
    CHECK(eg_fit(model, data, .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan(), NULL)) == NULL &&
          !eg_compile(model, eg_sgd(), NULL));
    CHECK(eg_predict_dataset(NULL, data) == NULL);
    CHECK_CONTAINS(eg_error_message(), "0.5");
    eg_error_clear();
    eg_dataset_release(data);
    eg_dataset_release(endless);
    eg_layer_release(model);
}

TEST(options_that_a_callback_has_not) {
    CHECK_ERROR(eg_callback_backup("x", .monitor = "loss"), EG_ERROR_ARGUMENT, "monitor");
    CHECK_ERROR(eg_callback_backup("x", .mode = EG_MAX), EG_ERROR_ARGUMENT, "mode");
    CHECK_ERROR(eg_callback_backup("x", .min_delta = 1), EG_ERROR_ARGUMENT, "min_delta");
    CHECK_ERROR(eg_callback_backup("x", .restore_best = true), EG_ERROR_ARGUMENT, "restore_best");
    CHECK_ERROR(eg_callback_backup("x", .save_best = true), EG_ERROR_ARGUMENT, "save_best");
    CHECK_ERROR(eg_callback_backup("x", .cooldown = 1), EG_ERROR_ARGUMENT, "cooldown");
    CHECK_ERROR(eg_callback_backup("x", .min_learning_rate = 1), EG_ERROR_ARGUMENT, "min_learning_rate");
    CHECK_ERROR(eg_callback_backup("x", .append = true), EG_ERROR_ARGUMENT, "append");
    CHECK_ERROR(eg_callback_backup("x", .rate = rate_of), EG_ERROR_ARGUMENT, "rate");
    CHECK_ERROR(eg_callback_csv("x", .every = 1), EG_ERROR_ARGUMENT, "every");
    CHECK_ERROR(eg_callback_csv("x", .user = &released), EG_ERROR_ARGUMENT, "user");
    CHECK_ERROR(eg_callback_plateau(.cooldown = -1), EG_ERROR_ARGUMENT, ".cooldown is -1");
    CHECK_ERROR(eg_callback_plateau(.factor = -1), EG_ERROR_ARGUMENT, ".factor is -1");
    CHECK_ERROR(eg_callback_learning_rate(.user = &released), EG_ERROR_ARGUMENT, "give .rate");
}

// No history, a history of nothing, one with numbers that are none, an epoch that was cut.
static bool cut(eg_fit_state *s, void *user) { (void)user; s->stop = s->epoch == 1 && s->batch == 0; return true; }
static bool grow_loss(eg_fit_state *s, void *user) {
    return eg_optimizer_set_learning_rate(s->optimizer, *(double *)user);
}
TEST(rare_histories) {
    const char *path = test_temp("rare.csv");
    CHECK(eg_history_epochs(NULL) == 0 && eg_history_batches(NULL) == 0 && eg_history_name(NULL, 0) == NULL);
    CHECK(isnan(eg_history_value(NULL, "loss", -1)) && isnan(eg_history_batch_loss(NULL, -1)) &&
          isnan(eg_history_batch_loss(NULL, 0)));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1));
    eg_layer *model = line_model(eg_sgd(.learning_rate = 1e30), eg_mean_squared_error);
    const eg_history *h = eg_fit_arrays(model, x, x, .epochs = 3, .batch_size = 1, .quiet = true);
    REQUIRE(h != NULL);
    CHECK(isnan(eg_history_batch_loss(h, -2)) && isnan(eg_history_batch_loss(h, 99)) && !eg_history_name(h, -1));
    double none = 0;
    CHECK_ERROR((none = eg_history_value(h, NULL, 0), isnan(none) ? NULL : h), EG_ERROR_ARGUMENT, "no 'NULL'; it has");
    CHECK_ERROR((none = eg_history_value(h, "loss", -2), isnan(none) ? NULL : h), EG_ERROR_INDEX, "epoch -2; there");
    CHECK(eg_history_batches_csv(h, path) && eg_history_csv(h, path));
    CHECK_CONTAINS(contents(path), "nan");
    CHECK_ERROR(eg_history_csv(h, NULL), EG_ERROR_NULL, "path");
    CHECK_ERROR(eg_history_batches_csv(h, NULL), EG_ERROR_NULL, "path");
    CHECK_ERROR(eg_history_csv(h, test_temp("rare.csv/inside")), EG_ERROR_FILE, "rare.csv");
    double rate = 1e30;
    eg_callback *stop = eg_callback_stop_on_nan(),
                *wild = eg_callback_new((eg_callback_functions){.batch_end = grow_loss, .user = &rate});
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    eg_tensor *w;
    eg_layer_weights(model, &w, 1);
    CHECK(eg_assign(w, 1e25) != NULL);
    h = eg_fit_arrays(model, x, x, .batch_size = 1, .quiet = true, .callbacks = EG_CALLBACKS(wild, stop));
    REQUIRE(h != NULL);
    CHECK_INT(eg_history_batches(h), 1);                     // infinite
    CHECK(eg_history_csv(h, path));
    CHECK_CONTAINS(contents(path), ",inf");
    CHECK(eg_assign(w, 0) != NULL);
    for (int n = 0; n < 2; n++) {
        h = eg_fit_arrays(model, x, x, .epochs = 3, .batch_size = 1, .quiet = true,
                          .callbacks = EG_CALLBACKS(eg_callback_new((eg_callback_functions){
                .batch_end = n ? cut : NULL, .batch_begin = n ? NULL : fails})));
        CHECK_INT(n ? eg_history_batches(h) : eg_error() == EG_ERROR_ASSERT, n ? 5 : 1);
        eg_error_clear();
        CHECK(eg_history_svg(eg_model_history(model), test_temp("rare.svg")) &&
              eg_history_batches_csv(eg_model_history(model), path));
    }
    CHECK_CONTAINS(contents(path), "\n2,1,");
    eg_layer_release(model);
}

static bool sees_validation(eg_fit_state *s, void *user) {
    (void)user;
    CHECK(eg_fit_value(s, "val_loss") > 0 && isnan(eg_fit_value(s, NULL)));
    return true;
}
static bool stop_at_once(eg_fit_state *s, void *user) { (void)user; CHECK_INT(s->batches, -1); return s->stop = true; }
TEST(rare_arguments) {
    eg_tensor *x = points(), *y = classes(x), *none = eg_zeros(EG_FLOAT32, EG_SHAPE(0, 4)),
              *nobody = eg_zeros(EG_INT32, EG_SHAPE(0));
    eg_layer *model = compiled(), *line = line_model(eg_sgd(), eg_mean_squared_error);
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y), 32),
               *unknown = eg_dataset_from_generator(two_good_batches, NULL, 2, NULL);
    eg_set_printer(catch_text, NULL);
    printed[0] = 0;
    CHECK(eg_fit(model, data, .validation = data, .progress = EG_PROGRESS_LINES,
                 .callbacks = EG_CALLBACKS(eg_callback_new((eg_callback_functions){.epoch_end = sees_validation}))) !=
          NULL);
    CHECK_INT(count(printed, '\n'), 1);
    eg_set_printer(NULL, NULL);
    const eg_history *h =
        eg_fit(line, unknown, .quiet = true,
               .callbacks = EG_CALLBACKS(eg_callback_new((eg_callback_functions){.batch_end = stop_at_once})));
    CHECK_INT(eg_history_batches(h), 1);
    CHECK_ERROR(eg_fit_arrays(model, none, nobody, .quiet = true), EG_ERROR_ARGUMENT, "the dataset has no elements");
    CHECK_ERROR(eg_predict_dataset(model, data, .inputs = -1), EG_ERROR_ARGUMENT,
                "eg_predict_dataset: .inputs is -1; it must be at least 1");
    CHECK_ERROR(eg_train_on_batch(model, x, NULL), EG_ERROR_NULL, "NULL");
    eg_dataset_release(data);
    eg_dataset_release(unknown);
    eg_layer_release(line);
    eg_layer_release(model);
}

// Names of metrics that need care, numbers that are none.
static eg_tensor *minus_infinity(eg_tensor *labels, eg_tensor *predictions) {
    (void)labels;
    return eg_mul(eg_ones_like(predictions), -INFINITY);
}
TEST(odd_metrics_in_files) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    char path[4300], log[4200];
    CHECK(eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy, eg_metric_of(minus_infinity, .name = "a<b&c"),
                     eg_metric_accuracy(.name = "same"), eg_metric_accuracy(.name = "same")));
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_checkpoint(
            "odd-{a_name_that_is_longer_than_any_name_of_a_result_can_be_so_that_it_is_none}.npz"))), EG_ERROR_ARGUMENT,
                "there is no 'a_name_that_is_longer");
    snprintf(path, sizeof path, "%s", test_temp("odd-{a<b&c:.2f}.npz"));
    snprintf(log, sizeof log, "%s", test_temp("odd.csv"));
    const eg_history *h = eg_fit_arrays(model, x, y, .quiet = true,
                                        .callbacks = EG_CALLBACKS(eg_callback_checkpoint(path), eg_callback_csv(log),
                                                                  eg_callback_backup(test_temp("odd"), .every = 1)));
    REQUIRE(h != NULL);
    CHECK(eg_load_weights(model, test_temp("odd--inf.npz")));
    CHECK_CONTAINS(contents(log), ",-inf,");
    CHECK(eg_history_svg(h, test_temp("odd_names.svg")));
    CHECK_CONTAINS(contents(test_temp("odd_names.svg")), "a&#60;b&#38;c");
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_backup(test_temp("odd"), .every = 1))) != NULL);
    CHECK_INT(eg_history_epochs(eg_model_history(model)), 2);
    // Files that cannot be there: what stands in the way is a folder, or a file.
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true,
                              .callbacks = EG_CALLBACKS(eg_callback_csv(test_temp(""), .append = true))), EG_ERROR_FILE,
                "");
    snprintf(path, sizeof path, "%s/board", log);
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_tensorboard(path))),
                EG_ERROR_FILE, "board");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_backup(path))),
                EG_ERROR_FILE, "board");
    eg_layer_release(model);
}

// Validation in every other epoch: what looks for val_loss waits for the next one.
TEST(callbacks_without_a_value) {
    eg_tensor *x = points(), *y = classes(x), *noise = eg_sub(1, y);
    eg_layer *model = compiled();
    char board[4200];
    snprintf(board, sizeof board, "%s", test_temp("every_other"));
    const eg_history *h = eg_fit_arrays(
        model, x, y, .epochs = 9, .validation_x = x, .validation_y = noise, .validation_every = 2, .quiet = true,
        .callbacks = EG_CALLBACKS( eg_callback_plateau(.patience = 1, .factor = 0.5), eg_callback_tensorboard(board),
                                   eg_callback_checkpoint(test_temp("every_{epoch.h5"), .save_best = true),
                                   eg_callback_early_stopping(.patience = 2)));
    CHECK(h == NULL);                                        // the path is no weights' file
    CHECK_CONTAINS(eg_error_message(), "every_{epoch");
    eg_error_clear();
    h = eg_fit_arrays(model, x, y, .epochs = 9, .validation_x = x, .validation_y = noise, .validation_every = 2,
                      .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_plateau(.patience = 1, .factor = 0.5),
                                                               eg_callback_early_stopping(.patience = 2)));
    REQUIRE(h != NULL);
    CHECK_INT(eg_history_epochs(h), 6);
    for (int e = 0; e < 6; e++) CHECK_INT(isnan(eg_history_value(h, "val_loss", e)), e % 2 == 0);
    CHECK_NEAR(eg_history_value(h, "learning_rate", 5), 0.01, 1e-9);         // behind epoch 4
    CHECK(eg_fit_arrays(model, x, y, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_csv(test_temp("folder/new.csv"), .append = true))) !=
          NULL);
    eg_layer_release(model);
}

// Labels that stand in a column, or one-hot, and steps of masks have weights of classes too.
TEST(class_weights_of_columns) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_constant(EG_SHAPE(2), 0, 1);
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true, .kernel_initializer = EG_INIT_ZEROS),
                                    eg_layer_reshape(EG_SCALAR));
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    // of labels of rank 1
    CHECK_NEAR(eg_test_on_batch(model, x, y, .class_weights = EG_CLASS_WEIGHTS(7, 3)), 1.5, 1e-6);
    eg_layer_release(model);
}

// The bar, where a terminal can draw blocks, and where something fails in the middle of it.
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
int nanosleep(const struct timespec *time, struct timespec *left);
static bool slow(eg_fit_state *s, void *user) {
    const struct timespec quarter = {0, 250000000};
    (void)s;
    nanosleep(&quarter, NULL);
    return user == NULL || s->batch < 1 || eg_raise(EG_ERROR_STATE, "in the middle") != NULL;
}
TEST(bars) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    const char *former = getenv("LC_ALL");
    char kept[100];
    snprintf(kept, sizeof kept, "%s", former ? former : "");
    eg_dataset *unknown = eg_dataset_from_generator(two_good_batches, NULL, 2, NULL);
    eg_layer *line = line_model(eg_sgd(), eg_mean_squared_error);
    eg_set_printer(catch_text, NULL);
    for (int blocks = 0; blocks < 2; blocks++) {
        setenv("LC_ALL", blocks ? "C.UTF-8" : "C", 1);
        printed[0] = 0;
        CHECK(eg_fit_arrays(model, x, y, .batch_size = 16, .progress = EG_PROGRESS_BAR,
                            .callbacks = EG_CALLBACKS(eg_callback_new((eg_callback_functions){.batch_end = slow}))) !=
              NULL);
        CHECK_CONTAINS(printed, blocks ? "\xe2\x96\x88" : "###");
        CHECK_CONTAINS(printed, blocks ? "\xc2\xb7" : "...");
        CHECK_CONTAINS(printed, "s/step");
    }
    if (former) setenv("LC_ALL", kept, 1);
    else unsetenv("LC_ALL");
    printed[0] = 0;
    CHECK(eg_fit_arrays(model, x, y, .batch_size = 16, .progress = EG_PROGRESS_BAR, .callbacks = EG_CALLBACKS(
            eg_callback_new((eg_callback_functions){.batch_end = slow, .user = model}))) == NULL);
    CHECK(printed[0] && printed[strlen(printed) - 1] == '\n');                // what is printed next begins a line
    eg_error_clear();
    printed[0] = 0;
    // its third batch fails; nobody knew how many there are
    CHECK(eg_fit(line, unknown, .progress = EG_PROGRESS_BAR) == NULL);
    CHECK_CONTAINS(printed, " 1 steps  ");
    eg_error_clear();
    printed[0] = 0;
    CHECK(isnan(eg_evaluate(line, unknown, .progress = EG_PROGRESS_BAR)));
    CHECK_CONTAINS(printed, " 1  evaluating");
    eg_error_clear();
    eg_set_printer(NULL, NULL);
    eg_dataset_release(unknown);
    eg_layer_release(line);
    eg_layer_release(model);
}

// ---- what it costs

TEST(memory_stays_flat) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_dataset *data = eg_dataset_repeat(eg_dataset_batch(eg_dataset_from_slices(x, y), 8), -1);
    CHECK(eg_fit(model, data, .steps_per_epoch = 20, .quiet = true) != NULL);
    int64_t steps = 4000 / test_share, tensors = eg_memory().live_tensors, bytes = eg_memory().live_bytes;
    eg_memory_reset_peak();
    CHECK(eg_fit(model, data, .epochs = 4, .steps_per_epoch = steps / 4, .validation = data, .validation_steps = 2,
                 .quiet = true) != NULL);
    CHECK_INT(eg_memory().live_tensors, tensors);
    CHECK(eg_memory().peak_bytes - bytes < 400000 + 2 * 8 * steps);    // two traces, the losses of the history
    eg_dataset_release(data);
    eg_layer_release(model);
}

TEST(a_tape_of_the_caller_sees_nothing) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = compiled();
    eg_tape *tape = eg_tape_begin_persistent();
    CHECK(eg_fit_arrays(model, x, y, .quiet = true) != NULL);
    CHECK(!isnan(eg_evaluate_arrays(model, x, y, .quiet = true)) && eg_predict(model, x) != NULL);
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 0);
    eg_layer_release(model);
}

// ---- labels, weights and names that do not fit

static eg_tensor *first_step(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_index(eg_transpose(in[0], .perm = EG_AXES(1, 0, 2)), 0);
}
TEST(labels_that_a_loss_cannot_take) {
    eg_tensor *four = eg_zeros(EG_FLOAT32, EG_SHAPE(4)), *pairs = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 2)),
              *p = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 3));
    CHECK_ERROR(
        eg_mean_squared_error(pairs, p), EG_ERROR_SHAPE,
        "labels float32 [4, 2] (from eg_zeros) and predictions float32 [4, 3] (from eg_zeros) must have one shape");
    CHECK_ERROR(eg_mean_squared_error(four, p), EG_ERROR_SHAPE, "must have one shape (nothing is broadcast here)");
    CHECK_ERROR(eg_mean_squared_error(eg_zeros(EG_FLOAT32, EG_SHAPE(3)), eg_zeros(EG_FLOAT32, EG_SHAPE(4, 1))),
                EG_ERROR_SHAPE, "must have one shape (nothing is broadcast here)");
    CHECK_ERROR(eg_loss_mean(eg_binary_crossentropy, eg_scalar(1), eg_scalar_of(EG_INT32, 1)), EG_ERROR_DTYPE,
                "eg_binary_crossentropy");
    // one number: an example
    CHECK_TENSOR(eg_loss_mean(eg_binary_crossentropy, eg_scalar(1), eg_scalar(0), .label_smoothing = .5), 1e-6, log(2));
}
TEST(names_and_weights_that_a_fit_refuses) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(8, 4)),
              *y = eg_constant_of(EG_INT32, EG_SHAPE(8), 0, 1, 0, 1, 0, 1, 0, 1),
              *w = eg_constant(EG_SHAPE(8), 1, 1, 1, 1, 1, 1, 1, 5);
    eg_layer *model = compiled();
    CHECK_ERROR(eg_compile(model, eg_sgd(), eg_huber, eg_metric_mean_absolute_error(.name = "learning_rate")),
                EG_ERROR_ARGUMENT, "a result would be called 'learning_rate'");
    // A GPU tells of a bad label when the loss is read, after the step.
    if (!test_traps_later)
        CHECK_ERROR(eg_train_on_batch(model, x, eg_sub(y, 1), .class_weights = EG_CLASS_WEIGHTS(1, 2)), EG_ERROR_INDEX,
                    "label -1 occurs");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation_y = y), EG_ERROR_ARGUMENT,
                "give .validation_x and .validation_y, both, or a .validation dataset");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .validation = (eg_dataset *)(void *)model, .validation_x = x,
                              .validation_y = y), EG_ERROR_ARGUMENT, "both, or a .validation dataset");
    CHECK_ERROR(eg_fit_arrays(model, eg_scalar(1), y, .quiet = true, .validation_split = .5), EG_ERROR_SHAPE,
                "x is a scalar");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .quiet = true, .sample_weights = eg_scalar(1), .validation_split = .5),
                EG_ERROR_SHAPE, ".sample_weights is a scalar");
    CHECK_INT(eg_optimizer_steps(eg_model_optimizer(model)), 0);
    // The weights are parted as the rows are: those that are held out weigh in the validation.
    const eg_history *h = eg_fit_arrays(model, x, y, .quiet = true, .sample_weights = w, .validation_split = .25,
                                        .no_shuffle = true);
    REQUIRE(h != NULL);
    eg_tensor *last = eg_slice(x, EG_SHAPE(6, 0), EG_SHAPE(2, -1)), *labels = eg_slice(y, EG_SHAPE(6), EG_SHAPE(2)),
              *weights = eg_slice(w, EG_SHAPE(6), EG_SHAPE(2));
    CHECK_NEAR(eg_item(eg_loss_mean(eg_sparse_categorical_crossentropy, labels, eg_call(model, last),
                                    .weights = weights)), eg_history_value(h, "val_loss", 0), 1e-5);
    eg_layer_release(model);
}
// A mask of steps says nothing about an output that has none.
TEST(masks_end_where_steps_do) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2, 1), 1, 0, 3, 4), *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1));
    eg_layer *model = eg_sequential(eg_layer_masking(EG_ZERO), eg_layer_lambda("first", first_step, NULL),
                                    eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES));
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK_NEAR(eg_test_on_batch(model, x, y), (1 + 9) / 2., 1e-6);
    eg_layer_release(model);
}
// What grows as it becomes better is known by its name, however short.
TEST(short_names_to_monitor) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    CHECK(eg_compile(model, eg_adam(.learning_rate = .02), eg_sparse_categorical_crossentropy,
                     eg_metric_accuracy(.name = "f1"), eg_metric_accuracy(.name = "x")));
    const eg_history *h =
        eg_fit_arrays(model, x, y, .epochs = 8, .quiet = true,
                      .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.monitor = "f1", .patience = 3)));
    REQUIRE(h != NULL);
    CHECK(eg_history_epochs(h) > 4 || eg_history_value(h, "f1", 0) == 1);      // it rises
    h = eg_fit_arrays(model, x, y, .epochs = 9, .quiet = true,
                      .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.monitor = "x", .patience = 3)));
    REQUIRE(h != NULL);
    CHECK(eg_history_epochs(h) < 9);                         // nobody knows that of "x", so it should fall
    eg_layer_release(model);
}
static bool hears_reason(eg_fit_state *s, void *user) {
    snprintf((char *)user, 128, "%s", s->reason ? s->reason : "");
    return true;
}
TEST(results_that_there_are_not) {
    eg_tensor *x = points(), *y = classes(x);
    eg_layer *model = small_model();
    CHECK(eg_compile(model, eg_adam(), eg_sparse_categorical_crossentropy, eg_metric_accuracy()));
    CHECK(isnan(eg_model_result(model, "val_accuracy")) && eg_error() == EG_OK);        // none yet, but it is a name
    CHECK(isnan(eg_model_result(model, "acc")));
    CHECK(eg_error() == EG_ERROR_ARGUMENT);
    CHECK_CONTAINS(eg_error_message(), "eg_model_result: the model has no result 'acc'; there are loss, accuracy, the "
                                       "same with val_ before it, and learning_rate (at training.c:");
    eg_error_clear();
    eg_train_on_batch(model, x, y);
    CHECK(eg_model_result(model, "accuracy") >= 0);
    eg_layer_release(model);
}
TEST(infinities_stop_a_fit_by_their_name) {
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2, 1), 1e30), *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1));
    eg_layer *model = eg_sequential(eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES));
    char said[128] = "";
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK(eg_fit_arrays(model, x, y, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan(), eg_callback_new((eg_callback_functions){
            .fit_end = hears_reason, .user = said}))) != NULL);
    CHECK_STR(said, "Stopped in epoch 1 at batch 1: the loss is infinite");
    eg_layer_release(model);
}
// Large and small losses are shown with a power of ten; numbers in paths have their zeros in every format.
TEST(numbers_of_every_size_are_shown) {
    eg_tensor *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1)), *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *w;
    eg_layer *model = eg_sequential(eg_layer_dense(1, .no_bias = true)),
             *other = eg_sequential(eg_layer_dense(1, .no_bias = true));
    CHECK(eg_layer_build(other, EG_SHAPE(-1, 1)) && eg_layer_build(model, EG_SHAPE(-1, 1)) &&
          eg_compile(model, eg_sgd(.learning_rate = EG_ZERO), eg_mean_squared_error));
    eg_layer_weights(model, &w, 1);
    static const struct { double w; const char *shown, *file; } cases[] = {
        {2000, "  loss 4.000e+06", "size-04.00e+06-04e+06-   4e+06.npz"},
        {.01, "  loss 1.000e-04", "size-01.00e-04-0.0001-  0.0001.npz"},
        {2, "  loss 4.0000", "size-04.00e+00-000004-       4.npz"},
        {0, "  loss 0.0000", "size-00.00e+00-000000-       0.npz"}};
    for (int i = 0; i < 4; i++) {
        CHECK(eg_assign(w, cases[i].w) != NULL);
        printed[0] = 0;
        eg_set_printer(catch_text, NULL);
        CHECK(eg_fit_arrays(model, x, y, .callbacks = EG_CALLBACKS(
                eg_callback_checkpoint(test_temp("size-{loss:09.2e}-{loss:06.3g}-{loss:8.3g}.npz")))) != NULL);
        eg_set_printer(NULL, NULL);
        CHECK_CONTAINS(printed, cases[i].shown);
        CHECK(eg_load_weights(other, test_temp(cases[i].file)));
        CHECK_SAME(eg_call(other, x), eg_call(model, x), 0);
    }
    eg_layer_release(model);
    eg_layer_release(other);
}

// ---- a history of one's own

TEST(the_history_of_a_fit_is_its_models) {                     // whatever is cast
    eg_layer *m = eg_sequential(eg_layer_dense(1));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 2)), *y = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1));
    CHECK(eg_compile(m, eg_sgd(.learning_rate = 0.1), eg_mean_squared_error));
    eg_history *h = (eg_history *)(uintptr_t)eg_fit_arrays(m, x, y, .quiet = true);
    REQUIRE(h);
    double loss = eg_history_value(h, "loss", 0);
    CHECK_ERROR(eg_history_add(h, 0, "loss", 7), EG_ERROR_STATE,
                "eg_history_add: this is the history of a fit, which belongs to its model");
    CHECK_ERROR(eg_history_add_batch(h, 7), EG_ERROR_STATE, "eg_history_add_batch: this is the history of a fit");
    eg_history_release(h);
    CHECK_INT(eg_error(), EG_ERROR_STATE);
    eg_error_clear();
    CHECK_NEAR(eg_history_value(eg_model_history(m), "loss", 0), loss, 0);
    eg_layer_release(m);
}
TEST(a_history_is_kept_beyond_its_model) {
    eg_layer *m = eg_sequential(eg_layer_dense(1));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 2)), *y = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1));
    CHECK(eg_compile(m, eg_sgd(.learning_rate = 0.1), eg_mean_squared_error));
    eg_history *first = eg_history_retain(eg_fit_arrays(m, x, y, .quiet = true));
    REQUIRE(first);
    double loss = eg_history_value(first, "loss", 0);
    eg_history *second = eg_history_retain(eg_fit_arrays(m, x, y, .quiet = true));
    REQUIRE(second && second != first);
    CHECK_NEAR(eg_history_value(first, "loss", 0), loss, 0);
    CHECK_ERROR(eg_history_add(first, 0, "loss", 7), EG_ERROR_STATE, "this is the history of a fit");
    CHECK(eg_model_history(m) == second);
    eg_history_release(second);                                // the model keeps its own
    CHECK_INT(eg_history_epochs(eg_model_history(m)), 1);
    second = eg_history_retain(eg_model_history(m));
    eg_layer_release(m);
    CHECK_INT(eg_history_epochs(second), 1);
    eg_history_release(second);
    eg_history_release(first);
    eg_history *own = eg_history_new(), *again = eg_history_retain(own);
    eg_history_release(own);
    CHECK(eg_history_add(again, 0, "loss", 1));
    eg_history_release(again);
}
TEST(a_loop_by_hand_fills_a_history) {
    eg_history *h = eg_history_new();
    REQUIRE(h);
    double none = 0;
    CHECK(isnan(eg_history_value(h, "loss", -1)));                 // no epoch yet
    CHECK_ERROR((none = eg_history_value(h, "loss", 0), isnan(none) ? NULL : h), EG_ERROR_ARGUMENT,
                "the history has no 'loss'; it has nothing yet");
    for (int epoch = 0; epoch < 40; epoch++) {
        for (int batch = 0; batch < 5; batch++) CHECK(eg_history_add_batch(h, 10.0 / (5 * epoch + batch + 1)));
        CHECK(eg_history_add(h, epoch, "loss", 8.0 / (epoch + 1)));
        if (epoch >= 2) CHECK(eg_history_add(h, epoch, "val_loss", 9.0 / (epoch + 1)));
    }
    CHECK(eg_history_add(h, 0, "accuracy", .5));                   // later, too
    CHECK(eg_history_add(h, 0, "loss", 7));
    CHECK_INT(eg_history_epochs(h), 40);
    CHECK_INT(eg_history_batches(h), 200);
    CHECK_STR(eg_history_name(h, 0), "loss");
    CHECK_STR(eg_history_name(h, 2), "accuracy");
    CHECK(!eg_history_name(h, 3));
    CHECK_NEAR(eg_history_value(h, "loss", 0), 7, 0);
    CHECK_NEAR(eg_history_value(h, "val_loss", -1), 9.0 / 40, 0);
    CHECK(isnan(eg_history_value(h, "val_loss", 1)));
    CHECK(isnan(eg_history_value(h, "accuracy", 39)));
    CHECK_NEAR(eg_history_batch_loss(h, -1), 10.0 / 200, 0);
    CHECK(eg_history_csv(h, test_temp("own.csv")));
    CHECK(eg_history_batches_csv(h, test_temp("own_batches.csv")));
    eg_tensor *lines = eg_read_file(test_temp("own.csv")), *batches = eg_read_file(test_temp("own_batches.csv")), *svg;
    REQUIRE(lines && batches);
    CHECK(!strncmp((const char *)eg_data(lines), "epoch,loss,val_loss,accuracy\n1,7,nan,0.5\n2,4,nan,nan\n3,", 52));
    CHECK(!strncmp((const char *)eg_data(batches), "epoch,batch,loss\n1,1,10\n1,2,5\n", 30));
    CHECK(eg_history_svg(h, test_temp("own.svg")));
    svg = eg_read_file(test_temp("own.svg"));
    char *text = (char *)malloc((size_t)eg_size(svg) + 1);
    memcpy(text, eg_data(svg), (size_t)eg_size(svg));
    text[eg_size(svg)] = 0;
    CHECK_CONTAINS(text, ">loss</text>");
    CHECK_CONTAINS(text, ">validation</text>");
    CHECK_CONTAINS(text, ">accuracy</text>");
    free(text);
    CHECK_ERROR(eg_history_add(h, 41, "loss", 1), EG_ERROR_INDEX,
                "eg_history_add: epoch 41; there are 40, counted from 0, and 40 is the next");
    CHECK_ERROR(eg_history_add(h, -1, "loss", 1), EG_ERROR_INDEX, "epoch -1");
    CHECK_ERROR(eg_history_add(h, 0, "a,b", 1), EG_ERROR_ARGUMENT, "'a,b' is no name");
    CHECK_ERROR(eg_history_add(h, 0, "", 1), EG_ERROR_ARGUMENT, "is no name");
    CHECK_ERROR(eg_history_add(h, 0, NULL, 1), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_history_add(NULL, 0, "loss", 1), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_history_add_batch(NULL, 1), EG_ERROR_NULL, "NULL");
    eg_history_release(h);
    eg_history_release(NULL);
}

// What a callback asks for at an epoch's end is what the history has, also where a validation has summed in the same
// metrics since.
static double asked[2][4];
static bool asks_at_the_end(eg_fit_state *s, void *user) {
    (void)user;
    asked[0][s->epoch] = eg_fit_value(s, "loss");
    asked[1][s->epoch] = eg_fit_value(s, "val_loss");
    return true;
}
static bool asks_before_any(eg_fit_state *s, void *user) {
    if (s->batch == 0) *(int *)user += isnan(eg_fit_value(s, "loss")) != 0;
    return true;
}
TEST(values_of_an_epoch_beside_its_validation) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(32, 3)), *y = eg_reduce_sum(x, .axes = EG_AXES(1), .keepdims = true);
    eg_layer *m = eg_sequential(eg_layer_dense(1));
    int none = 0;
    REQUIRE(eg_compile(m, eg_adam(), eg_mean_squared_error));
    eg_callback *asks = eg_callback_new((eg_callback_functions){.epoch_end = asks_at_the_end,
                                                                .batch_begin = asks_before_any, .user = &none});
    const eg_history *h = eg_fit_arrays(m, x, y, .epochs = 3, .batch_size = 8, .validation_split = 0.25, .quiet = true,
                                        .callbacks = EG_CALLBACKS(asks));
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(asked[0][i], eg_history_value(h, "loss", i), 0);
        CHECK_NEAR(asked[1][i], eg_history_value(h, "val_loss", i), 0);
        CHECK(asked[0][i] != asked[1][i]);
    }
    CHECK_INT(none, 3);
    eg_layer_release(m);
}
