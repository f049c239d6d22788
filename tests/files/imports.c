// Weights that PyTorch and Keras wrote, in our layers: the outputs must be theirs (fixtures_files.py made both). The
// library turns layouts and orders gates; a name map says which layer is which.
#include "test.h"

static eg_tensor *of(eg_archive *a, const char *model, const char *what) {
    char name[100];
    snprintf(name, sizeof name, "%s.%s", model, what);
    return eg_archive_get(a, name);
}
// The model called on the file's input, its weights being made by the call, then read, then called again. Takes the
// model over.
static void import(const char *file, const char *name, eg_layer *model, const char *const *names) {
    char path[100], prefix[100];
    bool torch = strcmp(file, "torch") == 0;
    snprintf(path, sizeof path, "tests/fixtures/%s.safetensors", file);
    snprintf(prefix, sizeof prefix, "%s.", name);
    eg_archive *all = eg_load_safetensors(path), *a = eg_archive_new();
    REQUIRE(all && a && model);
    for (int64_t i = 0; i < eg_archive_count(all); i++) {                // what is not a weight would be unexpected
        const char *each = eg_archive_name(all, i);
        if (!strncmp(each, prefix, strlen(prefix)) && strcmp(each + strlen(prefix), "in") != 0 &&
            strcmp(each + strlen(prefix), "out") != 0)
            CHECK(eg_archive_add(a, each, eg_archive_get(all, each)));
    }
    eg_tensor *x = of(all, name, "in"), *y = of(all, name, "out");
    CHECK(eg_call(model, x) != NULL);
    CHECK(eg_archive_get_weights(a, model, .torch = torch, .prefix = prefix, .names = names));
    CHECK_SAME(eg_call(model, x), y, 2e-6);
    if (test_fails) printf("    model %s of %s\n", name, file);
    eg_archive_release(all);
    eg_archive_release(a);
    eg_layer_release(model);
}
static eg_tensor *attend(eg_tensor *const *in, void *user) {
    eg_tensor *both[2] = { in[0], in[0] }, *out;
    return eg_call_multi((eg_layer *)user, both, 2, &out, 1) ? out : NULL;
}
static eg_layer *self_attention(void) {
    eg_layer *attention = eg_layer_multi_head_attention(2, 4), *l = eg_layer_custom("attend", attend, attention);
    eg_layer_track(l, NULL, attention);
    return l;
}

TEST(torch_dense) {
    import("torch", "dense", eg_sequential(eg_layer_dense(4, .activation = EG_RELU), eg_layer_dense(3)),
           EG_NAMES("dense", "0", "dense_1", "2"));
}
TEST(torch_convolutions) {
    import("torch", "conv", eg_sequential(eg_layer_conv2d(4, 0, .kernel_size = { 3, 2 }, .activation = EG_RELU),
                                          eg_layer_flatten(), eg_layer_dense(3)),
           EG_NAMES("conv2d", "0", "dense", "3"));  // the Dense behind the Flatten, too, which lies otherwise
    import("torch", "conv_groups", eg_sequential(eg_layer_conv2d(6, 3, .groups = 2, .strides = { 2 }, .no_bias = true)),
           EG_NAMES("conv2d", "0"));
    import("torch", "conv1d", eg_sequential(eg_layer_conv1d(4, 3)), EG_NAMES("conv1d", "0"));
    import("torch", "depthwise", eg_sequential(eg_layer_depthwise_conv2d(3, .depth_multiplier = 2)),
           EG_NAMES("depthwise_conv2d", "0"));
    import("torch", "transposed", eg_sequential(eg_layer_conv2d_transpose(4, 3, .strides = { 2 })),
           EG_NAMES("conv2d_transpose", "0"));
}
TEST(torch_normalizations) {
    import("torch", "norms",
           eg_sequential(eg_layer_layer_normalization(.epsilon = 1e-5), eg_layer_batch_normalization(.epsilon = 1e-5)),
           EG_NAMES("layer_normalization", "0", "batch_normalization", "1"));
}
TEST(torch_embedding) {
    import("torch", "embedding", eg_sequential(eg_layer_embedding(9, 4)), EG_NAMES("embedding", "0"));
}
TEST(torch_recurrent) {
    import("torch", "rnn", eg_sequential(eg_layer_simple_rnn(4, .return_sequences = true)),
           EG_NAMES("simple_rnn", "rnn"));
    import("torch", "lstm",
           eg_sequential(eg_layer_lstm(4, .return_sequences = true), eg_layer_lstm(4, .return_sequences = true)),
           EG_NAMES("lstm", "rnn", "lstm_1", "rnn@1"));
    import("torch", "gru", eg_sequential(eg_layer_gru(4, .return_sequences = true)), EG_NAMES("gru", "rnn@0"));
    import("torch", "bidirectional", eg_sequential(eg_layer_bidirectional(eg_layer_lstm(4, .return_sequences = true))),
           EG_NAMES("bidirectional", "rnn"));
}
TEST(torch_attention) { import("torch", "attention", self_attention(), EG_NAMES("multi_head_attention", "mha")); }
TEST(keras_dense) {
    import("keras", "dense", eg_sequential(eg_layer_dense(4, .activation = EG_RELU), eg_layer_dense(3)), NULL);
}
TEST(keras_convolutions) {
    import("keras", "conv", eg_sequential(eg_layer_conv2d(4, 0, .kernel_size = { 3, 2 }, .activation = EG_RELU),
                                          eg_layer_flatten(), eg_layer_dense(3)), NULL);
}
TEST(keras_normalizations) {
    import("keras", "norms", eg_sequential(eg_layer_layer_normalization(), eg_layer_batch_normalization()), NULL);
}
TEST(keras_recurrent) {
    import("keras", "lstm", eg_sequential(eg_layer_lstm(4, .return_sequences = true), eg_layer_lstm(4)), NULL);
    import("keras", "gru", eg_sequential(eg_layer_gru(4, .return_sequences = true)), NULL);
    import("keras", "bidirectional", eg_sequential(eg_layer_bidirectional(eg_layer_lstm(4, .return_sequences = true))),
           NULL);
}
TEST(keras_attention) { import("keras", "attention", self_attention(), NULL); }
