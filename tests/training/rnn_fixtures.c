// The recurrent layers and attention against the reference values of Keras (fixtures_rnn.py says how they were made):
// outputs, states and scores; gradients for inputs, initial states and weights. Each kind of layer is a test of its
// own.
#include "test.h"
#include "fixture.h"

enum { MANY = 16 };

static eg_tensor *tensor_from(const fixture_array *a) {
    eg_shape s = {a->rank, {0}};
    memcpy(s.dims, a->dims, sizeof s.dims);
    return eg_constant_values(strcmp(a->dtype, "bool") == 0 ? EG_BOOL : EG_FLOAT32, s, a->values, a->count);
}
static int tensors_from(const fixture_file *f, const char *kind, eg_tensor **out) {
    int n = 0;
    for (const fixture_array *a; n < MANY && (a = fixture_get(f, kind, n)) != NULL;) out[n++] = tensor_from(a);
    return n;
}
static bool flag(const fixture_file *f, const char *name) { return fixture_attr(f, name, 0, 0) != 0; }
static int64_t number(const fixture_file *f, const char *name) { return (int64_t)fixture_attr(f, name, 0, 0); }
static eg_activation activation(const fixture_file *f, const char *name) {
    const char *word = fixture_text(f, name, "");
    return strcmp(word, "softsign") == 0 ? EG_SOFTSIGN
           : strcmp(word, "hard_sigmoid") == 0 ? EG_HARD_SIGMOID
           : EG_DEFAULT_ACTIVATION;
}

static eg_layer *make(const fixture_file *f, const char *op) {
    eg_layer_options o = {.no_bias = flag(f, "no_bias")};
    if (strcmp(op, "bidirectional") == 0) {
        const char *merge = fixture_text(f, "merge", "concat");
        eg_layer_options how = {.merge = merge[0] == 's' ? EG_MERGE_SUM
                                         : merge[0] == 'm' ? EG_MERGE_MUL
                                         : merge[0] == 'a' ? EG_MERGE_AVE
                                         : EG_MERGE_CONCAT};
        return (eg_layer_bidirectional)(make(f, fixture_text(f, "layer", "")), how);
    }
    if (strcmp(op, "multi_head_attention") == 0) {
        o.causal = flag(f, "causal");
        o.value_dim = number(f, "value_dim");
        o.output_units = number(f, "output_units");
        return (eg_layer_multi_head_attention)(number(f, "heads"), number(f, "key_dim"), o);
    }
    o.return_sequences = flag(f, "return_sequences");
    o.go_backwards = flag(f, "go_backwards");
    o.activation = activation(f, "activation");
    if (strcmp(op, "simple_rnn") == 0) return (eg_layer_simple_rnn)(number(f, "units"), o);
    o.recurrent_activation = activation(f, "recurrent_activation");
    if (strcmp(op, "lstm") == 0) return (eg_layer_lstm)(number(f, "units"), o);
    o.reset_before = flag(f, "reset_before");
    return (eg_layer_gru)(number(f, "units"), o);
}

// The inputs of a call in the order that the layer takes them; returns how many.
static int arguments(const fixture_file *f, eg_tensor *const *in, int n, eg_tensor *const *states, int n_states,
                     eg_tensor **out) {
    const fixture_array *mask[4];
    int count = 0;
    for (int i = 0; i < 4; i++) mask[i] = fixture_get(f, "mask", i);
    for (int i = 0; i < n; i++) {              // masks: of the steps; of attention's query, key and value
        const fixture_array *m = mask[i == 1 ? 2 : i == 2 ? 1 : 0];
        out[count++] = m ? eg_with_mask(in[i], tensor_from(m)) : in[i];
    }
    for (int i = 0; i < n_states; i++) out[count++] = states[i];
    if (mask[3]) out[count++] = tensor_from(mask[3]);
    return count;
}

// The weights of Keras have an axis for the heads, ours have not; the order of the numbers is the same.
static void set_weights(const fixture_file *f, eg_layer *layer, eg_tensor **vars, int n) {
    eg_tensor *want[MANY];
    CHECK_INT(tensors_from(f, "weight", want), n);
    CHECK_INT(eg_layer_weights(layer, vars, MANY), n);
    for (int i = 0; i < n && !eg_error(); i++) eg_assign(vars[i], eg_reshape(want[i], eg_shape_of(vars[i])));
}

static void check_all(const fixture_file *f, const char *kind, eg_tensor *const *got, int n) {
    for (int i = 0; i < n; i++) {
        const fixture_array *want = fixture_get(f, kind, i);
        if (!want) test_say(__FILE__, __LINE__, f->name, "a row is missing");
        // a device's kernels add up in another order
        else CHECK_VALUES(got[i], test_on_host ? 2e-6 : 4e-6, want->values, want->count);
    }
}

static void run_case(const fixture_file *f) {
    EG_SCOPE;
    eg_tensor *in[MANY], *states[MANY], *ups[MANY], *out[MANY], *args[MANY], *sources[MANY], *grads[MANY];
    int fails = test_fails, n = tensors_from(f, "in", in), n_states = tensors_from(f, "state", states),
        n_out = tensors_from(f, "up", ups), weights = fixture_count(f, "weight");
    eg_layer *layer = make(f, f->op);
    for (int training = 0; training < 2; training++) {         // without dropout both are the same
        eg_tape *tape = eg_tape_begin();
        int sources_n = 0;
        for (int i = 0; i < n; i++) sources[sources_n++] = in[i];
        for (int i = 0; i < n_states; i++) sources[sources_n++] = states[i];
        for (int i = 0; i < sources_n; i++) eg_tape_watch(tape, sources[i]);
        int count = arguments(f, in, n, states, n_states, args);
        if (!training) {
            EG_NO_RECORDING;
            eg_call_multi(layer, args, count, out, n_out);     // makes the weights
            set_weights(f, layer, sources + sources_n, weights);
        } else eg_layer_weights(layer, sources + sources_n, MANY - sources_n);
        eg_call_multi(layer, args, count, out, n_out, .training = training);
        check_all(f, "out", out, n_out);
        eg_tape_unconnected_zeros(tape, true);
        CHECK(eg_tape_gradients_from(tape, out, n_out, ups, sources, sources_n + weights, grads));
        check_all(f, "grad", grads, n);
        check_all(f, "sgrad", grads + n, n_states);
        check_all(f, "wgrad", grads + sources_n, weights);
    }
    eg_layer_release(layer);
    if (test_fails > fails) printf("    in case %s\n", f->name);
}

static void run_cases(const char *op) {
    fixture_file f;
    int cases = 0;
    if (!fixture_open(&f, "tests/fixtures/rnn.txt")) { test_say(__FILE__, __LINE__, op, f.error); return; }
    f.only = op;
    for (; fixture_next(&f); cases++) run_case(&f);
    if (f.error[0]) test_say(__FILE__, __LINE__, op, f.error);
    fixture_close(&f);
    CHECK(cases > 5);
}

TEST(simple_rnn) { run_cases("simple_rnn"); }
TEST(lstm) { run_cases("lstm"); }
TEST(gru) { run_cases("gru"); }
TEST(bidirectional) { run_cases("bidirectional"); }
TEST(multi_head_attention) { run_cases("multi_head_attention"); }
