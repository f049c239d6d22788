// Datasets: sources, transformations, iterators, positions. What each pipeline gives was seen in TensorFlow where it
// has one.
#include "test.h"
#include <time.h>

// ---- looking at pipelines ------------------------------------------------------------------------------------------

typedef struct seen { int n; double value[256]; eg_status last; } seen;

// The first component's values, all elements strung together; at most `most` elements. The iterator stays open.
static seen look_on(eg_iterator *it, int most) {
    seen s;
    memset(&s, 0, sizeof s);
    s.last = EG_NEXT;
    for (int i = 0; i < most && s.last == EG_NEXT; i++) {
        EG_SCOPE;
        eg_tensor *out[EG_MAX_COMPONENTS];
        s.last = eg_iterator_next(it, out);
        if (s.last != EG_NEXT) break;
        const double *v = (const double *)eg_data(eg_cast(out[0], EG_FLOAT64));
        for (int64_t k = 0; v && k < eg_size(out[0]) && s.n < 256; k++) s.value[s.n++] = v[k];
    }
    return s;
}
static seen look(eg_dataset *d, int most) {                   // at d, which stays
    eg_iterator *it = eg_iterator_new(d);
    seen s = {0, {0}, EG_FAILED};
    if (!it) return s;
    s = look_on(it, most);
    eg_iterator_release(it);
    return s;
}
static void check_seen(int line, seen s, const double *want, int n, eg_status last) {
    test_int(__FILE__, line, "status at the end", s.last, last);
    test_int(__FILE__, line, "values", s.n, n);
    for (int i = 0; i < n && i < s.n; i++)
        if (s.value[i] != want[i]) { test_near(__FILE__, line, "a value", s.value[i], want[i], 0); break; }
}
// d gives just these, and then ends; it is released.
#define CHECK_GIVES(d, ...)                                                                                           \
    do {                                                                                                              \
        const double want_[] = {__VA_ARGS__};                                                                         \
        eg_dataset *d_ = (d);                                                                                         \
        check_seen(__LINE__, look(d_, 200), want_, (int)(sizeof want_ / sizeof *want_), EG_END_OF_SEQUENCE);          \
        eg_dataset_release(d_);                                                                                       \
    } while (0)
static int64_t count_of(eg_dataset *d) {                      // its cardinality; it is released
    int64_t n = eg_dataset_cardinality(d);
    eg_dataset_release(d);
    return n;
}
static eg_dataset *numbers(int64_t n) { return eg_dataset_range(0, n, 1); }

// ---- sources -------------------------------------------------------------------------------------------------------

TEST(range_counts_up_and_down) {
    CHECK_GIVES(eg_dataset_range(2, 8, 2), 2, 4, 6);
    CHECK_GIVES(eg_dataset_range(2, 9, 2), 2, 4, 6, 8);
    CHECK_GIVES(eg_dataset_range(3, 0, -1), 3, 2, 1);
    CHECK_INT(count_of(eg_dataset_range(3, 3, 1)), 0);
    CHECK_INT(count_of(eg_dataset_range(0, 5, -1)), 0);
    CHECK_INT(count_of(eg_dataset_range(INT64_MAX - 3, INT64_MAX, 2)), 2);
    CHECK_ERROR(eg_dataset_range(0, 3, 0), EG_ERROR_ARGUMENT, "step must not be 0");
    CHECK_ERROR(eg_dataset_range(INT64_MIN, INT64_MAX, 1), EG_ERROR_ARGUMENT, "63 bits");
}

TEST(an_array_with_room_for_the_components_suffices) {
    eg_dataset *d = eg_dataset_from_tensors(eg_constant(EG_SHAPE(2), 1, 2), eg_scalar(7));
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *behind = eg_scalar(1), *out[3] = { behind, behind, behind };
    CHECK(eg_iterator_next(it, out) == EG_NEXT && out[0] != behind && out[1] != behind && out[2] == behind);
    CHECK(eg_iterator_next(it, out) == EG_END_OF_SEQUENCE && !out[0] && !out[1] && out[2] == behind);
    eg_iterator_release(it);
    eg_dataset_release(d);
}

TEST(from_tensors_is_one_element) {
    eg_dataset *d = eg_dataset_from_tensors(eg_constant(EG_SHAPE(2), 1, 2), eg_scalar(7));
    CHECK_INT(eg_dataset_cardinality(d), 1);
    CHECK_INT(eg_dataset_components(d), 2);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[0], 0, 1, 2);
    CHECK_TENSOR(out[1], 0, 7);
    CHECK(out[0] && out[1]);
    CHECK_INT(eg_iterator_next(it, out), EG_END_OF_SEQUENCE);
    CHECK_INT(eg_iterator_next(it, out), EG_END_OF_SEQUENCE);
    CHECK(out[0] == NULL && eg_error() == EG_OK);
    eg_iterator_release(it);
    eg_dataset_release(d);
    CHECK_ERROR(eg_dataset_from_tensors_of(out, 9), EG_ERROR_ARGUMENT, "eg_dataset_from_tensors: 9 components");
}

TEST(slices_are_rows) {
    eg_tensor *x = eg_constant(EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6), *y = eg_constant_of(EG_INT32, EG_SHAPE(3), 7, 8, 9),
              *out[EG_MAX_COMPONENTS];
    eg_dataset *d = eg_dataset_from_slices(eg_transpose(eg_transpose(x)), y);
    eg_iterator *it = eg_iterator_new(d);
    CHECK_INT(eg_dataset_cardinality(d), 3);
    eg_iterator_next(it, out);
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[0], 0, 3, 4);
    CHECK_TENSOR(out[1], 0, 8);
    CHECK_DTYPE(out[1], EG_INT32);
    CHECK_INT(eg_rank(out[1]), 0);
    eg_iterator_release(it);
    eg_dataset_release(d);
    CHECK_GIVES(eg_dataset_from_slices(eg_transpose(x)), 1, 3, 5, 2, 4, 6);
}

TEST(slices_of_different_lengths_name_both) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(3, 2)), *y = eg_zeros(EG_INT32, EG_SHAPE(4));
    CHECK_ERROR(eg_dataset_from_slices(x, y), EG_ERROR_SHAPE, "lengths differ: component 0 is float32 [3, 2]");
    CHECK_ERROR(eg_dataset_from_slices(x, y), EG_ERROR_SHAPE, "component 1 is int32 [4]");
    CHECK_ERROR(eg_dataset_from_slices(x, y), EG_ERROR_SHAPE, "(3 against 4 rows)");
    CHECK_ERROR(eg_dataset_from_slices(eg_scalar(1)), EG_ERROR_SHAPE, "scalar");
    CHECK_ERROR(eg_dataset_from_slices_of(&x, 0), EG_ERROR_ARGUMENT, "0 components");
    CHECK_ERROR(eg_dataset_from_slices(x, NULL), EG_ERROR_NULL, "tensors[1] is NULL");
}

TEST(a_variable_gives_the_values_it_had) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v");
    eg_dataset *d = eg_dataset_from_slices(v);
    eg_assign(v, 9);
    CHECK_GIVES(d, 1, 2);
    eg_release(v);
}

TEST(windows_slide_over_rows) {
    eg_tensor *x = eg_range(EG_INT32, 0, 7, 1);
    CHECK_GIVES(eg_dataset_from_windows(x, 3, 2), 0, 1, 2, 2, 3, 4, 4, 5, 6);
    CHECK_INT(count_of(eg_dataset_from_windows(x, 8, 1)), 0);
    CHECK_INT(count_of(eg_dataset_from_windows(x, 7, 100)), 1);
    CHECK_ERROR(eg_dataset_from_windows(x, 0, 1), EG_ERROR_ARGUMENT, "at least 1");
    CHECK_ERROR(eg_dataset_from_windows(eg_scalar(1), 1, 1), EG_ERROR_SHAPE, "scalar");
}

static eg_status squares(int64_t i, eg_tensor **out, void *user) {
    if (i == *(int *)user) return EG_END_OF_SEQUENCE;
    out[0] = eg_mul(eg_integer(i), eg_scalar((double)i));
    out[1] = eg_integer(i);
    return EG_NEXT;
}
static eg_status breaks_at_2(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    if (i == 2) return EG_FAILED;
    out[0] = eg_scalar(1);
    return EG_NEXT;
}
TEST(generators) {
    int n = 4;
    CHECK_GIVES(eg_dataset_from_generator(squares, &n, 2, NULL), 0, 1, 4, 9);
    CHECK_INT(count_of(eg_dataset_from_generator(squares, &n, 2, NULL)), EG_UNKNOWN);
    CHECK_GIVES(eg_dataset_repeat(eg_dataset_from_generator(squares, &n, 2, NULL), 2), 0, 1, 4, 9, 0, 1, 4, 9);
    eg_dataset *d = eg_dataset_from_generator(breaks_at_2, NULL, 1, NULL);
    CHECK_ERROR(look(d, 9), EG_ERROR_STATE,
                "eg_dataset_from_generator (stage 1 of 1, element 2): the function failed without an error");
    eg_dataset_release(d);
    const eg_spec wrong = {EG_INT32, {0, {0}}};
    d = eg_dataset_from_generator(breaks_at_2, NULL, 1, &wrong);
    CHECK_ERROR(look(d, 9), EG_ERROR_DTYPE, "which was declared int32 []");
    eg_dataset_release(d);
    d = eg_dataset_from_generator(squares, &n, 3, NULL);
    CHECK_ERROR(look(d, 9), EG_ERROR_NULL, "left component 2 of 3 NULL");
    eg_dataset_release(d);
    CHECK_ERROR(eg_dataset_from_generator(NULL, NULL, 1, NULL), EG_ERROR_ARGUMENT, "NULL");
    CHECK_ERROR(eg_dataset_from_generator(squares, &n, 9, NULL), EG_ERROR_ARGUMENT, "9 components");
}

// ---- batches -------------------------------------------------------------------------------------------------------

TEST(range_7_batch_3) {
    eg_dataset *d = eg_dataset_batch(numbers(7), 3);
    CHECK_INT(eg_dataset_cardinality(d), 3);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[0], 0, 0, 1, 2);
    CHECK_SHAPE(out[0], 3);
    CHECK_DTYPE(out[0], EG_INT64);
    CHECK_STR(eg_device_of(out[0]), test_device());
    eg_iterator_next(it, out);
    CHECK_TENSOR(out[0], 0, 3, 4, 5);
    eg_iterator_next(it, out);
    CHECK_TENSOR(out[0], 0, 6);
    CHECK_INT(eg_iterator_next(it, out), EG_END_OF_SEQUENCE);
    eg_iterator_release(it);
    eg_dataset_release(d);
    CHECK_GIVES(eg_dataset_batch(numbers(7), 3, .drop_remainder = true), 0, 1, 2, 3, 4, 5);
    CHECK_INT(count_of(eg_dataset_batch(numbers(7), 3, .drop_remainder = true)), 2);
    CHECK_ERROR(eg_dataset_batch(numbers(7), 0), EG_ERROR_ARGUMENT, "at least 1");
    CHECK_ERROR(eg_dataset_batch(numbers(7), 2, .padding_value = 1), EG_ERROR_ARGUMENT,
                "eg_dataset_batch: has no option .padding_value");
}

static eg_tensor *ragged(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_full(EG_FLOAT32, EG_SHAPE(eg_item_int(in[0]), 2), eg_item(in[0]));
}
TEST(a_ragged_batch_is_an_error_with_both_shapes) {
    eg_dataset *d = eg_dataset_batch(eg_dataset_map(eg_dataset_range(3, 6, 1), ragged, NULL), 2);
    CHECK_ERROR(look(d, 9), EG_ERROR_SHAPE, "eg_dataset_batch (stage 3 of 3, element 0): elements of a batch differ in "
                                            "shape: component 0 is [3, 2] in its first and [4, 2] in its element 1");
    eg_dataset_release(d);
}
TEST(padded_batch_fills_to_the_longest) {
    CHECK_GIVES(eg_dataset_padded_batch(eg_dataset_map(eg_dataset_range(1, 4, 1), ragged, NULL), 2),
                1, 1, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3);
    CHECK_GIVES(eg_dataset_padded_batch(eg_dataset_map(eg_dataset_range(0, 2, 1), ragged, NULL), 2,
                                        .padding_value = -1), -1, -1, 1, 1);
    CHECK_GIVES(eg_dataset_padded_batch(numbers(3), 2), 0, 1, 2);
    eg_dataset *d = eg_dataset_padded_batch(numbers(3), 2, .padding_value = 0.5);
    CHECK_ERROR(look(d, 1), EG_ERROR_DTYPE, "0.5");
    eg_dataset_release(d);
}
TEST(unbatch_gives_the_rows) {
    CHECK_GIVES(eg_dataset_unbatch(eg_dataset_batch(numbers(5), 2)), 0, 1, 2, 3, 4);
    CHECK_GIVES(eg_dataset_batch(eg_dataset_unbatch(eg_dataset_from_slices(eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5,
                                                                                       6))), 2), 1, 2, 3, 4, 5, 6);
    CHECK_INT(count_of(eg_dataset_unbatch(eg_dataset_batch(numbers(6), 2))), 6);
    CHECK_INT(count_of(eg_dataset_unbatch(eg_dataset_batch(numbers(5), 2))), EG_UNKNOWN);
    CHECK_ERROR(eg_dataset_unbatch(numbers(3)), EG_ERROR_SHAPE, "scalar");
    eg_dataset *d = eg_dataset_unbatch(eg_dataset_from_tensors(eg_zeros(EG_FLOAT32, EG_SHAPE(2)),
                                                               eg_zeros(EG_FLOAT32, EG_SHAPE(3))));
    CHECK_ERROR(look(d, 1), EG_ERROR_SHAPE, "0 is [2] and 1 is [3]");
    eg_dataset_release(d);
}

static bool rows_of(eg_tensor *const *in, eg_tensor **out, void *user) {       // as many as the element says
    (void)user;
    out[0] = eg_zeros(EG_FLOAT32, EG_SHAPE(eg_item_int(in[0]), 2));
    return true;
}
static eg_tensor *keeps_all(eg_tensor *const *in, void *user) { (void)in; (void)user; return eg_scalar(1); }
static eg_dataset *no_numbers(eg_tensor *const *in, void *user) {
    (void)in;
    (void)user;
    return numbers(0);
}
TEST(rows_that_never_come_are_not_waited_for) {
    // known before
    eg_dataset *d = eg_dataset_unbatch(eg_dataset_repeat(eg_dataset_from_tensors(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 3))),
                                                         -1));
    CHECK_INT(eg_dataset_cardinality(d), 0);
    CHECK_INT(look(d, 1).last, EG_END_OF_SEQUENCE);
    eg_dataset_release(d);
    d = eg_dataset_unbatch(eg_dataset_filter(eg_dataset_repeat(eg_dataset_map(eg_dataset_range(0, 1, 1), rows_of, NULL),
                                                               -1), keeps_all, NULL));
    CHECK_INT(look(d, 1).last, EG_FAILED);
    CHECK_CONTAINS(eg_error_message(), "eg_dataset_unbatch (stage 5 of 5, element 0): 100000 elements in a row have no "
                                       "rows, and there is no end of them");
    eg_error_clear();
    eg_dataset_release(d);
    d = eg_dataset_interleave(eg_dataset_repeat(numbers(2), -1), no_numbers, NULL);
    CHECK_INT(look(d, 1).last, EG_FAILED);
    CHECK_CONTAINS(eg_error_message(), "100000 elements in a row made empty datasets");
    eg_error_clear();
    eg_dataset_release(d);
    // some come
    d = eg_dataset_unbatch(eg_dataset_map(eg_dataset_take(eg_dataset_repeat(eg_dataset_range(0, 2, 1), -1), 6), rows_of,
                                          NULL));
    CHECK_INT(look(d, 99).n, 6);
    eg_dataset_release(d);
}

// ---- repeat, take, skip, cardinality -------------------------------------------------------------------------------

TEST(batch_then_repeat_is_not_repeat_then_batch) {
    CHECK_GIVES(eg_dataset_repeat(eg_dataset_batch(numbers(3), 2), 2), 0, 1, 2, 0, 1, 2);
    eg_dataset *d = eg_dataset_batch(eg_dataset_repeat(numbers(3), 2), 2);
    eg_iterator *it = eg_iterator_new(d);
    const double want[3][2] = {{0, 1}, {2, 0}, {1, 2}};
    for (int i = 0; i < 3; i++) {
        eg_tensor *out[EG_MAX_COMPONENTS];
        CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
        CHECK_VALUES(out[0], 0, want[i], 2);
    }
    eg_iterator_release(it);
    eg_dataset_release(d);
}
TEST(repeat_0_is_empty_and_repeat_minus_1_endless) {
    eg_dataset *d = eg_dataset_repeat(numbers(3), 0);
    CHECK_INT(look(d, 9).n, 0);
    eg_dataset_release(d);
    d = eg_dataset_repeat(numbers(3), -1);
    seen s = look(d, 100);
    CHECK_INT(s.n, 100);
    CHECK_NEAR(s.value[98], 2, 0);
    eg_dataset_release(d);
    d = eg_dataset_repeat(numbers(0), -1);                    // nothing comes of nothing
    CHECK_INT(look(d, 9).last, EG_END_OF_SEQUENCE);
    eg_dataset_release(d);
    CHECK_ERROR(eg_dataset_repeat(numbers(3), -2), EG_ERROR_ARGUMENT, "-2 is no count");
}
static eg_tensor *is_odd(eg_tensor *const *in, void *user) { (void)user; return eg_mod(in[0], 2); }
TEST(cardinalities) {
    CHECK_INT(count_of(numbers(3)), 3);
    CHECK_INT(count_of(eg_dataset_repeat(numbers(3), -1)), EG_INFINITE);
    CHECK_INT(count_of(eg_dataset_repeat(numbers(3), 4)), 12);
    CHECK_INT(count_of(eg_dataset_repeat(numbers(3), 0)), 0);
    CHECK_INT(count_of(eg_dataset_filter(numbers(3), is_odd, NULL)), EG_UNKNOWN);
    CHECK_INT(count_of(eg_dataset_batch(eg_dataset_repeat(numbers(3), -1), 2)), EG_INFINITE);
    CHECK_INT(count_of(eg_dataset_take(eg_dataset_repeat(numbers(3), -1), 7)), 7);
    CHECK_INT(count_of(eg_dataset_take(numbers(3), 7)), 3);
    CHECK_INT(count_of(eg_dataset_take(numbers(3), -1)), 3);
    CHECK_INT(count_of(eg_dataset_take(eg_dataset_filter(numbers(3), is_odd, NULL), 2)), EG_UNKNOWN);
    CHECK_INT(count_of(eg_dataset_skip(numbers(3), 2)), 1);
    CHECK_INT(count_of(eg_dataset_skip(numbers(3), 9)), 0);
    CHECK_INT(count_of(eg_dataset_skip(numbers(3), -1)), 0);
    CHECK_INT(count_of(eg_dataset_skip(eg_dataset_repeat(numbers(3), -1), 9)), EG_INFINITE);
    CHECK_INT(count_of(eg_dataset_shard(eg_dataset_repeat(numbers(3), -1), 2, 1)), EG_INFINITE);
    CHECK_INT(count_of(eg_dataset_shard(eg_dataset_filter(numbers(3), is_odd, NULL), 2, 1)), EG_UNKNOWN);
    CHECK_INT(count_of(eg_dataset_shard(numbers(INT64_MAX), INT64_MAX, INT64_MAX - 1)), 1);
    CHECK_INT(count_of(eg_dataset_zip(numbers(3), eg_dataset_repeat(numbers(2), -1), numbers(5))), 3);
    CHECK_INT(count_of(eg_dataset_zip(numbers(3), eg_dataset_filter(numbers(2), is_odd, NULL))), EG_UNKNOWN);
    CHECK_INT(count_of(eg_dataset_concatenate(numbers(3), numbers(2))), 5);
    CHECK_INT(count_of(eg_dataset_concatenate(numbers(3), eg_dataset_repeat(numbers(2), -1))), EG_INFINITE);
    CHECK_INT(count_of(eg_dataset_prefetch(eg_dataset_cache(eg_dataset_enumerate(eg_dataset_shuffle(numbers(3), 2))),
                                           1)), 3);
    CHECK_INT(count_of(eg_dataset_repeat(numbers(INT64_MAX), 2)), EG_INFINITE);
}
static eg_tensor *gives_none(eg_tensor *const *in, void *user) { (void)in; (void)user; return eg_scalar(0); }
TEST(take_and_skip) {
    CHECK_GIVES(eg_dataset_take(numbers(9), 3), 0, 1, 2);
    CHECK_GIVES(eg_dataset_skip(numbers(5), 3), 3, 4);
    CHECK_GIVES(eg_dataset_take(eg_dataset_skip(eg_dataset_repeat(numbers(3), -1), 7), 4), 1, 2, 0, 1);
    eg_dataset *d = eg_dataset_skip(numbers(5), 9);
    CHECK_INT(look(d, 9).n, 0);
    eg_dataset_release(d);
    d = eg_dataset_skip(eg_dataset_shuffle(eg_dataset_repeat(eg_dataset_filter(numbers(5), gives_none, NULL), -1), 4),
                        2);
    seen s = look(d, 9);                                      // "endless", and empty
    CHECK_INT(s.n, 0);
    CHECK_INT(s.last, EG_END_OF_SEQUENCE);
    eg_dataset_release(d);
}
// Part index of parts: element i where i % parts == index, as tf.data has it.
TEST(shards) {
    CHECK_GIVES(eg_dataset_shard(numbers(7), 3, 0), 0, 3, 6);
    CHECK_GIVES(eg_dataset_shard(numbers(7), 3, 2), 2, 5);
    CHECK_GIVES(eg_dataset_shard(numbers(2), 1, 0), 0, 1);
    CHECK_GIVES(eg_dataset_repeat(eg_dataset_shard(numbers(5), 2, 1), 2), 1, 3, 1, 3);
    CHECK_GIVES(eg_dataset_take(eg_dataset_shard(eg_dataset_repeat(numbers(3), -1), 2, 1), 4), 1, 0, 2, 1);
    CHECK_GIVES(eg_dataset_shard(eg_dataset_shard(numbers(12), 2, 1), 3, 1), 3, 9);
    CHECK_GIVES(eg_dataset_skip(eg_dataset_shard(numbers(12), 3, 1), 2), 7, 10);
    for (int64_t n = 0; n < 9; n++)
        for (int64_t parts = 1; parts < 11; parts++) {
            int64_t all = 0;
            double sum = 0;
            for (int64_t index = 0; index < parts; index++) {
                eg_dataset *d = eg_dataset_shard(numbers(n), parts, index);
                seen s = look(d, 20);
                CHECK_INT(s.last, EG_END_OF_SEQUENCE);
                CHECK_INT(s.n, eg_dataset_cardinality(d));
                for (int i = 0; i < s.n; i++) { CHECK_INT((int64_t)s.value[i] % parts, index); sum += s.value[i]; }
                all += s.n;
                eg_dataset_release(d);
            }
            CHECK_INT(all, n);
            CHECK_NEAR(sum, (double)(n * (n - 1)) / 2, 0);
        }
    char text[60];
    eg_dataset *d = eg_dataset_shard(eg_dataset_range(0, 9, 1), 4, 2);
    CHECK(eg_dataset_format(d, text, sizeof text) > 0);
    CHECK_CONTAINS(text, " > shard 4 2");
    eg_dataset_release(d);
}

// ---- several into one ----------------------------------------------------------------------------------------------

TEST(zip_and_enumerate) {
    eg_dataset *d = eg_dataset_zip(numbers(3), eg_dataset_enumerate(eg_dataset_range(9, 0, -1)));
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_dataset_components(d), 3);
    eg_iterator_next(it, out);
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[0], 0, 1);
    CHECK_TENSOR(out[1], 0, 1);
    CHECK_TENSOR(out[2], 0, 8);
    eg_iterator_next(it, out);
    CHECK_INT(eg_iterator_next(it, out), EG_END_OF_SEQUENCE);
    eg_iterator_release(it);
    eg_dataset_release(d);
    CHECK_ERROR(eg_dataset_zip(numbers(3), NULL), EG_ERROR_NULL, "datasets[1] is NULL");
    CHECK_ERROR(eg_dataset_zip_of(NULL, 0), EG_ERROR_ARGUMENT, "0 datasets");
}
TEST(concatenate_needs_one_structure) {
    CHECK_GIVES(eg_dataset_concatenate(numbers(2), eg_dataset_range(7, 9, 1)), 0, 1, 7, 8);
    CHECK_ERROR(eg_dataset_concatenate(numbers(2), eg_dataset_from_slices(eg_zeros(EG_FLOAT32, EG_SHAPE(2)))),
                EG_ERROR_DTYPE, "component 0 is int64 [] in one dataset and float32 of any shape in the other");
    CHECK_ERROR(eg_dataset_concatenate(numbers(2), eg_dataset_enumerate(numbers(2))), EG_ERROR_SHAPE,
                "of 1 and of 2 components");
}
static eg_dataset *six_times(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_dataset_repeat(eg_dataset_from_tensors(in[0]), 6);
}
TEST(interleave_takes_turns) {
    CHECK_GIVES(eg_dataset_interleave(eg_dataset_range(1, 6, 1), six_times, NULL, .cycle = 2, .block = 4),
                1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5);
    CHECK_ERROR(eg_dataset_interleave(numbers(2), six_times, NULL, .cycle = -1), EG_ERROR_ARGUMENT, "cycle");
    eg_dataset *d = eg_dataset_interleave(numbers(2), six_times, NULL, .components = 2);
    CHECK_ERROR(look(d, 1), EG_ERROR_SHAPE,
                "eg_dataset_interleave (stage 2 of 2, element 0): elements of 1 and of 2 components");
    eg_dataset_release(d);
}

// ---- map and filter ------------------------------------------------------------------------------------------------

static bool sum_and_product(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_add(in[0], in[1]);
    out[1] = eg_mul(in[0], in[1]);
    ++*(int *)user;
    return true;
}
TEST(map_of_several_components) {
    int calls = 0;
    eg_dataset *d = eg_dataset_map(eg_dataset_enumerate(eg_dataset_range(5, 8, 1)), sum_and_product, &calls);
    eg_iterator *it = eg_iterator_new(d);
    CHECK_INT(calls, 0);                                      // nothing runs before it is asked for
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator_next(it, out);
    eg_iterator_next(it, out);
    eg_iterator_next(it, out);
    CHECK_INT(calls, 3);
    CHECK_TENSOR(out[0], 0, 9);
    CHECK_TENSOR(out[1], 0, 14);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
static eg_tensor *fails_at_17(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_item_int(in[0]) == 17 ? eg_matmul(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)),
                                                eg_zeros(EG_FLOAT32, EG_SHAPE(4, 5))) : in[0];
}
static int told;
static char told_last[1024];
static void tell(eg_error_code code, const char *message, void *user) {
    (void)code, (void)user;
    told++;
    snprintf(told_last, sizeof told_last, "%s", message);
}
TEST(an_error_in_map_says_its_place) {
    for (int threads = 0; threads < 4; threads++)
        for (int ahead = 0; ahead < 2; ahead++) {
            eg_dataset *d = eg_dataset_map(eg_dataset_shuffle(numbers(100), 1), fails_at_17, NULL, .threads = threads);
            d = ahead ? eg_dataset_prefetch(d, 3) : eg_dataset_take(d, 99);
            d = eg_dataset_repeat(d, 2);
            eg_iterator *it = eg_iterator_new(d);
            told = 0;
            eg_set_error_handler(tell, NULL);
            int64_t count = eg_error_count();
            seen s = look_on(it, 100);
            eg_set_error_handler(NULL, NULL);
            CHECK_INT(s.n, 17);                               // what stands before it comes first
            CHECK_INT(s.last, EG_FAILED);
            CHECK_INT(told, 1);                               // on this thread, once
            CHECK_INT(eg_error_count() - count, 1);
            CHECK_STR(told_last, eg_error_message());
            CHECK_INT(eg_error(), EG_ERROR_SHAPE);
            eg_error_clear();
            CHECK_ERROR(look_on(it, 1), EG_ERROR_STATE, "failed before");
            eg_iterator_release(it);
            CHECK_ERROR(
                look(d, 100), EG_ERROR_SHAPE,
                "eg_dataset_map (stage 3 of 5, element 17): eg_matmul: inner dimensions differ: [2, 3] x [4, 5]");
            eg_dataset_release(d);
        }
}

static bool noisy(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_add(eg_cast(in[0], EG_FLOAT32), eg_random_uniform(EG_SCALAR));
    out[1] = eg_random_integers(EG_SHAPE(3), 0, 100);
    return true;
}
TEST(map_gives_the_same_random_numbers_on_any_number_of_threads) {
    seen want = {0, {0}, EG_FAILED};
    for (int threads = 0; threads < 5; threads++)
        for (int ahead = 0; ahead < 2; ahead++) {
            eg_dataset *d = eg_dataset_map(numbers(40), noisy, NULL, .components = 2, .seed = 5, .threads = threads);
            if (ahead) d = eg_dataset_prefetch(d, 4);
            eg_random_state before = eg_random_get_state();
            seen s = look(d, 99);
            CHECK(before.counter == eg_random_get_state().counter && before.seed == eg_random_get_state().seed);
            CHECK_INT(s.n, 40);
            if (threads + ahead == 0) want = s;
            CHECK(memcmp(&s, &want, sizeof s) == 0);
            CHECK(s.value[0] != s.value[1] - 1);
            eg_dataset_release(d);
        }
}
// A traced function is called by several threads at once, each element's draws being its own.
static bool adds_noise(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    return (out[0] = eg_add(eg_tanh(in[0]), eg_random_uniform(EG_SHAPE(3)))) != NULL;
}
static bool by_a_function(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *x = eg_mul(eg_ones(EG_FLOAT32, EG_SHAPE(3)), eg_cast(in[0], EG_FLOAT32));
    return eg_function_call((eg_function *)user, &x, 1, out, 1);
}
TEST(map_calls_a_traced_function_on_any_number_of_threads) {
    seen want = {0, {0}, EG_FAILED};
    for (int threads = 0; threads < 5; threads++) {
        eg_function *f = eg_function_new(adds_noise, NULL);
        eg_run_functions_eagerly(threads == 0);
        eg_dataset *d = eg_dataset_map(numbers(80), by_a_function, f, .seed = 5, .threads = threads);
        seen s = look(d, 99);
        eg_run_functions_eagerly(false);
        CHECK_INT(s.n, 240);
        if (threads == 0) want = s;
        CHECK(memcmp(&s, &want, sizeof s) == 0);
        eg_dataset_release(d);
        CHECK_INT(eg_function_counts(f).traces, threads > 0);
        if (threads) CHECK(eg_function_counts(f).replays > 20);
        eg_function_release(f);
    }
}
TEST(map_is_not_recorded) {
    eg_tensor *w = eg_variable(eg_scalar(2), "w");
    eg_dataset *d = eg_dataset_map(eg_dataset_from_slices(eg_constant(EG_SHAPE(2), 1, 2)), fails_at_17, NULL);
    eg_iterator *it = eg_iterator_new(d);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator_next(it, out);
    eg_tensor *y = eg_mul(w, out[0]);
    CHECK(eg_tape_gradient(tape, y, w) != NULL);
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 0);
    eg_iterator_release(it);
    eg_dataset_release(d);
    eg_release(w);
}
static eg_tensor *gives_null(eg_tensor *const *in, void *user) { (void)in, (void)user; return NULL; }
static eg_tensor *gives_number(eg_tensor *const *in, void *user) { (void)in, (void)user; return eg_integer(3); }
static eg_tensor *gives_variable(eg_tensor *const *in, void *user) { (void)in; return (eg_tensor *)user; }
static bool passes_over(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    eg_matmul(in[0], in[0]);                                  // fails
    out[0] = in[0];
    return true;
}
static eg_status generates_and_passes_over(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_scalar(1);
    eg_matmul(out[0], out[0]);
    return i < 3 ? EG_NEXT : EG_END_OF_SEQUENCE;
}
TEST(errors_that_a_callback_passes_over_are_heard_of) {
    for (int threads = 0; threads < 3; threads += 2) {
        eg_dataset *d = eg_dataset_map(numbers(2), passes_over, NULL, .threads = threads);
        CHECK_ERROR(look(d, 1), EG_ERROR_SHAPE, "eg_dataset_map (stage 2 of 2, element 0): eg_matmul");
        eg_dataset_release(d);
    }
    eg_dataset *d = eg_dataset_from_generator(generates_and_passes_over, NULL, 1, NULL);
    CHECK_ERROR(look(d, 1), EG_ERROR_SHAPE, "eg_dataset_from_generator (stage 1 of 1, element 0): eg_matmul");
    eg_dataset_release(d);
}
TEST(what_map_functions_may_return) {
    eg_dataset *d = eg_dataset_map(numbers(2), gives_null, NULL);
    CHECK_ERROR(look(d, 1), EG_ERROR_NULL,
                "eg_dataset_map (stage 2 of 2, element 0): the function left component 0 of 1 NULL");
    eg_dataset_release(d);
    CHECK_GIVES(eg_dataset_map(numbers(2), gives_number, NULL), 3, 3);
    eg_set_device("cpu:0");                                   // map functions run there
    eg_tensor *v = eg_variable(eg_scalar(4), "v");
    eg_set_device(test_device());
    CHECK_GIVES(eg_dataset_map_one(numbers(2), gives_variable, v), 4, 4);
    eg_release(v);
    CHECK_ERROR(eg_dataset_map(numbers(2), (eg_function1 *)NULL, NULL), EG_ERROR_ARGUMENT, "NULL");
    CHECK_ERROR(eg_dataset_map(numbers(2), gives_null, NULL, .threads = -1), EG_ERROR_ARGUMENT,
                "eg_dataset_map: .threads is -1; it must be at least 0 and at most 1024");
    CHECK_ERROR(eg_dataset_map(numbers(2), gives_null, NULL, .components = 2), EG_ERROR_ARGUMENT, "1 component, not 2");
    CHECK_ERROR(eg_dataset_map(NULL, gives_null, NULL), EG_ERROR_NULL, "eg_dataset_map");
}
TEST(filter_keeps_some) {
    CHECK_GIVES(eg_dataset_filter(numbers(7), is_odd, NULL), 1, 3, 5);
    eg_dataset *d = eg_dataset_filter(numbers(7), gives_null, NULL);
    CHECK_ERROR(look(d, 1), EG_ERROR_NULL, "eg_dataset_filter (stage 2 of 2, element 0): the function returned NULL");
    eg_dataset_release(d);
    CHECK_ERROR(eg_dataset_filter(numbers(7), NULL, NULL), EG_ERROR_ARGUMENT, "NULL");
}

// ---- shuffle -------------------------------------------------------------------------------------------------------

TEST(shuffle_1_is_the_identity) { CHECK_GIVES(eg_dataset_shuffle(numbers(5), 1), 0, 1, 2, 3, 4); }
TEST(with_a_buffer_of_2_a_value_moves_at_most_one_place_forward) {
    eg_dataset *d = eg_dataset_shuffle(numbers(60), 2, .seed = 3);
    seen s = look(d, 99);
    CHECK_INT(s.n, 60);
    bool moved = false;
    for (int i = 0; i < s.n; i++) {
        CHECK(s.value[i] <= i + 1);
        moved = moved || s.value[i] != i;
    }
    CHECK(moved);
    eg_dataset_release(d);
}
static bool same_order(const seen *a, const seen *b) {
    return a->n == b->n && memcmp(a->value, b->value, (size_t)a->n * sizeof(double)) == 0;
}
TEST(each_epoch_has_an_order_of_its_own) {
    for (int again = 0; again < 2; again++) {
        eg_dataset *d = eg_dataset_repeat(eg_dataset_shuffle(numbers(20), 20, .seed = 1, .no_reshuffle = again == 1),
                                          2);
        seen first = look(d, 99), second = look(d, 99);
        CHECK_INT(first.n, 40);
        bool same = same_order(&first, &second),
             same_rounds = memcmp(first.value, first.value + 20, 20 * sizeof(double)) == 0;
        CHECK_INT(same, again);
        CHECK_INT(same_rounds, again);
        double sum = 0;
        for (int i = 0; i < 20; i++) sum += first.value[i];
        CHECK_NEAR(sum, 190, 0);
        eg_dataset_release(d);
    }
}
TEST(the_seed_decides_the_order) {
    seen s[3];
    for (int i = 0; i < 3; i++) {
        eg_seed(i == 2 ? 8 : 7);
        eg_dataset *d = eg_dataset_shuffle(numbers(20), 20);
        s[i] = look(d, 99);
        eg_dataset_release(d);
    }
    CHECK(same_order(&s[0], &s[1]) && !same_order(&s[0], &s[2]));
    CHECK_ERROR(eg_dataset_shuffle(numbers(20), 0), EG_ERROR_ARGUMENT, "at least 1");
}
// Elements of n floats, which say their number; one is longer.
typedef struct length { int64_t n, odd; } length;
static eg_tensor *lengthened(eg_tensor *const *in, void *user) {
    const length *l = (const length *)user;
    const int64_t i = eg_item_int(in[0]);
    return eg_full(EG_FLOAT32, EG_SHAPE(l->n + (i == l->odd)), (double)i);
}
TEST(the_size_of_elements_does_not_change_the_order) {
    static const int64_t lengths[] = {1, 16, 17, 100, 800, 4096, 4097};
    enum { N = 900 };
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int kind = 0; kind < 4; kind++) {
            length l = {lengths[k], kind % 2 ? 500 : -1};
            const int64_t buffer = kind / 2 ? 2000 : 130;
            eg_dataset *d = eg_dataset_shuffle(eg_dataset_map(numbers(N), lengthened, &l), buffer, .seed = 3),
                       *plain = eg_dataset_shuffle(numbers(N), buffer, .seed = 3);
            eg_iterator *it = eg_iterator_new(d), *by = eg_iterator_new(plain), *again = eg_iterator_new(d);
            eg_tensor *x[EG_MAX_COMPONENTS], *want[EG_MAX_COMPONENTS], *y[EG_MAX_COMPONENTS];
            int wrong = 0, i = 0;
            for (; eg_iterator_next(by, want) == EG_NEXT; i++) {
                EG_SCOPE;
                REQUIRE(eg_iterator_next(it, x) == EG_NEXT);
                const int64_t v = eg_item_int(want[0]), n = l.n + (v == l.odd);
                const float *p = (const float *)eg_data(x[0]);
                wrong += eg_size(x[0]) != n || p[0] != (float)v || p[n - 1] != (float)v;
                if (i == 333) CHECK(eg_iterator_restore(again, eg_iterator_position(it)));
                if (i <= 333) continue;
                REQUIRE(eg_iterator_next(again, y) == EG_NEXT);
                wrong += eg_size(y[0]) != n || memcmp(p, eg_data(y[0]), (size_t)n * sizeof *p) != 0;
            }
            CHECK_INT(wrong, 0);
            CHECK_INT(i, N);
            CHECK_INT(eg_iterator_next(it, x), EG_END_OF_SEQUENCE);
            eg_iterator_release(it);
            eg_iterator_release(by);
            eg_iterator_release(again);
            eg_dataset_release(d);
            eg_dataset_release(plain);
        }
}
// A uniform shuffle: each of the 24 orders of four comes about as often (chi-square with 23 degrees of freedom).
TEST(a_full_buffer_mixes_evenly) {
    int count[256] = {0};
    enum { ROUNDS = 4800 };
    eg_dataset *d = eg_dataset_batch(eg_dataset_repeat(eg_dataset_shuffle(numbers(4), 4, .seed = 11), -1), 4);
    eg_iterator *it = eg_iterator_new(d);
    for (int i = 0; i < ROUNDS; i++) {
        EG_SCOPE;
        seen s = look_on(it, 1);
        count[(int)(s.value[0] + 4 * s.value[1] + 16 * s.value[2] + 64 * s.value[3])]++;
    }
    double chi = 0, expected = ROUNDS / 24.0;
    int orders = 0;
    for (int i = 0; i < 256; i++)
        if (count[i]) { orders++; chi += (count[i] - expected) * (count[i] - expected) / expected; }
    CHECK_INT(orders, 24);
    CHECK(chi < 50);
    eg_iterator_release(it);
    eg_dataset_release(d);
}

// ---- cache and prefetch --------------------------------------------------------------------------------------------

static eg_tensor *counts(eg_tensor *const *in, void *user) {
    __atomic_fetch_add((int *)user, 1, __ATOMIC_RELAXED);
    return in[0];
}
TEST(cache_reads_once) {
    int calls = 0;
    eg_dataset *d = eg_dataset_repeat(eg_dataset_cache(eg_dataset_map(numbers(3), counts, &calls)), 3);
    eg_dataset_retain(d);
    CHECK_GIVES(d, 0, 1, 2, 0, 1, 2, 0, 1, 2);
    CHECK_INT(calls, 3);
    CHECK_GIVES(d, 0, 1, 2, 0, 1, 2, 0, 1, 2);
    CHECK_INT(calls, 3);
    calls = 0;                                                // left half read, it is not kept
    d = eg_dataset_cache(eg_dataset_map(numbers(3), counts, &calls));
    look(d, 2);
    eg_iterator *a = eg_iterator_new(d), *b = eg_iterator_new(d);
    look_on(a, 2);
    CHECK_INT(look_on(b, 9).n, 3);
    CHECK_NEAR(look_on(a, 9).value[0], 2, 0);                 // goes on with what b has filled meanwhile
    CHECK_INT(calls, 7);
    eg_iterator_release(a);
    eg_iterator_release(b);
    eg_dataset_release(d);
}
TEST(prefetch_changes_nothing) {
    CHECK_GIVES(eg_dataset_prefetch(numbers(5), 2), 0, 1, 2, 3, 4);
    CHECK_GIVES(eg_dataset_repeat(eg_dataset_prefetch(numbers(3), 100), 2), 0, 1, 2, 0, 1, 2);
    eg_dataset *d = eg_dataset_prefetch(eg_dataset_repeat(numbers(3), -1), 4);
    CHECK_INT(look(d, 50).n, 50);                             // and is released while its thread waits
    eg_iterator *it = eg_iterator_new(d);
    eg_iterator_release(it);
    eg_dataset_release(d);
    CHECK_ERROR(eg_dataset_prefetch(numbers(3), 0), EG_ERROR_ARGUMENT, "0 elements");
}
static void pause_for(double seconds) {
    struct timespec a, b;
    timespec_get(&a, TIME_UTC);
    do timespec_get(&b, TIME_UTC);
    while ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec) < seconds);
}
// Fast stretches, which the asking thread reads itself, and slow ones, on both sides of a prefetch and in a map.
enum { PACED = 12000 };
static int paced_calls, paced_most;                           // how many run now; how many have run at once
static eg_tensor *paced(eg_tensor *const *in, void *user) {
    const int64_t i = eg_item_int(in[0]);
    const int now = __atomic_add_fetch(&paced_calls, 1, __ATOMIC_RELAXED);
    if (i % 4000 >= 3980) pause_for(1e-3);
    if (now > __atomic_load_n(&paced_most, __ATOMIC_RELAXED)) __atomic_store_n(&paced_most, now, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&paced_calls, 1, __ATOMIC_RELAXED);
    if (i == PACED) return (eg_tensor *)eg_raise(EG_ERROR_STATE, "the last one fails");
    return user ? eg_reshape(in[0], EG_SHAPE(1)) : in[0];
}
static void check_paced(int line, eg_dataset *d) {
    eg_iterator *it = eg_iterator_new(d), *other = eg_iterator_new(d);
    eg_tensor *x[EG_MAX_COMPONENTS], *position = NULL;
    int64_t i = 0;
    for (; i < PACED; i++) {
        EG_SCOPE;
        if (eg_iterator_next(it, x) != EG_NEXT || eg_item_int(x[0]) != i) break;
        if (i % 5000 < 2) pause_for(3e-3);
        if (i == 7000) position = eg_retain(eg_iterator_position(it));
    }
    test_int(__FILE__, line, "elements in order", i, PACED);
    CHECK_ERROR(eg_iterator_next(it, x), EG_ERROR_STATE, "the last one fails");
    CHECK(eg_iterator_restore(other, position));
    CHECK_INT(eg_iterator_next(other, x), EG_NEXT);
    CHECK_INT(eg_item_int(x[0]), 7001);
    eg_release(position);
    eg_iterator_release(it);
    eg_iterator_release(other);
    eg_dataset_release(d);
}
TEST(threads_join_where_it_pays) {
    int row = 1;
    for (int64_t n = 1; n <= 64; n *= 4)
        check_paced(__LINE__, eg_dataset_prefetch(eg_dataset_map(numbers(PACED + 5), paced, NULL), n));
    check_paced(__LINE__, eg_dataset_prefetch(eg_dataset_map(numbers(PACED + 5), paced, &row), 64));
    paced_most = 0;
    check_paced(__LINE__, eg_dataset_map(numbers(PACED + 5), paced, NULL, .threads = 2));
#ifndef EAGER_NO_THREADS
    CHECK(paced_most >= 2);                                   // in the slow stretches
#endif
    check_paced(__LINE__, eg_dataset_prefetch(eg_dataset_map(numbers(PACED + 5), paced, &row, .threads = 3), 5));
}
// What the stage below a prefetch lends, a shuffle's slot or a row of its batch, stays as it is while the thread reads
// on. The asking thread and the other alternate: beside a zip's elements are slow ones, and a batch copies wide ones.
enum { LENT = 1500, LENT_BATCH = 32 };
static eg_tensor *now_and_then(eg_tensor *const *in, void *user) {
    if (eg_item_int(in[0]) % *(const int *)user == 0) pause_for(3e-3);
    return in[0];
}
static eg_dataset *lending(int kind, length *l, int64_t width) {
    eg_dataset *d = eg_dataset_map(numbers(LENT), lengthened, l);
    d = kind == 2 ? eg_dataset_unbatch(eg_dataset_shuffle(eg_dataset_batch(d, 10), 7, .seed = 5))
                  : eg_dataset_shuffle(d, kind ? 8 : 100, .seed = 5);
    if (width) d = eg_dataset_prefetch(d, width);
    return kind ? d : eg_dataset_batch(d, LENT_BATCH);
}
static void check_lent(int kind, int64_t width, int epochs) {
    length l = {3000, -1};
    int64_t wrong = 0, n = 0;
    int every = 37;
    for (int epoch = 0; epoch < epochs; epoch++) {
        eg_dataset *d = lending(kind, &l, width), *plain = lending(kind, &l, 0);
        if (kind) d = eg_dataset_zip(d, eg_dataset_map(numbers(LENT), now_and_then, &every));
        eg_iterator *it = eg_iterator_new(d), *by = eg_iterator_new(plain);
        eg_tensor *x[EG_MAX_COMPONENTS], *want[EG_MAX_COMPONENTS];
        for (;;) {
            EG_SCOPE;
            const eg_status end = eg_iterator_next(by, want);
            CHECK_INT(eg_iterator_next(it, x), end);
            if (end != EG_NEXT) break;
            REQUIRE(eg_size(x[0]) == eg_size(want[0]));
            const float *p = (const float *)eg_data(x[0]), *q = (const float *)eg_data(want[0]);
            for (int64_t i = 0; i < eg_size(x[0]); i += l.n, n++)
                wrong += memcmp(p + i, q + i, (size_t)l.n * sizeof *p) != 0;
        }
        eg_iterator_release(it);
        eg_iterator_release(by);
        eg_dataset_release(d);
        eg_dataset_release(plain);
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(n, (int64_t)epochs * LENT);
}
TEST(what_a_stage_lends_outlives_the_thread_that_reads_on) {
    check_lent(0, 4, 16);
    check_lent(0, 64, 4);
    check_lent(1, 8, 4);
    check_lent(2, 8, 4);
}

// ---- specifications ------------------------------------------------------------------------------------------------

static void check_spec(int line, eg_dataset *d, int component, const char *want) {
    eg_spec s = eg_dataset_spec(d, component);
    char text[2 * EG_SHAPE_TEXT], shape[EG_SHAPE_TEXT];
    snprintf(text, sizeof text, "%s %s", s.dtype == EG_NO_DTYPE ? "any" : eg_dtype_name(s.dtype),
             s.shape.rank < 0 ? "?" : eg_shape_text(s.shape, shape));
    test_str(__FILE__, line, "the specification", text, want);
}
#define CHECK_SPEC(d, component, want) check_spec(__LINE__, d, component, want)
TEST(specifications) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(10, 28, 28)), *y = eg_zeros(EG_INT32, EG_SHAPE(10));
    eg_dataset *d = eg_dataset_from_slices(x, y);
    CHECK_SPEC(d, 0, "float32 (28, 28)");
    CHECK_SPEC(d, 1, "int32 ()");
    d = eg_dataset_batch(eg_dataset_shuffle(d, 5), 3);
    CHECK_SPEC(d, 0, "float32 (-1, 28, 28)");                 // the last has fewer
    CHECK_SPEC(d, 1, "int32 (-1,)");
    d = eg_dataset_unbatch(d);
    CHECK_SPEC(d, 0, "float32 (28, 28)");
    d = eg_dataset_batch(eg_dataset_repeat(d, -1), 4, .drop_remainder = true);
    CHECK_SPEC(d, 0, "float32 (4, 28, 28)");
    d = eg_dataset_padded_batch(eg_dataset_enumerate(d), 5);
    CHECK_SPEC(d, 0, "int64 (5,)");                           // an endless dataset has no last batch
    CHECK_SPEC(d, 1, "float32 (5, -1, -1, -1)");
    CHECK_ERROR(eg_dataset_spec(d, 3), EG_ERROR_INDEX, "no component 3; the elements have 3");
    d = eg_dataset_map(d, fails_at_17, NULL);
    CHECK_SPEC(d, 0, "any ?");
    const eg_spec spec = {EG_INT64, {1, {-1}}};
    d = eg_dataset_map(d, fails_at_17, NULL, .specs = &spec);
    CHECK_SPEC(d, 0, "int64 (-1,)");
    eg_dataset_release(d);
    d = eg_dataset_concatenate(eg_dataset_from_slices(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3))),
                               eg_dataset_from_slices(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 4))));
    CHECK_SPEC(d, 0, "float32 (-1,)");
    eg_dataset_release(d);
}
TEST(pipelines_in_words) {
    eg_dataset *d = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_zip(eg_dataset_range(0, 9, 2), numbers(5)), 100),
                                     32);
    char text[100];
    CHECK_INT(eg_dataset_format(d, text, sizeof text), 53);
    CHECK_STR(text, "(range 9 2, range 5 1) > zip > shuffle 100 > batch 32");
    CHECK_INT(eg_dataset_format(d, text, 8), 53);
    CHECK_STR(text, "(range ");
    eg_dataset_release(d);
}

// ---- iterators -----------------------------------------------------------------------------------------------------

static eg_dataset *up_to(eg_tensor *const *feed, void *user) {
    (void)user;
    return numbers(eg_item_int(feed[0]));
}
TEST(an_initializable_iterator_is_fed_its_bound) {
    eg_iterator *it = eg_iterator_initializable(up_to, NULL);
    eg_tensor *out[EG_MAX_COMPONENTS], *bound = eg_scalar_of(EG_INT64, 3);
    CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_STATE, "was not initialized: eg_iterator_feed");
    CHECK_ERROR(eg_iterator_position(it), EG_ERROR_STATE, "was not initialized");
    CHECK(eg_iterator_feed(it, &bound));
    CHECK_INT(look_on(it, 9).n, 3);
    bound = eg_scalar_of(EG_INT64, 5);
    CHECK(eg_iterator_feed(it, &bound));
    CHECK_INT(look_on(it, 9).n, 5);
    eg_dataset *d = numbers(2);
    CHECK_ERROR(eg_iterator_set(it, d), EG_ERROR_STATE, "eg_iterator_feed");
    eg_dataset_release(d);
    eg_iterator_release(it);
    CHECK_ERROR(eg_iterator_initializable(NULL, NULL), EG_ERROR_ARGUMENT, "NULL");
}
TEST(a_reinitializable_iterator_takes_datasets_of_one_structure) {
    const eg_spec spec = {EG_INT64, {0, {0}}};
    eg_iterator *it = eg_iterator_from_specs(&spec, 1);
    eg_dataset *train = numbers(4), *test = eg_dataset_range(50, 52, 1), *other = eg_dataset_batch(numbers(4), 2);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_STATE, "was not initialized: eg_iterator_set");
    for (int epoch = 0; epoch < 2; epoch++) {
        CHECK(eg_iterator_set(it, train));
        CHECK_INT(look_on(it, 9).n, 4);
        CHECK(eg_iterator_set(it, test));
        CHECK_NEAR(look_on(it, 9).value[1], 51, 0);
    }
    CHECK_ERROR(eg_iterator_set(it, other), EG_ERROR_SHAPE,
                "component 0 is int64 [] in one dataset and int64 [2] in the other");
    CHECK_ERROR(eg_iterator_feed(it, out), EG_ERROR_STATE, "eg_iterator_initializable");
    CHECK_ERROR(eg_iterator_from_specs(NULL, 1), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    eg_dataset_release(train);
    eg_dataset_release(test);
    eg_dataset_release(other);
    eg_iterator_release(eg_iterator_retain(it));
    eg_iterator_release(it);
}
static double by_handle(eg_tensor *handle) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    return eg_iterator_next_by_handle(handle, out) == EG_NEXT ? eg_item(out[0]) : -1;
}
TEST(iterators_by_handle_keep_their_positions) {
    eg_dataset *a = numbers(100), *b = eg_dataset_range(100, 200, 1);
    eg_iterator *ia = eg_iterator_new(a), *ib = eg_iterator_new(b);
    eg_tensor *ha = eg_iterator_handle(ia), *hb = eg_iterator_handle(ib), *out[EG_MAX_COMPONENTS];
    CHECK_NEAR(by_handle(ha), 0, 0);
    CHECK_NEAR(by_handle(ha), 1, 0);
    CHECK_NEAR(by_handle(hb), 100, 0);
    CHECK_NEAR(by_handle(ha), 2, 0);
    CHECK_NEAR(by_handle(hb), 101, 0);
    CHECK(eg_item_int(eg_iterator_handle(ia)) == eg_item_int(ha));
    eg_iterator_release(ia);
    CHECK_ERROR(eg_iterator_next_by_handle(ha, out), EG_ERROR_ARGUMENT, "no iterator with the handle");
    eg_iterator_release(ib);
    eg_dataset_release(a);
    eg_dataset_release(b);
}
TEST(null_datasets_and_iterators) {
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_dataset_release(NULL);
    eg_iterator_release(NULL);
    CHECK(!eg_dataset_retain(NULL) && !eg_iterator_retain(NULL));
    CHECK_ERROR(eg_iterator_new(NULL), EG_ERROR_NULL, "eg_iterator_new");
    CHECK_ERROR(eg_iterator_next(NULL, out), EG_ERROR_NULL, "eg_iterator_next");
    CHECK_ERROR(eg_iterator_next_by_handle(NULL, out), EG_ERROR_NULL, "handle");
    CHECK_ERROR(eg_dataset_components(NULL), EG_ERROR_NULL, "components");
    CHECK_ERROR(eg_dataset_cardinality(NULL), EG_ERROR_NULL, "cardinality");
    CHECK_ERROR(eg_dataset_batch(eg_dataset_range(0, 1, 0), 3), EG_ERROR_ARGUMENT, "step");     // the first error stays
}

// ---- positions -----------------------------------------------------------------------------------------------------

// An iterator restored from its position goes on as the one it was taken from; so does the epoch after.
static void check_resumes(int line, eg_dataset *(*make)(void), int epochs_before, int at) {
    eg_seed(1);
    eg_dataset *d = make();
    for (int i = 0; i < epochs_before; i++) look(d, 5);
    eg_iterator *it = eg_iterator_new(d);
    look_on(it, at);
    eg_tensor *position = eg_iterator_position(it);
    seen rest = look_on(it, 30), after = look(d, 30);
    eg_iterator_release(it);
    eg_dataset_release(d);

    eg_seed(2);                                               // as in a new process that was not seeded alike
    d = make();
    it = eg_iterator_new(d);
    look_on(it, 1);
    test_int(__FILE__, line, "restored", eg_iterator_restore(it, position), 1);
    seen rest2 = look_on(it, 30), after2 = look(d, 30);
    test_int(__FILE__, line, "the rest is the same", memcmp(&rest, &rest2, sizeof rest), 0);
    test_int(__FILE__, line, "the next epoch is the same", memcmp(&after, &after2, sizeof after), 0);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
static eg_dataset *plain(void) { return eg_dataset_batch(numbers(40), 3); }
static eg_dataset *shuffled(void) { return eg_dataset_batch(eg_dataset_shuffle(numbers(40), 7), 3); }
static eg_dataset *in_rounds(void) {
    return eg_dataset_prefetch(eg_dataset_batch(eg_dataset_repeat(eg_dataset_shuffle(numbers(4), 7), -1), 3), 5);
}
static eg_dataset *with_noise(void) {
    return eg_dataset_shuffle(eg_dataset_map(eg_dataset_shuffle(eg_dataset_repeat(numbers(20), 3), 9), noisy, NULL,
                                             .components = 2, .threads = 2), 5);
}
static eg_dataset *filtered(void) { return eg_dataset_shuffle(eg_dataset_filter(numbers(90), is_odd, NULL), 9); }
static eg_dataset *mixed(void) {
    return eg_dataset_take(eg_dataset_skip(eg_dataset_concatenate(eg_dataset_interleave(
            eg_dataset_shuffle(numbers(5), 5), six_times, NULL), eg_dataset_unbatch(shuffled())), 3), 60);
}
static eg_dataset *sharded(void) {
    return eg_dataset_batch(eg_dataset_shuffle(eg_dataset_shard(eg_dataset_shuffle(numbers(90), 7), 3, 1), 5), 2);
}
static eg_dataset *zipped(void) {
    return eg_dataset_enumerate(eg_dataset_zip(eg_dataset_shuffle(numbers(40), 40), eg_dataset_cache(with_noise())));
}
TEST(positions_resume_bit_by_bit) {
    eg_dataset *(*const all[])(void) = {plain, shuffled, in_rounds, with_noise, filtered, mixed, sharded, zipped};
    for (int k = 0; k < (int)(sizeof all / sizeof *all); k++)
        for (int epochs = 0; epochs < 3; epochs++)
            for (int at = 0; at < 14; at += test_share > 1 ? 4 : 1)
                check_resumes(__LINE__ + 100 * k, all[k], epochs, at);
}
// Another pipeline's seeds reach the restored iterator and those that begin later, not one that has begun, asked or not
// yet asked.
TEST(a_restored_iterator_disturbs_no_other) {
    eg_dataset *(*const all[])(void) = {shuffled, in_rounds, with_noise, mixed, zipped};
    for (int k = 0; k < (int)(sizeof all / sizeof *all); k++) {
        eg_seed(1);
        eg_dataset *d = all[k]();
        eg_iterator *it = eg_iterator_new(d);
        look_on(it, 3);
        eg_tensor *position = eg_iterator_position(it);
        seen rest = look_on(it, 30);
        eg_iterator_release(it);
        eg_dataset_release(d);

        eg_seed(2);
        d = all[k]();
        it = eg_iterator_new(d);
        eg_iterator *asked = eg_iterator_new(d), *unasked = eg_iterator_new(d), *wanted = eg_iterator_new(d);
        look_on(asked, 2);
        CHECK(eg_iterator_restore(wanted, eg_iterator_position(asked)));
        seen asked_rest = look_on(wanted, 30);
        CHECK(eg_iterator_restore(wanted, eg_iterator_position(unasked)));
        seen unasked_rest = look_on(wanted, 30);
        CHECK(eg_iterator_restore(it, position));
        seen is = look_on(asked, 30);
        CHECK(!memcmp(&is, &asked_rest, sizeof is));
        is = look_on(unasked, 30);
        CHECK(!memcmp(&is, &unasked_rest, sizeof is));
        is = look_on(it, 30);
        CHECK(!memcmp(&is, &rest, sizeof is));
        eg_iterator_release(it);
        eg_iterator_release(asked);
        eg_iterator_release(unasked);
        eg_iterator_release(wanted);
        eg_dataset_release(d);
    }
}
// What one iterator has put into a cache is not what another with other seeds would have.
static eg_tensor *noise_alone(eg_tensor *const *in, void *user) {
    (void)in;
    (void)user;
    return eg_random_uniform(EG_SHAPE(1));
}
static eg_dataset *cached_noise(void) { return eg_dataset_cache(eg_dataset_map_one(numbers(12), noise_alone, NULL)); }
TEST(a_cache_belongs_to_the_seeds_it_was_read_with) {
    eg_seed(1);
    eg_dataset *d = cached_noise();
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *position = eg_iterator_position(it);
    seen first = look_on(it, 99);
    eg_iterator_release(it);
    eg_dataset_release(d);

    eg_seed(2);
    d = cached_noise();
    seen second = look(d, 99), is;
    CHECK(memcmp(&first, &second, sizeof first) != 0);
    eg_iterator *other = eg_iterator_new(d);
    look_on(other, 4);
    it = eg_iterator_new(d);
    CHECK(eg_iterator_restore(it, position));
    is = look_on(it, 99);                                     // fills the cache anew
    CHECK(!memcmp(&is, &first, sizeof is));
    is = look(d, 99);
    CHECK(!memcmp(&is, &first, sizeof is));
    CHECK_INT(look_on(other, 99).n, 8);
    eg_iterator_release(it);
    eg_iterator_release(other);
    eg_dataset_release(d);
}
// A position that cannot be reached changes nothing: not the place, nor what comes, nor the epochs after.
TEST(a_failed_restore_leaves_the_iterator_where_it_was) {
    eg_dataset *(*const all[])(void) = {shuffled, with_noise, mixed, zipped};
    for (int k = 0; k < (int)(sizeof all / sizeof *all); k++) {
        seen rest[2], after[2];
        for (int fails = 0; fails < 2; fails++) {
            unsigned char far[600];
            eg_seed(1);
            eg_dataset *d = eg_dataset_prefetch(all[k](), 3);
            eg_iterator *it = eg_iterator_new(d);
            look_on(it, 5);
            eg_tensor *position = eg_iterator_position(it);
            // another epoch, another count, another seed; always too many
            for (int byte = 8; byte < 41 && fails; byte += byte < 17 ? 1 : 23) {
                memcpy(far, eg_data(position), (size_t)eg_size(position));
                far[byte] ^= 1;
                far[17] = 1;
                CHECK_ERROR(eg_iterator_restore(it, eg_from_data(EG_UINT8, eg_shape_of(position), far)), EG_ERROR_STATE,
                            "but the data ends after");
                CHECK_SAME(eg_iterator_position(it), position, 0);
            }
            rest[fails] = look_on(it, 99);
            after[fails] = look(d, 99);
            eg_iterator_release(it);
            eg_dataset_release(d);
        }
        CHECK(!memcmp(&rest[0], &rest[1], sizeof rest[0]));
        CHECK(!memcmp(&after[0], &after[1], sizeof after[0]));
    }
}
TEST(a_position_is_no_reading_of_what_can_be_computed) {
    int calls = 0;
    eg_dataset *d = eg_dataset_shuffle(eg_dataset_map(eg_dataset_repeat(numbers(1000000), -1), counts, &calls), 50,
                                       .seed = 1);
    eg_iterator *it = eg_iterator_new(d);
    look_on(it, 3);
    eg_tensor *position = eg_iterator_position(it);
    const unsigned char *p = (const unsigned char *)eg_data(position);
    unsigned char far[200];
    memcpy(far, p, (size_t)eg_size(position));
    far[16] = 0; far[17] = 0; far[18] = 1;                    // as if 65536 had been taken
    calls = 0;
    CHECK(eg_iterator_restore(it, eg_from_data(EG_UINT8, eg_shape_of(position), far)));
    CHECK(calls <= 50);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
// A count that no data has is not read up to: here there would be a million million elements to draw.
TEST(positions_behind_all_data_cost_nothing) {
    eg_dataset *d = eg_dataset_shuffle(eg_dataset_range(0, (int64_t)1 << 40, 1), 100, .seed = 1);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *position = eg_iterator_position(it), *out[EG_MAX_COMPONENTS];
    unsigned char bytes[400];
    REQUIRE(eg_size(position) <= 400);
    memcpy(bytes, eg_data(position), (size_t)eg_size(position));
    bytes[16 + 6] = 1;                                      // 2^48
    CHECK_ERROR(eg_iterator_restore(it, eg_from_data(EG_UINT8, eg_shape_of(position), bytes)), EG_ERROR_STATE,
                "after 281474976710656 elements, but the data ends after 1099511627776");
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
TEST(positions_that_do_not_fit) {
    eg_dataset *d = shuffled(), *other = plain(), *shorter = eg_dataset_batch(eg_dataset_shuffle(numbers(40), 7), 4);
    eg_iterator *it = eg_iterator_new(d), *io = eg_iterator_new(other), *is = eg_iterator_new(shorter);
    look_on(it, 12);
    eg_tensor *position = eg_iterator_position(it);
    CHECK_ERROR(eg_iterator_restore(io, position), EG_ERROR_STATE,
                "belongs to another pipeline: \"range 40 1 > shuffle 7 > batch 3\", while this iterator reads \"range "
                "40 1 > batch 3\"");
    CHECK_ERROR(eg_iterator_restore(is, position), EG_ERROR_STATE, "batch 4");
    CHECK_ERROR(eg_iterator_restore(is, eg_zeros(EG_UINT8, EG_SHAPE(100))), EG_ERROR_ARGUMENT, "no position");
    CHECK_ERROR(eg_iterator_restore(is, eg_scalar(1)), EG_ERROR_ARGUMENT, "no position");
    unsigned char far[200];
    memcpy(far, eg_data(position), (size_t)eg_size(position));
    far[17] = 1;
    CHECK_ERROR(eg_iterator_restore(it, eg_from_data(EG_UINT8, eg_shape_of(position), far)), EG_ERROR_STATE,
                "after 268 elements, but the data ends after 14");
    for (int i = 0; i < eg_size(position); i++) {             // any byte may be wrong
        memcpy(far, eg_data(position), (size_t)eg_size(position));
        far[i] ^= 0x80;
        eg_iterator_restore(it, eg_from_data(EG_UINT8, eg_shape_of(position), far));
        eg_error_clear();
    }
    CHECK(eg_iterator_restore(it, position));
    CHECK_INT(look_on(it, 99).n, 4);
    eg_iterator_release(it);
    eg_iterator_release(io);
    eg_iterator_release(is);
    eg_dataset_release(d);
    eg_dataset_release(other);
    eg_dataset_release(shorter);
}

// ---- several threads -----------------------------------------------------------------------------------------------

#ifndef EAGER_NO_THREADS
#include <pthread.h>

typedef struct job { eg_dataset *d; double sum; } job;
static void *sums_all(void *p) {
    job *j = (job *)p;
    eg_iterator *it = eg_iterator_new(j->d);
    seen s = look_on(it, 99);
    for (int i = 0; i < s.n; i++) j->sum += s.value[i];
    eg_iterator_release(it);
    eg_dataset_release(j->d);
    return NULL;
}
TEST(threads_may_share_a_dataset) {
    int calls = 0;
    eg_dataset *d = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_cache(eg_dataset_map(numbers(60), counts, &calls,
                                                                                        .threads = 2)), 10), 7);
    job jobs[4];
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) {
        jobs[i].sum = 0;
        jobs[i].d = eg_dataset_retain(d);
        REQUIRE(pthread_create(&thread[i], NULL, sums_all, &jobs[i]) == 0);
    }
    eg_dataset_release(d);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK_NEAR(jobs[i].sum, 1770, 0);
    }
    CHECK(calls >= 60 && calls <= 240);
}
#endif

TEST(a_dataset_given_away_twice_is_refused) {
    eg_dataset *range = eg_dataset_range(0, 7, 1), *batches = eg_dataset_batch(range, 3);
    CHECK_ERROR(eg_dataset_batch(range, 2), EG_ERROR_STATE,
                "eg_dataset_batch: the dataset belongs to another stage already; eg_dataset_retain it");
    eg_dataset *other = eg_dataset_take(eg_dataset_retain(range), 1);
    CHECK(other != NULL);
    eg_dataset_release(batches);
    eg_dataset *again = eg_dataset_batch(eg_dataset_retain(range), 2);
    CHECK(again != NULL);
    eg_dataset_release(other);
    eg_dataset_release(again);
}
