// Programs, in a copy of the library: the formula of every elementwise row and gradient as code (chapter 22) that the
// interpreters run (24), held bit by bit against loops that the compiler makes here of the same table: every dtype and
// instruction set, every length around a pass, operands that are one element, special values. The rules of optimizers
// (29) are held against their rows likewise. Any NaN stands for any other.
#define _POSIX_C_SOURCE 200809L      // setenv
#undef EAGER_CUDA
#undef TEST_CUDA                     // the GPUs belong to the library, not to this copy
#define EAGER_STATIC
#define EAGER_CORE
#if defined(__x86_64__)
#define EGI_WIDE_PROGRAMS 1         // also without -O, as this file is compiled
#endif
#define EAGER_IMPLEMENTATION
#include "test.h"
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif

// ---- the loops: TA is the type of operand a, TO that of the result. Bit i of scalars: operand i is one element.

typedef void loop(int64_t n, const void *const *p, unsigned scalars, void *out);
#define LOOP(id, T, TA, TO, formula) LOOP_IN(T, id, T, TA, TO, formula)
// Computed in the type C: narrow integers in int64, which wraps around when it is stored.
#define LOOP_IN(C, id, T, TA, TO, formula) \
    static void id(int64_t n, const void *const *p, unsigned scalars, void *out) { \
        for (int64_t i = 0; i < n; i++) { \
            const C a = (C)((const TA *)p[0])[scalars & 1 ? 0 : i]; \
            const C b = ((const T *)p[1])[scalars & 2 ? 0 : i], c = ((const T *)p[2])[scalars & 4 ? 0 : i]; \
            const C y = ((const T *)p[3])[scalars & 8 ? 0 : i], g = ((const T *)p[4])[scalars & 16 ? 0 : i]; \
            (void)a; (void)b; (void)c; (void)y; (void)g; \
            ((TO *)out)[i] = (TO)(formula); \
        } \
    }
#define NUMBERS_OF_F(id, T, f) LOOP(id, T, T, T, f)
#define NUMBERS_OF_M NUMBERS_OF_F
#define NUMBERS_OF_N NUMBERS_OF_F
#define NUMBERS_OF_S NUMBERS_OF_F
#define NUMBERS_OF_W(id, T, f) LOOP(id, T, uint8_t, T, f)
#define NUMBERS_OF_C(id, T, f) LOOP(id, T, T, uint8_t, f)
#define NUMBERS_OF_E NUMBERS_OF_C
#define NUMBERS_OF_P NUMBERS_OF_C
#define NUMBERS_OF_B(id, T, f)
#define NO_LOOP(id, T, f)
#define FLOATS1(kind, name, f, d0) NUMBERS_OF_##kind(ID(0, name), FLOAT, f) NUMBERS_OF_##kind(ID(1, name), FLOAT, d0)
#define FLOATS_ND(kind, name, f) NUMBERS_OF_##kind(ID(0, name), FLOAT, f)
#define FLOATS2(kind, name, f, d0, d1) FLOATS1(kind, name, f, d0) NUMBERS_OF_##kind(ID(2, name), FLOAT, d1)
#define FLOATS3(kind, name, f, d0, d1, d2) FLOATS2(kind, name, f, d0, d1) NUMBERS_OF_##kind(ID(3, name), FLOAT, d2)
#define EGI_V egi_f32
#define FLOAT float
#define ID(i, name) f32_##i##_##name
EGI_ELEMENTWISE_TABLE(FLOATS1, FLOATS_ND, FLOATS2, FLOATS_ND, FLOATS3, a, b, c, y, g)
#undef EGI_V
#undef ID
// Floats on a processor with FMA: the words that have bits of their own there, in float32 and in float64.
#define FUSED_exp ~, ~
#define FUSED_expm1 ~, ~
#define FUSED_log ~, ~
#define FUSED_log1p ~, ~
#define FUSED_sin ~, ~
#define FUSED_cos ~, ~
#define FUSED_tanh ~, ~
#define FUSED_erf ~, ~
#define FUSED_gelu ~, ~
#define FUSED_gelu_slope ~, ~
#define FUSED_silu ~, ~
#define FUSED_silu_slope ~, ~
#define FUSED_sigmoid ~, ~
#define FUSED_softplus ~, ~
#define FUSED_64_exp ~, ~
#define FUSED_64_expm1 ~, ~
#define FUSED_64_log ~, ~
#define FUSED_64_log1p ~, ~
#define FUSED_64_sin ~, ~
#define FUSED_64_cos ~, ~
#define FUSED_64_tanh ~, ~
#define FUSED_64_sigmoid ~, ~
#define FUSED_64_softplus ~, ~
#define FUSED_64_silu ~, ~
#define FUSED_64_silu_slope ~, ~
#define FUSED_THIRD(first, second, third, ...) third
#define FUSED_OR(mark, fused, plain) FUSED_THIRD(mark, fused, plain, ~)
#define fused_word(word, ...) FUSED_OR(FUSED##word, egi_fused##word, egi_f32##word)(__VA_ARGS__)
#define fused_k egi_f32_k
#define fused_none egi_f32_none
#define fused_loop(...) __VA_ARGS__
#define fused_loop_by(...) __VA_ARGS__
#define EGI_V fused
#define ID(i, name) fused_##i##_##name
EGI_ELEMENTWISE_TABLE(FLOATS1, FLOATS_ND, FLOATS2, FLOATS_ND, FLOATS3, a, b, c, y, g)
#undef EGI_V
#undef ID
#undef FLOAT
#define EGI_V egi_f64
#define FLOAT double
#define ID(i, name) f64_##i##_##name
EGI_ELEMENTWISE_TABLE(FLOATS1, FLOATS_ND, FLOATS2, FLOATS_ND, FLOATS3, a, b, c, y, g)
#undef EGI_V
#undef ID
#define fused_64_word(word, ...) FUSED_OR(FUSED_64##word, egi_fused_64##word, egi_f64##word)(__VA_ARGS__)
#define fused_64_k egi_f64_k
#define fused_64_none egi_f64_none
#define fused_64_loop(...) __VA_ARGS__
#define fused_64_loop_by(...) __VA_ARGS__
#define EGI_V fused_64
#define ID(i, name) fused_64_##i##_##name
EGI_ELEMENTWISE_TABLE(FLOATS1, FLOATS_ND, FLOATS2, FLOATS_ND, FLOATS3, a, b, c, y, g)
#undef EGI_V
#undef ID
#undef NUMBERS_OF_F
#undef NUMBERS_OF_M
#undef NUMBERS_OF_P
#undef NUMBERS_OF_N
#undef NUMBERS_OF_S
#undef NUMBERS_OF_W
#undef NUMBERS_OF_C
#define NUMBERS_OF_N(id, T, f) LOOP_IN(int64_t, id, T, T, T, f)
#define NUMBERS_OF_S NUMBERS_OF_N
#define NUMBERS_OF_W(id, T, f) LOOP_IN(int64_t, id, T, uint8_t, T, f)
#define NUMBERS_OF_C(id, T, f) LOOP_IN(int64_t, id, T, T, uint8_t, f)
#define NUMBERS_OF_F NO_LOOP
#define NUMBERS_OF_M NO_LOOP
#define NUMBERS_OF_P NO_LOOP
#define BYTES_OF_N NUMBERS_OF_N
#define BYTES_OF_S NO_LOOP
#define BYTES_OF_W NUMBERS_OF_W
#define BYTES_OF_C NUMBERS_OF_C
#define BYTES_OF_E NUMBERS_OF_C
#define BYTES_OF_F NO_LOOP
#define BYTES_OF_M NO_LOOP
#define BYTES_OF_P NO_LOOP
#define BYTES_OF_B NO_LOOP
#define INTEGERS_ND(kind, name, f) \
    NUMBERS_OF_##kind(i64_0_##name, int64_t, f) NUMBERS_OF_##kind(i32_0_##name, int32_t, \
                                                                  f) BYTES_OF_##kind(u8_0_##name, uint8_t, f)
#define INTEGERS1(kind, name, f, d0) INTEGERS_ND(kind, name, f)
#define INTEGERS2(kind, name, f, d0, d1) INTEGERS_ND(kind, name, f)
#define INTEGERS3(kind, name, f, d0, d1, d2) INTEGERS_ND(kind, name, f)
#define EGI_V egi_i64
EGI_ELEMENTWISE_TABLE(INTEGERS1, INTEGERS_ND, INTEGERS2, INTEGERS_ND, INTEGERS3, a, b, c, y, g)
#undef EGI_V
#define EGI_V egi_bool
LOOP(bool_0_logical_not, uint8_t, uint8_t, uint8_t, EGI_NOT(a))
LOOP(bool_0_logical_and, uint8_t, uint8_t, uint8_t, EGI_AND(a, b))
LOOP(bool_0_logical_or, uint8_t, uint8_t, uint8_t, EGI_OR(a, b))
LOOP(bool_0_logical_xor, uint8_t, uint8_t, uint8_t, EGI_NE(a, b))
LOOP(bool_0_equal, uint8_t, uint8_t, uint8_t, EGI_EQ(a, b))
LOOP(bool_0_not_equal, uint8_t, uint8_t, uint8_t, EGI_NE(a, b))
LOOP(bool_0_where, uint8_t, uint8_t, uint8_t, EGI_SELECT(EGI_TRUE(a), b, c))
#undef EGI_V

// By row, dtype (float32, float64, int64, int32, uint8, bool) and variant.
#define F_OF(t, i, name) t##_##i##_##name
#define LIST_F1(name) { F_OF(f32, 0, name), F_OF(f32, 1, name) }, { F_OF(f64, 0, name), F_OF(f64, 1, name) }
#define LIST_F2(name) \
    { F_OF(f32, 0, name), F_OF(f32, 1, name), F_OF(f32, 2, name) }, \
    { F_OF(f64, 0, name), F_OF(f64, 1, name), F_OF(f64, 2, name) }
#define LIST_ND(name) { F_OF(f32, 0, name) }, { F_OF(f64, 0, name) }
#define I_F(name) { NULL }, { NULL }, { NULL }, { NULL }
#define I_M I_F
#define I_P I_F
#define I_N(name) { i64_0_##name }, { i32_0_##name }, { u8_0_##name }, { NULL }
#define I_S(name) { i64_0_##name }, { i32_0_##name }, { NULL }, { NULL }
#define I_C I_N
#define I_E(name) { i64_0_##name }, { i32_0_##name }, { u8_0_##name }, { bool_0_##name }
#define I_W I_E
#define LISTED1(kind, name, f, d0) { LIST_F1(name), I_##kind(name) },
#define LISTED_ND(kind, name, f) LISTED_ND_##kind(kind, name)
#define LISTED_ND_F(kind, name) { LIST_ND(name), I_##kind(name) },
#define LISTED_ND_N LISTED_ND_F
#define LISTED_ND_C LISTED_ND_F
#define LISTED_ND_E LISTED_ND_F
#define LISTED_ND_P LISTED_ND_F
#define LISTED_ND_B(kind, name) { { NULL }, { NULL }, { NULL }, { NULL }, { NULL }, { bool_0_##name } },
#define LISTED2(kind, name, f, d0, d1) { LIST_F2(name), I_##kind(name) },
#define LISTED3(kind, name, f, d0, d1, d2) \
    { { f32_0_##name, f32_1_##name, f32_2_##name, f32_3_##name }, \
      { f64_0_##name, f64_1_##name, f64_2_##name, f64_3_##name }, I_##kind(name) },
static loop *const loops[][6][4] = { EGI_ELEMENTWISE_TABLE(LISTED1, LISTED_ND, LISTED2, LISTED_ND, LISTED3, a, b, c, y,
                                                           g) };

#define FUSED_BOTH(kind, ...) { FUSED_OF_##kind(__VA_ARGS__) },
#define FUSED_LIST1(t, name) { F_OF(t, 0, name), F_OF(t, 1, name) }
#define FUSED_LIST2(t, name) { F_OF(t, 0, name), F_OF(t, 1, name), F_OF(t, 2, name) }
#define FUSED_LIST3(t, name) { F_OF(t, 0, name), F_OF(t, 1, name), F_OF(t, 2, name), F_OF(t, 3, name) }
#define FUSED1(kind, name, f, d0) FUSED_BOTH(kind, FUSED_LIST1(fused, name), FUSED_LIST1(fused_64, name))
#define FUSED_ND(kind, name, f) FUSED_BOTH(kind, { F_OF(fused, 0, name) }, { F_OF(fused_64, 0, name) })
#define FUSED2(kind, name, f, d0, d1) FUSED_BOTH(kind, FUSED_LIST2(fused, name), FUSED_LIST2(fused_64, name))
#define FUSED3(kind, name, f, d0, d1, d2) FUSED_BOTH(kind, FUSED_LIST3(fused, name), FUSED_LIST3(fused_64, name))
#define FUSED_OF_F(...) __VA_ARGS__
#define FUSED_OF_M FUSED_OF_F
#define FUSED_OF_N FUSED_OF_F
#define FUSED_OF_S FUSED_OF_F
#define FUSED_OF_W FUSED_OF_F
#define FUSED_OF_C FUSED_OF_F
#define FUSED_OF_E FUSED_OF_F
#define FUSED_OF_P FUSED_OF_F
#define FUSED_OF_B(...) { NULL }, { NULL }
static loop *const fused_loops[][2][4] = { EGI_ELEMENTWISE_TABLE(FUSED1, FUSED_ND, FUSED2, FUSED_ND, FUSED3, a, b, c, y,
                                                              g) };

// ---- the comparison

enum { ROOM = 2200, GUARD = 16 };
static const int dtypes[6] = { EG_FLOAT32, EG_FLOAT64, EG_INT64, EG_INT32, EG_UINT8, EG_BOOL };
static const size_t sizes[6] = { 4, 8, 8, 4, 1, 1 };
static uint32_t hash(uint32_t i) {
    i = (i ^ i >> 16) * 0x7feb352du;
    i = (i ^ i >> 15) * 0x846ca68bu;
    return i ^ i >> 16;
}
// Operands, which are read from an element on that is one of the first eight.
static unsigned char *operand_data(int t, int i, bool boolean) {
    static double data[5][ROOM + 8];
    static const double special[16] = { 0, -0.0, 1, -1, 6, 0.5, INFINITY, -INFINITY, NAN, 1e-40, 3.4e38, -3.4e38, 100,
                                        -100, 32, -33 };
    unsigned char *at = (unsigned char *)data[i];
    for (int j = 0; j < ROOM + 8; j++) {
        const uint32_t h = hash((uint32_t)(j * 5 + i));
        const double v = h % 4 == 0 ? special[h >> 28] : (double)(h >> 8) / (double)(1 << 23) * 4 - 4;
        if (boolean || t == 5) at[j] = (unsigned char)(h >> 30 & 1);
        else if (t == 0) ((float *)(void *)at)[j] = (float)v;
        else if (t == 1) ((double *)(void *)at)[j] = v;
        else if (t == 3)
            ((int32_t *)(void *)at)[j] = h % 16 == 0 ? INT32_MIN + (int32_t)(h >> 4) % 2
                                         : h % 16 == 1 ? (int32_t)(h ^ h << 9)
                                         : (int32_t)(h >> 8) % 41 - 20;
        else if (t == 4) at[j] = (unsigned char)(h % 16 == 0 ? 255 : h % 4 == 1 ? h >> 8 & 255 : (h >> 8) % 21);
        else
            ((int64_t *)(void *)at)[j] = h % 16 == 0 ? INT64_MIN + (h >> 4) % 2
                                         : h % 16 == 1 ? (int64_t)((uint64_t)(h >> 8) << 40)
                                         : (int64_t)(h >> 8) % 41 - 20;
    }
    return at;
}
static bool same_at(int t, bool to_bool, const unsigned char *x, const unsigned char *y) {
    if (to_bool || t == 5) return *x == *y;
    if (!memcmp(x, y, sizes[t])) return true;
    return t == 0 ? isnan(*(const float *)(const void *)x) && isnan(*(const float *)(const void *)y)
         : t == 1 ? isnan(*(const double *)(const void *)x) && isnan(*(const double *)(const void *)y) : false;
}
static bool around;              // results are written around the cache, where they are aligned
// The program p of the row, run in one way, against w, which the loop has made.
static bool compare_run(const egi_op *op, int variant, const egi_program *p, int t, int how, int64_t n,
                        const void *const *in, unsigned scalars, const unsigned char *w) {
    static double got[ROOM + 2 * GUARD] __attribute__((aligned(64)));
    const bool to_bool = (op->flags & EGI_TO_BOOL) != 0;
    const size_t size = to_bool ? 1 : sizes[t];
    const int64_t room = n + GUARD;
    unsigned char *g = (unsigned char *)got + (around && n % 2 ? 64 : size);
    memset(g, 0x5a, (size_t)room * size);
    g[-1] = 0x5a;
    if (how < 2 || how == 6) { if (n > 0) egi_program_run_in(p, dtypes[t], how > 0, n, in, scalars, g); }
    else if (how >= 4) { if (n > 0) egi_program_runner_of(p, dtypes[t], how > 4, n)(p, n, in, scalars, g); }
    else CHECK(egi_program_run(op, variant, dtypes[t], n, in, scalars, g));
    bool same = g[-1] == 0x5a;
    if (same && !memcmp(w, g, (size_t)room * size)) return true;           // else a NaN may stand for another one
    for (int64_t i = 0; i < room && same; i++) {
        same = i < n ? same_at(t, to_bool, w + (size_t)i * size,
                               g + (size_t)i * size) : !memcmp(w + (size_t)i * size, g + (size_t)i * size, size);
        if (!same)
            printf("    eg_%s, formula %d, %s, %s, %d elements, scalars %u: element %d differs\n", op->name, variant,
                   egi_dtypes[dtypes[t]].name, how == 7 ? "AVX2 without strips"
                                               : how == 6 ? "AVX2"
                                               : how == 5 ? "the widest vectors without strips"
                                               : how == 4 ? "16 bytes with FMA"
                                               : how == 3 ? "as it runs with 16 bytes"
                                               : how == 2 ? "as it runs"
                                               : how ? "the widest vectors"
                                               : "16 bytes", (int)n, scalars, (int)i);
    }
    CHECK(same);
    return same;
}
// All to 130, or where the tests are slow every seventh, some more, and 999 to 1001.
static int64_t next_length(int t, int64_t n, int64_t first) {
    if (around) return n + 61;
    if (n < 131) return n + first;
    if (n == 999 || n == 1000) return n + 1;
    const int64_t next = n + (t < 4 ? 151 : 403);
    return n < 999 && next > 999 ? 999 : next;
}
// The formula's program, run in every way, against the loop of the same family of bits.
static bool compare_ways(const egi_op *op, int variant, const egi_program *p, int t, int64_t n, const void *const *in,
                         unsigned scalars) {
    static double want[2][ROOM + 2 * GUARD];
    const size_t size = op->flags & EGI_TO_BOOL ? 1 : sizes[t];
    bool made[2] = { false, false };
    for (int how = 0; how < 8; how++) {
        bool fused = false;
#if EGI_X86
        egi_isa = EGI_ISA_UNKNOWN;
        if ((how == 1 || how >= 4) && (!egi_cpu_has_avx2() || (how == 4 && t > 1))) continue;
        if (how >= 6 && (t > 1 || egi_isa_get() != EGI_ISA_AVX512)) continue;
        if (how == 0 || how == 3) egi_isa = EGI_ISA_16;
        if (how >= 6) egi_isa = EGI_ISA_AVX2;
        fused = t < 2 && egi_cpu_has_avx2();
#else
        if (how == 1 || how > 2) continue;
#endif
        unsigned char *w = (unsigned char *)want[fused] + size;
        if (!made[fused]) {
            memset(w, 0x5a, (size_t)(n + GUARD) * size);
            (fused ? fused_loops[op->number][t] : loops[op->number][t])[variant](n, in, scalars, w);
            made[fused] = true;
        }
        if (!compare_run(op, variant, p, t, how, n, in, scalars, w)) return false;
    }
    return true;
}
static void compare_dtype(int t) {
    const int first_lengths = test_share > 1 ? 7 : 1;
    int formulas = 0;
    for (int id = 0; id < (int)EGI_ELEMENTWISE_OPS; id++) {
        const egi_op *op = egi_op_row(id);
        unsigned char *data[5];
        bool ready = false;
        for (int variant = 0; variant < 4; variant++) {
            if (!loops[id][t][variant] || !op->formula[variant].words[0]) continue;
            for (int i = 0; i < 5 && !ready; i++) data[i] = operand_data(t, i, i == 0 && op->flags & EGI_BOOL_FIRST);
            ready = true;
            formulas++;
            egi_program p;
            CHECK(egi_program_make(&op->formula[variant], op->flags, &p));
            for (int64_t n = 0; n <= (t < 4 ? 1001 : 2150); n = next_length(t, n, first_lengths)) {
                const void *in[5];
                const unsigned mask = n % 3 == 0 ? hash((uint32_t)(n + id * 7 + variant)) % 32 : 0;
                for (int i = 0; i < 5; i++)
                    in[i] = data[i] + (size_t)(n % 8) * (i == 0 && op->flags & EGI_BOOL_FIRST ? 1 : sizes[t]);
                if (!compare_ways(op, variant, &p, t, n, in, 0) ||
                    (mask && !compare_ways(op, variant, &p, t, n, in, mask)))
                    return;
            }
        }
    }
    CHECK_INT(formulas, t < 2 ? 144 : t < 4 ? 23 : t == 4 ? 18 : 7);
}

// ---- the rules of optimizers, in vectors, held against their rows as the compiler makes them of single elements

typedef void rule_loop(const double *k, int64_t n, void *const *at);
#define RULE_LOOP(id, name, slots, body) \
    static void id##_##name(const double *k, int64_t n, void *const *at) { \
        const EGI_T k0 = (EGI_T)k[0], k1 = (EGI_T)k[1], k2 = (EGI_T)k[2], k3 = (EGI_T)k[3], k4 = (EGI_T)k[4], \
                    k5 = (EGI_T)k[5], decay = (EGI_T)k[7]; \
        EGI_T *const all[5] = { (EGI_T *)at[0], (EGI_T *)at[1], (EGI_T *)at[2], (EGI_T *)at[3], (EGI_T *)at[4] }; \
        (void)k0; (void)k1; (void)k2; (void)k3; (void)k4; (void)k5; \
        for (int64_t i = 0; i < n; i++) { \
            EGI_T w = all[0][i], g = all[1][i], s0 = all[2][i], s1 = all[3][i], s2 = all[4][i]; \
            w = EGI_SUB(w, EGI_MUL(w, decay)); \
            body \
            all[0][i] = w; all[2][i] = s0; all[3][i] = s1; all[4][i] = s2; \
        } \
    }
#define RULE_F32(name, slots, scalars, body) RULE_LOOP(rule_f32, name, slots, body)
#define RULE_F64(name, slots, scalars, body) RULE_LOOP(rule_f64, name, slots, body)
#define EGI_V egi_f32
#define EGI_T float
EGI_UPDATE_TABLE(RULE_F32)
#undef EGI_V
#undef EGI_T
#define EGI_V egi_f64
#define EGI_T double
EGI_UPDATE_TABLE(RULE_F64)
#undef EGI_V
#undef EGI_T
#define RULES_OF(name, slots, scalars, body) { rule_f32_##name, rule_f64_##name },
static rule_loop *const rule_loops[][2] = { EGI_UPDATE_TABLE(RULES_OF) };
#define RULE_ROW(name, slots, scalars, body) &egi_rule_##name,
static const egi_rule_row *const rule_rows[] = { EGI_UPDATE_TABLE(RULE_ROW) };

// Arrays of n elements from their element `from` on, in place or into others; what lies around them stays as it is.
static bool compare_rule(int rule, int t, egi_update_step *step, int64_t n, int from, bool in_place) {
    static double want[5][ROOM + GUARD], got[5][ROOM + GUARD], given[5][ROOM + GUARD];
    static const double k[8] = { 0.01, 0.1, 0.25, 1e-7, 0.5, 1.5, 0, 0.001 };
    const int slots = rule_rows[rule]->slots;
    egi_update_run u = { step, slots, (size_t)n * sizes[t], k, { NULL }, { NULL } };
    egi_update_runs all;
    void *at[5];
    for (int j = 0; j < 5; j++) {
        memcpy(given[j], operand_data(t, j, false), sizeof given[j] - GUARD * sizeof(double));
        memcpy(want[j], given[j], sizeof want[j]);
        memcpy(got[j], given[j], sizeof got[j]);
        at[j] = (char *)want[j] + (size_t)from * sizes[t];
        u.in[j] = (char *)(in_place ? got[j] : given[j]) + (size_t)from * sizes[t];
        if (j != 1) u.out[j ? j - 1 : 0] = (char *)got[j] + (size_t)from * sizes[t];
    }
    rule_loops[rule][t](k, n, at);
    all.run[0] = u;
    all.first[0] = 0;
    all.n = 1;
    egi_update_pieces(&all, 0, (int64_t)((u.bytes + EGI_UPDATE_MOST - 1) / EGI_UPDATE_MOST));
    for (int j = 0; j < 2 + slots; j++)
        for (int64_t i = 0; i < from + n + GUARD; i++) {
            const size_t o = (size_t)i * sizes[t];
            if (same_at(t, false, (unsigned char *)want[j] + o, (unsigned char *)got[j] + o)) continue;
            printf("    %s, %s, %d elements from %d on: element %d of array %d differs\n", rule_rows[rule]->name,
                   t ? "float64" : "float32", (int)n, from, (int)i, j);
            return false;
        }
    return true;
}
TEST(rules_of_optimizers_in_vectors) {
    CHECK_INT(sizeof rule_loops / sizeof *rule_loops, EGI_RULES);
    for (int rule = 0; rule < (int)EGI_RULES; rule++) CHECK_INT(rule_rows[rule]->number, rule);
    for (int rule = 0; rule < (int)EGI_RULES; rule++)
        for (int how = 0; how < 3; how++) {
            const egi_rule_row *row = rule_rows[rule];
            egi_update_step *step = how == 0 ? row->f32 : how == 1 ? row->wide : row->f64;
#if EGI_X86
            egi_isa = EGI_ISA_UNKNOWN;
            if (how == 1 && !egi_cpu_has_avx2()) continue;
#endif
            for (int64_t n = 0; step && n <= 1037; n += n < 131 ? (test_share > 1 ? 7 : 1) : 151)
                if (!compare_rule(rule, how == 2, step, n, (int)(n % 4), n % 3 == 0)) { CHECK(false); break; }
        }
}

#if EGI_X86
// Uniform, normal and truncated numbers are made four at a time with AVX2, from a number of whole blocks on; the plain
// fills make the same bits. The seed's counter is at a place of its own for each draw.
static eg_tensor *draw(int kind, eg_dtype t, int64_t n) {
    eg_seed(0xfedcba9876543210u + (uint64_t)n);
    eg_random_uniform(EG_SHAPE(n % 7 + 1));
    return kind == 0   ? eg_random_uniform(EG_SHAPE(n), .dtype = t)
           : kind == 1 ? eg_random_uniform(EG_SHAPE(n), .minval = -1.25, .maxval = 3.1, .dtype = t)
           : kind == 2 ? eg_random_normal(EG_SHAPE(n), .dtype = t)
           : kind == 3 ? eg_random_normal(EG_SHAPE(n), .mean = 0.7, .stddev = 0.3, .dtype = t)
                       : eg_random_truncated_normal(EG_SHAPE(n), .mean = -2, .stddev = 1.5, .dtype = t);
}
TEST(draws_in_vectors_have_the_bits_of_plain_ones) {
    egi_isa = EGI_ISA_UNKNOWN;
    if (!egi_cpu_has_avx2()) return;
    for (int kind = 0; kind < 5; kind++)
        for (int t = 0; t < 2; t++)
            for (int64_t n = 1; n <= 30000; n += n < 60 ? 13 : n < 300 ? 1 : n < 3000 ? 509 : 8999) {
                EG_SCOPE;
                egi_isa = EGI_ISA_UNKNOWN;
                eg_tensor *x = draw(kind, t ? EG_FLOAT64 : EG_FLOAT32, n);
                egi_isa = EGI_ISA_16;
                eg_tensor *y = draw(kind, t ? EG_FLOAT64 : EG_FLOAT32, n);
                REQUIRE(x && y);
                const bool same = !memcmp(eg_data(x), eg_data(y), (size_t)n * sizes[t]);
                if (!same) printf("    kind %d, %s, %d numbers\n", kind, t ? "float64" : "float32", (int)n);
                CHECK(same);
            }
    egi_isa = EGI_ISA_UNKNOWN;
}
// A comparison of bytes is written as bools at once, another one by way of masks: both where the number is on the left.
TEST(numbers_on_the_left_in_strips) {
    for (int wide = 0; wide < 2; wide++)
        for (int64_t n = 1; n <= 5000; n += n < 140 ? 1 : 487)
            for (int t = 0; t < 5; t++) {
                EG_SCOPE;
                bool right = true;
                egi_isa = wide ? EGI_ISA_UNKNOWN : EGI_ISA_16;
                eg_tensor *a = eg_cast(eg_mod(eg_range(EG_INT64, 0, (double)n, 1), 11), (eg_dtype)t);
                const unsigned char *less = (const unsigned char *)eg_data(eg_less(5, a)),
                                    *equal = (const unsigned char *)eg_data(eg_equal(5, a));
                eg_tensor *sub = eg_cast(eg_sub(20, a), EG_FLOAT64), *top = eg_cast(eg_maximum(5, a), EG_FLOAT64);
                REQUIRE(less && equal && sub && top);
                for (int64_t i = 0; i < n; i++)
                    right = right && less[i] == (5 < i % 11) && equal[i] == (i % 11 == 5) &&
                            ((const double *)eg_data(sub))[i] == 20 - (double)(i % 11) &&
                            ((const double *)eg_data(top))[i] == (double)(i % 11 > 5 ? i % 11 : 5);
                CHECK(right);
            }
    egi_isa = EGI_ISA_UNKNOWN;
}
// With vectors of 16 bytes, compiled loops read a block that is filled with an operand of one element: the bits are
// those of the whole tensor.
TEST(single_elements_fill_blocks) {
    const float singles[] = { 2.5f, -0.0f, NAN, INFINITY };
    const int64_t counts[] = { 1, 3, 4, 64, 255, 256, 257, 511, 512, 513, 1025, 2500 };
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t v = 0; v < sizeof singles / sizeof *singles; v++) {
            EG_SCOPE;
            const int64_t n = counts[c];
            egi_isa = EGI_ISA_16;
            eg_tensor *x = eg_cast(eg_sub(eg_mod(eg_range(EG_INT64, 0, (double)n, 1), 11), 5), EG_FLOAT32), *y[2][8];
            for (int whole = 0; whole < 2; whole++) {
                eg_tensor *s = eg_full(EG_FLOAT32, EG_SHAPE(whole ? n : 1), (double)singles[v]),
                          *other = eg_full(EG_FLOAT32, EG_SHAPE(whole ? n : 1), 3);
                eg_tensor *const made[] = {
                    eg_add(x, s), eg_sub(s, x), eg_mul(x, s), eg_div(s, x), eg_maximum(s, x),
                    eg_squared_difference(x, s), eg_clip_by_value(x, s, other), eg_clip_by_value(s, x, other) };
                memcpy(y[whole], made, sizeof made);
            }
            for (int i = 0; i < 8; i++) {
                const float *one = (const float *)eg_data(y[0][i]), *all = (const float *)eg_data(y[1][i]);
                REQUIRE(one && all);
                bool same = true;
                for (int64_t k = 0; k < n; k++)
                    same = same && (!memcmp(one + k, all + k, sizeof *one) || (one[k] != one[k] && all[k] != all[k]));
                CHECK(same);
            }
        }
    egi_isa = EGI_ISA_UNKNOWN;
}
#endif

// Quotients of floats by a product where they are small (DIVISION OF FLOATS), against the words, whose remainders are
// fmod's: numbers of every size, whole quotients and their neighbours, quotients around 2^20, and what is not finite.
static double dividend(int t, int j, double b) {
    const uint32_t h = hash((uint32_t)(2 * j));
    const double whole = (double)(h >> 8) / (double)(1 << (h % 24)), low = floor(whole) * b;
    const uint64_t bits = (uint64_t)hash(h) << 32 | h;
    double any;
    float few;
    memcpy(&any, &bits, 8);
    memcpy(&few, &h, 4);
    if (h % 7 == 0) return t ? any : (double)few;
    if (h % 7 == 1) return h & 8 ? INFINITY : h & 16 ? NAN : h & 32 ? 0 : -0.0;
    if (h % 7 == 2) return (1048576 + (double)(h >> 8 & 3) - 1) * b;
    if (h % 7 == 3) return h & 8 ? whole * b : -whole * b;
    if (h % 7 == 4) return low;
    return t ? nextafter(low, h & 8 ? 1e300 : -1e300) : (double)nextafterf((float)low, h & 8 ? 1e30f : -1e30f);
}
static void compare_division(const egi_op *op, int t, int64_t n, bool one, bool far) {
    static double a[ROOM], b[ROOM], y[ROOM];
    const void *in[5] = { a, b, a, a, a };
    for (int j = 0; j < (int)n; j++) {
        const uint32_t h = hash((uint32_t)(2 * j + 1));
        const double scale = h % 5 ? 1 : t ? 1e300 : 1e36, plain = ((double)(h >> 8) / 16777216 * 20 - 10) * scale;
        const double v = h % 11 == 0 && far ? INFINITY : h % 13 == 0 && far ? 0
                         : h % 17 == 0 ? (t ? 1e-310 : 1e-40) : plain;
        const double z = t ? v : (double)(float)v, x = far ? dividend(t, j, z) : fmod(dividend(t, 0, 1) * j, 1000) * z;
        if (t) { a[j] = x; b[j] = z; }
        else { ((float *)(void *)a)[j] = (float)x; ((float *)(void *)b)[j] = (float)z; }
    }
    CHECK(egi_program_run(op, 0, dtypes[t], n, in, one ? 2 : 0, y));
    for (int64_t j = 0; j < n; j++) {
        const int64_t k = one ? 0 : j;
        const float *p = (const float *)(const void *)a, *q = (const float *)(const void *)b;
        const bool mod = op == &egi_op_mod;
        const double wide = mod ? egi_f64_mod(a[j], b[k]) : egi_f64_floordiv(a[j], b[k]);
        const float narrow = mod ? egi_f32_mod(p[j], q[k]) : egi_f32_floordiv(p[j], q[k]);
        const unsigned char *want = t ? (const unsigned char *)&wide : (const unsigned char *)&narrow;
        if (same_at(t, false, want, (const unsigned char *)y + (size_t)j * sizes[t])) continue;
        printf("    eg_%s, %s, %d elements: %.17g and %.17g\n", op->name, t ? "float64" : "float32", (int)n,
               t ? a[j] : (double)p[j], t ? b[k] : (double)q[k]);
        CHECK(false);
        return;
    }
}
TEST(divisions_of_floats_in_vectors) {
    for (int which = 0; which < 8; which++)
        for (int64_t n = 1; n <= ROOM; n += n < 40 ? 1 : 431) {
#if EGI_X86
            egi_isa = which & 4 ? EGI_ISA_16 : EGI_ISA_UNKNOWN;
#endif
            for (int how = 0; how < 4; how++)
                compare_division(which & 1 ? &egi_op_mod : &egi_op_floordiv, which / 2 % 2, n, how & 1, how & 2);
        }
#if EGI_X86
    egi_isa = EGI_ISA_UNKNOWN;
#endif
}
#if EGI_X86
static int isa_with(const char *asked) {
    egi_isa = EGI_ISA_UNKNOWN;
    if (asked) setenv("EAGER_ISA", asked, 1);
    else unsetenv("EAGER_ISA");
    return egi_isa_get();
}
TEST(the_environment_chooses_the_vectors) {
    const char *before = getenv("EAGER_ISA");
    char kept[64];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
               avx512 = avx2 && __builtin_cpu_supports("avx512f");
    const int has = avx512 ? EGI_ISA_AVX512 : avx2 ? EGI_ISA_AVX2 : EGI_ISA_16;
    CHECK_INT(isa_with(NULL), has);
    CHECK_INT(isa_with("base"), EGI_ISA_16);
    CHECK(!egi_cpu_has_avx2());
    CHECK_INT(isa_with(""), has);
    CHECK(egi_cpu_has_avx2() == avx2);
    CHECK_INT(eg_error(), EG_OK);
    if (avx2) CHECK_INT(isa_with("avx2"), EGI_ISA_AVX2);
    else CHECK_ERROR(isa_with("avx2"), EG_ERROR_ARGUMENT,
                     "EAGER_ISA: this processor has no AVX2 and FMA; vectors of 16 bytes are used");
    if (avx512) CHECK_INT(isa_with("avx512"), EGI_ISA_AVX512);
    else CHECK_ERROR(isa_with("avx512"), EG_ERROR_ARGUMENT,
                     avx2 ? "EAGER_ISA: this processor has no AVX-512; vectors of 32 bytes are used"
                          : "EAGER_ISA: this processor has no AVX-512; vectors of 16 bytes are used");
    CHECK_INT(eg_error(), EG_OK);
    CHECK_ERROR(isa_with("AVX2"), EG_ERROR_ARGUMENT,
                "EAGER_ISA: 'AVX2' is none of 'avx512', 'avx2' and 'base'; unset it, or set one of these");
    CHECK_INT(egi_isa_get(), has);                                         // that is said once
    CHECK_INT(eg_error(), EG_OK);
    isa_with(before ? kept : NULL);
}
#endif

#if EGI_X86
// The cache is so small that every result of more than one pass is written around it.
TEST(results_are_written_around_the_cache) {
    egi_cache_3 = 1;
    around = true;
    for (int t = 0; t < 5; t++) compare_dtype(t);
    around = false;
    egi_cache_3 = 0;
}
TEST(the_size_of_the_cache_has_bounds) {
    CHECK_INT(egi_cache_clamp(0), 16 << 20);
    CHECK_INT(egi_cache_clamp(1 << 20), 4 << 20);
    CHECK_INT(egi_cache_clamp(7 << 20), 7 << 20);
    CHECK_INT(egi_cache_clamp(320 << 20), 32 << 20);
    const int64_t bytes = egi_cache_bytes();                                // read
    CHECK(bytes == egi_cache_clamp(bytes) && bytes == egi_cache_bytes());
}
#endif

// Bits of AVX-512 are compared with those of AVX2 in float32_programs and float64_programs; here, that it is used.
TEST(programs_of_float32_use_avx512) {
#if EGI_X86 && EGI_PROGRAMS_512
    egi_isa = EGI_ISA_UNKNOWN;
    if (egi_isa_get() != EGI_ISA_AVX512) SKIP("this processor has no AVX-512");
    egi_program p;
    memset(&p, 0, sizeof p);
    egi_program_take_own(&p);                              // its first word decides, too
    p.tiles = EGI_PROGRAM_ROOMS_512 - 1;
    CHECK(egi_program_runner_of(&p, EG_FLOAT32, true, 128) == egi_run_avx512_f32);
    CHECK(egi_program_runner_of(&p, EG_FLOAT32, true, 127) == egi_run_avx2_f32);
    CHECK(egi_program_joined_runner_of(&p, EG_FLOAT32, true, 4096) == egi_program_run_joined);
    CHECK(egi_program_joined_runner_of(&p, EG_FLOAT32, true, 4095) == egi_run_avx512_f32);
    p.tiles++;                                              // more than fits its part of the stack
    CHECK(egi_program_runner_of(&p, EG_FLOAT32, true, 128) == egi_run_avx2_f32);
    p.tiles = 0;
    egi_isa = EGI_ISA_AVX2;
    CHECK(egi_program_runner_of(&p, EG_FLOAT32, true, 128) == egi_run_avx2_f32);
    CHECK(egi_program_joined_runner_of(&p, EG_FLOAT32, true, 4096) == egi_run_avx2_f32);
    egi_isa = EGI_ISA_UNKNOWN;
#else
    SKIP("not for x86-64, or compiled without AVX-512");
#endif
}
// Rows of all lengths, among them some with infinities and NaN: the sums of exponentials have the same lanes.
TEST(softmax_with_avx512_has_the_bits_of_avx2) {
#if EGI_X86 && EGI_PROGRAMS_512
    egi_isa = EGI_ISA_UNKNOWN;
    if (egi_isa_get() != EGI_ISA_AVX512) SKIP("this processor has no AVX-512");
    for (int64_t n = 60; n <= 1033; n += n < 131 ? 1 : 41) {
        EG_SCOPE;
        float *data = (float *)malloc((size_t)n * 4 * sizeof *data);
        REQUIRE(data);
        for (int64_t i = 0; i < 4 * n; i++) data[i] = (float)(hash((uint32_t)i) >> 8) / (float)(1 << 20) - 8;
        data[n / 2] = -INFINITY;
        data[2 * n + n / 3] = NAN;
        data[3 * n + n / 4] = INFINITY;
        eg_tensor *x = eg_from_data(EG_FLOAT32, EG_SHAPE(4, n), data), *labels = eg_range(EG_INT32, 0, 4, 1), *y[2][5];
        free(data);
        for (int wide = 0; wide < 2; wide++) {
            egi_isa = wide ? EGI_ISA_AVX512 : EGI_ISA_AVX2;
            eg_tape *tape = eg_tape_begin_persistent();
            eg_tape_watch(tape, x);
            y[wide][0] = eg_softmax(x);
            y[wide][1] = eg_log_softmax(x);
            y[wide][2] = eg_sparse_softmax_cross_entropy_with_logits(labels, x);
            REQUIRE(eg_tape_gradients(tape, y[wide][2], &x, 1, &y[wide][3]));
            REQUIRE(eg_tape_gradients(tape, y[wide][1], &x, 1, &y[wide][4]));
        }
        egi_isa = EGI_ISA_UNKNOWN;
        for (int i = 0; i < 5; i++) {
            const unsigned char *p = (const unsigned char *)eg_data(y[0][i]),
                                *q = (const unsigned char *)eg_data(y[1][i]);
            bool same = true;
            for (int64_t j = 0; j < eg_size(y[0][i]); j++) same = same && same_at(0, false, p + 4 * j, q + 4 * j);
            if (!same) printf("    result %d of rows of %d\n", i, (int)n);
            CHECK(same);
        }
    }
#else
    SKIP("not for x86-64, or compiled without AVX-512");
#endif
}
TEST(float32_programs) { compare_dtype(0); }
TEST(float64_programs) { compare_dtype(1); }
TEST(int64_programs) { compare_dtype(2); }
TEST(int32_programs) { compare_dtype(3); }
TEST(uint8_programs) { compare_dtype(4); }
TEST(bool_programs) { compare_dtype(5); }

// ---- bounds

TEST(programs_of_all_rows_fit) {
    int lines = 0, constants = 0, tiles = 0, longs = 0;
    for (int id = 0; id < (int)EGI_ELEMENTWISE_OPS; id++)
        for (int variant = 0; variant < 4; variant++) {
            const egi_op *op = egi_op_row(id);
            egi_program p;
            if (!op->formula[variant].words || !op->formula[variant].words[0]) continue;
            CHECK(egi_program_make(&op->formula[variant], op->flags, &p));
            int n = 1, k = 0, l = 0;
            for (; p.line[n - 1].act != EGI_DO_end; n++) {
                const egi_program_line *at = &p.line[n - 1];
                if (at->act >= EGI_DO_add && (at->act - EGI_DO_add) % 2 && at->also >= k) k = at->also + 1;
                if ((at->act == EGI_DO_long1 || at->act == EGI_DO_long2) && at->also >= l) l = at->also + 1;
                CHECK(at->slot < EGI_PROGRAM_SLOTS);
            }
            if (n > lines) lines = n;
            if (k > constants) constants = k;
            if (l > longs) longs = l;
            if (p.tiles + p.filled > tiles) tiles = p.tiles + p.filled;
        }
    CHECK_INT(lines, 22);                   // of EGI_PROGRAM_LINES
    CHECK_INT(constants, 6);
    CHECK_INT(tiles, 4);
    CHECK_INT(longs, 3);
    CHECK(lines <= EGI_PROGRAM_LINES && constants <= EGI_PROGRAM_CONSTANTS && tiles <= EGI_PROGRAM_FILLS &&
          longs <= EGI_PROGRAM_LONGS);
}
// A formula as its words, one letter each; K is a constant of its own. + and * and - and < take two, e t s x long
// words, ? a choice.
static bool makes(const char *letters) {
    static const egi_word *words[200];
    static double values[200];
    egi_program p;
    int n = 0;
    for (; letters[n]; n++) {
        const char c = letters[n];
        values[n] = c == 'K' ? n + 0.5 : 0;
        words[n] = c == 'a' ? &egi_word_a
                   : c == 'b' ? &egi_word_b
                   : c == 'K' ? &egi_word_k
                   : c == '+' ? &egi_word_add
                   : c == '*' ? &egi_word_mul
                   : c == '-' ? &egi_word_sub
                   : c == '<' ? &egi_word_lt
                   : c == 'e' ? &egi_word_exp
                   : c == 't' ? &egi_word_tanh
                   : c == 's' ? &egi_word_sin
                   : c == 'x' ? &egi_word_expm1
                   : c == 'l' ? &egi_word_log
                   : c == 'm' ? &egi_word_max
                   : &egi_word_select;
    }
    words[n] = NULL;
    const egi_formula formula = { words, values, NULL };
    return egi_program_make(&formula, 0, &p);
}
TEST(a_formula_too_long_is_no_program) {
    CHECK(makes("a"));
    CHECK(makes("aK+K+K+K+K+K+K+K+"));
    CHECK(!makes("aK+K+K+K+K+K+K+K+K+"));                                  // constants
    CHECK(makes("aetsx"));
    CHECK(!makes("aetsxl"));                                               // long words
    CHECK(makes("aaaaaaaaaaaaaaaa+++++++++++++++"));
    CHECK(!makes("aaaaaaaaaaaaaaaaa++++++++++++++++"));                    // values that wait
    CHECK(makes("ae" "at" "as" "ax" "ae" "at" "as" "ax" "mmmmmmm"));  // tiles: four values wait for their second reader
    CHECK(!makes("ab+" "ab-" "ab*" "ba-" "ab<" "ba<" "aa+" "bb+" "bb-" "aa-" "mmmmmmmmm" "ab+" "ab-" "ab*" "ba-" "ab<"
                 "ba<" "aa+" "bb+" "bb-" "mmmmmmmmm"));                    // lines
    char many[200];
    int n = 0;
    many[n++] = 'a';
    for (int i = 0; i < 40; i++) { many[n++] = i % 2 ? 'a' : 'b'; many[n++] = i % 2 ? '+' : '*'; }
    many[n] = 0;
    CHECK(!makes(many));                                                   // nodes
}
TEST(an_op_whose_formula_is_too_long_says_so) {
    static const egi_word *const words[] = { &egi_word_a, &egi_word_exp, &egi_word_sin, &egi_word_tanh, &egi_word_log,
                                             &egi_word_cos, NULL };
    static const double values[6] = { 0, 0, 0, 0, 0, 0 };
    static egi_program program;
    egi_op op = egi_op_exp;
    const float x = 1;
    float y = 7;
    const void *in[5] = { &x, &x, &x, &x, &x };
    op.formula[0].words = words;
    op.formula[0].values = values;
    op.programs = &program;
    CHECK_ERROR(egi_program_run(&op, 0, EG_FLOAT32, 1, in, 0, &y), EG_ERROR_ARGUMENT,
                "eg_exp: its formula is too long for a program");
    CHECK_NEAR((double)y, 7, 0);
}

// ---- the first use, on several threads at once

#ifndef EAGER_NO_THREADS
static const egi_op *const contested[] = { &egi_op_mish, &egi_op_gelu_tanh, &egi_op_elu, &egi_op_softplus };
static int waiting;
static void *first_use(void *result) {
    static const float x[64] = { 0.25f, -1, 2, 0.5f };
    const void *in[5] = { x, x, x, x, x };
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < 4) { }
    for (int i = 0; i < 4; i++)
        for (int variant = 0; variant < 2; variant++)
            if (!egi_program_run(contested[i], variant, EG_FLOAT32, 64, in, 0,
                                 (float *)result + (i * 2 + variant) * 64))
                return NULL;
    return result;
}
TEST(the_first_use_on_several_threads) {
    static float results[4][8 * 64];
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) memset(contested[i]->programs, 0, 2 * sizeof *contested[i]->programs);
        memset(results, 0, sizeof results);
        waiting = 0;
        for (int i = 0; i < 4; i++) REQUIRE(pthread_create(&threads[i], NULL, first_use, results[i]) == 0);
        for (int i = 0; i < 4; i++) {
            void *result = NULL;
            pthread_join(threads[i], &result);
            CHECK(result == results[i]);
        }
        for (int i = 1; i < 4; i++) CHECK(!memcmp(results[0], results[i], sizeof results[0]));
        for (int i = 0; i < 4; i++)
            for (int variant = 0; variant < 2; variant++) CHECK_INT(contested[i]->programs[variant].state, 2);
    }
}
#endif

// Loops that are not optimized load these, too, as far as the result's elements go.
TEST(operands_that_are_not_read_have_the_address_of_an_array) {
    eg_tensor *u = eg_ones(EG_FLOAT32, EG_SHAPE(400)), *g = eg_ones(EG_FLOAT32, EG_SHAPE(400));
    egi_args args;
    egi_formula_run e;
    memset(&args, 0, sizeof args);
    args.op = egi_op_row(EGI_OP_maximum);
    args.variant = 2;
    args.in[0] = eg_number(0.75);
    args.in[1] = u;
    args.in[4] = g;
    args.out[0] = eg_zeros(EG_FLOAT32, EG_SHAPE(400));
    egi_formula_run_begin(&e, &args);
    CHECK(e.in[2] == g->data && e.in[3] == g->data);
    // In a row g may be one element, and all may be: then the others are, too.
    const void *in[EGI_RUN_OPERANDS] = { e.in[0], e.in[1], NULL, NULL, e.in[4] };
    CHECK_INT(egi_formula_run_unread(&e, 1 | 16, in), 1 | 16);
    CHECK(in[2] == u->data && in[3] == u->data);
    CHECK_INT(egi_formula_run_unread(&e, 1 | 2 | 16, in), 31);
}

// ---- through the doors

TEST(one_element_beside_many) {
    eg_tensor *x = eg_constant(EG_SHAPE(5), 1, -2, 3, -4, 5),
              *one = eg_reshape(eg_constant(EG_SHAPE(1), 2), EG_SHAPE(1));
    CHECK_TENSOR(eg_mul(x, one), 0, 2, -4, 6, -8, 10);
    CHECK_TENSOR(eg_sub(one, x), 0, 1, 4, -1, 6, -3);
    CHECK_TENSOR(eg_where(eg_greater(x, 0), x, 0), 0, 1, 0, 3, 0, 5);
    CHECK_TENSOR(eg_where(true, x, one), 0, 1, -2, 3, -4, 5);
    CHECK_TENSOR(eg_where(eg_less(eg_cast(x, EG_INT32), 0), eg_cast(x, EG_INT32), 7), 0, 7, -2, 7, -4, 7);
    CHECK_TENSOR(eg_add(eg_constant_of(EG_UINT8, EG_SHAPE(3), 1, 2, 3), 254), 0, 255, 0, 1);
}
static eg_tensor *of_float64(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_mul(eg_tanh(eg_mul(in[0], in[1])), eg_where(eg_greater(in[0], 0), eg_sigmoid(in[1]), 2));
}
// One pass over the memory in float64, too: no eager op between.
TEST(float64_gradients_are_fused) {
    eg_tensor *x[2] = { eg_cast(eg_constant(EG_SHAPE(3), 1, -2, 0.5), EG_FLOAT64),
                        eg_cast(eg_constant(EG_SHAPE(3), 0.5, 1, -1), EG_FLOAT64) };
    CHECK(eg_check_gradient(of_float64, NULL, x, 2));
    if (!test_on_host) return;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x[0]);
    eg_tensor *y = eg_tanh(x[0]);
    const int64_t before = eg_memory().tensors_made;
    eg_tensor *dx = eg_tape_gradient(tape, y, x[0]);
    CHECK(eg_memory().tensors_made - before <= 3);
    CHECK_INT(eg_dtype_of(dx), EG_FLOAT64);
}
