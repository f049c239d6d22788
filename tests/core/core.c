// EAGER_CORE without files: tensors, operations and the tape alone, and weights come from bytes in memory. A copy of
// the library of this file's own, compiled so.
#undef EAGER_CUDA              // this copy of the library knows no GPU
#undef TEST_CUDA
#undef TEST_CUDA_HOST
#define EAGER_CORE
#define EAGER_NO_STDIO
#define EAGER_STATIC
#define EAGER_IMPLEMENTATION
#include "test.h"

// What eg_save_weights writes of a dense layer: kernel [[1, 2], [3, 4]], bias [0.5, -0.5].
static const char head[] = "{\"dense/kernel\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,"
    "16]},\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}";
static const float values[] = { 1, 2, 3, 4, .5f, -.5f };
static int64_t weights(unsigned char *file) {
    memset(file, 0, 8);
    file[0] = (unsigned char)(sizeof head - 1);
    memcpy(file + 8, head, sizeof head - 1);
    memcpy(file + 8 + sizeof head - 1, values, sizeof values);
    return (int64_t)(8 + sizeof head - 1 + sizeof values);
}
TEST(the_core_loads_weights_from_memory) {
    unsigned char file[400];
    int64_t n = weights(file);
    eg_archive *a = eg_archive_load_memory(file, n);
    REQUIRE(a);
    eg_tensor *kernel = eg_variable(eg_archive_get(a, "dense/kernel"), "kernel"),
              *bias = eg_variable(eg_archive_get(a, "dense/bias"), "bias");
    eg_tensor *x = eg_constant(EG_SHAPE(1, 2), 1, 1), *vars[] = { kernel, bias }, *grads[2];
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = eg_add(eg_matmul(x, kernel), bias);
    CHECK_TENSOR(y, 0, 4.5, 5.5);
    CHECK(eg_tape_gradients(tape, eg_reduce_sum(y), vars, 2, grads));
    CHECK_TENSOR(grads[0], 0, 1, 1, 1, 1);
    eg_archive_release(a);
    eg_release(kernel);
    eg_release(bias);
}
TEST(the_core_has_files_in_memory_and_no_others) {
    unsigned char file[400];
    CHECK(eg_memory_file_add("w.safetensors", file, weights(file)));
    eg_archive *a = eg_archive_load("w");
    CHECK_TENSOR(eg_archive_get(a, "dense/bias"), 0, .5, -.5);
    CHECK_INT(eg_archive_count(a), 2);
    CHECK_ERROR(eg_archive_save(a, "w2.npz"), EG_ERROR_FILE,
                "w2.npz: the program was compiled with EAGER_NO_STDIO and has no files");
    CHECK_ERROR(eg_archive_load("w2.npz"), EG_ERROR_FILE,
                "w2.npz: the program was compiled with EAGER_NO_STDIO and has no files");
    eg_archive_release(a);
    CHECK(eg_memory_file_remove("w.safetensors"));
    static const unsigned char idx[] = { 0, 0, 8, 1, 0, 0, 0, 2, 7, 9 };
    CHECK(eg_memory_file_add("idx", idx, sizeof idx));
    CHECK_TENSOR(eg_load_idx("idx"), 0, 7, 9);
    CHECK_INT(eg_size(eg_read_file("idx")), sizeof idx);
    CHECK(eg_memory_file_remove("idx"));
}
