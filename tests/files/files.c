// Files: named tensors in .npy, .npz and safetensors, there and back; what a broken file says; sizes that lie; full
// disks, no memory.
// What others read and write is held against them in check_files.sh; checkpoints and weights have files of their own.
#include "faults.h"
#include <time.h>

#ifdef __linux__
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

static void write_bytes(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n) printf("cannot write %s\n", path);
    if (f) fclose(f);
}
static unsigned char *read_bytes(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = (unsigned char *)malloc(*n + 1);
    if (bytes && fread(bytes, 1, *n, f) != *n) { free(bytes); bytes = NULL; }
    fclose(f);
    return bytes;
}

// One tensor of every dtype, of several ranks, and an empty one.
static eg_archive *every_dtype(bool bfloat) {
    eg_archive *a = eg_archive_new();
    const eg_dtype dtypes[] = { EG_BOOL, EG_UINT8, EG_FLOAT16, EG_INT32, EG_FLOAT32, EG_INT64, EG_FLOAT64,
                                EG_BFLOAT16 };
    for (int i = 0; i < 7 + bfloat; i++) {
        EG_SCOPE;
        CHECK(eg_archive_add(a, eg_dtype_name(dtypes[i]),
                             eg_cast(eg_constant(EG_SHAPE(2, 3), 0, 1, 2, 3, 200, 0.25), dtypes[i])));
    }
    EG_SCOPE;
    CHECK(eg_archive_add(a, "scalar", eg_scalar(-1.5)));
    CHECK(eg_archive_add(a, "empty", eg_zeros(EG_INT32, EG_SHAPE(0, 3))));
    CHECK(eg_archive_add(a, "rank 8/\"q\\\" \xc3\xa9", eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 1, 2, 1, 1, 1, 3))));
    CHECK(eg_archive_add(a, "number", 7));
    CHECK(eg_archive_add(a, "view", eg_transpose(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4))));
    CHECK(eg_archive_set_text(a, "step", "12"));
    CHECK(eg_archive_set_text(a, "note", "line\nbreak \"q\" \xc3\xa9"));
    return a;
}
static void same_archives(eg_archive *a, eg_archive *b) {
    REQUIRE(a && b);
    CHECK_INT(eg_archive_count(a), eg_archive_count(b));
    for (int64_t i = 0; i < eg_archive_count(a); i++) {
        EG_SCOPE;
        const char *name = eg_archive_name(a, i);
        eg_tensor *x = eg_archive_get(a, name), *y = eg_archive_get(b, name);
        REQUIRE(x && y);
        CHECK_DTYPE(y, eg_dtype_of(x));
        char one[EG_SHAPE_TEXT], two[EG_SHAPE_TEXT];
        CHECK_STR(eg_shape_text(eg_shape_of(y), one), eg_shape_text(eg_shape_of(x), two));
        CHECK(eg_size(x) == 0 ||
              memcmp(eg_data(x), eg_data(y), (size_t)(eg_size(x) * eg_dtype_size(eg_dtype_of(x)))) == 0);
    }
    CHECK_STR(eg_archive_text(b, "step"), "12");
    CHECK_STR(eg_archive_text(b, "note"), "line\nbreak \"q\" \xc3\xa9");
}

// Found by their keys, not one by one: where each is compared with all before it, these take minutes.
TEST(an_archive_of_many_texts) {
    enum { TEXTS = 150000 };
    clock_t start = clock();                        // the processor's time, which other programs do not stretch
    char key[32];
    bool all = true;
    eg_archive *a = eg_archive_new(), *b;
    for (int i = 0; i < TEXTS; i++) {
        snprintf(key, sizeof key, "key %d", i);
        all = eg_archive_set_text(a, key, key + 4) && all;
    }
    CHECK(all && eg_archive_set_text(a, "key 0", "other") && eg_archive_set_text(a, "key 1", NULL));
    CHECK(eg_archive_save(a, test_temp("texts.safetensors")));
    CHECK((b = eg_archive_load(test_temp("texts.safetensors"))));
    CHECK_STR(eg_archive_text(b, "key 0"), "other");
    CHECK(!eg_archive_text(b, "key 1") && !eg_archive_text(b, "key"));
    for (int i = 2; i < TEXTS; i++) {
        snprintf(key, sizeof key, "key %d", i);
        const char *text = eg_archive_text(b, key);
        all = text && !strcmp(text, key + 4) && all;
    }
    CHECK(all);
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 20);
    eg_archive_release(a);
    eg_archive_release(b);
}

TEST(archives_hold_names_and_texts) {
    eg_archive *a = eg_archive_new();
    eg_tensor *v = eg_variable(eg_scalar(1), "v");
    CHECK(eg_archive_add(a, "v", v));
    eg_assign(v, 2);
    CHECK_TENSOR(eg_archive_get(a, "v"), 0, 1);
    CHECK(eg_archive_has(a, "v") && !eg_archive_has(a, "w"));
    CHECK_STR(eg_archive_name(a, 0), "v");
    CHECK(eg_archive_name(a, 1) == NULL && eg_archive_name(a, -1) == NULL);
    CHECK_ERROR(eg_archive_add(a, "v", 3), EG_ERROR_ARGUMENT, "'v' is there already");
    CHECK_ERROR(eg_archive_add(a, "\xff", 3), EG_ERROR_ARGUMENT, "not UTF-8");
    CHECK_ERROR(eg_archive_add(a, NULL, 3), EG_ERROR_ARGUMENT, "name is NULL");
    CHECK_ERROR(eg_archive_get(a, "w"), EG_ERROR_ARGUMENT, "no tensor 'w' among the 1, first 'v'");
    CHECK_ERROR(eg_archive_get(a, NULL), EG_ERROR_ARGUMENT, "no tensor 'NULL' among the 1");
    CHECK_ERROR(eg_archive_add(NULL, "v", 3), EG_ERROR_NULL, "archive is NULL");
    CHECK_ERROR(eg_archive_add(a, "x", NULL), EG_ERROR_NULL, "operand 2 is NULL");
    CHECK(eg_archive_text(a, "k") == NULL);
    CHECK(eg_archive_set_text(a, "k", "1") && eg_archive_set_text(a, "l", "2") && eg_archive_set_text(a, "k", "3"));
    CHECK_STR(eg_archive_text(a, "k"), "3");
    CHECK(eg_archive_set_text(a, "k", NULL) && eg_archive_set_text(a, "never", NULL));
    CHECK(eg_archive_text(a, "k") == NULL);
    CHECK_STR(eg_archive_text(a, "l"), "2");
    CHECK_ERROR(eg_archive_set_text(a, "k", "\x80"), EG_ERROR_ARGUMENT, "not UTF-8");
    CHECK_ERROR(eg_archive_set_text(a, "\xc3", "1"), EG_ERROR_ARGUMENT, "not UTF-8");
    CHECK_ERROR(eg_archive_set_text(a, NULL, ""), EG_ERROR_ARGUMENT, "key is NULL");
    CHECK(eg_archive_text(a, "\xc3") == NULL && eg_archive_text(a, NULL) == NULL && eg_archive_text(NULL, "k") == NULL);
    CHECK(!eg_archive_has(a, NULL) && !eg_archive_has(NULL, "v") && eg_archive_name(NULL, 0) == NULL);
    eg_archive *again = eg_archive_retain(a);
    eg_archive_release(a);
    CHECK_INT(eg_archive_count(again), 1);
    eg_archive_release(again);
    eg_archive_release(NULL);
    CHECK_INT(eg_archive_count(NULL), 0);
    eg_release(v);
}

TEST(every_dtype_there_and_back) {
    eg_archive *all = every_dtype(true), *numpy = every_dtype(false), *b;
    CHECK(eg_save_safetensors(all, test_temp("all.safetensors")));
    same_archives(all, b = eg_load_safetensors(test_temp("all.safetensors")));
    eg_archive_release(b);
    CHECK(eg_save_npz(numpy, test_temp("all.npz")));
    same_archives(numpy, b = eg_load_npz(test_temp("all.npz")));
    eg_archive_release(b);
    CHECK(eg_archive_save(all, test_temp("new/folder/b.safetensors")));           // folders are made
    same_archives(all, b = eg_archive_load(test_temp("new/folder/b.safetensors")));
    eg_archive_release(b);
    CHECK_ERROR(eg_save_npz(all, test_temp("no.npz")), EG_ERROR_DTYPE, "NumPy has no bfloat16, which 'bfloat16' is");
    CHECK_ERROR(eg_load_npz(test_temp("no.npz")), EG_ERROR_FILE, "cannot be opened");
    for (int64_t i = 0; i < eg_archive_count(numpy); i++) {
        EG_SCOPE;
        eg_tensor *x = eg_archive_get(numpy, eg_archive_name(numpy, i)), *y;
        CHECK(eg_save_npy(x, test_temp("x.npy")));
        y = eg_load_npy(test_temp("x.npy"));
        REQUIRE(y);
        CHECK_SAME(y, x, 0);
    }
    eg_archive_release(all);
    eg_archive_release(numpy);
}

// Only what is named is read: a tensor that is left out is damaged at the end of the test, and nobody notices.
TEST(named_tensors_are_read_alone) {
    static const char *const endings[] = { "named.safetensors", "named.npz" };
    static const char *const two[] = { "c", "a" }, *const wrong[] = { "a", "nowhere" }, *const none[] = { NULL };
    for (int f = 0; f < 2; f++) {
        EG_SCOPE;
        eg_archive *a = eg_archive_new(), *b;
        eg_archive_add(a, "a", eg_range(EG_FLOAT64, 0, 9, 1));
        eg_archive_add(a, "b", eg_range(EG_INT32, 0, 1000, 1));
        eg_archive_add(a, "c", eg_scalar_of(EG_UINT8, 7));
        eg_archive_set_text(a, "note", "there");
        const char *path = test_temp(endings[f]);
        REQUIRE(eg_archive_save(a, path));
        eg_archive_release(a);
        REQUIRE((b = eg_archive_load_named(path, two, 2)) != NULL);
        CHECK_INT(eg_archive_count(b), 2);
        CHECK(!eg_archive_has(b, "b"));
        CHECK_STR(eg_archive_text(b, "note"), "there");
        CHECK_SAME(eg_archive_get(b, "a"), eg_range(EG_FLOAT64, 0, 9, 1), 0);
        CHECK_INT(eg_item_int(eg_archive_get(b, "c")), 7);
        eg_archive_release(b);
        CHECK_ERROR(eg_archive_load_named(path, wrong, 2), EG_ERROR_FILE, "there is no tensor 'nowhere' in the file");
        CHECK_ERROR(eg_archive_load_named(path, none, 1), EG_ERROR_ARGUMENT, "name 0 is NULL");
        CHECK_ERROR(eg_archive_load_named(path, NULL, 1), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
        CHECK_ERROR(eg_archive_load_named(NULL, two, 2), EG_ERROR_ARGUMENT, "eg_archive_load_named: the path is NULL");
        FILE *file = fopen(path, "r+b");
        REQUIRE(file);
        fseek(file, -2600, SEEK_END);                         // in the middle of b
        fputs("damaged", file);
        fclose(file);
        REQUIRE((b = eg_archive_load_named(path, two, 1)) != NULL);
        CHECK_INT(eg_item_int(eg_archive_get(b, "c")), 7);
        eg_archive_release(b);
    }
}

TEST(equal_tensors_make_equal_files) {
    eg_archive *a = every_dtype(false), *b = every_dtype(false);
    size_t n, m;
    const char *const endings[] = { "npz", "safetensors" };
    for (int i = 0; i < 2; i++) {
        char one[64], two[64];
        snprintf(one, sizeof one, "one.%s", endings[i]);
        snprintf(two, sizeof two, "two.%s", endings[i]);
        CHECK(eg_archive_save(a, test_temp(one)) && eg_archive_save(b, test_temp(two)));
        unsigned char *x = read_bytes(test_temp(one), &n), *y = read_bytes(test_temp(two), &m);
        CHECK(x && y && n == m && memcmp(x, y, n) == 0);
        free(x);
        free(y);
    }
    eg_archive_release(a);
    eg_archive_release(b);
}

// Names are found by their hash; the list grows many times over, the order stays.
TEST(archives_of_many_names) {
    enum { N = 3000 };
    eg_archive *a = eg_archive_new();
    char name[32];
    CHECK(!eg_archive_has(a, "x0"));
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "x%d", i);
        if (!eg_archive_add(a, name, i)) test_fails++;
    }
    CHECK_INT(eg_archive_count(a), N);
    for (int i = 0; i < N; i++) {
        EG_SCOPE;
        snprintf(name, sizeof name, "x%d", i);
        CHECK_STR(eg_archive_name(a, i), name);
        CHECK_INT(eg_item_int(eg_archive_get(a, name)), i);
        snprintf(name, sizeof name, "x%dy", i);
        if (eg_archive_has(a, name)) test_fails++;
    }
    CHECK_ERROR(eg_archive_add(a, "x2999", 1), EG_ERROR_ARGUMENT, "a tensor 'x2999' is there already");
    CHECK(eg_archive_add(a, "", 5) && eg_archive_has(a, ""));
    eg_archive_release(a);
}
TEST(empty_archives) {
    eg_archive *a = eg_archive_new(), *b;
    CHECK(eg_save_npz(a, test_temp("empty.npz")) && eg_save_safetensors(a, test_temp("empty.safetensors")));
    CHECK(b = eg_load_npz(test_temp("empty.npz")));
    CHECK_INT(eg_archive_count(b), 0);
    eg_archive_release(b);
    CHECK(b = eg_load_safetensors(test_temp("empty.safetensors")));
    CHECK_INT(eg_archive_count(b), 0);
    CHECK_ERROR(eg_archive_get(b, "x"), EG_ERROR_ARGUMENT, "there is no tensor 'x' among the 0");
    eg_archive_release(b);
    eg_archive_release(a);
}

TEST(paths_that_cannot_be) {
    eg_tensor *x = eg_scalar(1);
    CHECK_ERROR(eg_load_npy(test_temp("none.npy")), EG_ERROR_FILE, "none.npy: cannot be opened: ");
    CHECK_ERROR(eg_load_npy(NULL), EG_ERROR_ARGUMENT, "eg_load_npy: the path is NULL");
    CHECK_ERROR(eg_save_npy(x, ""), EG_ERROR_ARGUMENT, "eg_save_npy: the path is empty");
    CHECK_ERROR(eg_save_npy(NULL, "x"), EG_ERROR_NULL, "operand 0 is NULL");
    CHECK_ERROR(eg_save_npz(NULL, "x"), EG_ERROR_NULL, "archive is NULL");
    CHECK_ERROR(eg_save_safetensors(NULL, "x"), EG_ERROR_NULL, "archive is NULL");
    CHECK_ERROR(eg_archive_load("weights.h5"), EG_ERROR_FILE,
                "weights.h5: its ending is neither .safetensors nor .npz,");
    CHECK_ERROR(eg_archive_load(""), EG_ERROR_ARGUMENT, "eg_archive_load: the path is empty");
    CHECK_ERROR(eg_archive_load("folder/"), EG_ERROR_FILE, "folder/: its ending is neither");
    CHECK_ERROR(eg_archive_save(NULL, NULL), EG_ERROR_ARGUMENT, "the path is NULL");
    char deep[700] = "", *at = deep;                             // of a long path the end is told
    for (int i = 0; i < 60; i++) at += sprintf(at, "none/none/");
    strcpy(at, "x.npy");
    CHECK_ERROR(eg_load_npy(deep), EG_ERROR_FILE, "eg_load_npy: ...none/none/");
    CHECK_ERROR(eg_load_npy(deep), EG_ERROR_FILE, "none/x.npy: cannot be opened: ");
    CHECK_ERROR(eg_archive_save(NULL, "x.npz"), EG_ERROR_NULL, "archive is NULL");
    CHECK_ERROR(eg_save_npy(eg_cast(x, EG_BFLOAT16), test_temp("bfloat.npy")), EG_ERROR_DTYPE, "NumPy has no bfloat16");
    CHECK_ERROR(eg_load_npy(test_temp("bfloat.npy")), EG_ERROR_FILE, "cannot be opened");
#ifdef __linux__
    const char *folder = test_temp("");
    CHECK_ERROR(eg_load_npz(folder), EG_ERROR_FILE, "is a folder, not a file");
    CHECK_ERROR(eg_read_file(folder), EG_ERROR_FILE, "is a folder, not a file");
    CHECK_ERROR(eg_save_npy(x, folder), EG_ERROR_FILE, "cannot ");
#endif
}

// ---- broken files: each row writes one and says what its error must hold

typedef struct row { const char *what, *bytes; int64_t n; const char *error; } row;
#define BYTES(text) text, (int64_t)sizeof text - 1

// A .npy file of version 1.0 with this header and so many bytes of data.
static int64_t npy_file(char *to, const char *header, int data) {
    int64_t n = (int64_t)strlen(header);
    memcpy(to, "\x93NUMPY\1\0", 8);
    to[8] = (char)(n & 255);
    to[9] = (char)(n >> 8);
    memcpy(to + 10, header, (size_t)n);
    for (int i = 0; i < data; i++) to[10 + n + i] = (char)i;
    return 10 + n + data;
}
static const struct { const char *header; int data; const char *error; } npy_rows[] = {      // NULL: it reads
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 12, NULL },
    { "{\"shape\": (3L , ) , 'descr':'<f4','fortran_order':True}", 12, NULL },    // unpadded, any order, Python 2
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 19, NULL },  // trailing bytes
    { "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", 8, NULL },
    { "{'descr': '<i4', 'fortran_order': False, 'shape': (0, 9223372036854775807), }\n", 0, NULL },
    { "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }\n", 4, NULL },
    { "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 2), }\n", 4, NULL },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 11,
      "truncated: shape [3] needs 12 bytes, but 11 follow" },
    { "{'descr': '<f4', 'fortran_order': False, }\n", 12, "without shape" },
    { "{'descr': '<f4', 'shape': (3,), }\n", 12, "without fortran_order" },
    { "{'fortran_order': False, 'shape': (3,), }\n", 12, "without descr" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}\n", 12,
      "byte 66: a .npy header with a key that is not" },
    { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}\n", 12, "a key twice" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }\n", 12, "byte 61: a negative dimension" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -1), }\n", 12, "a negative dimension" },
    { "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n", 12, "dtype object" },
    { "{'descr': '<U5', 'fortran_order': False, 'shape': (3,), }\n", 60,
      "dtype '<U5' is none that can be read (bool, uint8, int8 to int64" },
    { "{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }\n", 24, "dtype '<c8'" },
    { "{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }\n", 6, "dtype '<V2'" },
    { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }\n", 12, "a structured dtype" },
    { "{'descr': 7, 'fortran_order': False, 'shape': (3,), }\n", 12, "descr is no text" },
    { "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,), }\n", 12, "fortran_order is neither True nor False" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': 3, }\n", 12, "the shape is no tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3), }\n", 12, "the shape is no tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,4.5), }\n", 12, "the shape is no tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }\n", 12, "a dimension is no number" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }\n", 4, "more than 8 dimensions" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n", 4, "does not fit 64 bits" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", 4,
      "more bytes than 64 bits count" },
    { "{'descr': '|i1', 'fortran_order': False, 'shape': (4611686018427387904,), }\n", 4,
      "more bytes than 64 bits count" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n", 4,
      "truncated: shape [1000000000000] needs 4000000000000 bytes" },
    { "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }\n        ", 0, "truncated" },
    { "{'descr' '<f4', 'fortran_order': False, 'shape': (3,), }\n", 12, "a ':' is missing" },
    { "{'descr': '<f4' 'fortran_order': False, 'shape': (3,), }\n", 12, "a ',' or '}' is missing" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } {}\n", 12, "there is more after the dictionary" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), ", 12, "with a key that is not" },
    { "{'descr': '<f4', 'fortran_order': True, 'shape': (3,)\t\r\f\n}", 12, NULL },
    { "{'descr': '', 'fortran_order': False, 'shape': (3,), }\n", 12, "dtype '' is none" },
    { "{'descr': '<', 'fortran_order': False, 'shape': (3,), }\n", 12, "dtype '<' is none" },
    { "{'descr': '<f4' }\n", 12, "without fortran_order" },
    { "{'descr': 'a text that is longer than any dtype', 'fortran_order': False, 'shape': (3,), }\n", 12,
      "descr is no text" },
    { "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (3,), }\n", 12, "descr is no text" },
    { "{'a key that is longer than any of the three': 1}", 12, "with a key that is not" },
    { "{'descr\": '<f4', 'fortran_order': False, 'shape': (3,), }\n", 12, "with a key that is not" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }\n", 4, "does not fit 64 bits" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,), 'shape': (3,)}\n", 12, "a key twice" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (:,), }\n", 12, "a dimension is no number" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,) ;}\n", 12, "a ',' or '}' is missing" },
    { "[1, 2]\n", 12, "no dictionary" },
    { "", 12, "no dictionary" }
};
TEST(broken_npy_headers) {
    static char bytes[400];
    for (size_t i = 0; i < sizeof npy_rows / sizeof npy_rows[0]; i++) {
        EG_SCOPE;
        int64_t n = npy_file(bytes, npy_rows[i].header, npy_rows[i].data);
        write_bytes(test_temp("row.npy"), bytes, (size_t)n);
        eg_tensor *x = eg_load_npy(test_temp("row.npy"));
        if (npy_rows[i].error) CHECK(x == NULL);
        else CHECK(x != NULL);
        if (npy_rows[i].error && (eg_error() != EG_ERROR_FILE || !strstr(eg_error_message(), npy_rows[i].error) ||
                                  !strstr(eg_error_message(), "row.npy: ")))
            test_contains(__FILE__, __LINE__, npy_rows[i].header, eg_error_message(), npy_rows[i].error);
        eg_error_clear();
    }
    // A header that ends early: each time an error, which says where.
    const char *whole = "{'descr': '>f4', 'fortran_order': False, 'shape': (3L, 12), }";
    for (int64_t n = 0, cut = (int64_t)strlen(whole); n < cut; n++) {
        char header[100] = "";
        memcpy(header, whole, (size_t)n);
        write_bytes(test_temp("row.npy"), bytes, (size_t)npy_file(bytes, header, 200));
        CHECK_ERROR(eg_load_npy(test_temp("row.npy")), EG_ERROR_FILE, "row.npy: byte ");
    }
}
TEST(broken_npy_files) {
    const row rows[] = {
        { "empty", BYTES(""), "shorter than its shortest header" },
        { "text", BYTES("hello, this is no array"), "byte 0: no .npy file" },
        { "version", BYTES("\x93NUMPY\4\0\2\0{}"), "version 4.0" },
        { "minor version", BYTES("\x93NUMPY\1\1\2\0{}"), "version 1.1" },
        { "cut in the header", BYTES("\x93NUMPY\1\0\x76\0{'descr': '<f4'"), "truncated" },
        { "long header", BYTES("\x93NUMPY\1\0\x11\x27{'descr': '<f4'"), "more than 10000 bytes" },
        { "huge header", BYTES("\x93NUMPY\2\0\xff\xff\xff\xff{'descr': '<f4'"), "more than 10000 bytes" },
        { "version 2 cut", BYTES("\x93NUMPY\2\0\1\0"), "truncated" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_bytes(test_temp("b.npy"), rows[i].bytes, (size_t)rows[i].n);
        CHECK_ERROR(eg_load_npy(test_temp("b.npy")), EG_ERROR_FILE, rows[i].error);
    }
    write_bytes(test_temp("v2.npy"),
                BYTES("\x93NUMPY\2\0\x39\0\0\0{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}\n\n\7\0\0\0"));
    CHECK_TENSOR(eg_load_npy(test_temp("v2.npy")), 0, 7);
}
TEST(npy_values_of_other_dtypes) {
    static char bytes[400];
    const struct { const char *descr, *data; int n; eg_dtype dtype; double a, b; } rows[] = {
        { "|i1", "\xff\x7f", 2, EG_INT32, -1, 127 }, { "<i2", "\xff\xff\1\2", 4, EG_INT32, -1, 513 },
        { ">i2", "\xff\xff\1\2", 4, EG_INT32, -1, 258 },
        { "<u2", "\xff\xff\1\2", 4, EG_INT32, 65535, 513 },
        { "<u4", "\xff\xff\xff\xff\1\0\0\0", 8, EG_INT64, 4294967295.0, 1 },
        { "<u8", "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16, EG_INT64, 1, 2 },
        { ">f4", "\x3f\x80\0\0\xc0\0\0\0", 8, EG_FLOAT32, 1, -2 },
        { "|b1", "\0\5", 2, EG_BOOL, 0, 1 }, { "<f2", "\0\x3c\0\xc0", 4, EG_FLOAT16, 1, -2 },
        { "=f4", "\0\0\x80\x3f\0\0\0\xc0", 8, EG_FLOAT32, 1, -2 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EG_SCOPE;
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", rows[i].descr);
        int64_t n = npy_file(bytes, header, 0);
        memcpy(bytes + n, rows[i].data, (size_t)rows[i].n);
        write_bytes(test_temp("v.npy"), bytes, (size_t)(n + rows[i].n));
        eg_tensor *x = eg_load_npy(test_temp("v.npy"));
        CHECK_DTYPE(x, rows[i].dtype);
        CHECK_TENSOR(x, 0, rows[i].a, rows[i].b);
    }
    int64_t n = npy_file(bytes, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", 0);
    memcpy(bytes + n, "\0\0\0\0\0\0\0\x80", 8);
    write_bytes(test_temp("u8.npy"), bytes, (size_t)n + 8);
    CHECK_ERROR(eg_load_npy(test_temp("u8.npy")), EG_ERROR_FILE, "a uint64 value is too large for int64");
    n = npy_file(bytes, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 6);  // 0 1 2 3 4 5 in columns
    write_bytes(test_temp("f.npy"), bytes, (size_t)n);
    CHECK_TENSOR(eg_load_npy(test_temp("f.npy")), 0, 0, 2, 4, 1, 3, 5);
}

static size_t safe_file(char *to, const char *header, int data) {
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++) to[i] = (char)((unsigned long long)n >> (8 * i) & 255);
    memcpy(to + 8, header, n);
    for (int i = 0; i < data; i++) to[8 + n + (size_t)i] = (char)i;
    return 8 + n + (size_t)data;
}
#define F32(name, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"
static const struct { const char *header; int data; const char *error; } safe_rows[] = {
    { "{" F32("a", "[1]", 0, 4) "}  ", 4, NULL },
    { " {" F32("a", "[1]", 4, 8) "," F32("b", "[]", 0, 4) "}", 8, NULL },  // not in order; a scalar
    { "{" F32("a", "[0, 5]", 0, 0) "," F32("b", "[0]", 0, 0) "," F32("c", "[1]", 0, 4) "," F32("d", "[0]", 4, 4) "}", 4,
      NULL },
    { "{\"__metadata__\":{\"format\":\"pt\"}," F32("a", "[1]", 0, 4) "}", 4, NULL },
    // unaligned
    { "{\"\\u00e9 \\ud83d\\ude00\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":null}," F32(
          "a", "[1]", 1, 5) "}", 5, NULL },
    { "{}", 0, NULL },
    { "{" F32("a", "[1]", 0, 4) "," F32("a", "[1]", 4, 8) "}", 8, "byte 62: the name 'a' stands there twice" },
    { "{" F32("a", "[1]", 0, 4) "}", 8, "byte 66: 4 bytes after the last tensor" },
    { "{" F32("a", "[1]", 0, 4) "," F32("b", "[1]", 8, 12) "}", 12, "tensor 'b': a hole in front of its data" },
    { "{" F32("a", "[2]", 0, 8) "," F32("b", "[1]", 4, 8) "}", 8, "tensor 'b': its data overlaps another's" },
    { "{" F32("a", "[1]", 0, 4) "," F32("b", "[1]", 0, 4) "}", 4, "overlaps" },
    { "{" F32("a", "[1]", 4, 0) "}", 4, "its data ends before it begins" },
    { "{" F32("a", "[1]", 0, 4) "}", 3,
      "the file is shorter (65 bytes) than its header needs (66 bytes, for tensor 'a'): probably truncated" },
    { "{" F32("a", "[1]", 0, 4) "," F32("b", "[3]", 4, 16) "}", 4, "bytes, for tensor 'b'): probably truncated" },
    { "{" F32("a", "[2]", 0, 4) "}", 4, "its shape and dtype need 8 bytes, its data_offsets say 4" },
    { "{" F32("a", "[4611686018427387904, 4]", 0, 4) "}", 4, "more bytes than 64 bits count" },
    { "{" F32("a", "[-1]", 0, 4) "}", 4, "a dimension is no size" },
    { "{" F32("a", "[1.0]", 0, 4) "}", 4, "a dimension is no size" },
    { "{" F32("a", "[18446744073709551617]", 0, 4) "}", 4, "a dimension is no size" },
    { "{" F32("a", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, "more than 8 dimensions" },
    { "{" F32("a", "3", 0, 4) "}", 4, "its shape is no list" },
    { "{" F32("a", "[1]", 0, 4.5) "}", 4, "data_offsets are not two whole numbers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4,
      "data_offsets are not two whole numbers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "without data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "without a shape" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "without a dtype" },
    { "{\"a\":{\"dtype\":\"F8_E5M2\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
      "tensor 'a': dtype 'F8_E5M2' is none that can be read" },
    { "{\"a\":{\"dtype\":32,\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "dtype '?'" },
    { "{\"a\":7}", 0, "its entry is no object" },
    { "{\"__metadata__\":{\"step\":3}}", 0, "metadata 'step' is no text" },
    { "{\"__metadata__\":[]}", 0, "is no object of texts" },
    { "[]", 0, "the header is no JSON object" },
    { "", 0, "broken JSON: it ends too early" },
    { "{\"a\":{\"dtype\":\"F32\"", 0, "broken JSON" },
    { "{\"a\" 1}", 0, "byte 13: broken JSON: a ':' is missing" },
    { "{a:1}", 0, "byte 9: broken JSON: a name in quotes is missing" },
    { "{\"a\":1,}", 0, "broken JSON: a name in quotes" },
    { "{\"a\":1 \"b\":2}", 0, "a ',' or '}' is missing" },
    { "{\"a\":[1 2]}", 0, "a ',' or ']' is missing" },
    { "{\"a\":01}", 0, "no value stands here" },
    { "{\"a\":1.}", 0, "without digits after its point" },
    { "{\"a\":1e}", 0, "without an exponent" },
    { "{\"a\":nul}", 0, "no value stands here" },
    { "{\"a\":\"\\x\"}", 0, "no such escape" },
    { "{\"a\":\"\\ud800\"}", 0, "half of a surrogate pair" },
    { "{\"a\":\"\\udc00\"}", 0, "no such escape" },
    { "{\"a\\u0000\":1}", 0, "a string with a zero byte" },
    { "{\"a\":\"\n\"}", 0, "a control character" },
    { "{\"a", 0, "a string does not end" },
    { "{} {}", 0, "there is more after its end" },
    { "{\"\xff\":1}", 0, "byte 10: bytes that are not UTF-8" },
    { "{\"\xc0\xaf\":1}", 0, "not UTF-8" },
    { "{\"\xed\xa0\x80\":1}", 0, "not UTF-8" },
    { "{\"\xf4\x90\x80\x80\":1}", 0, "not UTF-8" },
    { "{\"\xe2\x82", 0, "not UTF-8" },
    { "{\"\x80\":1}", 0, "byte 10: bytes that are not UTF-8" },
    { "{\"\xc2z\":1}", 0, "not UTF-8" },
    { "{\"\xe0\x9f\xbf\":1}", 0, "not UTF-8" },      // three bytes for what two hold
    { "{\"\xf0\x8f\xbf\xbf\":1}", 0, "not UTF-8" },  // four for what three hold
    { "{\"\xf5\x80\x80\x80\":1}", 0, "not UTF-8" },
    // at the edges of UTF-8
    { "{\"__metadata__\":{\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80"
      "\xf1\x80\x80\x80\xf4\x8f\xbf\xbf\":\"\"}}", 0, NULL },
    { "{\"__metadata__\":{\"\\u007F\\u0439\\u20aC\\ufFfF\\uDBFF\\uDFFF\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}}", 0, NULL },
    { "\t{\r\n\"__metadata__\" :\t{ } }\r", 0, NULL },
    { "{\"a\":\"\\", 0, "broken JSON: no such escape" },
    { "{\"a\":\"\\u12", 0, "no such escape" },
    { "{\"a\":\"\\u12g4\"}", 0, "no such escape" },
    { "{\"a\":\"\\u12/4\"}", 0, "no such escape" },
    { "{\"a\":\"\\u12:4\"}", 0, "no such escape" },
    { "{\"a\":\"\\u12@4\"}", 0, "no such escape" },
    { "{\"a\":\"\\ud800\\u", 0, "half of a surrogate pair" },
    { "{\"a\":\"\\ud800 and more\"}", 0, "half of a surrogate pair" },
    { "{\"a\":\"\\ud800\\n a line\"}", 0, "half of a surrogate pair" },
    { "{\"a\":\"\\ud800\\u0041 \"}", 0, "half of a surrogate pair" },
    { "{\"a\":\"\\ud800\\ue000 \"}", 0, "half of a surrogate pair" },
    { "{\"a\":\"\\ud800\\u00x0 \"}", 0, "half of a surrogate pair" },
    { "7", 0, "the header is no JSON object" },
    { "-7.25", 0, "the header is no JSON object" },
    { "1E+5", 0, "the header is no JSON object" },
    { "true", 0, "the header is no JSON object" },
    { "\"text\"", 0, "the header is no JSON object" },
    { "-", 0, "no value stands here" },
    { "1.", 0, "without digits after its point" },
    { "1e", 0, "without an exponent" },
    { "1e-", 0, "without an exponent" },
    { "1e+x", 0, "without an exponent" },
    { "{\"a\"", 0, "a ':' is missing" },
    { "{\"a\":", 0, "it ends too early" },
    { "{\"a\":1", 0, "a ',' or '}' is missing" },
    { "[1", 0, "a ',' or ']' is missing" },
    { "[", 0, "it ends too early" },
    { "{", 0, "a name in quotes is missing" },
    { "{" F32("a", "[9223372036854775808]", 0, 4) "}", 4, "a dimension is no size" },
    { "{" F32("a", "[1e0]", 0, 4) "}", 4, "a dimension is no size" },
    { "{" F32("a", "[\"1\"]", 0, 4) "}", 4, "a dimension is no size" },
    { "{" F32("a", "[1]", -4, 0) "}", 4, "its data ends before it begins" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":\"04\"}}", 4,
      "data_offsets are not two whole numbers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[null,4]}}", 4,
      "data_offsets are not two whole numbers" },
    // several at one place
    { "{" F32("c", "[0]", 0, 0) "," F32("b", "[1]", 0, 4) "," F32("a", "[0]", 0, 0) "," F32("d", "[0]", 4, 4) "}", 4,
      NULL },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1152921504606846975],\"data_offsets\":[8070450532247928832,"
      "9223372036854775807]}}", 4,
      "than its header needs (9223372036854775807 bytes, for tensor 'a')" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1152921504606846976],\"data_offsets\":[0,1152921504606846976]}}", 4,
      "more bytes than 64 bits count" }
};
TEST(broken_safetensors_headers) {
    static char bytes[700];
    for (size_t i = 0; i < sizeof safe_rows / sizeof safe_rows[0]; i++) {
        write_bytes(test_temp("row.safetensors"), bytes, safe_file(bytes, safe_rows[i].header, safe_rows[i].data));
        eg_archive *a = eg_load_safetensors(test_temp("row.safetensors"));
        if (safe_rows[i].error) CHECK(a == NULL);
        else CHECK(a != NULL);
        if (safe_rows[i].error && (eg_error() != EG_ERROR_FILE || !strstr(eg_error_message(), safe_rows[i].error) ||
                                   !strstr(eg_error_message(), "row.safetensors: ")))
            test_contains(__FILE__, __LINE__, safe_rows[i].header, eg_error_message(), safe_rows[i].error);
        eg_error_clear();
        eg_archive_release(a);
    }
    char deep[600] = "";
    memset(deep, '[', 300);
    write_bytes(test_temp("deep.safetensors"), bytes, safe_file(bytes, deep, 0));
    CHECK_ERROR(eg_load_safetensors(test_temp("deep.safetensors")), EG_ERROR_FILE, "nested too deep (136");
    memset(deep, '1', 500);
    write_bytes(test_temp("digits.safetensors"), bytes, safe_file(bytes, deep, 0));
    CHECK_ERROR(eg_load_safetensors(test_temp("digits.safetensors")), EG_ERROR_FILE,
                "byte 8: a number of too many digits");
    const row rows[] = {
        { "empty", BYTES(""), "shorter than 8 bytes" },
        { "seven", BYTES("1234567"), "shorter than 8 bytes" },
        { "beyond", BYTES("\3\0\0\0\0\0\0\0{}"), "truncated: a header of 3 bytes, but 2 follow; the file is shorter "
                                                 "(10 bytes) than its header needs (11 bytes)" },
        { "too long", BYTES("\1\xe1\xf5\5\0\0\0\0{}"), "no safetensors file: one begins with the "
                                                            "length of its header, and these 8 bytes are the "
                                                            "number 100000001; at most 100000000 are" },
        { "largest", BYTES("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
                       "these 8 bytes are the number 18446744073709551615;" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_bytes(test_temp("b.safetensors"), rows[i].bytes, (size_t)rows[i].n);
        CHECK_ERROR(eg_load_safetensors(test_temp("b.safetensors")), EG_ERROR_FILE, rows[i].error);
    }
    char ten[200];
    write_bytes(test_temp("names.safetensors"), ten, safe_file(
            ten, "{\"\\u00e9 \\ud83d\\ude00\\t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1));
    eg_archive *a = eg_load_safetensors(test_temp("names.safetensors"));
    CHECK_STR(eg_archive_name(a, 0), "\xc3\xa9 \xf0\x9f\x98\x80\t");
    eg_archive_release(a);
}

static void put(unsigned char *p, unsigned long long v, int n) {
    for (int i = 0; i < n; i++, v >>= 8) p[i] = (unsigned char)(v & 255);
}
// A header costs a few times its bytes, whatever stands in it.
TEST(headers_of_many_small_things) {
    static const char *const parts[][3] = { { "{\"a\":[", "0,", "0]}" },
                                            { "{\"a\":[", "[],", "0]}" }, { "{", "\"%07d\":1,", "\"a\":1}" },
                                            { "{\"__metadata__\":{", "\"%07d\":\"\",", "\"a\":\"\"}}" },
                                            { "{", "\"%07d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
                                            "\"a\":{}}" } };
    size_t room = (size_t)1 << 20;
    char *bytes = (char *)malloc(room + 200);
    for (int k = 0; k < 5; k++) {
        // texts are looked up one by one
        size_t n = 8 + (size_t)snprintf(bytes + 8, 100, "%s", parts[k][0]), each = k < 3 ? room : room / 16;
        for (int i = 0; n < each; i++) {
            char part[100], digits[16];
            const char *at = strstr(parts[k][1], "%07d");
            snprintf(digits, sizeof digits, "%07d", i);
            snprintf(part, sizeof part, "%.*s%s%s", (int)(at ? at - parts[k][1] : 0), parts[k][1], at ? digits : "",
                     at ? at + 4 : parts[k][1]);
            n += (size_t)snprintf(bytes + n, 100, "%s", part);
        }
        n += (size_t)snprintf(bytes + n, 100, "%s", parts[k][2]);
        put((unsigned char *)bytes, n - 8, 8);
        write_bytes(test_temp("many.safetensors"), bytes, n);
        int64_t before = eg_memory().live_bytes;
        eg_memory_reset_peak();
        eg_archive *a = eg_load_safetensors(test_temp("many.safetensors"));
        CHECK((a != NULL) == (k == 3));
        eg_error_clear();
        int64_t peak = eg_memory().peak_bytes - before;
        if (peak > 8 * (int64_t)n + (1 << 18))
            test_near(__FILE__, __LINE__, parts[k][1], (double)peak, 8 * (double)n, 1 << 18);
        eg_archive_release(a);
    }
    free(bytes);
}

// ---- zip files, broken byte by byte where something stands

typedef void spoil(unsigned char *file, size_t *n, size_t list, size_t end);
#define SPOIL(name) \
    static void spoil_##name(unsigned char *file, size_t *n, size_t list, \
                             size_t end) { (void)file; (void)n; (void)list; (void)end;
SPOIL(nothing) }
SPOIL(comment) put(file + end + 20, 5, 2); memcpy(file + *n, "hello", 5); *n += 5; }
SPOIL(end) *n -= 22; }
SPOIL(parts) file[end + 4] = 1; }
SPOIL(list) put(file + end + 16, *n, 4); }
SPOIL(list_size) put(file + end + 12, 1u << 30, 4); }
SPOIL(count) put(file + end + 8, 5000, 2); put(file + end + 10, 5000, 2); }
SPOIL(entry) file[list] = 'x'; }
SPOIL(entry_cut) put(file + list + 28, 5000, 2); }
SPOIL(method) put(file + list + 10, 12, 2); }
SPOIL(encrypted) file[list + 8] |= 1; }
SPOIL(sizes) put(file + list + 24, 7, 4); }
SPOIL(huge) put(file + list + 24, 0xfffffff0u, 4); put(file + list + 20, 0xfffffff0u, 4); }
SPOIL(bomb) put(file + list + 10, 8, 2); put(file + list + 24, 0x7fffffffu, 4); }
SPOIL(local) file[0] = 'x'; }
SPOIL(place) put(file + list + 42, 5, 4); }
SPOIL(place_far) put(file + list + 42, 0xfffffff0u, 4); }
SPOIL(name_length) put(file + 26, 60000, 2); }
SPOIL(checksum) put(file + list + 16, 7, 4); }
SPOIL(value) file[30 + 5 + 128] ^= 1; }
SPOIL(wide) put(file + list + 24, 0xffffffffu, 4); put(file + list + 20, 0xffffffffu, 4); }
SPOIL(name) file[list + 46] = 0xff; }
SPOIL(name_zero) file[list + 46] = 0; }
SPOIL(twice) file[list + 51 + 46] = 'a'; }
SPOIL(no_npy) memcpy(file + list + 46 + 1, ".txt", 4); }
static const struct { const char *what; spoil *spoil; const char *error; } zip_rows[] = {
    { "whole", spoil_nothing, NULL }, { "with a comment", spoil_comment, NULL },
    { "with a member that is no .npy", spoil_no_npy, NULL },
    { "no end", spoil_end, "end record is missing" }, { "in parts", spoil_parts, "in several parts" },
    { "list elsewhere", spoil_list, "list of members is not in it" },
    { "list too large", spoil_list_size, "list of members is not in it" },
    { "too many", spoil_count, "counts more members than it lists" },
    { "entry", spoil_entry, "a member's entry is missing" },
    { "entry cut", spoil_entry_cut, "a member's entry is cut off" },
    { "method", spoil_method, "member 'a' is compressed by method 12" },
    { "encrypted", spoil_encrypted, "an encrypted member" },
    { "two sizes", spoil_sizes, "a stored member has two sizes" }, { "huge", spoil_huge, "which the file cannot hold" },
    { "bomb", spoil_bomb, "which the file cannot hold" },
    { "local", spoil_local, "byte 0: broken zip file: a member is not where the list says" },
    { "place", spoil_place, "byte 5: broken zip file: a member is not where the list says" },
    { "far away", spoil_place_far, "overlaps" }, { "name length", spoil_name_length, "lies beyond its end" },
    { "checksum", spoil_checksum, "member 'a' is corrupted: its checksum is" },
    { "value", spoil_value, "member 'a' is corrupted" },
    { "zip64 without its field", spoil_wide, "64 bit sizes are missing" },
    { "name", spoil_name, "a name that is not UTF-8" },
    { "zero in the name", spoil_name_zero, "a name that is not UTF-8" },
    { "twice", spoil_twice, "the name 'a' stands there twice" }
};
TEST(broken_npz_files) {
    eg_archive *a = eg_archive_new();
    size_t n, m;
    CHECK(eg_archive_add(a, "a", eg_constant(EG_SHAPE(2), 1, 2)) && eg_archive_add(a, "b", 3));
    CHECK(eg_save_npz(a, test_temp("good.npz")));
    eg_archive_release(a);
    unsigned char *good = read_bytes(test_temp("good.npz"), &n);
    REQUIRE(good);
    unsigned char *bytes = (unsigned char *)malloc(n + 64);
    size_t end = n - 22, list = end - 2 * 51;
    for (size_t i = 0; i < sizeof zip_rows / sizeof zip_rows[0]; i++) {
        memcpy(bytes, good, n);
        m = n;
        zip_rows[i].spoil(bytes, &m, list, end);
        write_bytes(test_temp("bad.npz"), bytes, m);
        a = eg_load_npz(test_temp("bad.npz"));
        if (!zip_rows[i].error) { CHECK(a != NULL); CHECK(eg_archive_has(a, "b")); }
        else if (a || eg_error() != EG_ERROR_FILE || !strstr(eg_error_message(), zip_rows[i].error))
            test_contains(__FILE__, __LINE__, zip_rows[i].what, eg_error_message(), zip_rows[i].error);
        eg_error_clear();
        eg_archive_release(a);
    }
    for (m = 0; m < n; m++) {                               // cut at every byte: an error each time
        write_bytes(test_temp("bad.npz"), good, m);
        const char *said =
            m < 22 ? "shorter than an empty zip file"
            : m == 35
            ? "the file is shorter (35 bytes) than its header needs (171 bytes, for member 'a.npy'): probably truncated"
            : "probably truncated";
        CHECK_ERROR(a = eg_load_npz(test_temp("bad.npz")), EG_ERROR_FILE, said);
        CHECK(a == NULL);
    }
    free(good);
    free(bytes);
}
TEST(metadata_of_npz_that_is_none) {
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "__metadata__", eg_constant_of(EG_UINT8, EG_SHAPE(2), '[', ']')));
    CHECK(eg_save_npz(a, test_temp("meta.npz")));
    CHECK_ERROR(eg_load_npz(test_temp("meta.npz")), EG_ERROR_FILE, "__metadata__ is no JSON object");
    CHECK_ERROR(eg_save_safetensors(a, test_temp("meta.safetensors")), EG_ERROR_ARGUMENT,
                "no tensor can be named __metadata__");
    eg_archive_release(a);
    a = eg_archive_new();
    CHECK(eg_archive_add(a, "__metadata__", 3));            // not ours: a tensor like any other
    CHECK(eg_archive_set_text(a, "key", "a text"));
    CHECK_ERROR(eg_save_npz(a, test_temp("meta.npz")), EG_ERROR_ARGUMENT,
                "no tensor can be named __metadata__ beside texts");
    CHECK(eg_archive_set_text(a, "key", NULL));
    CHECK(eg_save_npz(a, test_temp("meta.npz")));
    eg_archive_release(a);
    a = eg_load_npz(test_temp("meta.npz"));
    CHECK(eg_archive_has(a, "__metadata__"));
    eg_archive_release(a);
}

// ---- zip files as others make them: compressed, with 64 bit sizes, with fields and members that say nothing to us

// 64 bit sizes; stored blocks of deflate; another field first; sizes behind the data
enum { ZIP_WIDE = 1, ZIP_DEFLATED = 2, ZIP_STAMPED = 4, ZIP_BEHIND = 8 };
typedef struct zip_place { size_t list, wide_end, locator, end, n; } zip_place;
static uint32_t zip_crc(const unsigned char *p, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}
// One member in a file; returns where its parts are.
static zip_place zip_file(unsigned char *to, const char *name, const void *bytes, size_t n, unsigned how) {
    zip_place z;
    size_t packed = n + (how & ZIP_DEFLATED ? 5 : 0), length = strlen(name), at = 0;
    for (int central = 0; central < 2; central++) {
        bool wide = how & ZIP_WIDE;
        size_t extra = (wide ? central ? 28u : 20u : 0u) + (how & ZIP_STAMPED ? 9u : 0u);
        if (central) z.list = at;
        put(to + at, central ? 0x02014b50 : 0x04034b50, 4);
        at += 4;
        if (central) { put(to + at, 45, 2); at += 2; }
        put(to + at, 45, 2);
        put(to + at + 2, how & ZIP_BEHIND ? 8 : 0, 2);
        put(to + at + 4, how & ZIP_DEFLATED ? 8 : 0, 2);
        put(to + at + 6, 0, 4);
        put(to + at + 10, zip_crc((const unsigned char *)bytes, n), 4);
        put(to + at + 14, wide ? 0xffffffffu : packed, 4);
        put(to + at + 18, wide ? 0xffffffffu : n, 4);
        put(to + at + 22, length, 2);
        put(to + at + 24, extra, 2);
        at += 26;
        if (central) { put(to + at, 0, 10); put(to + at + 10, wide ? 0xffffffffu : 0, 4); at += 14; }
        memcpy(to + at, name, length);
        at += length;
        if (how & ZIP_STAMPED) { put(to + at, 0x5455, 2); put(to + at + 2, 5, 2); memset(to + at + 4, 1, 5); at += 9; }
        if (wide) {
            put(to + at, 1, 2);
            put(to + at + 2, central ? 24 : 16, 2);
            put(to + at + 4, n, 8);
            put(to + at + 12, packed, 8);
            at += 20;
        }
        if (wide && central) { put(to + at, 0, 8); at += 8; }
        if (central) break;
        // the last block, as it is
        if (how & ZIP_DEFLATED) {
            to[at] = 1;
            put(to + at + 1, n, 2);
            put(to + at + 3, ~(unsigned long long)n, 2);
            at += 5;
        }
        memcpy(to + at, bytes, n);
        at += n;
    }
    z.wide_end = z.locator = z.end = at;
    if (how & ZIP_WIDE) {
        put(to + at, 0x06064b50, 4); put(to + at + 4, 44, 8); put(to + at + 12, 45, 2); put(to + at + 14, 45, 2);
        put(to + at + 16, 0, 8);
        put(to + at + 24, 1, 8); put(to + at + 32, 1, 8); put(to + at + 40, z.wide_end - z.list, 8);
        put(to + at + 48, z.list, 8);
        z.locator = at + 56;
        put(to + z.locator, 0x07064b50, 4); put(to + z.locator + 4, 0, 4); put(to + z.locator + 8, z.wide_end, 8);
        put(to + z.locator + 16, 1, 4);
        z.end = z.locator + 20;
    }
    put(to + z.end, 0x06054b50, 4); put(to + z.end + 4, 0, 4);
    put(to + z.end + 8, how & ZIP_WIDE ? 0xffff : 1, 2); put(to + z.end + 10, how & ZIP_WIDE ? 0xffff : 1, 2);
    put(to + z.end + 12, how & ZIP_WIDE ? 0xffffffffu : z.wide_end - z.list, 4);
    put(to + z.end + 16, how & ZIP_WIDE ? 0xffffffffu : z.list, 4);
    put(to + z.end + 20, 0, 2);
    z.n = z.end + 22;
    return z;
}
static const char *zip_lacks(unsigned how) {
#ifdef EAGER_ZLIB
    (void)how;
    return NULL;
#else
    return how & ZIP_DEFLATED ? "is compressed; compile with -DEAGER_ZLIB" : NULL;
#endif
}
TEST(npz_files_of_others) {
    static char bytes[400];
    static unsigned char zip[1000];
    for (unsigned how = 0; how < 16; how++)
        for (size_t i = 0; i < sizeof npy_rows / sizeof npy_rows[0]; i++) {
            const char *error = zip_lacks(how) ? zip_lacks(how) : npy_rows[i].error;
            size_t n = (size_t)npy_file(bytes, npy_rows[i].header, npy_rows[i].data);
            zip_place z = zip_file(zip, "a.npy", bytes, n, how);
            write_bytes(test_temp("row.npz"), zip, z.n);
            eg_archive *a = eg_load_npz(test_temp("row.npz"));
            // another byte of this file, or none
            if (error && !strncmp(error, "byte ", 5)) error = strchr(error, ':') + 2;
            if (!error && !a) test_contains(__FILE__, __LINE__, npy_rows[i].header, eg_error_message(), "no error");
            else if (!error) CHECK(eg_archive_has(a, "a") && eg_archive_count(a) == 1);
            else if (a || eg_error() != EG_ERROR_FILE || !strstr(eg_error_message(), error))
                test_contains(__FILE__, __LINE__, npy_rows[i].header, eg_error_message(), error);
            eg_error_clear();
            eg_archive_release(a);
        }
}
#define WIDE(name) static void wide_##name(unsigned char *b, size_t *n, const zip_place *z) { (void)b; (void)n; (void)z;
WIDE(nothing) }
WIDE(comment) put(b + z->end + 20, 4, 2); memcpy(b + *n, "PK\5\6", 4); *n += 4; }
WIDE(comment_cut) put(b + z->end + 20, 40, 2); }
WIDE(locator) b[z->locator] = 'x'; }
WIDE(locator_far) put(b + z->locator + 8, 100000, 8); }
WIDE(locator_below) put(b + z->locator + 8, 1ull << 63, 8); }
WIDE(end) b[z->wide_end] = 'x'; }
WIDE(count) put(b + z->wide_end + 32, 2, 8); }
WIDE(count_below) put(b + z->wide_end + 32, ~0ull, 8); }
WIDE(size_below) put(b + z->wide_end + 40, ~0ull, 8); }
WIDE(start_below) put(b + z->wide_end + 48, ~0ull, 8); }
WIDE(field_short) put(b + z->list + 46 + 5 + 2, 16, 2); }
WIDE(field_long) put(b + z->list + 46 + 5 + 2, 100, 2); }
WIDE(field_other) put(b + z->list + 46 + 5, 7, 2); }
WIDE(whole_size_below) put(b + z->list + 46 + 5 + 4, ~0ull, 8); }
WIDE(packed_below) put(b + z->list + 46 + 5 + 12, 1ull << 63, 8); }
WIDE(place_below) put(b + z->list + 46 + 5 + 20, ~0ull, 8); }
WIDE(place_far) put(b + z->list + 46 + 5 + 20, ~0ull >> 1, 8); }
WIDE(narrow_place) put(b + z->list + 42, 0, 4); }
WIDE(short_name) put(b + z->list + 28, 3, 2); put(b + z->list + 30, 30, 2); memmove(b + z->list + 46, "xyz\7\0\2\0",
7); memmove(b + z->list + 53, "\1\0\x18\0", 4); }
WIDE(list_beyond) b[z->end + 10] = 1; b[z->end + 11] = 0; put(b + z->end + 8, 1, 2); put(b + z->end + 12, 47,
4); put(b + z->end + 16, 9, 4); }
TEST(zip_files_of_64_bits) {
    static const struct { const char *what; void (*spoil)(unsigned char *, size_t *, const zip_place *);
                          const char *error; } rows[] = {
        { "whole", wide_nothing, NULL }, { "with a comment that looks like an end", wide_comment, NULL },
        { "a comment that is longer than the file", wide_comment_cut, "probably truncated" },
        { "no locator", wide_locator, "list of members is not in it" },
        { "a locator that points beyond", wide_locator_far, "it points beyond its end" },
        { "a locator that points before", wide_locator_below, "it points beyond its end" },
        { "no end record", wide_end, "its 64 bit end record is missing" },
        { "more members", wide_count, "it counts more members than it lists" },
        { "a negative count", wide_count_below, "it counts more members than it lists" },
        { "a negative size", wide_size_below, "list of members is not in it" },
        { "a negative start", wide_start_below, "list of members is not in it" },
        { "a short field", wide_field_short, "64 bit sizes are missing" },
        { "a long field", wide_field_long, "64 bit sizes are missing" },
        { "another field", wide_field_other, "64 bit sizes are missing" },
        { "a member's size below zero", wide_whole_size_below, "64 bit sizes are missing" },
        { "its packed size below zero", wide_packed_below, "64 bit sizes are missing" },
        { "its place below zero", wide_place_below, "64 bit sizes are missing" },
        { "its place far away", wide_place_far, "overlaps what follows" },
        { "its place in 32 bits", wide_narrow_place, NULL },
        { "a member of three letters", wide_short_name, "" },
        { "32 bits without their numbers", wide_list_beyond, "a member's entry is missing" } };
    static char npy[400];
    static unsigned char good[1000], bytes[1100];
    size_t n = (size_t)npy_file(npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 12);
    zip_place z = zip_file(good, "a.npy", npy, n, ZIP_WIDE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t m = z.n;
        memcpy(bytes, good, z.n);
        rows[i].spoil(bytes, &m, &z);
        write_bytes(test_temp("wide.npz"), bytes, m);
        eg_archive *a = eg_load_npz(test_temp("wide.npz"));
        if (!rows[i].error ? !a || !eg_archive_has(a, "a")
            : *rows[i].error ? a || !strstr(eg_error_message(), rows[i].error)
            : !a || eg_archive_count(a))
            test_contains(__FILE__, __LINE__, rows[i].what, eg_error_message(), rows[i].error);
        eg_error_clear();
        eg_archive_release(a);
    }
    // cut at every byte: an error each time, which names the member where its size is known
    for (unsigned how = 0; how < 16; how++)
        for (size_t m = 0, end = (z = zip_file(good, "a.npy", npy, n, how)).n; m < end; m++) {
            write_bytes(test_temp("wide.npz"), good, m);
            CHECK_ERROR(eg_load_npz(test_temp("wide.npz")), EG_ERROR_FILE,
                        m < 22 ? "shorter than an empty zip file"
                        : m > 100 && m < z.list && !(how & ZIP_BEHIND) ? "for member 'a.npy'): probably truncated"
                        : "probably truncated");
        }
    zip_file(good, "a.npy", npy, n, ZIP_WIDE);
    put(good + 30 + 5 + 12, ~0ull >> 1, 8);                 // a size that no file has
    write_bytes(test_temp("wide.npz"), good, 200);
    CHECK_ERROR(eg_load_npz(test_temp("wide.npz")), EG_ERROR_FILE,
                "needs (9223372036854775807 bytes, for member 'a.npy')");
    write_bytes(test_temp("wide.npz"), good, 60);           // its 64 bit sizes are those of a field that is cut
    put(good + 30 + 5 + 2, 8, 2);
    write_bytes(test_temp("wide.npz"), good, 100);
    CHECK_ERROR(eg_load_npz(test_temp("wide.npz")), EG_ERROR_FILE,
                "a zip file's end record is missing: probably truncated");
    write_bytes(test_temp("wide.npz"), "PK no zip file, though it begins so", 35);
    CHECK_ERROR(eg_load_npz(test_temp("wide.npz")), EG_ERROR_FILE, "no .npz file: a zip file's end record is missing");
    static unsigned char more[2000];
    char name[400] = "";
    memset(name, 'n', 300);
    z = zip_file(more, name, npy, n, 0);                    // a name longer than what is told of it
    write_bytes(test_temp("wide.npz"), more, 400);
    CHECK_ERROR(eg_load_npz(test_temp("wide.npz")), EG_ERROR_FILE, "probably truncated");
}
#ifdef EAGER_ZLIB
TEST(compressed_members_that_are_broken) {
    const struct { const char *what; size_t at; unsigned long long value; int bytes; unsigned promised;
                   const char *error; } rows[] = {
        { "a block of no kind", 35, 7, 1, 0, "broken compressed data" },
        { "a block with another length", 38, 0, 2, 0, "broken compressed data" },
        { "not the last block", 35, 0, 1, 1, "truncated compressed data" },
        { "an empty last block", 36, 0xffff0000u, 4, 0, "truncated: the compressed data ends too early" },
        { "a byte more than there is", 35, 1, 1, 1, "truncated: the compressed data ends too early" },
        { "a value", 110, 7, 1, 0, "member 'a' is corrupted" } };
    static char npy[400];
    static unsigned char good[1000], bytes[1000];
    size_t n = (size_t)npy_file(npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 12);
    zip_place z = zip_file(good, "a.npy", npy, n, ZIP_DEFLATED);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memcpy(bytes, good, z.n);
        put(bytes + rows[i].at, rows[i].value, rows[i].bytes);
        put(bytes + z.list + 24, n + rows[i].promised, 4);
        write_bytes(test_temp("deflated.npz"), bytes, z.n);
        eg_archive *a = eg_load_npz(test_temp("deflated.npz"));
        if (a || eg_error() != EG_ERROR_FILE || !strstr(eg_error_message(), rows[i].error))
            test_contains(__FILE__, __LINE__, rows[i].what, eg_error_message(), rows[i].error);
        eg_error_clear();
        eg_archive_release(a);
    }
}
#endif
// A list of 65535 members and more takes the 64 bit end record.
TEST(npz_files_of_very_many_arrays) {
    enum { MANY = 65535, EACH = 60 };
    char *text = (char *)malloc(MANY * EACH + 20), name[16];
    REQUIRE(text);
    for (int many = MANY - 1; many <= MANY; many++) {
        char *at = text + 8;
        for (int i = 0; i < many; i++)
            at += snprintf(at, EACH, "%c\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? ',' : '{',
                           i);
        *at++ = '}';
        put((unsigned char *)text, (unsigned long long)(at - text - 8), 8);
        write_bytes(test_temp("very_many.safetensors"), text, (size_t)(at - text));
        eg_archive *a = eg_load_safetensors(test_temp("very_many.safetensors")), *b;
        CHECK_INT(eg_archive_count(a), many);
        CHECK(eg_save_npz(a, test_temp("very_many.npz")));
        b = eg_load_npz(test_temp("very_many.npz"));
        CHECK_INT(eg_archive_count(b), many);
        snprintf(name, sizeof name, "%d", many - 1);
        CHECK_STR(eg_archive_name(b, many - 1), name);
        eg_archive_release(a);
        eg_archive_release(b);
    }
    free(text);
    size_t n;
    unsigned char *bytes = read_bytes(test_temp("very_many.npz"), &n);
    REQUIRE(bytes);
    CHECK(n > 98 && !memcmp(bytes + n - 22 - 20 - 56, "PK\6\6", 4) && !memcmp(bytes + n - 22 - 20, "PK\6\7", 4));
    free(bytes);
    remove(test_temp("very_many.npz"));
    remove(test_temp("very_many.safetensors"));
}

// ---- what can go wrong outside

#ifdef __linux__
TEST(full_disks) {
    EG_SCOPE;
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(100000));
    if (access("/dev/full", W_OK) != 0) SKIP("no /dev/full");
    CHECK_ERROR(eg_save_npy(x, "/dev/full"), EG_ERROR_FILE, "eg_save_npy: /dev/full: ");
    CHECK_ERROR(eg_save_npy(eg_scalar(1), "/dev/full"), EG_ERROR_FILE, "cannot be written: ");
    CHECK(access("/dev/full", W_OK) == 0 && test_left_behind("/dev/full") == 0);
    // A file may grow to 1000 bytes here: what stood there stays, and no temporary file is left.
    struct rlimit old, few;
    const char *path = test_temp("limited.npy");
    CHECK(eg_save_npy(eg_scalar(5), path));
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    few.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &few);
    CHECK_ERROR(eg_save_npy(x, path), EG_ERROR_FILE, "limited.npy: ");
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK_TENSOR(eg_load_npy(path), 0, 5);
    CHECK_INT(test_left_behind(path), 0);
}
// A disk that is full wherever the file ends: an error, the old file stays, and nothing lies beside it.
static eg_archive *full_archive;
static eg_tensor *full_tensor;
static bool full_npy(const char *path) { return eg_save_npy(full_tensor, path); }
static bool full_npz(const char *path) { return eg_save_npz(full_archive, path); }
static bool full_safetensors(const char *path) { return eg_save_safetensors(full_archive, path); }
static bool full_png(const char *path) { return eg_save_png(path, full_tensor); }
TEST(disks_that_are_full_anywhere) {
    const struct { const char *name; bool (*save)(const char *path); } formats[] = {
        { "full.npy", full_npy }, { "full.npz", full_npz }, { "full.safetensors", full_safetensors },
        { "full.png", full_png } };
    struct rlimit old, few;
    full_tensor = eg_random_uniform(EG_SHAPE(50, 40, 3));
    full_archive = eg_archive_new();
    CHECK(eg_archive_add(full_archive, "large", full_tensor) && eg_archive_add(full_archive, "small", 3) &&
          eg_archive_add(full_archive, "large, too", eg_ones(EG_FLOAT64, EG_SHAPE(900))));
    for (int i = 0; i < 40; i++) {
        char key[32];
        snprintf(key, sizeof key, "key %d", i);
        CHECK(eg_archive_set_text(
                full_archive, key,
                "a text of many that fill what is written of them, and more than one block of it, too"));
    }
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    signal(SIGXFSZ, SIG_IGN);
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        char path[4096];
        size_t n, m;
        snprintf(path, sizeof path, "%s", test_temp(formats[k].name));
        REQUIRE(formats[k].save(path));
        unsigned char *bytes = read_bytes(path, &n), *after;
        REQUIRE(bytes);
        for (size_t room = 0; room < n; room += room + 400 > n && room + 1 < n ? n - 1 - room : 397) {
            few.rlim_cur = (rlim_t)room;
            setrlimit(RLIMIT_FSIZE, &few);
            bool ok = formats[k].save(path);
            setrlimit(RLIMIT_FSIZE, &old);
            CHECK(!ok && eg_error() == EG_ERROR_FILE && test_left_behind(path) == 0);
            CHECK_CONTAINS(eg_error_message(), "cannot be written: ");
            eg_error_clear();
            if (room + 1 == n) break;
        }
        after = read_bytes(path, &m);
        CHECK(after && n == m && !memcmp(bytes, after, n));
        free(bytes);
        free(after);
    }
    char longest[65100];
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = 0;
    CHECK(eg_archive_add(full_archive, longest, 1));
    CHECK_ERROR(eg_save_npz(full_archive, test_temp("full.npz")), EG_ERROR_ARGUMENT,
                "eg_save_npz: a name of 65099 bytes; a zip file has no room for it");
    CHECK_INT(test_left_behind(test_temp("full.npz")), 0);
    eg_archive_release(full_archive);
    full_archive = NULL;
    full_tensor = NULL;
}
TEST(names_that_cannot_be_taken) {
    CHECK(mkdir(test_temp("taken.npy"), 0700) == 0 || access(test_temp("taken.npy"), F_OK) == 0);
    CHECK_ERROR(eg_save_npy(eg_scalar(1), test_temp("taken.npy")), EG_ERROR_FILE, "taken.npy: cannot take its name: ");
    CHECK_INT(test_left_behind(test_temp("taken.npy")), 0);
    CHECK_ERROR(eg_save_npy(eg_scalar(1), "/proc/x.npy"), EG_ERROR_FILE, "/proc/x.npy: cannot be written: ");
}
TEST(files_that_cannot_be_written) {
    if (geteuid() == 0) SKIP("root may write anywhere");
    CHECK(mkdir(test_temp("closed"), 0500) == 0 || access(test_temp("closed"), F_OK) == 0);
    CHECK_ERROR(eg_save_npy(eg_scalar(1), test_temp("closed/x.npy")), EG_ERROR_FILE,
                "closed/x.npy: cannot be written: ");
}
TEST(devices_are_written_to_and_not_replaced) {
    CHECK(eg_save_npy(eg_scalar(1), "/dev/null"));
    struct stat s;
    CHECK(stat("/dev/null", &s) == 0 && S_ISCHR(s.st_mode));
    CHECK_ERROR(eg_load_npy("/dev/null"), EG_ERROR_FILE, "its size is not known");
}
#endif

// Every allocation of a save and a load fails once: a clean error each time, nothing leaks, and the old file stays.
typedef bool act(eg_archive *a);
static bool act_npz(eg_archive *a) { return eg_save_npz(a, test_temp("act.npz")); }
static bool act_safetensors(eg_archive *a) { return eg_save_safetensors(a, test_temp("act.safetensors")); }
static bool done(eg_archive *b) { eg_archive_release(b); return b != NULL; }
static bool act_load_npz(eg_archive *a) { (void)a; return done(eg_load_npz(test_temp("act.npz"))); }
static bool act_load_safetensors(eg_archive *a) {
    (void)a;
    return done(eg_load_safetensors(test_temp("act.safetensors")));
}
static bool act_npy(eg_archive *a) {
    EG_SCOPE;
    eg_tensor *x = eg_archive_get(a, "view");
    return x && eg_save_npy(x, test_temp("act.npy"));
}
static bool act_load_npy(eg_archive *a) {
    EG_SCOPE;
    (void)a;
    return eg_load_npy(test_temp("act.npy")) != NULL;
}
static bool act_narrow(eg_archive *a) { (void)a; return done(eg_load_npz(test_temp("narrow.npz"))); }
static bool act_columns(eg_archive *a) {
    EG_SCOPE;
    (void)a;
    return eg_load_npy(test_temp("columns.npy")) != NULL;
}
static bool act_read(eg_archive *a) {
    EG_SCOPE;
    (void)a;
    return eg_read_file(test_temp("columns.npy")) != NULL;
}
static bool act_memory(eg_archive *a) {
    static const char empty[] = "\2\0\0\0\0\0\0\0{}";
    (void)a;
    if (!eg_memory_file_add("act.safetensors", empty, 10)) return false;
    bool ok = done(eg_archive_load("act.safetensors")) && done(eg_archive_load_memory(empty, 10));
    return eg_memory_file_remove("act.safetensors") && ok;
}
static bool act_build(eg_archive *a) {
    EG_SCOPE;
    (void)a;
    eg_archive *b = eg_archive_new();
    bool ok = b && eg_archive_add(b, "x", 1) && eg_archive_set_text(b, "k", "v") && eg_archive_set_text(b, "k", "w") &&
              eg_archive_set_text(b, "k", NULL);
    eg_archive_release(b);
    return ok;
}
TEST(no_memory) {
    act *const acts[] = { act_npz, act_load_npz, act_safetensors, act_load_safetensors, act_npy, act_load_npy,
                          act_build, act_narrow, act_columns, act_read, act_memory };
    if (!test_on_host) SKIP("the device keeps memory of its own");
    char bytes[200];
    unsigned char zip[400];
    // widened, turned, transposed
    size_t length = (size_t)npy_file(bytes, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", 12);
    write_bytes(test_temp("columns.npy"), bytes, length);
    zip_place place = zip_file(zip, "narrow.npy", bytes, length, zip_lacks(ZIP_DEFLATED) ? 0 : ZIP_DEFLATED);
    write_bytes(test_temp("narrow.npz"), zip, place.n);
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        for (int64_t at = 1;; at++) {
            eg_shutdown();
            faults.live = 0;
            if (!eg_set_allocator(faults_allocate, faults_free, NULL)) {
                eg_error_clear();
                SKIP("memory of an earlier test is still held");
            }
            eg_archive *a = every_dtype(false);
            eg_memory_trim();
            int64_t tensors = eg_memory().live_tensors;
            faults_start(at, FAULTS_TWICE);
            bool ok = acts[i](a);
            faults_stop();
            bool failed = faults.failed;
            faults_judge(ok, tensors);
            eg_archive_release(a);
            eg_shutdown();
            CHECK_INT(faults.live, 0);
            CHECK(eg_set_allocator(NULL, NULL, NULL));
            if (!failed || at > 300) break;
        }
}
