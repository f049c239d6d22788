//     cc -O2 -DEAGER_STATIC -I. examples/24_traced.c -lm -o traced && ./traced
//
// A step of training as a traced function: the same C code runs once, is written down as the list of kernels that it
// launched, and is replayed from that list. Small tensors gain most, since a replay makes no handles, no scopes and no
// tape: run it with --time to see by how much on your machine.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct net { eg_tensor *v[4]; eg_optimizer *adam; int runs; } net;

// One step: forward, gradients, update. in[0] and in[1] are the batch, out[0] is the loss.
static bool step(eg_tensor *const *in, eg_tensor **out, void *user) {
    net *n = (net *)user;
    eg_tensor *grads[4];
    n->runs++;                                              // C that is no op happens only when the body runs
    eg_tape *tape = eg_tape_begin();
    eg_tensor *hidden = eg_tanh(eg_add(eg_matmul(in[0], n->v[0]), n->v[1]));
    eg_tensor *answer = eg_add(eg_matmul(hidden, n->v[2]), n->v[3]);
    eg_tensor *loss = eg_reduce_mean(eg_squared_difference(answer, in[1]));
    if (!eg_tape_gradients(tape, loss, n->v, 4, grads) || !eg_apply_gradients(n->adam, grads, n->v, 4)) return false;
    out[0] = loss;
    return true;
}

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }
static bool timed;

// Trains from the same start and prints how it went; returns the last loss.
static double train(bool eagerly) {
    EG_SCOPE;
    eg_seed(1);
    net n = {{eg_variable(eg_random_normal(EG_SHAPE(1, 16)), "w1"),
              eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(16)), "b1"),
              eg_variable(eg_random_normal(EG_SHAPE(16, 1), .stddev = 0.25), "w2"),
              eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(1)), "b2")}, eg_adam(.learning_rate = 0.02), 0};
    eg_function *f = eg_function_new(step, &n);
    eg_tensor *batch[2], *loss;
    batch[0] = eg_reshape(eg_linspace(EG_FLOAT32, -2, 2, 41), EG_SHAPE(41, 1));
    batch[1] = eg_sin(batch[0]);
    double last = 0, began = seconds();
    eg_run_functions_eagerly(eagerly);
    for (int i = 0; i <= 2000; i++) {
        EG_SCOPE;
        if (!eg_function_call(f, batch, 2, &loss, 1)) break;
        last = eg_item(loss);
        if (i % 500 == 0) printf("  step %4d  loss %.5f\n", i, last);
    }
    printf("  the body ran %d times\n", n.runs);
    if (timed) printf("  %.0f ns a step\n", (seconds() - began) / 2001 * 1e9);
    if (!eagerly) {
        puts("\nThe list that a replay runs:");
        eg_function_print(f);
    }
    eg_function_release(f);
    eg_optimizer_release(n.adam);
    for (int i = 0; i < 4; i++) eg_release(n.v[i]);
    return last;
}

int main(int argc, char **argv) {
    timed = argc > 1 && !strcmp(argv[1], "--time");
    puts("Eagerly:");
    double eager = train(true);
    puts("Traced:");
    double traced = train(false);
    printf("\n%s\n", eager == traced ? "Both losses have the same bits." : "The losses differ!");
}
