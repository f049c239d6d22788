// Out of memory at every allocation: each act below runs with its 1st, 2nd, ... n-th allocation failing until it gets
// through.
// Each failure must be a clean EG_ERROR_MEMORY (the act's results NULL), leak nothing, and leave no variable
// half-written.
#include "faults.h"

// ---- an allocator that fails on purpose

// once is not enough: the library trims and tries again
typedef enum way { ONCE, TWICE, FOR_EVER, ON_THE_DEVICE, WAYS } way;
static way faults_how;

static void faults_begin(way how, int64_t at) {
    faults_how = how;
    faults_start(at, how == ON_THE_DEVICE ? 0 : how == FOR_EVER ? FAULTS_FOR_EVER : how == TWICE ? FAULTS_TWICE : 1);
#ifdef TEST_GUARD
    guard_fail_at = how == ON_THE_DEVICE ? at : 0;
#elif defined(TEST_CUDA_HOST)
    cuda_host_malloc_fail_at = how == ON_THE_DEVICE ? at : 0;
    cuda_host_malloc_fails = 2;                          // it tries again when it has freed its cache
#endif
}
static void faults_end(void) {
    faults_stop();
#ifdef TEST_GUARD
    if (faults_how == ON_THE_DEVICE) faults.failed = guard_fail_at == 0;
    guard_fail_at = 0;
#elif defined(TEST_CUDA_HOST)
    if (faults_how == ON_THE_DEVICE) faults.failed = cuda_host_malloc_fail_at == 0;
    cuda_host_malloc_fail_at = 0;
#endif
}

// ---- the state that acts may change: all old or all new

enum { MOST = 12 };
typedef struct state {
    eg_tensor *v[MOST];                                  // variables, released at the end
    int n;
    eg_optimizer *optimizer;
    eg_tensor *x[MOST];                                  // inputs
} state;
typedef struct values { int n; int64_t size[40]; double *of[40]; } values;

static void values_take(values *a, const state *s) {
    eg_tensor *list[40];
    a->n = 0;
    for (int i = 0; i < s->n; i++) list[a->n++] = s->v[i];
    int more = s->optimizer ? eg_optimizer_state(s->optimizer, list + a->n, 40 - a->n) : 0;
    a->n += more;
    for (int i = 0; i < a->n; i++) {
        EG_SCOPE;
        a->size[i] = eg_size(list[i]);
        a->of[i] = (double *)malloc((size_t)(a->size[i] ? a->size[i] : 1) * sizeof(double));
        memcpy(a->of[i], eg_data(eg_cast(list[i], EG_FLOAT64)), (size_t)a->size[i] * sizeof(double));
    }
}
static void values_drop(values *a) {
    for (int i = 0; i < a->n; i++) free(a->of[i]);
    a->n = 0;
}
// A slot that is made during the act counts as old as it was made; so fewer are compared where there were fewer.
static bool values_same(const values *a, const values *b, int n) {
    for (int i = 0; i < n && i < a->n && i < b->n; i++)
        if (a->size[i] != b->size[i] || memcmp(a->of[i], b->of[i], (size_t)a->size[i] * sizeof(double)) != 0)
            return false;
    return true;
}

typedef struct act {
    bool (*setup)(state *s);
    bool (*run)(state *s);                               // true where everything came out right
} act;

static void sweep(act a, bool atomic) {
    values old = {0, {0}, {0}}, new = {0, {0}, {0}};
    for (int how = 0; how < WAYS; how++) {
        if (how == ON_THE_DEVICE && test_on_host) continue;
        int64_t n = 1, step = test_share > 1 || how == FOR_EVER ? 7 : 1;
        for (bool through = false; !through && n < 100000; n += n < 20 ? 1 : step) {
            state s = {{0}, 0, NULL, {0}};
            eg_scope scope = eg_scope_begin();
            eg_seed(1);
            bool ready = a.setup(&s);
            CHECK_INT(eg_error(), EG_OK);
            REQUIRE(ready);
            values before = {0, {0}, {0}}, after = {0, {0}, {0}};
            values_take(&before, &s);
            if (!old.n) old = before;
            eg_memory_trim();
            faults_begin((way)how, n);
            bool right = a.run(&s);
            faults_end();
            through = !faults.failed;
            if (through || how == ONCE) {
                CHECK(right);                            // once: the second try has it
                CHECK_INT(eg_error(), EG_OK);
            } else if (!right) {
                CHECK_INT(eg_error(), EG_ERROR_MEMORY);
                CHECK_CONTAINS(eg_error_message(), "out of memory");
                CHECK(!strstr(eg_error_message(), "(0 bytes"));
                CHECK_CONTAINS(eg_error_message(), "allocation.c:");        // the line of a call of this file's
            }
            eg_error_clear();
            values_take(&after, &s);
            if (right && !new.n && through) new = after;
            if (atomic && new.n && !through) {
                bool same = values_same(&after, right ? &new : &before, right ? new.n : before.n) ||
                            values_same(&after, &new, new.n);
                CHECK(same);
                if (!same)
                    printf("    right %d, %d values before, %d after, %d when it worked\n", right, before.n, after.n,
                           new.n);
            }
            if (old.of[0] != before.of[0]) values_drop(&before);
            if (new.of[0] != after.of[0]) values_drop(&after);
            for (int i = 0; i < s.n; i++) eg_release(s.v[i]);
            eg_optimizer_release(s.optimizer);
            eg_scope_end(scope);
            eg_shutdown();
            CHECK_INT(faults.live, 0);
            if (test_fails > 5) { printf("    way %d, allocation %lld\n", how, (long long)n); return; }
        }
        if (getenv("TEST_VERBOSE")) printf("    %s: way %d: %lld allocations\n", test_now->name, how, (long long)n);
    }
    values_drop(&old);
    values_drop(&new);
}
static bool sweep_begin(void) {
    eg_shutdown();
    return eg_set_allocator(faults_allocate, faults_free, NULL);
}
static void sweep_end(void) {
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}
#define SWEEP(name, atomic)                                                                                           \
    TEST(name) {                                                                                                      \
        act a = {setup_##name, run_##name};                                                                           \
        REQUIRE(sweep_begin());                                                                                       \
        sweep(a, atomic);                                                                                             \
        sweep_end();                                                                                                  \
    }

static bool add_variable(state *s, eg_tensor *initial, const char *name) {
    return (s->v[s->n++] = eg_variable(initial, name)) != NULL;
}
static bool is_all(eg_tensor *const *x, int n, bool there) {
    for (int i = 0; i < n; i++) if (!x[i] == there) return false;
    return true;
}

// ---- acts

static bool setup_training_step(state *s) {
    s->x[0] = eg_random_normal(EG_SHAPE(2, 6, 6, 1));
    s->x[1] = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 2);
    s->optimizer = eg_adam(.learning_rate = 0.1);
    return add_variable(s, eg_random_normal(EG_SHAPE(3, 3, 1, 2)), "filter") &&
           add_variable(s, eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "bias") &&
           add_variable(s, eg_random_normal(EG_SHAPE(8, 3)), "weights") && s->x[1] && s->optimizer;
}
static bool run_training_step(state *s) {
    EG_SCOPE;
    eg_tensor *grads[3], *inner[3];
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tensor *h = eg_relu(eg_add(eg_conv2d(s->x[0], s->v[0]), s->v[1]));
    h = eg_reshape(eg_max_pool2d(h), EG_SHAPE(2, -1));
    eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(s->x[1], eg_matmul(h, s->v[2])));
    bool ok = eg_tape_gradients(tape, loss, s->v, 3, inner);
    CHECK(is_all(inner, 3, ok));
    if (ok) loss = eg_add(loss, eg_mul(0.1, eg_add(eg_reduce_sum(eg_square(inner[0])), eg_norm(inner[2]))));
    ok = eg_tape_gradients(outer, ok ? loss : NULL, s->v, 3, grads);
    CHECK(is_all(grads, 3, ok));
    return eg_apply_gradients(s->optimizer, grads, s->v, 3) && ok && isfinite(eg_item(loss));
}
SWEEP(training_step, true)

static const double boundaries[] = {1, 2}, rates[] = {0.1, 0.2, 0.3};
static int which_optimizer;
static bool setup_optimizers(state *s) {
    s->x[0] = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    s->x[1] = eg_constant(EG_SHAPE(3), -1, 5, 0);
    switch (which_optimizer) {
        case 0: s->optimizer = eg_sgd(.momentum = 0.9, .nesterov = true, .global_clipnorm = 1); break;
        case 1: s->optimizer = eg_rmsprop(.centered = true, .clipnorm = 1); break;
        case 2:
            s->optimizer = eg_adam(.amsgrad = true, .clipvalue = 1, .schedule = eg_cosine_decay(0.1, 10, 0.1, 0.2, 3));
            break;
        case 3: s->optimizer = eg_adamw(.schedule = eg_piecewise_constant(boundaries, rates, 2)); break;
        case 4: s->optimizer = eg_sgd(.accumulate_steps = 2, .learning_rate = 0.5); break;
        default: s->optimizer = eg_ftrl(.schedule = eg_exponential_decay(0.1, 2, 0.5, true)); break;
    }
    if (!add_variable(s, eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), "a") ||
        !add_variable(s, eg_ones(EG_FLOAT32, EG_SHAPE(3)), "b") || !s->optimizer)
        return false;
    // The second step is the one that fails; of accumulated ones that is the one that updates.
    return eg_apply_gradients(s->optimizer, s->x, s->v, 2);
}
static bool run_optimizers(state *s) { return eg_apply_gradients(s->optimizer, s->x, s->v, 2); }
TEST(optimizers) {
    act a = {setup_optimizers, run_optimizers};
    REQUIRE(sweep_begin());
    for (which_optimizer = 0; which_optimizer < 6; which_optimizer++) sweep(a, true);
    sweep_end();
}

static bool setup_variables(state *s) {
    s->x[0] = eg_transpose(eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6));
    return add_variable(s, eg_ones(EG_FLOAT32, EG_SHAPE(3, 2)), "a") && s->x[0];
}
static bool run_variables(state *s) {
    EG_SCOPE;
    eg_tensor *v = eg_variable(s->x[0], "made here"), *w = eg_variable(eg_scalar(1), NULL);
    eg_optimizer *o = eg_rmsprop(.learning_rate = 1);
    bool ok = v && w && o && eg_assign(s->v[0], s->x[0]) == s->v[0];
    eg_optimizer_release(o);
    eg_release(v);
    eg_release(w);
    return ok;
}
SWEEP(variables, true)
static bool run_assign_add(state *s) { EG_SCOPE; return eg_assign_add(s->v[0], s->x[0]) != NULL; }
static bool run_assign_number(state *s) { EG_SCOPE; return eg_assign(s->v[0], 3) != NULL; }
static bool run_assign_slice(state *s) {
    EG_SCOPE;
    return eg_assign_slice(s->v[0], EG_SHAPE(1, 0), EG_SHAPE(2, 1), eg_constant(EG_SHAPE(2, 1), 8, 9)) != NULL;
}
#define setup_assign_add setup_variables
#define setup_assign_number setup_variables
#define setup_assign_slice setup_variables
SWEEP(assign_add, true)
SWEEP(assign_number, true)
SWEEP(assign_slice, true)

static bool setup_shapes(state *s) {
    s->x[0] = eg_random_normal(EG_SHAPE(4, 6));
    s->x[1] = eg_constant_of(EG_INT64, EG_SHAPE(3), 2, 0, 3);
    s->x[2] = eg_random_normal(EG_SHAPE(2, 4, 6));
    return s->x[0] && s->x[1] && s->x[2] && add_variable(s, s->x[0], "v");
}
static bool run_shapes(state *s) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *many[10], *parts[3], *rows[4], *x = s->v[0], *y, *indices = NULL;
    for (int i = 0; i < 10; i++) many[i] = eg_mul(x, i);
    y = eg_concat(many, 10, 1);
    y = eg_add(eg_reduce_sum(y), eg_reduce_sum(eg_stack(many, 10, -1)));
    bool ok = eg_split(x, 3, 1, parts);
    CHECK(is_all(parts, 3, ok));
    bool unstacked = eg_unstack(x, 4, 0, rows);
    CHECK(is_all(rows, 4, unstacked));
    y = eg_add(y, eg_reduce_max(eg_sort(x)));
    eg_tensor *top = eg_top_k(x, 2, &indices);
    CHECK(top != NULL || indices == NULL);
    y = eg_add(y, eg_reduce_mean(top));
    y = eg_add(y, eg_reduce_sum(eg_gather(x, s->x[1])));
    y = eg_add(y, eg_reduce_sum(eg_gather(x, s->x[1], .axis = 1)));
    y = eg_add(y, eg_reduce_sum(eg_gather_nd(x, eg_reshape(s->x[1], EG_SHAPE(3, 1)))));
    y = eg_add(y, eg_reduce_sum(eg_square(eg_segment_sum(ok ? parts[1] : NULL,
                                                         eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 1, 0, 1), 2))));
    y = eg_add(y, eg_reduce_sum(eg_einsum("ij,bij->b", (eg_tensor *[]){x, s->x[2]}, 2)));
    y = eg_add(y, eg_reduce_sum(eg_einsum("ij,kj->ik", (eg_tensor *[]){x, x}, 2)));
    y = eg_add(y, eg_reduce_sum(eg_pad(x, EG_PADS(1, 2, 1, 0), .mode = EG_PAD_REFLECT)));
    y = eg_add(y, eg_reduce_sum(eg_square(eg_pad(x, EG_PADS(1, 2, 1, 0)))));
    y = eg_add(y, eg_reduce_sum(eg_tile(x, EG_SHAPE(2, 1))));
    y = eg_add(y, eg_reduce_sum(eg_repeat(x, 2, 0)));
    y = eg_add(y, eg_reduce_sum(eg_reverse(x, EG_AXES(0))));
    y = eg_add(y, eg_reduce_sum(eg_cumsum(x, .axis = 1, .reverse = true)));
    y = eg_add(y, eg_reduce_prod(eg_add(1, eg_slice(x, EG_SHAPE(1, 1), EG_SHAPE(2, 2)))));
    y = eg_add(y, eg_reduce_variance(x, .axes = EG_AXES(0)));
    y = eg_add(y, eg_reduce_logsumexp(x));
    y = eg_add(y, eg_reduce_sum(eg_where(eg_greater(x, 0), x, eg_mul(2, x))));
    y = eg_add(y, eg_reduce_sum(eg_matmul(s->x[2], eg_broadcast_to(x, EG_SHAPE(2, 4, 6)), .transpose_b = true)));
    y = eg_add(y, eg_reduce_sum(eg_resize(eg_reshape(x, EG_SHAPE(1, 4, 6, 1)), 3, 5)));
    y = eg_add(y, eg_reduce_sum(eg_avg_pool2d(eg_reshape(x, EG_SHAPE(1, 4, 6, 1)))));
    y = eg_add(y, eg_reduce_sum(eg_one_hot(s->x[1], 4)));
    y = eg_add(y, eg_reduce_sum(eg_softmax_cross_entropy_with_logits(eg_softmax(s->x[0]), x)));
    y = eg_add(y, eg_reduce_sum(eg_log_softmax(x, .axis = EG_ZERO)));
    y = eg_add(y, eg_reduce_sum(eg_cast(eg_argmax(x), EG_FLOAT32)));
    y = eg_add(y, eg_reduce_sum(eg_cast(eg_cast(eg_floordiv(
            eg_cast(x, EG_INT32), eg_constant_of(EG_INT32, EG_SHAPE(6), 1, 2, 3, 4, 5, 6)), EG_UINT8), EG_FLOAT32)));
    y = eg_reduce_sum(y);
    eg_tensor *g = eg_tape_gradient(tape, y, s->v[0]);
    CHECK(!(g && !y));
    return ok && unstacked && indices && g && isfinite(eg_item(eg_reduce_sum(g))) && eg_error() == EG_OK;
}
SWEEP(shapes, true)

static eg_tensor *cube(eg_tensor *const *in, void *user) { (void)user; return eg_mul(in[0], eg_square(in[0])); }
static eg_tensor *dot(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_reduce_sum(eg_mul(in[0], eg_exp(in[1])));
}
static eg_tensor *sum_of_cubes(eg_tensor *const *in, void *user) { return eg_reduce_sum(cube(in, user)); }
static bool setup_functions(state *s) {
    s->x[0] = eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 1, 2);
    s->x[1] = eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 0.5, -1);
    return s->x[0] && s->x[1] && add_variable(s, s->x[0], "v");
}
static bool run_functions(state *s) {
    EG_SCOPE;
    eg_tensor *grads[2], *out[2];
    eg_gradient_pair pairs[2];
    int count = 0;
    eg_tensor *y = eg_value_and_gradients_function(dot, NULL, s->x, 2, grads);
    CHECK(is_all(grads, 2, y != NULL));
    bool ok = y && eg_nth_gradient(cube, NULL, s->x[0], 3) && eg_jvp(dot, NULL, s->x, s->x, 2) &&
              eg_hessian(sum_of_cubes, NULL, s->x[0]);
    bool product = eg_hvp(dot, NULL, s->x, s->x, 2, out);
    CHECK(is_all(out, 2, product));
    ok = ok && product && eg_check_gradient(dot, NULL, s->x, 2, .order = 2);
    ok = ok && eg_implicit_value_and_gradients(cube, NULL, s->v, pairs, 2, &count) && count == 1;
    eg_tape *tape = eg_tape_begin_persistent();
    return ok && tape && eg_tape_watch(tape, s->x[0]) && (y = eg_square(s->x[0])) &&
           eg_tape_jacobian(tape, y, s->x[0]) && eg_tape_batch_jacobian(tape, y, s->x[0]);
}
SWEEP(functions, true)

static eg_tensor *own_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    eg_tensor *e = c->saved[0] = eg_exp(in[0]);
    return eg_log(eg_add(e, 1));
}
static void own_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_sub(1, eg_div(1, eg_add(1, c->saved[0]))));
}
static bool pair_forward(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)c, (void)user;
    out[0] = eg_add(in[0], in[1]);
    out[1] = eg_mul(in[0], in[1]);
    return out[0] && out[1];
}
static void pair_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_add(c->upstream[0], c->upstream[1]);
    dx[1] = c->upstream[1];
}
static eg_tensor *own_loss(eg_tensor *const *in, void *user) {
    state *s = (state *)user;
    eg_tensor *out[2];
    if (!eg_custom_gradient_multi(pair_forward, pair_backward, NULL, (eg_tensor *[]){s->v[0], in[0]}, 2, out, 2)) {
        CHECK(is_all(out, 2, false));
        return NULL;
    }
    eg_tensor *y = eg_custom_gradient(own_forward, own_backward, NULL, out, 1);
    return eg_reduce_mean(eg_mul(y, out[1]));
}
static bool setup_custom(state *s) {
    s->optimizer = eg_adam();
    return setup_functions(s) && s->optimizer;
}
static bool run_custom(state *s) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *before = eg_reduce_sum(own_loss(s->x, s)), *g = eg_tape_gradient(tape, before, s->v[0]);
    return g && eg_minimize(s->optimizer, own_loss, s, s->x) != NULL;
}
SWEEP(custom, true)

static int printed;
static void swallow(const char *text, void *user) { (void)user; printed += (int)strlen(text); }
static bool setup_printing(state *s) {
    s->x[0] = eg_random_normal(EG_SHAPE(5, 4));
    s->x[1] = eg_transpose(s->x[0]);
    s->x[2] = eg_cast(eg_range(EG_FLOAT32, 0, 2000, 1), EG_FLOAT16);
    return s->x[1] && s->x[2] && add_variable(s, s->x[0], "v");
}
static bool run_printing(state *s) {
    EG_SCOPE;
    char text[600];
    eg_set_printer(swallow, NULL);
    printed = 0;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_tanh(eg_matmul(s->v[0], s->x[1]));
    eg_print(y);
    eg_print(eg_greater(s->x[1], 0));
    eg_print(eg_number(2));
    int64_t length = eg_format(s->x[1], text, sizeof text), half = eg_format(s->x[2], text, sizeof text);
    FILE *f = tmpfile();
    if (f) { eg_fprint(f, s->x[1]); fclose(f); }
    bool ok = y && tape && length > 100 && half > 40 && eg_error() == EG_OK;
    if (tape) eg_tape_print(tape);
    eg_op_print("gelu_tanh");
    ok = ok && eg_tape_dot(tape, text, sizeof text) > 100 && printed > 300 && eg_error() == EG_OK;
    eg_set_printer(NULL, NULL);
    return ok;
}
SWEEP(printing, true)

static int deleted;
static void count_deleted(void *data, void *user) { (void)data, (void)user; deleted++; }
static bool setup_making(state *s) { return add_variable(s, eg_scalar(1), "v"); }
static bool run_making(state *s) {
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    (void)s;
    bool ok;
    deleted = 0;
    {
        EG_SCOPE;
        eg_tensor *w = eg_wrap_data(EG_FLOAT32, EG_SHAPE(6), data, count_deleted, NULL);
        ok = w && eg_constant(EG_SHAPE(2), 1, 2) && eg_from_data(EG_FLOAT32, EG_SHAPE(2, 3), data) &&
             eg_eye(EG_INT32, 3, 4) && eg_range(EG_INT64, 5, 0, -1) && eg_linspace(EG_FLOAT64, 0, 1, 5) &&
             eg_ones_like(w) && eg_random_permutation(9) && eg_random_integers(EG_SHAPE(3), 0, 9) &&
             eg_random_truncated_normal(EG_SHAPE(3)) && eg_random_bernoulli(EG_SHAPE(3)) && eg_to(w, "cpu:0");
        if (!w) CHECK_INT(deleted, 0);
        eg_tensor *view = w ? eg_strided_slice(w, EG_SHAPE(5), EG_SHAPE(EG_END), EG_SHAPE(-2)) : NULL;
        const float *p = view ? (const float *)eg_data(view) : NULL;
        ok = ok && p && p[0] == 6 && p[1] == 4 && p[2] == 2;
        ok = ok && eg_assert_near(view, eg_constant(EG_SHAPE(3), 6, 4, 2), 0) && eg_item(eg_number(4)) == 4 &&
             eg_data(eg_number(4)) != NULL;
        if (!w) { CHECK_INT(deleted, 0); deleted = 1; }
    }
    CHECK_INT(deleted, 1);
    return ok;
}
SWEEP(making, true)

static bool setup_scopes(state *s) { return add_variable(s, eg_scalar(1), "v"); }
static bool run_scopes(state *s) {
    bool ok = true;
    int64_t live = eg_memory().live_tensors;
    for (int i = 0; i < 3; i++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin_persistent();
        for (int k = 0; k < 40; k++) {                       // more than the first stack, map and list of lines hold
            EG_SCOPE;
            ok = eg_keep(eg_add(eg_square(s->v[0]), k)) && ok;
        }
        ok = ok && tape && eg_tape_watched_variables(tape, NULL, 0) == 1;
        eg_scope_begin();
    }
    if (eg_error() == EG_OK) CHECK_INT(eg_memory().live_tensors, live);
    return ok && eg_error() == EG_OK;
}
SWEEP(scopes, true)

static bool setup_trap(state *s) {
    s->optimizer = eg_adam();
    return add_variable(s, eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), "v") && s->optimizer;
}
static bool run_trap(state *s) {
    EG_SCOPE;
    eg_trap_nonfinite(true);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_reduce_sum(eg_sqrt(eg_transpose(eg_square(s->v[0])))), *g = eg_tape_gradient(tape, y, s->v[0]);
    bool ok = eg_apply_gradients(s->optimizer, &g, s->v, 1);
    eg_trap_nonfinite(false);
    return ok && g;
}
SWEEP(trap, true)

// Two steps of eg_fit with all around them, the model made and given back each time.
static bool setup_fit(state *s) {
    s->x[0] = eg_random_normal(EG_SHAPE(4, 3));
    s->x[1] = eg_constant_of(EG_INT32, EG_SHAPE(4), 1, 0, 1, 1);
    return s->x[0] && s->x[1];
}
static bool run_fit(state *s) {
    EG_SCOPE;
    eg_layer *model = eg_sequential(eg_layer_dense(2));
    bool ok = eg_compile(model, eg_adam(), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY);
    const eg_history *h = eg_fit_arrays(model, s->x[0], s->x[1], .batch_size = 2, .validation_x = s->x[0],
                                        .validation_y = s->x[1], .class_weights = EG_CLASS_WEIGHTS(1, 2), .quiet = true,
                                        .callbacks = EG_CALLBACKS(eg_callback_early_stopping(.restore_best = true)));
    ok = ok && h && eg_history_epochs(h) == 1 && eg_predict(model, s->x[0], .batch_size = 2) != NULL;
    eg_layer_release(model);
    return ok;
}
SWEEP(fit, false)

#ifndef TEST_DEVICE
// With a NULL for good, even a thread's first call of all is only an error.
static eg_function *traced;
static bool traced_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    state *s = (state *)user;
    eg_tensor *grads[2];
    eg_tape *tape = eg_tape_begin();
    eg_tensor *kept = eg_cast(eg_random_bernoulli(EG_SHAPE(4, 3), .probability = 0.7), EG_FLOAT32);
    eg_tensor *x = eg_add(eg_mul(in[0], kept), s->x[1]);                      // a captured tensor
    eg_tensor *loss = eg_reduce_mean(eg_square(eg_tanh(eg_add(eg_matmul(x, s->v[0]), s->v[1]))));
    if (!eg_tape_gradients(tape, loss, s->v, 2, grads) || !eg_apply_gradients(s->optimizer, grads, s->v, 2))
        return false;
    out[0] = eg_keep(loss);
    return true;
}
static bool run_traced_call(state *s) {
    EG_SCOPE;
    eg_tensor *y;
    bool ok = eg_function_call(traced, s->x, 1, &y, 1);
    CHECK(!y == !ok);
    return ok && isfinite(eg_item(y));
}
static bool setup_traced_first_calls(state *s) {
    s->x[0] = eg_random_normal(EG_SHAPE(4, 3));
    s->x[1] = eg_random_normal(EG_SHAPE(4, 3));
    s->optimizer = eg_adam(.learning_rate = 0.1);
    return add_variable(s, eg_random_normal(EG_SHAPE(3, 2)), "w") &&
           add_variable(s, eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "b") && s->x[0] && s->x[1] && s->optimizer;
}
static bool run_traced_first_calls(state *s) {            // the last of them run the list
    traced = eg_function_new(traced_body, s);
    bool ok = traced != NULL;
    for (int i = 0; i < 7 && traced; i++) ok = run_traced_call(s) && ok;
    eg_function_release(traced);
    return ok;
}
SWEEP(traced_first_calls, false)
static bool setup_traced_replay(state *s) {
    if (!setup_traced_first_calls(s)) return false;
    traced = eg_function_new(traced_body, s);
    for (int i = 0; i < 6; i++) if (!run_traced_call(s)) return false;         // the first makes the optimizer's slots
    CHECK_INT(eg_function_counts(traced).replays, 1);
    return true;
}
static bool run_traced_replay(state *s) {
    bool ok = run_traced_call(s);
    if (traced) eg_function_release(traced);
    traced = NULL;
    return ok;
}
SWEEP(traced_replay, true)
// A step in the middle of a replay needs memory to work in: without it the replay is as if it had not begun.
static bool assigns_and_convolves(eg_tensor *const *in, eg_tensor **out, void *user) {
    state *s = (state *)user;
    if (!eg_assign_add(s->v[0], 1) || !(out[0] = eg_conv2d(in[0], s->x[1]))) return false;
    return eg_apply_gradients(s->optimizer, s->x, s->v + 1, 1);
}
// A function of that body, called four times, on pictures of `pixels` a side and filters of `taps`.
static eg_function *convolving_function(state *s, int64_t pixels, int64_t taps, int64_t channels) {
    s->x[0] = eg_ones(EG_FLOAT32, EG_SHAPE(2, pixels, pixels, channels));
    s->x[1] = eg_ones(EG_FLOAT32, EG_SHAPE(taps, taps, channels, channels));
    s->v[0] = eg_variable(eg_scalar(0), "count");
    s->v[1] = eg_variable(eg_zeros_like(s->x[0]), "w");
    s->optimizer = eg_sgd(.learning_rate = 1);
    eg_function *f = eg_function_new(assigns_and_convolves, s, .no_recheck = true);
    eg_tensor *y;
    for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, s->x, 1, &y, 1));
    return f;
}
static void convolving_release(state *s, eg_function *f) {
    eg_function_release(f);
    for (int i = 0; i < 2; i++) eg_release(s->v[i]);
    eg_optimizer_release(s->optimizer);
}
TEST(a_replay_without_memory_has_not_begun) {
    state s;
    memset(&s, 0, sizeof s);
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    {
        EG_SCOPE;
        eg_function *f = convolving_function(&s, 40, 5, 8);
        eg_tensor *y;
        int64_t replays = eg_function_counts(f).replays, failed = 0;
        bool through = false;
        CHECK(replays >= 2);
        for (int64_t n = 1; n < 500 && !through; n++) {
            EG_SCOPE;
            const double before = eg_item(s.v[0]);
            eg_memory_trim();
            faults_start(n, FAULTS_FOR_EVER);
            const bool ok = eg_function_call(f, s.x, 1, &y, 1);
            faults_stop();
            if (!ok) CHECK_INT(eg_error(), EG_ERROR_MEMORY);
            eg_error_clear();
            CHECK_NEAR(eg_item(s.v[0]), before + ok, 0);
            CHECK_NEAR(eg_item(eg_reduce_mean(s.v[1])), -before - ok, 0);
            failed += !ok;
            through = !faults.failed;
        }
        CHECK(through && failed > 1);
        CHECK_STR(eg_function_reason(f), NULL);
        convolving_release(&s, f);
    }
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}
// All memory that a replay needs is taken before it changes anything: an update in place, an assignment of an input, a
// call of C, a draw. So a replay without memory leaves variables, slots and counters as they were, and calls nothing,
// also where it is the tape of a caller that lacks the memory for the call's line.
typedef struct effects { eg_tensor *v[3]; eg_optimizer *optimizer; int calls; } effects;
static bool counted_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    ((effects *)user)->calls++;
    out[0] = in[0];
    return true;
}
static bool effects_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    effects *e = (effects *)user;
    eg_tensor *h, *slope = eg_mul(in[0], 0.5);
    if (!eg_apply_gradients(e->optimizer, &slope, e->v, 1) || !eg_assign_add(e->v[1], 1)) return false;
    if (!eg_host_call(counted_call, e, in, 1, &h, 1) || !eg_assign(e->v[2], in[0])) return false;
    out[0] = eg_keep(eg_mul(eg_mul(h, in[0]), eg_add(eg_random_uniform(EG_SCALAR), e->v[0])));
    return out[0] && eg_assign(e->v[1], eg_mul(e->v[1], 2));
}
static void effects_begin(effects *e) {
    memset(e, 0, sizeof *e);
    for (int i = 0; i < 3; i++) e->v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(70), i), "v");
    e->optimizer = eg_adam(.learning_rate = .1);
}
static void effects_end(effects *e) {
    for (int i = 0; i < 3; i++) eg_release(e->v[i]);
    eg_optimizer_release(e->optimizer);
}
static void effects_without_memory(bool taped) {
    effects e, twin;
    int64_t failed = 0;
    bool through = false;
    effects_begin(&e);
    effects_begin(&twin);
    eg_function *f = eg_function_new(effects_body, &e, .no_recheck = true);
    for (int n = -5; n < 500 && !through; n++) {
        EG_SCOPE;
        const eg_random_state random = eg_random_get_state();
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(70), 0.01 * n), *y, *want, *g = x, *g_want = x;
        eg_tape *tape = taped ? eg_tape_begin() : NULL;
        if (tape) eg_tape_watch(tape, x);
        eg_memory_trim();
        if (n > 0) faults_start(n, FAULTS_FOR_EVER);
        const bool ok = eg_function_call(f, &x, 1, &y, 1);
        faults_stop();
        CHECK(ok || (n > 0 && eg_error() == EG_ERROR_MEMORY));
        eg_error_clear();
        if (ok && tape) CHECK((g = eg_tape_gradient(tape, y, x)) != NULL);
        if (ok) {
            eg_random_set_state(random);
            eg_tape *other = taped ? eg_tape_begin() : NULL;
            if (other) eg_tape_watch(other, x);
            CHECK(effects_body(&x, &want, &twin));
            if (other) CHECK((g_want = eg_tape_gradient(other, want, x)) != NULL);
            CHECK_SAME(y, want, 0);
            CHECK_SAME(g, g_want, 0);
        } else CHECK_INT((int64_t)(eg_random_get_state().counter - random.counter), 0);
        CHECK_INT(e.calls, twin.calls);
        CHECK_INT(eg_optimizer_steps(e.optimizer), eg_optimizer_steps(twin.optimizer));
        for (int i = 0; i < 3; i++) CHECK_SAME(e.v[i], twin.v[i], 0);
        failed += !ok;
        through = n > 0 && !faults.failed;
    }
    CHECK(through && failed > 4);
    CHECK_STR(eg_function_reason(f), NULL);
    CHECK(eg_function_counts(f).replays >= 4);
    eg_function_release(f);
    effects_end(&e);
    effects_end(&twin);
}
TEST(a_replay_takes_all_memory_before_its_first_effect) {
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    for (int taped = 0; taped < 2; taped++) {
        EG_SCOPE;
        effects_without_memory(taped);
    }
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}
// Calls that lack the memory to write a list say nothing about the body: with memory it is traced again.
TEST(tries_without_memory_do_not_count) {
    state s;
    memset(&s, 0, sizeof s);
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    {
        EG_SCOPE;
        eg_function *f = convolving_function(&s, 4, 3, 2);
        eg_tensor *y;
        bool through = false;
        for (int64_t n = 1; n < 500 && !through; n++) {
            EG_SCOPE;
            eg_set_trainable(s.v[0], n % 2);                                // each call is compared
            eg_memory_trim();
            faults_start(n, FAULTS_FOR_EVER);
            (void)eg_function_call(f, s.x, 1, &y, 1);
            faults_stop();
            eg_error_clear();
            through = !faults.failed;
        }
        CHECK(through);
        const int64_t replays = eg_function_counts(f).replays;
        for (int i = 0; i < 4; i++) CHECK(eg_function_call(f, s.x, 1, &y, 1));
        CHECK_STR(eg_function_reason(f), NULL);
        CHECK(eg_function_counts(f).replays >= replays + 3);
        convolving_release(&s, f);
    }
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}
// A length whose list is derived again, and one that is new, behind more lengths than lists are kept for.
static bool lengths_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *x = eg_matmul(eg_mul(in[0], (double)eg_dim(in[0], 0)), eg_full(EG_FLOAT32, EG_SHAPE(2, 2), 2));
    out[0] = eg_keep(eg_reduce_mean(eg_tanh(eg_add(x, 1))));
    return out[0] != NULL;
}
static bool lengths_taped;                                  // under a tape, whose gradient is asked for
static bool lengths_call(int64_t n) {
    EG_SCOPE;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(n, 2)), *y = NULL;
    eg_tape *tape = lengths_taped ? eg_tape_begin() : NULL;
    if (!x || (lengths_taped && !(tape && eg_tape_watch(tape, x)))) return false;
    if (!eg_function_call(traced, &x, 1, &y, 1) || fabs(eg_item(y) - tanh(4.0 * (double)n + 1)) > 1e-6) return false;
    return !tape || eg_tape_gradient(tape, y, x) != NULL;
}
static bool setup_traced_lengths(state *s) {
    (void)s;
    traced = eg_function_new(lengths_body, NULL);
    bool ok = traced != NULL;
    for (int i = 0; i < 69 && ok; i++) ok = lengths_call(2 + i);
    if (ok) CHECK_INT(eg_function_counts(traced).derived, 67);
    return ok;
}
static bool run_traced_lengths(state *s) {
    (void)s;
    bool ok = lengths_call(4) && lengths_call(90);
    eg_function_release(traced);
    traced = NULL;
    return ok;
}
SWEEP(traced_lengths, true)
static bool setup_traced_lengths_taped(state *s) {
    lengths_taped = true;
    const bool ok = setup_traced_lengths(s);
    lengths_taped = false;
    return ok;
}
static bool run_traced_lengths_taped(state *s) {
    lengths_taped = true;
    const bool ok = run_traced_lengths(s);
    lengths_taped = false;
    return ok;
}
SWEEP(traced_lengths_taped, true)
// The same of two lengths, and of a way that is new for them.
static bool way_of_twos(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(in[0], 2)) != NULL;
}
static bool way_of_negatives(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_negative(in[0])) != NULL;
}
static bool pairs_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *x = eg_mul(eg_mul(in[0], (double)eg_dim(in[0], 0)), in[1]), *y;
    if (!eg_cond(eg_greater(eg_reduce_sum(in[1]), 0), way_of_twos, way_of_negatives, user, &x, 1, &y, 1)) return false;
    out[0] = eg_keep(eg_reduce_mean(y));
    return out[0] != NULL;
}
static bool pairs_call(int64_t n, int64_t m, int sign) {
    EG_SCOPE;
    eg_tensor *x[2] = { eg_ones(EG_FLOAT32, EG_SHAPE(n, 1)), eg_full(EG_FLOAT32, EG_SHAPE(m), sign) }, *y = NULL;
    return eg_function_call(traced, x, 2, &y, 1) && eg_item(y) == (double)(sign > 0 ? 2 * n : n);
}
static bool setup_traced_pairs(state *s) {
    (void)s;
    traced = eg_function_new(pairs_body, NULL);
    bool ok = traced != NULL;
    for (int i = 0; i < 99 && ok; i++) ok = pairs_call(2 + i / 9, 2 + i % 9, 1);
    if (ok) CHECK_INT(eg_function_counts(traced).traces, 4);
    return ok;
}
static bool run_traced_pairs(state *s) {
    (void)s;
    bool ok = pairs_call(4, 4, 1) && pairs_call(20, 30, 1) && pairs_call(4, 4, -1);
    eg_function_release(traced);
    traced = NULL;
    return ok;
}
SWEEP(traced_pairs, true)
static bool setup_traced_joined(state *s) {                 // the first pair that follows from two open lists
    (void)s;
    traced = eg_function_new(pairs_body, NULL);
    return traced && pairs_call(2, 2, 1) && pairs_call(2, 3, 1) && pairs_call(3, 2, 1) && pairs_call(3, 3, 1);
}
static bool run_traced_joined(state *s) {
    (void)s;
    bool ok = pairs_call(5, 4, 1);
    eg_function_release(traced);
    traced = NULL;
    return ok;
}
SWEEP(traced_joined, true)
#define setup_traced_shown setup_traced_replay
static bool run_traced_shown(state *s) {
    char text[64];
    printed = 0;
    eg_set_printer(swallow, NULL);
    bool ok = eg_function_dot(traced, text, sizeof text) > 0 && eg_function_print(traced) &&
              eg_function_cost(traced, s->x, 1, 1, 2) && printed > 500;
    eg_set_printer(NULL, NULL);
    CHECK(eg_function_trim(traced) >= 0);
    eg_function_release(traced);
    traced = NULL;
    return ok;
}
SWEEP(traced_shown, false)

static bool taped_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    state *s = (state *)user;
    eg_tensor *y = eg_tanh(eg_add(eg_matmul(eg_mul(in[0], s->x[1]), s->v[0]), s->v[1]));
    out[0] = eg_keep(eg_mul(y, eg_strided_slice(y, EG_SHAPE(0, 0), EG_SHAPE(4, 1), EG_SHAPE(1, 1))));
    return out[0] != NULL;
}
// A call under two tapes, and its second gradients.
static bool run_taped_call(state *s) {
    EG_SCOPE;
    eg_tensor *y, *grads[3] = { NULL, NULL, NULL }, *xs[] = { s->x[0], s->v[0], s->v[1] };
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    bool ok = outer && tape && eg_tape_watch(outer, s->x[0]) && eg_tape_watch(tape, s->x[0]) &&
              eg_function_call(traced, s->x, 1, &y, 1) && eg_tape_gradients(tape, y, xs, 3, grads) &&
              eg_tape_gradients(outer, eg_reduce_sum(eg_square(grads[0])), xs, 3, grads);
    if (!ok) CHECK(!grads[0] || eg_error() != EG_OK);
    return ok && isfinite(eg_item(eg_reduce_sum(grads[0])));
}
static bool run_taped_first_calls(state *s) {
    traced = eg_function_new(taped_body, s);
    bool ok = traced != NULL;
    for (int i = 0; i < 6 && traced; i++) ok = run_taped_call(s) && ok;
    eg_function_release(traced);
    return ok;
}
static bool setup_taped_first_calls(state *s) { return setup_traced_first_calls(s); }
SWEEP(taped_first_calls, false)
static bool setup_taped_replay(state *s) {
    if (!setup_traced_first_calls(s)) return false;
    traced = eg_function_new(taped_body, s);
    for (int i = 0; i < 6; i++) if (!run_taped_call(s)) return false;
    CHECK_INT(eg_function_counts(traced).replays, 2);
    return true;
}
static bool run_taped_replay(state *s) {
    bool ok = run_taped_call(s);
    if (traced) eg_function_release(traced);
    traced = NULL;
    return ok;
}
SWEEP(taped_replay, true)

// s -> tanh(s W), at most 3 times, then over the rows of x, each result collected.
static bool flow_goes_on(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_less(eg_reduce_sum(in[0]), 1e6);
    return out[0] != NULL;
}
static bool flow_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_tanh(eg_matmul(in[0], ((state *)user)->v[0]));
    return out[0] != NULL;
}
static bool flow_twice(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_mul(in[0], 2);
    return out[0] != NULL;
}
static bool flow_row(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_add(in[0], eg_mul(in[1], ((state *)user)->v[0]));
    out[1] = eg_square(out[0]);
    return out[1] != NULL;
}
static bool setup_control_flow(state *s) {
    s->x[0] = eg_random_normal(EG_SHAPE(4, 3));
    return add_variable(s, eg_random_normal(EG_SHAPE(3, 3)), "w") && s->x[0];
}
static bool run_control_flow(state *s) {
    EG_SCOPE;
    eg_tensor *y[2] = { NULL, NULL }, *carry = s->v[0], *z, *row, *g;
    eg_tape *tape = eg_tape_begin();
    bool ok = tape && eg_while(flow_goes_on, flow_body, s, &s->x[0], &z, 1, .max_steps = 3) && (row = eg_index(z, 0)) &&
              eg_scan(flow_row, s, &carry, &y[0], 1, &z, 1, &y[1], 1) &&
              eg_cond(eg_less(eg_reduce_sum(row), 1e6), flow_body, flow_body, s, &z, 1, &y[0], 1) &&
              (g = eg_tape_gradient(tape, eg_add(eg_reduce_sum(y[0]), eg_reduce_sum(y[1])), s->v[0])) != NULL;
    return ok;
}
SWEEP(control_flow, true)
// The same in a traced function, whose calls go one way and the other.
static bool flow_traced_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    state *s = (state *)user;
    eg_tensor *y;
    return eg_assign_sub(s->v[0], 0) && eg_cond(eg_less(eg_reduce_sum(in[0]), 0), flow_body, flow_twice, s, in, 1, &y,
                                                1) &&
           eg_while(flow_goes_on, flow_body, s, &y, out, 1, .max_steps = 2);
}
static bool run_traced_flow_call(state *s, int i) {
    EG_SCOPE;
    eg_tensor *y, *x = i % 2 ? s->x[0] : s->x[1];
    bool ok = eg_function_call(traced, &x, 1, &y, 1);
    return ok && isfinite(eg_item(eg_reduce_sum(y)));
}
static bool setup_traced_flow(state *s) {
    if (!setup_control_flow(s)) return false;
    s->x[0] = eg_full(EG_FLOAT32, EG_SHAPE(4, 3), 1);
    s->x[1] = eg_full(EG_FLOAT32, EG_SHAPE(4, 3), -1);
    return s->x[0] && s->x[1];
}
static bool run_traced_flow(state *s) {
    traced = eg_function_new(flow_traced_body, s);
    bool ok = traced != NULL;
    for (int i = 0; i < 8 && traced; i++) ok = run_traced_flow_call(s, i) && ok;
    if (traced) eg_function_release(traced);
    traced = NULL;
    return ok;
}
SWEEP(traced_flow, false)

// Why a gradient is missing is learned in the first run of a gradient's function: where that run lacks memory, a later
// one learns it.
static bool picks_second(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_mul(in[1], 2)) != NULL;
}
static bool picking_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return eg_host_call(picks_second, NULL, in, 2, out, 1, .differentiable = true) && eg_keep(out[0]);
}
// One step; the reason goes to text. With `at` from 1 on, that allocation fails in the gradient.
static bool missing_step(eg_function *f, int64_t at, bool *through, char *text, size_t size) {
    EG_SCOPE;
    eg_tensor *x[] = { eg_ones(EG_FLOAT32, EG_SHAPE(2)), eg_ones(EG_FLOAT32, EG_SHAPE(2)) }, *y, *g[2];
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < 2; i++) eg_tape_watch(tape, x[i]);
    if (!eg_function_call(f, x, 2, &y, 1)) return false;
    if (at) faults_begin(TWICE, at);
    const bool ok = eg_tape_gradients(tape, y, x, 2, g);
    if (at) {
        faults_end();
        *through = !faults.failed;
    }
    if (ok) snprintf(text, size, "%s", eg_tape_unconnected_reason());
    return ok && !g[0] && g[1];
}
TEST(reasons_are_not_lost_without_memory) {
    char first[400] = "", text[400];
    REQUIRE(sweep_begin());
    bool through = false;
    for (int64_t at = 0; !through; at++) {
        eg_function *f = eg_function_new(picking_body, NULL, .no_recheck = true);
        const bool ok = missing_step(f, at, &through, at ? text : first, sizeof text);
        if (at && !ok) CHECK_INT(eg_error(), EG_ERROR_MEMORY);
        eg_error_clear();
        for (int i = 0; i < 2; i++) {
            CHECK(missing_step(f, 0, NULL, text, sizeof text));
            CHECK(!strcmp(first, text));
            if (strcmp(first, text)) printf("    allocation %d: %s\n", (int)at, text);
        }
        eg_function_release(f);
        if (test_fails > 5) break;
    }
    CHECK_CONTAINS(first, "inside an eg_host_call");
    sweep_end();
}
TEST(no_memory_from_the_start) {
    REQUIRE(sweep_begin());
    faults_begin(FOR_EVER, 1);
    CHECK_ERROR(eg_scalar(1), EG_ERROR_MEMORY, "out of memory");
    CHECK_ERROR(eg_tape_begin(), EG_ERROR_MEMORY, "out of memory");
    CHECK_ERROR(eg_adam(), EG_ERROR_MEMORY, "out of memory");
    eg_scope scope = eg_scope_begin();
    CHECK_INT(eg_error(), EG_ERROR_MEMORY);
    eg_error_clear();
    eg_scope_end(scope);
    eg_memory_trim();
    CHECK_INT(eg_memory().live_tensors, 0);
    faults_end();
    sweep_end();
}
#endif

static bool setup_sequences(state *s) {
    s->x[0] = eg_random_normal(EG_SHAPE(2, 3, 2));
    s->x[1] = eg_constant_of(EG_BOOL, EG_SHAPE(2, 3), 1, 1, 0, 1, 1, 1);
    return s->x[0] && s->x[1] && add_variable(s, s->x[0], "x");
}
static bool run_sequences(state *s) {
    EG_SCOPE;
    eg_layer *model = eg_sequential(eg_layer_lstm(2, .return_sequences = true, .dropout = .1),
                                    eg_layer_bidirectional(eg_layer_gru(2, .return_sequences = true)),
                                    eg_layer_multi_head_attention(2, 2, .causal = true), eg_layer_simple_rnn(1));
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_call(model, s->v[0], .training = true, .mask = s->x[1]), *vars[32], *grads[32];
    int n = y ? eg_layer_trainable_weights(model, vars, 32) : 0;
    bool ok = n > 0 && eg_tape_gradients(tape, y, vars, n, grads);
    if (n) CHECK(is_all(grads, n, ok));
    eg_layer_release(model);
    return ok;
}
SWEEP(sequences, true)
