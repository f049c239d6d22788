// What an operand's form costs: ops of two operands of 1000 x 1000, with the second as a whole tensor, a plain number,
// one element (rank 0), a row (1, n) and a column (n, 1). Microseconds, the best of some rounds; a form that takes more
// than 1.3 times the whole is marked.
//     cc -O2 -I. tests/bench/forms.c -lm -o forms
//     forms [PART OF A NAME...]
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <time.h>

enum { SIDE = 1000, FORMS = 5, ROUNDS = 15 };
static const char *const form_names[FORMS] = { "whole", "number", "rank 0", "row", "column" };
typedef eg_tensor *binary(eg_tensor *a, eg_tensor *b);
static const struct { const char *name; binary *f; } ops[] = {
    { "add", (eg_add) }, { "sub", (eg_sub) }, { "mul", (eg_mul) }, { "div", (eg_div) },
    { "divide_no_nan", (eg_divide_no_nan) },
    { "floordiv", (eg_floordiv) }, { "mod", (eg_mod) }, { "pow", (eg_pow) }, { "maximum", (eg_maximum) },
    { "minimum", (eg_minimum) },
    { "squared_difference", (eg_squared_difference) }, { "atan2", (eg_atan2) }, { "equal", (eg_equal) },
    { "not_equal", (eg_not_equal) },
    { "less", (eg_less) }, { "less_equal", (eg_less_equal) }, { "greater", (eg_greater) },
    { "greater_equal", (eg_greater_equal) },
    { "logical_and", (eg_logical_and) }, { "logical_or", (eg_logical_or) }, { "logical_xor", (eg_logical_xor) }
};

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static eg_tensor *operand(eg_dtype dtype, eg_shape shape, double low) {
    return eg_cast(eg_add(eg_mul(eg_random_uniform(shape), 9), low), dtype);
}
static double measure(binary *f, eg_tensor *a, eg_tensor *b) {
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        EG_SCOPE;
        const double start = now();
        f(a, b);
        if (now() - start < best) best = now() - start;
    }
    return best * 1e6;
}
static bool row(const char *name, binary *f, eg_dtype dtype) {
    EG_SCOPE;
    eg_tensor *a = operand(dtype, EG_SHAPE(SIDE, SIDE), 1), *b[FORMS] = {
        operand(dtype, EG_SHAPE(SIDE, SIDE), 1), eg_number(dtype == EG_BOOL ? 1 : 7), operand(dtype, EG_SCALAR, 1),
        operand(dtype, EG_SHAPE(1, SIDE), 1), operand(dtype, EG_SHAPE(SIDE, 1), 1)
    };
    double whole = 0;
    bool over = false;
    printf("%-20s %-8s", name, eg_dtype_name(dtype));
    for (int i = 0; i < FORMS; i++) {
        const double time = measure(f, a, b[i]);
        if (i == 0) { whole = time; printf(" %10.1f", time); continue; }
        over = over || time > 1.3 * whole;
        printf("  %s %.2f%s", form_names[i], time / whole, time > 1.3 * whole ? " <--" : "");
    }
    printf("\n");
    return over;
}
int main(int argc, char **argv) {
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8, EG_BOOL };
    int rows = 0, over = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
            bool chosen = argc < 2;
            for (int k = 1; k < argc; k++) chosen = chosen || strstr(ops[i].name, argv[k]);
            const bool logical = !strncmp(ops[i].name, "logical", 7),
                       equal = !strcmp(ops[i].name, "equal") || !strcmp(ops[i].name, "not_equal");
            const bool floats = !strncmp(ops[i].name, "div", 3) || !strcmp(ops[i].name, "atan2");
            if (!chosen || (logical ? dtypes[t] != EG_BOOL : dtypes[t] == EG_BOOL && !equal) || (floats && t > 1))
                continue;
            rows++;
            over += row(ops[i].name, ops[i].f, dtypes[t]);
        }
    printf("%d rows, %d of them with a form over 1.3 times the whole tensor\n", rows, over);
    return eg_error() != EG_OK;
}
