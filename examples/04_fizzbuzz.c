//     cc -DEAGER_STATIC -I. examples/04_fizzbuzz.c -lm -o fizzbuzz && ./fizzbuzz
//
// Eager means that C's own control flow works on tensors: a tensor can bound a loop and decide a branch, because its
// value is there as soon as the operation has run.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>

static eg_tensor *fizzbuzz(eg_tensor *limit) {
    eg_tensor *counter = eg_scalar_of(EG_INT32, 0);
    for (int64_t i = 1; i <= eg_item_int(limit); i++) {
        eg_tensor *num = eg_scalar_of(EG_INT32, (double)i);
        bool three = eg_item_int(eg_mod(num, 3)) == 0;
        bool five = eg_item_int(eg_mod(num, 5)) == 0;
        if (three && five) puts("FizzBuzz");
        else if (three) puts("Fizz");
        else if (five) puts("Buzz");
        else printf("%lld\n", (long long)eg_item_int(num));
        counter = eg_add(counter, 1);
    }
    return counter;
}

int main(void) {
    eg_tensor *counted = fizzbuzz(eg_scalar_of(EG_INT32, 15));
    eg_print(counted);
}
