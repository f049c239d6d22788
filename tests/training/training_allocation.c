// Losses, metrics and training without memory: at every allocation an error, nothing left behind.
#include "test.h"
#define FAULTS_DENSE
#include "faults.h"

static void no_print(const char *text, void *user) { (void)text; (void)user; }
static eg_layer *small(void) { return eg_sequential(eg_layer_dense(2, .input_shape = EG_SHAPE(2), .kernel_l2 = 0.1)); }
static eg_tensor *some_x(void) { return eg_constant(EG_SHAPE(4, 2), 1, 2, -1, 0, 3, 1, -2, -1); }
static eg_tensor *some_y(void) { return eg_constant_of(EG_INT32, EG_SHAPE(4), 0, 1, 0, 1); }

// Everything that eg_fit can do at once.
static double halved(int64_t epoch, double rate, void *user) { (void)epoch; (void)user; return rate / 2; }
static bool act_of_fit(void) {
    char csv[4200], weights[4200];
    snprintf(csv, sizeof csv, "%s", test_temp("faults.csv"));
    snprintf(weights, sizeof weights, "%s", test_temp("faults-{epoch}-{loss}.npz"));
    eg_layer *model = small();
    eg_tensor *x = some_x(), *y = some_y(), *w = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    bool right = eg_compile(model, eg_adam(.clipnorm = 1), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY,
                            eg_metric_top_k(.k = 1)) && x && y && w;
    const eg_history *h = right ? eg_fit_arrays(model, x, y, .epochs = 2, .batch_size = 2, .validation_x = x,
                                                .validation_y = y, .class_weights = EG_CLASS_WEIGHTS(1, 2),
                                                .sample_weights = w, .progress = EG_PROGRESS_BAR,
                                                .callbacks = EG_CALLBACKS(
            eg_callback_learning_rate(.rate = halved),
            eg_callback_plateau(.patience = 1, .min_delta = 9), eg_callback_stop_on_nan(),
            eg_callback_csv(csv, .append = true), eg_callback_checkpoint(weights, .save_best = true),
            eg_callback_early_stopping(.restore_best = true, .monitor = "val_loss"))) : NULL;
    right = h && !isnan(eg_evaluate_arrays(model, x, y)) && eg_predict(model, x, .batch_size = 3) &&
            !isnan(eg_train_on_batch(model, x, y)) && eg_model_reset_metrics(model);
    right = right && eg_history_csv(h, test_temp("faults.csv")) && eg_history_batches_csv(h, test_temp("faults.csv")) &&
            eg_history_svg(h, test_temp("faults.svg"));
    eg_layer_release(model);
    remove(csv);
    return right;
}
TEST(out_of_memory_in_a_fit) {
    eg_set_printer(no_print, NULL);
    faults_sweep(act_of_fit);
    eg_set_printer(NULL, NULL);
}

static bool act_of_split(void) {
    char path[4200];
    snprintf(path, sizeof path, "%s", test_temp("split-{epoch:02d}-{val_loss:.2f}.npz"));
    eg_layer *model = small();
    eg_tensor *x = some_x(), *y = some_y(), *w = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    bool right = eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy) && x && y && w;
    right = right && eg_fit_arrays(model, x, y, .sample_weights = w, .validation_split = 0.5, .quiet = true,
                                   .callbacks = EG_CALLBACKS(eg_callback_checkpoint(path)));
    eg_layer_release(model);
    return right;
}
TEST(out_of_memory_in_a_split) { faults_sweep(act_of_split); }

// A model of two outputs, stopped and gone on with.
static bool twice(eg_tensor *const *in, eg_tensor **out, void *user) {
    out[0] = eg_call((eg_layer *)user, in[0]);
    out[1] = out[0] ? eg_mul(out[0], 2) : NULL;
    return out[1] != NULL;
}
static bool act_of_backup(void) {
    char prefix[4200], old[4300];
    bool right = true;
    snprintf(prefix, sizeof prefix, "%s", test_temp("faulty"));
    for (int i = 1; i < 9; i++) {
        snprintf(old, sizeof old, "%s-%d.safetensors", prefix, i);
        remove(old);
    }
    for (int run = 0; run < 2 && right; run++) {
        eg_layer *dense = eg_layer_dense(2, .input_shape = EG_SHAPE(2)),
                 *model = eg_layer_custom_multi("twice", 1, 2, twice, dense);
        eg_tensor *x = some_x();
        right = eg_layer_track(model, NULL, dense) != NULL && eg_layer_weights(dense, NULL, 0) == 2;
        eg_dataset *data = eg_dataset_batch(eg_dataset_from_slices(x, some_y(), x), 2);
        right = right && eg_compile_outputs(model, eg_sgd(.momentum = 0.5),
                                            EG_OUTPUT("class", eg_sparse_categorical_crossentropy,
                                                      .metrics = EG_METRICS(EG_METRIC_ACCURACY)),
                                            EG_OUTPUT(NULL, eg_huber, .weight = 0.5));
        right = right && data && eg_fit(model, data, .epochs = 1 + run, .quiet = true,
                                        .callbacks = EG_CALLBACKS(eg_callback_backup(prefix, .every = 1)));
        right = right && eg_predict_dataset(model, data, .output = 1) != NULL;
        eg_dataset_release(data);
        eg_layer_release(model);
    }
    return right;
}
TEST(out_of_memory_in_a_backup) { faults_sweep(act_of_backup); }

static bool act_of_board(void) {
    eg_layer *model = small();
    eg_tensor *x = some_x(), *y = some_y();
    bool right = eg_compile(model, eg_sgd(), eg_sparse_categorical_crossentropy) && x && y &&
                 eg_fit_arrays(model, x, y, .validation_x = x, .validation_y = y, .quiet = true,
                               .callbacks = EG_CALLBACKS(eg_callback_tensorboard(test_temp("board"), .every = 1)));
    eg_layer_release(model);
    return right;
}
TEST(out_of_memory_in_a_tensorboard) {
    CHECK(act_of_board());                                   // makes the folders
    faults_sweep(act_of_board);
}

// Metrics and losses of each kind, with weights.
static bool act_of_metrics(void) {
    eg_tensor *labels = eg_constant(EG_SHAPE(4), 0, 1, 1, 0), *shares = eg_constant(EG_SHAPE(4), .2, .7, .4, .1),
              *w = eg_constant(EG_SHAPE(4), 1, 2, .5, 1), *classes = some_y(), *scores = some_x();
    eg_metric *on_shares[] = {eg_metric_binary_accuracy(), eg_metric_precision(), eg_metric_recall(), eg_metric_f1(),
                              eg_metric_auc(.thresholds = 5), eg_metric_auc(.thresholds = 5, .curve = EG_PR),
                              eg_metric_r2(), eg_metric_mean_squared_error(), eg_metric_root_mean_squared_error(),
                              eg_metric_of(eg_huber)};
    eg_metric *on_scores[] = {eg_metric_accuracy(), eg_metric_sparse_categorical_accuracy(), eg_metric_top_k(.k = 1),
                              eg_metric_mean_iou(.classes = 2), eg_metric_confusion_matrix(.classes = 2)};
    enum { SHARES = sizeof on_shares / sizeof *on_shares, SCORES = sizeof on_scores / sizeof *on_scores };
    bool right = labels && shares && w && classes && scores;
    for (int i = 0; i < SHARES; i++)
        right = right && on_shares[i] && eg_metric_update(on_shares[i], labels, shares, .weights = w) &&
                !isnan(eg_metric_result(on_shares[i]));
    for (int i = 0; i < SCORES; i++)
        right = right && on_scores[i] && eg_metric_update(on_scores[i], classes, scores, .weights = w) &&
                eg_metric_tensor(on_scores[i]) && eg_metric_reset(on_scores[i]);
    right = right && eg_loss_mean(eg_categorical_focal_crossentropy,
                                  eg_one_hot(classes, 2), scores, .label_smoothing = .1, .weights = w) &&
            eg_loss_per_example(eg_sparse_categorical_crossentropy, classes, scores) && eg_dice(labels, shares) &&
            eg_kl_divergence(labels, shares);
    for (int i = 0; i < SHARES; i++) eg_metric_release(on_shares[i]);
    for (int i = 0; i < SCORES; i++) eg_metric_release(on_scores[i]);
    return right;
}
TEST(out_of_memory_in_metrics) { faults_sweep(act_of_metrics); }

static bool act_of_a_history(void) {
    eg_history *h = eg_history_new();
    bool ok = h != NULL;
    for (int i = 0; i < 40 && ok; i++)
        ok = eg_history_add_batch(h, i) && eg_history_add(h, i, "loss", i) &&
             eg_history_add(h, i, i < 20 ? "accuracy" : "val_loss", i);
    ok = ok && eg_history_svg(h, test_temp("history.svg"));
    eg_history_release(h);
    return ok && eg_error() == EG_OK;
}
TEST(out_of_memory_in_a_history_of_ones_own) { faults_sweep(act_of_a_history); }
