// Sorting and choosing against plain loops, bit by bit: eg_sort, eg_argsort and eg_top_k of every dtype, from rows that
// are sorted by counting to those that are sorted by their digits, in both orders, along both axes, watched by a tape
// and not.
#include "test.h"

// The stand-in for CUDA runs the threads of a launch one by one, and tests with many launches make fewer there.
enum { on_stand_in = test_on_cuda && test_share > 1 };
static uint64_t state = 88172645463325252u;
static uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
// Kinds of content. Bits: any pattern of the dtype, so of floats also NaN of every kind, infinities and denormals.
enum { FEW, BITS, RISING, FALLING, EQUAL, ZEROS, KINDS };
static void fill(void *data, eg_dtype dtype, int64_t n, int kind) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = kind == FEW ? (int64_t)(random_bits() % 7)
                          : kind == RISING ? i
                          : kind == FALLING ? n - i
                          : kind == EQUAL ? 3
                          : (int64_t)(random_bits() % 3) - 1;
        uint64_t bits = random_bits();
        double d = (double)v;
        if (kind == ZEROS && v == 0) d = i % 2 ? 0.0 : -0.0;
        if (kind == FEW && v == 6) d = NAN;
        // the least and the greatest integer
        if (kind == BITS && i % 5 == 0) bits = i % 2 ? 0x8000000080000000u : 0x7fffffff7fffffffu;
        switch (dtype) {
            case EG_FLOAT32: {
                float f = (float)d;
                if (kind == BITS) memcpy((float *)data + i, &bits, 4); else ((float *)data)[i] = f;
                break;
            }
            case EG_FLOAT64:
                if (kind == BITS) memcpy((double *)data + i, &bits, 8); else ((double *)data)[i] = d;
                break;
            case EG_INT32: ((int32_t *)data)[i] = kind == BITS ? (int32_t)(uint32_t)bits : (int32_t)v; break;
            case EG_INT64: ((int64_t *)data)[i] = kind == BITS ? (int64_t)bits : v; break;
            default: ((uint8_t *)data)[i] = kind == BITS ? (uint8_t)bits : (uint8_t)(v & 255); break;
        }
    }
}
// Whether a must stand before b: NaN last in both orders, -0 and 0 equal.
#define BEFORE(T) \
    { \
        const T x = ((const T *)data)[a], y = ((const T *)data)[b]; \
        if (x != x) return false; \
        return y != y || (descending ? x > y : x < y); \
    }
static bool before(const void *data, eg_dtype dtype, int64_t a, int64_t b, bool descending) {
    switch (dtype) {
        case EG_FLOAT32: BEFORE(float)
        case EG_FLOAT64: BEFORE(double)
        case EG_INT32: BEFORE(int32_t)
        case EG_INT64: BEFORE(int64_t)
        default: BEFORE(uint8_t)
    }
}
// The order of n elements, by merging.
static void oracle(const void *data, eg_dtype dtype, int64_t n, bool descending, int64_t *order, int64_t *space) {
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            int64_t a = start, middle = start + width < n ? start + width : n, b = middle,
                    end = start + 2 * width < n ? start + 2 * width : n;
            for (int64_t k = start; k < end; k++)
                space[k] = b < end && (a >= middle || before(data, dtype, order[b], order[a], descending)) ? order[b++]
                           : order[a++];
        }
        memcpy(order, space, (size_t)n * sizeof *order);
    }
}
enum { MOST = 70000 };
static int64_t order[MOST], space[MOST];
static unsigned char data[MOST * 8], want[MOST * 8], got[MOST * 8];

// Whether x's elements are n * size bytes at `bytes`.
static bool same_bytes(eg_tensor *x, const void *bytes, int64_t count, int64_t size) {
    if (!x || eg_size(x) != count) return false;
    eg_tensor *flat = eg_reshape(x, EG_SHAPE(count));
    const void *p = count ? eg_data(flat) : NULL;
    if (count && !p) return false;
    if (count) memcpy(got, p, (size_t)(count * size));
    return count == 0 || memcmp(got, bytes, (size_t)(count * size)) == 0;
}
static void check_row(eg_dtype dtype, int64_t n, int kind, int64_t k) {
    const int64_t size = eg_dtype_size(dtype);
    fill(data, dtype, n, kind);
    eg_tensor *x = eg_from_data(dtype, EG_SHAPE(n), (void *)data);
    for (int descending = 0; descending < 2; descending++) {
        EG_SCOPE;
        oracle(data, dtype, n, descending, order, space);
        for (int64_t i = 0; i < n; i++) memcpy(want + i * size, data + order[i] * size, (size_t)size);
        const bool sorted = same_bytes(eg_sort(x, .descending = descending), want, n, size);
        const bool ordered = same_bytes(eg_argsort(x, .descending = descending), order, n, 8);
        bool chosen = true;
        if (descending) {
            eg_tensor *where = NULL, *top = eg_top_k(x, k, &where);
            chosen = same_bytes(top, want, k, size) && same_bytes(where, order, k, 8) &&
                     same_bytes(eg_top_k(x, k, NULL), want, k, size);
        }
        if (!sorted || !ordered || !chosen)
            printf("dtype %d, n %d, kind %d, k %d, %s: sort %d argsort %d top_k %d\n", (int)dtype, (int)n, kind, (int)k,
                   descending ? "descending" : "ascending", sorted, ordered, chosen);
        CHECK(sorted && ordered && chosen);
    }
}
TEST(sorting_of_short_rows) {
    for (int t = EG_FLOAT32; t <= EG_UINT8; t++)
        for (int64_t n = 1; n <= 130 && !test_fails; n += test_share > 1 ? 7 : 1)
            for (int kind = 0; kind < KINDS; kind++) {
                EG_SCOPE;
                check_row((eg_dtype)t, n, kind, (int64_t)(random_bits() % (uint64_t)(n + 1)));
            }
}
TEST(sorting_of_long_rows) {
    const int64_t lengths[] = { 255, 256, 257, 511, 512, 513, 999, 1000, 1001, 4099, MOST };
    for (int t = EG_FLOAT32; t <= EG_UINT8; t++)
        for (int l = 0; l < (test_share > 1 ? 10 : 11) && !test_fails; l++)
            for (int kind = 0; kind < KINDS; kind++) {
                EG_SCOPE;
                const int64_t n = lengths[l], ks[] = { 1, 10, n / 5, n / 3, n - 1, n };
                check_row((eg_dtype)t, n, kind, ks[(kind + l) % 6]);
                if (n < 1000) for (int i = 0; i < 6; i++) check_row((eg_dtype)t, n, kind, ks[i]);
            }
}
// Rows of a matrix, its columns, and a view that reads it backwards in every second element; row by row as eg_sort of
// one row.
TEST(sorting_along_both_axes_and_of_views) {
    const int64_t sizes[][2] = { { 3, 10 }, { 60, 7 }, { 5, 128 }, { 4, 300 }, { 130, 129 } };
    for (int t = EG_FLOAT32; t <= EG_UINT8; t++)
        for (int s = 0; s < 5; s++) {
            EG_SCOPE;
            const int64_t rows = sizes[s][0], n = sizes[s][1];
            fill(data, (eg_dtype)t, rows * n, BITS);
            eg_tensor *x = eg_from_data((eg_dtype)t, EG_SHAPE(rows, n), (void *)data), *turned = eg_transpose(x);
            eg_tensor *odd = eg_strided_slice(x, EG_SHAPE(0, EG_END), EG_SHAPE(rows, EG_END), EG_SHAPE(1, -2));
            eg_tensor *sorted = eg_sort(x, .descending = s & 1), *places = eg_argsort(x, .descending = s & 1),
                      *where = NULL, *top = eg_top_k(x, 3, &where);
            CHECK(eg_assert_equal(eg_argsort(turned, .axis = EG_ZERO, .descending = s & 1), eg_transpose(places)));
            CHECK(same_bytes(eg_transpose(eg_sort(turned, .axis = EG_ZERO, .descending = s & 1)), eg_data(sorted),
                             rows * n, eg_dtype_size((eg_dtype)t)));
            for (int64_t r = 0; r < rows; r++) {
                EG_SCOPE;
                eg_tensor *row = eg_index(x, r), *one = NULL, *best = eg_top_k(row, 3, &one), *every = eg_index(odd, r);
                CHECK(same_bytes(eg_index(sorted, r), eg_data(eg_sort(row, .descending = s & 1)), n,
                                 eg_dtype_size((eg_dtype)t)));
                CHECK(eg_assert_equal(eg_index(places, r), eg_argsort(row, .descending = s & 1)));
                CHECK(eg_assert_equal(eg_index(where, r), one));
                CHECK(same_bytes(eg_index(top, r), eg_data(best), 3, eg_dtype_size((eg_dtype)t)));
                CHECK(eg_assert_equal(eg_index(eg_argsort(odd), r),
                                      eg_argsort(eg_reshape(eg_add(eg_cast(every, EG_FLOAT64), 0), EG_SHAPE(-1)))) ||
                      t == EG_INT64);
            }
        }
}
// What a tape sees as ops is the same bits as one launch, and the gradient goes to where the elements came from.
TEST(sorting_watched_by_a_tape) {
    for (int64_t n = 20; n <= 320; n += 100) {
        EG_SCOPE;
        fill(data, EG_FLOAT32, 3 * n, ZEROS);
        eg_tensor *x = eg_from_data(EG_FLOAT32, EG_SHAPE(3, n), (void *)data),
                  *w = eg_reshape(eg_range(EG_FLOAT32, 1, (double)(3 * n + 1), 1), EG_SHAPE(3, n));
        eg_tensor *plain = eg_sort(x, .descending = true), *places = eg_argsort(x, .descending = true), *where = NULL,
                  *seen_where = NULL, *top = eg_top_k(x, 4, &where);
        eg_tape *tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, x);
        eg_tensor *y = eg_sort(x, .descending = true), *best = eg_top_k(x, 4, &seen_where),
                  *loss = eg_reduce_sum(eg_mul(y, w)), *sum = eg_reduce_sum(best);
        CHECK(same_bytes(y, eg_data(plain), 3 * n, 4) && same_bytes(best, eg_data(top), 12, 4) &&
              eg_assert_equal(where, seen_where));
        eg_tensor *dx = eg_tape_gradient(tape, loss, x), *dt = eg_tape_gradient(tape, sum, x);
        CHECK(eg_assert_equal(eg_take_along_axis(dx, places, 1), w));
        CHECK(eg_item(eg_reduce_sum(dt)) == 12 && eg_item(eg_reduce_sum(eg_take_along_axis(dt, where, 1))) == 12);
    }
}
// The first greatest (least) along the middle axis of (outer, n, inner); a NaN comes before all.
#define FIRST(T) { \
        const T *x = (const T *)(const void *)data + o * n * inner + j; \
        int64_t best = 0; \
        for (int64_t i = 1; i < n; i++) { \
            const T v = x[i * inner], top = x[best * inner]; \
            if ((v != v && top == top) || (least ? v < top : v > top)) best = i; \
        } \
        return best; \
    }
static int64_t first_of(eg_dtype dtype, int64_t n, int64_t inner, int64_t o, int64_t j, bool least) {
    switch (dtype) {
        case EG_FLOAT32: FIRST(float)
        case EG_FLOAT64: FIRST(double)
        case EG_INT32: FIRST(int32_t)
        case EG_INT64: FIRST(int64_t)
        default: FIRST(uint8_t)
    }
}
static void check_argmax(eg_dtype dtype, int64_t outer, int64_t n, int64_t inner, int kind) {
    EG_SCOPE;
    fill(data, dtype, outer * n * inner, kind);
    eg_tensor *x = eg_from_data(dtype, EG_SHAPE(outer, n, inner), (void *)data);
    for (int least = 0; least < 2; least++) {
        for (int64_t o = 0; o < outer; o++)
            for (int64_t j = 0; j < inner; j++) order[o * inner + j] = first_of(dtype, n, inner, o, j, least);
        const bool right = same_bytes(least ? eg_argmin(x, .axis = 1) : eg_argmax(x, .axis = 1), order, outer * inner,
                                      8);
        if (!right)
            printf("arg%s, dtype %d, (%d, %d, %d), kind %d\n", least ? "min" : "max", (int)dtype, (int)outer, (int)n,
                   (int)inner, kind);
        CHECK(right);
    }
}
TEST(argmax_of_rows_and_columns) {
    const int64_t inners[] = { 1, 2, 15, 16, 17, 33, 255, 256, 257, 300 };
    for (int t = EG_FLOAT32; t <= EG_UINT8; t++)
        for (int kind = 0; kind < KINDS && !test_fails; kind++) {
            for (int64_t n = 1; n <= 130; n += test_share > 1 ? 7 : 1) check_argmax((eg_dtype)t, 3, n, 1, kind);
            for (int64_t n = 999; n <= 1001; n++) {
                check_argmax((eg_dtype)t, 2, n, 1, kind);
                check_argmax((eg_dtype)t, 1, n, 3, kind);
            }
            check_argmax((eg_dtype)t, 1, 20000, 1, kind);
            for (int i = 0; i < 10; i++)
                for (int64_t n = 1; n < 270; n += 63)
                    check_argmax((eg_dtype)t, i % 2 ? 1 : 3 - (n > 60), n > 80 && inners[i] > 250 ? 129 : n, inners[i],
                                 kind);
        }
}
// The place of one NaN, and of the greatest of rising numbers, wherever they stand.
TEST(argmax_at_every_place) {
    static float x[1100];
    const int64_t all = on_stand_in ? 34 : 140;                  // a warp and more; above it, some lengths and places
    for (int64_t n = 1; n <= 1100; n += n < all ? 1 : n < 140 ? 15 : 317)
        for (int64_t at = 0; at < n; at += n < all || test_share == 1 ? 1 : n < 140 ? 5 : 13) {
            EG_SCOPE;
            for (int64_t i = 0; i < n; i++) x[i] = (float)(i % 5) - 2;
            x[at] = 3;
            eg_tensor *high = eg_argmax(eg_from_data(EG_FLOAT32, EG_SHAPE(n), x));
            x[at] = NAN;
            eg_tensor *nan = eg_argmin(eg_from_data(EG_FLOAT32, EG_SHAPE(n), x));
            CHECK(eg_item_int(high) == at && eg_item_int(nan) == at);
        }
}
TEST(all_and_any_of_rows_and_columns) {
    static uint8_t x[3 * 300 * 1030], all[3 * 1030], any[3 * 1030];
    const int64_t sizes[] = { 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 1030 };
    for (int s = 0; s < 18; s++)
        for (int i = 0; i < 19; i += s % 4 + 1)
            for (int kind = 0; kind < 4; kind++) {
                EG_SCOPE;
                const int64_t n = sizes[s], inner = sizes[i], outer = 1 + s % 3;
                for (int64_t k = 0; k < outer * n * inner; k++)
                    x[k] = kind == 0 ? 1 : kind == 1 ? 0 : random_bits() % 256 == 0 ? kind == 2 : kind != 2;
                for (int64_t o = 0; o < outer; o++)
                    for (int64_t j = 0; j < inner; j++) {
                        int64_t set = 0;
                        for (int64_t k = 0; k < n; k++) set += x[(o * n + k) * inner + j] != 0;
                        all[o * inner + j] = set == n;
                        any[o * inner + j] = set > 0;
                    }
                eg_tensor *b = eg_from_data(EG_BOOL, EG_SHAPE(outer, n, inner), (void *)x);
                const bool right = same_bytes(eg_reduce_all(b, .axes = EG_AXES(1)), all, outer * inner, 1) &&
                                   same_bytes(eg_reduce_any(b, .axes = EG_AXES(1)), any, outer * inner, 1);
                if (!right) printf("(%d, %d, %d), kind %d\n", (int)outer, (int)n, (int)inner, kind);
                CHECK(right);
            }
    for (int64_t n = 1; n < 600; n += on_stand_in && n > 34 ? 7 : 1)
        for (int64_t at = 0; at < n; at += 1 + n / 9) {
            EG_SCOPE;
            memset(x, 0, (size_t)n);
            x[at] = 1;
            CHECK(eg_item(eg_reduce_any(eg_from_data(EG_BOOL, EG_SHAPE(n), (void *)x))) == 1);
            memset(x, 1, (size_t)n);
            x[at] = 0;
            CHECK(eg_item(eg_reduce_all(eg_from_data(EG_BOOL, EG_SHAPE(n), (void *)x))) == 0);
        }
}
// A view's shape, and where its elements lie in `data`, in elements.
typedef struct layout { int rank; int64_t dims[4], strides[4], offset; } layout;
static int64_t layout_size(const layout *v) {
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++) n *= v->dims[i];
    return n;
}
// Copies the view's elements to `to` as they come, by one index after another.
static void layout_read(const layout *v, int64_t size, unsigned char *to) {
    int64_t index[4] = { 0 };
    for (int64_t n = layout_size(v); n > 0; n--, to += size) {
        int64_t at = v->offset;
        for (int i = 0; i < v->rank; i++) at += index[i] * v->strides[i];
        memcpy(to, data + at * size, (size_t)size);
        for (int i = v->rank - 1; i >= 0; i--) { if (++index[i] < v->dims[i]) break; index[i] = 0; }
    }
}
// Turns the axes, or takes every step-th element of an axis, forwards or backwards, or repeats an axis of 1: in the
// model and in the view.
static eg_tensor *layout_change(eg_tensor *x, layout *v) {
    const int a = (int)(random_bits() % (uint64_t)v->rank), b = (int)(random_bits() % (uint64_t)v->rank);
    const int what = (int)(random_bits() % 4);
    if (what < 2) {                             // two axes change places
        eg_transpose_options o;
        memset(&o, 0, sizeof o);
        o.perm.count = v->rank;
        for (int i = 0; i < v->rank; i++) o.perm.axes[i] = i == a ? b : i == b ? a : i;
        const int64_t d = v->dims[a], s = v->strides[a];
        v->dims[a] = v->dims[b];
        v->strides[a] = v->strides[b];
        v->dims[b] = d;
        v->strides[b] = s;
        return (eg_transpose)(x, o);
    }
    if (what == 2 && v->dims[a] == 1) {
        eg_shape s = eg_shape_of(x);
        s.dims[a] = v->dims[a] = 3;
        v->strides[a] = 0;
        return eg_broadcast_to(x, s);
    }
    const int64_t step = (int64_t)(random_bits() % 5) - 2;
    if (!step) return x;
    eg_shape begin = { v->rank, { 0 } }, end = begin, steps = begin;
    for (int i = 0; i < v->rank; i++) {
        begin.dims[i] = i == a && step < 0 ? EG_END : 0;
        end.dims[i] = EG_END;
        steps.dims[i] = i == a ? step : 1;
    }
    const int64_t far = step < 0 ? -step : step;
    if (step < 0) v->offset += (v->dims[a] - 1) * v->strides[a];
    v->dims[a] = (v->dims[a] + far - 1) / far;
    v->strides[a] *= step;
    return eg_strided_slice(x, begin, end, steps);
}
TEST(copies_of_any_view) {
    static const eg_dtype dtypes[] = { EG_UINT8, EG_FLOAT16, EG_INT32, EG_INT64 };
    static const int64_t shapes[][4] = { { 40, 33, 1, 1 }, { 17, 16, 1, 1 }, { 300, 2, 1, 1 }, { 2, 300, 1, 1 },
                                         { 3, 17, 19, 1 }, { 5, 1, 40, 3 }, { 2, 16, 3, 18 }, { 7, 4, 1, 64 },
                                         { 1000, 1, 1, 1 }, { 65, 66, 1, 1 } };
    for (int64_t i = 0; i < MOST * 8; i++) data[i] = (unsigned char)(random_bits() & 63);
    for (int round = 0; round < 2000 / test_share && !test_fails; round++) {
        EG_SCOPE;
        const int64_t *dims = shapes[round % 10];
        const eg_dtype dtype = dtypes[round / 10 % 4];
        const int64_t size = eg_dtype_size(dtype);
        layout v = { dims[3] > 1 ? 4 : dims[2] > 1 ? 3 : dims[1] > 1 || round % 20 < 10 ? 2 : 1, { 0 }, { 0 }, 0 };
        eg_shape s = { v.rank, { 0 } };
        int64_t stride = 1;
        for (int i = v.rank - 1; i >= 0; i--) {
            s.dims[i] = v.dims[i] = dims[i];
            v.strides[i] = stride;
            stride *= dims[i];
        }
        eg_tensor *x = eg_from_data(dtype, s, (void *)data);
        for (int i = 0; i < 1 + round % 4; i++) x = layout_change(x, &v);
        const int64_t n = layout_size(&v);
        layout_read(&v, size, want);
        bool right = same_bytes(x, want, n, size);
        // Into every second place of another tensor, and beside one another.
        eg_tensor *both = eg_stack(EG_TENSORS(x, x), v.rank), *beside = eg_concat(EG_TENSORS(x, x), round % v.rank);
        for (int64_t i = n - 1; i >= 0; i--) {
            memmove(want + 2 * i * size, want + i * size, (size_t)size);
            memmove(want + (2 * i + 1) * size, want + 2 * i * size, (size_t)size);
        }
        right = right && same_bytes(both, want, 2 * n, size);
        layout twice = v;
        layout_read(&v, size, want);
        int64_t run = size, groups;
        for (int i = round % v.rank; i < v.rank; i++) run *= v.dims[i];
        groups = n * size / run;
        for (int64_t g = groups - 1; g >= 0; g--) {
            memmove(want + 2 * g * run, want + g * run, (size_t)run);
            memmove(want + (2 * g + 1) * run, want + 2 * g * run, (size_t)run);
        }
        right = right && same_bytes(beside, want, 2 * n, size);
        if (!right)
            printf("round %d: %d axes, %d %d, steps %d %d\n", round, twice.rank, (int)v.dims[0],
                   (int)v.dims[v.rank - 1], (int)v.strides[0], (int)v.strides[v.rank - 1]);
        CHECK(right);
    }
}
// Launched and in ops, as a tape sees them: the same; indices of all dtypes, values that are not 1 and 0, rows that are
// off.
TEST(one_hot_at_once_and_in_ops) {
    static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8, EG_BOOL, EG_FLOAT16 };
    for (int t = 0; t < 7; t++)
        for (int form = 0; form < 4; form++)
            for (int64_t depth = 0; depth < 40; depth = 2 * depth + 1) {
                EG_SCOPE;
                eg_tensor *rows = eg_cast(eg_random_integers(EG_SHAPE(3, 5), form == 2 ? 0 : -1, depth + 2),
                                          form == 0 ? EG_INT64
                                          : form == 2 ? EG_UINT8
                                          : EG_INT32);
                if (form == 3) rows = eg_transpose(rows);
                const double on = form == 1 && t < 5 ? 7 : 0, off = form == 1 && t < 5 ? 2 : 0;
                const int axis = form == 3 ? 1 : 0;
                eg_tensor *once = eg_one_hot(rows, depth, .axis = axis, .dtype = dtypes[t], .on_value = on,
                                             .off_value = off);
                eg_tape_begin();
                eg_tensor *seen = eg_one_hot(rows, depth, .axis = axis, .dtype = dtypes[t], .on_value = on,
                                             .off_value = off);
                CHECK_DTYPE(once, dtypes[t]);
                CHECK(eg_assert_equal(eg_cast(once, EG_FLOAT64), eg_cast(seen, EG_FLOAT64)));
            }
}
// Running sums of each dtype beside plain loops, integers modulo their width.
TEST(cumsum_of_every_dtype) {
    for (int t = EG_FLOAT32; t <= EG_UINT8; t++)
        for (int option = 0; option < 4; option++)
            for (int64_t inner = 1; inner < 140; inner += inner < 3 ? 1 : 63)
                for (int64_t n = 1; n < 20; n += 6) {
                    EG_SCOPE;
                    const bool exclusive = option & 1, reverse = option & 2;
                    const int64_t size = eg_dtype_size((eg_dtype)t);
                    fill(data, (eg_dtype)t, 2 * n * inner, t >= EG_INT32 ? BITS : RISING);
                    for (int64_t o = 0; o < 2; o++)
                        for (int64_t j = 0; j < inner; j++) {
                            uint64_t whole = 0;
                            double sum = 0;
                            for (int64_t i = 0; i < n; i++) {
                                const int64_t at = (o * n + (reverse ? n - 1 - i : i)) * inner + j;
                                if (exclusive && t == EG_FLOAT32) {
                                    const float f = (float)sum;
                                    memcpy(want + at * 4, &f, 4);
                                }
                                if (exclusive && t == EG_FLOAT64) memcpy(want + at * 8, &sum, 8);
                                if (exclusive && t >= EG_INT32) memcpy(want + at * size, &whole, (size_t)size);
                                if (t == EG_FLOAT32) sum += (double)((const float *)(const void *)data)[at];
                                else if (t == EG_FLOAT64) sum += ((const double *)(const void *)data)[at];
                                else { uint64_t v = 0; memcpy(&v, data + at * size, (size_t)size); whole += v; }
                                if (!exclusive && t == EG_FLOAT32) {
                                    const float f = (float)sum;
                                    memcpy(want + at * 4, &f, 4);
                                }
                                if (!exclusive && t == EG_FLOAT64) memcpy(want + at * 8, &sum, 8);
                                if (!exclusive && t >= EG_INT32) memcpy(want + at * size, &whole, (size_t)size);
                            }
                        }
                    eg_tensor *x = eg_from_data((eg_dtype)t, EG_SHAPE(2, n, inner), (void *)data);
                    CHECK(same_bytes(eg_cumsum(x, .axis = 1, .exclusive = exclusive, .reverse = reverse), want,
                                     2 * n * inner, size));
                }
}
