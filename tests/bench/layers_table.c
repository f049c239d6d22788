// The layers table: normalizations, activations, losses and optimizers, forward and backward with all gradients, beside
// PyTorch.
// `./build.sh bench layers` runs it by way of layers_table.py, which starts this program, and measures both sides in
// turns. To add a row, write a function here, add it to ROWS, and write a method of the same name in layers_table.py.
//     layers_table FOLDER      reads FOLDER/NAME.npy (see INPUTS in layers_table.py), prints the rows, then answers the
//     lines
//         value ROW            writes the results to FOLDER/value0.npy, ..., and prints how many, or "error" and the
//         message
//         time ROW S           runs the row for S seconds, and prints the seconds of one run
//         cpu ROW S            the same, in seconds of the processor, which other programs do not lengthen
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <time.h>

enum { MOST = 24, TENSORS = 12 };

static const char *folder;
static eg_tensor *x, *gx, *gamma_x, *beta_x;                    // (1024, 1024) twice, (1024) twice
static eg_tensor *picture, *gpicture, *gamma_p, *beta_p;        // (32, 32, 32, 64) twice, channels last; (64) twice
// (1024, 1000), the same from 0 to 1, (1024) class numbers, as logits
static eg_tensor *logits, *targets, *labels, *glogits;
// the same shape: probabilities, whose rows sum to 1, twice; targets + 1; -1 and 1
static eg_tensor *shares, *predicted, *targets_from_1, *sides;
static eg_tensor *table, *ids, *gids;                           // (10000, 256), (4096), (4096, 256)
static eg_tensor *photo;                                        // (1, 28, 28, 1)
// (8, 56, 56, 64) twice; (8, 117, 117, 3); (32, 28, 28, 32) and a quarter; (8, 28, 28, 64) twice; (32, 256, 64)
// twice; filters
static eg_tensor *maps, *gmaps, *image, *field, *gfield, *small, *gsmall, *signal, *gsignal;
static eg_tensor *filter_3x3, *filter_1x1, *filter_7x7, *filter_depthwise, *filter_turned, *filter_1d;
// (32, 50, 128) twice, (8, 256, 256) twice; (1, 1000000) twice; (1000, 1000) twice, (1000, 1); batches of matrices
static eg_tensor *steps, *gsteps, *tokens, *gtokens, *long_row, *long_column, *square_a, *square_b, *column;
static eg_tensor *eights_a, *eights_b, *threes_a, *threes_b;
static eg_tensor *variables[TENSORS], *slopes[TENSORS];         // what optimizers change, and its gradients
static eg_optimizer *optimizer;
static eg_layer *layer;
static bool built;                                              // the layer has its weights

static eg_tensor *load(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    return eg_retain(eg_load_npy(path));
}

// out[0] = f(), and behind it the gradients of sources[0..n-1], where g is the gradient of f() (NULL: f() is a number).
static int differentiate(eg_tensor *(*f)(void), eg_tensor *g, eg_tensor **sources, int n, eg_tensor **out) {
    eg_tape *tape = eg_tape_begin();
    for (int i = 0; i < n; i++) eg_tape_watch(tape, sources[i]);
    out[0] = f();
    if (g) eg_tape_gradients_from(tape, out, 1, &g, sources, n, out + 1);
    else eg_tape_gradients(tape, out[0], sources, n, out + 1);
    return n + 1;
}

// ---------------------------------------------------------------- layers

static eg_tensor *call_x(void) { return eg_call(layer, x, .training = true); }
static eg_tensor *call_picture(void) { return eg_call(layer, picture, .training = true); }
// A layer with the weights gamma and beta; its result, and the gradients of its input and weights.
static int normalize(bool of_pictures, eg_tensor **out) {
    eg_tensor *of = of_pictures ? picture : x, *w[4], *sources[3];
    if (!built) {
        built = true;
        eg_layer_build(layer, eg_shape_of(of));
        int n = eg_layer_weights(layer, w, 4);
        for (int i = 0; i < n && i < 2; i++) eg_assign(w[i], of_pictures ? i ? beta_p : gamma_p : i ? beta_x : gamma_x);
    }
    int n = eg_layer_trainable_weights(layer, w, 4);
    sources[0] = of;
    for (int i = 0; i < n; i++) sources[1 + i] = w[i];
    return differentiate(of_pictures ? call_picture : call_x, of_pictures ? gpicture : gx, sources, 1 + n, out);
}
static int layer_norm(eg_tensor **out) {
    if (!layer) layer = eg_layer_layer_normalization(.epsilon = 1e-5);
    return normalize(false, out);
}
static int rms_norm(eg_tensor **out) {
    if (!layer) layer = eg_layer_rms_normalization(.epsilon = 1e-5);
    return normalize(false, out);
}
static int batch_norm(eg_tensor **out) {
    if (!layer) layer = eg_layer_batch_normalization(.epsilon = 1e-5);
    return normalize(true, out);
}
static int group_norm(eg_tensor **out) {
    if (!layer) layer = eg_layer_group_normalization(.groups = 32, .epsilon = 1e-5);
    return normalize(true, out);
}
static int instance_norm(eg_tensor **out) {
    if (!layer) layer = eg_layer_group_normalization(.groups = -1, .epsilon = 1e-5);
    return normalize(true, out);
}
static int dropout(eg_tensor **out) {
    if (!layer) layer = eg_layer_dropout(0.5);
    return differentiate(call_x, gx, &x, 1, out);
}
static eg_tensor *gathered(void) { return eg_gather(table, ids); }
static int embedding(eg_tensor **out) { return differentiate(gathered, gids, &table, 1, out); }
static eg_tensor *pooled(void) { return eg_reduce_sum(eg_square(eg_reduce_mean(picture, .axes = EG_AXES(1, 2)))); }
static int global_pooling(eg_tensor **out) { return differentiate(pooled, NULL, &picture, 1, out); }

// ---------------------------------------------------------------- activations

#define ACTIVATION(name, formula) \
    static eg_tensor *name##_of_x(void) { return formula; } \
    static int name(eg_tensor **out) { return differentiate(name##_of_x, gx, &x, 1, out); }
ACTIVATION(relu, eg_relu(x))
ACTIVATION(gelu, eg_gelu(x))
ACTIVATION(gelu_tanh, eg_gelu_tanh(x))
ACTIVATION(silu, eg_silu(x))
ACTIVATION(softplus, eg_softplus(x))
ACTIVATION(sigmoid, eg_sigmoid(x))
ACTIVATION(tanh_, eg_tanh(x))
ACTIVATION(mish, eg_mish(x))
ACTIVATION(elu, eg_elu(x, 1))
ACTIVATION(selu, eg_selu(x))
ACTIVATION(leaky_relu, eg_leaky_relu(x, 0.01))
ACTIVATION(relu6, eg_relu6(x))
ACTIVATION(hard_sigmoid, eg_hard_sigmoid(x))
ACTIVATION(softsign, eg_softsign(x))
static eg_tensor *softmax_of_logits(void) { return eg_softmax(logits); }
static int softmax(eg_tensor **out) { return differentiate(softmax_of_logits, glogits, &logits, 1, out); }
static eg_tensor *log_softmax_of_logits(void) { return eg_log_softmax(logits); }
static int log_softmax(eg_tensor **out) { return differentiate(log_softmax_of_logits, glogits, &logits, 1, out); }

// ---------------------------------------------------------------- losses

#define LOSS_OF(predictions, name, formula) \
    static eg_tensor *name##_loss(void) { return formula; } \
    static int name(eg_tensor **out) { return differentiate(name##_loss, NULL, predictions, 1, out); }
#define LOSS(name, formula) LOSS_OF(&logits, name, formula)
#define LOSS_OF_SHARES(name, formula) LOSS_OF(&predicted, name, formula)     // of probabilities, or at least positive
LOSS(cross_entropy, eg_sparse_categorical_crossentropy(labels, logits))
LOSS(binary_cross_entropy, eg_binary_crossentropy(targets, logits))
LOSS(mse, eg_mean_squared_error(targets, logits))
LOSS(mae, eg_mean_absolute_error(targets, logits))
LOSS(huber, eg_huber(targets, logits))
LOSS(dense_cross_entropy, eg_categorical_crossentropy(shares, logits))
LOSS_OF_SHARES(binary_cross_entropy_of_shares, eg_binary_crossentropy_from_probabilities(targets, predicted))
LOSS_OF_SHARES(cross_entropy_of_shares, eg_categorical_crossentropy_from_probabilities(shares, predicted))
LOSS_OF_SHARES(sparse_cross_entropy_of_shares,
               eg_sparse_categorical_crossentropy_from_probabilities(labels, predicted))
LOSS_OF_SHARES(binary_focal, eg_binary_focal_crossentropy_from_probabilities(targets, predicted))
LOSS_OF_SHARES(kl_divergence, eg_kl_divergence(shares, predicted))
LOSS_OF_SHARES(poisson, eg_poisson(targets, predicted))
LOSS(log_cosh, eg_log_cosh(targets, logits))
LOSS_OF_SHARES(squared_logarithmic, eg_mean_squared_logarithmic_error(targets, predicted))
LOSS(percentage, eg_mean_absolute_percentage_error(targets_from_1, logits))
LOSS(hinge, eg_hinge(sides, logits))
LOSS(cosine_similarity, eg_cosine_similarity(targets, logits))

// ---------------------------------------------------------------- optimizers

// PyTorch adds its epsilon, 1e-8, to a root that is not yet scaled: in the first step, which is compared, this is the
// same.
#define EPSILON (1e-8 * sqrt(1 - 0.999))

static int update(eg_tensor **out) {
    eg_apply_gradients(optimizer, slopes, variables, TENSORS);
    for (int i = 0; i < TENSORS; i++) out[i] = variables[i];
    return TENSORS;
}
static int begin_update(eg_optimizer *o, eg_tensor **out) {
    char name[16];
    for (int i = 0; i < TENSORS && o; i++) {
        eg_release(variables[i]), eg_release(slopes[i]);
        snprintf(name, sizeof name, "v%d", i);
        eg_tensor *v = load(name);
        variables[i] = eg_variable(v, name);
        eg_release(v);
        snprintf(name, sizeof name, "s%d", i);
        slopes[i] = load(name);
    }
    if (o) optimizer = o;
    return update(out);
}
#define OPTIMIZER(name, make) static int name(eg_tensor **out) { return begin_update(optimizer ? NULL : make, out); }
OPTIMIZER(sgd_momentum, eg_sgd(.learning_rate = 1e-2, .momentum = 0.9))
OPTIMIZER(adam, eg_adam(.learning_rate = 1e-3, .epsilon = EPSILON))
OPTIMIZER(adamw, eg_adamw(.learning_rate = 1e-3, .epsilon = EPSILON, .weight_decay = 0.01))
OPTIMIZER(adagrad, eg_adagrad(.learning_rate = 1e-2, .epsilon = 1e-20))
OPTIMIZER(adadelta, eg_adadelta(.learning_rate = 1, .rho = 0.9, .epsilon = 1e-6))
OPTIMIZER(adamax, eg_adamax(.learning_rate = 2e-3, .epsilon = 1e-8))
OPTIMIZER(rmsprop, eg_rmsprop(.learning_rate = 1e-3, .rho = 0.99, .epsilon = 1e-24))
static int clip_by_global_norm(eg_tensor **out) {
    eg_tensor *scaled[TENSORS];
    if (!slopes[0]) {
        char name[16];
        for (int i = 0; i < TENSORS; i++) { snprintf(name, sizeof name, "s%d", i); slopes[i] = load(name); }
    }
    eg_clip_by_global_norm(slopes, TENSORS, 1, scaled);
    for (int i = 0; i < TENSORS; i++) out[i] = scaled[i];
    return TENSORS;
}

// ---------------------------------------------------------------- products, convolutions, pooling

#define WITH_BOTH(name, formula, a, b, g) \
    static eg_tensor *name##_of_operands(void) { return formula; } \
    static int name(eg_tensor **out) { \
        eg_tensor *sources[] = {a, b}; \
        return differentiate(name##_of_operands, g, sources, 2, out); \
    }
WITH_BOTH(conv_3x3, eg_conv2d(maps, filter_3x3, .padding = EG_SAME), maps, filter_3x3, gmaps)
WITH_BOTH(conv_1x1, eg_conv2d(maps, filter_1x1), maps, filter_1x1, gmaps)
WITH_BOTH(conv_7x7_of_3, eg_conv2d(image, filter_7x7, .strides = {2}), image, filter_7x7, gmaps)
WITH_BOTH(depthwise_3x3, eg_depthwise_conv2d(maps, filter_depthwise, .padding = EG_SAME), maps, filter_depthwise, gmaps)
WITH_BOTH(conv_transpose, eg_conv2d_transpose(small, filter_turned, .strides = {2}, .padding = EG_SAME), small,
          filter_turned, gmaps)
WITH_BOTH(conv_1d, eg_conv1d(signal, filter_1d, .padding = EG_SAME), signal, filter_1d, gsignal)
static eg_tensor *max_pooled(void) { return eg_max_pool2d(field); }
static int max_pool(eg_tensor **out) { return differentiate(max_pooled, gfield, &field, 1, out); }
static eg_tensor *avg_pooled(void) { return eg_avg_pool2d(field); }
static int avg_pool(eg_tensor **out) { return differentiate(avg_pooled, gfield, &field, 1, out); }
#define VALUE(name, formula) static int name(eg_tensor **out) { out[0] = formula; return 1; }
VALUE(dot_1m, eg_matmul(long_row, long_column))
VALUE(dots_of_rows, eg_einsum("ij,ij->i", EG_TENSORS(square_a, square_b)))
VALUE(matvec_1000, eg_matmul(square_a, column))
VALUE(vecmat_1000, eg_matmul(column, square_a, .transpose_a = true))
VALUE(batch_8x8, eg_matmul(eights_a, eights_b))
VALUE(batch_3x3, eg_matmul(threes_a, threes_b))

// ---------------------------------------------------------------- recurrent layers and attention

static eg_tensor *call_steps(void) { return eg_call(layer, steps, .training = true); }
static eg_tensor *call_tokens(void) { return eg_call(layer, tokens, .training = true); }
// Weights, those that are trained, are NAME0.npy, NAME1.npy, ...
static int with_weights(const char *name, eg_tensor *(*call)(void), eg_tensor *of, eg_tensor *g, eg_tensor **out) {
    eg_tensor *w[16], *sources[17];
    int n;
    if (!built) {
        built = true;
        eg_layer_build(layer, eg_shape_of(of));
        n = eg_layer_trainable_weights(layer, w, 16);
        for (int i = 0; i < n; i++) {
            char file[32];
            snprintf(file, sizeof file, "%s%d", name, i);
            eg_tensor *v = load(file);
            eg_assign(w[i], v);
            eg_release(v);
        }
    }
    n = eg_layer_trainable_weights(layer, w, 16);
    sources[0] = of;
    for (int i = 0; i < n; i++) sources[1 + i] = w[i];
    return differentiate(call, g, sources, 1 + n, out);
}
static int lstm(eg_tensor **out) {
    if (!layer) layer = eg_layer_lstm(128, .return_sequences = true);
    return with_weights("lstm", call_steps, steps, gsteps, out);
}
static int gru(eg_tensor **out) {
    if (!layer) layer = eg_layer_gru(128, .return_sequences = true);
    return with_weights("gru", call_steps, steps, gsteps, out);
}
static int attention(eg_tensor **out) {
    if (!layer) layer = eg_layer_multi_head_attention(8, 32);
    return with_weights("attention", call_tokens, tokens, gtokens, out);
}

// A block of ResNet and one of a transformer: a step's forward pass and all gradients.
static eg_tensor *call_small(void) { return eg_call(layer, small, .training = true); }
static int resnet_block(eg_tensor **out) {
    if (!layer)
        layer = eg_sequential(
            eg_layer_residual(eg_sequential(eg_layer_conv2d(64, 3, .padding = EG_SAME, .no_bias = true),
                                            eg_layer_batch_normalization(.epsilon = 1e-5), eg_layer_activation(EG_RELU),
                                            eg_layer_conv2d(64, 3, .padding = EG_SAME, .no_bias = true),
                                            eg_layer_batch_normalization(.epsilon = 1e-5))),
            eg_layer_activation(EG_RELU));
    return with_weights("resnet", call_small, small, gsmall, out);
}
static int transformer_block(eg_tensor **out) {
    if (!layer)
        layer = eg_sequential(
            eg_layer_residual(eg_sequential(eg_layer_layer_normalization(.epsilon = 1e-5),
                                            eg_layer_multi_head_attention(8, 32))),
            eg_layer_residual(eg_sequential(eg_layer_layer_normalization(.epsilon = 1e-5),
                                            eg_layer_dense(1024, .activation = EG_GELU), eg_layer_dense(256))));
    return with_weights("transformer", call_tokens, tokens, gtokens, out);
}

static int inference(eg_tensor **out) {
    if (!layer) {
        eg_tensor *w[8];
        char name[16];
        layer = eg_sequential(eg_layer_conv2d(16, 3, .padding = EG_SAME, .activation = EG_RELU),
                              eg_layer_conv2d(16, 3, .padding = EG_SAME, .activation = EG_RELU),
                              eg_layer_global_average_pooling2d(), eg_layer_dense(10));
        eg_layer_build(layer, eg_shape_of(photo));
        int n = eg_layer_weights(layer, w, 8);
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "w%d", i);
            eg_tensor *v = load(name);
            eg_assign(w[i], v);
            eg_release(v);
        }
    }
    out[0] = eg_call(layer, photo);
    return 1;
}

#define ROWS(ROW) \
    ROW(layer_norm) ROW(batch_norm) ROW(group_norm) ROW(instance_norm) ROW(rms_norm) ROW(softmax) ROW(log_softmax) \
    ROW(cross_entropy) \
    ROW(binary_cross_entropy) ROW(mse) ROW(mae) ROW(huber) ROW(dense_cross_entropy) \
    ROW(binary_cross_entropy_of_shares) ROW(cross_entropy_of_shares) ROW(sparse_cross_entropy_of_shares) \
    ROW(binary_focal) ROW(kl_divergence) ROW(poisson) ROW(log_cosh) ROW(squared_logarithmic) ROW(percentage) \
    ROW(hinge) ROW(cosine_similarity) ROW(gelu) ROW(gelu_tanh) ROW(silu) ROW(softplus) \
    ROW(sigmoid) ROW(tanh_) ROW(mish) ROW(elu) ROW(selu) ROW(leaky_relu) ROW(relu6) ROW(hard_sigmoid) ROW(softsign) \
    ROW(relu) \
    ROW(dropout) ROW(embedding) ROW(global_pooling) ROW(sgd_momentum) ROW(adam) ROW(adamw) ROW(adagrad) \
    ROW(adadelta) ROW(adamax) ROW(rmsprop) \
    ROW(clip_by_global_norm) ROW(inference) \
    ROW(conv_3x3) ROW(conv_1x1) ROW(conv_7x7_of_3) ROW(depthwise_3x3) ROW(conv_transpose) ROW(conv_1d) ROW(max_pool) \
    ROW(avg_pool) ROW(dot_1m) ROW(dots_of_rows) ROW(matvec_1000) ROW(vecmat_1000) ROW(batch_8x8) ROW(batch_3x3) \
    ROW(lstm) ROW(gru) ROW(attention) ROW(resnet_block) ROW(transformer_block)
#define LINE(name) {#name, name},
static const struct { const char *name; int (*run)(eg_tensor **out); } rows[] = { ROWS(LINE) };
enum { COUNT = sizeof rows / sizeof *rows };

static bool of_processor;
static double now(void) {
    struct timespec t;
    if (of_processor) return (double)clock() / CLOCKS_PER_SEC;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
// Writes what the row makes in its first run.
static int write_values(int r) {
    EG_SCOPE;
    eg_tensor *out[MOST];
    char path[4096];
    int n = rows[r].run(out);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/value%d.npy", folder, i);
        if (!eg_save_npy(out[i], path)) return -1;
    }
    return n;
}

int main(int argc, char **argv) {
    char line[256], what[16];
    int r, last = -1;
    if (argc != 2) return 2;
    folder = argv[1];
    const struct { const char *name; eg_tensor **to; } operands[] = {
        {"x", &x}, {"gx", &gx}, {"gamma_x", &gamma_x}, {"beta_x", &beta_x}, {"picture", &picture},
        {"gpicture", &gpicture}, {"gamma_p", &gamma_p},
        {"beta_p", &beta_p}, {"logits", &logits}, {"targets", &targets}, {"labels", &labels}, {"glogits", &glogits},
        {"table", &table}, {"ids", &ids},
        {"gids", &gids}, {"photo", &photo}, {"shares", &shares}, {"predicted", &predicted},
        {"targets_from_1", &targets_from_1}, {"sides", &sides}, {"maps", &maps}, {"gmaps", &gmaps}, {"image", &image},
        {"field", &field}, {"gfield", &gfield}, {"small", &small}, {"gsmall", &gsmall}, {"signal", &signal},
        {"gsignal", &gsignal},
        {"filter_3x3", &filter_3x3}, {"filter_1x1", &filter_1x1}, {"filter_7x7", &filter_7x7},
        {"filter_depthwise", &filter_depthwise}, {"filter_turned", &filter_turned}, {"filter_1d", &filter_1d},
        {"steps", &steps}, {"gsteps", &gsteps}, {"tokens", &tokens}, {"gtokens", &gtokens}, {"long_row", &long_row},
        {"long_column", &long_column}, {"square_a", &square_a}, {"square_b", &square_b}, {"column", &column},
        {"eights_a", &eights_a}, {"eights_b", &eights_b}, {"threes_a", &threes_a}, {"threes_b", &threes_b}};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) *operands[i].to = load(operands[i].name);
    for (int i = 0; i < COUNT; i++) printf("%s\n", rows[i].name);
    printf("\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        double seconds = 0;
        if (sscanf(line, "%15s %d %lf", what, &r, &seconds) < 2 || r < 0 || r >= COUNT) return 2;
        if (r != last) {
            eg_layer_release(layer), eg_optimizer_release(optimizer);
            layer = NULL, optimizer = NULL, built = false;
        }
        last = r;
        if (!strcmp(what, "value")) {
            int n = write_values(r);
            if (n >= 0) printf("%d\n", n);
            else printf("error %s\n", eg_error_message());
            eg_error_clear();
        } else {
            int64_t runs = 0;
            of_processor = !strcmp(what, "cpu");
            double start = now(), end = start;
            for (; runs < 2 || end < start + seconds; end = now(), runs++) {
                EG_SCOPE;
                eg_tensor *out[MOST];
                rows[r].run(out);
            }
            printf("%.9g\n", (end - start) / (double)runs);
        }
        fflush(stdout);
    }
    return 0;
}
