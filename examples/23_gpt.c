//     cc -O2 -DEAGER_STATIC -I. examples/23_gpt.c -lm -o gpt && ./gpt
//
// A GPT that learns a text letter by letter and then writes on: by itself a tale of fourteen lines with a small model,
// in seconds.
// Given a text file it takes the model of the books (4 blocks, 128 wide, 4 heads, 64 letters at a time) and 500 steps:
//     ./gpt shakespeare.txt [STEPS]             (5000 steps make plausible verse; a step takes about a tenth of a
//     second)
// The model itself is in gpt.h, the letters in letters.h.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "gpt.h"
#include "letters.h"
#include <math.h>

// Random windows of a stretch of the text, and the same one letter later.
static void batch(const letters *l, int64_t from, int64_t length, int windows, int context, eg_tensor **x,
                  eg_tensor **y) {
    eg_tensor *start = eg_random_integers(EG_SHAPE(windows, 1), from, from + length - context);
    eg_tensor *places = eg_add(eg_cast(start, EG_INT64), eg_range(EG_INT64, 0, context, 1));
    eg_tensor *text = eg_wrap_data(EG_INT32, EG_SHAPE(l->length), l->ids, NULL, NULL);
    *x = eg_gather(text, places);
    *y = eg_gather(text, eg_add(places, 1));
}

// The loss on text that the model has not been trained on.
static double validate(eg_layer *gpt, const letters *l, int64_t from, int64_t length, int context) {
    EG_SCOPE;
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        EG_SCOPE;
        eg_tensor *x, *y;
        batch(l, from, length, 8, context, &x, &y);
        sum += eg_item(gpt_loss(gpt, x, y));
    }
    return sum / 4;
}

// One of the top_k most likely next letters, by chance: logits over temperature become probabilities, and the die is
// thrown.
// A low temperature plays safe, a high one is bold.
static int sample(eg_tensor *logits, int64_t top_k, double temperature) {
    eg_tensor *places, *best = eg_top_k(logits, top_k, &places);
    const float *p = eg_data(eg_softmax(eg_div(best, temperature)));
    const int64_t *place = eg_data(places);
    double die = eg_item(eg_random_uniform(EG_SCALAR));
    int64_t k = 0;
    if (!p || !place) return 0;
    while (k < top_k - 1 && (die -= (double)p[k]) > 0) k++;
    return (int)place[k];
}
static void write_on(eg_layer *gpt, const letters *l, const char *start, int count, int context) {
    enum { MOST = 512 };
    int32_t ids[MOST];
    int n = 0;
    printf("    ");
    for (; *start && n < MOST; start++) if (l->id[(unsigned char)*start] >= 0) ids[n++] = l->id[(unsigned char)*start];
    for (int i = 0; i < n; i++) putchar(l->letter[ids[i]]);
    for (; count > 0 && n < MOST; count--) {
        EG_SCOPE;
        int seen = n < context ? n : context;          // it looks back no further
        eg_tensor *x = eg_from_data(EG_INT32, EG_SHAPE(1, seen), ids + n - seen);
        eg_tensor *logits = eg_index(eg_index(eg_call(gpt, x), 0), seen - 1);
        ids[n] = sample(logits, l->count < 10 ? l->count : 10, 0.8);
        putchar(l->letter[ids[n]]);
        if (l->letter[ids[n++]] == '\n') printf("    ");
    }
    printf("\n");
}

int main(int argc, char **argv) {
    const bool own = argc > 1;
    const int context = own ? 64 : 32, steps = argc > 2 ? atoi(argv[2]) : own ? 500 : 360;
    letters l;
    eg_seed(1);
    if (own ? !letters_read(&l, argv[1]) : !letters_from(&l, letters_tale, (int64_t)sizeof letters_tale - 1)) {
        fprintf(stderr, "%s cannot be read\n", argv[1]);
        return 1;
    }
    // The last tenth of a file is for validation. The tale is too short for that: what counts is that it learns it by
    // heart.
    int64_t train = own ? l.length * 9 / 10 : l.length;
    if (l.length - train < context + 1 && own) { fprintf(stderr, "%s is too short\n", argv[1]); return 1; }
    eg_layer *gpt = own ? gpt_new(l.count, context, 4, 128, 4) : gpt_new(l.count, context, 2, 64, 4);
    eg_optimizer *adam = eg_adamw(.learning_rate = own ? 1e-3 : 4e-3, .weight_decay = 0.01);
    printf("A text of %lld letters, %d different ones.\n", (long long)l.length, l.count);

    double loss = 0;
    for (int step = 1; step <= steps && !eg_error(); step++) {
        EG_SCOPE;
        eg_tensor *x, *y;
        batch(&l, 0, train, 8, context, &x, &y);
        if (step == 1) {
            loss = eg_item(gpt_loss(gpt, x, y));
            printf("A model of %lld weights. Loss before the first step: %.2f (guessing: %.2f)\n",
                   (long long)eg_layer_parameters(gpt), loss, log(l.count));
        }
        double now = gpt_step(gpt, adam, x, y);
        loss += (now - loss) * 0.1;                    // smoothed
        if (step % (own ? 50 : 60) == 0) {
            printf("step %d: loss %.2f", step, loss);
            if (own) printf(", on text it has not seen %.2f", validate(gpt, &l, train, l.length - train, context));
            printf("\n");
            fflush(stdout);
        }
    }
    printf("It writes:\n");
    write_on(gpt, &l, own ? "\n" : "The river", 160, context);

    if (!own) printf("Larger: ./gpt FILE 5000, with a text of a megabyte.\n");
    if (eg_error()) printf("%s\n", eg_error_message());
    eg_optimizer_release(adam);
    eg_layer_release(gpt);
    letters_free(&l);
    return eg_error() != EG_OK;
}
