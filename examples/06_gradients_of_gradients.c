//     cc -DEAGER_STATIC -I. examples/06_gradients_of_gradients.c -lm -o twice && ./twice
//
// Every gradient is computed by ordinary operations, so a tape around a tape records the gradient as well, and gives
// the gradient of it. That goes on to any depth.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>

// The n-th derivative of f at x: the slope of the (n-1)-th.
static eg_tensor *derivative(eg_tensor *(*f)(eg_tensor *), eg_tensor *x, int n) {
    if (n == 0) return f(x);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    return eg_tape_gradient(tape, derivative(f, x, n - 1), x);
}

static eg_tensor *fourth_power(eg_tensor *x) { return eg_mul(eg_mul(x, x), eg_mul(x, x)); }
static eg_tensor *wave(eg_tensor *x) { return eg_mul(eg_exp(eg_negative(x)), eg_sin(x)); }

int main(void) {
    puts("x * x * x at 3, by two tapes, one in the other:");
    eg_tensor *x = eg_scalar(3.0);
    eg_tape *outer = eg_tape_begin();
    eg_tape_watch(outer, x);
    eg_tape *inner = eg_tape_begin();
    eg_tape_watch(inner, x);
    eg_tensor *y = eg_mul(eg_mul(x, x), x);
    eg_tensor *dy = eg_tape_gradient(inner, y, x);
    eg_tensor *d2y = eg_tape_gradient(outer, dy, x);
    printf("y = %g, y' = %g, y'' = %g\n", eg_item(y), eg_item(dy), eg_item(d2y));

    puts("\nx^4 at 2, as a function that calls itself:");
    for (int n = 0; n <= 4; n++) printf("order %d: %g\n", n, eg_item(derivative(fourth_power, eg_scalar(2.0), n)));

    puts("\nexp(-x) * sin(x) has a curious fourth derivative, -4 times itself. At 1:");
    x = eg_scalar_of(EG_FLOAT64, 1.0);
    for (int n = 0; n <= 8; n += 4) printf("order %d: %.9f\n", n, eg_item(derivative(wave, x, n)));

    puts("\nNewton's method needs two orders. Where is exp(-x) * sin(x) highest?");
    for (int step = 0; step < 6; step++) {
        printf("x = %.9f\n", eg_item(x));
        x = eg_sub(x, eg_div(derivative(wave, x, 1), derivative(wave, x, 2)));
    }
}
