// The tape: what it records, what comes out of it, what it holds and for how long; custom gradients and ops of one's
// own.
#include "test.h"
#include "printed.h"

// ---- first gradients ----------------------------------------------------------------------------------------------

static eg_tensor *ones(void) { return eg_constant(EG_SHAPE(1, 1), 1); }
static eg_tensor *cube(eg_tensor *x) { return eg_mul(eg_mul(x, x), x); }

TEST(square_of_one) {
    eg_tensor *w = eg_variable(ones(), "w");
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = eg_mul(w, w), *g = eg_tape_gradient(tape, loss, w);
    CHECK_TENSOR(g, 0, 2);
    CHECK_SHAPE(g, 1, 1);
    CHECK_STR(eg_tape_unconnected_reason(), "");
    eg_release(w);
}

TEST(second_gradient_is_an_error) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_square(x);
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 6);
    CHECK_ERROR(eg_tape_gradient(tape, y, x), EG_ERROR_TAPE, "eg_tape_begin_persistent()");
    CHECK_ERROR(eg_tape_resume(tape), EG_ERROR_TAPE, "begin a new one");
    CHECK_ERROR(eg_tape_watch(tape, x), EG_ERROR_TAPE, "begin a new one");
    CHECK_ERROR(eg_tape_stop(tape), EG_ERROR_TAPE, "not recording");
}

TEST(second_gradient_while_it_still_records) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_square(x), *z = cube(x), *out[1] = {y};
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 6);
    eg_square(x);                                              // spent: this is recorded nowhere
    CHECK_ERROR(eg_tape_gradients(tape, z, &x, 1, out), EG_ERROR_TAPE, "already");
    CHECK(out[0] == NULL);
}

TEST(resume_of_an_active_tape_is_an_error) {
    eg_tape *tape = eg_tape_begin();
    CHECK_ERROR(eg_tape_resume(tape), EG_ERROR_TAPE, "recording already");
    CHECK(eg_tape_stop(tape));
    CHECK_ERROR(eg_tape_stop(tape), EG_ERROR_TAPE, "not recording");
    CHECK(eg_tape_resume(tape));
}

TEST(null_arguments_are_errors) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = eg_scalar(1), *g = x;
    CHECK_ERROR(eg_tape_watch(NULL, x), EG_ERROR_NULL, "the tape is NULL");
    CHECK_ERROR(eg_tape_watch(tape, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_tape_gradient(NULL, x, x), EG_ERROR_NULL, "the tape is NULL");
    CHECK_ERROR(eg_tape_gradient(tape, NULL, x), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_tape_gradient(tape, x, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_tape_gradients(tape, x, NULL, 1, &g), EG_ERROR_ARGUMENT, "NULL");
    CHECK_ERROR(eg_tape_gradients(tape, x, &x, 1, NULL), EG_ERROR_ARGUMENT, "NULL");
    // None of them has spent the tape.
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(x), x), 0, 2);
    // A NULL that an earlier error left behind raises none of its own.
    CHECK_ERROR((eg_matmul(x, x), eg_tape_gradient(NULL, NULL, x)), EG_ERROR_SHAPE, "eg_matmul");
}

TEST(failed_gradient_leaves_null_everywhere) {
    eg_tensor *x = eg_scalar(1), *xs[3], *grads[3] = {x, x, x};
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    xs[0] = x; xs[1] = NULL; xs[2] = x;
    CHECK_ERROR(CHECK_INT(eg_tape_gradients(tape, eg_square(x), xs, 3, grads), 0), EG_ERROR_NULL, "NULL");
    CHECK(!grads[0] && !grads[1] && !grads[2]);
}

// ---- watching -----------------------------------------------------------------------------------------------------

TEST(trainable_variables_are_watched_tensors_are_not) {
    eg_tensor *v = eg_variable(eg_scalar(3), "v"), *c = eg_scalar(3);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tensor *y = eg_add(eg_square(v), eg_square(c));
    CHECK_TENSOR(eg_tape_gradient(tape, y, v), 0, 6);
    CHECK(eg_tape_gradient(tape, y, c) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not watched");
    eg_tensor *i = eg_variable(eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 2), "i");
    CHECK(eg_tape_gradient(tape, eg_cast(i, EG_FLOAT32), i) == NULL);
    CHECK_STR(eg_tape_unconnected_reason(),
              "i was not watched: it is int32, and only float32 and float64 have gradients");
    eg_release(i);
    eg_tape_gradient(tape, y, v);
    CHECK_STR(eg_tape_unconnected_reason(), "");               // never that of an earlier call
    eg_release(v);
}

TEST(reason_made_outside_the_tape) {
    eg_tensor *x = eg_scalar(2), *before = eg_square(x);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    CHECK(eg_tape_gradient(tape, before, x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "made outside the tape");
    eg_tensor *y = eg_square(eg_scalar(5));
    CHECK(eg_tape_gradient(tape, y, x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "constant");
}

TEST(reason_does_not_depend) {
    eg_tensor *x = eg_scalar(2), *z = eg_scalar(2);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, z);
    CHECK(eg_tape_gradient(tape, eg_square(x), z) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "does not depend on");
    CHECK(eg_tape_gradient(tape, x, eg_square(x)) == NULL);    // the wrong way round
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "does not depend on");
}

TEST(reason_path_is_integer) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 5, 2);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *i = eg_cast(x, EG_INT32), *y = eg_mul(eg_cast(i, EG_FLOAT32), 2);
    CHECK(eg_tape_gradient(tape, y, x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "path is integer");
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "eg_cast");
    CHECK(eg_tape_gradient(tape, i, x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "path is integer");
    CHECK(eg_tape_gradient(tape, eg_argmax(x), x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "path is integer");
}

TEST(indices_that_depend_on_a_source) {
    eg_tensor *table = eg_constant(EG_SHAPE(4), 1, 2, 3, 4), *x = eg_constant(EG_SHAPE(3), 3, 1, 2), *top[2];
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    REQUIRE((top[0] = eg_top_k(x, 2, &top[1])) != NULL);
    CHECK(eg_tape_gradient(tape, eg_gather(table, eg_cast(x, EG_INT32)), x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "path is integer");
    CHECK(eg_tape_gradient(tape, eg_gather(table, top[1]), x) == NULL);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_add(eg_gather(table, top[1]), top[0]), x), 0, 1, 0, 1);
}
TEST(reason_stop_gradient) {
    eg_tensor *x = eg_scalar(3), *one = eg_scalar(3);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, one);
    CHECK_TENSOR(eg_stop_gradient(x), 0, 3);
    CHECK(eg_tape_gradient(tape, eg_mul(eg_stop_gradient(x), 2), x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "eg_stop_gradient");
    CHECK_TENSOR(eg_tape_gradient(tape, eg_mul(eg_stop_gradient(x), x), x), 0, 3);      // x stop(x): one of two paths
}

TEST(reason_not_differentiable_op) {
    eg_tensor *x = eg_scalar(3.5);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    CHECK(eg_tape_gradient(tape, eg_mul(eg_floor(x), 2), x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "eg_floor, which is not differentiable");
    CHECK(eg_tape_gradient(tape, eg_greater(x, 1), x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "eg_greater");
}

TEST(reason_not_trainable) {
    eg_tensor *v = eg_variable(eg_scalar(3), "frozen");
    eg_set_trainable(v, false);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tensor *y = eg_square(v);
    CHECK(eg_tape_gradient(tape, y, v) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "frozen");
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not trainable");
    eg_tape_watch(tape, v);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(v), v), 0, 6);
    eg_release(v);
}

TEST(reason_of_the_first_of_several_sources) {
    eg_tensor *x = eg_scalar(1), *xs[3], *grads[3];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    xs[0] = x; xs[1] = eg_scalar(1); xs[2] = eg_floor(x);
    CHECK(eg_tape_gradients(tape, eg_square(x), xs, 3, grads));
    CHECK(grads[0] && !grads[1] && !grads[2]);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not watched");
    CHECK_INT(eg_error(), EG_OK);
}

TEST(zeros_instead_of_null) {
    eg_tensor *x = eg_scalar(2), *z = eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 1, 2), *g;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    CHECK(eg_tape_unconnected_zeros(tape, true) == false);
    g = eg_tape_gradient(tape, eg_square(x), z);
    CHECK_TENSOR(g, 0, 0, 0);
    CHECK_DTYPE(g, EG_FLOAT64);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not watched");        // why it is zero can still be asked
    CHECK(eg_tape_unconnected_zeros(tape, false) == true);
    CHECK(eg_tape_gradient(tape, eg_square(x), z) == NULL);
}

TEST(watching_an_integer_is_an_error) {
    eg_tape *tape = eg_tape_begin();
    CHECK_ERROR(eg_tape_watch(tape, eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 2)), EG_ERROR_DTYPE,
                "only float32 and float64");
    CHECK_ERROR(eg_tape_watch(tape, eg_number(2)), EG_ERROR_ARGUMENT, "eg_scalar");
}

TEST(watching_twice_is_watching) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin();
    CHECK(eg_tape_watch(tape, x) && eg_tape_watch(tape, x));
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(x), x), 0, 6);
}

TEST(watched_variables_in_the_order_of_use) {
    eg_tensor *a = eg_variable(eg_scalar(1), "a"), *b = eg_variable(eg_scalar(2), "b"),
              *c = eg_variable(eg_scalar(3), "c"), *list[3] = {NULL};
    eg_set_trainable(c, false);
    eg_tape *tape = eg_tape_begin_persistent();
    CHECK_INT(eg_tape_watched_variables(tape, list, 3), 0);
    eg_mul(b, a);
    eg_mul(c, a);
    CHECK_ERROR(CHECK_INT(eg_tape_watched_variables(tape, list, 1), -1), EG_ERROR_ARGUMENT,
                "room for 1, but there are 2");
    CHECK(!list[0]);
    eg_tape_watch(tape, c);
    CHECK_INT(eg_tape_watched_variables(tape, list, 3), 3);
    CHECK(list[0] == b && list[1] == a && list[2] == c);
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 3);
    eg_release(a); eg_release(b); eg_release(c);
}

TEST(variables_can_be_left_alone) {
    eg_tensor *v = eg_variable(eg_scalar(2), "v"), *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin_persistent();
    CHECK(eg_tape_watch_variables(tape, false) == true);
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_mul(v, x);
    CHECK(eg_tape_gradient(tape, y, v) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not watched");
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 2);
    CHECK(eg_tape_watch_variables(tape, true) == false);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_mul(v, x), v), 0, 3);
    eg_release(v);
}

// ---- targets and sources ------------------------------------------------------------------------------------------

TEST(vector_target_sums) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 2, 3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(x), x), 0, 2, 4, 6);
}

TEST(output_gradients) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 2, 3), *y, *g, *dx, *up;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    y = eg_square(x);
    up = eg_constant(EG_SHAPE(3), 1, 0, 2);
    CHECK(eg_tape_gradients_from(tape, &y, 1, &up, &x, 1, &dx));
    CHECK_TENSOR(dx, 0, 2, 0, 12);
    g = NULL;
    CHECK(eg_tape_gradients_from(tape, &y, 1, &g, &x, 1, &dx));
    CHECK_TENSOR(dx, 0, 2, 4, 6);
    g = eg_number(3);
    CHECK(eg_tape_gradients_from(tape, &y, 1, &g, &x, 1, &dx));
    CHECK_TENSOR(dx, 0, 6, 12, 18);
    g = eg_constant(EG_SHAPE(2), 1, 0);
    CHECK_ERROR(eg_tape_gradients_from(tape, &y, 1, &g, &x, 1, &dx), EG_ERROR_SHAPE, "output gradient 0 is");
    CHECK(dx == NULL);
    g = eg_constant_of(EG_FLOAT64, EG_SHAPE(3), 1, 0, 2);
    CHECK_ERROR(eg_tape_gradients_from(tape, &y, 1, &g, &x, 1, &dx), EG_ERROR_SHAPE, "float64");
    eg_tensor *v = eg_variable(up, "v");
    CHECK(eg_tape_gradients_from(tape, &x, 1, &v, &x, 1, &dx));
    eg_assign(v, 9);
    CHECK_TENSOR(dx, 0, 1, 0, 2);                              // what came out does not change with the variable
    eg_release(v);
}

TEST(wrong_output_gradient_leaves_the_tape_usable) {
    eg_tensor *x = eg_scalar(2), *g = eg_zeros(EG_FLOAT32, EG_SHAPE(2)), *dx;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_square(x);
    CHECK_ERROR(eg_tape_gradients_from(tape, &y, 1, &g, &x, 1, &dx), EG_ERROR_SHAPE, "output gradient");
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 4);
}

TEST(several_targets_sum) {
    eg_tensor *x = eg_scalar(3), *ys[3], *gs[3] = {NULL}, *dx;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    ys[0] = eg_square(x); ys[1] = cube(x); ys[2] = ys[0];
    CHECK(eg_tape_gradients_from(tape, ys, 2, NULL, &x, 1, &dx));
    CHECK_TENSOR(dx, 0, 33);
    CHECK(eg_tape_gradients_from(tape, ys, 3, NULL, &x, 1, &dx));
    CHECK_TENSOR(dx, 0, 39);
    gs[1] = eg_scalar(10);
    CHECK(eg_tape_gradients_from(tape, ys, 2, gs, &x, 1, &dx));
    CHECK_TENSOR(dx, 0, 276);
    CHECK(eg_tape_gradients_from(tape, ys, 0, NULL, &x, 1, &dx));
    CHECK(dx == NULL);
}

TEST(an_intermediate_can_be_a_source) {
    eg_tensor *x = eg_scalar(3), *xs[2], *grads[2];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_square(x), *z = eg_square(y);
    xs[0] = x; xs[1] = y;
    CHECK(eg_tape_gradients(tape, z, xs, 2, grads));
    CHECK_TENSOR(grads[0], 0, 108);
    CHECK_TENSOR(grads[1], 0, 18);
}

TEST(source_is_target) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 5, 6), *y;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    y = eg_square(x);
    CHECK_TENSOR(eg_tape_gradient(tape, x, x), 0, 1, 1);
    CHECK_TENSOR(eg_tape_gradient(tape, y, y), 0, 1, 1);
}

TEST(a_source_twice_in_the_list) {
    eg_tensor *x = eg_scalar(3), *xs[2], *grads[2];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    xs[0] = xs[1] = x;
    CHECK(eg_tape_gradients(tape, eg_square(x), xs, 2, grads));
    CHECK_TENSOR(grads[0], 0, 6);
    CHECK_TENSOR(grads[1], 0, 6);
}

TEST(gradients_add_where_paths_meet) {
    eg_tensor *x = eg_scalar(2);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = x;
    for (int i = 0; i < 20; i++) y = eg_add(y, y);             // a million paths
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 1048576);
}

TEST(broadcasting_is_undone) {
    eg_tensor *x = eg_constant(EG_SHAPE(3, 1), 1, 2, 3), *w = eg_constant(EG_SHAPE(2), 10, 20), *xs[2], *grads[2];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, w);
    xs[0] = x; xs[1] = w;
    CHECK(eg_tape_gradients(tape, eg_mul(x, w), xs, 2, grads));
    CHECK_TENSOR(grads[0], 0, 30, 30, 30);
    CHECK_SHAPE(grads[0], 3, 1);
    CHECK_TENSOR(grads[1], 0, 6, 6);
    CHECK_SHAPE(grads[1], 2);
}

TEST(gather_sums_duplicates) {
    eg_tensor *x = eg_constant(EG_SHAPE(3), 1, 2, 3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_gather(x, eg_constant_of(EG_INT32, EG_SHAPE(4), 2, 0, 2, 2));
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(y), x), 0, 2, 0, 18);
}

TEST(jacobian) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *j;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    j = eg_tape_jacobian(tape, eg_square(x), x);
    CHECK_TENSOR(j, 0, 2, 0, 0, 4);
    CHECK_SHAPE(j, 2, 2);
    j = eg_tape_jacobian(tape, eg_reduce_sum(eg_square(x)), x);
    CHECK_TENSOR(j, 0, 2, 4);
    CHECK_SHAPE(j, 2);
    eg_tensor *m = eg_constant(EG_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    j = eg_tape_jacobian(tape, eg_matmul(m, eg_reshape(x, EG_SHAPE(2, 1))), x);
    CHECK_TENSOR(j, 0, 1, 2, 3, 4, 5, 6);
    CHECK_SHAPE(j, 3, 1, 2);
    j = eg_tape_jacobian(tape, eg_slice(x, EG_SHAPE(0), EG_SHAPE(0)), x);
    CHECK_SHAPE(j, 0, 2);
    CHECK(eg_tape_jacobian(tape, eg_square(x), m) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not watched");
    CHECK_ERROR(eg_tape_jacobian(tape, eg_argmax(x), x), EG_ERROR_DTYPE, "not floating");
    CHECK_ERROR(eg_tape_jacobian(eg_tape_begin(), x, x), EG_ERROR_TAPE, "eg_tape_begin_persistent()");
    eg_tensor *big = eg_reshape(x, EG_SHAPE(1, 1, 1, 1, 1, 1, 2));
    CHECK_ERROR(eg_tape_jacobian(tape, eg_square(big), big), EG_ERROR_SHAPE, "more than 8 axes");
}

TEST(batch_jacobian) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), *j;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    j = eg_tape_batch_jacobian(tape, eg_square(x), x);
    CHECK_SHAPE(j, 2, 3, 3);
    CHECK_TENSOR(j, 0, 2, 0, 0, 0, 4, 0, 0, 0, 6, 8, 0, 0, 0, 10, 0, 0, 0, 12);
    j = eg_tape_batch_jacobian(tape, eg_reduce_sum(eg_square(x), .axes = EG_AXES(1)), x);
    CHECK_SHAPE(j, 2, 3);
    CHECK_TENSOR(j, 0, 2, 4, 6, 8, 10, 12);
    CHECK_ERROR(eg_tape_batch_jacobian(tape, eg_transpose(x), x), EG_ERROR_SHAPE, "same batch");
    CHECK_ERROR(eg_tape_batch_jacobian(tape, eg_reduce_sum(x), x), EG_ERROR_SHAPE, "same batch");
}

// ---- stopping, resetting, pausing ---------------------------------------------------------------------------------

TEST(stop_recording) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_square(x);
    eg_tape_stop(tape);
    eg_tensor *unseen = eg_square(x);
    eg_tape_resume(tape);
    eg_tensor *z = eg_add(eg_mul(y, 2), unseen);
    CHECK_TENSOR(eg_tape_gradient(tape, z, x), 0, 12);
    tape = eg_tape_begin();
    eg_tape_stop(tape);
    eg_tape_watch(tape, x);
    CHECK(eg_tape_gradient(tape, eg_square(x), x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not recording");
}

TEST(gradient_of_a_stopped_tape) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_square(x);
    eg_tape_stop(tape);
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 6);
}

TEST(reset_forgets_and_records_again) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_square(x);
    CHECK(eg_tape_reset(tape));
    CHECK(eg_tape_gradient(tape, y, x) == NULL);               // forgotten: watching too
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "not watched");
    CHECK(eg_tape_reset(tape));                                // a spent tape can be used again
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, cube(x), x), 0, 27);
    eg_tape_reset(tape);
    eg_tape_stop(tape);
    eg_tape_reset(tape);                                       // records again
    CHECK_ERROR(eg_tape_resume(tape), EG_ERROR_TAPE, "already");
}

TEST(pausing_suspends_the_tapes_that_are_there) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_recording_pause();
    eg_recording_pause();
    eg_recording_unpause();
    eg_tensor *unseen = eg_square(x);
    eg_tape *inner = eg_tape_begin();                          // begun here: it records
    eg_tape_watch(inner, x);
    CHECK_TENSOR(eg_tape_gradient(inner, eg_square(x), x), 0, 6);
    eg_tape *stays = eg_tape_begin_persistent();
    eg_tape_watch(stays, x);
    eg_recording_unpause();
    eg_recording_unpause();                                    // one too many is harmless
    CHECK(eg_tape_gradient(tape, unseen, x) == NULL);
    eg_tensor *seen = cube(x);
    CHECK_TENSOR(eg_tape_gradient(tape, seen, x), 0, 27);
    CHECK_TENSOR(eg_tape_gradient(stays, seen, x), 0, 27);
    eg_recording_pause();
    unseen = eg_square(x);
    eg_recording_unpause();
    CHECK(eg_tape_gradient(stays, unseen, x) == NULL);         // it is an ordinary tape by now
}

// ---- variables: the value that was read ---------------------------------------------------------------------------

TEST(assignment_after_use_keeps_the_recorded_value) {
    eg_tensor *x = eg_variable(eg_scalar(2), "x");
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_square(x);
    eg_assign(x, 10);
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 4);
    eg_release(x);
}

TEST(assign_add_then_square) {
    eg_tensor *x = eg_variable(eg_scalar(2), "x");
    eg_assign(x, 10);
    eg_tape *tape = eg_tape_begin();
    eg_assign_add(x, 1);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(x), x), 0, 22);
    eg_release(x);
}

TEST(a_variable_read_at_two_times) {
    eg_tensor *x = eg_variable(eg_scalar(2), "x");
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_square(x);
    eg_assign(x, 10);
    y = eg_add(y, eg_square(x));
    CHECK_TENSOR(y, 0, 104);
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 24);         // 2 * 2 + 2 * 10
    eg_release(x);
}

TEST(a_variable_released_before_the_gradient) {
    eg_tensor *x = eg_variable(eg_scalar(3), "x"), *w = eg_variable(eg_scalar(2), "w");
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_mul(eg_square(x), w);
    eg_release(x);
    CHECK_TENSOR(eg_tape_gradient(tape, y, w), 0, 9);
    eg_release(w);
}

TEST(inputs_released_before_the_gradient) {
    eg_tensor *x = eg_retain(eg_scalar(3));
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *y;
    {
        EG_SCOPE;
        y = eg_keep(eg_exp(eg_mul(eg_sin(x), eg_scalar(2))));
    }
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 1e-6, 2 * cos(3) * exp(2 * sin(3)));
    eg_release(x);
}

// ---- gradients of gradients ---------------------------------------------------------------------------------------

TEST(nested_cube) {
    eg_tensor *x = eg_scalar(3.0);
    eg_tape *outer = eg_tape_begin();  eg_tape_watch(outer, x);
    eg_tape *inner = eg_tape_begin();  eg_tape_watch(inner, x);
    eg_tensor *dy = eg_tape_gradient(inner, cube(x), x);
    CHECK_TENSOR(dy, 0, 27);
    CHECK_TENSOR(eg_tape_gradient(outer, dy, x), 0, 18);
}

TEST(fourth_power_to_fifth_order_by_nested_tapes) {
    const double want[] = {32, 48, 48, 24};
    eg_tensor *x = eg_scalar(2);
    eg_tape *tapes[5];
    for (int i = 0; i < 5; i++) { tapes[i] = eg_tape_begin(); eg_tape_watch(tapes[i], x); }
    eg_tensor *y = eg_mul(eg_mul(eg_mul(x, x), x), x);
    CHECK_TENSOR(y, 0, 16);
    for (int i = 0; i < 4; i++) {
        y = eg_tape_gradient(tapes[4 - i], y, x);
        CHECK_TENSOR(y, 0, want[i]);
    }
    CHECK(eg_tape_gradient(tapes[0], y, x) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "constant");
}

TEST(gradient_inside_a_persistent_tape_that_records) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *dy = eg_tape_gradient(tape, cube(x), x);        // recorded on the same tape
    CHECK_TENSOR(dy, 0, 27);
    eg_tensor *d2y = eg_tape_gradient(tape, dy, x);
    CHECK_TENSOR(d2y, 0, 18);
    CHECK_TENSOR(eg_tape_gradient(tape, d2y, x), 0, 6);
}

TEST(a_persistent_tape_asked_many_times) {
    eg_tensor *x = eg_scalar(3);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *y = eg_exp(x), *z = cube(x);
    eg_tape_stop(tape);
    int64_t tensors = eg_memory().live_tensors, bytes = eg_memory().live_bytes;
    for (int i = 0; i < 1000; i++) {
        EG_SCOPE;
        CHECK_NEAR(eg_item(eg_tape_gradient(tape, y, x)), exp(3), 1e-5);
        CHECK_NEAR(eg_item(eg_tape_gradient(tape, z, x)), 27, 0);
    }
    CHECK_INT(eg_memory().live_tensors, tensors);
#ifndef EAGER_DEBUG                                            // there, dead handles stay for a while
    CHECK_INT(eg_memory().live_bytes, bytes);
#else
    (void)bytes;
#endif
}

TEST(two_tapes_of_different_lifetimes) {
    eg_tensor *x = eg_scalar(3), *y, *z;
    eg_tape *longer = eg_tape_begin_persistent();
    eg_tape_watch(longer, x);
    {
        EG_SCOPE;
        eg_tape *shorter = eg_tape_begin();
        eg_tape_watch(shorter, x);
        y = eg_keep(eg_square(x));
        CHECK_TENSOR(eg_tape_gradient(shorter, y, x), 0, 6);
    }
    {
        EG_SCOPE;
        eg_tape *unused = eg_tape_begin_persistent();
        eg_tape_watch(unused, x);
        z = eg_keep(eg_mul(y, x));
    }
    CHECK_TENSOR(eg_tape_gradient(longer, z, x), 0, 27);
    CHECK_TENSOR(eg_tape_gradient(longer, y, x), 0, 6);
}

TEST(two_tapes_watch_different_things) {
    eg_tensor *x = eg_scalar(3), *z = eg_scalar(5);
    eg_tape *a = eg_tape_begin(), *b = eg_tape_begin();
    eg_tape_watch(a, x);
    eg_tape_watch(b, z);
    eg_tensor *y = eg_mul(eg_square(x), z);
    CHECK_TENSOR(eg_tape_gradient(a, y, x), 0, 30);            // the outer one first
    CHECK_TENSOR(eg_tape_gradient(b, y, z), 0, 9);
}

TEST(tapes_ended_by_scopes_in_odd_orders) {
    eg_tensor *x = eg_scalar(3), *y = NULL;
    eg_scope s1 = eg_scope_begin();
    eg_tape *t1 = eg_tape_begin();
    eg_tape_watch(t1, x);
    eg_scope s2 = eg_scope_begin();
    eg_tape *t2 = eg_tape_begin();
    eg_tape_watch(t2, x);
    eg_scope s3 = eg_scope_begin();
    eg_tape_watch(eg_tape_begin_persistent(), x);
    y = eg_retain(cube(x));
    CHECK_TENSOR(eg_tape_gradient(t1, y, x), 0, 27);  // the outermost is spent first
    eg_tape_reset(t1);                                // and begins again, innermost now, while it lives longest
    eg_tape_watch(t1, x);
    eg_scope_end(s2);                                          // ends s3 and both its tapes too
    eg_scope_end(s3);                                          // has ended already
    eg_tensor *z = eg_square(x);
    CHECK_TENSOR(eg_tape_gradient(t1, z, x), 0, 6);
    eg_scope_end(s1);
    eg_release(y);
    eg_square(x);                                              // nobody records any more
}

TEST(a_hundred_nested_tapes) {
    enum { N = 100 };
    eg_tensor *x = eg_scalar(0.5), *y;
    eg_tape *tapes[N];
    for (int i = 0; i < N; i++) { tapes[i] = eg_tape_begin(); eg_tape_watch(tapes[i], x); }
    y = eg_sin(x);
    for (int i = 0; i < N; i++) CHECK_NEAR(eg_item(eg_tape_gradient(tapes[i], y, x)), cos(0.5), 1e-6);
    CHECK_INT(eg_error(), EG_OK);
}

TEST(high_orders_of_exp) {
    enum { N = 12 };
    eg_tensor *x = eg_scalar(0.5);
    eg_tape *tapes[N];
    for (int i = 0; i < N; i++) { tapes[i] = eg_tape_begin(); eg_tape_watch(tapes[i], x); }
    eg_tensor *y = eg_exp(x);
    for (int i = N; i-- > 0;) {
        y = eg_tape_gradient(tapes[i], y, x);
        CHECK_TENSOR(y, 1e-6, exp(0.5));
    }
}

// ---- what a tape holds --------------------------------------------------------------------------------------------

static const char *tape_text(eg_tape *tape) {
    printed[0] = 0;
    eg_set_printer(keep_print, NULL);
    eg_tape_print(tape);
    eg_set_printer(NULL, NULL);
    return printed;
}

TEST(a_tape_printed) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *w = eg_variable(eg_constant(EG_SHAPE(2), 3, 4), "weights");
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_reduce_sum(eg_floor(eg_mul(eg_exp(x), w)));
    const char *text = tape_text(tape);
    CHECK_CONTAINS(text, "4 lines");
    CHECK_CONTAINS(text, "= exp(watched.0)");
    CHECK_CONTAINS(text, "saves output");
    CHECK_CONTAINS(text, "weights)");
    CHECK_CONTAINS(text, "float32 [2]");
    CHECK_CONTAINS(text, "saves input 0, input 1");
    CHECK_CONTAINS(text, "(no gradient)");
    CHECK_CONTAINS(text, "recording");
    eg_release(w);
}

TEST(only_what_the_gradients_need_is_saved) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *c = eg_constant(EG_SHAPE(2), 5, 6);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_mul(x, c);
    CHECK_CONTAINS(tape_text(tape), "saves input 1\n");        // not x
    eg_tape_reset(tape); eg_tape_watch(tape, x);
    eg_mul(c, x);
    CHECK_CONTAINS(tape_text(tape), "saves input 0\n");
    eg_tape_reset(tape); eg_tape_watch(tape, x);
    eg_add(x, c); eg_reshape(x, EG_SHAPE(2, 1)); eg_negative(x); eg_sub(x, c); eg_stop_gradient(eg_exp(c));
    eg_transpose(x); eg_reduce_sum(x);
    CHECK(!strstr(tape_text(tape), "saves"));
    CHECK_CONTAINS(tape_text(tape), "6 lines");                // exp of a constant is not even a line
    eg_tape_reset(tape); eg_tape_watch(tape, x);
    eg_tanh(x);
    CHECK_CONTAINS(tape_text(tape), "saves output\n");
    eg_tape_reset(tape); eg_tape_watch(tape, x);
    eg_matmul(eg_reshape(x, EG_SHAPE(1, 2)), eg_reshape(c, EG_SHAPE(2, 1)));
    CHECK_CONTAINS(tape_text(tape), "saves input 1\n");
}

TEST(a_tape_lets_go_as_soon_as_gradients_have_run) {
    enum { N = 64 * 1024 };
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(N)), *g;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    int64_t tensors = eg_memory().live_tensors, bytes = eg_memory().live_bytes;
    {
        EG_SCOPE;
        eg_tensor *y = x;
        for (int i = 0; i < 10; i++) y = eg_exp(y);
        y = eg_retain(eg_reduce_sum(y));
        g = eg_retain(eg_tape_gradient(tape, y, x));
        eg_release(y);
    }
    CHECK_INT(eg_memory().live_tensors, tensors + 1);          // g
    CHECK(eg_memory().live_bytes < bytes + 2 * N * 4);
    CHECK_CONTAINS(tape_text(tape), "0 lines, 0 tensors");
    eg_release(g);
}

TEST(a_tape_keeps_only_saved_values_of_what_the_scope_let_go) {
    enum { N = 64 * 1024 };
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(N)), *c = eg_ones(EG_FLOAT32, EG_SHAPE(N)), *y;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    int64_t bytes = eg_memory().live_bytes;
    {
        EG_SCOPE;
        y = x;
        for (int i = 0; i < 20; i++) y = eg_mul(eg_add(y, 1), c);      // each saves c alone
        y = eg_keep(y);
    }
    CHECK(eg_memory().live_bytes < bytes + 2 * N * 4);
    CHECK_INT(eg_size(eg_tape_gradient(tape, y, x)), N);
}

TEST(memory_falls_during_backward) {
#ifdef TEST_DEVICE
    SKIP("what is on a device is not counted");
#endif
    enum { N = 64 * 1024, DEPTH = 32 };
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(N)), *y;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    {
        EG_SCOPE;
        y = x;
        for (int i = 0; i < DEPTH; i++) y = eg_sin(y);
        y = eg_keep(eg_reduce_sum(y));
    }
    int64_t held = eg_memory().live_bytes;
    eg_memory_reset_peak();
    eg_tape_gradient(tape, y, x);
    CHECK(eg_memory().peak_bytes < held + 6 * N * 4);          // DEPTH more if the gradients stayed
    CHECK(eg_memory().live_bytes < held - (DEPTH - 3) * N * 4);
}

TEST(a_tape_of_a_hundred_thousand_lines) {
    enum { N = 100000 };
    eg_tensor *x = eg_variable(eg_scalar(1), "x"), *y = eg_scalar(0);
    eg_tape *tape = eg_tape_begin();
    y = eg_retain(y);
    for (int i = 0; i < N; i++) {
        EG_SCOPE;
        eg_tensor *next = eg_retain(eg_add(y, x));
        eg_release(y);
        y = next;
    }
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, N);
    eg_release(y);
    eg_release(x);
}

TEST(a_thousand_sources) {
    enum { N = 2000 };
    eg_tensor **vs = (eg_tensor **)calloc(2 * N, sizeof *vs), *y;
    REQUIRE(vs);
    eg_tape *tape = eg_tape_begin();
    y = eg_scalar(0);
    for (int i = 0; i < N; i++) y = eg_add(y, eg_square(vs[i] = eg_variable(eg_scalar(i), "v")));
    CHECK(eg_tape_gradients(tape, y, vs, N, vs + N));
    for (int i = 0; i < N; i++) CHECK_NEAR(eg_item(vs[N + i]), 2.0 * i, 0);
    for (int i = 0; i < N; i++) eg_release(vs[i]);
    free(vs);
}

TEST(a_tape_as_a_graph) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *w = eg_variable(eg_scalar(2), "a \"quoted\" \\ name");
    char text[4096], small[16];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_floor(eg_mul(eg_exp(x), w));
    int64_t length = eg_tape_dot(tape, text, sizeof text);
    CHECK_INT(length, strlen(text));
    CHECK_CONTAINS(text, "digraph tape {");
    CHECK_CONTAINS(text, "label=\"watched\\n[2]\"");
    CHECK_CONTAINS(text, "label=\"exp\\n[2]\"");
    CHECK_CONTAINS(text, "a 'quoted' ' name");
    CHECK_CONTAINS(text, "s0 -> l0;");
    CHECK_CONTAINS(text, "l0 -> l1;");
    CHECK_CONTAINS(text, "style=dashed");
    CHECK_INT(eg_tape_dot(tape, small, sizeof small), length);
    CHECK_INT(strlen(small), sizeof small - 1);
    CHECK_INT(eg_tape_dot(tape, NULL, 0), length);
    if (system("dot -V >/dev/null 2>&1") == 0) {
        const char *path = test_temp("tape.dot");
        char command[5000];
        FILE *f = fopen(path, "w");
        REQUIRE(f);
        fputs(text, f);
        fclose(f);
        snprintf(command, sizeof command, "dot -Tsvg '%s' >/dev/null", path);
        CHECK_INT(system(command), 0);
    }
    eg_release(w);
}

TEST(executing_eagerly) { CHECK(eg_executing_eagerly()); }

TEST(assert_equal_prints_the_first_differences) {
    eg_tensor *a = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4), *b = eg_constant(EG_SHAPE(2, 2), 1, 5, 3, 7);
    CHECK(eg_assert_equal(a, a));
    CHECK_ERROR(eg_assert_equal(a, b), EG_ERROR_ASSERT, "==");
    CHECK_ERROR(eg_assert_equal(a, b), EG_ERROR_ASSERT,
                "does not hold for 2 of 4 elements: at [0, 1]: 2 against 5; [1, 1]: 4 against 7");
    CHECK_ERROR(eg_assert_equal(a, eg_reshape(a, EG_SHAPE(4))), EG_ERROR_ASSERT, "shapes differ");
    CHECK_ERROR(eg_assert_equal(a, eg_cast(a, EG_FLOAT64)), EG_ERROR_ASSERT, "dtypes differ");
    CHECK(eg_assert_near(a, eg_add(a, 0.001), 0.01));
    CHECK_ERROR(eg_assert_near(a, b, 0.01), EG_ERROR_ASSERT, "differ by more than 0.01");
    CHECK(eg_assert_shape(a, EG_SHAPE(2, -1)));
    CHECK_ERROR(eg_assert_shape(a, EG_SHAPE(3, -1)), EG_ERROR_ASSERT, "has not the shape [3, -1]");
}

// ---- custom gradients ---------------------------------------------------------------------------------------------

static int runs;                                               // how often a backward below ran

static eg_tensor *log1pexp(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    return eg_log(eg_add(c->saved[0] = eg_exp(in[0]), 1));
}
static void log1pexp_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    runs++;
    dx[0] = eg_mul(c->upstream[0], eg_sub(1, eg_div(1, eg_add(1, c->saved[0]))));
}

TEST(log1pexp_naive_and_custom) {
    const double at[] = {0, 100};
    for (int i = 0; i < 2; i++) {
        eg_tensor *x = eg_scalar(at[i]);
        eg_tape *tape = eg_tape_begin_persistent();
        eg_tape_watch(tape, x);
        CHECK_TENSOR(eg_tape_gradient(tape, eg_log(eg_add(eg_exp(x), 1)), x), 1e-6, i ? (double)NAN : 0.5);
        CHECK_TENSOR(eg_tape_gradient(tape, eg_custom_gradient(log1pexp, log1pexp_grad, NULL, &x, 1), x), 1e-6,
                     i ? 1.0 : 0.5);
    }
}

TEST(log1pexp_twice) {
    eg_tensor *x = eg_scalar(0);
    eg_tape *outer = eg_tape_begin();  eg_tape_watch(outer, x);
    eg_tape *inner = eg_tape_begin();  eg_tape_watch(inner, x);
    eg_tensor *dy = eg_tape_gradient(inner, eg_custom_gradient(log1pexp, log1pexp_grad, NULL, &x, 1), x);
    CHECK_TENSOR(dy, 1e-6, 0.5);
    CHECK_TENSOR(eg_tape_gradient(outer, dy, x), 1e-6, 0.25);
    eg_tape *tape = eg_tape_begin_persistent();                // and on one persistent tape
    eg_tape_watch(tape, x);
    dy = eg_tape_gradient(tape, eg_custom_gradient(log1pexp, log1pexp_grad, NULL, &x, 1), x);
    CHECK_TENSOR(eg_tape_gradient(tape, dy, x), 1e-6, 0.25);
}

// Identity forward; the gradient is clipped to the norm in[1].
static eg_tensor *clip_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[1];
    return in[0];                                              // the input itself
}
static void clip_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    eg_tensor *g = c->upstream[0], *norm = eg_sqrt(eg_reduce_sum(eg_square(g)));
    dx[0] = eg_mul(g, eg_div(c->saved[0], eg_maximum(norm, c->saved[0])));
}

TEST(clip_gradient_by_norm) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2), *limit = eg_scalar(0.5), *in[2], *grads[2],
              *up = eg_constant(EG_SHAPE(2), 3, 4), *y;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, limit);
    in[0] = x; in[1] = limit;
    y = eg_custom_gradient(clip_forward, clip_backward, NULL, in, 2);
    CHECK(y && y != x);  // a handle of its own, or the tape could not tell them apart
    CHECK_TENSOR(y, 0, 1, 2);
    CHECK(eg_tape_gradients_from(tape, &y, 1, &up, in, 2, grads));
    CHECK_TENSOR(grads[0], 1e-6, .3, .4);
    CHECK(grads[1] == NULL);                                   // no gradient for its second argument
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "gave no gradient");
}

static eg_tensor *pass(eg_tensor *const *in, eg_grad_context *c, void *user) { (void)c; (void)user; return in[0]; }
static void double_it(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], 2);
}

TEST(a_forward_that_returns_a_variable) {
    eg_tensor *v = eg_variable(eg_scalar(3), "v"), *c = eg_scalar(5);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tensor *y = eg_custom_gradient(pass, double_it, NULL, &v, 1);
    eg_assign(v, 100);
    CHECK(!eg_is_variable(y));
    CHECK_TENSOR(y, 0, 3);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(y), v), 0, 12);
    eg_tape_watch(tape, c);
    y = eg_custom_gradient(pass, double_it, NULL, &c, 1);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_add(y, c), c), 0, 3);       // through the op, and past it
    eg_release(v);
}

// (a, b) -> (a + b, a b).
static bool two_forward(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    c->saved[1] = in[1];
    out[0] = eg_add(in[0], in[1]);
    out[1] = eg_mul(in[0], in[1]);
    return true;
}
static void two_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    runs++;
    CHECK_INT(c->n_inputs, 2);
    CHECK_INT(c->n_outputs, 2);
    CHECK(c->upstream[0] && c->upstream[1]);
    if (user) memcpy(user, c->needed, 2 * sizeof(bool));
    dx[0] = eg_add(c->upstream[0], eg_mul(c->upstream[1], c->saved[1]));
    dx[1] = eg_add(c->upstream[0], eg_mul(c->upstream[1], c->saved[0]));
}

TEST(several_inputs_and_outputs) {
    eg_tensor *in[2], *out[2], *grads[2];
    bool needed[2] = {false, false};
    in[0] = eg_constant(EG_SHAPE(2), 2, 3); in[1] = eg_constant(EG_SHAPE(2), 5, 7);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, in[0]);
    eg_tape_watch(tape, in[1]);
    CHECK(eg_custom_gradient_multi(two_forward, two_backward, needed, in, 2, out, 2));
    CHECK_TENSOR(out[0], 0, 7, 10);
    CHECK_TENSOR(out[1], 0, 10, 21);
    CHECK(eg_tape_gradients_from(tape, out, 2, NULL, in, 2, grads));
    CHECK_TENSOR(grads[0], 0, 6, 8);
    CHECK_TENSOR(grads[1], 0, 3, 4);
    CHECK(needed[0] && needed[1]);
    CHECK(eg_tape_gradients(tape, out[1], in, 2, grads));      // the other upstream is zero, not NULL
    CHECK_TENSOR(grads[0], 0, 5, 7);
    CHECK_TENSOR(eg_tape_gradient(tape, out[0], in[1]), 0, 1, 1);
    CHECK(!needed[0] && needed[1]);
}

TEST(a_backward_runs_only_for_somebody) {
    eg_tensor *x = eg_scalar(1), *z = eg_scalar(2);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, z);
    eg_tensor *y = eg_custom_gradient(log1pexp, log1pexp_grad, NULL, &x, 1), *w = eg_mul(y, z);
    runs = 0;
    eg_tape_gradient(tape, w, z);
    eg_tape_gradient(tape, w, y);                              // y is the source: nothing behind it is asked for
    CHECK_INT(runs, 0);
    eg_tape_gradient(tape, w, x);
    CHECK_INT(runs, 1);
}

static eg_tensor *same(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c;
    (void)user;
    return eg_identity(in[0]);
}
static void wrong_shape(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = c->upstream[0];
    dx[1] = eg_reduce_sum(c->upstream[0]);
}
static void wrong_dtype(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = c->upstream[0];
    dx[1] = eg_cast(c->upstream[0], EG_FLOAT64);
}
static void plain_number(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)c;
    (void)user;
    dx[0] = dx[1] = eg_number(4);
}

TEST(a_gradient_of_wrong_shape_or_dtype_names_the_input) {
    eg_custom_backward *wrong[] = {wrong_shape, wrong_dtype};
    for (int i = 0; i < 2; i++) {
        eg_tensor *in[2], *grads[2];
        in[0] = eg_zeros(EG_FLOAT32, EG_SHAPE(3)); in[1] = eg_zeros(EG_FLOAT32, EG_SHAPE(3));
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, in[0]);
        eg_tape_watch(tape, in[1]);
        eg_tensor *y = eg_custom_gradient(same, wrong[i], NULL, in, 2);
        CHECK_ERROR(CHECK_INT(eg_tape_gradients(tape, y, in, 2, grads), 0), EG_ERROR_GRADIENT,
                    "eg_custom_gradient: the gradient for input 1 is");
        CHECK(!grads[0] && !grads[1]);
    }
}

TEST(a_plain_number_as_gradient) {
    eg_tensor *in[2], *grads[2];
    in[0] = eg_zeros(EG_FLOAT32, EG_SHAPE(3)); in[1] = eg_zeros(EG_FLOAT64, EG_SHAPE(2));
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    eg_tape_watch(tape, in[1]);
    CHECK(eg_tape_gradients(tape, eg_custom_gradient(same, plain_number, NULL, in, 2), in, 2, grads));
    CHECK_TENSOR(grads[0], 0, 4, 4, 4);
    CHECK_TENSOR(grads[1], 0, 4, 4);
    CHECK_DTYPE(grads[1], EG_FLOAT64);
}

static void variable_as_gradient(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)c;
    dx[0] = (eg_tensor *)user;
}
TEST(a_variable_as_gradient_is_its_value_then) {
    eg_tensor *x = eg_scalar(2), *v = eg_variable(eg_scalar(5), "v");
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tensor *g = eg_tape_gradient(tape, eg_custom_gradient(same, variable_as_gradient, v, &x, 1), x);
    CHECK(!eg_is_variable(g));
    eg_assign(v, 7);
    CHECK_TENSOR(g, 0, 5);
    eg_release(v);
}

static eg_tensor *square_saved(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[3] = in[0];
    return eg_square(in[0]);
}
static void square_saved_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    CHECK(!c->saved[0] && c->saved[3]);
    dx[0] = eg_mul(c->upstream[0], eg_mul(c->saved[3], 2));
}

TEST(saved_values_are_those_of_the_forward) {
    eg_tensor *v = eg_variable(eg_scalar(3), "v");
    for (int order = 1; order <= 2; order++) {
        eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
        eg_tensor *y = eg_custom_gradient(square_saved, square_saved_grad, NULL, &v, 1);
        CHECK_CONTAINS(tape_text(tape), "saves saved[3]");
        eg_assign(v, 100);                                     // a saved variable keeps what it held
        eg_tensor *g = eg_tape_gradient(tape, y, v);
        CHECK_TENSOR(g, 0, 6);
        CHECK_TENSOR(eg_tape_gradient(outer, g, v), 0, 2);
        eg_assign(v, 3);
    }
    eg_release(v);
}

// A custom op that uses a custom op.
static eg_tensor *outer_forward(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    eg_tensor *y = c->saved[0] = eg_custom_gradient(square_saved, square_saved_grad, NULL, in, 1);
    return eg_square(y);                                       // x^4
}
static void outer_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    eg_tensor *const *x = (eg_tensor *const *)user;
    dx[0] = eg_mul(c->upstream[0], eg_mul(eg_mul(4, c->saved[0]), x[0]));
}

TEST(custom_ops_in_custom_ops) {
    eg_tensor *x = eg_scalar(2);
    eg_tape *t1 = eg_tape_begin(), *t2 = eg_tape_begin(), *t3 = eg_tape_begin();
    eg_tape_watch(t1, x); eg_tape_watch(t2, x); eg_tape_watch(t3, x);
    eg_tensor *y = eg_custom_gradient(outer_forward, outer_backward, &x, &x, 1);
    CHECK_TENSOR(y, 0, 16);
    y = eg_tape_gradient(t3, y, x);
    CHECK_TENSOR(y, 0, 32);
    y = eg_tape_gradient(t2, y, x);
    CHECK_TENSOR(y, 0, 48);
    CHECK_TENSOR(eg_tape_gradient(t1, y, x), 0, 48);
}

// Newton's square root inside a forward: it takes gradients of its own.
static eg_tensor *newton_sqrt(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    eg_tensor *y = eg_add(eg_mul(in[0], 0), 1);
    for (int i = 0; i < 20; i++) {
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, y);
        eg_tensor *f = eg_sub(eg_square(y), in[0]), *slope = eg_tape_gradient(tape, f, y);
        y = eg_sub(y, eg_div(f, slope));
    }
    return c->saved[0] = y;
}
static void newton_sqrt_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_div(c->upstream[0], eg_mul(2, c->saved[0]));
}

TEST(a_forward_that_takes_gradients_itself) {
    for (int tapes = 0; tapes < 3; tapes++) {
        EG_SCOPE;
        eg_tensor *x = eg_scalar(9);
        eg_tape *tape = NULL;
        for (int i = 0; i < tapes; i++) { tape = eg_tape_begin(); eg_tape_watch(tape, x); }
        eg_tensor *y = eg_custom_gradient(newton_sqrt, newton_sqrt_grad, NULL, &x, 1);
        CHECK_TENSOR(y, 1e-6, 3);
        if (tape) CHECK_TENSOR(eg_tape_gradient(tape, y, x), 1e-6, 1.0 / 6);
    }
}

static eg_tensor *fails(eg_tensor *const *in, eg_grad_context *c, void *user) {
    c->saved[0] = in[0];
    return user ? eg_matmul(in[0], in[0]) : NULL;
}
static bool fails_multi(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)c;
    (void)user;
    out[0] = eg_square(in[0]);
    return false;
}
static bool half_multi(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)c;
    (void)user;
    out[0] = eg_square(in[0]);
    return true;
}

TEST(a_forward_that_fails) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(3)), *out[2];
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_ERROR(CHECK_INT(eg_custom_gradient(fails, log1pexp_grad, NULL, &x, 1) != NULL, 0), EG_ERROR_STATE,
                "failed without an error");
    CHECK_ERROR(CHECK_INT(eg_custom_gradient(fails, log1pexp_grad, &runs, &x, 1) != NULL, 0), EG_ERROR_SHAPE,
                "eg_matmul");
    CHECK_ERROR(CHECK_INT(eg_custom_gradient_multi(fails_multi, log1pexp_grad, NULL, &x, 1, out, 2), 0), EG_ERROR_STATE,
                "failed without an error");
    CHECK(!out[0] && !out[1]);
    CHECK_ERROR(CHECK_INT(eg_custom_gradient_multi(half_multi, log1pexp_grad, NULL, &x, 1, out, 2), 0), EG_ERROR_NULL,
                "NULL");
    CHECK(!out[0] && !out[1]);
    CHECK_ERROR(eg_custom_gradient_multi(half_multi, log1pexp_grad, NULL, &x, 1, out, 0), EG_ERROR_ARGUMENT, "outputs");
    CHECK_ERROR(CHECK_INT(eg_custom_gradient_multi(half_multi, log1pexp_grad, NULL, NULL, 1, out, 2), 0),
                EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    CHECK_ERROR(CHECK_INT(eg_custom_gradient_multi(half_multi, log1pexp_grad, NULL, &x, -1, out, 2), 0),
                EG_ERROR_ARGUMENT, "a list of -1");
    CHECK_ERROR(CHECK_INT(eg_custom_gradient_multi(half_multi, log1pexp_grad, NULL, &x, 1, NULL, 2), 0),
                EG_ERROR_ARGUMENT, "a list of 2 is NULL");
    CHECK_ERROR(eg_custom_gradient(NULL, log1pexp_grad, NULL, &x, 1), EG_ERROR_ARGUMENT, "a function is NULL");
    CHECK_ERROR(eg_custom_gradient(same, NULL, NULL, &x, 1), EG_ERROR_ARGUMENT, "a function is NULL");
    CHECK_CONTAINS(tape_text(tape), "0 lines");
}

static void raises(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_matmul(c->upstream[0], c->upstream[0]);
}
static void raises_and_recovers(const eg_grad_context *c, eg_tensor **dx, void *user) {
    raises(c, dx, user);
    eg_error_clear();
    dx[0] = c->upstream[0];
}
static void sets_then_raises(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = c->upstream[0];
    eg_raise(EG_ERROR_MATH, "no solution");
}

TEST(a_backward_that_raises) {
    eg_custom_backward *backward[] = {raises, sets_then_raises};
    for (int i = 0; i < 2; i++) {
        eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(3)), *z = eg_scalar(1), *xs[2], *grads[2];
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tape_watch(tape, z);
        xs[0] = x; xs[1] = z;
        eg_tensor *y = eg_mul(eg_custom_gradient(same, backward[i], NULL, &x, 1), z);
        CHECK_ERROR(CHECK_INT(eg_tape_gradients(tape, y, xs, 2, grads), 0), i ? EG_ERROR_MATH : EG_ERROR_SHAPE,
                    i ? "no solution" : "eg_matmul");
        CHECK(!grads[0] && !grads[1]);
    }
}

TEST(a_backward_that_recovers) {
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(3));
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_custom_gradient(same, raises_and_recovers, NULL, &x, 1), x), 0, 1, 1, 1);
}

static eg_tape *asked;
static void resets(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    eg_tape_reset(asked);
    dx[0] = c->upstream[0];
}
static void asks_again(const eg_grad_context *c, eg_tensor **dx, void *user) {
    eg_tensor *const *x = (eg_tensor *const *)user;
    CHECK(eg_tape_gradient(asked, x[0], eg_scalar(1)) == NULL);        // leaves a reason
    dx[0] = c->upstream[0];
}

TEST(a_tape_in_the_hands_of_its_own_backward) {
    eg_tensor *x = eg_scalar(1), *y;
    asked = eg_tape_begin();
    eg_tape_watch(asked, x);
    y = eg_square(eg_custom_gradient(same, resets, NULL, &x, 1));
    CHECK_ERROR(eg_tape_gradient(asked, y, x), EG_ERROR_TAPE, "a gradient is being computed");
    asked = eg_tape_begin_persistent();
    eg_tape_watch(asked, x);
    y = eg_square(eg_custom_gradient(same, asks_again, &x, &x, 1));
    CHECK_TENSOR(eg_tape_gradient(asked, y, x), 0, 2);
    CHECK_STR(eg_tape_unconnected_reason(), "");
}

TEST(custom_gradient_without_a_tape) {
    eg_tensor *x = eg_scalar(0);
    CHECK_TENSOR(eg_custom_gradient(log1pexp, log1pexp_grad, NULL, &x, 1), 1e-6, log(2));
    CHECK_ERROR(eg_custom_gradient(log1pexp, log1pexp_grad, NULL, (eg_tensor *[]){NULL}, 1), EG_ERROR_NULL, "NULL");
}

// ---- ops of one's own ---------------------------------------------------------------------------------------------

static bool hypot_forward(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)user;
    c->saved[0] = in[0];
    c->saved[1] = in[1];
    return (out[0] = c->saved[2] = eg_sqrt(eg_add(eg_square(in[0]), eg_square(in[1])))) != NULL;
}
static void hypot_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    eg_tensor *g = eg_div(c->upstream[0], c->saved[2]);
    if (user && *(int *)user) g = eg_scalar(INFINITY);
    if (c->needed[0]) dx[0] = eg_mul(g, c->saved[0]);
    if (c->needed[1]) dx[1] = eg_mul(g, c->saved[1]);
}
static bool nan_forward(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)in; (void)c; (void)user;
    out[0] = eg_scalar(NAN);
    return true;
}
static int hypot_op(void) {
    static int op = -1;
    static int spoiled;
    eg_op_definition d = {"test_hypot", 2, 1, hypot_forward, hypot_backward, &spoiled};
    if (op < 0) op = eg_op_register(&d);
    return op;
}

TEST(an_op_of_ones_own) {
    eg_tensor *in[2], *y, *grads[2];
    in[0] = eg_scalar(3); in[1] = eg_scalar(4);
    REQUIRE(hypot_op() >= 0);
    eg_tape *outer = eg_tape_begin(), *tape = eg_tape_begin();
    eg_tape_watch(outer, in[0]);
    eg_tape_watch(tape, in[0]);
    eg_tape_watch(tape, in[1]);
    CHECK(eg_op_run(hypot_op(), in, 2, &y, 1));
    CHECK_TENSOR(y, 0, 5);
    CHECK_STR(eg_name_of(y), "test_hypot");
    CHECK_CONTAINS(tape_text(tape), "= test_hypot(watched.0, watched.1)");
    CHECK(eg_tape_gradients(tape, y, in, 2, grads));
    CHECK_TENSOR(grads[0], 1e-6, .6);
    CHECK_TENSOR(grads[1], 1e-6, .8);
    CHECK_TENSOR(eg_tape_gradient(outer, grads[0], in[0]), 1e-6, .128);        // b^2 / (a^2 + b^2)^1.5
}

TEST(errors_of_an_op_of_ones_own_name_it) {
    eg_tensor *in[3] = {NULL}, *y;
    eg_op_definition d = {"test_hypot", 2, 1, hypot_forward, NULL, NULL};
    REQUIRE(hypot_op() >= 0);
    CHECK_ERROR(CHECK_INT(eg_op_register(&d), -1), EG_ERROR_ARGUMENT, "test_hypot already");
    d.name = "matmul";
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "matmul already");
    d.name = "eg_hypot";
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "eg_hypot begins with eg_");
    d.name = "";
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "a name");
    d.name = "test_a_name_that_is_longer_than_sixty_three_characters_is_refused_here";
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "longer than 63");
    d.name = "test_outputs";
    d.n_outputs = 0;
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "outputs");
    CHECK_ERROR(eg_op_register(NULL), EG_ERROR_ARGUMENT, "needed");
    CHECK_ERROR(eg_op_run(12345, in, 2, &y, 1), EG_ERROR_ARGUMENT, "no op number 12345");
    CHECK(!eg_op_run(hypot_op(), in, 3, &y, 1));
    CHECK(!strncmp(eg_error_message(), "test_hypot: takes", 17));       // no "eg_" before a name of the program's own
    eg_error_clear();
    CHECK(!eg_matmul(in[0], in[1]));
    CHECK(!strncmp(eg_error_message(), "eg_matmul: ", 11));
    eg_error_clear();
    CHECK_ERROR(eg_op_run(hypot_op(), in, 3, &y, 1), EG_ERROR_ARGUMENT, "test_hypot: takes 2 inputs, not 3");
    d.name = "item";                        // the name of a function that is no op
    d.n_outputs = 1;
    const int item = eg_op_register(&d);
    CHECK_ERROR(eg_op_run(item, in, 3, &y, 1), EG_ERROR_ARGUMENT, "item: takes 2 inputs, not 3");
    CHECK(isnan(eg_item(eg_ones(EG_FLOAT32, EG_SHAPE(2)))) && !strncmp(eg_error_message(), "eg_item: ", 9));
    eg_error_clear();
    CHECK_ERROR(eg_op_run(hypot_op(), in, 2, &y, 2), EG_ERROR_ARGUMENT, "test_hypot: has 1 output, not 2");
    CHECK_ERROR(eg_op_run(hypot_op(), in, 2, &y, 1), EG_ERROR_NULL, "test_hypot: inputs[0] is NULL");
}

TEST(an_op_without_backward_is_not_differentiable) {
    static int op = -1;
    eg_op_definition d = {"test_no_backward", 2, 1, hypot_forward, NULL, NULL};
    eg_tensor *in[2], *y;
    if (op < 0) op = eg_op_register(&d);
    REQUIRE(op >= 0);
    in[0] = in[1] = eg_scalar(1);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, in[0]);
    CHECK(eg_op_run(op, in, 2, &y, 1));
    CHECK(!strstr(tape_text(tape), "saves"));
    CHECK_CONTAINS(tape_text(tape), "(no gradient)");
    CHECK(eg_tape_gradient(tape, y, in[0]) == NULL);
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "eg_test_no_backward, which is not differentiable");
}

static bool sum_forward(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)user;
    out[0] = in[0];
    for (int i = 1; i < c->n_inputs; i++) out[0] = eg_add(out[0], in[i]);
    return out[0] != NULL;
}
static void sum_backward(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    for (int i = 0; i < c->n_inputs; i++) dx[i] = c->upstream[0];
}

TEST(an_op_of_any_number_of_inputs) {
    static int op = -1;
    enum { N = 40 };
    eg_op_definition d = {"test_add_n", -1, 1, sum_forward, sum_backward, NULL};
    eg_tensor *in[N], *grads[N], *y;
    if (op < 0) op = eg_op_register(&d);
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < N; i++) eg_tape_watch(tape, in[i] = eg_scalar(i));
    CHECK(eg_op_run(op, in, N, &y, 1));
    CHECK_TENSOR(y, 0, N * (N - 1) / 2);
    CHECK(eg_tape_gradients(tape, eg_square(y), in, N, grads));
    for (int i = 0; i < N; i++) CHECK_TENSOR(grads[i], 0, N * (N - 1));
}

TEST(the_trap_names_ops_of_ones_own) {
    static int op = -1;
    eg_op_definition d = {"test_nan", 1, 1, nan_forward, sum_backward, NULL};
    eg_tensor *in[2], *y;
    if (op < 0) op = eg_op_register(&d);
    in[0] = eg_scalar(1); in[1] = eg_scalar(2);
    bool former = eg_trap_nonfinite(true);
    CHECK_TRAPPED(eg_op_run(op, in, 1, &y, 1), "test_nan: made 1 NaN or infinite elements");
    CHECK(y == NULL || test_traps_later);
    eg_trap_nonfinite(former);
}

static void infinite(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)c;
    (void)user;
    dx[0] = eg_scalar(INFINITY);
}

TEST(the_trap_covers_backward) {
    eg_tensor *x = eg_scalar(0), *y;
    bool former = eg_trap_nonfinite(true);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    y = eg_sqrt(x);
    CHECK_TRAPPED(eg_tape_gradient(tape, y, x), "in the gradient of eg_sqrt");
    y = eg_custom_gradient(same, infinite, NULL, &x, 1);
    CHECK_TRAPPED(eg_tape_gradient(tape, y, x), "eg_custom_gradient: made 1");
    eg_trap_nonfinite(former);
    CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, (double)INFINITY);
}

#ifndef EAGER_NO_THREADS
#include <pthread.h>
static void *use_elsewhere(void *tape) {
    EG_SCOPE;
    eg_tensor *x = eg_scalar(1);
    bool watched = eg_tape_watch((eg_tape *)tape, x);
    static char said[256];
    snprintf(said, sizeof said, "%d %s", watched, eg_error_message());
    eg_error_clear();
    return said;
}
TEST(a_tape_belongs_to_its_thread) {
    eg_tape *tape = eg_tape_begin();
    pthread_t thread;
    void *said = NULL;
    REQUIRE(pthread_create(&thread, NULL, use_elsewhere, tape) == 0);
    pthread_join(thread, &said);
    CHECK_CONTAINS((const char *)said, "0 eg_tape_watch: the tape belongs to another thread");
}
#endif

// The forward is plain C, the backward reads the saved output: differentiated again, that output is the op's.
static eg_tensor *cube_in_c(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)user;
    double x = eg_item(in[0]);
    c->saved[0] = in[0];
    return c->saved[1] = eg_scalar_of(EG_FLOAT64, x * x * x);
}
static void cube_in_c_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_mul(c->upstream[0], eg_div(eg_mul(c->saved[1], 3), c->saved[0]));
}
static eg_tensor *call_cube_in_c(eg_tensor *const *in, void *user) {
    return eg_custom_gradient(cube_in_c, cube_in_c_grad, user, in, 1);
}
TEST(a_saved_output_is_differentiated_as_the_op) {
    eg_tensor *x = eg_scalar_of(EG_FLOAT64, 2);
    CHECK_NEAR(eg_item(eg_nth_gradient(call_cube_in_c, NULL, x, 1)), 12, 1e-12);
    CHECK_NEAR(eg_item(eg_nth_gradient(call_cube_in_c, NULL, x, 2)), 12, 1e-12);
    CHECK_NEAR(eg_item(eg_nth_gradient(call_cube_in_c, NULL, x, 3)), 6, 1e-12);
}

// ---- pieces of a tensor: their gradients go into one sum, in place where nobody else sees it

static eg_tensor *of_pieces(eg_tensor *const *in, void *user) {
    eg_tensor *piece[4], *rows = eg_mul(in[0], 1);
    (void)user;
    eg_unstack(rows, 4, 1, piece);
    eg_tensor *y = eg_add(eg_mul(piece[0], piece[3]), eg_square(piece[1]));  // piece 2 is not used
    y = eg_add(y, eg_reduce_sum(eg_strided_slice(rows, EG_SHAPE(EG_END, 0), EG_SHAPE(EG_END, EG_END), EG_SHAPE(-1, 2)),
                                .axes = EG_AXES(1)));
    return eg_add(eg_reduce_sum(y), eg_reduce_sum(eg_mul(rows, eg_square(rows))));
}

TEST(gradients_of_pieces_add_up) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 4), 1, 2, 3, 4, -1, .5, 2, 1);
    eg_tensor *grad;
    CHECK(eg_gradients_function(of_pieces, NULL, &x, 1, &grad));
    CHECK_TENSOR(grad, 1e-6, 3 + 4 + 1, 12 + 4, 27 + 1, 48 + 1, 3 + 1 + 1, .75 + 1, 12 + 1, 3 - 1);
    CHECK(eg_check_gradient(of_pieces, NULL, &x, 1, .order = 2));
}

TEST(a_sum_that_others_hold_is_not_written) {
    eg_tensor *x = eg_constant(EG_SHAPE(4), 1, 2, 3, 4);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    // the upstream itself becomes y's gradient
    eg_tensor *y = eg_identity(x), *up = eg_constant(EG_SHAPE(4), 10, 20, 30, 40);
    eg_tensor *ys[] = {eg_slice(y, EG_SHAPE(1), EG_SHAPE(2)), y}, *ups[] = {NULL, up}, *grad;
    CHECK(eg_tape_gradients_from(tape, ys, 2, ups, &x, 1, &grad));
    CHECK_TENSOR(grad, 0, 10, 21, 31, 40);
    CHECK_TENSOR(up, 0, 10, 20, 30, 40);
}

// ---- what is no tape, no list, no op ------------------------------------------------------------------------------

// A NULL tape is an error in every function; where one is pending already, it adds none.
TEST(every_function_of_a_tape_needs_one) {
    eg_tensor *x = ones(), *list[1] = {NULL};
    char text[8] = "before";
    for (int pending = 0; pending < 2; pending++) {
        if (pending) eg_raise(EG_ERROR_STATE, "the first error");
        int64_t before = eg_error_count();
        CHECK(!eg_tape_resume(NULL));
        CHECK(!eg_tape_stop(NULL));
        CHECK(!eg_tape_reset(NULL));
        CHECK(!eg_tape_watch_variables(NULL, true));
        CHECK(!eg_tape_unconnected_zeros(NULL, true));
        CHECK_INT(eg_tape_watched_variables(NULL, list, 1), -1);
        CHECK_STR(tape_text(NULL), "");
        CHECK_INT(eg_tape_dot(NULL, text, sizeof text), -1);
        CHECK(!eg_tape_jacobian(NULL, x, x));
        CHECK(!eg_tape_batch_jacobian(NULL, x, x));
        CHECK_INT(eg_error(), pending ? EG_ERROR_STATE : EG_ERROR_NULL);
        CHECK_CONTAINS(eg_error_message(), pending ? "the first error" : "eg_tape_resume: the tape is NULL");
        CHECK(!pending || eg_error_count() == before);
        eg_error_clear();
    }
    CHECK_STR(text, "before");
}
TEST(lists_that_are_none) {
    eg_tensor *x = ones(), *g = x, *v = eg_variable(eg_constant(EG_SHAPE(1, 1), 7), "v"), *number = eg_number(3);
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    eg_tensor *y = cube(x);
    CHECK_ERROR(eg_tape_gradients_from(tape, &y, -1, NULL, &x, 1, &g), EG_ERROR_ARGUMENT,
                "eg_tape_gradients_from: a list of -1");
    CHECK_ERROR(eg_tape_gradients_from(tape, &y, 1, NULL, &x, -1, &g), EG_ERROR_ARGUMENT, "a list of -1");
    CHECK_ERROR(eg_tape_gradients_from(tape, NULL, 1, NULL, &x, 1, &g), EG_ERROR_ARGUMENT,
                "eg_tape_gradients_from: a list of 1 is NULL");
    CHECK(eg_tape_gradients_from(tape, NULL, 0, NULL, NULL, 0, NULL));        // nothing of nothing
    // a number is that everywhere, a variable what it is now
    CHECK(eg_tape_gradients_from(tape, &y, 1, &number, &x, 1, &g));
    CHECK_TENSOR(g, 0, 9);
    CHECK(eg_tape_gradients_from(tape, &y, 1, &v, &x, 1, &g));
    CHECK_TENSOR(g, 0, 21);
    CHECK(!eg_tape_gradient(tape, y, number));
    CHECK(!eg_tape_gradient(tape, number, x));
    CHECK_ERROR(eg_tape_jacobian(tape, NULL, x), EG_ERROR_NULL, "eg_tape_jacobian");
    CHECK_ERROR(eg_tape_jacobian(tape, y, NULL), EG_ERROR_NULL, "eg_tape_jacobian");
    CHECK_ERROR(eg_tape_batch_jacobian(tape, y, eg_reduce_sum(x)), EG_ERROR_SHAPE, "must be the same batch");
    eg_tensor *none = eg_ones(EG_FLOAT32, EG_SHAPE(0, 2));
    eg_tape_watch(tape, none);
    CHECK_SHAPE(eg_tape_batch_jacobian(tape, eg_square(none), none), 0, 2, 2);
    CHECK_SHAPE(eg_tape_jacobian(tape, eg_square(none), none), 0, 2, 0, 2);
    eg_release(v);
}
static bool two_of_one(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)user;
    out[0] = c->saved[0] = eg_square(in[0]);
    out[1] = c->saved[1] = eg_number(4);
    return true;
}
static void two_of_one_grad(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_add(c->upstream[0], c->upstream[1]);
}
TEST(a_tape_of_nameless_things_printed) {
    char long_name[100], text[4096];
    memset(long_name, 'n', 99);
    long_name[99] = 0;
    eg_tensor *w = eg_variable(eg_constant(EG_SHAPE(1, 1), 2), NULL),
              *v = eg_variable(eg_constant(EG_SHAPE(1, 1), 2), long_name), *out[2];
    eg_tape *tape = eg_tape_begin_persistent();
    CHECK(eg_custom_gradient_multi(two_of_one, two_of_one_grad, NULL, &w, 1, out, 2));
    eg_mul(v, out[0]);
    eg_tape_stop(tape);
    CHECK_TENSOR(out[1], 0, 4);
    const char *shown = tape_text(tape);
    CHECK_CONTAINS(shown, "persistent\n");
    CHECK_CONTAINS(shown, "%2, %3 = custom_gradient(variable)");
    CHECK_CONTAINS(shown, "float32 [1, 1], float32 []");
    CHECK_CONTAINS(shown, "saved[0]");
    CHECK_CONTAINS(shown, "saved[1]");
    CHECK(eg_tape_dot(tape, text, sizeof text) > 0);
    CHECK_CONTAINS(text, "label=\"watched\\n[1, 1]\"");
    long_name[63] = 0;
    CHECK_CONTAINS(text, long_name);
    CHECK(!strstr(text, "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"));       // 65 of them
    eg_release(w);
    eg_release(v);
}
static eg_tensor *of_nothing(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)in;
    (void)c;
    (void)user;
    return eg_number(5);
}
TEST(an_op_of_no_inputs) {
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_custom_gradient(of_nothing, two_of_one_grad, NULL, NULL, 0), *x = ones();
    CHECK_TENSOR(y, 0, 5);
    CHECK_DTYPE(y, EG_FLOAT32);
    CHECK(!eg_tape_gradient(tape, y, x));
    CHECK_ERROR(eg_custom_gradient_multi(NULL, two_of_one_grad, NULL, &x, 1, &y, 1), EG_ERROR_ARGUMENT,
                "eg_custom_gradient_multi: a function is NULL");
    CHECK_ERROR(eg_custom_gradient_multi(two_of_one, NULL, NULL, &x, 1, &y, 1), EG_ERROR_ARGUMENT,
                "eg_custom_gradient_multi: a function is NULL");
}
// The last test: what is registered stays.
TEST(the_list_of_ops_has_an_end) {
    eg_op_definition d = {"test_many", -2, 1, two_of_one, NULL, NULL};
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT,
                "eg_op_register: test_many: between 1 and 4 outputs, and -1 or more inputs");
    d.n_inputs = 1;
    d.n_outputs = 5;
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "between 1 and 4 outputs");
    d.n_outputs = 2;
    d.forward = NULL;
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "a name and a forward function are needed");
    d.forward = two_of_one;
    d.name = NULL;
    CHECK_ERROR(eg_op_register(&d), EG_ERROR_ARGUMENT, "a name and a forward function are needed");
    char name[16];
    int last = -1, op = 0;
    d.name = name;
    for (int i = 0; op >= 0 && i < 300; i++) {
        snprintf(name, sizeof name, "test_%d", i);
        op = eg_op_register(&d);
        if (op >= 0) last = op;
    }
    CHECK_INT(eg_error(), EG_ERROR_STATE);
    CHECK_CONTAINS(eg_error_message(), "eg_op_register: no more than 256 ops can be registered");
    eg_error_clear();
    CHECK_INT(last, 255);
    eg_tensor *x = ones(), *out[2];
    CHECK(eg_op_run(last, &x, 1, out, 2));
    CHECK_TENSOR(out[0], 0, 1);
    CHECK_ERROR(eg_op_run(256, &x, 1, out, 2), EG_ERROR_ARGUMENT, "there is no op number 256");
    CHECK_ERROR(eg_op_run(-1, &x, 1, out, 2), EG_ERROR_ARGUMENT, "there is no op number -1");
}

// ---- variables in custom gradients; a variable to itself

typedef struct hidden { eg_tensor *v; int how; } hidden;
static void pass_on(const eg_grad_context *c, eg_tensor **dx, void *user) { (void)user; dx[0] = c->upstream[0]; }
static eg_tensor *uses_hidden(eg_tensor *const *in, eg_grad_context *c, void *user) {
    hidden *h = (hidden *)user;
    (void)c;
    if (h->how == 1) {
        EG_NO_RECORDING;
        return eg_keep(eg_mul(in[0], h->v));
    }
    if (h->how == 2) return eg_mul(in[0], eg_stop_gradient(h->v));
    if (h->how == 3) return eg_custom_gradient(uses_hidden, pass_on, &(hidden){h->v, 0}, in, 1);
    return eg_mul(in[0], h->v);
}
TEST(custom_gradients_name_the_variable_that_would_get_none) {
    eg_tensor *v = eg_variable(eg_scalar(3), "hidden_weight"), *x = eg_scalar(2), *both[] = {x, v};
    hidden h = {v, 0};
    CHECK_TENSOR(eg_custom_gradient(uses_hidden, pass_on, &h, &x, 1), 0, 6);         // no tape, no gradient to lose
    for (int nested = 0; nested < 3; nested++) {
        EG_SCOPE;
        eg_tape *tape = nested == 1 ? eg_tape_begin_persistent() : eg_tape_begin();
        if (nested == 2) tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        for (h.how = 0; h.how < 4; h.how += 3)
            CHECK_ERROR(eg_custom_gradient(uses_hidden, pass_on, &h, &x, 1), EG_ERROR_GRADIENT,
                        "eg_custom_gradient: the forward function uses the variable hidden_weight, which is none of "
                        "its inputs and would get no gradient");
        h.how = 0;
        CHECK_TENSOR(eg_custom_gradient(uses_hidden, pass_on, &h, both, 2), 0, 6);   // an input
        h.how = 1;
        CHECK_TENSOR(eg_custom_gradient(uses_hidden, pass_on, &h, &x, 1), 0, 6);     // a constant, said so
        h.how = 2;
        eg_tensor *y = eg_custom_gradient(uses_hidden, pass_on, &h, &x, 1);          // which stop_gradient says, too
        CHECK_TENSOR(eg_tape_gradient(tape, y, x), 0, 1);
    }
    h.how = 0;
    {  // variables that this tape does not watch
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch_variables(tape, false);
        eg_tape_watch(tape, x);
        CHECK_TENSOR(eg_tape_gradient(tape, eg_custom_gradient(uses_hidden, pass_on, &h, &x, 1), x), 0, 1);
    }
    eg_set_trainable(v, false);
    {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        CHECK_TENSOR(eg_tape_gradient(tape, eg_custom_gradient(uses_hidden, pass_on, &h, &x, 1), x), 0, 1);
    }
    eg_release(v);
}
TEST(reasons_know_custom_gradients) {
    eg_tensor *x = eg_scalar(2), *w = eg_scalar(3);
    hidden h = {w, 0};
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    eg_tape_watch(tape, w);
    eg_tensor *y = eg_custom_gradient(uses_hidden, pass_on, &h, &x, 1);  // a tensor that is no input: a constant there
    CHECK(!eg_tape_gradient(tape, y, w));
    CHECK_CONTAINS(
        eg_tape_unconnected_reason(),
        "does so only inside the forward function of a custom gradient, which gives one for its inputs alone");
}
TEST(a_variable_to_itself) {
    eg_tensor *v = eg_variable(eg_constant(EG_SHAPE(2), 3, 4), "v"), *w = eg_variable(eg_scalar(1), "w"), *grads[2],
              *both[2] = {v, w};
    eg_tape *tape = eg_tape_begin();
    CHECK_TENSOR(eg_tape_gradient(tape, v, v), 0, 1, 1);
    tape = eg_tape_begin_persistent();
    CHECK(!eg_tape_gradient(tape, v, w));
    CHECK(eg_tape_gradients_from(tape, both, 2, NULL, both, 2, grads));
    CHECK_TENSOR(grads[0], 0, 1, 1);
    CHECK_TENSOR(grads[1], 0, 1);
    CHECK_TENSOR(eg_tape_gradient(tape, v, v), 0, 1, 1);
    tape = eg_tape_begin_persistent();
    eg_tape_watch_variables(tape, false);
    CHECK(!eg_tape_gradient(tape, v, v));
    CHECK_CONTAINS(eg_tape_unconnected_reason(), "was not watched");
    eg_release(v);
    eg_release(w);
}

// ---- what a taped op costs

// Bytes an op of a chain of n ops on four floats, all that the forward pass holds: tensors, lines, slots, the scope's
// references, the headers of blocks and 8 bytes that malloc takes for each.
static int64_t bytes_of_a_taped_op(int64_t n, bool product) {
    EG_SCOPE;
    eg_tensor *w = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(4)), "w"), *y = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    eg_memory_trim();  // so that every block of the forward pass is asked for anew
    eg_memory_info before = eg_memory();
    eg_tape *tape = eg_tape_begin();
    for (int64_t i = 0; i < n; i++) y = product ? eg_mul(y, w) : eg_add(y, w);
    eg_memory_info after = eg_memory();
    eg_memory_reset_peak();
    eg_tensor *g = eg_tape_gradient(tape, y, w);
    CHECK_TENSOR(g, 0, (double)n, (double)n, (double)n, (double)n);
    // the gradients' table and no more: values die on the way
    CHECK(eg_memory().peak_bytes - after.live_bytes < 32 * n + 16384);
    eg_release(w);
    return (after.live_bytes - before.live_bytes + 24 * (after.allocations - before.allocations)) / n;
}
TEST(a_taped_op_is_small) {
#ifdef EAGER_DEBUG
    SKIP("handles are larger, and dead ones stay");
#endif
    if (!test_on_host) SKIP("the device has an allocator of its own");
    CHECK(bytes_of_a_taped_op(10000, false) <= 304);
    CHECK(bytes_of_a_taped_op(10000, true) <= 314);           // saves its operands
    if (test_share == 1) CHECK(bytes_of_a_taped_op(1000000, true) <= 304);
}

// Lines that read one value of a variable share one alias of it; an assignment makes the next reader take another.
TEST(snapshots_of_a_variable_are_shared) {
    eg_tensor *w = eg_variable(eg_constant(EG_SHAPE(2), 2, 3), "w");
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 10);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    int64_t live = eg_memory().live_tensors;
    eg_tensor *a = x;
    for (int i = 0; i < 5; i++) a = eg_mul(a, w);
    CHECK_INT(eg_memory().live_tensors - live, 6);            // five results, one alias
    CHECK(eg_assign(w, eg_constant(EG_SHAPE(2), 5, 7)));
    eg_tensor *b = eg_mul(a, w);
    CHECK(eg_assign_add(w, eg_constant(EG_SHAPE(2), 1, 1)));
    eg_tensor *xs[] = {x, w}, *dx[2];
    CHECK(eg_tape_gradients(tape, b, xs, 2, dx));
    CHECK_TENSOR(dx[0], 1e-3, 32 * 5, 243 * 7);
    // d/dw, as one variable, of x w^5 v at w = (2, 3), v = (5, 7): 5 x w^4 v + x w^5
    CHECK_TENSOR(dx[1], 1e-2, 5 * 16 * 5 + 32, 10 * (5 * 81 * 7 + 243));
    eg_release(w);
}
// A line's gradients go to their slots with the references of its scope: one for several inputs, several for one input,
// and one that is the upstream gradient itself. Nothing stays behind, and nothing is given back twice.
TEST(gradients_change_hands) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 3, -5), *no = eg_constant(EG_SHAPE(2), 0, 1), *dx[2];
    eg_tensor *yes = eg_cast(no, EG_BOOL);
    const int64_t live = eg_memory().live_tensors;
    for (int order = 1; order <= 2; order++) {
        EG_SCOPE;
        eg_tape *outer = order == 2 ? eg_tape_begin() : NULL, *tape = eg_tape_begin();
        if (outer) eg_tape_watch(outer, x);
        eg_tape_watch(tape, x);
        eg_tensor *all[] = {x, x, x}, *a = eg_sub(eg_add(x, x), eg_mul(x, x)), *b = eg_where(yes, x, eg_mul(x, x));
        eg_tensor *c = eg_reduce_sum(eg_stack(all, 3, 0), .axes = EG_AXES(0)), *ys[] = {a, b, c, x};
        CHECK(eg_tape_gradients_from(tape, ys, 4, NULL, &x, 1, dx));
        CHECK_TENSOR(dx[0], 0, 2 - 6 + 6 + 3 + 1, 2 + 10 + 1 + 3 + 1);
        if (outer) CHECK_TENSOR(eg_tape_gradient(outer, dx[0], x), 0, 0, -2);
    }
    CHECK_INT(eg_memory().live_tensors, live);
}
// Many ids that are far apart, as of tensors made by other threads or long ago.
TEST(tapes_find_ids_that_are_far_apart) {
    enum { N = 300 };
    eg_tensor *x[N], *sum = NULL, *grads[N];
    for (int i = 0; i < N; i++) {
        x[i] = eg_scalar(i);
        for (int k = 0; k < i % 37; k++) eg_scalar(k);        // ids pass
    }
    eg_tape *tape = eg_tape_begin_persistent();
    for (int i = N - 1; i >= 0; i--) CHECK(eg_tape_watch(tape, x[i]));
    for (int i = 0; i < N; i++) sum = i ? eg_add(sum, eg_mul(x[i], eg_scalar(i + 1))) : eg_mul(x[i], 1);
    CHECK(eg_tape_gradients(tape, sum, x, N, grads));
    for (int i = 0; i < N; i++) CHECK_NEAR(eg_item(grads[i]), i + 1, 0);
}

// The gradients of large elementwise ops are written over the gradient that comes to them, where nobody else reads
// that. What the caller asked for, gave or gets twice is not: of n elements all is, to the bit, what it is of few,
// whose gradients are too small for it.
enum { OVER_MOST = 40003, OVER_RESULTS = 7 };
static bool over_gradients(int64_t n, int persistent, eg_dtype dtype, eg_tensor **out) {
    static double v[OVER_MOST];
    for (int64_t i = 0; i < n; i++) v[i] = (double)(i * 7919 % 1009) / 500 - 1;
    eg_tensor *a = eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n), v), dtype), *b = eg_sub(1.5, a),
              *given = eg_mul(a, a), *grads[OVER_RESULTS - 1];
    eg_tape *t = persistent ? eg_tape_begin_persistent() : eg_tape_begin();
    eg_tape_watch(t, a);
    eg_tape_watch(t, b);
    eg_tensor *h = eg_tanh(eg_mul(a, b)),         // asked for: its gradient stays as it was
              *d = eg_sub(eg_exp(h), eg_relu(b)), // one gradient, handed on to both
              *m = eg_mul(eg_sigmoid(d), eg_sin(h)), *y = eg_relu(eg_add(m, eg_softplus(m))),
              *view = eg_reshape(eg_tanh(eg_reshape(y, EG_SHAPE(n, 1))), EG_SHAPE(n));
    eg_tensor *of[] = { a, b, h, m, y, a };
    bool ok = true;
    for (int pass = 0; pass <= persistent; pass++)
        ok = ok && eg_tape_gradients_from(t, &view, 1, &given, of, OVER_RESULTS - 1, grads);
    for (int i = 0; i < OVER_RESULTS - 1; i++) out[i] = grads[i];
    out[OVER_RESULTS - 1] = given;
    return ok;
}
TEST(gradients_written_over_those_that_come) {
    for (int k = 0; k < 4; k++) {
        EG_SCOPE;
        eg_tensor *few[OVER_RESULTS], *many[OVER_RESULTS];
        const eg_dtype dtype = k < 2 ? EG_FLOAT32 : EG_FLOAT64;
        REQUIRE(over_gradients(1009, k % 2, dtype, few) && over_gradients(OVER_MOST, k % 2, dtype, many));
        const size_t size = (size_t)eg_dtype_size(dtype);
        for (int i = 0; i < OVER_RESULTS; i++) {
            const char *want = (const char *)eg_data(few[i]), *found = (const char *)eg_data(many[i]);
            REQUIRE(want && found);
            for (int64_t at = 0; at < OVER_MOST; at += 1009) {
                const int64_t count = at + 1009 > OVER_MOST ? OVER_MOST - at : 1009;
                CHECK(!memcmp(found + (size_t)at * size, want, size * (size_t)count));
            }
        }
    }
}
