// Datasets at their edges: what each function refuses and how it says so, specifications that say little, sizes that
// are none, positions in odd places, and elements that a device fetches itself.
#include "test.h"
#include <time.h>

typedef struct seen { int n; double value[64]; eg_status last; } seen;
static seen look_on(eg_iterator *it, int most) {  // at most so many elements, their first components strung together
    seen s;
    memset(&s, 0, sizeof s);
    s.last = EG_NEXT;
    for (int i = 0; i < most; i++) {
        EG_SCOPE;
        eg_tensor *out[EG_MAX_COMPONENTS];
        s.last = eg_iterator_next(it, out);
        if (s.last != EG_NEXT) break;
        const double *v = (const double *)eg_data(eg_cast(out[0], EG_FLOAT64));
        for (int64_t k = 0; v && k < eg_size(out[0]) && s.n < 64; k++) s.value[s.n++] = v[k];
    }
    return s;
}
static seen look(eg_dataset *d) {                             // d is released
    eg_iterator *it = d ? eg_iterator_new(d) : NULL;
    seen s = { 0, { 0 }, EG_FAILED };
    if (it) s = look_on(it, 64);
    eg_iterator_release(it);
    eg_dataset_release(d);
    return s;
}
static eg_dataset *numbers(int64_t n) { return eg_dataset_range(0, n, 1); }
static eg_dataset *rows(int64_t n, int64_t columns) {
    return eg_dataset_from_slices(eg_reshape(eg_range(EG_FLOAT32, 0, (double)(n * columns), 1), EG_SHAPE(n, columns)));
}

// What a generator gives: the tensors of a list, one by one.
typedef struct given { eg_tensor **list; int n; } given;
static eg_status gives(int64_t i, eg_tensor **out, void *user) {
    const given *g = (const given *)user;
    if (i >= g->n) return EG_END_OF_SEQUENCE;
    out[0] = g->list[i];
    return EG_NEXT;
}
// of a dtype and a shape that are not known
static eg_dataset *generated(given *g) { return eg_dataset_from_generator(gives, g, 1, NULL); }
static eg_tensor *same(eg_tensor *const *in, void *user) { (void)user; return in[0]; }
static eg_tensor *none_of_them(eg_tensor *const *in, void *user) { (void)in; (void)user; return eg_scalar(0); }
static eg_tensor *all_of_them(eg_tensor *const *in, void *user) { (void)in; (void)user; return eg_scalar(1); }
static eg_dataset *twice(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_dataset_repeat(eg_dataset_from_tensors(in[0]), 2);
}
static eg_dataset *no_dataset(eg_tensor *const *in, void *user) { (void)in; (void)user; return NULL; }
static eg_dataset *unknown_number(void) { return eg_dataset_filter(numbers(9), all_of_them, NULL); }
static eg_dataset *endless(void) { return eg_dataset_repeat(numbers(2), -1); }

TEST(options_are_named) {
    eg_map_options m; eg_batch_options b; eg_shuffle_options s; eg_interleave_options i; eg_csv_options c;
    const char *path = "no.csv";
    memset(&m, 0, sizeof m); memset(&b, 0, sizeof b); memset(&s, 0, sizeof s); memset(&i, 0, sizeof i);
    memset(&c, 0, sizeof c);
    m.canary = b.canary = s.canary = i.canary = c.canary = 3;
    CHECK_ERROR((eg_dataset_map_one)(numbers(2), same, NULL, m), EG_ERROR_ARGUMENT,
                "eg_dataset_map: options are given by name");
    CHECK_ERROR((eg_dataset_batch)(numbers(2), 2, b), EG_ERROR_ARGUMENT, "eg_dataset_batch: options are given by name");
    CHECK_ERROR((eg_dataset_padded_batch)(numbers(2), 2, b), EG_ERROR_ARGUMENT,
                "eg_dataset_padded_batch: options are given by name");
    CHECK_ERROR((eg_dataset_shuffle)(numbers(2), 2, s), EG_ERROR_ARGUMENT,
                "eg_dataset_shuffle: options are given by name");
    CHECK_ERROR((eg_dataset_interleave)(numbers(2), twice, NULL, i), EG_ERROR_ARGUMENT,
                "eg_dataset_interleave: options are given by name");
    CHECK_ERROR((eg_dataset_csv)(&path, 1, c), EG_ERROR_ARGUMENT, "eg_dataset_csv: options are given by name");
}
TEST(numbers_that_are_refused) {
    eg_tensor *eight[9];
    for (int k = 0; k < 9; k++) eight[k] = eg_zeros(EG_FLOAT32, EG_SHAPE(1));
    CHECK_ERROR(eg_dataset_interleave(numbers(2), twice, NULL, .cycle = 65537), EG_ERROR_ARGUMENT,
                "eg_dataset_interleave: .cycle is 65537; it must be at least 1 and at most 65536");
    CHECK_ERROR(eg_dataset_interleave(numbers(2), twice, NULL, .block = -1), EG_ERROR_ARGUMENT,
                "eg_dataset_interleave: .block is -1; it must be at least 1");
    CHECK_ERROR(eg_dataset_interleave(numbers(2), NULL, NULL), EG_ERROR_ARGUMENT, "the function is NULL");
    CHECK_ERROR(eg_dataset_map(numbers(2), same, NULL, .threads = 1025), EG_ERROR_ARGUMENT,
                "eg_dataset_map: .threads is 1025; it must be at least 0 and at most 1024");
    CHECK_ERROR(eg_dataset_prefetch(numbers(2), (1 << 24) + 1), EG_ERROR_ARGUMENT, "16777217 elements");
    CHECK_ERROR(eg_dataset_from_windows(eg_ones(EG_FLOAT32, EG_SHAPE(3)), 1, 0), EG_ERROR_ARGUMENT,
                "size 1 and shift 0");
    CHECK_ERROR(eg_dataset_take(numbers(2), -2), EG_ERROR_ARGUMENT, "eg_dataset_take: -2 is no count");
    CHECK_ERROR(eg_dataset_shard(numbers(2), 0, 0), EG_ERROR_ARGUMENT, "eg_dataset_shard: there is no part 0 among 0");
    CHECK_ERROR(eg_dataset_shard(numbers(2), 3, 3), EG_ERROR_ARGUMENT, "no part 3 among 3; parts are counted from 0");
    CHECK_ERROR(eg_dataset_shard(numbers(2), 3, -1), EG_ERROR_ARGUMENT, "no part -1 among 3");
    CHECK_ERROR(eg_dataset_enumerate(eg_dataset_from_tensors_of(eight, 8)), EG_ERROR_ARGUMENT,
                "elements of 8 components have no room for one more");
    CHECK_ERROR(eg_dataset_zip(eg_dataset_from_tensors_of(eight, 8), numbers(1)), EG_ERROR_ARGUMENT,
                "more than 8 components together");
    eg_dataset *nine[9];
    for (int k = 0; k < 9; k++) nine[k] = numbers(k);
    CHECK_ERROR(eg_dataset_zip_of(nine, 9), EG_ERROR_ARGUMENT, "9 datasets are not between 1 and 8");
    const eg_spec specs[9] = { { EG_NO_DTYPE, { -1, { 0 } } } };
    CHECK_ERROR(eg_iterator_from_specs(specs, 0), EG_ERROR_ARGUMENT, "0 components");
    CHECK_ERROR(eg_iterator_from_specs(specs, 9), EG_ERROR_ARGUMENT, "9 components");
    eg_dataset *d = numbers(3);
    CHECK_ERROR(eg_dataset_spec(d, -1), EG_ERROR_INDEX, "no component -1; the elements have 1");
    eg_dataset_release(d);
    eg_tensor *deep = eg_ones(EG_FLOAT32, EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    CHECK_ERROR(eg_dataset_batch(eg_dataset_from_tensors(deep), 2), EG_ERROR_SHAPE,
                "eg_dataset_batch: component 0 has rank 8 already");
    given g = { &deep, 1 };
    CHECK_ERROR(look(eg_dataset_batch(generated(&g), 2)), EG_ERROR_SHAPE,
                "component 0 has rank 8 already, a batch of it would have more");
}
TEST(how_many_there_are) {
    const struct { int line; eg_dataset *d; int64_t want; } of[] = {
        { __LINE__, eg_dataset_take(numbers(5), -1), 5 }, { __LINE__, eg_dataset_take(unknown_number(), 0), 0 },
        { __LINE__, eg_dataset_take(unknown_number(), 4), EG_UNKNOWN },
        { __LINE__, eg_dataset_take(endless(), 4), 4 }, { __LINE__, eg_dataset_skip(numbers(5), -1), 0 },
        { __LINE__, eg_dataset_skip(endless(), 4), EG_INFINITE },
        { __LINE__, eg_dataset_skip(numbers(5), 9), 0 },
        { __LINE__, eg_dataset_shard(numbers(9), 4, 0), 3 }, { __LINE__, eg_dataset_shard(numbers(9), 4, 1), 2 },
        { __LINE__, eg_dataset_shard(numbers(0), 4, 1), 0 },
        { __LINE__, eg_dataset_shard(endless(), 4, 1), EG_INFINITE },
        { __LINE__, eg_dataset_shard(unknown_number(), 4, 1), EG_UNKNOWN },
        { __LINE__, eg_dataset_filter(numbers(0), all_of_them, NULL), 0 },
        { __LINE__, eg_dataset_zip(endless(), numbers(3)), 3 }, { __LINE__, eg_dataset_zip(numbers(3), endless()), 3 },
        { __LINE__, eg_dataset_zip(numbers(3), numbers(2)), 2 },
        { __LINE__, eg_dataset_zip(unknown_number(), numbers(0)), 0 },
        { __LINE__, eg_dataset_zip(numbers(0), unknown_number()), 0 },
        { __LINE__, eg_dataset_zip(numbers(3), unknown_number()), EG_UNKNOWN },
        { __LINE__, eg_dataset_zip(endless(), endless()), EG_INFINITE },
        { __LINE__, eg_dataset_concatenate(numbers(3), endless()), EG_INFINITE },
        { __LINE__, eg_dataset_concatenate(endless(), numbers(3)), EG_INFINITE },
        { __LINE__, eg_dataset_concatenate(numbers(3), unknown_number()), EG_UNKNOWN },
        { __LINE__, eg_dataset_concatenate(unknown_number(), numbers(3)), EG_UNKNOWN },
        { __LINE__, eg_dataset_concatenate(numbers(INT64_MAX), numbers(INT64_MAX)), EG_UNKNOWN },
        { __LINE__, eg_dataset_repeat(numbers(INT64_MAX), 3), EG_INFINITE },
        { __LINE__, eg_dataset_repeat(unknown_number(), 3), EG_UNKNOWN },
        { __LINE__, eg_dataset_repeat(numbers(3), 0), 0 },
        { __LINE__, eg_dataset_batch(unknown_number(), 4), EG_UNKNOWN },
        { __LINE__, eg_dataset_batch(numbers(9), 4, .drop_remainder = true), 2 },
        { __LINE__, eg_dataset_unbatch(rows(0, 3)), 0 }, { __LINE__, eg_dataset_unbatch(rows(4, 3)), 12 },
        { __LINE__, eg_dataset_unbatch(eg_dataset_batch(numbers(7), 4)), EG_UNKNOWN },
        { __LINE__, eg_dataset_unbatch(eg_dataset_from_tensors(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2)))), 0 },
        { __LINE__, eg_dataset_unbatch(eg_dataset_repeat(rows(4, 3), -1)), EG_INFINITE },
        { __LINE__, eg_dataset_unbatch(eg_dataset_batch(numbers(INT64_MAX), INT64_MAX)), INT64_MAX },
        { __LINE__, eg_dataset_unbatch(eg_dataset_repeat(eg_dataset_from_tensors(eg_zeros(EG_UINT8, EG_SHAPE(3))),
                                                         INT64_MAX)), EG_UNKNOWN },
        { __LINE__, eg_dataset_from_windows(eg_zeros(EG_UINT8, EG_SHAPE(3)), 4, 1), 0 } };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        test_int(__FILE__, of[k].line, "cardinality", eg_dataset_cardinality(of[k].d), of[k].want);
        eg_dataset_release(of[k].d);
    }
    CHECK_INT(look(eg_dataset_skip(numbers(5), -1)).last, EG_END_OF_SEQUENCE);
    CHECK_INT(look(eg_dataset_unbatch(rows(0, 3))).last, EG_END_OF_SEQUENCE);
}

// ---- what is known of elements

TEST(iterators_of_specifications_that_say_little) {
    const struct { eg_spec spec; bool batch; eg_error_code code; const char *error; } cases[] = {
        { { EG_NO_DTYPE, { -1, { 0 } } }, false, EG_OK, NULL },
        { { EG_INT64, { -1, { 0 } } }, true, EG_OK, NULL },
        { { EG_NO_DTYPE, { 1, { -1 } } }, true, EG_OK, NULL },
        { { EG_INT64, { 1, { 2 } } }, true, EG_OK, NULL },
        { { EG_FLOAT32, { -1, { 0 } } }, false, EG_ERROR_DTYPE,
          "component 0 is float32 of any shape in one dataset and int64 [] in the other" },
        { { EG_NO_DTYPE, { 1, { 3 } } }, true, EG_ERROR_SHAPE,
          "component 0 is any dtype [3] in one dataset and int64 [2] in the other" },
        { { EG_INT64, { 2, { -1, -1 } } }, true, EG_ERROR_SHAPE,
        "component 0 is int64 [-1, -1] in one dataset and int64 [2] in the other" } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        eg_iterator *it = eg_iterator_from_specs(&cases[k].spec, 1);
        eg_dataset *d = cases[k].batch ? eg_dataset_batch(numbers(4), 2) : numbers(4);
        bool ok = eg_iterator_set(it, d);
        CHECK(ok == !cases[k].error);
        CHECK_INT(eg_error(), cases[k].code);
        if (cases[k].error) CHECK_CONTAINS(eg_error_message(), cases[k].error);
        eg_error_clear();
        if (ok) CHECK_NEAR(look_on(it, 9).value[3], 3, 0);
        eg_iterator_release(it);
        eg_dataset_release(d);
    }
}
TEST(specifications_of_what_is_joined) {
    eg_tensor *x[2] = { eg_scalar(1), eg_ones(EG_INT32, EG_SHAPE(2)) };
    given g = { x, 2 };
    const eg_spec open = { EG_FLOAT32, { 1, { -1 } } };
    eg_dataset *d = eg_dataset_concatenate(generated(&g), numbers(2));
    CHECK(eg_dataset_spec(d, 0).dtype == EG_INT64 && eg_dataset_spec(d, 0).shape.rank == -1);
    CHECK_ERROR(look(d), EG_ERROR_DTYPE, "eg_dataset_concatenate (stage 3 of 3, element 0): component 0 is float32 []");
    d = eg_dataset_concatenate(rows(2, 3), eg_dataset_from_slices(eg_zeros(EG_FLOAT32, EG_SHAPE(2))));
    CHECK(eg_dataset_spec(d, 0).dtype == EG_FLOAT32 && eg_dataset_spec(d, 0).shape.rank == -1);
    CHECK_INT(look(d).n, 8);
    d = eg_dataset_concatenate(rows(2, 3), eg_dataset_map(rows(2, 3), same, NULL, .specs = &open));
    CHECK(eg_dataset_spec(d, 0).shape.rank == 1 && eg_dataset_spec(d, 0).shape.dims[0] == -1);
    CHECK_INT(look(d).n, 12);
    d = eg_dataset_batch(generated(&g), 1);                   // of what is unknown a batch is
    CHECK(eg_dataset_spec(d, 0).dtype == EG_NO_DTYPE && eg_dataset_spec(d, 0).shape.rank == -1);
    CHECK_ERROR(look(d), EG_ERROR_DTYPE, "eg_iterator_next: component 0 is int32 [1, 2] (from eg_dataset_batch), but "
                                         "elements of this iterator are float32 [-1]");
    d = eg_dataset_unbatch(eg_dataset_batch(generated(&g), 1));
    CHECK(eg_dataset_spec(d, 0).shape.rank == -1);
    CHECK_ERROR(look(d), EG_ERROR_DTYPE, "component 0 is int32 [2]");
}

static eg_tensor *as_float(eg_tensor *const *in, void *user) {
    ++*(int *)user;
    return eg_cast(in[0], EG_FLOAT32);
}
static eg_tensor *as_pair(eg_tensor *const *in, void *user) {
    ++*(int *)user;
    return eg_stack(EG_TENSORS(in[0], in[0]), 0);
}
TEST(what_is_concatenated_has_one_dtype_also_where_it_comes_out_late) {
    int calls = 0;
    eg_dataset *d = eg_dataset_concatenate(eg_dataset_map(numbers(2), as_float, &calls),
                                           eg_dataset_map(numbers(2), as_pair, &calls));
    d = eg_dataset_map(d, as_float, &calls);                  // which would hide it
    CHECK_INT(calls, 0);                                      // nothing runs before it is asked for
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK(eg_iterator_next(it, out) == EG_NEXT && eg_iterator_next(it, out) == EG_NEXT);
    CHECK_INT(calls, 4);
    CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_DTYPE,
                "eg_dataset_concatenate (stage 5 of 6, element 2): component 0 is int64 [2]");
    eg_iterator_release(it);
    eg_dataset_release(d);
    const eg_spec unknown = { EG_NO_DTYPE, { -1, { 0 } } };   // shapes may differ, as they may where they are known
    d = eg_dataset_concatenate(numbers(2), eg_dataset_map(numbers(2), as_pair, &calls, .specs = &unknown));
    CHECK(eg_dataset_spec(d, 0).dtype == EG_INT64);
    CHECK_INT(look(d).n, 6);
    // the second's dtype is known from the start
    d = eg_dataset_concatenate(eg_dataset_map(numbers(2), as_float, &calls), numbers(2));
    CHECK_ERROR(look(d), EG_ERROR_DTYPE,
                "element 0): component 0 is float32 [] (from eg_cast), but elements of these datasets are int64");
}
TEST(an_iterator_learns_its_structure_from_its_first_element) {
    int calls = 0;
    const eg_spec unknown = { EG_NO_DTYPE, { -1, { 0 } } };
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_dataset *floats = eg_dataset_map(numbers(3), as_float, &calls),
               *pairs = eg_dataset_map(numbers(3), as_pair, &calls);
    eg_dataset *known = numbers(3), *wide = eg_dataset_batch(eg_dataset_map(numbers(4), as_pair, &calls), 3);
    for (int kind = 0; kind < 2; kind++) {
        eg_iterator *it = kind ? eg_iterator_from_specs(&unknown, 1) : eg_iterator_new(floats);
        CHECK(eg_iterator_set(it, pairs) && eg_iterator_set(it, floats));      // nothing has come yet
        CHECK(eg_iterator_next(it, out) == EG_NEXT);
        CHECK_ERROR(eg_iterator_set(it, known), EG_ERROR_DTYPE,
                    "eg_iterator_set: component 0 is float32 [] in one dataset and int64 [] in the other");
        CHECK(eg_iterator_next(it, out) == EG_NEXT && eg_item(out[0]) == 1);   // it stays where it was
        int before = calls;
        CHECK(eg_iterator_set(it, pairs));                    // nobody knows yet
        CHECK_INT(calls, before);
        CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_DTYPE, "eg_iterator_next: component 0 is int64 [2]");
        CHECK(!out[0]);
        CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_STATE, "failed before");
        CHECK(eg_iterator_set(it, floats) && eg_iterator_next(it, out) == EG_NEXT);
        eg_iterator_release(it);
    }
    eg_iterator *it = eg_iterator_new(wide);  // extents may vary: the last batch is smaller, other datasets have others
    CHECK_INT(look_on(it, 9).n, 8);
    CHECK_ERROR(eg_iterator_set(it, known), EG_ERROR_SHAPE,
                "component 0 is int64 [-1, -1] in one dataset and int64 [] in the other");
    eg_iterator_release(it);
    eg_dataset_release(floats);
    eg_dataset_release(pairs);
    eg_dataset_release(known);
    eg_dataset_release(wide);
}
static bool gives_three(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = out[1] = out[2] = in[0];
    return true;
}
static eg_status makes_two(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    out[0] = out[1] = eg_scalar(1);
    return i < 2 ? EG_NEXT : EG_END_OF_SEQUENCE;
}
static eg_status makes_one(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_scalar(1);
    return i < 2 ? EG_NEXT : EG_END_OF_SEQUENCE;
}
TEST(a_function_gives_no_more_than_was_announced) {
    for (int threads = 0; threads < 3; threads += 2) {
        CHECK_ERROR(look(eg_dataset_map(numbers(2), gives_three, NULL, .threads = threads)), EG_ERROR_ARGUMENT,
                    "eg_dataset_map (stage 2 of 2, element 0): the function set component 1, but elements have 1 here; "
                    ".components says how many there are");
        CHECK_ERROR(look(eg_dataset_map(numbers(2), gives_three, NULL, .components = 2, .threads = threads)),
                    EG_ERROR_ARGUMENT, "the function set component 2, but elements have 2 here");
        CHECK_INT(look(eg_dataset_map(numbers(2), gives_three, NULL, .components = 3, .threads = threads)).n, 2);
    }
    CHECK_ERROR(look(eg_dataset_from_generator(makes_two, NULL, 1, NULL)), EG_ERROR_ARGUMENT,
                "eg_dataset_from_generator (stage 1 of 1, element 0): the function set component 1, but elements "
                "have 1 here; n says how many there are");
    CHECK_ERROR(look(eg_dataset_from_generator(makes_one, NULL, 2, NULL)), EG_ERROR_NULL,
                "the function left component 1 of 2 NULL; n says how many there are");
}
TEST(what_a_function_gives_is_held_against_its_specification) {
    const struct { eg_spec spec; eg_error_code code; const char *error; } cases[] = {
        { { EG_FLOAT32, { 1, { 3 } } }, EG_OK, "" }, { { EG_NO_DTYPE, { 1, { -1 } } }, EG_OK, "" },
        { { EG_FLOAT32, { -1, { 0 } } }, EG_OK, "" },
        { { EG_INT64, { 1, { 3 } } }, EG_ERROR_DTYPE, "which was declared int64 [3]" },
        { { EG_INT64, { -1, { 0 } } }, EG_ERROR_DTYPE, "which was declared int64 of any shape" },
        { { EG_FLOAT32, { 1, { 4 } } }, EG_ERROR_SHAPE, "which was declared float32 [4]" },
        { { EG_NO_DTYPE, { 1, { 4 } } }, EG_ERROR_SHAPE, "which was declared any dtype [4]" },
        { { EG_FLOAT32, { 0, { 0 } } }, EG_ERROR_SHAPE, "the function gave float32 [3]" } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int threads = 0; threads < 3; threads += 2) {
            seen s = look(eg_dataset_map(rows(2, 3), same, NULL, .specs = &cases[k].spec, .threads = threads));
            CHECK_INT(eg_error(), cases[k].code);
            CHECK_INT(s.n, cases[k].code == EG_OK ? 6 : 0);
            if (cases[k].code != EG_OK) CHECK_CONTAINS(eg_error_message(), cases[k].error);
            eg_error_clear();
        }
}
TEST(batches_of_elements_that_differ) {
    eg_tensor *a = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *b = eg_ones(EG_INT32, EG_SHAPE(2)),
              *c = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *none = eg_ones(EG_FLOAT32, EG_SHAPE(0));
    eg_tensor *ab[2] = { a, b }, *ac[2] = { a, c }, *an[2] = { a, none }, *nn[2] = { none, none };
    given dtypes = { ab, 2 }, ranks = { ac, 2 }, empty = { an, 2 }, all_empty = { nn, 2 }, scalar = { NULL, 1 };
    CHECK_ERROR(look(eg_dataset_batch(generated(&dtypes), 2)), EG_ERROR_DTYPE, "component 0 is float32 [2] (from eg_");
    CHECK_ERROR(look(eg_dataset_batch(generated(&ranks), 2)), EG_ERROR_SHAPE,
                "component 0 is [2] in its first and [2, 1] in its element 1");
    CHECK_ERROR(look(eg_dataset_padded_batch(generated(&ranks), 2)), EG_ERROR_SHAPE,
                "component 0 is [2] in its first and [2, 1] in its element 1");
    seen s = look(eg_dataset_padded_batch(generated(&empty), 2, .padding_value = 7));
    CHECK(s.n == 4 && s.value[0] == 1 && s.value[1] == 1 && s.value[2] == 7 && s.value[3] == 7);
    CHECK(look(eg_dataset_padded_batch(generated(&all_empty), 2)).last == EG_END_OF_SEQUENCE);
    CHECK(look(eg_dataset_batch(generated(&all_empty), 2)).last == EG_END_OF_SEQUENCE);
    eg_tensor *one = eg_scalar(1);
    scalar.list = &one;
    CHECK_ERROR(look(eg_dataset_unbatch(generated(&scalar))), EG_ERROR_SHAPE,
                "components have not as many rows: 0 is [] and 0 is []");
}
TEST(functions_that_return_nothing) {
    CHECK_ERROR(look(eg_dataset_interleave(numbers(2), no_dataset, NULL)), EG_ERROR_NULL,
                "eg_dataset_interleave (stage 2 of 2, element 0): the function returned NULL");
    eg_iterator *it = eg_iterator_initializable(no_dataset, NULL);
    CHECK_ERROR(eg_iterator_feed(it, NULL), EG_ERROR_NULL, "eg_iterator_feed: the function returned NULL");
    eg_iterator_release(it);
}
static eg_dataset *two_kinds(eg_tensor *const *feed, void *user) {
    (void)user;
    int64_t kind = eg_item_int(feed[0]);
    return kind == 0 ? numbers(3) : kind == 1 ? rows(2, 2) : eg_dataset_range(0, 1, 0);
}
TEST(a_fed_iterator_keeps_its_structure) {
    eg_iterator *it = eg_iterator_initializable(two_kinds, NULL);
    eg_tensor *feed[3] = { eg_scalar_of(EG_INT64, 0), eg_scalar_of(EG_INT64, 1), eg_scalar_of(EG_INT64, 2) };
    CHECK(eg_iterator_feed(it, &feed[0]));
    CHECK_INT(look_on(it, 1).n, 1);
    CHECK_ERROR(eg_iterator_feed(it, &feed[1]), EG_ERROR_DTYPE,
                "eg_iterator_feed: component 0 is int64 [] in one dataset and float32 [2] in the other");
    CHECK_ERROR(eg_iterator_feed(it, &feed[2]), EG_ERROR_ARGUMENT, "eg_dataset_range: the step must not be 0");
    CHECK_NEAR(look_on(it, 1).value[0], 1, 0);                // it goes on where it was
    eg_iterator_release(it);
}
TEST(handles_are_taken_off_their_list_anywhere) {
    for (int first = 0; first < 3; first++) {
        eg_dataset *d = numbers(3);
        eg_iterator *it[3];
        eg_tensor *handle[3], *out[EG_MAX_COMPONENTS];
        for (int k = 0; k < 3; k++) handle[k] = eg_iterator_handle(it[k] = eg_iterator_new(d));
        eg_iterator_release(it[first]);
        for (int k = 0; k < 3; k++)
            if (k == first)
                CHECK_ERROR(eg_iterator_next_by_handle(handle[k], out), EG_ERROR_ARGUMENT,
                            "there is no iterator with the handle");
            else CHECK_INT(eg_iterator_next_by_handle(handle[k], out), EG_NEXT);
        for (int k = 0; k < 3; k++) if (k != first) eg_iterator_release(it[k]);
        eg_dataset_release(d);
    }
}

// ---- positions in odd places

static eg_dataset *none_without_end(void) {
    return eg_dataset_repeat(eg_dataset_filter(numbers(3), none_of_them, NULL), -1);
}
static eg_dataset *make(int k) {
    eg_tensor *empty = eg_zeros(EG_FLOAT32, EG_SHAPE(5, 0));
    switch (k) {
        case 0: return numbers(7);
        case 1: return eg_dataset_repeat(numbers(4), 3);
        case 2: return eg_dataset_take(eg_dataset_repeat(numbers(4), -1), 19);
        case 3: return eg_dataset_take(numbers(7), -1);
        case 4: return eg_dataset_skip(numbers(7), 2);
        case 5: return eg_dataset_skip(numbers(7), -1);
        case 6: return eg_dataset_concatenate(numbers(3), eg_dataset_concatenate(numbers(0), numbers(4)));
        case 7: return eg_dataset_zip(numbers(5), numbers(3));
        case 8: return eg_dataset_batch(numbers(10), 3, .drop_remainder = true);
        case 9: return eg_dataset_batch(numbers(10), 3);
        case 10: return eg_dataset_unbatch(eg_dataset_batch(numbers(7), 3));
        case 11: return eg_dataset_cache(eg_dataset_map(numbers(6), same, NULL));
        case 12: return eg_dataset_prefetch(eg_dataset_map(numbers(6), same, NULL, .threads = 2), 2);
        case 13: return eg_dataset_shuffle(numbers(9), 100, .seed = 3);
        case 14: return eg_dataset_shuffle(none_without_end(), 4, .seed = 3);
        case 15: return eg_dataset_shuffle(unknown_number(), 4, .seed = 3);
        case 16: return eg_dataset_interleave(numbers(5), twice, NULL, .cycle = 2, .block = 2);
        case 17: return eg_dataset_from_windows(eg_range(EG_FLOAT32, 0, 9, 1), 3, 2);
        case 18: return eg_dataset_from_tensors(eg_range(EG_FLOAT32, 0, 3, 1));
        case 19: return eg_dataset_from_slices(empty);
        case 20: return eg_dataset_repeat(eg_dataset_batch(numbers(5), 2), 2);
        case 21: return eg_dataset_repeat(unknown_number(), 2);
        case 22:
            return eg_dataset_shuffle(eg_dataset_take(eg_dataset_repeat(numbers(5), -1), 30), 4, .seed = 9,
                                      .no_reshuffle = true);
        case 23: return eg_dataset_prefetch(eg_dataset_prefetch(numbers(6), 1), 3);
        case 24: return eg_dataset_filter(numbers(6), all_of_them, NULL);
        case 25: return eg_dataset_skip(eg_dataset_repeat(numbers(4), 3), 5);
        case 26: return eg_dataset_repeat(numbers(0), -1);
        case 27: return eg_dataset_batch(eg_dataset_repeat(numbers(2), 3), INT64_MAX / 2);
        case 28: return eg_dataset_shard(numbers(14), 3, 1);
        case 29: return eg_dataset_shard(eg_dataset_map(numbers(2), same, NULL), 4, 3);
        case 30: return eg_dataset_prefetch(eg_dataset_shard(eg_dataset_repeat(numbers(4), 3), 2, 0), 2);
        default: return NULL;
    }
}
TEST(positions_everywhere) {
    for (int k = 0;; k++) {
        EG_SCOPE;
        eg_dataset *d = make(k);
        if (!d) break;
        eg_iterator *whole = eg_iterator_new(d);
        seen all = look_on(whole, 60);
        CHECK_INT(all.last, EG_END_OF_SEQUENCE);
        for (int at = 0; at < 25; at++) {                     // behind the end, too
            eg_iterator *it = eg_iterator_new(d), *other = eg_iterator_new(d);
            seen before = look_on(it, at);
            eg_tensor *position = eg_iterator_position(it);
            look_on(other, 60 - at);
            if (!eg_iterator_restore(other, position)) test_int(__FILE__, __LINE__, eg_error_message(), k, -1);
            seen rest = look_on(it, 60), again = look_on(other, 60);
            bool right = rest.n == again.n &&
                         rest.last == again.last && !memcmp(rest.value, again.value, (size_t)rest.n * sizeof(double)) &&
                         before.n + rest.n == all.n;
            if (!right) test_int(__FILE__, __LINE__, "the rest of pipeline (number) from element", k, at);
            eg_iterator_release(it);
            eg_iterator_release(other);
        }
        eg_iterator_release(whole);
        eg_dataset_release(d);
    }
}
// A position of any size over data without an end: it is found by arithmetic, or refused, and soon.
static eg_status without_end(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_scalar((double)i);
    return EG_NEXT;
}
static eg_dataset *lines(void) { const char *path = test_temp("three.txt"); return eg_dataset_text_lines(&path, 1); }
TEST(positions_that_are_forged) {
    FILE *f = fopen(test_temp("three.txt"), "wb");
    REQUIRE(f);
    fputs("1\n2\n3\n", f);
    fclose(f);
    // 2^62 is 1 more than a multiple of 3
    const struct { int line; eg_dataset *d; double next; const char *error; } list[] = {
        { __LINE__, eg_dataset_repeat(numbers(3), -1), 1, NULL },
        { __LINE__, eg_dataset_repeat(lines(), -1), '2', NULL },
        { __LINE__, eg_dataset_repeat(eg_dataset_shuffle(eg_dataset_skip(lines(), 2), 5, .seed = 3), -1), '3', NULL },
        { __LINE__, eg_dataset_take(eg_dataset_repeat(lines(), -1), INT64_MAX), '2', NULL },
        { __LINE__, eg_dataset_repeat(eg_dataset_map_one(lines(), same, NULL), -1), '2', NULL },
        { __LINE__, eg_dataset_zip(eg_dataset_repeat(numbers(3), -1), eg_dataset_repeat(lines(), -1)), 1, NULL },
        // 2^62 elements of three are more than can be counted
        { __LINE__, eg_dataset_shard(eg_dataset_repeat(numbers(3), -1), 2, 1), 0, "the data ends after" },
        { __LINE__, lines(), 0, "at most 1000000000" },
        { __LINE__, eg_dataset_repeat(unknown_number(), -1), 0,
          "eg_dataset_filter: the position is after 4611686018427387904 elements, which can only be stepped over one "
          "by one; at most 1000000000 are" },
        { __LINE__, eg_dataset_filter(endless(), all_of_them, NULL), 0, "eg_dataset_filter: " },
        { __LINE__, eg_dataset_from_generator(without_end, NULL, 1, NULL), 0, "eg_dataset_from_generator" },
        { __LINE__, eg_dataset_repeat(eg_dataset_from_generator(without_end, NULL, 1, NULL), -1), 0,
          "eg_dataset_from_generator" },
        { __LINE__, eg_dataset_repeat(eg_dataset_interleave(numbers(3), twice, NULL), -1), 0, "eg_dataset_interleave" },
        { __LINE__, eg_dataset_unbatch(eg_dataset_repeat(rows(3, 2), -1)), 0, "eg_dataset_unbatch" },
        { __LINE__, eg_dataset_shuffle(endless(), 7, .seed = 5), 0, "eg_dataset_shuffle" },
        { __LINE__, eg_dataset_prefetch(eg_dataset_shuffle(eg_dataset_repeat(lines(), -1), 7, .seed = 5), 2), 0,
          "at most 1000000000" },
        { __LINE__, eg_dataset_batch(endless(), 2), 0, "the data ends after" } };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        EG_SCOPE;
        eg_iterator *it = eg_iterator_new(list[k].d);
        eg_tensor *position = eg_iterator_position(it), *out[EG_MAX_COMPONENTS];
        unsigned char bytes[400];
        REQUIRE(eg_size(position) < 400);
        memcpy(bytes, eg_data(position), (size_t)eg_size(position));
        bytes[23] = 0x40;
        clock_t start = clock();
        bool ok = eg_iterator_restore(it, eg_from_data(EG_UINT8, eg_shape_of(position), bytes));
        if (clock() - start > 5 * CLOCKS_PER_SEC) test_say(__FILE__, list[k].line, "the restore", "takes long");
        if (ok != !list[k].error || (!ok && !strstr(eg_error_message(), list[k].error)))
            test_say(__FILE__, list[k].line, "the restore", eg_error_message());
        eg_error_clear();
        if (ok) CHECK(eg_iterator_next(it, out) == EG_NEXT && eg_item(eg_reshape(out[0], EG_SHAPE(1))) == list[k].next);
        else CHECK_INT(eg_iterator_next(it, out), EG_NEXT);    // the iterator is where it was
        eg_iterator_release(it);
        eg_dataset_release(list[k].d);
    }
}
// What is passed by arithmetic is where reading comes to.
TEST(rounds_of_files_are_counted_once) {
    for (int64_t n = 0; n < 14; n++) {
        EG_SCOPE;
        eg_dataset *d = eg_dataset_repeat(eg_dataset_shuffle(lines(), 3, .seed = 8), n % 2 ? -1 : 9);
        eg_iterator *read = eg_iterator_new(d), *other;
        look_on(read, (int)n);
        eg_tensor *position = eg_iterator_position(read);
        other = eg_iterator_new(d);
        CHECK(eg_iterator_restore(other, position));
        seen a = look_on(read, 8), b = look_on(other, 8);
        CHECK(a.n == 8 && b.n == 8 && !memcmp(a.value, b.value, sizeof a.value));
        eg_iterator_release(read);
        eg_iterator_release(other);
        eg_dataset_release(d);
    }
}
TEST(positions_that_are_spoiled) {
    eg_dataset *d = eg_dataset_shuffle(numbers(9), 4, .seed = 1);
    eg_iterator *it = eg_iterator_new(d);
    look_on(it, 2);
    eg_tensor *position = eg_iterator_position(it), *out[EG_MAX_COMPONENTS];
    unsigned char good[200], bytes[200];
    int64_t n = eg_size(position);
    memcpy(good, eg_data(position), (size_t)n);
    const struct { const char *what; int at; unsigned char value; int64_t size; eg_error_code code;
                   const char *error; } rows_of[] = {
        { "magic", 2, 'x', n, EG_ERROR_ARGUMENT, "is no position of an iterator" },
        { "cut", 0, 'e', n - 1, EG_ERROR_ARGUMENT, "is no position" },
        { "the head cut", 0, 'e', 39, EG_ERROR_ARGUMENT, "is no position" },
        { "more seeds than bytes", 31, 1, n, EG_ERROR_ARGUMENT, "is no position" },
        { "longer words than bytes", 39, 1, n, EG_ERROR_ARGUMENT, "is no position" },
        { "another length", 32, 3, n, EG_ERROR_ARGUMENT, "is no position" },
        { "a negative number of elements", 23, 0x80, n, EG_ERROR_ARGUMENT, "is no position" },
        { "no seeds", 24, 0, n, EG_ERROR_ARGUMENT, "is no position" },
        { "other words", (int)n - 1, '9', n, EG_ERROR_STATE,
          "the position belongs to another pipeline: \"range 9 1 > shuffle 9\", while this iterator reads "
          "\"range 9 1 > shuffle 4\"" } };
    for (size_t k = 0; k < sizeof rows_of / sizeof *rows_of; k++) {
        memcpy(bytes, good, (size_t)n);
        bytes[rows_of[k].at] = rows_of[k].value;
        CHECK_ERROR(eg_iterator_restore(it, eg_from_data(EG_UINT8, EG_SHAPE(rows_of[k].size), bytes)), rows_of[k].code,
                    rows_of[k].error);
    }
    CHECK_ERROR(eg_iterator_restore(it, eg_cast(position, EG_INT32)), EG_ERROR_ARGUMENT, "is no position");
    CHECK_ERROR(eg_iterator_restore(it, eg_expand_dims(position, 0)), EG_ERROR_ARGUMENT, "is no position");
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK(eg_iterator_restore(it, position));
    // A pipeline of more words than an error shows.
    eg_dataset *longer = numbers(9);
    for (int i = 0; i < 40; i++) longer = eg_dataset_take(longer, 100 + i);
    eg_iterator *other = eg_iterator_new(longer);
    CHECK_ERROR(eg_iterator_restore(it, eg_iterator_position(other)), EG_ERROR_STATE,
                "range 9 1 > take 100 > take 101");
    CHECK_ERROR(eg_iterator_restore(other, position), EG_ERROR_STATE,
                "shuffle 4\", while this iterator reads \"range 9 1 > take 100");
    eg_iterator_release(other);
    eg_dataset_release(longer);
    eg_iterator_release(it);
    eg_dataset_release(d);
}

// ---- elements on a device: what is read ahead is sent there beside its work (tests/guard.h)

#ifdef TEST_GUARD
static int64_t late_uploads(void) { return guard_tickets - guard_arrivals; }
static eg_dataset *pairs(void) {                              // a view that is no block, a vector, and one of nothing
    eg_tensor *x = eg_transpose(eg_reshape(eg_range(EG_FLOAT32, 0, 24, 1), EG_SHAPE(2, 12)));
    return eg_dataset_batch(eg_dataset_from_slices(x, eg_range(EG_INT64, 0, 12, 1),
                                                   eg_zeros(EG_FLOAT32, EG_SHAPE(12, 0))), 3);
}
TEST(elements_are_uploaded_ahead) {
    eg_dataset *same_here = pairs(), *d = eg_dataset_prefetch(eg_dataset_retain(same_here), 2);
    // as it should be; no upload begins; one of two does not; what was sent is lost
    for (int round = 0; round < 4; round++) {
        eg_iterator *it = eg_iterator_new(d), *plain = eg_iterator_new(same_here);
        eg_tensor *out[EG_MAX_COMPONENTS], *want[EG_MAX_COMPONENTS];
        int64_t before = guard_tickets;
        guard_uploads_fail = round == 1 ? 1000 : round == 2;
        for (int i = 0; i < 4; i++) {
            EG_SCOPE;
            if (round == 3 && i == 2) guard_arrivals_fail = 1;
            eg_status status = eg_iterator_next(it, out);
            CHECK_INT(eg_iterator_next(plain, want), EG_NEXT);
            if (round == 3 && i == 2) {
                CHECK_INT(status, EG_FAILED);
                CHECK(eg_error() == EG_ERROR_DEVICE && !out[0]);
                CHECK_CONTAINS(eg_error_message(),
                               "eg_dataset_prefetch (stage 3 of 3, element 2): guard:0: what was uploaded is lost");
                eg_error_clear();
                break;
            }
            CHECK_INT(status, EG_NEXT);
            CHECK_STR(eg_device_of(out[0]), "guard:0");
            for (int k = 0; k < 3; k++) CHECK_SAME(out[k], want[k], 0);
        }
        if (round == 0) CHECK(guard_tickets - before == 8);  // two of each element: of nothing there is nothing to send
        if (round == 1) CHECK_INT(guard_tickets, before);
        guard_uploads_fail = guard_arrivals_fail = 0;
        eg_iterator_release(it);
        eg_iterator_release(plain);
        CHECK_INT(late_uploads(), 0);
    }
    eg_iterator *it = eg_iterator_new(d);  // left in the midst of it: nothing is written to memory that went back
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    eg_iterator_release(it);
    CHECK_INT(late_uploads(), 0);
    eg_dataset_release(d);
    eg_dataset_release(same_here);
}
#endif
