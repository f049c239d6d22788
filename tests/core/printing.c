// Printing: chapter 21. What NumPy writes for an array is what eg_format does, for each row of fixtures/printing.txt.
#include "test.h"

static char *file_text(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = (char *)malloc((size_t)n + 1);
    text[fread(text, 1, (size_t)n, f)] = 0;
    fclose(f);
    return text;
}
static eg_dtype dtype_named(const char *name) {
    for (int d = 0; d < 8; d++) if (!strcmp(name, eg_dtype_name((eg_dtype)d))) return (eg_dtype)d;
    return EG_NO_DTYPE;
}

TEST(as_numpy_prints) {
    char *text = file_text("tests/fixtures/printing.txt");
    REQUIRE(text != NULL);
    static char want[40000], got[40000], shape_tail[300];
    int cases = 0;
    char *line = strchr(text, '\n') + 1, *next;
    while (*line) {
        EG_SCOPE;
        char *end = strchr(line, '\n');
        *end = 0;
        eg_dtype dtype = dtype_named(strtok(line, " "));
        eg_shape shape = {atoi(strtok(NULL, " ")), {0}};
        int64_t size = 1, i = 0;
        for (int d = 0; d < shape.rank; d++) size *= shape.dims[d] = atoll(strtok(NULL, " "));
        double *doubles = (double *)malloc((size_t)(size + 1) * sizeof(double));
        int64_t *ints = (int64_t *)malloc((size_t)(size + 1) * sizeof(int64_t));
        for (char *word; (word = strtok(NULL, " ")) && i < size; i++) {
            doubles[i] = strtod(word, NULL);
            ints[i] = strtoll(word, NULL, 10);
        }
        CHECK_INT(i, size);
        bool whole = dtype == EG_INT32 || dtype == EG_INT64 || dtype == EG_UINT8 || dtype == EG_BOOL;
        eg_tensor *x = eg_cast(eg_from_data(whole ? EG_INT64 : EG_FLOAT64, shape,
                                            whole ? (const void *)ints : (const void *)doubles), dtype);
        size_t n = 0;
        for (line = end + 1; *line == '|'; line = next) {
            next = strchr(line, '\n') + 1;
            if (n + (size_t)(next - line) >= sizeof want) { CHECK_STR("a text that is too long", want); break; }
            memcpy(want + n, line + 1, (size_t)(next - line) - 1);
            n += (size_t)(next - line) - 1;
        }
        want[n ? n - 1 : 0] = 0;
        char dims[EG_SHAPE_TEXT];
        snprintf(shape_tail, sizeof shape_tail, "  shape=%s dtype=%s", eg_shape_text(shape, dims),
                 eg_dtype_name(dtype));
        int64_t length = eg_format(x, got, sizeof got);
        CHECK_INT(length, strlen(got));
        char *tail = strstr(got, "  shape=");
        REQUIRE(tail != NULL);
        CHECK_STR(tail, shape_tail);
        *tail = 0;
        CHECK_STR(got, want);
        // Values in another layout print the same.
        if (shape.rank == 2) {
            eg_format(eg_transpose(eg_cast(eg_cast(eg_transpose(x), dtype), dtype)), got, sizeof got);
            CHECK(strncmp(got, want, strlen(want)) == 0);
        }
        free(doubles);
        free(ints);
        cases++;
    }
    free(text);
    CHECK(cases > 200);
}

TEST(bfloat16_and_plain_numbers) {
    char text[200];
    eg_format(eg_constant_of(EG_BFLOAT16, EG_SHAPE(3), 1, 0.1, -2.5), text, sizeof text);
    CHECK_STR(text, "[ 1.   0.1 -2.5]  shape=(3,) dtype=bfloat16");
    eg_format(eg_number(0.5), text, sizeof text);
    CHECK_STR(text, "0.5  shape=() dtype=float32");
    eg_tensor *v = eg_variable(eg_scalar(2), "v");
    eg_format(v, text, sizeof text);
    eg_release(v);
    CHECK_STR(text, "2.0  shape=() dtype=float32");
}

TEST(format_is_like_snprintf) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2);
    const char *all = "[1. 2.]  shape=(2,) dtype=float32";
    char text[40];
    CHECK_INT(eg_format(x, NULL, 0), strlen(all));
    for (size_t n = 1; n < sizeof text; n++) {
        memset(text, '#', sizeof text);
        CHECK_INT(eg_format(x, text, n), strlen(all));
        size_t fits = n - 1 < strlen(all) ? n - 1 : strlen(all);
        CHECK(strlen(text) == fits && strncmp(text, all, fits) == 0);
        CHECK(n >= sizeof text || text[n] == '#');
    }
    CHECK_ERROR(eg_format(NULL, text, sizeof text), EG_ERROR_NULL, "eg_format");
    CHECK_STR(text, "");
    CHECK_INT(eg_format(NULL, NULL, 0), -1);
    eg_error_clear();
}

static void append(const char *text, void *user) { strncat((char *)user, text, 1200); }
TEST(printers_and_streams) {
    static char said[2000];
    said[0] = 0;
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 7, 10, 15, 22),
              *views[] = {eg_transpose(x), eg_reverse(x, EG_AXES(1)), eg_broadcast_to(eg_scalar(3), EG_SHAPE(1, 2)),
                          eg_greater(x, 9)};
    eg_set_printer(append, said);
    eg_print(x);
    for (int i = 0; i < 4; i++) eg_print(views[i]);
    eg_set_printer(NULL, NULL);
    CHECK_STR(said, "[[ 7. 10.]\n [15. 22.]]  shape=(2, 2) dtype=float32\n"
                    "[[ 7. 15.]\n [10. 22.]]  shape=(2, 2) dtype=float32\n"
                    "[[10.  7.]\n [22. 15.]]  shape=(2, 2) dtype=float32\n"
                    "[[3. 3.]]  shape=(1, 2) dtype=float32\n"
                    "[[False  True]\n [ True  True]]  shape=(2, 2) dtype=bool\n");
    FILE *f = tmpfile();
    if (f) {
        eg_fprint(f, x);
        rewind(f);
        said[fread(said, 1, sizeof said - 1, f)] = 0;
        fclose(f);
        CHECK_STR(said, "[[ 7. 10.]\n [15. 22.]]  shape=(2, 2) dtype=float32\n");
    }
    CHECK_ERROR(eg_fprint(NULL, x), EG_ERROR_NULL, "eg_fprint");
}

static const char *op_printed(const char *name) {
    static char said[2000];
    said[0] = 0;
    eg_set_printer(append, said);
    eg_op_print(name);
    eg_set_printer(NULL, NULL);
    return said;
}
static bool own_forward(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user) {
    (void)c;
    (void)user;
    return (out[0] = eg_identity(in[0])) != NULL;
}
TEST(an_op_as_its_formulas_and_programs) {
    CHECK_STR(op_printed("tanh"), "eg_tanh(a)  // float32, float64\n"
                                  "    y = tanh(a)\n"
                                  "        x = a\n"
                                  "        x = tanh(x)\n"
                                  "    dx[0] = g * (1 - y * y)    // the tape keeps y\n"
                                  "        // in float32 a compiled loop instead\n"
                                  "        x = y\n"
                                  "        x = x * x\n"
                                  "        x = 1 - x\n"
                                  "        x = x * g\n");
    CHECK_CONTAINS(op_printed("where"), "        x = x ? b : c\n");
    CHECK_CONTAINS(op_printed("where"), "        x = g & !x\n");
    CHECK_CONTAINS(op_printed("elu"), "        x = r1 ? g : x\n");
    CHECK_CONTAINS(op_printed("relu6"), "        x = x < 6\n        x = x & r1\n        x = x & g\n");
    CHECK_CONTAINS(op_printed("pow"),
                   "        x = x ? 1 : a\n        r1 = x\n        x = b\n        x = x - 1\n        r2 = x\n        x "
                   "= r1\n        x = pow(x, r2)\n        x = x * b\n        x = x * g\n");
    CHECK_STR(op_printed("eg_tanh"), op_printed("tanh"));
    CHECK_CONTAINS(op_printed("gelu"), "    y = gelu(a)\n");
    CHECK_CONTAINS(op_printed("gelu"), "    dx[0] = g * gelu_slope(a)    // the tape keeps a\n");
    CHECK_CONTAINS(op_printed("mish"), "    t1 = tanh(softplus(a))\n    dx[0] = g * (t1 + a * sigmoid(a) * (1 - "
                                       "square(t1)))    // the tape keeps a\n");
    CHECK_CONTAINS(op_printed("sub"), "eg_sub(a, b)  // float32, float64, int32, int64, uint8\n    y = a - b\n");
    CHECK_CONTAINS(op_printed("sub"), "    dx[0] = g\n");
    CHECK_CONTAINS(op_printed("sub"), "    dx[1] = -g\n");
    CHECK_CONTAINS(op_printed("div"), "    dx[1] = -(g * y / b)    // the tape keeps b, y\n");
    CHECK_CONTAINS(op_printed("where"), "    y = a ? b : c\n");
    CHECK_CONTAINS(op_printed("where"), "    dx[0] = none\n");
    CHECK_CONTAINS(op_printed("is_inf"),
                   "eg_is_inf(a)  // float32, float64; no gradient\n    y = abs(a) == infinity\n");
    CHECK_CONTAINS(op_printed("hard_sigmoid"), "    y = min(max(a / 6 + 0.5, 0), 1)\n");
    CHECK_INT(eg_error(), EG_OK);
    CHECK_ERROR(eg_op_print("matmul"), EG_ERROR_ARGUMENT,
                "eg_op_print: 'matmul' is not elementwise: it has no formula to print");
    eg_op_definition own;
    memset(&own, 0, sizeof own);
    own.name = "printing_own";
    own.n_inputs = own.n_outputs = 1;
    own.forward = own_forward;
    CHECK(eg_op_register(&own) >= 0);
    eg_op_print("printing_own");
    CHECK_CONTAINS(eg_error_message(), "eg_op_print: 'printing_own' is not elementwise: it has no formula to print");
    eg_error_clear();
    CHECK_ERROR(eg_op_print("tang"), EG_ERROR_ARGUMENT,
                "there is no op named 'tang'; it takes the name of an elementwise op, as in eg_op_print(\"tanh\")");
    CHECK_ERROR(eg_op_print(NULL), EG_ERROR_NULL, "eg_op_print: the name is NULL");
}
