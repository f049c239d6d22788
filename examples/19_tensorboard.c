//     cc -O2 -DEAGER_STATIC -I. examples/19_tensorboard.c -lm -o board && ./board
//
// Training that one can watch: TensorBoard (pip install tensorboard) draws what a program writes into a folder of event
// files.
// A network learns where two spirals wind, and writes its loss and accuracy as curves, its weights as histograms, what
// it thinks of every point of the plane as a picture, a note, and the graph of a step. `board FOLDER` writes elsewhere.
#define EAGER_IMPLEMENTATION
#include "eager.h"

enum { POINTS = 400, STEPS = 1500, SIDE = 64 };

// Points (N,2) of two spirals, with a little noise, and which of the two each is on: (N,1).
static eg_tensor *spirals(eg_tensor **labels) {
    eg_tensor *which = eg_cast(eg_random_bernoulli(EG_SHAPE(POINTS, 1)), EG_FLOAT32);
    eg_tensor *turn = eg_mul(eg_sqrt(eg_random_uniform(EG_SHAPE(POINTS, 1))), 9),
              *angle = eg_add(turn, eg_mul(which, 3.14159265));
    eg_tensor *place = eg_mul(eg_concat(EG_TENSORS(eg_cos(angle), eg_sin(angle)), 1), eg_div(turn, 9));
    *labels = which;
    return eg_add(place, eg_random_normal(EG_SHAPE(POINTS, 2), .stddev = .02));
}

// What the network says of a grid of points, as a picture (SIDE,SIDE,3): orange for one spiral, blue for the other.
static eg_tensor *plane(eg_layer *model) {
    eg_tensor *row = eg_linspace(EG_FLOAT32, -1.1, 1.1, SIDE);
    eg_tensor *x = eg_broadcast_to(row, EG_SHAPE(SIDE, SIDE)), *y = eg_transpose(x);
    eg_tensor *points = eg_reshape(eg_stack(EG_TENSORS(x, y), 2), EG_SHAPE(-1, 2));
    eg_tensor *p = eg_reshape(eg_sigmoid(eg_call(model, points)), EG_SHAPE(SIDE, SIDE, 1));
    return eg_add(eg_mul(p, eg_constant(EG_SHAPE(3), 1, .55, .1)),
                  eg_mul(eg_sub(1, p), eg_constant(EG_SHAPE(3), .1, .45, .9)));
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "logs";
    eg_seed(1);
    eg_tensor *labels, *points = spirals(&labels);
    eg_layer *model = eg_sequential(eg_layer_dense(48, .activation = EG_TANH, .name = "first"),
                                    eg_layer_dense(48, .activation = EG_TANH, .name = "second"),
                                    eg_layer_dense(1, .name = "last"));
    eg_optimizer *adam = eg_adam(.learning_rate = 0.01);

    // A default writer: from here on summaries go there. Without one, the same program would write nothing.
    eg_summary_writer *writer = eg_summary_writer_open(folder);
    eg_summary_set_writer(writer);
    eg_summary_every(50);
    eg_summary_text("note", "Two spirals, **48** and **48** units, Adam.", .step = EG_ZERO);
    for (int step = 0; step <= STEPS && !eg_error(); step++) {
        EG_SCOPE;
        eg_summary_set_step(step);
        eg_tape *tape = eg_tape_begin();
        eg_tensor *logits = eg_call(model, points),
                  *loss = eg_reduce_mean(eg_sigmoid_cross_entropy_with_logits(labels, logits));
        if (step == 0) eg_summary_graph(tape);
        eg_list weights = eg_layer_trainable_weights_list(model), grads = eg_tape_gradients_list(tape, loss, weights);
        eg_apply_gradients_list(adam, grads, weights);

        eg_summary_scalar("loss", loss);
        if (!eg_summary_due()) continue;  // only at every 50th step is the rest worth computing
        eg_tensor *right = eg_equal(eg_greater(logits, 0), eg_greater(labels, .5));
        double accuracy = eg_item(eg_reduce_mean(eg_cast(right, EG_FLOAT32)));
        eg_summary_scalar("accuracy", accuracy);
        for (int i = 0; i < weights.count; i++) {
            char path[64], tag[80];
            eg_layer_weight_path(model, i, path, sizeof path);
            eg_summary_histogram(path, weights.tensors[i]);
            snprintf(tag, sizeof tag, "gradients/%s", path);
            eg_summary_histogram(tag, grads.tensors[i]);
        }
        eg_summary_image("plane", plane(model));
        if (step % 500 == 0) printf("Step %4d: loss %.3f, %.1f%% right\n", step, eg_item(loss), 100 * accuracy);
    }
    eg_summary_set_writer(NULL);
    if (!eg_error()) printf("Now type:  tensorboard --logdir %s   and open the address that it shows.\n", folder);

    eg_summary_writer_release(writer);
    eg_optimizer_release(adam);
    eg_layer_release(model);
    return eg_error() != 0;
}
