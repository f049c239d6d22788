// How many threads a process takes by itself: EAGER_NUM_THREADS, the processors that it may run on, and the quotas of
// control groups of both versions, read from files of the test's own by a copy of the library. How those threads share
// the parts of a kernel.
#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#undef EAGER_CUDA
#undef TEST_CUDA                     // the GPUs belong to the library, not to this copy
#undef TEST_CUDA_HOST
#define EGI_SYSTEM_ROOT "system"     // a folder in the current one
#define EAGER_STATIC
#define EAGER_IMPLEMENTATION
#include "test.h"

#if defined(EAGER_NO_THREADS) || defined(EAGER_NO_STDIO) || !defined(__linux__)
TEST(limits) { SKIP("compiled with EAGER_NO_THREADS or EAGER_NO_STDIO, or a system without /proc"); }
#else
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

// Writes a file below the root, with the folders that lead to it; NULL: there is none.
static const char *written[32];
static int files;
static void put(const char *name, const char *text) {
    char path[4096] = EGI_SYSTEM_ROOT;
    REQUIRE(files < 32 && strlen(name) < sizeof path - sizeof EGI_SYSTEM_ROOT);
    strcat(path, name);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "wb");
    REQUIRE(f);
    CHECK(fputs(text, f) >= 0 && fclose(f) == 0);
    written[files++] = name;
}
// The threads that a process with these files takes; the files are gone afterwards.
static int threads(void) {
    bool asked;
    const int got = egi_team_ask(&asked);
    while (files > 0) {
        char path[4096] = EGI_SYSTEM_ROOT;
        CHECK(unlink(strcat(path, written[--files])) == 0);
    }
    return got;
}
static void put_processors(const char *list) {
    char text[256];
    snprintf(text, sizeof text, "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems_allowed:\t1\n", list);
    put("/proc/self/status", text);
}
static void begin(void) {
    static bool there;
    unsetenv("EAGER_NUM_THREADS");
    if (!there) REQUIRE(chdir(test_temp("")) == 0);
    there = true;
}

TEST(processors) {
    begin();
    CHECK_INT(threads(), 1);                                      // no file at all
    const struct { const char *list; int count; } lists[] = {
        { "0-7", 8 }, { "3", 1 }, { "0-1,4-5,9", 5 }, { "0,2", 2 }, { "0-4095", EGI_TEAM_THREADS }, { "", 1 },
        { "x", 1 }, { "7-3", 1 }, { "1,x", 1 }, { "0-2,", 3 } };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        put_processors(lists[i].list);
        CHECK_INT(threads(), lists[i].count);
    }
}
TEST(an_environment_variable) {
    begin();
    const struct { const char *value; int count; } values[] = {
        { "3", 3 }, { "0", 2 }, { "", 2 }, { " 3", 3 }, { "64", EGI_TEAM_THREADS }, { "65", 2 }, { "100000", 2 },
        { "-1", 2 }, { "many", 2 }, { "-4294967295", 2 }, { "3x", 2 }, { "3.5", 2 }, { "1e9", 2 }, { "3 ", 2 },
        { " ", 2 }, { "99999999999999999999", 2 } };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        put_processors("0-7");
        put("/proc/self/cgroup", "0::/\n");
        put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
        setenv("EAGER_NUM_THREADS", values[i].value, 1);
        if (i == 5) {                                             // the first that is wrong; it is said once
            bool set = true;
            CHECK_ERROR(set = eg_set_num_threads(0), EG_ERROR_ARGUMENT,
                        "EAGER_NUM_THREADS: '65' is not from 0 to 64");
            CHECK(!set);
            CHECK_INT(eg_num_threads(), values[i].count);
            CHECK(eg_set_num_threads(0));
        }
        CHECK_INT(threads(), values[i].count);
        CHECK_INT(eg_error(), EG_OK);
    }
    unsetenv("EAGER_NUM_THREADS");
}
// What cpu.max of the group itself says, on a machine of eight processors.
TEST(groups_of_the_second_version) {
    begin();
    const struct { const char *max; int count; } quotas[] = {
        { "max 100000\n", 8 }, { "max\n", 8 }, { "100000 100000\n", 1 }, { "300000 100000\n", 3 },
        { "350000 100000\n", 3 }, { "150000 100000\n", 1 }, { "50000 100000\n", 1 }, { "1000 100000\n", 1 },
        { "100000 50000\n", 2 }, { "800000 100000\n", 8 }, { "6400000 100000\n", 8 }, { "400000 100000", 4 },
        // what no kernel writes limits nothing
        { "", 8 }, { "\n", 8 }, { "100000\n", 8 }, { "100000 0\n", 8 }, { "0 100000\n", 8 }, { "-1 100000\n", 8 },
        { "100000 -1\n", 8 }, { "two 100000\n", 8 }, { "100000 max\n", 8 }, { "nan nan\n", 8 }, { "inf 1\n", 8 } };
    for (size_t i = 0; i < sizeof quotas / sizeof *quotas; i++)
        for (int nested = 0; nested < 3; nested++) {
            put_processors("0-7");
            put("/proc/self/cgroup", nested ? "0::/user.slice/user-0.slice\n" : "0::/\n");
            put(nested == 2 ? "/sys/fs/cgroup/user.slice/user-0.slice/cpu.max"                 // of the group itself,
                : nested ? "/sys/fs/cgroup/user.slice/cpu.max" : "/sys/fs/cgroup/cpu.max",     // of one around it
                quotas[i].max);
            if (nested) put("/sys/fs/cgroup/cpu.max", "max 100000\n");
            CHECK_INT(threads(), quotas[i].count);
        }
}
// All groups around a process limit it, and the least of their quotas counts.
TEST(groups_in_groups) {
    begin();
    const struct { const char *inner, *middle, *outer; int count; } quotas[] = {
        { "max 100000\n", "max 100000\n", "max 100000\n", 8 },
        { "max 100000\n", "300000 100000\n", "500000 100000\n", 3 },
        { "200000 100000\n", "300000 100000\n", "max 100000\n", 2 },
        { "700000 100000\n", "max 100000\n", "6 1\n", 6 },
        { "junk\n", "500000 100000\n", "max 100000\n", 5 } };
    for (size_t i = 0; i < sizeof quotas / sizeof *quotas; i++) {
        put_processors("0-7");
        put("/proc/self/cgroup", "0::/a/b/c\n");
        put("/sys/fs/cgroup/a/b/c/cpu.max", quotas[i].inner);
        put("/sys/fs/cgroup/a/b/cpu.max", quotas[i].middle);
        put("/sys/fs/cgroup/a/cpu.max", quotas[i].outer);
        CHECK_INT(threads(), quotas[i].count);
    }
    // A container sees the path that its group has outside, and its own files at the root.
    put_processors("0-7");
    put("/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_INT(threads(), 2);
    // A group with a long path: what is read of it ends within a name, and the groups around it are found all the same.
    char line[600];
    memcpy(line, "0::/a/", 6);
    memset(line + 6, 'b', sizeof line - 6);
    line[sizeof line - 1] = 0;
    put_processors("0-7");
    put("/proc/self/cgroup", line);
    put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    CHECK_INT(threads(), 3);
}
TEST(groups_of_the_first_version) {
    begin();
    const struct { const char *quota, *period; int count; } quotas[] = {
        { "-1\n", "100000\n", 8 }, { "100000\n", "100000\n", 1 }, { "250000\n", "100000\n", 2 },
        { "400000\n", "100000\n", 4 }, { "50000\n", "100000\n", 1 }, { "150000\n", "50000\n", 3 },
        { "9900000\n", "100000\n", 8 }, { "0\n", "100000\n", 8 }, { "100000\n", "0\n", 8 }, { "junk\n", "100000\n", 8 },
        { "100000\n", "junk\n", 8 },
        { "100000\n", NULL, 8 }, { NULL, "100000\n", 8 } };
    for (size_t i = 0; i < sizeof quotas / sizeof *quotas; i++)
        for (int nested = 0; nested < 3; nested++) {
            put_processors("0-7");
            // The root of a container, or one group in another; the controllers stand in any order.
            static const char *const names[][2] = {
                { "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us" },
                { "/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us" },
                { "/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_period_us" } };
            if (nested) put("/proc/self/cgroup", "12:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/ab\n0::/\n");
            if (quotas[i].quota) put(names[nested][0], quotas[i].quota);
            if (quotas[i].period) put(names[nested][1], quotas[i].period);
            CHECK_INT(threads(), quotas[i].count);
        }
    // Controllers of other names, a group whose path looks like one, and lines that say nothing.
    put_processors("0-7");
    put("/proc/self/cgroup", "5:cpuset:/a\n6:memory:/a,cpu,b\nno line\n7:\n:\n\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    CHECK_INT(threads(), 8);
    // cpu may have a line of its own; cpuacct may come first.
    put_processors("0-7");
    put("/proc/self/cgroup", "5:cpu:/a\n4:cpuacct:/a\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    CHECK_INT(threads(), 2);
    // Both versions may be there at once, and both count.
    put_processors("0-7");
    put("/proc/self/cgroup", "4:cpuacct,cpu:/a\n0::/b\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "500000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/b/cpu.max", "300000 100000\n");
    CHECK_INT(threads(), 3);
}

// ---- shares: each part runs once, also those of a thread that is held up; a thread begins with its own share

enum { UNITS = 700 };
typedef struct parts_seen {
    int ran[UNITS], finished, begun;    // how often each unit ran; how many have; workers that began
    int64_t first[EGI_TEAM_THREADS];    // where each thread's first part began; -1: it took none
    bool hold, whole;                   // thread 1 waits in its first part for all others' units; it was not divided
} parts_seen;
static void wait_until(const int *count, int value) {
    const double until = egi_clock_now() + 10;
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < value && egi_clock_now() < until) {}
}
static void see_part(void *context, int64_t begin, int64_t end) {
    parts_seen *p = (parts_seen *)context;
    const int slot = egi_this.slot;
    if (begin == 0 && end == UNITS) p->whole = true;
    else if (p->first[slot] < 0) {
        p->first[slot] = begin;
        if (slot) __atomic_add_fetch(&p->begun, 1, __ATOMIC_ACQ_REL);
        if (!slot && p->hold) wait_until(&p->begun, 1);
        if (slot == 1 && p->hold) wait_until(&p->finished, UNITS - (int)(end - begin));
    }
    for (int64_t i = begin; i < end; i++) __atomic_add_fetch(&p->ran[i], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&p->finished, (int)(end - begin), __ATOMIC_ACQ_REL);
}
static parts_seen see_parts(bool hold, double cost) {
    parts_seen p;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < EGI_TEAM_THREADS; i++) p.first[i] = -1;
    p.hold = hold;
    egi_parallel(UNITS, cost, see_part, &p);
    int once = 0;
    for (int i = 0; i < UNITS; i++) once += p.ran[i] == 1;
    CHECK_INT(once, UNITS);
    return p;
}
TEST(every_part_runs_once) {
    const int counts[] = {2, 3, 7, 64};
    for (int k = 0; k < 4; k++) {
        CHECK(eg_set_num_threads(counts[k]));
        for (int i = 0; i < 300; i++) see_parts(false, 1e7);
    }
    CHECK(eg_set_num_threads(0));
}
TEST(a_thread_begins_with_its_share_and_others_take_the_rest) {
    CHECK(eg_set_num_threads(2));
    int divided = 0;
    for (const double until = egi_clock_now() + 20; divided < 20 && egi_clock_now() < until; ) {
        // Asleep, it is sure to be done with the job before; a thread that still looks for parts of that one in the
        // caller's share, as it is filled again, takes one from there.
        for (const double end = egi_clock_now() + 1; egi_clock_now() < end; )
            if (__atomic_load_n(&egi_team.sleeping, __ATOMIC_SEQ_CST) ==
                __atomic_load_n(&egi_team.made, __ATOMIC_SEQ_CST)) break;
        const parts_seen p = see_parts(true, 1e7);
        if (p.whole) continue;                      // after a long wait nothing is divided for a while
        divided++;
        CHECK_INT(p.first[0], 0);
        CHECK_INT(p.first[1], UNITS / 2);
    }
    CHECK(divided > 0);
    CHECK(eg_set_num_threads(0));
}
// What a part finds on its thread: the caller's rounding, and on a thread of the team all signals blocked and a small
// stack.
#ifndef _GNU_SOURCE
int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes);
#endif
typedef struct thread_seen { int parts, other_control, signals, stacks; unsigned control; } thread_seen;
static size_t stack_of_this_thread(void) {
    pthread_attr_t attributes;
    size_t stack = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
    return stack;
}
static void see_thread(void *context, int64_t begin, int64_t end) {
    thread_seen *seen = (thread_seen *)context;
    if (begin == 0 && end == UNITS) return;                                     // it is not divided
    if ((egi_float_control() & ~63u) != seen->control) __atomic_add_fetch(&seen->other_control, 1, __ATOMIC_RELAXED);
    if (!egi_this.slot) { wait_until(&seen->parts, 1); return; }
    sigset_t blocked;
    if (pthread_sigmask(SIG_SETMASK, NULL, &blocked) != 0 || sigismember(&blocked, SIGINT) != 1 ||
        sigismember(&blocked, SIGTERM) != 1 || sigismember(&blocked, SIGALRM) != 1)
        __atomic_add_fetch(&seen->signals, 1, __ATOMIC_RELAXED);
    if (stack_of_this_thread() != EGI_TEAM_STACK) __atomic_add_fetch(&seen->stacks, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&seen->parts, 1, __ATOMIC_RELEASE);
}
TEST(threads_of_the_team_round_as_their_caller_and_hear_no_signals) {
    const unsigned was = egi_float_control();
#if EGI_X86
    const unsigned controls[] = { was, was | 0x8040u, was | 0x2000u };          // denormals are zero; rounded down
#else
    const unsigned controls[] = { was };
#endif
    const int counts[] = {2, 3, 7};
    int parts = 0;
    for (int k = 0; k < 3; k++) {
        CHECK(eg_set_num_threads(counts[k]));
        for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
            thread_seen seen;
            memset(&seen, 0, sizeof seen);
            egi_float_control_set(controls[i]);
            seen.control = controls[i] & ~63u;                                  // without what has been rounded so far
            egi_team.rest = 0;                              // whatever the tests before had to wait for
            egi_parallel(UNITS, 1e7, see_thread, &seen);
            const unsigned after = egi_float_control() & ~63u;
            egi_float_control_set(was);
            CHECK(after == seen.control);
            CHECK_INT(seen.other_control, 0);
            CHECK_INT(seen.signals, 0);
#ifndef TEST_SLOW                       // a sanitizer gives threads larger stacks
            CHECK_INT(seen.stacks, 0);
#endif
            parts += seen.parts;
        }
    }
    CHECK(parts > 0);
    CHECK(eg_set_num_threads(0));
}
#ifdef PTHREAD_CANCEL_DISABLE
// The caller's part waits for the other thread's, which lasts so long that the caller has to sleep for its end.
static void see_long_part(void *context, int64_t begin, int64_t end) {
    see_part(context, begin, end);
    for (const double until = egi_clock_now() + 0.01; egi_this.slot && egi_clock_now() < until; ) {}
}
typedef struct cancelled { bool team, done; } cancelled;
static void *cancel_itself(void *argument) {
    cancelled *c = (cancelled *)argument;
    parts_seen p;
    memset(&p, 0, sizeof p);
    p.hold = true;
    for (int i = 0; i < EGI_TEAM_THREADS; i++) p.first[i] = -1;
    pthread_cancel(pthread_self());
    if (c->team) egi_parallel(UNITS, 1e7, see_long_part, &p);
    else eg_set_num_threads(3);
    c->done = true;
    pthread_testcancel();
    return NULL;
}
// Else the team would stay taken, and whatever waits for it would never end.
TEST(a_cancelled_thread_ends_after_its_kernel) {
#ifdef __SANITIZE_ADDRESS__
    SKIP("a thread that is cancelled leaves the sanitizer's marks of its frames on the stack");
#endif
    CHECK(eg_set_num_threads(2));
    for (int i = 0; i < 10; i++) {
        cancelled c = { i < 9, false };
        pthread_t thread;
        void *result;
        see_parts(false, 1e7);
        egi_team.rest = 0;
        REQUIRE(pthread_create(&thread, NULL, cancel_itself, &c) == 0);
        pthread_join(thread, &result);
        CHECK(c.done);
        CHECK(result == PTHREAD_CANCELED);
        REQUIRE(!egi_team.busy);
    }
    CHECK(eg_set_num_threads(0));
}
#endif
TEST(a_long_kernel_of_short_steps_wakes_threads) {
    CHECK(egi_step_cost(9e4, 2.5e5) >= EGI_TEAM_WAKE);
    CHECK(egi_step_cost(9e4, 9.5e4) < EGI_TEAM_WAKE);
    CHECK(egi_step_cost(1e3, 2.5e5) < EGI_TEAM_LEAST);
    CHECK(egi_step_cost(2e5, 2.5e5) > 1.9e5 && egi_step_cost(9e4, 0) < EGI_TEAM_LEAST);
}
// Its partial results would take too much memory, so what is divided are its columns.
static void gradient_is_divided(eg_shape x, eg_shape filter) {
    EG_SCOPE;
    eg_tensor *f = eg_ones(EG_FLOAT32, filter), *df;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, f);
    eg_tensor *y = eg_conv2d(eg_ones(EG_FLOAT32, x), f, .padding = EG_SAME);
    REQUIRE(y);
    eg_tensor *g = eg_ones(EG_FLOAT32, eg_shape_of(y));
    const uint64_t before = egi_team.jobs;
    egi_team.rest = 0;                  // a busy processor would put it off
    REQUIRE(eg_tape_gradients_from(tape, &y, 1, &g, &f, 1, &df));
    CHECK(egi_team.jobs > before);
}
TEST(the_gradient_of_a_large_filter_is_divided) {
    REQUIRE(eg_set_num_threads(2));
    gradient_is_divided((eg_shape){4, {2, 8, 8, 256}}, (eg_shape){4, {3, 3, 256, 272}});
    gradient_is_divided((eg_shape){4, {2, 8, 8, 768}}, (eg_shape){4, {1, 1, 768, 800}});
    REQUIRE(eg_set_num_threads(0));
}
// What no part would be worth a thread that sleeps is so as a whole.
static void product_is_divided(eg_shape a, eg_shape b) {
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, a), *y = eg_ones(EG_FLOAT32, b);
    REQUIRE(eg_set_num_threads(2));     // which ends those that spin
    const uint64_t before = egi_team.jobs;
    egi_team.rest = 0;
    REQUIRE(eg_matmul(x, y));
    CHECK(egi_team.jobs > before);
}
TEST(many_small_products_and_a_long_one_are_divided) {
    product_is_divided((eg_shape){3, {10000, 3, 3}}, (eg_shape){3, {10000, 3, 3}});
    product_is_divided((eg_shape){3, {3000, 8, 8}}, (eg_shape){3, {3000, 8, 8}});
    product_is_divided((eg_shape){3, {1000, 1, 1000}}, (eg_shape){3, {1000, 1000, 1}});
    product_is_divided((eg_shape){2, {1, 1000000}}, (eg_shape){2, {1000000, 1}});
    REQUIRE(eg_set_num_threads(0));
}
TEST(updates_of_many_variables_are_divided) {
    enum { N = 50 };
    eg_tensor *w[N], *g[N];
    eg_optimizer *opt = eg_adam(.learning_rate = 1e-3);
    for (int i = 0; i < N; i++) w[i] = eg_variable(g[i] = eg_ones(EG_FLOAT32, EG_SHAPE(100, 100)), "w");
    CHECK(eg_apply_gradients(opt, g, w, N));                        // which makes the slots
    REQUIRE(eg_set_num_threads(2));
    const uint64_t before = egi_team.jobs;
    egi_team.rest = 0;
    CHECK(eg_apply_gradients(opt, g, w, N));
    CHECK(egi_team.jobs > before);
    for (int i = 0; i < N; i++) eg_release(w[i]);
    eg_optimizer_release(opt);
    REQUIRE(eg_set_num_threads(0));
}
#endif
