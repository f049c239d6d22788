//     cc -O2 -I. docs/pictures.c -lm -o pictures && ./pictures docs
//
// Draws the pictures of README.md and learn.md. The library computes every number in them: the loss of README's first
// program, curves and their slopes, the values on a tape and the gradients below them, the line that is learnt.
// ./build.sh docs runs this program; a test compares docs/*.svg with what it draws.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define BLUE "#2f6fde"
#define ORANGE "#d9730d"
#define GREEN "#2a8a57"
#define DARK "#1d2430"
#define GREY "#5b6472"
#define PALE "#98a1b0"
#define GRID "#e6e9ef"

static FILE *svg;
static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(svg, format, list);
    va_end(list);
}
// The head of an arrow, which a path takes by its id.
#define HEAD(id, colour) \
    "<marker id=\"" id "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" markerHeight=\"5\" " \
    "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"" colour "\"/></marker>"
// A picture stands on a card of its own, so that it reads on a light page and on a dark one.
static bool begin(const char *folder, const char *name, int width, int height, const char *title, const char *says) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    svg = fopen(path, "w");
    if (!svg) return false;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"" GREY "\">\n<title>%s</title>\n"
        "<defs>" HEAD("b", BLUE) HEAD("o", ORANGE) "</defs>\n"
        "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#fff\"/>\n"
        "<text x=\"28\" y=\"34\" font-size=\"17\" font-weight=\"bold\" fill=\"" DARK "\">%s</text>\n",
        width, height, width, height, says, width, height, title);
    return true;
}
static void end(void) {
    put("</svg>\n");
    fclose(svg);
}

// ---- curves: a plot is a rectangle on the card and the ranges that it shows

typedef struct { double left, top, right, bottom, x0, x1, y0, y1; } plot;
static double at_x(const plot *p, double x) { return p->left + (p->right - p->left) * (x - p->x0) / (p->x1 - p->x0); }
static double at_y(const plot *p, double y) { return p->bottom - (p->bottom - p->top) * (y - p->y0) / (p->y1 - p->y0); }

static void grid(const plot *p, double dx, double dy) {
    for (double y = ceil(p->y0 / dy) * dy; y <= p->y1 + 1e-9; y += dy)
        put("<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
            p->left, at_y(p, y), p->right, fabs(y) < 1e-9 ? PALE : GRID, p->left - 8, at_y(p, y) + 4, y);
    for (double x = ceil(p->x0 / dx) * dx; x <= p->x1 + 1e-9; x += dx)
        put("<path d=\"M%.1f %.1fv5\" stroke=\"" PALE "\"/>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
            at_x(p, x), p->bottom, at_x(p, x), p->bottom + 20, x);
}
static void curve(const plot *p, eg_tensor *x, eg_tensor *y, const char *colour, const char *more) {
    const float *px = (const float *)eg_data(x), *py = (const float *)eg_data(y);
    put("<path d=\"M");
    for (int64_t i = 0; i < eg_size(x); i++)
        put("%s%.1f %.1f", i ? "L" : "", at_x(p, (double)px[i]), at_y(p, (double)py[i]));
    put("\" fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" stroke-linejoin=\"round\" stroke-linecap=\"round\" %s/>\n",
        colour, more);
}
static void dot(const plot *p, double x, double y, const char *colour) {
    put("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\" stroke=\"#fff\" stroke-width=\"1.5\"/>\n",
        at_x(p, x), at_y(p, y), colour);
}
static void label(double x, double y, const char *colour, const char *anchor, const char *text) {
    put("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y, anchor, colour, text);
}

static eg_tensor *x_sin_x(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_mul(in[0], eg_sin(in[0]));
}

static void draw_slope(void) {
    plot p = {60, 60, 600, 330, 0, 7, -6, 6};
    grid(&p, 1, 2);
    eg_tensor *x = eg_linspace(EG_FLOAT32, 0, 7, 141);
    curve(&p, x, x_sin_x(&x, NULL), BLUE, "");
    eg_tensor *at = eg_scalar(5.5);
    double y = eg_item(x_sin_x(&at, NULL)), slope = eg_item(eg_nth_gradient(x_sin_x, NULL, at, 1));
    put("<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"" ORANGE "\" stroke-width=\"2\"/>\n",
        at_x(&p, 4.9), at_y(&p, y - .6 * slope), at_x(&p, 6.9), at_y(&p, y + 1.4 * slope));
    // one to the right, the slope up
    put("<path d=\"M%.1f %.1fH%.1fV%.1f\" fill=\"none\" stroke=\"" ORANGE "\" stroke-dasharray=\"4 4\"/>\n",
        at_x(&p, 5.5), at_y(&p, y), at_x(&p, 6.5), at_y(&p, y + slope));
    char text[64];
    snprintf(text, sizeof text, "%.2f", slope);
    label(at_x(&p, 6), at_y(&p, y) + 17, ORANGE, "middle", "1");
    label(at_x(&p, 6.5) + 8, at_y(&p, y + slope / 2), ORANGE, "start", text);
    dot(&p, 5.5, y, ORANGE);
    label(at_x(&p, 1.9), at_y(&p, 2.3), BLUE, "middle", "x sin(x)");
}

static void draw_orders(void) {
    plot p = {60, 60, 600, 330, 0, 7, -8, 8};
    static const char *colours[] = {BLUE, ORANGE, GREEN}, *names[] = {"f(x) = x sin(x)", "f′(x)", "f″(x)"};
    static const char *more[] = {"", "", "stroke-dasharray=\"7 5\""};
    grid(&p, 1, 2);
    eg_tensor *x = eg_linspace(EG_FLOAT32, 0, 7, 141);
    for (int order = 0; order < 3; order++) {
        curve(&p, x, eg_nth_gradient(x_sin_x, NULL, x, order), colours[order], more[order]);
        put("<path d=\"M%d 376h22\" stroke=\"%s\" stroke-width=\"2.5\" %s/>",
            150 + 140 * order, colours[order], more[order]);
        label(180 + 140 * order, 381, colours[order], "start", names[order]);
    }
}

// ---- grids of numbers

static void cells(eg_tensor *x, double left, double top, const char *colour, bool faint) {
    int64_t rows = eg_rank(x) == 2 ? eg_dim(x, 0) : 1, columns = eg_dim(x, -1);
    const float *p = (const float *)eg_data(x);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            put("<rect x=\"%.1f\" y=\"%.1f\" width=\"40\" height=\"32\" rx=\"4\" "
                "fill=\"%s\" fill-opacity=\"%s\" stroke=\"%s\" %s/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"%s\">%g</text>\n",
                left + 44 * (double)j, top + 36 * (double)i, colour, faint ? ".04" : ".12", colour,
                faint ? "stroke-dasharray=\"3 3\"" : "",
                left + 44 * (double)j + 20, top + 36 * (double)i + 21, faint ? PALE : DARK, (double)p[i * columns + j]);
}
static void draw_broadcast(void) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), *b = eg_constant(EG_SHAPE(3), 10, 20, 30);
    eg_tensor *g = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, b);
    eg_tensor *y = eg_add(x, b), *db = NULL;
    eg_tape_gradients_from(tape, &y, 1, &g, &b, 1, &db);
    label(28, 82, BLUE, "start", "forward: b is read once for each row");
    cells(x, 28, 98, BLUE, false);
    label(180, 140, DARK, "middle", "+");
    cells(eg_broadcast_to(b, EG_SHAPE(2, 3)), 200, 98, BLUE, true);
    cells(b, 200, 98, BLUE, false);
    label(352, 140, DARK, "middle", "=");
    cells(y, 372, 98, BLUE, false);
    label(28, 210, ORANGE, "start", "backward: what comes back is added up, column by column");
    cells(g, 372, 226, ORANGE, false);
    label(437, 322, GREY, "middle", "g, for x + b");
    put("<path d=\"M364 260H346\" stroke=\"" ORANGE "\" stroke-width=\"2\" marker-end=\"url(#o)\"/>\n");
    cells(db, 200, 244, ORANGE, false);
    label(265, 300, GREY, "middle", "g summed over axis 0, for b");
}

// ---- a tape

// Cells are the lines in the order they were written. Above, values travel right; below, gradients travel left.
enum { LINES = 6 };
static const double tape_top = 168, tape_high = 88, tape_wide = 96;

static void lines_of_tape(eg_tape *tape, eg_tensor *const *line, const double *x) {
    static const char *op[LINES] = {"mul", "add", "sub", "square", "square", "add"};
    static const char *text[LINES] = {"w × 3", "%1 + b", "%3 − 5", "%4²", "w²", "%5 + %6"};
    static const char *made[LINES] = {"%1", "%3", "%4", "%5", "%6", "%7"};                // as eg_tape_print names them
    const double top = tape_top, wide = tape_wide;
    for (int i = 0; i < LINES; i++) {
        double g = eg_item(eg_tape_gradient(tape, line[LINES - 1], line[i]));
        put("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\" fill=\"#f5f7fb\" stroke=\"" PALE "\"/>"
            "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" fill=\"" PALE "\">%d</text>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"" DARK "\">%s</text>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"11\">%s = %s</text>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"" BLUE "\">%g</text>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-weight=\"bold\" "
            "fill=\"" ORANGE "\">g = %g</text>\n",
            x[i], top, wide, tape_high, x[i] + 6, top + 15, i, x[i] + wide / 2, top + 22, op[i],
            x[i] + wide / 2, top + 41, made[i], text[i], x[i] + wide / 2, top + 61, eg_item(line[i]),
            x[i] + wide / 2, top + 80, g);
    }
}
static void sources_of_tape(eg_tape *tape, eg_tensor *loss, eg_tensor *const *sources) {
    static const char *names[] = {"w", "b"};
    for (int i = 0; i < 2; i++) {
        double y = tape_top + 4 + 44 * i, g = eg_item(eg_tape_gradient(tape, loss, sources[i]));
        put("<rect x=\"28\" y=\"%.1f\" width=\"76\" height=\"38\" rx=\"19\" "
            "fill=\"" BLUE "\" fill-opacity=\".10\" stroke=\"" BLUE "\"/>"
            "<text x=\"66\" y=\"%.1f\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"" BLUE "\">%s = %g</text>"
            "<text x=\"66\" y=\"%.1f\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"" ORANGE "\">g = %g</text>\n",
            y, y + 16, names[i], eg_item(sources[i]), y + 32, g);
    }
}
// Who reads whom, and what each hands back: the share of the reader's g.
static void arrows_of_tape(const double *x) {
    static const int reads[][2] = {{-1, 0}, {0, 1}, {-2, 1}, {1, 2}, {2, 3}, {-1, 4}, {3, 5}, {4, 5}};
    static const char *share[] = {"4 × 3", "4", "4", "4", "1 × 2 × 2", "1 × 2 × 2", "1", "1"};
    const size_t arrows = sizeof reads / sizeof *reads;
    for (size_t k = 0; k < 2 * arrows; k++) {                // the arrows first, then what is written on them
        size_t i = k % arrows;
        int from = reads[i][0], to = reads[i][1];
        double a = from < 0 ? (from == -1 ? 58 : 78) : x[from] + tape_wide / 2 + 14;
        double z = x[to] + tape_wide / 2 - 14 - (from == -2 || from == 3 ? 12 : 0);
        double up = tape_top - 4, down = tape_top + tape_high + 4, reach = 16 + .12 * (z - a);
        double a_up = from < 0 ? tape_top - 2 : up, a_down = from < 0 ? tape_top + 90 : down;
        if (from == -2) reach += 10;
        if (k >= arrows) {
            put("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"12\" fill=\"" ORANGE "\" "
                "stroke=\"#fff\" stroke-width=\"4\" paint-order=\"stroke\">%s</text>\n",
                (a + z) / 2, down + reach * .975 + 15, share[i]);
            continue;
        }
        put("<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" "
            "fill=\"none\" stroke=\"" BLUE "\" stroke-width=\"1.6\" marker-end=\"url(#b)\"/>\n",
            a, a_up, a, a_up - reach * 1.3, z, up - reach * 1.3, z, up);
        put("<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" "
            "fill=\"none\" stroke=\"" ORANGE "\" stroke-width=\"1.6\" marker-end=\"url(#o)\"/>\n",
            z, down, z, down + reach * 1.3, a, a_down + reach * 1.3, a, a_down + 2);
    }
}
static void draw_tape(void) {
    eg_tensor *w = eg_variable(eg_scalar(2), "w"), *b = eg_variable(eg_scalar(1), "b"), *line[LINES];
    eg_tape *tape = eg_tape_begin_persistent();
    line[0] = eg_mul(w, 3);
    line[1] = eg_add(line[0], b);
    line[2] = eg_sub(line[1], 5);
    line[3] = eg_square(line[2]);
    line[4] = eg_square(w);
    line[5] = eg_add(line[3], line[4]);
    eg_tape_stop(tape);
    eg_tensor *sources[] = {w, b};
    double x[LINES];
    for (int i = 0; i < LINES; i++) x[i] = 132 + 104 * i;
    put("<text x=\"28\" y=\"58\">loss = (3w + b − 5)² + w² at w = 2, b = 1</text>\n");
    lines_of_tape(tape, line, x);
    sources_of_tape(tape, line[5], sources);
    arrows_of_tape(x);
    label(756, 58, BLUE, "end", "forward: values →");
    label(756, 386, ORANGE, "end", "← backward: gradients; where two arrive, they add: 12 + 4 = 16");
    eg_release(w);
    eg_release(b);
}

// ---- a line is learnt

static void draw_line(void) {
    enum { POINTS = 100, STEPS = 300 };
    eg_seed(1);
    eg_tensor *x = eg_random_normal(EG_SHAPE(POINTS));
    eg_tensor *noise = eg_random_normal(EG_SHAPE(POINTS));
    eg_tensor *y = eg_add(eg_add(eg_mul(x, 3), 2), noise);
    eg_tensor *W = eg_variable(eg_scalar(5), "W"), *B = eg_variable(eg_scalar(10), "B"), *vars[] = {W, B}, *grads[2];
    eg_optimizer *sgd = eg_sgd(.learning_rate = 0.01);
    plot p = {56, 84, 370, 330, -3, 4, -12, 24}, q = {450, 84, 690, 330, 0, STEPS, 0, 80};
    grid(&p, 1, 6);
    grid(&q, 100, 20);
    label(213, 70, DARK, "middle", "the points and the line");
    label(570, 70, DARK, "middle", "the loss, step by step");
    const float *px = (const float *)eg_data(x), *py = (const float *)eg_data(y);
    for (int i = 0; i < POINTS; i++)
        put("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\" fill=\"" PALE "\"/>",
            at_x(&p, (double)px[i]), at_y(&p, (double)py[i]));
    put("\n");
    float losses[STEPS + 1];
    for (int step = 0; step <= STEPS; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(eg_add(eg_mul(x, W), B), y)));
        losses[step] = (float)eg_item(loss);
        if (step == 0 || step == 40 || step == STEPS) {
            double w = eg_item(W), b = eg_item(B), y0 = w * -2.6 + b, y1 = w * 2.6 + b;
            put("<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" stroke-width=\"2.2\" stroke-linecap=\"round\"/>",
                at_x(&p, -2.6), at_y(&p, y0), at_x(&p, 2.6), at_y(&p, y1), step == STEPS ? BLUE : ORANGE);
            char text[32];
            snprintf(text, sizeof text, "step %d", step);
            label(at_x(&p, 2.6) + 8, at_y(&p, y1) + 4, step == STEPS ? BLUE : ORANGE, "start", text);
        }
        if (step == STEPS) break;
        eg_tape_gradients(tape, loss, vars, 2, grads);
        eg_apply_gradients(sgd, grads, vars, 2);
    }
    curve(&q, eg_range(EG_FLOAT32, 0, STEPS + 1, 1), eg_from_data(EG_FLOAT32, EG_SHAPE(STEPS + 1), losses), BLUE, "");
    char text[32];
    dot(&q, STEPS, (double)losses[STEPS], BLUE);
    snprintf(text, sizeof text, "%.2f", (double)losses[STEPS]);
    label(at_x(&q, STEPS), at_y(&q, (double)losses[STEPS]) - 12, BLUE, "end", text);
    eg_optimizer_release(sgd);
    eg_release(W);
    eg_release(B);
}

// ---- README's first program, which writes its loss curve itself

static bool draw_sine(const char *folder) {
    char path[1024];
    snprintf(path, sizeof path, "%s/sine.svg", folder);
    eg_seed(1);
    eg_tensor *x = eg_reshape(eg_linspace(EG_FLOAT32, -3, 3, 256), EG_SHAPE(256, 1)), *y = eg_sin(x);
    eg_layer *model = eg_sequential(eg_layer_dense(32, .activation = EG_TANH), eg_layer_dense(1));
    eg_compile(model, eg_adam(.learning_rate = 0.02), eg_mean_squared_error);
    const eg_history *history = eg_fit_arrays(model, x, y, .epochs = 40, .quiet = true);
    bool ok = eg_history_svg(history, path);
    eg_layer_release(model);
    return ok;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int width, height;
        const char *title, *says;
        void (*draw)(void);
    } pictures[] = {
        {"slope.svg", 640, 370, "A slope: how far y moves when x moves by 1",
         "The curve of x sin(x) with its tangent at x = 5.5, of slope 3.19", draw_slope},
        {"broadcast.svg", 540, 340, "The gradient of a broadcast input is a sum",
         "x of shape (2, 3) plus b of shape (3): each element of b is used twice, and its gradient is the sum of two",
         draw_broadcast},
        {"tape.svg", 784, 404, "A tape, and its gradients",
         "Six lines of a tape in a row; arrows above carry values to the right, arrows below gradients to the left",
         draw_tape},
        {"orders.svg", 640, 400, "A function, its slope, and the slope of its slope",
         "The curves of x sin(x), its first and its second derivative", draw_orders},
        {"line.svg", 720, 370, "A line is learnt",
         "Left: points, and the line before, during and after training; right: the loss falling over 300 steps",
         draw_line},
    };
    const char *folder = argc > 1 ? argv[1] : ".";
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        EG_SCOPE;
        if (!begin(folder, pictures[i].name, pictures[i].width, pictures[i].height,
                   pictures[i].title, pictures[i].says)) {
            fprintf(stderr, "cannot write %s/%s\n", folder, pictures[i].name);
            return 1;
        }
        pictures[i].draw();
        end();
    }
    return !draw_sine(folder) || eg_error() != EG_OK;
}
