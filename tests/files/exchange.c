// What goes to other programs and comes from them: TFRecord files, tf.Example, DLPack, pictures of files. The real
// consumers read it in check_summaries.sh and check_dlpack.sh.
#include "faults.h"
#include "fixtures/exchange.txt"       // made by TensorFlow: a tf.Example, a JPEG file

static bool write_bytes(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, n, f) == n;
    return f && fclose(f) == 0 && ok;
}
static eg_tensor *bytes_of(const void *data, int64_t n) { return eg_from_data(EG_UINT8, EG_SHAPE(n), data); }
static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

// ---- files and records

TEST(a_file_is_read_as_bytes) {
    const char *path = test_temp("bytes");
    REQUIRE(write_bytes(path, "a\0\377", 3));
    CHECK_TENSOR(eg_read_file(path), 0, 97, 0, 255);
    CHECK_DTYPE(eg_read_file(path), EG_UINT8);
    REQUIRE(write_bytes(path, "", 0));
    CHECK_SHAPE(eg_read_file(path), 0);
    CHECK_ERROR(eg_read_file(test_temp("not there")), EG_ERROR_FILE, "not there");
    CHECK_ERROR(eg_read_file(NULL), EG_ERROR_ARGUMENT, "NULL");
}

TEST(a_record_has_the_bytes_that_tensorflow_writes) {
    const char *path = test_temp("abc.tfrecord");
    eg_record_writer *w = eg_record_writer_open(path);
    CHECK(eg_record_writer_write(w, "abc", 3));
    CHECK(eg_record_writer_close(w));
    CHECK_ERROR(eg_record_writer_write(w, "abc", 3), EG_ERROR_STATE, "closed");
    CHECK_ERROR(eg_record_writer_close(w), EG_ERROR_STATE, "closed");
    eg_record_writer_release(w);
    CHECK_TENSOR(eg_read_file(path), 0, 3, 0, 0, 0, 0, 0, 0, 0, 0xb0, 0x99, 0x49, 0x0e, 'a', 'b', 'c', 0x6e, 0x57, 0xf1,
                 0x21);
}

TEST(what_a_record_writer_refuses) {
    CHECK_ERROR(eg_record_writer_open(NULL), EG_ERROR_ARGUMENT, "path is NULL");
    CHECK_ERROR(eg_record_writer_write(NULL, "abc", 3), EG_ERROR_NULL, "writer is NULL");
    CHECK_ERROR(eg_record_writer_close(NULL), EG_ERROR_NULL, "writer is NULL");
    eg_record_writer *w = eg_record_writer_open(test_temp("refused.tfrecord"));
    CHECK_ERROR(eg_record_writer_write(w, NULL, 3), EG_ERROR_NULL, "the record is NULL");
    CHECK_ERROR(eg_record_writer_write(w, "abc", -1), EG_ERROR_NULL, "-1 bytes");
    CHECK(eg_record_writer_write(w, NULL, 0));
    eg_record_writer_release(eg_record_writer_retain(w));
    eg_record_writer_release(w);
    eg_record_writer_release(NULL);
    CHECK_INT(eg_size(eg_read_file(test_temp("refused.tfrecord"))), 16);
}

TEST(a_disk_that_is_full_is_an_error) {
    FILE *full = fopen("/dev/full", "wb");
    if (!full) SKIP("there is no /dev/full");
    fclose(full);
    eg_record_writer *w = eg_record_writer_open("/dev/full");
    REQUIRE(w);
    bool ok = eg_record_writer_write(w, "abc", 3);
    ok = eg_record_writer_close(w) && ok;
    CHECK(!ok);
    CHECK_INT(eg_error(), EG_ERROR_FILE);
    CHECK_CONTAINS(eg_error_message(), "/dev/full");
    eg_error_clear();
    eg_record_writer_release(w);
}

#ifdef __linux__
#include <signal.h>
#include <sys/resource.h>
TEST(a_writer_stops_at_the_first_record_that_does_not_fit) {
    static char large[6000];
    struct rlimit old, few;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    few.rlim_cur = 1000;
    CHECK(eg_save_npy(eg_scalar(1), test_temp("full.tfrecord")));
    eg_record_writer *w = eg_record_writer_open(test_temp("full.tfrecord"));
    CHECK(eg_record_writer_write(w, "abc", 3));
    setrlimit(RLIMIT_FSIZE, &few);
    bool ok = eg_record_writer_write(w, large, sizeof large);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(!ok);
    CHECK_CONTAINS(eg_error_message(), "full.tfrecord: byte 19: cannot be written: ");
    eg_error_clear();
    CHECK_ERROR(eg_record_writer_write(w, "abc", 3), EG_ERROR_FILE, "an earlier record could not be written to ");
    CHECK_ERROR(CHECK_INT(eg_record_writer_close(w), 0), EG_ERROR_FILE,
                "eg_record_writer_close: a record could not be written to ");
    CHECK_ERROR(eg_record_writer_write(w, "abc", 3), EG_ERROR_STATE,
                "eg_record_writer_write: the file has been closed");
    CHECK_ERROR(eg_record_writer_close(w), EG_ERROR_STATE, "eg_record_writer_close: the file has been closed");
    eg_record_writer_release(w);
    CHECK(eg_record_writer_retain(NULL) == NULL);
    CHECK_NEAR(eg_item(eg_load_npy(test_temp("full.tfrecord"))), 1, 0);        // what stood there stays
}
#endif

// ---- tf.Example

static eg_tensor *example(void) {
    static const char *const names[] = {"pixels", "label", "weights", "flags"};
    eg_tensor *values[] = {eg_constant_of(EG_UINT8, EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 255),
                           eg_constant_of(EG_INT64, EG_SHAPE(1), -7),
                           eg_constant(EG_SHAPE(3), .5, -1.5, 1e30), eg_constant_of(EG_BOOL, EG_SHAPE(2), 1, 0)};
    return eg_example_serialize(names, values, 4);
}

TEST(an_example_is_read_back) {
    eg_feature spec[] = {{"pixels", EG_UINT8, EG_SHAPE(2, -1), NULL}, {"label", EG_INT64, EG_SCALAR, NULL},
                         {"weights", EG_FLOAT32, EG_SHAPE(-1), NULL},
                         {"flags", EG_INT64, EG_SHAPE(2), NULL}, {"pixels", EG_UINT8, EG_SCALAR, NULL},
                         {"other", EG_FLOAT32, EG_SCALAR, eg_scalar(3)}};
    eg_tensor *out[6];
    REQUIRE(eg_example_parse(example(), spec, 6, out));
    CHECK_SHAPE(out[0], 2, 3);
    CHECK_TENSOR(out[0], 0, 1, 2, 3, 4, 5, 255);
    CHECK_DTYPE(out[0], EG_UINT8);
    CHECK_INT(eg_rank(out[1]), 0);
    CHECK_INT(eg_item_int(out[1]), -7);
    CHECK_TENSOR(out[2], 0, .5, -1.5, 1e30f);
    CHECK_TENSOR(out[3], 0, 1, 0);
    CHECK_SHAPE(out[4], 6);
    CHECK_TENSOR(out[5], 0, 3);
    CHECK(eg_example_parse(example(), NULL, 0, NULL));
}

TEST(an_example_of_tensorflow_is_read) {
    eg_feature spec[] = {{"pixels", EG_UINT8, EG_SHAPE(3, 2), NULL}, {"label", EG_INT64, EG_SCALAR, NULL},
                         {"weights", EG_FLOAT32, EG_SHAPE(3), NULL}};
    eg_tensor *out[3];
    REQUIRE(eg_example_parse(bytes_of(tf_example, sizeof tf_example), spec, 3, out));
    CHECK_TENSOR(out[0], 0, 1, 2, 3, 4, 5, 255);
    CHECK_INT(eg_item_int(out[1]), -7);
    CHECK_TENSOR(out[2], 0, .5, -1.5, 1e30f);
    CHECK_INT(eg_size(example()), sizeof tf_example);        // the same, but for the order of the features
}

TEST(what_does_not_fit_an_example_is_an_error) {
    eg_tensor *e = example(), *out[2] = {e, e};
    eg_feature missing[] = {{"label", EG_INT64, EG_SCALAR, NULL}, {"absent", EG_INT64, EG_SCALAR, NULL}};
    CHECK_ERROR(eg_example_parse(e, missing, 2, out), EG_ERROR_FILE,
                "no feature 'absent', which has no default either; it has 'pixels' (bytes), 'label' (integers), "
                "'weights' (floats), 'flags' (integers)");
    eg_feature absent = {"absent", EG_INT64, EG_SCALAR, NULL};
    eg_tensor *many[64];
    char name[64][40];
    const char *names[64];
    for (int i = 0; i < 64; i++) {                           // more than an error has room for
        snprintf(name[i], sizeof name[i], "a feature with a long name %d", i);
        names[i] = name[i];
        many[i] = eg_ones(EG_INT64, EG_SHAPE(1));
    }
    CHECK_ERROR(eg_example_parse(eg_example_serialize(names, many, 64), &absent, 1, out), EG_ERROR_FILE,
                "it has 'a feature with a long name 0' (integers), ");
    CHECK(!out[0] && !out[1]);
    eg_feature wrong[] = {{"label", EG_FLOAT32, EG_SCALAR, NULL}};
    CHECK_ERROR(eg_example_parse(e, wrong, 1, out), EG_ERROR_DTYPE, "asked for as float32, but holds integers");
    eg_feature size[] = {{"weights", EG_FLOAT32, EG_SHAPE(2), NULL}};
    CHECK_ERROR(eg_example_parse(e, size, 1, out), EG_ERROR_SHAPE, "3 values, which do not fill shape [2]");
    eg_feature rest[] = {{"pixels", EG_UINT8, EG_SHAPE(4, -1), NULL}};
    CHECK_ERROR(eg_example_parse(e, rest, 1, out), EG_ERROR_SHAPE, "6 bytes");
    eg_feature huge[] = {{"pixels", EG_UINT8, EG_SHAPE(INT64_MAX, INT64_MAX), NULL}};
    CHECK_ERROR(eg_example_parse(e, huge, 1, out), EG_ERROR_SHAPE, "no shape");
    eg_feature strange[] = {{"label", EG_FLOAT64, EG_SCALAR, NULL}};
    CHECK_ERROR(eg_example_parse(e, strange, 1, out), EG_ERROR_DTYPE, "float64");
    eg_feature nameless[] = {{NULL, EG_INT64, EG_SCALAR, NULL}};
    CHECK_ERROR(eg_example_parse(e, nameless, 1, out), EG_ERROR_NULL, "name");
    CHECK_ERROR(eg_example_parse(NULL, missing, 2, out), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_example_parse(eg_scalar(1), missing, 2, out), EG_ERROR_DTYPE, "uint8 vector");
    CHECK_ERROR(eg_example_parse(e, NULL, 1, out), EG_ERROR_ARGUMENT, "NULL");
    CHECK_ERROR(eg_example_parse(bytes_of("\377\377\377", 3), missing, 1, out), EG_ERROR_FILE, "no tf.Example");
    CHECK_ERROR(eg_example_serialize(NULL, NULL, 1), EG_ERROR_ARGUMENT, "NULL");
    const char *none = NULL;
    CHECK_ERROR(eg_example_serialize(&none, &e, 1), EG_ERROR_NULL, "name 0");
    CHECK_INT(eg_size(eg_example_serialize(NULL, NULL, 0)), 2);
}

// What other writers do and ours does not: numbers not packed, fields and features in any order, fields that nobody
// knows.
TEST(examples_of_other_writers_are_read) {
    static const unsigned char unpacked[] = {0x0a, 0x1d, 0x0a, 0x0c, 0x12, 0x07, 0x1a, 0x05, 0x08, 0x03, 0x08, 0x80,
                                             0x01, 0x0a, 0x01, 'n',
                                             0x0a, 0x0d, 0x0a, 0x01, 'f', 0x12, 0x08, 0x12, 0x06, 0x0d, 0, 0, 0x80,
                                             0x3f, 0x78};
    eg_feature spec[] = {{"n", EG_INT64, EG_SHAPE(2), NULL}, {"f", EG_FLOAT32, EG_SCALAR, NULL}};
    eg_tensor *out[2];
    // the last byte makes field 15 of a float list, a varint that is missing: broken
    CHECK_ERROR(eg_example_parse(bytes_of(unpacked, sizeof unpacked), spec, 2, out), EG_ERROR_FILE, "broken");
    static const unsigned char whole[] = {0x12, 0x01, 'x', 0x0a, 0x1c, 0x0a, 0x0c, 0x12, 0x07, 0x1a, 0x05, 0x08, 0x03,
                                          0x08, 0x80, 0x01, 0x0a, 0x01, 'n',
                                          0x0a, 0x0c, 0x0a, 0x01, 'f', 0x12, 0x07, 0x12, 0x05, 0x0d, 0, 0, 0x80, 0x3f};
    REQUIRE(eg_example_parse(bytes_of(whole, sizeof whole), spec, 2, out));
    CHECK_TENSOR(out[0], 0, 3, 128);
    CHECK_TENSOR(out[1], 0, 1);
    static const unsigned char two[] = {0x0a, 0x0d, 0x0a, 0x0b, 0x0a, 0x01, 'b', 0x12, 0x06, 0x0a, 0x04, 0x0a, 0x00,
                                        0x0a, 0x00};
    eg_feature strings[] = {{"b", EG_UINT8, EG_SCALAR, NULL}};
    CHECK_ERROR(eg_example_parse(bytes_of(two, sizeof two), strings, 1, out), EG_ERROR_SHAPE, "2 strings");
}

// One feature "x" whose list of a kind (1 bytes, 2 floats, 3 integers) has these bytes.
static eg_tensor *feature_x(int kind, const char *list, int n) {
    unsigned char bytes[128] = { 0x0a, (unsigned char)(n + 9), 0x0a, (unsigned char)(n + 7), 0x0a, 1, 'x', 0x12,
                                 (unsigned char)(n + 2), (unsigned char)(kind << 3 | 2), (unsigned char)n };
    memcpy(bytes + 11, list, (size_t)n);
    return eg_from_data(EG_UINT8, EG_SHAPE(n + 11), bytes);
}
TEST(lists_of_values_that_are_odd) {
    const struct { int line, kind; const char *list; int n; eg_dtype dtype; eg_error_code code; const char *error;
                   int64_t size; } rows[] = {
        { __LINE__, 1, "\x0a\3abc", 5, EG_UINT8, EG_OK, NULL, 3 },
        { __LINE__, 1, "\x0a\0", 2, EG_UINT8, EG_OK, NULL, 0 },
        { __LINE__, 1, "\x10\5\x0a\1a", 5, EG_UINT8, EG_OK, NULL, 1 },
        { __LINE__, 1, "", 0, EG_UINT8, EG_ERROR_SHAPE, "feature 'x' has 0 strings of bytes", 0 },
        { __LINE__, 1, "\x0a\0\x0a\0", 4, EG_UINT8, EG_ERROR_SHAPE, "has 2 strings", 0 },
        { __LINE__, 1, "\x08\5", 2, EG_UINT8, EG_ERROR_FILE, "the record is broken at feature 'x'", 0 },
        { __LINE__, 1, "\x0a\5a", 3, EG_UINT8, EG_ERROR_FILE, "broken", 0 },
        { __LINE__, 2, "\x0a\4\0\0\x80\x3f\x0d\0\0\0\x40", 11, EG_FLOAT32, EG_OK, NULL, 2 },
        { __LINE__, 2, "\x0a\3abc", 5, EG_FLOAT32, EG_ERROR_FILE, "broken at feature 'x'", 0 },
        { __LINE__, 2, "\x08\1", 2, EG_FLOAT32, EG_ERROR_FILE, "broken at feature 'x'", 0 },
        { __LINE__, 3, "\x0d\0\0\0\0", 5, EG_INT64, EG_ERROR_FILE, "broken at feature 'x'", 0 },
        { __LINE__, 3, "\x0a\1\x80", 3, EG_INT64, EG_ERROR_FILE, "broken at feature 'x'", 0 },
        { __LINE__, 3, "\x0a\2\1\2\x08\3", 6, EG_INT64, EG_OK, NULL, 3 },
        { __LINE__, 3, "", 0, EG_INT64, EG_OK, NULL, 0 },
        { __LINE__, 4, "", 0, EG_INT64, EG_ERROR_FILE, "the record has no feature 'x'", 0 },
        { __LINE__, 1, "\x0a\1a", 3, EG_INT64, EG_ERROR_DTYPE, "asked for as int64, but holds bytes", 0 },
        { __LINE__, 2, "", 0, EG_UINT8, EG_ERROR_DTYPE, "asked for as uint8, but holds floats", 0 },
        { __LINE__, 3, "", 0, EG_FLOAT32, EG_ERROR_DTYPE, "asked for as float32, but holds integers", 0 } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        EG_SCOPE;
        eg_feature f = { "x", rows[k].dtype, { rows[k].dtype != EG_UINT8, { -1 } }, NULL };
        eg_tensor *out = NULL;
        bool ok = eg_example_parse(feature_x(rows[k].kind, rows[k].list, rows[k].n), &f, 1, &out);
        test_int(__FILE__, rows[k].line, "the error", eg_error(), rows[k].code);
        if (rows[k].error) test_contains(__FILE__, rows[k].line, "its words", eg_error_message(), rows[k].error);
        eg_error_clear();
        CHECK(ok == !rows[k].error && (out != NULL) == ok);
        if (ok) test_int(__FILE__, rows[k].line, "its size", eg_size(out), rows[k].size);
    }
}
TEST(shapes_that_a_feature_may_have) {
    const struct { int64_t n; eg_shape shape; const char *error; } rows[] = {
        { 6, { 2, { 2, -1 } }, NULL }, { 6, { 3, { 1, 2, 3 } }, NULL }, { 0, { 2, { 0, -1 } }, NULL },
        { 0, { 2, { 4, -1 } }, NULL }, { 1, { 0, { 0 } }, NULL },
        { 6, { 2, { 4, -1 } }, "has 6 values, which do not fill shape [4, -1]" },
        { 3, { 2, { 0, -1 } }, "do not fill shape" }, { 6, { 1, { 5 } }, "do not fill shape [5]" },
        { 6, { 2, { -1, -1 } }, "[-1, -1] is no shape for 'x'" }, { 6, { 1, { -2 } }, "[-2] is no shape for 'x'" },
        { 6, { 3, { 1ll << 40, 1ll << 40, -1 } }, "is no shape for 'x'" },
        { 6, { 9, { 1 } }, "'x' has a shape of rank 9" }, { 6, { -1, { 1 } }, "'x' has a shape of rank -1" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        EG_SCOPE;
        char list[40] = "\x0a";
        list[1] = (char)rows[k].n;
        memset(list + 2, 1, (size_t)rows[k].n);
        eg_feature f = { "x", EG_INT64, rows[k].shape, NULL };
        eg_tensor *out = NULL;
        bool ok = eg_example_parse(feature_x(3, list, (int)rows[k].n + 2), &f, 1, &out);
        CHECK(ok == !rows[k].error);
        if (ok) CHECK_INT(eg_size(out), rows[k].n);
        else CHECK_CONTAINS(eg_error_message(), rows[k].error);
        CHECK_INT(eg_error(), ok ? EG_OK : EG_ERROR_SHAPE);
        eg_error_clear();
    }
    eg_tensor *record = feature_x(3, "", 0), *out = NULL, *empty;
    const char *name = "x";
    eg_feature f = { "y", EG_INT64, { 0, { 0 } }, NULL };
    CHECK_ERROR(eg_example_parse(record, NULL, 1, &out), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    CHECK_ERROR(eg_example_parse(record, &f, 1, NULL), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    CHECK_ERROR(eg_example_parse(record, &f, -1, &out), EG_ERROR_ARGUMENT, "a list of -1");
    CHECK(eg_example_parse(record, NULL, 0, NULL));
    CHECK_ERROR(eg_example_serialize(&name, &record, -1), EG_ERROR_ARGUMENT, "a list of -1");
    CHECK_ERROR(eg_example_serialize(NULL, &record, 1), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    CHECK_ERROR(eg_example_serialize(&name, NULL, 1), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    REQUIRE((empty = eg_example_serialize(NULL, NULL, 0)) != NULL);
    CHECK_ERROR(eg_example_parse(empty, &f, 1, &out), EG_ERROR_FILE,
                "the record has no feature 'y', which has no default either; it has none");
}
TEST(broken_examples_are_errors_or_examples) {
    eg_feature spec[] = {{"pixels", EG_UINT8, EG_SHAPE(2, -1), NULL}, {"label", EG_INT64, EG_SCALAR, NULL},
                         {"weights", EG_FLOAT32, EG_SHAPE(-1), NULL}};
    eg_tensor *e = example(), *out[3];
    int64_t n = eg_size(e);
    unsigned char copy[256];
    uint32_t random = 1;
    REQUIRE(n <= (int64_t)sizeof copy);
    for (int i = 0; i < 20000 / test_share; i++) {
        EG_SCOPE;
        int64_t size = i < n ? i : n;                        // every length first
        memcpy(copy, eg_data(e), (size_t)n);
        for (int k = 0; i >= n && k < 1 + i % 3; k++)
            copy[next_random(&random) % (uint32_t)n] = (unsigned char)(next_random(&random) >> 24);
        bool ok = eg_example_parse(bytes_of(copy, size), spec, 3, out);
        CHECK(ok == (eg_error() == EG_OK) && ok == (out[0] && out[1] && out[2]));
        eg_error_clear();
    }
}

static bool act_example(void) {
    eg_feature spec[] = {{"pixels", EG_UINT8, EG_SHAPE(2, -1), NULL}, {"label", EG_INT64, EG_SCALAR, NULL},
                         {"other", EG_INT64, EG_SCALAR, NULL}};
    eg_tensor *out[3], *e = example();
    spec[2].missing = eg_scalar_of(EG_INT64, 3);
    bool ok = eg_example_parse(e, spec, 3, out) && spec[2].missing;
    return ok && eg_error() == EG_OK;
}
static bool act_records(void) {
    eg_record_writer *w = eg_record_writer_open(test_temp("faults.tfrecord"));
    bool ok = w && eg_record_writer_write(w, "abc", 3) && eg_record_writer_write(w, "de", 2) &&
              eg_record_writer_close(w);
    eg_record_writer_release(w);
    return ok && eg_size(eg_read_file(test_temp("faults.tfrecord"))) == 37;
}
TEST(examples_without_memory) { faults_sweep(act_example); }
TEST(records_without_memory) { faults_sweep(act_records); }

// ---- DLPack

TEST(a_tensor_is_lent_as_it_lies) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), *t = eg_transpose(x);
    eg_dlpack *m = eg_to_dlpack(t);
    REQUIRE(m);
    CHECK_INT(sizeof *m, 80);
    CHECK_INT(sizeof m->tensor, 48);
    CHECK_INT(m->version.major, 1);
    CHECK_INT(m->flags, 1);
    CHECK_INT(m->tensor.ndim, 2);
    CHECK_INT(m->tensor.shape[0], 3);
    CHECK_INT(m->tensor.strides[0], 1);
    CHECK_INT(m->tensor.strides[1], 3);
    CHECK_INT(m->tensor.dtype.code, 2);
    CHECK_INT(m->tensor.dtype.bits, 32);
    CHECK_INT(m->tensor.dtype.lanes, 1);
#ifdef TEST_CUDA
    CHECK_INT(m->tensor.device.type, 2);
#else
    CHECK_INT(m->tensor.device.type, test_on_host ? 1 : 12);
#endif
    if (test_on_host) {
        CHECK(m->tensor.data == eg_data(x));
        CHECK_TENSOR(eg_from_dlpack(m), 0, 1, 4, 2, 5, 3, 6);
    } else m->deleter(m);
    CHECK_ERROR(eg_to_dlpack(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_to_dlpack_legacy(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_from_dlpack(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_from_dlpack_legacy(NULL), EG_ERROR_NULL, "NULL");
}

TEST(what_is_lent_outlives_its_tensor_and_does_not_change) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v");
    eg_dlpack_legacy *m;
    {
        EG_SCOPE;
        m = eg_to_dlpack_legacy(v);
        eg_assign(v, 9);
    }
    eg_release(v);
    REQUIRE(m);
    CHECK_INT(sizeof *m, 64);
    if (test_on_host) CHECK_TENSOR(eg_from_dlpack_legacy(m), 0, 1, 2);
    else m->deleter(m);
}

TEST(every_dtype_goes_there_and_back) {
    if (!test_on_host) SKIP("only what the host can read comes back");
    for (int dtype = EG_FLOAT32; dtype <= EG_BFLOAT16; dtype++) {
        EG_SCOPE;
        eg_tensor *x = eg_constant_of((eg_dtype)dtype, EG_SHAPE(3), 1, 0, 1);
        CHECK_SAME(eg_from_dlpack(eg_to_dlpack(x)), x, 0);
        CHECK_SAME(eg_from_dlpack_legacy(eg_to_dlpack_legacy(x)), x, 0);
    }
    CHECK_TENSOR(eg_from_dlpack(eg_to_dlpack(eg_number(2.5))), 0, 2.5);
    CHECK_SHAPE(eg_from_dlpack(eg_to_dlpack(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 0, 3)))), 2, 0, 3);
    CHECK_TENSOR(eg_from_dlpack(eg_to_dlpack(eg_reverse(eg_constant(EG_SHAPE(3), 1, 2, 3), EG_AXES(0)))), 0, 3, 2, 1);
    CHECK_TENSOR(eg_from_dlpack(eg_to_dlpack(eg_broadcast_to(eg_scalar(4), EG_SHAPE(2, 2)))), 0, 4, 4, 4, 4);
}

static int given_back;
static void give_back(eg_dlpack *self) { (void)self; given_back++; }
static eg_dlpack loan(void *data, uint8_t code, uint8_t bits, int64_t *shape, int64_t *strides, int32_t rank) {
    eg_dlpack m;
    memset(&m, 0, sizeof m);
    m.version.major = 1;
    m.deleter = give_back;
    m.tensor.data = data;
    m.tensor.device.type = 1;
    m.tensor.ndim = rank;
    m.tensor.dtype.code = code;
    m.tensor.dtype.bits = bits;
    m.tensor.dtype.lanes = 1;
    m.tensor.shape = shape;
    m.tensor.strides = strides;
    given_back = 0;
    return m;
}

TEST(what_is_borrowed_goes_back_when_the_last_user_is_gone) {
    float data[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[2] = {2, 2}, strides[2] = {3, 2};
    eg_dlpack m = loan(data, 2, 32, shape, strides, 2);
    {
        EG_SCOPE;
        eg_tensor *x = eg_from_dlpack(&m), *y = eg_index(x, 1);
        CHECK_TENSOR(x, 0, 1, 3, 4, 6);
        CHECK_STR(eg_device_of(x), "cpu:0");
        CHECK_TENSOR(y, 0, 4, 6);
        CHECK_INT(given_back, 0);
    }
    CHECK_INT(given_back, 1);
    EG_SCOPE;
    m = loan(data, 2, 32, shape, NULL, 2);                   // no strides: row-major
    m.tensor.byte_offset = 4;
    m.deleter = NULL;
    CHECK_TENSOR(eg_from_dlpack(&m), 0, 2, 3, 4, 5);
}

TEST(borrowed_data_that_kernels_cannot_take_is_copied) {
    char raw[20];
    float values[2] = {1.5f, -2};
    unsigned char flags[4] = {0, 7, 1, 200};
    int64_t shape[1] = {2}, strides[1] = {3};
    memcpy(raw + 1, values, 8);
    eg_dlpack m = loan(raw + 1, 2, 32, shape, NULL, 1);
    CHECK_TENSOR(eg_from_dlpack(&m), 0, 1.5, -2);
    CHECK_INT(given_back, 1);
    m = loan(flags, 6, 8, shape, strides, 1);
    eg_tensor *x = eg_from_dlpack(&m);
    CHECK_TENSOR(x, 0, 0, 1);
    CHECK_DTYPE(x, EG_BOOL);
    CHECK_INT(given_back, 1);
}
TEST(strides_that_say_nothing) {
    static float values[2] = {1.5f, -2};                // what is lent is given back when the test's scope ends
    static int64_t shape[2] = {1, 2}, strides[2] = {INT64_MAX, 1}, none[1] = {0};
    static eg_dlpack m, nothing;
    m = loan(values, 2, 32, shape, strides, 2);
    eg_tensor *x = eg_from_dlpack(&m);
    CHECK_TENSOR(eg_add(eg_transpose(x), eg_cpu(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)))), 0, 2.5, 2.5, 2.5, -1, -1, -1);
    nothing = loan(NULL, 2, 32, none, NULL, 1);
    x = eg_from_dlpack(&nothing);
    CHECK(eg_data(x) != NULL && eg_size(x) == 0);
}

// What a traced function captured of it is read at each replay; its body cannot borrow.
static bool adds_borrowed(eg_tensor *const *in, eg_tensor **out, void *user) {
    return (out[0] = eg_add(in[0], (eg_tensor *)user)) != NULL;
}
static bool borrows(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)in;
    return (out[0] = eg_from_dlpack((eg_dlpack *)user)) != NULL;
}
TEST(borrowed_data_is_read_at_each_replay) {
    if (!test_on_host) SKIP("the host lends");
    float data[2] = {1, 2};
    int64_t shape[1] = {2};
    eg_dlpack m = loan(data, 2, 32, shape, NULL, 1);
    {
        EG_SCOPE;
        eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2)), *y;
        eg_function *f = eg_function_new(adds_borrowed, eg_from_dlpack(&m));
        for (int i = 0; i < 12; i++) {
            data[1] = (float)i;
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            CHECK_TENSOR(y, 0, 2, 1 + i);
        }
        CHECK(eg_function_counts(f).replays >= 6);
        eg_function_release(f);
    }
    CHECK_INT(given_back, 1);
    eg_function *f = eg_function_new(borrows, &m);
    eg_tensor *y;
    CHECK_ERROR(eg_function_call(f, NULL, 0, &y, 1), EG_ERROR_STATE, "not in the body of a traced function");
    CHECK_INT(given_back, 2);
    eg_function_release(f);
}
TEST(loans_that_cannot_be_taken_go_back_at_once) {
    float data[4] = {1, 2, 3, 4};
    int64_t shape[9] = {2, 2, 1, 1, 1, 1, 1, 1, 1}, negative[1] = {-1}, huge[2] = {INT64_MAX, 4},
            far[1] = {INT64_MAX / 2}, farthest[1] = {INT64_MIN};
    eg_dlpack m;
#define REFUSED(change, code, part)                                                                                   \
    m = loan(data, 2, 32, shape, NULL, 1);                                                                            \
    change;                                                                                                           \
    CHECK_ERROR(eg_from_dlpack(&m), code, part);                                                                      \
    CHECK_INT(given_back, 1)
    REFUSED(m.version.major = 2, EG_ERROR_ARGUMENT, "version 2.0");
    REFUSED(m.version.major = 0, EG_ERROR_ARGUMENT, "version 0.0");
    REFUSED(m.tensor.dtype.lanes = 4, EG_ERROR_DTYPE, "4 lanes");
    REFUSED(m.tensor.dtype.bits = 16; m.tensor.dtype.code = 0, EG_ERROR_DTYPE, "code 0 with 16 bits");
    REFUSED(m.tensor.device.type = 10, EG_ERROR_DEVICE, "type 10");
    REFUSED(m.tensor.device.type = 2; m.tensor.device.id = 7, EG_ERROR_DEVICE, "gpu:7");
    REFUSED(m.tensor.ndim = 9, EG_ERROR_SHAPE, "rank 9");
    REFUSED(m.tensor.ndim = -1, EG_ERROR_SHAPE, "rank -1");
    REFUSED(m.tensor.shape = NULL, EG_ERROR_NULL, "shape is NULL");
    REFUSED(m.tensor.shape = negative, EG_ERROR_SHAPE, "negative");
    REFUSED(m.tensor.shape = huge; m.tensor.ndim = 2, EG_ERROR_SHAPE, "more bytes than 64 bits");
    REFUSED(m.tensor.data = NULL, EG_ERROR_NULL, "data of [2] is NULL");
    REFUSED(m.tensor.strides = far, EG_ERROR_SHAPE, "farther than memory");
    REFUSED(m.tensor.strides = farthest, EG_ERROR_SHAPE, "farther than memory");
    REFUSED(m.tensor.byte_offset = UINT64_MAX, EG_ERROR_SHAPE, "farther than memory");
#undef REFUSED
}

// Whatever stands in the struct: an error or a tensor whose memory is the lender's, and back it goes, once.
TEST(random_loans) {
    float data[64] = {0};
    uint32_t random = 7;
    for (int i = 0; i < 20000 / test_share; i++) {
        int64_t shape[4], strides[4], reach = 0;
        int32_t rank = (int32_t)(next_random(&random) >> 29) - 1;
        for (int k = 0; k < 4; k++) {
            shape[k] = (int64_t)(next_random(&random) >> 30) - (next_random(&random) >> 28 == 0);
            strides[k] = (int64_t)(next_random(&random) >> 30);
            if (next_random(&random) >> 27 == 0) strides[k] = INT64_MAX / 3;
            if (k < rank && shape[k] > 0) reach += shape[k] > 1 ? strides[k] % 1000000 * (shape[k] - 1) : 0;
        }
        if (rank > 4) continue;
        eg_dlpack m = loan(data, (uint8_t)(next_random(&random) >> 29), (uint8_t)(8 << (next_random(&random) >> 30)),
                           shape, strides, rank);
        m.version.major = next_random(&random) >> 28 ? 1 : next_random(&random);
        if (reach * 8 > (int64_t)sizeof data) m.tensor.ndim = 0;
        {
            EG_SCOPE;
            eg_tensor *x = eg_from_dlpack(&m);
            CHECK((x != NULL) == (eg_error() == EG_OK));
            if (x) CHECK(eg_data(x) != NULL);
            eg_error_clear();
        }
        CHECK_INT(given_back, 1);
    }
}

static bool act_dlpack(void) {
    eg_tensor *x = eg_transpose(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)), *y = NULL;
    eg_dlpack *m = eg_to_dlpack(x);
    if (m && test_on_host) y = eg_from_dlpack(m);
    else if (m) m->deleter(m);
    float odd[3] = {0, 0, 0};
    int64_t shape[1] = {2};
    eg_dlpack loaned = loan((char *)odd + 1, 2, 32, shape, NULL, 1);
    eg_tensor *z = eg_from_dlpack(&loaned);
    CHECK_INT(given_back, 1);
    return m && (y || !test_on_host) && z && eg_error() == EG_OK;
}
TEST(loans_without_memory) { faults_sweep(act_dlpack); }

// ---- pictures of files

#ifdef EAGER_IMAGE
static eg_tensor *picture(int64_t h, int64_t w, int64_t c) {
    return eg_reshape(eg_cast(eg_mod(eg_mul(eg_range(EG_FLOAT32, 0, (double)(h * w * c), 1), 37), 256), EG_UINT8),
                      EG_SHAPE(h, w, c));
}
TEST(a_png_of_ours_is_read_back) {
    for (int64_t c = 1; c <= 4; c++) {
        EG_SCOPE;
        eg_tensor *x = picture(5, 7, c);
        CHECK_SAME(eg_decode_png(eg_encode_png(x)), x, 0);
        CHECK_SAME(eg_decode_image(eg_encode_png(x)), x, 0);
    }
    eg_tensor *big = picture(300, 211, 3), *flat = eg_zeros(EG_UINT8, EG_SHAPE(500, 500, 1));
    CHECK_SAME(eg_decode_png(eg_encode_png(big)), big, 0);
    CHECK_SAME(eg_decode_png(eg_encode_png(flat)), flat, 0);
    CHECK(eg_size(eg_encode_png(flat)) < 4000);
}
TEST(channels_are_converted) {
    eg_tensor *rgba = eg_constant_of(EG_UINT8, EG_SHAPE(1, 2, 4), 255, 0, 0, 10, 10, 20, 30, 255),
              *grey = eg_constant_of(EG_UINT8, EG_SHAPE(1, 2, 1), 5, 250);
    CHECK_TENSOR(eg_decode_png(eg_encode_png(rgba), .channels = 1), 0, 76, 18);
    CHECK_TENSOR(eg_decode_png(eg_encode_png(rgba), .channels = 3), 0, 255, 0, 0, 10, 20, 30);
    CHECK_TENSOR(eg_decode_image(eg_encode_png(grey), .channels = 4), 0, 5, 5, 5, 255, 250, 250, 250, 255);
    CHECK_SHAPE(eg_decode_image(eg_encode_png(grey), .channels = 3), 1, 2, 3);
    CHECK_ERROR(eg_decode_png(eg_encode_png(grey), .channels = 2), EG_ERROR_ARGUMENT, "not 1, 3 or 4");
}
// Mutations of a file: a picture of the size it says or an error, and no memory beyond what such a file could hold.
static void mutate(eg_tensor *file, int times) {
    int64_t n = eg_size(file);
    unsigned char *copy = (unsigned char *)malloc((size_t)n);
    uint32_t random = 3;
    eg_memory_reset_peak();
    int64_t before = eg_memory().live_bytes;
    for (int i = 0; i < times / test_share; i++) {
        EG_SCOPE;
        memcpy(copy, eg_data(file), (size_t)n);
        for (int k = 0; k < 1 + i % 4; k++)
            copy[8 + next_random(&random) % (uint32_t)(n - 8)] = (unsigned char)(next_random(&random) >> 24);
        eg_tensor *x = eg_decode_image(bytes_of(copy, i % 5 ? n : n / 2));
        CHECK((x != NULL) == (eg_error() == EG_OK));
        eg_error_clear();
    }
    CHECK(eg_memory().peak_bytes - before < n * 30000);
    free(copy);
}
TEST(broken_pngs) {
    mutate(eg_encode_png(picture(9, 8, 3)), 3000);
    eg_tensor *png = eg_encode_png(picture(9, 8, 3));
    CHECK_ERROR(eg_decode_png(eg_slice(png, EG_SHAPE(0), EG_SHAPE(50))), EG_ERROR_FILE, "broken PNG data");
    // 2 x 1 billion pixels in 67 bytes
    static const unsigned char claims[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0,
                                           0, 2, 0x3b, 0x9a, 0xca, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0};
    CHECK_ERROR(eg_decode_png(bytes_of(claims, sizeof claims)), EG_ERROR_FILE, "broken PNG data");
}
// What a header claims costs no memory, of libpng's and libjpeg's neither, before it is held against the bytes that are
// there.
TEST(pictures_that_claim_to_be_large) {
    static const unsigned char png[] = { 137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 125, 0, 0, 9, 0,
                                         0, 0, 9, 8, 0, 0, 0, 0, 56, 34, 69, 54, 0, 0, 0, 11,
        // 2097152009 x 9, its checksums are right
        73, 68, 65, 84, 120, 156, 99, 96, 96, 0, 0, 0, 3, 0, 1, 184, 173, 58, 99, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66,
        96, 130 };
    unsigned char jpeg[sizeof picture_jpeg];
    test_peak before = test_process_peak();
    CHECK_ERROR(
        eg_decode_png(bytes_of(png, sizeof png)), EG_ERROR_FILE,
        "eg_decode_png: broken PNG data: it claims to be 2097152009 x 9 pixels, which so few bytes cannot hold");
    memcpy(jpeg, picture_jpeg, sizeof jpeg);
    REQUIRE(jpeg[158] == 0xff && jpeg[159] == 0xc0);
    memset(jpeg + 163, 0xfa, 4);                             // height and width
    CHECK_ERROR(eg_decode_jpeg(bytes_of(jpeg, sizeof jpeg)), EG_ERROR_FILE,
                "it claims to be 64250 x 64250 pixels, which so few bytes cannot hold");
    test_peak after = test_process_peak();
    CHECK(after.touched - before.touched < 32 << 20);
#ifndef TEST_NO_SIGNALS
    CHECK(after.addressed - before.addressed < 256 << 20);
#endif
    eg_tensor *x = picture(9, 8, 3);
    CHECK_ERROR(eg_decode_png(eg_encode_png(x), .most_pixels = 71), EG_ERROR_FILE,
                "8 x 9 pixels are more than the 71 that may be; .most_pixels allows more");
    CHECK_ERROR(eg_decode_jpeg(bytes_of(picture_jpeg, sizeof picture_jpeg), .most_pixels = 191), EG_ERROR_FILE,
                "16 x 12 pixels are more than the 191 that may be");
    CHECK_SAME(eg_decode_image(eg_encode_png(x), .most_pixels = 72), x, 0);
    CHECK_ERROR(eg_decode_image(eg_encode_png(x), .most_pixels = -1), EG_ERROR_ARGUMENT, ".most_pixels is -1");
}
TEST(a_jpeg_is_read) {
    eg_tensor *file = bytes_of(picture_jpeg, sizeof picture_jpeg), *x = eg_decode_jpeg(file);
    CHECK_SHAPE(x, 12, 16, 3);
    CHECK_SAME(eg_decode_image(file), x, 0);
    // 16 wide: red from left to right, green from top to bottom, blue .5; nearly so after JPEG
    CHECK_NEAR(eg_item(eg_index(eg_index(eg_index(eg_cast(x, EG_FLOAT32), 11), 15), 0)), 240, .06);
    CHECK_NEAR(eg_item(eg_index(eg_index(eg_index(eg_cast(x, EG_FLOAT32), 11), 0), 1)), 220, .06);
    CHECK_SHAPE(eg_decode_jpeg(file, .channels = 1), 12, 16, 1);
    CHECK_ERROR(eg_decode_image(file, .channels = 4), EG_ERROR_ARGUMENT, "no alpha");
    CHECK_ERROR(eg_decode_jpeg(file, .channels = 4), EG_ERROR_ARGUMENT, "not 1, 3");
    CHECK_ERROR(eg_decode_png(file), EG_ERROR_FILE, "no PNG file but a JPEG file");
    CHECK_ERROR(eg_decode_jpeg(eg_encode_png(x)), EG_ERROR_FILE, "no JPEG file but a PNG file");
    CHECK_ERROR(eg_decode_jpeg(eg_slice(file, EG_SHAPE(0), EG_SHAPE(eg_size(file) / 2))), EG_ERROR_FILE,
                "broken JPEG data");
}
TEST(broken_jpegs) { mutate(bytes_of(picture_jpeg, sizeof picture_jpeg), 3000); }
// Names of files become pictures of one size, on two threads: as one reads a folder of photographs.
static eg_tensor *load_picture(eg_tensor *const *in, void *user) {
    const char *const *paths = (const char *const *)user;
    eg_tensor *x = eg_cast(eg_decode_image(eg_read_file(paths[eg_item_int(in[0])]), .channels = 3), EG_FLOAT32);
    return eg_squeeze(eg_resize(eg_expand_dims(x, 0), 6, 8), .axes = EG_AXES(0));
}
TEST(pictures_are_read_in_a_dataset) {
    static char paths[2][4096];
    const char *list[2] = {paths[0], paths[1]};
    snprintf(paths[0], sizeof paths[0], "%s", test_temp("picture.jpeg"));
    snprintf(paths[1], sizeof paths[1], "%s", test_temp("picture.png"));
    REQUIRE(write_bytes(paths[0], picture_jpeg, sizeof picture_jpeg) &&
            eg_save_png(paths[1], eg_full(EG_UINT8, EG_SHAPE(9, 9), 100)));
    eg_dataset *d = eg_dataset_batch(eg_dataset_map(eg_dataset_range(0, 2, 1), load_picture, (void *)list,
                                                    .threads = 2), 2);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_SHAPE(out[0], 2, 6, 8, 3);
    CHECK_TENSOR(eg_slice(out[0], EG_SHAPE(1, 2, 3, 0), EG_SHAPE(1, 1, 1, 3)), 1e-6, 100, 100, 100);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
static bool act_decode(void) {
    eg_tensor *png = eg_encode_png(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4))), *x = eg_decode_png(png),
              *y = eg_decode_png(png, .channels = 3);
    eg_tensor *z = eg_decode_jpeg(bytes_of(picture_jpeg, sizeof picture_jpeg));
    return png && x && y && z;
}
TEST(decoding_without_memory) { faults_sweep(act_decode); }
#else
TEST(reading_pictures_needs_a_switch) {
    (void)picture_jpeg;
    eg_tensor *png = eg_encode_png(eg_zeros(EG_UINT8, EG_SHAPE(2, 2)));
    CHECK_ERROR(eg_decode_png(png), EG_ERROR_FILE, "compile with -DEAGER_IMAGE");
    CHECK_ERROR(eg_decode_image(png), EG_ERROR_FILE, "-lpng");
    CHECK_ERROR(eg_decode_jpeg(bytes_of("\377\330\377", 3)), EG_ERROR_FILE, "libjpeg");
}
#endif
TEST(what_is_no_picture_file) {
    CHECK_ERROR(eg_decode_image(bytes_of("GIF89a..", 8)), EG_ERROR_FILE, "no PNG or JPEG file");
    CHECK_ERROR(eg_decode_png(bytes_of("", 0)), EG_ERROR_FILE, "0 bytes are no PNG file");
    CHECK_ERROR(eg_decode_jpeg(eg_zeros(EG_FLOAT32, EG_SHAPE(3))), EG_ERROR_DTYPE, "uint8 vector");
    CHECK_ERROR(eg_decode_image(NULL), EG_ERROR_NULL, "NULL");
    eg_decode_options untouched;
    memset(&untouched, 1, sizeof untouched);
    CHECK_ERROR((eg_decode_image)(bytes_of("", 0), untouched), EG_ERROR_ARGUMENT, "not zeroed");
}

// ---- eg_record: check_record.sh reads what is in the file

static eg_tensor *recorded(eg_tensor *v) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *part = eg_slice(v, EG_SHAPE(1), EG_SHAPE(2)), *stored = eg_cast(eg_cast(part, EG_BFLOAT16), EG_FLOAT32);
    eg_tensor *y = eg_reduce_sum(eg_add(eg_tanh(part), eg_mul(stored, part)));
    return eg_tape_gradient(tape, y, v);
}
TEST(recording_changes_nothing) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(3), .25, .5, 1), "v"), *g = recorded(v);
    CHECK(eg_record(test_temp("recorded/step.npz")));
    CHECK_SAME(recorded(v), g, 0);
    eg_assign(v, 2);
    eg_square(v);
    CHECK_ERROR(eg_square(eg_zeros(EG_BOOL, EG_SHAPE(2))), EG_ERROR_DTYPE, "bool");      // what fails is not in it
    CHECK(eg_record_stop());
    eg_archive *a = eg_load_npz(test_temp("recorded/step.npz"));
    REQUIRE(a);
    eg_tensor *ops = eg_archive_get(a, "ops");
    CHECK_CONTAINS((const char *)eg_data(ops), "{\"op\":\"slice\",\"in\":[\"t");
    CHECK_CONTAINS((const char *)eg_data(ops), "{\"gradient\":\"tanh\",\"of\":\"t");
    CHECK_INT(((const char *)eg_data(ops))[eg_size(ops) - 1], '\n');
    eg_archive_release(a);
    eg_release(v);
}
TEST(what_a_recording_refuses) {
    CHECK_ERROR(eg_record_stop(), EG_ERROR_STATE, "does not record");
    CHECK_ERROR(eg_record(NULL), EG_ERROR_ARGUMENT, "NULL");
    CHECK(eg_record(test_temp("refused.npz")));
    CHECK_ERROR(eg_record(test_temp("other.npz")), EG_ERROR_STATE, "refused.npz");
    CHECK(eg_record_stop());
    CHECK_ERROR(eg_record_stop(), EG_ERROR_STATE, "does not record");
    CHECK(eg_record(test_temp("forgotten.npz")));
    eg_square(eg_ones(EG_FLOAT32, EG_SHAPE(2)));
    eg_shutdown();                                           // ends it, and there is no file
    CHECK_ERROR(eg_record_stop(), EG_ERROR_STATE, "does not record");
    CHECK_ERROR(eg_read_file(test_temp("forgotten.npz")), EG_ERROR_FILE, "forgotten.npz");
}
static bool act_record(void) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(3), .25, .5, 1), "v");
    bool ok = eg_record(test_temp("faults.npz")), began = ok;
    ok = v && ok && recorded(v);
    if (v && ok) ok = eg_assign_add(v, 1) && eg_square(v);
    if (began) {
        eg_error_code before = eg_error();
        bool stopped = eg_record_stop();
        ok = ok && stopped;
        if (!stopped && before == EG_OK) CHECK(eg_error() == EG_ERROR_MEMORY || eg_error() == EG_ERROR_DEVICE);
    }
    eg_release(v);
    return ok;
}
TEST(recording_without_memory) { faults_sweep(act_record); }

// ---- TFRecord files that are broken, read by the dataset

static int records_of(const char *path) {                    // how many come before the end or an error
    int count = 0;
    eg_dataset *d = eg_dataset_tfrecord(&path, 1);
    eg_iterator *it = d ? eg_iterator_new(d) : NULL;
    for (eg_tensor *record[EG_MAX_COMPONENTS]; it && eg_iterator_next(it, record) == EG_NEXT;) count++;
    eg_iterator_release(it);
    eg_dataset_release(d);
    return count;
}
TEST(broken_records_are_named_by_their_place) {
    static const unsigned char abc[] = {3, 0, 0, 0, 0, 0, 0, 0, 0xb0, 0x99, 0x49, 0x0e, 'a', 'b', 'c', 0x6e, 0x57, 0xf1,
                                        0x21};
    unsigned char two[38], wrong[38];
    char path[4096], said[100];
    snprintf(path, sizeof path, "%s", test_temp("two.tfrecord"));
    memcpy(two, abc, 19);
    memcpy(two + 19, abc, 19);
    for (size_t n = 0; n <= 38; n++) {                       // cut off anywhere
        EG_SCOPE;
        REQUIRE(write_bytes(path, two, n));
        CHECK_INT(records_of(path), n / 19);
        snprintf(said, sizeof said, "byte %d: truncated record", (int)(n / 19 * 19));
        if (n % 19) CHECK_CONTAINS(eg_error_message(), said);
        else CHECK_INT(eg_error(), EG_OK);
        eg_error_clear();
    }
    for (size_t i = 0; i < 38; i++) {                        // one bit wrong anywhere
        EG_SCOPE;
        memcpy(wrong, two, 38);
        wrong[i] ^= 1;
        REQUIRE(write_bytes(path, wrong, 38));
        CHECK_INT(records_of(path), i / 19);
        snprintf(said, sizeof said, "byte %d: corrupted record: the checksum of its %s is wrong",
                 (int)(i / 19 * 19 + (i % 19 < 12 ? 0 : 12)), i % 19 < 12 ? "length" : "data");
        CHECK_CONTAINS(eg_error_message(), said);
        eg_error_clear();
    }
    // a length that 64 bits hold and no memory does, its checksum right
    static const unsigned char huge[] = {255, 255, 255, 255, 255, 255, 255, 127, 0, 0, 0, 0, 'a', 'b', 'c'};
    memcpy(wrong, huge, sizeof huge);
    uint32_t crc = ~0u;
    for (int i = 0; i < 8; i++) {
        crc ^= huge[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
    for (int i = 0; i < 4; i++) wrong[8 + i] = (unsigned char)(crc >> 8 * i);
    REQUIRE(write_bytes(path, wrong, sizeof huge));
    eg_memory_reset_peak();
    int64_t before = eg_memory().live_bytes;
    CHECK_INT(records_of(path), 0);
    CHECK_CONTAINS(eg_error_message(), "byte 0: truncated record");
    eg_error_clear();
    CHECK(eg_memory().peak_bytes - before < 1 << 20);
}
