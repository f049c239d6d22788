// Every op against the reference values of NumPy, TensorFlow and PyTorch (fixtures.py says how they were made): values,
// gradients and second-order gradients; the optimizers and schedules against Keras; a training run against PyTorch.
// Each row of the table below is a test of its own, named after the op, and runs that op's cases in all files.
#include "test.h"
#include "examples/digits.h"
#include "fixture.h"
#include <time.h>

enum { MAX_INPUTS = 8, MAX_OUTPUTS = 8 };

// ---- what a case says, in the library's types ---------------------------------------------------------------------

static eg_shape shape_from(const fixture_array *a) {
    eg_shape s = {a->rank, {0}};
    memcpy(s.dims, a->dims, sizeof s.dims);
    return s;
}
static eg_dtype dtype_from(const char *name) {
    for (eg_dtype d = EG_FLOAT32; d < EG_BFLOAT16; d = (eg_dtype)(d + 1))
        if (strcmp(eg_dtype_name(d), name) == 0) return d;
    return EG_BFLOAT16;
}
static eg_tensor *tensor_from(const fixture_array *a) { return eg_constant_values(dtype_from(a->dtype), shape_from(a), a->values, a->count); }

static int whole(const fixture_file *f, const char *name, int otherwise) { return (int)fixture_attr(f, name, 0, otherwise); }
static bool flag(const fixture_file *f, const char *name) { return fixture_attr(f, name, 0, 0) != 0; }
static eg_shape shape_of(const fixture_file *f, const char *name) {
    eg_shape s = {fixture_attr_count(f, name), {0}};
    for (int i = 0; i < s.rank; i++) s.dims[i] = (int64_t)fixture_attr(f, name, i, 0);
    return s;
}
static eg_axes axes_of(const fixture_file *f, const char *name) {
    eg_axes a = {0, fixture_attr_count(f, name), {0}};
    if (a.count < 0) a.count = 0;
    for (int i = 0; i < a.count; i++) a.axes[i] = (int)fixture_attr(f, name, i, 0);
    return a;
}
// For options whose zero means another axis than 0.
static int axis_or_last(const fixture_file *f) {
    int axis = whole(f, "axis", -1);
    return axis ? axis : EG_ZERO;
}
static eg_conv_options conv_options(const fixture_file *f) {
    eg_conv_options o = {.padding = flag(f, "same") ? EG_SAME : EG_VALID, .groups = whole(f, "groups", 1)};
    for (int i = 0; i < 2; i++) {
        o.strides[i] = (int64_t)fixture_attr(f, "strides", i, 0);
        o.dilations[i] = (int64_t)fixture_attr(f, "dilations", i, 0);
    }
    return o;
}

// ---- the ops whose calls have a form of their own: each returns its number of outputs -----------------------------

typedef int op_call(const fixture_file *f, eg_tensor **in, int n, eg_tensor **out);
#define CALL(name, ...) static int call_##name(const fixture_file *f, eg_tensor **in, int n, eg_tensor **out) { (void)f; (void)in; (void)n; __VA_ARGS__ }
#define CALL_1(name, expression) CALL(name, out[0] = expression; return 1;)

CALL_1(where, eg_where(in[0], in[1], in[2]))
CALL_1(clip_by_value, eg_clip_by_value(in[0], fixture_attr(f, "low", 0, 0), fixture_attr(f, "high", 0, 0)))
CALL_1(clip_by_value_int32, eg_clip_by_value(in[0], whole(f, "low", 0), whole(f, "high", 0)))
CALL_1(leaky_relu, eg_leaky_relu(in[0], fixture_attr(f, "alpha", 0, 0)))
CALL_1(elu, eg_elu(in[0], fixture_attr(f, "alpha", 0, 1)))
CALL_1(softmax, eg_softmax(in[0], .axis = axis_or_last(f)))
CALL_1(log_softmax, eg_log_softmax(in[0], .axis = axis_or_last(f)))
CALL_1(norm, eg_norm(in[0], .ord = fixture_attr(f, "ord", 0, 2), .axes = axes_of(f, "axes"), .keepdims = flag(f, "keepdims")))
CALL_1(argmax, eg_argmax(in[0], .axis = whole(f, "axis", 0)))
CALL_1(argmin, eg_argmin(in[0], .axis = whole(f, "axis", 0)))
CALL_1(cumsum, eg_cumsum(in[0], .axis = whole(f, "axis", 0), .exclusive = flag(f, "exclusive"), .reverse = flag(f, "reverse")))
CALL_1(sort, eg_sort(in[0], .axis = axis_or_last(f), .descending = flag(f, "descending")))
CALL_1(argsort, eg_argsort(in[0], .axis = axis_or_last(f), .descending = flag(f, "descending")))
CALL(top_k, out[0] = eg_top_k(in[0], whole(f, "k", 1), &out[1]); return 2;)
CALL_1(matmul, eg_matmul(in[0], in[1], .transpose_a = flag(f, "transpose_a"), .transpose_b = flag(f, "transpose_b")))
CALL_1(einsum, eg_einsum(fixture_text(f, "equation", ""), in, n))
CALL_1(reshape, eg_reshape(in[0], shape_of(f, "shape")))
CALL_1(transpose, eg_transpose(in[0], .perm = axes_of(f, "perm")))
CALL_1(expand_dims, eg_expand_dims(in[0], whole(f, "axis", 0)))
CALL_1(squeeze, eg_squeeze(in[0], .axes = axes_of(f, "axes")))
CALL_1(broadcast_to, eg_broadcast_to(in[0], shape_of(f, "shape")))
CALL_1(concat, eg_concat(in, n, whole(f, "axis", 0)))
CALL_1(stack, eg_stack(in, n, whole(f, "axis", 0)))
CALL(split, int parts = whole(f, "num", 1); eg_split(in[0], parts, whole(f, "axis", 0), out); return parts;)
CALL(unstack, int parts = fixture_count(f, "out"); eg_unstack(in[0], parts, whole(f, "axis", 0), out); return parts;)
CALL_1(slice, eg_slice(in[0], shape_of(f, "begin"), shape_of(f, "size")))
CALL_1(strided_slice, eg_strided_slice(in[0], shape_of(f, "begin"), shape_of(f, "end"), shape_of(f, "strides")))
CALL_1(reverse, eg_reverse(in[0], axes_of(f, "axes")))
CALL_1(tile, eg_tile(in[0], shape_of(f, "multiples")))
CALL_1(repeat, eg_repeat(in[0], whole(f, "repeats", 1), whole(f, "axis", 0)))
CALL_1(gather, eg_gather(in[0], in[1], .axis = whole(f, "axis", 0)))
CALL_1(take_along_axis, eg_take_along_axis(in[0], in[1], whole(f, "axis", 0)))
CALL_1(scatter_nd, eg_scatter_nd(in[0], in[1], shape_of(f, "shape")))
CALL_1(tensor_scatter_add, eg_tensor_scatter_add(in[0], in[1], in[2]))
CALL_1(segment_sum, eg_segment_sum(in[0], in[1], whole(f, "n", 0)))
CALL_1(clip_by_norm, eg_clip_by_norm(in[0], fixture_attr(f, "norm", 0, 0)))
CALL(clip_by_global_norm, eg_clip_by_global_norm(in, n, fixture_attr(f, "norm", 0, 0), out); return n;)
CALL_1(cast, eg_cast(in[0], dtype_from(fixture_text(f, "to", ""))))
CALL_1(range, eg_range(dtype_from(fixture_text(f, "dtype", "")), fixture_attr(f, "start", 0, 0), fixture_attr(f, "limit", 0, 0), fixture_attr(f, "delta", 0, 1)))
CALL_1(linspace, eg_linspace(dtype_from(fixture_text(f, "dtype", "")), fixture_attr(f, "start", 0, 0), fixture_attr(f, "stop", 0, 0), whole(f, "num", 1)))
CALL_1(eye, eg_eye(dtype_from(fixture_text(f, "dtype", "")), whole(f, "rows", 1), whole(f, "columns", 1)))
CALL_1(resize, eg_resize(in[0], (int64_t)fixture_attr(f, "size", 0, 0), (int64_t)fixture_attr(f, "size", 1, 0),
                         .method = strcmp(fixture_text(f, "method", ""), "nearest") == 0 ? EG_NEAREST : EG_BILINEAR))

static int call_pad(const fixture_file *f, eg_tensor **in, int n, eg_tensor **out) {
    const char *mode = fixture_text(f, "mode", "constant");
    eg_pads pads = {fixture_attr_count(f, "paddings"), {0}};
    (void)n;
    for (int i = 0; i < pads.count; i++) pads.pads[i] = (int64_t)fixture_attr(f, "paddings", i, 0);
    out[0] = eg_pad(in[0], pads, .mode = mode[0] == 'r' ? EG_PAD_REFLECT : mode[0] == 's' ? EG_PAD_SYMMETRIC : EG_PAD_CONSTANT,
                    .value = fixture_attr(f, "value", 0, 0));
    return 1;
}

static int call_one_hot(const fixture_file *f, eg_tensor **in, int n, eg_tensor **out) {
    eg_one_hot_options o = {.axis = axis_or_last(f), .on_value = fixture_attr(f, "on", 0, 1), .off_value = fixture_attr(f, "off", 0, 0)};
    (void)n;
    out[0] = (eg_one_hot)(in[0], whole(f, "depth", 1), o);
    return 1;
}

// The size of the output is an option in TensorFlow; here it follows from the strides, and what is left over is named.
static eg_conv_options transposed_options(const fixture_file *f, eg_tensor *x, eg_tensor *filter) {
    eg_conv_options o = conv_options(f);
    for (int i = 0; i < eg_rank(x) - 2; i++) {
        int64_t size = o.padding == EG_SAME ? eg_dim(x, i + 1) * o.strides[i] : (eg_dim(x, i + 1) - 1) * o.strides[i] + eg_dim(filter, i);
        o.output_padding[i] = (int64_t)fixture_attr(f, "output_shape", i + 1, 0) - size;
    }
    return o;
}
CALL_1(conv2d_transpose, (eg_conv2d_transpose)(in[0], in[1], transposed_options(f, in[0], in[1])))
CALL_1(conv1d_transpose, (eg_conv1d_transpose)(in[0], in[1], transposed_options(f, in[0], in[1])))

// Elements 2i and 2i+1 of a double uniform are the first 53 of each 64 bits of block i, so the generator's words show in them.
static int call_philox4x32(const fixture_file *f, eg_tensor **in, int n, eg_tensor **out) {
    const int64_t *counter = fixture_get(f, "in", 0)->ints, *key = fixture_get(f, "in", 1)->ints, *want = fixture_get(f, "out", 0)->ints;
    (void)in; (void)n;
    out[0] = NULL;
    if (counter[2] | counter[3]) return 0;                     // streams that a state cannot name
    eg_random_state before = eg_random_get_state();
    eg_random_set_state((eg_random_state){(uint64_t)key[0] | (uint64_t)key[1] << 32, (uint64_t)counter[0] | (uint64_t)counter[1] << 32});
    const double *u = eg_data(eg_random_uniform(EG_SHAPE(2), .dtype = EG_FLOAT64));
    for (int i = 0; u && i < 2; i++) CHECK_NEAR(u[i], (double)(((uint64_t)want[2 * i] | (uint64_t)want[2 * i + 1] << 32) >> 11) * 0x1p-53, 0);
    eg_random_set_state(before);
    return 0;
}

// ---- the table ----------------------------------------------------------------------------------------------------

typedef struct {
    const char *op;
    eg_tensor *(*unary)(eg_tensor *);
    eg_tensor *(*binary)(eg_tensor *, eg_tensor *);
    eg_tensor *(*reduce)(eg_tensor *, eg_reduce_options);
    eg_tensor *(*conv)(eg_tensor *, eg_tensor *, eg_conv_options);
    eg_tensor *(*pool)(eg_tensor *, eg_pool_options);
    eg_optimizer *(*optimizer)(eg_optimizer_options);
    op_call *call;
    bool schedule;
} row;

#define UNARY(name)     {.op = #name, .unary = eg_##name}
#define BINARY(name)    {.op = #name, .binary = eg_##name}
#define REDUCE(name)    {.op = #name, .reduce = eg_##name}
#define CONV(name)      {.op = #name, .conv = eg_##name}
#define POOL(name)      {.op = #name, .pool = eg_##name}
#define OPTIMIZER(name) {.op = #name, .optimizer = eg_##name}
#define FORM(name)      {.op = #name, .call = call_##name}
#define SCHEDULE(name)  {.op = #name, .schedule = true}

static const row rows[] = {
    BINARY(add), BINARY(sub), BINARY(mul), BINARY(div), BINARY(divide_no_nan), BINARY(floordiv), BINARY(mod), BINARY(pow), BINARY(maximum),
    BINARY(minimum), BINARY(squared_difference), BINARY(atan2), BINARY(equal), BINARY(not_equal), BINARY(less), BINARY(less_equal),
    BINARY(greater), BINARY(greater_equal), BINARY(logical_and), BINARY(logical_or), BINARY(logical_xor), UNARY(logical_not), FORM(where),
    UNARY(negative), UNARY(abs), UNARY(sign), UNARY(square), UNARY(sqrt), UNARY(rsqrt), UNARY(reciprocal), UNARY(exp), UNARY(expm1),
    UNARY(log), UNARY(log1p), UNARY(sin), UNARY(cos), UNARY(tan), UNARY(asin), UNARY(acos), UNARY(atan), UNARY(sinh), UNARY(cosh),
    UNARY(tanh), UNARY(asinh), UNARY(acosh), UNARY(atanh), UNARY(erf), UNARY(floor), UNARY(ceil), UNARY(round), UNARY(is_nan),
    UNARY(is_inf), UNARY(is_finite), UNARY(sigmoid), UNARY(softplus), UNARY(softsign), UNARY(relu), UNARY(relu6), UNARY(selu), UNARY(silu),
    UNARY(mish), UNARY(gelu), UNARY(gelu_tanh), UNARY(hard_sigmoid), FORM(leaky_relu), FORM(elu), FORM(clip_by_value), FORM(softmax),
    FORM(log_softmax), BINARY(softmax_cross_entropy_with_logits), BINARY(sparse_softmax_cross_entropy_with_logits),
    BINARY(sigmoid_cross_entropy_with_logits), REDUCE(reduce_sum), REDUCE(reduce_mean), REDUCE(reduce_max), REDUCE(reduce_min),
    REDUCE(reduce_prod), REDUCE(reduce_all), REDUCE(reduce_any), REDUCE(reduce_logsumexp), REDUCE(reduce_variance), REDUCE(reduce_std),
    FORM(norm), FORM(argmax), FORM(argmin), FORM(cumsum), FORM(sort), FORM(argsort), FORM(top_k), FORM(matmul), FORM(einsum),
    FORM(reshape), FORM(transpose), FORM(expand_dims), FORM(squeeze), FORM(broadcast_to), FORM(concat), FORM(stack), FORM(split),
    FORM(unstack), FORM(slice), FORM(strided_slice), FORM(reverse), FORM(pad), FORM(tile), FORM(repeat), FORM(gather), BINARY(gather_nd),
    FORM(take_along_axis), FORM(scatter_nd), FORM(tensor_scatter_add), FORM(segment_sum), FORM(one_hot), FORM(clip_by_norm),
    FORM(clip_by_global_norm), FORM(cast), FORM(range), FORM(linspace), FORM(eye), CONV(conv2d), CONV(conv1d), CONV(depthwise_conv2d),
    FORM(conv2d_transpose), FORM(conv1d_transpose), POOL(max_pool2d), POOL(avg_pool2d), POOL(max_pool1d), POOL(avg_pool1d), FORM(resize),
    FORM(philox4x32), OPTIMIZER(sgd), OPTIMIZER(rmsprop), OPTIMIZER(adam), OPTIMIZER(adamw), OPTIMIZER(adagrad), OPTIMIZER(adadelta),
    OPTIMIZER(adamax), OPTIMIZER(nadam), OPTIMIZER(lion), OPTIMIZER(ftrl), SCHEDULE(exponential_decay), SCHEDULE(piecewise_constant),
    SCHEDULE(polynomial_decay), SCHEDULE(cosine_decay),
};
enum { ROWS = sizeof rows / sizeof *rows };

// ---- running a case -----------------------------------------------------------------------------------------------

static double tolerance(const char *dtype) { return strcmp(dtype, "float64") == 0 ? 1e-11 : strcmp(dtype, "float32") == 0 ? 2e-6 : 0; }

// The tensor against the case's array `kind` number i: dtype, shape, values.
static void compare(const fixture_file *f, const char *kind, int i, eg_tensor *x) {
    const fixture_array *want = fixture_get(f, kind, i);
    char what[160];
    if (!want) return;
    snprintf(what, sizeof what, "%s: %s %d", f->name, kind, i);
    test_values(__FILE__, __LINE__, what, x, tolerance(want->dtype), want->values, want->count);
    if (!x) return;
    test_shape(__FILE__, __LINE__, what, x, want->dims, want->rank);
    test_str(__FILE__, __LINE__, what, eg_dtype_name(eg_dtype_of(x)), want->dtype);
}

static int run_op(const row *r, const fixture_file *f, eg_tensor **in, int n, eg_tensor **out) {
    if (r->call) return r->call == call_clip_by_value && eg_dtype_of(in[0]) == EG_INT32 ? call_clip_by_value_int32(f, in, n, out) : r->call(f, in, n, out);
    if (r->unary) out[0] = r->unary(in[0]);
    else if (r->binary) out[0] = r->binary(in[0], in[1]);
    else if (r->conv) out[0] = r->conv(in[0], in[1], conv_options(f));
    else if (r->reduce) out[0] = r->reduce(in[0], (eg_reduce_options){.axes = axes_of(f, "axes"), .keepdims = flag(f, "keepdims")});
    else {
        eg_conv_options o = conv_options(f);
        eg_pool_options p = {.strides = {o.strides[0], o.strides[1]}, .padding = o.padding};
        for (int i = 0; i < 2; i++) p.size[i] = (int64_t)fixture_attr(f, "size", i, 0);
        out[0] = r->pool(in[0], p);
    }
    return 1;
}

static void run_case(const row *r, const fixture_file *f) {
    EG_SCOPE;
    eg_tensor *in[MAX_INPUTS] = {NULL}, *out[MAX_OUTPUTS] = {NULL}, *grads[MAX_INPUTS] = {NULL};
    int n = fixture_count(f, "in"), outs;
    bool first = fixture_count(f, "grad") > 0, second = fixture_count(f, "grad2") > 0;
    eg_tape *outer = second ? eg_tape_begin() : NULL, *inner = first ? eg_tape_begin() : NULL;
    for (int i = 0; i < n; i++) {
        const fixture_array *a = fixture_get(f, "in", i);
        in[i] = tensor_from(a);
        if (a->ints) continue;
        if (outer) eg_tape_watch(outer, in[i]);
        if (inner) eg_tape_watch(inner, in[i]);
    }
    outs = run_op(r, f, in, n, out);
    for (int i = 0; i < outs; i++) compare(f, "out", i, out[i]);
    if (outs) CHECK_INT(outs, fixture_count(f, "out"));
    if (!first) return;

    eg_tensor *targets[MAX_OUTPUTS], *ups[MAX_OUTPUTS];
    int m = 0;
    for (int i = 0; i < outs; i++) {
        const fixture_array *up = fixture_get(f, "up", i);
        if (up) targets[m] = out[i], ups[m++] = tensor_from(up);
    }
    eg_tape_gradients_from(inner, targets, m, ups, in, n, grads);
    for (int i = 0; i < n; i++) compare(f, "grad", i, grads[i]);
    if (!second) return;

    eg_tensor *total = NULL, *grads2[MAX_INPUTS] = {NULL};
    for (int i = 0; i < n; i++) {
        const fixture_array *up = fixture_get(f, "up2", i);
        if (!up) continue;
        eg_tensor *part = eg_reduce_sum(eg_mul(grads[i], tensor_from(up)));
        total = total ? eg_add(total, part) : part;
    }
    eg_tape_unconnected_zeros(outer, true);
    eg_tape_gradients(outer, total, in, n, grads2);
    for (int i = 0; i < n; i++) compare(f, "grad2", i, grads2[i]);
}

// One gradient a row; the weights are held against the row of the same number after each step.
static void run_optimizer(const row *r, const fixture_file *f) {
    EG_SCOPE;
    eg_optimizer_options o = {
        .learning_rate = fixture_attr(f, "learning_rate", 0, 0), .momentum = fixture_attr(f, "momentum", 0, 0), .nesterov = flag(f, "nesterov"),
        .beta_1 = fixture_attr(f, "beta_1", 0, 0), .beta_2 = fixture_attr(f, "beta_2", 0, 0), .epsilon = fixture_attr(f, "epsilon", 0, 0),
        .rho = fixture_attr(f, "rho", 0, 0), .centered = flag(f, "centered"), .amsgrad = flag(f, "amsgrad"),
        .initial_accumulator_value = fixture_attr(f, "initial_accumulator_value", 0, 0),
        .learning_rate_power = fixture_attr(f, "learning_rate_power", 0, 0), .l1 = fixture_attr(f, "l1_regularization_strength", 0, 0),
        .l2 = fixture_attr(f, "l2_regularization_strength", 0, 0), .beta = fixture_attr(f, "beta", 0, 0),
        .l2_shrinkage = fixture_attr(f, "l2_shrinkage_regularization_strength", 0, 0), .weight_decay = fixture_attr(f, "weight_decay", 0, 0),
        .clipvalue = fixture_attr(f, "clipvalue", 0, 0), .clipnorm = fixture_attr(f, "clipnorm", 0, 0),
        .global_clipnorm = fixture_attr(f, "global_clipnorm", 0, 0)};
    eg_optimizer *optimizer = r->optimizer(o);
    eg_tensor *variables[MAX_INPUTS], *grads[MAX_INPUTS];
    int n = fixture_count(f, "in") / 2;
    for (int i = 0; i < n; i++) variables[i] = eg_variable(tensor_from(fixture_get(f, "in", 2 * i)), "w");
    for (int64_t step = 0; step < fixture_get(f, "in", 1)->dims[0]; step++) {
        for (int i = 0; i < n; i++) {
            const fixture_array *w = fixture_get(f, "in", 2 * i);
            grads[i] = eg_constant_values(EG_FLOAT64, shape_from(w), fixture_get(f, "in", 2 * i + 1)->values + step * w->count, w->count);
        }
        CHECK(eg_apply_gradients(optimizer, grads, variables, n));
        for (int i = 0; i < n; i++) {
            const fixture_array *w = fixture_get(f, "in", 2 * i);
            char what[160];
            snprintf(what, sizeof what, "%s: variable %d after step %lld", f->name, i, (long long)step + 1);
            test_values(__FILE__, __LINE__, what, variables[i], tolerance("float64"), fixture_get(f, "out", i)->values + step * w->count, w->count);
        }
    }
    for (int i = 0; i < n; i++) eg_release(variables[i]);
    eg_optimizer_release(optimizer);
}

static void run_schedule(const fixture_file *f) {
    eg_schedule s = {0};
    double initial = fixture_attr(f, "initial_learning_rate", 0, 0), steps = fixture_attr(f, "decay_steps", 0, 0);
    if (strcmp(f->op, "exponential_decay") == 0) s = eg_exponential_decay(initial, steps, fixture_attr(f, "decay_rate", 0, 0), flag(f, "staircase"));
    else if (strcmp(f->op, "piecewise_constant") == 0)
        s = eg_piecewise_constant(fixture_find(f, "boundaries")->numbers, fixture_find(f, "values")->numbers, fixture_attr_count(f, "boundaries"));
    else if (strcmp(f->op, "polynomial_decay") == 0)
        s = eg_polynomial_decay(initial, steps, fixture_attr(f, "end_learning_rate", 0, 0), fixture_attr(f, "power", 0, 1), flag(f, "cycle"));
    else s = eg_cosine_decay(initial, steps, fixture_attr(f, "alpha", 0, 0), fixture_attr(f, "warmup_target", 0, 0), fixture_attr(f, "warmup_steps", 0, 0));
    const fixture_array *at = fixture_get(f, "in", 0), *want = fixture_get(f, "out", 0);
    for (int64_t i = 0; i < at->count; i++) {
        char what[160];
        snprintf(what, sizeof what, "%s at step %lld", f->name, (long long)at->ints[i]);
        test_near(__FILE__, __LINE__, what, eg_schedule_value(&s, at->ints[i]), want->values[i], 1e-11);
    }
}

static void run_row(void) {                                     // the test that runs is named after its row
    const char *const files[] = {"tests/fixtures/numpy.txt", "tests/fixtures/tf.txt", "tests/fixtures/torch.txt"};
    const row *r = rows;
    int cases = 0;
    while (strcmp(r->op, test_now->name) != 0) r++;
    for (int i = 0; i < 3; i++) {
        fixture_file f;
        if (!fixture_open(&f, files[i])) { test_say(__FILE__, __LINE__, files[i], f.error); continue; }
        for (f.only = r->op; fixture_next(&f); cases++) {
            if (r->optimizer) run_optimizer(r, &f);
            else if (r->schedule) run_schedule(&f);
            else run_case(r, &f);
            if (eg_error() != EG_OK) test_say(__FILE__, __LINE__, f.name, "raised an error");
            eg_error_clear();
        }
        if (f.error[0]) test_say(__FILE__, __LINE__, files[i], f.error);
        fixture_close(&f);
    }
    CHECK(cases > 0);
}

__attribute__((constructor)) static void register_rows(void) {
    static test_case cases[ROWS];
    for (int i = 0; i < ROWS; i++) {
        cases[i] = (test_case){rows[i].op, __FILE__, run_row, NULL};
        test_register(&cases[i]);
    }
}

// A case without a row would be a case that nobody runs.
TEST(every_case_has_a_row) {
    const char *const files[] = {"tests/fixtures/numpy.txt", "tests/fixtures/tf.txt", "tests/fixtures/torch.txt"};
    for (int i = 0; i < 3; i++) {
        fixture_file f;
        REQUIRE(fixture_open(&f, files[i]));
        while (fixture_next(&f)) {
            bool found = false;
            for (int k = 0; k < ROWS; k++) found = found || strcmp(rows[k].op, f.op) == 0;
            if (!found) test_say(__FILE__, __LINE__, f.name, "has no row in the table");
        }
        CHECK_STR(f.error, "");
        fixture_close(&f);
    }
}

// ---- the guide's model against PyTorch, step by step --------------------------------------------------------------

static eg_tensor *weights(eg_shape shape, double scale, uint64_t *k) {
    double values[3 * 3 * 16 * 16];
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.dims[i];
    for (int64_t i = 0; i < count; i++) {
        values[i] = scale * fixture_normal(k);
    }
    return eg_variable(eg_constant_values(EG_FLOAT32, shape, values, count), "w");
}

TEST(guide_model_follows_pytorch) {
    enum { STEPS = 250, BATCH = 32 };
    const char *folder = getenv("EAGER_DATA");
    char inner[4096];
    digits train = {0}, test = {0};
    if (!folder) SKIP("no EAGER_DATA");
    snprintf(inner, sizeof inner, "%.4000s/mnist", folder);
    if (digits_read(folder, &train, &test) && digits_read(inner, &train, &test)) SKIP("no MNIST that can be read in EAGER_DATA");
    digits_free(&test);
    fixture_file f;
    REQUIRE(fixture_open(&f, "tests/fixtures/guide_loss.txt"));
    REQUIRE(fixture_next(&f));
    const fixture_array *want = fixture_get(&f, "out", 0);
    REQUIRE(want && want->count == STEPS && train.count >= STEPS * BATCH);

    uint64_t k = 30000;
    eg_tensor *w[6] = {weights(EG_SHAPE(3, 3, 1, 16), sqrt(2. / 9), &k), eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(16)), "b"),
                       weights(EG_SHAPE(3, 3, 16, 16), sqrt(2. / 144), &k), eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(16)), "b"),
                       weights(EG_SHAPE(16, 10), .25, &k), eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(10)), "b")};
    eg_optimizer *adam = eg_adam(.learning_rate = 1e-3);
    double worst = 0;
    int steps = 0;
    const double patience = test_patience();
    for (clock_t start = clock(); steps < STEPS && (double)(clock() - start) / CLOCKS_PER_SEC < patience; steps++) {
        EG_SCOPE;
        int64_t first = (int64_t)steps * BATCH;
        eg_tensor *x = eg_div(eg_cast(eg_from_data(EG_UINT8, EG_SHAPE(BATCH, 28, 28, 1), train.pixels + first * DIGITS_PIXELS), EG_FLOAT32), 255);
        eg_tensor *y = eg_from_data(EG_INT32, EG_SHAPE(BATCH), train.labels + first), *grads[6];
        eg_tape *tape = eg_tape_begin();
        x = eg_relu(eg_add(eg_conv2d(x, w[0]), w[1]));
        x = eg_relu(eg_add(eg_conv2d(x, w[2]), w[3]));
        x = eg_add(eg_matmul(eg_reduce_mean(x, .axes = EG_AXES(1, 2)), w[4]), w[5]);
        eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(y, x));
        double apart = fabs(eg_item(loss) - want->values[steps]);
        if (!(apart <= worst)) worst = apart;
        CHECK(eg_tape_gradients(tape, loss, w, 6, grads));
        bool applied = eg_apply_gradients(adam, grads, w, 6);
        CHECK(applied);
        if (!applied) break;
    }
    printf("guide_model_follows_pytorch: %d steps, at most %.2g apart\n", steps, worst);
    CHECK(worst <= 1e-3);
    for (int i = 0; i < 6; i++) eg_release(w[i]);
    eg_optimizer_release(adam);
    fixture_close(&f);
    digits_free(&train);
}
