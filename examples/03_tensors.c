//     cc -DEAGER_STATIC -I. examples/03_tensors.c -lm -o tensors && ./tensors
//
// Tensors: numbers in rows, columns and further directions. An operation runs at once and gives a new tensor; nothing
// is ever changed in place. Print one whenever you want to know.
#define EAGER_IMPLEMENTATION            // in exactly one file of a program
#include "eager.h"
#include <stdio.h>

int main(void) {
    puts("Made from values, and multiplied as matrices:");
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
    eg_print(x);
    eg_print(eg_matmul(x, x));

    puts("\nPlain numbers mix with tensors, on either side:");
    eg_print(eg_mul(eg_add(x, 1), 2));
    eg_print(eg_sub(1, x));

    puts("\nBroadcasting: a row goes with every row, a column with every column.");
    eg_tensor *row = eg_constant(EG_SHAPE(3), 10, 20, 30);
    eg_tensor *column = eg_constant(EG_SHAPE(2, 1), 1, 2);
    eg_print(eg_add(row, column));

    puts("\nReductions: over everything, or over the axes that you name.");
    eg_print(eg_reduce_sum(x));
    eg_print(eg_reduce_mean(x, .axes = EG_AXES(0)));
    eg_print(eg_reduce_max(x, .axes = EG_AXES(-1), .keepdims = true));

    puts("\nIntegers stay integers; casts are written down, never guessed.");
    eg_tensor *n = eg_constant_of(EG_INT32, EG_SHAPE(2, 2), 1, 2, 3, 4);
    eg_print(eg_mul(n, n));
    eg_print(eg_div(eg_cast(n, EG_FLOAT64), 3));

    puts("\nShapes change without copying:");
    eg_tensor *r = eg_range(EG_INT32, 0, 6, 1);
    eg_print(eg_reshape(r, EG_SHAPE(2, 3)));
    eg_print(eg_transpose(eg_reshape(r, EG_SHAPE(2, 3))));

    puts("\nOut of a tensor, into C:");
    printf("as a number: %g\n", eg_item(eg_reduce_sum(x)));
    float data[2][2];
    if (eg_read_into(x, data, 4))
        printf("in memory:   %g %g %g %g\n", (double)data[0][0], (double)data[0][1], (double)data[1][0],
               (double)data[1][1]);

    puts("\nIn a loop, eg_replace puts the new value in the old one's place, which is freed: one matrix lives, not one "
         "for each turn.");
    eg_tensor *power = eg_constant(EG_SHAPE(2, 2), 0.6, -0.8, 0.8, 0.6);
    int64_t before = eg_memory().live_tensors;
    // the rotation twice, 4 times, ... 1024 times
    for (int i = 0; i < 10; i++) eg_replace(&power, eg_matmul(power, power));
    eg_print(power);
    printf("%d tensors more than before the loop\n", (int)(eg_memory().live_tensors - before));

    puts("\nA mistake gives NULL and a sentence; NULL goes through the operations that follow.");
    eg_set_error_handler(NULL, NULL);       // otherwise the sentence goes to stderr as well
    eg_tensor *wrong = eg_matmul(eg_zeros(EG_FLOAT32, EG_SHAPE(32, 784)), eg_zeros(EG_FLOAT32, EG_SHAPE(128, 10)));
    wrong = eg_relu(eg_add(wrong, 1));
    if (!wrong) puts(eg_error_message());
    eg_error_clear();
}
