//     cc -DEAGER_STATIC -I. examples/09_linear_regression.c -lm -o regression && ./regression
//
// The loop that everyone starts with: 2000 points near the line y = 3x + 2, and a model W * x + B that starts wrong,
// at W = 5 and B = 10. Three hundred steps downhill find the line. Writes the losses as a picture, loss.svg.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { POINTS = 2000, STEPS = 300 };

// How far the line W x + B is from the points: the mean of the squared distances.
static eg_tensor *loss_of(eg_tensor *W, eg_tensor *B, eg_tensor *x, eg_tensor *y) {
    return eg_reduce_mean(eg_square(eg_sub(eg_add(eg_mul(x, W), B), y)));
}

static bool draw_curve(const char *path, const double *loss, int n);

int main(void) {
    eg_seed(42);
    eg_tensor *x = eg_random_normal(EG_SHAPE(POINTS));
    eg_tensor *noise = eg_random_normal(EG_SHAPE(POINTS));
    eg_tensor *y = eg_add(eg_add(eg_mul(x, 3), 2), noise);

    eg_tensor *W = eg_variable(eg_scalar(5.0), "W");
    eg_tensor *B = eg_variable(eg_scalar(10.0), "B");
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.01);
    double losses[STEPS + 1];                   // before the first step, and after each
    losses[0] = eg_item(loss_of(W, B, x, y));
    printf("Initial loss: %.3f\n", losses[0]);

    for (int step = 0; step < STEPS; step++) {
        EG_SCOPE;                               // what a step makes, its end frees
        eg_tape *tape = eg_tape_begin();
        eg_tensor *vars[] = {W, B}, *grads[2];
        eg_tape_gradients(tape, loss_of(W, B, x, y), vars, 2, grads);
        eg_apply_gradients(sgd, grads, vars, 2);

        losses[step + 1] = eg_item(loss_of(W, B, x, y));
        if (step % 20 == 0) printf("Loss at step %03d: %.3f\n", step, losses[step + 1]);
    }
    printf("Final loss: %.3f\n", losses[STEPS]);
    printf("W = %.3f, B = %.3f\n", eg_item(W), eg_item(B));

    if (draw_curve("loss.svg", losses, STEPS + 1)) printf("The way down is drawn in loss.svg\n");
    eg_optimizer_release(sgd);
    eg_release(W);
    eg_release(B);
    if (eg_error()) printf("%s\n", eg_error_message());
    return eg_error() != 0;
}

// The picture: steps to the right, loss upwards on a logarithmic axis, where steady progress is a straight line.
static bool draw_curve(const char *path, const double *loss, int n) {
    const double left = 64, right = 616, top = 56, bottom = 336, low = log(0.7), high = log(100);
    static const int ticks[] = {1, 2, 5, 10, 20, 50, 100};
#define PX(step) (left + (right - left) * (step) / (n - 1))
#define PY(value) (bottom - (bottom - top) * (log(value) - low) / (high - low))
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 400\" width=\"640\" height=\"400\" "
               "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#5b6472\">\n<defs><linearGradient "
               "id=\"fade\" x2=\"0\" y2=\"1\"><stop stop-color=\"#2f6fde\" stop-opacity=\".28\"/><stop offset=\"1\" "
               "stop-color=\"#2f6fde\" stop-opacity=\".02\"/></linearGradient></defs>\n<rect width=\"640\" "
               "height=\"400\" rx=\"8\" fill=\"#fff\"/>\n<text x=\"%g\" y=\"32\" font-size=\"17\" font-weight=\"bold\" "
               "fill=\"#1d2430\">Linear regression: the loss on its way down</text>\n", left);
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        fprintf(f,
                "<path d=\"M%g %.1fH%g\" stroke=\"#e6e9ef\"/><text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n",
                left, PY(ticks[i]), right, left - 8, PY(ticks[i]) + 4, ticks[i]);
    for (int step = 0; step < n; step += 50)
        fprintf(
            f,
            "<path d=\"M%.1f %gv5\" stroke=\"#98a1b0\"/><text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%d</text>\n",
            PX(step), bottom, PX(step), bottom + 20, step);
    fprintf(f, "<path d=\"M%g %gV%gH%g\" fill=\"none\" stroke=\"#98a1b0\"/>\n", left, top, bottom, right);
    fprintf(f, "<text x=\"%g\" y=\"384\" text-anchor=\"middle\">step</text>\n"
               "<text transform=\"translate(20 %g) rotate(-90)\" text-anchor=\"middle\">mean squared error</text>\n",
            (left + right) / 2, (top + bottom) / 2);
    for (int filled = 1; filled >= 0; filled--) {           // the area below the curve first, then the curve on it
        fprintf(f, "<path d=\"M");
        for (int step = 0; step < n; step++)
            fprintf(f, "%.1f %.1f%s", PX(step), PY(loss[step]), step + 1 < n ? "L" : "");
        if (filled) fprintf(f, "V%gH%gZ\" fill=\"url(#fade)\"/>\n", bottom, left);
        else fprintf(f, "\" fill=\"none\" stroke=\"#2f6fde\" stroke-width=\"2.5\" stroke-linejoin=\"round\" "
                        "stroke-linecap=\"round\"/>\n");
    }
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#2f6fde\" stroke=\"#fff\" stroke-width=\"1.5\"/>"
               "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\" font-weight=\"bold\" "
                   "fill=\"#1d2430\">%.3f</text>\n</svg>\n",
            PX(n - 1), PY(loss[n - 1]), right, PY(loss[n - 1]) - 12, loss[n - 1]);
    return fclose(f) == 0;
#undef PX
#undef PY
}
