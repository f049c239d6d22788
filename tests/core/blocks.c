// Products, in a copy of the library whose blocks of rows and columns are variables: whatever their sizes, from one
// tile to more than the whole, and whatever the number of threads, the bits are the same. That is what lets a machine
// with other caches have other blocks. Thin, batched and packed products, those of convolutions and of recurrent
// layers.
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
static eg_tensor *same_padding(eg_tensor *x, eg_tensor *w) { return eg_conv2d(x, w, .padding = EG_SAME); }
static eg_tensor *two_apart(eg_tensor *x, eg_tensor *w) { return eg_conv2d(x, w, .strides = { 2 }); }
static eg_tensor *convolution(int kind, eg_dtype dtype) {
    static const int64_t shapes[][5] = {                        // pixels a side, channels, taps, filters, two apart
        { 23, 24, 3, 33, 0 }, { 23, 3, 5, 24, 1 }, { 17, 30, 1, 70, 0 }, { 21, 24, 3, 40, 1 }, { 30, 2, 3, 5, 0 } };
    if (kind >= (int)(sizeof shapes / sizeof *shapes)) return NULL;
    const int64_t *s = shapes[kind];
    return with_gradients(s[4] ? two_apart : same_padding, numbers(dtype, EG_SHAPE(2, s[0], s[0], s[1])),
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
#endif

static void check_blocks(eg_tensor *(*make)(int kind, eg_dtype dtype)) {
    static const int64_t sizes[][3] = { { 6, 16, 1 }, { 12, 32, 3 }, { 36, 64, 2 }, { 960, 16, 1 }, { 6, 1 << 16, 2 },
                                        { 9600, 1 << 16, 1 } };
    const int threads = eg_num_threads();
    int kinds = 0;
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
                block_rows = sizes[i][0];
                block_columns = sizes[i][1];
                eg_set_num_threads((int)sizes[i][2]);
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
            eg_set_num_threads(threads);
            kinds++;
        }
    CHECK(kinds > 3);
}
TEST(products_have_the_same_bits_in_all_blocks) { check_blocks(product); }
TEST(convolutions_have_the_same_bits_in_all_blocks) { check_blocks(convolution); }
#ifndef EAGER_CORE
TEST(recurrent_layers_have_the_same_bits_in_all_blocks) { check_blocks(recurrence); }
#endif
