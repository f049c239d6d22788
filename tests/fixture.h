// Reads the reference values that fixtures.py writes (that script says what the rows mean).
//
//   fixture_file f;
//   if (!fixture_open(&f, "tests/fixtures/numpy.txt")) ...             // f.error says why
//   f.only = "matmul";                                                 // if just the cases of one op are wanted
//   while (fixture_next(&f)) {
//       double axis = fixture_attr(&f, "axis", 0, -1);                 // the last argument where there is none
//       const fixture_array *x = fixture_get(&f, "in", 0);             // NULL where there is none
//   }
//   if (f.error[0]) ...                                                // a file that ends early or says nonsense
//   fixture_close(&f);
//
// Names, words and arrays are valid until the next fixture_next or fixture_close.
#ifndef FIXTURE_H
#define FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIXTURE_RANK = 8, FIXTURE_ARRAYS = 64, FIXTURE_ATTRS = 16, FIXTURE_NUMBERS = 64 };

typedef struct {
    const char *kind, *dtype;          // "in" "out" "up" "grad" "up2" "grad2"; "float32" …
    int index, rank;
    int64_t dims[FIXTURE_RANK], count;
    double *values;                    // count of them
    int64_t *ints;                     // the same, exact where the dtype is an integer or bool; NULL for floats
} fixture_array;

typedef struct {
    const char *name, *word;           // word: NULL where the option is numbers
    int count;
    double numbers[FIXTURE_NUMBERS];
} fixture_option;

typedef struct {
    const char *name;                  // "matmul/transpose_b"
    char op[64];                       // "matmul"
    int array_count, attr_count;
    fixture_array arrays[FIXTURE_ARRAYS];
    fixture_option attrs[FIXTURE_ATTRS];
    const char *only;                  // the op whose cases are read; NULL: all
    char error[160];
    char *text, *at;                   // the whole file; the first line not yet read
} fixture_file;

static inline bool fixture_fail(fixture_file *f, const char *what) {
    snprintf(f->error, sizeof f->error, "%s (in case %s)", what, f->name ? f->name : "none");
    return false;
}

static inline void fixture_drop_case(fixture_file *f) {
    for (int i = 0; i < f->array_count; i++) { free(f->arrays[i].values); free(f->arrays[i].ints); }
    f->array_count = f->attr_count = 0;
    f->name = NULL;
}

static inline void fixture_close(fixture_file *f) {
    fixture_drop_case(f);
    free(f->text);
    f->text = f->at = NULL;
}

static inline bool fixture_open(fixture_file *f, const char *path) {
    memset(f, 0, sizeof *f);
    FILE *file = fopen(path, "rb");
    if (!file) { snprintf(f->error, sizeof f->error, "%.100s: cannot be opened", path); return false; }
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    rewind(file);
    f->text = size >= 0 ? (char *)malloc((size_t)size + 1) : NULL;
    bool whole = f->text && fread(f->text, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (!whole) { fixture_close(f); snprintf(f->error, sizeof f->error, "%.100s: cannot be read", path); return false; }
    f->text[size] = 0;
    f->at = f->text;
    return true;
}

// The next word of a line, ended in place; NULL at the line's end.
static inline char *fixture_word(char **line) {
    char *word = *line + strspn(*line, " ");
    if (!*word) return NULL;
    *line = word + strcspn(word, " ");
    if (**line) *(*line)++ = 0;
    return word;
}

static inline bool fixture_read_array(fixture_file *f, const char *kind, char *line) {
    if (f->array_count == FIXTURE_ARRAYS) return fixture_fail(f, "too many arrays");
    fixture_array *a = &f->arrays[f->array_count];
    memset(a, 0, sizeof *a);
    char *index = fixture_word(&line), *dtype = fixture_word(&line), *rank = fixture_word(&line);
    if (!rank) return fixture_fail(f, "a row ends before its rank");
    a->kind = kind, a->dtype = dtype;
    a->index = atoi(index), a->rank = atoi(rank), a->count = 1;
    if (a->rank < 0 || a->rank > FIXTURE_RANK) return fixture_fail(f, "a rank out of range");
    for (int i = 0; i < a->rank; i++) {
        char *dim = fixture_word(&line);
        if (!dim) return fixture_fail(f, "a row ends within its dimensions");
        a->dims[i] = atoll(dim);
        if (a->dims[i] < 0 || a->dims[i] > 1000000 || a->count > 1000000)
            return fixture_fail(f, "a dimension out of range");
        a->count *= a->dims[i];
    }
    bool whole = !strstr(dtype, "float");
    f->array_count++;
    a->values = (double *)malloc(((size_t)a->count + 1) * sizeof *a->values);
    a->ints = whole ? (int64_t *)malloc(((size_t)a->count + 1) * sizeof *a->ints) : NULL;
    if (!a->values || (whole && !a->ints)) return fixture_fail(f, "out of memory");
    for (int64_t i = 0; i < a->count; i++) {
        char *value = fixture_word(&line);
        if (!value) return fixture_fail(f, "a row ends within its values");
        if (whole) a->values[i] = (double)(a->ints[i] = strtoll(value, NULL, 10));
        else a->values[i] = strtod(value, NULL);
    }
    return fixture_word(&line) ? fixture_fail(f, "a row has too many values") : true;
}

static inline bool fixture_read_option(fixture_file *f, bool word, char *line) {
    if (f->attr_count == FIXTURE_ATTRS) return fixture_fail(f, "too many options");
    fixture_option *o = &f->attrs[f->attr_count++];
    memset(o, 0, sizeof *o);
    o->name = fixture_word(&line);
    if (!o->name) return fixture_fail(f, "an option without a name");
    if (word) return (o->word = fixture_word(&line)) != NULL || fixture_fail(f, "an option without its word");
    for (char *number; (number = fixture_word(&line)) != NULL;) {
        if (o->count == FIXTURE_NUMBERS) return fixture_fail(f, "an option of too many numbers");
        o->numbers[o->count++] = strtod(number, NULL);
    }
    return true;
}

// Reads the next case into f; false at the end of the file and on a fault (f->error).
static inline bool fixture_next(fixture_file *f) {
    bool skip = false;
    fixture_drop_case(f);
    while (!f->error[0] && *f->at) {
        char *line = f->at, *end = line + strcspn(line, "\n");
        f->at = *end ? end + 1 : end;
        *end = 0;
        if (end > line && end[-1] == '\r') end[-1] = 0;
        char *kind = fixture_word(&line);
        if (!kind || kind[0] == '#') continue;
        if (strcmp(kind, "case") == 0) {
            if (f->name) return fixture_fail(f, "a case without its end");
            f->name = fixture_word(&line);
            if (!f->name) return fixture_fail(f, "a case without a name");
            snprintf(f->op, sizeof f->op, "%.*s", (int)strcspn(f->name, "/"), f->name);
            skip = f->only && strcmp(f->op, f->only) != 0;
        } else if (!f->name) return fixture_fail(f, "a row outside of a case");
        else if (strcmp(kind, "end") == 0) {
            if (!skip) return true;
            f->name = NULL;
        } else if (skip) continue;
        else if (strcmp(kind, "attr") == 0 || strcmp(kind, "text") == 0) {
            if (!fixture_read_option(f, kind[0] == 't', line)) return false;
        } else if (!fixture_read_array(f, kind, line)) return false;
    }
    return f->name && !f->error[0] ? fixture_fail(f, "the file ends within a case") : false;
}

static inline const fixture_array *fixture_get(const fixture_file *f, const char *kind, int index) {
    for (int i = 0; i < f->array_count; i++)
        if (f->arrays[i].index == index && strcmp(f->arrays[i].kind, kind) == 0) return &f->arrays[i];
    return NULL;
}

// How many arrays of a kind there are.
static inline int fixture_count(const fixture_file *f, const char *kind) {
    int n = 0;
    for (int i = 0; i < f->array_count; i++) n += strcmp(f->arrays[i].kind, kind) == 0;
    return n;
}

static inline const fixture_option *fixture_find(const fixture_file *f, const char *name) {
    for (int i = 0; i < f->attr_count; i++)
        if (strcmp(f->attrs[i].name, name) == 0) return &f->attrs[i];
    return NULL;
}

static inline double fixture_attr(const fixture_file *f, const char *name, int i, double otherwise) {
    const fixture_option *o = fixture_find(f, name);
    return o && i < o->count ? o->numbers[i] : otherwise;
}

// How many numbers an option has; -1 where there is no such option.
static inline int fixture_attr_count(const fixture_file *f, const char *name) {
    const fixture_option *o = fixture_find(f, name);
    return o ? o->count : -1;
}

static inline const char *fixture_text(const fixture_file *f, const char *name, const char *otherwise) {
    const fixture_option *o = fixture_find(f, name);
    return o && o->word ? o->word : otherwise;
}

// Uniforms and normals from splitmix64, the same that class Stream of fixtures.py draws; k is the last element drawn.
static inline double fixture_uniform(uint64_t *k) {
    uint64_t z = ++*k * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}
static inline double fixture_normal(uint64_t *k) {
    double u = fixture_uniform(k), v = fixture_uniform(k);
    return sqrt(-2 * log1p(-u)) * cos(2 * 3.141592653589793 * v);
}

#endif
