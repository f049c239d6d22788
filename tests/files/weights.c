// Weights in files: saved and loaded by their paths, into parts of models, from the names and layouts of Keras and
// PyTorch (imports.c holds those against the frameworks' own outputs).
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
        same = eg_size(x[i]) == eg_size(y[i]) &&
               memcmp(eg_data(x[i]), eg_data(y[i]), (size_t)(eg_size(x[i]) * eg_dtype_size(eg_dtype_of(x[i])))) == 0;
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
    CHECK(eg_archive_has(file, "dense/kernel") && eg_archive_has(file, "dense/bias") &&
          eg_archive_has(file, "dense_1/kernel"));
    eg_archive_release(file);
    eg_layer_release(a);
    eg_layer_release(b);
}
TEST(names_without_an_ending_are_given_one) {
    eg_layer *a = eg_layer_dense(2, .input_shape = EG_SHAPE(3)), *b = eg_layer_dense(2, .input_shape = EG_SHAPE(3));
    REQUIRE(a && b && eg_save_weights(a, test_temp("run.1/weights")));
    CHECK(eg_load_weights(b, test_temp("run.1/weights.safetensors")) && eg_load_weights(b, test_temp("run.1/weights")));
    CHECK_ERROR(eg_load_weights(b, test_temp("run.1/none")), EG_ERROR_FILE, "run.1/none.safetensors: cannot be opened");
    CHECK_ERROR(
        eg_save_weights(a, test_temp("weights.h5")), EG_ERROR_FILE,
        "weights.h5: its ending is neither .safetensors nor .npz, and no other format is written; a name without an "
        "ending is given .safetensors");
    CHECK_ERROR(
        eg_load_weights(a, test_temp("weights.h5")), EG_ERROR_FILE,
        "weights.h5: its ending is neither .safetensors nor .npz, and no other format is read (docs/use.md, From "
        "files that are not read, says how to convert those of Keras and PyTorch); a name without an ending is given "
        ".safetensors");
    REQUIRE(eg_save_weights(a, test_temp("saved_model/variables.npz")));
    CHECK_ERROR(eg_load_weights(b, test_temp("saved_model")), EG_ERROR_FILE,
                "saved_model: is a folder; if it is a SavedModel of TensorFlow, save its weights from Python as .npz "
                "or .safetensors (docs/use.md, From files that are not read)");
    CHECK_ERROR(eg_model_load(test_temp("saved_model")), EG_ERROR_FILE, "saved_model: is a folder; if it is");
    eg_layer_weights(a, NULL, 0);
    REQUIRE(eg_save_weights(a, test_temp("only.npz")));
    CHECK(eg_load_weights(b, test_temp("only")));             // the one that is there
    eg_layer *model = eg_sequential(a);
    REQUIRE(eg_model_save(model, test_temp("whole")));
    eg_layer *again = eg_model_load(test_temp("whole"));
    CHECK(again != NULL);
    eg_archive *archive = eg_archive_load(test_temp("whole"));
    CHECK_INT(eg_archive_count(archive), 2);
    CHECK(eg_archive_save(archive, test_temp("archive")) && eg_load_weights(model, test_temp("archive.safetensors")));
    eg_archive_release(archive);
    eg_layer_release(again);
    eg_layer_release(model);
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
                "'dense/kernel' (float32 [3, 4] here, float32 [4, 3] there), 'dense_1/bias' (float32 [2] here, int32 "
                "[2] there)");
    CHECK(same_weights(m, before));                       // nothing was changed by halves
    CHECK_ERROR(eg_archive_get_weights(a, m, .partial = true), EG_ERROR_SHAPE,
                "eg_archive_get_weights: 2 of another shape");
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
TEST(torch_of_a_file_with_names_of_ours) {
    eg_layer *m = small_model();
    REQUIRE(eg_save_weights(m, test_temp("ours.safetensors")));
    CHECK_ERROR(eg_load_weights(m, test_temp("ours.safetensors"), .torch = true), EG_ERROR_SHAPE,
                "4 missing: 'dense/kernel', 'dense/bias', 'dense_1/kernel', 'dense_1/bias'; these names are there, but "
                ".torch looks for PyTorch's instead: leave it out (at");
    CHECK_ERROR(eg_load_weights(m, test_temp("ours.safetensors"), .torch = true, .partial = true), EG_ERROR_SHAPE,
                "which holds 'dense/kernel', ...; these names are there, but .torch looks for PyTorch's instead");
    eg_archive *a = eg_archive_new();
    CHECK_ERROR(eg_archive_get_weights(a, m, .torch = true), EG_ERROR_SHAPE,
                "4 missing: 'dense/kernel', 'dense/bias', 'dense_1/kernel', 'dense_1/bias' (at");
    eg_archive_release(a);
    eg_layer_release(m);
}
TEST(many_misfits_fit_one_message) {
    eg_layer *m = eg_sequential();
    for (int i = 0; i < 40; i++) CHECK(eg_layer_add(m, eg_layer_dense(2)));
    CHECK(eg_layer_build(m, EG_SHAPE(-1, 2)));
    eg_archive *a = eg_archive_new();
    CHECK_ERROR(eg_archive_get_weights(a, m), EG_ERROR_SHAPE,
                "80 missing: 'dense/kernel', 'dense/bias', 'dense_1/kernel'");
    CHECK_ERROR(eg_archive_get_weights(a, m, .partial = true), EG_ERROR_SHAPE,
                "none of the 80 weights of 'sequential' ('dense/kernel', ...) is in the archive, which holds nothing");
    CHECK(eg_archive_add(a, "dense_7/bias", eg_ones(EG_FLOAT32, EG_SHAPE(2))) &&
          eg_archive_get_weights(a, m, .partial = true));
    eg_archive_release(a);
    eg_layer_release(m);
}
TEST(a_file_that_holds_more_than_is_asked) {
    eg_layer *m = small_model(), *n = small_model(), *parts[2], *twin = small_model();
    eg_archive *a = eg_archive_new();
    CHECK_INT(eg_layer_layers(n, parts, 2), 2);
    CHECK(eg_archive_add_weights(a, m) && eg_archive_add(a, "head/bias", eg_ones(EG_FLOAT32, EG_SHAPE(2))) &&
          eg_save_safetensors(a, test_temp("more.safetensors")));
    CHECK_ERROR(eg_load_weights(n, test_temp("more.safetensors")), EG_ERROR_SHAPE, "1 unexpected: 'head/bias'");
    CHECK(eg_load_weights(n, test_temp("more.safetensors"), .extra = true) && same_weights(m, n));
    CHECK(eg_layer_add(n, eg_layer_dense(2)) && eg_layer_build(n, EG_SHAPE(-1, 3)));
    CHECK_ERROR(eg_load_weights(n, test_temp("more.safetensors"), .extra = true), EG_ERROR_SHAPE,
                "more.safetensors: 2 missing: 'dense_2/kernel', 'dense_2/bias' (at");
    CHECK(eg_load_weights(n, test_temp("more.safetensors"), .partial = true));
    // Two models in one archive, each behind a prefix of its own.
    eg_archive_release(a);
    a = eg_archive_new();
    CHECK(eg_archive_add_weights(a, m, .prefix = "one/") && eg_archive_add_weights(a, twin, .prefix = "two/"));
    CHECK_STR(eg_archive_name(a, 0), "one/dense/kernel");
    CHECK_ERROR(eg_archive_add_weights(a, m, .prefix = "two/"), EG_ERROR_ARGUMENT, "two/dense/kernel");
    CHECK_ERROR(eg_archive_get_weights(a, twin, .prefix = "three/"), EG_ERROR_SHAPE,
                "is in the archive under the prefix 'three/', which holds 'one/");
    eg_layer *third = small_model();
    CHECK(eg_archive_get_weights(a, third, .prefix = "two/") && same_weights(third, twin));
    eg_archive_release(a);
    eg_layer_release(m);
    eg_layer_release(n);
    eg_layer_release(twin);
    eg_layer_release(third);
}
TEST(what_is_named_must_exist) {
    eg_layer *m = small_model(), *before = small_model();
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add_weights(a, m) && eg_archive_get_weights(a, before));
    eg_archive_release(a);
    a = eg_archive_new();
    CHECK(eg_archive_add(a, "fc1/kernel", eg_ones(EG_FLOAT32, EG_SHAPE(3, 4))) &&
          eg_archive_add(a, "fc1/bias", eg_ones(EG_FLOAT32, EG_SHAPE(4))));
    CHECK(eg_archive_add(a, "fc2/kernel", eg_ones(EG_FLOAT32, EG_SHAPE(4, 2))) &&
          eg_archive_add(a, "fc2/bias", eg_ones(EG_FLOAT32, EG_SHAPE(2))));
    for (int partial = 0; partial < 2; partial++) {
        CHECK_ERROR(eg_archive_get_weights(a, m, .partial = partial,
                                           .names = EG_NAMES("dense", "fc1", "dence_1", "fc2")), EG_ERROR_ARGUMENT,
                    "eg_archive_get_weights: .names: 'dence_1' is no layer or weight of 'sequential'; the nearest is "
                    "'dense_1'");
        CHECK_ERROR(eg_archive_get_weights(a, m, .partial = partial, .names = EG_NAMES("dense/kernle", "fc1/kernel")),
                    EG_ERROR_ARGUMENT,
                    "'dense/kernle' is no layer or weight of 'sequential'; the nearest is 'dense/kernel'");
        CHECK_ERROR(eg_archive_get_weights(a, m, .partial = partial, .names = EG_NAMES("dense", "fc1", "dense_1")),
                    EG_ERROR_ARGUMENT, ".names come in pairs, ours and theirs, and 'dense_1' has no other");
        CHECK_ERROR(eg_archive_get_weights(a,
                                           m, .partial = partial, .names = EG_NAMES("dense", "fc1", "dense_1", "fcc2")),
                    partial ? EG_ERROR_ARGUMENT : EG_ERROR_SHAPE,
                    "(the map asks for 'fcc2', and the archive has none; the nearest is 'fc2')");
        CHECK(same_weights(m, before));
    }
    CHECK_ERROR(
        eg_archive_get_weights(a, m, .partial = true), EG_ERROR_SHAPE,
        "none of the 4 weights of 'sequential' ('dense/kernel', ...) is in the archive, which holds 'fc1/kernel', ...");
    CHECK_ERROR(eg_archive_get_weights(a, m, .partial = true, .prefix = "model."), EG_ERROR_SHAPE,
                "is in the archive under the prefix 'model.', which holds 'fc1/kernel'");
    CHECK_ERROR(eg_archive_get_weights(a, m, .skip_mismatch = true, .partial = true,
                                       .extra = true, .names = EG_NAMES("dense/bias", "fc2/bias")), EG_ERROR_SHAPE,
                "is in the archive in its shape");
    CHECK(same_weights(m, before));
    CHECK(eg_archive_get_weights(a, m, .names = EG_NAMES("dense", "fc1", "dense_1", "fc2")) &&
          !same_weights(m, before));
    CHECK(eg_archive_get_weights(a, m, .partial = true, .names = EG_NAMES("dense", "fc1")));
    eg_archive_release(a);
    eg_layer_release(m);
    eg_layer_release(before);
    eg_layer *none = eg_sequential(eg_layer_flatten());           // which has no weights to miss
    a = eg_archive_new();
    CHECK(eg_layer_build(none, EG_SHAPE(1, 2)) && eg_archive_get_weights(a, none, .partial = true));
    eg_archive_release(a);
    eg_layer_release(none);
}
TEST(bidirectional_layers_keep_the_name_inside) {
    const struct { eg_layer *layer; const char *path; } rows[] = {
        { eg_layer_bidirectional(eg_layer_lstm(2, .name = "memory")), "forward_memory/kernel" },
        { eg_layer_bidirectional(eg_layer_lstm(2)), "forward_lstm/kernel" },
        { eg_layer_bidirectional(eg_layer_gru(2, .name = "forward_reader")), "forward_reader/kernel" } };
    char path[64], one[4096], two[4096];
    for (int i = 0; i < 3; i++) {
        eg_layer *l = rows[i].layer;
        eg_tensor *x = eg_random_normal(EG_SHAPE(1, 3, 2)), *y = eg_call(l, x);
        CHECK_STR(eg_layer_weight_path(l, 0, path, sizeof path), rows[i].path);
        snprintf(one, sizeof one, "backward%s", rows[i].path + 7);
        CHECK_STR(eg_layer_weight_path(l, 3, path, sizeof path), i == 2 ? "backward_forward_reader/kernel" : one);
        REQUIRE(eg_model_save(l, test_temp("both.safetensors")));
        eg_layer *again = eg_model_load(test_temp("both.safetensors"));
        CHECK_SAME(eg_call(again, x), y, 0);
        CHECK(eg_layer_config(l, one, sizeof one) > 0 && eg_layer_config(again, two, sizeof two) > 0);
        CHECK_STR(two, one);
        eg_layer_release(again);
        eg_layer_release(l);
    }
}
// An archive as it was written while a bidirectional layer did not keep the name of the layer in it.
static eg_archive *with_former_names(eg_archive *now) {
    static const char *const texts[] = { "eager_checkpoint", "save_counter" };
    eg_archive *a = eg_archive_new();
    for (int64_t i = 0; i < eg_archive_count(now); i++) {
        char name[200] = "";
        const char *from = eg_archive_name(now, i), *at = strstr(from, "ward_memory");
        snprintf(name, sizeof name, "%.*s%s%s", (int)(at ? at - from : (long)strlen(from)), from, at ? "ward_gru" : "",
                 at ? at + strlen("ward_memory") : "");
        CHECK(eg_archive_add(a, name, eg_archive_get(now, from)));
    }
    for (int i = 0; i < 2; i++)
        if (eg_archive_text(now, texts[i])) CHECK(eg_archive_set_text(a, texts[i], eg_archive_text(now, texts[i])));
    return a;
}
static eg_layer *both_ways(void) {
    return eg_sequential(eg_layer_bidirectional(eg_layer_gru(2, .name = "memory"), .name = "bi"), eg_layer_dense(1));
}
TEST(bidirectional_layers_read_files_from_before_they_kept_the_name) {
    eg_layer *one = both_ways(), *two = both_ways();
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 3, 2)), *y = eg_call(one, x), *g[8];
    eg_call(two, x);
    eg_archive *now = eg_archive_new();
    CHECK(eg_archive_add_weights(now, one));
    eg_archive *former = with_former_names(now);
    CHECK(eg_archive_has(former, "bi/backward_gru/kernel") && !eg_archive_has(former, "bi/backward_memory/kernel"));
    CHECK(eg_archive_get_weights(former, two));
    CHECK_SAME(eg_call(two, x), y, 0);
    eg_archive_release(former);
    eg_archive_release(now);

    eg_optimizer *adam[2] = { eg_adam(.learning_rate = 0.1), eg_adam(.learning_rate = 0.1) };
    eg_list w = eg_layer_trainable_weights_list(one), w2 = eg_layer_trainable_weights_list(two);
    REQUIRE(w.count == 8);
    for (int i = 0; i < 8; i++) g[i] = eg_random_normal(eg_shape_of(w.tensors[i]));
    CHECK(eg_apply_gradients(adam[0], g, w.tensors, 8));
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "model", one) && eg_checkpoint_track_optimizer(c, "adam", adam[0]));
    now = eg_archive_load(eg_checkpoint_save(c, test_temp("former/ways")));
    former = with_former_names(now);
    CHECK(eg_archive_has(former, "adam/model/bi/forward_gru/bias/slot 0"));
    CHECK(eg_archive_save(former, test_temp("former/ways-7.safetensors")));
    eg_archive_release(former);
    eg_archive_release(now);
    eg_checkpoint_release(c);
    c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "model", two) && eg_checkpoint_track_optimizer(c, "adam", adam[1]));
    CHECK(eg_checkpoint_restore(c, test_temp("former/ways-7")) && eg_checkpoint_assert_consumed(c));
    CHECK_SAME(eg_call(two, x), eg_call(one, x), 0);
    // and so are the slots
    CHECK(eg_apply_gradients(adam[0], g, w.tensors, 8) && eg_apply_gradients(adam[1], g, w2.tensors, 8));
    CHECK_SAME(eg_call(two, x), eg_call(one, x), 0);
    eg_checkpoint_release(c);
    eg_layer *late = both_ways();                                   // what is made after the restore
    c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "model", late) && eg_checkpoint_restore(c, test_temp("former/ways-7")));
    eg_call(late, x);
    CHECK(eg_checkpoint_assert_existing_objects_matched(c));
    eg_checkpoint_release(c);
    eg_layer_release(late);
    for (int i = 0; i < 2; i++) eg_optimizer_release(adam[i]);
    eg_layer_release(two);
    eg_layer_release(one);
}
TEST(into_a_part_of_a_model) {
    eg_layer *m = small_model(), *other = small_model(), *parts[2];
    CHECK_ERROR(eg_save_weights(m, ""), EG_ERROR_ARGUMENT, "eg_save_weights: the path is empty");
    CHECK_ERROR(eg_model_save(m, NULL), EG_ERROR_ARGUMENT, "eg_model_save: the path is NULL");
    CHECK(eg_save_weights(m, test_temp("part.safetensors")));
    CHECK_INT(eg_layer_layers(other, parts, 2), 2);
    CHECK(eg_load_weights(parts[1], test_temp("part.safetensors"), .prefix = "dense_1/"));
    eg_tensor *x[4], *y[4];
    eg_layer_weights(m, x, 4);
    eg_layer_weights(other, y, 4);
    CHECK_SAME(y[2], x[2], 0);
    CHECK_ERROR(eg_load_weights(parts[0], test_temp("part.safetensors"), .prefix = "dense_1/"), EG_ERROR_SHAPE,
                "2 of another shape: 'kernel'");
    // By a name map: the second layer's bias from the first's file name, and so on.
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "enc/k", x[0]) && eg_archive_add(a, "enc2/bias", x[1]) &&
          eg_archive_add(a, "out/kernel", x[2]) && eg_archive_add(a, "out/bias", x[3]));
    eg_layer *third = small_model();
    CHECK(eg_archive_get_weights(a, third,
                                 .names = EG_NAMES("dense/kernel", "enc/k", "dense", "enc2", "dense_1", "out")));
    CHECK(same_weights(m, third));
    CHECK_ERROR(eg_archive_get_weights(a, third, .names = EG_NAMES("dense/kernel", "enc/k",
                                                                   "dense", "enc2", "dense_1", "fc3")), EG_ERROR_SHAPE,
                "2 missing: 'dense_1/kernel' (the map asks for 'fc3', and the archive has none; the nearest is 'enc'), "
                "'dense_1/bias' (");
    CHECK_ERROR(eg_load_weights(third, test_temp("part.safetensors"),
                                .torch = true, .names = EG_NAMES("dense", "dense", "dense_1", "fc3@0")), EG_ERROR_SHAPE,
                "(the map asks for 'fc3', and the file has none; the nearest is 'dense')");
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
    CHECK(eg_archive_add_weights(a, m) && eg_archive_get_weights(a, before) &&
          eg_save_weights(before, test_temp("options.npz")));
    memset(&untouched, 0, sizeof untouched);
    untouched.canary = 0x55;
    CHECK_ERROR((eg_load_weights)(m, test_temp("options.npz"), untouched), EG_ERROR_ARGUMENT,
                "eg_load_weights: options are given by name");
    CHECK_ERROR((eg_archive_get_weights)(a, m, untouched), EG_ERROR_ARGUMENT,
                "eg_archive_get_weights: options are given by name");
    CHECK(same_weights(m, before));
    eg_archive_release(a);
    eg_layer_release(m);
    eg_layer_release(before);
}
TEST(weights_that_are_not_there_yet) {
    eg_layer *m = eg_sequential(eg_layer_dense(2));
    CHECK_ERROR(eg_save_weights(m, test_temp("none.safetensors")), EG_ERROR_STATE,
                "eg_save_weights: layer sequential has no weights yet");
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
    eg_tensor *image = eg_random_normal(EG_SHAPE(2, 8, 8, 1)),
              *text = eg_constant_of(EG_INT32, EG_SHAPE(2, 4), 1, 2, 3, 0, 4, 5, 6, 7);
    model_there_and_back(eg_sequential(eg_layer_conv2d(4, 3, .activation = EG_RELU, .kernel_l2 = 0.1),
                                       eg_layer_batch_normalization(), eg_layer_custom("twice", twice, NULL),
                                       eg_layer_global_average_pooling2d(), eg_layer_dropout(0.5),
                                       eg_layer_dense(10, .name = "head")), image, "image.safetensors");
    model_there_and_back(eg_sequential(eg_layer_embedding(8, 6),
                                       eg_sequential(eg_layer_lstm(5, .return_sequences = true), eg_layer_gru(4)),
                                       eg_layer_dense(2)), text, "text.npz");
}
// A layer that makes its weight when it is called. One that is loaded has it only if its maker makes it.
static eg_tensor *scaled(eg_tensor *const *in, void *user) {
    eg_layer *l = *(eg_layer **)user;
    eg_tensor *w;
    return eg_mul(in[0], eg_layer_weights(l, &w, 1) ? w : eg_layer_weight(l, "scale",
                                                                          eg_full(EG_FLOAT32, EG_SHAPE(3), 2), true));
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
// A save is true only of what a load takes: deep nesting, weights whose shape follows from the batch. The file of
// before stays.
TEST(a_save_refuses_what_a_load_would) {
    const char *path = test_temp("refused.safetensors");
    char file[4200];
    snprintf(file, sizeof file, "%s", path);
    eg_layer *m = eg_layer_dense(2, .input_shape = EG_SHAPE(3), .name = "d"), *again;
    for (int depth = 1; depth < EG_MAX_DEPTH; depth++) {       // as deep as layers can stand in one another
        EG_SCOPE;
        m = eg_sequential(m);
        REQUIRE(eg_layer_set_name(m, "s") && eg_layer_build(m, EG_SHAPE(-1, 3)));
        if (depth % 8 != 7) continue;
        CHECK(eg_model_save(m, file));
        again = eg_model_load(file);
        CHECK(again != NULL);
        eg_layer_release(again);
    }
    eg_layer_release(m);
    remove(file);
    eg_layer *first[] = { eg_layer_layer_normalization(.axis = EG_ZERO),
                          eg_layer_batch_normalization(.axis = EG_ZERO) };
    for (int k = 0; k < 2; k++) {
        m = eg_sequential(first[k]);
        CHECK(eg_call(m, eg_ones(EG_FLOAT32, EG_SHAPE(4, 3))) != NULL);
        CHECK_ERROR(eg_model_save(m, file), EG_ERROR_SHAPE,
                    "eg_model_save: eg_model_load could not load this model again, so nothing is written "
                    "(eg_save_weights saves its weights alone): eg_layer_build: axis 0 of [-1, 3] must be known");
        FILE *f = fopen(file, "rb");
        CHECK(!f && test_left_behind(file) == 0);
        if (f) fclose(f);
        eg_layer_release(m);
    }
}
// The check leaves the thread as it was: its random numbers, and whether it records.
TEST(a_save_leaves_no_trace) {
    const char *path = test_temp("trace.npz");
    eg_layer *m = eg_sequential(eg_layer_dense(3, .input_shape = EG_SHAPE(2)), eg_layer_dropout(0.5));
    REQUIRE(eg_layer_build(m, EG_SHAPE(-1, 2)));
    eg_seed(5);
    eg_tensor *x = eg_random_normal(EG_SHAPE(4));
    eg_seed(5);
    eg_tape *tape = eg_tape_begin();
    CHECK(eg_model_save(m, path));
    CHECK_SAME(eg_random_normal(EG_SHAPE(4)), x, 0);
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_reduce_sum(eg_mul(x, 2)), x), 0, 2, 2, 2, 2);
    eg_layer_release(m);
}
TEST(weights_made_in_a_call) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 3));
    eg_layer *m = eg_sequential(make_scaled(NULL), eg_layer_dense(2));
    int early = 1;
    CHECK(eg_layer_register("scaled", make_scaled, NULL));
    eg_tensor *y = eg_call(m, x);
    CHECK_ERROR(eg_model_save(m, test_temp("late.safetensors")), EG_ERROR_STATE,
                "eg_model_save: layer scaled makes 'scale' when it is called, so that a load would miss it: make it in "
                "the function that eg_layer_register(\"scaled\"");
    CHECK_ERROR(eg_load_safetensors(test_temp("late.safetensors")), EG_ERROR_FILE, "cannot be opened");
    CHECK(eg_layer_register("scaled", make_none, NULL));
    CHECK_ERROR(eg_model_save(m, test_temp("late.safetensors")), EG_ERROR_NULL,
                "eg_model_save: the maker of 'scaled' returned NULL");
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
    eg_layer *m = eg_sequential(eg_layer_dense(2)),
             *custom = eg_sequential(eg_layer_custom("never registered", twice, NULL), eg_layer_dense(2));
    CHECK_ERROR(eg_model_save(m, test_temp("m.safetensors")), EG_ERROR_STATE,
                "eg_model_save: layer sequential has no weights yet");
    CHECK(eg_layer_build(m, EG_SHAPE(-1, 3)));
    CHECK_ERROR(eg_model_save(m, "m.h5"), EG_ERROR_FILE, "m.h5: its ending");
    CHECK_ERROR(eg_model_save(NULL, "m.npz"), EG_ERROR_NULL, "layer is NULL");
    CHECK(eg_save_weights(m, test_temp("only.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("only.safetensors")), EG_ERROR_FILE,
                "only.safetensors: holds weights, but no architecture");
    CHECK_ERROR(eg_model_load(test_temp("none.safetensors")), EG_ERROR_FILE, "cannot be opened");
    CHECK_ERROR(eg_model_load("m.h5"), EG_ERROR_FILE, "m.h5: its ending");
    CHECK(eg_call(custom, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 3))) != NULL);
    CHECK_ERROR(eg_model_save(custom, test_temp("custom.safetensors")), EG_ERROR_STATE,
                "tell how it is made by eg_layer_register(\"never registered\", make, user)");
    CHECK_ERROR(eg_load_safetensors(test_temp("custom.safetensors")), EG_ERROR_FILE, "cannot be opened");
    eg_archive *a = eg_archive_new(), *b = eg_archive_new();
    // saved where it was registered
    CHECK(eg_archive_set_text(a, "eager_model",
                              "{\"class\": \"Custom\", \"name\": \"n\", \"kind\": \"never registered\"}") &&
          eg_save_safetensors(a, test_temp("custom.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("custom.safetensors")), EG_ERROR_FILE,
                "'never registered' is a layer of your own");
    char config[2048];
    CHECK(eg_layer_config(m, config, sizeof config) > 0 && eg_archive_set_text(b, "eager_model", config) &&
          eg_save_safetensors(b, test_temp("empty.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("empty.safetensors")), EG_ERROR_SHAPE,
                "2 missing: 'dense/kernel', 'dense/bias'");
    CHECK(eg_archive_set_text(b, "eager_model", "{\"class\": ") &&
          eg_save_safetensors(b, test_temp("broken.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("broken.safetensors")), EG_ERROR_FILE, "broken JSON");
    const char *huge = "{\"class\": \"Dense\", \"name\": \"d\", \"units\": 1000000000, \"inputs\": [[-1, 1000]]}";
    CHECK(eg_archive_set_text(b, "eager_model", huge) && eg_save_safetensors(b, test_temp("huge.safetensors")));
    CHECK_ERROR(eg_model_load(test_temp("huge.safetensors")), EG_ERROR_FILE,
                "larger than the file that should hold them");
    eg_archive_release(a);
    eg_archive_release(b);
    eg_layer_release(m);
    eg_layer_release(custom);
}

// ---- names and layouts that do not fit

enum { DENSE, CONV, DEPTHWISE, GRU, LSTM, IMAGE, ATTENTION, CONV1D };
static eg_layer *model_of(int kind) {
    eg_layer *l = kind == DENSE ? eg_sequential(eg_layer_dense(2))
                  : kind == CONV ? eg_sequential(eg_layer_conv2d(2, 2))
                  : kind == DEPTHWISE ? eg_sequential(eg_layer_depthwise_conv2d(2, .depth_multiplier = 3))
                  : kind == GRU ? eg_sequential(eg_layer_gru(2))
                  : kind == LSTM ? eg_sequential(eg_layer_lstm(2))
                  : kind == IMAGE ? eg_sequential(eg_layer_flatten(), eg_layer_dense(2))
                  : kind == CONV1D ? eg_sequential(eg_layer_conv1d(2, 2))
                  : eg_layer_multi_head_attention(2, 2);
    eg_tensor *x = kind == DENSE ? eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))
                   : kind == CONV ? eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 4, 1))
                   : kind == DEPTHWISE ? eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 4, 2))
                   : kind == IMAGE ? eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 2, 3))
                   : kind == ATTENTION ? eg_ones(EG_FLOAT32, EG_SHAPE(1, 3, 4))
                   : eg_ones(EG_FLOAT32, EG_SHAPE(1, 3, 2));
    eg_tensor *both[2] = { x, x }, *out;
    CHECK(eg_call_multi(l, both, kind == ATTENTION ? 2 : 1, &out, 1));
    return l;
}
// A file of PyTorch's with so few tensors, each 0, 1, 2, ...: what weight number `weight` becomes, or the error, which
// changes nothing.
typedef struct torch_case {
    int line, model;
    const char *names[5], *prefix;
    struct { const char *name; int64_t dims[5]; } file[4];            // dims end with a 0
    const char *error;
    int weight, n;
    double values[12];
} torch_case;
#define MAP(...) { __VA_ARGS__ }
static const torch_case torch_cases[] = {
    // named itself, and turned all the same
    { __LINE__, DENSE, MAP("dense/kernel", "W"), NULL, { { "W", { 2, 3 } } }, NULL, 0, 6, { 0, 3, 1, 4, 2, 5 } },
    { __LINE__, DENSE, MAP("dense/bias", "B"), NULL, { { "B", { 2 } } }, NULL, 1, 2, { 0, 1 } },
    // a model that is a single module
    { __LINE__, DENSE, MAP("dense", ""), NULL, { { "weight", { 2, 3 } }, { "bias", { 2 } } }, NULL, 0, 6,
      { 0, 3, 1, 4, 2, 5 } },
    { __LINE__, DENSE, MAP("", "net"), NULL, { { "net.dense.weight", { 2, 3 } } }, NULL, 0, 6, { 0, 3, 1, 4, 2, 5 } },
    // no part of a word
    { __LINE__, DENSE, MAP("den", "right"), NULL, { { "right.weight", { 2, 3 } } },
      ".names: 'den' is no layer or weight of 'sequential'; the nearest is 'dense'", 0, 0, { 0 } },
    { __LINE__, DENSE, MAP("dense/bias", "b", "dense", "fc"), NULL, { { "b", { 2 } }, { "fc.bias", { 2 } } }, NULL, 1,
      2, { 0, 1 } },
    { __LINE__, DENSE, MAP("dense", "fc"), "model.", { { "model.fc.weight", { 2, 3 } }, { "other.fc.bias", { 2 } } },
      NULL, 0, 6, { 0, 3, 1, 4, 2, 5 } },
    { __LINE__, DENSE, MAP("dense", "fc"), NULL, { { "fc.weight", { 6 } } },
      "'dense/kernel' (float32 [3, 2] here, float32 [6] there)", 0, 0, { 0 } },
    { __LINE__, DENSE, MAP("dense", "fc"), NULL, { { "fc.weight", { 0 } } },
      "'dense/kernel' (float32 [3, 2] here, float32 [] there)", 0, 0, { 0 } },
    { __LINE__, DENSE, MAP("dense", "fc"), NULL, { { "fc.weight", { 2, 1, 3, 1 } } },
      "'dense/kernel' (float32 [3, 2] here, float32 [3, 1, 1, 2] there)", 0, 0, { 0 } },
    { __LINE__, DENSE, MAP("dense", "fc"), NULL, { { "fc.weight", { 2, 3, 1 } } },
      "'dense/kernel' (float32 [3, 2] here, float32 [1, 3, 2] there)", 0, 0, { 0 } },
    // of one channel, which looks like a depthwise one
    { __LINE__, CONV, MAP("conv2d", "c"), NULL, { { "c.weight", { 2, 1, 2, 2 } } }, NULL, 0, 8,
      { 0, 4, 1, 5, 2, 6, 3, 7 } },
    { __LINE__, CONV, MAP("conv2d", "c"), NULL, { { "c.weight", { 2, 3, 2, 2 } } },
      "'conv2d/kernel' (float32 [2, 2, 1, 2] here, float32 [2, 2, 3, 2] there)", 0, 0, { 0 } },
    { __LINE__, DEPTHWISE, MAP("depthwise_conv2d", "c"), NULL, { { "c.weight", { 7, 1, 2, 2 } } },
      "float32 [2, 2, 1, 7] there)", 0, 0, { 0 } },
    { __LINE__, DEPTHWISE, MAP("depthwise_conv2d", "c"), NULL, { { "c.weight", { 6, 2, 2, 2 } } },
      "float32 [2, 2, 2, 6] there)", 0, 0, { 0 } },
    { __LINE__, CONV1D, MAP("conv1d", "c"), NULL, { { "c.weight", { 2, 2, 2 } } }, NULL, 0, 8,
      { 0, 4, 2, 6, 1, 5, 3, 7 } },
    // of a Linear over the whole window
    { __LINE__, CONV1D, MAP("conv1d", "c"), NULL, { { "c.weight", { 2, 4 } } }, NULL, 0, 8,
      { 0, 4, 1, 5, 2, 6, 3, 7 } },
    { __LINE__, CONV1D, MAP("conv1d", "c"), NULL, { { "c.weight", { 2, 3 } } },
      "'conv1d/kernel' (float32 [2, 2, 2] here, float32 [3, 2] there)", 0, 0, { 0 } },
    // r before z
    { __LINE__, GRU, MAP("gru", "rnn"), NULL, { { "rnn.weight_ih_l0", { 6, 2 } }, { "rnn.weight_hh_l0", { 6, 2 } } },
      NULL, 0, 12, { 4, 6, 0, 2, 8, 10, 5, 7, 1, 3, 9, 11 } },
    { __LINE__, GRU, MAP("gru", ""), NULL, { { "weight_hh_l0", { 6, 2 } } }, NULL, 1, 12,
      { 4, 6, 0, 2, 8, 10, 5, 7, 1, 3, 9, 11 } },
    { __LINE__, GRU, MAP("gru", "rnn"), NULL, { { "rnn.weight_ih_l0", { 6, 2 } }, { "rnn.weight_hh_l0", { 12 } } },
      "'gru/recurrent_kernel' (float32 [2, 6] here, float32 [12] there)", 0, 0, { 0 } },
    { __LINE__, GRU, MAP("gru", "rnn"), NULL, { { "rnn.weight_ih_l0", { 8, 2 } }, { "rnn.weight_hh_l0", { 6, 2 } } },
      "'gru/kernel' (float32 [2, 6] here, float32 [2, 8] there)", 0, 0, { 0 } },
    { __LINE__, GRU, MAP("gru", "rnn"), NULL, { { "rnn.bias_ih_l0", { 6 } }, { "rnn.weight_hh_l0", { 6, 2 } } },
      "'gru/bias' (float32 [2, 6] here, float32 [6] there)", 0, 0, { 0 } },
    // two, which are added
    { __LINE__, LSTM, MAP("lstm", "rnn"), NULL, { { "rnn.bias_ih_l0", { 8 } }, { "rnn.bias_hh_l0", { 8 } } }, NULL, 2,
      8, { 0, 2, 4, 6, 8, 10, 12, 14 } },
    { __LINE__, LSTM, MAP("lstm", "rnn"), NULL, { { "rnn.bias_ih_l0", { 8 } } }, NULL, 2, 8,
      { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { __LINE__, LSTM, MAP("lstm", "rnn@1"), NULL, { { "rnn.bias_ih_l1", { 8 } }, { "rnn.weight_ih_l0", { 8, 2 } } },
      NULL, 2, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { __LINE__, LSTM, MAP("lstm", "rnn"), NULL, { { "rnn.weight_ih_l0", { 16 } } },
      "'lstm/kernel' (float32 [2, 8] here, float32 [16] there)", 0, 0, { 0 } },
    { __LINE__, IMAGE, MAP("dense", "fc"), NULL, { { "fc.weight", { 1, 12 } } },
      "'dense/kernel' (float32 [12, 2] here, float32 [12, 1] there)", 0, 0, { 0 } },
    { __LINE__, IMAGE, MAP("dense", "fc"), NULL, { { "fc.weight", { 2, 11 } } },
      "'dense/kernel' (float32 [12, 2] here, float32 [11, 2] there)", 0, 0, { 0 } },
    { __LINE__, ATTENTION, MAP("", "mha"), NULL, { { "mha.in_proj_bias", { 12 } } }, NULL, 1, 4, { 0, 1, 2, 3 } },
    { __LINE__, ATTENTION, MAP("", "mha"), NULL, { { "mha.in_proj_bias", { 11 } } },
      "'query/bias' (float32 [4] here, float32 [11] there)", 0, 0, { 0 } },
    { __LINE__, ATTENTION, MAP("", "mha"), NULL, { { "mha.in_proj_weight", { 9, 4 } } },
      "'query/kernel' (float32 [4, 4] here, float32 [4, 3] there)", 0, 0, { 0 } },
    { __LINE__, ATTENTION, MAP("", "mha"), NULL, { { "mha.in_proj_bias", { 15 } } },
      "'query/bias' (float32 [4] here, float32 [5] there)", 0, 0, { 0 } },
    { __LINE__, ATTENTION, MAP("", "mha"), NULL, { { "mha.q_proj_weight", { 3, 4 } } },
      "'query/kernel' (float32 [4, 4] here, float32 [4, 3] there)", 0, 0, { 0 } },
    { __LINE__, ATTENTION, MAP("", "mha"), NULL, { { "mha.out_proj.bias", { 3 } } },
    "'attention_output/bias' (float32 [4] here, float32 [3] there)", 0, 0, { 0 } } };
TEST(pytorch_files_of_odd_shapes) {
    for (size_t k = 0; k < sizeof torch_cases / sizeof *torch_cases; k++) {
        EG_SCOPE;
        const torch_case *c = &torch_cases[k];
        eg_layer *m = model_of(c->model);
        eg_archive *a = eg_archive_new(), *before = eg_archive_new();
        for (int i = 0; i < 4 && c->file[i].name; i++) {
            eg_shape shape = { 0, { 0 } };
            int64_t size = 1;
            while (c->file[i].dims[shape.rank]) {
                shape.dims[shape.rank] = c->file[i].dims[shape.rank];
                size *= shape.dims[shape.rank++];
            }
            CHECK(eg_archive_add(a, c->file[i].name, eg_reshape(eg_range(EG_FLOAT32, 0, (double)size, 1), shape)));
        }
        CHECK(eg_archive_add_weights(before, m));
        bool ok = eg_archive_get_weights(a, m, .torch = true, .partial = true, .names = c->names, .prefix = c->prefix);
        eg_tensor *w[16];
        int n = eg_layer_weights(m, w, 16);
        if (ok != !c->error) test_say(__FILE__, c->line, ok ? "is taken" : "is refused", eg_error_message());
        else if (ok && c->weight < n) test_values(__FILE__, c->line, "the weight", w[c->weight], 0, c->values, c->n);
        else {
            test_contains(__FILE__, c->line, "the error", eg_error_message(), c->error);
            for (int i = 0; i < n; i++) CHECK_SAME(w[i], eg_archive_get(before, eg_archive_name(before, i)), 0);
        }
        eg_error_clear();
        eg_archive_release(a);
        eg_archive_release(before);
        eg_layer_release(m);
    }
}
TEST(maps_that_ask_for_what_is_not_there) {
    const struct { const char *name, *prefix, *theirs, *said; bool torch; } rows[] = {
        { "fc.weight", NULL, "fc", "1 missing: 'dense/bias'", true },
        { "fc3.weight", NULL, "fc",
          "'dense/kernel' (the map asks for 'fc', and the archive has none; the nearest is 'fc3')", true },
        { "m.fc/kernel", "m.", "fc", "1 missing: 'dense/bias'", false },
        { "m.fcx/kernel", "m.", "fc", "(the map asks for 'fc', and the archive has none; the nearest is 'fcx')",
          false },
        { "n.fc/kernel", "m.", "fc", "(the map asks for 'fc', and the archive has none)", false },
        { "fc", NULL, "fc", "2 missing: 'dense/kernel', 'dense/bias'", false },
        { "x", NULL, "a_module.whose_name_is_longer_than_an_error.shows_of_it",
        "(the map asks for 'a_module.whose_name_is_longer_than_an_e", true } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        EG_SCOPE;
        eg_layer *m = model_of(DENSE);
        eg_archive *a = eg_archive_new();
        CHECK(eg_archive_add(a, rows[k].name, eg_ones(EG_FLOAT32, rows[k].torch ? EG_SHAPE(2, 3) : EG_SHAPE(3, 2))));
        CHECK_ERROR(eg_archive_get_weights(a, m, .torch = rows[k].torch, .prefix = rows[k].prefix,
                                           .names = EG_NAMES("dense", rows[k].theirs)), EG_ERROR_SHAPE, rows[k].said);
        eg_archive_release(a);
        eg_layer_release(m);
    }
    // Names longer than any that are looked up: not found, and nothing overruns.
    char longest[1200];
    memset(longest, 'n', sizeof longest);
    longest[1199] = 0;
    for (int torch = 0; torch < 2; torch++) {
        eg_layer *m = model_of(DENSE);
        eg_archive *a = eg_archive_new();
        CHECK(eg_archive_add(a, longest, eg_ones(EG_FLOAT32, EG_SHAPE(3, 2))));
        CHECK_ERROR(eg_archive_get_weights(a, m, .torch = torch == 1, .names = EG_NAMES("dense", longest)),
                    EG_ERROR_SHAPE, "2 missing: 'dense/kernel'");
        CHECK_ERROR(eg_archive_get_weights(a, m, .prefix = longest), EG_ERROR_SHAPE,
                    "is in the archive under the prefix");
        eg_archive_release(a);
        eg_layer_release(m);
    }
}
static eg_tensor *counts(eg_tensor *const *in, void *user) { (void)user; return in[0]; }
TEST(whole_numbers_must_be_of_their_dtype) {
    const eg_dtype dtypes[] = { EG_INT32, EG_INT64, EG_FLOAT32 };
    for (int here = 0; here < 2; here++)
        for (int there = 0; there < 3; there++) {
            eg_layer *l = eg_layer_custom("counts", counts, NULL);
            eg_archive *a = eg_archive_new();
            CHECK(eg_layer_weight(l, "n", eg_zeros(dtypes[here], EG_SHAPE(2)), false) != NULL);
            CHECK(eg_archive_add(a, "n", eg_cast(eg_constant(EG_SHAPE(2), 3, 4), dtypes[there])));
            eg_tensor *w[1];
            bool ok = eg_archive_get_weights(a, l);
            CHECK_INT(eg_layer_weights(l, w, 1), 1);
            CHECK(ok == (here == there));
            CHECK_TENSOR(w[0], 0, ok ? 3 : 0, ok ? 4 : 0);
            if (!ok) CHECK_CONTAINS(eg_error_message(), "of another shape: 'n' (");
            eg_error_clear();
            eg_archive_release(a);
            eg_layer_release(l);
        }
}

// Errors name the function that the program called, not one inside it, and the program's file and line.
#define CHECK_PLACED(call, name) \
    do { \
        (void)(call); \
        CHECK_CONTAINS(eg_error_message(), name ": "); \
        CHECK_CONTAINS(eg_error_message(), "(at weights.c:"); \
        eg_error_clear(); \
    } while (0)
TEST(errors_of_files_name_the_call_and_its_line) {
    static const char text[] = "good day to you, this is no file", garbage[] = "garbage.safetensors";
    eg_checkpoint *c = eg_checkpoint_new();
    eg_layer *l = eg_layer_dense(2);
    CHECK(eg_layer_build(l, EG_SHAPE(1, 3)));
    CHECK(eg_memory_file_add(garbage, text, sizeof text - 1));
    CHECK_PLACED(eg_checkpoint_restore(c, garbage), "eg_checkpoint_restore");
    CHECK_PLACED(eg_archive_load(garbage), "eg_archive_load");
    CHECK_PLACED(eg_model_load(garbage), "eg_model_load");
    CHECK_PLACED(eg_save_weights(l, "/dev/null/x.safetensors"), "eg_save_weights");
    CHECK_PLACED(eg_model_save(l, "/dev/null/x.safetensors"), "eg_model_save");
    CHECK_PLACED(eg_load_npy("/no folder/x.npy"), "eg_load_npy");
    CHECK_PLACED(eg_set_device("no device"), "eg_set_device");
    CHECK(eg_memory_file_remove(garbage));
    eg_layer_release(l);
    eg_checkpoint_release(c);
}
