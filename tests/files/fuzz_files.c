// Every reader of files against bytes that somebody else made. As a test: files of our own, spoiled a few thousand
// times by changed, cut, doubled and moved bytes. With clang's libFuzzer, for as long as one likes (the first byte says
// which reader, or FUZZ_READER=N in the environment does, counted from 0):
//
//   clang -g -O1 -fsanitize=fuzzer,address,undefined -DFUZZ -I. -Itests tests/files/fuzz_files.c -lm -o fuzz_files &&
//   ./fuzz_files -max_len=4096
//
// Whatever the bytes: a result and no error, or none and an error of a file; nothing leaks; and no more memory than the
// file could fill, neither of the library's own nor of the whole process, which counts what zlib, libpng and libjpeg
// take for themselves.
#ifdef FUZZ
#define EAGER_IMPLEMENTATION
#define EGI_LATER_FROM 1       // a restore reads each tensor straight into its variable
#define TEST_NO_MAIN
#endif
#include "test.h"
#ifndef FUZZ
#ifdef EAGER_ZLIB
#include <zlib.h>
#endif
#ifdef EAGER_IMAGE
#include "fixtures/exchange.txt"
#endif
#endif

static char fuzz_path[5000];

static bool read_npy(void) { EG_SCOPE; return eg_load_npy(fuzz_path) != NULL; }
static bool read_archive(eg_archive *a) {
    bool ok = a != NULL;
    for (int64_t i = 0; i < eg_archive_count(a); i++) {
        EG_SCOPE;
        ok = ok && eg_archive_get(a, eg_archive_name(a, i)) != NULL;
    }
    eg_archive_release(a);
    return ok;
}
static bool read_npz(void) { return read_archive(eg_load_npz(fuzz_path)); }
static bool read_safetensors(void) { return read_archive(eg_load_safetensors(fuzz_path)); }
static bool read_named(void) {
    static const char *const names[] = { "y/\xc3\xa9", "x" };
    return read_archive(eg_archive_load_named(fuzz_path, names, 2));
}
static bool read_checkpoint(void) {
    EG_SCOPE;
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)), "v");
    eg_optimizer *adam = eg_adam();
    int64_t step = 0;
    eg_checkpoint *c = eg_checkpoint_new();
    bool ok = eg_checkpoint_track(c, "v", v) && eg_checkpoint_track_optimizer(c, "adam", adam) &&
              eg_checkpoint_track_number(c, "step", &step) && eg_checkpoint_restore(c, fuzz_path);
    eg_checkpoint_release(c);
    eg_optimizer_release(adam);
    eg_release(v);
    return ok;
}
static bool read_records(void) {
    EG_SCOPE;
    const char *path = fuzz_path;
    eg_dataset *d = eg_dataset_tfrecord(&path, 1);
    eg_iterator *it = eg_iterator_new(d);
    eg_status status = EG_NEXT;
    for (eg_tensor *record[EG_MAX_COMPONENTS]; status == EG_NEXT;) status = eg_iterator_next(it, record);
    eg_iterator_release(it);
    eg_dataset_release(d);
    return status == EG_END_OF_SEQUENCE;
}
static bool read_example(void) {
    EG_SCOPE;
    eg_feature features[] = { { "b", EG_UINT8, { 0, { 0 } }, NULL }, { "i", EG_INT64, { 1, { -1 } }, NULL },
                              { "f", EG_FLOAT32, { 2, { 2, -1 } }, NULL } };
    eg_tensor *out[3];
    return eg_example_parse(eg_read_file(fuzz_path), features, 3, out);
}
#ifdef EAGER_IMAGE
static bool read_image(void) { EG_SCOPE; return eg_decode_image(eg_read_file(fuzz_path)) != NULL; }
// With checksums that are right, so that what is spoiled is believed.
static bool read_mended_png(void) {
    EG_SCOPE;
    eg_tensor *file = eg_read_file(fuzz_path);
    int64_t n = eg_size(file);
    unsigned char *b = n > 0 ? (unsigned char *)malloc((size_t)n) : NULL;
    if (b) memcpy(b, eg_data(file), (size_t)n);
    for (int64_t at = 8, size; b && at + 12 <= n; at += size + 12) {
        size = (int64_t)b[at] << 24 | (int64_t)b[at + 1] << 16 | (int64_t)b[at + 2] << 8 | b[at + 3];
        if (size > n - at - 12) break;
        uint32_t crc = 0xffffffffu;
        for (int64_t i = at + 4; i < at + 8 + size; i++) {
            crc ^= b[i];
            for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
        for (int i = 0; i < 4; i++) b[at + 8 + size + i] = (unsigned char)(~crc >> (24 - 8 * i));
    }
    eg_tensor *x = eg_decode_image(b ? eg_from_data(EG_UINT8, EG_SHAPE(n), b) : file);
    free(b);
    return x != NULL;
}
#endif
// All elements, or as many as a header may announce of nothing.
static bool read_elements(eg_dataset *d) {
    eg_iterator *it = d ? eg_iterator_new(d) : NULL;
    eg_status status = it ? EG_NEXT : EG_FAILED;
    for (int i = 0; status == EG_NEXT && i < 100000; i++) {
        EG_SCOPE;
        eg_tensor *element[EG_MAX_COMPONENTS];
        status = eg_iterator_next(it, element);
    }
    eg_iterator_release(it);
    eg_dataset_release(d);
    return status != EG_FAILED;
}
static bool read_lines(void) { const char *path = fuzz_path; return read_elements(eg_dataset_text_lines(&path, 1)); }
static bool read_csv(void) {
    const char *path = fuzz_path;
    eg_csv_options o;
    memset(&o, 0, sizeof o);
    o.header = true;
    o.components[0].columns = "b";
    o.components[0].text = true;
    o.components[1].columns = "a, c";
    o.components[1].missing = 3;
    return read_elements((eg_dataset_csv)(&path, 1, o));
}
static bool read_rows(void) { const char *path = fuzz_path; return read_elements(eg_dataset_from_files(&path, 1)); }
static bool read_idx(void) { EG_SCOPE; return eg_load_idx(fuzz_path) != NULL; }
static bool read_position(void) {
    EG_SCOPE;
    eg_dataset *d = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_repeat(eg_dataset_range(0, 40, 1), 3), 7), 3);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *element[EG_MAX_COMPONENTS];
    bool ok = eg_iterator_next(it, element) == EG_NEXT && eg_iterator_restore(it, eg_read_file(fuzz_path));
    ok = (eg_iterator_next(it, element) == EG_NEXT || ok) && ok;          // where it was, if not there
    eg_iterator_release(it);
    eg_dataset_release(d);
    return ok;
}
// A model file whose architecture is this text, with the weights that fit the seed: so the text alone is what is
// broken.
static bool read_architecture(void) {
    EG_SCOPE;
    static char file[40100];
    static const char weights[] = ",\"dense/kernel\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,"
        "24]},\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
    char *head = file + 8;
    eg_tensor *text = eg_read_file(fuzz_path);
    const unsigned char *c = (const unsigned char *)eg_data(text);
    size_t n = (size_t)snprintf(head, 40000, "{\"__metadata__\":{\"eager_model\":\"");
    for (int64_t i = 0; i < eg_size(text) && n < 39000; i++)
        n += (size_t)snprintf(head + n, 40000 - n, c[i] < 32 || c[i] > 126 || c[i] == '"' ||
                                                   c[i] == '\\' ? "\\u%04x" : "%c", c[i] ? (unsigned)c[i] : '?');
    n += (size_t)snprintf(head + n, 40000 - n, "\"}%s", weights);
    for (int i = 0; i < 8; i++) file[i] = (char)(unsigned char)((uint64_t)n >> 8 * i);
    memset(head + n, 0, 32);
    eg_layer *model = eg_model_load_memory(file, (int64_t)n + 40);
    eg_layer_release(model);
    return model != NULL;
}

// A function in a file: as a whole, and its list of lines alone, beside the tensors that it names.
static bool read_function(void) {
    EG_SCOPE;
    eg_function *f = eg_function_load(fuzz_path);
    bool ok = f != NULL && eg_function_variables_list(f).count >= 0;
    eg_function_release(f);
    return ok;
}
static bool read_lines_of_function(void) {
    EG_SCOPE;
    static char path[5000], text[1 << 15];
    eg_tensor *bytes = eg_read_file(fuzz_path);
    const int64_t n = eg_size(bytes) < (int64_t)sizeof text ? eg_size(bytes) : (int64_t)sizeof text - 1;
    for (int64_t i = 0; i < n; i++) {                      // what a note can hold
        const unsigned char c = ((const unsigned char *)eg_data(bytes))[i];
        text[i] = (char)(c < 32 || c > 126 ? ' ' : c);
    }
    text[n > 0 ? n : 0] = 0;
    snprintf(path, sizeof path, "%.4900s.safetensors", fuzz_path);
    eg_archive *a = eg_archive_new();
    bool ok = eg_archive_add(a, "w", eg_ones(EG_FLOAT32, EG_SHAPE(2, 3))) &&
              eg_archive_set_text(a, "eager_function", text) && eg_archive_save(a, path);
    eg_archive_release(a);
    eg_function *f = ok ? eg_function_load(path) : NULL;
    ok = f != NULL;
    eg_function_release(f);
    remove(path);
    return ok;
}

// A file that it can read, what reads it, how many bytes of memory a byte of it may ask for, and as what its errors
// come beside EG_ERROR_FILE: where a file's text is right and what it says is not.
#define OR(code) (1u << EG_ERROR_##code)
typedef struct reader { const char *name; bool (*read)(void); int64_t times; unsigned others; } reader;
static const reader readers[] = {
    { "a.npy", read_npy, 16, 0 }, { "a.npz", read_npz, 1200, 0 }, { "a.safetensors", read_safetensors, 64, 0 },
    { "a.npz", read_named, 1200, 0 }, { "a.safetensors", read_named, 64, 0 },
    { "c.safetensors", read_checkpoint, 64, OR(SHAPE) }, { "c.npz", read_checkpoint, 1200, OR(SHAPE) },
    { "a.tfrecord", read_records, 16, 0 }, { "a.example", read_example, 32, OR(SHAPE) | OR(DTYPE) },
    { "a.txt", read_lines, 16, 0 }, { "a.csv", read_csv, 64, 0 },
    { "a.idx", read_idx, 16, 0 }, { "a.idx", read_rows, 16, 0 }, { "b.npy", read_rows, 16, 0 },
    { "b.npz", read_rows, 1200, OR(SHAPE) | OR(ARGUMENT) },
    { "a.position", read_position, 64, OR(STATE) | OR(ARGUMENT) | OR(DTYPE) },
    { "a.model", read_architecture, 100000, OR(SHAPE) | OR(ARGUMENT) | OR(STATE) },
    { "f.safetensors", read_function, 4000, OR(SHAPE) | OR(ARGUMENT) | OR(STATE) | OR(DTYPE) },
    { "a.lines", read_lines_of_function, 4000, OR(SHAPE) | OR(ARGUMENT) | OR(STATE) | OR(DTYPE) },
#ifdef EAGER_ZLIB
    { "a.txt.gz", read_lines, 4200, 0 }, { "a.idx.gz", read_idx, 8300, 0 },
#endif
#ifdef EAGER_IMAGE
    { "a.png", read_image, 20000, 0 },      // deflate gives 1032 bytes for one, and a bit becomes a byte
    { "a.png", read_mended_png, 20000, 0 },
    { "a.jpeg", read_image, 8000, 0 },
#endif
};
enum { READERS = (int)(sizeof readers / sizeof readers[0]) };

// Asked every tenth time, for the system takes its time to tell: whether the process's memory has grown by less than
// these files could fill, and some for allocators and threads.
static bool process_is_small(int64_t bytes) {
    static test_peak last;
    static int64_t all, asked;
    all += bytes;
    if (asked++ % 10) return true;
    test_peak now = test_process_peak();
    bool small = last.touched == 0 || now.touched - last.touched < (32 << 20) + all;
#ifndef TEST_NO_SIGNALS                                       // sanitizers have addresses for much
    small = small && (last.addressed == 0 || now.addressed - last.addressed < (256 << 20) + all);
#endif
    last = now;
    all = 0;
    return small;
}
// Reads fuzz_path, where the bytes are. *ok: whether something came of it.
static bool fuzz_once(const reader *r, size_t n, bool *ok, eg_error_code *code) {
    int64_t live = eg_memory().live_tensors, before = eg_memory().live_bytes;
    eg_memory_reset_peak();
    *ok = r->read();
    *code = eg_error();
    eg_error_clear();
    bool good = *ok ? *code == EG_OK : *code == EG_ERROR_FILE || (r->others >> (unsigned)*code & 1u);
    return good && eg_memory().live_tensors == live &&
           eg_memory().peak_bytes - before < (1 << 18) + r->times * (int64_t)n;
}
static bool fuzz(const reader *r, const unsigned char *bytes, size_t n) {
    static int64_t turn;
    char name[64];
    bool ok, also;
    eg_error_code code, other;
    snprintf(name, sizeof name, "spoiled%s", strchr(r->name, '.'));
#ifdef FUZZ
    snprintf(fuzz_path, sizeof fuzz_path, "%s", name);
#else
    snprintf(fuzz_path, sizeof fuzz_path, "%s", test_temp(name));
#endif
    // a block of its own, so that a sanitizer sees who reads beyond it
    unsigned char *copy = (unsigned char *)malloc(n + !n);
    if (!copy) return false;
    memcpy(copy, bytes, n);
    bool good = eg_memory_file_add(fuzz_path, copy, (int64_t)n) && fuzz_once(r, n, &ok, &code);
    good = eg_memory_file_remove(fuzz_path) && good;
    free(copy);
    if (good && turn++ % 8 == 0) {  // on the disk the same bytes are the same to every reader
        FILE *f = fopen(fuzz_path, "wb");
        if (!f || fwrite(bytes, 1, n, f) != n) { if (f) fclose(f); return false; }
        fclose(f);
        good = fuzz_once(r, n, &also, &other) && also == ok && other == code;
    }
    return good && process_is_small(r->times * (int64_t)n);
}

#ifdef FUZZ
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool begun;
    static int only = -1;
    if (!begun) eg_set_error_handler(NULL, NULL);
    if (!begun && getenv("FUZZ_READER")) only = atoi(getenv("FUZZ_READER")) % READERS;
    begun = true;
    if (only >= 0 && !fuzz(&readers[only], data, size)) __builtin_trap();
    if (only < 0 && size && !fuzz(&readers[data[0] % READERS], data + 1, size - 1)) __builtin_trap();
    return 0;
}
#else
static uint64_t state = 1;
static uint64_t dice(uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}
// One way to spoil a file of n bytes, with room for as many again; returns its new size.
static size_t spoil(unsigned char *b, size_t n) {
    static const unsigned char odd[] = { 0, 1, 0x7f, 0x80, 0xff, '"', '{', '[', ']', '}', ',', ':', '-', '9', '\\',
                                         'e' };
    size_t at = dice(n), to = dice(n), length = 1 + dice(n - at < 16 ? n - at : 16);
    switch (dice(8)) {
        case 0: b[at] ^= (unsigned char)(1u << dice(8)); return n;
        case 1: b[at] = odd[dice(sizeof odd)]; return n;
        case 2: return at;
        case 3: memmove(b + at, b + at + length, n - at - length); return n - length;
        case 4: memmove(b + at + length, b + at, n - at); return n + length;
        case 5: if (to + length <= n) memmove(b + to, b + at, length); return n;
        case 6: for (size_t i = 0; i < 8 && at + i < n; i++) b[at + i] = i < 7 || dice(2) ? 0xff : 0x7f; return n;
        default:
            for (size_t i = at; i < n && i < at + 20; i++)
                if (b[i] >= '0' && b[i] <= '9') { b[i] = (unsigned char)('0' + dice(10)); return n; }
            return n;
    }
}
static void seed(const char *name, const void *bytes, size_t n) {
    FILE *f = fopen(test_temp(name), "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
#ifdef EAGER_ZLIB
    char packed[100];
    snprintf(packed, sizeof packed, "%s.gz", name);
    gzFile z = gzopen(test_temp(packed), "wb");
    CHECK(z && gzwrite(z, bytes, (unsigned)n) == (int)n && gzclose(z) == Z_OK);
#endif
}
static void more_seeds(void) {
    static const char lines[] = "one\r\n\ntwo\nthree", csv[] = "a,b,c\r\n1,\"x \"\"y\"\"\",3\n,\"l1\nl2\",-2.5e3\n4,,6";
    static const unsigned char idx[] = { 0, 0, 0x0b, 2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 1, 0xff, 0xfe, 0, 3, 0, 4, 0, 5,
                                         0x7f, 0xff };
    seed("a.txt", lines, sizeof lines - 1);
    seed("a.csv", csv, sizeof csv - 1);
    seed("a.idx", idx, sizeof idx);
#ifdef EAGER_IMAGE
    seed("a.jpeg", picture_jpeg, sizeof picture_jpeg);
    CHECK(sizeof tf_example > 0);
#endif
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "x", eg_reshape(eg_range(EG_FLOAT32, 0, 6, 1), EG_SHAPE(3, 2))) &&
          eg_archive_add(a, "y", eg_range(EG_INT64, 0, 3, 1)));
    CHECK(eg_save_npz(a, test_temp("b.npz")) && eg_save_npy(eg_archive_get(a, "x"), test_temp("b.npy")));
    eg_archive_release(a);
    eg_dataset *d = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_repeat(eg_dataset_range(0, 40, 1), 3), 7), 3);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *x[EG_MAX_COMPONENTS];
    for (int i = 0; i < 20; i++) CHECK(eg_iterator_next(it, x) == EG_NEXT);
    eg_tensor *position = eg_iterator_position(it);
    seed("a.position", eg_data(position), (size_t)eg_size(position));
    eg_iterator_release(it);
    eg_dataset_release(d);
    char text[2000];
    eg_layer *model = eg_sequential(eg_layer_dense(2, .activation = EG_RELU, .kernel_l2 = 0.5), eg_layer_dropout(0.25),
                                    eg_layer_reshape(EG_SHAPE(1, 2)));
    CHECK(eg_layer_build(model, EG_SHAPE(-1, 3)) && eg_layer_config(model, text, sizeof text) < (int64_t)sizeof text);
    seed("a.model", text, strlen(text));
    eg_layer_release(model);
}
// A session's function: an iterator's element, a variable, names, an open dimension and a number that comes of it, an
// update, EG_AFTER, a draw.
static void function_seeds(void) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_optimizer *sgd = eg_sgd(.momentum = 0.9);
    eg_tensor *element[EG_MAX_COMPONENTS], *x, *w, *fetches[3], *out[3];
    eg_dataset *d = eg_dataset_batch(eg_dataset_from_slices(eg_ones(EG_FLOAT32, EG_SHAPE(7, 3))), 4);
    eg_iterator *it = eg_iterator_new(d);
    {
        EG_GRAPH(g);
        x = eg_placeholder(EG_FLOAT32, EG_SHAPE(-1, 2), "x");
        CHECK(eg_iterator_next(it, element) == EG_NEXT);
        w = eg_variable(eg_random_normal(EG_SHAPE(2, 3)), "w");
        eg_tape *tape = eg_tape_begin();
        eg_tensor *error = eg_sub(eg_graph_name(eg_matmul(x, w), "y"), element[0]);
        fetches[0] = eg_graph_name(eg_mul(eg_reduce_sum(eg_square(error)), 1 / (double)eg_size(error)), "loss");
        eg_tensor *grad = eg_tape_gradient(tape, fetches[0], w);
        CHECK(grad && eg_apply_gradients(sgd, &grad, &w, 1));
        fetches[1] = eg_graph_update();
        EG_AFTER(fetches[1]);
        fetches[2] = eg_mul(eg_reshape(w, EG_SHAPE(6)), eg_random_normal(EG_SHAPE(6)));
    }
    eg_session *s = eg_session_new(g);
    const eg_feed feed = {x, eg_ones(EG_FLOAT32, EG_SHAPE(4, 2))};
    CHECK(eg_session_initialize(s, NULL, 0) && eg_session_run(s, &feed, 1, fetches, 3, out));
    CHECK(eg_function_save(eg_session_function(s), test_temp("f.safetensors")));
    eg_archive *a = eg_archive_load(test_temp("f.safetensors"));
    const char *lines = eg_archive_text(a, "eager_function");
    CHECK(lines != NULL);
    if (lines) seed("a.lines", lines, strlen(lines));
    eg_archive_release(a);
    eg_session_release(s);
    eg_graph_release(g);
    eg_iterator_release(it);
    eg_dataset_release(d);
    eg_optimizer_release(sgd);
    eg_release(w);
}
static void seeds(void) {
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "x", eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6)) &&
          eg_archive_add(a, "y/\xc3\xa9", eg_constant_of(EG_BOOL, EG_SHAPE(3), 0, 1, 1)));
    CHECK(eg_archive_add(a, "empty", eg_zeros(EG_INT64, EG_SHAPE(0, 4))) &&
          eg_archive_set_text(a, "note", "a \"b\" \\ c"));
    CHECK(eg_save_npz(a, test_temp("a.npz")) && eg_save_safetensors(a, test_temp("a.safetensors")));
    CHECK(eg_save_npy(eg_archive_get(a, "x"), test_temp("a.npy")));
    eg_archive_release(a);
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)), "v"), *g = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    eg_optimizer *adam = eg_adam();
    int64_t step = 3;
    CHECK(eg_apply_gradients(adam, &g, &v, 1));
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "v", v) && eg_checkpoint_track_optimizer(c, "adam", adam) &&
          eg_checkpoint_track_number(c, "step", &step));
    eg_record_writer *w = eg_record_writer_open(test_temp("a.tfrecord"));
    CHECK(eg_record_writer_write(w, "abc", 3) && eg_record_writer_write(w, "", 0) &&
          eg_record_writer_write(w, "0123456789", 10) && eg_record_writer_close(w));
    eg_record_writer_release(w);
    static const char *const names[] = { "b", "i", "f" };
    eg_tensor *values[] = { eg_ones(EG_UINT8, EG_SHAPE(9)), eg_constant_of(EG_INT64, EG_SHAPE(3), 1, -1, 1e15),
                            eg_ones(EG_FLOAT32, EG_SHAPE(6)) }, *example = eg_example_serialize(names, values, 3);
    FILE *f = fopen(test_temp("a.example"), "wb");
    CHECK(f && fwrite(eg_data(example), 1, (size_t)eg_size(example), f) == (size_t)eg_size(example) && fclose(f) == 0);
    CHECK(eg_save_png(test_temp("a.png"), eg_reshape(eg_linspace(EG_FLOAT32, 0, 1, 60), EG_SHAPE(5, 4, 3))));
    const char *path = eg_checkpoint_save(c, test_temp("c"));
    CHECK(path && rename(path, test_temp("c.safetensors")) == 0);
    CHECK((path = eg_checkpoint_save(c, test_temp("c.npz"))) && rename(path, test_temp("c.npz")) == 0);
    eg_checkpoint_release(c);
    eg_optimizer_release(adam);
    eg_release(v);
    function_seeds();
    more_seeds();
}
// How often each is spoiled: most of the time goes to the file system, so only CI, with EAGER_LONG, asks for the full
// number in every build.
static int times_spoiled(void) { return test_share > 1 ? 1500 / test_share : getenv("EAGER_LONG") ? 1500 : 400; }
static void mutations(const reader *r) {
    static unsigned char good[1 << 14], bytes[1 << 15];
    char path[5000];
    snprintf(path, sizeof path, "%s", test_temp(r->name));
    FILE *f = fopen(path, "rb");
    REQUIRE(f);
    size_t n = fread(good, 1, sizeof good, f);
    fclose(f);
    CHECK(fuzz(r, good, n));
    snprintf(fuzz_path, sizeof fuzz_path, "%s", path);
    if (!r->read()) test_say(__FILE__, __LINE__, r->name, "the file is whole and is not read");
    for (int i = 0, bad = 0, times = times_spoiled(); i < times && bad < 3; i++) {
        memcpy(bytes, good, n);
        size_t m = n;
        uint64_t turn = state;
        for (uint64_t k = 1 + dice(3); k && m; k--) m = spoil(bytes, m);
        if (fuzz(r, bytes, m)) continue;
        printf("%s spoiled from state %llu\n", r->name, (unsigned long long)turn);
        test_say(__FILE__, __LINE__, r->name, "a broken file was not refused as it should be");
        bad++;
    }
}
TEST(spoiled_files) {
    seeds();
    for (int r = 0; r < READERS; r++) mutations(&readers[r]);
}
TEST(noise) {
    unsigned char bytes[256];
    seeds();
    for (int i = 0; i < 300 / test_share; i++)
        for (int r = 0; r < READERS; r++) {
            size_t n = dice(sizeof bytes);
            for (size_t k = 0; k < n; k++) bytes[k] = (unsigned char)dice(256);
            if (strstr(readers[r].name, ".safetensors") && n > 8) {
                memset(bytes, 0, 8);
                bytes[0] = (unsigned char)dice(n);
            }
            CHECK(fuzz(&readers[r], bytes, n));
        }
}
#endif
