//     cc -O2 -DEAGER_STATIC -I. examples/22_devices.c -lm -o devices && ./devices [SIZE]
//
// 200 matrix products, on the processor and on the GPU where there is one. Nothing in the product's code changes but
// the device that is asked for. A GPU works on while the program goes on: eg_synchronize() waits for it, or the clock
// would show only how long it takes to hand over the work. With a GPU (the guide's sizes are 1000):
//
//     nvcc -O2 -arch=native -c eager_cuda.cu
//     cc -O2 -I. -DEAGER_CUDA examples/22_devices.c eager_cuda.o -L/usr/local/cuda/lib64 -lcublas -lcudart -lstdc++ -lm
//     -o devices
//     ./devices 1000
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 200 };

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Seconds for STEPS products of n x n.
static double measure(const char *device, int64_t n, double *sum) {
    EG_SCOPE;
    eg_with_device(device);                      // new tensors are made there, until this function ends
    eg_seed(1);
    eg_tensor *x = eg_random_normal(EG_SHAPE(n, n));
    *sum = eg_item(eg_reduce_sum(eg_matmul(x, x)));     // the first one also starts the device
    double start = now();
    for (int i = 0; i < STEPS; i++) {
        EG_SCOPE;
        eg_matmul(x, x);
    }
    eg_synchronize();
    return now() - start;
}

int main(int argc, char **argv) {
    int64_t n = argc > 1 ? atoi(argv[1]) : 100;
    double on_cpu, on_gpu;
    printf("Time to multiply a %lldx%lld matrix by itself %d times:\n", (long long)n, (long long)n, STEPS);
    printf("CPU: %.3f secs\n", measure("cpu:0", n, &on_cpu));
    if (eg_device_count("gpu") == 0) {
        printf("GPU: not found\n");
        return eg_error() != EG_OK;
    }
    printf("GPU: %.3f secs\n", measure("gpu:0", n, &on_gpu));
    printf("both give %.4g\n", on_gpu);

    // Tensors on two devices do not meet by themselves: a copy is something one writes, and it is counted.
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), *y = eg_gpu(x);
    printf("x is on %s, y on %s; %lld copy\n", eg_device_of(x), eg_device_of(y), (long long)eg_memory().device_copies);
    eg_print(eg_cpu(eg_add(y, 1)));
    return eg_error() != EG_OK;
}
