// Attention as one op, whose kernels hold no scores: values and gradients against the same in ops of their own, to
// second order, with dropout, too, whose draws stay the same; what it holds in memory; the same bits with any number of
// threads and in replays; what is not finite, what is empty.
#ifndef EAGER_BACKEND
#define EAGER_BACKEND
#endif
#include "test.h"

enum { MANY = 16 };

#define AS_ONE_KERNEL EGI_ATTENTION
#include "counted.h"

// ---- against ops of their own, which the NaN trap asks for

enum { NO_MASK, OF_STEPS, OF_PAIRS, OF_EACH, OF_KEYS, MASKS };
// keys 0: the queries are the keys, too
typedef struct variant {
    int64_t batch, queries, keys, heads, shared, size, values; bool causal; int mask; eg_dtype dtype; double dropout;
} variant;
static eg_layer *attention_of(const variant *v) {
    return eg_layer_multi_head_attention(v->heads, v->size, .kv_heads = v->shared, .value_dim = v->values,
                                         .causal = v->causal, .bias_initializer = EG_INIT_UNIFORM,
                                         .bias_initializer_value = .5, .dropout = v->dropout);
}
// About a third of them are false. Where each query has a row of its own, the first one sees nobody.
static eg_tensor *pairs_of(const variant *v) {
    const int64_t keys = v->keys ? v->keys : v->queries;
    if (v->mask == OF_KEYS) return eg_greater(eg_random_uniform(EG_SHAPE(v->batch, 1, keys)), 0.35);
    eg_shape shape = v->mask == OF_PAIRS ? EG_SHAPE(v->queries, keys) : EG_SHAPE(v->batch, v->queries, keys);
    return eg_logical_and(eg_greater(eg_random_uniform(shape), 0.35),
                          eg_expand_dims(eg_greater(eg_range(EG_INT32, 0, (double)v->queries, 1), 0), 1));
}
typedef struct given { const variant *v; eg_layer *layer; eg_tensor *x[3], *steps; int n; } given;
static given given_of(const variant *v) {
    given g = { v, attention_of(v), { NULL, NULL, NULL }, NULL, 0 };
    g.x[g.n++] = eg_random_normal(EG_SHAPE(v->batch, v->queries, 6), .dtype = v->dtype);
    if (v->keys) g.x[g.n++] = eg_random_normal(EG_SHAPE(v->batch, v->keys, 6), .dtype = v->dtype);
    if (v->mask >= OF_PAIRS) g.x[g.n++] = pairs_of(v);
    if (v->mask == OF_STEPS) g.steps = eg_greater(eg_random_uniform(EG_SHAPE(v->batch, v->queries)), 0.35);
    return g;
}
// Each call in training draws the same.
static eg_tensor *call(const given *g) {
    eg_tensor *y;
    if (g->v->dropout > 0) eg_seed(5);
    return eg_call_multi(g->layer, g->x, g->n, &y, 1, .mask = g->steps, .training = g->v->dropout > 0) ? y : NULL;
}
static eg_tensor *weighed(const given *g, eg_tensor **y) {
    if (!(*y = call(g))) return NULL;
    eg_tensor *w = eg_reshape(eg_sin(eg_range(g->v->dtype, 1, 1 + (double)eg_size(*y), 1)), eg_shape_of(*y));
    return eg_reduce_sum(eg_mul(eg_add(*y, eg_square(*y)), w));
}
// y, and the gradients of weights and inputs; order 2: those of the sum of squares of all these.
static int all_of(const given *g, int order, eg_tensor **out) {
    eg_tensor *xs[MANY], *grads[MANY], *y = NULL, *sum = NULL;
    int n = eg_layer_weights(g->layer, xs, MANY);
    for (int i = 0; i < g->n && eg_dtype_of(g->x[i]) != EG_BOOL; i++) xs[n++] = g->x[i];
    eg_tape *outer = order == 2 ? eg_tape_begin() : NULL, *tape = eg_tape_begin();
    for (int i = 0; i < n; i++)
        if (!eg_is_variable(xs[i])) {
            eg_tape_watch(tape, xs[i]);
            if (outer) eg_tape_watch(outer, xs[i]);
        }
    eg_tensor *loss = weighed(g, &y);
    if (!loss || !eg_tape_gradients(tape, loss, xs, n, grads)) return 0;
    for (int i = 0; i < n && outer; i++) {
        eg_tensor *part = eg_reduce_sum(eg_square(grads[i]));
        sum = sum ? eg_add(sum, part) : part;
    }
    if (outer && !eg_tape_gradients(outer, sum, xs, n, grads)) return 0;
    for (int i = 0; i < n; i++) out[i] = grads[i];
    out[n++] = y;
    return n;
}
static void check_variant(const variant *v, int order, double tolerance) {
    EG_SCOPE;
    eg_tensor *got[MANY], *want[MANY];
    given g = given_of(v);
    REQUIRE(call(&g) != NULL);
    count_as_one();
    const int n = all_of(&g, order, got);
    const eg_random_state state = eg_random_get_state();
    CHECK_AS_ONE(1, 1);                                  // of order 2, on the way back to what came before
    eg_trap_nonfinite(true);
    CHECK_INT(all_of(&g, order, want), n);
    eg_trap_nonfinite(false);
    CHECK_AS_ONE(0, 0);
    CHECK(eg_random_get_state().seed == state.seed && eg_random_get_state().counter == state.counter);
    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        const double most = 1 + eg_item(eg_reduce_max(eg_abs(want[i])));
        CHECK_SAME(eg_div(got[i], most), eg_div(want[i], most), tolerance);
    }
    eg_layer_release(g.layer);
}
// Shapes below, at and above a block's and a tile's sizes; with parts of the queries, and of the keys.
static const int64_t shapes[][7] = {
    { 1, 1, 0, 1, 0, 1, 0 }, { 2, 5, 0, 2, 0, 3, 0 }, { 2, 33, 0, 3, 0, 16, 0 }, { 1, 70, 0, 4, 2, 8, 0 },
    { 2, 7, 40, 2, 0, 40, 20 }, { 1, 97, 35, 2, 1, 64, 33 }, { 1, 6, 0, 1, 0, 65, 0 }, { 2, 3, 200, 4, 1, 5, 9 },
    { 2, 1, 300, 4, 0, 32, 20 }, { 1, 2, 130, 2, 0, 17, 33 }, { 2, 1, 99, 2, 1, 9, 0 }, { 1, 100, 96, 2, 0, 17, 0 },
    { 1, 8, 0, 1, 0, 300, 7 }, { 1, 400, 0, 1, 0, 4, 0 }, { 1, 195, 583, 2, 1, 6, 3 },
};
enum { SHAPES = (int)(sizeof shapes / sizeof *shapes) };
TEST(values_and_gradients) {
    for (int s = 0; s < SHAPES; s++)
        for (int bits = 0; bits < 2 * MASKS; bits++) {
            const int64_t *a = shapes[s];
            variant v = { a[0], a[1], a[2], a[3], a[4], a[5], a[6], bits >= MASKS, bits % MASKS, EG_FLOAT64, 0 };
            if ((v.mask == OF_STEPS && v.keys) || (test_share > 1 && (s + bits) % 3)) continue;
            check_variant(&v, 1, 1e-12);
            v.dtype = EG_FLOAT32;
            check_variant(&v, 1, 1e-4);
            v.dropout = .4;
            check_variant(&v, 1, 2e-4);
            v.dtype = EG_FLOAT64;
            v.dropout = bits % 2 ? .3 : .9;
            check_variant(&v, 1, 2e-12);
        }
}
TEST(gradients_of_gradients) {
    for (int s = 1; s < 8; s++)
        for (int bits = 0; bits < 2 * MASKS; bits++) {
            const int64_t *a = shapes[s];
            variant v = { a[0], a[1], a[2], a[3], a[4], a[5], a[6], bits >= MASKS, bits % MASKS, EG_FLOAT64, 0 };
            if ((v.mask == OF_STEPS && v.keys) || (s + bits) % (test_share > 1 ? 7 : 3)) continue;
            check_variant(&v, 2, 1e-11);
            v.dropout = .4;
            check_variant(&v, 2, 1e-10);
        }
}
// In float32 the gradients are off by roundings alone, which D = sum(g y) makes larger where gradients of scores nearly
// cancel (see the row transformer_block in bench/RESULTS.md).
TEST(against_float64) {
    enum { T = 256, C = 64 };
    eg_layer *narrow = eg_layer_multi_head_attention(4, 16),
             *wide = eg_layer_multi_head_attention(4, 16, .dtype = EG_FLOAT64);
    eg_tensor *x = eg_mul(eg_random_normal(EG_SHAPE(2, T, C)), .1), *y = eg_random_normal(EG_SHAPE(2, T, C)), *v[2][8],
              *grads[2][8];
    REQUIRE(eg_call(narrow, x) && eg_call(wide, eg_cast(x, EG_FLOAT64)));
    CHECK_INT(eg_layer_weights(narrow, v[0], 8), 8);
    CHECK_INT(eg_layer_weights(wide, v[1], 8), 8);
    for (int i = 0; i < 8; i++) {
        CHECK(eg_assign(v[0][i], eg_mul(eg_random_normal(eg_shape_of(v[0][i])), .1)));
        CHECK(eg_assign(v[1][i], eg_cast(v[0][i], EG_FLOAT64)));
    }
    for (int k = 0; k < 2; k++) {
        const eg_dtype dtype = k ? EG_FLOAT64 : EG_FLOAT32;
        eg_tape *tape = eg_tape_begin();
        eg_trap_nonfinite(k);                            // op by op
        eg_tensor *out = eg_call(k ? wide : narrow, eg_cast(x, dtype)), *up = eg_cast(y, dtype);
        CHECK(eg_tape_gradients_from(tape, &out, 1, &up, v[k], 8, grads[k]));
        eg_trap_nonfinite(false);
    }
    for (int i = 0; i < 8; i++) {
        if (i == 3) continue;                            // the keys' bias, of which no score depends
        const double most = eg_item(eg_reduce_max(eg_abs(grads[1][i])));
        CHECK(eg_item(eg_reduce_max(eg_abs(eg_sub(eg_cast(grads[0][i], EG_FLOAT64), grads[1][i])))) < 1e-5 * most);
    }
    eg_layer_release(narrow);
    eg_layer_release(wide);
}
static eg_tensor *of_differences(eg_tensor *const *in, void *user) {
    given g = *(const given *)user;
    eg_tensor *y;
    for (int i = 0; i < g.n && eg_dtype_of(g.x[i]) != EG_BOOL; i++) g.x[i] = in[i];
    return weighed(&g, &y);
}
TEST(against_differences) {
    for (int mask = 0; mask < MASKS; mask++)
        for (int kind = 0; kind < 2; kind++) {
            EG_SCOPE;
            variant v = { 2, 4, kind ? 3 : 0, 2, kind, 3, 2, mask % 2 == 0, mask, EG_FLOAT64, mask % 3 ? 0 : .4 };
            if (mask == OF_STEPS && kind) continue;
            given g = given_of(&v);
            REQUIRE(call(&g) != NULL);                   // it draws the weights
            CHECK(eg_check_gradient(of_differences, &g, g.x, kind ? 2 : 1, .order = 2));
            eg_layer_release(g.layer);
        }
}

// ---- dropout

static bool step(eg_tensor *const *in, eg_tensor **out, void *layer) {
    eg_tensor *vars[8];
    const int n = eg_layer_weights(layer, vars, 8);
    eg_tape *tape = eg_tape_begin();
    out[0] = eg_call(layer, in[0], .training = true);
    eg_tensor *loss = eg_reduce_sum(eg_square(out[0]));
    return loss && eg_tape_gradients(tape, loss, vars, n, out + 1);
}
// Replays draw as eager calls do, one after another, of each length.
TEST(dropout_in_replays) {
    eg_layer *layer = eg_layer_multi_head_attention(2, 4, .causal = true, .dropout = .4);
    eg_function *f = eg_function_new(step, layer);
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 140, 6)), *got[9], *want[9];
    REQUIRE(eg_call(layer, x) != NULL);
    for (int i = 0; i < 12; i++) {
        EG_SCOPE;
        eg_tensor *in = i % 3 ? x : eg_slice(x, EG_SHAPE(0, 0, 0), EG_SHAPE(2, 97 + i, 6));
        if (i % 4 == 0) eg_seed((uint64_t)i);
        const eg_random_state before = eg_random_get_state();
        CHECK(eg_function_call(f, &in, 1, got, 9));
        const eg_random_state after = eg_random_get_state();
        eg_random_set_state(before);
        CHECK(step(&in, want, layer));
        CHECK(eg_random_get_state().counter == after.counter && after.counter != before.counter);
        for (int k = 0; k < 9; k++) CHECK_SAME(got[k], want[k], 0);
    }
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    eg_layer_release(layer);
}
static bool forward(eg_tensor *const *in, eg_tensor **out, void *layer) {
    return (out[0] = eg_call(layer, in[0], .training = true)) != NULL;
}
// Under a tape outside, whose line keeps the state of the draw; the last is the gradient's gradient.
TEST(dropout_in_replays_under_a_tape) {
    eg_layer *layer = eg_layer_multi_head_attention(2, 4, .dropout = .4);
    eg_function *f = eg_function_new(forward, layer);
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 9, 6));
    REQUIRE(eg_call(layer, x) != NULL);
    for (int i = 0; i < 8; i++) {
        EG_SCOPE;
        eg_tensor *dx[2], *ddx[2], *y;
        for (int traced = 0; traced < 2; traced++) {
            eg_seed((uint64_t)i);
            eg_tape *outer = eg_tape_begin(), *inner = eg_tape_begin();
            eg_tape_watch(outer, x), eg_tape_watch(inner, x);
            CHECK(traced ? eg_function_call(f, &x, 1, &y, 1) : forward(&x, &y, layer));
            dx[traced] = eg_tape_gradient(inner, eg_reduce_sum(eg_square(y)), x);
            ddx[traced] = eg_tape_gradient(outer, eg_reduce_sum(eg_square(dx[traced])), x);
        }
        CHECK_SAME(dx[1], dx[0], 1e-5);
        CHECK_SAME(ddx[1], ddx[0], 1e-4);
    }
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
    eg_layer_release(layer);
}
// As many weights are kept as shall be, in each part of the whole: with equal values each query sees the sum of what is
// kept.
TEST(dropout_keeps_the_mean) {
    enum { STEPS = 500, HEADS = 4 };
    eg_layer *layer = eg_layer_multi_head_attention(HEADS, 2, .dropout = .3, .no_bias = true,
                                                    .kernel_initializer = EG_INIT_IDENTITY);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, STEPS, HEADS * 2));
    eg_seed(1);
    eg_tensor *y = eg_call(layer, x, .training = true), *sums = y ? eg_reduce_mean(y, .axes = EG_AXES(1)) : NULL;
    const float *sum = (const float *)eg_data(sums);
    REQUIRE(sum != NULL);
    for (int i = 0; i < eg_size(sums); i++) CHECK_NEAR(sum[i], 1, .01);
    CHECK(eg_item(eg_reduce_max(eg_abs(eg_sub(y, 1)))) > .01);
    eg_layer_release(layer);
}

// ---- what goes op by op

TEST(what_is_not_one_op) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 3, 4)), *out[4];
    eg_layer *layer = eg_layer_multi_head_attention(2, 2), *drops = eg_layer_multi_head_attention(2, 2, .dropout = .5);
    REQUIRE(eg_call(layer, x) && eg_call(drops, x));
    count_as_one();
    CHECK(eg_call(layer, x, .training = true) && eg_call(drops, x) && eg_call(drops, x, .training = true));
    CHECK_AS_ONE(3, 0);
    CHECK(eg_call_multi(drops, &x, 1, out, 2, .training = true));
    CHECK(eg_call_multi(layer, &x, 1, out, 2));           // who asks for the scores gets them
    CHECK_SHAPE(out[1], 2, 2, 3, 3);
    CHECK_SAME(eg_call(layer, x), out[0], 1e-6);
    CHECK_AS_ONE(1, 0);
    CHECK_SHAPE(eg_call(layer, eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3, 4))), 0, 3, 4);
    CHECK_SHAPE(eg_call(layer, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 0, 4))), 2, 0, 4);
    eg_tensor *nobody[] = { x, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 0, 4)) };
    CHECK(eg_call_multi(layer, nobody, 2, out, 1));       // no keys: the bias alone
    CHECK_TENSOR(eg_reduce_max(eg_abs(out[0])), 0, 0);
    CHECK_AS_ONE(0, 0);
    eg_layer_release(layer);
    eg_layer_release(drops);
}

// ---- memory

#ifndef TEST_CUDA
// The scores of one head of so many steps would be 64 MB.
TEST(no_scores_are_held) {
    enum { STEPS = 4096 };
    const int64_t scores = (int64_t)STEPS * STEPS * 4;
    eg_tensor *x = eg_random_normal(EG_SHAPE(1, STEPS, 16)), *vars[8], *grads[8];
    for (int kind = 0; kind < 3; kind++) {                        // 1: with dropout; 2: with a mask of steps
        EG_SCOPE;
        eg_layer *layer = eg_layer_multi_head_attention(2, 16, .dropout = kind == 1 ? .2 : 0);
        eg_tensor *mask = kind == 2 ? eg_greater(eg_random_uniform(EG_SHAPE(1, STEPS)), 0.35) : NULL;
        REQUIRE(eg_call(layer, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 16))) != NULL);
        const int n = eg_layer_weights(layer, vars, 8);
        eg_memory_reset_peak();
        const int64_t before = eg_memory().peak_bytes;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *y = eg_call(layer, x, .training = true, .mask = mask);
        CHECK(eg_tape_gradients(tape, eg_reduce_sum(eg_square(y)), vars, n, grads));
        const int64_t held = eg_memory().peak_bytes - before;
        CHECK(held < scores / 4);
        if (held >= scores / 4) printf("    %lld bytes\n", (long long)held);
        eg_layer_release(layer);
    }
}
#endif

// ---- threads

static uint64_t bits_of(eg_tensor *x, uint64_t h) {
    x = eg_cast(x, EG_FLOAT64);
    const unsigned char *bytes = (const unsigned char *)eg_data(x);
    for (int64_t i = 0; bytes && i < eg_size(x) * 8; i++) h = (h ^ bytes[i]) * 1099511628211u;
    return h;
}
TEST(the_same_bits_with_any_number_of_threads) {
    static const int counts[] = { 1, 2, 3, 7 };
    static const variant all[] = {
        { 2, 130, 0, 3, 0, 16, 0, false, NO_MASK, EG_FLOAT32, 0 },
        { 1, 900, 0, 1, 0, 20, 0, true, NO_MASK, EG_FLOAT32, .2 },
        { 1, 300, 1000, 2, 1, 12, 5, false, OF_PAIRS, EG_FLOAT32, .5 },
        { 5, 200, 0, 4, 0, 8, 0, true, OF_STEPS, EG_FLOAT64, 0 },
#ifndef EAGER_OPENBLAS               // which adds up these projections in an order that depends on its threads
        { 3, 1, 2000, 4, 0, 40, 30, false, OF_KEYS, EG_FLOAT32, 0 },
#endif
    };
    const int number = eg_num_threads();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        EG_SCOPE;
        given g = given_of(&all[i]);
        uint64_t alone = 0;
        REQUIRE(call(&g) != NULL);
        for (int k = 0; k < 4; k++) {
            eg_tensor *out[MANY];
            CHECK(eg_set_num_threads(counts[k]));
            const int n = all_of(&g, 1, out);
            uint64_t bits = 14695981039346656037u;
            CHECK(n > 0);
            for (int j = 0; j < n; j++) bits = bits_of(out[j], bits);
            if (k == 0) alone = bits;
            else CHECK(bits == alone);
        }
        eg_layer_release(g.layer);
    }
    CHECK(eg_set_num_threads(number));
}

// ---- what is not finite

// Scores that are so large that they overflow have NaN as weights, as those of softmax do; others' rows stay.
TEST(what_is_not_finite) {
    for (int wide = 0; wide < 2; wide++) {
        EG_SCOPE;
        const eg_dtype dtype = wide ? EG_FLOAT64 : EG_FLOAT32;
        eg_layer *layer = eg_layer_multi_head_attention(1, 2, .kernel_initializer = EG_INIT_IDENTITY, .no_bias = true);
        for (int odd = 0; odd < 3; odd++) {
            const double value = odd == 0 ? (double)NAN : odd == 1 ? (double)INFINITY : 1e30;
            double numbers[] = { 1, 0, 0, value, 0, 1, 2, 0 };
            eg_tensor *x = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(1, 4, 2), numbers), dtype), *out[2],
                      *y = eg_call(layer, x);
            REQUIRE(y && eg_call_multi(layer, &x, 1, out, 2));
            const double *got = (const double *)eg_data(eg_cast(y, EG_FLOAT64)),
                         *want = (const double *)eg_data(eg_cast(out[0], EG_FLOAT64));
            for (int i = 0; i < 8; i++) {
                if (want[i] - want[i] == 0) CHECK_NEAR(got[i], want[i], 1e-5 * (1 + fabs(want[i])));
                else CHECK(got[i] - got[i] != 0);
            }
        }
        eg_layer_release(layer);
    }
}
