//     cc -DEAGER_STATIC -I. examples/07_custom_gradients.c -lm -o custom && ./custom
//
// A gradient of one's own: where the automatic one is right on paper and wrong in floating point, where something shall
// happen to gradients only, or where you know a faster way.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>

// log(1 + exp(x)). Its slope is 1 - 1 / (1 + exp(x)); the chain rule multiplies the logarithm's slope 1 / (1 + exp(x))
// by the exponential's slope exp(x), which for large x is 0 * inf. The forward keeps exp(x) for the backward.
static eg_tensor *log1pexp(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    eg_tensor *e = c->saved[0] = eg_exp(in[0]);
    return eg_log(eg_add(e, 1));
}
static void log1pexp_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_sub(1, eg_div(1, eg_add(1, c->saved[0]))));
}

// Hands x through, and on the way back shortens the gradient to a length of at most in[1].
static eg_tensor *clip_gradient_by_norm(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[1];
    return eg_identity(in[0]);
}
static void clip_gradient_by_norm_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_clip_by_norm(c->upstream[0], eg_item(c->saved[0]));     // dx[1] stays NULL: the bound has no gradient
}

static eg_tensor *automatic(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_log(eg_add(eg_exp(in[0]), 1));
}
static eg_tensor *softplus(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_softplus(in[0]);
}
static eg_tensor *custom(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_custom_gradient(log1pexp, log1pexp_grad, NULL, in, 1);
}

int main(void) {
    eg_tensor *at = eg_constant(EG_SHAPE(2), 0, 100);
    puts("The slope of log(1 + exp(x)) at 0 and at 100, by the chain rule and by the custom gradient:");
    eg_print(eg_nth_gradient(automatic, NULL, at, 1));
    eg_print(eg_nth_gradient(custom, NULL, at, 1));
    puts("The custom gradient is made of operations, so it has a slope of its own. That one the chain rule finds, with "
         "the same\ntrouble at 100; the library's eg_softplus is this function without it, to every order:");
    eg_print(eg_nth_gradient(custom, NULL, at, 2));
    eg_print(eg_nth_gradient(softplus, NULL, at, 2));

    puts("\nA gradient of length 5, clipped to 0.5:");
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 1), *steep = eg_constant(EG_SHAPE(2), 3, 4);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *in[] = {x, eg_scalar(0.5)};
    eg_tensor *y = eg_mul(eg_custom_gradient(clip_gradient_by_norm, clip_gradient_by_norm_grad, NULL, in, 2), steep);
    eg_print(y);
    eg_print(eg_tape_gradient(tape, y, x));
}
