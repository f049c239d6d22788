// The weights of one model in another: copies, which share until one changes, soft updates, and what is published.
// (With threads: threads.c.)
#include "faults.h"

static eg_layer *small(int64_t units) {
    return eg_sequential(eg_layer_dense(units, .activation = EG_TANH, .input_shape = EG_SHAPE(3)),
                         eg_layer_batch_normalization(), eg_layer_dense(2));
}
static void fill(eg_layer *model, double value) {
    eg_list w = eg_layer_weights_list(model);
    for (int i = 0; i < w.count; i++) CHECK(eg_assign(w.tensors[i], value + i));
}
// Whether weight i of the model is value + i everywhere.
static bool filled(eg_layer *model, double value, double step) {
    eg_list w = eg_layer_weights_list(model);
    for (int i = 0; i < w.count; i++) {
        double least = eg_item(eg_reduce_min(w.tensors[i])), most = eg_item(eg_reduce_max(w.tensors[i]));
        if (!(fabs(least - (value + step * i)) < 1e-6 && fabs(most - (value + step * i)) < 1e-6)) return false;
    }
    return w.count > 0;
}

// ---- whole models

static eg_tensor *negate(eg_tensor *const *in, void *user) { (void)user; return eg_negative(in[0]); }
static eg_layer *make_negative(void *user) {
    eg_random_normal(EG_SHAPE(3));
    return eg_layer_lambda("negative", negate, user);
}

TEST(a_copy_is_a_model_of_its_own) {
    eg_layer_register("negative", make_negative, NULL);
    eg_layer *shared = eg_layer_dense(3),
             *model = eg_sequential(eg_layer_retain(shared), make_negative(NULL),
                                    eg_layer_dropout(0.5), eg_layer_retain(shared), eg_layer_batch_normalization(),
                                    eg_layer_dense(2, .frozen = true, .kernel_l2 = 0.1));
    eg_layer_release(shared);
    eg_tensor *x = eg_random_normal(EG_SHAPE(4, 3)), *y = eg_call(model, x, .training = true),
              *before = eg_call(model, x);
    REQUIRE(y);
    eg_set_trainable(eg_layer_weights_list(model).tensors[1], false);
    eg_random_state random = eg_random_get_state();
    eg_layer *copy = eg_layer_copy(model);
    REQUIRE(copy);
    CHECK(eg_random_get_state().counter == random.counter);
    CHECK(eg_assert_equal(eg_call(copy, x), before));
    CHECK_INT(eg_layer_weights_list(copy).count, eg_layer_weights_list(model).count);
    CHECK_INT(eg_layer_trainable_weights_list(copy).count, 3);
    CHECK_INT(eg_layer_trainable_weights_list(model).count, 3);
    char one[100], other[100], text[4000], same[4000];
    for (int i = 0; i < eg_layer_weights_list(model).count; i++)
        CHECK_STR(eg_layer_weight_path(copy, i, one, sizeof one), eg_layer_weight_path(model, i, other, sizeof other));
    CHECK(eg_layer_config(model, text, sizeof text) == eg_layer_config(copy, same, sizeof same));
    CHECK_STR(same, text);
    eg_list w = eg_layer_weights_list(model), v = eg_layer_weights_list(copy);
    CHECK(eg_assign_add(w.tensors[0], 1));                   // neither sees what happens to the other
    CHECK(eg_assert_equal(eg_call(copy, x), before));
    CHECK(eg_assign_add(v.tensors[0], 1) && eg_assign_add(v.tensors[1], 1));
    CHECK(eg_assert_equal(w.tensors[0], v.tensors[0]) && !eg_assert_equal(eg_call(copy, x), before));
    eg_error_clear();
    eg_layer_release(model);
    CHECK(eg_call(copy, x) != NULL);
    eg_layer_release(copy);
}
TEST(copies_share_until_one_changes) {
    enum { BYTES = 4 * 512 * 512 };
    eg_layer *model = eg_layer_dense(512, .no_bias = true, .input_shape = EG_SHAPE(512));
    eg_tensor *w = eg_layer_weights_list(model).tensors[0], *g = eg_ones(EG_FLOAT32, EG_SHAPE(512, 512));
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1);
    eg_assign(w, eg_zeros(EG_FLOAT32, EG_SHAPE(512, 512)));
    int64_t before = eg_memory().live_bytes;
    eg_layer *copies[20];
    for (int i = 0; i < 20; i++) copies[i] = eg_layer_copy(model);
    if (test_on_host) CHECK(eg_memory().live_bytes < before + BYTES);
    CHECK(eg_apply_gradients(sgd, &g, &w, 1));
    for (int i = 0; i < 20; i++) CHECK(eg_item(eg_reduce_sum(eg_layer_weights_list(copies[i]).tensors[0])) == 0);
    CHECK(eg_item(eg_reduce_max(w)) == -1);
    for (int i = 0; i < 20; i++) eg_layer_release(copies[i]);
    eg_optimizer_release(sgd);
    eg_layer_release(model);
}
TEST(what_cannot_be_copied) {
    eg_layer *unknown = eg_sequential(eg_layer_dense(2), eg_layer_lambda("unknown", negate, NULL));
    CHECK_ERROR(eg_layer_copy(unknown), EG_ERROR_FILE,
                "eg_layer_copy: 'unknown' is a layer of your own; tell how it is made by eg_layer_register (at "
                "copies.c:");
    CHECK_ERROR(eg_layer_copy(NULL), EG_ERROR_NULL, "eg_layer_copy: the layer is NULL");
    eg_layer_release(unknown);
    // it has no weights, and needs none
    eg_layer *unbuilt = eg_sequential(eg_layer_dense(2)), *copy = eg_layer_copy(unbuilt);
    CHECK(copy && eg_layer_weights_list(copy).count == 0);
    CHECK_SHAPE(eg_call(copy, eg_ones(EG_FLOAT32, EG_SHAPE(1, 3))), 1, 2);
    eg_layer_release(copy);
    eg_layer_release(unbuilt);
}

// ---- weights alone

TEST(weights_are_copied) {
    eg_layer *online = small(4), *target = eg_sequential(eg_layer_dense(4, .activation = EG_TANH),
                                                         eg_layer_batch_normalization(), eg_layer_dense(2));
    eg_tensor *x = eg_random_normal(EG_SHAPE(5, 3));
    CHECK(eg_call(online, x, .training = true));
    // it is built as the other one was
    CHECK(eg_layer_weights_list(target).count == 0 && eg_layer_copy_weights(target, online));
    CHECK(eg_assert_equal(eg_call(target, x), eg_call(online, x)));
    eg_tensor *w = eg_layer_weights_list(target).tensors[0];
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_reduce_sum(eg_square(w)), *was = eg_read(w);
    fill(online, 7);
    CHECK(eg_layer_copy_weights(target, online) && filled(target, 7, 1));
    CHECK(eg_assert_equal(eg_tape_gradient(tape, y, w), eg_mul(was, 2)));  // of the values that were read
    CHECK(eg_layer_copy_weights(target, target) && filled(target, 7, 1));
    eg_layer_release(online);
    CHECK(filled(target, 7, 1));
    eg_layer_release(target);
}
TEST(soft_updates) {
    eg_layer *online = small(4), *target = small(4);
    CHECK(eg_layer_build(online, EG_SHAPE(-1, 3)) && eg_layer_build(target, EG_SHAPE(-1, 3)));
    fill(online, 10);
    fill(target, 2);
    // batch statistics, too
    CHECK(eg_layer_soft_update(target, online, 0.25) && filled(target, 4, 1) && filled(online, 10, 1));
    CHECK(eg_layer_soft_update(target, online, 0) && filled(target, 4, 1));
    CHECK(eg_layer_soft_update(target, online, 1) && filled(target, 10, 1));
    CHECK(eg_layer_soft_update(target, target, 0.5) && filled(target, 10, 1));
    eg_layer_release(online);
    eg_layer_release(target);
    eg_layer *layer[2];                                                                               // dtypes
    eg_tensor *w[2][3];
    for (int i = 0; i < 2; i++) {
        layer[i] = eg_layer_custom("weights", negate, NULL);
        w[i][0] = eg_layer_weight(layer[i], "double", eg_scalar_of(EG_FLOAT64, i), true);
        w[i][1] = eg_layer_weight(layer[i], "count", eg_scalar_of(EG_INT64, 7 * i), false);
        w[i][2] = eg_layer_weight(layer[i], "half", eg_scalar_of(EG_FLOAT16, 5 * i), false);
    }
    CHECK(eg_layer_soft_update(layer[0], layer[1], 0.1));
    CHECK(eg_item(w[0][0]) == 0.1 && eg_item_int(w[0][1]) == 7 && eg_item(eg_cast(w[0][2], EG_FLOAT32)) == 5);
    for (int i = 0; i < 2; i++) eg_layer_release(layer[i]);
}
TEST(weights_that_do_not_fit) {
    eg_layer *model = small(4), *wider = small(5), *deeper = eg_sequential(small(4), eg_layer_dense(2)),
             *doubles = eg_layer_dense(2, .dtype = EG_FLOAT64, .input_shape = EG_SHAPE(3)),
             *singles = eg_layer_dense(2, .input_shape = EG_SHAPE(3)), *none = eg_sequential(eg_layer_dense(2));
    CHECK(eg_layer_build(deeper, EG_SHAPE(-1, 3)) && eg_layer_build(singles, EG_SHAPE(-1, 3)));
    fill(model, 1);
    CHECK_ERROR(eg_layer_copy_weights(model, wider), EG_ERROR_SHAPE,
                "eg_layer_copy_weights: weight 0 has two shapes: float32 [3, 4] 'sequential/dense/kernel' here, "
                "float32 [3, 5] 'sequential/dense/kernel' in the model that gives");
    CHECK_ERROR(eg_layer_soft_update(model, wider, 0.5), EG_ERROR_SHAPE,
                "eg_layer_soft_update: weight 0 has two shapes");
    CHECK_ERROR(eg_layer_copy_weights(model, deeper), EG_ERROR_SHAPE,
                "model 'sequential' has 8 weights, and model 'sequential' has 10; they must be made alike");
    CHECK_ERROR(eg_layer_copy_weights(singles, doubles), EG_ERROR_DTYPE, "weight 0 has two dtypes");
    CHECK_ERROR(eg_layer_copy_weights(model, none), EG_ERROR_SHAPE,
                "has 8 weights, and model 'sequential' has 0; a call, or eg_layer_build, makes them");
    CHECK_ERROR(eg_layer_copy_weights(NULL, model), EG_ERROR_NULL, "eg_layer_copy_weights");
    CHECK_ERROR(eg_layer_copy_weights(model, NULL), EG_ERROR_NULL, "eg_layer_copy_weights");
    CHECK_ERROR(eg_layer_soft_update(model, model, 1.5), EG_ERROR_ARGUMENT,
                "eg_layer_soft_update: tau 1.5 is not between 0 and 1");
    CHECK_ERROR(eg_layer_soft_update(model, model, -0.1), EG_ERROR_ARGUMENT, "tau -0.1");
    CHECK_ERROR(eg_layer_soft_update(model, model, NAN), EG_ERROR_ARGUMENT, "tau");
    CHECK(filled(model, 1, 1));
    eg_layer *all[] = {model, wider, deeper, doubles, singles, none};
    for (int i = 0; i < 6; i++) eg_layer_release(all[i]);
}

// ---- what is published

TEST(publications) {
    eg_publication *p = eg_publication_new();
    eg_layer *model = small(4), *none = eg_sequential(eg_layer_dense(2));
    CHECK(eg_published(p) == NULL && eg_error() == EG_OK);
    CHECK_ERROR(eg_publish(p, none), EG_ERROR_STATE, "eg_publish: model 'sequential' has not been called yet");
    fill(model, 1);
    CHECK(eg_publish(p, model));
    eg_layer *first = eg_published(p);
    CHECK(first && first != model && filled(first, 1, 1) && !eg_layer_trainable(first) && eg_layer_trainable(model));
    // batch statistics stay
    CHECK(eg_call(first, eg_random_normal(EG_SHAPE(5, 3)), .training = true) && filled(first, 1, 1));
    fill(model, 2);
    CHECK(filled(first, 1, 1));
    CHECK(eg_publish(p, model));
    CHECK_ERROR(eg_publish(p, none), EG_ERROR_STATE, "eg_publish");
    eg_layer *second = eg_published(p);
    CHECK(second != first && filled(second, 2, 1) && filled(first, 1, 1));
    CHECK_ERROR(eg_publish(NULL, model), EG_ERROR_NULL, "eg_publish: the publication is NULL");
    CHECK_ERROR(eg_published(NULL), EG_ERROR_NULL, "eg_published: the publication is NULL");
    CHECK_ERROR(eg_publish(p, NULL), EG_ERROR_NULL, "the layer is NULL");
    eg_publication_release(eg_publication_retain(p));
    CHECK(!eg_error());
    eg_layer *still = eg_published(p);                      // the other reference keeps it
    CHECK(still != NULL);
    eg_layer_release(still);
    eg_publication_release(p);
    eg_publication_release(eg_publication_retain(NULL));
    CHECK(filled(second, 2, 1));
    eg_layer_release(first);
    eg_layer_release(second);
    eg_layer_release(model);
    eg_layer_release(none);
}
TEST(a_published_model_released_too_often) {
    eg_publication *p = eg_publication_new();
    eg_layer *model = small(4);
    fill(model, 1);
    CHECK(eg_publish(p, model));
    eg_layer *lent = eg_published(p);
    eg_layer_release(lent);
    CHECK_ERROR(eg_layer_release(lent), EG_ERROR_STATE, "of the publication that lends it");
    CHECK(eg_published(p) == lent && filled(lent, 1, 1));
    eg_publication_release(p);
    CHECK(filled(lent, 1, 1));
    eg_layer_release(lent);
    eg_layer_release(model);
}

// ---- without memory: all weights, or none

static bool act_of_copies(void) {
    eg_layer *model = small(4), *copy = NULL, *seen = NULL;
    eg_publication *p = eg_publication_new();
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 3));
    bool right = model && p && x && eg_call(model, x) && (copy = eg_layer_copy(model)) &&
                 eg_layer_soft_update(copy, model, 0.5) && eg_publish(p, model) && (seen = eg_published(p)) &&
                 eg_call(copy, x) && eg_call(seen, x);
    eg_layer_release(model);
    eg_layer_release(copy);
    eg_layer_release(seen);
    eg_publication_release(p);
    return right;
}
TEST(out_of_memory_in_copies) { faults_sweep(act_of_copies); }
TEST(out_of_memory_changes_all_weights_or_none) {
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    eg_layer *to = small(4), *from = small(4);
    fill(from, 64);
    for (int soft = 0; soft < 2; soft++) {
        bool through = false;
        int failures = 0;
        for (int64_t n = 1; n < 500 && !through; n++) {
            EG_SCOPE;
            fill(to, 0);
            eg_memory_trim();
            faults_start(n, FAULTS_FOR_EVER);
            bool done = soft ? eg_layer_soft_update(to, from, 0.5) : eg_layer_copy_weights(to, from);
            faults_stop();
            through = !faults.failed;
            failures += !done;
            eg_error_clear();
            CHECK(filled(to, !done ? 0 : soft ? 32 : 64, 1));
        }
        CHECK(through && (failures > 0 || !test_on_host));
    }
    eg_layer_release(to);
    eg_layer_release(from);
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}
