// A save that dies: a copy of the library of this file's own calls a_step() before each of a save's system calls, and
// the n-th step is the last for every n. What was there before must load afterwards, and be found as the latest.
#undef EAGER_CUDA              // this copy of the library knows no GPU
#undef TEST_CUDA
#undef TEST_CUDA_HOST
#include <stdio.h>
static void a_step(void);
#define EGI_FILE_STEP() a_step()
#define EAGER_STATIC
#define EAGER_IMPLEMENTATION
#include "test.h"

#ifndef __linux__
static void a_step(void) {}
TEST(saves_that_die) { SKIP("fork is used"); }
#else
#include <sys/wait.h>

static int64_t steps, last = -1;
static void a_step(void) { if (++steps == last) raise(SIGKILL); }

static void save(int64_t value, const char *prefix, int64_t dies_at) {
    eg_tensor *x = eg_variable(eg_full(EG_INT64, EG_SHAPE(5000), (double)value), "x");
    eg_checkpoint *c = eg_checkpoint_new(.keep = 2);
    if (!eg_checkpoint_track(c, "x", x) || !eg_checkpoint_track_number(c, "step", &value)) printf("not tracked\n");
    steps = 0;
    last = dies_at;
    const char *path = eg_checkpoint_save(c, prefix);
    last = -1;
    CHECK(path != NULL);
    eg_checkpoint_release(c);
    eg_release(x);
}
// The newest checkpoint holds one number everywhere; returns it.
static int64_t value_of(const char *path) {
    int64_t number = -1;
    eg_tensor *x = eg_variable(eg_zeros(EG_INT64, EG_SHAPE(5000)), "x");
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "x", x) && eg_checkpoint_track_number(c, "step", &number));
    CHECK(eg_checkpoint_restore(c, path) && eg_checkpoint_assert_consumed(c));
    const int64_t *values = (const int64_t *)eg_data(x);
    for (int i = 0; i < 5000; i++) if (values[i] != number) { CHECK(values[i] == number); break; }
    eg_checkpoint_release(c);
    eg_release(x);
    return number;
}
static void sweep(const char *name) {
    const char *prefix = test_temp(name);
    char numbered[5000];
    snprintf(numbered, sizeof numbered, "%s", prefix);
    for (int64_t i = 1; i <= 3; i++) save(i, numbered, -1);
    int64_t value = 3, n = 0;
    for (bool died = true; died && n < 200;) {
        EG_SCOPE;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            eg_set_error_handler(NULL, NULL);
            eg_set_device("cpu:0");                          // a child has no other device of its parent's
            save(value + 1, numbered, ++n);
            _Exit(test_fails ? 1 : 0);
        }
        n++;
        int status = 0;
        REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
        died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!died) CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        const char *latest = eg_checkpoint_latest(numbered);
        REQUIRE(latest != NULL);
        int64_t now = value_of(latest);
        CHECK(now == value || now == value + 1);
        if (!died) CHECK(now == value + 1);
        value = now;
    }
    CHECK(n > 10);
}
TEST(saves_that_die) { sweep("kill/k"); }
TEST(saves_of_npz_that_die) { sweep("kill/z.npz"); }
// One file written over and over: the old one or the new one stands there, whole.
TEST(a_file_replaced) {
    const char *path = test_temp("one.npy");
    char name[5000];
    snprintf(name, sizeof name, "%s", path);
    CHECK(eg_save_npy(eg_full(EG_FLOAT32, EG_SHAPE(3000), 0), name));
    int64_t n = 0;
    for (bool died = true; died && n < 100;) {
        EG_SCOPE;
        fflush(stdout);
        pid_t child = fork();
        n++;
        if (child == 0) {
            eg_set_device("cpu:0");
            steps = 0;
            last = n;
            _Exit(eg_save_npy(eg_full(EG_FLOAT32, EG_SHAPE(3000), (double)n), name) ? 0 : 1);
        }
        int status = 0;
        REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
        died = WIFSIGNALED(status);
        eg_tensor *x = eg_load_npy(name);
        CHECK(x != NULL);
        double first = x ? eg_item(eg_index(x, 0)) : -1, sum = eg_item(eg_reduce_sum(x));
        CHECK(sum == 3000 * first);
        if (!died) CHECK(first == (double)n);
    }
    CHECK(n > 6);
}
#endif
