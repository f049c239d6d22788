// Casts between all dtypes, in runs of many lengths and beginning at any element, against the rule for single values:
// floats are rounded to nearest; a float becomes an integer truncated, limited to the range, and 0 if it is NaN; an
// integer keeps its low bits in a narrower one.
#include "test.h"

static const eg_dtype dtypes[] = { EG_FLOAT32, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8, EG_BOOL };
enum { DTYPES = sizeof dtypes / sizeof *dtypes, MOST = 130 };
typedef union number { float f; double d; int32_t i; int64_t l; uint8_t u; } number;

static const double floats[] = { 0, -0.0, 0.5, -0.5, 0.99999994, -0.99999994, 1, -1, 1.5, -1.5, 127.9, 254.99, 255,
                                 255.5, 256, 1e9, -1e9, 2147483520, 2147483647,
    2147483647.5, 2147483648.0, -2147483648.0, -2147483648.5, -2147483649.0, 4294967295.0, 4294967296.0, 9.2e18,
    9223372036854775808.0, -9223372036854775808.0,
    -9.3e18, 1e30, -1e30, 3.5e38, 1e-45, -1e-45, 1e-310, 16777217, 16777219, 9007199254740993.0, INFINITY, -INFINITY,
    NAN };
static const int64_t integers[] = { 0, 1, -1, 2, 127, 128, 254, 255, 256, 257, -128, -129, 65535, 65536, 16777217,
                                    16777219, -16777217, 2147483647, -2147483647 - 1, 2147483648LL,
    -2147483649LL, 4294967295LL, 4294967296LL, 1LL << 53, (1LL << 53) + 1, (1LL << 54) + 3, INT64_MAX, INT64_MIN,
    0x100000080LL, (1LL << 62) + (1LL << 38) + 1,
    // what becomes a float32 by way of a double lies below 2^51
    (1LL << 51) - 1, 1 - (1LL << 51), (1LL << 50) + (1LL << 26) + 1, 33554433, -33554435, (1LL << 51) - (1LL << 27) + 1,
    1LL << 51, -(1LL << 51), -(1LL << 51) - 1 };

static bool is_float(eg_dtype t) { return t == EG_FLOAT32 || t == EG_FLOAT64; }
// The i-th value of a dtype, as its bits.
static number value_of(eg_dtype t, int64_t i) {
    number v;
    memset(&v, 0, sizeof v);
    double d = floats[i % (int64_t)(sizeof floats / sizeof *floats)];
    int64_t l = integers[i % (int64_t)(sizeof integers / sizeof *integers)];
    switch (t) {
        case EG_FLOAT32: v.f = d > 3.4e38 ? INFINITY : (float)d; break;
        case EG_FLOAT64: v.d = d; break;
        case EG_INT32: v.i = (int32_t)(uint32_t)(uint64_t)l; break;
        case EG_INT64: v.l = l; break;
        case EG_UINT8: v.u = (uint8_t)(uint64_t)l; break;
        default: v.u = i % 3 == 1;
    }
    return v;
}
static int64_t limited(double d, double low, double high, int64_t least, int64_t most) {
    return isnan(d) ? 0 : d <= low ? least : d >= high ? most : (int64_t)d;
}
static number cast(eg_dtype from, number v, eg_dtype to) {
    const bool f = is_float(from);
    const double d = from == EG_FLOAT32 ? (double)v.f : v.d;
    const int64_t l = f ? 0 : from == EG_INT32 ? v.i : from == EG_INT64 ? v.l : v.u;
    number y;
    memset(&y, 0, sizeof y);
    switch (to) {
        case EG_FLOAT32:
            y.f = !f ? (float)l
                  : isinf(d) || fabs(d) > 3.4028235677973366e38 ? (float)copysign((double)INFINITY, d)
                  : (float)d;
            if (f && isnan(d)) y.f = NAN;
            break;
        case EG_FLOAT64: y.d = f ? d : (double)l; break;
        case EG_INT32:
            y.i = f ? (int32_t)limited(d, -2147483648.0, 2147483647.0, INT32_MIN,
                                       INT32_MAX) : (int32_t)(uint32_t)(uint64_t)l;
            break;
        case EG_INT64:
            y.l = f ? limited(d, -9223372036854775808.0, 9223372036854775808.0, INT64_MIN, INT64_MAX) : l;
            break;
        case EG_UINT8: y.u = f ? (uint8_t)limited(d, 0, 255, 0, 255) : (uint8_t)(uint64_t)l; break;
        default: y.u = f ? d != 0 : l != 0;
    }
    return y;
}
static bool same(eg_dtype t, const void *a, const number *b) {
    if (t == EG_FLOAT32) { float x; memcpy(&x, a, 4); if (isnan(x) && isnan(b->f)) return true; }
    if (t == EG_FLOAT64) { double x; memcpy(&x, a, 8); if (isnan(x) && isnan(b->d)) return true; }
    return memcmp(a, b, (size_t)eg_dtype_size(t)) == 0;
}
TEST(casts_of_every_pair) {
    for (int a = 0; a < DTYPES; a++)
        for (int b = 0; b < DTYPES; b++)
            for (int64_t n = 1; n <= MOST; n += test_share > 1 ? 1 + n / 20 : 1)
                for (int64_t first = 0; first < 50; first += 7) {           // at each offset of 0 to 7 elements
                    EG_SCOPE;
                    static char bytes[(MOST + 7) * 8];
                    const int64_t size = eg_dtype_size(dtypes[a]), made = eg_dtype_size(dtypes[b]), at = first % 8;
                    for (int64_t i = 0; i < n; i++) {
                        number v = value_of(dtypes[a], first + i);
                        memcpy(bytes + (at + i) * size, &v, (size_t)size);
                    }
                    eg_tensor *x = eg_slice(eg_from_data(dtypes[a], EG_SHAPE(at + n), (void *)bytes), EG_SHAPE(at),
                                            EG_SHAPE(n));
                    const char *y = (const char *)eg_data(eg_cast(x, dtypes[b]));
                    REQUIRE(y);
                    for (int64_t i = 0; i < n; i++) {
                        number want = cast(dtypes[a], value_of(dtypes[a], first + i), dtypes[b]);
                        if (!same(dtypes[b], y + i * made, &want))
                            printf("    %s to %s: value %d\n", eg_dtype_name(dtypes[a]), eg_dtype_name(dtypes[b]),
                                   (int)(first + i));
                        CHECK(same(dtypes[b], y + i * made, &want));
                    }
                }
}
// The 16-bit floats: each of their values survives float32 and float64, in a run as alone.
TEST(casts_of_halves) {
    const eg_dtype halves[] = { EG_FLOAT16, EG_BFLOAT16 };
    static uint16_t all[65536];
    for (int64_t i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    for (int h = 0; h < 2; h++) {
        eg_tensor *x = eg_from_data(halves[h], EG_SHAPE(65536), all), *narrow = eg_cast(x, EG_FLOAT32),
                  *wide = eg_cast(x, EG_FLOAT64);
        CHECK_SAME(eg_cast(narrow, EG_FLOAT64), wide, 0);
        const uint16_t *back = (const uint16_t *)eg_data(eg_cast(narrow, halves[h])),
                       *again = (const uint16_t *)eg_data(eg_cast(wide, halves[h]));
        const float *v = (const float *)eg_data(narrow);
        int64_t wrong = 0;
        for (int64_t i = 0; i < 65536; i++) wrong += !isnan(v[i]) && (back[i] != all[i] || again[i] != all[i]);
        CHECK_INT(wrong, 0);
    }
}
// Rounding to float16: between two neighbours the nearer one, in the middle the even one; beyond the greatest,
// infinity.
TEST(casts_between_halves) {
    enum { LAST = 0x7c00, KINDS = 4, COUNT = LAST * KINDS * 2 };
    static float from[COUNT];
    static uint16_t want[COUNT];
    int n = 0;
    for (int h = 0; h < LAST; h++) {
        const double low = h < 1024 ? ldexp(h, -24) : ldexp(1024 + h % 1024, h / 1024 - 25),
                     high = h + 1 < 1024 ? ldexp(h + 1, -24) : ldexp(1024 + (h + 1) % 1024, (h + 1) / 1024 - 25);
        const float middle = (float)((low + high) / 2);
        const float values[KINDS] = { (float)low, nextafterf(middle, 0), middle, nextafterf(middle, INFINITY) };
        for (int k = 0; k < KINDS; k++)
            for (int sign = 0; sign < 2; sign++) {
                from[n] = sign ? -values[k] : values[k];
                want[n++] = (uint16_t)((k < 2 || (k == 2 && h % 2 == 0) ? h : h + 1) | sign << 15);
            }
    }
    eg_tensor *x = eg_from_data(EG_FLOAT32, EG_SHAPE(COUNT), from);
    const uint16_t *got = (const uint16_t *)eg_data(eg_cast(x, EG_FLOAT16));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += got[i] != want[i];
    CHECK_INT(wrong, 0);
    const float odd[4] = { INFINITY, -INFINITY, NAN, 1e-45f };
    got = (const uint16_t *)eg_data(eg_cast(eg_from_data(EG_FLOAT32, EG_SHAPE(4), odd), EG_FLOAT16));
    CHECK_INT(got[0], 0x7c00);
    CHECK_INT(got[1], 0xfc00);
    CHECK((got[2] & 0x7fff) > 0x7c00);
    CHECK_INT(got[3], 0);
}
// Doubles are rounded to float16 and bfloat16 once: in a run as one alone, around the middles between two halves, at
// the borders of what is a half, a float and neither, and with any bits.
TEST(casts_of_doubles_to_halves_in_runs) {
    enum { COUNT = 6000 };
    static double from[COUNT];
    const eg_dtype halves[] = { EG_FLOAT16, EG_BFLOAT16 };
    uint64_t bits = 1;
    for (int i = 0; i < COUNT; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        const uint64_t low = i % 5 == 0 ? 0 : i % 5 == 1 ? 1 : i % 5 == 2 ? 0x10000000u : bits >> 35;
        const uint64_t fraction = i % 3 ? ((bits >> 40 & 0x7ff) << 41) : bits >> 12 << 5 & 0xfffffe0000000u;
        const uint64_t exponent = i % 7 == 0 ? bits >> 53 : 1023 - 30 + bits % 50;
        const uint64_t all = (bits & 1) << 63 | exponent % 2048 << 52 | (fraction | low);
        memcpy(&from[i], &all, 8);
    }
    const double special[] = { 0, -0.0, 65504, 65519.999999999993, 65520, -65520, 1e300, -1e300, INFINITY, NAN, 2.98e-8,
                               2.9802322387695312e-8, 2.9802322387695319e-8, 1e-40, 1e-310, 5e-324, 3.4e38, 3.5e38 };
    memcpy(from, special, sizeof special);
    for (int h = 0; h < 2; h++)
        for (int64_t n = COUNT; n > 0; n = n > 600 ? n - 517 : n > 40 ? n - 57 : n - 1) {
            EG_SCOPE;
            const uint16_t *got = (const uint16_t *)eg_data(eg_cast(eg_from_data(EG_FLOAT64, EG_SHAPE(n), from),
                                                                   halves[h]));
            REQUIRE(got);
            int wrong = 0;
            for (int64_t i = n == COUNT ? 0 : n > 300 ? n - 300 : 0; i < n; i++) {
                EG_SCOPE;
                const uint16_t *one = (const uint16_t *)eg_data(eg_cast(eg_from_data(EG_FLOAT64, EG_SCALAR, from + i),
                                                                       halves[h]));
                if (isnan(from[i])) wrong += (got[i] & 0x7fff) <= (h ? 0x7f80 : 0x7c00);
                else wrong += !one || got[i] != *one;
            }
            CHECK_INT(wrong, 0);
        }
}
