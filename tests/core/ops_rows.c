// What only the inside of the library shows, in a copy of it: the op table, row by row, and what each promises (the
// gradient tests, tests/core/ops.c, and the declarations, eager.h, are read as text); the portable matrix kernels,
// which the processor's own hide in the other tests; the random generator's known answers.
#undef EAGER_CUDA
#undef TEST_CUDA                     // the GPUs belong to the library, not to this copy
#define EGI_X86 0
#define EAGER_STATIC
#define EAGER_IMPLEMENTATION
#include "test.h"

static char *text_of(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    static char *text;
    size_t size = 0, room = (size_t)1 << 21;
    free(text);
    text = (char *)malloc(room);
    if (text) size = fread(text, 1, room - 1, f);
    if (text) text[size] = 0;
    fclose(f);
    return text;
}

// Rows that only other functions run: the function that is declared instead, and, where tests/core/ops.c does not hold
// the gradient against differences under the row's name, the test that does.
typedef struct inner_row { int number; const char *function, *file, *test; } inner_row;
static const inner_row *inner(const egi_op *op) {
    static const inner_row all[] = {
        { EGI_OP_scatter_add, "segment_sum", NULL, NULL },
        { EGI_OP_conv2d_input, "conv2d_transpose", NULL, NULL },
        { EGI_OP_conv2d_filter, "conv2d", NULL, NULL },
        { EGI_OP_max_pool_index, "max_pool2d", NULL, NULL },
        { EGI_OP_avg_pool2d_grad, "avg_pool2d", NULL, NULL },
        { EGI_OP_dense, "layer_dense", "tests/gpu/cuda.c", "cuda_dense" },
        { EGI_OP_dense_relu, "layer_dense", "tests/gpu/cuda.c", "cuda_dense" },
        { EGI_OP_to, "to", "tests/core/tensors.c", "two_devices" },
        { EGI_OP_custom_gradient, "custom_gradient", "tests/core/tape.c", "log1pexp_naive_and_custom" },
        { EGI_OP_normalize, "layer_batch_normalization", "tests/training/rows.c",
          "normalizations_against_differences" },
        { EGI_OP_layer_norm, "layer_layer_normalization", "tests/gpu/cuda.c", "cuda_layer_norm" },
        { EGI_OP_attention, "layer_multi_head_attention", "tests/training/attention.c", "against_differences" },
        { EGI_OP_attention_draw, "layer_multi_head_attention", NULL, NULL },
        { EGI_OP_attention_kept, "layer_multi_head_attention", NULL, NULL },
        { EGI_OP_simple_rnn, "layer_simple_rnn", "tests/training/rnn.c", "as_one_against_differences" },
        { EGI_OP_lstm, "layer_lstm", "tests/training/rnn.c", "as_one_against_differences" },
        { EGI_OP_gru, "layer_gru", "tests/training/rnn.c", "as_one_against_differences" } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) if (all[i].number == op->number) return &all[i];
    return NULL;
}
TEST(every_row_is_declared) {
    const char *text = text_of("eager.h");
    if (!text) SKIP("not run in the folder of eager.h");
    const char *end = strstr(text, "//# 16 ");
    for (int i = 0; i < (int)EGI_OPS; i++) {
        const egi_op *op = egi_op_row(i);
        char declaration[96];
        snprintf(declaration, sizeof declaration, " *eg_%s(", inner(op) ? inner(op)->function : op->name);
        const char *at = strstr(text, declaration);
        CHECK(at && at < end);
        if (!at || at >= end) printf("    eg_%s\n", op->name);
    }
}
TEST(every_differentiable_row_has_a_gradient_test) {
    for (int i = 0; i < (int)EGI_OPS; i++) {
        const egi_op *op = egi_op_row(i);
        const inner_row *row = inner(op);
        if (op->flags & EGI_NOT_DIFFERENTIABLE) continue;
        const char *text = text_of(row && row->file ? row->file : "tests/core/ops.c");
        if (!text) SKIP("not run in the folder above tests");
        char elementwise[80], other[80];
        snprintf(elementwise, sizeof elementwise, "    ROW%d(%s,", op->n_in, op->name);
        snprintf(other, sizeof other, row && row->test ? "TEST(%s) {" : "    G(%s, 1,",
                 row && row->test ? row->test : op->name);
        bool tested = strstr(text, elementwise) || strstr(text, other);
        CHECK(tested);
        if (!tested) printf("    eg_%s\n", op->name);
    }
}
TEST(a_row_is_differentiable_or_says_that_it_is_not) {
    for (int i = 0; i < (int)EGI_OPS; i++) {
        const egi_op *op = egi_op_row(i);
        CHECK((op->grad == NULL) == ((op->flags & EGI_NOT_DIFFERENTIABLE) != 0));
        CHECK(!(op->flags & EGI_TO_BOOL) || op->flags & EGI_NOT_DIFFERENTIABLE);
        if (i >= (int)EGI_ELEMENTWISE_OPS) CHECK(op->shape && (op->run || op->flags & EGI_USER));
        for (int k = 0; k <= op->n_in && i < (int)EGI_ELEMENTWISE_OPS && (k == 0 || op->grad); k++)
            CHECK(op->formula[k].words != NULL);
        if (test_fails) { printf("    eg_%s\n", op->name); return; }
    }
}
// What a row says of its attributes lies inside of them, under names that differ.
TEST(attributes_of_all_rows_are_told) {
    for (int i = 0; i < (int)EGI_OPS; i++) {
        const egi_op *op = egi_op_row(i);
        const egi_attribute *fields = egi_attributes_of(op)->fields;
        // A row says so where it has none, or has what nobody else may write: handles, a user's functions.
        CHECK(fields || op->flags & (EGI_USER | EGI_OF_DEVICES) || op->number == EGI_OP_attention_kept);
        if (i < (int)EGI_ELEMENTWISE_OPS) CHECK(!fields->kind);
        for (const egi_attribute *a = fields; a && a->kind; a++) {
            const size_t size = a->kind == 's' ? sizeof(eg_shape) : a->kind == 'i' ? sizeof(int)
                                : a->kind == 'b' ? 1 : 8;
            CHECK(strchr("ibdls", a->kind) && a->name && a->count >= 0);
            CHECK(a->offset + size * (size_t)(a->count ? a->count : EG_MAX_RANK) <= op->attr_size);
            for (const egi_attribute *b = fields; b < a; b++) CHECK(strcmp(a->name, b->name));
        }
        if (test_fails) { printf("    eg_%s\n", op->name); return; }
    }
}
// A formula's words leave one value, wait no deeper and make no more nodes than the arrays hold that walk it, and read
// no operand that the row lacks.
static int formula_depth(const egi_formula *formula, int *deepest) {
    int depth = 0;
    for (int i = 0; formula->words && formula->words[i]; i++) {
        const egi_word *w = formula->words[i];
        if (depth < w->arity) return -1;
        depth += 1 - w->arity;
        if (depth > *deepest) *deepest = depth;
        if (w->code != EGI_WORD_k && formula->values[i] != 0) return -1;
    }
    return depth;
}
TEST(formulas_of_all_rows_are_whole) {
    int most = 0, deepest = 0;
    for (int i = 0; i < (int)EGI_ELEMENTWISE_OPS; i++) {
        const egi_op *op = egi_op_row(i);
        CHECK_INT(op->number, i);
        for (int k = 0; k < 4; k++) {
            const egi_formula *formula = &op->formula[k];
            CHECK((formula->words != NULL) == (k == 0 || (op->grad && k <= op->n_in)));
            if (!formula->words || !formula->words[0]) continue;             // where's condition has no gradient
            CHECK_INT(formula_depth(formula, &deepest), 1);
            for (int j = 0; formula->words[j]; j++) {
                const int code = formula->words[j]->code;
                CHECK(code > EGI_WORD_g || code < op->n_in || (k > 0 && code >= EGI_WORD_y));
            }
            egi_node nodes[256];
            int n = egi_formula_nodes(formula, nodes);
            if (n > most) most = n;
        }
        if (test_fails) { printf("    eg_%s\n", op->name); return; }
    }
    CHECK(most <= EGI_FORMULA_MOST && deepest <= EGI_FORMULA_DEPTH);
}
// The data of a formula, computed word by word in float64, against the same formula as the compiler reads it from the
// table: all rows, gradients and constants, to the last bit.
#define WORD1(w, ...) case EGI_WORD##w: return egi_f64##w(x[0]);
#define WORD2(w, ...) case EGI_WORD##w: return egi_f64##w(x[0], x[1]);
#define WORD3(w, ...) case EGI_WORD##w: return egi_f64##w(x[0], x[1], x[2]);
#define egi_f64_and(a, b) ((a) != 0 && (b) != 0)         // conditions are numbers here
#define egi_f64_or(a, b) ((a) != 0 || (b) != 0)
#define egi_f64_not(a) ((a) == 0)
#define egi_f64_select(condition, a, b) ((condition) != 0 ? (a) : (b))
static double word_of(int code, const double *x) {
    switch (code) { EGI_WORD_TABLE(WORD1, WORD2, WORD3) default: return NAN; }
}
static double computed_from_data(const egi_formula *formula, const double *operands) {
    egi_node nodes[EGI_FORMULA_MOST];
    double value[EGI_FORMULA_MOST] = { 0 };
    const int n = egi_formula_nodes(formula, nodes);
    for (int i = 0; i < n; i++) {
        double x[3] = { 0, 0, 0 };
        for (int j = 0; j < nodes[i].word->arity; j++) x[j] = value[nodes[i].x[j]];
        value[i] = nodes[i].word->code <= EGI_WORD_g ? operands[nodes[i].word->code]
                   : nodes[i].word->code == EGI_WORD_k ? nodes[i].number
                   : word_of(nodes[i].word->code, x);
    }
    return n ? value[n - 1] : 0;                         // no gradient: egi_f64_none
}
typedef double compiled_formula(double a, double b, double c, double y, double g);
#define COMPILED(i, name, ...) \
    static double compiled##i##_##name(double a, double b, double c, double y, double g) { \
        (void)a; \
        (void)b; \
        (void)c; \
        (void)y; \
        (void)g; \
        return __VA_ARGS__; \
    }
#define COMPILED1(kind, name, f, d0) COMPILED(0, name, f) COMPILED(1, name, d0)
#define COMPILED_ND(kind, name, f) COMPILED(0, name, f)
#define COMPILED2(kind, name, f, d0, d1) COMPILED1(kind, name, f, d0) COMPILED(2, name, d1)
#define COMPILED3(kind, name, f, d0, d1, d2) COMPILED2(kind, name, f, d0, d1) COMPILED(3, name, d2)
#define EGI_V egi_f64
EGI_ELEMENTWISE_TABLE(COMPILED1, COMPILED_ND, COMPILED2, COMPILED_ND, COMPILED3, a, b, c, y, g)
#undef EGI_V
#undef egi_f64_and
#undef egi_f64_or
#undef egi_f64_not
#undef egi_f64_select
#define LISTED1(kind, name, f, d0) { compiled0_##name, compiled1_##name, NULL, NULL },
#define LISTED_ND(kind, name, f) { compiled0_##name, NULL, NULL, NULL },
#define LISTED2(kind, name, f, d0, d1) { compiled0_##name, compiled1_##name, compiled2_##name, NULL },
#define LISTED3(kind, name, f, d0, d1, d2) { compiled0_##name, compiled1_##name, compiled2_##name, compiled3_##name },
static compiled_formula *const compiled[][4] = { EGI_ELEMENTWISE_TABLE(LISTED1, LISTED_ND, LISTED2, LISTED_ND, LISTED3,
                                                                       a, b, c, y, g) };
TEST(formulas_as_data_compute_what_they_say) {
    static const double special[] = { 0, -0.0, 1, -1, 0.5, -0.75, 3, -7, 40, 1e-40, 1e300, -1e300, INFINITY, -INFINITY,
                                      NAN, 2.5 };
    enum { SPECIAL = (int)(sizeof special / sizeof *special) };
    int formulas = 0;
    for (int i = 0; i < (int)EGI_ELEMENTWISE_OPS; i++)
        for (int k = 0; k < 4 && compiled[i][k]; k++, formulas++)
            for (int j = 0; j < 400; j++) {
                double x[5];
                for (int l = 0; l < 5; l++) x[l] = special[(uint32_t)(j * 5 + l + 1) * 2654435761u >> 28];
                if (egi_op_row(i)->flags & EGI_BOOL_FIRST || egi_op_row(i)->dtypes == EGI_DTYPES_B) {
                    x[0] = x[0] > 0;
                    x[1] = egi_op_row(i)->n_in == 2 ? x[1] > 0 : x[1];
                }
                const double got = computed_from_data(&egi_op_row(i)->formula[k], x),
                             want = compiled[i][k](x[0], x[1], x[2], x[3], x[4]);
                bool same = memcmp(&got, &want, sizeof got) == 0 || (got != got && want != want);
                CHECK(same);
                if (!same) {
                    printf("    eg_%s, formula %d: %g instead of %g of %g %g %g %g %g\n", egi_op_row(i)->name, k, got,
                           want, x[0], x[1], x[2], x[3], x[4]);
                    return;
                }
            }
    CHECK(formulas > 120);
}
TEST(a_formulas_words_and_constants) {
    static const char *const words[] = { "g", "k", "y", "y", "mul", "sub", "mul" };
    const egi_formula *formula = &egi_op_tanh.formula[1];
    int n = 0;
    for (; formula->words[n]; n++) {
        CHECK_STR(formula->words[n]->name, words[n]);
        CHECK_NEAR(formula->values[n], n == 1, 0);
    }
    CHECK_INT(n, 7);
    egi_node nodes[EGI_FORMULA_MOST];
    // tanh(softplus(a)) stands in it twice, and is one node
    CHECK_INT(egi_formula_nodes(&egi_op_mish.formula[1], nodes), 12);
    CHECK_STR(nodes[11].word->name, "mul");
    CHECK_INT(egi_formula_nodes(&egi_op_where.formula[1], nodes), 0);
    CHECK_INT(egi_row_reads(&egi_op_tanh, 0), EGI_USES_Y | EGI_USES_G);
    CHECK_INT(egi_row_reads(&egi_op_add, 1), EGI_USES_G);
    CHECK_INT(egi_row_reads(&egi_op_where, 0), 0);
    CHECK_INT(egi_row_reads(&egi_op_clip_by_value, 2), EGI_USES_A | EGI_USES_B | EGI_USES_C | EGI_USES_G);
}
static bool never(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)in, (void)out, (void)c, (void)user;
    return false;
}
TEST(rows_are_numbered_and_their_names_unique) {
    for (int i = 0; i < (int)EGI_OPS; i++) CHECK_INT(egi_op_row(i)->number, i);
    for (int i = 0; i < (int)EGI_OPS; i++)
        for (int j = 0; j < i; j++) CHECK(strcmp(egi_op_row(i)->name, egi_op_row(j)->name) != 0);
}
TEST(no_ops_name_can_be_registered_again) {
    eg_op_definition d;
    memset(&d, 0, sizeof d);
    d.n_inputs = d.n_outputs = 1;
    d.forward = never;
    for (int i = 0; i < (int)EGI_OPS; i++) {
        d.name = egi_op_row(i)->name;
        CHECK_ERROR(CHECK_INT(eg_op_register(&d), -1), EG_ERROR_ARGUMENT, "already");
    }
}
TEST(portable_matrix_kernels) {
    const int64_t mkn[][3] = { { 6, 5, 16 }, { 7, 33, 31 }, { 13, 300, 40 }, { 14, 40, 120 }, { 1, 70, 50 },
                               { 50, 70, 1 }, { 101, 20, 70 } };
    for (int k = 0; k < 7 * 8; k++) {
        EG_SCOPE;
        bool ta = k & 1, tb = k & 2;
        int64_t m = mkn[k / 8][0], n = mkn[k / 8][2], inner = mkn[k / 8][1];
        eg_dtype dtype = k & 4 ? EG_FLOAT64 : EG_FLOAT32;
        eg_tensor *a = eg_random_normal(EG_SHAPE(m, inner), .dtype = dtype),
                  *b = eg_random_normal(EG_SHAPE(inner, n), .dtype = dtype);
        const double *u = (const double *)eg_data(eg_cast(a, EG_FLOAT64)),
                     *v = (const double *)eg_data(eg_cast(b, EG_FLOAT64));
        double *want = (double *)calloc((size_t)(m * n), sizeof *want);
        for (int64_t i = 0; i < m; i++)
            for (int64_t p = 0; p < inner; p++)
                for (int64_t j = 0; j < n; j++) want[i * n + j] += u[i * inner + p] * v[p * n + j];
        // as they lie in memory, then as their flags say
        eg_tensor *x = ta ? eg_transpose(a) : a, *y = tb ? eg_transpose(b) : b;
        x = eg_from_data(dtype, eg_shape_of(x), eg_data(x));
        y = eg_from_data(dtype, eg_shape_of(y), eg_data(y));
        CHECK_VALUES(eg_matmul(x, y, .transpose_a = ta, .transpose_b = tb), k & 4 ? 1e-12 : 1e-4, want, m * n);
        free(want);
    }
}
// The answers that the generator's authors publish (Random123, kat_vectors); most need counters that only the inside
// can be given.
TEST(the_generators_known_answers) {
    static const uint32_t rows[3][10] = {                    // counter, key, answer
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
         0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
        0x24126ea1}};
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        egi_philox(out, rows[i], rows[i] + 4);
        for (int k = 0; k < 4; k++) CHECK_INT(out[k], rows[i][6 + k]);
    }
}

// A draw of any length, from any element on, has the numbers of its blocks, one after another.
TEST(draws_are_their_blocks) {
    enum { MOST = 300 };
    const egi_random r = { 0xfedcba9876543210u, 0xfffffffffffffff0u };      // the counter wraps around within the draw
    for (int64_t first = 0; first < 140; first += 1 + first / 3)
        for (int64_t n = 1; n <= MOST; n += n < 40 ? 1 : 41) {
            float u[MOST], z[MOST];
            double v[MOST];
            int64_t i_of[MOST];
            unsigned char b[MOST];
            bool right = true;
            egi_random_uniform_f32(u, first, n, r, 0, 1);
            egi_random_uniform_f64(v, first, n, r, 0, 1);
            egi_random_normal_f32(z, first, n, r, 0, 1, 2);
            egi_random_bernoulli(b, first, n, r, 0.5);
            egi_random_int64(i_of, first, n, r, INT64_MIN, INT64_MAX);
            for (int64_t i = 0; i < n; i++) {
                uint32_t four[4], two[4];
                float one[4];
                const uint64_t at = (uint64_t)(first + i);
                egi_random_block(four, r, at / 4, 0);
                egi_random_block(two, r, at / 2, 0);
                egi_random_normal_f32(one, (first + i) / 4 * 4, 4, r, 0, 1, 2);
                right = right && u[i] == (float)(four[at % 4] >> 8) / 16777216.0f && z[i] == one[at % 4] &&
                        b[i] == (four[at % 4] < 0x80000000u) &&
                        v[i] == (double)(egi_random_word64(two, (int)(at % 2)) >> 11) / 9007199254740992.0 &&
                        i_of[i] == (int64_t)((uint64_t)INT64_MIN +
                                             egi_random_below(r, at / 2, (int)(at % 2),
                                                              egi_random_word64(two, (int)(at % 2)), UINT64_MAX));
            }
            if (!right) printf("    elements %d to %d\n", (int)first, (int)(first + n));
            CHECK(right);
        }
}

// Options: every field of every table, set below its range, above it, to NaN and to nothing, in every function that
// takes the struct. Each error is one of two sentences, which name the function, the field and the value.
static bool make_optimizer(int i, const void *o) {
    static eg_optimizer *(*const all[])(eg_optimizer_options) = {
        eg_sgd, eg_rmsprop, eg_adam, eg_adamw, eg_adagrad, eg_adadelta, eg_adamax, eg_nadam, eg_ftrl, eg_lion
    };
    eg_optimizer *made = all[i](*(const eg_optimizer_options *)o);
    eg_optimizer_release(made);
    return made != NULL;
}
static bool make_metric(int i, const void *o) {
    static eg_metric *(*const all[])(eg_metric_options) = {
        eg_metric_mean, eg_metric_binary_accuracy, eg_metric_top_k, eg_metric_auc, eg_metric_mean_iou
    };
    eg_metric_options options = *(const eg_metric_options *)o;
    if (i == 4 && !options.classes) options.classes = 2;
    eg_metric *made = all[i](options);
    eg_metric_release(made);
    return made != NULL;
}
static double learning_rate(int64_t epoch, double rate, void *user) { (void)epoch; (void)user; return rate; }
static bool make_callback(int i, const void *o) {
    static eg_callback *(*const all[])(eg_callback_options) = {
        eg_callback_early_stopping, eg_callback_plateau, eg_callback_learning_rate
    };
    static eg_callback *(*const of_files[])(const char *, eg_callback_options) = {
        eg_callback_checkpoint, eg_callback_csv, eg_callback_backup
    };
    eg_callback_options options = *(const eg_callback_options *)o;
    if (i == 2 && !options.rate) options.rate = learning_rate;
    eg_callback *made = i < 3 ? all[i](options) : of_files[i - 3]("x", options);
    eg_callback_release(made);
    return made != NULL;
}
#define LOSS(name, labels, options) { eg_##name, labels },
static const struct { eg_loss *mean; int labels; } losses[] = { EGI_LOSSES(LOSS) };
static bool take_loss(int i, const void *o) {
    eg_tensor *y = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), *labels = y;
    if (losses[i].labels == EGI_SPARSE) labels = eg_zeros(EG_INT32, EG_SHAPE(2));
    return (eg_loss_mean)(losses[i].mean, labels, y, *(const eg_loss_options *)o) != NULL;
}
static bool make_layer(int i, const void *o) {
    egi_layer_config c = *(const egi_layer_config *)o;
    uint64_t has = egi_layer_types[i]->has;              // what the layer cannot be without gets a value
    uint64_t sizes = EGI_HAS(size) | EGI_HAS(window) | EGI_HAS(steps) | EGI_HAS(key_dim);
    if (has & (EGI_HAS(units) | EGI_HAS(filters) | EGI_HAS(heads)) && !c.units) c.units = 4;
    if (has & sizes && !c.size && !c.o.kernel_size[0] && !c.o.kernel_size[1]) c.size = 2;
    if (has & (EGI_HAS(count) | EGI_HAS(longest)) && !c.count) c.count = 3;
    if (has & EGI_HAS(pads) && !c.pads.count) c.pads.count = 1;
    eg_layer *made = egi_layer_make(egi_layer_types[i], &c);
    eg_layer_release(made);
    return made != NULL;
}
static bool all_pass(eg_tensor *const *in, eg_tensor **out, void *user) { (void)user; out[0] = in[0]; return true; }
static eg_dataset *numbers(void) { return eg_dataset_range(0, 2, 1); }
static eg_dataset *count_again(eg_tensor *const *in, void *user) { (void)in; (void)user; return numbers(); }
static bool made(eg_dataset *d) { eg_dataset_release(d); return d != NULL; }
static bool make_map(int i, const void *o) {
    (void)i;
    return made((eg_dataset_map)(numbers(), all_pass, NULL, *(const eg_map_options *)o));
}
static bool make_interleave(int i, const void *o) {
    (void)i;
    return made((eg_dataset_interleave)(numbers(), count_again, NULL, *(const eg_interleave_options *)o));
}
static bool make_batch(int i, const void *o) {
    return made((i ? eg_dataset_padded_batch : eg_dataset_batch)(numbers(), 2, *(const eg_batch_options *)o));
}
static bool take_fit(int i, const void *o) {
    eg_fit_options copy = *(const eg_fit_options *)o;
    return egi_fit_options(i ? "fit_arrays" : "fit", &copy);
}
static bool take_evaluate(int i, const void *o) {
    eg_evaluate_options copy = *(const eg_evaluate_options *)o;
    (void)i;
    return egi_evaluate_options("evaluate", "steps = 1", &copy);
}
static bool make_checkpoint(int i, const void *o) {
    (void)i;
    eg_checkpoint *c = (eg_checkpoint_new)(*(const eg_checkpoint_options *)o);
    eg_checkpoint_release(c);
    return c != NULL;
}
static bool take_summary(int i, const void *o) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 2, 2, 1));
    return (i ? (eg_summary_image) : (eg_summary_histogram))("x", x, *(const eg_summary_options *)o);
}
// Sets each number of the field to v; false where the field cannot be v.
static bool set_field(const egi_field *f, void *options, double v) {
    void *p = (char *)options + f->offset;
    int64_t *list = (int64_t *)p;
    int word = (int)v;
    bool fits = f->kind == EGI_FIELD_NUMBER || fabs(v) < (f->kind > EGI_FIELD_WORD ? 1e15 : 2e9);
    if (f->kind == EGI_FIELD_OTHER || f->kind == EGI_FIELD_BOOL || !fits) return false;
    if (f->kind == EGI_FIELD_SHAPE) list = ((eg_shape *)p)->dims;
    if (f->kind == EGI_FIELD_PADS) list = ((eg_pads *)p)->pads;
    if (f->kind == EGI_FIELD_WORD) memcpy(p, &word, sizeof word);
    else if (f->kind < EGI_FIELD_PAIR) egi_field_set(f, options, v == 0 ? EG_ZERO : v);
    else {
        if (f->kind == EGI_FIELD_SHAPE) ((eg_shape *)p)->rank = 1;
        if (f->kind == EGI_FIELD_PADS) ((eg_pads *)p)->count = 1;
        list[0] = v == 0 ? EG_ZERO : (int64_t)v;
    }
    return true;
}
// The two sentences; true for the one about the range.
static bool check_said(const egi_field *f, double v, const char *what) {
    const char *said = eg_error_message();
    char name[80], value[48], lacks[80];
    snprintf(name, sizeof name, ": %s%s is ", f->role & EGI_ARGUMENT ? "" : ".", f->name);
    if (f->kind == EGI_FIELD_NUMBER) snprintf(value, sizeof value, "%g; it must be ", v);
    else if (f->kind > EGI_FIELD_WORD) snprintf(value, sizeof value, "{%.0f}; each number must be ", v);
    else if (f->words && f->words->number) snprintf(value, sizeof value, "another function; it must be ");
    else snprintf(value, sizeof value, "%.0f; it must be ", v);
    snprintf(lacks, sizeof lacks, ": has no option .%s", f->name);
    bool argument = eg_error() == EG_ERROR_ARGUMENT && !strncmp(said, "eg_", 3);
    bool range = argument && strstr(said, name) && strstr(said, value), lack = argument && strstr(said, lacks);
    bool other = f->words && !strcmp(f->name, "dtype") && eg_error() == EG_ERROR_DTYPE;      // has a code of its own
    if (!range && !lack && !other) {
        char text[900];
        snprintf(text, sizeof text, "%s of .%s = %g says: %s", what, f->name, v, said);
        test_say(__FILE__, __LINE__, f->name, text);
    }
    eg_error_clear();
    return range || other;
}
typedef struct sweep {
    const char *what;
    const egi_fields *table;
    size_t size;
    int functions;
    bool (*call)(int i, const void *o);
} sweep;
// Layers have several rows for what stands before the options: one that a layer lacks may be there by another name.
static bool is_told_elsewhere(const sweep *s, int i, int field) {
    bool elsewhere = false;
    const egi_field *rows = s->table->rows;
    for (int f = 0; f < s->table->count; f++)
        elsewhere = elsewhere || (f != field && rows[f].offset == rows[field].offset);
    return elsewhere && !(egi_layer_types[i]->has & EGI_BIT(field));
}
static void sweep_field(const sweep *s, int field) {
    const egi_field *f = &s->table->rows[field];
    double values[] = { f->ends & EGI_OPEN_LOW ? f->low : f->low - 1, f->ends & EGI_OPEN_HIGH ? f->high : f->high + 1,
                        (double)NAN };
    if (f->words) { values[0] = -1; values[1] = f->words->count; }
    egi_layer_config room;                               // the largest of the structs
    bool answered[3] = { false, false, false };
    REQUIRE(s->size <= sizeof room);
    for (int i = 0; i < s->functions; i++)
        for (int k = 0; k < 3 && !is_told_elsewhere(s, i, field); k++) {
            memset(&room, 0, sizeof room);
            if (!set_field(f, &room, values[k])) { answered[k] = true; continue; }
            if (s->call(i, &room)) test_say(__FILE__, __LINE__, f->name, "a value out of the range is taken");
            else if (check_said(f, values[k], s->what)) answered[k] = true;
        }
    for (int k = 0; k < 3; k++) if (!answered[k]) test_say(__FILE__, __LINE__, f->name, "no function tells the range");
}
TEST(options_out_of_their_ranges) {
    int layers = 0;
    while (egi_layer_types[layers]) layers++;
    const sweep all[] = {
        { "an optimizer", &egi_optimizer_fields, sizeof(eg_optimizer_options), 10, make_optimizer },
        { "a metric", &egi_metric_fields, sizeof(eg_metric_options), 5, make_metric },
        { "a loss", &egi_loss_fields, sizeof(eg_loss_options), (int)(sizeof losses / sizeof *losses), take_loss },
        { "a callback", &egi_callback_fields, sizeof(eg_callback_options), 6, make_callback },
        { "a layer", &egi_layer_fields, sizeof(egi_layer_config), layers, make_layer },
        { "map", &egi_map_fields, sizeof(eg_map_options), 1, make_map },
        { "interleave", &egi_interleave_fields, sizeof(eg_interleave_options), 1, make_interleave },
        { "batch", &egi_batch_fields, sizeof(eg_batch_options), 2, make_batch },
        { "fit", &egi_fit_fields, sizeof(eg_fit_options), 2, take_fit },
        { "evaluate", &egi_evaluate_fields, sizeof(eg_evaluate_options), 1, take_evaluate },
        { "a checkpoint", &egi_checkpoint_fields, sizeof(eg_checkpoint_options), 1, make_checkpoint },
        { "a summary", &egi_summary_fields, sizeof(eg_summary_options), 2, take_summary }
    };
    for (size_t t = 0; t < sizeof all / sizeof *all; t++) {
        egi_layer_config none;
        memset(&none, 0, sizeof none);
        for (int i = 0; i < all[t].functions; i++)           // the defaults are in their ranges
            if (!all[t].call(i, &none)) test_say(__FILE__, __LINE__, all[t].what, eg_error_message());
        for (int field = 0; field < all[t].table->count; field++) sweep_field(&all[t], field);
    }
}
// Zero is the default, EG_ZERO is zero, and both are found in the struct afterwards.
TEST(options_get_their_defaults) {
    eg_optimizer_options o;
    memset(&o, 0, sizeof o);
    o.beta_1 = EG_ZERO;
    static const egi_fallback own[] = { { EGI_O_epsilon, 0.25 }, { -1, 0 } };
    CHECK(egi_options_take("adam", &o, &egi_optimizer_fields, UINT64_MAX, own));
    CHECK_NEAR(o.beta_1, 0, 0);
    CHECK_NEAR(o.beta_2, .999, 0);
    CHECK_NEAR(o.epsilon, .25, 0);
    CHECK_INT(o.accumulate_steps, 1);
}
