// The workloads of peers.py on eager.h, from the same inputs.
//     cc -O2 -I. tests/bench/bench.c -lm -o bench
//     bench                                 every workload briefly, as a table
//     bench --long                          also matmul_1000_x200 and tape_entries_10m, which takes 5 GB
//     bench NAME...                         these; NAME_traced: the same as a traced function, replayed
//     bench WORK THREADS MIN_TIME WARMUP    one, as peers.py calls it, which sees to the threads: one line of JSON
//     BENCH_DEVICE=gpu:0 bench ...          on that device, where it was compiled with it
//     bench memory                          the most bytes that a step of the digits' network holds; memory.py reads
//     this
//     bench tracing NAME...                 what the first call of a traced function costs beyond an eager one
//     bench unfused                         what a line costs: (1,000 sums of four floats less an empty call) / 1,000
//     bench entries                         an op's time on a tape of a million ops beside tapes of a hundred, in turns
//     bench machine                         the processor, and what it can do at most; results.py reads this
//     bench handoff                         nanoseconds for a line of memory from one core to another and back
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <sys/resource.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { PARAMETERS = 72, OUTPUTS = 4, LAYERS = 4, WIDTH = 128, HEADS = 4, VOCABULARY = 65, TIME = 64 };

// What a workload made at its start. Training steps use p, x and y; the others use x, y and z as they like.
static eg_tensor *p[PARAMETERS], *x, *y, *z;
static int n_p;
static eg_optimizer *optimizer;

// ---------------------------------------------------------------- inputs: class Rng in peers.py

static uint64_t drawn;

static uint64_t bits(void) {
    uint64_t v = ++drawn * 0x9E3779B97F4A7C15u;
    v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9u;
    v = (v ^ (v >> 27)) * 0x94D049BB133111EBu;
    return v ^ (v >> 31);
}
static double uniform(void) { return (double)(bits() >> 11) * 0x1p-53; }
static int64_t count(eg_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++) n *= shape.dims[i];
    return n;
}
static eg_tensor *normal(eg_shape shape, double scale) {
    int64_t n = count(shape);
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n && v; i++) {
        double r = sqrt(-2 * log1p(-uniform()));
        v[i] = (float)(r * cos(2 * 3.14159265358979323846 * uniform()) * scale);
    }
    eg_tensor *t = v ? eg_from_data(EG_FLOAT32, shape, v) : NULL;
    free(v);
    return t;
}
static eg_tensor *integers(uint64_t limit, eg_shape shape) {
    int64_t n = count(shape);
    int32_t *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n && v; i++) v[i] = (int32_t)((bits() >> 33) % limit);
    eg_tensor *t = v ? eg_from_data(EG_INT32, shape, v) : NULL;
    free(v);
    return t;
}
static void parameter(eg_tensor *initial) { p[n_p++] = eg_variable(initial, "p"); }
static void parameter_full(double value, int64_t n) { parameter(eg_full(EG_FLOAT32, EG_SHAPE(n), value)); }

// ---------------------------------------------------------------- one training step

static int learn(eg_tensor *(*loss)(void), eg_tensor **out) {
    eg_tensor *grads[PARAMETERS];
    eg_tape *tape = eg_tape_begin();
    { EG_SCOPE; out[0] = eg_keep(loss()); }  // what the function made dies as the backward pass has read it
    eg_tape_gradients(tape, out[0], p, n_p, grads);
    eg_apply_gradients(optimizer, grads, p, n_p);
    if (eg_executing_eagerly()) eg_item(out[0]);           // else run_workload reads it
    return 1;
}
static eg_tensor *cross_entropy(eg_tensor *logits) {
    return eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(y, logits));
}

// ---------------------------------------------------------------- single ops

static void make_4(void) { x = normal(EG_SHAPE(4), 1); }
static int run_op_add(eg_tensor **out) {
    eg_tensor *s = x;
    for (int i = 0; i < 1000; i++) s = eg_add(s, x);
    out[0] = s;
    return 1;
}
// One op of four elements a thousand times, from the same operands: positive ones, and plain numbers.
static void make_4_positive(void) { make_4(); x = eg_add(eg_abs(x), 0.1); y = eg_add(x, 0.5); z = eg_add(x, 1); }
#define OP_4(name, formula) \
    static int run_op_##name(eg_tensor **out) { \
        for (int i = 0; i < 999; i++) { EG_SCOPE; formula; } \
        out[0] = formula; \
        return 1; \
    }
OP_4(pow, eg_pow(x, y))
OP_4(mod, eg_mod(x, y))
OP_4(clip, eg_clip_by_value(x, y, z))
OP_4(add_number, eg_add(x, 3))
OP_4(clip_numbers, eg_clip_by_value(x, 1, 2))
// An addition of one element by the rank of its operands.
#define RANK(rank, ...) \
    static void make_rank_##rank(void) { x = eg_ones(EG_FLOAT32, __VA_ARGS__); } \
    static int run_rank_##rank(eg_tensor **out) { \
        for (int i = 0; i < 999; i++) { EG_SCOPE; eg_add(x, x); } \
        out[0] = eg_add(x, x); \
        return 1; \
    }
RANK(0, EG_SCALAR)
RANK(1, EG_SHAPE(1))
RANK(2, EG_SHAPE(1, 1))
RANK(4, EG_SHAPE(1, 1, 1, 1))
RANK(8, EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1))
static void make_chain(void) { x = eg_add(1.5, normal(EG_SHAPE(4), 0.1)); }
static int run_chain(eg_tensor **out) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *v = x;
    for (int i = 0; i < 50; i++) v = eg_tanh(eg_mul(v, x));
    out[0] = eg_tape_gradient(tape, v, x);
    return 1;
}
// The same chain as a traced function that a tape records: one line, whose gradient is a list, too.
static eg_function *called;
static bool chain_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *v = in[0];
    for (int i = 0; i < 50; i++) v = eg_tanh(eg_mul(v, in[0]));
    out[0] = eg_keep(v);
    return true;
}
static void make_taped_chain(void) {
    make_chain();
    called = eg_function_new(chain_body, NULL, .no_recheck = true);
}
static int run_taped_chain(eg_tensor **out) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *v;
    eg_tape_watch(tape, x);
    if (!eg_function_call(called, &x, 1, &v, 1)) return 0;
    out[0] = eg_tape_gradient(tape, v, x);
    return 1;
}
// n products on a tape and their gradient, by the number of entries; _first: with memory that the system has just
// given.
static int run_entries(int n, eg_tensor **out) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *v = x;
    for (int i = 0; i < n; i++) v = eg_mul(v, x);
    out[0] = eg_keep(eg_tape_gradient(tape, v, x));
    return 1;
}
static void make_ones_4(void) { x = eg_ones(EG_FLOAT32, EG_SHAPE(4)); }
static int run_entries_100(eg_tensor **out) { return run_entries(100, out); }
static int run_entries_10k(eg_tensor **out) { return run_entries(10000, out); }
static int run_entries_100k(eg_tensor **out) { return run_entries(100000, out); }
static int run_entries_1m(eg_tensor **out) { return run_entries(1000000, out); }
static int run_entries_10m(eg_tensor **out) { return run_entries(10000000, out); }
static int run_entries_1m_first(eg_tensor **out) {
    eg_memory_trim();
    return run_entries(1000000, out);
}
static void make_1m(void) { x = normal(EG_SHAPE(1000000), 1); }
static void make_10m(void) { x = eg_tile(normal(EG_SHAPE(1000000), 1), EG_SHAPE(10)); }
static void make_two_10m(void) { make_10m(); y = eg_tile(normal(EG_SHAPE(1000000), 1), EG_SHAPE(10)); }
static void make_rows(void) { x = normal(EG_SHAPE(1024, 1000), 1); }
static int run_add(eg_tensor **out) { out[0] = eg_add(x, y); return 1; }
// What memory gives to a + b: a plain loop and one that writes around the caches, on the same operands, into memory
// that is there already.
static void make_add_loop(void) {
    make_two_10m();
    z = eg_zeros(EG_FLOAT32, eg_shape_of(x));
}
static int run_add_plain(eg_tensor **out) {
    const float *a = eg_data(x), *b = eg_data(y);
    float *c = (float *)(uintptr_t)eg_data(z);
    for (int64_t i = 0, n = eg_size(x); i < n; i++) c[i] = a[i] + b[i];
    out[0] = z;
    return 1;
}
#if defined(__x86_64__) && !defined(__clang__)
static int run_add_stream(eg_tensor **out) {
    typedef float vec __attribute__((vector_size(16)));
    const vec *a = eg_data(x), *b = eg_data(y);
    vec *c = (vec *)(uintptr_t)eg_data(z);
    for (int64_t i = 0, n = eg_size(x) / 4; i < n; i++) __builtin_ia32_movntps((float *)&c[i], a[i] + b[i]);
    __builtin_ia32_sfence();
    out[0] = z;
    return 1;
}
#endif
static int run_exp(eg_tensor **out) { out[0] = eg_exp(x); return 1; }
static int run_tanh(eg_tensor **out) { out[0] = eg_tanh(x); return 1; }
static int run_gelu(eg_tensor **out) { out[0] = eg_gelu_tanh(x); return 1; }
static int run_chain20(eg_tensor **out) {
    eg_tensor *v = eg_add(eg_mul(x, 1.0001), 0.5);
    for (int i = 0; i < 5; i++) {
        if (i > 0) eg_replace(&v, eg_add(eg_mul(v, 1.0001), 0.5));
        eg_replace(&v, eg_mul(eg_tanh(v), v));
    }
    out[0] = v;
    return 1;
}
static void make_two_1m(void) { x = normal(EG_SHAPE(1000000), 1); y = normal(EG_SHAPE(1000000), 0.1); }
static int run_cheap20(eg_tensor **out) {
    eg_tensor *v = eg_add(eg_mul(x, y), 0.5);
    for (int i = 1; i < 10; i++) eg_replace(&v, eg_add(eg_mul(v, y), 0.5));
    out[0] = v;
    return 1;
}
static int run_sum(eg_tensor **out) { out[0] = eg_reduce_sum(x); return 1; }
static int run_softmax(eg_tensor **out) { out[0] = eg_softmax(x); return 1; }

static void make_matmul(int64_t n) { x = normal(EG_SHAPE(n, n), 1); y = normal(EG_SHAPE(n, n), 1); }
static void make_matmul_64(void) { make_matmul(64); }
static void make_matmul_256(void) { make_matmul(256); }
static void make_matmul_1000(void) { make_matmul(1000); }
static int run_matmul(eg_tensor **out) { out[0] = eg_matmul(x, y); return 1; }
static int run_matmul_x200(eg_tensor **out) {
    for (int i = 0; i < 199; i++) {
        EG_SCOPE;
        eg_matmul(x, y);
    }
    return run_matmul(out);
}

// ---------------------------------------------------------------- linear regression, perceptrons, convolutions

static void make_linreg(void) {
    parameter(eg_scalar(5));
    parameter(eg_scalar(10));
    x = normal(EG_SHAPE(2000), 1);
    y = eg_add(eg_add(eg_mul(3, x), 2), normal(EG_SHAPE(2000), 1));
    optimizer = eg_sgd(.learning_rate = 0.01);
}
static eg_tensor *linreg_loss(void) { return eg_reduce_mean(eg_square(eg_sub(eg_add(eg_mul(p[0], x), p[1]), y))); }
static int run_linreg(eg_tensor **out) { return learn(linreg_loss, out); }

static void make_mlp(int64_t batch) {
    x = normal(EG_SHAPE(batch, 784), 1);
    y = integers(10, EG_SHAPE(batch));
    parameter(normal(EG_SHAPE(784, 128), sqrt(2.0 / 784)));
    parameter_full(0, 128);
    parameter(normal(EG_SHAPE(128, 10), sqrt(2.0 / 128)));
    parameter_full(0, 10);
    optimizer = eg_sgd(.learning_rate = 0.01);
}
static void make_mlp_32(void) { make_mlp(32); }
static void make_mlp_256(void) { make_mlp(256); }
static eg_tensor *mlp_loss(void) {
    eg_tensor *h = eg_relu(eg_add(eg_matmul(x, p[0]), p[1]));
    return cross_entropy(eg_add(eg_matmul(h, p[2]), p[3]));
}
static int run_mlp(eg_tensor **out) { return learn(mlp_loss, out); }

static eg_tensor *direction[4];
static void make_hvp(void) {
    make_mlp(32);
    for (int i = 0; i < 4; i++) direction[i] = normal(eg_shape_of(p[i]), 1);
}
static int run_hvp(eg_tensor **out) {
    eg_tensor *grads[4], *sum = NULL;
    eg_tape *outer = eg_tape_begin(), *inner = eg_tape_begin();
    eg_tape_gradients(inner, mlp_loss(), p, 4, grads);
    for (int i = 0; i < 4; i++) {
        eg_tensor *dot = eg_reduce_sum(eg_mul(grads[i], direction[i]));
        sum = i ? eg_add(sum, dot) : dot;
    }
    eg_tape_gradients(outer, sum, p, 4, out);
    return 4;
}
static eg_tensor *tanh_sin(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_reduce_sum(eg_mul(eg_tanh(in[0]), eg_sin(in[0])));
}
static void make_1000(void) { x = normal(EG_SHAPE(1000), 1); }
static int run_third(eg_tensor **out) { out[0] = eg_nth_gradient(tanh_sin, NULL, x, 3); return 1; }

static void make_cnn(void) {
    x = normal(EG_SHAPE(32, 28, 28, 1), 1);
    y = integers(10, EG_SHAPE(32));
    parameter(normal(EG_SHAPE(3, 3, 1, 16), sqrt(2.0 / 9)));
    parameter_full(0, 16);
    parameter(normal(EG_SHAPE(3, 3, 16, 16), sqrt(2.0 / 144)));
    parameter_full(0, 16);
    parameter(normal(EG_SHAPE(16, 10), 0.25));
    parameter_full(0, 10);
    optimizer = eg_adam(.learning_rate = 1e-3);
}
// A scope of its own, as a layer has: what lies between is let go at once.
static eg_tensor *conv_relu(eg_tensor *v, eg_tensor *filter, eg_tensor *bias) {
    EG_SCOPE;
    eg_tensor *h = eg_conv2d(v, filter);
    eg_replace(&h, eg_add(h, bias));          // the product is let go of before relu makes another tensor
    return eg_keep(eg_relu(h));
}
static eg_tensor *cnn_loss(void) {
    eg_tensor *h = conv_relu(conv_relu(x, p[0], p[1]), p[2], p[3]);
    return cross_entropy(eg_add(eg_matmul(eg_reduce_mean(h, .axes = EG_AXES(1, 2)), p[4]), p[5]));
}
static int run_cnn(eg_tensor **out) { return learn(cnn_loss, out); }

// The network of `./build.sh run`.
static void make_digits(void) {
    x = normal(EG_SHAPE(32, 28, 28, 1), 1);
    y = integers(10, EG_SHAPE(32));
    parameter(normal(EG_SHAPE(3, 3, 1, 16), sqrt(2.0 / 9)));
    parameter_full(0, 16);
    parameter(normal(EG_SHAPE(3, 3, 16, 32), sqrt(2.0 / 144)));
    parameter_full(0, 32);
    parameter(normal(EG_SHAPE(800, 10), sqrt(1.0 / 800)));
    parameter_full(0, 10);
    optimizer = eg_adam(.learning_rate = 1e-3);
}
static eg_tensor *digits_loss(void) {
    eg_tensor *h = eg_max_pool2d(conv_relu(eg_max_pool2d(conv_relu(x, p[0], p[1])), p[2], p[3]));
    return cross_entropy(eg_add(eg_matmul(eg_reshape(h, EG_SHAPE(-1, 800)), p[4]), p[5]));
}
static int run_digits(eg_tensor **out) { return learn(digits_loss, out); }

static void make_convolution(int64_t n, int64_t side, int64_t c, int64_t k, int64_t oc) {
    x = normal(EG_SHAPE(n, side, side, c), 1);
    y = normal(EG_SHAPE(k, k, c, oc), sqrt(1.0 / (double)(k * k * c)));
    z = normal(EG_SHAPE(n, side, side, oc), 1);
}
static void make_conv_64(void) { make_convolution(16, 32, 64, 3, 64); }
static void make_conv_56(void) { make_convolution(32, 56, 64, 3, 64); }
static void make_conv_56_tf32(void) { eg_matmul_precision(EG_PRECISION_TF32); make_conv_56(); }
static void make_conv_1x1(void) { make_convolution(32, 56, 256, 1, 64); }
static void make_conv_mnist(void) { make_convolution(128, 28, 1, 3, 32); }
static int run_conv(eg_tensor **out) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, y);
    out[0] = eg_conv2d(x, y, .padding = EG_SAME);
    eg_tensor *of[] = {x, y};
    eg_tape_gradients_from(tape, out, 1, &z, of, 2, out + 1);
    return 3;
}

// ---------------------------------------------------------------- sequences

// Layers, as one would write it: on a GPU each is a launch or a few. A block's are norm, attention, norm, and two dense
// ones.
static eg_layer *layers[5 * LAYERS + 1];
static int n_layers;
static void layer(eg_layer *l, eg_tensor *const *kernels) {         // biases are 0 and gains 1 already
    eg_tensor *w[8];
    layers[n_layers++] = l;
    eg_layer_build(l,
                   kernels && eg_dim(kernels[0], 0) != WIDTH ? EG_SHAPE(8, TIME, 4 * WIDTH) : EG_SHAPE(8, TIME, WIDTH));
    int n = eg_layer_weights(l, w, 8);
    for (int i = 0; i < n; i++) {
        if (eg_rank(w[i]) == 2) eg_assign(w[i], *kernels++);
        p[n_p++] = eg_retain(w[i]);
    }
}
static void make_lstm(void) {
    double s = sqrt(1.0 / WIDTH);
    x = integers(VOCABULARY, EG_SHAPE(32, TIME));
    y = eg_reshape(integers(VOCABULARY, EG_SHAPE(32, TIME)), EG_SHAPE(-1));
    parameter(normal(EG_SHAPE(VOCABULARY, WIDTH), 1));
    eg_tensor *kernels[2];
    for (int i = 0; i < 2; i++) kernels[i] = normal(EG_SHAPE(WIDTH, 4 * WIDTH), s);
    layer(eg_layer_lstm(WIDTH, .return_sequences = true, .no_forget_bias = true), kernels);
    kernels[0] = normal(EG_SHAPE(WIDTH, VOCABULARY), s);
    layer(eg_layer_dense(VOCABULARY), kernels);
    optimizer = eg_sgd(.learning_rate = 0.1);
}
static eg_tensor *lstm_loss(void) {
    eg_tensor *h = eg_call(layers[0], eg_gather(p[0], x));
    return cross_entropy(eg_reshape(eg_call(layers[1], h), EG_SHAPE(-1, VOCABULARY)));
}
static int run_lstm(eg_tensor **out) { return learn(lstm_loss, out); }

static void make_gpt(void) {
    x = integers(VOCABULARY, EG_SHAPE(8, TIME));
    y = eg_reshape(integers(VOCABULARY, EG_SHAPE(8, TIME)), EG_SHAPE(-1));
    parameter(normal(EG_SHAPE(VOCABULARY, WIDTH), .02));
    parameter(normal(EG_SHAPE(TIME, WIDTH), .02));
    for (int l = 0; l < LAYERS; l++) {
        eg_tensor *kernel[4];
        eg_split(normal(EG_SHAPE(WIDTH, 3 * WIDTH), .02), 3, 1, kernel);
        kernel[3] = normal(EG_SHAPE(WIDTH, WIDTH), .02);
        layer(eg_layer_layer_normalization(.epsilon = 1e-5), NULL);
        layer(eg_layer_multi_head_attention(HEADS, WIDTH / HEADS, .causal = true), kernel);
        kernel[0] = normal(EG_SHAPE(WIDTH, 4 * WIDTH), .02);
        kernel[1] = normal(EG_SHAPE(4 * WIDTH, WIDTH), .02);
        layer(eg_layer_layer_normalization(.epsilon = 1e-5), NULL);
        layer(eg_layer_dense(4 * WIDTH, .activation = EG_GELU_TANH), kernel);
        layer(eg_layer_dense(WIDTH), kernel + 1);
    }
    layer(eg_layer_layer_normalization(.epsilon = 1e-5), NULL);
    parameter(normal(EG_SHAPE(WIDTH, VOCABULARY), .02));
    optimizer = eg_adamw(.learning_rate = 1e-3, .weight_decay = .01, .epsilon = 1e-8);
}
static eg_tensor *gpt_loss(void) {
    eg_tensor *h = eg_add(eg_gather(p[0], x), p[1]);
    for (int l = 0; l < LAYERS; l++) {
        eg_layer *const *b = layers + 5 * l;
        h = eg_add(h, eg_call(b[1], eg_call(b[0], h)));
        h = eg_add(h, eg_call(b[4], eg_call(b[3], eg_call(b[2], h))));
    }
    return cross_entropy(eg_matmul(eg_reshape(eg_call(layers[n_layers - 1], h), EG_SHAPE(-1, WIDTH)), p[n_p - 1]));
}
static int run_gpt(eg_tensor **out) { return learn(gpt_loss, out); }

// The root of |a| by Newton's method, with its slope: a branch and a loop of 3 to 9 steps, for one number or four in
// turn.
static eg_tensor *numbers[4];
static int n_numbers, next_number;
static bool root_is_off(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_greater(eg_abs(eg_sub(eg_square(in[0]), in[1])), 1e-5);
    return true;
}
static bool root_closer(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(eg_add(in[0], eg_div(in[1], in[0])), 0.5);
    out[1] = in[1];
    return true;
}
static bool root_of(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *state[] = {eg_scalar(1), in[0]};
    if (!eg_while(root_is_off, root_closer, user, state, state, 2, .max_steps = 100)) return false;
    out[0] = state[0];
    return true;
}
static bool root_of_minus(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *minus = eg_negative(in[0]);
    return root_of(&minus, out, user);
}
static void make_roots(int n) {
    static const double a[] = {9, -4, 2, 100};
    for (int i = 0; i < n; i++) numbers[i] = eg_scalar(a[i]);
    n_numbers = n;
    next_number = 0;
    p[n_p++] = eg_variable(numbers[0], "a");
}
static void make_root(void) { make_roots(1); }
static void make_root_4(void) { make_roots(4); }
static int run_root(eg_tensor **out) {
    eg_tape *tape = eg_tape_begin();
    if (!eg_cond(eg_less(p[0], 0), root_of_minus, root_of, NULL, p, 1, out, 1)) return 0;
    out[1] = eg_tape_gradient(tape, out[0], p[0]);
    return out[1] ? 2 : 0;
}

// Where the CNN's batches come from: 10,000 pictures through a shuffle, a batch, and a thread that reads ahead.
static eg_iterator *reading;
static void make_batches(void) {
    eg_dataset *d = eg_dataset_from_slices(normal(EG_SHAPE(10000, 28, 28), 1), integers(10, EG_SHAPE(10000)));
    d = eg_dataset_prefetch(eg_dataset_batch(eg_dataset_repeat(eg_dataset_shuffle(d, 1000, .seed = 1), -1), 32), 2);
    reading = eg_iterator_new(d);
    eg_dataset_release(d);
}
static int run_batches(eg_tensor **out) {
    eg_tensor *batch[EG_MAX_COMPONENTS];
    bool there = eg_iterator_next(reading, batch) == EG_NEXT;
    out[0] = batch[0];
    return there;
}

static int run_startup(eg_tensor **out) {
    eg_tensor *three = eg_scalar(3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, three);
    out[0] = eg_tape_gradient(tape, eg_mul(three, three), three);
    return 1;
}

// ---------------------------------------------------------------- measuring

typedef struct {
    const char *name, *unit;
    double units;               // in a second of one run
    int warmup;
    void (*make)(void);
    int (*run)(eg_tensor **out);
} workload;
static const workload work[] = {
    {"op_add_4", "ns", 1e6, 5, make_4, run_op_add},
    {"op_add_number_4", "ns", 1e6, 5, make_4_positive, run_op_add_number},
    {"op_pow_4", "ns", 1e6, 5, make_4_positive, run_op_pow},
    {"op_mod_4", "ns", 1e6, 5, make_4_positive, run_op_mod},
    {"op_clip_4", "ns", 1e6, 5, make_4_positive, run_op_clip},
    {"op_clip_numbers_4", "ns", 1e6, 5, make_4_positive, run_op_clip_numbers},
    {"op_rank_0", "ns", 1e6, 5, make_rank_0, run_rank_0},
    {"op_rank_1", "ns", 1e6, 5, make_rank_1, run_rank_1},
    {"op_rank_2", "ns", 1e6, 5, make_rank_2, run_rank_2},
    {"op_rank_4", "ns", 1e6, 5, make_rank_4, run_rank_4},
    {"op_rank_8", "ns", 1e6, 5, make_rank_8, run_rank_8},
    {"tape_chain_4", "ns", 1e7, 5, make_chain, run_chain},
    {"taped_chain_4", "ns", 1e7, 5, make_taped_chain, run_taped_chain},
    {"tape_entries_100", "ns", 1e7, 5, make_ones_4, run_entries_100},
    {"tape_entries_10k", "ns", 1e5, 3, make_ones_4, run_entries_10k},
    {"tape_entries_100k", "ns", 1e4, 2, make_ones_4, run_entries_100k},
    {"tape_entries_1m", "ns", 1e3, 1, make_ones_4, run_entries_1m},
    {"tape_entries_10m", "ns", 1e2, 0, make_ones_4, run_entries_10m},
    {"tape_entries_1m_first", "ns", 1e3, 1, make_ones_4, run_entries_1m_first},
    {"linreg_2000", "us", 1e6, 10, make_linreg, run_linreg},
    {"ew_add_10m", "ms", 1e3, 3, make_two_10m, run_add},
    {"ew_add_10m_plain", "ms", 1e3, 3, make_add_loop, run_add_plain},
#if defined(__x86_64__) && !defined(__clang__)
    {"ew_add_10m_stream", "ms", 1e3, 3, make_add_loop, run_add_stream},
#endif
    {"ew_exp_1m", "us", 1e6, 5, make_1m, run_exp},
    {"ew_tanh_1m", "us", 1e6, 5, make_1m, run_tanh},
    {"ew_gelu_1m", "us", 1e6, 5, make_1m, run_gelu},
    {"ew_chain20_1m", "ms", 1e3, 5, make_1m, run_chain20},
    {"ew_cheap20_1m", "ms", 1e3, 5, make_two_1m, run_cheap20},
    {"sum_10m", "ms", 1e3, 3, make_10m, run_sum},
    {"softmax_1024x1000", "ms", 1e3, 5, make_rows, run_softmax},
    {"matmul_64", "us", 1e6, 5, make_matmul_64, run_matmul},
    {"matmul_256", "us", 1e6, 5, make_matmul_256, run_matmul},
    {"matmul_1000", "ms", 1e3, 3, make_matmul_1000, run_matmul},
    {"matmul_1000_x200", "s", 1, 1, make_matmul_1000, run_matmul_x200},
    {"mlp_32", "us", 1e6, 10, make_mlp_32, run_mlp},
    {"mlp_256", "us", 1e6, 10, make_mlp_256, run_mlp},
    {"cnn_32", "us", 1e6, 10, make_cnn, run_cnn},
    {"conv_64", "ms", 1e3, 3, make_conv_64, run_conv},
    {"conv_56", "ms", 1e3, 3, make_conv_56, run_conv},
    {"conv_56_tf32", "ms", 1e3, 3, make_conv_56_tf32, run_conv},
    {"conv_1x1", "ms", 1e3, 3, make_conv_1x1, run_conv},
    {"conv_mnist", "ms", 1e3, 3, make_conv_mnist, run_conv},
    {"lstm_128", "ms", 1e3, 3, make_lstm, run_lstm},
    {"gpt_small", "ms", 1e3, 3, make_gpt, run_gpt},
    {"batch_32", "us", 1e6, 10, make_batches, run_batches},
    {"hvp_mlp", "us", 1e6, 3, make_hvp, run_hvp},
    {"third_derivative", "us", 1e6, 3, make_1000, run_third},
    {"digits_32", "us", 1e6, 10, make_digits, run_digits},
    {"root", "us", 1e6, 10, make_root, run_root},
    {"root_4", "us", 1e6, 10, make_root_4, run_root},
};
enum { WORKLOADS = sizeof work / sizeof *work, SAMPLES = 100000 };

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static int ascending(const void *a, const void *b) {
    double u = *(const double *)a, v = *(const double *)b;
    return (u > v) - (u < v);
}
// The workload that is traced now, its function, and how many results it has.
static const workload *traced_work;
static eg_function *traced;
static int traced_results;
static bool traced_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    (void)user;
    for (int i = 0; i < OUTPUTS; i++) out[i] = NULL;
    traced_results = traced_work->run(out);
    for (int i = 0; i < traced_results; i++) out[i] = eg_keep(out[i]);
    return eg_error() == EG_OK;
}
static int run_workload(const workload *w, eg_tensor **out) {
    if (!traced) return w->run(out);
    traced_work = w;
    if (!eg_function_call(traced, NULL, 0, out, OUTPUTS)) return 0;
    if (optimizer && eg_size(out[0]) == 1) eg_item(out[0]);
    return traced_results;
}
static void run(const workload *w) {
    EG_SCOPE;
    eg_tensor *out[OUTPUTS];
    if (w->run == run_root) eg_assign(p[0], numbers[next_number++ % n_numbers]);
    run_workload(w, out);
}
// The sum of |result|, over everything in it.
static double run_and_check(const workload *w) {
    EG_SCOPE;
    eg_tensor *out[OUTPUTS];
    double sum = 0;
    int n = run_workload(w, out);
    for (int i = 0; i < n; i++) {
        const float *v = eg_data(out[i]);
        for (int64_t k = 0; v && k < eg_size(out[i]); k++) sum += fabs((double)v[k]);
    }
    return sum;
}

typedef struct { double median, min, p95, check; int64_t runs; } result;
static result measure(const workload *w, bool trace, double min_time, int warmup) {
    static double samples[SAMPLES];
    result r = {0, 0, 0, 0, 0};
    n_p = 0;
    drawn = 0;
    optimizer = NULL;
    EG_SCOPE;
    eg_matmul_precision(EG_PRECISION_FLOAT32);
    w->make();
    traced = trace ? eg_function_new(traced_body, NULL, .no_recheck = true) : NULL;
    for (int i = 0; i < warmup; i++) r.check = run_and_check(w);
    eg_synchronize();
    double start = now();
    run(w);
    eg_synchronize();
    double once = now() - start;
    int64_t calls = once > 0 && once < .002 ? (int64_t)(.002 / once) : 1;       // a sample lasts 2 ms or more
    for (double end = now() + min_time; r.runs < SAMPLES && (now() < end || r.runs < (once < 1 ? 3 : 1));) {
        start = now();
        for (int64_t i = 0; i < calls; i++) run(w);
        eg_synchronize();
        samples[r.runs++] = (now() - start) / (double)calls;
    }
    qsort(samples, (size_t)r.runs, sizeof *samples, ascending);
    r.median = r.runs % 2 ? samples[r.runs / 2] : (samples[r.runs / 2 - 1] + samples[r.runs / 2]) / 2;
    r.min = samples[0];
    r.p95 = samples[(r.runs * 95 + 99) / 100 - 1];
    if (traced && eg_function_reason(traced)) fprintf(stderr, "%s: %s\n", w->name, eg_function_reason(traced));
    eg_function_release(traced);
    traced = NULL;
    eg_function_release(called);
    called = NULL;
    eg_iterator_release(reading);
    reading = NULL;
    for (int i = 0; i < n_p; i++) eg_release(p[i]);
    for (; n_layers > 0; n_layers--) eg_layer_release(layers[n_layers - 1]);
    eg_optimizer_release(optimizer);
    return r;
}

// The least seconds of an eager step, of a traced function's first call, which runs the step and writes, joins and
// plans the list, and of a replay, behind three steps that make slots and fill the free lists.
static int measure_tracing(const workload *w) {
    enum { TIMES = 5 };
    double least[3] = {1e9, 1e9, 1e9};
    eg_function_info info;
    EG_SCOPE;
    n_p = 0;
    drawn = 0;
    optimizer = NULL;
    w->make();
    for (int i = 0; i < 3; i++) run(w);
    for (int i = 0; i < TIMES; i++) {
        traced = NULL;
        double start = now();
        run(w);
        least[0] = fmin(least[0], now() - start);
        traced = eg_function_new(traced_body, NULL, .no_recheck = true);
        for (int k = 1; k < 4; k++) {
            start = now();
            run(w);
            if (k != 2) least[k == 1 ? 1 : 2] = fmin(least[k == 1 ? 1 : 2], now() - start);
        }
        info = eg_function_counts(traced);
        if (eg_function_reason(traced)) fprintf(stderr, "%s: %s\n", w->name, eg_function_reason(traced));
        eg_function_release(traced);
    }
    traced = NULL;
    printf("%-18s %5lld lines, ms: eager %.3f, first call %.3f, replay %.3f\n", w->name, (long long)info.lines,
           1e3 * least[0], 1e3 * least[1], 1e3 * least[2]);
    for (int i = 0; i < n_p; i++) eg_release(p[i]);
    for (; n_layers > 0; n_layers--) eg_layer_release(layers[n_layers - 1]);
    eg_optimizer_release(optimizer);
    return eg_error() != EG_OK;
}

// Traced functions of 1,000 sums of four floats, in turn, and of none, whose lists run line by line.
static bool sums_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = in[0];
    for (int i = 0; i < *(int *)user; i++) out[0] = eg_add(out[0], in[1]);
    out[0] = eg_keep(out[0]);
    return eg_error() == EG_OK;
}
static int measure_unfused(void) {
    enum { TIMES = 400 };
    static double samples[2][TIMES];
    int n[2] = {0, 1000};
    EG_SCOPE;
    eg_function *f[2];
    eg_tensor *in[2] = {normal(EG_SHAPE(4), 1), normal(EG_SHAPE(4), 1)}, *out;
    for (int k = 0; k < 2; k++) f[k] = eg_function_new(sums_body, &n[k], .no_recheck = true, .unfused = true);
    for (int i = 0; i < 2 * TIMES; i++) {
        EG_SCOPE;
        double start = now();
        for (int k = 0; k < 20; k++) eg_function_call(f[i % 2], in, 2, &out, 1);
        samples[i % 2][i / 2] = (now() - start) / 20;
    }
    for (int k = 0; k < 2; k++) {
        qsort(samples[k], TIMES, sizeof **samples, ascending);
        eg_function_release(f[k]);
    }
    printf("ns for each of 1,000 sums of four floats beyond an empty call, unfused: median %.2f, least %.2f\n",
           1e6 * (samples[1][TIMES / 2] - samples[0][TIMES / 2]), 1e6 * (samples[1][0] - samples[0][0]));
    return eg_error() != EG_OK;
}

// The processor's time, in ns, and the page faults of a million ops on tapes of `entries` ops, forward and backward.
// Not the clock's: of so long a run, other programs take a part that they do not take of the best short ones.
typedef struct { double ns; long faults; } chain_cost;
static chain_cost measure_chains(int entries) {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    const clock_t start = clock();
    for (int i = 0; i < 1000000 / entries; i++) {
        EG_SCOPE;
        eg_tensor *out[OUTPUTS];
        run_entries(entries, out);
    }
    const double seconds = (double)(clock() - start) / (double)CLOCKS_PER_SEC;
    getrusage(RUSAGE_SELF, &after);
    const chain_cost cost = {1e9 * seconds / 1e6, after.ru_minflt - before.ru_minflt};
    return cost;
}
static int measure_entries(void) {
    enum { TIMES = 15 };
    double chain[TIMES], ratios[TIMES], least[2] = {1e9, 1e9};
    long faults = 0;
    EG_SCOPE;
    make_ones_4();
    const chain_cost first = measure_chains(1000000);
    for (int i = -1; i < TIMES; i++) {
        const chain_cost few = measure_chains(100), many = measure_chains(1000000);
        if (i < 0) continue;
        // beside the mean of the short ones before and behind, since the processor's speed changes
        ratios[i] = 2 * many.ns / (few.ns + measure_chains(100).ns);
        chain[i] = few.ns;
        least[0] = fmin(least[0], few.ns);
        least[1] = fmin(least[1], many.ns);
        faults += many.faults;
    }
    qsort(chain, TIMES, sizeof *chain, ascending);
    qsort(ratios, TIMES, sizeof *ratios, ascending);
    printf("ns an op: tapes of 100 ops %.0f (least %.0f); of a million: least %.0f, %.2f times (%.2f to %.2f), the "
           "first pass %.0f; page faults in a million ops: first %ld, later %.1f\n", chain[TIMES / 2], least[0],
           least[1], ratios[TIMES / 2], ratios[0], ratios[TIMES - 1], first.ns, first.faults, (double)faults / TIMES);
    return eg_error() != EG_OK;
}

// Fresh processes of this program, from the first instruction to the gradient on the screen.
static result measure_startup(const char *program) {
    enum { RUNS = 11 };
    char command[4096];
    double samples[RUNS];
    result r = {0, 0, 0, 0, RUNS};
    snprintf(command, sizeof command, "'%s' gradient >/dev/null", program);
    for (int i = 0; i < RUNS; i++) {
        double start = now();
        if (system(command)) return r;
        samples[i] = now() - start;
    }
    qsort(samples, RUNS, sizeof *samples, ascending);
    r.median = samples[RUNS / 2];
    r.min = samples[0];
    r.p95 = samples[RUNS - 1];
    r.check = 6;
    return r;
}

// A line of /proc/self/status, in bytes; 0 where there is none.
static long long process_status(const char *name) {
    char line[256];
    long long kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), ": %lld", &kilobytes);
    if (f) fclose(f);
    return 1024 * kilobytes;
}

// Three steps make the optimizer's slots and fill the free lists; the peak is of the fourth.
static int measure_memory(void) {
    EG_SCOPE;
    make_digits();
    long long start = process_status("VmRSS");
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *out[OUTPUTS];
        eg_memory_reset_peak();
        run_digits(out);
    }
    eg_memory_info m = eg_memory();
    printf("{\"peak\": %lld, \"between\": %lld, \"resident\": %lld}\n", (long long)m.peak_bytes,
           (long long)m.live_bytes, process_status("VmHWM") - start);
    for (int i = 0; i < n_p; i++) eg_release(p[i]);
    eg_optimizer_release(optimizer);
    return eg_error() != EG_OK;
}

// The processor's name, and its family and model, as CPUID gives them: "AMD EPYC, family 25, model 1".
static void processor(char name[128]) {
    snprintf(name, 128, "unknown processor");
#if defined(__x86_64__)
    unsigned id[13] = {0}, eax = 0, ebx, ecx, edx;
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &id[4 * i], &id[4 * i + 1], &id[4 * i + 2], &id[4 * i + 3])) return;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    unsigned family = (eax >> 8 & 15) + (eax >> 20 & 255), model = (eax >> 4 & 15) | (eax >> 12 & 240);
    const char *brand = (const char *)id;
    int length = (int)strlen(brand);
    while (length > 0 && brand[length - 1] == ' ') length--;
    snprintf(name, 128, "%.*s, family %u, model %u", length, brand, family, model);
#endif
}

#if defined(__x86_64__)
// Ten products and sums of a vector each that do not wait for one another: two units with a latency of four cycles want
// eight.
#define FMA_ROUNDS(name, isa, bytes, fma) \
    __attribute__((target(isa))) static double name(int64_t rounds) { \
        typedef float vector __attribute__((vector_size(bytes))); \
        vector f = {0}, v[10]; \
        for (int i = 0; i < (bytes) / 4; i++) f[i] = 0.9999f; \
        for (int i = 0; i < 10; i++) v[i] = f; \
        for (int64_t k = 0; k < rounds; k++) { \
            v[0] = fma(v[0]), v[1] = fma(v[1]), v[2] = fma(v[2]), v[3] = fma(v[3]), v[4] = fma(v[4]); \
            v[5] = fma(v[5]), v[6] = fma(v[6]), v[7] = fma(v[7]), v[8] = fma(v[8]), v[9] = fma(v[9]); \
        } \
        return (double)(v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7] + v[8] + v[9])[0]; \
    }
#define FMA_AVX2(v) _mm256_fmadd_ps(v, f, f)
#define FMA_AVX512(v) _mm512_fmadd_ps(v, f, f)
FMA_ROUNDS(fma_rounds_avx2, "avx2,fma", 32, FMA_AVX2)
FMA_ROUNDS(fma_rounds_avx512, "avx512f", 64, FMA_AVX512)
#endif

// One line of JSON: the processor; the most products and sums of float32 in a second (0 where no vectors of 32 bytes
// are known); bytes in a second of reading 40 MB, and of adding two arrays of 40 MB into a third (12 bytes an element),
// by plain loops.
static int measure_machine(void) {
    enum { N = 10000000, TIMES = 9 };
    char name[128];
    processor(name);
    double flops = 0, read = 0, adding = 0, kept = 0;
    float *v = calloc(3 * (size_t)N, sizeof *v);
    if (!v) return 1;
    for (int64_t i = 0; i < 3 * (int64_t)N; i++) v[i] = 1;
    for (int t = 0; t < TIMES; t++) {
        double start = now();
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
            kept += fma_rounds_avx2(2000000);
            flops = fmax(flops, 2000000. * 10 * 8 * 2 / (now() - start));
        }
        start = now();
        if (__builtin_cpu_supports("avx512f")) {
            kept += fma_rounds_avx512(1000000);
            flops = fmax(flops, 1000000. * 10 * 16 * 2 / (now() - start));
        }
#endif
        start = now();
        uint64_t sums[8] = {0};
        for (int64_t i = 0; i < N / 2; i += 8)                      // integers: their sum may be taken in any order
            for (int k = 0; k < 8; k++) sums[k] += ((const uint64_t *)(const void *)v)[i + k];
        read = fmax(read, N * 4. / (now() - start));
        for (int k = 0; k < 8; k++) kept += (double)(sums[k] & 1);
        start = now();
        for (int64_t i = 0; i < N; i++) v[2 * (int64_t)N + i] = v[i] + v[N + i];
        adding = fmax(adding, N * 12. / (now() - start));
        kept += (double)v[2 * (int64_t)N + t];
    }
    free(v);
    printf("{\"processor\": \"%s\", \"flops\": %.4g, \"reading\": %.4g, \"adding\": %.4g, \"check\": %g}\n", name,
           flops, read, adding, kept);
    return 0;
}

#ifndef EAGER_NO_THREADS
// Two threads hand a number to and fro, the least of up to 50 times. Two cores of one cache take some 50 ns, cores
// without a common one 200 and more; under a hypervisor, the same two processors may be now this, now that.
static int64_t handed __attribute__((aligned(64)));            // odd: the other thread's turn; negative: the end
static void *hand_back(void *unused) {
    for (int64_t at; (at = __atomic_load_n(&handed, __ATOMIC_ACQUIRE)) >= 0;)
        if (at % 2) __atomic_store_n(&handed, at + 1, __ATOMIC_RELEASE);
    return unused;
}
static int measure_handoff(void) {
    enum { TIMES = 50, TURNS = 500 };
    pthread_t other;
    double least = 1;
    if (pthread_create(&other, NULL, hand_back, NULL)) return 1;
    const double end = now() + 0.2;
    for (int t = 0; t < TIMES && now() < end; t++) {
        const double start = now();
        for (int i = 0; i < TURNS; i++) {
            const int64_t mine = __atomic_load_n(&handed, __ATOMIC_ACQUIRE) + 1;
            __atomic_store_n(&handed, mine, __ATOMIC_RELEASE);
            while (__atomic_load_n(&handed, __ATOMIC_ACQUIRE) == mine) {}
        }
        least = fmin(least, (now() - start) / TURNS);
    }
    __atomic_store_n(&handed, -1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    printf("%.0f\n", 1e9 * least);
    return 0;
}
#endif

// Whether an argument names a workload: 1 as it is, 2 traced; else 0.
static int names(const char *argument, const char *name) {
    const size_t n = strlen(name);
    if (strncmp(argument, name, n)) return 0;
    return !argument[n] ? 1 : !strcmp(argument + n, "_traced") ? 2 : 0;
}
static bool print_row(const char *name, const char *unit, double units, result r) {
    if (eg_error()) return false;
    printf("%-27s %12.4g %-3s (best %.4g, %lld runs; check %.9g)\n", name, r.median * units, unit, r.min * units,
           (long long)r.runs, r.check);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv) {
    if (getenv("BENCH_DEVICE") && !eg_set_device(getenv("BENCH_DEVICE"))) return 1;
    if (argc == 2 && !strcmp(argv[1], "memory")) return measure_memory();
    if (argc == 2 && !strcmp(argv[1], "unfused")) return measure_unfused();
    if (argc == 2 && !strcmp(argv[1], "entries")) return measure_entries();
    if (argc == 2 && !strcmp(argv[1], "machine")) return measure_machine();
#ifndef EAGER_NO_THREADS
    if (argc == 2 && !strcmp(argv[1], "handoff")) return measure_handoff();
#endif
    if (argc > 2 && !strcmp(argv[1], "tracing")) {
        int failed = 0;
        for (int i = 0; i < WORKLOADS; i++)
            for (int k = 2; k < argc; k++) if (!strcmp(argv[k], work[i].name)) failed |= measure_tracing(&work[i]);
        return failed;
    }
    if (argc == 2 && !strcmp(argv[1], "gradient")) {
        eg_tensor *out[OUTPUTS];
        run_startup(out);
        printf("%g\n", eg_item(out[0]));
        return 0;
    }
    if (argc == 5 && argv[2][0] >= '0' && argv[2][0] <= '9') {
        result r = {0, 0, 0, 0, 0};
        if (!strcmp(argv[1], "startup")) r = measure_startup(argv[0]);
        for (int i = 0; i < WORKLOADS; i++)
            if (names(argv[1], work[i].name))
                r = measure(&work[i], names(argv[1], work[i].name) == 2, atof(argv[3]), atoi(argv[4]));
        if (!r.runs) printf("{\"skip\": \"not written for eager.h\"}\n");
        else printf("{\"median\": %.9g, \"min\": %.9g, \"p95\": %.9g, \"runs\": %lld, \"check\": %.9g}\n", r.median,
                    r.min, r.p95, (long long)r.runs, r.check);
        return eg_error() != EG_OK;
    }
    const bool lengthy = argc == 2 && !strcmp(argv[1], "--long");
    for (int i = 0; i < WORKLOADS; i++) {
        const bool slow = !strcmp(work[i].name, "matmul_1000_x200") || !strcmp(work[i].name, "tape_entries_10m");
        int chosen = (argc < 2 && !slow) || lengthy ? 1 : 0;           // 1: eager, 2: traced
        for (int k = 1; k < argc; k++) chosen |= names(argv[k], work[i].name);
        for (int how = 1; how <= 2; how++) {
            char name[64];
            if (!(chosen & how)) continue;
            snprintf(name, sizeof name, "%s%s", work[i].name, how == 2 ? "_traced" : "");
            const result r = measure(&work[i], how == 2, 0.5, work[i].warmup);
            if (!print_row(name, work[i].unit, work[i].units, r)) return 1;
        }
    }
    if (argc < 2 || lengthy) print_row("startup", "ms", 1e3, measure_startup(argv[0]));
    return 0;
}
