# Several ranks under mpirun: the same numbers as one process with the whole batch, and an error, never a hang, where ranks differ, stop or die.
# Skipped without MPI. The program below is each rank; its first argument says what it plays.
. tests/checks/check.sh
T=$(cd "$TEST_TEMP" && pwd)
MPICC=${MPICC:-mpicc} MPIRUN=${MPIRUN:-mpirun}                 # as in MPICC=mpicc.mpich MPIRUN=mpirun.mpich
if ! command -v $MPICC >/dev/null || ! command -v $MPIRUN >/dev/null; then
    skip cluster "no MPI (apt-get install libopenmpi-dev openmpi-bin)"
    finish
    exit
fi
cat >"$T/ranks.c" <<'END_OF_C'
#define EAGER_BACKEND
#include "eager.h"
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/guard.h"
#define WANT(condition) do { if (!(condition)) { printf("line %d, rank %d: not so: %s (%s)\n", __LINE__, eg_cluster_rank(), #condition, eg_error_message()); exit(1); } } while (0)
enum { ROWS = 8, COLUMNS = 3 };
static double largest(eg_tensor *a, eg_tensor *b) { return eg_item(eg_reduce_max(eg_abs(eg_sub(a, b)))); }

// Mean squared error of a small network with two layers on some rows.
typedef struct { eg_tensor *w, *v, *c, *x, *y; } net;
static net net_new(eg_dtype dtype, double scale) {
    net a = { NULL, NULL, NULL, NULL, NULL };
    EG_SCOPE;
    eg_tensor *i = eg_range(EG_FLOAT64, 0, COLUMNS * 4, 1);
    a.w = eg_variable(eg_cast(eg_mul(eg_sin(eg_reshape(i, EG_SHAPE(COLUMNS, 4))), scale), dtype), "w");
    a.v = eg_variable(eg_cast(eg_mul(eg_cos(eg_reshape(eg_range(EG_FLOAT64, 0, 4, 1), EG_SHAPE(4, 1))), scale), dtype), "v");
    a.c = eg_variable(eg_zeros(dtype, EG_SHAPE(1)), "c");
    a.x = eg_retain(eg_cast(eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, ROWS * COLUMNS, 1), EG_SHAPE(ROWS, COLUMNS))), dtype));
    a.y = eg_retain(eg_cast(eg_cos(eg_reshape(eg_range(EG_FLOAT64, 0, ROWS, 1), EG_SHAPE(ROWS, 1))), dtype));
    return a;
}
static bool net_step(net *a, eg_optimizer *opt, int begin, int end) {
    EG_SCOPE;
    eg_tensor *vars[] = { a->w, a->v, a->c }, *grads[] = { NULL, NULL, NULL };
    if (end > begin) {
        eg_tensor *x = eg_slice(a->x, EG_SHAPE(begin, 0), EG_SHAPE(end - begin, COLUMNS));
        eg_tensor *y = eg_slice(a->y, EG_SHAPE(begin, 0), EG_SHAPE(end - begin, 1));
        eg_tape *tape = eg_tape_begin();
        eg_tensor *out = eg_add(eg_matmul(eg_tanh(eg_matmul(x, a->w)), a->v), a->c);
        eg_tape_gradients(tape, eg_reduce_mean(eg_square(eg_sub(out, y))), vars, 3, grads);
    }
    return eg_apply_gradients(opt, grads, vars, 3);
}
// The rows of a rank: uneven, and the last of four ranks has none.
static void part(int *begin, int *end) {
    static const int of[5][5] = { { 0 }, { 0, 8 }, { 0, 5, 8 }, { 0, 3, 5, 8 }, { 0, 3, 7, 8, 8 } }, of_8[9] = { 0, 2, 3, 3, 4, 5, 6, 8, 8 };
    *begin = eg_cluster_size() == 8 ? of_8[eg_cluster_rank()] : of[eg_cluster_size()][eg_cluster_rank()];
    *end = eg_cluster_size() == 8 ? of_8[eg_cluster_rank() + 1] : of[eg_cluster_size()][eg_cluster_rank() + 1];
}
static eg_optimizer *optimizer(int which) {
    return which == 0 ? eg_sgd(.learning_rate = 0.1) : which == 1 ? eg_adam(.learning_rate = 0.01, .global_clipnorm = 0.1)
         : which == 2 ? eg_sgd(.learning_rate = 0.1, .momentum = 0.9, .clipnorm = 0.05)
                      : eg_sgd(.learning_rate = 0.1, .accumulate_steps = 3);
}
static void equal_to_one_process(eg_dtype dtype, double bound) {
    int begin, end;
    part(&begin, &end);
    for (int which = 0; which < 4; which++) {
        net a = net_new(dtype, 1), b = net_new(dtype, 1);
        eg_optimizer *opt = optimizer(which), *alone = optimizer(which);
        WANT(eg_distribute(opt) && eg_distribute_examples(opt, end - begin));
        for (int step = 0; step < 12; step++) {
            const int64_t sent = eg_cluster_counts().sent_bytes;
            WANT(net_step(&a, opt, begin, end) && net_step(&b, alone, 0, ROWS));
            // calls that only accumulate send nothing
            WANT(eg_cluster_size() < 2 || (eg_cluster_counts().sent_bytes > sent) == (which < 3 || step % 3 == 2));
        }
        WANT(largest(a.w, b.w) < bound && largest(a.v, b.v) < bound && largest(a.c, b.c) < bound);
        // the same bits everywhere
        WANT(eg_assert_equal(a.w, eg_broadcast(a.w, 0)));
        eg_tensor *all[] = { a.w, a.v, a.c, a.x, a.y, b.w, b.v, b.c, b.x, b.y };
        for (int i = 0; i < 10; i++) eg_release(all[i]);
        eg_optimizer_release(opt);
        eg_optimizer_release(alone);
    }
}

static net traced_net;
static eg_optimizer *traced_opt;
static bool traced_step(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_add(eg_matmul(eg_tanh(eg_matmul(in[0], traced_net.w)), traced_net.v), traced_net.c);
    out[0] = eg_reduce_mean(eg_square(eg_sub(y, in[1])));
    if (!eg_tape_minimize(tape, out[0], EG_LIST(traced_net.w, traced_net.v, traced_net.c), traced_opt)) return false;
    out[0] = eg_all_reduce(out[0]);
    return out[0] != NULL;
}
static void traced(void) {
    int begin, end;
    part(&begin, &end);
    if (eg_cluster_size() > 3) { begin = 2 * eg_cluster_rank(); end = begin + 2; }
    net b = net_new(EG_FLOAT64, 1);
    traced_net = net_new(EG_FLOAT64, 1);
    traced_opt = optimizer(1);
    eg_optimizer *alone = optimizer(1);
    WANT(eg_distribute(traced_opt) && eg_distribute_examples(traced_opt, end - begin));
    eg_function *f = eg_function_new(traced_step, NULL);
    for (int step = 0; step < 8; step++) {
        EG_SCOPE;
        eg_tensor *in[] = { eg_slice(b.x, EG_SHAPE(begin, 0), EG_SHAPE(end - begin, COLUMNS)), eg_slice(b.y, EG_SHAPE(begin, 0), EG_SHAPE(end - begin, 1)) }, *out;
        WANT(eg_function_call(f, in, 2, &out, 1));
        WANT(net_step(&b, alone, 0, ROWS));
    }
    if (eg_function_counts(f).replays < 2) printf("not traced: %s\n", eg_function_reason(f));
    WANT(eg_function_counts(f).replays >= 2);
    WANT(largest(traced_net.w, b.w) < 1e-12 && largest(traced_net.c, b.c) < 1e-12);
}

static eg_tensor *scattered(eg_tensor *x) { return eg_reduce_scatter(x); }
static eg_tensor *from_last(eg_tensor *x) { return eg_broadcast(x, eg_cluster_size() - 1); }
static eg_tensor *summed(eg_tensor *x) { return (eg_all_reduce)(x); }
static eg_tensor *gathered(eg_tensor *x) { return (eg_all_gather)(x); }
static void ops(void) {
    const int n = eg_cluster_size(), me = eg_cluster_rank();
    const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8 };
    for (int d = 0; d < 5; d++) {
        eg_tensor *line = eg_range(EG_INT64, 0, 2 * n, 1);
        eg_tensor *x = eg_cast(eg_add(line, 10 * me), dtypes[d]), *sum = eg_cast(eg_add(eg_mul(line, n), 5 * n * (n - 1)), dtypes[d]);
        WANT(eg_assert_equal(eg_all_reduce(x), sum));
        WANT(eg_assert_equal(eg_reduce_scatter(x), eg_slice(sum, EG_SHAPE(2 * me), EG_SHAPE(2))));
        WANT(eg_assert_equal(eg_broadcast(x, n - 1), eg_cast(eg_add(line, 10 * (n - 1)), dtypes[d])));
        eg_tensor *all = eg_all_gather(x);
        for (int r = 0; r < n; r++) WANT(eg_assert_equal(eg_slice(all, EG_SHAPE(2 * n * r), EG_SHAPE(2 * n)), eg_cast(eg_add(line, 10 * r), dtypes[d])));
    }
    // sizes that do not divide, among them none at all, and one of many pieces
    const int64_t sizes[] = { 0, 1, 3, 7, 100003 };
    for (int i = 0; i < 5; i++) {
        eg_tensor *x = eg_range(EG_FLOAT64, 0, (double)sizes[i], 1), *y = eg_all_reduce(eg_mul(x, me + 1));
        WANT(y && eg_assert_equal(y, eg_mul(x, n * (n + 1) / 2)));
        WANT(eg_assert_equal(eg_broadcast(eg_mul(x, me + 1), 0), x));
    }
    // each gradient against differences of the sum of all ranks' losses, for one element of one rank at a time
    eg_tensor *(*const f[])(eg_tensor *) = { summed, gathered, scattered, from_last };
    for (int k = 0; k < 4; k++) {
        eg_tensor *x = eg_sin(eg_add(eg_range(EG_FLOAT64, 0, n, 1), 3 * me)), *y, *dx, *w;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        y = eg_square(f[k](x));
        w = eg_cos(eg_add(eg_range(EG_FLOAT64, 0, (double)eg_shape_of(y).dims[0], 1), me));
        eg_tensor *loss = eg_reduce_sum(eg_mul(w, y));
        dx = eg_tape_gradient(tape, loss, x);
        WANT(dx);
        for (int r = 0; r < n; r++)
            for (int i = 0; i < n; i++) {
                double side[2];
                for (int s = 0; s < 2; s++) {
                    eg_tensor *at = eg_mul(eg_cast(eg_equal(eg_range(EG_INT32, 0, n, 1), i), EG_FLOAT64), r == me ? (s ? -1e-5 : 1e-5) : 0.0);
                    side[s] = eg_item(eg_all_reduce(eg_reduce_sum(eg_mul(w, eg_square(f[k](eg_add(x, at)))))));
                }
                if (r == me) WANT(fabs((side[0] - side[1]) / 2e-5 - eg_item(eg_slice(dx, EG_SHAPE(i), EG_SHAPE(1)))) < 1e-8);
            }
    }
    WANT(eg_cluster_barrier());
}
static void mismatch(void) {
    const int me = eg_cluster_rank();
    eg_set_error_handler(NULL, NULL);
    eg_tensor *x = eg_ones(EG_FLOAT32, me ? EG_SHAPE(3) : EG_SHAPE(2));
    WANT(!eg_all_reduce(x));
    WANT(strstr(eg_error_message(), "the ranks differ: rank 0 calls eg_all_reduce of float32 [2], and rank 1 calls eg_all_reduce of float32 [3]"));
    eg_error_clear();
    WANT(me ? !eg_all_gather(x) : !eg_cluster_barrier());
    WANT(strstr(eg_error_message(), "rank 0 calls eg_cluster_barrier, and rank 1 calls eg_all_gather of float32 [3]"));
    eg_error_clear();
    // a list that is another one, by a variable's name
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), me ? "kernel" : "bias"), *g = eg_ones(EG_FLOAT32, EG_SHAPE(2));
    eg_optimizer *opt = eg_sgd();
    WANT(eg_distribute(opt) && !eg_apply_gradients(opt, &g, &v, 1));
    WANT(strstr(eg_error_message(), "rank 0 has variable 'bias', float32 [2], and rank 1 has variable 'kernel', float32 [2]"));
    WANT(eg_item(eg_reduce_sum(v)) == 2);
    eg_error_clear();
    // by its length
    eg_tensor *two[] = { v, eg_variable(g, "second") }, *grads[] = { g, g };
    opt = eg_sgd();
    WANT(eg_distribute(opt) && !eg_apply_gradients(opt, grads, two, me ? 2 : 1));
    WANT(strstr(eg_error_message(), "rank 0 has 1 variable, of which 1 is new, in eg_apply_gradients, and rank 1 has 2 variables, of which 2 are new"));
    eg_error_clear();
    // by the optimizer
    opt = me ? eg_adam(.learning_rate = 0.5) : eg_sgd(.learning_rate = 0.5);
    WANT(eg_distribute(opt) && !eg_apply_gradients(opt, &g, &v, 1) && eg_item(eg_reduce_sum(v)) == 2);
    WANT(strstr(eg_error_message(), "eg_apply_gradients: the ranks differ: rank 0 updates by eg_sgd (.learning_rate") && strstr(eg_error_message(), "and rank 1 updates by eg_adam (.learning_rate, .beta_1 0.9, .beta_2 0.999"));
    eg_error_clear();
    opt = me ? eg_adam(.beta_2 = 0.99) : eg_adam();
    WANT(eg_distribute(opt) && !eg_apply_gradients(opt, &g, &v, 1));
    WANT(strstr(eg_error_message(), ".beta_2 0.999,") && strstr(eg_error_message(), ".beta_2 0.99,"));
    eg_error_clear();
    opt = me ? eg_adam(.amsgrad = true) : eg_adam();
    WANT(eg_distribute(opt) && !eg_apply_gradients(opt, &g, &v, 1) && strstr(eg_error_message(), ".amsgrad 1"));
    eg_error_clear();
    opt = eg_sgd(.schedule = eg_exponential_decay(me ? 0.25 : 0.5, 10, 0.5, false));
    WANT(eg_distribute(opt) && !eg_apply_gradients(opt, &g, &v, 1) && strstr(eg_error_message(), "updates by eg_sgd (.schedule"));
    eg_error_clear();
    WANT(eg_cluster_barrier());                          // and the ranks go on
    // lists of variables that all ranks have seen, of equal sizes: others, or in another order
    eg_tensor *ab[] = { eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "a"), eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "b") }, *ba[] = { ab[1], ab[0] };
    opt = eg_sgd();
    WANT(eg_distribute(opt) && eg_apply_gradients(opt, grads, ab, 2));
    eg_tensor *former = eg_identity(ab[0]);
    for (int count = 1; count < 3; count++) {
        WANT(!eg_apply_gradients(opt, grads, me ? ba : ab, count) && eg_assert_equal(ab[0], former));
        WANT(strstr(eg_error_message(), "rank 0 calls eg_apply_gradients of 'a' (its variable 0)") && strstr(eg_error_message(), "and rank 1 calls eg_apply_gradients of 'b' (its variable 1)"));
        WANT(strstr(eg_error_message(), count > 1 ? " with 4 elements in 1 message, after 1 update, at" : " with 2 elements in 1 message, after 1 update, at"));
        WANT(strstr(eg_error_message(), "; do all ranks give the same variables in the same order?"));
        eg_error_clear();
    }
    WANT(eg_apply_gradients(opt, grads, ab, 2) && eg_optimizer_set_learning_rate(opt, me ? 0.5 : 0.25));
    WANT(!eg_apply_gradients(opt, grads, ab, 2) && strstr(eg_error_message(), "at a learning rate of 0.25") && strstr(eg_error_message(), "at a learning rate of 0.5"));
    WANT(strstr(eg_error_message(), "; have all ranks the same learning rate?"));
    eg_error_clear();
    eg_tensor *w = eg_variable(eg_scalar(0), "w"), *dw = eg_scalar(1);
    opt = eg_sgd();
    WANT(eg_distribute(opt) && eg_apply_gradients(opt, &dw, &w, 1) && !(me ? eg_cluster_barrier() : eg_apply_gradients(opt, &dw, &w, 1)));
    WANT(strstr(eg_error_message(), "rank 0 calls eg_apply_gradients of 'w' (its variable 0) with 1 element in 1 message, after 1 update, at a learning rate of 0.01, and rank 1 calls eg_cluster_barrier; has each rank as many batches?"));
    eg_error_clear();
    // where the second variable differs, the first one stays what it is
    eg_tensor *part[] = { eg_variable(eg_scalar(me), "part"), eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2 + me)), "other") }, *parts_g[] = { eg_scalar(1), eg_zeros(EG_FLOAT32, EG_SHAPE(2 + me)) };
    eg_list part_list = { 2, part };
    opt = eg_sgd();
    WANT(!eg_broadcast_variables(part_list, 0) && strstr(eg_error_message(), "'other', float32 [2]") && eg_item(part[0]) == me);
    eg_error_clear();
    WANT(eg_distribute(opt) && !eg_apply_gradients(opt, parts_g, part, 2) && strstr(eg_error_message(), "'other', float32 [3]") && eg_item(part[0]) == me);
    eg_error_clear();
    // a rank that has no examples adds nothing, even where its gradient or its value is no number
    eg_tensor *c = eg_variable(eg_scalar(me ? HUGE_VAL : 1), "c"), *dc = eg_scalar(me ? NAN : 1);
    opt = eg_sgd(.learning_rate = 0.25);
    WANT(eg_distribute(opt) && eg_apply_gradients(opt, &dc, &c, 1) && eg_item(c) == 0.75);
    WANT(eg_distribute_examples(opt, me ? 0 : 3) && eg_apply_gradients(opt, &dc, &c, 1) && eg_item(c) == 0.5);
    opt = eg_sgd(.learning_rate = 0.25, .accumulate_steps = 2);
    WANT(eg_distribute(opt) && eg_distribute_examples(opt, me ? 0 : 3) && eg_apply_gradients(opt, &dc, &c, 1) && eg_apply_gradients(opt, &dc, &c, 1) && eg_item(c) == 0.25);
    // a rank whose gradients are an error gives its update up
    opt = eg_sgd();
    WANT(eg_distribute(opt));
    for (int step = 0; step < 4; step++) {
        eg_tensor *one = eg_ones(EG_FLOAT32, EG_SCALAR);
        if (me && step % 2) one = eg_matmul(one, one);
        WANT(eg_apply_gradients(opt, &one, &c, 1) == (step % 2 == 0));
        WANT(step % 2 == 0 || strstr(eg_error_message(), me ? "eg_matmul" : "rank 1 has given up this update"));
        eg_error_clear();
    }
    WANT(eg_optimizer_steps(opt) == 2);
    // with accumulated gradients the failed call is made up for by one more
    for (int fails = 0; fails < 3; fails++) {
        opt = eg_sgd(.learning_rate = 0.5, .accumulate_steps = 3);
        eg_tensor *d = eg_variable(eg_scalar(0), "d");
        WANT(eg_distribute(opt));
        for (int call = 0; call < 7; call++) {
            eg_tensor *one = eg_ones(EG_FLOAT32, EG_SCALAR);
            if (me && call == fails) one = eg_matmul(one, one);
            WANT(eg_apply_gradients(opt, &one, &d, 1) == (me ? call != fails : call != 2));
            eg_error_clear();
        }
        WANT(eg_optimizer_steps(opt) == 2 && eg_item(d) == -1);
    }
    // a collective call meets the news, too, and is not answered by more of them
    opt = eg_sgd();
    WANT(eg_distribute(opt));
    for (int step = 0; step < 4; step++) {
        eg_tensor *one = eg_ones(EG_FLOAT32, EG_SCALAR);
        if (me && step % 2) one = eg_matmul(one, one);
        eg_tensor *sum = eg_all_reduce(one);
        WANT((sum != NULL) == (step % 2 == 0) && (sum || me || strstr(eg_error_message(), "eg_all_reduce: rank 1 has given up, after step")));
        WANT(eg_apply_gradients(opt, &sum, &c, 1) == (sum != NULL));
        eg_error_clear();
    }
    // of a fit the same, in a forward pass
    eg_layer *m = eg_sequential(eg_layer_dense(3, .input_shape = EG_SHAPE(2)));
    WANT(eg_compile(m, eg_sgd(), eg_sparse_categorical_crossentropy));
    eg_tensor *labels = eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 1, 2, 7);
    const double waited = eg_cluster_counts().waited;
    WANT(!eg_fit_arrays(m, eg_ones(EG_FLOAT32, EG_SHAPE(4, 2)), labels, .batch_size = 4, .no_shuffle = true, .quiet = true, .distribute = true));
    WANT(strstr(eg_error_message(), me ? "label" : "rank 1 has given up this update") && eg_cluster_counts().waited - waited < 20);
    eg_error_clear();
    // a fit fails in its own name, and another rank hears that its call is one of a fit
    WANT(me ? !eg_fit_arrays(m, eg_ones(EG_FLOAT32, EG_SHAPE(4, 2)), labels, .quiet = true, .distribute = true) : !eg_cluster_barrier());
    WANT(strstr(eg_error_message(), me ? "eg_fit_arrays: the ranks differ: rank 0 calls eg_cluster_barrier, and rank 1 calls eg_broadcast of uint8 [" : "eg_cluster_barrier: the ranks differ: rank 0 calls eg_cluster_barrier, and rank 1 calls eg_broadcast of uint8 [") && strstr(eg_error_message(), "] from rank 0, in eg_fit"));
    eg_error_clear();
    WANT(eg_cluster_barrier());
}
// Each rank begins with other values: the first step is rank 0's alone, and from then on all have the same.
static void other_values(void) {
    net a = net_new(EG_FLOAT64, 1 + eg_cluster_rank()), b = net_new(EG_FLOAT64, 1);
    eg_optimizer *opt = eg_sgd(.learning_rate = 0.1), *alone = eg_sgd(.learning_rate = 0.1);
    WANT(eg_distribute(opt));
    for (int step = 0; step < 3; step++) WANT(net_step(&a, opt, 0, ROWS) && net_step(&b, alone, 0, ROWS));
    WANT(largest(a.w, b.w) < 1e-12 && largest(a.v, b.v) < 1e-12);
    net c = net_new(EG_FLOAT64, 1 + eg_cluster_rank());
    WANT(eg_broadcast_variables(EG_LIST(c.w, c.v, c.c), eg_cluster_size() - 1));
    net d = net_new(EG_FLOAT64, eg_cluster_size());
    WANT(eg_assert_equal(c.w, d.w) && eg_assert_equal(c.v, d.v));
}
// A fit by all ranks is that of one process, in its weights and in what it tells; the last of three batches has one row.
static eg_layer *fit_model(bool built, int accumulate) {
    eg_seed(3);
    eg_layer *m = eg_sequential(built ? eg_layer_dense(8, .activation = EG_TANH, .input_shape = EG_SHAPE(3)) : eg_layer_dense(8, .activation = EG_TANH), eg_layer_dense(3));
    WANT(eg_compile(m, eg_adam(.learning_rate = 0.01, .global_clipnorm = 0.5, .accumulate_steps = accumulate), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY));
    return m;
}
static void fit(void) {
    const int me = eg_cluster_rank();
    eg_set_default_float(EG_FLOAT64);
    eg_tensor *x = eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, 51, 1), EG_SHAPE(17, 3))), *y = eg_cast(eg_mod(eg_range(EG_INT64, 0, 17, 1), 3), EG_INT32);
    for (int way = 0; way < 6; way++) {
        // in way 3 ranks have no rows of the first batch, which makes the weights; the last two accumulate gradients of batches of 8, 8, 1
        const bool built = way != 1 && way != 3;
        const int batch = way == 3 ? 2 : 8;
        const eg_history *h[2];
        eg_layer *m[2];
        for (int alone = 0; alone < 2; alone++) {
            m[alone] = fit_model(built, way > 3 ? 3 : 0);
            if (built && !alone && me) WANT(eg_assign_add(eg_layer_weights_list(m[0]).tensors[0], 1.0));
            eg_seed(5);
            eg_dataset *data = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, y), 17), batch), *held = eg_dataset_batch(eg_dataset_from_slices(x, y), 5);
            eg_seed(alone ? 7 : 7 + me);
            h[alone] = eg_fit(m[alone], data, .epochs = 4, .validation = held, .quiet = alone || !built, .progress = EG_PROGRESS_LINES, .traced = way == 2 || way == 5, .distribute = !alone,
                              .callbacks = EG_CALLBACKS(eg_callback_csv(alone ? "alone.csv" : me ? "another.csv" : "ranks.csv")));
            WANT(h[alone]);
            eg_dataset_release(data);
            eg_dataset_release(held);
        }
        eg_list a = eg_layer_weights_list(m[0]), b = eg_layer_weights_list(m[1]);
        for (int i = 0; i < a.count; i++) WANT(largest(a.tensors[i], b.tensors[i]) < 1e-12);
        static const char *const names[] = { "loss", "accuracy", "val_loss", "val_accuracy" };
        for (int epoch = 0; epoch < 4; epoch++)
            for (int i = 0; i < 4; i++) WANT(fabs(eg_history_value(h[0], names[i], epoch) - eg_history_value(h[1], names[i], epoch)) < 1e-12);
        eg_layer_release(m[0]);
        eg_layer_release(m[1]);
    }
    // a metric whose states do not add
    double r2[2];
    for (int alone = 0; alone < 2; alone++) {
        eg_seed(3);
        eg_layer *m = eg_sequential(eg_layer_dense(2, .input_shape = EG_SHAPE(3)));
        eg_tensor *labels = eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(17, 2));
        WANT(eg_compile(m, eg_sgd(), eg_mean_squared_error, eg_metric_r2()));
        const eg_history *h = eg_fit_arrays(m, x, labels, .batch_size = 2, .epochs = 2, .no_shuffle = true, .quiet = true, .distribute = !alone);
        WANT(h);
        r2[alone] = eg_history_value(h, "r2", 1);
        eg_layer_release(m);
    }
    WANT(fabs(r2[0] - r2[1]) < 1e-12);
    FILE *another = fopen("another.csv", "r");
    WANT(eg_cluster_barrier() && !another);
}
// Under a mask of steps a fit by all ranks is that of one process, too, also where all steps of a rank are masked. Ways: 1 traces, 2 has sample weights, 3 class
// weights, 4 two outputs of which one has a mask, 5 accumulates gradients, 6 has a loss of its own, 7 a layer that computes with all ranks' rows.
static eg_tensor *own_loss(eg_tensor *y, eg_tensor *p) { return eg_loss_mean(eg_sparse_categorical_crossentropy, y, p); }
static eg_layer *masked_parts[4];
static bool masked_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *h = eg_call(masked_parts[1], eg_call(masked_parts[0], in[0]));
    out[0] = eg_call(masked_parts[2], h);
    out[1] = eg_call(masked_parts[3], eg_with_mask(h, NULL));
    WANT(out[0] && out[1] && eg_mask_of(out[0]) && !eg_mask_of(out[1]));
    return true;
}
static eg_layer *masked_model(int way, bool alone) {
    eg_seed(3);
    eg_layer *head = eg_layer_dense(3, .kernel_l2 = 0.01), *m, *rnn = eg_layer_lstm(4, .return_sequences = true), *masking = eg_layer_masking(0);
    eg_optimizer *opt = eg_adam(.learning_rate = 0.05, .accumulate_steps = way == 5 ? 2 : 0);
    if (way != 4) {
        m = eg_sequential(masking, rnn, way == 7 ? eg_layer_batch_normalization(.sync = !alone) : eg_layer_dense(4, .activation = EG_TANH), head);
        WANT(eg_compile(m, opt, way == 6 ? own_loss : eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY));
        return m;
    }
    eg_layer *parts[] = { masking, rnn, head, eg_layer_dense(1) };
    m = eg_layer_custom_multi("masked", 1, 2, masked_body, NULL);
    for (int i = 0; i < 4; i++) { char name[] = { 'a', 0 }; name[0] = (char)('a' + i); WANT(eg_layer_track(m, name, masked_parts[i] = parts[i])); }
    WANT(eg_compile_outputs(m, opt, EG_OUTPUT("a", eg_sparse_categorical_crossentropy, .metrics = EG_METRICS(EG_METRIC_ACCURACY)), EG_OUTPUT("b", eg_mean_squared_error, .weight = 0.5)));
    return m;
}
static void masks(void) {
    const int n = eg_cluster_size(), me = eg_cluster_rank();
    eg_set_default_float(EG_FLOAT64);
    double steps[85], rows[17];
    for (int i = 0; i < 85; i++) steps[i] = i % 5 < i / 5 * 7 % 6;
    for (int i = 0; i < 17; i++) rows[i] = 0.5 + i % 4;
    eg_tensor *counts = eg_from_data(EG_FLOAT64, EG_SHAPE(17, 5, 1), steps), *weights = eg_from_data(EG_FLOAT64, EG_SHAPE(17), rows);
    eg_tensor *x = eg_mul(eg_add(1.5, eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, 170, 1), EG_SHAPE(17, 5, 2)))), counts);
    eg_tensor *y = eg_cast(eg_mod(eg_reshape(eg_range(EG_INT64, 0, 85, 1), EG_SHAPE(17, 5)), 3), EG_INT32), *z = eg_cos(eg_reshape(eg_range(EG_FLOAT64, 0, 85, 1), EG_SHAPE(17, 5, 1)));
    for (int way = 0; way < 8; way++) {
        const eg_history *h[2];
        eg_layer *m[2];
        for (int alone = 0; alone < 2; alone++) {
            m[alone] = masked_model(way, alone);
            eg_dataset *data = way == 2 ? eg_dataset_from_slices(x, y, weights) : way == 4 ? eg_dataset_from_slices(x, y, z) : eg_dataset_from_slices(x, y);
            eg_dataset *held = eg_dataset_batch(eg_dataset_retain(data), 5);
            data = eg_dataset_batch(data, 8);
            eg_seed(alone ? 7 : 7 + me);
            if (!alone) eg_seed(me ? 9 : 7);
            h[alone] = eg_fit(m[alone], data, .epochs = 4, .validation = held, .quiet = true, .traced = way == 1, .eager = way != 1, .distribute = !alone,
                              .class_weights = way == 3 ? EG_CLASS_WEIGHTS(1, 2, 0.5) : (eg_class_weights){ 0, NULL });
            WANT(h[alone]);
            eg_dataset_release(data);
            eg_dataset_release(held);
        }
        eg_list a = eg_layer_weights_list(m[0]), b = eg_layer_weights_list(m[1]);
        for (int i = 0; i < a.count; i++) WANT(largest(a.tensors[i], b.tensors[i]) < 1e-12);
        for (int i = 0; eg_history_name(h[0], i); i++)
            for (int epoch = 0; epoch < 4; epoch++) {
                const char *name = eg_history_name(h[0], i);
                WANT(fabs(eg_history_value(h[0], name, epoch) - eg_history_value(h[1], name, epoch)) < 1e-12);
            }
        WANT(way != 1 || eg_model_traced_counts(m[0]).replays > 0);
        eg_layer_release(m[0]);
        eg_layer_release(m[1]);
    }
    // by hand: a rank counts as many examples as it has steps
    eg_layer *m[2];
    eg_optimizer *opt[2];
    for (int alone = 0; alone < 2; alone++) {
        m[alone] = masked_model(0, alone);
        opt[alone] = eg_model_optimizer(m[alone]);
        if (!alone) WANT(eg_distribute(opt[0]));
        const int64_t first = alone ? 0 : 16 * me / n, count = alone ? 16 : 16 * (me + 1) / n - first;
        eg_tensor *own = eg_slice(x, EG_SHAPE(first, 0, 0), EG_SHAPE(count, 5, 2)), *labels = eg_slice(y, EG_SHAPE(first, 0), EG_SHAPE(count, 5));
        for (int step = 0; step < 5; step++) {
            EG_SCOPE;
            eg_tape *tape = eg_tape_begin();
            eg_tensor *p = eg_call(m[alone], own, .training = true), *loss = eg_loss_mean(eg_sparse_categorical_crossentropy, labels, p);
            if (!alone) WANT(eg_distribute_examples(opt[0], eg_item(eg_reduce_sum(eg_cast(eg_mask_of(p), EG_FLOAT64)))));
            WANT(eg_tape_minimize(tape, loss, eg_layer_trainable_weights_list(m[alone]), opt[alone]));
        }
    }
    eg_list a = eg_layer_weights_list(m[0]), b = eg_layer_weights_list(m[1]);
    for (int i = 0; i < a.count; i++) WANT(largest(a.tensors[i], b.tensors[i]) < 1e-12);
}
// Callbacks see the same numbers on all ranks, those of one process, also within an epoch and where one rank alone has a callback. What one rank stops, all stop; where one's
// callback fails, the others' fit is an error that names it.
static double seen[2][40][2];
static int seen_count, acts_in, acts;
static const char *acts_at;
static bool sees(eg_fit_state *s, void *user) {
    const int alone = *(int *)user;
    seen[alone][seen_count][0] = eg_fit_value(s, "loss");
    seen[alone][seen_count++][1] = eg_fit_value(s, "accuracy");
    return true;
}
static bool acts_now(eg_fit_state *s, const char *at) {
    if (strcmp(at, acts_at) || s->epoch != 1 || (strstr(at, "batch") && s->batch != 1)) return true;
    if (acts_in != eg_cluster_rank()) return true;
    if (acts) s->stop = true;
    else eg_raise(EG_ERROR_ARGUMENT, "not today");
    return acts;
}
static bool acts_fit_begin(eg_fit_state *s, void *user) { (void)user; return strcmp(acts_at, "fit_begin") || acts_in != eg_cluster_rank() || (acts ? (s->stop = true) : eg_raise(EG_ERROR_ARGUMENT, "not today") != NULL); }
static bool acts_epoch_begin(eg_fit_state *s, void *user) { (void)user; return acts_now(s, "epoch_begin"); }
static bool acts_batch_begin(eg_fit_state *s, void *user) { (void)user; return acts_now(s, "batch_begin"); }
static bool acts_batch_end(eg_fit_state *s, void *user) { (void)user; return acts_now(s, "batch_end"); }
static bool acts_epoch_end(eg_fit_state *s, void *user) { (void)user; return acts_now(s, "epoch_end"); }
static void callbacks(void) {
    const int n = eg_cluster_size(), me = eg_cluster_rank();
    static int alone;
    eg_set_default_float(EG_FLOAT64);
    eg_set_error_handler(NULL, NULL);
    eg_tensor *x = eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, 51, 1), EG_SHAPE(17, 3))), *y = eg_cast(eg_mod(eg_range(EG_INT64, 0, 17, 1), 3), EG_INT32);
    for (int way = 0; way < 3; way++) {
        for (alone = 0; alone < 2; alone++) {
            eg_layer *m = fit_model(true, 0);
            seen_count = 0;
            // in way 1 the last rank alone looks, in way 2 all but that
            const bool looks = way == 0 || alone || (way == 1) == (me == n - 1);
            eg_callback *look = eg_callback_new((eg_callback_functions){ .batch_begin = sees, .batch_end = sees, .epoch_end = sees, .user = &alone });
            if (!looks) eg_callback_release(look);
            WANT(eg_fit_arrays(m, x, y, .epochs = 3, .batch_size = 4, .no_shuffle = true, .quiet = true, .distribute = !alone, .callbacks = { looks, looks ? &look : NULL }));
            WANT(seen_count == (looks ? 33 : 0));
            for (int i = 0; i < seen_count && alone && (way == 0 || (way == 1) == (me == n - 1)); i++)
                for (int k = 0; k < 2; k++) WANT(fabs(seen[0][i][k] - seen[1][i][k]) < 1e-12 || (seen[0][i][k] != seen[0][i][k] && seen[1][i][k] != seen[1][i][k]));
            eg_layer_release(m);
        }
    }
    static const char *const at[] = { "fit_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end" };
    static const int steps[] = { 0, 5, 7, 7, 10 };
    alone = 0;
    for (int i = 0; i < 5; i++)
        for (acts = 1; acts >= 0; acts--)
            for (acts_in = 0; acts_in < n; acts_in += n - 1) {
                eg_layer *m = fit_model(true, 0);
                const eg_callback_functions all[] = { { .fit_begin = acts_fit_begin }, { .epoch_begin = acts_epoch_begin }, { .batch_begin = acts_batch_begin }, { .batch_end = acts_batch_end }, { .epoch_end = acts_epoch_end } };
                const double waited = eg_cluster_counts().waited;
                const bool has = acts_in == me;             // nobody else has it
                eg_callback *act = has ? eg_callback_new(all[i]) : NULL;
                acts_at = at[i];
                const eg_history *h = eg_fit_arrays(m, x, y, .epochs = 3, .batch_size = 4, .no_shuffle = true, .quiet = true, .distribute = true, .callbacks = { has, has ? &act : NULL });
                char who[80];
                snprintf(who, sizeof who, "rank %d has given up", acts_in);
                WANT((h != NULL) == acts && (acts || strstr(eg_error_message(), has ? "not today" : who)));
                eg_error_clear();
                WANT(!acts || eg_optimizer_steps(eg_model_optimizer(m)) == steps[i]);
                WANT(eg_cluster_counts().waited - waited < 20 && eg_cluster_barrier());
                eg_layer_release(m);
            }
    // a validation in which one rank's rows are an error
    eg_tensor *wrong = eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 1, 2, 7);
    eg_layer *m = fit_model(true, 0);
    WANT(!eg_fit_arrays(m, x, y, .batch_size = 4, .no_shuffle = true, .quiet = true, .distribute = true, .validation_x = eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(4, 3)), .validation_y = wrong));
    WANT(strstr(eg_error_message(), me == n - 1 ? "label" : "has given up"));
    eg_error_clear();
    WANT(eg_cluster_barrier());
}
// Only rank 0 writes: checkpoints, backups and summaries. Each rank has a folder of its own, so that others' files would be seen.
static void files(void) {
    const int me = eg_cluster_rank();
    char board[40], best[40], backup[40];
    eg_tensor *x = eg_sin(eg_reshape(eg_range(EG_FLOAT32, 0, 51, 1), EG_SHAPE(17, 3))), *y = eg_cast(eg_mod(eg_range(EG_INT64, 0, 17, 1), 3), EG_INT32);
    eg_layer *m = fit_model(true, 0);
    snprintf(board, sizeof board, "board_%d", me);
    snprintf(best, sizeof best, "best_%d.safetensors", me);
    snprintf(backup, sizeof backup, "backup_%d/run", me);
    WANT(eg_fit_arrays(m, x, y, .epochs = 2, .batch_size = 8, .quiet = true, .distribute = true, .validation_x = x, .validation_y = y,
                       .callbacks = EG_CALLBACKS(eg_callback_tensorboard(board, .every = 1), eg_callback_checkpoint(best), eg_callback_backup(backup, .every = 2))));
}
// A fit that is broken off within an epoch goes on from its backup with the same bits, in metrics whose sums are no whole numbers, too.
static int breaks_at;
static bool breaks_off(eg_fit_state *s, void *user) { (void)user; return s->epoch != 1 || s->batch != breaks_at; }
static eg_layer *within_model(void) {
    eg_seed(3);
    eg_layer *m = eg_sequential(eg_layer_dense(2, .input_shape = EG_SHAPE(3)));
    WANT(eg_compile(m, eg_adam(.learning_rate = 0.05), eg_mean_squared_error, eg_metric_mean_absolute_error(), eg_metric_r2()));
    return m;
}
static void within(void) {
    const int me = eg_cluster_rank();
    char own[40];
    snprintf(own, sizeof own, "within/alone_%d", me);
    eg_set_default_float(EG_FLOAT64);
    eg_set_error_handler(NULL, NULL);
    eg_tensor *x = eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, 51, 1), EG_SHAPE(17, 3))), *y = eg_cos(eg_reshape(eg_range(EG_FLOAT64, 0, 34, 1), EG_SHAPE(17, 2)));
    const eg_history *h[3];
    eg_layer *m[3];
    // 0: one process; 1: all ranks; 2: all ranks, broken off behind batch 4 of the second epoch, and again behind 6
    for (int way = 0; way < 3; way++)
        for (int go = way == 2 ? 0 : 2; go < 3; go++) {
            m[way] = within_model();
            eg_seed(5);
            eg_dataset *data = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, y), 17), 2);
            eg_seed(7 + me);
            if (way == 0) eg_seed(7);
            breaks_at = go == 0 ? 3 : go == 1 ? 5 : 99;
            h[way] = eg_fit(m[way], data, .epochs = 3, .validation = data, .quiet = true, .distribute = way > 0,
                            .callbacks = EG_CALLBACKS(eg_callback_backup(way == 0 ? own : way == 1 ? "within/whole" : "within/parts", .every = 2),
                                                      eg_callback_new((eg_callback_functions){ .batch_end = breaks_off })));
            WANT((h[way] != NULL) == (go == 2));
            eg_error_clear();
            WANT(eg_cluster_barrier());
            eg_dataset_release(data);
            if (go < 2) eg_layer_release(m[way]);
        }
    eg_list a = eg_layer_weights_list(m[0]), b = eg_layer_weights_list(m[1]), c = eg_layer_weights_list(m[2]);
    for (int i = 0; i < a.count; i++) WANT(largest(a.tensors[i], b.tensors[i]) < 1e-12 && eg_assert_equal(b.tensors[i], c.tensors[i]));
    for (int i = 0; eg_history_name(h[0], i); i++)
        for (int epoch = 0; epoch < 3; epoch++) {
            const double of[] = { eg_history_value(h[0], eg_history_name(h[0], i), epoch), eg_history_value(h[1], eg_history_name(h[0], i), epoch), eg_history_value(h[2], eg_history_name(h[0], i), epoch) };
            WANT(fabs(of[0] - of[1]) < 1e-12 && of[1] == of[2]);
        }
}
// Each epoch of a fit shows every element to one rank, once.
static int shown[17];
static eg_tensor *show(eg_tensor *const *in, void *user) {
    (void)user;
    const float *rows = eg_data(in[0]);
    for (int64_t i = 0; i < eg_shape_of(in[0]).dims[0]; i++) shown[(int)rows[i]]++;
    return eg_identity(in[0]);
}
static void covers(void) {
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, 17, 1), EG_SHAPE(17, 1));
    const int batches[] = { 3, 8, 17 };
    for (int way = 0; way < 3; way++) {
        eg_layer *m = eg_sequential(eg_layer_lambda("show", show, NULL), eg_layer_dense(1));
        eg_dataset *data = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, x), 17), batches[way]);
        WANT(eg_compile(m, eg_sgd(.learning_rate = 1e-4), eg_mean_squared_error) && eg_call(m, eg_zeros(EG_FLOAT32, EG_SHAPE(0, 1))));
        for (int epoch = 0; epoch < 3; epoch++) {
            memset(shown, 0, sizeof shown);
            WANT(eg_fit(m, data, .epochs = 1, .quiet = true, .eager = true, .distribute = true));
            WANT(eg_assert_equal(eg_all_reduce(eg_from_data(EG_INT32, EG_SHAPE(17), shown)), eg_cast(eg_ones(EG_FLOAT32, EG_SHAPE(17)), EG_INT32)));
        }
        eg_dataset_release(data);
        eg_layer_release(m);
    }
    // in a loop by hand each rank reads its part of one order, also from a file
    const int n = eg_cluster_size(), me = eg_cluster_rank();
    for (int way = 0; way < 2; way++) {
        memset(shown, 0, sizeof shown);
        eg_dataset *all = eg_dataset_shuffle(way ? eg_dataset_map(eg_dataset_from_slices(x), show, NULL) : eg_dataset_from_slices(x), 17, .seed = 3);
        eg_dataset *own = eg_dataset_batch(eg_dataset_shard(all, n, me), 3);
        eg_iterator *it = eg_iterator_new(own);
        for (eg_tensor *e; eg_iterator_next(it, &e) == EG_NEXT;) if (!way) show(&e, NULL);
        if (way) for (int i = 0; i < 17; i++) shown[i] = shown[i] == 1;        // each rank has read all of them
        else WANT(eg_assert_equal(eg_all_reduce(eg_from_data(EG_INT32, EG_SHAPE(17), shown)), eg_cast(eg_ones(EG_FLOAT32, EG_SHAPE(17)), EG_INT32)));
        eg_iterator_release(it);
        eg_dataset_release(own);
    }
}
// Epochs up to `epochs` of a fit that goes on where a backup ends; at the fourth, as one process that was never stopped.
static void resume(int epochs) {
    eg_set_default_float(EG_FLOAT64);
    eg_tensor *x = eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, 51, 1), EG_SHAPE(17, 3))), *y = eg_cast(eg_mod(eg_range(EG_INT64, 0, 17, 1), 3), EG_INT32);
    eg_layer *m[2];
    for (int alone = 0; alone < 2; alone++) {
        m[alone] = fit_model(true, 0);
        eg_seed(5);
        eg_dataset *data = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, y), 17), 8);
        // so that it is the backup from which it goes on
        if (epochs == 4 && !alone) WANT(eg_assign_add(eg_layer_weights_list(m[0]).tensors[0], 1.0));
        if (alone) WANT(eg_fit(m[1], data, .epochs = epochs, .quiet = true));
        else WANT(eg_fit(m[0], data, .epochs = epochs, .quiet = true, .distribute = true, .callbacks = EG_CALLBACKS(eg_callback_backup("backup/run"))));
        eg_dataset_release(data);
    }
    eg_list a = eg_layer_weights_list(m[0]), b = eg_layer_weights_list(m[1]);
    for (int i = 0; i < a.count; i++) WANT(largest(a.tensors[i], b.tensors[i]) < 1e-12);
    WANT(eg_optimizer_steps(eg_model_optimizer(m[0])) == 3 * epochs);
}
// Layers with what differs between ranks: statistics of batches, and dropout, also in loops by hand.
static eg_layer *norm_model(bool sync, bool drops) {
    eg_seed(3);
    eg_layer *m = eg_sequential(eg_layer_dense(6, .input_shape = EG_SHAPE(3)), sync ? eg_layer_batch_normalization(.sync = true) : eg_layer_flatten(),
                                eg_layer_dropout(drops ? 0.4 : 0), eg_layer_dense(3));
    WANT(eg_compile(m, eg_sgd(.learning_rate = 0.1, .momentum = 0.9), eg_sparse_categorical_crossentropy));
    return m;
}
static void layers(void) {
    const int n = eg_cluster_size(), me = eg_cluster_rank();
    eg_set_default_float(EG_FLOAT64);
    for (int way = 0; way < 6; way++) {
        // 17 by 8: some ranks have no rows of the last batch, of 1; 18 by 3: of four ranks the first never has any
        const bool sync = way % 2, by_hand = way > 3;
        const int rows = by_hand ? 18 : 17, batch = by_hand ? 3 : 8;
        eg_tensor *x = eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, 3 * rows, 1), EG_SHAPE(rows, 3))), *y = eg_cast(eg_mod(eg_range(EG_INT64, 0, rows, 1), 3), EG_INT32);
        eg_layer *m[2];
        for (int alone = 0; alone < 2; alone++) {
            m[alone] = norm_model(sync, true);
            eg_optimizer *sgd = eg_sgd(.learning_rate = 0.1);
            eg_dataset *data = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_from_slices(x, y), rows), batch);
            eg_seed(alone || by_hand ? 5 : 5 + me);
            if (!alone) WANT(eg_distribute(sgd));
            if (!by_hand) {
                if (!alone && me) eg_seed(99);
                if (!alone && !me) eg_seed(5);
                WANT(eg_fit(m[alone], data, .epochs = 3, .quiet = true, .traced = way > 1, .eager = way < 2, .distribute = !alone));
            }
            for (int step = 0; step < 6 && by_hand; step++) {
                EG_SCOPE;
                const int first = alone ? 0 : 3 * me / n, count = alone ? 3 : 3 * (me + 1) / n - first;
                eg_tensor *own = eg_slice(x, EG_SHAPE(step * 3 + first, 0), EG_SHAPE(count, 3)), *labels = eg_slice(y, EG_SHAPE(step * 3 + first), EG_SHAPE(count));
                WANT(eg_distribute_rows(first, count, 3) && (alone || eg_distribute_examples(sgd, count)));
                eg_tape *tape = eg_tape_begin();
                eg_tensor *loss = eg_sparse_categorical_crossentropy(labels, eg_call(m[alone], own, .training = true));
                WANT(eg_tape_minimize(tape, loss, eg_layer_trainable_weights_list(m[alone]), sgd));
                WANT(eg_distribute_rows(0, 0, 0));
            }
            eg_dataset_release(data);
        }
        eg_list a = eg_layer_weights_list(m[0]), b = eg_layer_weights_list(m[1]);
        for (int i = 0; i < a.count; i++) WANT(largest(a.tensors[i], b.tensors[i]) < 1e-12);
        WANT(way != 2 || eg_model_traced_counts(m[0]).replays > 0);
    }
}
// A deep network whose gradients leave in many buckets. It prints a sum of all bits.
enum { DEEP = 12 };
static eg_tensor *deep[DEEP];
static bool deep_step(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *h = in[0];
    for (int i = 0; i < DEEP; i++) h = eg_tanh(eg_matmul(h, deep[i]));
    out[0] = eg_reduce_mean(eg_square(h));
    return eg_tape_minimize(tape, out[0], (eg_list){ DEEP, deep }, user);
}
static void overlap(void) {
    const int n = eg_cluster_size(), me = eg_cluster_rank();
    double bits = 0;
    for (int traced = 0; traced < 2; traced++) {
        eg_optimizer *adam = eg_adam(.learning_rate = 0.01, .clipnorm = 0.1), *alone = eg_adam(.learning_rate = 0.01, .clipnorm = 0.1);
        eg_tensor *all = eg_sin(eg_reshape(eg_range(EG_FLOAT64, 0, 4 * n * 40, 1), EG_SHAPE(4 * n, 40))), *in, *loss;
        eg_tensor *ours[DEEP];
        WANT(eg_distribute(adam));
        for (int way = 0; way < 2; way++) {
            for (int i = 0; i < DEEP; i++) deep[i] = eg_variable(eg_mul(0.3, eg_sin(eg_reshape(eg_range(EG_FLOAT64, i, 1600 + i, 1), EG_SHAPE(40, 40)))), "w");
            eg_function *f = eg_function_new(deep_step, way ? alone : adam);
            in = way ? all : eg_slice(all, EG_SHAPE(4 * me, 0), EG_SHAPE(4, 40));
            for (int step = 0; step < 9; step++) {
                const eg_cluster_info before = eg_cluster_counts();
                WANT(traced ? eg_function_call(f, &in, 1, &loss, 1) : deep_step(&in, &loss, way ? alone : adam));
                if (way || !step) continue;
                const eg_cluster_info now = eg_cluster_counts();
                // four matrices a bucket: all but the last of three leave early, however the step runs
                WANT(now.updates == before.updates + 1 && now.buckets == before.buckets + 3 && now.early == before.early + 2);
                // what a sum takes, a mark for each gradient, a message of each call
                const int64_t least = 2 * (n - 1) * (DEEP * 1600 * 8) / n;
                WANT(now.sent_bytes - before.sent_bytes >= least && now.sent_bytes - before.sent_bytes < least + (n - 1) * 1500 + 1000);
            }
            WANT(!traced || eg_function_counts(f).replays > 1);
            eg_function_release(f);
            for (int i = 0; i < DEEP && way == 0; i++) ours[i] = deep[i];
        }
        for (int i = 0; i < DEEP; i++) {
            WANT(largest(ours[i], deep[i]) < 1e-12);
            const unsigned char *p = eg_data(ours[i]);
            for (int k = 0; k < 1600 * 8; k++) bits = fmod(bits * 31 + p[k], 1e9);
        }
    }
    WANT(eg_assert_equal(eg_scalar(bits), eg_broadcast(eg_scalar(bits), 0)));
    if (!me) printf("bits %.0f\n", bits);
}
// A rank whose backward pass fails gives its update up: no rank applies it, and all go on.
static int failing;                                       // 0: no; 1: an error; 2: the end of the process
static eg_tensor *same(eg_tensor *const *in, eg_grad_context *c, void *user) { (void)c; (void)user; return eg_identity(in[0]); }
static void breaks(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    if (failing == 2) raise(SIGKILL);
    if (!failing) dx[0] = c->upstream[0];
    else eg_raise(EG_ERROR_ARGUMENT, "no gradient today");
}
static bool breaking_step(eg_tensor *a, eg_tensor *b, eg_optimizer *sgd) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *h = eg_custom_gradient(same, breaks, NULL, &a, 1);
    return eg_tape_minimize(tape, eg_reduce_sum(eg_mul(h, b)), EG_LIST(a, b), sgd);
}
// The same as one traced step, whose replays ask the program whether to fail, behind the gradients of some buckets.
static bool fails_now(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    if (failing) return eg_raise(EG_ERROR_ARGUMENT, "no gradient today") != NULL;
    return (out[0] = eg_identity(in[0])) != NULL;
}
static void asks(const eg_grad_context *c, eg_tensor **dx, void *user) {
    eg_host_call(fails_now, user, c->upstream, 1, dx, 1);
}
static eg_tensor *rate_or_none(eg_tensor *step, const eg_schedule *schedule) {
    (void)step, (void)schedule;
    return failing ? (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "no rate today") : eg_scalar_of(EG_FLOAT64, 0.001);
}
static eg_tensor *breaking_vars[4];
static bool breaking_traced(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *h = eg_mul(in[0], breaking_vars[0]);
    h = eg_custom_gradient(same, asks, NULL, &h, 1);
    for (int i = 1; i < 4; i++) h = eg_mul(h, breaking_vars[i]);
    eg_list vars = { 4, breaking_vars };
    out[0] = eg_reduce_sum(h);
    return eg_tape_minimize(tape, out[0], vars, user);
}
static void gives_up_traced(void) {
    const int last = eg_cluster_size() - 1;
    const bool mine = eg_cluster_rank() == last;
    int breaks = 0;
    eg_set_error_handler(NULL, NULL);
    for (int i = 0; i < 4; i++) breaking_vars[i] = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(1000)), "w");
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.001);
    WANT(eg_distribute(sgd));
    eg_function *f = eg_function_new(breaking_traced, sgd);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1000)), *loss;
    for (int step = 0; step < 40; step++) {
        EG_SCOPE;
        failing = mine && step % 3 == 2;
        const eg_function_info before = eg_function_counts(f);
        eg_tensor *w = eg_identity(breaking_vars[0]), *last_w = eg_identity(breaking_vars[3]);
        const double waited = eg_cluster_counts().waited;
        const bool ok = eg_function_call(f, &x, 1, &loss, 1);
        WANT(ok == (step % 3 != 2));
        if (ok) { WANT(!eg_assert_equal(w, breaking_vars[0])); eg_error_clear(); continue; }
        char who[100];
        snprintf(who, sizeof who, "rank %d has given up this update, after step %d", last, (int)eg_cluster_counts().updates);
        WANT(strstr(eg_error_message(), mine ? "no gradient today" : who));
        eg_error_clear();
        WANT(eg_assert_equal(w, breaking_vars[0]) && eg_assert_equal(last_w, breaking_vars[3]) && eg_cluster_counts().waited - waited < 10);
        breaks += eg_function_counts(f).replays > before.replays;
    }
    WANT(breaks > 5 && eg_optimizer_steps(sgd) == 27);
    WANT(eg_assert_equal(breaking_vars[0], eg_broadcast(breaking_vars[0], 0)));
    eg_function_release(f);
    // an update that one rank alone fails to make when it has the means is an error on all ranks at the next one
    eg_optimizer *scheduled = eg_sgd(.schedule = { .rate = rate_or_none });
    eg_tensor *g = eg_ones(EG_FLOAT32, EG_SHAPE(1000));
    WANT(eg_distribute(scheduled));
    for (int step = 0; step < 4; step++) {
        failing = mine && step == 2;
        WANT(eg_apply_gradients(scheduled, &g, breaking_vars, 1) == (step < (mine ? 2 : 3)));
        WANT(step < 3 || (strstr(eg_error_message(), "after 3 updates, at") && strstr(eg_error_message(), "after 2 updates, at")));
        eg_error_clear();
    }
}
static void gives_up(bool dies) {
    const int last = eg_cluster_size() - 1;
    const bool mine = eg_cluster_rank() == last;
    eg_set_error_handler(NULL, NULL);
    eg_tensor *a = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(1000)), "a"), *b = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(1000)), "b");
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.5);
    WANT(eg_distribute(sgd));
    for (int step = 0; step < 6; step++) {
        failing = !mine ? 0 : dies ? step == 3 ? 2 : 0 : step % 2;
        eg_tensor *before = eg_identity(a);
        const bool ok = breaking_step(a, b, sgd);
        WANT(ok == (dies ? step < 3 : step % 2 == 0));
        if (ok) continue;
        WANT(eg_assert_equal(a, before) && eg_optimizer_steps(sgd) == (step + 1) / 2 + (dies ? 1 : 0));
        if (dies) {
            char who[80];
            snprintf(who, sizeof who, "rank %d (last seen at step 3)", last);
            WANT(strstr(eg_error_message(), who) || strstr(eg_error_message(), "connection"));
            eg_error_clear();
            WANT(!eg_cluster_barrier());
            printf("rank %d: %s\n", eg_cluster_rank(), eg_error_message());
            exit(7);
        }
        char who[80];
        snprintf(who, sizeof who, "rank %d has given up this update", last);
        WANT(strstr(eg_error_message(), mine ? "no gradient today" : who));
        eg_error_clear();
    }
    WANT(eg_assert_equal(a, eg_broadcast(a, 0)));
}
// A child of fork that begins in the middle of an update has no part in it, and its end does not disturb the parent's.
static pid_t child = -1;
static void forks(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    if (child < 0 && eg_cluster_counts().updates == 1) child = fork();
    dx[0] = c->upstream[0];
}
static void forking(void) {
    eg_set_error_handler(NULL, NULL);
    eg_tensor *a = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(1000)), "a"), *b = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(1000)), "b");
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.5);
    WANT(eg_distribute(sgd));
    for (int step = 0; step < 4; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *h = eg_custom_gradient(same, forks, NULL, &a, 1);
        const bool ok = eg_tape_minimize(tape, eg_reduce_sum(eg_mul(h, b)), EG_LIST(a, b), sgd);
        if (child == 0) _exit(!ok && strstr(eg_error_message(), "a child of fork belongs to no cluster") ? 5 : 6);
        WANT(ok);
    }
    int status = 0;
    WANT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    WANT(eg_optimizer_steps(sgd) == 4 && eg_assert_equal(a, eg_broadcast(a, 0)));
}
// Every call of a cluster that could not be made fails at once, with the reason.
static void all_fail(int argc, char **argv, const char *reason) {
    const double waited = eg_cluster_counts().waited;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *v = eg_variable(x, "v");
    eg_optimizer *sgd = eg_sgd();
    eg_layer *m = eg_sequential(eg_layer_dense(1, .input_shape = EG_SHAPE(1)));
    WANT(eg_compile(m, eg_sgd(), eg_mean_squared_error) && eg_error() == EG_OK && eg_cluster_rank() == 0 && eg_cluster_size() == 1);
    for (int i = 0; i < 13; i++) {
        const bool ok = i == 0 ? eg_cluster_init(&argc, &argv) : i == 1 ? eg_cluster_barrier() : i == 2 ? eg_distribute(sgd) : i == 3 ? eg_broadcast_variables(EG_LIST(v), 1)
                      : i == 4 ? eg_all_reduce(x) != NULL : i == 5 ? eg_all_gather(x) != NULL : i == 6 ? eg_reduce_scatter(x) != NULL : i == 7 ? eg_broadcast(x, 1) != NULL
                      : i == 8 ? eg_server_run(sgd, EG_LIST(v)) : i == 9 ? eg_server_join(1, EG_LIST(v)) : i == 10 ? eg_server_push(1, EG_LIST(x), EG_LIST(v), NULL)
                      : i == 11 ? eg_server_leave(1)
                      : eg_fit_arrays(m, eg_ones(EG_FLOAT32, EG_SHAPE(4, 1)), eg_ones(EG_FLOAT32, EG_SHAPE(4, 1)), .quiet = true, .distribute = true) != NULL;
        if (ok || !strstr(eg_error_message(), reason)) printf("call %d\n", i);
        WANT(!ok && strstr(eg_error_message(), reason));
        WANT(i < 12 || strstr(eg_error_message(), "eg_fit_arrays: "));
        eg_error_clear();
    }
    WANT(eg_cluster_counts().waited == waited);
}
// The last rank does not call eg_cluster_init: it ends, stops or comes late. The others do not wait without end, and go on by themselves.
static int own_rank(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return atoi(rank ? rank : getenv("PMI_RANK"));
}
static void never_starts(const char *how, int argc, char **argv) {
    const int me = own_rank(), last = 2;
    const char *reason = "not all ranks have called eg_cluster_init within 2 s";
    char text[100];
    eg_set_error_handler(NULL, NULL);
    if (me == last && !strcmp(how, "starts_never")) _exit(0);
    if (me == last && !strcmp(how, "starts_stopped")) { raise(SIGSTOP); _Exit(7); }
    if (me == last) sleep(4);
    const time_t began = time(NULL);
    const bool ok = eg_cluster_init(&argc, &argv, .timeout = 60, .start_timeout = 2);
    WANT(!ok && time(NULL) - began < 8);
    snprintf(text, sizeof text, "eg_cluster_init: %s", reason);
    WANT(strstr(eg_error_message(), text) && strstr(eg_error_message(), ": one has not come, or had waited as long for this one and has given up"));
    eg_error_clear();
    all_fail(argc, argv, reason);
    printf("rank %d: %s\n", me, reason);
    fflush(stdout);
    if (strcmp(how, "starts_never")) sleep(me == last ? 0 : me ? 8 : 6);      // meanwhile the last one has come
    exit(7);
}
// MPI is one that only the thread which starts it may call, or ends in vain: the last rank does not return from it, or
// the second has gone without it, for which mpirun kills the others.
static bool one_thread, never_returns, goes_first;
int MPI_Init_thread(int *argc, char ***argv, int wanted, int *provided) { return PMPI_Init_thread(argc, argv, one_thread ? MPI_THREAD_FUNNELED : wanted, provided); }
int MPI_Finalize(void) {
    if (never_returns && eg_cluster_rank() == eg_cluster_size() - 1) raise(SIGSTOP);
    if (goes_first && eg_cluster_rank() == 1) _Exit(0);
    FILE *arrived = getenv("ARRIVED") ? fopen(getenv("ARRIVED"), "a") : NULL;     // of the shell that plays this (play)
    if (arrived) {
        fputs("a rank\n", arrived);
        fclose(arrived);
    }
    return PMPI_Finalize();
}
static void funneled(int argc, char **argv) {
    one_thread = true;
    eg_set_error_handler(NULL, NULL);
    WANT(!eg_cluster_init(&argc, &argv) && strstr(eg_error_message(), "eg_cluster_init: this MPI can be called only by the thread that has started it"));
    eg_error_clear();
    all_fail(argc, argv, "call MPI_Init in the program, before eg_cluster_init");
    printf("all is well\n");
    exit(0);
}
// MPI runs already, and the last rank never comes to eg_cluster_init: the others do not wait without end.
static void never_joins(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    eg_set_error_handler(NULL, NULL);
    if (rank == size - 1) sleep(20);
    else {
        printf("rank %d: %s %s\n", rank, eg_cluster_init(&argc, &argv, .timeout = 2) ? "true" : "false", eg_error_message());
        eg_error_clear();
        all_fail(argc, argv, "not all ranks have called eg_cluster_init within 2 s");
    }
    fflush(stdout);
    if (rank) sleep(20);                                 // the first one ends them all
    _exit(7);
}
// Collective calls of a traced function: equal ones, and one whose result nobody reads, are each made, in each replay.
static bool many_calls(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_tensor *a = eg_all_reduce(in[0]), *b = eg_all_reduce(in[0]), *c = eg_broadcast(in[0], eg_cluster_size() - 1);
    eg_all_gather(in[0]);
    out[0] = eg_add(eg_add(a, b), eg_mul(c, 0));
    return out[0] != NULL;
}
static void kept(void) {
    const int n = eg_cluster_size();
    eg_function *f = eg_function_new(many_calls, NULL);
    int64_t sent[9];
    for (int i = 0; i < 9; i++) {
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1000), i + eg_cluster_rank()), *y;
        const int64_t before = eg_cluster_counts().sent_bytes;
        if (i) WANT(eg_function_call(f, &x, 1, &y, 1));
        else WANT(many_calls(&x, &y, NULL));
        sent[i] = eg_cluster_counts().sent_bytes - before;
        WANT(sent[i] == sent[0] && sent[i] > 4000);
        WANT(largest(y, eg_full(EG_FLOAT32, EG_SHAPE(1000), 2 * (n * i + n * (n - 1) / 2))) == 0);
    }
    WANT(eg_function_counts(f).replays > 1);
    eg_function_release(f);
}
// Traced bodies that differ between ranks in all but their collective calls: these stay in their order on each.
static bool other_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    const int me = eg_cluster_rank(), n = eg_cluster_size();
    eg_tensor *x = in[0], *y = in[0];
    for (int i = 0; i < 6; i++) {
        if ((i + me) % 2) y = eg_tanh(eg_add(y, i));
        eg_tensor *part = eg_slice(x, EG_SHAPE(0), EG_SHAPE(100 + n * i));
        if (i % 3 == 0) part = eg_all_reduce(part);
        else if (i % 3 == 1) part = eg_broadcast(part, i % n);
        else part = eg_slice(eg_all_gather(part), EG_SHAPE(0), EG_SHAPE(100 + n * i));
        if ((i + me) % 3) y = eg_add(y, eg_reduce_sum(part));
    }
    out[0] = eg_all_reduce(eg_reduce_sum(y));
    return out[0] != NULL;
}
static void in_order(void) {
    eg_function *f = eg_function_new(other_body, NULL);
    for (int i = 0; i < 12; i++) {
        eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1000), 0.001 * i), *y, *z;
        WANT(other_body(&x, &z, NULL) && eg_function_call(f, &x, 1, &y, 1) && fabs(eg_item(y) / eg_item(z) - 1) < 1e-5);
    }
    WANT(eg_function_counts(f).replays > 1);
    eg_function_release(f);
}
// The first rank serves a line's two numbers to the others, which learn it from data of their own.
static void serve(void) {
    const int n = eg_cluster_size(), me = eg_cluster_rank();
    eg_tensor *w = eg_variable(eg_full(EG_FLOAT64, EG_SHAPE(2), me), "w"), *b = eg_variable(eg_cast(eg_scalar(me), EG_FLOAT64), "b");
    eg_set_error_handler(NULL, NULL);
    if (!me) {
        eg_optimizer *adam = eg_adam(.learning_rate = 0.05);
        eg_server_report report;
        WANT(eg_server_run(adam, EG_LIST(w, b), .report = &report));
        WANT(report.updates == 300 * (n - 1) && eg_optimizer_steps(adam) == report.updates && report.stalest <= 300 * (n - 1));
        WANT(n > 2 || (report.stalest == 0 && report.staleness == 0));
        WANT(fabs(eg_item(eg_slice(w, EG_SHAPE(1), EG_SHAPE(1))) - 3) < 0.01 && fabs(eg_item(b) - 1) < 0.01);
        printf("staleness %g, at most %d\n", report.staleness, (int)report.stalest);
        return;
    }
    eg_tensor *wrong = eg_variable(eg_ones(EG_FLOAT64, EG_SHAPE(3)), "wrong"), *u = eg_variable(eg_zeros(EG_FLOAT64, EG_SHAPE(2)), "u"), *c = eg_variable(eg_cast(eg_scalar(0), EG_FLOAT64), "c");
    eg_optimizer *alone = eg_adam(.learning_rate = 0.05);
    WANT(!eg_server_push(0, EG_LIST(eg_read(w), eg_read(b)), EG_LIST(w, b), NULL) && strstr(eg_error_message(), "has not joined rank 0; call eg_server_join first"));
    eg_error_clear();
    WANT(!eg_server_join(0, EG_LIST(wrong, b)) && strstr(eg_error_message(), "rank 0 serves 2 variables of 24 bytes, and rank"));
    WANT(strstr(eg_error_message(), "or of other shapes: 'w' [2], 'b' [] against 'wrong' [3], 'b' []"));
    eg_error_clear();
    WANT(!eg_server_push(0, EG_LIST(eg_read(w), eg_read(b)), EG_LIST(w, b), NULL) && strstr(eg_error_message(), "call eg_server_join first"));
    eg_error_clear();
    WANT(!eg_server_join(me, EG_LIST(w, b)) && strstr(eg_error_message(), "is this one itself"));
    eg_error_clear();
    WANT(eg_server_join(0, EG_LIST(w, b)) && (n > 2 || eg_item(b) == 0));
    for (int step = 0; step < 300; step++) {
        EG_SCOPE;
        eg_tensor *x = eg_sin(eg_reshape(eg_range(EG_FLOAT64, step + me, step + me + 16, 1), EG_SHAPE(8, 2))), *y = eg_add(eg_reduce_sum(eg_mul(x, 3), .axes = EG_AXES(1)), 1);
        int64_t stale = -1;
        for (int own = 0; own < (n > 2 ? 1 : 2); own++) {
            eg_tape *tape = eg_tape_begin();
            eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(eg_add(eg_reduce_sum(eg_mul(x, own ? u : w), .axes = EG_AXES(1)), own ? c : b), y)));
            eg_list vars = own ? EG_LIST(u, c) : EG_LIST(w, b);
            if (own) WANT(eg_tape_minimize(tape, loss, vars, alone));
            else WANT(eg_server_push(0, eg_tape_gradients_list(tape, loss, vars), vars, &stale));
        }
        WANT(stale >= 0 && (n > 2 || stale == 0));
    }
    // a push that the server refuses leaves nothing behind
    eg_tensor *row = eg_variable(eg_zeros(EG_FLOAT64, EG_SHAPE(1, 2)), "row"), *large = eg_variable(eg_zeros(EG_FLOAT64, EG_SHAPE(300000)), "large"), *refused[] = { row, large };
    for (int i = 0; i < 2; i++) {
        WANT(!eg_server_push(0, EG_LIST(eg_add(eg_read(refused[i]), 1000)), EG_LIST(refused[i]), NULL) && strstr(eg_error_message(), "rank 0 serves 2 variables of 24 bytes, and rank"));
        eg_error_clear();
    }
    // of one worker, as one process does
    WANT(n > 2 || (largest(w, u) == 0 && largest(b, c) == 0));
    // an error of the server's optimizer is this rank's, and nothing has changed
    eg_tensor *none[] = { NULL, NULL }, *vars[] = { w, b };
    eg_list no_grads = { 2, none }, both = { 2, vars };
    WANT(!eg_server_push(0, no_grads, both, NULL) && strstr(eg_error_message(), "rank 0 says: eg_apply_gradients: No gradients provided"));
    eg_error_clear();
    WANT(eg_server_leave(0));
}
// A server and two workers. One of the three is lost on its way, or the last worker ends without a word.
static eg_tensor *dies_at_three(eg_tensor *step, const eg_schedule *schedule) {
    (void)schedule;
    if (eg_item(step) >= 3) raise(SIGKILL);
    return eg_scalar_of(EG_FLOAT64, 0.001);
}
static void serve_lost(const char *how) {
    const int me = eg_cluster_rank(), last = eg_cluster_size() - 1;
    const bool server_dies = !strcmp(how, "server_dies"), ends = !strcmp(how, "worker_ends"), early = !strcmp(how, "worker_never_joins");
    eg_tensor *w = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(100000)), "w"), *g = eg_ones(EG_FLOAT32, EG_SHAPE(100000));
    eg_set_error_handler(NULL, NULL);
    if (!me) {
        eg_optimizer *sgd = server_dies ? eg_sgd(.schedule = { .rate = dies_at_three }) : eg_sgd();
        const bool ok = eg_server_run(sgd, EG_LIST(w));
        WANT(ok == ends && eg_optimizer_steps(sgd) == (early ? 5 : 8));
        if (ok) return;
        WANT(strstr(eg_error_message(), early ? "rank 2 (has not joined) did not push within 2 s, after update 5"
                                              : "rank 2 (last seen at update ") && !strstr(eg_error_message(), "rank 1"));
        printf("rank 0: %s\n", eg_error_message());
        eg_error_clear();
        WANT(!eg_cluster_barrier() && strstr(eg_error_message(), "rank 2"));
        exit(7);
    }
    if (me == last && early) raise(SIGKILL);
    bool ok = eg_server_join(0, EG_LIST(w));
    for (int step = 0; step < 5 && ok; step++) {
        if (me == last && step == 3 && ends) exit(0);
        if (me == last && step == 3 && !server_dies) raise(SIGKILL);
        ok = eg_server_push(0, EG_LIST(g), EG_LIST(w), NULL);
    }
    WANT(ok == !server_dies);
    // the server still waits for the other worker, and says so
    if (ok) WANT(eg_server_leave(0) && (ends || (!eg_server_leave(0) && strstr(eg_error_message(), "rank 1 has left already"))));
    else WANT(strstr(eg_error_message(), "rank 0 (last seen at update ") && strstr(eg_error_message(), "did not answer within 2 s"));
    printf("rank %d: %s\n", me, eg_error_message());
    eg_error_clear();
    if (ok) return;
    WANT(!eg_server_push(0, EG_LIST(g), EG_LIST(w), NULL) && strstr(eg_error_message(), "rank 0 (last seen at update "));
    exit(7);
}
// Names of ranks, from the environment.
static void names(void) {
    int task;
    eg_cluster_spec *s = eg_cluster_spec_new(NULL);
    WANT(s && eg_cluster_spec_jobs(s) == 2 && !strcmp(eg_cluster_spec_of(s, eg_cluster_rank(), &task), eg_cluster_rank() < 2 ? "worker" : "ps"));
    WANT(task == eg_cluster_rank() % 2 && eg_cluster_spec_rank(s, "ps", 0) == 2 && !strcmp(eg_cluster_spec_address(s, "worker", 1), "w1:2222"));
    eg_cluster_spec_release(s);
    eg_set_error_handler(NULL, NULL);
    WANT(!eg_cluster_spec_new("{\"worker\": [\"w0:1\"]}") && strstr(eg_error_message(), "the cluster has 1 tasks, and there are 3 ranks"));
    eg_error_clear();
}
// The last rank does something else in its fourth step: the others' error names it.
static void lost(const char *how) {
    const int me = eg_cluster_rank(), last = eg_cluster_size() - 1;
    char who[80];
    net a = net_new(EG_FLOAT32, 1);
    eg_optimizer *opt = eg_sgd();
    eg_set_error_handler(NULL, NULL);
    WANT(eg_distribute(opt));
    for (int step = 0; step < 3; step++) WANT(net_step(&a, opt, 0, ROWS));
    if (me == last && !strcmp(how, "kill")) raise(SIGKILL);
    if (me == last && (!strcmp(how, "stop") || !strcmp(how, "abort"))) { raise(SIGSTOP); _Exit(7); }
    if (me == last && !strcmp(how, "leave")) exit(0);
    eg_tensor *before = eg_identity(a.w);
    WANT(!net_step(&a, opt, 0, ROWS));
    snprintf(who, sizeof who, strcmp(how, "leave") ? "rank %d (last seen at step 3)" : "rank %d has ended after step 3", last);
    WANT(strstr(eg_error_message(), who));
    WANT(eg_assert_equal(before, a.w));
    eg_error_clear();
    WANT(!eg_cluster_barrier() && strstr(eg_error_message(), who));      // at once, with the same reason
    printf("rank %d: %s\n", me, eg_error_message());
    exit(7);
}
int main(int argc, char **argv) {
    const char *part_of = argc > 1 ? argv[1] : "";
    const bool serves = !strcmp(part_of, "server_dies") || !strncmp(part_of, "worker_", 7);
    const bool short_time = serves || !strncmp(part_of, "ends_", 5) || !strcmp(part_of, "abort") || !strcmp(part_of, "kill") || !strcmp(part_of, "dies") || !strcmp(part_of, "stop") || !strcmp(part_of, "leave");
    if (!strcmp(part_of, "never_joins")) never_joins(argc, argv);
    if (!strncmp(part_of, "starts_", 7)) never_starts(part_of, argc, argv);
    if (!strcmp(part_of, "funneled")) funneled(argc, argv);
    goes_first = !strcmp(part_of, "ends_killed");
    never_returns = goes_first || !strcmp(part_of, "ends_in_vain");
    const bool small = !strcmp(part_of, "overlap") || !strcmp(part_of, "together");
    if (!eg_cluster_init(&argc, &argv, .timeout = short_time ? 2 : 60, .start_timeout = 60, .bucket_bytes = small ? 40000 : !strncmp(part_of, "gives_up", 8) || !strcmp(part_of, "forking") || short_time ? 4 : 0,
                         .no_overlap = !strcmp(part_of, "together"), .abort = !strcmp(part_of, "abort")))
        return 2;
    if (!strcmp(part_of, "staged")) WANT(guard_start());
    if (argc > 2) WANT(eg_cluster_size() == atoi(argv[2]));
    if (!strcmp(part_of, "dies")) gives_up(true);
    else if (serves) serve_lost(part_of);
    else if (never_returns) WANT(eg_cluster_barrier());
    else if (short_time) lost(part_of);
    else if (!strcmp(part_of, "float64")) equal_to_one_process(EG_FLOAT64, 1e-12);
    else if (!strcmp(part_of, "float32")) equal_to_one_process(EG_FLOAT32, 1e-6);
    else if (!strcmp(part_of, "staged")) {
        equal_to_one_process(EG_FLOAT64, 1e-12);
        // of 48 steps 40 update: 17 doubles are copied from the device and back
        WANT(eg_cluster_counts().staged_bytes >= 40 * 17 * 8 * 2 && guard_kernels > 100);
    } else if (!strcmp(part_of, "traced")) traced();
    else if (!strcmp(part_of, "ops")) ops();
    else if (!strcmp(part_of, "mismatch")) mismatch();
    else if (!strcmp(part_of, "fit")) fit();
    else if (!strcmp(part_of, "masks")) masks();
    else if (!strcmp(part_of, "callbacks")) callbacks();
    else if (!strcmp(part_of, "files")) files();
    else if (!strcmp(part_of, "within")) within();
    else if (!strcmp(part_of, "covers")) covers();
    else if (!strcmp(part_of, "begin")) resume(2);
    else if (!strcmp(part_of, "resume")) resume(4);
    else if (!strcmp(part_of, "other_values")) other_values();
    else if (!strcmp(part_of, "layers")) layers();
    else if (small) overlap();
    else if (!strcmp(part_of, "gives_up")) gives_up(false);
    else if (!strcmp(part_of, "gives_up_traced")) gives_up_traced();
    else if (!strcmp(part_of, "forking")) forking();
    else if (!strcmp(part_of, "kept")) kept();
    else if (!strcmp(part_of, "in_order")) in_order();
    else if (!strcmp(part_of, "serve")) serve();
    else if (!strcmp(part_of, "names")) names();
    else return 3;
    if (eg_error() != EG_OK) { printf("rank %d: an error is pending: %s\n", eg_cluster_rank(), eg_error_message()); return 1; }
    if (eg_cluster_rank() == 0) printf("all is well\n");
    return 0;
}
END_OF_C
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_CC="$CC" MPICH_CC="$CC"
# A rank that dies does not end the others, so that these can tell.
case $($MPIRUN --version 2>&1) in HYDRA*) GO_ON=-disable-auto-cleanup ;; *) GO_ON=--enable-recovery ;; esac
# The headers of MPI are not ours to warn about.
INCLUDES=$($MPICC -show 2>/dev/null | tr ' ' '\n' | sed -n 's/^-I/-isystem /p') STRICT='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -DEAGER_MPI'
O=$B/$(basename $MPICC).o
build() {
    [ -n "$(find "$O" -newer eager.h 2>/dev/null)" ] || $MPICC -std=c11 -O0 $STRICT $INCLUDES -I. -c "$B/eager.c" -o "$O" || return
    $MPICC -std=c11 -O0 -Wall -Wextra -DEAGER_MPI -I. "$T/ranks.c" "$O" -o "$T/ranks" $LIBS
}
# One rank prints, and writes what one process does.
fits() { play fit "$1" && [ "$(grep -c '^Epoch 4/4' "$T/play.log")" = 4 ] && [ "$(sed 's/,.*//' "$T/ranks.csv")" = "$(sed 's/,.*//' "$T/alone.csv")" ]; }
# A fit of four ranks that ends after its second epoch goes on with two ranks.
resumes() { rm -rf "$T/backup"; mkdir -p "$T/backup"; play begin 4 && play resume 2 && ls "$T"/backup/run*; }
# Within an epoch, the same bits.
resumes_within() { rm -rf "$T/within"; mkdir -p "$T/within"; play within "$1"; }
# Of all ranks, each of which has a folder of its own to write to, rank 0 alone writes.
files() {
    rm -rf "$T"/board_* "$T"/backup_* "$T"/best_*
    mkdir -p "$T/backup_0" "$T/backup_1"
    play files "$1" && ls -d "$T"/board_* "$T"/backup_*/* "$T"/best_* >"$T/written" || return
    cat "$T/written"
    ! grep -q '_1' "$T/written" && [ "$(ls "$T/board_0/train" | wc -l)" = 1 ] && [ "$(ls "$T/board_0/validation" | wc -l)" = 1 ] &&
        grep -q 'best_0' "$T/written" && grep -q 'backup_0/run' "$T/written"
}
# Runs mpirun for at most so many seconds and sets its status; five seconds before, it looks whether a rank still lives.
# On a busy machine Open MPI's mpirun (4.1 with PMIx 4.2) may stand still after all have ended: in PMIx_server_finalize
# its own threads wait for each other. Such a run says nothing about the ranks, and is played again, twice at most.
ranks_live() { [ ! -d /proc/self ] || grep -qsa "^$T/ranks" /proc/[0-9]*/cmdline; }
launch() {                                                     # seconds, command
    alone='' look=$(($(date +%s) + $1 - 5))
    timeout -k 5 "$@" >>"$T/play.log" 2>&1 </dev/null &
    while kill -0 $! 2>/dev/null; do
        [ -n "$alone" ] || [ "$(date +%s)" -lt $look ] || { ranks_live && alone=no || alone=yes; }
        sleep 0.1
    done
    wait $!
    status=$?
}
stands_alone() { [ "$alone" = yes ] && [ $status -ge 124 ] && echo "mpirun did not end, although every rank had ended"; }
# Each ends in time, and says that all is well.
# Where mpirun stands still for some seconds while MPI ends, Open MPI's ranks wait for it no longer, and it says that
# they exited "improperly" (a stopped mpirun shows so each time). If all had come to MPI_Finalize, they play once more.
ends_late() { grep -q 'exiting improperly' "$T/play.log" && [ "$(grep -c . "$T/finalized")" = "$1" ]; }
play() {                                                       # what, how many ranks
    for turn in 1 2 3; do
        : >"$T/play.log"
        (cd "$T" && rm -f ./*.csv finalized)
        ARRIVED=$T/finalized launch 60 sh -c 'cd "$0" && exec "$@"' "$T" $MPIRUN -n "$2" "$T/ranks" "$1" "$2"
        cat "$T/play.log"
        stands_alone || { [ $turn = 1 ] && [ $status != 0 ] && ends_late "$2"; } || break
    done
    [ $status = 0 ] && grep -q '^all is well$' "$T/play.log"
}
one_thread() { timeout 60 "$T/ranks" funneled >"$T/play.log" 2>&1 </dev/null; cat "$T/play.log"; grep -q '^all is well$' "$T/play.log"; }
alone() { timeout 60 "$T/ranks" float64 1 >"$T/play.log" 2>&1 </dev/null; status=$?; cat "$T/play.log"; [ $status = 0 ]; }
# Three ranks, of which one is lost. They write by themselves, since MPICH's mpirun does not pass on what the others print
# when one has died. It ends them unless a shell stands between, and sends them a signal.
play_on() {                                                    # what, what mpirun is told besides
    what=$1 exec=exec; shift
    [ $# = 0 ] || exec=''
    for turn in 1 2 3; do
        : >"$T/play.log"
        launch 45 $MPIRUN "$@" -n 3 sh -c "trap '' USR1; $exec "'"$0/ranks" "$1" 3 >>"$0/play.log" 2>&1' "$T" "$what"
        cat "$T/play.log"
        stands_alone || break
    done
    [ -z "$alone" ] || { echo "it hangs"; return 1; }
}
# One rank is lost: each other one tells so by name, and the whole ends by itself.
loses() {                                                      # how, what mpirun is told besides
    play_on "$@" && grep -q "^rank [01]: eg_cluster_barrier: .*rank 2" "$T/play.log" &&
        ! grep -q 'rank [01]: not so' "$T/play.log"
}
never_joins() { play_on never_joins; [ $status = 7 ] && grep -q '^rank 0: false eg_cluster_init: not all ranks have called eg_cluster_init within 2 s' "$T/play.log" && ! grep -q 'not so' "$T/play.log"; }
# The same of ranks that wait in MPI_Init: as many as `tell` say so, by name.
starts() {                                                     # how, how many tell, what mpirun is told besides
    how=$1 tell=$2; shift 2
    play_on starts_$how "$@" && ! grep -q 'not so' "$T/play.log" && [ "$(grep -c '^rank [0-9]: not all ranks have called eg_cluster_init' "$T/play.log")" -ge "$tell" ]
}
# A rank is stopped where MPI ends, or has gone: the others do not wait for it without end, and what they printed is not lost.
ends() { play_on "ends_$1" && ! grep -q 'not so' "$T/play.log" && grep -q '^all is well' "$T/play.log"; }
# The same of a server and its workers: each says what it is to say.
serves_without() {                                             # how, what is said
    play_on "$1" $GO_ON && ! grep -q 'not so' "$T/play.log" || return
    shift
    for said; do grep -q "$said" "$T/play.log" || { echo "missing: $said"; return 1; }; done
}
# With .abort the end of a rank that tells so ends the others, of which one is stopped: the status is that of MPI_Abort.
aborts() { loses abort && echo "status $status" && [ $status = 1 ]; }
stops() { loses stop && echo "status $status" && [ $status = 7 ]; }
compiles() { "$@" $STRICT $INCLUDES -I. -fsyntax-only "$B/eager.c"; }

# The same bits in each run, and where gradients travel when all are there.
same_bits() {                                                  # how many ranks
    rm -f "$T/bits"
    for way in overlap overlap together; do
        play $way "$1" || return 1
        grep '^bits' "$T/play.log" >>"$T/bits"
    done
    [ "$(sort -u "$T/bits" | wc -l)" = 1 ] && [ "$(wc -l <"$T/bits")" = 3 ]
}

# Two hosts, which are network namespaces with names of their own, joined by one cable of 200 Mbit/s, and 1 ms of latency
# where the kernel has netem. mpirun reaches the other one by a script in place of ssh. They end with the namespaces.
H1=eg1-$$ H2=eg2-$$
no_hosts() { ip netns del $H1; ip netns del $H2; } 2>/dev/null
hosts() {
    command -v ip && command -v unshare && ip netns add $H1 && ip netns add $H2 && ip netns exec $H1 unshare -u true &&
        ip link add eg1v$$ type veth peer name eg2v$$ && ip link set eg1v$$ netns $H1 && ip link set eg2v$$ netns $H2 || return
    for i in 1 2; do
        ip netns exec eg$i-$$ ip addr add 10.213.7.$i/24 dev eg${i}v$$ && ip netns exec eg$i-$$ ip link set lo up && ip netns exec eg$i-$$ ip link set eg${i}v$$ up || return
    done
    ip netns exec $H1 tc qdisc add dev eg1v$$ root tbf rate 200mbit burst 64kb latency 50ms
    ip netns exec $H2 tc qdisc add dev eg2v$$ root netem delay 1ms
    cat >"$T/agent" <<'END_OF_AGENT'
host=$1; shift
exec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"
END_OF_AGENT
} >/dev/null 2>&1
# The bits of two ranks of one host.
two_hosts() {
    play overlap 2 || return 1
    grep '^bits' "$T/play.log" >"$T/bits_of_one"
    (cd "$T" && timeout -k 5 60 ip netns exec $H1 unshare -u sh -c "hostname $H1; exec mpirun --host $H1:1,$H2:1 -n 2 --mca plm_rsh_agent 'sh agent' --mca btl tcp,self \
        --mca btl_tcp_if_include 10.213.7.0/24 --mca oob_tcp_if_include 10.213.7.0/24 ./ranks overlap 2" >play.log 2>&1 </dev/null)
    cat "$T/play.log"
    grep -q '^all is well$' "$T/play.log" && grep '^bits' "$T/play.log" | cmp - "$T/bits_of_one"
}

check builds build
for n in 1 2 4; do
    check "float64_$n" play float64 $n
    check "ops_$n" play ops $n
done
check float64_8 play float64 8
check layers_2 play layers 2
check layers_4 play layers 4
check overlap same_bits 3
check kept play kept 2
check forking play forking 2
check in_order play in_order 3
check gives_up play gives_up 3
check gives_up_traced play gives_up_traced 3
check serve_2 play serve 2
check serve_4 play serve 4
EAGER_CLUSTER='{"worker": ["w0:2222", "w1:2222"], "ps": ["p0:2222"]}' check names play names 3
for n in 1 2 4 8; do check "float32_$n" play float32 $n; done
check staged play staged 2
check covers play covers 4
check traced play traced 2
check mismatch play mismatch 2
check fit_2 fits 2
check fit_4 fits 4
for n in 1 2 4; do check "masks_$n" play masks $n; done
for n in 2 3; do check "callbacks_$n" play callbacks $n; done
check files files 2
for n in 2 3; do check "resumes_within_an_epoch_$n" resumes_within $n; done
check resumes_with_fewer_ranks resumes
check other_values play other_values 3
check without_mpirun alone
# The digits of ./build.sh cluster: two ranks reach what one process reaches.
digits() {
    sed '/^#define EAGER_IMPLEMENTATION/d' examples/25_cluster.c >"$T/digits.c"
    $MPICC -std=c11 -O0 -DEAGER_MPI -I. -Iexamples "$T/digits.c" "$O" -o "$T/digits" $LIBS || return
    "$T/digits" >"$T/digits_1" && $MPIRUN -n 2 "$T/digits" >"$T/digits_2" </dev/null || return
    tail -n 1 "$T/digits_1" "$T/digits_2"
    awk '/^Held-out accuracy of/ { sub(/%/, "", $NF); n++; at[$4] = $NF } END { exit !(n == 2 && at[1] > 96 && at[2] > 96 && (at[1] - at[2]) ^ 2 <= 0.3 ^ 2) }' "$T/digits_1" "$T/digits_2"
}
check digits digits
if [ $GO_ON != --enable-recovery ]; then skip two_hosts "its mpirun is not Open MPI's"
elif hosts; then check two_hosts two_hosts
else skip two_hosts "no network namespaces here (root, iproute2 and util-linux are needed)"; fi
no_hosts
check leaves loses leave
check is_killed loses kill $GO_ON
check dies_in_an_update loses dies $GO_ON
check is_stopped stops
check never_joins never_joins
check starts_never starts never 2 $GO_ON
check starts_stopped starts stopped 1
check starts_late starts late 3 $GO_ON
check ends_in_vain ends in_vain
check ends_killed ends killed
check one_thread one_thread
check aborts aborts
check server_dies serves_without server_dies '^rank [12]: eg_server_push: rank 0 (last seen at update [0-9]*) did not answer within 2 s'
check worker_dies serves_without worker_dies '^rank 0: eg_server_run: rank 2 (last seen at update [0-9]*) did not push within 2 s, after update 8' '^rank 1: .*has left already'
check worker_never_joins serves_without worker_never_joins '^rank 0: .*rank 2 (has not joined)' '^rank 1: .*has left already'
check worker_ends serves_without worker_ends '^all is well'
[ -z "$CLANG" ] || check compiles_clang compiles "$CLANG" -std=c11
[ -z "$CXX" ] || check compiles_cpp compiles $CXX -std=c++17 -x c++
[ -z "$CLANGXX" ] || check compiles_clangpp compiles "$CLANGXX" -std=c++17 -x c++
finish
