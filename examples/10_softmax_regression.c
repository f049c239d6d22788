//     cc -O2 -DEAGER_STATIC -I. examples/10_softmax_regression.c -lm -o softmax && ./softmax
//
// Softmax regression reads digits with one matrix: each of ten columns is a stencil, and the stencil that a picture
// fits best is the answer. Written in the functional style: a loss is a function, and its gradients come with its
// value, for whichever variables it used. With a folder of MNIST's files as argument it learns those.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

enum { BATCH = 50, EPOCHS = 5 };

typedef struct {
    eg_tensor *W, *b;
} model;

static eg_tensor *predict(const model *m, eg_tensor *x) { return eg_add(eg_matmul(x, m->W), m->b); }

static eg_tensor *loss(eg_tensor *const *in, void *user) {             // in: pictures (N,784), labels (N)
    return eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(in[1], predict(user, in[0])));
}

static double accuracy(const model *m, eg_tensor *x, eg_tensor *labels) {
    EG_SCOPE;
    eg_tensor *answers = eg_cast(eg_argmax(predict(m, x), .axis = 1), EG_INT32);
    return eg_item(eg_reduce_mean(eg_cast(eg_equal(answers, labels), EG_FLOAT32)));
}

static eg_tensor *pictures_of(const digits *d) {
    eg_tensor *bytes = eg_from_data(EG_UINT8, EG_SHAPE(d->count, DIGITS_PIXELS), d->pixels);
    return eg_div(eg_cast(bytes, EG_FLOAT32), 255);
}
static eg_tensor *labels_of(const digits *d) { return eg_from_data(EG_INT32, EG_SHAPE(d->count), d->labels); }

int main(int argc, char **argv) {
    digits train, test;
    const char *wrong = NULL;
    if (argc > 1) wrong = digits_read(argv[1], &train, &test);
    else if (!digits_draw(&train, 6000, 1) || !digits_draw(&test, 1000, 2)) wrong = "no memory for the digits";
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        return 1;
    }
    eg_tensor *x = pictures_of(&train), *labels = labels_of(&train), *test_x = pictures_of(&test),
              *test_labels = labels_of(&test);

    model m = {eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(DIGITS_PIXELS, 10)), "W"),
               eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "b")};
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.1);
    for (int epoch = 1; epoch <= EPOCHS && !eg_error(); epoch++) {
        double total = 0;
        int64_t steps = train.count / BATCH;
        for (int64_t step = 0; step < steps; step++) {
            EG_SCOPE;
            eg_tensor *in[] = {eg_slice(x, EG_SHAPE(step * BATCH, 0), EG_SHAPE(BATCH, -1)),
                               eg_slice(labels, EG_SHAPE(step * BATCH), EG_SHAPE(BATCH))};
            eg_gradient_pair pairs[2];
            int count;
            double value = eg_item(eg_implicit_value_and_gradients(loss, &m, in, pairs, 2, &count));
            if (epoch == 1 && step == 0) printf("First loss: %.6f, which is log(10): no idea yet\n", value);
            eg_apply_gradient_pairs(sgd, pairs, count);
            total += value;
        }
        printf("Epoch %d: mean loss %.3f, %.1f%% of the held-out digits right\n", epoch, total / (double)steps,
               100 * accuracy(&m, test_x, test_labels));
    }
    puts("Example 11 looks at strokes instead of stencils, and is right far more often.");

    eg_optimizer_release(sgd);
    eg_release(m.W);
    eg_release(m.b);
    digits_free(&train);
    digits_free(&test);
    return eg_error() != 0;
}
