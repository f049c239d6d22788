//     cc -DEAGER_STATIC -I. examples/08_line_search.c -lm -o search && ./search
//
// Backtracking line search: try a long step downhill, and halve it until it goes down enough. How many trials that
// takes depends on the values met on the way, which is no trouble for eager code: the loop is C's.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>

static eg_tensor *sum_of_squares(eg_tensor *x) { return eg_reduce_sum(eg_square(x)); }
static eg_tensor *valley(eg_tensor *x) {                            // long and narrow, lowest at 0
    return eg_reduce_sum(eg_mul(eg_square(x), eg_constant(EG_SHAPE(3), 0.5, 5, 0.05)));
}

// As in TensorFlow's guide the rate is halved before the comparison, so a step must win half of what the slope promises
// for its length. (All of it is more than any step wins where the ground curves upwards.)
static eg_tensor *line_search_step(eg_tensor *(*f)(eg_tensor *), eg_tensor *x, eg_tensor **value, int *trials) {
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *start = *value = f(x), *there = x;
    eg_tensor *grad = eg_tape_gradient(tape, start, x);
    double steepness = eg_item(eg_reduce_sum(eg_square(grad))), rate = 1;
    for (*trials = 0; eg_item(*value) > eg_item(start) - rate * steepness; rate /= 2, ++*trials) {
        there = eg_sub(x, eg_mul(grad, rate));
        *value = f(there);
    }
    return there;
}

int main(void) {
    int trials;
    eg_tensor *value, *x = eg_constant(EG_SHAPE(3), 1, 2, 3);
    puts("The sum of squares, from 1 2 3:");
    x = line_search_step(sum_of_squares, x, &value, &trials);
    eg_print(x);
    printf("value %g after %d trials\n", eg_item(value), trials);

    puts("\nA long narrow valley, from 1 2 3, step by step:");
    x = eg_constant(EG_SHAPE(3), 1, 2, 3);
    for (int step = 1; step <= 8; step++) {
        x = line_search_step(valley, x, &value, &trials);
        printf("step %d: value %.6f after %d trials\n", step, eg_item(value), trials);
    }
}
