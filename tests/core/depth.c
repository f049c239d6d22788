// How deep things may stand in one another: what has no end is an error that names the limit, and never the end of the
// stack; a thread with a small stack trains a model.
#include "test.h"
#include "examples/digits.h"
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

#define LIMIT_TEXT(n) EGI_TEXT_OF(n)
#define EGI_TEXT_OF(n) #n

// ---- layers

static eg_layer *nested(int64_t n) {
    eg_layer *l = eg_layer_dense(2);
    for (int64_t i = 1; i < n && l; i++) l = eg_layer_residual(l);
    return l;
}
TEST(layers_in_layers_have_a_limit) {
    CHECK_ERROR(nested(5000), EG_ERROR_STATE,
                "layers stand more than " LIMIT_TEXT(EG_MAX_DEPTH) " deep in one another");
    eg_layer *l = nested(EG_MAX_DEPTH);
    REQUIRE(l);
    CHECK_SHAPE(eg_call(l, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))), 1, 2);
    CHECK_INT(eg_layer_parameters(l), 6);
    int64_t size = eg_layer_config(l, NULL, 0);                // what can be made can be written, read again and copied
    char *text = (char *)malloc((size_t)size + 1);
    eg_layer_config(l, text, (size_t)size + 1);
    eg_layer *again = eg_layer_from_config(text);
    CHECK(again);
    CHECK_INT(eg_layer_parameters(again), 6);
    free(text);
    CHECK(eg_model_save(l, test_temp("deep.safetensors")));
    eg_layer *loaded = eg_model_load(test_temp("deep.safetensors"));
    CHECK(loaded);
    CHECK_SAME(eg_call(loaded, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))), eg_call(l, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))),
               0);
    eg_layer_release(loaded);
    eg_layer_release(again);
    CHECK_ERROR(eg_layer_residual(l), EG_ERROR_STATE, "deep in one another");      // which takes it over
}
TEST(weights_at_the_bottom_have_their_names_and_slots) {      // paths of 560 bytes; and one of 1500
    eg_layer *l = eg_sequential(eg_layer_dense(2), eg_layer_dense(2)), *again;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 2)), *y, *g[4];
    for (int i = 0; i < EG_MAX_DEPTH - 2; i++) l = eg_layer_residual(l);
    y = eg_call(l, x);
    eg_optimizer *o = eg_adam(.learning_rate = 1e-3), *o2 = eg_adam(.learning_rate = 1e-3);
    eg_list w = eg_layer_weights_list(l);
    REQUIRE(w.count == 4);
    for (int i = 0; i < 4; i++) g[i] = eg_random_normal(eg_shape_of(w.tensors[i]));
    CHECK(eg_apply_gradients(o, g, w.tensors, 4));
    y = eg_call(l, x);
    eg_checkpoint *c = eg_checkpoint_new(), *c2 = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "model", l) && eg_checkpoint_track_optimizer(c, "adam", o));
    REQUIRE(eg_checkpoint_save(c, test_temp("depth/bottom")));
    again = eg_layer_copy(l);
    for (int i = 0; i < 4; i++) eg_assign(eg_layer_weights_list(again).tensors[i], eg_zeros_like(w.tensors[i]));
    CHECK(eg_checkpoint_track_layer(c2, "model", again) && eg_checkpoint_track_optimizer(c2, "adam", o2));
    CHECK(eg_checkpoint_restore(c2, eg_checkpoint_latest(test_temp("depth/bottom"))) &&
          eg_checkpoint_assert_consumed(c2));
    CHECK_SAME(eg_call(again, x), y, 0);
    CHECK(eg_apply_gradients(o, g, w.tensors, 4) && eg_apply_gradients(o2, g, eg_layer_weights_list(again).tensors, 4));
    CHECK_SAME(eg_call(again, x), eg_call(l, x), 0);
    eg_checkpoint_release(c);
    eg_checkpoint_release(c2);
    eg_optimizer_release(o);
    eg_optimizer_release(o2);
    eg_layer_release(again);
    eg_layer_release(l);
    char name[100];
    memset(name, 'n', sizeof name);
    name[99] = 0;
    l = eg_layer_dense(2);
    for (int i = 0; i < 15; i++) { CHECK(eg_layer_set_name(l, name)); l = eg_layer_residual(l); }
    y = eg_call(l, x);
    CHECK(eg_model_save(l, test_temp("long.safetensors")));
    again = eg_model_load(test_temp("long.safetensors"));
    CHECK_SAME(eg_call(again, x), y, 0);
    eg_layer_release(again);
    eg_layer_release(l);
}
static eg_tensor *itself(eg_tensor *const *in, void *user) { return eg_call(*(eg_layer **)user, in[0]); }
static eg_layer *mine(eg_layer **handle) { return *handle = eg_layer_custom("mine", itself, handle); }
// From the top down: the layers below are deeper than they were when they got theirs.
TEST(a_layer_that_grows_below_has_the_same_limit) {
    eg_layer *top, *at = mine(&top), *next, *handles[EG_MAX_DEPTH];
    for (int i = 1; i < EG_MAX_DEPTH; i++) {
        next = eg_layer_track(at, NULL, mine(&handles[i]));
        REQUIRE(next);
        at = next;
    }
    CHECK_ERROR(eg_layer_track(at, NULL, eg_layer_dense(1)), EG_ERROR_STATE, "deep in one another");
    CHECK_ERROR(eg_layer_residual(eg_layer_retain(top)), EG_ERROR_STATE, "deep in one another");
    eg_layer *half = nested(EG_MAX_DEPTH / 2);
    CHECK_ERROR(eg_layer_track(handles[EG_MAX_DEPTH / 2 + 1], NULL, eg_layer_retain(half)), EG_ERROR_STATE,
                "deep in one another");
    CHECK(eg_layer_track(handles[EG_MAX_DEPTH / 2 - 1], NULL, eg_layer_retain(half)));
    eg_layer_release(half);
    eg_layer_release(top);
}
// A layer in two places of a layer in two places ...: 2^60 paths, and the checks follow none of them twice.
TEST(a_layer_in_many_places_is_looked_at_once) {
    eg_layer *handle, *lowest = mine(&handle), *l = lowest;
    for (int i = 0; i < 60; i++) {
        eg_layer *both = mine(&handle);
        CHECK(eg_layer_track(both, "a", l));
        CHECK(eg_layer_track(both, "b", eg_layer_retain(l)));
        l = both;
    }
    CHECK_ERROR(eg_layer_track(lowest, "c", eg_layer_retain(l)), EG_ERROR_ARGUMENT, "cannot be a part of itself");
    eg_layer_release(l);
}
TEST(thousands_of_layers_side_by_side) {                    // of which each finds its name in one round
    enum { LAYERS = 5000 };
    bool all = true;
    eg_layer *model = eg_sequential();
    for (int i = 0; i < LAYERS; i++) all = eg_layer_add(model, eg_layer_flatten()) && all;
    CHECK(all);
    eg_layer_list list = eg_layer_layers_list(model);
    CHECK_INT(list.count, LAYERS);
    CHECK_STR(eg_layer_name(list.layers[0]), "flatten");
    CHECK_STR(eg_layer_name(list.layers[1]), "flatten_1");
    CHECK_STR(eg_layer_name(list.layers[LAYERS - 1]), "flatten_4999");
    eg_layer_release(model);
}
TEST(a_layer_that_calls_itself) {
    eg_layer *l = NULL, *in = mine(&l);
    CHECK_ERROR(eg_call(in, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))), EG_ERROR_STATE,
                "eg_call: more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another");
    // and again: nothing is left behind
    CHECK_ERROR(eg_call(in, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))), EG_ERROR_STATE, "calls stand in one another");
    eg_layer_release(in);
}

// ---- masks, tapes, derivatives

TEST(masks_of_masks_of_masks) {
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_BOOL, EG_SHAPE(1));
    for (int i = 0; i < 300000 / test_share; i++) {
        eg_scope scope = eg_scope_begin();
        x = eg_retain(eg_with_mask(eg_ones(EG_BOOL, EG_SHAPE(1)), x));
        eg_scope_end(scope);
        REQUIRE(x);
        if (i) eg_release(eg_mask_of(x));                      // x holds it now
    }
    eg_release(x);
}
TEST(many_tapes_in_one_another) {
    EG_SCOPE;
    for (int i = 0; i < 300000 / test_share; i++) CHECK(eg_tape_begin());
}
static eg_tensor *cube(eg_tensor *const *in, void *user) { (void)user; return eg_mul(eg_square(in[0]), in[0]); }
TEST(derivatives_of_a_high_order) {
    eg_tensor *x = eg_scalar(2);
    CHECK_ERROR(eg_nth_gradient(cube, NULL, x, 200000), EG_ERROR_ARGUMENT,
                "eg_nth_gradient: an order of 200000; at most " LIMIT_TEXT(EG_MAX_DEPTH));
    CHECK_TENSOR(eg_nth_gradient(cube, NULL, x, 3), 1e-6, 6);
    CHECK_TENSOR(eg_nth_gradient(cube, NULL, x, EG_MAX_DEPTH), 0, 0);
    CHECK_ERROR(eg_check_gradient(cube, NULL, &x, 1, .order = 200000), EG_ERROR_ARGUMENT,
                "eg_check_gradient: .order is 200000; it must be at least 1 and at most " LIMIT_TEXT(EG_MAX_DEPTH));
}
static eg_tensor *own_gradient(eg_tensor *const *in, void *user) {
    eg_tensor *g[1];
    return eg_gradients_function(own_gradient, user, in, 1, g) ? g[0] : NULL;
}
static void no_backward(const eg_grad_context *c, eg_tensor **dx, void *user) { (void)c; (void)dx; (void)user; }
static eg_tensor *own_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c;
    return eg_custom_gradient(own_forward, no_backward, user, in, 1);
}
TEST(functions_that_give_themselves_to_the_library) {
    eg_tensor *x = eg_scalar(2), *g[1];
    CHECK_ERROR(eg_gradients_function(own_gradient, NULL, &x, 1, g), EG_ERROR_STATE,
                "eg_gradients_function: more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another");
    CHECK_ERROR(eg_custom_gradient(own_forward, no_backward, NULL, &x, 1), EG_ERROR_STATE,
                "eg_custom_gradient: more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another");
    CHECK_TENSOR(eg_nth_gradient(cube, NULL, x, 2), 1e-6, 12);
}
static eg_tensor *square_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c;
    (void)user;
    return eg_square(in[0]);
}
static void own_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    eg_tensor *x = eg_scalar(2);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    dx[0] = eg_mul(c->upstream[0],
                   eg_tape_gradient(tape, eg_custom_gradient(square_forward, own_backward, user, &x, 1), x));
}
static eg_tensor *own_rate(eg_tensor *step, const eg_schedule *schedule) {
    (void)step;
    return eg_scalar(eg_schedule_value(schedule, 1));
}
static eg_tensor *own_loss(eg_tensor *y, eg_tensor *p) { return eg_loss_mean(own_loss, y, p); }
static int printed;
static void own_printer(const char *text, void *user) {
    (void)text;
    (void)user;
    printed++;
    eg_print(eg_scalar(1));
}
TEST(gradients_schedules_losses_and_printers_that_ask_for_themselves) {
    eg_tensor *x = eg_scalar(2);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_custom_gradient(square_forward, own_backward, NULL, &x, 1);
    CHECK_ERROR(eg_tape_gradient(tape, y, x), EG_ERROR_STATE,
                "more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another");
    eg_schedule schedule = eg_exponential_decay(1, 1, 1, false);
    schedule.rate = own_rate;
    CHECK(isnan(eg_schedule_value(&schedule, 0)));
    CHECK_CONTAINS(eg_error_message(), "more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another");
    eg_error_clear();
    CHECK_ERROR(own_loss(x, x), EG_ERROR_STATE, "more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another");
    eg_set_printer(own_printer, NULL);
    eg_print(x);
    eg_set_printer(NULL, NULL);
    CHECK_INT(printed, EG_MAX_DEPTH);
    CHECK_CONTAINS(eg_error_message(),
                   "eg_set_printer: more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another");
    eg_error_clear();
    CHECK_TENSOR(eg_nth_gradient(cube, NULL, x, 2), 1e-6, 12);                      // nothing is left behind
}

// ---- datasets

TEST(stages_on_stages_have_a_limit) {
    eg_dataset *d = eg_dataset_range(0, 3, 1);
    for (int i = 0; i < 300000 && d; i++) d = eg_dataset_take(d, 2);
    CHECK(!d);
    CHECK_CONTAINS(eg_error_message(),
                   "eg_dataset_take: more than " LIMIT_TEXT(EG_MAX_STAGES) " stages stand one on another");
    CHECK_INT(eg_error(), EG_ERROR_STATE);
    eg_error_clear();
    d = eg_dataset_range(0, 3, 1);
    for (int i = 1; i < EG_MAX_STAGES && d; i++)
        d = i % 3 ? eg_dataset_shuffle(d, 2) : eg_dataset_concatenate(d, eg_dataset_range(0, 1, 1));
    REQUIRE(d);
    int64_t n = 0;
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator *it = eg_iterator_new(d);
    while (eg_iterator_next(it, out) == EG_NEXT) n++;
    CHECK_INT(n, 3 + (EG_MAX_STAGES - 1) / 3);
    eg_tensor *position = eg_iterator_position(it);
    CHECK(eg_iterator_restore(it, position));
    CHECK(eg_iterator_next(it, out) == EG_END_OF_SEQUENCE);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
TEST(a_dataset_below_itself_many_times) {                        // counted in each place, and there by 2^n
    eg_dataset *d = eg_dataset_range(0, 3, 1);
    for (int i = 0; i < 40 && d; i++) d = eg_dataset_concatenate(d, eg_dataset_retain(d));
    CHECK(!d);
    CHECK_CONTAINS(eg_error_message(), "eg_dataset_concatenate: a pipeline of more than 1000000 stages");
    CHECK_INT(eg_error(), EG_ERROR_STATE);
    eg_error_clear();
}
static eg_dataset *without_end(eg_tensor *const *in, void *user) {
    (void)in;
    return eg_dataset_interleave(eg_dataset_range(0, 1, 1), without_end, user);
}
TEST(datasets_made_by_datasets_have_the_same_limit) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_dataset *d = without_end(NULL, NULL);
    eg_iterator *it = eg_iterator_new(d);
    CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_STATE,
                "more than " LIMIT_TEXT(EG_MAX_STAGES) " stages stand one on another");
    eg_iterator_release(it);
    eg_dataset_release(d);
}
typedef struct feed { eg_dataset *d; eg_iterator *it; int what; } feed;
static eg_status ask(int64_t i, eg_tensor **out, void *user) {
    feed *f = (feed *)user;
    eg_tensor *next[EG_MAX_COMPONENTS];
    eg_status status = EG_NEXT;
    (void)i;
    if (f->what == 0) status = eg_iterator_next(f->it, next);
    else if (f->what == 1) {
        eg_iterator *it = eg_iterator_new(f->d);
        status = eg_iterator_next(it, next);
        eg_iterator_release(it);
    } else if (f->what == 2) status = eg_iterator_set(f->it, f->d) ? EG_NEXT : EG_FAILED;
    else status = eg_iterator_restore(f->it, eg_iterator_position(f->it)) ? EG_NEXT : EG_FAILED;
    out[0] = eg_scalar(1);
    return status;
}
TEST(an_iterator_that_is_its_own_generator) {
    static const char *const says[] = { "eg_iterator_next: the iterator is in use",
                                        "more than " LIMIT_TEXT(EG_MAX_DEPTH) " calls stand in one another",
                                        "eg_iterator_set: the iterator is in use",
                                        "eg_iterator_restore: the iterator is in use" };
    for (int what = 0; what < 4; what++)
        for (int ahead = 0; ahead < (what == 0 ? 2 : 1); ahead++) {
            feed f = { NULL, NULL, what };
            eg_tensor *out[EG_MAX_COMPONENTS];
            eg_spec spec = { EG_FLOAT32, { 0, { 0 } } };
            f.d = eg_dataset_from_generator(ask, &f, 1, &spec);
            if (ahead) f.d = eg_dataset_prefetch(f.d, 2);
            f.it = eg_iterator_new(f.d);
            CHECK_ERROR(eg_iterator_next(f.it, out), EG_ERROR_STATE, says[what]);
            eg_iterator_release(f.it);
            eg_dataset_release(f.d);
        }
}

// ---- the stack

#ifdef EAGER_NO_THREADS
TEST(a_thread_with_a_small_stack_trains_the_digits) { SKIP("compiled with EAGER_NO_THREADS"); }
#else
static bool scale(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_div(eg_cast(in[0], EG_FLOAT32), 255);
    out[1] = in[1];
    return out[0] != NULL;
}
static eg_dataset *batches(const digits *d) {
    eg_tensor *images = eg_from_data(EG_UINT8, EG_SHAPE(d->count, 28, 28, 1), (void *)d->pixels),
              *labels = eg_from_data(EG_INT32, EG_SHAPE(d->count), d->labels);
    return eg_dataset_map(eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(images, labels), 300), 32), scale,
                          NULL);
}
typedef struct learner { const digits *train; eg_dtype dtype; double accuracy; eg_error_code error; } learner;
static void *learn(void *argument) {
    learner *l = (learner *)argument;
    eg_set_device(test_device());
    eg_seed(1);
    eg_dataset *data = batches(l->train);
    eg_layer *model = eg_sequential(
        eg_layer_conv2d(8, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL,
                        .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_max_pooling2d(),
        eg_layer_conv2d(16, 3, .activation = EG_RELU, .kernel_initializer = EG_INIT_HE_NORMAL),
        eg_layer_max_pooling2d(),
        eg_layer_flatten(),
        eg_layer_dense(10));
    eg_compile(model, eg_adam(.learning_rate = 3e-3), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY);
    const eg_history *history = eg_fit(model, data, .epochs = test_share > 1 ? 1 : 3, .quiet = true);
    l->accuracy = eg_history_value(history, "accuracy", -1);
    // the largest frames: products, and operands of mixed layouts
    eg_tensor *x = eg_ones(EG_FLOAT64, EG_SHAPE(300, 1)), *y = eg_matmul(x, x, .transpose_b = true);
    y = eg_reduce_sum(eg_where(eg_greater(eg_transpose(y), eg_constant_of(EG_FLOAT64, EG_SHAPE(1), 0)), y,
                               eg_cast(eg_ones(EG_INT32, EG_SHAPE(300)), EG_FLOAT64)));
    if (eg_item(y) != 90000) l->accuracy = 0;
    eg_layer_release(model);
    eg_dataset_release(data);
    l->error = eg_error();
    return NULL;
}
TEST(a_thread_with_a_small_stack_trains_the_digits) {
    learner l = { NULL, EG_FLOAT32, 0, EG_OK };
    digits train;
    pthread_attr_t small;
    pthread_t thread;
    REQUIRE(digits_draw(&train, 640, 1));
    l.train = &train;
    pthread_attr_init(&small);
    // sanitizers make frames larger
    REQUIRE(pthread_attr_setstacksize(&small, test_share > 1 ? 1 << 20 : 128 << 10) == 0);
    REQUIRE(pthread_create(&thread, &small, learn, &l) == 0);
    pthread_join(thread, NULL);
    CHECK_INT(l.error, EG_OK);
    CHECK(l.accuracy > (test_share > 1 ? .2 : .7));
    pthread_attr_destroy(&small);
    digits_free(&train);
}
#endif
