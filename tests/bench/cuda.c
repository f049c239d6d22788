// tests/bench/cuda.sh builds and runs this: what the GPU must show. One line a figure: name, value, unit, what it is
// measured against.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "eager.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
// Seconds a call, the best of five rounds of n calls.
static double best(void (*f)(void), int n) {
    double least = 1e30;
    for (int round = 0; round < 6; round++) {
        eg_synchronize();
        cudaDeviceSynchronize();
        double start = now();
        for (int i = 0; i < n; i++) f();
        eg_synchronize();
        cudaDeviceSynchronize();
        double each = (now() - start) / n;
        if (round && each < least) least = each;
    }
    return least;
}

static eg_tensor *a, *b, *tiny;
static float *raw[3];
static size_t bytes;
static cublasHandle_t blas;
static int size;

static void copy(void) { cudaMemcpyAsync(raw[1], raw[0], bytes, cudaMemcpyDeviceToDevice, 0); }
static void add(void) { EG_SCOPE; eg_add(a, b); }
static void tanh_(void) { EG_SCOPE; eg_tanh(a); }
static void bias(void) { EG_SCOPE; eg_add(a, tiny); }
static void sum(void) { EG_SCOPE; eg_reduce_sum(a); }
static void small(void) { EG_SCOPE; eg_add(tiny, tiny); }
static void product(void) { EG_SCOPE; eg_matmul(a, b); }
static void bare(void) {
    const float one = 1, zero = 0;
    cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, raw[0], CUDA_R_32F, size, raw[1], CUDA_R_32F,
                 size, &zero, raw[2], CUDA_R_32F, size, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static void bandwidth(void) {
    EG_SCOPE;
    int64_t rows = 1 << 14, columns = 1 << 12, n = rows * columns;              // 256 MiB a tensor
    bytes = (size_t)n * 4;
    a = eg_random_uniform(EG_SHAPE(rows, columns));
    b = eg_random_uniform(EG_SHAPE(rows, columns));
    tiny = eg_random_uniform(EG_SHAPE(columns));
    if (cudaMalloc((void **)&raw[0], bytes) || cudaMalloc((void **)&raw[1], bytes)) {
        printf("bandwidth skipped: no memory\n");
        return;
    }
    double c = 2 * (double)bytes / best(copy, 20), x;
    printf("copy %.0f GB/s cudaMemcpyAsync, device to device\n", c * 1e-9);
    x = 3 * (double)bytes / best(add, 20),
    printf("add %.0f GB/s %.0f%% of the copy (aim: 90%%)\n", x * 1e-9, 100 * x / c);
    x = 2 * (double)bytes / best(tanh_, 20),
    printf("tanh %.0f GB/s %.0f%% of the copy (aim: 90%%)\n", x * 1e-9, 100 * x / c);
    x = 2 * (double)bytes / best(bias, 20),
    printf("add_row %.0f GB/s %.0f%% of the copy (aim: 90%%)\n", x * 1e-9, 100 * x / c);
    x = (double)bytes / best(sum, 20), printf("sum %.0f GB/s %.0f%% of the copy\n", x * 1e-9, 100 * x / c);
    cudaFree(raw[0]);
    cudaFree(raw[1]);
}
static void launches(void) {
    EG_SCOPE;
    tiny = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    for (int i = 0; i < 100; i++) small();
    eg_synchronize();
    double least = 1e30;
    // few enough that the queue does not fill: what the host does is what is measured
    for (int round = 0; round < 20; round++) {
        double start = now();
        for (int i = 0; i < 200; i++) small();
        double each = (now() - start) / 200;
        if (each < least) least = each;
        eg_synchronize();
    }
    printf("op_on_the_host %.2f us of small ops (aim: 3)\n", least * 1e6);
    printf("op %.2f us with its end waited for\n", best(small, 1000) * 1e6);
}
static void products(void) {
    static const int sizes[] = { 1000, 8192 };
    cublasCreate(&blas);
    for (int i = 0; i < 2; i++) {
        EG_SCOPE;
        size = sizes[i];
        size_t n = (size_t)size * (size_t)size * 4;
        a = eg_random_normal(EG_SHAPE(size, size));
        b = eg_random_normal(EG_SHAPE(size, size));
        for (int k = 0; k < 3; k++)
            if (cudaMalloc((void **)&raw[k], n)) { printf("products skipped: no memory\n"); return; }
        // the same numbers: zeros take less power, and go faster
        cudaMemcpy(raw[0], eg_data(a), n, cudaMemcpyHostToDevice);
        cudaMemcpy(raw[1], eg_data(b), n, cudaMemcpyHostToDevice);
        int times = size == 1000 ? 200 : 10;
        double flops = 2.0 * size * size * size, ours = best(product, times), theirs = best(bare, times);
        printf("matmul_%d %.1f TFLOP/s %.1f%% of bare cuBLAS's %.1f (aim: 98%%); 200 of them take %.3f s\n", size,
               flops / ours * 1e-12, 100 * theirs / ours, flops / theirs * 1e-12, 200 * ours);
        eg_matmul_precision(EG_PRECISION_TF32);
        printf("matmul_%d_tf32 %.1f TFLOP/s on request\n", size, flops / best(product, times) * 1e-12);
        eg_matmul_precision(EG_PRECISION_BFLOAT16);
        printf("matmul_%d_bfloat16 %.1f TFLOP/s on request, float32 in and out\n", size,
               flops / best(product, times) * 1e-12);
        eg_matmul_precision(EG_PRECISION_FLOAT32);
        for (int k = 0; k < 3; k++) cudaFree(raw[k]);
    }
    cublasDestroy(blas);
}
// What is one launch here and several ops elsewhere.
static eg_layer *layer_now;
static eg_tensor *variables[100], *gradients[100];
static eg_optimizer *adam;
static void call(void) { EG_SCOPE; eg_call(layer_now, a); }
static void call_and_back(void) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, a);
    eg_tape_gradient(tape, eg_call(layer_now, a), a);
}
static void update(void) { eg_apply_gradients(adam, gradients, variables, 100); }
static void layers(void) {
    EG_SCOPE;
    a = eg_random_normal(EG_SHAPE(8192, 1024));
    layer_now = eg_layer_layer_normalization();
    double t = best(call, 20), both = best(call_and_back, 20);
    printf("layer_norm %.0f GB/s forward, %.0f us; with its gradient %.0f us\n", 8.0 * 8192 * 1024 / t * 1e-9, t * 1e6,
           both * 1e6);
    eg_layer_release(layer_now);
    a = eg_random_normal(EG_SHAPE(4, 1024, 1024));
    layer_now = eg_layer_multi_head_attention(16, 64, .causal = true);
    t = best(call, 10), both = best(call_and_back, 10);
    printf("attention %.2f ms forward, 4 sequences of 1024, 16 heads of 64, its four products included; with its "
           "gradient %.2f ms\n", t * 1e3, both * 1e3);
    eg_layer_release(layer_now);
    adam = eg_adam();
    for (int i = 0; i < 100; i++) {
        variables[i] = eg_variable(eg_random_normal(EG_SHAPE(100, 100)), "v");
        gradients[i] = eg_random_normal(EG_SHAPE(100, 100));
    }
    printf("adam %.1f us for 100 variables of 10000 elements\n", best(update, 100) * 1e6);
    for (int i = 0; i < 100; i++) eg_release(variables[i]);
    eg_optimizer_release(adam);
}
int main(void) {
    if (eg_device_count("gpu") == 0) { eg_set_device("gpu:0"); return 1; }
    if (!eg_set_device("gpu:0")) return 1;
    bandwidth();
    launches();
    products();
    layers();
    return eg_error() != EG_OK;
}
