// A save that dies: a copy of the library of this file's own calls a_step() before each of a save's system calls, and
// the n-th step is the last for every n. What was there before must load afterwards, and be found as the latest. And
// a restore whose file is shortened: a_step() stands before each value that is read into its variable, too.
#undef EAGER_CUDA              // this copy of the library knows no GPU
#undef TEST_CUDA
#undef TEST_CUDA_HOST
#include <stdio.h>
static void a_step(void);
#define EGI_FILE_STEP() a_step()
#define EGI_LATER_FROM 16      // small tensors are read as large ones are
#define EAGER_STATIC
#define EAGER_IMPLEMENTATION
#include "test.h"

#ifndef __linux__
static void a_step(void) {}
TEST(saves_that_die) { SKIP("fork is used"); }
#else
#include <sys/wait.h>

static int64_t steps, last = -1;
static const char *shortened;                                  // the file that the last step shortens; NULL: it kills
static void a_step(void) {
    if (++steps != last) return;
    if (!shortened) raise(SIGKILL);
    FILE *f = fopen(shortened, "wb");                          // the same file, of no length
    if (f) fclose(f);
}

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

enum { CUT = 5, CUT_SIZE = 10000 };
typedef struct cut { eg_tensor *v[CUT + 1]; eg_optimizer *adam; eg_checkpoint *c; int n; int64_t number; } cut;
// Variables that are read by way of other memory, and with `large` one more, which is too large for that.
static void cut_begin(cut *t, bool large, double value) {
    memset(t, 0, sizeof *t);
    t->adam = eg_adam();
    t->c = eg_checkpoint_new();
    t->n = CUT + large;
    t->number = (int64_t)value;
    CHECK(eg_checkpoint_track_number(t->c, "number", &t->number));
    for (int i = 0; i < t->n; i++) {
        char name[8] = { (char)('a' + i) };
        t->v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(i < CUT ? CUT_SIZE : 20 * CUT_SIZE), value), name);
        CHECK(eg_checkpoint_track(t->c, name, t->v[i]));
    }
    CHECK(eg_checkpoint_track_optimizer(t->c, "adam", t->adam));
}
static void cut_end(cut *t) {
    eg_checkpoint_release(t->c);
    eg_optimizer_release(t->adam);
    for (int i = 0; i < t->n; i++) eg_release(t->v[i]);
}
static bool all_are(eg_tensor *x, double value) {
    return eg_item(eg_reduce_min(x)) == value && eg_item(eg_reduce_max(x)) == value;
}
static void shorten(const char *prefix, bool large) {
    int failures = 0;
    for (int64_t n = 1;; n++) {
        EG_SCOPE;
        cut from, to;
        char path[5000], says[64];
        cut_begin(&from, large, 7);
        eg_tensor *g[CUT + 1];
        for (int i = 0; i < from.n; i++) g[i] = eg_zeros(EG_FLOAT32, eg_shape_of(from.v[i]));
        CHECK(eg_apply_gradients(from.adam, g, from.v, from.n));                      // makes slots
        for (int i = 0; i < from.n; i++) eg_assign(from.v[i], eg_full(EG_FLOAT32, eg_shape_of(g[i]), 7));
        const char *saved = eg_checkpoint_save(from.c, prefix);
        REQUIRE(saved != NULL);
        snprintf(path, sizeof path, "%s", saved);
        cut_begin(&to, large, 3);
        int64_t before = eg_memory().live_tensors;
        steps = 0;
        last = n;
        shortened = path;
        bool ok = eg_checkpoint_restore(to.c, path), read = steps >= n;
        int64_t after = eg_memory().live_tensors;
        last = -1;
        shortened = NULL;
        // the steps before the cut were of whole variables; the order is that of tracking, slots behind
        for (int i = 0; i < to.n; i++) {
            bool fresh = ok || i < n - 1;
            CHECK(all_are(to.v[i], fresh ? 7 : 3) || (i == CUT && i == n - 1));
        }
        CHECK_INT(to.number, ok ? 7 : 3);
        CHECK(ok != read);
        if (!ok) {
            failures++;
            int64_t all = 3 * (int64_t)to.n + 2;
            snprintf(says, sizeof says, ": %lld of %lld variables", (long long)n - 1, (long long)all);
            CHECK_INT(eg_error(), EG_ERROR_FILE);
            CHECK_CONTAINS(eg_error_message(), "eg_checkpoint_restore: ");
            CHECK_CONTAINS(eg_error_message(), "truncated: the file ends too early, in tensor '");
            CHECK_CONTAINS(eg_error_message(), says);
            eg_error_clear();
            CHECK_INT(eg_optimizer_state(to.adam, NULL, 0), 2);
            CHECK_INT(after, before);
            const char *again = eg_checkpoint_save(from.c, prefix);
            CHECK(again && eg_checkpoint_restore(to.c, again) && eg_checkpoint_assert_consumed(to.c));
            for (int i = 0; i < to.n; i++) CHECK(all_are(to.v[i], 7));
        }
        cut_end(&from);
        cut_end(&to);
        if (ok || test_fails > 5) break;
    }
    CHECK_INT(failures, 3 * (CUT + large));
}
TEST(a_file_shortened_while_it_is_restored) {
    if (!test_on_host) SKIP("values come to a device by way of other memory");
    shorten(test_temp("cut/c"), false);
    shorten(test_temp("cut/l"), true);
    shorten(test_temp("cut/z.npz"), true);
}
#endif
