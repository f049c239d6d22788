//     cc -O2 -I. examples/14_char_lstm.c -lm -o char_lstm && ./char_lstm
//
// A network reads a text letter by letter and learns to say which letter comes next. Asked again and again, it writes: first
// noise, then words, then lines that were never in the text. What it remembers between two letters is the state of an LSTM.
// A text of your own (Shakespeare's plays are 1 MB), units in the memory, and epochs are arguments:
//     ./char_lstm shakespeare.txt 256 10
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, STEPS = 48, WIDTH = 24, LETTERS = 256, WEIGHTS = 8 };

// A tale that goes round; short enough to be learned in seconds.
static const char passage[] =
    "The river runs down from the hill to the mill, and the mill turns slow when the river is low.\n"
    "The miller wakes up when the mill goes around, and the sound of the stones is the sound of the ground.\n"
    "The ground is asleep till the rain comes down, and the rain comes down on the hill and the town.\n"
    "The town is awake when the bell rings three, and the bell rings three when the tide leaves the sea.\n"
    "The sea sends the wind, and the wind sends the rain, and the rain fills the river that runs on the plain.\n"
    "The plain gives the grain, and the grain fills the mill, and the mill stands still at the foot of the hill.\n"
    "The hill holds the snow till the spring lets it go, and the snow feeds the river that runs there below.\n"
    "Below in the town they are baking the bread, and the baker is up when the rest are in bed.\n"
    "The bread goes to market, the market to town, and the price of the bread goes up and comes down.\n"
    "Down by the water the fishermen wait for the tide and the wind, and the wind is late.\n"
    "Late in the evening the boats come home, and the wake of the boats is a ribbon of foam.\n"
    "The foam on the water is white as the snow, and the snow on the hill is where rivers grow.\n"
    "So round goes the water and round goes the mill, and round goes the bread from the town to the hill,\n"
    "and round goes the story, for nothing stands still, but the river runs down from the hill to the mill.\n";

typedef struct {
    int count, id[LETTERS];                 // how many letters the text has; the number of each
    unsigned char letter[LETTERS];          // and back
    eg_tensor *ids;                         // the text in these numbers
} text;

typedef struct {
    eg_layer *all, *embedding, *lstm, *dense;       // the model, and the layers it is made of
} writer;

static char *read_file(const char *path, size_t *size);
static text text_of(const char *characters, size_t size);

static writer writer_of(int letters, int64_t units) {
    writer w = {NULL, eg_layer_embedding(letters, WIDTH), eg_layer_lstm(units, .return_sequences = true), eg_layer_dense(letters)};
    w.all = eg_sequential(eg_layer_retain(w.embedding), eg_layer_retain(w.lstm), eg_layer_retain(w.dense));
    return w;
}

// One step on pieces of the text from places drawn at random: after each letter of x comes the same one of y.
static double learn(const writer *w, eg_optimizer *adam, const text *t) {
    EG_SCOPE;
    eg_tensor *start = eg_random_integers(EG_SHAPE(BATCH, 1), 0, eg_size(t->ids) - STEPS);
    eg_tensor *places = eg_add(start, eg_range(EG_INT32, 0, STEPS, 1));
    eg_tensor *x = eg_gather(t->ids, places), *y = eg_gather(t->ids, eg_add(places, 1));

    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(y, eg_call(w->all, x, .training = true)));
    eg_tensor *vars[WEIGHTS], *grads[WEIGHTS], *clipped[WEIGHTS];
    int n = eg_layer_trainable_weights(w->all, vars, WEIGHTS);
    eg_tape_gradients(tape, loss, vars, n, grads);
    eg_clip_by_global_norm(grads, n, 1, clipped);          // a long memory can have a steep slope: no step is larger than this
    eg_apply_gradients(adam, clipped, vars, n);
    return eg_item(loss);
}

// Draws one of the letters. A low temperature makes it choose the likely ones.
static int choose(eg_tensor *logits, double temperature) {
    EG_SCOPE;
    const float *p = eg_data(eg_softmax(eg_div(logits, temperature)));
    double u = eg_item(eg_random_uniform(EG_SCALAR));
    int64_t i = 0, last = eg_size(logits) - 1;
    while (p && i < last && (u -= p[i]) > 0) i++;
    return (int)i;
}

// The layers one by one: what the LSTM had in mind after a letter, it starts from at the next.
static void write_text(const writer *w, const text *t, int count, double temperature) {
    EG_SCOPE;
    eg_tensor *in[3], *out[3];
    int n = 1, id = (int)eg_item_int(eg_index(t->ids, 0));     // it begins as the text does
    for (int i = 0; i < count && !eg_error(); i++) {
        putchar(t->letter[id]);
        in[0] = eg_call(w->embedding, eg_constant_of(EG_INT32, EG_SHAPE(1, 1), id));
        if (!eg_call_multi(w->lstm, in, n, out, 3)) break;
        id = choose(eg_call(w->dense, out[0]), temperature);
        in[1] = out[1];
        in[2] = out[2];
        n = 3;
    }
    putchar('\n');
}

int main(int argc, char **argv) {
    size_t size = sizeof passage - 1;
    char *file = argc > 1 ? read_file(argv[1], &size) : NULL;
    int64_t units = argc > 2 ? atoll(argv[2]) : 96;
    int epochs = argc > 3 ? atoi(argv[3]) : 6;
    if ((argc > 1 && !file) || size <= STEPS) {
        fprintf(stderr, "%s: no text of more than %d letters\n", argv[1], STEPS);
        return 1;
    }
    eg_seed(1);
    text t = text_of(file ? file : passage, size);
    writer w = writer_of(t.count, units);
    eg_optimizer *adam = eg_adam(.learning_rate = 0.01);
    printf("%zu letters, %d different ones: guessing costs %.2f a letter\n", size, t.count, log(t.count));

    int steps = (int)(size / (BATCH * STEPS));             // an epoch sees as many letters as there are, but a short text often
    if (steps < 60) steps = 60;
    for (int epoch = 1; epoch <= epochs && !eg_error(); epoch++) {
        double total = 0;
        for (int step = 0; step < steps && !eg_error(); step++) total += learn(&w, adam, &t);
        printf("\nEpoch %d: %.2f a letter. It writes:\n", epoch, total / steps);
        write_text(&w, &t, 200, 0.5);
    }
    printf("\n%lld numbers remember it.\n", (long long)eg_layer_parameters(w.all));

    eg_layer_release(w.all);
    eg_layer_release(w.embedding);
    eg_layer_release(w.lstm);
    eg_layer_release(w.dense);
    eg_optimizer_release(adam);
    free(file);
    return eg_error() != 0;
}

static char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    long length = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *characters = length > 0 ? malloc((size_t)length) : NULL;
    if (f) rewind(f);
    *size = characters ? fread(characters, 1, (size_t)length, f) : 0;
    if (f) fclose(f);
    return characters;
}

static text text_of(const char *characters, size_t size) {
    text t = {0};
    for (size_t i = 0; i < size; i++) t.id[(unsigned char)characters[i]] = 1;
    for (int c = 0; c < LETTERS; c++)
        if (t.id[c]) {
            t.letter[t.count] = (unsigned char)c;
            t.id[c] = t.count++;
        }
    int32_t *ids = malloc(size * sizeof *ids);
    for (size_t i = 0; ids && i < size; i++) ids[i] = t.id[(unsigned char)characters[i]];
    if (ids) t.ids = eg_from_data(EG_INT32, EG_SHAPE((int64_t)size), ids);
    free(ids);
    return t;
}
