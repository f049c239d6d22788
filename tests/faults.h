// tests/faults.h: out of memory at every allocation, for the tests of every chapter. `faults_sweep(act)` runs act with
// its 1st, 2nd, ... n-th allocation failing until it gets through. Each failure must be a clean EG_ERROR_MEMORY, and
// nothing may be left allocated at the end.
#ifndef FAULTS_H
#define FAULTS_H
#include "test.h"
#include <limits.h>

// The allocator: from call number `at` on, `in_a_row` calls fail (once is not enough: the library trims and tries
// again). Threads may call it.
enum { FAULTS_TWICE = 2, FAULTS_FOR_EVER = INT_MAX };
static struct { int64_t count, at, live; int in_a_row; bool on, failed; } faults;

static void *faults_allocate(size_t size, void *user) {
    (void)user;
    int64_t past = __atomic_load_n(&faults.on, __ATOMIC_ACQUIRE)
                   ? __atomic_add_fetch(&faults.count, 1, __ATOMIC_RELAXED) - faults.at : -1;
    if (past >= 0 && past < faults.in_a_row) {
        __atomic_store_n(&faults.failed, true, __ATOMIC_RELAXED);
        return NULL;
    }
    void *p = malloc(size);
    if (p) __atomic_fetch_add(&faults.live, 1, __ATOMIC_RELAXED);
    return p;
}
static void faults_free(void *p, void *user) {
    (void)user;
    __atomic_fetch_sub(&faults.live, 1, __ATOMIC_RELAXED);
    free(p);
}
static inline void faults_start(int64_t at, int in_a_row) {
    faults.count = 0;
    faults.at = at;
    faults.in_a_row = in_a_row;
    faults.failed = false;
    __atomic_store_n(&faults.on, true, __ATOMIC_RELEASE);
}
static inline void faults_stop(void) { __atomic_store_n(&faults.on, false, __ATOMIC_RELEASE); }
// Behind an act that began with so many live tensors: where no allocation failed it got through, else it may have
// failed, cleanly.
static inline void faults_judge(bool ok, int64_t tensors) {
    if (faults.failed && !ok) CHECK_INT(eg_error(), EG_ERROR_MEMORY);
    if (!faults.failed) CHECK(ok);
    eg_error_clear();
    CHECK_INT(eg_memory().live_tensors, tensors);
}
// Beyond the first ones, one allocation of so many fails; where branches are counted, more of them if the file says so.
#ifdef TEST_COVERED
#define FAULTS_STEP(n) 1  // one of n fails under sanitizers and valgrind; where branches are counted, each
#else
#define FAULTS_STEP(n) (test_share > 1 ? (n) : 1)
#endif
#if defined(TEST_COVERED) && defined(FAULTS_DENSE)
enum { faults_stride = 2 };
#else
enum { faults_stride = test_share > 1 ? 13 : 3 };
#endif

#ifdef TEST_GUARD
// The same where the device fails for good, at its 1st, 2nd, ... n-th kernel or copy: an error of the device, and
// nothing left behind.
static inline void faults_of_the_device(bool (*act)(void)) {
    bool through = false;
    for (int64_t n = 0; !through && n < 100000; n += n < 40 ? 1 : faults_stride) {
        EG_SCOPE;
        int64_t tensors = eg_memory().live_tensors;
        eg_scope scope = eg_scope_begin();
        guard_works = n;
        bool right = act();
        through = guard_works > 0;
        guard_works = -1;
        CHECK_INT(eg_error(), right ? EG_OK : EG_ERROR_DEVICE);
        CHECK(right || !through);
        eg_error_clear();
        eg_scope_end(scope);
        CHECK_INT(eg_memory().live_tensors, tensors);
    }
    CHECK(through);
}
#endif
static inline void faults_sweep(bool (*act)(void)) {
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    for (int once = 0; once < 2; once++) {
        bool through = false;
        for (int64_t n = 1; !through && n < 100000; n += n < 40 ? 1 : faults_stride) {
            EG_SCOPE;
            int64_t tensors = eg_memory().live_tensors;
            eg_scope scope = eg_scope_begin();
            eg_memory_trim();
            faults_start(n, once ? FAULTS_TWICE : FAULTS_FOR_EVER);
            bool right = act();
            faults_stop();
            through = !faults.failed;
            if (right) CHECK_INT(eg_error(), EG_OK);
            else CHECK_INT(eg_error(), EG_ERROR_MEMORY);
            CHECK(right || !through);
            if (eg_error() != EG_OK) CHECK_CONTAINS(eg_error_message(), "out of memory");
            eg_error_clear();
            eg_scope_end(scope);
            CHECK_INT(eg_memory().live_tensors, tensors);
        }
        CHECK(through);
    }
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
#ifdef TEST_GUARD
    faults_of_the_device(act);
#endif
}
#endif
