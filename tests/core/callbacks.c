// Calls into the user's code: whatever a deleter, a custom gradient, a layer, a loss, a dataset's function, a callback
// or a handler does with scopes, pauses, eg_shutdown or with references to what it runs on, the library goes on, or
// says what was wrong.
#include "test.h"

#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

// ---- scopes, pauses, eg_shutdown: the same mischief in every kind of function

#define CHECK_PENDING(code, part) \
    do { CHECK_INT(eg_error(), code); CHECK_CONTAINS(eg_error_message(), part); eg_error_clear(); } while (0)

typedef enum mischief { NOTHING, FORGETS_SCOPES, ENDS_ITS_CALLERS, ENDS_TWICE, SHUTS_DOWN, FORGETS_PAUSES,
                        ENDS_ITS_CALLERS_PAUSE, MISCHIEFS } mischief;
static const char *const said[MISCHIEFS] = {[ENDS_ITS_CALLERS] = " ended a scope that it did not begin",
                                            [SHUTS_DOWN] = "eg_shutdown: the ",
                                            [ENDS_ITS_CALLERS_PAUSE] = " ended a pause that it did not begin"};
static mischief now;
static eg_scope callers;
static int calls;
static unsigned mixed;                           // not 0: each call does something else

static void misbehave(void) {
    eg_scope own;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    switch (__atomic_load_n(&mixed, __ATOMIC_RELAXED)
            ? (mischief)((__atomic_fetch_add(&mixed, 2654435761u, __ATOMIC_RELAXED) >> 16) % MISCHIEFS) : now) {
    case FORGETS_SCOPES: eg_scope_begin(); eg_keep(eg_scalar(1)); eg_scope_begin(); eg_scalar(2); break;
    case ENDS_ITS_CALLERS: eg_scalar(1); eg_scope_end(callers); break;
    case ENDS_TWICE: own = eg_scope_begin(); eg_scalar(1); eg_scope_end(own); eg_scope_end(own); break;
    case SHUTS_DOWN: eg_shutdown(); break;
    case FORGETS_PAUSES: eg_recording_pause(); eg_recording_pause(); break;
    case ENDS_ITS_CALLERS_PAUSE: eg_recording_unpause(); break;
    default: break;
    }
}

static eg_tensor *square_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    misbehave();
    c->saved[0] = in[0];
    return eg_square(in[0]);
}
static bool square_forward_multi(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    return (out[0] = square_forward(in, c, user)) != NULL;
}
static void square_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    misbehave();
    dx[0] = eg_mul(c->upstream[0], eg_mul(2, c->saved[0]));
}
static eg_tensor *square(eg_tensor *const *in, void *user) {
    (void)user;
    misbehave();
    return eg_square(in[0]);
}
static bool square_multi(eg_tensor *const *in, eg_tensor **out, void *user) {
    return (out[0] = square(in, user)) != NULL;
}
static eg_tensor *squares(eg_tensor *labels, eg_tensor *predictions) {
    misbehave();
    return eg_square(eg_sub(labels, predictions));
}
static eg_tensor *rate_of_step(eg_tensor *step, const eg_schedule *schedule) {
    (void)step;
    (void)schedule;
    misbehave();
    return eg_scalar_of(EG_FLOAT64, .5);
}
static const eg_schedule wicked_schedule = {rate_of_step, {0}, NULL, NULL, 0};
static void release_user(void *user) { (void)user; misbehave(); }
static void delete_data(void *data, void *user) { (void)data; (void)user; misbehave(); }
static eg_layer *make_square(void *user) { misbehave(); return eg_layer_lambda("callbacks_square", square, user); }
static eg_status three(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    misbehave();
    out[0] = eg_scalar((double)i);
    return i < 3 ? EG_NEXT : EG_END_OF_SEQUENCE;
}
static eg_dataset *ranges(eg_tensor *const *in, void *user) {
    (void)in;
    (void)user;
    misbehave();
    return eg_dataset_range(0, 2, 1);
}
static bool fit_event(eg_fit_state *state, void *user) { (void)user; misbehave(); return state->model != NULL; }
static double fit_rate(int64_t epoch, double rate, void *user) { (void)epoch; (void)user; misbehave(); return rate; }
static void print_nothing(const char *text, void *user) { (void)text; (void)user; misbehave(); }

static bool is_near(eg_tensor *x, double want) { return x && fabs(eg_item(x) - want) < 1e-5; }
static bool reads_all(eg_dataset *d, int64_t n, double sum) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator *it = eg_iterator_new(d);
    eg_dataset_release(d);
    eg_status status;
    while ((status = eg_iterator_next(it, out)) == EG_NEXT) { n--; sum -= eg_item(out[0]); }
    eg_iterator_release(it);
    return status == EG_END_OF_SEQUENCE && n == 0 && sum == 0;
}

// Each makes one call and says whether the result is right, though the functions misbehave.
static bool of_custom_gradient(eg_tensor *x) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_custom_gradient(square_forward, square_backward, NULL, &x, 1);
    return is_near(y, 9) && is_near(eg_tape_gradient(tape, y, x), 6);
}
static bool of_op_run(eg_tensor *x) {
    static int op = -1;
    eg_op_definition definition = {"callbacks_square", 1, 1, square_forward_multi, square_backward, NULL};
    if (op < 0) op = eg_op_register(&definition);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *y = NULL;
    return eg_op_run(op, &x, 1, &y, 1) && is_near(y, 9) && is_near(eg_tape_gradient(tape, y, x), 6) &&
           is_near(eg_tape_gradient(tape, y, x), 6);
}
static eg_tensor *of_a_variable(eg_tensor *const *in, void *user) {
    eg_tensor *v = eg_variable(in[0], "v"), *y = v ? eg_square(v) : NULL;
    (void)user;
    misbehave();
    eg_release(v);
    return y;
}
static bool of_functions(eg_tensor *x) {
    eg_tensor *g, *h, *one = eg_scalar(1);
    eg_gradient_pair pair;
    return eg_gradients_function(square, NULL, &x, 1, &g) && is_near(g, 6) &&
           is_near(eg_nth_gradient(square, NULL, x, 2), 2) && is_near(eg_jvp(square, NULL, &x, &one, 1), 6) &&
           eg_hvp(square, NULL, &x, &one, 1, &h) && is_near(h, 2) && is_near(eg_hessian(square, NULL, x), 2) &&
           eg_implicit_gradients(of_a_variable, NULL, &x, &pair, 1) == 1 && eg_check_gradient(square, NULL, &x, 1);
}
static bool of_optimizer(eg_tensor *x) {
    (void)x;
    eg_tensor *w = eg_variable(eg_scalar(3), "w");
    eg_optimizer *sgd = eg_sgd(.schedule = wicked_schedule);
    bool ok = fabs(eg_schedule_value(&wicked_schedule, 3) - .5) < 1e-9 &&
              fabs(eg_optimizer_learning_rate(sgd) - .5) < 1e-9 && is_near(eg_minimize(sgd, square, NULL, &w), 9) &&
              is_near(w, 0);
    eg_optimizer_release(sgd);
    eg_release(w);
    return ok;
}
static bool of_layers(eg_tensor *x) {
    eg_tensor *many[1];
    eg_layer *lambda = eg_layer_lambda("lambda", square, NULL), *custom = eg_layer_custom("custom", square, NULL),
             *multi = eg_layer_custom_multi("multi", 1, 1, square_multi, NULL);
    eg_layer_on_release(custom, release_user);
    eg_layer *model = eg_sequential(lambda, custom, multi);
    bool ok = is_near(eg_call(model, x), 6561) && eg_call_multi(model, &x, 1, many, 1) && is_near(many[0], 6561);
    eg_layer_release(model);
    eg_layer_register("callbacks_square", make_square, NULL);
    char text[400];
    eg_layer *described = eg_layer_lambda("callbacks_square", square, NULL);
    eg_layer_config(described, text, sizeof text);
    eg_layer_release(described);
    model = eg_layer_from_config(text);
    ok = is_near(eg_call(model, x), 9) && ok;
    eg_layer_release(model);
    return ok;
}
static bool of_losses(eg_tensor *x) {
    eg_tensor *zero = eg_zeros_like(x);
    eg_metric *metric = eg_metric_of(squares);
    bool ok = is_near(eg_loss_mean(squares, zero, x), 9) && is_near(eg_loss_per_example(squares, zero, x), 9) &&
              eg_metric_update(metric, zero, x) && fabs(eg_metric_result(metric) - 9) < 1e-5;
    eg_metric_release(metric);
    return ok;
}
static bool of_datasets(eg_tensor *x) {
    (void)x;
    eg_dataset *d = eg_dataset_from_generator(three, NULL, 1, NULL);
    // 0, 1, 16: the first goes
    d = eg_dataset_filter(eg_dataset_map_one(eg_dataset_map(d, square_multi, NULL), square, NULL), square, NULL);
    return reads_all(d, 2, 17);
}
static bool of_interleave(eg_tensor *x) {
    (void)x;
    return reads_all(eg_dataset_interleave(eg_dataset_range(0, 2, 1), ranges, NULL), 4, 2);
}
static bool of_threads(eg_tensor *x) {
    (void)x;
    eg_dataset *d = eg_dataset_map_one(eg_dataset_from_generator(three, NULL, 1, NULL), square, NULL, .threads = 2);
    return reads_all(eg_dataset_prefetch(d, 2), 3, 5);
}
static bool of_feed(eg_tensor *x) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator *it = eg_iterator_initializable(ranges, NULL);
    bool ok = eg_iterator_feed(it, &x) && eg_iterator_next(it, out) == EG_NEXT && is_near(out[0], 0);
    eg_iterator_release(it);
    return ok;
}
static bool of_fit(eg_tensor *x) {
    (void)x;
    eg_tensor *xs = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1)), *ys = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 1));
    eg_callback_functions all = {fit_event, fit_event, fit_event, fit_event, fit_event, fit_event, release_user, NULL};
    eg_layer *model = eg_sequential(eg_layer_dense(1));
    eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(xs, ys), 2);
    bool ok = eg_compile(model, eg_sgd(), squares) &&
              eg_fit(model, data, .epochs = 2, .quiet = true,
                     .callbacks = EG_CALLBACKS(eg_callback_new(all), eg_callback_learning_rate(.rate = fit_rate)),
                     .validation = data);
    ok = ok && eg_error() == EG_OK && eg_evaluate(model, data, .quiet = true) >= 0;
    eg_dataset_release(data);
    eg_layer_release(model);
    return ok;
}
static bool of_deleters(eg_tensor *x) {
    (void)x;
    static float data[4] = {1, 2, 3, 4};
    eg_tensor *lent = eg_retain(eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), data, delete_data, NULL));
    eg_scope inner = eg_scope_begin();
    bool ok = eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), data, delete_data, NULL) &&
              eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), data, delete_data, NULL);
    eg_tensor *after = eg_keep(eg_scalar(5));
    eg_scope_end(inner);                         // two of them
    eg_release(lent);
    return ok && is_near(after, 5);
}
static void delete_dlpack(eg_dlpack *self) { (void)self; misbehave(); }
static bool of_dlpack(eg_tensor *x) {
    static float data[2] = {1, 2};
    static int64_t shape[1] = {2};
    static eg_dlpack lent;
    (void)x;
    memset(&lent, 0, sizeof lent);
    lent.version.major = 1;
    lent.deleter = delete_dlpack;
    lent.tensor.data = data;
    lent.tensor.device.type = 1;
    lent.tensor.ndim = 1;
    lent.tensor.dtype.code = 2;
    lent.tensor.dtype.bits = 32;
    lent.tensor.dtype.lanes = 1;
    lent.tensor.shape = shape;
    eg_scope inner = eg_scope_begin();
    eg_tensor *y = eg_from_dlpack(&lent);
    bool ok = is_near(eg_reduce_sum(y), 3);
    eg_scope_end(inner);
    return ok;
}
static bool of_printer(eg_tensor *x) {
    eg_set_printer(print_nothing, NULL);
    eg_print(x);
    eg_set_printer(NULL, NULL);
    return true;
}
static bool of_bodies(eg_tensor *x) {
    eg_tensor *y = NULL;
    eg_function *f = eg_function_new(square_multi, NULL);
    bool ok = true;
    for (int i = 0; i < 3; i++) ok = eg_function_call(f, &x, 1, &y, 1) && is_near(y, 9) && ok;
    eg_function_release(f);
    return ok;
}
static bool of_saves(eg_tensor *x) {
    const mischief in_save = now;
    eg_tensor *y = NULL;
    eg_function *f = eg_function_new(square_multi, NULL);
    now = NOTHING;
    bool ok = eg_function_call(f, &x, 1, &y, 1);
    calls = 0;
    now = in_save;
    ok = eg_function_save(f, test_temp("callbacks.npz")) && ok;
    eg_function_release(f);
    return ok && is_near(y, 9);
}
static bool calls_the_host(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_host_call(square_multi, user, in, 1, out, 1, .differentiable = true);
}
static bool of_host_calls(eg_tensor *x) {
    eg_tensor *y = NULL;
    bool ok = eg_host_call(square_multi, NULL, &x, 1, &y, 1) && is_near(y, 9);
    eg_function *f = eg_function_new(calls_the_host, NULL);
    for (int i = 0; i < 3; i++) {                // the replays call it, too, for the gradient
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        ok = eg_function_call(f, &x, 1, &y, 1) && is_near(y, 9) && is_near(eg_tape_gradient(tape, y, x), 6) && ok;
    }
    eg_function_release(f);
    return ok;
}
static bool below_50(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    misbehave();
    return (out[0] = eg_less(in[0], 50)) != NULL;
}
static bool of_control_flow(eg_tensor *x) {
    eg_tensor *y = NULL, *state = x;
    bool ok = eg_cond(eg_greater(x, 0), square_multi, square_multi, NULL, &x, 1, &y, 1) && is_near(y, 9);
    ok = eg_while(below_50, square_multi, NULL, &state, &y, 1) && is_near(y, 81) && ok;
    return eg_scan(square_multi, NULL, &x, &y, 1, NULL, 0, NULL, 0, .length = 2) && is_near(y, 81) && ok;
}
typedef struct kind { const char *name; bool (*run)(eg_tensor *x); bool threads; } kind;
static const kind kinds[] = {{"custom gradients", of_custom_gradient, false}, {"ops", of_op_run, false},
                             {"functions", of_functions, false}, {"optimizers", of_optimizer, false},
                             {"layers", of_layers, false}, {"losses", of_losses, false},
                             {"datasets", of_datasets, false}, {"interleave", of_interleave, false},
                             {"threads", of_threads, true}, {"feed", of_feed, false}, {"fit", of_fit, false},
                             {"deleters", of_deleters, false}, {"DLPack", of_dlpack, false},
                             {"printer", of_printer, false}, {"bodies", of_bodies, false}, {"saves", of_saves, false},
                             {"host calls", of_host_calls, false}, {"control flow", of_control_flow, false}};

// Where a function that misbehaves is called: a scope, a pause and tensors of its caller, which are the same
// afterwards.
typedef struct surroundings { eg_scope scope; eg_tensor *x, *witness; int64_t alive; } surroundings;
static surroundings surround(void) {
    surroundings around;
    around.scope = eg_scope_begin();
    around.x = eg_scalar(3);
    around.witness = eg_scalar(7);
    around.alive = eg_memory().live_tensors;
    eg_recording_pause();
    callers = eg_scope_begin();
    return around;
}
static void check_surroundings(const surroundings *around) {
    eg_error_clear();
    eg_scope_end(callers);
    eg_recording_unpause();
    CHECK_INT(eg_memory().live_tensors, around->alive);
    CHECK_TENSOR(around->witness, 0, 7);
}
TEST(functions_that_misbehave_with_scopes_are_contained) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (mischief m = NOTHING; m < MISCHIEFS; m = (mischief)(m + 1)) {
#ifdef EAGER_NO_THREADS
            if (kinds[k].threads) continue;
#endif
            const surroundings around = surround();
            calls = 0;
            now = m;
            bool ok = kinds[k].run(around.x), refused = eg_error() != EG_OK;
            now = NOTHING;
            int before = test_fails;
            // On a thread of its own, the scope and the pause are another thread's.
            if (said[m] && !kinds[k].threads) CHECK_CONTAINS(eg_error_message(), said[m]);
            if (m == FORGETS_PAUSES) ok = true, eg_error_clear();  // what a function does not record has no gradient
            else if (refused && !said[m]) CHECK_STR(eg_error_message(), "");
            if (!refused) CHECK(ok);
            CHECK(calls > 0);
            check_surroundings(&around);
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, around.x);
            CHECK_TENSOR(eg_tape_gradient(tape, eg_square(around.x), around.x), 0, 6);
            eg_scope_end(around.scope);
            if (test_fails > before) printf("    %s, mischief %d\n", kinds[k].name, (int)m);
        }
}
TEST(functions_that_misbehave_each_in_its_own_way) {
    for (int round = 0; round < 2000 / test_share; round++) {
        const kind *k = &kinds[(size_t)round % (sizeof kinds / sizeof *kinds)];
#ifdef EAGER_NO_THREADS
        if (k->threads) continue;
#endif
        const surroundings around = surround();
        mixed = (unsigned)round * 7919u + 1u;
        k->run(around.x);
        mixed = 0;
        check_surroundings(&around);
        eg_scope_end(around.scope);
        if (test_fails) { printf("    %s, round %d\n", k->name, round); break; }
    }
}

// ---- references: what a function runs on is held while it runs

static eg_layer *held_model;
static eg_dataset *held_data;
static eg_optimizer *held_optimizer;
static eg_metric *held_metric;
static eg_tensor *held_tensor;
static eg_iterator *held_iterator;
// Gives back one reference more than it has: the one that the running call holds is refused.
static void *once_more;
static void (*once_more_release)(void);
static void release_layer(void) { eg_layer_release((eg_layer *)once_more); }
static void release_data(void) { eg_dataset_release((eg_dataset *)once_more); }
static void release_optimizer(void) { eg_optimizer_release((eg_optimizer *)once_more); }
static void release_metric(void) { eg_metric_release((eg_metric *)once_more); }
static void release_iterator(void) { eg_iterator_release((eg_iterator *)once_more); }
static void release_callback(void) { eg_callback_release((eg_callback *)once_more); }
static void release_too_often(void) {
    if (once_more) { once_more_release(); once_more_release(); }
    once_more = NULL;
}
// Each lets go of its reference once, and of once_more, where a test has set it, too often.
static void let_go(void) {
    eg_layer_release(held_model);
    eg_dataset_release(held_data);
    eg_optimizer_release(held_optimizer);
    eg_metric_release(held_metric);
    eg_release(held_tensor);
    eg_iterator_release(held_iterator);
    held_model = NULL;
    held_data = NULL;
    held_optimizer = NULL;
    held_metric = NULL;
    held_tensor = NULL;
    held_iterator = NULL;
    release_too_often();
}
static eg_tensor *square_and_let_go(eg_tensor *const *in, void *user) {
    (void)user;
    let_go();
    return eg_square(in[0]);
}
static eg_tensor *squares_and_let_go(eg_tensor *labels, eg_tensor *predictions) {
    let_go();
    return eg_square(eg_sub(labels, predictions));
}
static bool let_go_of_fit(eg_fit_state *state, void *user) {
    (void)user;
    if (state->epoch == 0) let_go();
    return true;
}
static eg_tensor *rate_and_let_go(eg_tensor *step, const eg_schedule *schedule) {
    (void)step;
    (void)schedule;
    let_go();
    return eg_scalar_of(EG_FLOAT64, .5);
}
static eg_tensor *forward_and_let_go(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    eg_tensor *y = eg_square(in[0]);
    let_go();
    return y;
}
static void backward_and_let_go(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    let_go();
    dx[0] = eg_mul(c->upstream[0], eg_mul(2, c->saved[0]));
}
static eg_layer *one_dense(void) { return eg_sequential(eg_layer_dense(1)); }
static eg_dataset *few_batches(void) {
    return eg_dataset_batch(eg_dataset_from_slices(eg_ones(EG_FLOAT32, EG_SHAPE(4, 1)),
                                                   eg_zeros(EG_FLOAT32, EG_SHAPE(4, 1))), 2);
}

TEST(a_layer_may_release_its_model) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1));
    for (int way = 0; way < 5; way++) {
        eg_layer *model = held_model = eg_sequential(eg_layer_lambda("let_go", square_and_let_go, NULL),
                                                     eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES));
        eg_dataset *data = few_batches();
        REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
        if (way == 0) CHECK_TENSOR(eg_call(model, x), 0, 1, 1);
        else if (way == 1) CHECK_NEAR(eg_train_on_batch(model, x, y), 1, 0);
        else if (way == 2) CHECK_NEAR(eg_evaluate(model, data, .quiet = true), 1, 0);
        else if (way == 3) CHECK_TENSOR(eg_predict(model, x), 0, 1, 1);
        else CHECK_ERROR(eg_fit(model, data, .quiet = true), EG_ERROR_STATE,
                         "eg_fit: a function that ran in it released the model");
        CHECK(held_model == NULL);
        eg_dataset_release(data);
    }
}
static eg_tensor *compiles(eg_tensor *const *in, void *user) {
    (void)user;
    eg_compile(held_model, eg_sgd(), eg_mean_squared_error);
    return eg_identity(in[0]);
}
TEST(a_dataset_cannot_compile_the_model_that_is_evaluated_on_it) {
    eg_layer *model = held_model = one_dense();
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1));
    eg_dataset *data = eg_dataset_zip(eg_dataset_map_one(eg_dataset_batch(eg_dataset_from_slices(x), 2), compiles,
                                                         NULL), eg_dataset_batch(eg_dataset_from_slices(x), 2));
    REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK_ERROR(eg_evaluate(model, data, .quiet = true), EG_ERROR_STATE,
                "eg_compile: the model is being evaluated or trained");
    CHECK_ERROR(eg_fit(model, data, .quiet = true), EG_ERROR_STATE, "eg_compile: the model is being fitted");
    eg_dataset_release(data);
    eg_layer_release(model);
    held_model = NULL;
}
TEST(a_callback_may_release_model_and_dataset) {
    eg_callback_functions functions = {NULL, NULL, NULL, let_go_of_fit, NULL, NULL, NULL, NULL};
    eg_layer *model = one_dense();
    eg_dataset *data = held_data = few_batches();
    REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    const eg_history *h = eg_fit(model, data, .epochs = 3, .quiet = true, .validation = data,
                                 .callbacks = EG_CALLBACKS(eg_callback_new(functions)));
    CHECK_INT(eg_history_epochs(h), 3);
    held_model = model;
    data = few_batches();
    CHECK_ERROR(eg_fit(model, data, .epochs = 3, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_new(functions))),
                EG_ERROR_STATE, "released the model");
    eg_dataset_release(data);
}
TEST(a_loss_and_a_metric_may_release_the_model) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1));
    eg_layer *model = held_model = one_dense();
    REQUIRE(eg_compile(model, eg_sgd(), squares_and_let_go));
    CHECK(eg_train_on_batch(model, x, y) >= 0);
    model = held_model = one_dense();
    REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error, eg_metric_of(squares_and_let_go)));
    CHECK(eg_test_on_batch(model, x, y) >= 0);
    eg_metric *metric = held_metric = eg_metric_of(squares_and_let_go);
    CHECK(eg_metric_update(metric, y, x));
    CHECK(held_metric == NULL);
}
static bool fit_too_often(eg_fit_state *state, void *user) {
    if (user) once_more = eg_iterator_retain(state->iterator);
    release_too_often();
    return true;
}
static void expect_too_often(void *object, void (*release)(void)) {
    once_more = object;
    once_more_release = release;
}
TEST(a_layers_function_cannot_release_it_too_often) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1));
    for (int way = 0; way < 5; way++) {
        eg_layer *model = eg_sequential(eg_layer_lambda("too_often", square_and_let_go, NULL),
                                        eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES));
        eg_dataset *data = few_batches();
        REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
        expect_too_often(model, release_layer);
        if (way == 0) (void)eg_call(model, x);
        else if (way == 1) eg_train_on_batch(model, x, y);
        else if (way == 2) eg_evaluate(model, data, .quiet = true);
        else if (way == 3) (void)eg_predict(model, x);
        else CHECK(!eg_fit(model, data, .quiet = true));
        CHECK_PENDING(EG_ERROR_STATE, "eg_layer_release: the only reference to layer sequential");
        CHECK(once_more == NULL);
        eg_dataset_release(data);
    }
}
TEST(a_callback_cannot_release_what_its_fit_runs_on_too_often) {
    void (*const releases[])(void) = {release_layer, release_data, release_iterator, release_callback};
    const char *const parts[] = {"eg_layer_release: the only reference to layer",
                                 "eg_dataset_release: the only reference to the dataset (batch)",
                                 "eg_iterator_release: the only reference to the iterator is that of the call",
                                 "eg_callback_release: the only reference to the callback is that of the fit"};
    for (int which = 0; which < 4; which++) {
        eg_layer *model = one_dense();
        eg_dataset *data = few_batches();
        REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
        eg_callback_functions functions = {NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                           which == 2 ? (void *)&once_more : NULL};
        functions.batch_end = fit_too_often;
        eg_callback *callback = eg_callback_new(functions);
        void *const objects[] = {model, data, NULL, eg_callback_retain(callback)};
        expect_too_often(objects[which], releases[which]);
        const eg_history *h = eg_fit(model, data, .quiet = true, .callbacks = EG_CALLBACKS(callback));
        CHECK((h == NULL) == (which == 0));
        CHECK_PENDING(EG_ERROR_STATE, parts[which]);
        if (which != 0) eg_layer_release(model);
        if (which != 1) eg_dataset_release(data);
        if (which != 3) eg_callback_release(callback);
    }
}
TEST(a_schedule_a_metric_and_a_dataset_cannot_release_theirs_too_often) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1));
    eg_tensor *g = eg_scalar(1), *w = eg_variable(eg_scalar(3), "w"), *out[EG_MAX_COMPONENTS];
    const eg_schedule schedule = {rate_and_let_go, {0}, NULL, NULL, 0};
    eg_optimizer *sgd = eg_sgd(.schedule = schedule);
    expect_too_often(sgd, release_optimizer);
    eg_apply_gradients(sgd, &g, &w, 1);
    CHECK_PENDING(EG_ERROR_STATE, "eg_optimizer_release: the only reference to the optimizer (sgd)");
    sgd = eg_sgd(.schedule = schedule);
    expect_too_often(sgd, release_optimizer);
    eg_optimizer_learning_rate(sgd);
    CHECK_PENDING(EG_ERROR_STATE, "eg_optimizer_release: the only reference to the optimizer (sgd)");
    eg_metric *metric = eg_metric_of(squares_and_let_go);
    expect_too_often(metric, release_metric);
    eg_metric_update(metric, y, x);
    CHECK_PENDING(EG_ERROR_STATE, "eg_metric_release: the only reference to metric");
    for (int way = 0; way < 2; way++) {
        eg_dataset *d = eg_dataset_map_one(eg_dataset_range(0, 2, 1), square_and_let_go, NULL);
        eg_iterator *it = eg_iterator_new(d);
        expect_too_often(way ? (void *)it : (void *)d, way ? release_iterator : release_data);
        CHECK_INT(eg_iterator_next(it, out), EG_FAILED);
        CHECK_PENDING(EG_ERROR_STATE, way ? "eg_iterator_release: the only reference to the iterator"
                                          : "eg_dataset_release: the only reference to the dataset (map)");
        if (way) eg_dataset_release(d);
        else eg_iterator_release(it);
    }
    eg_release(w);
}
TEST(a_schedule_may_release_its_optimizer_and_variables) {
    const eg_schedule schedule = {rate_and_let_go, {0}, NULL, NULL, 0};
    eg_tensor *g = eg_scalar(1), *w = held_tensor = eg_variable(eg_scalar(3), "w");
    eg_optimizer *sgd = held_optimizer = eg_sgd(.schedule = schedule);
    CHECK(eg_apply_gradients(sgd, &g, &w, 1));
    sgd = held_optimizer = eg_sgd(.schedule = schedule);
    CHECK_NEAR(eg_optimizer_learning_rate(sgd), .5, 0);
}
TEST(a_gradient_may_release_inputs_and_sources) {
    eg_tensor *x = held_tensor = eg_retain(eg_variable(eg_scalar(3), "x"));
    eg_release(x);                               // held_tensor's is the last one
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_custom_gradient(forward_and_let_go, square_backward, NULL, &x, 1);
    CHECK_TENSOR(y, 0, 9);
    CHECK(held_tensor == NULL);
    x = held_tensor = eg_variable(eg_scalar(3), "x");
    tape = eg_tape_begin_persistent();
    y = eg_custom_gradient(square_forward, backward_and_let_go, NULL, &x, 1);
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 6);
    CHECK(held_tensor == NULL);
    x = held_tensor = eg_variable(eg_scalar(3), "x");
    eg_tensor *g;
    CHECK(eg_gradients_function(square_and_let_go, NULL, &x, 1, &g));
    CHECK_TENSOR(g, 0, 6);
}

// ---- calls that come back to what is under way

static eg_tensor *again_x, *again_y;
static double again_loss;
static eg_tensor *squares_and_again(eg_tensor *labels, eg_tensor *predictions) {
    again_loss = eg_train_on_batch(held_model, again_x, again_y);
    return eg_square(eg_sub(labels, predictions));
}
static eg_tensor *squares_and_compile(eg_tensor *labels, eg_tensor *predictions) {
    eg_compile(held_model, eg_sgd(), eg_mean_squared_error);
    return eg_square(eg_sub(labels, predictions));
}
static bool fits_again(eg_fit_state *state, void *user) {
    (void)user;
    return eg_fit(state->model, state->data, .quiet = true) != NULL;
}
static bool scribbles(eg_fit_state *state, void *user) {
    (void)user;
    state->model = NULL;
    state->optimizer = NULL;
    state->data = NULL;
    state->history = NULL;
    state->iterator = NULL;
    state->epoch = state->batch = INT64_MAX;
    state->epochs = state->batches = INT64_MIN;
    return true;
}
static bool stops_last(eg_fit_state *state, void *user) { state->stop = state->epoch == *(int64_t *)user; return true; }
static bool releases_lent(eg_fit_state *state, void *user) {
    (void)user;
    eg_optimizer_release(state->optimizer);
    return true;
}
static eg_tensor *rate_and_apply(eg_tensor *step, const eg_schedule *schedule) {
    eg_tensor *g = eg_scalar(1);
    (void)step;
    (void)schedule;
    return eg_apply_gradients(held_optimizer, &g, &held_tensor, 1) ? eg_scalar_of(EG_FLOAT64, .5) : NULL;
}
TEST(a_step_in_a_step_is_refused) {
    again_x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1));
    again_y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1));
    eg_layer *model = held_model = one_dense();
    REQUIRE(eg_compile(model, eg_sgd(), squares_and_again));
    CHECK_ERROR(eg_train_on_batch(model, again_x, again_y), EG_ERROR_STATE,
                "eg_train_on_batch: a step of this model is under way");
    CHECK(isnan(again_loss));
    REQUIRE(eg_compile(model, eg_sgd(), squares_and_compile));
    CHECK_ERROR(eg_test_on_batch(model, again_x, again_y), EG_ERROR_STATE,
                "eg_compile: the model is being evaluated or trained");
    REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    eg_dataset *data = few_batches();
    eg_callback_functions functions = {NULL, NULL, NULL, fits_again, NULL, NULL, NULL, NULL};
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_new(functions))),
                EG_ERROR_STATE, "eg_fit: the model is being fitted already");
    functions.batch_end = releases_lent;
    CHECK_ERROR(eg_fit(model, data, .quiet = true, .callbacks = EG_CALLBACKS(eg_callback_new(functions))),
                EG_ERROR_STATE, "eg_optimizer_release: the only reference to the optimizer (sgd)");
    eg_layer *layers[1];
    CHECK_INT(eg_layer_layers(model, layers, 1), 1);
    CHECK_ERROR(eg_layer_release(layers[0]), EG_ERROR_STATE,
                "eg_layer_release: the only reference to layer dense is that of the model it is part of");
    REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error, eg_metric_mean_absolute_error()));
    CHECK_ERROR(eg_metric_release(eg_model_metric(model, 0)), EG_ERROR_STATE,
                "eg_metric_release: the only reference to metric");
    eg_dataset *inner = eg_dataset_range(0, 4, 1), *outer = eg_dataset_batch(inner, 2);
    CHECK_ERROR(eg_dataset_release(inner), EG_ERROR_STATE,
                "eg_dataset_release: the only reference to the dataset (range) is that of the stage made on it");
    eg_dataset_release(outer);
    eg_layer_release(model);
    eg_dataset_release(data);
    held_model = NULL;
    held_optimizer = eg_sgd(.schedule = {rate_and_apply, {0}, NULL, NULL, 0});
    held_tensor = eg_variable(eg_scalar(3), "w");
    eg_tensor *g = eg_scalar(1);
    CHECK_ERROR(eg_apply_gradients(held_optimizer, &g, &held_tensor, 1), EG_ERROR_STATE,
                "eg_apply_gradients: this optimizer is applying gradients");
    CHECK_TENSOR(held_tensor, 0, 3);
    let_go();
}
TEST(a_callback_sees_a_fit_and_does_not_move_it) {
    int64_t last = INT64_MAX - 1;
    eg_callback_functions functions = {scribbles, scribbles, scribbles, scribbles, scribbles, NULL, NULL, NULL},
                          stops = {NULL, NULL, NULL, NULL, stops_last, NULL, NULL, &last};
    eg_layer *model = one_dense();
    eg_dataset *data = few_batches();
    REQUIRE(eg_compile(model, eg_sgd(), eg_mean_squared_error));
    CHECK_INT(eg_history_epochs(eg_fit(model, data, .epochs = 2, .quiet = true,
                                       .callbacks = EG_CALLBACKS(eg_callback_new(functions)))), 2);
    // The last epochs there are.
    CHECK_INT(eg_history_epochs(eg_fit(model, data, .initial_epoch = INT64_MAX - 2,
                                       .epochs = INT64_MAX, .quiet = true, .validation = data, .validation_every = 2,
                                       .callbacks = EG_CALLBACKS(eg_callback_new(functions), eg_callback_new(stops),
                                                                 eg_callback_early_stopping(.patience = 5),
                                                                 eg_callback_plateau(.patience = 1)))), 2);
    CHECK_INT(eg_history_epochs(eg_fit(model, data, .initial_epoch = INT64_MAX, .epochs = INT64_MAX, .quiet = true)),
              0);
    eg_dataset_release(data);
    eg_layer_release(model);
}

// ---- datasets

typedef enum attempt { NEXT, SET, RESTORE, RELEASE, ATTEMPTS } attempt;
static attempt tries;
static eg_tensor *start;
static eg_tensor *reads_itself(eg_tensor *const *in, void *user) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator *it = *(eg_iterator **)user;
    if (tries == NEXT && eg_iterator_next(it, out) != EG_NEXT) return NULL;
    if (tries == SET && !eg_iterator_set(it, held_data)) return NULL;
    if (tries == RESTORE && !eg_iterator_restore(it, start)) return NULL;
    if (tries == RELEASE) eg_iterator_release(it);
    *(eg_iterator **)user = NULL;
    return eg_identity(in[0]);
}
TEST(a_datasets_function_cannot_use_its_iterator) {
    static eg_iterator *it;
    for (int threads = 0; threads < 3; threads++)
        for (tries = NEXT; tries < ATTEMPTS; tries = (attempt)(tries + 1)) {
#ifdef EAGER_NO_THREADS
            if (threads) continue;
#endif
            eg_tensor *out[EG_MAX_COMPONENTS];
            eg_dataset *d = eg_dataset_map(eg_dataset_range(0, 1, 1), reads_itself, &it,
                                           .threads = threads == 1 ? 2 : 0);
            if (threads == 2) d = eg_dataset_prefetch(d, 1);
            held_data = eg_dataset_range(0, 1, 1);
            eg_iterator *mine = it = eg_iterator_new(d);
            start = eg_iterator_position(mine);
            eg_dataset_release(d);
            eg_status status = eg_iterator_next(mine, out);
            if (tries == RELEASE) {  // the reference that the function gave back was the last one but the call's
                CHECK_INT(status, EG_NEXT);
                CHECK_TENSOR(out[0], 0, 0);
            } else {
                CHECK_INT(status, EG_FAILED);
                CHECK_PENDING(EG_ERROR_STATE, "the iterator is in use: neither a function of its own dataset nor "
                                              "another thread can use it meanwhile");
                eg_iterator_release(mine);
            }
            eg_dataset_release(held_data);
            held_data = NULL;
        }
}
#ifndef EAGER_NO_THREADS
// Ahead of whoever asks, where no call holds the iterator.
static int asked, given_back;
static eg_tensor *releases_ahead(eg_tensor *const *in, void *user) {
    if (eg_item_int(in[0]) == 1) {
        while (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {}
        eg_iterator_release((eg_iterator *)*(void **)user);
        __atomic_store_n(&given_back, 1, __ATOMIC_RELEASE);
    }
    return eg_identity(in[0]);
}
TEST(a_thread_that_reads_for_an_iterator_cannot_release_it) {
    static void *it;
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_dataset *d = eg_dataset_prefetch(eg_dataset_map(eg_dataset_range(0, 3, 1), releases_ahead, &it), 2);
    eg_iterator *mine = eg_iterator_new(d);
    it = mine;
    asked = given_back = 0;
    CHECK_INT(eg_iterator_next(mine, out), EG_NEXT);
    __atomic_store_n(&asked, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&given_back, __ATOMIC_ACQUIRE)) {}
    CHECK_ERROR(eg_iterator_next(mine, out), EG_ERROR_STATE, "cannot release its last reference");
    eg_iterator_release(mine);
    eg_dataset_release(d);
}
#endif

// ---- deleters, handlers, ends

static float lent_memory[1];
static int deletions;
static void delete_itself(void *data, void *user) { (void)data; deletions++; eg_release(*(eg_tensor **)user); }
TEST(a_deleter_may_release_its_tensor) {
    static eg_tensor *x;
    eg_scope scope = eg_scope_begin();
    deletions = 0;
    x = eg_wrap_data(EG_FLOAT32, EG_SCALAR, lent_memory, delete_itself, &x);
    if (test_on_host) eg_scope_end(scope);       // a device copies, and gives back at once
    CHECK_INT(deletions, 1);
#ifdef EAGER_DEBUG
    CHECK_PENDING(EG_ERROR_STATE,
                  "eg_release: a tensor made by eg_wrap_data was used after its last reference was gone");
#endif
}
static void handle_badly(eg_error_code code, const char *message, void *user) {
    (void)message;
    CHECK_INT(code, EG_ERROR_MATH);
    ++*(int *)user;
    misbehave();
}
TEST(a_handler_that_misbehaves_is_contained) {
    for (mischief m = NOTHING; m < MISCHIEFS; m = (mischief)(m + 1)) {
        int handled = 0;
        eg_recording_pause();
        callers = eg_scope_begin();
        eg_tensor *witness = eg_scalar(7);
        eg_set_error_handler(handle_badly, &handled);
        now = m;
        eg_raise(EG_ERROR_MATH, "eg_test: %d", 1);
        now = NOTHING;
        eg_set_error_handler(NULL, NULL);
        CHECK_PENDING(EG_ERROR_MATH, "eg_test: 1");
        CHECK_INT(handled, 1);                   // of what it raises itself it hears nothing
        CHECK_TENSOR(witness, 0, 7);
        eg_scope_end(callers);
        eg_recording_unpause();
    }
}
#ifdef EAGER_DEBUG
static eg_tensor *dead_square(eg_tensor *const *in, void *user) { EG_SCOPE; (void)user; return eg_square(in[0]); }
static eg_tensor *dead_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c;
    return dead_square(in, user);
}
static void dead_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    dx[0] = dead_square(c->upstream, user);
}
static eg_tensor *dead_loss(eg_tensor *labels, eg_tensor *predictions) { EG_SCOPE; return eg_sub(labels, predictions); }
static eg_tensor *dead_rate(eg_tensor *step, const eg_schedule *schedule) {
    EG_SCOPE;
    (void)schedule;
    return eg_mul(step, 2);
}
TEST(a_result_whose_scope_has_ended_is_told) {
    const char *part = "whose scope has ended; return eg_keep(y)";
    const eg_schedule schedule = {dead_rate, {0}, NULL, NULL, 0};
    eg_tensor *x = eg_scalar(3), *g, *out[EG_MAX_COMPONENTS];
    eg_layer *lambda = eg_layer_lambda("lambda", dead_square, NULL),
             *custom = eg_layer_custom("custom", dead_square, NULL);
    CHECK_ERROR(eg_custom_gradient(dead_forward, dead_backward, NULL, &x, 1), EG_ERROR_STATE, part);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_custom_gradient(square_forward, dead_backward, NULL, &x, 1);
    CHECK_ERROR(eg_tape_gradient(tape, y, x), EG_ERROR_STATE, "was used after its scope ended");
    CHECK_ERROR(eg_gradients_function(dead_square, NULL, &x, 1, &g), EG_ERROR_STATE, part);
    CHECK_ERROR(eg_nth_gradient(dead_square, NULL, x, 0), EG_ERROR_STATE, part);
    CHECK_ERROR(eg_call(lambda, x), EG_ERROR_STATE, part);
    CHECK_ERROR(eg_call(custom, x), EG_ERROR_STATE, part);
    CHECK_ERROR(eg_loss_mean(dead_loss, x, x), EG_ERROR_STATE, part);
    CHECK_ERROR(eg_loss_per_example(dead_loss, x, x), EG_ERROR_STATE, part);
    CHECK_ERROR(eg_schedule_value(&schedule, 1), EG_ERROR_STATE, part);
    eg_dataset *mapped = eg_dataset_map_one(eg_dataset_range(0, 3, 1), dead_square, NULL),
               *filtered = eg_dataset_filter(eg_dataset_range(0, 3, 1), dead_square, NULL);
    eg_iterator *first = eg_iterator_new(mapped), *second = eg_iterator_new(filtered);
    CHECK_ERROR(eg_iterator_next(first, out), EG_ERROR_STATE, part);
    CHECK_ERROR(eg_iterator_next(second, out), EG_ERROR_STATE, part);
    eg_iterator_release(first);
    eg_iterator_release(second);
    eg_dataset_release(mapped);
    eg_dataset_release(filtered);
    eg_layer_release(lambda);
    eg_layer_release(custom);
}
TEST(a_tape_whose_scope_has_ended_is_told) {
    eg_tensor *x = eg_scalar(3);
    eg_scope scope = eg_scope_begin();
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_keep(eg_square(x));
    eg_scope_end(scope);
    CHECK_ERROR(eg_tape_gradient(tape, y, x), EG_ERROR_STATE,
                "eg_tape_gradient: the tape was used after its scope ended");
    CHECK_ERROR(eg_tape_watch(tape, x), EG_ERROR_STATE, "eg_tape_watch: the tape was used after its scope ended");
    CHECK_ERROR(eg_tape_reset(tape), EG_ERROR_STATE, "eg_tape_reset: the tape was used after its scope ended");
    CHECK_ERROR(eg_tape_print(tape), EG_ERROR_STATE, "eg_tape_print: the tape was used after its scope ended");
}
#endif
TEST(a_scope_that_nobody_began_ends_nothing) {
    eg_scope real = eg_scope_begin();
    eg_tensor *x = eg_scalar(3);
    const eg_scope forged[] = {{INT64_MAX, 1}, {INT64_MAX - 1, 1}, {INT64_MIN, 1}, {-1, 0}, {0, 0},
                               {real.position, real.serial + 1}, {real.position + 1, real.serial},
                               {real.position - 1, real.serial}, {real.position, UINT64_MAX}, {1000000, real.serial}};
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) eg_scope_end(forged[i]);
    CHECK_TENSOR(x, 0, 3);
    eg_scope_end(real);
}
