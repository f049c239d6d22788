// Traced functions: a replay gives the bits that the body gives when it runs eagerly.
#ifndef EAGER_BACKEND
#define EAGER_BACKEND
#endif
#include "test.h"

// ---- one step of training, eager and traced, from the same start

enum { STEPS = 20 };
typedef struct net {
    eg_tensor *v[8];
    int n;
    eg_layer *layer;
    eg_optimizer *opt;
    eg_tensor *(*forward)(struct net *net, eg_tensor *x);
    double frozen;
    int runs;
    int item;
    bool stays_eager, squares;
    eg_tensor *kept;
} net;
static eg_tensor *net_forward_mlp(net *s, eg_tensor *x) {
    eg_tensor *h = eg_tanh(eg_add(eg_matmul(x, s->v[0]), s->v[1]));
    return eg_add(eg_matmul(h, s->v[2]), s->v[3]);
}
static eg_tensor *net_forward_layer(net *s, eg_tensor *x) { return eg_call(s->layer, x, .training = true); }
static bool net_step(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    s->runs++;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = s->forward(s, in[0]);
    eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(y, in[1])));
    if (s->item) eg_item(loss);
    if (s->layer) {
        eg_list v = eg_tape_watched_variables_list(tape);
        eg_list g = eg_tape_gradients_list(tape, loss, v);
        if (!eg_apply_gradients_list(s->opt, g, v)) return false;
    } else {
        eg_tensor *g[8];
        if (!eg_tape_gradients(tape, loss, s->v, s->n, g) || !eg_apply_gradients(s->opt, g, s->v, s->n)) return false;
    }
    out[0] = eg_keep(loss);
    return true;
}
static eg_tensor *net_data(int step, eg_shape shape) {
    double n = 1;
    for (int i = 0; i < shape.rank; i++) n *= (double)shape.dims[i];
    return eg_reshape(eg_sin(eg_mul(eg_range(EG_FLOAT32, step, step + n, 1), 0.7)), shape);
}
static void net_make_mlp(net *s) {
    s->forward = net_forward_mlp;
    s->n = 4;
    s->v[0] = eg_variable(net_data(1, EG_SHAPE(3, 5)), "W1");
    s->v[1] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(5)), "b1");
    s->v[2] = eg_variable(net_data(2, EG_SHAPE(5, 2)), "W2");
    s->v[3] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "b2");
}
static void net_end(net *s) {
    for (int i = 0; i < s->n; i++) eg_release(s->v[i]);
    eg_layer_release(s->layer);
    eg_optimizer_release(s->opt);
}
// Bits of the losses and of the weights behind STEPS steps.
typedef struct bits { float loss[STEPS]; double weights; eg_random_state random; } bits;
static bits net_run(net *s, bool traced, eg_shape x, eg_shape y) {
    bits b;
    eg_function *f = eg_function_new(net_step, s);
    memset(&b, 0, sizeof b);
    eg_run_functions_eagerly(!traced);
    for (int i = 0; i < STEPS; i++) {
        EG_SCOPE;
        eg_tensor *in[] = {net_data(i, x), net_data(i + 3, y)}, *out[1];
        CHECK(eg_function_call(f, in, 2, out, 1));
        if (out[0]) b.loss[i] = (float)eg_item(out[0]);
    }
    eg_run_functions_eagerly(false);
    if (traced && !s->stays_eager) {
        CHECK(eg_function_reason(f) == NULL);
        if (eg_function_reason(f)) printf("%s\n", eg_function_reason(f));
        CHECK(eg_function_counts(f).replays >= 10);
        CHECK(s->runs < STEPS);
    }
    eg_list v = eg_optimizer_state_list(s->opt);
    for (int i = 0; i < v.count + s->n; i++) {
        EG_SCOPE;
        eg_tensor *w = i < v.count ? v.tensors[i] : s->v[i - v.count];
        b.weights += eg_item(eg_reduce_sum(eg_cast(w, EG_FLOAT64)));
    }
    b.random = eg_random_get_state();
    eg_function_release(f);
    return b;
}
static void net_compare(void (*make)(net *s), eg_optimizer *(*optimizer)(int kind), int kind, eg_shape x, eg_shape y) {
    bits b[2];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        net s;
        memset(&s, 0, sizeof s);
        eg_seed(7);
        make(&s);
        s.opt = optimizer(kind);
#ifdef TEST_CUDA
        s.stays_eager = kind == 13;                          // the device clips by itself
#endif
        b[traced] = net_run(&s, traced, x, y);
        net_end(&s);
    }
    for (int i = 0; i < STEPS; i++)
        if (memcmp(&b[0].loss[i], &b[1].loss[i], sizeof(float))) {
            printf("kind %d step %d: %.9g eager, %.9g traced\n", kind, i, (double)b[0].loss[i], (double)b[1].loss[i]);
            CHECK(false);
            break;
        }
    CHECK(!memcmp(&b[0].weights, &b[1].weights, sizeof(double)));
    CHECK(b[0].random.counter == b[1].random.counter && b[0].random.seed == b[1].random.seed);
    CHECK(b[0].loss[0] != b[0].loss[STEPS - 1]);
}
static eg_optimizer *make_optimizer(int kind) {
    switch (kind) {
    case 0: return eg_sgd(.learning_rate = 0.1);
    case 1: return eg_sgd(.learning_rate = 0.05, .momentum = 0.9);
    case 2: return eg_sgd(.learning_rate = 0.05, .momentum = 0.9, .nesterov = true);
    case 3: return eg_rmsprop(.learning_rate = 0.01);
    case 4: return eg_adam(.learning_rate = 0.01);
    case 5: return eg_adamw(.learning_rate = 0.01);
    case 6: return eg_adagrad(.learning_rate = 0.1);
    case 7: return eg_adadelta(.learning_rate = 1);
    case 8: return eg_adamax(.learning_rate = 0.01);
    case 9: return eg_nadam(.learning_rate = 0.01);
    case 10: return eg_ftrl(.learning_rate = 0.1);
    case 11: return eg_lion(.learning_rate = 0.01);
    case 12: return eg_adam(.schedule = eg_exponential_decay(0.05, 3, 0.5, false));
    case 13: return eg_adam(.learning_rate = 0.01, .global_clipnorm = 0.5);
    case 14: return eg_rmsprop(.learning_rate = 0.01, .momentum = 0.9, .centered = true);
    default: return eg_adam(.learning_rate = 0.01, .amsgrad = true);
    }
}
TEST(optimizers_replay) {
    for (int kind = 0; kind < 16; kind++)
        net_compare(net_make_mlp, make_optimizer, kind, EG_SHAPE(4, 3), EG_SHAPE(4, 2));
}
static void net_make_conv(net *s) {
    s->forward = net_forward_layer;
    s->layer = eg_sequential(eg_layer_conv2d(4, 3, .activation = EG_RELU), eg_layer_batch_normalization(),
                             eg_layer_max_pooling2d(), eg_layer_dropout(0.3), eg_layer_flatten(), eg_layer_dense(2));
}
TEST(a_convolution_with_statistics_and_dropout_replays) {
    net_compare(net_make_conv, make_optimizer, 4, EG_SHAPE(4, 8, 8, 2), EG_SHAPE(4, 2));
}
static void net_make_lstm(net *s) {
    s->forward = net_forward_layer;
    s->layer = eg_sequential(eg_layer_lstm(6), eg_layer_dense(2));
}
TEST(an_lstm_replays) { net_compare(net_make_lstm, make_optimizer, 4, EG_SHAPE(4, 5, 3), EG_SHAPE(4, 2)); }
static void net_make_attention(net *s) {
    s->forward = net_forward_layer;
    s->layer = eg_sequential(eg_layer_gru(6, .return_sequences = true), eg_layer_layer_normalization(),
                             eg_layer_global_average_pooling1d(), eg_layer_dense(2));
}
TEST(a_gru_and_normalization_replay) {
    net_compare(net_make_attention, make_optimizer, 0, EG_SHAPE(4, 5, 3), EG_SHAPE(4, 2));
}

// ---- signatures, rechecks, reasons

// Reads y in C: by a call of the program's, or in the forward function of a custom gradient.
static eg_tensor *reading_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c;
    (void)user;
    return eg_mul(in[0], eg_item(eg_reduce_max(in[0])));
}
static void no_backward(const eg_grad_context *c, eg_tensor **dx, void *user) { (void)c; (void)dx; (void)user; }
static void reads_as_asked(eg_tensor *y, int how) {
    float values[2];
    switch (how) {
    case 1: eg_item(eg_reduce_sum(y)); break;
    case 2: eg_item_int(eg_reduce_sum(y)); break;
    case 3: eg_data(y); break;
    case 4: eg_read_into(y, values, 2); break;
    default: {                                              // of more inputs than replays hand to C
        eg_tensor *all[9];
        for (int i = 0; i < 9; i++) all[i] = y;
        eg_custom_gradient(reading_forward, no_backward, NULL, all, 9);
    } }
}
static bool doubled(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    s->runs++;
    eg_tensor *y = eg_mul(in[0], 2 + s->frozen);
    const double squared = (double)(eg_size(y) * eg_size(y));       // no list of one length gives that of another one
    if (s->squares) y = eg_div(eg_mul(y, squared), squared);
    if (s->item) reads_as_asked(y, s->item);
    if (s->kept == in[0]) s->kept = eg_retain(y);
    out[0] = eg_keep(y);
    return true;
}
// Shapes that come in turn, more of them than are kept: their traces would never be replayed.
TEST(more_shapes_than_are_kept_end_tracing) {
    net s;
    memset(&s, 0, sizeof s);
    s.squares = true;
    eg_function *f = eg_function_new(doubled, &s, .no_recheck = true);
    for (int i = 0; i < 200; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1 + i % 20), i), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(eg_reduce_sum(y)), (1 + i % 20) * i * 2.0, 0);
    }
    const eg_function_info n = eg_function_counts(f);
    CHECK_INT(n.traces, 48);
    CHECK_INT(n.dropped, 32);
    CHECK(n.replays > 100 && s.runs + n.replays == 200);    // those that are kept are still replayed
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(77)), *y;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK(strstr(eg_function_reason(f), "more shapes come in turn than the 16") != NULL);
    CHECK(strstr(eg_function_reason(f), "; pad the inputs to fewer shapes") != NULL);
    eg_function_release(f);
}
// So many calls of n rows, and how many of them were replays.
static int64_t doubled_calls(eg_function *f, int64_t n, int calls) {
    const int64_t replays = eg_function_counts(f).replays;
    for (int i = 0; i < calls; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(n), i), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(eg_reduce_sum(y)), (double)n * i * 2, 0);
    }
    return eg_function_counts(f).replays - replays;
}
// Where the calls settle on few shapes later, these are traced: after 256 calls without a list, then after 512 ...
TEST(a_function_rests_from_useless_traces_and_goes_on) {
    net s;
    memset(&s, 0, sizeof s);
    s.squares = true;
    eg_function *f = eg_function_new(doubled, &s, .no_recheck = true);
    int64_t n = 1;
    for (int64_t rest = 256; rest <= 1024; rest *= 2) {
        do doubled_calls(f, n++, 1); while (!eg_function_reason(f));
        const int64_t traces = eg_function_counts(f).traces;
        CHECK_INT(doubled_calls(f, 500, (int)rest - 1), 0);
        CHECK_CONTAINS(eg_function_reason(f), "more shapes come in turn than the 16");
        CHECK_INT(eg_function_counts(f).traces, traces);
        CHECK_INT(doubled_calls(f, 500, 10), 9);
        CHECK_STR(eg_function_reason(f), NULL);
    }
    for (int i = 0; i < 20; i++) CHECK(doubled_calls(f, n++, 10) == 9);     // all are replayed: no rest is due
    CHECK_STR(eg_function_reason(f), NULL);
    eg_function_release(f);
    // Known lengths in turn, more than lists are kept for: to derive each for one replay is of no use either.
    s.squares = false;
    f = eg_function_new(doubled, &s, .no_recheck = true);
    for (int i = 0; i < 400; i++) doubled_calls(f, 2 + i % 100, 1);
    CHECK_CONTAINS(eg_function_reason(f), "than the 64 lengths");
    CHECK_INT(eg_function_counts(f).derived + eg_function_counts(f).traces, 98);
    eg_function_release(f);
}
// Shapes that are used often enough stay traced, however many there are.
TEST(many_shapes_that_are_replayed_stay_traced) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(doubled, &s, .no_recheck = true);
    for (int i = 0; i < 400; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1 + i / 4), i), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_STR(eg_function_reason(f), NULL);
    }
    CHECK_INT(eg_function_counts(f).replays, 300);
    eg_function_release(f);
}
// What C makes of a size, and two sizes: each pair has a list of its own, so that none is derived from another's.
static bool sizes_in_c(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    const int64_t n = eg_dim(in[0], 0), m = eg_dim(in[1], 0);
    eg_tensor *x = eg_mul(in[0], (double)(n * n));
    x = eg_add(x, eg_reduce_sum(eg_slice(in[0], EG_SHAPE(0), EG_SHAPE((n + 1) / 2))));
    x = eg_div(x, (double)(n < 20 ? n : 20));
    x = eg_add(x, eg_reduce_prod(eg_full(EG_FLOAT32, EG_SHAPE(m), 1.01)));
    out[0] = eg_keep(eg_mul(eg_reshape(x, EG_SHAPE(-1, 1)), in[1]));
    out[1] = eg_keep(eg_reduce_mean(out[0]));
    return out[1] != NULL;
}
TEST(two_sizes_that_change) {
    static const int64_t n[] = { 3, 5, 7, 3, 30, 19, 21, 1, 2, 5 }, m[] = { 4, 4, 4, 2, 2, 9, 9, 1, 3, 4 };
    eg_function *f = eg_function_new(sizes_in_c, NULL);
    for (int i = 0; i < 50; i++) {
        EG_SCOPE;
        eg_tensor *in[] = { net_data(i, EG_SHAPE(n[i % 10])), net_data(i + 1, EG_SHAPE(m[i % 10])) }, *out[2], *want[2];
        CHECK(eg_function_call(f, in, 2, out, 2) && sizes_in_c(in, want, NULL));
        CHECK_SAME(out[0], want[0], 0);
        CHECK_SAME(out[1], want[1], 0);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK_INT(eg_function_counts(f).traces, 9);
    CHECK_INT(eg_function_counts(f).derived, 0);
    CHECK(eg_function_counts(f).replays > 10);
    eg_function_release(f);
}
// A length that changes, and what C makes of it.
typedef struct lengths {
    eg_tensor *w, *captured;
    eg_function *f;
    int what, runs;
    double late;                                           // a number that changes between calls
} lengths;
enum { NOTHING, LINEAR, PARTS, SQUARES, HALVES, CLAMPED, PRODUCT, TWO_LENGTHS, OF_C, WAYS };
static bool with_draws(eg_tensor *const *in, eg_tensor **out, void *user) {
    lengths *s = (lengths *)user;
    out[0] = eg_add(in[0], eg_mul(eg_random_normal(eg_shape_of(in[0])), 0.01));
    return eg_assign_sub(s->w, eg_mul(s->w, 1e-3)) != NULL;
}
static bool with_a_part(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_mul(eg_mul(in[0], ((lengths *)user)->captured), 3.0 / (double)eg_dim(in[0], 0));
    return out[0] != NULL;
}
static bool above_a_half(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_greater(eg_reduce_max(in[0]), 0.5);
    return out[0] != NULL;
}
static bool halved(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(in[0], 0.5);
    return out[0] != NULL;
}
// One branch of two, then as many steps of a loop as the values say.
static eg_tensor *lengths_ways(lengths *s, eg_tensor *x, eg_tensor *h) {
    eg_tensor *y;
    return eg_cond(eg_greater(eg_reduce_sum(x), 0), with_draws, with_a_part, s, &h, 1, &y, 1) &&
           eg_while(above_a_half, halved, s, &y, &y, 1, .max_steps = 3) ? y : NULL;
}
static bool of_a_length(eg_tensor *const *in, eg_tensor **out, void *user) {
    lengths *s = (lengths *)user;
    const int64_t n = eg_dim(in[0], 0);
    s->runs++;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *h = eg_tanh(eg_add(eg_matmul(in[0], s->w), s->captured)), *x = h;
    switch (s->what) {
    case LINEAR: x = eg_mul(x, (double)(3 * n - 2)); break;
    case PARTS: x = eg_mul(x, 0.7 / (double)n); break;
    case SQUARES: x = eg_mul(x, (double)(n * n)); break;
    case HALVES: x = eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE((n + 1) / 2, 4)); break;
    case CLAMPED: x = eg_mul(x, (double)(n < 20 ? n : 20)); break;
    case PRODUCT: x = eg_mul(x, eg_reduce_prod(eg_full(EG_FLOAT32, EG_SHAPE(n), 1.01))); break;
    case TWO_LENGTHS:
        x = eg_reshape(eg_reduce_sum(in[0], .axes = EG_AXES(1)), EG_SHAPE(-1, 1));
        x = eg_mul(h, eg_reduce_mean(eg_mul(x, in[1])));    // of n m elements
        break;
    case OF_C: x = eg_mul(x, eg_constant(EG_SHAPE(1), 1.0 / (double)n)); break;
    case WAYS: x = lengths_ways(s, in[0], x); break;
    default: break;
    }
    eg_tensor *loss = eg_reduce_mean(eg_square(eg_concat(EG_TENSORS(x, h), 0)));
    eg_tensor *g = eg_tape_gradient(tape, loss, s->w);
    if (!g || !eg_assign_sub(s->w, eg_mul(g, 0.001 + s->late))) return false;
    out[0] = eg_keep(x);
    out[1] = eg_keep(loss);
    return true;
}
static void lengths_capture(lengths *s, int seed) {
    EG_SCOPE;                                               // so that s alone holds the tensor
    eg_release(s->captured);
    s->captured = eg_retain(net_data(seed, EG_SHAPE(4)));
}
static void lengths_new(lengths *s, int what) {
    memset(s, 0, sizeof *s);
    s->what = what;
    s->w = eg_variable(net_data(1, EG_SHAPE(3, 4)), "w");
    lengths_capture(s, 2);
    s->f = eg_function_new(of_a_length, s);
}
static void lengths_release(lengths *s) {
    eg_function_release(s->f);
    eg_release(s->w);
    eg_release(s->captured);
}
static bool lengths_call(lengths *s, int64_t n, int seed, float values[2]) {
    EG_SCOPE;
    eg_seed((uint64_t)seed);
    eg_tensor *in[2] = { net_data(seed, EG_SHAPE(n, 3)), net_data(seed + 1, EG_SHAPE(seed % 5 + 2)) }, *out[2];
    if (!eg_function_call(s->f, in, s->what == TWO_LENGTHS ? 2 : 1, out, 2)) return false;
    values[0] = (float)eg_item(eg_reduce_sum(out[0]));
    values[1] = (float)eg_item(out[1]);
    return true;
}
// Calls at the lengths list[0..n-1] in turn, traced and eager: all values are equal, and so many lengths were derived.
static eg_function_info lengths_compare(int what, const int64_t *list, int n, int calls) {
    lengths s[2];
    eg_function_info info;
    for (int traced = 0; traced < 2; traced++) lengths_new(&s[traced], what);
    for (int i = 0; i < calls; i++) {
        float got[2] = { 0, 1 }, want[2] = { 2, 3 };
        CHECK(lengths_call(&s[1], list[i % n], i, got));
        eg_run_functions_eagerly(true);
        CHECK(lengths_call(&s[0], list[i % n], i, want));
        eg_run_functions_eagerly(false);
        CHECK(!memcmp(got, want, sizeof got));
    }
    CHECK_SAME(s[0].w, s[1].w, 0);
    info = eg_function_counts(s[1].f);
    if (test_on_host) CHECK_STR(eg_function_reason(s[1].f), NULL);
    CHECK_INT(info.replays + s[1].runs, calls);
    for (int traced = 0; traced < 2; traced++) lengths_release(&s[traced]);
    return info;
}
static const int64_t further_lengths[] = { 5, 9, 7, 12, 64, 3, 128 };
TEST(a_further_length_has_the_list_that_is_derived_for_it) {
    static const int follows[] = { NOTHING, LINEAR, PARTS };
    for (int k = 0; k < 3; k++) {
        const eg_function_info info = lengths_compare(follows[k], further_lengths, 7, 84);
        CHECK_INT(info.traces, 2);
        CHECK_INT(info.derived, 5);
        CHECK(info.replays > 30);
        CHECK_STR(info.explanation, "input 0: float32 [5, 3], then float32 [9, 3]");
    }
}
// Where n (1 / n) is not 1 in floating point, 1 / n follows n all the same.
TEST(a_part_of_any_length_is_derived) {
    static const int64_t list[] = { 49, 98, 103, 107, 161, 187, 3 };
    const eg_function_info info = lengths_compare(PARTS, list, 7, 70);
    CHECK_INT(info.traces, 2);
    CHECK_INT(info.derived, 5);
}
// Of each way through eg_cond and eg_while, two lengths are traced.
TEST(a_further_length_has_a_list_for_each_way) {
    const eg_function_info info = lengths_compare(WAYS, further_lengths, 7, 420);
    CHECK_INT(info.traces, 6);                              // of three ways that are taken
    CHECK_INT(info.derived, 9);
}
TEST(what_follows_no_length_is_not_derived) {
    static const int64_t odd[] = { 5, 9, 8, 12, 31, 1, 20 };
    static const int wrong[] = { SQUARES, PRODUCT, OF_C, HALVES };
    eg_function_info info;
    for (int k = 0; k < 4; k++) {
        info = lengths_compare(wrong[k], odd, 7, 70);
        CHECK_INT(info.derived, wrong[k] == PRODUCT ? 4 : 0);   // the product is a line, which each replay computes
        CHECK_INT(info.traces + info.derived, 7);
        if (wrong[k] == HALVES || wrong[k] == OF_C) CHECK_CONTAINS(info.explanation, " changes by more than a length");
    }
    info = lengths_compare(CLAMPED, odd, 7, 70);
    CHECK(info.derived > 0 && info.derived < 5);
}
// Of 35 pairs of two lengths, those are traced from which the others follow.
TEST(two_lengths_that_change_at_once) {
    const eg_function_info info = lengths_compare(TWO_LENGTHS, further_lengths, 7, 350);
    CHECK_INT(info.traces, 7);
    CHECK_INT(info.derived, 28);
}
// Outputs that are NULL say nothing of a length, whatever was in the memory of their flags.
static bool nothings_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_exp(in[0]));
    return true;
}
TEST(outputs_that_are_null_do_not_keep_a_length_from_being_derived) {
    enum { OUTPUTS = 30 };
    for (int k = 0; k < 20; k++) {
        EG_SCOPE;
        eg_function *f = eg_function_new(nothings_body, NULL);
        for (int i = 0; i < 6; i++) {
            EG_SCOPE;
            for (int j = 0; j < 50; j++) eg_random_normal(EG_SHAPE(1 + (7 * j + k + i) % 60));
            eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3 + i)), *out[OUTPUTS];
            CHECK(eg_function_call(f, &x, 1, out, OUTPUTS));
        }
        CHECK_INT(eg_function_counts(f).traces, 2);
        eg_function_release(f);
    }
}
// More lengths than traces are kept for: lists that went are derived again, and the body does not run for that.
TEST(known_lengths_need_no_traces) {
    lengths s;
    float values[2];
    lengths_new(&s, NOTHING);
    for (int i = 0; i < 75; i++)
        for (int k = 0; k < 6; k++) CHECK(lengths_call(&s, 2 + i, k, values));
    eg_function_info info = eg_function_counts(s.f);
    CHECK_INT(info.traces, 2);
    CHECK_INT(info.derived, 73);
    CHECK_INT(info.dropped, 0);
    const int runs = s.runs;
    for (int i = 0; i < 6; i++) CHECK(lengths_call(&s, 4 + i, i, values));         // their lists are gone
    CHECK_INT(s.runs, runs);
    CHECK_INT(eg_function_counts(s.f).replays, info.replays + 6);
    CHECK_INT(eg_function_counts(s.f).traces, 2);
    CHECK_STR(eg_function_reason(s.f), NULL);
    s.late = 0.5;                                                                  // the body changes
    while (s.runs < runs + 20 && lengths_call(&s, 4, 1, values)) continue;
    CHECK_CONTAINS(eg_error_message(), "differs from its trace");
    eg_error_clear();
    s.late = 0;
    for (int i = 0; i < 4; i++) CHECK(lengths_call(&s, 4, i, values));
    lengths_capture(&s, 8);
    const int64_t traces = eg_function_counts(s.f).traces;
    for (int i = 0; i < 4; i++) CHECK(lengths_call(&s, 4 + i, i, values));
    CHECK(eg_function_counts(s.f).traces > traces);
    lengths_release(&s);
}
TEST(signatures_are_counted_and_explained) {
    net s;
    memset(&s, 0, sizeof s);
    s.squares = true;
    eg_function *f = eg_function_new(doubled, &s, .no_recheck = true);
    for (int i = 0; i < 40; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1 + i % 20), i), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(eg_reduce_sum(y)), (1 + i % 20) * i * 2.0, 0);
    }
    CHECK_INT(eg_function_counts(f).traces, 40);                    // 20 shapes, of which 16 are kept
    CHECK_INT(eg_function_counts(f).retraces, 39);
    CHECK_INT(eg_function_counts(f).dropped, 24);
    CHECK_CONTAINS(eg_function_counts(f).explanation, "input 0: float32 [19], then float32 [20], where eg_mul at ");
    CHECK_CONTAINS(eg_function_counts(f).explanation, "traced.c:");
    CHECK_INT(eg_function_counts(f).derived, 0);
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(20), 1), *y;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_INT(eg_function_counts(f).replays, 1);
    CHECK_TENSOR(eg_reduce_sum(y), 0, 40);
    eg_function_release(f);
}
// What a body may ask of its thread and of its call is part of a signature: each state has a trace of its own, which is
// found again, and the explanation names what is new.
typedef struct states { eg_tensor *v; eg_function *f; int outputs; double values[3]; int dtype; } states;
static bool states_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const states *s = (const states *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_reduce_sum(eg_matmul(in[0], s->v));
    out[0] = eg_tape_gradient(tape, y, s->v);
    out[1] = eg_mul(eg_constant(EG_SHAPE(1), 3), eg_training() ? 2 : 1);
    if (s->outputs == 3) out[2] = y;
    return eg_error() == EG_OK;
}
static eg_tensor *states_call(eg_tensor *const *in, void *user) {
    states *s = (states *)user;
    eg_tensor *out[3] = { NULL, NULL, NULL };
    CHECK(eg_function_call(s->f, in, 1, out, s->outputs));
    for (int k = 0; k < 3; k++) s->values[k] = out[k] ? eg_item(eg_reduce_sum(out[k])) : -1;
    s->dtype = out[1] ? (int)eg_dtype_of(out[1]) : -1;
    return in[0];
}
enum { PLAIN, PAUSED, PRECISE, OF_FLOAT64, TRAINED, TRAPPED, MASKED, WATCHED, OF_THREE, STATES };
static void states_run(states *s, eg_layer *layer, eg_tensor *x, int state) {
    EG_SCOPE;
    const eg_precision precision = eg_matmul_precision(state == PRECISE ? EG_PRECISION_TF32 : EG_PRECISION_FLOAT32);
    const eg_dtype dtype = eg_set_default_float(state == OF_FLOAT64 ? EG_FLOAT64 : EG_FLOAT32);
    const bool trap = eg_trap_nonfinite(state == TRAPPED);
    eg_tape *tape = state == WATCHED ? eg_tape_begin() : NULL;
    if (tape) eg_tape_watch(tape, x);
    s->outputs = state == OF_THREE ? 3 : 2;
    if (state == MASKED) x = eg_with_mask(x, eg_greater(eg_ones(EG_FLOAT32, EG_SHAPE(2)), 0));
    if (state == PAUSED) eg_recording_pause();
    if (state == TRAINED) eg_call(layer, x, .training = true);
    else states_call(&x, s);
    if (state == PAUSED) eg_recording_unpause();
    eg_trap_nonfinite(trap);
    eg_set_default_float(dtype);
    eg_matmul_precision(precision);
}
TEST(the_state_of_the_thread_is_a_part_of_the_signature) {
    static const char *const news[] = { "", "the pause of recording: 0, then 1", "the precision of products: ",
                                        "the default float: ", "training: 0, then 1", "the NaN trap is on",
                                        "the number of inputs: 1, then 2", "the kind of outer tapes: ",
                                        "the number of outputs: 2, then 3" };
    states s, want;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(net_data(1, EG_SHAPE(2, 2)), "v");
    s.f = eg_function_new(states_body, &s, .no_recheck = true);
    eg_layer *layer = eg_layer_custom("states", states_call, &s);
    eg_tensor *x = net_data(2, EG_SHAPE(2, 2));
    for (int round = 0; round < 3; round++)
        for (int state = 0; state < STATES; state++) {
            if (state == TRAPPED && test_traps_later) continue;             // such a device runs the body instead
            const eg_function_info before = eg_function_counts(s.f);
            eg_run_functions_eagerly(true);
            states_run(&s, layer, x, state);
            eg_run_functions_eagerly(false);
            want = s;
            states_run(&s, layer, x, state);
            CHECK(s.dtype == want.dtype && !memcmp(s.values, want.values, sizeof s.values));
            CHECK(s.dtype == (state == OF_FLOAT64 ? EG_FLOAT64 : EG_FLOAT32));
            CHECK_NEAR(s.values[1], state == TRAINED ? 6 : 3, 0);
            const eg_function_info info = eg_function_counts(s.f);
            CHECK_INT(info.traces - before.traces, round == 0);
            CHECK_INT(info.replays - before.replays, round > 0);
            if (round == 0) CHECK_CONTAINS(info.explanation, news[state]);
        }
    eg_layer_release(layer);
    eg_function_release(s.f);
    eg_release(s.v);
}
// Of several traces the explanation takes the one that differs least, not the latest.
TEST(a_retrace_is_explained_by_the_nearest_trace) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(doubled, &s);
    for (int i = 0; i < 3; i++) {
        EG_SCOPE;
        eg_tensor *x = i == 1 ? eg_full(EG_FLOAT64, EG_SHAPE(3, 2), 1) : eg_full(EG_FLOAT32, EG_SHAPE(4), 1), *y;
        if (i == 2) eg_recording_pause();
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        if (i == 2) eg_recording_unpause();
    }
    CHECK_INT(eg_function_counts(f).traces, 3);
    CHECK_STR(eg_function_counts(f).explanation, "the pause of recording: 0, then 1");
    eg_function_release(f);
}
// An op under a condition of C's: the explanation names it and what stands in its place.
static bool odd_one_more(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *y = eg_square(in[0]);
    if (eg_size(in[0]) % 2) y = eg_mul(y, 3);
    out[0] = eg_add(y, eg_ones(EG_FLOAT32, EG_SHAPE(eg_size(in[0]))));
    return out[0] != NULL;
}
TEST(an_op_that_some_lengths_have_is_named) {
    for (int odd = 0; odd < 2; odd++) {
        eg_function *f = eg_function_new(odd_one_more, NULL);
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4 + odd)), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        x = eg_ones(EG_FLOAT32, EG_SHAPE(7 - odd));
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        const eg_function_info info = eg_function_counts(f);
        CHECK_CONTAINS(info.explanation, odd ? "where eg_ones at traced.c:" : "where eg_mul at traced.c:");
        CHECK_CONTAINS(info.explanation, odd ? " stands in place of eg_mul at traced.c:"
                                             : " stands in place of eg_ones at traced.c:");
        eg_function_release(f);
    }
}
TEST(a_frozen_number_is_found) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(doubled, &s);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    s.frozen = 1;
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE,
                "differs from its trace at line 0, eg_mul at traced.c:");
    CHECK(y == NULL);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_TENSOR(y, 0, 3, 6);
    s.frozen = 2;                                                   // it is found before the first replay
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE,
                ": a later call would use an old value; none has so far. What changes between calls must be");
    for (int i = 0; i < 6; i++) CHECK(eg_function_call(f, &x, 1, &y, 1));       // the first, a check, a replay, ...
    const int64_t replays = eg_function_counts(f).replays;
    CHECK(replays > 0);
    s.frozen = 3;
    while (eg_error() == EG_OK && eg_function_counts(f).replays < replays + 20) eg_function_call(f, &x, 1, &y, 1);
    CHECK_CONTAINS(eg_error_message(), ": calls since number ");
    CHECK_CONTAINS(eg_error_message(), ", when the two were equal, may have used an old value. What changes");
    eg_error_clear();
    eg_function_release(f);
}
static bool squared(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_square(in[0])) != NULL;
}
static bool goes_two_ways(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y = NULL;
    if (!eg_cond(eg_greater(eg_reduce_sum(in[0]), 0), doubled, squared, user, in, 1, &y, 1)) return false;
    return (out[0] = eg_keep(eg_exp(y))) != NULL;
}
// A check in which the body goes another way compares nothing: the call that the error names is the one before, when
// list and body were equal.
TEST(a_check_that_goes_another_way_does_not_count) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(goes_two_ways, &s);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *other = eg_constant(EG_SHAPE(2), -1, -2), *y;
    for (int i = 1; i <= 8; i++) {                                  // compared at calls 2, 3 and 5, next at the 9th
        if (i == 6) s.frozen = 1;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
    }
    CHECK(eg_function_call(f, &other, 1, &y, 1));
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, ": calls since number 5, when the two were equal");
    eg_function_release(f);
}
TEST(what_the_body_reads_in_c_is_an_error) {
    static const char *const names[] = { "eg_item: ", "eg_item_int: ", "eg_data: ", "eg_read_into: " };
    for (int i = 0; i < 4; i++) {
        net s;
        memset(&s, 0, sizeof s);
        s.item = i + 1;
        eg_function *f = eg_function_new(doubled, &s);
        eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y = x;
        for (int call = 0; call < 2; call++) {
            CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, call ? names[i] : "return it");
            CHECK(y == NULL);
        }
        eg_run_functions_eagerly(true);                     // for debugging it may
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 2, 4);
        eg_run_functions_eagerly(false);
        s.item = 0;
        for (int call = 0; call < 4; call++) CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_INT(eg_function_counts(f).replays, 1);
        s.item = i + 1;                                     // in a comparison, too
        CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, names[i]);
        eg_function_release(f);
    }
}
// A body that is traced or compared can ask whether it is: eg_executing_eagerly is false there.
static bool asks_whether_it_is_traced(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    s->runs++;
    s->item += eg_executing_eagerly();
    return (out[0] = eg_mul(in[0], 2)) != NULL;
}
TEST(a_body_knows_that_it_is_traced) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(asks_whether_it_is_traced, &s);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y;
    for (int i = 0; i < 6; i++) CHECK(eg_function_call(f, &x, 1, &y, 1) && eg_executing_eagerly());
    CHECK(s.runs == 4 && s.item == 0);
    eg_run_functions_eagerly(true);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    eg_run_functions_eagerly(false);
    CHECK(s.runs == 5 && s.item == 1);
    eg_function_release(f);
}
TEST(reasons) {
    net s;
    memset(&s, 0, sizeof s);
    s.item = 5;
    eg_function *f = eg_function_new(doubled, &s);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y;
    for (int i = 0; i < 4; i++) {
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 2, 4);
        CHECK_CONTAINS(eg_function_reason(f), i ? "eg_item reads a tensor in a function of a custom gradient, which"
                                                : "traced at a later call");
    }
    CHECK_CONTAINS(eg_function_reason(f), "with more than 8 inputs");
    CHECK_INT(s.runs, 4);
    eg_function_release(f);
    s.item = 0;
    f = eg_function_new(doubled, &s);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 2, 2);
    eg_tensor *number = eg_number(3);
    CHECK_ERROR(eg_function_call(f, &number, 1, &y, 1), EG_ERROR_ARGUMENT, "eg_scalar");
    eg_function_release(f);
}

// ---- variables, views, outputs

typedef struct pair { eg_tensor *v, *w; int what; } pair;
static bool moved(eg_tensor *const *in, eg_tensor **out, void *user) {
    pair *s = (pair *)user;
    eg_tensor *before = eg_read(s->v);
    eg_assign_add(s->v, in[0]);
    if (s->what & 1) eg_assign(s->w, s->v);
    if (s->what & 2) eg_assign(s->v, eg_mul(eg_transpose(s->w), 1));
    if (s->what & 4) eg_assign(s->w, 5);
    out[0] = eg_keep(eg_sub(s->v, before));
    out[1] = eg_keep(s->v);
    out[2] = eg_keep(in[0]);
    out[3] = eg_keep(eg_transpose(s->w));
    out[4] = NULL;
    return true;
}
TEST(variables_are_read_and_assigned) {
    for (int what = 0; what < 8; what++) {
        float values[2][12][4][4];
        for (int traced = 0; traced < 2; traced++) {
            EG_SCOPE;
            pair s = {eg_variable(net_data(0, EG_SHAPE(2, 2)), "v"), eg_variable(net_data(9, EG_SHAPE(2, 2)), "w"),
                      what};
            eg_function *f = eg_function_new(moved, &s);
            eg_run_functions_eagerly(!traced);
            eg_tensor *old = NULL;
            for (int i = 0; i < 12; i++) {
                eg_tensor *in = net_data(i, EG_SHAPE(2, 2)), *out[5];
                if (i == 6) old = eg_read(s.v);
                if (i == 8) eg_assign(s.v, 3);
                CHECK(eg_function_call(f, &in, 1, out, 5));
                CHECK(out[4] == NULL);
                for (int k = 0; k < 4; k++) eg_read_into(out[k], values[traced][i][k], 4);
                CHECK_SAME(out[2], in, 0);
            }
            eg_run_functions_eagerly(false);
            eg_read_into(old, values[traced][0][0], 4);
            eg_function_release(f);
            eg_release(s.v);
            eg_release(s.w);
        }
        CHECK(!memcmp(values[0], values[1], sizeof values[0]));
    }
}
static char shown[4000];
static void show(const char *text, void *user) {
    (void)user;
    if (text) strncat(shown, text, sizeof shown - strlen(shown) - 1);
}
TEST(printed) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(doubled, &s);
    CHECK_ERROR(eg_function_print(f), EG_ERROR_STATE, "call the function first");
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    eg_set_printer(show, NULL);
    CHECK(eg_function_print(f));
    eg_set_printer(NULL, NULL);
    CHECK(strstr(shown, "1 line, 0 bytes of temporaries and workspace\n   0  mul ") &&
          strstr(shown, "new 1[2] <- in 0[2] 2\n"));
    eg_function *same = eg_function_retain(f);
    eg_function_release(same);
    eg_function_release(f);
    CHECK_TENSOR(y, 0, 2, 4);
}

// The updates of all variables are one step of a replay, of float32 and of float64, of few elements and of many.
enum { UPDATED = 21 };
typedef struct updated { eg_tensor *v[UPDATED]; eg_optimizer *optimizer; } updated;
static bool updating_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    updated *s = (updated *)user;
    eg_tensor *grads[UPDATED], *loss = eg_scalar(0);
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < UPDATED; i++)
        loss = eg_add(loss, eg_cast(eg_reduce_sum(eg_square(eg_sub(s->v[i], eg_cast(in[0], eg_dtype_of(s->v[i]))))),
                                    EG_FLOAT32));
    if (!eg_tape_gradients(tape, loss, s->v, UPDATED, grads) ||
        !eg_apply_gradients(s->optimizer, grads, s->v, UPDATED)) return false;
    out[0] = eg_keep(loss);
    return true;
}
TEST(updates_of_all_variables_are_one_step) {
    updated s[2];
    eg_function *f = eg_function_new(updating_body, &s[1]);
    for (int k = 0; k < 2; k++) {
        s[k].optimizer = eg_adam(.learning_rate = 0.01, .weight_decay = 0.1);
        for (int i = 0; i < UPDATED; i++)
            s[k].v[i] = eg_variable(eg_cast(net_data(i, EG_SHAPE(i == 3 ? 70000 : 1 + 7 * i)),
                                            i % 5 == 4 ? EG_FLOAT64 : EG_FLOAT32), "v");
    }
    for (int call = 0; call < 8; call++) {
        EG_SCOPE;
        eg_tensor *x = eg_scalar(0.1 * call), *got, *want = NULL;
        CHECK(eg_function_call(f, &x, 1, &got, 1) && updating_body(&x, &want, &s[0]));
        CHECK_SAME(got, want, 0);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    for (int i = 0; i < UPDATED; i++) CHECK_SAME(s[1].v[i], s[0].v[i], 0);
    static char dot[100000];
    CHECK(eg_function_dot(f, dot, sizeof dot) < (int64_t)sizeof dot);
    const char *steps = strstr(dot, "cluster_steps"), *one = steps ? strstr(steps, "label=\"adam + adam + ") : NULL;
    CHECK(steps && (!test_on_host || (one && !strstr(one + 1, "label=\"adam"))));
    eg_function_release(f);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < UPDATED; i++) eg_release(s[k].v[i]);
        eg_optimizer_release(s[k].optimizer);
    }
}

// A layer: 2 * 4 * 6 * 5 operations of the product, and 4 * 6 of the bias, which is joined to it on the host; tanh; and
// a variable with a name that a graph must escape, which each call changes.
typedef struct layer { eg_tensor *w, *b, *count; } layer;
static bool layer_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    layer *s = (layer *)user;
    out[0] = eg_keep(eg_tanh(eg_add(eg_matmul(in[0], s->w), s->b)));
    eg_assign_add(s->count, 1);
    return true;
}
static bool reads_on_the_host(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y = in[0];
    (void)user;
    reads_as_asked(y, 5);
    out[0] = eg_keep(eg_mul(y, 1));
    return true;
}
// Whether quoted texts in a drawing have only what DOT knows: an escape is \", \\ or \n, and no control character
// stands in them; each ends on its line.
static bool dot_quotes_well(const char *p) {
    bool inside = false;
    for (; *p; p++)
        if (!inside) inside = *p == '"';
        else if (*p == '\\') { if (!strchr("\"\\n", *++p) || !*p) return false; }
        else if ((unsigned char)*p < 32 || *p == 127) return false;
        else inside = *p != '"';
    return !inside;
}
TEST(a_function_is_drawn_measured_and_trimmed) {
    EG_SCOPE;
    static char dot[8000], small[20];
    layer s = {eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(5, 6)), "w \"5\\6\""),
               eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(6)), "b\tof\nlayer\x1b\x7f"),
               eg_variable(eg_scalar(0), "count")};
    eg_function *f = eg_function_new(layer_body, &s), *eager = eg_function_new(reads_on_the_host, NULL);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 5)), *y;
    CHECK_ERROR(eg_function_dot(f, dot, sizeof dot) > 0, EG_ERROR_STATE, "call the function first");
    shown[0] = 0;
    eg_set_printer(show, NULL);
    CHECK(eg_function_cost(f, &x, 1, 1, 20));
    eg_set_printer(NULL, NULL);
    CHECK(strstr(shown, "20 replays; ") == shown && strstr(shown, "matmul"));
    // (4 * 5 + 5 * 6 + 4 * 6) * 4 bytes, and the bias's 6 * 4
    CHECK(strstr(shown, test_on_host ? "           264            320 " : "           240            296 "));
    CHECK(strstr(shown, "  all  ") && strstr(shown, "100.0%\n"));
    const eg_function_info info = eg_function_counts(f);
    CHECK_INT(info.replays, 20);
    CHECK_NEAR(eg_item(s.count), (double)info.calls, 0);
    CHECK(eg_function_trim(f) >= info.bytes && eg_function_trim(f) == 0);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_NEAR(eg_item(eg_reduce_max(y)), 0.99998771, 1e-6);

    int64_t length = eg_function_dot(f, dot, sizeof dot);
    CHECK_INT(length, (int64_t)strlen(dot));
    CHECK_INT(eg_function_dot(f, small, sizeof small), length);
    CHECK(!strncmp(dot, small, sizeof small - 1) && strlen(small) == sizeof small - 1);
    CHECK(strstr(dot, "digraph function {\n") == dot && !strcmp(dot + length - 2, "}\n"));
    CHECK(strstr(dot, "label=\"w \\\"5\\\\6\\\"[5, 6]\"]"));
    CHECK(strstr(dot, "label=\"b of\\nlayer  [6]\"]") && dot_quotes_well(dot));
    CHECK(strstr(dot, "subgraph cluster_lines") && strstr(dot, "subgraph cluster_steps"));
    CHECK(strstr(dot, "l4 -> lv4;\n    lv4 [shape=ellipse, style=filled, fillcolor=\"#dbe9f6\", label=\"count\"];\n"));
    CHECK(strstr(dot, "lp0 -> l0;\n") && strstr(dot, "l1 -> l2;\n") && strstr(dot, "l2 -> lo0;\n"));

    CHECK_ERROR(eg_function_cost(f, &x, 1, 1, 0), EG_ERROR_ARGUMENT, "0 calls");
    CHECK_ERROR(eg_function_cost(NULL, &x, 1, 1, 1), EG_ERROR_NULL, "function_cost");
    CHECK_ERROR(eg_function_cost(eager, &x, 1, 1, 2), EG_ERROR_STATE, "0 of 2 calls were replays: ");
    CHECK_ERROR(eg_function_trim(NULL), EG_ERROR_NULL, "function_trim");
    eg_function_release(f);
    eg_function_release(eager);
    eg_release(s.w);
    eg_release(s.b);
    eg_release(s.count);
}

// A product with a small constant, which is written into the arena once, between temporaries of many rows.
static bool several_temporaries(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *two = eg_full(EG_FLOAT32, EG_SHAPE(3, 3), 2);
    out[0] = eg_keep(eg_reduce_sum(eg_matmul(eg_sin(eg_matmul(eg_sort(in[0]), two)), two), .axes = EG_AXES(0)));
    return true;
}
TEST(the_traces_of_a_function_share_the_largest_memory) {
    EG_SCOPE;
    const int rows[] = {40, 400, 90, 7};
    eg_function *f = eg_function_new(several_temporaries, NULL);
    int64_t largest = 0;
    for (int call = 0; call < 48; call++) {
        eg_tensor *x = net_data(call, EG_SHAPE(rows[(call * call + call / 7) % 4], 3)), *y, *z = NULL;
        CHECK(eg_function_call(f, &x, 1, &y, 1) && several_temporaries(&x, &z, NULL));
        CHECK_INT(memcmp(eg_data(y), eg_data(z), 12), 0);
        largest = eg_function_counts(f).bytes > largest ? eg_function_counts(f).bytes : largest;
    }
    CHECK_INT(eg_function_counts(f).traces + eg_function_counts(f).derived, 4);
    CHECK(largest > 2 * 400 * 12);
    const int64_t bytes = eg_function_trim(f);
    CHECK(bytes >= largest && bytes < largest + largest / 4);
    eg_function_release(f);
}
// Twenty temporaries of 1 MB, of which eager code needs three at once.
static bool long_chain(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *x = eg_retain(in[0]);
    for (int i = 0; i < 20; i++) {
        EG_SCOPE;
        eg_tensor *next = eg_keep(eg_sort(eg_sin(eg_matmul(x, x))));
        eg_release(x);
        x = eg_retain(next);
    }
    out[0] = eg_keep(eg_reduce_sum(x));
    eg_release(x);
    return true;
}
TEST(a_body_that_is_traced_needs_no_more_memory_than_an_eager_one) {
    if (!test_on_host) SKIP("the device has an allocator of its own");
    EG_SCOPE;
    eg_function *f = eg_function_new(long_chain, NULL);
    eg_tensor *x = net_data(1, EG_SHAPE(512, 512)), *y;
    int64_t peak[11];
    for (int call = 0; call < 11; call++) {
        EG_SCOPE;
        const int64_t before = call ? eg_memory().live_bytes : 0;
        eg_run_functions_eagerly(call == 0);
        eg_memory_reset_peak();
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        peak[call] = eg_memory().peak_bytes - before;
        if (call == 0) peak[0] -= eg_memory().live_bytes;
    }
    eg_run_functions_eagerly(false);
    CHECK_INT(eg_function_counts(f).rechecks, 4);
    for (int call = 1; call < 11; call++) CHECK(peak[call] < peak[0] + (3 << 20));
    eg_function_release(f);
}

// ---- what a body may do, eager and traced alike

typedef struct things {
    eg_tensor *v, *captured;
    eg_function *inner;
    eg_metric *metric;
    eg_optimizer *optimizer;
    float *lent;
    int fail, runs, n;
} things;
static bool doubled_things(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_mul(in[0], 2));
    return true;
}
static bool holding_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    s->kept = eg_retain(eg_mul(in[0], 2));
    out[0] = eg_keep(eg_add(s->kept, 1));
    return true;
}
static bool without_any(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    (void)out;
    (void)user;
    eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(3)), 1);
    return true;
}
static void replace_captured(things *s, int i) {
    EG_SCOPE;                                               // so that s alone holds the tensor
    if (i != 6) return;
    eg_release(s->captured);
    s->captured = eg_retain(net_data(s->captured ? 8 : 4, EG_SHAPE(3)));
}
// Runs n calls of body on inputs of one shape, eager and traced, and compares outputs, the variable and random numbers
// bit by bit. `before` is called before call i.
static int64_t things_compare(eg_function_body *body, void (*before)(things *s, int i), int n, eg_shape shape) {
    static float values[2][40][2][24];
    int64_t replays = 0;
    memset(values, 0, sizeof values);
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        float lent[3] = {1, 2, 3};
        things s;
        memset(&s, 0, sizeof s);
        eg_seed(5);
        s.v = eg_variable(net_data(0, EG_SHAPE(3)), "v");
        replace_captured(&s, 6);
        s.lent = lent;
        s.inner = eg_function_new(doubled_things, &s);
        s.metric = eg_metric_mean_squared_error();
        eg_function *f = eg_function_new(body, &s);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < n; i++) {
            EG_SCOPE;
            eg_tensor *in = net_data(i, shape), *out[2] = {NULL, NULL};
            if (before) before(&s, i);
            CHECK(eg_function_call(f, &in, 1, out, 2));
            for (int k = 0; k < 2; k++) if (out[k]) eg_read_into(out[k], values[traced][i][k], eg_size(out[k]));
        }
        eg_run_functions_eagerly(false);
        if (traced) {
            replays = eg_function_counts(f).replays;
            if (eg_function_reason(f)) printf("    eager: %s\n", eg_function_reason(f));
        }
        eg_read_into(s.v, values[traced][39][0], 3);
        values[traced][39][1][0] = (float)eg_item(eg_random_uniform(EG_SHAPE(1)));
        values[traced][39][1][1] = (float)eg_metric_result(s.metric);
        eg_function_release(f);
        eg_function_release(s.inner);
        eg_metric_release(s.metric);
        eg_release(s.v);
        eg_release(s.captured);
    }
    CHECK(!memcmp(values[0], values[1], sizeof values[0]));
    return replays;
}
static eg_tensor *cube_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    return eg_mul(in[0], eg_square(in[0]));
}
static void cube_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_mul(3, eg_square(c->saved[0])));
}
static bool custom_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *x[1] = {eg_mul(s->v, in[0])}, *y = eg_custom_gradient(cube_forward, cube_backward, NULL, x, 1);
    eg_tensor *g = eg_tape_gradient(tape, y, s->v);
    out[0] = eg_keep(eg_tape_gradient(outer, eg_reduce_sum(eg_square(g)), s->v));
    out[1] = eg_keep(g);
    return out[0] && out[1];
}
TEST(custom_gradients_replay_to_second_order) { CHECK(things_compare(custom_body, NULL, 12, EG_SHAPE(3)) >= 6); }
static bool nested_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    eg_tensor *y;
    if (!eg_function_call(s->inner, in, 1, &y, 1)) return false;
    out[0] = eg_keep(eg_add(y, s->v));
    return true;
}
TEST(a_function_in_a_function_is_a_part_of_it) { CHECK(things_compare(nested_body, NULL, 12, EG_SHAPE(3)) >= 6); }
static bool lent_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_keep(eg_add(in[0], ((things *)user)->captured));
    return true;
}
static void lend(things *s, int i) {
    if (i == 0) {
        eg_release(s->captured);
        s->captured = eg_retain(eg_wrap_data(EG_FLOAT32, EG_SHAPE(3), s->lent, NULL, NULL));
    }
    if (i == 5) s->lent[1] = 20;
}
TEST(lent_memory_is_read_at_each_replay) {
    if (!test_on_host) return;
    CHECK(things_compare(lent_body, lend, 12, EG_SHAPE(3)) >= 6);
}
TEST(a_captured_tensor_that_was_replaced_is_noticed) {
    CHECK(things_compare(lent_body, replace_captured, 16, EG_SHAPE(3)) >= 6);
}
// Each call's first number, of a function called on zeros.
static double called_on_zeros(eg_function *f, int64_t n) {
    EG_SCOPE;
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(n)), *y;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    return y ? eg_item(eg_index(y, 0)) : -1;
}
static eg_tensor *filled(double value, bool variable) {
    EG_SCOPE;
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1), value);
    return variable ? eg_variable(x, "filled") : eg_retain(x);
}
// Neither an output nor a variable of the body's holds what the body captured: its owner's release is noticed.
static bool sharing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const things *s = (const things *)user;
    eg_tensor *c = s->captured;
    if (s->n == 4) eg_assign(s->v, c);
    out[0] = s->n == 1 ? eg_reshape(c, EG_SHAPE(1, 1)) : s->n == 2 ? eg_keep(c) : c;
    if (s->n == 3) eg_keep(eg_keep(c));
    eg_keep(out[0]);
    out[1] = eg_keep(s->n == 4 ? eg_add(s->v, in[0]) : in[0]);
    return true;
}
TEST(what_shares_a_captured_tensor_does_not_own_it) {
    for (int kind = 0; kind < 5; kind++)
        for (int taped = 0; taped < 2; taped++)
            for (int kept = 1; kept < 9; kept++) {          // the call whose output somebody keeps
                EG_SCOPE;
                things s;
                memset(&s, 0, sizeof s);
                s.n = kind;
                s.v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(1)), "v");
                s.captured = filled(1, false);
                eg_function *f = eg_function_new(sharing_body, &s, .no_recheck = kept % 2);
                eg_tensor *held = NULL;
                for (int i = 1; i <= 10; i++) {
                    EG_SCOPE;
                    if (i == 8) { eg_release(s.captured); s.captured = filled(5, false); }
                    eg_tensor *x = filled(2, false), *y[2] = { NULL, NULL };
                    eg_tape *tape = taped ? eg_tape_begin() : NULL;
                    if (taped) eg_tape_watch(tape, s.captured);
                    CHECK(eg_function_call(f, &x, 1, y, 2));
                    CHECK_NEAR(eg_item(eg_reduce_max(y[0])), i < 8 ? 1 : 5, 0);
                    if (kind == 4) CHECK_NEAR(eg_item(eg_reduce_max(y[1])), i < 8 ? 3 : 7, 0);
                    if (taped) CHECK(eg_tape_gradient(tape, y[0], s.captured) != NULL);
                    if (i == kept) held = eg_retain(y[0]);
                    eg_release(x);
                }
                CHECK(eg_function_counts(f).replays >= 2);
                eg_release(held);
                eg_function_release(f);
                eg_release(s.captured);
                eg_release(s.v);
            }
}
// The same where the body makes it the mask of an output: as it is, as a view, and of an output that is captured, too.
static bool masking_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const things *s = (const things *)user;
    eg_tensor *c = s->captured;
    eg_tensor *mask = s->n == 1 ? eg_slice(c, EG_SHAPE(0), EG_SHAPE(2)) : c;
    out[0] = eg_keep(eg_with_mask(s->n == 2 ? c : s->n == 3 ? in[0] : eg_mul(in[0], 2), mask));
    out[1] = eg_keep(s->n == 4 ? out[0] : eg_with_mask(out[0], mask));
    return true;
}
TEST(the_mask_of_an_output_does_not_own_what_it_shares) {
    for (int kind = 0; kind < 5; kind++)
        for (int taped = 0; taped < 2; taped++)
            for (int kept = 1; kept < 9; kept++) {
                EG_SCOPE;
                things s;
                memset(&s, 0, sizeof s);
                s.n = kind;
                eg_function *f = eg_function_new(masking_body, &s, .no_recheck = kept % 2);
                eg_tensor *held = NULL;
                for (int i = 1; i <= 10; i++) {
                    EG_SCOPE;
                    if (i == 8) eg_release(s.captured);
                    if (i == 1 || i == 8) s.captured = eg_retain(eg_constant_of(EG_BOOL, EG_SHAPE(2), i == 8, 1));
                    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y[2] = { NULL, NULL };
                    eg_tape *tape = taped ? eg_tape_begin() : NULL;
                    if (taped) eg_tape_watch(tape, x);
                    CHECK(eg_function_call(f, &x, 1, y, 2));
                    for (int k = 0; k < 2; k++) {
                        CHECK(eg_mask_of(y[k]));
                        CHECK_INT(eg_item_int(eg_index(eg_mask_of(y[k]), 0)), i >= 8);
                    }
                    if (i == kept) held = eg_retain(y[0]);
                }
                CHECK(eg_function_counts(f).replays >= 2);
                eg_release(held);
                eg_function_release(f);
                eg_release(s.captured);
            }
}
// A mask that is a variable: each output keeps the values of its call, whatever is assigned later.
static bool masked_by_variable_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const things *s = (const things *)user;
    eg_tensor *y = eg_with_mask(s->n == 1 ? in[0] : eg_mul(in[0], 2), s->v);
    if (s->n == 2) eg_assign(s->v, eg_logical_not(s->v));
    out[0] = eg_keep(y);
    out[1] = eg_keep(s->n == 3 ? eg_mask_of(y) : y);
    return true;
}
TEST(a_mask_that_is_a_variable_is_its_value) {
    for (int kind = 0; kind < 4; kind++)
        for (int taped = 0; taped < 2; taped++) {
            EG_SCOPE;
            things s;
            memset(&s, 0, sizeof s);
            s.n = kind;
            s.v = eg_variable(eg_constant_of(EG_BOOL, EG_SHAPE(2), 1, 0), "mask");
            eg_function *f = eg_function_new(masked_by_variable_body, &s);
            eg_tensor *held[20] = { NULL };
            int first[20];
            for (int i = 0; i < 20; i++) {
                EG_SCOPE;
                eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y[2] = { NULL, NULL };
                if (i % 3 == 1) eg_assign(s.v, eg_constant_of(EG_BOOL, EG_SHAPE(2), i % 2, 1));
                eg_tape *tape = taped ? eg_tape_begin() : NULL;
                if (taped) eg_tape_watch(tape, x);
                first[i] = (int)eg_item_int(eg_index(s.v, 0));
                REQUIRE(eg_function_call(f, &x, 1, y, 2) && eg_mask_of(y[0]));
                CHECK(eg_mask_of(y[0]) != s.v);
                held[i] = eg_retain(y[0]);
            }
            eg_assign(s.v, eg_zeros(EG_BOOL, EG_SHAPE(2)));
            for (int i = 0; i < 20; i++) {
                CHECK_INT(eg_item_int(eg_index(eg_mask_of(held[i]), 0)), first[i]);
                eg_release(held[i]);
            }
            CHECK(eg_function_counts(f).replays >= 2);
            eg_function_release(f);
            eg_release(s.v);
        }
}
// Several traces hold what the body captured: those of two signatures, and those of another function.
TEST(what_was_replaced_is_noticed_beside_other_traces) {
    for (int variable = 0; variable < 2; variable++) {
        things s;
        memset(&s, 0, sizeof s);
        s.captured = filled(1, variable);
        eg_function *f = eg_function_new(lent_body, &s), *g = eg_function_new(lent_body, &s);
        for (int i = 0; i < 6; i++) {
            CHECK_NEAR(called_on_zeros(f, 3), 1, 0);
            CHECK_NEAR(called_on_zeros(f, 4), 1, 0);
            CHECK_NEAR(called_on_zeros(g, 3), 1, 0);
        }
        CHECK_INT(eg_function_counts(f).replays, 4);
        eg_release(s.captured);
        s.captured = filled(7, variable);
        CHECK_NEAR(called_on_zeros(f, 3), 7, 0);
        CHECK_NEAR(called_on_zeros(f, 4), 7, 0);
        CHECK_NEAR(called_on_zeros(g, 3), 7, 0);
        CHECK(strstr(eg_function_counts(f).explanation, "released by its owner"));
        CHECK_INT(eg_function_counts(f).retraces, 3);
        CHECK_INT(eg_function_counts(f).replays, 4);
        eg_function_release(f);
        CHECK_NEAR(called_on_zeros(g, 3), 7, 0);
        eg_function_release(g);
        eg_release(s.captured);
    }
}
// A setter between the calls, too: the call that notices traces again, and says why.
TEST(what_was_replaced_is_noticed_beside_a_setter) {
    things s;
    memset(&s, 0, sizeof s);
    s.captured = filled(1, false);
    eg_tensor *other = filled(1, true);
    eg_function *f = eg_function_new(lent_body, &s);
    for (int i = 0; i < 6; i++) CHECK_NEAR(called_on_zeros(f, 3), 1, 0);
    eg_set_trainable(other, false);
    eg_release(s.captured);
    s.captured = filled(7, false);
    CHECK_NEAR(called_on_zeros(f, 3), 7, 0);
    CHECK(eg_function_reason(f) == NULL);
    CHECK_CONTAINS(eg_function_counts(f).explanation, "released by its owner");
    CHECK_INT(eg_function_counts(f).traces, 2);
    eg_function_release(f);
    eg_release(s.captured);
    eg_release(other);
}
// What setters set, a body may ask for on the host, also of variables and models that it does not use otherwise: the
// first call behind a setter runs the body, and a difference is a counted retrace.
typedef struct asked { eg_tensor *v; eg_layer *model, *layer; bool compiled; } asked;
static bool asking_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const asked *s = (const asked *)user;
    const bool metric = s->compiled && eg_model_metric(s->model, 0);
    const int number = eg_trainable(s->v) + 2 * eg_layer_trainable(s->layer) + 4 * metric +
                       8 * eg_layer_layers(s->model, NULL, 0);
    out[0] = eg_keep(eg_mul(in[0], number));
    return true;
}
TEST(setters_that_a_body_asks_for) {
    asked s = { filled(1, true), eg_sequential(eg_layer_flatten()), eg_layer_dense(2), false };
    eg_function *f = eg_function_new(asking_body, &s);
    double want = 11;
    for (int i = 0; i < 30; i++) {
        EG_SCOPE;
        if (i == 6) { eg_set_trainable(s.v, false); want -= 1; }
        if (i == 11) { eg_layer_set_trainable(s.layer, false); want -= 2; }
        if (i == 14) s.compiled = eg_compile(s.model, eg_sgd(), eg_mean_squared_error, EG_METRIC_ACCURACY);
        if (i == 14) want += 4;
        if (i == 19) { eg_compile(s.model, eg_sgd(), eg_mean_squared_error); want -= 4; }
        if (i == 23) { eg_layer_add(s.model, eg_layer_flatten()); want += 8; }
        if (i == 24) { eg_set_trainable(s.v, true); want += 1; }
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1)), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(y), want, 0);
    }
    CHECK_INT(eg_function_counts(f).retraces, 6);
    eg_function_release(f);
    eg_release(s.v);
    eg_layer_release(s.model);
    eg_layer_release(s.layer);
}
// Those of a signature whose ways are several: each of them is stale, not only the one that the call looks at.
static bool sine_of(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_sin(in[0]));
    return true;
}
static bool cosine_of(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_cos(in[0]));
    return true;
}
static bool ways_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const things *s = (const things *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *a = eg_add(in[0], s->v), *y;
    if (!eg_cond(eg_greater(eg_reduce_sum(a), 0), sine_of, cosine_of, NULL, &a, 1, &y, 1)) return false;
    eg_tensor *g = eg_tape_gradient(tape, y, s->v);
    out[0] = eg_keep(eg_add(y, g ? g : eg_zeros(EG_FLOAT32, EG_SHAPE(1))));
    return true;
}
TEST(what_was_replaced_or_set_is_noticed_in_all_ways) {
    for (int pattern = 0; pattern < 256; pattern++)
        for (int set = 0; set < 2; set++) {
            things s;
            memset(&s, 0, sizeof s);
            s.v = filled(1, true);
            eg_function *f = eg_function_new(ways_body, &s);
            for (int i = 0; i < 12; i++) {
                EG_SCOPE;
                if (i == 6 && set) eg_set_trainable(s.v, false);
                if (i == 6 && !set) { eg_release(s.v); s.v = filled(2, true); }
                eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1), pattern >> i % 8 & 1 ? -9 : 9), *y, *want;
                CHECK(eg_function_call(f, &x, 1, &y, 1));
                eg_run_functions_eagerly(true);
                CHECK(eg_function_call(f, &x, 1, &want, 1));
                eg_run_functions_eagerly(false);
                CHECK_SAME(y, want, 0);
            }
            eg_function_release(f);
            eg_release(s.v);
        }
}
// An update writes in place or not, as others hold the variable's values or not: lists are compared as if nobody did.
static bool step_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const things *s = (const things *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_reduce_mean(eg_square(eg_mul(in[0], s->v)));
    out[0] = eg_keep(y);
    return eg_tape_minimize(tape, y, EG_LIST(s->v), s->optimizer);
}
TEST(who_holds_a_variable_is_no_difference) {
    for (int pattern = 0; pattern < 64; pattern++) {
        things s;
        memset(&s, 0, sizeof s);
        s.v = filled(1, true);
        s.optimizer = eg_sgd(.learning_rate = 0.01);
        eg_function *f = eg_function_new(step_body, &s);
        for (int i = 0; i < 12; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
            (void)eg_tape_begin();
            if (pattern >> i % 6 & 1) (void)eg_square(s.v);
            EG_NO_RECORDING;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
        }
        CHECK_INT(eg_function_counts(f).traces, 1);
        CHECK(eg_function_counts(f).replays >= 6);
        eg_function_release(f);
        eg_release(s.v);
        eg_optimizer_release(s.optimizer);
    }
}
// What the host has read of a variable is not what an update leaves there: reads between replays, and one in a replay.
static bool sum_read_in_c(eg_tensor *const *in, eg_tensor **out, void *user) {
    const float *v = (const float *)eg_data(((const things *)user)->v);
    (void)in;
    out[0] = eg_keep(eg_scalar(v ? v[0] : -1));
    return v != NULL;
}
static bool step_and_read_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    return eg_host_call(sum_read_in_c, s, NULL, 0, &out[1], 1) && step_body(in, out, s) &&
           eg_host_call(sum_read_in_c, s, NULL, 0, &out[2], 1) && eg_keep(out[1]) && eg_keep(out[2]);
}
// The update writes the memory that the assignment made the variable's.
static bool assign_step_and_read_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_assign_add(((const things *)user)->v, 1) && step_and_read_body(in, out, user);
}
static void check_reads_of_a_variable(eg_function_body *body) {
    float seen[2][12][4];
    for (int traced = 0; traced < 2; traced++) {
        things s;
        memset(&s, 0, sizeof s);
        s.v = filled(1, true);
        s.optimizer = eg_sgd(.learning_rate = 0.1, .momentum = 0.9);
        eg_function *f = eg_function_new(body, &s);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 12; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y[3];
            CHECK(eg_function_call(f, &x, 1, y, 3));
            const float *v = (const float *)eg_data(s.v),
                        *slot = (const float *)eg_data(eg_optimizer_state_list(s.optimizer).tensors[1]);
            seen[traced][i][0] = v ? v[0] : -1;
            seen[traced][i][1] = slot ? slot[0] : -1;
            for (int k = 1; k < 3; k++) seen[traced][i][k + 1] = y[k] ? (float)eg_item(y[k]) : -1;
        }
        eg_run_functions_eagerly(false);
        if (traced) CHECK(eg_function_counts(f).replays >= 6);
        eg_function_release(f);
        eg_release(s.v);
        eg_optimizer_release(s.optimizer);
    }
    CHECK(!memcmp(seen[0], seen[1], sizeof seen[0]));
}
TEST(a_variable_that_was_read_shows_later_updates) {
    check_reads_of_a_variable(step_and_read_body);
    check_reads_of_a_variable(assign_step_and_read_body);
}
// A setter on a layer that nobody has called: the body reads what it holds, whether it is trainable, whether there is
// one in it.
typedef struct uncalled { eg_layer *root, *gate, *head; } uncalled;
static eg_tensor *unchanged(eg_tensor *const *x, void *user) { (void)user; return x[0]; }
static bool uncalled_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const uncalled *s = (const uncalled *)user;
    eg_list weights = eg_layer_trainable_weights_list(s->root);
    eg_tensor *y = in[0];
    for (int i = 0; i < weights.count; i++) y = eg_add(y, eg_reduce_sum(eg_square(weights.tensors[i])));
    if (eg_layer_trainable(s->gate)) y = eg_mul(y, 2);
    if (eg_layer_layers(s->head, NULL, 0) > 0) y = eg_call(s->head, y);
    return (out[0] = eg_keep(y)) != NULL;
}
TEST(a_setter_on_a_layer_that_was_not_called_is_a_retrace) {
    float seen[2][18];
    for (int traced = 0; traced < 2; traced++) {
        uncalled s = { eg_layer_custom("root", unchanged, NULL), eg_layer_dense(3), eg_sequential_of(NULL, 0) };
        eg_layer *part[2] = { eg_layer_custom("a", unchanged, NULL), eg_layer_custom("b", unchanged, NULL) };
        for (int k = 0; k < 2; k++) eg_layer_weight(part[k], "w", eg_ones(EG_FLOAT32, EG_SHAPE(2 + k)), true);
        eg_layer_track(s.root, "a", part[0]);
        eg_function *f = eg_function_new(uncalled_body, &s);
        eg_run_functions_eagerly(!traced);
        for (int call = 1; call <= 18; call++) {
            EG_SCOPE;
            if (call == 6) eg_layer_track(s.root, "b", part[1]);
            if (call == 10) eg_layer_set_trainable(s.gate, false);
            if (call == 14) eg_layer_add(s.head, eg_layer_activation(EG_RELU));
            eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1), call < 16 ? call : -100), *y = NULL;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            seen[traced][call - 1] = y ? (float)eg_item(y) : -1;
        }
        eg_run_functions_eagerly(false);
        eg_function_release(f);
        eg_layer_release(s.root);
        eg_layer_release(s.gate);
        eg_layer_release(s.head);
    }
    CHECK(!memcmp(seen[0], seen[1], sizeof seen[0]));
    CHECK_NEAR(seen[0][17], 0, 0);
}
// The first call of an optimizer that replaced another makes its slots.
TEST(an_optimizer_that_was_replaced_makes_its_slots) {
    things s;
    memset(&s, 0, sizeof s);
    s.v = filled(1, true);
    s.optimizer = eg_adam();
    eg_function *f = eg_function_new(step_body, &s);
    for (int i = 0; i < 24; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
        if (i % 8 == 7) {
            eg_optimizer_release(s.optimizer);
            s.optimizer = i == 7 ? eg_rmsprop() : eg_adam();
        }
        CHECK(eg_function_call(f, &x, 1, &y, 1));
    }
    CHECK_INT(eg_function_counts(f).traces, 3);
    CHECK(eg_function_counts(f).replays >= 8);
    eg_function_release(f);
    eg_release(s.v);
    eg_optimizer_release(s.optimizer);
}
TEST(results_may_take_the_places_of_inputs) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(doubled, &s);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *list[3] = {x, x, NULL};
    for (int i = 0; i < 6; i++) CHECK(eg_function_call(f, &x, 1, &x, 1));
    CHECK_TENSOR(x, 0, 64, 64);
    CHECK_INT(eg_function_counts(f).replays, 2);
    CHECK(eg_function_call(f, list, 2, list + 1, 2));
    CHECK_TENSOR(list[1], 0, 2, 2);
    CHECK(list[2] == NULL);
    eg_function_release(f);
}
static bool trained_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_reduce_sum(eg_mul(eg_square(in[0]), s->v));
    out[0] = eg_keep(y);
    if ((out[1] = eg_tape_gradient(tape, y, s->v)) != NULL) eg_keep(out[1]);
    eg_error_clear();
    return true;
}
static void freeze(things *s, int i) {
    if (i == 5) eg_set_trainable(s->v, false);
    if (i == 11) eg_set_trainable(s->v, true);
}
TEST(a_variable_that_is_trained_no_longer_is_noticed) {
    eg_set_error_handler(NULL, NULL);
    CHECK(things_compare(trained_body, freeze, 20, EG_SHAPE(3)) >= 5);
}
static bool metric_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    out[0] = eg_keep(eg_add(in[0], s->v));
    return eg_metric_update(s->metric, out[0], in[0]);
}
TEST(metrics_are_updated_by_replays) { CHECK(things_compare(metric_body, NULL, 12, EG_SHAPE(3)) >= 6); }
static bool drawing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_keep(eg_add(in[0], eg_random_normal(EG_SHAPE(3))));
    out[1] = eg_keep(eg_cast(eg_random_integers(EG_SHAPE(4), 0, 100), EG_FLOAT32));
    eg_random_normal(EG_SHAPE(0));
    return true;
}
TEST(draws_go_on_where_eager_ones_would) { CHECK(things_compare(drawing_body, NULL, 12, EG_SHAPE(3)) >= 6); }
// Seeds in a body, between draws: the first by its number, the second goes back to where the call began.
static bool seeding_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *x = eg_random_uniform(EG_SHAPE(3));
    eg_assert_shape(x, EG_SHAPE(3));
    eg_seed(77);
    eg_random_normal(EG_SHAPE(5));
    out[0] = eg_keep(eg_add(in[0], eg_mul(x, eg_random_normal(EG_SHAPE(3)))));
    eg_assert_equal(x, x);
    out[1] = eg_keep(eg_random_normal(EG_SHAPE(4)));
    eg_random_set_state((eg_random_state){ 5, 12 });
    return eg_error() == EG_OK;
}
TEST(a_seed_in_a_body_is_a_line) {
    eg_trap_nonfinite(true);                                // whose lines stand between the draws
    CHECK(test_traps_later || things_compare(seeding_body, NULL, 12, EG_SHAPE(3)) >= 6);
    eg_trap_nonfinite(false);
    CHECK(things_compare(seeding_body, NULL, 12, EG_SHAPE(3)) >= 6);
}
// A custom gradient that computes in C: a replay calls its functions.
static int forward_runs, backward_runs;
static eg_tensor *in_c_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    float y[3];
    eg_read_into(in[0], y, 3);
    forward_runs++;
    for (int i = 0; i < 3; i++) y[i] *= y[i] * *(const float *)user;
    c->saved[0] = in[0];
    return eg_from_data(EG_FLOAT32, EG_SHAPE(3), y);
}
static void in_c_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    float x[3], g[3];
    eg_read_into(c->saved[0], x, 3);
    eg_read_into(c->upstream[0], g, 3);
    backward_runs++;
    for (int i = 0; i < 3; i++) g[i] *= 2 * x[i] * *(const float *)user;
    dx[0] = eg_from_data(EG_FLOAT32, EG_SHAPE(3), g);
}
static eg_tensor *in_ops_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    forward_runs++;
    c->saved[0] = in[0];
    return eg_mul(eg_square(in[0]), *(const float *)user);
}
static bool in_c_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = eg_mul(s->v, in[0]), *y = eg_custom_gradient(in_c_forward, in_c_backward, s->lent, &x, 1);
    y = eg_custom_gradient(in_c_forward, in_c_backward, s->lent + 1, &y, 1);
    if (!(out[1] = eg_keep(eg_tape_gradient(tape, y, s->v)))) return false;
    eg_assign_sub(s->v, eg_mul(out[1], 1e-3));
    out[0] = eg_keep(y);
    return true;
}
static bool half_in_c_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    eg_tensor *x = in[0];
    out[0] = eg_keep(eg_custom_gradient(in_ops_forward, in_c_backward, s->lent, &x, 1));
    return out[0] != NULL;
}
TEST(replays_call_a_custom_gradient_that_reads_in_c) {
    forward_runs = backward_runs = 0;
    CHECK(things_compare(in_c_body, NULL, 12, EG_SHAPE(3)) >= 5);
    CHECK_INT(forward_runs, 48);                            // two at each of 24 calls, 12 of which are eager
    CHECK_INT(backward_runs, 48);
}
// Under a tape around the call, the backward function alone reads: the forward one becomes a call, too.
TEST(replays_call_a_custom_gradient_under_a_tape) {
    things s;
    float factor = 3;
    memset(&s, 0, sizeof s);
    s.lent = &factor;
    eg_function *f = eg_function_new(half_in_c_body, &s);
    for (int i = 0; i < 12; i++) {
        EG_SCOPE;
        eg_tensor *x = net_data(i, EG_SHAPE(3)), *y = NULL;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_SAME(eg_tape_gradient(tape, y, x), eg_mul(eg_mul(eg_mul(x, 2), 3), eg_ones_like(x)), 1e-6);
        CHECK_SAME(y, eg_mul(eg_square(x), 3), 0);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK(eg_function_counts(f).replays > 4);
    eg_function_release(f);
}
// One that reads in C and assigns to a variable of the body: in its forward or backward function; from `late` on.
typedef struct { eg_tensor *count; int where, late, runs; } assigning;
static eg_tensor *assigning_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    assigning *s = (assigning *)user;
    c->saved[0] = in[0];
    const double sum = eg_item(eg_reduce_sum(in[0]));
    if (s->where == 0 && s->runs++ >= s->late) eg_assign_add(s->count, 1);
    return eg_mul(s->where == 2 ? eg_mul(in[0], s->count) : in[0], sum);
}
static void assigning_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    assigning *s = (assigning *)user;
    const double sum = eg_item(eg_reduce_sum(c->saved[0]));
    if (s->where == 1) eg_assign_add(s->count, 1);
    dx[0] = eg_mul(c->upstream[0], sum);
}
static bool assigning_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    assigning *s = (assigning *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = eg_mul(in[0], 3);
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_custom_gradient(assigning_forward, assigning_backward, s, &x, 1);
    if (!(out[1] = eg_keep(eg_tape_gradient(tape, y, x)))) return false;
    return (out[0] = eg_keep(eg_mul(y, s->count))) != NULL;
}
TEST(a_custom_gradient_that_reads_and_assigns_is_not_replayed) {
    for (int where = 0; where < 2; where++) {
        assigning s = { eg_variable(eg_scalar(0), "count"), where, 0, 0 };
        eg_set_trainable(s.count, false);
        eg_function *f = eg_function_new(assigning_body, &s);
        for (int i = 0; i < 8; i++) {
            EG_SCOPE;
            const float values[2] = { (float)i, 1 };
            eg_tensor *x = eg_from_data(EG_FLOAT32, EG_SHAPE(2), values), *out[2] = { NULL, NULL };
            CHECK(eg_function_call(f, &x, 1, out, 2));
            CHECK_SAME(out[0], eg_mul(eg_mul(x, 9.0 * (i + 1)), i + 1), 0);
            CHECK_SAME(out[1], eg_mul(eg_ones_like(x), 3.0 * (i + 1)), 0);
            CHECK_NEAR(eg_item(s.count), i + 1, 0);
        }
        CHECK_INT(eg_function_counts(f).replays, 0);
        CHECK_CONTAINS(eg_function_reason(f), "a function of a custom gradient reads a tensor in C and assigns");
        eg_function_release(f);
        eg_release(s.count);
    }
}
// What no trace has seen is an error of the replay, which names what the program called.
TEST(a_custom_gradient_that_assigns_later_is_an_error) {
    assigning s = { eg_variable(eg_scalar(1), "count"), 0, 6, 0 };
    eg_set_trainable(s.count, false);
    eg_function *f = eg_function_new(assigning_body, &s);
    for (int i = 0; i < 7; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *out[2];
        CHECK_INT(eg_function_call(f, &x, 1, out, 2), i < 6);
    }
    CHECK_CONTAINS(eg_error_message(), "eg_custom_gradient: the forward function assigned to variable count");
    eg_error_clear();
    eg_function_release(f);
    eg_release(s.count);
}
// A trainable variable that is no input is an error at each call, as it is eagerly: in an eg_host_call, too.
TEST(a_custom_gradient_in_c_that_uses_a_variable_is_an_error) {
    assigning s = { eg_variable(eg_scalar(1), "count"), 2, 0, 0 };
    eg_function *f = eg_function_new(assigning_body, &s);
    for (int i = 0; i < 8; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *out[2];
        CHECK(!eg_function_call(f, &x, 1, out, 2));
        CHECK_CONTAINS(eg_error_message(), "the forward function uses the variable count");
        eg_error_clear();
    }
    eg_function_release(f);
    eg_release(s.count);
}
static bool taped_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int what = *(int *)user;
    if (what == 2) {
        EG_SCOPE;
        eg_tape_begin();
    } else {
        eg_tape *tape = what == 1 ? eg_tape_begin() : eg_tape_begin_persistent();
        if (what == 3) eg_tape_stop(tape);
        if (what == 4) { eg_tape_watch(tape, in[0]); eg_tape_gradient(tape, eg_square(in[0]), in[0]); }
    }
    out[0] = eg_keep(eg_mul(in[0], 2));
    return true;
}
TEST(a_tape_that_is_left_open_is_an_error) {
    for (int what = 0; what < 5; what++) {
        eg_function *f = eg_function_new(taped_body, &what);
        eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y;
        for (int i = 0; i < 4; i++) {
            if (what > 1) CHECK(eg_function_call(f, &x, 1, &y, 1));
            else CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_TAPE, "has left a tape open that nobody");
        }
        CHECK_INT(eg_function_counts(f).replays, what > 1);
        eg_run_functions_eagerly(true);                     // the body's scope ends it
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        eg_run_functions_eagerly(false);
        eg_function_release(f);
    }
}

// ---- errors

static bool picking_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    things *s = (things *)user;
    s->runs++;
    if (s->fail) return s->fail == 1 ? false : eg_raise(EG_ERROR_ARGUMENT, "the body's own") != NULL;
    eg_assign_add(s->v, 1);
    out[0] = eg_keep(eg_gather(s->v, in[0]));
    return out[0] && eg_assign_add(s->v, 1);
}
// An error that a body leaves behind makes the call fail, although the body returns true.
static bool careless_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const things *s = (const things *)user;
    if (s->fail) (void)eg_add(in[0], eg_ones(EG_FLOAT32, EG_SHAPE(7)));
    if (s->fail == 2) eg_error_clear();
    out[0] = eg_keep(eg_mul(in[0], 2));
    return true;
}
TEST(an_error_that_a_body_overlooks_fails_the_call) {
    eg_set_error_handler(NULL, NULL);
    things s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(careless_body, &s);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y = x;
    for (int eager = 0; eager < 2; eager++) {
        eg_run_functions_eagerly(eager);
        s.fail = 1;
        CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_SHAPE, "eg_add: ");
        CHECK(y == NULL);
        s.fail = 2;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK(y != NULL);
    }
    eg_run_functions_eagerly(false);
    eg_function_release(f);
}
// A body that clears an error which came of values and goes on: a replay ends there, so that no call goes on.
static bool refusing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = in[0];
    return eg_item(in[0]) < 5 || eg_raise(EG_ERROR_ARGUMENT, "too much") != NULL;
}
static bool clearing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const things *s = (const things *)user;
    const bool trap = eg_trap_nonfinite(s->fail == 3);
    eg_tensor *y = NULL, *first = eg_index(in[0], 0);
    if (s->fail == 0) y = eg_gather(in[1], in[0]);
    if (s->fail == 1) y = eg_floordiv(eg_constant_of(EG_INT32, EG_SHAPE(2), 7, 8), eg_sub(in[0], 5));
    if (s->fail == 2) (void)eg_assert_equal(first, 1);
    if (s->fail == 3) y = eg_div(in[1], eg_sub(5, eg_cast(first, EG_FLOAT32)));
    if (s->fail == 4) (void)eg_host_call(refusing_body, NULL, &first, 1, &y, 1);
    eg_trap_nonfinite(trap);
    eg_error_clear();
    out[0] = eg_keep(y ? eg_cast(y, EG_FLOAT32) : eg_mul(in[1], 2));
    return out[0] != NULL;
}
TEST(a_body_that_clears_an_error_of_values_fails_the_call) {
    static const char *const op[] = { "eg_gather", "eg_floordiv", "eg_assert_equal", "eg_div", "too much" };
    if (!test_on_host) return;                              // a device tells later, when the body is over
    for (int fail = 0; fail < 5; fail++)
        for (int bad = 0; bad < 5; bad++) {               // in call 0, which is traced, 1 and 2, compared, 3, replayed
            EG_SCOPE;
            things s;
            memset(&s, 0, sizeof s);
            s.fail = fail;
            eg_function *f = eg_function_new(clearing_body, &s);
            for (int i = 0; i < 5; i++) {
                eg_tensor *in[] = { eg_constant_of(EG_INT32, EG_SHAPE(2), i == bad ? 5 : 1, 1),
                                    eg_constant(EG_SHAPE(3), 1, 2, 3) }, *y = in[0];
                if (i != bad) {
                    CHECK(eg_function_call(f, in, 2, &y, 1));
                    CHECK(y != NULL);
                    continue;
                }
                eg_run_functions_eagerly(true);
                CHECK(eg_function_call(f, in, 2, &y, 1));
                eg_run_functions_eagerly(false);
                CHECK_ERROR(eg_function_call(f, in, 2, &y, 1), bad == 3 ? eg_error() : EG_ERROR_STATE, op[fail]);
                CHECK(y == NULL);
            }
            CHECK(eg_function_reason(f) == NULL);
            eg_function_release(f);
        }
}
// Where an error of shapes, which the body may clear, came before, the one of values is named.
static bool two_errors_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    (void)eg_reshape(in[0], EG_SHAPE(7));
    (void)eg_gather(in[1], in[0]);
    eg_error_clear();
    out[0] = eg_keep(eg_square(in[1]));
    return true;
}
TEST(the_error_of_values_is_named_not_the_first_one) {
    eg_tensor *in[] = { eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 5), eg_constant(EG_SHAPE(3), 1, 2, 3) }, *y;
    eg_function *f = eg_function_new(two_errors_body, NULL);
    if (test_on_host)
        CHECK_ERROR(eg_function_call(f, in, 2, &y, 1), EG_ERROR_STATE, "a function for eg_host_call: eg_gather");
    eg_function_release(f);
}
TEST(a_replay_fails_as_the_body_does) {
    double left[2];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        things s;
        memset(&s, 0, sizeof s);
        s.v = eg_variable(eg_mul(net_data(0, EG_SHAPE(3)), 1), "v");
        eg_function *f = eg_function_new(picking_body, &s, .no_recheck = true);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 6; i++) {
            eg_tensor *x = eg_constant_of(EG_INT32, EG_SHAPE(2), i == 3 ? 7 : 1, 0), *y = x;
            if (i != 3) { CHECK(eg_function_call(f, &x, 1, &y, 1)); CHECK(y != NULL); continue; }
            CHECK_ERROR(!eg_function_call(f, &x, 1, &y, 1) && (test_on_host || !eg_synchronize()) ? NULL : x,
                        EG_ERROR_INDEX, "eg_gather: ");
            CHECK(y == NULL || !test_on_host);
        }
        eg_run_functions_eagerly(false);
        left[traced] = eg_item(eg_index(s.v, 0));
        CHECK_INT(s.runs, traced ? 1 : 6);
        eg_function_release(f);
        eg_release(s.v);
    }
    CHECK_NEAR(left[0], left[1], 0);
}
TEST(an_error_in_a_replay_names_its_line) {
    if (!test_on_host) return;                              // a device tells later, when the replay is over
    things s;
    memset(&s, 0, sizeof s);
    s.v = eg_variable(net_data(0, EG_SHAPE(3)), "v");
    eg_function *f = eg_function_new(picking_body, &s, .no_recheck = true);
    eg_tensor *x = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 0), *bad = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 9), *y;
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK_ERROR(eg_function_call(f, &bad, 1, &y, 1), EG_ERROR_INDEX, "of a traced function, recorded at traced.c:");
    CHECK_ERROR(eg_function_call(f, &bad, 1, &y, 1), EG_ERROR_INDEX, "eg_gather: ");
    s.fail = 1;
    eg_function *g = eg_function_new(picking_body, &s);
    CHECK_ERROR(eg_function_call(g, &x, 1, &y, 1), EG_ERROR_STATE, "the body failed without an error");
    s.fail = 2;
    CHECK_ERROR(eg_function_call(g, &x, 1, &y, 1), EG_ERROR_ARGUMENT, "the body's own");
    CHECK_INT(eg_function_counts(g).traces, 0);
    s.fail = 0;
    for (int i = 0; i < 4; i++) CHECK(eg_function_call(g, &x, 1, &y, 1));
    CHECK_INT(eg_function_counts(g).replays, 1);
    eg_function_release(f);
    eg_function_release(g);
    eg_release(s.v);
}
// ---- what the host reads only to refuse it, or to make positions of it, it reads at each replay

typedef struct checked { const char *name, *says; int what; } checked;
static bool checked_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const checked *c = (const checked *)user;
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, 12, 1), EG_SHAPE(3, 4)), *i = in[0], *y = NULL;
    switch (c->what) {
    case 0: y = eg_floordiv(eg_constant_of(EG_INT32, EG_SHAPE(2), -7, 9), i); break;
    case 1: y = eg_mod(eg_constant_of(EG_INT32, EG_SHAPE(2), -7, 9), i); break;
    case 2: (void)eg_floordiv(5, i); y = eg_add(i, 1); break;              // a result that nobody needs
    case 3: y = eg_gather_nd(x, i); break;
    case 4: y = eg_take_along_axis(x, i, 1); break;
    case 5: y = eg_scatter_nd(i, eg_constant(EG_SHAPE(3), 1, 2, 3), EG_SHAPE(3, 4)); break;
    case 6: y = eg_gather(x, i, .axis = 1); break;
    default: y = eg_one_hot(i, 4); break;
    }
    out[0] = eg_keep(y);
    return y != NULL;
}
TEST(what_the_host_reads_is_checked_at_each_replay) {
    static const checked all[] = {
        { "floordiv", "eg_floordiv: integer division by zero", 0 }, { "mod", "eg_mod: integer division by zero", 1 },
        { "dead", "eg_floordiv: integer division by zero", 2 }, { "gather_nd", "eg_gather_nd: index 4 (entry 3", 3 },
        { "take_along_axis", "eg_take_along_axis: index 4 (entry 3", 4 },
        { "scatter_nd", "eg_scatter_nd: index 4 (entry 3", 5 }, { "gather", "eg_gather: index 4", 6 },
        { "one_hot", NULL, 7 } };
    for (int k = 0; k < 8; k++) {
        EG_SCOPE;
        eg_function *f = eg_function_new(checked_body, (void *)(uintptr_t)&all[k], .no_recheck = true);
        for (int call = 0; call < 5; call++) {
            const int bad = call != 3 ? 3 : k < 3 ? 0 : 4;
            eg_tensor *i = eg_constant_of(EG_INT32, EG_SHAPE(3, 2), 1, 2, 2, bad, 1, 1 + call % 2);
            eg_tensor *y = NULL, *z = NULL;
            if (call == 3 && all[k].says) {
                if (k >= 6 && !test_on_host) continue;                     // found later
                for (int again = 0; again < 2; again++)
                    CHECK_ERROR(eg_function_call(f, &i, 1, &y, 1), k < 3 ? EG_ERROR_MATH : EG_ERROR_INDEX,
                                again ? "of a traced function, recorded at traced.c:" : all[k].says);
                CHECK(y == NULL);
                continue;
            }
            eg_run_functions_eagerly(true);
            CHECK(eg_function_call(f, &i, 1, &z, 1));
            eg_run_functions_eagerly(false);
            CHECK(eg_function_call(f, &i, 1, &y, 1));
            CHECK_SAME(y, z, 0);
            if (eg_function_reason(f)) test_say(__FILE__, __LINE__, all[k].name, eg_function_reason(f));
        }
        CHECK(eg_function_counts(f).replays >= 3);
        eg_function_release(f);
    }
}
// A layer that is added makes weights and slots in a later call.
static bool growing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_reduce_mean(eg_square(eg_call(s->layer, in[0], .training = true)));
    if (!eg_tape_minimize(tape, loss, eg_layer_trainable_weights_list(s->layer), s->opt)) return false;
    out[0] = eg_keep(loss);
    return true;
}
TEST(a_layer_that_is_added_makes_its_variables_in_the_next_call) {
    double losses[2][16];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        net s;
        memset(&s, 0, sizeof s);
        eg_seed(5);
        s.layer = eg_sequential(eg_layer_dense(2));
        s.opt = eg_adam();
        eg_function *f = eg_function_new(growing_body, &s);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 16; i++) {
            EG_SCOPE;
            eg_tensor *x = net_data(i, EG_SHAPE(2, 3)), *y = NULL;
            if (i == 1 || i == 5) eg_layer_add(s.layer, eg_layer_dense(2));
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            losses[traced][i] = y ? eg_item(y) : -1;
        }
        eg_run_functions_eagerly(false);
        CHECK_STR(traced ? eg_function_reason(f) : NULL, NULL);
        CHECK(!traced || (eg_function_counts(f).replays >= 3 && eg_function_counts(f).retraces >= 1));
        eg_function_release(f);
        eg_optimizer_release(s.opt);
        eg_layer_release(s.layer);
    }
    for (int i = 0; i < 16; i++) CHECK_NEAR(losses[0][i], losses[1][i], 0);
}
// Under the NaN trap, each op is checked at each replay, those whose results nobody needs, too.
static bool trapped_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *v = ((things *)user)->v, *parts[] = { eg_mul(eg_mul(in[0], v), 2), in[0] };
    eg_tensor *y = eg_reduce_sum(eg_square(eg_concat(parts, 2, 0)));
    if (!eg_log(eg_transpose(eg_reshape(in[0], EG_SHAPE(1, 3))))) return false;
    out[0] = eg_keep(y);
    eg_tensor *slope = eg_tape_gradient(tape, y, v);
    return eg_apply_gradients(((things *)user)->optimizer, &slope, &v, 1);
}
// Copies, publications and new models change nothing that a body has read.
TEST(a_model_that_is_published_stays_traced) {
    net s;
    memset(&s, 0, sizeof s);
    s.layer = eg_sequential(eg_layer_dense(3), eg_layer_batch_normalization());
    s.opt = eg_sgd();
    s.forward = net_forward_layer;
    eg_publication *p = eg_publication_new();
    eg_function *f = eg_function_new(net_step, &s, .no_recheck = true);
    for (int i = 0; i < 12; i++) {
        EG_SCOPE;
        eg_tensor *in[] = {net_data(i, EG_SHAPE(4, 3)), net_data(i + 3, EG_SHAPE(4, 3))}, *out[1];
        CHECK(eg_function_call(f, in, 2, out, 1));
        CHECK(eg_publish(p, s.layer));
        eg_layer_release(eg_layer_copy(s.layer));
        eg_layer_release(eg_sequential(eg_layer_dense(2), eg_layer_dense(3)));
        eg_layer_set_trainable(s.layer, true);
    }
    CHECK_INT(eg_function_counts(f).replays, 10);
    eg_layer_set_trainable(eg_layer_layers_list(s.layer).layers[1], false);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *in[] = {net_data(i, EG_SHAPE(4, 3)), net_data(i + 3, EG_SHAPE(4, 3))}, *out[1];
        CHECK(eg_function_call(f, in, 2, out, 1));
    }
    CHECK_INT(eg_function_counts(f).traces, 2);
    CHECK(eg_function_counts(f).replays >= 12);
    eg_function_release(f);
    eg_publication_release(p);
    net_end(&s);
}
TEST(the_nan_trap_is_a_part_of_replays) {
    if (test_traps_later) return;                           // such a device runs the body instead
    double left[2][3];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        things s;
        memset(&s, 0, sizeof s);
        eg_seed(5);
        s.v = eg_variable(eg_random_normal(EG_SHAPE(3)), "v");
        s.optimizer = eg_adam(.amsgrad = true, .learning_rate = .1);
        eg_function *f = eg_function_new(trapped_body, &s, .no_recheck = true);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 8; i++) {
            eg_tensor *x = eg_constant(EG_SHAPE(3), 1, i == 4 || i == 7 ? 0 : 2 + i, i == 5 ? 1e30 : 3), *y = NULL;
            eg_trap_nonfinite(i != 7);
            if (i == 4) {
                CHECK_TRAPPED(eg_function_call(f, &x, 1, &y, 1), traced ? ", recorded at traced.c:" : "eg_log: made 1");
                CHECK_TRAPPED(eg_function_call(f, &x, 1, &y, 1), "eg_log: made 1 NaN or infinite elements of [3, 1] f");
            } else if (i == 5) CHECK_TRAPPED(eg_function_call(f, &x, 1, &y, 1), "eg_square: made 2 NaN or infinite");
            else CHECK(eg_function_call(f, &x, 1, &y, 1));
        }
        for (int k = 0; k < 3; k++) left[traced][k] = eg_item(eg_index(s.v, k));
        eg_run_functions_eagerly(false);
        CHECK_INT(eg_function_counts(f).replays, traced ? 6 : 0);
        if (traced) CHECK_CONTAINS(eg_function_counts(f).explanation, "the NaN trap is off");
        eg_function_release(f);
        eg_optimizer_release(s.optimizer);
        eg_release(s.v);
    }
    for (int k = 0; k < 3; k++) CHECK_NEAR(left[0][k], left[1][k], 0);
}
// A body that switches the trap itself: what is behind is not looked at.
static bool switching_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    const bool former = eg_trap_nonfinite(true);
    eg_tensor *x = eg_sub(1, in[0]);
    eg_log(x);
    eg_trap_nonfinite(former);
    out[0] = eg_keep(eg_sqrt(eg_div(1, eg_sub(x, 1))));
    return eg_error() == EG_OK;
}
TEST(a_trap_that_a_body_switches_is_a_part_of_replays) {
    eg_function *f = eg_function_new(switching_body, NULL, .no_recheck = true);
    for (int i = 0; i < 24; i++) {
        EG_SCOPE;
        const int n = i < 12 ? 3 : 3 + i % 6;                   // then lengths, whose lists are derived
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(n), i % 4 == 3 ? 1 : i % 2 ? -4 : 0), *y = NULL;
        if (i % 4 == 3) CHECK_TRAPPED(eg_function_call(f, &x, 1, &y, 1), "eg_log: made ");
        else {
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            CHECK_SAME(y, eg_full(EG_FLOAT32, EG_SHAPE(n), i % 2 ? .5 : INFINITY), 0);
        }
        CHECK(!eg_trap_nonfinite(false));
    }
    if (test_traps_later) CHECK_CONTAINS(eg_function_reason(f), "switches the NaN trap on");
    else CHECK(eg_function_counts(f).replays > 12);
    eg_function_release(f);
}
// The trap looks at gradients that are one launch, too; and its own look at a view is no line of the list.
static bool steep_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const int kind = ((things *)user)->n;
    eg_tape *tape = kind & 1 ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tensor *x = eg_slice(in[0], EG_SHAPE(0, 1), EG_SHAPE(2, 1)), *y = kind & 2 ? eg_exp(x) : eg_sqrt(x);
    out[0] = eg_keep(y);
    return (out[1] = eg_keep(eg_tape_gradient(tape, kind & 4 ? eg_mul(y, 2) : y, in[0]))) != NULL;
}
TEST(the_nan_trap_looks_at_gradients_and_views) {
    if (test_traps_later) return;
    eg_trap_nonfinite(true);
    for (int kind = 0; kind < 8; kind++)
        for (int outer = 0; outer < 2; outer++) {
            things s;
            memset(&s, 0, sizeof s);
            s.n = kind;
            eg_function *f = eg_function_new(steep_body, &s);
            for (int i = 1; i <= 16; i++) {
                EG_SCOPE;
                // The root's slope at 0 is infinite, which is an error; exp of an infinity is none.
                const bool steep = !(kind & 2) && i % 4 == 3;
                const double value = kind & 2 && (i == 1 || i % 4 == 3) ? (double)INFINITY : steep ? 0 : i;
                eg_tensor *x = eg_mul(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), value), *y[2];
                eg_tape *tape = outer ? eg_tape_begin() : NULL;
                if (outer) eg_tape_watch(tape, x);
                if (steep) CHECK_TRAPPED(eg_function_call(f, &x, 1, y, 2), "made 2 NaN or infinite");
                else CHECK(eg_function_call(f, &x, 1, y, 2));
                if (outer && !steep) CHECK(eg_tape_gradient(tape, y[0], x) != NULL);
            }
            CHECK(eg_function_counts(f).replays >= 6);
            eg_function_release(f);
        }
    eg_trap_nonfinite(false);
}
// Gradients that are accumulated: the steps that update have a list of their own. What the optimizer knows about
// variables is right after replays, too, where another function leaves one without a gradient.
typedef struct accumulation { eg_tensor *v[2]; eg_optimizer *optimizer; int n; } accumulation;
static bool accumulating_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    accumulation *s = (accumulation *)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_mul(in[0], s->v[0]), *grads[2] = { NULL, NULL };
    if (s->n == 2) y = eg_mul(y, s->v[1]);
    out[0] = eg_keep(y = eg_reduce_sum(eg_square(y)));
    return eg_tape_gradients(tape, y, s->v, s->n, grads) && eg_apply_gradients(s->optimizer, grads, s->v, 2);
}
TEST(accumulated_gradients_replay) {
    double left[2][40][3];
    for (int traced = 0; traced < 2; traced++) {
        EG_SCOPE;
        accumulation s = { { eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v"), eg_variable(eg_scalar(.5), "w") },
                           eg_adam(.accumulate_steps = 3, .learning_rate = .05), 2 };
        accumulation one = s;
        one.n = 1;
        eg_function *both = eg_function_new(accumulating_body, &s), *first = eg_function_new(accumulating_body, &one);
        eg_run_functions_eagerly(!traced);
        for (int i = 0; i < 40; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_constant(EG_SHAPE(2), 1 + i % 5, .5), *y = NULL;
            // From call 24 on, the steps that update have no gradient for w.
            CHECK(eg_function_call(i >= 24 && i % 3 == 0 ? first : both, &x, 1, &y, 1));
            // One call less until the next update, as a checkpoint that is read could make it.
            if (i == 19) eg_assign(eg_optimizer_state_list(s.optimizer).tensors[2], 1);
            left[traced][i][0] = eg_item(y);
            left[traced][i][1] = eg_item(eg_index(s.v[0], 0));
            left[traced][i][2] = eg_item(s.v[1]);
        }
        eg_run_functions_eagerly(false);
        if (traced) {
            CHECK_STR(eg_function_reason(both), NULL);
            CHECK_INT(eg_function_counts(both).traces, 2);
            CHECK_CONTAINS(eg_function_counts(both).explanation, ".accumulate_steps");
            CHECK(eg_function_counts(both).replays > 15);
            CHECK_CONTAINS(eg_function_reason(first), "NULL gradient at the end of .accumulate_steps");
        }
        eg_function_release(both);
        eg_function_release(first);
        eg_optimizer_release(s.optimizer);
        eg_release(s.v[0]);
        eg_release(s.v[1]);
    }
    CHECK(memcmp(left[0], left[1], sizeof left[0]) == 0);
}
static bool recursive_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_function_call(*(eg_function **)user, in, 1, out, 1);
}
TEST(recursion_is_an_error) {
    eg_function *f, *g;
    f = eg_function_new(recursive_body, &g);
    g = eg_function_new(recursive_body, &f);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y = x;
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, "the function calls itself");
    CHECK(y == NULL);
    eg_function_release(f);
    eg_function_release(g);
}
static bool holding_input(eg_tensor *const *in, eg_tensor **out, void *user) {
    ((net *)user)->kept = eg_retain(in[1]);
    out[0] = eg_keep(eg_add(in[0], 1));
    return true;
}
TEST(a_tensor_that_is_held_behind_the_body_is_an_error) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(holding_body, &s), *g = eg_function_new(holding_input, &s);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x = net_data(i, EG_SHAPE(3)), *in[] = { x, eg_mul(x, 1) }, *y = x;
        if (i < 2) CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE,
                               i ? "the result of eg_mul (at traced.c:" : "still held after it, where a replay leaves "
                                                                          "nothing: return it");
        else CHECK_ERROR(eg_function_call(g, in, 2, &y, 1), EG_ERROR_STATE, "eg_function_call: in[1] of the body is");
        CHECK(y == NULL);
        CHECK_SAME(s.kept, i < 2 ? eg_mul(x, 2) : x, 0);
        eg_release(s.kept);
    }
    CHECK_INT(eg_function_counts(f).traces + eg_function_counts(g).traces, 0);
    eg_function_release(f);
    eg_function_release(g);
}
// Constants that the first call makes from C's numbers, and keeps, are captured as if they had been there before.
static bool lazy_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    if (!s->kept) s->kept = eg_retain(eg_constant(EG_SHAPE(3), 1, 2, 3));
    out[0] = eg_keep(eg_mul(in[0], s->kept));
    return true;
}
TEST(a_constant_that_the_first_call_keeps_is_captured) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(lazy_body, &s);
    for (int i = 0; i < 6; i++) {
        EG_SCOPE;
        eg_tensor *x = net_data(i, EG_SHAPE(3)), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_SAME(y, eg_mul(x, s.kept), 0);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    eg_release(s.kept);
}
// Variables are made by the first call of a signature, or never.
typedef struct maker { eg_tensor *v[4]; int n, most; } maker;
static bool making_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    maker *s = (maker *)user;
    if (s->n < s->most) { s->v[s->n] = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(1)), "fresh"); s->n++; }
    out[0] = eg_keep(eg_mul(in[0], s->v[s->n - 1]));
    return out[0] != NULL;
}
TEST(a_variable_is_made_by_a_first_call) {
    for (int late = 0; late < 3; late++) {
        EG_SCOPE;
        maker s;
        memset(&s, 0, sizeof s);
        s.most = 1;
        eg_function *f = eg_function_new(making_body, &s);
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *longer = eg_ones(EG_FLOAT32, EG_SHAPE(5)), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        // in the second call, which traces, or in a comparison
        for (int i = 0; i < late; i++) CHECK(eg_function_call(f, &x, 1, &y, 1));
        if (late == 2) CHECK(eg_function_call(f, &x, 1, &y, 1));
        s.most = 2;
        if (late == 2) CHECK(eg_function_call(f, &x, 1, &y, 1));         // a replay
        if (late == 2) CHECK_INT(s.n, 1);
        y = x;
        CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE,
                    "the body makes variable fresh (at traced.c:");
        CHECK(y == NULL);
        CHECK_INT(s.n, 2);
        s.most = 3;
        CHECK(eg_function_call(f, &longer, 1, &y, 1));                   // the first call of another signature
        CHECK_INT(s.n, 3);
        for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, &longer, 1, &y, 1));
        CHECK_STR(eg_function_reason(f), NULL);
        eg_function_release(f);
        for (int i = 0; i < s.n; i++) eg_release(s.v[i]);
    }
}
// Whoever holds the values of a variable that the body assigns, such as a tape, puts tracing off and does not end it.
static bool held_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    if (s->item) { eg_release(s->kept); s->kept = eg_retain(eg_read(s->v[0])); }
    out[0] = eg_keep(eg_read(eg_assign_add(s->v[0], in[0])));
    return out[0] != NULL;
}
TEST(who_holds_a_variable_puts_tracing_off) {
    for (int later = 0; later < 2; later++) {               // from the first call on, or when it was traced
        net s;
        memset(&s, 0, sizeof s);
        s.v[0] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(3)), "v");
        eg_function *f = eg_function_new(held_body, &s);
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
        int64_t replays = 0;
        for (int i = 0; i < 300; i++) {
            EG_SCOPE;
            s.item = later ? i >= 20 && i < 80 : i < 40;
            if (i == 80) replays = eg_function_counts(f).replays;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            CHECK_TENSOR(y, 0, i + 1, i + 1, i + 1);
            if (!later && i == 30) CHECK_CONTAINS(eg_function_reason(f), "hold");
        }
        CHECK_STR(eg_function_reason(f), NULL);
        CHECK(eg_function_counts(f).replays > replays + 100);
        if (later) CHECK_INT(eg_function_counts(f).traces, 1);
        eg_function_release(f);
        eg_release(s.v[0]);
        eg_release(s.kept);
    }
}
// Variables that begin to share their values, or cease to, are no difference when the body is compared; what it writes
// gets memory of its own, whoever holds the former values.
static bool reads_two_writes_one(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *s = (net *)user;
    eg_assign_add(s->v[2], 1);
    out[0] = eg_add(eg_mul(s->v[0], in[0]), s->v[1]);
    eg_tensor *slope = in[0], *w = s->v[3];
    return out[0] && eg_apply_gradients(s->opt, &slope, &w, 1);
}
TEST(variables_that_share_their_values_stay_traced) {
    net s;
    memset(&s, 0, sizeof s);
    s.opt = eg_sgd(.learning_rate = 1);
    for (int i = 0; i < 4; i++) s.v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), i), "v");
    eg_function *f = eg_function_new(reads_two_writes_one, &s);
    for (int i = 0; i < 60; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2), 10), *y, *held = eg_read(s.v[i % 4]);
        if (i % 10 == 6) eg_assign(s.v[0], s.v[1]);                         // they share memory
        if (i % 10 == 7) eg_assign(s.v[1], eg_full(EG_FLOAT32, EG_SHAPE(2), i));
        if (i % 10 == 8) eg_assign(s.v[0], s.v[3]);
        const double a = eg_item(eg_index(s.v[0], 0)), b = eg_item(eg_index(s.v[1], 0));
        const double w = eg_item(eg_index(s.v[3], 0)), was = eg_item(eg_index(held, 0));
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, a * 10 + b, a * 10 + b);
        CHECK_TENSOR(s.v[2], 0, i + 3, i + 3);
        CHECK_NEAR(eg_item(eg_index(s.v[3], 0)), w - 10, 0);
        CHECK_NEAR(eg_item(eg_index(held, 0)), was, 0);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK_INT(eg_function_counts(f).traces, 1);
    CHECK(eg_function_counts(f).replays >= 50);
    eg_function_release(f);
    eg_optimizer_release(s.opt);
    for (int i = 0; i < 4; i++) eg_release(s.v[i]);
}
// Where the body only reads two variables, or a variable and a captured tensor, that share their values, the list knows
// it, and holds as long as they do. They stay where they are, since another thread may be reading them.
typedef struct sharing { eg_tensor *v[3], *captured; bool reads; } sharing;
static bool reads_then_assigns(eg_tensor *const *in, eg_tensor **out, void *user) {
    const sharing *s = (const sharing *)user;
    out[0] = eg_add(eg_mul(s->v[0], in[0]), s->captured ? s->captured : s->v[1]);
    return out[0] && (s->reads || eg_assign_add(s->v[2], 1));
}
TEST(what_shares_values_and_is_only_read_stays_traced) {
    for (int kind = 0; kind < 8; kind++) {
        const int captured = kind % 4;                      // 0: never; 1: another variable's value; else this one's
        sharing s = { { NULL }, NULL, kind >= 4 };
        for (int i = 0; i < 3; i++) s.v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), i + 1), "v");
        s.captured = captured ? eg_read(s.v[captured == 1]) : NULL;
        eg_function *f = eg_function_new(reads_then_assigns, &s);
        if (!captured) eg_assign(s.v[0], s.v[1]);                           // for good
        for (int i = 0; i < 60; i++) {
            EG_SCOPE;
            eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2), i), *y;
            if (captured == 1 && i >= 2) eg_assign(s.v[0], s.captured);     // again and again
            if (captured == 3 && i == 10) eg_assign(s.v[0], eg_full(EG_FLOAT32, EG_SHAPE(2), 7));   // no longer
            if (captured == 3 && i == 20) eg_assign(s.v[0], s.captured);
            const void *at[2] = { eg_data(s.v[0]), eg_data(s.v[1]) };
            const double w = eg_item(eg_index(s.v[0], 0)), b = captured > 1 ? 1 : 2;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            CHECK_TENSOR(y, 0, w * i + b, w * i + b);
            CHECK(eg_data(s.v[0]) == at[0] && eg_data(s.v[1]) == at[1]);
            if (!s.reads) CHECK_TENSOR(s.v[2], 0, i + 4, i + 4);
        }
        CHECK_STR(eg_function_reason(f), NULL);
        CHECK_INT(eg_function_counts(f).traces, captured == 3 ? 2 : 1);
        CHECK(eg_function_counts(f).replays >= 48);
        if (captured == 3) CHECK_CONTAINS(eg_function_counts(f).explanation, "variable v no longer shares its values");
        eg_function_release(f);
        for (int i = 0; i < 3; i++) eg_release(s.v[i]);
    }
}
// Where they begin to share them and a setter was called, lists of known lengths are written anew, too.
TEST(what_shares_values_later_is_traced_again_at_all_lengths) {
    sharing s = { { NULL }, NULL, true };
    for (int i = 0; i < 3; i++) s.v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), i + 1), "v");
    eg_function *f = eg_function_new(reads_then_assigns, &s);
    int64_t replays = 0;
    for (int i = 0; i < 120; i++) {
        EG_SCOPE;
        if (i == 60) {
            replays = eg_function_counts(f).replays;
            CHECK(eg_function_counts(f).derived > 0);
            eg_assign(s.v[1], s.v[0]);
            eg_set_trainable(s.v[2], false);
        }
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(2 + i % 4, 2), i), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_NEAR(eg_item(eg_index(eg_index(y, 1), 1)), i + (i < 60 ? 2 : 1), 0);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK(eg_function_counts(f).replays >= replays + 30);
    eg_function_release(f);
    for (int i = 0; i < 3; i++) eg_release(s.v[i]);
}
// What they share makes no comparison void: a number of C's is found as elsewhere.
typedef struct scaling { eg_tensor *v[3]; double scale; } scaling;
static bool scales_the_sum(eg_tensor *const *in, eg_tensor **out, void *user) {
    const scaling *s = (const scaling *)user;
    out[0] = eg_mul(eg_add(eg_add(eg_mul(s->v[0], in[0]), s->v[1]), s->v[2]), s->scale);
    return out[0] != NULL;
}
TEST(a_frozen_number_is_found_where_variables_share_their_values) {
    scaling s = { { NULL }, 1 };
    for (int i = 0; i < 3; i++) s.v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), i + 1), "v");
    eg_assign(s.v[1], s.v[0]);
    eg_function *f = eg_function_new(scales_the_sum, &s);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
    for (int i = 0; i < 100 && eg_error() == EG_OK; i++) {
        if (i == 20) s.scale = 5;
        (void)eg_function_call(f, &x, 1, &y, 1);
    }
    CHECK_CONTAINS(eg_error_message(), "may have used an old value. What changes");
    eg_error_clear();
    eg_function_release(f);
    for (int i = 0; i < 3; i++) eg_release(s.v[i]);
}
// Where which of them share takes turns, each has its list.
TEST(variables_that_share_their_values_in_turn_have_a_list_each) {
    scaling s = { { NULL }, 1 };
    for (int i = 0; i < 3; i++) s.v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), i + 1), "v");
    eg_function *f = eg_function_new(scales_the_sum, &s);
    for (int i = 0; i < 100; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
        eg_assign(s.v[1 + i % 2], s.v[0]);
        eg_assign(s.v[2 - i % 2], eg_full(EG_FLOAT32, EG_SHAPE(2), i));
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, i + 2, i + 2);
    }
    CHECK(eg_function_counts(f).traces <= 4 && eg_function_counts(f).replays >= 60);
    eg_function_release(f);
    for (int i = 0; i < 3; i++) eg_release(s.v[i]);
}
// An assignment of what a variable has already, on one of two ways, is a line of the list all the same.
static bool takes_the_first(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *const *v = (eg_tensor *const *)user;
    return eg_assign(v[1], v[0]) && (out[0] = eg_mul(in[0], v[1])) != NULL;
}
static bool takes_the_input(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *const *v = (eg_tensor *const *)user;
    return eg_assign(v[1], in[0]) && (out[0] = eg_mul(in[0], v[1])) != NULL;
}
static bool takes_either(eg_tensor *const *in, eg_tensor **out, void *user) {
    return eg_cond(eg_greater(eg_reduce_sum(in[0]), 0), takes_the_first, takes_the_input, user, in, 1, out, 1);
}
TEST(an_assignment_of_the_same_values_is_a_line) {
    eg_tensor *v[2], *y;
    for (int i = 0; i < 2; i++) v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), i + 2), "v");
    eg_function *f = eg_function_new(takes_either, v);
    for (int i = 0; i < 60; i++) {
        EG_SCOPE;
        const double x = i % 3 == 1 ? -3 : 3, taken = x > 0 ? 2 : x;
        eg_tensor *in = eg_full(EG_FLOAT32, EG_SHAPE(2), x);
        if (i % 4 != 3) eg_assign(v[1], v[0]);
        CHECK(eg_function_call(f, &in, 1, &y, 1));
        CHECK_TENSOR(y, 0, x * taken, x * taken);
        CHECK_TENSOR(v[1], 0, taken, taken);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK(eg_function_counts(f).replays >= 30);
    eg_function_release(f);
    for (int i = 0; i < 2; i++) eg_release(v[i]);
}
// A captured tensor that a variable shares, which only one of two ways reads.
static bool adds_the_variable(eg_tensor *const *in, eg_tensor **out, void *user) {
    return (out[0] = eg_add(in[0], ((const sharing *)user)->v[0])) != NULL;
}
static bool captures_and_branches(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *y = eg_mul(in[0], ((const sharing *)user)->captured);
    return eg_cond(eg_greater(eg_reduce_sum(y), 0), halved, adds_the_variable, user, &y, 1, out, 1);
}
TEST(what_shares_a_captured_tensor_on_one_way_is_no_difference) {
    sharing s = { { eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(2), 2), "v") }, NULL, true };
    s.captured = eg_read(s.v[0]);
    eg_function *f = eg_function_new(captures_and_branches, &s);
    for (int i = 0; i < 40; i++) {
        EG_SCOPE;
        const double x = i % 2 ? -3 : 3, y = x > 0 ? x : 2 * x + 2;
        eg_tensor *in = eg_full(EG_FLOAT32, EG_SHAPE(2), x), *out;
        CHECK(eg_function_call(f, &in, 1, &out, 1));
        CHECK_TENSOR(out, 0, y, y);
    }
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK_INT(eg_function_counts(f).traces, 2);
    eg_function_release(f);
    eg_release(s.v[0]);
}
// What C gets for a body is an input: lent memory, an iterator's next element.
typedef struct getter { eg_iterator *it; float *lent; } getter;
static bool getting_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const getter *s = (const getter *)user;
    eg_tensor *c[EG_MAX_COMPONENTS] = { NULL };
    if (s->it && eg_iterator_next(s->it, c) != EG_NEXT) return false;
    if (s->lent) c[0] = eg_wrap_data(EG_FLOAT32, EG_SHAPE(3), s->lent, NULL, NULL);
    out[0] = eg_keep(eg_add(in[0], c[0]));
    return out[0] != NULL;
}
TEST(what_c_gets_for_a_body_is_an_input) {
    float lent[3] = { 1, 2, 3 };
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
    eg_dataset *ones = eg_dataset_from_slices(eg_ones(EG_FLOAT32, EG_SHAPE(4, 3)));
    eg_iterator *it = eg_iterator_new(ones);
    for (int i = 0; i < 2; i++) {
        getter s = { i ? it : NULL, i ? NULL : lent };
        eg_function *f = eg_function_new(getting_body, &s);
        for (int call = 0; call < 2; call++) {
            y = x;
            CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE,
                        call ? "make what it gives an input" : i ? "eg_iterator_next: " : "eg_wrap_data: ");
            CHECK(y == NULL);
        }
        eg_run_functions_eagerly(true);
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 2, i ? 2 : 3, i ? 2 : 4);
        eg_run_functions_eagerly(false);
        eg_function_release(f);
    }
    eg_iterator_release(it);
    eg_dataset_release(ones);
}
static bool stating_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    *(eg_random_state *)user = eg_random_get_state();
    out[0] = eg_keep(eg_exp(in[0]));
    return true;
}
TEST(the_random_state_is_not_read_in_a_body) {
    eg_random_state state;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3)), *y;
    eg_function *f = eg_function_new(stating_body, &state);
    for (int call = 0; call < 2; call++)
        CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE,
                    "eg_random_get_state: not in the body of a traced function, since replays run no C: call it");
    eg_run_functions_eagerly(true);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    CHECK(state.counter == eg_random_get_state().counter);
    eg_run_functions_eagerly(false);
    eg_function_release(f);
}
TEST(wrong_calls) {
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(doubled, &s);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y = x;
    CHECK_ERROR(eg_function_call(NULL, &x, 1, &y, 1), EG_ERROR_NULL, "function");
    CHECK_ERROR(eg_function_call(f, NULL, 1, &y, 1), EG_ERROR_ARGUMENT, "eg_function_call: a list of 1 is NULL");
    CHECK_ERROR(eg_function_call(f, &x, -1, &y, 1), EG_ERROR_ARGUMENT, "eg_function_call");
    CHECK_ERROR(eg_function_call(f, &x, 1, NULL, 1), EG_ERROR_ARGUMENT, "eg_function_call: a list of 1 is NULL");
    CHECK_ERROR(eg_function_new(NULL, NULL), EG_ERROR_NULL, "body");
    eg_tensor *none = NULL;
    CHECK_ERROR(eg_function_call(f, &none, 1, &y, 1), EG_ERROR_NULL, "inputs[0] is NULL; each entry must be made");
    CHECK(y == NULL);
    CHECK(eg_function_call(f, &x, 1, &y, 1));
    eg_function_release(f);
    f = eg_function_new(without_any, &s);
    for (int i = 0; i < 5; i++) CHECK(eg_function_call(f, NULL, 0, NULL, 0));
    CHECK_INT(eg_function_counts(f).replays, 1);
    eg_function_release(f);
}

// ---- devices: the CPU with a table of its own is traced as without one

TEST(a_whole_table_is_traced) {
    egi_backend_cpu();
    net s;
    memset(&s, 0, sizeof s);
    eg_function *f = eg_function_new(doubled, &s);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(2), 1 + i, 2), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 2 + 2.0 * i, 4);
    }
    CHECK_INT(eg_function_counts(f).replays, 1);
    CHECK_INT(eg_function_counts(f).rechecks, 2);
    eg_function_release(f);
    net_compare(net_make_mlp, make_optimizer, 4, EG_SHAPE(4, 3), EG_SHAPE(4, 2));
}
static bool to_the_other(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_keep(eg_add(eg_to(in[0], (const char *)user), 1));
    return true;
}
TEST(a_copy_between_devices_stays_eager) {
    const char *here = eg_device_of(eg_zeros(EG_FLOAT32, EG_SHAPE(1)));
    const char *other = strcmp(here, "cpu:0") ? "cpu:0" : NULL;
    if (!other) return;                                     // there is one device
    eg_function *f = eg_function_new(to_the_other, (void *)(uintptr_t)other);
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant(EG_SHAPE(2), 1 + i, 2), *y;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 2.0 + i, 3);
        CHECK(eg_function_reason(f) && strstr(eg_function_reason(f), "another device"));
    }
    eg_function_release(f);
}

// ---- what the host does in a body: each replay does it again

typedef struct hosted { float rate; int64_t count; bool flag; double least; eg_tensor *weight; } hosted;
static bool hosted_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    hosted *s = (hosted *)user;
    eg_tensor *rate = eg_host_number(EG_FLOAT32, &s->rate), *count = eg_host_number(EG_INT64, &s->count),
              *flag = eg_host_number(EG_BOOL, &s->flag);
    eg_print(in[0]);
    eg_tensor *y = eg_add(eg_mul(in[0], rate), eg_cast(count, EG_FLOAT32));
    eg_assert_near(y, eg_add(in[0], 5), 60);
    eg_assign_add(s->weight, eg_reduce_sum(y));
    eg_print(s->weight);
    out[0] = eg_keep(eg_where(flag, y, eg_negative(y)));
    return eg_error() == EG_OK;
}
TEST(numbers_of_the_host_are_read_and_tensors_printed_at_each_replay) {
    EG_SCOPE;
    char expected[4000];
    hosted s = {1, 0, true, 0, eg_variable(eg_scalar(0), "weight")};
    eg_function *f = eg_function_new(hosted_body, &s);
    for (int way = 0; way < 2; way++) {
        eg_assign(s.weight, eg_scalar(0));
        eg_run_functions_eagerly(way == 0);
        shown[0] = 0;
        eg_set_printer(show, NULL);
        for (int call = 0; call < 12; call++) {
            EG_SCOPE;
            eg_tensor *x = eg_constant(EG_SHAPE(2), call, call + 0.5), *y;
            s.rate = (float)(1 + call * 0.25);
            s.count = call % 3;
            s.flag = call % 4 != 0;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            const double sign = s.flag ? 1 : -1;
            const float *values = (const float *)eg_data(y);
            for (int i = 0; values && i < 2; i++)
                CHECK_NEAR(values[i], sign * ((call + i * 0.5) * (double)s.rate + (double)s.count), 1e-5);
        }
        eg_set_printer(NULL, NULL);
        eg_run_functions_eagerly(false);
        if (way == 0) snprintf(expected, sizeof expected, "%s", shown);
    }
    CHECK(strlen(expected) > 400 && !strcmp(expected, shown));
    CHECK(eg_function_reason(f) == NULL && eg_function_counts(f).replays >= 5);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 100, 200), *y;
    eg_set_printer(show, NULL);
    CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_ASSERT, "assert_near");
    eg_set_printer(NULL, NULL);
    CHECK_ERROR(eg_host_number(EG_FLOAT32, NULL), EG_ERROR_NULL, "host_number");
    CHECK_ERROR((eg_host_number)(EG_NO_DTYPE, &s.rate), EG_ERROR_DTYPE, "host_number");
    eg_function_release(f);
    eg_release(s.weight);
}

// ---- lists of a body

static bool reads_two(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(in[0], in[1])) != NULL;
}
static bool gives_two(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = out[1] = eg_square(in[0]);
    return true;
}
static bool gives_one(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_square(in[0])) != NULL;
}
static bool passes_second(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = in[1];
    return true;
}
// Behind the inputs stand NULLs, and a result that the call has no place for is not written.
TEST(lists_of_a_body_end_with_nulls) {
    eg_function *reads = eg_function_new(reads_two, NULL), *gives = eg_function_new(gives_two, NULL),
                *writes = eg_function_new(gives_one, NULL), *passes = eg_function_new(passes_second, NULL);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y[2] = { NULL, x }, *yes = eg_greater(eg_scalar(1), 0);
    for (int i = 0; i < 4; i++) {                           // eagerly and traced; what has a mask is one input, too
        eg_tensor *z = i < 2 ? x : eg_with_mask(x, yes);
        eg_run_functions_eagerly(i % 2);
        CHECK_ERROR(eg_function_call(reads, &z, 1, y, 1), EG_ERROR_NULL,
                    "operand 1 is NULL, in the body of a traced function called with 1 input at traced.c:");
    }
    eg_run_functions_eagerly(false);
    CHECK_ERROR(eg_function_call(gives, &x, 1, y, 1), EG_ERROR_ARGUMENT,
                "the body gave at least 2 results, but the call asked for 1");
    CHECK_ERROR(eg_cond(yes, reads_two, gives_two, NULL, &x, 1, y, 1), EG_ERROR_NULL, "operand 1 is NULL");
    CHECK_ERROR(eg_cond(yes, gives_two, reads_two, NULL, &x, 1, y, 1), EG_ERROR_ARGUMENT, "gave at least 2 results");
    CHECK(y[1] == x);
    CHECK_ERROR(eg_function_call(writes, &x, 1, NULL, 0), EG_ERROR_ARGUMENT,
                "the body gave at least 1 result, but the call asked for 0");
    CHECK(eg_function_call(passes, &x, 1, y, 1) && !y[0]);
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        eg_tensor *p = eg_placeholder(EG_FLOAT32, EG_SHAPE(2), "p"), *more = eg_greater(eg_reduce_sum(p), 0);
        CHECK_ERROR(eg_cond(more, reads_two, reads_two, NULL, &p, 1, y, 1), EG_ERROR_NULL, "operand 1 is NULL");
        CHECK_ERROR(eg_while(gives_two, reads_two, NULL, &p, y, 1), EG_ERROR_ARGUMENT, "gave at least 2 results");
    }
    eg_graph_release(g);
    eg_function_release(reads);
    eg_function_release(gives);
    eg_function_release(writes);
    eg_function_release(passes);
}
// Errors of results name the body.
static bool gives_ended(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = in[0];
    EG_SCOPE;
    out[1] = eg_square(in[0]);
    return true;
}
TEST(errors_of_results_name_the_body) {
#ifdef EAGER_DEBUG
    eg_function *f = eg_function_new(gives_ended, NULL);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y[2], *yes = eg_greater(eg_scalar(1), 0);
    CHECK_ERROR(eg_function_call(f, &x, 1, y, 2), EG_ERROR_STATE, "result 1 of the body, made by eg_square, was used");
    CHECK_ERROR(eg_cond(yes, gives_ended, gives_ended, NULL, &x, 1, y, 2), EG_ERROR_STATE,
                "result 1 of the function of true, made by eg_square, was used");
    eg_function_release(f);
#else
    (void)gives_ended;
#endif
}
