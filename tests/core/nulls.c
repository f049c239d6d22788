// NULL for what a function works on: an error that says so, and while an error is pending nothing new is said, as rule
// 2 of the header has it. Questions (how many epochs, which optimizer) have an empty answer instead. Written by hand:
// what each function of the chapters from layers on says (those before have theirs in tests/core/ops_errors.c). Made
// from the declarations: that none crashes, and that each fails in its own name.
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
        if (!strstr(eg_error_message(), "eg_add")) \
            test_say(__FILE__, __LINE__, #call, "says something while an error is pending"); \
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
    eg_loss *losses[] = {eg_mean_squared_error, eg_mean_absolute_error, eg_mean_absolute_percentage_error,
                         eg_mean_squared_logarithmic_error, eg_huber, eg_log_cosh,
                         eg_poisson, eg_kl_divergence, eg_hinge, eg_squared_hinge, eg_categorical_hinge,
                         eg_cosine_similarity, eg_dice, eg_binary_crossentropy,
                         eg_categorical_crossentropy, eg_sparse_categorical_crossentropy, eg_binary_focal_crossentropy,
                         eg_categorical_focal_crossentropy};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        CHECK_NULL(losses[i](NULL, x));
        CHECK_NULL(losses[i](x, NULL));
        CHECK_NULL(eg_loss_per_example(losses[i], NULL, x));
    }
    eg_metric_release(eg_metric_retain(NULL));
    eg_callback_release(eg_callback_retain(NULL));
    eg_history_release(eg_history_retain(NULL));
    eg_graph_release(eg_graph_retain(NULL));
    eg_session_release(eg_session_retain(NULL));
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
    CHECK_NULL(eg_dataset_shard(NULL, 2, 1));
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

TEST(lists_among_the_options_that_are_null) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), *y = eg_zeros(EG_INT32, EG_SHAPE(2));
    eg_layer *model = eg_sequential(eg_layer_dense(2));
    eg_class_weights weights = {3, NULL}, fewer = {-1, NULL};
    eg_callbacks callbacks = {2, NULL};
    CHECK_ERROR((eg_compile)(model, eg_sgd(), eg_mean_squared_error, NULL, 3), EG_ERROR_ARGUMENT,
                "eg_compile: a list of 3 is NULL");
    CHECK_ERROR((eg_compile_outputs)(model, eg_sgd(), NULL, 1), EG_ERROR_ARGUMENT,
                "eg_compile_outputs: a list of 1 is NULL");
    eg_metrics none = {2, NULL};
    CHECK_ERROR(eg_compile_outputs(model, eg_sgd(),
                                   EG_OUTPUT("a", eg_mean_squared_error, .metrics = EG_METRICS(EG_METRIC_ACCURACY)),
                                   EG_OUTPUT("b", eg_mean_squared_error, .metrics = none)), EG_ERROR_ARGUMENT,
                "eg_compile_outputs: a list of 2 is NULL");
    CHECK(eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy));
    CHECK_ERROR(eg_train_on_batch(model, x, y, .class_weights = weights), EG_ERROR_ARGUMENT,
                "eg_train_on_batch: .class_weights: a list of 3 is NULL");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .class_weights = fewer, .quiet = true), EG_ERROR_ARGUMENT,
                ".class_weights: a list of -1");
    CHECK_ERROR(eg_fit_arrays(model, x, y, .callbacks = callbacks, .quiet = true), EG_ERROR_ARGUMENT,
                "eg_fit_arrays: .callbacks: a list of 2 is NULL");
    const char *format = NULL;
    CHECK_ERROR(((void *(*)(eg_error_code, const char *, ...))eg_raise)(EG_ERROR_STATE, format), EG_ERROR_STATE,
                "the message is NULL");
    CHECK_ERROR(eg_raise(EG_OK, "zero"), EG_ERROR_ARGUMENT, "the code is EG_OK");
    eg_layer_release(model);
}

// ---- every public function, made from the declarations (tests/core/nulls.awk): with NULL in each place and in all,
// and 3, 0 and -1 as its
// numbers. None may crash, and a list says in one way that it is NULL or of negative length.

static double valid_buffer[64];                      // what numbers, texts and bytes may be written to
static bool nulls_inside;                            // what stands in lists is NULL
static eg_tensor *valid_eg_tensorp(void) { return eg_ones(EG_FLOAT32, EG_SHAPE(3, 2)); }
static eg_tensor **valid_eg_tensorpp(void) {
    static eg_tensor *list[16];
    for (int i = 0; i < 16; i++) list[i] = nulls_inside ? NULL : valid_eg_tensorp();
    return list;
}
static eg_tensor *const *valid_eg_tensorpcp(void) { return valid_eg_tensorpp(); }
static eg_list nulls_list(bool null, int n) {
    eg_list list = {n, null ? NULL : valid_eg_tensorpcp()};
    return list;
}
static eg_tape *valid_eg_tapep(void) { return eg_tape_begin_persistent(); }
static eg_layer *valid_eg_layerp(void) { return eg_layer_dense(2, .input_shape = EG_SHAPE(2)); }
static eg_layer **valid_eg_layerpp(void) {
    static eg_layer *list[4];
    for (int i = 0; i < 4; i++) list[i] = nulls_inside ? NULL : valid_eg_layerp();
    return list;
}
static eg_layer *const *valid_eg_layerpcp(void) { return valid_eg_layerpp(); }
static eg_optimizer *valid_eg_optimizerp(void) { return eg_sgd(); }
static bool null_body(eg_tensor *const *in, eg_tensor **out, void *user) { return !in || !out || !user; }
static eg_function *valid_eg_functionp(void) { return eg_function_new(null_body, NULL); }
static eg_graph *valid_eg_graphp(void) { return eg_graph_new(); }
static eg_session *valid_eg_sessionp(void) {
    eg_graph *g = eg_graph_new();
    eg_session *s = eg_session_new(g);
    eg_graph_release(g);
    return s;
}
static eg_metric *valid_eg_metricp(void) { return eg_metric_mean(); }
static eg_metric *const *valid_eg_metricpcp(void) {
    static eg_metric *list[4];
    for (int i = 0; i < 4; i++) list[i] = nulls_inside ? NULL : valid_eg_metricp();
    return list;
}
static eg_dataset *valid_eg_datasetp(void) { return eg_dataset_range(0, 4, 1); }
static eg_dataset *const *valid_eg_datasetpcp(void) {
    static eg_dataset *list[4];
    for (int i = 0; i < 4; i++) list[i] = nulls_inside ? NULL : valid_eg_datasetp();
    return list;
}
static eg_iterator *valid_eg_iteratorp(void) {
    eg_dataset *d = valid_eg_datasetp();
    eg_iterator *it = eg_iterator_new(d);
    eg_dataset_release(d);
    return it;
}
static eg_archive *valid_eg_archivep(void) { return eg_archive_new(); }
static eg_cluster_spec *valid_eg_cluster_specp(void) { return eg_cluster_spec_new("{\"a\": [\"b\"]}"); }
static eg_checkpoint *valid_eg_checkpointp(void) { return eg_checkpoint_new(); }
static eg_callback *valid_eg_callbackp(void) { return eg_callback_stop_on_nan(); }
static eg_summary_writer *valid_eg_summary_writerp(void) {
    static eg_summary_writer *writer;
    if (!writer) writer = eg_summary_writer_open(test_temp("nulls_logs"));
    return eg_summary_writer_retain(writer);
}
static eg_publication *valid_eg_publicationp(void) { return eg_publication_new(); }
static eg_record_writer *valid_eg_record_writerp(void) { return eg_record_writer_open(test_temp("nulls_records")); }
static const eg_history *valid_ceg_historyp(void) {
    static eg_layer *model;
    if (!model) {
        model = eg_sequential(eg_layer_dense(1));
        eg_compile(model, eg_sgd(), eg_mean_squared_error);
        eg_fit_arrays(model, eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), .quiet = true);
    }
    return eg_model_history(model);
}
static const char *valid_ccharp(void) { return test_temp("nulls"); }
static const char *const *valid_ccharpcp(void) {
    static const char *const list[] = {"a", "b", "c", "d", NULL}, *const nothing[5] = {NULL, NULL, NULL, NULL, NULL};
    return nulls_inside ? nothing : list;
}
static char *valid_charp(void) { return (char *)valid_buffer; }
static void *valid_voidp(void) { return valid_buffer; }
static const void *valid_cvoidp(void) { return valid_buffer; }
static const double *valid_cdoublep(void) { return valid_buffer; }
static int64_t *valid_int64_tp(void) { return (int64_t *)(void *)valid_buffer; }
static int *valid_intp(void) { return (int *)(void *)valid_buffer; }
static eg_list *valid_eg_listp(void) { return (eg_list *)(void *)valid_buffer; }
static eg_gradient_pair *valid_eg_gradient_pairp(void) { return (eg_gradient_pair *)(void *)valid_buffer; }
static const eg_gradient_pair *valid_ceg_gradient_pairp(void) {
    static eg_gradient_pair list[4];
    for (int i = 0; i < 4; i++) list[i].gradient = list[i].variable = nulls_inside ? NULL : valid_eg_tensorp();
    return list;
}
static const eg_spec *valid_ceg_specp(void) {
    static const eg_spec list[4];
    return list;
}
static const eg_output *valid_ceg_outputp(void) {
    static eg_output list[4];
    for (int i = 0; i < 4; i++) list[i].loss = nulls_inside ? NULL : eg_mean_squared_error;
    return list;
}
static const eg_feature *valid_ceg_featurep(void) {
    static eg_feature list[4];
    for (int i = 0; i < 4; i++) list[i].name = nulls_inside ? NULL : "x";
    return list;
}
static const eg_schedule *valid_ceg_schedulep(void) {
    static eg_schedule schedule;
    schedule = eg_cosine_decay(1, 2, 0, 0, 0);
    return &schedule;
}
static eg_dlpack *valid_eg_dlpackp(void) { return eg_to_dlpack(eg_cpu(valid_eg_tensorp())); }
static eg_dlpack_legacy *valid_eg_dlpack_legacyp(void) { return eg_to_dlpack_legacy(eg_cpu(valid_eg_tensorp())); }
static FILE *valid_FILEp(void) { return stdout; }
// Functions of a user's that look at nothing.
static eg_tensor *one(eg_tensor *const *in, void *user) { (void)in, (void)user; return eg_scalar(1); }
static bool none(eg_tensor *const *in, eg_tensor **out, void *user) { (void)in, (void)out, (void)user; return false; }
static eg_tensor *forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)in, (void)c, (void)user;
    return eg_scalar(1);
}
static bool forwards(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)in, (void)out, (void)c, (void)user;
    return false;
}
static void backward(const eg_grad_context *c, eg_tensor **dx, void *user) { (void)c, (void)dx, (void)user; }
static eg_dataset *no_dataset(eg_tensor *const *in, void *user) { (void)in, (void)user; return NULL; }
static eg_status no_element(int64_t i, eg_tensor **out, void *user) {
    (void)i, (void)out, (void)user;
    return EG_END_OF_SEQUENCE;
}
static eg_function1 *valid_eg_function1p(void) { return one; }
static eg_layer_function *valid_eg_layer_functionp(void) { return none; }
static eg_map_function *valid_eg_map_functionp(void) { return none; }
static eg_custom_forward *valid_eg_custom_forwardp(void) { return forward; }
static eg_custom_forward_multi *valid_eg_custom_forward_multip(void) { return forwards; }
static eg_custom_backward *valid_eg_custom_backwardp(void) { return backward; }
static eg_dataset_function *valid_eg_dataset_functionp(void) { return no_dataset; }
static eg_dataset_maker *valid_eg_dataset_makerp(void) { return no_dataset; }
static eg_generator *valid_eg_generatorp(void) { return no_element; }
static eg_loss *valid_eg_lossp(void) { return eg_mean_squared_error; }
static const eg_op_definition *valid_ceg_op_definitionp(void) {
    static const eg_op_definition definition = {"nulls", -1, 1, forwards, backward, NULL};
    return &definition;
}

// checks: pointer i is a list whose length is length j; -1 ends them.
typedef struct nulls_function {
    const char *name;
    // null: bits of the pointers that are NULL; n: all numbers, or of length `only` alone
    void (*call)(unsigned null, int n, int only);
    int pointers, lengths;
    int checks[6][2];
} nulls_function;
#include ".build/nulls.h"

// Whether an error, if there is one, is of the function that was called: not of one that this is made of. A macro may
// call eg_NAME_of for eg_NAME (or eg_constant_values for eg_constant); and where the caller chooses what runs (an op, a
// loss), the error may be that one's.
static bool nulls_named(const char *name, const char *message) {
    static const char *const choosing[] = {"eg_activate", "eg_loss_mean", "eg_loss_per_example", "eg_op_run",
                                           "eg_constant_values", "eg_dataset_map_one"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++) if (!strcmp(name, choosing[i])) return true;
    if (n > 3 && !strcmp(name + n - 3, "_of") && !strncmp(message, name, n - 3) && message[n - 3] == ':') return true;
    return !*message || (!strncmp(message, name, n) && (message[n] == ':' || message[n] == ' '));
}

// Whether an error of the function names the program's line: all do (but the sweep calls these by no name of an error).
static bool nulls_placed(const char *name) {
    static const char *const others[] = {"eg_op_run", "eg_dataset_map_one"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) if (!strcmp(name, others[i])) return false;
    return true;
}
static FILE *nulls_place;                            // says which call runs, for the one that never comes back
static bool nulls_call(const nulls_function *f, unsigned null, int n, int only, const char *says) {
    EG_SCOPE;
    rewind(nulls_place);
    fprintf(nulls_place, "%s, of its pointers NULL: %x, n %d, only length %d%40s\n", f->name, null, n, only, "");
    fflush(nulls_place);
    f->call(null, n, only);
    eg_set_error_handler(NULL, NULL);
    bool right = !says || f->call == nulls_eg_error_clear || strstr(eg_error_message(), says);
    if (right && !says) right = nulls_named(f->name, eg_error_message());
#ifndef NDEBUG
    if (right && !says && *eg_error_message() && nulls_placed(f->name))
        right = strstr(eg_error_message(), " (at nulls.h:") != NULL;
#endif
    if (!right)
        fprintf(stderr, "%s: %s%s, and the error is '%s'\n",
                f->name, says ? "it should fail with " : "an error should begin with its name and end with the line",
                says ? says : "", eg_error_message());
    eg_error_clear();
    return right;
}
TEST(child_that_sweeps_all_functions) {
    static const int numbers[] = {3, 0, -1};
    if (!getenv("TEST_CHILD")) SKIP("started by the test below");
    int wrong = 0;
    nulls_place = fopen(test_temp("nulls_place"), "w");
    eg_op_register(valid_ceg_op_definitionp());      // number 0 of eg_op_run
    for (size_t i = 0; i < sizeof nulls_functions / sizeof *nulls_functions; i++) {
        const nulls_function *f = &nulls_functions[i];
        for (int k = 0; k < 3; k++)
            for (int null = -1; null < f->pointers; null++) {
                wrong += !nulls_call(f, null < 0 ? ~0u : 1u << null, numbers[k], -1, NULL);
                eg_raise(EG_ERROR_STATE, "an error that is pending");
                wrong += !nulls_call(f, null < 0 ? ~0u : 1u << null, numbers[k], -1, "an error that is pending");
            }
        nulls_inside = true;
        for (int n = 3; f->lengths && n; n--) wrong += !nulls_call(f, 0, n, -1, NULL);
        nulls_inside = false;
        for (int j = 0; j < f->lengths; j++) wrong += !nulls_call(f, 0, -1, j, ": a list of -1");
        for (int c = 0; f->checks[c][0] >= 0; c++)
            wrong += !nulls_call(f, 1u << f->checks[c][0], 3, f->checks[c][1], ": a list of 3 is NULL");
    }
    fprintf(stderr, "%d functions, %d wrong\n", (int)(sizeof nulls_functions / sizeof *nulls_functions), wrong);
    fflush(stderr);
    _Exit(wrong > 0);  // whom the objects belong to that they were given, each of them knows alone
}
TEST(no_function_crashes_where_it_is_given_null) {
    char command[9000], line[512];
    const char *said = test_temp("nulls_said");
    const bool fits = snprintf(command, sizeof command, "TEST_CHILD=1 '%s' child_that_sweeps >/dev/null 2>'%s'",
                               test_program, said) < (int)sizeof command;
    REQUIRE(fits);
    bool swept = system(command) == 0;
    CHECK(swept);
    if (swept) return;
    const char *const files[] = {said, test_temp("nulls_place")};
    for (int k = 0; k < 2; k++) {
        FILE *f = fopen(files[k], "r");
        if (k) printf("    the last call: ");
        for (int lines = 0; f && lines < 400 && fgets(line, sizeof line, f); lines++) printf("    %s", line);
        if (f) fclose(f);
    }
}
