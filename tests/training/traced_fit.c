// eg_fit traced and eager: the same history, weights, states of optimizer and metrics, and random numbers, bit for bit.
#include "test.h"

// ---- one fit, both ways

enum { ROWS = 36, BATCH = 8, FEATURES = 4 };       // five batches, the last of four rows
typedef enum labels { NUMBERS, SHARES, ONE_HOT, CLASSES, SIDES } labels;
typedef struct plan {
    eg_layer *(*model)(int which);
    eg_optimizer *(*optimizer)(int which);
    eg_loss *loss;
    eg_metric *(*metric)(int which);
    labels labels;
    int which, rank;              // rank of an example: 0: the model's own
    bool weighted, by_class;
    const char *reason;           // why a step may stay eager, which devices differ in; NULL: it is traced
} plan;
typedef struct outcome { double numbers[4096]; int count; int64_t replays; char reason[256]; } outcome;

static void note(outcome *o, double x) {
    if (o->count < (int)(sizeof o->numbers / sizeof *o->numbers)) o->numbers[o->count++] = x;
}
static void note_list(outcome *o, eg_list list) {
    for (int i = 0; i < list.count; i++) {
        const double *x = (const double *)eg_data(eg_cast(list.tensors[i], EG_FLOAT64));
        for (int64_t k = 0; x && k < eg_size(list.tensors[i]); k++) note(o, x[k]);
    }
}
static eg_layer *head(eg_layer *first, bool softmax) {
    return eg_sequential(first, eg_layer_flatten(),
                         eg_layer_dense(3, .activation = softmax ? EG_SOFTMAX : EG_LINEAR));
}
static eg_layer *mlp(int which) {
    (void)which;
    return head(eg_layer_dense(5, .activation = EG_TANH), false);
}
static eg_layer *mlp_of_shares(int which) {
    (void)which;
    return head(eg_layer_dense(5, .activation = EG_TANH), true);
}
static eg_optimizer *plain_sgd(int which) { (void)which; return eg_sgd(.learning_rate = .05); }
static eg_optimizer *accumulating(int which) { (void)which; return eg_adam(.accumulate_steps = 3); }
static eg_tensor *labels_for(labels kind) {
    eg_tensor *c = eg_cast(eg_mul(eg_random_uniform(EG_SHAPE(ROWS)), 2.999), EG_INT32);
    if (kind == CLASSES) return c;
    if (kind == ONE_HOT) return eg_one_hot(c, 3);
    eg_tensor *u = eg_random_uniform(EG_SHAPE(ROWS, 3));
    return kind == SHARES ? u : kind == SIDES ? eg_sub(eg_mul(eg_cast(eg_greater(u, .5), EG_FLOAT32), 2), 1)
                                              : eg_add(u, 1);
}
static void fit_once(const plan *p, bool eager, outcome *o) {
    eg_scope scope = eg_scope_begin();
    memset(o, 0, sizeof *o);
    eg_seed(7);
    eg_shape shape = p->rank == 2 ? EG_SHAPE(ROWS, 6, FEATURES) : p->rank == 3 ? EG_SHAPE(ROWS, 6, 6, 2)
                                                                              : EG_SHAPE(ROWS, FEATURES);
    eg_tensor *x = eg_random_normal(shape), *y = labels_for(p->labels), *w = eg_random_uniform(EG_SHAPE(ROWS));
    eg_layer *m = p->model(p->which);
    eg_metric *metric = p->metric ? p->metric(p->which) : NULL;
    eg_output output = { NULL, p->loss, 0, { metric ? 1 : 0, &metric } };
    CHECK(eg_compile_outputs(m, p->optimizer(p->which), output));
    const eg_history *h = eg_fit_arrays(m, x, y, .epochs = 3, .batch_size = BATCH, .quiet = true, .eager = eager,
                                        .traced = !eager, .validation_x = x, .validation_y = y,
                                        .sample_weights = p->weighted ? w : NULL,
                                        .class_weights = p->by_class ? EG_CLASS_WEIGHTS(1, 2.5, .25)
                                                                     : (eg_class_weights){ 0, NULL });
    CHECK(h != NULL);
    for (int i = 0; h && eg_history_name(h, i); i++)
        for (int64_t e = 0; e < 3; e++) note(o, eg_history_value(h, eg_history_name(h, i), e));
    for (int64_t i = 0; h && i < eg_history_batches(h); i++) note(o, eg_history_batch_loss(h, i));
    note_list(o, eg_layer_weights_list(m));
    note_list(o, eg_optimizer_state_list(eg_model_optimizer(m)));
    note(o, (double)eg_random_get_state().counter);
    note(o, eg_train_on_batch(m, x, y, .eager = eager));
    note(o, eg_evaluate_arrays(m, x, y, .quiet = true, .eager = eager));
    eg_tensor *predicted = eg_predict(m, x, .batch_size = BATCH, .eager = eager);
    note_list(o, (eg_list){ 1, &predicted });
    eg_function_info info = eg_model_traced_counts(m);
    o->replays = info.replays;
    eg_fit_arrays(m, x, y, .batch_size = BATCH, .quiet = true, .eager = eager, .traced = !eager);
    snprintf(o->reason, sizeof o->reason, "%s", eg_model_traced_reason(m) ? eg_model_traced_reason(m) : "");
    eg_layer_release(m);
    eg_scope_end(scope);
}
static void both_ways(const char *name, const plan *p) {
    static outcome a, b;
    fit_once(p, true, &a);
    fit_once(p, false, &b);
    CHECK_STR(a.reason, ".eager = true");
    if (p->reason && b.reason[0]) CHECK_CONTAINS(b.reason, p->reason);
    else if (b.reason[0] || b.replays < (p->optimizer == accumulating ? 4 : 8))       // two traces for each shape
        test_say(__FILE__, __LINE__, name, b.reason);
    CHECK_INT(a.count, b.count);
    for (int i = 0; i < a.count; i++)
        if (memcmp(&a.numbers[i], &b.numbers[i], sizeof(double)) != 0) {
            test_say(__FILE__, __LINE__, name, "differs");
            break;
        }
}

TEST(a_fit_of_a_model) {
    const plan p = { mlp, plain_sgd, eg_sparse_categorical_crossentropy, NULL, CLASSES, 0, 0, false, false, NULL };
    both_ways("mlp", &p);
}
static eg_optimizer *any_optimizer(int i) {
    switch (i) {
    case 0: return eg_sgd(.momentum = .9, .weight_decay = .01);
    case 1: return eg_sgd(.momentum = .9, .nesterov = true, .clipnorm = .1);
    case 2: return eg_rmsprop(.clipvalue = .01);
    case 3: return eg_rmsprop(.momentum = .5, .centered = true);
    case 4: return eg_adam(.global_clipnorm = .1);
    case 5: return eg_adam(.amsgrad = true, .schedule = eg_cosine_decay(.1, 10, 0, 0, 0));
    case 6: return eg_adamw(.schedule = eg_exponential_decay(.1, 2, .9, false));
    case 7: return eg_adagrad();
    case 8: return eg_adadelta();
    case 9: return eg_adamax();
    case 10: return eg_nadam();
    case 11: return eg_ftrl(.l1 = .01, .l2 = .01);
    default: return eg_lion();
    }
}
TEST(optimizers) {
    for (int i = 0; i < 14; i++) {
        char name[32];
        const plan p = { mlp, i == 13 ? accumulating : any_optimizer, eg_sparse_categorical_crossentropy, NULL,
                         CLASSES, i, 0, false, false,
                         i == 4 ? "eg_apply_gradients" : NULL };
        snprintf(name, sizeof name, "optimizer %d", i);
        both_ways(name, &p);
    }
}
TEST(losses) {
    #define LOSS(name, labels, shares) { eg_##name, labels, shares }
    static const struct { eg_loss *loss; labels labels; bool shares; } list[] = {
        LOSS(mean_squared_error, NUMBERS, false), LOSS(mean_absolute_error, NUMBERS, false),
        LOSS(mean_absolute_percentage_error, NUMBERS, false), LOSS(mean_squared_logarithmic_error, NUMBERS, false),
        LOSS(huber, NUMBERS, false), LOSS(log_cosh, NUMBERS, false), LOSS(poisson, NUMBERS, true),
        LOSS(kl_divergence, SHARES, true), LOSS(hinge, SIDES, false), LOSS(squared_hinge, SIDES, false),
        LOSS(categorical_hinge, ONE_HOT, false), LOSS(cosine_similarity, NUMBERS, false), LOSS(dice, SHARES, true),
        LOSS(binary_crossentropy, SHARES, false), LOSS(binary_crossentropy_from_probabilities, SHARES, true),
        LOSS(categorical_crossentropy, ONE_HOT, false),
        LOSS(categorical_crossentropy_from_probabilities, ONE_HOT, true),
        LOSS(sparse_categorical_crossentropy, CLASSES, false),
        LOSS(sparse_categorical_crossentropy_from_probabilities, CLASSES, true),
        LOSS(binary_focal_crossentropy, SHARES, false),
        LOSS(binary_focal_crossentropy_from_probabilities, SHARES, true),
        LOSS(categorical_focal_crossentropy, ONE_HOT, false),
        LOSS(categorical_focal_crossentropy_from_probabilities, ONE_HOT, true),
    };
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++) {
        char name[32];
        plan p = { list[i].shares ? mlp_of_shares : mlp, plain_sgd, list[i].loss, NULL, list[i].labels, 0, 0,
                   i % 2 == 1, list[i].labels == CLASSES || list[i].labels == ONE_HOT, NULL };
        snprintf(name, sizeof name, "loss %d", i);
        both_ways(name, &p);
        p.weighted = !p.weighted;
        p.by_class = false;
        both_ways(name, &p);
    }
}
static eg_metric *any_metric(int i) {
    switch (i) {
    case 0: return eg_metric_binary_accuracy();
    case 1: return eg_metric_categorical_accuracy();
    case 2: return eg_metric_top_k(.k = 2);
    case 3: return eg_metric_precision();
    case 4: return eg_metric_recall();
    case 5: return eg_metric_f1();
    case 6: return eg_metric_auc(.thresholds = 20);
    case 7: return eg_metric_r2();
    case 8: return eg_metric_mean_squared_error();
    case 9: return eg_metric_mean_absolute_error();
    case 10: return eg_metric_root_mean_squared_error();
    case 11: return eg_metric_accuracy();
    case 12: return eg_metric_sparse_categorical_accuracy();
    case 13: return eg_metric_mean_iou(.classes = 3);
    case 14: return eg_metric_confusion_matrix(.classes = 3);
    default: return eg_metric_of(eg_binary_crossentropy_from_probabilities);
    }
}
TEST(metrics) {
    for (int i = 0; i < 16; i++) {
        char name[32];
        const bool classes = i >= 11 && i < 15;
        const plan p = { mlp_of_shares, plain_sgd,
                         classes ? eg_sparse_categorical_crossentropy_from_probabilities : eg_mean_squared_error,
                         any_metric, classes ? CLASSES : ONE_HOT, i, 0, false, false, NULL };
        snprintf(name, sizeof name, "metric %d", i);
        both_ways(name, &p);
    }
}
// Two layers on the input, and a layer of several inputs, one of a function, and one of the program's own after them.
typedef struct branches { eg_layer *left, *right, *merge, *function, *last; } branches;
static branches split;
static eg_tensor *halve(eg_tensor *const *in, void *user) { (void)user; return eg_mul(in[0], 0.5); }
static eg_tensor *split_call(eg_tensor *const *in, void *user) {
    const branches *b = (const branches *)user;
    eg_tensor *both[] = { eg_call(b->left, in[0]), eg_call(b->right, in[0]) }, *y;
    return eg_call_multi(b->merge, both, 2, &y, 1) ? eg_call(b->last, eg_call(b->function, y)) : NULL;
}
static eg_layer *merging(eg_layer *merge) {
    eg_layer *m = eg_layer_custom("split", split_call, &split);
    const branches b = { eg_layer_dense(3), eg_layer_dense(3, .activation = EG_TANH), merge,
                         eg_layer_lambda("halve", halve, NULL), eg_layer_dense(3) };
    split = b;
    (void)(eg_layer_track(m, "left", b.left) && eg_layer_track(m, "right", b.right) &&
           eg_layer_track(m, "merge", merge) && eg_layer_track(m, "function", b.function) &&
           eg_layer_track(m, "last", b.last));
    return m;
}
static eg_layer *any_layer(int i) {
    switch (i) {
    case 0: return head(eg_layer_dense(5, .activation = EG_RELU, .kernel_l2 = .01), false);
    case 1: return head(eg_layer_dropout(.3), false);
    case 2: return head(eg_layer_batch_normalization(), false);
    case 3: return head(eg_layer_layer_normalization(), false);
    case 4: return head(eg_layer_rms_normalization(), false);
    case 5: return head(eg_layer_activation(EG_GELU), false);
    case 6: return head(eg_layer_leaky_relu(.1), false);
    case 7: return head(eg_layer_residual(eg_layer_dense(FEATURES)), false);
    case 8: return head(eg_layer_repeat_vector(3), false);
    case 9: return head(eg_layer_conv1d(3, 3), false);
    case 10: return head(eg_layer_conv1d_transpose(3, 3), false);
    case 11: return head(eg_layer_max_pooling1d(), false);
    case 12: return head(eg_layer_average_pooling1d(), false);
    case 13: return head(eg_layer_global_max_pooling1d(), false);
    case 14: return head(eg_layer_global_average_pooling1d(), false);
    case 15: return head(eg_layer_zero_padding1d(EG_PADS(1, 1)), false);
    case 16: return head(eg_layer_up_sampling1d(2), false);
    case 17: return head(eg_layer_simple_rnn(3), false);
    case 18: return head(eg_layer_lstm(3, .return_sequences = true, .dropout = .2), false);
    case 19: return head(eg_layer_gru(3, .recurrent_dropout = .2), false);
    case 20: return head(eg_layer_bidirectional(eg_layer_lstm(2)), false);
    case 21: return head(eg_layer_multi_head_attention(2, 2, .dropout = .1), false);
    case 22: return eg_sequential(eg_layer_masking(0.), eg_layer_lstm(3), eg_layer_dense(3));
    case 23: return head(eg_layer_position_embedding(6), false);
    case 24: return head(eg_layer_group_normalization(.groups = 2), false);
    case 25: return head(eg_layer_permute(EG_AXES(2, 1)), false);
    case 26: return head(eg_layer_conv2d(3, 3, .activation = EG_RELU), false);
    case 27: return head(eg_layer_conv2d_transpose(2, 2), false);
    case 28: return head(eg_layer_depthwise_conv2d(3), false);
    case 29: return head(eg_layer_separable_conv2d(2, 3), false);
    case 30: return head(eg_layer_max_pooling2d(), false);
    case 31: return head(eg_layer_average_pooling2d(), false);
    case 32: return head(eg_layer_global_max_pooling2d(), false);
    case 33: return head(eg_layer_global_average_pooling2d(), false);
    case 34: return head(eg_layer_zero_padding2d(EG_PADS(1, 1, 1, 1)), false);
    case 35: return head(eg_layer_up_sampling2d(2), false);
    case 36: return merging(eg_layer_merge_add());
    case 37: return merging(eg_layer_merge_subtract());
    case 38: return merging(eg_layer_merge_multiply());
    case 39: return merging(eg_layer_merge_average());
    case 40: return merging(eg_layer_merge_maximum());
    case 41: return merging(eg_layer_merge_minimum());
    default: return merging(eg_layer_concatenate());
    }
}
TEST(layers) {
    for (int i = 0; i < 43; i++) {
        char name[32];
        const plan p = { any_layer, plain_sgd, eg_sparse_categorical_crossentropy, NULL, CLASSES, i,
                         i < 9 || i > 35 ? 1 : i < 26 ? 2 : 3, false, false, NULL };
        snprintf(name, sizeof name, "layer %d", i);
        both_ways(name, &p);
    }
}
// Each op checks its result at each replay.
static eg_optimizer *amsgrad(int which) { (void)which; return eg_adam(.amsgrad = true); }
TEST(under_the_nan_trap) {
    eg_trap_nonfinite(true);
    for (int i = 0; i < 6; i++) {
        static const int which[] = { 0, 2, 18, 19, 21, 26 };
        char name[32];
        const plan p = { any_layer, amsgrad, eg_sparse_categorical_crossentropy, NULL, CLASSES, which[i],
                         which[i] < 9 ? 1 : which[i] < 26 ? 2 : 3, false, false,
                         test_traps_later ? "NaN trap" : NULL };
        snprintf(name, sizeof name, "layer %d under the trap", which[i]);
        both_ways(name, &p);
    }
    eg_trap_nonfinite(false);
}
// Batches of many sizes, such as the last one of an epoch, and sequences of many lengths: two of them are traced, and
// the others follow from these, whether ops are large enough to be divided among threads or not.
static eg_layer *digits_model(void) {
    return eg_sequential(eg_layer_conv2d(8, 3, .activation = EG_RELU), eg_layer_max_pooling2d(),
                         eg_layer_batch_normalization(), eg_layer_flatten(), eg_layer_dropout(.25),
                         eg_layer_dense(3));
}
static eg_layer *sequence_model(void) {
    return eg_sequential(eg_layer_gru(5, .dropout = .2, .return_sequences = true), eg_layer_lstm(3),
                         eg_layer_dropout(.5), eg_layer_dense(3));
}
// Dropout of attention draws 1 x 3 x 3 numbers for each row of the batch: parts of blocks of four.
static eg_layer *attention_model(void) {
    return eg_sequential(eg_layer_reshape(EG_SHAPE(3, 2)), eg_layer_multi_head_attention(1, 2, .dropout = .2),
                         eg_layer_flatten(), eg_layer_dense(3));
}
static void at_many_sizes(int kind) {
    const bool sequences = kind == 1;
    static const int sizes[] = { 8, 5, 3, 7, 12, 9, 20, 36, 4, 6, 2, 11, 13, 17, 19, 23, 29, 31, 33, 35 };
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    static outcome o[2];
    for (int eager = 0; eager < 2; eager++) {
        EG_SCOPE;
        memset(&o[eager], 0, sizeof o[eager]);
        eg_seed(3);
        eg_tensor *x = eg_random_normal(EG_SHAPE(ROWS, 10, 10, 1)), *y = labels_for(CLASSES);
        if (sequences) x = eg_random_normal(EG_SHAPE(9, ROWS, 3));
        if (kind == 2) x = eg_random_normal(EG_SHAPE(ROWS, 6, 1, 1));
        eg_layer *m = sequences ? sequence_model() : kind == 2 ? attention_model() : digits_model();
        eg_compile(m, eg_adam(.learning_rate = .01), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY);
        for (int i = 0; i < 5 * SIZES; i++) {
            EG_SCOPE;
            const int n = sizes[i % SIZES];
            eg_tensor *part = sequences ? eg_slice(x, EG_SHAPE(0, 0, 0), EG_SHAPE(-1, n, -1))
                                        : eg_slice(x, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(n, -1, -1, -1));
            note(&o[eager], eg_train_on_batch(m, sequences ? eg_add(part, 0) : part,
                                              eg_slice(y, EG_SHAPE(0), EG_SHAPE(sequences ? 9 : n)), .eager = eager));
        }
        note_list(&o[eager], eg_layer_weights_list(m));
        const eg_function_info info = eg_model_traced_counts(m);
        if (!eager && test_on_host) {
            CHECK_INT(info.traces, 2);
            CHECK_INT(info.derived, SIZES - 2);
            CHECK_STR(eg_model_traced_reason(m), NULL);
        }
        eg_layer_release(m);
    }
    CHECK_INT(o[0].count, o[1].count);
    CHECK(!memcmp(o[0].numbers, o[1].numbers, sizeof(double) * (size_t)o[0].count));
}
TEST(batches_of_many_sizes) { at_many_sizes(0); }
TEST(sequences_of_many_lengths) { at_many_sizes(1); }
TEST(attention_of_many_sizes) { at_many_sizes(2); }
// Two inputs, one of them words for an embedding whose word 0 is masked, two outputs with metrics, early stopping that
// restores the best weights, and files of the best ones.
typedef struct parts { eg_layer *words, *rnn, *dense, *a, *b; } parts;
static bool parts_call(eg_tensor *const *in, eg_tensor **out, void *user) {
    const parts *p = (const parts *)user;
    eg_tensor *both[] = { eg_call(p->rnn, eg_call(p->words, in[0])), eg_call(p->dense, in[1]) };
    eg_tensor *x = both[0] && both[1] ? eg_concat(both, 2, 1) : NULL;
    out[0] = eg_call(p->a, x);
    out[1] = eg_call(p->b, x);
    return out[0] && out[1];
}
static eg_layer *parts_model(parts *p) {
    eg_layer *m = eg_layer_custom_multi("parts", 2, 2, parts_call, p);
    const char *const names[] = { "words", "rnn", "dense", "a", "b" };
    eg_layer *list[] = { p->words = eg_layer_embedding(7, 3, .mask_zero = true), p->rnn = eg_layer_gru(3),
                         p->dense = eg_layer_dense(2, .activation = EG_RELU), p->a = eg_layer_dense(3),
                         p->b = eg_layer_dense(1) };
    for (int i = 0; i < 5; i++) CHECK(eg_layer_track(m, names[i], list[i]) != NULL);
    CHECK(eg_compile_outputs(m, eg_adam(.learning_rate = .2),
                             EG_OUTPUT("a", eg_sparse_categorical_crossentropy,
                                       .metrics = EG_METRICS(EG_METRIC_ACCURACY, eg_metric_top_k(.k = 2),
                                                             eg_metric_confusion_matrix(.classes = 3))),
                             EG_OUTPUT("b", eg_huber, .weight = .5, .metrics = EG_METRICS(eg_metric_r2()))));
    return m;
}
TEST(several_inputs_and_outputs_with_callbacks) {
    static outcome o[2];
    for (int eager = 0; eager < 2; eager++) {
        EG_SCOPE;
        char pattern[400];
        parts p;
        memset(&o[eager], 0, sizeof o[eager]);
        eg_seed(11);
        eg_layer *m = parts_model(&p);
        eg_dataset *data = eg_dataset_batch(
            eg_dataset_from_slices(eg_random_integers(EG_SHAPE(ROWS, 5), 0, 7), eg_random_normal(EG_SHAPE(ROWS, 4)),
                                   labels_for(CLASSES), eg_random_normal(EG_SHAPE(ROWS, 1))), BATCH);
        snprintf(pattern, sizeof pattern, "%s", test_temp(eager ? "eager.safetensors" : "traced.safetensors"));
        const eg_history *h = eg_fit(m, data, .inputs = 2, .epochs = 30, .validation = data, .quiet = true,
                                     .eager = eager, .callbacks = EG_CALLBACKS(
                                         eg_callback_checkpoint(pattern, .save_best = true),
                                         eg_callback_early_stopping(.patience = 2, .restore_best = true)));
        REQUIRE(h != NULL);
        note(&o[eager], (double)eg_history_epochs(h));
        for (int i = 0; eg_history_name(h, i); i++)
            for (int64_t e = 0; e < eg_history_epochs(h); e++)
                note(&o[eager], eg_history_value(h, eg_history_name(h, i), e));
        note_list(&o[eager], eg_layer_weights_list(m));
        CHECK(eg_load_weights(m, pattern));
        note_list(&o[eager], eg_layer_weights_list(m));
        o[eager].replays = eg_model_traced_counts(m).replays;
        CHECK_CONTAINS(eager ? eg_model_traced_reason(m) : ".eager = true", ".eager = true");
        if (!eager) CHECK_STR(eg_model_traced_reason(m), NULL);
        eg_dataset_release(data);
        eg_layer_release(m);
    }
    CHECK(o[0].count > 100 && o[0].replays > 8);
    CHECK_INT(o[0].count, o[1].count);
    CHECK(memcmp(o[0].numbers, o[1].numbers, sizeof o[0].numbers) == 0);
}

// ---- what keeps a fit eager, and what a trace must notice

static eg_layer *first_layer, *norm_layer;        // of the latest small()
static eg_layer *small(void) {
    eg_seed(3);
    first_layer = eg_layer_dense(4, .activation = EG_TANH, .input_shape = EG_SHAPE(FEATURES));
    norm_layer = eg_layer_batch_normalization();
    eg_layer *m = eg_sequential(first_layer, norm_layer, eg_layer_dense(3));
    CHECK(eg_compile(m, eg_adam(), eg_sparse_categorical_crossentropy, EG_METRIC_ACCURACY));
    return m;
}
static eg_tensor *data_x(void) { eg_seed(4); return eg_random_normal(EG_SHAPE(ROWS, FEATURES)); }
static bool counts(eg_fit_state *s, void *user) { (void)s; ++*(int *)user; return true; }
TEST(reasons_to_be_eager) {
    eg_tensor *x = data_x(), *y = labels_for(CLASSES);
    eg_layer *m = small();
    int batches = 0;
    CHECK_STR(eg_model_traced_reason(m), "the model has not been trained yet");
    CHECK_INT(eg_model_traced_counts(m).calls, 0);
    CHECK(eg_fit_arrays(m, x, y, .batch_size = 12, .quiet = true) != NULL);
    CHECK_CONTAINS(eg_model_traced_reason(m), "fewer than 4 batches");
    CHECK(eg_fit_arrays(m, x, y, .batch_size = 6, .epochs = 2, .quiet = true) != NULL);
    CHECK_STR(eg_model_traced_reason(m), NULL);
    const eg_function_info before = eg_model_traced_counts(m);
    CHECK_INT(before.traces, 1);
    CHECK_INT(before.rechecks, 1);
    CHECK_INT(before.replays, 10);
    for (int i = 0; i < 2; i++) {
        eg_callback *mine = eg_callback_new((eg_callback_functions){ .batch_end = counts, .user = &batches });
        CHECK(eg_fit_arrays(m, x, y, .batch_size = 6, .quiet = true, .traced = i == 1,
                            .callbacks = EG_CALLBACKS(mine)) != NULL);
        if (i) CHECK_STR(eg_model_traced_reason(m), NULL);
        else CHECK_CONTAINS(eg_model_traced_reason(m), "a callback of yours runs at each batch");
        CHECK_INT(batches, 6 * (i + 1));
        CHECK_INT(eg_model_traced_counts(m).replays, before.replays + 5 * i);
    }
    CHECK(eg_fit_arrays(m, x, y, .batch_size = 6, .quiet = true,
                        .callbacks = EG_CALLBACKS(eg_callback_stop_on_nan())) != NULL);
    CHECK_STR(eg_model_traced_reason(m), NULL);
    eg_run_functions_eagerly(true);
    CHECK(eg_fit_arrays(m, x, y, .batch_size = 6, .quiet = true) != NULL);
    eg_run_functions_eagerly(false);
    CHECK_CONTAINS(eg_model_traced_reason(m), "eg_run_functions_eagerly");
    CHECK_ERROR(eg_fit_arrays(m, x, y, .quiet = true, .eager = true, .traced = true), EG_ERROR_ARGUMENT,
                "give .eager or .traced, not both");
    eg_layer_release(m);
}
// Freezing, and a schedule of the user's own between epochs.
static bool freezes(eg_fit_state *s, void *user) {
    (void)user;
    if (s->epoch == 1) eg_layer_set_trainable(first_layer, false);
    if (s->epoch == 2) eg_layer_set_trainable(norm_layer, false);
    if (s->epoch == 3) eg_layer_set_trainable(s->model, true);
    return eg_optimizer_set_learning_rate(s->optimizer, .01 / (double)(s->epoch + 1));
}
TEST(changes_between_epochs) {
    eg_tensor *x = data_x(), *y = labels_for(CLASSES);
    eg_list weights[2];
    eg_layer *m[2];
    double loss[2][5];
    for (int eager = 0; eager < 2; eager++) {
        m[eager] = small();
        eg_callback *mine = eg_callback_new((eg_callback_functions){ .epoch_begin = freezes });
        const eg_history *h = eg_fit_arrays(m[eager], x, y, .batch_size = 8, .epochs = 5, .quiet = true,
                                            .eager = eager, .callbacks = EG_CALLBACKS(mine));
        for (int i = 0; i < 5; i++) loss[eager][i] = eg_history_value(h, "loss", i);
        weights[eager] = eg_layer_weights_list(m[eager]);
    }
    CHECK(memcmp(loss[0], loss[1], sizeof loss[0]) == 0);
    for (int i = 0; i < weights[0].count; i++) CHECK_SAME(weights[0].tensors[i], weights[1].tensors[i], 0);
    const eg_function_info info = eg_model_traced_counts(m[0]);
    CHECK_STR(eg_model_traced_reason(m[0]), NULL);
    CHECK(info.retraces >= 3 && info.replays > 8);
    eg_layer_release(m[0]);
    eg_layer_release(m[1]);
}
// A label that is no class, in the last batch of the second fit: message, weights and moving means are the eager
// step's.
static eg_tensor *last_wrong(eg_tensor *y, int epoch) {
    eg_tensor *at = eg_greater_equal(eg_range(EG_INT32, 0, ROWS, 1), epoch ? ROWS - 1 : ROWS);
    return eg_where(at, 7, y);
}
TEST(an_error_in_a_replay_is_that_of_the_step) {
    eg_tensor *x = data_x(), *y = labels_for(CLASSES);
    char message[2][1024];
    eg_layer *m[2];
    eg_list weights[2];
    const int64_t errors = eg_error_count();
    for (int eager = 0; eager < 2; eager++) {
        m[eager] = small();
        for (int epoch = 0; epoch < 2; epoch++)
            if (!eg_fit_arrays(m[eager], x, last_wrong(y, epoch), .batch_size = 6, .epochs = 2, .quiet = true,
                               .eager = eager, .no_shuffle = true))
                snprintf(message[eager], sizeof message[eager], "%s", eg_error_message());
        eg_error_clear();
        weights[eager] = eg_layer_weights_list(m[eager]);
    }
    CHECK_INT(eg_error_count(), errors + 2);
    CHECK_STR(message[0], message[1]);
    CHECK_CONTAINS(message[0], "(epoch 1, batch 6)");
    for (int i = 0; i < weights[0].count; i++) CHECK_SAME(weights[0].tensors[i], weights[1].tensors[i], 0);
    CHECK_NEAR(eg_model_result(m[0], "accuracy"), eg_model_result(m[1], "accuracy"), 0);
    eg_layer_release(m[0]);
    eg_layer_release(m[1]);
}
// Labels and predictions that are refused in the last batch, after replays: of a loss, class weights and metrics.
static eg_tensor *last_as(eg_tensor *y, double value) {
    eg_tensor *rows = eg_greater_equal(eg_range(EG_INT32, 0, ROWS, 1), ROWS - 1);
    return eg_where(eg_rank(y) == 2 ? eg_expand_dims(rows, -1) : rows, value, y);
}
TEST(what_a_step_refuses_is_refused_in_replays) {
    eg_tensor *x = data_x(), *shares = labels_for(SHARES), *classes = labels_for(CLASSES);
    static const char *const said[] = { "is not between 0 and 1",
                                        "EG_CLASS_WEIGHTS gives 2 weights, but label 2 occurs", "takes probabilities" };
    for (int i = 0; i < 3; i++) {
        char message[2][1024] = { "", "" };
        for (int eager = 0; eager < 2; eager++) {
            eg_layer *m = eg_sequential(eg_layer_dense(3, .activation = i == 2 ? EG_LINEAR : EG_DEFAULT_ACTIVATION,
                                                       .kernel_initializer = EG_INIT_IDENTITY));
            eg_seed(5);
            eg_tensor *inputs = i == 2 ? eg_random_uniform(EG_SHAPE(ROWS, 3)) : x;
            eg_tensor *target = i == 1 ? eg_minimum(classes, 1) : shares;
            if (i == 0) CHECK(eg_compile(m, eg_sgd(.learning_rate = 1e-6), eg_binary_crossentropy));
            if (i == 1) CHECK(eg_compile(m, eg_sgd(), eg_sparse_categorical_crossentropy));
            if (i == 2) CHECK(eg_compile(m, eg_sgd(.learning_rate = 1e-6), eg_mean_squared_error, eg_metric_auc()));
            for (int wrong = 0; wrong < 2; wrong++) {
                if (wrong && i < 2) target = last_as(target, i ? 2 : -1);
                if (wrong && i == 2) inputs = last_as(inputs, 3);
                (void)eg_fit_arrays(m, inputs, target, .batch_size = 6, .quiet = true, .eager = eager,
                                    .no_shuffle = true,
                                    .class_weights = i == 1 ? EG_CLASS_WEIGHTS(1, 1) : (eg_class_weights){ 0, NULL });
                if (wrong) snprintf(message[eager], sizeof message[eager], "%s", eg_error_message());
                else if (!eager) CHECK_STR(eg_model_traced_reason(m), NULL);
            }
            eg_error_clear();
            eg_layer_release(m);
        }
        if (test_on_host) CHECK_CONTAINS(message[0], said[i]);           // others find labels later, or do not look
        CHECK_STR(message[0], message[1]);
    }
}

// The metrics that a model is not compiled with, and r2, whose state has the width of the rows that it has seen: rows
// of another width are an error until a reset, and then another list.
typedef struct measured { eg_metric *mean, *sum, *r2; } measured;
static bool measuring_body(eg_tensor *const *in, eg_tensor **out, void *user) {
    const measured *m = (const measured *)user;
    out[0] = eg_reduce_sum(in[0]);
    return eg_metric_add(m->mean, in[0]) && eg_metric_add(m->sum, in[0]) &&
           eg_metric_update(m->r2, in[0], eg_square(in[0])) && out[0];
}
TEST(metrics_of_a_function_of_ones_own) {
    enum { CALLS = 20 };
    double results[2][3 * CALLS];
    for (int traced = 0; traced < 2; traced++) {
        measured m = { eg_metric_mean(), eg_metric_sum(), eg_metric_r2() };
        eg_function *f = eg_function_new(measuring_body, &m);
        eg_run_functions_eagerly(!traced);
        for (int call = 0; call < CALLS; call++) {
            EG_SCOPE;
            const int width = call < CALLS / 2 ? 2 : 1;
            eg_tensor *x = eg_add(eg_zeros(EG_FLOAT32, EG_SHAPE(3, width)),
                                  eg_range(EG_FLOAT32, call, call + width, 1)),
                      *other = eg_ones(EG_FLOAT32, EG_SHAPE(3, 3 - width)), *y;
            if (call == CALLS / 2) CHECK(eg_metric_reset(m.r2));
            CHECK(eg_function_call(f, &x, 1, &y, 1));
            results[traced][3 * call] = eg_metric_result(m.mean);
            results[traced][3 * call + 1] = eg_metric_result(m.sum);
            results[traced][3 * call + 2] = eg_metric_result(m.r2);
            if (call % (CALLS / 2) != 5) continue;
            CHECK_ERROR(eg_function_call(f, &other, 1, &y, 1), EG_ERROR_SHAPE, "r2 has seen rows of");
        }
        if (traced) CHECK(eg_function_counts(f).replays >= 8);
        eg_run_functions_eagerly(false);
        eg_function_release(f);
        eg_metric_release(m.mean);
        eg_metric_release(m.sum);
        eg_metric_release(m.r2);
    }
    CHECK(!memcmp(results[0], results[1], sizeof results[0]));
}
