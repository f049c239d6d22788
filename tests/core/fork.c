// fork: the child has one thread and copies of all locks as they were. It never hangs: what can go on does, what cannot
// is an error.
#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include "test.h"

#if defined(EAGER_NO_THREADS) || !(defined(__unix__) || defined(__APPLE__))
TEST(fork) { SKIP("compiled with EAGER_NO_THREADS, or a system without fork"); }
#else
#include <limits.h>
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef TEST_SLOW
enum { new_threads = 0 };  // sanitizers have no threads in a child of several, or wait for those of the parent
#else
enum { new_threads = 1 };
#endif

// Waits for the child; true if it ended by itself, with status 0. What its checks said is on the same output.
static bool child_ends(pid_t child) {
    const struct timespec pause = {0, 2000000};
    int status = -1;
    for (int i = 0; i < 15000; i++) {                     // half a minute and more
        if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        nanosleep(&pause, NULL);
    }
    printf("the child hangs\n");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return false;
}
// Runs body in a child.
static bool in_child(void (*body)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) return false;
    if (child) return child_ends(child);
    int before = test_fails;
    if (!new_threads) eg_set_num_threads(1);
    body();
    fflush(stdout);
    // As another program: where this process ended, valgrind would take for lost what nobody but the parent's other
    // threads held.
    const bool bad = test_fails > before || eg_error() != EG_OK;
    execlp("sh", "sh", "-c", bad ? "exit 1" : "exit 0", (char *)NULL);
    _exit(bad);
}

static eg_tensor *plus_one(eg_tensor *const *in, void *user) { (void)user; return eg_add(in[0], 1); }
static eg_dataset *ahead(int64_t n, int threads) {
    return eg_dataset_prefetch(eg_dataset_map(eg_dataset_range(0, n, 1), plus_one, NULL, .threads = threads), 4);
}
static void sums_to(eg_dataset *d, int64_t n) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    int64_t sum = 0;
    eg_iterator *it = eg_iterator_new(d);
    while (eg_iterator_next(it, out) == EG_NEXT) sum += eg_item_int(out[0]);
    CHECK_INT(sum, n * (n + 1) / 2);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
// Whatever a program does.
static void works(void) {
    eg_set_device("cpu:0");
    eg_scope scope = eg_scope_begin();
    eg_tensor *a = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
    CHECK_TENSOR(eg_matmul(a, a), 0, 7, 10, 15, 22);
    CHECK_TENSOR(eg_reduce_sum(eg_matmul(eg_ones(EG_FLOAT32, EG_SHAPE(100, 100)),
                                         eg_ones(EG_FLOAT32, EG_SHAPE(100, 100)))), 0, 1e6);
    eg_tensor *x = eg_random_normal(EG_SHAPE(8, 3)), *y = eg_random_normal(EG_SHAPE(8, 1));
    eg_layer *model = eg_sequential(eg_layer_dense(4, .activation = EG_TANH), eg_layer_dense(1));
    REQUIRE(eg_compile(model, eg_adam(), eg_mean_squared_error));
    double first = eg_train_on_batch(model, x, y);
    for (int i = 0; i < 20; i++) eg_train_on_batch(model, x, y);
    CHECK(eg_train_on_batch(model, x, y) < first);
    eg_layer_release(model);
    sums_to(eg_dataset_map(eg_dataset_range(0, 20, 1), plus_one, NULL), 20);
    if (new_threads) sums_to(ahead(20, 2), 20);
    CHECK_ERROR(eg_matmul(a, eg_ones(EG_FLOAT32, EG_SHAPE(3, 3))), EG_ERROR_SHAPE, "inner dimensions differ");
    CHECK(eg_memory().live_tensors > 0);
    eg_scope_end(scope);
    eg_memory_trim();
    eg_shutdown();
}

// ---- locks

static int over, under_way;              // under_way: threads that have taken their first memory
static void *holds_locks(void *unused) {
    for (int64_t i = 0; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++) {
        eg_memory();
        eg_set_printer(NULL, NULL);
        eg_memory_reset_peak();
        if (i == 1) __atomic_fetch_add(&under_way, 1, __ATOMIC_RELEASE);
    }
    return unused;
}
static void *makes_and_fails(void *unused) {
    eg_set_device("cpu:0");
    for (int64_t i = 0; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++) {
        EG_SCOPE;
        eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(100)), eg_ones(EG_FLOAT32, EG_SHAPE(7)));
        eg_error_clear();
        eg_memory_trim();
        if (i == 1) __atomic_fetch_add(&under_way, 1, __ATOMIC_RELEASE);
    }
    return unused;
}
TEST(a_child_works_whatever_locks_other_threads_hold) {
    // A sanitizer's allocator has locks that its child of fork keeps as they were (gcc 12): nobody but the parent's
    // main thread allocates then.
    const int threads = test_share > 1 ? 2 : 3;
    pthread_t thread[3];
    const struct timespec pause = {0, 1000000};
    over = under_way = 0;
    for (int i = 0; i < threads; i++)
        REQUIRE(pthread_create(&thread[i], NULL, i < 2 ? holds_locks : makes_and_fails, NULL) == 0);
    while (__atomic_load_n(&under_way, __ATOMIC_ACQUIRE) < threads) nanosleep(&pause, NULL);
    for (int i = 0; i < (test_share > 1 ? 4 : 12) && !test_fails; i++) CHECK(in_child(works));
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
}

// ---- threads of iterators

static eg_iterator *reading;
static eg_tensor *place;
static void goes_on(void) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_set_device("cpu:0");
    CHECK_ERROR(eg_iterator_next(reading, out), EG_ERROR_STATE,
                "its threads are those of the process that was forked; make a new iterator in this process, or "
                "eg_iterator_restore this one");
    CHECK_ERROR(eg_iterator_next(reading, out), EG_ERROR_STATE, "this iterator failed before");
    if (new_threads) {
        CHECK(eg_iterator_restore(reading, place));
        CHECK_INT(eg_iterator_next(reading, out), EG_NEXT);
        CHECK_TENSOR(out[0], 0, 4);
    }
    eg_iterator_release(reading);
    works();
}
TEST(an_iterator_whose_threads_are_the_parents_says_so) {
    for (int kind = 0; kind < 3; kind++) {
        eg_tensor *out[EG_MAX_COMPONENTS];
        eg_dataset *d = kind == 0 ? eg_dataset_prefetch(eg_dataset_range(1, 1000000, 1), 8)
                        : kind == 1 ? ahead(1000000, 3)
                        : eg_dataset_map(eg_dataset_range(0, 1000000, 1), plus_one, NULL, .threads = 3);
        reading = eg_iterator_new(d);
        for (int i = 1; i < 4; i++) {
            CHECK_INT(eg_iterator_next(reading, out), EG_NEXT);
            CHECK_TENSOR(out[0], 0, i);
        }
        eg_set_device("cpu:0");
        place = eg_iterator_position(reading);
        eg_set_device(test_device());
        const struct timespec pause = {0, 200000000};
        // its threads have read ahead, and rest: none of them allocates (see above)
        if (test_share > 1) nanosleep(&pause, NULL);
        for (int i = 0; i < (test_share > 1 ? 1 : 3); i++) CHECK(in_child(goes_on));
        CHECK_INT(eg_iterator_next(reading, out), EG_NEXT);       // the parent's goes on
        CHECK_TENSOR(out[0], 0, 4);
        eg_iterator_release(reading);
        eg_dataset_release(d);
    }
}

// Whoever asks is not in the child of a thread that works for an iterator: there that thread ends, and with it the
// process. Where the thread that asks reads an element itself, the child has it, and its next call is an error.
static pid_t forked;
static eg_tensor *forks(eg_tensor *const *in, void *user) {
    (void)user;
    if (eg_item_int(in[0]) == 2) forked = fork();
    return eg_identity(in[0]);
}
TEST(a_function_that_forks_on_a_thread_ends_its_child) {
#ifdef TEST_SLOW
    SKIP("a sanitizer looks for leaks when that process ends");
#endif
    for (int threads = 0; threads < 3; threads += 2) {
        eg_tensor *out[EG_MAX_COMPONENTS];
        eg_dataset *d = eg_dataset_prefetch(eg_dataset_map(eg_dataset_range(0, 5, 1), forks, NULL, .threads = threads),
                                            2);
        eg_iterator *it = eg_iterator_new(d);
        forked = -1;
        fflush(stdout);
        const pid_t parent = getpid();
        for (int i = 0; i < 5; i++) {
            const eg_status status = eg_iterator_next(it, out);
            // The thread that asks has read the element itself, since none was there yet.
            if (getpid() != parent) _exit((status == EG_NEXT ? eg_iterator_next(it, out) : status) != EG_FAILED);
            CHECK_INT(status, EG_NEXT);
        }
        CHECK(forked > 0 && child_ends(forked));
        eg_iterator_release(it);
        eg_dataset_release(d);
    }
}

// ---- traced functions

#ifndef TEST_DEVICE             // a child cannot use the devices of its parent

static eg_tensor *traced_mean;
static eg_function *traced;
static int traced_enough, traced_stops, traced_leaves;
// A sanitizer's allocator has locks that a child keeps as they were (gcc 12), so that the other thread may not allocate
// while this one forks: it stops in the middle of each replay until it is told to go on.
static bool traced_stop(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    const struct timespec pause = {0, 1000000};
    out[0] = in[0];
    const int stops = __atomic_add_fetch(&traced_stops, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&traced_leaves, __ATOMIC_ACQUIRE) < stops) nanosleep(&pause, NULL);
    return true;
}
static bool traced_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y = in[0];
    for (int i = 0; i < 20; i++) {
        y = eg_tanh(y);
        if (test_share > 1 && i == 10 && !eg_host_call(traced_stop, user, &y, 1, &y, 1)) return false;
    }
    out[0] = y;
    return eg_assign(traced_mean, eg_reduce_mean(y));
}
static bool traced_call(void) {
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(20000)), *y;
    return eg_function_call(traced, &x, 1, &y, 1);
}
static void traced_calls(void) {
    __atomic_store_n(&traced_leaves, INT_MAX, __ATOMIC_RELEASE);
    for (int i = 0; i < 3; i++) CHECK(traced_call());
}
static void *traced_again(void *unused) {
    while (!__atomic_load_n(&traced_enough, __ATOMIC_ACQUIRE)) traced_call();
    return unused;
}
TEST(a_child_calls_a_function_that_another_thread_replayed) {
    const struct timespec pause = {0, 3000000};
    pthread_t thread;
    traced_mean = eg_variable(eg_scalar(1), "mean");
    traced = eg_function_new(traced_body, NULL);
    traced_calls();
    traced_enough = traced_stops = traced_leaves = 0;
    CHECK_INT(pthread_create(&thread, NULL, traced_again, NULL), 0);
    for (int i = 0; i < 5; i++) {
        nanosleep(&pause, NULL);
        while (test_share > 1 && __atomic_load_n(&traced_stops, __ATOMIC_ACQUIRE) <= i) nanosleep(&pause, NULL);
        CHECK(in_child(traced_calls));
        __atomic_store_n(&traced_leaves, i + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&traced_enough, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&traced_leaves, INT_MAX, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    eg_function_release(traced);
    eg_release(traced_mean);
}
#endif

// ---- devices

#ifdef TEST_DEVICE
static eg_tensor *far_away;
static void is_told_of_the_device(void) {
    const char *part = "a process that was forked cannot use the ";
    CHECK_ERROR(eg_add(far_away, far_away), EG_ERROR_DEVICE, part);
    CHECK_ERROR(eg_data(far_away), EG_ERROR_DEVICE, part);
    CHECK_ERROR(eg_constant(EG_SHAPE(2), 1, 2), EG_ERROR_DEVICE, part);
    CHECK(eg_synchronize());
    eg_release(far_away);
    works();
}
TEST(a_child_has_no_devices_of_its_parent) {
    far_away = eg_retain(eg_constant(EG_SHAPE(2), 1, 2));
    CHECK(in_child(is_told_of_the_device));
    CHECK_TENSOR(far_away, 0, 1, 2);
    eg_release(far_away);
}
#endif
#endif
