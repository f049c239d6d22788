// tests/test.h: the test harness. One file a chapter, each a program of its own:
//
//     #include "test.h"
//     TEST(add_broadcasts) {
//         eg_tensor *x = eg_constant(EG_SHAPE(2, 1), 1, 2);
//         CHECK_TENSOR(eg_add(x, 1), 0, 2, 3);
//         CHECK_ERROR(eg_matmul(x, x), EG_ERROR_SHAPE, "inner dimensions differ");
//     }
//
// A failed check prints where it stands, what was expected and what came, and the test goes on (REQUIRE leaves it).
// Each test runs in a scope of its own; afterwards no error may be pending and no tensor more alive than before. With
// TEST_GUARD the tests run on the device of guard.h, with TEST_CUDA on gpu:0 (TEST_CUDA_HOST: what cuda_host/ makes of
// it): test_device() is the name of the device that threads should set.
// Arguments: only tests whose names contain one of them run; --list names them all.
#ifndef TEST_H
#define TEST_H

#if defined(TEST_GUARD) && !defined(EAGER_BACKEND)
#define EAGER_BACKEND
#endif
#include "eager.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TEST_GUARD
#define TEST_DEVICE
#include "guard.h"
enum { test_on_host = 0, test_on_cuda = 0 };
static inline const char *test_device(void) { return "guard:0"; }
#elif defined(TEST_CUDA)
#define TEST_DEVICE
enum { test_on_host = 0, test_on_cuda = 1 };
static inline const char *test_device(void) { return "gpu:0"; }
#ifdef TEST_CUDA_HOST
extern int64_t cuda_host_malloc_fail_at;                // tests/gpu/cuda_host/cuda_runtime.h says what they are
extern int cuda_host_malloc_fails;
#endif
#else
enum { test_on_host = 1, test_on_cuda = 0 };          // the host can read what tests make
static inline const char *test_device(void) { return "cpu:0"; }
#endif

typedef struct test_case {
    const char *name, *file;
    void (*run)(void);
    struct test_case *next;
} test_case;

static test_case *test_first, **test_last = &test_first;
static const test_case *test_now;                    // the test that runs
static int test_fails;                               // its failed checks so far
static const char *test_skip_reason;                 // not NULL once it said SKIP

static const char *test_program;                     // its path, for tests that run it again
// Tests that repeat do so this much less under sanitizers and valgrind (TEST_SLOW), and where another configuration has
// run the same kernels at all sizes (TEST_AGAIN).
#if defined(TEST_SLOW) || defined(TEST_AGAIN)
enum { test_share = 20 };
#else
enum { test_share = 1 };
#endif

// Seconds for a test that trains for long: all it wants where EAGER_LONG is set (CI does so for one configuration),
// else a few, or one.
static inline double test_patience(void) { return getenv("EAGER_LONG") ? 600 : test_share > 1 ? 1 : 4; }

static inline void test_register(test_case *t) { *test_last = t; test_last = &t->next; }

#define TEST(name)                                                                                                    \
    static void test_body_##name(void);                                                                               \
    static test_case test_case_##name = {#name, __FILE__, test_body_##name, NULL};                                    \
    __attribute__((constructor)) static void test_register_##name(void) { test_register(&test_case_##name); }        \
    static void test_body_##name(void)

#define SKIP(why)                    do { test_skip_reason = (why); return; } while (0)
#define CHECK(cond)                  do { if (!(cond)) test_say(__FILE__, __LINE__, #cond, "is false"); } while (0)
#define REQUIRE(cond) \
    do { if (!(cond)) { test_say(__FILE__, __LINE__, #cond, "is false"); return; } } while (0)
#define CHECK_INT(got, want)         test_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
#define CHECK_NEAR(got, want, tol)   test_near(__FILE__, __LINE__, #got, (double)(got), (double)(want), (double)(tol))
#define CHECK_STR(got, want)         test_str(__FILE__, __LINE__, #got, got, want)
#define CHECK_CONTAINS(got, part)    test_contains(__FILE__, __LINE__, #got, got, part)

// All elements of a tensor in row-major order, each within tol * max(1, |expected|); NaN equals NaN.
#define CHECK_TENSOR(x, tol, ...)                                                                                     \
    do {                                                                                                              \
        const double test_want[] = {__VA_ARGS__};                                                                     \
        test_values(__FILE__, __LINE__, #x, x, (double)(tol), test_want, \
                    (int64_t)(sizeof test_want / sizeof *test_want)); \
    } while (0)
#define CHECK_VALUES(x, tol, want, n) test_values(__FILE__, __LINE__, #x, x, (double)(tol), want, n)
#define CHECK_SAME(x, y, tol)        test_same(__FILE__, __LINE__, #x, x, y, (double)(tol))
#define CHECK_DTYPE(x, dtype)        CHECK_STR((x) ? eg_dtype_name(eg_dtype_of(x)) : NULL, eg_dtype_name(dtype))
#define CHECK_SHAPE(x, ...)          /* rank 0 is CHECK_INT(eg_rank(x), 0) */                                         \
    do {                                                                                                              \
        const int64_t test_dims[] = {__VA_ARGS__};                                                                    \
        test_shape(__FILE__, __LINE__, #x, x, test_dims, (int)(sizeof test_dims / sizeof *test_dims));                \
    } while (0)

// The expression raises exactly this error, with a message that holds the substring; the error is cleared.
#define CHECK_ERROR(expr, code, part)                                                                                 \
    do {                                                                                                              \
        test_before_error(__FILE__, __LINE__, #expr);                                                                 \
        (void)(expr);                                                                                                 \
        test_error(__FILE__, __LINE__, #expr, (int)(code), #code, part);                                              \
    } while (0)

// An op that the NaN trap catches: a GPU goes on, and says so when it is waited for.
#define CHECK_TRAPPED(expr, part)    CHECK_ERROR(((void)(expr), eg_synchronize()), EG_ERROR_NONFINITE, part)
#ifdef TEST_CUDA
enum { test_traps_later = 1 };
#else
enum { test_traps_later = 0 };
#endif

// ---- what the checks call -----------------------------------------------------------------------------------------

// Counts a failed check; true while its details are still worth printing.
static inline bool test_fail(const char *file, int line, const char *what) {
    if (++test_fails > 10) return false;
    printf("%s:%d: in %s: %s\n", file, line, test_now->name, what);
    if (eg_error() != EG_OK) printf("    pending error: %s\n", eg_error_message());
    return true;
}

static inline void test_say(const char *file, int line, const char *what, const char *detail) {
    if (test_fail(file, line, what)) printf("    %s\n", detail);
}

static inline void test_int(const char *file, int line, const char *what, long long got, long long want) {
    if (got != want && test_fail(file, line, what)) printf("    expected %lld\n    got      %lld\n", want, got);
}

static inline bool test_close(double got, double want, double tol) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got)) return isinf(want) && isinf(got) && (want > 0) == (got > 0);
    return fabs(got - want) <= tol * fmax(1, fabs(want));
}

static inline void test_near(const char *file, int line, const char *what, double got, double want, double tol) {
    if (!test_close(got, want, tol) && test_fail(file, line, what))
        printf("    expected %.9g (within %g)\n    got      %.9g\n", want, tol, got);
}

static inline void test_str(const char *file, int line, const char *what, const char *got, const char *want) {
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    if (!same && test_fail(file, line, what))
        printf("    expected \"%s\"\n    got      \"%s\"\n", want ? want : "(null)", got ? got : "(null)");
}

static inline void test_contains(const char *file, int line, const char *what, const char *got, const char *part) {
    if (!(got && strstr(got, part)) && test_fail(file, line, what))
        printf("    expected \"...%s...\"\n    got      \"%s\"\n", part, got ? got : "(null)");
}

// The index of flat element i, as [1, 0, 2].
static inline void test_print_index(eg_tensor *x, int64_t i) {
    int64_t index[EG_MAX_RANK];
    int rank = eg_rank(x);
    for (int a = rank; a-- > 0;) {
        int64_t dim = eg_dim(x, a);
        index[a] = dim ? i % dim : 0;
        i = dim ? i / dim : 0;
    }
    printf("[");
    for (int a = 0; a < rank; a++) printf("%s%lld", a ? ", " : "", (long long)index[a]);
    printf("]");
}

static inline void test_values(const char *file, int line, const char *what, eg_tensor *x, double tol,
                               const double *want, int64_t n) {
    if (!x) { test_say(file, line, what, "is NULL"); return; }
    if (eg_size(x) != n) {
        if (test_fail(file, line, what))
            printf("    expected %lld elements\n    got      %lld\n", (long long)n, (long long)eg_size(x));
        return;
    }
    eg_scope scope = eg_scope_begin();
    const double *got = (const double *)eg_data(eg_cast(x, EG_FLOAT64));
    int64_t bad = 0, worst = 0;
    bool show = false;
    if (!got && n) test_say(file, line, what, "its values cannot be read");
    for (int64_t i = 0; got && i < n; i++) {
        if (test_close(got[i], want[i], tol)) continue;
        if (!bad++) { show = test_fail(file, line, what); worst = i; }
        if (!(fabs(got[i] - want[i]) <= fabs(got[worst] - want[worst]))) worst = i;
        if (!show || bad > 5) continue;
        printf("    at ");
        test_print_index(x, i);
        printf(" expected %.9g, got %.9g\n", want[i], got[i]);
    }
    if (show) {
        printf("    %lld of %lld differ; largest difference %.3g at ", (long long)bad, (long long)n,
               fabs(got[worst] - want[worst]));
        test_print_index(x, worst);
        printf(" (allowed: %g * max(1, |expected|))\n", tol);
    }
    eg_scope_end(scope);
}

static inline void test_shape(const char *file, int line, const char *what, eg_tensor *x, const int64_t *dims,
                              int rank) {
    if (!x) { test_say(file, line, what, "is NULL"); return; }
    bool same = eg_rank(x) == rank;
    for (int a = 0; same && a < rank; a++) same = eg_dim(x, a) == dims[a];
    if (same || !test_fail(file, line, what)) return;
    printf("    expected shape (");
    for (int a = 0; a < rank; a++) printf("%s%lld", a ? ", " : "", (long long)dims[a]);
    printf(")\n    got shape      (");
    for (int a = 0; a < eg_rank(x); a++) printf("%s%lld", a ? ", " : "", (long long)eg_dim(x, a));
    printf(")\n");
}

// Same dtype, same shape, and values within the tolerance.
static inline void test_same(const char *file, int line, const char *what, eg_tensor *x, eg_tensor *y, double tol) {
    if (!x || !y) { test_say(file, line, what, x ? "what it is compared with is NULL" : "is NULL"); return; }
    test_int(file, line, what, (long long)eg_dtype_of(x), (long long)eg_dtype_of(y));
    eg_scope scope = eg_scope_begin();
    int64_t dims[EG_MAX_RANK];
    for (int a = 0; a < eg_rank(y); a++) dims[a] = eg_dim(y, a);
    test_shape(file, line, what, x, dims, eg_rank(y));
    test_values(file, line, what, x, tol, (const double *)eg_data(eg_cast(y, EG_FLOAT64)), eg_size(y));
    eg_scope_end(scope);
}

static inline void test_before_error(const char *file, int line, const char *what) {
    if (eg_error() == EG_OK) return;
    test_say(file, line, what, "an error was pending before this call");
    eg_error_clear();
}

static inline void test_error(const char *file, int line, const char *what, int code, const char *name,
                              const char *part) {
    if (!test_on_host && eg_error() == EG_OK) eg_synchronize();            // what only the device could notice
    int got = (int)eg_error();
    const char *message = eg_error_message();
    if ((got != code || !strstr(message, part)) && test_fail(file, line, what))
        printf("    expected %s with \"%s\"\n    got      %s with \"%s\"\n", name, part,
               eg_error_name((eg_error_code)got), message);
    eg_error_clear();
}

// The path of a file of real data in the folder that EAGER_DATA names, or NULL: SKIP then.
static inline const char *test_data(const char *name) {
    static char path[4096];
    const char *folder = getenv("EAGER_DATA");
    if (!folder || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return NULL;
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f ? path : NULL;
}

// A path for a file that a test writes, in a folder of this program's own.
static inline const char *test_temp(const char *name) {
    static char path[4][4096];
    static int turn;
    const char *folder = getenv("TEST_TEMP");
    char *p = path[turn++ % 4];
    return snprintf(p, sizeof *path, "%s/%s", folder ? folder : ".", name) < (int)sizeof *path ? p : NULL;
}

// How many temporary files of a path lie beside it: "path.12345678.part", or anything else that begins with the path
// and ends so.
static inline int test_left_behind(const char *path) {
    char folder[4096];
    int n = 0;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t length = strlen(e->d_name);
        n += strncmp(e->d_name, base, strlen(base)) == 0 && length > 5 && strcmp(e->d_name + length - 5, ".part") == 0;
    }
    if (d) closedir(d);
    return n;
}

// The most memory that this process has had so far, in bytes, whoever took it: what it touched and (Linux) what it had
// addresses for.
// 0 where the system does not tell.
typedef struct test_peak { int64_t touched, addressed; } test_peak;
static inline test_peak test_process_peak(void) {
    test_peak peak = { 0, 0 };
#ifdef __linux__
    char line[200];
    FILE *f = fopen("/proc/self/status", "rb");
    while (f && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "VmHWM:", 6)) peak.touched = strtoll(line + 6, NULL, 10) * 1024;
        if (!strncmp(line, "VmPeak:", 7)) peak.addressed = strtoll(line + 7, NULL, 10) * 1024;
    }
    if (f) fclose(f);
#endif
    return peak;
}

// ---- the program --------------------------------------------------------------------------------------------------

static inline void test_crash(int number) {
    printf("%s: crashed in %s (signal %d)\n", test_now ? test_now->file : "?", test_now ? test_now->name : "?", number);
    fflush(stdout);
    signal(number, SIG_DFL);
    raise(number);
}

static inline void test_run(const test_case *t) {
    test_now = t;
    test_fails = 0;
    test_skip_reason = NULL;
    int64_t tensors = eg_memory().live_tensors;
#ifdef TEST_GUARD
    int64_t blocks = guard_blocks;
    guard_trouble = NULL;
#endif
#ifdef TEST_DEVICE
    int64_t bytes = eg_memory().device_bytes;
    eg_set_device(test_device());
#endif
    eg_scope scope = eg_scope_begin();
    t->run();
    eg_synchronize();
    eg_scope_end(scope);
    if (eg_error() != EG_OK) {
        test_say(t->file, 0, "at its end", "an error is pending that no check expected");
        eg_error_clear();
    }
    int64_t more = eg_memory().live_tensors - tensors;
    if (more && test_fail(t->file, 0, "at its end"))
        printf("    %lld tensors more are alive than before it\n", (long long)more);
#ifdef TEST_DEVICE
    if (eg_memory().device_bytes != bytes)
        test_int(t->file, 0, "bytes on the device at its end", eg_memory().device_bytes, bytes);
#endif
#ifdef TEST_GUARD
    if (guard_trouble) test_say(t->file, 0, "on the device", guard_trouble);
    if (guard_blocks != blocks) test_int(t->file, 0, "blocks on the device at its end", guard_blocks, blocks);
#endif
    if (test_fails > 10) printf("    ... and %d failed checks more in %s\n", test_fails - 10, t->name);
    if (test_skip_reason && !test_fails) printf("%s: skipped %s: %s\n", t->file, t->name, test_skip_reason);
    fflush(stdout);
}

#ifndef TEST_NO_MAIN
int main(int argc, char **argv) {
    int passed = 0, failed = 0, skipped = 0;
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    const char *name = strrchr(argv[0], '/');
    test_program = argv[0];
    eg_set_error_handler(NULL, NULL);  // tests expect errors; a failed check prints the pending one itself
#ifdef TEST_GUARD
    if (!list && !guard_start()) { printf("the device does not start: %s\n", eg_error_message()); return 1; }
#elif defined(TEST_CUDA)
    if (!list && !eg_set_device("gpu:0")) { printf("the device does not start: %s\n", eg_error_message()); return 1; }
#endif
#ifndef TEST_NO_SIGNALS                              // sanitizers report crashes better themselves
    const int signals[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], test_crash);
#endif
    for (const test_case *t = test_first; t; t = t->next) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++) wanted = wanted || strstr(t->name, argv[i]);
        if (list) puts(t->name);
        if (list || !wanted) continue;
        test_run(t);
        *(test_fails ? &failed : test_skip_reason ? &skipped : &passed) += 1;
    }
    eg_shutdown();
    if (list) return 0;
    printf("%s: %d passed, %d failed, %d skipped\n", name ? name + 1 : argv[0], passed, failed, skipped);
    return failed > 0;
}
#endif
#endif
