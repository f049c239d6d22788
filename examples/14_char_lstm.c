//     cc -O2 -DEAGER_STATIC -I. examples/14_char_lstm.c -lm -o char_lstm && ./char_lstm
//
// A network reads a text letter by letter and learns to say which letter comes next. Asked again and again, it writes:
// first noise, then words, then lines that were never in the text. What it remembers between two letters is the state
// of an LSTM.
// A text of your own (Shakespeare's plays are 1 MB), units in the memory, and epochs are arguments:
//     ./char_lstm shakespeare.txt 256 10
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "letters.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, STEPS = 48, WIDTH = 24 };

typedef struct {
    eg_layer *all, *embedding, *lstm, *dense;       // the model, and the layers it is made of
} writer;

static writer writer_of(int count, int64_t units) {
    writer w = {NULL, eg_layer_embedding(count, WIDTH), eg_layer_lstm(units, .return_sequences = true),
                eg_layer_dense(count)};
    w.all = eg_sequential(eg_layer_retain(w.embedding), eg_layer_retain(w.lstm), eg_layer_retain(w.dense));
    return w;
}

// One step on pieces of the text from places drawn at random: after each letter of x comes the same one of y.
static double learn(const writer *w, eg_optimizer *adam, eg_tensor *text) {
    EG_SCOPE;
    eg_tensor *start = eg_random_integers(EG_SHAPE(BATCH, 1), 0, eg_size(text) - STEPS);
    eg_tensor *places = eg_add(start, eg_range(EG_INT32, 0, STEPS, 1));
    eg_tensor *x = eg_gather(text, places), *y = eg_gather(text, eg_add(places, 1));

    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(y,
                                                                                 eg_call(w->all, x, .training = true)));
    eg_list weights = eg_layer_trainable_weights_list(w->all), grads = eg_tape_gradients_list(tape, loss, weights);
    grads = eg_clip_by_global_norm_list(grads, 1);  // a long memory can have a steep slope: no step is larger than this
    eg_apply_gradients_list(adam, grads, weights);
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
static void write_text(const writer *w, const letters *l, int count, double temperature) {
    EG_SCOPE;
    eg_tensor *in[3], *out[3];
    int n = 1, id = l->ids[0];                             // it begins as the text does
    for (int i = 0; i < count && !eg_error(); i++) {
        putchar(l->letter[id]);
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
    letters l;
    bool read = argc > 1 ? letters_read(&l, argv[1]) : letters_from(&l, letters_tale, (int64_t)sizeof letters_tale - 1);
    int64_t units = argc > 2 ? atoll(argv[2]) : 96;
    int epochs = argc > 3 ? atoi(argv[3]) : 6;
    if (!read || l.length <= STEPS) {
        fprintf(stderr, "%s: no text of more than %d letters\n", argc > 1 ? argv[1] : "the tale", STEPS);
        return 1;
    }
    eg_seed(1);
    eg_tensor *text = eg_from_data(EG_INT32, EG_SHAPE(l.length), l.ids);
    writer w = writer_of(l.count, units);
    eg_optimizer *adam = eg_adam(.learning_rate = 0.01);
    printf("%lld letters, %d different ones: guessing costs %.2f a letter\n", (long long)l.length, l.count,
           log(l.count));

    // an epoch sees as many letters as there are, but a short text often
    int steps = (int)(l.length / (BATCH * STEPS));
    if (steps < 60) steps = 60;
    for (int epoch = 1; epoch <= epochs && !eg_error(); epoch++) {
        double total = 0;
        for (int step = 0; step < steps && !eg_error(); step++) total += learn(&w, adam, text);
        printf("\nEpoch %d: %.2f a letter. It writes:\n", epoch, total / steps);
        write_text(&w, &l, 200, 0.5);
    }
    printf("\n%lld numbers remember it.\n", (long long)eg_layer_parameters(w.all));

    eg_layer_release(w.all);
    eg_layer_release(w.embedding);
    eg_layer_release(w.lstm);
    eg_layer_release(w.dense);
    eg_optimizer_release(adam);
    letters_free(&l);
    return eg_error() != 0;
}
