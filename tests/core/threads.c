// Threads: each has scopes, tapes, errors, a generator and memory of its own; tensors go between them.
#include "test.h"

#ifdef EAGER_NO_THREADS
TEST(threads) { SKIP("compiled with EAGER_NO_THREADS"); }
#else
#include <pthread.h>

enum { THREADS = 4 };

static void run_threads(void *(*body)(void *), void *arguments, size_t size, int n) {
    pthread_t thread[16];
    for (int i = 0; i < n; i++)
        if (pthread_create(&thread[i], NULL, body, (char *)arguments + (size_t)i * size)) {
            printf("no thread %d\n", i);
            exit(1);
        }
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
}
// A thread that starts to wait at the same time as the others.
typedef struct gate { pthread_mutex_t mutex; pthread_cond_t all; int waiting, size, turn; } gate;
#define GATE(n) {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, n, 0}
static void gate_pass(gate *g) {
    pthread_mutex_lock(&g->mutex);
    int turn = g->turn;
    if (++g->waiting == g->size) { g->waiting = 0; g->turn++; pthread_cond_broadcast(&g->all); }
    else while (g->turn == turn) pthread_cond_wait(&g->all, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

// ---- models

typedef struct learner { int seed; double loss; float weights[24]; bool ok; } learner;
static void *train(void *argument) {
    learner *m = (learner *)argument;
    eg_set_device(test_device());
    eg_scope scope = eg_scope_begin();
    eg_seed((uint64_t)m->seed);
    eg_tensor *x = eg_random_normal(EG_SHAPE(16, 3)), *y = eg_random_uniform(EG_SHAPE(16, 4));
    eg_tensor *vars[2], *grads[2];
    vars[0] = eg_variable(eg_random_normal(EG_SHAPE(3, 4)), "w");
    vars[1] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(4)), "b");
    eg_optimizer *adam = eg_adam(.learning_rate = 0.05);
    m->ok = true;
    for (int step = 0; step < 400 / test_share; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *kept = eg_cast(eg_random_bernoulli(EG_SHAPE(16, 3), .probability = 0.9), EG_FLOAT32);
        eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(eg_tanh(eg_add(eg_matmul(eg_mul(x, kept), vars[0]), vars[1])),
                                                          y)));
        m->ok = eg_tape_gradients(tape, loss, vars, 2, grads) && eg_apply_gradients(adam, grads, vars, 2) && m->ok;
        m->loss = eg_item(loss);
    }
    m->ok = m->ok && eg_error() == EG_OK;
    memset(m->weights, 0, sizeof m->weights);
    if (eg_data(vars[0])) memcpy(m->weights, eg_data(vars[0]), 12 * sizeof(float));
    if (eg_data(vars[1])) memcpy(m->weights + 12, eg_data(vars[1]), 4 * sizeof(float));
    eg_optimizer_release(adam);
    eg_release(vars[0]);
    eg_release(vars[1]);
    eg_scope_end(scope);
    return NULL;
}
TEST(models_train_at_once_with_the_bits_of_alone) {
    learner alone[THREADS], together[THREADS];
    memset(alone, 0, sizeof alone);
    for (int i = 0; i < THREADS; i++) {
        alone[i].seed = 100 + i;
        train(&alone[i]);
        CHECK(alone[i].ok);
    }
    CHECK(alone[0].loss != alone[1].loss);
    for (int round = 0; round < 3; round++) {
        memset(together, 0, sizeof together);
        for (int i = 0; i < THREADS; i++) together[i].seed = 100 + i;
        run_threads(train, together, sizeof *together, THREADS);
        for (int i = 0; i < THREADS; i++) {
            CHECK(together[i].ok);
            CHECK(memcmp(alone[i].weights, together[i].weights, sizeof alone[i].weights) == 0);
            CHECK(alone[i].loss == together[i].loss);
        }
    }
}

// ---- tensors that are shared

typedef struct shared { eg_tensor *x[8], *v; double sum; bool ok; } shared;
static void *use_shared(void *argument) {
    shared *s = (shared *)argument;
    eg_set_device(test_device());
    s->ok = true;
    s->sum = 0;
    for (int i = 0; i < 400 / test_share; i++) {
        EG_SCOPE;
        eg_tensor *x = s->x[i % 8], *view = eg_transpose(x);
        eg_retain(x);
        eg_keep(x);
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tensor *y = eg_reduce_sum(eg_mul(eg_matmul(x, view), s->v)), *g = eg_tape_gradient(tape, y, x);
        const float *p = (const float *)eg_data(view);       // makes a copy that the threads race for
        s->ok = s->ok && g && p && p[1] == ((const float *)eg_data(x))[2];
        s->sum += eg_item(y) + eg_item(eg_reduce_sum(g));
        eg_release(x);
    }
    s->ok = s->ok && eg_error() == EG_OK;
    return NULL;
}
TEST(tensors_are_shared) {
    shared s[THREADS];
    eg_tensor *x[8];
    for (int i = 0; i < 8; i++) x[i] = eg_add(eg_constant(EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6), i);
    eg_tensor *v = eg_variable(eg_scalar(2), "v");
    for (int i = 0; i < THREADS; i++) { memcpy(s[i].x, x, sizeof x); s[i].v = v; }
    run_threads(use_shared, s, sizeof *s, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK(s[i].ok);
        CHECK_NEAR(s[i].sum, s[0].sum, 0);
    }
    CHECK_TENSOR(x[7], 0, 8, 9, 10, 11, 12, 13);
    eg_release(v);
}

// References come and go on all threads at once; the last one, wherever it is, frees.
typedef struct passing { eg_tensor **x; int n; } passing;
static void *let_go(void *argument) {
    passing *p = (passing *)argument;
    for (int i = 0; i < p->n; i++) eg_release(p->x[i]);
    return NULL;
}
TEST(the_last_reference_frees_on_any_thread) {
    enum { N = 500 };
    static eg_tensor *x[N];
    passing all[THREADS];
    int64_t before = eg_memory().live_tensors, bytes = eg_memory().live_bytes, warm = 0;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < N; i++) {
            EG_SCOPE;
            x[i] = eg_full(EG_FLOAT32, EG_SHAPE(1 + i % 50), i);
            for (int k = 0; k < THREADS; k++) eg_retain(x[i]);
        }
        for (int k = 0; k < THREADS; k++) { all[k].x = x; all[k].n = N; }
        run_threads(let_go, all, sizeof *all, THREADS);
        CHECK_INT(eg_memory().live_tensors, before);
#ifndef EAGER_DEBUG
        CHECK_INT(eg_memory().live_bytes, bytes);
        if (round == 1) warm = eg_memory().allocations;      // from then on their blocks have come home to this thread
        if (round > 1) CHECK_INT(eg_memory().allocations, warm);
#endif
    }
    (void)bytes, (void)warm;
}

static void *make_some(void *argument) {
    eg_tensor **out = (eg_tensor **)argument;
    eg_set_device(test_device());
    EG_SCOPE;
    for (int i = 0; i < 20; i++) eg_mul(eg_ones(EG_FLOAT32, EG_SHAPE(100)), i);
    *out = eg_retain(eg_full(EG_FLOAT32, EG_SHAPE(100), 7));
    return NULL;
}
TEST(dead_threads_memory_is_used_again) {
    eg_tensor *x[40];
    int64_t warm = 0;
    for (int i = 0; i < 40; i++) {
        run_threads(make_some, &x[i], sizeof *x, 1);
        // while the heap they came from is another thread's, or nobody's
        if (i % 2) { eg_release(x[i]); eg_release(x[i - 1]); }
        if (i == 3) warm = eg_memory().allocations;
    }
#ifndef EAGER_DEBUG
    CHECK(eg_memory().allocations <= warm + 4);
    CHECK(eg_memory().cached_bytes > 4000);
#endif
    (void)warm;
    eg_memory_trim();
    CHECK_INT(eg_memory().cached_bytes, 0);                  // a dead thread's too
}

// ---- each its own

typedef struct own { gate *gate; int number; bool ok; } own;
static void *be_apart(void *argument) {
    own *o = (own *)argument;
    eg_scope scope = eg_scope_begin();
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    o->ok = eg_error() == EG_OK && eg_error_count() == 0;
    gate_pass(o->gate);
    // Errors
    if (o->number % 2) eg_matmul(x, x);
    gate_pass(o->gate);
    o->ok = o->ok && eg_error() == (o->number % 2 ? EG_ERROR_SHAPE : EG_OK) && eg_error_count() == o->number % 2;
    eg_error_clear();
    // Tapes
    eg_tape *tape = o->number % 2 ? eg_tape_begin() : NULL;
    if (tape) eg_tape_watch(tape, x);
    gate_pass(o->gate);
    eg_tensor *y = eg_square(x);
    gate_pass(o->gate);
    o->ok = o->ok && (!tape || eg_item(eg_reduce_sum(eg_tape_gradient(tape, y, x))) == 12);
    // The NaN trap, recording, the generator
    o->ok = o->ok && !eg_trap_nonfinite(o->number == 0);
    if (o->number == 1) eg_recording_pause();
    eg_seed((uint64_t)o->number);
    gate_pass(o->gate);
    eg_tensor *r = eg_random_uniform(EG_SHAPE(5));
    o->ok = o->ok && eg_random_get_state().seed == (uint64_t)o->number && eg_random_get_state().counter == 2;
    eg_seed((uint64_t)o->number);
    o->ok = o->ok && eg_assert_equal(r, eg_random_uniform(EG_SHAPE(5)));
    eg_tensor *z = eg_log(eg_scalar(-1));
    eg_synchronize();
    o->ok = o->ok &&
            (o->number == 0 ? (!z || test_traps_later) && eg_error() == EG_ERROR_NONFINITE : z && eg_error() == EG_OK);
    eg_error_clear();
    gate_pass(o->gate);
    if (o->number != 2) eg_scope_end(scope);                 // what a thread leaves open ends with it
    return NULL;
}
TEST(scopes_tapes_errors_and_generators_are_the_threads_own) {
    gate g = GATE(THREADS);
    own o[THREADS];
    int64_t live = eg_memory().live_tensors;
    for (int i = 0; i < THREADS; i++) { o[i].gate = &g; o[i].number = i; o[i].ok = false; }
    run_threads(be_apart, o, sizeof *o, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK(o[i].ok);
    CHECK_INT(eg_memory().live_tensors, live);
    CHECK_INT(eg_error(), EG_OK);
}

static void *leave_everything_open(void *argument) {
    (void)argument;
    eg_scope_begin();
    eg_tape_begin_persistent();
    eg_scope_begin();
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(100)), "v");
    eg_tape_begin();
    eg_keep(eg_square(v));
    eg_release(v);
    eg_scalar(1);
    return NULL;
}
TEST(a_thread_that_ends_frees_what_its_scopes_own) {
    int64_t live = eg_memory().live_tensors, bytes = eg_memory().live_bytes;
    for (int i = 0; i < 3; i++) run_threads(leave_everything_open, &i, 0, 2);
    CHECK_INT(eg_memory().live_tensors, live);
    CHECK_INT(eg_memory().live_bytes, bytes);
}

typedef struct strange { eg_tape *tape; eg_tensor *x, *y; eg_error_code watch, gradient, stop; eg_tensor *g; } strange;
static void *use_anothers_tape(void *argument) {
    strange *s = (strange *)argument;
    eg_tape_watch(s->tape, s->x);
    s->watch = eg_error(), eg_error_clear();
    s->g = eg_tape_gradient(s->tape, s->y, s->x);
    s->gradient = eg_error(), eg_error_clear();
    eg_tape_stop(s->tape);
    s->stop = eg_error(), eg_error_clear();
    return NULL;
}
TEST(a_tape_is_its_threads_own) {
    strange s = {eg_tape_begin(), eg_scalar(3), NULL, EG_OK, EG_OK, EG_OK, NULL};
    eg_tape_watch(s.tape, s.x);
    s.y = eg_square(s.x);
    run_threads(use_anothers_tape, &s, sizeof s, 1);
    CHECK_INT(s.watch, EG_ERROR_TAPE);
    CHECK_INT(s.gradient, EG_ERROR_TAPE);
    CHECK_INT(s.stop, EG_ERROR_TAPE);
    CHECK(s.g == NULL);
    CHECK_TENSOR(eg_tape_gradient(s.tape, s.y, s.x), 0, 6);
}

static void *end_anothers_scope(void *argument) {
    eg_scope mine = eg_scope_begin();
    eg_tensor *x = eg_square(eg_scalar(3));
    eg_scope_end(*(eg_scope *)argument);                     // it has the place here that mine has
    ((eg_scope *)argument)->position = eg_item(x) == 9;
    eg_scope_end(mine);
    return NULL;
}
TEST(a_scope_is_its_threads_own) {
    static eg_scope first;
    first.position = 0;
    first.serial = 1;
    run_threads(end_anothers_scope, &first, sizeof first, 1);
    CHECK_INT(first.position, 1);
    CHECK_INT(eg_error(), EG_OK);
}

// The first thing a thread does is to read, or to free, or to ask.
static void *only_read(void *argument) {
    eg_tensor *x = *(eg_tensor **)argument;
    *(eg_tensor **)argument = eg_item(eg_index(x, 1)) == 2 ? x : NULL;
    return NULL;
}
static void *only_item(void *argument) {
    eg_tensor *x = *(eg_tensor **)argument;
    *(eg_tensor **)argument = eg_item(x) == 5 ? x : NULL;
    return NULL;
}
static void *only_ask(void *argument) {
    eg_memory_trim();
    eg_scope scope = {0, 1};
    eg_scope_end(scope);
    *(eg_tensor **)argument = eg_memory().tensors_made > 0 && eg_error() == EG_OK &&
                              eg_error_message()[0] == 0 ? *(eg_tensor **)argument : NULL;
    eg_shutdown();
    return NULL;
}
TEST(a_threads_first_call_may_be_any) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y = eg_scalar(5);
    run_threads(only_read, &x, sizeof x, 1);
    CHECK(x != NULL);
    run_threads(only_item, &y, sizeof y, 1);
    CHECK(y != NULL);
    run_threads(only_ask, &x, sizeof x, 1);
    CHECK(x != NULL);
}

// ---- what all threads have in common

static int heard;
static void listen(eg_error_code code, const char *message, void *user) {
    (void)message;
    if (code == EG_ERROR_SHAPE) __atomic_fetch_add((int *)user, 1, __ATOMIC_RELAXED);
}
static void *fail_often(void *argument) {
    (void)argument;
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    for (int i = 0; i < 50; i++) {
        eg_matmul(x, x);
        eg_error_clear();
        eg_memory();
        if (i % 10 == 0) eg_memory_reset_peak();
    }
    return NULL;
}
TEST(one_handler_hears_all_threads) {
    eg_set_error_handler(listen, &heard);
    run_threads(fail_often, &heard, 0, THREADS);
    eg_set_error_handler(NULL, NULL);
    CHECK_INT(heard, 50 * THREADS);
}

static void *make_and_trim(void *argument) {
    (void)argument;
    for (int i = 0; i < 60; i++) {
        EG_SCOPE;
        eg_mul(eg_ones(EG_FLOAT32, EG_SHAPE(i + 1, 10)), 2);
        if (i % 7 == 0) eg_memory_trim();
    }
    if (argument) eg_shutdown();                             // of this thread; the others are not disturbed
    return NULL;
}
static void *make_threads(void *argument) {
    char none;
    for (int i = 0; i < 8; i++) run_threads(make_and_trim, i % 2 ? &none : NULL, 0, 2);
    return argument;
}
TEST(heaps_change_hands_while_others_trim) {
    char none;
    int64_t live = eg_memory().live_tensors;
    run_threads(make_threads, &none, 0, THREADS);
    CHECK_INT(eg_memory().live_tensors, live);
    eg_memory_trim();
    CHECK_INT(eg_memory().cached_bytes, 0);
}

// ---- one model, many threads

// A custom layer that has a function of the user's and a layer inside.
typedef struct twice { eg_layer *inner; } twice;
static eg_tensor *call_twice(eg_tensor *const *in, void *user) {
    return eg_mul(eg_call(((twice *)user)->inner, in[0]), 2);
}
static eg_layer *make_twice(void *user) {
    twice *t = (twice *)calloc(1, sizeof *t);
    eg_layer *l = eg_layer_custom("twice", call_twice, t);
    (void)user;
    eg_layer_on_release(l, free);
    t->inner = eg_layer_track(l, "inner", eg_layer_dense(8, .activation = EG_TANH));
    return l;
}
static eg_layer *everything(void) {
    eg_layer_register("twice", make_twice, NULL);
    return eg_sequential(eg_layer_embedding(20, 6, .mask_zero = true),
                         eg_layer_bidirectional(eg_layer_lstm(5, .return_sequences = true)),
                         eg_layer_multi_head_attention(2, 3),
                         eg_layer_layer_normalization(), eg_layer_gru(7), eg_layer_batch_normalization(),
                         eg_layer_residual(eg_sequential(eg_layer_dense(7), eg_layer_dropout(0.5))), make_twice(NULL),
                         eg_layer_dense(3));
}
typedef struct infers { eg_layer *model; eg_tensor *x, *y; gate *gate; bool ok; } infers;
static void *infer(void *argument) {
    infers *a = (infers *)argument;
    eg_set_device(test_device());
    gate_pass(a->gate);
    a->ok = true;
    for (int i = 0; i < 20; i++) {
        EG_SCOPE;
        a->ok = a->ok && eg_assert_equal(eg_call(a->model, a->x), a->y) && eg_layer_weights_list(a->model).count > 20 &&
                eg_layer_output_shape(a->model).dims[1] == 3;
    }
    return NULL;
}
TEST(one_model_is_called_by_many_threads) {
    eg_seed(3);
    eg_layer *model = everything();
    eg_tensor *x = eg_cast(eg_random_uniform(EG_SHAPE(4, 6), .maxval = 20), EG_INT32), *y = eg_call(model, x);
    REQUIRE(y);
    eg_layer *copy = eg_layer_copy(model);                   // its first call is made by all threads at once
    gate g = GATE(THREADS);
    infers a[THREADS];
    for (int i = 0; i < THREADS; i++) a[i] = (infers){copy, x, y, &g, false};
    run_threads(infer, a, sizeof *a, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK(a[i].ok);
    eg_layer_release(model);
    eg_layer_release(copy);
}

// All weights of the model are one number at any time, which grows by one with each update; it was published at every
// third.
enum { READERS = 3, UPDATES = 60 };
typedef struct service { eg_publication *publication; gate *gate; int done; int64_t seen; bool ok; } service;
static void *serve(void *argument) {
    service *s = (service *)argument;
    int64_t last = 0;
    eg_set_device(test_device());
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 3));
    s->ok = true;
    s->seen = 0;
    gate_pass(s->gate);
    while (s->ok && last < UPDATES) {
        EG_SCOPE;
        eg_layer *model = eg_published(s->publication);
        eg_list w = eg_layer_weights_list(model);
        int64_t k = (int64_t)eg_item(eg_index(w.tensors[3], 0));
        for (int i = 0; i < 4; i++) {
            eg_tensor *y = eg_call(model, x, .training = i == 2);             // h = 3 k + k, y = 4 h k + k
            const float *p = (const float *)eg_data(y);
            s->ok = s->ok && p && p[0] == (float)(16 * k * k + k) && p[1] == p[0];
        }
        for (int i = 0; i < w.count; i++)
            s->ok = s->ok && eg_item(eg_reduce_min(w.tensors[i])) == (double)k &&
                    eg_item(eg_reduce_max(w.tensors[i])) == (double)k;
        s->ok = s->ok && k >= last && k % 3 == 0 && !eg_layer_trainable(model);
        s->seen += k != last;
        last = k;
        eg_layer_release(model);
    }
    return NULL;
}
static void *teach(void *argument) {
    service *s = (service *)argument;
    eg_set_device(test_device());
    EG_SCOPE;
    eg_layer *model = eg_sequential(eg_layer_dense(4, .kernel_initializer = EG_INIT_ZEROS, .input_shape = EG_SHAPE(3)),
                                    eg_layer_dense(2, .kernel_initializer = EG_INIT_ZEROS));
    eg_list w = eg_layer_weights_list(model);
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1);
    eg_tensor *grads[4];
    s->ok = w.count == 4 && eg_publish(s->publication, model);
    gate_pass(s->gate);
    for (int i = 0; i < w.count; i++) grads[i] = eg_full(EG_FLOAT32, eg_shape_of(w.tensors[i]), -1);
    for (int step = 1; step <= UPDATES && s->ok; step++) {
        s->ok = eg_apply_gradients(sgd, grads, w.tensors, w.count);
        if (step % 3 == 0) s->ok = eg_publish(s->publication, model) && s->ok;
    }
    eg_optimizer_release(sgd);
    eg_layer_release(model);
    return NULL;
}
static void *teach_or_serve(void *argument) { return ((service *)argument)->done ? teach(argument) : serve(argument); }
TEST(readers_of_a_publication_see_whole_models) {
    gate g = GATE(READERS + 1);
    service s[READERS + 1];
    eg_publication *publication = eg_publication_new();
    CHECK(eg_published(publication) == NULL && eg_error() == EG_OK);
    for (int i = 0; i <= READERS; i++) s[i] = (service){publication, &g, i == READERS, 0, false};
    run_threads(teach_or_serve, s, sizeof *s, READERS + 1);
    for (int i = 0; i <= READERS; i++) CHECK(s[i].ok);
    for (int i = 0; i < READERS; i++) CHECK(s[i].seen >= 1 && s[i].seen <= UPDATES / 3);
    eg_layer *last = eg_published(publication);
    eg_publication_release(publication);                     // who holds the model keeps it
    CHECK_TENSOR(eg_call(last, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), 0, 57660, 57660);
    eg_layer_release(last);
}

// A reader's release is of its own reference, also at the moment when the publication gives back its own. (Where the
// counts are read in the wrong order, one in a few runs of this test finds it.)
typedef struct borrows { eg_publication *publication; eg_layer *model; bool *done; bool ok; } borrows;
static void *borrow_or_publish(void *argument) {
    borrows *b = (borrows *)argument;
    b->ok = true;
    for (int i = 0; b->model && b->ok && i < 30000 / test_share; i++) {
        EG_SCOPE;
        b->ok = eg_publish(b->publication, b->model);
    }
    while (!b->model && b->ok && !__atomic_load_n(b->done, __ATOMIC_ACQUIRE)) {
        eg_layer_release(eg_published(b->publication));
        b->ok = eg_error() == EG_OK;
    }
    if (b->model) __atomic_store_n(b->done, true, __ATOMIC_RELEASE);
    return NULL;
}
TEST(readers_release_models_while_others_are_published) {
    bool done = false;
    eg_publication *publication = eg_publication_new();
    eg_layer *model = eg_layer_flatten();
    borrows b[READERS + 1];
    CHECK(eg_call(model, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))) && eg_publish(publication, model));
    for (int i = 0; i <= READERS; i++) b[i] = (borrows){publication, i == READERS ? model : NULL, &done, false};
    run_threads(borrow_or_publish, b, sizeof *b, READERS + 1);
    for (int i = 0; i <= READERS; i++) CHECK(b[i].ok);
    eg_publication_release(publication);
    eg_layer_release(model);
}

// One dataset, and each thread an iterator of its own in it.
typedef struct reads { eg_dataset *data; gate *gate; bool ok; } reads;
static eg_tensor *twofold(eg_tensor *const *in, void *user) { (void)user; return eg_mul(in[0], 2); }
static void *read_dataset(void *argument) {
    reads *r = (reads *)argument;
    eg_set_device(test_device());
    gate_pass(r->gate);
    r->ok = true;
    for (int round = 0; round < 2; round++) {
        EG_SCOPE;
        eg_iterator *it = eg_iterator_new(r->data);
        eg_tensor *x[EG_MAX_COMPONENTS];
        double sum = 0;
        while (eg_iterator_next(it, x) == EG_NEXT) sum += eg_item(eg_reduce_sum(x[0]));
        eg_iterator_release(it);
        r->ok = r->ok && sum == 9900 && eg_error() == EG_OK;
    }
    return NULL;
}
TEST(one_dataset_is_read_by_many_threads) {
    eg_dataset *d = eg_dataset_map(eg_dataset_from_slices(eg_range(EG_FLOAT32, 0, 100, 1)), twofold, NULL,
                                   .threads = 2);
    d = eg_dataset_prefetch(eg_dataset_batch(eg_dataset_shuffle(eg_dataset_cache(d), 20), 8), 2);
    gate g = GATE(THREADS);
    reads r[THREADS];
    for (int i = 0; i < THREADS; i++) r[i] = (reads){d, &g, false};
    run_threads(read_dataset, r, sizeof *r, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK(r[i].ok);
    eg_dataset_release(d);
}

// The same where a fit trains, and publishes after each batch.
typedef struct fitted { eg_publication *publication; eg_tensor *x; gate *gate; bool trains, ok; } fitted;
static bool publish_batch(eg_fit_state *state, void *user) { return eg_publish((eg_publication *)user, state->model); }
static void *fit_or_serve(void *argument) {
    fitted *f = (fitted *)argument;
    eg_set_device(test_device());
    EG_SCOPE;
    eg_layer *model;
    if (f->trains) {
        eg_tensor *y = eg_reduce_sum(f->x, .axes = EG_AXES(1), .keepdims = true);
        model = eg_sequential(eg_layer_dense(6, .activation = EG_TANH), eg_layer_batch_normalization(.momentum = 0.5),
                              eg_layer_dropout(0.2), eg_layer_dense(1));
        f->ok = eg_compile(model, eg_adam(.learning_rate = 0.01), eg_mean_squared_error) && eg_call(model, f->x) &&
                eg_publish(f->publication, model);
        gate_pass(f->gate);
        f->ok = f->ok &&
                eg_fit_arrays(model, f->x, y, .epochs = 3, .batch_size = 4, .quiet = true, .callbacks = EG_CALLBACKS(
                eg_callback_new((eg_callback_functions){.batch_end = publish_batch, .user = f->publication})));
        eg_layer_release(model);
        return NULL;
    }
    gate_pass(f->gate);
    f->ok = true;
    for (int i = 0; i < 40 && f->ok; i++) {
        EG_SCOPE;
        model = eg_published(f->publication);
        eg_tensor *first = eg_call(model, f->x);
        f->ok = eg_assert_equal(first, eg_call(model, f->x)) && eg_error() == EG_OK;
        eg_layer_release(model);
    }
    return NULL;
}
TEST(a_fit_publishes_while_others_infer) {
    gate g = GATE(READERS + 1);
    fitted f[READERS + 1];
    eg_publication *publication = eg_publication_new();
    eg_tensor *x = eg_random_normal(EG_SHAPE(16, 3));
    for (int i = 0; i <= READERS; i++) f[i] = (fitted){publication, x, &g, i == READERS, false};
    run_threads(fit_or_serve, f, sizeof *f, READERS + 1);
    for (int i = 0; i <= READERS; i++) CHECK(f[i].ok);
    eg_publication_release(publication);
}

// ---- one traced function, called by several threads

typedef struct caller { eg_function *f; eg_tensor *w; gate *gate; int number, shapes, wrong, busy; } caller;
static eg_tensor *shifted_value(eg_tensor *x, eg_tensor *w) {
    eg_tensor *y = eg_tanh(eg_matmul(x, w));
    for (int i = 0; i < 5; i++) y = eg_mul(eg_add(y, 1), 0.5);
    return y;
}
static bool shifted(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_keep(shifted_value(in[0], (eg_tensor *)user));
    return true;
}
static void *call_shifted(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    gate_pass(c->gate);
    for (int i = 0; i < 60; i++) {
        EG_SCOPE;
        float values[2][12];
        eg_shape shape = EG_SHAPE(1 + i % c->shapes, 4);
        eg_tensor *x = eg_full(EG_FLOAT32, shape, 0.1 * c->number + 0.01 * i), *y, *z = shifted_value(x, c->w);
        if (!eg_function_call(c->f, &x, 1, &y, 1)) { c->wrong++; continue; }
        eg_read_into(y, values[0], eg_size(y));
        eg_read_into(z, values[1], eg_size(z));
        c->wrong += memcmp(values[0], values[1], (size_t)eg_size(y) * sizeof(float)) != 0;
    }
    return NULL;
}
TEST(a_traced_function_is_called_by_several_threads) {
    for (int shapes = 1; shapes <= 3; shapes += 2) {
        gate g = GATE(THREADS);
        caller c[THREADS];
        eg_tensor *w = eg_variable(eg_random_normal(EG_SHAPE(4, 4)), "w");
        eg_function *f = eg_function_new(shifted, w);
        for (int i = 0; i < THREADS; i++) c[i] = (caller){f, w, &g, i, shapes, 0, 0};
        run_threads(call_shifted, c, sizeof *c, THREADS);
        for (int i = 0; i < THREADS; i++) CHECK_INT(c[i].wrong, 0);
        CHECK_INT(eg_function_counts(f).calls, 60 * THREADS);
        CHECK_INT(eg_function_counts(f).traces, shapes);            // two first calls trace once
        CHECK(eg_function_counts(f).replays > 0);
        eg_function_release(f);
        eg_release(w);
    }
}
static bool counted(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_assign_add((eg_tensor *)user, in[0]);
    eg_tensor *y = in[0];
    for (int i = 0; i < 20; i++) y = eg_tanh(y);
    out[0] = eg_keep(y);
    return true;
}
// Calls until enough were answered; a call during another thread's is an error and has done nothing.
static void *call_counted(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    gate_pass(c->gate);
    for (int done = 0; done < 50;) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2000), 1), *y;
        if (eg_function_call(c->f, &x, 1, &y, 1)) { done++; continue; }
        c->busy++;
        c->wrong += !strstr(eg_error_message(), "another thread runs this function");
        eg_error_clear();
    }
    return NULL;
}
TEST(a_traced_function_that_assigns_is_for_one_thread_at_a_time) {
    gate g = GATE(THREADS);
    caller c[THREADS];
    eg_tensor *w = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2000)), "w");
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2000), 1), *y;
    eg_function *f = eg_function_new(counted, w, .no_recheck = true);
    CHECK(eg_function_call(f, &x, 1, &y, 1));                       // traced by one
    CHECK_INT(eg_function_counts(f).traces, 1);
    for (int i = 0; i < THREADS; i++) c[i] = (caller){f, w, &g, i, 1, 0, 0};
    run_threads(call_counted, c, sizeof *c, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK_INT(c[i].wrong, 0);
    CHECK_TENSOR(eg_index(w, 0), 0, 1 + 50 * THREADS);              // no call is lost, none counts twice
    CHECK_INT(eg_function_counts(f).traces, 1);
    eg_function_release(f);
    eg_release(w);
}
static void *release_function(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    gate_pass(c->gate);
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(3, 4), 1), *y;
    for (int i = 0; i < 20; i++) c->wrong += !eg_function_call(c->f, &x, 1, &y, 1);
    eg_function_release(c->f);
    return NULL;
}
// The same before there is a trace. Either both bodies have begun when the first assigns, or one has assigned when the
// other begins.
typedef struct meeting { eg_function *f; eg_tensor *w; gate *gate; int kind, number, done, refused; } meeting;
static __thread meeting *my_meeting;
static int first_calls;
static bool meeting_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    meeting *s = my_meeting;
    (void)user;
    const bool meets = s && __atomic_fetch_add(&first_calls, 1, __ATOMIC_RELAXED) < 2;
    eg_tensor *y = eg_add(in[0], s ? s->w : in[0]);
    if (meets && s->kind == 0) gate_pass(s->gate);
    if (s && !eg_assign_add(s->w, 1)) return false;
    if (meets && s->kind == 1) { gate_pass(s->gate); gate_pass(s->gate); }
    out[0] = eg_keep(y);
    return y != NULL;
}
static void *meet(void *argument) {
    meeting *s = my_meeting = (meeting *)argument;
    eg_set_device(test_device());
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4)), *y;
    if (s->kind == 1 && s->number) gate_pass(s->gate);      // the other one has assigned
    for (int i = 0; i < 10; i++) {
        if (eg_function_call(s->f, &x, 1, &y, 1)) { s->done++; continue; }
        s->refused += strstr(eg_error_message(), "another thread runs this function") != NULL;
        eg_error_clear();
        if (s->kind == 1) break;
    }
    if (s->kind == 1 && s->number) gate_pass(s->gate);
    my_meeting = NULL;
    return NULL;
}
TEST(first_calls_of_a_function_that_assigns_are_for_one_thread) {
    for (int kind = 0; kind < 2; kind++) {
        EG_SCOPE;
        gate g = GATE(2);
        eg_tensor *w = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(4)), "w");
        eg_function *f = eg_function_new(meeting_body, NULL, .no_recheck = true);
        meeting s[2];
        for (int i = 0; i < 2; i++) s[i] = (meeting){ f, w, &g, kind, i, 0, 0 };
        first_calls = 0;
        run_threads(meet, s, sizeof *s, 2);
        CHECK(s[0].done + s[0].refused == 10);
        CHECK(s[0].refused + s[1].refused >= 1);
        if (kind == 1) CHECK(s[0].refused == 0 && s[1].refused == 1);
        CHECK_NEAR(eg_item(eg_index(w, 0)), s[0].done + s[1].done, 0);
        eg_function_release(f);
        eg_release(w);
    }
}
// A list that only reads, of another signature, counts as well: it is refused while one that assigns runs, and the
// other way round.
static gate *reading_gate;
static bool wait_at_gate(eg_tensor *const *in, eg_tensor **out, void *user) {
    gate *g = reading_gate;
    (void)user;
    if (g) { gate_pass(g); gate_pass(g); }
    out[0] = in[0];
    return true;
}
static bool reads_or_assigns(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *w = (eg_tensor *)user, *y = eg_add(w, eg_reduce_sum(in[0]));
    if (eg_dim(in[0], 0) == 2) eg_assign_add(w, 1);
    return eg_host_call(wait_at_gate, NULL, &y, 1, out, 1);
}
static void *call_and_wait(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(c->number)), *y;
    c->wrong += !eg_function_call(c->f, &x, 1, &y, 1);
    return NULL;
}
static bool calls_another(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_function_call((eg_function *)user, in, 1, out, 1) && eg_keep(out[0]);
}
// The same where one of the two threads, or both, call a function whose body calls the one that assigns.
TEST(a_list_that_reads_and_one_that_assigns_are_not_replayed_at_once) {
    for (int first = 2; first < 4; first++)
        for (int kind = 0; kind < 8; kind++) {
            const int traced = kind % 2, outer = kind / 4, other_outer = kind / 2 % 2;
            EG_SCOPE;
            gate g = GATE(2);
            eg_tensor *w = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(4)), "w");
            eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(5 - first)), *y;
            eg_function *inner = eg_function_new(reads_or_assigns, w, .no_recheck = true),
                        *caller_of = eg_function_new(calls_another, inner, .no_recheck = true),
                        *f = outer ? caller_of : inner;
            reading_gate = NULL;
            for (int i = 0; i < 12; i++) {
                eg_tensor *z = eg_ones(EG_FLOAT32, EG_SHAPE(traced ? 2 + i / 2 % 2 : 2));
                CHECK(eg_function_call(i % 2 ? caller_of : inner, &z, 1, &y, 1));
            }
            caller c = {other_outer ? caller_of : inner, w, &g, first, 1, 0, 0};
            pthread_t other;
            reading_gate = &g;
            CHECK_INT(pthread_create(&other, NULL, call_and_wait, &c), 0);
            gate_pass(&g);                                  // the other thread's call is under way
            reading_gate = NULL;
            CHECK(!eg_function_call(f, &x, 1, &y, 1));
            CHECK(strstr(eg_error_message(), "another thread runs this function"));
            eg_error_clear();
            gate_pass(&g);
            pthread_join(other, NULL);
            CHECK_INT(c.wrong, 0);
            CHECK(eg_function_call(f, &x, 1, &y, 1));       // and now it may run
            eg_function_release(inner);
            eg_function_release(caller_of);
            eg_release(w);
        }
}
// Two signatures of one body that assigns, or the body and another function's that calls it. In all rounds but every
// fourth, calls are compared all the time, since a setter is called: each call that returned true has assigned, and no
// assignment is lost.
static bool adds_mean(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *sum = (eg_tensor *)user;
    out[0] = eg_assign(sum, eg_add(sum, eg_reduce_mean(in[0]))) ? eg_keep(eg_read(sum)) : NULL;
    return out[0] != NULL;
}
typedef struct adder { eg_function *f; eg_tensor *set; gate *gate; int number, done, wrong; } adder;
static void *add_means(void *argument) {
    adder *s = (adder *)argument;
    eg_tensor *held = NULL;                                 // shares the variable's memory, which is copied so
    eg_set_device(test_device());
    gate_pass(s->gate);
    for (int i = 0; i < 60; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1 + s->number)), *y;
        if (s->set) eg_set_trainable(s->set, i % 2);
        if (eg_function_call(s->f, &x, 1, &y, 1)) {
            s->done++;
            eg_release(held);
            held = eg_retain(y);
            continue;
        }
        s->wrong += !strstr(eg_error_message(), "another thread runs this function");
        eg_error_clear();
    }
    eg_release(held);
    return NULL;
}
TEST(no_assignment_of_a_compared_call_is_lost) {
    for (int round = 0; round < 60; round++) {
        EG_SCOPE;
        gate g = GATE(2);
        eg_tensor *sum = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(200000)), "sum"), *y;
        eg_function *f = eg_function_new(adds_mean, sum), *of[2] = { f, f };
        adder s[2];
        if (round % 2) of[1] = eg_function_new(calls_another, f);
        else eg_function_retain(f);
        for (int i = 0; i < 2; i++) {
            eg_tensor *set = round % 4 == 3 ? NULL : eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(1)), "set");
            s[i] = (adder){ of[i], set, &g, i, 0, 0 };
        }
        for (int i = 0; i < 4; i++) {
            eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1 + i % 2));
            CHECK(eg_function_call(of[i % 2], &x, 1, &y, 1));
        }
        run_threads(add_means, s, sizeof *s, 2);
        CHECK_INT(s[0].wrong + s[1].wrong, 0);
        CHECK_NEAR(eg_item(eg_reduce_min(sum)), s[0].done + s[1].done, 0);
        CHECK_NEAR(eg_item(eg_reduce_max(sum)), s[0].done + s[1].done, 0);
        for (int i = 0; i < 2; i++) { eg_function_release(of[i]); eg_release(s[i].set); }
        eg_release(sum);
    }
}
// In replays a function of eg_host_call may count its calls in a variable of its own, as others do at the same time.
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static eg_tensor *counter;
static bool count_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    pthread_mutex_lock(&counting);
    const bool ok = eg_assign_add(counter, 1) != NULL;
    pthread_mutex_unlock(&counting);
    return (out[0] = eg_mul(in[0], 2)) != NULL && ok;
}
static bool counted_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return eg_host_call(count_call, NULL, in, 1, out, 1);
}
static void *call_counting(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    gate_pass(c->gate);
    for (int i = 0; i < 100; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
        if (!eg_function_call(c->f, &x, 1, &y, 1)) { c->wrong++; eg_error_clear(); }
    }
    return NULL;
}
TEST(host_functions_of_replays_may_assign) {
    gate g = GATE(THREADS);
    caller c[THREADS];
    counter = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(1)), "counter");
    eg_function *f = eg_function_new(counted_body, NULL, .no_recheck = true);
    for (int i = 0; i < 30; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
    }
    for (int i = 0; i < THREADS; i++) c[i] = (caller){f, counter, &g, i, 1, 0, 0};
    run_threads(call_counting, c, sizeof *c, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK_INT(c[i].wrong, 0);
    CHECK_NEAR(eg_item(eg_index(counter, 0)), 30 + 100 * THREADS, 0);
    eg_function_release(f);
    eg_release(counter);
}
TEST(the_last_thread_frees_a_traced_function) {
    gate g = GATE(THREADS);
    caller c[THREADS];
    eg_tensor *w = eg_variable(eg_random_normal(EG_SHAPE(4, 4)), "w");
    eg_function *f = eg_function_new(shifted, w);
    for (int i = 0; i < THREADS; i++) c[i] = (caller){eg_function_retain(f), w, &g, i, 1, 0, 0};
    eg_function_release(f);
    run_threads(release_function, c, sizeof *c, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK_INT(c[i].wrong, 0);
    eg_release(w);
}
// Under tapes of its own each thread gets the gradients that the body gives eagerly, to second order; the functions of
// the gradients are shared, too.
static bool taped_gradients(caller *c, eg_tensor *x, bool traced, eg_tensor **g) {
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *y = NULL;
    eg_tape_watch(outer, x);
    eg_tape_watch(tape, x);
    if (!traced) y = shifted_value(x, c->w);
    else if (!eg_function_call(c->f, &x, 1, &y, 1)) return false;
    g[0] = eg_tape_gradient(tape, y, x);
    g[1] = eg_tape_gradient(outer, eg_reduce_sum(eg_square(g[0])), c->w);
    return g[0] && g[1];
}
static void *call_taped(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    gate_pass(c->gate);
    for (int i = 0; i < 40; i++) {
        EG_SCOPE;
        float values[2][2][16];
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(3, 4), 0.1 * c->number + 0.01 * i), *g[2];
        memset(values, 0, sizeof values);
        for (int traced = 0; traced < 2; traced++) {
            if (!taped_gradients(c, x, traced, g)) { c->wrong++; continue; }
            for (int k = 0; k < 2; k++) eg_read_into(g[k], values[traced][k], eg_size(g[k]));
        }
        c->wrong += memcmp(values[0], values[1], sizeof values[0]) != 0;
    }
    return NULL;
}
TEST(a_traced_function_is_called_by_several_threads_under_tapes) {
    gate g = GATE(THREADS);
    caller c[THREADS];
    eg_tensor *w = eg_variable(eg_random_normal(EG_SHAPE(4, 4)), "w"), *d[2];
    eg_function *f = eg_function_new(shifted, w);
    c[0] = (caller){f, w, &g, 0, 1, 0, 0};
    for (int i = 0; i < 4; i++) CHECK(taped_gradients(&c[0], eg_ones(EG_FLOAT32, EG_SHAPE(3, 4)), true, d));
    CHECK_INT(eg_function_counts(f).traces, 1);
    for (int i = 0; i < THREADS; i++) c[i] = (caller){f, w, &g, i, 1, 0, 0};
    run_threads(call_taped, c, sizeof *c, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK_INT(c[i].wrong, 0);
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    eg_release(w);
}
// What another thread's tape holds of a variable is no reason to give up tracing for good.
enum { HELD_CALLS = 12 };
static void *hold_in_a_tape(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    for (int i = 0; i < HELD_CALLS; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3, 4)), *y;
        if (c->number) {
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, x);
            if (!shifted_value(x, c->w)) c->wrong++;
            if (!eg_function_call(c->f, &x, 1, &y, 1)) c->wrong++;
        }
        gate_pass(c->gate);
        if (!c->number) c->wrong += !eg_function_call(c->f, &x, 1, &y, 1);
        gate_pass(c->gate);
    }
    return NULL;
}
TEST(tapes_of_other_threads_do_not_end_tracing) {
    EG_SCOPE;
    gate g = GATE(2);
    caller c[2];
    eg_tensor *w = eg_variable(eg_random_normal(EG_SHAPE(4, 4)), "w");
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3, 4)), *y;
    eg_function *f = eg_function_new(shifted, w);
    for (int i = 0; i < 2; i++) c[i] = (caller){f, w, &g, i, 1, 0, 0};
    run_threads(hold_in_a_tape, c, sizeof *c, 2);
    CHECK_INT(c[0].wrong + c[1].wrong, 0);
    for (int i = 0; i < 6; i++) CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    eg_release(w);
}
// A thread that never calls the function, but whose tapes hold the variable that its body reads.
typedef struct reader { eg_tensor *w; bool stop; } reader;
static void *read_on_tapes(void *argument) {
    reader *r = (reader *)argument;
    eg_set_device(test_device());
    while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tape_gradient(tape, eg_reduce_sum(eg_square(r->w)), r->w);
    }
    return NULL;
}
TEST(what_readers_hold_does_not_end_tracing) {
    EG_SCOPE;
    reader r = { eg_variable(eg_random_normal(EG_SHAPE(4, 4)), "w"), false };
    pthread_t thread[2];
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3, 4)), *y;
    for (int i = 0; i < 2; i++) REQUIRE(!pthread_create(&thread[i], NULL, read_on_tapes, &r));
    for (int k = 0; k < 10; k++) {
        eg_function *f = eg_function_new(shifted, r.w);
        for (int i = 0; i < 40; i++) CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_STR(eg_function_reason(f), NULL);
        CHECK_INT(eg_function_counts(f).traces, 1);
        eg_function_release(f);
    }
    __atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    eg_release(r.w);
}
// What a body only reads stays where it is, also where it assigns to something else and is compared again and again,
// and where two variables that it reads share their values.
static bool counts_and_shifts(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *const *v = (eg_tensor *const *)user;
    eg_assign_add(v[1], 1);
    return (out[0] = eg_matmul(eg_matmul(in[0], v[0]), v[3])) != NULL;
}
static void read_by_others(bool shares) {
    EG_SCOPE;
    reader r = { eg_variable(eg_random_normal(EG_SHAPE(4, 4)), "w"), false };
    eg_tensor *v[] = { r.w, eg_variable(eg_scalar(0), "count"), eg_variable(eg_scalar(0), "other"),
                       eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(4, 4)), "copy") };
    if (shares) eg_assign(v[3], v[0]);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3, 4)), *y;
    eg_function *f = eg_function_new(counts_and_shifts, v);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) REQUIRE(!pthread_create(&thread[i], NULL, read_on_tapes, &r));
    for (int i = 0; i < 400; i++) {
        EG_SCOPE;
        if (i % 2) eg_set_trainable(v[2], i / 2 % 2);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
    }
    __atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    CHECK(eg_item(v[1]) == 400 && eg_function_counts(f).rechecks >= 200);
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK_INT(eg_function_counts(f).traces, 1);
    eg_function_release(f);
    for (int i = 0; i < 4; i++) eg_release(v[i]);
}
TEST(what_a_body_only_reads_is_read_by_others) {
    for (int shares = 0; shares < 2; shares++) read_by_others(shares);
}
// The same where that thread made the variable, after the body's variables got their ids, and holds its values.
typedef struct stepper { eg_optimizer *opt; eg_tensor *v; reader r; } stepper;
static void *make_and_read(void *argument) {
    reader *r = (reader *)argument;
    eg_set_device(test_device());
    eg_tensor *w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(4, 4)), "w"), *held = eg_retain(eg_read(w));
    __atomic_store_n(&r->w, w, __ATOMIC_RELEASE);
    read_on_tapes(r);
    eg_release(held);
    return NULL;
}
static bool steps_and_shifts(eg_tensor *const *in, eg_tensor **out, void *user) {
    stepper *s = (stepper *)user;
    eg_tensor *slope = in[0], *v = s->v;
    return eg_apply_gradients(s->opt, &slope, &v, 1) && (out[0] = eg_matmul(in[0], s->r.w)) != NULL;
}
TEST(what_another_thread_made_is_not_what_the_body_made) {
    EG_SCOPE;
    stepper s = { eg_sgd(.learning_rate = 1, .momentum = 0.5), eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4)), "v"),
                  { NULL, false } };
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, make_and_read, &s.r));
    while (!__atomic_load_n(&s.r.w, __ATOMIC_ACQUIRE)) {}
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3, 4)), *y;
    eg_function *f = eg_function_new(steps_and_shifts, &s);          // its first call makes the optimizer's slots
    for (int i = 0; i < 20; i++) CHECK(eg_function_call(f, &x, 1, &y, 1) && eg_item(eg_reduce_max(y)) == 4);
    __atomic_store_n(&s.r.stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK(eg_function_counts(f).replays > 10);
    eg_function_release(f);
    eg_optimizer_release(s.opt);
    eg_release(s.v);
    eg_release(s.r.w);
}
// A call under a tape that is compared each time, since a setter is called, beside calls of a function that is a part
// of it: the call's line on the tape reads the variable that the other call assigns.
static bool multiplies_and_counts(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *v = (eg_tensor *)user;
    return (out[0] = eg_mul(in[0], v)) != NULL && eg_assign(v, eg_add(v, 1)) != NULL;
}
static bool doubles_another(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y;
    return eg_function_call((eg_function *)user, in, 1, &y, 1) && (out[0] = eg_mul(y, 2)) != NULL;
}
static bool call_or_taken(eg_function *f, bool taped, int *done) {
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(10)), *y;
    if (taped) eg_tape_begin();
    const bool ok = eg_function_call(f, &x, 1, &y, 1);
    *done += ok;
    if (ok) return true;
    const bool taken = strstr(eg_error_message(), "another thread runs") != NULL;
    eg_error_clear();
    return taken;
}
static void *call_part(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    while (!__atomic_load_n(&c->shapes, __ATOMIC_ACQUIRE)) c->wrong += !call_or_taken(c->f, false, &c->busy);
    return NULL;
}
TEST(a_part_assigns_while_a_compared_call_is_put_on_a_tape) {
    EG_SCOPE;
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "v"), *set = eg_variable(eg_scalar(0), "set");
    eg_function *g = eg_function_new(multiplies_and_counts, v), *f = eg_function_new(doubles_another, g);
    caller c = {g, v, NULL, 0, 0, 0, 0};                            // shapes: 1 ends the thread
    int done = 0;
    for (int i = 0; i < 4; i++) CHECK(call_or_taken(f, true, &done) && call_or_taken(g, false, &done));
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, call_part, &c));
    for (int i = 0; i < 1000; i++) {
        eg_set_trainable(set, i % 2);
        CHECK(call_or_taken(f, true, &done));
    }
    __atomic_store_n(&c.shapes, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK_INT(c.wrong, 0);
    CHECK_NEAR(eg_item(eg_reduce_max(v)), done + c.busy, 0);         // no call is lost, none counts twice
    eg_function_release(f);
    eg_function_release(g);
    eg_release(v);
    eg_release(set);
}
// Several threads call a function that branches, each its own way.
static bool doubled_by_w(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_matmul(in[0], eg_mul((eg_tensor *)user, 2));
    return true;
}
static bool branches_by_x(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_less(eg_reduce_sum(in[0]), 0), shifted, doubled_by_w, user, in, 1, out, 1);
}
static void *call_either_way(void *argument) {
    caller *c = (caller *)argument;
    eg_set_device(test_device());
    gate_pass(c->gate);
    for (int i = 0; i < 40; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(3, 4), (i + c->number) % 3 - 1), *y, *want;
        c->wrong += !eg_function_call(c->f, &x, 1, &y, 1) || !branches_by_x(&x, &want, c->w) ||
                    eg_item(eg_reduce_sum(eg_abs(eg_sub(y, want)))) != 0;
    }
    return NULL;
}
TEST(a_function_that_branches_is_called_by_several_threads) {
    gate g = GATE(THREADS);
    caller c[THREADS];
    eg_tensor *w = eg_variable(eg_random_normal(EG_SHAPE(4, 4)), "w");
    eg_function *f = eg_function_new(branches_by_x, w);
    for (int i = 0; i < THREADS; i++) c[i] = (caller){f, w, &g, i, 1, 0, 0};
    run_threads(call_either_way, c, sizeof *c, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK_INT(c[i].wrong, 0);
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    eg_release(w);
}
#endif
