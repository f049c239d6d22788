// Datasets read from files: lines, CSV (held against Python's csv), TFRecord, IDX and .npy arrays; streaming; broken
// files.
#include "test.h"

static const char *written(const char *name, const void *data, size_t n) {
    const char *path = test_temp(name);
    FILE *f = path ? fopen(path, "wb") : NULL;
    if (!f || fwrite(data, 1, n, f) != n) test_say(__FILE__, __LINE__, name, "cannot be written");
    if (f) fclose(f);
    return path;
}
static const char *written_text(const char *name, const char *text) { return written(name, text, strlen(text)); }

// All elements' bytes, each followed by '|', until the end or an error; d is released.
static char gathered[1 << 16];
static eg_status gather(eg_dataset *d, int components) {
    eg_iterator *it = d ? eg_iterator_new(d) : NULL;
    eg_status status = it ? EG_NEXT : EG_FAILED;
    size_t at = 0;
    while (status == EG_NEXT) {
        EG_SCOPE;
        eg_tensor *out[EG_MAX_COMPONENTS];
        status = eg_iterator_next(it, out);
        for (int k = 0; status == EG_NEXT && k < components && at + (size_t)eg_size(out[k]) + 2 < sizeof gathered;
             k++) {
            if (eg_size(out[k])) memcpy(gathered + at, eg_data(out[k]), (size_t)eg_size(out[k]));
            at += (size_t)eg_size(out[k]);
            gathered[at++] = '|';
        }
    }
    gathered[at] = 0;
    eg_iterator_release(it);
    eg_dataset_release(d);
    return status;
}
static eg_dataset *file_of(eg_dataset *(*make)(const char *const *, int), const char *path) { return make(&path, 1); }

// ---- lines ---------------------------------------------------------------------------------------------------------

TEST(text_lines_strip_cr_lf) {
    const char *paths[2];
    paths[0] = written_text("lines.txt", "l1\r\nl2\n\nl4\r");
    paths[1] = written_text("more.txt", "l5\n");
    CHECK_INT(gather(eg_dataset_text_lines(paths, 2), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "l1|l2||l4|l5|");
    eg_dataset *d = eg_dataset_text_lines(paths, 2);
    CHECK_INT(eg_dataset_cardinality(d), EG_UNKNOWN);
    CHECK_INT(eg_dataset_spec(d, 0).dtype, EG_UINT8);
    CHECK_INT(eg_dataset_spec(d, 0).shape.dims[0], -1);
    d = eg_dataset_repeat(d, 2);
    CHECK_INT(gather(d, 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "l1|l2||l4|l5|l1|l2||l4|l5|");
    paths[0] = written_text("lines.txt", "");
    CHECK_INT(gather(eg_dataset_text_lines(paths, 1), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "");
}
static eg_dataset *lines_of(eg_tensor *const *in, void *user) {
    (void)user;
    const char *path = eg_text(in[0]);
    return eg_dataset_text_lines(&path, 1);
}
static eg_dataset *lines_of_all(eg_tensor *const *in, void *user) {
    return eg_dataset_interleave(eg_dataset_from_slices(in[0]), lines_of, user, .cycle = 1);
}
TEST(file_names_are_fed_as_texts) {
    const char *paths[3];
    paths[0] = written_text("first.txt", "a\nb\n");
    paths[1] = written_text("of a longer name.txt", "c\nd\ne\n");
    paths[2] = test_temp("missing.txt");
    eg_iterator *it = eg_iterator_initializable(lines_of, NULL);
    eg_tensor *out[EG_MAX_COMPONENTS];
    for (int round = 0; round < 2; round++)
        for (int k = 0; k < 2; k++) {
            eg_tensor *name = eg_from_text(paths[k]);
            CHECK(eg_iterator_feed(it, &name) && eg_iterator_next(it, out) == EG_NEXT);
            CHECK_STR(eg_text(out[0]), k ? "c" : "a");
        }
    eg_tensor *name = eg_from_text(paths[2]);
    CHECK(eg_iterator_feed(it, &name));                       // nothing is opened before it is asked for
    CHECK_ERROR(eg_iterator_next(it, out), EG_ERROR_FILE, "missing.txt");
    name = eg_scalar(1);
    CHECK_ERROR(eg_iterator_feed(it, &name), EG_ERROR_DTYPE, "eg_text: a text is a vector of uint8, not float32 []");
    eg_iterator_release(it);
    it = eg_iterator_initializable(lines_of_all, NULL);       // a list of files
    name = eg_from_texts(paths, 2);
    CHECK(eg_iterator_feed(it, &name));
    for (int i = 0; i < 5; i++) {
        CHECK(eg_iterator_next(it, out) == EG_NEXT);
        const char want[2] = { (char)('a' + i), 0 };
        CHECK_STR(eg_text(out[0]), want);
    }
    CHECK(eg_iterator_next(it, out) == EG_END_OF_SEQUENCE);
    eg_iterator_release(it);
}
TEST(a_missing_file_names_it) {
    const char *path = "no/such/file.txt";
    CHECK_ERROR(gather(file_of(eg_dataset_text_lines, path), 1), EG_ERROR_FILE,
                "eg_dataset_text_lines (stage 1 of 1, element 0): no/such/file.txt: cannot be opened");
    const char *folder = ".";
    CHECK_ERROR(gather(file_of(eg_dataset_text_lines, folder), 1), EG_ERROR_FILE, ".: is a folder, not a file");
    CHECK_ERROR(gather(eg_dataset_csv(&folder, 1), 1), EG_ERROR_FILE, ".: is a folder, not a file");
    CHECK_ERROR(file_of(eg_dataset_from_files, folder), EG_ERROR_FILE, ".: is a folder, not a file");
    CHECK_ERROR(gather(file_of(eg_dataset_tfrecord, path), 1), EG_ERROR_FILE, "no/such/file.txt");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1), 1), EG_ERROR_FILE, "no/such/file.txt");
    CHECK_ERROR(eg_dataset_from_files(&path, 1), EG_ERROR_FILE, "no/such/file.txt");
    CHECK_ERROR(eg_load_idx(path), EG_ERROR_FILE, "eg_load_idx: no/such/file.txt");
    CHECK_ERROR(eg_dataset_text_lines(NULL, 1), EG_ERROR_ARGUMENT, "a list of 1 is NULL");
    path = NULL;
    CHECK_ERROR(eg_dataset_text_lines(&path, 1), EG_ERROR_ARGUMENT, "path 0 is NULL");
}
TEST(long_lines_cross_blocks) {
    enum { N = 200000 };
    char *text = (char *)malloc(N);
    for (int i = 0; i < N; i++) text[i] = (char)(i % 66000 == 65999 ? '\n' : 'a' + i % 26);
    const char *path = written("long.txt", text, N);
    eg_dataset *d = eg_dataset_text_lines(&path, 1);
    eg_iterator *it = eg_iterator_new(d);
    for (int at = 0; at < N;) {
        EG_SCOPE;
        eg_tensor *out[EG_MAX_COMPONENTS];
        CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
        int64_t n = at + 66000 <= N ? 65999 : N - at;
        REQUIRE(eg_size(out[0]) == n);
        CHECK(memcmp(eg_data(out[0]), text + at, (size_t)n) == 0);
        at += (int)n + 1;
    }
    eg_iterator_release(it);
    eg_dataset_release(d);
    free(text);
}

// ---- CSV -----------------------------------------------------------------------------------------------------------

static size_t from_hex(const char *hex, char *bytes) {
    size_t n = 0;
    for (unsigned v; *hex != '-' && sscanf(hex, "%2x", &v) == 1 && hex[0] != ' ' && hex[0] != '\n'; hex += 2)
        bytes[n++] = (char)v;
    return n;
}
// The fixture's rows, each field followed by '|', as gather writes them.
TEST(csv_is_read_as_python_reads_it) {
    FILE *f = fopen("tests/fixtures/csv.txt", "rb");
    char line[400], text[200], want[2000];
    size_t n = 0, at = 0;
    int texts = 0, fields = 0;
    bool open = false, more = true;
    REQUIRE(f);
    while (more) {
        more = fgets(line, sizeof line, f) != NULL;
        if (more && !strncmp(line, "row ", 4)) {
            fields = 0;
            for (char *p = line + 4; *p && *p != '\n'; p += strcspn(p, " \n"), p += *p == ' ', fields++) {
                at += from_hex(p, want + at);
                want[at++] = '|';
            }
        }
        if (more && !strncmp(line, "open", 4)) open = true;
        if (more && strncmp(line, "csv ", 4) != 0) continue;
        if (texts++) {
            want[at] = 0;
            const char *path = written("some.csv", text, n);
            eg_csv_options o;
            memset((void *)&o, 0, sizeof o);
            const char *names[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
            for (int k = 0; k < (fields ? fields : 1); k++) {
                o.components[k].columns = names[k];
                o.components[k].text = true;
            }
            eg_status status = gather((eg_dataset_csv)(&path, 1, o), fields ? fields : 1);
            CHECK_INT(status, open ? EG_FAILED : EG_END_OF_SEQUENCE);
            if (!open) CHECK_STR(gathered, want);
            else eg_error_clear();
        }
        if (more) n = from_hex(line + 4, text);
        at = 0;
        fields = 0;
        open = false;
    }
    fclose(f);
    CHECK(texts > 300);
}
// A number of the file: of 1 to 22 digits with a point or none anywhere, some with an exponent, and what lies between
// two neighbours among the doubles.
static int some_number(char *text, uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t r = *state >> 11;
    const int kind = (int)(*state >> 8 & 7), digits = 1 + (int)(r % 22), point = (int)(r / 22 % 23);
    if (kind == 0) return sprintf(text, "%.17g", (double)r / 9007199254740992.0);
    if (kind == 1) return sprintf(text, "%lld", (long long)(r << 11 ^ r));
    if (kind == 2) {                                    // 53 bits, and a half of the next one
        const double middle = 0.5 + (double)(r & 1023), power = ldexp(1, (int)(r >> 10 & 31));
        return sprintf(text, "%.12f", 9007199254740992.0 / 2 / power + middle / power);
    }
    int at = 0;
    if (r >> 12 & 1) text[at++] = r >> 13 & 1 ? '-' : '+';
    for (int i = 0; i < digits; i++) {
        if (i == point) text[at++] = '.';
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        text[at++] = (char)('0' + (*state >> 33) % 10);
    }
    if (kind > 4) at += sprintf(text + at, "%c%d", kind > 5 ? 'e' : 'E', (int)(r >> 20) % 44);
    text[at] = 0;
    return at;
}
TEST(csv_numbers_are_those_of_strtod) {
    enum { N = 40000 };
    static double want[N];
    char *text = (char *)malloc((size_t)N * 48);
    size_t at = 0;
    uint64_t state = 5;
    for (int i = 0; i < N; i++) {
        const size_t n = (size_t)some_number(text + at, &state);
        want[i] = strtod(text + at, NULL);
        text[at + n] = '\n';
        at += n + 1;
    }
    const char *path = written("numbers.csv", text, at);
    eg_iterator *it;
    eg_dataset *d = eg_dataset_csv(&path, 1, .components = {{.columns = "0", .dtype = EG_FLOAT64}});
    eg_tensor *x[EG_MAX_COMPONENTS];
    d = eg_dataset_batch(d, N);
    REQUIRE(d && (it = eg_iterator_new(d)) != NULL);
    CHECK_INT(eg_iterator_next(it, x), EG_NEXT);
    REQUIRE(x[0] && eg_size(x[0]) == N);
    const double *got = (const double *)eg_data(x[0]);
    int differ = 0;
    for (int i = 0; i < N; i++)
        if (memcmp(got + i, want + i, sizeof *got) && differ++ < 5) CHECK_NEAR(got[i], want[i], 0);
    CHECK_INT(differ, 0);
    eg_iterator_release(it);
    eg_dataset_release(d);
    free(text);
}
// Rows with every end of a line, some in quotes, in a file of several blocks; the last row is short of a field.
TEST(csv_rows_cross_blocks) {
    enum { ROWS = 6000 };
    char *text = (char *)malloc(ROWS * 48 + 64);
    for (int before = 0; before < 40; before += 13) {
        int at = sprintf(text, "%*d,\"\n\",0\n", before + 1, 0), line = 3;
        for (int i = 1; i < ROWS; i++, line++) {
            at += sprintf(text + at, i % 7 ? "%d,%d,%d.5%s" : "%d,\"%d\",%d.5%s", i, -i, i,
                          i % 3 == 0 ? "\n" : i % 3 == 1 ? "\r\n" : "\r");
            if (i % 100 == 99) at += sprintf(text + at, "\n"), line += i % 3 != 2;  // a blank line, or the end of \r\n
        }
        at += sprintf(text + at, "1,2");
        const char *path = written("rows.csv", text, (size_t)at);
        eg_dataset *d = eg_dataset_csv(&path, 1, .components = {{.columns = "0", .dtype = EG_INT32},
                                                {.columns = "1", .text = true}, {.columns = "2"}});
        eg_iterator *it = eg_iterator_new(d);
        eg_tensor *x[EG_MAX_COMPONENTS];
        int wrong = 0;
        for (int i = 0; i < ROWS; i++) {
            EG_SCOPE;
            char middle[16];
            REQUIRE(eg_iterator_next(it, x) == EG_NEXT);
            sprintf(middle, i ? "%d" : "\n", -i);
            wrong += eg_item_int(x[0]) != i || eg_size(x[1]) != (int64_t)strlen(middle) ||
                     memcmp(eg_data(x[1]), middle, strlen(middle)) || eg_item(x[2]) != (i ? i + 0.5 : 0);
        }
        CHECK_INT(wrong, 0);
        sprintf(text, "rows.csv: line %d: 2 fields, where line 1 has 3", line);
        CHECK_ERROR(eg_iterator_next(it, x), EG_ERROR_FILE, text);
        eg_iterator_release(it);
        eg_dataset_release(d);
    }
    free(text);
}
TEST(csv_header_that_nobody_announced) {
    const char *path = written_text("rooms.csv", "rooms,price\n3,100\n,5\n");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .components = {{.columns = "rooms"}}), 1), EG_ERROR_FILE,
                "column 'rooms' is no number, and names want .header = true; the first row is 'rooms,price'");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1), 1), EG_ERROR_FILE,
                "'rooms' in column 0 (from 0) is no number; if that row is a header, give .header = true");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .header = true, .components = {{.columns = "rooms"}}), 1),
                EG_ERROR_FILE, "a zero is .missing = EG_ZERO");
}
TEST(csv_paths_in_a_list_that_is_a_literal) {
    const char *first = written_text("first.csv", "1,2\n"), *second = written_text("second.csv", "3,4\n5,6\n");
    eg_dataset *d = eg_dataset_csv((const char *[]){first, second}, 2, .components = {{.dtype = EG_UINT8}});
    CHECK(gather(d, 1) == EG_END_OF_SEQUENCE && !memcmp(gathered, "\1\2|\3\4|\5\6|", 9));
    d = eg_dataset_csv((const char *const[]){first, second}, 2, .header = true,
                       .components = {{.columns = "0", .dtype = EG_UINT8}, {.columns = "1", .dtype = EG_UINT8}});
    CHECK(gather(d, 2) == EG_END_OF_SEQUENCE && !memcmp(gathered, "\5|\6|", 5));
    CHECK(gather(eg_dataset_csv((const char *[]){first, second}, 2), 1) == EG_END_OF_SEQUENCE);
}
TEST(csv_of_other_separators) {
    const char *path = written_text("semicolons.csv", "1;2\n");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1), 1), EG_ERROR_FILE,
                "'1;2' in column 0 (from 0) is no number; if ';' separates fields, give .delimiter = ';'");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .components = {{.columns = "1"}}), 1), EG_ERROR_FILE,
                "there is no column 1; a row has 1, from 0; if ';' separates fields, give .delimiter = ';'");
    path = written_text("named.csv", "a;b\n1;2\n");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .header = true, .components = {{.columns = "a"}}), 1), EG_ERROR_FILE,
                "there is no column 'a' in the header 'a;b'; if ';' separates fields, give .delimiter = ';'");
    path = written_text("one.csv", "1,2\n3\n");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1), 1), EG_ERROR_FILE, "line 2: 1 field, where line 1 has 2");
    path = written_text("tabs.csv", "a\n1\t2\n");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .header = true), 1), EG_ERROR_FILE,
                "is no number; if tabs separate fields, give .delimiter = '\\t'");
}
TEST(csv_numbers_names_and_categories) {
    const char *path = written_text("iris.csv", "\xef\xbb\xbfsepal length,width, species ,id\r\n5.1,"
                                                "3.5,setosa,9007199254740993\n\r\n\"4.9\", 3 " ",virginica,-2\n");
    eg_dataset *d = eg_dataset_csv(&path, 1, .header = true, .components = {
            {.columns = "sepal length, width"}, {.columns = "species", .categories = "setosa,versicolor,virginica"},
            {.columns = "id", .dtype = EG_INT64}, {.columns = "1-3", .text = true}});
    CHECK(!d);
    CHECK_CONTAINS(eg_error_message(), "a text is one column");
    eg_error_clear();
    d = eg_dataset_csv(&path, 1, .header = true,
                       .components = { {.columns = "sepal length, width"},
                                       {.columns = " species ", .categories = "setosa,versicolor,virginica"},
                                       {.columns = "id", .dtype = EG_INT64}, {.columns = "2", .text = true}});
    eg_dataset_release(d);
    d = eg_dataset_csv(&path, 1, .header = true,
                       .components = { {.columns = "sepal length, width"},
                                       {.columns = "species", .categories = "setosa, versicolor, virginica"},
                                       {.columns = "id", .dtype = EG_INT64}, {.columns = "2", .text = true}});
    CHECK_INT(eg_dataset_components(d), 4);
    CHECK_INT(eg_dataset_spec(d, 0).shape.dims[0], 2);
    CHECK_INT(eg_dataset_spec(d, 1).dtype, EG_INT64);
    CHECK_INT(eg_dataset_spec(d, 1).shape.rank, 0);
    d = eg_dataset_take(d, 2);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[0], 1e-7, 5.1, 3.5);
    CHECK_TENSOR(out[1], 0, 0);
    CHECK_INT(eg_item_int(out[2]), 9007199254740993);
    CHECK_TENSOR(out[3], 0, 's', 'e', 't', 'o', 's', 'a');
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[0], 1e-7, 4.9, 3);
    CHECK_TENSOR(out[1], 0, 2);
    CHECK_INT(eg_item_int(out[2]), -2);
    CHECK_INT(eg_iterator_next(it, out), EG_END_OF_SEQUENCE);
    eg_iterator_release(it);
    eg_dataset_release(d);
}
static eg_tensor *first_of(eg_dataset *d) {                   // the first component of the first element; d is released
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator *it = d ? eg_iterator_new(d) : NULL;
    if (it) eg_iterator_next(it, out);
    eg_iterator_release(it);
    eg_dataset_release(d);
    return it ? out[0] : NULL;
}
TEST(csv_missing_values_have_defaults) {
    const char *path = written_text("gaps.csv", "1,,3\n");
    CHECK_TENSOR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "0-2", .missing = -1}})), 0, 1, -1, 3);
    CHECK_TENSOR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "0-2", .missing = EG_ZERO}})), 0, 1, 0,
                 3);
    CHECK_TENSOR(first_of(eg_dataset_csv(&path, 1, .components = {{NULL, .missing = (double)NAN}})), 0, 1, (double)NAN,
                 3);
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1)), EG_ERROR_FILE,
                "gaps.csv: line 1: '' in column 1 (from 0) is a missing value, and the option .missing says nothing");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1,
                                        .components = {{.columns = "1", .dtype = EG_INT32, .missing = (double)NAN}})),
                EG_ERROR_FILE, "does not fit int32");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "1", .categories = "a, b",
                                                                  .missing = (double)NAN}})), EG_ERROR_FILE,
                "gaps.csv: line 1: '' in column 1 (from 0) is a missing value, and the NaN that .missing gives for it "
                "does not fit int64; give a whole number, or .dtype = EG_FLOAT64");
    CHECK_TENSOR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "1", .categories = "a, b",
                                                                   .dtype = EG_FLOAT64, .missing = (double)NAN}})), 0,
                 (double)NAN);
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "1", .dtype = EG_UINT8, .missing = 2.5}})),
                EG_ERROR_FILE, "and the 2.5 that .missing gives for it does not fit uint8");
    path = written_text("gaps.csv", "nan\n");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{NULL, .dtype = EG_INT32, .missing = (double)NAN}})),
                EG_ERROR_FILE, "'nan' in column 0 (from 0) is a missing value, and the NaN that .missing");
    path = written_text("gaps.csv", "1; NA ;3\n");
    CHECK_TENSOR(first_of(eg_dataset_csv(&path, 1, .delimiter = ';', .na = "NA",
                                         .components = {{.columns = "0-2", .dtype = EG_INT32, .missing = -7}})), 0, 1,
                 -7, 3);
    path = written_text("inf.csv", "nan,-inf,Infinity,-1e-3,.5,1E5\n");
    CHECK_TENSOR(first_of(eg_dataset_csv(&path, 1)), 1e-7, (double)NAN, -(double)INFINITY, (double)INFINITY, -1e-3, .5,
                 1e5);
}
// What pandas reads as missing is so here, too; nan alone is a number where nothing stands for what is missing.
TEST(csv_missing_values_as_others_write_them) {
    const char *path = written_text("others.csv",
                                    "size,kind\n1,red\nNA,NA\n n/a ,null\n#N/A,None\nnan,<NA>\n?,?\n-NaN,\n");
    eg_dataset *d = eg_dataset_csv(&path, 1, .header = true, .na = "?",
                                   .components = {{"size", .missing = -1},
                                                  {"kind", .categories = "red, blue", .missing = 7}});
    CHECK_TENSOR(first_of(eg_dataset_batch(d, 7)), 0, 1, -1, -1, -1, -1, -1, -1);
    d = eg_dataset_csv(&path, 1, .header = true, .na = "?",
                       .components = {{"kind", .categories = "red, NA", .missing = 7}});
    CHECK_TENSOR(first_of(eg_dataset_batch(d, 7)), 0, 0, 1, 7, 7, 7, 7, 7);  // NA is a word of this column
    CHECK_ERROR(first_of(eg_dataset_batch(eg_dataset_csv(&path, 1, .header = true, .components = {{.columns = "size"}}),
                                          7)), EG_ERROR_FILE,
                "line 3: 'NA' in column 'size' is a missing value, and the option .missing says nothing");
    path = written_text("others.csv", "x\nnan\n2\n");
    CHECK_TENSOR(first_of(eg_dataset_batch(eg_dataset_csv(&path, 1, .header = true), 2)), 0, (double)NAN, 2);
    CHECK_TENSOR(first_of(eg_dataset_batch(eg_dataset_csv(&path, 1, .header = true,
                                                          .components = {{"x", .missing = EG_ZERO}}), 2)), 0, 0, 2);
}
TEST(csv_without_a_header) {
    const char *paths[] = {written_text("empty.csv", "\n\r\n"), NULL};
    CHECK_ERROR(first_of(eg_dataset_csv(paths, 1, .header = true, .components = {{.columns = "age"}})), EG_ERROR_FILE,
                "empty.csv: line 3: the file is empty, and .header = true says that its first row names the columns");
    CHECK_INT(gather(eg_dataset_csv(paths, 1), 1), EG_END_OF_SEQUENCE);
    static const char *const headers[] = { "age", "age\n", "age\r", "\n\"age\"", "\357\273\277age" };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {       // no rows, with the line's end or without
        paths[0] = written_text("header.csv", headers[i]);
        paths[1] = written_text("rows.csv", "age\n3\n");
        CHECK_INT(gather(eg_dataset_csv(paths, 1, .header = true, .components = {{.columns = "age"}}), 1),
                  EG_END_OF_SEQUENCE);
        CHECK_INT(gather(eg_dataset_csv(paths, 2, .header = true, .components = {{"age", .text = true}}), 1),
                  EG_END_OF_SEQUENCE);
        CHECK_STR(gathered, "3|");
    }
    CHECK_ERROR(gather(eg_dataset_csv(paths, 1, .header = true, .components = {{.columns = "size"}}), 1), EG_ERROR_FILE,
                "there is no column 'size' in the header 'age'");
    paths[1] = paths[0] = written_text("empty.csv", "\n\r\n");
    paths[0] = written_text("full.csv", "age\n3\n");
    CHECK_ERROR(gather(eg_dataset_csv(paths, 2, .header = true, .components = {{"age", .text = true}}), 1),
                EG_ERROR_FILE, "empty.csv: ");
}
TEST(csv_errors_say_the_line) {
    const char *path = written_text("bad.csv", "a,b\n1,2\n\"x\ny\",4\n5,6,7\n");
    const char *two[2];
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .header = true, .components = {{.columns = "a", .text = true}}), 1),
                EG_ERROR_FILE, "eg_dataset_csv (stage 1 of 1, element 2): ");
    CHECK_STR(gathered, "1|x\ny|");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .header = true, .components = {{.columns = "a", .text = true}}), 1),
                EG_ERROR_FILE, "bad.csv: line 5: 3 fields, where line 1 has 2");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .header = true), 1), EG_ERROR_FILE,
                "line 3: 'x y' in column 'a' is no number");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .components = {{.columns = "2"}}), 1), EG_ERROR_FILE,
                "there is no column 2; a row has 2, from 0");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .components = {{.columns = "c"}}), 1), EG_ERROR_FILE,
                "column 'c' is no number");
    path = written_text("quote.csv", "a\n\n\"b\nc\n");
    CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .header = true), 1), EG_ERROR_FILE,
                "line 3: a quote is opened here and never closed");
    path = written_text("numbers.csv", "300,3.5,1e40,99999999999999999999,red\n");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "0", .dtype = EG_UINT8}})), EG_ERROR_FILE,
                "'300' in column 0 (from 0) does not fit uint8");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "1", .dtype = EG_INT64}})), EG_ERROR_FILE,
                "'3.5' in column 1 (from 0) does not fit int64");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "2"}})), EG_ERROR_FILE,
                "'1e40' in column 2 (from 0) does not fit float32");
    path = written_text("large.csv", "1e400,-1.e400,1e400\n");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1)), EG_ERROR_FILE, "'1e400' in column 0 (from 0) does not fit float32");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "1-2", .dtype = EG_FLOAT64}})),
                EG_ERROR_FILE, "'-1.e400' in column 1 (from 0) does not fit float64");
    path = written_text("numbers.csv", "300,3.5,1e40,99999999999999999999,red\n");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "3", .dtype = EG_INT64}})), EG_ERROR_FILE,
                "does not fit int64");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "4", .categories = "green,blue"}})),
                EG_ERROR_FILE, "'red' in column 4 (from 0) is none of the categories green,blue");
    CHECK_ERROR(eg_dataset_csv(&path, 1, .delimiter = '"'), EG_ERROR_ARGUMENT, "quote");
    CHECK_ERROR(eg_dataset_csv(&path, 1, .components = {{.columns = ""}}), EG_ERROR_ARGUMENT, "names no columns");
    CHECK_ERROR(eg_dataset_csv(&path, 1, .components = {{.columns = "3-1"}}), EG_ERROR_ARGUMENT, "names no columns");
    CHECK_ERROR(eg_dataset_csv(&path, 1, .components = {{.columns = "5-3, 0-4"}}), EG_ERROR_ARGUMENT,
                "names no columns");
    CHECK_ERROR(eg_dataset_csv(&path, 1, .components = {{.columns = "0-9999999999999999, 0"}}), EG_ERROR_ARGUMENT,
                "names no columns");
    CHECK_ERROR(eg_dataset_csv(&path, 1, .components = {{.columns = "0", .dtype = (eg_dtype)99}}), EG_ERROR_DTYPE,
                "99 is no dtype");
    path = written_text("edges.csv",
                        "9223372036854775808,-9223372036854775809,-9223372036854775808,9223372036854775807\n");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "0", .dtype = EG_INT64}})), EG_ERROR_FILE,
                "'9223372036854775808' in column 0 (from 0) does not fit int64");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "1", .dtype = EG_INT64}})), EG_ERROR_FILE,
                "does not fit int64");
    CHECK(first_of(eg_dataset_csv(&path, 1, .components = {{.columns = "2-3", .dtype = EG_INT64}})) != NULL);
    two[0] = written_text("one.csv", "x,y\n1,2\n");
    two[1] = written_text("two.csv", "y,x\n3,4\n");                     // each file's header says where its columns are
    CHECK_INT(gather(eg_dataset_csv(two, 2, .header = true, .components = {{.columns = "x", .text = true}}), 1),
              EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "1|4|");
}

// What is refused or fails, of one component each, with "1,2.5, red ,inf,-,+,infinit,infx,nan" below the header
// "a,b,c,d,e,f,g,h,i".
TEST(csv_words_and_numbers) {
    const char *path = written_text("words.csv", "a,b,c,d,e,f,g,h,i\n1,2.5,\t red ,+inf,-,+,infinit,infx,-NaN\n");
    const struct { eg_csv_component c; eg_error_code code; const char *error; } rows[] = {
        { { .columns = "c", .categories = "red" }, EG_OK, NULL }, { { .columns = "0 , 3-3" }, EG_OK, NULL },
        { { .columns = "i" }, EG_OK, NULL },
        { { .columns = "c", .categories = "red", .dtype = EG_INT32 }, EG_OK, NULL },
        { { .columns = "c", .text = true, .dtype = EG_UINT8 }, EG_OK, NULL },
        { { .columns = "1", .dtype = EG_FLOAT16 }, EG_OK, NULL }, { { .columns = "a", .dtype = EG_BOOL }, EG_OK, NULL },
        { { .columns = "c", .categories = "green,re" }, EG_ERROR_FILE,
          "'red' in column 'c' is none of the categories green,re" },
        { { .columns = "e" }, EG_ERROR_FILE, "line 2: '-' in column 'e' is no number" },
        { { .columns = "f", .dtype = EG_INT64 }, EG_ERROR_FILE, "'+' in column 'f' is no number" },
        { { .columns = "g" }, EG_ERROR_FILE, "'infinit' in column 'g' is no number" },
        { { .columns = "h" }, EG_ERROR_FILE, "'infx' in column 'h' is no number" },
        { { .columns = "d", .dtype = EG_INT64 }, EG_ERROR_FILE, "'+inf' in column 'd' does not fit int64" },
        { { .columns = "b", .dtype = EG_BOOL }, EG_ERROR_FILE, "does not fit bool" },
        { { .columns = "1-2-3" }, EG_ERROR_FILE, "there is no column '1-2-3' in the header 'a,b,c,d,e,f,g,h,i'" },
        { { .columns = "-3" }, EG_ERROR_FILE, "there is no column '-3'" },
        { { .columns = "3-" }, EG_ERROR_FILE, "there is no column '3-'" },
        { { .columns = "12345678901234567" }, EG_ERROR_FILE, "there is no column '12345678901234567'" },
        { { .columns = "3/" }, EG_ERROR_FILE, "there is no column '3/'" },
        { { .columns = "7-9" }, EG_ERROR_FILE, "there is no column 9; a row has 9, from 0" },
        { { .columns = "a column whose name is far too long for any message to tell all of it" }, EG_ERROR_FILE,
          "no column 'a column whose name is far too long for any message to tell ' in" },
        { { .columns = "0-16777216" }, EG_ERROR_ARGUMENT, "\"0-16777216\" names no columns" },
        { { .columns = "a", .text = true, .missing = 1 }, EG_ERROR_ARGUMENT, "a text is one column" },
        { { .columns = "a", .text = true, .categories = "x" }, EG_ERROR_ARGUMENT, "a text is one column" },
        { { .columns = "a", .text = true, .dtype = EG_INT64 }, EG_ERROR_ARGUMENT, "a text is one column" },
        { { .text = true }, EG_ERROR_ARGUMENT, "a text is one column" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        eg_tensor *x = first_of(eg_dataset_csv(&path, 1, .header = true, .components = { rows[k].c }));
        CHECK_INT(eg_error(), rows[k].code);
        CHECK((x != NULL) == !rows[k].error);
        if (rows[k].error) CHECK_CONTAINS(eg_error_message(), rows[k].error);
        eg_error_clear();
    }
    CHECK_TENSOR(first_of(eg_dataset_csv(&path, 1, .header = true, .components = { { .columns = "3,8,a" } })), 0,
                 (double)INFINITY, (double)NAN, 1);
    CHECK_ERROR(eg_dataset_csv(&path, 1, .delimiter = '\n'), EG_ERROR_ARGUMENT, "a line's end cannot separate fields");
    CHECK_ERROR(eg_dataset_csv(&path, 1, .delimiter = '\r'), EG_ERROR_ARGUMENT, "a line's end cannot separate fields");
    char wide[4000] = "", *at = wide;                         // of a long header as much as there is room for is told
    for (int i = 0; i < 60; i++) at += sprintf(at, "%sa name of a column that is of some length, %d", i ? ";" : "", i);
    path = written_text("wide.csv", wide);
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1, .header = true,
                                        .delimiter = ';', .components = { { .columns = "none" } })), EG_ERROR_FILE,
                "there is no column 'none' in the header 'a name of a column that is of some lengt,a name");
    path = written_text("long.csv",
                        "a word of far more than the sixty letters that an error would show of what it found\n");
    CHECK_ERROR(first_of(eg_dataset_csv(&path, 1)), EG_ERROR_FILE,
                "line 1: 'a word of far more than the sixty letters that an error woul' in column 0 (from 0) is no "
                "number");
    static char blocks[(1 << 16) + 40];                       // CR and LF in two blocks; a CR that ends the file
    memset(blocks, '1', sizeof blocks);
    memcpy(blocks + (1 << 16) - 3, "\n2\r\n3\r4\r", 8);
    path = written("blocks.csv", blocks, (1 << 16) + 5);
    CHECK_INT(gather(eg_dataset_skip(eg_dataset_csv(&path, 1, .components = { { .columns = "0", .text = true } }), 1),
                     1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "2|3|4|");
}
#ifdef __linux__
#include <fcntl.h>
#include <unistd.h>
// What has no size, and what cannot be read to its end.
TEST(pipes_are_read_as_they_come) {
    char path[64];
    const char *p = path;
    for (int k = 0; k < 7; k++) {
        int ends[2];
        static const char text[] = "1,2\n3,4\n";
        REQUIRE(pipe(ends) == 0 && write(ends[1], text, sizeof text - 1) == (ssize_t)sizeof text - 1 &&
                close(ends[1]) == 0);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        if (k == 0) {
            CHECK_INT(gather(eg_dataset_text_lines(&p, 1), 1), EG_END_OF_SEQUENCE);
            CHECK_STR(gathered, "1,2|3,4|");
        }
        if (k == 1) CHECK_TENSOR(first_of(eg_dataset_csv(&p, 1)), 0, 1, 2);
        if (k == 2) CHECK_TENSOR(eg_read_file(p), 0, '1', ',', '2', '\n', '3', ',', '4', '\n');
        if (k == 3)
            CHECK_ERROR(eg_load_npy(p), EG_ERROR_FILE, "cannot be read: its size is not known (a pipe or a device)");
        if (k == 4)
            CHECK_ERROR(eg_load_npz(p), EG_ERROR_FILE, "cannot be read: its size is not known (a pipe or a device)");
        if (k == 5)
            CHECK_ERROR(eg_load_safetensors(p), EG_ERROR_FILE,
                        "cannot be read: its size is not known (a pipe or a device)");
        if (k == 6) CHECK_ERROR(eg_load_idx(p), EG_ERROR_FILE, "byte 0: cannot be read from here: ");
        close(ends[0]);
    }
    const char *memory = "/proc/self/mem";                    // whose first page cannot be read
    if (access(memory, R_OK) != 0) return;
    CHECK_ERROR(eg_read_file(memory), EG_ERROR_FILE, "/proc/self/mem: byte 0: cannot be read: ");
    CHECK_ERROR(gather(eg_dataset_text_lines(&memory, 1), 1), EG_ERROR_FILE, "cannot be read: ");
    CHECK_ERROR(first_of(eg_dataset_csv(&memory, 1)), EG_ERROR_FILE, "cannot be read: ");
    CHECK_ERROR(gather(eg_dataset_tfrecord(&memory, 1), 1), EG_ERROR_FILE, "cannot be read: ");
}
#endif

// ---- TFRecord ------------------------------------------------------------------------------------------------------

static const unsigned char abc[19] = {3, 0, 0, 0, 0, 0, 0, 0, 0xb0, 0x99, 0x49, 0x0e, 'a', 'b', 'c', 0x6e, 0x57, 0xf1,
                                      0x21};
// the first n bytes of two records "abc", one byte of them changed
static const char *records(size_t n, size_t at, int flip) {
    unsigned char two[38];
    memcpy(two, abc, 19);
    memcpy(two + 19, abc, 19);
    two[at] ^= (unsigned char)flip;
    return written("some.tfrecord", two, n);
}
TEST(tfrecord_is_checked) {
    CHECK_INT(gather(file_of(eg_dataset_tfrecord, records(38, 0, 0)), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "abc|abc|");
    const char *twice[2];
    twice[0] = twice[1] = records(19, 0, 0);
    CHECK_INT(gather(eg_dataset_tfrecord(twice, 2), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "abc|abc|");
    CHECK_ERROR(gather(file_of(eg_dataset_tfrecord, records(38, 13, 1)), 1), EG_ERROR_FILE,
                "some.tfrecord: byte 12: corrupted record: the checksum of its data is wrong");
    CHECK_ERROR(gather(file_of(eg_dataset_tfrecord, records(38, 0, 1)), 1), EG_ERROR_FILE,
                "some.tfrecord: byte 0: corrupted record: the checksum of its length is wrong");
    CHECK_ERROR(gather(file_of(eg_dataset_tfrecord, records(38, 32, 1)), 1), EG_ERROR_FILE,
                "byte 31: corrupted record: the checksum of its data is wrong");
    CHECK_STR(gathered, "abc|");
    for (size_t n = 20; n < 38; n++)
        CHECK_ERROR(gather(file_of(eg_dataset_tfrecord, records(n, 0, 0)), 1), EG_ERROR_FILE,
                    "eg_dataset_tfrecord (stage 1 of 1, element 1): ");
    CHECK_ERROR(gather(file_of(eg_dataset_tfrecord, records(33, 0, 0)), 1), EG_ERROR_FILE,
                "some.tfrecord: byte 19: truncated record: the file ends in it");
}

// Checksums of records of all lengths, against the definition, bit by bit.
static uint32_t castagnoli(const unsigned char *p, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (; n; n--, p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
TEST(checksums_of_records) {
    enum { MOST = 700 };
    unsigned char data[MOST];
    for (int i = 0; i < MOST; i++) data[i] = (unsigned char)(i * i + 3 * i);
    const char *path = test_temp("sums.tfrecord");
    eg_record_writer *w = eg_record_writer_open(path);
    for (int n = 0; n < MOST; n++) CHECK(eg_record_writer_write(w, data + n % 5, n < 5 ? 0 : n - 4));
    CHECK(eg_record_writer_close(w));
    eg_record_writer_release(w);
    eg_tensor *bytes = eg_read_file(path);
    const unsigned char *p = (const unsigned char *)eg_data(bytes);
    REQUIRE(p);
    int wrong = 0;
    for (int n = 0; n < MOST; n++) {
        const size_t size = (size_t)p[0] | (size_t)p[1] << 8;
        const unsigned char *tail = p + 12 + size;
        const uint32_t sum = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 |
                             (uint32_t)tail[3] << 24;
        wrong += size != (size_t)(n < 5 ? 0 : n - 4) || sum != castagnoli(p + 12, size);
        p += 16 + size;
    }
    CHECK_INT(wrong, 0);
    CHECK(p == (const unsigned char *)eg_data(bytes) + eg_size(bytes));
}

// A picture and a label in each record: parsed, decoded where the program can, resized, batched.
static bool parse_digit(eg_tensor *const *in, eg_tensor **out, void *user) {
    eg_tensor *default_label = eg_scalar_of(EG_INT64, -1), *found[2];
    const eg_feature features[] = {{"pixels", EG_UINT8, {3, {4, 4, 1}}, NULL},
                                   {*(const char **)user, EG_INT64, {0, {0}}, default_label}};
    if (!eg_example_parse(in[0], features, 2, found)) return false;
    out[0] = eg_squeeze(eg_resize(eg_expand_dims(eg_div(eg_cast(found[0], EG_FLOAT32), 255), 0), 8, 8),
                        .axes = EG_AXES(0));
    out[1] = found[1];
    return true;
}
TEST(examples_are_parsed_in_map) {
    const char *names[] = {"label", "pixels"}, *path = test_temp("digits.tfrecord"), *label = "label";
    eg_record_writer *w = eg_record_writer_open(path);
    for (int i = 0; i < 5; i++) {
        eg_tensor *values[] = {eg_scalar_of(EG_INT64, i), eg_full(EG_UINT8, EG_SHAPE(4, 4, 1), 51 * i)},
                  *record = eg_example_serialize(names, values, 2);
        CHECK(eg_record_writer_write(w, eg_data(record), eg_size(record)));
    }
    CHECK(eg_record_writer_close(w));
    eg_record_writer_release(w);
    eg_dataset *d = eg_dataset_batch(eg_dataset_map(eg_dataset_tfrecord(&path, 1), parse_digit, &label, .components = 2,
                                                    .threads = 2), 3);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_SHAPE(out[0], 3, 8, 8, 1);
    CHECK_TENSOR(out[1], 0, 0, 1, 2);
    CHECK_NEAR(eg_item(eg_reduce_max(out[0])), .4, 1e-6);
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_SHAPE(out[0], 2, 8, 8, 1);
    eg_iterator_release(it);
    label = "nowhere";
    it = eg_iterator_new(d);
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[1], 0, -1, -1, -1);                      // the default
    eg_iterator_release(it);
    eg_dataset_release(d);
    path = records(19, 0, 0);                                 // "abc" is no Example
    d = eg_dataset_map(eg_dataset_tfrecord(&path, 1), parse_digit, &label, .components = 2);
    CHECK_ERROR(gather(d, 2), EG_ERROR_FILE, "eg_dataset_map (stage 2 of 2, element 0): ");
}

// ---- arrays --------------------------------------------------------------------------------------------------------

static const unsigned char idx8[] = {0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5, 255};
TEST(idx_files_of_every_type) {
    static const unsigned char i8[] = {0, 0, 9, 1, 0, 0, 0, 2, 0xff, 2},
                               i16[] = {0, 0, 0x0b, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 0},
                               i32[] = {0, 0, 0x0c, 0, 0, 1, 0, 0},
        f32[] = {0, 0, 0x0d, 1, 0, 0, 0, 1, 0x3f, 0x80, 0, 0},
        f64[] = {0, 0, 0x0e, 1, 0, 0, 0, 1, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0}, none[] = {0, 0, 8, 1, 0, 0, 0, 0};
    eg_tensor *x = eg_load_idx(written("a.idx", idx8, sizeof idx8));
    CHECK_SHAPE(x, 3, 2);
    CHECK_DTYPE(x, EG_UINT8);
    CHECK_TENSOR(x, 0, 1, 2, 3, 4, 5, 255);
    CHECK_STR(eg_device_of(x), test_device());
    x = eg_load_idx(written("a.idx", i8, sizeof i8));
    CHECK_DTYPE(x, EG_INT32);
    CHECK_TENSOR(x, 0, -1, 2);
    x = eg_load_idx(written("a.idx", i16, sizeof i16));
    CHECK_DTYPE(x, EG_INT32);
    CHECK_TENSOR(x, 0, -2, 256);
    CHECK_TENSOR(eg_load_idx(written("a.idx", i32, sizeof i32)), 0, 65536);
    CHECK_TENSOR(eg_load_idx(written("a.idx", f32, sizeof f32)), 0, 1);
    CHECK_TENSOR(eg_load_idx(written("a.idx", f64, sizeof f64)), 0, -1);
    CHECK_SHAPE(eg_load_idx(written("a.idx", none, sizeof none)), 0);
}
TEST(broken_idx_files) {
    unsigned char b[40];
    for (size_t n = 0; n < sizeof idx8; n++)
        CHECK_ERROR(eg_load_idx(written("b.idx", idx8, n)), EG_ERROR_FILE, "b.idx: ");
    CHECK_ERROR(eg_load_idx(written("b.idx", idx8, 17)), EG_ERROR_FILE,
                "byte 12: truncated: shape [3, 2] needs 6 bytes, but at most 5 follow");
    memcpy(b, idx8, sizeof idx8);
    b[18] = 0;
    CHECK_ERROR(eg_load_idx(written("b.idx", b, 19)), EG_ERROR_FILE, "byte 18: more follows after the last element");
    b[2] = 7;
    CHECK_ERROR(eg_load_idx(written("b.idx", b, 18)), EG_ERROR_FILE, "IDX type 0x07");
    b[2] = 8;
    b[3] = 9;
    CHECK_ERROR(eg_load_idx(written("b.idx", b, 18)), EG_ERROR_FILE, "rank 9");
    b[3] = 2;
    b[0] = 1;
    CHECK_ERROR(eg_load_idx(written("b.idx", b, 18)), EG_ERROR_FILE, "neither a .npy nor an IDX file");
    memset(b, 0xff, sizeof b);                                // 2^256 elements
    b[0] = b[1] = 0;
    b[2] = 14;
    b[3] = 8;
    eg_memory_reset_peak();
    int64_t before = eg_memory().peak_bytes;
    CHECK_ERROR(eg_load_idx(written("b.idx", b, 36)), EG_ERROR_FILE, "more bytes than 64 bits count");
    b[3] = 1;
    CHECK_ERROR(eg_load_idx(written("b.idx", b, 36)), EG_ERROR_FILE, "truncated");
    CHECK(eg_memory().peak_bytes - before < 1 << 19);         // what the header says is not believed
    eg_save_npy(eg_zeros(EG_FLOAT32, EG_SHAPE(2)), test_temp("c.npy"));
    CHECK_ERROR(eg_load_idx(test_temp("c.npy")), EG_ERROR_FILE, "eg_load_npy reads it");
}
TEST(arrays_are_read_row_by_row) {
    const char *paths[2];
    float rows[12];
    for (int i = 0; i < 12; i++) rows[i] = (float)i / 2;
    paths[0] = written("x.idx", idx8, sizeof idx8);
    paths[1] = test_temp("y.npy");
    eg_save_npy(eg_from_data(EG_FLOAT32, EG_SHAPE(3, 2, 2), rows), paths[1]);
    eg_dataset *d = eg_dataset_from_files(paths, 2);
    CHECK_INT(eg_dataset_cardinality(d), 3);
    CHECK_INT(eg_dataset_spec(d, 1).shape.rank, 2);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    eg_iterator_next(it, out);
    CHECK_TENSOR(out[0], 0, 1, 2);
    CHECK_TENSOR(out[1], 0, 0, .5, 1, 1.5);
    eg_tensor *position = eg_iterator_position(it);
    eg_iterator_next(it, out);
    CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
    CHECK_TENSOR(out[0], 0, 5, 255);
    CHECK_INT(eg_iterator_next(it, out), EG_END_OF_SEQUENCE);
    CHECK(eg_iterator_restore(it, position));                 // by a seek
    eg_iterator_next(it, out);
    CHECK_TENSOR(out[1], 0, 2, 2.5, 3, 3.5);
    eg_iterator_release(it);
    d = eg_dataset_batch(eg_dataset_shuffle(eg_dataset_repeat(d, 5), 4), 15);
    CHECK_SHAPE(first_of(d), 15, 2);

    eg_save_npy(eg_zeros(EG_FLOAT32, EG_SHAPE(4)), paths[1]);
    CHECK_ERROR(eg_dataset_from_files(paths, 2), EG_ERROR_SHAPE, "lengths differ: ");
    CHECK_ERROR(eg_dataset_from_files(paths, 2), EG_ERROR_SHAPE, "y.npy has 4");
    eg_save_npy(eg_scalar(1), paths[1]);
    CHECK_ERROR(eg_dataset_from_files(paths + 1, 1), EG_ERROR_FILE, "a scalar, which has no rows");
    CHECK_ERROR(eg_dataset_from_files(paths, 9), EG_ERROR_ARGUMENT, "9 files");
    d = eg_dataset_from_files(paths, 1);                      // and what changes between its header and its rows
    unsigned char b[sizeof idx8];
    memcpy(b, idx8, sizeof b);
    b[7] = 2;
    b[11] = 3;
    written("x.idx", b, sizeof b);
    CHECK_ERROR(first_of(d), EG_ERROR_FILE, "another array than when the dataset was made: now uint8 [2, 3]");
}

// .npz files: every array, or one by its name, row by row from where it is.
static void check_npz(const char *path) {
    char both[2][5000];
    const char *paths[2] = { both[0], both[1] };
    for (int twice = 0; twice < 2; twice++) {                 // the file, then its two arrays by name
        snprintf(both[0], sizeof both[0], twice ? "%.4900s/x" : "%.4900s", path);
        snprintf(both[1], sizeof both[1], "%.4900s/deep/y", path);
        eg_dataset *d = eg_dataset_from_files(paths, 1 + twice);
        REQUIRE(d);
        CHECK_INT(eg_dataset_components(d), 2);
        CHECK_INT(eg_dataset_cardinality(d), 5);
        CHECK(eg_dataset_spec(d, 0).dtype == EG_FLOAT32 && eg_dataset_spec(d, 0).shape.rank == 1 &&
              eg_dataset_spec(d, 1).dtype == EG_INT64);
        eg_iterator *it = eg_iterator_new(d);
        eg_tensor *out[EG_MAX_COMPONENTS], *position = NULL;
        for (int i = 0; i < 5; i++) {
            CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
            CHECK_TENSOR(out[0], 0, 2 * i, 2 * i + 1);
            CHECK_INT(eg_item_int(out[1]), 10 * i);
            if (i == 2) position = eg_iterator_position(it);
        }
        CHECK_INT(eg_iterator_next(it, out), EG_END_OF_SEQUENCE);
        CHECK(eg_iterator_restore(it, position));
        CHECK_INT(eg_iterator_next(it, out), EG_NEXT);
        CHECK_TENSOR(out[0], 0, 6, 7);
        CHECK_INT(eg_item_int(out[1]), 30);
        CHECK(eg_iterator_next(it, out) == EG_NEXT && eg_iterator_next(it, out) == EG_END_OF_SEQUENCE);
        eg_iterator_release(it);
        CHECK_SHAPE(first_of(eg_dataset_batch(eg_dataset_shuffle(eg_dataset_repeat(d, 3), 4), 15)), 15, 2);
    }
}
static eg_archive *rows_of_two(void) {
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "x", eg_reshape(eg_range(EG_FLOAT32, 0, 10, 1), EG_SHAPE(5, 2))) &&
          eg_archive_add(a, "deep/y", eg_range(EG_INT64, 0, 50, 10)) && eg_archive_set_text(a, "note", "is no array"));
    return a;
}
TEST(npz_files_are_read_row_by_row) {
    char path[5000], inner[5000];
    const char *p = path;
    eg_archive *a = rows_of_two();
    snprintf(path, sizeof path, "%s", test_temp("rows.npz"));
    CHECK(eg_save_npz(a, path));
    check_npz(path);
    snprintf(inner, sizeof inner, "%.4900s/z", path);
    p = inner;
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE,
                "rows.npz/z: there is no array 'z' in the .npz file; it has 3, first 'x'");
    CHECK(eg_archive_add(a, "longer", eg_zeros(EG_FLOAT32, EG_SHAPE(6))) && eg_save_npz(a, path));
    p = path;
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_SHAPE, "lengths differ: ");
    CHECK_CONTAINS((eg_dataset_from_files(&p, 1), eg_error_message()), "rows.npz/longer has 6");
    eg_error_clear();
    for (int i = 0; i < 9; i++) {
        snprintf(inner, sizeof inner, "more %d", i);
        CHECK(eg_archive_add(a, inner, eg_zeros(EG_FLOAT32, EG_SHAPE(5))));
    }
    CHECK(eg_save_npz(a, path));
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE,
                "rows.npz: more than 8 arrays in all; name those that are wanted, as in \"data.npz/x\"");
    eg_archive_release(a);
    snprintf(path, sizeof path, "%s", test_temp("folder.npz/rows.npz"));      // a folder may be called so
    a = rows_of_two();
    CHECK(eg_save_npz(a, path));
    eg_archive_release(a);
    check_npz(path);
    unsigned char bytes[3000];
    FILE *f = fopen(path, "rb");
    REQUIRE(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    bytes[30 + 5 + 128 + 39] ^= 1;                            // in the last row of x
    p = written("bad.npz", bytes, n);
    CHECK_INT(gather(eg_dataset_take(eg_dataset_from_files(&p, 1), 5), 1), EG_END_OF_SEQUENCE);
    CHECK_ERROR(gather(eg_dataset_from_files(&p, 1), 1), EG_ERROR_FILE,
                "bad.npz/x: member 'x' is corrupted: its checksum is");
    p = written("bad.npz", bytes, n / 2);
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "probably truncated");
}
TEST(arrays_that_have_no_rows_to_read) {
    static const char fortran[] =
        "\x93NUMPY\1\0\x38\0{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}\0\1\2\3\4\5\6";
    char path[5000], member[5000];
    const char *p = path;
    char bytes[80];
    memcpy(bytes, fortran, 10);
    bytes[8] = (char)strlen(fortran + 10);
    memcpy(bytes + 10, fortran + 10, sizeof fortran - 11);
    size_t header = 10 + strlen(fortran + 10);
    memcpy(bytes + header, "\1\2\3\4\5\6", 6);
    snprintf(path, sizeof path, "%s", written("columns.npy", bytes, header + 6));
    CHECK_TENSOR(eg_load_npy(path), 0, 1, 3, 5, 2, 4, 6);
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "in Fortran's order, whose rows are not together");
    char *at = strstr(bytes + 10, "(2, 3)");
    memcpy(at, "(6,)  ", 6);                                 // a vector has one order
    snprintf(path, sizeof path, "%s", written("columns.npy", bytes, header + 6));
    CHECK_INT(gather(eg_dataset_from_files(&p, 1), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "\1|\2|\3|\4|\5|\6|");
    eg_archive *a = eg_archive_new();
    snprintf(path, sizeof path, "%s", test_temp("nothing.npz"));
    CHECK(eg_save_npz(a, path));
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "nothing.npz: a .npz file without arrays");
    CHECK_ERROR(eg_load_idx(path), EG_ERROR_FILE, "there is no array '' in the .npz file; it has 0");
    CHECK(eg_archive_set_text(a, "only", "texts") && eg_save_npz(a, path));
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "nothing.npz: a .npz file without arrays");
    CHECK(eg_archive_add(a, "s", 3) && eg_archive_add(a, "v", eg_range(EG_FLOAT32, 0, 3, 1)) && eg_save_npz(a, path));
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "nothing.npz/s: a scalar, which has no rows");
    snprintf(member, sizeof member, "%.4900s/v", path);
    p = member;
    eg_dataset *d = eg_dataset_from_files(&p, 1);
    CHECK_INT(eg_dataset_cardinality(d), 3);
    CHECK_TENSOR(first_of(d), 0, 0);
    CHECK_ERROR(eg_load_idx(member), EG_ERROR_FILE, "a .npy file; eg_load_npy reads it");
    eg_archive_release(a);
    p = "no/such.npz";
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "no/such.npz: cannot be opened: ");
    p = "no/such.npz/x";
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "no/such.npz: cannot be opened: ");
    p = "such.npzip";                                         // no .npz file's name
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_FILE, "such.npzip: cannot be opened: ");
    p = NULL;
    CHECK_ERROR(eg_dataset_from_files(&p, 1), EG_ERROR_ARGUMENT, "path 0 is NULL");
    p = written("magic.txt", "\x1f", 1);  // what begins as a gzip file does is one from its third byte on
    CHECK_INT(gather(file_of(eg_dataset_text_lines, p), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "\x1f|");
    p = written("magic.txt", "\x1f\x8b\n\x08", 4);
    CHECK_INT(gather(file_of(eg_dataset_text_lines, p), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "\x1f\x8b|\x08|");
    p = written("magic.txt", "\x1f\x8a\x08", 3);
    CHECK_INT(gather(file_of(eg_dataset_text_lines, p), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "\x1f\x8a\x08|");
}
#ifdef EAGER_ZLIB
#include <zlib.h>
// The same .npz file with its members deflated: what numpy.savez_compressed makes.
static const char *compressed(const char *name, eg_archive *a) {
    unsigned char list[400], end[22] = { 'P', 'K', 5, 6 };
    size_t listed = 0, at = 0;
    int count = 0;
    FILE *f = fopen(test_temp(name), "wb");
    for (int64_t i = 0; i < eg_archive_count(a); i++, count++) {
        char member[64];
        const char *npy = test_temp("member.npy");
        size_t length = (size_t)snprintf(member, sizeof member, "%s.npy", eg_archive_name(a, i)), size = 0;
        CHECK(eg_save_npy(eg_archive_get(a, eg_archive_name(a, i)), npy));
        FILE *in = fopen(npy, "rb");
        size_t capacity = (size_t)1 << 24, room = compressBound(capacity);
        unsigned char *data = (unsigned char *)malloc(capacity), *packed = (unsigned char *)malloc(room);
        if (in) { size = fread(data, 1, capacity, in); fclose(in); }
        z_stream z;
        memset(&z, 0, sizeof z);
        CHECK(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        z.next_in = data;
        z.avail_in = (uInt)size;
        z.next_out = packed;
        z.avail_out = (uInt)room;
        CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
        unsigned char head[46] = { 'P', 'K', 1, 2, 20, 0, 20, 0, 0, 0, 8 };
        unsigned long numbers[3] = { crc32(0, data, (uInt)size), z.total_out, (unsigned long)size };
        for (int k = 0; k < 12; k++) head[16 + k] = (unsigned char)(numbers[k / 4] >> 8 * (k % 4));
        head[28] = (unsigned char)length;
        for (int k = 0; k < 4; k++) head[42 + k] = (unsigned char)(at >> 8 * k);
        unsigned char local[30] = { 'P', 'K', 3, 4 };
        memcpy(local + 4, head + 6, 26);                      // the same, from the version on
        at += fwrite(local, 1, 30, f) + fwrite(member, 1, length, f) + fwrite(packed, 1, z.total_out, f);
        memcpy(list + listed, head, 46);
        memcpy(list + listed + 46, member, length);
        listed += 46 + length;
        deflateEnd(&z);
        free(data);
        free(packed);
    }
    end[8] = end[10] = (unsigned char)count;
    for (int k = 0; k < 4; k++) {
        end[12 + k] = (unsigned char)(listed >> 8 * k);
        end[16 + k] = (unsigned char)(at >> 8 * k);
    }
    fwrite(list, 1, listed, f);
    fwrite(end, 1, 22, f);
    fclose(f);
    return test_temp(name);
}
TEST(compressed_npz_files_are_read_row_by_row) {
    char path[5000];
    eg_archive *a = rows_of_two();
    snprintf(path, sizeof path, "%s", compressed("packed.npz", a));
    check_npz(path);
    eg_archive *b = eg_load_npz(path);
    CHECK_SAME(eg_archive_get(b, "x"), eg_archive_get(a, "x"), 0);
    eg_archive_release(a);
    eg_archive_release(b);
    a = eg_archive_new();                                     // larger than what it may need
    CHECK(eg_archive_add(a, "x", eg_reshape(eg_range(EG_FLOAT32, 0, 1 << 20, 1), EG_SHAPE(1 << 12, 1 << 8))));
    for (int packed = 0; packed < 2; packed++) {
        const char *p = path;
        if (packed) compressed("packed.npz", a);
        else CHECK(eg_save_npz(a, path));
        eg_memory_reset_peak();
        int64_t before = eg_memory().live_bytes;
        eg_dataset *d = eg_dataset_from_files(&p, 1);
        eg_iterator *it = eg_iterator_new(d);
        int64_t n = 0;
        eg_status status;
        for (;; n++) {
            EG_SCOPE;
            eg_tensor *out[EG_MAX_COMPONENTS];
            if ((status = eg_iterator_next(it, out)) != EG_NEXT) break;
            if (n == 4095) CHECK_NEAR(eg_item(eg_reduce_max(out[0])), (1 << 20) - 1, 0);
        }
        CHECK_INT(status, EG_END_OF_SEQUENCE);
        CHECK_INT(n, 4096);
#ifdef EAGER_DEBUG
        (void)before;                                         // handles of the dead are kept for a while
#else
        CHECK(eg_memory().peak_bytes - before < 1 << 18);
#endif
        eg_iterator_release(it);
        eg_dataset_release(d);
    }
    eg_archive_release(a);
}
TEST(gzip_files_are_read) {
    const char *path = test_temp("z.gz");
    gzFile z = gzopen(path, "wb");
    gzwrite(z, idx8, sizeof idx8);
    gzclose(z);
    CHECK_TENSOR(eg_load_idx(path), 0, 1, 2, 3, 4, 5, 255);
    eg_dataset *d = eg_dataset_skip(eg_dataset_from_files(&path, 1), 2);
    CHECK_TENSOR(first_of(d), 0, 5, 255);
    z = gzopen(path, "wb");
    gzwrite(z, idx8, sizeof idx8);
    gzwrite(z, "x", 1);
    gzclose(z);
    CHECK_ERROR(eg_load_idx(path), EG_ERROR_FILE, "more follows");
    unsigned char b[12] = {0, 0, 8, 2, 0, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff};
    z = gzopen(path, "wb");
    gzwrite(z, b, sizeof b);
    gzclose(z);
    CHECK_ERROR(eg_load_idx(path), EG_ERROR_FILE, "truncated");
    z = gzopen(path, "wb");
    gzprintf(z, "l1\nl2");
    gzclose(z);
    CHECK_INT(gather(file_of(eg_dataset_text_lines, path), 1), EG_END_OF_SEQUENCE);
    CHECK_STR(gathered, "l1|l2|");
}
// A gzip file that is cut or spoiled is an error where its bytes end, in the midst of a line, a row or a record, too.
TEST(gzip_files_that_break) {
    static char text[30000];
    static unsigned char packed[40000];
    const char *path = test_temp("breaks.gz");
    for (size_t i = 0; i < sizeof text; i++) text[i] = i % 61 == 60 ? '\n' : (char)('0' + i * i / 7 % 10);
    gzFile z = gzopen(path, "wb");
    gzwrite(z, text, sizeof text);
    gzclose(z);
    FILE *f = fopen(path, "rb");
    size_t n = fread(packed, 1, sizeof packed, f);
    fclose(f);
    CHECK_INT(gather(eg_dataset_csv(&path, 1, .components = { { .columns = "0", .text = true } }), 1),
              EG_END_OF_SEQUENCE);
    for (int k = 0; k < 12; k++) {
        size_t to = k < 10 ? n * (size_t)(k + 1) / 11 : n;
        if (k == 10) packed[n / 2] ^= 0xff;
        if (k == 11) { packed[n / 2] ^= 0xff; packed[n - 6] ^= 1; }        // the checksum
        path = written("breaks.gz", packed, to);
        CHECK_ERROR(gather(eg_dataset_csv(&path, 1, .components = { { .columns = "0", .text = true } }), 1),
                    EG_ERROR_FILE, "broken gzip data: ");
        CHECK_ERROR(gather(file_of(eg_dataset_text_lines, path), 1), EG_ERROR_FILE, "broken gzip data: ");
        CHECK_ERROR(gather(eg_dataset_skip(eg_dataset_csv(&path, 1, .header = true,
                                                          .components = { { .columns = "0", .text = true } }), 600), 1),
                    EG_ERROR_FILE, "broken gzip data: ");
    }
    gzFile rec = gzopen(path, "wb");                          // records likewise
    for (int i = 0; i < 500; i++) gzwrite(rec, abc, sizeof abc);
    gzclose(rec);
    CHECK_INT(gather(eg_dataset_take(file_of(eg_dataset_tfrecord, path), 400), 1), EG_END_OF_SEQUENCE);
    f = fopen(path, "rb");
    n = fread(packed, 1, sizeof packed, f);
    fclose(f);
    path = written("breaks.gz", packed, n - 9);
    CHECK_ERROR(gather(file_of(eg_dataset_tfrecord, path), 1), EG_ERROR_FILE, "broken gzip data: ");
}
#endif
TEST(real_digits) {
    const char *path = test_data("mnist/t10k-images-idx3-ubyte");
#ifdef EAGER_ZLIB
    if (!path) path = test_data("mnist/t10k-images-idx3-ubyte.gz");
#endif
    if (!path) SKIP("EAGER_DATA names no folder with mnist in it, or it is compressed and this program has no zlib");
    eg_dataset *d = eg_dataset_from_files(&path, 1);
    CHECK(eg_dataset_cardinality(d) > 0);
    CHECK_SHAPE(first_of(eg_dataset_batch(d, 7)), 7, 28, 28);
}

// ---- streaming -----------------------------------------------------------------------------------------------------

TEST(a_large_file_needs_constant_memory) {
    const char *path = test_temp("large.csv");
    FILE *f = fopen(path, "wb");
    int rows = 60000 / (test_share > 1 ? 10 : 1);
    for (int i = 0; i < rows; i++) fprintf(f, "%d,%d,0.125,abc\n", i, i % 7);
    fclose(f);
    eg_dataset *d = eg_dataset_prefetch(eg_dataset_batch(
            eg_dataset_shuffle(eg_dataset_csv(&path, 1, .components = {{.columns = "0-2"}}), 500, .seed = 1), 64), 2);
    eg_iterator *it = eg_iterator_new(d);
    int64_t n = 0, early = 0;
    double sum = 0;
    for (eg_status status = EG_NEXT; status == EG_NEXT;) {
        EG_SCOPE;
        eg_tensor *out[EG_MAX_COMPONENTS];
        status = eg_iterator_next(it, out);
        if (status != EG_NEXT) break;
        sum += eg_item(eg_reduce_sum(eg_cast(out[0], EG_FLOAT64)));
        if (++n == 50) { early = eg_memory().live_bytes; eg_memory_reset_peak(); }
    }
    CHECK_INT(n, (rows + 63) / 64);
    double want = (double)rows * (rows - 1) / 2 + rows * .125;
    for (int i = 0; i < rows; i++) want += i % 7;
    CHECK_NEAR(sum, want, 1e-9);
    int64_t most = early + (1 << 19);
#ifdef EAGER_DEBUG
    most += 2 * 4096 * 512;                             // it keeps the handles of the dead for a while, 4096 a thread
#endif
    CHECK(eg_memory().live_bytes < most);
    eg_iterator_release(it);
    eg_dataset_release(d);
}

// ---- broken files --------------------------------------------------------------------------------------------------

static uint32_t dice = 1;
static uint32_t roll(uint32_t n) {
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice % n;
}
static size_t mutate(const unsigned char *from, size_t n, unsigned char *to) {
    memcpy(to, from, n);
    for (uint32_t k = 1 + roll(3); k > 0 && n > 0; k--)
        switch (roll(4)) {
            case 0: to[roll((uint32_t)n)] ^= (unsigned char)(1u << roll(8)); break;
            case 1: to[roll((uint32_t)n)] = (unsigned char)roll(256); break;
            case 2: n = roll((uint32_t)n + 1); break;         // cut
            default: {                                        // a piece again
                size_t a = roll((uint32_t)n), b = roll((uint32_t)n), m = n - (a > b ? a : b);
                memmove(to + a, to + b, m);
            }
        }
    return n;
}
// Whatever a file holds: elements, then the end or an error, no more memory than it could hold, nothing left behind.
static void broken(const unsigned char *seed, size_t n, const char *name,
                   eg_dataset *(*make)(const char *const *, int)) {
    unsigned char bytes[512];
    int errors = 0, rounds = 1000 / test_share;
    for (int i = 0; i < rounds; i++) {
        size_t size = mutate(seed, n, bytes);
        const char *path = written(name, bytes, size);
        eg_memory_reset_peak();
        int64_t before = eg_memory().live_bytes;
        eg_status status = gather(make(&path, 1), 1);
        CHECK(status == EG_END_OF_SEQUENCE ? eg_error() == EG_OK : eg_error() == EG_ERROR_FILE);
        CHECK(eg_memory().peak_bytes - before < 1 << 20);
        errors += status == EG_FAILED;
        eg_error_clear();
#ifndef EAGER_DEBUG                                           // there, dead handles are kept for a while
        CHECK_INT(eg_memory().live_bytes, before);
#endif
        if (test_fails) return;
    }
    CHECK(errors > rounds / 20);
}
static eg_dataset *csv_of(const char *const *paths, int n) {
    return eg_dataset_csv(paths, n, .header = true,
                          .components = {{.columns = "b", .text = true}, {.columns = "a, c", .missing = 3}});
}
TEST(broken_csv_files) {
    const char text[] = "a,b,c\r\n1,\"x \"\"y\"\"\",3\n,\"l1\nl2\",-2.5e3\n4,,6";
    broken((const unsigned char *)text, sizeof text - 1, "broken.csv", csv_of);
}
TEST(broken_tfrecord_files) {
    unsigned char two[38];
    memcpy(two, abc, 19);
    memcpy(two + 19, abc, 19);
    broken(two, sizeof two, "broken.tfrecord", eg_dataset_tfrecord);
}
// a broken header may well announce millions of empty rows
static eg_dataset *arrays_of(const char *const *paths, int n) {
    eg_dataset *d = eg_dataset_from_files(paths, n);
    return d ? eg_dataset_take(d, 100) : NULL;
}
TEST(broken_idx_streams) { broken(idx8, sizeof idx8, "broken.idx", arrays_of); }
TEST(broken_npy_streams) {
    unsigned char bytes[512];
    const char *path = test_temp("seed.npy");
    eg_save_npy(eg_range(EG_INT32, 0, 12, 1), path);
    FILE *f = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    broken(bytes, n, "broken.npy", arrays_of);
}
TEST(broken_npz_streams) {
    unsigned char bytes[512];
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "x", eg_range(EG_INT32, 0, 4, 1)) && eg_save_npz(a, test_temp("seed.npz")));
    eg_archive_release(a);
    FILE *f = fopen(test_temp("seed.npz"), "rb");
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    broken(bytes, n, "broken.npz", arrays_of);
}
