//     cc -O2 -DEAGER_STATIC -I. examples/18_resume.c -lm -o resume && ./resume
//
// Training that is stopped and goes on: a program that dies at any step and is started again ends with the same bits as
// one that ran through. A checkpoint holds all that a step depends on: weights, the optimizer's memory, where the
// dataset stands, the random numbers that dropout draws, and the program's own step count.
//     resume            runs 60 steps at once; then 25, throws everything away, and goes on from the checkpoint
//     resume FOLDER     one run that keeps its checkpoints there: stop it with Ctrl-C, start it again; delete the
//     folder to begin anew
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

enum { STEPS = 60, EVERY = 10 };

typedef struct {
    eg_layer *model;
    eg_optimizer *adam;
    eg_iterator *batches;
    eg_checkpoint *checkpoint;
    int64_t step;
    double loss;
} training;

static bool training_begin(training *t) {
    digits d;
    if (!digits_draw(&d, 2000, 1)) return false;
    eg_tensor *images = eg_div(eg_cast(eg_from_data(EG_UINT8, EG_SHAPE(2000, 28, 28, 1), d.pixels), EG_FLOAT32), 255);
    eg_dataset *data = eg_dataset_from_slices(images, eg_from_data(EG_INT32, EG_SHAPE(2000), d.labels));
    digits_free(&d);
    data = eg_dataset_batch(eg_dataset_repeat(eg_dataset_shuffle(data, 500, .seed = 7), -1), 32);
    t->batches = eg_iterator_new(data);
    eg_dataset_release(data);
    t->model = eg_sequential(
        eg_layer_conv2d(8, 5, .activation = EG_RELU, .strides = {2}, .input_shape = EG_SHAPE(28, 28, 1)),
        eg_layer_flatten(),
        eg_layer_dropout(0.3),
        eg_layer_dense(10));
    t->adam = eg_adam(.learning_rate = 2e-3);
    t->step = 0;
    t->checkpoint = eg_checkpoint_new(.keep = 3);
    return eg_checkpoint_track_layer(t->checkpoint, "model", t->model) &&
           eg_checkpoint_track_optimizer(t->checkpoint, "adam", t->adam) &&
           eg_checkpoint_track_iterator(t->checkpoint, "batches", t->batches) &&
           eg_checkpoint_track_number(t->checkpoint, "step", &t->step) &&
           eg_checkpoint_track_random(t->checkpoint);
}
static void training_end(training *t) {
    eg_checkpoint_release(t->checkpoint);
    eg_iterator_release(t->batches);
    eg_optimizer_release(t->adam);
    eg_layer_release(t->model);
}
static bool training_step(training *t) {
    EG_SCOPE;
    eg_tensor *batch[EG_MAX_COMPONENTS];
    if (eg_iterator_next(t->batches, batch) != EG_NEXT) return false;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_sparse_categorical_crossentropy(batch[1], eg_call(t->model, batch[0], .training = true));
    t->loss = eg_item(loss);
    t->step++;
    return eg_tape_minimize(tape, loss, eg_layer_trainable_weights_list(t->model), t->adam);
}
// Goes on from the latest checkpoint of the prefix (where there is none: from the beginning) up to a step.
static bool train(training *t, const char *prefix, int64_t until) {
    const char *latest = eg_checkpoint_latest(prefix);
    if (!eg_checkpoint_restore(t->checkpoint, latest)) return false;
    printf(latest ? "goes on from %s\n" : "begins\n", latest);
    while (t->step < until) {
        if (!training_step(t)) return false;
        if (t->step % EVERY) continue;
        printf("step %2d: loss %.6f\n", (int)t->step, t->loss);
        if (!eg_checkpoint_save(t->checkpoint, prefix)) return false;
    }
    return true;
}
// A number that any changed bit of any weight would change.
static uint64_t fingerprint(training *t) {
    eg_list weights = eg_layer_weights_list(t->model);
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < weights.count; i++) {
        const unsigned char *bytes = (const unsigned char *)eg_data(weights.tensors[i]);
        for (int64_t k = 0; k < 4 * eg_size(weights.tensors[i]); k++) hash = (hash ^ bytes[k]) * 1099511628211u;
    }
    return hash;
}

int main(int argc, char **argv) {
    training t;
    char prefix[4000];
    if (argc > 1) {
        snprintf(prefix, sizeof prefix, "%s/digits", argv[1]);
        eg_seed(1);
        bool ok = training_begin(&t) && train(&t, prefix, 100 * STEPS);
        training_end(&t);
        return !ok;
    }
    printf("At once:\n");
    eg_seed(1);
    if (!training_begin(&t)) return 1;
    while (t.step < STEPS && training_step(&t)) {}
    printf("step %2d: loss %.6f\n", (int)t.step, t.loss);
    uint64_t at_once = fingerprint(&t);
    training_end(&t);

    printf("\nStopped after step 25:\n");
    snprintf(prefix, sizeof prefix, "resume_checkpoints/digits");
    for (const char *old; (old = eg_checkpoint_latest(prefix)) != NULL;) if (remove(old)) return 1;
    eg_seed(1);
    if (!training_begin(&t) || !train(&t, prefix, 25)) return 1;
    training_end(&t);                                       // five steps since the last checkpoint are lost with it

    printf("\nStarted again:\n");
    eg_seed(12345);  // whatever the program did before, the checkpoint knows better
    if (!training_begin(&t) || !train(&t, prefix, STEPS)) return 1;
    printf("\n%s\n", fingerprint(&t) == at_once ? "The same bits in every weight." : "The weights differ!");
    training_end(&t);
    return eg_error() != 0;
}
