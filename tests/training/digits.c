// The digits of examples 10 and 11: drawn the same every time; IDX files are read, and broken ones refused with a
// reason.
#include "test.h"
#include "examples/digits.h"

TEST(digits_are_the_same_every_time) {
    digits a, b;
    REQUIRE(digits_draw(&a, 300, 7));
    REQUIRE(digits_draw(&b, 200, 7));
    CHECK(!memcmp(a.pixels, b.pixels, 200 * DIGITS_PIXELS));
    CHECK(!memcmp(a.labels, b.labels, 200 * sizeof *a.labels));
    int seen[10] = {0};
    for (int i = 0; i < 300; i++) {
        int ink = 0;
        for (int k = 0; k < DIGITS_PIXELS; k++) ink += a.pixels[i * DIGITS_PIXELS + k] > 100;
        CHECK(ink > 15 && ink < 400);                   // a digit is there, and paper around it
        seen[a.labels[i]]++;
    }
    for (int k = 0; k < 10; k++) CHECK(seen[k] > 10);
    digits_free(&b);
    REQUIRE(digits_draw(&b, 200, 8));
    CHECK(memcmp(a.pixels, b.pixels, 200 * DIGITS_PIXELS) != 0);
    digits_free(&a);
    digits_free(&b);
}

// Writes an IDX file: this head, then n zeros.
static void write_idx(const char *name, const char *head, size_t head_size, int n) {
    FILE *f = fopen(test_temp(name), "wb");
    REQUIRE(f);
    fwrite(head, 1, head_size, f);
    for (int i = 0; i < n; i++) fputc(0, f);
    fclose(f);
}
#define IMAGES "t10k-images-idx3-ubyte"
#define LABELS "t10k-labels-idx1-ubyte"
#define WRITE(name, head, n) write_idx(name, head, sizeof(head) - 1, n)
#define HEAD_IMAGES(count) "\0\0\x08\x03\0\0\0" count "\0\0\0\x1c\0\0\0\x1c"
#define HEAD_LABELS(count) "\0\0\x08\x01\0\0\0" count

// What digits_read says of the folder; "" when it read it.
static const char *reading(void) {
    digits train, test;
    const char *folder = getenv("TEST_TEMP"), *why = digits_read(folder ? folder : ".", &train, &test);
    if (why) return why;
    CHECK_INT(train.count, 8);
    CHECK_INT(test.count, 2);
    digits_free(&train);
    digits_free(&test);
    return "";
}

TEST(digits_idx_files) {
    test_peak before = test_process_peak();
    remove(test_temp(IMAGES));
    remove(test_temp(LABELS));
    CHECK_CONTAINS(reading(), "has no train-images-idx3-ubyte and no t10k-images-idx3-ubyte");
    WRITE(IMAGES, HEAD_IMAGES("\x0a"), 7840);
    CHECK_CONTAINS(reading(), "there are t10k-images but no t10k-labels");
    WRITE(LABELS, HEAD_LABELS("\x0a"), 10);
    CHECK_STR(reading(), "");

    WRITE(IMAGES, HEAD_IMAGES("\x0a"), 7839);
    CHECK_CONTAINS(reading(), "ends early or is damaged (7839 of 7840 values)");
    WRITE(IMAGES, HEAD_IMAGES("\x0a"), 7841);
    CHECK_CONTAINS(reading(), "goes on after its 7840 values");
    WRITE(IMAGES, "\0\0\x08", 0);
    CHECK_CONTAINS(reading(), "too short to be an IDX file");
    WRITE(IMAGES, "", 0);
    CHECK_CONTAINS(reading(), "too short to be an IDX file");
    WRITE(IMAGES, "PNG\x03\0\0\0\x0a\0\0\0\x1c\0\0\0\x1c", 7840);
    CHECK_CONTAINS(reading(), "is no IDX file (it starts with 50 4e");
    WRITE(IMAGES, "\0\0\x0d\x03\0\0\0\x0a\0\0\0\x1c\0\0\0\x1c", 7840);
    CHECK_CONTAINS(reading(), "values of type 0d; only bytes (08)");
    WRITE(IMAGES, "\0\0\x08\x01\0\0\0\x0a\0\0\0\x1c\0\0\0\x1c", 7840);
    CHECK_CONTAINS(reading(), "has 1 dimensions, and images have 3");
    WRITE(IMAGES, "\0\0\x08\x03\0\0\0\x0a\0\0\0\x20\0\0\0\x1c", 7840);
    CHECK_CONTAINS(reading(), "images of 32 x 28, not 28 x 28");
    WRITE(IMAGES, "\0\0\x08\x03\xff\xff\xff\xff\0\0\0\x1c\0\0\0\x1c", 7840);
    CHECK_CONTAINS(reading(), "promises 4294967295 entries");
    WRITE(IMAGES, HEAD_IMAGES("\0"), 0);
    CHECK_CONTAINS(reading(), "promises 0 entries");
    WRITE(IMAGES, HEAD_IMAGES("\x01"), 784);
    CHECK_CONTAINS(reading(), "has 1 images and 10 labels");
    WRITE(LABELS, HEAD_LABELS("\x01"), 1);
    CHECK_CONTAINS(reading(), "one digit is too few");
    WRITE(IMAGES, HEAD_IMAGES("\x0a"), 7840);
    WRITE(LABELS, HEAD_LABELS("\x0a") "\0\0\x0c", 7);
    CHECK_CONTAINS(reading(), "label 2 is 12, not 0 to 9");
    for (int most = 0; most < 16; most++) {                // what a short file claims costs the process no memory
        char head[] = HEAD_IMAGES("\x0a");
        head[most % 2 ? 4 : 5] = (char)most;
        WRITE(LABELS, HEAD_LABELS("\x0a"), 10);
        write_idx(IMAGES, head, sizeof head - 1, 7840);
        if (most) CHECK(*reading());
    }
    test_peak after = test_process_peak();
#ifdef TEST_NO_SIGNALS  // sanitizers keep an eighth as much of their own, and what was freed for a while
    CHECK(after.touched - before.touched < 512 << 20);
#else
    CHECK(after.touched - before.touched < 64 << 20);
#endif
    remove(test_temp(LABELS));
    remove(test_temp(IMAGES));
}

TEST(digits_gzip) {
    const char head[] = "\x1f\x8b\x08\0";
    WRITE(IMAGES ".gz", head, 20);
    WRITE(LABELS ".gz", head, 20);
#ifdef EAGER_ZLIB
    CHECK(*reading());                                  // damaged: whatever zlib says of it, it is not read
#else
    CHECK_CONTAINS(reading(), "is packed by gzip. Unpack it (gunzip), or compile with -DEAGER_ZLIB and -lz");
#endif
    remove(test_temp(IMAGES ".gz"));
    remove(test_temp(LABELS ".gz"));
}

TEST(digits_of_mnist) {
    if (!test_data("mnist/" LABELS ".gz")) SKIP("EAGER_DATA names no folder with mnist in it");
#ifndef EAGER_ZLIB
    SKIP("the files are packed and this build has no zlib");
#else
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/mnist", getenv("EAGER_DATA"));
    digits train, test;
    const char *why = digits_read(folder, &train, &test);
    CHECK_STR(why, NULL);
    if (why) return;
    CHECK_INT(train.count, 8000);
    CHECK_INT(test.count, 2000);
    CHECK_INT(train.labels[0], 7);
    CHECK_INT(train.labels[1], 2);
    digits_free(&train);
    digits_free(&test);
#endif
}
