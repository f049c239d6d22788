// Lists of tensors: into an array of the caller's, which must have room for them all, or lent whole (eg_list).
#include "test.h"
#include "faults.h"
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

static eg_layer *six_weights(void) {
    return eg_sequential(eg_layer_dense(3, .input_shape = EG_SHAPE(2)), eg_layer_dense(3), eg_layer_dense(1));
}
static eg_tensor *sum_of(eg_tensor *const *in, void *user) {
    eg_tensor **v = (eg_tensor **)user;
    eg_tensor *first = eg_mul(v[0], in[0]);
    return eg_add(first, eg_square(v[1]));
}

// What all functions do that fill an array of a caller's: `fill` counts `count` of them.
typedef int fill_function(void *object, void *array, int capacity);
static int fill_weights(void *l, void *array, int capacity) {
    return eg_layer_weights((eg_layer *)l, (eg_tensor **)array, capacity);
}
static int fill_trainable(void *l, void *array, int capacity) {
    return eg_layer_trainable_weights((eg_layer *)l, (eg_tensor **)array, capacity);
}
static int fill_layers(void *l, void *array, int capacity) {
    return eg_layer_layers((eg_layer *)l, (eg_layer **)array, capacity);
}
static int fill_state(void *o, void *array, int capacity) {
    return eg_optimizer_state((eg_optimizer *)o, (eg_tensor **)array, capacity);
}
static int fill_watched(void *t, void *array, int capacity) {
    return eg_tape_watched_variables((eg_tape *)t, (eg_tensor **)array, capacity);
}
static int fill_implicit(void *v, void *array, int capacity) {
    eg_tensor *x = eg_scalar(3);
    return eg_implicit_gradients(sum_of, v, &x, (eg_gradient_pair *)array, capacity);
}
static void check_room(const char *name, fill_function *fill, void *object, int count, int pointers) {
    void *array[32];
    char says[64];
    CHECK_INT(fill(object, NULL, 0), count);
    for (int capacity = -1; capacity <= count + 1; capacity++) {
        for (int i = 0; i < 32; i++) array[i] = array;
        if (capacity >= count) {
            CHECK_INT(fill(object, array, capacity), count);
            for (int i = 0; i < 32; i++) CHECK((array[i] == array) == (i >= count * pointers));
        } else {
            if (capacity < 0) snprintf(says, sizeof says, "%s: a list of -1", name);
            else snprintf(says, sizeof says, "%s: the array has room for %d, but there are %d", name, capacity, count);
            CHECK_ERROR(CHECK_INT(fill(object, array, capacity), -1), EG_ERROR_ARGUMENT, says);
            for (int i = 0; i < 32; i++) CHECK(array[i] == array);
        }
        if (capacity <= 0) continue;
        snprintf(says, sizeof says, "%s: a list of %d is NULL", name, capacity);
        CHECK_ERROR(CHECK_INT(fill(object, NULL, capacity), -1), EG_ERROR_ARGUMENT, says);
    }
    CHECK_ERROR(CHECK_INT(fill(object, NULL, -1), -1), EG_ERROR_ARGUMENT, "a list of -1");
}
TEST(an_array_without_room_for_all_is_an_error) {
    eg_layer *model = six_weights();
    eg_tensor *v[] = {eg_variable(eg_scalar(1), "a"), eg_variable(eg_scalar(2), "b")},
              *g[] = {eg_scalar(1), eg_scalar(1)};
    eg_optimizer *adam = eg_adam();
    CHECK(eg_apply_gradients(adam, g, v, 2));
    eg_tape *tape = eg_tape_begin();
    eg_mul(v[0], v[1]);
    check_room("eg_layer_weights", fill_weights, model, 6, 1);
    check_room("eg_layer_trainable_weights", fill_trainable, model, 6, 1);
    check_room("eg_layer_layers", fill_layers, model, 3, 1);
    check_room("eg_optimizer_state", fill_state, adam, 6, 1);
    check_room("eg_tape_watched_variables", fill_watched, tape, 2, 1);
    eg_tape_stop(tape);
    check_room("eg_implicit_gradients", fill_implicit, v, 2, 2);
    eg_gradient_pair pair = {NULL, NULL};
    eg_tensor *x = eg_scalar(3);
    int count = 7;
    CHECK_ERROR(CHECK_INT(!eg_implicit_value_and_gradients(sum_of, v, &x, &pair, 1, &count), true), EG_ERROR_ARGUMENT,
                "has room for 1, but there are 2");
    CHECK_INT(count, 0);
    CHECK(!pair.gradient && !pair.variable);
    eg_layer_release(model);
    eg_optimizer_release(adam);
    eg_release(v[0]);
    eg_release(v[1]);
}
TEST(lists_are_whole_and_lent) {
    eg_layer *model = six_weights();
    eg_tensor *array[6];
    eg_layer *layers[3];
    CHECK_INT(eg_layer_weights(model, array, 6), 6);
    CHECK_INT(eg_layer_layers(model, layers, 3), 3);
    eg_list all = eg_layer_weights_list(model), again = eg_layer_weights_list(model);
    eg_layer_list parts = eg_layer_layers_list(model);
    CHECK_INT(all.count, 6);
    CHECK(!memcmp(all.tensors, array, sizeof array));
    CHECK(again.tensors == all.tensors);                             // asked twice it is one array
    CHECK_INT(parts.count, 3);
    CHECK(!memcmp(parts.layers, layers, sizeof layers));
    eg_layer_set_trainable(layers[1], false);
    eg_list four = eg_layer_trainable_weights_list(model);
    CHECK_INT(four.count, 4);
    CHECK(four.tensors[2] == array[4]);
    CHECK_INT(eg_layer_weights_list(model).count, 6);
    eg_layer_set_trainable(layers[1], true);
    CHECK(eg_layer_trainable_weights_list(model).tensors == all.tensors);
    int64_t bytes = eg_memory().live_bytes;
    for (int i = 0; i < 100; i++) {  // as two players of a game do, each with the other frozen
        eg_layer_set_trainable(layers[1], i % 2 == 0);
        CHECK_INT(eg_layer_trainable_weights_list(model).count, i % 2 ? 4 : 6);
    }
    CHECK_INT(eg_memory().live_bytes, bytes);
    eg_layer *late = eg_layer_dense(2);
    CHECK_INT(eg_layer_weights_list(late).count, 0);
    eg_call(late, eg_ones(EG_FLOAT32, EG_SHAPE(1, 2)));
    CHECK_INT(eg_layer_weights_list(late).count, 2);
    CHECK_ERROR(CHECK_INT(eg_layer_weights_list(NULL).count, -1), EG_ERROR_NULL,
                "eg_layer_weights_list: the layer is NULL");
    CHECK_ERROR(CHECK_INT(eg_layer_layers_list(NULL).count, -1), EG_ERROR_NULL,
                "eg_layer_layers_list: the layer is NULL");
    CHECK_ERROR(CHECK_INT(eg_optimizer_state_list(NULL).count, -1), EG_ERROR_NULL,
                "eg_optimizer_state_list: the optimizer is NULL");
    CHECK_ERROR(CHECK_INT(eg_tape_watched_variables_list(NULL).count, -1), EG_ERROR_NULL,
                "eg_tape_watched_variables_list: the tape is NULL");
    eg_layer_release(late);
    eg_layer_release(model);
}
TEST(a_loop_without_an_array) {
    eg_seed(3);
    eg_layer *model = six_weights(), *same = six_weights();
    eg_list w = eg_layer_trainable_weights_list(model), u = eg_layer_trainable_weights_list(same);
    for (int i = 0; i < w.count; i++) eg_assign(u.tensors[i], w.tensors[i]);
    eg_optimizer *adam = eg_adam(), *other = eg_adam();
    eg_tensor *x = eg_random_normal(EG_SHAPE(8, 2)), *y = eg_reduce_sum(x, .axes = EG_AXES(1), .keepdims = true);
    for (int step = 0; step < 3; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        CHECK(eg_tape_minimize(tape, eg_mean_squared_error(y, eg_call(model, x)),
                               eg_layer_trainable_weights_list(model), adam));
        tape = eg_tape_begin();
        eg_tensor *loss = eg_mean_squared_error(y, eg_call(same, x));
        eg_list grads = eg_tape_gradients_list(tape, loss, u);
        CHECK_INT(grads.count, 6);
        CHECK(eg_apply_gradients_list(other, eg_clip_by_global_norm_list(grads, 1e6), u));
    }
    for (int i = 0; i < w.count; i++) CHECK_SAME(w.tensors[i], u.tensors[i], 0);
    eg_list state = eg_optimizer_state_list(adam);
    CHECK_INT(state.count, 2 + 12);
    CHECK_INT(eg_item_int(state.tensors[0]), 3);
    eg_layer_release(model);
    eg_layer_release(same);
    eg_optimizer_release(adam);
    eg_optimizer_release(other);
}
TEST(lists_of_variables) {
    eg_tensor *W = eg_variable(eg_scalar(5), "W"), *B = eg_variable(eg_scalar(10), "B"), *x = eg_scalar(2);
    eg_optimizer *sgd = eg_sgd(.learning_rate = 1);
    eg_tape *tape = eg_tape_begin();
    CHECK(eg_tape_minimize(tape, eg_add(eg_mul(x, W), B), EG_LIST(W, B), sgd));
    CHECK_TENSOR(W, 0, 3);
    CHECK_TENSOR(B, 0, 9);
    tape = eg_tape_begin();
    eg_tensor *loss = eg_mul(x, W);
    CHECK(eg_tape_minimize(tape, loss, eg_tape_watched_variables_list(tape), sgd));      // whatever was used
    CHECK_TENSOR(W, 0, 1);
    tape = eg_tape_begin();
    loss = eg_mul(x, W);
    eg_list grads = eg_tape_gradients_list(tape, loss, EG_LIST(W, B));
    CHECK_TENSOR(grads.tensors[0], 0, 2);
    CHECK(!grads.tensors[1]);
    eg_tensor *whole = eg_ones(EG_INT32, EG_SHAPE(2)), *halves = eg_ones(EG_FLOAT16, EG_SHAPE(2));
    CHECK_ERROR(eg_global_norm(&whole, 1), EG_ERROR_DTYPE, "eg_global_norm: ");
    CHECK_ERROR(eg_global_norm(&halves, 1), EG_ERROR_DTYPE, "eg_global_norm: ");
    CHECK_TENSOR(eg_global_norm(grads.tensors, grads.count), 0, 2);
    eg_list clipped = eg_clip_by_global_norm_list(grads, .5), implied, of;
    CHECK_TENSOR(clipped.tensors[0], 0, .5);
    CHECK(clipped.count == 2 && !clipped.tensors[1]);
    eg_tensor *v[] = {W, B};
    implied = eg_implicit_gradients_list(sum_of, v, &x, &of);
    CHECK(implied.count == 2 && of.count == 2 && of.tensors[0] == W && of.tensors[1] == B);
    CHECK_TENSOR(implied.tensors[1], 0, 18);
    CHECK(eg_apply_gradients_list(sgd, implied, of));
    CHECK_TENSOR(B, 0, -9);
    CHECK_ERROR(CHECK_INT(!eg_apply_gradients_list(sgd, implied, EG_LIST(W)), true), EG_ERROR_ARGUMENT,
                "eg_apply_gradients_list: 2 gradients for 1 variable");
    eg_list none = {0, NULL}, lost = {3, NULL}, wrong = {-1, NULL};
    tape = eg_tape_begin_persistent();
    loss = eg_mul(x, W);
    CHECK_ERROR(CHECK_INT(!eg_tape_minimize(tape, loss, none, sgd), true), EG_ERROR_GRADIENT,
                "a layer makes its weights in its first call, or in eg_layer_build");
    CHECK_ERROR(CHECK_INT(!eg_tape_minimize(tape, loss, lost, sgd), true), EG_ERROR_ARGUMENT,
                "eg_tape_minimize: a list of 3 is NULL");
    CHECK_ERROR(eg_tape_gradients(tape, loss, &x, 1, NULL), EG_ERROR_ARGUMENT,
                "eg_tape_gradients: a list of 1 is NULL (grads)");
    CHECK_ERROR(eg_tape_gradients(tape, loss, NULL, 1, &x), EG_ERROR_ARGUMENT, "a list of 1 is NULL (xs)");
    CHECK_ERROR(CHECK_INT(eg_tape_gradients_list(tape, loss, wrong).count, -1), EG_ERROR_ARGUMENT,
                "eg_tape_gradients_list: a list of -1");
    CHECK_ERROR(CHECK_INT(eg_clip_by_global_norm_list(wrong, 1).count, -1), EG_ERROR_ARGUMENT,
                "eg_clip_by_global_norm_list: a list of -1");
    CHECK_ERROR(CHECK_INT(eg_implicit_gradients_list(sum_of, v, &x, NULL).count, -1), EG_ERROR_ARGUMENT,
                "a list of 1 is NULL");
    CHECK_ERROR(CHECK_INT(eg_implicit_gradients_list(NULL, v, &x, &of).count, -1), EG_ERROR_ARGUMENT,
                "the function is NULL");
    CHECK_INT(of.count, -1);
    // The list that an error left behind is the trace of it: what it is given to says nothing new.
    int64_t before = (eg_raise(EG_ERROR_STATE, "the first error"), eg_error_count());
    CHECK(!eg_tape_minimize(tape, loss, eg_layer_weights_list(NULL), sgd));
    CHECK(!eg_apply_gradients_list(sgd, eg_tape_gradients_list(tape, loss, wrong), EG_LIST(W)));
    CHECK_INT(eg_error_count(), before);
    CHECK_STR(eg_error_message(), "the first error");
    eg_error_clear();
    eg_optimizer_release(sgd);
    eg_release(W);
    eg_release(B);
}
TEST(a_tape_may_hold_the_last_reference_of_a_variable) {
    eg_optimizer *sgd = eg_sgd();
    eg_tape *tape = eg_tape_begin();
    eg_tensor *v = eg_variable(eg_scalar(2), "v"), *loss = eg_square(v);
    eg_release(v);
    CHECK(eg_tape_minimize(tape, loss, eg_tape_watched_variables_list(tape), sgd));
    eg_optimizer_release(sgd);
}

static bool act_lists(void) {
    eg_tensor *x = eg_scalar(2), *v[] = {NULL, NULL};
    eg_layer *l = eg_layer_dense(1, .input_shape = EG_SHAPE(1));
    eg_optimizer *sgd = eg_sgd(.momentum = .9);
    bool ok = x && l && sgd && (v[0] = eg_variable(x, "a")) && (v[1] = eg_variable(x, "b"));
    if (ok) {
        eg_list of, grads = eg_implicit_gradients_list(sum_of, v, &x, &of);
        ok = grads.count == 2 && of.count == 2 &&
             eg_apply_gradients_list(sgd, eg_clip_by_global_norm_list(grads, 1), of);
        eg_tape *tape = ok ? eg_tape_begin() : NULL;
        eg_tensor *y = tape ? eg_call(l, eg_ones(EG_FLOAT32, EG_SHAPE(1, 1))) : NULL;
        ok = y && eg_tape_minimize(tape, y, eg_tape_watched_variables_list(tape), sgd) &&
             eg_layer_weights_list(l).count == 2 && eg_optimizer_state_list(sgd).count == 6 &&
             eg_layer_layers_list(l).count == 0;
    }
    eg_release(v[0]);
    eg_release(v[1]);
    eg_layer_release(l);
    eg_optimizer_release(sgd);
    return ok && eg_error() == EG_OK;
}
TEST(out_of_memory_in_lists) { faults_sweep(act_lists); }

#ifndef EAGER_NO_THREADS
static void *asks(void *layer) {
    eg_list first = eg_layer_weights_list((eg_layer *)layer);
    bool same = first.count == 6;
    for (int i = 0; i < 200; i++)
        same = same && eg_layer_weights_list((eg_layer *)layer).tensors == first.tensors &&
               eg_layer_layers_list((eg_layer *)layer).count == 3;
    return same ? layer : NULL;
}
TEST(threads_may_ask_at_once) {
    eg_layer *model = six_weights();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, asks, model);
    for (int i = 0; i < 4; i++) {
        void *same;
        pthread_join(threads[i], &same);
        CHECK(same == model);
    }
    eg_layer_release(model);
}
#endif
