// What a call may be written with: operands of every type, lists of every length. tests/checks/check_calls.sh compiles
// this file with every warning on, and shows what the compiler refuses.
#include "test.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"             // gcc: a literal of a struct is not constant in ISO C
static const eg_shape at_file_scope = EG_SHAPE(2, 1 + 2);
static const struct { eg_shape shape; eg_axes axes; eg_pads pads; } rows[] = {
    { EG_SHAPE(4), EG_AXES(0), EG_PADS(1, 2) },
    { EG_SCALAR, EG_AXES(-1, 0), EG_PADS(0, 0, 3, 4) },
};
#pragma GCC diagnostic pop

typedef struct bits {
    unsigned three : 3; int five : 5; unsigned long long forty : 40, all : 64; bool flag : 1; const unsigned fixed : 4;
} bits;
enum small { SMALL_ONE = 1, SMALL_TWO };
enum negative { MINUS_ONE = -1 };

TEST(numbers_of_every_type_are_operands) {
    eg_tensor *const zero = eg_zeros(EG_INT64, EG_SCALAR), *half = eg_zeros(EG_FLOAT64, EG_SCALAR);
    bits b = {5, -7, 1ULL << 39, 1ULL << 62, true, 9};
    enum small e = SMALL_TWO;
    enum negative n = MINUS_ONE;
    const char letter = 'a';
    const signed char low = -100;
    const unsigned char high = 200;
    const short s = -30000;
    const unsigned short u = 60000;
    const unsigned wide = 4000000000u;
    const long l = -5;
    const size_t size = 6;
    const long long ll = 1LL << 50;
    const unsigned long long ull = 1ULL << 51;
    const bool yes = true;
    const float f = 0.25f;
    const double d = 0.125;
    const long double ld = 0.5L;
    CHECK_TENSOR(eg_add(zero, b.three), 0, 5);
    CHECK_TENSOR(eg_add(b.five, zero), 0, -7);
    CHECK_TENSOR(eg_add(zero, b.forty), 0, 549755813888.0);
    CHECK_TENSOR(eg_add(zero, b.all), 0, 4611686018427387904.0);
    CHECK_TENSOR(eg_add(zero, b.flag), 0, 1);
    CHECK_TENSOR(eg_add(zero, b.fixed), 0, 9);
    CHECK_TENSOR(eg_add(zero, e), 0, 2);
    CHECK_TENSOR(eg_add(zero, SMALL_ONE), 0, 1);
    CHECK_TENSOR(eg_add(n, zero), 0, -1);
    CHECK_TENSOR(eg_add(zero, letter), 0, 97);
    CHECK_TENSOR(eg_add(zero, 'b'), 0, 98);
    CHECK_TENSOR(eg_add(zero, low), 0, -100);
    CHECK_TENSOR(eg_add(zero, high), 0, 200);
    CHECK_TENSOR(eg_add(zero, s), 0, -30000);
    CHECK_TENSOR(eg_add(zero, u), 0, 60000);
    CHECK_TENSOR(eg_add(zero, wide), 0, 4000000000.0);
    CHECK_TENSOR(eg_add(zero, l), 0, -5);
    CHECK_TENSOR(eg_add(zero, size), 0, 6);
    CHECK_TENSOR(eg_add(zero, ll), 0, 1125899906842624.0);
    CHECK_TENSOR(eg_add(zero, ull), 0, 2251799813685248.0);
    CHECK_TENSOR(eg_add(zero, yes), 0, 1);
    CHECK_TENSOR(eg_add(half, f), 0, 0.25);
    CHECK_TENSOR(eg_add(half, d), 0, 0.125);
    CHECK_TENSOR(eg_add(half, ld), 0, 0.5);
    CHECK_TENSOR(eg_add(half, b.three ? 1 : 2.5), 0, 1);
    CHECK_ERROR(eg_add(zero, f), EG_ERROR_DTYPE, "eg_add");
    CHECK_ERROR(eg_add(zero, UINT64_MAX), EG_ERROR_DTYPE, "1.84467e+19");
}

static int calls;
static eg_tensor *counted(eg_tensor *x) { calls++; return x; }
TEST(operands_are_read_once) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2);
    void *user = x;
    eg_tensor *const *in = &x;
    int i = 0;
    double values[2] = {3, 4};
    CHECK_TENSOR(eg_add(counted(x), eg_mul(counted(x), values[i++])), 0, 4, 8);
    CHECK(calls == 2 && i == 1);
    CHECK_TENSOR(eg_add(user, in[0]), 0, 2, 4);
    CHECK_ERROR(eg_add(x, NULL), EG_ERROR_NULL, "eg_add");
    CHECK_ERROR(eg_add(eg_raise(EG_ERROR_ASSERT, "mine"), x), EG_ERROR_ASSERT, "mine");
    CHECK_TENSOR(eg_add(x, (i++, 1)), 0, 2, 3);
    CHECK_INT(i, 2);
    CHECK_TENSOR(eg_reduce_sum(counted(x), .axes = EG_AXES(i - 2)), 0, 3);
    CHECK_TENSOR(eg_from_data(EG_FLOAT64, EG_SHAPE(i++), values), 0, 3, 4);
    float into[2];
    CHECK(eg_read_into(counted(x), into, i - 1) && into[1] == 2);
    CHECK(calls == 4 && i == 3);
}

TEST(lists_of_every_length) {
    CHECK_INT(at_file_scope.rank, 2);
    CHECK_INT(at_file_scope.dims[1], 3);
    CHECK_INT(rows[0].shape.rank, 1);
    CHECK_INT(rows[1].shape.rank, 0);
    CHECK_INT(rows[1].axes.count, 2);
    CHECK_INT(rows[1].axes.axes[0], -1);
    CHECK_INT(rows[1].pads.count, 4);
    CHECK_INT(rows[1].pads.pads[3], 4);
    int k = 1;
    eg_shape eight = EG_SHAPE(1, 2, 3, 4, 5, 6, 7, k++);
    CHECK(eight.rank == 8 && eight.dims[0] == 1 && eight.dims[7] == 1 && k == 2);
    CHECK_INT(EG_SHAPE(k > 1 ? 5 : 6).dims[0], 5);
    CHECK_INT(EG_SHAPE(1, 1 << 3 | 1).dims[1], 9);
    eg_tensor *x = eg_constant(EG_SHAPE(1), 1);
#define EIGHT(a) a, a, a, a, a, a, a, a
    CHECK_SHAPE(eg_concat(EG_TENSORS(x), 0), 1);
    CHECK_SHAPE(eg_concat(EG_TENSORS(x, eg_add(x, 1), x), 0), 3);
    CHECK_SHAPE(eg_concat(EG_TENSORS(EIGHT(EIGHT(x))), 0), 64);
    CHECK_ERROR(eg_concat(EG_TENSORS(x, NULL, x), 0), EG_ERROR_NULL, "eg_concat");
    eg_tensor *long_one = eg_constant(EG_SHAPE(9, 8, 2), EIGHT(EIGHT(1)), EIGHT(EIGHT(2)), EIGHT(3), EIGHT(NAN));
    CHECK_SHAPE(long_one, 9, 8, 2);
    CHECK(isnan(eg_item(eg_index(eg_reshape(long_one, EG_SHAPE(-1)), -1))) &&
          eg_item(eg_index(eg_reshape(long_one, EG_SHAPE(-1)), 135)) == 3);
    CHECK_ERROR(eg_constant(EG_SHAPE(3), 1, 2), EG_ERROR_SHAPE, "needs 3 values, but 2 are given");
    CHECK_ERROR(eg_constant(EG_SHAPE(1), 1, 2), EG_ERROR_SHAPE, "needs 1 value, but 2 are given");
}

TEST(containers_of_every_length) {
    eg_layer *given = eg_layer_flatten(), *empty = eg_sequential(), *one = eg_sequential(given),
             *nested = eg_sequential(eg_sequential(eg_sequential(eg_layer_dense(3))));
    eg_layer *many = eg_sequential(EIGHT(EIGHT(eg_layer_flatten())));
    CHECK_INT(eg_layer_layers(empty, NULL, 0), 0);
    CHECK_INT(eg_layer_layers(one, NULL, 0), 1);
    CHECK_INT(eg_layer_layers(nested, NULL, 0), 1);
    CHECK_INT(eg_layer_layers(many, NULL, 0), 64);
    CHECK_SHAPE(eg_call(nested, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 4))), 2, 3);
    CHECK_ERROR(eg_sequential(NULL), EG_ERROR_NULL, "the layer is NULL");
    eg_layer_release(empty);
    eg_layer_release(one);
    eg_layer_release(nested);
    eg_layer_release(many);
    eg_dataset *d = eg_dataset_zip(eg_dataset_zip(eg_dataset_range(0, 3, 1), eg_dataset_range(3, 6, 1)),
                                   eg_dataset_range(6, 9, 1));
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK(eg_iterator_next(it, out) == EG_NEXT);
    CHECK(eg_item_int(out[0]) == 0 && eg_item_int(out[1]) == 3 && eg_item_int(out[2]) == 6);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
// Copies of transposed, strided and reversed operands, element by element, around the sizes of vectors and tiles.
static int64_t moved_wrongly(eg_tensor *x, eg_tensor *y, int64_t m, int64_t n, int64_t first, int64_t row,
                             int64_t step) {
    const int64_t size = eg_dtype_size(eg_dtype_of(x));
    const char *from = (const char *)eg_data(x), *to = (const char *)eg_data(y);
    int64_t wrong = from && to ? 0 : 1;
    for (int64_t i = 0; i < m && !wrong; i++)
        for (int64_t j = 0; j < n; j++)
            wrong += memcmp(to + (i * n + j) * size, from + (first + i * row + j * step) * size, (size_t)size) != 0;
    return wrong;
}
TEST(operands_are_moved) {
    static const eg_dtype dtypes[] = { EG_UINT8, EG_FLOAT16, EG_INT32, EG_FLOAT64 };
    static const int64_t sizes[] = { 1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 50 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static uint64_t data[51 * 51 * 3];
    for (int i = 0; i < 51 * 51 * 3; i++) data[i] = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < SIZES; i++)
            for (int j = 0; j < SIZES; j++) {
                EG_SCOPE;
                const int64_t m = sizes[i], n = sizes[j];
                eg_tensor *x = eg_from_data(dtypes[t], EG_SHAPE(m, n), (void *)data);
                CHECK_INT(moved_wrongly(x, eg_reshape(eg_transpose(x), EG_SHAPE(n, m)), n, m, 0, 1, n), 0);
                CHECK_INT(moved_wrongly(x, eg_reverse(x, EG_AXES(1)), m, n, n - 1, n, -1), 0);
                eg_tensor *cube = eg_from_data(dtypes[t], EG_SHAPE(m, n, 3), (void *)data);
                eg_tensor *turned = eg_reshape(eg_transpose(cube, .perm = EG_AXES(0, 2, 1)), EG_SHAPE(m, 3 * n));
                for (int64_t k = 0; k < m; k++) {
                    eg_tensor *plane = eg_slice(cube, EG_SHAPE(k, 0, 0), EG_SHAPE(1, n, 3)),
                              *y = eg_slice(turned, EG_SHAPE(k, 0), EG_SHAPE(1, 3 * n));
                    CHECK_INT(moved_wrongly(plane, y, 3, n, 0, 1, 3), 0);
                }
                for (int64_t step = 2; step < 4; step++) {
                    eg_tensor *apart = eg_strided_slice(x, EG_SHAPE(0, 0), EG_SHAPE(EG_END, EG_END), EG_SHAPE(1, step));
                    eg_tensor *y = eg_reshape(apart, EG_SHAPE(-1));
                    CHECK_INT(moved_wrongly(x, y, m, (n + step - 1) / step, 0, n, step), 0);
                }
            }
}
