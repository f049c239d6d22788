// Checkpoints: numbered files, restoring before and after variables exist, what is missing or does not fit, and
// training that is stopped anywhere and goes on with the same bits. What a crash in a save leaves behind is in
// checkpoints_kill.c.
#include "faults.h"

#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

static bool there(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f != NULL;
}

TEST(many_that_wait) {                                       // each layer gets its value, however many checkpoints wait
    enum { MANY = 40 };
    eg_layer *all[MANY], *first = eg_layer_dense(2, .input_shape = EG_SHAPE(3), .kernel_initializer = EG_INIT_CONSTANT,
                                                 .kernel_initializer_value = 7);
    eg_checkpoint *waiting[MANY], *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "m", first) && eg_checkpoint_save(c, test_temp("many")) != NULL);
    for (int i = 0; i < MANY; i++) {
        all[i] = eg_layer_dense(2);
        waiting[i] = eg_checkpoint_new();
        CHECK(eg_checkpoint_track_layer(waiting[i], "m", all[i]) &&
              eg_checkpoint_restore(waiting[i], test_temp("many-1")));
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_TENSOR(eg_call(all[i], eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), 0, 21, 21);
        CHECK(eg_checkpoint_assert_consumed(waiting[i]));
        eg_checkpoint_release(waiting[i]);
        eg_layer_release(all[i]);
    }
    eg_checkpoint_release(c);
    eg_layer_release(first);
}

TEST(numbers_of_saves) {
    eg_tensor *x = eg_variable(eg_scalar(2), "x");
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "x", x));
    CHECK(eg_checkpoint_latest(test_temp("numbers")) == NULL);
    CHECK(eg_checkpoint_latest(test_temp("numbers/x")) == NULL);
    CHECK(eg_checkpoint_restore(c, eg_checkpoint_latest(test_temp("numbers"))));          // none: nothing happens
    CHECK_STR(eg_checkpoint_save(c, test_temp("numbers/x")), test_temp("numbers/x-1.safetensors"));
    eg_assign(x, 11);
    CHECK(eg_checkpoint_restore(c, test_temp("numbers/x-1.safetensors")));
    CHECK_TENSOR(x, 0, 2);
    eg_assign(x, 3);
    CHECK_STR(eg_checkpoint_save(c, test_temp("numbers/x")), test_temp("numbers/x-2.safetensors"));
    CHECK(eg_checkpoint_restore(c, test_temp("numbers/x-1")));                             // the ending may be left out
    CHECK_TENSOR(x, 0, 2);
    eg_checkpoint_release(c);
    c = eg_checkpoint_new();  // another program: the counter is in the file
    CHECK(eg_checkpoint_track(c, "x", x));
    CHECK_STR(eg_checkpoint_latest(test_temp("numbers")), test_temp("numbers/x-2.safetensors"));
    CHECK_STR(eg_checkpoint_latest(test_temp("numbers/x")), test_temp("numbers/x-2.safetensors"));
    CHECK(eg_checkpoint_restore(c, eg_checkpoint_latest(test_temp("numbers/"))));
    CHECK_TENSOR(x, 0, 3);
    CHECK_STR(eg_checkpoint_save(c, test_temp("numbers/x")), test_temp("numbers/x-3.safetensors"));
    for (int i = 4; i <= 11; i++) CHECK(eg_checkpoint_save(c, test_temp("numbers/x")));
    // by number, not by letters
    CHECK_STR(eg_checkpoint_latest(test_temp("numbers/x")), test_temp("numbers/x-11.safetensors"));
    CHECK(eg_checkpoint_latest(test_temp("numbers/y")) == NULL);
    // a folder of the prefix's name, with files of a higher number
    CHECK(eg_checkpoint_save(c, test_temp("numbers/x/other")) != NULL);
    CHECK_STR(eg_checkpoint_latest(test_temp("numbers/x")), test_temp("numbers/x-11.safetensors"));
    CHECK_STR(eg_checkpoint_latest(test_temp("numbers/x/")), test_temp("numbers/x/other-12.safetensors"));
    eg_checkpoint_release(c);
    c = eg_checkpoint_new();                             // begun anew in a folder with checkpoints: none is overwritten
    CHECK(eg_checkpoint_track(c, "x", x));
    CHECK_STR(eg_checkpoint_save(c, test_temp("numbers/x")), test_temp("numbers/x-12.safetensors"));
    eg_archive *a = eg_load_safetensors(test_temp("numbers/x-12.safetensors"));
    CHECK_STR(eg_archive_text(a, "save_counter"), "12");
    CHECK_STR(eg_archive_text(a, "eager_checkpoint"), "1");
    eg_archive_release(a);
    eg_checkpoint *again = eg_checkpoint_retain(c);
    eg_checkpoint_release(c);
    eg_checkpoint_release(again);
    eg_checkpoint_release(NULL);
    eg_release(x);
}
TEST(of_two_prefixes_in_a_folder_the_newest_is_the_latest) {
    eg_tensor *x = eg_variable(eg_scalar(2), "x");
    static const char *const order[] = { "two/a", "two/a", "two/a", "two/b", "two/a", "two/b.npz", "two/b-2", "two/b",
                                         "two/a", "two/c" };
    int64_t number[4] = { 0 };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        eg_checkpoint *c = eg_checkpoint_new();              // of its own, so that each prefix counts for itself
        CHECK(eg_checkpoint_track(c, "x", x));
        char want[64];
        int prefix = order[i][4] == 'a' ? 0 : order[i][4] == 'c' ? 1 : strchr(order[i], '-') ? 2 : 3;
        const char *end = strchr(order[i], '.');
        snprintf(want, sizeof want, "%.*s-%d%s", (int)(end ? end - order[i] : 99), order[i], (int)++number[prefix],
                 end ? end : ".safetensors");
        CHECK_STR(eg_checkpoint_save(c, test_temp(order[i])), test_temp(want));
        CHECK_STR(eg_checkpoint_latest(test_temp("two")), test_temp(want));  // however fast they follow on one another
        eg_checkpoint_release(c);
    }
    CHECK_STR(eg_checkpoint_latest(test_temp("two/a")), test_temp("two/a-5.safetensors"));
    CHECK_STR(eg_checkpoint_latest(test_temp("two/b")), test_temp("two/b-3.safetensors"));
    eg_release(x);
}
TEST(npz_checkpoints) {
    eg_tensor *x = eg_variable(eg_scalar(2), "x");
    int64_t step = (int64_t)1 << 62;
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "x", x) && eg_checkpoint_track_number(c, "step", &step));
    CHECK_STR(eg_checkpoint_save(c, test_temp("z.npz")), test_temp("z-1.npz"));
    eg_assign(x, 5);
    step = 0;
    CHECK(eg_checkpoint_restore(c, test_temp("z-1")));
    CHECK_TENSOR(x, 0, 2);
    CHECK(step == (int64_t)1 << 62);
    CHECK(eg_checkpoint_assert_consumed(c));
    eg_archive *a = eg_load_npz(test_temp("z-1.npz"));
    CHECK_STR(eg_archive_text(a, "step"), "4611686018427387904");
    eg_archive_release(a);
    eg_checkpoint_release(c);
    eg_release(x);
}
TEST(the_last_n_are_kept) {
    eg_tensor *x = eg_variable(eg_scalar(0), "x");
    eg_checkpoint *c = eg_checkpoint_new(.keep = 3);
    CHECK(eg_checkpoint_track(c, "x", x));
    for (int i = 1; i <= 5; i++) {
        char name[64];
        CHECK(eg_checkpoint_save(c, test_temp("keep/k")));
        CHECK(eg_checkpoint_save(c, test_temp("keep/other")));  // counts on, and is not touched by the other's tidying
        snprintf(name, sizeof name, "keep/k-%d.safetensors", 2 * i - 1);
        CHECK(there(test_temp(name)));
        snprintf(name, sizeof name, "keep/k-%d.safetensors", 2 * i - 7);
        CHECK(!there(test_temp(name)));
        snprintf(name, sizeof name, "keep/k-%d.safetensors", 2 * i - 5);
        CHECK(i < 3 || there(test_temp(name)));
    }
    CHECK(there(test_temp("keep/other-10.safetensors")) && there(test_temp("keep/other-6.safetensors")) &&
          !there(test_temp("keep/other-4.safetensors")));
    CHECK_ERROR(eg_checkpoint_new(.keep = -1), EG_ERROR_ARGUMENT, ".keep is -1");
    eg_checkpoint_release(c);
    eg_release(x);
}
TEST(what_cannot_be_tracked_or_restored) {
    eg_tensor *x = eg_variable(eg_scalar(0), "x");
    int64_t n = 0;
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "x", x));
    CHECK_ERROR(eg_checkpoint_track(c, "x", x), EG_ERROR_ARGUMENT, "something is tracked as 'x' already");
    CHECK_ERROR(eg_checkpoint_track(c, "y", eg_scalar(1)), EG_ERROR_ARGUMENT, "no variable");
    CHECK_ERROR(eg_checkpoint_track(c, "", x), EG_ERROR_ARGUMENT, "the name is empty");
    CHECK_ERROR(eg_checkpoint_track(c, NULL, x), EG_ERROR_ARGUMENT, "the name is NULL");
    CHECK_ERROR(eg_checkpoint_track(c, "y", NULL), EG_ERROR_NULL, "is NULL");
    CHECK_ERROR(eg_checkpoint_track_layer(c, "y", NULL), EG_ERROR_NULL, "is NULL");
    CHECK_ERROR(eg_checkpoint_track_optimizer(NULL, "y", NULL), EG_ERROR_NULL, "the checkpoint is NULL");
    CHECK_ERROR(eg_checkpoint_track_iterator(c, "y", NULL), EG_ERROR_NULL, "is NULL");
    CHECK_ERROR(eg_checkpoint_track_number(c, "x", &n), EG_ERROR_ARGUMENT, "already");
    CHECK_ERROR(eg_checkpoint_restore(c, test_temp("missing")), EG_ERROR_FILE,
                "missing: there is no such .safetensors or .npz file");
    CHECK_ERROR(eg_checkpoint_restore(c, test_temp("missing-1.npz")), EG_ERROR_FILE, "missing-1.npz: cannot be opened");
    CHECK_ERROR(eg_checkpoint_save(c, ""), EG_ERROR_ARGUMENT, "the prefix is empty");
    CHECK_ERROR(eg_checkpoint_save(NULL, "x"), EG_ERROR_NULL, "the checkpoint is NULL");
    CHECK_ERROR(eg_checkpoint_latest(NULL), EG_ERROR_ARGUMENT, "the prefix is NULL");
    eg_checkpoint_options three = { .canary = 3 };  // a 3 where a name is missing
    CHECK_ERROR((eg_checkpoint_new)(three), EG_ERROR_ARGUMENT,
                "eg_checkpoint_new: options are given by name, as in .keep = 3");
    CHECK_ERROR(eg_checkpoint_assert_consumed(c), EG_ERROR_STATE, "nothing was restored");
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "x", 1) && eg_archive_set_text(a, "eager_checkpoint", "2") &&
          eg_save_npz(a, test_temp("newer-1.npz")));
    CHECK_ERROR(eg_checkpoint_restore(c, test_temp("newer-1.npz")), EG_ERROR_FILE,
                "a checkpoint of version 2; this library reads version 1");
    CHECK_TENSOR(x, 0, 0);
    eg_archive_release(a);
    eg_checkpoint_release(c);
    eg_release(x);
}
TEST(misfits_are_listed_and_nothing_changes) {
    eg_tensor *a = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "a"),
              *b = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(3)), "b"), *d = eg_variable(eg_scalar(7), "d");
    int64_t step = 5;
    eg_archive *file = eg_archive_new();
    CHECK(eg_archive_add(file, "a", eg_zeros(EG_FLOAT32, EG_SHAPE(2))) &&
          eg_archive_add(file, "b", eg_zeros(EG_FLOAT32, EG_SHAPE(4))) &&
          eg_archive_add(file, "step", eg_zeros(EG_INT32, EG_SHAPE(1))) && eg_archive_add(file, "old", 1));
    CHECK(eg_save_safetensors(file, test_temp("m-1.safetensors")));
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "a", a) && eg_checkpoint_track(c, "b", b) && eg_checkpoint_track(c, "d", d) &&
          eg_checkpoint_track_number(c, "step", &step));
    CHECK_ERROR(eg_checkpoint_restore(c, test_temp("m-1")), EG_ERROR_SHAPE,
                "m-1.safetensors: 2 of another shape: 'b' (float32 [3] here, float32 [4] there), 'step'");
    CHECK_TENSOR(a, 0, 1, 1);
    CHECK_INT(step, 5);
    CHECK_ERROR(eg_checkpoint_assert_existing_objects_matched(c), EG_ERROR_STATE, "nothing was restored");
    eg_checkpoint_release(c);
    c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "a", a) && eg_checkpoint_track(c, "d", d));
    CHECK(eg_checkpoint_restore(c, test_temp("m-1")));
    CHECK_TENSOR(a, 0, 0, 0);
    CHECK_ERROR(eg_checkpoint_assert_existing_objects_matched(c), EG_ERROR_ASSERT, "1 missing: 'd'");
    CHECK_ERROR(eg_checkpoint_assert_consumed(c), EG_ERROR_ASSERT, "1 missing: 'd'; 3 unexpected: 'b', 'step', 'old'");
    eg_archive_release(file);
    eg_checkpoint_release(c);
    eg_release(a);
    eg_release(b);
    eg_release(d);
}

// ---- restoring before the variables exist

TEST(values_arrive_as_variables_are_tracked) {
    eg_tensor *x = eg_variable(eg_scalar(4), "x"), *y = eg_variable(eg_scalar(5), "y");
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "x", x) && eg_checkpoint_track(c, "y", y) && eg_checkpoint_save(c, test_temp("late")));
    eg_checkpoint_release(c);
    eg_assign(x, 0);
    eg_assign(y, 0);
    c = eg_checkpoint_new();
    CHECK(eg_checkpoint_restore(c, test_temp("late-1")));
    CHECK_ERROR(eg_checkpoint_assert_consumed(c), EG_ERROR_ASSERT, "2 unexpected: 'x', 'y'");
    CHECK(eg_checkpoint_assert_existing_objects_matched(c));
    CHECK(eg_checkpoint_track(c, "x", x));
    CHECK_TENSOR(x, 0, 4);
    eg_tensor *wrong = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), "y");
    CHECK_ERROR(eg_checkpoint_track(c, "y", wrong), EG_ERROR_SHAPE, "eg_checkpoint_track: ");
    eg_release(wrong);
    CHECK_ERROR(eg_checkpoint_assert_consumed(c), EG_ERROR_ASSERT, "1 unexpected: 'y'");
    eg_assign(x, 9);                                     // what has its value is left alone
    CHECK(eg_checkpoint_track(c, "y", y));
    CHECK_TENSOR(x, 0, 9);
    CHECK_TENSOR(y, 0, 5);
    CHECK(eg_checkpoint_assert_consumed(c));
    eg_checkpoint_release(c);
    eg_release(x);
    eg_release(y);
}
static eg_tensor *drop(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_training()
           ? eg_mul(in[0], eg_cast(eg_random_bernoulli(eg_shape_of(in[0]), .probability = 0.6), EG_FLOAT32)) : in[0];
}
static eg_layer *dropout_model(void) {
    return eg_sequential(eg_layer_dense(8, .activation = EG_TANH), eg_layer_custom("drop", drop, NULL),
                         eg_layer_dense(8, .activation = EG_TANH), eg_layer_custom("drop", drop, NULL),
                         eg_layer_dense(2));
}
TEST(values_that_arrived_outlive_a_call_that_fails) {
    eg_layer *first = eg_sequential(eg_layer_dense(3), eg_layer_conv2d(4, 3)),
             *second = eg_sequential(eg_layer_dense(3), eg_layer_conv2d(4, 3));
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 5, 5, 2)), *y = eg_call(first, x);
    eg_checkpoint *c = eg_checkpoint_new(), *d = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "m", first) && eg_checkpoint_save(c, test_temp("outlive")));
    CHECK(eg_checkpoint_track_layer(d, "m", second) && eg_checkpoint_restore(d, test_temp("outlive-1")));
    CHECK_ERROR(eg_call(second, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2))), EG_ERROR_SHAPE, "Conv2D");  // behind the Dense
    CHECK_SAME(eg_call(second, x), y, 0);
    CHECK(eg_checkpoint_assert_consumed(d));
    eg_checkpoint_release(c);
    eg_checkpoint_release(d);
    eg_layer_release(first);
    eg_layer_release(second);
}
TEST(values_arrive_as_layers_are_built) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(4, 3));
    eg_layer *m = dropout_model(), *late = dropout_model(), *other = eg_sequential(eg_layer_dense(5)),
             *narrow = eg_sequential(eg_layer_dense(7));
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "model", m) && eg_checkpoint_track_random(c));
    eg_tensor *first = eg_call(m, x);
    CHECK(first && eg_checkpoint_save(c, test_temp("layers")));
    eg_tensor *with_dropout = eg_call(m, x, .training = true);
    eg_checkpoint_release(c);

    c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "model", late) && eg_checkpoint_track_random(c));
    CHECK(eg_checkpoint_restore(c, test_temp("layers-1")));
    CHECK_ERROR(eg_checkpoint_assert_consumed(c), EG_ERROR_ASSERT,
                "6 unexpected: 'model/dense/kernel', 'model/dense/bias'");
    // the first call, with the weights and the random numbers restored
    CHECK_SAME(eg_call(late, x, .training = true), with_dropout, 0);
    CHECK(eg_checkpoint_assert_consumed(c));
    CHECK_SAME(eg_call(late, x), first, 0);
    eg_checkpoint_release(c);

    c = eg_checkpoint_new();  // a model of other sizes fails as it is built; one it does not track is not touched
    CHECK(eg_checkpoint_track_layer(c, "model", narrow) && eg_checkpoint_restore(c, test_temp("layers-1")));
    CHECK(eg_call(other, x) != NULL);
    CHECK_ERROR(eg_call(narrow, x), EG_ERROR_SHAPE, "'model/dense/kernel' (float32 [3, 7] here, float32 [3, 8] there)");
    eg_checkpoint_release(c);
    CHECK(eg_call(narrow, x) != NULL);
    eg_layer_release(m);
    eg_layer_release(late);
    eg_layer_release(other);
    eg_layer_release(narrow);
}
TEST(layers_made_while_another_waits_are_random) {
    eg_tensor *x = eg_random_normal(EG_SHAPE(4, 8));
    eg_layer *m = eg_sequential(eg_layer_dense(2)), *next = eg_sequential(eg_layer_dense(8), eg_layer_dense(8));
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "model/dense/kernel", eg_zeros(EG_FLOAT32, EG_SHAPE(8, 2))) &&
          eg_save_npz(a, test_temp("wait-1.npz")));
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_layer(c, "model", m) && eg_checkpoint_restore(c, test_temp("wait-1.npz")));
    eg_tensor *w[4];
    CHECK(eg_call(next, x) != NULL);
    CHECK_INT(eg_layer_weights(next, w, 4), 4);
    CHECK(eg_item(eg_reduce_sum(eg_abs(eg_sub(w[0], w[2])))) > 0.1);
    eg_checkpoint_release(c);
    eg_archive_release(a);
    eg_layer_release(m);
    eg_layer_release(next);
}

#ifndef EAGER_NO_THREADS
// Each thread restores before its model is made; a weight finds the checkpoint of its own thread.
static char late_path[4096];
static void *restore_late(void *user) {
    bool *good = (bool *)user;
    eg_set_device(test_device());
    for (int i = 0; i < 20 && *good; i++) {
        EG_SCOPE;
        eg_layer *m = eg_sequential(eg_layer_dense(3), eg_layer_dense(1));
        eg_checkpoint *c = eg_checkpoint_new();
        eg_tensor *y;
        *good = eg_checkpoint_track_layer(c, "m", m) && eg_checkpoint_restore(c, late_path) &&
                (y = eg_call(m, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2)))) != NULL && eg_item(y) == 6 &&
                eg_checkpoint_assert_consumed(c);
        eg_checkpoint_release(c);
        eg_layer_release(m);
    }
    return NULL;
}
TEST(threads_restore_their_own) {
    eg_layer *m = eg_sequential(eg_layer_dense(3, .kernel_initializer = EG_INIT_ONES),
                                eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES));
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_layer_build(m, EG_SHAPE(-1, 2)) && eg_checkpoint_track_layer(c, "m", m) &&
          eg_checkpoint_save(c, test_temp("threads")));
    snprintf(late_path, sizeof late_path, "%s", test_temp("threads-1.safetensors"));
    pthread_t threads[4];
    bool good[4] = { true, true, true, true };
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, restore_late, &good[i]);
    for (int i = 0; i < 4; i++) { pthread_join(threads[i], NULL); CHECK(good[i]); }
    eg_checkpoint_release(c);
    eg_layer_release(m);
}
#endif

// ---- training that is stopped and goes on

typedef struct training {
    eg_layer *model; eg_optimizer *optimizer; eg_iterator *data; int64_t step; eg_checkpoint *checkpoint; double loss;
} training;

static eg_dataset *numbers(void) {
    EG_SCOPE;
    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 0, 60, 1), EG_SHAPE(20, 3));
    eg_tensor *y = eg_cast(eg_mod(eg_range(EG_INT32, 0, 20, 1), 2), EG_INT32);
    return eg_dataset_batch(eg_dataset_repeat(eg_dataset_shuffle(eg_dataset_from_slices(eg_div(x, 60), y), 8,
                                                                 .seed = 7), -1), 4);
}
static void training_begin(training *t, eg_optimizer *optimizer, bool build_first) {
    t->model = dropout_model();
    t->optimizer = optimizer;
    eg_dataset *d = numbers();
    t->data = eg_iterator_new(d);
    eg_dataset_release(d);
    t->step = 0;
    t->checkpoint = eg_checkpoint_new();
    EG_SCOPE;
    if (build_first) CHECK(eg_call(t->model, eg_zeros(EG_FLOAT32, EG_SHAPE(1, 3))) != NULL);
    CHECK(eg_checkpoint_track_layer(t->checkpoint, "model", t->model) &&
          eg_checkpoint_track_optimizer(t->checkpoint, "adam", t->optimizer) &&
          eg_checkpoint_track_iterator(t->checkpoint, "data", t->data) &&
          eg_checkpoint_track_number(t->checkpoint, "step", &t->step) && eg_checkpoint_track_random(t->checkpoint));
}
static void training_step(training *t) {
    EG_SCOPE;
    eg_tensor *batch[EG_MAX_COMPONENTS], *vars[8], *grads[8];
    REQUIRE(eg_iterator_next(t->data, batch) == EG_NEXT);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_reduce_mean(
        eg_sparse_softmax_cross_entropy_with_logits(batch[1], eg_call(t->model, batch[0], .training = true)));
    int n = eg_layer_trainable_weights(t->model, vars, 8);
    CHECK(eg_tape_gradients(tape, loss, vars, n, grads) && eg_apply_gradients(t->optimizer, grads, vars, n));
    t->loss = eg_item(loss);
    t->step++;
}
static void training_end(training *t) {
    eg_checkpoint_release(t->checkpoint);
    eg_iterator_release(t->data);
    eg_optimizer_release(t->optimizer);
    eg_layer_release(t->model);
}
static bool same_training(training *a, training *b) {
    eg_tensor *x[64], *y[64];
    int n = eg_layer_weights(a->model, x, 32), m = eg_layer_weights(b->model, y, 32);
    bool same = n == m && a->step == b->step && a->loss == b->loss;
    n += eg_optimizer_state(a->optimizer, x + n, 64 - n);
    m += eg_optimizer_state(b->optimizer, y + m, 64 - m);
    same = same && n == m;
    for (int i = 0; i < n && same; i++)
        same = eg_size(x[i]) == eg_size(y[i]) &&
               memcmp(eg_data(x[i]), eg_data(y[i]), (size_t)(eg_size(x[i]) * eg_dtype_size(eg_dtype_of(x[i])))) == 0;
    return same;
}
static eg_optimizer *optimizers(int kind) {
    if (kind == 0) return eg_adam(.learning_rate = 0.05);
    if (kind == 1) return eg_adam(.learning_rate = 0.05, .accumulate_steps = 3, .amsgrad = true);
    if (kind == 2) return eg_sgd(.schedule = eg_exponential_decay(0.1, 2, 0.9, false), .momentum = 0.9);
    return eg_ftrl(.learning_rate = 0.1);
}
TEST(stopped_at_any_step_it_ends_with_the_same_bits) {
    enum { STEPS = 12 };
    for (int kind = 0; kind < 4; kind++)
        for (int late = 0; late < 2; late++) {
            eg_seed(5);
            training whole;
            char prefix[64], path[80];
            snprintf(prefix, sizeof prefix, "resume%d%d/t", kind, late);
            training_begin(&whole, optimizers(kind), true);
            for (int i = 0; i < STEPS; i++) {
                CHECK(eg_checkpoint_save(whole.checkpoint, test_temp(prefix)));
                training_step(&whole);
            }
            for (int stop = 0; stop < STEPS; stop += test_share > 1 ? 5 : 1) {
                training again;
                eg_seed((uint64_t)stop + 100);
                training_begin(&again, optimizers(kind), !late);
                training_step(&again);                   // it did something else before
                if (late) { training_end(&again); training_begin(&again, optimizers(kind), false); }
                snprintf(path, sizeof path, "%s-%d", prefix, stop + 1);
                CHECK(eg_checkpoint_restore(again.checkpoint, test_temp(path)));
                if (!late) CHECK(eg_checkpoint_assert_consumed(again.checkpoint));
                CHECK_INT(again.step, stop);
                while (again.step < STEPS) training_step(&again);
                CHECK(eg_checkpoint_assert_existing_objects_matched(again.checkpoint) ||
                      (stop == 0 && (eg_error_clear(), true)));
                CHECK(same_training(&again, &whole));
                if (stop) CHECK(eg_checkpoint_assert_consumed(again.checkpoint));
                training_end(&again);
            }
            training_end(&whole);
        }
}
TEST(slots_come_back_behind_long_names) {
    char name[101];
    memset(name, 'n', 100);
    name[100] = 0;
    for (int length = 79; length <= 100; length += 21) {
        EG_SCOPE;
        eg_tensor *v = eg_variable(eg_scalar(1), "v"), *g = eg_scalar(1), *state[8];
        for (int load = 0; load < 2; load++) {
            eg_optimizer *o = eg_sgd(.learning_rate = 0.1, .momentum = 0.9);
            eg_checkpoint *c = eg_checkpoint_new();
            name[99] = length == 100 ? 'n' : 0;
            CHECK(eg_checkpoint_track(c, "v", v) && eg_checkpoint_track_optimizer(c, name, o));
            if (!load) CHECK(eg_apply_gradients(o, &g, &v, 1) && eg_checkpoint_save(c, test_temp("long/names")));
            else {
                CHECK(eg_checkpoint_restore(c, eg_checkpoint_latest(test_temp("long/names"))) &&
                      eg_checkpoint_assert_consumed(c));
                int n = eg_optimizer_state(o, state, 8);
                CHECK(n >= 2);
            }
            eg_checkpoint_release(c);
            eg_optimizer_release(o);
        }
        eg_release(v);
    }
}
TEST(a_model_of_100_layers) {
    EG_SCOPE;
    enum { LAYERS = 100 };
    eg_layer *deep[2];
    eg_optimizer *adam[2];
    eg_checkpoint *c[2];
    eg_tensor *x = eg_random_normal(EG_SHAPE(4, 6)), *vars[2][2 * LAYERS], *grads[2 * LAYERS];
    for (int k = 0; k < 2; k++) {
        deep[k] = eg_sequential();
        for (int i = 0; i < LAYERS; i++) CHECK(eg_layer_add(deep[k], eg_layer_dense(6, .activation = EG_TANH)));
        adam[k] = eg_adam(.learning_rate = 0.01);
        c[k] = eg_checkpoint_new();
        CHECK(eg_checkpoint_track_layer(c[k], "deep", deep[k]) && eg_checkpoint_track_optimizer(c[k], "adam", adam[k]));
    }
    for (int step = 0; step < 6; step++)
        for (int k = step < 3 ? 0 : 1; k >= 0; k--) {
            EG_SCOPE;
            if (step == 3 && k == 1) {
                CHECK(eg_checkpoint_save(c[0], test_temp("deep")));
                CHECK(eg_checkpoint_restore(c[1], test_temp("deep-1")));
            }
            eg_tape *tape = eg_tape_begin();
            eg_tensor *loss = eg_reduce_mean(eg_square(eg_call(deep[k], x)));
            CHECK_INT(eg_layer_weights(deep[k], vars[k], 2 * LAYERS), 2 * LAYERS);
            CHECK(eg_tape_gradients(tape, loss, vars[k], 2 * LAYERS, grads) &&
                  eg_apply_gradients(adam[k], grads, vars[k], 2 * LAYERS));
        }
    CHECK(eg_checkpoint_assert_consumed(c[1]));
    for (int i = 0; i < 2 * LAYERS; i++)
        CHECK(memcmp(eg_data(vars[0][i]), eg_data(vars[1][i]), (size_t)eg_size(vars[0][i]) * 4) == 0);
    CHECK(eg_save_weights(deep[0], test_temp("deep.safetensors")) &&
          eg_load_weights(deep[1], test_temp("deep.safetensors")));
    for (int k = 0; k < 2; k++) {
        eg_checkpoint_release(c[k]);
        eg_optimizer_release(adam[k]);
        eg_layer_release(deep[k]);
    }
}
TEST(back_to_a_checkpoint_from_before_the_first_step) {
    eg_tensor *v = eg_variable(eg_scalar(1), "v"), *g = eg_scalar(0.5);
    eg_optimizer *adam = eg_adam(.learning_rate = 0.1);
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "v", v) && eg_checkpoint_track_optimizer(c, "adam", adam) &&
          eg_checkpoint_save(c, test_temp("first")));
    CHECK(eg_apply_gradients(adam, &g, &v, 1) && eg_apply_gradients(adam, &g, &v, 1));
    double after = eg_item(v);
    CHECK(eg_checkpoint_restore(c, test_temp("first-1")));
    CHECK_INT(eg_optimizer_steps(adam), 0);
    CHECK(eg_apply_gradients(adam, &g, &v, 1) && eg_apply_gradients(adam, &g, &v, 1));
    CHECK(eg_item(v) == after);
    eg_tensor *untracked = eg_variable(eg_scalar(1), "u");              // its slots are not saved, nor taken away
    CHECK(eg_apply_gradients(adam, &g, &untracked, 1));
    CHECK(eg_checkpoint_save(c, test_temp("first")) && eg_checkpoint_restore(c, test_temp("first-2")));
    CHECK(eg_checkpoint_assert_consumed(c));
    CHECK_INT(eg_optimizer_state(adam, NULL, 0), 6);
    eg_checkpoint_release(c);
    eg_optimizer_release(adam);
    eg_release(v);
    eg_release(untracked);
}
// A file with slots for variables that have none yet, and something that does not fit: nothing of it is left behind.
TEST(a_failed_restore_leaves_no_slots) {
    eg_tensor *v = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(3)), "v"),
              *w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2)), "w"), *g[2];
    eg_tensor *both[2] = { v, w };
    int64_t step = 1;
    g[0] = eg_ones(EG_FLOAT32, EG_SHAPE(3));
    g[1] = eg_ones(EG_FLOAT32, EG_SHAPE(2));
    eg_dataset *d = numbers();
    for (int turn = 0; turn < 4; turn++) {  // 0 writes the file; then a shape, an iterator and a number do not fit
        eg_optimizer *adam = eg_adam();
        eg_iterator *it = eg_iterator_new(d);
        eg_dataset *shorter = eg_dataset_take(eg_dataset_retain(d), 1);
        eg_iterator *other = eg_iterator_new(shorter);
        eg_tensor *u = eg_variable(eg_zeros(EG_FLOAT32, turn == 1 ? EG_SHAPE(5) : EG_SHAPE(4)), "u"),
                  *x[EG_MAX_COMPONENTS];
        eg_checkpoint *c = eg_checkpoint_new();
        CHECK(eg_apply_gradients(adam, g, both, turn ? 1 : 2));  // slots of w are not there when it is restored
        CHECK(eg_iterator_next(it, x) == EG_NEXT && (turn || eg_iterator_next(it, x) == EG_NEXT));
        CHECK(eg_checkpoint_track(c, "v", v) && eg_checkpoint_track(c, "w", w) &&
              eg_checkpoint_track_optimizer(c, "adam", adam) && eg_checkpoint_track_iterator(c, "it", it) &&
              eg_checkpoint_track_iterator(c, "z", turn == 2 ? other : it) && eg_checkpoint_track(c, "u", u) &&
              (turn == 3 ? eg_checkpoint_track(c, "step", u) : eg_checkpoint_track_number(c, "step", &step)));
        if (turn == 0) CHECK(eg_checkpoint_save(c, test_temp("slots")));
        else {
            eg_tensor *before = eg_iterator_position(it), *v_before = eg_read(v), *w_before = eg_read(w);
            int64_t live = eg_memory().live_tensors;
            CHECK_INT(eg_optimizer_state(adam, NULL, 0), 4);
            CHECK_ERROR(eg_checkpoint_restore(c, test_temp("slots-1")), turn == 2 ? EG_ERROR_STATE : EG_ERROR_SHAPE,
                        turn == 1 ? "'u'"
                        : turn == 2 ? "another pipeline"
                        : "'step'");
            CHECK_INT(eg_memory().live_tensors, live);
            CHECK_INT(eg_optimizer_state(adam, NULL, 0), 4);
            CHECK_INT(eg_optimizer_steps(adam), 1);
            CHECK_SAME(eg_iterator_position(it), before, 0);
            CHECK_SAME(v, v_before, 0);
            CHECK_SAME(w, w_before, 0);
        }
        eg_checkpoint_release(c);
        eg_iterator_release(it);
        eg_iterator_release(other);
        eg_dataset_release(shorter);
        eg_optimizer_release(adam);
        eg_release(u);
    }
    eg_dataset_release(d);
    eg_release(v);
    eg_release(w);
}
TEST(iterators_go_back_when_another_cannot) {
    eg_dataset *d = numbers();
    eg_iterator *a = eg_iterator_new(d), *b = eg_iterator_new(d);
    eg_tensor *x[EG_MAX_COMPONENTS], *wanted;
    eg_archive *file = eg_archive_new();
    CHECK(eg_archive_add(file, "a", eg_iterator_position(a)) &&
          eg_archive_add(file, "b", eg_zeros(EG_UINT8, EG_SHAPE(50))));
    CHECK(eg_save_npz(file, test_temp("positions-1.npz")));
    CHECK(eg_iterator_next(a, x) == EG_NEXT && eg_iterator_next(a, x) == EG_NEXT && eg_iterator_next(b, x) == EG_NEXT);
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track_iterator(c, "a", a) && eg_checkpoint_track_iterator(c, "b", b));
    wanted = eg_iterator_position(a);
    CHECK(!eg_checkpoint_restore(c, test_temp("positions-1.npz")));
    CHECK(eg_error() != EG_OK);
    eg_error_clear();
    CHECK_SAME(eg_iterator_position(a), wanted, 0);
    eg_archive_release(file);
    eg_checkpoint_release(c);
    eg_iterator_release(a);
    eg_iterator_release(b);
    eg_dataset_release(d);
}

// ---- odd names, odd counters, no room

static void touch(const char *name) {
    FILE *f = fopen(name, "wb");
    CHECK(f != NULL);
    if (f) fclose(f);
}
TEST(files_that_are_no_checkpoints_of_a_prefix) {
    static const char *const others[] = { "x-.safetensors", "x-1234567890123456789.safetensors", "5.safetensors",
                                          "x5.npz", "y-30.npz", "x-40.txt", "xx-50.npz", "x-60.npz.12345678.part",
                                          "-70.npz", "x--4.npz", "x/" };
    eg_tensor *v = eg_variable(eg_scalar(1), "v");
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "v", v));
    CHECK_STR(eg_checkpoint_save(c, test_temp("odd/x")), test_temp("odd/x-1.safetensors"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char name[64];
        snprintf(name, sizeof name, "odd/%s", others[i]);
        if (!strchr(others[i], '/')) touch(test_temp(name));
    }
    CHECK_STR(eg_checkpoint_latest(test_temp("odd/x")), test_temp("odd/x-1.safetensors"));
    // the numbers of a prefix are one row
    CHECK_STR(eg_checkpoint_latest(test_temp("odd/x.npz")), test_temp("odd/x-1.safetensors"));
    CHECK(eg_checkpoint_latest(test_temp("odd")) != NULL);
    CHECK_STR(eg_checkpoint_save(c, test_temp("odd/")), test_temp("odd/-71.safetensors"));
    CHECK_STR(eg_checkpoint_latest(test_temp("odd")), test_temp("odd/-71.safetensors"));
    CHECK_STR(eg_checkpoint_latest(test_temp("odd/y")), test_temp("odd/y-30.npz"));
    touch(test_temp("odd/x-7.npz"));
    touch(test_temp("odd/x-7.safetensors"));
    CHECK_STR(eg_checkpoint_latest(test_temp("odd/x")), test_temp("odd/x-7.safetensors"));
    CHECK_STR(eg_checkpoint_save(c, test_temp("odd/x.npz")), test_temp("odd/x-72.npz"));
    CHECK_STR(eg_checkpoint_latest(test_temp("odd/x")), test_temp("odd/x-72.npz"));
    eg_checkpoint_release(c);
    eg_release(v);
}
TEST(counters_that_are_no_numbers) {
    const struct {
        const char *counter; int64_t next;
    } rows[] = { { "12", 13 }, { "", 2 }, { "twelve", 2 }, { "-3", 2 }, { "9e15", 2 }, { "3.0", 4 }, { NULL, 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        eg_tensor *v = eg_variable(eg_scalar(1), "v");
        eg_archive *a = eg_archive_new();
        char name[64], next[64];
        snprintf(name, sizeof name, "counter/%d-1.npz", (int)i);
        snprintf(next, sizeof next, "counter/%d-%d.npz", (int)i, (int)rows[i].next);
        CHECK(eg_archive_add(a, "v", 5) && eg_archive_set_text(a, "save_counter", rows[i].counter) &&
              eg_save_npz(a, test_temp(name)));
        eg_checkpoint *c = eg_checkpoint_new();
        CHECK(eg_checkpoint_track(c, "v", v) && eg_checkpoint_restore(c, test_temp(name)));
        CHECK_NEAR(eg_item(v), 5, 0);
        snprintf(name, sizeof name, "counter/%d.npz", (int)i);
        CHECK_STR(eg_checkpoint_save(c, test_temp(name)), test_temp(next));
        eg_checkpoint_release(c);
        eg_archive_release(a);
        eg_release(v);
    }
}
TEST(random_states_that_are_none) {
    eg_random_state before = eg_random_get_state();
    for (int k = 0; k < 4; k++) {
        eg_archive *a = eg_archive_new();
        eg_tensor *x[] = { eg_zeros(EG_INT64, EG_SHAPE(3)), eg_zeros(EG_INT32, EG_SHAPE(2)),
                           eg_zeros(EG_INT64, EG_SHAPE(2, 1)), eg_constant_of(EG_INT64, EG_SHAPE(2), 77, 5) };
        CHECK(eg_archive_add(a, "random", x[k]) && eg_save_npz(a, test_temp("random-1.npz")));
        eg_checkpoint *c = eg_checkpoint_new();
        CHECK(eg_checkpoint_track_random(c));
        if (k < 3) {
            CHECK_ERROR(eg_checkpoint_restore(c, test_temp("random-1.npz")), EG_ERROR_SHAPE,
                        "1 of another shape: 'random'");
            CHECK(eg_random_get_state().seed == before.seed && eg_random_get_state().counter == before.counter);
        } else {
            CHECK(eg_checkpoint_restore(c, test_temp("random-1.npz")));
            CHECK(eg_random_get_state().seed == 77 && eg_random_get_state().counter == 5);
        }
        eg_checkpoint_release(c);
        eg_archive_release(a);
    }
    eg_random_set_state(before);
}
TEST(layers_that_cannot_be_built) {
    eg_layer *l = eg_layer_conv2d(2, 5, .input_shape = EG_SHAPE(3, 3, 1));
    eg_tensor *v = eg_variable(eg_scalar(1), "v");
    eg_checkpoint *c = eg_checkpoint_new(), *good = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(good, "v", v) && eg_checkpoint_save(good, test_temp("unbuilt")));
    CHECK(eg_checkpoint_track(c, "v", v) && eg_checkpoint_track_layer(c, "l", l));
    eg_assign(v, 2);
    CHECK_ERROR(eg_checkpoint_save(c, test_temp("never")), EG_ERROR_SHAPE, "conv2d");
    CHECK(!there(test_temp("never-1.safetensors")));
    CHECK_ERROR(eg_checkpoint_restore(c, test_temp("unbuilt-1")), EG_ERROR_SHAPE, "conv2d");
    CHECK_NEAR(eg_item(v), 2, 0);
    CHECK_ERROR(eg_save_weights(l, test_temp("never.npz")), EG_ERROR_SHAPE, "conv2d");
    CHECK_ERROR(eg_model_save(l, test_temp("never.npz")), EG_ERROR_SHAPE, "conv2d");
    CHECK(!there(test_temp("never.npz")));
    eg_checkpoint_release(c);
    eg_checkpoint_release(good);
    eg_layer_release(l);
    eg_release(v);
}
TEST(gradients_that_accumulate_for_what_is_not_tracked) {
    eg_tensor *v[2] = { eg_variable(eg_scalar(1), "v"), eg_variable(eg_scalar(1), "u") },
              *g[2] = { eg_scalar(1), eg_scalar(1) };
    eg_optimizer *o = eg_sgd(.learning_rate = 0.5, .accumulate_steps = 2);
    eg_checkpoint *c = eg_checkpoint_new();
    CHECK(eg_checkpoint_track(c, "v", v[0]) && eg_checkpoint_track_optimizer(c, "o", o) &&
          eg_apply_gradients(o, g, v, 2) && eg_checkpoint_save(c, test_temp("halfway")));
    eg_archive *a = eg_archive_load(test_temp("halfway-1.safetensors"));
    CHECK(eg_archive_has(a, "o/v/given") && eg_archive_has(a, "o/v/accumulated"));
    for (int64_t i = 0; i < eg_archive_count(a); i++) CHECK(!strstr(eg_archive_name(a, i), "/u"));
    eg_archive_release(a);
    CHECK(eg_apply_gradients(o, g, v, 2));
    CHECK_NEAR(eg_item(v[0]), 0.5, 0);
    CHECK(eg_checkpoint_restore(c, test_temp("halfway-1")) && eg_checkpoint_assert_consumed(c));
    CHECK_NEAR(eg_item(v[0]), 1, 0);
    CHECK(eg_apply_gradients(o, g, v, 1));
    CHECK_NEAR(eg_item(v[0]), 0.5, 0);
    eg_checkpoint_release(c);
    eg_optimizer_release(o);
    eg_release(v[0]);
    eg_release(v[1]);
}
#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
TEST(checkpoints_beside_the_program_and_on_full_disks) {
    char here[4096], name[32];
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(3000)), "v");
    eg_checkpoint *c = eg_checkpoint_new(.keep = 2);
    CHECK(eg_checkpoint_track(c, "v", v));
    REQUIRE(getcwd(here, sizeof here) && chdir(test_temp("")) == 0);
    for (int i = 1; i <= 3; i++) {
        snprintf(name, sizeof name, "beside-%d.npz", i);
        CHECK_STR(eg_checkpoint_save(c, "beside.npz"), name);
    }
    CHECK(!there("beside-1.npz") && there("beside-2.npz"));
    CHECK_STR(eg_checkpoint_latest("beside"), "beside-3.npz");
    CHECK(eg_save_npy(v, "beside.npy") && eg_load_npy("beside.npy"));
    struct rlimit old, few;
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    signal(SIGXFSZ, SIG_IGN);
    for (int k = 0; k < 13; k++) {  // no room for the whole file: nothing is counted, kept or thrown away
        few.rlim_cur = (rlim_t)k * 1000;
        setrlimit(RLIMIT_FSIZE, &few);
        const char *path = eg_checkpoint_save(c, k % 2 ? "beside.npz" : "beside");
        setrlimit(RLIMIT_FSIZE, &old);
        CHECK(path == NULL);
        CHECK_CONTAINS(eg_error_message(), "cannot be written: ");
        eg_error_clear();
        CHECK(there("beside-2.npz") && there("beside-3.npz") && !there("beside-4.npz") &&
              !there("beside-4.safetensors") && test_left_behind("beside-") == 0);
    }
    CHECK_STR(eg_checkpoint_save(c, "beside.npz"), "beside-4.npz");
    CHECK(!there("beside-2.npz"));
    CHECK_ERROR(eg_checkpoint_save(c, "beside.npy/x"), EG_ERROR_FILE, "cannot be written: ");
    CHECK(chdir(here) == 0);
    eg_checkpoint_release(c);
    eg_release(v);
}
#endif

// ---- files of former versions: what once was written is read for ever. WRITE_FIXTURES makes them anew; a new format
// gets new names.

static void former(const char *name, bool write, char *path) {
    snprintf(path, 4096, write ? "%s" : "tests/fixtures/%s", write ? test_temp(name) : name);
}
static eg_layer *former_model(void) {
    return eg_sequential(eg_layer_dense(3, .activation = EG_TANH, .kernel_initializer = EG_INIT_CONSTANT,
                                        .kernel_initializer_value = 0.25, .input_shape = EG_SHAPE(2)),
                         eg_layer_batch_normalization(), eg_layer_dense(1, .kernel_initializer = EG_INIT_ONES));
}
static void former_step(eg_layer *model, eg_optimizer *adam, eg_iterator *it) {
    EG_SCOPE;
    eg_tensor *batch[EG_MAX_COMPONENTS], *vars[8], *grads[8];
    REQUIRE(eg_iterator_next(it, batch) == EG_NEXT);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_reduce_mean(eg_square(eg_call(model, batch[0], .training = true)));
    int n = eg_layer_trainable_weights(model, vars, 8);
    CHECK(eg_tape_gradients(tape, loss, vars, n, grads) && eg_apply_gradients(adam, grads, vars, n));
}
static void former_files(bool write) {
    char path[3][4096];
    former("checkpoint_1.safetensors", write, path[0]);
    former("checkpoint_1.npz", write, path[1]);
    former("model_1.safetensors", write, path[2]);
    for (int k = 0; k < 2; k++) {
        eg_layer *model = former_model();
        eg_optimizer *adam = eg_adam(.learning_rate = 0.01, .accumulate_steps = 2);
        eg_dataset *d = eg_dataset_batch(eg_dataset_repeat(
                eg_dataset_from_slices(eg_reshape(eg_range(EG_FLOAT32, 0, 16, 1), EG_SHAPE(8, 2))), -1), 2);
        eg_iterator *it = eg_iterator_new(d);
        int64_t step = 5;
        eg_seed(9);
        eg_checkpoint *c = eg_checkpoint_new();
        CHECK(eg_checkpoint_track_layer(c, "model", model) && eg_checkpoint_track_optimizer(c, "adam", adam) &&
              eg_checkpoint_track_iterator(c, "data", it) && eg_checkpoint_track_number(c, "step", &step) &&
              eg_checkpoint_track_random(c));
        if (write) {
            for (int i = 0; i < 5; i++) former_step(model, adam, it);
            CHECK(eg_checkpoint_save(c, k ? test_temp("former.npz") : test_temp("former")));
            CHECK(rename(eg_checkpoint_latest(test_temp("former")), path[k]) == 0);
            if (!k) CHECK(eg_model_save(model, path[2]));
        } else {
            step = 0;
            eg_seed(1);
            CHECK(eg_checkpoint_restore(c, path[k]) && eg_checkpoint_assert_consumed(c));
            CHECK_INT(step, 5);
            CHECK_INT(eg_optimizer_steps(adam), 2);
            CHECK(eg_random_get_state().seed == 9);
            eg_tensor *batch[EG_MAX_COMPONENTS];
            CHECK(eg_iterator_next(it, batch) == EG_NEXT);
            CHECK_TENSOR(batch[0], 0, 4, 5, 6, 7);
            eg_layer *whole = eg_model_load(path[2]);
            REQUIRE(whole);
            CHECK_SAME(eg_call(whole, batch[0]), eg_call(model, batch[0]), 0);
            eg_layer_release(whole);
        }
        eg_checkpoint_release(c);
        eg_iterator_release(it);
        eg_dataset_release(d);
        eg_optimizer_release(adam);
        eg_layer_release(model);
    }
}
TEST(files_of_former_versions) {
    if (getenv("WRITE_FIXTURES")) former_files(true);
    former_files(false);
}

// ---- no memory: every allocation of a save, a restore and a load fails once

static bool act_save(training *t) { return eg_checkpoint_save(t->checkpoint, test_temp("faults")) != NULL; }
static bool act_restore(training *t) { return eg_checkpoint_restore(t->checkpoint, test_temp("given-1")); }
static bool act_track(training *t) {
    eg_checkpoint *c = eg_checkpoint_new();
    bool ok = c && eg_checkpoint_restore(c, test_temp("given-1")) && eg_checkpoint_track_layer(c, "model", t->model) &&
              eg_checkpoint_track_optimizer(c, "adam", t->optimizer) &&
              eg_checkpoint_assert_existing_objects_matched(c);
    eg_checkpoint_release(c);
    return ok;
}
static bool act_late(training *t) {                        // weights are made and arrive
    eg_layer *late = dropout_model();
    eg_checkpoint *c = eg_checkpoint_new();
    EG_SCOPE;
    (void)t;
    bool ok = late &&
              c && eg_checkpoint_track_layer(c, "model", late) && eg_checkpoint_restore(c, test_temp("given-1")) &&
              eg_call(late, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))) != NULL;
    eg_checkpoint_release(c);
    eg_layer_release(late);
    return ok;
}
static bool act_weights(training *t) {
    return eg_save_weights(t->model, test_temp("fw.npz")) &&
           eg_load_weights(t->model, test_temp("given-1.safetensors"), .partial = true, .prefix = "model/");
}
static bool act_model(training *t) {
    eg_layer *dense = eg_sequential(eg_layer_dense(2, .input_shape = EG_SHAPE(3))), *again = NULL;
    (void)t;
    bool ok = dense && eg_model_save(dense, test_temp("fm.safetensors")) &&
              (again = eg_model_load(test_temp("fm.safetensors"))) != NULL;
    eg_layer_release(dense);
    eg_layer_release(again);
    return ok;
}
TEST(no_memory) {
    bool (*const acts[])(training *) = { act_save, act_restore, act_track, act_late, act_weights, act_model };
    if (!test_on_host) SKIP("the device keeps memory of its own");
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        for (int64_t at = 1;; at += FAULTS_STEP(7)) {
            training t;
            eg_shutdown();
            faults.live = 0;
            if (!eg_set_allocator(faults_allocate, faults_free, NULL)) {
                eg_error_clear();
                SKIP("memory of an earlier test is still held");
            }
            eg_seed(3);
            training_begin(&t, optimizers(1), true);
            for (int k = 0; k < 2; k++) training_step(&t);
            remove(test_temp("given-1.safetensors"));
            CHECK(eg_checkpoint_save(t.checkpoint, test_temp("given")));
            training_step(&t);
            eg_tensor *state[64], *weights[8];
            int n = eg_layer_weights(t.model, weights, 8), m = eg_optimizer_state(t.optimizer, state, 64);
            double sum = 0, now = 0;
            for (int k = 0; k < n; k++) { EG_SCOPE; sum += eg_item(eg_reduce_sum(eg_abs(weights[k]))); }
            eg_memory_trim();
            int64_t tensors = eg_memory().live_tensors;
            faults_start(at, FAULTS_TWICE);
            bool ok = acts[i](&t);
            faults_stop();
            bool failed = faults.failed;
            faults_judge(ok, tensors);
            for (int k = 0; k < n; k++) { EG_SCOPE; now += eg_item(eg_reduce_sum(eg_abs(weights[k]))); }
            // nothing is half restored; acts 2 and 4 do two things, of which the first may be done
            if (!ok && i != 2 && i != 4) CHECK(now == sum && t.step == 3);
            CHECK_INT(eg_optimizer_state(t.optimizer, state, 64), m);
            if (ok && i == 1) { CHECK_INT(t.step, 2); CHECK(now != sum); }
            training_end(&t);
            eg_shutdown();
            CHECK_INT(faults.live, 0);
            CHECK(eg_set_allocator(NULL, NULL, NULL));
            if (!failed || at > 1500 || test_fails > 5) {
                if (test_fails) printf("    act %d, allocation %lld\n", (int)i, (long long)at);
                break;
            }
        }
}
