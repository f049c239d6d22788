// Metrics: Keras's results (fixtures_training.py), how they add up, what does not fit, and that no tape sees them.
#include "test.h"
#include "fixture.h"

TEST(mean) {
    eg_metric *m = eg_metric_mean();
    CHECK_NEAR(eg_metric_result(m), 0, 0);                           // empty
    CHECK(eg_metric_add(m, 0) && eg_metric_add(m, 5));
    CHECK_NEAR(eg_metric_result(m), 2.5, 0);
    CHECK(eg_metric_add(m, eg_constant(EG_SHAPE(2), 8, 9)));
    CHECK_NEAR(eg_metric_result(m), 5.5, 0);
    CHECK(eg_metric_reset(m));
    CHECK_NEAR(eg_metric_result(m), 0, 0);
    CHECK(eg_metric_add(m, eg_constant(EG_SHAPE(2), 1, 2), .weights = eg_constant(EG_SHAPE(2), 3, 1)));
    CHECK_NEAR(eg_metric_result(m), 1.25, 0);
    CHECK(eg_metric_add(m, eg_zeros(EG_FLOAT32, EG_SHAPE(0))));
    CHECK_TENSOR(eg_metric_tensor(m), 0, 1.25);
    CHECK_DTYPE(eg_metric_tensor(m), EG_FLOAT64);
    CHECK_STR(eg_metric_name(m), "mean");
    CHECK_ERROR(eg_metric_update(m, 1, 2), EG_ERROR_ARGUMENT, "eg_metric_add");
    CHECK_ERROR(eg_metric_add(m, eg_zeros(EG_FLOAT32, EG_SHAPE(2)), .weights = eg_ones(EG_FLOAT32, EG_SHAPE(3))),
                EG_ERROR_SHAPE, "[3]");
    CHECK_ERROR(eg_metric_add(m, NULL), EG_ERROR_NULL, "NULL");
    CHECK_NEAR(eg_metric_result(m), 1.25, 0);                        // an error changes nothing
    eg_metric *again = eg_metric_retain(m);
    eg_metric_release(m);
    CHECK_NEAR(eg_metric_result(again), 1.25, 0);
    eg_metric_release(again);
    eg_metric_release(NULL);
}

TEST(sum) {
    eg_metric *m = eg_metric_sum(.name = "total");
    CHECK(eg_metric_add(m, eg_constant(EG_SHAPE(2), 1, 2)) && eg_metric_add(m, 4) &&
          eg_metric_add(m, 3, .weights = eg_scalar(2)));
    CHECK_NEAR(eg_metric_result(m), 13, 0);
    CHECK_STR(eg_metric_name(m), "total");
    eg_metric_release(m);
}

TEST(a_million_small_values_add_up) {
    eg_metric *m = eg_metric_mean();
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(100000), 0.1);
    for (int i = 0; i < 10; i++) eg_metric_add(m, x);
    CHECK_NEAR(eg_metric_result(m), (double)0.1f, 1e-12);
    eg_metric_release(m);
}

static eg_tensor *tensor_from(const fixture_array *a, int64_t batch) {
    eg_shape s = {a->rank - 1, {0}};
    int64_t n = a->count / a->dims[0];
    memcpy(s.dims, a->dims + 1, sizeof s.dims - sizeof *s.dims);
    return eg_constant_values(strcmp(a->dtype, "int32") == 0 ? EG_INT32
                              : strcmp(a->dtype, "float32") == 0 ? EG_FLOAT32
                              : EG_FLOAT64, s, a->values + batch * n, n);
}
typedef eg_metric *new_metric(eg_metric_options);
static const struct { const char *name; new_metric *make; } rows[] = {
    {"binary_accuracy", eg_metric_binary_accuracy}, {"categorical_accuracy", eg_metric_categorical_accuracy},
    {"sparse_categorical_accuracy", eg_metric_sparse_categorical_accuracy}, {"top_k", eg_metric_top_k},
    {"precision", eg_metric_precision},
    {"recall", eg_metric_recall}, {"f1", eg_metric_f1}, {"auc", eg_metric_auc},
    {"mean_squared_error", eg_metric_mean_squared_error},
    {"mean_absolute_error", eg_metric_mean_absolute_error},
    {"root_mean_squared_error", eg_metric_root_mean_squared_error}, {"r2", eg_metric_r2},
    {"mean_iou", eg_metric_mean_iou}};

TEST(keras) {
    fixture_file f;
    int cases = 0;
    if (!fixture_open(&f, "tests/fixtures/metrics.txt")) { test_say(__FILE__, __LINE__, "fixtures", f.error); return; }
    while (fixture_next(&f)) {
        int before = test_fails;
        new_metric *make = NULL;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (strcmp(rows[i].name, f.op) == 0) make = rows[i].make;
        REQUIRE(make != NULL);
        eg_metric_options o = {.threshold = fixture_attr(&f, "threshold", 0, 0),
                               .k = (int64_t)fixture_attr(&f, "k", 0, 0),
                               .classes = (int64_t)fixture_attr(&f, "classes", 0, 0),
                               .thresholds = (int64_t)fixture_attr(&f, "thresholds", 0, 0),
                               .curve = fixture_text(&f, "curve", NULL) ? EG_PR : EG_ROC};
        eg_metric *m = make(o);
        const fixture_array *y = fixture_get(&f, "in", 0), *p = fixture_get(&f, "in", 1), *w = fixture_get(&f, "in", 2),
                            *out = fixture_get(&f, "out", 0);
        for (int64_t b = 0; b < y->dims[0]; b++) {
            CHECK(eg_metric_update(m, tensor_from(y, b), tensor_from(p, b), .weights = w ? tensor_from(w, b) : NULL));
            CHECK_NEAR(eg_metric_result(m), out->values[b], 2e-6);
        }
        if (test_fails > before) printf("    in case %s\n", f.name);
        eg_metric_release(m);
        cases++;
    }
    CHECK_STR(f.error, "");
    CHECK_INT(cases, 41);
    fixture_close(&f);
}

TEST(accuracy_goes_by_the_shapes) {
    eg_metric *sparse = EG_METRIC_ACCURACY, *hot = EG_METRIC_ACCURACY,
              *binary = eg_metric_accuracy(.threshold = EG_ZERO), *flat = EG_METRIC_ACCURACY;
    eg_tensor *p = eg_constant(EG_SHAPE(2, 3), 1, 5, 2, 4, 3, 9);
    CHECK(eg_metric_update(sparse, eg_constant_of(EG_UINT8, EG_SHAPE(2), 1, 0), p));
    CHECK_NEAR(eg_metric_result(sparse), 0.5, 0);
    CHECK(eg_metric_update(hot, eg_constant(EG_SHAPE(2, 3), 0, 1, 0, 0, 0, 1), p));
    CHECK_NEAR(eg_metric_result(hot), 1, 0);
    // logits
    CHECK(eg_metric_update(binary, eg_constant(EG_SHAPE(4, 1), 0, 1, 0, 1),
                           eg_constant(EG_SHAPE(4, 1), -1, 2, 0.1, 0.3)));
    CHECK_NEAR(eg_metric_result(binary), 0.75, 0);
    CHECK(eg_metric_update(flat, eg_constant_of(EG_BOOL, EG_SHAPE(2), 1, 0), eg_constant(EG_SHAPE(2), 0.7, 0.6)));
    CHECK_NEAR(eg_metric_result(flat), 0.5, 0);
    CHECK_ERROR(eg_metric_update(sparse, eg_zeros(EG_INT32, EG_SHAPE(2, 1)), p), EG_ERROR_SHAPE, "[2, 1]");
    CHECK_ERROR(eg_metric_update(sparse, eg_zeros(EG_INT32, EG_SHAPE(3)), p), EG_ERROR_SHAPE, "[2, 3]");
    CHECK_ERROR(eg_metric_update(sparse, NULL, p), EG_ERROR_NULL, "");
    CHECK_NEAR(eg_metric_result(sparse), 0.5, 0);
    eg_metric_release(sparse);
    eg_metric_release(hot);
    eg_metric_release(binary);
    eg_metric_release(flat);
}

TEST(confusion_matrix) {
    eg_metric *m = eg_metric_confusion_matrix(.classes = 3);
    CHECK(eg_metric_update(m, eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 1, 2, 2),
                           eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 2, 2, 2)));
    // scores
    CHECK(eg_metric_update(m, eg_constant_of(EG_INT32, EG_SHAPE(1), 1), eg_constant(EG_SHAPE(1, 3), 0, 1, 0)));
    CHECK_TENSOR(eg_metric_tensor(m), 0, 1, 0, 0, 0, 1, 1, 0, 0, 2);
    eg_metric *weighted = eg_metric_confusion_matrix(.classes = 2);
    CHECK(eg_metric_update(weighted, eg_zeros(EG_INT32, EG_SHAPE(2)), eg_constant_of(EG_INT32, EG_SHAPE(2), 0, 1),
                           .weights = eg_constant(EG_SHAPE(2), 0.5, 2)));
    CHECK_TENSOR(eg_metric_tensor(weighted), 0, 0.5, 2, 0, 0);
    eg_metric_release(weighted);
    CHECK_NEAR(eg_metric_result(m), 0.8, 1e-12);
    CHECK_ERROR(eg_metric_update(m, eg_constant_of(EG_INT32, EG_SHAPE(1), 3), eg_constant_of(EG_INT32, EG_SHAPE(1), 0)),
                EG_ERROR_INDEX, "3");
    CHECK_ERROR(eg_metric_confusion_matrix(), EG_ERROR_ARGUMENT, ".classes");
    eg_metric_release(m);
}

// Labels whose mean is a million times their spread, and more: no digits are lost, however they come in batches.
TEST(r2_of_labels_far_from_zero) {
    enum { N = 60 };
    double near[N], said[N], far[N], far_said[N], weight[N];
    for (int i = 0; i < N; i++) {
        near[i] = sin(1.3 * i);
        said[i] = near[i] + .25 * cos(2.1 * i);
        far[i] = near[i] + 1e7;
        far_said[i] = said[i] + 1e7;
        weight[i] = 1 + i % 3;
    }
    eg_shape shape = EG_SHAPE(N, 1);
    eg_tensor *y = eg_from_data(EG_FLOAT64, shape, near), *p = eg_from_data(EG_FLOAT64, shape, said),
              *w = eg_from_data(EG_FLOAT64, EG_SHAPE(N), weight);
    eg_tensor *high = eg_from_data(EG_FLOAT64, shape, far), *high_p = eg_from_data(EG_FLOAT64, shape, far_said);
    eg_metric *one = eg_metric_r2(), *parts = eg_metric_r2(), *heavy = eg_metric_r2(), *heavy_parts = eg_metric_r2();
    CHECK(eg_metric_update(one, y, p) && eg_metric_update(heavy, y, p, .weights = w));
    for (int i = 0; i < N; i += 7) {
        int64_t n = N - i < 7 ? N - i : 7;
        eg_tensor *labels = eg_slice(high, EG_SHAPE(i, 0), EG_SHAPE(n, 1)),
                  *predictions = eg_slice(high_p, EG_SHAPE(i, 0), EG_SHAPE(n, 1));
        CHECK(eg_metric_update(parts, labels, predictions));
        CHECK(eg_metric_update(heavy_parts, labels, predictions, .weights = eg_slice(w, EG_SHAPE(i), EG_SHAPE(n))));
    }
    CHECK_NEAR(eg_metric_result(parts), eg_metric_result(one), 1e-7);
    CHECK_NEAR(eg_metric_result(heavy_parts), eg_metric_result(heavy), 1e-7);
    CHECK(eg_metric_result(one) > .9 && eg_metric_result(one) < .97);
    CHECK(eg_metric_reset(one));
    for (int i = 0; i < 5; i++)
        CHECK(eg_metric_update(one, eg_full(EG_FLOAT64, EG_SHAPE(3 + i, 1), .1),
                               eg_full(EG_FLOAT64, EG_SHAPE(3 + i, 1), .2)));
    CHECK_NEAR(eg_metric_result(one), 0, 0);  // labels that are all the same have no spread, whatever rounding leaves
    eg_metric_release(one);
    eg_metric_release(parts);
    eg_metric_release(heavy);
    eg_metric_release(heavy_parts);
}
TEST(r2_is_a_mean_over_columns) {
    eg_metric *m = eg_metric_r2(), *cube = eg_metric_r2(), *flat = eg_metric_r2();
    eg_tensor *y = eg_constant(EG_SHAPE(3, 2), 1, 100, 2, 200, 3, 300),
              *p = eg_constant(EG_SHAPE(3, 2), 1, 150, 2, 200, 2, 300);
    CHECK_NEAR(eg_metric_result(m), 0, 0);
    CHECK(eg_metric_update(m, y, p));
    // all together it would be .8751
    CHECK_NEAR(eg_metric_result(m), ((1 - 1 / 2.0) + (1 - 2500 / 20000.0)) / 2, 1e-12);
    CHECK_SHAPE(eg_metric_state(m), 4, 2);
    CHECK_ERROR(eg_metric_update(m, eg_slice(y, EG_SHAPE(0, 0), EG_SHAPE(3, 1)),
                                 eg_slice(p, EG_SHAPE(0, 0), EG_SHAPE(3, 1))), EG_ERROR_SHAPE,
                "eg_metric_update: r2 has seen rows of 2 columns, and these have 1; eg_metric_reset begins anew");
    CHECK_NEAR(eg_metric_result(m), 0.6875, 1e-12);
    CHECK(eg_metric_update(cube, eg_reshape(y, EG_SHAPE(3, 1, 2)), eg_reshape(p, EG_SHAPE(3, 1, 2))));
    CHECK_NEAR(eg_metric_result(cube), 0.6875, 1e-12);
    CHECK(eg_metric_reset(cube) && eg_metric_update(cube, eg_reshape(y, EG_SHAPE(6)), eg_reshape(p, EG_SHAPE(6))));
    CHECK(eg_metric_update(flat, eg_reshape(y, EG_SHAPE(6, 1)), eg_reshape(p, EG_SHAPE(6, 1))));
    CHECK_NEAR(eg_metric_result(cube), eg_metric_result(flat), 1e-12);
    CHECK(eg_metric_reset(m) &&
          eg_metric_update(m, eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2)), eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2))));
    CHECK(eg_metric_update(m, eg_zeros(EG_FLOAT32, EG_SHAPE(3, 0)), eg_zeros(EG_FLOAT32, EG_SHAPE(3, 0))));
    CHECK_NEAR(eg_metric_result(m), 0, 0);
    CHECK(eg_metric_update(m, y, p));
    CHECK_NEAR(eg_metric_result(m), 0.6875, 1e-12);
    eg_metric_release(m);
    eg_metric_release(cube);
    eg_metric_release(flat);
}

static eg_tensor *share_above_one(eg_tensor *y, eg_tensor *p) { (void)y; return eg_greater(p, 1); }

TEST(metrics_of_functions) {
    eg_metric *m = eg_metric_of(share_above_one, .name = "large"), *huber = eg_metric_of(eg_huber);
    eg_tensor *y = eg_zeros(EG_FLOAT32, EG_SHAPE(4)), *p = eg_constant(EG_SHAPE(4), 0, 1, 2, 3);
    CHECK(eg_metric_update(m, y, p) && eg_metric_update(huber, y, p));
    CHECK_NEAR(eg_metric_result(m), 0.5, 0);
    CHECK_STR(eg_metric_name(huber), "huber");
    CHECK_NEAR(eg_metric_result(huber), eg_item(eg_huber(y, p)), 1e-6);
    CHECK_ERROR(eg_metric_update(huber, y, eg_expand_dims(p, 1)), EG_ERROR_SHAPE, "[4, 1]");
    CHECK_ERROR(eg_metric_of(NULL), EG_ERROR_ARGUMENT, "NULL");
    eg_metric_release(m);
    eg_metric_release(huber);
}

TEST(no_tape_sees_them) {
    eg_metric *m = eg_metric_mean_squared_error();
    eg_tensor *x = eg_variable(eg_constant(EG_SHAPE(2), 1, 2), "x");
    eg_tape *tape = eg_tape_begin();
    CHECK(eg_metric_update(m, eg_zeros(EG_FLOAT32, EG_SHAPE(2)), x));
    CHECK_INT(eg_tape_watched_variables(tape, NULL, 0), 0);
    CHECK(!eg_trainable(eg_metric_state(m)));
    CHECK_TENSOR(eg_metric_state(m), 1e-12, 5, 2);
    eg_release(x);
    eg_metric_release(m);
}

TEST(options_and_errors) {
    CHECK_ERROR(eg_metric_mean(.threshold = 1), EG_ERROR_ARGUMENT,
                "eg_metric_mean: has no option .threshold (at metrics.c:");
    CHECK_ERROR(eg_metric_accuracy(.k = 1), EG_ERROR_ARGUMENT, ".k");
    CHECK_ERROR(eg_metric_accuracy(.classes = 1), EG_ERROR_ARGUMENT, "classes");
    CHECK_ERROR(eg_metric_precision(.thresholds = 10), EG_ERROR_ARGUMENT, "thresholds");
    CHECK_ERROR(eg_metric_top_k(.k = -1), EG_ERROR_ARGUMENT, ".k is -1; it must be at least 1 and at most 1000000000");
    CHECK_ERROR(eg_metric_auc(.thresholds = 1), EG_ERROR_ARGUMENT,
                ".thresholds is 1; it must be at least 3 and at most 1000000");
    eg_metric *auc = eg_metric_auc(), *precision = eg_metric_precision();
    eg_tensor *y = eg_constant(EG_SHAPE(2), 0, 1);
    CHECK_ERROR(eg_metric_update(auc, y, eg_constant(EG_SHAPE(2), -3, 2)), EG_ERROR_ARGUMENT, "eg_sigmoid");
    CHECK_ERROR(eg_metric_update(precision, y, eg_constant(EG_SHAPE(2, 1), 0, 1)), EG_ERROR_SHAPE, "[2, 1]");
    CHECK_ERROR(eg_metric_update(precision, y, y, .weights = eg_ones(EG_FLOAT32, EG_SHAPE(3))), EG_ERROR_SHAPE, "[3]");
    CHECK_ERROR(eg_metric_add(precision, y), EG_ERROR_ARGUMENT, "eg_metric_update");
    CHECK_NEAR(eg_metric_result(auc), 0, 0);
    CHECK_NEAR(eg_metric_result(precision), 0, 0);
    eg_metric_release(auc);
    eg_metric_release(precision);
    eg_metric *all[] = {eg_metric_accuracy(), eg_metric_binary_accuracy(), eg_metric_categorical_accuracy(),
                        eg_metric_top_k(), eg_metric_r2(), eg_metric_mean_iou(.classes = 3), eg_metric_auc(),
                        eg_metric_of(eg_huber)};
    eg_tensor *empty = eg_zeros(EG_FLOAT32, EG_SHAPE(0)), *none = eg_zeros(EG_INT32, EG_SHAPE(0)),
              *cube = eg_zeros(EG_FLOAT32, EG_SHAPE(2, 3, 4));
    for (int i = 0; i < 8; i++) {
        CHECK_ERROR(eg_metric_update(all[i], NULL, y), EG_ERROR_NULL, "NULL");
        CHECK_ERROR(eg_metric_update(all[i], y, NULL), EG_ERROR_NULL, "NULL");
        CHECK_ERROR(eg_metric_update(all[i], eg_zeros(EG_FLOAT32, EG_SHAPE(5)), cube), EG_ERROR_SHAPE, "[5]");
        CHECK_NEAR(eg_metric_result(all[i]), 0, 0);
    }
    CHECK(eg_metric_update(all[5], none, none) && eg_metric_update(all[6], empty, empty) &&
          eg_metric_update(all[1], empty, empty));
    CHECK_ERROR(eg_metric_update(all[6], none, none), EG_ERROR_DTYPE, "");
    CHECK(eg_metric_update(all[4], eg_ones(EG_FLOAT32, EG_SHAPE(3)), eg_ones(EG_FLOAT32, EG_SHAPE(3))));
    CHECK_NEAR(eg_metric_result(all[4]), 0, 0);                     // labels that do not differ explain nothing
    for (int i = 0; i < 8; i++) eg_metric_release(all[i]);
    CHECK_ERROR(eg_metric_add(NULL, y), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_metric_tensor(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_metric_name(NULL)[0], EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_metric_state(NULL), EG_ERROR_NULL, "NULL");
    CHECK(eg_metric_retain(NULL) == NULL);
    CHECK_ERROR(eg_metric_mean_iou(.classes = -1), EG_ERROR_ARGUMENT, ".classes is -1");
    eg_metric *iou = eg_metric_mean_iou(.classes = 2);
    eg_tensor *known = eg_constant(EG_SHAPE(2), 0, 1), *unknown = eg_constant(EG_SHAPE(2), 0, 5);
    CHECK_ERROR(eg_metric_update(iou, unknown, known), EG_ERROR_INDEX,
                "eg_metric_update: mean_iou: label 5 (number 1 of the batch, from 0) is none of the 2 classes");
    CHECK_ERROR(eg_metric_update(iou, known, eg_negative(known)), EG_ERROR_INDEX,
                "eg_metric_update: mean_iou: prediction -1 ");
    CHECK_NEAR(eg_metric_result(iou), 0, 0);
    eg_metric_release(iou);
    CHECK_ERROR(eg_metric_auc(.thresholds = 10000000), EG_ERROR_ARGUMENT, ".thresholds is 10000000");
    (void)eg_scalar_of(EG_INT32, 0.5);
    CHECK(isnan(eg_metric_result(NULL)));                            // says nothing of its own
    CHECK_CONTAINS(eg_error_message(), "0.5");
    eg_error_clear();
    CHECK_ERROR(eg_metric_update(NULL, y, y), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_metric_result(NULL), EG_ERROR_NULL, "NULL");
    CHECK_ERROR(eg_metric_reset(NULL), EG_ERROR_NULL, "NULL");
}
