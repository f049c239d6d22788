// Kernels read what is theirs and nothing beside it: each operand lies right behind a page that nobody may read, or
// ends right before one, at every length around a vector and a block. What kernels write is held by
// tests/core/programs.c and the comparisons of every other test. Only where the CPU's kernels run, and memory can be
// fenced.
#define _DEFAULT_SOURCE              // MAP_ANONYMOUS
#include "test.h"
#if defined(__unix__) && !defined(TEST_GUARD) && !defined(TEST_CUDA)
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 1001, OPERANDS = 3 };
static char *fenced[OPERANDS];       // room for MOST elements of 8 bytes, between two pages that nobody may read
static size_t room;

static bool fences_are_up(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    room = (MOST * 8 / page + 1) * page;
    for (int i = 0; i < OPERANDS; i++) {
        void *all = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) return false;
        fenced[i] = (char *)all + page;
        if (mprotect(fenced[i], room, PROT_READ | PROT_WRITE)) return false;
    }
    return true;
}
// Operand i: n small positive numbers of a dtype (of bool, both), at the end of its room or at the beginning.
static eg_tensor *operand(int i, eg_dtype t, int64_t n, bool end) {
    const int64_t size = eg_dtype_size(t);
    char *to = end ? fenced[i] + room - n * size : fenced[i];
    for (int64_t k = 0; k < n; k++) {
        const int value = (int)((k * 37 + i) % 5) + (t != EG_BOOL), at = t == EG_BOOL ? value % 2 : value;
        const float f = (float)at / 8;
        const double d = at / 8.0;
        const int32_t w = at;
        const int64_t l = at;
        const unsigned char b = (unsigned char)at;
        memcpy(to + k * size, t == EG_FLOAT32 ? (const void *)&f : t == EG_FLOAT64 ? (const void *)&d : t == EG_INT32
               ? (const void *)&w : t == EG_INT64 ? (const void *)&l : (const void *)&b, (size_t)size);
    }
    return eg_wrap_data(t, EG_SHAPE(n), (void *)to, NULL, NULL);
}

typedef eg_tensor *unary(eg_tensor *x);
typedef eg_tensor *binary(eg_tensor *a, eg_tensor *b);
#define NAME_OF(f) { #f, (eg_##f) },
static const struct { const char *name; unary *f; } unaries[] = {
    NAME_OF(negative) NAME_OF(abs) NAME_OF(sign) NAME_OF(square) NAME_OF(relu) NAME_OF(sqrt) NAME_OF(rsqrt)
    NAME_OF(reciprocal) NAME_OF(exp) NAME_OF(expm1) NAME_OF(log) NAME_OF(log1p) NAME_OF(sin) NAME_OF(cos) NAME_OF(tan)
    NAME_OF(asin) NAME_OF(acos) NAME_OF(atan) NAME_OF(sinh) NAME_OF(cosh) NAME_OF(tanh) NAME_OF(asinh) NAME_OF(atanh)
    NAME_OF(erf) NAME_OF(erfc) NAME_OF(floor) NAME_OF(ceil) NAME_OF(round) NAME_OF(is_nan) NAME_OF(is_inf)
    NAME_OF(is_finite) NAME_OF(sigmoid) NAME_OF(softplus) NAME_OF(softsign) NAME_OF(relu6) NAME_OF(selu) NAME_OF(mish)
    NAME_OF(hard_sigmoid)
};
static const struct { const char *name; binary *f; } binaries[] = {
    NAME_OF(add) NAME_OF(sub) NAME_OF(mul) NAME_OF(floordiv) NAME_OF(mod) NAME_OF(pow) NAME_OF(maximum) NAME_OF(minimum)
    NAME_OF(squared_difference) NAME_OF(equal) NAME_OF(not_equal) NAME_OF(less) NAME_OF(less_equal) NAME_OF(greater)
    NAME_OF(greater_equal) NAME_OF(div) NAME_OF(divide_no_nan) NAME_OF(atan2)
};
static void take(const char *name, const eg_tensor *y, int64_t n) {
    if (!y) printf("    %s of %d elements: %s\n", name, (int)n, eg_error_message());
    CHECK(y != NULL);
    eg_error_clear();
}
// A number of rows, more than one where it can be, that divides n.
static int64_t rows_of(int64_t n) {
    for (int64_t rows = 13; rows > 1; rows--) if (n % rows == 0 && n > rows) return rows;
    return 1;
}
static void rearrange(eg_dtype t, int64_t n, eg_tensor *a, eg_tensor *b) {
    eg_tensor *in[2] = { a, b }, *second = eg_strided_slice(a, EG_SHAPE(0), EG_SHAPE(EG_END), EG_SHAPE(2));
    eg_tensor *plane = eg_reshape(a, EG_SHAPE(rows_of(n), n / rows_of(n))), *turned = eg_transpose(plane);
    for (int to = 0; to < 8; to++) take("cast", eg_cast(a, (eg_dtype)to), n);
    take("concat", eg_concat(in, 2, 0), n);
    take("transpose", eg_add(eg_cast(turned, EG_INT64), 0), n);
    take("reshape", eg_reshape(turned, EG_SHAPE(-1)), n);
    eg_tensor *columns = eg_transpose(eg_reshape(a, EG_SHAPE(n / rows_of(n), rows_of(n))));
    take("equal to columns", eg_equal(columns, eg_reshape(b, EG_SHAPE(rows_of(n), n / rows_of(n)))), n);
    take("every second of columns", eg_not_equal(eg_strided_slice(columns, EG_SHAPE(0, 0), EG_SHAPE(EG_END, EG_END),
                                                                  EG_SHAPE(1, 2)), 1), n);
    take("reverse", eg_reshape(eg_reverse(plane, EG_AXES(1)), EG_SHAPE(-1)), n);
    take("every second", eg_concat(&second, 1, 0), n);
    take("repeat", eg_repeat(plane, 2, 1), n);
    take("gather", eg_gather(a, eg_range(EG_INT64, (double)n - 1, -1, -1)), n);
    take("where", eg_where(eg_cast(b, EG_BOOL), a, b), n);
    if (t == EG_BOOL) {
        take("all", eg_reduce_all(a), n);
        take("any", eg_reduce_any(plane, .axes = EG_AXES(0)), n);
        return;
    }
    take("sum", eg_reduce_sum(a), n);
    take("sum of columns", eg_reduce_sum(plane, .axes = EG_AXES(0)), n);
    take("max", eg_reduce_max(a), n);
    take("max of columns", eg_reduce_max(plane, .axes = EG_AXES(0)), n);
    take("min of rows", eg_reduce_min(plane, .axes = EG_AXES(1)), n);
    take("product", eg_reduce_prod(plane, .axes = EG_AXES(0)), n);
    take("argmax", eg_argmax(a), n);
    take("argmin of columns", eg_argmin(plane, .axis = EG_ZERO), n);
    take("cumsum", eg_cumsum(plane, .axis = EG_ZERO), n);
    take("sort", eg_sort(a), n);
    take("argsort", eg_argsort(a), n);
    take("top_k", eg_top_k(a, (int)(n < 3 ? n : 3), NULL), n);
    take("clip", eg_clip_by_value(a, 1, 3), n);
    take("add of a number", eg_add(a, 1), n);
    take("less than a number", eg_less(a, 3), n);
    take("number less", eg_less(3, a), n);
    take("add of a row", eg_add(plane, eg_slice(b, EG_SHAPE(0), EG_SHAPE(n / rows_of(n)))), n);
    if (t > EG_FLOAT64) return;
    take("leaky relu by a number", eg_leaky_relu(a, 0.1), n);
    take("huber by a number", eg_huber_difference(a, b, 1), n);
    take("matmul", eg_matmul(eg_reshape(a, EG_SHAPE(1, n)), eg_reshape(b, EG_SHAPE(n, 1))), n);
    take("matmul of planes", eg_matmul(plane, eg_transpose(plane)), n);
    take("softmax", eg_softmax(plane), n);
    take("variance", eg_reduce_variance(plane, .axes = EG_AXES(0)), n);
    take("norm", eg_norm(a), n);
}
TEST(kernels_read_nothing_beside_their_operands) {
    REQUIRE(fences_are_up());
    for (int64_t n = 1; n <= MOST; n = n == 130 ? 999 : n + 1)
        for (int end = 0; end < 2; end++)
            for (int t = 0; t < 6; t++) {
                EG_SCOPE;
                const eg_dtype dtype = (eg_dtype)t;
                eg_tensor *a = operand(0, dtype, n, end), *b = operand(1, dtype, n, end);
                REQUIRE(a && b);
                for (size_t i = 0; i < sizeof unaries / sizeof *unaries && t < 2; i++)
                    take(unaries[i].name, unaries[i].f(a), n);
                for (size_t i = 0; i < sizeof binaries / sizeof *binaries - (t > 1 ? 3 : 0) && t < 5; i++)
                    take(binaries[i].name, binaries[i].f(a, b), n);
                rearrange(dtype, n, a, b);
            }
}
// x + y, where x is r rows of zeros, n elements each, and y is a row or a column, at the end of its room or at the
// beginning: is it y, written out by hand?
static bool is_written_out(eg_dtype t, int64_t r, int64_t n, bool column, bool end) {
    static char whole[32 * 1001 * 8];
    const int64_t size = eg_dtype_size(t), count = column ? r : n;
    char *const y = end ? fenced[0] + room - count * size : fenced[0];
    for (int64_t k = 0; k < count; k++) {
        const unsigned char b = (unsigned char)(k % 251 + 1);
        const float f = (float)(k + 1);
        const double d = (double)(k + 1);
        const int32_t w = (int32_t)k + 1;
        const int64_t l = k + 1;
        memcpy(y + k * size, t == EG_FLOAT32 ? (const void *)&f : t == EG_FLOAT64 ? (const void *)&d : t == EG_INT32
               ? (const void *)&w : t == EG_INT64 ? (const void *)&l : (const void *)&b, (size_t)size);
    }
    for (int64_t i = 0; i < r; i++)
        for (int64_t k = 0; k < n; k++)
            memcpy(whole + (i * n + k) * size, y + (column ? i : k) * size, (size_t)size);
    EG_SCOPE;
    eg_tensor *sum = eg_add(eg_zeros(t, EG_SHAPE(r, n)),
                            eg_wrap_data(t, column ? EG_SHAPE(r, 1) : EG_SHAPE(n), (void *)y, NULL, NULL));
    const void *to = eg_data(sum);
    return to && memcmp(to, whole, (size_t)(r * n * size)) == 0;
}
// Rows and columns are written out by vectors, for whole groups of rows at once, at most some KB at a time; long rows
// are read in place.
TEST(rows_and_columns_are_written_out) {
    static const int64_t longer[] = { 129, 250, 256, 300, 513, 1000 };
    REQUIRE(fences_are_up());
    for (int t = 0; t < 5; t++)
        for (int64_t n = 1; n <= 40; n++)
            for (int64_t r = 1; r <= 70; r++)
                for (int column = 0; column < 2; column++)
                    if (!is_written_out((eg_dtype)t, r, n, column, (r + n) % 2)) {
                        printf("    a %s beside (%d, %d) of %s\n", column ? "column" : "row", (int)r, (int)n,
                               eg_dtype_name((eg_dtype)t));
                        CHECK(false);
                    }
    for (int t = 0; t < 5; t++)
        for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
            for (int64_t r = 1; r <= 32; r++)
                CHECK(is_written_out((eg_dtype)t, r, longer[i], false, r % 2) &&
                      is_written_out((eg_dtype)t, r, longer[i], true, r % 2));
    for (int t = 0; t < 5; t++)
        for (int64_t n = 2; n <= 20; n++)
            CHECK(is_written_out((eg_dtype)t, 1001, n, true, n % 2));
}
#else
TEST(kernels_read_nothing_beside_their_operands) { SKIP("memory is not fenced here"); }
TEST(rows_and_columns_are_written_out) { SKIP("memory is not fenced here"); }
#endif
