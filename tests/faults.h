// tests/faults.h: out of memory at every allocation, for tests of one chapter (tests/allocation.c does it for the core).
// `faults_sweep(act)` runs act with its 1st, 2nd, ... n-th allocation failing until it gets through. Each failure must be a clean
// EG_ERROR_MEMORY, and nothing may be left allocated at the end.
#ifndef FAULTS_H
#define FAULTS_H
#include "test.h"

static struct { int64_t count, at; bool on, once, failed; } faults;

static void *faults_allocate(size_t size, void *user) {
    (void)user;
    if (faults.on && ++faults.count >= faults.at && (!faults.once || faults.count <= faults.at + 1)) {      // the library trims and tries again
        faults.failed = true;
        return NULL;
    }
    return malloc(size);
}
static void faults_free(void *p, void *user) {
    (void)user;
    free(p);
}
static inline void faults_sweep(bool (*act)(void)) {
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    for (int once = 0; once < 2; once++) {
        bool through = false;
        for (int64_t n = 1; !through && n < 100000; n += n < 40 ? 1 : test_share > 1 ? 13 : 3) {
            EG_SCOPE;
            int64_t tensors = eg_memory().live_tensors;
            eg_scope scope = eg_scope_begin();
            eg_memory_trim();
            faults.count = 0;
            faults.at = n;
            faults.once = once;
            faults.failed = false;
            faults.on = true;
            bool right = act();
            faults.on = false;
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
}
#endif
