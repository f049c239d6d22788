// Every elementwise row of THE OP TABLE and every reduction, float32, forward and with its gradient by a tape, at 4,
// 64, 4,096 and 1,000,000 elements. rows.sh compiles this file with two versions of eager.h and compares.
//     rows [FILE]       prints "row size form operands nanoseconds", the least of some runs; of FILE's rows, where it
//                       is given
#define _POSIX_C_SOURCE 200809L
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef eg_tensor *unary(eg_tensor *);
typedef eg_tensor *binary(eg_tensor *, eg_tensor *);
typedef eg_tensor *ternary(eg_tensor *, eg_tensor *, eg_tensor *);
typedef struct row {
    const char *name; int n; bool slopes; unary *f1; binary *f2; ternary *f3; double range[3][2];
} row;

static eg_tensor *condition;
static eg_tensor *where_positive(eg_tensor *a, eg_tensor *b, eg_tensor *c) {
    (void)a;
    return (eg_where)(condition, b, c);
}
#define REDUCTION(name) \
    static eg_tensor *name##_of_all(eg_tensor *x) { return eg_##name(x); } \
    static eg_tensor *name##_of_rows(eg_tensor *x) { return eg_##name(x, .axes = EG_AXES(1)); } \
    static eg_tensor *name##_of_columns(eg_tensor *x) { return eg_##name(x, .axes = EG_AXES(0)); }
#define ALONG(name) \
    static eg_tensor *name##_of_rows(eg_tensor *x) { return eg_##name(x, .axis = 1); } \
    static eg_tensor *name##_of_columns(eg_tensor *x) { return eg_##name(x, .axis = -2); }
#define REDUCTIONS(R) \
    R(reduce_sum) R(reduce_mean) R(reduce_max) R(reduce_min) R(reduce_prod) R(reduce_logsumexp) R(reduce_variance) \
    R(reduce_std) R(norm)
#define ALL_ALONG(R) R(softmax) R(log_softmax) R(cumsum) R(sort)
#define CHOICES(R) R(argmax) R(argmin)
REDUCTIONS(REDUCTION)
ALL_ALONG(ALONG)
CHOICES(ALONG)

#define ROW1(name, low, high) { #name, 1, true, (eg_##name), NULL, NULL, { { low, high } } },
#define ROW2(name, low0, high0, low1, high1) \
    { #name, 2, true, NULL, (eg_##name), NULL, { { low0, high0 }, { low1, high1 } } },
#define ROW3(name, function, l0, h0, l1, h1, l2, h2) \
    { #name, 3, true, NULL, NULL, (function), { { l0, h0 }, { l1, h1 }, { l2, h2 } } },
#define PLAIN1(name) { #name, 1, false, (eg_##name), NULL, NULL, { { -2, 2 } } },
#define PLAIN2(name) { #name, 2, false, NULL, (eg_##name), NULL, { { -2, 2 }, { 0.5, 2 } } },
#define REDUCED(name) \
    { #name "_of_all", 1, true, name##_of_all, NULL, NULL, { { 0.5, 1.5 } } }, ALONGED(name)
#define ALONGED(name) \
    { #name "_of_rows", 1, true, name##_of_rows, NULL, NULL, { { 0.5, 1.5 } } }, \
    { #name "_of_columns", 1, true, name##_of_columns, NULL, NULL, { { 0.5, 1.5 } } },
#define CHOSEN(name) \
    { #name "_of_rows", 1, false, name##_of_rows, NULL, NULL, { { 0.5, 1.5 } } }, \
    { #name "_of_columns", 1, false, name##_of_columns, NULL, NULL, { { 0.5, 1.5 } } },
static const row rows[] = {
#include "rows.h"                       // of tests/core/ops.c, those that both versions have
    { "identity", 1, true, (eg_identity), NULL, NULL, { { -2, 2 } } },      // what the tape takes, with add
    PLAIN1(floor) PLAIN1(ceil) PLAIN1(round) PLAIN1(is_nan) PLAIN1(is_inf) PLAIN1(is_finite)
    PLAIN2(floordiv) PLAIN2(equal) PLAIN2(not_equal) PLAIN2(less) PLAIN2(less_equal) PLAIN2(greater)
    PLAIN2(greater_equal)
    REDUCTIONS(REDUCED) ALL_ALONG(ALONGED) CHOICES(CHOSEN)
};
enum { ROWS = (int)(sizeof rows / sizeof rows[0]) };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static eg_tensor *drawn(int64_t side, double low, double high) {
    static uint64_t state = 1;
    float *values = (float *)malloc((size_t)(side * side) * sizeof *values);
    for (int64_t i = 0; i < side * side; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(low + (high - low) * (double)(state >> 11) / 9007199254740992.0);
    }
    eg_tensor *x = eg_retain(eg_from_data(EG_FLOAT32, EG_SHAPE(side, side), values));
    free(values);
    return x;
}
static bool once(const row *r, eg_tensor *const *x, bool slopes) {
    eg_tensor *slope[3];
    eg_scope scope = eg_scope_begin();
    eg_tape *tape = slopes ? eg_tape_begin() : NULL;
    for (int i = 0; i < r->n && slopes; i++) eg_tape_watch(tape, x[i]);
    eg_tensor *y = r->n == 1 ? r->f1(x[0]) : r->n == 2 ? r->f2(x[0], x[1]) : r->f3(x[0], x[1], x[2]);
    const bool ok = y && (!slopes || eg_tape_gradients(tape, y, x, r->n, slope));
    eg_scope_end(scope);
    return ok;
}
// The least time of a call, in some batches of calls that take about a fifth of a millisecond together; in fewer where
// one call takes long.
static double least(const row *r, eg_tensor *const *x, bool slopes) {
    double best = HUGE_VAL, began = now();
    if (!once(r, x, slopes) || !once(r, x, slopes)) {
        fprintf(stderr, "%s: %s\n", r->name, eg_error_message());
        return best;
    }
    int calls = 1 + (int)(4e5 / (now() - began + 1));
    if (calls > 5000) calls = 5000;
    const double first = now();
    for (int batch = 0; batch < 8 && (batch < 2 || now() - first < 4e6); batch++) {
        began = now();
        for (int i = 0; i < calls; i++) once(r, x, slopes);
        const double each = (now() - began) / calls;
        if (each < best) best = each;
    }
    return best;
}

int main(int n, char **args) {
    static const int64_t sides[] = { 2, 8, 64, 1000 };
    static char wanted[1 << 20] = "";
    FILE *file = n > 1 ? fopen(args[1], "r") : NULL;
    if (n > 1 && !file) return 1;
    if (file) wanted[fread(wanted, 1, sizeof wanted - 1, file)] = 0;
    for (int i = 0; i < ROWS; i++)
        for (int s = 0; s < 4; s++) {
            char name[200];
            snprintf(name, sizeof name, "%s %lld ", rows[i].name, (long long)(sides[s] * sides[s]));
            if (file && !strstr(wanted, name)) continue;
            eg_scope scope = eg_scope_begin();
            eg_tensor *x[3] = { NULL, NULL, NULL };
            for (int k = 0; k < 3; k++) x[k] = drawn(sides[s], rows[i].range[k][0], rows[i].range[k][1]);
            condition = (eg_greater)(x[0], eg_scalar(0));
            for (int slopes = 0; slopes <= rows[i].slopes; slopes++) {
                snprintf(name, sizeof name, "%s %lld %s", rows[i].name, (long long)(sides[s] * sides[s]),
                         slopes ? "gradient" : "forward");
                if (!file || strstr(wanted, name)) printf("%s %d %.1f\n", name, rows[i].n,
                                                               least(&rows[i], x, slopes));
            }
            for (int k = 0; k < 3; k++) eg_release(x[k]);
            eg_scope_end(scope);
        }
    return 0;
}
