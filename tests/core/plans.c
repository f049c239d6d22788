// Traced functions: a list's plan has the workspace of each kernel, so that a replay allocates its results alone, the
// bytes told before the first replay are what replays take, and the bits are those of the body.
#ifndef EAGER_BACKEND
#define EAGER_BACKEND
#endif
#include "test.h"
#include "faults.h"

// ---- the CPU's kernels, each behind a function that notes whether it takes memory while it runs

static bool takes[EGI_KERNELS];
static egi_kernel_function *kernels[EGI_KERNELS];
static bool watched(int kernel, eg_backend *b, const egi_args *args) {
    const int64_t live = eg_memory().live_bytes;
    eg_memory_reset_peak();
    const bool ok = kernels[kernel](b, args);
    takes[kernel] = takes[kernel] || eg_memory().peak_bytes > live;
    return ok;
}
#define WATCH(NUMBER, name, ...) \
    static bool watch_##name(eg_backend *b, const egi_args *args) { return watched(EGI_##NUMBER, b, args); }
#define WATCH_ENTRY(NUMBER, name, ...) watch_##name,
#define WATCH_NONE(NUMBER, name, ...)
#define WATCH_NULL(NUMBER, name, ...) NULL,
#define WATCH_SPACE(NUMBER, name, flags, operations, space, ...) #space,
#define WATCH_NAME(NUMBER, name, ...) #name,
EGI_KERNEL_TABLE(WATCH, WATCH, WATCH_NONE)
static void watch(bool on) {
    static egi_kernel_function *const all[] = { EGI_KERNEL_TABLE(WATCH_ENTRY, WATCH_ENTRY, WATCH_NULL) };
    eg_backend *cpu = egi_backend_cpu();
    for (int k = 0; k < EGI_KERNELS; k++) {
        if (!kernels[k]) kernels[k] = cpu->kernel[k];
        cpu->kernel[k] = on && all[k] ? all[k] : kernels[k];
    }
}

// ---- ops at sizes that need workspace

static eg_layer *layer;                                     // of the ops that are layers
static eg_tensor *times(eg_tensor *const *in) { return eg_matmul(in[0], in[1]); }
static eg_tensor *times_turned(eg_tensor *const *in) { return eg_matmul(in[0], eg_transpose(in[1])); }
static eg_tensor *times_more(eg_tensor *const *in) {
    eg_tensor *row = eg_ones(eg_dtype_of(in[1]), EG_SHAPE(eg_dim(in[1], -1)));
    return eg_relu(eg_add(eg_matmul(in[0], in[1]), row));
}
static eg_tensor *conv(eg_tensor *const *in) { return eg_conv2d(in[0], in[1], .padding = EG_SAME); }
static eg_tensor *conv_strides(eg_tensor *const *in) { return eg_conv2d(in[0], in[1], .strides = {2}); }
static eg_tensor *conv_dilated(eg_tensor *const *in) {
    return eg_conv2d(in[0], in[1], .dilations = {3}, .padding = EG_SAME);
}
static eg_tensor *conv_groups(eg_tensor *const *in) {
    return eg_conv2d(in[0], in[1], .groups = 2, .padding = EG_SAME);
}
static eg_tensor *depthwise(eg_tensor *const *in) { return eg_depthwise_conv2d(in[0], in[1], .padding = EG_SAME); }
static eg_tensor *sorted(eg_tensor *const *in) { return eg_sort(in[0]); }
static eg_tensor *places(eg_tensor *const *in) { return eg_argsort(in[0]); }
static eg_tensor *top(eg_tensor *const *in) { return eg_top_k(in[0], 40, NULL); }
static eg_tensor *rows(eg_tensor *const *in) { return eg_gather(in[0], in[1]); }
static eg_tensor *classes(eg_tensor *const *in) { return eg_sparse_softmax_cross_entropy_with_logits(in[1], in[0]); }
static eg_tensor *product(eg_tensor *const *in) { return eg_reduce_prod(in[0], .axes = EG_AXES(0)); }
static eg_tensor *pool(eg_tensor *const *in) { return eg_avg_pool2d(in[0], .size = {18}, .strides = {2}); }
static eg_tensor *call(eg_tensor *const *in) { return eg_call(layer, in[0], .training = true); }
static eg_layer *layer_norm(void) { return eg_layer_layer_normalization(); }
static eg_layer *group_norm(void) { return eg_layer_group_normalization(.groups = 4); }
static eg_layer *lstm(void) { return eg_layer_lstm(48, .return_sequences = true); }
static eg_layer *gru(void) { return eg_layer_gru(40); }
static eg_layer *attention(void) { return eg_layer_multi_head_attention(2, 24); }
static eg_layer *attention_causal(void) { return eg_layer_multi_head_attention(2, 8, .causal = true); }

typedef struct work {
    const char *name;
    eg_tensor *(*forward)(eg_tensor *const *in);
    eg_layer *(*layer)(void);
    eg_shape a, b;                                          // of in[0] and in[1]; rank 0: no in[1]
    eg_dtype dtype;                                         // of floats
    int limit;                                              // in[1] is of int32, from 0 to below it; 0: it is of floats
    bool no_gradient;
} work;
#define NONE { 0, { 0 } }
static const work works[] = {
    { "products", times, NULL, { 2, { 300, 520 } }, { 2, { 520, 620 } }, EG_FLOAT32, 0, false },
    { "products of float64", times, NULL, { 2, { 130, 300 } }, { 2, { 300, 610 } }, EG_FLOAT64, 0, false },
    { "products with a transposed operand", times_turned, NULL, { 2, { 90, 200 } }, { 2, { 120, 200 } }, EG_FLOAT32, 0,
      false },
    { "a product with a row and relu", times_more, NULL, { 2, { 260, 300 } }, { 2, { 300, 150 } }, EG_FLOAT32, 0,
      true },
    { "a long product", times, NULL, { 2, { 12, 140000 } }, { 2, { 140000, 9 } }, EG_FLOAT32, 0, false },
    { "a batch of products", times, NULL, { 3, { 24, 60, 64 } }, { 3, { 24, 64, 80 } }, EG_FLOAT32, 0, false },
    { "a convolution", conv, NULL, { 4, { 4, 14, 14, 16 } }, { 4, { 3, 3, 16, 24 } }, EG_FLOAT32, 0, false },
    { "a convolution of few channels", conv_strides, NULL, { 4, { 4, 31, 31, 3 } }, { 4, { 3, 3, 3, 16 } }, EG_FLOAT32,
      0, false },
    { "a convolution of float64", conv, NULL, { 4, { 2, 12, 12, 8 } }, { 4, { 3, 3, 8, 8 } }, EG_FLOAT64, 0, false },
    { "a convolution with dilations", conv_dilated, NULL, { 4, { 2, 16, 16, 8 } }, { 4, { 3, 3, 8, 16 } }, EG_FLOAT32,
      0, false },
    { "a convolution in groups", conv_groups, NULL, { 4, { 2, 16, 16, 8 } }, { 4, { 3, 3, 4, 16 } }, EG_FLOAT32, 0,
      false },
    { "a convolution of pixels", conv, NULL, { 4, { 2, 24, 24, 64 } }, { 4, { 1, 1, 64, 32 } }, EG_FLOAT32, 0, false },
    { "a convolution of one picture", conv, NULL, { 4, { 1, 6, 6, 96 } }, { 4, { 3, 3, 96, 256 } }, EG_FLOAT32, 0,
      false },
    { "a depthwise convolution", depthwise, NULL, { 4, { 4, 20, 20, 16 } }, { 4, { 3, 3, 16, 1 } }, EG_FLOAT32, 0,
      false },
    { "a depthwise convolution of many taps", depthwise, NULL, { 4, { 1, 24, 24, 4 } }, { 4, { 17, 17, 4, 2 } },
      EG_FLOAT32, 0, false },
    { "a sort", sorted, NULL, { 2, { 3, 4000 } }, NONE, EG_FLOAT32, 0, true },
    { "a sort of float64", sorted, NULL, { 2, { 3, 4000 } }, NONE, EG_FLOAT64, 0, false },
    { "positions", places, NULL, { 2, { 2, 3000 } }, NONE, EG_FLOAT32, 0, true },
    { "the largest", top, NULL, { 2, { 2, 5000 } }, NONE, EG_FLOAT32, 0, false },
    { "rows", rows, NULL, { 2, { 50, 40 } }, { 1, { 3000 } }, EG_FLOAT32, 3, false },
    { "classes", classes, NULL, { 2, { 400, 20 } }, { 1, { 400 } }, EG_FLOAT32, 20, false },
    { "a product of elements", product, NULL, { 2, { 40, 300 } }, NONE, EG_FLOAT32, 0, false },
    { "a pool of many elements", pool, NULL, { 4, { 2, 26, 26, 4 } }, NONE, EG_FLOAT32, 0, false },
    { "layer normalization", call, layer_norm, { 4, { 4, 8, 8, 48 } }, NONE, EG_FLOAT32, 0, false },
    { "group normalization", call, group_norm, { 4, { 4, 8, 8, 16 } }, NONE, EG_FLOAT64, 0, false },
    { "layer normalization in parts", call, layer_norm, { 2, { 520, 400 } }, NONE, EG_FLOAT32, 0, false },
    { "group normalization in parts", call, group_norm, { 4, { 9, 40, 31, 20 } }, NONE, EG_FLOAT64, 0, false },
    { "group normalization of few examples in parts", call, group_norm, { 4, { 2, 74, 75, 20 } }, NONE, EG_FLOAT32, 0,
      false },
    { "an LSTM", call, lstm, { 3, { 8, 6, 32 } }, NONE, EG_FLOAT32, 0, false },
    { "a GRU", call, gru, { 3, { 8, 6, 32 } }, NONE, EG_FLOAT32, 0, false },
    { "attention", call, attention, { 3, { 2, 100, 48 } }, NONE, EG_FLOAT32, 0, false },
    { "causal attention", call, attention_causal, { 3, { 2, 70, 16 } }, NONE, EG_FLOAT32, 0, false },
};
enum { WORKS = sizeof works / sizeof *works, RESULTS = 3 };

// The op, and its gradients where it has any.
static bool run(eg_tensor *const *in, eg_tensor **out, void *user) {
    const work *w = (const work *)user;
    const int n = w->limit || !w->b.rank ? 1 : 2;
    if (w->no_gradient) {
        out[0] = w->forward(in);
        out[1] = out[2] = NULL;
        return out[0] != NULL;
    }
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < n; i++) eg_tape_watch(tape, in[i]);
    out[0] = w->forward(in);
    out[1] = out[2] = NULL;
    return eg_tape_gradients(tape, eg_reduce_sum(eg_square(out[0])), in, n, out + 1);
}
static bool same(eg_tensor *const *a, eg_tensor *const *b) {
    for (int i = 0; i < RESULTS; i++) {
        if (!a[i] != !b[i]) return false;
        const size_t bytes = a[i] ? (size_t)(eg_size(a[i]) * (int64_t)eg_dtype_size(eg_dtype_of(a[i]))) : 0;
        const void *p = bytes ? eg_data(a[i]) : NULL, *q = bytes ? eg_data(b[i]) : NULL;
        if (bytes && (!p || !q || memcmp(p, q, bytes) != 0)) return false;
    }
    return true;
}
static void inputs(const work *w, eg_tensor *in[2]) {
    in[0] = eg_cast(eg_random_normal(w->a), w->dtype);
    in[1] = !w->b.rank ? NULL : w->limit ? eg_cast(eg_mul(eg_random_uniform(w->b), w->limit), EG_INT32)
            : eg_cast(eg_random_normal(w->b), w->dtype);
}
// A replay's peak beyond what stays after it.
static int64_t passing(eg_function *f, eg_tensor *const *in, int n, eg_tensor **out) {
    eg_memory_reset_peak();
    CHECK(eg_function_call(f, in, n, out, RESULTS));
    return eg_memory().peak_bytes - eg_memory().live_bytes;
}
static void check_work(const work *w) {
    EG_SCOPE;
    eg_tensor *in[2], *want[RESULTS], *got[RESULTS];
    const int n = w->b.rank ? 2 : 1;
    void *user = (void *)(uintptr_t)w;
    eg_seed(3);
    inputs(w, in);
    layer = w->layer ? w->layer() : NULL;
    if (layer) CHECK(eg_call(layer, in[0], .training = true) != NULL);
    watch(test_on_host);
    CHECK(run(in, want, user));
    watch(false);
    eg_function *f = eg_function_new(run, user, .no_recheck = true);
    CHECK(eg_function_call(f, in, n, got, RESULTS));
    CHECK(same(want, got));
    const int64_t planned = eg_function_counts(f).bytes;
    for (int call = 0; call < 3; call++) {
        const int64_t more = passing(f, in, n, got);
        if (test_on_host && more) printf("    %s: replay %d took %lld bytes more\n", w->name, call, (long long)more);
        if (test_on_host) CHECK_INT(more, 0);
        CHECK(same(want, got));
    }
    CHECK(!eg_function_reason(f));
    CHECK_INT(eg_function_counts(f).replays, 3);
    const int64_t had = eg_function_trim(f);                // all that replays had; it is more by what aligns it
    if (test_on_host) CHECK(had >= planned && had <= planned + 2048);
    eg_function_release(f);
    eg_layer_release(layer);
}
TEST(the_plan_has_the_workspace_of_every_kernel) {
    static const char *const spaces[] = { EGI_KERNEL_TABLE(WATCH_SPACE, WATCH_SPACE, WATCH_SPACE) },
                      *const names[] = { EGI_KERNEL_TABLE(WATCH_NAME, WATCH_NAME, WATCH_NAME) };
    const int threads = eg_num_threads(), most = test_on_cuda ? 1 : 3;      // those of the CPU are nothing to a GPU
    for (int k = 1; k <= most; k += test_share > 1 ? 2 : 1) {
        CHECK(eg_set_num_threads(k));
        for (int i = 0; i < WORKS; i++) check_work(&works[i]);
    }
    CHECK(eg_set_num_threads(threads));
    for (int k = 0; k < EGI_KERNELS && test_on_host; k++) {
        if (takes[k] == (strcmp(spaces[k], "none") != 0)) continue;
        printf("    %s: its space is %s, and it %s some\n", names[k], spaces[k], takes[k] ? "took" : "never took");
        CHECK(false);
    }
}

// ---- the bytes that are told before the first replay

// The workspace of an op alone: what its list is told to take is what the op takes for a time when it runs eagerly,
// but for the rounding of blocks.
TEST(the_bytes_of_a_plan_are_told_before_the_first_replay) {
    if (!test_on_host) SKIP("the device has an allocator of its own");
    for (int i = 0; i < WORKS; i++) {
        EG_SCOPE;
        work w = works[i];
        eg_tensor *in[2], *y[RESULTS];
        if (w.layer || w.forward == conv_groups || w.forward == times_turned || w.forward == times_more)
            continue;                                       // of several launches
        w.no_gradient = true;
        inputs(&w, in);
        eg_memory_reset_peak();
        CHECK(run(in, y, &w));
        const int64_t passed = eg_memory().peak_bytes - eg_memory().live_bytes;
        eg_function *f = eg_function_new(run, &w, .no_recheck = true);
        CHECK(eg_function_call(f, in, w.b.rank ? 2 : 1, y, RESULTS));
        const int64_t told = eg_function_counts(f).bytes;
        if (told > passed + 256 || passed > told + told / 4 + 4096) {
            printf("    %s: %lld bytes told, %lld passed\n", w.name, (long long)told, (long long)passed);
            CHECK(false);
        }
        eg_function_release(f);
    }
}

// A list that follows from those of two other lengths is planned without a run of its body.
TEST(a_derived_list_has_its_plan) {
    EG_SCOPE;
    static const work w = { "", times_turned, NULL, NONE, NONE, EG_FLOAT32, 0, true };
    eg_function *f = eg_function_new(run, (void *)(uintptr_t)&w);
    eg_tensor *b = eg_random_normal(EG_SHAPE(120, 200));
    for (int64_t n = 60; n < 120; n += 10) {
        eg_tensor *in[] = { eg_random_normal(EG_SHAPE(n, 200)), b }, *want[RESULTS], *got[RESULTS];
        CHECK(run(in, want, (void *)(uintptr_t)&w));
        for (int call = 0; call < 6; call++) {
            const int64_t replays = eg_function_counts(f).replays, more = passing(f, in, 2, got);
            if (test_on_host && eg_function_counts(f).replays > replays) CHECK_INT(more, 0);
            CHECK(same(want, got));
        }
    }
    if (test_on_host) CHECK(eg_function_counts(f).derived > 0);
    eg_function_release(f);
}

// With more threads than when the list was planned, kernels allocate; the bits are the same.
TEST(more_threads_than_the_plan_knew) {
#ifdef EAGER_OPENBLAS
    SKIP("OpenBLAS adds up large products in an order that depends on its threads");
#endif
    if (test_on_cuda) SKIP("threads of the CPU are nothing to a GPU");
    const int threads = eg_num_threads();
    for (int i = 0; i < WORKS; i++) {
        EG_SCOPE;
        eg_tensor *in[2], *want[RESULTS], *got[RESULTS];
        inputs(&works[i], in);
        layer = works[i].layer ? works[i].layer() : NULL;
        if (layer) CHECK(eg_call(layer, in[0], .training = true) != NULL);
        eg_function *f = eg_function_new(run, (void *)(uintptr_t)&works[i], .no_recheck = true);
        CHECK(eg_set_num_threads(1));
        for (int k = 1; k <= 3; k++) {
            CHECK(eg_set_num_threads(k));
            CHECK(eg_function_call(f, in, works[i].b.rank ? 2 : 1, k == 1 ? want : got, RESULTS));
            if (k > 1) CHECK(same(want, got));
        }
        eg_function_release(f);
        eg_layer_release(layer);
    }
    CHECK(eg_set_num_threads(threads));
}

// ---- without memory

static int without;                                         // which of the works
static bool act(void) {
    eg_tensor *in[2], *want[RESULTS], *got[RESULTS];
    const work *w = &works[without];
    eg_function *f = eg_function_new(run, (void *)(uintptr_t)w, .no_recheck = true);
    eg_seed(3);
    inputs(w, in);
    bool ok = f && run(in, want, (void *)(uintptr_t)w);
    for (int call = 0; call < 3 && ok; call++)
        ok = eg_function_call(f, in, w->b.rank ? 2 : 1, got, RESULTS) && same(want, got);
    eg_function_release(f);
    return ok;
}
// On the stand-in for CUDA kernels take none of the memory that fails, and there is nothing to race with: some works.
#if defined(TEST_CUDA_HOST) || defined(__SANITIZE_THREAD__)
enum { every = 4 };
#else
enum { every = 1 };
#endif
TEST(a_plan_without_memory) {
    for (without = 0; without < WORKS; without += every)
        if (!works[without].layer && strncmp(works[without].name, "a long", 6) != 0) faults_sweep(act);
}
