//     cc -O2 -DEAGER_STATIC -I. examples/27_digits_session.c -lm -o digits_session && ./digits_session
//
// Example 10's softmax regression as a graph: one list of ops for training and testing, run by a session that is fed
// batches from an iterator. The open dimension, -1, takes a batch of any length. With a folder of MNIST's files as
// argument it learns those.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include "digits.h"

enum { BATCH = 50, EPOCHS = 5 };

static eg_tensor *pictures_of(const digits *d) {
    return eg_from_data(EG_UINT8, EG_SHAPE(d->count, DIGITS_PIXELS), d->pixels);
}
static eg_tensor *labels_of(const digits *d) { return eg_from_data(EG_INT32, EG_SHAPE(d->count), d->labels); }

// Nodes "bytes" and "labels" to feed, "loss", "accuracy" and "train" to fetch; the variables, which the caller
// releases.
static bool build(eg_graph *g, eg_optimizer *sgd, eg_tensor *variables[2]) {
    EG_GRAPH(g);
    eg_tensor *bytes = eg_placeholder(EG_UINT8, EG_SHAPE(-1, DIGITS_PIXELS), "bytes");
    eg_tensor *labels = eg_placeholder(EG_INT32, EG_SHAPE(-1), "labels");
    eg_tensor *W = variables[0] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(DIGITS_PIXELS, 10)), "W");
    eg_tensor *b = variables[1] = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "b");
    eg_tape *tape = eg_tape_begin();
    eg_tensor *logits = eg_add(eg_matmul(eg_div(eg_cast(bytes, EG_FLOAT32), 255), W), b);
    eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, logits));
    eg_tensor *grads[2];
    if (!eg_tape_gradients(tape, loss, variables, 2, grads) || !eg_apply_gradients(sgd, grads, variables, 2))
        return false;
    eg_tensor *right = eg_equal(eg_cast(eg_argmax(logits, .axis = 1), EG_INT32), labels);
    return eg_graph_name(loss, "loss") && eg_graph_name(eg_graph_update(), "train") &&
           eg_graph_name(eg_reduce_mean(eg_cast(right, EG_FLOAT32)), "accuracy");
}

static void train(eg_graph *g, const digits *learn, const digits *test) {
    EG_SCOPE;
    eg_session *session = eg_session_new(g);
    eg_session_initialize(session, NULL, 0);
    eg_tensor *fetches[] = {eg_graph_node(g, "loss"), eg_graph_node(g, "train")}, *out[2];
    eg_feed held_out[] = {{eg_graph_node(g, "bytes"), pictures_of(test)},
                          {eg_graph_node(g, "labels"), labels_of(test)}};
    eg_dataset *batches = eg_dataset_batch(eg_dataset_from_slices(pictures_of(learn), labels_of(learn)), BATCH);
    for (int epoch = 1; epoch <= EPOCHS && !eg_error(); epoch++) {
        double total = 0;
        int64_t steps = 0, updates = 0;
        eg_iterator *it = eg_iterator_new(batches);
        for (;; steps++) {
            EG_SCOPE;
            eg_tensor *batch[EG_MAX_COMPONENTS];
            if (eg_iterator_next(it, batch) != EG_NEXT) break;
            eg_feed feeds[] = {{held_out[0].node, batch[0]}, {held_out[1].node, batch[1]}};
            if (!eg_session_run(session, feeds, 2, fetches, 2, out)) break;
            if (epoch == 1 && steps == 0) printf("First loss: %.6f, which is log(10): no idea yet\n", eg_item(out[0]));
            total += eg_item(out[0]);
            updates = eg_item_int(out[1]);
        }
        eg_iterator_release(it);
        printf("Epoch %d: mean loss %.3f after %d updates, %.1f%% of the held-out digits right\n", epoch,
               total / (double)steps, (int)updates,
               100 * eg_item(eg_session_eval(session, eg_graph_node(g, "accuracy"), held_out, 2)));
    }
    eg_dataset_release(batches);
    eg_session_release(session);
}

int main(int argc, char **argv) {
    digits learn, test;
    const char *wrong = NULL;
    if (argc > 1) wrong = digits_read(argv[1], &learn, &test);
    else if (!digits_draw(&learn, 6000, 1) || !digits_draw(&test, 1000, 2)) wrong = "no memory for the digits";
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        return 1;
    }
    eg_graph *g = eg_graph_new();
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.1);
    eg_tensor *variables[2] = {NULL, NULL};
    if (build(g, sgd, variables)) train(g, &learn, &test);
    eg_graph_release(g);
    eg_optimizer_release(sgd);
    for (int i = 0; i < 2; i++) eg_release(variables[i]);
    digits_free(&learn);
    digits_free(&test);
    return eg_error() != 0;
}
