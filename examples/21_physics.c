//     cc -O2 -DEAGER_STATIC -I. examples/21_physics.c -lm -o physics && ./physics
//
// A network that learns to obey a law instead of data: a weight on a spring, which the air slows down,
//     u'' + D u' + K u = 0,   u(0) = 1,   u'(0) = 0.
// No position is ever shown to it. What it is trained on is how badly it breaks the law at random times, and for that
// its own first and second derivatives are needed, and then the gradient of those: three tapes deep. A physicist has a
// formula for this one, so at the end one sees how good it is.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double D = 0.5, K = 4, END = 6;
enum { POINTS = 64, WIDTH = 32, VARS = 6 };

typedef struct {
    eg_tensor *vars[VARS];                 // matrix and bias, three times
} model;

// Times (N,1) to positions (N,1). The factor t^2 / (1 + t^2) makes both initial conditions true whatever the network
// says.
static eg_tensor *position(const model *m, eg_tensor *t) {
    eg_tensor *const *v = m->vars;
    eg_tensor *h = eg_tanh(eg_add(eg_matmul(eg_sub(eg_div(t, END / 2), 1), v[0]), v[1]));
    h = eg_tanh(eg_add(eg_matmul(h, v[2]), v[3]));
    eg_tensor *tt = eg_square(t), *far = eg_div(tt, eg_add(tt, 1));
    return eg_add(1, eg_mul(far, eg_add(eg_matmul(h, v[4]), v[5])));
}

// What is left of the law's left side, which should be 0: (N,1). Each row of u depends on its own time alone, so the
// gradient of their sum holds every row's derivative.
static eg_tensor *residual(const model *m, eg_tensor *t) {
    eg_tape *outer = eg_tape_begin();
    eg_tape_watch(outer, t);
    eg_tape *inner = eg_tape_begin();
    eg_tape_watch(inner, t);
    eg_tensor *u = position(m, t), *du = eg_tape_gradient(inner, u, t), *ddu = eg_tape_gradient(outer, du, t);
    return eg_add(eg_add(ddu, eg_mul(du, D)), eg_mul(u, K));
}

static double exact(double t) {
    double w = sqrt(K - D * D / 4);
    return exp(-D / 2 * t) * (cos(w * t) + D / (2 * w) * sin(w * t));
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 3000;
    model m;
    eg_seed(1);
    for (int i = 0; i < 3; i++) {
        int64_t in = i == 0 ? 1 : WIDTH, out = i == 2 ? 1 : WIDTH;
        m.vars[2 * i] = eg_variable(eg_random_normal(EG_SHAPE(in, out), .stddev = sqrt(2.0 / (double)(in + out))),
                                    "matrix");
        m.vars[2 * i + 1] = eg_variable(eg_random_uniform(EG_SHAPE(out), .minval = -1, .maxval = 1), "bias");
    }
    eg_optimizer *adam = eg_adam(.schedule = eg_cosine_decay(0.02, steps, 0, 0, 0));
    for (int step = 0; step <= steps && !eg_error(); step++) {
        EG_SCOPE;
        eg_tensor *t = eg_random_uniform(EG_SHAPE(POINTS, 1), .maxval = END), *grads[VARS];
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_mean(eg_square(residual(&m, t)));
        eg_tape_gradients(tape, loss, m.vars, VARS, grads);
        if (step % (steps / 5 > 0 ? steps / 5 : 1) == 0)
            printf("step %4d: the law is broken by %.5f\n", step, sqrt(eg_item(loss)));
        if (step < steps) eg_apply_gradients(adam, grads, m.vars, VARS);
    }

    double worst = 0;
    puts("  time  network  formula");
    for (int i = 0; i <= 60; i++) {
        EG_SCOPE;
        double t = END * i / 60, u = eg_item(position(&m, eg_constant(EG_SHAPE(1, 1), t)));
        if (i % 6 == 0) printf("  %4.1f  %7.4f  %7.4f\n", t, u, exact(t));
        worst = fmax(worst, fabs(u - exact(t)));
    }
    printf("Nowhere more than %.4f from the formula. Ten times the steps (physics 30000) come nearer.\n", worst);

    eg_optimizer_release(adam);
    for (int i = 0; i < VARS; i++) eg_release(m.vars[i]);
    return eg_error() != 0;
}
