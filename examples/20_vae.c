//     cc -O2 -DEAGER_STATIC -I. examples/20_vae.c -lm -o vae && ./vae
//
// A variational autoencoder (Kingma & Welling 2014) learns to write digits. The encoder turns a picture into a small
// cloud of points, a mean and a spread in a few dimensions; the decoder turns a point back into a picture. The loss
// asks that the picture comes back, and that all clouds together lie like one bell curve around 0. So afterwards a
// point drawn from that bell curve decodes to a digit that nobody has written. Both parts are told which digit it is;
// what is left for the point is the hand: slant, size, pen. vae.png shows ten digits in each of 16 hands that it made
// up, one hand a column; vae_again.png shows pairs of a digit and what came back of it. `vae 40` trains longer, `vae 12
// FOLDER` on MNIST's files.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"
#include <stdlib.h>

enum { LATENT = 10, HIDDEN = 256, BATCH = 100, HANDS = 16 };

typedef struct {
    eg_layer *encoder, *decoder;
} model;

// Pictures (N,784) and digits (N,10) to points (N,LATENT): mean + spread * noise, through which gradients flow to mean
// and spread.
// *kl gets each cloud's distance from the bell curve, (N).
static eg_tensor *encode(const model *m, eg_tensor *x, eg_tensor *digit, eg_tensor **kl) {
    eg_tensor *halves[2];
    if (!eg_split(eg_call(m->encoder, eg_concat(EG_TENSORS(x, digit), 1)), 2, 1, halves)) return NULL;
    eg_tensor *mean = halves[0], *log_variance = halves[1];
    eg_tensor *distance = eg_sub(eg_add(eg_square(mean), eg_exp(log_variance)), eg_add(log_variance, 1));
    *kl = eg_mul(eg_reduce_sum(distance, .axes = EG_AXES(1)), 0.5);
    eg_tensor *noise = eg_random_normal(eg_shape_of(mean));
    return eg_add(mean, eg_mul(eg_exp(eg_mul(log_variance, 0.5)), noise));
}
static eg_tensor *decode(const model *m, eg_tensor *z, eg_tensor *digit) {
    return eg_call(m->decoder, eg_concat(EG_TENSORS(z, digit), 1));
}

static eg_tensor *loss(eg_tensor *const *in, void *user) {             // in: pictures (N,784), digits (N,10)
    const model *m = user;
    eg_tensor *kl, *z = encode(m, in[0], in[1], &kl);
    eg_tensor *unlike = eg_sigmoid_cross_entropy_with_logits(in[0], decode(m, z, in[1]));
    return eg_reduce_mean(eg_add(eg_reduce_sum(unlike, .axes = EG_AXES(1)), kl));
}

// Shades from 0 to 1; what is nearly white is white, for the grain of the paper cannot be told in so few numbers.
static eg_tensor *pictures_of(const digits *d) {
    eg_tensor *bytes = eg_from_data(EG_UINT8, EG_SHAPE(d->count, DIGITS_PIXELS), d->pixels);
    return eg_clip_by_value(eg_div(eg_sub(eg_cast(bytes, EG_FLOAT32), 50), 150), 0, 1);
}
static eg_tensor *digits_of(const digits *d) {
    return eg_one_hot(eg_from_data(EG_INT32, EG_SHAPE(d->count), d->labels), 10);
}

static bool save(const char *path, eg_tensor *pictures, int64_t columns) {  // (N,784), twice as large, dark on white
    eg_tensor *sheet = eg_image_grid(eg_reshape(pictures, EG_SHAPE(-1, 28, 28, 1)), columns);
    return eg_save_png(path, eg_sub(1, eg_repeat(eg_repeat(sheet, 2, 0), 2, 1)));
}

int main(int argc, char **argv) {
    int epochs = argc > 1 ? atoi(argv[1]) : 12;
    digits train, test;
    const char *wrong = NULL;
    if (argc > 2) wrong = digits_read(argv[2], &train, &test);
    else if (!digits_draw(&train, 8000, 1) || !digits_draw(&test, 100, 2)) wrong = "no memory for the digits";
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        return 1;
    }
    eg_seed(1);
    eg_tensor *x = pictures_of(&train), *labels = digits_of(&train), *unseen[] = {pictures_of(&test), digits_of(&test)},
              *kl;
    model m = {
        eg_sequential(eg_layer_dense(HIDDEN, .activation = EG_RELU), eg_layer_dense(HIDDEN, .activation = EG_RELU),
                      eg_layer_dense(2 * LATENT)),
        eg_sequential(eg_layer_dense(HIDDEN, .activation = EG_RELU), eg_layer_dense(HIDDEN, .activation = EG_RELU),
                      eg_layer_dense(DIGITS_PIXELS)),
    };
    int64_t steps = train.count / BATCH;
    eg_optimizer *adam = eg_adam(.schedule = eg_cosine_decay(2e-3, (double)(steps * epochs), 0.05, 0, 0));
    for (int epoch = 1; epoch <= epochs && !eg_error(); epoch++) {
        EG_SCOPE;
        eg_tensor *order = eg_random_permutation(train.count);
        double total = 0;
        for (int64_t step = 0; step < steps; step++) {
            EG_SCOPE;
            eg_tensor *rows = eg_slice(order, EG_SHAPE(step * BATCH), EG_SHAPE(BATCH)),
                      *batch[] = {eg_gather(x, rows), eg_gather(labels, rows)};
            total += eg_item(eg_minimize(adam, loss, &m, batch));
        }
        printf("Epoch %2d: loss %6.2f, of digits it has not seen %6.2f\n", epoch, total / (double)steps,
               eg_item(loss(unseen, &m)));
    }

    // Digit i of hand j is row i, column j: the hands' points once for each digit, beside each digit once for each
    // hand.
    eg_tensor *hands = eg_tile(eg_random_normal(EG_SHAPE(HANDS, LATENT), .stddev = 0.8), EG_SHAPE(10, 1)),
              *which = eg_repeat(eg_eye(EG_FLOAT32, 10, 10), HANDS, 0);
    bool saved = save("vae.png", eg_sigmoid(decode(&m, hands, which)), HANDS);
    eg_tensor *again = eg_sigmoid(decode(&m, encode(&m, unseen[0], unseen[1], &kl), unseen[1]));
    eg_tensor *pairs = eg_reshape(eg_stack(EG_TENSORS(unseen[0], again), 1), EG_SHAPE(-1, DIGITS_PIXELS));
    saved = saved && save("vae_again.png", eg_slice(pairs, EG_SHAPE(0, 0), EG_SHAPE(96, -1)), 12);
    if (saved) puts("vae.png shows digits it made up, vae_again.png digits and what came back of them.");

    eg_optimizer_release(adam);
    eg_layer_release(m.encoder);
    eg_layer_release(m.decoder);
    digits_free(&train);
    digits_free(&test);
    return eg_error() != 0;
}
