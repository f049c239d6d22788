// Every layer against Keras (fixtures_layers.py says what the rows mean): outputs, gradients of inputs and weights, in
// inference and training, masks, and what batch statistics become. Each layer is made from its configuration, and says
// its output's shape before it is called.
#include "test.h"
#include "fixture.h"

enum { MOST = 16 };
static const double tolerance = 2e-5;

static eg_tensor *tensor_from(const fixture_array *a) {
    eg_shape shape = {a->rank, {0}};
    memcpy(shape.dims, a->dims, sizeof shape.dims);
    eg_dtype dtype = strcmp(a->dtype, "int32") == 0 ? EG_INT32 : strcmp(a->dtype, "bool") == 0 ? EG_BOOL : EG_FLOAT32;
    return eg_constant_values(dtype, shape, a->values, a->count);
}
static void check(const fixture_file *f, const char *kind, int i, eg_tensor *got) {
    const fixture_array *want = fixture_get(f, kind, i);
    char what[160];
    snprintf(what, sizeof what, "%s: %s %d", f->name, kind, i);
    if (!want) { CHECK(!got); return; }
    test_values(__FILE__, __LINE__, what, got, tolerance, want->values, want->count);
    test_shape(__FILE__, __LINE__, what, got, want->dims, want->rank);
}

static void check_shape_before(const fixture_file *f, const fixture_array *in) {
    eg_layer *layer = eg_layer_from_config(fixture_text(f, "config", ""));
    const fixture_array *out = fixture_get(f, "out", 0);
    eg_shape shape = {in->rank, {0}};
    memcpy(shape.dims, in->dims, sizeof shape.dims);
    shape.dims[0] = -1;
    CHECK(eg_layer_build(layer, shape));
    shape = eg_layer_output_shape(layer);
    bool same = shape.rank == out->rank && shape.dims[0] == -1;
    for (int i = 1; same && i < out->rank; i++) same = shape.dims[i] == out->dims[i];
    if (!same) test_say(__FILE__, __LINE__, f->name, "the shape it tells before the call is another one");
    eg_layer_release(layer);
}

static void run_case(const fixture_file *f) {
    EG_SCOPE;
    eg_tensor *in[MOST], *weights[MOST], *sources[2 * MOST], *grads[2 * MOST], *y = NULL;
    eg_layer *layer = eg_layer_from_config(fixture_text(f, "config", ""));
    const fixture_array *given = fixture_get(f, "mask", 0), *up = fixture_get(f, "up", 0);
    int n = fixture_count(f, "in"), m = fixture_count(f, "weight"), n_sources = 0, ints = 0;
    bool training = fixture_attr(f, "training", 0, 0) != 0, loss = fixture_get(f, "loss", 0) != NULL;
    for (int i = 0; i < n; i++) in[i] = tensor_from(fixture_get(f, "in", i));
    eg_tensor *mask = given ? tensor_from(given) : NULL;
    if (!layer || !eg_call_multi(layer, in, n, &y, 1)) {
        test_say(__FILE__, __LINE__, f->name, "cannot be made or called");
        eg_layer_release(layer);
        return;
    }
    test_int(__FILE__, __LINE__, f->name, eg_layer_weights(layer, weights, MOST), m);
    for (int i = 0; i < m; i++) eg_assign(weights[i], tensor_from(fixture_get(f, "weight", i)));

    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < n && !loss; i++) {
        if (eg_dtype_of(in[i]) != EG_FLOAT32) { ints++; continue; }
        eg_tape_watch(tape, in[i]);
        sources[n_sources++] = in[i];
    }
    n = n_sources;
    n_sources += eg_layer_trainable_weights(layer, sources + n_sources, MOST);
    CHECK(eg_call_multi(layer, in, n + ints ? n + ints : 1, &y, 1, .training = training, .mask = mask));
    check(f, "out", 0, y);
    if (loss) check(f, "loss", 0, y = eg_layer_losses(layer));
    check(f, "outmask", 0, eg_mask_of(y));
    eg_tape_unconnected_zeros(tape, true);
    eg_tensor *upstream = loss ? NULL : tensor_from(up);
    CHECK(eg_tape_gradients_from(tape, &y, 1, loss ? NULL : &upstream, sources, n_sources, grads));
    for (int i = 0; i < n_sources; i++) check(f, i < n ? "grad" : "wgrad", i < n ? i : i - n, grads[i]);
    if (fixture_get(f, "after", 0)) for (int i = 0; i < m; i++) check(f, "after", i, weights[i]);
    else for (int i = 0; i < m; i++) check(f, "weight", i, weights[i]);
    if (n + ints == 1) check_shape_before(f, fixture_get(f, "in", 0));
    eg_layer_release(layer);
}
static void run_layer(const char *op) {
    fixture_file f;
    int cases = 0;
    if (!fixture_open(&f, "tests/fixtures/layers.txt")) { test_say(__FILE__, __LINE__, op, f.error); return; }
    f.only = op;
    for (; fixture_next(&f); cases++) run_case(&f);
    if (f.error[0]) test_say(__FILE__, __LINE__, op, f.error);
    if (!cases) test_say(__FILE__, __LINE__, op, "has no cases");
    fixture_close(&f);
}

#define LAYER(name) TEST(name) { run_layer(#name); }
LAYER(layer_dense)
LAYER(layer_activation)
LAYER(layer_leaky_relu)
LAYER(layer_losses)
LAYER(layer_conv2d)
LAYER(layer_conv1d)
LAYER(layer_conv2d_transpose)
LAYER(layer_conv1d_transpose)
LAYER(layer_depthwise_conv2d)
LAYER(layer_separable_conv2d)
LAYER(layer_max_pooling1d)
LAYER(layer_max_pooling2d)
LAYER(layer_average_pooling1d)
LAYER(layer_average_pooling2d)
LAYER(layer_global_max_pooling1d)
LAYER(layer_global_max_pooling2d)
LAYER(layer_global_average_pooling1d)
LAYER(layer_global_average_pooling2d)
LAYER(layer_flatten)
LAYER(layer_reshape)
LAYER(layer_permute)
LAYER(layer_repeat_vector)
LAYER(layer_zero_padding1d)
LAYER(layer_zero_padding2d)
LAYER(layer_up_sampling1d)
LAYER(layer_up_sampling2d)
LAYER(layer_batch_normalization)
LAYER(layer_layer_normalization)
LAYER(layer_rms_normalization)
LAYER(layer_group_normalization)
LAYER(layer_embedding)
LAYER(layer_masking)
LAYER(layer_merge_add)
LAYER(layer_merge_subtract)
LAYER(layer_merge_multiply)
LAYER(layer_merge_average)
LAYER(layer_merge_maximum)
LAYER(layer_merge_minimum)
LAYER(layer_concatenate)
LAYER(sequential_of)
LAYER(layer_residual)
