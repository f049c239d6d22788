// NULL for what a function works on: an error that says so, and while an error is pending nothing new is said, as rule 2 of the
// header has it. Questions (how many epochs, which optimizer) have an empty answer instead. Every function of chapters 9 to 13 that
// takes a pointer; the chapters below have theirs in tests/ops_errors.c.
#include "test.h"

// The call with no error pending, and again while one is.
#define CHECK_NULL(call) \
    do { \
        eg_error_clear(); \
        (void)(call); \
        if (eg_error() == EG_OK) test_say(__FILE__, __LINE__, #call, "raises no error"); \
        eg_error_clear(); \
        (void)eg_add(NULL, 1); \
        (void)(call); \
        if (!strstr(eg_error_message(), "eg_add")) test_say(__FILE__, __LINE__, #call, "says something while an error is pending"); \
        eg_error_clear(); \
    } while (0)

TEST(layers_that_are_null) {
    char text[64];
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), *y = NULL;
    eg_layer *flat = eg_layer_flatten(), *own = eg_layer_custom("own", NULL, NULL);
    CHECK(own == NULL);
    eg_error_clear();
    CHECK_NULL(eg_call(NULL, x));
    CHECK_NULL(eg_call(flat, NULL));
    CHECK_NULL(eg_call_multi(NULL, &x, 1, &y, 1));
    CHECK_NULL(eg_call_multi(flat, &y, 1, &y, 1));
    CHECK_NULL(eg_activate(NULL, EG_RELU));
    CHECK_NULL(eg_layer_bidirectional(NULL));
    CHECK_NULL(eg_layer_residual(NULL));
    CHECK_NULL(eg_layer_lambda("own", NULL, NULL));
    CHECK_NULL(eg_layer_custom("own", NULL, NULL));
    CHECK_NULL(eg_layer_track(NULL, "part", NULL));
    CHECK_NULL(eg_layer_track(flat, "part", NULL));
    CHECK_NULL(eg_layer_weight(NULL, "w", x, true));
    CHECK_NULL(eg_layer_weight(flat, "w", NULL, true));
    CHECK_NULL(eg_layer_add(NULL, NULL));
    CHECK_NULL(eg_layer_build(NULL, EG_SHAPE(1, 2)));
    CHECK_NULL(eg_layer_weights(NULL, NULL, 0));
    CHECK_NULL(eg_layer_trainable_weights(NULL, NULL, 0));
    CHECK_NULL(eg_layer_weight_path(NULL, 0, text, sizeof text));
    CHECK_NULL(eg_layer_parameters(NULL));
    CHECK_NULL(eg_layer_trainable(NULL));
    CHECK_NULL(eg_layer_name(NULL));
    CHECK_NULL(eg_layer_set_name(NULL, "name"));
    CHECK_NULL(eg_layer_output_shape(NULL).rank);
    CHECK_NULL(eg_layer_layers(NULL, NULL, 0));
    CHECK_NULL(eg_layer_losses(NULL));
    CHECK_NULL(eg_layer_config(NULL, text, sizeof text));
    CHECK_NULL((eg_layer_set_trainable(NULL, true), 0));
    CHECK_NULL((eg_layer_summary(NULL), 0));
    CHECK_NULL(eg_with_mask(NULL, x));
    CHECK(eg_mask_of(NULL) == NULL);
    CHECK_ERROR(eg_layer_from_config(NULL), EG_ERROR_ARGUMENT, "eg_layer_from_config");
    CHECK_ERROR(eg_layer_set_name(flat, NULL), EG_ERROR_ARGUMENT, "no name");
    CHECK_ERROR(eg_layer_set_name(flat, ""), EG_ERROR_ARGUMENT, "no name");
    CHECK_ERROR(eg_layer_set_name(flat, "a/b"), EG_ERROR_ARGUMENT, "a/b");
    CHECK_ERROR(eg_layer_weight(flat, NULL, x, true), EG_ERROR_ARGUMENT, "name");
    eg_layer_retain(NULL);
    eg_layer_release(NULL);
    eg_layer_on_release(NULL, NULL);
    eg_error_clear();
    eg_layer_release(flat);
}

TEST(training_of_what_is_null) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2));
    eg_layer *model = eg_sequential(eg_layer_dense(2));
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK_NULL(eg_compile(NULL, eg_sgd(), eg_mean_squared_error));
    CHECK_NULL(eg_compile(model, NULL, eg_mean_squared_error));
    CHECK_NULL(eg_compile(model, eg_sgd(), NULL));
    CHECK_NULL(eg_compile(model, eg_sgd(), eg_mean_squared_error, NULL));
    CHECK_NULL(eg_fit(NULL, NULL, .quiet = true));
    CHECK_NULL(eg_fit(model, NULL, .quiet = true));
    CHECK_NULL(eg_fit_arrays(model, NULL, x, .quiet = true));
    CHECK_NULL(eg_fit_arrays(model, x, NULL, .quiet = true));
    CHECK_NULL(eg_evaluate(NULL, NULL));
    CHECK_NULL(eg_evaluate(model, NULL));
    CHECK_NULL(eg_evaluate_arrays(model, NULL, x));
    CHECK_NULL(eg_predict(NULL, x));
    CHECK_NULL(eg_predict(model, NULL));
    CHECK_NULL(eg_predict_dataset(model, NULL));
    CHECK_NULL(eg_train_on_batch(NULL, x, x));
    CHECK_NULL(eg_train_on_batch(model, NULL, x));
    CHECK_NULL(eg_test_on_batch(model, x, NULL));
    CHECK_NULL(eg_model_result(NULL, "loss"));
    CHECK_NULL(eg_model_reset_metrics(NULL));
    CHECK(eg_model_optimizer(NULL) == NULL);
    CHECK(eg_model_metric(NULL, 0) == NULL);
    CHECK(eg_model_history(NULL) == NULL);
    CHECK_NULL(eg_metric_update(NULL, x, x));
    CHECK_NULL(eg_metric_add(NULL, x));
    CHECK_NULL(eg_metric_result(NULL));
    CHECK_NULL(eg_metric_tensor(NULL));
    CHECK_NULL(eg_metric_reset(NULL));
    CHECK_NULL(eg_metric_name(NULL));
    CHECK_NULL(eg_metric_state(NULL));
    CHECK_NULL(eg_metric_of(NULL));
    CHECK(eg_history_epochs(NULL) == 0);
    CHECK(eg_history_batches(NULL) == 0);
    CHECK(eg_history_name(NULL, 0) == NULL);
    CHECK(isnan(eg_history_value(NULL, "loss", 0)));
    CHECK(isnan(eg_history_batch_loss(NULL, 0)));
    CHECK_NULL(eg_history_csv(NULL, test_temp("none.csv")));
    CHECK_NULL(eg_history_batches_csv(NULL, test_temp("none.csv")));
    CHECK_NULL(eg_history_svg(NULL, test_temp("none.svg")));
    eg_loss *losses[] = {eg_mean_squared_error, eg_mean_absolute_error, eg_mean_absolute_percentage_error, eg_mean_squared_logarithmic_error, eg_huber, eg_log_cosh,
                         eg_poisson, eg_kl_divergence, eg_hinge, eg_squared_hinge, eg_categorical_hinge, eg_cosine_similarity, eg_dice, eg_binary_crossentropy,
                         eg_categorical_crossentropy, eg_sparse_categorical_crossentropy, eg_binary_focal_crossentropy, eg_categorical_focal_crossentropy};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        CHECK_NULL(losses[i](NULL, x));
        CHECK_NULL(losses[i](x, NULL));
        CHECK_NULL(eg_loss_per_example(losses[i], NULL, x));
    }
    eg_metric_release(eg_metric_retain(NULL));
    eg_callback_release(eg_callback_retain(NULL));
    eg_layer_release(model);
}

TEST(datasets_that_are_null) {
    char text[64];
    eg_tensor *out[EG_MAX_COMPONENTS], *none = NULL;
    eg_dataset *range = eg_dataset_range(0, 4, 1);
    eg_iterator *it = eg_iterator_new(range);
    CHECK_NULL(eg_dataset_from_slices_of(&none, 1));
    CHECK_NULL(eg_dataset_from_tensors_of(&none, 1));
    CHECK_NULL(eg_dataset_from_windows(NULL, 2, 1));
    CHECK_NULL(eg_dataset_map(NULL, NULL, NULL));
    CHECK_NULL(eg_dataset_map_one(NULL, NULL, NULL));
    CHECK_NULL(eg_dataset_filter(NULL, NULL, NULL));
    CHECK_NULL(eg_dataset_batch(NULL, 2));
    CHECK_NULL(eg_dataset_padded_batch(NULL, 2));
    CHECK_NULL(eg_dataset_unbatch(NULL));
    CHECK_NULL(eg_dataset_shuffle(NULL, 2));
    CHECK_NULL(eg_dataset_repeat(NULL, 2));
    CHECK_NULL(eg_dataset_take(NULL, 2));
    CHECK_NULL(eg_dataset_skip(NULL, 2));
    CHECK_NULL(eg_dataset_enumerate(NULL));
    CHECK_NULL(eg_dataset_concatenate(NULL, NULL));
    CHECK_NULL(eg_dataset_interleave(NULL, NULL, NULL));
    CHECK_NULL(eg_dataset_cache(NULL));
    CHECK_NULL(eg_dataset_prefetch(NULL, 2));
    CHECK_NULL(eg_dataset_components(NULL));
    CHECK_NULL(eg_dataset_spec(NULL, 0).dtype);
    CHECK_NULL(eg_dataset_cardinality(NULL));
    CHECK_NULL(eg_dataset_format(NULL, text, sizeof text));
    CHECK_NULL(eg_iterator_new(NULL));
    CHECK_NULL(eg_iterator_next(NULL, out));
    CHECK_NULL(eg_iterator_feed(NULL, NULL));
    CHECK_NULL(eg_iterator_set(NULL, NULL));
    CHECK_NULL(eg_iterator_handle(NULL));
    CHECK_NULL(eg_iterator_next_by_handle(NULL, out));
    CHECK_NULL(eg_iterator_position(NULL));
    CHECK_NULL(eg_iterator_restore(NULL, NULL));
    CHECK_NULL(eg_iterator_restore(it, NULL));
    CHECK_ERROR(eg_dataset_text_lines(NULL, 1), EG_ERROR_ARGUMENT, "eg_dataset_text_lines");
    CHECK_ERROR(eg_dataset_tfrecord(NULL, 1), EG_ERROR_ARGUMENT, "eg_dataset_tfrecord");
    CHECK_ERROR(eg_dataset_from_files(NULL, 1), EG_ERROR_ARGUMENT, "eg_dataset_from_files");
    CHECK_ERROR(eg_dataset_csv(NULL, 1), EG_ERROR_ARGUMENT, "eg_dataset_csv");
    eg_dataset_release(eg_dataset_retain(NULL));
    eg_iterator_release(eg_iterator_retain(NULL));
    eg_error_clear();
    eg_iterator_release(it);
    eg_dataset_release(range);
}

TEST(files_of_what_is_null) {
    const char *path = test_temp("null");
    eg_archive *archive = eg_archive_new();
    eg_checkpoint *checkpoint = eg_checkpoint_new();
    CHECK_NULL(eg_archive_add(NULL, "x", eg_scalar(1)));
    CHECK_NULL(eg_archive_add(archive, "x", NULL));
    CHECK_NULL(eg_archive_get(NULL, "x"));
    CHECK(!eg_archive_has(NULL, "x"));
    CHECK(eg_archive_count(NULL) == 0);
    CHECK(eg_archive_name(NULL, 0) == NULL);
    CHECK_NULL(eg_archive_set_text(NULL, "key", "value"));
    CHECK(eg_archive_text(NULL, "key") == NULL);
    CHECK_NULL(eg_archive_save(NULL, path));
    CHECK_NULL(eg_save_npy(NULL, path));
    CHECK_NULL(eg_save_npz(NULL, path));
    CHECK_NULL(eg_save_safetensors(NULL, path));
    CHECK_NULL(eg_save_weights(NULL, path));
    CHECK_NULL(eg_load_weights(NULL, path));
    CHECK_NULL(eg_archive_add_weights(NULL, NULL));
    CHECK_NULL(eg_archive_add_weights(archive, NULL));
    CHECK_NULL(eg_archive_get_weights(NULL, NULL));
    CHECK_NULL(eg_archive_get_weights(archive, NULL));
    CHECK_NULL(eg_model_save(NULL, path));
    CHECK_NULL(eg_checkpoint_track(NULL, "x", NULL));
    CHECK_NULL(eg_checkpoint_track(checkpoint, "x", NULL));
    CHECK_NULL(eg_checkpoint_track_layer(checkpoint, "x", NULL));
    CHECK_NULL(eg_checkpoint_track_optimizer(checkpoint, "x", NULL));
    CHECK_NULL(eg_checkpoint_track_iterator(checkpoint, "x", NULL));
    CHECK_NULL(eg_checkpoint_track_number(checkpoint, "x", NULL));
    CHECK_NULL(eg_checkpoint_track_random(NULL));
    CHECK_NULL(eg_checkpoint_save(NULL, path));
    CHECK_NULL(eg_checkpoint_restore(NULL, path));
    CHECK_NULL(eg_checkpoint_assert_consumed(NULL));
    CHECK_NULL(eg_checkpoint_assert_existing_objects_matched(NULL));
    CHECK_NULL(eg_summary_writer_flush(NULL));
    CHECK_NULL(eg_summary_writer_close(NULL));
    CHECK_STR(eg_summary_writer_path(NULL), "");
    CHECK_ERROR(eg_load_npy(NULL), EG_ERROR_ARGUMENT, "eg_load_npy");
    eg_archive_release(eg_archive_retain(NULL));
    eg_checkpoint_release(eg_checkpoint_retain(NULL));
    eg_summary_writer_release(eg_summary_writer_retain(NULL));
    eg_error_clear();
    eg_archive_release(archive);
    eg_checkpoint_release(checkpoint);
}
