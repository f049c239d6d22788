// tests/gpu/cuda_host/cublas_v2.h: what eager_cuda.cu uses of cuBLAS, as a plain loop.
#ifndef CUDA_HOST_CUBLAS
#define CUDA_HOST_CUBLAS
#include "cuda_runtime.h"

enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cudaDataType { CUDA_R_32F, CUDA_R_64F };
enum cublasComputeType_t {
    CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_64F
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
struct cublasContext {
    cudaStream_t stream;
    void *workspace = nullptr;
    size_t bytes = 0;
    int device = cuda_host_device;
};
typedef cublasContext *cublasHandle_t;

#define CUBLAS_HOST_CALL \
    std::lock_guard<std::recursive_mutex> guard(cuda_host_lock); \
    cudaError_t failure; \
    if (cuda_host_fails(&failure)) { \
        cuda_host_error = cudaSuccess; \
        return failure == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED; \
    }

static inline const char *cublasGetStatusString(cublasStatus_t) { return "an error of the stand-in"; }
static inline cublasStatus_t cublasCreate(cublasHandle_t *h) {
    CUBLAS_HOST_CALL
    *h = new cublasContext;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasDestroy(cublasHandle_t h) {
    CUBLAS_HOST_CALL
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s) {
    CUBLAS_HOST_CALL
    h->stream = s;
    h->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *workspace, size_t bytes) {
    CUBLAS_HOST_CALL
    if (!cuda_host_holds(workspace, bytes, true) || (uintptr_t)workspace % 256) return CUBLAS_STATUS_INVALID_VALUE;
    h->workspace = workspace;
    h->bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

// Column-major: C (m, n) = alpha op(A) op(B) + beta C. Summed in the matrices' own precision, cut to that asked for
// first.
template <class T> static inline T cublas_host_cut(T v, cublasComputeType_t compute) {
    if (compute != CUBLAS_COMPUTE_32F_FAST_TF32 && compute != CUBLAS_COMPUTE_32F_FAST_16BF) return v;
    float f = (float)v;
    uint32_t bits, keep = compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? 0xffffe000u : 0xffff0000u;
    memcpy(&bits, &f, 4);
    bits &= keep;
    memcpy(&f, &bits, 4);
    return (T)f;
}
template <class T> static inline void cublas_host_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                                       const T *a, int64_t lda, const T *b, int64_t ldb,
                                                       T *c, int64_t ldc, bool add, cublasComputeType_t compute) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            T sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += cublas_host_cut(ta ? a[p + i * lda] : a[i + p * lda], compute) *
                       cublas_host_cut(tb ? b[j + p * ldb] : b[p + j * ldb], compute);
            c[i + j * ldc] = add ? c[i + j * ldc] + sum : sum;
        }
}
static inline cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
    int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, cudaDataType ta_, int64_t lda, long long sa,
    const void *b, cudaDataType, int64_t ldb, long long sb, const void *beta,
    void *c, cudaDataType, int64_t ldc, long long sc, int64_t count, cublasComputeType_t compute, cublasGemmAlgo_t) {
    CUBLAS_HOST_CALL
    bool f = ta_ == CUDA_R_32F;
    if (h->device != cuda_host_device || h->stream->device != h->device)
        cuda_host_die("cuBLAS on another device than its handle's");
    const double times = f ? (double)*(const float *)beta : *(const double *)beta;
    if ((f ? (double)*(const float *)alpha : *(const double *)alpha) != 1 || (times != 0 && times != 1))
        cuda_host_die("cuBLAS with other factors than 1, and 0 or 1");
    if (lda < 1 || ldb < 1 || ldc < m || lda < (ta == CUBLAS_OP_N ? m : k) || ldb < (tb == CUBLAS_OP_N ? k : n))
        cuda_host_die("cuBLAS with a leading dimension that is too small");
    cuda_host_products++;
    void *workspace = h->workspace;
    if (!workspace) cuda_host_die("cuBLAS without a workspace of the program's");
    cuda_host_put(h->stream, [=] {
        const bool at = ta == CUBLAS_OP_T, bt = tb == CUBLAS_OP_T, add = times == 1;
        memset(workspace, 0xff, 256);
        for (int64_t i = 0; i < count; i++)
            if (f) cublas_host_gemm(at, bt, m, n, k, (const float *)a + i * sa, lda, (const float *)b + i * sb, ldb,
                                    (float *)c + i * sc, ldc, add, compute);
            else cublas_host_gemm(at, bt, m, n, k, (const double *)a + i * sa, lda, (const double *)b + i * sb, ldb,
                                  (double *)c + i * sc, ldc, add, compute);
    });
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasGemmEx_64(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
    int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, cudaDataType t, int64_t lda,
    const void *b, cudaDataType u, int64_t ldb, const void *beta, void *c, cudaDataType v, int64_t ldc,
    cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx_64(h, ta, tb, m, n, k, alpha, a, t, lda, 0, b, u, ldb, 0, beta,
                                         c, v, ldc, 0, 1, compute, algorithm);
}
#endif
