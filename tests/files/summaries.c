// Event files and pictures. What is in a file is read here by a few lines of our own; check_summaries.sh asks
// TensorBoard.
#include "faults.h"

// ---- reading event files: records, then protocol buffers

typedef struct message { const unsigned char *at, *end; } message;
static uint64_t varint(message *m) {
    uint64_t v = 0;
    for (int shift = 0; m->at < m->end; shift += 7) {
        v |= (uint64_t)(*m->at & 127) << shift;
        if (*m->at++ < 128) break;
    }
    return v;
}
// The first field of that number: its bytes (a message, a string, a float, a double), or its number in *v.
static message field(message m, int number, uint64_t *v) {
    message none = {NULL, NULL};
    while (m.at < m.end) {
        uint64_t key = varint(&m), value = 0;
        message inside = m;
        switch (key & 7) {
            case 0: value = varint(&m); break;
            case 1: inside.end = m.at += 8; break;
            case 5: inside.end = m.at += 4; break;
            case 2: value = varint(&m); inside.at = m.at; inside.end = m.at += value; break;
            default: return none;
        }
        if ((int)(key >> 3) != number) continue;
        if (v) *v = value;
        return inside;
    }
    return none;
}
static double number_of(message m) {
    float f = 0;
    double d = 0;
    if (m.end - m.at == 4) { memcpy(&f, m.at, 4); return (double)f; }
    if (m.end - m.at == 8) memcpy(&d, m.at, 8);
    return d;
}
enum { MOST_EVENTS = 64 };
typedef struct events { int n; message of[MOST_EVENTS]; } events;
static events read_events(const char *path) {
    eg_tensor *file = eg_read_file(path);
    events e = {0, {{NULL, NULL}}};
    const unsigned char *p = file ? (const unsigned char *)eg_data(file) : NULL, *end = p ? p + eg_size(file) : NULL;
    while (p && end - p >= 16 && e.n < MOST_EVENTS) {
        uint64_t size;
        memcpy(&size, p, 8);
        e.of[e.n].at = p + 12;
        e.of[e.n++].end = p + 12 + size;
        p += size + 16;
    }
    CHECK(p == end);
    return e;
}
static message value_of(events e, int i) {
    return i < e.n ? field(field(e.of[i], 5, NULL), 1, NULL) : (message){NULL, NULL};
}
static int64_t step_of(events e, int i) {
    uint64_t step = 0;
    if (i < e.n) field(e.of[i], 2, &step);
    return (int64_t)step;
}
static bool is_text(message m, const char *text) {
    return m.end - m.at == (ptrdiff_t)strlen(text) && !memcmp(m.at, text, strlen(text));
}

static char folder[4096];
static eg_summary_writer *open_writer(const char *name) {
    snprintf(folder, sizeof folder, "%s", test_temp(name));
    eg_summary_writer *w = eg_summary_writer_open(folder);
    eg_summary_set_step(-1);
    return w;
}
static void close_writer(eg_summary_writer *w) {
    eg_summary_set_writer(NULL);
    eg_summary_set_step(-1);
    eg_summary_every(1);
    eg_summary_writer_release(w);
}

// ---- when summaries are written

TEST(every_hundredth_of_a_thousand_steps) {
    eg_summary_writer *w = open_writer("every/hundredth");
    char path[4096];
    snprintf(path, sizeof path, "%s", eg_summary_writer_path(w));
    CHECK_CONTAINS(path, "tfevents");
    eg_summary_set_writer(w);
    CHECK(eg_summary_every(100));
    int due = 0;
    for (int step = 1; step <= 1000; step++) {
        EG_SCOPE;
        eg_summary_set_step(step);
        due += eg_summary_due();
        CHECK(eg_summary_scalar("loss", 1 - step / 1000.));
    }
    CHECK_INT(due, 10);
    close_writer(w);
    events e = read_events(path);
    CHECK_INT(e.n, 11);                                      // the first says what file it is
    CHECK(is_text(field(e.of[0], 3, NULL), "brain.Event:2"));
    CHECK(number_of(field(e.of[0], 1, NULL)) > 1.6e9);
    CHECK_INT(step_of(e, 1), 100);
    CHECK(is_text(field(value_of(e, 1), 1, NULL), "loss"));
    CHECK_NEAR(number_of(field(value_of(e, 1), 2, NULL)), .9, 1e-7);
    CHECK_INT(step_of(e, 10), 1000);
}

TEST(without_a_writer_nothing_is_written) {
    CHECK(eg_summary_scalar("loss", 1));
    CHECK(eg_summary_scalar("loss", NULL));                  // not even looked at
    CHECK(eg_summary_histogram("h", eg_scalar(NAN)) && eg_summary_image("i", eg_scalar(1)) &&
          eg_summary_text("t", "x") && eg_summary_graph(NULL));
    CHECK(!eg_summary_due());
    CHECK_INT(eg_summary_step(), -1);
}

TEST(without_a_step_it_is_an_error) {
    eg_summary_writer *w = open_writer("no step");
    eg_summary_set_writer(w);
    CHECK_ERROR(eg_summary_scalar("loss", 1), EG_ERROR_STATE, "no step is set for 'loss'");
    CHECK_ERROR(eg_summary_text("t", "x"), EG_ERROR_STATE, "eg_summary_set_step");
    CHECK(eg_summary_scalar("loss", 1, .step = 5) && eg_summary_scalar("loss", 2, .step = EG_ZERO));
    CHECK_ERROR(eg_summary_scalar("loss", 1, .step = -5), EG_ERROR_ARGUMENT, "negative");
    eg_summary_set_step(0);
    CHECK_INT(eg_summary_step(), 0);
    CHECK(eg_summary_due() && eg_summary_scalar("loss", 3));
    events e = read_events(eg_summary_writer_path(w));
    CHECK_INT(e.n, 4);
    CHECK_INT(step_of(e, 1), 5);
    CHECK_INT(step_of(e, 2), 0);
    close_writer(w);
}

TEST(a_writer_as_an_option_takes_every_step) {
    eg_summary_writer *w = open_writer("option");
    eg_summary_every(7);
    CHECK(eg_summary_scalar("loss", 1, .writer = w, .step = 3));
    CHECK_INT(read_events(eg_summary_writer_path(w)).n, 2);
    close_writer(w);
}

TEST(two_writers_of_one_folder_have_two_files) {
    eg_summary_writer *a = open_writer("two"), *b = open_writer("two");
    CHECK(strcmp(eg_summary_writer_path(a), eg_summary_writer_path(b)) != 0);
    close_writer(a);
    close_writer(b);
}

TEST(a_summary_is_in_the_file_when_it_is_made) {
    eg_summary_writer *w = open_writer("at once");
    for (int i = 1; i < 5; i++) {
        CHECK(eg_summary_scalar("x", i, .writer = w, .step = i));
        CHECK_INT(read_events(eg_summary_writer_path(w)).n, i + 1);
    }
    CHECK(eg_summary_writer_flush(w));
    CHECK(eg_summary_writer_close(w));
    CHECK_ERROR(eg_summary_scalar("x", 1, .writer = w, .step = 9), EG_ERROR_STATE, "has been closed");
    CHECK_ERROR(eg_summary_writer_flush(w), EG_ERROR_STATE, "closed");
    eg_summary_writer_release(w);
}

// A traced function writes at each replay what its body writes eagerly, at the step of that time.
static bool summarizing_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    char tag[16];
    (void)user;
    out[0] = eg_keep(eg_mul(in[0], 2));
    snprintf(tag, sizeof tag, "loss%d", 1);                   // the list keeps a copy of it
    return eg_summary_scalar(tag, eg_reduce_sum(out[0])) && eg_summary_histogram("h", out[0], .buckets = 4) &&
           eg_summary_text("t", tag) && eg_summary_image("i", eg_reshape(in[0], EG_SHAPE(1, 2, 1)));
}
TEST(a_traced_function_writes_summaries_at_each_replay) {
    message expected[MOST_EVENTS];
    for (int traced = 0; traced < 2; traced++) {
        eg_summary_writer *w = open_writer(traced ? "of replays" : "of eager code");
        eg_function *f = eg_function_new(summarizing_body, NULL);
        eg_run_functions_eagerly(!traced);
        for (int call = 0; call < 9; call++) {
            EG_SCOPE;
            eg_tensor *x = eg_constant(EG_SHAPE(2), call * .1, .5), *y;
            eg_summary_set_writer(call == 1 ? NULL : w);
            eg_summary_set_step(call * 10);
            CHECK(eg_function_call(f, &x, 1, &y, 1));
        }
        eg_run_functions_eagerly(false);
        if (traced) CHECK(eg_function_reason(f) == NULL && eg_function_counts(f).replays >= 4);
        events e = read_events(eg_summary_writer_path(w));
        CHECK_INT(e.n, 1 + 8 * 4);
        for (int i = 1; i < e.n; i++) {
            CHECK_INT(step_of(e, i), (i - 1) / 4 ? (i + 3) / 4 * 10 : 0);
            const message m = field(e.of[i], 5, NULL);
            if (traced) CHECK(m.end - m.at == expected[i].end - expected[i].at &&
                              !memcmp(m.at, expected[i].at, (size_t)(m.end - m.at)));
            expected[i] = m;
        }
        CHECK(is_text(field(value_of(e, 1), 1, NULL), "loss1"));
        eg_summary_set_step(-1);
        if (traced) {
            eg_tensor *x = eg_constant(EG_SHAPE(2), .1, .5), *y;
            CHECK_ERROR(eg_function_call(f, &x, 1, &y, 1), EG_ERROR_STATE, "no step is set for 'loss1'");
        }
        eg_function_release(f);
        close_writer(w);
    }
}

TEST(what_summaries_refuse) {
    eg_summary_writer *w = open_writer("refused");
    eg_summary_set_writer(w);
    eg_summary_set_step(1);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2);
    CHECK_ERROR(eg_summary_scalar("a", x), EG_ERROR_SHAPE, "'a' needs a tensor of one element");
    CHECK_ERROR(eg_summary_scalar("a", NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_summary_scalar(NULL, 1), EG_ERROR_NULL, "tag is NULL");
    CHECK_ERROR(eg_summary_scalar("a", 1, .buckets = 3), EG_ERROR_ARGUMENT, "no option .buckets");
    CHECK_ERROR(eg_summary_histogram("a", x, .images = 3), EG_ERROR_ARGUMENT, "no option .images");
    CHECK_ERROR(eg_summary_histogram("a", x, .buckets = -3), EG_ERROR_ARGUMENT,
                "eg_summary_histogram: .buckets is -3; it must be at least 0");
    CHECK_ERROR(eg_summary_histogram("weights", eg_constant(EG_SHAPE(3), 1, NAN, INFINITY)), EG_ERROR_NONFINITE,
                "2 of the 3 elements of 'weights'");
    CHECK_ERROR(eg_summary_image("a", x), EG_ERROR_SHAPE, "a batch (N, H, W, C)");
    CHECK_ERROR(eg_summary_image("a", eg_zeros(EG_INT32, EG_SHAPE(2, 2))), EG_ERROR_DTYPE, "int32");
    CHECK_ERROR(eg_summary_image("a", eg_zeros(EG_UINT8, EG_SHAPE(2, 2, 5))), EG_ERROR_SHAPE, "no picture");
    CHECK_ERROR(eg_summary_text("a", NULL), EG_ERROR_NULL, "'a' is NULL");
    CHECK_ERROR(eg_summary_every(0), EG_ERROR_ARGUMENT, "every 0 steps is never");
    CHECK_ERROR(eg_summary_graph(NULL), EG_ERROR_NULL, "tape is NULL");
    CHECK_ERROR(eg_summary_graph(eg_tape_begin()), EG_ERROR_TAPE, "nothing is recorded");
    CHECK_ERROR(eg_summary_graph(eg_tape_begin(), .step = 3), EG_ERROR_ARGUMENT, "no option .step");
    eg_summary_options untouched;
    memset(&untouched, 1, sizeof untouched);
    CHECK_ERROR((eg_summary_scalar)("a", x, untouched), EG_ERROR_ARGUMENT, "not zeroed");
    CHECK_ERROR(eg_summary_writer_open(NULL), EG_ERROR_ARGUMENT, "NULL");
    CHECK_ERROR(eg_summary_writer_open(""), EG_ERROR_ARGUMENT, "write \".\"");
    // a file is no folder
    CHECK_ERROR(eg_summary_writer_open(eg_summary_writer_path(w)), EG_ERROR_FILE, "cannot be written");
    CHECK_ERROR(eg_summary_writer_flush(NULL), EG_ERROR_NULL, "NULL");
    CHECK_STR(eg_summary_writer_path(NULL), "");
    CHECK_INT(read_events(eg_summary_writer_path(w)).n, 1);
    eg_summary_writer_release(eg_summary_writer_retain(w));
    eg_summary_writer_release(NULL);
    close_writer(w);
}

TEST(summaries_are_not_recorded) {
    eg_summary_writer *w = open_writer("tape");
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(1, 2), .5, 1), "v");
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_reduce_sum(eg_square(v));
    CHECK(eg_summary_scalar("y", y, .writer = w, .step = 1) && eg_summary_histogram("v", v, .writer = w, .step = 1) &&
          eg_summary_image("v", v, .writer = w, .step = 1));
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 1);
    CHECK_TENSOR(eg_tape_gradient(tape, y, v), 0, 1, 2);
    eg_release(v);
    close_writer(w);
}

// ---- what is in them

static double bucket(events e, int i, int list, int k) {
    message m = field(field(value_of(e, i), 5, NULL), list, NULL);
    double v;
    if (m.end - m.at < 8 * (k + 1)) return NAN;
    memcpy(&v, m.at + 8 * k, 8);
    return v;
}
TEST(a_histogram_counts) {
    eg_summary_writer *w = open_writer("histogram");
    eg_summary_options o = {.canary = 0, .writer = w, .step = 1};
    CHECK((eg_summary_histogram)("x", eg_transpose(eg_constant(EG_SHAPE(2, 3), 0, 1, 1, 2, 4, 4)),
                                 (eg_summary_options){.canary = 0, .writer = w, .step = 1, .buckets = 4}));
    CHECK((eg_summary_histogram)("same", eg_full(EG_INT32, EG_SHAPE(5), 3), o));
    CHECK((eg_summary_histogram)("none", eg_zeros(EG_FLOAT32, EG_SHAPE(0)), o));
    CHECK((eg_summary_histogram)("wide", eg_constant_of(EG_FLOAT64, EG_SHAPE(2), -1.7e308, 1.7e308), o));
    events e = read_events(eg_summary_writer_path(w));
    message h = field(value_of(e, 1), 5, NULL);
    CHECK_NEAR(number_of(field(h, 1, NULL)), 0, 0);
    CHECK_NEAR(number_of(field(h, 2, NULL)), 4, 0);
    CHECK_NEAR(number_of(field(h, 3, NULL)), 6, 0);
    CHECK_NEAR(number_of(field(h, 4, NULL)), 12, 0);
    CHECK_NEAR(number_of(field(h, 5, NULL)), 38, 0);
    const double limits[] = {1, 2, 3, 4}, counts[] = {1, 2, 1, 2};
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR(bucket(e, 1, 6, k), limits[k], 0);
        CHECK_NEAR(bucket(e, 1, 7, k), counts[k], 0);
    }
    CHECK_NEAR(bucket(e, 2, 6, 0), 3, 0);
    CHECK_NEAR(bucket(e, 2, 7, 0), 5, 0);
    CHECK(isnan(bucket(e, 2, 7, 1)));
    CHECK_NEAR(bucket(e, 3, 7, 0), 0, 0);
    CHECK_NEAR(bucket(e, 4, 7, 0), 1, 0);
    CHECK_NEAR(bucket(e, 4, 7, 29), 1, 0);
    CHECK(isfinite(bucket(e, 4, 6, 0)));
    close_writer(w);
}

TEST(a_text_is_a_tensor_of_one_string) {
    eg_summary_writer *w = open_writer("text");
    CHECK(eg_summary_text("note", "two **words**", .writer = w, .step = 1));
    message value = value_of(read_events(eg_summary_writer_path(w)), 1);
    CHECK(is_text(field(field(value, 8, NULL), 8, NULL), "two **words**"));
    CHECK(is_text(field(field(field(value, 9, NULL), 1, NULL), 1, NULL), "text"));
    close_writer(w);
}

TEST(a_batch_of_images_is_shown_in_part) {
    eg_summary_writer *w = open_writer("images");
    CHECK(eg_summary_image("x", eg_zeros(EG_FLOAT32, EG_SHAPE(5, 2, 4, 3)), .writer = w, .step = 1, .images = 2));
    CHECK(eg_summary_image("y", eg_zeros(EG_UINT8, EG_SHAPE(2, 4)), .writer = w, .step = 1));
    events e = read_events(eg_summary_writer_path(w));
    REQUIRE(e.n == 4);
    CHECK(is_text(field(value_of(e, 2), 1, NULL), "x/1"));
    CHECK(is_text(field(value_of(e, 3), 1, NULL), "y"));
    message image = field(value_of(e, 1), 4, NULL), png = field(image, 4, NULL);
    uint64_t height = 0, width = 0, channels = 0;
    field(image, 1, &height);
    field(image, 2, &width);
    field(image, 3, &channels);
    CHECK_INT(height, 2);
    CHECK_INT(width, 4);
    CHECK_INT(channels, 3);
    CHECK(png.at && !memcmp(png.at, "\x89PNG", 4));
    close_writer(w);
}

TEST(a_tape_is_shown_as_a_graph) {
    eg_summary_writer *w = open_writer("graph");
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), "layer 1/W"),
              *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 2));
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_matmul(x, v), *parts[3];
    eg_split(y, 3, 1, parts);
    eg_reduce_sum(eg_mul(parts[0], parts[2]));
    CHECK(eg_summary_graph(tape, .writer = w));
    events e = read_events(eg_summary_writer_path(w));
    message graph = field(e.of[1], 4, NULL), node = field(graph, 1, NULL);
    CHECK(is_text(field(node, 1, NULL), "watched_0"));
    CHECK(eg_tape_gradient(tape, y, x) != NULL);
    CHECK_ERROR(eg_summary_graph(tape, .writer = w), EG_ERROR_TAPE, "is empty");
    eg_release(v);
    close_writer(w);
}

static bool act_summaries(void) {
    eg_summary_writer *w = eg_summary_writer_open(folder);
    bool ok = w != NULL;
    eg_summary_set_writer(w);
    eg_summary_set_step(1);
    eg_tensor *x = eg_random_uniform(EG_SHAPE(2, 5, 4, 1)), *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "v");
    eg_tape *tape = eg_tape_begin();
    eg_square(v);
    ok = ok && eg_summary_scalar("s", 1) && eg_summary_histogram("h", x) && eg_summary_image("i", x) &&
         eg_summary_text("t", "text") && eg_summary_graph(tape);
    eg_release(v);
    eg_summary_set_writer(NULL);
    eg_summary_set_step(-1);
    eg_summary_writer_release(w);
    return ok;
}
TEST(summaries_without_memory) {
    eg_summary_writer_release(open_writer("faults"));        // the folder is there
    faults_sweep(act_summaries);
}

#if !defined(EAGER_NO_THREADS)
#include <pthread.h>
static void *other_thread(void *writer) {
    int64_t *step = (int64_t *)malloc(sizeof *step);
    *step = eg_summary_step();
    eg_summary_set_writer((eg_summary_writer *)writer);      // the thread's end gives it back
    return step;
}
TEST(each_thread_has_its_own_writer_and_step) {
    eg_summary_writer *w = open_writer("threads");
    pthread_t thread;
    void *step = NULL;
    eg_summary_set_step(5);
    REQUIRE(pthread_create(&thread, NULL, other_thread, w) == 0);
    pthread_join(thread, &step);
    CHECK_INT(*(int64_t *)step, -1);
    CHECK(!eg_summary_due());
    free(step);
    close_writer(w);
}
#endif

// ---- pictures

TEST(a_picture_becomes_png) {
    eg_tensor *png = eg_encode_png(eg_constant(EG_SHAPE(1, 2), 0, 1));
    const unsigned char *p = (const unsigned char *)eg_data(png);
    REQUIRE(eg_size(png) > 60 && !memcmp(p, "\x89PNG\r\n\x1a\n\0\0\0\15IHDR\0\0\0\2\0\0\0\1\10\0\0\0\0", 29));
    CHECK_DTYPE(png, EG_UINT8);
    // floats are cut to 0 .. 1 and rounded; a NaN is 0
    CHECK_SAME(eg_encode_png(eg_constant(EG_SHAPE(1, 5), -3, 7, NAN, .5, .998)),
               eg_encode_png(eg_constant_of(EG_UINT8, EG_SHAPE(1, 5, 1), 0, 255, 0, 128, 254)), 0);
    CHECK_SAME(eg_encode_png(eg_constant_of(EG_BOOL, EG_SHAPE(1, 2), 0, 1)), png, 0);
    CHECK_SAME(eg_encode_png(eg_cast(eg_constant(EG_SHAPE(1, 2), 0, 1), EG_FLOAT16)), png, 0);
    CHECK_SAME(eg_encode_png(eg_transpose(eg_constant(EG_SHAPE(2, 1), 0, 1))), png, 0);
    const char *path = test_temp("pictures/deep/picture.png");
    CHECK(eg_save_png(path, eg_constant(EG_SHAPE(1, 2), 0, 1)));
    CHECK_SAME(eg_read_file(path), png, 0);
    CHECK_ERROR(eg_save_png(NULL, png), EG_ERROR_SHAPE, "takes a picture");
    CHECK_ERROR(eg_save_png(NULL, eg_constant(EG_SHAPE(1, 2), 0, 1)), EG_ERROR_ARGUMENT, "path is NULL");
    CHECK_ERROR(eg_save_png(test_temp("picture.jpg"), eg_constant(EG_SHAPE(1, 2), 0, 1)), EG_ERROR_ARGUMENT,
                "picture.jpg' is the name of a JPEG file, and what is written is PNG; let it end in .png");
    CHECK_ERROR(eg_encode_png(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_encode_png(eg_zeros(EG_INT64, EG_SHAPE(2, 2))), EG_ERROR_DTYPE, "int64");
    CHECK_ERROR(eg_encode_png(eg_zeros(EG_UINT8, EG_SHAPE(2, 0))), EG_ERROR_SHAPE, "at least a pixel");
    CHECK_ERROR(eg_encode_png(eg_broadcast_to(eg_zeros(EG_UINT8, EG_SHAPE(1, 1)), EG_SHAPE(0, 1))), EG_ERROR_SHAPE,
                "at least a pixel");
}

TEST(pictures_on_a_sheet) {
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 1, 13, 1), EG_SHAPE(3, 2, 2, 1)), *y;
    CHECK_SHAPE(y = eg_image_grid(x, 2), 5, 5, 1);
    CHECK_TENSOR(y, 0, 1, 2, 0, 5, 6, 3, 4, 0, 7, 8, 0, 0, 0, 0, 0, 9, 10, 0, 0, 0, 11, 12, 0, 0, 0);
    CHECK_SHAPE(eg_image_grid(x, 10), 2, 8, 1);
    CHECK_SHAPE(eg_image_grid(eg_zeros(EG_UINT8, EG_SHAPE(4, 3, 2, 3)), 1), 15, 2, 3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_reshape(eg_tape_gradient(tape, eg_reduce_sum(eg_square(eg_image_grid(x, 2))), x), EG_SHAPE(-1)), 0,
                 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24);
    CHECK_ERROR(eg_image_grid(eg_zeros(EG_FLOAT32, EG_SHAPE(2, 2)), 1), EG_ERROR_SHAPE, "(N, H, W, C)");
    CHECK_ERROR(eg_image_grid(x, 0), EG_ERROR_ARGUMENT, "0 columns");
    CHECK_ERROR(eg_image_grid(NULL, 1), EG_ERROR_NULL, "NULL");
}

static bool act_png(void) {
    return eg_save_png(test_temp("faults.png"), eg_zeros(EG_FLOAT32, EG_SHAPE(20, 30))) &&
           eg_encode_png(eg_image_grid(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 4, 4, 1)), 2));
}
TEST(pictures_without_memory) { faults_sweep(act_png); }

TEST(pictures_and_counts_that_cannot_be) {
    eg_summary_writer *w = eg_summary_writer_open(test_temp("cannot"));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 4, 1));
    eg_summary_set_writer(w);
    eg_summary_set_step(1);
    CHECK_ERROR(eg_summary_histogram("h", x, .buckets = -1), EG_ERROR_ARGUMENT,
                "eg_summary_histogram: .buckets is -1; it must be at least 0");
    CHECK_ERROR(eg_summary_image("i", x, .images = -1), EG_ERROR_ARGUMENT,
                "eg_summary_image: .images is -1; it must be at least 0");
    CHECK_ERROR(eg_summary_image("i", NULL), EG_ERROR_NULL, "eg_summary_image");
    CHECK_ERROR(eg_image_grid(x, 2), EG_ERROR_SHAPE,
                "eg_image_grid: takes pictures (N, H, W, C), not float32 [4, 4, 1]");
    CHECK_ERROR(eg_image_grid(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 4, 4, 1)), 2), EG_ERROR_SHAPE,
                "takes pictures (N, H, W, C)");
    CHECK_ERROR(eg_image_grid(eg_expand_dims(x, 0), 0), EG_ERROR_ARGUMENT, "0 columns");
    CHECK_SHAPE(eg_image_grid(eg_expand_dims(x, 0), 5), 4, 4, 1);
    eg_summary_set_writer(NULL);
    CHECK(eg_summary_writer_close(w));
    CHECK_ERROR(eg_summary_writer_flush(w), EG_ERROR_STATE, "has been closed");
    eg_summary_writer_release(w);
    CHECK(!eg_summary_due());
}
#ifdef __linux__
#include <signal.h>
#include <sys/resource.h>
TEST(summaries_on_a_full_disk) {
    struct rlimit old, few;
    eg_summary_writer *w = eg_summary_writer_open(test_temp("full"));
    REQUIRE(w && eg_summary_writer_flush(w));
    eg_summary_set_writer(w);
    eg_summary_set_step(1);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    few.rlim_cur = 60;
    setrlimit(RLIMIT_FSIZE, &few);
    bool ok = eg_summary_text("t",
                              "a text that is longer than there is room for, and so is not to be written at all") &&
              eg_summary_writer_flush(w);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(!ok && eg_error() == EG_ERROR_FILE);
    CHECK_CONTAINS(eg_error_message(), "cannot be ");
    eg_error_clear();
    CHECK_ERROR(eg_summary_scalar("s", 1), EG_ERROR_FILE,
                "an earlier summary could not be written, so none can follow");
    eg_summary_set_writer(NULL);
    eg_summary_writer_release(w);
}
#endif
