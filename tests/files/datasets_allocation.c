// Datasets without memory: each pipeline runs with its 1st, 2nd, ... n-th allocation failing until it gets through.
// Each failure is a clean EG_ERROR_MEMORY and leaks nothing.
#include "faults.h"

// Reads d to its end, or up to an error; the sum of what came. d is released.
static double total(eg_dataset *d, int restart) {
    double sum = 0;
    eg_iterator *it = d ? eg_iterator_new(d) : NULL;
    eg_status status = it ? EG_NEXT : EG_FAILED;
    for (int i = 0; status == EG_NEXT; i++) {
        EG_SCOPE;
        eg_tensor *out[EG_MAX_COMPONENTS] = { NULL };
        if (i == restart) {
            eg_tensor *position = eg_iterator_position(it);
            if (!position || !eg_iterator_restore(it, position)) status = EG_FAILED;
        }
        if (status == EG_NEXT) status = eg_iterator_next(it, out);
        if (status != EG_NEXT) break;
        for (int k = 0; k < EG_MAX_COMPONENTS && out[k]; k++)
            sum += eg_item(eg_reduce_sum(eg_cast(out[k], EG_FLOAT64)));
    }
    eg_iterator_release(it);
    eg_dataset_release(d);
    return status == EG_END_OF_SEQUENCE && eg_error() == EG_OK ? sum : (double)NAN;
}
static void sweep(eg_dataset *(*make)(void), int restart) {
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    double want = 0;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        int64_t n = 0;
        for (bool through = false; !through && n < 100000; n += n < 60 || !for_ever ? FAULTS_STEP(3) : 7) {
            eg_seed(1);
            eg_scope scope = eg_scope_begin();
            CHECK_INT(eg_error(), EG_OK);
            faults_start(n ? n : INT64_MAX, for_ever ? FAULTS_FOR_EVER : FAULTS_TWICE);       // at first none fails
            double sum = total(make(), restart);
            faults_stop();
            through = n > 0 && !faults.failed;
            if (n == 0) want = sum;
            if (sum == sum) CHECK_NEAR(sum, want, 0);
            else CHECK_INT(eg_error(), EG_ERROR_MEMORY);
            CHECK(sum == sum || !(n == 0 || through));
            eg_error_clear();
            eg_scope_end(scope);
            eg_shutdown();
            CHECK_INT(faults.live, 0);
            if (test_fails > 5) { printf("    for ever %d, allocation %lld\n", for_ever, (long long)n); return; }
        }
    }
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}

static bool halve(eg_tensor *const *in, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_div(eg_cast(in[0], EG_FLOAT32), 2);
    out[1] = eg_random_uniform(EG_SHAPE(2));
    return true;
}
static eg_tensor *odd(eg_tensor *const *in, void *user) { (void)user; return eg_mod(in[0], 2); }
static eg_dataset *few(eg_tensor *const *in, void *user) {
    (void)user;
    return eg_dataset_take(eg_dataset_repeat(eg_dataset_from_tensors(in[0]), 2), -1);
}
static eg_dataset *in_memory(void) {
    eg_dataset *d = eg_dataset_zip(eg_dataset_filter(eg_dataset_range(0, 40, 1), odd, NULL),
                                   eg_dataset_enumerate(eg_dataset_from_slices(eg_range(EG_FLOAT32, 0, 12, 1))));
    d = eg_dataset_concatenate(eg_dataset_take(d, 9), eg_dataset_skip(eg_dataset_cache(eg_dataset_retain(d)), 2));
    return eg_dataset_unbatch(eg_dataset_batch(eg_dataset_shuffle(eg_dataset_repeat(d, 2), 5), 4));
}
static eg_dataset *mapped(void) {
    return eg_dataset_padded_batch(eg_dataset_map(eg_dataset_interleave(
            eg_dataset_shuffle(eg_dataset_range(0, 6, 1), 4), few, NULL, .cycle = 2), halve, NULL, .components = 2), 5);
}
static eg_dataset *with_threads(void) {
    return eg_dataset_prefetch(eg_dataset_batch(eg_dataset_map(eg_dataset_range(0, 20, 1), halve, NULL, .components = 2,
                                                               .threads = 2), 3), 2);
}
static eg_dataset *from_text(void) {
    const char *path = test_temp("some.csv");
    return eg_dataset_batch(eg_dataset_csv(&path, 1, .header = true, .na = "?",
                                           .components = {{.columns = "a, 1"}, {.columns = "c", .categories = "x,y"}}),
                            3);
}
static eg_dataset *from_others(void) {
    const char *lines = test_temp("some.csv"), *arrays[2];
    arrays[0] = arrays[1] = test_temp("some.npy");
    return eg_dataset_zip(eg_dataset_text_lines(&lines, 1), eg_dataset_from_files(arrays, 2));
}
static eg_status some(int64_t i, eg_tensor **out, void *user) {
    (void)user;
    out[0] = eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), (double)i);
    return i < 5 ? EG_NEXT : EG_END_OF_SEQUENCE;
}
static eg_dataset *from_all_else(void) {
    const char *records = test_temp("some.tfrecord"), *archive = test_temp("some.npz"), *text = test_temp("some.csv");
    eg_tensor *x = eg_range(EG_FLOAT32, 0, 12, 1);
    eg_dataset *d = eg_dataset_zip(eg_dataset_tfrecord(&records, 1),
                                   eg_dataset_from_files(&archive, 1), eg_dataset_from_windows(x, 4, 2),
                                   eg_dataset_csv(&text, 1, .header = true,
                                                  .components = {{.columns = "b", .text = true}, {.columns = "0-1"}}));
    d = eg_dataset_zip(d, eg_dataset_unbatch(eg_dataset_from_generator(some, NULL, 1, NULL)));
    return eg_dataset_concatenate(d, eg_dataset_retain(d));
}
static eg_dataset *shuffled_again(void) {                     // restored, each stage by its own way
    eg_dataset *d = eg_dataset_shuffle(
        eg_dataset_batch(eg_dataset_repeat(eg_dataset_from_slices(eg_range(EG_FLOAT32, 0, 12, 1)), 3), 2), 6);
    eg_dataset *again = eg_dataset_retain(d);
    d = eg_dataset_prefetch(eg_dataset_concatenate(again, eg_dataset_cache(d)), 2);
    return eg_dataset_shard(eg_dataset_skip(d, 3), 2, 1);
}
TEST(without_memory_in_memory) { sweep(in_memory, 7); }
TEST(without_memory_mapped) { sweep(mapped, 1); }
TEST(without_memory_with_threads) { sweep(with_threads, 2); }
TEST(without_memory_in_files) {
    FILE *f = fopen(test_temp("some.csv"), "wb");
    fprintf(f, "a,b,c\n1,2,x\n3,\"4\",y\n5,6,x\n7,8,y\n");
    fclose(f);
    eg_save_npy(eg_range(EG_FLOAT32, 0, 4, 1), test_temp("some.npy"));
    sweep(from_text, 1);
    sweep(from_others, 2);
    eg_record_writer *w = eg_record_writer_open(test_temp("some.tfrecord"));
    for (int i = 0; i < 4; i++) CHECK(eg_record_writer_write(w, "some bytes", 10 - i));
    CHECK(eg_record_writer_close(w));
    eg_record_writer_release(w);
    eg_archive *a = eg_archive_new();
    CHECK(eg_archive_add(a, "x", eg_range(EG_FLOAT32, 0, 4, 1)) &&
          eg_archive_add(a, "y", eg_ones(EG_INT32, EG_SHAPE(4, 2))) && eg_save_npz(a, test_temp("some.npz")));
    eg_archive_release(a);
    sweep(from_all_else, 2);
    sweep(shuffled_again, 7);
}

static eg_dataset *counted(eg_tensor *const *feed, void *user) {
    (void)user;
    return eg_dataset_range(0, eg_item_int(feed[0]), 1);
}
static double kinds_of_iterators(void) {
    const eg_spec spec = {EG_INT64, {0, {0}}};
    eg_tensor *out[EG_MAX_COMPONENTS], *feed = eg_scalar_of(EG_INT64, 3);
    eg_iterator *a = eg_iterator_initializable(counted, NULL), *b = eg_iterator_from_specs(&spec, 1);
    eg_dataset *d = eg_dataset_range(5, 9, 1);
    eg_tensor *handle = a && b ? eg_iterator_handle(a) : NULL;
    const char *text = eg_text(eg_from_text("a text"));
    double sum = (double)NAN;
    if (feed && d && handle && text && eg_from_texts(&text, 1) && eg_iterator_feed(a, &feed) && eg_iterator_set(b, d) &&
        eg_iterator_next(b, out) == EG_NEXT) {
        sum = eg_item(out[0]);
        sum = eg_iterator_next_by_handle(handle, out) == EG_NEXT ? sum + eg_item(out[0]) : (double)NAN;
    }
    eg_iterator_release(a);
    eg_iterator_release(b);
    eg_dataset_release(d);
    return sum;
}
TEST(iterators_without_memory) {
    eg_shutdown();
    REQUIRE(eg_set_allocator(faults_allocate, faults_free, NULL));
    double sum = 0;
    for (int64_t n = 1; n < 1000; n++) {
        faults_start(n, FAULTS_TWICE);
        eg_scope scope = eg_scope_begin();
        sum = kinds_of_iterators();
        faults_stop();
        if (sum != sum) CHECK_INT(eg_error(), EG_ERROR_MEMORY);
        eg_error_clear();
        eg_scope_end(scope);
        eg_shutdown();
        CHECK_INT(faults.live, 0);
        if (!faults.failed) break;
    }
    CHECK_NEAR(sum, 5, 0);
    eg_shutdown();
    CHECK(eg_set_allocator(NULL, NULL, NULL));
}
