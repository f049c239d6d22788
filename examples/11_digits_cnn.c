//     cc -O2 -DEAGER_STATIC -I. examples/11_digits_cnn.c -lm -o digits && ./digits
//
// A convolutional network learns to read handwritten digits: what `./build.sh run` runs.
//     digits                  on 10,000 digits that it draws itself
//     digits FOLDER           on the IDX files of MNIST (-DEAGER_ZLIB and -lz for .gz ones)
//     digits --guide          the small model of TensorFlow's guide: fewer parameters, and much slower to learn
//     digits --epochs 5       ... and --digits 20000 to draw more of them
// The learning is in forward(), learn() and main(); the rest reads options and paints the progress bar.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"
#include <time.h>
#ifdef _WIN32
#include <io.h>
#define isatty _isatty
#else
#include <sys/ioctl.h>
#include <unistd.h>
#endif

enum { BATCH = 32, SHUFFLE = 1000, VARS = 6 };

// ---------------------------------------------------------------- the model

typedef struct {
    bool guide;
    eg_tensor *vars[VARS];      // filters and bias, twice; then the matrix and bias of the dense layer
} model;

// Random weights, small enough that what goes through a layer keeps its size (He's rule, for layers before a relu).
static eg_tensor *weights(eg_shape shape, int64_t fan_in, const char *name) {
    return eg_variable(eg_random_normal(shape, .stddev = sqrt(2.0 / (double)fan_in)), name);
}

static void model_init(model *m, bool guide) {
    int64_t second = guide ? 16 : 32, features = guide ? 16 : 5 * 5 * 32;
    m->guide = guide;
    m->vars[0] = weights(EG_SHAPE(3, 3, 1, 16), 3 * 3, "conv1.filters");
    m->vars[1] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(16)), "conv1.bias");
    m->vars[2] = weights(EG_SHAPE(3, 3, 16, second), 3 * 3 * 16, "conv2.filters");
    m->vars[3] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(second)), "conv2.bias");
    m->vars[4] = weights(EG_SHAPE(features, 10), 2 * features, "dense.matrix");
    m->vars[5] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "dense.bias");
}

// Pictures (N,28,28,1) to logits (N,10): the larger a digit's number, the surer the model is of that digit.
static eg_tensor *forward(const model *m, eg_tensor *x) {
    eg_tensor *const *v = m->vars;
    x = eg_relu(eg_add(eg_conv2d(x, v[0]), v[1]));                      // (N,26,26,16)
    if (!m->guide) x = eg_max_pool2d(x);                                // (N,13,13,16)
    x = eg_relu(eg_add(eg_conv2d(x, v[2]), v[3]));                      // (N,11,11,32)
    if (m->guide) x = eg_reduce_mean(x, .axes = EG_AXES(1, 2));         // the guide's: (N,24,24,16) to (N,16)
    else x = eg_reshape(eg_max_pool2d(x), EG_SHAPE(-1, 5 * 5 * 32));  // (N,5,5,32) to (N,800)
    return eg_add(eg_matmul(x, v[4]), v[5]);
}

static eg_tensor *accuracy(eg_tensor *logits, eg_tensor *labels) {
    eg_tensor *right = eg_equal(eg_cast(eg_argmax(logits, .axis = 1), EG_INT32), labels);
    return eg_reduce_mean(eg_cast(right, EG_FLOAT32));
}

// ---------------------------------------------------------------- the data

typedef struct {
    eg_tensor *images, *labels; // (count,28,28,1) of bytes and (count)
    int64_t count;
} dataset;

static dataset dataset_of(const digits *d) {
    return (dataset){eg_from_data(EG_UINT8, EG_SHAPE(d->count, 28, 28, 1), d->pixels),
                     eg_from_data(EG_INT32, EG_SHAPE(d->count), d->labels), d->count};
}

// The chosen digits as a batch: pixels from 0 to 1.
static void dataset_batch(const dataset *d, const int64_t *chosen, int64_t n, eg_tensor **x, eg_tensor **labels) {
    eg_tensor *which = eg_from_data(EG_INT64, EG_SHAPE(n), chosen);
    *x = eg_div(eg_cast(eg_gather(d->images, which), EG_FLOAT32), 255);
    *labels = eg_gather(d->labels, which);
}

// Digits in random order through a buffer: one is drawn from it, the next one in line takes the free place.
typedef struct {
    int64_t buffer[SHUFFLE], held, next, count;
    uint64_t random;
} shuffle;

static int64_t shuffle_batch(shuffle *s, int64_t *chosen) {
    int64_t n = 0;
    for (; n < BATCH; n++) {
        while (s->held < SHUFFLE && s->next < s->count) s->buffer[s->held++] = s->next++;
        if (!s->held) break;
        int64_t place = (int64_t)digits_uniform(&s->random, 0, (double)s->held);
        chosen[n] = s->buffer[place];
        s->buffer[place] = s->buffer[--s->held];
    }
    if (!n) s->next = 0;        // the end of an epoch: the next one starts over
    return n;
}

// ---------------------------------------------------------------- learning

// One step: run the model on a batch while a tape records, read the gradients from the tape, move the variables.
static void learn(model *m, eg_optimizer *adam, const dataset *d, const int64_t *chosen, int64_t n, double *loss,
                  double *right) {
    EG_SCOPE;
    eg_tensor *x, *labels, *grads[VARS];
    dataset_batch(d, chosen, n, &x, &labels);

    eg_tape *tape = eg_tape_begin();
    eg_tensor *logits = forward(m, x);
    eg_tensor *mean_loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, logits));
    eg_tape_gradients(tape, mean_loss, m->vars, VARS, grads);
    eg_apply_gradients(adam, grads, m->vars, VARS);

    *loss = eg_item(mean_loss);
    *right = eg_item(accuracy(logits, labels));
}

// What the model says to digits it has not learnt from; says[i] is its answer to digit i. Returns the share that is
// right.
static double examine(const model *m, const dataset *d, int *says) {
    double right = 0;
    for (int64_t first = 0; first < d->count && !eg_error(); first += 100) {
        EG_SCOPE;
        int64_t chosen[100], n = 0;
        for (; n < 100 && first + n < d->count; n++) chosen[n] = first + n;
        eg_tensor *x, *labels;
        dataset_batch(d, chosen, n, &x, &labels);
        eg_tensor *logits = forward(m, x), *answers = eg_cast(eg_argmax(logits, .axis = 1), EG_INT32);
        const int32_t *answer = eg_data(answers);
        for (int64_t i = 0; i < n && answer; i++) says[first + i] = answer[i];
        right += eg_item(accuracy(logits, labels)) * (double)n;
    }
    return right / (double)d->count;
}

// ---------------------------------------------------------------- the screen

static bool live, blocks;       // stdout is a terminal; it can show block characters
static int columns = 80, bar;   // its width, and the bar's
static double shown_at;

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void look_at_terminal(void) {
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *term = getenv("TERM"), *locale = NULL;
    for (int i = 0; i < 3 && (!locale || !*locale); i++) locale = getenv(names[i]);
    live = isatty(1) && !(term && !strcmp(term, "dumb"));
    blocks = live && locale && (strstr(locale, "UTF-8") || strstr(locale, "utf8"));
#ifdef TIOCGWINSZ
    struct winsize size;
    if (live && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
#endif
}

static void print_bar(double share) {
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bool color = !getenv("NO_COLOR");
    int eighths = (int)(share * bar * 8 + 0.5), cell = 0;
    fputs(color ? "\033[36m" : "", stdout);
    for (; cell < eighths / 8; cell++) fputs(blocks ? "█" : "#", stdout);
    if (blocks && eighths % 8) fputs(parts[eighths % 8], stdout), cell++;
    if (color) fputs("\033[90m", stdout);
    for (; cell < bar; cell++) fputs(blocks ? "·" : ".", stdout);
    fputs(color ? "\033[0m" : "", stdout);
}

// Twenty times a second on a terminal, where each line replaces the one before; every fiftieth step elsewhere.
static void show_step(int epoch, int epochs, int64_t step, int64_t steps, double loss, double right, double started) {
    double time = now(), done = (double)((epoch - 1) * steps + step), each = (time - started) / done;
    double left = each * ((double)(epochs * steps) - done);
    if (live ? time - shown_at < 0.05 && step < steps : step % 50 != 0) return;
    shown_at = time;
    char text[160];
    int length = snprintf(text, sizeof text, " %*lld/%lld  loss %.3f  %4.1f%% right  %.1f ms/step  %d:%02d left",
                          live ? 3 : 4, (long long)step, (long long)steps, loss, 100 * right, 1000 * each,
                          (int)(left + 0.5) / 60, (int)(left + 0.5) % 60);
    bar = columns - length - 13 < 6 ? 6 : columns - length - 13 > 40 ? 40 : columns - length - 13;
    printf("%sepoch %d/%d ", live ? "\r" : "", epoch, epochs);
    if (live) print_bar((double)step / (double)steps);
    printf("%s%s", text, live ? "\033[K" : "\n");
    fflush(stdout);
}

// The losses of all steps, drawn in one line.
static void show_losses(const float *losses, int64_t n) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    printf("\nloss %.2f ", (double)losses[0]);
    for (int64_t cell = 0; cell < 48 && n >= 48; cell++) {
        double sum = 0;
        int64_t first = cell * n / 48, last = (cell + 1) * n / 48;
        for (int64_t i = first; i < last; i++) sum += (double)losses[i];
        int height = (int)(8 * sum / (double)(last - first) / (double)losses[0]);
        fputs(bars[height < 0 ? 0 : height > 7 ? 7 : height], stdout);
    }
    printf(" %.2f\n", (double)losses[n - 1]);
}

// Three held-out digits side by side, two pixels a character; a misread one among them, if there is one.
static void show_digits(const digits *d, const int *says) {
    int64_t pick[3] = {0, 1, 2};
    if (d->count < 3) return;
    for (int64_t i = 2; i < d->count; i++)
        if (says[i] != d->labels[i]) {
            pick[2] = i;
            break;
        }
    for (int row = 2; row < 26; row += 2) {
        for (int k = 0; k < 3; k++) {
            const unsigned char *p = d->pixels + pick[k] * DIGITS_PIXELS + row * DIGITS_SIDE;
            for (int col = 2; col < 26; col++) putchar(" .:-=+*#%@"[(p[col] + p[col + DIGITS_SIDE]) * 9 / 510]);
            putchar(k < 2 ? ' ' : '\n');
        }
    }
    for (int k = 0; k < 3; k++) {
        char caption[48];
        int label = d->labels[pick[k]], said = says[pick[k]];
        int length = snprintf(caption, sizeof caption, "read as %d", said);
        if (said != label) snprintf(caption + length, sizeof caption - (size_t)length, ", but meant %d", label);
        printf("%-25s", caption);
    }
    putchar('\n');
}

// ---------------------------------------------------------------- all of it

int main(int argc, char **argv) {
    const char *folder = NULL;
    bool guide = false;
    long epochs = 3, count = 10000;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--guide")) guide = true;
        else if (!strcmp(argv[i], "--epochs") && more) epochs = strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--digits") && more) count = strtol(argv[++i], NULL, 10);
        else if (argv[i][0] != '-' && !folder) folder = argv[i];
        else epochs = 0;
    }
    if (epochs < 1 || epochs > 1000 || count < 100 || count > 1000000) {
        fprintf(stderr,
                "usage: %s [FOLDER with MNIST's files] [--guide] [--epochs 1 to 1000] [--digits 100 to 1000000]\n",
                argv[0]);
        return 2;
    }
    look_at_terminal();

    digits train, test;
    double started = now();
    if (folder) {
        const char *wrong = digits_read(folder, &train, &test);
        if (wrong) {
            fprintf(stderr, "%s\n", wrong);
            return 1;
        }
        printf("Read from %s: %lld digits to learn from, %lld held out\n", folder, (long long)train.count,
               (long long)test.count);
    } else {
        if (!digits_draw(&train, count * 4 / 5, 1) || !digits_draw(&test, count - count * 4 / 5, 2)) return 1;
        printf("Drawn in %.1f s: %lld digits to learn from, %lld held out\n", now() - started, (long long)train.count,
               (long long)test.count);
    }

    eg_seed(1);
    model m;
    model_init(&m, guide);
    eg_optimizer *adam = eg_adam(.learning_rate = 1e-3);
    dataset learning = dataset_of(&train), held_out = dataset_of(&test);
    shuffle order = {.count = train.count, .random = 1};
    int64_t steps = (train.count + BATCH - 1) / BATCH, parameters = 0, taken = 0;
    float *losses = malloc((size_t)(epochs * steps) * sizeof *losses);
    int *says = malloc((size_t)test.count * sizeof *says);
    for (int i = 0; i < VARS; i++) parameters += eg_size(m.vars[i]);
    printf("Model: %s; %lld parameters\n\n", guide ? "conv 16 3x3, conv 16 3x3, mean over pixels, dense 10"
           : "conv 16 3x3, max-pool, conv 32 3x3, max-pool, dense 10", (long long)parameters);

    double right = 0, began = now();
    for (int epoch = 1; epoch <= epochs && losses && says && !eg_error(); epoch++) {
        int64_t chosen[BATCH], n;
        double loss, hits, mean_loss = 0, mean_hits = 0;
        for (int64_t step = 1; (n = shuffle_batch(&order, chosen)) > 0 && !eg_error(); step++) {
            learn(&m, adam, &learning, chosen, n, &loss, &hits);
            losses[taken++] = (float)loss;
            double fresh = fmax(0.02, 1.0 / (double)step);          // means over about the last fifty steps
            mean_loss += fresh * (loss - mean_loss);
            mean_hits += fresh * (hits - mean_hits);
            show_step(epoch, (int)epochs, step, steps, mean_loss, mean_hits, began);
        }
        right = examine(&m, &held_out, says);
        if (live) printf("\r");
        printf("epoch %d/%ld ", epoch, epochs);
        if (live) print_bar(1);
        printf(" loss %.3f  %4.1f%% right, %.1f%% of the held-out ones%s\n", mean_loss, 100 * mean_hits, 100 * right,
               live ? "\033[K" : "");
    }
    if (!eg_error() && losses && says) {
        if (blocks) show_losses(losses, taken);
        putchar('\n');
        show_digits(&test, says);
        printf("\nHeld-out accuracy: %.2f%% (%.0f of %lld), after %.1f s\n", 100 * right, right * (double)test.count,
               (long long)test.count, now() - started);
        printf("\nWhere to look next: README.md for what eager.h can do; examples/01_slope.c,\n"
               "where this begins from nothing; or examples/11_digits_cnn.c, the program\n"
               "that you just ran.\n");
    }

    for (int i = 0; i < VARS; i++) eg_release(m.vars[i]);
    eg_optimizer_release(adam);
    free(losses);
    free(says);
    digits_free(&train);
    digits_free(&test);
    return eg_error() != 0;
}
