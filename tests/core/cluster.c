// Many processes, as a program of one process meets them: every function works, and one rank is all there are. What
// several ranks do, tests/checks/check_cluster.sh starts.
#define _POSIX_C_SOURCE 200809L      // setenv
#include "faults.h"
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
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    CHECK_ERROR(eg_cluster_init(NULL, NULL), EG_ERROR_STATE, "compiled without EAGER_MPI; compile it with mpicc");
    unsetenv("OMPI_COMM_WORLD_SIZE");
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

// Dropout of parts of a batch of seven drops what it drops of the whole one, and leaves the generator where that leaves
// it.
static void check_parts(eg_layer *drop, eg_tensor *x, double tolerance) {
    const int64_t cuts[] = { 0, 3, 3, 4, 7 };
    eg_seed(3);
    eg_tensor *whole = eg_call(drop, x, .training = true), *next = eg_random_normal(EG_SHAPE(3));
    for (int i = 0; i < 4; i++) {
        const eg_shape begin = EG_SHAPE(cuts[i]), end = EG_SHAPE(cuts[i + 1]), one = EG_SHAPE(1);
        eg_seed(3);
        CHECK(eg_distribute_rows(cuts[i], cuts[i + 1] - cuts[i], 7));
        eg_tensor *part = eg_call(drop, eg_strided_slice(x, begin, end, one), .training = true);
        CHECK(eg_distribute_rows(0, 0, 0));
        CHECK_SAME(part, eg_strided_slice(whole, begin, end, one), tolerance);
        CHECK_SAME(eg_random_normal(EG_SHAPE(3)), next, 0);
    }
}
TEST(rows_of_a_batch) {
    eg_layer *drop = eg_layer_dropout(0.5);
    check_parts(drop, eg_ones(EG_FLOAT32, EG_SHAPE(7, 5)), 0);
    CHECK_ERROR(eg_distribute_rows(3, 5, 7), EG_ERROR_ARGUMENT, "there are no 5 rows from row 3 on among 7");
    CHECK_ERROR(eg_distribute_rows(-1, 1, 7), EG_ERROR_ARGUMENT, "there are no 1 rows from row -1 on among 7");
    eg_layer_release(drop);
}
// So does attention's dropout, which makes the elements of the draw in its kernels.
TEST(rows_of_a_batch_of_attention) {
    eg_layer *drop = eg_layer_multi_head_attention(2, 3, .dropout = 0.5);
    eg_tensor *x = eg_random_normal(EG_SHAPE(7, 5, 3));
    REQUIRE(eg_call(drop, x) != NULL);
    for (int trap = 0; trap < 2; trap++) {                 // with the trap it runs op by op
        eg_trap_nonfinite(trap);
        check_parts(drop, x, 1e-6);
    }
    eg_trap_nonfinite(false);
    eg_layer_release(drop);
}
static bool drops(eg_tensor *const *in, eg_tensor **out, void *layer) {
    return (out[0] = eg_call(layer, in[0], .training = true)) != NULL;
}
TEST(rows_are_a_part_of_a_signature) {
    eg_layer *drop = eg_layer_dropout(0.5);
    eg_function *f = eg_function_new(drops, drop);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 5)), *y;
    for (int i = 0; i < 12; i++) {
        const int64_t first = i % 3;
        EG_SCOPE;
        eg_seed(3);
        CHECK(eg_distribute_rows(first, 4, 7));
        CHECK(eg_function_call(f, &x, 1, &y, 1));
        eg_seed(3);
        CHECK_SAME(y, eg_call(drop, x, .training = true), 0);
    }
    CHECK(eg_function_counts(f).replays > 0);
    CHECK(eg_distribute_rows(0, 0, 0));
    eg_function_release(f);
    eg_layer_release(drop);
}
TEST(sync_of_one_rank) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(6, 3));
    eg_layer *a = eg_layer_batch_normalization(.sync = true), *b = eg_layer_batch_normalization();
    CHECK(begin());
    CHECK_SAME(eg_call(a, x, .training = true), eg_call(b, x, .training = true), 0);
    eg_layer_release(a);
    eg_layer_release(b);
    CHECK_ERROR(eg_layer_layer_normalization(.sync = true), EG_ERROR_ARGUMENT, "sync");
}
TEST(counts_of_one_rank) {
    const eg_cluster_info info = eg_cluster_counts();
    CHECK(info.updates == 0 && info.sent_bytes == 0 && info.staged_bytes == 0 && info.buckets == 0 && info.early == 0);
    CHECK(info.waited == 0);
}

static const char three[] = "{\"worker\": [\"w0:1\", \"w1:2\"], \"ps\": {\"7\": \"p:3\"}}";
TEST(cluster_specs) {
    int task = -1;
    eg_cluster_spec *s = eg_cluster_spec_new(three);
    CHECK_INT(eg_cluster_spec_jobs(s), 2);
    CHECK_STR(eg_cluster_spec_job(s, 0), "worker");
    CHECK_STR(eg_cluster_spec_job(s, 1), "ps");
    CHECK_INT(eg_cluster_spec_tasks(s, "worker"), 2);
    CHECK_INT(eg_cluster_spec_tasks(s, "ps"), 1);
    CHECK_INT(eg_cluster_spec_index(s, "worker", 1), 1);
    CHECK_INT(eg_cluster_spec_index(s, "ps", 0), 7);
    CHECK_STR(eg_cluster_spec_address(s, "worker", 1), "w1:2");
    CHECK_STR(eg_cluster_spec_address(s, "ps", 7), "p:3");
    CHECK_INT(eg_cluster_spec_rank(s, "ps", 7), 2);
    CHECK_STR(eg_cluster_spec_of(s, 2, &task), "ps");
    CHECK_INT(task, 7);
    CHECK_STR(eg_cluster_spec_of(s, 1, NULL), "worker");
    CHECK_ERROR(eg_cluster_spec_address(s, "chief", 0), EG_ERROR_ARGUMENT,
                "eg_cluster_spec_address: No such job in cluster: 'chief'");
    CHECK_ERROR(eg_cluster_spec_address(s, "worker", 7), EG_ERROR_ARGUMENT, "No task with index 7 in job 'worker'");
    CHECK_ERROR(eg_cluster_spec_rank(s, "ps", 0), EG_ERROR_ARGUMENT, "No task with index 0 in job 'ps'");
    CHECK_ERROR(eg_cluster_spec_tasks(s, NULL), EG_ERROR_ARGUMENT, "No such job in cluster: '(NULL)'");
    CHECK_ERROR(eg_cluster_spec_index(s, "ps", 1), EG_ERROR_ARGUMENT, "job 'ps' has 1 tasks, and none at place 1");
    CHECK_ERROR(eg_cluster_spec_job(s, 2), EG_ERROR_ARGUMENT, "there is no job 2 among 2");
    CHECK_ERROR(eg_cluster_spec_of(s, 3, NULL), EG_ERROR_ARGUMENT, "there is no rank 3 among 3 tasks");
    eg_cluster_spec_release(eg_cluster_spec_retain(s));
    CHECK(eg_cluster_spec_jobs(s) > 0);                     // the other reference keeps it
    eg_cluster_spec_release(s);
    eg_cluster_spec_release(eg_cluster_spec_retain(NULL));
}
TEST(cluster_specs_refused) {
    CHECK_ERROR(eg_cluster_spec_new("{\"a\": 3}"), EG_ERROR_FILE, "job 'a' is neither a list of addresses nor");
    CHECK_ERROR(eg_cluster_spec_new("{\"a\": [3]}"), EG_ERROR_FILE, "a task of job 'a' has no address");
    CHECK_ERROR(eg_cluster_spec_new("{\"a\": [\"\"]}"), EG_ERROR_FILE, "a task of job 'a' has no address");
    CHECK_ERROR(eg_cluster_spec_new("{\"a\": {\"x\": \"b\"}}"), EG_ERROR_FILE, "'x' is no index of a task");
    CHECK_ERROR(eg_cluster_spec_new("{\"a\": {\"01\": \"b\"}}"), EG_ERROR_FILE, "'01' is no index of a task");
    CHECK_ERROR(eg_cluster_spec_new("{\"a\": [\"b\"]"), EG_ERROR_FILE, "a ',' or '}' is missing");
    CHECK_ERROR(eg_cluster_spec_new("{\"cluster\": {\"a\": [\"b\"]}, \"task\": {\"type\": \"a\"}}"), EG_ERROR_FILE,
                "\"task\" needs a \"type\", the name of a job, and an \"index\"");
    CHECK_ERROR(eg_cluster_spec_new("{\"cluster\": {\"a\": [\"b\"]}, \"task\": {\"type\": \"a\", \"index\": 1}}"),
                EG_ERROR_ARGUMENT, "No task with index 1 in job 'a'");
    CHECK_ERROR(eg_cluster_spec_new("nowhere/spec.json"), EG_ERROR_FILE, "nowhere/spec.json");
}
// From a file, from the environment, and each cut and damaged one is an error or a spec.
TEST(cluster_specs_from_elsewhere) {
    char text[sizeof three];
    FILE *file = fopen("spec.json", "w");
    CHECK(file && fputs(" \n{\"cluster\": {\"a\": [\"b\"]}, \"task\": {\"type\": \"a\", \"index\": 0}}", file) >= 0);
    if (file) fclose(file);
    eg_cluster_spec *s = eg_cluster_spec_new("spec.json");
    CHECK_STR(eg_cluster_spec_address(s, "a", 0), "b");
    eg_cluster_spec_release(s);
    remove("spec.json");
    setenv("EAGER_CLUSTER", three, 1);
    s = eg_cluster_spec_new(NULL);
    CHECK_INT(eg_cluster_spec_jobs(s), 2);
    eg_cluster_spec_release(s);
    unsetenv("EAGER_CLUSTER");
    unsetenv("TF_CONFIG");
    CHECK_ERROR(eg_cluster_spec_new(NULL), EG_ERROR_ARGUMENT, "EAGER_CLUSTER and TF_CONFIG are not set");
    for (size_t i = 0; i < 8 * sizeof three; i++) {
        memcpy(text, three, sizeof text);
        if (i < sizeof three) text[i] = 0;
        else text[i % sizeof three] = (char)(text[i % sizeof three] ^ (1 << (i / sizeof three)));
        text[0] = '{';
        text[sizeof text - 1] = 0;
        s = eg_cluster_spec_new(text);
        CHECK((s != NULL) == (eg_error() == EG_OK));
        eg_error_clear();
        eg_cluster_spec_release(s);
    }
}
static bool makes_a_spec(void) {
    eg_cluster_spec *s = eg_cluster_spec_new(three);
    eg_cluster_spec_release(s);
    return s != NULL;
}
TEST(faults_in_specs) { faults_sweep(makes_a_spec); }

TEST(servers_need_ranks) {
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "v"), *x = eg_ones(EG_FLOAT32, EG_SHAPE(2));
    eg_optimizer *sgd = eg_sgd();
    CHECK_ERROR(eg_server_run(sgd, EG_LIST(v)), EG_ERROR_STATE, "several ranks, and there is one");
    CHECK_ERROR(eg_server_join(0, EG_LIST(v)), EG_ERROR_STATE, "several ranks, and there is one");
    CHECK_ERROR(eg_server_push(0, EG_LIST(x), EG_LIST(v), NULL), EG_ERROR_STATE, "several ranks, and there is one");
    CHECK_ERROR(eg_server_leave(0), EG_ERROR_STATE, "several ranks, and there is one");
    CHECK_ERROR(eg_server_join(0, EG_LIST(x)), EG_ERROR_ARGUMENT, "variable");
    eg_release(v);
    eg_optimizer_release(sgd);
}

TEST(refused) {
    eg_tensor *x = eg_scalar(1), *b = eg_cast(eg_ones(EG_FLOAT32, EG_SHAPE(2)), EG_BOOL);
    CHECK_ERROR(eg_all_gather(x), EG_ERROR_SHAPE, "has no axis 0");
    CHECK_ERROR(eg_reduce_scatter(x), EG_ERROR_SHAPE, "has no axis 0");
    CHECK_ERROR(eg_all_reduce(b), EG_ERROR_DTYPE, "needs numbers to compute with");
    CHECK_ERROR(eg_broadcast(x, 1), EG_ERROR_ARGUMENT, "there is no rank 1; ranks are 0 to 0");
    CHECK_ERROR(eg_broadcast_variables(EG_LIST(x), 0), EG_ERROR_ARGUMENT, "variable");
    CHECK_ERROR(eg_cluster_init(NULL, NULL, .timeout = -1), EG_ERROR_ARGUMENT,
                ".timeout is -1; it must be above 0");
    CHECK_ERROR(eg_cluster_init(NULL, NULL, .start_timeout = -1), EG_ERROR_ARGUMENT, ".start_timeout is -1");
    CHECK_ERROR(eg_cluster_init(NULL, NULL, .bucket_bytes = -1), EG_ERROR_ARGUMENT,
                ".bucket_bytes is -1; it must be at least 1");
    CHECK_ERROR(eg_cluster_init(NULL, NULL, .bucket_bytes = EG_ZERO), EG_ERROR_ARGUMENT, ".bucket_bytes is 0");
}
