// Files in memory: whatever reads a path reads bytes as well, and says the same of them.
#include "test.h"
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif
#ifdef EAGER_ZLIB
#include <zlib.h>
#endif

// A file's bytes in memory of exactly that size, for sanitizers to watch its ends. The caller frees it.
static unsigned char *bytes_of(const char *path, int64_t *n) {
    FILE *f = fopen(path, "rb");
    unsigned char *bytes = NULL;
    *n = 0;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        *n = ftell(f);
        rewind(f);
        bytes = (unsigned char *)malloc((size_t)*n + !*n);
        if (bytes && fread(bytes, 1, (size_t)*n, f) != (size_t)*n) *n = -1;
    }
    if (f) fclose(f);
    return bytes;
}
// From the disk into memory, under another path.
static unsigned char *moved(const char *from, const char *to) {
    int64_t n;
    unsigned char *bytes = bytes_of(from, &n);
    CHECK(bytes && n >= 0 && eg_memory_file_add(to, bytes, n));
    return bytes;
}
static void gone(const char *path, unsigned char *bytes) {
    CHECK(eg_memory_file_remove(path));
    free(bytes);
}
static eg_archive *small(void) {
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "x", eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)) &&
          eg_archive_add(a, "n", eg_constant_of(EG_INT64, EG_SHAPE(3), 7, 8, 9)) &&
          eg_archive_set_text(a, "note", "text"));
    return a;
}
static eg_layer *pair(void) {
    return eg_sequential(eg_layer_dense(3, .activation = EG_TANH, .input_shape = EG_SHAPE(2)), eg_layer_dense(1));
}

TEST(archives_from_memory) {
    static const char *const names[] = { "small.npz", "small.safetensors" };
    for (int k = 0; k < 2; k++) {
        eg_archive *a = small(), *b;
        int64_t n;
        REQUIRE(eg_archive_save(a, test_temp(names[k])));
        unsigned char *bytes = bytes_of(test_temp(names[k]), &n);
        b = eg_archive_load_memory(bytes, n);
        REQUIRE(b);
        CHECK_INT(eg_archive_count(b), 2);
        CHECK_SAME(eg_archive_get(b, "x"), eg_archive_get(a, "x"), 0);
        CHECK_SAME(eg_archive_get(b, "n"), eg_archive_get(a, "n"), 0);
        CHECK_STR(eg_archive_text(b, "note"), "text");
        eg_archive_release(b);
        // of any length that is too short: an error, and no byte beyond it is read
        for (int64_t cut = 0; cut < n; cut += 1 + n / 40) {
            unsigned char *part = (unsigned char *)malloc((size_t)cut + !cut);
            memcpy(part, bytes, (size_t)cut);
            CHECK(eg_archive_load_memory(part, cut) == NULL && eg_error() == EG_ERROR_FILE);
            CHECK_CONTAINS(eg_error_message(), k && cut != 1 && cut != 0 ? ": (memory).safetensors: " : ": (memory).");
            eg_error_clear();
            free(part);
        }
        free(bytes);
        eg_archive_release(a);
    }
    CHECK_ERROR(eg_archive_load_memory("abcdefghijklmnop", 16), EG_ERROR_FILE,
                "eg_archive_load_memory: (memory).safetensors: byte 0: no safetensors file: ");
    CHECK_ERROR(eg_archive_load_memory("", 0), EG_ERROR_FILE,
                "(memory).safetensors: byte 0: no safetensors file: shorter than 8 bytes");
    CHECK_ERROR(eg_archive_load_memory(NULL, 3), EG_ERROR_NULL, "eg_archive_load_memory: the data is NULL");
    CHECK_ERROR(eg_archive_load_memory("x", -1), EG_ERROR_ARGUMENT,
                "eg_archive_load_memory: a size of -1 bytes; it must not be negative");
    CHECK_ERROR(eg_archive_load("(memory).safetensors"), EG_ERROR_FILE, "cannot be opened");
}
TEST(models_and_weights_from_memory) {
    eg_layer *m = pair(), *other = pair(), *whole,
             *wide = eg_layer_dense(3, .input_shape = EG_SHAPE(2), .name = "dense");
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, -1, .5, 2), *y = eg_call(m, x);
    int64_t n;
    REQUIRE(eg_layer_build(other, EG_SHAPE(-1, 2)) && eg_layer_build(wide, EG_SHAPE(-1, 2)) &&
            eg_model_save(m, test_temp("m.safetensors")) && eg_save_weights(m, test_temp("w.npz")));
    unsigned char *bytes = bytes_of(test_temp("m.safetensors"), &n);
    whole = eg_model_load_memory(bytes, n);
    CHECK_SAME(eg_call(whole, x), y, 0);
    CHECK_ERROR(eg_model_load_memory(bytes, n - 1), EG_ERROR_FILE, "(memory).safetensors: the file is shorter");
    free(bytes);
    bytes = bytes_of(test_temp("w.npz"), &n);
    CHECK(eg_load_weights_memory(other, bytes, n));
    CHECK_SAME(eg_call(other, x), y, 0);
    CHECK_ERROR(eg_model_load_memory(bytes, n), EG_ERROR_FILE, "(memory).npz: holds weights, but no architecture");
    CHECK_ERROR(eg_load_weights_memory(wide, bytes, n), EG_ERROR_SHAPE, "eg_load_weights_memory: (memory).npz: ");
    CHECK(eg_load_weights_memory(wide, bytes, n, .prefix = "dense/"));
    eg_tensor *first[4], *own[2];
    REQUIRE(eg_layer_weights(m, first, 4) == 4 && eg_layer_weights(wide, own, 2) == 2);
    CHECK_SAME(own[0], first[0], 0);
    free(bytes);
    CHECK_ERROR(eg_load_weights_memory(other, NULL, 1), EG_ERROR_NULL, "the data is NULL");
    CHECK_ERROR(eg_load_weights_memory(NULL, "", 0), EG_ERROR_NULL, "layer is NULL");
    CHECK_ERROR(eg_model_load_memory(NULL, 1), EG_ERROR_NULL, "the data is NULL");
    eg_layer_release(m);
    eg_layer_release(other);
    eg_layer_release(whole);
    eg_layer_release(wide);
}
// All elements' first components, strung together as doubles.
static int strung(eg_dataset *d, double *to, int most) {
    int n = 0;
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    while (eg_iterator_next(it, out) == EG_NEXT)
        for (int64_t i = 0; i < eg_size(out[0]) && n < most; i++)
            to[n++] = ((const double *)eg_data(eg_cast(out[0], EG_FLOAT64)))[i];
    eg_iterator_release(it);
    eg_dataset_release(d);
    return n;
}
static eg_dataset *as_lines(const char *path) { return eg_dataset_text_lines(&path, 1); }
static eg_dataset *as_csv(const char *path) { return eg_dataset_csv(&path, 1, .components = { { .columns = "0" } }); }
static eg_dataset *as_records(const char *path) { return eg_dataset_tfrecord(&path, 1); }
static eg_dataset *as_rows(const char *path) { return eg_dataset_from_files(&path, 1); }
TEST(datasets_from_memory) {
    static const unsigned char idx[] = { 0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6 };
    const struct { const char *name; eg_dataset *(*make)(const char *path); } kinds[] = {
        { "m.txt", as_lines }, { "m.csv", as_csv }, { "m.tfrecord", as_records }, { "m.idx", as_rows },
        { "m.npy", as_rows }, { "m.npz", as_rows }, { "m.txt.gz", as_lines }, { "m.idx.gz", as_rows } };
    FILE *f = fopen(test_temp("m.txt"), "wb"), *g = fopen(test_temp("m.csv"), "wb"),
         *h = fopen(test_temp("m.idx"), "wb");
    REQUIRE(f && g && h);
    fputs("one\ntwo\n\nthree", f);
    fputs("1,2\n3,4\n5,6\n", g);
    fwrite(idx, 1, sizeof idx, h);
    fclose(f), fclose(g), fclose(h);
    eg_record_writer *w = eg_record_writer_open(test_temp("m.tfrecord"));
    CHECK(eg_record_writer_write(w, "abc", 3) && eg_record_writer_write(w, "d", 1) && eg_record_writer_close(w));
    eg_record_writer_release(w);
    eg_archive *a = eg_archive_new();
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, 6, 1), EG_SHAPE(3, 2));
    CHECK(eg_archive_add(a, "x", x) && eg_save_npz(a, test_temp("m.npz")) && eg_save_npy(x, test_temp("m.npy")));
    eg_archive_release(a);
#ifdef EAGER_ZLIB
    gzFile z = gzopen(test_temp("m.txt.gz"), "wb");          // two members, and something behind them
    CHECK(z && gzputs(z, "one\nt") > 0 && gzclose(z) == Z_OK);
    z = gzopen(test_temp("m.txt.gz"), "ab");
    CHECK(z && gzputs(z, "wo\n\nthree") > 0 && gzclose(z) == Z_OK);
    z = gzopen(test_temp("m.idx.gz"), "wb");
    CHECK(z && gzwrite(z, idx, sizeof idx) == (int)sizeof idx && gzclose(z) == Z_OK);
    enum { KINDS = 8 };
#else
    enum { KINDS = 6 };
#endif
    for (int k = 0; k < KINDS; k++) {
        EG_SCOPE;
        double disk[64], memory[64];
        char name[40];
        snprintf(name, sizeof name, "no/such/folder/%s", kinds[k].name);
        unsigned char *bytes = moved(test_temp(kinds[k].name), name);
        int n = strung(kinds[k].make(test_temp(kinds[k].name)), disk, 64), m = strung(kinds[k].make(name), memory, 64);
        CHECK(n > 2 && n == m && !memcmp(disk, memory, (size_t)n * sizeof *disk));
        CHECK(eg_error() == EG_OK);
        gone(name, bytes);
        CHECK_ERROR(strung(kinds[k].make(name), memory, 64), EG_ERROR_FILE, "cannot be opened");
    }
    unsigned char *bytes = moved(test_temp("m.npz"), "here.npz");
    const char *member = "here.npz/x";
    double rows[8];
    CHECK(strung(eg_dataset_from_files(&member, 1), rows, 8) == 6 && rows[5] == 5);
    gone("here.npz", bytes);
    bytes = moved(test_temp("m.npy"), "here.npy");
    CHECK_SAME(eg_load_npy("here.npy"), x, 0);
    gone("here.npy", bytes);
    bytes = moved(test_temp("m.idx"), "here.idx");
    CHECK_TENSOR(eg_load_idx("here.idx"), 0, 1, 2, 3, 4, 5, 6);
    CHECK_INT(eg_size(eg_read_file("here.idx")), sizeof idx);
    gone("here.idx", bytes);
}
TEST(checkpoints_and_pictures_from_memory) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v");
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "v", v));
    const char *path = eg_checkpoint_save(c, test_temp("c"));
    REQUIRE(path);
    unsigned char *bytes = moved(path, "in memory-1.safetensors");
    eg_assign(v, eg_zeros(EG_FLOAT32, EG_SHAPE(2)));
    CHECK(eg_checkpoint_restore(c, "in memory-1"));           // the ending may be left out here, too
    CHECK_TENSOR(v, 0, 1, 2);
    gone("in memory-1.safetensors", bytes);
    eg_checkpoint_release(c);
    eg_release(v);
#ifdef EAGER_IMAGE
    eg_tensor *picture = eg_reshape(eg_range(EG_UINT8, 0, 24, 1), EG_SHAPE(2, 4, 3)), *png = eg_encode_png(picture);
    CHECK(eg_memory_file_add("a.png", eg_data(png), eg_size(png)));
    CHECK_SAME(eg_decode_image(eg_read_file("a.png")), picture, 0);
    CHECK(eg_memory_file_remove("a.png"));
#endif
}
TEST(files_in_memory_have_their_rules) {
    static const char text[] = "a\nb\nc\n";
    const char *path = test_temp("rules.txt");
    char name[4200];
    snprintf(name, sizeof name, "%s", path);
    FILE *f = fopen(name, "wb");
    REQUIRE(f);
    fputs("disk", f);
    fclose(f);
    CHECK(eg_memory_file_add(name, text, 6));
    CHECK_INT(eg_size(eg_read_file(name)), 6);               // it stands in front of the disk's
    CHECK_ERROR(eg_memory_file_add(name, text, 6), EG_ERROR_FILE,
                "rules.txt: there is a file in memory of this path already; eg_memory_file_remove takes it away");
    CHECK_ERROR(eg_save_npy(eg_scalar(1), name), EG_ERROR_FILE,
                "is a file in memory (eg_memory_file_add), which is not written");
    const char *one = name;
    eg_dataset *d = eg_dataset_text_lines(&one, 1);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_ERROR(eg_memory_file_remove(name), EG_ERROR_FILE,
                "is being read, by an iterator that stands in the midst of it or by another thread");
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    eg_iterator_release(it);
    eg_dataset_release(d);
    CHECK(eg_memory_file_remove(name));
    CHECK_INT(eg_size(eg_read_file(name)), 4);
    CHECK_ERROR(eg_memory_file_remove(name), EG_ERROR_FILE, "there is no file in memory of this path");
    CHECK_ERROR(eg_memory_file_add(NULL, text, 6), EG_ERROR_ARGUMENT, "eg_memory_file_add: the path is NULL");
    CHECK_ERROR(eg_memory_file_add("", text, 6), EG_ERROR_ARGUMENT, "the path is empty");
    CHECK_ERROR(eg_memory_file_add("x", NULL, 6), EG_ERROR_NULL, "eg_memory_file_add: the data is NULL");
    CHECK_ERROR(eg_memory_file_add("x", text, -6), EG_ERROR_ARGUMENT, "eg_memory_file_add: a size of -6 bytes");
    CHECK_ERROR(eg_memory_file_remove(NULL), EG_ERROR_ARGUMENT, "eg_memory_file_remove: the path is NULL");
    CHECK(eg_memory_file_add("empty", NULL, 0) && eg_size(eg_read_file("empty")) == 0 &&
          eg_memory_file_remove("empty"));
}
#ifdef EAGER_ZLIB
// Broken gzip says so, in memory as on the disk; a file of several members is read to its end; a seek goes back.
TEST(packed_files_that_are_broken) {
    char text[5000], name[40] = "broken.txt.gz";
    for (int i = 0; i < (int)sizeof text; i++) text[i] = (char)(i * i % 251);
    gzFile z = gzopen(test_temp("whole.gz"), "wb");
    CHECK(z && gzwrite(z, text, sizeof text) == (int)sizeof text && gzclose(z) == Z_OK);
    int64_t n;
    unsigned char *bytes = bytes_of(test_temp("whole.gz"), &n);
    for (int where = 0; where < 2; where++)
        for (int kind = 0; kind < 3; kind++) {
            EG_SCOPE;
            unsigned char *bad = (unsigned char *)malloc((size_t)n);
            int64_t m = kind ? n : n / 2;
            memcpy(bad, bytes, (size_t)n);
            if (kind == 1) bad[n - 6] ^= 1;                  // the checksum
            if (kind == 2) memset(bad + n / 2, 0xff, 40);
            if (where) CHECK(eg_memory_file_add(name, bad, m));
            else {
                FILE *f = fopen(test_temp("bad.gz"), "wb");
                REQUIRE(f && fwrite(bad, 1, (size_t)m, f) == (size_t)m && fclose(f) == 0);
            }
            const char *path = where ? name : test_temp("bad.gz");
            double to[8];
            CHECK_ERROR(strung(as_lines(path), to, 8), EG_ERROR_FILE,
                        kind == 0 ? "broken gzip data: unexpected end of file"
                        : kind == 1 ? "broken gzip data: incorrect data check"
                        : "broken gzip data: ");
            if (where) CHECK(eg_memory_file_remove(name));
            free(bad);
        }
    free(bytes);
}
#endif
#ifndef EAGER_NO_THREADS
// Threads lend bytes at once, all under one name, and add files of their own.
typedef struct lender { unsigned char *bytes; int64_t n, bad; int value; } lender;
static void *load_often(void *one) {
    lender *l = (lender *)one;
    char path[64];
    snprintf(path, sizeof path, "of thread %d.safetensors", l->value);
    if (!eg_set_device(test_device())) l->bad++;
    for (int i = 0; i < 100 / test_share; i++) {
        eg_scope scope = eg_scope_begin();
        eg_archive *a = eg_archive_load_memory(l->bytes, l->n), *b;
        l->bad += eg_item(eg_archive_get(a, "x")) != l->value || !eg_memory_file_add(path, l->bytes, l->n);
        b = eg_archive_load(path);
        l->bad += eg_item(eg_archive_get(b, "x")) != l->value || !eg_memory_file_remove(path);
        eg_archive_release(a);
        eg_archive_release(b);
        eg_scope_end(scope);
    }
    return NULL;
}
TEST(threads_read_memory_at_once) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    lender lenders[THREADS];
    for (int k = 0; k < THREADS; k++) {
        eg_archive *a = eg_archive_new();
        CHECK(eg_archive_add(a, "x", k) && eg_save_safetensors(a, test_temp("t.safetensors")));
        eg_archive_release(a);
        lenders[k].bytes = bytes_of(test_temp("t.safetensors"), &lenders[k].n);
        lenders[k].value = k;
        lenders[k].bad = 0;
    }
    for (int k = 0; k < THREADS; k++) REQUIRE(pthread_create(&threads[k], NULL, load_often, &lenders[k]) == 0);
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
        CHECK_INT(lenders[k].bad, 0);
        free(lenders[k].bytes);
    }
}
#endif
