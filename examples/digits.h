// digits.h: handwritten digits for examples 10 and 11, 28x28 grey pictures with their labels.
//   digits_draw  draws as many as you like from a seed, so that the examples need no download
//   digits_read  reads the IDX files of MNIST from a folder, plain or (with -DEAGER_ZLIB -lz) gzip'ed
// Nothing here is about learning; it is the data alone.
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef EAGER_ZLIB
#include <zlib.h>
#endif

enum { DIGITS_SIDE = 28, DIGITS_PIXELS = DIGITS_SIDE * DIGITS_SIDE };

typedef struct {
    int64_t count;
    unsigned char *pixels;      // (count, 28, 28), 0 is paper and 255 is ink
    int32_t *labels;            // (count), 0 to 9
} digits;

static inline void digits_free(digits *d) {
    free(d->pixels);
    free(d->labels);
    memset(d, 0, sizeof *d);
}

static inline bool digits_allocate(digits *d, int64_t count) {
    d->count = count;
    d->pixels = (unsigned char *)malloc((size_t)count * DIGITS_PIXELS);
    d->labels = (int32_t *)malloc((size_t)count * sizeof *d->labels);
    if (!d->pixels || !d->labels) digits_free(d);
    return d->pixels != NULL;
}

// ---------------------------------------------------------------- drawing

// How people write each digit: points on a grid of 10 x 10, column then row, row 0 at the top. A pen goes through
// them in a smooth curve; a point written twice is a corner, a slash lifts the pen.
static const char *const digits_strokes[10][5] = {
    {"50 31 24 27 49 68 75 72 50 31", "60 40 22 16 38 59 77 83 61 40", "50 32 35 48 59 67 64 51 40",
     "42 24 27 49 67 74 62 40 30"},
    {"50 50 59", "33 50 50 59", "33 51 51 59 59 / 39 79", "60 55 39", "24 50 50 49"},
    {"22 40 61 63 45 29 29 79", "23 31 50 71 73 55 28 38 49 79 88", "22 50 72 64 37 19 28 37 49 69 88",
     "31 51 72 63 29 29 68"},
    {"21 50 72 64 44 44 74 77 59 28", "20 70 70 44 44 75 77 59 28", "22 41 61 63 45 45 66 78 59 39 27",
     "30 60 73 54 64 76 58 39 19"},
    {"30 25 25 85 / 62 69", "60 26 26 86 / 60 60 59", "21 24 45 74 / 71 73 69", "59 51 51 15 26 86",
     "20 24 35 55 74 / 81 76 69"},
    {"70 30 30 24 24 54 76 68 49 28", "30 24 24 45 65 77 58 29 / 30 80", "71 40 32 44 65 77 59 39 18",
     "80 31 31 34 54 75 78 49 29"},
    {"60 32 26 49 77 65 45 27", "50 34 27 39 68 66 45 36 28", "70 42 25 28 59 77 75 54 35 26",
     "40 23 26 39 69 76 55 26"},
    {"20 70 70 49", "20 70 70 39 / 35 75", "22 20 20 71 71 54 49", "11 41 80 80 56 39", "20 50 72 55 39 / 45 76"},
    {"71 40 22 44 66 68 49 27 45 63 71", "50 31 43 54 63 61 50 / 54 36 37 59 77 66 54",
     "61 31 23 55 77 59 38 26 54 72 61", "40 22 34 55 67 59 38 36 54 72 60 40"},
    {"72 50 23 45 64 72 72 69", "71 40 22 34 55 73 71 66 58 39", "70 41 23 35 64 70 70 59", "61 41 33 44 62 61 58",
     "72 51 33 45 73 72 75 58 38 17"},
};

// splitmix64: small, and as good as the pictures need.
static inline double digits_uniform(uint64_t *state, double low, double high) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return low + (high - low) * ((double)(z >> 11) * 0x1p-53);
}

// Bell-shaped, with mean 0 and deviation 1, and never beyond 3: the sum of three uniforms.
static inline double digits_bell(uint64_t *state) {
    return digits_uniform(state, -1, 1) + digits_uniform(state, -1, 1) + digits_uniform(state, -1, 1);
}

// One straight piece of a stroke: ink where a pixel's centre is nearer than the radius, fading over one pixel's width.
static inline void digits_line(float *canvas, double ax, double ay, double bx, double by, double radius) {
    double dx = bx - ax, dy = by - ay, length2 = dx * dx + dy * dy;
    int left = (int)fmax(0, fmin(ax, bx) - radius - 1), right = (int)fmin(DIGITS_SIDE - 1, fmax(ax, bx) + radius + 1);
    int top = (int)fmax(0, fmin(ay, by) - radius - 1), bottom = (int)fmin(DIGITS_SIDE - 1, fmax(ay, by) + radius + 1);
    for (int row = top; row <= bottom; row++)
        for (int col = left; col <= right; col++) {
            double px = col + 0.5 - ax, py = row + 0.5 - ay;
            double t = length2 > 0 ? fmax(0, fmin(1, (px * dx + py * dy) / length2)) : 0;
            double distance = hypot(px - t * dx, py - t * dy);
            double ink = fmax(0, fmin(1, radius + 0.5 - distance));
            float *pixel = &canvas[row * DIGITS_SIDE + col];
            if ((float)ink > *pixel) *pixel = (float)ink;
        }
}

// Draws one digit. Everything about it comes from `state`: the hand, the slant, the pen, the dirt on the paper.
static inline void digits_draw_one(unsigned char *pixels, int label, uint64_t *state) {
    float canvas[DIGITS_PIXELS] = {0};
    int styles = 0;
    while (styles < 5 && digits_strokes[label][styles]) styles++;
    const char *pen = digits_strokes[label][(int)digits_uniform(state, 0, styles)];

    double angle = 0.11 * digits_bell(state), shear = 0.16 * digits_bell(state) - 0.1;
    double wide = digits_uniform(state, 1.7, 2.8), high = digits_uniform(state, 1.65, 2.3);
    double shift_x = 14 + 1.1 * digits_bell(state), shift_y = 14 + 1.1 * digits_bell(state);
    double radius = digits_uniform(state, 0.6, 1.6), shake = digits_uniform(state, 0.15, 0.45);
    double c = cos(angle), s = sin(angle);

    while (*pen) {
        double x[16], y[16];                    // the control points of one stroke, in pixels; both ends stand twice
        bool corner[16] = {false};
        int n = 1;
        for (; *pen && *pen != '/' && n < 15; pen += pen[2] ? 3 : 2) {
            corner[n] = n > 1 && pen[0] == pen[-3] && pen[1] == pen[-2];
            double gx = pen[0] - '0' - 4.5 + shake * digits_bell(state);
            double gy = pen[1] - '0' - 4.5 + shake * digits_bell(state);
            gx = wide * (gx - shear * gy);
            gy = high * gy;
            x[n] = corner[n] ? x[n - 1] : shift_x + c * gx - s * gy;
            y[n] = corner[n] ? y[n - 1] : shift_y + s * gx + c * gy;
            n++;
        }
        if (*pen == '/') pen += 2;
        x[0] = x[1]; y[0] = y[1];
        x[n] = x[n - 1]; y[n] = y[n - 1];
        for (int i = 1; i < n - 1; i++) {   // Catmull-Rom: the curve leaves point i in the direction from i-1 to i+1
            if (corner[i + 1]) continue;
            double lastx = x[i], lasty = y[i];
            for (int k = 1; k <= 6; k++) {
                double u = k / 6.0, u2 = u * u, u3 = u2 * u;
                double w0 = (2 * u2 - u3 - u) / 2, w1 = (3 * u3 - 5 * u2 + 2) / 2;
                double w2 = (4 * u2 - 3 * u3 + u) / 2, w3 = (u3 - u2) / 2;
                double nextx = w0 * x[i - 1] + w1 * x[i] + w2 * x[i + 1] + w3 * x[i + 2];
                double nexty = w0 * y[i - 1] + w1 * y[i] + w2 * y[i + 1] + w3 * y[i + 2];
                digits_line(canvas, lastx, lasty, nextx, nexty, radius);
                lastx = nextx, lasty = nexty;
            }
        }
    }
    // A scrap of a neighbour's stroke at the rim, as a crop from a page of writing has it.
    if (digits_uniform(state, 0, 1) < 0.5) {
        double turn = digits_uniform(state, 0, 6.2832), x0 = 14 + 13 * cos(turn), y0 = 14 + 13 * sin(turn);
        digits_line(canvas, x0, y0, x0 + digits_uniform(state, -5, 5), y0 + digits_uniform(state, -5, 5), radius);
    }
    double ink = digits_uniform(state, 170, 255), grain = digits_uniform(state, 0, 13);
    for (int i = 0; i < DIGITS_PIXELS; i++) {
        double value = ink * (double)canvas[i] + grain * digits_bell(state);
        pixels[i] = (unsigned char)fmax(0, fmin(255, value));
    }
}

// Digit number i depends on the seed and on i alone. false: no memory.
static inline bool digits_draw(digits *d, int64_t count, uint64_t seed) {
    if (!digits_allocate(d, count)) return false;
    for (int64_t i = 0; i < count; i++) {
        uint64_t state = (seed << 40) + (uint64_t)i * 0xD1B54A32D192ED03u;
        d->labels[i] = (int32_t)digits_uniform(&state, 0, 10);
        digits_draw_one(d->pixels + i * DIGITS_PIXELS, d->labels[i], &state);
    }
    return true;
}

// ---------------------------------------------------------------- reading MNIST

// An IDX file: 0 0 type rank, then the dimensions as big-endian 32-bit numbers, then the values. Returns the values,
// or NULL with a sentence in `why`. What the header promises must be there, and nothing after it.
static inline unsigned char *digits_read_idx(const char *path, int rank, int64_t *count, char *why, size_t room) {
#ifdef EAGER_ZLIB
    gzFile file = gzopen(path, "rb");           // reads plain files as they are
#define DIGITS_GET(to, n) ((int64_t)gzread(file, to, (unsigned)(n)))
#define DIGITS_CLOSE() gzclose(file)
#else
    FILE *file = fopen(path, "rb");
#define DIGITS_GET(to, n) ((int64_t)fread(to, 1, (size_t)(n), file))
#define DIGITS_CLOSE() fclose(file)
#endif
    unsigned char head[16] = {0}, *values = NULL, one_more;
    int64_t head_size = 4 + 4 * rank, dims[3] = {0, DIGITS_SIDE, DIGITS_SIDE}, got;
    if (!file) {
        snprintf(why, room, "%s: cannot be opened", path);
        return NULL;
    }
    got = DIGITS_GET(head, head_size);
    for (int i = 0; i < rank; i++)
        dims[i] = (int64_t)head[4 + 4 * i] << 24 | head[5 + 4 * i] << 16 | head[6 + 4 * i] << 8 | head[7 + 4 * i];
    int64_t size = dims[0] * (rank == 3 ? DIGITS_PIXELS : 1);
    if (got >= 2 && head[0] == 0x1F && head[1] == 0x8B)
        snprintf(why, room, "%s: is packed by gzip. Unpack it (gunzip), or compile with -DEAGER_ZLIB and -lz", path);
    else if (got < head_size)
        snprintf(why, room, "%s: is too short to be an IDX file", path);
    else if (head[0] || head[1])
        snprintf(why, room, "%s: is no IDX file (it starts with %02x %02x, not 00 00)", path, head[0], head[1]);
    else if (head[2] != 0x08)
        snprintf(why, room, "%s: has values of type %02x; only bytes (08) are read here", path, head[2]);
    else if (head[3] != rank)
        snprintf(why, room, "%s: has %d dimensions, and %s have %d", path, head[3], rank == 3 ? "images" : "labels",
                 rank);
    else if (dims[0] < 1 || dims[0] > 1000000)
        snprintf(why, room, "%s: promises %lld entries; 1 to 1000000 are read here", path, (long long)dims[0]);
    else if (dims[1] != DIGITS_SIDE || dims[2] != DIGITS_SIDE)
        snprintf(why, room, "%s: has images of %lld x %lld, not 28 x 28", path, (long long)dims[1], (long long)dims[2]);
    else if (!(values = (unsigned char *)malloc((size_t)size)))
        snprintf(why, room, "%s: no memory for %lld bytes", path, (long long)size);
    else if ((got = DIGITS_GET(values, size)) != size)
        snprintf(why, room, "%s: ends early or is damaged (%lld of %lld values)", path,
                 (long long)(got < 0 ? 0 : got), (long long)size);
    else if (DIGITS_GET(&one_more, 1) > 0)
        snprintf(why, room, "%s: goes on after its %lld values", path, (long long)size);
    else {
        DIGITS_CLOSE();
        *count = dims[0];
        return values;
    }
    DIGITS_CLOSE();
    free(values);
    return NULL;
#undef DIGITS_GET
#undef DIGITS_CLOSE
}

// Reads FOLDER/SET-images-idx3-ubyte and its labels, by the names they have in the wild: with `.idx` too, plain or .gz.
// 1: read, 0: no such files, -1: wrong, with a sentence in `why`.
static inline int digits_read_set(digits *d, const char *folder, const char *set, char *why, size_t room) {
    char path[2][1024];
    int64_t counts[2] = {0, 0};
    memset(d, 0, sizeof *d);
    for (int part = 0; part < 2; part++) {
        FILE *file = NULL;
        for (int form = 0; form < 4 && !file; form++) {
            snprintf(path[part], sizeof path[part], "%.900s/%s-%s%cidx%d-ubyte%s", folder, set,
                     part ? "labels" : "images", form & 2 ? '.' : '-', part ? 1 : 3, form & 1 ? ".gz" : "");
            file = fopen(path[part], "rb");
        }
        if (file) fclose(file);
        else path[part][0] = 0;
    }
    if (!path[0][0] && !path[1][0]) return 0;
    if (!path[0][0] || !path[1][0]) {
        snprintf(why, room, "%s: there are %s-%s but no %s-%s", folder, set, path[0][0] ? "images" : "labels", set,
                 path[0][0] ? "labels" : "images");
        return -1;
    }
    unsigned char *labels = NULL;
    d->pixels = digits_read_idx(path[0], 3, &counts[0], why, room);
    if (d->pixels) labels = digits_read_idx(path[1], 1, &counts[1], why, room);
    if (labels && counts[0] != counts[1])
        snprintf(why, room, "%s: %s has %lld images and %lld labels", folder, set, (long long)counts[0],
                 (long long)counts[1]);
    else if (labels && !(d->labels = (int32_t *)malloc((size_t)counts[0] * sizeof *d->labels)))
        snprintf(why, room, "%s: no memory for the labels", folder);
    for (int64_t i = 0; d->labels && i < counts[0]; i++) {
        d->labels[i] = labels[i];
        if (labels[i] < 10) continue;
        snprintf(why, room, "%s: label %lld is %d, not 0 to 9", path[1], (long long)i, labels[i]);
        free(d->labels);
        d->labels = NULL;
    }
    free(labels);
    d->count = counts[0];
    if (!d->labels) digits_free(d);
    return d->labels ? 1 : -1;
}

// Copies `count` digits from `first` on.
static inline bool digits_slice(digits *to, const digits *from, int64_t first, int64_t count) {
    if (!digits_allocate(to, count)) return false;
    memcpy(to->pixels, from->pixels + first * DIGITS_PIXELS, (size_t)count * DIGITS_PIXELS);
    memcpy(to->labels, from->labels + first, (size_t)count * sizeof *to->labels);
    return true;
}

// The train-* and t10k-* files of a folder; where it has one of the two sets alone, its first four fifths train and
// the rest test. NULL when all is well, else what is wrong, in a sentence.
static inline const char *digits_read(const char *folder, digits *train, digits *test) {
    static char why[1400];
    memset(test, 0, sizeof *test);
    int has_train = digits_read_set(train, folder, "train", why, sizeof why);
    int has_test = has_train < 0 ? -1 : digits_read_set(test, folder, "t10k", why, sizeof why);
    if (has_train == 1 && has_test == 1) return NULL;
    if (has_train >= 0 && has_test >= 0) {
        digits whole = has_train ? *train : *test;
        memset(train, 0, sizeof *train);
        memset(test, 0, sizeof *test);
        int64_t most = whole.count * 4 / 5;
        if (!has_train && !has_test)
            snprintf(why, sizeof why, "%s: has no train-images-idx3-ubyte and no t10k-images-idx3-ubyte, plain or .gz",
                     folder);
        else if (most < 1)
            snprintf(why, sizeof why, "%s: one digit is too few to train and to test", folder);
        else if (!digits_slice(train, &whole, 0, most) || !digits_slice(test, &whole, most, whole.count - most))
            snprintf(why, sizeof why, "%s: no memory for %lld digits", folder, (long long)whole.count);
        digits_free(&whole);
        if (test->count) return NULL;
    }
    digits_free(train);
    digits_free(test);
    return why;
}
#endif
