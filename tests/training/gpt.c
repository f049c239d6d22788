// tests/training/gpt.c: the GPT of examples/gpt.h against the same in PyTorch: the same weights, the same batches of
// Shakespeare (fixtures_gpt.py), which EAGER_DATA has.
#include "test.h"
#include "fixture.h"
#include "../examples/gpt.h"
#include "../examples/letters.h"
#include <time.h>

enum { CONTEXT = 64, BATCH = 8, STEPS = 500, EVERY = 100, SEED = 50000 };

static void windows(const letters *l, int64_t from, int64_t length, uint64_t *k, eg_tensor **x, eg_tensor **y) {
    int32_t ids[2][BATCH][CONTEXT];
    for (int b = 0; b < BATCH; b++) {
        const int32_t *start = l->ids + from + (int64_t)floor(fixture_uniform(k) * (double)(length - CONTEXT - 1));
        memcpy(ids[0][b], start, sizeof ids[0][b]);
        memcpy(ids[1][b], start + 1, sizeof ids[1][b]);
    }
    *x = eg_from_data(EG_INT32, EG_SHAPE(BATCH, CONTEXT), ids[0]);
    *y = eg_from_data(EG_INT32, EG_SHAPE(BATCH, CONTEXT), ids[1]);
}
static double validation(eg_layer *gpt, const letters *l, int64_t from, int64_t length) {
    uint64_t k = 3 * SEED;
    double sum = 0;
    for (int i = 0; i < 16; i++) {
        EG_SCOPE;
        eg_tensor *x, *y;
        windows(l, from, length, &k, &x, &y);
        sum += eg_item(gpt_loss(gpt, x, y));
    }
    return sum / 16;
}
// Kernels and embeddings are normals of the stream, by .02; the others start as they do in PyTorch.
static void weights_from_stream(eg_layer *gpt) {
    eg_tensor *weights[128];
    uint64_t k = SEED;
    const int n = eg_layer_weights(gpt, weights, 128);
    for (int i = 0; i < n; i++) {
        EG_SCOPE;
        char path[200];
        const char *name = eg_layer_weight_path(gpt, i, path, sizeof path);
        if (!name || (!strstr(name, "kernel") && !strstr(name, "embeddings"))) continue;
        const int64_t size = eg_size(weights[i]);
        float *values = malloc((size_t)size * sizeof *values);
        REQUIRE(values != NULL);
        for (int64_t j = 0; j < size; j++) values[j] = (float)(.02 * fixture_normal(&k));
        CHECK(eg_assign(weights[i], eg_from_data(EG_FLOAT32, eg_shape_of(weights[i]), values)) != NULL);
        free(values);
    }
}

TEST(gpt_follows_pytorch) {
    const char *folder = getenv("EAGER_DATA");
    char path[4096];
    letters l;
    if (!folder) SKIP("no EAGER_DATA");
    snprintf(path, sizeof path, "%.4000s/tinyshakespeare.txt", folder);
    if (!letters_read(&l, path)) SKIP("no tinyshakespeare.txt in EAGER_DATA");
    fixture_file f;
    REQUIRE(fixture_open(&f, "tests/fixtures/gpt_loss.txt"));
    REQUIRE(fixture_next(&f));
    const fixture_array *want = fixture_get(&f, "out", 0), *want_valid = fixture_get(&f, "out", 1);
    REQUIRE(want && want->count == STEPS && want_valid && want_valid->count == 1 + STEPS / EVERY);

    const int64_t train = l.length * 9 / 10;
    eg_layer *gpt = gpt_new(l.count, CONTEXT, 4, 128, 4);
    {
        EG_SCOPE;                                       // the first call makes the weights
        REQUIRE(eg_call(gpt, eg_zeros(EG_INT32, EG_SHAPE(1, CONTEXT))) != NULL);
    }
    weights_from_stream(gpt);
    eg_optimizer *adam = eg_adamw(.learning_rate = 1e-3, .weight_decay = .01);
    double worst = 0, worst_valid = fabs(validation(gpt, &l, train, l.length - train) - want_valid->values[0]);
    uint64_t k = 2 * SEED;
    int steps = 0;
    const double patience = test_patience();
    for (clock_t start = clock(); steps < STEPS && (double)(clock() - start) / CLOCKS_PER_SEC < patience; steps++) {
        EG_SCOPE;
        eg_tensor *x, *y;
        windows(&l, 0, train, &k, &x, &y);
        double apart = fabs(gpt_step(gpt, adam, x, y) - want->values[steps]);
        if (!(apart <= worst)) worst = apart;
        if (!(worst <= 1)) break;                       // a NaN would go on for ever
        if ((steps + 1) % EVERY == 0) {
            apart = fabs(validation(gpt, &l, train, l.length - train) - want_valid->values[(steps + 1) / EVERY]);
            if (!(apart <= worst_valid)) worst_valid = apart;
        }
    }
    printf("gpt_follows_pytorch: %d steps, training loss at most %.2g apart, validation %.2g\n", steps, worst,
           worst_valid);
    CHECK(steps > 0 && worst <= .05);
    CHECK(worst_valid <= .05);
    eg_optimizer_release(adam);
    eg_layer_release(gpt);
    letters_free(&l);
    fixture_close(&f);
}
