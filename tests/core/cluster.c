// Many processes, as a program of one process meets them: every function works, and one rank is all there are. What
// several ranks do, tests/checks/check_cluster.sh starts.
#include "test.h"

static bool begin(void) { return eg_cluster_init(NULL, NULL); }

static eg_layer *line(void) {
    eg_seed(1);
    eg_layer *model = eg_sequential(eg_layer_dense(1, .input_shape = EG_SHAPE(1)));
    eg_compile(model, eg_sgd(.learning_rate = 0.1), eg_mean_squared_error);
    return model;
}
// The first test: no other has begun the cluster.
TEST(eg_cluster_init_comes_first) {
    eg_layer *model = line();
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 1));
    eg_optimizer *sgd = eg_sgd();
    CHECK_INT(eg_cluster_size(), 1);
    CHECK_ERROR(eg_distribute(sgd), EG_ERROR_STATE, "call eg_cluster_init(&argc, &argv) at the start of main");
    CHECK_ERROR(eg_fit_arrays(model, x, x, .quiet = true, .distribute = true), EG_ERROR_STATE,
                "eg_fit_arrays: .distribute needs eg_cluster_init(&argc, &argv)");
    eg_optimizer_release(sgd);
    eg_layer_release(model);
}
TEST(fit_of_one_rank) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(12, 1)), *y = eg_mul(x, 3);
    eg_layer *a = line(), *b = line();
    CHECK(begin());
    CHECK(eg_fit_arrays(a, x, y, .epochs = 3, .batch_size = 5, .no_shuffle = true, .quiet = true, .distribute = true));
    CHECK(eg_fit_arrays(b, x, y, .epochs = 3, .batch_size = 5, .no_shuffle = true, .quiet = true));
    CHECK_SAME(eg_layer_weights_list(a).tensors[0], eg_layer_weights_list(b).tensors[0], 0);
    eg_layer_release(a);
    eg_layer_release(b);
}

TEST(one_rank_is_a_cluster) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), *v = eg_variable(x, "v");
    CHECK(begin() && begin());
    CHECK(eg_cluster_rank() == 0);
    CHECK(eg_cluster_size() == 1);
    CHECK(eg_cluster_barrier());
    CHECK_TENSOR(eg_all_reduce(x), 0, 1, 2, 3, 4);
    CHECK_TENSOR(eg_all_gather(x), 0, 1, 2, 3, 4);
    CHECK_TENSOR(eg_reduce_scatter(eg_transpose(x)), 0, 1, 3, 2, 4);
    CHECK_TENSOR(eg_broadcast(x, 0), 0, 1, 2, 3, 4);
    CHECK(eg_broadcast_variables(EG_LIST(v), 0));
    CHECK_TENSOR(v, 0, 1, 2, 3, 4);
    eg_release(v);
}

static eg_tensor *collective(eg_tensor *const *in, void *user) {
    const int kind = *(int *)user;
    eg_tensor *x = eg_square(in[0]);
    return kind == 0 ? eg_all_reduce(x) : kind == 1 ? eg_all_gather(x) : kind == 2 ? eg_reduce_scatter(x)
                                                                                   : eg_broadcast(x, 0);
}
TEST(collectives_have_gradients) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(4, 3));
    for (int kind = 0; kind < 4; kind++) CHECK(eg_check_gradient(collective, &kind, &x, 1, .order = 2));
}

static bool body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_add(eg_all_reduce(eg_mul(in[0], 2)), 1)) != NULL;
}
TEST(collectives_are_traced) {
    eg_function *f = eg_function_new(body, NULL);
    for (int i = 0; i < 6; i++) {
        eg_tensor *x = eg_scalar(i), *y = NULL;
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        CHECK_TENSOR(y, 0, 2 * i + 1);
    }
    CHECK(eg_function_reason(f) == NULL);
    CHECK(eg_function_counts(f).replays > 0);
    eg_function_release(f);
}

TEST(distributed_steps_of_one_rank) {
    eg_tensor *w = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "w"), *u = eg_variable(eg_scalar(5), "u");
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.5);
    eg_tensor *grads[] = { eg_constant(EG_SHAPE(2), 2, 4), NULL }, *vars[] = { w, u };
    CHECK(begin() && eg_distribute(sgd) && eg_distribute_examples(sgd, 32));
    CHECK(eg_apply_gradients(sgd, grads, vars, 2));
    CHECK_TENSOR(w, 0, 0, 0);
    CHECK_TENSOR(u, 0, 5);
    CHECK_ERROR(eg_distribute_examples(sgd, -1), EG_ERROR_ARGUMENT, "-1 is no number of examples");
    eg_release(w);
    eg_release(u);
    eg_optimizer_release(sgd);
}

TEST(refused) {
    eg_tensor *x = eg_scalar(1), *b = eg_cast(eg_ones(EG_FLOAT32, EG_SHAPE(2)), EG_BOOL);
    CHECK_ERROR(eg_all_gather(x), EG_ERROR_SHAPE, "has no axis 0");
    CHECK_ERROR(eg_reduce_scatter(x), EG_ERROR_SHAPE, "has no axis 0");
    CHECK_ERROR(eg_all_reduce(b), EG_ERROR_DTYPE, "needs numbers to compute with");
    CHECK_ERROR(eg_broadcast(x, 1), EG_ERROR_ARGUMENT, "there is no rank 1; ranks are 0 to 0");
    CHECK_ERROR(eg_broadcast_variables(EG_LIST(x), 0), EG_ERROR_ARGUMENT, "variable");
    CHECK_ERROR(eg_cluster_init(NULL, NULL, .timeout = -1), EG_ERROR_ARGUMENT, ".timeout is -1");
}
