// tests/gpu/cuda_host/math.h: found before the system's own by whoever compiles eager_cuda.cu against this folder. A
// GPU's functions are right to a few units in the last place, and others than this machine's: here each result is moved
// by as many as CUDA's programming guide allows that function, always the same for the same result; what is exact in
// half of the bits stays, as it does there. nvcc fuses products and sums, too: build with -ffp-contract=fast (and
// -mfma, where the processor has that).
#include_next <math.h>
#ifndef CUDA_HOST_MATH
#define CUDA_HOST_MATH
#include <stdint.h>
#include <string.h>

template <class T, class U> static inline T cuda_host_moved(T y, U bits, int most) {
    memcpy(&bits, &y, sizeof bits);
    if (!(y - y == 0) || !(bits & (((U)1 << (4 * sizeof bits - 8)) - 1))) return y;
    int by = (int)((bits * (U)0x9E3779B97F4A7C15u >> 5) % (2 * (U)most + 1)) - most;
    for (; by; by += by < 0 ? 1 : -1) y = by < 0 ? nextafter(y, (T)-INFINITY) : nextafter(y, (T)INFINITY);
    return y;
}
static inline float cuda_host_off(float y, int most) { return cuda_host_moved(y, (uint32_t)0, most); }
static inline double cuda_host_off(double y, int most) { return cuda_host_moved(y, (uint64_t)0, most); }

#define sinf(x) cuda_host_off(sinf(x), 2)
#define cosf(x) cuda_host_off(cosf(x), 2)
#define tanf(x) cuda_host_off(tanf(x), 4)
#define asinf(x) cuda_host_off(asinf(x), 2)
#define acosf(x) cuda_host_off(acosf(x), 2)
#define atanf(x) cuda_host_off(atanf(x), 2)
#define atan2f(x, y) cuda_host_off(atan2f(x, y), 3)
#define sinhf(x) cuda_host_off(sinhf(x), 3)
#define coshf(x) cuda_host_off(coshf(x), 2)
#define asinhf(x) cuda_host_off(asinhf(x), 3)
#define acoshf(x) cuda_host_off(acoshf(x), 4)
#define atanhf(x) cuda_host_off(atanhf(x), 3)
#define powf(x, y) cuda_host_off(powf(x, y), 4)
#define expf(x) cuda_host_off(expf(x), 2)
#define expm1f(x) cuda_host_off(expm1f(x), 1)
#define logf(x) cuda_host_off(logf(x), 1)
#define log1pf(x) cuda_host_off(log1pf(x), 1)
#define tanhf(x) cuda_host_off(tanhf(x), 2)
#define erff(x) cuda_host_off(erff(x), 2)
#define exp(x) cuda_host_off(exp(x), 1)
#define expm1(x) cuda_host_off(expm1(x), 1)
#define log(x) cuda_host_off(log(x), 1)
#define log1p(x) cuda_host_off(log1p(x), 1)
#define sin(x) cuda_host_off(sin(x), 2)
#define cos(x) cuda_host_off(cos(x), 2)
#define tan(x) cuda_host_off(tan(x), 2)
#define asin(x) cuda_host_off(asin(x), 2)
#define acos(x) cuda_host_off(acos(x), 2)
#define atan(x) cuda_host_off(atan(x), 2)
#define atan2(x, y) cuda_host_off(atan2(x, y), 2)
#define sinh(x) cuda_host_off(sinh(x), 2)
#define cosh(x) cuda_host_off(cosh(x), 1)
#define tanh(x) cuda_host_off(tanh(x), 2)
#define asinh(x) cuda_host_off(asinh(x), 3)
#define acosh(x) cuda_host_off(acosh(x), 3)
#define atanh(x) cuda_host_off(atanh(x), 2)
#define erf(x) cuda_host_off(erf(x), 2)
#define pow(x, y) cuda_host_off(pow(x, y), 2)

// Random numbers need products that are rounded, as __dmul_rn makes them.
static inline double cuda_host_product(double a, double b) {
    volatile double p = a * b;
    return p;
}
#define EGI_PRODUCT(a, b) cuda_host_product(a, b)
#endif
