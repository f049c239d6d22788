// Options are given by name. A value without a name is something that the compiler warns of
// (tests/checks/check_compile.sh); where nobody looked, each function says so, in a sentence. Every function with
// options is here: tests/checks/check_form.sh compares.
#include "test.h"

#pragma GCC diagnostic ignored "-Wint-conversion"
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

static void check_bare(const char *file, int line, const char *call, const char *says) {
    char part[160];
    const char *end = strchr(call, '(');
    if (says) snprintf(part, sizeof part, "%s: options are given by name, as in .", says);
    else snprintf(part, sizeof part, "%.*s: options are given by name, as in .", (int)(end - call), call);
    test_error(file, line, call, (int)EG_ERROR_ARGUMENT, "EG_ERROR_ARGUMENT", part);
}
// A 0 is the value that looks most like no option at all. says: whose words the error has, where they are not the
// function's own.
#define BARE(call) do { (void)(call); check_bare(__FILE__, __LINE__, #call, NULL); } while (0)
#define BARE_AS(says, call) do { (void)(call); check_bare(__FILE__, __LINE__, #call, says); } while (0)

TEST(bare_values_in_ops) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), *b = eg_cast(x, EG_BOOL),
              *rows = eg_constant_of(EG_INT32, EG_SHAPE(1), 1);
    eg_tensor *line = eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 1)), *taps = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1, 1));
    eg_tensor *picture = eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 4, 1)), *filter = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2, 1, 1));
    BARE(eg_softmax(x, 0));
    BARE(eg_log_softmax(x, 0));
    BARE(eg_reduce_sum(x, 0));
    BARE(eg_reduce_mean(x, 0));
    BARE(eg_reduce_max(x, 0));
    BARE(eg_reduce_min(x, 0));
    BARE(eg_reduce_prod(x, 0));
    BARE(eg_reduce_all(b, 0));
    BARE(eg_reduce_any(b, 0));
    BARE(eg_reduce_logsumexp(x, 0));
    BARE(eg_reduce_variance(x, 0));
    BARE(eg_reduce_std(x, 0));
    BARE(eg_norm(x, 0));
    BARE(eg_argmax(x, 0));
    BARE(eg_argmin(x, 0));
    BARE(eg_cumsum(x, 0));
    BARE(eg_sort(x, 0));
    BARE(eg_argsort(x, 0));
    BARE(eg_matmul(x, x, 0));
    BARE(eg_transpose(x, 0));
    BARE(eg_squeeze(x, 0));
    BARE(eg_pad(x, EG_PADS(0, 0, 1, 1), 0));
    BARE(eg_gather(x, rows, 0));
    BARE(eg_one_hot(rows, 3, 0));
    BARE(eg_conv2d(picture, filter, 0));
    BARE(eg_conv1d(line, taps, 0));
    BARE(eg_depthwise_conv2d(picture, filter, 0));
    BARE(eg_conv2d_transpose(picture, filter, 0));
    BARE(eg_conv1d_transpose(line, taps, 0));
    BARE(eg_max_pool2d(picture, 0));
    BARE(eg_avg_pool2d(picture, 0));
    BARE(eg_max_pool1d(line, 0));
    BARE(eg_avg_pool1d(line, 0));
    BARE(eg_resize(picture, 2, 2, 0));
    BARE(eg_random_normal(EG_SHAPE(2), 0));
    BARE(eg_random_truncated_normal(EG_SHAPE(2), 0));
    BARE(eg_random_uniform(EG_SHAPE(2), 0));
    BARE(eg_random_bernoulli(EG_SHAPE(2), 0));
}

static eg_tensor *square(eg_tensor *const *in, void *user) { (void)user; return eg_square(in[0]); }
static bool squares(eg_tensor *const *in, eg_tensor **out, void *user) { return (out[0] = square(in, user)) != NULL; }
TEST(bare_values_in_optimizers) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    BARE(eg_check_gradient(square, NULL, &x, 1, 0));
    BARE(eg_while(squares, squares, NULL, &x, &y, 1, 0));
    eg_function *function = eg_function_new(squares, NULL);
    BARE(eg_function_save(function, "f", 0));
    eg_function_release(function);
    BARE(eg_scan(squares, NULL, &x, &y, 1, &x, 1, NULL, 0, 0));
    BARE(eg_host_call(squares, NULL, &x, 1, &y, 1, 0));
    BARE(eg_sgd(0));
    BARE(eg_rmsprop(0));
    BARE(eg_adam(0));
    BARE(eg_adamw(0));
    BARE(eg_adagrad(0));
    BARE(eg_adadelta(0));
    BARE(eg_adamax(0));
    BARE(eg_nadam(0));
    BARE(eg_ftrl(0));
    BARE(eg_lion(0));
}

TEST(bare_values_in_layers) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *y = x;
    BARE(eg_layer_dense(3, 0));
    BARE(eg_layer_conv1d(3, 2, 0));
    BARE(eg_layer_conv2d(3, 2, 0));
    BARE(eg_layer_conv1d_transpose(3, 2, 0));
    BARE(eg_layer_conv2d_transpose(3, 2, 0));
    BARE(eg_layer_depthwise_conv2d(2, 0));
    BARE(eg_layer_separable_conv2d(3, 2, 0));
    BARE(eg_layer_max_pooling1d(0));
    BARE(eg_layer_max_pooling2d(0));
    BARE(eg_layer_average_pooling1d(0));
    BARE(eg_layer_average_pooling2d(0));
    BARE(eg_layer_global_max_pooling1d(0));
    BARE(eg_layer_global_max_pooling2d(0));
    BARE(eg_layer_global_average_pooling1d(0));
    BARE(eg_layer_global_average_pooling2d(0));
    BARE(eg_layer_flatten(0));
    BARE(eg_layer_reshape(EG_SHAPE(3), 0));
    BARE(eg_layer_permute(EG_AXES(1), 0));
    BARE(eg_layer_repeat_vector(2, 0));
    BARE(eg_layer_zero_padding1d(EG_PADS(1), 0));
    BARE(eg_layer_zero_padding2d(EG_PADS(1), 0));
    BARE(eg_layer_up_sampling1d(2, 0));
    BARE(eg_layer_up_sampling2d(2, 0));
    BARE(eg_layer_activation(EG_RELU, 0));
    BARE(eg_layer_leaky_relu(0.1, 0));
    BARE(eg_layer_dropout(0.5, 0));
    BARE(eg_layer_masking(0, 0));
    BARE(eg_layer_batch_normalization(0));
    BARE(eg_layer_layer_normalization(0));
    BARE(eg_layer_rms_normalization(0));
    BARE(eg_layer_group_normalization(0));
    BARE(eg_layer_embedding(4, 2, 0));
    BARE(eg_layer_merge_add(0));
    BARE(eg_layer_merge_subtract(0));
    BARE(eg_layer_merge_multiply(0));
    BARE(eg_layer_merge_average(0));
    BARE(eg_layer_merge_maximum(0));
    BARE(eg_layer_merge_minimum(0));
    BARE(eg_layer_concatenate(0));
    BARE(eg_layer_simple_rnn(3, 0));
    BARE(eg_layer_lstm(3, 0));
    BARE(eg_layer_gru(3, 0));
    BARE(eg_layer_bidirectional(eg_layer_lstm(3), 0));
    BARE(eg_layer_multi_head_attention(2, 3, 0));
    BARE(eg_layer_position_embedding(4, 0));
    eg_layer *flat = eg_layer_flatten();
    BARE(eg_call(flat, x, 0));
    BARE(eg_call_multi(flat, &x, 1, &y, 1, 0));
    CHECK(y == NULL);
    eg_layer_release(flat);
}

TEST(bare_values_in_training) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *y = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    BARE_AS("eg_huber", eg_loss_per_example(eg_huber, y, y, 0));
    BARE_AS("eg_huber", eg_loss_mean(eg_huber, y, y, 0));
    BARE(eg_metric_mean(0));
    BARE(eg_metric_sum(0));
    BARE(eg_metric_accuracy(0));
    BARE(eg_metric_binary_accuracy(0));
    BARE(eg_metric_categorical_accuracy(0));
    BARE(eg_metric_sparse_categorical_accuracy(0));
    BARE(eg_metric_top_k(0));
    BARE(eg_metric_precision(0));
    BARE(eg_metric_recall(0));
    BARE(eg_metric_f1(0));
    BARE(eg_metric_auc(0));
    BARE(eg_metric_mean_squared_error(0));
    BARE(eg_metric_root_mean_squared_error(0));
    BARE(eg_metric_mean_absolute_error(0));
    BARE(eg_metric_r2(0));
    BARE(eg_metric_mean_iou(0));
    BARE(eg_metric_confusion_matrix(0));
    BARE(eg_metric_of(eg_huber, 0));
    eg_metric *mean = eg_metric_mean(), *f1 = eg_metric_f1();
    BARE(eg_metric_add(mean, 1, 0));
    BARE(eg_metric_update(f1, y, y, 0));
    CHECK_INT(eg_metric_result(mean), 0);
    eg_metric_release(mean);
    eg_metric_release(f1);
    BARE(eg_callback_early_stopping(0));
    BARE(eg_callback_checkpoint("x", 0));
    BARE(eg_callback_backup("x", 0));
    BARE(eg_callback_tensorboard("x", 0));
    BARE(eg_callback_csv("x", 0));
    BARE(eg_callback_learning_rate(0));
    BARE(eg_callback_plateau(0));
    eg_layer *model = eg_sequential(eg_layer_dense(1));
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, y), 2);
    REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    BARE(eg_fit(model, data, 0));
    BARE(eg_fit(model, data, 0, .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan())));          // which is released
    BARE(eg_fit_arrays(model, x, y, 0));
    BARE(eg_fit_arrays(model, x, y, 0, .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan())));
    BARE(eg_evaluate(model, data, 0));
    BARE(eg_evaluate_arrays(model, x, y, 0));
    BARE(eg_predict(model, x, 0));
    BARE(eg_predict_dataset(model, data, 0));
    BARE(eg_train_on_batch(model, x, y, 0));
    BARE(eg_test_on_batch(model, x, y, 0));
    CHECK_INT(eg_optimizer_steps(eg_model_optimizer(model)), 0);
    eg_dataset_release(data);
    eg_layer_release(model);
}

static bool pass(eg_tensor *const *in, eg_tensor **out, void *user) { (void)user; out[0] = in[0]; return true; }
static eg_dataset *one(eg_tensor *const *in, void *user) { (void)user; return eg_dataset_from_tensors(in[0]); }
TEST(bare_values_in_datasets_and_files) {
    const char *paths[] = { "x.csv" };
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *bytes = eg_zeros(EG_UINT8, EG_SHAPE(4));
    BARE(eg_dataset_csv(paths, 1, 0));
    BARE(eg_dataset_map(eg_dataset_range(0, 3, 1), pass, NULL, 0));
    BARE_AS("eg_dataset_map", eg_dataset_map_one(eg_dataset_range(0, 3, 1), square, NULL, 0));
    BARE(eg_dataset_batch(eg_dataset_range(0, 3, 1), 2, 0));
    BARE(eg_dataset_padded_batch(eg_dataset_range(0, 3, 1), 2, 0));
    BARE(eg_dataset_shuffle(eg_dataset_range(0, 3, 1), 3, 0));
    BARE(eg_dataset_interleave(eg_dataset_range(0, 3, 1), one, NULL, 0));
    eg_layer *model = eg_layer_dense(1, .input_shape = EG_SHAPE(3));
    eg_archive *archive = eg_archive_new();
    BARE(eg_load_weights(model, "x", 0));
    BARE(eg_load_weights_memory(model, "x", 1, 0));
    BARE(eg_archive_get_weights(archive, model, 0));
    BARE(eg_archive_add_weights(archive, model, 0));
    BARE(eg_checkpoint_new(0));
    eg_tape *tape = eg_tape_begin();
    BARE(eg_summary_scalar("x", 1, 0));
    BARE(eg_summary_histogram("x", x, 0));
    BARE(eg_summary_image("x", x, 0));
    BARE(eg_summary_text("x", "text", 0));
    BARE(eg_summary_graph(tape, 0));
    BARE(eg_decode_png(bytes, 0));
    BARE(eg_decode_jpeg(bytes, 0));
    BARE(eg_decode_image(bytes, 0));
    BARE(eg_cluster_init(NULL, NULL, 0));
    eg_optimizer *sgd = eg_sgd();
    BARE(eg_server_run(sgd, EG_LIST(x), 0));
    eg_optimizer_release(sgd);
    eg_archive_release(archive);
    eg_layer_release(model);
}

// Other values than 0, and what comes behind them.
TEST(bare_values_of_any_kind) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
    void *anything = x;
    BARE(eg_softmax(x, 1));
    BARE(eg_softmax(x, NULL));
    BARE(eg_softmax(x, anything));
    BARE(eg_softmax(x, 1, .axis = 1));
    BARE(eg_softmax(x, EGI_BY_NAME_MARK + 1));
    BARE(eg_layer_dense(10, EG_RELU));
    BARE(eg_layer_flatten(false));
    BARE(eg_dataset_batch(eg_dataset_range(0, 3, 1), 2, true));
}

// In a struct filled by hand both members stay 0.
TEST(structs_filled_by_hand) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
    eg_reduce_options rows = { .axes = EG_AXES(1) }, none = { 0 }, first = { .canary = 1 },
                      second = { .name_your_options = (struct egi_option_without_a_name *)(void *)x };
    CHECK_TENSOR((eg_reduce_sum)(x, rows), 0, 3, 7);
    CHECK_TENSOR((eg_reduce_sum)(x, none), 0, 10);
    CHECK_ERROR((eg_reduce_sum)(x, first), EG_ERROR_ARGUMENT,
                "eg_reduce_sum: options are given by name, as in .axes = EG_AXES(0); a value without one came");
    CHECK_ERROR((eg_reduce_sum)(x, second), EG_ERROR_ARGUMENT, "or a struct that was not zeroed");
}
