// Products, in a copy of the library whose blocks of rows and columns are variables: whatever their sizes, from one
// tile to more than the whole, whatever the number of threads, and with tiles of AVX-512 or of AVX2, the bits are the
// same. That is what lets a machine with other caches have other blocks. Thin, batched and packed products, those of
// convolutions, of recurrent layers and of attention. Small products of all sizes against plain sums, between pages
// that nobody may touch.
#define _DEFAULT_SOURCE              // MAP_ANONYMOUS
#include <stdint.h>
static int64_t block_rows = 96, block_columns = 2048;
#define EGI_MC block_rows
#define EGI_NC block_columns
#undef EAGER_CUDA
#undef TEST_CUDA                     // the GPUs belong to the library, not to this copy
#undef EAGER_OPENBLAS                // which adds up large products in an order that depends on its threads
#define EAGER_STATIC
#define EAGER_IMPLEMENTATION
#include "test.h"

static uint64_t bits_of(eg_tensor *x) {
    const int64_t n = eg_size(x) * eg_dtype_size(eg_dtype_of(x));
    const unsigned char *bytes = (const unsigned char *)eg_data(x);
    uint64_t h = 14695981039346656037u;
    for (int64_t i = 0; bytes && i < n; i++) h = (h ^ bytes[i]) * 1099511628211u;
    return bytes ? h : 0;
}
// The result of one kind, made anew of the same numbers; NULL: there are no more kinds.
static eg_tensor *numbers(eg_dtype dtype, eg_shape shape) { return eg_random_normal(shape, .dtype = dtype); }
static eg_tensor *product(int kind, eg_dtype dtype) {
    static const int64_t shapes[][4] = {                                                   // batch, m, n, k
        { 1, 2, 300, 700 }, { 1, 300, 3, 700 }, { 1, 300, 17, 300 }, { 1, 7, 2100, 65 },   // thin
        { 1, 201, 100, 300 }, { 1, 130, 2100, 40 }, { 1, 101, 257, 600 },                  // packed
        { 9, 13, 21, 70 }, { 3, 100, 140, 90 }, { 50, 8, 8, 8 },                           // batched
        { 1, 500, 1, 900 }, { 1, 1, 500, 900 } };
    const int count = (int)(sizeof shapes / sizeof *shapes);
    if (test_share > 1) kind *= 3;                             // each shape in one or two of its four forms
    if (kind >= 4 * count) return NULL;
    const int64_t *s = shapes[kind / 4];
    const bool ta = kind & 1, tb = kind & 2;
    return eg_matmul(numbers(dtype, ta ? EG_SHAPE(s[0], s[3], s[1]) : EG_SHAPE(s[0], s[1], s[3])),
                     numbers(dtype, tb ? EG_SHAPE(s[0], s[2], s[3]) : EG_SHAPE(s[0], s[3], s[2])),
                     .transpose_a = ta, .transpose_b = tb);
}
// A value and its gradients along x and w, as one row.
static eg_tensor *with_gradients(eg_tensor *(*f)(eg_tensor *x, eg_tensor *w), eg_tensor *x, eg_tensor *w) {
    eg_tensor *in[] = { x, w }, *d[2], *all[3];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, w);
    eg_tensor *y = f(x, w);
    if (!eg_tape_gradients(tape, eg_reduce_sum(eg_square(y)), in, 2, d)) return NULL;
    all[0] = eg_reshape(y, EG_SHAPE(-1));
    for (int i = 0; i < 2; i++) all[i + 1] = eg_reshape(d[i], EG_SHAPE(-1));
    return eg_concat(all, 3, 0);
}
static eg_tensor *no_padding(eg_tensor *x, eg_tensor *w) { return eg_conv2d(x, w); }
static eg_tensor *same_padding(eg_tensor *x, eg_tensor *w) { return eg_conv2d(x, w, .padding = EG_SAME); }
static eg_tensor *two_apart(eg_tensor *x, eg_tensor *w) { return eg_conv2d(x, w, .strides = { 2 }); }
static eg_tensor *convolution(int kind, eg_dtype dtype) {
    static const int64_t shapes[][5] = {                        // pixels a side, channels, taps, filters, how
        { 23, 24, 3, 33, 0 }, { 23, 3, 5, 24, 1 }, { 17, 30, 1, 70, 0 }, { 21, 24, 3, 40, 1 }, { 30, 2, 3, 5, 0 },
        { 26, 16, 3, 16, 2 }, { 28, 1, 3, 16, 2 }, { 25, 16, 3, 12, 0 } };
    static eg_tensor *(*const how[])(eg_tensor *, eg_tensor *) = { same_padding, two_apart, no_padding };
    if (kind >= (int)(sizeof shapes / sizeof *shapes)) return NULL;
    const int64_t *s = shapes[kind];
    return with_gradients(how[s[4]], numbers(dtype, EG_SHAPE(2, s[0], s[0], s[1])),
                          numbers(dtype, EG_SHAPE(s[2], s[2], s[1], s[3])));
}
#ifdef EAGER_CORE
static eg_tensor *recurrence(int kind, eg_dtype dtype) { (void)kind, (void)dtype; return NULL; }
#else
static eg_layer *layer;
static eg_tensor *called(eg_tensor *x, eg_tensor *w) { (void)w; return eg_call(layer, x, .training = true); }
static eg_tensor *recurrence(int kind, eg_dtype dtype) {
    if (kind > 1) return NULL;
    eg_tensor *x = numbers(dtype, EG_SHAPE(110, 3, 20)), *w[4];
    layer = kind ? eg_layer_gru(37, .dtype = dtype) : eg_layer_lstm(37, .dtype = dtype);
    eg_tensor *y = eg_layer_build(layer, eg_shape_of(x)) && eg_layer_weights(layer, w, 4) > 1
                   ? with_gradients(called, x, w[1]) : NULL;
    eg_layer_release(layer);
    return y;
}
// Heads of so many elements that a tile of AVX-512 has more columns than one of AVX2, or fewer; so many keys that the
// gradient's sums are cut.
static eg_tensor *attention(int kind, eg_dtype dtype) {
    static const int64_t sizes[][2] = { { 10, 130 }, { 20, 1100 }, { 40, 900 }, { 64, 700 } };         // and keys
    if (kind >= (int)(sizeof sizes / sizeof *sizes)) return NULL;
    eg_tensor *x = numbers(dtype, EG_SHAPE(1, sizes[kind][1], 5)), *w[8];
    layer = eg_layer_multi_head_attention(2, sizes[kind][0], .causal = kind & 1, .dtype = dtype);
    eg_tensor *y = eg_layer_build(layer, eg_shape_of(x)) && eg_layer_weights(layer, w, 8) > 1
                   ? with_gradients(called, x, w[0]) : NULL;
    eg_layer_release(layer);
    return y;
}
#endif
#if EGI_X86
// Of two runs one, and at least the first, has all that the processor has.
static void choose_isa(size_t run) { egi_isa = run % 2 ? EGI_ISA_AVX2 : EGI_ISA_UNKNOWN; }
static bool has_avx512(void) {
    egi_isa = EGI_ISA_UNKNOWN;
    return egi_isa_get() == EGI_ISA_AVX512;
}
#else
static void choose_isa(size_t run) { (void)run; }
#endif

static void check_blocks(eg_tensor *(*make)(int kind, eg_dtype dtype)) {
    static const int64_t sizes[][3] = { { 24, 32, 1 }, { 24, 64, 3 }, { 48, 96, 2 }, { 960, 32, 1 }, { 24, 1 << 16, 2 },
                                        { 9600, 1 << 16, 1 } };
    const int threads = eg_num_threads();
    int kinds = 0;
#if EGI_X86
    const bool twice = has_avx512();
#else
    const bool twice = false;
#endif
    for (int wide = 0; wide < 2; wide++)
        for (int kind = 0, more = 1; more; kind++) {
            EG_SCOPE;
            const eg_dtype dtype = wide ? EG_FLOAT64 : EG_FLOAT32;
            eg_seed(3);
            eg_tensor *y = make(kind, dtype);
            if (!(more = y != NULL)) break;
            const uint64_t want = bits_of(y);
            CHECK(want != 0);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                if (test_share > 1 && sizes[i][2] == 1) continue;           // sanitizers look at the team's work
                block_rows = sizes[i][0];
                block_columns = sizes[i][1];
                eg_set_num_threads((int)sizes[i][2]);
                if (twice) choose_isa(i + 1);
                eg_seed(3);
                y = make(kind, dtype);
                const uint64_t got = y ? bits_of(y) : 0;
                CHECK(got == want);
                if (got != want)
                    printf("    kind %d, %s: blocks of %lld x %lld\n", kind, eg_dtype_name(dtype),
                           (long long)block_rows, (long long)block_columns);
            }
            block_rows = 96;
            block_columns = 2048;
            if (twice) choose_isa(0);
            eg_set_num_threads(threads);
            kinds++;
        }
    CHECK(kinds > 3);
}
TEST(products_have_the_same_bits_in_all_blocks) { check_blocks(product); }
TEST(convolutions_have_the_same_bits_in_all_blocks) { check_blocks(convolution); }
#ifndef EAGER_CORE
TEST(recurrent_layers_have_the_same_bits_in_all_blocks) { check_blocks(recurrence); }
TEST(attention_has_the_same_bits_in_all_blocks) { check_blocks(attention); }
#endif
// x A + bias and relu of that in one launch, or in three; then the gradients along all three.
static eg_tensor *row_added(bool at_once, bool relu, eg_tensor *const *in) {
    eg_tensor *d[3], *all[4];
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < 3; i++) eg_tape_watch(tape, in[i]);
    eg_tensor *y = at_once ? egi_matmul_bias(in[0], in[1], in[2], relu) : eg_add(eg_matmul(in[0], in[1]), in[2]);
    if (relu && !at_once) y = eg_relu(y);
    if (!eg_tape_gradients(tape, eg_reduce_sum(eg_square(y)), in, 3, d)) return NULL;
    all[0] = eg_reshape(y, EG_SHAPE(-1));
    for (int i = 0; i < 3; i++) all[i + 1] = eg_reshape(d[i], EG_SHAPE(-1));
    return eg_concat(all, 4, 0);
}
TEST(a_row_and_relu_are_written_back_with_a_product) {
    // m, n, k: each way of egi_gemm, tiles in several blocks of rows, columns and terms, and sums in halves
    static const int64_t shapes[][3] = { { 1, 1, 9 }, { 3, 5, 2 }, { 8, 3, 8 }, { 1, 130, 300 }, { 130, 1, 300 },
                                         { 32, 128, 784 }, { 7, 17, 300 }, { 101, 257, 600 }, { 201, 70, 100 },
                                         { 2, 40, EGI_TERMS * EGI_KC + 300 }, { 4, 8, 0 } };
    static const int64_t sizes[][3] = { { 96, 2048, 1 }, { 24, 32, 2 }, { 48, 96, 3 } };
    const int threads = eg_num_threads();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int how = test_share > 1 ? 4 : 0; how < 4 * 3; how++) {
            EG_SCOPE;
            const eg_dtype dtype = how & 1 ? EG_FLOAT64 : EG_FLOAT32;
            const int64_t *s = shapes[i], *size = sizes[how / 4];
            eg_seed(5);
            eg_tensor *in[3] = { numbers(dtype, EG_SHAPE(s[0], s[2])), numbers(dtype, EG_SHAPE(s[2], s[1])),
                                 numbers(dtype, EG_SHAPE(s[1])) };
            // a NaN, which relu keeps
            if (s[1] > 2) in[2] = eg_where(eg_equal(eg_range(dtype, 0, (double)s[1], 1), 1), NAN, in[2]);
            CHECK(egi_dense_is_folded(in[0], in[1], in[2]));
            block_rows = 96;
            block_columns = 2048;
            const uint64_t want = bits_of(row_added(false, how & 2, in));
            block_rows = size[0];
            block_columns = size[1];
            eg_set_num_threads((int)size[2]);
            const uint64_t got = bits_of(row_added(true, how & 2, in));
            CHECK(want && got == want);
            if (got != want) printf("    (%d, %d) (%d, %d), way %d\n", (int)s[0], (int)s[2], (int)s[2], (int)s[1], how);
            eg_set_num_threads(threads);
        }
    block_rows = 96;
    block_columns = 2048;
}
TEST(tiles_of_avx512_have_the_bits_of_avx2) {
#if EGI_X86
    if (!has_avx512()) SKIP("this processor has no AVX-512; where one has it, all tests of this file compare the two");
#else
    SKIP("not for x86-64");
#endif
}

#if defined(__unix__) && !defined(TEST_GUARD)
#include <sys/mman.h>
#include <unistd.h>
enum { SIDE = 130, MOST_TERMS = 70, ROOM = SIDE * SIDE };
// Room for n elements that ends where a page begins that nobody may touch.
static char *fenced[3];
static size_t room;
static bool fences_are_up(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    room = (ROOM * 8 / page + 1) * page;
    for (int i = 0; i < 3; i++) {
        void *all = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) return false;
        fenced[i] = (char *)all + page;
        if (mprotect(fenced[i], room, PROT_READ | PROT_WRITE)) return false;
    }
    return true;
}
// c (m, n), whose rows are ldc apart, from products of small numbers whose sums are exact, so that any order makes the
// same; elements between rows stay what they were.
#define CHECK_SIZES(T, kernels, name) \
static bool name##_is_right(bool ta, bool tb, int64_t m, int64_t n, int64_t k, int64_t ldc, bool add) { \
    const int64_t in_c = m > 0 ? (m - 1) * ldc + n : 0; \
    T *a = (T *)(void *)(fenced[0] + room) - m * k, *b = (T *)(void *)(fenced[1] + room) - k * n, \
      *c = (T *)(void *)(fenced[2] + room) - in_c; \
    for (int64_t i = 0; i < m * k; i++) a[i] = (T)((i * 7 + m) % 11 - 5) / 4; \
    for (int64_t i = 0; i < k * n; i++) b[i] = (T)((i * 5 + n) % 13 - 6) / 2; \
    for (int64_t i = 0; i < in_c; i++) c[i] = (T)(i % 3); \
    const egi_gemm_call g = { kernels(), ta, tb, add, false, m, n, k, ta ? m : k, tb ? k : n, ldc, (const char *)a, \
                              (const char *)b, NULL, (char *)c }; \
    if (!egi_gemm(&g, NULL)) return false; \
    for (int64_t i = 0; i < in_c; i++) { \
        const int64_t row = i / ldc, column = i % ldc; \
        T want = column < n && !add ? 0 : (T)(i % 3); \
        for (int64_t p = 0; column < n && p < k; p++) \
            want += a[ta ? p * m + row : row * k + p] * b[tb ? column * k + p : p * n + column]; \
        if (c[i] != want) return false; \
    } \
    return true; \
}
CHECK_SIZES(float, egi_gemm_kernels_get_f32, floats)
CHECK_SIZES(double, egi_gemm_kernels_get_f64, doubles)
static void check_size_of(int64_t m, int64_t n, int64_t k) {
    for (int how = 0; how < 8; how++) {
        const bool ta = how & 1, tb = how & 2, add = how & 4;
        const int64_t ldc = add ? n + 3 : n;
        const bool right = floats_is_right(ta, tb, m, n, k, ldc, add),
                   wide = doubles_is_right(ta, tb, m, n, k, ldc, add);
        CHECK(right && wide);
        if (!right || !wide)
            printf("    (%d, %d) (%d, %d)%s%s%s%s\n", (int)m, (int)k, (int)k, (int)n, ta ? ", a transposed" : "",
                   tb ? ", b transposed" : "", add ? ", added" : "", right ? ", float64" : "");
    }
}
TEST(products_of_all_sizes_between_fences) {
    static const int64_t rows[] = { 1, 6, 7, 8, 30 }, terms[] = { 0, 1, 9, MOST_TERMS };
    REQUIRE(fences_are_up());
    for (int isa = 0; isa < 3; isa++) {
#if EGI_X86
        egi_isa = EGI_ISA_UNKNOWN;
        const int most = egi_isa_get();
        if (isa + EGI_ISA_16 > most) continue;
        egi_isa = isa + EGI_ISA_16;
#else
        if (isa) break;
#endif
        for (int64_t n = 0; n <= SIDE; n += test_share > 1 ? 9 : 1)
            for (int i = 0; i < 20; i++) {
                check_size_of(rows[i % 5], n, terms[i / 5]);
                if (i % 5 == 2 && i / 5 == 2) check_size_of(n, 33, terms[i / 5]);
            }
    }
#if EGI_X86
    egi_isa = EGI_ISA_UNKNOWN;
#endif
}
#endif
