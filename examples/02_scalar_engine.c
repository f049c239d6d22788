//     cc -DEAGER_STATIC -I. examples/02_scalar_engine.c -lm -o engine && ./engine
//
// The whole of autodiff in about 60 lines, on single numbers, in the words that eager.h uses: running an op also writes
// one record on the tape; reading the tape backwards, each record takes its upstream gradient g and hands dx[i] to its
// inputs. eager.h does the same with tensors for numbers and with a table of ops for the switch.
#include <math.h>
#include <stdio.h>

enum op { INPUT, ADD, MUL, TANH };

typedef struct {
    enum op op;
    int in[2], inputs;          // which earlier records it read
    double y;                   // what came out
} record;

static record tape[1000];
static int written;

// Running an op is: compute y, and write down how. A value's name is its place on the tape.
static int run(enum op op, int inputs, int a, int b, double y) {
    tape[written] = (record){op, {a, b}, inputs, y};
    return written++;
}
static double value(int x) { return tape[x].y; }
static int input(double y) { return run(INPUT, 0, 0, 0, y); }
static int add(int a, int b) { return run(ADD, 2, a, b, value(a) + value(b)); }
static int mul(int a, int b) { return run(MUL, 2, a, b, value(a) * value(b)); }
static int hyperbolic_tangent(int a) { return run(TANH, 1, a, 0, tanh(value(a))); }

// g[i] becomes the slope of `target` against record i, for every i: one pass, however many inputs there are.
static void gradients(int target, double *g) {
    for (int i = 0; i < written; i++) g[i] = 0;
    g[target] = 1;              // the target moves exactly as far as itself
    for (int i = target; i >= 0; i--) {
        const record *r = &tape[i];
        double a = value(r->in[0]), b = value(r->in[1]), y = r->y, dx[2] = {0, 0};
        switch (r->op) {        // one row per op: the slope against each input, times the upstream gradient
        case INPUT: break;
        case ADD: dx[0] = g[i], dx[1] = g[i]; break;
        case MUL: dx[0] = g[i] * b, dx[1] = g[i] * a; break;
        case TANH: dx[0] = g[i] * (1 - y * y); break;
        }
        for (int k = 0; k < r->inputs; k++) g[r->in[k]] += dx[k];   // += : a value that was used twice moves y twice
    }
}

int main(void) {
    double g[1000];

    int x = input(3);
    int y = add(mul(x, x), x);                      // x is used three times
    gradients(y, g);
    printf("y = x * x + x at 3: y = %g, dy/dx = %g\n\n", value(y), g[x]);

    // A neuron learns to answer 0.5 when it sees (1, -2): tanh(w1 * 1 + w2 * -2 + b).
    double w1 = 0.4, w2 = 0.3, b = 0.1;
    for (int step = 0; step <= 40; step++) {
        written = 0;                                // a fresh tape for each step
        int p1 = input(w1), p2 = input(w2), p3 = input(b);
        int out = hyperbolic_tangent(add(add(mul(p1, input(1)), mul(p2, input(-2))), p3));
        int error = add(out, input(-0.5)), loss = mul(error, error);
        gradients(loss, g);
        if (step % 10 == 0)
            printf("step %2d: answer %7.4f, loss %.6f, slopes %7.4f %7.4f %7.4f\n", step, value(out), value(loss),
                   g[p1], g[p2], g[p3]);
        w1 -= 0.02 * g[p1], w2 -= 0.02 * g[p2], b -= 0.02 * g[p3];
    }
}
