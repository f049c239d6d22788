// Losses: Keras's values and gradients (fixtures_training.py), options, weights, what does not fit, second-order
// gradients.
#include "test.h"
#include "fixture.h"

// smooth: has second derivatives everywhere
typedef struct loss_row { const char *name; eg_loss *loss; bool smooth; } loss_row;
#define ROW(name, smooth) {#name, eg_##name, smooth}
static const loss_row rows[] = {
    ROW(mean_squared_error, true), ROW(mean_absolute_error, false), ROW(mean_absolute_percentage_error, false),
    ROW(mean_squared_logarithmic_error, false), ROW(huber, false), ROW(log_cosh, true), ROW(poisson, true),
    ROW(kl_divergence, true),
    ROW(hinge, false), ROW(squared_hinge, false), ROW(categorical_hinge, false), ROW(cosine_similarity, true),
    ROW(dice, true),
    ROW(binary_crossentropy, true), ROW(binary_crossentropy_from_probabilities, true),
    ROW(categorical_crossentropy, true),
    ROW(categorical_crossentropy_from_probabilities, true), ROW(sparse_categorical_crossentropy, true),
    ROW(sparse_categorical_crossentropy_from_probabilities, true), ROW(binary_focal_crossentropy, true),
    ROW(binary_focal_crossentropy_from_probabilities, true), ROW(categorical_focal_crossentropy, true),
    ROW(categorical_focal_crossentropy_from_probabilities, true)};
enum { ROWS = (int)(sizeof rows / sizeof *rows) };

static eg_tensor *tensor_from(const fixture_array *a) {
    eg_shape s = {a->rank, {0}};
    memcpy(s.dims, a->dims, sizeof s.dims);
    return eg_constant_values(strcmp(a->dtype, "int32") == 0 ? EG_INT32 : EG_FLOAT64, s, a->values, a->count);
}

typedef struct loss_case { eg_loss *loss; eg_tensor *labels; eg_loss_options options; } loss_case;
static eg_tensor *mean_of_case(eg_tensor *const *in, void *user) {
    const loss_case *c = (const loss_case *)user;
    return (eg_loss_mean)(c->loss, c->labels, in[0], c->options);
}

TEST(labels_come_first) {
    eg_tensor *p = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 3)), *y = eg_zeros(EG_INT32, EG_SHAPE(4));
    eg_metric *m = eg_metric_accuracy();
    CHECK_ERROR(eg_sparse_categorical_crossentropy(p, y), EG_ERROR_SHAPE,
                "without the last axis (labels come first, then predictions)");
    eg_tensor *column = eg_zeros(EG_INT32, EG_SHAPE(4, 1));
    CHECK_ERROR(eg_sparse_categorical_crossentropy(column, p), EG_ERROR_SHAPE,
                "without the last axis: eg_squeeze(labels, .axes = EG_AXES(-1)) takes their last axis away");
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(column, p), EG_ERROR_SHAPE,
                "without the last axis: eg_squeeze(labels, .axes = EG_AXES(-1)) takes their last axis away");
    CHECK(eg_sparse_categorical_crossentropy(eg_squeeze(column, .axes = EG_AXES(-1)), p) != NULL);
    CHECK_ERROR(eg_mean_squared_error(p, eg_zeros(EG_FLOAT32, EG_SHAPE(4))), EG_ERROR_SHAPE,
                "must have one shape (labels come first, then predictions)");
    CHECK_ERROR(eg_metric_update(m, p, y), EG_ERROR_SHAPE, "(labels come first, then predictions)");
    eg_metric_release(m);
}
TEST(binary_labels_are_from_0_to_1) {
    static eg_loss *const losses[] = {eg_binary_crossentropy, eg_binary_crossentropy_from_probabilities,
                                      eg_binary_focal_crossentropy, eg_binary_focal_crossentropy_from_probabilities};
    static const eg_dtype dtypes[] = {EG_FLOAT32, EG_FLOAT64, EG_INT32};
    for (int i = 0; i < 4; i++) {
        eg_tensor *p = eg_full(EG_FLOAT32, EG_SHAPE(2, 3), .5);
        for (int k = 0; k < 3; k++) {
            eg_tensor *good = eg_cast(eg_constant(EG_SHAPE(2, 3), 0, 1, 1, 0, 1, 0), dtypes[k]);
            eg_tensor *high = eg_add(good, 1), *low = eg_sub(eg_mul(good, 2), 1);
            CHECK(losses[i](good, p) != NULL);
            if (!test_on_host) continue;
            CHECK_ERROR(losses[i](high, p), EG_ERROR_ARGUMENT, "label 2 (number 1 of float32 [2, 3]");
            CHECK_ERROR(losses[i](low, p), EG_ERROR_ARGUMENT, "label -1 (number 0 of float32 [2, 3]");
            CHECK_ERROR(losses[i](low, eg_cast(p, EG_FLOAT64)), EG_ERROR_ARGUMENT, ") is not between 0 and 1");
        }
        eg_tensor *hole = eg_constant(EG_SHAPE(2), .25, NAN), *half = eg_full(EG_FLOAT32, EG_SHAPE(2), .5);
        if (test_on_host) CHECK_ERROR(losses[i](hole, half), EG_ERROR_ARGUMENT, "label nan (number 1 of float32 [2]");
        else CHECK(losses[i](hole, half) != NULL);
    }
    if (test_on_host)                                        // columns of a transposed tensor are read in its order
        CHECK_ERROR(eg_binary_crossentropy(eg_transpose(eg_constant(EG_SHAPE(2, 2), 0, 1, 3, 0)),
                                           eg_zeros(EG_FLOAT32, EG_SHAPE(2, 2))), EG_ERROR_ARGUMENT,
                    "label 3 (number 1 of");
    CHECK(eg_loss_mean(eg_binary_crossentropy, 2, eg_scalar(1)) != NULL);
}

TEST(keras) {
    fixture_file f;
    int cases = 0;
    if (!fixture_open(&f, "tests/fixtures/losses.txt")) { test_say(__FILE__, __LINE__, "fixtures", f.error); return; }
    while (fixture_next(&f)) {
        EG_SCOPE;
        int before = test_fails;
        double tolerance = strcmp(f.op, "log_cosh") ? 1e-9 : 1e-8;       // Keras's log(2) is a float32
        const loss_row *row = NULL;
        for (int i = 0; i < ROWS; i++) if (strcmp(rows[i].name, f.op) == 0) row = &rows[i];
        REQUIRE(row != NULL);
        loss_case c = {row->loss, tensor_from(fixture_get(&f, "in", 0)), {0}};
        eg_tensor *p = tensor_from(fixture_get(&f, "in", 1));
        c.options.delta = fixture_attr(&f, "delta", 0, 0);
        c.options.gamma = fixture_attr(&f, "gamma", 0, 0);
        c.options.alpha = fixture_attr(&f, "alpha", 0, 0);
        c.options.label_smoothing = fixture_attr(&f, "label_smoothing", 0, 0);
        CHECK_SAME((eg_loss_per_example)(c.loss, c.labels, p, c.options), tensor_from(fixture_get(&f, "out", 0)),
                   tolerance);
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, p);
        eg_tensor *mean = (eg_loss_mean)(c.loss, c.labels, p, c.options);
        CHECK_SAME(mean, tensor_from(fixture_get(&f, "out", 1)), tolerance);
        CHECK_SAME(eg_tape_gradient(tape, mean, p), tensor_from(fixture_get(&f, "grad", 1)), 1e-9);
        if (!f.attr_count) CHECK_SAME(c.loss(c.labels, p), mean, 0);
        CHECK((eg_check_gradient)(mean_of_case, &c, &p, 1,
                                  (eg_check_options){.order = row->smooth ? 2 : 1, .directions = 1}));
        if (test_fails > before) printf("    in case %s\n", f.name);
        cases++;
    }
    CHECK_STR(f.error, "");
    CHECK(cases > 60);
    fixture_close(&f);
}

TEST(by_hand) {
    eg_tensor *y = eg_constant(EG_SHAPE(2), 1, 2), *p = eg_constant(EG_SHAPE(2), 2, 4);
    CHECK_TENSOR(eg_mean_squared_error(y, p), 1e-6, 2.5);
    CHECK_INT(eg_rank(eg_mean_squared_error(y, p)), 0);
    // of rank 1, each element is an example
    CHECK_TENSOR(eg_loss_per_example(eg_mean_squared_error, y, p), 1e-6, 1, 4);
    CHECK_TENSOR(eg_huber(y, p), 1e-6, 1);
    CHECK_TENSOR(eg_sparse_categorical_crossentropy(eg_constant_of(EG_INT32, EG_SHAPE(1), 0),
                                                    eg_constant(EG_SHAPE(1, 3), 2, 1, 0.1)), 1e-5, 0.41703);
    CHECK_TENSOR(eg_sparse_categorical_crossentropy(eg_zeros(EG_UINT8, EG_SHAPE(4)),
                                                    eg_zeros(EG_FLOAT32, EG_SHAPE(4, 10))), 1e-6, 2.302585);
    CHECK_TENSOR(eg_mean_absolute_error(eg_scalar(1), eg_scalar(4)), 0, 3);
    CHECK_TENSOR(eg_mean_squared_error(eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 2), p), 1e-6, 2.5);  // labels are cast
    CHECK_TENSOR(eg_mean_squared_error(y, eg_cast(p, EG_FLOAT64)), 1e-6, 2.5);
    CHECK_DTYPE(eg_mean_squared_error(y, eg_cast(p, EG_FLOAT64)), EG_FLOAT64);
}

TEST(extremes_stay_finite) {
    eg_tensor *ones = eg_ones(EG_FLOAT32, EG_SHAPE(2, 1)), *x = eg_constant(EG_SHAPE(2, 1), 1000, -1000);
    CHECK_TENSOR(eg_loss_per_example(eg_binary_crossentropy, ones, x), 1e-6, 0, 1000);
    CHECK_TENSOR(eg_loss_per_example(eg_log_cosh, eg_zeros_like(x), x), 1e-6, 1000 - log(2), 1000 - log(2));
    eg_tensor *sure = eg_constant(EG_SHAPE(2, 1), 0, 1);
    CHECK_TENSOR(eg_loss_per_example(eg_binary_crossentropy_from_probabilities, eg_sub(1, sure), sure), 0.1, 16.118,
                 16.118);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *zero = eg_zeros(EG_FLOAT32, EG_SHAPE(1, 3));
    eg_tape_watch(tape, zero);
    eg_tensor *loss = eg_cosine_similarity(eg_ones_like(zero), zero), *g = eg_tape_gradient(tape, loss, zero);
    CHECK_TENSOR(loss, 0, 0);
    CHECK_TENSOR(eg_reduce_all(eg_is_finite(g)), 0, 1);
}

static eg_tensor *own(eg_tensor *y, eg_tensor *p) { return eg_reduce_sum(eg_abs(eg_sub(y, p)), .axes = EG_AXES(-1)); }
static eg_tensor *own_mean(eg_tensor *y, eg_tensor *p) { return eg_reduce_mean(own(y, p)); }

TEST(weights) {
    eg_tensor *y = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 2)), *p = eg_constant(EG_SHAPE(2, 2), 1, 3, 2, 2);
    // (3 * 2 + 2) / 2
    CHECK_TENSOR(eg_loss_mean(eg_mean_absolute_error, y, p, .weights = eg_constant(EG_SHAPE(2), 3, 1)), 1e-6, 4);
    CHECK_TENSOR(eg_loss_mean(own, y, p), 1e-6, 4);
    CHECK_TENSOR(eg_loss_mean(own, y, p, .weights = eg_constant_of(EG_INT32, EG_SHAPE(2), 0, 1)), 1e-6, 2);
    CHECK_TENSOR(eg_loss_mean(own_mean, y, p), 1e-6, 4);
    CHECK_ERROR(eg_loss_mean(own_mean, y, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(2))), EG_ERROR_SHAPE,
                "one value an example");
    CHECK_ERROR(eg_loss_mean(own, y, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(3))), EG_ERROR_SHAPE, "[3]");
    CHECK_ERROR(eg_loss_per_example(eg_huber, y, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(2))), EG_ERROR_ARGUMENT,
                "weights");
    eg_tensor *t = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3, 4)), *z = eg_zeros_like(t);
    CHECK_TENSOR(eg_loss_mean(eg_mean_squared_error, t, z, .weights = eg_constant(EG_SHAPE(2), 1, 3)), 1e-6, 2);
    CHECK_TENSOR(eg_loss_mean(eg_mean_squared_error, t, z, .weights = eg_constant(EG_SHAPE(2, 3), 1, 0, 0, 0, 0, 5)),
                 1e-6, 1);
}

TEST(what_does_not_fit) {
    eg_tensor *flat = eg_zeros(EG_FLOAT32, EG_SHAPE(4)), *column = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 1)),
              *p = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 3));
    for (int i = 0; i < ROWS; i++) {
        eg_tensor *labels = strstr(rows[i].name, "sparse") ? column : flat,
                  *predictions = labels == column ? p : column;
        CHECK(rows[i].loss(labels, predictions) == NULL);
        CHECK_INT(eg_error(), EG_ERROR_SHAPE);
        CHECK_CONTAINS(eg_error_message(), rows[i].name);
        CHECK_CONTAINS(eg_error_message(), labels == column ? "[4, 1]" : "[4]");
        CHECK_CONTAINS(eg_error_message(), labels == column ? "[4, 3]" : "[4, 1]");
        eg_error_clear();
    }
}
// Labels of 0 and 1 alone become -1 and 1; any other label, or a NaN, leaves all as they are.
TEST(the_sides_of_a_hinge) {
    eg_tensor *p = eg_constant(EG_SHAPE(2), .5, .25);
    CHECK_NEAR(eg_item(eg_hinge(eg_constant(EG_SHAPE(2), 0, 1), p)), (1.5 + .75) / 2, 1e-6);
    CHECK_NEAR(eg_item(eg_hinge(eg_constant(EG_SHAPE(2), -1, 1), p)), (1.5 + .75) / 2, 1e-6);
    CHECK_NEAR(eg_item(eg_hinge(eg_constant(EG_SHAPE(2), 0, 2), p)), (1 + .5) / 2, 1e-6);
    CHECK_NEAR(eg_item(eg_hinge(eg_constant(EG_SHAPE(2), .5, 0), p)), (.75 + 1) / 2, 1e-6);
    CHECK_NEAR(eg_item(eg_hinge(eg_constant(EG_SHAPE(2), 0, 1.0000001), p)), (1 + .75) / 2, 1e-6);
    CHECK_NEAR(eg_item(eg_hinge(eg_constant(EG_SHAPE(2), INFINITY, 0), p)), (0 + 1) / 2., 1e-6);
    CHECK(isnan(eg_item(eg_hinge(eg_constant(EG_SHAPE(2), NAN, 1), p))));
}

TEST(errors) {
    eg_tensor *flat = eg_zeros(EG_FLOAT32, EG_SHAPE(4)), *column = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 1)),
              *p = eg_zeros(EG_FLOAT32, EG_SHAPE(4, 3));
    CHECK_ERROR(eg_mean_squared_error(flat, column), EG_ERROR_SHAPE, "eg_mean_squared_error: labels float32 [4]");
    CHECK_ERROR(eg_mean_squared_error(column, p), EG_ERROR_SHAPE, "[4, 3]");
    CHECK_ERROR(eg_mean_squared_error(NULL, p), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_mean_squared_error(p, eg_zeros(EG_INT32, EG_SHAPE(4, 3))), EG_ERROR_DTYPE, "eg_mean_squared_error");
    CHECK_ERROR(eg_sparse_categorical_crossentropy(flat, p), EG_ERROR_DTYPE, "eg_sparse_categorical_crossentropy");
    CHECK_ERROR(eg_sparse_categorical_crossentropy(eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 1, 3, 0), p),
                EG_ERROR_INDEX, "3");
    CHECK_ERROR(eg_cosine_similarity(eg_scalar(1), eg_scalar(1)), EG_ERROR_SHAPE, "no axis");
    CHECK_ERROR(eg_loss_mean(eg_mean_squared_error, p, p, .delta = 2), EG_ERROR_ARGUMENT,
                "eg_mean_squared_error: has no option .delta");
    CHECK_ERROR(eg_loss_mean(eg_sparse_categorical_crossentropy, eg_zeros(EG_INT32, EG_SHAPE(4)), p,
                             .label_smoothing = 0.1), EG_ERROR_ARGUMENT, "label_smoothing");
    CHECK_ERROR(eg_loss_mean(eg_categorical_crossentropy, p, p, .label_smoothing = 2), EG_ERROR_ARGUMENT,
                ".label_smoothing is 2; it must be at least 0 and at most 1");
    CHECK_ERROR(eg_loss_mean(own, p, p, .gamma = 2), EG_ERROR_ARGUMENT, "gamma");
    CHECK_ERROR(eg_loss_mean(NULL, p, p), EG_ERROR_ARGUMENT, "NULL");
    CHECK_ERROR(eg_loss_per_example(NULL, p, p), EG_ERROR_ARGUMENT, "eg_loss_per_example");
    CHECK_ERROR(eg_mean_squared_error(p, NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_categorical_hinge(eg_scalar(1), eg_scalar(1)), EG_ERROR_SHAPE, "no axis");
    CHECK_ERROR(eg_loss_mean(eg_huber, p, p, .delta = -1), EG_ERROR_ARGUMENT,
                "eg_huber: .delta is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_loss_mean(eg_binary_focal_crossentropy, p, p, .gamma = -1), EG_ERROR_ARGUMENT,
                ".gamma is -1; it must be at least 0 and finite");
    CHECK_ERROR(eg_loss_mean(eg_binary_crossentropy, p, p, .label_smoothing = -1), EG_ERROR_ARGUMENT,
                ".label_smoothing is -1; it must be at least 0 and at most 1");
    CHECK_ERROR(eg_loss_mean(eg_huber, p, p, .alpha = 1), EG_ERROR_ARGUMENT, "alpha");
    CHECK_ERROR(eg_loss_mean(eg_huber, p, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(4, 3, 1))), EG_ERROR_SHAPE,
                "weights float32 [4, 3, 1]");
    CHECK_ERROR(eg_loss_mean(eg_huber, p, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(3))), EG_ERROR_SHAPE,
                "one an example");
    CHECK_NEAR(eg_item(eg_mean_squared_error(eg_scalar(1), eg_scalar(3))), 4, 0);  // an element is an example
    CHECK_NEAR(eg_item(eg_loss_mean(eg_huber, p, p, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(1)))), 0, 0);
}

TEST(labels_of_the_wrong_kind_are_told_what_they_need) {
    eg_tensor *logits = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3)), *classes = eg_zeros(EG_INT32, EG_SHAPE(2));
    CHECK_ERROR(eg_categorical_crossentropy(classes, logits), EG_ERROR_SHAPE,
                "class numbers are for the sparse losses, or for eg_one_hot");
    CHECK_ERROR(eg_sparse_categorical_crossentropy(eg_cast(classes, EG_FLOAT32), logits), EG_ERROR_DTYPE,
                "class numbers must be integers");
    CHECK_ERROR(eg_sparse_categorical_crossentropy(eg_one_hot(classes, 3), logits), EG_ERROR_SHAPE,
                "one-hot labels are for what is not called sparse, such as eg_categorical_crossentropy");
}

// A loss of one's own that is made of the library's: its errors are its own, its values theirs.
static eg_loss *inner;
static eg_tensor *outer(eg_tensor *labels, eg_tensor *predictions) { return inner(labels, predictions); }
TEST(losses_within_losses) {
    eg_tensor *p = eg_random_uniform(EG_SHAPE(4, 3)), *dense = eg_random_uniform(EG_SHAPE(4, 3)),
              *sparse = eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 2, 1, 1);
    for (int i = 0; i < ROWS; i++) {
        eg_tensor *y = strstr(rows[i].name, "sparse") ? sparse : dense;
        inner = rows[i].loss;
        CHECK_SAME(eg_loss_mean(outer, y, p), inner(y, p), 0);
    }
}
// Rows of losses beside their plain compositions.
static eg_tensor *hinge_row(eg_tensor *y, eg_tensor *p) { return eg_hinge_margin(p, y, 0); }
static eg_tensor *hinge_row_of_0_and_1(eg_tensor *y, eg_tensor *p) { return eg_hinge_margin(p, y, 1); }
static eg_tensor *log_cosh_row(eg_tensor *y, eg_tensor *p) { return eg_log_cosh_difference(p, y); }
static eg_tensor *hinge_plain(eg_tensor *y, eg_tensor *p) { return eg_maximum(eg_sub(1, eg_mul(y, p)), 0); }
static eg_tensor *hinge_plain_of_0_and_1(eg_tensor *y, eg_tensor *p) {
    return hinge_plain(eg_sub(eg_mul(2, y), 1), p);
}
static eg_tensor *log_cosh_plain(eg_tensor *y, eg_tensor *p) {
    eg_tensor *e = eg_sub(p, y);
    return eg_sub(eg_add(e, eg_softplus(eg_mul(-2, e))), log(2));
}
// The values, the gradients of labels and predictions, and the gradients of the sum of those gradients' squares.
static void derive(eg_tensor *(*f)(eg_tensor *, eg_tensor *), eg_tensor *y, eg_tensor *p, eg_tensor **out) {
    eg_tensor *of[2] = {y, p};
    eg_tape *second = eg_tape_begin();
    for (int i = 0; i < 2; i++) eg_tape_watch(second, of[i]);
    eg_tape *first = eg_tape_begin();
    for (int i = 0; i < 2; i++) eg_tape_watch(first, of[i]);
    out[0] = f(y, p);
    eg_tape_gradients(first, eg_reduce_sum(eg_square(out[0])), of, 2, out + 1);
    eg_tensor *squares = eg_add(eg_reduce_sum(eg_square(out[1])), eg_reduce_sum(eg_square(out[2])));
    eg_tape_gradients(second, squares, of, 2, out + 3);
}
// The label that is not a share is found at each place of arrays of every length, and what is a share passes.
TEST(labels_that_are_no_shares_are_found_anywhere) {
    if (!test_on_host) SKIP("a device that the host cannot read computes with any labels");
    static const float bad[] = {-1e-30f, 1.0000001f, 2, -1, -2, -3e38f, 3e38f, -INFINITY, INFINITY, NAN};
    static float x[200];
    char said[64];
    for (int n = 1; n <= 200; n += n < 130 ? 7 : 23)
        for (int at = 0; at < n; at += 3) {
            EG_SCOPE;
            for (int i = 0; i < n; i++) x[i] = i % 5 == 0 ? 0.0f : i % 5 == 1 ? -0.0f : i % 5 == 2 ? 1.0f : 1e-42f;
            eg_tensor *p = eg_zeros(EG_FLOAT32, EG_SHAPE(n));
            if (at == 0) CHECK(eg_binary_crossentropy(eg_from_data(EG_FLOAT32, EG_SHAPE(n), x), p));
            x[at] = bad[(n + at) % 10];
            snprintf(said, sizeof said, "(number %d of", at);
            CHECK_ERROR(eg_binary_crossentropy(eg_from_data(EG_FLOAT32, EG_SHAPE(n), x), p), EG_ERROR_ARGUMENT, said);
        }
}
TEST(rows_of_losses_equal_their_compositions) {
    static eg_tensor *(*const f[][2])(eg_tensor *, eg_tensor *) = {
        {hinge_row, hinge_plain}, {hinge_row_of_0_and_1, hinge_plain_of_0_and_1}, {log_cosh_row, log_cosh_plain}};
    eg_seed(7);
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 3; i++)
            for (int n = 0; n < 300; n += n < 10 ? 1 : 97) {
                EG_SCOPE;
                eg_dtype dtype = t ? EG_FLOAT64 : EG_FLOAT32;
                eg_tensor *y = eg_random_normal(EG_SHAPE(n, 3), .dtype = dtype),
                          *p = eg_random_normal(EG_SHAPE(n, 3), .dtype = dtype), *row[5], *plain[5];
                derive(f[i][0], y, p, row);
                derive(f[i][1], y, p, plain);
                for (int k = 0; k < 5; k++) CHECK_SAME(row[k], plain[k], t ? 1e-12 : 2e-5);
            }
}
TEST(log_cosh_far_from_0) {
    eg_tensor *p = eg_constant(EG_SHAPE(6), 0, 100, -3e38, INFINITY, -INFINITY, NAN), *dx;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, p);
    eg_tensor *y = eg_log_cosh_difference(p, 0);
    CHECK_TENSOR(y, 1e-6, 0, 100 - log(2), 3e38, INFINITY, INFINITY, NAN);
    dx = eg_tape_gradient(tape, y, p);
    CHECK_TENSOR(dx, 0, 0, 1, -1, 1, -1, NAN);
}
TEST(huber_of_special_values) {
    eg_tensor *p = eg_constant(EG_SHAPE(6), 0, 0.5, -2, 3, INFINITY, NAN), *zero = eg_zeros(EG_FLOAT32, EG_SHAPE(6)),
              *dx;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, p);
    eg_tensor *y = eg_huber_difference(p, zero, 1);
    CHECK_TENSOR(y, 0, 0, 0.125, 1.5, 2.5, INFINITY, NAN);
    dx = eg_tape_gradient(tape, y, p);
    CHECK_TENSOR(dx, 0, 0, 0.5, -1, 1, 1, NAN);
    CHECK_ERROR(eg_huber_difference(p, eg_zeros(EG_FLOAT32, EG_SHAPE(5)), 1), EG_ERROR_SHAPE, "eg_huber_difference");
    CHECK_ERROR(eg_huber_difference(eg_zeros(EG_INT32, EG_SHAPE(2)), 0, 1), EG_ERROR_DTYPE, "eg_huber_difference");
}
