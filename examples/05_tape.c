//     cc -DEAGER_STATIC -I. examples/05_tape.c -lm -o tape && ./tape
//
// The tape: while one is open, every operation that depends on a watched tensor also writes a line on it. Asking for a
// gradient reads those lines backwards, as in example 2, and uses them up. A tape ends with the scope that it began in.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>

int main(void) {
    puts("d(x * x)/dx at 3 is 2x:");
    eg_tensor *x = eg_scalar(3.0);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_mul(x, x);
    eg_print(eg_tape_gradient(tape, y, x));

    puts("\nVariables are watched by themselves. The gradient of several numbers is that of their sum:");
    eg_tensor *w = eg_variable(eg_constant(EG_SHAPE(3), 1, 2, 3), "w");
    tape = eg_tape_begin();
    y = eg_square(w);
    eg_print(eg_tape_gradient(tape, y, w));

    puts("\n... or of a weighted sum, here with weights 1 0 2. A persistent tape answers more than once:");
    {
        EG_SCOPE;
        tape = eg_tape_begin_persistent();
        y = eg_square(w);
        eg_tensor *z = eg_exp(w), *weights = eg_constant(EG_SHAPE(3), 1, 0, 2), *grad;
        eg_tape_gradients_from(tape, &y, 1, &weights, &w, 1, &grad);
        eg_print(grad);
        eg_print(eg_tape_gradient(tape, z, w));
    }

    puts("\nWhat is written on a tape:");
    tape = eg_tape_begin();
    y = eg_reduce_sum(eg_mul(eg_sin(w), 2));
    eg_tape_print(tape);
    eg_print(eg_tape_gradient(tape, y, w));

    puts("\nC's branches and loops need no support: the tape holds what did run. |x| at -2, by an if:");
    x = eg_scalar(-2.0);
    tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    y = eg_item(x) < 0 ? eg_negative(x) : x;
    eg_print(eg_tape_gradient(tape, y, x));

    puts("\nA variable may change after it was used; the gradient sees the value that was read, 2:");
    eg_tensor *v = eg_variable(eg_scalar(2.0), "v");
    tape = eg_tape_begin();
    y = eg_square(v);
    eg_assign(v, 10);
    eg_print(eg_tape_gradient(tape, y, v));

    puts("\nNo connection, no gradient; NULL comes with a reason:");
    tape = eg_tape_begin();
    y = eg_square(eg_stop_gradient(w));
    if (!eg_tape_gradient(tape, y, w)) puts(eg_tape_unconnected_reason());

    eg_release(w);
    eg_release(v);
}
