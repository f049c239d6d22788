// The NumPy table: operations on tensors of a million elements, beside NumPy. `./build.sh bench numpy` runs it by way
// of numpy_table.py, which starts this program, and measures both sides in turns. To add a row, add one line to ROWS;
// nothing else knows the rows.
//     numpy_table FOLDER       reads FOLDER/INPUT_DTYPE.npy (see INPUTS in numpy_table.py), prints the rows, then
//     answers the lines
//         value ROW DTYPE      writes the result to FOLDER/value.npy, and prints "ok", or "error" and the message
//         time ROW DTYPE S     runs the row for S seconds, and prints the seconds of one run
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <time.h>

// The operands, of 1000 x 1000 elements unless stated, in the dtype of the moment (f float32, d float64, i int32, l
// int64, u uint8, b bool); where a row has fewer dtypes than an operand, Python's expression says the same with the
// same names.
static eg_tensor *a, *b;                // whole numbers and fractions on both sides of 0 (uint8: 1 to 200); b is not 0
static eg_tensor *p, *s;                // positive; within -0.95 and 0.95
static eg_tensor *row, *col, *one;      // (1000), (1000, 1) and ()
static eg_tensor *wide;                 // (1000, 2000)
static eg_tensor *picture;              // (10, 25, 40, 100)
static eg_tensor *one_ish;              // around 1, so that products stay finite
static eg_tensor *m;                    // bool
static eg_tensor *no, *yes;             // bool, all false and all true
static eg_tensor *pick, *order;         // int64: (1000), 0 to 999; each row a permutation of 0 to 999
static eg_tensor *large;                // 10,000,000 elements, float32 alone

static eg_tensor *dot(const char *equation, eg_tensor *x, eg_tensor *y) {
    eg_tensor *in[2] = {x, y};
    return eg_einsum(equation, in, 2);
}
static eg_tensor *joined(int axis) {
    eg_tensor *in[2] = {a, b};
    return eg_concat(in, 2, axis);
}
static eg_tensor *every_second(eg_tensor *x, int64_t rows, int64_t columns) {
    return eg_strided_slice(x, EG_SHAPE(0, 0), EG_SHAPE(EG_END, EG_END), EG_SHAPE(rows, columns));
}
// The sum of all elements by a plain loop on eight vectors: as fast as memory can be read.
static eg_tensor *read_loop(void) {
    typedef float vec __attribute__((vector_size(16)));
    vec sum[8] = {{0}};
    const vec *x = (const vec *)eg_data(large);
    float total = 0;
    for (int64_t i = 0; i < 10000000 / 32; i++)
        for (int k = 0; k < 8; k++) sum[k] += x[8 * i + k];
    for (int k = 0; k < 8; k++) total += sum[k][0] + sum[k][1] + sum[k][2] + sum[k][3];
    return eg_scalar((double)total);
}

// ROW(name, dtypes, eager.h, NumPy)
#define ROWS(ROW) \
    ROW(add, "fdilu", eg_add(a, b), "a + b") \
    ROW(add_number, "fdilu", eg_add(a, 3), "a + 3") \
    ROW(add_rank_0, "fdilu", eg_add(a, one), "a + one") \
    ROW(add_row, "fdilu", eg_add(a, row), "a + row") \
    ROW(add_column, "fdilu", eg_add(a, col), "a + col") \
    ROW(add_row_column, "fdilu", eg_add(row, col), "row + col") \
    ROW(add_transposed, "fdilu", eg_add(eg_transpose(a), b), "a.T + b") \
    ROW(add_strided, "fdilu", eg_add(every_second(wide, 1, 2), a), "wide[:, ::2] + a") \
    ROW(add_rows_apart, "fdilu", eg_add(every_second(a, 2, 1), every_second(b, 2, 1)), "a[::2] + b[::2]") \
    ROW(add_reversed, "fdilu", eg_add(eg_reverse(a, EG_AXES(1)), b), "a[:, ::-1] + b") \
    ROW(sub, "fdilu", eg_sub(a, b), "a - b") \
    ROW(mul, "fdilu", eg_mul(a, b), "a * b") \
    ROW(mul_number, "fdilu", eg_mul(a, 3), "a * 3") \
    ROW(mul_row, "fdilu", eg_mul(a, row), "a * row") \
    ROW(mul_column, "fdilu", eg_mul(a, col), "a * col") \
    ROW(div, "fd", eg_div(a, b), "a / b") \
    ROW(div_number, "fd", eg_div(a, 3), "a / D(3)") \
    ROW(floordiv, "fdilu", eg_floordiv(a, b), "a // b") \
    ROW(floordiv_number, "fdilu", eg_floordiv(a, 7), "a // 7") \
    ROW(mod, "fdilu", eg_mod(a, b), "a % b") \
    ROW(pow, "fd", eg_pow(p, s), "p ** s") \
    ROW(pow_2, "fdilu", eg_pow(a, 2), "a ** 2") \
    ROW(pow_half, "fd", eg_pow(p, 0.5), "p ** 0.5") \
    ROW(maximum, "fdilu", eg_maximum(a, b), "np.maximum(a, b)") \
    ROW(maximum_number, "fdilu", eg_maximum(a, 3), "np.maximum(a, 3)") \
    ROW(minimum, "fdilu", eg_minimum(a, b), "np.minimum(a, b)") \
    ROW(squared_difference, "fdilu", eg_squared_difference(a, b), "np.square(a - b)") \
    ROW(atan2, "fd", eg_atan2(a, b), "np.arctan2(a, b)") \
    ROW(clip, "fdilu", eg_clip_by_value(a, 2, 50), "np.clip(a, 2, 50)") \
    ROW(negative, "fdil", eg_negative(a), "-a") \
    ROW(abs, "fdil", eg_abs(a), "np.abs(a)") \
    ROW(sign, "fdil", eg_sign(a), "np.sign(a)") \
    ROW(square, "fdilu", eg_square(a), "np.square(a)") \
    ROW(sqrt, "fd", eg_sqrt(p), "np.sqrt(p)") \
    ROW(rsqrt, "fd", eg_rsqrt(p), "1 / np.sqrt(p)") \
    ROW(reciprocal, "fd", eg_reciprocal(p), "np.reciprocal(p)") \
    ROW(exp, "fd", eg_exp(s), "np.exp(s)") \
    ROW(expm1, "fd", eg_expm1(s), "np.expm1(s)") \
    ROW(log, "fd", eg_log(p), "np.log(p)") \
    ROW(log1p, "fd", eg_log1p(s), "np.log1p(s)") \
    ROW(sin, "fd", eg_sin(a), "np.sin(a)") \
    ROW(cos, "fd", eg_cos(a), "np.cos(a)") \
    ROW(tan, "fd", eg_tan(s), "np.tan(s)") \
    ROW(asin, "fd", eg_asin(s), "np.arcsin(s)") \
    ROW(acos, "fd", eg_acos(s), "np.arccos(s)") \
    ROW(atan, "fd", eg_atan(a), "np.arctan(a)") \
    ROW(sinh, "fd", eg_sinh(s), "np.sinh(s)") \
    ROW(cosh, "fd", eg_cosh(s), "np.cosh(s)") \
    ROW(tanh, "fd", eg_tanh(a), "np.tanh(a)") \
    ROW(asinh, "fd", eg_asinh(a), "np.arcsinh(a)") \
    ROW(acosh, "fd", eg_acosh(eg_add(p, 1)), "np.arccosh(p + 1)") \
    ROW(atanh, "fd", eg_atanh(s), "np.arctanh(s)") \
    ROW(floor, "fd", eg_floor(a), "np.floor(a)") \
    ROW(ceil, "fd", eg_ceil(a), "np.ceil(a)") \
    ROW(round, "fd", eg_round(a), "np.rint(a)") \
    ROW(is_nan, "fd", eg_is_nan(a), "np.isnan(a)") \
    ROW(is_inf, "fd", eg_is_inf(a), "np.isinf(a)") \
    ROW(is_finite, "fd", eg_is_finite(a), "np.isfinite(a)") \
    ROW(relu, "fdil", eg_relu(a), "np.maximum(a, 0)") \
    ROW(sigmoid, "fd", eg_sigmoid(a), "1 / (1 + np.exp(-a))") \
    ROW(equal, "fdilub", eg_equal(a, b), "a == b") \
    ROW(not_equal, "fdilub", eg_not_equal(a, b), "a != b") \
    ROW(less, "fdilu", eg_less(a, b), "a < b") \
    ROW(less_equal, "fdilu", eg_less_equal(a, b), "a <= b") \
    ROW(greater, "fdilu", eg_greater(a, b), "a > b") \
    ROW(greater_number, "fdilu", eg_greater(a, 3), "a > 3") \
    ROW(greater_equal, "fdilu", eg_greater_equal(a, b), "a >= b") \
    ROW(logical_and, "b", eg_logical_and(a, b), "a & b") \
    ROW(logical_or, "b", eg_logical_or(a, b), "a | b") \
    ROW(logical_xor, "b", eg_logical_xor(a, b), "a ^ b") \
    ROW(logical_not, "b", eg_logical_not(a), "~a") \
    ROW(where, "fdilub", eg_where(m, a, b), "np.where(m, a, b)") \
    ROW(where_number, "fdilu", eg_where(m, a, 3), "np.where(m, a, D(3))") \
    ROW(to_float32, "dilub", eg_cast(a, EG_FLOAT32), "a.astype('f4')") \
    ROW(to_float64, "filub", eg_cast(a, EG_FLOAT64), "a.astype('f8')") \
    ROW(to_int32, "fdlub", eg_cast(a, EG_INT32), "a.astype('i4')") \
    ROW(to_int64, "fdiub", eg_cast(a, EG_INT64), "a.astype('i8')") \
    ROW(to_uint8, "fdilb", eg_cast(p, EG_UINT8), "p.astype('u1')") \
    ROW(to_bool, "fdilu", eg_cast(a, EG_BOOL), "a.astype('?')") \
    ROW(to_float16, "fd", eg_cast(a, EG_FLOAT16), "a.astype('f2')") \
    ROW(from_float16, "f", eg_cast(eg_cast(a, EG_FLOAT16), EG_FLOAT32), "a.astype('f2').astype('f4')") \
    ROW(sum, "fdilu", eg_reduce_sum(a), "a.sum(dtype=D)") \
    ROW(sum_first, "fdilu", eg_reduce_sum(a, .axes = EG_AXES(0)), "a.sum(0, dtype=D)") \
    ROW(sum_last, "fdilu", eg_reduce_sum(a, .axes = EG_AXES(1)), "a.sum(1, dtype=D)") \
    ROW(sum_nhw, "fdilu", eg_reduce_sum(picture, .axes = EG_AXES(0, 1, 2)), "picture.sum((0, 1, 2), dtype=D)") \
    ROW(sum_hw, "fdilu", eg_reduce_sum(picture, .axes = EG_AXES(1, 2)), "picture.sum((1, 2), dtype=D)") \
    ROW(sum_apart, "fdilu", eg_reduce_sum(picture, .axes = EG_AXES(0, 2)), "picture.sum((0, 2), dtype=D)") \
    ROW(sum_first_and_last, "fdilu", eg_reduce_sum(picture, .axes = EG_AXES(0, 3)), "picture.sum((0, 3), dtype=D)") \
    ROW(sum_transposed, "fdilu", eg_reduce_sum(eg_transpose(a), .axes = EG_AXES(0)), "a.T.sum(0, dtype=D)") \
    ROW(sum_strided, "fdilu", eg_reduce_sum(every_second(wide, 1, 2)), "wide[:, ::2].sum(dtype=D)") \
    ROW(mean, "fdil", eg_reduce_mean(a), "a.mean()") \
    ROW(mean_first, "fdil", eg_reduce_mean(a, .axes = EG_AXES(0)), "a.mean(0)") \
    ROW(mean_last, "fdil", eg_reduce_mean(a, .axes = EG_AXES(1)), "a.mean(1)") \
    ROW(max, "fdilu", eg_reduce_max(a), "a.max()") \
    ROW(max_first, "fdilu", eg_reduce_max(a, .axes = EG_AXES(0)), "a.max(0)") \
    ROW(max_last, "fdilu", eg_reduce_max(a, .axes = EG_AXES(1)), "a.max(1)") \
    ROW(min, "fdilu", eg_reduce_min(a), "a.min()") \
    ROW(min_first, "fdilu", eg_reduce_min(a, .axes = EG_AXES(0)), "a.min(0)") \
    ROW(min_last, "fdilu", eg_reduce_min(a, .axes = EG_AXES(1)), "a.min(1)") \
    ROW(prod, "fdil", eg_reduce_prod(one_ish), "one_ish.prod(dtype=D)") \
    ROW(prod_first, "fdil", eg_reduce_prod(one_ish, .axes = EG_AXES(0)), "one_ish.prod(0, dtype=D)") \
    ROW(prod_last, "fdil", eg_reduce_prod(one_ish, .axes = EG_AXES(1)), "one_ish.prod(1, dtype=D)") \
    ROW(norm, "fd", eg_norm(a), "np.linalg.norm(a)") \
    ROW(norm_first, "fd", eg_norm(a, .axes = EG_AXES(0)), "np.linalg.norm(a, axis=0)") \
    ROW(norm_last, "fd", eg_norm(a, .axes = EG_AXES(1)), "np.linalg.norm(a, axis=1)") \
    ROW(variance, "fd", eg_reduce_variance(a), "a.var()") \
    ROW(variance_first, "fd", eg_reduce_variance(a, .axes = EG_AXES(0)), "a.var(0)") \
    ROW(variance_last, "fd", eg_reduce_variance(a, .axes = EG_AXES(1)), "a.var(1)") \
    ROW(std, "fd", eg_reduce_std(a), "a.std()") \
    ROW(logsumexp, "fd", eg_reduce_logsumexp(s), "np.log(np.exp(s - s.max()).sum()) + s.max()") \
    ROW(all, "b", eg_reduce_all(yes), "yes.all()") \
    ROW(all_first, "b", eg_reduce_all(yes, .axes = EG_AXES(0)), "yes.all(0)") \
    ROW(all_last, "b", eg_reduce_all(yes, .axes = EG_AXES(1)), "yes.all(1)") \
    ROW(all_early, "b", eg_reduce_all(a), "a.all()") \
    ROW(any, "b", eg_reduce_any(no), "no.any()") \
    ROW(any_first, "b", eg_reduce_any(no, .axes = EG_AXES(0)), "no.any(0)") \
    ROW(any_last, "b", eg_reduce_any(no, .axes = EG_AXES(1)), "no.any(1)") \
    ROW(dot, "fd", dot("i,i->", eg_reshape(a, EG_SHAPE(-1)), eg_reshape(b, EG_SHAPE(-1))), \
        "np.dot(a.ravel(), b.ravel())") \
    ROW(einsum_rows, "fd", dot("ij,ij->i", a, b), "np.einsum('ij,ij->i', a, b)") \
    ROW(argmax_first, "fdilu", eg_argmax(a, .axis = 0), "a.argmax(0)") \
    ROW(argmax_last, "fdilu", eg_argmax(a, .axis = -1), "a.argmax(1)") \
    ROW(argmax_all, "fdilu", eg_argmax(eg_reshape(a, EG_SHAPE(-1))), "a.argmax()") \
    ROW(argmin_last, "fdilu", eg_argmin(a, .axis = -1), "a.argmin(1)") \
    ROW(cumsum_first, "fdilu", eg_cumsum(a, .axis = 0), "a.cumsum(0, dtype=D)") \
    ROW(cumsum_last, "fdilu", eg_cumsum(a, .axis = -1), "a.cumsum(1, dtype=D)") \
    ROW(sort_first, "fdilu", eg_sort(a, .axis = EG_ZERO), "np.sort(a, 0, kind='stable')") \
    ROW(sort_last, "fdilu", eg_sort(a), "np.sort(a, 1, kind='stable')") \
    ROW(sort_all, "fdilu", eg_sort(eg_reshape(a, EG_SHAPE(-1))), "np.sort(a.ravel(), kind='stable')") \
    ROW(argsort_last, "fdilu", eg_argsort(a), "np.argsort(a, 1, kind='stable')") \
    ROW(argsort_all, "fdilu", eg_argsort(eg_reshape(a, EG_SHAPE(-1))), "np.argsort(a.ravel(), kind='stable')") \
    ROW(top_10_last, "fdilu", eg_top_k(a, 10, NULL), "np.sort(np.partition(a, 989, 1)[:, 990:], 1)[:, ::-1]") \
    ROW(top_10_all, "fdilu", eg_top_k(eg_reshape(a, EG_SHAPE(-1)), 10, NULL), \
        "np.sort(np.partition(a.ravel(), 999989)[999990:])[::-1]") \
    ROW(gather_first, "fdilu", eg_gather(a, pick), "a[pick]") \
    ROW(gather_last, "fdilu", eg_gather(a, pick, .axis = 1), "np.take(a, pick, 1)") \
    ROW(take_along_axis, "fdilu", eg_take_along_axis(a, order, 1), "np.take_along_axis(a, order, 1)") \
    ROW(one_hot, "fdilu", eg_one_hot(pick, 1000, .dtype = eg_dtype_of(a)), "one_hot(pick, D)") \
    ROW(concat_first, "fdilub", joined(0), "np.concatenate((a, b), 0)") \
    ROW(concat_last, "fdilub", joined(1), "np.concatenate((a, b), 1)") \
    ROW(pad, "fdilu", eg_pad(a, EG_PADS(1, 1, 2, 2)), "np.pad(a, ((1, 1), (2, 2)))") \
    ROW(repeat_first, "fdilu", eg_repeat(a, 2, 0), "np.repeat(a, 2, 0)") \
    ROW(repeat_last, "fdilu", eg_repeat(a, 2, 1), "np.repeat(a, 2, 1)") \
    ROW(tile, "fdilu", eg_tile(a, EG_SHAPE(2, 2)), "np.tile(a, (2, 2))") \
    ROW(transpose, "fdilub", eg_reshape(eg_transpose(a), EG_SHAPE(-1)), "a.T.reshape(-1)") \
    ROW(copy_strided, "fdilub", eg_reshape(every_second(wide, 1, 2), EG_SHAPE(-1)), \
        "np.ascontiguousarray(wide[:, ::2]).reshape(-1)") \
    ROW(permute, "fdilub", eg_reshape(eg_transpose(picture, .perm = EG_AXES(0, 3, 1, 2)), EG_SHAPE(-1)), \
        "picture.transpose(0, 3, 1, 2).reshape(-1)") \
    ROW(zeros, "fdilub", eg_zeros(eg_dtype_of(a), EG_SHAPE(1000, 1000)), "np.full((1000, 1000), 0, D)") \
    ROW(uniform, "fd", eg_random_uniform(EG_SHAPE(1000, 1000), .dtype = eg_dtype_of(a)), \
        "random.random((1000, 1000), D)") \
    ROW(normal, "fd", eg_random_normal(EG_SHAPE(1000, 1000), .dtype = eg_dtype_of(a)), \
        "random.standard_normal((1000, 1000), D)") \
    ROW(sum_10m, "f", eg_reduce_sum(large), "large.sum()") \
    ROW(read_loop_10m, "f", read_loop(), "large.sum()")

#define FUNCTION(name, dtypes, ours, numpy) static eg_tensor *run_##name(void) { return ours; }
#define LINE(name, dtypes, ours, numpy) {#name, dtypes, numpy, run_##name},
ROWS(FUNCTION)
static const struct { const char *name, *dtypes, *numpy; eg_tensor *(*run)(void); } rows[] = { ROWS(LINE) };
enum { COUNT = sizeof rows / sizeof *rows };

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static eg_tensor *operand(const char *folder, const char *name, char dtype) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s_%c.npy", folder, name, dtype);
    return eg_retain(eg_load_npy(path));
}
static void read_operands(const char *folder, char dtype) {
    EG_SCOPE;
    const struct { const char *name; eg_tensor **x; } operands[] = {
        {"a", &a}, {"b", &b}, {"p", &p}, {"s", &s}, {"row", &row}, {"col", &col}, {"one", &one}, {"wide", &wide},
        {"picture", &picture}, {"one_ish", &one_ish}};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        eg_release(*operands[i].x);
        *operands[i].x = operand(folder, operands[i].name, dtype);
    }
}

int main(int argc, char **argv) {
    char line[256], what[16], dtype, last = 0, path[4096];
    int r;
    if (argc != 2) return 2;
    const char *folder = argv[1];
    m = operand(folder, "a", 'b'), yes = operand(folder, "yes", 'b'), no = operand(folder, "no", 'b');
    pick = operand(folder, "pick", 'l'), order = operand(folder, "order", 'l'), large = operand(folder, "large", 'f');
    snprintf(path, sizeof path, "%s/value.npy", folder);
    for (int i = 0; i < COUNT; i++) printf("%s\t%s\t%s\n", rows[i].name, rows[i].dtypes, rows[i].numpy);
    printf("\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        double seconds = 0;
        if (sscanf(line, "%15s %d %c %lf", what, &r, &dtype, &seconds) < 3 || r < 0 || r >= COUNT) return 2;
        if (dtype != last) read_operands(folder, dtype);
        last = dtype;
        if (!strcmp(what, "value")) {
            EG_SCOPE;
            if (eg_save_npy(rows[r].run(), path)) printf("ok\n");
            else printf("error %s\n", eg_error_message());
            eg_error_clear();
        } else {
            int64_t runs = 0;
            double start = now(), end = start;
            for (; runs < 2 || end < start + seconds; end = now(), runs++) {
                EG_SCOPE;
                rows[r].run();
            }
            printf("%.9g\n", (end - start) / (double)runs);
        }
        fflush(stdout);
    }
    return 0;
}
