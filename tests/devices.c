// Chapters 14 and 33: which device there is, where tensors are made, copies and what they count. On cpu:0, on guard:0 and on
// the GPU (or what stands in for one): here is test_device(), there is the other.
#include "test.h"

TEST(with_device_ends_with_the_block) {
    {
        eg_with_device("cpu:0");
        CHECK_STR(eg_device_of(eg_ones(EG_FLOAT32, EG_SHAPE(2))), "cpu:0");
        for (int i = 0; i < 2; i++) {
            eg_with_device(test_device());
            CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
            if (i == 0) continue;
            break;
        }
        CHECK_STR(eg_device_of(eg_scalar(1)), "cpu:0");
    }
    CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
    {
        egi_device_scope scope;
        CHECK_ERROR(scope = egi_device_enter("tpu:0"), EG_ERROR_DEVICE, "eg_with_device: there is no device \"tpu:0\"");
        CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
        egi_device_leave(&scope);
    }
}

TEST(a_missing_gpu_is_an_error_that_says_why) {
    CHECK(eg_device_count("cpu") == 1);
    CHECK_INT(eg_device_count("tpu"), 0);
    CHECK_INT(eg_device_count(NULL), 0);
    if (eg_device_count("gpu") == 0) {                   // to ask is no error
#ifdef EAGER_CUDA
        const char *why = "\"gpu:0\": no ";              // no driver, or no GPU
#else
        const char *why = "\"gpu:0\": the program was compiled without -DEAGER_CUDA";
#endif
        CHECK_ERROR(eg_set_device("gpu:0"), EG_ERROR_DEVICE, why);
        CHECK_ERROR(eg_gpu(eg_scalar(1)), EG_ERROR_DEVICE, why);
    }
    CHECK_ERROR(eg_set_device("gpu:77"), EG_ERROR_DEVICE, "eg_set_device: there is no device \"gpu:77\"");
    CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
}

TEST(copies_are_explicit_and_counted) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2);
    int64_t copies = eg_memory().device_copies, bytes = eg_memory().device_bytes;
    eg_tensor *y = eg_cpu(x);
    CHECK_STR(eg_device_of(y), "cpu:0");
    CHECK_TENSOR(y, 0, 1, 2);
    CHECK_INT(eg_memory().device_copies, copies + !test_on_host);
    CHECK(test_on_host ? y == x : y != x);
    eg_tensor *z = eg_to(y, test_device());
    CHECK_INT(eg_memory().device_copies, copies + 2 * !test_on_host);
    CHECK_INT(eg_memory().device_bytes, bytes + (test_on_host ? 0 : 8));
    CHECK_TENSOR(z, 0, 1, 2);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(eg_cpu(x)), x), 0, 2, 4);
}

TEST(synchronize_waits) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(100));
    for (int i = 0; i < 10; i++) x = eg_add(x, 1);
    CHECK(eg_synchronize());
    CHECK_NEAR(eg_item(eg_index(x, 99)), 11, 0);
}

TEST(precision_is_this_threads) {
    CHECK_INT(eg_matmul_precision(EG_PRECISION_TF32), EG_PRECISION_FLOAT32);
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(4, 4), 0.5);
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_matmul(x, x))), 16, 1e-2);
    CHECK_INT(eg_matmul_precision(EG_PRECISION_BFLOAT16), EG_PRECISION_TF32);
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_matmul(x, x))), 16, 1e-1);
    CHECK_INT(eg_matmul_precision(EG_PRECISION_FLOAT32), EG_PRECISION_BFLOAT16);
}
