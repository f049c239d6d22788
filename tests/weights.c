// Weights in files: saved and loaded by their paths, into parts of models, from the names and layouts of Keras and PyTorch (imports.c
// holds those against the frameworks' own outputs).
#include "test.h"

static eg_layer *small_model(void) {
    eg_layer *m = eg_sequential(eg_layer_dense(4, .activation = EG_RELU), eg_layer_dense(2));
    CHECK(eg_layer_build(m, EG_SHAPE(-1, 3)));
    return m;
}
static bool same_weights(eg_layer *a, eg_layer *b) {
    eg_tensor *x[64], *y[64];
    int n = eg_layer_weights(a, x, 64), same = n == eg_layer_weights(b, y, 64);
    for (int i = 0; i < n && same; i++)
        same = eg_size(x[i]) == eg_size(y[i]) && memcmp(eg_data(x[i]), eg_data(y[i]), (size_t)(eg_size(x[i]) * eg_dtype_size(eg_dtype_of(x[i])))) == 0;
    return same;
}

TEST(weights_there_and_back) {
    const char *const names[] = { "w.safetensors", "w.npz" };
    eg_layer *a = small_model(), *b = small_model();
    CHECK(!same_weights(a, b));
    for (int i = 0; i < 2; i++) {
        CHECK(eg_save_weights(a, test_temp(names[i])));
        eg_tensor *w[4];
        CHECK_INT(eg_layer_weights(b, w, 4), 4);
        eg_assign(w[0], 0);
        CHECK(eg_load_weights(b, test_temp(names[i])));
        CHECK(same_weights(a, b));
    }
    eg_archive *file = eg_load_safetensors(test_temp("w.safetensors"));
    CHECK_INT(eg_archive_count(file), 4);
    CHECK(eg_archive_has(file, "dense/kernel") && eg_archive_has(file, "dense/bias") && eg_archive_has(file, "dense_1/kernel"));
    eg_archive_release(file);
    eg_layer_release(a);
    eg_layer_release(b);
}
TEST(misfits_are_told_all_at_once) {
    eg_layer *m = small_model(), *before = small_model();
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add_weights(a, m) && eg_archive_get_weights(a, before));
    eg_archive_release(a);
    a = eg_archive_new();
    CHECK(eg_archive_add(a, "dense/kernel", eg_ones(EG_FLOAT32, EG_SHAPE(4, 3))));
    CHECK(eg_archive_add(a, "dense/bias", eg_ones(EG_FLOAT32, EG_SHAPE(4))));
    CHECK(eg_archive_add(a, "dense_1/bias", eg_ones(EG_INT32, EG_SHAPE(2))));
    CHECK(eg_archive_add(a, "head/bias", eg_ones(EG_FLOAT32, EG_SHAPE(2))));
    CHECK(eg_save_safetensors(a, test_temp("misfits.safetensors")));
    CHECK_ERROR(eg_load_weights(m, test_temp("misfits.safetensors")), EG_ERROR_SHAPE,
                "misfits.safetensors: 1 missing: 'dense_1/kernel'; 1 unexpected: 'head/bias'; 2 of another shape: "
                "'dense/kernel' (float32 [3, 4] here, float32 [4, 3] there), 'dense_1/bias' (float32 [2] here, int32 [2] there)");
    CHECK(same_weights(m, before));                       // nothing was changed by halves
    CHECK_ERROR(eg_archive_get_weights(a, m, .partial = true), EG_ERROR_SHAPE, "eg_archive_get_weights: 2 of another shape");
    CHECK(same_weights(m, before));
    CHECK(eg_archive_get_weights(a, m, .partial = true, .skip_mismatch = true));
    eg_tensor *w[4];
    eg_layer_weights(m, w, 4);
    CHECK_TENSOR(w[1], 0, 1, 1, 1, 1);
    CHECK(!same_weights(m, before));
    eg_archive_release(a);
    eg_layer_release(m);
    eg_layer_release(before);
}
TEST(many_misfits_fit_one_message) {
    eg_layer *m = eg_sequential();
    for (int i = 0; i < 40; i++) CHECK(eg_layer_add(m, eg_layer_dense(2)));
    CHECK(eg_layer_build(m, EG_SHAPE(-1, 2)));
    eg_archive *a = eg_archive_new();
    CHECK_ERROR(eg_archive_get_weights(a, m), EG_ERROR_SHAPE, "80 missing: 'dense/kernel', 'dense/bias', 'dense_1/kernel'");
    CHECK(eg_archive_get_weights(a, m, .partial = true));
    eg_archive_release(a);
    eg_layer_release(m);
}
TEST(into_a_part_of_a_model) {
    eg_layer *m = small_model(), *other = small_model(), *parts[2];
    CHECK(eg_save_weights(m, test_temp("part.safetensors")));
    CHECK_INT(eg_layer_layers(other, parts, 2), 2);
    CHECK(eg_load_weights(parts[1], test_temp("part.safetensors"), .prefix = "dense_1/"));
    eg_tensor *x[4], *y[4];
    eg_layer_weights(m, x, 4);
    eg_layer_weights(other, y, 4);
    CHECK_SAME(y[2], x[2], 0);
    CHECK_ERROR(eg_load_weights(parts[0], test_temp("part.safetensors"), .prefix = "dense_1/"), EG_ERROR_SHAPE, "2 of another shape: 'kernel'");
    // By a name map: the second layer's bias from the first's file name, and so on.
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "enc/k", x[0]) && eg_archive_add(a, "enc2/bias", x[1]) && eg_archive_add(a, "out/kernel", x[2]) && eg_archive_add(a, "out/bias", x[3]));
    eg_layer *third = small_model();
    CHECK(eg_archive_get_weights(a, third, .names = EG_NAMES("dense/kernel", "enc/k", "dense", "enc2", "dense_1", "out")));
    CHECK(same_weights(m, third));
    CHECK_ERROR(eg_archive_get_weights(a, third, .names = EG_NAMES("dense/kernel", "enc/k", "dense", "enc2", "dense_1", "fc3")), EG_ERROR_SHAPE,
                "2 missing: 'dense_1/kernel' (the map asks for 'fc3', and the archive has none), 'dense_1/bias' (");
    CHECK_ERROR(eg_load_weights(third, test_temp("part.safetensors"), .torch = true, .names = EG_NAMES("dense", "dense", "dense_1", "fc3@0")), EG_ERROR_SHAPE, "(the map asks for 'fc3', and the file has none)");
    CHECK(same_weights(m, third));
    eg_archive_release(a);
    eg_layer_release(m);
    eg_layer_release(other);
    eg_layer_release(third);
}
TEST(floating_dtypes_are_converted) {
    eg_layer *m = eg_sequential(eg_layer_dense(2));
    CHECK(eg_layer_build(m, EG_SHAPE(-1, 1)));
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "dense/kernel", eg_cast(eg_constant(EG_SHAPE(1, 2), 1.5, -2), EG_BFLOAT16)));
    CHECK(eg_archive_add(a, "dense/bias", eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 3, 4)));
    CHECK(eg_archive_get_weights(a, m));
    eg_tensor *w[2];
    eg_layer_weights(m, w, 2);
    CHECK_DTYPE(w[0], EG_FLOAT32);
    CHECK_TENSOR(w[0], 0, 1.5, -2);
    CHECK_TENSOR(w[1], 0, 3, 4);
    eg_archive_release(a);
    eg_layer_release(m);
}
TEST(options_must_be_zeroed) {
    eg_layer *m = small_model(), *before = small_model();
    eg_load_options untouched;
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add_weights(a, m) && eg_archive_get_weights(a, before) && eg_save_weights(before, test_temp("options.npz")));
    memset(&untouched, 0, sizeof untouched);
    untouched.canary = 0x55;
    CHECK_ERROR((eg_load_weights)(m, test_temp("options.npz"), untouched), EG_ERROR_ARGUMENT, "eg_load_weights: options are given by name");
    CHECK_ERROR((eg_archive_get_weights)(a, m, untouched), EG_ERROR_ARGUMENT, "eg_archive_get_weights: options are given by name");
    CHECK(same_weights(m, before));
    eg_archive_release(a);
    eg_layer_release(m);
    eg_layer_release(before);
}
TEST(weights_that_are_not_there_yet) {
    eg_layer *m = eg_sequential(eg_layer_dense(2));
    CHECK_ERROR(eg_save_weights(m, test_temp("none.safetensors")), EG_ERROR_STATE, "eg_save_weights: layer sequential has no weights yet");
    CHECK_ERROR(eg_load_weights(m, test_temp("none.safetensors")), EG_ERROR_FILE, "cannot be opened");
    CHECK_ERROR(eg_load_weights(NULL, "x.npz"), EG_ERROR_NULL, "layer is NULL");
    CHECK_ERROR(eg_save_weights(NULL, "x.npz"), EG_ERROR_NULL, "layer is NULL");
    CHECK_ERROR(eg_save_weights(m, "x.txt"), EG_ERROR_FILE, "x.txt: its ending is neither");
    CHECK_ERROR(eg_archive_add_weights(NULL, m), EG_ERROR_NULL, "archive is NULL");
    eg_layer_release(m);
}
TEST(loading_is_not_recorded) {
    eg_layer *m = small_model();
    CHECK(eg_save_weights(m, test_temp("tape.safetensors")));
    eg_tape *tape = eg_tape_begin();
    eg_tensor *w[4];
    CHECK_INT(eg_layer_weights(m, w, 4), 4);
    CHECK(eg_load_weights(m, test_temp("tape.safetensors")));
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 0);
    eg_layer_release(m);
}

// ---- whole models

static eg_tensor *twice(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_mul(in[0], 2);
}
static eg_layer *make_twice(void *user) {
    (void)user;
    return eg_layer_custom("twice", twice, NULL);
}
static void model_there_and_back(eg_layer *m, eg_tensor *x, const char *name) {
    eg_tensor *y = eg_call(m, x);
    REQUIRE(y && eg_model_save(m, test_temp(name)));
    eg_random_state before = eg_random_get_state();
    eg_layer *n = eg_model_load(test_temp(name));
    REQUIRE(n);
    CHECK(eg_random_get_state().counter == before.counter && eg_random_get_state().seed == before.seed);
    CHECK_SAME(eg_call(n, x), y, 0);
    CHECK(same_weights(m, n));
    char one[4096], two[4096];
    CHECK(eg_layer_config(m, one, sizeof one) > 0 && eg_layer_config(n, two, sizeof two) > 0);
    CHECK_STR(two, one);
    eg_layer_release(m);
    eg_layer_release(n);
}
TEST(models_there_and_back) {
    CHECK(eg_layer_register("twice", make_twice, NULL));
    eg_tensor *image = eg_random_normal(EG_SHAPE(2, 8, 8, 1)), *text = eg_constant_of(EG_INT32, EG_SHAPE(2, 4), 1, 2, 3, 0, 4, 5, 6, 7);
    model_there_and_back(eg_sequential(eg_layer_conv2d(4, 3, .activation = EG_RELU, .kernel_l2 = 0.1), eg_layer_batch_normalization(), eg_layer_custom("twice", twice, NULL),
                                       eg_layer_global_average_pooling2d(), eg_layer_dropout(0.5), eg_layer_dense(10, .name = "head")), image, "image.safetensors");
    model_there_and_back(eg_sequential(eg_layer_embedding(8, 6), eg_sequential(eg_layer_lstm(5, .return_sequences = true), eg_layer_gru(4)), eg_layer_dense(2)), text, "text.npz");
}
// A layer that makes its weight when it is called. One that is loaded has it only if its maker makes it.
static eg_tensor *scaled(eg_tensor *const *in, void *user) {
    eg_layer *l = *(eg_layer **)user;
    eg_tensor *w;
    return eg_mul(in[0], eg_layer_weights(l, &w, 1) ? w : eg_layer_weight(l, "scale", eg_full(EG_FLOAT32, EG_SHAPE(3), 2), true));
}
static eg_layer *scalers[4];
static int n_scalers;
static eg_layer *make_scaled(void *user) {
    eg_layer *l = scalers[n_scalers] = eg_layer_custom("scaled", scaled, &scalers[n_scalers]);
    n_scalers = (n_scalers + 1) % 4;
    if (user) eg_layer_weight(l, "scale", eg_random_normal(EG_SHAPE(3)), true);
    return l;
}
static eg_layer *make_none(void *user) { (void)user; return NULL; }
TEST(weights_made_in_a_call) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 3));
    eg_layer *m = eg_sequential(make_scaled(NULL), eg_layer_dense(2));
    int early = 1;
    CHECK(eg_layer_register("scaled", make_scaled, NULL));
    eg_tensor *y = eg_call(m, x);
    CHECK_ERROR(eg_model_save(m, test_temp("late.safetensors")), EG_ERROR_STATE,
                "eg_model_save: layer scaled makes 'scale' when it is called, so that a load would miss it: make it in the function that eg_layer_register(\"scaled\"");
    CHECK_ERROR(eg_load_safetensors(test_temp("late.safetensors")), EG_ERROR_FILE, "cannot be opened");
    CHECK(eg_layer_register("scaled", make_none, NULL));
    CHECK_ERROR(eg_model_save(m, test_temp("late.safetensors")), EG_ERROR_NULL, "eg_model_save: the maker of 'scaled' returned NULL");
    CHECK(eg_layer_register("scaled", make_scaled, &early));
    eg_random_state before = eg_random_get_state();
    REQUIRE(eg_model_save(m, test_temp("late.safetensors")));
    CHECK_INT(eg_random_get_state().counter, before.counter);
    eg_layer *n = eg_model_load(test_temp("late.safetensors"));
    CHECK_SAME(eg_call(n, x), y, 0);
    eg_layer_release(m);
    eg_layer_release(n);
}
TEST(models_that_cannot_be) {
    eg_layer *m = eg_sequential(eg_layer_dense(2)), *custom = eg_sequential(eg_layer_custom("never registered", twice, NULL), eg_layer_dense(2));
    CHECK_ERROR(eg_model_save(m, test_temp("m.safetensors")), EG_ERROR_STATE, "eg_model_save: layer sequential has no weights yet");
    CHECK(eg_layer_build(m, EG_SHAPE(-1, 3)));
    CHECK_ERROR(eg_model_save(m, "m.h5"), EG_ERROR_FILE, "m.h5: its ending");
    CHECK_ERROR(eg_model_save(NULL, "m.npz"), EG_ERROR_NULL, "layer is NULL");
    CHECK(eg_save_weights(m, test_temp("only.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("only.safetensors")), EG_ERROR_FILE, "only.safetensors: holds weights, but no architecture");
    CHECK_ERROR(eg_model_load(test_temp("none.safetensors")), EG_ERROR_FILE, "cannot be opened");
    CHECK_ERROR(eg_model_load("m.h5"), EG_ERROR_FILE, "m.h5: its ending");
    CHECK(eg_call(custom, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 3))) != NULL);
    CHECK_ERROR(eg_model_save(custom, test_temp("custom.safetensors")), EG_ERROR_STATE, "tell how it is made by eg_layer_register(\"never registered\", make, user)");
    CHECK_ERROR(eg_load_safetensors(test_temp("custom.safetensors")), EG_ERROR_FILE, "cannot be opened");
    eg_archive *a = eg_archive_new(), *b = eg_archive_new();
    CHECK(eg_archive_set_text(a, "eager_model", "{\"class\": \"Custom\", \"name\": \"n\", \"kind\": \"never registered\"}") &&      // saved where it was registered
          eg_save_safetensors(a, test_temp("custom.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("custom.safetensors")), EG_ERROR_FILE, "'never registered' is a layer of your own");
    char config[2048];
    CHECK(eg_layer_config(m, config, sizeof config) > 0 && eg_archive_set_text(b, "eager_model", config) && eg_save_safetensors(b, test_temp("empty.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("empty.safetensors")), EG_ERROR_SHAPE, "2 missing: 'dense/kernel', 'dense/bias'");
    CHECK(eg_archive_set_text(b, "eager_model", "{\"class\": ") && eg_save_safetensors(b, test_temp("broken.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("broken.safetensors")), EG_ERROR_FILE, "broken JSON");
    const char *huge = "{\"class\": \"Dense\", \"name\": \"d\", \"units\": 1000000000, \"inputs\": [[-1, 1000]]}";
    CHECK(eg_archive_set_text(b, "eager_model", huge) && eg_save_safetensors(b, test_temp("huge.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("huge.safetensors")), EG_ERROR_FILE, "larger than the file that should hold them");
    eg_archive_release(a);
    eg_archive_release(b);
    eg_layer_release(m);
    eg_layer_release(custom);
}
