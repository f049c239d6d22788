//     cc -O2 -DEAGER_STATIC -I. examples/16_pipeline.c -lm -o pipeline && ./pipeline
//
// A dataset pipeline: two CSV files of an ice cream stall, with quotes, a category and gaps, become shuffled batches of
// numbers.
// Nothing is read before it is asked for and never more than a few batches are in memory, so the files could be of any
// size.
#define EAGER_IMPLEMENTATION
#include "eager.h"

static const char *const files[] = {"ice_2023.csv", "ice_2024.csv"};

// day, temperature, wind, sky, sold: 10 + 4 temperature - wind + 30 if it is sunny, 10 if cloudy; and some luck.
static bool write_files(void) {
    static const char *const skies[] = {"sunny", "cloudy", "rain"};
    eg_tensor *luck = eg_random_normal(EG_SHAPE(2, 365)), *sky = eg_random_integers(EG_SHAPE(2, 365), 0, 3);
    eg_tensor *wind = eg_random_uniform(EG_SHAPE(2, 365), .maxval = 20);
    const float *l = (const float *)eg_data(luck), *w = (const float *)eg_data(wind);
    const int32_t *s = (const int32_t *)eg_data(sky);
    for (int file = 0; file < 2; file++) {
        FILE *f = fopen(files[file], "wb");
        if (!f) return false;
        fprintf(f, "day,temperature,wind,sky,sold\r\n");
        for (int day = 0, i = 365 * file; day < 365; day++, i++) {
            double temperature = 20 - 12 * eg_item(eg_cos(eg_scalar(6.2832 * day / 365))),
                   sold = 10 + 4 * temperature - w[i] + (s[i] == 0 ? 30
                                                         : s[i] == 1 ? 10
                                                         : 0);
            fprintf(f, "\"day %d, %d\",%.1f,", day + 1, 2023 + file, temperature);
            if (day % 50 == 7) fprintf(f, "?,");                         // the wind vane was stuck
            else fprintf(f, "%.1f,", (double)w[i]);
            fprintf(f, "%s,%.0f\r\n", skies[s[i]], sold + 2 * (double)l[i]);
        }
        fclose(f);
    }
    return true;
}

// (numbers, sky), sold, day -> features (5,), sold. Temperature and wind are brought near 1, the sky becomes three
// numbers.
static bool features(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_concat(EG_TENSORS(eg_div(in[0], 20), eg_one_hot(in[1], 3)), 0);
    out[1] = eg_expand_dims(in[2], 0);
    return true;
}
static eg_tensor *warm(eg_tensor *const *in, void *user) {        // the stall opens above 10 degrees
    (void)user;
    return eg_greater(eg_index(in[0], 0), 10);
}

static eg_dataset *days(void) {
    return eg_dataset_csv(files, 2, .header = true, .na = "?",
                          .components = { {.columns = "temperature, wind", .missing = 10},
                                          {.columns = "sky", .categories = "sunny, cloudy, rain"}, {.columns = "sold"},
                                          {.columns = "day", .text = true}});
}

int main(void) {
    eg_seed(1);
    if (!write_files()) return 1;

    eg_dataset *raw = days();
    eg_iterator *it = eg_iterator_new(raw);
    eg_tensor *day[EG_MAX_COMPONENTS];
    eg_iterator_next(it, day);
    printf("A row: %.*s, temperature and wind, sky number %d, sold %.0f\n", (int)eg_size(day[3]),
           (const char *)eg_data(day[3]), (int)eg_item_int(day[1]), eg_item(day[2]));
    eg_print(day[0]);
    eg_iterator_release(it);

    // A stage takes over the one before it; the last one is ours to release.
    eg_dataset *train = eg_dataset_filter(raw, warm, NULL);
    train = eg_dataset_shuffle(train, 200);
    train = eg_dataset_map(train, features, NULL, .components = 2, .threads = 2);
    train = eg_dataset_batch(train, 32);
    train = eg_dataset_prefetch(train, 2);
    char words[200];
    eg_dataset_format(train, words, sizeof words);
    printf("\nThe pipeline: %s\n", words);

    eg_tensor *w = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(5, 1)), "w");
    eg_optimizer *adam = eg_adam(.learning_rate = 1);
    eg_tensor *position = NULL;
    double promised = 0;
    for (int epoch = 0; epoch < 60; epoch++) {
        double sum = 0;
        int batches = 0;
        it = eg_iterator_new(train);                              // each reads the files anew, in another order
        eg_tensor *batch[EG_MAX_COMPONENTS];
        for (;;) {
            EG_SCOPE;
            if (eg_iterator_next(it, batch) != EG_NEXT) break;
            eg_tape *tape = eg_tape_begin();
            eg_tensor *loss = eg_reduce_mean(eg_square(eg_sub(eg_matmul(batch[0], w), batch[1]))),
                      *grad = eg_tape_gradient(tape, loss, w);
            eg_apply_gradients(adam, &grad, &w, 1);
            sum += eg_item(loss);
            if (epoch == 59 && batches == 4) position = eg_retain(eg_iterator_position(it));
            if (epoch == 59 && batches == 5) promised = eg_item(eg_reduce_sum(batch[1]));
            batches++;
        }
        eg_iterator_release(it);
        if (eg_error()) return 1;
        if (epoch % 10 == 9)
            printf("epoch %2d: %d batches, mean squared error %.1f\n", epoch + 1, batches, sum / batches);
    }
    printf("\nSold = 0 + w x, where w is, for temperature / 20, wind / 20, sunny, cloudy, rain:\n");
    eg_print(eg_reshape(w, EG_SHAPE(5)));

    // A position is a few bytes to be saved; an iterator restored from it goes on with the same batches.
    eg_tensor *batch[EG_MAX_COMPONENTS];
    it = eg_iterator_new(train);
    eg_iterator_restore(it, position);
    eg_iterator_next(it, batch);
    printf("\nThe sixth batch of epoch 60, read again: %s\n",
           eg_item(eg_reduce_sum(batch[1])) == promised ? "the same days" : "other days");

    eg_iterator_release(it);
    eg_release(position);
    eg_dataset_release(train);
    eg_optimizer_release(adam);
    eg_release(w);
    return 0;
}
