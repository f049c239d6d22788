// The team of threads that share a large op: values, gradients and whole training runs have the same bits with any
// number of threads; its threads allocate nothing, raise nothing and call nothing of the program's; several threads,
// datasets' threads and children of fork may use it at once.
#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include "test.h"
#include <stdlib.h>

static const int counts[] = {1, 2, 3, 7, 64, 2};
enum { COUNTS = (int)(sizeof counts / sizeof *counts) };
#ifdef EAGER_OPENBLAS                       // which adds up large products in an order that depends on its threads
enum { OPENBLAS = 1 };
#else
enum { OPENBLAS = 0 };
#endif

// ---- the same bits

static uint64_t hashed;
static void hash_begin(void) { hashed = 14695981039346656037u; }
static void hash(eg_tensor *x) {
    if (!x) return;
    x = eg_cast(x, EG_FLOAT64);
    const unsigned char *bytes = (const unsigned char *)eg_data(x);
    for (int64_t i = 0; bytes && i < eg_size(x) * 8; i++) hashed = (hashed ^ bytes[i]) * 1099511628211u;
}
// A case: two operands of these shapes, and a function of them.
typedef struct large { const char *name; eg_shape a, b; eg_tensor *(*of)(eg_tensor *a, eg_tensor *b); } large;
#define OF(name, ...) static eg_tensor *name(eg_tensor *a, eg_tensor *b) { (void)a, (void)b; return __VA_ARGS__; }
OF(products, eg_matmul(a, b))
OF(products_ta, eg_matmul(a, b, .transpose_a = true))
OF(products_tb, eg_matmul(a, b, .transpose_b = true))
OF(dots_of_rows, eg_einsum("ij,ij->i", EG_TENSORS(a, b)))
OF(sums, eg_add(a, b))
OF(chains, eg_mul(eg_tanh(a), eg_exp(eg_negative(eg_square(b)))))
OF(turned, eg_add(a, eg_transpose(b)))
OF(moved, eg_transpose(a, .perm = EG_AXES(0, 2, 1)))
OF(strided, eg_mul(eg_strided_slice(a, EG_SHAPE(1, 3), EG_SHAPE(299, 290), EG_SHAPE(2, 1)), 2))
OF(wheres, eg_where(eg_greater(a, b), a, b))
OF(casts, eg_cast(eg_cast(eg_mul(a, 100), EG_INT32), EG_FLOAT32))
OF(softmaxes, eg_softmax(a))
OF(log_softmaxes, eg_log_softmax(a))
OF(entropies, eg_sparse_softmax_cross_entropy_with_logits(eg_zeros(EG_INT32, EG_SHAPE(300)), a))
OF(convolutions, eg_conv2d(a, b, .padding = EG_SAME))
OF(convolutions_strided, eg_conv2d(a, b, .strides = {2, 2}))
OF(convolutions_in_groups, eg_conv2d(a, b, .groups = 4))
OF(depthwise, eg_depthwise_conv2d(a, b, .padding = EG_SAME))
OF(turned_convolutions, eg_conv2d_transpose(a, b, .strides = {2, 2}))
OF(max_pools, eg_max_pool2d(a))
OF(overlapping_pools, eg_max_pool2d(a, .size = {3, 3}, .strides = {1, 1}))
OF(means_of_windows, eg_avg_pool2d(a))
// `n` indices into `rows`, drawn anew
static eg_tensor *indices(int64_t n, double rows) {
    return eg_cast(eg_mul(eg_random_uniform(EG_SHAPE(n)), rows), EG_INT32);
}
OF(gathers, eg_gather(a, indices(4000, 900)))
OF(gathers_of_few, eg_gather(a, indices(4000, 7)))                  // which many updates make hot
OF(gathers_of_columns, eg_gather(a, indices(300, 307), .axis = 1))
OF(all, eg_reduce_sum(eg_mul(a, b)))
OF(rows, eg_reduce_mean(a, .axes = EG_AXES(1)))
OF(columns, eg_reduce_sum(a, .axes = EG_AXES(0)))
OF(few_columns, eg_reduce_mean(a, .axes = EG_AXES(0)))
OF(greatest, eg_reduce_max(a))
OF(least, eg_reduce_min(a, .axes = EG_AXES(0)))
OF(lengths, eg_norm(a))
OF(multiples, eg_reduce_prod(eg_add(eg_mul(a, 0.001), 1)))
OF(multiples_of_columns, eg_reduce_prod(eg_add(eg_mul(a, 0.001), 1), .axes = EG_AXES(0)))
OF(draws, eg_add(eg_mul(a, eg_random_normal(EG_SHAPE(300, 300), .dtype = eg_dtype_of(a))),
                 eg_random_uniform(EG_SHAPE(300, 300), .dtype = eg_dtype_of(a))))
// the sum of the values and of the positions of the first seven of each row
static eg_tensor *firsts(eg_tensor *a, eg_tensor *b) {
    eg_tensor *places = NULL, *values = eg_top_k(a, 7, &places);
    (void)b;
    return eg_add(values, eg_cast(places, eg_dtype_of(a)));
}
OF(sorted_rows, eg_sort(a))
OF(places_in_rows, eg_cast(eg_argsort(a), eg_dtype_of(a)))
OF(sorted_bytes, eg_cast(eg_sort(eg_cast(eg_mul(eg_abs(a), 50), EG_UINT8)), eg_dtype_of(a)))
OF(places_of_greatest, eg_cast(eg_argmax(a, .axis = 1), eg_dtype_of(a)))
OF(places_of_least, eg_cast(eg_argmin(a), eg_dtype_of(a)))
static const large cases[] = {
    {"products", {2, {301, 290}}, {2, {290, 213}}, products},
    {"deep products", {2, {70, 1500}}, {2, {1500, 70}}, products},
    {"thin products", {2, {8, 900}}, {2, {900, 500}}, products},
    {"products of transposes", {2, {290, 301}}, {2, {290, 213}}, products_ta},
    {"products by transposes", {2, {301, 290}}, {2, {213, 290}}, products_tb},
    {"batches of products", {3, {37, 60, 50}}, {3, {37, 50, 71}}, products},
    {"products by one", {3, {37, 60, 50}}, {2, {50, 71}}, products},
    {"small products", {3, {5000, 3, 4}}, {3, {5000, 4, 3}}, products},
    {"products of whole vectors", {3, {3001, 8, 8}}, {3, {3001, 8, 8}}, products},
    {"matrix by vector", {2, {1100, 900}}, {2, {900, 1}}, products},
    {"vector by matrix", {2, {1, 1100}}, {2, {1100, 900}}, products},
    {"rows by rows", {2, {1100, 900}}, {2, {1100, 900}}, dots_of_rows},
    {"sums", {2, {301, 307}}, {2, {301, 307}}, sums},
    {"sums of rows", {2, {301, 307}}, {1, {307}}, sums},
    {"sums of columns", {2, {301, 307}}, {2, {301, 1}}, sums},
    {"sums in the middle", {3, {31, 9, 307}}, {3, {31, 1, 307}}, sums},
    {"sums of short rows", {2, {30001, 7}}, {1, {7}}, sums},
    {"chains", {2, {301, 307}}, {2, {301, 307}}, chains},
    {"transposed", {2, {301, 307}}, {2, {307, 301}}, turned},
    {"moved axes", {3, {40, 51, 60}}, {1, {1}}, moved},
    {"strides", {2, {300, 300}}, {1, {1}}, strided},
    {"where", {2, {301, 307}}, {2, {301, 307}}, wheres},
    {"casts", {2, {301, 307}}, {1, {1}}, casts},
    {"softmax", {2, {300, 301}}, {1, {1}}, softmaxes},
    {"log softmax", {2, {300, 301}}, {1, {1}}, log_softmaxes},
    {"entropy", {2, {300, 301}}, {1, {1}}, entropies},
    {"conv2d", {4, {5, 29, 23, 24}}, {4, {3, 3, 24, 20}}, convolutions},
    {"conv2d 5x5", {4, {5, 28, 28, 1}}, {4, {5, 5, 1, 16}}, convolutions},
    {"conv2d 1x1", {4, {5, 29, 23, 24}}, {4, {1, 1, 24, 20}}, convolutions},
    {"conv2d strided", {4, {5, 29, 23, 24}}, {4, {3, 3, 24, 20}}, convolutions_strided},
    {"conv2d in groups", {4, {5, 29, 23, 24}}, {4, {3, 3, 6, 20}}, convolutions_in_groups},
    {"conv2d of lines", {4, {2, 11, 300, 16}}, {4, {2, 3, 16, 12}}, convolutions},
    {"conv2d 7x7 strided", {4, {5, 45, 47, 3}}, {4, {7, 7, 3, 33}}, convolutions_strided},
    {"conv2d in wide groups", {4, {5, 29, 23, 96}}, {4, {3, 3, 24, 96}}, convolutions_in_groups},
    {"conv2d of a large filter", {4, {3, 9, 9, 256}}, {4, {3, 3, 256, 272}}, convolutions},
    {"products of conv2d 1x1 of a large filter", {4, {3, 8, 8, 768}}, {4, {1, 1, 768, 800}}, convolutions},
    {"conv2d of a large filter in groups", {4, {2, 8, 8, 256}}, {4, {3, 3, 64, 1100}}, convolutions_in_groups},
    {"depthwise", {4, {5, 29, 23, 24}}, {4, {3, 3, 24, 1}}, depthwise},
    {"depthwise by two", {4, {5, 29, 23, 24}}, {4, {3, 3, 24, 2}}, depthwise},
    {"conv2d_transpose", {4, {5, 14, 13, 24}}, {4, {3, 3, 16, 24}}, turned_convolutions},
    {"max pools", {4, {5, 40, 40, 24}}, {1, {1}}, max_pools},
    {"overlapping max pools", {4, {5, 40, 40, 24}}, {1, {1}}, overlapping_pools},
    {"gathers", {2, {900, 37}}, {1, {1}}, gathers},
    {"gathers of few rows", {2, {900, 37}}, {1, {1}}, gathers_of_few},
    {"gathers of columns", {2, {900, 307}}, {1, {1}}, gathers_of_columns},
    {"average pools", {4, {5, 40, 40, 24}}, {1, {1}}, means_of_windows},
    {"all sums", {2, {900, 307}}, {2, {900, 307}}, all},
    {"row means", {2, {900, 307}}, {1, {1}}, rows},
    {"column sums", {2, {900, 307}}, {1, {1}}, columns},
    {"means of few columns", {2, {30011, 10}}, {1, {1}}, few_columns},
    {"maximum", {2, {900, 307}}, {1, {1}}, greatest},
    {"minima", {2, {900, 307}}, {1, {1}}, least},
    {"norm", {2, {900, 307}}, {1, {1}}, lengths},
    {"product", {2, {900, 307}}, {1, {1}}, multiples},
    {"products of columns", {2, {900, 307}}, {1, {1}}, multiples_of_columns},
    {"random numbers", {2, {300, 300}}, {1, {1}}, draws},
    {"sorted rows", {2, {31, 1301}}, {1, {1}}, sorted_rows},
    {"sorted short rows", {2, {901, 37}}, {1, {1}}, sorted_rows},
    {"places in rows", {2, {31, 1301}}, {1, {1}}, places_in_rows},
    {"sorted bytes", {2, {31, 4301}}, {1, {1}}, sorted_bytes},
    {"first of rows", {2, {71, 2301}}, {1, {1}}, firsts},
    {"argmax of rows", {2, {301, 907}}, {1, {1}}, places_of_greatest},
    {"argmin of columns", {2, {301, 907}}, {1, {1}}, places_of_least},
};
static void run_case(const large *c, eg_dtype dtype) {
    EG_SCOPE;
    eg_seed(7);
    eg_tensor *in[] = {eg_random_normal(c->a, .dtype = dtype), eg_random_normal(c->b, .dtype = dtype)}, *g[2];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tape_watch(tape, in[1]);
    eg_tensor *y = c->of(in[0], in[1]);
    CHECK(y != NULL);
    if (!y) { printf("    %s: %s\n", c->name, eg_error_message()); eg_error_clear(); }
    hash_begin();
    hash(y);
    if (y && eg_tape_gradients(tape, eg_mul(y, y), in, 2, g)) { hash(g[0]); hash(g[1]); }
    else eg_error_clear();
}
TEST(values_and_gradients_have_the_same_bits_with_any_number_of_threads) {
    const int number = eg_num_threads();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += test_share > 1 ? 3 : 1)
        for (int dtype = 0; dtype < (test_share > 1 ? 1 : 2); dtype++) {
            if (OPENBLAS && strstr(cases[i].name, "products")) continue;
            uint64_t alone = 0;
            for (int k = 0; k < COUNTS; k++) {
                CHECK(eg_set_num_threads(counts[k]));
                run_case(&cases[i], dtype ? EG_FLOAT64 : EG_FLOAT32);
                if (!k) alone = hashed;
                else CHECK(hashed == alone);
                if (hashed != alone) printf("    %s with %d threads\n", cases[i].name, counts[k]);
            }
        }
    CHECK(eg_set_num_threads(number));
}

// A sum of products so long that threads compute its blocks has the bits of these blocks' sums, added in float64.
TEST(a_long_dot_is_the_sum_of_its_blocks) {
    enum { BLOCK = 256 * 128 };                                     // bytes
    for (int64_t n = 830000, k = 0; n < 6000000; n += 4300003)
        for (int dtype = 0; dtype < 2; dtype++) {
            EG_SCOPE;
            const int64_t step = BLOCK / (dtype ? 8 : 4);
            eg_seed(11);
            eg_tensor *a = eg_random_normal(EG_SHAPE(1, n), .dtype = dtype ? EG_FLOAT64 : EG_FLOAT32),
                      *b = eg_random_normal(EG_SHAPE(n, 1), .dtype = dtype ? EG_FLOAT64 : EG_FLOAT32);
            double all = 0;
            for (int64_t i = 0; i < n; i += step) {
                EG_SCOPE;
                const int64_t end = i + step < n ? i + step : n;
                all += eg_item(eg_matmul(eg_slice(a, EG_SHAPE(0, i), EG_SHAPE(1, end - i)),
                                         eg_slice(b, EG_SHAPE(i, 0), EG_SHAPE(end - i, 1))));
            }
            for (k = 0; k < 4; k++) {
                CHECK(eg_set_num_threads(counts[k]));
                CHECK(eg_item(eg_matmul(a, b)) == (dtype ? all : (double)(float)all));
            }
        }
    CHECK(eg_set_num_threads(0));
}
// Variables of both dtypes, some of them so small that others share their part, are updated at once as one by one.
static void update(int threads, bool one_by_one, eg_optimizer *(*rule)(void)) {
    enum { N = 37 };
    EG_SCOPE;
    eg_tensor *w[N], *g[N];
    eg_optimizer *all = rule(), *own[N];
    CHECK(eg_set_num_threads(threads));
    eg_seed(5);
    for (int i = 0; i < N; i++) {
        const eg_dtype dtype = i % 5 == 3 ? EG_FLOAT64 : EG_FLOAT32;
        const eg_shape shape = EG_SHAPE(i % 7 == 0 ? 1 : 3 * i, i % 4 == 0 ? 3001 : i == 5 ? 0 : i);
        w[i] = eg_variable(eg_random_normal(shape, .dtype = dtype), "w");
        g[i] = eg_random_normal(shape, .dtype = dtype);
        own[i] = rule();
    }
    for (int step = 0; step < 3; step++) {
        if (!one_by_one) CHECK(eg_apply_gradients(all, g, w, N));
        for (int i = 0; i < N && one_by_one; i++) CHECK(eg_apply_gradients(own[i], &g[i], &w[i], 1));
    }
    hash_begin();
    for (int i = 0; i < N; i++) hash(w[i]);
    for (int i = 0; i < N; i++) { eg_release(w[i]); eg_optimizer_release(own[i]); }
    eg_optimizer_release(all);
}
static eg_optimizer *adam(void) { return eg_adam(.learning_rate = 0.01, .weight_decay = 0.1); }
static eg_optimizer *momentum(void) { return eg_sgd(.learning_rate = 0.01, .momentum = 0.9); }
TEST(updates_have_the_same_bits_with_any_number_of_threads) {
    eg_optimizer *(*const rules[])(void) = {adam, momentum};
    for (int r = 0; r < 2; r++) {
        update(1, true, rules[r]);
        const uint64_t alone = hashed;
        for (int k = 0; k < 4; k++) {
            update(counts[k], false, rules[r]);
            CHECK(hashed == alone);
        }
    }
    CHECK(eg_set_num_threads(0));
}

// A normalization's kernel, divided in each of its ways: along examples, positions, groups, and by columns.
typedef struct norm { const char *name; eg_layer *(*of)(eg_layer_options); eg_shape shape; int axis, groups; } norm;
static const norm norms[] = {
    {"layer normalization", eg_layer_layer_normalization, {2, {200, 1000}}, 0, 0},
    {"layer normalization of short rows", eg_layer_layer_normalization, {2, {30011, 7}}, 0, 0},
    {"rms normalization", eg_layer_rms_normalization, {3, {5, 41, 1000}}, 0, 0},
    {"batch normalization", eg_layer_batch_normalization, {4, {5, 29, 23, 64}}, 0, 0},
    {"batch normalization of three channels", eg_layer_batch_normalization, {2, {70011, 3}}, 0, 0},
    {"batch normalization of many channels", eg_layer_batch_normalization, {2, {209, 1000}}, 0, 0},
    {"batch normalization of channels first", eg_layer_batch_normalization, {4, {5, 64, 29, 23}}, 1, 0},
    {"batch normalization of three channels first", eg_layer_batch_normalization, {4, {67, 3, 37, 29}}, 1, 0},
    {"groups of two", eg_layer_group_normalization, {4, {9, 31, 37, 22}}, 0, 11},
    {"groups of two of few examples", eg_layer_group_normalization, {4, {2, 61, 73, 22}}, 0, 11},
    {"wide groups", eg_layer_group_normalization, {4, {9, 15, 16, 99}}, 0, 3},
    {"wide groups of few examples", eg_layer_group_normalization, {4, {2, 33, 34, 99}}, 0, 3},
    {"groups of channels first", eg_layer_group_normalization, {4, {9, 12, 49, 41}}, 1, 4},
    {"groups of channels first of few examples", eg_layer_group_normalization, {4, {2, 66, 49, 31}}, 1, 11},
    {"groups of one", eg_layer_group_normalization, {4, {9, 31, 25, 33}}, 0, -1},
};
static void run_norm(const norm *c, eg_dtype dtype, bool bare) {
    EG_SCOPE;
    eg_seed(5);
    eg_layer_options o = { 0 };
    o.dtype = dtype;
    o.axis = c->axis;
    o.groups = c->groups;
    o.no_scale = bare;
    o.no_center = bare && c->of != eg_layer_rms_normalization;
    eg_layer *layer = c->of(o);
    eg_tensor *x = eg_add(eg_random_normal(c->shape, .dtype = dtype), 3),
              *up = eg_random_normal(c->shape, .dtype = dtype), *y, *of[3] = { x, NULL, NULL }, *g[3] = { NULL };
    CHECK(eg_layer_build(layer, c->shape));
    const int n = eg_layer_trainable_weights(layer, of + 1, 2);
    for (int i = 1; i <= n; i++) eg_assign(of[i], eg_random_normal(eg_shape_of(of[i]), .dtype = dtype));
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK((y = eg_call(layer, x, .training = true)) != NULL);
    CHECK(eg_tape_gradients_from(tape, &y, 1, &up, of, 1 + n, g));
    eg_list weights = eg_layer_weights_list(layer);
    hash_begin();
    hash(y);
    for (int i = 0; i <= n; i++) hash(g[i]);
    for (int i = n; i < weights.count; i++) hash(weights.tensors[i]);
    eg_layer_release(layer);
}
TEST(normalizations_have_the_same_bits_with_any_number_of_threads) {
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i += test_share > 1 ? 3 : 1)
        for (int how = 0; how < (test_share > 1 ? 1 : 3); how++) {
            uint64_t alone = 0;
            for (int k = 0; k < COUNTS; k++) {
                CHECK(eg_set_num_threads(counts[k]));
                run_norm(&norms[i], how == 1 ? EG_FLOAT64 : EG_FLOAT32, how == 2);
                if (!k) alone = hashed;
                else CHECK(hashed == alone);
                if (hashed != alone) printf("    %s with %d threads\n", norms[i].name, counts[k]);
            }
        }
    CHECK(eg_set_num_threads(0));
}

// ---- training

static void train(bool traced) {
    EG_SCOPE;
    eg_seed(3);
    eg_tensor *x = eg_random_normal(EG_SHAPE(96, 20, 20, 1)),
              *y = eg_cast(eg_mul(eg_random_uniform(EG_SHAPE(96)), 9.99), EG_INT32);
    eg_layer *model = eg_sequential(eg_layer_conv2d(8, 3, .activation = EG_RELU), eg_layer_batch_normalization(),
                                    eg_layer_max_pooling2d(), eg_layer_flatten(), eg_layer_dropout(0.2),
                                    eg_layer_dense(OPENBLAS ? 8 : 300, .activation = EG_RELU),
                                    eg_layer_dense(10));
    CHECK(eg_compile(model, eg_adam(.learning_rate = 0.01), eg_sparse_categorical_crossentropy));
    CHECK(eg_fit_arrays(model, x, y, .epochs = 2, .batch_size = 24, .quiet = true, .traced = traced, .eager = !traced));
    hash_begin();
    eg_list weights = eg_layer_weights_list(model);
    for (int i = 0; i < weights.count; i++) hash(weights.tensors[i]);
    eg_layer_release(model);
}
TEST(training_has_the_same_bits_with_any_number_of_threads) {
    uint64_t alone = 0;
    for (int k = 0; k < (test_share > 1 ? 4 : 8); k++) {
        CHECK(eg_set_num_threads(k / 2 == 0 ? 1 : k / 2 == 1 ? 3 : k / 2 == 2 ? 2 : 7));
        train(k % 2);
        if (!k) alone = hashed;
        else CHECK(hashed == alone);
    }
    CHECK(eg_set_num_threads(0));
}
TEST(recurrent_layers_have_the_same_bits_with_any_number_of_threads) {
    if (OPENBLAS) SKIP("the products of inputs and weights are OpenBLAS's");
    eg_layer *(*const kinds[])(int64_t, eg_layer_options) = {eg_layer_lstm, eg_layer_gru, eg_layer_simple_rnn};
    for (int kind = 0; kind < 3; kind++) {
        uint64_t alone = 0;
        for (int k = 0; k < COUNTS; k++) {
            EG_SCOPE;
            CHECK(eg_set_num_threads(counts[k]));
            eg_seed(5);
            eg_layer *layer = kinds[kind](48, (eg_layer_options){ 0 });
            eg_tensor *x = eg_random_normal(EG_SHAPE(45, 9, 20)), *g[4] = { NULL };
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, x);
            eg_tensor *y = eg_call(layer, x);
            eg_list weights = eg_layer_weights_list(layer);
            REQUIRE(y != NULL && weights.count <= 4);
            hash_begin();
            hash(y);
            CHECK(eg_tape_gradients(tape, eg_mul(y, y), weights.tensors, weights.count, g));
            for (int i = 0; i < weights.count; i++) hash(g[i]);
            eg_layer_release(layer);
            if (!k) alone = hashed;
            else CHECK(hashed == alone);
        }
    }
    CHECK(eg_set_num_threads(0));
}

// ---- the number

TEST(the_number_of_threads_is_checked) {
    const int number = eg_num_threads();
    CHECK(number >= 1 && number <= 64);
    CHECK_ERROR(eg_set_num_threads(-1), EG_ERROR_ARGUMENT,
                "eg_set_num_threads: -1 threads; 1 to 64, or 0 for the default");
    CHECK_ERROR(eg_set_num_threads(65), EG_ERROR_ARGUMENT,
                "eg_set_num_threads: 65 threads; 1 to 64, or 0 for the default");
    CHECK_INT(eg_num_threads(), number);
#ifndef EAGER_NO_THREADS
    CHECK(eg_set_num_threads(5));
    CHECK_INT(eg_num_threads(), 5);
#endif
    CHECK(eg_set_num_threads(0));
}
TEST(a_shutdown_ends_the_threads_and_the_next_large_op_starts_them) {
    CHECK(eg_set_num_threads(3));
    for (int k = 0; k < 3; k++) {
        run_case(&cases[0], EG_FLOAT32);
        eg_shutdown();
    }
    CHECK(eg_set_num_threads(0));
}

// ---- what its threads leave to the caller

#ifndef EAGER_NO_THREADS
static _Thread_local bool is_caller;
static int64_t calls, strange_calls;        // of the program's functions, by the caller and by other threads
static void called(void) { __atomic_fetch_add(is_caller ? &calls : &strange_calls, 1, __ATOMIC_RELAXED); }
static void *called_allocate(size_t size, void *user) { (void)user; called(); return malloc(size); }
static void called_free(void *p, void *user) { (void)user; called(); free(p); }
static void called_on_error(eg_error_code code, const char *message, void *user) {
    (void)code, (void)message;
    ++*(int *)user;
    called();
}
static eg_tensor *called_square(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    called();
    c->saved[0] = in[0];
    return eg_square(in[0]);
}
static void called_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    called();
    dx[0] = eg_mul(eg_mul(c->upstream[0], c->saved[0]), 2);
}
OF(squares, eg_reduce_sum(eg_custom_gradient(called_square, called_backward, NULL, &a, 1)))
TEST(threads_of_the_team_allocate_raise_and_call_nothing) {
    int errors = 0;
    is_caller = true;
    for (int threads = 2; threads <= 7; threads += threads == 2 ? 1 : 4) {
        eg_shutdown();                      // so that each thread's first block comes from the allocator
        REQUIRE(eg_set_allocator(called_allocate, called_free, NULL));
        CHECK(eg_set_num_threads(threads));
        calls = 0;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i += test_share > 1 ? 5 : 1)
            run_case(&cases[i], threads == 3 ? EG_FLOAT64 : EG_FLOAT32);
        const large by_the_program = {"squares", {2, {900, 307}}, {1, {1}}, squares};
        run_case(&by_the_program, EG_FLOAT32);
        if (threads == 3) { train(false); train(true); }
        CHECK(calls > 0);
        if (test_on_host) {
            eg_scope scope = eg_scope_begin();
            eg_set_error_handler(called_on_error, &errors);
            CHECK(!eg_gather(eg_ones(EG_FLOAT32, EG_SHAPE(900, 37)), eg_full(EG_INT32, EG_SHAPE(4000), 900)));
            eg_set_error_handler(NULL, NULL);
            CHECK_INT(errors, 1);
            CHECK_INT(eg_error(), EG_ERROR_INDEX);
            errors = 0;
            eg_error_clear();
            eg_scope_end(scope);
        }
        eg_shutdown();
        CHECK(eg_set_allocator(NULL, NULL, NULL));
    }
    CHECK_INT(strange_calls, 0);
    CHECK(eg_set_num_threads(0));
}
#endif

// ---- at once

#ifndef EAGER_NO_THREADS
#include <pthread.h>
static eg_tensor *heavy(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_reduce_sum(eg_matmul(eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(150, 150)), eg_cast(in[0], EG_FLOAT32)),
                                   eg_ones(EG_FLOAT32, EG_SHAPE(150, 150))));
}
// Four maps of datasets, and two threads that train.
typedef struct worker { bool maps, ok; float weights[150]; } worker;
static bool train_step(eg_tensor *v, eg_tensor *x) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(eg_matmul(eg_mul(x, 0.01), v), 1)));
    eg_tensor *g = eg_tape_gradient(tape, loss, v);
    return g && eg_assign_sub(v, eg_mul(g, 0.1));
}
static void *work(void *argument) {
    worker *w = (worker *)argument;
    w->ok = eg_set_device(test_device());
    eg_scope scope = eg_scope_begin();
    if (w->maps) {
        eg_dataset *d = eg_dataset_map_one(eg_dataset_range(0, 24, 1), heavy, NULL, .threads = 2);
        eg_iterator *it = eg_iterator_new(d);
        eg_tensor *y[EG_MAX_COMPONENTS];
        for (int i = 0; i < 24; i++) {
            const bool next = eg_iterator_next(it, y) == EG_NEXT;
            w->ok = w->ok && next && eg_item(y[0]) == 150.0 * 150 * 150 * (1 + i);
        }
        eg_iterator_release(it);
        eg_dataset_release(d);
    } else {
        eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(150, 1)), "v");
        for (int i = 0; i < 12; i++) {
            EG_SCOPE;
            eg_tensor *a = eg_full(EG_FLOAT32, EG_SHAPE(150, 150), 1 + i % 3), *b = eg_matmul(a, a);
            w->ok = w->ok && eg_item(eg_reduce_sum(b)) == 150.0 * 150 * 150 * (1 + i % 3) * (1 + i % 3);
            w->ok = train_step(v, a) && w->ok;
        }
        const float *weights = (const float *)eg_data(v);
        w->ok = w->ok && weights;
        if (weights) memcpy(w->weights, weights, sizeof w->weights);
        eg_release(v);
    }
    if (eg_error() != EG_OK) printf("    %s\n", eg_error_message());
    w->ok = w->ok && eg_error() == EG_OK;
    eg_scope_end(scope);
    return NULL;
}
TEST(datasets_and_threads_compute_at_once) {
    worker all[6], alone;
    pthread_t thread[6];
    memset(&alone, 0, sizeof alone);
    CHECK(eg_set_num_threads(1));
    work(&alone);
    CHECK(alone.ok && alone.weights[0] != 1);
    CHECK(eg_set_num_threads(2));
    for (int i = 0; i < 6; i++) {
        memset(&all[i], 0, sizeof all[i]);
        all[i].maps = i < 4;
        REQUIRE(pthread_create(&thread[i], NULL, work, &all[i]) == 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(thread[i], NULL);
        CHECK(all[i].ok);
        if (i >= 4) CHECK(memcmp(all[i].weights, alone.weights, sizeof alone.weights) == 0);
    }
    CHECK(eg_set_num_threads(0));
}
#endif

#if !defined(EAGER_NO_THREADS) && !defined(TEST_SLOW) && (defined(__unix__) || defined(__APPLE__))
#include <sys/wait.h>
#include <unistd.h>
TEST(a_child_of_fork_starts_threads_of_its_own) {
    CHECK(eg_set_num_threads(3));
    run_case(&cases[0], EG_FLOAT32);
    const uint64_t parents = hashed;
    for (int k = 0; k < 3; k++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            if (!test_on_host) _exit(0);
            alarm(60);
            run_case(&cases[0], EG_FLOAT32);
            run_case(&cases[0], EG_FLOAT32);
            if (k == 1) eg_shutdown();
            _exit(hashed == parents && (k != 2 || eg_set_num_threads(2)) ? 0 : 1);
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        run_case(&cases[0], EG_FLOAT32);
        CHECK(hashed == parents);
    }
    CHECK(eg_set_num_threads(0));
}
#endif
