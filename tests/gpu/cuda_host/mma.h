// tests/gpu/cuda_host/mma.h: the tensor cores' fragments of 16 x 16, as far as eager_cuda.cu uses them. All lanes of a
// warp must be there and say the same; pointers must be multiples of 32 bytes, rows of 16. A fragment to multiply is
// whole in every lane; of a sum a lane holds every 32nd element, and nobody should know which on a GPU.
#ifndef CUDA_HOST_MMA
#define CUDA_HOST_MMA
#include <type_traits>

#include "cuda_runtime.h"

// To the nearest of so few bits: TF32 takes the larger one of two that are as near, bfloat16 the even one.
static inline float cuda_host_rounded(float x, int bits, bool even) {
    uint32_t u, half = 1u << (bits - 1);
    if (!(x - x == 0)) return x;
    memcpy(&u, &x, 4);
    u += even ? half - 1 + (u >> bits & 1) : half;
    u &= ~((1u << bits) - 1);
    memcpy(&x, &u, 4);
    return x;
}
struct __nv_bfloat16 { uint16_t bits; };
static inline __nv_bfloat16 __float2bfloat16(float x) {
    uint32_t u;
    x = cuda_host_rounded(x, 16, true);
    memcpy(&u, &x, 4);
    return {(uint16_t)(u >> 16)};
}

namespace nvcuda { namespace wmma {
struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
namespace precision { struct tf32 {}; }
enum layout_t { mem_row_major, mem_col_major };
static inline float __float_to_tf32(float x) { return cuda_host_rounded(x, 13, false); }

// Element (i, k) of a, (k, j) of b and (i, j) of a sum; depth D.
template <class Use, int M, int N, int D, class E, class Order = void> struct fragment;
template <int D, class E, class Order> struct fragment<matrix_a, 16, 16, D, E, Order> { float x[16 * D]; };
template <int D, class E, class Order> struct fragment<matrix_b, 16, 16, D, E, Order> { float x[16 * D]; };
template <int D> struct fragment<accumulator, 16, 16, D, float, void> { float x[8]; };

static inline void cuda_host_warp(const void *p, unsigned ldm, size_t size) {
    if ((uintptr_t)p % 32) cuda_host_die("a fragment at an address that is no multiple of 32");
    if (ldm * size % 16) cuda_host_die("a fragment whose rows are no multiples of 16 bytes");
    cuda_host_together((int)(((uintptr_t)p ^ ldm * 0x9E3779B9u) & 0x3fffffff));
}
static inline float cuda_host_value(float v) {                // what a tensor core reads of it
    uint32_t u;
    memcpy(&u, &v, 4);
    u &= ~8191u;
    memcpy(&v, &u, 4);
    return v;
}
static inline float cuda_host_value(__nv_bfloat16 v) {
    uint32_t u = (uint32_t)v.bits << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
template <int D, class E, class Order, class U>
static inline void load_matrix_sync(fragment<matrix_a, 16, 16, D, E, Order> &f, const U *p, unsigned ldm) {
    cuda_host_warp(p, ldm, sizeof(U));
    bool rows = std::is_same<Order, row_major>::value;
    if (ldm < (rows ? D : 16)) cuda_host_die("a fragment wider than its rows");
    for (unsigned i = 0; i < 16; i++)
        for (unsigned k = 0; k < D; k++) f.x[i * D + k] = cuda_host_value(p[rows ? i * ldm + k : k * ldm + i]);
}
template <int D, class E, class Order, class U>
static inline void load_matrix_sync(fragment<matrix_b, 16, 16, D, E, Order> &f, const U *p, unsigned ldm) {
    cuda_host_warp(p, ldm, sizeof(U));
    bool rows = std::is_same<Order, row_major>::value;
    if (ldm < (rows ? 16 : D)) cuda_host_die("a fragment wider than its rows");
    for (unsigned k = 0; k < D; k++)
        for (unsigned j = 0; j < 16; j++) f.x[k * 16 + j] = cuda_host_value(p[rows ? k * ldm + j : j * ldm + k]);
}
template <int D> static inline void fill_fragment(fragment<accumulator, 16, 16, D, float> &f, float v) {
    cuda_host_together(1);
    for (int i = 0; i < 8; i++) f.x[i] = v;
}
template <int D, class E, class OA, class OB>
static inline void mma_sync(fragment<accumulator, 16, 16, D, float> &d, const fragment<matrix_a, 16, 16, D, E, OA> &a,
                            const fragment<matrix_b, 16, 16, D, E, OB> &b,
                            const fragment<accumulator, 16, 16, D, float> &c) {
    cuda_host_together(2);
    for (int e = 0; e < 8; e++) {
        int at = (int)threadIdx.x % 32 + 32 * e, i = at / 16, j = at % 16;
        float sum = c.x[e];
        for (int k = 0; k < D; k++) sum += a.x[i * D + k] * b.x[k * 16 + j];
        d.x[e] = sum;
    }
}
template <int D> static inline void store_matrix_sync(float *p, const fragment<accumulator, 16, 16, D, float> &f,
                                                      unsigned ldm, layout_t layout) {
    cuda_host_warp(p, ldm, sizeof(float));
    if (ldm < 16) cuda_host_die("a fragment wider than its rows");
    for (int e = 0; e < 8; e++) {
        unsigned at = threadIdx.x % 32 + 32 * (unsigned)e, i = at / 16, j = at % 16;
        p[layout == mem_row_major ? i * ldm + j : j * ldm + i] = f.x[e];
    }
}
} }
#endif
