/* eager_cuda.cu - NVIDIA GPUs for eager.h, as devices "gpu:0", "gpu:1", ...
 *
 *   nvcc -O2 -arch=native -c eager_cuda.cu                          CUDA 13 (12 was not tried); for other GPUs than
 this machine's: -arch=all-major
 *   cc -DEAGER_CUDA program.c eager_cuda.o -L/usr/local/cuda/lib64 -lcublas -lcudart -lstdc++ -lm -lpthread
 *
 * nvcc -DEAGER_CUBLASLT, and -lcublasLt after -lcublas: then a dense layer's bias and relu are part of its product.
 *
 * The table of chapter 16 of eager.h, filled in. What runs in order on a GPU is one stream for each; the program goes
 on
 * meanwhile, until it reads a value. No sum depends on which thread comes first: the same program gives the same bits.
 *
 *   1  THE DEVICE     2  MEMORY AND COPIES     3  ELEMENTWISE, COPY, FILL     4  REDUCTIONS AND ROWS     5  PRODUCTS
 *   6  CONVOLUTION AND POOLING     7  INDICES AND SORTING     8  RANDOM NUMBERS, UPDATES     9  LAYERS AS ONE     10 
 THE TABLE
 *
 * Kernels are started by EGI_LAUNCH, those that have barriers by EGI_LAUNCH_WITH_BARRIERS, and declare shared memory by
 * EGI_SHARED: then g++ compiles this file, too, and the tests run it without a GPU (tests/gpu/cuda_host/). What finds
 no memory, be
 * it a launch, cuBLAS or the runtime, is called once more when our cache is free: EGI_GPU_TWICE.
 */
#define EAGER_BACKEND
#include "eager.h"

#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <mma.h>
#ifdef EAGER_CUBLASLT
#include <cublasLt.h>
#endif
#include <pthread.h>

#ifdef __CUDACC__
#define EGI_SHARED(type, name, count) __shared__ __align__(32) type name[count]
#define EGI_BARRIER() __syncthreads()
#define EGI_WARP_BARRIER() __syncwarp()
#define EGI_UNROLL _Pragma("unroll")
#define EGI_UNROLL_EIGHT _Pragma("unroll 8")
#define EGI_SHUFFLE(v, mask) \
    __shfl_xor_sync(0xffffffffu, v, mask)       /* what the thread at the place ^ mask of the warp has */
template <class T> struct egi_gpu_same { typedef T type; };
// What <<<>>> does, but it says whether it could.
template <class... P> static cudaError_t egi_gpu_start(void (*kernel)(P...), int64_t blocks, unsigned threads,
                                                       cudaStream_t stream, typename egi_gpu_same<P>::type... p) {
    void *parameters[] = { (void *)&p... };
    return cudaLaunchKernel((const void *)kernel, dim3((unsigned)blocks), dim3(threads), parameters, 0, stream);
}
#define EGI_START egi_gpu_start
#define EGI_START_WITH_BARRIERS egi_gpu_start
#endif
#ifdef EGI_CUDA_BREAK_BARRIER  // the tests prove that they would see a missing one: that of this number
#define EGI_BARRIER_TO_BREAK(number) do { if ((number) != EGI_CUDA_BREAK_BARRIER) EGI_BARRIER(); } while (0)
#else
#define EGI_BARRIER_TO_BREAK(number) EGI_BARRIER()
#endif

//# 1  THE DEVICE -------------------------------------------------------------
// Idea: a device is three streams, a cuBLAS handle, free blocks of memory by size, pinned memory for copies, and a word
// that kernels write where they find an index out of range.

enum { EGI_GPU_THREADS = 256, EGI_GPU_CLASSES = 8 * 48, EGI_GPU_SITES = 4096, EGI_GPU_STAGE = 4 << 20,
       EGI_GPU_MOST = 16 };

typedef struct egi_gpu_block { struct egi_gpu_block *next; void *data; int64_t bytes; } egi_gpu_block;
// Where an index was checked, for the sentence that says so later.
typedef struct egi_gpu_site {
    const char *name; unsigned serial; int dtype; eg_shape shape; bool classes;
} egi_gpu_site;
// The first bad index since the last look. Pinned memory: kernels write it, the host reads it once they are done.
typedef struct egi_gpu_fault { unsigned taken, serial; int64_t value, position, limit; } egi_gpu_fault;

// What the NaN trap will have to say, by number. A thread hears of its own ops: it has a fault of its own.
typedef struct egi_gpu_trap { unsigned serial; char name[96], what[512]; } egi_gpu_trap;
enum { EGI_GPU_TRAPS = 256, EGI_GPU_TRAP_THREADS = 1024, EGI_GPU_TRAP_LIST = 16 };
static bool egi_gpu_trap_taken[EGI_GPU_TRAP_THREADS];                 // under egi_gpu_trap_lock
static pthread_mutex_t egi_gpu_trap_lock = PTHREAD_MUTEX_INITIALIZER;
// A thread's number from its first trap to its end; another thread may have had it before, whose fault is cleared on
// each device before it is used there.
struct egi_gpu_trap_thread_of {
    int number = -1;                                                  // -1: it has set no trap yet
    unsigned cleared = 0;                                             // devices, by their place in egi_gpus
    ~egi_gpu_trap_thread_of() {
        if (number < 0) return;
        pthread_mutex_lock(&egi_gpu_trap_lock);
        egi_gpu_trap_taken[number] = false;
        pthread_mutex_unlock(&egi_gpu_trap_lock);
    }
};
static thread_local egi_gpu_trap_thread_of egi_gpu_trap_thread;

// Two pinned buffers, used in turn, and the stream that copies out of them.
typedef struct egi_gpu_stage {
    pthread_mutex_t lock;
    cudaStream_t stream;
    cudaEvent_t computed, copied[2];
    char *part[2];
    int next;
} egi_gpu_stage;
enum { EGI_GPU_ARRIVALS = 32 };

#ifdef EAGER_CUBLASLT
// How cublasLt computes one kind of product with a bias: asking it takes longer than a small product.
typedef struct egi_gpu_plan_key {
    int64_t m, n, k, lda, ldb, ta, tb, dtype, precision, relu, alignment;
} egi_gpu_plan_key;
typedef struct egi_gpu_plan {
    egi_gpu_plan_key key;                        // m 0: there is none
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    bool none;                                   // cublasLt has no way to do it
} egi_gpu_plan;
enum { EGI_GPU_PLANS = 64 };
#endif

typedef struct egi_gpu {
    eg_backend backend;                          // first: a backend's address is its device's
    int ordinal;
    char name[16];
    int ready;                                   // it has been started: what follows is there
    int multiprocessors;
    bool cores;                                  // tensor cores for TF32 and bfloat16, and kernels compiled for them
    cudaStream_t compute;
    egi_gpu_stage writes, uploads;               // what is waited for at once, and what is sent ahead
    cudaEvent_t arrivals[EGI_GPU_ARRIVALS];      // of uploads, by their tickets
    int64_t tickets;
    cublasHandle_t blas;
    void *blas_workspace;
#ifdef EAGER_CUBLASLT
    cublasLtHandle_t lt;
    egi_gpu_plan plans[EGI_GPU_PLANS];
    int next_plan;
#endif
    pthread_mutex_t product;                     // cuBLAS and the plans
    pthread_mutex_t lock;                        // what stands below
    pthread_mutex_t reading;                     // the stage for reads
    egi_gpu_block *free[EGI_GPU_CLASSES], *spare;        // cached blocks by size class; nodes without a block
    char *read_stage;
    egi_gpu_site sites[EGI_GPU_SITES];
    unsigned next_site;
    egi_gpu_fault *fault;             // of indices; after it those of the trap, by thread
    egi_gpu_trap *traps;              // NULL before one is set
    unsigned next_trap, looked_trap;  // the number of the next one; of the first that may not have been looked for
    bool dead;                        // its context is lost
    char why_dead[200];
} egi_gpu;
static egi_gpu egi_gpus[EGI_GPU_MOST];
static int egi_gpu_count;                        // of those registered

static int64_t egi_gpu_min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t egi_gpu_max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t egi_gpu_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t egi_gpu_power(int64_t n, int64_t most) {         // the least power of two that is >= n, or most
    int64_t p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

// After these, every later call of the process fails too: the context is lost.
static bool egi_gpu_fatal(cudaError_t e) {
    return e == cudaErrorIllegalAddress || e == cudaErrorLaunchTimeout || e == cudaErrorAssert ||
           e == cudaErrorHardwareStackError || e == cudaErrorIllegalInstruction || e == cudaErrorMisalignedAddress ||
           e == cudaErrorInvalidAddressSpace || e == cudaErrorInvalidPc || e == cudaErrorLaunchFailure ||
           e == cudaErrorECCUncorrectable;
}
static bool egi_gpu_fail(egi_gpu *g, const char *op, cudaError_t e) {
    cudaGetLastError();                          // what is not fatal is forgotten with this
    if (g->dead) return egi_raise(EG_ERROR_DEVICE, op, "%s", g->why_dead) != NULL;
    if (e == cudaErrorMemoryAllocation)
        return egi_raise(EG_ERROR_MEMORY, op, "out of memory on %s", g->name) != NULL;
    if (!egi_gpu_fatal(e))
        return egi_raise(EG_ERROR_DEVICE, op, "%s: %s (CUDA error %d)", g->name, cudaGetErrorString(e), (int)e) != NULL;
    snprintf(g->why_dead, sizeof g->why_dead,
             "%s is lost: %s (CUDA error %d). Nothing can be computed or read there until the program is started anew",
             g->name, cudaGetErrorString(e), (int)e);
    g->dead = true;
    return eg_raise(EG_ERROR_DEVICE, "eg_%s, or an op before it: %s", op, g->why_dead) != NULL;
}

static void egi_gpu_make_room(egi_gpu *g);
static bool egi_gpu_no_memory(cudaError_t e) { return e == cudaErrorMemoryAllocation; }
static bool egi_gpu_no_memory(cublasStatus_t s) {  // its own, or of a kernel of its that was to be loaded
    return s == CUBLAS_STATUS_ALLOC_FAILED ||
           (s != CUBLAS_STATUS_SUCCESS && cudaPeekAtLastError() == cudaErrorMemoryAllocation);
}
// A call that finds no memory has done nothing: it is made once more when what we have cached is free. g->lock must not
// be held.
#define EGI_GPU_TWICE(g, result, call) \
    do { \
        (result) = (call); \
        if (!egi_gpu_no_memory(result)) break; \
        egi_gpu_make_room(g); \
        (result) = (call); \
    } while (0)
#define EGI_GPU_TRY(g, op, call) \
    do { \
        cudaError_t egi_e; \
        EGI_GPU_TWICE(g, egi_e, call); \
        if (egi_e != cudaSuccess) return egi_gpu_fail(g, op, egi_e); \
    } while (0)
// A kernel's code may be loaded when it is first wanted, and its local memory be made then. Behind a launch that failed
// nothing is launched until the error is taken: it would read what was never made.
#define EGI_GPU_LAUNCH_BY(start, stream, ...) \
    do { \
        cudaError_t egi_e = cudaPeekAtLastError(); \
        if (egi_e == cudaSuccess) EGI_GPU_TWICE(egi_gpu_of_stream(stream), egi_e, start(__VA_ARGS__)); \
    } while (0)
#define EGI_LAUNCH(kernel, blocks, threads, stream, ...) \
    EGI_GPU_LAUNCH_BY(EGI_START, stream, kernel, blocks, threads, stream, __VA_ARGS__)
#define EGI_LAUNCH_WITH_BARRIERS(kernel, blocks, threads, stream, ...) \
    EGI_GPU_LAUNCH_BY(EGI_START_WITH_BARRIERS, stream, kernel, blocks, threads, stream, __VA_ARGS__)
static egi_gpu *egi_gpu_of_stream(cudaStream_t compute) {
    int i = 0;
    while (egi_gpus[i].compute != compute) i++;
    return &egi_gpus[i];
}

static egi_gpu *egi_gpu_of(eg_backend *b) { return (egi_gpu *)(void *)b; }
// Makes the device the calling thread's, which launches and allocations are about.
static egi_gpu *egi_gpu_enter(eg_backend *b) {
    egi_gpu *g = egi_gpu_of(b);
    if (cudaSetDevice(g->ordinal) != cudaSuccess) cudaGetLastError();        // the launch will tell
    return g;
}
static const char *egi_gpu_op_name(const egi_args *args) {
    return args->op ? args->op->name : args->in[0] ? "copy" : "fill";
}
// True if what was launched could be.
static bool egi_gpu_launched_for(egi_gpu *g, const char *op) {
    cudaError_t e = g->dead ? cudaSuccess : cudaGetLastError();
    return (!g->dead && e == cudaSuccess) || egi_gpu_fail(g, op, e);
}
static bool egi_gpu_launched(egi_gpu *g, const egi_args *args) {
    return egi_gpu_launched_for(g, egi_gpu_op_name(args));
}
static int64_t egi_gpu_blocks(int64_t units) {
    return egi_gpu_max(1, egi_gpu_min(egi_gpu_ceil(units, EGI_GPU_THREADS), 1 << 16));
}
// The loop of a kernel without barriers over its units.
#define EGI_GPU_EACH(i, n) \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, egi_step = (int64_t)gridDim.x * blockDim.x; \
         i < (n); i += egi_step)

//# 2  MEMORY AND COPIES ------------------------------------------------------
// Idea: freed blocks are kept by size and given out again. All work of a device runs in one stream, so a block that is
// freed here can be used by the next kernel at once. Copies go through pinned memory, in streams of their own that
// events order: a write before what is launched after it, an upload beside it.

// Eight sizes for each power of two, from 512 bytes up.
static int egi_gpu_class(int64_t bytes, int64_t *size) {
    int64_t base = 512;
    int c = 0;
    for (; base * 2 <= bytes; base *= 2) c += 8;
    int64_t step = base / 8, k = bytes <= base ? 0 : egi_gpu_ceil(bytes - base, step);
    *size = base + k * step;
    return c + (int)k;
}
static void egi_gpu_give_back(void *data) {      // waits for the kernels that use it
    if (cudaFree(data) != cudaSuccess) cudaGetLastError();
}
static void egi_gpu_trim_locked(egi_gpu *g) {
    for (int c = 0; c < EGI_GPU_CLASSES; c++)
        while (g->free[c]) {
            egi_gpu_block *b = g->free[c];
            g->free[c] = b->next;
            egi_gpu_give_back(b->data);
            free(b);
        }
}
static bool egi_gpu_ready(eg_backend *b) { return __atomic_load_n(&egi_gpu_of(b)->ready, __ATOMIC_ACQUIRE); }
static void egi_gpu_trim(eg_backend *backend) {
    if (!egi_gpu_ready(backend)) return;
    egi_gpu *g = egi_gpu_enter(backend);
    pthread_mutex_lock(&g->lock);
    egi_gpu_trim_locked(g);
    pthread_mutex_unlock(&g->lock);
}
// For a device that starts, all caches of the process: it has none yet, and pinned memory is the host's.
static void egi_gpu_make_room(egi_gpu *g) {
    cudaGetLastError();
    if (egi_gpu_ready(&g->backend)) egi_gpu_trim(&g->backend);
    else (eg_memory_trim)();
    egi_gpu_enter(&g->backend);
}
// A node for each block that is given out waits in spare, so that freeing needs no memory.
static void *egi_gpu_allocate(eg_backend *backend, int64_t bytes) {
    egi_gpu *g = egi_gpu_of(backend);
    int64_t size;
    if (bytes < 0 || bytes > (int64_t)1 << 50) return NULL;
    int c = egi_gpu_class(bytes, &size);
    void *data = NULL;
    pthread_mutex_lock(&g->lock);
    egi_gpu_block *b = g->free[c];
    if (b) {
        g->free[c] = b->next;
        data = b->data;
        b->next = g->spare;
        g->spare = b;
    }
    pthread_mutex_unlock(&g->lock);
    if (data || !(b = (egi_gpu_block *)malloc(sizeof *b))) return data;
    cudaError_t e;
    egi_gpu_enter(backend);
    EGI_GPU_TWICE(g, e, cudaMalloc(&data, (size_t)size));
    if (e != cudaSuccess) {
        cudaGetLastError();
        free(b);
        return NULL;
    }
    pthread_mutex_lock(&g->lock);
    b->next = g->spare;
    g->spare = b;
    pthread_mutex_unlock(&g->lock);
    return data;
}
static void egi_gpu_deallocate(eg_backend *backend, void *data, int64_t bytes) {
    egi_gpu *g = egi_gpu_of(backend);
    int64_t size;
    int c = egi_gpu_class(bytes, &size);
    if (!data) return;
    pthread_mutex_lock(&g->lock);
    egi_gpu_block *b = g->spare;
    if (b) {
        g->spare = b->next;
        b->data = data;
        b->bytes = size;
        b->next = g->free[c];
        g->free[c] = b;
    } else egi_gpu_give_back(data);
    pthread_mutex_unlock(&g->lock);
}
// A workspace for the kernels of one op: given back as soon as they are launched.
static void *egi_gpu_workspace(egi_gpu *g, const char *op, int64_t bytes) {
    void *p = egi_gpu_allocate(&g->backend, bytes);
    if (!p) egi_raise(EG_ERROR_MEMORY, op, "out of memory: %lld bytes on %s", (long long)bytes, g->name);
    return p;
}

static bool egi_gpu_check_trap(egi_gpu *g) {
    if (!(egi_gpu_trap_thread.cleared >> (g - egi_gpus) & 1)) return true;
    egi_gpu_fault *fault = &g->fault[1 + egi_gpu_trap_thread.number], f = *fault;
    egi_gpu_trap t;
    if (!f.taken) return true;
    memset(fault, 0, sizeof *fault);
    pthread_mutex_lock(&g->lock);
    t = g->traps[f.serial % EGI_GPU_TRAPS];
    pthread_mutex_unlock(&g->lock);
    if (t.serial != f.serial)
        return eg_raise(EG_ERROR_NONFINITE, "%s: an op made %lld NaN or infinite elements", g->name,
                        (long long)f.value) != NULL;
    return egi_raise(EG_ERROR_NONFINITE, t.name, "made %lld NaN or infinite elements of %s (%s found it later)",
                     (long long)f.value, t.what, g->name) != NULL;
}
// [1, 0], as errors on the CPU have it; EG_SHAPE_TEXT bytes
static void egi_gpu_list(char *text, const int64_t *x, int n) {
    size_t length = (size_t)snprintf(text, EG_SHAPE_TEXT, "[");
    for (int i = 0; i < n; i++)
        length += (size_t)snprintf(text + length, EG_SHAPE_TEXT - length, i ? ", %lld" : "%lld", (long long)x[i]);
    snprintf(text + length, EG_SHAPE_TEXT - length, "]");
}
// What kernels have found since the last look is raised now; the stream has been waited for.
static bool egi_gpu_check(egi_gpu *g) {
    egi_gpu_fault f = *g->fault;
    if (!f.taken) return egi_gpu_check_trap(g);
    memset(g->fault, 0, sizeof *g->fault);
    pthread_mutex_lock(&g->lock);
    egi_gpu_site s = g->sites[f.serial % EGI_GPU_SITES];
    pthread_mutex_unlock(&g->lock);
    if (s.serial != f.serial)
        return eg_raise(EG_ERROR_INDEX, "%s: an index, %lld, is out of range [0, %lld)", g->name, (long long)f.value,
                        (long long)f.limit) != NULL;
    char text[EG_SHAPE_TEXT], at[EG_SHAPE_TEXT];
    int64_t rest = f.position, index[EG_MAX_RANK];
    for (int d = s.shape.rank - 1; d >= 0; d--) { index[d] = rest % s.shape.dims[d]; rest /= s.shape.dims[d]; }
    egi_gpu_list(at, index, s.shape.rank);
    egi_gpu_list(text, s.shape.dims, s.shape.rank);
    return egi_raise(EG_ERROR_INDEX, s.name, "%s %lld at position %s of %s %s is %s%lld%s (%s found it later)",
                     s.classes ? "label" : "index", (long long)f.value, at, eg_dtype_name((eg_dtype)s.dtype),
                     text, s.classes ? "none of the " : "out of range [0, ", (long long)f.limit,
                     s.classes ? " classes, which count from 0" : ")", g->name) != NULL;
}
static bool egi_gpu_wait(egi_gpu *g) {
    if (g->dead) return egi_gpu_fail(g, "synchronize", cudaSuccess);
    // all streams, those of other libraries that memory is lent to, too
    EGI_GPU_TRY(g, "synchronize", cudaDeviceSynchronize());
    return egi_gpu_check(g);
}
// Another library's thread may come by here, to give back what it was lent: it keeps the device that it works with.
static bool egi_gpu_synchronize(eg_backend *b) {
    if (!egi_gpu_ready(b)) return true;
    int former = -1;
    if (cudaGetDevice(&former) != cudaSuccess) cudaGetLastError();
    egi_gpu *g = egi_gpu_enter(b);
    pthread_mutex_lock(&g->reading);
    bool ok = egi_gpu_wait(g);
    pthread_mutex_unlock(&g->reading);
    if (former >= 0 && former != g->ordinal && cudaSetDevice(former) != cudaSuccess) cudaGetLastError();
    return ok;
}

template <class U> static __global__ void egi_gpu_write_one(U *to, U value) { *to = value; }

// A copy begins when what was launched before is done: the memory may have been another tensor's. `last` is its end.
static bool egi_gpu_send(egi_gpu *g, egi_gpu_stage *s, char *to, const char *from, int64_t bytes, cudaEvent_t *last) {
    EGI_GPU_TRY(g, "write", cudaEventRecord(s->computed, g->compute));
    EGI_GPU_TRY(g, "write", cudaStreamWaitEvent(s->stream, s->computed, 0));
    for (int64_t at = 0; at < bytes; at += EGI_GPU_STAGE) {
        size_t part = (size_t)egi_gpu_min(bytes - at, EGI_GPU_STAGE);
        int i = s->next;
        s->next = !i;
        EGI_GPU_TRY(g, "write", cudaEventSynchronize(s->copied[i]));
        memcpy(s->part[i], from + at, part);
        EGI_GPU_TRY(g, "write", cudaMemcpyAsync(to + at, s->part[i], part, cudaMemcpyHostToDevice, s->stream));
        EGI_GPU_TRY(g, "write", cudaEventRecord(s->copied[i], s->stream));
        *last = s->copied[i];
    }
    return true;
}
// What is launched after it begins when it is done.
static bool egi_gpu_write_staged(egi_gpu *g, char *to, const char *from, int64_t bytes) {
    cudaEvent_t last = NULL;
    if (!egi_gpu_send(g, &g->writes, to, from, bytes, &last)) return false;
    EGI_GPU_TRY(g, "write", cudaStreamWaitEvent(g->compute, last, 0));
    return true;
}
static bool egi_gpu_upload_staged(egi_gpu *g, char *to, const char *from, int64_t bytes, int64_t *ticket) {
    cudaEvent_t last = NULL;
    if (!egi_gpu_send(g, &g->uploads, to, from, bytes, &last)) return false;
    EGI_GPU_TRY(g, "upload", cudaEventRecord(g->arrivals[(g->tickets + 1) % EGI_GPU_ARRIVALS], g->uploads.stream));
    *ticket = ++g->tickets;
    return true;
}
static bool egi_gpu_upload(eg_backend *b, void *to, const void *from, int64_t bytes, int64_t *ticket) {
    egi_gpu *g = egi_gpu_enter(b);
    pthread_mutex_lock(&g->uploads.lock);
    bool ok = egi_gpu_upload_staged(g, (char *)to, (const char *)from, bytes, ticket);
    if (!ok) cudaStreamSynchronize(g->uploads.stream);  // what was begun must not write into memory that is given back
    pthread_mutex_unlock(&g->uploads.lock);
    return ok;
}
// An event that later uploads have taken over stands for these, which come after.
static bool egi_gpu_arrived(eg_backend *b, int64_t ticket) {
    egi_gpu *g = egi_gpu_enter(b);
    EGI_GPU_TRY(g, "upload", cudaStreamWaitEvent(g->compute, g->arrivals[ticket % EGI_GPU_ARRIVALS], 0));
    return true;
}
static bool egi_gpu_write(eg_backend *b, void *to, const void *from, int64_t bytes) {
    egi_gpu *g = egi_gpu_enter(b);
    uint64_t value = 0;
    if (bytes <= 0) return true;
    if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) {          // a number travels as a kernel's parameter
        memcpy(&value, from, (size_t)bytes);
        uint8_t v8;
        uint16_t v16;
        uint32_t v32;
        memcpy(&v8, from, 1);
        if (bytes == 1) EGI_LAUNCH(egi_gpu_write_one<uint8_t>, 1, 1, g->compute, (uint8_t *)to, v8);
        if (bytes == 2) {
            memcpy(&v16, from, 2);
            EGI_LAUNCH(egi_gpu_write_one<uint16_t>, 1, 1, g->compute, (uint16_t *)to, v16);
        }
        if (bytes == 4) {
            memcpy(&v32, from, 4);
            EGI_LAUNCH(egi_gpu_write_one<uint32_t>, 1, 1, g->compute, (uint32_t *)to, v32);
        }
        if (bytes == 8) EGI_LAUNCH(egi_gpu_write_one<uint64_t>, 1, 1, g->compute, (uint64_t *)to, value);
        return egi_gpu_launched_for(g, "write");
    }
    pthread_mutex_lock(&g->writes.lock);
    bool ok = egi_gpu_write_staged(g, (char *)to, (const char *)from, bytes);
    pthread_mutex_unlock(&g->writes.lock);
    return ok;
}
static bool egi_gpu_read_staged(egi_gpu *g, char *to, const char *from, int64_t bytes) {
    if (g->dead) return egi_gpu_fail(g, "read", cudaSuccess);
    for (int64_t at = 0; at < bytes; at += EGI_GPU_STAGE) {
        size_t part = (size_t)egi_gpu_min(bytes - at, EGI_GPU_STAGE);
        EGI_GPU_TRY(g, "read", cudaMemcpyAsync(g->read_stage, from + at, part, cudaMemcpyDeviceToHost, g->compute));
        EGI_GPU_TRY(g, "read", cudaStreamSynchronize(g->compute));
        memcpy(to + at, g->read_stage, part);
    }
    return egi_gpu_check(g);
}
static bool egi_gpu_read(eg_backend *b, void *to, const void *from, int64_t bytes) {
    egi_gpu *g = egi_gpu_enter(b);
    pthread_mutex_lock(&g->reading);
    bool ok = bytes <= 0 || egi_gpu_read_staged(g, (char *)to, (const char *)from, bytes);
    pthread_mutex_unlock(&g->reading);
    return ok;
}

//# 3  ELEMENTWISE, COPY, FILL ------------------------------------------------
// Idea: element i of the result, in row-major order, is read from where each operand's strides say. Axes that lie one
// after the other in all operands are merged first: most often one is left, and nothing is divided. The kernels are
// stamped out of eager.h's table; float32 gets one for each row and each gradient and moves four elements at once.

// n / d by a product and a shift, for n < 2^31.
typedef struct egi_gpu_divisor { uint32_t multiplier, shift; } egi_gpu_divisor;
static egi_gpu_divisor egi_gpu_divide_by(int64_t d) {
    egi_gpu_divisor r = { 0, 0 };
    if (d < 1 || d > INT32_MAX) return r;
    while (((int64_t)1 << r.shift) < d) r.shift++;
    r.multiplier = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << r.shift) - (uint64_t)d)) / (uint64_t)d + 1);
    return r;
}
EGI_EVERYWHERE uint32_t egi_gpu_quotient(uint32_t n, egi_gpu_divisor d) {
    return (uint32_t)((((uint64_t)n * d.multiplier) >> 32) + n) >> d.shift;
}

enum { EGI_GPU_OPERANDS = 5 };
typedef struct egi_gpu_walk {
    int64_t size;
    int rank;
    bool wide;                                   // 2^31 elements or more
    int64_t dims[EG_MAX_RANK], strides[EGI_GPU_OPERANDS][EG_MAX_RANK];
    egi_gpu_divisor by[EG_MAX_RANK];
} egi_gpu_walk;
// n operands (NULL: none) that broadcast to a shape.
static void egi_gpu_walk_make(egi_gpu_walk *w, const eg_tensor *shape, const eg_tensor *const *x, int n) {
    memset(w, 0, sizeof *w);
    w->size = shape->size;
    w->wide = shape->size > INT32_MAX;
    for (int d = 0; d < shape->rank; d++) {
        int64_t stride[EGI_GPU_OPERANDS] = { 0 }, dim = shape->dims[d];
        if (dim == 1) continue;
        bool continues = w->rank > 0;
        for (int o = 0; o < n; o++) {
            int k = x[o] ? d - (shape->rank - x[o]->rank) : -1;
            stride[o] = k < 0 || x[o]->dims[k] == 1 ? 0 : x[o]->strides[k];
            continues = continues && w->strides[o][w->rank - 1] == stride[o] * dim;
        }
        if (!continues) { w->rank++; w->dims[w->rank - 1] = 1; }
        w->dims[w->rank - 1] *= dim;
        for (int o = 0; o < n; o++) w->strides[o][w->rank - 1] = stride[o];
    }
    if (!w->rank) { w->rank = 1; w->dims[0] = 1; }
    for (int d = 0; d < w->rank; d++) w->by[d] = egi_gpu_divide_by(w->dims[d]);
}
// Where element i of the walk lies in each of N operands.
template <int N> static __device__ __forceinline__ void egi_gpu_locate(const egi_gpu_walk &w, int64_t i, int64_t *at) {
    for (int o = 0; o < N; o++) at[o] = 0;
    for (int d = w.rank - 1; d > 0; d--) {
        int64_t q = w.wide ? i / w.dims[d] : (int64_t)egi_gpu_quotient((uint32_t)i, w.by[d]), r = i - q * w.dims[d];
        for (int o = 0; o < N; o++) at[o] += r * w.strides[o][d];
        i = q;
    }
    for (int o = 0; o < N; o++) at[o] += i * w.strides[o][0];
}

typedef struct egi_gpu_elementwise {
    egi_gpu_walk walk;
    int64_t units, fours;                        // the first units are four elements each, the others one
    const void *in[5];                           // a, b, c, y, g
    uint64_t number[5];                          // of those that are plain numbers
    unsigned numbers, bytes;                     // bits: plain numbers; bool operands among others
    int op;
    bool to_bool;
    void *out;
} egi_gpu_elementwise;

template <class T> static __device__ __forceinline__ T egi_gpu_number_of(const egi_gpu_elementwise &p, int o) {
    T v;
    memcpy(&v, &p.number[o], sizeof v);
    return v;
}
template <class T>
static __device__ __forceinline__ T egi_gpu_operand(const egi_gpu_elementwise &p, int o, int64_t at) {
    if (p.numbers >> o & 1) return egi_gpu_number_of<T>(p, o);
    if (p.bytes >> o & 1) return (T)((const uint8_t *)p.in[o])[at];
    return ((const T *)p.in[o])[at];
}
static __device__ __forceinline__ float4 egi_gpu_four(const egi_gpu_elementwise &p, int o, int64_t at) {
    if ((p.numbers >> o & 1) || p.walk.strides[o][p.walk.rank - 1] == 0) {
        float v = egi_gpu_operand<float>(p, o, at);
        return make_float4(v, v, v, v);
    }
    if (p.bytes >> o & 1) {
        uchar4 v = *(const uchar4 *)((const uint8_t *)p.in[o] + at);
        return make_float4((float)v.x, (float)v.y, (float)v.z, (float)v.w);
    }
    return *(const float4 *)((const float *)p.in[o] + at);
}
static __device__ __forceinline__ void egi_gpu_put_four(void *out, int64_t at, float x, float y, float z, float w) {
    *(float4 *)((float *)out + at) = make_float4(x, y, z, w);
}
static __device__ __forceinline__ void egi_gpu_put_four(void *out, int64_t at, int x, int y, int z, int w) {
    *(uchar4 *)((uint8_t *)out + at) = make_uchar4((unsigned char)x, (unsigned char)y, (unsigned char)z,
                                                   (unsigned char)w);
}
static __device__ __forceinline__ void egi_gpu_put(void *out, int64_t at, float x) { ((float *)out)[at] = x; }
static __device__ __forceinline__ void egi_gpu_put(void *out, int64_t at, int x) { ((uint8_t *)out)[at] = (uint8_t)x; }

template <class F> static __global__ void egi_gpu_elementwise_f32(egi_gpu_elementwise p) {
    EGI_GPU_EACH(i, p.units) {
        bool four = i < p.fours;
        int64_t e = four ? 4 * i : 3 * p.fours + i, at[5];
        egi_gpu_locate<5>(p.walk, e, at);
        if (four) {
            const float4 a = egi_gpu_four(p, 0, at[0]), b = egi_gpu_four(p, 1, at[1]), c = egi_gpu_four(p, 2, at[2]),
                         y = egi_gpu_four(p, 3, at[3]),
                         g = egi_gpu_four(p, 4, at[4]);
            egi_gpu_put_four(p.out, e, F::of(a.x, b.x, c.x, y.x, g.x), F::of(a.y, b.y, c.y, y.y, g.y),
                             F::of(a.z, b.z, c.z, y.z, g.z), F::of(a.w, b.w, c.w, y.w, g.w));
        } else
            egi_gpu_put(p.out, e, F::of(egi_gpu_operand<float>(p, 0, at[0]), egi_gpu_operand<float>(p, 1, at[1]),
                                        egi_gpu_operand<float>(p, 2, at[2]), egi_gpu_operand<float>(p, 3, at[3]),
                                        egi_gpu_operand<float>(p, 4, at[4])));
    }
}
// The formulas of the table, each as a type with a function: value, and gradient by operand.
#define EGI_GPU_FORMULA(T, name, formula) \
    struct name { \
        static __device__ __forceinline__ T of(const float a, const float b, const float c, const float y, \
                                               const float g) { \
            (void)a; (void)b; (void)c; (void)y; (void)g; \
            return formula; \
        } \
    };
#define EGI_GPU_VALUE_F(name, f) EGI_GPU_FORMULA(float, egi_gpu_value_##name, f)
#define EGI_GPU_VALUE_M EGI_GPU_VALUE_F
#define EGI_GPU_VALUE_S EGI_GPU_VALUE_F
#define EGI_GPU_VALUE_N EGI_GPU_VALUE_F
#define EGI_GPU_VALUE_W EGI_GPU_VALUE_F
#define EGI_GPU_VALUE_C(name, f) EGI_GPU_FORMULA(int, egi_gpu_value_##name, f)
#define EGI_GPU_VALUE_E EGI_GPU_VALUE_C
#define EGI_GPU_VALUE_P EGI_GPU_VALUE_C
#define EGI_GPU_VALUE_B(name, f) struct egi_gpu_value_##name;
#define EGI_GPU_F1(kind, name, f, d0) EGI_GPU_VALUE_##kind(name, f) EGI_GPU_FORMULA(float, egi_gpu_d0_##name, d0)
#define EGI_GPU_F_ND(kind, name, f) EGI_GPU_VALUE_##kind(name, f)
#define EGI_GPU_F2(kind, name, f, d0, d1) EGI_GPU_F1(kind, name, f, d0) EGI_GPU_FORMULA(float, egi_gpu_d1_##name, d1)
#define EGI_GPU_F3(kind, name, f, d0, d1, d2) \
    EGI_GPU_F2(kind, name, f, d0, d1) EGI_GPU_FORMULA(float, egi_gpu_d2_##name, d2)
#define EGI_V egi_f32
EGI_ELEMENTWISE_TABLE(EGI_GPU_F1, EGI_GPU_F_ND, EGI_GPU_F2, EGI_GPU_F_ND, EGI_GPU_F3, a, b, c, y, g)
#undef EGI_V
// Their kernels, by row and variant.
typedef void egi_gpu_kernel(egi_gpu_elementwise p);
#define EGI_GPU_ENTRY_F(name) egi_gpu_elementwise_f32<egi_gpu_value_##name>
#define EGI_GPU_ENTRY_M EGI_GPU_ENTRY_F
#define EGI_GPU_ENTRY_S EGI_GPU_ENTRY_F
#define EGI_GPU_ENTRY_N EGI_GPU_ENTRY_F
#define EGI_GPU_ENTRY_W EGI_GPU_ENTRY_F
#define EGI_GPU_ENTRY_C EGI_GPU_ENTRY_F
#define EGI_GPU_ENTRY_E EGI_GPU_ENTRY_F
#define EGI_GPU_ENTRY_P EGI_GPU_ENTRY_F
#define EGI_GPU_ENTRY_B(name) NULL
#define EGI_GPU_R1(kind, name, f, d0) \
    { EGI_GPU_ENTRY_##kind(name), egi_gpu_elementwise_f32<egi_gpu_d0_##name>, NULL, NULL },
#define EGI_GPU_R_ND(kind, name, f) { EGI_GPU_ENTRY_##kind(name), NULL, NULL, NULL },
#define EGI_GPU_R2(kind, name, f, d0, d1) \
    { EGI_GPU_ENTRY_##kind(name), egi_gpu_elementwise_f32<egi_gpu_d0_##name>, \
      egi_gpu_elementwise_f32<egi_gpu_d1_##name>, NULL },
#define EGI_GPU_R3(kind, name, f, d0, d1, d2) \
    { EGI_GPU_ENTRY_##kind(name), egi_gpu_elementwise_f32<egi_gpu_d0_##name>, \
      egi_gpu_elementwise_f32<egi_gpu_d1_##name>, egi_gpu_elementwise_f32<egi_gpu_d2_##name> },
static egi_gpu_kernel *const egi_gpu_f32_kernels[][4] =
    { EGI_ELEMENTWISE_TABLE(EGI_GPU_R1, EGI_GPU_R_ND, EGI_GPU_R2, EGI_GPU_R_ND, EGI_GPU_R3, a, b, c, y, g) };

// The other dtypes have one kernel each, which asks for the op: few programs are slowed by that, and it compiles ten
// times faster.
#define EGI_GPU_NO_CASE(name, f)
#define EGI_GPU_C_ND(kind, name, f) EGI_GPU_CASE_##kind(name, f)
#define EGI_GPU_C1(kind, name, f, d0) EGI_GPU_CASE_##kind(name, f)
#define EGI_GPU_C2(kind, name, f, d0, d1) EGI_GPU_CASE_##kind(name, f)
#define EGI_GPU_C3(kind, name, f, d0, d1, d2) EGI_GPU_CASE_##kind(name, f)
#define EGI_GPU_SWITCH(T) \
    static __device__ T egi_gpu_compute(int op, const T a, const T b, const T c) { \
        (void)b; (void)c; \
        switch (op) { \
            EGI_ELEMENTWISE_TABLE(EGI_GPU_C1, EGI_GPU_C_ND, EGI_GPU_C2, EGI_GPU_C_ND, EGI_GPU_C3, a, b, c, y, \
                                  g) default: return a; \
        } \
    }
#define EGI_GPU_CASE_N(name, f) case EGI_OP_##name: return (egi_gpu_t)(f);
#define EGI_GPU_CASE_M EGI_GPU_CASE_F
#define EGI_GPU_CASE_C EGI_GPU_CASE_N
#define EGI_GPU_CASE_E EGI_GPU_CASE_N
#define EGI_GPU_CASE_W EGI_GPU_CASE_N
#define EGI_GPU_CASE_B EGI_GPU_NO_CASE
#define EGI_GPU_CASE_S EGI_GPU_CASE_N
#define EGI_GPU_CASE_F EGI_GPU_CASE_N
#define EGI_GPU_CASE_P EGI_GPU_CASE_N
#define EGI_V egi_f64
#define egi_gpu_t double
EGI_GPU_SWITCH(double)
#undef EGI_V
#undef egi_gpu_t
#undef EGI_GPU_CASE_F
#undef EGI_GPU_CASE_P
#undef EGI_GPU_CASE_B
#define EGI_GPU_CASE_F EGI_GPU_NO_CASE
#define EGI_GPU_CASE_P EGI_GPU_NO_CASE
#define EGI_GPU_CASE_B EGI_GPU_CASE_N
#define EGI_V egi_i64
#define egi_gpu_t int64_t
EGI_GPU_SWITCH(int64_t)
#undef EGI_V
#undef egi_gpu_t

template <class T> struct egi_gpu_wide { typedef int64_t type; };       // integers of all sizes are computed as int64
template <> struct egi_gpu_wide<double> { typedef double type; };
template <class T> static __global__ void egi_gpu_elementwise_any(egi_gpu_elementwise p) {
    EGI_GPU_EACH(i, p.units) {
        int64_t at[3];
        egi_gpu_locate<3>(p.walk, i, at);
        typedef typename egi_gpu_wide<T>::type wide;
        wide y = egi_gpu_compute(p.op, (wide)egi_gpu_operand<T>(p, 0, at[0]), (wide)egi_gpu_operand<T>(p, 1, at[1]),
                                 (wide)egi_gpu_operand<T>(p, 2, at[2]));
        if (p.to_bool) ((uint8_t *)p.out)[i] = (uint8_t)y;
        else ((T *)p.out)[i] = (T)y;
    }
}

// Can the operands be read in fours? The last axis must be whole fours (or the only one), and be read in steps of 1 or
// not at all.
static bool egi_gpu_in_fours(const egi_gpu_elementwise *p) {
    const egi_gpu_walk *w = &p->walk;
    int last = w->rank - 1;
    if (last > 0 && w->dims[last] % 4) return false;
    for (int o = 0; o < 5; o++) {
        if (p->numbers >> o & 1) continue;
        if (w->strides[o][last] != 1) { if (w->strides[o][last] == 0) continue; return false; }
        if ((uintptr_t)p->in[o] % (p->bytes >> o & 1 ? 4 : 16)) return false;
        for (int d = 0; d < last; d++) if (w->strides[o][d] % 4) return false;
    }
    return true;
}
static bool egi_gpu_run_elementwise(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_op *op = args->op;
    const eg_tensor *out = args->out[0], *x[5];
    egi_gpu_elementwise p;
    int dtype = args->variant ? out->dtype : -1, some = 0;
    if (dtype < 0) {                             // the dtype of the first operand that has one
        for (int i = op->flags & EGI_BOOL_FIRST ? 1 : 0; i < op->n_in && dtype < 0; i++)
            if (!(args->in[i]->flags & EGI_NUMBER)) dtype = args->in[i]->dtype;
        if (dtype < 0)
            dtype = !(op->flags & EGI_TO_BOOL) ? args->out[0]->dtype
                    : op->dtypes == 1u << EG_BOOL ? (int)EG_BOOL
                    : args->in[0]->dtype;
    }
    while (!args->in[some]) some++;              // an operand that is read; the others stand for it
    for (int i = 0; i < 5; i++) x[i] = args->in[args->in[i] ? i : some];
    egi_gpu_walk_make(&p.walk, out, x, 5);
    p.numbers = p.bytes = 0;
    for (int i = 0; i < 5; i++) {
        p.in[i] = x[i]->data;
        p.number[i] = 0;
        if (x[i]->flags & EGI_NUMBER) {
            p.numbers |= 1u << i;
            if (x[i]->flags & EGI_INTEGER_NUMBER)
                egi_dtype_store_int(dtype == EG_BOOL ? EG_UINT8 : dtype, &p.number[i], x[i]->integer);
            else egi_dtype_store(dtype == EG_BOOL ? EG_UINT8 : dtype, &p.number[i], x[i]->number);
        } else if (x[i]->dtype == EG_BOOL && dtype != EG_BOOL) p.bytes |= 1u << i;
    }
    p.op = op->number;
    p.to_bool = out->dtype == EG_BOOL;
    p.out = out->data;
    p.fours = dtype == EG_FLOAT32 && egi_gpu_in_fours(&p) ? out->size / 4 : 0;
    p.units = out->size - 3 * p.fours;
    egi_gpu_kernel *kernel = dtype == EG_FLOAT32 ? egi_gpu_f32_kernels[p.op][args->variant] :
                             dtype == EG_FLOAT64 ? egi_gpu_elementwise_any<double> :
                             dtype == EG_INT32   ? egi_gpu_elementwise_any<int32_t> :
                             dtype == EG_INT64   ? egi_gpu_elementwise_any<int64_t> :
                                                   egi_gpu_elementwise_any<uint8_t>;
    EGI_LAUNCH(kernel, egi_gpu_blocks(p.units), EGI_GPU_THREADS, g->compute, p);
    return egi_gpu_launched(g, args);
}

// ---- copies of any strides

template <class U> static __global__ void egi_gpu_walk_copy(egi_gpu_walk w, const U *from, U *to) {
    EGI_GPU_EACH(i, w.size) {
        int64_t at[2];
        egi_gpu_locate<2>(w, i, at);
        to[at[1]] = from[at[0]];
    }
}
template <class U> static __global__ void egi_gpu_walk_fill(egi_gpu_walk w, U value, U *to) {
    EGI_GPU_EACH(i, w.size) {
        int64_t at[1];
        egi_gpu_locate<1>(w, i, at);
        to[at[0]] = value;
    }
}
// Elements are aligned here, and read and written in one piece; eager.h's functions go byte by byte, and serve where
// speed is no matter.
static __device__ __forceinline__ int64_t egi_gpu_load_int(int dtype, const void *p) {
    return dtype == EG_INT32 ? *(const int32_t *)p
           : dtype == EG_INT64 ? *(const int64_t *)p
           : dtype == EG_UINT8 || dtype == EG_BOOL ? *(const uint8_t *)p
           : egi_dtype_load_int(dtype, p);
}
// As eg_cast says: whole numbers to smaller ones keep their low bits, everything else goes by way of the value.
static __device__ void egi_gpu_convert(int dtype_from, const void *from, int dtype_to, void *to) {
    if (egi_dtype_is_float(dtype_from)) {
        const double v = dtype_from == EG_FLOAT32 ? (double)*(const float *)from
                         : dtype_from == EG_FLOAT64 ? *(const double *)from
                         : egi_dtype_load(dtype_from, from);
        if (dtype_to == EG_FLOAT32) *(float *)to = (float)v;
        else if (dtype_to == EG_FLOAT64) *(double *)to = v;
        else egi_dtype_store(dtype_to, to, v);
        return;
    }
    const int64_t v = egi_gpu_load_int(dtype_from, from);
    if (dtype_to == EG_FLOAT32) *(float *)to = (float)v;
    else if (dtype_to == EG_FLOAT64) *(double *)to = (double)v;
    else if (dtype_to == EG_INT32) *(uint32_t *)to = (uint32_t)(uint64_t)v;
    else if (dtype_to == EG_INT64) *(int64_t *)to = v;
    else if (dtype_to == EG_UINT8) *(uint8_t *)to = (uint8_t)((uint64_t)v & 255);
    else if (dtype_to == EG_BOOL) *(uint8_t *)to = v != 0;
    else egi_dtype_store(dtype_to, to, (double)v);
}
static __global__ void egi_gpu_convert_all(egi_gpu_walk w, int dtype_from, int size_from, const char *from,
                                           int dtype_to, int size_to, char *to) {
    EGI_GPU_EACH(i, w.size) {
        int64_t at[2];
        egi_gpu_locate<2>(w, i, at);
        egi_gpu_convert(dtype_from, from + at[0] * size_from, dtype_to, to + at[1] * size_to);
    }
}
// A transposition: tiles of 32 x 32 pass through shared memory, so that both sides are read and written along their
// lines.
typedef struct egi_gpu_transposition {
    int64_t batches, rows, columns, from_batch, to_batch, from_row, to_column;
} egi_gpu_transposition;
template <class U> static __global__ void egi_gpu_transpose(egi_gpu_transposition p, const U *from, U *to) {
    EGI_SHARED(U, tile, 32 * 33);
    int64_t across = (p.columns + 31) / 32, down = (p.rows + 31) / 32, block = blockIdx.x;
    int64_t c0 = block % across * 32, r0 = block / across % down * 32, batch = block / across / down;
    int x = (int)threadIdx.x % 32, y = (int)threadIdx.x / 32;
    // from[r][c] lies at r + c from_row: neighbours in r are neighbours in memory. to[r][c] lies at r to_column + c.
    for (int k = y; k < 32; k += EGI_GPU_THREADS / 32)
        if (r0 + x < p.rows && c0 + k < p.columns)
            tile[k * 33 + x] = from[batch * p.from_batch + (c0 + k) * p.from_row + r0 + x];
    EGI_BARRIER();
    for (int k = y; k < 32; k += EGI_GPU_THREADS / 32)
        if (r0 + k < p.rows && c0 + x < p.columns)
            to[batch * p.to_batch + (r0 + k) * p.to_column + c0 + x] = tile[x * 33 + k];
}
// The last two axes of the walk, the first of them running along the source's memory; both large enough to be worth it.
static bool egi_gpu_is_transposition(const egi_gpu_walk *w, egi_gpu_transposition *t) {
    if (w->rank < 2 || w->rank > 3) return false;
    int r = w->rank - 2, c = w->rank - 1;
    if (w->strides[0][r] != 1 || w->strides[1][c] != 1 || w->dims[r] < 16 || w->dims[c] < 16) return false;
    t->batches = w->rank == 3 ? w->dims[0] : 1;
    t->from_batch = w->rank == 3 ? w->strides[0][0] : 0;
    t->to_batch = w->rank == 3 ? w->strides[1][0] : 0;
    t->rows = w->dims[r];
    t->columns = w->dims[c];
    t->from_row = w->strides[0][c];
    t->to_column = w->strides[1][r];
    return t->batches * egi_gpu_ceil(t->rows, 32) * egi_gpu_ceil(t->columns, 32) <= INT32_MAX;
}
template <class U> static void egi_gpu_walk_copy_launch(egi_gpu *g, const egi_gpu_walk *w, const void *from, void *to) {
    egi_gpu_transposition t;
    if (egi_gpu_is_transposition(w, &t))
        EGI_LAUNCH_WITH_BARRIERS(egi_gpu_transpose<U>,
                                 t.batches * egi_gpu_ceil(t.rows, 32) * egi_gpu_ceil(t.columns, 32), EGI_GPU_THREADS,
                                 g->compute, t, (const U *)from, (U *)to);
    else EGI_LAUNCH(egi_gpu_walk_copy<U>, egi_gpu_blocks(w->size), EGI_GPU_THREADS, g->compute, *w, (const U *)from,
                    (U *)to);
}
static bool egi_gpu_fill_with(egi_gpu *g, const egi_args *args, uint64_t bits) {
    const eg_tensor *out = args->out[0];
    int64_t size = eg_dtype_size((eg_dtype)out->dtype);
    egi_gpu_walk w;
    egi_gpu_walk_make(&w, out, &out, 1);
    int64_t blocks = egi_gpu_blocks(w.size);
    if (bits == 0 && (out->flags & EGI_CONTIGUOUS))
        EGI_GPU_TRY(g, egi_gpu_op_name(args), cudaMemsetAsync(out->data, 0, (size_t)(out->size * size), g->compute));
    else if (size == 1)
        EGI_LAUNCH(egi_gpu_walk_fill<uint8_t>, blocks, EGI_GPU_THREADS, g->compute, w, (uint8_t)bits,
                   (uint8_t *)out->data);
    else if (size == 2)
        EGI_LAUNCH(egi_gpu_walk_fill<uint16_t>, blocks, EGI_GPU_THREADS, g->compute, w, (uint16_t)bits,
                   (uint16_t *)(void *)out->data);
    else if (size == 4)
        EGI_LAUNCH(egi_gpu_walk_fill<uint32_t>, blocks, EGI_GPU_THREADS, g->compute, w, (uint32_t)bits,
                   (uint32_t *)(void *)out->data);
    else EGI_LAUNCH(egi_gpu_walk_fill<uint64_t>, blocks, EGI_GPU_THREADS, g->compute, w, bits,
                    (uint64_t *)(void *)out->data);
    return egi_gpu_launched(g, args);
}
static bool egi_gpu_run_fill(eg_backend *b, const egi_args *args) {
    uint64_t bits = 0;
    egi_dtype_store(args->out[0]->dtype, &bits, *(const double *)args->parameters);
    return egi_gpu_fill_with(egi_gpu_enter(b), args, bits);
}
static bool egi_gpu_run_copy(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const eg_tensor *x = args->in[0], *out = args->out[0], *both[2];
    int64_t size = eg_dtype_size((eg_dtype)out->dtype);
    egi_gpu_walk w;
    both[0] = x;
    both[1] = out;
    if (x->flags & EGI_NUMBER) {
        uint64_t bits = 0;
        if (x->flags & EGI_INTEGER_NUMBER) egi_dtype_store_int(out->dtype, &bits, x->integer);
        else egi_dtype_store(out->dtype, &bits, x->number);
        return egi_gpu_fill_with(g, args, bits);
    }
    egi_gpu_walk_make(&w, out, both, 2);
    if (x->dtype != out->dtype) {
        EGI_LAUNCH(egi_gpu_convert_all, egi_gpu_blocks(w.size), EGI_GPU_THREADS, g->compute, w, (int)x->dtype,
                   (int)eg_dtype_size((eg_dtype)x->dtype), (const char *)x->data, (int)out->dtype, (int)size,
                   out->data);
        return egi_gpu_launched(g, args);
    }
    if (w.rank == 1 && w.strides[0][0] == 1 && w.strides[1][0] == 1)
        EGI_GPU_TRY(g, egi_gpu_op_name(args),
                    cudaMemcpyAsync(out->data, x->data, (size_t)(w.size * size), cudaMemcpyDeviceToDevice, g->compute));
    else if (size == 1) egi_gpu_walk_copy_launch<uint8_t>(g, &w, x->data, out->data);
    else if (size == 2) egi_gpu_walk_copy_launch<uint16_t>(g, &w, x->data, out->data);
    else if (size == 4) egi_gpu_walk_copy_launch<uint32_t>(g, &w, x->data, out->data);
    else egi_gpu_walk_copy_launch<uint64_t>(g, &w, x->data, out->data);
    return egi_gpu_launched(g, args);
}

//# 4  REDUCTIONS AND ROWS ----------------------------------------------------
// Idea: (outer, n, inner) over its middle axis. A block's threads are X along inner, Y along n and Z along outer, so
// that neighbours read neighbours; each adds up every Y-th element, and then the Y sums are added pairwise. Where that
// would give too few blocks the axis is cut into chunks, and their results are reduced in turn: always in the same
// order.

template <class T> struct egi_gpu_sum_of { typedef uint64_t acc; };
template <> struct egi_gpu_sum_of<float> { typedef double acc; };
template <> struct egi_gpu_sum_of<double> { typedef double acc; };

template <class T> static __device__ __forceinline__ bool egi_gpu_nan(T v) { return v != v; }
static __device__ __forceinline__ double egi_gpu_quotient_of(double sum, int64_t n) { return sum / (double)n; }
static __device__ __forceinline__ uint64_t egi_gpu_quotient_of(uint64_t sum, int64_t n) {
    return n > 0 ? (uint64_t)((int64_t)sum / n) : 0;
}
static __device__ __forceinline__ double egi_gpu_to_sum(float v, double) { return (double)v; }
static __device__ __forceinline__ double egi_gpu_to_sum(double v, double) { return v; }
static __device__ __forceinline__ uint64_t egi_gpu_to_sum(int64_t v, uint64_t) { return (uint64_t)v; }

// Sum, mean, norm. Floating point is added up in double, integers modulo 2^64.
template <class T> struct egi_gpu_sum {
    typedef typename egi_gpu_sum_of<T>::acc acc;
    static __device__ acc none() { return 0; }
    static __device__ acc of(T v, int64_t, int kind) {
        acc a = egi_gpu_to_sum(v, acc());
        return kind == EGI_NORM2 ? a * a : a;
    }
    static __device__ acc add(acc a, acc b, int) { return a + b; }
    static __device__ void put(void *out, int64_t at, acc a, int kind, int64_t n) {
        if (kind == EGI_MEAN) a = egi_gpu_quotient_of(a, n);
        ((T *)out)[at] = kind == EGI_NORM2 ? (T)sqrt((double)a) : (T)a;
    }
};
// Products, in the same types.
template <class T> struct egi_gpu_multiplied : egi_gpu_sum<T> {
    typedef typename egi_gpu_sum<T>::acc acc;
    static __device__ acc none() { return 1; }
    static __device__ acc add(acc a, acc b, int) { return a * b; }
};
// The greatest or least element and where the first such one is. A NaN comes before all.
template <class T> struct egi_gpu_extreme {
    struct acc { T v; int64_t i; };
    static __device__ acc none() { acc a = { 0, -1 }; return a; }
    static __device__ acc of(T v, int64_t i, int) { acc a = { v, i }; return a; }
    static __device__ acc add(acc a, acc b, int kind) {
        if (a.i < 0 || b.i < 0) return a.i < 0 ? b : a;
        bool less = kind == EGI_MIN_ || kind == EGI_ARGMIN || kind == EGI_ALL, na = egi_gpu_nan(a.v),
             nb = egi_gpu_nan(b.v);
        if (na != nb) return na ? a : b;
        if (na || a.v == b.v) return a.i < b.i ? a : b;
        return (less ? b.v < a.v : b.v > a.v) ? b : a;
    }
    static __device__ void put(void *out, int64_t at, acc a, int kind, int64_t) {
        if (kind == EGI_ARGMAX || kind == EGI_ARGMIN) ((int64_t *)out)[at] = a.i;
        else ((T *)out)[at] = a.v;
    }
};
typedef struct egi_gpu_reduction {
    int kind, x, y, z;
    // total: elements that made one result, for the mean
    int64_t outer, n, inner, total, chunks, chunk, tiles_inner, tiles_outer;
    bool parts;                                  // in holds the results of chunks
    const void *in;
    void *out;
} egi_gpu_reduction;
template <class T, class R> static __global__ void egi_gpu_reduce(egi_gpu_reduction p) {
    EGI_SHARED(typename R::acc, s, EGI_GPU_THREADS);
    int t = (int)threadIdx.x, x = t % p.x, y = t / p.x % p.y, z = t / (p.x * p.y);
    int64_t b = blockIdx.x, j = b % p.tiles_inner * p.x + x, o = b / p.tiles_inner % p.tiles_outer * p.z + z,
            chunk = b / p.tiles_inner / p.tiles_outer;
    bool here = j < p.inner && o < p.outer;
    typename R::acc a = R::none();
    if (here) {
        int64_t end = (chunk + 1) * p.chunk < p.n ? (chunk + 1) * p.chunk : p.n;
        for (int64_t i = chunk * p.chunk + y; i < end; i += p.y) {
            int64_t at = (o * p.n + i) * p.inner + j;
            a = R::add(a, p.parts ? ((const typename R::acc *)p.in)[at] : R::of(((const T *)p.in)[at], i, p.kind),
                       p.kind);
        }
    }
    s[t] = a;
    for (int h = p.y / 2; h > 0; h /= 2) {
        EGI_BARRIER_TO_BREAK(1);
        if (y < h) s[t] = R::add(s[t], s[t + h * p.x], p.kind);
    }
    if (!here || y) return;
    if (p.chunks > 1) ((typename R::acc *)p.out)[chunk * p.outer * p.inner + o * p.inner + j] = s[t];
    else R::put(p.out, o * p.inner + j, s[t], p.kind, p.total);
}
// The block's form for a reduction; true if it fits a launch. So many blocks keep a large GPU's memory busy: 132
// multiprocessors with 8 each.
enum { EGI_GPU_FILLED = 1056 };
static bool egi_gpu_reduce_form(egi_gpu_reduction *p, int64_t most_chunks) {
    p->x = (int)egi_gpu_power(p->inner, 32);
    p->y = (int)egi_gpu_power(p->n, EGI_GPU_THREADS / p->x);
    p->z = EGI_GPU_THREADS / (p->x * p->y);
    p->tiles_inner = egi_gpu_ceil(p->inner, p->x);
    p->tiles_outer = egi_gpu_ceil(p->outer, p->z);
    int64_t tiles = p->tiles_inner * p->tiles_outer, each = (int64_t)p->y * 16;      // elements that are worth a chunk
    p->chunks = egi_gpu_max(1, egi_gpu_min(egi_gpu_min(most_chunks, EGI_GPU_FILLED / tiles), p->n / each));
    p->chunk = egi_gpu_ceil(p->n, p->chunks);
    return tiles * p->chunks <= INT32_MAX;
}
template <class T, class R> static bool egi_gpu_reduce_all(egi_gpu *g, const egi_args *args, egi_gpu_reduction *p) {
    void *parts = NULL, *out = p->out;
    if (!egi_gpu_reduce_form(p, EGI_GPU_FILLED))
        return egi_raise(EG_ERROR_SHAPE, args->op->name, "too many results for %s", g->name) != NULL;
    int64_t results = p->outer * p->inner, bytes = p->chunks * results * (int64_t)sizeof(typename R::acc);
    if (p->chunks > 1) {
        if (!(parts = egi_gpu_workspace(g, args->op->name, bytes))) return false;
        p->out = parts;
    }
    EGI_LAUNCH_WITH_BARRIERS((egi_gpu_reduce<T, R>), p->tiles_inner * p->tiles_outer * p->chunks, EGI_GPU_THREADS,
                             g->compute, *p);
    if (parts) {
        p->parts = true;
        p->in = parts;
        p->out = out;
        p->n = p->chunks;
        p->inner = results;
        p->outer = 1;
        egi_gpu_reduce_form(p, 1);
        EGI_LAUNCH_WITH_BARRIERS((egi_gpu_reduce<T, R>), p->tiles_inner * p->tiles_outer, EGI_GPU_THREADS, g->compute,
                                 *p);
        egi_gpu_deallocate(&g->backend, parts, bytes);
    }
    return egi_gpu_launched(g, args);
}
template <class T> static bool egi_gpu_reduce_type(egi_gpu *g, const egi_args *args, egi_gpu_reduction *p) {
    if (p->kind == EGI_SUM || p->kind == EGI_MEAN || p->kind == EGI_NORM2)
        return egi_gpu_reduce_all<T, egi_gpu_sum<T>>(g, args, p);
    if (p->kind == EGI_PROD) return egi_gpu_reduce_all<T, egi_gpu_multiplied<T>>(g, args, p);
    return egi_gpu_reduce_all<T, egi_gpu_extreme<T>>(g, args, p);
}
static bool egi_gpu_run_reduce(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_reduce_parameters *r = (const egi_reduce_parameters *)args->parameters;
    egi_gpu_reduction p;
    memset(&p, 0, sizeof p);
    p.kind = r->kind;
    p.outer = r->outer;
    p.n = p.total = r->n;
    p.inner = r->inner;
    p.in = args->in[0]->data;
    p.out = args->out[0]->data;
    switch (args->in[0]->dtype) {
        case EG_FLOAT32: return egi_gpu_reduce_type<float>(g, args, &p);
        case EG_FLOAT64: return egi_gpu_reduce_type<double>(g, args, &p);
        case EG_INT32: return egi_gpu_reduce_type<int32_t>(g, args, &p);
        case EG_INT64: return egi_gpu_reduce_type<int64_t>(g, args, &p);
        default: return egi_gpu_reduce_type<uint8_t>(g, args, &p);  // bools too: all is the least, any the greatest
    }
}
static bool egi_gpu_run_choose(eg_backend *b, const egi_args *args) { return egi_gpu_run_reduce(b, args); }

// Running sums: a block for each line if there are few of them, else a thread.
typedef struct egi_gpu_scan {
    int64_t outer, n, inner; bool exclusive, reverse; const void *in; void *out;
} egi_gpu_scan;
template <class T> static __global__ void egi_gpu_cumsum_lines(egi_gpu_scan p) {
    typedef typename egi_gpu_sum_of<T>::acc acc;
    EGI_GPU_EACH(line, p.outer * p.inner) {
        int64_t base = line / p.inner * p.n * p.inner + line % p.inner;
        acc a = 0;
        for (int64_t i = 0; i < p.n; i++) {
            int64_t at = base + (p.reverse ? p.n - 1 - i : i) * p.inner;
            acc before = a;
            a += egi_gpu_to_sum(((const T *)p.in)[at], acc());
            ((T *)p.out)[at] = (T)(p.exclusive ? before : a);
        }
    }
}
template <class T> static __global__ void egi_gpu_cumsum_blocks(egi_gpu_scan p) {
    typedef typename egi_gpu_sum_of<T>::acc acc;
    EGI_SHARED(acc, s, EGI_GPU_THREADS);
    int t = (int)threadIdx.x;
    int64_t line = blockIdx.x, base = line / p.inner * p.n * p.inner + line % p.inner;
    acc carry = 0;
    for (int64_t first = 0; first < p.n; first += EGI_GPU_THREADS) {
        int64_t i = first + t, at = base + (p.reverse ? p.n - 1 - i : i) * p.inner;
        acc own = i < p.n ? egi_gpu_to_sum(((const T *)p.in)[at], acc()) : 0;
        s[t] = own;
        for (int h = 1; h < EGI_GPU_THREADS; h *= 2) {
            EGI_BARRIER();
            acc left = t >= h ? s[t - h] : 0;
            EGI_BARRIER();
            s[t] += left;
        }
        EGI_BARRIER();
        if (i < p.n) ((T *)p.out)[at] = (T)(p.exclusive ? carry + (t ? s[t - 1] : 0) : carry + s[t]);
        carry += s[EGI_GPU_THREADS - 1];
        EGI_BARRIER();
    }
}
template <class T> static bool egi_gpu_cumsum(egi_gpu *g, const egi_args *args, const egi_gpu_scan *p) {
    int64_t lines = p->outer * p->inner;
    if (p->n < 64 || lines > 4096)
        EGI_LAUNCH(egi_gpu_cumsum_lines<T>, egi_gpu_blocks(lines), EGI_GPU_THREADS, g->compute, *p);
    else EGI_LAUNCH_WITH_BARRIERS(egi_gpu_cumsum_blocks<T>, lines, EGI_GPU_THREADS, g->compute, *p);
    return egi_gpu_launched(g, args);
}
static bool egi_gpu_run_cumsum(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_reduce_parameters *r = (const egi_reduce_parameters *)args->parameters;
    egi_gpu_scan p = { r->outer, r->n, r->inner, r->exclusive, r->reverse, args->in[0]->data, args->out[0]->data };
    switch (args->in[0]->dtype) {
        case EG_FLOAT32: return egi_gpu_cumsum<float>(g, args, &p);
        case EG_FLOAT64: return egi_gpu_cumsum<double>(g, args, &p);
        case EG_INT32: return egi_gpu_cumsum<int32_t>(g, args, &p);
        case EG_INT64: return egi_gpu_cumsum<int64_t>(g, args, &p);
        default: return egi_gpu_cumsum<uint8_t>(g, args, &p);
    }
}

// Softmax, log-softmax and the cross entropy of a label: Y threads share a row, a block has Z rows.
enum { EGI_GPU_CROSS_ENTROPY = 100, EGI_GPU_CROSS_ENTROPY_GRAD };
typedef struct egi_gpu_rows {
    int kind, y; int64_t rows, n; const void *in, *labels, *g; int label_dtype, label_size, g_step; unsigned site;
    egi_gpu_fault *fault; void *out;
} egi_gpu_rows;
static __device__ void egi_gpu_bad_index(egi_gpu_fault *fault, unsigned site, int64_t value, int64_t position,
                                         int64_t limit) {
    if (atomicCAS(&fault->taken, 0u, 1u)) return;                      // the first stays
    fault->serial = site;
    fault->value = value;
    fault->position = position;
    fault->limit = limit;
}
template <class A> static __device__ A egi_gpu_row_reduce(A *s, A own, int y, int width, bool largest) {
    int t = (int)threadIdx.x;
    EGI_BARRIER();                               // the row's last result has been read
    s[t] = own;
    for (int h = width / 2; h > 0; h /= 2) {
        EGI_BARRIER();
        if (y < h) s[t] = largest ? (s[t + h] > s[t] ? s[t + h] : s[t]) : s[t] + s[t + h];
    }
    EGI_BARRIER();
    return s[t - y];
}
static __device__ __forceinline__ float egi_gpu_exp(float x) { return egi_expf(x); }
static __device__ __forceinline__ double egi_gpu_exp(double x) { return exp(x); }
// A thread's elements of a row of n. Where they are few (HELD) they stay in registers, all on their way at once, and
// are read but once.
enum { EGI_GPU_HELD = 4 };
#define EGI_GPU_ROW_EACH(i, k, first, step, n) \
    for (int64_t k = 0, i = (first); HELD ? k < EGI_GPU_HELD : i < (n); k++, i += (step)) if (!HELD || i < (n))
template <class T, bool HELD> static __global__ void egi_gpu_softmax(egi_gpu_rows p) {
    EGI_SHARED(T, top, EGI_GPU_THREADS);
    EGI_SHARED(double, sums, EGI_GPU_THREADS);
    int y = (int)threadIdx.x % p.y;
    int64_t row = (int64_t)blockIdx.x * (EGI_GPU_THREADS / p.y) + threadIdx.x / p.y;
    const bool here = row < p.rows, shares = p.kind == EGI_SOFTMAX_ || p.kind == EGI_GPU_CROSS_ENTROPY_GRAD;
    const int64_t n = here ? p.n : 0;
    const T *x = (const T *)p.in + (here ? row : 0) * p.n;
    T v[EGI_GPU_HELD], m = -(T)INFINITY;
    if (HELD) EGI_GPU_ROW_EACH(i, k, y, p.y, n) v[k % EGI_GPU_HELD] = x[i];
    EGI_GPU_ROW_EACH(i, k, y, p.y, n) {
        const T own = HELD ? v[k % EGI_GPU_HELD] : x[i];
        m = own > m ? own : m;
    }
    m = egi_gpu_row_reduce(top, m, y, p.y, true);
    double sum = 0;
    EGI_GPU_ROW_EACH(i, k, y, p.y, n) {
        const T share = egi_gpu_exp((HELD ? v[k % EGI_GPU_HELD] : x[i]) - m);
        sum += (double)share;
        if (HELD && shares) v[k % EGI_GPU_HELD] = share;
    }
    sum = egi_gpu_row_reduce(sums, sum, y, p.y, false);
    if (!here) return;
    T *out = (T *)p.out + row * p.n;
    const int64_t label = p.labels ? egi_gpu_load_int(p.label_dtype, (const char *)p.labels + row * p.label_size) : -1;
    if (p.kind == EGI_GPU_CROSS_ENTROPY) {
        if (y) return;
        const bool ok = label >= 0 && label < n;
        if (!ok) egi_gpu_bad_index(p.fault, p.site, label, row, n);
        ((T *)p.out)[row] = ok ? (m - x[label]) + (T)log(sum) : 0;
        return;
    }
    const T l = shares ? 0 : (T)log(sum), scale = (T)(1 / sum),
            g = p.kind == EGI_GPU_CROSS_ENTROPY_GRAD ? ((const T *)p.g)[row * p.g_step] : 1;
    EGI_GPU_ROW_EACH(i, k, y, p.y, n) {
        const T own = HELD ? v[k % EGI_GPU_HELD] : x[i];
        const T share = !shares ? own - m - l : (HELD ? own : egi_gpu_exp(own - m)) * scale;
        out[i] = i == label ? (share - 1) * g : share * g;
    }
}
// From what a softmax or a log-softmax made to its gradient.
template <class T, bool HELD> static __global__ void egi_gpu_softmax_grad(egi_gpu_rows p) {
    EGI_SHARED(double, sums, EGI_GPU_THREADS);
    const int t = (int)threadIdx.x % p.y;
    const int64_t row = (int64_t)blockIdx.x * (EGI_GPU_THREADS / p.y) + threadIdx.x / p.y;
    const bool here = row < p.rows, logs = p.kind == EGI_LOG_SOFTMAX;
    const int64_t n = here ? p.n : 0, at = here ? row * p.n : 0;
    const T *y = (const T *)p.in + at, *g = (const T *)p.g + at;
    T held_y[EGI_GPU_HELD], held_g[EGI_GPU_HELD];
    if (HELD) EGI_GPU_ROW_EACH(i, k, t, p.y, n) { held_y[k % EGI_GPU_HELD] = y[i]; held_g[k % EGI_GPU_HELD] = g[i]; }
    double own = 0;
    EGI_GPU_ROW_EACH(i, k, t, p.y, n) {
        const double one = (double)(HELD ? held_g[k % EGI_GPU_HELD] : g[i]);
        own += logs ? one : one * (double)(HELD ? held_y[k % EGI_GPU_HELD] : y[i]);
    }
    const T sum = (T)egi_gpu_row_reduce(sums, own, t, p.y, false);
    T *dx = (T *)p.out + at;
    EGI_GPU_ROW_EACH(i, k, t, p.y, n) {
        const T one_y = HELD ? held_y[k % EGI_GPU_HELD] : y[i], one_g = HELD ? held_g[k % EGI_GPU_HELD] : g[i];
        dx[i] = logs ? one_g - egi_gpu_exp(one_y) * sum : one_y * (one_g - sum);
    }
}
// Remembers what an error of an index, or of a class's label, will have to say. Its number comes with the error.
static unsigned egi_gpu_index_site(egi_gpu *g, const char *name, const eg_tensor *indices, bool classes) {
    pthread_mutex_lock(&g->lock);
    unsigned serial = ++g->next_site;
    egi_gpu_site *s = &g->sites[serial % EGI_GPU_SITES];
    s->name = name;
    s->classes = classes;
    s->serial = serial;
    s->dtype = indices->dtype;
    s->shape.rank = indices->rank;
    for (int i = 0; i < indices->rank; i++) s->shape.dims[i] = indices->dims[i];
    pthread_mutex_unlock(&g->lock);
    return serial;
}
typedef void egi_gpu_rows_kernel(egi_gpu_rows p);
static egi_gpu_rows_kernel *const egi_gpu_rows_kernels[2][2][2] = {  // by what is made of a row; float64; held
    { { egi_gpu_softmax<float, false>, egi_gpu_softmax<float, true> },
      { egi_gpu_softmax<double, false>, egi_gpu_softmax<double, true> } },
    { { egi_gpu_softmax_grad<float, false>, egi_gpu_softmax_grad<float, true> },
      { egi_gpu_softmax_grad<double, false>, egi_gpu_softmax_grad<double, true> } }
};
static bool egi_gpu_rows_launch(egi_gpu *g, const egi_args *args, egi_gpu_rows *p, int dtype) {
    p->y = (int)egi_gpu_power(egi_gpu_ceil(p->n, EGI_GPU_HELD), EGI_GPU_THREADS);
    p->fault = g->fault;
    int64_t blocks = egi_gpu_ceil(p->rows, EGI_GPU_THREADS / p->y);
    if (blocks > INT32_MAX)
        return egi_raise(EG_ERROR_SHAPE, args->op->name, "too many rows for %s", g->name) != NULL;
    egi_gpu_rows_kernel *kernel =
        egi_gpu_rows_kernels[p->g && !p->labels][dtype == EG_FLOAT64][p->n <= EGI_GPU_HELD * p->y];
    EGI_LAUNCH_WITH_BARRIERS(kernel, blocks, EGI_GPU_THREADS, g->compute, *p);
    return egi_gpu_launched(g, args);
}
static bool egi_gpu_run_softmax(eg_backend *b, const egi_args *args) {  // and its gradient, which has a second operand
    const egi_reduce_parameters *r = (const egi_reduce_parameters *)args->parameters;
    egi_gpu_rows p;
    memset(&p, 0, sizeof p);
    p.kind = r->kind;
    p.rows = r->outer;
    p.n = r->n;
    p.in = args->in[0]->data;
    p.g = args->in[1] ? args->in[1]->data : NULL;
    p.out = args->out[0]->data;
    return egi_gpu_rows_launch(egi_gpu_enter(b), args, &p, args->in[0]->dtype);
}
#define egi_gpu_run_softmax_grad egi_gpu_run_softmax
#define egi_gpu_run_product_grad NULL           // other ops compute it
static egi_gpu_rows egi_gpu_labelled(const egi_args *args, int kind) {
    const eg_tensor *labels = args->in[0], *x = args->in[1];
    egi_gpu_rows p;
    memset(&p, 0, sizeof p);
    p.kind = kind;
    p.rows = labels->size;
    p.n = x->dims[x->rank - 1];
    p.in = x->data;
    p.labels = labels->data;
    p.label_dtype = labels->dtype;
    p.label_size = (int)eg_dtype_size((eg_dtype)labels->dtype);
    p.out = args->out[0]->data;
    return p;
}
static bool egi_gpu_run_sparse_xent(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    egi_gpu_rows p = egi_gpu_labelled(args, EGI_GPU_CROSS_ENTROPY);
    p.site = egi_gpu_index_site(g, args->op->name, args->in[0], true);
    return egi_gpu_rows_launch(g, args, &p, args->in[1]->dtype);
}
static bool egi_gpu_run_sparse_xent_grad(eg_backend *b, const egi_args *args) {
    egi_gpu_rows p = egi_gpu_labelled(args, EGI_GPU_CROSS_ENTROPY_GRAD);
    p.g = args->in[2]->data;
    p.g_step = *(const int *)args->parameters;
    return egi_gpu_rows_launch(egi_gpu_enter(b), args, &p, args->in[1]->dtype);
}

//# 5  PRODUCTS ---------------------------------------------------------------
// Idea: cuBLAS, which counts columns first: row-major C = A B is column-major C' = B' A', and every row-major matrix is
// its own transpose there. Batches whose matrices lie at even distances are one call. Integers, which cuBLAS does not
// know, go through tiles of 16 x 16 in shared memory.

typedef struct egi_gpu_product {
    bool ta, tb; int64_t m, n, k, lda, ldb; egi_gpu_walk batch; const void *a, *b; void *c;
} egi_gpu_product;
template <class T, class U> static __global__ void egi_gpu_integer_product(egi_gpu_product p) {
    EGI_SHARED(U, sa, 16 * 17);
    EGI_SHARED(U, sb, 16 * 17);
    int x = (int)threadIdx.x % 16, y = (int)threadIdx.x / 16;
    int64_t across = (p.n + 15) / 16, down = (p.m + 15) / 16, block = blockIdx.x, at[2];
    int64_t j = block % across * 16 + x, i = block / across % down * 16 + y, batch = block / across / down;
    egi_gpu_locate<2>(p.batch, batch, at);
    const T *a = (const T *)p.a + at[0], *b = (const T *)p.b + at[1];
    U sum = 0;
    for (int64_t k0 = 0; k0 < p.k; k0 += 16) {
        int64_t ka = k0 + x, kb = k0 + y;
        sa[y * 17 + x] = i < p.m && ka < p.k ? (U)a[p.ta ? ka * p.lda + i : i * p.lda + ka] : 0;
        sb[y * 17 + x] = j < p.n && kb < p.k ? (U)b[p.tb ? j * p.ldb + kb : kb * p.ldb + j] : 0;
        EGI_BARRIER();
        for (int q = 0; q < 16; q++) sum += sa[y * 17 + q] * sb[q * 17 + x];
        EGI_BARRIER();
    }
    if (i < p.m && j < p.n) ((T *)p.c)[(batch * p.m + i) * p.n + j] = (T)sum;
}
static bool egi_gpu_blas_fail(egi_gpu *g, const char *op, cublasStatus_t s) {
    cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) return egi_gpu_fail(g, op, e);
    if (s == CUBLAS_STATUS_ALLOC_FAILED)
        return egi_raise(EG_ERROR_MEMORY, op, "out of memory on %s", g->name) != NULL;
    return egi_raise(EG_ERROR_DEVICE, op, "%s: %s (cuBLAS status %d)", g->name, cublasGetStatusString(s),
                     (int)s) != NULL;
}
static cublasComputeType_t egi_gpu_blas_type(int dtype, eg_precision precision) {
    return dtype == EG_FLOAT64                     ? CUBLAS_COMPUTE_64F
           : precision == EG_PRECISION_TF32        ? CUBLAS_COMPUTE_32F_FAST_TF32
           : precision == EG_PRECISION_BFLOAT16    ? CUBLAS_COMPUTE_32F_FAST_16BF
                                                   : CUBLAS_COMPUTE_32F;
}
// C = A B, or C += A B. The caller holds g->product.
static bool egi_gpu_blas(egi_gpu *g, const char *op, const egi_matmul_parameters *p, int dtype, const char *a,
                         const char *b, char *c, int64_t sa, int64_t sb, int64_t count, bool add) {
    const float one = 1, kept = add;
    const double one64 = 1, kept64 = add;
    bool f = dtype == EG_FLOAT32;
    cudaDataType type = f ? CUDA_R_32F : CUDA_R_64F;
    const void *alpha = f ? (const void *)&one : (const void *)&one64,
               *beta = f ? (const void *)&kept : (const void *)&kept64;
    cublasComputeType_t compute = egi_gpu_blas_type(dtype, p->precision);
    cublasOperation_t ta = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t s;
    EGI_GPU_TWICE(g, s, count == 1 ? cublasGemmEx_64(g->blas, tb, ta, p->n, p->m, p->k, alpha, b, type, p->ldb,
                                                     a, type, p->lda, beta, c, type, p->n, compute, CUBLAS_GEMM_DEFAULT)
                        : cublasGemmStridedBatchedEx_64(g->blas, tb, ta, p->n, p->m, p->k, alpha, b, type, p->ldb, sb,
                                                        a, type, p->lda, sa, beta, c, type, p->n, p->m * p->n, count,
                                                        compute, CUBLAS_GEMM_DEFAULT));
    return s == CUBLAS_STATUS_SUCCESS || egi_gpu_blas_fail(g, op, s);
}
// A row added to each row of the product, and relu: by cublasLt in the product itself, else by a launch after it.
template <class T> static __global__ void egi_gpu_bias(int64_t size, int64_t n, bool relu, const T *bias, T *c) {
    EGI_GPU_EACH(i, size) {
        const int64_t j = size <= UINT32_MAX ? (uint32_t)i % (uint32_t)n : i % n;
        const T y = c[i] + bias[j];
        c[i] = relu && y <= 0 ? (T)0 : y;        // a NaN stays one, -0 becomes 0 as in eg_relu
    }
}
static bool egi_gpu_add_bias(egi_gpu *g, const egi_args *args, bool relu) {
    const eg_tensor *bias = args->in[2], *out = args->out[0];
    int64_t blocks = egi_gpu_blocks(out->size);
    if (out->dtype == EG_FLOAT32)
        EGI_LAUNCH(egi_gpu_bias<float>, blocks, EGI_GPU_THREADS, g->compute, out->size, bias->size, relu,
                   (const float *)(const void *)bias->data, (float *)(void *)out->data);
    else
        EGI_LAUNCH(egi_gpu_bias<double>, blocks, EGI_GPU_THREADS, g->compute, out->size, bias->size, relu,
                   (const double *)(const void *)bias->data, (double *)(void *)out->data);
    return egi_gpu_launched(g, args);
}
#ifdef EAGER_CUBLASLT
#define EGI_GPU_LT(call) \
    do { \
        cublasStatus_t egi_s; \
        EGI_GPU_TWICE(g, egi_s, call); \
        if (egi_s != CUBLAS_STATUS_SUCCESS) return false; \
    } while (0)
#define EGI_GPU_LT_SET(attribute, value) \
    EGI_GPU_LT(cublasLtMatmulDescSetAttribute(&p->product, CUBLASLT_MATMUL_DESC_##attribute, &value, sizeof value))
static bool egi_gpu_plan_make(egi_gpu *g, egi_gpu_plan *p, const egi_gpu_plan_key *k, const void *bias) {
    cudaDataType type = k->dtype == EG_FLOAT32 ? CUDA_R_32F : CUDA_R_64F;
    cublasOperation_t ta = k->ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = k->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = k->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result;
    size_t most = (size_t)32 << 20;
    uint32_t alignment = (uint32_t)k->alignment;
    int found = 0;
    memset(&result, 0, sizeof result);
    EGI_GPU_LT(cublasLtMatmulDescInit(&p->product, egi_gpu_blas_type((int)k->dtype, (eg_precision)k->precision), type));
    EGI_GPU_LT_SET(TRANSA, tb);                  // columns first: B is the left matrix
    EGI_GPU_LT_SET(TRANSB, ta);
    EGI_GPU_LT_SET(EPILOGUE, epilogue);
    EGI_GPU_LT_SET(BIAS_POINTER, bias);
    EGI_GPU_LT(cublasLtMatrixLayoutInit(&p->b, type, (uint64_t)(k->tb ? k->k : k->n), (uint64_t)(k->tb ? k->n : k->k),
                                        k->ldb));
    EGI_GPU_LT(cublasLtMatrixLayoutInit(&p->a, type, (uint64_t)(k->ta ? k->m : k->k), (uint64_t)(k->ta ? k->k : k->m),
                                        k->lda));
    EGI_GPU_LT(cublasLtMatrixLayoutInit(&p->c, type, (uint64_t)k->n, (uint64_t)k->m, k->n));
    EGI_GPU_LT(cublasLtMatmulPreferenceInit(&preference));
    EGI_GPU_LT(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                                    sizeof most));
    for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
        EGI_GPU_LT(cublasLtMatmulPreferenceSetAttribute(&preference, (cublasLtMatmulPreferenceAttributes_t)i,
                                                        &alignment, sizeof alignment));
    EGI_GPU_LT(cublasLtMatmulAlgoGetHeuristic(g->lt, &p->product, &p->b, &p->a, &p->c, &p->c, &preference, 1, &result,
                                              &found));
    p->algorithm = result.algo;
    p->workspace = result.workspaceSize;
    return found > 0;
}
// The plan for a product, or NULL where there can be none. The caller holds g->product. What is said of the result's
// alignment holds for the bias, too: a kernel may read it in the same pieces.
static egi_gpu_plan *egi_gpu_plan_for(egi_gpu *g, const egi_args *args) {
    const egi_matmul_parameters *q = (const egi_matmul_parameters *)args->parameters;
    const void *bias = args->in[2]->data;
    uintptr_t at = (uintptr_t)args->in[0]->data | (uintptr_t)args->in[1]->data | (uintptr_t)bias |
                   (uintptr_t)args->out[0]->data | 256;
    egi_gpu_plan_key key = { q->m, q->n, q->k, q->lda, q->ldb, q->ta, q->tb, args->out[0]->dtype, (int64_t)q->precision,
                             q->relu, (int64_t)(at & (~at + 1)) };
    for (int i = 0; i < EGI_GPU_PLANS; i++)
        if (!memcmp(&g->plans[i].key, &key, sizeof key)) return g->plans[i].none ? NULL : &g->plans[i];
    egi_gpu_plan *p = &g->plans[g->next_plan];
    g->next_plan = (g->next_plan + 1) % EGI_GPU_PLANS;
    memset(p, 0, sizeof *p);
    p->none = !egi_gpu_plan_make(g, p, &key, bias);
    p->key = key;
    return p->none ? NULL : p;
}
// True if it was computed, or an error raised; false: another way must be found.
static bool egi_gpu_product_with_bias(egi_gpu *g, const egi_args *args, bool *ok) {
    const void *bias = args->in[2]->data, *a = args->in[0]->data, *b = args->in[1]->data;
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    bool f = args->out[0]->dtype == EG_FLOAT32;
    egi_gpu_plan plan;
    pthread_mutex_lock(&g->product);
    egi_gpu_plan *p = egi_gpu_plan_for(g, args);
    if (p) plan = *p;
    pthread_mutex_unlock(&g->product);
    if (!p || cublasLtMatmulDescSetAttribute(&plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                             sizeof bias) != CUBLAS_STATUS_SUCCESS)
        return false;
    void *workspace = plan.workspace ? egi_gpu_workspace(g, "matmul", (int64_t)plan.workspace) : NULL;
    if (plan.workspace && !workspace) { *ok = false; return true; }
    cublasStatus_t s;
    EGI_GPU_TWICE(g, s,
                  cublasLtMatmul(g->lt, &plan.product, f ? (const void *)&one : (const void *)&one64, b, &plan.b, a,
                                 &plan.a, f ? (const void *)&zero : (const void *)&zero64, args->out[0]->data, &plan.c,
                                 args->out[0]->data, &plan.c, &plan.algorithm, workspace, plan.workspace, g->compute));
    if (workspace) egi_gpu_deallocate(&g->backend, workspace, (int64_t)plan.workspace);
    if (s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE) {  // it had promised more than it can do
        pthread_mutex_lock(&g->product);
        if ((p = egi_gpu_plan_for(g, args)) != NULL) p->none = true;
        pthread_mutex_unlock(&g->product);
        return false;
    }
    *ok = s == CUBLAS_STATUS_SUCCESS || egi_gpu_blas_fail(g, "matmul", s);
    return true;
}
#endif
static bool egi_gpu_run_matmul(eg_backend *backend, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(backend);
    const egi_matmul_parameters *p = (const egi_matmul_parameters *)args->parameters;
    const eg_tensor *a = args->in[0], *b = args->in[1], *out = args->out[0];
    // The batch as a walk of two operands: merged, one axis is most often left.
    eg_tensor shape, x[2];
    const eg_tensor *both[2] = { &x[0], &x[1] };
    memset(&shape, 0, sizeof shape);
    shape.rank = (int8_t)p->batch_rank;
    shape.size = 1;
    for (int i = 0; i < p->batch_rank; i++) shape.size *= p->batch[i];
    shape.dims = const_cast<int64_t *>(p->batch);              // stand-ins, which are only read
    x[0] = x[1] = shape;
    x[0].strides = const_cast<int64_t *>(p->a_strides);
    x[1].strides = const_cast<int64_t *>(p->b_strides);
    egi_gpu_walk w;
    egi_gpu_walk_make(&w, &shape, both, 2);
    int64_t size = eg_dtype_size((eg_dtype)out->dtype);
    if (p->k == 0) {
        EGI_GPU_TRY(g, "matmul", cudaMemsetAsync(out->data, 0, (size_t)(out->size * size), g->compute));
        return !args->in[2] || egi_gpu_add_bias(g, args, p->relu);
    }
#ifdef EAGER_CUBLASLT
    bool done;
    if (args->in[2] && egi_gpu_product_with_bias(g, args, &done)) return done;
#endif
    if (out->dtype != EG_FLOAT32 && out->dtype != EG_FLOAT64) {
        egi_gpu_product q = { p->ta, p->tb, p->m, p->n, p->k, p->lda, p->ldb, w, a->data, b->data, out->data };
        int64_t blocks = egi_gpu_ceil(p->m, 16) * egi_gpu_ceil(p->n, 16) * shape.size;
        if (blocks > INT32_MAX)
            return egi_raise(EG_ERROR_SHAPE, "matmul", "the product of integers is too large for %s", g->name) != NULL;
        if (out->dtype == EG_INT32)
            EGI_LAUNCH_WITH_BARRIERS((egi_gpu_integer_product<int32_t, uint32_t>), blocks, EGI_GPU_THREADS, g->compute,
                                     q);
        else EGI_LAUNCH_WITH_BARRIERS((egi_gpu_integer_product<int64_t, uint64_t>), blocks, EGI_GPU_THREADS, g->compute,
                                      q);
        return egi_gpu_launched(g, args);
    }
    int last = w.rank - 1;
    int64_t count = w.dims[last], calls = shape.size / count;
    bool ok = true;
    pthread_mutex_lock(&g->product);
    for (int64_t i = 0; i < calls && ok; i++) {
        int64_t at[2] = { 0, 0 }, rest = i;
        for (int d = last - 1; d >= 0; d--) {
            at[0] += rest % w.dims[d] * w.strides[0][d];
            at[1] += rest % w.dims[d] * w.strides[1][d];
            rest /= w.dims[d];
        }
        ok = egi_gpu_blas(g, "matmul", p, out->dtype, a->data + at[0] * size, b->data + at[1] * size,
                          out->data + i * count * p->m * p->n * size, w.strides[0][last], w.strides[1][last], count,
                          false);
    }
    pthread_mutex_unlock(&g->product);
    return ok && (!args->in[2] || egi_gpu_add_bias(g, args, p->relu));
}

//# 6  CONVOLUTION AND POOLING ------------------------------------------------
// Idea: a convolution and both its gradients are matrix products C = A B whose left matrix is never stored: where its
// element (i, k) lies is the sum of what a place in the picture and a tap of the filter say. Each block makes one tile
// of C, its threads 4 x 4, 8 x 4 or 8 x 8 elements each: the next step of A and B is on its way from memory while this
// one is multiplied.
//
//   what it is                                      what computes it
//   a matrix product as it stands: 1 x 1 with       cuBLAS
//   step 1, or one window that is all the picture
//   one channel in for each group                   egi_gpu_depthwise, a thread for one or four results
//   the rest: float32 by default, float64, or       egi_gpu_convolve
//   channels that are no multiples of four
//   float32 by EG_PRECISION_TF32 or BFLOAT16        egi_gpu_convolve_cores
//
// Of the tiles that the last two have, that one is taken which keeps the busiest multiprocessor busy for the shortest
// time. Where there are too few tiles for all of them, the sum is cut into parts, which are then added in their order.
// Channels that are multiples of four are fetched four at a time. The gradient of the input with strides is several
// smaller products: pixels whose distances to a window's begin leave the same remainder see the same taps, one by one,
// and no others.

// The windows of two axes, as the kernels read them: rows are height, columns width. Of one axis there is one row.
typedef struct egi_gpu_plane { int64_t n, h, w, c, kh, kw, oc, oh, ow, sh, sw, dh, dw, pt, pl, groups; } egi_gpu_plane;
// False, with an error, for windows that have a depth: nothing here computes them.
static bool egi_gpu_plane_of(egi_gpu *g, const egi_args *args, const egi_windows *w, egi_gpu_plane *d) {
    const egi_window *h = &w->axis[1], *x = &w->axis[2];
    const egi_gpu_plane plane = { w->n, h->in, x->in, w->c, h->taps, x->taps, w->oc, h->out, x->out, h->stride,
                                  x->stride,
                                  h->dilation, x->dilation, h->before, x->before, w->groups };
    *d = plane;
    return (w->axis[0].in == 1 && w->axis[0].taps == 1 && w->axis[0].out == 1) ||
           egi_raise(EG_ERROR_DEVICE, args->op->name, "%s has no kernel for three axes", g->name) != NULL;
}
typedef struct egi_gpu_conv {
    egi_gpu_plane d;
    // channels in and out of a group; the product's sizes (m and k at most, where there are phases)
    int64_t cg, og, m, n, k;
    int64_t rows;                                // of the result
    int64_t down, across, parts, part, phases;   // tiles; the sum in parts; kinds of pixels
    int step_y, step_x, jump_y, jump_x;          // between a pixel's taps, and between the places that they see
    egi_gpu_divisor by_w, by_h, by_c, by_kw;
    const void *a, *b;
    void *c;
} egi_gpu_conv;
template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) egi_gpu_four_of { T v[4]; };

// What a place and a tap each add to where an element is. One that is beyond the end has a y with which all sums are
// outside: coordinates are less than 2^30.
typedef struct egi_gpu_spot { int64_t at; uint32_t y, x; } egi_gpu_spot;
// The pixels of a row (or column) that see the same taps: from pixel, every strideth; taps from tap, every stepth.
typedef struct egi_gpu_phase { int pixel, pixels, tap, taps, base; } egi_gpu_phase;
static __device__ __forceinline__ egi_gpu_phase egi_gpu_phase_of(int pixel, int size, int stride, int dilation,
                                                                 int taps, int padding, int step) {
    egi_gpu_phase r;
    const int most = step < taps ? step : taps, rest = (pixel + padding) % stride;
    r.pixel = pixel;
    r.pixels = (size - pixel + stride - 1) / stride;
    r.tap = 0;
    while (r.tap < most && r.tap * dilation % stride != rest) r.tap++;
    r.taps = r.tap < most ? (taps - 1 - r.tap) / step + 1 : 0;
    r.base = r.taps ? (pixel + padding - r.tap * dilation) / stride : 0;
    return r;
}
// The part of the product that a block makes. Asked for once more after the sum rather than kept in registers
// meanwhile: the compiler must not know that the answer is the same.
typedef struct egi_gpu_block_of { int i0, j0, m, group, part, first, end; egi_gpu_phase y, x; } egi_gpu_block_of;
template <int WHAT, int TM, int TN>
static __device__ __forceinline__ egi_gpu_block_of egi_gpu_conv_block(const egi_gpu_conv &p) {
    egi_gpu_block_of b;
    uint32_t block = blockIdx.x, rest;
    __asm__ volatile("" : "+r"(block));
    rest = block / (uint32_t)p.across;
    b.j0 = (int)(block - rest * (uint32_t)p.across) * TN;
    block = rest / (uint32_t)p.down;
    b.i0 = (int)(rest - block * (uint32_t)p.down) * TM;
    b.group = (int)(block % (uint32_t)p.d.groups);
    block /= (uint32_t)p.d.groups;
    b.m = (int)p.m;
    int k = (int)p.k;
    if (WHAT == EGI_CONV_INPUT) {
        const int phase = (int)(block % (uint32_t)p.phases), sw = (int)p.d.sw,
                  kinds = (int)(p.d.w < p.d.sw ? p.d.w : p.d.sw);
        block /= (uint32_t)p.phases;
        b.y = egi_gpu_phase_of(phase / kinds, (int)p.d.h, (int)p.d.sh, (int)p.d.dh, (int)p.d.kh, (int)p.d.pt, p.step_y);
        b.x = egi_gpu_phase_of(phase % kinds, (int)p.d.w, sw, (int)p.d.dw, (int)p.d.kw, (int)p.d.pl, p.step_x);
        b.m = (int)p.d.n * b.y.pixels * b.x.pixels;
        k = (int)p.og * b.y.taps * b.x.taps;
    }
    b.part = (int)block;
    b.first = b.part * (int)p.part;
    b.end = k - b.first > (int)p.part ? b.first + (int)p.part : k;
    return b;
}
// Row i of the result: the pixels of a phase lie between those of others.
template <int WHAT>
static __device__ __forceinline__ int64_t egi_gpu_conv_row(const egi_gpu_conv &p, const egi_gpu_block_of &b, int i) {
    if (WHAT != EGI_CONV_INPUT || p.phases == 1) return i;
    const uint32_t n = (uint32_t)i, q = n / (uint32_t)b.x.pixels, image = q / (uint32_t)b.y.pixels;
    const int64_t y = b.y.pixel + (q - image * (uint32_t)b.y.pixels) * p.d.sh,
                  x = b.x.pixel + (n - q * (uint32_t)b.x.pixels) * p.d.sw;
    return (image * p.d.h + y) * p.d.w + x;
}

// What one of 256 threads fetches of A and B: for each step of KS columns of A and rows of B pa and pb units of V
// elements that lie side by side. That is along k in A, where neighbouring channels are neighbouring k, and in B for
// the input's gradient; else along i and j. V = 1 knows no channels: along k always.
template <class T, int WHAT, int V, int TM, int TN, int KS> struct egi_gpu_fetch {
    enum {
        A_ALONG_K = V == 1 || WHAT != EGI_CONV_FILTER, B_ALONG_K = WHAT == EGI_CONV_INPUT, UNITS = KS / V,
        ROWS = EGI_GPU_THREADS / UNITS,
        A_UNITS = TM / V, A_ROWS = EGI_GPU_THREADS / A_UNITS, B_UNITS = TN / V, B_ROWS = EGI_GPU_THREADS / B_UNITS,
        PA = TM * KS / V / EGI_GPU_THREADS, ALL_B = TN * KS / V >= EGI_GPU_THREADS,
        PB = ALL_B ? TN * KS / V / EGI_GPU_THREADS : 1,
        SPOTS = A_ALONG_K ? PA : 1
    };
    typedef egi_gpu_four_of<T> four;
    const T *a, *b;                              // from the first channel of the group on
    int64_t b_at;
    int end, j0;
    egi_gpu_spot rows[SPOTS], column;            // of A; of the step
    int unit, row, channel;
    egi_gpu_phase py, px;
    T fa[PA * V], fb[PB * V];

    // A place of the output as the input sees it, or, for the input's gradient, the other way round.
    __device__ __forceinline__ egi_gpu_spot place_of(const egi_gpu_conv &p, int i, int count) const {
        egi_gpu_spot r;
        const uint32_t n = (uint32_t)i;
        if (WHAT == EGI_CONV_INPUT) {
            if (i >= count) { r.at = 0; r.y = r.x = 0xffffffffu; return r; }       // taps are subtracted
            const uint32_t q = n / (uint32_t)px.pixels, image = q / (uint32_t)py.pixels;
            const int y = (int)(q - image * (uint32_t)py.pixels) + py.base,
                      x = (int)(n - q * (uint32_t)px.pixels) + px.base;
            r.at = (((int64_t)image * (int)p.d.oh + y) * (int)p.d.ow + x) * (int)p.d.oc;
            r.y = (uint32_t)y;
            r.x = (uint32_t)x;
            return r;
        }
        const uint32_t q = egi_gpu_quotient(n, p.by_w), image = egi_gpu_quotient(q, p.by_h);
        const int y = (int)(q - image * (uint32_t)p.d.oh) * (int)p.d.sh - (int)p.d.pt,
                  x = (int)(n - q * (uint32_t)p.d.ow) * (int)p.d.sw - (int)p.d.pl;
        r.at = (((int64_t)image * (int)p.d.h + y) * (int)p.d.w + x) * (int)p.d.c;
        r.y = i < count ? (uint32_t)y : 0x80000000u;
        r.x = (uint32_t)x;
        return r;
    }
    __device__ __forceinline__ egi_gpu_spot tap_of(const egi_gpu_conv &p, int k, int count) {
        egi_gpu_spot r;
        const uint32_t n = (uint32_t)k, q = egi_gpu_quotient(n, p.by_c);
        if (WHAT == EGI_CONV_INPUT) {
            channel = (int)(n - q * (uint32_t)p.og);
            const uint32_t ky = q / (uint32_t)px.taps, kx = q - ky * (uint32_t)px.taps;
            const int y = -(int)ky * p.jump_y, x = -(int)kx * p.jump_x;
            r.at = ((int64_t)y * (int)p.d.ow + x) * (int)p.d.oc + channel;
            r.y = k < count ? (uint32_t)y : 0x80000001u;
            r.x = (uint32_t)x;
            b_at = ((int64_t)(py.tap + (int)ky * p.step_y) * (int)p.d.kw + px.tap + (int)kx * p.step_x) * (int)p.cg *
                   (int)p.d.oc + channel;
            return r;
        }
        channel = (int)(n - q * (uint32_t)p.cg);
        const uint32_t ky = egi_gpu_quotient(q, p.by_kw), kx = q - ky * (uint32_t)p.d.kw;
        const int y = (int)ky * (int)p.d.dh, x = (int)kx * (int)p.d.dw;
        r.at = ((int64_t)y * (int)p.d.w + x) * (int)p.d.c + channel;
        r.y = k < count ? (uint32_t)y : 0x7fffffffu;
        r.x = (uint32_t)x;
        return r;
    }
    __device__ __forceinline__ void begin(const egi_gpu_conv &p, const egi_gpu_block_of &w) {
        const int t = (int)threadIdx.x;
        a = (const T *)p.a + w.group * (WHAT == EGI_CONV_INPUT ? p.og : p.cg);
        b = (const T *)p.b + w.group * p.og;
        end = w.end;
        j0 = w.j0;
        py = w.y;
        px = w.x;
        if (V == 1) { unit = t % UNITS; row = t / UNITS; }
        // Pairs of lanes fetch 32 bytes of a row; how they write them down meets no bank of shared memory twice.
        else { unit = t % 2 + t / 32 % (UNITS / 2) * 2; row = t / 2 % 16 + t / 32 / (UNITS / 2) * 16; }
        if (A_ALONG_K) {
            EGI_UNROLL
            for (int l = 0; l < SPOTS; l++)
                rows[l] = WHAT == EGI_CONV_FILTER ? tap_of(p, w.i0 + row + l * ROWS,
                                                           w.m) : place_of(p, w.i0 + row + l * ROWS, w.m);
        } else rows[0] = tap_of(p, w.i0 + t % A_UNITS * V, w.m);
        channel = WHAT == EGI_CONV_INPUT ? (int)p.og : (int)p.cg;                  // the first step finds its tap
        if (!B_ALONG_K) b_at = (int64_t)(w.first + t / B_UNITS) * (int)p.d.oc + j0 + t % B_UNITS * V;
    }
    // The k of this thread in the step from k0 on, as a tap with a channel. A step that stays in its tap needs no
    // division.
    __device__ __forceinline__ void advance(const egi_gpu_conv &p, int k0) {
        const int k = k0 + unit * V;
        if (channel + KS < (WHAT == EGI_CONV_INPUT ? (int)p.og : (int)p.cg) && k < end) {
            channel += KS;
            column.at += KS;
            if (B_ALONG_K) b_at += KS;
        } else column = tap_of(p, k, end);
    }
    __device__ __forceinline__ void take(T *to, const T *from, bool there) const {
        if (V == 4) {
            four v = { { 0, 0, 0, 0 } };
            if (there) v = *(const four *)(const void *)from;
            for (int e = 0; e < V; e++) to[e] = v.v[e];
        } else to[0] = there ? *from : (T)0;
    }
    __device__ __forceinline__ void take_a(const egi_gpu_conv &p, T *to, const egi_gpu_spot &r,
                                           const egi_gpu_spot &s) const {
        const uint32_t h = (uint32_t)(WHAT == EGI_CONV_INPUT ? p.d.oh : p.d.h),
                       w = (uint32_t)(WHAT == EGI_CONV_INPUT ? p.d.ow : p.d.w);
        take(to, a + (r.at + s.at), r.y + s.y < h && r.x + s.x < w);
    }
    __device__ __forceinline__ void step(const egi_gpu_conv &p, int k0) {
        const int t = (int)threadIdx.x;
        if (WHAT != EGI_CONV_FILTER) advance(p, k0);
        else if (A_ALONG_K) column = place_of(p, k0 + unit, end);
        EGI_UNROLL
        for (int l = 0; l < PA; l++) {
            if (A_ALONG_K) take_a(p, fa + l * V, rows[A_ALONG_K ? l : 0], column);
            else take_a(p, fa + l * V, rows[0], place_of(p, k0 + t / A_UNITS + l * A_ROWS, end));
        }
        EGI_UNROLL
        for (int l = 0; l < PB; l++) {
            if (B_ALONG_K) {
                const int j = j0 + row + l * ROWS;
                take(fb + l * V, b + (b_at + (int64_t)j * (int)p.d.oc),
                     k0 + unit * V < end && j < (int)p.n && (ALL_B || row < TN));
            } else {
                const int k = k0 + t / B_UNITS + l * B_ROWS, j = j0 + t % B_UNITS * V;
                take(fb + l * V, b + (b_at + l * B_ROWS * p.d.oc),
                     k < end && j < (int)p.n && (ALL_B || t / B_UNITS < KS));
            }
        }
        if (!B_ALONG_K) b_at += KS * p.d.oc;
    }
    // To shared memory, row k of both holding what is multiplied at once; WA and WB are the rows' widths there.
    template <int WA, int WB> __device__ __forceinline__ void put(T *sa, T *sb) const {
        const int t = (int)threadIdx.x;
        EGI_UNROLL
        for (int l = 0; l < PA; l++) {
            if (A_ALONG_K) { for (int e = 0; e < V; e++) sa[(unit * V + e) * WA + row + l * ROWS] = fa[l * V + e]; }
            else put_unit(sa + (t / A_UNITS + l * A_ROWS) * WA + t % A_UNITS * V, fa + l * V);
        }
        EGI_UNROLL
        for (int l = 0; l < PB; l++) {
            if (!ALL_B && (B_ALONG_K ? row >= TN : t / B_UNITS >= KS)) continue;
            if (B_ALONG_K) { for (int e = 0; e < V; e++) sb[(unit * V + e) * WB + row + l * ROWS] = fb[l * V + e]; }
            else put_unit(sb + (t / B_UNITS + l * B_ROWS) * WB + t % B_UNITS * V, fb + l * V);
        }
    }
    static __device__ __forceinline__ void put_unit(T *to, const T *from) {
        if (V == 4) {
            four v;
            for (int e = 0; e < V; e++) v.v[e] = from[e];
            *(four *)(void *)to = v;
        } else to[0] = from[0];
    }
};

// GX x (256 / GX) threads, each with QM x QN fours by four of the tile's elements; steps of KS.
template <int GX, int QM, int QN, int KS> struct egi_gpu_tile {
    enum { ACROSS = GX, DOWN = EGI_GPU_THREADS / GX, FOURS_M = QM, FOURS_N = QN, M = 4 * QM * DOWN, N = 4 * QN * GX,
           K = KS };
};
typedef egi_gpu_tile<16, 2, 2, 8> egi_gpu_tile_128x128;
typedef egi_gpu_tile<16, 2, 1, 16> egi_gpu_tile_128x64;
typedef egi_gpu_tile<16, 1, 1, 16> egi_gpu_tile_64x64;
typedef egi_gpu_tile<8, 1, 1, 16> egi_gpu_tile_128x32;

// A long sum in float32 loses a digit or more where it is added up in one register. A filter's gradient has a term for
// each place of all pictures: the terms from one multiple of 448 to the next are a block, which is added to the result
// in memory, and a part of the sum meets at most 64 blocks, so that no number is rounded more than 512 times before the
// parts are added in float64.
enum { EGI_GPU_SUM_BLOCK = 448, EGI_GPU_SUM_PART = 63 * EGI_GPU_SUM_BLOCK };
template <class T, int WHAT> struct egi_gpu_sums_in_blocks {
    enum { value = WHAT == EGI_CONV_FILTER && sizeof(T) == 4 };
};
// Writes a thread's elements of a tile; where k is a term of another block than the sum's first, adds them to what
// stands there. The result's rows hold the columns of all groups; the parts of a sum lie one after the other.
template <class T, int WHAT, int V, class S>
static __device__ __forceinline__ void egi_gpu_conv_store(const egi_gpu_conv &p, int tx, int ty,
                                                          const T (*sum)[4 * S::FOURS_N], int k) {
    typedef egi_gpu_four_of<T> four;
    const egi_gpu_block_of w = egi_gpu_conv_block<WHAT, S::M, S::N>(p);
    const bool add = egi_gpu_sums_in_blocks<T, WHAT>::value && k / EGI_GPU_SUM_BLOCK > w.first / EGI_GPU_SUM_BLOCK;
    EGI_UNROLL
    for (int q = 0; q < 4 * S::FOURS_M; q++) {
        const int i = w.i0 + ty * 4 + q / 4 * (4 * S::DOWN) + q % 4;
        if (i >= w.m) continue;
        T *to = (T *)p.c + (w.part * p.rows + egi_gpu_conv_row<WHAT>(p, w, i)) * (p.n * p.d.groups) + w.group * p.n;
        EGI_UNROLL
        for (int r = 0; r < S::FOURS_N; r++) {
            const int j = w.j0 + tx * 4 + r * (4 * S::ACROSS);
            if (V == 4) {
                if (j >= (int)p.n) continue;
                four v = {};
                if (add) v = *(const four *)(const void *)(to + j);
                EGI_UNROLL
                for (int e = 0; e < 4; e++) v.v[e] += sum[q][4 * r + e];
                *(four *)(void *)(to + j) = v;
            } else
                for (int e = 0; e < 4; e++)
                    if (j + e < (int)p.n) to[j + e] = add ? to[j + e] + sum[q][4 * r + e] : sum[q][4 * r + e];
        }
    }
}
// Two tiles of A and B in turn: one is multiplied while the other is written, which makes one barrier a step. A warp's
// threads are 8 across and 4 down, so that each of their loads of four is 64 or 128 bytes of shared memory side by
// side.
template <class T, int WHAT, int V, class S>
static __global__ void __launch_bounds__(EGI_GPU_THREADS, sizeof(T) == 8 ? 1 : 2) egi_gpu_convolve(egi_gpu_conv p) {
    enum { WA = S::M + 4, WB = S::N + 4, QM = S::FOURS_M, QN = S::FOURS_N, blocked = egi_gpu_sums_in_blocks<T,
           WHAT>::value };
    EGI_SHARED(T, sa, 2 * S::K * WA);
    EGI_SHARED(T, sb, 2 * S::K * WB);
    typedef egi_gpu_four_of<T> four;
    const int t = (int)threadIdx.x, warp = t / 32, tx = t % 8 + warp % (S::ACROSS / 8) * 8,
              ty = t / 8 % 4 + warp / (S::ACROSS / 8) * 4;
    egi_gpu_block_of w = egi_gpu_conv_block<WHAT, S::M, S::N>(p);
    if (w.i0 >= w.m) return;                     // a phase with fewer pixels than others
    egi_gpu_fetch<T, WHAT, V, S::M, S::N, S::K> f;
    const int first = w.first, end = w.end;
    T sum[4 * QM][4 * QN];
    EGI_UNROLL
    for (int q = 0; q < 4 * QM; q++)
        for (int r = 0; r < 4 * QN; r++) sum[q][r] = 0;
    f.begin(p, w);
    if (first < end) {
        f.step(p, first);
        f.template put<WA, WB>(sa, sb);
    }
    EGI_BARRIER();
    int now = 0;
    for (int k0 = first; k0 < end; k0 += S::K) {
        const bool more = k0 + S::K < end;
        if (more) f.step(p, k0 + S::K);
        const T *u = sa + now * (S::K * WA) + ty * 4, *v = sb + now * (S::K * WB) + tx * 4;
        EGI_UNROLL
        for (int k = 0; k < S::K; k++) {
            four x[QM], y[QN];
            EGI_UNROLL
            for (int q = 0; q < QM; q++) x[q] = *(const four *)(const void *)(u + k * WA + q * (4 * S::DOWN));
            EGI_UNROLL
            for (int r = 0; r < QN; r++) y[r] = *(const four *)(const void *)(v + k * WB + r * (4 * S::ACROSS));
            EGI_UNROLL
            for (int q = 0; q < 4 * QM; q++)
                for (int r = 0; r < 4 * QN; r++) sum[q][r] += x[q / 4].v[q % 4] * y[r / 4].v[r % 4];
        }
        now ^= 1;
        if (more) f.template put<WA, WB>(sa + now * (S::K * WA), sb + now * (S::K * WB));
        EGI_BARRIER_TO_BREAK(2);
        if (!blocked || (more && (k0 + S::K) % EGI_GPU_SUM_BLOCK)) continue;
        egi_gpu_conv_store<T, WHAT, V, S>(p, tx, ty, sum, k0);
        EGI_UNROLL
        for (int q = 0; q < 4 * QM; q++)
            for (int r = 0; r < 4 * QN; r++) sum[q][r] = 0;
    }
    if (!blocked) egi_gpu_conv_store<T, WHAT, V, S>(p, tx, ty, sum, 0);
}
// The same on tensor cores: what is fetched is rounded to TF32 or bfloat16 on its way to shared memory, products are
// added up as float32. Eight warps, 4 x 2, make 128 x 32 FN elements: 2 x FN fragments of 16 x 16 each. Shared memory
// holds what lies side by side outside side by side, too.
struct egi_gpu_tf32 { typedef float element; enum { DEEP = 8 }; };
struct egi_gpu_bfloat16 { typedef __nv_bfloat16 element; enum { DEEP = 16 }; };
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
namespace egi_wmma = nvcuda::wmma;
template <class E> struct egi_gpu_factor_of { typedef egi_wmma::precision::tf32 type; };
template <> struct egi_gpu_factor_of<egi_gpu_bfloat16> { typedef __nv_bfloat16 type; };
template <bool ROWS> struct egi_gpu_order { typedef egi_wmma::row_major type; };
template <> struct egi_gpu_order<false> { typedef egi_wmma::col_major type; };
static __device__ __forceinline__ void egi_gpu_narrow(float *to, float x) { *to = egi_wmma::__float_to_tf32(x); }
static __device__ __forceinline__ void egi_gpu_narrow(__nv_bfloat16 *to, float x) { *to = __float2bfloat16(x); }
template <class U> static __device__ __forceinline__ void egi_gpu_narrow_four(U *to, const float *from) {
    egi_gpu_four_of<U> v;
    for (int e = 0; e < 4; e++) egi_gpu_narrow(&v.v[e], from[e]);
    *(egi_gpu_four_of<U> *)(void *)to = v;
}
template <int WHAT, int TM, int TN, int KS, int WA, int WB, class U, class F>
static __device__ __forceinline__ void egi_gpu_narrow_put(const F &f, U *sa, U *sb) {
    const int t = (int)threadIdx.x;
    EGI_UNROLL
    for (int l = 0; l < F::PA; l++) {
        if (F::A_ALONG_K) egi_gpu_narrow_four(sa + (f.row + l * F::ROWS) * WA + f.unit * 4, f.fa + l * 4);
        else egi_gpu_narrow_four(sa + (t / F::A_UNITS + l * F::A_ROWS) * WA + t % F::A_UNITS * 4, f.fa + l * 4);
    }
    EGI_UNROLL
    for (int l = 0; l < F::PB; l++) {
        if (F::B_ALONG_K) egi_gpu_narrow_four(sb + (f.row + l * F::ROWS) * WB + f.unit * 4, f.fb + l * 4);
        else egi_gpu_narrow_four(sb + (t / F::B_UNITS + l * F::B_ROWS) * WB + t % F::B_UNITS * 4, f.fb + l * 4);
    }
}
#endif
// Writes a warp's sums. Which lane holds which element only the fragments know: each goes through `patch`, 16 x 16
// floats of the warp's own.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <int WHAT, int TM, int TN, int FN, class S>
static __device__ __forceinline__ void egi_gpu_convolve_put(const egi_gpu_conv &p, S (&sum)[2][FN], float *patch,
                                                            int m0, int n0) {
    const int lane = (int)threadIdx.x % 32;
    const egi_gpu_block_of w = egi_gpu_conv_block<WHAT, TM, TN>(p);
    EGI_UNROLL
    for (int q = 0; q < 2; q++)
        EGI_UNROLL
        for (int r = 0; r < FN; r++) {
            egi_wmma::store_matrix_sync(patch, sum[q][r], 16, egi_wmma::mem_row_major);
            EGI_WARP_BARRIER();
            for (int half = 0; half < 2; half++) {
                const int down = lane / 4 + 8 * half, across = lane % 4 * 4;
                const int i = w.i0 + m0 + 16 * q + down, j = w.j0 + n0 + 16 * r + across;
                if (i >= w.m || j >= (int)p.n) continue;
                float *to = (float *)p.c + (w.part * p.rows + egi_gpu_conv_row<WHAT>(p, w, i)) * (p.n * p.d.groups) +
                            w.group * p.n + j;
                *(egi_gpu_four_of<float> *)(void *)to =
                    *(const egi_gpu_four_of<float> *)(const void *)(patch + 16 * down + across);
            }
            EGI_WARP_BARRIER();
        }
}
#endif
template <class E, int WHAT, int FN>
static __global__ void __launch_bounds__(EGI_GPU_THREADS, FN == 4 ? 1 : 2) egi_gpu_convolve_cores(egi_gpu_conv p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800        // for older ones the host takes the kernel above
    typedef typename E::element U;
    enum { TM = 128, TN = 32 * FN, KS = FN == 4 ? 16 : 64 / sizeof(U), PAD = 16 / sizeof(U),
           A_ROWS = WHAT != EGI_CONV_FILTER, B_ROWS = WHAT != EGI_CONV_INPUT };
    enum { WA = (A_ROWS ? KS : TM) + PAD, WB = (B_ROWS ? TN : KS) + PAD, ALL_A = (A_ROWS ? TM : KS) * WA,
           ALL_B = (B_ROWS ? KS : TN) * WB };
    typedef typename egi_gpu_factor_of<E>::type factor;
    EGI_SHARED(U, sa, 2 * ALL_A);
    EGI_SHARED(U, sb, 2 * ALL_B);
    const int warp = (int)threadIdx.x / 32, m0 = warp / 2 * 32, n0 = warp % 2 * (16 * FN);
    egi_gpu_block_of w = egi_gpu_conv_block<WHAT, TM, TN>(p);
    if (w.i0 >= w.m) return;
    egi_gpu_fetch<float, WHAT, 4, TM, TN, KS> f;
    const int first = w.first, end = w.end;
    egi_wmma::fragment<egi_wmma::accumulator, 16, 16, E::DEEP, float> sum[2][FN];
    EGI_UNROLL
    for (int q = 0; q < 2; q++)
        EGI_UNROLL
        for (int r = 0; r < FN; r++) egi_wmma::fill_fragment(sum[q][r], 0.0f);
    f.begin(p, w);
    if (first < end) {
        f.step(p, first);
        egi_gpu_narrow_put<WHAT, TM, TN, KS, WA, WB>(f, sa, sb);
    }
    EGI_BARRIER();
    int now = 0;
    for (int k0 = first; k0 < end; k0 += KS) {
        const bool more = k0 + KS < end;
        if (more) f.step(p, k0 + KS);
        const U *u = sa + now * ALL_A, *v = sb + now * ALL_B;
        EGI_UNROLL
        for (int k = 0; k < KS; k += E::DEEP) {
            egi_wmma::fragment<egi_wmma::matrix_a, 16, 16, E::DEEP, factor, typename egi_gpu_order<A_ROWS>::type> x[2];
            EGI_UNROLL
            for (int q = 0; q < 2; q++)
                egi_wmma::load_matrix_sync(x[q], u + (A_ROWS ? (m0 + 16 * q) * WA + k : k * WA + m0 + 16 * q), WA);
            EGI_UNROLL
            for (int r = 0; r < FN; r++) {
                egi_wmma::fragment<egi_wmma::matrix_b, 16, 16, E::DEEP, factor, typename egi_gpu_order<B_ROWS>::type> y;
                egi_wmma::load_matrix_sync(y, v + (B_ROWS ? k * WB + n0 + 16 * r : (n0 + 16 * r) * WB + k), WB);
                EGI_UNROLL
                for (int q = 0; q < 2; q++) egi_wmma::mma_sync(sum[q][r], x[q], y, sum[q][r]);
            }
        }
        now ^= 1;
        if (more) egi_gpu_narrow_put<WHAT, TM, TN, KS, WA, WB>(f, sa + now * ALL_A, sb + now * ALL_B);
        EGI_BARRIER_TO_BREAK(3);
    }
    egi_gpu_convolve_put<WHAT, TM, TN, FN>(p, sum, (float *)(void *)sa + warp * 256, m0, n0);
#else
    (void)p;
#endif
}
// The parts of a sum, added up in float64 by 8 rows of threads, then the rows: in the same order each time.
template <class T> static __global__ void egi_gpu_add_parts(int64_t n, int64_t parts, const T *from, T *to) {
    EGI_SHARED(double, s, EGI_GPU_THREADS);
    const int t = (int)threadIdx.x;
    const int64_t i = (int64_t)blockIdx.x * 32 + t % 32;
    double sum = 0;
    EGI_UNROLL_EIGHT
    for (int64_t k = t / 32; k < parts; k += 8) if (i < n) sum += (double)from[k * n + i];
    s[t] = sum;
    EGI_BARRIER();
    if (t >= 32 || i >= n) return;
    for (int k = 1; k < 8; k++) sum += s[t + 32 * k];
    to[i] = (T)sum;
}
template <class T>
static void egi_gpu_add_parts_launch(egi_gpu *g, int64_t n, int64_t parts, const void *from, void *to) {
    EGI_LAUNCH_WITH_BARRIERS(egi_gpu_add_parts<T>, egi_gpu_ceil(n, 32), EGI_GPU_THREADS, g->compute, n, parts,
                             (const T *)from, (T *)to);
}

// A tile: how many products a multiprocessor makes of it in a clock, about; whether it is for channels that are
// multiples of four.
typedef struct egi_gpu_tile_row { int64_t m, n; double speed; bool fours; } egi_gpu_tile_row;
static const egi_gpu_tile_row egi_gpu_tiles[] = { { 128, 128, 100, true }, { 128, 64, 90, true }, { 64, 64, 75, false },
                                                  { 128, 32, 70, false } },
                              egi_gpu_core_tiles[] = { { 128, 128, 400, true }, { 128, 64, 320, true } };
// Chooses among n tiles, and the parts of the sum: the fewest clocks of the busiest multiprocessor. A sum in parts
// costs a launch, and writes and reads each part.
static int egi_gpu_conv_plan(const egi_gpu *g, egi_gpu_conv *p, const egi_gpu_tile_row *tile, int n, bool fours) {
    const double launch = 7000, floats = 5;      // clocks; elements moved in a clock by a multiprocessor
    double least = HUGE_VAL;
    int best = -1;
    for (int i = 0; i < n; i++) {
        const int64_t down = egi_gpu_ceil(p->m, tile[i].m), across = egi_gpu_ceil(p->n, tile[i].n),
                      tiles = down * across * p->d.groups * p->phases;
        if (tile[i].fours && !fours) continue;
        for (int64_t cut = 1;; cut += 1 + cut / 2) {
            const int64_t part = egi_gpu_ceil(egi_gpu_ceil(p->k, cut), 32) * 32, parts = egi_gpu_ceil(p->k, part);
            double clocks = (double)egi_gpu_ceil(tiles * parts, g->multiprocessors) * (double)(tile[i].m * tile[i].n) *
                            (double)(egi_gpu_min(part, p->k) + 32) / tile[i].speed;
            if (parts > 1)
                clocks += launch + (double)(p->rows * p->n * p->d.groups) * (double)(2 * parts + 1) /
                (floats * g->multiprocessors);
            if (clocks < least) {
                least = clocks;
                best = i;
                p->down = down;
                p->across = across;
                p->parts = parts;
                p->part = part;
            }
            if (part <= 128 || tiles * parts > 4 * g->multiprocessors) break;
        }
    }
    return best;
}
// Where each group has one channel in there is nothing to multiply matrices of: a thread for each result, or for V = 4
// results of neighbouring channels, which then see as many neighbours.
typedef struct egi_gpu_depthwise_conv {
    egi_gpu_conv p; egi_gpu_divisor by_units, by_sh, by_sw; int64_t units, results; bool wide;
} egi_gpu_depthwise_conv;
// What is left of i when it is divided by n, which becomes the quotient.
static __device__ __forceinline__ int64_t egi_gpu_split_off(int64_t *i, int64_t n, egi_gpu_divisor by, bool wide) {
    const int64_t q = wide ? *i / n : (int64_t)egi_gpu_quotient((uint32_t)*i, by), r = *i - q * n;
    *i = q;
    return r;
}
template <class T, int V> static __device__ __forceinline__ void egi_gpu_add_products(T *sum, const T *a, const T *b) {
    if (V == 4) {
        const egi_gpu_four_of<T> x = *(const egi_gpu_four_of<T> *)(const void *)a,
              y = *(const egi_gpu_four_of<T> *)(const void *)b;
        for (int e = 0; e < V; e++) sum[e] += x.v[e] * y.v[e];
    } else sum[0] += *a * *b;
}
template <class T, int WHAT, int V> static __global__ void egi_gpu_depthwise(egi_gpu_depthwise_conv q) {
    const egi_gpu_conv &p = q.p;
    const egi_gpu_plane &d = p.d;
    const T *a = (const T *)p.a, *b = (const T *)p.b;
    const int h = (int)d.h, w = (int)d.w, oh = (int)d.oh, ow = (int)d.ow, sh = (int)d.sh, sw = (int)d.sw,
              og = (int)p.og;
    EGI_GPU_EACH(i, q.results) {
        T sum[V];
        int64_t image = i;
        for (int e = 0; e < V; e++) sum[e] = 0;
        const int64_t c = egi_gpu_split_off(&image, q.units, q.by_units, q.wide) * V;
        if (WHAT == EGI_CONV_FORWARD) {
            const int x0 = (int)egi_gpu_split_off(&image, ow, p.by_w, q.wide) * sw - (int)d.pl,
                      y0 = (int)egi_gpu_split_off(&image, oh, p.by_h, q.wide) * sh - (int)d.pt;
            const int64_t channel = V == 1 ? c / og : c;
            for (int ky = 0; ky < (int)d.kh; ky++)
                for (int kx = 0; kx < (int)d.kw; kx++) {
                    const int y = y0 + ky * (int)d.dh, x = x0 + kx * (int)d.dw;
                    if (y < 0 || y >= h || x < 0 || x >= w) continue;
                    egi_gpu_add_products<T, V>(sum, a + ((image * h + y) * w + x) * d.c + channel,
                                               b + (int64_t)(ky * (int)d.kw + kx) * d.oc + c);
                }
        } else {
            const int x0 = (int)egi_gpu_split_off(&image, w, p.by_w, q.wide) + (int)d.pl,
                      y0 = (int)egi_gpu_split_off(&image, h, p.by_h, q.wide) + (int)d.pt;
            for (int ky = 0; ky < (int)d.kh; ky++)
                for (int kx = 0; kx < (int)d.kw; kx++) {
                    const int y = y0 - ky * (int)d.dh, x = x0 - kx * (int)d.dw;
                    if (y < 0 || x < 0) continue;
                    const int oy = (int)egi_gpu_quotient((uint32_t)y, q.by_sh),
                              ox = (int)egi_gpu_quotient((uint32_t)x, q.by_sw);
                    if (oy * sh != y || ox * sw != x || oy >= oh || ox >= ow) continue;
                    const T *g = a + ((image * oh + oy) * ow + ox) * d.oc + c * og,
                            *f = b + (int64_t)(ky * (int)d.kw + kx) * d.oc + c * og;
                    for (int o = 0; o < og; o++) egi_gpu_add_products<T, V>(sum, g + o, f + o);
                }
        }
        T *to = (T *)p.c + i * V;
        if (V == 4) {
            egi_gpu_four_of<T> v;
            for (int e = 0; e < V; e++) v.v[e] = sum[e];
            *(egi_gpu_four_of<T> *)(void *)to = v;
        } else to[0] = sum[0];
    }
}
// A sum of any length: 256 terms in their own type, and such blocks in double.
template <class T> struct egi_gpu_long_sum {
    double blocks = 0;
    T block = 0;
    int n = 0;
    __device__ __forceinline__ void add(T v) {
        block += v;
        if (++n < 256) return;
        blocks += (double)block;
        block = 0;
        n = 0;
    }
    __device__ __forceinline__ double value() const { return blocks + (double)block; }
};
// The filter's gradient: a block for one tap, a part of the places and `wide` channels, so that neighbours fetch
// neighbours; its rows of threads take turns at the places.
template <class T> static __global__ void egi_gpu_depthwise_filter(egi_gpu_conv p, int wide) {
    EGI_SHARED(double, s, EGI_GPU_THREADS);
    const T *a = (const T *)p.a, *b = (const T *)p.b;
    const egi_gpu_plane &d = p.d;
    const int t = (int)threadIdx.x, rows = EGI_GPU_THREADS / wide, kw = (int)d.kw, taps = (int)d.kh * kw;
    const uint32_t across = (uint32_t)p.across, rest = blockIdx.x / across;
    const int tap = (int)(rest % (uint32_t)taps), part = (int)(rest / (uint32_t)taps);
    const int64_t o = (int64_t)(blockIdx.x - rest * across) * wide + t % wide, first = part * p.part,
                  end = first + p.part < p.k ? first + p.part : p.k;
    const int dy = tap / kw * (int)d.dh - (int)d.pt, dx = tap % kw * (int)d.dw - (int)d.pl;
    egi_gpu_long_sum<T> terms;
    if (o < d.oc) {
        const T *from = a + o / p.og;
        for (int64_t i = first + t / wide; i < end; i += rows) {
            const uint32_t q = egi_gpu_quotient((uint32_t)i, p.by_w), image = egi_gpu_quotient(q, p.by_h);
            const int y = (int)(q - image * (uint32_t)d.oh) * (int)d.sh + dy,
                      x = (int)((uint32_t)i - q * (uint32_t)d.ow) * (int)d.sw + dx;
            if (y >= 0 && y < (int)d.h && x >= 0 && x < (int)d.w)
                terms.add(from[(((int64_t)image * (int)d.h + y) * (int)d.w + x) * d.c] * b[i * d.oc + o]);
        }
    }
    double sum = terms.value();
    s[t] = sum;
    EGI_BARRIER();
    if (t >= wide || o >= d.oc) return;
    for (int k = 1; k < rows; k++) sum += s[t + wide * k];
    ((T *)p.c)[((int64_t)part * taps + tap) * d.oc + o] = (T)sum;
}
// Adds up the parts that were made in p->c, of so many bytes, and gives them back.
static bool egi_gpu_conv_add(egi_gpu *g, const egi_args *args, const egi_gpu_conv *p, int64_t bytes) {
    const eg_tensor *out = args->out[0];
    if (out->dtype == EG_FLOAT32) egi_gpu_add_parts_launch<float>(g, out->size, p->parts, p->c, out->data);
    else egi_gpu_add_parts_launch<double>(g, out->size, p->parts, p->c, out->data);
    egi_gpu_deallocate(&g->backend, p->c, bytes);
    return egi_gpu_launched(g, args);
}
template <class T> static bool egi_gpu_conv_depthwise_filter(egi_gpu *g, const egi_args *args, egi_gpu_conv *p) {
    const int wide = (int)egi_gpu_power(p->d.oc, 32);
    const int64_t taps = p->d.kh * p->d.kw;
    p->across = egi_gpu_ceil(p->d.oc, wide);
    p->parts = egi_gpu_max(1, egi_gpu_min(egi_gpu_ceil(8 * g->multiprocessors, p->across * taps), p->k / 256));
    p->part = egi_gpu_ceil(p->k, p->parts);
    const int64_t blocks = p->across * taps * p->parts,
                  bytes = p->parts > 1 ? p->parts * args->out[0]->size * (int64_t)sizeof(T) : 0;
    if (blocks > INT32_MAX) return egi_raise(EG_ERROR_SHAPE, args->op->name, "too large for %s", g->name) != NULL;
    if (bytes && !(p->c = egi_gpu_workspace(g, args->op->name, bytes))) return false;
    EGI_LAUNCH_WITH_BARRIERS(egi_gpu_depthwise_filter<T>, blocks, EGI_GPU_THREADS, g->compute, *p, wide);
    return bytes ? egi_gpu_conv_add(g, args, p, bytes) : egi_gpu_launched(g, args);
}
template <class T, int V>
static bool egi_gpu_conv_depthwise_by(egi_gpu *g, const egi_args *args, const egi_gpu_conv *p, bool input) {
    const egi_gpu_plane *d = &p->d;
    egi_gpu_depthwise_conv q;
    q.p = *p;
    q.p.by_w = egi_gpu_divide_by(input ? d->w : d->ow);
    q.p.by_h = egi_gpu_divide_by(input ? d->h : d->oh);
    q.units = (input ? d->c : d->oc) / V;
    q.by_units = egi_gpu_divide_by(q.units);
    q.by_sh = egi_gpu_divide_by(d->sh);
    q.by_sw = egi_gpu_divide_by(d->sw);
    q.results = args->out[0]->size / V;
    q.wide = q.results > INT32_MAX;
    if (input)
        EGI_LAUNCH((egi_gpu_depthwise<T, EGI_CONV_INPUT, V>), egi_gpu_blocks(q.results), EGI_GPU_THREADS, g->compute,
                   q);
    else EGI_LAUNCH((egi_gpu_depthwise<T, EGI_CONV_FORWARD, V>), egi_gpu_blocks(q.results), EGI_GPU_THREADS, g->compute,
                    q);
    return egi_gpu_launched(g, args);
}
static bool egi_gpu_conv_depthwise(egi_gpu *g, const egi_args *args, egi_gpu_conv *p, egi_conv_kind kind) {
    const bool f = args->out[0]->dtype == EG_FLOAT32, input = kind == EGI_CONV_INPUT;
    const bool fours = f && p->og == 1 && p->d.c % 4 == 0 &&
                       ((uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c) % 16 == 0;
    if (kind == EGI_CONV_FILTER)
        return f ? egi_gpu_conv_depthwise_filter<float>(g, args, p) : egi_gpu_conv_depthwise_filter<double>(g, args, p);
    if (fours) return egi_gpu_conv_depthwise_by<float, 4>(g, args, p, input);
    return f ? egi_gpu_conv_depthwise_by<float, 1>(g, args, p, input) : egi_gpu_conv_depthwise_by<double,
           1>(g, args, p, input);
}
template <class T, int V, class S>
static void egi_gpu_conv_tile(egi_gpu *g, const egi_gpu_conv *p, egi_conv_kind kind, int64_t blocks) {
    if (kind == EGI_CONV_FORWARD)
        EGI_LAUNCH_WITH_BARRIERS((egi_gpu_convolve<T, EGI_CONV_FORWARD, V, S>), blocks, EGI_GPU_THREADS, g->compute,
                                 *p);
    else if (kind == EGI_CONV_INPUT)
        EGI_LAUNCH_WITH_BARRIERS((egi_gpu_convolve<T, EGI_CONV_INPUT, V, S>), blocks, EGI_GPU_THREADS, g->compute, *p);
    else EGI_LAUNCH_WITH_BARRIERS((egi_gpu_convolve<T, EGI_CONV_FILTER, V, S>), blocks, EGI_GPU_THREADS, g->compute,
                                  *p);
}
template <class E, int FN>
static void egi_gpu_conv_cores(egi_gpu *g, const egi_gpu_conv *p, egi_conv_kind kind, int64_t blocks) {
    if (kind == EGI_CONV_FORWARD)
        EGI_LAUNCH_WITH_BARRIERS((egi_gpu_convolve_cores<E, EGI_CONV_FORWARD, FN>), blocks, EGI_GPU_THREADS, g->compute,
                                 *p);
    else if (kind == EGI_CONV_INPUT)
        EGI_LAUNCH_WITH_BARRIERS((egi_gpu_convolve_cores<E, EGI_CONV_INPUT, FN>), blocks, EGI_GPU_THREADS, g->compute,
                                 *p);
    else EGI_LAUNCH_WITH_BARRIERS((egi_gpu_convolve_cores<E, EGI_CONV_FILTER, FN>), blocks, EGI_GPU_THREADS, g->compute,
                                  *p);
}
// Tile number `tile` of the table that the plan was made with.
static void egi_gpu_conv_start(egi_gpu *g, const egi_gpu_conv *p, const egi_conv_parameters *q, int dtype, bool fours,
                               bool cores, int tile, int64_t blocks) {
    const bool tf32 = q->precision == EG_PRECISION_TF32;
    if (dtype == EG_FLOAT64) egi_gpu_conv_tile<double, 1, egi_gpu_tile_64x64>(g, p, q->kind, blocks);
    else if (cores && tile == 0 && tf32) egi_gpu_conv_cores<egi_gpu_tf32, 4>(g, p, q->kind, blocks);
    else if (cores && tile == 0) egi_gpu_conv_cores<egi_gpu_bfloat16, 4>(g, p, q->kind, blocks);
    else if (cores && tf32) egi_gpu_conv_cores<egi_gpu_tf32, 2>(g, p, q->kind, blocks);
    else if (cores) egi_gpu_conv_cores<egi_gpu_bfloat16, 2>(g, p, q->kind, blocks);
    else if (tile == 0) egi_gpu_conv_tile<float, 4, egi_gpu_tile_128x128>(g, p, q->kind, blocks);
    else if (tile == 1) egi_gpu_conv_tile<float, 4, egi_gpu_tile_128x64>(g, p, q->kind, blocks);
    else if (tile == 2 && fours) egi_gpu_conv_tile<float, 4, egi_gpu_tile_64x64>(g, p, q->kind, blocks);
    else if (tile == 2) egi_gpu_conv_tile<float, 1, egi_gpu_tile_64x64>(g, p, q->kind, blocks);
    else if (fours) egi_gpu_conv_tile<float, 4, egi_gpu_tile_128x32>(g, p, q->kind, blocks);
    else egi_gpu_conv_tile<float, 1, egi_gpu_tile<8, 1, 1, 8> >(g, p, q->kind, blocks);
}
static bool egi_gpu_conv_product(egi_gpu *g, const egi_args *args, egi_gpu_conv *p) {
    const egi_conv_parameters *q = (const egi_conv_parameters *)args->parameters;
    const eg_tensor *out = args->out[0];
    const int64_t size = eg_dtype_size((eg_dtype)out->dtype);
    const uintptr_t at = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c;
    const bool fours = out->dtype == EG_FLOAT32 && p->cg % 4 == 0 && p->og % 4 == 0 && at % 16 == 0;
    const bool cores = fours && g->cores && q->precision != EG_PRECISION_FLOAT32;
    const int tile = out->dtype == EG_FLOAT64 ? egi_gpu_conv_plan(g, p, &egi_gpu_tiles[2], 1, false)
                     : cores                  ? egi_gpu_conv_plan(g, p, egi_gpu_core_tiles, 2, true)
                                              : egi_gpu_conv_plan(g, p, egi_gpu_tiles, 4, fours);
    if (q->kind == EGI_CONV_FILTER && out->dtype == EG_FLOAT32 && !cores && p->part > EGI_GPU_SUM_PART) {
        p->part = EGI_GPU_SUM_PART;
        p->parts = egi_gpu_ceil(p->k, p->part);
    }
    const int64_t bytes = p->parts > 1 ? p->parts * out->size * size : 0,
                  blocks = p->down * p->across * p->d.groups * p->phases * p->parts;
    if (blocks > INT32_MAX) return egi_raise(EG_ERROR_SHAPE, args->op->name, "too large for %s", g->name) != NULL;
    if (bytes && !(p->c = egi_gpu_workspace(g, args->op->name, bytes))) return false;
    egi_gpu_conv_start(g, p, q, out->dtype, fours, cores, tile, blocks);
    return bytes ? egi_gpu_conv_add(g, args, p, bytes) : egi_gpu_launched(g, args);
}
// A filter of one pixel that looks at each, or one as large as the picture: x and y are matrices as they lie in memory.
static bool egi_gpu_conv_is_product(const egi_gpu_plane *d) {
    const bool pixel = d->kh == 1 && d->kw == 1 && d->sh == 1 && d->sw == 1 && d->oh == d->h && d->ow == d->w;
    const bool picture = d->kh == d->h && d->kw == d->w && d->oh == 1 && d->ow == 1 && (d->dh == 1 || d->kh == 1) &&
                         (d->dw == 1 || d->kw == 1);
    return d->groups == 1 && d->pt == 0 && d->pl == 0 && (pixel || picture);
}
static bool egi_gpu_conv_blas(egi_gpu *g, const egi_args *args, const egi_gpu_plane *d) {
    const egi_conv_parameters *q = (const egi_conv_parameters *)args->parameters;
    const int64_t rows = d->n * d->oh * d->ow, inner = d->kh * d->kw * d->c;  // (rows, inner) (inner, oc) = (rows, oc)
    egi_matmul_parameters m;
    memset(&m, 0, sizeof m);
    m.precision = q->precision;
    m.ta = q->kind == EGI_CONV_FILTER;
    m.tb = q->kind == EGI_CONV_INPUT;
    m.m = m.ta ? inner : rows;
    m.n = m.tb ? inner : d->oc;
    m.k = m.ta ? rows : m.tb ? d->oc : inner;
    m.lda = m.tb ? d->oc : inner;
    m.ldb = d->oc;
    pthread_mutex_lock(&g->product);
    const bool ok = egi_gpu_blas(g, args->op->name, &m, args->out[0]->dtype, args->in[0]->data, args->in[1]->data,
                                 args->out[0]->data, 0, 0, 1, false);
    pthread_mutex_unlock(&g->product);
    return ok;
}
static int64_t egi_gpu_gcd(int64_t a, int64_t b) {
    while (b) { const int64_t r = a % b; a = b; b = r; }
    return a;
}
static bool egi_gpu_run_conv(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_conv_parameters *q = (const egi_conv_parameters *)args->parameters;
    const eg_tensor *out = args->out[0];
    const bool input = q->kind == EGI_CONV_INPUT;
    egi_gpu_conv p;
    memset(&p, 0, sizeof p);
    const egi_gpu_plane *d = &p.d;
    if (!egi_gpu_plane_of(g, args, &q->windows, &p.d)) return false;
    p.cg = d->c / d->groups;
    p.og = d->oc / d->groups;
    const int64_t places = d->n * d->oh * d->ow, taps = d->kh * d->kw, gy = egi_gpu_gcd(d->sh, d->dh),
                  gx = egi_gpu_gcd(d->sw, d->dw), far = (int64_t)1 << 30;
    if (d->h + d->pt + d->kh * d->dh > far || d->w + d->pl + d->kw * d->dw > far || d->sh > far || d->sw > far ||
        d->oh > far || d->ow > far || p.cg > far || p.og > far)
        return egi_raise(EG_ERROR_SHAPE, args->op->name, "too large for %s", g->name) != NULL;
    p.step_y = (int)(d->sh / gy);
    p.step_x = (int)(d->sw / gx);
    p.jump_y = (int)(d->dh / gy);
    p.jump_x = (int)(d->dw / gx);
    // strides may be larger than the picture
    p.phases = input ? egi_gpu_min(d->sh, d->h) * egi_gpu_min(d->sw, d->w) : 1;
    p.rows = q->kind == EGI_CONV_FORWARD ? places : input ? d->n * d->h * d->w : taps * p.cg;
    p.m = input ? d->n * egi_gpu_ceil(d->h, d->sh) * egi_gpu_ceil(d->w, d->sw) : p.rows;
    p.n = input ? p.cg : p.og;
    p.k = q->kind == EGI_CONV_FORWARD ? taps * p.cg
          : input ? egi_gpu_ceil(d->kh, p.step_y) * egi_gpu_ceil(d->kw, p.step_x) * p.og
          : places;
    p.by_w = egi_gpu_divide_by(d->ow);
    p.by_h = egi_gpu_divide_by(d->oh);
    p.by_c = egi_gpu_divide_by(input ? p.og : p.cg);
    p.by_kw = egi_gpu_divide_by(d->kw);
    p.a = args->in[0]->data;
    p.b = args->in[1]->data;
    p.c = out->data;
    if (p.m > INT32_MAX - 256 || p.k > INT32_MAX - 256)
        return egi_raise(EG_ERROR_SHAPE, args->op->name, "too large for %s", g->name) != NULL;
    if (p.k == 0) {
        EGI_GPU_TRY(g, args->op->name,
                    cudaMemsetAsync(out->data, 0, (size_t)(out->size * eg_dtype_size((eg_dtype)out->dtype)),
                                    g->compute));
        return true;
    }
    if (egi_gpu_conv_is_product(d)) return egi_gpu_conv_blas(g, args, d);
    return p.cg == 1 &&
           d->groups > 1 ? egi_gpu_conv_depthwise(g, args, &p, q->kind) : egi_gpu_conv_product(g, args, &p);
}

// Pooling: a thread for each result. The average's gradient collects from the windows that hold a pixel, in their
// order.
typedef struct egi_gpu_pooling {
    egi_gpu_plane d; int kind; bool wide; int64_t results; egi_gpu_divisor by_c, by_w, by_h, by_sh, by_sw;
} egi_gpu_pooling;
template <class T> static __global__ void egi_gpu_pool(egi_gpu_pooling p, const T *from, void *to) {
    const egi_gpu_plane &d = p.d;
    EGI_GPU_EACH(i, p.results) {
        int64_t image = i;
        const int64_t c = egi_gpu_split_off(&image, d.c, p.by_c, p.wide);
        if (p.kind == EGI_POOL_AVG_GRAD) {
            const int64_t x = egi_gpu_split_off(&image, d.w, p.by_w, p.wide),
                          y = egi_gpu_split_off(&image, d.h, p.by_h, p.wide);
            // Windows oy with oy sh - pt <= y < oy sh - pt + kh.
            int64_t last_y = y + d.pt, last_x = x + d.pl, first_y = last_y - d.kh + d.sh,
                    first_x = last_x - d.kw + d.sw;
            first_y = first_y > 0 ? first_y : 0;
            first_x = first_x > 0 ? first_x : 0;
            egi_gpu_split_off(&last_y, d.sh, p.by_sh, p.wide);
            egi_gpu_split_off(&last_x, d.sw, p.by_sw, p.wide);
            egi_gpu_split_off(&first_y, d.sh, p.by_sh, p.wide);
            egi_gpu_split_off(&first_x, d.sw, p.by_sw, p.wide);
            egi_gpu_long_sum<T> sum;
            for (int64_t oy = first_y; oy <= last_y && oy < d.oh; oy++)
                for (int64_t ox = first_x; ox <= last_x && ox < d.ow; ox++) {
                    int64_t y0 = oy * d.sh - d.pt, x0 = ox * d.sw - d.pl, y1 = y0 + d.kh < d.h ? y0 + d.kh : d.h,
                            x1 = x0 + d.kw < d.w ? x0 + d.kw : d.w;
                    y0 = y0 > 0 ? y0 : 0;
                    x0 = x0 > 0 ? x0 : 0;
                    sum.add((T)1 / (T)((y1 - y0) * (x1 - x0)) * from[((image * d.oh + oy) * d.ow + ox) * d.c + c]);
                }
            ((T *)to)[i] = (T)sum.value();
            continue;
        }
        const int64_t ox = egi_gpu_split_off(&image, d.ow, p.by_w, p.wide),
                      oy = egi_gpu_split_off(&image, d.oh, p.by_h, p.wide);
        int64_t y0 = oy * d.sh - d.pt, x0 = ox * d.sw - d.pl;
        const int64_t y1 = y0 + d.kh < d.h ? y0 + d.kh : d.h, x1 = x0 + d.kw < d.w ? x0 + d.kw : d.w;
        y0 = y0 > 0 ? y0 : 0;
        x0 = x0 > 0 ? x0 : 0;
        int64_t best = -1;
        T top = 0;
        egi_gpu_long_sum<T> sum;
        for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++) {
                const int64_t at = ((image * d.h + y) * d.w + x) * d.c + c;
                const T v = from[at];
                sum.add(v);
                if (best < 0 || v > top || (v != v && top == top)) { best = at; top = v; }
            }
        if (p.kind == EGI_POOL_MAX_INDEX) ((int64_t *)to)[i] = best;
        else ((T *)to)[i] = y0 < y1 && x0 < x1 ? (T)(sum.value() / (double)((y1 - y0) * (x1 - x0))) : (T)0;
    }
}
static bool egi_gpu_run_pool(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_pool_parameters *q = (const egi_pool_parameters *)args->parameters;
    const eg_tensor *x = args->in[0], *out = args->out[0];
    const bool back = q->kind == EGI_POOL_AVG_GRAD;
    egi_gpu_pooling p;
    const egi_gpu_plane *d = &p.d;
    if (!egi_gpu_plane_of(g, args, &q->windows, &p.d)) return false;
    p.kind = (int)q->kind;
    p.results = out->size;
    p.wide = p.results > INT32_MAX || d->h + d->pt + d->sh > INT32_MAX || d->w + d->pl + d->sw > INT32_MAX;
    p.by_c = egi_gpu_divide_by(d->c);
    p.by_w = egi_gpu_divide_by(back ? d->w : d->ow);
    p.by_h = egi_gpu_divide_by(back ? d->h : d->oh);
    p.by_sh = egi_gpu_divide_by(d->sh);
    p.by_sw = egi_gpu_divide_by(d->sw);
    if (x->dtype == EG_FLOAT32)
        EGI_LAUNCH(egi_gpu_pool<float>, egi_gpu_blocks(p.results), EGI_GPU_THREADS, g->compute, p,
                   (const float *)(const void *)x->data, (void *)out->data);
    else EGI_LAUNCH(egi_gpu_pool<double>, egi_gpu_blocks(p.results), EGI_GPU_THREADS, g->compute, p,
                    (const double *)(const void *)x->data, (void *)out->data);
    return egi_gpu_launched(g, args);
}

//# 7  INDICES AND SORTING ----------------------------------------------------
// Idea: an index that is out of range is noted in the device's fault and skipped; the next read reports it. Sorting is
// by value and then by place, so that no two elements are equal: stable, and the same whatever the order of threads.
// Tiles of 512 are sorted in shared memory; then neighbouring runs are merged, each element finding its new place by
// counting those of the other run before it. What is scattered is sorted by index first, and then cut into chunks of
// even length: what lies in a chunk is added up there, what goes across its borders is a shorter list of the same kind.
// So a row that all updates are for takes no longer than others.

typedef struct egi_gpu_pick {
    int64_t outer, rows, inner, count; const char *name; int index_dtype, index_size; unsigned site;
    egi_gpu_fault *fault; const void *from, *indices; void *to;
} egi_gpu_pick;
static __device__ __forceinline__ int64_t egi_gpu_index(const egi_gpu_pick &p, int64_t i) {
    return egi_gpu_load_int(p.index_dtype, (const char *)p.indices + i * p.index_size);
}
// Element i of (outer, count, inner): 32 bits divide several times faster, where they are enough.
static __device__ __forceinline__ void egi_gpu_index_split(int64_t outer, int64_t count, int64_t inner, int64_t i,
                                                           int64_t *o, int64_t *k, int64_t *j) {
    if (outer * count * inner <= UINT32_MAX) {
        uint32_t n = (uint32_t)i, q = n / (uint32_t)inner;
        *j = n - q * (uint32_t)inner;
        *o = q / (uint32_t)count;
        *k = q % (uint32_t)count;
        return;
    }
    *j = i % inner;
    *k = i / inner % count;
    *o = i / inner / count;
}
template <class U> static __global__ void egi_gpu_gather(egi_gpu_pick p) {
    EGI_GPU_EACH(i, p.outer * p.count * p.inner) {
        int64_t o, k, j;
        egi_gpu_index_split(p.outer, p.count, p.inner, i, &o, &k, &j);
        const int64_t index = egi_gpu_index(p, k);
        U v;
        memset(&v, 0, sizeof v);
        if (index >= 0 && index < p.rows) v = ((const U *)p.from)[(o * p.rows + index) * p.inner + j];
        else egi_gpu_bad_index(p.fault, p.site, index, k, p.rows);
        ((U *)p.to)[i] = v;
    }
}
static bool egi_gpu_run_gather(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_gather_parameters *q = (const egi_gather_parameters *)args->parameters;
    const eg_tensor *x = args->in[0], *indices = args->in[1], *out = args->out[0];
    egi_gpu_pick p;
    memset(&p, 0, sizeof p);
    int64_t row = q->inner * eg_dtype_size((eg_dtype)x->dtype), unit = 16;
    // the widest that moves whole rows
    while (row % unit || (uintptr_t)x->data % (uintptr_t)unit || (uintptr_t)out->data % (uintptr_t)unit) unit /= 2;
    p.outer = q->outer;
    p.rows = q->rows;
    p.inner = row / unit;
    p.count = indices->size;
    p.index_dtype = indices->dtype;
    p.index_size = (int)eg_dtype_size((eg_dtype)indices->dtype);
    p.site = egi_gpu_index_site(g, q->name, indices, false);
    p.fault = g->fault;
    p.from = x->data;
    p.indices = indices->data;
    p.to = out->data;
    int64_t blocks = egi_gpu_blocks(p.outer * p.count * p.inner);
    if (p.outer * p.count * p.inner == 0) return true;
    if (unit == 16) EGI_LAUNCH(egi_gpu_gather<uint4>, blocks, EGI_GPU_THREADS, g->compute, p);
    else if (unit == 8) EGI_LAUNCH(egi_gpu_gather<uint64_t>, blocks, EGI_GPU_THREADS, g->compute, p);
    else if (unit == 4) EGI_LAUNCH(egi_gpu_gather<uint32_t>, blocks, EGI_GPU_THREADS, g->compute, p);
    else if (unit == 2) EGI_LAUNCH(egi_gpu_gather<uint16_t>, blocks, EGI_GPU_THREADS, g->compute, p);
    else EGI_LAUNCH(egi_gpu_gather<uint8_t>, blocks, EGI_GPU_THREADS, g->compute, p);
    return egi_gpu_launched(g, args);
}
template <class T>
static __global__ void egi_gpu_one_hot(int64_t n, int64_t depth, bool wide, const void *index, T on, T off, T *y) {
    EGI_GPU_EACH(at, n * depth) {
        const int64_t i = at / depth, hot = wide ? ((const int64_t *)index)[i] : (int64_t)((const int32_t *)index)[i];
        y[at] = hot == at % depth ? on : off;
    }
}
template <class T> static bool egi_gpu_write_one_hot(egi_gpu *g, const egi_args *args) {
    const double *value = (const double *)args->parameters;
    const eg_tensor *index = args->in[0], *y = args->out[0];
    T on, off;
    egi_dtype_store(y->dtype, &on, value[0]);
    egi_dtype_store(y->dtype, &off, value[1]);
    EGI_LAUNCH((egi_gpu_one_hot<T>), egi_gpu_blocks(y->size), EGI_GPU_THREADS, g->compute,
               index->size, y->dims[y->rank - 1], index->dtype == EG_INT64, (const void *)index->data, on, off,
               (T *)(void *)y->data);
    return egi_gpu_launched_for(g, "one_hot");
}
static bool egi_gpu_run_one_hot(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    switch (eg_dtype_size((eg_dtype)args->out[0]->dtype)) {
        case 1: return egi_gpu_write_one_hot<uint8_t>(g, args);
        case 2: return egi_gpu_write_one_hot<uint16_t>(g, args);
        case 4: return egi_gpu_write_one_hot<uint32_t>(g, args);
        default: return egi_gpu_write_one_hot<uint64_t>(g, args);
    }
}

enum { EGI_GPU_RUN = 2 * EGI_GPU_THREADS };
// Does element i stand before element j? NaN stands last.
template <class T>
static __device__ __forceinline__ bool egi_gpu_sort_before(T a, int64_t i, T b, int64_t j, bool descending) {
    bool na = egi_gpu_nan(a), nb = egi_gpu_nan(b);
    if (na != nb) return nb;
    if (na || a == b) return i < j;
    return descending ? a > b : a < b;
}
// Rows of n, each in tiles of EGI_GPU_RUN: Batcher's bitonic sort of a tile. Places in a row are of type K.
template <class T, class K>
static __global__ void egi_gpu_sort_tiles(int64_t n, bool descending, const T *x, K *order) {
    EGI_SHARED(T, key, EGI_GPU_RUN);
    EGI_SHARED(int, place, EGI_GPU_RUN);
    const int t = (int)threadIdx.x;
    const int64_t tiles = (n + EGI_GPU_RUN - 1) / EGI_GPU_RUN, row = blockIdx.x / tiles,
                  first = blockIdx.x % tiles * EGI_GPU_RUN;
    const int count = n - first < EGI_GPU_RUN ? (int)(n - first) : (int)EGI_GPU_RUN;
    for (int i = t; i < EGI_GPU_RUN; i += EGI_GPU_THREADS) {
        key[i] = i < count ? x[row * n + first + i] : (T)0;
        place[i] = i;
    }
    for (int size = 2; size <= EGI_GPU_RUN; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            EGI_BARRIER();
            const int i = t / step * (2 * step) + t % step, j = i + step;
            const bool i_in = place[i] < count, j_in = place[j] < count;      // what is beyond the end stands last
            const bool before = i_in && j_in ? egi_gpu_sort_before(key[i], place[i], key[j], place[j], descending)
                                : i_in != j_in ? i_in
                                : place[i] < place[j];
            if (before != ((i & size) == 0)) {
                const T k = key[i];
                const int q = place[i];
                key[i] = key[j];
                place[i] = place[j];
                key[j] = k;
                place[j] = q;
            }
        }
    EGI_BARRIER();
    for (int i = t; i < count; i += EGI_GPU_THREADS) order[row * n + first + i] = (K)(first + place[i]);
}
template <class T, class K>
static __global__ void egi_gpu_sort_merge(int64_t rows, int64_t n, int64_t width, bool descending, const T *x,
                                          const K *from, K *to) {
    EGI_GPU_EACH(at, rows * n) {
        const int64_t row = at / n, i = at % n, run = i / width, pair = run / 2 * 2 * width,
                      middle = pair + width < n ? pair + width : n;
        const int64_t end = pair + 2 * width < n ? pair + 2 * width : n, e = from[at];
        const T *keys = x + row * n;
        const T key = keys[e];
        int64_t low = run % 2 ? pair : middle, high = run % 2 ? middle : end;
        const int64_t start = low;
        while (low < high) {                     // how many of the other run stand before it
            const int64_t half = low + (high - low) / 2, other = from[row * n + half];
            if (egi_gpu_sort_before(keys[other], other, key, e, descending)) low = half + 1;
            else high = half;
        }
        to[row * n + pair + (i - run * width) + (low - start)] = (K)e;
    }
}
template <class T, class K> static bool egi_gpu_argsort(egi_gpu *g, const char *op, int64_t rows, int64_t n,
                                                        bool descending, const void *x, K *order) {
    int64_t tiles = rows * egi_gpu_ceil(n, EGI_GPU_RUN), bytes = rows * n * (int64_t)sizeof(K);
    K *other = NULL, *from = order, *to;
    if (tiles > INT32_MAX) return egi_raise(EG_ERROR_SHAPE, op, "too large for %s", g->name) != NULL;
    if (n > EGI_GPU_RUN && !(other = (K *)egi_gpu_workspace(g, op, bytes))) return false;
    to = other;
    int passes = 0;
    for (int64_t width = EGI_GPU_RUN; width < n; width *= 2) passes++;
    if (passes % 2) { from = other; to = order; }                        // so that the last pass ends in order
    EGI_LAUNCH_WITH_BARRIERS((egi_gpu_sort_tiles<T, K>), tiles, EGI_GPU_THREADS, g->compute, n, descending,
                             (const T *)x, from);
    for (int64_t width = EGI_GPU_RUN; width < n; width *= 2) {
        EGI_LAUNCH((egi_gpu_sort_merge<T, K>), egi_gpu_blocks(rows * n), EGI_GPU_THREADS, g->compute, rows, n, width,
                   descending, (const T *)x, (const K *)from, to);
        K *swap = from;
        from = to;
        to = swap;
    }
    if (other) egi_gpu_deallocate(&g->backend, other, bytes);
    return egi_gpu_launched_for(g, op);
}
// The first k of each row in the order: their values and their positions, either of which may be NULL.
template <class T> static __global__ void egi_gpu_sorted_rows(int64_t rows, int64_t n, int64_t k, const T *x,
                                                              const int64_t *order, T *values, int64_t *places) {
    EGI_GPU_EACH(at, rows * k) {
        const int64_t row = at / k, place = order[row * n + at % k];
        if (values) values[at] = x[row * n + place];
        if (places) places[at] = place;
    }
}
template <class T> static bool egi_gpu_sort(egi_gpu *g, const egi_sort_parameters *p, const egi_args *args) {
    const T *x = (const T *)(const void *)args->in[0]->data;
    T *values = args->out[0] ? (T *)(void *)args->out[0]->data : NULL;
    int64_t *places = args->out[1] ? (int64_t *)(void *)args->out[1]->data : NULL,
            bytes = p->outer * p->n * (int64_t)sizeof(int64_t), *order = places;
    if (!values && p->k == p->n) return egi_gpu_argsort<T>(g, args->op->name, p->outer, p->n, p->descending, x, places);
    if (p->k < p->n || !places) order = (int64_t *)egi_gpu_workspace(g, args->op->name, bytes);
    bool ok = order && egi_gpu_argsort<T>(g, args->op->name, p->outer, p->n, p->descending, x, order);
    if (ok) {
        EGI_LAUNCH((egi_gpu_sorted_rows<T>), egi_gpu_blocks(p->outer * p->k), EGI_GPU_THREADS, g->compute, p->outer,
                   p->n, p->k, x, (const int64_t *)order, values, order == places ? (int64_t *)NULL : places);
        ok = egi_gpu_launched_for(g, args->op->name);
    }
    if (order && order != places) egi_gpu_deallocate(&g->backend, order, bytes);
    return ok;
}
static bool egi_gpu_run_sort(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_sort_parameters *p = (const egi_sort_parameters *)args->parameters;
    switch (args->in[0]->dtype) {
        case EG_FLOAT32: return egi_gpu_sort<float>(g, p, args);
        case EG_FLOAT64: return egi_gpu_sort<double>(g, p, args);
        case EG_INT32: return egi_gpu_sort<int32_t>(g, p, args);
        case EG_INT64: return egi_gpu_sort<int64_t>(g, p, args);
        default: return egi_gpu_sort<uint8_t>(g, p, args);
    }
}

// ---- scatter_add

template <class K> static __global__ void egi_gpu_check_indices(egi_gpu_pick p, K *to) {
    EGI_GPU_EACH(i, p.count) {
        int64_t index = egi_gpu_index(p, i);
        if (index < 0 || index >= p.rows) {
            egi_gpu_bad_index(p.fault, p.site, index, i, p.rows);
            index = -1;
        }
        if (to) to[i] = (K)index;
    }
}
template <class K> static __global__ void egi_gpu_sorted(int64_t n, const K *index, const K *order, K *row) {
    EGI_GPU_EACH(i, n) row[i] = index[order[i]];
}
// n updates of (outer, n, inner), with their rows; equal rows are neighbours, and -1 is nobody's. A chunk puts what it
// has of a run that comes from before into the next list at 2 chunk, and of one that goes on after it at 2 chunk + 1.
// For a run that does both there is a 0 at the latter, so that runs have no gaps.
typedef struct egi_gpu_runs {
    int64_t outer, rows, inner, n, chunk, chunks; const void *from, *row, *place; void *to, *next, *next_row;
} egi_gpu_runs;
enum { EGI_GPU_CHUNK = 32, EGI_GPU_AHEAD = 4 };
template <class T, class U, class K> static __global__ void egi_gpu_scatter(egi_gpu_runs p) {
    const K *rows = (const K *)p.row, *place = (const K *)p.place;
    EGI_GPU_EACH(i, p.outer * p.chunks * p.inner) {
        int64_t o, c, j;
        egi_gpu_index_split(p.outer, p.chunks, p.inner, i, &o, &c, &j);
        const int64_t begin = c * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
        const T *from = (const T *)p.from + o * p.n * p.inner + j;
        T *to = (T *)p.to + o * p.rows * p.inner + j;
        K row = rows[begin], before = -1, behind = -1;
        bool joined = begin > 0 && row >= 0 && rows[begin - 1] == row;
        U sum = 0, sum_before = 0, sum_behind = 0;
        for (int64_t k0 = begin; k0 < end; k0 += EGI_GPU_AHEAD) {
            K r[EGI_GPU_AHEAD];
            U v[EGI_GPU_AHEAD];
            for (int q = 0; q < EGI_GPU_AHEAD; q++) {                    // several at once are on their way
                const int64_t k = k0 + q < end ? k0 + q : end - 1;
                r[q] = rows[k];
                v[q] = r[q] >= 0 ? (U)from[(place ? (int64_t)place[k] : k) * p.inner] : (U)0;
            }
            for (int q = 0; q < EGI_GPU_AHEAD; q++) {
                if (k0 + q >= end) continue;
                if (r[q] != row) {
                    if (joined) { before = row; sum_before = sum; }
                    else if (row >= 0) to[row * p.inner] = (T)sum;
                    joined = false;
                    row = r[q];
                    sum = 0;
                }
                sum = (U)(T)(sum + v[q]);
            }
        }
        const bool goes_on = end < p.n && row >= 0 && rows[end] == row;
        if (joined) { before = row; sum_before = sum; }
        else if (goes_on) sum_behind = sum;
        else if (row >= 0) to[row * p.inner] = (T)sum;
        if (goes_on) behind = row;
        if (p.chunks == 1) continue;
        T *next = (T *)p.next + (o * p.chunks + c) * 2 * p.inner + j;
        next[0] = (T)sum_before;
        next[p.inner] = (T)sum_behind;
        if (o || j) continue;
        ((K *)p.next_row)[2 * c] = before;
        ((K *)p.next_row)[2 * c + 1] = behind;
    }
}
// Where there are few rows nothing is sorted: each of them looks through all updates. In parts, which are added up
// then.
enum { EGI_GPU_FEW_ROWS = 8 };
template <class T, class U, class K> static __global__ void egi_gpu_scatter_few(egi_gpu_runs p) {
    const K *rows = (const K *)p.row;
    EGI_GPU_EACH(i, p.chunks * p.outer * p.rows * p.inner) {
        int64_t o, row, j;
        egi_gpu_index_split(p.chunks * p.outer, p.rows, p.inner, i, &o, &row, &j);
        const int64_t part = o / p.outer, begin = part * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
        const T *from = (const T *)p.from + (o - part * p.outer) * p.n * p.inner + j;
        U sum = 0;
        for (int64_t k = begin; k < end; k++) if (rows[k] == row) sum = (U)(T)(sum + (U)from[k * p.inner]);
        ((T *)p.to)[i] = (T)sum;
    }
}
static int64_t egi_gpu_chunk_of(int64_t n) { return n <= 2 * EGI_GPU_CHUNK ? n : (int64_t)EGI_GPU_CHUNK; }
static int64_t egi_gpu_scatter_bytes(int64_t bytes) { return egi_gpu_ceil(bytes, 16) * 16; }
template <class T, class U, class K>
static bool egi_gpu_scatter_few_rows(egi_gpu *g, const egi_args *args, egi_gpu_pick *pick) {
    int64_t results = pick->outer * pick->rows * pick->inner,
            parts = egi_gpu_max(1, egi_gpu_min((1 << 18) / results, pick->count / EGI_GPU_CHUNK));
    int64_t index_bytes = egi_gpu_scatter_bytes(pick->count * (int64_t)sizeof(K)),
            bytes = index_bytes + (parts > 1 ? parts * results * (int64_t)sizeof(T) : 0);
    char *work = (char *)egi_gpu_workspace(g, args->op->name, bytes);
    if (!work) return false;
    egi_gpu_runs p = { pick->outer, pick->rows, pick->inner, pick->count, egi_gpu_ceil(pick->count, parts), parts,
                       pick->from, work, NULL, parts > 1 ? work + index_bytes : pick->to, NULL, NULL };
    EGI_LAUNCH(egi_gpu_check_indices<K>, egi_gpu_blocks(pick->count), EGI_GPU_THREADS, g->compute, *pick,
               (K *)(void *)work);
    EGI_LAUNCH((egi_gpu_scatter_few<T, U, K>), egi_gpu_blocks(parts * results), EGI_GPU_THREADS, g->compute, p);
    bool ok = true;
    if (parts > 1) {
        egi_gpu_reduction r;
        memset(&r, 0, sizeof r);
        r.kind = EGI_SUM;
        r.outer = 1;
        r.n = r.total = parts;
        r.inner = results;
        r.in = p.to;
        r.out = pick->to;
        ok = egi_gpu_reduce_all<T, egi_gpu_sum<T>>(g, args, &r);
    }
    egi_gpu_deallocate(&g->backend, work, bytes);
    return egi_gpu_launched(g, args) && ok;
}
template <class T, class U, class K>
static bool egi_gpu_scatter_sorted(egi_gpu *g, const egi_args *args, egi_gpu_pick *pick) {
    // Rows as they come, their order, and so ordered; then two lists in turn, of which the first is the longest.
    int64_t keys = egi_gpu_scatter_bytes(pick->count * (int64_t)sizeof(K)), slots[2], rows[2], sums[2], n = pick->count,
            chunk = egi_gpu_chunk_of(n);
    slots[0] = 2 * egi_gpu_ceil(n, chunk);
    slots[1] = 2 * egi_gpu_ceil(slots[0], egi_gpu_chunk_of(slots[0]));
    for (int i = 0; i < 2; i++) {
        rows[i] = egi_gpu_scatter_bytes(slots[i] * (int64_t)sizeof(K));
        sums[i] = egi_gpu_scatter_bytes(pick->outer * slots[i] * pick->inner * (int64_t)sizeof(T));
    }
    int64_t bytes = 3 * keys + rows[0] + sums[0] + rows[1] + sums[1];
    char *work = (char *)egi_gpu_workspace(g, args->op->name, bytes), *list[2];
    if (!work) return false;
    list[0] = work + 3 * keys;
    list[1] = list[0] + rows[0] + sums[0];
    K *index = (K *)(void *)work, *order = (K *)(void *)(work + keys), *sorted = (K *)(void *)(work + 2 * keys);
    EGI_LAUNCH(egi_gpu_check_indices<K>, egi_gpu_blocks(n), EGI_GPU_THREADS, g->compute, *pick, index);
    bool ok = egi_gpu_argsort<K>(g, pick->name, 1, n, false, index, order);
    if (ok)
        EGI_LAUNCH(egi_gpu_sorted<K>, egi_gpu_blocks(n), EGI_GPU_THREADS, g->compute, n, (const K *)index,
                   (const K *)order, sorted);
    egi_gpu_runs p = { pick->outer, pick->rows, pick->inner, n, chunk, egi_gpu_ceil(n, chunk), pick->from, sorted,
                       order, pick->to, NULL, NULL };
    for (int i = 0; ok; i = !i) {
        p.next_row = list[i];
        p.next = list[i] + rows[i];
        EGI_LAUNCH((egi_gpu_scatter<T, U, K>), egi_gpu_blocks(p.outer * p.chunks * p.inner), EGI_GPU_THREADS,
                   g->compute, p);
        if (p.chunks == 1) break;
        p.row = p.next_row;
        p.from = p.next;
        p.place = NULL;
        p.n = 2 * p.chunks;
        p.chunk = egi_gpu_chunk_of(p.n);
        p.chunks = egi_gpu_ceil(p.n, p.chunk);
    }
    egi_gpu_deallocate(&g->backend, work, bytes);
    return ok && egi_gpu_launched(g, args);
}
template <class T, class U> static bool egi_gpu_scatter_type(egi_gpu *g, const egi_args *args, egi_gpu_pick *p) {
    bool narrow = p->rows <= INT32_MAX && p->count <= INT32_MAX;
    if (p->rows <= EGI_GPU_FEW_ROWS)
        return narrow ? egi_gpu_scatter_few_rows<T, U, int32_t>(g, args, p) : egi_gpu_scatter_few_rows<T, U,
               int64_t>(g, args, p);
    return narrow ? egi_gpu_scatter_sorted<T, U, int32_t>(g, args, p) : egi_gpu_scatter_sorted<T, U,
           int64_t>(g, args, p);
}
static bool egi_gpu_run_scatter_add(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_gather_parameters *q = (const egi_gather_parameters *)args->parameters;
    const eg_tensor *indices = args->in[1], *out = args->out[0];
    egi_gpu_pick p;
    memset(&p, 0, sizeof p);
    p.outer = q->outer;
    p.rows = q->rows;
    p.inner = q->inner;
    p.count = indices->size;
    p.name = q->name;
    p.index_dtype = indices->dtype;
    p.index_size = (int)eg_dtype_size((eg_dtype)indices->dtype);
    p.site = egi_gpu_index_site(g, q->name, indices, false);
    p.fault = g->fault;
    p.from = args->in[0]->data;
    p.indices = indices->data;
    p.to = out->data;
    EGI_GPU_TRY(g, q->name,
                cudaMemsetAsync(out->data, 0, (size_t)(out->size * eg_dtype_size((eg_dtype)out->dtype)), g->compute));
    if (p.count == 0) return true;
    if (out->size == 0) {                        // a bad index is told, though there is nothing to add
        EGI_LAUNCH(egi_gpu_check_indices<int64_t>, egi_gpu_blocks(p.count), EGI_GPU_THREADS, g->compute, p,
                   (int64_t *)NULL);
        return egi_gpu_launched(g, args);
    }
    switch (out->dtype) {
        case EG_FLOAT32: return egi_gpu_scatter_type<float, float>(g, args, &p);
        case EG_FLOAT64: return egi_gpu_scatter_type<double, double>(g, args, &p);
        case EG_INT32: return egi_gpu_scatter_type<int32_t, uint32_t>(g, args, &p);
        case EG_INT64: return egi_gpu_scatter_type<int64_t, uint64_t>(g, args, &p);
        default: return egi_gpu_scatter_type<uint8_t, unsigned>(g, args, &p);
    }
}

//# 8  RANDOM NUMBERS, UPDATES ------------------------------------------------
// Idea: eager.h's own functions compute any part of a draw alone; here each thread makes the four elements of a block.
// Bits, uniforms and integers are the CPU's. Normals may differ in the last bits, where nvcc fuses products and sums:
// to 4 ulp for float64, and to 1 ulp for float32, which is rounded from that. An optimizer's rules come out of its
// table.

typedef struct egi_gpu_draw {
    egi_random r; double a, b, cut; int64_t low, high, n; int dtype, size; void *out; const int64_t *state;
} egi_gpu_draw;
template <int KIND> static __global__ void egi_gpu_random(egi_gpu_draw p) {
    const int64_t each = KIND == EGI_INTEGERS || p.dtype == EG_FLOAT64 ? 2 : 4;
    EGI_GPU_EACH(i, (p.n + each - 1) / each) {
        const int64_t first = i * each, count = p.n - first < each ? p.n - first : each;
        if (KIND == EGI_BERNOULLI && p.state)
            egi_random_bernoulli((unsigned char *)p.out + first, p.state[2] + first, count,
                                 egi_random_of_state(p.state), p.a);
        else if (KIND == EGI_BERNOULLI)
            egi_random_bernoulli((unsigned char *)p.out + first, first, count, p.r, p.a);
        else if (KIND == EGI_DRAW_STATE) {
            int64_t *to = (int64_t *)p.out;
            to[0] = (int64_t)p.r.seed;
            to[1] = (int64_t)p.r.counter;
            to[2] = p.high;
        } else if (KIND == EGI_INTEGERS) {
            int64_t v[2];
            egi_random_int64(v, first, count, p.r, p.low, p.high);
            for (int64_t k = 0; k < count; k++)
                egi_gpu_convert(EG_INT64, &v[k], p.dtype, (char *)p.out + (first + k) * p.size);
        } else if (KIND == EGI_UNIFORM) {
            if (p.dtype == EG_FLOAT32) egi_random_uniform_f32((float *)p.out + first, first, count, p.r, p.a, p.b);
            else egi_random_uniform_f64((double *)p.out + first, first, count, p.r, p.a, p.b);
        } else if (p.dtype == EG_FLOAT32)
            egi_random_normal_f32((float *)p.out + first, first, count, p.r, p.a, p.b, p.cut);
        else egi_random_normal_f64((double *)p.out + first, first, count, p.r, p.a, p.b, p.cut);
    }
}
static bool egi_gpu_run_random(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const egi_random_parameters *r = (const egi_random_parameters *)args->parameters;
    const eg_tensor *out = args->out[0];
    egi_gpu_draw p;
    memset(&p, 0, sizeof p);
    p.r.seed = r->seed;
    p.r.counter = r->counter;
    p.a = r->a;
    p.b = r->b;
    p.cut = r->kind == EGI_TRUNCATED_NORMAL ? 2 : HUGE_VAL;
    p.low = r->low;
    p.high = r->high;
    p.n = out->size;
    p.dtype = out->dtype;
    p.size = (int)eg_dtype_size((eg_dtype)out->dtype);
    p.out = out->data;
    p.state = args->in[0] ? (const int64_t *)(const void *)args->in[0]->data : NULL;
    if (r->kind == EGI_PERMUTATION) {            // each place depends on those before it: the host does it
        int64_t *host = (int64_t *)malloc((size_t)p.n * sizeof *host);
        if (!host) return egi_raise(EG_ERROR_MEMORY, "random_permutation", "out of memory") != NULL;
        egi_random_permutation(host, p.n, p.r);
        bool ok = egi_gpu_write(b, out->data, host, p.n * 8);
        free(host);
        return ok;
    }
    int64_t blocks = egi_gpu_blocks(egi_gpu_ceil(p.n, 2));
    if (r->kind == EGI_BERNOULLI) EGI_LAUNCH(egi_gpu_random<EGI_BERNOULLI>, blocks, EGI_GPU_THREADS, g->compute, p);
    else if (r->kind == EGI_DRAW_STATE) EGI_LAUNCH(egi_gpu_random<EGI_DRAW_STATE>, 1, EGI_GPU_THREADS, g->compute, p);
    else if (r->kind == EGI_INTEGERS) EGI_LAUNCH(egi_gpu_random<EGI_INTEGERS>, blocks, EGI_GPU_THREADS, g->compute, p);
    else if (r->kind == EGI_UNIFORM) EGI_LAUNCH(egi_gpu_random<EGI_UNIFORM>, blocks, EGI_GPU_THREADS, g->compute, p);
    else EGI_LAUNCH(egi_gpu_random<EGI_NORMAL>, blocks, EGI_GPU_THREADS, g->compute, p);
    return egi_gpu_launched(g, args);
}

// All variables of an optimizer are updated together: a launch has a table of up to EGI_GPU_ROWS of them, each cut into
// chunks, a block a chunk. The rate and the step are read by the kernel where they live on its device, and sent along
// where they do not.
// Thread 0 of each block makes the rule's scalars of them.
enum { EGI_GPU_ROWS = 40 };
// first: its first block
typedef struct egi_gpu_update_row { int64_t n, first; const void *in[5]; void *out[4]; } egi_gpu_update_row;
typedef struct egi_gpu_update {
    eg_optimizer_options options;
    double rate;
    int64_t step, chunk;
    const double *rate_at, *scale;               // scale: what clipping leaves of the gradients, or NULL
    const int64_t *step_at;
    double *parts;                               // sums of squares, a block each
    int rows;
    egi_gpu_update_row row[EGI_GPU_ROWS];
} egi_gpu_update;
static_assert(sizeof(egi_gpu_update) <= 4096, "more than a kernel's parameters hold");
// Which row is this block's, and which of its elements.
static __device__ __forceinline__ int egi_gpu_update_chunk(const egi_gpu_update &p, int64_t *begin, int64_t *end) {
    int r = 0;
    while (r + 1 < p.rows && blockIdx.x >= p.row[r + 1].first) r++;
    *begin = (blockIdx.x - p.row[r].first) * p.chunk;
    *end = *begin + p.chunk < p.row[r].n ? *begin + p.chunk : p.row[r].n;
    return r;
}
#define EGI_GPU_RULE(name, slots, scalars, body) \
    static __global__ void EGI_PASTE(EGI_PASTE(EGI_V, _gpu_update_), name)(egi_gpu_update p) { \
        EGI_SHARED(EGI_T, k, 8); \
        if (threadIdx.x == 0) { \
            double s[8] = { 0, 0, 0, 0, 0, 0, 0, 0 }, rate = p.rate_at ? *p.rate_at : p.rate; \
            egi_scalars_##name(&p.options, rate, (double)(p.step_at ? *p.step_at : p.step), s); \
            s[6] = p.scale ? *p.scale : 1; \
            s[7] = rate * p.options.weight_decay; \
            for (int i = 0; i < 8; i++) k[i] = (EGI_T)s[i]; \
        } \
        EGI_BARRIER(); \
        const EGI_T k0 = k[0], k1 = k[1], k2 = k[2], k3 = k[3], k4 = k[4], k5 = k[5], scale = k[6], decay = k[7]; \
        (void)k0; (void)k1; (void)k2; (void)k3; (void)k4; (void)k5; \
        int64_t begin, end; \
        const egi_gpu_update_row &row = p.row[egi_gpu_update_chunk(p, &begin, &end)]; \
        for (int64_t i = begin + threadIdx.x; i < end; i += EGI_GPU_THREADS) { \
            EGI_T w = ((const EGI_T *)row.in[0])[i], g = EGI_MUL(((const EGI_T *)row.in[1])[i], scale), \
                  s0 = slots > 0 ? ((const EGI_T *)row.in[2])[i] : 0, \
                  s1 = slots > 1 ? ((const EGI_T *)row.in[3])[i] : 0, \
                  s2 = slots > 2 ? ((const EGI_T *)row.in[4])[i] : 0; \
            (void)s0; (void)s1; (void)s2; \
            w = EGI_SUB(w, EGI_MUL(w, decay)); \
            body \
            ((EGI_T *)row.out[0])[i] = w; \
            if (slots > 0) ((EGI_T *)row.out[1])[i] = s0; \
            if (slots > 1) ((EGI_T *)row.out[2])[i] = s1; \
            if (slots > 2) ((EGI_T *)row.out[3])[i] = s2; \
        } \
    }
#define EGI_V egi_f32
#define EGI_T float
EGI_UPDATE_TABLE(EGI_GPU_RULE)
#undef EGI_V
#undef EGI_T
#define EGI_V egi_f64
#define EGI_T double
EGI_UPDATE_TABLE(EGI_GPU_RULE)
#undef EGI_V
#undef EGI_T
// The global norm: each block's sum of squares, then all of them in their order.
static __device__ double egi_gpu_block_sum(double *s, double own) {
    const int t = (int)threadIdx.x;
    s[t] = own;
    for (int h = EGI_GPU_THREADS / 2; h > 0; h /= 2) {
        EGI_BARRIER();
        if (t < h) s[t] += s[t + h];
    }
    return s[0];                                 // thread 0's to read
}
template <class T> static __global__ void egi_gpu_update_squares(egi_gpu_update p) {
    EGI_SHARED(double, s, EGI_GPU_THREADS);
    int64_t begin, end;
    const T *g = (const T *)p.row[egi_gpu_update_chunk(p, &begin, &end)].in[1];
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += EGI_GPU_THREADS) sum += (double)g[i] * (double)g[i];
    sum = egi_gpu_block_sum(s, sum);
    if (threadIdx.x == 0) p.parts[blockIdx.x] = sum;
}
static __global__ void egi_gpu_update_scale(const double *parts, int64_t n, double most, double *scale) {
    EGI_SHARED(double, s, EGI_GPU_THREADS);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += EGI_GPU_THREADS) sum += parts[i];
    sum = egi_gpu_block_sum(s, sum);
    if (threadIdx.x == 0) *scale = sqrt(sum) <= most ? 1 : most / sqrt(sum);           // NaN stays NaN
}
typedef void egi_gpu_update_kernel(egi_gpu_update p);
#define EGI_GPU_RULE_ROW(name, slots, scalars, body) \
    { slots, { egi_f32_gpu_update_##name, egi_f64_gpu_update_##name } },
static const struct {
    int slots; egi_gpu_update_kernel *kernel[2];
} egi_gpu_rules[] = { EGI_UPDATE_TABLE(EGI_GPU_RULE_ROW) };
// Runs a kernel over all variables of float32, then another over all of float64; p->parts moves on.
static void egi_gpu_update_tables(egi_gpu *g, const egi_args *args, int64_t n, int slots, egi_gpu_update *p,
                                  egi_gpu_update_kernel *const *kernel) {
    for (int wide = 0; wide < 2; wide++) {
        int64_t blocks = 0;
        p->rows = 0;
        for (int64_t i = 0; i < n; i++) {
            const egi_args *a = &args[i];
            if (a->in[0]->dtype == (wide ? EG_FLOAT64 : EG_FLOAT32) && a->in[0]->size) {
                egi_gpu_update_row *r = &p->row[p->rows++];
                r->n = a->in[0]->size;
                r->first = blocks;
                r->in[0] = a->in[0]->data;
                r->in[1] = a->in[1]->data;
                for (int k = 0; k < slots; k++) r->in[2 + k] = a->in[4 + k]->data;
                for (int k = 0; k <= slots; k++) r->out[k] = a->out[k]->data;
                blocks += egi_gpu_ceil(r->n, p->chunk);
            }
            if (!p->rows || (p->rows < EGI_GPU_ROWS && i < n - 1)) continue;
            EGI_LAUNCH_WITH_BARRIERS(kernel[wide], blocks, EGI_GPU_THREADS, g->compute, *p);
            if (p->parts) p->parts += blocks;
            p->rows = 0;
            blocks = 0;
        }
    }
}
static bool egi_gpu_updates(eg_backend *b, const egi_args *args, int64_t n, double clipnorm) {
    static egi_gpu_update_kernel *const squares[2] = { egi_gpu_update_squares<float>, egi_gpu_update_squares<double> };
    egi_gpu *g = egi_gpu_enter(b);
    const egi_update_parameters *u = (const egi_update_parameters *)args->parameters;
    const eg_tensor *rate = args->in[2], *step = args->in[3];
    int slots = egi_gpu_rules[u->rule].slots;
    int64_t all = 0, blocks = 0;
    egi_gpu_update p;
    memset(&p, 0, sizeof p);
    p.options = u->options;
    if (rate->buffer->backend == b) p.rate_at = (const double *)(const void *)rate->data;
    else if (!egi_scalar_read(rate, &p.rate, 8)) return false;
    if (step->buffer->backend == b) p.step_at = (const int64_t *)(const void *)step->data;
    else if (!egi_scalar_read(step, &p.step, 8)) return false;
    egi_gpu_enter(b);                            // reading may have gone to another device
    for (int64_t i = 0; i < n; i++) all += args[i].in[0]->size;
    // the scalars are made once a block
    p.chunk = egi_gpu_max(EGI_GPU_THREADS * 4, egi_gpu_ceil(all, g->multiprocessors * 16));
    double *parts = NULL;
    if (clipnorm > 0) {
        for (int64_t i = 0; i < n; i++) blocks += egi_gpu_ceil(args[i].in[0]->size, p.chunk);
        if (!(parts = (double *)egi_gpu_workspace(g, "apply_gradients", (blocks + 1) * 8))) return false;
        p.parts = parts + 1;
        egi_gpu_update_tables(g, args, n, 0, &p, squares);
        EGI_LAUNCH_WITH_BARRIERS(egi_gpu_update_scale, 1, EGI_GPU_THREADS, g->compute, (const double *)parts + 1,
                                 blocks, clipnorm, parts);
        p.parts = NULL;
        p.scale = parts;
    }
    egi_gpu_update_tables(g, args, n, slots, &p, egi_gpu_rules[u->rule].kernel);
    if (parts) egi_gpu_deallocate(b, parts, (blocks + 1) * 8);
    return egi_gpu_launched_for(g, "apply_gradients");
}
static bool egi_gpu_run_update(eg_backend *b, const egi_args *args) { return egi_gpu_updates(b, args, 1, 0); }

template <class T> static __global__ void egi_gpu_count_nonfinite(int64_t n, const T *x, unsigned long long *count) {
    unsigned long long mine = 0;
    EGI_GPU_EACH(i, n) mine += !(x[i] - x[i] == 0);
    if (mine) atomicAdd(count, mine);
}
static bool egi_gpu_run_nonfinite(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    const eg_tensor *x = args->in[0];
    unsigned long long *count = (unsigned long long *)egi_gpu_workspace(g, "trap_nonfinite", 8);
    uint64_t zero = 0;
    if (!count) return false;
    bool ok = egi_gpu_write(b, count, &zero, 8);
    if (ok && x->dtype == EG_FLOAT32)
        EGI_LAUNCH(egi_gpu_count_nonfinite<float>, egi_gpu_blocks(x->size), EGI_GPU_THREADS, g->compute, x->size,
                   (const float *)(const void *)x->data, count);
    if (ok && x->dtype == EG_FLOAT64)
        EGI_LAUNCH(egi_gpu_count_nonfinite<double>, egi_gpu_blocks(x->size), EGI_GPU_THREADS, g->compute, x->size,
                   (const double *)(const void *)x->data, count);
    ok = ok && egi_gpu_launched(g, args) && egi_gpu_read(b, (void *)(uintptr_t)args->parameters, count, 8);
    egi_gpu_deallocate(b, count, 8);
    return ok;
}

// The trap that nobody waits for: one launch counts what is not finite in all results and inputs, another notes the op
// if there is some in the results alone.
typedef struct egi_gpu_trap_list {
    int n; unsigned long long *counts; struct { const void *x; int64_t n; bool wide, given; } list[EGI_GPU_TRAP_LIST];
} egi_gpu_trap_list;
static __global__ void egi_gpu_trap_count(egi_gpu_trap_list p) {
    for (int k = 0; k < p.n; k++) {
        unsigned long long mine = 0;
        EGI_GPU_EACH(i, p.list[k].n) {
            const double v = p.list[k].wide ? ((const double *)p.list[k].x)[i]
                             : (double)((const float *)p.list[k].x)[i];
            mine += !(v - v == 0);
        }
        if (mine) atomicAdd(&p.counts[p.list[k].given], mine);
    }
}
static __global__ void egi_gpu_trap_note(const unsigned long long *counts, unsigned serial, egi_gpu_fault *fault) {
    if (counts[0] && !counts[1]) egi_gpu_bad_index(fault, serial, (int64_t)counts[0], 0, 0);
}
// Takes a number for this thread, and the fault of that number on g.
static bool egi_gpu_trap_begin(egi_gpu *g) {
    egi_gpu_trap_thread_of *mine = &egi_gpu_trap_thread;
    if (mine->number < 0) {
        pthread_mutex_lock(&egi_gpu_trap_lock);
        for (int i = 0; i < EGI_GPU_TRAP_THREADS && mine->number < 0; i++) if (!egi_gpu_trap_taken[i]) mine->number = i;
        if (mine->number >= 0) egi_gpu_trap_taken[mine->number] = true;
        pthread_mutex_unlock(&egi_gpu_trap_lock);
    }
    if (mine->number < 0)
        return egi_raise(EG_ERROR_STATE, "trap_nonfinite", "%d threads have it on for GPUs already",
                         (int)EGI_GPU_TRAP_THREADS) != NULL;
    const unsigned device = 1u << (g - egi_gpus);
    if (mine->cleared & device) return true;
    if (!egi_gpu_synchronize(&g->backend)) return false;                      // work of the thread that had it before
    memset(&g->fault[1 + mine->number], 0, sizeof *g->fault);
    mine->cleared |= device;
    return true;
}
// A number for the op and what it will say. Before the texts run out the thread looks whether one is wanted.
static bool egi_gpu_trap_set(egi_gpu *g, const char *name, const char *what, unsigned *serial) {
    if (!egi_gpu_trap_begin(g)) return false;
    if (g->next_trap - g->looked_trap >= EGI_GPU_TRAPS) {
        g->looked_trap = g->next_trap;
        if (!egi_gpu_synchronize(&g->backend)) return false;
    }
    pthread_mutex_lock(&g->lock);
    if (!g->traps) g->traps = (egi_gpu_trap *)calloc(EGI_GPU_TRAPS, sizeof *g->traps);
    egi_gpu_trap *t = g->traps ? &g->traps[(*serial = ++g->next_trap) % EGI_GPU_TRAPS] : NULL;
    if (t) {
        t->serial = *serial;
        snprintf(t->name, sizeof t->name, "%s", name);
        snprintf(t->what, sizeof t->what, "%s", what);
    }
    pthread_mutex_unlock(&g->lock);
    return t || egi_raise(EG_ERROR_MEMORY, "trap_nonfinite", "out of memory") != NULL;
}
static bool egi_gpu_set_trap(eg_backend *b, const eg_tensor *const *in, int n, const eg_tensor *const *out, int n_out,
                             const char *name, const char *what) {
    egi_gpu *g = egi_gpu_enter(b);
    egi_gpu_trap_list p;
    unsigned serial = 0;
    if (!egi_gpu_trap_set(g, name, what, &serial)) return false;
    memset(&p, 0, sizeof p);
    if (!(p.counts = (unsigned long long *)egi_gpu_workspace(g, name, 16))) return false;
    cudaError_t e;
    EGI_GPU_TWICE(g, e, cudaMemsetAsync(p.counts, 0, 16, g->compute));
    bool ok = e == cudaSuccess;
    for (int i = 0; i < n + n_out && ok; i++) {
        const eg_tensor *x = i < n_out ? out[i] : in[i - n_out];
        p.list[p.n].x = x->data;
        p.list[p.n].n = x->size;
        p.list[p.n].wide = x->dtype == EG_FLOAT64;
        p.list[p.n++].given = i >= n_out;
        if (p.n < EGI_GPU_TRAP_LIST && i < n + n_out - 1) continue;
        EGI_LAUNCH(egi_gpu_trap_count, egi_gpu_blocks(out[0]->size), EGI_GPU_THREADS, g->compute, p);
        p.n = 0;
    }
    if (ok)
        EGI_LAUNCH(egi_gpu_trap_note, 1, 1, g->compute, (const unsigned long long *)p.counts, serial,
                   &g->fault[1 + egi_gpu_trap_thread.number]);
    egi_gpu_deallocate(b, p.counts, 16);
    return egi_gpu_launched_for(g, name);
}

//# 9  LAYERS AS ONE ----------------------------------------------------------
// Idea: what eager.h composes of many ops, each of which goes through memory, is one kernel here. Layer norm: a warp
// has a row, and adds up by shuffles. Attention: a block has some queries, goes through the keys in tiles and keeps of
// the weights only the largest and the sum so far (Milakov & Gimelshein 2018); the gradient makes them again of the
// sum's logarithm (Dao 2023).
// Keys' gradients come from a kernel that goes through the queries, in their order: the same bits each time. A
// recurrent layer is two launches a step, a product and all that is left of the step; cuBLAS makes the one.

static __device__ __forceinline__ float egi_gpu_warp_sum(float v, int width) {
    for (int h = width / 2; h > 0; h /= 2) v += EGI_SHUFFLE(v, h);
    return v;
}
static __device__ __forceinline__ float egi_gpu_warp_max(float v, int width) {
    for (int h = width / 2; h > 0; h /= 2) {
        const float other = EGI_SHUFFLE(v, h);
        v = other > v ? other : v;
    }
    return v;
}
enum { EGI_GPU_WARPS = EGI_GPU_THREADS / 32 };
typedef struct egi_gpu_norm {
    int64_t rows, n, part; float epsilon; const float *x, *gamma, *beta, *g; float *out, *stats, *dgamma, *dbeta;
} egi_gpu_norm;
// Mean and 1 / sqrt(variance + epsilon) of a row, known to the whole warp.
static __device__ __forceinline__ void egi_gpu_row_stats(const float *x, int64_t n, float epsilon, float *mean,
                                                         float *r) {
    const int lane = (int)threadIdx.x % 32;
    float sum = 0, squares = 0;
    for (int64_t i = lane; i < n; i += 32) sum += x[i];
    *mean = egi_gpu_warp_sum(sum, 32) / (float)n;
    for (int64_t i = lane; i < n; i += 32) squares += (x[i] - *mean) * (x[i] - *mean);
    *r = 1 / sqrtf(egi_gpu_warp_sum(squares, 32) / (float)n + epsilon);
}
static __global__ void egi_gpu_layer_norm(egi_gpu_norm p) {
    const int64_t row = (int64_t)blockIdx.x * EGI_GPU_WARPS + threadIdx.x / 32;
    if (row >= p.rows) return;
    const float *x = p.x + row * p.n;
    float mean, r;
    egi_gpu_row_stats(x, p.n, p.epsilon, &mean, &r);
    for (int64_t i = threadIdx.x % 32; i < p.n; i += 32)
        p.out[row * p.n + i] = (x[i] - mean) * (r * p.gamma[i]) + p.beta[i];
}
static __global__ void egi_gpu_layer_norm_dx(egi_gpu_norm p) {
    const int64_t row = (int64_t)blockIdx.x * EGI_GPU_WARPS + threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;
    if (row >= p.rows) return;
    const float *x = p.x + row * p.n, *g = p.g + row * p.n;
    float mean, r, even = 0, along = 0;
    egi_gpu_row_stats(x, p.n, p.epsilon, &mean, &r);
    if (p.stats && lane == 0) { p.stats[2 * row] = mean; p.stats[2 * row + 1] = r; }
    if (!p.out) return;
    for (int64_t i = lane; i < p.n; i += 32) {
        even += g[i] * p.gamma[i];
        along += g[i] * p.gamma[i] * ((x[i] - mean) * r);
    }
    even = egi_gpu_warp_sum(even, 32) / (float)p.n;
    along = egi_gpu_warp_sum(along, 32) / (float)p.n;
    for (int64_t i = lane; i < p.n; i += 32)
        p.out[row * p.n + i] = r * (g[i] * p.gamma[i] - even - (x[i] - mean) * r * along);
}
// The same for rows of up to 128 FOURS elements: a lane has every 32nd four of neighbours in registers, and reads them
// once.
static __device__ __forceinline__ int64_t egi_gpu_four_at(int k) { return 4 * ((int64_t)threadIdx.x % 32 + 32 * k); }
template <int FOURS>
static __device__ __forceinline__ void egi_gpu_row_hold(const float *x, int64_t n, float v[FOURS][4]) {
    for (int k = 0; k < FOURS; k++) {
        const float4 four = egi_gpu_four_at(k) < n ? *(const float4 *)(x + egi_gpu_four_at(k))
                            : make_float4(0, 0, 0, 0);
        v[k][0] = four.x;
        v[k][1] = four.y;
        v[k][2] = four.z;
        v[k][3] = four.w;
    }
}
template <int FOURS> static __device__ __forceinline__ void egi_gpu_held_stats(float v[FOURS][4], int64_t n,
                                                                               float epsilon, float *mean, float *r) {
    float sum = 0, squares = 0;
    for (int k = 0; k < FOURS; k++)
        for (int c = 0; c < 4; c++) sum += v[k][c];
    *mean = egi_gpu_warp_sum(sum, 32) / (float)n;
    for (int k = 0; k < FOURS; k++)
        for (int c = 0; c < 4; c++) squares += egi_gpu_four_at(k) < n ? (v[k][c] - *mean) * (v[k][c] - *mean) : 0;
    *r = 1 / sqrtf(egi_gpu_warp_sum(squares, 32) / (float)n + epsilon);
}
template <int FOURS> static __global__ void egi_gpu_layer_norm_held(egi_gpu_norm p) {
    const int64_t row = (int64_t)blockIdx.x * EGI_GPU_WARPS + threadIdx.x / 32;
    if (row >= p.rows) return;
    float v[FOURS][4], mean, r;
    egi_gpu_row_hold<FOURS>(p.x + row * p.n, p.n, v);
    egi_gpu_held_stats<FOURS>(v, p.n, p.epsilon, &mean, &r);
    for (int k = 0; k < FOURS; k++) {
        const int64_t i = egi_gpu_four_at(k);
        if (i >= p.n) continue;
        const float4 gamma = *(const float4 *)(p.gamma + i), beta = *(const float4 *)(p.beta + i);
        *(float4 *)(p.out + row * p.n + i) = make_float4((v[k][0] - mean) * (r * gamma.x) + beta.x,
                                                         (v[k][1] - mean) * (r * gamma.y) + beta.y,
                                                         (v[k][2] - mean) * (r * gamma.z) + beta.z,
                                                         (v[k][3] - mean) * (r * gamma.w) + beta.w);
    }
}
template <int FOURS> static __global__ void egi_gpu_layer_norm_dx_held(egi_gpu_norm p) {
    const int64_t row = (int64_t)blockIdx.x * EGI_GPU_WARPS + threadIdx.x / 32;
    if (row >= p.rows) return;
    float v[FOURS][4], d[FOURS][4], gamma[FOURS][4], mean, r, even = 0, along = 0;
    egi_gpu_row_hold<FOURS>(p.x + row * p.n, p.n, v);
    if (p.out) {
        egi_gpu_row_hold<FOURS>(p.g + row * p.n, p.n, d);
        egi_gpu_row_hold<FOURS>(p.gamma, p.n, gamma);
    }
    egi_gpu_held_stats<FOURS>(v, p.n, p.epsilon, &mean, &r);
    if (p.stats && threadIdx.x % 32 == 0) { p.stats[2 * row] = mean; p.stats[2 * row + 1] = r; }
    if (!p.out) return;
    for (int k = 0; k < FOURS; k++)
        for (int c = 0; c < 4; c++) {            // beyond the end d is 0
            v[k][c] = (v[k][c] - mean) * r;
            d[k][c] *= gamma[k][c];
            even += d[k][c];
            along += d[k][c] * v[k][c];
        }
    even = egi_gpu_warp_sum(even, 32) / (float)p.n;
    along = egi_gpu_warp_sum(along, 32) / (float)p.n;
    for (int k = 0; k < FOURS; k++) {
        const int64_t i = egi_gpu_four_at(k);
        if (i < p.n)
            *(float4 *)(p.out + row * p.n + i) = make_float4(r * (d[k][0] - even - v[k][0] * along),
                                                             r * (d[k][1] - even - v[k][1] * along),
                                                             r * (d[k][2] - even - v[k][2] * along),
                                                             r * (d[k][3] - even - v[k][3] * along));
    }
}
typedef void egi_gpu_norm_kernel(egi_gpu_norm p);
static egi_gpu_norm_kernel *const egi_gpu_norm_kernels[2][5] = {
    { egi_gpu_layer_norm, egi_gpu_layer_norm_held<1>, egi_gpu_layer_norm_held<2>, egi_gpu_layer_norm_held<4>,
      egi_gpu_layer_norm_held<8> },
    { egi_gpu_layer_norm_dx, egi_gpu_layer_norm_dx_held<1>, egi_gpu_layer_norm_dx_held<2>,
      egi_gpu_layer_norm_dx_held<4>, egi_gpu_layer_norm_dx_held<8> }
};
static egi_gpu_norm_kernel *egi_gpu_norm_kernel_for(const egi_gpu_norm *p, bool gradient) {
    uintptr_t at = (uintptr_t)p->x | (uintptr_t)p->gamma | (uintptr_t)p->beta | (uintptr_t)p->g | (uintptr_t)p->out;
    int held = p->n % 4 || at % 16 || p->n > 1024 ? 0 : p->n <= 128 ? 1 : p->n <= 256 ? 2 : p->n <= 512 ? 3 : 4;
    return egi_gpu_norm_kernels[gradient][held];
}
// Sums over some rows: 32 columns a block, a warp every eighth row.
static __global__ void egi_gpu_layer_norm_columns(egi_gpu_norm p) {
    EGI_SHARED(float, sg, EGI_GPU_THREADS);
    EGI_SHARED(float, sb, EGI_GPU_THREADS);
    const int t = (int)threadIdx.x;
    const int64_t across = (p.n + 31) / 32, column = blockIdx.x % across * 32 + t % 32, part = blockIdx.x / across;
    const int64_t end = (part + 1) * p.part < p.rows ? (part + 1) * p.part : p.rows;
    float gamma = 0, beta = 0;
    for (int64_t row = part * p.part + t / 32; row < end && column < p.n; row += EGI_GPU_WARPS) {
        const float g = p.g[row * p.n + column];
        gamma += g * ((p.x[row * p.n + column] - p.stats[2 * row]) * p.stats[2 * row + 1]);
        beta += g;
    }
    sg[t] = gamma;
    sb[t] = beta;
    EGI_BARRIER();
    if (t >= 32 || column >= p.n) return;
    for (int w = 1; w < EGI_GPU_WARPS; w++) { gamma += sg[t + 32 * w]; beta += sb[t + 32 * w]; }
    if (p.dgamma) p.dgamma[part * p.n + column] = gamma;
    if (p.dbeta) p.dbeta[part * p.n + column] = beta;
}
static bool egi_gpu_norm_make(egi_gpu *g, const egi_args *args, egi_gpu_norm *p, int64_t *blocks) {
    const egi_norm_parameters *q = (const egi_norm_parameters *)args->parameters;
    memset(p, 0, sizeof *p);
    p->rows = q->rows;
    p->n = q->n;
    p->epsilon = (float)q->epsilon;
    p->x = (const float *)(const void *)args->in[0]->data;
    p->gamma = (const float *)(const void *)args->in[1]->data;
    p->out = args->out[0] ? (float *)(void *)args->out[0]->data : NULL;
    *blocks = egi_gpu_ceil(q->rows, EGI_GPU_WARPS);
    return *blocks <= INT32_MAX ||
           egi_raise(EG_ERROR_SHAPE, args->op->name, "too many rows for %s", g->name) != NULL;
}
static bool egi_gpu_run_layer_norm(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    egi_gpu_norm p;
    int64_t blocks;
    if (!egi_gpu_norm_make(g, args, &p, &blocks)) return false;
    p.beta = (const float *)(const void *)args->in[2]->data;
    EGI_LAUNCH_WITH_BARRIERS(egi_gpu_norm_kernel_for(&p, false), blocks, EGI_GPU_THREADS, g->compute, p);
    return egi_gpu_launched(g, args);
}
static bool egi_gpu_run_layer_norm_grad(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    egi_gpu_norm p;
    int64_t blocks, bytes = 0;
    float *work = NULL, *dgamma = args->out[1] ? (float *)(void *)args->out[1]->data : NULL,
          *dbeta = args->out[2] ? (float *)(void *)args->out[2]->data : NULL;
    if (!egi_gpu_norm_make(g, args, &p, &blocks)) return false;
    p.g = (const float *)(const void *)args->in[2]->data;
    int64_t across = egi_gpu_ceil(p.n, 32), parts = egi_gpu_max(1, egi_gpu_min(512 / across, p.rows / 64));
    if (dgamma || dbeta) {                       // means and r of the rows, then the sums of the parts
        bytes = (2 * p.rows + (parts > 1 ? 2 * parts * p.n : 0)) * 4;
        if (!(work = (float *)egi_gpu_workspace(g, args->op->name, bytes))) return false;
        p.stats = work;
    }
    EGI_LAUNCH_WITH_BARRIERS(egi_gpu_norm_kernel_for(&p, true), blocks, EGI_GPU_THREADS, g->compute, p);
    if (work) {
        float *sums = work + 2 * p.rows;
        p.part = egi_gpu_ceil(p.rows, parts);
        p.dgamma = parts > 1 ? sums : dgamma;
        p.dbeta = parts > 1 ? sums + parts * p.n : dbeta;
        EGI_LAUNCH_WITH_BARRIERS(egi_gpu_layer_norm_columns, across * parts, EGI_GPU_THREADS, g->compute, p);
        if (parts > 1 && dgamma) egi_gpu_add_parts_launch<float>(g, p.n, parts, sums, dgamma);
        if (parts > 1 && dbeta) egi_gpu_add_parts_launch<float>(g, p.n, parts, sums + parts * p.n, dbeta);
        egi_gpu_deallocate(b, work, bytes);
    }
    return egi_gpu_launched(g, args);
}

// Tiles of shared memory have rows of D + 1: then neither rows nor columns of them meet in a bank. Thread (ty, tx) of
// 16 x 16 has rows ty + 16 r and columns tx + 16 c; the 16 threads of a row are neighbours in a warp. A block has 48
// KiB: heads of more than 64 elements get smaller tiles, and keys and values take turns in one.
enum { EGI_GPU_KEYS = 32 };
typedef struct egi_gpu_heads { const float *data; int64_t batch, head, row; } egi_gpu_heads;            // strides
// strides, 0 where it broadcasts; data NULL: all see all
typedef struct egi_gpu_pairs { const uint8_t *data; int64_t batch, head, row, key; } egi_gpu_pairs;
typedef struct egi_gpu_attend {
    int64_t heads, shared, queries, keys, size, value_size, before, tiles;
    float scale;
    bool causal;
    egi_gpu_heads q, k, v, y, g;
    egi_gpu_pairs mask;
    const int64_t *draw;                        // of dropout: the state of its draw, or NULL
    uint32_t last;                              // the greatest word with which a weight is kept
    float factor;                               // and what it is multiplied by then
    float *out, *log_sums, *delta, *dq, *dk, *dv;
} egi_gpu_attend;
// Rows from first on, up to count, into a tile; what is beyond is 0.
template <int D, int ROWS>
static __device__ __forceinline__ void egi_gpu_load_tile(float *tile, const egi_gpu_heads &x, int64_t batch,
                                                         int64_t head, int64_t first, int64_t count, int64_t size,
                                                         float scale) {
    const float *from = x.data + batch * x.batch + head * x.head + first * x.row;
    for (int i = (int)threadIdx.x; i < ROWS * D; i += EGI_GPU_THREADS) {
        const int r = i / D, c = i % D;
        tile[r * (D + 1) + c] = first + r < count && c < size ? from[r * x.row + c] * scale : 0;
    }
}
static __device__ __forceinline__ bool egi_gpu_attention_sees(const egi_gpu_attend &p, int64_t batch, int64_t head,
                                                              int64_t row, int64_t key) {
    if (row >= p.queries || key >= p.keys || (p.causal && key > p.before + row)) return false;
    return !p.mask.data || p.mask.data[batch * p.mask.batch + head * p.mask.head + row * p.mask.row + key * p.mask.key];
}
// What dropout multiplies a weight by.
static __device__ __forceinline__ float egi_gpu_attention_factor(const egi_gpu_attend &p, int64_t batch, int64_t head,
                                                                 int64_t row, int64_t key) {
    if (!p.draw || row >= p.queries || key >= p.keys) return 1;
    const int64_t at = p.draw[2] + ((batch * p.heads + head) * p.queries + row) * p.keys + key;
    uint32_t w[4];
    egi_random_block(w, egi_random_of_state(p.draw), (uint64_t)(at / EGI_RANDOM_PER_BLOCK_32), 0);
    return (at & 2 ? at & 1 ? w[3] : w[2] : at & 1 ? w[1] : w[0]) <= p.last ? p.factor : 0;
}
// What a block of threads with a tile of so many queries works on, and up to which key it sees any.
struct egi_gpu_query_tile { int64_t first, head, batch, served, end; };
static __device__ __forceinline__ egi_gpu_query_tile egi_gpu_query_tile_of(const egi_gpu_attend &p, int rows) {
    const int64_t first = blockIdx.x % p.tiles * rows, head = blockIdx.x / p.tiles % p.heads,
                  seen = p.before + first + rows;
    return { first, head, (int64_t)(blockIdx.x / p.tiles / p.heads), head / (p.heads / p.shared),
             p.causal && seen < p.keys ? seen : p.keys };
}
// Writes R rows' results, and the logarithms of the sums of their weights.
template <int D, int R>
static __device__ __forceinline__ void egi_gpu_attention_put(const egi_gpu_attend &p, const egi_gpu_query_tile &at,
                                                             const float (&o)[R][D / 16], const float (&top)[R],
                                                             const float (&sum)[R]) {
    const int tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
    for (int r = 0; r < R; r++) {
        const int64_t row = at.first + ty + 16 * r;
        if (row >= p.queries) continue;
        const bool blind = p.mask.data && sum[r] == 0;                   // who may look at nobody sees nothing
        for (int c = 0; c < D / 16; c++)
            if (tx + 16 * c < p.value_size)
                p.out[((at.batch * p.queries + row) * p.heads + at.head) * p.value_size + tx + 16 * c] =
                    blind ? 0 : o[r][c] / sum[r];
        if (tx == 0) p.log_sums[(at.batch * p.heads + at.head) * p.queries + row] = top[r] + logf(sum[r]);
    }
}
// Products of this thread's R queries and two keys.
template <int D, int R>
static __device__ __forceinline__ void egi_gpu_attention_products(const float *sq, const float *sk, float (&s)[R][2]) {
    const int W = D + 1, tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
    for (int r = 0; r < R; r++) s[r][0] = s[r][1] = 0;
    for (int c = 0; c < D; c++) {
        const float k_0 = sk[tx * W + c], k_1 = sk[(tx + 16) * W + c];
        for (int r = 0; r < R; r++) {
            const float q = sq[(ty + 16 * r) * W + c];
            s[r][0] += q * k_0;
            s[r][1] += q * k_1;
        }
    }
}
template <int D, int QUERIES> static __global__ void egi_gpu_attention(egi_gpu_attend p) {
    enum { R = QUERIES / 16, APART = D <= 64 };
    EGI_SHARED(float, sq, QUERIES * (D + 1));
    EGI_SHARED(float, sk, EGI_GPU_KEYS * (D + 1));
    EGI_SHARED(float, apart, APART ? EGI_GPU_KEYS * (D + 1) : 1);
    EGI_SHARED(float, sp, QUERIES * (EGI_GPU_KEYS + 1));
    float *const sv = APART ? apart : sk;
    const int W = D + 1, tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
    const egi_gpu_query_tile at = egi_gpu_query_tile_of(p, QUERIES);
    const int64_t first = at.first, head = at.head, batch = at.batch, served = at.served, end = at.end;
    float o[R][D / 16], top[R], sum[R];
    for (int r = 0; r < R; r++) {
        top[r] = -INFINITY;
        sum[r] = 0;
        for (int c = 0; c < D / 16; c++) o[r][c] = 0;
    }
    egi_gpu_load_tile<D, QUERIES>(sq, p.q, batch, head, first, p.queries, p.size, p.scale);
    for (int64_t k0 = 0; k0 < end; k0 += EGI_GPU_KEYS) {
        EGI_BARRIER();                           // the last tile has been read
        egi_gpu_load_tile<D, EGI_GPU_KEYS>(sk, p.k, batch, served, k0, p.keys, p.size, 1);
        if (APART) egi_gpu_load_tile<D, EGI_GPU_KEYS>(sv, p.v, batch, served, k0, p.keys, p.value_size, 1);
        EGI_BARRIER();
        float s[R][2];
        egi_gpu_attention_products<D, R>(sq, sk, s);
        for (int r = 0; r < R; r++) {
            for (int j = 0; j < 2; j++)
                if (!egi_gpu_attention_sees(p, batch, head, first + ty + 16 * r, k0 + tx + 16 * j)) s[r][j] = -INFINITY;
            const float here = egi_gpu_warp_max(s[r][0] > s[r][1] ? s[r][0] : s[r][1], 16),
                        next = here > top[r] ? here : top[r];
            const float kept = top[r] == -INFINITY ? 0 : egi_gpu_exp(top[r] - next);
            float weight[2];
            for (int j = 0; j < 2; j++) {
                weight[j] = s[r][j] == -INFINITY ? 0 : egi_gpu_exp(s[r][j] - next);
                sp[(ty + 16 * r) * (EGI_GPU_KEYS + 1) + tx + 16 * j] =
                    weight[j] * egi_gpu_attention_factor(p, batch, head, first + ty + 16 * r, k0 + tx + 16 * j);
            }
            sum[r] = sum[r] * kept + egi_gpu_warp_sum(weight[0] + weight[1], 16);
            top[r] = next;
            for (int c = 0; c < D / 16; c++) o[r][c] *= kept;
        }
        EGI_BARRIER();
        if (!APART) {
            egi_gpu_load_tile<D, EGI_GPU_KEYS>(sv, p.v, batch, served, k0, p.keys, p.value_size, 1);
            EGI_BARRIER();
        }
        for (int k = 0; k < EGI_GPU_KEYS; k++) {
            float v[D / 16];
            for (int c = 0; c < D / 16; c++) v[c] = sv[k * W + tx + 16 * c];
            for (int r = 0; r < R; r++) {
                const float weight = sp[(ty + 16 * r) * (EGI_GPU_KEYS + 1) + k];
                for (int c = 0; c < D / 16; c++) o[r][c] += weight * v[c];
            }
        }
    }
    egi_gpu_attention_put<D, R>(p, at, o, top, sum);
}
// Weight, after dropout, and gradient of the score of R rows and columns each, of a tile of queries from q0 on and one
// of keys from k0 on.
template <int D, int R>
static __device__ __forceinline__ void egi_gpu_scores(const egi_gpu_attend &p, const float *sq, const float *sg,
                                                      const float *sk, const float *sv, int64_t batch, int64_t head,
                                                      int64_t q0, int64_t k0, const float *log_sum, const float *delta,
                                                      float weight[R][R], float ds[R][R]) {
    const int W = D + 1, tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
    float s[R][R], d[R][R];
    for (int r = 0; r < R; r++)
        for (int j = 0; j < R; j++) s[r][j] = d[r][j] = 0;
    for (int c = 0; c < D; c++)
        for (int r = 0; r < R; r++)
            for (int j = 0; j < R; j++) {
                s[r][j] += sq[(ty + 16 * r) * W + c] * sk[(tx + 16 * j) * W + c];
                d[r][j] += sg[(ty + 16 * r) * W + c] * sv[(tx + 16 * j) * W + c];
            }
    for (int r = 0; r < R; r++)
        for (int j = 0; j < R; j++) {
            const int64_t row = q0 + ty + 16 * r, key = k0 + tx + 16 * j;
            const bool sees = egi_gpu_attention_sees(p, batch, head, row, key);
            const float factor = sees ? egi_gpu_attention_factor(p, batch, head, row, key) : 0,
                        own = sees ? egi_gpu_exp(s[r][j] - log_sum[r]) : 0;
            ds[r][j] = sees ? own * (d[r][j] * factor - delta[r]) : 0;
            weight[r][j] = own * factor;
        }
}
template <int D, int ROWS> static __global__ void egi_gpu_attention_dq(egi_gpu_attend p) {
    enum { R = ROWS / 16 };
    EGI_SHARED(float, sq, ROWS * (D + 1));
    EGI_SHARED(float, sg, ROWS * (D + 1));
    EGI_SHARED(float, sk, ROWS * (D + 1));
    EGI_SHARED(float, sv, ROWS * (D + 1));
    EGI_SHARED(float, ss, ROWS * (ROWS + 1));
    const int W = D + 1, tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
    const egi_gpu_query_tile at = egi_gpu_query_tile_of(p, ROWS);
    const int64_t first = at.first, head = at.head, batch = at.batch, served = at.served, end = at.end;
    float dq[R][D / 16], log_sum[R], delta[R];
    egi_gpu_load_tile<D, ROWS>(sq, p.q, batch, head, first, p.queries, p.size, p.scale);
    egi_gpu_load_tile<D, ROWS>(sg, p.g, batch, head, first, p.queries, p.value_size, 1);
    EGI_BARRIER();
    for (int r = 0; r < R; r++) {  // delta: the sum over a row of g y, which is that of the weights and their gradients
        const int64_t row = first + ty + 16 * r;
        const bool here = row < p.queries;
        const float *y = p.y.data + batch * p.y.batch + head * p.y.head + row * p.y.row;
        float own = 0;
        for (int c = tx; here && c < p.value_size; c += 16) own += sg[(ty + 16 * r) * W + c] * y[c];
        delta[r] = egi_gpu_warp_sum(own, 16);
        log_sum[r] = here ? p.log_sums[(batch * p.heads + head) * p.queries + row] : 0;
        if (here && tx == 0) p.delta[(batch * p.heads + head) * p.queries + row] = delta[r];
        for (int c = 0; c < D / 16; c++) dq[r][c] = 0;
    }
    for (int64_t k0 = 0; k0 < end; k0 += ROWS) {
        float weight[R][R], ds[R][R];
        EGI_BARRIER();
        egi_gpu_load_tile<D, ROWS>(sk, p.k, batch, served, k0, p.keys, p.size, 1);
        egi_gpu_load_tile<D, ROWS>(sv, p.v, batch, served, k0, p.keys, p.value_size, 1);
        EGI_BARRIER();
        egi_gpu_scores<D, R>(p, sq, sg, sk, sv, batch, head, first, k0, log_sum, delta, weight, ds);
        for (int r = 0; r < R; r++)
            for (int j = 0; j < R; j++) ss[(ty + 16 * r) * (ROWS + 1) + tx + 16 * j] = ds[r][j];
        EGI_BARRIER();
        for (int k = 0; k < ROWS; k++)
            for (int r = 0; r < R; r++)
                for (int c = 0; c < D / 16; c++)
                    dq[r][c] += ss[(ty + 16 * r) * (ROWS + 1) + k] * sk[k * W + tx + 16 * c];
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < D / 16; c++) {
            const int64_t row = first + ty + 16 * r;
            if (row < p.queries && tx + 16 * c < p.size)
                p.dq[((batch * p.queries + row) * p.heads + head) * p.size + tx + 16 * c] = dq[r][c] * p.scale;
        }
}
template <int D, int ROWS> static __global__ void egi_gpu_attention_dkv(egi_gpu_attend p) {
    enum { R = ROWS / 16 };
    EGI_SHARED(float, sq, ROWS * (D + 1));
    EGI_SHARED(float, sg, ROWS * (D + 1));
    EGI_SHARED(float, sk, ROWS * (D + 1));
    EGI_SHARED(float, sv, ROWS * (D + 1));
    EGI_SHARED(float, sp, ROWS * (ROWS + 1));
    EGI_SHARED(float, ss, ROWS * (ROWS + 1));
    const int W = D + 1, tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
    const int64_t first = blockIdx.x % p.tiles * ROWS, served = blockIdx.x / p.tiles % p.shared,
                  batch = blockIdx.x / p.tiles / p.shared, group = p.heads / p.shared;
    // queries before do not see these keys
    const int64_t begin = p.causal && first > p.before ? (first - p.before) / ROWS * ROWS : 0;
    float dk[R][D / 16], dv[R][D / 16];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < D / 16; c++) dk[r][c] = dv[r][c] = 0;
    egi_gpu_load_tile<D, ROWS>(sk, p.k, batch, served, first, p.keys, p.size, 1);
    egi_gpu_load_tile<D, ROWS>(sv, p.v, batch, served, first, p.keys, p.value_size, 1);
    for (int64_t head = served * group; head < (served + 1) * group; head++)
        for (int64_t q0 = begin; q0 < p.queries; q0 += ROWS) {
            float weight[R][R], ds[R][R], log_sum[R], delta[R];
            EGI_BARRIER();
            egi_gpu_load_tile<D, ROWS>(sq, p.q, batch, head, q0, p.queries, p.size, p.scale);
            egi_gpu_load_tile<D, ROWS>(sg, p.g, batch, head, q0, p.queries, p.value_size, 1);
            for (int r = 0; r < R; r++) {
                const int64_t row = q0 + ty + 16 * r, at = (batch * p.heads + head) * p.queries + row;
                log_sum[r] = row < p.queries ? p.log_sums[at] : 0;
                delta[r] = row < p.queries ? p.delta[at] : 0;
            }
            EGI_BARRIER();
            egi_gpu_scores<D, R>(p, sq, sg, sk, sv, batch, head, q0, first, log_sum, delta, weight, ds);
            for (int r = 0; r < R; r++)
                for (int j = 0; j < R; j++) {
                    sp[(ty + 16 * r) * (ROWS + 1) + tx + 16 * j] = weight[r][j];
                    ss[(ty + 16 * r) * (ROWS + 1) + tx + 16 * j] = ds[r][j];
                }
            EGI_BARRIER();
            for (int q = 0; q < ROWS; q++)
                for (int r = 0; r < R; r++)
                    for (int c = 0; c < D / 16; c++) {
                        dk[r][c] += ss[q * (ROWS + 1) + ty + 16 * r] * sq[q * W + tx + 16 * c];  // sq is scaled
                        dv[r][c] += sp[q * (ROWS + 1) + ty + 16 * r] * sg[q * W + tx + 16 * c];
                    }
        }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < D / 16; c++) {
            const int64_t key = first + ty + 16 * r, at = (batch * p.keys + key) * p.shared + served;
            if (key < p.keys && tx + 16 * c < p.size) p.dk[at * p.size + tx + 16 * c] = dk[r][c];
            if (key < p.keys && tx + 16 * c < p.value_size) p.dv[at * p.value_size + tx + 16 * c] = dv[r][c];
        }
}
static egi_gpu_heads egi_gpu_heads_of(const eg_tensor *x, bool rows_first) {         // (B, H, T, K), or (B, T, H, K)
    egi_gpu_heads h = { (const float *)(const void *)x->data, x->strides[0], x->strides[rows_first ? 2 : 1],
                        x->strides[rows_first ? 1 : 2] };
    return h;
}
static bool egi_gpu_attend_make(egi_gpu *g, const egi_args *args, const eg_tensor *mask, const eg_tensor *state,
                                egi_gpu_attend *p) {
    const egi_attention_parameters *a = (const egi_attention_parameters *)args->parameters;
    const eg_tensor *q = args->in[0], *k = args->in[1], *v = args->in[2];
    memset(p, 0, sizeof *p);
    p->heads = q->dims[1];
    p->shared = k->dims[1];
    p->queries = q->dims[2];
    p->keys = k->dims[2];
    p->size = q->dims[3];
    p->value_size = v->dims[3];
    p->before = a->before;
    p->scale = (float)a->scale;
    p->causal = a->causal;
    p->q = egi_gpu_heads_of(q, false);
    p->k = egi_gpu_heads_of(k, false);
    p->v = egi_gpu_heads_of(v, false);
    if (mask)
        p->mask = { (const uint8_t *)mask->data, mask->strides[0], mask->strides[1], mask->strides[2],
                    mask->strides[3] };
    if (state) {
        p->draw = (const int64_t *)(const void *)state->data;
        p->last = egi_random_last_word(a->kept);
        p->factor = (float)(1 / a->kept);
    }
    bool fits = q->dims[0] * p->heads * egi_gpu_ceil(egi_gpu_max(p->queries, p->keys), 16) <= INT32_MAX;
    return fits || egi_raise(EG_ERROR_SHAPE, args->op->name, "too large for %s", g->name) != NULL;
}
template <int D, int QUERIES> static void egi_gpu_attention_launch(egi_gpu *g, int64_t batch, egi_gpu_attend *p) {
    p->tiles = egi_gpu_ceil(p->queries, QUERIES);
    EGI_LAUNCH_WITH_BARRIERS((egi_gpu_attention<D, QUERIES>), p->tiles * p->heads * batch, EGI_GPU_THREADS, g->compute,
                             *p);
}
static bool egi_gpu_run_attention(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    egi_gpu_attend p;
    if (!egi_gpu_attend_make(g, args, args->in[3], args->in[4], &p)) return false;
    p.out = (float *)(void *)args->out[0]->data;
    p.log_sums = (float *)(void *)args->out[1]->data;
    int64_t size = egi_gpu_max(p.size, p.value_size), batch = args->in[0]->dims[0];
    if (size <= 32) egi_gpu_attention_launch<32, 64>(g, batch, &p);
    else if (size <= 64) egi_gpu_attention_launch<64, 64>(g, batch, &p);
    else egi_gpu_attention_launch<EGI_ATTENTION_SIZE, 32>(g, batch, &p);
    return egi_gpu_launched(g, args);
}
template <int D, int ROWS> static void egi_gpu_attention_grad_launch(egi_gpu *g, int64_t batch, egi_gpu_attend *p) {
    p->tiles = egi_gpu_ceil(p->queries, ROWS);
    EGI_LAUNCH_WITH_BARRIERS((egi_gpu_attention_dq<D, ROWS>), p->tiles * p->heads * batch, EGI_GPU_THREADS, g->compute,
                             *p);
    p->tiles = egi_gpu_ceil(p->keys, ROWS);
    EGI_LAUNCH_WITH_BARRIERS((egi_gpu_attention_dkv<D, ROWS>), p->tiles * p->shared * batch, EGI_GPU_THREADS,
                             g->compute, *p);
}
static bool egi_gpu_run_attention_grad(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    egi_gpu_attend p;
    if (!egi_gpu_attend_make(g, args, args->in[6], args->in[7], &p)) return false;
    const eg_tensor *log_sums = args->in[4];
    int64_t size = egi_gpu_max(p.size, p.value_size), batch = args->in[0]->dims[0], bytes = log_sums->size * 4;
    if (!(p.delta = (float *)egi_gpu_workspace(g, args->op->name, bytes))) return false;
    p.y = egi_gpu_heads_of(args->in[3], true);
    p.g = egi_gpu_heads_of(args->in[5], true);
    p.log_sums = (float *)(void *)log_sums->data;
    p.dq = (float *)(void *)args->out[0]->data;
    p.dk = (float *)(void *)args->out[1]->data;
    p.dv = (float *)(void *)args->out[2]->data;
    if (size <= 32) egi_gpu_attention_grad_launch<32, 32>(g, batch, &p);
    else if (size <= 64) egi_gpu_attention_grad_launch<64, 32>(g, batch, &p);
    else egi_gpu_attention_grad_launch<EGI_ATTENTION_SIZE, 16>(g, batch, &p);
    egi_gpu_deallocate(b, p.delta, bytes);
    return egi_gpu_launched(g, args);
}

// What a step does beyond the product h U: a thread has an element of the state. What is NULL is not there, or nobody
// asks for it; what was there before the step may lie where the step's results go.
template <class T> struct egi_gpu_cell {
    int64_t size, units, steps, step, place;     // of z, and of y in the order of the steps taken
    const uint8_t *mask;
    const T *z, *product, *bias, *h_before, *c_before;
    T *kept, *h, *c, *y;
    const T *kept_then, *g, *dh_after, *dc_after;
    T *dz, *dp, *dp_step, *dh, *dc;
};
static __device__ __forceinline__ float egi_gpu_sigmoid(float x) { return egi_sigmoidf(x); }
static __device__ __forceinline__ double egi_gpu_sigmoid(double x) { return egi_sigmoid(x); }
static __device__ __forceinline__ float egi_gpu_tanh(float x) { return egi_tanhf(x); }
static __device__ __forceinline__ double egi_gpu_tanh(double x) { return egi_tanh(x); }
// i is the element; b its row of the batch, j its unit.
#define EGI_GPU_CELL_PLACE(i, p) \
    const int64_t b = p.size <= UINT32_MAX ? (uint32_t)i / (uint32_t)p.units : i / p.units, j = i - b * p.units, \
                  row = b * p.steps + p.step, u = p.units
template <class T, int KIND> static __global__ void egi_gpu_cell_forward(egi_gpu_cell<T> p) {
    EGI_GPU_EACH(i, p.size) {
        EGI_GPU_CELL_PLACE(i, p);
        const int GATES = KIND == EGI_LSTM ? 4
                          : KIND == EGI_GRU ? 3
                          : 1, PIECES = KIND == EGI_SIMPLE_RNN ? 2 : GATES + 2;
        const T *z = p.z + row * GATES * u + j, *q = p.product + b * GATES * u + j, before = p.h_before[i];
        if (p.mask && !p.mask[row]) {            // the states stay, and nothing comes of the product
            p.h[i] = before;
            if (KIND == EGI_LSTM) p.c[i] = p.c_before[i];
            if (p.y) p.y[(b * p.steps + p.place) * u + j] = before;
            if (p.kept) p.kept[(row * PIECES + PIECES - 1) * u + j] = 0;
            continue;
        }
        T gate[4], piece = 0, h;                 // piece: what is kept beside the gates
        if (KIND == EGI_LSTM) {
            for (int k = 0; k < 4; k++)
                gate[k] = k == 2 ? egi_gpu_tanh(z[k * u] + q[k * u]) : egi_gpu_sigmoid(z[k * u] + q[k * u]);
            piece = p.c_before[i];
            const T c = gate[1] * piece + gate[0] * gate[2];
            h = gate[3] * egi_gpu_tanh(c);
            p.c[i] = c;
        } else if (KIND == EGI_GRU) {
            T own[3];
            for (int k = 0; k < 3; k++) own[k] = p.bias ? q[k * u] + p.bias[k * u + j] : q[k * u];
            for (int k = 0; k < 2; k++) gate[k] = egi_gpu_sigmoid(z[k * u] + own[k]);
            gate[2] = egi_gpu_tanh(z[2 * u] + gate[1] * own[2]);
            piece = own[2];
            h = gate[2] + gate[0] * (before - gate[2]);
        } else h = gate[0] = egi_gpu_tanh(z[0] + q[0]);
        p.h[i] = h;
        if (p.y) p.y[(b * p.steps + p.place) * u + j] = h;
        if (!p.kept) continue;
        T *kept = p.kept + row * PIECES * u + j;
        for (int k = 0; k < GATES; k++) kept[k * u] = gate[k];
        if (PIECES > GATES + 1) kept[GATES * u] = piece;
        kept[(PIECES - 1) * u] = before;
    }
}
// eager.h has the formulas beside the CPU's cells.
template <class T, int KIND> static __global__ void egi_gpu_cell_back(egi_gpu_cell<T> p) {
    EGI_GPU_EACH(i, p.size) {
        EGI_GPU_CELL_PLACE(i, p);
        const int GATES = KIND == EGI_LSTM ? 4
                          : KIND == EGI_GRU ? 3
                          : 1, PIECES = KIND == EGI_SIMPLE_RNN ? 2 : GATES + 2;
        const T *kept = p.kept_then + row * PIECES * u + j;
        T d[4], dh = p.dh_after ? p.dh_after[i] : 0;
        if (p.g) dh += p.g[(b * p.steps + p.place) * u + j];
        if (p.mask && !p.mask[row]) {
            p.dh[i] = dh;
            if (KIND == EGI_LSTM) p.dc[i] = p.dc_after ? p.dc_after[i] : 0;
            for (int k = 0; k < GATES; k++) p.dz[(row * GATES + k) * u + j] = p.dp_step[(b * GATES + k) * u + j] = 0;
            for (int k = 0; k < GATES && KIND == EGI_GRU; k++) p.dp[(row * GATES + k) * u + j] = 0;
            continue;
        }
        p.dh[i] = KIND == EGI_GRU ? dh * kept[0] : 0;          // to which the product adds
        if (KIND == EGI_LSTM) {
            const T in = kept[0], f = kept[u], n = kept[2 * u], o = kept[3 * u], before = kept[4 * u],
                    t = egi_gpu_tanh(f * before + in * n);
            const T dc = (p.dc_after ? p.dc_after[i] : 0) + dh * o * (1 - t * t);
            d[0] = dc * n * (in * (1 - in));
            d[1] = dc * before * (f * (1 - f));
            d[2] = dc * in * (1 - n * n);
            d[3] = dh * t * (o * (1 - o));
            p.dc[i] = dc * f;
        } else if (KIND == EGI_GRU) {
            const T z = kept[0], r = kept[u], n = kept[2 * u], own = kept[3 * u], before = kept[4 * u];
            d[0] = dh * (before - n) * (z * (1 - z));
            d[2] = dh * (1 - z) * (1 - n * n);
            d[1] = d[2] * own * (r * (1 - r));
            d[3] = d[2] * r;
        } else d[0] = dh * (1 - kept[0] * kept[0]);
        for (int k = 0; k < GATES; k++) {
            const T own = KIND == EGI_GRU && k == 2 ? d[3] : d[k];
            p.dz[(row * GATES + k) * u + j] = d[k];
            p.dp_step[(b * GATES + k) * u + j] = own;
            if (KIND == EGI_GRU) p.dp[(row * GATES + k) * u + j] = own;
        }
    }
}
template <class T> static T *egi_gpu_elements(const eg_tensor *x) { return x && x->size ? (T *)(void *)x->data : NULL; }
// False if that failed: after it nothing must run.
template <class T>
static bool egi_gpu_cell_launch(egi_gpu *g, egi_recurrent_kind kind, bool back, const egi_gpu_cell<T> &p) {
    const int64_t blocks = egi_gpu_blocks(p.size);
    if (kind == EGI_LSTM && back) EGI_LAUNCH((egi_gpu_cell_back<T, EGI_LSTM>), blocks, EGI_GPU_THREADS, g->compute, p);
    else if (kind == EGI_LSTM) EGI_LAUNCH((egi_gpu_cell_forward<T, EGI_LSTM>), blocks, EGI_GPU_THREADS, g->compute, p);
    else if (kind == EGI_GRU && back)
        EGI_LAUNCH((egi_gpu_cell_back<T, EGI_GRU>), blocks, EGI_GPU_THREADS, g->compute, p);
    else if (kind == EGI_GRU) EGI_LAUNCH((egi_gpu_cell_forward<T, EGI_GRU>), blocks, EGI_GPU_THREADS, g->compute, p);
    else if (back) EGI_LAUNCH((egi_gpu_cell_back<T, EGI_SIMPLE_RNN>), blocks, EGI_GPU_THREADS, g->compute, p);
    else EGI_LAUNCH((egi_gpu_cell_forward<T, EGI_SIMPLE_RNN>), blocks, EGI_GPU_THREADS, g->compute, p);
    return cudaPeekAtLastError() == cudaSuccess;
}
template <class T> static bool egi_gpu_step_product(egi_gpu *g, const egi_matmul_parameters *m, int dtype, const T *a,
                                                    const T *b, T *c, bool add) {
    pthread_mutex_lock(&g->product);
    bool ok = egi_gpu_blas(g, "matmul", m, dtype, (const char *)a, (const char *)b, (char *)c, 0, 0, 1, add);
    pthread_mutex_unlock(&g->product);
    return ok;
}
template <class T> static bool egi_gpu_recur(egi_gpu *g, const egi_args *args) {
    const egi_recurrent_parameters *q = (const egi_recurrent_parameters *)args->parameters;
    const T *u = egi_gpu_elements<T>(args->in[1]);
    const int64_t width = q->gates * q->units, bytes = q->batch * width * (int64_t)sizeof(T);
    egi_matmul_parameters m;
    egi_gpu_cell<T> p;
    memset(&m, 0, sizeof m);
    memset(&p, 0, sizeof p);
    m.m = q->batch;
    m.n = m.ldb = width;
    m.k = m.lda = q->units;
    m.precision = q->precision;
    T *product = (T *)egi_gpu_workspace(g, args->op->name, bytes);
    bool ok = product != NULL;
    p.size = q->batch * q->units;
    p.units = q->units;
    p.steps = q->steps;
    p.z = egi_gpu_elements<T>(args->in[0]);
    p.product = product;
    p.bias = q->kind == EGI_GRU ? egi_gpu_elements<T>(args->in[3]) : NULL;
    p.h_before = egi_gpu_elements<T>(args->in[2]);
    p.c_before = q->kind == EGI_LSTM ? egi_gpu_elements<T>(args->in[3]) : NULL;
    p.mask = egi_gpu_elements<uint8_t>(args->in[4]);
    p.y = egi_gpu_elements<T>(args->out[0]);
    p.kept = egi_gpu_elements<T>(args->out[1]);
    p.h = egi_gpu_elements<T>(args->out[2]);
    p.c = egi_gpu_elements<T>(args->out[3]);
    for (int64_t i = 0; i < q->steps && ok; i++) {
        p.place = i;
        p.step = q->backwards ? q->steps - 1 - i : i;
        ok = egi_gpu_step_product(g, &m, args->out[2]->dtype, p.h_before, u, product, false);
        if (ok) ok = egi_gpu_cell_launch(g, q->kind, false, p);
        p.h_before = p.h;
        p.c_before = p.c;
    }
    egi_gpu_deallocate(&g->backend, product, bytes);
    return egi_gpu_launched(g, args) && ok;
}
template <class T> static bool egi_gpu_recur_back(egi_gpu *g, const egi_args *args) {
    const egi_recurrent_parameters *q = (const egi_recurrent_parameters *)args->parameters;
    const T *u = egi_gpu_elements<T>(args->in[0]);
    const int64_t width = q->gates * q->units, bytes = q->batch * width * (int64_t)sizeof(T);
    egi_matmul_parameters m;
    egi_gpu_cell<T> p;
    memset(&m, 0, sizeof m);
    memset(&p, 0, sizeof p);
    m.tb = true;
    m.m = q->batch;
    m.n = q->units;
    m.k = m.lda = m.ldb = width;
    m.precision = q->precision;
    p.dp_step = (T *)egi_gpu_workspace(g, args->op->name, bytes);
    bool ok = p.dp_step != NULL;
    p.size = q->batch * q->units;
    p.units = q->units;
    p.steps = q->steps;
    p.kept_then = egi_gpu_elements<T>(args->in[1]);
    p.g = egi_gpu_elements<T>(args->in[2]);
    p.dh_after = egi_gpu_elements<T>(args->in[3]);
    p.dc_after = egi_gpu_elements<T>(args->in[4]);
    p.mask = egi_gpu_elements<uint8_t>(args->in[5]);
    p.dz = egi_gpu_elements<T>(args->out[0]);
    p.dp = egi_gpu_elements<T>(args->out[1]);
    p.dh = egi_gpu_elements<T>(args->out[2]);
    p.dc = egi_gpu_elements<T>(args->out[3]);
    for (int64_t i = q->steps - 1; i >= 0 && ok; i--) {
        p.place = i;
        p.step = q->backwards ? q->steps - 1 - i : i;
        ok = egi_gpu_cell_launch(g, q->kind, true, p) &&
             egi_gpu_step_product(g, &m, args->out[2]->dtype, (const T *)p.dp_step, u, p.dh, true);
        p.dh_after = p.dh;
        p.dc_after = p.dc;
    }
    egi_gpu_deallocate(&g->backend, p.dp_step, bytes);
    return egi_gpu_launched(g, args) && ok;
}
static bool egi_gpu_run_recurrent(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    return args->out[2]->dtype == EG_FLOAT32 ? egi_gpu_recur<float>(g, args) : egi_gpu_recur<double>(g, args);
}
static bool egi_gpu_run_recurrent_grad(eg_backend *b, const egi_args *args) {
    egi_gpu *g = egi_gpu_enter(b);
    return args->out[2]->dtype == EG_FLOAT32 ? egi_gpu_recur_back<float>(g, args) : egi_gpu_recur_back<double>(g, args);
}

//# 10  THE TABLE -------------------------------------------------------------
// Idea: all GPUs that there are register when one is first asked for; each starts when it is asked for itself: starting
// takes time, and memory on a GPU that others may use.

static pthread_mutex_t egi_gpu_start_lock = PTHREAD_MUTEX_INITIALIZER;
static char egi_gpu_why[200];

static cudaError_t egi_gpu_stage_make(egi_gpu_stage *s) {
    cudaError_t e;
    void *p = NULL;
    pthread_mutex_init(&s->lock, NULL);
    if ((e = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking)) != cudaSuccess) return e;
    if ((e = cudaEventCreateWithFlags(&s->computed, cudaEventDisableTiming)) != cudaSuccess) return e;
    for (int i = 0; i < 2; i++) {
        if ((e = cudaEventCreateWithFlags(&s->copied[i], cudaEventDisableTiming)) != cudaSuccess) return e;
        if ((e = cudaHostAlloc(&p, EGI_GPU_STAGE, cudaHostAllocPortable)) != cudaSuccess) return e;
        s->part[i] = (char *)p;
    }
    return cudaSuccess;
}
static void egi_gpu_stage_unmake(egi_gpu_stage *s) {
    for (int i = 0; i < 2; i++) {
        if (s->part[i]) cudaFreeHost(s->part[i]);
        if (s->copied[i]) cudaEventDestroy(s->copied[i]);
    }
    if (s->computed) cudaEventDestroy(s->computed);
    if (s->stream) cudaStreamDestroy(s->stream);
}
// cuBLAS works in memory that it is given here, as much as NVIDIA advises: later it needs none.
static cudaError_t egi_gpu_blas_make(egi_gpu *g) {
    cudaError_t e;
    int major = 0;
    if ((e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, g->ordinal)) != cudaSuccess) return e;
    size_t bytes = (size_t)(major >= 9 ? 32 : 4) << 20;
    if ((e = cudaMalloc(&g->blas_workspace, bytes)) != cudaSuccess) return e;
    cublasStatus_t s = cublasCreate(&g->blas);
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasSetStream(g->blas, g->compute);
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasSetWorkspace(g->blas, g->blas_workspace, bytes);
#ifdef EAGER_CUBLASLT
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasLtCreate(&g->lt);
#endif
    return s == CUBLAS_STATUS_SUCCESS ? cudaSuccess
           : egi_gpu_no_memory(s) ? cudaErrorMemoryAllocation
           : cudaErrorUnknown;
}
static cudaError_t egi_gpu_make(egi_gpu *g) {
    cudaError_t e;
    void *p = NULL;
    memset((char *)g + offsetof(egi_gpu, ready), 0, sizeof *g - offsetof(egi_gpu, ready));
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->product, NULL);
    pthread_mutex_init(&g->reading, NULL);
    if ((e = cudaSetDevice(g->ordinal)) != cudaSuccess) return e;
    if ((e = cudaDeviceGetAttribute(&g->multiprocessors, cudaDevAttrMultiProcessorCount, g->ordinal)) != cudaSuccess)
        return e;
    if ((e = cudaStreamCreateWithFlags(&g->compute, cudaStreamNonBlocking)) != cudaSuccess) return e;
    if ((e = egi_gpu_stage_make(&g->writes)) != cudaSuccess || (e = egi_gpu_stage_make(&g->uploads)) != cudaSuccess)
        return e;
    for (int i = 0; i < EGI_GPU_ARRIVALS; i++)
        if ((e = cudaEventCreateWithFlags(&g->arrivals[i], cudaEventDisableTiming)) != cudaSuccess) return e;
    if ((e = cudaHostAlloc(&p, EGI_GPU_STAGE, cudaHostAllocPortable)) != cudaSuccess) return e;
    g->read_stage = (char *)p;
    if ((e = cudaHostAlloc(&p, (1 + EGI_GPU_TRAP_THREADS) * sizeof *g->fault,
                           cudaHostAllocPortable | cudaHostAllocMapped)) != cudaSuccess)
        return e;
    g->fault = (egi_gpu_fault *)p;
    memset(g->fault, 0, (1 + EGI_GPU_TRAP_THREADS) * sizeof *g->fault);
    // What the driver would translate of an older text has no tensor cores, whatever this GPU has.
    cudaFuncAttributes cores;
    memset(&cores, 0, sizeof cores);
    if ((e = cudaFuncGetAttributes(&cores, egi_gpu_convolve_cores<egi_gpu_tf32, EGI_CONV_FORWARD, 2>)) != cudaSuccess)
        return e;
    g->cores = cores.ptxVersion >= 80;
    return egi_gpu_blas_make(g);
}
static void egi_gpu_unmake(egi_gpu *g) {
#ifdef EAGER_CUBLASLT
    if (g->lt) cublasLtDestroy(g->lt);
#endif
    if (g->blas) cublasDestroy(g->blas);
    if (g->blas_workspace) cudaFree(g->blas_workspace);
    if (g->fault) cudaFreeHost(g->fault);
    if (g->read_stage) cudaFreeHost(g->read_stage);
    egi_gpu_stage_unmake(&g->writes);
    egi_gpu_stage_unmake(&g->uploads);
    for (int i = 0; i < EGI_GPU_ARRIVALS; i++) if (g->arrivals[i]) cudaEventDestroy(g->arrivals[i]);
    if (g->compute) cudaStreamDestroy(g->compute);
    cudaGetLastError();
}
// Normalizations but that of layers are composed of other ops.
static egi_kernel_function *const egi_gpu_run_normalize = NULL, *const egi_gpu_run_normalize_grad = NULL;
static bool egi_gpu_register(egi_gpu *g, int ordinal) {
    g->ordinal = ordinal;
    snprintf(g->name, sizeof g->name, "gpu:%d", ordinal);
    g->backend = *egi_backend_cpu();
    g->backend.name = g->name;
    g->backend.host_reads = false;
    g->backend.folds = true;
    g->backend.any_axes = false;
    g->backend.small_heads = true;
    g->backend.state = g;
    g->backend.allocate = egi_gpu_allocate;
    g->backend.deallocate = egi_gpu_deallocate;
    g->backend.write = egi_gpu_write;
    g->backend.read = egi_gpu_read;
#define EGI_GPU_ENTRY(NUMBER, name, ...) g->backend.kernel[EGI_##NUMBER] = egi_gpu_run_##name;
    EGI_KERNEL_TABLE(EGI_GPU_ENTRY, EGI_GPU_ENTRY, EGI_GPU_ENTRY)
    g->backend.synchronize = egi_gpu_synchronize;
    g->backend.trim = egi_gpu_trim;
    g->backend.trap = egi_gpu_set_trap;
    g->backend.updates = egi_gpu_updates;
    g->backend.upload = egi_gpu_upload;
    g->backend.arrived = egi_gpu_arrived;
    return egi_backend_register(&g->backend);
}
// Registers the GPUs there are. Why there is none, or NULL; then it is tried again.
static const char *egi_gpu_find(void) {
    int count = 0, driver = 0;
    cudaError_t e = cudaDriverGetVersion(&driver);
    if (e == cudaSuccess && driver > 0) e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess) cudaGetLastError();
    if (e == cudaErrorInsufficientDriver || (e == cudaSuccess && driver == 0))
        return driver ? "no NVIDIA driver as new as this program's CUDA is installed" : "no NVIDIA driver is installed";
    if (e == cudaErrorNoDevice || (e == cudaSuccess && count == 0)) return "no GPU is found, though there is a driver";
    while (e == cudaSuccess && egi_gpu_count < count && egi_gpu_count < EGI_GPU_MOST &&
           egi_gpu_register(&egi_gpus[egi_gpu_count], egi_gpu_count))
        egi_gpu_count++;
    if (egi_gpu_count) return NULL;
    snprintf(egi_gpu_why, sizeof egi_gpu_why, "no GPU could be used: %s (CUDA error %d)", cudaGetErrorString(e),
             (int)e);
    return egi_gpu_why;
}
static cudaError_t egi_gpu_device_make(egi_gpu *g) {
    cudaError_t e = egi_gpu_make(g);
    if (e != cudaSuccess) egi_gpu_unmake(g);
    return e;
}
static const char *egi_gpu_device_begin(egi_gpu *g) {
    cudaError_t e;
    if (g->ready) return NULL;
    EGI_GPU_TWICE(g, e, egi_gpu_device_make(g));
    if (e == cudaSuccess) {
        __atomic_store_n(&g->ready, 1, __ATOMIC_RELEASE);
        return NULL;
    }
    snprintf(egi_gpu_why, sizeof egi_gpu_why, "%s could not be started: %s (CUDA error %d)", g->name,
             cudaGetErrorString(e), (int)e);
    return egi_gpu_why;
}
// Starts the GPU of that name; "gpu" just looks how many there are. Why not, or NULL.
extern "C" const char *egi_cuda_start(const char *name);
extern "C" const char *egi_cuda_start(const char *name) {
    pthread_mutex_lock(&egi_gpu_start_lock);
    const char *why = egi_gpu_count ? NULL : egi_gpu_find();
    for (int i = 0; i < egi_gpu_count; i++)
        if (!strcmp(egi_gpus[i].name, name)) why = egi_gpu_device_begin(&egi_gpus[i]);
    pthread_mutex_unlock(&egi_gpu_start_lock);
    return why;
}
