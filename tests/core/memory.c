// Scopes, memory, errors, the NaN trap: chapters 2 and 17.
#include "test.h"
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

#ifdef EAGER_DEBUG
enum { exact = 0 };  // dead handles stay for a while, so bytes are not counted exactly
#else
enum { exact = 1 };
#endif
static int64_t live(void) { return eg_memory().live_tensors; }

// ---- scopes

static int64_t made_until(int how, int stop) {               // leaves the loop, or the function, in its middle
    int64_t before = live();
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_add(eg_scalar(i), 1);
        if (i == stop && how == 0) break;
        if (i == stop && how == 1) continue;
        if (i == stop && how == 2) return live() - before;
        eg_mul(x, x);
    }
    return live() - before;
}
TEST(scopes_end_by_break_continue_and_return) {
    for (int stop = 0; stop < 4; stop++) {
        CHECK_INT(made_until(0, stop), 0);
        CHECK_INT(made_until(1, stop), 0);
        CHECK(made_until(2, stop) > 0);                      // counted before the return ended the scope
    }
    eg_scope scope = eg_scope_begin();
    int64_t before = live();
    for (int stop = 0; stop < 4; stop++) made_until(2, stop);
    CHECK_INT(live(), before);
    eg_scope_end(scope);
}

TEST(ending_an_outer_scope_ends_those_inside) {
    int64_t before = live();
    eg_scope outer = eg_scope_begin();
    eg_scalar(1);
    eg_scope middle = eg_scope_begin();
    eg_scalar(2);
    eg_scope inner = eg_scope_begin();
    eg_scalar(3);
    CHECK_INT(live(), before + 3);
    eg_scope_end(middle);
    CHECK_INT(live(), before + 1);
    eg_scope_end(inner);                                     // it has ended already
    eg_scope_end(middle);
    CHECK_INT(live(), before + 1);
    eg_scope other = eg_scope_begin();
    eg_scalar(4);
    eg_scope_end(inner);                                     // and is not the one that stands in its place now
    eg_scope_end(middle);
    CHECK_INT(live(), before + 2);
    eg_scope_end(outer);
    CHECK_INT(live(), before);
    eg_scope_end(other);
    eg_scope_end(outer);
    CHECK_INT(live(), before);
}

static eg_tensor *kept(eg_tensor *x) {
    EG_SCOPE;
    eg_tensor *y = eg_mul(x, 2);
    eg_sub(y, 1);
    return eg_keep(y);
}
static eg_tensor *kept_argument(eg_tensor *x) {
    EG_SCOPE;
    return eg_keep(x);
}
TEST(what_is_kept_belongs_to_the_enclosing_scope) {
    int64_t before = live();
    {
        EG_SCOPE;
        eg_tensor *x = eg_scalar(3), *y = kept(kept(x));
        CHECK_TENSOR(y, 0, 12);
        CHECK_INT(live(), before + 3);
        eg_tensor *z = kept_argument(x);
        CHECK(z == x);
        CHECK_INT(live(), before + 3);
    }
    CHECK_INT(live(), before);
    CHECK(eg_keep(NULL) == NULL);
}

TEST(keep_counts_each_time_and_each_level) {
    int64_t before = live();
    eg_tensor *x = NULL;
    eg_scope outer = eg_scope_begin();
    eg_scope inner = eg_scope_begin();
    x = eg_scalar(7);
    eg_keep(x);
    eg_keep(x);
    eg_scope_end(inner);
    CHECK_TENSOR(x, 0, 7);
    inner = eg_scope_begin();
    eg_keep(x);                                              // of something that is the outer scope's already
    eg_scope_end(inner);
    CHECK_INT(live(), before + 1);
    eg_scope_end(outer);
    CHECK_INT(live(), before);
}

TEST(retained_tensors_outlive_scopes) {
    int64_t before = live();
    eg_tensor *x;
    {
        EG_SCOPE;
        x = eg_retain(eg_constant(EG_SHAPE(2), 1, 2));
        eg_retain(x);
    }
    CHECK_INT(live(), before + 1);
    CHECK_TENSOR(x, 0, 1, 2);
    eg_release(x);
    CHECK_TENSOR(x, 0, 1, 2);
    eg_release(x);
    CHECK_INT(live(), before);
    eg_release(NULL);
    CHECK(eg_retain(NULL) == NULL);
}

TEST(a_scope_frees_tapes_too) {
    int64_t bytes = eg_memory().live_bytes;
    eg_tensor *v = eg_variable(eg_scalar(2), "v");
    for (int i = 0; i < 3; i++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_mul(v, eg_square(v));
        if (i == 1) continue;
        CHECK_TENSOR(eg_tape_gradient(tape, eg_square(v), v), 0, 4);
    }
    eg_release(v);
    eg_scope scope = eg_scope_begin();
    eg_scope_end(scope);
    // no more than a longer stack of references, and the constant's
    if (exact) CHECK(eg_memory().live_bytes <= bytes + 4096);
    // A tape that ended with its scope, an inner one at that, no longer records for anyone.
    eg_tape *outer = eg_tape_begin();
    eg_tensor *x = eg_scalar(3);
    eg_tape_watch(outer, x);
    { EG_SCOPE; eg_tape *inner = eg_tape_begin(); eg_tape_watch(inner, x); eg_square(x); }
    CHECK_TENSOR(eg_tape_gradient(outer, eg_square(x), x), 0, 6);
}

// Anything a program may do with scopes and references, against a model that only counts.
TEST(scopes_like_their_model) {
    enum { TENSORS = 40, DEPTH = 12, OWNED = 400 };
    static struct { eg_tensor *x; int references, mine; } t[TENSORS];
    static struct { eg_scope scope; int count, of[OWNED], keep[OWNED]; } s[DEPTH];
    static eg_scope stale[16];
    int depth = 1, stales = 0;
    uint64_t random = 12345;
    int64_t before = live();
    memset(t, 0, sizeof t);
    memset(s, 0, sizeof s);
    s[0].scope = eg_scope_begin();
    for (int step = 0; step < 40000 / test_share; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int what = (int)(random >> 33) % 16, which = (int)(random >> 40) % TENSORS, at = (int)(random >> 48) % 16;
        if (what < 4 && s[depth - 1].count < OWNED - 1) {    // make
            if (t[which].references) continue;
            t[which].x = eg_scalar(step);
            t[which].references = 1;
            s[depth - 1].of[s[depth - 1].count] = which;
            s[depth - 1].keep[s[depth - 1].count++] = 0;
        } else if (what < 6 && t[which].references && depth > 1 && s[depth - 1].count < OWNED - 1) {
            eg_keep(t[which].x);
            t[which].references++;
            s[depth - 1].of[s[depth - 1].count] = which;
            s[depth - 1].keep[s[depth - 1].count++] = 1;
        } else if (what < 8 && t[which].references) {
            eg_retain(t[which].x);
            t[which].references++, t[which].mine++;
        } else if (what < 11 && t[which].mine) {
            eg_release(t[which].x);
            t[which].references--, t[which].mine--;
        } else if (what < 13 && depth < DEPTH) {
            s[depth].scope = eg_scope_begin();
            s[depth++].count = 0;
        } else if (what == 13) eg_scope_end(stale[at]);      // of a scope that has ended: nothing happens
        else if (what > 13 && depth > 1) {
            int to = at < 12 || depth < 3 ? depth - 1 : 1 + at % (depth - 1);
            eg_scope_end(s[to].scope);
            for (; depth > to; depth--) {
                stale[stales++ % 16] = s[depth - 1].scope;
                for (int i = 0; i < s[depth - 1].count; i++) {
                    int k = s[depth - 1].of[i];
                    if (!s[depth - 1].keep[i] || s[depth - 2].count >= OWNED) { t[k].references--; continue; }
                    s[depth - 2].of[s[depth - 2].count] = k;
                    s[depth - 2].keep[s[depth - 2].count++] = 0;
                }
            }
        }
        int alive = 0;
        for (int i = 0; i < TENSORS; i++) alive += t[i].references > 0;
        REQUIRE(live() - before == alive);
    }
    for (int i = 0; i < TENSORS; i++) while (t[i].mine-- > 0) eg_release(t[i].x);
    eg_scope_end(s[0].scope);
    CHECK_INT(live(), before);
}

// ---- memory

TEST(counters) {
    eg_memory_info a = eg_memory();
    {
        EG_SCOPE;
        eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1000));
        eg_memory_info b = eg_memory();
        CHECK_INT(b.live_tensors, a.live_tensors + 1);
        CHECK_INT(b.tensors_made, a.tensors_made + 1);
        if (test_on_host) CHECK(b.live_bytes >= a.live_bytes + 4000 && b.live_bytes < a.live_bytes + 7000);
        eg_tensor *view = eg_reshape(x, EG_SHAPE(10, 100));
        CHECK_INT(eg_memory().live_tensors, a.live_tensors + 2);
        CHECK(eg_memory().live_bytes < b.live_bytes + 1024);              // the elements are shared
        eg_data(view);
        CHECK_INT(eg_memory().host_copies, a.host_copies + !test_on_host);
    }
    CHECK_INT(eg_memory().live_tensors, a.live_tensors);
    if (exact) CHECK_INT(eg_memory().live_bytes, a.live_bytes);
    CHECK(eg_memory().peak_bytes >= a.live_bytes);
}

TEST(the_peak_is_of_bytes_in_use) {
    if (!test_on_host || !exact) SKIP("the elements are not in the library's memory, or handles stay in it");
    eg_memory_reset_peak();
    eg_memory_info a = eg_memory();
    CHECK_INT(a.peak_bytes, a.live_bytes);
    for (int i = 0; i < 3; i++) { EG_SCOPE; eg_zeros(EG_FLOAT32, EG_SHAPE(1 << 18)); }
    eg_memory_info b = eg_memory();
    CHECK(b.peak_bytes >= a.live_bytes + (1 << 20) && b.peak_bytes < a.live_bytes + (1 << 21));
    CHECK_INT(b.live_bytes, a.live_bytes);
    eg_memory_reset_peak();
    CHECK_INT(eg_memory().peak_bytes, a.live_bytes);
}

TEST(blocks_are_recycled_and_trimmed) {
    if (!exact) SKIP("a debug build recycles no memory");
    eg_memory_trim();
    CHECK_INT(eg_memory().cached_bytes, 0);
    int64_t first = 0;
    for (int i = 0; i < 10; i++) {
        { EG_SCOPE; for (int k = 0; k < 20; k++) eg_mul(eg_zeros(EG_FLOAT32, EG_SHAPE(100 * (k + 1))), 2); }
        if (i == 0) first = eg_memory().allocations;
    }
    CHECK_INT(eg_memory().allocations, first);
    CHECK(eg_memory().cached_bytes > (test_on_host ? 40000 : 4000));
    eg_memory_trim();
    CHECK_INT(eg_memory().cached_bytes, 0);
    CHECK_TENSOR(eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(2)), 1), 0, 2, 2);
}

// Every size gets a class that holds it and wastes at most an eighth (of more than 1 kB). Elements are aligned to 64
// bytes, in blocks of up to 1 kB to 16.
TEST(size_classes_and_alignment) {
    static unsigned char bytes_in[50000];
    int64_t waste = 0;
    memset(bytes_in, 3, sizeof bytes_in);
    for (int64_t n = 0; n < 40000; n = n < 300 ? n + 1 : n + n / 9 + 1) {
        EG_SCOPE;
        int64_t before = eg_memory().live_bytes;
        eg_tensor *x = eg_from_data(EG_UINT8, EG_SHAPE(n), n ? bytes_in : NULL);
        int64_t bytes = eg_memory().live_bytes - before;
        const unsigned char *p = (const unsigned char *)eg_data(x);
        REQUIRE(p != NULL);
        CHECK_INT((uintptr_t)p % (n > 1024 ? 64 : 16), 0);
        if (n) CHECK(p[0] == 3 && p[n - 1] == 3);
        if (!test_on_host) continue;
        CHECK(bytes >= n + 32);
        if (bytes > 2048 && bytes - n - 512 > waste) waste = (bytes - n - 512) * 100 / n;
    }
    CHECK(waste <= 13);
}

// ---- large blocks, huge pages

#if defined(__linux__) && !defined(EAGER_NO_STDIO)
#define HAS_FAULTS
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
extern int process_control(int option, unsigned long a, unsigned long b, unsigned long c,
                           unsigned long d) __asm__("prctl");
static int64_t faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}
// Whether the pages at p are advised to be huge, as /proc/self/smaps has it: 1, 0, or -1 where it does not say.
static int is_advised(const void *p) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool here = false;
    int found = -1;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) here = from <= (unsigned long)p && (unsigned long)p < to;
        if (here && !strncmp(line, "VmFlags:", 8)) found = strstr(line, " hg") != NULL;
    }
    if (f) fclose(f);
    return found;
}
static bool system_has_huge_pages(void) {
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (f) fclose(f);
    return f != NULL;
}
#endif

// Values survive in every large block, however it is made.
static void check_large(void) {
    for (int64_t n = 1000000; n < 3000000; n += 437111) {
        EG_SCOPE;
        eg_tensor *x = eg_add(eg_range(EG_FLOAT32, 0, (double)n, 1), 1);
        const float *p = (const float *)eg_data(x);
        REQUIRE(p != NULL);
        CHECK_NEAR(p[0], 1, 0);
        CHECK_NEAR(p[n / 2], (double)(n / 2 + 1), 0);
        CHECK_NEAR(p[n - 1], (double)n, 0);
    }
}
TEST(large_blocks_are_whole_huge_pages) {
    check_large();
    if (!test_on_host) SKIP("the device has an allocator of its own");
#ifdef HAS_FAULTS
    int64_t before = eg_memory().live_bytes;
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(1 << 20)), *y = eg_zeros(EG_UINT8, EG_SHAPE((4 << 20) + 1)),
              *small = eg_zeros(EG_UINT8, EG_SHAPE(3 << 20));
    CHECK_INT((uintptr_t)eg_data(x) % (2 << 20), 0);
    CHECK_INT((uintptr_t)eg_data(y) % (2 << 20), 0);
    CHECK_INT((uintptr_t)eg_data(small) % 64, 0);
    CHECK(eg_memory().live_bytes - before >= (4 + 6 + 3) << 20 &&
          eg_memory().live_bytes - before < ((4 + 6 + 3) << 20) + (1 << 19));
    if (system_has_huge_pages()) CHECK(is_advised((const char *)eg_data(x) + (1 << 21)) != 0);
#endif
}
#if defined(HAS_FAULTS) || !defined(EAGER_NO_THREADS)
static void *plain_allocate(size_t size, void *user) { (void)user; return malloc(size); }
#endif
#ifdef HAS_FAULTS
// Whether the checks of work pass in a child process that is told that it gets no huge pages, as on a machine that
// never gives them.
static bool passes_without_huge_pages(void (*work)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        eg_shutdown();
#ifdef TEST_SLOW
        eg_set_num_threads(1);          // sanitizers wait for a thread of the parent that had the handle of a new one
#endif
        process_control(41, 1, 0, 0, 0);                      // PR_SET_THP_DISABLE
        int failed = test_fails;
        work();
        fflush(NULL);
        _exit(test_fails != failed);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
static void plain_deallocate(void *p, void *user) { (void)user; free(p); }
static void check_large_of_either_allocator(void) {
    check_large();
    eg_shutdown();
    CHECK(eg_set_allocator(plain_allocate, plain_deallocate, NULL));          // and from an allocator of the program's
    check_large();
    CHECK((uintptr_t)eg_data(eg_zeros(EG_FLOAT32, EG_SHAPE(1 << 20))) % 64 == 0);
}
#endif
TEST(large_blocks_without_huge_pages) {
    if (!test_on_host) SKIP("the device has an allocator of its own");
#ifdef HAS_FAULTS
    CHECK(passes_without_huge_pages(check_large_of_either_allocator));
#else
    SKIP("for Linux");
#endif
}
TEST(large_blocks_are_used_again) {
    if (!exact || !test_on_host) SKIP("no memory is recycled here");
    eg_memory_trim();
    int64_t first = 0;
    for (int i = 0; i < 6; i++) {
        { EG_SCOPE; for (int k = 0; k < 3; k++) eg_zeros(EG_FLOAT32, EG_SHAPE((1 << 20) * (k + 1) + k)); }
        if (i == 0) first = eg_memory().allocations;
    }
    CHECK_INT(eg_memory().allocations, first);
    // Of one class, but of two lengths: the shorter block does not serve for the longer tensor.
    { EG_SCOPE; eg_zeros(EG_UINT8, EG_SHAPE(33 << 20)); eg_zeros(EG_UINT8, EG_SHAPE(36 << 20)); }
    first = eg_memory().allocations;
    {
        EG_SCOPE;
        eg_tensor *x = eg_zeros(EG_UINT8, EG_SHAPE(36 << 20)), *y = eg_zeros(EG_UINT8, EG_SHAPE(33 << 20));
        CHECK(eg_data(x) != eg_data(y));
    }
    CHECK_INT(eg_memory().allocations, first);
    eg_memory_trim();
}

TEST(a_limit_on_memory) {
    if (!exact || !test_on_host) SKIP("no memory is recycled here");
    eg_memory_trim();
    CHECK_INT(eg_memory_limit(0), 0);
    CHECK_ERROR(eg_memory_limit(-1), EG_ERROR_ARGUMENT, "eg_memory_limit: the limit is -1 bytes");
    int64_t held = eg_memory().live_bytes;
    CHECK_INT(eg_memory_limit(held + 3000000), 0);
    for (int i = 1; i < 20; i++) {  // each needs a block of its own; together they are over the limit
        EG_SCOPE;
        CHECK(eg_zeros(EG_UINT8, EG_SHAPE(100000 * i)) != NULL);
        CHECK(eg_memory().live_bytes + eg_memory().cached_bytes <= held + 3000000);
    }
    CHECK(eg_memory().cached_bytes > 1000000);
    CHECK_ERROR(eg_zeros(EG_UINT8, EG_SHAPE(4000000)), EG_ERROR_MEMORY, "eg_memory_limit is");
    CHECK(eg_memory().live_bytes <= held + 4096);
    CHECK(eg_memory_limit(held + 500000) == held + 3000000);  // what is cached beyond goes back at once
    CHECK(eg_memory().live_bytes + eg_memory().cached_bytes <= held + 500000);
    CHECK_INT(eg_memory_limit(0), held + 500000);
    CHECK(eg_zeros(EG_UINT8, EG_SHAPE(4000000)) != NULL);
}

// After its first steps a training loop takes its memory from what is cached, so that no page is touched for the first
// time: with huge pages, and where the system gives none.
#ifdef HAS_FAULTS
static void train_without_faults(void) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(64, 1500)), *w = eg_variable(eg_random_normal(EG_SHAPE(1500, 800)), "w");
    eg_optimizer *adam = eg_adam(.learning_rate = 1e-3);
    int64_t before = 0, allocations = 0;
    for (int step = 0; step < 40; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_mean(eg_square(eg_tanh(eg_matmul(x, w)))), *g = eg_tape_gradient(tape, loss, w);
        CHECK(eg_apply_gradients(adam, &g, &w, 1));
        if (step == 9) { before = faults(); allocations = eg_memory().allocations; }
    }
    CHECK_INT(eg_memory().allocations, allocations);
    CHECK(faults() - before < 30);  // of 30 steps that write 100 MB each; the system may move some pages meanwhile
    eg_optimizer_release(adam);
    eg_release(w);
}
#endif
TEST(a_training_loop_has_no_page_faults) {
#ifdef HAS_FAULTS
    if (!exact || !test_on_host) SKIP("no memory is recycled here");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TEST_SLOW)
    SKIP("the pages of sanitizers and of valgrind are counted, too");
#endif
    train_without_faults();
    CHECK(passes_without_huge_pages(train_without_faults));
#else
    SKIP("for Linux");
#endif
}

TEST(sizes_that_no_memory_holds) {
    const int64_t sizes[] = {(int64_t)1 << 46, (int64_t)1 << 55, INT64_MAX / 4 - 100, INT64_MAX / 4};
    if (!test_on_host) SKIP("the device has an allocator of its own");
    for (int i = 0; i < 4; i++) {
        CHECK_ERROR(eg_zeros(EG_FLOAT32, EG_SHAPE(sizes[i])), EG_ERROR_MEMORY, "out of memory");
        CHECK_ERROR(eg_random_normal(EG_SHAPE(sizes[i])), EG_ERROR_MEMORY, "out of memory");
    }
    CHECK_ERROR(eg_zeros(EG_FLOAT32, EG_SHAPE(INT64_MAX / 4 + 1)), EG_ERROR_SHAPE, "more bytes than 64 bits count");
    // What needs an element count of its own does so in 64 bits.
    eg_tensor *row = eg_broadcast_to(eg_zeros(EG_FLOAT32, EG_SHAPE(1, 1)),
                                     EG_SHAPE((int64_t)1 << 30, (int64_t)1 << 28));
    CHECK_INT(eg_size(row), (int64_t)1 << 58);
    CHECK_ERROR(eg_negative(row), EG_ERROR_MEMORY, "eg_negative");
    CHECK_ERROR(eg_matmul(eg_transpose(row), row), EG_ERROR_MEMORY, "eg_matmul");
    CHECK_ERROR(eg_broadcast_to(row, EG_SHAPE(64, (int64_t)1 << 30, (int64_t)1 << 28)), EG_ERROR_SHAPE, "64 bits");
}

TEST(shutdown_and_use_again) {
    for (int round = 0; round < 3; round++) {
        eg_tensor *held = eg_retain(eg_constant(EG_SHAPE(2), 1, 2));
        eg_scope left_open = eg_scope_begin();
        eg_tape_begin();
        eg_square(held);
        eg_shutdown();
        eg_scope_end(left_open);
        CHECK_TENSOR(held, 0, 1, 2);
        CHECK_TENSOR(eg_add(held, held), 0, 2, 4);
        eg_release(held);
        CHECK_INT(eg_memory().live_tensors, 1);              // the sum
        eg_shutdown();
        CHECK_INT(eg_memory().live_tensors, 0);
        CHECK_INT(eg_memory().live_bytes, 0);
        CHECK_INT(eg_memory().cached_bytes, 0);
        CHECK(eg_memory().tensors_made > 0);                 // since the start of the program
    }
}

static eg_tensor *flat_loss(eg_tensor *x, eg_tensor *y, eg_tensor *w, eg_tensor *b) {
    EG_SCOPE;
    return eg_keep(eg_reduce_mean(eg_square(eg_sub(eg_add(eg_matmul(x, w), b), y))));
}
TEST(memory_is_flat_over_100000_steps) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), *y = eg_constant(EG_SHAPE(2, 1), 1, -1);
    eg_tensor *vars[] = {eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 1)), "w"), eg_variable(eg_scalar(0), "b")},
              *grads[2];
    eg_optimizer *adam = eg_adam(.learning_rate = 1e-3);
    eg_memory_info warm = eg_memory();
    for (int step = 0; step < 100000 / test_share; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = flat_loss(x, y, vars[0], vars[1]);
        if (step % 1000 == 7) continue;                      // a step that is given up frees as much
        eg_tape_gradients(tape, loss, vars, 2, grads);
        CHECK(eg_apply_gradients(adam, grads, vars, 2));
        if (step == 100) { warm = eg_memory(); eg_memory_reset_peak(); }
    }
    eg_memory_info end = eg_memory();
    CHECK(end.live_tensors < warm.live_tensors);             // it was counted inside a step
    if (exact) {
        CHECK(end.live_bytes <= warm.live_bytes);
        CHECK(end.peak_bytes <= warm.peak_bytes);
        CHECK_INT(end.allocations, warm.allocations);
    }
    eg_optimizer_release(adam);
    eg_release(vars[0]);
    eg_release(vars[1]);
}

// ---- an allocator of one's own

typedef struct my_memory { int64_t live, calls, bytes; } my_memory;
static void *my_allocate(size_t size, void *user) {
    my_memory *m = (my_memory *)user;
    void *p = malloc(size);
    if (p) m->live++, m->calls++, m->bytes += (int64_t)size;
    return p;
}
static void my_deallocate(void *p, void *user) {
    ((my_memory *)user)->live--;
    free(p);
}
TEST(allocators_are_set_where_nothing_is_held) {
    my_memory m = {0, 0, 0};
    eg_tensor *x = eg_retain(eg_scalar(1));
    CHECK_ERROR(eg_set_allocator(my_allocate, my_deallocate, &m), EG_ERROR_STATE, "eg_set_allocator");
    eg_shutdown();
    CHECK_ERROR(eg_set_allocator(my_allocate, my_deallocate, &m), EG_ERROR_STATE, "released");
    eg_release(x);
    eg_shutdown();
    CHECK_ERROR(eg_set_allocator(my_allocate, NULL, &m), EG_ERROR_ARGUMENT, "both");
    CHECK(eg_set_allocator(my_allocate, my_deallocate, &m));
    CHECK_TENSOR(eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(3)), 1), 0, 2, 2, 2);
    CHECK(m.live > 2);
    CHECK(m.bytes > 200);
    CHECK_ERROR(eg_set_allocator(NULL, NULL, NULL), EG_ERROR_STATE, "holds");
    eg_shutdown();
    CHECK_INT(m.live, 0);
    CHECK(eg_set_allocator(NULL, NULL, NULL));
    int64_t calls = m.calls;
    eg_scalar(1);
    CHECK_INT(m.calls, calls);
    eg_shutdown();
}

#ifndef EAGER_NO_THREADS
// What a thread asks for and is refused does not count against the others: while it gives back what it had cached,
// another thread finds room.
typedef struct { bool asks; int found, refused; } other_thread;
static void *finds_room(void *user) {
    other_thread *o = (other_thread *)user;
    if (eg_zeros(EG_UINT8, EG_SHAPE(2000))) o->found++;
    else o->refused++;
    return NULL;
}
static void deallocate_beside_another(void *p, void *user) {
    other_thread *o = (other_thread *)user;
    pthread_t thread;
    free(p);
    if (!o->asks) return;
    o->asks = false;
    if (pthread_create(&thread, NULL, finds_room, o) == 0) pthread_join(thread, NULL);
}
TEST(a_request_beyond_the_limit_fails_for_its_thread_alone) {
    if (!exact || !test_on_host) SKIP("no memory is recycled here");
    other_thread o = { false, 0, 0 };
    eg_shutdown();
    REQUIRE(eg_set_allocator(plain_allocate, deallocate_beside_another, &o));
    CHECK_INT(eg_memory_limit(1000000), 0);
    eg_scope scope = eg_scope_begin();
    CHECK(eg_zeros(EG_UINT8, EG_SHAPE(5000)) != NULL);
    eg_scope_end(scope);
    o.asks = true;
    CHECK_ERROR(eg_zeros(EG_UINT8, EG_SHAPE(4000000)), EG_ERROR_MEMORY, "eg_memory_limit is");
    CHECK_INT(o.found, 1);
    CHECK_INT(o.refused, 0);
    eg_memory_limit(0);
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}
#endif

// ---- sharing

TEST(assignment_leaves_older_values_alone) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v"), *read = eg_read(v),
              *row = eg_reshape(v, EG_SHAPE(1, 2));
    const float *before = (const float *)eg_data(read);
    if (test_on_host) CHECK(eg_data(v) == (const void *)before && eg_data(row) == (const void *)before);
    eg_assign(v, eg_constant(EG_SHAPE(2), 3, 4));
    CHECK_TENSOR(v, 0, 3, 4);
    CHECK_TENSOR(read, 0, 1, 2);
    CHECK_TENSOR(row, 0, 1, 2);
    CHECK(before[0] == 1 && before[1] == 2);
    // A tensor that was assigned is shared too, until one of them changes.
    eg_tensor *x = eg_constant(EG_SHAPE(2), 5, 6);
    eg_assign(v, x);
    if (test_on_host) CHECK(eg_data(v) == eg_data(x));
    eg_assign_add(v, 1);
    CHECK_TENSOR(v, 0, 6, 7);
    CHECK_TENSOR(x, 0, 5, 6);
    eg_release(v);
}

TEST(optimizers_write_in_place_only_where_nobody_looks) {
    eg_tensor *g = eg_constant(EG_SHAPE(2), 1, 1), *v = NULL;
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1);
    { EG_SCOPE; v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v"); }
    const void *place = eg_data(v);
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));
    CHECK_TENSOR(v, 0, 0, 1);
    if (test_on_host) CHECK(eg_data(v) == place);            // no copy was needed
    eg_tensor *seen = eg_read(v), *view = eg_reverse(v, EG_AXES(0));
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));
    CHECK_TENSOR(v, 0, -1, 0);
    CHECK_TENSOR(seen, 0, 0, 1);
    CHECK_TENSOR(view, 0, 1, 0);
    if (test_on_host) CHECK(eg_data(v) != place && eg_data(seen) == place);
    // A tape that has read it: the gradient is that of the values read, 2 v.
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_square(v);
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));
    CHECK_TENSOR(eg_tape_gradient(tape, y, v), 0, -2, 0);
    eg_optimizer_release(sgd);
    eg_release(v);
}

static int deleted;
static void my_deleter(void *data, void *user) { deleted++; *(void **)user = data; }
TEST(wrapped_data_is_deleted_once) {
    static const float data[4] = {1, 2, 3, 4};
    static void *seen;  // the last of them is deleted when this function has returned
    deleted = 0;
    eg_tensor *slice;
    {
        EG_SCOPE;
        eg_tensor *x = eg_wrap_data(EG_FLOAT32, EG_SHAPE(2, 2), data, my_deleter, &seen);
        CHECK_TENSOR(x, 0, 1, 2, 3, 4);
        if (test_on_host) CHECK(eg_data(x) == (const void *)data);
        CHECK_INT(deleted, !test_on_host);                   // elsewhere it was copied, and let go at once
        slice = eg_retain(eg_index(x, 1));
        eg_keep(x);
    }
    CHECK_TENSOR(slice, 0, 3, 4);
    if (test_on_host) CHECK(eg_data(slice) == (const void *)(data + 2));
    CHECK_INT(deleted, !test_on_host);
    eg_tensor *v = NULL;
    {
        EG_SCOPE;
        eg_tensor *x = eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), data, my_deleter, &seen);
        v = eg_variable(x, "v");                             // a variable owns what it holds
        eg_assign(v, x);
    }
    CHECK_INT(deleted, 1 + !test_on_host);
    CHECK(eg_data(v) != (const void *)data);
    eg_release(v);
    eg_release(slice);
    CHECK(eg_wrap_data(EG_FLOAT32, EG_SHAPE(2), data, NULL, NULL) != NULL);
    // Data that is not aligned for its dtype is copied.
    static char bytes[20];
    float f = 1.5f;
    memcpy(bytes + 1, &f, 4);
    int count = deleted;
    CHECK_TENSOR(eg_wrap_data(EG_FLOAT32, EG_SCALAR, (void *)(bytes + 1), my_deleter, &seen), 0, 1.5);
    CHECK_INT(deleted, count + 1);
    CHECK(seen == bytes + 1);
}
static void computing_deleter(void *data, void *user) {
    eg_add(*(eg_tensor **)user, eg_square(eg_scalar(*(float *)data)));
}
TEST(what_a_deleter_makes_belongs_to_the_enclosing_scope) {
    static float data[2] = {1, 2};
    static eg_tensor *one;
    int64_t before = live();
    eg_scope outer = eg_scope_begin(), inner = eg_scope_begin();
    one = eg_scalar_of(EG_FLOAT32, 1);
    eg_keep(one);
    CHECK(eg_wrap_data(EG_FLOAT32, EG_SHAPE(2), data, computing_deleter, &one) != NULL);
    eg_scope_end(inner);
    CHECK_TENSOR(one, 0, 1);
    eg_scope_end(outer);
    CHECK_INT(live(), before);
}
TEST(wrapped_data_is_the_callers_after_a_failure) {
    static const float data[4] = {1, 2, 3, 4};
    static void *seen;  // the last of them is deleted when this function has returned
    deleted = 0;
    CHECK_ERROR(eg_wrap_data(EG_FLOAT32, EG_SHAPE(-2), data, my_deleter, &seen), EG_ERROR_SHAPE, "negative");
    CHECK_ERROR(eg_wrap_data(EG_FLOAT32, EG_SHAPE(2), NULL, my_deleter, &seen), EG_ERROR_NULL, "eg_wrap_data");
    CHECK_ERROR(eg_wrap_data((eg_dtype)77, EG_SHAPE(2), data, my_deleter, &seen), EG_ERROR_DTYPE, "77 is no dtype");
    CHECK_INT(deleted, 0);
}

// ---- errors

TEST(errors_are_rows) {
    CHECK_STR(eg_error_name(EG_OK), "EG_OK");
    CHECK_STR(eg_error_name(EG_ERROR_SHAPE), "EG_ERROR_SHAPE");
    CHECK_STR(eg_error_name((eg_error_code)99), "EG_ERROR_?");
    CHECK_INT(EG_ERROR_NULL, 1);
    CHECK_INT(EG_ERROR_MEMORY, 2);
    CHECK_INT(EG_ERROR_SHAPE, 3);
    CHECK_INT(EG_ERROR_DTYPE, 4);
    CHECK_INT(EG_ERROR_ARGUMENT, 5);
    CHECK_INT(EG_ERROR_INDEX, 6);
    CHECK_INT(EG_ERROR_DEVICE, 7);
    CHECK_INT(EG_ERROR_TAPE, 8);
    CHECK_INT(EG_ERROR_GRADIENT, 9);
    CHECK_INT(EG_ERROR_NONFINITE, 10);
    CHECK_INT(EG_ERROR_STATE, 11);
    CHECK_INT(EG_ERROR_FILE, 12);
    CHECK_INT(EG_ERROR_ASSERT, 13);
    CHECK_INT(EG_ERROR_MATH, 14);
}

TEST(the_first_error_stays) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    int64_t count = eg_error_count();
    CHECK_INT(eg_error(), EG_OK);
    CHECK_STR(eg_error_message(), "");
    CHECK(eg_matmul(x, x) == NULL);
    CHECK(eg_index(x, 9) == NULL);
    CHECK(eg_reshape(x, EG_SHAPE(7)) == NULL);
    CHECK_INT(eg_error(), EG_ERROR_SHAPE);
    CHECK_CONTAINS(eg_error_message(), "eg_matmul: inner dimensions differ: ");
    CHECK_CONTAINS(eg_error_message(), "[2, 3]");
    CHECK_CONTAINS(eg_error_message(), "3 against 2");
    CHECK_INT(eg_error_count(), count + 3);
    eg_error_clear();
    CHECK_INT(eg_error(), EG_OK);
    CHECK_STR(eg_error_message(), "");
    CHECK_INT(eg_error_count(), count + 3);
}

TEST(a_chain_needs_one_check_at_its_end) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *y = eg_ones(EG_FLOAT32, EG_SHAPE(4, 5));
    int64_t count = eg_error_count();
    eg_tensor *broken = eg_matmul(x, y),
              *end = eg_reduce_sum(eg_relu(eg_add(eg_mul(broken, 2), eg_sqrt(eg_concat(EG_TENSORS(x, broken), 0)))));
    CHECK(end == NULL);
    CHECK_INT(eg_error_count(), count + 1);                  // what follows from it is not told again
    CHECK(isnan(eg_item(end)));
    CHECK_INT(eg_item_int(end), 0);
    CHECK(eg_data(end) == NULL);
    CHECK_INT(eg_rank(end), -1);
    CHECK_INT(eg_size(end), -1);
    CHECK_INT(eg_dim(end, 0), -1);
    CHECK_INT(eg_dtype_of(end), EG_NO_DTYPE);
    CHECK_INT(eg_shape_of(end).rank, -1);
    CHECK_STR(eg_name_of(end), "");
    CHECK_STR(eg_device_of(end), "");
    eg_print(end);
    CHECK_INT(eg_error_count(), count + 1);
    CHECK_INT(eg_error(), EG_ERROR_SHAPE);
    eg_error_clear();
}

TEST(a_null_is_an_error_where_none_is_pending) {
    eg_tensor *x = eg_scalar(1);
    CHECK_ERROR(eg_add(x, NULL), EG_ERROR_NULL, "eg_add: operand 1 is NULL");
    CHECK_ERROR(eg_exp(NULL), EG_ERROR_NULL, "eg_exp");
    CHECK_ERROR(eg_matmul(NULL, x), EG_ERROR_NULL, "eg_matmul: operand 0");
    CHECK_ERROR(eg_item(NULL), EG_ERROR_NULL, "eg_item");
    CHECK_ERROR(eg_data(NULL), EG_ERROR_NULL, "eg_data");
    CHECK_ERROR(eg_rank(NULL), EG_ERROR_NULL, "eg_rank");
    CHECK_ERROR(eg_print(NULL), EG_ERROR_NULL, "eg_print");
    CHECK_ERROR(eg_variable(NULL, "v"), EG_ERROR_NULL, "eg_variable");
    CHECK_ERROR(eg_from_data(EG_FLOAT32, EG_SHAPE(1), NULL), EG_ERROR_NULL, "eg_from_data");
    CHECK_ERROR(eg_to(NULL, "cpu:0"), EG_ERROR_NULL, "eg_to");
}

typedef struct heard { int count; eg_error_code code; char message[400]; } heard;
static void listen(eg_error_code code, const char *message, void *user) {
    heard *h = (heard *)user;
    h->count++;
    h->code = code;
    snprintf(h->message, sizeof h->message, "%.390s", message);
}
TEST(handlers_see_each_error) {
    heard h = {0, EG_OK, ""};
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    eg_set_error_handler(listen, &h);
    eg_matmul(x, x);
    CHECK_INT(h.count, 1);
    CHECK_INT(h.code, EG_ERROR_SHAPE);
    CHECK_STR(h.message, eg_error_message());
    eg_index(x, 5);
    CHECK_INT(h.count, 2);
    CHECK_INT(h.code, EG_ERROR_INDEX);
    CHECK_CONTAINS(h.message, "eg_index");
    eg_set_error_handler(NULL, NULL);
    eg_index(x, 6);
    CHECK_INT(h.count, 2);
    eg_error_clear();
}

static void fail_again(eg_error_code code, const char *message, void *user) {
    (void)code; (void)message;
    if (++*(int *)user < 1000) eg_index(eg_scalar(1), 1);
}
TEST(a_handler_that_fails_is_not_called_for_that) {
    int calls = 0;
    int64_t errors = eg_error_count();
    eg_set_error_handler(fail_again, &calls);
    eg_raise(EG_ERROR_STATE, "the first");
    CHECK_INT(calls, 1);
    CHECK_INT(eg_error_count(), errors + 2);
    CHECK_STR(eg_error_message(), "the first");
    eg_raise(EG_ERROR_STATE, "the second");
    CHECK_INT(calls, 2);
    eg_set_error_handler(NULL, NULL);
    eg_error_clear();
}

// Errors say where the call stands, if it is one of those that can know.
TEST(errors_name_the_place) {
#ifdef NDEBUG
    SKIP("NDEBUG leaves it out");
#endif
    char place[80];
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    snprintf(place, sizeof place, "(at memory.c:%d)", __LINE__ + 1);
    CHECK_ERROR(eg_matmul(x, x), EG_ERROR_SHAPE, place);
    snprintf(place, sizeof place, "(at memory.c:%d)", __LINE__ + 1);
    CHECK_ERROR(eg_add(x, eg_ones(EG_FLOAT32, EG_SHAPE(4))), EG_ERROR_SHAPE, place);
    snprintf(place, sizeof place, "(at memory.c:%d)", __LINE__ + 1);
    CHECK_ERROR(eg_constant(EG_SHAPE(3), 1, 2), EG_ERROR_SHAPE, place);
    eg_mul(x, x);
    (eg_dataset_take)(NULL, 9);                              // no macro notes this one, and it names no other's place
    CHECK(!strstr(eg_error_message(), "(at "));
    eg_error_clear();
}
// Calls nest; a note of another line is no place for an error, since that call may be long done.
static eg_tensor *rooted(eg_tensor *x) { return eg_sqrt(eg_add(x, 1)); }
TEST(errors_name_the_place_of_nested_calls) {
#ifdef NDEBUG
    SKIP("NDEBUG leaves it out");
#endif
    char place[80];
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *four = eg_ones(EG_FLOAT32, EG_SHAPE(4)), *y, *grads[1];
    snprintf(place, sizeof place, "(at memory.c:%d)", __LINE__ + 1);
    CHECK_ERROR(eg_add(eg_relu(eg_mul(x, 2)), eg_reshape(eg_sub(four, 1), EG_SHAPE(4))), EG_ERROR_SHAPE, place);
    eg_add(x, x);
    CHECK(!(eg_add)(x, eg_zeros(EG_FLOAT32, EG_SHAPE(4))) && !strstr(eg_error_message(), "(at "));
    eg_error_clear();
    snprintf(place, sizeof place, "(at memory.c:%d)", __LINE__ + 1);
    y = eg_matmul(x, rooted(x));
    CHECK(!y && (!strstr(eg_error_message(), "(at ") || strstr(eg_error_message(), place) != NULL));
    eg_error_clear();
    eg_metric *metric = eg_metric_of(eg_mean_squared_error);
    eg_mean_squared_error(x, x);
    CHECK(!eg_metric_update(metric, x, eg_ones(EG_FLOAT32, EG_SHAPE(2))));
    snprintf(place, sizeof place, "(at memory.c:%d)", __LINE__ - 1);
    CHECK(!strstr(eg_error_message(), "(at ") || strstr(eg_error_message(), place) != NULL);
    eg_error_clear();
    eg_metric_release(metric);
    eg_layer *dense = eg_layer_dense(2);
    snprintf(place, sizeof place, "(at memory.c:%d)", __LINE__ + 1);
    CHECK_ERROR(eg_call(dense, eg_cast(x, EG_INT32)), EG_ERROR_DTYPE, place);
    eg_layer_release(dense);
    eg_tape *tape = eg_tape_begin();
    y = eg_reduce_sum(x);
    CHECK_ERROR(eg_tape_gradients(tape, y, NULL, 1, grads), EG_ERROR_ARGUMENT, "(at memory.c:");
    CHECK_ERROR(eg_read(NULL), EG_ERROR_NULL, "(at memory.c:");
    CHECK_ERROR(eg_constant_values(EG_FLOAT32, EG_SHAPE(2), NULL, 3), EG_ERROR_ARGUMENT, "(at memory.c:");
    CHECK_ERROR(eg_mean_squared_error(x, NULL), EG_ERROR_NULL, "(at memory.c:");
    CHECK_ERROR(eg_variable(NULL, "v"), EG_ERROR_NULL, "(at memory.c:");
    CHECK_ERROR(eg_random_normal(EG_SHAPE(-1)), EG_ERROR_SHAPE, "(at memory.c:");
}

static eg_tensor *only_positive(eg_tensor *x) {
    if (!(eg_item(x) > 0))
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "only_positive: %g is not positive", eg_item(x));
    return x;
}
TEST(errors_of_ones_own) {
    CHECK(only_positive(eg_scalar(2)) != NULL);
    CHECK_ERROR(only_positive(eg_scalar(-2)), EG_ERROR_ARGUMENT, "only_positive: -2 is not positive");
    CHECK(eg_raise(EG_ERROR_STATE, "%s", "once") == NULL);
    CHECK(eg_raise(EG_ERROR_FILE, "a message may quote the pending one: %s", eg_error_message()) == NULL);
    CHECK_INT(eg_error(), EG_ERROR_STATE);
    CHECK_STR(eg_error_message(), "once");
    eg_error_clear();
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    eg_raise(EG_ERROR_ARGUMENT, "%s", text);                 // too long for a message: cut, and ended
    CHECK(strlen(eg_error_message()) > 500 && strlen(eg_error_message()) < 2000);
    eg_error_clear();
}

// ---- what only another process shows

static bool child(const char *test, char *said, size_t capacity) {
    char command[9000];
    const char *file = test_temp("child.txt");
    said[0] = 0;
    if (!file || snprintf(command, sizeof command, "TEST_CHILD=1 '%s' %s >/dev/null 2>'%s'", test_program, test,
                          file) >= (int)sizeof command)
        return false;
    (void)!system(command);
    FILE *f = fopen(file, "r");
    if (!f) return false;
    said[fread(said, 1, capacity - 1, f)] = 0;
    fclose(f);
    return true;
}
static char said[20000];

TEST(child_with_the_default_handler) {
    if (!getenv("TEST_CHILD")) SKIP("started by the test below");
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    eg_matmul(x, x);
    eg_error_clear();
}
TEST(silent_handler_prints_nothing) {
    REQUIRE(child("child_with_the_default_handler", said, sizeof said));
    CHECK(!strstr(said, "eg_matmul"));                       // test.h has set NULL
}

TEST(child_that_leaks) {
    if (!getenv("TEST_CHILD")) SKIP("started by the test below");
    eg_retain(eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6));
    eg_variable(eg_scalar(1), "forgotten");
    eg_retain(eg_exp(eg_scalar(1)));
}
TEST(child_that_forgets_optimizers) {
    if (!getenv("TEST_CHILD")) SKIP("started by the test below");
    eg_tensor *v = eg_variable(eg_scalar(1), "w"), *g = eg_scalar(1), *state[8];
    eg_optimizer *gone = eg_sgd(.momentum = .9), *kept = eg_adam(.accumulate_steps = 2);
    CHECK(eg_apply_gradients(gone, &g, &v, 1) && eg_apply_gradients(kept, &g, &v, 1));
    CHECK_INT(eg_optimizer_state(gone, state, 8), 3);
    eg_retain(state[0]);                                     // an optimizer's variable may outlive it
    eg_optimizer_release(gone);
    eg_release(v);
}
TEST(debug_builds_list_leaks_at_exit) {
    REQUIRE(child("child_that_leaks", said, sizeof said));
#ifdef EAGER_DEBUG
    CHECK_CONTAINS(said, "eager: 3 tensors were not released");
    CHECK_CONTAINS(said, "made by eg_constant");
    CHECK_CONTAINS(said, "6 elements");
    CHECK_CONTAINS(said, "named forgotten");
    CHECK_CONTAINS(said, "made by eg_exp");
#else
    CHECK(!strstr(said, "eager:"));
#endif
    REQUIRE(child("child_that_forgets_optimizers", said, sizeof said));
#ifdef EAGER_DEBUG
    CHECK_CONTAINS(said, "eager:   optimizer adam and its variables; eg_optimizer_release lets it go, or, where a "
                         "model was compiled with it, eg_layer_release of the model\n");
    CHECK_CONTAINS(said, "named steps");
    const char *made = strstr(said, "eager:   made by");       // the steps alone: no rate, no slots
    CHECK(made && !strstr(made + 1, "eager:   made by") && !strstr(said, "optimizer sgd"));
#endif
    REQUIRE(child("scopes_like_their_model", said, sizeof said));
    CHECK(!strstr(said, "not released"));
}

static void train_without_a_scope(eg_tensor *w, int steps) {
    for (int i = 0; i < steps; i++) {
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2));
        x = eg_tanh(eg_mul(w, x)); x = eg_add(eg_mul(x, 2), eg_mul(w, x));
        eg_reduce_sum(x);
    }
}
#ifndef EAGER_NO_THREADS
static void *thread_without_a_scope(void *w) { train_without_a_scope((eg_tensor *)w, 3000); return NULL; }
#endif
TEST(child_that_forgets_a_scope) {
    const char *kind = getenv("TEST_CHILD");
    if (!kind) SKIP("started by the test below");
    eg_tensor *w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "w");
    eg_scope scope = eg_scope_begin();
    train_without_a_scope(w, 1150);                          // 9,200 tensors: fine
    eg_scope_end(scope);
    for (int i = 0; i < 3; i++) {
        EG_SCOPE;
        train_without_a_scope(w, 3000);                      // told once, and not again of the next such scope
    }
    EG_SCOPE;
    for (int i = 0; i < 5200; i++) eg_add(w, 1);
#ifndef EAGER_NO_THREADS
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_without_a_scope, w) == 0) pthread_join(thread, NULL);
#endif
    eg_release(w);
}
TEST(debug_builds_tell_of_a_scope_that_gathers_too_much) {
    REQUIRE(child("child_that_forgets_a_scope", said, sizeof said));
#ifdef EAGER_DEBUG
    const char *first = strstr(
        said,
        "eager: 10000 tensors wait for the end of one scope, an inner one; EG_SCOPE; at the top of a loop's body");
    const char *second = first ? strstr(first + 60, "wait for the end of one scope, an inner one") : NULL;
    REQUIRE(first != NULL && second != NULL);
    CHECK(!strstr(second + 40, "scope, an inner one"));
    CHECK_CONTAINS(first, "made by\neager:   eg_mul, 3750 of them (at memory.c:");
    CHECK_CONTAINS(second, "eager:   plain numbers in calls, 5000 of them (at memory.c:");
    CHECK_CONTAINS(second, "eager:   eg_add, 5000 of them (at memory.c:");
#ifndef EAGER_NO_THREADS
    CHECK_CONTAINS(second, "wait for the end of one scope, the thread's outermost one; EG_SCOPE;");
#endif
#else
    CHECK(!strstr(said, "eager:"));
#endif
}

TEST(debug_builds_catch_a_release_of_what_a_scope_owns) {
#ifndef EAGER_DEBUG
    SKIP("only with EAGER_DEBUG");
#else
    eg_tensor *q = eg_scalar(2), *held;
    {
        EG_SCOPE;
        eg_tensor *t = eg_add(q, 1);
        CHECK_ERROR((eg_release(t), NULL), EG_ERROR_STATE, "the tensor made by eg_add belongs to its scope");
        CHECK_TENSOR(t, 0, 3);                               // it is there all the same
        held = eg_retain(t);
        eg_release(t);                                       // what was retained is given back without a word
        eg_release(eg_retain(eg_keep(t)));
        held = eg_retain(held);
    }
    CHECK_TENSOR(held, 0, 3);
    eg_release(held);
#endif
}
TEST(debug_builds_catch_handles_used_too_late) {
#ifndef EAGER_DEBUG
    SKIP("only with EAGER_DEBUG");
#else
    eg_tensor *x, *v;
    eg_tape *tape;
    {
        EG_SCOPE;
        x = eg_exp(eg_scalar(1));
        tape = eg_tape_begin();
        v = eg_variable(x, "v");
        eg_release(v);
    }
    (void)tape;
    CHECK_ERROR(eg_add(x, 1), EG_ERROR_STATE, "eg_add: operand 0, made by eg_exp, was used after its scope ended");
    CHECK_ERROR(eg_matmul(x, x), EG_ERROR_STATE, "made by eg_exp");
    CHECK_ERROR(eg_item(x), EG_ERROR_STATE, "eg_item");
    CHECK_ERROR(eg_data(x), EG_ERROR_STATE, "eg_data");
    CHECK_ERROR(eg_print(x), EG_ERROR_STATE, "eg_print");
    CHECK_ERROR(eg_keep(x), EG_ERROR_STATE, "eg_keep");
    CHECK_ERROR(eg_retain(x), EG_ERROR_STATE, "eg_retain");
    CHECK_ERROR(eg_release(x), EG_ERROR_STATE, "eg_release");
    CHECK_ERROR(eg_assign(v, 1), EG_ERROR_STATE, "eg_assign");
    CHECK_ERROR(eg_reshape(x, EG_SHAPE(1)), EG_ERROR_STATE, "eg_reshape");
    CHECK_ERROR(eg_concat(EG_TENSORS(x, x), 0), EG_ERROR_STATE, "eg_concat");
#endif
}

// ---- the NaN trap

static bool overflowing(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)c, (void)user;
    bool on = eg_trap_nonfinite(false);                      // so that it is the op of one's own that is seen
    out[0] = eg_div(in[0], 0);
    eg_trap_nonfinite(on);
    return true;
}
TEST(nonfinite_trap_forward) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), -1, 4), *nan = eg_constant(EG_SHAPE(2), (double)NAN, 1);
    CHECK(!eg_trap_nonfinite(true));
    CHECK_TRAPPED(eg_log(x),
                  "eg_log: made 1 NaN or infinite elements of [2] from finite inputs: float32 [2] (from eg_constant)");
    CHECK_TRAPPED(eg_div(x, 0), "eg_div: made 2");
    CHECK_TRAPPED(eg_div(x, eg_zeros(EG_FLOAT32, EG_SHAPE(2))), "(from eg_zeros)");
    CHECK_TRAPPED(eg_matmul(eg_full(EG_FLOAT32, EG_SHAPE(1, 1), 1e30), eg_full(EG_FLOAT32, EG_SHAPE(1, 1), 1e30)),
                  "eg_matmul");
    CHECK_TRAPPED(eg_exp(eg_scalar_of(EG_FLOAT64, 1e6)), "float64");
    CHECK_TRAPPED(eg_reduce_sum(eg_full(EG_FLOAT32, EG_SHAPE(2), 3e38)), "eg_reduce_sum");
    CHECK_TRAPPED(eg_log(eg_transpose(eg_reshape(x, EG_SHAPE(2, 1)))), "eg_log");
    CHECK_TENSOR(eg_add(nan, 1), 0, (double)NAN, 2);         // it came in from outside
    CHECK_TENSOR(eg_sqrt(eg_square(x)), 0, 1, 4);
    CHECK_TENSOR(eg_div(x, eg_constant(EG_SHAPE(2), (double)INFINITY, 1)), 0, 0, 4);
    const eg_op_definition definition = {"overflowing", 1, 1, overflowing, NULL, NULL};
    int op = eg_op_register(&definition);
    eg_tensor *y = NULL;
    CHECK_TRAPPED(eg_op_run(op, &x, 1, &y, 1), "overflowing: made 2");
    CHECK(y == NULL || test_traps_later);
    CHECK(eg_pad(eg_ones(EG_FLOAT32, EG_SHAPE(2)), EG_PADS(1, 0), .value = -INFINITY) != NULL);      // asked for
    CHECK_TRAPPED(eg_log(eg_zeros(EG_FLOAT32, EG_SHAPE(2))), "eg_log");
    CHECK(eg_trap_nonfinite(false));
    CHECK_TENSOR(eg_log(x), 1e-6, (double)NAN, log(4));
}
TEST(nonfinite_trap_blames_no_gradient_for_a_nan_from_outside) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, (double)NAN, 2);
    eg_trap_nonfinite(true);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_reduce_max(x), x), 0, (double)NAN, (double)NAN, (double)NAN);
    eg_trap_nonfinite(false);
}
TEST(nonfinite_trap_backward) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 0, 4), *v = eg_variable(x, "speed");
    for (int nested = 0; nested < 2; nested++) {             // fused, and in eager ops
        EG_SCOPE;
        eg_tape *outer = nested ? eg_tape_begin() : NULL, *tape = eg_tape_begin();
        eg_tensor *y = eg_sqrt(v);
        if (outer) eg_tape_watch(outer, x);
        eg_trap_nonfinite(true);
        eg_tensor *g = eg_tape_gradient(tape, y, v);
        eg_trap_nonfinite(false);
        eg_synchronize();
        CHECK(g == NULL || test_traps_later);
        CHECK_INT(eg_error(), EG_ERROR_NONFINITE);
        CHECK_CONTAINS(eg_error_message(), "from finite inputs");
        CHECK_CONTAINS(eg_error_message(), "eg_sqrt");
        eg_error_clear();
    }
    eg_release(v);
}
TEST(nonfinite_trap_optimizer) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1e38, 1), "speed"), *g = eg_constant(EG_SHAPE(2), -3e38, 1);
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1), *adam = eg_adam(.learning_rate = 1);
    eg_trap_nonfinite(true);
    CHECK_ERROR(eg_apply_gradients(sgd, &g, &v, 1), EG_ERROR_NONFINITE, "sgd");
    CHECK_TENSOR(v, 0, (double)1e38f, 1);                    // nothing was changed
    CHECK_INT(eg_optimizer_steps(sgd), 0);
    eg_apply_gradients(sgd, &g, &v, 1);
    CHECK_CONTAINS(eg_error_message(), "'speed'");
    eg_error_clear();
    CHECK_ERROR(eg_apply_gradients(adam, &g, &v, 1), EG_ERROR_NONFINITE, "adam");       // its second moment overflows
    CHECK_TENSOR(v, 0, (double)1e38f, 1);
    eg_trap_nonfinite(false);
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));
    eg_optimizer_release(sgd);
    eg_optimizer_release(adam);
    eg_release(v);
}

TEST(every_code_has_its_name) {
#define SAME_NAME(name, number, sentence) CHECK_STR(eg_error_name(name), #name);
    EG_ERRORS(SAME_NAME)
    CHECK_STR(eg_error_name(EG_ERROR_CODES), "EG_ERROR_?");
}

// ---- a loop that lets go of what it had

static int64_t replace_bytes(void) { return eg_memory().live_bytes; }
static eg_tensor *halved_square(eg_tensor *x) { return eg_mul(eg_matmul(x, x), 1.0 / 256); }
TEST(replace_holds_two) {
    EG_SCOPE;
    const int64_t n = 256, one = n * n * 4;
    eg_memory_info at_first;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(n, n));
    at_first = eg_memory();
    eg_memory_reset_peak();
    // the product is freed, too
    for (int i = 0; i < 20; i++) CHECK(eg_replace(&x, eg_mul(eg_matmul(x, x), 1.0 / (double)n)) == x);
    CHECK(replace_bytes() - at_first.live_bytes < one / 8);
    CHECK(eg_memory().peak_bytes - at_first.live_bytes < 3 * one || !test_on_host);
    CHECK_INT(eg_memory().live_tensors, at_first.live_tensors);
    for (int i = 0; i < 20; i++) {  // with a scope in the loop: y takes the place in x's scope
        EG_SCOPE;
        eg_tensor *y = halved_square(x);
        eg_replace(&x, y);
        CHECK(eg_item(eg_reduce_sum(y)) == (double)(n * n));
    }
    CHECK_INT(eg_memory().live_tensors, at_first.live_tensors);
    CHECK_NEAR(eg_item(eg_reduce_mean(x)), 1, 1e-6);
}
TEST(replace_in_replace) {                     // and no compiler warns of that
    eg_tensor *x = eg_scalar(2), *y = eg_scalar(3), *z = eg_scalar(4);
    eg_replace(&y, eg_add(eg_replace(&x, eg_add(x, 1)), eg_mul(y, eg_replace(&z, eg_add(z, y)))));
    CHECK_NEAR(eg_item(x), 3, 0);
    CHECK_NEAR(eg_item(y), 24, 0);
    CHECK_NEAR(eg_item(z), 7, 0);
    eg_replace(&x, z), eg_replace(&z, eg_scalar(1));
    CHECK_NEAR(eg_item(z), 1, 0);
}
TEST(replace_and_who_else_holds_it) {
    EG_SCOPE;
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), *mine = eg_retain(x), *z, *none = NULL,
              *v = eg_variable(x, "v");
    eg_replace(&x, eg_transpose(x));                                // a view of what it was
    CHECK_TENSOR(x, 0, 1, 3, 2, 4);
    CHECK_TENSOR(mine, 0, 1, 2, 3, 4);                              // a reference of one's own
    CHECK_ERROR(eg_replace(&mine, eg_add(mine, 1)), EG_ERROR_STATE,
                "no scope of this thread owns x (from eg_constant)");
    CHECK_TENSOR(mine, 0, 1, 2, 3, 4);
    eg_release(mine);
    CHECK(eg_replace(&x, x) == x);
    z = eg_add(x, 1);
    eg_replace(&x, z);                                              // z has a place of its own
    eg_replace(&x, eg_add(x, 1));
    CHECK_TENSOR(z, 0, 2, 4, 3, 5);
    CHECK_TENSOR(x, 0, 3, 5, 4, 6);
    {
        EG_SCOPE;
        eg_tensor *inner = eg_keep(eg_add(x, 0));  // promised to the scope outside: so is what takes its place
        z = eg_replace(&inner, eg_mul(inner, 2));
    }
    CHECK_TENSOR(z, 0, 6, 10, 8, 12);
    eg_tape *tape = eg_tape_begin();                                // a tape has its own references
    eg_tape_watch(tape, x);
    eg_tensor *source = eg_retain(x);
    for (int i = 0; i < 3; i++) eg_replace(&x, eg_square(x));
    CHECK_TENSOR(eg_tape_gradient(tape, x, source), 1e-6, 8 * pow(3, 7), 8 * pow(5, 7), 8 * pow(4, 7), 8 * pow(6, 7));
    eg_release(source);
    eg_replace(&x, v);                                              // a variable: its value now
    CHECK(!eg_is_variable(x));
    eg_assign_add(v, 1);
    CHECK_TENSOR(x, 0, 1, 2, 3, 4);
    CHECK_ERROR(eg_replace(&v, x), EG_ERROR_ARGUMENT, "eg_replace: v is a variable: eg_assign changes it");
    CHECK_ERROR(eg_replace(&none, x), EG_ERROR_NULL, "eg_replace: operand 0 is NULL");
    CHECK_ERROR(eg_replace(NULL, x), EG_ERROR_NULL, "eg_replace: operand 0 is NULL");
    z = x;
    CHECK_ERROR(eg_replace(&x, eg_matmul(x, eg_scalar(1))), EG_ERROR_SHAPE, "eg_matmul");
    CHECK(!x);                                                      // as by x = y
    CHECK_TENSOR(z, 0, 1, 2, 3, 4);
    CHECK_ERROR(eg_replace(&z, NULL), EG_ERROR_NULL, "eg_replace: operand 1 is NULL");
    eg_release(v);
}

// What a convolution takes beyond its operands and results, forward and in both gradients, does not grow with the
// picture: panels of patches (416 KB with one thread, 128 KB more with each further one), and at most 4 MB of a
// filter's partial gradients.
static int64_t workspace_peak(void) { return eg_memory().peak_bytes - eg_memory().live_bytes; }
TEST(convolutions_take_no_memory_that_grows_with_the_picture) {
    if (!exact || !test_on_host) SKIP("dead handles stay, or the device has an allocator of its own");
#ifdef TEST_SLOW
    SKIP("the peak is the same without a sanitizer or valgrind");
#endif
    static const struct { int64_t filter[4]; eg_conv_options options; bool depthwise; } kinds[] = {
        {{3, 3, 16, 16}, {.padding = EG_SAME}, false},           {{1, 1, 16, 32}, {.padding = EG_VALID}, false},
        {{3, 3, 1, 16}, {.padding = EG_SAME}, false},            {{7, 7, 3, 16}, {.strides = {2, 2}}, false},
        {{3, 3, 16, 16}, {.dilations = {2, 2}}, false},          {{3, 3, 4, 16}, {.groups = 4}, false},
        {{3, 3, 16, 1}, {.padding = EG_SAME}, true},             {{5, 1, 16, 8}, {.padding = EG_SAME}, false}};
    const int64_t beyond = 420000 + 130000 * (eg_num_threads() - 1), parts = 4 << 20;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int64_t size = 32; size <= 256; size *= 2) {
            EG_SCOPE;
            const int64_t *f = kinds[k].filter, groups = kinds[k].options.groups ? kinds[k].options.groups : 1;
            eg_tensor *x = eg_random_normal(EG_SHAPE(2, size, size, f[2] * groups));
            eg_tensor *filter = eg_random_normal(EG_SHAPE(f[0], f[1], f[2], f[3])), *y, *dy;
            eg_tape *tapes[2];
            for (int i = 0; i < 2; i++) {
                tapes[i] = eg_tape_begin();
                eg_tape_watch(tapes[i], i ? filter : x);
                eg_memory_reset_peak();
                y = kinds[k].depthwise ? (eg_depthwise_conv2d)(x, filter, kinds[k].options)
                                       : (eg_conv2d)(x, filter, kinds[k].options);
                CHECK(workspace_peak() <= beyond);
                dy = eg_ones_like(y);
                eg_memory_reset_peak();
                eg_tensor *g;
                CHECK(eg_tape_gradients_from(tapes[i], &y, 1, &dy, i ? &filter : &x, 1, &g));
                CHECK(workspace_peak() <= beyond + (i ? parts : 0));
            }
        }
}

// The digits' network of `./build.sh run`: a step's peak. The loss is computed in a scope of its own, so that the
// backward pass frees what it has read; 4.03 MB beside the 0.33 MB that stay between the steps. The gradient of relu is
// written over the one that comes to it: a tensor of 1.4 MB less where the most are alive.
static eg_tensor *conv_relu(eg_tensor *x, eg_tensor *filter, eg_tensor *bias) {
    EG_SCOPE;
    eg_tensor *h = eg_conv2d(x, filter);
    eg_replace(&h, eg_add(h, bias));          // the product is let go of before relu makes another tensor
    return eg_keep(eg_relu(h));
}
TEST(the_peak_of_a_step_of_the_digits_model) {
    if (!exact || !test_on_host) SKIP("dead handles stay, or the device has an allocator of its own");
#ifdef TEST_SLOW
    SKIP("the peak is the same without a sanitizer or valgrind");
#endif
    eg_tensor *x = eg_random_normal(EG_SHAPE(32, 28, 28, 1)), *labels = eg_zeros(EG_INT32, EG_SHAPE(32));
    eg_tensor *p[] = {eg_variable(eg_random_normal(EG_SHAPE(3, 3, 1, 16)), "k"),
                      eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(16)), "b"),
                      eg_variable(eg_random_normal(EG_SHAPE(3, 3, 16, 32)), "k2"),
                      eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(32)), "b2"),
                      eg_variable(eg_random_normal(EG_SHAPE(800, 10)), "w"),
                      eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "b3")};
    eg_optimizer *adam = eg_adam(.learning_rate = 1e-3);
    int64_t between = 0;
    for (int step = 0; step < 4; step++) {
        EG_SCOPE;
        between = eg_memory().live_bytes;
        eg_memory_reset_peak();
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss, *grads[6];
        {
            EG_SCOPE;
            eg_tensor *h = eg_max_pool2d(conv_relu(eg_max_pool2d(conv_relu(x, p[0], p[1])), p[2], p[3]));
            h = eg_add(eg_matmul(eg_reshape(h, EG_SHAPE(32, 800)), p[4]), p[5]);
            loss = eg_keep(eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, h)));
        }
        REQUIRE(eg_tape_gradients(tape, loss, p, 6, grads));
        CHECK(eg_apply_gradients(adam, grads, p, 6));
    }
    CHECK(eg_memory().peak_bytes - between < 4070000);
    for (int i = 0; i < 6; i++) eg_release(p[i]);
    eg_optimizer_release(adam);
}
// A number that is written in the call of an elementwise row has a handle that the thread lends to the op: it is taken
// back at the op's end, also of ops that fail.
TEST(numbers_in_calls_are_lent) {
#ifdef EAGER_DEBUG
    SKIP("each number has the place of its own call in a debug build");
#endif
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *keep = eg_scalar(0);
    const int64_t made = eg_memory().tensors_made;
    for (int i = 0; i < 100; i++) {
        EG_SCOPE;
        CHECK(!eg_add(NULL, i));
        eg_error_clear();
        CHECK(!eg_where(x, i, i));                             // the condition is no bool
        eg_error_clear();
    }
    CHECK_INT(eg_memory().tensors_made, made);
    eg_tensor *y = eg_mul(eg_sub(x, 1), eg_add(2.5, x)), *z = eg_clip_by_value(x, 1.25, 1.5), *w = eg_pow(x, 3);
    CHECK_INT(eg_memory().tensors_made - made, 3 + 1 + 2);    // no handle but those of results
    CHECK_TENSOR(y, 0, 0, 4.5);
    CHECK_TENSOR(z, 0, 1.25, 1.5);
    CHECK_TENSOR(w, 0, 1, 8);
    // More numbers wait than there are handles to lend, whichever operand is made first.
    CHECK_TENSOR(eg_sub(1, eg_sub(2, eg_sub(3, eg_sub(4, eg_sub(5, eg_sub(6, eg_sub(7, eg_sub(8, eg_sub(9,
                 eg_sub(10, x)))))))))), 0, -5 + 1, -5 + 2);
    CHECK_TENSOR(eg_sub(eg_sub(eg_sub(eg_sub(eg_sub(eg_sub(eg_sub(eg_sub(eg_sub(eg_sub(x, 10), 9), 8), 7), 6), 5), 4),
                 3), 2), 1), 0, -54, -53);
    // An operand of another call may be called NaN, a negative zero, or a whole number that no double holds.
    CHECK_NEAR(eg_item(eg_div(eg_scalar(1), -0.0)), -INFINITY, 0);
    CHECK(isnan(eg_item(eg_add(keep, (double)NAN))));
    const int64_t large = ((int64_t)1 << 53) + 1;
    CHECK(eg_item_int(eg_add(eg_scalar_of(EG_INT64, 0), large)) == large);
    eg_set_default_float(EG_FLOAT64);
    CHECK_DTYPE(eg_add(2.0, 2.0), EG_FLOAT64);
    eg_set_default_float(EG_FLOAT32);
    CHECK_DTYPE(eg_add(2.0, 2.0), EG_FLOAT32);
}
// Assignments of numbers, which make no tensor, leave none in the scope of a loop.
TEST(assigned_numbers_are_lent) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v"), *no_variable = eg_scalar(0);
    const int64_t live = eg_memory().live_tensors;
    for (int i = 0; i < 20; i++) {
        CHECK(eg_assign(v, i) && eg_assign_add(v, i) && eg_assign_sub(v, 0.5));
        CHECK(eg_assign_slice(v, EG_SHAPE(1), EG_SHAPE(1), i));
        CHECK_ERROR(eg_assign(no_variable, i), EG_ERROR_ARGUMENT, "is no variable");
        CHECK_ERROR(eg_assign_add(no_variable, i), EG_ERROR_ARGUMENT, "is no variable");
        CHECK_ERROR(eg_assign_slice(v, EG_SHAPE(2), EG_SHAPE(1), i), EG_ERROR_INDEX, "slice");
    }
#ifdef EAGER_DEBUG
    (void)live;                             // a debug build lends no handles
#else
    CHECK_INT(eg_memory().live_tensors, live);
#endif
    CHECK_TENSOR(v, 0, 37.5, 19);
    CHECK_TENSOR(eg_sub(eg_assign_add(v, 2), eg_assign_sub(v, 1)), 0, 0, 0);
    CHECK_TENSOR(eg_sub(100, eg_assign(v, 7)), 0, 93, 93);
    eg_release(v);
}
static bool adds_and_multiplies(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(eg_add(in[0], 1), 3);
    return out[0] != NULL;
}
static eg_tensor *begin_to_record(eg_tensor *x) {
    CHECK(eg_record(test_temp("lent.npz")));
    for (int i = 0; i < 20; i++) eg_add(x, 200 + i);
    return x;
}
// Numbers that a tape, a recording or a traced function keeps outlive the op's handle.
TEST(lent_numbers_are_kept_by_value) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2);
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin_persistent();
    CHECK(eg_tape_watch(outer, x) && eg_tape_watch(tape, x));
    eg_tensor *y = eg_pow(eg_mul(x, 3), 2.5), *z = eg_where(eg_greater(x, 1.5), eg_mul(5, x), 0);
    for (int i = 0; i < 20; i++) eg_add(x, 100 + i);           // other numbers take the handles
    const double at[] = {2.5 * pow(3, 1.5) * 3, 2.5 * pow(6, 1.5) * 3};
    eg_tensor *g = eg_tape_gradient(tape, y, x);
    CHECK_TENSOR(g, 1e-4, at[0], at[1]);
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 1e-4, at[0], at[1]);
    CHECK_TENSOR(eg_tape_gradient(tape, z, x), 0, 0, 5);
    CHECK_TENSOR(eg_tape_gradient(outer, g, x), 1e-3, 2.5 * 1.5 * pow(3, .5) * 9, 2.5 * 1.5 * pow(6, .5) * 9);
    eg_function *f = eg_function_new(adds_and_multiplies, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 6, 9);
        eg_add(x, 7 + i);
    }
    eg_function_release(f);
    // A recording that begins while a number waits for its op.
    CHECK_TENSOR(eg_sub(begin_to_record(x), 4), 0, -3, -2);
    CHECK(eg_record_stop());
    CHECK_TENSOR(eg_sub(4, begin_to_record(x)), 0, 3, 2);
    CHECK(eg_record_stop());
}
// What a program asks for by name is its own, so that one name can be given another value.
TEST(numbers_that_are_asked_for_share_nothing) {
    eg_tensor *sum = eg_number(0), *count = eg_number(0), *two = eg_integer(2), *other = eg_integer(2);
    CHECK(sum != count && two != other);
    for (int i = 0; i < 3; i++) {
        eg_replace(&sum, eg_add(sum, 5));
        eg_replace(&count, eg_add(count, 1));
    }
    CHECK_NEAR(eg_item(sum), 15, 0);
    CHECK_NEAR(eg_item(count), 3, 0);
    eg_replace(&two, eg_mul(two, 3));
    for (int i = 0; i < 20; i++) eg_number(70 + i);
    CHECK_NEAR(eg_item(other), 2, 0);
}
// After the forward pass of a chain of ops of four floats: the handles of results, their elements, the tape's lines,
// slots and map, the scope's stack, and what these arrays have in reserve. A line has the values of plain numbers.
TEST(a_taped_op_takes_at_most_288_bytes) {
#if defined(EAGER_DEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("blocks have other sizes");
#endif
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(4)), "v");
    for (int form = 0; form < 7; form++)
        for (int n = 100; n <= 10000; n *= 10) {
            EG_SCOPE;
            eg_memory_reset_peak();
            const int64_t before = eg_memory().live_bytes;
            eg_tape *tape = eg_tape_begin();
            eg_tensor *y = v;
            for (int i = 0; i < n; i++)
                y = form == 0 ? eg_add(y, v) : form == 1 ? eg_mul(y, v) : form == 2 ? eg_sin(y)
                    : form == 3 ? eg_mul(y, 1.0001) : form == 4 ? eg_mul(y, 1 + 1e-9 * i)
                    : form == 5 ? eg_add(y, i + 1) : eg_clip_by_value(y, -1, 1000 + i);
            CHECK((double)(eg_memory().peak_bytes - before) / n <= 288);
            CHECK(eg_tape_gradient(tape, y, v) != NULL);
        }
    eg_release(v);
}
