// tests/gpu/cuda_host/cublasLt.h: what eager_cuda.cu uses of cublasLt, a product with a bias and relu, as a plain loop.
#ifndef CUDA_HOST_CUBLASLT
#define CUDA_HOST_CUBLASLT
#include "cublas_v2.h"

struct cublasLtContext { int unused; };
typedef cublasLtContext *cublasLtHandle_t;
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_RELU_BIAS = 6 };
enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4, CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8
};
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};
struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cublasOperation_t ta, tb;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};
struct cublasLtMatrixLayoutOpaque_t { cudaDataType type; uint64_t rows, columns; int64_t ld; };
struct cublasLtMatmulPreferenceOpaque_t { size_t workspace; uint32_t alignment; };
struct cublasLtMatmulAlgo_t { uint32_t alignment; };                        // what the pointers must be multiples of
struct cublasLtMatmulHeuristicResult_t { cublasLtMatmulAlgo_t algo; size_t workspaceSize; };
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;

static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *h) {
    CUBLAS_HOST_CALL
    *h = new cublasLtContext;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
    CUBLAS_HOST_CALL
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t d, cublasComputeType_t compute, cudaDataType) {
    CUBLAS_HOST_CALL
    *d = {compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a,
                                                            const void *value, size_t bytes) {
    CUBLAS_HOST_CALL
    void *to = a == CUBLASLT_MATMUL_DESC_TRANSA ? (void *)&d->ta : a == CUBLASLT_MATMUL_DESC_TRANSB ? (void *)&d->tb :
               a == CUBLASLT_MATMUL_DESC_EPILOGUE ? (void *)&d->epilogue : (void *)&d->bias;
    if (bytes != (a == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof d->bias : 4))
        cuda_host_die("cublasLt with an attribute of another size");
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t l, cudaDataType type,
                                                      uint64_t rows, uint64_t columns, int64_t ld) {
    CUBLAS_HOST_CALL
    if (!rows || !columns || ld < (int64_t)rows) cuda_host_die("cublasLt with a leading dimension that is too small");
    *l = {type, rows, columns, ld};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t p) {
    CUBLAS_HOST_CALL
    *p = {0, 256};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
    cublasLtMatmulPreferenceAttributes_t a, const void *value, size_t bytes) {
    CUBLAS_HOST_CALL
    memcpy(a == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? (void *)&p->workspace : (void *)&p->alignment, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
    cublasLtMatmulPreference_t p, int, cublasLtMatmulHeuristicResult_t *result, int *found) {
    CUBLAS_HOST_CALL
    uint64_t m = d->ta == CUBLAS_OP_T ? a->columns : a->rows, k = d->ta == CUBLAS_OP_T ? a->rows : a->columns;
    uint64_t n = d->tb == CUBLAS_OP_T ? b->rows : b->columns, k2 = d->tb == CUBLAS_OP_T ? b->columns : b->rows;
    if (k != k2 || m != c->rows || n != c->columns) cuda_host_die("cublasLt with matrices that do not fit");
    if (d->epilogue != CUBLASLT_EPILOGUE_DEFAULT && (!d->bias || (uintptr_t)d->bias % p->alignment))
        cuda_host_die("cublasLt is asked about a bias that is not aligned as was said");
    *found = k % 7 != 0;                        // some products it does not know, of others it finds out too late
    *result = {{p->alignment}, k % 2 ? 300u : 0u};
    return *found ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
template <class T> static inline void cublas_host_epilogue(T *c, uint64_t m, uint64_t n, const T *bias, bool relu) {
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = 0; i < m; i++) {
            T y = c[i + j * m] + bias[i];
            c[i + j * m] = relu && y < 0 ? 0 : y;
        }
}
static inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *,
    const void *a, cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *,
    const void *, cublasLtMatrixLayout_t, void *c, cublasLtMatrixLayout_t lc,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes, cudaStream_t stream) {
    CUBLAS_HOST_CALL
    if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % algorithm->alignment)
        cuda_host_die("cublasLt with a pointer that is not aligned as was said");
    if ((uintptr_t)d->bias % algorithm->alignment)
        cuda_host_die("cublasLt with a bias that is not aligned as was said");
    if ((d->ta == CUBLAS_OP_T ? la->rows : la->columns) % 5 == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    cublasLtMatmulDescOpaque_t p = *d;
    cublasLtMatrixLayoutOpaque_t x = *la, y = *lb, z = *lc;
    cuda_host_put(stream, [=] {
        bool ta = p.ta == CUBLAS_OP_T, tb = p.tb == CUBLAS_OP_T, relu = p.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
        int64_t m = (int64_t)z.rows, n = (int64_t)z.columns, k = (int64_t)(ta ? x.rows : x.columns);
        if (bytes) memset(workspace, 0xff, bytes);
        if (x.type == CUDA_R_32F) {
            cublas_host_gemm(ta, tb, m, n, k, (const float *)a, x.ld, (const float *)b, y.ld, (float *)c, z.ld,
                             false, p.compute);
            cublas_host_epilogue((float *)c, z.rows, z.columns, (const float *)p.bias, relu);
        } else {
            cublas_host_gemm(ta, tb, m, n, k, (const double *)a, x.ld, (const double *)b, y.ld, (double *)c, z.ld,
                             false, p.compute);
            cublas_host_epilogue((double *)c, z.rows, z.columns, (const double *)p.bias, relu);
        }
    });
    return CUBLAS_STATUS_SUCCESS;
}
#endif
