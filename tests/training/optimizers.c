// Variables, optimizers, schedules. The fixtures hold what Keras computes; here stand the rules around it: what
// changes, what must not, what is an error.
#include "test.h"

// ---- variables ----------------------------------------------------------------------------------------------------

TEST(assign_add_sub) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v");
    CHECK(eg_is_variable(v) && eg_trainable(v));
    CHECK_STR(eg_name_of(v), "v");
    CHECK(eg_assign(v, eg_constant(EG_SHAPE(2), 5, 6)) == v);
    CHECK_TENSOR(v, 0, 5, 6);
    CHECK(eg_assign_add(v, eg_constant(EG_SHAPE(2), 1, 2)) == v);
    CHECK_TENSOR(v, 0, 6, 8);
    CHECK(eg_assign_sub(v, 1) == v);
    CHECK_TENSOR(v, 0, 5, 7);
    CHECK_TENSOR(eg_assign(v, 3), 0, 3, 3);
    CHECK_TENSOR(eg_assign_add(v, v), 0, 6, 6);
    CHECK_TENSOR(eg_assign(v, v), 0, 6, 6);
    eg_release(v);
}

TEST(assign_slice) {
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)), "v"), *before = eg_read(v);
    CHECK(eg_assign_slice(v, EG_SHAPE(0, 1), EG_SHAPE(2, 2), eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)) == v);
    CHECK_TENSOR(v, 0, 0, 1, 2, 0, 3, 4);
    CHECK(eg_assign_slice(v, EG_SHAPE(1, 0), EG_SHAPE(1, 3), 7) == v);
    CHECK_TENSOR(v, 0, 0, 1, 2, 7, 7, 7);
    // from itself
    CHECK(eg_assign_slice(v, EG_SHAPE(0, 0), EG_SHAPE(1, 2), eg_slice(v, EG_SHAPE(0, 1), EG_SHAPE(1, 2))) == v);
    CHECK_TENSOR(v, 0, 1, 2, 2, 7, 7, 7);
    CHECK_TENSOR(before, 0, 0, 0, 0, 0, 0, 0);
    CHECK_ERROR(eg_assign_slice(v, EG_SHAPE(1, 0), EG_SHAPE(2, 3), 7), EG_ERROR_INDEX, "");
    CHECK_ERROR(eg_assign_slice(v, EG_SHAPE(1, 0), EG_SHAPE(1, 3), eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2))),
                EG_ERROR_SHAPE, "eg_assign_slice");
    CHECK_ERROR(eg_assign_slice(v, EG_SHAPE(1, 0), EG_SHAPE(1, 3), eg_zeros(EG_FLOAT64, EG_SHAPE(1, 3))),
                EG_ERROR_DTYPE, "eg_assign_slice");
    CHECK_ERROR(eg_assign_slice(before, EG_SHAPE(1, 0), EG_SHAPE(1, 3), 7), EG_ERROR_ARGUMENT, "no variable");
    CHECK_TENSOR(v, 0, 1, 2, 2, 7, 7, 7);
    eg_release(v);
}

TEST(assignments_that_do_not_fit) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "weights"), *c = eg_constant(EG_SHAPE(2), 1, 2);
    CHECK_ERROR(CHECK_INT(eg_assign(v, eg_zeros(EG_FLOAT32, EG_SHAPE(3))) != NULL, 0), EG_ERROR_SHAPE, "weights");
    CHECK_ERROR(eg_assign(v, eg_zeros(EG_FLOAT64, EG_SHAPE(2))), EG_ERROR_DTYPE, "eg_cast");
    CHECK_ERROR(eg_assign_add(v, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 2))), EG_ERROR_SHAPE, "weights");
    CHECK_ERROR(eg_assign_add(v, eg_zeros(EG_FLOAT32, EG_SHAPE(1))), EG_ERROR_SHAPE, "weights");  // no broadcasting
    CHECK_ERROR(eg_assign(v, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_assign(NULL, c), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_assign(c, 3), EG_ERROR_ARGUMENT, "no variable; tensors do not change");
    CHECK_ERROR(eg_assign_sub(c, 3), EG_ERROR_ARGUMENT, "no variable");
    CHECK_ERROR(eg_trainable(c), EG_ERROR_ARGUMENT, "no variable");
    CHECK_ERROR(eg_set_trainable(c, true), EG_ERROR_ARGUMENT, "no variable");
    CHECK_ERROR(eg_variable(NULL, "x"), EG_ERROR_NULL, "NULL");
    CHECK(!eg_is_variable(c) && !eg_is_variable(NULL));
    CHECK_TENSOR(v, 0, 1, 2);
    eg_release(v);
}

TEST(integer_variables) {
    eg_tensor *v = eg_variable(eg_constant_of(EG_INT64, EG_SHAPE(2), 1, 2), NULL);
    CHECK(!eg_trainable(v));
    CHECK_STR(eg_name_of(v), "variable");
    CHECK_TENSOR(eg_assign_add(v, 3), 0, 4, 5);
    CHECK_ERROR(eg_assign(v, 0.5), EG_ERROR_DTYPE, "0.5");
    CHECK_ERROR(eg_assign_add(v, 0.5), EG_ERROR_DTYPE, "0.5");
    int64_t odd = (INT64_C(1) << 53) + 1;                     // no double is that
    CHECK_INT(eg_item_int(eg_index(eg_assign(v, odd), 1)), odd);
    CHECK_INT(eg_item_int(eg_index(eg_assign_slice(v, EG_SHAPE(0), EG_SHAPE(1), -odd), 0)), -odd);
    CHECK_TENSOR(eg_assign(v, eg_constant_of(EG_INT64, EG_SHAPE(2), 4, 5)), 0, 4, 5);
    CHECK_ERROR(eg_set_trainable(v, true), EG_ERROR_DTYPE, "only float32 and float64");
    eg_set_trainable(v, false);
    CHECK_TENSOR(v, 0, 4, 5);
    eg_tape *tape = eg_tape_begin();
    eg_square(v);
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 0);
    eg_release(v);
}

TEST(variables_of_numbers_and_odd_layouts) {
    eg_tensor *n = eg_variable(eg_number(2.5), "n"),
              *t = eg_variable(eg_transpose(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)), "t");
    CHECK_TENSOR(n, 0, 2.5);
    CHECK_DTYPE(n, EG_FLOAT32);
    CHECK_TENSOR(t, 0, 1, 3, 2, 4);
    CHECK_TENSOR(eg_assign(t, eg_transpose(t)), 0, 1, 2, 3, 4);
    CHECK_TENSOR(eg_assign(t, eg_broadcast_to(eg_scalar(7), EG_SHAPE(2, 2))), 0, 7, 7, 7, 7);
    eg_release(n);
    eg_release(t);
}

TEST(a_variable_is_a_copy_of_its_initial_value) {
    eg_tensor *c = eg_constant(EG_SHAPE(2), 1, 2), *v = eg_variable(c, "v"), *w = eg_variable(v, "w");
    eg_assign(v, 9);
    CHECK_TENSOR(c, 0, 1, 2);
    CHECK_TENSOR(w, 0, 1, 2);
    eg_release(v);
    eg_release(w);
}

static void count_call(void *data, void *user) { (void)data; ++*(int *)user; }

TEST(borrowed_data_is_copied) {
    float data[] = {1, 2}, more[] = {3, 4};
    int freed = 0;
    eg_tensor *v;
    {
        EG_SCOPE;
        v = eg_variable(eg_wrap_data(EG_FLOAT32, EG_SHAPE(2), data, count_call, &freed), "v");
    }
    CHECK_INT(freed, 1);
    data[0] = 100;
    CHECK_TENSOR(v, 0, 1, 2);
    {
        EG_SCOPE;
        eg_assign(v, eg_wrap_data(EG_FLOAT32, EG_SHAPE(2), more, count_call, &freed));
    }
    CHECK_INT(freed, 2);
    more[0] = 100;
    CHECK_TENSOR(v, 0, 3, 4);
    eg_release(v);
}

TEST(a_variable_keeps_no_larger_buffer_alive) {
    enum { N = 1 << 20 };
    int64_t bytes = eg_memory().live_bytes;
    eg_tensor *v;
    {
        EG_SCOPE;
        eg_tensor *big = eg_ones(EG_FLOAT32, EG_SHAPE(N));
        v = eg_variable(eg_slice(big, EG_SHAPE(0), EG_SHAPE(4)), "v");
        eg_assign(v, eg_slice(big, EG_SHAPE(8), EG_SHAPE(4)));
    }
    CHECK(eg_memory().live_bytes < bytes + 4096);
    CHECK_TENSOR(v, 0, 1, 1, 1, 1);
    eg_release(v);
}

TEST(views_keep_the_old_values) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), "v");
    eg_tensor *t = eg_transpose(v), *r = eg_reshape(v, EG_SHAPE(4)), *s = eg_slice(v, EG_SHAPE(1, 0), EG_SHAPE(1, 2)),
              *read = eg_read(v), *cast = eg_cast(v, EG_FLOAT32);
    eg_assign_add(v, 10);
    CHECK_TENSOR(t, 0, 1, 3, 2, 4);
    CHECK_TENSOR(r, 0, 1, 2, 3, 4);
    CHECK_TENSOR(s, 0, 3, 4);
    CHECK_TENSOR(read, 0, 1, 2, 3, 4);
    CHECK_TENSOR(cast, 0, 1, 2, 3, 4);
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1.0);
    read = eg_read(v);
    eg_tensor *g = eg_ones_like(v);
    eg_apply_gradients(sgd, &g, &v, 1);                        // an optimizer's update is no different
    CHECK_TENSOR(read, 0, 11, 12, 13, 14);
    CHECK_TENSOR(v, 0, 10, 11, 12, 13);
    eg_optimizer_release(sgd);
    eg_release(v);
}

TEST(read_is_differentiable) {
    eg_tensor *v = eg_variable(eg_scalar(3), "v");
    eg_tape *tape = eg_tape_begin();
    eg_tensor *now = eg_read(v);
    eg_assign(v, 100);
    CHECK(!eg_is_variable(now));
    CHECK_TENSOR(now, 0, 3);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(now), v), 0, 6);
    eg_release(v);
}

TEST(optimizers_write_in_place_only_when_alone) {
#ifdef TEST_DEVICE
    SKIP("eg_data shows copies there");
#endif
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1.0);
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(1000)), "v"), *g = eg_ones_like(v);
    const void *data = eg_data(v);
    eg_assign(v, 0);                                           // the zeros it began with are held by this scope
    CHECK(eg_data(v) != data);
    data = eg_data(v);
    eg_apply_gradients(sgd, &g, &v, 1);
    CHECK(eg_data(v) == data);
    eg_tensor *held = eg_read(v);
    eg_apply_gradients(sgd, &g, &v, 1);
    CHECK(eg_data(v) != data);
    CHECK(eg_data(held) == data);
    CHECK_NEAR(((const float *)eg_data(held))[999], -1, 0);
    CHECK_NEAR(((const float *)eg_data(v))[999], -2, 0);
    data = eg_data(v);
    eg_apply_gradients(sgd, &g, &v, 1);
    CHECK(eg_data(v) == data);
    eg_optimizer_release(sgd);
    eg_release(v);
}

// ---- optimizers: values -------------------------------------------------------------------------------------------

// Three steps from w = 1 with gradients .5, -1, 2.
static void three_steps(const char *file, int line, const char *what, eg_optimizer *optimizer, eg_dtype dtype,
                        double tol, double a, double b, double c) {
    const double g[] = {.5, -1, 2}, want[] = {a, b, c};
    eg_tensor *w = eg_variable(eg_scalar_of(dtype, 1), "w");
    if (!optimizer) test_say(file, line, what, eg_error_message());
    for (int i = 0; optimizer && i < 3; i++) {
        EG_SCOPE;
        eg_tensor *grad = eg_scalar_of(dtype, g[i]);
        if (!eg_apply_gradients(optimizer, &grad, &w, 1)) test_say(file, line, what, eg_error_message());
        test_near(file, line, what, eg_item(w), want[i], tol);
    }
    if (optimizer) test_int(file, line, what, eg_optimizer_steps(optimizer), 3);
    eg_release(w);
    eg_optimizer_release(optimizer);
}
#define THREE_STEPS(optimizer, tol, a, b, c)                                                           \
    do {                                                                                               \
        three_steps(__FILE__, __LINE__, #optimizer, optimizer, EG_FLOAT32, tol, a, b, c);              \
        three_steps(__FILE__, __LINE__, #optimizer " float64", optimizer, EG_FLOAT64, tol, a, b, c);   \
    } while (0)

TEST(three_steps_sgd) { THREE_STEPS(eg_sgd(.learning_rate = .1), 1e-7, .95, 1.05, .85); }
TEST(three_steps_momentum) { THREE_STEPS(eg_sgd(.learning_rate = .1, .momentum = .9), 1e-7, .95, 1.005, .8545); }
TEST(three_steps_nesterov) {
    THREE_STEPS(eg_sgd(.learning_rate = .1, .momentum = .9, .nesterov = true), 2e-7, .905, 1.0545, .71905);
}
TEST(three_steps_adam) { THREE_STEPS(eg_adam(.learning_rate = .1), 2e-6, .9000013, .9366112, .8946458); }
TEST(three_steps_adamw) { THREE_STEPS(eg_adamw(.learning_rate = .1), 2e-6, .8996013, .9358513, .8935117); }
TEST(three_steps_rmsprop) { THREE_STEPS(eg_rmsprop(.learning_rate = .1), 2e-7, .6837729, .9694871, .6894997); }
TEST(three_steps_adagrad) { THREE_STEPS(eg_adagrad(.learning_rate = .1), 2e-7, .9154846, 1.0015509, .9150833); }
TEST(three_steps_nadam) { THREE_STEPS(eg_nadam(.learning_rate = .1), 2e-6, .8937212, .9818875, .8906610); }
TEST(three_steps_lion) { THREE_STEPS(eg_lion(.learning_rate = .1), 2e-7, .9, 1.0, .9); }
TEST(three_steps_ftrl) { THREE_STEPS(eg_ftrl(.learning_rate = .1), 2e-6, .3809621, .4670284, .3805608); }
TEST(nesterov_without_momentum_is_sgd) {
    THREE_STEPS(eg_sgd(.learning_rate = .1, .nesterov = true), 1e-7, .95, 1.05, .85);
}
TEST(zero_options_by_name) {
    THREE_STEPS(eg_sgd(.learning_rate = .1, .momentum = EG_ZERO, .weight_decay = EG_ZERO, .clipnorm = EG_ZERO,
                       .clipvalue = EG_ZERO, .global_clipnorm = EG_ZERO, .accumulate_steps = EG_ZERO), 1e-7, .95, 1.05,
                .85);
}
TEST(zero_options_of_ftrl) {
    THREE_STEPS(eg_ftrl(.learning_rate = .1, .l1 = EG_ZERO, .l2 = EG_ZERO, .l2_shrinkage = EG_ZERO, .beta = EG_ZERO),
                2e-6, .3809621, .4670284, .3805608);
}
TEST(learning_rate_zero_changes_nothing) { THREE_STEPS(eg_adam(.learning_rate = EG_ZERO), 0, 1, 1, 1); }

// Adadelta and Adamax by their formulas, in double.
TEST(three_steps_adadelta_and_adamax) {
    const double g[] = {.5, -1, 2};
    double w = 1, a = 0, d = 0, want[3], x = 1, m = 0, u = 0, wanted[3];
    for (int i = 0; i < 3; i++) {
        a = .95 * a + .05 * g[i] * g[i];
        double step = sqrt(d + 1e-7) / sqrt(a + 1e-7) * g[i];
        d = .95 * d + .05 * step * step;
        want[i] = w -= .1 * step;
        m = .9 * m + .1 * g[i];
        u = fmax(.999 * u, fabs(g[i]));
        wanted[i] = x -= .1 / (1 - pow(.9, i + 1)) * m / (u + 1e-7);
    }
    THREE_STEPS(eg_adadelta(.learning_rate = .1), 1e-6, want[0], want[1], want[2]);
    THREE_STEPS(eg_adamax(.learning_rate = .1), 1e-6, wanted[0], wanted[1], wanted[2]);
}

TEST(weight_decay_is_decoupled) {
    // w -= lr decay w before each step; the gradient, and so the momentum, never sees it.
    double w = 1;
    w -= .1 * .5 * w; w -= .05; double a = w;
    w -= .1 * .5 * w; w += .1;  double b = w;
    w -= .1 * .5 * w; w -= .2;  double c = w;
    THREE_STEPS(eg_sgd(.learning_rate = .1, .weight_decay = .5), 2e-7, a, b, c);
    THREE_STEPS(eg_adamw(.learning_rate = .1, .weight_decay = EG_ZERO), 2e-6, .9000013, .9366112, .8946458);
    THREE_STEPS(eg_adam(.learning_rate = .1, .weight_decay = .004), 2e-6, .8996013, .9358513, .8935117);
}

// ---- clipping -----------------------------------------------------------------------------------------------------

TEST(clipping_of_gradients) {
    eg_tensor *v[2], *g[2];
    eg_optimizer *optimizers[] = {eg_sgd(.learning_rate = 1.0, .clipvalue = 2),
                                  eg_sgd(.learning_rate = 1.0, .clipnorm = 2.5),
                                  eg_sgd(.learning_rate = 1.0, .global_clipnorm = 6.5)};
    const double want[3][3] = {{-2, -2, -2}, {-1.5, -2, -2.5}, {-1.5, -2, -6}};
    g[0] = eg_constant(EG_SHAPE(2), 3, 4); g[1] = eg_scalar_of(EG_FLOAT64, 12);
    for (int i = 0; i < 3; i++) {
        v[0] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "v0");
        v[1] = eg_variable(eg_scalar_of(EG_FLOAT64, 0), "v1");
        CHECK(eg_apply_gradients(optimizers[i], g, v, 2));
        CHECK_TENSOR(v[0], 1e-6, want[i][0], want[i][1]);
        CHECK_TENSOR(v[1], 1e-6, want[i][2]);
        CHECK_TENSOR(g[0], 0, 3, 4);                           // the caller's gradients stay
        eg_release(v[0]); eg_release(v[1]);
        eg_optimizer_release(optimizers[i]);
    }
}

TEST(clipping_in_loops_of_ones_own) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 3, 4), *list[] = {x, NULL, eg_scalar(12)}, *out[3];
    CHECK_TENSOR(eg_clip_by_norm(x, 2.5), 1e-6, 1.5, 2);
    CHECK_TENSOR(eg_clip_by_norm(x, 10), 0, 3, 4);
    CHECK_TENSOR(eg_clip_by_norm(eg_zeros_like(x), 1), 0, 0, 0);
    CHECK_TENSOR(eg_global_norm(list, 3), 0, 13);
    CHECK(eg_clip_by_global_norm(list, 3, 6.5, out));
    CHECK_TENSOR(out[0], 1e-6, 1.5, 2);
    CHECK(out[1] == NULL);
    CHECK_TENSOR(out[2], 1e-6, 6);
    CHECK(eg_clip_by_global_norm(list, 3, 6.5, list));         // in place
    CHECK_TENSOR(list[2], 1e-6, 6);
    list[2] = eg_scalar_of(EG_FLOAT64, 12);
    list[0] = x;
    CHECK_TENSOR(eg_global_norm(list, 3), 0, 13);              // of two dtypes the wider
    CHECK_DTYPE(eg_global_norm(list, 3), EG_FLOAT64);
    CHECK(eg_clip_by_global_norm(list, 3, 6.5, out));
    CHECK_DTYPE(out[0], EG_FLOAT32);
    CHECK_ERROR(eg_clip_by_norm(x, 0), EG_ERROR_ARGUMENT, "not positive");
    CHECK_ERROR(eg_clip_by_norm(NULL, 1), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_clip_by_global_norm(list, 3, -1, out), EG_ERROR_ARGUMENT, "not positive");
    CHECK_ERROR(eg_global_norm(list + 1, 1), EG_ERROR_ARGUMENT, "no tensor");
    CHECK_ERROR(eg_clip_by_global_norm(list + 1, 1, 1, out), EG_ERROR_ARGUMENT, "no tensor");
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_reduce_sum(eg_clip_by_norm(x, 10)), x), 1e-6, 1, 1);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_reduce_sum(eg_clip_by_norm(x, 1)), x), 1e-6, .2 - 7 * 3 / 125.0,
                 .2 - 7 * 4 / 125.0);
}
// Where a tape records, the norm is composed of squares, which have a second gradient also where a tensor is 0.
TEST(the_global_norm_under_two_tapes) {
    eg_tensor *z = eg_constant(EG_SHAPE(1), 0), *list[] = {eg_constant(EG_SHAPE(2), 3, 4), z};
    CHECK_TENSOR(eg_global_norm(list, 2), 0, 5);
    eg_tape *outer = eg_tape_begin();
    eg_tape_watch(outer, z);
    eg_tape *inner = eg_tape_begin();
    eg_tape_watch(inner, z);
    eg_tensor *norm = eg_global_norm(list, 2), *slope = eg_tape_gradient(inner, norm, z);
    CHECK_TENSOR(norm, 0, 5);
    CHECK_TENSOR(slope, 0, 0);
    CHECK_TENSOR(eg_tape_gradient(outer, slope, z), 1e-7, .2);
}

// ---- accumulation -------------------------------------------------------------------------------------------------

TEST(accumulation_equals_one_large_batch) {
    enum { STEPS = 4 };
    eg_tensor *a = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "a"),
              *b = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "b");
    eg_optimizer *each = eg_adam(.learning_rate = .1, .accumulate_steps = STEPS, .clipnorm = 1),
                 *whole = eg_adam(.learning_rate = .1, .clipnorm = 1);
    for (int i = 0; i < 3 * STEPS; i++) {
        EG_SCOPE;
        eg_tensor *g = eg_constant(EG_SHAPE(2), i, -i * i), *sum = eg_zeros_like(a);
        CHECK(eg_apply_gradients(each, &g, &a, 1));
        CHECK_INT(eg_optimizer_steps(each), (i + 1) / STEPS);
        if (i % STEPS < STEPS - 1) continue;
        for (int k = i - STEPS + 1; k <= i; k++) sum = eg_add(sum, eg_constant(EG_SHAPE(2), k, -k * k));
        sum = eg_div(sum, STEPS);
        CHECK(eg_apply_gradients(whole, &sum, &b, 1));
        CHECK_SAME(a, b, 1e-6);
    }
    eg_optimizer_release(each); eg_optimizer_release(whole);
    eg_release(a); eg_release(b);
}

TEST(accumulation_skips_what_had_no_gradient) {
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "a"), eg_variable(eg_scalar(1), "b"), eg_variable(eg_scalar(1), "c")},
              *g[3] = {NULL};
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1.0, .momentum = .9, .accumulate_steps = 2, .weight_decay = .1);
    g[0] = eg_scalar(2); g[1] = eg_scalar(4);
    CHECK(eg_apply_gradients(sgd, g, v, 3));
    CHECK_TENSOR(v[0], 0, 1);
    g[1] = NULL;
    CHECK(eg_apply_gradients(sgd, g, v, 3));
    CHECK_TENSOR(v[0], 1e-6, .9 - 2);
    CHECK_TENSOR(v[1], 1e-6, .9 - 2);                          // 4 and nothing: the mean is 2
    CHECK_TENSOR(v[2], 0, 1);                                  // not even decayed
    CHECK(eg_apply_gradients(sgd, g, v, 3));
    CHECK(eg_apply_gradients(sgd, g, v, 3));
    CHECK_TENSOR(v[1], 1e-6, .9 - 2);                          // its sum began again, its momentum waits
    for (int i = 0; i < 3; i++) eg_release(v[i]);
    eg_optimizer_release(sgd);
}

TEST(accumulation_survives_a_failed_update) {
    eg_tensor *v = eg_variable(eg_scalar(1), "v"), *g = eg_scalar(3);
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1e30, .accumulate_steps = 2);
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));
    bool former = eg_trap_nonfinite(true);
    eg_tensor *large = eg_scalar(3e38);
    CHECK_ERROR(CHECK_INT(eg_apply_gradients(sgd, &large, &v, 1), 0), EG_ERROR_NONFINITE, "eg_sgd");
    eg_trap_nonfinite(former);
    CHECK_TENSOR(v, 0, 1);
    eg_optimizer_set_learning_rate(sgd, 1);
    g = eg_scalar(1);
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));                 // the 3 is still there: 1 - (3 + 1) / 2
    CHECK_TENSOR(v, 0, -1);
    eg_optimizer_release(sgd);
    eg_release(v);
}

// ---- what is applied to what --------------------------------------------------------------------------------------

TEST(null_gradients_are_skipped) {
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "a"), eg_variable(eg_scalar(1), "b")}, *g[] = {NULL, eg_scalar(2)},
              *state[8];
    eg_optimizer *adam = eg_adam(.learning_rate = .1);
    CHECK_INT(eg_optimizer_state(adam, state, 8), 2);
    CHECK(eg_apply_gradients(adam, g, v, 2));
    CHECK_TENSOR(v[0], 0, 1);
    CHECK(eg_item(v[1]) < 1);
    CHECK_INT(eg_optimizer_state(adam, state, 8), 4);          // slots of b alone
    g[0] = g[1];
    CHECK(eg_apply_gradients(adam, g, v, 2));                  // a is seen now: its slots are made
    CHECK_INT(eg_optimizer_state(adam, state, 8), 6);
    CHECK_INT(eg_optimizer_state(adam, NULL, 0), 6);
    CHECK_STR(eg_name_of(state[0]), "steps");
    CHECK_STR(eg_name_of(state[1]), "learning_rate");
    CHECK_CONTAINS(eg_name_of(state[2]), "b/");
    CHECK_TENSOR(state[0], 0, 2);
    CHECK_DTYPE(state[0], EG_INT64);
    CHECK_TENSOR(state[1], 1e-9, .1);
    for (int i = 0; i < 6; i++) CHECK(eg_is_variable(state[i]) && !eg_trainable(state[i]));
    eg_release(v[0]); eg_release(v[1]);
    eg_optimizer_release(adam);
}

TEST(all_null_is_an_error) {
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "first"), eg_variable(eg_scalar(1), "b")}, *g[2] = {NULL};
    eg_optimizer *sgd = eg_sgd(.learning_rate = .1);
    CHECK_ERROR(CHECK_INT(eg_apply_gradients(sgd, g, v, 2), 0), EG_ERROR_GRADIENT,
                "No gradients provided for any variable");
    CHECK_ERROR(eg_apply_gradients(sgd, g, v, 2), EG_ERROR_GRADIENT, "first");
    CHECK_ERROR(eg_apply_gradients(sgd, NULL, NULL, 0), EG_ERROR_GRADIENT, "No gradients provided for any variable");
    CHECK_ERROR(eg_apply_gradients(sgd, v, g, 2), EG_ERROR_ARGUMENT,
                "stands where gradient 0 should; the list of gradients comes first");
    CHECK_ERROR(eg_apply_gradients(sgd, NULL, v, 2), EG_ERROR_ARGUMENT,
                "eg_apply_gradients: a list of 2 is NULL (grads)");
    CHECK_ERROR(eg_apply_gradients(sgd, v, NULL, 2), EG_ERROR_ARGUMENT,
                "eg_apply_gradients: a list of 2 is NULL (variables)");
    CHECK_ERROR(eg_apply_gradients(NULL, g, v, 2), EG_ERROR_NULL, "the optimizer is NULL");
    CHECK_INT(eg_optimizer_steps(sgd), 0);
    eg_release(v[0]); eg_release(v[1]);
    eg_optimizer_release(sgd);
}

TEST(null_with_a_pending_error_changes_nothing) {
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "a"), eg_variable(eg_scalar(1), "b")}, *g[] = {eg_scalar(2), NULL};
    eg_optimizer *sgd = eg_sgd(.learning_rate = .1);
    g[1] = eg_matmul(g[0], g[0]);
    int64_t errors = eg_error_count();
    CHECK(!eg_apply_gradients(sgd, g, v, 2));
    CHECK_INT(eg_error_count(), errors);                       // the first error stays the only one
    CHECK_INT(eg_error(), EG_ERROR_SHAPE);
    CHECK_TENSOR(v[0], 0, 1);
    eg_error_clear();
    CHECK_INT(eg_optimizer_steps(sgd), 0);
    CHECK(eg_apply_gradients(sgd, g, v, 2));
    CHECK_TENSOR(v[0], 1e-7, .8);
    eg_release(v[0]); eg_release(v[1]);
    eg_optimizer_release(sgd);
}

TEST(a_mismatch_changes_nothing) {
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "a"), eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "b"), NULL}, *g[3];
    eg_optimizer *adam = eg_adam(.learning_rate = .1);
    g[0] = eg_scalar(1);
    g[1] = eg_ones(EG_FLOAT32, EG_SHAPE(3));
    CHECK_ERROR(CHECK_INT(eg_apply_gradients(adam, g, v, 2), 0), EG_ERROR_GRADIENT, "gradient 1 is");
    g[1] = eg_ones(EG_FLOAT64, EG_SHAPE(2));
    CHECK_ERROR(eg_apply_gradients(adam, g, v, 2), EG_ERROR_GRADIENT, "float64");
    g[1] = eg_number(1);
    CHECK_ERROR(eg_apply_gradients(adam, g, v, 2), EG_ERROR_GRADIENT, "gradient 1 is");
    g[1] = eg_ones(EG_FLOAT32, EG_SHAPE(2));
    g[2] = g[0]; v[2] = g[0];
    CHECK_ERROR(eg_apply_gradients(adam, g, v, 3), EG_ERROR_ARGUMENT, "no variable");
    v[2] = NULL;
    CHECK_ERROR(eg_apply_gradients(adam, g, v, 3), EG_ERROR_NULL, "NULL");
    v[2] = v[0];
    CHECK_ERROR(eg_apply_gradients(adam, g, v, 3), EG_ERROR_ARGUMENT, "'a' is in the list twice");
    v[2] = eg_variable(eg_constant_of(EG_INT32, EG_SHAPE(1), 1), "int");
    g[2] = eg_ones(EG_INT32, EG_SHAPE(1));
    CHECK_ERROR(eg_apply_gradients(adam, g, v, 3), EG_ERROR_DTYPE, "trains float32 and float64");
    CHECK_TENSOR(v[0], 0, 1);
    CHECK_TENSOR(v[1], 0, 0, 0);
    CHECK_INT(eg_optimizer_steps(adam), 0);
    CHECK_INT(eg_optimizer_state(adam, NULL, 0), 2);           // no slots of a failed call
    g[2] = NULL;
    CHECK(eg_apply_gradients(adam, g, v, 3));                  // skipped, whatever it is
    for (int i = 0; i < 3; i++) eg_release(v[i]);
    eg_optimizer_release(adam);
}

TEST(the_trap_covers_updates) {
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "a"), eg_variable(eg_scalar(1), "b")},
              *g[] = {eg_scalar(1), eg_scalar(3e38)};
    eg_optimizer *sgd = eg_sgd(.learning_rate = 10), *adam = eg_adam(.learning_rate = .1);
    bool former = eg_trap_nonfinite(true);
    CHECK_ERROR(CHECK_INT(eg_apply_gradients(sgd, g, v, 2), 0), EG_ERROR_NONFINITE, "eg_sgd: made 1");
    CHECK_TENSOR(v[0], 0, 1);                                  // its update would have been fine
    // v stays finite, its second moment would not
    CHECK_ERROR(eg_apply_gradients(adam, g, v, 2), EG_ERROR_NONFINITE, "eg_adam");
    CHECK_INT(eg_optimizer_steps(adam), 0);
    eg_trap_nonfinite(former);
    eg_release(v[0]); eg_release(v[1]);
    eg_optimizer_release(sgd); eg_optimizer_release(adam);
}

TEST(variables_as_gradients_of_each_other) {
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "a"), eg_variable(eg_scalar(10), "b")}, *g[] = {v[1], v[0]};
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1.0);
    CHECK(eg_apply_gradients(sgd, g, v, 2));
    CHECK_TENSOR(v[0], 0, -9);
    CHECK_TENSOR(v[1], 0, 9);
    g[0] = v[0];
    CHECK(eg_apply_gradients(sgd, g, v, 1));
    CHECK_TENSOR(v[0], 0, 0);
    eg_release(v[0]); eg_release(v[1]);
    eg_optimizer_release(sgd);
}

TEST(gradients_of_odd_layouts) {
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 2)), "v"),
              *g = eg_transpose(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4));
    eg_tensor *empty = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3)), "empty"), *none = eg_zeros_like(empty);
    eg_optimizer *adam = eg_adam(), *sgd = eg_sgd(.learning_rate = 1.0);
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));
    CHECK_TENSOR(v, 0, -1, -3, -2, -4);
    g = eg_broadcast_to(eg_scalar(1), EG_SHAPE(2, 2));
    CHECK(eg_apply_gradients(sgd, &g, &v, 1));
    CHECK_TENSOR(v, 0, -2, -4, -3, -5);
    CHECK(eg_apply_gradients(adam, &none, &empty, 1));
    eg_release(v); eg_release(empty);
    eg_optimizer_release(adam); eg_optimizer_release(sgd);
}

TEST(many_variables_in_any_order) {
    enum { N = 3000 };
    eg_tensor **v = (eg_tensor **)calloc(2 * N, sizeof *v), **g = v + N;
    REQUIRE(v);
    eg_optimizer *adam = eg_sgd(.learning_rate = 1.0, .momentum = .5);
    for (int i = 0; i < N; i++) v[i] = eg_variable(eg_scalar(i), "v");
    for (int step = 0; step < 4; step++) {
        EG_SCOPE;
        for (int i = 0; i < N; i++) g[i] = step == 2 && i % 3 ? NULL : eg_scalar(1);
        CHECK(eg_apply_gradients(adam, g, v, N));
        for (int i = 0; step == 1 && i < N / 2; i++) { eg_tensor *t = v[i]; v[i] = v[N - 1 - i]; v[N - 1 - i] = t; }
    }
    for (int i = 0; i < N; i++)
        CHECK_NEAR(eg_item(v[i]), N - 1 - i - (i % 3 ? 1 + 1.5 + 1.75 : 1 + 1.5 + 1.75 + 1.875), 1e-6);
    for (int i = 0; i < N; i++) eg_release(v[i]);
    eg_optimizer_release(adam);
    free(v);
}

TEST(pairs) {
    eg_tensor *a = eg_variable(eg_scalar(1), "a"), *b = eg_variable(eg_scalar(1), "b");
    eg_gradient_pair pairs[] = {{eg_scalar(2), a}, {NULL, b}};
    eg_optimizer *sgd = eg_sgd(.learning_rate = .1);
    CHECK(eg_apply_gradient_pairs(sgd, pairs, 2));
    CHECK_TENSOR(a, 1e-7, .8);
    CHECK_TENSOR(b, 0, 1);
    pairs[0].gradient = NULL;
    CHECK_ERROR(eg_apply_gradient_pairs(sgd, pairs, 2), EG_ERROR_GRADIENT, "No gradients");
    CHECK_ERROR(eg_apply_gradient_pairs(sgd, NULL, 0), EG_ERROR_GRADIENT, "No gradients");
    eg_release(a); eg_release(b);
    eg_optimizer_release(sgd);
}

// ---- minimize -----------------------------------------------------------------------------------------------------

static eg_tensor *square_of(eg_tensor *const *in, void *user) { (void)in; return eg_square((eg_tensor *)user); }
static eg_tensor *first(eg_tensor *const *in, void *user) { (void)user; return in[0]; }
static eg_tensor *null_quietly(eg_tensor *const *in, void *user) { (void)in; (void)user; return NULL; }

static eg_tensor *itself(eg_tensor *const *in, void *user) { (void)in; return (eg_tensor *)user; }

TEST(minimize_a_variable_itself) {
    eg_tensor *w = eg_variable(eg_scalar(1), "w");
    eg_optimizer *sgd = eg_sgd(.learning_rate = .25);
    CHECK_TENSOR(eg_minimize(sgd, itself, w, NULL), 0, 1);     // before the update, not the variable
    CHECK_TENSOR(w, 0, .75);
    eg_release(w);
    eg_optimizer_release(sgd);
}

TEST(minimize) {
    eg_tensor *w = eg_variable(eg_scalar(1), "w"), *x = eg_scalar(1);
    eg_optimizer *sgd = eg_sgd(.learning_rate = .1);
    int64_t tensors = eg_memory().live_tensors;
    CHECK_TENSOR(eg_minimize(sgd, square_of, w, NULL), 0, 1);  // the loss before the update
    CHECK_INT(eg_memory().live_tensors, tensors + 1);
    CHECK_TENSOR(w, 1e-7, .8);
    CHECK_ERROR(CHECK_INT(eg_minimize(sgd, first, NULL, &x) != NULL, 0), EG_ERROR_GRADIENT, "No gradients");
    CHECK_ERROR(eg_minimize(sgd, null_quietly, NULL, NULL), EG_ERROR_NULL, "returned NULL");
    CHECK_ERROR(eg_minimize(sgd, NULL, NULL, NULL), EG_ERROR_ARGUMENT, "loss function is NULL");
    CHECK_ERROR(eg_minimize(NULL, first, NULL, &x), EG_ERROR_NULL, "the optimizer is NULL");
    eg_release(w);
    eg_optimizer_release(sgd);
}

// ---- options, learning rate, state --------------------------------------------------------------------------------

TEST(options_that_an_optimizer_lacks) {
    CHECK_ERROR(eg_sgd(.beta_1 = .5), EG_ERROR_ARGUMENT, "eg_sgd: has no option .beta_1");
    CHECK_ERROR(eg_sgd(.epsilon = .5), EG_ERROR_ARGUMENT, "eg_sgd: has no option .epsilon");
    CHECK_ERROR(eg_sgd(.rho = .5), EG_ERROR_ARGUMENT, "eg_sgd: has no option .rho");
    CHECK_ERROR(eg_sgd(.amsgrad = true), EG_ERROR_ARGUMENT, "eg_sgd: has no option .amsgrad");
    CHECK_ERROR(eg_adam(.momentum = .5), EG_ERROR_ARGUMENT, "eg_adam: has no option .momentum");
    CHECK_ERROR(eg_adam(.nesterov = true), EG_ERROR_ARGUMENT, "eg_adam: has no option .nesterov");
    CHECK_ERROR(eg_adam(.centered = true), EG_ERROR_ARGUMENT, "eg_adam: has no option .centered");
    CHECK_ERROR(eg_nadam(.amsgrad = true), EG_ERROR_ARGUMENT, "eg_nadam: has no option .amsgrad");
    CHECK_ERROR(eg_lion(.epsilon = 1), EG_ERROR_ARGUMENT, "eg_lion: has no option .epsilon");
    CHECK_ERROR(eg_adagrad(.l1 = 1), EG_ERROR_ARGUMENT, "eg_adagrad: has no option");
    CHECK_ERROR(eg_adamax(.initial_accumulator_value = 1), EG_ERROR_ARGUMENT,
                "eg_adamax: has no option .initial_accumulator_value");
    CHECK_ERROR(eg_sgd(.beta_2 = .5), EG_ERROR_ARGUMENT, "eg_sgd: has no option .beta_2");
    CHECK_ERROR(eg_adam(.learning_rate_power = -1), EG_ERROR_ARGUMENT, "eg_adam: has no option .learning_rate_power");
    CHECK_ERROR(eg_adam(.l2 = 1), EG_ERROR_ARGUMENT, "eg_adam: has no option .l2");
    CHECK_ERROR(eg_adam(.l2_shrinkage = 1), EG_ERROR_ARGUMENT, "eg_adam: has no option .l2_shrinkage");
    CHECK_ERROR(eg_adam(.beta = 1), EG_ERROR_ARGUMENT, "eg_adam: has no option .beta");
}

TEST(options_out_of_range) {
    CHECK_ERROR(eg_adam(.learning_rate = -1), EG_ERROR_ARGUMENT,
                "eg_adam: .learning_rate is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_adam(.learning_rate = NAN), EG_ERROR_ARGUMENT, "nan; it must be at least 0 and finite");
    CHECK_ERROR(eg_adam(.beta_1 = 1), EG_ERROR_ARGUMENT, "eg_adam: .beta_1 is 1; it must be at least 0 and below 1");
    CHECK_ERROR(eg_adam(.epsilon = -1), EG_ERROR_ARGUMENT, ".epsilon is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_sgd(.momentum = 1.5), EG_ERROR_ARGUMENT, ".momentum is 1.5; it must be at least 0 and at most 1");
    CHECK_ERROR(eg_rmsprop(.rho = 2), EG_ERROR_ARGUMENT, ".rho is 2; it must be at least 0 and at most 1");
    CHECK_ERROR(eg_sgd(.weight_decay = -1), EG_ERROR_ARGUMENT, ".weight_decay is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_ftrl(.l1 = -1), EG_ERROR_ARGUMENT, ".l1 is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_ftrl(.learning_rate_power = 1), EG_ERROR_ARGUMENT,
                ".learning_rate_power is 1; it must be at most 0");
    CHECK_ERROR(eg_adagrad(.initial_accumulator_value = -1), EG_ERROR_ARGUMENT,
                ".initial_accumulator_value is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_sgd(.clipnorm = -1), EG_ERROR_ARGUMENT, ".clipnorm is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_sgd(.accumulate_steps = -1), EG_ERROR_ARGUMENT, ".accumulate_steps is -1; it must be at least 0 (");
    CHECK_ERROR(eg_sgd(.clipvalue = -1), EG_ERROR_ARGUMENT, ".clipvalue is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_sgd(.global_clipnorm = NAN), EG_ERROR_ARGUMENT, "nan; it must be at least 0 and finite");
    CHECK_ERROR(eg_sgd(.global_clipnorm = -1), EG_ERROR_ARGUMENT,
                ".global_clipnorm is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_ftrl(.l2 = -1), EG_ERROR_ARGUMENT, ".l2 is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_ftrl(.l2_shrinkage = -1), EG_ERROR_ARGUMENT,
                ".l2_shrinkage is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_sgd(.clipnorm = 1, .clipvalue = 1), EG_ERROR_ARGUMENT, "only one of");
    CHECK_ERROR(eg_sgd(.learning_rate = .1, .schedule = eg_exponential_decay(.1, 10, .5, false)), EG_ERROR_ARGUMENT,
                "not both");
}

TEST(learning_rate_can_be_read_and_set) {
    eg_tensor *w = eg_variable(eg_scalar(1), "w"), *g = eg_scalar(1);
    eg_optimizer *sgd = eg_sgd(), *adam = eg_adam();
    CHECK_NEAR(eg_optimizer_learning_rate(sgd), .01, 0);
    CHECK_NEAR(eg_optimizer_learning_rate(adam), .001, 0);
    CHECK(eg_optimizer_set_learning_rate(sgd, .25));
    CHECK_NEAR(eg_optimizer_learning_rate(sgd), .25, 0);
    CHECK(eg_apply_gradients(sgd, &g, &w, 1));
    CHECK_TENSOR(w, 0, .75);
    CHECK_ERROR(eg_optimizer_set_learning_rate(sgd, -1), EG_ERROR_ARGUMENT, "-1");
    CHECK_ERROR(eg_optimizer_set_learning_rate(sgd, NAN), EG_ERROR_ARGUMENT, "nan");
    CHECK_ERROR(eg_optimizer_set_learning_rate(NULL, 1), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_optimizer_learning_rate(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(CHECK_INT(eg_optimizer_steps(NULL), -1), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_optimizer_state(NULL, NULL, 0), EG_ERROR_NULL, "NULL");
    eg_optimizer_release(eg_optimizer_retain(sgd));
    CHECK_NEAR(eg_optimizer_learning_rate(sgd), .25, 0);
    eg_optimizer_release(NULL);
    eg_optimizer_release(sgd); eg_optimizer_release(adam);
    eg_release(w);
}

// Restored state continues bit for bit: everything that a step changes is in it, the step count too.
TEST(state_is_all_there_is) {
    enum { MOST = 16 };
    eg_optimizer *(*make[])(eg_optimizer_options) = {eg_adam, eg_nadam, eg_rmsprop, eg_ftrl};
    for (int m = 0; m < 4; m++) {
        eg_optimizer_options o = {.learning_rate = .1};
        eg_optimizer *a = make[m](o), *b = make[m](o);
        eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(3), 1, 2, 3), "v"), *w = eg_variable(v, "w"),
                  *g = eg_constant(EG_SHAPE(3), .5, -1, 2), *from[MOST], *to[MOST];
        for (int i = 0; i < 5; i++) CHECK(eg_apply_gradients(a, &g, &v, 1));
        CHECK(eg_apply_gradients(b, &g, &w, 1));               // its slots exist now
        int n = eg_optimizer_state(a, from, MOST);
        REQUIRE(n == eg_optimizer_state(b, to, MOST));
        for (int i = 0; i < n; i++) CHECK(eg_assign(to[i], from[i]) != NULL);
        eg_assign(w, v);
        CHECK_INT(eg_optimizer_steps(b), 5);
        for (int i = 0; i < 5; i++) {
            CHECK(eg_apply_gradients(a, &g, &v, 1));
            CHECK(eg_apply_gradients(b, &g, &w, 1));
        }
        CHECK_SAME(v, w, 0);
        eg_release(v); eg_release(w);
        eg_optimizer_release(a); eg_optimizer_release(b);
    }
}

TEST(slots_are_no_more_than_the_rule_needs) {
    struct { eg_optimizer *optimizer; int slots; } cases[] = {
        {eg_sgd(), 0}, {eg_sgd(.momentum = .9), 1}, {eg_sgd(.momentum = .9, .nesterov = true), 1}, {eg_rmsprop(), 1},
        {eg_rmsprop(.momentum = .9), 3},
        {eg_rmsprop(.centered = true), 3}, {eg_adam(), 2}, {eg_adam(.amsgrad = true), 3}, {eg_adagrad(), 1},
        {eg_adadelta(), 2}, {eg_adamax(), 2},
        {eg_nadam(), 2}, {eg_ftrl(), 2}, {eg_lion(), 1},
        {eg_sgd(.accumulate_steps = 2), 2 /* and the count of calls */}};
    eg_tensor *v = eg_variable(eg_scalar(1), "v"), *g = eg_scalar(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(eg_apply_gradients(cases[i].optimizer, &g, &v, 1));
        CHECK_INT(eg_optimizer_state(cases[i].optimizer, NULL, 0), 2 + cases[i].slots);
        eg_optimizer_release(cases[i].optimizer);
    }
    eg_release(v);
}

TEST(a_step_makes_no_garbage) {
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(100)), "v");
    eg_optimizer *adam = eg_adam(.clipnorm = 1, .schedule = eg_cosine_decay(.1, 100, 0, 0, 0));
    int64_t tensors = 0, bytes = 0;
    for (int i = 0; i < 100; i++) {
        EG_SCOPE;
        eg_tensor *g = eg_ones_like(v);
        CHECK(eg_apply_gradients(adam, &g, &v, 1));
        if (i == 1) { tensors = eg_memory().live_tensors; bytes = eg_memory().live_bytes; }
        if (i > 1) CHECK_INT(eg_memory().live_tensors, tensors);
#ifndef EAGER_DEBUG
        if (i > 1) CHECK_INT(eg_memory().live_bytes, bytes);
#endif
    }
    (void)bytes;
    eg_release(v);
    eg_optimizer_release(adam);
}

TEST(updates_are_not_recorded) {
    eg_tensor *v = eg_variable(eg_scalar(1), "v"), *g = eg_scalar(1);
    eg_optimizer *adam = eg_adam(.clipnorm = .1, .accumulate_steps = 1);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, g);
    CHECK(eg_apply_gradients(adam, &g, &v, 1));
    eg_assign_add(v, 1);
    eg_assign_slice(v, EG_SCALAR, EG_SCALAR, g);
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 0);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_mul(v, g), g), 0, 1);
    eg_release(v);
    eg_optimizer_release(adam);
}

// ---- schedules ----------------------------------------------------------------------------------------------------

#define SCHEDULE(schedule, step, want) \
    do { eg_schedule s_ = schedule; CHECK_NEAR(eg_schedule_value(&s_, step), want, 1e-12); } while (0)

#define REFUSED(schedule, part) CHECK_ERROR((schedule).count, EG_ERROR_ARGUMENT, part)
TEST(schedules_of_arguments_that_are_none) {
    const double rising[] = {1, 3}, falling[] = {3, 1}, equal[] = {3, 3}, unknown[] = {NAN, 1}, rates[] = {1, .1, .01},
                 negative[] = {1, -1, .01}, nan[] = {1, .1, NAN}, infinite[] = {(double)INFINITY, .1, .01};
    REFUSED(eg_exponential_decay(.5, 0, .9, false), "eg_exponential_decay: steps is 0; it must be above 0");
    REFUSED(eg_exponential_decay(NAN, 10, .5, false),
            "eg_exponential_decay: initial is nan; it must be at least 0 and finite");
    REFUSED(eg_exponential_decay(-1, 10, .5, true), "eg_exponential_decay: initial is -1");
    REFUSED(eg_exponential_decay(1, 10, -.5, true), "eg_exponential_decay: rate is -0.5");
    REFUSED(eg_cosine_decay(.5, -1, 0, 0, 0), "eg_cosine_decay: steps is -1");
    REFUSED(eg_cosine_decay((double)INFINITY, 1, 0, 0, 0), "eg_cosine_decay: initial is inf");
    REFUSED(eg_cosine_decay(.5, 1, NAN, 0, 0), "eg_cosine_decay: alpha is nan");
    REFUSED(eg_cosine_decay(.5, 1, 0, -2, 1), "eg_cosine_decay: warmup_target is -2");
    REFUSED(eg_cosine_decay(.5, 1, 0, 1, NAN), "eg_cosine_decay: warmup_steps is nan");
    REFUSED(eg_polynomial_decay(.5, NAN, 0, 1, false), "eg_polynomial_decay: steps is nan");
    REFUSED(eg_polynomial_decay(.5, 1, -.1, 1, true), "eg_polynomial_decay: end is -0.1");
    REFUSED(eg_polynomial_decay(.5, 1, 0, -1, true), "eg_polynomial_decay: power is -1");
    REFUSED(eg_piecewise_constant(falling, rates, 2),
            "eg_piecewise_constant: boundaries[1] is 1; it must be a number above those before it");
    REFUSED(eg_piecewise_constant(equal, rates, 2), "boundaries[1] is 3");
    REFUSED(eg_piecewise_constant(unknown, rates, 2), "boundaries[0] is nan");
    REFUSED(eg_piecewise_constant(rising, negative, 2),
            "eg_piecewise_constant: values[1] is -1; it must be at least 0 and finite");
    REFUSED(eg_piecewise_constant(rising, nan, 2), "values[2] is nan");
    REFUSED(eg_piecewise_constant(rising, infinite, 2), "values[0] is inf");
}
// Not the default rate instead, also where nobody looked at the error of then.
TEST(a_refused_schedule_makes_no_optimizer) {
    eg_schedule bad[4];
    CHECK_ERROR(bad[0] = eg_cosine_decay(.1, 0, 0, 0, 0), EG_ERROR_ARGUMENT, "steps is 0");
    CHECK_ERROR(bad[1] = eg_cosine_decay(0, 0, 0, 0, 0), EG_ERROR_ARGUMENT, "steps is 0");
    CHECK_ERROR(bad[2] = eg_piecewise_constant(NULL, NULL, 2), EG_ERROR_ARGUMENT, "eg_piecewise_constant");
    CHECK_ERROR(bad[3] = eg_exponential_decay(0, -2, 0, false), EG_ERROR_ARGUMENT, "steps is -2");
    for (int k = 0; k < 4; k++) {
        CHECK_ERROR(CHECK_INT(eg_sgd(.schedule = bad[k]) != NULL, 0), EG_ERROR_ARGUMENT,
                    "eg_sgd: the .schedule is none: the function that should have made it refused its arguments");
        CHECK_ERROR(CHECK_INT(eg_adam(.learning_rate = .1, .schedule = bad[k]) != NULL, 0), EG_ERROR_ARGUMENT,
                    "eg_adam: the .schedule is none");
        CHECK_ERROR(eg_schedule_value(&bad[k], 3), EG_ERROR_ARGUMENT,
                    "eg_schedule_value: the function that should have made this schedule refused its arguments");
    }
    CHECK_ERROR(CHECK_INT(eg_adam(.learning_rate = .1, .schedule = eg_cosine_decay(.1, 0, 0, 0, 0)) != NULL, 0),
                EG_ERROR_ARGUMENT, "eg_cosine_decay: steps is 0");
}
TEST(schedules) {
    const double boundaries[] = {10, 20}, values[] = {1, .5, .1};
    SCHEDULE(eg_exponential_decay(.1, 10, .5, false), 0, .1);
    SCHEDULE(eg_exponential_decay(.1, 10, .5, false), 15, .1 * pow(.5, 1.5));
    SCHEDULE(eg_exponential_decay(.1, 10, .5, true), 15, .05);
    SCHEDULE(eg_piecewise_constant(boundaries, values, 2), 0, 1);
    SCHEDULE(eg_piecewise_constant(boundaries, values, 2), 10, 1);     // up to and including
    SCHEDULE(eg_piecewise_constant(boundaries, values, 2), 11, .5);
    SCHEDULE(eg_piecewise_constant(boundaries, values, 2), 20, .5);
    SCHEDULE(eg_piecewise_constant(boundaries, values, 2), 21, .1);
    SCHEDULE(eg_piecewise_constant(NULL, values, 0), 5, 1);
    SCHEDULE(eg_cosine_decay(.1, 100, 0, 0, 0), 0, .1);
    SCHEDULE(eg_cosine_decay(.1, 100, 0, 0, 0), 50, .05);
    SCHEDULE(eg_cosine_decay(.1, 100, .1, 0, 0), 1000, .01);
    SCHEDULE(eg_cosine_decay(0, 100, 0, .2, 10), 5, .1);               // warming up
    SCHEDULE(eg_cosine_decay(0, 100, 0, .2, 10), 10, .2);
    SCHEDULE(eg_cosine_decay(0, 100, 0, .2, 10), 60, .1);
    SCHEDULE(eg_polynomial_decay(.1, 100, .01, 1, false), 50, .055);
    SCHEDULE(eg_polynomial_decay(.1, 100, .01, 2, false), 50, .09 * .25 + .01);
    SCHEDULE(eg_polynomial_decay(.1, 100, .01, 1, false), 500, .01);
    SCHEDULE(eg_polynomial_decay(.1, 100, .01, 1, true), 0, .1);
    SCHEDULE(eg_polynomial_decay(.1, 100, .01, 1, true), 150, .09 * .25 + .01);
}

TEST(an_optimizer_follows_its_schedule) {
    const double boundaries[] = {0, 1}, values[] = {1, .5, .25}, want[] = {-1, -1.5, -1.75, -2};
    eg_tensor *w = eg_variable(eg_scalar(0), "w"), *g = eg_scalar(1);
    eg_optimizer *sgd = eg_sgd(.schedule = eg_piecewise_constant(boundaries, values, 2));
    for (int i = 0; i < 4; i++) {
        CHECK_NEAR(eg_optimizer_learning_rate(sgd), values[i < 2 ? i : 2], 0);
        CHECK(eg_apply_gradients(sgd, &g, &w, 1));
        CHECK_TENSOR(w, 0, want[i]);
    }
    CHECK_ERROR(eg_optimizer_set_learning_rate(sgd, 2), EG_ERROR_STATE,
                "eg_optimizer_set_learning_rate: the learning rate of this eg_sgd comes from its .schedule");
    CHECK_NEAR(eg_optimizer_learning_rate(sgd), .25, 0);       // and follows it still
    eg_release(w);
    eg_optimizer_release(sgd);
}

static eg_tensor *inverse_square_root(eg_tensor *step, const eg_schedule *s) {
    return eg_div(s->numbers[0], eg_sqrt(eg_add(step, 1)));
}
static eg_tensor *no_rate(eg_tensor *step, const eg_schedule *s) { (void)step; (void)s; return NULL; }
static eg_tensor *two_rates(eg_tensor *step, const eg_schedule *s) {
    (void)step;
    (void)s;
    return eg_constant(EG_SHAPE(2), 1, 2);
}

static eg_tensor *text_as_rate(eg_tensor *step, const eg_schedule *s) {
    (void)step;
    (void)s;
    return eg_from_data(EG_UINT8, EG_SHAPE(1), "7");
}
static eg_tensor *truth_as_rate(eg_tensor *step, const eg_schedule *s) { (void)s; return eg_greater(step, -1); }
static eg_tensor *whole_rate(eg_tensor *step, const eg_schedule *s) {
    (void)s;
    return eg_cast(eg_add(step, 1), EG_INT32);
}

TEST(a_schedule_gives_a_number) {
    eg_tensor *w = eg_variable(eg_scalar(0), "w"), *g = eg_scalar(1);
    const eg_schedule bad[] = {{.rate = text_as_rate}, {.rate = truth_as_rate}}, whole = {.rate = whole_rate};
    for (int i = 0; i < 2; i++) {
        const char *part = i ? "bool is no dtype of rates" : "uint8 is no dtype of rates";
        eg_optimizer *sgd = eg_sgd(.schedule = bad[i]);
        CHECK_ERROR(eg_apply_gradients(sgd, &g, &w, 1), EG_ERROR_DTYPE, part);
        CHECK_ERROR(eg_optimizer_learning_rate(sgd), EG_ERROR_DTYPE, part);
        CHECK_ERROR(eg_schedule_value(&bad[i], 3), EG_ERROR_DTYPE, part);
        eg_optimizer_release(sgd);
    }
    CHECK_TENSOR(w, 0, 0);
    CHECK_NEAR(eg_schedule_value(&whole, 3), 4, 0);
    eg_release(w);
}
TEST(a_schedule_of_ones_own) {
    eg_tensor *w = eg_variable(eg_scalar(0), "w"), *g = eg_scalar(1);
    eg_schedule s = {.rate = inverse_square_root, .numbers = {.5}}, bad = {.rate = no_rate}, none = {0};
    CHECK_NEAR(eg_schedule_value(&s, 3), .25, 1e-12);
    eg_optimizer *sgd = eg_sgd(.schedule = s);
    CHECK(eg_apply_gradients(sgd, &g, &w, 1));
    CHECK_TENSOR(w, 1e-7, -.5);
    eg_optimizer_release(sgd);
    sgd = eg_sgd(.schedule = bad, .momentum = .5);
    CHECK_ERROR(CHECK_INT(eg_apply_gradients(sgd, &g, &w, 1), 0), EG_ERROR_ARGUMENT, "the schedule's rate");
    CHECK_INT(eg_optimizer_state(sgd, NULL, 0), 2);
    CHECK_ERROR(eg_optimizer_learning_rate(sgd), EG_ERROR_ARGUMENT, "the schedule's rate");
    eg_optimizer_release(sgd);
    bad.rate = two_rates;
    sgd = eg_sgd(.schedule = bad);
    CHECK_ERROR(eg_apply_gradients(sgd, &g, &w, 1), EG_ERROR_ARGUMENT, "the schedule's rate");
    eg_optimizer_release(sgd);
    CHECK_TENSOR(w, 1e-7, -.5);
    CHECK_ERROR(eg_schedule_value(&none, 3), EG_ERROR_ARGUMENT, "no schedule");
    CHECK_ERROR(eg_schedule_value(NULL, 3), EG_ERROR_ARGUMENT, "no schedule");
    CHECK_ERROR(eg_piecewise_constant(NULL, NULL, 2), EG_ERROR_ARGUMENT, "a list of 2 is NULL");
    eg_release(w);
}

// ---- the guide's programs -----------------------------------------------------------------------------------------

TEST(line_search_reaches_zero_after_two_trials) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 2, 3);
    double rate = 1, norm = 14;
    int trials = 0;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *value = eg_reduce_sum(eg_square(x)), *g = eg_tape_gradient(tape, value, x), *next = NULL;
    do {
        next = eg_sub(x, eg_mul(g, rate));
        rate /= 2;
        trials++;
        norm = eg_item(eg_reduce_sum(eg_square(next)));
    } while (norm >= eg_item(value));
    CHECK_INT(trials, 2);
    CHECK_TENSOR(next, 0, 0, 0, 0);
}

TEST(linear_regression_within_the_guides_ranges) {
    eg_seed(7);
    eg_tensor *x = eg_random_normal(EG_SHAPE(2000)),
              *y = eg_add(eg_add(eg_mul(x, 3), 2), eg_random_normal(EG_SHAPE(2000)));
    eg_tensor *W = eg_variable(eg_scalar(5.0), "W"), *B = eg_variable(eg_scalar(10.0), "B");
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.01);
    double first_loss = 0, last = 0, before = 1e9;
    for (int step = 0; step < 300; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(eg_add(eg_mul(x, W), B), y))), *vars[] = {W, B}, *grads[2];
        CHECK(eg_tape_gradients(tape, loss, vars, 2, grads));
        CHECK(eg_apply_gradients(sgd, grads, vars, 2));
        last = eg_item(loss);
        if (!step) first_loss = last;
        CHECK(last <= before + 1e-4);
        before = last;
    }
    CHECK(first_loss > 62 && first_loss < 76);
    CHECK(last > .85 && last < 1.15);
    CHECK_NEAR(eg_item(W), 3, .1);
    CHECK_NEAR(eg_item(B), 2, .1);
    CHECK_INT(eg_optimizer_steps(sgd), 300);
    eg_release(W); eg_release(B);
    eg_optimizer_release(sgd);
}

// A large variable is updated in blocks: element by element the same as small variables of the same values.
static eg_optimizer *optimizer_number(int i) {
    switch (i) {
        case 0: return eg_sgd(.learning_rate = 0.1, .weight_decay = 0.01);
        case 1: return eg_sgd(.learning_rate = 0.1, .momentum = 0.9);
        case 2: return eg_sgd(.learning_rate = 0.1, .momentum = 0.9, .nesterov = true);
        case 3: return eg_rmsprop(.learning_rate = 0.1);
        case 4: return eg_rmsprop(.learning_rate = 0.1, .momentum = 0.5);
        case 5: return eg_rmsprop(.learning_rate = 0.1, .momentum = 0.5, .centered = true);
        case 6: return eg_adam(.learning_rate = 0.1);
        case 7: return eg_adam(.learning_rate = 0.1, .amsgrad = true);
        case 8: return eg_adamw(.learning_rate = 0.1);
        case 9: return eg_adagrad(.learning_rate = 0.1);
        case 10: return eg_adadelta(.learning_rate = 0.1);
        case 11: return eg_adamax(.learning_rate = 0.1);
        case 12: return eg_nadam(.learning_rate = 0.1);
        case 13: return eg_ftrl(.learning_rate = 0.1, .l1 = 0.01, .l2 = 0.01);
        case 14: return eg_lion(.learning_rate = 0.1);
        default: return NULL;
    }
}
TEST(large_variables_are_updated_as_small_ones) {
    enum { N = 300 };
    static const int pieces[] = { 1, 7, 64, 128, 100 };
    for (int dtype = EG_FLOAT32; dtype <= EG_FLOAT64; dtype++)
        for (int k = 0; k < 15; k++) {
            EG_SCOPE;
            eg_optimizer *whole = optimizer_number(k), *split = optimizer_number(k);
            eg_tensor *start = eg_cast(eg_linspace(EG_FLOAT64, -1, 1, N), (eg_dtype)dtype),
                      *w = eg_variable(start, "w"), *parts[5];
            int64_t at = 0;
            for (int i = 0; i < 5; at += pieces[i++])
                parts[i] = eg_variable(eg_slice(start, EG_SHAPE(at), EG_SHAPE(pieces[i])), "part");
            for (int step = 0; step < 3; step++) {
                eg_tensor *g = eg_sin(eg_mul(start, 5 + step)), *g_parts[5];
                at = 0;
                for (int i = 0; i < 5; at += pieces[i++]) g_parts[i] = eg_slice(g, EG_SHAPE(at), EG_SHAPE(pieces[i]));
                CHECK(eg_apply_gradients(whole, &g, &w, 1));
                CHECK(eg_apply_gradients(split, g_parts, parts, 5));
            }
            CHECK(eg_assert_equal(eg_read(w), eg_concat(parts, 5, 0)));
            eg_release(w);
            for (int i = 0; i < 5; i++) eg_release(parts[i]);
            eg_optimizer_release(whole);
            eg_optimizer_release(split);
        }
}

// ---- odd arguments ------------------------------------------------------------------------------------------------

TEST(what_is_no_variable) {
    eg_tensor *x = eg_scalar(1), *i = eg_variable(eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 2), NULL),
              *v = eg_variable(x, NULL);
    CHECK(!eg_is_variable(NULL) && !eg_is_variable(x) && eg_is_variable(v));
    CHECK_ERROR(CHECK_INT(eg_trainable(x), 0), EG_ERROR_ARGUMENT, "eg_trainable: float32 []");
    CHECK_ERROR(eg_set_trainable(x, true), EG_ERROR_ARGUMENT, "is no variable; tensors do not change");
    CHECK_ERROR(eg_set_trainable(i, true), EG_ERROR_DTYPE, "only float32 and float64 can be trained");
    CHECK(!eg_trainable(i));
    eg_set_trainable(i, false);
    CHECK_ERROR(eg_variable(NULL, "v"), EG_ERROR_NULL, "eg_variable");
    CHECK_ERROR((eg_assign)(v, NULL), EG_ERROR_NULL, "eg_assign");
    CHECK_ERROR((eg_assign_add)(v, NULL), EG_ERROR_NULL, "eg_assign_add");
    CHECK_ERROR((eg_assign_slice)(i, EG_SHAPE(0), EG_SHAPE(1), NULL), EG_ERROR_NULL, "eg_assign_slice");
    CHECK_ERROR(eg_assign_slice(i, EG_SHAPE(0), EG_SHAPE(1), 0.5), EG_ERROR_DTYPE, "0.5");
    CHECK_ERROR(eg_assign_slice(i, EG_SHAPE(0), EG_SHAPE(1), x), EG_ERROR_DTYPE, "cannot be assigned");
    CHECK_TENSOR(i, 0, 1, 2);
    CHECK_TENSOR(eg_assign_slice(i, EG_SHAPE(1), EG_SHAPE(1), 7), 0, 1, 7);
    eg_release(i);
    eg_release(v);
}
TEST(schedules_and_lists_that_are_none) {
    const double two[] = {1, 2};
    CHECK_ERROR((void)eg_piecewise_constant(two, two, -1), EG_ERROR_ARGUMENT, "eg_piecewise_constant: a list of -1");
    CHECK_ERROR((void)eg_piecewise_constant(NULL, two, 1), EG_ERROR_ARGUMENT,
                "eg_piecewise_constant: a list of 1 is NULL");
    CHECK_ERROR((void)eg_piecewise_constant(two, NULL, 1), EG_ERROR_ARGUMENT,
                "eg_piecewise_constant: a list of 1 is NULL");
    eg_optimizer *constant = eg_sgd(.schedule = eg_piecewise_constant(NULL, two, 0)), *sgd = eg_sgd();
    CHECK_NEAR(eg_optimizer_learning_rate(constant), 1, 0);
    CHECK_ERROR(eg_optimizer_set_learning_rate(constant, 1), EG_ERROR_STATE,
                "the learning rate of this eg_sgd comes from its .schedule");
    CHECK_ERROR(eg_apply_gradient_pairs(sgd, NULL, 1), EG_ERROR_ARGUMENT,
                "eg_apply_gradient_pairs: a list of 1 is NULL");
    CHECK_INT(eg_optimizer_steps(sgd), 0);
    eg_tensor *state[3] = {NULL, NULL, NULL};
    CHECK_ERROR(CHECK_INT(eg_optimizer_state(sgd, state, 1), -1), EG_ERROR_ARGUMENT, "room for 1, but there are 2");
    CHECK(!state[0]);
    CHECK_INT(eg_optimizer_state(sgd, NULL, 0), 2);
    CHECK(eg_optimizer_retain(NULL) == NULL);
    eg_optimizer_release(constant);
    eg_optimizer_release(sgd);
}
static eg_tensor *without_variables(eg_tensor *const *in, void *user) { (void)user; return eg_square(in[0]); }
TEST(minimize_without_variables) {
    eg_tensor *x = eg_scalar(3);
    eg_optimizer *sgd = eg_sgd();
    CHECK_ERROR(eg_minimize(sgd, without_variables, NULL, &x), EG_ERROR_GRADIENT, "");
    CHECK_ERROR(eg_minimize(sgd, NULL, NULL, &x), EG_ERROR_ARGUMENT, "eg_minimize: the loss function is NULL");
    CHECK_ERROR(eg_minimize(NULL, without_variables, NULL, &x), EG_ERROR_NULL, "eg_minimize");
    CHECK_INT(eg_optimizer_steps(sgd), 0);
    eg_optimizer_release(sgd);
}
TEST(variables_without_names_have_slots_with_names) {
    eg_tensor *v = eg_variable(eg_scalar(1), NULL), *g = eg_scalar(1), *state[5];
    eg_optimizer *adamw = eg_adamw(.amsgrad = true);
    CHECK(eg_apply_gradients(adamw, &g, &v, 1));
    CHECK_INT(eg_optimizer_state(adamw, state, 5), 5);
    CHECK_STR(eg_name_of(state[2]), "variable/slot 0");
    eg_optimizer_release(adamw);
    eg_release(v);
}
// Nadam's product of momentums falls to 0 in time, and what follows is the formula without it.
TEST(nadam_goes_on_for_long) {
    eg_tensor *v = eg_variable(eg_scalar_of(EG_FLOAT64, 1), "v"), *g = eg_scalar_of(EG_FLOAT64, .5);
    eg_optimizer *nadam = eg_nadam(.learning_rate = .01, .beta_1 = .5);
    double m = 0, n = 0, product = 1, w = 1;
    for (int t = 1; t <= 150; t++) {
        double now = .5 * (1 - .5 * pow(.96, t)), next = .5 * (1 - .5 * pow(.96, t + 1));
        product *= now;
        m = .5 * m + .5 * .5;
        n = .999 * n + .001 * .25;
        w -= .01 * (next * m / (1 - product * next) + (1 - now) * .5 / (1 - product)) /
        (sqrt(n / (1 - pow(.999, t))) + 1e-7);
        CHECK(eg_apply_gradients(nadam, &g, &v, 1));
    }
    CHECK(product < 1e-30);
    CHECK_TENSOR(v, 1e-9, w);
    eg_optimizer_release(nadam);
    eg_release(v);
}

// What docs/use.md tells of epsilon: ours stands beside sqrt(v), PyTorch's beside sqrt(v / (1 - beta_2^t)), which ours
// is at step t with PyTorch's times sqrt(1 - beta_2^t). The gradients are so small that it shows.
TEST(adams_epsilon_beside_pytorchs) {
    enum { STEPS = 5 };
    double e = 1e-8, g = 1e-7, m = 0, v = 0, ours = 0, pytorchs = 0;
    for (int told = 0; told < 2; told++) {
        eg_tensor *w = eg_variable(eg_scalar_of(EG_FLOAT64, 0), "w"), *grad = eg_scalar_of(EG_FLOAT64, g);
        eg_optimizer *adam = eg_adam(.epsilon = e);
        m = v = ours = pytorchs = 0;
        for (int t = 1; t <= STEPS; t++) {
            double c1 = 1 - pow(.9, t), c2 = 1 - pow(.999, t), was = eg_item(w);
            if (told) {  // an optimizer for each step has the epsilon that is PyTorch's there
                eg_optimizer *now = eg_adam(.epsilon = e * sqrt(c2));
                for (int i = 0; i < t; i++) {
                    if (i == t - 1) eg_assign(w, was);
                    CHECK(eg_apply_gradients(now, &grad, &w, 1));
                }
                eg_optimizer_release(now);
            } else CHECK(eg_apply_gradients(adam, &grad, &w, 1));
            m = .9 * m + .1 * g;
            v = .999 * v + .001 * g * g;
            ours -= .001 * sqrt(c2) / c1 * m / (sqrt(v) + e);
            pytorchs -= .001 * (m / c1) / (sqrt(v / c2) + e);
            CHECK_NEAR(eg_item(w), told ? pytorchs : ours, 1e-15);
        }
        eg_optimizer_release(adam);
        eg_release(w);
    }
    CHECK_NEAR(pytorchs / (-.001 * STEPS), 1 / 1.1, 1e-9);    // epsilon is a tenth of the gradient
    CHECK(ours / pytorchs < .5);
}

TEST(a_step_by_hand_says_where_it_fails) {
    eg_tensor *w = eg_variable(eg_scalar(2), "w");
    eg_optimizer *sgd = eg_sgd();
    eg_tape *tape = eg_tape_begin();
    CHECK(eg_tape_minimize(tape, eg_square(w), EG_LIST(w), sgd));
    CHECK_ERROR(eg_tape_minimize(tape, eg_square(w), EG_LIST(w), sgd), EG_ERROR_TAPE,
                "begin one in each step of a loop");
    CHECK_ERROR(eg_tape_minimize(tape, eg_square(w), EG_LIST(w), sgd), EG_ERROR_TAPE, "(at optimizers.c:");
    CHECK_ERROR(eg_tape_minimize(eg_tape_begin(), eg_scalar(1), EG_LIST(w), sgd), EG_ERROR_GRADIENT,
                "(at optimizers.c:");
    eg_optimizer_release(sgd);
    eg_release(w);
}
