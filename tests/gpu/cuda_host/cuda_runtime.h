// tests/gpu/cuda_host/cuda_runtime.h: a stand-in for the CUDA runtime, so that g++ compiles eager_cuda.cu and the tests
// run it without a GPU: g++ -std=c++17 -x c++ -Itests/gpu/cuda_host -I. -c eager_cuda.cu. What it is strict about:
//
// - Work is put in its stream's queue and runs later, streams taking turns at random as far as their events allow: what
//   forgets to wait, reads too early.
// - The threads of a block run one after the other, each up to the next barrier, in a random order: a missing barrier
//   shows. A barrier that not all threads reach ends the program, as does one in a kernel launched as one without.
// - Device memory is for kernels and copies only; between them it is protected, now and then. Fresh memory and shared
//   memory are all ones. With the address sanitizer each block ends at its last byte.
// - A stream and an event are of the device that was the thread's when they were made: a launch into another device's
//   stream, or an event recorded there, fails. So does all in a process forked from one that has called the runtime.
//   Copies to and from the device take addresses of its memory, and of pinned memory.
// - Functions are as exact as CUDA's, not more (math.h here), and so are the products of tensor cores (mma.h here).
// - Each call of the runtime can fail on request, and each cudaMalloc (the cuda_host_ variables below).
//
// It is slow, and knows what eager_cuda.cu uses and nothing else. Include it in one file of a program.
#ifndef CUDA_HOST_RUNTIME
#define CUDA_HOST_RUNTIME

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

extern "C" {
int64_t cuda_host_calls;                        // calls of the runtime so far
int64_t cuda_host_fail_at;                      // > 0: that call from now on fails
int cuda_host_fail_with;                        // with this error (0: cudaErrorUnknown)
int cuda_host_failures = 1;                     // so many in a row; < 0: until something is freed
int64_t cuda_host_malloc_fail_at;               // > 0: that cudaMalloc from now on finds no memory
int cuda_host_malloc_fails = 1;                 // so many in a row
int64_t cuda_host_launches, cuda_host_blocks;   // kernels launched; blocks of device memory alive
int64_t cuda_host_products;                     // calls of cuBLAS that are one
unsigned cuda_host_seed = 1;
int cuda_host_devices = 2;
// The architecture whose text the kernels are translated from; 75: tensor cores are not in it.
int cuda_host_text = 90;
int cuda_host_driver = 1;                       // 0: there is none
}

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

enum cudaError_t {
    cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInitializationError = 3,
    cudaErrorInsufficientDriver = 35, cudaErrorNoDevice = 100, cudaErrorInvalidDevice = 101,
    cudaErrorECCUncorrectable = 214, cudaErrorInvalidResourceHandle = 400, cudaErrorIllegalAddress = 700,
    cudaErrorLaunchTimeout = 702, cudaErrorAssert = 710, cudaErrorHardwareStackError = 714,
    cudaErrorIllegalInstruction = 715, cudaErrorMisalignedAddress = 716, cudaErrorInvalidAddressSpace = 717,
    cudaErrorInvalidPc = 718, cudaErrorLaunchFailure = 719, cudaErrorUnknown = 999
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4
};
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrComputeCapabilityMajor = 75 };

struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(4) uchar4 { unsigned char x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
    return {x, y, z, w};
}

static dim3 threadIdx, blockIdx, blockDim, gridDim;

// ---- threads of a block

static std::recursive_mutex cuda_host_lock;     // the whole stand-in is one thread at a time
static uint64_t cuda_host_random_state;
static inline unsigned cuda_host_random(unsigned below) {
    if (!cuda_host_random_state) cuda_host_random_state = 0x9E3779B97F4A7C15u * (cuda_host_seed + 1);
    cuda_host_random_state ^= cuda_host_random_state << 13;
    cuda_host_random_state ^= cuda_host_random_state >> 7;
    cuda_host_random_state ^= cuda_host_random_state << 17;
    return (unsigned)(cuda_host_random_state >> 33) % below;
}
[[noreturn]] static inline void cuda_host_die(const char *why) {
    fprintf(stderr, "cuda_host: %s\n", why);
    abort();
}

struct cuda_host_fiber {
    void *sp = nullptr;                         // where it stands, if it does not run
    ucontext_t context;
    char *stack = nullptr;
    bool finished = false;
    size_t shared = 0;                          // how much shared memory it has declared so far
    bool shuffles = false;                      // waits for its warp, not for the block
    float given, taken;                         // what it gives its warp; what its neighbour in the shuffle gave
    int mask;
    void *sanitizer = nullptr;
};
enum : size_t { CUDA_HOST_STACK = 256 * 1024, CUDA_HOST_SHARED = 48 * 1024, CUDA_HOST_THREADS = 1024 };
static cuda_host_fiber cuda_host_fibers[CUDA_HOST_THREADS], cuda_host_main;
static cuda_host_fiber *cuda_host_running;      // NULL: a kernel without barriers, or none
alignas(32) static char cuda_host_shared_memory[CUDA_HOST_SHARED];
static std::function<void()> *cuda_host_body;

#if defined(__x86_64__)
extern "C" void cuda_host_jump(void **save, void *to);
__asm__(".text\n.globl cuda_host_jump\n.type cuda_host_jump,@function\ncuda_host_jump:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size cuda_host_jump,.-cuda_host_jump\n");
#endif
static inline void cuda_host_switch(cuda_host_fiber *from, cuda_host_fiber *to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(from->finished ? nullptr : &from->sanitizer, to->stack, CUDA_HOST_STACK);
#endif
#if defined(__x86_64__)
    cuda_host_jump(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(from->sanitizer, &bottom, &size);
    if (cuda_host_running && !cuda_host_main.stack) cuda_host_main.stack = (char *)bottom;
#endif
}
static void cuda_host_enter() {
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    cuda_host_main.stack = (char *)bottom;
    (void)size;
#endif
    (*cuda_host_body)();
    cuda_host_running->finished = true;
    cuda_host_switch(cuda_host_running, &cuda_host_main);
}
static inline void cuda_host_prepare(cuda_host_fiber *f) {
    if (!f->stack)
        f->stack = (char *)mmap(nullptr, CUDA_HOST_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    f->finished = f->shuffles = false;
    f->shared = 0;
#if defined(__x86_64__)
    ASAN_UNPOISON_MEMORY_REGION(f->stack + CUDA_HOST_STACK - 1024, 1024);   // the last thread's function never returned
    void **top = (void **)(f->stack + CUDA_HOST_STACK - 64);
    *--top = nullptr;                           // as if called: the stack is 8 off a multiple of 16 at the entry
    *--top = (void *)cuda_host_enter;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = CUDA_HOST_STACK;
    f->context.uc_link = nullptr;
    makecontext(&f->context, cuda_host_enter, 0);
#endif
}
// Warps that all wait in a shuffle get each other's values; true if there are such.
static inline bool cuda_host_shuffle_warps(unsigned threads) {
    bool any = false;
    for (unsigned w = 0; w < threads; w += 32) {
        cuda_host_fiber *f = &cuda_host_fibers[w];
        unsigned waiting = 0;
        for (unsigned i = 0; i < 32 && w + i < threads; i++) waiting += f[i].shuffles;
        if (!waiting) continue;
        if (waiting != 32) cuda_host_die("a shuffle that not all threads of the warp reach");
        for (unsigned i = 0; i < 32; i++) {
            if (f[i].mask != f[0].mask) cuda_host_die("a shuffle whose threads do not agree");
            if (f[i].mask >= 0) f[i].taken = f[i ^ (unsigned)f[i].mask].given;
        }
        for (unsigned i = 0; i < 32; i++) f[i].shuffles = false;
        any = true;
    }
    return any;
}
// Runs all threads of a block, from barrier to barrier.
static inline void cuda_host_run_block(unsigned threads) {
    static std::vector<unsigned> order;
    order.resize(threads);
    for (unsigned t = 0; t < threads; t++) { order[t] = t; cuda_host_prepare(&cuda_host_fibers[t]); }
    memset(cuda_host_shared_memory, 0xff, sizeof cuda_host_shared_memory);
    static std::vector<char> at_barrier;
    at_barrier.assign(threads, 0);
    // Warps that take a rest: those that meet within themselves would all keep step otherwise.
    uint32_t idle = 0;
    for (bool more = true; more;) {
        unsigned waiting = 0;
        bool rested = false;
        for (unsigned t = threads; t-- > 1;) std::swap(order[t], order[cuda_host_random(t + 1)]);
        for (unsigned i = 0; i < threads; i++) {
            cuda_host_fiber *f = &cuda_host_fibers[order[i]];
            if (f->finished) continue;
            if (at_barrier[order[i]]) { waiting++; continue; }
            if (idle >> order[i] / 32 & 1) { rested = true; continue; }
            threadIdx.x = order[i];
            cuda_host_running = f;
            cuda_host_switch(&cuda_host_main, f);
            at_barrier[order[i]] = !f->finished && !f->shuffles;
            if (!f->finished) waiting++;
        }
        bool together = cuda_host_shuffle_warps(threads);
        idle = together || rested ? cuda_host_random(1u << 31) : 0;
        if (together || rested) continue;
        at_barrier.assign(threads, 0);
        if (waiting && waiting < threads) cuda_host_die("a barrier that not all threads of the block reach");
        more = waiting > 0;
    }
    cuda_host_running = nullptr;
}
static inline void cuda_host_barrier() {
    if (!cuda_host_running) cuda_host_die("a barrier in a kernel that was launched as one without");
    cuda_host_switch(cuda_host_running, &cuda_host_main);
}
static inline float cuda_host_shuffle(float v, int mask) {
    cuda_host_fiber *f = cuda_host_running;
    if (!f) cuda_host_die("a shuffle in a kernel that was launched as one without barriers");
    f->given = v;
    f->mask = mask;
    f->shuffles = true;
    cuda_host_switch(f, &cuda_host_main);
    return f->taken;
}
// All lanes of the warp, or none; saying the same.
static inline void cuda_host_together(int what) {
    cuda_host_fiber *f = cuda_host_running;
    if (!f) cuda_host_die("what a warp does together in a kernel that was launched as one without barriers");
    f->mask = -1 - what;
    f->shuffles = true;
    cuda_host_switch(f, &cuda_host_main);
}
static inline void *cuda_host_shared(size_t bytes) {
    cuda_host_fiber *f = cuda_host_running;
    if (!f) cuda_host_die("shared memory in a kernel that was launched as one without barriers");
    char *p = cuda_host_shared_memory + f->shared;
    f->shared += (bytes + 31) / 32 * 32;
    if (f->shared > CUDA_HOST_SHARED) cuda_host_die("more than 48 KiB of shared memory");
    return p;
}
#define EGI_SHARED(type, name, count) type *name = (type *)cuda_host_shared(sizeof(type) * (count))
#define EGI_BARRIER() cuda_host_barrier()
#define EGI_SHUFFLE(v, mask) cuda_host_shuffle(v, mask)
#define EGI_WARP_BARRIER() cuda_host_together(0)
#define EGI_UNROLL
#define EGI_UNROLL_EIGHT
#define EGI_START(kernel, blocks, threads, stream, ...) \
    cuda_host_launch(kernel, (int64_t)(blocks), threads, stream, false, __VA_ARGS__)
#define EGI_START_WITH_BARRIERS(kernel, blocks, threads, stream, ...) \
    cuda_host_launch(kernel, (int64_t)(blocks), threads, stream, true, __VA_ARGS__)

template <class T> static inline T atomicAdd(T *p, T v) { T old = *p; *p = (T)(old + v); return old; }
template <class T> static inline T atomicCAS(T *p, T want, T v) { T old = *p; if (old == want) *p = v; return old; }

// ---- device memory

enum : size_t { CUDA_HOST_ARENA = (size_t)1 << 30 };
static char *cuda_host_arena;
static size_t cuda_host_top;                    // how far it has ever been used
static int cuda_host_open_depth;
static bool cuda_host_is_open;
struct cuda_host_block { size_t size, at; };
static std::map<char *, cuda_host_block> cuda_host_used;
static std::multimap<size_t, char *> cuda_host_free_blocks;
static inline void cuda_host_open(bool yes) {
    if (yes ? cuda_host_open_depth++ : --cuda_host_open_depth) return;
    if (yes == cuda_host_is_open || (!yes && cuda_host_random(64))) return;   // closing is dear: now and then is enough
    cuda_host_is_open = yes;
    mprotect(cuda_host_arena, CUDA_HOST_ARENA, yes ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// ---- streams

static thread_local int cuda_host_device;      // what cudaSetDevice said
struct cuda_host_event_ { int64_t recorded = 0, done = 0; int device = cuda_host_device; };
struct cuda_host_work {
    std::function<void()> run;
    cuda_host_event_ *event;
    int64_t target;                             // run: 0; wait for it: > 0; reach it: < 0
};
struct cuda_host_stream_ { std::deque<cuda_host_work> queue; int device = cuda_host_device; };
typedef cuda_host_event_ *cudaEvent_t;
typedef cuda_host_stream_ *cudaStream_t;
static std::vector<cuda_host_stream_ *> cuda_host_streams;
static cudaError_t cuda_host_error;             // what cudaGetLastError says

// One piece of work of a stream that has some ready; false if none has.
static inline bool cuda_host_step() {
    size_t n = cuda_host_streams.size();
    unsigned first = n ? cuda_host_random((unsigned)n) : 0;
    for (size_t i = 0; i < n; i++) {
        cuda_host_stream_ *s = cuda_host_streams[(first + i) % n];
        if (s->queue.empty()) continue;
        cuda_host_work &w = s->queue.front();
        if (w.target > 0 && w.event->done < w.target) continue;
        cuda_host_work now = std::move(w);
        s->queue.pop_front();
        if (now.target < 0) now.event->done = -now.target;
        else if (now.run) now.run();
        return true;
    }
    return false;
}
template <class F> static inline void cuda_host_run_until(F done) {
    if (done()) return;
    cuda_host_open(true);
    while (!done()) if (!cuda_host_step()) cuda_host_die("streams wait for each other");
    cuda_host_open(false);
}
static inline void cuda_host_put(cudaStream_t s, std::function<void()> run, cudaEvent_t event = nullptr,
                                 int64_t target = 0) {
    s->queue.push_back({std::move(run), event, target});
    if (s->queue.size() > 64) cuda_host_run_until([s] { return s->queue.size() <= 32; });
}
static inline void cuda_host_drain() {
    cuda_host_run_until([] { for (auto *s : cuda_host_streams) if (!s->queue.empty()) return false; return true; });
}

// Pieces of work that have not run yet.
extern "C" int64_t cuda_host_pending(void);
extern "C" int64_t cuda_host_pending(void) {
    std::lock_guard<std::recursive_mutex> guard(cuda_host_lock);
    int64_t n = 0;
    for (auto *s : cuda_host_streams) n += (int64_t)s->queue.size();
    return n;
}

static bool cuda_host_out_of_memory;            // until something is freed
static inline bool cuda_host_fails(cudaError_t *error) {
    static const pid_t process = getpid();
    cuda_host_calls++;
    if (getpid() != process) { *error = cuda_host_error = cudaErrorInitializationError; return true; }
    if (cuda_host_fail_at <= 0 || --cuda_host_fail_at) return false;
    if (cuda_host_failures < 0) cuda_host_out_of_memory = true;
    if (cuda_host_failures < 0 || --cuda_host_failures > 0) cuda_host_fail_at = 1;
    else cuda_host_failures = 1;
    *error = cuda_host_fail_with ? (cudaError_t)cuda_host_fail_with : cudaErrorUnknown;
    cuda_host_error = *error;
    return true;
}
#define CUDA_HOST_CALL \
    std::lock_guard<std::recursive_mutex> guard(cuda_host_lock); \
    cudaError_t failure; \
    if (cuda_host_fails(&failure)) return failure

template <class... P, class... A>
static inline cudaError_t cuda_host_launch(void (*kernel)(P...), int64_t blocks, unsigned threads, cudaStream_t stream,
                                           bool barriers, A... a) {
    CUDA_HOST_CALL;
    if (stream->device != cuda_host_device) return cuda_host_error = cudaErrorInvalidResourceHandle;
    if (blocks < 1 || blocks > 2147483647 || threads < 1 || threads > CUDA_HOST_THREADS)
        return cuda_host_error = cudaErrorInvalidValue;
    cuda_host_launches++;
    std::tuple<P...> arguments(a...);
    static_assert(sizeof arguments <= 4096, "more parameters than a kernel takes");
    cuda_host_put(stream, [=] {
        gridDim.x = (unsigned)blocks;
        blockDim.x = threads;
        std::function<void()> body = [&] { std::apply(kernel, arguments); };
        cuda_host_body = &body;
        for (unsigned b = 0; b < (unsigned)blocks; b++) {
            blockIdx.x = b;
            if (barriers) { cuda_host_run_block(threads); continue; }
            for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) std::apply(kernel, arguments);
        }
    });
    return cudaSuccess;
}

// ---- the runtime

static inline const char *cudaGetErrorString(cudaError_t e) {
    return e == cudaErrorMemoryAllocation ? "out of memory" :
           e == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "an error of the stand-in";
}
static inline cudaError_t cudaGetLastError() {
    std::lock_guard<std::recursive_mutex> guard(cuda_host_lock);
    cudaError_t e = cuda_host_error;
    cuda_host_error = cudaSuccess;
    return e;
}
static inline cudaError_t cudaPeekAtLastError() {
    std::lock_guard<std::recursive_mutex> guard(cuda_host_lock);
    return cuda_host_error;
}
static inline cudaError_t cudaDriverGetVersion(int *version) {
    CUDA_HOST_CALL;
    *version = cuda_host_driver ? 13000 : 0;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int *n) {
    CUDA_HOST_CALL;
    *n = cuda_host_devices;
    return !cuda_host_driver ? cudaErrorInsufficientDriver : cuda_host_devices ? cudaSuccess : cudaErrorNoDevice;
}
static inline cudaError_t cudaSetDevice(int device) {
    CUDA_HOST_CALL;
    if (device < 0 || device >= cuda_host_devices) return cuda_host_error = cudaErrorInvalidDevice;
    cuda_host_device = device;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int *device) { CUDA_HOST_CALL; *device = cuda_host_device; return cudaSuccess; }
extern "C" int cuda_host_current(void);
extern "C" int cuda_host_current(void) { return cuda_host_device; }
static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr a, int) {
    CUDA_HOST_CALL;
    *value = a == cudaDevAttrMultiProcessorCount ? 2 : 8;
    return cudaSuccess;
}
struct cudaFuncAttributes { int ptxVersion; };
template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, F *) {
    CUDA_HOST_CALL;
    a->ptxVersion = cuda_host_text;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) {
    CUDA_HOST_CALL;
    cuda_host_streams.push_back(*s = new cuda_host_stream_);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t s) {
    CUDA_HOST_CALL;
    cuda_host_drain();
    for (auto &t : cuda_host_streams) if (t == s) { t = cuda_host_streams.back(); cuda_host_streams.pop_back(); break; }
    delete s;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    CUDA_HOST_CALL;
    cuda_host_run_until([s] { return s->queue.empty(); });
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceSynchronize() { CUDA_HOST_CALL; cuda_host_drain(); return cudaSuccess; }
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) {
    CUDA_HOST_CALL;
    *e = new cuda_host_event_;
    return cudaSuccess;
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t e) {
    CUDA_HOST_CALL;
    cuda_host_drain();
    delete e;
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    CUDA_HOST_CALL;
    if (e->device != s->device) return cuda_host_error = cudaErrorInvalidResourceHandle;
    cuda_host_put(s, nullptr, e, -++e->recorded);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
    CUDA_HOST_CALL;
    if (e->recorded) cuda_host_put(s, nullptr, e, e->recorded);
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    CUDA_HOST_CALL;
    int64_t target = e->recorded;
    cuda_host_run_until([=] { return e->done >= target; });
    return cudaSuccess;
}
static inline cudaError_t cudaMalloc(void **p, size_t bytes) {
    CUDA_HOST_CALL;
    *p = nullptr;
    if (cuda_host_malloc_fail_at > 0 && --cuda_host_malloc_fail_at == 0) {
        if (--cuda_host_malloc_fails > 0) cuda_host_malloc_fail_at = 1;
        return cuda_host_error = cudaErrorMemoryAllocation;
    }
    if (!cuda_host_arena)
        cuda_host_arena = (char *)mmap(nullptr, CUDA_HOST_ARENA, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t size = (bytes + 64 + 255) / 256 * 256;           // 64 bytes after it that nobody may touch
    if (bytes > CUDA_HOST_ARENA) return cuda_host_error = cudaErrorMemoryAllocation;
    auto f = cuda_host_free_blocks.lower_bound(size);
    char *at;
    if (f != cuda_host_free_blocks.end() && f->first <= size + size / 8 + 1024) {
        at = f->second;
        size = f->first;
        cuda_host_free_blocks.erase(f);
    } else {
        if (cuda_host_top + size > CUDA_HOST_ARENA) return cuda_host_error = cudaErrorMemoryAllocation;
        at = cuda_host_arena + cuda_host_top;
        cuda_host_top += (size + 4095) / 4096 * 4096;
        size = (size + 4095) / 4096 * 4096;
    }
    cuda_host_used[at] = {size, bytes};
    cuda_host_open(true);
    ASAN_UNPOISON_MEMORY_REGION(at, size);
    memset(at, 0xff, bytes);
    ASAN_POISON_MEMORY_REGION(at + bytes, size - bytes);
    cuda_host_open(false);
    cuda_host_blocks++;
    *p = at;
    return cudaSuccess;
}
static inline cudaError_t cudaFree(void *p) {
    if (cuda_host_out_of_memory) cuda_host_fail_at = 0;
    cuda_host_out_of_memory = false;
    CUDA_HOST_CALL;
    if (!p) return cudaSuccess;
    cuda_host_drain();
    auto b = cuda_host_used.find((char *)p);
    if (b == cuda_host_used.end()) cuda_host_die("cudaFree of what is no block");
    ASAN_POISON_MEMORY_REGION(p, b->second.size);
    if (b->second.size >= 65536) madvise(p, b->second.size, MADV_DONTNEED);   // protecting costs what pages there are
    cuda_host_free_blocks.insert({b->second.size, (char *)p});
    cuda_host_used.erase(b);
    cuda_host_blocks--;
    return cudaSuccess;
}
static std::map<const char *, size_t> cuda_host_pinned;
static inline cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned) {
    CUDA_HOST_CALL;
    *p = malloc(bytes);
    if (!*p) return cuda_host_error = cudaErrorMemoryAllocation;
    memset(*p, 0xff, bytes);
    cuda_host_pinned[(const char *)*p] = bytes;
    return cudaSuccess;
}
static inline cudaError_t cudaFreeHost(void *p) {
    CUDA_HOST_CALL;
    cuda_host_drain();
    cuda_host_pinned.erase((const char *)p);
    free(p);
    return cudaSuccess;
}
// Does all of it lie in one block, of the device or of pinned memory?
static inline bool cuda_host_holds(const void *p, size_t bytes, bool device) {
    const char *at = (const char *)p;
    auto b = cuda_host_used.upper_bound((char *)p);
    if (device) return b != cuda_host_used.begin() && (--b, at + bytes <= b->first + b->second.at);
    auto h = cuda_host_pinned.upper_bound(at);
    return h != cuda_host_pinned.begin() && (--h, at + bytes <= h->first + h->second);
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t s) {
    CUDA_HOST_CALL;
    if (!cuda_host_holds(to, bytes, kind != cudaMemcpyDeviceToHost) ||
        !cuda_host_holds(from, bytes, kind != cudaMemcpyHostToDevice))
        cuda_host_die("a copy between other memory than it says");
    cuda_host_put(s, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s) {
    CUDA_HOST_CALL;
    if (!cuda_host_holds(to, bytes, true)) cuda_host_die("memory is set that is not the device's");
    cuda_host_put(s, [=] { memset(to, value, bytes); });
    return cudaSuccess;
}
#endif
