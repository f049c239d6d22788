// Functions of functions: gradients, values and gradients, higher orders, products with Jacobians and Hessians, and the
// check of a gradient against differences.
#define FAULTS_DENSE
#include "faults.h"

// ---- the functions ------------------------------------------------------------------------------------------------

static eg_tensor *sum_of_squares(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_add(eg_square(in[0]), eg_square(in[1]));
}
static eg_tensor *product(eg_tensor *const *in, void *user) { (void)user; return eg_mul(in[0], in[1]); }
static eg_tensor *first(eg_tensor *const *in, void *user) { (void)user; return in[0]; }
static eg_tensor *fourth(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_mul(eg_mul(eg_mul(in[0], in[0]), in[0]), in[0]);
}
static eg_tensor *to_integer(eg_tensor *const *in, void *user) { (void)user; return eg_cast(in[0], EG_INT32); }
static eg_tensor *null_quietly(eg_tensor *const *in, void *user) { (void)in; (void)user; return NULL; }
static eg_tensor *null_loudly(eg_tensor *const *in, void *user) { (void)user; return eg_matmul(in[0], in[0]); }
// Branches and loops of C, and temporaries that must not stay.
static eg_tensor *collatz(eg_tensor *const *in, void *user) {
    int *steps = (int *)user;
    eg_tensor *x = in[0];
    for (*steps = 0; eg_item(x) > 1; ++*steps)
        x = eg_item_int(eg_cast(x, EG_INT32)) % 2 ? eg_add(eg_mul(x, 3), 1) : eg_div(x, 2);
    return x;
}

// ---- gradients ----------------------------------------------------------------------------------------------------

TEST(gradients_function) {
    eg_tensor *x[] = {eg_scalar(2), eg_scalar(3)}, *g[2];
    CHECK(eg_gradients_function(sum_of_squares, NULL, x, 2, g));
    CHECK_TENSOR(g[0], 0, 4);
    CHECK_TENSOR(g[1], 0, 6);
}

TEST(value_and_gradients_function) {
    eg_tensor *x[] = {eg_scalar(2), eg_scalar(3)}, *g[2];
    CHECK_TENSOR(eg_value_and_gradients_function(sum_of_squares, NULL, x, 2, g), 0, 13);
    CHECK_TENSOR(g[0], 0, 4);
    CHECK_TENSOR(g[1], 0, 6);
}

TEST(control_flow_of_c) {
    eg_tensor *x = eg_scalar(6), *g;
    int steps;
    CHECK(eg_gradients_function(collatz, &steps, &x, 1, &g));
    CHECK_INT(steps, 8);                                       // 6 3 10 5 16 8 4 2 1
    CHECK_TENSOR(g, 1e-6, 9.0 / 64);                           // two times tripled, six times halved
}

TEST(only_results_stay) {
    eg_tensor *x[] = {eg_scalar(2), eg_scalar(3)}, *g[2], *h[2];
    int64_t tensors = eg_memory().live_tensors;
    eg_value_and_gradients_function(sum_of_squares, NULL, x, 2, g);
    CHECK_INT(eg_memory().live_tensors, tensors + 3);
    eg_nth_gradient(fourth, NULL, x[0], 3);
    CHECK_INT(eg_memory().live_tensors, tensors + 4);
    eg_nth_gradient(fourth, NULL, x[0], 0);
    CHECK_INT(eg_memory().live_tensors, tensors + 5);
    eg_hvp(sum_of_squares, NULL, x, x, 2, h);
    CHECK_INT(eg_memory().live_tensors, tensors + 7);
    eg_jvp(sum_of_squares, NULL, x, x, 2);
    CHECK_INT(eg_memory().live_tensors, tensors + 8);
    eg_hessian(fourth, NULL, x[0]);
    CHECK_INT(eg_memory().live_tensors, tensors + 9);
    eg_check_gradient(sum_of_squares, NULL, x, 2, .order = 2);
    CHECK_INT(eg_memory().live_tensors, tensors + 9);
}

TEST(unused_inputs_have_zeros) {
    eg_tensor *x[] = {eg_scalar(2), eg_constant(EG_SHAPE(2), 3, 4)}, *g[2];
    CHECK_TENSOR(eg_value_and_gradients_function(first, NULL, x, 2, g), 0, 2);
    CHECK_TENSOR(g[0], 0, 1);
    CHECK_TENSOR(g[1], 0, 0, 0);
    CHECK(eg_gradients_function(to_integer, NULL, x, 1, g));
    CHECK_TENSOR(g[0], 0, 0);
}

TEST(a_checked_list_that_is_a_literal) {
    CHECK(eg_check_gradient(product, NULL, (eg_tensor *[]){eg_scalar(3), eg_scalar(4)}, 2));
    CHECK(eg_check_gradient(product, NULL, (eg_tensor *[]){eg_scalar(3), eg_scalar(4)}, 2, .order = 2));
}
// As after the inputs of a traced body, there are NULLs.
TEST(a_function_that_reads_inputs_it_is_not_given) {
    eg_tensor *x = eg_scalar(3), *g, *v = eg_scalar(1);
    const char *said = "eg_mul: operand 1 is NULL";
    CHECK_ERROR(eg_gradients_function(product, NULL, &x, 1, &g), EG_ERROR_NULL, said);
    CHECK_ERROR(eg_nth_gradient(product, NULL, x, 0), EG_ERROR_NULL, said);
    CHECK_ERROR(eg_nth_gradient(product, NULL, x, 1), EG_ERROR_NULL, said);
    CHECK_ERROR(eg_jvp(product, NULL, &x, &v, 1), EG_ERROR_NULL, said);
    CHECK_ERROR(eg_hvp(product, NULL, &x, &v, 1, &g), EG_ERROR_NULL, said);
    CHECK_ERROR(eg_hessian(product, NULL, x), EG_ERROR_NULL, said);
    CHECK_ERROR(eg_check_gradient(product, NULL, &x, 1), EG_ERROR_NULL, said);
    CHECK_ERROR(eg_implicit_gradients(product, NULL, NULL, NULL, 0), EG_ERROR_NULL, "eg_mul: operand 0 is NULL");
    eg_layer *lambda = eg_layer_lambda("lambda", product, NULL);
    CHECK_ERROR(eg_call(lambda, x), EG_ERROR_NULL, said);
    eg_layer_release(lambda);
}
TEST(one_tensor_in_two_places) {
    eg_tensor *x = eg_scalar(3), *xs[] = {x, x}, *g[2], *vs[] = {eg_scalar(1), eg_scalar(0)};
    CHECK(eg_gradients_function(product, NULL, xs, 2, g));
    CHECK_TENSOR(g[0], 0, 3);
    CHECK_TENSOR(g[1], 0, 3);
    CHECK_TENSOR(eg_jvp(product, NULL, xs, vs, 2), 0, 3);
    CHECK(eg_hvp(product, NULL, xs, vs, 2, g));
    CHECK_TENSOR(g[0], 0, 0);
    CHECK_TENSOR(g[1], 0, 1);
    CHECK(eg_check_gradient(product, NULL, xs, 2, .order = 2));
}

TEST(differentiated_from_outside) {
    eg_tensor *x = eg_scalar(2), *g;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    CHECK(eg_gradients_function(fourth, NULL, &x, 1, &g));
    CHECK_TENSOR(eg_tape_gradient(tape, g, x), 0, 48);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_nth_gradient(fourth, NULL, x, 2), x), 0, 48);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_hessian(fourth, NULL, x), x), 0, 48);
}

TEST(functions_that_fail) {
    eg_tensor *x = eg_scalar(2), *g = x, *i = eg_constant_of(EG_INT32, EG_SHAPE(1), 2);
    int count = 7;
    eg_gradient_pair pair;
    CHECK_ERROR(eg_gradients_function(NULL, NULL, &x, 1, &g), EG_ERROR_ARGUMENT, "function is NULL");
    CHECK_ERROR(eg_gradients_function(first, NULL, NULL, 1, &g), EG_ERROR_ARGUMENT,
                "eg_gradients_function: a list of 1 is NULL");
    CHECK_ERROR(eg_value_and_gradients_function(first, NULL, &x, 1, NULL), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    CHECK_ERROR(eg_value_and_gradients_function(first, NULL, &x, -2, &g), EG_ERROR_ARGUMENT, "a list of -2");
    CHECK_ERROR(eg_jvp(first, NULL, &x, NULL, 1), EG_ERROR_ARGUMENT, "eg_jvp: a list of 1 is NULL");
    CHECK_ERROR(eg_hvp(first, NULL, &x, &x, 1, NULL), EG_ERROR_ARGUMENT, "eg_hvp: a list of 1 is NULL");
    CHECK(g == NULL);
    CHECK_ERROR(eg_gradients_function(null_quietly, NULL, &x, 1, &g), EG_ERROR_NULL, "returned NULL");
    CHECK_ERROR(eg_gradients_function(null_loudly, NULL, &x, 1, &g), EG_ERROR_SHAPE, "eg_matmul");
    CHECK_ERROR(eg_gradients_function(first, NULL, &i, 1, &g), EG_ERROR_DTYPE, "only float32 and float64");
    CHECK_ERROR(eg_gradients_function(first, NULL, (eg_tensor *[]){NULL}, 1, &g), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_implicit_gradients(null_quietly, NULL, &x, &pair, 1), EG_ERROR_NULL, "returned NULL");
    CHECK_ERROR(eg_implicit_value_and_gradients(NULL, NULL, &x, &pair, 1, &count), EG_ERROR_ARGUMENT,
                "function is NULL");
    CHECK_INT(count, 0);
    CHECK_ERROR(CHECK_INT(eg_implicit_gradients(null_loudly, NULL, &x, &pair, 1), -1), EG_ERROR_SHAPE, "eg_matmul");
    CHECK_ERROR(eg_nth_gradient(null_quietly, NULL, x, 0), EG_ERROR_NULL, "returned NULL");
    CHECK_ERROR(eg_nth_gradient(fourth, NULL, x, -1), EG_ERROR_ARGUMENT, "order of 0 or more");
    CHECK_ERROR(eg_nth_gradient(fourth, NULL, NULL, 2), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_jvp(null_quietly, NULL, &x, &x, 1), EG_ERROR_NULL, "returned NULL");
    CHECK_ERROR(eg_jvp(first, NULL, &x, &i, 1), EG_ERROR_SHAPE, "direction 0 is");
    CHECK_ERROR(eg_jvp(first, NULL, &x, &x, 0), EG_ERROR_ARGUMENT, "at least one input");
    CHECK_ERROR(eg_hvp(null_loudly, NULL, &x, &x, 1, &g), EG_ERROR_SHAPE, "eg_matmul");
    CHECK(g == NULL);
    CHECK_ERROR(eg_hvp(first, NULL, &x, &i, 1, &g), EG_ERROR_SHAPE, "direction 0 is");
    CHECK_ERROR(eg_hessian(null_loudly, NULL, x), EG_ERROR_SHAPE, "eg_matmul");
    CHECK_ERROR(eg_hessian(first, NULL, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_check_gradient(null_quietly, NULL, &x, 1), EG_ERROR_NULL, "returned NULL");
    CHECK_ERROR(eg_check_gradient(null_loudly, NULL, &x, 1), EG_ERROR_SHAPE, "eg_matmul");
    CHECK_ERROR(eg_check_gradient(to_integer, NULL, &x, 1), EG_ERROR_DTYPE, "not floating");
    CHECK_ERROR(eg_check_gradient(NULL, NULL, &x, 1), EG_ERROR_ARGUMENT, "a function");
    eg_square(x);                                              // all tapes are gone
}

// ---- implicit: the variables that f used --------------------------------------------------------------------------

typedef struct { eg_tensor *used, *unused, *frozen; } variables;
static eg_tensor *twice_vx(eg_tensor *const *in, void *user) {
    const variables *v = (const variables *)user;
    return eg_add(eg_mul(eg_mul(2, v->used), in[0]), v->frozen);
}
static eg_tensor *of_all(eg_tensor *const *in, void *user) {
    const variables *v = (const variables *)user;
    (void)in;
    return eg_add(eg_mul(v->unused, v->used), eg_floor(v->frozen));
}

TEST(implicit_gradients) {
    variables v = {eg_variable(eg_scalar(5), "vx"), eg_variable(eg_scalar(1), "unused"),
                   eg_variable(eg_scalar(0), "frozen")};
    eg_set_trainable(v.frozen, false);
    eg_tensor *x = eg_scalar(2);
    eg_gradient_pair pairs[3];
    int count = -1;
    CHECK_INT(eg_implicit_gradients(twice_vx, &v, &x, pairs, 3), 1);   // an unused variable is left out
    CHECK_TENSOR(pairs[0].gradient, 0, 4);
    CHECK(pairs[0].variable == v.used);
    CHECK_TENSOR(eg_implicit_value_and_gradients(twice_vx, &v, &x, pairs, 3, &count), 0, 20);
    CHECK_INT(count, 1);
    CHECK_TENSOR(pairs[0].gradient, 0, 4);
    eg_set_trainable(v.frozen, true);
    CHECK_INT(eg_implicit_gradients(of_all, &v, &x, pairs, 3), 2);     // used, but nothing reaches it: left out too
    CHECK(pairs[0].variable == v.unused && pairs[1].variable == v.used);
    CHECK_TENSOR(pairs[0].gradient, 0, 5);
    CHECK_INT(eg_implicit_gradients(of_all, &v, &x, NULL, 0), 2);
    pairs[1].variable = NULL;
    CHECK_ERROR(CHECK_INT(eg_implicit_gradients(of_all, &v, &x, pairs, 1), -1), EG_ERROR_ARGUMENT,
                "room for 1, but there are 2");
    CHECK(pairs[1].variable == NULL);
    CHECK_ERROR(CHECK_INT(eg_implicit_gradients(first, NULL, &x, pairs, 3), -1), EG_ERROR_GRADIENT,
                "eg_implicit_gradients: the function used no trainable variable");
    eg_release(v.used); eg_release(v.unused); eg_release(v.frozen);
}

// ---- higher orders ------------------------------------------------------------------------------------------------

TEST(fourth_power_to_fifth_order) {
    const double want[] = {16, 32, 48, 48, 24, 0, 0};
    eg_tensor *x = eg_scalar(2);
    for (int order = 0; order < 7; order++) CHECK_TENSOR(eg_nth_gradient(fourth, NULL, x, order), 0, want[order]);
}

static eg_tensor *sine(eg_tensor *const *in, void *user) { (void)user; return eg_sin(in[0]); }

TEST(nth_gradient_element_by_element) {
    eg_tensor *x = eg_constant_of(EG_FLOAT64, EG_SHAPE(2), .5, 1.5);
    for (int order = 0; order < 9; order++) {
        double shift = order * 1.5707963267948966;
        CHECK_TENSOR(eg_nth_gradient(sine, NULL, x, order), 1e-14, sin(.5 + shift), sin(1.5 + shift));
    }
}

// ---- products with Jacobian and Hessian ---------------------------------------------------------------------------

// (x, m) -> (sin(x0 x1), m x, exp(x))
static eg_tensor *mixed(eg_tensor *const *in, void *user) {
    eg_tensor *x = in[0], *m = in[1];
    (void)user;
    eg_tensor *a = eg_sin(eg_reduce_prod(x, .keepdims = true)),
              *b = eg_reshape(eg_matmul(m, eg_reshape(x, EG_SHAPE(2, 1))), EG_SHAPE(3));
    return eg_concat(EG_TENSORS(a, b, eg_exp(x)), 0);
}

TEST(jvp_against_the_formula_and_differences) {
    eg_tensor *in[] = {eg_constant_of(EG_FLOAT64, EG_SHAPE(2), .3, -.7),
                       eg_constant_of(EG_FLOAT64, EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6)};
    eg_tensor *v[] = {eg_constant_of(EG_FLOAT64, EG_SHAPE(2), .2, .5),
                      eg_constant_of(EG_FLOAT64, EG_SHAPE(3, 2), .1, .2, .3, -.1, 0, 1)};
    double slope = cos(.3 * -.7) * (.3 * .5 + -.7 * .2);
    eg_tensor *jv = eg_jvp(mixed, NULL, in, v, 2);
    CHECK_TENSOR(jv, 1e-14, slope, 1 * .2 + 2 * .5 + .1 * .3 - .2 * .7, 3 * .2 + 4 * .5 + .3 * .3 + .1 * .7,
                 5 * .2 + 6 * .5 - .7, exp(.3) * .2, exp(-.7) * .5);
    eg_tensor *ahead[2], *behind[2];
    for (int i = 0; i < 2; i++) {
        ahead[i] = eg_add(in[i], eg_mul(v[i], 1e-6));
        behind[i] = eg_sub(in[i], eg_mul(v[i], 1e-6));
    }
    CHECK_SAME(jv, eg_div(eg_sub(mixed(ahead, NULL), mixed(behind, NULL)), 2e-6), 1e-8);
    CHECK_TENSOR(eg_jvp(first, NULL, in, v, 2), 0, .2, .5);
    CHECK_TENSOR(eg_jvp(first, NULL, in, v, 1), 0, .2, .5);
}

static eg_tensor *constant(eg_tensor *const *in, void *user) {
    (void)in;
    (void)user;
    return eg_constant(EG_SHAPE(2), 1, 2);
}

TEST(jvp_of_a_constant_is_zero) {
    eg_tensor *x = eg_scalar(1);
    CHECK_TENSOR(eg_jvp(constant, NULL, &x, &x, 1), 0, 0, 0);
}

// Rosenbrock's function of two variables, in one tensor.
static eg_tensor *rosenbrock(eg_tensor *const *in, void *user) {
    (void)user;
    eg_tensor *x = eg_slice(in[0], EG_SHAPE(0), EG_SHAPE(1)), *y = eg_slice(in[0], EG_SHAPE(1), EG_SHAPE(1));
    return eg_reduce_sum(eg_add(eg_square(eg_sub(1, x)), eg_mul(100, eg_square(eg_sub(y, eg_square(x))))));
}

static eg_tensor *sum(eg_tensor *const *in, void *user) { (void)user; return eg_reduce_sum(in[0]); }
static eg_tensor *pi(eg_tensor *const *in, void *user) { (void)in; (void)user; return eg_scalar(3.14); }
TEST(hessian_and_hvp) {
    eg_tensor *x = eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 1.5, -.5),
              *v = eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 2, -3), *hv, *h;
    double a = 2 - 400 * (-.5) + 1200 * 1.5 * 1.5, b = -400 * 1.5, c = 200;
    h = eg_hessian(rosenbrock, NULL, x);
    CHECK_SHAPE(h, 2, 2);
    CHECK_TENSOR(h, 1e-13, a, b, b, c);
    CHECK(eg_hvp(rosenbrock, NULL, &x, &v, 1, &hv));
    CHECK_TENSOR(hv, 1e-13, 2 * a - 3 * b, 2 * b - 3 * c);
    CHECK_TENSOR(eg_hessian(sum, NULL, x), 0, 0, 0, 0, 0);   // linear
    CHECK_TENSOR(eg_hessian(pi, NULL, x), 0, 0, 0, 0, 0);
    CHECK_ERROR(eg_hessian(first, NULL, x), EG_ERROR_SHAPE, "eg_hessian: the function's value is float64 [2]");
    CHECK(eg_hvp(first, NULL, &x, &v, 1, &hv));
    CHECK_TENSOR(hv, 0, 0, 0);
}

TEST(hvp_along_the_inputs_themselves) {
    eg_tensor *x = eg_scalar(2), *out;
    CHECK(eg_hvp(fourth, NULL, &x, &x, 1, &out));
    CHECK_TENSOR(out, 0, 96);                                  // 12 x^2 x: the direction is a constant
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK(eg_hvp(fourth, NULL, &x, &x, 1, &out));
    CHECK_TENSOR(eg_tape_gradient(tape, out, x), 0, 144);      // but not for a tape outside: 36 x^2
}

TEST(hvp_of_several_inputs) {
    eg_tensor *x[] = {eg_scalar(2), eg_scalar(3)}, *v[] = {eg_scalar(10), eg_scalar(20)}, *out[2];
    CHECK(eg_hvp(product, NULL, x, v, 2, out));                // H = [[0 1] [1 0]]
    CHECK_TENSOR(out[0], 0, 20);
    CHECK_TENSOR(out[1], 0, 10);
    CHECK(eg_hvp(sum_of_squares, NULL, x, v, 2, out));
    CHECK_TENSOR(out[0], 0, 20);
    CHECK_TENSOR(out[1], 0, 40);
}

TEST(more_inputs_than_a_few) {
    enum { N = 20 };
    eg_tensor *x[N], *out[N];
    for (int i = 0; i < N; i++) x[i] = eg_scalar(i % 5);       // and x[i] differ as tensors
    x[19] = x[18];
    CHECK(eg_gradients_function(product, NULL, x, N, out));
    CHECK_TENSOR(out[0], 0, 1);
    CHECK_TENSOR(out[1], 0, 0);
    CHECK(eg_hvp(product, NULL, x, x, N, out));
    CHECK_TENSOR(out[0], 0, 1);
    CHECK_TENSOR(eg_jvp(product, NULL, x, x, N), 0, 0);
    CHECK(eg_check_gradient(product, NULL, x, N, .order = 2));
    x[7] = NULL;
    CHECK_ERROR(eg_gradients_function(product, NULL, x, N, out), EG_ERROR_NULL, "NULL");
}

// ---- eg_check_gradient --------------------------------------------------------------------------------------------

static eg_tensor *cube_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    return eg_mul(eg_square(in[0]), in[0]);
}
typedef enum { RIGHT, WRONG_SIGN, WRONG_AT_2, WRONG_AT_3, NAN_AT_1 } mistake;
static void cube_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    eg_tensor *x = c->saved[0], *g = c->upstream[0];
    switch (*(mistake *)user) {
    case RIGHT: dx[0] = eg_mul(g, eg_mul(3, eg_square(x))); break;
    case WRONG_SIGN: dx[0] = eg_mul(g, eg_mul(-3, eg_square(x))); break;
    case WRONG_AT_2: dx[0] = eg_mul(g, eg_mul(3, eg_square(eg_stop_gradient(x)))); break;
    case WRONG_AT_3: {                                         // 3 x^2 with the slope 6 x and no curvature
        eg_tensor *at = eg_stop_gradient(x);
        dx[0] = eg_mul(g, eg_add(eg_mul(3, eg_square(at)), eg_mul(eg_mul(6, at), eg_sub(x, at))));
        break;
    }
    case NAN_AT_1: dx[0] = eg_mul(g, eg_scalar_of(EG_FLOAT64, NAN)); break;
    }
}
static eg_tensor *custom_cube(eg_tensor *const *in, void *user) {
    return eg_custom_gradient(cube_forward, cube_backward, user, in, 1);
}

TEST(check_gradient_finds_mistakes) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), .5, -1, 2);
    mistake m = RIGHT;
    CHECK(eg_check_gradient(custom_cube, &m, &x, 1));
    CHECK(eg_check_gradient(custom_cube, &m, &x, 1, .order = 3));
    m = WRONG_SIGN;
    CHECK_ERROR(CHECK_INT(eg_check_gradient(custom_cube, &m, &x, 1), 0), EG_ERROR_GRADIENT,
                "eg_check_gradient: order 1, direction 0: the gradient says");
    m = NAN_AT_1;
    CHECK_ERROR(CHECK_INT(eg_check_gradient(custom_cube, &m, &x, 1), 0), EG_ERROR_GRADIENT, "nan");
    m = WRONG_AT_2;
    CHECK(eg_check_gradient(custom_cube, &m, &x, 1));
    CHECK_ERROR(CHECK_INT(eg_check_gradient(custom_cube, &m, &x, 1, .order = 2), 0), EG_ERROR_GRADIENT, "order 2");
    m = WRONG_AT_3;
    CHECK(eg_check_gradient(custom_cube, &m, &x, 1, .order = 2));
    CHECK_ERROR(CHECK_INT(eg_check_gradient(custom_cube, &m, &x, 1, .order = 3), 0), EG_ERROR_GRADIENT, "order 3");
}

static eg_tensor *gathered(eg_tensor *const *in, void *user) { (void)user; return eg_square(eg_gather(in[0], in[1])); }
static eg_tensor *kink(eg_tensor *const *in, void *user) { (void)user; return eg_abs(in[0]); }

TEST(check_gradient_options) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), .5, -1, 2), *in[] = {x, eg_constant_of(EG_INT64, EG_SHAPE(4), 2, 2, 0, 1)};
    CHECK(eg_check_gradient(gathered, NULL, in, 2, .order = 2, .directions = 5, .seed = 7));     // integer inputs stay
    eg_tensor *zero = eg_scalar(0.3);
    CHECK(eg_check_gradient(kink, NULL, &zero, 1));
    CHECK_ERROR(eg_check_gradient(kink, NULL, &zero, 1, .step = 1.0, .tolerance = 1e-6, .directions = 8),
                EG_ERROR_GRADIENT, "differences say");
    CHECK(eg_check_gradient(kink, NULL, &zero, 1, .step = 1.0, .tolerance = 10.0, .directions = 8));
}

TEST(check_gradient_while_tapes_record) {
    eg_tensor *x = eg_scalar(.5);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    mistake m = WRONG_AT_2;
    CHECK_ERROR(eg_check_gradient(custom_cube, &m, &x, 1, .order = 2), EG_ERROR_GRADIENT, "order 2");
    eg_recording_pause();
    CHECK_ERROR(eg_check_gradient(custom_cube, &m, &x, 1, .order = 2), EG_ERROR_GRADIENT, "order 2");
    m = RIGHT;
    CHECK(eg_check_gradient(custom_cube, &m, &x, 1, .order = 2));
    eg_recording_unpause();
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(x), x), 0, 1);
}

TEST(check_gradient_leaves_variables_alone) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "v");
    CHECK(eg_check_gradient(fourth, NULL, &v, 1, .order = 4, .tolerance = 1e-4));
    CHECK_TENSOR(v, 0, 1, 2);
    CHECK_DTYPE(v, EG_FLOAT32);
    eg_release(v);
}

// ---- odd arguments, no memory -------------------------------------------------------------------------------------

static eg_tensor *five(eg_tensor *const *in, void *user) { (void)in; (void)user; return eg_scalar(5); }
static eg_tensor *the_variable(eg_tensor *const *in, void *user) { (void)in; return eg_square((eg_tensor *)user); }
static eg_tensor *picked(eg_tensor *const *in, void *user) { (void)user; return eg_gather(in[0], in[1]); }
TEST(directions_and_inputs_that_do_not_fit) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *wide = eg_constant(EG_SHAPE(3), 1, 2, 3),
              *twice = eg_cast(x, EG_FLOAT64), *none = NULL, *g = x;
    CHECK_ERROR(eg_jvp(first, NULL, &none, &x, 1), EG_ERROR_NULL, "eg_jvp: xs[0] is NULL");
    CHECK_ERROR(eg_jvp(first, NULL, &x, &none, 1), EG_ERROR_NULL, "eg_jvp: vs[0] is NULL");
    CHECK_ERROR(eg_jvp(first, NULL, &x, &wide, 1), EG_ERROR_SHAPE, "eg_jvp: direction 0 is float32 [3]");
    CHECK_ERROR(eg_jvp(NULL, NULL, &x, &x, 1), EG_ERROR_ARGUMENT,
                "eg_jvp: a function and at least one input are needed");
    CHECK_ERROR(eg_hvp(first, NULL, &x, &twice, 1, &g), EG_ERROR_SHAPE, "eg_hvp: direction 0 is float64 [2]");
    CHECK(g == NULL);
    CHECK_ERROR(eg_hvp(NULL, NULL, &x, &x, 1, &g), EG_ERROR_ARGUMENT,
                "eg_hvp: a function and at least one input are needed");
    CHECK_ERROR(eg_hvp(first, NULL, &x, &x, 0, &g), EG_ERROR_ARGUMENT,
                "eg_hvp: a function and at least one input are needed");
    CHECK_ERROR(eg_nth_gradient(NULL, NULL, x, 1), EG_ERROR_ARGUMENT, "eg_nth_gradient: a function");
    CHECK_ERROR(eg_check_gradient(first, NULL, &x, 0), EG_ERROR_ARGUMENT,
                "eg_check_gradient: a function and at least one input are needed");
    CHECK_ERROR(eg_check_gradient(first, NULL, &x, 1, .order = -1), EG_ERROR_ARGUMENT, ".order is -1");
    CHECK_ERROR(eg_check_gradient(first, NULL, &x, 1, .step = -1), EG_ERROR_ARGUMENT,
                "eg_check_gradient: .step is -1; it must be above 0");
    CHECK_ERROR(eg_check_gradient(first, NULL, &x, 1, .tolerance = NAN), EG_ERROR_ARGUMENT, ".tolerance is nan");
    CHECK_ERROR(eg_check_gradient(first, NULL, &x, 1, .directions = EG_ZERO), EG_ERROR_ARGUMENT, ".directions is 0");
    CHECK_ERROR(eg_check_gradient(first, NULL, &none, 1), EG_ERROR_NULL, "eg_check_gradient: xs[0] is NULL");
    CHECK_TENSOR(eg_nth_gradient(five, NULL, x, 3), 0, 0, 0);
    CHECK(eg_check_gradient(five, NULL, &x, 1, .order = 3));             // what depends on nothing has the gradient 0
    CHECK(eg_hvp(five, NULL, &x, &x, 1, &g));
    CHECK_TENSOR(g, 0, 0, 0);
}
static eg_tensor *of_its_own(eg_tensor *const *in, void *user) {
    (void)user;
    eg_tensor *v = eg_variable(eg_scalar(3), "own"), *y = eg_mul(eg_square(v), in[0]);
    eg_release(v);
    return y;
}
TEST(implicit_gradients_of_a_variable_that_the_function_releases) {
    eg_tensor *x = eg_scalar(2);
    int64_t before = eg_memory().live_tensors;
    {
        EG_SCOPE;
        eg_gradient_pair pair;
        CHECK_INT(eg_implicit_gradients(of_its_own, NULL, &x, &pair, 1), 1);
        // the value, its gradient, and the variable, which the pair names
        CHECK_INT(eg_memory().live_tensors - before, 3);
        CHECK_STR(eg_name_of(pair.variable), "own");
        CHECK_TENSOR(pair.gradient, 0, 12);
        eg_list of, grads = eg_implicit_gradients_list(of_its_own, NULL, &x, &of);
        CHECK_INT(grads.count, 1);
        CHECK_TENSOR(eg_read(of.tensors[0]), 0, 3);
    }
    CHECK_INT(eg_memory().live_tensors, before);
}
TEST(implicit_gradients_of_nobody) {
    eg_tensor *x = eg_scalar(3), *v = eg_variable(x, "v");
    eg_gradient_pair pair = {NULL, NULL};
    int count = 7;
    CHECK_ERROR(CHECK_INT(eg_implicit_value_and_gradients(fourth, NULL, &x, &pair, 1, &count) != NULL, 0),
                EG_ERROR_GRADIENT, "used no trainable variable");
    CHECK_INT(count, 0);
    CHECK(!pair.variable);
    CHECK_TENSOR(eg_implicit_value_and_gradients(the_variable, v, &x, &pair, 1, NULL), 0, 9);
    CHECK(pair.variable == v);
    CHECK_TENSOR(pair.gradient, 0, 6);
    CHECK_INT(eg_implicit_gradients(the_variable, v, &x, NULL, 0), 1);        // how many there are
    CHECK_ERROR(eg_implicit_value_and_gradients(NULL, NULL, &x, &pair, 1, NULL), EG_ERROR_ARGUMENT,
                "the function is NULL");
    eg_release(v);
}
TEST(integers_among_the_inputs_are_left_alone) {
    eg_tensor *in[] = {eg_constant(EG_SHAPE(3), 1, 2, 3), eg_constant_of(EG_INT32, EG_SHAPE(2), 2, 0)};
    CHECK(eg_check_gradient(picked, NULL, in, 2, .order = 2));
}

static eg_tensor *cubes(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_mul(eg_square(in[0]), eg_mul(in[1], in[0]));
}
static bool with_inputs(bool (*act)(eg_tensor *x, eg_tensor *y)) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *y = x ? eg_constant(EG_SHAPE(2), 3, 4) : NULL;
    return y && act(x, y) && eg_error() == EG_OK;
}
#define ACT(name, ...)                                                                                                \
    static bool name##_of(eg_tensor *x, eg_tensor *y) { \
        eg_tensor *in[] = {x, y}, *out[2] = {y, x}; \
        (void)in; \
        (void)out; \
        return __VA_ARGS__; \
    } \
    static bool act_of_##name(void) { return with_inputs(name##_of); }                                                \
    TEST(out_of_memory_in_##name) { faults_sweep(act_of_##name); }
ACT(gradients, eg_gradients_function(cubes, NULL, in, 2, out) && out[1])
static eg_tensor *of_a_variable(eg_tensor *const *in, void *user) {
    eg_tensor *v = eg_variable(in[0], "v"), *y = v ? eg_mul(v, in[1]) : NULL;
    (void)user;
    eg_release(v);
    return y;
}
ACT(implicit, eg_implicit_gradients(of_a_variable, NULL, in, NULL, 0) == 1)
ACT(nth, eg_nth_gradient(fourth, NULL, x, 2) != NULL)
ACT(jvp, eg_jvp(cubes, NULL, in, in, 2) != NULL)
ACT(hvp, eg_hvp(cubes, NULL, in, in, 2, out) && out[1])
static eg_tensor *sum_of_fourths(eg_tensor *const *in, void *user) { return eg_reduce_sum(fourth(in, user)); }
ACT(hessian, eg_hessian(sum_of_fourths, NULL, x) != NULL)
ACT(check, eg_check_gradient(cubes, NULL, in, 2, .directions = 1))
ACT(second_check, eg_check_gradient(cubes, NULL, in, 2, .order = 2, .directions = 1))
