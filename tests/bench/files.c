// The rows of data and files: `./build.sh bench files` runs this program by way of files.py, each row in a process of
// its own, beside NumPy, pandas, safetensors, PyTorch and TensorFlow, as far as they are installed.
//     files make FOLDER            writes the files that the rows read
//     files ROW FOLDER [S [cpu]]   repeats the row for S seconds (0.5) and prints the median of its seconds, by how
//                                  many bytes the process grew at most over what it had before the first run, and a
//                                  number that a peer's result must have, too
// To add a row, write a function here, add it to `rows`, and a function of the same name to files.py. -DBEFORE: for an
// eager.h that cannot read named tensors alone.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <time.h>

enum { CSV_ROWS = 200000, CSV_COLUMNS = 20, PICTURES = 60000, MANY = 25000000, RECORDS = 100000, SCALARS = 200000 };

static const char *folder;
static char path[4096];

static const char *file(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static bool cpu;               // count the processor's time, not the clock's
static double seconds(void) {
    struct timespec t;
    if (cpu) return (double)clock() / CLOCKS_PER_SEC;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
// The most memory that the process has held (VmHWM), in bytes; `now`: what it holds (VmRSS). 0 where nobody says it.
static double memory(bool now) {
    char line[256];
    double kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, now ? "VmRSS: %lf" : "VmHWM: %lf", &kb);
    if (status) fclose(status);
    return kb * 1024;
}

// ---------------------------------------------------------------- the files

static void make_csv(const char *name, const char *format, double scale) {
    uint64_t state = 1;
    FILE *f = fopen(file(name), "w");
    for (int64_t i = 0; f && i < CSV_ROWS * CSV_COLUMNS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        fprintf(f, format, scale * ((double)(state >> 11) / 9007199254740992.0 - 0.5));
        fputc((i + 1) % CSV_COLUMNS ? ',' : '\n', f);
    }
    if (f) fclose(f);
}
static double model(bool save);
static void make(void) {
    make_csv("integers.csv", "%.0f", 200000);
    make_csv("thousandths.csv", "%.3f", 200);
    make_csv("floats.csv", "%.17g", 2);
    unsigned char head[16] = { 0, 0, 8, 3, 0, 0, PICTURES >> 8, PICTURES & 255, 0, 0, 0, 28, 0, 0, 0, 28 };
    eg_seed(1);
    eg_tensor *pictures = eg_cast(eg_mul(eg_random_uniform(EG_SHAPE(PICTURES, 28, 28)), 256), EG_UINT8);
    FILE *f = fopen(file("pictures.idx"), "wb");
    if (f) {
        fwrite(head, 1, sizeof head, f);
        fwrite(eg_data(pictures), 1, (size_t)eg_size(pictures), f);
        fclose(f);
    }
    eg_save_npy(pictures, file("pictures.npy"));
    eg_tensor *many = eg_random_normal(EG_SHAPE(MANY));
    eg_save_npy(many, file("array.npy"));
    eg_archive *a = eg_archive_new(), *part = eg_archive_new();
    char name[32];
    for (int64_t i = 0; i < 25; i++) {
        snprintf(name, sizeof name, "weight_%02d", (int)i);
        eg_archive_add(a, name, eg_slice(many, EG_SHAPE(i * 1000000), EG_SHAPE(1000000)));
        if (i < 20) eg_archive_add(part, name, eg_archive_get(a, name));
    }
    eg_save_safetensors(a, file("weights.safetensors"));
    eg_save_npz(part, file("arrays.npz"));
    eg_archive_release(a);
    eg_archive_release(part);
    eg_record_writer *w = eg_record_writer_open(file("records.tfrecord"));
    const char *bytes = (const char *)eg_data(many);
    for (int64_t i = 0; i < RECORDS; i++) eg_record_writer_write(w, bytes + 800 * i, 800);
    eg_record_writer_close(w);
    eg_record_writer_release(w);
    w = eg_record_writer_open(file("examples.tfrecord"));
    for (int64_t i = 0; i < RECORDS / 2; i++) {
        EG_SCOPE;
        static const char *const names[] = { "x", "y" };
        eg_tensor *values[] = { eg_slice(many, EG_SHAPE(10 * i), EG_SHAPE(10)), eg_full(EG_INT64, EG_SHAPE(1), 7) };
        eg_tensor *example = eg_example_serialize(names, values, 2);
        eg_record_writer_write(w, eg_data(example), eg_size(example));
    }
    eg_record_writer_close(w);
    eg_record_writer_release(w);
    model(true);
}

// ---------------------------------------------------------------- reading a dataset to its end

static double sum_of(eg_tensor *x) { return eg_item(eg_reduce_sum(x)); }    // of float64 or int64
// Counts rows of the first component: batch says that an element is a batch of them.
static double count(eg_dataset *d, bool batch) {
    eg_iterator *it = eg_iterator_new(d);
    double n = 0;
    for (eg_status status = EG_NEXT; status == EG_NEXT;) {
        EG_SCOPE;
        eg_tensor *x[EG_MAX_COMPONENTS];
        status = eg_iterator_next(it, x);
        if (status == EG_NEXT) n += batch ? (double)eg_shape_of(x[0]).dims[0] : 1;
    }
    eg_iterator_release(it);
    eg_dataset_release(d);
    return n;
}
// All of a CSV as one tensor, and the sum of its values.
static double csv(const char *name, eg_dtype dtype) {
    const char *paths[] = { file(name) };
    eg_dataset *d = eg_dataset_batch(eg_dataset_csv(paths, 1, .components = { { .dtype = dtype } }), CSV_ROWS);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *x[EG_MAX_COMPONENTS];
    double sum = eg_iterator_next(it, x) == EG_NEXT ? sum_of(x[0]) : -1;
    eg_iterator_release(it);
    eg_dataset_release(d);
    return sum;
}
static double csv_integers(void) { return csv("integers.csv", EG_INT64); }
static double csv_thousandths(void) { return csv("thousandths.csv", EG_FLOAT64); }
static double csv_floats(void) { return csv("floats.csv", EG_FLOAT64); }
static eg_dataset *csv_dataset(void) {
    const char *paths[] = { file("thousandths.csv") };
    return eg_dataset_csv(paths, 1, .components = { { .dtype = EG_FLOAT64 } });
}
static double csv_rows(void) { return count(csv_dataset(), false); }
static double csv_batches(void) { return count(eg_dataset_batch(csv_dataset(), 256), true); }

// ---------------------------------------------------------------- arrays and archives

static double last(eg_tensor *x) { return ((const float *)eg_data(x))[eg_size(x) - 1]; }
static double idx(void) { return (double)eg_size(eg_load_idx(file("pictures.idx"))); }
static double npy(void) { return last(eg_load_npy(file("array.npy"))); }
static double weights(void) {
    eg_archive *a = eg_load_safetensors(file("weights.safetensors"));
    double v = last(eg_archive_get(a, "weight_24"));
    eg_archive_release(a);
    return v;
}
static double weights_one(void) {
    static const char *const names[] = { "weight_12" };
#ifdef BEFORE
    eg_archive *a = eg_load_safetensors(file("weights.safetensors"));
    (void)names;
#else
    eg_archive *a = eg_archive_load_named(file("weights.safetensors"), names, 1);
#endif
    double v = last(eg_archive_get(a, "weight_12"));
    eg_archive_release(a);
    return v;
}
static double npz(void) {
    eg_archive *a = eg_load_npz(file("arrays.npz"));
    double v = last(eg_archive_get(a, "weight_19"));
    eg_archive_release(a);
    return v;
}
// A model of 25 million weights with Adam's two moments: 300 MB. `save` writes them in `make`; a row restores them into
// a new model, whose moments the restore makes.
static double model(bool save) {
    static eg_tensor *w;
    static eg_optimizer *adam;
    static eg_checkpoint *c;
    if (!c) {
        EG_SCOPE;
        w = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(MANY)), "w");
        adam = eg_adam(.learning_rate = 1e-3);
        c = eg_checkpoint_new();
        eg_checkpoint_track(c, "w", w);
        eg_checkpoint_track_optimizer(c, "adam", adam);
    }
    if (save) {
        eg_tensor *g = eg_ones(EG_FLOAT32, EG_SHAPE(MANY));
        eg_apply_gradients(adam, &g, &w, 1);
        eg_checkpoint_save(c, file("state"));
    } else eg_checkpoint_restore(c, eg_checkpoint_latest(file("state")));
    return last(w);
}
static double restore(void) { return model(false); }
static double records(void) {
    const char *paths[] = { file("records.tfrecord") };
    return count(eg_dataset_tfrecord(paths, 1), false);
}
static eg_tensor *parse(eg_tensor *const *in, void *user) {
    static const eg_feature features[] = { { "x", EG_FLOAT32, { 1, { 10 } }, NULL },
                                           { "y", EG_INT64, { 1, { 1 } }, NULL } };
    eg_tensor *out[2];
    (void)user;
    return eg_example_parse(in[0], features, 2, out) ? out[0] : NULL;
}
static double examples(void) {
    const char *paths[] = { file("examples.tfrecord") };
    return count(eg_dataset_map(eg_dataset_tfrecord(paths, 1), parse, NULL), false);
}
static double lines(void) {
    const char *paths[] = { file("thousandths.csv") };
    return count(eg_dataset_text_lines(paths, 1), false);
}

// ---------------------------------------------------------------- pipelines

static eg_tensor *scale(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_div(eg_cast(in[0], EG_FLOAT32), 255);
}
static eg_tensor *identity(eg_tensor *const *in, void *user) { (void)user; return in[0]; }
static eg_dataset *pictures(void) {
    static eg_tensor *x;
    if (!x) x = eg_retain(eg_load_npy(file("pictures.npy")));
    return eg_dataset_from_slices(x);
}
static double slices_map_batch(void) {
    return count(eg_dataset_batch(eg_dataset_shuffle(eg_dataset_map(pictures(), scale, NULL), PICTURES), 64), true);
}
static double slices_batch_map(void) {
    return count(eg_dataset_map(eg_dataset_batch(eg_dataset_shuffle(pictures(), PICTURES), 64), scale, NULL), true);
}
static eg_dataset *scalars(void) { return eg_dataset_range(0, SCALARS, 1); }
static double range(void) { return count(scalars(), false); }
static eg_tensor *some(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_range(EG_INT64, 0, (double)(eg_item_int(in[0]) % 16), 1);
}
static double padded(void) { return count(eg_dataset_padded_batch(eg_dataset_map(scalars(), some, NULL), 32), true); }
static double prefetch(void) { return count(eg_dataset_prefetch(scalars(), 64), false); }
static double map_one(void) { return count(eg_dataset_map(scalars(), identity, NULL), false); }
static double map_threads(void) { return count(eg_dataset_map(scalars(), identity, NULL, .threads = 2), false); }
static double shuffle(void) { return count(eg_dataset_shuffle(eg_dataset_range(0, 1000000, 1), 1000000), false); }
static double cache(void) {
    return count(eg_dataset_repeat(eg_dataset_cache(eg_dataset_range(0, 1000000, 1)), 2), false);
}

// A drawing with smooth and rough parts, 640 x 480 x 3.
static double png(void) {
    static eg_tensor *x;
    if (!x) {
        eg_tensor *row = eg_reshape(eg_range(EG_FLOAT32, 0, 480, 1), EG_SHAPE(480, 1, 1));
        eg_tensor *column = eg_reshape(eg_range(EG_FLOAT32, 0, 640, 1), EG_SHAPE(1, 640, 1));
        eg_tensor *wave = eg_add(eg_sin(eg_div(row, 40)), eg_cos(eg_div(column, 30)));
        eg_seed(1);
        eg_tensor *drawn = eg_add(eg_add(eg_mul(wave, 50), 110), eg_mul(eg_random_uniform(EG_SHAPE(480, 640, 3)), 8));
        x = eg_retain(eg_cast(drawn, EG_UINT8));
        eg_save_png(file("picture.png"), x);
    }
    return (double)eg_size(eg_encode_png(x));
}

static const struct { const char *name; double (*run)(void); } rows[] = {
#define ROW(name) { #name, name },
    ROW(csv_integers) ROW(csv_thousandths) ROW(csv_floats) ROW(csv_rows) ROW(csv_batches) ROW(idx) ROW(npy) ROW(weights)
    ROW(weights_one) ROW(npz) ROW(restore) ROW(records) ROW(examples) ROW(lines) ROW(padded)
    ROW(slices_map_batch) ROW(slices_batch_map) ROW(range)
    ROW(prefetch) ROW(map_one) ROW(map_threads) ROW(shuffle) ROW(cache) ROW(png)
};

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    enum { MOST = 1000 };
    double time[MOST], least = argc > 3 ? atof(argv[3]) : 0.5, before = 0, grown = 0, check = 0, all = 0;
    int n = 0;
    if (argc < 3) return 2;
    folder = argv[2];
    cpu = argc > 4 && !strcmp(argv[4], "cpu");
    if (!strcmp(argv[1], "make")) return make(), eg_error() != EG_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(argv[1], rows[i].name)) continue;
        before = memory(true);
        while (n < MOST && (n < 3 || all < least)) {
            EG_SCOPE;
            double start = seconds();
            check = rows[i].run();
            all += time[n++] = seconds() - start;
        }
        grown = memory(false) - before;
        qsort(time, (size_t)n, sizeof *time, compare);
        printf("%.9g %.0f %.17g\n", time[n / 2], grown, check);
        return eg_error() != EG_OK;
    }
    return 2;
}
