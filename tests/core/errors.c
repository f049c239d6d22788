// Errors: what a message says about where its thread was, and what holds whatever happens meanwhile.
#include "test.h"
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

// The message of the error that the expression raises, until the next one.
static char raised_text[2048];
static const char *raised(void) {
    snprintf(raised_text, sizeof raised_text, "%s", eg_error_message());
    eg_error_clear();
    return raised_text;
}
#define RAISED(expr) (eg_set_error_handler(NULL, NULL), eg_error_clear(), (void)(expr), raised())
#define CHECK_SAYS(text, part) test_contains(__FILE__, __LINE__, #text, text, part)

static eg_tensor *rows(int64_t n) { return eg_ones(EG_FLOAT32, EG_SHAPE(n, 3)); }
static eg_tensor *wrong(void) {
    return eg_matmul(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), eg_ones(EG_FLOAT32, EG_SHAPE(7, 7)));
}

// ---- which call

TEST(parts_fail_in_the_name_of_the_whole) {
    eg_tensor *x = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 2);
    CHECK_ERROR(eg_reduce_std(x), EG_ERROR_DTYPE, "eg_reduce_std: ");
    CHECK_ERROR(eg_reduce_logsumexp(x), EG_ERROR_DTYPE, "eg_reduce_logsumexp: ");
    CHECK_ERROR(eg_read(NULL), EG_ERROR_NULL, "eg_read: ");
    CHECK_ERROR(eg_raise(EG_ERROR_STATE, "eg_%s: %d of %s", "mine", 3, "five"), EG_ERROR_STATE, "eg_mine: 3 of five");
    CHECK_ERROR(eg_raise(EG_ERROR_STATE, "%s eg_no name: %d%%", "any", 100), EG_ERROR_STATE, "any eg_no name: 100%");
    CHECK_STR(RAISED(eg_raise(EG_ERROR_STATE, "eg_%s", "half")), "eg_half");
}

// One test a function: the message begins with the name that the program called, and says the line of that call.
#define CHECK_OWN_LINE(expr, code, part) \
    do { \
        test_before_error(__FILE__, __LINE__, #expr); \
        (void)(expr); \
        CHECK_SAYS(eg_error_message(), " (at errors.c:"); \
        test_error(__FILE__, __LINE__, #expr, (int)(code), #code, part); \
    } while (0)
static bool gives_nothing(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in, (void)out, (void)user;
    return false;
}
TEST(checkpoint_save_fails_in_its_own_name) {
    eg_checkpoint *c = eg_checkpoint_new();
    eg_tensor *v = eg_variable(rows(2), "v");
    CHECK(eg_checkpoint_track(c, "v", v));
    CHECK_OWN_LINE(eg_checkpoint_save(c, "/dev/null/c"), EG_ERROR_FILE, "eg_checkpoint_save: /dev/null/c");
    eg_checkpoint_release(c);
    eg_release(v);
}
TEST(assign_slice_fails_in_its_own_name) {
    eg_tensor *v = eg_variable(rows(2), "v");
    CHECK_OWN_LINE(eg_assign_slice(v, EG_SHAPE(2, 3), EG_SHAPE(2, 3), rows(2)), EG_ERROR_INDEX,
                   "eg_assign_slice: 2 elements from 2 on do not lie inside axis 0");
    eg_release(v);
}
TEST(iterator_next_by_handle_fails_in_its_own_name) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_OWN_LINE(eg_iterator_next_by_handle(rows(2), out), EG_ERROR_SHAPE,
                   "eg_iterator_next_by_handle: a tensor of one element is needed");
}
TEST(layer_copies_fail_in_their_own_names) {
    eg_layer *to = eg_layer_lstm(2), *from = eg_layer_dense(1);
    CHECK(eg_layer_build(from, EG_SHAPE(-1, 3)));
    CHECK_OWN_LINE(eg_layer_copy_weights(to, from), EG_ERROR_SHAPE,
                   "eg_layer_copy_weights: LSTM takes inputs of rank 3");
    CHECK_OWN_LINE(eg_layer_soft_update(to, from, 0.5), EG_ERROR_SHAPE,
                   "eg_layer_soft_update: LSTM takes inputs of rank 3");
    eg_layer_release(from);
    eg_layer_release(to);
}
TEST(layer_residual_fails_in_its_own_name) {
    eg_layer *l = eg_layer_dense(1);
    for (int i = 1; i < EG_MAX_DEPTH; i++) l = eg_layer_residual(l);
    CHECK(l != NULL);
    CHECK_OWN_LINE(eg_layer_residual(l), EG_ERROR_STATE,
                   "eg_layer_residual: with residual in residual, layers stand more");
}
TEST(layers_that_take_one_fail_in_their_own_name) {
    eg_layer *lstm = eg_layer_lstm(1), *model = eg_sequential(lstm), *other = eg_sequential(eg_layer_flatten());
    CHECK_OWN_LINE(eg_layer_bidirectional(lstm), EG_ERROR_STATE,
                   "eg_layer_bidirectional: layer lstm belongs to another layer already");
    CHECK_OWN_LINE(eg_layer_add(other, lstm), EG_ERROR_STATE,
                   "eg_layer_add: layer lstm belongs to another layer already");
    eg_layer_release(model);
    eg_layer_release(other);
}
TEST(parts_of_layers_fail_in_the_name_of_the_call) {
    eg_layer *l = eg_layer_dense(1);
    CHECK_OWN_LINE(eg_layer_weight(l, "", rows(2), true), EG_ERROR_ARGUMENT,
                   "eg_layer_weight: '' is no name for a part of layer dense");
    CHECK(eg_layer_weight(l, "w", rows(2), true));
    CHECK_OWN_LINE(eg_layer_weight(l, "w", rows(2), true), EG_ERROR_ARGUMENT,
                   "eg_layer_weight: layer dense has a part called w already");
    CHECK_OWN_LINE(eg_layer_track(l, "", eg_layer_dense(1)), EG_ERROR_ARGUMENT,
                   "eg_layer_track: '' is no name for a part of layer dense");
    eg_layer_release(l);
}
TEST(metrics_of_losses_fail_in_their_own_names) {
    CHECK_OWN_LINE(eg_metric_mean_squared_error(.threshold = 1), EG_ERROR_ARGUMENT,
                   "eg_metric_mean_squared_error: has no option .threshold");
    CHECK_OWN_LINE(eg_metric_mean_absolute_error(.threshold = 1), EG_ERROR_ARGUMENT,
                   "eg_metric_mean_absolute_error: has no option .threshold");
}
TEST(metric_add_fails_in_its_own_name) {
    eg_metric *m = eg_metric_mean();
    CHECK_OWN_LINE(eg_metric_add(m, rows(2), .weights = eg_zeros(EG_FLOAT32, EG_SHAPE(7))), EG_ERROR_SHAPE,
                   "eg_metric_add: weights float32 [7]");
    eg_metric_release(m);
}
TEST(function_cost_fails_in_its_own_name) {
    eg_tensor *x = rows(2);
    eg_function *f = eg_function_new(gives_nothing, NULL);
    CHECK_OWN_LINE(eg_function_cost(f, &x, 1, 1, 1), EG_ERROR_STATE, "eg_function_cost: the body failed without");
    eg_function_release(f);
}

// An op in a function of the user's fails in its own name, whatever runs around it.
static eg_tensor *mistaken(eg_tensor *const *in, void *user) { (void)in, (void)user; return wrong(); }
TEST(functions_of_the_user_fail_in_their_own_name) {
    eg_tensor *x = eg_scalar(1), *g;
    CHECK_SAYS(RAISED(eg_gradients_function(mistaken, NULL, &x, 1, &g)), "eg_matmul: inner dimensions differ");
    CHECK_SAYS(RAISED(eg_hessian(mistaken, NULL, x)), "eg_matmul: inner dimensions differ");
    CHECK_SAYS(RAISED(eg_hessian(NULL, NULL, x)), "eg_hessian: the function is NULL");
}

TEST(layers_fail_in_the_name_of_whoever_called_the_model) {
    eg_layer *model = eg_sequential(eg_layer_dense(2), eg_layer_conv2d(2, 3));
    eg_tensor *x = rows(2), *y, *labels = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    const char *text = RAISED(eg_call(model, x));
    CHECK_SAYS(text, "eg_call: Conv2D takes inputs of rank 4");
    CHECK_SAYS(text, ", in layer sequential/conv2d");
    CHECK_SAYS(text, " (at errors.c:");
    text = RAISED(eg_call_multi(model, &x, 1, &y, 1));
    CHECK_SAYS(text, "eg_call_multi: Conv2D takes inputs of rank 4");
    CHECK_SAYS(text, " (at errors.c:");
    CHECK_SAYS(RAISED(eg_layer_build(model, EG_SHAPE(-1, 3))), "eg_layer_build: Conv2D takes inputs of rank 4");
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK_SAYS(RAISED(eg_predict(model, x)), "eg_predict: Conv2D takes inputs of rank 4");
    CHECK_SAYS(RAISED(eg_train_on_batch(model, x, labels)), "eg_train_on_batch: Conv2D takes inputs of rank 4");
    text = RAISED(eg_fit_arrays(model, x, labels, .quiet = true));
    CHECK_SAYS(text, "eg_fit_arrays: Conv2D takes inputs of rank 4");
    CHECK_SAYS(text, "(epoch 1, batch 1)");
    eg_layer_release(model);
}

static bool refuses(eg_fit_state *state, void *user) { (void)state, (void)user; return false; }
TEST(a_callback_that_fails_is_told_by_its_number) {
    eg_layer *model = eg_sequential(eg_layer_dense(1));
    eg_tensor *y = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    eg_callback_functions functions;
    memset(&functions, 0, sizeof functions);
    functions.batch_end = refuses;
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK_SAYS(RAISED(eg_fit_arrays(model, rows(2), y, .quiet = true,
                                    .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan(), eg_callback_new(functions)))),
               "eg_fit_arrays: callback 1 failed in its batch_end (epoch 1, batch 1)");
    eg_layer_release(model);
}

// ---- which gradient, which stage

static eg_tensor *square(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    return eg_square(in[0]);
}
static void no_gradient(const eg_grad_context *c, eg_tensor **dx, void *user) { (void)c, (void)user; dx[0] = wrong(); }
TEST(an_error_names_the_gradient_that_is_computed) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = eg_scalar(3);
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_custom_gradient(square, no_gradient, NULL, &x, 1);
    CHECK_SAYS(RAISED(eg_tape_gradient(tape, y, x)), "eg_matmul: inner dimensions differ: [2, 3] x [7, 7]");
    CHECK_SAYS(raised_text, ", in the gradient of eg_custom_gradient");
    CHECK(!strstr(RAISED(wrong()), "gradient"));                // and leaves no trace
}

// A dataset asks another one, whose own function fails: both stages are named, the outer one first.
static eg_iterator *inner;
static eg_tensor *asks(eg_tensor *const *in, void *user) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    (void)in, (void)user;
    return eg_iterator_next(inner, out) == EG_NEXT ? out[0] : NULL;
}
TEST(stages_nest) {
    for (int threads = 0; threads < 3; threads += 2) {
        eg_dataset *below = eg_dataset_map_one(eg_dataset_range(0, 3, 1), mistaken, NULL),
                   *all = eg_dataset_batch(eg_dataset_map_one(eg_dataset_range(0, 1, 1), asks, NULL,
                                                              .threads = threads), 2);
        eg_tensor *out[EG_MAX_COMPONENTS];
        inner = eg_iterator_new(below);
        eg_iterator *it = eg_iterator_new(all);
        const char *text = RAISED(eg_iterator_next(it, out));
        CHECK_SAYS(text, "eg_dataset_map (stage 2 of 3, element 0): eg_dataset_map (stage 2 of 2, element 0): "
                         "eg_matmul: inner dimensions differ");
        CHECK(strstr(text + 1, "stage 3 of 3") == NULL);
        eg_iterator_release(it);
        eg_iterator_release(inner);
        eg_dataset_release(below);
        eg_dataset_release(all);
    }
}

TEST(an_error_of_the_data_names_stage_epoch_and_batch) {
    eg_layer *model = eg_sequential(eg_layer_dense(1));
    eg_dataset *data = eg_dataset_prefetch(eg_dataset_map_one(eg_dataset_range(0, 3, 1), mistaken, NULL), 1);
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    const char *text = RAISED(eg_fit(model, data, .quiet = true));
    CHECK_SAYS(text, "eg_dataset_map (stage 2 of 3, element 0): eg_matmul: inner dimensions differ");
    CHECK_SAYS(text, "(epoch 1, batch 1)");
    CHECK(strstr(strstr(text, "(epoch") + 1, "(epoch") == NULL);                // said once
    eg_dataset_release(data);
    eg_layer_release(model);
}

// ---- deep, in a handler, out of memory, on threads

static eg_layer *deep_model(int depth) {
    eg_layer *l = eg_layer_lambda("bottom", mistaken, NULL);
    for (int i = 0; i < depth; i++) l = eg_layer_residual(l);
    return l;
}
TEST(a_path_that_is_too_long_is_cut) {
    eg_layer *model = deep_model(50);
    const char *text = RAISED(eg_call(model, rows(1)));
    CHECK_SAYS(text, "eg_matmul: inner dimensions differ");
    CHECK_SAYS(text, ", in layer residual/residual");
    CHECK(strlen(text) < 600);
    char *name = (char *)malloc(3000);
    REQUIRE(name != NULL);
    memset(name, 'x', 2999);
    name[2999] = 0;
    CHECK(strlen(RAISED(eg_raise(EG_ERROR_STATE, "eg_%s: %s", name, name))) == 1023);
    free(name);
    eg_layer_release(model);
}

static char seen[8][256];
static int n_seen;
static void handler(eg_error_code code, const char *message, void *user) {
    (void)code, (void)user;
    if (n_seen < 8) snprintf(seen[n_seen++], sizeof seen[0], "%s", message);
    wrong();                                                    // an error of the handler's own: counted, not told
}
TEST(an_error_is_one_line) {
    CHECK_ERROR(eg_raise(EG_ERROR_ARGUMENT, "%s: wrong", "two\nlines\r\x1b[1m\tbold"), EG_ERROR_ARGUMENT,
                "two lines  [1m bold: wrong");
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "two\nlines");
    CHECK(!eg_assign(v, eg_ones(EG_FLOAT32, EG_SHAPE(3))));
    CHECK(strlen(eg_error_message()) > 0 && !strchr(eg_error_message(), '\n'));
    eg_error_clear();
    eg_release(v);
}
TEST(an_error_in_the_handler_is_not_told_to_it) {
    int64_t before = eg_error_count();
    eg_error_clear();
    n_seen = 0;
    eg_set_error_handler(handler, NULL);
    eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(2)), eg_ones(EG_FLOAT32, EG_SHAPE(3)));
    eg_set_error_handler(NULL, NULL);
    CHECK_INT(n_seen, 1);
    CHECK_SAYS(seen[0], "eg_add: shapes do not broadcast");
    CHECK_SAYS(raised(), "eg_add: shapes do not broadcast");
    CHECK_INT(eg_error_count() - before, 2);
}
// The handler of a pipeline's error hears of it once, with all that is known.
TEST(the_handler_hears_of_a_pipeline_once) {
    eg_dataset *data = eg_dataset_map_one(eg_dataset_range(0, 3, 1), mistaken, NULL);
    eg_iterator *it = eg_iterator_new(data);
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_error_clear();
    n_seen = 0;
    eg_set_error_handler(handler, NULL);
    CHECK(eg_iterator_next(it, out) == EG_FAILED);
    eg_set_error_handler(NULL, NULL);
    CHECK_INT(n_seen, 1);
    CHECK_SAYS(seen[0], "eg_dataset_map (stage 2 of 2, element 0): eg_matmul: inner dimensions differ");
    eg_error_clear();
    eg_iterator_release(it);
    eg_dataset_release(data);
}

#ifndef EAGER_NO_THREADS
// Each thread has its own contexts: what one is in the middle of, another does not tell.
static void *other_thread(void *p) {
    eg_set_device(test_device());
    snprintf((char *)p, 512, "%s", RAISED(wrong()));
    eg_shutdown();
    return NULL;
}
static char other_text[512];
static eg_tensor *starts_a_thread(eg_tensor *const *in, void *user) {
    pthread_t thread;
    (void)in, (void)user;
    if (pthread_create(&thread, NULL, other_thread, other_text) == 0) pthread_join(thread, NULL);
    return wrong();
}
TEST(contexts_are_a_threads_own) {
    eg_layer *model = eg_sequential(eg_layer_lambda("starter", starts_a_thread, NULL));
    CHECK_SAYS(RAISED(eg_call(model, rows(1))), ", in layer sequential/starter");
    CHECK_SAYS(other_text, "eg_matmul: inner dimensions differ");
    CHECK(strstr(other_text, "in layer") == NULL);
    eg_layer_release(model);
}
#endif

// ---- objects that are no more: a debug build keeps freed ones for a while, and tells

#ifdef EAGER_DEBUG
TEST(objects_that_were_released_are_told) {
    eg_layer *layer = eg_layer_dense(2);
    eg_optimizer *optimizer = eg_sgd();
    eg_dataset *data = eg_dataset_range(0, 3, 1);
    eg_iterator *it = eg_iterator_new(data);
    eg_archive *archive = eg_archive_new();
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_layer_release(layer);
    eg_optimizer_release(optimizer);
    eg_iterator_release(it);
    eg_dataset_release(data);
    eg_archive_release(archive);
    CHECK_ERROR(eg_call(layer, rows(1)), EG_ERROR_STATE,
                "eg_call: the layer was used after its last reference was released");
    CHECK_ERROR(eg_model_traced_reason(layer), EG_ERROR_STATE, "eg_model_traced_reason: the model was used after");
    CHECK_ERROR(eg_model_result(layer, "loss"), EG_ERROR_STATE, "eg_model_result: the model was used after");
    CHECK_ERROR(eg_model_optimizer(layer), EG_ERROR_STATE, "eg_model_optimizer: the layer was used after");
    CHECK_ERROR(eg_layer_retain(layer), EG_ERROR_STATE, "eg_layer_retain: the layer was used after");
    CHECK_ERROR(eg_layer_release(layer), EG_ERROR_STATE, "eg_layer_release: the layer was used after");
    CHECK_ERROR(eg_optimizer_learning_rate(optimizer), EG_ERROR_STATE, "the optimizer was used after");
    CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_STATE, "eg_iterator_next: the iterator was used after");
    CHECK_ERROR(eg_dataset_batch(data, 2), EG_ERROR_STATE, "the dataset was used after");
    CHECK_ERROR(eg_archive_get(archive, "x"), EG_ERROR_STATE, "eg_archive_get: the archive was used after");
}
#endif

// ---- which line

#define AT(line) (snprintf(line_text, sizeof line_text, "(at errors.c:%d)", line), line_text)
static char line_text[40];
static eg_tensor *quiet_loss(eg_tensor *y, eg_tensor *p) { return (eg_mean_squared_error)(y, p); }
static bool calls_much(eg_fit_state *state, void *user) {
    (void)state, (void)user;
    for (int i = 0; i < 40; i++) eg_size(eg_scalar(i));
    return true;
}
TEST(an_error_of_training_names_the_line_of_the_call) {
#ifdef NDEBUG
    SKIP("NDEBUG leaves it out");
#endif
    eg_layer *model = eg_layer_dense(3);
    eg_tensor *x = rows(2), *y = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2));
    eg_callback_functions functions;
    memset(&functions, 0, sizeof functions);
    functions.epoch_begin = calls_much;
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK_SAYS(RAISED(eg_fit_arrays(model, x, y, .quiet = true)), AT(__LINE__));
    // What a callback has called in between is not where the fit is.
    eg_callback *callback = eg_callback_new(functions);
    CHECK_SAYS(RAISED(eg_fit_arrays(model, x, y, .quiet = true, .callbacks = EG_CALLBACKS(callback))), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_train_on_batch(model, x, y)), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_evaluate_arrays(model, x, y, .quiet = true)), AT(__LINE__));
    CHECK(eg_compile(model, eg_sgd(), quiet_loss));
    CHECK_SAYS(RAISED(eg_train_on_batch(model, x, y)), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_loss_mean(eg_mean_squared_error, x, y)), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_activate(NULL, EG_RELU)), AT(__LINE__));
    eg_layer_release(model);
}

// A macro of the program puts many calls into one line.
TEST(an_error_among_many_calls_of_a_line_names_the_line) {
#ifdef NDEBUG
    SKIP("NDEBUG leaves it out");
#endif
    eg_tensor *x = rows(2);
#define FOUR(a, b, c, d) eg_##a(x), eg_##b(x), eg_##c(x), eg_##d(x)
#define MANY FOUR(abs, sign, square, exp), FOUR(sin, cos, tan, tanh), FOUR(erf, floor, ceil, round), \
             FOUR(relu, selu, silu, mish), FOUR(gelu, asinh, atan, expm1), FOUR(sinh, cosh, sigmoid, softplus)
    for (int i = 0; i < 4; i++) {
        CHECK_SAYS(((void)(MANY), RAISED(eg_reshape(eg_sub(eg_negative(x), 9), EG_SHAPE(7)))), AT(__LINE__));
        CHECK_SAYS(raised_text, "eg_reshape: ");
    }
}

static eg_tensor *noteless(eg_tensor *const *in, void *user) { (void)user; return (eg_sqrt)(in[0]); }
TEST(an_error_of_a_dataset_names_the_line_of_its_stage) {
#ifdef NDEBUG
    SKIP("NDEBUG leaves it out");
#endif
    const char *none = "no such file";
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_SAYS(RAISED(eg_load_npz(none)), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_dataset_range(0, 1, 0)), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_dataset_batch(eg_dataset_range(0, 1, 1), 0)), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_dataset_from_slices(rows(2), rows(3))), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_dataset_zip(eg_dataset_range(0, 1, 1), NULL)), AT(__LINE__));
    CHECK_SAYS(RAISED(eg_dataset_csv(&none, 1, .delimiter = '"')), AT(__LINE__));
    for (int threads = 0; threads < 3; threads += 2)
        for (int k = 0; k < 2; k++) {
            eg_dataset *numbers = k ? eg_dataset_range(0, 3, 1) : NULL;
            int made = __LINE__ + 1;
            eg_dataset *d = k ? eg_dataset_map(numbers, noteless, NULL, .threads = threads) : NULL;
            if (!k) { made = __LINE__; d = eg_dataset_text_lines(&none, 1); }
            eg_iterator *it = eg_iterator_new(d);
            CHECK_SAYS(RAISED(eg_iterator_next(it, out)), AT(made));
            CHECK_SAYS(raised_text, k ? "eg_dataset_map (stage 2 of 2, element 0): eg_sqrt: "
                                      : "eg_dataset_text_lines (stage 1 of 1, element 0): no such file: ");
            eg_iterator_release(it);
            eg_dataset_release(d);
        }
}

// ---- an error's parts

// The parts of the pending error, of eg_sqrt called in this line, whose sentence begins so.
static eg_error_info sqrt_failed(const char *begins, int line) {
    const eg_error_info e = eg_error_details();
    CHECK_INT(e.code, EG_ERROR_DTYPE);
    CHECK_STR(e.function, "eg_sqrt");
    CHECK(strncmp(e.sentence, begins, strlen(begins)) == 0);
#ifdef NDEBUG
    CHECK(e.line == 0 && line > 0);
#else
    CHECK_STR(e.file, "errors.c");
    CHECK_INT(e.line, line);
#endif
    return e;
}
TEST(an_error_can_be_read_in_parts) {
    char text[1024];
    eg_set_error_handler(NULL, NULL);
    eg_error_info e = eg_error_details();
    CHECK(e.code == EG_OK && e.line == 0 && !e.function[0] && !e.sentence[0] && !e.file[0]);

    eg_tensor *x = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 2);
    const int line = __LINE__ + 1;
    CHECK(!eg_sqrt(x));
    CHECK(!eg_reshape(x, EG_SHAPE(3)));                                         // the first error stays
    e = sqrt_failed("does not take int32 [2]", line);
    CHECK(!strstr(e.sentence, "errors.c"));
    snprintf(text, sizeof text, e.line ? "%s: %s (at %s:%d)" : "%s: %s", e.function, e.sentence, e.file, e.line);
    CHECK_STR(eg_error_message(), text);
    eg_error_clear();
    CHECK_INT(eg_error_details().code, EG_OK);
    CHECK_STR(eg_error_message(), "");

    (eg_raise)(EG_ERROR_STATE, "two\nlines");
    e = eg_error_details();
    CHECK_STR(e.function, "");
    CHECK_STR(e.sentence, "two lines");
    eg_error_clear();
}

// What an error meets on its way, from thread to thread and from context to context, stands around its parts.
TEST(passing_an_error_on_leaves_its_parts_alone) {
    eg_set_error_handler(NULL, NULL);
    for (int threads = 0; threads < 3; threads += 2) {
        eg_layer *model = eg_sequential(eg_layer_dense(1));
        eg_dataset *numbers = eg_dataset_range(0, 3, 1), *map;
        const int made = __LINE__ + 1;
        map = eg_dataset_map_one(numbers, noteless, NULL, .threads = threads);
        eg_dataset *data = eg_dataset_prefetch(map, 1);
        CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error));
        CHECK(!eg_fit(model, data, .quiet = true));
        const eg_error_info e = sqrt_failed("does not take int64 []", made);
        CHECK(!strstr(e.sentence, "epoch"));
        const char *text = raised();
        CHECK_SAYS(text, "eg_dataset_map (stage 2 of 3, element 0): eg_sqrt: does not take int64 []");
        CHECK_SAYS(text, e.line ? ") (epoch 1, batch 1)" : " (epoch 1, batch 1)");
        eg_dataset_release(data);
        eg_layer_release(model);
    }
}
// A list with a gap: the error names the list, by the parameter's name, and the entry.
static eg_tensor *sum_of_squares(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_reduce_sum(eg_square(in[0]));
}
static bool same_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_identity(in[0]);
    return out[0] != NULL;
}
TEST(an_entry_of_a_list_that_is_null_is_named) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), *v = eg_variable(x, "v");
    eg_tensor *gap[3] = {x, NULL, x}, *full[3] = {x, x, x}, *vars[3] = {v, NULL, v}, *out[3];
    eg_layer *add = eg_layer_merge_add();
    eg_optimizer *sgd = eg_sgd();
    eg_function *f = eg_function_new(same_body, NULL);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_reduce_sum(x);
    CHECK_ERROR(eg_concat(gap, 3, 0), EG_ERROR_NULL,
                "eg_concat: x[1] is NULL; each entry must be made before this call");
    CHECK_ERROR(eg_stack(gap, 3, 0), EG_ERROR_NULL, "eg_stack: x[1] is NULL");
    CHECK_ERROR(eg_einsum("ij,jk,kl->il", gap, 3), EG_ERROR_NULL, "eg_einsum: operands[1] is NULL");
    CHECK_ERROR(eg_call_multi(add, gap, 3, out, 1), EG_ERROR_NULL, "eg_call_multi: in[1] is NULL");
    CHECK_ERROR(eg_tape_gradients(tape, y, gap, 3, out), EG_ERROR_NULL, "eg_tape_gradients: xs[1] is NULL");
    CHECK_ERROR(eg_tape_gradient(tape, NULL, x), EG_ERROR_NULL, "eg_tape_gradient: operand 0 is NULL");
    CHECK_ERROR(eg_apply_gradients(sgd, full, vars, 3), EG_ERROR_NULL, "eg_apply_gradients: variables[1] is NULL");
    CHECK_ERROR(eg_function_call(f, gap, 2, out, 1), EG_ERROR_NULL, "eg_function_call: inputs[1] is NULL");
    CHECK_ERROR(eg_hvp(sum_of_squares, NULL, full, gap, 3, out), EG_ERROR_NULL, "eg_hvp: vs[1] is NULL");
    CHECK_ERROR(eg_cond(eg_ones(EG_BOOL, EG_SCALAR), same_body, same_body, NULL, gap, 2, out, 1), EG_ERROR_NULL,
                "eg_cond: inputs[1] is NULL");
    CHECK_ERROR(eg_while(same_body, same_body, NULL, gap, out, 3), EG_ERROR_NULL, "eg_while: state[1] is NULL");
    CHECK_ERROR(eg_scan(same_body, NULL, gap, out, 3, full, 1, NULL, 0), EG_ERROR_NULL, "eg_scan: carry[1] is NULL");
    CHECK_ERROR(eg_scan(same_body, NULL, full, out, 1, gap, 2, NULL, 0), EG_ERROR_NULL, "eg_scan: rows[1] is NULL");
    CHECK_ERROR(eg_dataset_from_tensors_of(gap, 3), EG_ERROR_NULL, "eg_dataset_from_tensors: tensors[1] is NULL");
    CHECK_ERROR(eg_dataset_from_slices(x, NULL), EG_ERROR_NULL, "eg_dataset_from_slices: tensors[1] is NULL");
    CHECK_ERROR(eg_dataset_batch(NULL, 2), EG_ERROR_NULL, "eg_dataset_batch: the dataset is NULL");
    CHECK_ERROR(eg_dataset_zip(eg_dataset_range(0, 3, 1), NULL), EG_ERROR_NULL, "eg_dataset_zip: datasets[1] is NULL");
    CHECK_ERROR(eg_assign(x, x), EG_ERROR_ARGUMENT, "tensors do not change, what eg_variable makes does");
    eg_function_release(f);
    eg_optimizer_release(sgd);
    eg_layer_release(add);
    eg_release(v);
}
