// Values of the ops against plain C written here: every dtype an op takes, every layout its operands can have.
// (Values against NumPy, TensorFlow and PyTorch are in tests/fixtures/fixtures.c.)
#include "test.h"

static uint64_t random_state = 7;
static double random_unit(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / 9007199254740992.0;
}
static int64_t random_int(int64_t low, int64_t high) {
    return low + (int64_t)(random_unit() * (double)(high - low + 1));
}

// ---- elementwise
// ------------------------------------------------------------------------------------------------------
// An operand is an (R, C) table of numbers that lies in memory in one of these ways; the oracle asks the raw array.

enum { FLAT, TURNED, SPREAD, BACKWARD, A_ROW, A_COLUMN, A_SCALAR, A_NUMBER, LAYOUTS };
typedef struct operand {
    eg_tensor *x;
    int layout;
    int64_t rows, columns;
    double *at;
} operand;
static double *values_of(const operand *o, int64_t r, int64_t c) {
    switch (o->layout) {
    case TURNED: return o->at + c * o->rows + r;
    case SPREAD: return o->at + r * 2 * o->columns + 2 * c + 1;
    case BACKWARD: return o->at + (o->rows - 1 - r) * o->columns + (o->columns - 1 - c);
    case A_ROW: return o->at + c;
    case A_COLUMN: return o->at + r;
    case A_SCALAR: case A_NUMBER: return o->at;
    default: return o->at + r * o->columns + c;
    }
}
// Values in [low, high] that the dtype holds exactly.
static operand operand_make(eg_dtype dtype, int layout, int64_t rows, int64_t columns, double low, double high) {
    operand o = { NULL, layout, rows, columns, NULL };
    int64_t n = layout == SPREAD ? 2 * rows * columns
                : layout == A_ROW ? columns
                : layout == A_COLUMN ? rows
                : layout >= A_SCALAR ? 1
                : rows * columns;
    o.at = (double *)malloc((size_t)n * sizeof *o.at);
    for (int64_t i = 0; i < n; i++) {
        double v = low + (high - low) * random_unit();
        o.at[i] = dtype == EG_FLOAT64 ? v
                  : dtype == EG_FLOAT32 ? (double)(float)v
                  : dtype == EG_BOOL ? (double)(v > 0)
                  : floor(v);
    }
    eg_shape shape = layout == TURNED ? EG_SHAPE(columns, rows)
                     : layout == SPREAD ? EG_SHAPE(rows, 2 * columns)
                     : layout == A_ROW ? EG_SHAPE(columns)
                     : layout == A_COLUMN ? EG_SHAPE(rows, 1)
                     : layout >= A_SCALAR ? EG_SCALAR
                     : EG_SHAPE(rows, columns);
    if (layout == A_NUMBER) {
        o.x = dtype == EG_FLOAT32 || dtype == EG_FLOAT64 ? eg_number(o.at[0]) : eg_integer((int64_t)o.at[0]);
        return o;
    }
    eg_tensor *x = eg_constant_values(dtype, shape, o.at, n);
    if (layout == TURNED) x = eg_transpose(x);
    if (layout == SPREAD) x = eg_strided_slice(x, EG_SHAPE(0, 1), EG_SHAPE(EG_END, EG_END), EG_SHAPE(1, 2));
    if (layout == BACKWARD) x = eg_reverse(x, EG_AXES(0, 1));
    o.x = x;
    return o;
}

// What the ops are, on doubles and on 64-bit integers (results wrap to the dtype afterwards).
#define SIGN(a) (((a) > 0) - ((a) < 0))
static double f_sigmoid(double a) { return 1 / (1 + exp(-a)); }
static double f_softplus(double a) { return log1p(exp(a)); }
static double f_phi(double a) { return 0.5 * erfc(-a / sqrt(2.0)); }
static double f_mod(double a, double b) { return a - b * floor(a / b); }
static int64_t i_floordiv(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
static int64_t i_pow(int64_t a, int64_t b) {
    uint64_t y = 1;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    while (b--) y *= (uint64_t)a;
    return (int64_t)y;
}
typedef eg_tensor *unary(eg_tensor *);
typedef eg_tensor *binary(eg_tensor *, eg_tensor *);
enum { FLOATS = 3, SIGNED = 15, NUMBERS = 31, ALL = 63, BOOLS = 32 };

// V1(name, dtypes, low, high, value of a) as double; the integer form where it takes integers.
#define UNARY_VALUES(V1) \
    V1(negative, SIGNED, -9, 9, -a, -a) V1(abs, SIGNED, -9, 9, fabs(a), a < 0 ? -a : a) \
    V1(sign, SIGNED, -9, 9, SIGN(a), SIGN(a)) \
    V1(square, NUMBERS, 0, 99, a * a, a * a) V1(relu, SIGNED, -9, 9, fmax(a, 0), a > 0 ? a : 0) \
    V1(relu6, SIGNED, -9, 9, fmin(fmax(a, 0), 6), a < 0 ? 0 \
                                                  : a > 6 ? 6 \
                                                  : a) \
    V1(sqrt, FLOATS, 0, 9, sqrt(a), 0) V1(rsqrt, FLOATS, 0.1, 9, 1 / sqrt(a), 0) \
    V1(reciprocal, FLOATS, 0.1, 9, 1 / a, 0) \
    V1(exp, FLOATS, -5, 5, exp(a), 0) V1(expm1, FLOATS, -1, 1, expm1(a), 0) V1(log, FLOATS, 0.01, 9, log(a), 0) \
    V1(log1p, FLOATS, -0.9, 9, log1p(a), 0) \
    V1(sin, FLOATS, -9, 9, sin(a), 0) V1(cos, FLOATS, -9, 9, cos(a), 0) V1(tan, FLOATS, -1, 1, tan(a), 0) \
    V1(asin, FLOATS, -1, 1, asin(a), 0) \
    V1(acos, FLOATS, -1, 1, acos(a), 0) V1(atan, FLOATS, -9, 9, atan(a), 0) V1(sinh, FLOATS, -3, 3, sinh(a), 0) \
    V1(cosh, FLOATS, -3, 3, cosh(a), 0) \
    V1(tanh, FLOATS, -3, 3, tanh(a), 0) V1(asinh, FLOATS, -9, 9, asinh(a), 0) V1(acosh, FLOATS, 1, 9, acosh(a), 0) \
    V1(atanh, FLOATS, -0.9, 0.9, atanh(a), 0) \
    V1(erf, FLOATS, -3, 3, erf(a), 0) V1(erfc, FLOATS, -3, 3, erfc(a), 0) V1(floor, FLOATS, -9, 9, floor(a), 0) \
    V1(ceil, FLOATS, -9, 9, ceil(a), 0) V1(round, FLOATS, -9, 9, rint(a), 0) \
    V1(sigmoid, FLOATS, -9, 9, f_sigmoid(a), 0) V1(softplus, FLOATS, -9, 9, f_softplus(a), 0) \
    V1(softsign, FLOATS, -9, 9, a / (1 + fabs(a)), 0) \
    V1(selu, FLOATS, -3, 3, 1.0507009873554805 * (a > 0 ? a : 1.6732632423543772 * expm1(a)), 0) \
    V1(silu, FLOATS, -9, 9, a * f_sigmoid(a), 0) \
    V1(mish, FLOATS, -9, 9, a * tanh(f_softplus(a)), 0) V1(gelu, FLOATS, -3, 3, a * f_phi(a), 0) \
    V1(gelu_tanh, FLOATS, -3, 3, 0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))), 0) \
    V1(hard_sigmoid, FLOATS, -5, 5, fmin(fmax(a / 6 + 0.5, 0), 1), 0) \
    V1(is_nan, FLOATS, -9, 9, isnan(a), 0) V1(is_inf, FLOATS, -9, 9, isinf(a), 0) \
    V1(is_finite, FLOATS, -9, 9, isfinite(a), 0) \
    V1(logical_not, BOOLS, -1, 1, 0, !a)
#define BINARY_VALUES(V2) \
    V2(add, NUMBERS, -9, 9, -9, 9, a + b, a + b) V2(sub, NUMBERS, -9, 9, -9, 9, a - b, a - b) \
    V2(mul, NUMBERS, -9, 9, -9, 9, a * b, a * b) \
    V2(div, FLOATS, -9, 9, 0.5, 9, a / b, 0) V2(divide_no_nan, FLOATS, -9, 9, 0.5, 9, a / b, 0) \
    V2(floordiv, NUMBERS, -30, 30, 1, 9, floor(a / b), i_floordiv(a, b)) \
    V2(mod, NUMBERS, -30, 30, 1, 9, f_mod(a, b), a - b * i_floordiv(a, b)) \
    V2(pow, NUMBERS, 0.1, 5, -2, 3, pow(a, b), i_pow(a, b)) \
    V2(maximum, NUMBERS, -9, 9, -9, 9, fmax(a, b), a > b ? a : b) \
    V2(minimum, NUMBERS, -9, 9, -9, 9, fmin(a, b), a < b ? a : b) \
    V2(squared_difference, NUMBERS, -9, 9, -9, 9, (a - b) * (a - b), (a - b) * (a - b)) \
    V2(log_cosh_difference, FLOATS, -9, 9, -9, 9, log(cosh(a - b)), 0) \
    V2(atan2, FLOATS, -9, 9, -9, 9, atan2(a, b), 0) \
    V2(leaky_relu, FLOATS, -9, 9, 0.1, 0.5, a > 0 ? a : a * b, 0) \
    V2(elu, FLOATS, -3, 3, 0.5, 2, a > 0 ? a : b * expm1(a), 0) \
    V2(sigmoid_cross_entropy_with_logits, FLOATS, 0, 1, -9, 9, f_softplus(b) - a * b, 0) \
    V2(equal, ALL, -2, 2, -2, 2, a == b, a == b) V2(not_equal, ALL, -2, 2, -2, 2, a != b, a != b) \
    V2(less, NUMBERS, -2, 2, -2, 2, a < b, a < b) \
    V2(less_equal, NUMBERS, -2, 2, -2, 2, a <= b, a <= b) V2(greater, NUMBERS, -2, 2, -2, 2, a > b, a > b) \
    V2(greater_equal, NUMBERS, -2, 2, -2, 2, a >= b, a >= b) \
    V2(logical_and, BOOLS, -1, 1, -1, 1, 0, a && b) V2(logical_or, BOOLS, -1, 1, -1, 1, 0, a || b) \
    V2(logical_xor, BOOLS, -1, 1, -1, 1, 0, (a != 0) != (b != 0))

typedef struct value_row {
    const char *name;
    int n, dtypes;
    unary *f1;
    binary *f2;
    double range[2][2];
    double (*as_double)(double a, double b);
    int64_t (*as_int)(int64_t a, int64_t b);
} value_row;
#define ORACLE1(name, dtypes, low, high, f, i) \
    static double d_##name(double a, double b) { (void)a; (void)b; return (double)(f); } \
    static int64_t i_of_##name(int64_t a, int64_t b) { (void)a; (void)b; return (int64_t)(i); }
#define ORACLE2(name, dtypes, l0, h0, l1, h1, f, i) ORACLE1(name, dtypes, l0, h0, f, i)
UNARY_VALUES(ORACLE1)
BINARY_VALUES(ORACLE2)
#define VALUE1(name, dtypes, low, high, f, i) \
    { #name, 1, dtypes, eg_##name, NULL, { { low, high }, { 0, 0 } }, d_##name, i_of_##name },
#define VALUE2(name, dtypes, l0, h0, l1, h1, f, i) \
    { #name, 2, dtypes, NULL, (eg_##name), { { l0, h0 }, { l1, h1 } }, d_##name, i_of_##name },
static const value_row value_rows[] = { UNARY_VALUES(VALUE1) BINARY_VALUES(VALUE2) };
enum { VALUE_ROWS = (int)(sizeof value_rows / sizeof value_rows[0]) };

static int64_t wrapped(eg_dtype dtype, int64_t v) {
    return dtype == EG_INT32 ? (int64_t)(int32_t)(uint32_t)(uint64_t)v : dtype == EG_UINT8 ? (int64_t)(v & 255) : v;
}
static void check_values(const value_row *row, eg_dtype dtype, int la, int lb, int64_t rows, int64_t columns) {
    EG_SCOPE;
    bool real = dtype == EG_FLOAT32 || dtype == EG_FLOAT64, positive = dtype == EG_UINT8;
    double low[2] = { row->range[0][0], row->range[1][0] };
    for (int i = 0; i < 2; i++) if (positive && low[i] < 0) low[i] = 0;
    operand a = operand_make(dtype, la, rows, columns, low[0], row->range[0][1]), b = a;
    if (row->n == 2) b = operand_make(dtype, lb, rows, columns, low[1], row->range[1][1]);
    eg_tensor *y = row->n == 1 ? row->f1(a.x) : row->f2(a.x, b.x);
    if (!y)
        printf("    eg_%s of %s, layouts %d and %d: %s\n", row->name, eg_dtype_name(dtype), la, lb, eg_error_message());
    REQUIRE(y);
    const char *data = (const char *)eg_data(y);
    eg_dtype to = eg_dtype_of(y);
    bool small_a = la >= A_ROW, small_b = row->n == 1 || lb >= A_ROW;
    if (!(small_a && small_b)) CHECK_INT(eg_size(y), rows * columns);
    if (strncmp(row->name, "is_", 3) && strcmp(row->name, "equal") && strcmp(row->name, "not_equal") &&
        strncmp(row->name, "less", 4) && strncmp(row->name, "greater", 7))
        CHECK_INT(to, dtype);
    else
        CHECK_INT(to, EG_BOOL);
    int64_t out_columns = eg_rank(y) ? eg_dim(y, -1) : 1;
    for (int64_t i = 0; i < eg_size(y) && !test_fails; i++) {
        double va = *values_of(&a, i / out_columns, i % out_columns),
               vb = *values_of(&b, i / out_columns, i % out_columns);
        bool same;
        double got, want;
        if (real) {
            want = row->as_double(va, vb);
            got = to == EG_BOOL ? (double)data[i]
                  : to == EG_FLOAT32 ? (double)((const float *)(const void *)data)[i]
                  : ((const double *)(const void *)data)[i];
            // at a boundary, rounding may take either side
            if (!strcmp(row->name, "mod") || !strcmp(row->name, "floordiv")) {
                same = test_close(got, want, 1e-4) || fabs(fabs(got - want) - (row->name[0] == 'm' ? vb : 1)) < 1e-4;
            } else same = test_close(got, want, dtype == EG_FLOAT32 ? 4e-6 : 1e-13);
        } else {
            want = (double)(to == EG_BOOL ? row->as_int((int64_t)va, (int64_t)vb)
                            : wrapped(dtype, row->as_int((int64_t)va, (int64_t)vb)));
            got = to == EG_INT32 ? (double)((const int32_t *)(const void *)data)[i]
                  : to == EG_INT64 ? (double)((const int64_t *)(const void *)data)[i]
                  : (double)((const uint8_t *)data)[i];
            same = got == want;
        }
        if (!same)
            printf("    eg_%s of %s at %lld, layouts %d and %d, (%lld, %lld): of %.9g and %.9g\n", row->name,
                   eg_dtype_name(dtype), (long long)i, la, lb, (long long)rows, (long long)columns, va, vb);
        if (!same) CHECK_NEAR(got, want, 0);
    }
    free(a.at);
    if (row->n == 2) free(b.at);
}
// A block is 1024 elements: just below, at and above it, and in rows that straddle it.
static const int64_t sizes[][2] = { { 1, 1 }, { 1, 1023 }, { 1024, 1 }, { 5, 205 }, { 40, 53 } };
enum { SIZES = (int)(sizeof sizes / sizeof sizes[0]) };
TEST(unary_values) {
    for (int r = 0; r < VALUE_ROWS; r++)
        for (int t = 0; t < 6 && value_rows[r].n == 1 && !test_fails; t++)
            for (int layout = FLAT; layout <= A_SCALAR && value_rows[r].dtypes >> t & 1; layout++)
                for (int s = 0; s < SIZES; s++)
                    check_values(&value_rows[r], (eg_dtype)t, layout, 0, sizes[s][0], sizes[s][1]);
}
TEST(binary_values) {
    int turn = 0;
    for (int r = 0; r < VALUE_ROWS; r++)
        for (int t = 0; t < 6 && value_rows[r].n == 2 && !test_fails; t++)
            for (int la = FLAT; la < LAYOUTS && value_rows[r].dtypes >> t & 1; la++)
                for (int lb = FLAT; lb < LAYOUTS; lb++) {
                    if (la == A_NUMBER && lb == A_NUMBER) continue;
                    if (t == EG_BOOL && (la == A_NUMBER || lb == A_NUMBER)) continue;
                    // of one shape
                    if (!strncmp(value_rows[r].name, "sigmoid_cross", 13) &&
                        (la == A_ROW || la == A_COLUMN || lb == A_ROW || lb == A_COLUMN))
                        continue;
                    int s = turn++ % SIZES;
                    check_values(&value_rows[r], (eg_dtype)t, la, lb, sizes[s][0], sizes[s][1]);
                }
}
TEST(where_and_clip_values) {
    for (int t = 0; t < 6; t++)
        for (int l = 0; l < LAYOUTS * 9 && !test_fails; l++) {
            EG_SCOPE;
            int la = l % A_SCALAR, lb = l % LAYOUTS, lc = (l / 3) % LAYOUTS;
            if ((lb == A_NUMBER || lc == A_NUMBER) && t == EG_BOOL) continue;
            operand c = operand_make(EG_BOOL, la, 33, 35, -1, 1),
                    a = operand_make((eg_dtype)t, lb, 33, 35, t == EG_UINT8 ? 0 : -9, 9),
                    b = operand_make((eg_dtype)t, lc, 33, 35, t == EG_UINT8 ? 0 : -9, 9);
            eg_tensor *y = eg_where(c.x, a.x, b.x), *z = NULL;
            REQUIRE(y);
            double *want = (double *)malloc(33 * 35 * sizeof *want);
            int64_t columns = eg_dim(y, -1), n = eg_size(y);
            for (int64_t i = 0; i < n; i++)
                want[i] = *values_of(&c, i / columns, i % columns) != 0 ? *values_of(&a, i / columns, i % columns)
                          : *values_of(&b, i / columns, i % columns);
            if (lb == A_NUMBER && lc == A_NUMBER) CHECK_DTYPE(y, EG_FLOAT32);
            else CHECK_DTYPE(y, (eg_dtype)t);
            CHECK_VALUES(y, t == EG_FLOAT64 ? 1e-7 : 0, want, n);
            if (t != EG_BOOL && lb != A_NUMBER) {
                operand x = operand_make((eg_dtype)t, FLAT, 33, 35, t == EG_UINT8 ? 0 : -9, 9);
                z = eg_clip_by_value(x.x, a.x, b.x);
                for (int64_t i = 0; i < 33 * 35; i++)
                    want[i] = fmin(fmax(*values_of(&x, i / 35, i % 35), *values_of(&a, i / 35, i % 35)),
                                   *values_of(&b, i / 35, i % 35));
                CHECK_VALUES(z, 1e-14, want, 33 * 35);
                free(x.at);
            }
            free(want); free(a.at); free(b.at); free(c.at);
        }
}

// ---- views and casts
// --------------------------------------------------------------------------------------------------
// A tensor of dtype float64 filled 0, 1, 2 ...; and such a tensor seen through a view whose elements are again 0, 1, 2
// ....

static eg_tensor *counting(eg_dtype dtype, eg_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dims[i];
    return eg_reshape(eg_range(dtype, 0, (double)n, 1), s);
}
static eg_tensor *randoms(eg_dtype dtype, eg_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dims[i];
    double *v = (double *)malloc((size_t)(n ? n : 1) * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = dtype == EG_FLOAT32 || dtype == EG_FLOAT64 ? (double)(float)(4 * random_unit() - 2)
               : (double)random_int(dtype == EG_UINT8 ? 0 : -9, 9);
    eg_tensor *x = eg_constant_values(dtype, s, v, n);
    free(v);
    return x;
}
// The same elements with other strides: 0 as they are, 1 axes turned round in memory, 2 every second of a longer axis,
// 3 backwards.
static eg_tensor *laid_out(eg_tensor *x, int how) {
    int rank = eg_rank(x);
    if (how == 1) {
        eg_tensor *turned = eg_transpose(x);
        return eg_transpose(eg_reshape(turned, eg_shape_of(turned)));
    }
    if (how == 2 && rank) {
        eg_shape begin = eg_shape_of(x), end = begin, step = begin;
        for (int i = 0; i < rank; i++) {
            begin.dims[i] = 0;
            end.dims[i] = EG_END;
            step.dims[i] = i == rank - 1 ? 2 : 1;
        }
        return eg_strided_slice(eg_repeat(x, 2, -1), begin, end, step);
    }
    if (how == 3 && rank) {
        eg_tensor *back = eg_reverse(x, EG_AXES(0));
        return eg_reverse(eg_reshape(back, eg_shape_of(x)), EG_AXES(0));
    }
    return x;
}
static const double *doubles(eg_tensor *x) { return (const double *)eg_data(eg_cast(x, EG_FLOAT64)); }

TEST(laid_out_changes_no_value) {
    for (int how = 0; how < 4; how++)
        CHECK_TENSOR(laid_out(counting(EG_INT32, EG_SHAPE(2, 3)), how), 0, 0, 1, 2, 3, 4, 5);
}
TEST(cast_values) {
    const double in[] = { 0, 1, -1, 2.5, -2.5, 127, 200.75, 255, 256, -0.0, 1e10, -1e10, 3e20, -3e20, INFINITY,
                          -INFINITY, NAN, 0.1 };
    enum { N = (int)(sizeof in / sizeof in[0]) };
    const double as_int32[] = { 0, 1, -1, 2, -2, 127, 200, 255, 256, 0, 2147483647, -2147483648.0, 2147483647,
                                -2147483648.0, 2147483647, -2147483648.0, 0, 0 };
    const double as_uint8[] = { 0, 1, 0, 2, 0, 127, 200, 255, 255, 0, 255, 0, 255, 0, 255, 0, 0, 0 };
    const double as_bool[] = { 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1 };
    for (int t = 0; t < 2; t++) {
        eg_tensor *x = eg_constant_values(t ? EG_FLOAT64 : EG_FLOAT32, EG_SHAPE(N), in, N);
        CHECK_VALUES(eg_cast(x, EG_INT32), 0, as_int32, N);
        CHECK_VALUES(eg_cast(x, EG_UINT8), 0, as_uint8, N);
        CHECK_VALUES(eg_cast(x, EG_BOOL), 0, as_bool, N);
        const int64_t *whole = (const int64_t *)eg_data(eg_cast(x, EG_INT64));
        CHECK(whole[12] == INT64_MAX && whole[13] == INT64_MIN && whole[14] == INT64_MAX && whole[15] == INT64_MIN &&
              whole[16] == 0 && whole[4] == -2);
        CHECK_VALUES(eg_cast(eg_cast(x, EG_FLOAT32), EG_FLOAT64), 1e-7, in, N);
    }
    const int64_t big[] = { INT64_MAX, INT64_MIN, 9007199254740993, -5, 300 };
    eg_tensor *x = eg_from_data(EG_INT64, EG_SHAPE(5), big);
    CHECK_TENSOR(eg_cast(x, EG_INT32), 0, -1, 0, 1, -5, 300);                                // the low bits
    CHECK_TENSOR(eg_cast(x, EG_UINT8), 0, 255, 0, 1, 251, 44);
    CHECK_TENSOR(eg_cast(x, EG_BOOL), 0, 1, 1, 1, 1, 1);
    CHECK(((const int64_t *)eg_data(eg_cast(x, EG_INT64)))[2] == 9007199254740993);
}
// Every dtype to every other one, through a block and in every layout; small integers are exact everywhere.
TEST(cast_between_all_dtypes) {
    for (int from = 0; from <= EG_BFLOAT16; from++)
        for (int to = 0; to <= EG_BFLOAT16; to++)
            for (int how = 0; how < 4; how++) {
                EG_SCOPE;
                double want[1100];
                for (int i = 0; i < 1100; i++) want[i] = from == EG_BOOL || to == EG_BOOL ? (i % 7 != 0) : i % 128;
                eg_tensor *x = eg_cast(eg_constant_values(EG_FLOAT32, EG_SHAPE(20, 55), want, 1100), (eg_dtype)from);
                CHECK_DTYPE(x, (eg_dtype)from);
                eg_tensor *y = eg_cast(laid_out(x, how), (eg_dtype)to);
                CHECK_DTYPE(y, (eg_dtype)to);
                CHECK_VALUES(y, 0, want, 1100);
            }
}
TEST(shape_ops_of_storage_dtypes) {
    eg_tensor *x = eg_cast(counting(EG_FLOAT32, EG_SHAPE(2, 3)), EG_BFLOAT16);
    CHECK_TENSOR(eg_transpose(x), 0, 0, 3, 1, 4, 2, 5);
    CHECK_TENSOR(eg_concat(EG_TENSORS(x, x), 1), 0, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5);
    CHECK_TENSOR(eg_gather(x, eg_constant_of(EG_INT32, EG_SHAPE(1), 1)), 0, 3, 4, 5);
    CHECK_TENSOR(eg_pad(x, EG_PADS(0, 0, 1, 0), .value = 7), 0, 7, 0, 1, 2, 7, 3, 4, 5);
    CHECK_ERROR(eg_add(x, x), EG_ERROR_DTYPE, "storage");
}

// Python's x[b:e:s]: which elements, in which order. `open` ends are EG_END.
static int python_slice(int64_t n, int64_t b, int64_t e, int64_t s, int64_t *picked) {
    int count = 0;
    int64_t low = s < 0 ? -1 : 0, high = s < 0 ? n - 1 : n;
    if (b != EG_END && b < 0) b += n;
    if (e != EG_END && e < 0) e += n;
    int64_t first = b < low ? low : b > high ? high : b;
    int64_t last = e == EG_END ? (s < 0 ? -1 : n) : e < low ? low : e > high ? high : e;
    // one at most
    if (s > 1000 || s < -1000)
        last = s > 0 ? (first < last ? first + 1 : first) : first > last ? first - 1 : first, s = s > 0 ? 1 : -1;
    for (int64_t i = first; s > 0 ? i < last : i > last; i += s) picked[count++] = i;
    return count;
}
TEST(strided_slice_is_pythons) {
    const int64_t bounds[] = { 0, 1, 2, 4, 5, 6, 7, 100, -1, -2, -5, -6, -7, -100, EG_END, INT64_MIN + 1 },
                  steps[] = { 1, 2, 3, 7, 100, -1, -2, -3, -100, INT64_MAX, -INT64_MAX };
    for (int64_t n = 0; n <= 6; n += 1 + (n == 1) * 3) {
        eg_tensor *x = counting(EG_INT32, EG_SHAPE(n, 2));
        for (int b = 0; b < 16; b++)
            for (int e = 0; e < 16; e++)
                for (int s = 0; s < 11; s++) {
                    EG_SCOPE;
                    int64_t picked[8];
                    double want[16];
                    int count = python_slice(n, bounds[b], bounds[e], steps[s], picked);
                    for (int i = 0; i < count; i++) {
                        want[2 * i] = (double)(2 * picked[i] + 1);
                        want[2 * i + 1] = (double)(2 * picked[i]);
                    }
                    eg_tensor *y = eg_strided_slice(x, EG_SHAPE(bounds[b], EG_END), EG_SHAPE(bounds[e], EG_END),
                                                    EG_SHAPE(steps[s], -1));
                    CHECK_SHAPE(y, count, 2);
                    CHECK_VALUES(y, 0, want, 2 * count);
                    if (test_fails) {
                        printf("    n %lld, [%lld:%lld:%lld]\n", (long long)n, (long long)bounds[b],
                               (long long)bounds[e], (long long)steps[s]);
                        return;
                    }
                }
    }
}
TEST(slices_of_slices) {
    eg_tensor *x = counting(EG_INT64, EG_SHAPE(6, 7, 8));
    // (8, 7, 6)[::-3, 1:6:2]
    eg_tensor *y = eg_strided_slice(eg_transpose(x), EG_SHAPE(-1, 1), EG_SHAPE(EG_END, 6), EG_SHAPE(-3, 2));
    y = eg_strided_slice(y, EG_SHAPE(0, -1, 4), EG_SHAPE(2, EG_END, 0), EG_SHAPE(1, -2, -2));  // [:2, ::-2, 4:0:-2]
    CHECK_SHAPE(y, 2, 2, 2);
    double want[8];
    int k = 0;
    for (int64_t a = 7; a >= 4; a -= 3)
        for (int64_t b = 5; b >= 1; b -= 4)
            for (int64_t c = 4; c >= 2; c -= 2) want[k++] = (double)(c * 56 + b * 8 + a);
    CHECK_VALUES(y, 0, want, 8);
}
// Large results, which are filled around x, and those with short rows, which are filled as a whole.
TEST(pads_of_large_tensors) {
    static const int64_t dims[][3] = { { 70, 40, 30 }, { 70, 2, 600 } },
                         pads[][6] = { { 1, 2, 0, 3, 4, 1 }, { 2, 1, 3, 3, 0, 0 }, { 1, 0, 0, 0, 0, 0 },
                                { 0, 3, 2, 0, 0, 5 } };
    for (int d = 0; d < 2; d++)
        for (int p = 0; p < 4; p++) {
            EG_SCOPE;
            const int64_t *n = dims[d], *w = pads[p];
            eg_tensor *x = eg_range(EG_FLOAT32, 0, (double)(n[0] * n[1] * n[2]), 1),
                      *y = eg_pad(eg_reshape(x, EG_SHAPE(n[0], n[1], n[2])),
                                  EG_PADS(w[0], w[1], w[2], w[3], w[4], w[5]), .value = -3);
            const float *v = (const float *)eg_data(y);
            REQUIRE(v);
            bool same = true;
            for (int64_t i = -w[0]; i < n[0] + w[1]; i++)
                for (int64_t j = -w[2]; j < n[1] + w[3]; j++)
                    for (int64_t k = -w[4]; k < n[2] + w[5]; k++) {
                        const bool inside = i >= 0 && i < n[0] && j >= 0 && j < n[1] && k >= 0 && k < n[2];
                        same = same && *v++ == (inside ? (float)((i * n[1] + j) * n[2] + k) : -3);
                    }
            CHECK(same);
        }
}
TEST(bytes_in_reverse) {
    uint8_t bytes[300];
    for (int i = 0; i < 300; i++) bytes[i] = (uint8_t)(i * 7 % 251);
    for (int64_t n = 0; n <= 130; n++)
        for (int64_t from = 0; from < 3; from++) {
            EG_SCOPE;
            eg_tensor *x = eg_from_data(EG_UINT8, EG_SHAPE(n), bytes + from);
            const uint8_t *y = (const uint8_t *)eg_data(eg_reverse(x, EG_AXES(0)));
            REQUIRE(y);
            for (int64_t i = 0; i < n; i++) CHECK_INT(y[i], bytes[from + n - 1 - i]);
        }
}
TEST(pad_modes) {
    eg_tensor *x = eg_constant_of(EG_INT32, EG_SHAPE(3), 1, 2, 3);
    CHECK_TENSOR(eg_pad(x, EG_PADS(2, 1), .value = 9), 0, 9, 9, 1, 2, 3, 9);
    CHECK_TENSOR(eg_pad(x, EG_PADS(2, 2), .mode = EG_PAD_REFLECT), 0, 3, 2, 1, 2, 3, 2, 1);
    CHECK_TENSOR(eg_pad(x, EG_PADS(3, 3), .mode = EG_PAD_SYMMETRIC), 0, 3, 2, 1, 1, 2, 3, 3, 2, 1);
    CHECK_TENSOR(eg_pad(eg_transpose(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)), EG_PADS(0, 1, 1, 0)), 0, 0, 1, 3, 0, 2,
                 4, 0, 0, 0);
    CHECK_SHAPE(eg_pad(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2)), EG_PADS(0, 0, 1, 1), .mode = EG_PAD_REFLECT), 0, 4);
    CHECK_TENSOR(eg_pad(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), EG_PADS(1, 1, 1, 1), .mode = EG_PAD_REFLECT), 0, 4, 3,
                 4, 3, 2, 1, 2, 1, 4, 3, 4, 3, 2, 1, 2, 1);
    CHECK_SAME(eg_pad(eg_scalar(3), ((eg_pads){ 0, { 0 } })), eg_scalar(3), 0);
}
TEST(concat_stack_tile_repeat_split) {
    for (int how = 0; how < 4; how++) {
        eg_tensor *a = laid_out(counting(EG_INT32, EG_SHAPE(2, 2)), how),
                  *b = laid_out(eg_add(counting(EG_INT32, EG_SHAPE(2, 1)), 10), how);
        CHECK_TENSOR(eg_concat(EG_TENSORS(a, b, a), -1), 0, 0, 1, 10, 0, 1, 2, 3, 11, 2, 3);
        CHECK_TENSOR(eg_concat(EG_TENSORS(a, eg_zeros(EG_INT32, EG_SHAPE(0, 2)), a), 0), 0, 0, 1, 2, 3, 0, 1, 2, 3);
        CHECK_TENSOR(eg_stack(EG_TENSORS(a, a), -1), 0, 0, 0, 1, 1, 2, 2, 3, 3);
        CHECK_TENSOR(eg_stack(EG_TENSORS(a, a), 1), 0, 0, 1, 0, 1, 2, 3, 2, 3);
        CHECK_TENSOR(eg_tile(a, EG_SHAPE(2, 2)), 0, 0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3);
        CHECK_TENSOR(eg_repeat(a, 2, 0), 0, 0, 1, 0, 1, 2, 3, 2, 3);
        CHECK_TENSOR(eg_repeat(a, 3, -1), 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3);
        CHECK_SHAPE(eg_repeat(a, 0, 0), 0, 2);
        CHECK_SHAPE(eg_tile(a, EG_SHAPE(1, 0)), 2, 0);
        eg_tensor *part[2];
        CHECK(eg_split(a, 2, 1, part));
        CHECK_TENSOR(part[1], 0, 1, 3);
        CHECK_SHAPE(part[1], 2, 1);
        CHECK(eg_unstack(a, 2, -1, part));
        CHECK_TENSOR(part[0], 0, 0, 2);
        CHECK_SHAPE(part[0], 2);
    }
}
TEST(reshape_squeeze_expand_broadcast) {
    eg_tensor *x = counting(EG_FLOAT32, EG_SHAPE(2, 3));
    CHECK_SHAPE(eg_reshape(x, EG_SHAPE(3, -1)), 3, 2);
    CHECK_TENSOR(eg_reshape(eg_transpose(x), EG_SHAPE(6)), 0, 0, 3, 1, 4, 2, 5);
    CHECK_INT(eg_rank(eg_reshape(eg_ones(EG_FLOAT32, EG_SHAPE(1, 1)), EG_SCALAR)), 0);
    CHECK_SHAPE(eg_reshape(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3)), EG_SHAPE(3, 0, 5)), 3, 0, 5);
    CHECK_SHAPE(eg_reshape(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3)), EG_SHAPE(-1, 3)), 0, 3);
    CHECK_SHAPE(eg_expand_dims(x, 0), 1, 2, 3);
    CHECK_SHAPE(eg_expand_dims(x, -1), 2, 3, 1);
    CHECK_SHAPE(eg_squeeze(eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2, 1))), 2);
    CHECK_SHAPE(eg_squeeze(eg_zeros(EG_FLOAT32, EG_SHAPE(1, 2, 1)), .axes = EG_AXES(0)), 2, 1);
    CHECK_TENSOR(eg_broadcast_to(eg_constant(EG_SHAPE(2, 1), 1, 2), EG_SHAPE(2, 2, 2)), 0, 1, 1, 2, 2, 1, 1, 2, 2);
    CHECK_TENSOR(eg_reshape(eg_broadcast_to(eg_constant(EG_SHAPE(2), 1, 2), EG_SHAPE(3, 2)), EG_SHAPE(2, 3)), 0, 1, 2,
                 1, 2, 1, 2);
    CHECK_SHAPE(eg_transpose(eg_zeros(EG_UINT8, EG_SHAPE(2, 3, 4)), .perm = EG_AXES(-1, 0, 1)), 4, 2, 3);
    CHECK_TENSOR(eg_reverse(x, EG_AXES(-1)), 0, 2, 1, 0, 5, 4, 3);
}

// ---- products
// ---------------------------------------------------------------------------------------------------------

static double product_at(const double *a, const double *b, int64_t m, int64_t k, int64_t n, int64_t i, int64_t j,
                         bool ta, bool tb) {
    double sum = 0;
    for (int64_t p = 0; p < k; p++) sum += (ta ? a[p * m + i] : a[i * k + p]) * (tb ? b[j * k + p] : b[p * n + j]);
    return sum;
}
static void check_matmul(eg_dtype dtype, int64_t m, int64_t k, int64_t n, int transposes, int la, int lb) {
    EG_SCOPE;
    bool ta = transposes & 1, tb = transposes & 2;
    eg_tensor *a = randoms(dtype, ta ? EG_SHAPE(k, m) : EG_SHAPE(m, k)),
              *b = randoms(dtype, tb ? EG_SHAPE(n, k) : EG_SHAPE(k, n));
    const double *va = doubles(a), *vb = doubles(b);
    double *want = (double *)malloc((size_t)(m * n + 1) * sizeof *want);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) want[i * n + j] = product_at(va, vb, m, k, n, i, j, ta, tb);
    eg_tensor *y = eg_matmul(laid_out(a, la), laid_out(b, lb), .transpose_a = ta, .transpose_b = tb);
    CHECK_SHAPE(y, m, n);
    CHECK_DTYPE(y, dtype);
    CHECK_VALUES(y, dtype == EG_FLOAT32 ? 1e-4 : 1e-12, want, m * n);
    free(want);
    if (test_fails)
        printf("    %s (%lld, %lld) x (%lld, %lld), transposes %d, layouts %d %d\n", eg_dtype_name(dtype), (long long)m,
               (long long)k, (long long)k, (long long)n, transposes, la, lb);
}
TEST(matmul_values) {
    const int64_t mkn[][3] = { { 1, 1, 1 }, { 1, 7, 1 }, { 3, 1, 4 }, { 1, 9, 17 }, { 17, 9, 1 }, { 6, 5, 16 },
                               { 7, 33, 31 }, { 13, 300, 40 }, { 100, 20, 70 }, { 14, 40, 120 }, { 1, 700, 50 },
                               { 50, 700, 1 }, { 0, 3, 2 }, { 2, 0, 3 }, { 2, 3, 0 } };
    const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64 };
    int turn = 0;
    for (int t = 0; t < 4; t++)
        for (int s = 0; s < 15; s++)
            for (int transposes = 0; transposes < 4; transposes++)
                for (int l = 0; l < 4 && !test_fails; l++, turn++)
                    check_matmul(dtypes[t], mkn[s][0], mkn[s][1], mkn[s][2], transposes, l, (l + turn / 4) % 4);
    check_matmul(EG_FLOAT32, 200, 257, 100, 0, 0, 0);
    check_matmul(EG_FLOAT64, 5, 600, 2100, 2, 0, 1);
}
TEST(matmul_broadcasts_batches) {
    const eg_shape pairs[][3] = {
        { EG_SHAPE(3, 2, 4), EG_SHAPE(3, 4, 5), EG_SHAPE(3, 2, 5) },
        { EG_SHAPE(3, 2, 4), EG_SHAPE(4, 5), EG_SHAPE(3, 2, 5) },
        { EG_SHAPE(2, 4), EG_SHAPE(3, 4, 5), EG_SHAPE(3, 2, 5) },
        { EG_SHAPE(2, 1, 2, 4), EG_SHAPE(3, 4, 5), EG_SHAPE(2, 3, 2, 5) },
        { EG_SHAPE(1, 2, 4), EG_SHAPE(2, 3, 4, 5), EG_SHAPE(2, 3, 2, 5) },
        { EG_SHAPE(2, 3, 1, 4), EG_SHAPE(1, 1, 4, 5), EG_SHAPE(2, 3, 1, 5) },
        { EG_SHAPE(0, 2, 4), EG_SHAPE(1, 4, 5), EG_SHAPE(0, 2, 5) },
        { EG_SHAPE(2, 1, 1, 4), EG_SHAPE(1, 3, 4, 1), EG_SHAPE(2, 3, 1, 1) }
    };
    for (int p = 0; p < 8; p++)
        for (int l = 0; l < 16; l++) {
            EG_SCOPE;
            eg_tensor *a = randoms(EG_FLOAT64, pairs[p][0]), *b = randoms(EG_FLOAT64, pairs[p][1]),
                      *y = eg_matmul(laid_out(a, l % 4), laid_out(b, l / 4));
            eg_shape full = pairs[p][2], wide_a = full, wide_b = full;
            int r = full.rank;
            int64_t m = full.dims[r - 2], n = full.dims[r - 1], k = eg_dim(a, -1), batches = 1;
            for (int i = 0; i < r - 2; i++) batches *= full.dims[i];
            wide_a.dims[r - 1] = k;
            wide_b.dims[r - 2] = k;
            const double *va = doubles(eg_broadcast_to(a, wide_a)), *vb = doubles(eg_broadcast_to(b, wide_b));
            double want[256];
            for (int64_t i = 0; i < batches * m * n; i++) {
                int64_t batch = i / (m * n);
                want[i] = product_at(va + batch * m * k, vb + batch * k * n, m, k, n, i / n % m, i % n, false, false);
            }
            CHECK_VALUES(y, 1e-13, want, batches * m * n);
            CHECK_INT(eg_rank(y), r);
            for (int i = 0; y && i < r; i++) CHECK_INT(eg_dim(y, i), full.dims[i]);
        }
}
TEST(matmul_of_broadcast_views) {
    eg_tensor *row = eg_constant(EG_SHAPE(3), 1, 2, 3), *a = eg_broadcast_to(row, EG_SHAPE(2, 3)),
              *b = eg_transpose(eg_broadcast_to(row, EG_SHAPE(4, 3)));
    CHECK_TENSOR(eg_matmul(a, b), 0, 14, 14, 14, 14, 14, 14, 14, 14);
}

// Any equation of small letters, by counting through all values of all letters.
static void check_einsum(const char *equation, int n, const eg_shape *shapes) {
    EG_SCOPE;
    eg_tensor *x[4];
    const double *v[4];
    int64_t size[128], value[128] = { 0 };
    const char *term[4], *out = strstr(equation, "->") + 2;
    for (int i = 0; i < 128; i++) size[i] = 0;
    const char *p = equation;
    for (int i = 0; i < n; i++) {
        x[i] = randoms(EG_FLOAT64, shapes[i]);
        v[i] = doubles(x[i]);
        x[i] = laid_out(x[i], i % 4);
        term[i] = p;
        for (int d = 0; d < shapes[i].rank; d++) size[(int)*p++] = shapes[i].dims[d];
        p++;
    }
    int64_t total = 1, results = 1;
    char letters[32];
    int count = 0;
    for (const char *q = out; *q; q++) { letters[count++] = *q; results *= size[(int)*q]; }
    for (int l = 'a'; l <= 'z'; l++) if (size[l] && !strchr(out, l)) letters[count++] = (char)l;
    for (int i = 0; i < count; i++) total *= size[(int)letters[i]];
    double want[512] = { 0 };
    for (int64_t k = 0; k < total; k++) {
        int64_t rest = k, at = 0;
        double product = 1;
        for (int i = count; i-- > 0;) {
            value[(int)letters[i]] = rest % size[(int)letters[i]];
            rest /= size[(int)letters[i]];
        }
        for (int i = 0; i < n; i++) {
            int64_t offset = 0;
            for (int d = 0; d < shapes[i].rank; d++) offset = offset * shapes[i].dims[d] + value[(int)term[i][d]];
            product *= v[i][offset];
        }
        for (const char *q = out; *q; q++) at = at * size[(int)*q] + value[(int)*q];
        want[at] += product;
    }
    eg_tensor *y = eg_einsum(equation, x, n);
    CHECK_VALUES(y, 1e-12, want, results);
    if (test_fails) printf("    einsum %s\n", equation);
}
TEST(einsum_values) {
    const eg_shape a = EG_SHAPE(2, 3), b = EG_SHAPE(3, 4), c = EG_SHAPE(4, 5), t = EG_SHAPE(2, 3, 4), v3 = EG_SHAPE(3),
                   q = EG_SHAPE(3, 3), cube = EG_SHAPE(3, 3, 3), four = EG_SHAPE(2, 3, 2, 4);
#define EINSUM(equation, ...) \
    do { const eg_shape s[] = { __VA_ARGS__ }; check_einsum(equation, (int)(sizeof s / sizeof *s), s); } while (0)
    EINSUM("ij->ij", a);
    EINSUM("ij->ji", a);
    EINSUM("ij->i", a);
    EINSUM("ij->", a);
    EINSUM("ii->i", q);
    EINSUM("ii->", q);
    EINSUM("iii->i", cube);
    EINSUM("iij->ji", cube);
    EINSUM("iji->j", cube);
    EINSUM("abac->bc", four);
    EINSUM("abac->cba", four);
    EINSUM("ij,jk->ik", a, b);
    EINSUM("ij,jk->ki", a, b);
    EINSUM("ij,jk->ijk", a, b);
    EINSUM("ij,jk->j", a, b);
    EINSUM("ij,jk->", a, b);
    EINSUM("ij,jk,kl->il", a, b, c);
    EINSUM("ij,jk,kl->lji", a, b, c);
    EINSUM("ij,ij->ij", a, a);
    EINSUM("ij,ij->i", a, a);
    EINSUM("ij,ij->", a, a);
    EINSUM("i,j->ij", v3, v3);
    EINSUM("i,i->", v3, v3);
    EINSUM("i,j,k->kij", v3, v3, v3);
    EINSUM("bij,bik->bjk", t, t);
    EINSUM("bij,bkj->bik", t, t);
    EINSUM("bij,b->j", t, EG_SHAPE(2));
    EINSUM("ijk,j->ik", t, v3);
    EINSUM("ii,ij->j", q, q);
    EINSUM("ij,kj->ik", q, q);
    EINSUM("ab,cd->dbca", EG_SHAPE(2, 2), EG_SHAPE(3, 2));
    EINSUM("abcd,cb->da", four, EG_SHAPE(2, 3));
    EINSUM("bhqd,bhkd->bhqk", EG_SHAPE(2, 2, 3, 4), EG_SHAPE(2, 2, 5, 4));
    EINSUM("i,ij,j->", EG_SHAPE(2), a, v3);
    EINSUM("ij,ik,il->jkl", a, a, a);
    eg_tensor *x = counting(EG_FLOAT32, EG_SHAPE(2, 3)), *y = counting(EG_FLOAT32, EG_SHAPE(3, 2));
    CHECK_SAME(eg_einsum("ij,jk", EG_TENSORS(x, y)), eg_matmul(x, y), 0);                      // without an arrow
    CHECK_SAME(eg_einsum("ba", EG_TENSORS(x)), eg_transpose(x), 0);                            // letters in order
    CHECK_SAME(eg_einsum(" ij , jk -> ik ", EG_TENSORS(x, y)), eg_matmul(x, y), 0);
    CHECK_SAME(eg_einsum("...j,j...->...", EG_TENSORS(x, eg_ones(EG_FLOAT32, EG_SHAPE(3)))),
               eg_reduce_sum(x, .axes = EG_AXES(1)), 0);
    CHECK_SAME(eg_einsum("...->...", EG_TENSORS(x)), x, 0);
    CHECK_SAME(eg_einsum("i...->...", EG_TENSORS(x)), eg_reduce_sum(x, .axes = EG_AXES(0)), 0);
    CHECK_TENSOR(eg_einsum("ij,jk->ik", EG_TENSORS(eg_cast(x, EG_INT64), eg_cast(y, EG_INT64))), 0, 10, 13, 28, 40);
    CHECK_SHAPE(eg_einsum("ij,jk->ik", EG_TENSORS(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 0)),
                                                  eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3)))), 2, 3);
    CHECK_TENSOR(eg_einsum(",->", EG_TENSORS(eg_scalar(2), eg_scalar(3))), 0, 6);
}

// ---- reductions
// -------------------------------------------------------------------------------------------------------

typedef enum reduction { SUM, MEAN, MAX, MIN, PROD, LOGSUMEXP, VARIANCE, STD, NORM1, NORM2, NORM_MAX,
                         REDUCTIONS } reduction;
static eg_tensor *reduce(reduction what, eg_tensor *x, eg_axes axes, bool keep) {
    switch (what) {
    case SUM: return eg_reduce_sum(x, .axes = axes, .keepdims = keep);
    case MEAN: return eg_reduce_mean(x, .axes = axes, .keepdims = keep);
    case MAX: return eg_reduce_max(x, .axes = axes, .keepdims = keep);
    case MIN: return eg_reduce_min(x, .axes = axes, .keepdims = keep);
    case PROD: return eg_reduce_prod(x, .axes = axes, .keepdims = keep);
    case LOGSUMEXP: return eg_reduce_logsumexp(x, .axes = axes, .keepdims = keep);
    case VARIANCE: return eg_reduce_variance(x, .axes = axes, .keepdims = keep);
    case STD: return eg_reduce_std(x, .axes = axes, .keepdims = keep);
    case NORM1: return eg_norm(x, .ord = 1, .axes = axes, .keepdims = keep);
    case NORM2: return eg_norm(x, .axes = axes, .keepdims = keep);
    default: return eg_norm(x, .ord = INFINITY, .axes = axes, .keepdims = keep);
    }
}
static double reduced(reduction what, const double *v, int n, eg_dtype dtype) {
    double sum = 0, product = 1, most = -INFINITY, least = INFINITY, ones = 0, squares = 0, largest = 0, exps = 0,
           around = 0;
    int64_t whole = 1;
    for (int i = 0; i < n; i++) {
        sum += v[i], product *= v[i], ones += fabs(v[i]), squares += v[i] * v[i], exps += exp(v[i]);
        most = fmax(most, v[i]), least = fmin(least, v[i]), largest = fmax(largest, fabs(v[i]));
        if (dtype > EG_FLOAT64) whole = (int64_t)((uint64_t)whole * (uint64_t)(int64_t)v[i]);
    }
    for (int i = 0; i < n; i++) around += (v[i] - sum / n) * (v[i] - sum / n) / n;
    bool integer = dtype > EG_FLOAT64;
    switch (what) {
    case SUM: return integer ? (double)wrapped(dtype, (int64_t)sum) : sum;
    case MEAN: return integer ? trunc(sum / n) : sum / n;
    case MAX: return most;
    case MIN: return least;
    case PROD: return integer ? (double)wrapped(dtype, whole) : product;
    case LOGSUMEXP: return log(exps);
    case VARIANCE: return around;
    case STD: return sqrt(around);
    case NORM1: return ones;
    case NORM2: return sqrt(squares);
    default: return largest;
    }
}
TEST(reductions_over_every_subset_of_axes) {
    enum { D0 = 3, D1 = 4, D2 = 2, D3 = 5, N = D0 * D1 * D2 * D3 };
    const int64_t dims[] = { D0, D1, D2, D3 };
    for (int t = 0; t <= EG_UINT8; t++)
        for (unsigned mask = 0; mask < 16; mask++)
            for (int how = 0; how < 4 && !test_fails; how++) {
                EG_SCOPE;
                eg_tensor *x = randoms((eg_dtype)t, EG_SHAPE(D0, D1, D2, D3)), *seen = laid_out(x, how);
                const double *v = doubles(x);
                eg_axes axes = { 0, 0, { 0 } };
                for (int a = 0; a < 4; a++) if (mask >> a & 1) axes.axes[axes.count++] = a % 2 ? a : a - 4;
                bool over[4];
                for (int a = 0; a < 4; a++) over[a] = mask == 0 || (mask >> a & 1);
                for (int what = 0; what < REDUCTIONS; what++) {
                    if (t > EG_FLOAT64 && (what == LOGSUMEXP || what == VARIANCE || what == STD || what == NORM2))
                        continue;
                    if (t == EG_UINT8 && what >= NORM1) continue;
                    double want[N];
                    int results = 0;
                    for (int64_t at = 0; at < N; at++) {  // each first element of a group, then the group
                        int64_t index[4], rest = at;
                        bool first = true;
                        for (int a = 4; a-- > 0;) {
                            index[a] = rest % dims[a];
                            rest /= dims[a];
                            first = first && (!over[a] || index[a] == 0);
                        }
                        if (!first) continue;
                        double group[N];
                        int n = 0;
                        for (int64_t other = 0; other < N; other++) {
                            int64_t r = other;
                            bool in = true;
                            for (int a = 4; a-- > 0;) { in = in && (over[a] || r % dims[a] == index[a]); r /= dims[a]; }
                            if (in) group[n++] = v[other];
                        }
                        want[results++] = reduced((reduction)what, group, n, (eg_dtype)t);
                    }
                    for (int keep = 0; keep < 2; keep++) {
                        eg_tensor *y = reduce((reduction)what, seen, axes, keep);
                        CHECK_DTYPE(y, (eg_dtype)t);
                        CHECK_INT(eg_rank(y), keep ? 4 : mask ? 4 - axes.count : 0);
                        CHECK_VALUES(y, t == EG_FLOAT32 ? 1e-5 : t == EG_FLOAT64 ? 1e-12 : 0, want, results);
                    }
                    if (test_fails) {
                        printf("    reduction %d of %s, mask %u, layout %d\n", what, eg_dtype_name((eg_dtype)t), mask,
                               how);
                        return;
                    }
                }
            }
}
TEST(reductions_of_long_rows) {
    for (int64_t n = 1; n < 2000; n = n * 3 + 1)
        for (int t = 0; t <= EG_UINT8; t++) {
            EG_SCOPE;
            eg_tensor *x = randoms((eg_dtype)t, EG_SHAPE(n));
            eg_tensor *wide = eg_reshape(eg_repeat(eg_expand_dims(x, 1), 150, 1), EG_SHAPE(n, 150));
            for (int what = SUM; what <= MIN; what++) {
                double want = reduced((reduction)what, doubles(x), (int)n, (eg_dtype)t);
                CHECK_NEAR(eg_item(reduce((reduction)what, x, EG_AXES(0), false)), want,
                           t == EG_FLOAT32 ? 1e-6 : 1e-13);
                CHECK_NEAR(eg_item(eg_index(reduce((reduction)what, wide, EG_AXES(0), false), 149)), want,
                           t == EG_FLOAT32 ? 1e-6 : 1e-13);
            }
        }
}
TEST(all_and_any) {
    eg_tensor *x = eg_constant_of(EG_BOOL, EG_SHAPE(2, 3), 1, 0, 1, 1, 1, 1);
    for (int how = 0; how < 4; how++) {
        eg_tensor *v = laid_out(x, how);
        CHECK_TENSOR(eg_reduce_all(v, .axes = EG_AXES(1)), 0, 0, 1);
        CHECK_TENSOR(eg_reduce_all(v, .axes = EG_AXES(0)), 0, 1, 0, 1);
        CHECK_TENSOR(eg_reduce_any(eg_logical_not(v), .axes = EG_AXES(1), .keepdims = true), 0, 1, 0);
        CHECK_TENSOR(eg_reduce_any(eg_logical_not(v), .axes = EG_AXES(0)), 0, 0, 1, 0);
        CHECK_TENSOR(eg_reduce_all(v), 0, 0);
        CHECK_TENSOR(eg_reduce_any(v), 0, 1);
    }
}

// ---- along one axis
// ---------------------------------------------------------------------------------------------------

TEST(cumsum_values) {
    for (int t = 0; t <= EG_UINT8; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int option = 0; option < 16 && !test_fails; option++) {
                EG_SCOPE;
                bool exclusive = option & 1, reverse = option & 2;
                eg_tensor *x = randoms((eg_dtype)t, EG_SHAPE(3, 4, 130));
                const double *v = doubles(x);
                const int64_t dims[] = { 3, 4, 130 }, strides[] = { 520, 130, 1 };
                double *want = (double *)malloc(1560 * sizeof *want);
                for (int64_t i = 0; i < 1560; i++) {
                    int64_t at = i / strides[axis] % dims[axis];
                    want[i] = 0;
                    for (int64_t k = 0; k < dims[axis]; k++)
                        if (reverse ? k > at || (k == at && !exclusive) : k < at || (k == at && !exclusive))
                            want[i] += v[i + (k - at) * strides[axis]];
                    if (t == EG_UINT8) want[i] = (double)wrapped(EG_UINT8, (int64_t)want[i]);
                }
                CHECK_VALUES(eg_cumsum(laid_out(x, option / 4), .axis = axis - (option & 1) * 3, .exclusive = exclusive,
                                       .reverse = reverse), t == EG_FLOAT32 ? 2e-6 : 1e-13, want, 1560);
                free(want);
            }
}
static int before(double a, double b, bool descending) {                     // must a stand before b?
    if (isnan(a)) return 0;
    return isnan(b) || (descending ? a > b : a < b);
}
TEST(sort_is_stable_and_puts_nan_last) {
    const int64_t lengths[] = { 1, 2, 15, 16, 17, 33, 100, 257 };
    for (int t = 0; t <= EG_UINT8; t++)
        for (int l = 0; l < 8; l++)
            for (int option = 0; option < 8 && !test_fails; option++) {
                EG_SCOPE;
                bool descending = option & 1;
                int64_t n = lengths[l];
                double v[257], want[257];
                int64_t order[257];
                for (int64_t i = 0; i < n; i++) {
                    v[i] = (double)random_int(0, 9);
                    if (t < EG_INT32 && i % 11 == 3) v[i] = NAN;
                    if (t < EG_INT32 && i % 13 == 5) v[i] = i % 2 ? INFINITY : -INFINITY;
                    int64_t to = i;
                    for (; to > 0 && before(v[i], v[order[to - 1]], descending); to--) order[to] = order[to - 1];
                    order[to] = i;
                }
                eg_tensor *x = laid_out(eg_constant_values((eg_dtype)t, EG_SHAPE(n), v, n), option / 2);
                for (int64_t i = 0; i < n; i++) want[i] = (double)order[i];
                CHECK_VALUES(eg_argsort(x, .descending = descending), 0, want, n);
                CHECK_DTYPE(eg_argsort(x), EG_INT64);
                for (int64_t i = 0; i < n; i++) want[i] = v[order[i]];
                CHECK_VALUES(eg_sort(x, .descending = descending), 0, want, n);
                CHECK_DTYPE(eg_sort(x), (eg_dtype)t);
                eg_tensor *where, *top = eg_top_k(x, n / 2, &where);
                if (!descending) continue;
                CHECK_VALUES(top, 0, want, n / 2);
                for (int64_t i = 0; i < n; i++) want[i] = (double)order[i];
                CHECK_VALUES(where, 0, want, n / 2);
            }
}
TEST(sort_along_other_axes) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 3), 3, 1, 2, 0, 5, 1);
    CHECK_TENSOR(eg_sort(x, .axis = EG_ZERO), 0, 0, 1, 1, 3, 5, 2);
    CHECK_TENSOR(eg_sort(x, .axis = -2, .descending = true), 0, 3, 5, 2, 0, 1, 1);
    CHECK_TENSOR(eg_sort(x), 0, 1, 2, 3, 0, 1, 5);
    CHECK_TENSOR(eg_argsort(x, .axis = EG_ZERO), 0, 1, 0, 1, 0, 1, 0);
    CHECK_TENSOR(eg_top_k(x, 2, NULL), 0, 3, 2, 5, 1);
    CHECK_SHAPE(eg_top_k(x, 0, NULL), 2, 0);
    CHECK_SHAPE(eg_sort(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3))), 0, 3);
    CHECK_SHAPE(eg_sort(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 0))), 3, 0);
}
TEST(argmax_takes_the_first) {
    for (int t = 0; t <= EG_UINT8; t++)
        for (int how = 0; how < 4; how++) {
            EG_SCOPE;
            eg_tensor *x = laid_out(eg_constant_of((eg_dtype)t, EG_SHAPE(2, 3), 3, 7, 7, 5, 1, 1), how);
            CHECK_TENSOR(eg_argmax(x, .axis = 1), 0, 1, 0);
            CHECK_TENSOR(eg_argmin(x, .axis = -1, .keepdims = true), 0, 0, 1);
            CHECK_TENSOR(eg_argmax(x), 0, 1, 0, 0);
            CHECK_TENSOR(eg_argmin(x, .axis = EG_ZERO), 0, 0, 1, 1);
            CHECK_DTYPE(eg_argmin(x), EG_INT64);
        }
    CHECK_TENSOR(eg_argmax(eg_constant(EG_SHAPE(4), 1, NAN, 5, NAN)), 0, 1);
}
TEST(softmax_values) {
    for (int t = 0; t < 2; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int how = 0; how < 4; how++) {
                EG_SCOPE;
                eg_tensor *x = randoms((eg_dtype)t, EG_SHAPE(3, 4, 5));
                const double *v = doubles(x);
                const int64_t dims[] = { 3, 4, 5 }, strides[] = { 20, 5, 1 };
                double want[60], logs[60];
                for (int64_t i = 0; i < 60; i++) {
                    int64_t first = i - i / strides[axis] % dims[axis] * strides[axis];
                    double sum = 0;
                    for (int64_t k = 0; k < dims[axis]; k++) sum += exp(v[first + k * strides[axis]]);
                    want[i] = exp(v[i]) / sum;
                    logs[i] = v[i] - log(sum);
                }
                int given = axis == 0 && how % 2 ? EG_ZERO : axis - 3;
                CHECK_VALUES(eg_softmax(laid_out(x, how), .axis = given), t ? 1e-14 : 1e-6, want, 60);
                CHECK_VALUES(eg_log_softmax(laid_out(x, how), .axis = given), t ? 1e-14 : 2e-6, logs, 60);
            }
}

// ---- picking
// ----------------------------------------------------------------------------------------------------------

TEST(gather_values) {
    const eg_dtype index_dtypes[] = { EG_INT32, EG_INT64 };
    for (int t = 0; t < 6; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int how = 0; how < 8; how++) {
                EG_SCOPE;
                eg_tensor *x = eg_cast(randoms(EG_UINT8, EG_SHAPE(3, 4, 5)), (eg_dtype)t);
                const double *v = doubles(x);
                const double picks[] = { 2, 0, 1, 1, 2, 0 };
                eg_tensor *index = laid_out(eg_constant_values(index_dtypes[how / 4], EG_SHAPE(2, 3), picks, 6),
                                            3 - how % 4);
                double want[120];
                int n = 0;
                const int64_t dims[] = { 3, 4, 5 }, strides[] = { 20, 5, 1 };
                int64_t outer = 60 / strides[axis] / dims[axis];
                for (int64_t o = 0; o < outer; o++)
                    for (int p = 0; p < 6; p++)
                        for (int64_t i = 0; i < strides[axis]; i++)
                            want[n++] = v[(o * dims[axis] + (int64_t)picks[p]) * strides[axis] + i];
                eg_tensor *y = eg_gather(laid_out(x, how % 4), index, .axis = axis - 3 * (how & 1));
                CHECK_INT(eg_rank(y), 4);
                CHECK_VALUES(y, 0, want, n);
            }
    eg_tensor *x = counting(EG_FLOAT32, EG_SHAPE(2, 3));
    CHECK_TENSOR(eg_gather(x, 1), 0, 3, 4, 5);
    CHECK_TENSOR(eg_gather(x, 2, .axis = 1), 0, 2, 5);
    CHECK_SHAPE(eg_gather(x, 1), 3);
    CHECK_SHAPE(eg_gather(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 0)), eg_constant_of(EG_INT32, EG_SHAPE(2), 0, 2)), 2, 0);
}
TEST(gather_nd_values) {
    eg_tensor *x = counting(EG_INT32, EG_SHAPE(2, 3, 2));
    for (int how = 0; how < 4; how++) {
        eg_tensor *v = laid_out(x, how);
        CHECK_TENSOR(eg_gather_nd(v, eg_constant_of(EG_INT32, EG_SHAPE(2, 1), 1, 0)), 0, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3,
                     4, 5);
        CHECK_TENSOR(eg_gather_nd(v, eg_constant_of(EG_INT64, EG_SHAPE(2, 2), 1, 2, 0, 1)), 0, 10, 11, 2, 3);
        CHECK_TENSOR(eg_gather_nd(v, eg_constant_of(EG_INT32, EG_SHAPE(2, 3), 1, 2, 0, 0, 1, 1)), 0, 10, 3);
        CHECK_TENSOR(eg_gather_nd(v, eg_constant_of(EG_INT32, EG_SHAPE(3), 1, 2, 1)), 0, 11);
        CHECK_SHAPE(eg_gather_nd(v, eg_zeros(EG_INT32, EG_SHAPE(2, 0))), 2, 2, 3, 2);
        CHECK_SHAPE(eg_gather_nd(v, eg_zeros(EG_INT32, EG_SHAPE(0, 2))), 0, 2);
        CHECK_TENSOR(eg_take_along_axis(v, eg_argsort(v, .axis = 1, .descending = true), 1), 0, 4, 5, 2, 3, 0, 1, 10,
                     11, 8, 9, 6, 7);
    }
}
TEST(scatter_values) {
    for (int t = 0; t <= EG_UINT8; t++) {
        EG_SCOPE;
        eg_dtype d = (eg_dtype)t;
        eg_tensor *updates = eg_constant_of(d, EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6),
                  *index = eg_constant_of(EG_INT32, EG_SHAPE(3, 1), 2, 0, 2);
        for (int how = 0; how < 4; how++) {
            CHECK_TENSOR(eg_scatter_nd(index, laid_out(updates, how), EG_SHAPE(3, 2)), 0, 3, 4, 0, 0, 6, 8);
            CHECK_TENSOR(eg_segment_sum(laid_out(updates, how), eg_constant_of(EG_INT64, EG_SHAPE(3), 1, 1, 3), 4), 0,
                         0, 0, 4, 6, 0, 0, 5, 6);
            CHECK_TENSOR(eg_tensor_scatter_add(laid_out(eg_ones(d, EG_SHAPE(3, 2)), how), index, updates), 0, 4, 5, 1,
                         1, 7, 9);
        }
        CHECK_TENSOR(eg_scatter_nd(eg_constant_of(EG_INT64, EG_SHAPE(2, 2), 0, 1, 1, 0),
                                   eg_constant_of(d, EG_SHAPE(2), 8, 9), EG_SHAPE(2, 2)), 0, 0, 8, 9, 0);
        CHECK_DTYPE(eg_segment_sum(updates, eg_constant_of(EG_INT64, EG_SHAPE(3), 1, 1, 3), 4), d);
    }
    CHECK_TENSOR(eg_segment_sum(eg_zeros(EG_FLOAT32, EG_SHAPE(0)), eg_zeros(EG_INT32, EG_SHAPE(0)), 2), 0, 0, 0);
    CHECK_TENSOR(eg_scatter_nd(eg_zeros(EG_INT32, EG_SHAPE(0, 1)), eg_zeros(EG_FLOAT32, EG_SHAPE(0)), EG_SHAPE(2)), 0,
                 0, 0);
}
// Few updates for many rows: what lies before, between and after them is 0 whatever the memory held, also after a row
// near the end came first.
TEST(scatter_leaves_zeros_between_far_updates) {
    enum { ROWS = 9000, MOST = 4 };
    const int64_t lists[][MOST] = { { 8999, 1, 4000, 1 }, { 0, 0, 0, 0 }, { 2, 3000, 6000, 8998 },
                                    { 6000, 5999, 0, 7 } };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (int64_t inner = 1; inner <= 3; inner += 2)
            for (int t = 0; t <= EG_UINT8; t++) {
                EG_SCOPE;
                double want[ROWS * 3] = { 0 };
                for (int i = 0; i < 3; i++) { EG_SCOPE; eg_full((eg_dtype)t, EG_SHAPE(ROWS, inner), 7); }
                eg_tensor *index = eg_from_data(EG_INT64, EG_SHAPE(MOST), lists[k]),
                          *updates = eg_cast(eg_reshape(eg_range(EG_INT32, 1, 1 + MOST * (double)inner, 1),
                                                        EG_SHAPE(MOST, inner)), (eg_dtype)t);
                for (int i = 0; i < MOST; i++)
                    for (int64_t j = 0; j < inner; j++)
                        want[lists[k][i] * inner + j] += (double)(i * inner + j + 1);
                CHECK_VALUES(eg_segment_sum(updates, index, ROWS), 0, want, ROWS * inner);
            }
}
TEST(one_hot_values) {
    eg_tensor *i = eg_constant_of(EG_INT32, EG_SHAPE(3), 2, 0, -1);
    CHECK_TENSOR(eg_one_hot(i, 3), 0, 0, 0, 1, 1, 0, 0, 0, 0, 0);
    CHECK_TENSOR(eg_one_hot(i, 2, .axis = EG_ZERO), 0, 0, 1, 0, 0, 0, 0);
    CHECK_TENSOR(eg_one_hot(i, 2, .on_value = 5, .off_value = -1, .dtype = EG_INT32), 0, -1, -1, 5, -1, -1, -1);
    CHECK_TENSOR(eg_one_hot(i, 2, .on_value = EG_ZERO, .off_value = 1), 0, 1, 1, 0, 1, 1, 1);
    CHECK_DTYPE(eg_one_hot(i, 2, .dtype = EG_BOOL), EG_BOOL);
    CHECK_TENSOR(eg_one_hot(1, 3), 0, 0, 1, 0);
    CHECK_SHAPE(eg_one_hot(eg_constant_of(EG_INT64, EG_SHAPE(2, 2), 0, 1, 2, 3), 4, .axis = 1), 2, 4, 2);
    CHECK_TENSOR(eg_one_hot(eg_constant_of(EG_INT64, EG_SHAPE(1, 2), 1, 0), 2, .axis = 1), 0, 0, 1, 1, 0);
    CHECK_SHAPE(eg_one_hot(i, 0), 3, 0);
}

// ---- convolution and pooling
// ------------------------------------------------------------------------------------------

typedef struct window { int64_t out, before; } window;
static window window_of(int64_t n, int64_t k, int64_t stride, bool same) {
    if (!same) return (window){ (n - k) / stride + 1, 0 };
    int64_t out = (n + stride - 1) / stride, pad = (out - 1) * stride + k - n;
    return (window){ out, pad > 0 ? pad / 2 : 0 };
}
// y, or where `back` is given the sums over y of g times the derivative: with respect to x (transposed) or the filter.
typedef struct conv_case { int64_t n, h, w, c, kh, kw, oc, sh, sw, dh, dw, groups; bool same; } conv_case;
static void naive_conv(const conv_case *k, const double *x, const double *f, const double *g, double *y, double *dx,
                       double *df, window v, window u) {
    int64_t cg = k->c / k->groups, og = k->oc / k->groups;
    for (int64_t n = 0; n < k->n; n++)
        for (int64_t i = 0; i < v.out; i++)
            for (int64_t j = 0; j < u.out; j++)
                for (int64_t o = 0; o < k->oc; o++) {
                    int64_t at = ((n * v.out + i) * u.out + j) * k->oc + o;
                    if (y) y[at] = 0;
                    for (int64_t a = 0; a < k->kh; a++)
                        for (int64_t b = 0; b < k->kw; b++) {
                            int64_t r = i * k->sh - v.before + a * k->dh, s = j * k->sw - u.before + b * k->dw;
                            if (r < 0 || r >= k->h || s < 0 || s >= k->w) continue;
                            for (int64_t c = 0; c < cg; c++) {
                                int64_t xi = ((n * k->h + r) * k->w + s) * k->c + o / og * cg + c,
                                        fi = ((a * k->kw + b) * cg + c) * k->oc + o;
                                if (y) y[at] += x[xi] * f[fi];
                                if (dx) dx[xi] += g[at] * f[fi];
                                if (df) df[fi] += g[at] * x[xi];
                            }
                        }
                }
}
static void check_conv(eg_dtype dtype, const conv_case *k, int how) {
    EG_SCOPE;
    int64_t kh = (k->kh - 1) * k->dh + 1, kw = (k->kw - 1) * k->dw + 1;
    if (!k->same && (kh > k->h || kw > k->w)) return;
    window v = window_of(k->h, kh, k->sh, k->same), u = window_of(k->w, kw, k->sw, k->same);
    eg_tensor *x = randoms(dtype, EG_SHAPE(k->n, k->h, k->w, k->c)),
              *f = randoms(dtype, EG_SHAPE(k->kh, k->kw, k->c / k->groups, k->oc)),
              *g = randoms(dtype, EG_SHAPE(k->n, v.out, u.out, k->oc));
    int64_t nx = eg_size(x), nf = eg_size(f), ny = eg_size(g);
    double *y = (double *)calloc((size_t)(nx + nf + ny + 1), sizeof *y), *dx = y + ny, *df = dx + nx;
    naive_conv(k, doubles(x), doubles(f), doubles(g), y, dx, df, v, u);
    eg_conv_options o = { 0 };
    o.strides[0] = k->sh; o.strides[1] = k->sw;
    o.dilations[0] = k->dh; o.dilations[1] = k->dw;
    o.groups = k->groups;
    o.padding = k->same ? EG_SAME : EG_VALID;
    double tolerance = dtype == EG_FLOAT32 ? 1e-4 : 1e-12;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, f);
    eg_tensor *got = (eg_conv2d)(laid_out(x, how), laid_out(f, how), o), *xs[] = { x, f }, *grads[2];
    REQUIRE(got);
    CHECK_SHAPE(got, k->n, v.out, u.out, k->oc);
    CHECK_VALUES(got, tolerance, y, ny);
    CHECK(eg_tape_gradients_from(tape, &got, 1, &g, xs, 2, grads));
    CHECK_VALUES(grads[0], tolerance, dx, nx);
    CHECK_VALUES(grads[1], tolerance, df, nf);
    // The transposed convolution is the gradient with respect to x, where the output has that size.
    if ((k->same ? v.out * k->sh == k->h && u.out * k->sw == k->w : (v.out - 1) * k->sh + kh == k->h &&
         (u.out - 1) * k->sw + kw == k->w))
        CHECK_VALUES((eg_conv2d_transpose)(laid_out(g, how), f, o), tolerance, dx, nx);
    if (k->groups == k->c && k->c > 1) {
        o.groups = 0;
        eg_tensor *deep = eg_reshape(f, EG_SHAPE(k->kh, k->kw, k->c, k->oc / k->c));
        CHECK_VALUES((eg_depthwise_conv2d)(laid_out(x, how), deep, o), tolerance, y, ny);
    }
    if (test_fails)
        printf(
            "    %s x (%lld, %lld, %lld, %lld), filter (%lld, %lld) to %lld, strides %lld %lld, dilations %lld %lld, "
            "groups %lld, %s, layout %d\n", eg_dtype_name(dtype), (long long)k->n, (long long)k->h, (long long)k->w,
            (long long)k->c, (long long)k->kh, (long long)k->kw, (long long)k->oc, (long long)k->sh, (long long)k->sw,
            (long long)k->dh, (long long)k->dw, (long long)k->groups, k->same ? "SAME" : "VALID", how);
    free(y);
}
TEST(conv2d_values) {
    // groups, channels in, out
    const int64_t groups[][3] = { { 1, 1, 1 }, { 1, 3, 2 }, { 1, 4, 5 }, { 2, 4, 6 }, { 3, 3, 3 }, { 4, 4, 8 },
                                  { 1, 8, 16 } };
    int turn = 0;
    for (int64_t stride = 1; stride <= 3; stride++)
        for (int64_t dilation = 1; dilation <= 2; dilation++)
            for (int64_t size = 1; size <= 3; size++)
                for (int s = 0; s < 7 * 2 && !test_fails; s++, turn++) {
                    conv_case k = { 1 + turn % 2, 4 + turn % 4, 5 + turn % 3, groups[s / 2][1], size,
                                    1 + (size + turn) % 3, groups[s / 2][2],
                                    stride, 1 + (stride + turn / 5) % 3, dilation, 1 + turn % 2, groups[s / 2][0],
                                    s % 2 };
                    check_conv(turn % 3 ? EG_FLOAT32 : EG_FLOAT64, &k, turn % 4);
                }
    const conv_case large = { 2, 17, 19, 8, 3, 3, 33, 1, 1, 1, 1, 1, true },
                    wide = { 1, 12, 40, 4, 5, 7, 6, 2, 1, 1, 1, 1, false };
    check_conv(EG_FLOAT32, &large, 0);
    check_conv(EG_FLOAT32, &wide, 0);
    // Lines that no output reads, and lines whose taps all lie in the padding, of so many channels that four are done.
    const conv_case unread = { 1, 7, 20, 16, 1, 3, 16, 3, 1, 1, 1, 16, true },
                    outside = { 1, 1, 20, 16, 2, 3, 16, 1, 1, 2, 1, 16, true };
    check_conv(EG_FLOAT32, &unread, 0);
    check_conv(EG_FLOAT32, &outside, 0);
    const conv_case no_channels = { 1, 4, 4, 0, 3, 3, 2, 1, 1, 1, 1, 1, true },
                    no_filters = { 1, 4, 4, 2, 3, 3, 0, 1, 1, 1, 1, 1, true },
                    none = { 0, 4, 4, 2, 3, 3, 2, 1, 1, 1, 1, 1, false };
    check_conv(EG_FLOAT32, &no_channels, 0);
    check_conv(EG_FLOAT32, &no_filters, 0);
    check_conv(EG_FLOAT32, &none, 0);
}
TEST(conv1d_is_conv2d_of_height_one) {
    eg_tensor *x = randoms(EG_FLOAT64, EG_SHAPE(2, 9, 3)), *f = randoms(EG_FLOAT64, EG_SHAPE(3, 3, 4)),
              *x4 = eg_expand_dims(x, 1), *f4 = eg_expand_dims(f, 0);
    for (int s = 1; s <= 3; s++)
        for (int same = 0; same < 2; same++) {
            CHECK_SAME(eg_conv1d(x, f, .strides = { s }, .padding = (eg_padding)same),
                       eg_squeeze(eg_conv2d(x4, f4, .strides = { 1, s }, .padding = (eg_padding)same),
                                  .axes = EG_AXES(1)), 0);
            CHECK_SAME(eg_conv1d(x, f, .dilations = { s }, .padding = (eg_padding)same),
                       eg_squeeze(eg_conv2d(x4, f4, .dilations = { 1, s }, .padding = (eg_padding)same),
                                  .axes = EG_AXES(1)), 0);
            eg_tensor *t = eg_transpose(f, .perm = EG_AXES(0, 2, 1)), *t4 = eg_expand_dims(t, 0);
            CHECK_SAME(eg_conv1d_transpose(x, t, .strides = { s }, .padding = (eg_padding)same),
                       eg_squeeze(eg_conv2d_transpose(x4, t4, .strides = { 1, s }, .padding = (eg_padding)same),
                                  .axes = EG_AXES(1)), 0);
            CHECK_SAME(eg_max_pool1d(x, .size = { 3 }, .strides = { s }, .padding = (eg_padding)same),
                       eg_squeeze(eg_max_pool2d(x4, .size = { 1, 3 }, .strides = { 1, s }, .padding = (eg_padding)same),
                                  .axes = EG_AXES(1)), 0);
            CHECK_SAME(eg_avg_pool1d(x, .size = { 3 }, .strides = { s }, .padding = (eg_padding)same),
                       eg_squeeze(eg_avg_pool2d(x4, .size = { 1, 3 }, .strides = { 1, s }, .padding = (eg_padding)same),
                                  .axes = EG_AXES(1)), 0);
        }
}
// The gradient of TensorFlow 2.21's tf.nn.conv2d of (1, 3, 3, 6) by (2, 2, 3, 4), which is in 2 groups, along its
// input. (Its conv2d_transpose takes none.)
TEST(conv2d_transpose_in_groups) {
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, 16, 1), EG_SHAPE(1, 2, 2, 4)),
              *f = eg_reshape(eg_range(EG_FLOAT32, 0, 48, 1), EG_SHAPE(2, 2, 3, 4));
    eg_tensor *y = eg_conv2d_transpose(x, f, .groups = 2);
    CHECK_SHAPE(y, 1, 3, 3, 6);                                                  // 2 groups of filter's 3 channels
    CHECK_TENSOR(y, 0, 1, 5, 9, 13, 33, 53, 18, 58, 98, 106, 178, 250, 113, 149, 185, 189, 241, 293, 34, 106, 178, 186,
                 290, 394, 484, 692, 900, 916, 1188, 1460, 642, 778, 914, 922, 1090, 1258, 417, 485, 553, 557, 641, 725,
                 1234, 1402, 1570, 1578, 1778, 1978, 913, 1013, 1113, 1117, 1233, 1349);
    CHECK_ERROR(eg_conv2d_transpose(x, f, .groups = 3), EG_ERROR_SHAPE,
                "a filter (KH, KW, O / groups, C), C a multiple of the groups");
}
TEST(conv2d_transpose_output_padding) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 2, 1)), *f = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2, 1, 1));
    CHECK_SHAPE(eg_conv2d_transpose(x, f, .strides = { 3 }), 1, 5, 5, 1);
    CHECK_SHAPE(eg_conv2d_transpose(x, f, .strides = { 3 }, .output_padding = { 1, 2 }), 1, 6, 7, 1);
    CHECK_SHAPE(eg_conv2d_transpose(x, f, .strides = { 3 }, .padding = EG_SAME), 1, 6, 6, 1);
    // A convolution of as many rows, 4 to 6 of them, would have 2 again: each of the possible ones.
    for (int64_t more = 1; more <= 3; more++) {
        eg_tensor *y = eg_conv2d_transpose(x, f, .strides = { 3 }, .padding = EG_SAME,
                                           .output_padding = { more, more });
        CHECK_SHAPE(y, 1, 3 + more, 3 + more, 1);
        CHECK_SHAPE(eg_conv2d(y, f, .strides = { 3 }, .padding = EG_SAME), 1, 2, 2, 1);
    }
    eg_tensor *odd = eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 1, 1));
    CHECK_SHAPE(eg_conv2d_transpose(x, odd, .strides = { 2 }, .padding = EG_SAME, .output_padding = { EG_ZERO, 1 }), 1,
                3, 4, 1);
    CHECK_SHAPE(eg_conv2d_transpose(x, odd, .strides = { 4 }, .output_padding = { EG_ZERO, 3 }), 1, 7, 10, 1);
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_conv2d_transpose(x, f, .strides = { 3 }, .output_padding = { 1, 2 }))), 16, 0);
}
TEST(pool_values) {
    int turn = 0;
    for (int64_t size = 1; size <= 3; size++)
        for (int64_t stride = 1; stride <= 4; stride++)
            for (int option = 0; option < 16 && !test_fails; option++, turn++) {
                EG_SCOPE;
                bool same = option & 1;
                eg_dtype dtype = option & 2 ? EG_FLOAT64 : EG_FLOAT32;
                int64_t n = 2, h = 4 + turn % 3, w = 4 + turn % 2, c = 3, kw = 1 + (size + turn) % 3;
                eg_tensor *x = randoms(dtype, EG_SHAPE(n, h, w, c));
                const double *d = doubles(x);
                window v = window_of(h, size, stride, same), u = window_of(w, kw, stride, same);
                double most[512], mean[512];
                int at = 0;
                for (int64_t b = 0; b < n; b++)
                    for (int64_t i = 0; i < v.out; i++)
                        for (int64_t j = 0; j < u.out; j++)
                            for (int64_t k = 0; k < c; k++, at++) {
                                double sum = 0;
                                int count = 0;
                                most[at] = -INFINITY;
                                for (int64_t r = i * stride - v.before; r < i * stride - v.before + size; r++)
                                    for (int64_t s = j * stride - u.before; s < j * stride - u.before + kw; s++) {
                                        if (r < 0 || r >= h || s < 0 || s >= w) continue;
                                        double value = d[((b * h + r) * w + s) * c + k];
                                        sum += value, count++, most[at] = fmax(most[at], value);
                                    }
                                mean[at] = sum / count;
                            }
                eg_padding padding = same ? EG_SAME : EG_VALID;
                eg_tensor *seen = laid_out(x, option / 4);
                CHECK_VALUES(eg_max_pool2d(seen, .size = { size, kw }, .strides = { stride }, .padding = padding), 0,
                             most, at);
                CHECK_VALUES(eg_avg_pool2d(seen, .size = { size, kw }, .strides = { stride }, .padding = padding),
                             dtype == EG_FLOAT32 ? 1e-6 : 1e-14, mean, at);
            }
    CHECK_TENSOR(eg_max_pool2d(eg_constant(EG_SHAPE(1, 2, 2, 1), 1, NAN, 2, 3)), 0, NAN);
    CHECK_SHAPE(eg_max_pool2d(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 4, 4, 1))), 0, 2, 2, 1);
    CHECK_SHAPE(eg_avg_pool2d(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 4, 4, 0))), 2, 2, 2, 0);
}
// Half-pixel centres: output i looks at (i + 1/2) n / m - 1/2, clamped to the border.
TEST(resize_values) {
    const int64_t heights[] = { 1, 2, 3, 4, 7, 9 };
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++) {
            EG_SCOPE;
            int64_t h = heights[a], w = 5, to_h = heights[b], to_w = 3 + b;
            eg_tensor *x = randoms(EG_FLOAT64, EG_SHAPE(2, h, w, 2));
            const double *v = doubles(x);
            double linear[512], nearest[512];
            int n = 0;
            for (int64_t k = 0; k < 2; k++)
                for (int64_t i = 0; i < to_h; i++)
                    for (int64_t j = 0; j < to_w; j++)
                        for (int64_t c = 0; c < 2; c++, n++) {
                            double y = ((double)i + 0.5) * (double)h / (double)to_h - 0.5,
                                   z = ((double)j + 0.5) * (double)w / (double)to_w - 0.5;
                            y = fmin(fmax(y, 0), (double)(h - 1)), z = fmin(fmax(z, 0), (double)(w - 1));
                            int64_t r = (int64_t)y, s = (int64_t)z, r1 = r + 1 < h ? r + 1 : r,
                                    s1 = s + 1 < w ? s + 1 : s;
                            double p = y - (double)r, q = z - (double)s;
#define AT(r, s) v[((k * h + (r)) * w + (s)) * 2 + c]
                            linear[n] = (1 - p) * ((1 - q) * AT(r, s) + q * AT(r, s1)) + p *
                                        ((1 - q) * AT(r1, s) + q * AT(r1, s1));
                            int64_t rn = (int64_t)(((double)i + 0.5) * (double)h / (double)to_h),
                                    sn = (int64_t)(((double)j + 0.5) * (double)w / (double)to_w);
                            nearest[n] = AT(rn, sn);
                        }
            CHECK_VALUES(eg_resize(laid_out(x, b % 4), to_h, to_w), 1e-13, linear, n);
            CHECK_VALUES(eg_resize(laid_out(x, a % 4), to_h, to_w, .method = EG_NEAREST), 0, nearest, n);
        }
}
