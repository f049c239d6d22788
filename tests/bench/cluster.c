// A training step of several ranks, beside the same step of one: tests/bench/cluster.sh starts it under mpirun, and
// tests/bench/cluster.py is its peer. Prints, of rank 0, a line for each model and way: the model, the way, the least
// and the median milliseconds of a step without the other ranks and with them, and the bytes that a step has sent over
// the fewest that it can.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdlib.h>

enum { ROUNDS = 12, STEPS = 10, WARM = 8, ROWS = 64 };

static eg_layer *network(int kind) {
    if (!kind)
        return eg_sequential(eg_layer_conv2d(16, 3, .activation = EG_RELU, .input_shape = EG_SHAPE(28, 28, 1)),
                             eg_layer_max_pooling2d(), eg_layer_conv2d(32, 3, .activation = EG_RELU),
                             eg_layer_max_pooling2d(), eg_layer_flatten(), eg_layer_dense(10));
    return eg_sequential(eg_layer_flatten(.input_shape = EG_SHAPE(28, 28, 1)),
                         eg_layer_dense(1024, .activation = EG_RELU), eg_layer_dense(1024, .activation = EG_RELU),
                         eg_layer_dense(1024, .activation = EG_RELU), eg_layer_dense(10));
}
typedef struct { eg_layer *model; eg_optimizer *sgd; } trainer;
static bool step(eg_tensor *const *in, eg_tensor **out, void *user) {
    trainer *t = user;
    eg_tape *tape = eg_tape_begin();
    out[0] = eg_sparse_categorical_crossentropy(in[1], eg_call(t->model, in[0], .training = true));
    return eg_tape_minimize(tape, out[0], eg_layer_trainable_weights_list(t->model), t->sgd);
}
static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(int argc, char **argv) {
    if (!eg_cluster_init(&argc, &argv)) return 1;
    const int n = eg_cluster_size();
    eg_tensor *in[] = { eg_random_normal(EG_SHAPE(ROWS, 28, 28, 1)),
                        eg_cast(eg_mod(eg_range(EG_INT64, 0, ROWS, 1), 10), EG_INT32) };
    for (int kind = 0; kind < 2; kind++)
        for (int traced = 0; traced < 2; traced++) {
            double ms[2][ROUNDS * STEPS], bytes = 0, weights = 0;
            trainer t[2];
            eg_function *f[2];
            for (int way = 0; way < 2; way++) {
                t[way].model = network(kind);
                t[way].sgd = eg_sgd(.learning_rate = 1e-3);
                f[way] = eg_function_new(step, &t[way]);
            }
            if (!eg_distribute(t[1].sgd)) return 1;
            for (int round = -1; round < ROUNDS; round++)
                for (int way = 0; way < 2; way++) {
                    eg_cluster_barrier();
                    const int64_t before = eg_cluster_counts().sent_bytes;
                    for (int i = 0; i < (round < 0 ? WARM : STEPS); i++) {
                        EG_SCOPE;
                        eg_tensor *loss;
                        const double begun = egi_clock_now();
                        if (traced ? !eg_function_call(f[way], in, 2, &loss, 1) : !step(in, &loss, &t[way])) return 1;
                        if (round >= 0) ms[way][round * STEPS + i] = 1e3 * (egi_clock_now() - begun);
                    }
                    if (way) bytes = (double)(eg_cluster_counts().sent_bytes - before) / STEPS;
                }
            eg_list list = eg_layer_trainable_weights_list(t[0].model);
            for (int i = 0; i < list.count; i++) weights += 4 * (double)eg_size(list.tensors[i]);
            for (int way = 0; way < 2; way++) qsort(ms[way], ROUNDS * STEPS, sizeof(double), by_size);
            if (eg_cluster_rank() == 0)
                printf("%s %s %.3f %.3f %.3f %.3f %.4f\n", kind ? "dense" : "conv", traced ? "traced" : "eager",
                       ms[0][0], ms[0][ROUNDS * STEPS / 2], ms[1][0], ms[1][ROUNDS * STEPS / 2],
                       n > 1 ? bytes / (2 * (n - 1) * weights / n) : 1);
            for (int way = 0; way < 2; way++) {
                eg_function_release(f[way]);
                eg_layer_release(t[way].model);
                eg_optimizer_release(t[way].sgd);
            }
        }
    return 0;
}
