/* eager.h - eager tensors and automatic differentiation in one C header
 *
 *   #define EAGER_IMPLEMENTATION        in exactly one .c or .cpp file, before
 *   #include "eager.h"                  the include; everywhere else just include it.
 *                                       cc program.c -lm   nothing else is needed.
 *
 *   eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
 *   eg_print(eg_matmul(x, x));          operations run at once
 *
 *   eg_tape *tape = eg_tape_begin();    a tape records them
 *   eg_tape_watch(tape, x);
 *   eg_tensor *y = eg_reduce_sum(eg_square(x));
 *   eg_print(eg_tape_gradient(tape, y, x));    and gradients come out of it: 2x
 *
 * FIVE RULES
 *   1. A tensor that a function returns belongs to the innermost open scope and
 *      lives until that scope ends. Write EG_SCOPE; at the top of a loop's body
 *      and what the body made dies with it. eg_keep(x) hands x to the enclosing
 *      scope; eg_retain(x) and eg_release(x) are references of your own.
 *   2. A failed call returns NULL, an op given NULL returns NULL: check the end
 *      of a chain. eg_error_message() says in a sentence what went wrong.
 *   3. Plain numbers mix with tensors (eg_mul(2, x)) and take the tensor's dtype.
 *      Tensors of two dtypes do not mix: eg_cast one of them.
 *   4. Tensors never change. Only variables do, by eg_assign and optimizers.
 *   5. Options are named and zero is their default:
 *      eg_reduce_sum(x, .axes = EG_AXES(0, -1), .keepdims = true).
 *      C++17 has no such literals: fill an eg_reduce_options and pass it.
 *
 * SWITCHES (define before the include; all off by default)
 *   EAGER_IMPLEMENTATION  compile the implementation here
 *   EAGER_STATIC          everything static: a private copy for this file
 *   EAGER_API             what stands before every public declaration (visibility)
 *   EAGER_DEBUG           catch tensors used after their scope, list leaks at exit
 *   EAGER_OPENBLAS        cblas for matrix products; link -lopenblas
 *   EAGER_CUDA            NVIDIA GPUs as "gpu:0", ...; link eager_cuda.o, -lcublas -lcudart
 *   EAGER_ZLIB            gzip files and deflated .npz are read; link -lz
 *   EAGER_IMAGE           PNG and JPEG files are read; link -lpng -ljpeg
 *   EAGER_NO_THREADS      no thread-local state, no pthread
 *   EAGER_NO_STDIO        no FILE in the interface, no default printing
 *   EAGER_MALLOC(size), EAGER_FREE(pointer)   instead of malloc and free
 *   EAGER_HEADER_NAME     how this file includes itself, if it was renamed
 *
 * CONTENTS (grep '^//#' jumps from chapter to chapter)
 *    1  TYPES AND LITERALS
 *    2  SCOPES, MEMORY, ERRORS
 *    3  TENSORS
 *    4  OPERATIONS
 *    5  THE TAPE
 *    6  CUSTOM GRADIENTS AND OPS
 *    7  FUNCTIONS OF FUNCTIONS
 *    8  VARIABLES AND OPTIMIZERS
 *    9  LAYERS AND MODELS
 *   10  LOSSES, METRICS, TRAINING
 *   11  DATASETS
 *   12  FILES
 *   13  SUMMARIES AND EXCHANGE
 *   14  DEVICES AND BACKENDS
 *   15  THE SHAPE OF THINGS INSIDE
 *   16  MEMORY, ERRORS, SCOPES
 *   17  TENSORS: MAKING AND READING
 *   18  RANDOM NUMBERS
 *   19  PRINTING
 *   20  THE OP TABLE
 *   21  RUNNING AN OP
 *   22  KERNELS
 *   23  THE CPU
 *   24  THE OTHER ROWS
 *   25  THE TAPE
 *   26  FUNCTIONS OF FUNCTIONS
 *   27  VARIABLES AND OPTIMIZERS
 *   28  LAYERS AND MODELS
 *   29  LOSSES, METRICS, TRAINING
 *   30  DATASETS
 *   31  FILES
 *   32  SUMMARIES AND EXCHANGE
 *   33  DEVICES
 *   34  KERNEL TEXTS
 *
 * LICENSE: public domain (Unlicense) or MIT, as you like; see the end.
 */
#ifndef EGI_STAMP
#ifndef EAGER_H
#define EAGER_H

#define EAGER_VERSION_MAJOR 0
#define EAGER_VERSION_MINOR 1
#define EAGER_VERSION_PATCH 0
#define EAGER_VERSION "0.1.0"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifndef EAGER_NO_STDIO
#include <stdio.h>
#endif

#if !defined(__GNUC__)
#error "eager.h needs gcc or clang (on Windows: mingw-w64); MSVC is not supported"
#endif

#ifndef EAGER_API
#ifdef EAGER_STATIC
#define EAGER_API static __attribute__((unused))
#else
#define EAGER_API extern
#endif
#endif

//# 1  TYPES AND LITERALS ------------------------------------------------------
// Idea: a handle to a tensor, a few small value types, and the literals that
// make calls read well. Everything that is a struct here is passed by value.

#ifdef __cplusplus
extern "C" {
#endif

#define EG_MAX_RANK 8

typedef struct eg_tensor eg_tensor;
typedef struct eg_tape eg_tape;
typedef struct eg_optimizer eg_optimizer;

typedef enum eg_dtype {
    EG_NO_DTYPE = -1,              // of no tensor
    EG_FLOAT32 = 0, EG_FLOAT64, EG_INT32, EG_INT64, EG_UINT8, EG_BOOL,
    EG_FLOAT16, EG_BFLOAT16        // storage only: made, read, reshaped and cast, not computed with
} eg_dtype;

typedef struct eg_shape { int rank; int64_t dims[EG_MAX_RANK]; } eg_shape;
// mark is set by EG_AXES (or 0), so that .axes = 1, which C would take for a count, is an error.
typedef struct eg_axes { int mark, count; int axes[EG_MAX_RANK]; } eg_axes;
#define EGI_AXES_MARK 0x61786573
typedef struct eg_pads { int count; int64_t pads[2 * EG_MAX_RANK]; } eg_pads;

// A number that must be zero where zero would mean the default: .axis = EG_ZERO, .momentum = EG_ZERO.
#define EG_ZERO (-0x7f5e)
// As the end of a strided slice: up to the end of the axis, whatever the direction.
#define EG_END INT64_MAX

// Plain numbers as operands, which is what eg_add(x, 1) makes of the 1. They take the dtype of the tensor they meet; two of them
// make float32. They belong to the scope, as every tensor does.
EAGER_API eg_tensor *eg_number(double value);
EAGER_API eg_tensor *eg_integer(int64_t value);

static inline eg_tensor *egi_same(eg_tensor *x) { return x; }
static inline eg_tensor *egi_null(const void *x) { return (eg_tensor *)(uintptr_t)x; }
EAGER_API eg_tensor *egi_unsigned(unsigned long long value);
EAGER_API void egi_at(const char *function, const char *file, int line);

// Notes where a call stands, so that its error can say so. NDEBUG leaves it out.
#define EGI_CALL(function, ...) EGI_CALL_AS(function, function, __VA_ARGS__)
#ifdef NDEBUG
#define EGI_CALL_AS(name, function, ...) (function)(__VA_ARGS__)
#else
#define EGI_CALL_AS(name, function, ...) (egi_at(#name, __FILE__, __LINE__), (function)(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
static inline eg_tensor *egi_arg(eg_tensor *x) { return x; }
static inline eg_tensor *egi_arg(decltype(nullptr)) { return nullptr; }
static inline eg_tensor *egi_arg(double x) { return eg_number(x); }
static inline eg_tensor *egi_arg(float x) { return eg_number(static_cast<double>(x)); }
static inline eg_tensor *egi_arg(int x) { return eg_integer(x); }
static inline eg_tensor *egi_arg(unsigned x) { return eg_integer(x); }
static inline eg_tensor *egi_arg(long x) { return eg_integer(x); }
static inline eg_tensor *egi_arg(long long x) { return eg_integer(x); }
static inline eg_tensor *egi_arg(unsigned long x) { return egi_unsigned(x); }
static inline eg_tensor *egi_arg(unsigned long long x) { return egi_unsigned(x); }
#define EG_T(x) egi_arg(x)
template <class... T> static inline eg_shape egi_shape_of(T... d) {
    static_assert(sizeof...(d) <= EG_MAX_RANK, "a tensor has at most EG_MAX_RANK dimensions");
    return eg_shape{static_cast<int>(sizeof...(d)), {static_cast<int64_t>(d)...}};
}
template <class... T> static inline eg_axes egi_axes_of(T... a) {
    static_assert(sizeof...(a) <= EG_MAX_RANK, "a tensor has at most EG_MAX_RANK dimensions");
    return eg_axes{EGI_AXES_MARK, static_cast<int>(sizeof...(a)), {static_cast<int>(a)...}};
}
template <class... T> static inline eg_pads egi_pads_of(T... p) {
    static_assert(sizeof...(p) <= 2 * EG_MAX_RANK, "a tensor has at most EG_MAX_RANK dimensions");
    return eg_pads{static_cast<int>(sizeof...(p)), {static_cast<int64_t>(p)...}};
}
#define EG_SHAPE(...) egi_shape_of(__VA_ARGS__)
#define EG_AXES(...) egi_axes_of(__VA_ARGS__)
#define EG_PADS(...) egi_pads_of(__VA_ARGS__)
#define EG_SCALAR eg_shape()
#define EGI_DEFAULT(type) = type()
extern "C" {
#else
#define EG_T(x) _Generic((x), eg_tensor *: egi_same, void *: egi_null, const void *: egi_null, \
    float: eg_number, double: eg_number, long double: eg_number, \
    unsigned long: egi_unsigned, unsigned long long: egi_unsigned, default: eg_integer)(x)
#define EG_SHAPE(...) ((eg_shape){ (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })
#define EG_AXES(...) ((eg_axes){ EGI_AXES_MARK, (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), { __VA_ARGS__ } })
#define EG_PADS(...) ((eg_pads){ (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } })
#define EG_SCALAR ((eg_shape){ 0, { 0 } })
// A list of tensors with its length, as two arguments: eg_concat(EG_TENSORS(a, b), 0).
#define EG_TENSORS(...) (eg_tensor *[]){ __VA_ARGS__ }, (int)(sizeof((eg_tensor *[]){ __VA_ARGS__ }) / sizeof(eg_tensor *))
#define EGI_DEFAULT(type)
// f(x, .option = value): the operands, then an options literal that starts with a member nobody sets.
#define EGI_1(...) EGI_1_(__VA_ARGS__, 0)
#define EGI_1_(a, ...) EG_T(a)
#define EGI_2(...) EGI_2_(__VA_ARGS__, 0)
#define EGI_2_(a, b, ...) EG_T(a), EG_T(b)
#define EGI_AFTER_1(...) EGI_AFTER_1_(__VA_ARGS__, )
#define EGI_AFTER_1_(a, ...) __VA_ARGS__
#define EGI_AFTER_2(...) EGI_AFTER_2_(__VA_ARGS__, )
#define EGI_AFTER_2_(a, b, ...) __VA_ARGS__
#define EGI_OPTIONS_1(function, type, ...) EGI_CALL(function, EGI_1(__VA_ARGS__), ((type){ .canary = 0, EGI_AFTER_1(__VA_ARGS__) }))
#define EGI_OPTIONS_2(function, type, ...) EGI_CALL(function, EGI_2(__VA_ARGS__), ((type){ .canary = 0, EGI_AFTER_2(__VA_ARGS__) }))
#define EGI_RAW_2(...) EGI_RAW_2_(__VA_ARGS__, 0)
#define EGI_RAW_2_(a, b, ...) EG_T(a), b
#define EGI_OPTIONS_1_RAW(function, type, ...) EGI_CALL(function, EGI_RAW_2(__VA_ARGS__), ((type){ .canary = 0, EGI_AFTER_2(__VA_ARGS__) }))
#endif

//# 2  SCOPES, MEMORY, ERRORS --------------------------------------------------
// Idea: scopes own what functions return; errors are values that wait to be
// read. Read first: 1.

// One row an error: name, number, what it means. Tests and bindings may rely on the numbers.
#define EG_ERRORS(X) \
    X(EG_OK, 0, "no error") \
    X(EG_ERROR_NULL, 1, "a NULL was passed where a tensor is needed") \
    X(EG_ERROR_MEMORY, 2, "out of memory") \
    X(EG_ERROR_SHAPE, 3, "shapes do not fit") \
    X(EG_ERROR_DTYPE, 4, "dtypes do not fit") \
    X(EG_ERROR_ARGUMENT, 5, "an argument is out of its range") \
    X(EG_ERROR_INDEX, 6, "an index is out of range") \
    X(EG_ERROR_DEVICE, 7, "a device is missing, or tensors are on two devices") \
    X(EG_ERROR_TAPE, 8, "a tape was used in a way it does not allow") \
    X(EG_ERROR_GRADIENT, 9, "a gradient is missing or does not fit") \
    X(EG_ERROR_NONFINITE, 10, "a NaN or an infinity appeared (eg_trap_nonfinite)") \
    X(EG_ERROR_STATE, 11, "an object was used after its end or in the wrong state") \
    X(EG_ERROR_FILE, 12, "a file could not be read or written") \
    X(EG_ERROR_ASSERT, 13, "an assertion on tensors failed") \
    X(EG_ERROR_MATH, 14, "an integer was divided by zero")
#define EGI_ERROR_VALUE(name, number, sentence) name = number,
typedef enum eg_error_code { EG_ERRORS(EGI_ERROR_VALUE) EG_ERROR_CODES } eg_error_code;

// The first error of this thread since the last clear; EG_OK when there is none.
EAGER_API eg_error_code eg_error(void);
// The sentence that belongs to it; "" when there is none, never NULL. Valid until the next error or clear.
EAGER_API const char *eg_error_message(void);
// Errors raised on this thread since it started; clearing does not reset it.
EAGER_API int64_t eg_error_count(void);
// Forgets the pending error of this thread.
EAGER_API void eg_error_clear(void);
// The name of a code, such as "EG_ERROR_SHAPE".
EAGER_API const char *eg_error_name(eg_error_code code);
// Sees every error of any thread as it happens, but for those that it raises itself; it must return. The default one writes
// a line to stderr (the same line only once in a row); NULL is silent.
typedef void eg_error_handler(eg_error_code code, const char *message, void *user);
EAGER_API void eg_set_error_handler(eg_error_handler *handler, void *user);
// Raises an error from code of your own (an op, a callback). The format is printf's. Returns NULL, for `return eg_raise(...)`.
EAGER_API void *eg_raise(eg_error_code code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

// A scope owns every tensor and tape made while it is the innermost one, and frees them when it ends. Ending an outer
// scope ends those left open inside it. The outermost scope of a thread is there from the start.
typedef struct eg_scope { int64_t position; uint64_t serial; } eg_scope;
EAGER_API eg_scope eg_scope_begin(void);
EAGER_API void eg_scope_end(eg_scope scope);             // one that has ended already: nothing happens
// The enclosing scope owns x too, from now on. Returns x. For results: return eg_keep(y);
EAGER_API eg_tensor *eg_keep(eg_tensor *x);
// A reference of the caller's own, to be given back by eg_release. Returns x.
EAGER_API eg_tensor *eg_retain(eg_tensor *x);
// Gives back one reference; the last one frees. NULL is fine. Safe from any thread.
EAGER_API void eg_release(eg_tensor *x);

// EG_SCOPE; makes the rest of the block a scope, left by its end, break, continue or return alike.
#define EGI_PASTE_(a, b) a##b
#define EGI_PASTE(a, b) EGI_PASTE_(a, b)
static inline void egi_scope_leave(eg_scope *scope) { eg_scope_end(*scope); }
#ifdef __cplusplus
}
struct egi_scope_guard {
    eg_scope scope = eg_scope_begin();
    egi_scope_guard() = default;
    egi_scope_guard(const egi_scope_guard &) = delete;
    egi_scope_guard &operator=(const egi_scope_guard &) = delete;
    ~egi_scope_guard() { eg_scope_end(scope); }
};
#define EG_SCOPE egi_scope_guard EGI_PASTE(egi_scope_, __LINE__)
extern "C" {
#else
#define EG_SCOPE __attribute__((cleanup(egi_scope_leave), unused)) eg_scope EGI_PASTE(egi_scope_, __LINE__) = eg_scope_begin()
#endif

// What the library holds at the moment, over all threads. Sizes in bytes.
typedef struct eg_memory_info {
    int64_t live_tensors;      // tensor handles alive, variables included
    int64_t live_bytes;        // bytes in use: handles, elements, tapes, rounded up to their size classes
    int64_t peak_bytes;        // the most live_bytes has been since eg_memory_reset_peak (summed over threads)
    int64_t cached_bytes;      // freed bytes kept for reuse
    int64_t allocations;       // calls of the system's allocator since the start
    int64_t tensors_made;      // tensor handles made since the start
    int64_t host_copies;       // device-to-host copies made to read values
    int64_t device_copies;     // copies from device to device by eg_to, eg_cpu, eg_gpu and their gradients
    int64_t device_bytes;      // bytes of tensors on devices with memory of their own
} eg_memory_info;
EAGER_API eg_memory_info eg_memory(void);
// peak_bytes begins anew, at what is live now.
EAGER_API void eg_memory_reset_peak(void);
// Gives this thread's (and dead threads') cached memory back to the system.
EAGER_API void eg_memory_trim(void);
// Ends this thread's outermost scope, frees what it owned, and returns its memory. Using the library again is fine.
EAGER_API void eg_shutdown(void);
// Memory comes from allocate(size, user) and goes to deallocate(pointer, user), instead of EAGER_MALLOC and EAGER_FREE.
// allocate returns NULL when there is none. NULL, NULL restores the default. An error while the library holds memory:
// call it first, or after eg_shutdown().
EAGER_API bool eg_set_allocator(void *(*allocate)(size_t size, void *user), void (*deallocate)(void *pointer, void *user), void *user);
// Where eg_print and the other printing functions send their text; NULL restores stdout.
EAGER_API void eg_set_printer(void (*print)(const char *text, void *user), void *user);
// While on, the first op (forward, backward or optimizer) of this thread that makes a NaN or an infinity from finite
// inputs fails with EG_ERROR_NONFINITE, naming itself and its inputs. Returns the former setting.
EAGER_API bool eg_trap_nonfinite(bool on);

//# 3  TENSORS -----------------------------------------------------------------
// Idea: an immutable block of numbers with a shape and a dtype. Read first: 2.

// A float32 tensor of these values in row-major order; their number must be the shape's.
// eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4). Values travel as double: exact for integers to 2^53.
EAGER_API eg_tensor *eg_constant_values(eg_dtype dtype, eg_shape shape, const double *values, int64_t count);
#ifdef __cplusplus
}
template <class... T> static inline eg_tensor *egi_constant_cpp(eg_dtype dtype, eg_shape shape, T... values) {
    const double list[] = {static_cast<double>(values)...};
    return eg_constant_values(dtype, shape, list, static_cast<int64_t>(sizeof...(values)));
}
#define eg_constant(...) egi_constant_cpp(EG_FLOAT32, __VA_ARGS__)
#define eg_constant_of(...) egi_constant_cpp(__VA_ARGS__)
extern "C" {
#else
#define eg_constant(shape, ...) eg_constant_of(EG_FLOAT32, shape, __VA_ARGS__)
#define eg_constant_of(dtype, shape, ...) EGI_CALL_AS(eg_constant, eg_constant_values, dtype, shape, (double[]){ __VA_ARGS__ }, (int64_t)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)))
#endif
// A float32 tensor of rank 0.
EAGER_API eg_tensor *eg_scalar(double value);
EAGER_API eg_tensor *eg_scalar_of(eg_dtype dtype, double value);
// Copies row-major elements of that dtype from data (float16 and bfloat16 as uint16_t, bool as bytes).
EAGER_API eg_tensor *eg_from_data(eg_dtype dtype, eg_shape shape, const void *data);
// Borrows data on the host without a copy; when the last user is gone deleter(data, user) is called (NULL: nothing is).
// data must stay unchanged until then. On a device that cannot read the host it is copied, and the deleter called at once.
EAGER_API eg_tensor *eg_wrap_data(eg_dtype dtype, eg_shape shape, const void *data, void (*deleter)(void *data, void *user), void *user);
EAGER_API eg_tensor *eg_zeros(eg_dtype dtype, eg_shape shape);            // of a bool: false
EAGER_API eg_tensor *eg_ones(eg_dtype dtype, eg_shape shape);
// All elements are value, which must be representable in the dtype.
EAGER_API eg_tensor *eg_full(eg_dtype dtype, eg_shape shape, double value);
// The same with the shape, dtype and device of x.
EAGER_API eg_tensor *eg_zeros_like(eg_tensor *x);
EAGER_API eg_tensor *eg_ones_like(eg_tensor *x);
EAGER_API eg_tensor *eg_full_like(eg_tensor *x, double value);
// (rows, columns) with ones on the diagonal.
EAGER_API eg_tensor *eg_eye(eg_dtype dtype, int64_t rows, int64_t columns);
// start, start + delta, ... up to but not including limit. delta must not be 0.
EAGER_API eg_tensor *eg_range(eg_dtype dtype, double start, double limit, double delta);
// count numbers from start to stop, both included.
EAGER_API eg_tensor *eg_linspace(eg_dtype dtype, double start, double stop, int64_t count);

// The value of a tensor of one element; NaN (0 for _int) and an error if it has more or is NULL.
EAGER_API double eg_item(eg_tensor *x);
EAGER_API int64_t eg_item_int(eg_tensor *x);
// Contiguous row-major elements on the host, valid as long as x (for a variable: until its next assignment).
EAGER_API const void *eg_data(eg_tensor *x);
EAGER_API int eg_rank(eg_tensor *x);                      // -1 for NULL
EAGER_API int64_t eg_dim(eg_tensor *x, int axis);         // -1 is the last axis; -1 and an error if there is none
EAGER_API int64_t eg_size(eg_tensor *x);                  // number of elements; -1 for NULL
EAGER_API eg_shape eg_shape_of(eg_tensor *x);             // of NULL: rank -1
EAGER_API eg_dtype eg_dtype_of(eg_tensor *x);             // of NULL: EG_NO_DTYPE and an error
EAGER_API const char *eg_name_of(eg_tensor *x);           // a variable's name, else the op that made it; never NULL
EAGER_API const char *eg_device_of(eg_tensor *x);         // "cpu:0"
EAGER_API const char *eg_dtype_name(eg_dtype dtype);      // "float32"
EAGER_API int64_t eg_dtype_size(eg_dtype dtype);          // bytes an element
// "(2, 3)" into text (of at least EG_SHAPE_TEXT bytes); returns text.
#define EG_SHAPE_TEXT 192
EAGER_API const char *eg_shape_text(eg_shape shape, char *text);

// The values as NumPy prints them, then shape and dtype, then a newline.
EAGER_API void eg_print(eg_tensor *x);
// Writes the same without the newline into text, at most capacity bytes with the final 0; returns the length it has in
// full (as snprintf does), or -1 with an error.
EAGER_API int64_t eg_format(eg_tensor *x, char *text, size_t capacity);
#ifndef EAGER_NO_STDIO
EAGER_API void eg_fprint(FILE *stream, eg_tensor *x);
#endif

// Converts. Float to integer truncates toward zero and saturates, NaN becomes 0; integer to a smaller integer keeps the low
// bits, as in C; anything but 0 is true.
EAGER_API eg_tensor *eg_cast(eg_tensor *x, eg_dtype dtype);

// Random numbers: Philox 4x32-10 (Salmon et al. 2011) on this thread's generator {seed, counter}. Each draw advances the
// counter; the same seed gives the same bits, uniforms and integers everywhere, and the same normals on every CPU.
typedef struct eg_random_options {
    int canary;
    eg_dtype dtype;            // float32 or float64
    double mean, stddev;       // normals: default 0 and 1 (a stddev of 0 is EG_ZERO)
    double minval, maxval;     // uniforms: default 0 and 1 (both left out)
    double probability;        // Bernoulli: default 0.5 (0 is EG_ZERO)
} eg_random_options;
EAGER_API eg_tensor *eg_random_normal(eg_shape shape, eg_random_options options EGI_DEFAULT(eg_random_options));
EAGER_API eg_tensor *eg_random_truncated_normal(eg_shape shape, eg_random_options options EGI_DEFAULT(eg_random_options));  // cut at 2 stddev
EAGER_API eg_tensor *eg_random_uniform(eg_shape shape, eg_random_options options EGI_DEFAULT(eg_random_options));           // [minval, maxval)
EAGER_API eg_tensor *eg_random_bernoulli(eg_shape shape, eg_random_options options EGI_DEFAULT(eg_random_options));         // bool
// Integers in [low, high), int32 if they fit, else int64.
EAGER_API eg_tensor *eg_random_integers(eg_shape shape, int64_t low, int64_t high);
// 0 .. n-1 in random order, int64.
EAGER_API eg_tensor *eg_random_permutation(int64_t n);
typedef struct eg_random_state { uint64_t seed, counter; } eg_random_state;
EAGER_API void eg_seed(uint64_t seed);                    // seeds this thread's generator and sets its counter to 0
EAGER_API eg_random_state eg_random_get_state(void);
EAGER_API void eg_random_set_state(eg_random_state state);
#ifndef __cplusplus
#define EGI_RANDOM_(function, shape, ...) (function)(shape, ((eg_random_options){ .canary = 0, __VA_ARGS__ }))
#define EGI_RANDOM(function, ...) EGI_RANDOM_(function, __VA_ARGS__, )
#define eg_random_normal(...) EGI_RANDOM(eg_random_normal, __VA_ARGS__)
#define eg_random_truncated_normal(...) EGI_RANDOM(eg_random_truncated_normal, __VA_ARGS__)
#define eg_random_uniform(...) EGI_RANDOM(eg_random_uniform, __VA_ARGS__)
#define eg_random_bernoulli(...) EGI_RANDOM(eg_random_bernoulli, __VA_ARGS__)
#endif

//# 4  OPERATIONS --------------------------------------------------------------
// Idea: functions of tensors, named as TensorFlow names them. All broadcast as
// NumPy does, count negative axes from the end, and run at once. Read first: 3.
// "Not differentiable" ops pass no gradient on; the tape tells so when asked.

// Elementwise, two operands: tensors or plain numbers.
EAGER_API eg_tensor *eg_add(eg_tensor *a, eg_tensor *b);                 // a + b
EAGER_API eg_tensor *eg_sub(eg_tensor *a, eg_tensor *b);                 // a - b
EAGER_API eg_tensor *eg_mul(eg_tensor *a, eg_tensor *b);                 // a b
EAGER_API eg_tensor *eg_div(eg_tensor *a, eg_tensor *b);                 // a / b, floating point only
EAGER_API eg_tensor *eg_divide_no_nan(eg_tensor *a, eg_tensor *b);       // a / b, and 0 where b = 0
EAGER_API eg_tensor *eg_floordiv(eg_tensor *a, eg_tensor *b);            // floor(a / b): -7 // 2 = -4; dividing an integer by 0 is an error
EAGER_API eg_tensor *eg_mod(eg_tensor *a, eg_tensor *b);                 // a - b floor(a / b): the sign of b
EAGER_API eg_tensor *eg_pow(eg_tensor *a, eg_tensor *b);                 // a^b; integers: b >= 0 (a negative b truncates)
EAGER_API eg_tensor *eg_maximum(eg_tensor *a, eg_tensor *b);             // a tie's gradient goes to a; NaN wins
EAGER_API eg_tensor *eg_minimum(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_squared_difference(eg_tensor *a, eg_tensor *b);  // (a - b)^2
EAGER_API eg_tensor *eg_atan2(eg_tensor *a, eg_tensor *b);               // angle of the point (b, a)
// Comparisons make bool and are not differentiable.
EAGER_API eg_tensor *eg_equal(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_not_equal(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_less(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_less_equal(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_greater(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_greater_equal(eg_tensor *a, eg_tensor *b);
// Of bool tensors.
EAGER_API eg_tensor *eg_logical_and(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_logical_or(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_logical_xor(eg_tensor *a, eg_tensor *b);
EAGER_API eg_tensor *eg_logical_not(eg_tensor *x);
// Where condition (bool) a, else b.
EAGER_API eg_tensor *eg_where(eg_tensor *condition, eg_tensor *a, eg_tensor *b);
// min(max(x, low), high); the gradient at a bound is 1.
EAGER_API eg_tensor *eg_clip_by_value(eg_tensor *x, eg_tensor *low, eg_tensor *high);
#define eg_add(a, b) EGI_CALL(eg_add, EG_T(a), EG_T(b))
#define eg_sub(a, b) EGI_CALL(eg_sub, EG_T(a), EG_T(b))
#define eg_mul(a, b) EGI_CALL(eg_mul, EG_T(a), EG_T(b))
#define eg_div(a, b) EGI_CALL(eg_div, EG_T(a), EG_T(b))
#define eg_divide_no_nan(a, b) EGI_CALL(eg_divide_no_nan, EG_T(a), EG_T(b))
#define eg_floordiv(a, b) EGI_CALL(eg_floordiv, EG_T(a), EG_T(b))
#define eg_mod(a, b) EGI_CALL(eg_mod, EG_T(a), EG_T(b))
#define eg_pow(a, b) EGI_CALL(eg_pow, EG_T(a), EG_T(b))
#define eg_maximum(a, b) EGI_CALL(eg_maximum, EG_T(a), EG_T(b))
#define eg_minimum(a, b) EGI_CALL(eg_minimum, EG_T(a), EG_T(b))
#define eg_squared_difference(a, b) EGI_CALL(eg_squared_difference, EG_T(a), EG_T(b))
#define eg_atan2(a, b) EGI_CALL(eg_atan2, EG_T(a), EG_T(b))
#define eg_equal(a, b) EGI_CALL(eg_equal, EG_T(a), EG_T(b))
#define eg_not_equal(a, b) EGI_CALL(eg_not_equal, EG_T(a), EG_T(b))
#define eg_less(a, b) EGI_CALL(eg_less, EG_T(a), EG_T(b))
#define eg_less_equal(a, b) EGI_CALL(eg_less_equal, EG_T(a), EG_T(b))
#define eg_greater(a, b) EGI_CALL(eg_greater, EG_T(a), EG_T(b))
#define eg_greater_equal(a, b) EGI_CALL(eg_greater_equal, EG_T(a), EG_T(b))
#define eg_logical_and(a, b) EGI_CALL(eg_logical_and, EG_T(a), EG_T(b))
#define eg_logical_or(a, b) EGI_CALL(eg_logical_or, EG_T(a), EG_T(b))
#define eg_logical_xor(a, b) EGI_CALL(eg_logical_xor, EG_T(a), EG_T(b))
#define eg_where(c, a, b) EGI_CALL(eg_where, EG_T(c), EG_T(a), EG_T(b))
#define eg_clip_by_value(x, low, high) EGI_CALL(eg_clip_by_value, EG_T(x), EG_T(low), EG_T(high))

// Elementwise, one operand. Floating point unless stated.
EAGER_API eg_tensor *eg_negative(eg_tensor *x);     // -x, any signed number
EAGER_API eg_tensor *eg_abs(eg_tensor *x);          // any signed number; gradient 0 at 0
EAGER_API eg_tensor *eg_sign(eg_tensor *x);         // -1, 0 or 1, any signed number; gradient 0
EAGER_API eg_tensor *eg_square(eg_tensor *x);       // any number
EAGER_API eg_tensor *eg_sqrt(eg_tensor *x);         // gradient inf at 0
EAGER_API eg_tensor *eg_rsqrt(eg_tensor *x);        // 1 / sqrt(x)
EAGER_API eg_tensor *eg_reciprocal(eg_tensor *x);   // 1 / x
EAGER_API eg_tensor *eg_exp(eg_tensor *x);
EAGER_API eg_tensor *eg_expm1(eg_tensor *x);        // exp(x) - 1, exact near 0
EAGER_API eg_tensor *eg_log(eg_tensor *x);
EAGER_API eg_tensor *eg_log1p(eg_tensor *x);        // log(1 + x), exact near 0
EAGER_API eg_tensor *eg_sin(eg_tensor *x);
EAGER_API eg_tensor *eg_cos(eg_tensor *x);
EAGER_API eg_tensor *eg_tan(eg_tensor *x);
EAGER_API eg_tensor *eg_asin(eg_tensor *x);
EAGER_API eg_tensor *eg_acos(eg_tensor *x);
EAGER_API eg_tensor *eg_atan(eg_tensor *x);
EAGER_API eg_tensor *eg_sinh(eg_tensor *x);
EAGER_API eg_tensor *eg_cosh(eg_tensor *x);
EAGER_API eg_tensor *eg_tanh(eg_tensor *x);
EAGER_API eg_tensor *eg_asinh(eg_tensor *x);
EAGER_API eg_tensor *eg_acosh(eg_tensor *x);
EAGER_API eg_tensor *eg_atanh(eg_tensor *x);
EAGER_API eg_tensor *eg_erf(eg_tensor *x);          // 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x
EAGER_API eg_tensor *eg_floor(eg_tensor *x);        // not differentiable, as ceil and round
EAGER_API eg_tensor *eg_ceil(eg_tensor *x);
EAGER_API eg_tensor *eg_round(eg_tensor *x);        // halves to even
EAGER_API eg_tensor *eg_is_nan(eg_tensor *x);       // bool, not differentiable, as the next two
EAGER_API eg_tensor *eg_is_inf(eg_tensor *x);
EAGER_API eg_tensor *eg_is_finite(eg_tensor *x);

// Activations.
EAGER_API eg_tensor *eg_sigmoid(eg_tensor *x);      // 1 / (1 + exp(-x)), without overflow
EAGER_API eg_tensor *eg_softplus(eg_tensor *x);     // log(1 + exp(x)), without overflow
EAGER_API eg_tensor *eg_softsign(eg_tensor *x);     // x / (1 + |x|)
EAGER_API eg_tensor *eg_relu(eg_tensor *x);         // max(x, 0); gradient 0 at 0
EAGER_API eg_tensor *eg_relu6(eg_tensor *x);        // min(max(x, 0), 6)
EAGER_API eg_tensor *eg_selu(eg_tensor *x);         // 1.0507 elu(x, 1.6733) (Klambauer et al. 2017)
EAGER_API eg_tensor *eg_silu(eg_tensor *x);         // x sigmoid(x), also called swish
EAGER_API eg_tensor *eg_mish(eg_tensor *x);         // x tanh(softplus(x))
EAGER_API eg_tensor *eg_gelu(eg_tensor *x);         // x Phi(x), exact; gelu(1) = .8413447
EAGER_API eg_tensor *eg_gelu_tanh(eg_tensor *x);    // its tanh approximation; gelu_tanh(1) = .8411920
EAGER_API eg_tensor *eg_hard_sigmoid(eg_tensor *x); // min(max(x / 6 + 1/2, 0), 1)
EAGER_API eg_tensor *eg_leaky_relu(eg_tensor *x, eg_tensor *alpha);   // x, or alpha x where x < 0 (Keras's layer has .3, TensorFlow's op .2)
EAGER_API eg_tensor *eg_elu(eg_tensor *x, eg_tensor *alpha);          // x, or alpha (exp(x) - 1) where x < 0
#define eg_leaky_relu(x, alpha) EGI_CALL(eg_leaky_relu, EG_T(x), EG_T(alpha))
#define eg_elu(x, alpha) EGI_CALL(eg_elu, EG_T(x), EG_T(alpha))

// Along one axis. An axis that is left out is the last one (axis 0 is EG_ZERO).
typedef struct eg_axis_options { int canary; int axis; } eg_axis_options;
EAGER_API eg_tensor *eg_softmax(eg_tensor *x, eg_axis_options options EGI_DEFAULT(eg_axis_options));      // exp(x) / sum(exp(x)), without overflow
EAGER_API eg_tensor *eg_log_softmax(eg_tensor *x, eg_axis_options options EGI_DEFAULT(eg_axis_options));  // x - logsumexp(x)

// Cross entropies of logits (N..., C), one value per example (N...).
// labels (N..., C): probabilities.
EAGER_API eg_tensor *eg_softmax_cross_entropy_with_logits(eg_tensor *labels, eg_tensor *logits);
// labels (N...): int32 or int64 class numbers; one out of range is an error that names it.
EAGER_API eg_tensor *eg_sparse_softmax_cross_entropy_with_logits(eg_tensor *labels, eg_tensor *logits);
// max(x, 0) - x z + log(1 + exp(-|x|)), elementwise; labels z of the logits' shape.
EAGER_API eg_tensor *eg_sigmoid_cross_entropy_with_logits(eg_tensor *labels, eg_tensor *logits);

// Reductions: over all axes, or those given.
typedef struct eg_reduce_options { int canary; eg_axes axes; bool keepdims; } eg_reduce_options;
EAGER_API eg_tensor *eg_reduce_sum(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));
EAGER_API eg_tensor *eg_reduce_mean(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));      // of integers: an integer, truncated; of nothing: NaN
EAGER_API eg_tensor *eg_reduce_max(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));       // ties share the gradient; of nothing: -inf, or the least integer
EAGER_API eg_tensor *eg_reduce_min(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));       // likewise
EAGER_API eg_tensor *eg_reduce_prod(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));      // of nothing: 1; its gradient is right where elements are 0, too
EAGER_API eg_tensor *eg_reduce_all(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));       // of bool
EAGER_API eg_tensor *eg_reduce_any(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));       // of bool
EAGER_API eg_tensor *eg_reduce_logsumexp(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options)); // log(sum(exp(x))), without overflow
EAGER_API eg_tensor *eg_reduce_variance(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));  // mean((x - mean(x))^2)
EAGER_API eg_tensor *eg_reduce_std(eg_tensor *x, eg_reduce_options options EGI_DEFAULT(eg_reduce_options));       // sqrt(variance)
// Vector norm over the axes. The gradient at 0 is 0 (TensorFlow's is NaN).
typedef struct eg_norm_options { int canary; double ord; eg_axes axes; bool keepdims; } eg_norm_options;      // ord: 1, 2 (default) or INFINITY
EAGER_API eg_tensor *eg_norm(eg_tensor *x, eg_norm_options options EGI_DEFAULT(eg_norm_options));
// The index of the first largest (smallest) element along an axis (default 0), int64; not differentiable.
typedef struct eg_arg_options { int canary; int axis; bool keepdims; } eg_arg_options;
EAGER_API eg_tensor *eg_argmax(eg_tensor *x, eg_arg_options options EGI_DEFAULT(eg_arg_options));
EAGER_API eg_tensor *eg_argmin(eg_tensor *x, eg_arg_options options EGI_DEFAULT(eg_arg_options));
// Running sums along an axis (default 0). exclusive: without the element itself; reverse: from the end.
typedef struct eg_cumsum_options { int canary; int axis; bool exclusive, reverse; } eg_cumsum_options;
EAGER_API eg_tensor *eg_cumsum(eg_tensor *x, eg_cumsum_options options EGI_DEFAULT(eg_cumsum_options));

// Sorting, stable, along an axis (default: the last; axis 0 is EG_ZERO). NaN comes last.
typedef struct eg_sort_options { int canary; int axis; bool descending; } eg_sort_options;
EAGER_API eg_tensor *eg_sort(eg_tensor *x, eg_sort_options options EGI_DEFAULT(eg_sort_options));
EAGER_API eg_tensor *eg_argsort(eg_tensor *x, eg_sort_options options EGI_DEFAULT(eg_sort_options));           // int64, not differentiable
// The k largest along the last axis, largest first; their positions (int64) go to *indices unless it is NULL.
EAGER_API eg_tensor *eg_top_k(eg_tensor *x, int64_t k, eg_tensor **indices);

// Products. (..., m, k) x (..., k, n) -> (..., m, n); the leading dimensions broadcast.
typedef struct eg_matmul_options { int canary; bool transpose_a, transpose_b; } eg_matmul_options;
EAGER_API eg_tensor *eg_matmul(eg_tensor *a, eg_tensor *b, eg_matmul_options options EGI_DEFAULT(eg_matmul_options));
// Einstein summation: "ij,jk->ik", "bij->bji", "ii->i", "...ij,...jk->...ik"; without "->" the letters that occur once, in order.
EAGER_API eg_tensor *eg_einsum(const char *equation, eg_tensor *const *operands, int n);

// Shape. Views share their source's memory.
EAGER_API eg_tensor *eg_reshape(eg_tensor *x, eg_shape shape);                    // one dimension may be -1; a view where x is contiguous
typedef struct eg_transpose_options { int canary; eg_axes perm; } eg_transpose_options;
EAGER_API eg_tensor *eg_transpose(eg_tensor *x, eg_transpose_options options EGI_DEFAULT(eg_transpose_options));  // default: axes in reverse; a view
EAGER_API eg_tensor *eg_expand_dims(eg_tensor *x, int axis);                      // inserts a dimension of 1; a view
typedef struct eg_squeeze_options { int canary; eg_axes axes; } eg_squeeze_options;
EAGER_API eg_tensor *eg_squeeze(eg_tensor *x, eg_squeeze_options options EGI_DEFAULT(eg_squeeze_options));        // removes dimensions of 1 (those given must be 1)
EAGER_API eg_tensor *eg_broadcast_to(eg_tensor *x, eg_shape shape);               // a view
EAGER_API eg_tensor *eg_concat(eg_tensor *const *x, int n, int axis);             // of one dtype; shapes agree but for the axis
EAGER_API eg_tensor *eg_stack(eg_tensor *const *x, int n, int axis);              // of one shape and dtype, along a new axis: n tensors (2, 3), axis 0: (n, 2, 3)
// n equal parts along the axis, views, into out; false and all NULL on an error.
EAGER_API bool eg_split(eg_tensor *x, int n, int axis, eg_tensor **out);
// The n slices along the axis, without that axis, into out; n must be its length.
EAGER_API bool eg_unstack(eg_tensor *x, int n, int axis, eg_tensor **out);
// size elements from begin on each axis (-1: all that follow), a view.
EAGER_API eg_tensor *eg_slice(eg_tensor *x, eg_shape begin, eg_shape size);
// begin, end, step as x[begin:end:step, ...] of NumPy; negative positions count from the end, EG_END is the open end.
// Axes that are left out are taken whole. A view.
EAGER_API eg_tensor *eg_strided_slice(eg_tensor *x, eg_shape begin, eg_shape end, eg_shape step);
EAGER_API eg_tensor *eg_index(eg_tensor *x, int64_t i);                           // x[i]: a view without the first axis
EAGER_API eg_tensor *eg_reverse(eg_tensor *x, eg_axes axes);                      // a view
typedef enum eg_pad_mode { EG_PAD_CONSTANT, EG_PAD_REFLECT, EG_PAD_SYMMETRIC } eg_pad_mode;
typedef struct eg_pad_options { int canary; eg_pad_mode mode; double value; } eg_pad_options;
EAGER_API eg_tensor *eg_pad(eg_tensor *x, eg_pads pads, eg_pad_options options EGI_DEFAULT(eg_pad_options));      // EG_PADS(before 0, after 0, before 1, ...)
EAGER_API eg_tensor *eg_tile(eg_tensor *x, eg_shape multiples);                   // the whole tensor repeated, multiples[i] times along axis i: [1 2] twice is [1 2 1 2]
EAGER_API eg_tensor *eg_repeat(eg_tensor *x, int64_t repeats, int axis);          // each element repeated: [1 2] twice is [1 1 2 2]

// Picking. Indices are int32 or int64, from 0; one out of range (a negative one is) is an error that names it and its place. Gradients
// of what is picked twice add.
typedef struct eg_gather_options { int canary; int axis; } eg_gather_options;     // axis: default 0
// Rows of x along the axis: x (A, B, C), indices (I, J), axis 1: (A, I, J, C).
EAGER_API eg_tensor *eg_gather(eg_tensor *x, eg_tensor *indices, eg_gather_options options EGI_DEFAULT(eg_gather_options));
EAGER_API eg_tensor *eg_gather_nd(eg_tensor *x, eg_tensor *indices);              // indices (..., depth): x[row of indices], one position (of the first depth axes) a row
// indices of x's rank; the other axes go along: y[i][j] = x[i][indices[i][j]] for axis 1.
EAGER_API eg_tensor *eg_take_along_axis(eg_tensor *x, eg_tensor *indices, int axis);
EAGER_API eg_tensor *eg_scatter_nd(eg_tensor *indices, eg_tensor *updates, eg_shape shape);    // zeros with updates[i] added in at indices[i]
EAGER_API eg_tensor *eg_tensor_scatter_add(eg_tensor *x, eg_tensor *indices, eg_tensor *updates);   // x with the updates added in
EAGER_API eg_tensor *eg_segment_sum(eg_tensor *x, eg_tensor *segments, int64_t n);             // rows of x added up by segment number (any order)
typedef struct eg_one_hot_options { int canary; int axis; eg_dtype dtype; double on_value, off_value; } eg_one_hot_options;  // default: last axis, float32, 1 and 0
EAGER_API eg_tensor *eg_one_hot(eg_tensor *indices, int64_t depth, eg_one_hot_options options EGI_DEFAULT(eg_one_hot_options));  // an index out of range gives a row of off

// Convolution, NHWC. Filters (KH, KW, C / groups, O) as TensorFlow has them; SAME pads the extra row at the bottom and right.
typedef enum eg_padding { EG_VALID, EG_SAME } eg_padding;
typedef struct eg_conv_options {
    int canary;
    int64_t strides[2], dilations[2];      // default 1; one number {s} is for both axes
    eg_padding padding;                    // default EG_VALID
    int64_t groups;                        // default 1
    int64_t output_padding[2];             // transposed convolution with EG_VALID only: rows and columns to add
} eg_conv_options;
// y[n, i, j, o] = sum over p, q, c of x[n, i s + p d, j s + q d, c] filter[p, q, c, o], strides s, dilations d: (N, H, W, C) -> (N, OH, OW, O).
EAGER_API eg_tensor *eg_conv2d(eg_tensor *x, eg_tensor *filter, eg_conv_options options EGI_DEFAULT(eg_conv_options));
EAGER_API eg_tensor *eg_conv1d(eg_tensor *x, eg_tensor *filter, eg_conv_options options EGI_DEFAULT(eg_conv_options));            // (N, W, C) and (KW, C / groups, O)
EAGER_API eg_tensor *eg_depthwise_conv2d(eg_tensor *x, eg_tensor *filter, eg_conv_options options EGI_DEFAULT(eg_conv_options));  // filter (KH, KW, C, multiplier)
// The gradient of conv2d with respect to its input, as an op: filter (KH, KW, O, C), y has (H - 1) stride + KH rows (VALID) or H stride (SAME).
EAGER_API eg_tensor *eg_conv2d_transpose(eg_tensor *x, eg_tensor *filter, eg_conv_options options EGI_DEFAULT(eg_conv_options));
EAGER_API eg_tensor *eg_conv1d_transpose(eg_tensor *x, eg_tensor *filter, eg_conv_options options EGI_DEFAULT(eg_conv_options));
typedef struct eg_pool_options { int canary; int64_t size[2], strides[2]; eg_padding padding; } eg_pool_options;  // size: default 2; strides: default size
EAGER_API eg_tensor *eg_max_pool2d(eg_tensor *x, eg_pool_options options EGI_DEFAULT(eg_pool_options));           // (N, H, W, C); a tie's gradient goes to the first
EAGER_API eg_tensor *eg_avg_pool2d(eg_tensor *x, eg_pool_options options EGI_DEFAULT(eg_pool_options));           // padding does not count
EAGER_API eg_tensor *eg_max_pool1d(eg_tensor *x, eg_pool_options options EGI_DEFAULT(eg_pool_options));           // (N, W, C)
EAGER_API eg_tensor *eg_avg_pool1d(eg_tensor *x, eg_pool_options options EGI_DEFAULT(eg_pool_options));
typedef enum eg_resize_method { EG_BILINEAR, EG_NEAREST } eg_resize_method;
typedef struct eg_resize_options { int canary; eg_resize_method method; } eg_resize_options;
EAGER_API eg_tensor *eg_resize(eg_tensor *x, int64_t height, int64_t width, eg_resize_options options EGI_DEFAULT(eg_resize_options));  // (N, H, W, C), half-pixel centres

// The value without a gradient: nothing flows back through it.
EAGER_API eg_tensor *eg_stop_gradient(eg_tensor *x);
EAGER_API eg_tensor *eg_identity(eg_tensor *x);                        // x as a tensor of its own, sharing its memory

// True if a and b have one shape and dtype and equal values (within tolerance; two NaN are equal). Otherwise false and
// EG_ERROR_ASSERT, with the condition, the first indices that differ and both values.
EAGER_API bool eg_assert_equal(eg_tensor *a, eg_tensor *b);
EAGER_API bool eg_assert_near(eg_tensor *a, eg_tensor *b, double tolerance);
EAGER_API bool eg_assert_shape(eg_tensor *x, eg_shape shape);          // a dimension of -1 is any

#ifndef __cplusplus
#define eg_softmax(...) EGI_OPTIONS_1(eg_softmax, eg_axis_options, __VA_ARGS__)
#define eg_log_softmax(...) EGI_OPTIONS_1(eg_log_softmax, eg_axis_options, __VA_ARGS__)
#define eg_reduce_sum(...) EGI_OPTIONS_1(eg_reduce_sum, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_mean(...) EGI_OPTIONS_1(eg_reduce_mean, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_max(...) EGI_OPTIONS_1(eg_reduce_max, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_min(...) EGI_OPTIONS_1(eg_reduce_min, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_prod(...) EGI_OPTIONS_1(eg_reduce_prod, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_all(...) EGI_OPTIONS_1(eg_reduce_all, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_any(...) EGI_OPTIONS_1(eg_reduce_any, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_logsumexp(...) EGI_OPTIONS_1(eg_reduce_logsumexp, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_variance(...) EGI_OPTIONS_1(eg_reduce_variance, eg_reduce_options, __VA_ARGS__)
#define eg_reduce_std(...) EGI_OPTIONS_1(eg_reduce_std, eg_reduce_options, __VA_ARGS__)
#define eg_norm(...) EGI_OPTIONS_1(eg_norm, eg_norm_options, __VA_ARGS__)
#define eg_argmax(...) EGI_OPTIONS_1(eg_argmax, eg_arg_options, __VA_ARGS__)
#define eg_argmin(...) EGI_OPTIONS_1(eg_argmin, eg_arg_options, __VA_ARGS__)
#define eg_cumsum(...) EGI_OPTIONS_1(eg_cumsum, eg_cumsum_options, __VA_ARGS__)
#define eg_sort(...) EGI_OPTIONS_1(eg_sort, eg_sort_options, __VA_ARGS__)
#define eg_argsort(...) EGI_OPTIONS_1(eg_argsort, eg_sort_options, __VA_ARGS__)
#define eg_matmul(...) EGI_OPTIONS_2(eg_matmul, eg_matmul_options, __VA_ARGS__)
#define eg_transpose(...) EGI_OPTIONS_1(eg_transpose, eg_transpose_options, __VA_ARGS__)
#define eg_squeeze(...) EGI_OPTIONS_1(eg_squeeze, eg_squeeze_options, __VA_ARGS__)
#define eg_pad(...) EGI_OPTIONS_1_RAW(eg_pad, eg_pad_options, __VA_ARGS__)
#define eg_gather(...) EGI_OPTIONS_2(eg_gather, eg_gather_options, __VA_ARGS__)
#define eg_one_hot(...) EGI_OPTIONS_1_RAW(eg_one_hot, eg_one_hot_options, __VA_ARGS__)
#define eg_conv2d(...) EGI_OPTIONS_2(eg_conv2d, eg_conv_options, __VA_ARGS__)
#define eg_conv1d(...) EGI_OPTIONS_2(eg_conv1d, eg_conv_options, __VA_ARGS__)
#define eg_depthwise_conv2d(...) EGI_OPTIONS_2(eg_depthwise_conv2d, eg_conv_options, __VA_ARGS__)
#define eg_conv2d_transpose(...) EGI_OPTIONS_2(eg_conv2d_transpose, eg_conv_options, __VA_ARGS__)
#define eg_conv1d_transpose(...) EGI_OPTIONS_2(eg_conv1d_transpose, eg_conv_options, __VA_ARGS__)
#define eg_max_pool2d(...) EGI_OPTIONS_1(eg_max_pool2d, eg_pool_options, __VA_ARGS__)
#define eg_avg_pool2d(...) EGI_OPTIONS_1(eg_avg_pool2d, eg_pool_options, __VA_ARGS__)
#define eg_max_pool1d(...) EGI_OPTIONS_1(eg_max_pool1d, eg_pool_options, __VA_ARGS__)
#define eg_avg_pool1d(...) EGI_OPTIONS_1(eg_avg_pool1d, eg_pool_options, __VA_ARGS__)
#define eg_resize(x, height, ...) EGI_CALL(eg_resize, EG_T(x), height, EGI_RESIZE_(__VA_ARGS__, ))
#define EGI_RESIZE_(width, ...) width, ((eg_resize_options){ .canary = 0, __VA_ARGS__ })
#endif

//# 5  THE TAPE ----------------------------------------------------------------
// Idea: running an op also writes one line on every tape that watches one of
// its inputs. Reading the lines backwards, each hands its upstream gradient g
// on to its inputs. Read first: 4.

// Begins a tape, recording at once; it belongs to the innermost scope. Tapes nest to any depth. Trainable variables are
// watched by themselves, tensors by eg_tape_watch. A tape gives gradients once, then it is empty; a persistent one as
// often as you like, and holds its memory until its scope ends or eg_tape_reset. A tape whose gradients nobody asks for
// records until its scope ends: in a loop, begin it inside EG_SCOPE. Only the thread that began a tape can use it.
EAGER_API eg_tape *eg_tape_begin(void);
EAGER_API eg_tape *eg_tape_begin_persistent(void);
// Records what is computed from x (of a floating dtype) from now on.
EAGER_API bool eg_tape_watch(eg_tape *tape, eg_tensor *x);
// Stops recording (until eg_tape_resume). Stopping twice, or resuming a tape that records, is an error.
EAGER_API bool eg_tape_stop(eg_tape *tape);
EAGER_API bool eg_tape_resume(eg_tape *tape);
// Forgets what was recorded and watched, and records again.
EAGER_API bool eg_tape_reset(eg_tape *tape);
// While off, trainable variables are not watched by themselves (on from the start). Returns the former setting.
EAGER_API bool eg_tape_watch_variables(eg_tape *tape, bool on);
// Writes at most capacity of the variables that were used or watched, in the order of first use; returns how many there are.
EAGER_API int eg_tape_watched_variables(eg_tape *tape, eg_tensor **variables, int capacity);

// dy/dx, of x's shape; y that is no scalar is summed. NULL without an error if y does not depend on x:
// eg_tape_unconnected_reason() then says why.
EAGER_API eg_tensor *eg_tape_gradient(eg_tape *tape, eg_tensor *y, eg_tensor *x);
// The gradients of y for n sources. False and all NULL on an error.
EAGER_API bool eg_tape_gradients(eg_tape *tape, eg_tensor *y, eg_tensor *const *xs, int n, eg_tensor **grads);
// Several targets are summed. output_gradients[i] (or output_gradients itself) may be NULL: ones.
EAGER_API bool eg_tape_gradients_from(eg_tape *tape, eg_tensor *const *ys, int ny, eg_tensor *const *output_gradients,
                                      eg_tensor *const *xs, int nx, eg_tensor **grads);
// From now on unconnected sources get zeros of their shape instead of NULL.
EAGER_API bool eg_tape_unconnected_zeros(eg_tape *tape, bool on);
// Why the latest gradient of this thread was NULL, in a sentence; "" if none was. With several sources: the first such.
EAGER_API const char *eg_tape_unconnected_reason(void);
// dy/dx for every element of y: shape(y) + shape(x). The tape must be persistent. NULL with a reason where unconnected, as above.
EAGER_API eg_tensor *eg_tape_jacobian(eg_tape *tape, eg_tensor *y, eg_tensor *x);
// For y (B, ...) and x (B, ...) whose rows are independent: (B, shape of a y row, shape of an x row).
EAGER_API eg_tensor *eg_tape_batch_jacobian(eg_tape *tape, eg_tensor *y, eg_tensor *x);
// True unless a function is being traced.
EAGER_API bool eg_executing_eagerly(void);
// The recorded lines: number, op, inputs, output shapes, what is saved for the way back.
EAGER_API void eg_tape_print(eg_tape *tape);
// The same as a graph in Graphviz's language, into text as eg_format does.
EAGER_API int64_t eg_tape_dot(eg_tape *tape, char *text, size_t capacity);

// Between the two nothing is recorded on the tapes of this thread that were begun before. They nest. EG_NO_RECORDING; is
// both for the rest of a block, left by its end, break, continue or return alike.
EAGER_API void eg_recording_pause(void);
EAGER_API void eg_recording_unpause(void);
#ifdef __cplusplus
}
struct egi_quiet_guard {
    egi_quiet_guard() { eg_recording_pause(); }
    egi_quiet_guard(const egi_quiet_guard &) = delete;
    egi_quiet_guard &operator=(const egi_quiet_guard &) = delete;
    ~egi_quiet_guard() { eg_recording_unpause(); }
};
#define EG_NO_RECORDING egi_quiet_guard EGI_PASTE(egi_quiet_, __LINE__)
extern "C" {
#else
static inline char egi_quiet_enter(void) { eg_recording_pause(); return 0; }
static inline void egi_quiet_leave(char *quiet) { (void)quiet; eg_recording_unpause(); }
#define EG_NO_RECORDING __attribute__((cleanup(egi_quiet_leave), unused)) char EGI_PASTE(egi_quiet_, __LINE__) = egi_quiet_enter()
#endif

//# 6  CUSTOM GRADIENTS AND OPS ------------------------------------------------
// Idea: a function with a gradient of one's own is one line on the tape, like
// any op. Read first: 5.

#define EG_MAX_SAVED 8
typedef struct eg_grad_context {
    int n_inputs, n_outputs;
    eg_tensor *saved[EG_MAX_SAVED];       // set by the forward, kept by the tape, read by the backward
    eg_tensor *const *upstream;           // the gradient of each output; never NULL
    eg_tensor *const *inputs;             // built-in ops only: the values read, NULL unless the row saves them
    eg_tensor *const *outputs;            // likewise
    const bool *needed;                   // for which inputs a gradient is asked
    const void *attributes;
} eg_grad_context;
// One output.
typedef eg_tensor *eg_custom_forward(eg_tensor *const *in, eg_grad_context *c, void *user);
// Sets dx[i], of input i's shape and dtype, from c->upstream[0]; NULL is no gradient for input i. Written in eager ops
// it can itself be differentiated.
typedef void eg_custom_backward(const eg_grad_context *c, eg_tensor **dx, void *user);
// Runs forward on n inputs, with backward as its gradient.
EAGER_API eg_tensor *eg_custom_gradient(eg_custom_forward *forward, eg_custom_backward *backward, void *user, eg_tensor *const *inputs, int n);
// The same for several outputs (1 to 4): forward sets out[0 .. n_outputs-1] and returns true.
typedef bool eg_custom_forward_multi(eg_tensor *const *in, eg_tensor **out, eg_grad_context *c, void *user);
EAGER_API bool eg_custom_gradient_multi(eg_custom_forward_multi *forward, eg_custom_backward *backward, void *user,
                                        eg_tensor *const *inputs, int n, eg_tensor **outputs, int n_outputs);
// An op of one's own, by name: it shows in errors, on tapes and in the NaN trap as built-in ops do. backward may be NULL:
// not differentiable. Registered for the whole program; a name that exists is an error. Returns its number, or -1.
typedef struct eg_op_definition {
    const char *name;
    int n_inputs, n_outputs;              // n_inputs of -1: any number
    eg_custom_forward_multi *forward;
    eg_custom_backward *backward;
    void *user;
} eg_op_definition;
EAGER_API int eg_op_register(const eg_op_definition *definition);
EAGER_API bool eg_op_run(int op, eg_tensor *const *inputs, int n, eg_tensor **outputs, int n_outputs);

//# 7  FUNCTIONS OF FUNCTIONS --------------------------------------------------
// Idea: given a function of tensors, a gradient function. f may use any ops,
// loops and branches of C. Each runs in a scope of its own that keeps only the
// results. Read first: 5.

typedef eg_tensor *eg_function1(eg_tensor *const *in, void *user);
// grads[i] = df/dx[i]; zeros where f does not depend on x[i]. The same tensor in two places has a gradient for each.
EAGER_API bool eg_gradients_function(eg_function1 *f, void *user, eg_tensor *const *xs, int n, eg_tensor **grads);
// Returns f's value too; NULL on an error.
EAGER_API eg_tensor *eg_value_and_gradients_function(eg_function1 *f, void *user, eg_tensor *const *xs, int n, eg_tensor **grads);
// A gradient and the variable it belongs to.
typedef struct eg_gradient_pair { eg_tensor *gradient, *variable; } eg_gradient_pair;
// The gradients of f for all trainable variables that it used, in the order of first use; unused ones are left out.
// At most capacity pairs; returns how many there are, -1 on an error.
EAGER_API int eg_implicit_gradients(eg_function1 *f, void *user, eg_tensor *const *in, eg_gradient_pair *pairs, int capacity);
EAGER_API eg_tensor *eg_implicit_value_and_gradients(eg_function1 *f, void *user, eg_tensor *const *in, eg_gradient_pair *pairs, int capacity, int *count);
// The order-th derivative of the sum of f with respect to x, element by element (order 0: the value of f); zeros where
// nothing is left.
EAGER_API eg_tensor *eg_nth_gradient(eg_function1 *f, void *user, eg_tensor *x, int order);
// J v, forward: the derivative of f at x along v (of x's shape). Made from two backward passes.
EAGER_API eg_tensor *eg_jvp(eg_function1 *f, void *user, eg_tensor *const *xs, eg_tensor *const *vs, int n);
// H v, the Hessian of the sum of f times vs, into out.
EAGER_API bool eg_hvp(eg_function1 *f, void *user, eg_tensor *const *xs, eg_tensor *const *vs, int n, eg_tensor **out);
// The Hessian of a scalar f with respect to x: shape(x) + shape(x).
EAGER_API eg_tensor *eg_hessian(eg_function1 *f, void *user, eg_tensor *x);
// Compares gradients with central differences along random directions, in float64 (other floating inputs are cast), for
// orders 1 to options.order. False and EG_ERROR_GRADIENT with both numbers where they differ.
typedef struct eg_check_options { int canary; int order; double step, tolerance; int directions; uint64_t seed; } eg_check_options;  // 1; 1e-5 (higher orders too); 1e-5; 2; 1
EAGER_API bool eg_check_gradient(eg_function1 *f, void *user, eg_tensor *const *xs, int n, eg_check_options options EGI_DEFAULT(eg_check_options));
#ifndef __cplusplus
#define eg_check_gradient(f, user, xs, ...) EGI_CHECK_(f, user, xs, __VA_ARGS__, )
#define EGI_CHECK_(f, user, xs, n, ...) EGI_CALL(eg_check_gradient, f, user, xs, n, ((eg_check_options){ .canary = 0, __VA_ARGS__ }))
#endif

//# 8  VARIABLES AND OPTIMIZERS ------------------------------------------------
// Idea: a variable is the one kind of tensor that changes; an optimizer is a
// rule that changes it, with its memory in variables of its own. Read first: 5.

// A trainable variable that starts as a copy of initial. The caller releases it (eg_release).
EAGER_API eg_tensor *eg_variable(eg_tensor *initial, const char *name);
// Assign values of the same shape and dtype (or plain numbers). What a tape or another tensor still holds keeps its
// values. Returns the variable; NULL on an error, with nothing changed. One thread at a time.
EAGER_API eg_tensor *eg_assign(eg_tensor *variable, eg_tensor *value);
EAGER_API eg_tensor *eg_assign_add(eg_tensor *variable, eg_tensor *value);
EAGER_API eg_tensor *eg_assign_sub(eg_tensor *variable, eg_tensor *value);
#define eg_assign(v, x) EGI_CALL(eg_assign, v, EG_T(x))
#define eg_assign_add(v, x) EGI_CALL(eg_assign_add, v, EG_T(x))
#define eg_assign_sub(v, x) EGI_CALL(eg_assign_sub, v, EG_T(x))
// Assigns to the part that eg_slice(variable, begin, size) shows.
EAGER_API eg_tensor *eg_assign_slice(eg_tensor *variable, eg_shape begin, eg_shape size, eg_tensor *value);
#define eg_assign_slice(v, begin, size, x) EGI_CALL(eg_assign_slice, v, begin, size, EG_T(x))
EAGER_API bool eg_is_variable(eg_tensor *x);
// Whether tapes watch it by themselves; so they do from the start.
EAGER_API bool eg_trainable(eg_tensor *variable);
EAGER_API void eg_set_trainable(eg_tensor *variable, bool trainable);
// The variable's value now, as a tensor that later assignments do not change; differentiable.
EAGER_API eg_tensor *eg_read(eg_tensor *variable);

// A learning rate that changes with the step: an eager function of the step (float64, rank 0; the updates made so far), so
// that traces follow it.
typedef struct eg_schedule { eg_tensor *(*rate)(eg_tensor *step, const struct eg_schedule *schedule); double numbers[8]; const double *values; const double *boundaries; int count; } eg_schedule;
EAGER_API eg_schedule eg_exponential_decay(double initial, double steps, double rate, bool staircase);     // initial rate^(step / steps)
EAGER_API eg_schedule eg_piecewise_constant(const double *boundaries, const double *values, int n_boundaries);   // values[i] up to and including boundaries[i]; values has one more; both are borrowed
EAGER_API eg_schedule eg_cosine_decay(double initial, double steps, double alpha, double warmup_target, double warmup_steps);  // Keras's CosineDecay; no warm-up: 0, 0
// (initial - end) (1 - step / steps)^power + end, and end after that. cycle: instead of staying there, again with twice, 3 times ... the steps.
EAGER_API eg_schedule eg_polynomial_decay(double initial, double steps, double end, double power, bool cycle);
// Its value at a step.
EAGER_API double eg_schedule_value(const eg_schedule *schedule, int64_t step);

// One options struct for all; zero is the optimizer's default (Keras's), and setting what an optimizer does not have is an error.
typedef struct eg_optimizer_options {
    int canary;
    double learning_rate;                 // .001 (SGD .01)
    eg_schedule schedule;                 // instead of learning_rate
    double momentum;                      // SGD, RMSprop: 0
    bool nesterov;                        // SGD
    double beta_1, beta_2;                // Adam family: .9 and .999 (Lion .9 and .99)
    double epsilon;                       // 1e-7
    double rho;                           // RMSprop .9, Adadelta .95
    bool centered;                        // RMSprop
    bool amsgrad;                         // Adam, AdamW
    double initial_accumulator_value;     // Adagrad, Ftrl: .1
    double learning_rate_power;           // Ftrl: -.5
    double l1, l2, l2_shrinkage, beta;    // Ftrl: 0
    double weight_decay;                  // decoupled, any optimizer: 0 (AdamW .004)
    double clipvalue, clipnorm, global_clipnorm;   // of the gradients, before the update: none
    int accumulate_steps;                 // apply the mean of so many gradients at once: 1
} eg_optimizer_options;
// Each returns an optimizer that the caller releases with eg_optimizer_release, or NULL.
EAGER_API eg_optimizer *eg_sgd(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));       // v = momentum v - lr g; w += v
EAGER_API eg_optimizer *eg_rmsprop(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));   // Tieleman & Hinton 2012
EAGER_API eg_optimizer *eg_adam(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));      // Kingma & Ba 2015
EAGER_API eg_optimizer *eg_adamw(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));     // Loshchilov & Hutter 2019
EAGER_API eg_optimizer *eg_adagrad(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));   // Duchi et al. 2011
EAGER_API eg_optimizer *eg_adadelta(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));  // Zeiler 2012
EAGER_API eg_optimizer *eg_adamax(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));    // Kingma & Ba 2015, section 7.1
EAGER_API eg_optimizer *eg_nadam(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));     // Dozat 2016
EAGER_API eg_optimizer *eg_ftrl(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));      // McMahan et al. 2013
EAGER_API eg_optimizer *eg_lion(eg_optimizer_options options EGI_DEFAULT(eg_optimizer_options));      // Chen et al. 2023
// A further reference, and one given back; the last one frees. NULL is fine.
EAGER_API eg_optimizer *eg_optimizer_retain(eg_optimizer *optimizer);
EAGER_API void eg_optimizer_release(eg_optimizer *optimizer);
#ifndef __cplusplus
#define EGI_OPTIMIZER_OPTIONS(...) ((eg_optimizer_options){ .canary = 0, __VA_ARGS__ })
#define eg_sgd(...) (eg_sgd)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_rmsprop(...) (eg_rmsprop)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_adam(...) (eg_adam)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_adamw(...) (eg_adamw)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_adagrad(...) (eg_adagrad)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_adadelta(...) (eg_adadelta)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_adamax(...) (eg_adamax)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_nadam(...) (eg_nadam)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_ftrl(...) (eg_ftrl)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#define eg_lion(...) (eg_lion)(EGI_OPTIMIZER_OPTIONS(__VA_ARGS__))
#endif
// Changes each variable by its gradient. A NULL gradient is skipped; all NULL is an error, as is a NULL while an error is
// pending; on an error nothing is changed. Slots of a variable are made when it is first seen.
EAGER_API bool eg_apply_gradients(eg_optimizer *optimizer, eg_tensor *const *grads, eg_tensor *const *variables, int n);
EAGER_API bool eg_apply_gradient_pairs(eg_optimizer *optimizer, const eg_gradient_pair *pairs, int n);
// Runs loss(in, user) on a tape and applies the gradients of all trainable variables it used. Returns the loss.
EAGER_API eg_tensor *eg_minimize(eg_optimizer *optimizer, eg_function1 *loss, void *user, eg_tensor *const *in);
EAGER_API int64_t eg_optimizer_steps(eg_optimizer *optimizer);                 // updates made
EAGER_API double eg_optimizer_learning_rate(eg_optimizer *optimizer);          // of the next update
EAGER_API bool eg_optimizer_set_learning_rate(eg_optimizer *optimizer, double learning_rate);
// The optimizer's state as variables (borrowed): step count, learning rate, calls accumulated if it does that, slots. At most capacity; returns how many.
EAGER_API int eg_optimizer_state(eg_optimizer *optimizer, eg_tensor **state, int capacity);
// Clipping of gradients, for loops of one's own.
EAGER_API eg_tensor *eg_clip_by_norm(eg_tensor *x, double norm);               // x norm / max(|x|, norm)
EAGER_API eg_tensor *eg_global_norm(eg_tensor *const *xs, int n);              // sqrt of the sum of all squares; NULL entries are skipped
EAGER_API bool eg_clip_by_global_norm(eg_tensor *const *xs, int n, double norm, eg_tensor **out);     // each x norm / max(global norm, norm)

//# 9  LAYERS AND MODELS -------------------------------------------------------
// Idea: a layer is weights and a function of tensors; it makes its weights when
// it is first called. A model is a layer made of layers. Read first: 8.
// Who makes a layer releases it; a model takes over the layers it is made of.

typedef struct eg_layer eg_layer;

// What comes behind a layer's formula, as keras.activations computes it (leaky relu's slope .2, elu's alpha 1).
typedef enum eg_activation {
    EG_DEFAULT_ACTIVATION, EG_LINEAR, EG_RELU, EG_RELU6, EG_LEAKY_RELU, EG_ELU, EG_SELU, EG_GELU, EG_GELU_TANH, EG_SILU, EG_MISH,
    EG_SOFTPLUS, EG_SOFTSIGN, EG_TANH, EG_SIGMOID, EG_HARD_SIGMOID, EG_SOFTMAX, EG_LOG_SOFTMAX, EG_EXPONENTIAL
} eg_activation;
EAGER_API eg_tensor *eg_activate(eg_tensor *x, eg_activation activation);

// How a weight starts. Fans are those of the shape: (in, out), or (height, width, in, out) with in and out times the window.
typedef enum eg_initializer {
    EG_DEFAULT_INITIALIZER,
    EG_INIT_GLOROT_UNIFORM, EG_INIT_GLOROT_NORMAL,     // uniform within sqrt(6 / (in + out)); normals are cut at 2 stddev and rescaled
    EG_INIT_HE_UNIFORM, EG_INIT_HE_NORMAL,             // sqrt(6 / in); variance 2 / in
    EG_INIT_LECUN_UNIFORM, EG_INIT_LECUN_NORMAL,       // sqrt(3 / in); variance 1 / in
    EG_INIT_ORTHOGONAL, EG_INIT_IDENTITY,              // times .kernel_initializer_value (1)
    EG_INIT_ZEROS, EG_INIT_ONES, EG_INIT_CONSTANT,     // constant: the value
    EG_INIT_UNIFORM,                                   // within +- the value (.05)
    EG_INIT_NORMAL, EG_INIT_TRUNCATED_NORMAL           // of stddev value (.05); cut at 2 stddev
} eg_initializer;
// A new tensor of this kind; value 0 is the kind's own.
EAGER_API eg_tensor *eg_initialize(eg_initializer kind, double value, eg_dtype dtype, eg_shape shape);

// One options struct for all layers; zero is the layer's default (Keras's), and setting what a layer does not have is an error.
// How the two outputs of a bidirectional layer become one.
typedef enum eg_merge { EG_MERGE_CONCAT, EG_MERGE_SUM, EG_MERGE_MUL, EG_MERGE_AVE } eg_merge;
typedef struct eg_layer_options {
    int canary;
    const char *name;                     // default: the kind of layer, with _1, _2 ... where a model has several
    eg_shape input_shape;                 // without the batch; -1 is free. Given on the first layer, a model is built at once
    eg_dtype dtype;                       // of the weights: the first input's if that is floating, else float32
    bool frozen;                          // weights are not trained
    eg_activation activation;             // none (recurrent layers: tanh)
    eg_activation recurrent_activation;   // LSTM, GRU: sigmoid
    bool no_bias;
    eg_initializer kernel_initializer, recurrent_initializer, bias_initializer;   // glorot uniform; orthogonal; zeros
    double kernel_initializer_value, bias_initializer_value;
    double kernel_l1, kernel_l2, bias_l1, bias_l2, recurrent_l1, recurrent_l2;    // l1 sum|w| + l2 sum w^2, see eg_layer_losses
    int64_t kernel_size[2];               // convolutions: of a window that is not square (the size argument is 0 then)
    int64_t pool_size[2];                 // pooling: 2
    int64_t strides[2], dilations[2];     // 1 (pooling: the window); one number {s} is for both axes
    eg_padding padding;                   // EG_VALID
    bool causal;                          // Conv1D: no step sees a later one; attention: likewise
    int64_t groups;                       // convolutions: 1; group normalization: 32, -1 for one a channel
    int64_t output_padding[2];            // transposed convolutions
    int64_t depth_multiplier;             // depthwise convolution: 1
    bool bilinear;                        // up-sampling 2D: interpolates instead of repeating
    int axis;                             // normalizations, softmax, concatenation: the last (0 is EG_ZERO)
    double epsilon;                       // of normalizations: 1e-3 (RMS 1e-6)
    double momentum;                      // of batch normalization's running mean and variance: .99
    bool no_center, no_scale;             // normalizations without beta, without gamma
    bool mask_zero;                       // embedding: 0 is padding; eg_mask_of its output tells later layers
    bool return_sequences, go_backwards;  // recurrent layers: all steps; from the end
    bool no_forget_bias;                  // LSTM: the forget gate's bias starts at 0, not 1
    bool reset_before;                    // GRU: the reset gate acts before the matrix product, not after it
    double dropout, recurrent_dropout;    // recurrent layers, attention
    int64_t value_dim;                    // attention: key_dim
    int64_t output_units;                 // attention: the size of the query
    int64_t kv_heads;                     // attention: keys and values have fewer heads, each serves several queries (Ainslie et al. 2023); heads
    eg_merge merge;                       // bidirectional
} eg_layer_options;

// Fully connected: activation(x W + b), (..., in) -> (..., units). Weights kernel (in, units), bias (units).
EAGER_API eg_layer *eg_layer_dense(int64_t units, eg_layer_options options EGI_DEFAULT(eg_layer_options));

// Recurrent layers (batch, steps, features) -> the last output (batch, units), or with .return_sequences all of them (batch,
// steps, units). Further inputs of eg_call_multi are the states to start with (zeros), further outputs those at the end, each
// (batch, units). A step that the mask leaves out keeps the states and repeats the output before it.
// h' = tanh(x W + h U + b). Weights kernel (features, units), recurrent_kernel (units, units), bias (units).
EAGER_API eg_layer *eg_layer_simple_rnn(int64_t units, eg_layer_options options EGI_DEFAULT(eg_layer_options));
// Two states h, c. The gates i f c o stand side by side in kernel (features, 4 units), recurrent_kernel (units, 4 units), bias.
EAGER_API eg_layer *eg_layer_lstm(int64_t units, eg_layer_options options EGI_DEFAULT(eg_layer_options));
// Gates z r h: kernel (features, 3 units), recurrent_kernel (units, 3 units), bias (2, 3 units): one for x W, one for h U;
// with .reset_before one (3 units).
EAGER_API eg_layer *eg_layer_gru(int64_t units, eg_layer_options options EGI_DEFAULT(eg_layer_options));
// A recurrent layer (taken over) and a copy of it that runs the other way, with weights of its own; outputs are merged by
// .merge. States: those of the layer, then those of the copy.
EAGER_API eg_layer *eg_layer_bidirectional(eg_layer *layer, eg_layer_options options EGI_DEFAULT(eg_layer_options));
// softmax(q k^T / sqrt(key_dim)) v for each head, then a product that mixes the heads; q, k and v are products of the inputs:
// query (B, T, C), value (B, S, D) (default: the query), key (B, S, E) (default: the value), and, last, where wanted, a bool mask
// that broadcasts to (B, T, S): who may look at whom. Masks that come with the inputs count, too. Second output: the softmax
// (B, heads, T, S). Layers query, key, value, attention_output in it, each with a kernel and a bias.
EAGER_API eg_layer *eg_layer_multi_head_attention(int64_t heads, int64_t key_dim, eg_layer_options options EGI_DEFAULT(eg_layer_options));

// Layers one behind the other: eg_sequential(eg_layer_dense(32, .activation = EG_RELU), eg_layer_dense(10)). It takes over the
// references, also where it fails. With none: eg_sequential() is empty, and eg_layer_add adds to it.
EAGER_API eg_layer *eg_sequential_of(eg_layer *const *layers, int n);
EAGER_API bool eg_layer_add(eg_layer *model, eg_layer *layer);

// A layer of one's own: a C function of the tensor in[0] and a struct of the user's. What it is made of is tracked
// (eg_layer_track, eg_layer_weight): names, saving, training, freezing and the summary follow from that. The name says what kind
// of layer it is, and which maker eg_layer_from_config asks for it.
EAGER_API eg_layer *eg_layer_custom(const char *name, eg_function1 *call, void *user);
// The same for up to n_in inputs and n_out outputs (8 at most); inputs that were not given are NULL.
typedef bool eg_layer_function(eg_tensor *const *in, eg_tensor **out, void *user);
EAGER_API eg_layer *eg_layer_custom_multi(const char *name, int n_in, int n_out, eg_layer_function *call, void *user);
// release(user) is called when the layer's last reference is gone.
EAGER_API void eg_layer_on_release(eg_layer *layer, void (*release)(void *user));
// The child belongs to the layer from now on (its reference is taken over, also where this fails); name NULL: the child's own.
// Returns the child, or NULL.
EAGER_API eg_layer *eg_layer_track(eg_layer *layer, const char *name, eg_layer *child);
// A variable that belongs to the layer and is released with it; returns it (borrowed), or NULL.
EAGER_API eg_tensor *eg_layer_weight(eg_layer *layer, const char *name, eg_tensor *initial, bool trainable);

// Calls the layer in a scope of its own that keeps the result; on the first call it makes its weights. training: as in
// training (dropout, batch statistics); inside a call, a layer's own layers are called as it is, unless .inference says no.
// mask: bool (batch, time), which steps count; default: the one that came with x (eg_mask_of).
typedef struct eg_call_options { int canary; bool training, inference; eg_tensor *mask; } eg_call_options;
EAGER_API eg_tensor *eg_call(eg_layer *layer, eg_tensor *x, eg_call_options options EGI_DEFAULT(eg_call_options));
// n inputs, the first n_out outputs: sums, attention, LSTM with its states. False and all NULL on an error.
EAGER_API bool eg_call_multi(eg_layer *layer, eg_tensor *const *in, int n, eg_tensor **out, int n_out, eg_call_options options EGI_DEFAULT(eg_call_options));
EAGER_API bool eg_training(void);                                      // inside a call: whether it is for training
EAGER_API eg_tensor *eg_with_mask(eg_tensor *x, eg_tensor *mask);         // x with this mask (bool), as Masking and Embedding give one; NULL takes it off
EAGER_API eg_tensor *eg_mask_of(eg_tensor *x);                         // of a layer's output: its mask (borrowed), or NULL

// Makes the weights for inputs of this shape, batch included; -1 is free.
EAGER_API bool eg_layer_build(eg_layer *layer, eg_shape input);
// All variables (borrowed), in the order of layers and in each as it made them; at most capacity. Returns how many there are.
EAGER_API int eg_layer_weights(eg_layer *layer, eg_tensor **weights, int capacity);
EAGER_API int eg_layer_trainable_weights(eg_layer *layer, eg_tensor **weights, int capacity);
// Where weight i of eg_layer_weights is, seen from the layer: "kernel", "dense_1/kernel". Into text, cut to capacity; NULL if there is none.
EAGER_API const char *eg_layer_weight_path(eg_layer *layer, int i, char *text, size_t capacity);
EAGER_API int64_t eg_layer_parameters(eg_layer *layer);                // numbers in all weights
EAGER_API void eg_layer_set_trainable(eg_layer *layer, bool trainable);    // of the layer and all in it; false also stops batch statistics
EAGER_API bool eg_layer_trainable(eg_layer *layer);
EAGER_API const char *eg_layer_name(eg_layer *layer);
EAGER_API bool eg_layer_set_name(eg_layer *layer, const char *name);
// The layers it is made of (borrowed), at most capacity; returns how many there are.
EAGER_API int eg_layer_layers(eg_layer *layer, eg_layer **layers, int capacity);
// The sum of the regularizers of all trainable weights, for the loss; NULL without an error where there are none.
EAGER_API eg_tensor *eg_layer_losses(eg_layer *layer);
// A further reference, and one given back; the last one frees. NULL is fine.
EAGER_API eg_layer *eg_layer_retain(eg_layer *layer);
EAGER_API void eg_layer_release(eg_layer *layer);

#ifdef __cplusplus
}
template <class... T> static inline eg_layer *eg_sequential(T... layers) {
    eg_layer *list[] = {nullptr, layers...};
    return eg_sequential_of(list + 1, static_cast<int>(sizeof...(T)));
}
extern "C" {
#else
#define EGI_LAYER_OPTIONS(...) ((eg_layer_options){ .canary = 0, __VA_ARGS__ })
#define EGI_LAYER_1(function, ...) EGI_LAYER_1_(function, __VA_ARGS__, )
#define EGI_LAYER_1_(function, a, ...) (function)(a, EGI_LAYER_OPTIONS(__VA_ARGS__))
#define EGI_LAYER_2(function, ...) EGI_LAYER_2_(function, __VA_ARGS__, )
#define EGI_LAYER_2_(function, a, b, ...) (function)(a, b, EGI_LAYER_OPTIONS(__VA_ARGS__))
#define eg_layer_dense(...) EGI_LAYER_1(eg_layer_dense, __VA_ARGS__)
#define eg_layer_simple_rnn(...) EGI_LAYER_1(eg_layer_simple_rnn, __VA_ARGS__)
#define eg_layer_lstm(...) EGI_LAYER_1(eg_layer_lstm, __VA_ARGS__)
#define eg_layer_gru(...) EGI_LAYER_1(eg_layer_gru, __VA_ARGS__)
#define eg_layer_bidirectional(...) EGI_LAYER_1(eg_layer_bidirectional, __VA_ARGS__)
#define eg_layer_multi_head_attention(...) EGI_LAYER_2(eg_layer_multi_head_attention, __VA_ARGS__)
#define eg_sequential(...) eg_sequential_of((eg_layer *[]){ NULL, __VA_ARGS__ } + 1, (int)(sizeof((eg_layer *[]){ NULL, __VA_ARGS__ }) / sizeof(eg_layer *)) - 1)
#define eg_call(layer, ...) EGI_CALL_LAYER(layer, __VA_ARGS__, )
#define EGI_CALL_LAYER(layer, x, ...) EGI_CALL(eg_call, layer, x, ((eg_call_options){ .canary = 0, __VA_ARGS__ }))
#define eg_call_multi(layer, in, n, out, ...) EGI_CALL_MULTI(layer, in, n, out, __VA_ARGS__, )
#define EGI_CALL_MULTI(layer, in, n, out, n_out, ...) EGI_CALL(eg_call_multi, layer, in, n, out, n_out, ((eg_call_options){ .canary = 0, __VA_ARGS__ }))
#endif

//# 10  LOSSES, METRICS, TRAINING ----------------------------------------------
// Idea: a loss says how wrong, a metric says it to people, eg_fit repeats: batch,
// tape, gradients, update. Read first: 9.

// ---- losses: how wrong, as one number to make smaller. labels and predictions have one shape, (N, ...); different ranks are an
// error, not a broadcast. Labels are cast to the predictions' dtype. The mean over all examples; Keras's formulas and epsilons.
typedef eg_tensor *eg_loss(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_mean_squared_error(eg_tensor *labels, eg_tensor *predictions);                // (p - y)^2
EAGER_API eg_tensor *eg_mean_absolute_error(eg_tensor *labels, eg_tensor *predictions);               // |p - y|
EAGER_API eg_tensor *eg_mean_absolute_percentage_error(eg_tensor *labels, eg_tensor *predictions);    // 100 |p - y| / |y|
EAGER_API eg_tensor *eg_mean_squared_logarithmic_error(eg_tensor *labels, eg_tensor *predictions);    // (log(1 + p) - log(1 + y))^2; what is below 0 counts as 0
EAGER_API eg_tensor *eg_huber(eg_tensor *labels, eg_tensor *predictions);                             // e^2 / 2, and beyond delta (1) a line
EAGER_API eg_tensor *eg_log_cosh(eg_tensor *labels, eg_tensor *predictions);                          // log(cosh(p - y)), without overflow
EAGER_API eg_tensor *eg_poisson(eg_tensor *labels, eg_tensor *predictions);                           // p - y log(p)
EAGER_API eg_tensor *eg_kl_divergence(eg_tensor *labels, eg_tensor *predictions);                     // y log(y / p), summed over the last axis: probabilities
EAGER_API eg_tensor *eg_hinge(eg_tensor *labels, eg_tensor *predictions);                             // max(1 - y p, 0), y of -1 and 1 (or 0 and 1)
EAGER_API eg_tensor *eg_squared_hinge(eg_tensor *labels, eg_tensor *predictions);                     // its square
EAGER_API eg_tensor *eg_categorical_hinge(eg_tensor *labels, eg_tensor *predictions);                 // max(1 + largest wrong score - right score, 0), y one-hot
EAGER_API eg_tensor *eg_cosine_similarity(eg_tensor *labels, eg_tensor *predictions);                 // -cos of the angle between the two along the last axis
EAGER_API eg_tensor *eg_dice(eg_tensor *labels, eg_tensor *predictions);                              // 1 - 2 |y p| / (|y| + |p|), an example's elements together
// Cross entropies take logits; probabilities where the name says so. Sparse: labels (N...) are class numbers for (N..., C).
EAGER_API eg_tensor *eg_binary_crossentropy(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_binary_crossentropy_from_probabilities(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_categorical_crossentropy(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_categorical_crossentropy_from_probabilities(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_sparse_categorical_crossentropy(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_sparse_categorical_crossentropy_from_probabilities(eg_tensor *labels, eg_tensor *predictions);
// Lin et al. 2017: what is right already counts less, by (1 - its probability)^gamma.
EAGER_API eg_tensor *eg_binary_focal_crossentropy(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_binary_focal_crossentropy_from_probabilities(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_categorical_focal_crossentropy(eg_tensor *labels, eg_tensor *predictions);
EAGER_API eg_tensor *eg_categorical_focal_crossentropy_from_probabilities(eg_tensor *labels, eg_tensor *predictions);
// The same losses with options; setting one that a loss does not have is an error. loss: one of those above, or a function of your own.
typedef struct eg_loss_options {
    int canary;
    double delta;              // eg_huber: 1
    double label_smoothing;    // cross entropies on dense labels: 0
    double gamma, alpha;       // focal ones: 2, and .25 (binary: none unless given)
    eg_tensor *weights;        // of the examples: (N), or of the values' shape
} eg_loss_options;
// One value an example: an (N, T, C) loss has (N, T) of them, an (N) one N. A function of your own returns what it returns.
EAGER_API eg_tensor *eg_loss_per_example(eg_loss *loss, eg_tensor *labels, eg_tensor *predictions, eg_loss_options options EGI_DEFAULT(eg_loss_options));
// The mean of those values times their weights.
EAGER_API eg_tensor *eg_loss_mean(eg_loss *loss, eg_tensor *labels, eg_tensor *predictions, eg_loss_options options EGI_DEFAULT(eg_loss_options));

// ---- metrics: sums over all that was seen since the last reset, and a number made of them. Nothing here is recorded on tapes.
typedef struct eg_metric eg_metric;
typedef enum eg_curve { EG_ROC, EG_PR } eg_curve;
typedef struct eg_metric_options {
    int canary;
    const char *name;          // its own, such as "accuracy"
    double threshold;          // what counts as 1: above .5 (binary accuracy, precision, recall, F1)
    int64_t k;                 // top-k: 5
    int64_t classes;           // mean IoU, confusion matrix: how many; needed
    int64_t thresholds;        // AUC: 200
    eg_curve curve;            // AUC: EG_ROC
} eg_metric_options;
// Each returns a metric that the caller releases (eg_compile takes the reference over), or NULL.
EAGER_API eg_metric *eg_metric_mean(eg_metric_options options EGI_DEFAULT(eg_metric_options));        // of values: eg_metric_add
EAGER_API eg_metric *eg_metric_sum(eg_metric_options options EGI_DEFAULT(eg_metric_options));
EAGER_API eg_metric *eg_metric_accuracy(eg_metric_options options EGI_DEFAULT(eg_metric_options));    // of the next three the one that the shapes ask for
EAGER_API eg_metric *eg_metric_binary_accuracy(eg_metric_options options EGI_DEFAULT(eg_metric_options));
EAGER_API eg_metric *eg_metric_categorical_accuracy(eg_metric_options options EGI_DEFAULT(eg_metric_options));         // labels one-hot
EAGER_API eg_metric *eg_metric_sparse_categorical_accuracy(eg_metric_options options EGI_DEFAULT(eg_metric_options));  // labels (N...) for (N..., C)
EAGER_API eg_metric *eg_metric_top_k(eg_metric_options options EGI_DEFAULT(eg_metric_options));       // the right one is among the k largest; labels one-hot or not
EAGER_API eg_metric *eg_metric_precision(eg_metric_options options EGI_DEFAULT(eg_metric_options));   // of what was called 1, the part that is
EAGER_API eg_metric *eg_metric_recall(eg_metric_options options EGI_DEFAULT(eg_metric_options));      // of what is 1, the part that was called so
EAGER_API eg_metric *eg_metric_f1(eg_metric_options options EGI_DEFAULT(eg_metric_options));          // their harmonic mean
EAGER_API eg_metric *eg_metric_auc(eg_metric_options options EGI_DEFAULT(eg_metric_options));         // area under the curve, by thresholds from 0 to 1
EAGER_API eg_metric *eg_metric_mean_squared_error(eg_metric_options options EGI_DEFAULT(eg_metric_options));
EAGER_API eg_metric *eg_metric_root_mean_squared_error(eg_metric_options options EGI_DEFAULT(eg_metric_options));
EAGER_API eg_metric *eg_metric_mean_absolute_error(eg_metric_options options EGI_DEFAULT(eg_metric_options));
EAGER_API eg_metric *eg_metric_r2(eg_metric_options options EGI_DEFAULT(eg_metric_options));          // 1 - squared errors / squared distances from the labels' mean
EAGER_API eg_metric *eg_metric_mean_iou(eg_metric_options options EGI_DEFAULT(eg_metric_options));    // class numbers (or scores of one axis more): |both| / |either|, mean over classes
EAGER_API eg_metric *eg_metric_confusion_matrix(eg_metric_options options EGI_DEFAULT(eg_metric_options));   // [label, prediction] counts; its number is the accuracy
// The mean of a loss, or of the values that a function of your own returns.
EAGER_API eg_metric *eg_metric_of(eg_loss *function, eg_metric_options options EGI_DEFAULT(eg_metric_options));
#define EG_METRIC_ACCURACY eg_metric_accuracy()
EAGER_API eg_metric *eg_metric_retain(eg_metric *metric);
EAGER_API void eg_metric_release(eg_metric *metric);                           // NULL is fine
// Takes a batch in; weights (N), or of the values' shape. False on an error, with nothing changed.
typedef struct eg_weight_options { int canary; eg_tensor *weights; } eg_weight_options;
EAGER_API bool eg_metric_update(eg_metric *metric, eg_tensor *labels, eg_tensor *predictions, eg_weight_options options EGI_DEFAULT(eg_weight_options));
// Values, for eg_metric_mean and eg_metric_sum; a plain number is one.
EAGER_API bool eg_metric_add(eg_metric *metric, eg_tensor *values, eg_weight_options options EGI_DEFAULT(eg_weight_options));
EAGER_API double eg_metric_result(eg_metric *metric);                          // 0 while nothing was seen
EAGER_API eg_tensor *eg_metric_tensor(eg_metric *metric);                      // the same as float64: the confusion matrix (C, C), else rank 0
EAGER_API bool eg_metric_reset(eg_metric *metric);
EAGER_API const char *eg_metric_name(eg_metric *metric);
// What it sums, a float64 variable (borrowed).
EAGER_API eg_tensor *eg_metric_state(eg_metric *metric);
#ifndef __cplusplus
#define EGI_LOSS_CALL(function, loss, ...) EGI_CALL(function, loss, EGI_2(__VA_ARGS__), ((eg_loss_options){ .canary = 0, EGI_AFTER_2(__VA_ARGS__) }))
#define eg_loss_per_example(loss, ...) EGI_LOSS_CALL(eg_loss_per_example, loss, __VA_ARGS__)
#define eg_loss_mean(loss, ...) EGI_LOSS_CALL(eg_loss_mean, loss, __VA_ARGS__)
#define EGI_METRIC(function, ...) (function)((eg_metric_options){ .canary = 0, __VA_ARGS__ })
#define eg_metric_mean(...) EGI_METRIC(eg_metric_mean, __VA_ARGS__)
#define eg_metric_sum(...) EGI_METRIC(eg_metric_sum, __VA_ARGS__)
#define eg_metric_accuracy(...) EGI_METRIC(eg_metric_accuracy, __VA_ARGS__)
#define eg_metric_binary_accuracy(...) EGI_METRIC(eg_metric_binary_accuracy, __VA_ARGS__)
#define eg_metric_categorical_accuracy(...) EGI_METRIC(eg_metric_categorical_accuracy, __VA_ARGS__)
#define eg_metric_sparse_categorical_accuracy(...) EGI_METRIC(eg_metric_sparse_categorical_accuracy, __VA_ARGS__)
#define eg_metric_top_k(...) EGI_METRIC(eg_metric_top_k, __VA_ARGS__)
#define eg_metric_precision(...) EGI_METRIC(eg_metric_precision, __VA_ARGS__)
#define eg_metric_recall(...) EGI_METRIC(eg_metric_recall, __VA_ARGS__)
#define eg_metric_f1(...) EGI_METRIC(eg_metric_f1, __VA_ARGS__)
#define eg_metric_auc(...) EGI_METRIC(eg_metric_auc, __VA_ARGS__)
#define eg_metric_mean_squared_error(...) EGI_METRIC(eg_metric_mean_squared_error, __VA_ARGS__)
#define eg_metric_root_mean_squared_error(...) EGI_METRIC(eg_metric_root_mean_squared_error, __VA_ARGS__)
#define eg_metric_mean_absolute_error(...) EGI_METRIC(eg_metric_mean_absolute_error, __VA_ARGS__)
#define eg_metric_r2(...) EGI_METRIC(eg_metric_r2, __VA_ARGS__)
#define eg_metric_mean_iou(...) EGI_METRIC(eg_metric_mean_iou, __VA_ARGS__)
#define eg_metric_confusion_matrix(...) EGI_METRIC(eg_metric_confusion_matrix, __VA_ARGS__)
#define eg_metric_of(...) EGI_METRIC_OF_(__VA_ARGS__, )
#define EGI_METRIC_OF_(function, ...) (eg_metric_of)(function, ((eg_metric_options){ .canary = 0, __VA_ARGS__ }))
#define eg_metric_update(metric, ...) EGI_CALL(eg_metric_update, metric, EGI_2(__VA_ARGS__), ((eg_weight_options){ .canary = 0, EGI_AFTER_2(__VA_ARGS__) }))
#define eg_metric_add(metric, ...) EGI_CALL(eg_metric_add, metric, EGI_1(__VA_ARGS__), ((eg_weight_options){ .canary = 0, EGI_AFTER_1(__VA_ARGS__) }))
#endif

// ---- training
typedef struct eg_dataset eg_dataset;                                          // chapter 11
typedef struct eg_iterator eg_iterator;

// What a model learns by. It takes over the references to the optimizer and the metrics, also where it fails.
// eg_compile(model, eg_adam(), eg_huber, metric, ...); C++: (model, optimizer, loss, metrics, n). Compiling again replaces all of it.
// The loss gets (labels, predictions) and returns their mean, or one value an example (which sample and class weights need of a
// function of your own). Where it is eg_binary_crossentropy, on logits, metrics are given sigmoid(predictions).
EAGER_API bool eg_compile(eg_layer *model, eg_optimizer *optimizer, eg_loss *loss, eg_metric *const *metrics, int n);

// What was learned: the loss of every batch, and for every epoch "loss", the metrics, the same with "val_" where there is
// validation, and "learning_rate". It belongs to the model, until its next eg_fit.
typedef struct eg_history eg_history;
EAGER_API int64_t eg_history_epochs(const eg_history *history);
EAGER_API const char *eg_history_name(const eg_history *history, int i);       // of column i; NULL after the last
EAGER_API double eg_history_value(const eg_history *history, const char *name, int64_t epoch);   // epoch -1 is the last; NaN where there is none
EAGER_API int64_t eg_history_batches(const eg_history *history);
EAGER_API double eg_history_batch_loss(const eg_history *history, int64_t batch);                // -1 is the last
EAGER_API bool eg_history_csv(const eg_history *history, const char *path);    // a line an epoch
EAGER_API bool eg_history_batches_csv(const eg_history *history, const char *path);              // a line a batch: epoch, batch, loss
EAGER_API bool eg_history_svg(const eg_history *history, const char *path);    // curves, to look at in a browser

// What a callback sees of a fit; it may set stop.
typedef struct eg_fit_state {
    eg_layer *model;
    eg_optimizer *optimizer;
    const eg_history *history;
    eg_iterator *iterator;       // stands in the dataset; its position can be saved
    int64_t epoch, epochs;       // from 0; how many
    int64_t batch, batches;      // of this epoch, from 0; how many, -1 while nobody knows
    double loss;                 // of this batch
    bool stop;                   // fit ends after this batch
    const char *reason;          // said where it stops early; NULL: nothing is
} eg_fit_state;
// "loss" and metrics over this epoch so far, "val_..." of the last validation, "learning_rate"; NaN where there is none.
EAGER_API double eg_fit_value(const eg_fit_state *state, const char *name);

// A function of your own: NULL where nothing is to be done. Each runs in a scope of its own, nothing in it is recorded; false ends
// the fit with the error it raised. release(user) is called when the last reference goes.
typedef struct eg_callback eg_callback;
typedef bool eg_callback_function(eg_fit_state *state, void *user);
typedef struct eg_callback_functions {
    eg_callback_function *fit_begin, *epoch_begin, *batch_begin, *batch_end, *epoch_end, *fit_end;
    void (*release)(void *user);
    void *user;
} eg_callback_functions;
EAGER_API eg_callback *eg_callback_new(eg_callback_functions functions);

// One options struct for the callbacks below; setting what one does not have is an error.
typedef enum eg_mode { EG_AUTO, EG_MIN, EG_MAX } eg_mode;
typedef struct eg_callback_options {
    int canary;
    const char *monitor;         // early stopping, checkpoint, plateau: "val_loss", or "loss" without validation
    eg_mode mode;                // whether less of it is better; EG_AUTO: unless it is an accuracy or another score
    double min_delta;            // what counts as better: by more than this (0; plateau 1e-4)
    int64_t patience;            // early stopping: epochs without a better one (EG_ZERO, the default); plateau: 10
    bool restore_best;           // early stopping: the best epoch's weights in the end
    bool save_best;              // checkpoint: only where it is better
    double factor;               // plateau: .1
    int64_t cooldown;            // plateau: epochs to wait after a change: 0
    double min_learning_rate;    // plateau: 0
    bool append;                 // CSV log: goes on with the file that is there
    int64_t every;               // TensorBoard: the loss of every so many batches too; default: of none
    double (*rate)(int64_t epoch, double rate, void *user);   // learning rate: of an epoch, given the one before; needed
    void *user;                  // handed to it
} eg_callback_options;
// Stops when the monitored value has not become better for so many epochs.
EAGER_API eg_callback *eg_callback_early_stopping(eg_callback_options options EGI_DEFAULT(eg_callback_options));
// Saves the weights (eg_save_weights) after an epoch. In the path {epoch}, {val_loss} and other names stand for the numbers.
EAGER_API eg_callback *eg_callback_checkpoint(const char *path, eg_callback_options options EGI_DEFAULT(eg_callback_options));
// Curves for TensorBoard: runs folder/train and folder/validation.
EAGER_API eg_callback *eg_callback_tensorboard(const char *folder, eg_callback_options options EGI_DEFAULT(eg_callback_options));
EAGER_API eg_callback *eg_callback_csv(const char *path, eg_callback_options options EGI_DEFAULT(eg_callback_options));           // a line after every epoch
EAGER_API eg_callback *eg_callback_learning_rate(eg_callback_options options EGI_DEFAULT(eg_callback_options));                   // set before every epoch
EAGER_API eg_callback *eg_callback_plateau(eg_callback_options options EGI_DEFAULT(eg_callback_options));                         // lowers the learning rate
EAGER_API eg_callback *eg_callback_stop_on_nan(void);                          // when a batch's loss is no finite number
EAGER_API eg_callback *eg_callback_retain(eg_callback *callback);
EAGER_API void eg_callback_release(eg_callback *callback);                     // NULL is fine

typedef enum eg_progress { EG_PROGRESS_DEFAULT, EG_PROGRESS_BAR, EG_PROGRESS_LINES } eg_progress;      // a bar on a terminal, else a line an epoch
typedef struct eg_class_weights { int count; const double *weights; } eg_class_weights;
typedef struct eg_callbacks { int count; eg_callback *const *list; } eg_callbacks;
typedef struct eg_fit_options {
    int canary;
    int64_t epochs;                        // 1
    int64_t initial_epoch;                 // to go on with: 0
    int64_t steps_per_epoch;               // batches; default: to the dataset's end. Needed where it has none
    eg_dataset *validation;                // after every epoch (borrowed)
    int64_t validation_steps;              // default: to its end
    int64_t validation_every;              // after so many epochs: 1
    eg_callbacks callbacks;                // EG_CALLBACKS(a, b), whose references are taken over
    eg_class_weights class_weights;        // EG_CLASS_WEIGHTS(1, 2.5): of the labels' classes 0, 1 ...
    int inputs;                            // of the model: how many of an element's components: 1
    bool quiet;                            // prints nothing
    eg_progress progress;
    int64_t batch_size;                    // eg_fit_arrays: 32
    bool no_shuffle;                       // eg_fit_arrays
    eg_tensor *sample_weights;             // eg_fit_arrays: (N)
    eg_tensor *validation_x, *validation_y;    // eg_fit_arrays: instead of a dataset
} eg_fit_options;
// Trains on a dataset of batches (x, y), or (x, y, sample weights) (borrowed). Prints the progress through eg_set_printer's hook, or to
// stdout. On an error NULL: the message names epoch and batch, and the model is as the last whole batch left it.
EAGER_API const eg_history *eg_fit(eg_layer *model, eg_dataset *data, eg_fit_options options EGI_DEFAULT(eg_fit_options));
// The same on arrays, whose rows are shuffled anew in every epoch.
EAGER_API const eg_history *eg_fit_arrays(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_fit_options options EGI_DEFAULT(eg_fit_options));
typedef struct eg_evaluate_options {
    int canary;
    int64_t steps;                         // batches; default: to the dataset's end
    int64_t batch_size;                    // of arrays: 32
    int inputs;                            // 1
    bool quiet;
    eg_progress progress;
} eg_evaluate_options;
// The loss, as it is without training; NaN with an error. eg_model_result has the metrics.
EAGER_API double eg_evaluate(eg_layer *model, eg_dataset *data, eg_evaluate_options options EGI_DEFAULT(eg_evaluate_options));
EAGER_API double eg_evaluate_arrays(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_evaluate_options options EGI_DEFAULT(eg_evaluate_options));
// The model's outputs for all rows of x, or for all elements of a dataset, one behind the other. Needs no eg_compile.
EAGER_API eg_tensor *eg_predict(eg_layer *model, eg_tensor *x, eg_evaluate_options options EGI_DEFAULT(eg_evaluate_options));
EAGER_API eg_tensor *eg_predict_dataset(eg_layer *model, eg_dataset *data, eg_evaluate_options options EGI_DEFAULT(eg_evaluate_options));
// One step on one batch; its loss, or NaN with an error. Metrics go on from where they were: eg_model_reset_metrics begins anew.
typedef struct eg_batch_step_options { int canary; eg_tensor *sample_weights; eg_class_weights class_weights; } eg_batch_step_options;
EAGER_API double eg_train_on_batch(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_batch_step_options options EGI_DEFAULT(eg_batch_step_options));
EAGER_API double eg_test_on_batch(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_batch_step_options options EGI_DEFAULT(eg_batch_step_options));
// "loss", "accuracy", "val_loss" ... of the latest fit, evaluation or step; NaN where there is none.
EAGER_API double eg_model_result(eg_layer *model, const char *name);
EAGER_API bool eg_model_reset_metrics(eg_layer *model);
EAGER_API eg_optimizer *eg_model_optimizer(eg_layer *model);                   // borrowed, as the next two; NULL before eg_compile
EAGER_API eg_metric *eg_model_metric(eg_layer *model, int i);                  // NULL after the last
EAGER_API const eg_history *eg_model_history(eg_layer *model);                 // of the latest fit, also of one that failed
#ifndef __cplusplus
#define eg_compile(model, optimizer, ...) EGI_COMPILE_(model, optimizer, __VA_ARGS__, )
#define EGI_COMPILE_(model, optimizer, loss, ...) \
    (eg_compile)(model, optimizer, loss, (eg_metric *[]){ __VA_ARGS__ NULL }, (int)(sizeof((eg_metric *[]){ __VA_ARGS__ NULL }) / sizeof(eg_metric *)) - 1)
#define EG_CALLBACKS(...) ((eg_callbacks){ (int)(sizeof((eg_callback *[]){ __VA_ARGS__ }) / sizeof(eg_callback *)), (eg_callback *[]){ __VA_ARGS__ } })
#define EG_CLASS_WEIGHTS(...) ((eg_class_weights){ (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (const double[]){ __VA_ARGS__ } })
#define EGI_CALLBACK_(function, ...) (function)((eg_callback_options){ .canary = 0, __VA_ARGS__ })
#define EGI_CALLBACK_PATH_(function, path, ...) (function)(path, ((eg_callback_options){ .canary = 0, __VA_ARGS__ }))
#define eg_callback_early_stopping(...) EGI_CALLBACK_(eg_callback_early_stopping, __VA_ARGS__)
#define eg_callback_checkpoint(...) EGI_CALLBACK_PATH_(eg_callback_checkpoint, __VA_ARGS__, )
#define eg_callback_tensorboard(...) EGI_CALLBACK_PATH_(eg_callback_tensorboard, __VA_ARGS__, )
#define eg_callback_csv(...) EGI_CALLBACK_PATH_(eg_callback_csv, __VA_ARGS__, )
#define eg_callback_learning_rate(...) EGI_CALLBACK_(eg_callback_learning_rate, __VA_ARGS__)
#define eg_callback_plateau(...) EGI_CALLBACK_(eg_callback_plateau, __VA_ARGS__)
#define EGI_FIT_2_(function, type, model, a, ...) (function)(model, a, ((type){ .canary = 0, __VA_ARGS__ }))
#define EGI_FIT_3_(function, type, model, a, b, ...) (function)(model, a, b, ((type){ .canary = 0, __VA_ARGS__ }))
#define eg_fit(model, ...) EGI_FIT_2_(eg_fit, eg_fit_options, model, __VA_ARGS__, )
#define eg_fit_arrays(model, x, ...) EGI_FIT_3_(eg_fit_arrays, eg_fit_options, model, x, __VA_ARGS__, )
#define eg_evaluate(model, ...) EGI_FIT_2_(eg_evaluate, eg_evaluate_options, model, __VA_ARGS__, )
#define eg_evaluate_arrays(model, x, ...) EGI_FIT_3_(eg_evaluate_arrays, eg_evaluate_options, model, x, __VA_ARGS__, )
#define eg_predict(model, ...) EGI_FIT_2_(eg_predict, eg_evaluate_options, model, __VA_ARGS__, )
#define eg_predict_dataset(model, ...) EGI_FIT_2_(eg_predict_dataset, eg_evaluate_options, model, __VA_ARGS__, )
#define eg_train_on_batch(model, x, ...) EGI_FIT_3_(eg_train_on_batch, eg_batch_step_options, model, x, __VA_ARGS__, )
#define eg_test_on_batch(model, x, ...) EGI_FIT_3_(eg_test_on_batch, eg_batch_step_options, model, x, __VA_ARGS__, )
#endif

//# 11  DATASETS ---------------------------------------------------------------
// Idea: a pipeline of stages, each of which asks the one before it for the next
// element; nothing is read before it is needed. Read first: 3.

typedef struct eg_dataset eg_dataset;
typedef struct eg_iterator eg_iterator;

// An element is 1 to 8 tensors, its components: (image, label), say.
#define EG_MAX_COMPONENTS 8
// Cardinalities that are no numbers.
#define EG_INFINITE (-1)
#define EG_UNKNOWN (-2)
// What an iterator answers: an element, the end (which is no error), or an error.
typedef enum eg_status { EG_FAILED = -1, EG_END_OF_SEQUENCE = 0, EG_NEXT = 1 } eg_status;
// What is known of a component before it is read; what is not: EG_NO_DTYPE, rank -1, a dimension of -1.
typedef struct eg_spec { eg_dtype dtype; eg_shape shape; } eg_spec;

// Every function below returns a dataset that the caller releases, or NULL. A dataset given to another as its ingredient
// (eg_dataset_batch(d, 32)) goes over to it, also when that fails; to use one twice, retain it first. Nothing is read before
// an iterator asks. Elements are made on the CPU and reach the device of the thread that asks; tapes record none of it.
EAGER_API eg_dataset *eg_dataset_retain(eg_dataset *d);
EAGER_API void eg_dataset_release(eg_dataset *d);             // NULL is fine

// Sources.
EAGER_API eg_dataset *eg_dataset_from_tensors_of(eg_tensor *const *tensors, int n);   // one element, of these components
EAGER_API eg_dataset *eg_dataset_from_slices_of(eg_tensor *const *tensors, int n);    // element i: row i of each; as many rows in all
EAGER_API eg_dataset *eg_dataset_from_windows(eg_tensor *x, int64_t size, int64_t shift);   // element i: rows i shift to i shift + size - 1; whole windows only
EAGER_API eg_dataset *eg_dataset_range(int64_t start, int64_t stop, int64_t step);    // int64 scalars from start up (or down) to, without, stop
// Sets out[0 .. n-1] to element i (0, 1, ...; at 0 it begins anew) and answers EG_NEXT, EG_END_OF_SEQUENCE or, with an error, EG_FAILED.
typedef eg_status eg_generator(int64_t i, eg_tensor **out, void *user);
// specs: of its n components, checked at each element; NULL: not known.
EAGER_API eg_dataset *eg_dataset_from_generator(eg_generator *f, void *user, int n, const eg_spec *specs);

// Transformations. Callbacks run in a scope of their own that keeps only their results. Random numbers in them depend on the
// seed, the element's index and the epoch alone: they are the same on any number of threads. An error in one says its place:
// "eg_dataset_map (stage 3 of 5, element 17): eg_matmul: ...".
typedef struct eg_map_options {
    int canary;
    int threads;               // so many call the function at once; the order stays. Default: this thread alone
    int components;            // of the results: default as many as it is given (eg_dataset_map_one: 1)
    const eg_spec *specs;      // of the results, checked at each element; default: not known
    uint64_t seed;             // of the random numbers in it; default: drawn from this thread's generator
} eg_map_options;
// Sets out[0 .. components-1] from in[0 ..]; false with an error.
typedef bool eg_map_function(eg_tensor *const *in, eg_tensor **out, void *user);
EAGER_API eg_dataset *eg_dataset_map(eg_dataset *d, eg_map_function *f, void *user, eg_map_options options EGI_DEFAULT(eg_map_options));
// The same for a function that returns the one component of its result. In C eg_dataset_map takes both kinds of function.
EAGER_API eg_dataset *eg_dataset_map_one(eg_dataset *d, eg_function1 *f, void *user, eg_map_options options EGI_DEFAULT(eg_map_options));
// Only the elements for which keep, a tensor of one element, is not 0.
EAGER_API eg_dataset *eg_dataset_filter(eg_dataset *d, eg_function1 *keep, void *user);
typedef struct eg_batch_options {
    int canary;
    bool drop_remainder;       // leave out a last batch of fewer elements
    double padding_value;      // eg_dataset_padded_batch: default 0
} eg_batch_options;
// n elements stacked along a new first axis. Shapes that differ are an error.
EAGER_API eg_dataset *eg_dataset_batch(eg_dataset *d, int64_t n, eg_batch_options options EGI_DEFAULT(eg_batch_options));
// The same with each axis filled up at its end to the longest of the batch.
EAGER_API eg_dataset *eg_dataset_padded_batch(eg_dataset *d, int64_t n, eg_batch_options options EGI_DEFAULT(eg_batch_options));
EAGER_API eg_dataset *eg_dataset_unbatch(eg_dataset *d);      // the rows of each element, one by one
typedef struct eg_shuffle_options {
    int canary;
    uint64_t seed;             // default: drawn from this thread's generator, so that eg_seed decides
    bool no_reshuffle;         // the same order in every epoch
} eg_shuffle_options;
// Each element is drawn from the next `buffer` ones: as many as there are elements mix all evenly. Every iterator, and every
// round of eg_dataset_repeat, has an order of its own that the seed decides.
EAGER_API eg_dataset *eg_dataset_shuffle(eg_dataset *d, int64_t buffer, eg_shuffle_options options EGI_DEFAULT(eg_shuffle_options));
EAGER_API eg_dataset *eg_dataset_repeat(eg_dataset *d, int64_t count);        // count rounds; -1: without end
EAGER_API eg_dataset *eg_dataset_take(eg_dataset *d, int64_t n);              // the first n; -1: all
EAGER_API eg_dataset *eg_dataset_skip(eg_dataset *d, int64_t n);              // all but the first n; -1: none are left
EAGER_API eg_dataset *eg_dataset_enumerate(eg_dataset *d);                    // (0, 1, 2 ... as int64, components)
EAGER_API eg_dataset *eg_dataset_zip_of(eg_dataset *const *list, int n);      // the components of all, as long as the shortest
EAGER_API eg_dataset *eg_dataset_concatenate(eg_dataset *first, eg_dataset *second);    // of one structure
// Makes a dataset of each element and reads `cycle` of them at a time in turns, `block` elements each turn.
typedef struct eg_interleave_options {
    int canary;
    int64_t cycle, block;      // default 4 and 1
    int components;            // of the datasets it makes: default 1
    const eg_spec *specs;      // of them; default: not known
    uint64_t seed;             // of random numbers in the function, as for map
} eg_interleave_options;
typedef eg_dataset *eg_dataset_function(eg_tensor *const *in, void *user);
EAGER_API eg_dataset *eg_dataset_interleave(eg_dataset *d, eg_dataset_function *f, void *user, eg_interleave_options options EGI_DEFAULT(eg_interleave_options));
// Keeps the elements in memory once they were read to the end; later iterators read them there.
EAGER_API eg_dataset *eg_dataset_cache(eg_dataset *d);
// A thread of its own reads up to n elements ahead. Errors come at their place.
EAGER_API eg_dataset *eg_dataset_prefetch(eg_dataset *d, int64_t n);

// What is known without reading.
EAGER_API int eg_dataset_components(eg_dataset *d);                           // -1 for NULL
EAGER_API eg_spec eg_dataset_spec(eg_dataset *d, int component);
EAGER_API int64_t eg_dataset_cardinality(eg_dataset *d);                      // or EG_INFINITE, EG_UNKNOWN
// The stages in words, "slices > shuffle 1000 > batch 32", into text as eg_format does.
EAGER_API int64_t eg_dataset_format(eg_dataset *d, char *text, size_t capacity);

// An iterator stands in a dataset; several may stand in one, each at its place. One thread at a time uses it. It keeps the
// dataset alive (d stays the caller's); the caller releases it.
EAGER_API eg_iterator *eg_iterator_new(eg_dataset *d);
// Writes the next element to out[0 .. components-1] (room for EG_MAX_COMPONENTS) and NULL behind it. The tensors belong to the
// innermost scope. After the end it stays at the end; after an error it can only be released, restored or initialized.
EAGER_API eg_status eg_iterator_next(eg_iterator *it, eg_tensor **out);
EAGER_API eg_iterator *eg_iterator_retain(eg_iterator *it);
EAGER_API void eg_iterator_release(eg_iterator *it);          // NULL is fine
// Two kinds that have no dataset yet; to ask for an element before one is given is an error. The first makes its datasets
// from what eg_iterator_feed gives it, the second takes any dataset with these components by eg_iterator_set.
typedef eg_dataset *eg_dataset_maker(eg_tensor *const *feed, void *user);
EAGER_API eg_iterator *eg_iterator_initializable(eg_dataset_maker *make, void *user);
EAGER_API bool eg_iterator_feed(eg_iterator *it, eg_tensor *const *feed);
EAGER_API eg_iterator *eg_iterator_from_specs(const eg_spec *specs, int n);
EAGER_API bool eg_iterator_set(eg_iterator *it, eg_dataset *d);               // from d's start; d stays the caller's
// An iterator's handle, an int64 scalar, is a tensor by which one of several is chosen while a program runs.
EAGER_API eg_tensor *eg_iterator_handle(eg_iterator *it);
EAGER_API eg_status eg_iterator_next_by_handle(eg_tensor *handle, eg_tensor **out);
// Where the iterator stands, as a uint8 vector to be saved: how many elements were taken, and the seeds. An iterator over
// datasets built alike (in another process, say), restored from it, goes on with the same elements, bit by bit. It gets there by
// reading again what cannot be computed: ranges, slices, known rounds of repeat and maps are stepped over, a shuffled buffer is
// filled again, while files, generators, filters, unbatch and interleave run again from the epoch's start.
EAGER_API eg_tensor *eg_iterator_position(eg_iterator *it);
EAGER_API bool eg_iterator_restore(eg_iterator *it, eg_tensor *position);

#ifdef __cplusplus
}
template <class... T> static inline eg_dataset *egi_datasets_cpp(eg_dataset *(*make)(eg_tensor *const *, int), T... x) {
    eg_tensor *const list[] = {x...};
    return make(list, static_cast<int>(sizeof...(x)));
}
template <class... T> static inline eg_dataset *egi_zip_cpp(T... d) {
    eg_dataset *const list[] = {d...};
    return eg_dataset_zip_of(list, static_cast<int>(sizeof...(d)));
}
#define eg_dataset_from_tensors(...) egi_datasets_cpp(eg_dataset_from_tensors_of, __VA_ARGS__)
#define eg_dataset_from_slices(...) egi_datasets_cpp(eg_dataset_from_slices_of, __VA_ARGS__)
#define eg_dataset_zip(...) egi_zip_cpp(__VA_ARGS__)
extern "C" {
#else
#define eg_dataset_from_tensors(...) eg_dataset_from_tensors_of(EG_TENSORS(__VA_ARGS__))
#define eg_dataset_from_slices(...) eg_dataset_from_slices_of(EG_TENSORS(__VA_ARGS__))
#define eg_dataset_zip(...) eg_dataset_zip_of((eg_dataset *[]){ __VA_ARGS__ }, (int)(sizeof((eg_dataset *[]){ __VA_ARGS__ }) / sizeof(eg_dataset *)))
#define EGI_DATASET_OPTIONS_(function, type, d, n, ...) (function)(d, n, ((type){ .canary = 0, __VA_ARGS__ }))
#define eg_dataset_batch(d, ...) EGI_DATASET_OPTIONS_(eg_dataset_batch, eg_batch_options, d, __VA_ARGS__, )
#define eg_dataset_padded_batch(d, ...) EGI_DATASET_OPTIONS_(eg_dataset_padded_batch, eg_batch_options, d, __VA_ARGS__, )
#define eg_dataset_shuffle(d, ...) EGI_DATASET_OPTIONS_(eg_dataset_shuffle, eg_shuffle_options, d, __VA_ARGS__, )
#define EGI_DATASET_CALL_(function, type, d, f, user, ...) (function)(d, f, user, ((type){ .canary = 0, __VA_ARGS__ }))
#define EGI_DATASET_MAP_(d, f, user, ...) \
    EGI_DATASET_CALL_(_Generic((f), eg_tensor *(*)(eg_tensor *const *, void *): eg_dataset_map_one, default: eg_dataset_map), eg_map_options, d, f, user, __VA_ARGS__)
#define eg_dataset_map(d, f, ...) EGI_DATASET_MAP_(d, f, __VA_ARGS__, )
#define eg_dataset_map_one(d, f, ...) EGI_DATASET_CALL_(eg_dataset_map_one, eg_map_options, d, f, __VA_ARGS__, )
#define eg_dataset_interleave(d, f, ...) EGI_DATASET_CALL_(eg_dataset_interleave, eg_interleave_options, d, f, __VA_ARGS__, )
#endif

//# 12  FILES ------------------------------------------------------------------
// Idea: named tensors in the formats that others read: .npy, .npz, safetensors.
// A checkpoint is such a file with all that training needs to go on. Read first: 9.

// An archive is a list of named tensors, with texts beside them: what a file holds, or shall hold. Whoever made it releases it.
typedef struct eg_archive eg_archive;
EAGER_API eg_archive *eg_archive_new(void);
EAGER_API eg_archive *eg_archive_retain(eg_archive *archive);
EAGER_API void eg_archive_release(eg_archive *archive);                       // NULL is fine
// Adds a tensor, of a variable the values it has now; a name that is there already is an error.
EAGER_API bool eg_archive_add(eg_archive *archive, const char *name, eg_tensor *x);
#define eg_archive_add(archive, name, x) EGI_CALL(eg_archive_add, archive, name, EG_T(x))
EAGER_API eg_tensor *eg_archive_get(eg_archive *archive, const char *name);   // NULL and an error where there is none
EAGER_API bool eg_archive_has(eg_archive *archive, const char *name);
EAGER_API int64_t eg_archive_count(eg_archive *archive);
EAGER_API const char *eg_archive_name(eg_archive *archive, int64_t i);        // of tensor i, in the file's order; NULL out of range
// A text beside the tensors (safetensors' metadata; of .npz files a member __metadata__). NULL as value takes it away.
EAGER_API bool eg_archive_set_text(eg_archive *archive, const char *key, const char *value);
EAGER_API const char *eg_archive_text(eg_archive *archive, const char *key);  // NULL, and no error, where there is none; valid until it changes

// Files take their place at once, when they are whole and on the disk; one writer of a path at a time (it writes to path.part).
// What is read is checked, an error names the file and the byte. Integers of other widths are read as the next wider of ours: int8,
// int16 and uint16 as int32, uint32 as int64, uint64 as int64 where its values fit.
EAGER_API bool eg_save_npy(eg_tensor *x, const char *path);
#define eg_save_npy(x, path) EGI_CALL(eg_save_npy, EG_T(x), path)
EAGER_API eg_tensor *eg_load_npy(const char *path);
EAGER_API bool eg_save_npz(eg_archive *archive, const char *path);            // a zip file of .npy files, not compressed, as numpy.savez makes
EAGER_API eg_archive *eg_load_npz(const char *path);                          // compressed ones need EAGER_ZLIB; members that are no .npy are left out
EAGER_API bool eg_save_safetensors(eg_archive *archive, const char *path);
EAGER_API eg_archive *eg_load_safetensors(const char *path);
// By the path's ending: .npz, .safetensors.
EAGER_API bool eg_archive_save(eg_archive *archive, const char *path);
EAGER_API eg_archive *eg_archive_load(const char *path);

// The weights of a layer or model, named by their paths ("dense/kernel"): .safetensors or .npz.
EAGER_API bool eg_save_weights(eg_layer *layer, const char *path);
// Reads them back into weights that exist (call the model or eg_layer_build it before). All or nothing: what is missing in the file, what
// the model has no place for and what has another shape is told in one error. Floating dtypes are converted. A file of Keras's paths
// fits as it is ("lstm/lstm_cell/kernel" is our "lstm/kernel"); .torch reads PyTorch's names and layouts: Linear, Conv, Embedding,
// BatchNorm, LayerNorm, RNN, LSTM, GRU, MultiheadAttention; a Linear behind a flattened image is turned from (C,H,W) to (H,W,C).
typedef struct eg_load_options {
    int canary;
    bool partial;                // weights that the file has not stay as they are, and it may hold more
    bool skip_mismatch;          // so do weights whose shape in the file is another
    bool torch;                  // names and layouts are PyTorch's state_dict's
    const char *prefix;          // only names that begin so are read, and are looked up without it: "model."
    const char *const *names;    // pairs, ours and theirs, NULL at the end: EG_NAMES("dense", "fc1", "lstm", "rnn@0", "out/kernel", "head.W").
                                 // A layer's path or a weight's; rnn@1 is the second layer of a PyTorch RNN, rnn@0_reverse its way back
} eg_load_options;
EAGER_API bool eg_load_weights(eg_layer *layer, const char *path, eg_load_options options EGI_DEFAULT(eg_load_options));
// The same from and to an archive.
EAGER_API bool eg_archive_add_weights(eg_archive *archive, eg_layer *layer);
EAGER_API bool eg_archive_get_weights(eg_archive *archive, eg_layer *layer, eg_load_options options EGI_DEFAULT(eg_load_options));
#ifndef __cplusplus
#define EG_NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define eg_load_weights(layer, ...) EGI_LOAD_WEIGHTS(eg_load_weights, layer, __VA_ARGS__, )
#define eg_archive_get_weights(archive, ...) EGI_LOAD_WEIGHTS(eg_archive_get_weights, archive, __VA_ARGS__, )
#define EGI_LOAD_WEIGHTS(function, a, b, ...) EGI_CALL(function, a, b, ((eg_load_options){ .canary = 0, __VA_ARGS__ }))
#endif

//# 13  SUMMARIES AND EXCHANGE -------------------------------------------------
// Idea: what people and other programs look at: event files for TensorBoard,
// pictures, tensors lent to other libraries. Read first: 12.

// ---- TensorBoard: `tensorboard --logdir FOLDER` shows what is written here

// Writes an event file in the folder, which is made where it is missing. The caller releases it. One thread at a time.
typedef struct eg_summary_writer eg_summary_writer;
EAGER_API eg_summary_writer *eg_summary_writer_open(const char *folder);
// A further reference, and one given back; the last one closes the file. NULL is fine.
EAGER_API eg_summary_writer *eg_summary_writer_retain(eg_summary_writer *writer);
EAGER_API void eg_summary_writer_release(eg_summary_writer *writer);
// Every summary is handed to the system as it is written, so a crash of the program loses none. flush waits until the disk has it;
// close ends the file: later summaries to it are errors.
EAGER_API bool eg_summary_writer_flush(eg_summary_writer *writer);
EAGER_API bool eg_summary_writer_close(eg_summary_writer *writer);
EAGER_API const char *eg_summary_writer_path(eg_summary_writer *writer);       // of its file; "" for NULL

// This thread's default writer (a reference is taken), to which summaries go; NULL, as at the start: nothing is written.
EAGER_API void eg_summary_set_writer(eg_summary_writer *writer);
// The step that summaries of this thread belong to; a negative one is none, as at the start.
EAGER_API void eg_summary_set_step(int64_t step);
EAGER_API int64_t eg_summary_step(void);
// Summaries to the default writer are written only at steps that this divides (1 at the start: all). An error below 1.
EAGER_API bool eg_summary_every(int64_t steps);
// Whether summaries to the default writer are written at this step: for what is costly to compute only to be shown.
EAGER_API bool eg_summary_due(void);

typedef struct eg_summary_options {
    int canary;
    eg_summary_writer *writer;   // instead of the default one
    int64_t step;                // instead of eg_summary_set_step's; step 0 is EG_ZERO
    int buckets;                 // histogram: 30
    int images;                  // image: how many of a batch are shown: 3
} eg_summary_options;
// Each is true where nothing is to be written, too; without a step (and with a writer) it is an error.
// A number, of a tensor of one element.
EAGER_API bool eg_summary_scalar(const char *tag, eg_tensor *value, eg_summary_options options EGI_DEFAULT(eg_summary_options));
// The distribution of x's elements; a NaN or an infinity among them is an error.
EAGER_API bool eg_summary_histogram(const char *tag, eg_tensor *x, eg_summary_options options EGI_DEFAULT(eg_summary_options));
// x as eg_encode_png takes it, or a batch (N, H, W, C) of such, shown as tag/0, tag/1, ...
EAGER_API bool eg_summary_image(const char *tag, eg_tensor *x, eg_summary_options options EGI_DEFAULT(eg_summary_options));
EAGER_API bool eg_summary_text(const char *tag, const char *text, eg_summary_options options EGI_DEFAULT(eg_summary_options));   // Markdown
// What the tape has recorded, as TensorBoard's graph. Needs no step. Ask before the tape has given its gradients: then it is empty.
EAGER_API bool eg_summary_graph(eg_tape *tape, eg_summary_options options EGI_DEFAULT(eg_summary_options));
#ifndef __cplusplus
#define EGI_SUMMARY_OPTIONS(...) ((eg_summary_options){ .canary = 0, __VA_ARGS__ })
#define eg_summary_scalar(tag, ...) EGI_CALL(eg_summary_scalar, tag, EGI_1(__VA_ARGS__), EGI_SUMMARY_OPTIONS(EGI_AFTER_1(__VA_ARGS__)))
#define eg_summary_histogram(tag, ...) EGI_CALL(eg_summary_histogram, tag, EGI_1(__VA_ARGS__), EGI_SUMMARY_OPTIONS(EGI_AFTER_1(__VA_ARGS__)))
#define eg_summary_image(tag, ...) EGI_CALL(eg_summary_image, tag, EGI_1(__VA_ARGS__), EGI_SUMMARY_OPTIONS(EGI_AFTER_1(__VA_ARGS__)))
#define eg_summary_text(tag, ...) EGI_SUMMARY_RAW(eg_summary_text, tag, __VA_ARGS__, )
#define eg_summary_graph(...) EGI_SUMMARY_GRAPH(__VA_ARGS__, )
#define EGI_SUMMARY_RAW(function, tag, x, ...) EGI_CALL(function, tag, x, EGI_SUMMARY_OPTIONS(__VA_ARGS__))
#define EGI_SUMMARY_GRAPH(tape, ...) EGI_CALL(eg_summary_graph, tape, EGI_SUMMARY_OPTIONS(__VA_ARGS__))
#endif

// ---- pictures

// A picture as the bytes of a PNG file: (H, W) or (H, W, C) with C = 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA; uint8, bool (black and
// white) or floating from 0 to 1 (beyond that it is cut; NaN is 0).
EAGER_API eg_tensor *eg_encode_png(eg_tensor *x);
EAGER_API bool eg_save_png(const char *path, eg_tensor *x);
// The pictures (N, H, W, C) on one sheet, columns beside each other, a pixel of zeros between them. Differentiable.
EAGER_API eg_tensor *eg_image_grid(eg_tensor *images, int64_t columns);
// The bytes of a file, as a uint8 vector.
EAGER_API eg_tensor *eg_read_file(const char *path);
// The picture that these bytes of a PNG or JPEG file hold: uint8 (H, W, C). Needs EAGER_IMAGE, else it is an error that says so.
typedef struct eg_decode_options { int canary; int channels; } eg_decode_options;      // 1, 3 or 4: converts; default: as the file has it
EAGER_API eg_tensor *eg_decode_png(eg_tensor *bytes, eg_decode_options options EGI_DEFAULT(eg_decode_options));
EAGER_API eg_tensor *eg_decode_jpeg(eg_tensor *bytes, eg_decode_options options EGI_DEFAULT(eg_decode_options));   // 1 or 3 channels
EAGER_API eg_tensor *eg_decode_image(eg_tensor *bytes, eg_decode_options options EGI_DEFAULT(eg_decode_options));  // whichever it is
#ifndef __cplusplus
#define EGI_DECODE(function, bytes, ...) EGI_CALL(function, bytes, ((eg_decode_options){ .canary = 0, __VA_ARGS__ }))
#define EGI_DECODE_(function, ...) EGI_DECODE(function, __VA_ARGS__, )
#define eg_decode_png(...) EGI_DECODE_(eg_decode_png, __VA_ARGS__)
#define eg_decode_jpeg(...) EGI_DECODE_(eg_decode_jpeg, __VA_ARGS__)
#define eg_decode_image(...) EGI_DECODE_(eg_decode_image, __VA_ARGS__)
#endif

// ---- records: TFRecord files and tf.Example

// Writes a TFRecord file anew, under a temporary name until it is closed. Release closes it; close says, too, whether all of it was
// written. One thread at a time.
typedef struct eg_record_writer eg_record_writer;
EAGER_API eg_record_writer *eg_record_writer_open(const char *path);
EAGER_API bool eg_record_writer_write(eg_record_writer *writer, const void *data, int64_t size);
EAGER_API bool eg_record_writer_close(eg_record_writer *writer);
EAGER_API eg_record_writer *eg_record_writer_retain(eg_record_writer *writer);
EAGER_API void eg_record_writer_release(eg_record_writer *writer);
// A tf.Example of n named features as a uint8 vector, a record to write. uint8 becomes bytes, other integers and bool int64,
// floating dtypes float32; the shape is not kept.
EAGER_API eg_tensor *eg_example_serialize(const char *const *names, eg_tensor *const *values, int n);
// What to find in a tf.Example: {"label", EG_INT64} is a number, {"pixels", EG_UINT8, EG_SHAPE(28, 28, 1)} bytes of that shape.
typedef struct eg_feature {
    const char *name;
    eg_dtype dtype;              // EG_FLOAT32, EG_INT64 or EG_UINT8 (bytes), as the record has it
    eg_shape shape;              // one dimension may be -1. EG_SCALAR of bytes: a vector of as many as there are
    eg_tensor *missing;          // the value where the record has no such feature; NULL: it must have it
} eg_feature;
// Reads n features of a record (a uint8 vector) into out. False and all NULL on an error: one is missing, of another type or size.
EAGER_API bool eg_example_parse(eg_tensor *record, const eg_feature *features, int n, eg_tensor **out);

// ---- DLPack: tensors lent to and borrowed from other libraries, without a copy

// The structs of DLPack 1.x (dlpack.h calls them DLTensor, DLManagedTensorVersioned, DLManagedTensor: cast the pointers).
typedef struct eg_dlpack_tensor {
    void *data;
    struct { int32_t type, id; } device;                   // type: 1 CPU, 2 CUDA
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;  // code: 0 integer, 1 unsigned, 2 float, 4 bfloat, 6 bool
    int64_t *shape, *strides;                              // strides in elements; NULL: row-major
    uint64_t byte_offset;
} eg_dlpack_tensor;
typedef struct eg_dlpack {                                 // "dltensor_versioned"
    struct { uint32_t major, minor; } version;
    void *context;
    void (*deleter)(struct eg_dlpack *self);               // whoever got it calls this once, when done with it
    uint64_t flags;                                        // 1: read only
    eg_dlpack_tensor tensor;
} eg_dlpack;
typedef struct eg_dlpack_legacy {                          // "dltensor": before version 1
    eg_dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct eg_dlpack_legacy *self);
} eg_dlpack_legacy;
// Lends x, marked as read only: its memory lives until the deleter is called, from any thread. Of a variable: its value now.
EAGER_API eg_dlpack *eg_to_dlpack(eg_tensor *x);
EAGER_API eg_dlpack_legacy *eg_to_dlpack_legacy(eg_tensor *x);     // which cannot say that it must not be written
// Borrows what another library lends (it must stay unchanged meanwhile) and calls the deleter when the last user is gone, or at
// once where it fails: another major version, dtype or device, sizes that overflow. Data that is not aligned for its dtype is copied.
EAGER_API eg_tensor *eg_from_dlpack(eg_dlpack *borrowed);
EAGER_API eg_tensor *eg_from_dlpack_legacy(eg_dlpack_legacy *borrowed);

//# 14  DEVICES AND BACKENDS ---------------------------------------------------
// Idea: where a tensor's memory is and who computes there. Read first: 3.

// Makes new tensors on this device ("cpu:0", "gpu:0") from now on in this thread. False and an error if it is not there.
EAGER_API bool eg_set_device(const char *device);
// eg_with_device("gpu:0"); does so for the rest of the block, however that is left. Where there is no such device, that is an
// error and the device stays.
typedef struct egi_device_scope { void *former; } egi_device_scope;
EAGER_API egi_device_scope egi_device_enter(const char *device);
EAGER_API void egi_device_leave(egi_device_scope *scope);
// How many devices of a kind ("cpu", "gpu") there are; 0 is no error.
EAGER_API int eg_device_count(const char *kind);
// A copy on that device, with a gradient that comes back; x itself if it is there. Counted in eg_memory().device_copies.
EAGER_API eg_tensor *eg_to(eg_tensor *x, const char *device);
EAGER_API eg_tensor *eg_cpu(eg_tensor *x);                                     // eg_to(x, "cpu:0")
EAGER_API eg_tensor *eg_gpu(eg_tensor *x);                                     // eg_to(x, "gpu:0")
// A GPU works on while the program goes on, until a value is read. This waits for all devices. What only they could notice
// (an index out of range) is an error here or at the next read, with the op's name; later ops may have run by then. False then.
EAGER_API bool eg_synchronize(void);
// What float32 products on a GPU may be rounded to inside, for speed: by default nothing; TF32 keeps 10 bits, bfloat16 7.
typedef enum eg_precision { EG_PRECISION_FLOAT32, EG_PRECISION_TF32, EG_PRECISION_BFLOAT16 } eg_precision;
// Sets it for this thread and returns the former setting.
EAGER_API eg_precision eg_matmul_precision(eg_precision precision);

#ifdef __cplusplus
}
// For C++: a tensor with operators. eg_value y = 2 * eg_value(x) + 1; converts back to eg_tensor * by itself.
struct eg_value {
    eg_tensor *tensor;
    eg_value(eg_tensor *x) : tensor(x) {}
    operator eg_tensor *() const { return tensor; }
    eg_value operator-() const { return eg_negative(tensor); }
};
static inline eg_tensor *egi_arg(eg_value x) { return x.tensor; }
struct egi_device_guard {
    egi_device_scope scope;
    explicit egi_device_guard(const char *device) : scope(egi_device_enter(device)) {}
    egi_device_guard(const egi_device_guard &) = delete;
    egi_device_guard &operator=(const egi_device_guard &) = delete;
    ~egi_device_guard() { egi_device_leave(&scope); }
};
#define eg_with_device(device) egi_device_guard EGI_PASTE(egi_device_, __LINE__)(device)
#define EGI_OPERATOR(sign, function) \
    static inline eg_value operator sign(eg_value a, eg_value b) { return (function)(a.tensor, b.tensor); } \
    static inline eg_value operator sign(eg_value a, eg_tensor *b) { return (function)(a.tensor, b); } \
    static inline eg_value operator sign(eg_tensor *a, eg_value b) { return (function)(a, b.tensor); } \
    static inline eg_value operator sign(eg_value a, double b) { return (function)(a.tensor, eg_number(b)); } \
    static inline eg_value operator sign(double a, eg_value b) { return (function)(eg_number(a), b.tensor); } \
    static inline eg_value operator sign(eg_value a, int b) { return (function)(a.tensor, eg_integer(b)); } \
    static inline eg_value operator sign(int a, eg_value b) { return (function)(eg_integer(a), b.tensor); }
EGI_OPERATOR(+, eg_add)
EGI_OPERATOR(-, eg_sub)
EGI_OPERATOR(*, eg_mul)
EGI_OPERATOR(/, eg_div)
#undef EGI_OPERATOR
#else
#define eg_with_device(device) \
    __attribute__((cleanup(egi_device_leave), unused)) egi_device_scope EGI_PASTE(egi_device_, __LINE__) = egi_device_enter(device)
#endif
#endif // EAGER_H

#if (defined(EAGER_IMPLEMENTATION) || defined(EAGER_BACKEND)) && !defined(EGI_INTERNALS)
#define EGI_INTERNALS

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EGI_RESTRICT __restrict
// A function that kernels of every device call: under nvcc it exists for the GPU, too.
#ifdef __CUDACC__
#define EGI_EVERYWHERE static inline __host__ __device__
#else
#define EGI_EVERYWHERE static inline
#endif
#define EGI_COLD __attribute__((cold, noinline))     /* errors: small code, off the path */
#define EGI_MAX_OUT 4

//# 15  THE SHAPE OF THINGS INSIDE ---------------------------------------------
// Idea: five structs hold everything: a buffer is memory on a device, a tensor
// is a view of a buffer, an op is a row of facts, a call is one run of an op,
// a backend is a table of kernels. Read first: 3, 5.

typedef enum egi_kind { EGI_DEAD, EGI_TENSOR, EGI_TAPE } egi_kind;
typedef struct egi_object { int32_t refs; int32_t kind; } egi_object;      // what a scope can own
typedef struct eg_backend eg_backend;

typedef struct egi_buffer {
    int32_t refs;
    int32_t on_device;                       // data came from backend->allocate, not from the block behind this header
    eg_backend *backend;
    void *data;
    int64_t bytes;
    void (*deleter)(void *data, void *user); // of borrowed memory
    void *user;
} egi_buffer;

enum {
    EGI_CONTIGUOUS = 1,     // row-major without holes
    EGI_NUMBER = 2,         // a plain number: rank 0, no buffer, takes the dtype it meets
    EGI_INTEGER_NUMBER = 4, // and it was an integer in C
    EGI_VARIABLE = 8,
    EGI_TRAINABLE = 16
};

struct eg_tensor {
    egi_object object;
    int8_t dtype, rank;
    uint16_t flags;
    int64_t id;             // what tapes know it by; the snapshots of a variable share its id
    int64_t size;           // number of elements
    int64_t dims[EG_MAX_RANK], strides[EG_MAX_RANK];   // strides in elements
    char *data;             // first element, an address on the buffer's device; of a number NULL
    egi_buffer *buffer;
    double number;          // of EGI_NUMBER
    int64_t integer;        // of EGI_INTEGER_NUMBER
    const char *op;         // the name of the op that made it
    char *name;             // of a variable
    void *host;             // contiguous host copy, made by eg_data where the data is not
    eg_tensor *mask;        // of a layer's output: which steps count, or NULL
#ifdef EAGER_DEBUG
    eg_tensor *newer, *older;   // all live tensors, for the report at exit
#endif
};

typedef struct egi_op egi_op;
typedef struct egi_call {
    const egi_op *op;
    eg_tensor *const *in;
    int n, n_out;
    const void *attr;                        // the op's own attribute struct
    eg_backend *backend;
    eg_dtype dtype[EGI_MAX_OUT];             // set by the shape rule, with shape
    eg_shape shape[EGI_MAX_OUT];
    eg_tensor *out[EGI_MAX_OUT];
} egi_call;

// Which operands a formula reads, as bits.
enum { EGI_USES_A = 1, EGI_USES_B = 2, EGI_USES_C = 4, EGI_USES_Y = 8, EGI_USES_G = 16 };
typedef void egi_loop(int64_t n, const void *const *p, void *out);         // p: a, b, c, y, g, contiguous
typedef eg_tensor *egi_eager_gradient(int i, eg_tensor *a, eg_tensor *b, eg_tensor *c, eg_tensor *y, eg_tensor *g);

enum {
    EGI_VIEW = 1,                // run() makes the outputs itself, as views of its input
    EGI_NOT_DIFFERENTIABLE = 2,
    EGI_TO_BOOL = 4,             // the result is bool
    EGI_BOOL_FIRST = 8,          // the first operand is bool, whatever the others are
    EGI_DIVIDES = 16,            // an integer zero as second operand is an error
    EGI_USER = 32,               // gradients come from a user: check them
    EGI_ATTR_PER_INPUT = 64,     // attr is 1 + n_in pieces of attr_size bytes
    EGI_SAME_SHAPE = 128         // operands broadcast only where one is a scalar
};
struct egi_op {
    const char *name;                                              // eg_<name>
    int n_in, n_out, flags;                                        // n_in -1: any number
    size_t attr_size;
    bool (*shape)(egi_call *c);
    bool (*run)(egi_call *c);
    bool (*grad)(const eg_grad_context *c, const egi_op *op, eg_tensor **dx);   // NULL: not differentiable
    unsigned char saves[3];                                        // for dx[i]: bits of inputs, EGI_USES_Y for the output
    // Elementwise rows: one formula, stamped for every dtype, and one a gradient.
    unsigned dtypes;                                               // bit set of the dtypes it takes
    egi_loop *loops[6];                                            // by dtype
    unsigned char plain[3];                                        // dx[i] is g itself
    unsigned (*uses)(int i);
    egi_eager_gradient *dx;
    egi_loop *dx_loops[3];                                         // float32
};

// One launch of a kernel. What `parameters` points to is told beside each kernel's number.
typedef struct egi_args {
    const egi_op *op;
    int variant;                         // elementwise: 0 is the op, i + 1 its gradient for input i
    const eg_tensor *in[8];
    eg_tensor *out[EGI_MAX_OUT];
    const void *parameters;
} egi_args;

typedef enum egi_kernel {
    EGI_ELEMENTWISE,      // op and variant; operands broadcast to out[0]
    EGI_COPY,             // in[0] to out[0], any strides, converts dtypes
    EGI_FILL,             // double: out[0], any strides
    EGI_REDUCE,           // egi_reduce_parameters: in[0] contiguous
    EGI_CUMSUM,           // egi_reduce_parameters
    EGI_ARGSORT,          // egi_reduce_parameters: rows of n, out[0] int64
    EGI_SOFTMAX,          // egi_reduce_parameters: rows of n
    EGI_SPARSE_XENT,      // in[0] labels, in[1] logits (rows, n); out[0] losses
    EGI_MATMUL,           // egi_matmul_parameters
    EGI_CONV,             // egi_conv_parameters
    EGI_POOL,             // egi_pool_parameters
    EGI_GATHER,           // egi_gather_parameters
    EGI_SCATTER_ADD,      // egi_gather_parameters
    EGI_RANDOM,           // egi_random_parameters
    EGI_UPDATE,           // egi_update_parameters
    EGI_NONFINITE,        // int64_t *: counts the NaN and Inf of in[0]
    EGI_KERNELS
} egi_kernel;

struct eg_backend {
    uint32_t backend_size, tensor_size, kernels, version;   // compared when it registers
    const char *name;                                       // "cpu:0"
    bool host_reads;                                        // the host may read and write its memory
    void *state;
    void *(*allocate)(eg_backend *b, int64_t bytes);        // 64-byte aligned, or NULL
    void (*deallocate)(eg_backend *b, void *data, int64_t bytes);
    bool (*write)(eg_backend *b, void *to, const void *from, int64_t bytes);     // from the host
    bool (*read)(eg_backend *b, void *to, const void *from, int64_t bytes);      // to the host
    bool (*kernel[EGI_KERNELS])(eg_backend *b, const egi_args *args);            // false with an error raised
    bool (*synchronize)(eg_backend *b);                     // waits for its work; false with an error it only now knows of. NULL: none
    void (*trim)(eg_backend *b);                            // gives cached memory back. NULL: there is none
};
// Adds a device. The backend must live as long as the program. False and an error where its sizes are not this file's.
EAGER_API bool egi_backend_register(eg_backend *backend);
EAGER_API eg_backend *egi_backend_cpu(void);
EAGER_API const egi_op *egi_elementwise_rows(void);         // in the order of EGI_ELEMENTWISE_TABLE

typedef enum egi_reduction {
    EGI_SUM, EGI_MEAN, EGI_MAX_, EGI_MIN_, EGI_NORM2, EGI_ALL, EGI_ANY, EGI_ARGMAX, EGI_ARGMIN,
    EGI_SOFTMAX_, EGI_LOG_SOFTMAX
} egi_reduction;
typedef struct egi_reduce_parameters { egi_reduction kind; int64_t outer, n, inner; bool exclusive, reverse; } egi_reduce_parameters;
typedef struct egi_matmul_parameters { bool ta, tb; int64_t m, n, k, lda, ldb; int batch_rank; int64_t batch[EG_MAX_RANK], a_strides[EG_MAX_RANK], b_strides[EG_MAX_RANK]; eg_precision precision; } egi_matmul_parameters;
typedef struct egi_conv_dims { int64_t n, h, w, c, kh, kw, oc, oh, ow, sh, sw, dh, dw, pt, pl, groups; } egi_conv_dims;
typedef enum egi_conv_kind { EGI_CONV_FORWARD, EGI_CONV_INPUT, EGI_CONV_FILTER } egi_conv_kind;
typedef struct egi_conv_parameters { egi_conv_kind kind; egi_conv_dims dims; } egi_conv_parameters;
typedef struct egi_pool_dims { int64_t n, h, w, c, kh, kw, oh, ow, sh, sw, pt, pl; } egi_pool_dims;
typedef enum egi_pool_kind { EGI_POOL_MAX_INDEX, EGI_POOL_AVG, EGI_POOL_AVG_GRAD } egi_pool_kind;
typedef struct egi_pool_parameters { egi_pool_kind kind; egi_pool_dims dims; } egi_pool_parameters;
typedef struct egi_gather_parameters { int64_t outer, rows, inner; const char *name; } egi_gather_parameters;   // (outer, rows, inner) and indices of any shape
typedef enum egi_random_kind { EGI_NORMAL, EGI_TRUNCATED_NORMAL, EGI_UNIFORM, EGI_INTEGERS, EGI_BERNOULLI, EGI_PERMUTATION } egi_random_kind;
typedef struct egi_random_parameters { egi_random_kind kind; uint64_t seed, counter; double a, b; int64_t low, high; } egi_random_parameters;

#ifdef __cplusplus
}
#endif
#endif // EGI_INTERNALS

#if defined(EAGER_IMPLEMENTATION) && !defined(EGI_IMPLEMENTED)
#define EGI_IMPLEMENTED

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <time.h>
#ifndef EAGER_NO_THREADS
#include <pthread.h>
#endif
#ifdef EAGER_IMAGE
#include <jpeglib.h>
#include <jerror.h>
#include <png.h>
#include <setjmp.h>
#endif
#ifndef EAGER_NO_STDIO          // what chapter 31 asks of a system beyond C: to sync a file, to make and list a folder
#include <dirent.h>
#include <fcntl.h>
#ifdef _WIN32
#include <direct.h>
#include <io.h>
#else
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#endif
#ifdef EAGER_ZLIB
#include <zlib.h>
#endif
#ifdef __cplusplus
extern "C" {
#endif

//# 16  MEMORY, ERRORS, SCOPES -------------------------------------------------
// Idea: one allocator for everything (handles, elements, tape lines): blocks of
// a few hundred size classes that go back to the heap of the thread that made
// them. A scope is a stretch of a stack of references. Proof: tests/memory.c

#ifndef EAGER_MALLOC
#define EAGER_MALLOC(size) malloc(size)
#define EAGER_FREE(pointer) free(pointer)
#endif

#ifdef EAGER_NO_THREADS
#define EGI_THREAD
#else
#define EGI_THREAD __thread
#endif

enum { EGI_CLASSES = 176, EGI_ALIGN = 64 };
typedef struct egi_heap egi_heap;
typedef union egi_block {                       // stands in front of every allocation
    struct { egi_heap *heap; union egi_block *next; void *base; int64_t bytes; int32_t size_class; } b;
    char pad[EGI_ALIGN];
} egi_block;
struct egi_heap {
    egi_block *free[EGI_CLASSES];
    egi_block *remote;                          // freed by other threads, atomic
    egi_heap *next;                             // all heaps
    bool orphan;                                // its thread has ended: up for adoption
    // Written by the owner, read by anyone; what a thread frees of another's counts as negative here.
    int64_t live_tensors, live_bytes, peak_bytes, held_bytes, allocations, tensors_made, host_copies, device_copies, device_bytes;
};

typedef struct egi_context {
    egi_heap *heap;
    uintptr_t *stack;                           // references owned by scopes; low bits are tags
    int64_t stack_size, stack_capacity;
    int64_t scope;                              // where the innermost scope's marker stands, plus 1; 0: outermost
    uint64_t scope_serial;
    eg_tape *tapes;                             // those that record or may, innermost first
    int recording;                              // how many of them record now
    int paused;
    bool trap;
    bool telling;                               // the error handler runs
    const char *gradient_of;                    // the op whose gradient is being computed, or NULL: the trap says so
    eg_error_code error;
    int64_t errors;
    uint64_t printed;                           // a hash of the latest line on stderr
    const char *at_function, *at_file;
    const char *as;                     // the composed op whose parts run now
    struct egi_layer_run *layer;        // the layer that is called now (28)
    int at_line;
    int64_t epoch, batch;               // of a training run, from 1: errors say where
    eg_backend *backend;
    eg_precision precision;
    eg_random_state random;
    int64_t next_id;
    char reason[320];
    char texts[8][320];                         // for egi_show and egi_describe
    unsigned next_text;
    char message[1024];
#ifdef EAGER_DEBUG
    eg_tensor *quarantine[4096];
    unsigned quarantined;
#endif
} egi_context;
static EGI_THREAD egi_context egi_this;         // zero-initialised: making a context cannot fail

static struct {
    char lock;
    bool handler_set, allocator_set;
    eg_error_handler *handler;
    void *handler_user;
    void *(*allocate)(size_t, void *);
    void (*deallocate)(void *, void *);
    void *allocator_user;
    void (*print)(const char *, void *);
    void *print_user;
    egi_heap *heaps;
    int64_t next_id, serial;
    int64_t blocks;                             // taken from the system and not given back
    eg_memory_info past;                        // the counts of heaps that are gone
#ifdef EAGER_DEBUG
    eg_tensor *newest;
    bool exit_set;
#endif
} egi_shared;

static void egi_lock(void) {
    while (__atomic_test_and_set(&egi_shared.lock, __ATOMIC_ACQUIRE)) {}
}
static void egi_unlock(void) { __atomic_clear(&egi_shared.lock, __ATOMIC_RELEASE); }

static void egi_count(int64_t *counter, int64_t by) {      // only the owner writes, so no locked instruction is needed
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
}

// 64, 128, ... 1024, then four steps to each doubling: at most a quarter is wasted.
static int egi_class_of(size_t bytes, size_t *rounded) {
    if (bytes <= 1024) {
        int c = bytes ? (int)((bytes + 63) / 64) : 1;
        *rounded = (size_t)c * 64;
        return c;
    }
    int e = 63 - __builtin_clzll((unsigned long long)(bytes - 1));
    size_t step = (size_t)1 << (e - 2);
    int q = (int)((bytes - 1 - ((size_t)1 << e)) / step);
    *rounded = ((size_t)1 << e) + (size_t)(q + 1) * step;
    return 17 + (e - 10) * 4 + q;
}

static void *egi_system_allocate(size_t bytes) {
    void *base = egi_shared.allocate ? egi_shared.allocate(bytes, egi_shared.allocator_user) : EAGER_MALLOC(bytes);
    if (base) __atomic_fetch_add(&egi_shared.blocks, 1, __ATOMIC_RELAXED);
    return base;
}
static void egi_system_free(void *base) {
    __atomic_fetch_sub(&egi_shared.blocks, 1, __ATOMIC_RELAXED);
    if (egi_shared.deallocate) egi_shared.deallocate(base, egi_shared.allocator_user);
    else EAGER_FREE(base);
}

static void egi_thread_end(void *unused);
#ifndef EAGER_NO_THREADS
static pthread_key_t egi_thread_key;
static pthread_once_t egi_thread_once = PTHREAD_ONCE_INIT;
static void egi_thread_key_make(void) { pthread_key_create(&egi_thread_key, egi_thread_end); }
#endif

// This thread's heap: a dead thread's if there is one, so that its memory is used again.
static egi_heap *egi_heap_get(void) {
    egi_heap *heap;
    if (egi_this.heap) return egi_this.heap;
    egi_lock();
    for (heap = egi_shared.heaps; heap && !heap->orphan; heap = heap->next) {}
    if (heap) heap->orphan = false;
    egi_unlock();
    if (!heap) {
        heap = (egi_heap *)egi_system_allocate(sizeof *heap);
        if (!heap) return NULL;
        memset(heap, 0, sizeof *heap);
        egi_lock();
        heap->next = egi_shared.heaps;
        egi_shared.heaps = heap;
        egi_unlock();
    }
    egi_this.heap = heap;
#ifndef EAGER_NO_THREADS
    pthread_once(&egi_thread_once, egi_thread_key_make);
    pthread_setspecific(egi_thread_key, heap);
#endif
    return heap;
}

static void egi_heap_collect(egi_heap *heap) {             // what other threads gave back
    egi_block *block = __atomic_exchange_n(&heap->remote, (egi_block *)NULL, __ATOMIC_ACQUIRE);
    while (block) {
        egi_block *next = block->b.next;
        block->b.next = heap->free[block->b.size_class];
        heap->free[block->b.size_class] = block;
        block = next;
    }
}

static void egi_heap_trim(egi_heap *heap) {
    egi_heap_collect(heap);
    for (int c = 0; c < EGI_CLASSES; c++)
        while (heap->free[c]) {
            egi_block *block = heap->free[c];
            heap->free[c] = block->b.next;
            egi_count(&heap->held_bytes, -block->b.bytes);
            egi_system_free(block->b.base);
        }
}

// 64-byte aligned, not zeroed; NULL when there is no memory (no error is raised here). Freed by egi_free on any thread.
static void *egi_alloc(size_t bytes) {
    egi_heap *heap = egi_this.heap ? egi_this.heap : egi_heap_get();
    size_t rounded;
    if (!heap || bytes >> 46) return NULL;
    int c = egi_class_of(bytes, &rounded);
    egi_block *block = heap->free[c];
    if (!block && __atomic_load_n(&heap->remote, __ATOMIC_RELAXED)) {
        egi_heap_collect(heap);
        block = heap->free[c];
    }
    if (block) heap->free[c] = block->b.next;
    else {
        size_t total = rounded + sizeof(egi_block) + EGI_ALIGN - 1;
        void *base = egi_system_allocate(total);
        if (!base) {                             // let go of what is cached and try once more
            egi_heap_trim(heap);
            base = egi_system_allocate(total);
            if (!base) return NULL;
        }
        block = (egi_block *)(((uintptr_t)base + EGI_ALIGN - 1) & ~(uintptr_t)(EGI_ALIGN - 1));
        block->b.base = base;
        block->b.size_class = c;
        block->b.bytes = (int64_t)rounded;
        block->b.heap = heap;
        egi_count(&heap->held_bytes, (int64_t)rounded);
        egi_count(&heap->allocations, 1);
    }
    egi_count(&heap->live_bytes, (int64_t)rounded);
    if (heap->live_bytes > __atomic_load_n(&heap->peak_bytes, __ATOMIC_RELAXED))
        __atomic_store_n(&heap->peak_bytes, heap->live_bytes, __ATOMIC_RELAXED);
    return block + 1;
}

static void egi_free(void *pointer) {
    if (!pointer) return;
    egi_block *block = (egi_block *)pointer - 1;
    egi_heap *heap = block->b.heap, *mine = egi_this.heap ? egi_this.heap : egi_heap_get();
    if (mine) egi_count(&mine->live_bytes, -block->b.bytes);
#ifdef EAGER_DEBUG
    (void)heap;
    if (mine) egi_count(&mine->held_bytes, -block->b.bytes);
    egi_system_free(block->b.base);             // not used again, so that sanitizers and valgrind see who comes back to it
#else
    if (heap == mine) {
        block->b.next = heap->free[block->b.size_class];
        heap->free[block->b.size_class] = block;
        return;
    }
    egi_block *head = __atomic_load_n(&heap->remote, __ATOMIC_RELAXED);
    do block->b.next = head;
    while (!__atomic_compare_exchange_n(&heap->remote, &head, block, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
#endif
}

// Grows *array to hold count elements; false without memory, with nothing changed.
static bool egi_grow(void **array, int64_t *capacity, int64_t count, size_t element) {
    if (count <= *capacity) return true;
    int64_t larger = *capacity < 16 ? 16 : *capacity;
    while (larger < count) larger *= 2;
    void *grown = egi_alloc((size_t)larger * element);
    if (!grown) return false;
    if (*capacity) memcpy(grown, *array, (size_t)*capacity * element);
    egi_free(*array);
    *array = grown;
    *capacity = larger;
    return true;
}

// ---- errors

EAGER_API const char *eg_error_name(eg_error_code code) {
#define EGI_ERROR_NAME(name, number, sentence) case number: return #name;
    switch ((int)code) { EG_ERRORS(EGI_ERROR_NAME) }
    return "EG_ERROR_?";
}
EAGER_API eg_error_code eg_error(void) { return egi_this.error; }
EAGER_API const char *eg_error_message(void) { return egi_this.message; }
EAGER_API int64_t eg_error_count(void) { return egi_this.errors; }
EAGER_API void eg_error_clear(void) {
    egi_this.error = EG_OK;
    egi_this.message[0] = 0;
}
EAGER_API void eg_set_error_handler(eg_error_handler *handler, void *user) {
    egi_lock();
    egi_shared.handler = handler;
    egi_shared.handler_user = user;
    egi_shared.handler_set = true;
    egi_unlock();
}
EAGER_API void egi_at(const char *function, const char *file, int line) {
    egi_this.at_function = function;
    egi_this.at_file = file;
    egi_this.at_line = line;
}

static void egi_layer_mark(char *text, size_t capacity);
// " (epoch 2, batch 17)" behind a message.
static EGI_COLD void egi_batch_mark(char *text, size_t size) {
    size_t length = strlen(text);
    if (egi_this.epoch > 0) snprintf(text + length, size - length, " (epoch %lld, batch %lld)", (long long)egi_this.epoch, (long long)egi_this.batch);
    else snprintf(text + length, size - length, " (batch %lld)", (long long)egi_this.batch);
}
static EGI_COLD void egi_raise_text(eg_error_code code, const char *text) {
    char full[1024], own[1024];
    const char *rest = egi_this.as && !strncmp(text, "eg_", 3) ? strchr(text, ':') : NULL;
    if (rest) {
        snprintf(own, sizeof own, "eg_%s%s", egi_this.as, rest);
        text = own;
    }
    int length = snprintf(full, sizeof full, "%s", text);
    if (egi_this.layer && length >= 0) {
        egi_layer_mark(full, sizeof full);
        length = (int)strlen(full);
    }
    if (egi_this.batch > 0 && length >= 0) {
        egi_batch_mark(full, sizeof full);
        length = (int)strlen(full);
    }
    const char *f = egi_this.at_function;
    // The place is known only if the latest call that left its mark is the one that fails.
    if (f && length >= 0 && length < (int)sizeof full && !strncmp(text, f, strlen(f)) && text[strlen(f)] == ':') {
        const char *file = strrchr(egi_this.at_file, '/');
        snprintf(full + length, sizeof full - (size_t)length, " (at %s:%d)", file ? file + 1 : egi_this.at_file, egi_this.at_line);
    }
    egi_this.errors++;
    if (egi_this.error == EG_OK) {
        egi_this.error = code;
        memcpy(egi_this.message, full, sizeof full);
    }
    egi_lock();
    eg_error_handler *handler = egi_shared.handler;
    void *user = egi_shared.handler_user;
    bool set = egi_shared.handler_set;
    egi_unlock();
    if (egi_this.telling) return;               // an error of the handler's own must not call it again, without end
    egi_this.telling = true;
    if (handler) handler(code, full, user);
#ifndef EAGER_NO_STDIO
    else if (!set) {                             // the same line again and again, as from a loop, is printed once
        uint64_t hash = 14695981039346656037u;
        for (const char *p = full; *p; p++) hash = (hash ^ (unsigned char)*p) * 1099511628211u;
        if (hash != egi_this.printed) fprintf(stderr, "eager: %s\n", full);
        egi_this.printed = hash;
    }
#else
    (void)set;
#endif
    egi_this.telling = false;
}
// What a composed op runs fails in its name: `EGI_AS("reduce_std", eg_sqrt(...))` is the body of eg_reduce_std.
#define EGI_AS(op, expression) \
    do { \
        const char *egi_former = egi_this.as; \
        if (!egi_former) egi_this.as = op; \
        eg_tensor *egi_result = (expression); \
        egi_this.as = egi_former; \
        return egi_result; \
    } while (0)
EAGER_API void *eg_raise(eg_error_code code, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    egi_raise_text(code, text);
    return NULL;
}
static EGI_COLD bool egi_fail(eg_error_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool egi_fail(eg_error_code code, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    egi_raise_text(code, text);
    return false;
}
static EGI_COLD bool egi_no_memory(const char *what, int64_t bytes) {
    return egi_fail(EG_ERROR_MEMORY, "eg_%s: out of memory (%lld bytes asked for)", what, (long long)bytes);
}
// A NULL operand is the trace of an earlier error; only where none is pending is it one of its own.
static EGI_COLD bool egi_null_operand(const char *function, int i) {
    if (egi_this.error == EG_OK) egi_fail(EG_ERROR_NULL, "eg_%s: operand %d is NULL", function, i);
    return false;
}

// ---- references and scopes

static void egi_tensor_destroy(eg_tensor *x);
static void egi_tape_destroy(eg_tape *tape);

static void egi_object_retain(egi_object *o) { __atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED); }
static void egi_object_release(egi_object *o) {
    // The only owner needs no locked instruction.
    if (__atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) != 1 && __atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (o->kind == EGI_TENSOR) egi_tensor_destroy((eg_tensor *)(void *)o);
    else if (o->kind == EGI_TAPE) egi_tape_destroy((eg_tape *)(void *)o);
}

enum { EGI_TAG_KEEP = 1, EGI_TAG_SCOPE = 2, EGI_TAG_SERIAL = 3, EGI_TAGS = 3 };
static bool egi_stack_push(uintptr_t entry) {
    egi_context *t = &egi_this;
    if (t->stack_size == t->stack_capacity) {
        void *stack = t->stack;
        if (!egi_heap_get()) return false;
        if (!egi_grow(&stack, &t->stack_capacity, t->stack_size + 1, sizeof *t->stack)) return false;
        t->stack = (uintptr_t *)stack;
    }
    t->stack[t->stack_size++] = entry;
    return true;
}
// Hands a new object to the innermost scope; without memory for that it is freed and NULL comes back.
static eg_tensor *egi_own(eg_tensor *x) {
    if (!x) return NULL;
    if (egi_stack_push((uintptr_t)x)) return x;
    egi_object_release(&x->object);
    egi_no_memory("scope", 0);
    return NULL;
}

EAGER_API eg_scope eg_scope_begin(void) {
    egi_context *t = &egi_this;
    eg_scope scope = { -1, 0 };
    if (!t->heap) egi_heap_get();
    // Serials are the whole program's, so that a scope of another thread is not taken for one of this thread.
    if ((t->scope_serial & 0xfffff) == 0) t->scope_serial = (uint64_t)__atomic_fetch_add(&egi_shared.serial, 0x100000, __ATOMIC_RELAXED);
    if (!egi_stack_push(((uintptr_t)t->scope << 2) | EGI_TAG_SCOPE)) { egi_no_memory("scope_begin", 0); return scope; }
    if (!egi_stack_push(((uintptr_t)(t->scope_serial + 1) << 2) | EGI_TAG_SERIAL)) {
        t->stack_size--;
        egi_no_memory("scope_begin", 0);
        return scope;
    }
    scope.position = t->stack_size - 2;
    t->scope = scope.position + 1;
    scope.serial = ++t->scope_serial;
    return scope;
}
// Frees what the innermost scope owns; what was kept becomes the enclosing scope's.
static void egi_scope_end_innermost(void) {
    egi_context *t = &egi_this;
    int64_t begin = t->scope - 1, kept = begin < 0 ? 0 : begin;
    int64_t end = t->stack_size, outer = begin < 0 ? 0 : (int64_t)(t->stack[begin] >> 2);
    for (int64_t i = end - 1; i >= (begin < 0 ? 0 : begin + 2); i--)      // newest first: blocks come back in the order of use
        if (begin < 0 || !(t->stack[i] & EGI_TAG_KEEP)) {
            egi_object_release((egi_object *)(t->stack[i] & ~(uintptr_t)EGI_TAGS));
            t->stack[i] = 0;
        }
    // What was made meanwhile, by a deleter of borrowed memory, stands behind and stays too.
    for (int64_t i = begin < 0 ? 0 : begin + 2; i < t->stack_size; i++)
        if (t->stack[i]) t->stack[kept++] = t->stack[i] & ~(uintptr_t)EGI_TAGS;
    t->stack_size = kept;
    t->scope = outer;
}
EAGER_API void eg_scope_end(eg_scope scope) {
    egi_context *t = &egi_this;
    if (scope.position < 0 || scope.position + 1 >= t->stack_size) return;
    if (t->stack[scope.position + 1] != (((uintptr_t)scope.serial << 2) | EGI_TAG_SERIAL)) return;      // it has ended already
    while (t->scope > scope.position) egi_scope_end_innermost();
}
// Of a NULL nothing is said here: it is the trace of an error, or a result that was not there.
static bool egi_counted(const char *function, eg_tensor *x) {
    if (!x) return false;
#ifdef EAGER_DEBUG
    if (x->object.kind != EGI_TENSOR)
        return egi_fail(EG_ERROR_STATE, "eg_%s: a tensor made by eg_%s was used after its last reference was gone", function, x->op);
#else
    (void)function;
#endif
    return true;
}
EAGER_API eg_tensor *eg_keep(eg_tensor *x) {
    if (!egi_counted("keep", x)) return NULL;
    if (!egi_stack_push((uintptr_t)x | EGI_TAG_KEEP)) { egi_no_memory("keep", 0); return NULL; }
    egi_object_retain(&x->object);
    return x;
}
EAGER_API eg_tensor *eg_retain(eg_tensor *x) {
    if (egi_counted("retain", x)) egi_object_retain(&x->object);
    return x;
}
// x itself as a result: the scope gets a reference, as of every result.
static eg_tensor *egi_again(eg_tensor *x) { return egi_own(eg_retain(x)); }
EAGER_API void eg_release(eg_tensor *x) {
    if (egi_counted("release", x)) egi_object_release(&x->object);
}

static void egi_thread_end(void *unused) {
    egi_context *t = &egi_this;
    (void)unused;
    if (!t->heap) return;
    eg_summary_set_writer(NULL);
    do egi_scope_end_innermost(); while (t->scope > 0 || t->stack_size > 0);
#ifdef EAGER_DEBUG
    for (unsigned i = 0; i < 4096; i++) { egi_free(t->quarantine[i]); t->quarantine[i] = NULL; }
#endif
    egi_free(t->stack);
    t->stack = NULL;
    t->stack_size = t->stack_capacity = 0;
    egi_heap *heap = t->heap;
    t->heap = NULL;
#ifndef EAGER_NO_THREADS
    pthread_setspecific(egi_thread_key, NULL);
#endif
    egi_lock();
    heap->orphan = true;
    egi_unlock();
}
// The heaps whose threads have ended are this thread's to use or trim, one at a time, while it holds them.
static void egi_trim_orphans(void) {
    for (;;) {
        egi_lock();
        egi_heap *found = NULL;
        for (egi_heap *heap = egi_shared.heaps; heap; heap = heap->next) {
            if (!heap->orphan) continue;
            bool holds = __atomic_load_n(&heap->remote, __ATOMIC_RELAXED) != NULL;
            for (int c = 0; c < EGI_CLASSES && !holds; c++) holds = heap->free[c] != NULL;
            if (holds) { found = heap; found->orphan = false; break; }
        }
        egi_unlock();
        if (!found) return;
        egi_heap_trim(found);
        egi_lock();
        found->orphan = true;
        egi_unlock();
    }
}
static void egi_backends_trim(void);
EAGER_API void eg_memory_trim(void) {
    if (egi_this.heap) egi_heap_trim(egi_this.heap);
    egi_trim_orphans();
    egi_backends_trim();
}
static void egi_add_counts(eg_memory_info *info, egi_heap *h) {
    info->live_tensors += __atomic_load_n(&h->live_tensors, __ATOMIC_RELAXED);
    info->live_bytes += __atomic_load_n(&h->live_bytes, __ATOMIC_RELAXED);
    info->peak_bytes += __atomic_load_n(&h->peak_bytes, __ATOMIC_RELAXED);
    info->cached_bytes += __atomic_load_n(&h->held_bytes, __ATOMIC_RELAXED);          // live ones too, until all are added
    info->allocations += __atomic_load_n(&h->allocations, __ATOMIC_RELAXED);
    info->tensors_made += __atomic_load_n(&h->tensors_made, __ATOMIC_RELAXED);
    info->host_copies += __atomic_load_n(&h->host_copies, __ATOMIC_RELAXED);
    info->device_copies += __atomic_load_n(&h->device_copies, __ATOMIC_RELAXED);
    info->device_bytes += __atomic_load_n(&h->device_bytes, __ATOMIC_RELAXED);
}
EAGER_API void eg_shutdown(void) {
    egi_thread_end(NULL);
    egi_trim_orphans();
    // Heaps that own nothing any more go too, when nobody else can hold one of their blocks.
    egi_lock();
    int64_t heaps = 0;
    bool idle = true;
    for (egi_heap *h = egi_shared.heaps; h; h = h->next) { heaps++; idle = idle && h->orphan; }
    egi_heap *list = NULL;
    if (idle && heaps == __atomic_load_n(&egi_shared.blocks, __ATOMIC_RELAXED)) { list = egi_shared.heaps; egi_shared.heaps = NULL; }
    egi_unlock();
    while (list) {
        egi_heap *next = list->next;
        egi_lock();
        egi_add_counts(&egi_shared.past, list);
        egi_unlock();
        egi_system_free(list);
        list = next;
    }
}
EAGER_API bool eg_set_allocator(void *(*allocate)(size_t, void *), void (*deallocate)(void *, void *), void *user) {
    if (__atomic_load_n(&egi_shared.blocks, __ATOMIC_RELAXED) != 0)
        return egi_fail(EG_ERROR_STATE,
                        "eg_set_allocator: the library holds %lld blocks of the former allocator; set it before the first tensor, or after "
                        "everything is released and eg_shutdown() was called",
                        (long long)egi_shared.blocks);
    if ((allocate == NULL) != (deallocate == NULL))
        return egi_fail(EG_ERROR_ARGUMENT, "eg_set_allocator: give both functions, or NULL for both");
    egi_shared.allocate = allocate;
    egi_shared.deallocate = deallocate;
    egi_shared.allocator_user = user;
    return true;
}
EAGER_API void eg_set_printer(void (*print)(const char *, void *), void *user) {
    egi_lock();
    egi_shared.print = print;
    egi_shared.print_user = user;
    egi_unlock();
}
EAGER_API eg_memory_info eg_memory(void) {
    egi_lock();
    eg_memory_info info = egi_shared.past;
    for (egi_heap *h = egi_shared.heaps; h; h = h->next) egi_add_counts(&info, h);
    egi_unlock();
    info.cached_bytes -= info.live_bytes;
    return info;
}
EAGER_API void eg_memory_reset_peak(void) {
    egi_lock();
    egi_shared.past.peak_bytes = egi_shared.past.live_bytes;
    for (egi_heap *h = egi_shared.heaps; h; h = h->next)
        __atomic_store_n(&h->peak_bytes, __atomic_load_n(&h->live_bytes, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    egi_unlock();
}
EAGER_API bool eg_trap_nonfinite(bool on) {
    bool former = egi_this.trap;
    egi_this.trap = on;
    return former;
}

#ifdef EAGER_DEBUG
// All live tensors in a list, so that what was not released can be told when the program ends.
static void egi_debug_report(void) {
    int64_t count = 0;
    egi_thread_end(NULL);                        // what the outermost scope of this thread owns is no leak
    egi_lock();
    for (eg_tensor *x = egi_shared.newest; x; x = x->older) count++;
#ifndef EAGER_NO_STDIO
    if (count) fprintf(stderr, "eager: %lld tensors were not released:\n", (long long)count);
    int shown = 0;
    for (eg_tensor *x = egi_shared.newest; x && shown < 20; x = x->older, shown++)
        fprintf(stderr, "eager:   made by eg_%s%s%s, %lld elements, %d references\n", x->op, x->name ? ", named " : "", x->name ? x->name : "",
                (long long)x->size, (int)x->object.refs);
#endif
    egi_unlock();
}
static void egi_debug_add(eg_tensor *x) {
    egi_lock();
    bool first = !egi_shared.exit_set;
    egi_shared.exit_set = true;
    x->newer = NULL;
    x->older = egi_shared.newest;
    if (x->older) x->older->newer = x;
    egi_shared.newest = x;
    egi_unlock();
    if (first) atexit(egi_debug_report);
}
static void egi_debug_remove(eg_tensor *x) {
    egi_lock();
    if (x->newer) x->newer->older = x->older;
    else egi_shared.newest = x->older;
    if (x->older) x->older->newer = x->newer;
    egi_unlock();
}
#endif

//# 17  TENSORS: MAKING AND READING --------------------------------------------
// Idea: a handle is a header over a buffer; views are more headers over the
// same buffer. Proof: tests/tensors.c

static const struct { const char *name; int size; } egi_dtypes[] = {       // ORDER eg_dtype
    { "float32", 4 }, { "float64", 8 }, { "int32", 4 }, { "int64", 8 }, { "uint8", 1 }, { "bool", 1 }, { "float16", 2 }, { "bfloat16", 2 }
};
enum { EGI_DTYPES = 8, EGI_COMPUTED = 6 };
static bool egi_dtype_valid(eg_dtype t) { return (unsigned)t < (unsigned)EGI_DTYPES; }
EAGER_API const char *eg_dtype_name(eg_dtype t) { return egi_dtype_valid(t) ? egi_dtypes[t].name : "?"; }
EAGER_API int64_t eg_dtype_size(eg_dtype t) { return egi_dtype_valid(t) ? egi_dtypes[t].size : 0; }

#endif // EGI_IMPLEMENTED
#if (defined(EAGER_IMPLEMENTATION) || defined(EAGER_BACKEND)) && !defined(EGI_ELEMENTS)   // single elements: kernels of backends need them, too
#define EGI_ELEMENTS
EGI_EVERYWHERE bool egi_is_float(int t) { return t == EG_FLOAT32 || t == EG_FLOAT64 || t == EG_FLOAT16 || t == EG_BFLOAT16; }
EGI_EVERYWHERE float egi_from_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u, bits;
    if (e == 31) bits = sign | 0x7f800000u | (m << 13);
    else if (e) bits = sign | ((e + 112) << 23) | (m << 13);
    else {
        float f = (float)m * 5.9604644775390625e-8f;     // 2^-24
        return sign ? -f : f;
    }
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
EGI_EVERYWHERE uint16_t egi_to_half(float f) {                    // to nearest, halves to even
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = (bits >> 16) & 0x8000u, e = (bits >> 23) & 255u, m = bits & 0x7fffffu;
    if (e == 255) return (uint16_t)(sign | 0x7c00u | (m ? 0x200u | (m >> 13) : 0));
    int shift = 13, exponent = (int)e - 112;
    if (exponent <= 0) {
        if (exponent < -10) return (uint16_t)sign;
        m |= 0x800000u;
        shift = 14 - exponent;
        exponent = 0;
    }
    uint32_t half = ((uint32_t)exponent << 10) + (m >> shift);
    uint32_t rest = m & ((1u << shift) - 1), middle = 1u << (shift - 1);
    if (rest > middle || (rest == middle && (half & 1))) half++;
    return (uint16_t)(sign | (half > 0x7c00u ? 0x7c00u : half));
}
EGI_EVERYWHERE float egi_from_bfloat(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
EGI_EVERYWHERE uint16_t egi_to_bfloat(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
// The nearest float toward zero, its last bit set where it is not exact: rounding that to fewer bits is rounding v itself.
EGI_EVERYWHERE float egi_to_odd(double v) {
    float f = (float)v;
    uint32_t bits;
    if ((double)f == v || v != v) return f;
    memcpy(&bits, &f, 4);
    if (fabs((double)f) > fabs(v)) bits--;
    bits |= 1;
    memcpy(&f, &bits, 4);
    return f;
}
EGI_EVERYWHERE double egi_load(int dtype, const void *p) {
    switch (dtype) {
        case EG_FLOAT32: { float v; memcpy(&v, p, 4); return (double)v; }
        case EG_FLOAT64: { double v; memcpy(&v, p, 8); return v; }
        case EG_INT32: { int32_t v; memcpy(&v, p, 4); return v; }
        case EG_INT64: { int64_t v; memcpy(&v, p, 8); return (double)v; }
        case EG_UINT8: case EG_BOOL: return *(const unsigned char *)p;
        case EG_FLOAT16: { uint16_t v; memcpy(&v, p, 2); return (double)egi_from_half(v); }
        case EG_BFLOAT16: { uint16_t v; memcpy(&v, p, 2); return (double)egi_from_bfloat(v); }
        default: return 0;
    }
}
EGI_EVERYWHERE int64_t egi_load_int(int dtype, const void *p);
// Truncates toward zero and saturates; NaN is 0.
EGI_EVERYWHERE int64_t egi_to_int64(double v) {
    if (v != v) return 0;
    if (v >= 9223372036854775808.0) return INT64_MAX;
    if (v <= -9223372036854775808.0) return INT64_MIN;
    return (int64_t)v;
}
EGI_EVERYWHERE int64_t egi_saturate(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }
EGI_EVERYWHERE void egi_store(int dtype, void *p, double v) {
    switch (dtype) {
        case EG_FLOAT32: { float f = (float)v; memcpy(p, &f, 4); break; }
        case EG_FLOAT64: memcpy(p, &v, 8); break;
        case EG_INT32: { int32_t i = (int32_t)egi_saturate(egi_to_int64(v), INT32_MIN, INT32_MAX); memcpy(p, &i, 4); break; }
        case EG_INT64: { int64_t i = egi_to_int64(v); memcpy(p, &i, 8); break; }
        case EG_UINT8: *(unsigned char *)p = (unsigned char)egi_saturate(egi_to_int64(v), 0, 255); break;
        case EG_BOOL: *(unsigned char *)p = v != 0; break;
        case EG_FLOAT16: { uint16_t h = egi_to_half(egi_to_odd(v)); memcpy(p, &h, 2); break; }
        case EG_BFLOAT16: { uint16_t h = egi_to_bfloat(egi_to_odd(v)); memcpy(p, &h, 2); break; }
        default: break;
    }
}
EGI_EVERYWHERE int64_t egi_load_int(int dtype, const void *p) {
    if (dtype == EG_INT64) { int64_t v; memcpy(&v, p, 8); return v; }
    return egi_to_int64(egi_load(dtype, p));
}
EGI_EVERYWHERE void egi_store_int(int dtype, void *p, int64_t v) {
    if (dtype == EG_INT64) memcpy(p, &v, 8);
    else if (dtype == EG_INT32) { int32_t i = (int32_t)egi_saturate(v, INT32_MIN, INT32_MAX); memcpy(p, &i, 4); }
    else if (dtype == EG_UINT8) *(unsigned char *)p = (unsigned char)egi_saturate(v, 0, 255);
    else egi_store(dtype, p, (double)v);
}
#endif // EGI_ELEMENTS
#if defined(EAGER_IMPLEMENTATION) && !defined(EGI_IMPLEMENTED_AFTER_ELEMENTS)
#define EGI_IMPLEMENTED_AFTER_ELEMENTS

// ---- shapes

static bool egi_checked_product(int64_t a, int64_t b, int64_t *product) { return !__builtin_mul_overflow(a, b, product); }

EAGER_API const char *eg_shape_text(eg_shape shape, char *text) {
    size_t at = 0;
    at += (size_t)snprintf(text, EG_SHAPE_TEXT, "(");
    for (int i = 0; i < shape.rank && i < EG_MAX_RANK; i++)
        at += (size_t)snprintf(text + at, EG_SHAPE_TEXT - at, i ? ", %lld" : "%lld", (long long)shape.dims[i]);
    snprintf(text + at, EG_SHAPE_TEXT - at, shape.rank == 1 ? ",)" : ")");
    return text;
}
// Texts for messages: the next of a few buffers of this thread, good until eight more have been asked for.
static char *egi_text_buffer(void) { return egi_this.texts[egi_this.next_text++ % 8]; }
enum { EGI_TEXT = (int)sizeof egi_this.texts[0] };
// "[2, 3]", as errors show shapes.
static EGI_COLD const char *egi_show(eg_shape shape) {
    char *text = egi_text_buffer();
    int at = snprintf(text, EGI_TEXT, "[");
    for (int i = 0; i < shape.rank && i < EG_MAX_RANK; i++)
        at += snprintf(text + at, (size_t)(EGI_TEXT - at), i ? ", %lld" : "%lld", (long long)shape.dims[i]);
    snprintf(text + at, (size_t)(EGI_TEXT - at), "]");
    return text;
}
static eg_shape egi_shape(const eg_tensor *x) {
    eg_shape s;
    s.rank = x->rank;
    for (int i = 0; i < EG_MAX_RANK; i++) s.dims[i] = i < x->rank ? x->dims[i] : 0;
    return s;
}
// "float32 [2, 3] 'W'" or "float32 [2, 3] (from eg_add)": an operand as errors show it.
static EGI_COLD const char *egi_describe(const eg_tensor *x) {
    char *text = egi_text_buffer();
    if (x->flags & EGI_INTEGER_NUMBER) snprintf(text, EGI_TEXT, "the number %lld", (long long)x->integer);
    else if (x->flags & EGI_NUMBER) snprintf(text, EGI_TEXT, "the number %g", x->number);
    else if (x->name) snprintf(text, EGI_TEXT, "%s %s '%.60s'", egi_dtypes[x->dtype].name, egi_show(egi_shape(x)), x->name);
    else snprintf(text, EGI_TEXT, "%s %s (from eg_%.60s)", egi_dtypes[x->dtype].name, egi_show(egi_shape(x)), x->op);
    return text;
}
static bool egi_same_shape(const eg_tensor *a, const eg_tensor *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++) if (a->dims[i] != b->dims[i]) return false;
    return true;
}
static bool egi_equal_shapes(eg_shape a, eg_shape b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++) if (a.dims[i] != b.dims[i]) return false;
    return true;
}
// Rank in range, no negative dimension, a size that fits.
static bool egi_shape_valid(const char *function, eg_shape shape, eg_dtype dtype) {
    if (!egi_dtype_valid(dtype)) return egi_fail(EG_ERROR_DTYPE, "eg_%s: %d is no dtype", function, (int)dtype);
    if (shape.rank < 0 || shape.rank > EG_MAX_RANK)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: rank %d is not between 0 and %d", function, shape.rank, EG_MAX_RANK);
    int64_t bytes = egi_dtypes[dtype].size;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) return egi_fail(EG_ERROR_SHAPE, "eg_%s: dimension %d of %s is negative", function, i, egi_show(shape));
    // A 0 counts as 1, as in NumPy: then no product of some of the dimensions overflows, whichever of them a kernel takes.
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] && !egi_checked_product(bytes, shape.dims[i], &bytes))
            return egi_fail(EG_ERROR_SHAPE, "eg_%s: a tensor of shape %s has more bytes than 64 bits count", function, egi_show(shape));
    return true;
}
// -1 is the last axis; false and an error out of range.
static bool egi_axis(const char *function, int axis, int rank, int *result) {
    if (axis < -rank || axis >= rank)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: axis %d is out of range for rank %d (%d to %d)", function, axis, rank, -rank, rank - 1);
    *result = axis < 0 ? axis + rank : axis;
    return true;
}

// ---- handles

static eg_tensor *egi_tensor_new(void) {                   // a handle with nothing in it
    eg_tensor *x = (eg_tensor *)egi_alloc(sizeof *x);
    if (!x) return NULL;
    egi_context *t = &egi_this;
    if ((t->next_id & 0xfffff) == 0) t->next_id = __atomic_fetch_add(&egi_shared.next_id, 0x100000, __ATOMIC_RELAXED) + 1;
    x->object.refs = 1;
    x->object.kind = EGI_TENSOR;
    x->flags = 0;
    x->id = t->next_id++;
    x->data = NULL;
    x->buffer = NULL;
    x->op = "?";
    x->name = NULL;
    x->host = NULL;
    x->mask = NULL;
    egi_count(&t->heap->live_tensors, 1);
    egi_count(&t->heap->tensors_made, 1);
#ifdef EAGER_DEBUG
    egi_debug_add(x);
#endif
    return x;
}

static void egi_buffer_release(egi_buffer *b) {
    if (!b) return;
    if (__atomic_load_n(&b->refs, __ATOMIC_ACQUIRE) != 1 && __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (b->deleter) b->deleter(b->data, b->user);
    if (b->on_device) {
        b->backend->deallocate(b->backend, b->data, b->bytes);
        if (egi_heap_get()) egi_count(&egi_this.heap->device_bytes, -b->bytes);
    }
    egi_free(b);
}
static egi_buffer *egi_buffer_new(eg_backend *backend, int64_t bytes) {
    bool here = backend->host_reads;
    egi_buffer *b = (egi_buffer *)egi_alloc(here ? (size_t)bytes + EGI_ALIGN : sizeof *b);
    if (!b) return NULL;
    b->refs = 1;
    b->on_device = !here;
    b->backend = backend;
    b->bytes = bytes;
    b->deleter = NULL;
    b->user = NULL;
    b->data = here ? (void *)((char *)b + EGI_ALIGN) : backend->allocate(backend, bytes);
    if (!b->data) { egi_free(b); return NULL; }
    if (!here) egi_count(&egi_this.heap->device_bytes, bytes);
    return b;
}

static void egi_tensor_destroy(eg_tensor *x) {
    egi_buffer_release(x->buffer);
    if (x->host) egi_free(x->host);
    if (x->name) egi_free(x->name);
    if (x->mask) egi_object_release(&x->mask->object);
    if (egi_heap_get()) egi_count(&egi_this.heap->live_tensors, -1);
    x->object.kind = EGI_DEAD;
#ifdef EAGER_DEBUG
    egi_debug_remove(x);
    // The handle stays as it is for a while, so that using it can be told.
    x->buffer = NULL;
    unsigned slot = egi_this.quarantined++ % 4096u;
    eg_tensor *oldest = egi_this.quarantine[slot];
    egi_this.quarantine[slot] = x;
    egi_free(oldest);
#else
    egi_free(x);
#endif
}

// Dimensions with row-major strides, and the element count. The shape has been checked.
static void egi_set_shape(eg_tensor *x, const eg_shape *shape) {
    int64_t stride = 1;
    x->rank = (int8_t)shape->rank;
    for (int i = shape->rank - 1; i >= 0; i--) {
        x->dims[i] = shape->dims[i];
        x->strides[i] = stride;
        stride *= shape->dims[i];
    }
    x->size = stride;
    x->flags |= EGI_CONTIGUOUS;
}
// 0 in any dimension must not make the strides before it overflow: sizes were checked without such shapes.
static void egi_set_shape_checked(eg_tensor *x, const eg_shape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 0) {
            x->rank = (int8_t)shape->rank;
            for (int j = 0; j < shape->rank; j++) { x->dims[j] = shape->dims[j]; x->strides[j] = 0; }
            x->size = 0;
            x->flags |= EGI_CONTIGUOUS;
            return;
        }
    egi_set_shape(x, shape);
}
// A tensor with elements not yet set; not owned by a scope. NULL and an error without memory.
static eg_tensor *egi_new(const char *op, eg_backend *backend, eg_dtype dtype, const eg_shape *shape) {
    eg_tensor *x = egi_tensor_new();
    if (!x) { egi_no_memory(op, (int64_t)sizeof *x); return NULL; }
    x->op = op;
    x->dtype = (int8_t)dtype;
    egi_set_shape_checked(x, shape);
    int64_t bytes = x->size * egi_dtypes[dtype].size;
    x->buffer = egi_buffer_new(backend, bytes);
    if (!x->buffer) {
        egi_object_release(&x->object);
        egi_no_memory(op, bytes);
        return NULL;
    }
    x->data = (char *)x->buffer->data;
    return x;
}
// The same with the shape of a contiguous tensor, beside which it is made: nothing to check or compute.
static eg_tensor *egi_new_like(const char *op, const eg_tensor *like, eg_dtype dtype) {
    eg_tensor *x = egi_tensor_new();
    if (!x) { egi_no_memory(op, (int64_t)sizeof *x); return NULL; }
    x->op = op;
    x->dtype = (int8_t)dtype;
    x->rank = like->rank;
    x->flags = EGI_CONTIGUOUS;
    x->size = like->size;
    memcpy(x->dims, like->dims, sizeof x->dims);
    memcpy(x->strides, like->strides, sizeof x->strides);
    x->buffer = egi_buffer_new(like->buffer->backend, x->size * egi_dtypes[dtype].size);
    if (!x->buffer) {
        egi_object_release(&x->object);
        egi_no_memory(op, like->size * egi_dtypes[dtype].size);
        return NULL;
    }
    x->data = (char *)x->buffer->data;
    return x;
}
// Another handle on the same elements; shape and strides are the caller's to change.
static eg_tensor *egi_alias(const char *op, const eg_tensor *x) {
    eg_tensor *y = egi_tensor_new();
    if (!y) { egi_no_memory(op, (int64_t)sizeof *y); return NULL; }
    y->op = op;
    y->dtype = x->dtype;
    y->rank = x->rank;
    y->flags = x->flags & (EGI_CONTIGUOUS | EGI_NUMBER | EGI_INTEGER_NUMBER);
    y->size = x->size;
    memcpy(y->dims, x->dims, sizeof y->dims);
    memcpy(y->strides, x->strides, sizeof y->strides);
    y->data = x->data;
    y->buffer = x->buffer;
    y->number = x->number;
    y->integer = x->integer;
    if (y->buffer) __atomic_fetch_add(&y->buffer->refs, 1, __ATOMIC_RELAXED);
    return y;
}
static void egi_find_contiguous(eg_tensor *x) {
    int64_t stride = 1;
    bool yes = true;
    for (int i = x->rank - 1; i >= 0; i--) {
        if (x->dims[i] != 1 && x->strides[i] != stride) yes = false;
        stride *= x->dims[i];
    }
    if (yes || x->size == 0) x->flags |= EGI_CONTIGUOUS;
    else x->flags = (uint16_t)(x->flags & ~EGI_CONTIGUOUS);
}

static eg_backend *egi_backend_here(void) { return egi_this.backend ? egi_this.backend : egi_backend_cpu(); }
static eg_backend *egi_backend_of(const eg_tensor *x) { return x->buffer ? x->buffer->backend : egi_backend_here(); }

static bool egi_launch(eg_backend *b, egi_kernel kernel, const egi_args *args) {
    if (b->kernel[kernel]) return b->kernel[kernel](b, args);
    return egi_fail(EG_ERROR_DEVICE, "device %s has no kernel %d", b->name, (int)kernel);
}
static bool egi_fill(eg_tensor *x, double value) {
    egi_args args;
    memset(&args, 0, sizeof args);
    args.out[0] = x;
    args.parameters = &value;
    return x->size == 0 || egi_launch(egi_backend_of(x), EGI_FILL, &args);
}
static bool egi_copy(const eg_tensor *from, eg_tensor *to) {       // same shape; converts
    egi_args args;
    memset(&args, 0, sizeof args);
    args.in[0] = from;
    args.out[0] = to;
    return to->size == 0 || egi_launch(egi_backend_of(to), EGI_COPY, &args);
}
// x itself with one more reference, or a contiguous copy. Not owned by a scope.
static eg_tensor *egi_contiguous(const eg_tensor *x) {
    if (x->flags & EGI_CONTIGUOUS) {
        egi_object_retain(&((eg_tensor *)(uintptr_t)x)->object);
        return (eg_tensor *)(uintptr_t)x;
    }
    eg_shape shape = egi_shape(x);
    eg_tensor *y = egi_new(x->op, egi_backend_of(x), (eg_dtype)x->dtype, &shape);
    if (y && !egi_copy(x, y)) { egi_object_release(&y->object); y = NULL; }
    return y;
}

// ---- plain numbers

static eg_tensor *egi_number_new(double value, int64_t integer, unsigned flags) {
    eg_tensor *x = egi_tensor_new();
    if (!x) { egi_no_memory("number", (int64_t)sizeof *x); return NULL; }
    x->op = "number";
    x->dtype = EG_FLOAT32;
    x->rank = 0;
    x->size = 1;
    x->flags = (uint16_t)(EGI_NUMBER | EGI_CONTIGUOUS | flags);
    x->number = value;
    x->integer = integer;
    return egi_own(x);
}
EAGER_API eg_tensor *eg_number(double value) { return egi_number_new(value, 0, 0); }
EAGER_API eg_tensor *eg_integer(int64_t value) { return egi_number_new((double)value, value, EGI_INTEGER_NUMBER); }
EAGER_API eg_tensor *egi_unsigned(unsigned long long value) {
    return value > INT64_MAX ? eg_number((double)value) : eg_integer((int64_t)value);
}
// Can this number be of that dtype without a loss that would surprise?
static bool egi_number_fits(const char *function, const eg_tensor *x, eg_dtype dtype) {
    if (egi_is_float(dtype)) return true;
    double v = x->number;
    if (v != floor(v) || v != v || v - v != 0)
        return egi_fail(EG_ERROR_DTYPE, "eg_%s: %s does not fit dtype %s; eg_cast the tensor to a floating dtype first", function, egi_describe(x),
                        egi_dtypes[dtype].name);
    bool fits = dtype == EG_INT32 ? v >= INT32_MIN && v <= INT32_MAX : dtype == EG_UINT8 ? v >= 0 && v <= 255 : dtype == EG_BOOL ? v == 0 || v == 1 :
                (x->flags & EGI_INTEGER_NUMBER) || (v >= -9223372036854775808.0 && v < 9223372036854775808.0);
    return fits || egi_fail(EG_ERROR_DTYPE, "eg_%s: %s is out of the range of dtype %s", function, egi_describe(x), egi_dtypes[dtype].name);
}
static void egi_number_store(const eg_tensor *x, int dtype, void *p) {
    if (x->flags & EGI_INTEGER_NUMBER) egi_store_int(dtype, p, x->integer);
    else egi_store(dtype, p, x->number);
}
// A number as a real tensor of that dtype. Owned by the scope.
static eg_tensor *egi_number_tensor(const char *function, eg_tensor *x, eg_dtype dtype, eg_backend *backend) {
    eg_shape scalar = { 0, { 0 } };
    unsigned char bytes[8];
    if (!egi_number_fits(function, x, dtype)) return NULL;
    eg_tensor *y = egi_new(function, backend, dtype, &scalar);
    if (!y) return NULL;
    egi_number_store(x, dtype, bytes);
    if (!backend->write(backend, y->data, bytes, egi_dtypes[dtype].size)) { egi_object_release(&y->object); return NULL; }
    return egi_own(y);
}

// ---- is this handle usable?

static bool egi_alive(const char *function, int i, const eg_tensor *x) {
    if (!x) return egi_null_operand(function, i);
    if (x->object.kind != EGI_TENSOR)
        return egi_fail(EG_ERROR_STATE, "eg_%s: operand %d, made by eg_%s, was used after its scope ended; eg_keep or eg_retain it", function, i,
                        x->op);
    return true;
}

// ---- constructors

static eg_tensor *egi_upload(const char *op, eg_dtype dtype, const eg_shape *shape, const void *data) {
    eg_backend *b = egi_backend_here();
    eg_tensor *x = egi_new(op, b, dtype, shape);
    if (x && x->size && !b->write(b, x->data, data, x->size * egi_dtypes[dtype].size)) { egi_object_release(&x->object); return NULL; }
    return egi_own(x);
}
static bool egi_value_fits(const char *function, double v, eg_dtype dtype) {
    double most = dtype == EG_FLOAT16 ? 65520.0 : dtype == EG_FLOAT64 ? HUGE_VAL : 3.4028235677973366e38;      // what rounds to infinity
    if (egi_is_float(dtype) && v - v == 0 && fabs(v) >= most) return egi_fail(EG_ERROR_DTYPE, "eg_%s: the value %g does not fit dtype %s", function, v, egi_dtypes[dtype].name);
    if (egi_is_float(dtype) || dtype == EG_BOOL) return true;
    double low = dtype == EG_INT32 ? -2147483648.0 : dtype == EG_UINT8 ? 0 : -9223372036854775808.0;
    double high = dtype == EG_INT32 ? 2147483647.0 : dtype == EG_UINT8 ? 255 : 9223372036854774784.0;
    if (v != floor(v) || !(v >= low && v <= high))
        return egi_fail(EG_ERROR_DTYPE, "eg_%s: the value %g does not fit dtype %s", function, v, egi_dtypes[dtype].name);
    return true;
}
EAGER_API eg_tensor *eg_constant_values(eg_dtype dtype, eg_shape shape, const double *values, int64_t count) {
    if (!egi_shape_valid("constant", shape, dtype)) return NULL;
    int64_t size = 1;
    for (int i = 0; i < shape.rank; i++) size *= shape.dims[i];
    if (count != size)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_constant: shape %s needs %lld values, but %lld are given", egi_show(shape), (long long)size,
                                     (long long)count);
    for (int64_t i = 0; i < count; i++) if (!egi_value_fits("constant", values[i], dtype)) return NULL;
    size_t element = (size_t)egi_dtypes[dtype].size;
    char *bytes = (char *)egi_alloc((size_t)count * element);
    if (!bytes) { egi_no_memory("constant", count * (int64_t)element); return NULL; }
    for (int64_t i = 0; i < count; i++) egi_store(dtype, bytes + (size_t)i * element, values[i]);
    eg_tensor *x = egi_upload("constant", dtype, &shape, bytes);
    egi_free(bytes);
    return x;
}
EAGER_API eg_tensor *eg_scalar_of(eg_dtype dtype, double value) {
    eg_shape scalar = { 0, { 0 } };
    return eg_constant_values(dtype, scalar, &value, 1);
}
EAGER_API eg_tensor *eg_scalar(double value) { return eg_scalar_of(EG_FLOAT32, value); }
// Kernels count on 0 and 1 in bool tensors.
static bool egi_are_bools(const void *data, eg_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++) n *= shape.dims[i];
    for (int64_t i = 0; i < n; i++) if (((const unsigned char *)data)[i] > 1) return false;
    return true;
}
EAGER_API eg_tensor *eg_from_data(eg_dtype dtype, eg_shape shape, const void *data) {
    if (!egi_shape_valid("from_data", shape, dtype)) return NULL;
    bool empty = false;
    for (int i = 0; i < shape.rank; i++) empty = empty || shape.dims[i] == 0;
    if (!data && !empty) return (eg_tensor *)eg_raise(EG_ERROR_NULL, "eg_from_data: data is NULL for shape %s", egi_show(shape));
    if (dtype == EG_BOOL && !egi_are_bools(data, shape)) return eg_cast(egi_upload("from_data", EG_UINT8, &shape, data), EG_BOOL);
    return egi_upload("from_data", dtype, &shape, data);
}
EAGER_API eg_tensor *eg_wrap_data(eg_dtype dtype, eg_shape shape, const void *data, void (*deleter)(void *, void *), void *user) {
    eg_backend *backend = egi_backend_here();
    if (!egi_shape_valid("wrap_data", shape, dtype)) return NULL;
    if (!data) return (eg_tensor *)eg_raise(EG_ERROR_NULL, "eg_wrap_data: data is NULL");
    // Kernels load whole elements: data that is not aligned for its dtype is copied too.
    if (!backend->host_reads || (uintptr_t)data % (uintptr_t)egi_dtypes[dtype].size || (dtype == EG_BOOL && !egi_are_bools(data, shape))) {
        eg_tensor *copy = eg_from_data(dtype, shape, data);
        if (copy && deleter) deleter((void *)(uintptr_t)data, user);
        return copy;
    }
    eg_tensor *x = egi_tensor_new();
    egi_buffer *b = x ? (egi_buffer *)egi_alloc(sizeof *b) : NULL;
    if (!b) {
        if (x) egi_object_release(&x->object);
        egi_no_memory("wrap_data", (int64_t)sizeof *b);
        return NULL;
    }
    x->op = "wrap_data";
    x->dtype = (int8_t)dtype;
    egi_set_shape_checked(x, &shape);
    b->refs = 2;                                  // the buffer must outlive x if the scope cannot take it: no deleter on failure
    b->on_device = 0;
    b->backend = backend;
    b->data = (void *)(uintptr_t)data;
    b->bytes = x->size * egi_dtypes[dtype].size;
    b->deleter = NULL;
    b->user = user;
    x->buffer = b;
    x->data = (char *)b->data;
    x = egi_own(x);
    if (x) b->deleter = deleter;
    egi_buffer_release(b);
    return x;
}
static eg_tensor *egi_full_as(const char *op, eg_backend *backend, eg_dtype dtype, eg_shape shape, double value) {
    eg_tensor *x = egi_new(op, backend, dtype, &shape);
    if (x && !egi_fill(x, value)) { egi_object_release(&x->object); return NULL; }
    return egi_own(x);
}
static eg_tensor *egi_full(const char *op, eg_dtype dtype, eg_shape shape, double value) {
    return egi_shape_valid(op, shape, dtype) && egi_value_fits(op, value, dtype) ? egi_full_as(op, egi_backend_here(), dtype, shape, value) : NULL;
}
static eg_tensor *egi_full_like(const char *op, eg_tensor *x, double value) {
    if (!egi_alive(op, 0, x) || !egi_value_fits(op, value, (eg_dtype)x->dtype)) return NULL;
    return egi_full_as(op, egi_backend_of(x), (eg_dtype)x->dtype, egi_shape(x), value);
}
EAGER_API eg_tensor *eg_full(eg_dtype dtype, eg_shape shape, double value) { return egi_full("full", dtype, shape, value); }
EAGER_API eg_tensor *eg_zeros(eg_dtype dtype, eg_shape shape) { return egi_full("zeros", dtype, shape, 0); }
EAGER_API eg_tensor *eg_ones(eg_dtype dtype, eg_shape shape) { return egi_full("ones", dtype, shape, 1); }
EAGER_API eg_tensor *eg_full_like(eg_tensor *x, double value) { return egi_full_like("full_like", x, value); }
EAGER_API eg_tensor *eg_zeros_like(eg_tensor *x) { return egi_full_like("zeros_like", x, 0); }
EAGER_API eg_tensor *eg_ones_like(eg_tensor *x) { return egi_full_like("ones_like", x, 1); }
// Elements computed on the host by a rule, then sent to the device.
static eg_tensor *egi_from_rule(const char *op, eg_dtype dtype, eg_shape shape, double (*rule)(int64_t i, const double *p), const double *p) {
    if (!egi_shape_valid(op, shape, dtype)) return NULL;
    int64_t size = 1;
    for (int i = 0; i < shape.rank; i++) size *= shape.dims[i];
    size_t element = (size_t)egi_dtypes[dtype].size;
    char *bytes = (char *)egi_alloc((size_t)size * element);
    if (!bytes) { egi_no_memory(op, size * (int64_t)element); return NULL; }
    for (int64_t i = 0; i < size; i++) egi_store(dtype, bytes + (size_t)i * element, rule(i, p));
    eg_tensor *x = egi_upload(op, dtype, &shape, bytes);
    egi_free(bytes);
    return x;
}
static double egi_eye_rule(int64_t i, const double *p) { return i / (int64_t)p[0] == i % (int64_t)p[0]; }
static double egi_range_rule(int64_t i, const double *p) { return p[0] + (double)i * p[1]; }
static double egi_linspace_rule(int64_t i, const double *p) { return (double)i == p[2] ? p[1] : p[0] + (p[1] - p[0]) * ((double)i / p[2]); }
EAGER_API eg_tensor *eg_eye(eg_dtype dtype, int64_t rows, int64_t columns) {
    eg_shape shape = { 2, { rows, columns } };
    double p = (double)columns;
    return egi_from_rule("eye", dtype, shape, egi_eye_rule, &p);
}
EAGER_API eg_tensor *eg_range(eg_dtype dtype, double start, double limit, double delta) {
    double count = ceil((limit - start) / delta), p[2] = { start, delta };
    if (delta == 0 || count != count || count > 1e15)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_range: no range goes from %g to %g in steps of %g", start, limit, delta);
    if (!egi_dtype_valid(dtype)) return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_range: %d is no dtype", (int)dtype);
    if (!egi_value_fits("range", start, dtype) || !egi_value_fits("range", delta < 0 && dtype == EG_UINT8 ? -delta : delta, dtype)) return NULL;
    eg_shape shape = { 1, { count > 0 ? (int64_t)count : 0 } };
    if (count > 0 && !egi_value_fits("range", start + (count - 1) * delta, dtype)) return NULL;
    return egi_from_rule("range", dtype, shape, egi_range_rule, p);
}
EAGER_API eg_tensor *eg_linspace(eg_dtype dtype, double start, double stop, int64_t count) {
    eg_shape shape = { 1, { count } };
    double p[3] = { start, stop, count > 1 ? (double)(count - 1) : 1 };
    if (egi_dtype_valid(dtype) && !egi_is_float(dtype))
        return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_linspace: needs a floating dtype, not %s", egi_dtypes[dtype].name);
    return egi_from_rule("linspace", dtype, shape, egi_linspace_rule, p);
}

// ---- reading

EAGER_API int eg_rank(eg_tensor *x) { return egi_alive("rank", 0, x) ? x->rank : -1; }
EAGER_API int64_t eg_size(eg_tensor *x) { return egi_alive("size", 0, x) ? x->size : -1; }
EAGER_API int64_t eg_dim(eg_tensor *x, int axis) {
    return egi_alive("dim", 0, x) && egi_axis("dim", axis, x->rank, &axis) ? x->dims[axis] : -1;
}
EAGER_API eg_shape eg_shape_of(eg_tensor *x) {
    eg_shape none = { -1, { 0 } };
    return egi_alive("shape_of", 0, x) ? egi_shape(x) : none;
}
EAGER_API eg_dtype eg_dtype_of(eg_tensor *x) { return egi_alive("dtype_of", 0, x) ? (eg_dtype)x->dtype : EG_NO_DTYPE; }
EAGER_API const char *eg_name_of(eg_tensor *x) { return !egi_alive("name_of", 0, x) ? "" : x->name ? x->name : x->op; }
EAGER_API const char *eg_device_of(eg_tensor *x) { return egi_alive("device_of", 0, x) ? egi_backend_of(x)->name : ""; }

static void egi_count_host_copy(void) {                    // the first thing a thread does may be to read a tensor of another one
    egi_heap *heap = egi_heap_get();
    if (heap) egi_count(&heap->host_copies, 1);
}
EAGER_API const void *eg_data(eg_tensor *x) {
    if (!egi_alive("data", 0, x)) return NULL;
    if (x->flags & EGI_NUMBER) {
        if (!x->host && (x->host = egi_alloc(8)) != NULL) egi_number_store(x, x->dtype, x->host);
        return x->host ? x->host : (egi_no_memory("data", 8), (void *)NULL);
    }
    eg_backend *b = egi_backend_of(x);
    if (b->host_reads && (x->flags & EGI_CONTIGUOUS)) return x->data;
    void *host = __atomic_load_n(&x->host, __ATOMIC_ACQUIRE);
    if (host) return host;
    int64_t bytes = x->size * egi_dtypes[x->dtype].size;
    eg_tensor *c = egi_contiguous(x);
    if (!c) return NULL;
    host = egi_alloc((size_t)bytes);
    if (!host) egi_no_memory("data", bytes);
    else if (bytes && !b->read(b, host, c->data, bytes)) { egi_free(host); host = NULL; }
    egi_object_release(&c->object);
    if (host && !b->host_reads) egi_count_host_copy();
    // Two threads may read the same tensor: the first copy stays.
    void *none = NULL;
    if (host && !__atomic_compare_exchange_n(&x->host, &none, host, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) { egi_free(host); host = none; }
    return host;
}
static bool egi_one_element(const char *function, eg_tensor *x, unsigned char *bytes) {
    if (!egi_alive(function, 0, x)) return false;
    if (x->size != 1) return egi_fail(EG_ERROR_SHAPE, "eg_%s: a tensor of one element is needed, not %s", function, egi_describe(x));
    eg_backend *b = egi_backend_of(x);
    if (b->host_reads) { memcpy(bytes, x->data, (size_t)egi_dtypes[x->dtype].size); return true; }
    egi_count_host_copy();
    return b->read(b, bytes, x->data, egi_dtypes[x->dtype].size);
}
EAGER_API double eg_item(eg_tensor *x) {
    unsigned char bytes[8];
    if (x && x->object.kind == EGI_TENSOR && (x->flags & EGI_NUMBER)) return x->number;
    return egi_one_element("item", x, bytes) ? egi_load(x->dtype, bytes) : (double)NAN;
}
EAGER_API int64_t eg_item_int(eg_tensor *x) {
    unsigned char bytes[8];
    if (x && x->object.kind == EGI_TENSOR && (x->flags & EGI_NUMBER)) return x->flags & EGI_INTEGER_NUMBER ? x->integer : egi_to_int64(x->number);
    return egi_one_element("item_int", x, bytes) ? egi_load_int(x->dtype, bytes) : 0;
}

//# 18  RANDOM NUMBERS ---------------------------------------------------------
// Idea: a random number is a function of where it stands, not of what was drawn
// before it. Philox scrambles a 128-bit counter under a 64-bit key; element i of
// a draw reads the block number `counter + i / (elements a block)` under the seed,
// so that any thread or device can compute any part of a draw alone and all agree.
// After a draw the generator moves on by the number of blocks the draw has used.
//
// Every fill takes the draw's starting state and writes elements [first, first +
// count) of the draw to out[0 .. count).

#endif // EGI_IMPLEMENTED
#if (defined(EAGER_IMPLEMENTATION) || defined(EAGER_BACKEND)) && !defined(EGI_RANDOM_NUMBERS)   // the same numbers on every device
#define EGI_RANDOM_NUMBERS
typedef struct egi_random {
    uint64_t seed;
    uint64_t counter;  // the next block; wraps around after 2^64 of them
} egi_random;

// Elements that one 128-bit block yields: the step of the counter depends on them.
enum {
    EGI_RANDOM_PER_BLOCK_32 = 4,  // bits, float32, Bernoulli, truncated or not
    EGI_RANDOM_PER_BLOCK_64 = 2   // float64, integers, permutations
};

EGI_EVERYWHERE void egi_random_advance(egi_random *r, int64_t count, int per_block) {
    r->counter += (uint64_t)(count / per_block) + (uint64_t)(count % per_block != 0);
}

// Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3" (2011): ten rounds of two 32x32 -> 64 bit products. Each round
// is a bijection, so distinct counters never give the same block under one key.
EGI_EVERYWHERE void egi_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 10  // twice as fast; clang does it unasked
#endif
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;  // the golden ratio, and below sqrt(3) - 1
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

// Block `block` of a draw. `attempt` opens a further, independent sequence for
// elements whose first number had to be rejected.
EGI_EVERYWHERE void egi_random_block(uint32_t out[4], egi_random r, uint64_t block, uint32_t attempt) {
    const uint64_t position = r.counter + block;
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), attempt, 0};
    const uint32_t key[2] = {(uint32_t)r.seed, (uint32_t)(r.seed >> 32)};
    egi_philox(out, counter, key);
}

EGI_EVERYWHERE uint64_t egi_random_word64(const uint32_t block[4], int half) {
    return (uint64_t)block[2 * half] | (uint64_t)block[2 * half + 1] << 32;
}

// Walks the blocks under elements [first, first + count): `word` holds the block,
// `lane` is the element's place in it and `i` its place in out. `per_block`, a
// constant, is one of the above.
#define EGI_RANDOM_EACH_BLOCK(per_block, ...)                                                   \
    do {                                                                                        \
        uint64_t egi_at_block = (uint64_t)first / (per_block);                                     \
        int egi_from = (int)((uint64_t)first % (per_block));                                    \
        for (int64_t egi_at = 0; egi_at < count; egi_at_block++, egi_from = 0) {                   \
            uint32_t word[4];                                                                   \
            egi_random_block(word, r, egi_at_block, 0);                                            \
            const int64_t egi_left = count - egi_at;                                            \
            const int egi_to = egi_left < (per_block) - egi_from ? egi_from + (int)egi_left : (per_block); \
            int64_t i = egi_at;                                                                 \
            for (int lane = egi_from; lane < egi_to; lane++, i++) {                             \
                __VA_ARGS__                                                                     \
            }                                                                                   \
            egi_at = i;                                                                         \
        }                                                                                       \
    } while (0)

// True with probability p, to the nearest 2^-32. NaN and p <= 0 never, p >= 1 always.
EGI_EVERYWHERE void egi_random_bernoulli(unsigned char *out, int64_t first, int64_t count, egi_random r, double p) {
    const double limit = p * 4294967296.0;
    EGI_RANDOM_EACH_BLOCK(4, out[i] = (unsigned char)((double)word[lane] < limit););
}

// The high and low half of a 128-bit product.
EGI_EVERYWHERE uint64_t egi_multiply_high(uint64_t a, uint64_t b, uint64_t *low) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
    const uint64_t middle = p10 + (p00 >> 32) + (uint32_t)p01;
    *low = middle << 32 | (uint32_t)p00;
    return a1 * b1 + (p01 >> 32) + (middle >> 32);
}

// An integer in [0, range), each exactly as likely (Lemire 2019): x * range / 2^64,
// where of the 2^64 values of x the first 2^64 mod range in their cell are rejected.
// A rejected element tries again in a sequence of its own. range 0 stands for 2^64.
EGI_EVERYWHERE uint64_t egi_random_below(egi_random r, uint64_t block, int half, uint64_t x, uint64_t range) {
    uint64_t low, high = egi_multiply_high(x, range, &low);
    if (range == 0) return x;
    if (low < range) {
        const uint64_t reject = (0 - range) % range;
        for (uint32_t attempt = 1; low < reject; attempt++) {
            uint32_t word[4];
            egi_random_block(word, r, block, attempt);
            high = egi_multiply_high(egi_random_word64(word, half), range, &low);
        }
    }
    return high;
}

// Integers in [low, high), low < high.
EGI_EVERYWHERE void egi_random_int64(int64_t *out, int64_t first, int64_t count, egi_random r, int64_t low, int64_t high) {
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    EGI_RANDOM_EACH_BLOCK(2,
        const uint64_t x = egi_random_word64(word, lane);
        out[i] = (int64_t)((uint64_t)low + egi_random_below(r, egi_at_block, lane, x, range)););
}

// A permutation of 0 .. count - 1 (Fisher and Yates, growing from the left). Each
// place depends on all before it, so there is no computing a part alone.
EGI_EVERYWHERE void egi_random_permutation(int64_t *out, int64_t count, egi_random r) {
    const int64_t first = 0;
    EGI_RANDOM_EACH_BLOCK(2,
        const uint64_t x = egi_random_word64(word, lane);
        const int64_t j = (int64_t)egi_random_below(r, egi_at_block, lane, x, (uint64_t)i + 1);
        if (j != i) out[i] = out[j];
        out[j] = i;);
}

// From here to the end of the chapter a product and a sum must stay two roundings:
// a compiler that fuses them where the CPU can would change the last bit from one
// machine to the next. With + - * / and sqrt alone, all of which IEEE 754 rounds
// exactly, the same seed gives the same normals everywhere; libm's log and cos
// would not. (-ffast-math, and -ffp-contract=fast with clang, still overrule this.)
#if defined(__clang__)
#define EGI_FP_EXACT _Pragma("clang fp contract(off)")
#else
#define EGI_FP_EXACT
#if defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
#endif

// Uniform in [low, high); with 0 and 1 the 24 or 53 high bits themselves. high - low
// must be finite.
EGI_EVERYWHERE void egi_random_uniform_f32(float *out, int64_t first, int64_t count, egi_random r, double low, double high) {
    EGI_FP_EXACT
    const double step = (high - low) * (1.0 / 16777216.0);
    const float limit = (float)high, last = nextafterf(limit, (float)low);
    EGI_RANDOM_EACH_BLOCK(4,
        const double p = step * (double)(word[lane] >> 8);
        const float u = (float)(low + p);
        out[i] = u < limit ? u : last;);  // rounding may have reached high
}

EGI_EVERYWHERE void egi_random_uniform_f64(double *out, int64_t first, int64_t count, egi_random r, double low, double high) {
    EGI_FP_EXACT
    const double range = high - low, last = nextafter(high, low);
    EGI_RANDOM_EACH_BLOCK(2,
        const double p = range * ((double)(egi_random_word64(word, lane) >> 11) * (1.0 / 9007199254740992.0));
        const double u = low + p;
        out[i] = u < high ? u : last;);
}

// -2 ln u for 0 < u < 1, to about 2 ulp. With u = m 2^e, m near 1, and s = (m - 1) / (m + 1):
// ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...), where |s| < 0.172 and 11 terms suffice.
EGI_EVERYWHERE double egi_minus_2_log(double u) {
    EGI_FP_EXACT
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    // Adding the distance from the bits of sqrt(1/2) to those of 1 makes the exponent step at sqrt(1/2).
    bits += 0x3FF0000000000000u - 0x3FE6A09E667F3BCDu;
    const double e = (double)(int)(bits >> 52) - 1023.0;
    bits = (bits & 0x000FFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu;
    double m;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1.0) / (m + 1.0), z = s * s, z2 = z * z, z4 = z2 * z2;
    const double p0 = 1.0 / 3 + z * (1.0 / 5) + z2 * (1.0 / 7 + z * (1.0 / 9));
    const double p1 = 1.0 / 11 + z * (1.0 / 13) + z2 * (1.0 / 15 + z * (1.0 / 17));
    const double p2 = 1.0 / 19 + z * (1.0 / 21);
    const double tail = s * (z * (p0 + z4 * (p1 + z4 * p2)));
    return -4.0 * (s + tail) - e * 1.3862943611198906;  // 2 ln 2
}

// Two independent standard normals from u1, u2 in (0, 1), the angle given as the
// quarter turn it falls in and a fraction t of one in [-1/2, 1/2] from its middle
// (Box and Muller): the radius sqrt(-2 ln u1) times the sine and the cosine.
EGI_EVERYWHERE void egi_normal_pair(double out[2], double u, uint32_t quarter, double t) {
    EGI_FP_EXACT
    const double radius = sqrt(egi_minus_2_log(u));
    const double a = t * 1.5707963267948966, x = a * a, x2 = x * x, x4 = x2 * x2;  // |a| <= pi/4: Taylor's series
    const double s0 = -1.0 / 6 + x * (1.0 / 120) + x2 * (-1.0 / 5040 + x * (1.0 / 362880));
    const double s1 = -1.0 / 39916800 + x * (1.0 / 6227020800.0) + x2 * (-1.0 / 1307674368000.0);
    const double c0 = -1.0 / 2 + x * (1.0 / 24) + x2 * (-1.0 / 720 + x * (1.0 / 40320));
    const double c1 = -1.0 / 3628800 + x * (1.0 / 479001600) +
                      x2 * (-1.0 / 87178291200.0 + x * (1.0 / 20922789888000.0));
    const double sine = radius * (a + a * (x * (s0 + x4 * s1)));
    const double cosine = radius * (1.0 + x * (c0 + x4 * c1));
    // Quarter turns: (c, s) -> (-s, c) -> (-c, -s) -> (s, -c). Signs are flipped and places swapped
    // without a branch, which would be mispredicted half of the time.
    const int swap = (int)(quarter & 1);
    const double c_sign = quarter & 2 ? -cosine : cosine, s_sign = quarter & 2 ? -sine : sine;
    out[0] = swap ? -s_sign : c_sign;
    out[1] = swap ? c_sign : s_sign;
}

// Four normals of a block for float32: 32 bits of radius (so |z| < 6.77), 32 of angle.
EGI_EVERYWHERE void egi_normal_block_f32(double out[4], const uint32_t word[4]) {
    EGI_FP_EXACT
    for (int k = 0; k < 4; k += 2) {
        const double u = ((double)word[k] + 0.5) * (1.0 / 4294967296.0);
        const double t = (double)((int32_t)(word[k + 1] & 0x3FFFFFFFu) - 0x20000000) * (1.0 / 1073741824.0);
        egi_normal_pair(out + k, u, word[k + 1] >> 30, t);
    }
}

// Two for float64: 52 bits of radius (|z| < 8.58), 64 of angle.
EGI_EVERYWHERE void egi_normal_block_f64(double out[2], const uint32_t word[4]) {
    EGI_FP_EXACT
    const uint64_t a = egi_random_word64(word, 0), b = egi_random_word64(word, 1);
    const double u = ((double)(a >> 12) + 0.5) * (1.0 / 4503599627370496.0);
    const double t = (double)((int64_t)(b & 0x3FFFFFFFFFFFFFFFu) - 0x2000000000000000) * (1.0 / 4611686018427387904.0);
    egi_normal_pair(out, u, (uint32_t)(b >> 62), t);
}

// Normals; the float32 ones are those of double arithmetic, rounded once. A truncated
// normal has cut = 2 (a plain one HUGE_VAL): an element further out than `cut` standard
// deviations tries again, in its own lane of the next attempt's block, so that it still
// depends on its place alone.
EGI_EVERYWHERE void egi_random_normal_f32(float *out, int64_t first, int64_t count, egi_random r, double mean, double stddev,
                                  double cut) {
    EGI_FP_EXACT
    uint64_t block = (uint64_t)first / 4;
    int lane = (int)((uint64_t)first % 4);
    for (int64_t i = 0; i < count; block++, lane = 0) {
        uint32_t word[4];
        double z[4], again[4];
        egi_random_block(word, r, block, 0);
        egi_normal_block_f32(z, word);
        for (; lane < 4 && i < count; lane++, i++) {
            for (uint32_t attempt = 1; fabs(z[lane]) > cut; attempt++) {
                egi_random_block(word, r, block, attempt);
                egi_normal_block_f32(again, word);
                z[lane] = again[lane];
            }
            const double scaled = stddev * z[lane];
            out[i] = (float)(mean + scaled);
        }
    }
}

EGI_EVERYWHERE void egi_random_normal_f64(double *out, int64_t first, int64_t count, egi_random r, double mean, double stddev,
                                  double cut) {
    EGI_FP_EXACT
    uint64_t block = (uint64_t)first / 2;
    int lane = (int)((uint64_t)first % 2);
    for (int64_t i = 0; i < count; block++, lane = 0) {
        uint32_t word[4];
        double z[2], again[2];
        egi_random_block(word, r, block, 0);
        egi_normal_block_f64(z, word);
        for (; lane < 2 && i < count; lane++, i++) {
            for (uint32_t attempt = 1; fabs(z[lane]) > cut; attempt++) {
                egi_random_block(word, r, block, attempt);
                egi_normal_block_f64(again, word);
                z[lane] = again[lane];
            }
            const double scaled = stddev * z[lane];
            out[i] = mean + scaled;
        }
    }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
#endif // EGI_RANDOM_NUMBERS
#if defined(EAGER_IMPLEMENTATION) && !defined(EGI_IMPLEMENTED_AFTER_RANDOM_NUMBERS)
#define EGI_IMPLEMENTED_AFTER_RANDOM_NUMBERS

//# 19  PRINTING ---------------------------------------------------------------
// Idea: an array is written as NumPy's print() writes it. Each number gets the
// fewest digits that tell it from its neighbours in its dtype, at most 8 behind
// the point; all cells are as wide as the widest. So three walks over the elements
// that will be seen: how large are they, how wide is the text, and then the text.

typedef struct egi_text {
    char *data;  // ends in '\0' where not NULL
    size_t size, capacity;
    bool failed;  // out of memory: what is there is a beginning
} egi_text;

static void egi_text_free(egi_text *t) {
    egi_free(t->data);
    memset(t, 0, sizeof *t);
}

static bool egi_text_reserve(egi_text *t, size_t more) {
    if (t->failed) return false;
    if (t->capacity - t->size > more) return true;
    size_t capacity = t->capacity ? t->capacity : 128;
    while (capacity - t->size <= more && capacity <= SIZE_MAX / 2) capacity *= 2;
    char *data = capacity - t->size > more ? (char *)egi_alloc(capacity) : NULL;
    if (!data) {
        t->failed = true;
        return false;
    }
    if (t->size) memcpy(data, t->data, t->size);
    data[t->size] = '\0';
    egi_free(t->data);
    t->data = data;
    t->capacity = capacity;
    return true;
}

static void egi_text_add(egi_text *t, const void *bytes, size_t n) {
    if (n == 0 || !egi_text_reserve(t, n)) return;
    memcpy(t->data + t->size, bytes, n);
    t->size += n;
    t->data[t->size] = '\0';
}

static void egi_text_string(egi_text *t, const char *s) {
    egi_text_add(t, s, strlen(s));
}

static void egi_text_fill(egi_text *t, char c, int n) {
    for (; n > 0; n--) egi_text_add(t, &c, 1);
}

// What the elements are; 0, 5 and 6 are all handed over as float.
enum {
    EGI_PRINT_FLOAT32 = 0,
    EGI_PRINT_FLOAT64 = 1,   // double
    EGI_PRINT_INT = 2,       // int64_t
    EGI_PRINT_UINT = 3,      // uint64_t
    EGI_PRINT_BOOL = 4,      // unsigned char
    EGI_PRINT_FLOAT16 = 5,   // float holding float16 values
    EGI_PRINT_BFLOAT16 = 6   // float holding bfloat16 values
};

enum { EGI_PRINT_PRECISION = 8, EGI_PRINT_EDGE = 3, EGI_PRINT_ALL_UP_TO = 1000, EGI_PRINT_WIDTH = 75 };

// A number is 0.d1 d2 d3 ... times ten to the `point`; zero has one digit, 0, and point 1.
typedef struct egi_digits {
    char digit[24];
    int count, point;
} egi_digits;

// A value >= 0 rounded to the dtype, as reading the digits back into it would.
static double egi_print_round(int kind, double value) {
    if (kind == EGI_PRINT_FLOAT64) return value;
    if (kind == EGI_PRINT_FLOAT32) return value > 3.4028234663852886e38 ? HUGE_VAL : (double)(float)value;
    const int bits = kind == EGI_PRINT_FLOAT16 ? 11 : 8, lowest = kind == EGI_PRINT_FLOAT16 ? -24 : -133;
    int exponent;
    (void)frexp(value, &exponent);
    const int unit = exponent - bits > lowest ? exponent - bits : lowest;
    return ldexp(rint(ldexp(value, -unit)), unit);
}

// snprintf and strtod agree on the program's locale, and the digits are picked out
// whatever it puts between them.
static double egi_print_try(int kind, double magnitude, int count, egi_digits *d) {
    char s[64];
    (void)snprintf(s, sizeof s, "%.*e", count - 1, magnitude);
    const char *c = s;
    for (d->count = 0; *c != '\0' && *c != 'e'; c++)
        if (*c >= '0' && *c <= '9' && d->count < (int)sizeof d->digit) d->digit[d->count++] = *c;
    d->point = *c == 'e' ? 1 + (int)strtol(c + 1, NULL, 10) : 1;
    return kind == EGI_PRINT_FLOAT32 ? (double)strtof(s, NULL) : egi_print_round(kind, strtod(s, NULL));
}

// The fewest digits that read back as the value; at least `least`, at most `most` of
// them, and at most `decimals` behind the point.
static void egi_print_digits(int kind, double magnitude, int least, int most, int decimals, egi_digits *d) {
    (void)egi_print_try(kind, magnitude, 18, d);  // its exponent: 18 digits never round up to a power of ten
    if (magnitude > 0 && d->point + decimals < most) most = d->point + decimals;
    for (int count = least; count <= most; count++)
        if (egi_print_try(kind, magnitude, count, d) == magnitude) break;
    while (d->count > 1 && d->digit[d->count - 1] == '0') d->count--;
}

typedef struct egi_printer {
    egi_text *out;
    int kind, rank;
    const void *data;
    const int64_t *dims;
    int walk;  // 0: magnitudes, 1: widths, 2: the text
    bool summarize, scientific;
    bool any, finite, nonfinite, minus_infinity;
    double smallest, largest;         // magnitudes, zero left out
    int left, right, exponent_width;  // characters before and behind the point; digits of an exponent
    int column;                       // characters in this line of the text
} egi_printer;

static double egi_print_float_at(const egi_printer *p, int64_t i) {
    return p->kind == EGI_PRINT_FLOAT64 ? ((const double *)p->data)[i] : (double)((const float *)p->data)[i];
}

static bool egi_print_is_float(int kind) {
    return kind < EGI_PRINT_INT || kind > EGI_PRINT_BOOL;
}

static int egi_print_integer(const egi_printer *p, int64_t i, char s[24]) {
    if (p->kind == EGI_PRINT_UINT) return snprintf(s, 24, "%llu", (unsigned long long)((const uint64_t *)p->data)[i]);
    return snprintf(s, 24, "%lld", (long long)((const int64_t *)p->data)[i]);
}

static int egi_print_exponent_digits(int exponent) {
    return abs(exponent) < 100 ? 2 : 3;
}

static void egi_print_exponent(egi_text *t, int exponent, int width) {
    char s[16];
    const int n = snprintf(s, sizeof s, "e%c%0*d", exponent < 0 ? '-' : '+', width, abs(exponent));
    egi_text_add(t, s, (size_t)n);
}

// d with `decimals` places behind the point, filled up with `fill`.
static void egi_print_positional(egi_text *t, const egi_digits *d, int decimals, char fill) {
    if (d->point <= 0) egi_text_string(t, "0");
    for (int k = 0; k < d->point; k++) egi_text_fill(t, k < d->count ? d->digit[k] : '0', 1);
    egi_text_string(t, ".");
    for (int k = d->point; k < d->point + decimals; k++)
        egi_text_fill(t, k < 0 ? '0' : k < d->count ? d->digit[k] : fill, 1);
}

static void egi_print_scientific(egi_text *t, const egi_digits *d, int decimals, int exponent_width) {
    egi_text_add(t, d->digit, 1);
    egi_text_string(t, ".");
    for (int k = 1; k <= decimals; k++) egi_text_fill(t, k < d->count ? d->digit[k] : '0', 1);
    egi_print_exponent(t, d->point - 1, exponent_width);
}

static int egi_print_max(int a, int b) {
    return a > b ? a : b;
}

static const char *egi_print_nonfinite(double x) {
    return x != x ? "nan" : x < 0 ? "-inf" : "inf";
}

static void egi_print_float(egi_printer *p, int64_t i) {
    const double x = egi_print_float_at(p, i), magnitude = fabs(x);
    const bool negative = __builtin_signbit(x) != 0;
    if (!__builtin_isfinite(x)) {
        const char *s = egi_print_nonfinite(x);
        p->nonfinite = true;
        if (x < 0) p->minus_infinity = true;
        if (p->walk == 2) {
            egi_text_fill(p->out, ' ', p->left + p->right + 1 - (int)strlen(s));
            egi_text_string(p->out, s);
        }
        return;
    }
    if (p->walk == 0) {
        p->finite = true;
        if (magnitude > 0 && (!p->any || magnitude < p->smallest)) p->smallest = magnitude;
        if (magnitude > 0 && (!p->any || magnitude > p->largest)) p->largest = magnitude;
        if (magnitude > 0) p->any = true;
        return;
    }
    egi_digits d;
    if (!p->scientific) {
        egi_print_digits(p->kind, magnitude, 1, 17, EGI_PRINT_PRECISION, &d);
    } else if (p->walk == 1) {
        egi_print_digits(p->kind, magnitude, 1, EGI_PRINT_PRECISION + 1, 1000, &d);
    } else {  // shorter ones show the digits that they have, not zeros, up to the common length
        const int count = p->right - p->exponent_width - 1;
        egi_print_digits(p->kind, magnitude, count, count, 1000, &d);
    }
    const int whole = negative + (p->scientific ? 1 : egi_print_max(d.point, 1));
    if (p->walk == 1) {
        p->left = egi_print_max(p->left, whole);
        p->right = egi_print_max(p->right, d.count - (p->scientific ? 1 : d.point));
        p->exponent_width = egi_print_max(p->exponent_width, egi_print_exponent_digits(d.point - 1));
        return;
    }
    egi_text_fill(p->out, ' ', p->left - whole);
    if (negative) egi_text_string(p->out, "-");
    if (p->scientific) {
        egi_print_scientific(p->out, &d, p->right - p->exponent_width - 2, p->exponent_width);
    } else {
        egi_print_positional(p->out, &d, p->right, ' ');
    }
}

static void egi_print_element(egi_printer *p, int64_t i) {
    if (egi_print_is_float(p->kind)) {
        egi_print_float(p, i);
    } else if (p->kind == EGI_PRINT_BOOL) {
        p->left = 5;
        if (p->walk == 2) egi_text_string(p->out, ((const unsigned char *)p->data)[i] ? " True" : "False");
    } else {
        char s[24];
        const int n = egi_print_integer(p, i, s);
        p->left = egi_print_max(p->left, n);
        if (p->walk == 2) {
            egi_text_fill(p->out, ' ', p->left - n);
            egi_text_add(p->out, s, (size_t)n);
        }
    }
}

// Makes room in the line for a word. Every bracket that is open indents by one, and
// shortens the line by one for its closing; a line never ends in blanks.
static void egi_print_word(egi_printer *p, int axis, int width, bool first) {
    const int indent = axis + 1;
    if (p->walk != 2) return;
    if (!first) {
        egi_text_string(p->out, " ");
        p->column++;
    }
    if (p->column + width > EGI_PRINT_WIDTH - axis - 1 && p->column > indent) {
        while (p->out->size && p->out->data[p->out->size - 1] == ' ') p->out->data[--p->out->size] = '\0';
        egi_text_string(p->out, "\n");
        egi_text_fill(p->out, ' ', indent);
        p->column = indent;
    }
    p->column += width;
}

// The part of the array below `axis`: `size` elements from `offset` on.
static void egi_print_axis(egi_printer *p, int axis, int64_t offset, int64_t size) {
    const int64_t length = p->dims[axis], step = size / length;
    const bool last = axis == p->rank - 1, cut = p->summarize && length > 2 * EGI_PRINT_EDGE;
    if (p->walk == 2) egi_text_string(p->out, "[");
    p->column = axis + 1;
    for (int64_t i = 0; i < length; i++) {
        const bool dots = cut && i == EGI_PRINT_EDGE;
        if (last) {
            egi_print_word(p, axis, dots ? 3 : p->left + (egi_print_is_float(p->kind) ? 1 + p->right : 0), i == 0);
        } else if (i > 0 && p->walk == 2) {
            egi_text_fill(p->out, '\n', p->rank - axis - 1);
            egi_text_fill(p->out, ' ', axis + 1);
        }
        if (dots) {
            if (p->walk == 2) egi_text_string(p->out, "...");
            i = length - EGI_PRINT_EDGE - 1;
        } else if (last) {
            egi_print_element(p, offset + i);
        } else {
            egi_print_axis(p, axis + 1, offset + i * step, step);
        }
    }
    if (p->walk == 2) egi_text_string(p->out, "]");
}

// Magnitudes at which NumPy turns to scientific notation: 10^8 (a float64 alone:
// 10^16), less where the dtype carries fewer decimal digits than that.
static double egi_print_large(int kind, bool alone) {
    if (kind == EGI_PRINT_FLOAT64) return alone ? 1e16 : 1e8;
    return kind == EGI_PRINT_FLOAT32 ? 1e6 : 1e3;
}

// A number alone shows all its digits.
static void egi_print_scalar(egi_printer *p) {
    char s[24];
    egi_digits d;
    if (p->kind == EGI_PRINT_BOOL) {
        egi_text_string(p->out, ((const unsigned char *)p->data)[0] ? "True" : "False");
        return;
    }
    if (!egi_print_is_float(p->kind)) {
        egi_text_add(p->out, s, (size_t)egi_print_integer(p, 0, s));
        return;
    }
    const double x = egi_print_float_at(p, 0), magnitude = fabs(x);
    if (!__builtin_isfinite(x)) {
        egi_text_string(p->out, egi_print_nonfinite(x));
        return;
    }
    egi_print_digits(p->kind, magnitude, 1, 17, 1000, &d);
    if (__builtin_signbit(x)) egi_text_string(p->out, "-");
    if (magnitude == 0 || (magnitude >= 1e-4 && magnitude < egi_print_large(p->kind, true))) {
        egi_print_positional(p->out, &d, egi_print_max(d.count - d.point, 1), '0');
    } else if (d.count > 1) {
        egi_print_scientific(p->out, &d, d.count - 1, egi_print_exponent_digits(d.point - 1));
    } else {
        egi_text_add(p->out, d.digit, 1);
        egi_print_exponent(p->out, d.point - 1, egi_print_exponent_digits(d.point - 1));
    }
}

// The array behind `data`, contiguous, as print() of NumPy writes it.
static void egi_format_array(egi_text *out, int kind, const void *data, int rank, const int64_t *dims) {
    egi_printer p;
    memset(&p, 0, sizeof p);
    p.out = out;
    p.kind = kind;
    p.rank = rank;
    p.data = data;
    p.dims = dims;
    if (rank == 0) {
        egi_print_scalar(&p);
        return;
    }
    int64_t size = 1;
    for (int k = 0; k < rank; k++) {
        if (dims[k] == 0) {
            egi_text_string(out, "[]");
            return;
        }
        size *= dims[k];
    }
    p.summarize = size > EGI_PRINT_ALL_UP_TO;
    egi_print_axis(&p, 0, 0, size);
    if (egi_print_is_float(kind)) {
        p.scientific = p.any && (p.largest >= egi_print_large(kind, false) ||
                                 p.smallest < egi_print_round(kind, 1e-4) ||
                                 egi_print_round(kind, p.largest / p.smallest) > 1000.0);
    }
    p.walk = 1;
    egi_print_axis(&p, 0, 0, size);
    if (p.scientific) p.right += 2 + p.exponent_width;
    if (p.nonfinite) p.left = egi_print_max(p.left, 3 + p.minus_infinity - (p.right + 1));
    p.walk = 2;
    egi_print_axis(&p, 0, 0, size);
}

//# 20  THE OP TABLE -----------------------------------------------------------
// Idea: an op is one row: what it computes, and what each input's gradient is.
// Elementwise rows are formulas in the language EGI_ADD, EGI_MUL, EGI_TANH ...,
// whose words mean whatever EGI_V says at the moment: float arithmetic, int
// arithmetic, eager ops on tensors, or "which operands are read". One text
// gives the kernels of every dtype, a fused gradient kernel, and a gradient
// that can itself be differentiated. In a formula a, b, c are the operands, y is
// the result, g the upstream gradient. To add an op: one row here, one line with
// its declaration, one case in tests/. Read first: 15.  Proof: tests/ops.c

#endif // EGI_IMPLEMENTED
#if (defined(EAGER_IMPLEMENTATION) || defined(EAGER_BACKEND)) && !defined(EGI_WORDS)   // a GPU has the whole table
#define EGI_WORDS
#define EGI_WORD(word) EGI_PASTE(EGI_V, word)
#define EGI_K(value) EGI_WORD(_k)(value)              /* a constant */
#define EGI_NONE EGI_WORD(_none)                      /* no gradient for this operand */
#define EGI_NEG(a) EGI_WORD(_neg)(a)
#define EGI_ADD(a, b) EGI_WORD(_add)(a, b)
#define EGI_SUB(a, b) EGI_WORD(_sub)(a, b)
#define EGI_MUL(a, b) EGI_WORD(_mul)(a, b)
#define EGI_DIV(a, b) EGI_WORD(_div)(a, b)
#define EGI_DIV_NO_NAN(a, b) EGI_WORD(_div_no_nan)(a, b)
#define EGI_FLOORDIV(a, b) EGI_WORD(_floordiv)(a, b)
#define EGI_MOD(a, b) EGI_WORD(_mod)(a, b)
#define EGI_POW(a, b) EGI_WORD(_pow)(a, b)
#define EGI_MAX(a, b) EGI_WORD(_max)(a, b)
#define EGI_MIN(a, b) EGI_WORD(_min)(a, b)
#define EGI_ABS(a) EGI_WORD(_abs)(a)
#define EGI_SIGN(a) EGI_WORD(_sign)(a)
#define EGI_SQRT(a) EGI_WORD(_sqrt)(a)
#define EGI_EXP(a) EGI_WORD(_exp)(a)
#define EGI_EXPM1(a) EGI_WORD(_expm1)(a)
#define EGI_LOG(a) EGI_WORD(_log)(a)
#define EGI_LOG1P(a) EGI_WORD(_log1p)(a)
#define EGI_SIN(a) EGI_WORD(_sin)(a)
#define EGI_COS(a) EGI_WORD(_cos)(a)
#define EGI_TAN(a) EGI_WORD(_tan)(a)
#define EGI_ASIN(a) EGI_WORD(_asin)(a)
#define EGI_ACOS(a) EGI_WORD(_acos)(a)
#define EGI_ATAN(a) EGI_WORD(_atan)(a)
#define EGI_ATAN2(a, b) EGI_WORD(_atan2)(a, b)
#define EGI_SINH(a) EGI_WORD(_sinh)(a)
#define EGI_COSH(a) EGI_WORD(_cosh)(a)
#define EGI_TANH(a) EGI_WORD(_tanh)(a)
#define EGI_ASINH(a) EGI_WORD(_asinh)(a)
#define EGI_ACOSH(a) EGI_WORD(_acosh)(a)
#define EGI_ATANH(a) EGI_WORD(_atanh)(a)
#define EGI_ERF(a) EGI_WORD(_erf)(a)
#define EGI_SIGMOID(a) EGI_WORD(_sigmoid)(a)
#define EGI_SOFTPLUS(a) EGI_WORD(_softplus)(a)
#define EGI_FLOOR(a) EGI_WORD(_floor)(a)
#define EGI_CEIL(a) EGI_WORD(_ceil)(a)
#define EGI_ROUND(a) EGI_WORD(_round)(a)
#define EGI_SQUARE(a) EGI_WORD(_square)(a)
// Conditions, and the choice by one.
#define EGI_EQ(a, b) EGI_WORD(_eq)(a, b)
#define EGI_NE(a, b) EGI_WORD(_ne)(a, b)
#define EGI_LT(a, b) EGI_WORD(_lt)(a, b)
#define EGI_LE(a, b) EGI_WORD(_le)(a, b)
#define EGI_GT(a, b) EGI_WORD(_gt)(a, b)
#define EGI_GE(a, b) EGI_WORD(_ge)(a, b)
#define EGI_AND(a, b) EGI_WORD(_and)(a, b)
#define EGI_OR(a, b) EGI_WORD(_or)(a, b)
#define EGI_NOT(a) EGI_WORD(_not)(a)
#define EGI_TRUE(a) EGI_WORD(_true)(a)                /* a bool operand as a condition */
#define EGI_SELECT(condition, a, b) EGI_WORD(_select)(condition, a, b)

#define EGI_SELU_SCALE 1.0507009873554805
#define EGI_SELU_SCALE_ALPHA 1.7580993408473766
#define EGI_SQRT_HALF 0.7071067811865476
#define EGI_PHI(a) EGI_MUL(EGI_K(0.5), EGI_ADD(EGI_K(1), EGI_ERF(EGI_MUL(a, EGI_K(EGI_SQRT_HALF)))))       /* normal distribution */
#define EGI_GELU_T(a) EGI_TANH(EGI_MUL(EGI_K(0.7978845608028654), EGI_ADD(a, EGI_MUL(EGI_K(0.044715), EGI_MUL(a, EGI_MUL(a, a))))))

// Kinds: F floats; N numbers; S numbers with a sign; C compares numbers; E compares numbers and bools; P asks floats;
// B logic of bools; W the first operand is bool, the others anything.
// UNARY(kind, name, y, dx[0])  BINARY(kind, name, y, dx[0], dx[1])  _ND: not differentiable.
#define EGI_ELEMENTWISE_TABLE(UNARY, UNARY_ND, BINARY, BINARY_ND, TERNARY) \
    UNARY(S, negative,    EGI_NEG(a),                     EGI_NEG(g)) \
    UNARY(S, abs,         EGI_ABS(a),                     EGI_MUL(g, EGI_SIGN(a))) \
    UNARY(S, sign,        EGI_SIGN(a),                    EGI_MUL(g, EGI_K(0))) \
    UNARY(N, square,      EGI_MUL(a, a),                  EGI_MUL(g, EGI_MUL(EGI_K(2), a))) \
    UNARY(F, sqrt,        EGI_SQRT(a),                    EGI_DIV(EGI_MUL(EGI_K(0.5), g), y)) \
    UNARY(F, rsqrt,       EGI_DIV(EGI_K(1), EGI_SQRT(a)), EGI_MUL(EGI_MUL(EGI_K(-0.5), g), EGI_MUL(y, EGI_MUL(y, y)))) \
    UNARY(F, reciprocal,  EGI_DIV(EGI_K(1), a),           EGI_NEG(EGI_MUL(g, EGI_MUL(y, y)))) \
    UNARY(F, exp,         EGI_EXP(a),                     EGI_MUL(g, y)) \
    UNARY(F, expm1,       EGI_EXPM1(a),                   EGI_MUL(g, EGI_ADD(y, EGI_K(1)))) \
    UNARY(F, log,         EGI_LOG(a),                     EGI_DIV(g, a)) \
    UNARY(F, log1p,       EGI_LOG1P(a),                   EGI_DIV(g, EGI_ADD(a, EGI_K(1)))) \
    UNARY(F, sin,         EGI_SIN(a),                     EGI_MUL(g, EGI_COS(a))) \
    UNARY(F, cos,         EGI_COS(a),                     EGI_NEG(EGI_MUL(g, EGI_SIN(a)))) \
    UNARY(F, tan,         EGI_TAN(a),                     EGI_MUL(g, EGI_ADD(EGI_K(1), EGI_MUL(y, y)))) \
    UNARY(F, asin,        EGI_ASIN(a),                    EGI_DIV(g, EGI_SQRT(EGI_SUB(EGI_K(1), EGI_MUL(a, a))))) \
    UNARY(F, acos,        EGI_ACOS(a),                    EGI_NEG(EGI_DIV(g, EGI_SQRT(EGI_SUB(EGI_K(1), EGI_MUL(a, a)))))) \
    UNARY(F, atan,        EGI_ATAN(a),                    EGI_DIV(g, EGI_ADD(EGI_K(1), EGI_MUL(a, a)))) \
    UNARY(F, sinh,        EGI_SINH(a),                    EGI_MUL(g, EGI_COSH(a))) \
    UNARY(F, cosh,        EGI_COSH(a),                    EGI_MUL(g, EGI_SINH(a))) \
    UNARY(F, tanh,        EGI_TANH(a),                    EGI_MUL(g, EGI_SUB(EGI_K(1), EGI_MUL(y, y)))) \
    UNARY(F, asinh,       EGI_ASINH(a),                   EGI_DIV(g, EGI_SQRT(EGI_ADD(EGI_MUL(a, a), EGI_K(1))))) \
    UNARY(F, acosh,       EGI_ACOSH(a),                   EGI_DIV(g, EGI_SQRT(EGI_SUB(EGI_MUL(a, a), EGI_K(1))))) \
    UNARY(F, atanh,       EGI_ATANH(a),                   EGI_DIV(g, EGI_SUB(EGI_K(1), EGI_MUL(a, a)))) \
    UNARY(F, erf,         EGI_ERF(a),                     EGI_MUL(g, EGI_MUL(EGI_K(1.1283791670955126), EGI_EXP(EGI_NEG(EGI_MUL(a, a)))))) \
    UNARY_ND(F, floor,    EGI_FLOOR(a)) \
    UNARY_ND(F, ceil,     EGI_CEIL(a)) \
    UNARY_ND(F, round,    EGI_ROUND(a)) \
    UNARY_ND(P, is_nan,   EGI_NE(a, a)) \
    UNARY_ND(P, is_inf,   EGI_AND(EGI_EQ(a, a), EGI_NE(EGI_SUB(a, a), EGI_K(0)))) \
    UNARY_ND(P, is_finite, EGI_EQ(EGI_SUB(a, a), EGI_K(0))) \
    UNARY_ND(B, logical_not, EGI_NOT(a)) \
    UNARY(F, sigmoid,     EGI_SIGMOID(a),                 EGI_MUL(g, EGI_MUL(y, EGI_SUB(EGI_K(1), y)))) \
    UNARY(F, softplus,    EGI_SOFTPLUS(a),                EGI_MUL(g, EGI_SIGMOID(a))) \
    UNARY(F, softsign,    EGI_DIV(a, EGI_ADD(EGI_K(1), EGI_ABS(a))), EGI_DIV(g, EGI_SQUARE(EGI_ADD(EGI_K(1), EGI_ABS(a))))) \
    UNARY(S, relu,        EGI_MAX(a, EGI_K(0)),           EGI_SELECT(EGI_GT(y, EGI_K(0)), g, EGI_K(0))) \
    UNARY(S, relu6,       EGI_MIN(EGI_MAX(a, EGI_K(0)), EGI_K(6)), EGI_SELECT(EGI_AND(EGI_GT(y, EGI_K(0)), EGI_LT(y, EGI_K(6))), g, EGI_K(0))) \
    UNARY(F, selu,        EGI_SELECT(EGI_GE(a, EGI_K(0)), EGI_MUL(EGI_K(EGI_SELU_SCALE), a), EGI_MUL(EGI_K(EGI_SELU_SCALE_ALPHA), EGI_EXPM1(a))), \
                          EGI_MUL(g, EGI_SELECT(EGI_GE(a, EGI_K(0)), EGI_K(EGI_SELU_SCALE), EGI_ADD(y, EGI_K(EGI_SELU_SCALE_ALPHA))))) \
    UNARY(F, silu,        EGI_MUL(a, EGI_SIGMOID(a)),     EGI_MUL(g, EGI_MUL(EGI_SIGMOID(a), EGI_ADD(EGI_K(1), EGI_MUL(a, EGI_SUB(EGI_K(1), EGI_SIGMOID(a))))))) \
    /* mish = a t with t = tanh(softplus(a)): its slope is t + a sigmoid(a) (1 - t^2) */ \
    UNARY(F, mish,        EGI_MUL(a, EGI_TANH(EGI_SOFTPLUS(a))), \
                          EGI_MUL(g, EGI_ADD(EGI_TANH(EGI_SOFTPLUS(a)), EGI_MUL(EGI_MUL(a, EGI_SIGMOID(a)), EGI_SUB(EGI_K(1), EGI_SQUARE(EGI_TANH(EGI_SOFTPLUS(a)))))))) \
    /* gelu = a Phi(a): its slope is Phi(a) + a phi(a) */ \
    UNARY(F, gelu,        EGI_MUL(a, EGI_PHI(a)), \
                          EGI_MUL(g, EGI_ADD(EGI_PHI(a), EGI_MUL(EGI_MUL(a, EGI_K(0.3989422804014327)), EGI_EXP(EGI_MUL(EGI_K(-0.5), EGI_MUL(a, a))))))) \
    /* a (1 + t) / 2 with t = tanh(u(a)): its slope is (1 + t) / 2 + a (1 - t^2) u' / 2 */ \
    UNARY(F, gelu_tanh,   EGI_MUL(EGI_MUL(EGI_K(0.5), a), EGI_ADD(EGI_K(1), EGI_GELU_T(a))), \
                          EGI_MUL(g, EGI_MUL(EGI_K(0.5), EGI_ADD(EGI_ADD(EGI_K(1), EGI_GELU_T(a)), EGI_MUL(EGI_MUL(a, EGI_SUB(EGI_K(1), EGI_SQUARE(EGI_GELU_T(a)))), \
                                 EGI_ADD(EGI_K(0.7978845608028654), EGI_MUL(EGI_K(0.10703222440890037), EGI_MUL(a, a)))))))) \
    UNARY(F, hard_sigmoid, EGI_MIN(EGI_MAX(EGI_ADD(EGI_DIV(a, EGI_K(6)), EGI_K(0.5)), EGI_K(0)), EGI_K(1)), \
                          EGI_SELECT(EGI_AND(EGI_GT(y, EGI_K(0)), EGI_LT(y, EGI_K(1))), EGI_DIV(g, EGI_K(6)), EGI_K(0))) \
    BINARY(N, add,        EGI_ADD(a, b),                  g,                                 g) \
    BINARY(N, sub,        EGI_SUB(a, b),                  g,                                 EGI_NEG(g)) \
    BINARY(N, mul,        EGI_MUL(a, b),                  EGI_MUL(g, b),                     EGI_MUL(g, a)) \
    BINARY(F, div,        EGI_DIV(a, b),                  EGI_DIV(g, b),                     EGI_NEG(EGI_DIV(EGI_MUL(g, y), b))) \
    BINARY(F, divide_no_nan, EGI_DIV_NO_NAN(a, b),        EGI_DIV_NO_NAN(g, b),              EGI_NEG(EGI_DIV_NO_NAN(EGI_MUL(g, y), b))) \
    BINARY_ND(N, floordiv, EGI_FLOORDIV(a, b)) \
    BINARY(N, mod,        EGI_MOD(a, b),                  g,                                 EGI_NEG(EGI_MUL(g, EGI_FLOORDIV(a, b)))) \
    /* b a^(b-1), where b = 0 must not meet 0^-1; and y log(a), where a <= 0 has no logarithm */ \
    BINARY(N, pow,        EGI_POW(a, b), \
                          EGI_MUL(g, EGI_MUL(b, EGI_POW(a, EGI_SELECT(EGI_EQ(b, EGI_K(0)), EGI_K(1), EGI_SUB(b, EGI_K(1)))))), \
                          EGI_MUL(g, EGI_MUL(y, EGI_LOG(EGI_SELECT(EGI_GT(a, EGI_K(0)), a, EGI_K(1)))))) \
    BINARY(N, maximum,    EGI_MAX(a, b),                  EGI_SELECT(EGI_GE(a, b), g, EGI_K(0)), EGI_SELECT(EGI_GE(a, b), EGI_K(0), g)) \
    BINARY(N, minimum,    EGI_MIN(a, b),                  EGI_SELECT(EGI_LE(a, b), g, EGI_K(0)), EGI_SELECT(EGI_LE(a, b), EGI_K(0), g)) \
    BINARY(N, squared_difference, EGI_SQUARE(EGI_SUB(a, b)), EGI_MUL(g, EGI_MUL(EGI_K(2), EGI_SUB(a, b))), EGI_MUL(g, EGI_MUL(EGI_K(-2), EGI_SUB(a, b)))) \
    BINARY(F, atan2,      EGI_ATAN2(a, b), \
                          EGI_MUL(g, EGI_DIV(b, EGI_ADD(EGI_MUL(a, a), EGI_MUL(b, b)))), EGI_NEG(EGI_MUL(g, EGI_DIV(a, EGI_ADD(EGI_MUL(a, a), EGI_MUL(b, b)))))) \
    BINARY(F, leaky_relu, EGI_SELECT(EGI_GT(a, EGI_K(0)), a, EGI_MUL(a, b)), \
                          EGI_SELECT(EGI_GT(a, EGI_K(0)), g, EGI_MUL(g, b)), EGI_SELECT(EGI_GT(a, EGI_K(0)), EGI_K(0), EGI_MUL(g, a))) \
    /* the slope of the negative side is y + alpha; its exponential must not overflow where it is not chosen */ \
    BINARY(F, elu,        EGI_SELECT(EGI_GT(a, EGI_K(0)), a, EGI_MUL(b, EGI_EXPM1(a))), \
                          EGI_SELECT(EGI_GT(a, EGI_K(0)), g, EGI_MUL(g, EGI_ADD(y, b))), EGI_MUL(g, EGI_EXPM1(EGI_MIN(a, EGI_K(0))))) \
    BINARY(F, sigmoid_cross_entropy_with_logits, \
                          EGI_ADD(EGI_SUB(EGI_MAX(b, EGI_K(0)), EGI_MUL(b, a)), EGI_LOG1P(EGI_EXP(EGI_NEG(EGI_ABS(b))))), \
                          EGI_NEG(EGI_MUL(g, b)),         EGI_MUL(g, EGI_SUB(EGI_SIGMOID(b), a))) \
    BINARY_ND(E, equal,         EGI_EQ(a, b)) \
    BINARY_ND(E, not_equal,     EGI_NE(a, b)) \
    BINARY_ND(C, less,          EGI_LT(a, b)) \
    BINARY_ND(C, less_equal,    EGI_LE(a, b)) \
    BINARY_ND(C, greater,       EGI_GT(a, b)) \
    BINARY_ND(C, greater_equal, EGI_GE(a, b)) \
    BINARY_ND(B, logical_and,   EGI_AND(a, b)) \
    BINARY_ND(B, logical_or,    EGI_OR(a, b)) \
    BINARY_ND(B, logical_xor,   EGI_NE(a, b)) \
    TERNARY(W, where,     EGI_SELECT(EGI_TRUE(a), b, c),  EGI_NONE, EGI_SELECT(EGI_TRUE(a), g, EGI_K(0)), EGI_SELECT(EGI_TRUE(a), EGI_K(0), g)) \
    TERNARY(N, clip_by_value, EGI_MIN(EGI_MAX(a, b), c),  EGI_SELECT(EGI_AND(EGI_GE(a, b), EGI_LE(a, c)), g, EGI_K(0)), \
                          EGI_SELECT(EGI_LT(a, b), g, EGI_K(0)), EGI_SELECT(EGI_GT(a, c), g, EGI_K(0)))

// ---- float32 functions that compilers turn into vectors
//
// No branch and no table: x = n ln 2 + r with n whole, then a polynomial in r (minimax, fitted to 40 digits). Adding 1.5 * 2^23
// rounds to a whole number, which then stands in the low bits. Errors, over all floats, in units in the last place:
// exp 1.0, expm1 1.6, log 0.9, log1p 1.5, tanh 2.4, sigmoid 2.2, erf 1.3. tests/ops_values.c holds them against float64.

EGI_EVERYWHERE float egi_from_bits(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
EGI_EVERYWHERE uint32_t egi_to_bits(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
// condition ? a : b, by masks: gcc makes branches of the other form, and then no vectors.
EGI_EVERYWHERE float egi_choose(int condition, float a, float b) {
    const uint32_t mask = 0u - (uint32_t)condition;
    return egi_from_bits((egi_to_bits(a) & mask) | (egi_to_bits(b) & ~mask));
}
#define EGI_ROUNDER 12582912.0f
EGI_EVERYWHERE float egi_two_to(float n) { return egi_from_bits((egi_to_bits(n + EGI_ROUNDER) + 127u) << 23); }     // n whole, -126 to 127
EGI_EVERYWHERE float egi_exp_split(float x, float *r) {          // n
    const float n = (x * 1.44269504f + EGI_ROUNDER) - EGI_ROUNDER;
    *r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    return n;
}
EGI_EVERYWHERE float egi_expm1_near_0(float r) {                 // |r| <= ln 2 / 2
    return r + r * r * (0.5f + r * (0.16666506f + r * (0.041666169f + r * (0.0083703212f + r * 0.001395297f))));
}
EGI_EVERYWHERE float egi_expf(float x) {
    float r, c = egi_choose(x < -104.0f, -104.0f, x);
    c = egi_choose(c > 89.0f, 89.0f, c);
    const float n = egi_exp_split(c, &r), half = (n * 0.5f + EGI_ROUNDER) - EGI_ROUNDER;
    return (1.0f + egi_expm1_near_0(r)) * egi_two_to(half) * egi_two_to(n - half);      // two steps: 2^n alone may be no float
}
EGI_EVERYWHERE float egi_expm1f(float x) {
    float r, c = egi_choose(x < -18.0f, -18.0f, x);
    c = egi_choose(c > 89.0f, 89.0f, c);
    const float n = egi_exp_split(c, &r), half = (n * 0.5f + EGI_ROUNDER) - EGI_ROUNDER;
    const float first = egi_two_to(half), second = egi_two_to(n - half);
    return (egi_expm1_near_0(r) * first + (first - 1.0f / second)) * second;
}
EGI_EVERYWHERE float egi_tanhf(float x) {                        // e / (e + 2) with e = exp(2|x|) - 1
    const float a = fabsf(x);
    float r;
    const float n = egi_exp_split(egi_choose(a > 10.0f, 20.0f, 2.0f * a), &r), power = egi_two_to(n);
    const float e = egi_expm1_near_0(r) * power + (power - 1.0f);
    return copysignf(e / (e + 2.0f), x);
}
EGI_EVERYWHERE float egi_sigmoidf(float x) {
    const float e = egi_expf(-fabsf(x));
    return egi_choose(x < 0, e, 1.0f) / (1.0f + e);
}
EGI_EVERYWHERE float egi_logf(float x) {                         // x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt(2)
    const int tiny = x < 1.17549435e-38f;
    const uint32_t bits = egi_to_bits(x * egi_choose(tiny, 8388608.0f, 1.0f)), over = bits - 0x3f3504f3u;
    const float e = (float)((int32_t)over >> 23) - egi_choose(tiny, 23.0f, 0.0f), f = egi_from_bits(bits - (over & 0xff800000u)) - 1.0f;
    const float p = 0.33333331f + f * (-0.25000823f + f * (0.20001227f + f * (-0.16623357f + f * (0.14201762f + f * (-0.13160194f +
                    f * (0.1276155f + f * -0.0763443f))))));
    float y = e * 0.693145752f + (f + (e * 1.42860677e-6f + f * f * (f * p - 0.5f)));
    y = egi_choose(x == 0, -INFINITY, y);
    y = egi_choose(x == INFINITY, x, y);
    return egi_choose(x >= 0, y, NAN);
}
EGI_EVERYWHERE float egi_log1pf(float x) {                       // log(w), and what rounding 1 + x to w has lost
    const float w = 1.0f + x, y = egi_logf(w), lost = (x - (w - 1.0f)) / w;
    return egi_choose(w == 1.0f, x, egi_choose((w > 0) & (w < INFINITY), y + lost, y));
}
EGI_EVERYWHERE float egi_erff(float x) {                         // a polynomial up to 1, 1 - exp(polynomial) beyond
    const float a = fabsf(x), z = a * a, c = egi_choose(a > 4.0f, 4.0f, a);
    const float near_0 = a + a * (0.12837917f + z * (-0.37612626f + z * (0.112836f + z * (-0.026854444f + z * (0.0051895352f +
                         z * (-0.00080208411f + z * 7.8891193e-05f))))));
    const float log_rest = 0.00018344473f + c * (-1.1295568f + c * (-0.63326263f + c * (-0.10837249f + c * (0.025178973f +
                           c * (-0.0041936128f + c * (0.00043910678f + c * -2.1496149e-05f))))));
    return copysignf(egi_choose(a < 1.0f, near_0, 1.0f - egi_expf(log_rest)), x);
}
EGI_EVERYWHERE float egi_softplusf(float x) { return egi_choose((x > 0) | (x != x), x, 0.0f) + egi_log1pf(egi_expf(-fabsf(x))); }
// float64: libm's.
#define egi_exp exp
#define egi_expm1 expm1
#define egi_log log
#define egi_log1p log1p
#define egi_tanh tanh
#define egi_erf erf
EGI_EVERYWHERE double egi_sigmoid(double x) {
    double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : x < 0 ? e / (1 + e) : x;
}
EGI_EVERYWHERE double egi_softplus(double x) { return (x > 0 || x != x ? x : 0) + log1p(exp(-fabs(x))); }

// ---- the words for each dtype

#define EGI_SCALAR_WORDS(V, T) \
    EGI_EVERYWHERE int V##_eq(T a, T b) { return a == b; } \
    EGI_EVERYWHERE int V##_ne(T a, T b) { return a != b; } \
    EGI_EVERYWHERE int V##_lt(T a, T b) { return a < b; } \
    EGI_EVERYWHERE int V##_le(T a, T b) { return a <= b; } \
    EGI_EVERYWHERE int V##_gt(T a, T b) { return a > b; } \
    EGI_EVERYWHERE int V##_ge(T a, T b) { return a >= b; } \
    EGI_EVERYWHERE int V##_and(int a, int b) { return a & b; } \
    EGI_EVERYWHERE int V##_or(int a, int b) { return a | b; } \
    EGI_EVERYWHERE int V##_not(int a) { return !a; } \
    EGI_EVERYWHERE int V##_true(T a) { return a != 0; } \
    EGI_EVERYWHERE T V##_select(int condition, T a, T b) { return condition ? a : b; }
#define EGI_FLOAT_WORDS(V, T, f) \
    EGI_SCALAR_WORDS(V, T) \
    EGI_EVERYWHERE T V##_neg(T a) { return -a; } \
    EGI_EVERYWHERE T V##_add(T a, T b) { return a + b; } \
    EGI_EVERYWHERE T V##_sub(T a, T b) { return a - b; } \
    EGI_EVERYWHERE T V##_mul(T a, T b) { return a * b; } \
    EGI_EVERYWHERE T V##_div(T a, T b) { return a / b; } \
    EGI_EVERYWHERE T V##_div_no_nan(T a, T b) { return b == 0 ? 0 : a / b; } \
    EGI_EVERYWHERE T V##_mod(T a, T b) { \
        T r = fmod##f(a, b); \
        if (r == 0) return copysign##f((T)0, b); \
        return (r < 0) != (b < 0) ? r + b : r; \
    } \
    EGI_EVERYWHERE T V##_floordiv(T a, T b) { \
        if (b == 0) return a / b; \
        T r = fmod##f(a, b), q = (a - r) / b, down = floor##f(q);      /* q is whole but for rounding */ \
        if (q - down > (T)0.5) down += 1; \
        return r != 0 && (r < 0) != (b < 0) ? down - 1 : down; \
    } \
    EGI_EVERYWHERE T V##_pow(T a, T b) { return pow##f(a, b); } \
    EGI_EVERYWHERE T V##_max(T a, T b) { return ((a > b) | (a != a)) ? a : b; } \
    EGI_EVERYWHERE T V##_min(T a, T b) { return ((a < b) | (a != a)) ? a : b; } \
    EGI_EVERYWHERE T V##_abs(T a) { return fabs##f(a); } \
    EGI_EVERYWHERE T V##_sign(T a) { return a > 0 ? 1 : a < 0 ? -1 : a; } \
    EGI_EVERYWHERE T V##_sqrt(T a) { return sqrt##f(a); } \
    EGI_EVERYWHERE T V##_exp(T a) { return egi_exp##f(a); } \
    EGI_EVERYWHERE T V##_expm1(T a) { return egi_expm1##f(a); } \
    EGI_EVERYWHERE T V##_log(T a) { return egi_log##f(a); } \
    EGI_EVERYWHERE T V##_log1p(T a) { return egi_log1p##f(a); } \
    EGI_EVERYWHERE T V##_sin(T a) { return sin##f(a); } \
    EGI_EVERYWHERE T V##_cos(T a) { return cos##f(a); } \
    EGI_EVERYWHERE T V##_tan(T a) { return tan##f(a); } \
    EGI_EVERYWHERE T V##_asin(T a) { return asin##f(a); } \
    EGI_EVERYWHERE T V##_acos(T a) { return acos##f(a); } \
    EGI_EVERYWHERE T V##_atan(T a) { return atan##f(a); } \
    EGI_EVERYWHERE T V##_atan2(T a, T b) { return atan2##f(a, b); } \
    EGI_EVERYWHERE T V##_sinh(T a) { return sinh##f(a); } \
    EGI_EVERYWHERE T V##_cosh(T a) { return cosh##f(a); } \
    EGI_EVERYWHERE T V##_tanh(T a) { return egi_tanh##f(a); } \
    EGI_EVERYWHERE T V##_asinh(T a) { return asinh##f(a); } \
    EGI_EVERYWHERE T V##_acosh(T a) { return acosh##f(a); } \
    EGI_EVERYWHERE T V##_atanh(T a) { return atanh##f(a); } \
    EGI_EVERYWHERE T V##_erf(T a) { return egi_erf##f(a); } \
    EGI_EVERYWHERE T V##_sigmoid(T a) { return egi_sigmoid##f(a); } \
    EGI_EVERYWHERE T V##_softplus(T a) { return egi_softplus##f(a); } \
    EGI_EVERYWHERE T V##_floor(T a) { return floor##f(a); } \
    EGI_EVERYWHERE T V##_ceil(T a) { return ceil##f(a); } \
    EGI_EVERYWHERE T V##_round(T a) { return rint##f(a); } \
    EGI_EVERYWHERE T V##_square(T a) { return a * a; }
// Integers wrap around, through the unsigned type U. (-MIN is MIN; the quotient of MIN and -1 is MIN.)
EGI_EVERYWHERE bool egi_negative(int64_t a) { return a < 0; }
#define EGI_INT_WORDS(V, T, U, SIGNED) \
    EGI_SCALAR_WORDS(V, T) \
    EGI_EVERYWHERE T V##_neg(T a) { return (T)(0u - (U)a); } \
    EGI_EVERYWHERE T V##_add(T a, T b) { return (T)((U)a + (U)b); } \
    EGI_EVERYWHERE T V##_sub(T a, T b) { return (T)((U)a - (U)b); } \
    EGI_EVERYWHERE T V##_mul(T a, T b) { return (T)((U)a * (U)b); } \
    EGI_EVERYWHERE T V##_square(T a) { return V##_mul(a, a); } \
    EGI_EVERYWHERE T V##_floordiv(T a, T b) { \
        if (b == 0) return 0; \
        if (SIGNED && b == (T)-1) return V##_neg(a); \
        T q = (T)(a / b), r = (T)(a % b); \
        return (T)(r != 0 && egi_negative(r) != egi_negative(b) ? q - 1 : q); \
    } \
    EGI_EVERYWHERE T V##_mod(T a, T b) { \
        if (b == 0 || (SIGNED && b == (T)-1)) return 0; \
        T r = (T)(a % b); \
        return (T)(r != 0 && egi_negative(r) != egi_negative(b) ? r + b : r); \
    } \
    EGI_EVERYWHERE T V##_pow(T a, T b) { \
        if (egi_negative(b)) return (T)(a == 1 ? 1 : a == (T)-1 ? (b & 1 ? -1 : 1) : 0); \
        U power = 1, base = (U)a; \
        for (U n = (U)b; n; n >>= 1) { if (n & 1) power *= base; base *= base; } \
        return (T)power; \
    } \
    EGI_EVERYWHERE T V##_max(T a, T b) { return a > b ? a : b; } \
    EGI_EVERYWHERE T V##_min(T a, T b) { return a < b ? a : b; } \
    EGI_EVERYWHERE T V##_abs(T a) { return egi_negative(a) ? V##_neg(a) : a; } \
    EGI_EVERYWHERE T V##_sign(T a) { return (T)((a > 0) - egi_negative(a)); }

EGI_FLOAT_WORDS(egi_f32, float, f)
EGI_FLOAT_WORDS(egi_f64, double, )
EGI_INT_WORDS(egi_i32, int32_t, uint32_t, 1)
EGI_INT_WORDS(egi_i64, int64_t, uint64_t, 1)
EGI_INT_WORDS(egi_u8, uint8_t, unsigned, 0)
#define egi_f32_k(value) ((float)(value))
#define egi_f64_k(value) ((double)(value))
#define egi_i32_k(value) ((int32_t)(value))
#define egi_i64_k(value) ((int64_t)(value))
#define egi_u8_k(value) ((uint8_t)(value))
#define egi_f32_none 0.0f

#define EGI_ID1(kind, name, f, d0) EGI_OP_##name,
#define EGI_ID_ND(kind, name, f) EGI_OP_##name,
#define EGI_ID2(kind, name, f, d0, d1) EGI_OP_##name,
#define EGI_ID3(kind, name, f, d0, d1, d2) EGI_OP_##name,
enum { EGI_ELEMENTWISE_TABLE(EGI_ID1, EGI_ID_ND, EGI_ID2, EGI_ID_ND, EGI_ID3) EGI_ELEMENTWISE_OPS };
#endif // EGI_WORDS
#if defined(EAGER_IMPLEMENTATION) && !defined(EGI_IMPLEMENTED_AFTER_WORDS)
#define EGI_IMPLEMENTED_AFTER_WORDS

// ---- which operands a formula reads: the words collect bits

#define egi_uses_1(a) (a)
#define egi_uses_2(a, b) ((a) | (b))
#define egi_uses_k(value) 0u
#define egi_uses_none 0u
#define egi_uses_neg egi_uses_1
#define egi_uses_add egi_uses_2
#define egi_uses_sub egi_uses_2
#define egi_uses_mul egi_uses_2
#define egi_uses_div egi_uses_2
#define egi_uses_div_no_nan egi_uses_2
#define egi_uses_floordiv egi_uses_2
#define egi_uses_mod egi_uses_2
#define egi_uses_pow egi_uses_2
#define egi_uses_max egi_uses_2
#define egi_uses_min egi_uses_2
#define egi_uses_abs egi_uses_1
#define egi_uses_sign egi_uses_1
#define egi_uses_sqrt egi_uses_1
#define egi_uses_exp egi_uses_1
#define egi_uses_expm1 egi_uses_1
#define egi_uses_log egi_uses_1
#define egi_uses_log1p egi_uses_1
#define egi_uses_sin egi_uses_1
#define egi_uses_cos egi_uses_1
#define egi_uses_tan egi_uses_1
#define egi_uses_asin egi_uses_1
#define egi_uses_acos egi_uses_1
#define egi_uses_atan egi_uses_1
#define egi_uses_atan2 egi_uses_2
#define egi_uses_sinh egi_uses_1
#define egi_uses_cosh egi_uses_1
#define egi_uses_tanh egi_uses_1
#define egi_uses_asinh egi_uses_1
#define egi_uses_acosh egi_uses_1
#define egi_uses_atanh egi_uses_1
#define egi_uses_erf egi_uses_1
#define egi_uses_sigmoid egi_uses_1
#define egi_uses_softplus egi_uses_1
#define egi_uses_square egi_uses_1
#define egi_uses_eq egi_uses_2
#define egi_uses_ne egi_uses_2
#define egi_uses_lt egi_uses_2
#define egi_uses_le egi_uses_2
#define egi_uses_gt egi_uses_2
#define egi_uses_ge egi_uses_2
#define egi_uses_and egi_uses_2
#define egi_uses_or egi_uses_2
#define egi_uses_not egi_uses_1
#define egi_uses_true egi_uses_1
#define egi_uses_select(condition, a, b) ((condition) | (a) | (b))

// ---- the words as eager ops

#define egi_eager_k(value) eg_number(value)
#define egi_eager_none (eg_tensor *)NULL
#define egi_eager_neg eg_negative
#define egi_eager_add (eg_add)
#define egi_eager_sub (eg_sub)
#define egi_eager_mul (eg_mul)
#define egi_eager_div (eg_div)
#define egi_eager_div_no_nan (eg_divide_no_nan)
#define egi_eager_floordiv (eg_floordiv)
#define egi_eager_mod (eg_mod)
#define egi_eager_pow (eg_pow)
#define egi_eager_max (eg_maximum)
#define egi_eager_min (eg_minimum)
#define egi_eager_abs eg_abs
#define egi_eager_sign eg_sign
#define egi_eager_sqrt eg_sqrt
#define egi_eager_exp eg_exp
#define egi_eager_expm1 eg_expm1
#define egi_eager_log eg_log
#define egi_eager_log1p eg_log1p
#define egi_eager_sin eg_sin
#define egi_eager_cos eg_cos
#define egi_eager_tan eg_tan
#define egi_eager_asin eg_asin
#define egi_eager_acos eg_acos
#define egi_eager_atan eg_atan
#define egi_eager_atan2 (eg_atan2)
#define egi_eager_sinh eg_sinh
#define egi_eager_cosh eg_cosh
#define egi_eager_tanh eg_tanh
#define egi_eager_asinh eg_asinh
#define egi_eager_acosh eg_acosh
#define egi_eager_atanh eg_atanh
#define egi_eager_erf eg_erf
#define egi_eager_sigmoid eg_sigmoid
#define egi_eager_softplus eg_softplus
#define egi_eager_square eg_square
#define egi_eager_eq (eg_equal)
#define egi_eager_ne (eg_not_equal)
#define egi_eager_lt (eg_less)
#define egi_eager_le (eg_less_equal)
#define egi_eager_gt (eg_greater)
#define egi_eager_ge (eg_greater_equal)
#define egi_eager_and (eg_logical_and)
#define egi_eager_or (eg_logical_or)
#define egi_eager_not eg_logical_not
#define egi_eager_true(a) (a)
#define egi_eager_select (eg_where)

// ---- stamping

#define EGI_SKIP_1(kind, name, y)
#define EGI_SKIP_2(kind, name, y, d0)
// What the tape must keep for a gradient.
#define EGI_USES_(name, choice) \
    static unsigned egi_uses_of_##name(int i) { \
        enum { a = EGI_USES_A, b = EGI_USES_B, c = EGI_USES_C, y = EGI_USES_Y, g = EGI_USES_G }; \
        (void)a; (void)b; (void)c; (void)y; (void)g; (void)i; \
        return choice; \
    }
#define EGI_U1(kind, name, f, d0) EGI_USES_(name, (unsigned)(d0))
#define EGI_U_ND(kind, name, f)
#define EGI_U2(kind, name, f, d0, d1) EGI_USES_(name, i == 0 ? (unsigned)(d0) : (unsigned)(d1))
#define EGI_U3(kind, name, f, d0, d1, d2) EGI_USES_(name, i == 0 ? (unsigned)(d0) : i == 1 ? (unsigned)(d1) : (unsigned)(d2))
#define EGI_V egi_uses
EGI_ELEMENTWISE_TABLE(EGI_U1, EGI_U_ND, EGI_U2, EGI_U_ND, EGI_U3)
#undef EGI_V

// The eager gradients.
#define EGI_E(name, choice) \
    static eg_tensor *egi_dx_##name(int i, eg_tensor *a, eg_tensor *b, eg_tensor *c, eg_tensor *y, eg_tensor *g) { \
        (void)a; (void)b; (void)c; (void)y; (void)g; (void)i; \
        return choice; \
    }
#define EGI_E1(kind, name, f, d0) EGI_E(name, d0)
#define EGI_E_ND(kind, name, f)
#define EGI_E2(kind, name, f, d0, d1) EGI_E(name, i == 0 ? d0 : d1)
#define EGI_E3(kind, name, f, d0, d1, d2) EGI_E(name, i == 0 ? d0 : i == 1 ? d1 : d2)
#define EGI_V egi_eager
EGI_ELEMENTWISE_TABLE(EGI_E1, EGI_E_ND, EGI_E2, EGI_E_ND, EGI_E3)
#undef EGI_V

// The loops over contiguous elements of type T with results of type TO, which overlap with no operand. Operands that a formula
// does not read point at another's elements, and the compiler drops the load.
#define EGI_LOOP_BODY(T, TO, formula) \
    for (int64_t i = 0; i < n; i++) { \
        const T a = pa[i], b = pb[i], c = pc[i], y = py[i], g = pg[i]; \
        (void)a; (void)b; (void)c; (void)y; (void)g; \
        q[i] = (TO)(formula); \
    }
#define EGI_LOOP(loop, T, TO, formula) \
    static void loop(int64_t n, const void *const *p, void *out) { \
        const T *pa = (const T *)p[0], *pb = (const T *)p[1], *pc = (const T *)p[2], *py = (const T *)p[3], *pg = (const T *)p[4]; \
        TO *q = (TO *)out; \
        EGI_LOOP_BODY(T, TO, formula) \
    }
// The same for arithmetic, most of the way in steps of a count that the compiler knows: at -O2 it takes vectors then.
enum { EGI_WIDE = 64 };
#define EGI_WIDE_STEP(loop, T, TO, n) \
    loop##_step(n, (const T *)p[0] + o, (const T *)p[1] + o, (const T *)p[2] + o, (const T *)p[3] + o, (const T *)p[4] + o, (TO *)out + o)
#define EGI_WIDE_LOOP(loop, T, TO, formula) \
    static inline __attribute__((always_inline)) void loop##_step(int64_t n, const T *EGI_RESTRICT pa, const T *EGI_RESTRICT pb, \
        const T *EGI_RESTRICT pc, const T *EGI_RESTRICT py, const T *EGI_RESTRICT pg, TO *EGI_RESTRICT q) { \
        EGI_LOOP_BODY(T, TO, formula) \
    } \
    static void loop(int64_t n, const void *const *p, void *out) { \
        int64_t o = 0; \
        for (; n - o >= EGI_WIDE; o += EGI_WIDE) EGI_WIDE_STEP(loop, T, TO, EGI_WIDE); \
        EGI_WIDE_STEP(loop, T, TO, n - o); \
    }
// Kind and dtype decide whether there is a loop, and whether it makes T or bool bytes.
#define EGI_L_F_f32(name, f) EGI_WIDE_LOOP(egi_f32_loop_##name, float, float, f)
#define EGI_L_F_f64(name, f) EGI_LOOP(egi_f64_loop_##name, double, double, f)
#define EGI_L_F_i32(name, f)
#define EGI_L_F_i64(name, f)
#define EGI_L_F_u8(name, f)
#define EGI_L_S_f32 EGI_L_F_f32
#define EGI_L_S_f64 EGI_L_F_f64
#define EGI_L_S_i32(name, f) EGI_LOOP(egi_i32_loop_##name, int32_t, int32_t, f)
#define EGI_L_S_i64(name, f) EGI_LOOP(egi_i64_loop_##name, int64_t, int64_t, f)
#define EGI_L_S_u8(name, f)
#define EGI_L_N_f32 EGI_L_S_f32
#define EGI_L_N_f64 EGI_L_F_f64
#define EGI_L_N_i32 EGI_L_S_i32
#define EGI_L_N_i64 EGI_L_S_i64
#define EGI_L_N_u8(name, f) EGI_LOOP(egi_u8_loop_##name, uint8_t, uint8_t, f)
#define EGI_L_W_f32 EGI_L_F_f32
#define EGI_L_W_f64 EGI_L_F_f64
#define EGI_L_W_i32 EGI_L_S_i32
#define EGI_L_W_i64 EGI_L_S_i64
#define EGI_L_W_u8 EGI_L_N_u8
#define EGI_L_C_f32(name, f) EGI_LOOP(egi_f32_loop_##name, float, uint8_t, f)
#define EGI_L_C_f64(name, f) EGI_LOOP(egi_f64_loop_##name, double, uint8_t, f)
#define EGI_L_C_i32(name, f) EGI_LOOP(egi_i32_loop_##name, int32_t, uint8_t, f)
#define EGI_L_C_i64(name, f) EGI_LOOP(egi_i64_loop_##name, int64_t, uint8_t, f)
#define EGI_L_C_u8 EGI_L_N_u8
#define EGI_L_E_f32 EGI_L_C_f32
#define EGI_L_E_f64 EGI_L_C_f64
#define EGI_L_E_i32 EGI_L_C_i32
#define EGI_L_E_i64 EGI_L_C_i64
#define EGI_L_E_u8 EGI_L_N_u8
#define EGI_L_P_f32 EGI_L_C_f32
#define EGI_L_P_f64 EGI_L_C_f64
#define EGI_L_P_i32 EGI_L_F_i32
#define EGI_L_P_i64 EGI_L_F_i64
#define EGI_L_P_u8 EGI_L_F_u8
#define EGI_L_B_f32 EGI_L_F_i32
#define EGI_L_B_f64 EGI_L_F_i32
#define EGI_L_B_i32 EGI_L_F_i32
#define EGI_L_B_i64 EGI_L_F_i32
#define EGI_L_B_u8 EGI_L_N_u8
#define EGI_L1(V, kind, name, f) EGI_PASTE(EGI_L_##kind, V)(name, f)
#define EGI_D_F(i, name, f) EGI_WIDE_LOOP(egi_f32_dx##i##_##name, float, float, f)
#define EGI_D_S EGI_D_F
#define EGI_D_N EGI_D_F
#define EGI_D_W EGI_D_F

// float32, with the fused gradients
#define EGI_V egi_f32
#define EGI_S1(kind, name, f, d0) EGI_L1(_f32, kind, name, f) EGI_D_##kind(0, name, d0)
#define EGI_S1_ND(kind, name, f) EGI_L1(_f32, kind, name, f)
#define EGI_S2(kind, name, f, d0, d1) EGI_L1(_f32, kind, name, f) EGI_D_##kind(0, name, d0) EGI_D_##kind(1, name, d1)
#define EGI_S2_ND(kind, name, f) EGI_L1(_f32, kind, name, f)
#define EGI_S3(kind, name, f, d0, d1, d2) EGI_L1(_f32, kind, name, f) EGI_D_##kind(0, name, d0) EGI_D_##kind(1, name, d1) EGI_D_##kind(2, name, d2)
EGI_ELEMENTWISE_TABLE(EGI_S1, EGI_S1_ND, EGI_S2, EGI_S2_ND, EGI_S3)
#undef EGI_V
#undef EGI_S1
#undef EGI_S1_ND
#undef EGI_S2
#undef EGI_S2_ND
#undef EGI_S3
// the other dtypes
#define EGI_S1(kind, name, f, d0) EGI_S1_ND(kind, name, f)
#define EGI_S2(kind, name, f, d0, d1) EGI_S2_ND(kind, name, f)
#define EGI_V egi_f64
#define EGI_S1_ND(kind, name, f) EGI_L1(_f64, kind, name, f)
#define EGI_S2_ND(kind, name, f) EGI_L1(_f64, kind, name, f)
#define EGI_S3(kind, name, f, d0, d1, d2) EGI_L1(_f64, kind, name, f)
EGI_ELEMENTWISE_TABLE(EGI_S1, EGI_S1_ND, EGI_S2, EGI_S2_ND, EGI_S3)
#undef EGI_V
#undef EGI_S1_ND
#undef EGI_S2_ND
#undef EGI_S3
#define EGI_V egi_i32
#define EGI_S1_ND(kind, name, f) EGI_L1(_i32, kind, name, f)
#define EGI_S2_ND(kind, name, f) EGI_L1(_i32, kind, name, f)
#define EGI_S3(kind, name, f, d0, d1, d2) EGI_L1(_i32, kind, name, f)
EGI_ELEMENTWISE_TABLE(EGI_S1, EGI_S1_ND, EGI_S2, EGI_S2_ND, EGI_S3)
#undef EGI_V
#undef EGI_S1_ND
#undef EGI_S2_ND
#undef EGI_S3
#define EGI_V egi_i64
#define EGI_S1_ND(kind, name, f) EGI_L1(_i64, kind, name, f)
#define EGI_S2_ND(kind, name, f) EGI_L1(_i64, kind, name, f)
#define EGI_S3(kind, name, f, d0, d1, d2) EGI_L1(_i64, kind, name, f)
EGI_ELEMENTWISE_TABLE(EGI_S1, EGI_S1_ND, EGI_S2, EGI_S2_ND, EGI_S3)
#undef EGI_V
#undef EGI_S1_ND
#undef EGI_S2_ND
#undef EGI_S3
#define EGI_V egi_u8
#define EGI_S1_ND(kind, name, f) EGI_L1(_u8, kind, name, f)
#define EGI_S2_ND(kind, name, f) EGI_L1(_u8, kind, name, f)
#define EGI_S3(kind, name, f, d0, d1, d2) EGI_L1(_u8, kind, name, f)
EGI_ELEMENTWISE_TABLE(EGI_S1, EGI_S1_ND, EGI_S2, EGI_S2_ND, EGI_S3)
#undef EGI_V
#undef EGI_S1
#undef EGI_S1_ND
#undef EGI_S2
#undef EGI_S2_ND
#undef EGI_S3

// The rows. ORDER eg_dtype: float32, float64, int32, int64, uint8, bool.
#define EGI_LOOPS_F(name) { egi_f32_loop_##name, egi_f64_loop_##name, NULL, NULL, NULL, NULL }
#define EGI_LOOPS_S(name) { egi_f32_loop_##name, egi_f64_loop_##name, egi_i32_loop_##name, egi_i64_loop_##name, NULL, NULL }
#define EGI_LOOPS_N(name) { egi_f32_loop_##name, egi_f64_loop_##name, egi_i32_loop_##name, egi_i64_loop_##name, egi_u8_loop_##name, NULL }
#define EGI_LOOPS_C EGI_LOOPS_N
#define EGI_LOOPS_P EGI_LOOPS_F
#define EGI_LOOPS_E(name) { egi_f32_loop_##name, egi_f64_loop_##name, egi_i32_loop_##name, egi_i64_loop_##name, egi_u8_loop_##name, egi_u8_loop_##name }
#define EGI_LOOPS_W EGI_LOOPS_E
#define EGI_LOOPS_B(name) { NULL, NULL, NULL, NULL, NULL, egi_u8_loop_##name }
enum {
    EGI_FLAGS_F = 0,
    EGI_FLAGS_S = 0,
    EGI_FLAGS_N = 0,
    EGI_FLAGS_W = EGI_BOOL_FIRST,
    EGI_FLAGS_C = EGI_TO_BOOL,
    EGI_FLAGS_P = EGI_TO_BOOL,
    EGI_FLAGS_E = EGI_TO_BOOL,
    EGI_FLAGS_B = EGI_TO_BOOL,
    EGI_DTYPES_F = 3,
    EGI_DTYPES_P = 3,
    EGI_DTYPES_S = 15,
    EGI_DTYPES_N = 31,
    EGI_DTYPES_C = 31,
    EGI_DTYPES_E = 63,
    EGI_DTYPES_W = 63,
    EGI_DTYPES_B = 32
};
static bool egi_grad_elementwise(const eg_grad_context *c, const egi_op *op, eg_tensor **dx);
#define EGI_DIVISION(name) ((int)EGI_OP_##name == (int)EGI_OP_floordiv || (int)EGI_OP_##name == (int)EGI_OP_mod ? EGI_DIVIDES : 0)
#define EGI_LOSS(name) ((int)EGI_OP_##name == (int)EGI_OP_sigmoid_cross_entropy_with_logits ? EGI_SAME_SHAPE : 0)
#define EGI_PLAIN(formula) (sizeof(#formula) == 2)       /* the formula is the single letter g */
#define EGI_ROW(n, kind, name, flags, grad, p0, p1, p2, uses, dx, l0, l1, l2) \
    { #name, n, 1, EGI_FLAGS_##kind | (flags), 0, NULL, NULL, grad, { 0, 0, 0 }, EGI_DTYPES_##kind, EGI_LOOPS_##kind(name), { p0, p1, p2 }, uses, dx, { l0, l1, l2 } },
#define EGI_R1(kind, name, f, d0) EGI_ROW(1, kind, name, 0, egi_grad_elementwise, EGI_PLAIN(d0), 0, 0, egi_uses_of_##name, egi_dx_##name, egi_f32_dx0_##name, NULL, NULL)
#define EGI_R1_ND(kind, name, f) EGI_ROW(1, kind, name, EGI_NOT_DIFFERENTIABLE, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL)
#define EGI_R2(kind, name, f, d0, d1) EGI_ROW(2, kind, name, EGI_DIVISION(name) | EGI_LOSS(name), egi_grad_elementwise, EGI_PLAIN(d0), EGI_PLAIN(d1), 0, egi_uses_of_##name, egi_dx_##name, egi_f32_dx0_##name, egi_f32_dx1_##name, NULL)
#define EGI_R2_ND(kind, name, f) EGI_ROW(2, kind, name, EGI_NOT_DIFFERENTIABLE | EGI_DIVISION(name), NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL)
#define EGI_R3(kind, name, f, d0, d1, d2) EGI_ROW(3, kind, name, 0, egi_grad_elementwise, 0, 0, 0, egi_uses_of_##name, egi_dx_##name, egi_f32_dx0_##name, egi_f32_dx1_##name, egi_f32_dx2_##name)
static const egi_op egi_elementwise_ops[] = { EGI_ELEMENTWISE_TABLE(EGI_R1, EGI_R1_ND, EGI_R2, EGI_R2_ND, EGI_R3) };

//# 21  RUNNING AN OP ----------------------------------------------------------
// Idea: every op goes through one of two doors: egi_elementwise for formulas,
// egi_apply for the rest. Both check, infer the shape, compute, record, and
// hand the result to the scope. Read first: 20.

static bool egi_record(const egi_op *op, eg_tensor *const *in, int n, const void *attr, eg_tensor *const *out, int n_out,
                       eg_tensor *const *saved);
static bool egi_recording_though_paused(void);
static bool egi_recording(void) { return egi_this.recording > 0 && (egi_this.paused == 0 || egi_recording_though_paused()); }

// The NaN trap: true if the op may pass. Its outputs hold a NaN or Inf although its inputs do not: an error.
static int64_t egi_nonfinite(const eg_tensor *x) {
    int64_t count = 0;
    if (x->flags & EGI_NUMBER) return !(x->number - x->number == 0);
    if (!egi_is_float(x->dtype) || x->size == 0) return 0;
    eg_tensor *c = egi_contiguous(x);
    if (!c) return -1;
    egi_args args;
    memset(&args, 0, sizeof args);
    args.in[0] = c;
    args.parameters = &count;
    if (!egi_launch(egi_backend_of(c), EGI_NONFINITE, &args)) count = -1;
    egi_object_release(&c->object);
    return count;
}
static EGI_COLD bool egi_trap_passes(const char *name, eg_tensor *const *in, int n, eg_tensor *const *out, int n_out) {
    int bad = -1;
    int64_t count = 0;
    for (int i = 0; i < n_out && bad < 0; i++) if (out[i] && (count = egi_nonfinite(out[i])) != 0) bad = i;
    if (bad < 0) return true;
    if (count < 0) return false;                               // it could not be counted, and that is an error already
    for (int i = 0; i < n; i++) {
        int64_t before = in[i] ? egi_nonfinite(in[i]) : 0;
        if (before) return before > 0;                         // it came in from outside
    }
    char text[512];
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < n && at < sizeof text - 1; i++)
        if (in[i]) at += (size_t)snprintf(text + at, sizeof text - at, "%s%.100s", at ? ", " : "", egi_describe(in[i]));
    const char *of = egi_this.gradient_of;
    return egi_fail(EG_ERROR_NONFINITE, "eg_%s: made %lld NaN or infinite elements of %s from finite inputs: %s%s%s", name,
                    (long long)count, egi_show(egi_shape(out[bad])), text, of ? ", in the gradient of eg_" : "", of ? of : "");
}

static bool egi_same_device(const char *name, const eg_tensor *a, int ia, const eg_tensor *b, int ib) {
    if (egi_backend_of(a) == egi_backend_of(b)) return true;
    return egi_fail(EG_ERROR_DEVICE, "eg_%s: operand %d is on %s and operand %d on %s; copy one of them, as in eg_to(x, \"%s\")", name, ia,
                    egi_backend_of(a)->name, ib, egi_backend_of(b)->name, egi_backend_of(a)->name);
}

static EGI_COLD bool egi_broadcast_error(const char *name, const eg_tensor *a, const eg_tensor *b) {
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        int64_t da = a->dims[a->rank - i], db = b->dims[b->rank - i];
        if (da != db && da != 1 && db != 1)
            return egi_fail(EG_ERROR_SHAPE, "eg_%s: shapes do not broadcast: %s and %s (axis -%d: %lld against %lld)", name, egi_describe(a),
                            egi_describe(b), i, (long long)da, (long long)db);
    }
    return false;
}
// NumPy's rule: aligned at the last axis, 1 stretches.
static bool egi_broadcast(const char *name, eg_tensor *const *in, int n, eg_shape *shape) {
    shape->rank = 0;
    for (int i = 0; i < n; i++) if (in[i]->rank > shape->rank) shape->rank = in[i]->rank;
    for (int d = 0; d < shape->rank; d++) {
        int64_t dim = 1;
        int from = 0;
        for (int i = 0; i < n; i++) {
            int k = d - (shape->rank - in[i]->rank);
            int64_t here = k < 0 ? 1 : in[i]->dims[k];
            if (here == 1 || here == dim) continue;
            if (dim != 1) return egi_broadcast_error(name, in[from], in[i]);
            dim = here;
            from = i;
        }
        shape->dims[d] = dim;
    }
    return n < 2 || egi_shape_valid(name, *shape, EG_FLOAT64);
}

static EGI_COLD bool egi_dtype_error(const egi_op *op, const eg_tensor *x, int dtype) {
    const char *hint = !strcmp(op->name, "div")                      ? "; for integers there is eg_floordiv, or eg_cast to a floating dtype"
                       : dtype == EG_FLOAT16 || dtype == EG_BFLOAT16 ? "; it is for storage: eg_cast to float32"
                       : op->dtypes == EGI_DTYPES_F                  ? "; eg_cast to a floating dtype"
                       : op->dtypes == EGI_DTYPES_B                  ? "; it takes bool, as comparisons make"
                       : dtype == EG_BOOL                            ? "; eg_cast it to a number"
                                                                     : "";
    return egi_fail(EG_ERROR_DTYPE, "eg_%s: does not take %s%s", op->name, egi_describe(x), hint);
}

// Runs an elementwise row. Variant 0 is the op; i + 1 its fused gradient for operand i.
static bool egi_elementwise_launch(const egi_op *op, int variant, eg_tensor *const *in, int n, eg_tensor *out) {
    egi_args args;
    args.op = op;
    args.variant = variant;
    for (int i = 0; i < 5; i++) args.in[i] = i < n ? in[i] : NULL;
    args.out[0] = out;
    args.parameters = NULL;
    return egi_launch(out->buffer->backend, EGI_ELEMENTWISE, &args);
}
static bool egi_has_zero(const eg_tensor *x) {
    if (x->flags & EGI_NUMBER) return x->number == 0;
    eg_scope scope = eg_scope_begin();
    eg_tensor *c = egi_contiguous(x);
    const char *p = c ? (const char *)eg_data(c) : NULL;
    bool zero = false;
    for (int64_t i = 0; p && i < x->size && !zero; i++) zero = egi_load_int(x->dtype, p + i * egi_dtypes[x->dtype].size) == 0;
    if (c) egi_object_release(&c->object);
    eg_scope_end(scope);
    return zero;
}

// Checks everything there is to check; the result is not yet recorded or owned.
static eg_tensor *egi_elementwise_any(const egi_op *op, eg_tensor *const *in) {
    int n = op->n_in, dtype = -1, first = -1, skip = op->flags & EGI_BOOL_FIRST ? 1 : 0;
    eg_backend *backend = NULL;
    for (int i = 0; i < n; i++) {
        if (!egi_alive(op->name, i, in[i])) return NULL;
        if (in[i]->flags & EGI_NUMBER) continue;
        if (!backend) backend = in[i]->buffer->backend;
        else if (in[i]->buffer->backend != backend) {
            egi_same_device(op->name, in[first < 0 ? 0 : first], first < 0 ? 0 : first, in[i], i);
            return NULL;
        }
        if (first < 0) first = i;
        if (i < skip) continue;
        if (dtype < 0) dtype = in[i]->dtype;
        else if (dtype != in[i]->dtype) {
            int j = skip;
            while (in[j]->flags & EGI_NUMBER) j++;
            return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_%s: dtypes differ: %s and %s; eg_cast one of them", op->name, egi_describe(in[j]),
                                         egi_describe(in[i]));
        }
    }
    if (dtype < 0) dtype = op->dtypes == EGI_DTYPES_B ? EG_BOOL : EG_FLOAT32;
    if (skip && !(in[0]->flags & EGI_NUMBER) && in[0]->dtype != EG_BOOL)
        return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_%s: the condition is %s, but must be bool", op->name, egi_describe(in[0]));
    if (!(op->dtypes >> dtype & 1)) { egi_dtype_error(op, in[first < 0 ? 0 : first], dtype); return NULL; }
    for (int i = skip; i < n; i++)
        if ((in[i]->flags & EGI_NUMBER) && dtype >= EG_INT32 && !egi_number_fits(op->name, in[i], (eg_dtype)dtype)) return NULL;
    if ((op->flags & EGI_DIVIDES) && dtype >= EG_INT32 && egi_has_zero(in[1]))
        return (eg_tensor *)eg_raise(EG_ERROR_MATH, "eg_%s: integer division by zero in %s", op->name, egi_describe(in[1]));
    if (op->flags & EGI_SAME_SHAPE && in[0]->rank && in[1]->rank && !egi_same_shape(in[0], in[1]))
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: labels %s and logits %s must have one shape", op->name, egi_describe(in[0]),
                                     egi_describe(in[1]));
    eg_shape shape;
    if (!egi_broadcast(op->name, in, n, &shape)) return NULL;
    eg_tensor *out = egi_new(op->name, backend ? backend : egi_backend_here(), op->flags & EGI_TO_BOOL ? EG_BOOL : (eg_dtype)dtype, &shape);
    if (!out) return NULL;
    if (out->size && !egi_elementwise_launch(op, 0, in, n, out)) { egi_object_release(&out->object); return NULL; }
    return out;
}

static bool egi_cpu_elementwise(eg_backend *b, const egi_args *args);
static bool egi_is_plain(const eg_tensor *x) {
    return x && x->object.kind == EGI_TENSOR && (x->flags & (EGI_CONTIGUOUS | EGI_NUMBER)) == EGI_CONTIGUOUS;
}
// Two contiguous tensors of one shape, dtype and device.
static bool egi_are_twins(const eg_tensor *a, const eg_tensor *b) {
    return egi_is_plain(b) && a->dtype == b->dtype && egi_same_shape(a, b) && a->buffer->backend == b->buffer->backend;
}
static eg_tensor *egi_elementwise(const egi_op *op, eg_tensor *const *in) {
    eg_tensor *out;
    const eg_tensor *x = in[0];
    int n = op->n_in;
    // The common case needs next to no checks, and on the CPU no more than the loop.
    if (n <= 2 && egi_is_plain(x) && x->dtype < EGI_COMPUTED && op->loops[x->dtype] && !(op->flags & EGI_DIVIDES) &&
        (n == 1 || egi_are_twins(x, in[1]))) {
        out = egi_new_like(op->name, x, op->flags & EGI_TO_BOOL ? EG_BOOL : (eg_dtype)x->dtype);
        if (!out) return NULL;
        if (out->buffer->backend->kernel[EGI_ELEMENTWISE] == egi_cpu_elementwise) {
            const void *p[5] = { x->data, in[n - 1]->data, x->data, x->data, x->data };
            op->loops[x->dtype](x->size, p, out->data);
        } else if (out->size && !egi_elementwise_launch(op, 0, in, n, out)) { egi_object_release(&out->object); return NULL; }
    } else out = egi_elementwise_any(op, in);
    if (!out) return NULL;
    if (egi_this.trap && !egi_trap_passes(op->name, in, n, &out, 1)) { egi_object_release(&out->object); return NULL; }
    out = egi_own(out);
    if (out && egi_recording() && !egi_record(op, in, n, NULL, &out, 1, NULL)) return NULL;
    return out;
}

// The functions of the elementwise rows.
#define EGI_F1(kind, name, f, d0) EGI_F1_ND(kind, name, f)
#define EGI_F1_ND(kind, name, f) EAGER_API eg_tensor *(eg_##name)(eg_tensor *x) { return egi_elementwise(&egi_elementwise_ops[EGI_OP_##name], &x); }
#define EGI_F2(kind, name, f, d0, d1) EGI_F2_ND(kind, name, f)
#define EGI_F2_ND(kind, name, f) \
    EAGER_API eg_tensor *(eg_##name)(eg_tensor *a, eg_tensor *b) { \
        eg_tensor *in[2]; \
        in[0] = a; \
        in[1] = b; \
        return egi_elementwise(&egi_elementwise_ops[EGI_OP_##name], in); \
    }
#define EGI_F3(kind, name, f, d0, d1, d2) \
    EAGER_API eg_tensor *(eg_##name)(eg_tensor *a, eg_tensor *b, eg_tensor *c) { \
        eg_tensor *in[3]; \
        in[0] = a; \
        in[1] = b; \
        in[2] = c; \
        return egi_elementwise(&egi_elementwise_ops[EGI_OP_##name], in); \
    }
EGI_ELEMENTWISE_TABLE(EGI_F1, EGI_F1_ND, EGI_F2, EGI_F2_ND, EGI_F3)

// The gradients of an elementwise row: fused where nothing records and the dtype has the loop, else in eager ops.
static bool egi_grad_elementwise(const eg_grad_context *c, const egi_op *op, eg_tensor **dx) {
    eg_tensor *operand[5] = { NULL, NULL, NULL, NULL, NULL }, *g = c->upstream[0];
    for (int i = 0; i < c->n_inputs; i++) operand[i] = c->inputs[i];
    operand[3] = c->outputs[0];
    operand[4] = g;
    for (int i = 0; i < c->n_inputs; i++) {
        if (!c->needed[i]) continue;
        if (op->plain[i]) { dx[i] = g; continue; }
        unsigned uses = op->uses(i);
        if (!uses && (op->flags & EGI_BOOL_FIRST)) continue;
        if (egi_recording() || g->dtype != EG_FLOAT32 || (uses & EGI_USES_A && op->flags & EGI_BOOL_FIRST && c->inputs[0]->flags & EGI_NUMBER)) {
            // A plain number would make float32 where it meets another one; here it has the dtype it had in the op.
            for (int j = op->flags & EGI_BOOL_FIRST ? 1 : 0; j < c->n_inputs; j++)
                if (operand[j] && operand[j]->flags & EGI_NUMBER &&
                    !(operand[j] = egi_number_tensor(op->name, operand[j], (eg_dtype)g->dtype, egi_backend_of(g))))
                    return false;
            dx[i] = op->dx(i, operand[0], operand[1], operand[2], operand[3], g);
            if (!dx[i]) return false;
            continue;
        }
        eg_shape shape;
        if (!(g->flags & EGI_CONTIGUOUS)) shape = egi_shape(g);
        eg_tensor *in[5],
            *out = g->flags & EGI_CONTIGUOUS ? egi_new_like(op->name, g, EG_FLOAT32) : egi_new(op->name, egi_backend_of(g), EG_FLOAT32, &shape);
        for (int j = 0; j < 5; j++) in[j] = uses >> j & 1 ? operand[j] : NULL;
        if (out && out->size && !egi_elementwise_launch(op, i + 1, in, 5, out)) { egi_object_release(&out->object); out = NULL; }
        if (out && egi_this.trap && !egi_trap_passes(op->name, in, 5, &out, 1)) { egi_object_release(&out->object); out = NULL; }
        dx[i] = egi_own(out);
        if (!dx[i]) return false;
    }
    return true;
}

// ---- everything else

// Runs any other row: shape rule, outputs, kernel, tape. Outputs belong to the scope; false with all NULL on an error.
static bool egi_apply(const egi_op *op, eg_tensor *const *in, int n, const void *attr, eg_tensor **out) {
    egi_call c;
    eg_tensor *few[8], **real = few;
    int dtype = -1, first = -1;
    bool ok = true;
    c.op = op;
    c.n = n;
    c.n_out = op->n_out;
    c.attr = attr;
    c.backend = egi_backend_here();
    for (int i = 0; i < op->n_out; i++) { out[i] = NULL; c.out[i] = NULL; c.dtype[i] = EG_FLOAT32; c.shape[i].rank = 0; }
    for (int i = 0; i < n; i++) {
        if (!egi_alive(op->name, i, in[i])) return false;
        if (in[i]->flags & EGI_NUMBER) continue;
        if (first < 0) { first = i; dtype = in[i]->dtype; c.backend = egi_backend_of(in[i]); }
        else if (!egi_same_device(op->name, in[first], first, in[i], i)) return false;
    }
    if (n > 8) {
        real = (eg_tensor **)egi_alloc((size_t)n * sizeof *real);
        if (!real) return egi_no_memory(op->name, n * (int64_t)sizeof *real);
    }
    for (int i = 0; i < n && ok; i++) {       // plain numbers become tensors here
        real[i] = in[i]->flags & EGI_NUMBER ? egi_number_tensor(op->name, in[i], dtype < 0 ? EG_FLOAT32 : (eg_dtype)dtype, c.backend) : in[i];
        ok = real[i] != NULL;
    }
    c.in = real;
    ok = ok && op->shape(&c);
    for (int i = 0; i < c.n_out && ok && !(op->flags & EGI_VIEW); i++) {
        ok = egi_shape_valid(op->name, c.shape[i], c.dtype[i]);
        if (ok) c.out[i] = egi_new(op->name, c.backend, c.dtype[i], &c.shape[i]);
        ok = ok && c.out[i];
    }
    ok = ok && op->run(&c);
    if (ok && egi_this.trap && !(op->flags & EGI_VIEW)) ok = egi_trap_passes(op->name, real, n, c.out, c.n_out);
    for (int i = 0; i < c.n_out; i++) {
        if (!ok) { if (c.out[i]) egi_object_release(&c.out[i]->object); continue; }
        out[i] = egi_own(c.out[i]);
        ok = out[i] != NULL;
    }
    ok = ok && (!egi_recording() || egi_record(op, in, n, attr, out, c.n_out, NULL));
    if (!ok) for (int i = 0; i < c.n_out; i++) out[i] = NULL;
    if (real != few) egi_free(real);
    return ok;
}
static eg_tensor *egi_apply1(const egi_op *op, eg_tensor *const *in, int n, const void *attr) {
    eg_tensor *out[EGI_MAX_OUT];
    return egi_apply(op, in, n, attr, out) ? out[0] : NULL;
}

//# 22  KERNELS ----------------------------------------------------------------
// Idea: plain functions on raw pointers that know nothing of tensors, scopes or
// tapes. A kernel's text stands once, at the end of this file, and is stamped for
// each element type by including the file again: EGI_STAMP 1 is a tile of a matrix
// product, 2 what only floating point has, 3 what every number has. So each
// stays an ordinary function in which a debugger can step. A kernel returns false
// where it got no workspace. Proof: tests/ops_values.c

#ifndef EAGER_HEADER_NAME
#define EAGER_HEADER_NAME "eager.h"
#endif

#ifndef EGI_X86  // 0 leaves the portable tiles alone: the tests do that
#if defined(__x86_64__) && defined(__GNUC__)
#define EGI_X86 1
#else
#define EGI_X86 0
#endif
#endif
#ifdef EAGER_OPENBLAS
#include <cblas.h>
#endif

// Helpers that run long stay functions of their own: inlined everywhere, they would only cost compile time.
#define EGI_NOINLINE __attribute__((noinline))

#define EGI_TN(name) EGI_PASTE(name, EGI_SUFFIX)

static inline int64_t egi_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t egi_max64(int64_t a, int64_t b) { return a > b ? a : b; }

// 16-byte vectors are baseline everywhere; the aligned(…) makes loads through them legal at any element's address.
typedef float egi_v16_f32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef double egi_v16_f64 __attribute__((vector_size(16), aligned(8), may_alias));

// GEMM. Idea: C is cut into tiles of EGI_MR rows and two vectors of columns, which live in registers while k runs. So that
// a tile's inputs come from cache, k is cut into EGI_KC, rows into EGI_MC, columns into EGI_NC, and a block that will be
// read often is first copied ("packed") into the order in which the tiles read it. A tile takes a pointer for each of its rows
// and a step, so it can read packed A, A and A transposed alike; small products are therefore never packed at all.
enum { EGI_MR = 6, EGI_KC = 256, EGI_MC = 96, EGI_NC = 2048, EGI_PACK_STACK = 4096 };

#if EGI_X86
static bool egi_cpu_has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

#define EGI_STAMP 1
#define EGI_TILE_TARGET
#define EGI_T float
#define EGI_TILE egi_tile_f32
#define EGI_VEC egi_v16_f32
#define EGI_SPLAT(s) {s, s, s, s}
#define EGI_VFMA(s, b, c) ((c) + (s) * (b))
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_TILE
#undef EGI_VEC
#undef EGI_SPLAT
#undef EGI_VFMA
#define EGI_T double
#define EGI_TILE egi_tile_f64
#define EGI_VEC egi_v16_f64
#define EGI_SPLAT(s) {s, s}
#define EGI_VFMA(s, b, c) ((c) + (s) * (b))
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_TILE
#undef EGI_VEC
#undef EGI_SPLAT
#undef EGI_VFMA
#undef EGI_TILE_TARGET
#if EGI_X86
// The compiler's vectors and one builtin: <immintrin.h> would cost more compile time than all kernels of a type.
typedef float egi_v32_f32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double egi_v32_f64 __attribute__((vector_size(32), aligned(8), may_alias));
#if defined(__clang__) && __has_builtin(__builtin_elementwise_fma)
#define EGI_FMA8F(a, b, c) __builtin_elementwise_fma(a, b, c)
#define EGI_FMA4D(a, b, c) __builtin_elementwise_fma(a, b, c)
#else
#define EGI_FMA8F(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define EGI_FMA4D(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#endif
#define EGI_TILE_TARGET __attribute__((target("avx2,fma")))
#define EGI_T float
#define EGI_TILE egi_tile_avx2_f32
#define EGI_VEC egi_v32_f32
#define EGI_SPLAT(s) {s, s, s, s, s, s, s, s}
#define EGI_VFMA(s, b, c) EGI_FMA8F(s, b, c)
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_TILE
#undef EGI_VEC
#undef EGI_SPLAT
#undef EGI_VFMA
#define EGI_T double
#define EGI_TILE egi_tile_avx2_f64
#define EGI_VEC egi_v32_f64
#define EGI_SPLAT(s) {s, s, s, s}
#define EGI_VFMA(s, b, c) EGI_FMA4D(s, b, c)
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_TILE
#undef EGI_VEC
#undef EGI_SPLAT
#undef EGI_VFMA
#undef EGI_TILE_TARGET
#endif
#undef EGI_STAMP

// Integers wrap around, as they do in NumPy: the arithmetic is done unsigned.
#define EGI_GEMM_INT(NAME, T, U)                                                                                              \
    static bool NAME(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb,    \
                     T *c, int64_t ldc, bool accumulate) {                                                                    \
        for (int64_t i = 0; i < m; i++) {                                                                                     \
            T *ci = c + i * ldc;                                                                                              \
            if (!accumulate)                                                                                                  \
                for (int64_t j = 0; j < n; j++) ci[j] = 0;                                                                    \
            for (int64_t p = 0; p < k; p++) {                                                                                 \
                U aip = (U)(ta ? a[p * lda + i] : a[i * lda + p]);                                                            \
                const T *bp = tb ? b + p : b + p * ldb;                                                                       \
                int64_t step = tb ? ldb : 1;                                                                                  \
                for (int64_t j = 0; j < n; j++) ci[j] = (T)((U)ci[j] + aip * (U)bp[j * step]);                                \
            }                                                                                                                 \
        }                                                                                                                     \
        return true;                                                                                                          \
    }
EGI_GEMM_INT(egi_gemm_i32, int32_t, uint32_t)
EGI_GEMM_INT(egi_gemm_i64, int64_t, uint64_t)
#undef EGI_GEMM_INT

// x is (n,h,w,c), the filter (kh,kw,c/groups,oc), y (n,oh,ow,oc). s: stride, d: dilation, pt and pl: rows of padding on top
// and columns on the left (what lies beyond the other two borders follows from the sizes). groups >= 1 divides c and oc.

// x is (n,h,w,c), y (n,oh,ow,c). Padding is never part of a window: not for the maximum, not in the average's count.

// Which of the outputs 0 <= o < count read inside [0, size) through the tap at offset, at a given stride.
static void egi_tap_range(int64_t offset, int64_t stride, int64_t size, int64_t count, int64_t *first, int64_t *last) {
    int64_t from = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t to = offset < size ? (size - 1 - offset) / stride + 1 : 0;
    *last = egi_min64(to, count);
    *first = egi_min64(from, *last);
}

enum { EGI_COLUMNS_BYTES = 1 << 18, EGI_CHUNK = 128 };

#define EGI_STAMP 2
#define EGI_T float
#define EGI_INT int32_t
#define EGI_SUFFIX _f32
#define EGI_CBLAS_GEMM cblas_sgemm
#define EGI_EXP_T egi_expf
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_SUFFIX
#undef EGI_CBLAS_GEMM
#undef EGI_EXP_T
#undef EGI_INT
#define EGI_T double
#define EGI_INT int64_t
#define EGI_SUFFIX _f64
#define EGI_CBLAS_GEMM cblas_dgemm
#define EGI_EXP_T egi_exp
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_SUFFIX
#undef EGI_CBLAS_GEMM
#undef EGI_EXP_T
#undef EGI_INT
#undef EGI_STAMP

// Reductions of a contiguous (outer, n, inner) view over its middle axis. Floating point is added up in double, integers modulo
// 2^64, which is modulo their own width in the end. Long rows run in several accumulators, always the same ones.
#define EGI_STAMP 3
#define EGI_IS_FLOAT 1
#define EGI_ISNAN(v) ((v) != (v))
#define EGI_ACC double
#define EGI_TO_ACC(v) ((double)(v))
#define EGI_QUOTIENT(acc, n) ((acc) / (double)(n))
#define EGI_T float
#define EGI_SUFFIX _f32
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_SUFFIX
#define EGI_T double
#define EGI_SUFFIX _f64
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_SUFFIX
#undef EGI_IS_FLOAT
#undef EGI_ISNAN
#undef EGI_ACC
#undef EGI_TO_ACC
#undef EGI_QUOTIENT
#define EGI_IS_FLOAT 0
#define EGI_ISNAN(v) false
#define EGI_ACC uint64_t
#define EGI_TO_ACC(v) ((uint64_t)(int64_t)(v))
#define EGI_QUOTIENT(acc, n) ((n) > 0 ? (int64_t)(acc) / (n) : 0)
#define EGI_T int32_t
#define EGI_SUFFIX _i32
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_SUFFIX
#define EGI_T int64_t
#define EGI_SUFFIX _i64
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_SUFFIX
#define EGI_T uint8_t
#define EGI_SUFFIX _u8
#include EAGER_HEADER_NAME
#undef EGI_T
#undef EGI_SUFFIX
#undef EGI_IS_FLOAT
#undef EGI_ISNAN
#undef EGI_ACC
#undef EGI_TO_ACC
#undef EGI_QUOTIENT
#undef EGI_STAMP

// all: no element is zero; any: not all are. Of nothing, all is true and any false.
static void egi_reduce_all_or_any(int64_t outer, int64_t n, int64_t inner, const uint8_t *x, uint8_t *y, bool any) {
    for (int64_t o = 0; o < outer; o++, x += n * inner, y += inner) {
        for (int64_t j = 0; j < inner; j++) y[j] = (uint8_t)!any;
        if (inner == 1) {
            int64_t i = 0;
            while (i < n && (x[i] != 0) != any) i++;
            y[0] = (uint8_t)((i < n) == any);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < inner; j++)
                if ((x[i * inner + j] != 0) == any) y[j] = (uint8_t)any;
    }
}
static void egi_reduce_all_u8(int64_t outer, int64_t n, int64_t inner, const uint8_t *x, uint8_t *y) {
    egi_reduce_all_or_any(outer, n, inner, x, y, false);
}
static void egi_reduce_any_u8(int64_t outer, int64_t n, int64_t inner, const uint8_t *x, uint8_t *y) {
    egi_reduce_all_or_any(outer, n, inner, x, y, true);
}


//# 23  THE CPU ----------------------------------------------------------------
// Idea: loops run over contiguous elements only. Operands in another layout are
// packed block by block into one that is; kernels for whole tensors work on raw
// pointers (text at the end of this file). Read first: 15, 20.

// A tensor's elements in the row-major order of a shape it broadcasts to, with axes merged where memory allows.
typedef struct egi_walk { int rank; int64_t dims[EG_MAX_RANK], strides[EG_MAX_RANK]; } egi_walk;
static void egi_walk_make(egi_walk *w, const eg_tensor *x, int rank, const int64_t *dims) {
    w->rank = 0;
    for (int i = 0; i < rank; i++) {
        int k = i - (rank - x->rank);
        int64_t stride = k < 0 || (x->dims[k] == 1 && dims[i] != 1) ? 0 : x->strides[k];
        if (dims[i] == 1) continue;
        if (w->rank && w->strides[w->rank - 1] == stride * dims[i]) {      // this axis continues the one before
            w->dims[w->rank - 1] *= dims[i];
            w->strides[w->rank - 1] = stride;
        } else {
            w->dims[w->rank] = dims[i];
            w->strides[w->rank++] = stride;
        }
    }
    if (!w->rank) { w->rank = 1; w->dims[0] = 1; w->strides[0] = 0; }
}
#define EGI_STRIDED(T) { \
        const T *f = (const T *)(const void *)from; \
        T *t = (T *)(void *)to; \
        if (step_from == 0) { T v = *f; for (int64_t i = 0; i < n; i++) t[i * step_to] = v; } \
        else if (step_to == 1) for (int64_t i = 0; i < n; i++) t[i] = f[i * step_from]; \
        else for (int64_t i = 0; i < n; i++) t[i * step_to] = f[i * step_from]; \
        break; \
    }
// n elements of a size, with steps counted in elements.
static void egi_move(char *to, int64_t step_to, const char *from, int64_t step_from, int64_t n, int size) {
    if (step_to == 1 && step_from == 1) { memcpy(to, from, (size_t)(n * size)); return; }
    switch (size) {
        case 1: EGI_STRIDED(uint8_t)
        case 2: EGI_STRIDED(uint16_t)
        case 4: EGI_STRIDED(uint32_t)
        default: EGI_STRIDED(uint64_t)
    }
}
// Elements start .. start + count of the walk, to or from contiguous memory.
static void egi_walk_move(char *packed, char *data, const egi_walk *w, int64_t start, int64_t count, int size, bool unpack) {
    int64_t index[EG_MAX_RANK], offset = 0, rest = start, last = w->rank - 1;
    for (int i = w->rank - 1; i >= 0; i--) {
        index[i] = rest % w->dims[i];
        rest /= w->dims[i];
        offset += index[i] * w->strides[i];
    }
    while (count > 0) {
        int64_t run = w->dims[last] - index[last], step = w->strides[last];
        if (run > count) run = count;
        if (unpack) egi_move(data + offset * size, step, packed, 1, run, size);
        else egi_move(packed, 1, data + offset * size, step, run, size);
        packed += run * size;
        count -= run;
        index[last] += run;
        offset += run * step;
        for (int i = (int)last; i > 0 && index[i] == w->dims[i]; i--) {
            offset += w->strides[i - 1] - index[i] * w->strides[i];
            index[i] = 0;
            index[i - 1]++;
        }
    }
}

#define EGI_CONVERT(FROM, TO) { const FROM *f = (const FROM *)from; TO *t = (TO *)to; for (int64_t i = 0; i < n; i++) t[i] = (TO)f[i]; return; }
static void egi_convert(int dtype_from, const void *from, int dtype_to, void *to, int64_t n) {
    if (dtype_from == dtype_to) { memcpy(to, from, (size_t)(n * egi_dtypes[dtype_to].size)); return; }
    switch (dtype_from * 16 + dtype_to) {       // the common ones that cannot overflow
        case EG_FLOAT32 * 16 + EG_FLOAT64: EGI_CONVERT(float, double)
        case EG_FLOAT64 * 16 + EG_FLOAT32: EGI_CONVERT(double, float)
        case EG_INT32 * 16 + EG_FLOAT32: EGI_CONVERT(int32_t, float)
        case EG_INT32 * 16 + EG_INT64: EGI_CONVERT(int32_t, int64_t)
        case EG_INT64 * 16 + EG_FLOAT32: EGI_CONVERT(int64_t, float)        // by way of double it would be rounded twice
        case EG_UINT8 * 16 + EG_FLOAT32: case EG_BOOL * 16 + EG_FLOAT32: EGI_CONVERT(uint8_t, float)
        case EG_UINT8 * 16 + EG_FLOAT64: case EG_BOOL * 16 + EG_FLOAT64: EGI_CONVERT(uint8_t, double)
        case EG_UINT8 * 16 + EG_INT32: case EG_BOOL * 16 + EG_INT32: EGI_CONVERT(uint8_t, int32_t)
        case EG_UINT8 * 16 + EG_INT64: case EG_BOOL * 16 + EG_INT64: EGI_CONVERT(uint8_t, int64_t)
        case EG_BOOL * 16 + EG_UINT8: EGI_CONVERT(uint8_t, uint8_t)
        default: break;
    }
    int sf = egi_dtypes[dtype_from].size, st = egi_dtypes[dtype_to].size;
    bool wraps = !egi_is_float(dtype_from) && (dtype_to == EG_INT32 || dtype_to == EG_UINT8);
    for (int64_t i = 0; i < n; i++) {
        const char *f = (const char *)from + i * sf;
        char *t = (char *)to + i * st;
        if (!wraps) { egi_store(dtype_to, t, egi_load(dtype_from, f)); continue; }
        uint64_t low = (uint64_t)egi_load_int(dtype_from, f);
        egi_store_int(dtype_to, t, dtype_to == EG_UINT8 ? (int64_t)(low & 255) : (int64_t)(int32_t)(uint32_t)low);
    }
}
static void egi_splat(char *to, const void *value, int64_t n, int size) { egi_move(to, 1, (const char *)value, 0, n, size); }

enum { EGI_BLOCK = 1024 };
// One operand, ready to be read in blocks of contiguous elements of a dtype.
typedef struct egi_reader { const char *direct; bool constant, convert; int size, from_size, from_dtype; int64_t period; egi_walk walk; char *data; } egi_reader;
static void egi_reader_make(egi_reader *r, const eg_tensor *x, const eg_tensor *out, int dtype, char *block) {
    int64_t n = egi_min64(out->size, EGI_BLOCK);
    r->size = egi_dtypes[dtype].size;
    r->constant = false;
    r->period = 1;
    r->direct = NULL;
    if (x->flags & EGI_NUMBER) {
        unsigned char value[8];
        egi_number_store(x, dtype, value);
        r->constant = true;
        egi_splat(block, value, n, r->size);
        return;
    }
    r->convert = x->dtype != dtype && !(x->dtype == EG_BOOL && dtype == EG_UINT8);
    egi_walk_make(&r->walk, x, out->rank, out->dims);
    if (r->walk.rank == 1 && r->walk.strides[0] == 0) {
        unsigned char value[8];
        egi_convert(x->dtype, x->data, dtype, value, 1);
        r->constant = true;
        egi_splat(block, value, n, r->size);
        return;
    }
    r->from_dtype = x->dtype;
    r->from_size = egi_dtypes[x->dtype].size;
    if (!r->convert && (x->flags & EGI_CONTIGUOUS) && x->size == out->size) r->direct = x->data;
    else r->data = x->data;
    // Rows that repeat, as a bias does: blocks of whole rows are all the same.
    if (r->walk.rank == 2 && r->walk.strides[0] == 0 && r->walk.dims[1] <= EGI_BLOCK) r->period = r->walk.dims[1];
}
// A block begins at a multiple of every reader's period.
static const void *egi_reader_block(egi_reader *r, char *block, int dtype, int64_t start, int64_t count) {
    char bytes[EGI_BLOCK * 8];
    if (r->direct) return r->direct + start * r->size;
    if (r->constant || (r->period > 1 && start > 0)) return block;
    egi_walk_move(r->convert ? bytes : block, r->data, &r->walk, start, count, r->from_size, false);
    if (r->convert) egi_convert(r->from_dtype, bytes, dtype, block, count);
    return block;
}

static bool egi_cpu_elementwise(eg_backend *b, const egi_args *args) {
    const egi_op *op = args->op;
    eg_tensor *out = args->out[0];
    const void *p[5];
    int64_t n = out->size;
    int dtype = args->variant ? out->dtype : -1;
    bool direct = true;
    (void)b;
    if (dtype < 0) {                            // the dtype of the first operand that has one
        for (int i = op->flags & EGI_BOOL_FIRST ? 1 : 0; i < op->n_in && dtype < 0; i++)
            if (!(args->in[i]->flags & EGI_NUMBER)) dtype = args->in[i]->dtype;
        if (dtype < 0) dtype = op->flags & EGI_TO_BOOL && op->dtypes == EGI_DTYPES_B ? EG_BOOL : EG_FLOAT32;
    }
    egi_loop *loop = args->variant ? op->dx_loops[args->variant - 1] : op->loops[dtype];
    int some = 0;                               // an operand that is read; the others point at its elements
    while (!args->in[some]) some++;
    for (int i = 0; i < 5 && direct; i++) {
        const eg_tensor *x = args->in[args->in[i] ? i : some];
        direct = x->size == n && x->dtype == dtype && (x->flags & (EGI_CONTIGUOUS | EGI_NUMBER)) == EGI_CONTIGUOUS;
        p[i] = x->data;
    }
    if (direct) {
        loop(n, p, out->data);
        return true;
    }
    if (dtype == EG_BOOL) dtype = EG_UINT8;
    egi_reader readers[5];
    char blocks[5][EGI_BLOCK * 8] __attribute__((aligned(64)));
    int out_size = egi_dtypes[out->dtype].size;
    int64_t step = EGI_BLOCK, period = 1;
    for (int i = 0; i < 5; i++) {
        if (!args->in[i]) continue;
        egi_reader_make(&readers[i], args->in[i], out, dtype, blocks[i]);
        if (period == 1) { period = readers[i].period; step -= step % period; }
        if (step % readers[i].period) readers[i].period = 1;        // does not go into another's: read as any layout
    }
    for (int64_t start = 0; start < n; start += step) {
        int64_t count = egi_min64(n - start, step);
        const void *read = egi_reader_block(&readers[some], blocks[some], dtype, start, count);
        for (int i = 0; i < 5; i++) p[i] = i == some || !args->in[i] ? read : egi_reader_block(&readers[i], blocks[i], dtype, start, count);
        loop(count, p, out->data + start * out_size);
    }
    return true;
}

static bool egi_cpu_copy(eg_backend *b, const egi_args *args) {
    const eg_tensor *x = args->in[0];
    eg_tensor *out = args->out[0];
    int64_t n = out->size;
    int size = egi_dtypes[out->dtype].size;
    char block[EGI_BLOCK * 8] __attribute__((aligned(64)));
    egi_reader reader;
    egi_walk walk;
    (void)b;
    egi_reader_make(&reader, x, out, out->dtype, block);
    reader.period = 1;
    if (reader.direct && (out->flags & EGI_CONTIGUOUS)) { memcpy(out->data, reader.direct, (size_t)(n * size)); return true; }
    bool packed = (out->flags & EGI_CONTIGUOUS) != 0;
    if (!packed) egi_walk_make(&walk, out, out->rank, out->dims);
    if (packed && !reader.constant && !reader.convert) {           // straight into place
        egi_walk_move(out->data, reader.data, &reader.walk, 0, n, size, false);
        return true;
    }
    for (int64_t start = 0; start < n; start += EGI_BLOCK) {
        int64_t count = egi_min64(n - start, EGI_BLOCK);
        const void *from = egi_reader_block(&reader, block, out->dtype, start, count);
        if (packed) memcpy(out->data + start * size, from, (size_t)(count * size));
        else egi_walk_move((char *)(uintptr_t)from, out->data, &walk, start, count, size, true);
    }
    return true;
}
static bool egi_cpu_fill(eg_backend *b, const egi_args *args) {
    eg_tensor number;
    egi_args copy = *args;
    memset(&number, 0, sizeof number);
    number.flags = EGI_NUMBER;
    number.number = *(const double *)args->parameters;
    number.size = 1;
    eg_tensor *out = args->out[0];
    if ((out->flags & EGI_CONTIGUOUS) && (number.number == 0) && !__builtin_signbit(number.number)) {
        memset(out->data, 0, (size_t)(out->size * egi_dtypes[out->dtype].size));
        return true;
    }
    copy.in[0] = &number;
    return egi_cpu_copy(b, &copy);
}

#define EGI_REDUCE_FLOAT(S, T) if (p->kind == EGI_NORM2) { egi_reduce_norm_##S(p->outer, p->n, p->inner, (const T *)x, (T *)y); return true; }
#define EGI_REDUCE_ANY_TYPE(S, T) \
    switch ((int)p->kind) { \
        case EGI_SUM: egi_reduce_sum_##S(p->outer, p->n, p->inner, (const T *)x, (T *)y); return true; \
        case EGI_MEAN: egi_reduce_mean_##S(p->outer, p->n, p->inner, (const T *)x, (T *)y); return true; \
        case EGI_MAX_: egi_reduce_max_##S(p->outer, p->n, p->inner, (const T *)x, (T *)y); return true; \
        case EGI_MIN_: egi_reduce_min_##S(p->outer, p->n, p->inner, (const T *)x, (T *)y); return true; \
        case EGI_ARGMAX: egi_argmax_##S(p->outer, p->n, p->inner, (const T *)x, (int64_t *)y); return true; \
        case EGI_ARGMIN: egi_argmin_##S(p->outer, p->n, p->inner, (const T *)x, (int64_t *)y); return true; \
        default: break; \
    }
static bool egi_cpu_reduce(eg_backend *b, const egi_args *args) {
    const egi_reduce_parameters *p = (const egi_reduce_parameters *)args->parameters;
    const void *x = args->in[0]->data;
    void *y = args->out[0]->data;
    (void)b;
    if (p->kind == EGI_ALL) { egi_reduce_all_u8(p->outer, p->n, p->inner, (const uint8_t *)x, (uint8_t *)y); return true; }
    if (p->kind == EGI_ANY) { egi_reduce_any_u8(p->outer, p->n, p->inner, (const uint8_t *)x, (uint8_t *)y); return true; }
    switch (args->in[0]->dtype) {
        case EG_FLOAT32: EGI_REDUCE_FLOAT(f32, float) EGI_REDUCE_ANY_TYPE(f32, float) break;
        case EG_FLOAT64: EGI_REDUCE_FLOAT(f64, double) EGI_REDUCE_ANY_TYPE(f64, double) break;
        case EG_INT32: EGI_REDUCE_ANY_TYPE(i32, int32_t) break;
        case EG_INT64: EGI_REDUCE_ANY_TYPE(i64, int64_t) break;
        case EG_UINT8: EGI_REDUCE_ANY_TYPE(u8, uint8_t) break;
        default: break;
    }
    return egi_fail(EG_ERROR_DTYPE, "eg_%s: no kernel for dtype %s", args->op->name, egi_dtypes[args->in[0]->dtype].name);
}
static bool egi_cpu_cumsum(eg_backend *b, const egi_args *args) {
    const egi_reduce_parameters *p = (const egi_reduce_parameters *)args->parameters;
    const void *x = args->in[0]->data;
    void *y = args->out[0]->data;
    (void)b;
    switch (args->in[0]->dtype) {
        case EG_FLOAT32: egi_cumsum_f32(p->outer, p->n, p->inner, (const float *)x, (float *)y, p->exclusive, p->reverse); break;
        case EG_FLOAT64: egi_cumsum_f64(p->outer, p->n, p->inner, (const double *)x, (double *)y, p->exclusive, p->reverse); break;
        case EG_INT32: egi_cumsum_i32(p->outer, p->n, p->inner, (const int32_t *)x, (int32_t *)y, p->exclusive, p->reverse); break;
        case EG_INT64: egi_cumsum_i64(p->outer, p->n, p->inner, (const int64_t *)x, (int64_t *)y, p->exclusive, p->reverse); break;
        default: egi_cumsum_u8(p->outer, p->n, p->inner, (const uint8_t *)x, (uint8_t *)y, p->exclusive, p->reverse); break;
    }
    return true;
}
static bool egi_cpu_argsort(eg_backend *b, const egi_args *args) {
    const egi_reduce_parameters *p = (const egi_reduce_parameters *)args->parameters;
    int64_t *to = (int64_t *)(void *)args->out[0]->data, *tmp = (int64_t *)egi_alloc((size_t)(p->n ? p->n : 1) * sizeof *tmp);
    (void)b;
    if (!tmp) return egi_no_memory("argsort", p->n * 8);
    int size = egi_dtypes[args->in[0]->dtype].size;
    for (int64_t r = 0; r < p->outer; r++, to += p->n) {
        const void *x = args->in[0]->data + r * p->n * size;
        switch (args->in[0]->dtype) {
            case EG_FLOAT32: egi_argsort_f32((const float *)x, p->n, p->reverse, to, tmp); break;
            case EG_FLOAT64: egi_argsort_f64((const double *)x, p->n, p->reverse, to, tmp); break;
            case EG_INT32: egi_argsort_i32((const int32_t *)x, p->n, p->reverse, to, tmp); break;
            case EG_INT64: egi_argsort_i64((const int64_t *)x, p->n, p->reverse, to, tmp); break;
            default: egi_argsort_u8((const uint8_t *)x, p->n, p->reverse, to, tmp); break;
        }
    }
    egi_free(tmp);
    return true;
}
static bool egi_cpu_softmax(eg_backend *b, const egi_args *args) {
    const egi_reduce_parameters *p = (const egi_reduce_parameters *)args->parameters;
    const void *x = args->in[0]->data;
    void *y = args->out[0]->data;
    bool f = args->in[0]->dtype == EG_FLOAT32;
    (void)b;
    if (p->kind == EGI_SOFTMAX_ && f) egi_softmax_f32(p->outer, p->n, (const float *)x, (float *)y);
    else if (p->kind == EGI_SOFTMAX_) egi_softmax_f64(p->outer, p->n, (const double *)x, (double *)y);
    else if (f) egi_log_softmax_f32(p->outer, p->n, (const float *)x, (float *)y);
    else egi_log_softmax_f64(p->outer, p->n, (const double *)x, (double *)y);
    return true;
}
// Indices as int64, checked against [0, limit); NULL with an error. Freed by egi_free.
static int64_t *egi_cpu_indices(const char *name, const eg_tensor *x, int64_t limit) {
    int64_t *index = (int64_t *)egi_alloc((size_t)(x->size ? x->size : 1) * sizeof *index);
    if (!index) { egi_no_memory(name, x->size * 8); return NULL; }
    egi_convert(x->dtype, x->data, EG_INT64, index, x->size);
    for (int64_t i = 0; i < x->size; i++)
        if (index[i] < 0 || index[i] >= limit) {
            int64_t rest = i, value = index[i];
            eg_shape at = { x->rank, { 0 } };
            for (int d = x->rank - 1; d >= 0; d--) { at.dims[d] = rest % x->dims[d]; rest /= x->dims[d]; }
            egi_fail(EG_ERROR_INDEX, "eg_%s: index %lld at position %s of %s is out of range [0, %lld)", name, (long long)value, egi_show(at),
                     egi_describe(x), (long long)limit);
            egi_free(index);
            return NULL;
        }
    return index;
}
static bool egi_cpu_sparse_xent(eg_backend *b, const egi_args *args) {
    const eg_tensor *labels = args->in[0], *x = args->in[1];
    int64_t n = x->dims[x->rank - 1], *label = egi_cpu_indices("sparse_softmax_cross_entropy_with_logits", labels, n);
    (void)b;
    if (!label) return false;
    if (x->dtype == EG_FLOAT32)
        egi_sparse_xent_f32(labels->size, n, (const float *)(const void *)x->data, label, (float *)(void *)args->out[0]->data);
    else egi_sparse_xent_f64(labels->size, n, (const double *)(const void *)x->data, label, (double *)(void *)args->out[0]->data);
    egi_free(label);
    return true;
}
static bool egi_cpu_matmul(eg_backend *b, const egi_args *args) {
    const egi_matmul_parameters *p = (const egi_matmul_parameters *)args->parameters;
    const eg_tensor *x = args->in[0], *y = args->in[1];
    eg_tensor *out = args->out[0];
    int64_t index[EG_MAX_RANK] = { 0 }, batches = 1;
    (void)b;
    for (int i = 0; i < p->batch_rank; i++) batches *= p->batch[i];
    int size = egi_dtypes[x->dtype].size;
    for (int64_t k = 0; k < batches; k++) {
        int64_t ox = 0, oy = 0;
        for (int i = 0; i < p->batch_rank; i++) { ox += index[i] * p->a_strides[i]; oy += index[i] * p->b_strides[i]; }
        const void *xa = x->data + ox * size, *yb = y->data + oy * size;
        void *to = out->data + k * p->m * p->n * size;
        bool ok = true;
        switch (x->dtype) {
            case EG_FLOAT32:
                ok = egi_gemm_f32(p->ta, p->tb, p->m, p->n, p->k, (const float *)xa, p->lda, (const float *)yb, p->ldb, (float *)to, p->n, false);
                break;
            case EG_FLOAT64:
                ok = egi_gemm_f64(p->ta, p->tb, p->m, p->n, p->k, (const double *)xa, p->lda, (const double *)yb, p->ldb, (double *)to, p->n, false);
                break;
            case EG_INT32:
                ok = egi_gemm_i32(p->ta, p->tb, p->m, p->n, p->k, (const int32_t *)xa, p->lda, (const int32_t *)yb, p->ldb, (int32_t *)to, p->n,
                                  false);
                break;
            default:
                ok = egi_gemm_i64(p->ta, p->tb, p->m, p->n, p->k, (const int64_t *)xa, p->lda, (const int64_t *)yb, p->ldb, (int64_t *)to, p->n,
                                  false);
                break;
        }
        if (!ok) return egi_no_memory("matmul", 0);
        for (int i = p->batch_rank - 1; i >= 0; i--) { if (++index[i] < p->batch[i]) break; index[i] = 0; }
    }
    return true;
}
static bool egi_cpu_conv(eg_backend *b, const egi_args *args) {
    const egi_conv_parameters *p = (const egi_conv_parameters *)args->parameters;
    const void *u = args->in[0]->data, *v = args->in[1]->data;
    void *y = args->out[0]->data;
    bool ok;
    (void)b;
    if (args->out[0]->dtype == EG_FLOAT32)
        ok = p->kind == EGI_CONV_FORWARD ? egi_conv2d_f32(&p->dims, (const float *)u, (const float *)v, (float *)y) :
             p->kind == EGI_CONV_INPUT ? egi_conv2d_input_f32(&p->dims, (const float *)u, (const float *)v, (float *)y) :
                                         egi_conv2d_filter_f32(&p->dims, (const float *)u, (const float *)v, (float *)y);
    else
        ok = p->kind == EGI_CONV_FORWARD ? egi_conv2d_f64(&p->dims, (const double *)u, (const double *)v, (double *)y) :
             p->kind == EGI_CONV_INPUT ? egi_conv2d_input_f64(&p->dims, (const double *)u, (const double *)v, (double *)y) :
                                         egi_conv2d_filter_f64(&p->dims, (const double *)u, (const double *)v, (double *)y);
    return ok || egi_no_memory(args->op->name, 0);
}
static bool egi_cpu_pool(eg_backend *b, const egi_args *args) {
    const egi_pool_parameters *p = (const egi_pool_parameters *)args->parameters;
    const void *x = args->in[0]->data;
    void *y = args->out[0]->data;
    bool f = args->in[0]->dtype == EG_FLOAT32;
    (void)b;
    if (f && egi_min64(p->dims.kh, p->dims.h) > INT32_MAX / egi_max64(p->dims.w, 1))
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: the windows of %s span more than 2^31 pixels", args->op->name, egi_describe(args->in[0]));
    if (p->kind == EGI_POOL_MAX_INDEX) {
        if (f) egi_max_pool_index_f32(&p->dims, (const float *)x, (int64_t *)y);
        else egi_max_pool_index_f64(&p->dims, (const double *)x, (int64_t *)y);
    } else if (p->kind == EGI_POOL_AVG) {
        if (f) egi_avg_pool_f32(&p->dims, (const float *)x, (float *)y);
        else egi_avg_pool_f64(&p->dims, (const double *)x, (double *)y);
    } else {
        if (f) egi_avg_pool_grad_f32(&p->dims, (const float *)x, (float *)y);
        else egi_avg_pool_grad_f64(&p->dims, (const double *)x, (double *)y);
    }
    return true;
}
static bool egi_cpu_gather(eg_backend *b, const egi_args *args) {
    const egi_gather_parameters *p = (const egi_gather_parameters *)args->parameters;
    const eg_tensor *x = args->in[0], *indices = args->in[1];
    char *to = args->out[0]->data;
    int64_t *index = egi_cpu_indices(p->name, indices, p->rows);
    int64_t row = p->inner * egi_dtypes[x->dtype].size;
    (void)b;
    if (!index) return false;
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t i = 0; i < indices->size; i++, to += row) {
            const char *from = x->data + (o * p->rows + index[i]) * row;
            if (row == 4) memcpy(to, from, 4);
            else if (row == 8) memcpy(to, from, 8);
            else if (row) memcpy(to, from, (size_t)row);
        }
    egi_free(index);
    return true;
}
// Adds in the order of the updates: the same sum every time.
#define EGI_SCATTER(T, U) { \
        const T *u = (const T *)(const void *)args->in[0]->data; \
        T *y = (T *)(void *)args->out[0]->data; \
        for (int64_t o = 0; o < p->outer; o++) \
            for (int64_t i = 0; i < indices->size; i++, u += p->inner) { \
                T *row = y + (o * p->rows + index[i]) * p->inner; \
                for (int64_t j = 0; j < p->inner; j++) row[j] = (T)((U)row[j] + (U)u[j]); \
            } \
        break; \
    }
static bool egi_cpu_scatter_add(eg_backend *b, const egi_args *args) {
    const egi_gather_parameters *p = (const egi_gather_parameters *)args->parameters;
    const eg_tensor *indices = args->in[1];
    int64_t *index = egi_cpu_indices(p->name, indices, p->rows);
    (void)b;
    if (!index) return false;
    memset(args->out[0]->data, 0, (size_t)(args->out[0]->size * egi_dtypes[args->out[0]->dtype].size));
    switch (args->out[0]->dtype) {
        case EG_FLOAT32: EGI_SCATTER(float, float)
        case EG_FLOAT64: EGI_SCATTER(double, double)
        case EG_INT32: EGI_SCATTER(int32_t, uint32_t)
        case EG_INT64: EGI_SCATTER(int64_t, uint64_t)
        default: EGI_SCATTER(uint8_t, unsigned)
    }
    egi_free(index);
    return true;
}
static bool egi_cpu_random(eg_backend *b, const egi_args *args) {
    const egi_random_parameters *p = (const egi_random_parameters *)args->parameters;
    eg_tensor *y = args->out[0];
    int64_t n = y->size;
    void *to = y->data;
    bool f = y->dtype == EG_FLOAT32;
    egi_random r = { p->seed, p->counter };
    (void)b;
    if (p->kind == EGI_NORMAL || p->kind == EGI_TRUNCATED_NORMAL) {
        double cut = p->kind == EGI_NORMAL ? HUGE_VAL : 2;
        if (f) egi_random_normal_f32((float *)to, 0, n, r, p->a, p->b, cut);
        else egi_random_normal_f64((double *)to, 0, n, r, p->a, p->b, cut);
    } else if (p->kind == EGI_UNIFORM) {
        if (f) egi_random_uniform_f32((float *)to, 0, n, r, p->a, p->b);
        else egi_random_uniform_f64((double *)to, 0, n, r, p->a, p->b);
    } else if (p->kind == EGI_BERNOULLI) egi_random_bernoulli((unsigned char *)to, 0, n, r, p->a);
    else if (p->kind == EGI_PERMUTATION) egi_random_permutation((int64_t *)to, n, r);
    else if (y->dtype == EG_INT64) egi_random_int64((int64_t *)to, 0, n, r, p->low, p->high);
    else {
        int64_t block[EGI_BLOCK];
        int size = egi_dtypes[y->dtype].size;
        for (int64_t start = 0; start < n; start += EGI_BLOCK) {
            int64_t count = egi_min64(n - start, EGI_BLOCK);
            egi_random_int64(block, start, count, r, p->low, p->high);
            egi_convert(EG_INT64, block, y->dtype, (char *)to + start * size, count);
        }
    }
    return true;
}
static bool egi_cpu_nonfinite(eg_backend *b, const egi_args *args) {
    const eg_tensor *x = args->in[0];
    int64_t count = 0;
    (void)b;
    if (x->dtype == EG_FLOAT32) {
        const float *p = (const float *)(const void *)x->data;
        for (int64_t i = 0; i < x->size; i++) count += !(p[i] - p[i] == 0);
    } else if (x->dtype == EG_FLOAT64) {
        const double *p = (const double *)(const void *)x->data;
        for (int64_t i = 0; i < x->size; i++) count += !(p[i] - p[i] == 0);
    }
    *(int64_t *)(uintptr_t)args->parameters = count;
    return true;
}
static void *egi_cpu_allocate(eg_backend *b, int64_t bytes) { (void)b; return egi_alloc((size_t)bytes); }
static void egi_cpu_deallocate(eg_backend *b, void *data, int64_t bytes) { (void)b; (void)bytes; egi_free(data); }
static bool egi_cpu_transfer(eg_backend *b, void *to, const void *from, int64_t bytes) {
    (void)b;
    if (bytes) memcpy(to, from, (size_t)bytes);
    return true;
}
static bool egi_cpu_update(eg_backend *b, const egi_args *args);
static eg_backend egi_cpu = {
    (uint32_t)sizeof(eg_backend), (uint32_t)sizeof(eg_tensor), EGI_KERNELS, 1, "cpu:0", true, NULL,
    egi_cpu_allocate, egi_cpu_deallocate, egi_cpu_transfer, egi_cpu_transfer,
    { egi_cpu_elementwise, egi_cpu_copy, egi_cpu_fill, egi_cpu_reduce, egi_cpu_cumsum, egi_cpu_argsort, egi_cpu_softmax, egi_cpu_sparse_xent,     // ORDER egi_kernel
      egi_cpu_matmul, egi_cpu_conv, egi_cpu_pool, egi_cpu_gather, egi_cpu_scatter_add, egi_cpu_random, egi_cpu_update, egi_cpu_nonfinite },
    NULL, NULL
};
EAGER_API eg_backend *egi_backend_cpu(void) { return &egi_cpu; }
EAGER_API const egi_op *egi_elementwise_rows(void) { return egi_elementwise_ops; }

//# 24  THE OTHER ROWS ---------------------------------------------------------
// Idea: a row that is no formula brings its own shape rule, kernel call and
// gradient, side by side. Many functions are composed of others and need no row
// at all. Read first: 20, 21.  Proof: tests/ops.c, tests/fixtures.c

// ROW(name, inputs, flags, attributes, saves for dx[0], for dx[1]): its functions are egi_shape_<name>, egi_run_<name>, egi_grad_<name>.
#define EGI_ROW_(name, n, flags, attributes, s0, s1, grad) \
    static const egi_op egi_op_##name = { #name, n, 1, flags, attributes, egi_shape_##name, egi_run_##name, grad, { s0, s1, 0 }, 0, { 0 }, { 0, 0, 0 }, NULL, NULL, { 0 } };
#define EGI_OP(name, n, flags, attributes, s0, s1) EGI_ROW_(name, n, flags, attributes, s0, s1, egi_grad_##name)
#define EGI_OP_ND(name, n, flags, attributes) EGI_ROW_(name, n, (flags) | EGI_NOT_DIFFERENTIABLE, attributes, 0, 0, NULL)
#define EGI_GRAD(name) static bool egi_grad_##name(const eg_grad_context *c, const egi_op *op, eg_tensor **dx)
// `return egi_set_dx(c, i, dx, value)` in a gradient: false where it failed.
static bool egi_set_dx(const eg_grad_context *c, int i, eg_tensor **dx, eg_tensor *value) {
    (void)c;
    dx[i] = value;
    return value != NULL;
}

static void egi_same_out(egi_call *c, const eg_tensor *x) {
    c->dtype[0] = (eg_dtype)x->dtype;
    c->shape[0] = egi_shape(x);
}
static bool egi_needs_float(const char *name, const eg_tensor *x) {
    if (x->dtype == EG_FLOAT32 || x->dtype == EG_FLOAT64) return true;
    return egi_fail(EG_ERROR_DTYPE, "eg_%s: needs float32 or float64, not %s; eg_cast it", name, egi_describe(x));
}
static bool egi_needs_number(const char *name, const eg_tensor *x) {
    if (x->dtype <= EG_UINT8) return true;
    return egi_fail(EG_ERROR_DTYPE, "eg_%s: needs numbers to compute with, not %s; eg_cast it", name, egi_describe(x));
}
static bool egi_needs_index(const char *name, const eg_tensor *x) {
    if (x->dtype == EG_INT32 || x->dtype == EG_INT64) return true;
    return egi_fail(EG_ERROR_DTYPE, "eg_%s: indices must be int32 or int64, not %s", name, egi_describe(x));
}
static bool egi_same_dtype(const char *name, const eg_tensor *a, const eg_tensor *b) {
    if (a->dtype == b->dtype) return true;
    return egi_fail(EG_ERROR_DTYPE, "eg_%s: dtypes differ: %s and %s; eg_cast one of them", name, egi_describe(a), egi_describe(b));
}
static eg_reduce_options egi_over_axis(int axis, bool keepdims) {
    eg_reduce_options o;
    memset(&o, 0, sizeof o);
    o.axes.count = 1;
    o.axes.axes[0] = axis;
    o.keepdims = keepdims;
    return o;
}

// ---- views: identity, stop_gradient, reshape, transpose, broadcast_to, slice, reverse

static bool egi_shape_identity(egi_call *c) { egi_same_out(c, c->in[0]); return true; }
static bool egi_run_identity(egi_call *c) { return (c->out[0] = egi_alias(c->op->name, c->in[0])) != NULL; }
EGI_GRAD(identity) { (void)op; return egi_set_dx(c, 0, dx, c->upstream[0]); }
EGI_OP(identity, 1, EGI_VIEW, 0, 0, 0)
EAGER_API eg_tensor *eg_identity(eg_tensor *x) { return egi_apply1(&egi_op_identity, &x, 1, NULL); }
#define egi_shape_stop_gradient egi_shape_identity
#define egi_run_stop_gradient egi_run_identity
EGI_OP_ND(stop_gradient, 1, EGI_VIEW, 0)
EAGER_API eg_tensor *eg_stop_gradient(eg_tensor *x) { return egi_apply1(&egi_op_stop_gradient, &x, 1, NULL); }
// A variable's value as a tensor: an identity, for the tape too.
EAGER_API eg_tensor *eg_read(eg_tensor *variable) { return eg_identity(variable); }

typedef struct egi_reshape_attr { eg_shape from, to; } egi_reshape_attr;
static bool egi_shape_reshape(egi_call *c) {
    egi_same_out(c, c->in[0]);
    c->shape[0] = ((const egi_reshape_attr *)c->attr)->to;
    return true;
}
// Dimensions of 1 come and go without moving anything: x's strides for the new shape; false where more than that differs.
static bool egi_only_ones_differ(const eg_tensor *x, const eg_shape *to, int64_t *strides) {
    int i = 0;
    for (int j = 0; j < to->rank; j++) {
        strides[j] = 0;
        if (to->dims[j] == 1) continue;
        while (i < x->rank && x->dims[i] == 1) i++;
        if (i == x->rank || x->dims[i] != to->dims[j]) return false;
        strides[j] = x->strides[i++];
    }
    while (i < x->rank && x->dims[i] == 1) i++;
    return i == x->rank;
}
static bool egi_run_reshape(egi_call *c) {
    int64_t strides[EG_MAX_RANK];
    if (!(c->in[0]->flags & EGI_CONTIGUOUS) && egi_only_ones_differ(c->in[0], &c->shape[0], strides)) {
        eg_tensor *y = c->out[0] = egi_alias(c->op->name, c->in[0]);
        if (!y) return false;
        y->rank = (int8_t)c->shape[0].rank;
        for (int i = 0; i < y->rank; i++) { y->dims[i] = c->shape[0].dims[i]; y->strides[i] = strides[i]; }
        egi_find_contiguous(y);
        return true;
    }
    eg_tensor *x = egi_contiguous(c->in[0]);
    if (!x) return false;
    c->out[0] = egi_alias(c->op->name, x);
    egi_object_release(&x->object);
    if (c->out[0]) egi_set_shape_checked(c->out[0], &c->shape[0]);
    return c->out[0] != NULL;
}
EGI_GRAD(reshape) { (void)op; return egi_set_dx(c, 0, dx, eg_reshape(c->upstream[0], ((const egi_reshape_attr *)c->attributes)->from)); }
EGI_OP(reshape, 1, EGI_VIEW, sizeof(egi_reshape_attr), 0, 0)
EAGER_API eg_tensor *eg_reshape(eg_tensor *x, eg_shape shape) {
    if (!egi_alive("reshape", 0, x)) return NULL;
    egi_reshape_attr attr;
    attr.from = egi_shape(x);
    int64_t known = 1;
    int free_axis = -1;
    bool fits = shape.rank >= 0 && shape.rank <= EG_MAX_RANK;
    for (int i = 0; fits && i < shape.rank; i++) {
        if (shape.dims[i] == -1 && free_axis < 0) free_axis = i;
        else if (shape.dims[i] < 0 || (shape.dims[i] && !egi_checked_product(known, shape.dims[i], &known))) fits = false;
    }
    for (int i = 0; fits && i < shape.rank; i++) if (shape.dims[i] == 0) known = 0;
    attr.to = shape;
    if (fits && free_axis >= 0) {
        if (known == 0 || x->size % known) fits = false;
        else attr.to.dims[free_axis] = x->size / known;
    } else if (known != x->size) fits = false;
    if (fits && x->size == 0 && !egi_shape_valid("reshape", attr.to, (eg_dtype)x->dtype)) return NULL;
    if (!fits)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_reshape: %s has %lld elements, which do not fill shape %s", egi_describe(x),
                                     (long long)x->size, egi_show(shape));
    return egi_apply1(&egi_op_reshape, &x, 1, &attr);
}
EAGER_API eg_tensor *eg_expand_dims(eg_tensor *x, int axis) {
    if (!egi_alive("expand_dims", 0, x)) return NULL;
    eg_shape shape = egi_shape(x);
    if (x->rank == EG_MAX_RANK)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_expand_dims: %s has the most axes a tensor can have", egi_describe(x));
    if (!egi_axis("expand_dims", axis, x->rank + 1, &axis)) return NULL;
    for (int i = x->rank; i > axis; i--) shape.dims[i] = shape.dims[i - 1];
    shape.dims[axis] = 1;
    shape.rank++;
    return eg_reshape(x, shape);
}
// An option: zero is the default, EG_ZERO is zero.
static double egi_or(double value, double fallback) { return value == 0 ? fallback : value == EG_ZERO ? 0 : value; }
static bool egi_axes_mask(const char *name, const eg_axes *axes, int rank, unsigned *mask) {
    *mask = 0;
    if (axes->mark != 0 && axes->mark != EGI_AXES_MARK)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: axes are written EG_AXES(%d), not as a bare number", name, axes->mark);
    if (axes->count < 0 || axes->count > EG_MAX_RANK) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: %d axes", name, axes->count);
    for (int i = 0; i < axes->count; i++) {
        int axis = 0;
        if (!egi_axis(name, axes->axes[i], rank, &axis)) return false;
        if (*mask >> axis & 1) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: axis %d is given twice", name, axis);
        *mask |= 1u << axis;
    }
    return true;
}
EAGER_API eg_tensor *(eg_squeeze)(eg_tensor *x, eg_squeeze_options options) {
    unsigned mask;
    if (!egi_alive("squeeze", 0, x) || !egi_axes_mask("squeeze", &options.axes, x->rank, &mask)) return NULL;
    eg_shape shape = { 0, { 0 } };
    for (int i = 0; i < x->rank; i++) {
        if (mask >> i & 1 && x->dims[i] != 1) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_squeeze: axis %d of %s is not 1", i, egi_describe(x));
        if (mask ? mask >> i & 1 : x->dims[i] == 1) continue;
        shape.dims[shape.rank++] = x->dims[i];
    }
    return eg_reshape(x, shape);
}

typedef struct egi_perm { int perm[EG_MAX_RANK]; } egi_perm;
static bool egi_shape_transpose(egi_call *c) {
    const egi_perm *p = (const egi_perm *)c->attr;
    egi_same_out(c, c->in[0]);
    for (int i = 0; i < c->in[0]->rank; i++) c->shape[0].dims[i] = c->in[0]->dims[p->perm[i]];
    return true;
}
static bool egi_run_transpose(egi_call *c) {
    const egi_perm *p = (const egi_perm *)c->attr;
    const eg_tensor *x = c->in[0];
    eg_tensor *y = c->out[0] = egi_alias(c->op->name, x);
    if (!y) return false;
    for (int i = 0; i < x->rank; i++) { y->dims[i] = x->dims[p->perm[i]]; y->strides[i] = x->strides[p->perm[i]]; }
    egi_find_contiguous(y);
    return true;
}
static eg_tensor *egi_transpose(eg_tensor *x, const egi_perm *p);
EGI_GRAD(transpose) {
    const egi_perm *p = (const egi_perm *)c->attributes;
    egi_perm back;
    (void)op;
    for (int i = 0; i < c->upstream[0]->rank; i++) back.perm[p->perm[i]] = i;
    return egi_set_dx(c, 0, dx, egi_transpose(c->upstream[0], &back));
}
EGI_OP(transpose, 1, EGI_VIEW, sizeof(egi_perm), 0, 0)
static eg_tensor *egi_transpose(eg_tensor *x, const egi_perm *p) { return egi_apply1(&egi_op_transpose, &x, 1, p); }
EAGER_API eg_tensor *(eg_transpose)(eg_tensor *x, eg_transpose_options options) {
    egi_perm p;
    unsigned mask;
    if (!egi_alive("transpose", 0, x)) return NULL;
    if (options.perm.count && options.perm.count != x->rank)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_transpose: %d axes in perm, but %s has %d", options.perm.count, egi_describe(x), x->rank);
    if (!egi_axes_mask("transpose", &options.perm, x->rank, &mask)) return NULL;
    for (int i = 0; i < x->rank; i++)
        p.perm[i] = !options.perm.count ? x->rank - 1 - i : options.perm.axes[i] < 0 ? options.perm.axes[i] + x->rank : options.perm.axes[i];
    return egi_transpose(x, &p);
}
// Moves one axis to the end, or back from it.
static eg_tensor *egi_axis_to_end(eg_tensor *x, int axis, bool back) {
    egi_perm p;
    if (!x || axis == x->rank - 1) return x;
    for (int i = 0, k = 0; i < x->rank; i++) {
        if (!back) p.perm[i] = i == x->rank - 1 ? axis : i + (i >= axis);
        else p.perm[i] = i == axis ? x->rank - 1 : k++;
    }
    return egi_transpose(x, &p);
}

static bool egi_shape_broadcast_to(egi_call *c) { egi_same_out(c, c->in[0]); c->shape[0] = *(const eg_shape *)c->attr; return true; }
static bool egi_run_broadcast_to(egi_call *c) {
    const eg_tensor *x = c->in[0];
    const eg_shape *to = &c->shape[0];
    eg_tensor *y = c->out[0] = egi_alias(c->op->name, x);
    if (!y) return false;
    y->rank = (int8_t)to->rank;
    y->size = 1;
    for (int i = 0; i < to->rank; i++) {
        int k = i - (to->rank - x->rank);
        y->dims[i] = to->dims[i];
        y->strides[i] = k < 0 || (x->dims[k] == 1 && to->dims[i] != 1) ? 0 : x->strides[k];
        y->size *= to->dims[i];
    }
    egi_find_contiguous(y);
    return true;
}
EGI_GRAD(broadcast_to) { (void)op; return egi_set_dx(c, 0, dx, c->upstream[0]); }       // the tape undoes broadcasting
EGI_OP(broadcast_to, 1, EGI_VIEW, sizeof(eg_shape), 0, 0)
EAGER_API eg_tensor *eg_broadcast_to(eg_tensor *x, eg_shape shape) {
    if (!egi_alive("broadcast_to", 0, x) || !egi_shape_valid("broadcast_to", shape, EG_FLOAT64)) return NULL;
    bool fits = x->rank <= shape.rank;
    for (int i = 0; i < x->rank && fits; i++) {
        int64_t from = x->dims[i], to = shape.dims[i + shape.rank - x->rank];
        fits = from == to || from == 1;
    }
    if (!fits) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_broadcast_to: %s does not broadcast to %s", egi_describe(x), egi_show(shape));
    return egi_apply1(&egi_op_broadcast_to, &x, 1, &shape);
}

// Elements begin, begin + step, ... of each axis; its gradient spreads them out again in zeros, which is the row pad.
typedef struct egi_slice_attr { eg_shape from; int64_t begin[EG_MAX_RANK], size[EG_MAX_RANK], step[EG_MAX_RANK]; } egi_slice_attr;
typedef struct egi_pad_attr { int64_t low[EG_MAX_RANK], high[EG_MAX_RANK], step[EG_MAX_RANK]; double value; } egi_pad_attr;
static eg_tensor *egi_slice(eg_tensor *x, const egi_slice_attr *attr);
static eg_tensor *egi_pad(eg_tensor *x, const egi_pad_attr *attr);
static bool egi_shape_slice(egi_call *c) {
    const egi_slice_attr *a = (const egi_slice_attr *)c->attr;
    egi_same_out(c, c->in[0]);
    for (int i = 0; i < c->in[0]->rank; i++) c->shape[0].dims[i] = a->size[i];
    return true;
}
static eg_tensor *egi_slice_view(const char *name, const eg_tensor *x, const egi_slice_attr *a) {
    eg_tensor *y = egi_alias(name, x);
    if (!y) return NULL;
    y->size = 1;
    for (int i = 0; i < x->rank; i++) {
        if (a->size[i] > 0) y->data += a->begin[i] * x->strides[i] * egi_dtypes[x->dtype].size;
        y->dims[i] = a->size[i];
        y->strides[i] = x->strides[i] * a->step[i];
        y->size *= a->size[i];
    }
    if (y->size == 0) y->data = x->data;
    egi_find_contiguous(y);
    return y;
}
static bool egi_run_slice(egi_call *c) { return (c->out[0] = egi_slice_view(c->op->name, c->in[0], (const egi_slice_attr *)c->attr)) != NULL; }
EGI_GRAD(slice) {
    const egi_slice_attr *a = (const egi_slice_attr *)c->attributes;
    egi_pad_attr p;
    (void)op;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < a->from.rank; i++) {
        p.step[i] = a->step[i];
        p.low[i] = a->size[i] ? a->begin[i] : 0;
        p.high[i] = a->size[i] ? a->from.dims[i] - (a->begin[i] + (a->size[i] - 1) * a->step[i] + 1) : a->from.dims[i];
    }
    return egi_set_dx(c, 0, dx, egi_pad(c->upstream[0], &p));
}
EGI_OP(slice, 1, EGI_VIEW, sizeof(egi_slice_attr), 0, 0)
static eg_tensor *egi_slice(eg_tensor *x, const egi_slice_attr *attr) { return egi_apply1(&egi_op_slice, &x, 1, attr); }

static bool egi_shape_pad(egi_call *c) {
    const egi_pad_attr *a = (const egi_pad_attr *)c->attr;
    egi_same_out(c, c->in[0]);
    for (int i = 0; i < c->in[0]->rank; i++) {
        int64_t d = c->in[0]->dims[i], extent = 0;
        bool fits = !d || (egi_checked_product(d - 1, a->step[i], &extent) && !__builtin_add_overflow(extent, 1, &extent));
        fits = fits && !__builtin_add_overflow(extent, a->low[i], &extent) && !__builtin_add_overflow(extent, a->high[i], &extent);
        if (!fits) return egi_fail(EG_ERROR_SHAPE, "eg_pad: axis %d of the result has more elements than 64 bits count", i);
        c->shape[0].dims[i] = extent;
    }
    return true;
}
static bool egi_run_pad(egi_call *c) {
    const egi_pad_attr *a = (const egi_pad_attr *)c->attr;
    egi_slice_attr s;
    memset(&s, 0, sizeof s);
    for (int i = 0; i < c->in[0]->rank; i++) { s.begin[i] = a->low[i]; s.size[i] = c->in[0]->dims[i]; s.step[i] = a->step[i]; }
    if (!egi_fill(c->out[0], a->value)) return false;
    if (c->in[0]->size == 0) return true;
    eg_tensor *inside = egi_slice_view(c->op->name, c->out[0], &s);
    bool ok = inside && egi_copy(c->in[0], inside);
    if (inside) egi_object_release(&inside->object);
    return ok;
}
EGI_GRAD(pad) {
    const egi_pad_attr *a = (const egi_pad_attr *)c->attributes;
    egi_slice_attr s;
    (void)op;
    memset(&s, 0, sizeof s);
    s.from = egi_shape(c->upstream[0]);
    for (int i = 0; i < s.from.rank; i++) {
        int64_t extent = s.from.dims[i] - a->low[i] - a->high[i];
        s.begin[i] = a->low[i];
        s.step[i] = a->step[i];
        s.size[i] = extent > 0 ? (extent - 1) / a->step[i] + 1 : 0;
    }
    return egi_set_dx(c, 0, dx, egi_slice(c->upstream[0], &s));
}
EGI_OP(pad, 1, 0, sizeof(egi_pad_attr), 0, 0)
static eg_tensor *egi_pad(eg_tensor *x, const egi_pad_attr *attr) { return egi_apply1(&egi_op_pad, &x, 1, attr); }

static bool egi_shape_reverse(egi_call *c) { egi_same_out(c, c->in[0]); return true; }
static bool egi_run_reverse(egi_call *c) {
    unsigned mask = *(const unsigned *)c->attr;
    const eg_tensor *x = c->in[0];
    eg_tensor *y = c->out[0] = egi_alias(c->op->name, x);
    if (!y) return false;
    for (int i = 0; i < x->rank && x->size; i++)
        if (mask >> i & 1) {
            y->data += (x->dims[i] - 1) * x->strides[i] * egi_dtypes[x->dtype].size;
            y->strides[i] = -x->strides[i];
        }
    egi_find_contiguous(y);
    return true;
}
static eg_tensor *egi_reverse(eg_tensor *x, unsigned mask);
EGI_GRAD(reverse) { (void)op; return egi_set_dx(c, 0, dx, egi_reverse(c->upstream[0], *(const unsigned *)c->attributes)); }
EGI_OP(reverse, 1, EGI_VIEW, sizeof(unsigned), 0, 0)
static eg_tensor *egi_reverse(eg_tensor *x, unsigned mask) { return egi_apply1(&egi_op_reverse, &x, 1, &mask); }
EAGER_API eg_tensor *eg_reverse(eg_tensor *x, eg_axes axes) {
    unsigned mask;
    return egi_alive("reverse", 0, x) && egi_axes_mask("reverse", &axes, x->rank, &mask) ? egi_reverse(x, mask) : NULL;
}

EAGER_API eg_tensor *eg_slice(eg_tensor *x, eg_shape begin, eg_shape size) {
    egi_slice_attr a;
    if (!egi_alive("slice", 0, x)) return NULL;
    if (begin.rank != x->rank || size.rank != x->rank)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_slice: begin %s and size %s must have an entry for each axis of %s", egi_show(begin),
                                     egi_show(size), egi_describe(x));
    memset(&a, 0, sizeof a);
    a.from = egi_shape(x);
    for (int i = 0; i < x->rank; i++) {
        a.begin[i] = begin.dims[i];
        a.step[i] = 1;
        bool inside = a.begin[i] >= 0 && a.begin[i] <= x->dims[i];
        a.size[i] = size.dims[i] == -1 && inside ? x->dims[i] - a.begin[i] : size.dims[i];
        if (!inside || a.size[i] < 0 || a.size[i] > x->dims[i] - a.begin[i])
            return (eg_tensor *)eg_raise(EG_ERROR_INDEX, "eg_slice: %lld elements from %lld on do not lie inside axis %d of %s",
                                         (long long)size.dims[i], (long long)begin.dims[i], i, egi_describe(x));
    }
    return egi_slice(x, &a);
}
EAGER_API eg_tensor *eg_strided_slice(eg_tensor *x, eg_shape begin, eg_shape end, eg_shape step) {
    egi_slice_attr a;
    unsigned reversed = 0;
    if (!egi_alive("strided_slice", 0, x)) return NULL;
    if (begin.rank < 0 || begin.rank > x->rank || begin.rank != end.rank || begin.rank != step.rank)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_strided_slice: begin %s, end %s and step %s must have one length, at most the rank of %s",
                                     egi_show(begin), egi_show(end), egi_show(step), egi_describe(x));
    memset(&a, 0, sizeof a);
    a.from = egi_shape(x);
    for (int i = 0; i < x->rank; i++) {
        int64_t d = x->dims[i], s = i < step.rank ? step.dims[i] : 1, b = 0, e = d;
        if (s == 0 || s == INT64_MIN)
            return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_strided_slice: the step of axis %d is %lld", i, (long long)s);
        if (i < begin.rank) {
            int64_t low = s < 0 ? -1 : 0, high = s < 0 ? d - 1 : d;          // NumPy's clamping
            b = begin.dims[i] == EG_END
                    ? (s < 0 ? d - 1 : d)
                    : egi_saturate(begin.dims[i] < 0 ? (begin.dims[i] < -d ? -1 - d + d : begin.dims[i] + d) : begin.dims[i], low, high);
            e = end.dims[i] == EG_END ? (s < 0 ? -1 : d)
                                      : egi_saturate(end.dims[i] < 0 ? (end.dims[i] < -d ? -1 : end.dims[i] + d) : end.dims[i], low, high);
        }
        a.size[i] = s > 0 ? (e > b ? (e - b - 1) / s + 1 : 0) : (b > e ? (b - e - 1) / -s + 1 : 0);
        if (s < 0) {                                                         // the same elements forward, then reversed
            reversed |= 1u << i;
            a.begin[i] = a.size[i] ? b + (a.size[i] - 1) * s : 0;
            a.step[i] = -s;
        } else {
            a.begin[i] = a.size[i] ? b : 0;
            a.step[i] = s;
        }
        if (a.size[i] <= 1) a.step[i] = 1;
    }
    eg_tensor *y = egi_slice(x, &a);
    return y && reversed ? egi_reverse(y, reversed) : y;
}
EAGER_API eg_tensor *eg_index(eg_tensor *x, int64_t i) {
    egi_slice_attr a;
    if (!egi_alive("index", 0, x)) return NULL;
    if (x->rank < 1 || i < -x->dims[0] || i >= x->dims[0])
        return (eg_tensor *)eg_raise(EG_ERROR_INDEX, "eg_index: %lld is out of range for %s", (long long)i, egi_describe(x));
    memset(&a, 0, sizeof a);
    a.from = egi_shape(x);
    eg_shape rest = { x->rank - 1, { 0 } };
    for (int k = 0; k < x->rank; k++) {
        a.size[k] = k ? x->dims[k] : 1;
        a.begin[k] = k ? 0 : i < 0 ? i + x->dims[0] : i;
        a.step[k] = 1;
        if (k) rest.dims[k - 1] = x->dims[k];
    }
    return eg_reshape(egi_slice(x, &a), rest);
}
EAGER_API bool eg_split(eg_tensor *x, int n, int axis, eg_tensor **out) {
    for (int i = 0; i < n && out; i++) out[i] = NULL;
    if (!egi_alive("split", 0, x) || !egi_axis("split", axis, x->rank, &axis)) return false;
    if (n < 1 || !out || x->dims[axis] % n)
        return egi_fail(EG_ERROR_SHAPE, "eg_split: axis %d of %s does not divide into %d equal parts", axis, egi_describe(x), n);
    eg_shape begin = egi_shape(x), size = begin;
    for (int i = 0; i < x->rank; i++) begin.dims[i] = 0;
    size.dims[axis] = x->dims[axis] / n;
    for (int i = 0; i < n; i++, begin.dims[axis] += size.dims[axis])
        if (!(out[i] = eg_slice(x, begin, size))) { while (i >= 0) out[i--] = NULL; return false; }
    return true;
}
EAGER_API bool eg_unstack(eg_tensor *x, int n, int axis, eg_tensor **out) {
    for (int i = 0; i < n && out; i++) out[i] = NULL;
    if (!egi_alive("unstack", 0, x) || !egi_axis("unstack", axis, x->rank, &axis)) return false;
    if (!out || x->dims[axis] != n)
        return egi_fail(EG_ERROR_SHAPE, "eg_unstack: axis %d of %s has %lld slices, not %d", axis, egi_describe(x), (long long)x->dims[axis], n);
    eg_squeeze_options squeeze;
    memset(&squeeze, 0, sizeof squeeze);
    squeeze.axes.count = 1;
    squeeze.axes.axes[0] = axis;
    if (n && !eg_split(x, n, axis, out)) return false;
    for (int i = 0; i < n; i++)
        if (!(out[i] = (eg_squeeze)(out[i], squeeze))) { for (i = 0; i < n; i++) out[i] = NULL; return false; }
    return true;
}
// Rows taken in the order of a rule, along each padded axis.
static int64_t egi_mirror(int64_t i, int64_t n, bool symmetric) {
    if (i >= 0 && i < n) return i;
    if (symmetric) return i < 0 ? -1 - i : 2 * n - 1 - i;
    return i < 0 ? -i : 2 * n - 2 - i;
}
EAGER_API eg_tensor *(eg_pad)(eg_tensor *x, eg_pads pads, eg_pad_options options) {
    egi_pad_attr a;
    const eg_tensor *source = x;
    if (!egi_alive("pad", 0, x)) return NULL;
    if (pads.count != 2 * x->rank)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_pad: %d paddings are given, but %s needs two for each axis", pads.count, egi_describe(x));
    if (options.mode != EG_PAD_CONSTANT && options.mode != EG_PAD_REFLECT && options.mode != EG_PAD_SYMMETRIC)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_pad: there is no mode %d", (int)options.mode);
    memset(&a, 0, sizeof a);
    a.value = egi_or(options.value, 0);
    for (int i = 0; i < x->rank; i++) {
        int64_t most = options.mode == EG_PAD_CONSTANT ? INT64_MAX : options.mode == EG_PAD_REFLECT ? x->dims[i] - 1 : x->dims[i];
        a.low[i] = pads.pads[2 * i];
        a.high[i] = pads.pads[2 * i + 1];
        a.step[i] = 1;
        if (a.low[i] < 0 || a.high[i] < 0 || (a.low[i] && a.low[i] > most) || (a.high[i] && a.high[i] > most))
            return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_pad: paddings %lld and %lld of axis %d do not fit %s in this mode",
                                         (long long)a.low[i], (long long)a.high[i], i, egi_describe(x));
    }
    if (options.mode == EG_PAD_CONSTANT) return egi_value_fits("pad", options.value, (eg_dtype)x->dtype) ? egi_pad(x, &a) : NULL;
    for (int axis = 0; x && axis < x->rank; axis++) {
        if (!a.low[axis] && !a.high[axis]) continue;
        int64_t n = x->dims[axis];
        eg_shape shape = { 1, { n + a.low[axis] + a.high[axis] } };
        if (!egi_shape_valid("pad", shape, EG_INT64)) return NULL;
        int64_t *index = (int64_t *)egi_alloc((size_t)shape.dims[0] * sizeof *index);
        if (!index) { egi_no_memory("pad", shape.dims[0] * 8); return NULL; }
        for (int64_t i = 0; i < shape.dims[0]; i++) index[i] = egi_mirror(i - a.low[axis], n, options.mode == EG_PAD_SYMMETRIC);
        eg_gather_options along;
        memset(&along, 0, sizeof along);
        along.axis = axis;
        x = (eg_gather)(x, eg_to(eg_from_data(EG_INT64, shape, index), eg_device_of(x)), along);
        egi_free(index);
    }
    return x == source ? eg_identity(x) : x;
}

// ---- cast

typedef struct egi_cast_attr { int from, to; } egi_cast_attr;
static bool egi_shape_cast(egi_call *c) { egi_same_out(c, c->in[0]); c->dtype[0] = (eg_dtype)((const egi_cast_attr *)c->attr)->to; return true; }
static bool egi_run_cast(egi_call *c) { return egi_copy(c->in[0], c->out[0]); }
EGI_GRAD(cast) { (void)op; return egi_set_dx(c, 0, dx, eg_cast(c->upstream[0], (eg_dtype)((const egi_cast_attr *)c->attributes)->from)); }
EGI_OP(cast, 1, 0, sizeof(egi_cast_attr), 0, 0)
EAGER_API eg_tensor *eg_cast(eg_tensor *x, eg_dtype dtype) {
    if (!egi_alive("cast", 0, x)) return NULL;
    if (!egi_dtype_valid(dtype)) return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_cast: %d is no dtype", (int)dtype);
    if (x->flags & EGI_NUMBER) return egi_number_tensor("cast", x, dtype, egi_backend_here());
    if (x->dtype == (int)dtype && !(x->flags & EGI_VARIABLE)) return egi_again(x);
    egi_cast_attr attr = { x->dtype, (int)dtype };
    return egi_apply1(&egi_op_cast, &x, 1, &attr);
}

// ---- concat, stack, tile, repeat

static bool egi_shape_concat(egi_call *c) {
    int axis = (int)*(const int64_t *)c->attr;
    egi_same_out(c, c->in[0]);
    for (int i = 1; i < c->n; i++) {
        bool fits = c->in[i]->rank == c->in[0]->rank;
        if (!egi_same_dtype("concat", c->in[0], c->in[i])) return false;
        for (int d = 0; fits && d < c->in[0]->rank; d++) fits = d == axis || c->in[i]->dims[d] == c->in[0]->dims[d];
        if (!fits)
            return egi_fail(EG_ERROR_SHAPE, "eg_concat: %s and %s must agree but for axis %d", egi_describe(c->in[0]), egi_describe(c->in[i]), axis);
        if (__builtin_add_overflow(c->shape[0].dims[axis], c->in[i]->dims[axis], &c->shape[0].dims[axis]))
            return egi_fail(EG_ERROR_SHAPE, "eg_concat: too many elements");
    }
    return true;
}
static bool egi_run_concat(egi_call *c) {
    int axis = (int)*(const int64_t *)c->attr;
    egi_slice_attr s;
    memset(&s, 0, sizeof s);
    for (int d = 0; d < c->in[0]->rank; d++) { s.size[d] = c->in[0]->dims[d]; s.step[d] = 1; }
    bool ok = true;
    for (int i = 0; i < c->n && ok; i++) {
        s.size[axis] = c->in[i]->dims[axis];
        if (c->in[i]->size) {
            eg_tensor *part = egi_slice_view("concat", c->out[0], &s);
            ok = part && egi_copy(c->in[i], part);
            if (part) egi_object_release(&part->object);
        }
        s.begin[axis] += s.size[axis];
    }
    return ok;
}
EGI_GRAD(concat) {
    const int64_t *a = (const int64_t *)c->attributes;      // the axis, then each input's length along it
    egi_slice_attr s;
    (void)op;
    memset(&s, 0, sizeof s);
    s.from = egi_shape(c->upstream[0]);
    for (int d = 0; d < s.from.rank; d++) { s.size[d] = s.from.dims[d]; s.step[d] = 1; }
    for (int i = 0; i < c->n_inputs; i++) {
        s.size[a[0]] = a[1 + i];
        if (c->needed[i] && !egi_set_dx(c, i, dx, egi_slice(c->upstream[0], &s))) return false;
        s.begin[a[0]] += a[1 + i];
    }
    return true;
}
EGI_OP(concat, -1, EGI_ATTR_PER_INPUT, sizeof(int64_t), 0, 0)
EAGER_API eg_tensor *eg_concat(eg_tensor *const *x, int n, int axis) {
    int64_t few[17], *attr = few;
    if (n < 1 || !x) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_concat: needs at least one tensor");
    for (int i = 0; i < n; i++) if (!egi_alive("concat", i, x[i])) return NULL;
    if (x[0]->rank == 0) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_concat: %s has no axis to join along; use eg_stack", egi_describe(x[0]));
    if (!egi_axis("concat", axis, x[0]->rank, &axis)) return NULL;
    if (n > 16 && !(attr = (int64_t *)egi_alloc((size_t)(n + 1) * sizeof *attr))) { egi_no_memory("concat", 0); return NULL; }
    attr[0] = axis;
    for (int i = 0; i < n; i++) attr[1 + i] = axis < x[i]->rank ? x[i]->dims[axis] : 0;
    eg_tensor *y = egi_apply1(&egi_op_concat, x, n, attr);
    if (attr != few) egi_free(attr);
    return y;
}
static eg_tensor *egi_compose_stack(eg_tensor *const *x, int n, int axis) {
    if (n < 1 || !x) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_stack: needs at least one tensor");
    for (int i = 0; i < n; i++) {
        if (!egi_alive("stack", i, x[i])) return NULL;
        if (!egi_same_shape(x[0], x[i]))
            return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_stack: shapes differ: %s and %s", egi_describe(x[0]), egi_describe(x[i]));
    }
    if (!egi_axis("stack", axis, x[0]->rank + 1, &axis)) return NULL;
    eg_tensor **list = (eg_tensor **)egi_alloc((size_t)n * sizeof *list);
    if (!list) { egi_no_memory("stack", 0); return NULL; }
    bool ok = true;
    for (int i = 0; i < n && ok; i++) ok = (list[i] = eg_expand_dims(x[i], axis)) != NULL;
    eg_tensor *y = ok ? eg_concat(list, n, axis) : NULL;
    egi_free(list);
    return y;
}
EAGER_API eg_tensor *eg_stack(eg_tensor *const *x, int n, int axis) { EGI_AS("stack", egi_compose_stack(x, n, axis)); }
// x as rows, each of them several times over, in its new shape: three axes do, whatever the rank of x.
static eg_tensor *egi_rows_repeated(eg_tensor *x, int64_t rows, int64_t times, eg_shape shape) {
    int64_t length = rows ? x->size / rows : 0;
    eg_shape once = { 3, { rows, 1, length } }, often = { 3, { rows, times, length } };
    return eg_reshape(eg_broadcast_to(eg_reshape(x, once), often), shape);
}
static eg_tensor *egi_compose_repeat(eg_tensor *x, int64_t repeats, int axis) {
    if (!egi_alive("repeat", 0, x) || !egi_axis("repeat", axis, x->rank, &axis)) return NULL;
    eg_shape shape = egi_shape(x);
    int64_t rows = 1;
    for (int i = 0; i <= axis; i++) rows *= x->dims[i];
    if (repeats < 0 || !egi_checked_product(shape.dims[axis], repeats, &shape.dims[axis]))
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_repeat: %lld repeats", (long long)repeats);
    return egi_rows_repeated(x, rows, repeats, shape);
}
EAGER_API eg_tensor *eg_repeat(eg_tensor *x, int64_t repeats, int axis) { EGI_AS("repeat", egi_compose_repeat(x, repeats, axis)); }
static eg_tensor *egi_compose_tile(eg_tensor *x, eg_shape multiples) {
    const eg_tensor *source = x;
    if (!egi_alive("tile", 0, x)) return NULL;
    if (multiples.rank != x->rank)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_tile: multiples %s must have an entry for each axis of %s", egi_show(multiples),
                                     egi_describe(x));
    eg_shape whole = egi_shape(x);
    for (int axis = 0; axis < whole.rank; axis++)
        if (multiples.dims[axis] < 0 || !egi_checked_product(whole.dims[axis], multiples.dims[axis], &whole.dims[axis]))
            return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_tile: %lld times axis %d", (long long)multiples.dims[axis], axis);
    if (!egi_shape_valid("tile", whole, (eg_dtype)x->dtype)) return NULL;
    int64_t rows = 1;                                              // what stands before the axis
    for (int axis = 0; axis < multiples.rank && x; axis++) {
        eg_shape shape = egi_shape(x);
        shape.dims[axis] = whole.dims[axis];
        if (multiples.dims[axis] != 1) x = egi_rows_repeated(x, rows, multiples.dims[axis], shape);
        rows *= whole.dims[axis];
    }
    return x == source ? eg_identity(x) : x;
}
EAGER_API eg_tensor *eg_tile(eg_tensor *x, eg_shape multiples) { EGI_AS("tile", egi_compose_tile(x, multiples)); }

// ---- reductions

typedef struct egi_reduce_attr { egi_reduction kind; unsigned mask; bool keepdims; eg_shape from; } egi_reduce_attr;
static eg_shape egi_reduced_shape(const egi_reduce_attr *a, bool keepdims) {
    eg_shape s = { 0, { 0 } };
    for (int i = 0; i < a->from.rank; i++) {
        if (!(a->mask >> i & 1)) s.dims[s.rank++] = a->from.dims[i];
        else if (keepdims) s.dims[s.rank++] = 1;
    }
    return s;
}
static bool egi_shape_reduce(egi_call *c) {
    const egi_reduce_attr *a = (const egi_reduce_attr *)c->attr;
    c->dtype[0] = a->kind == EGI_ARGMAX || a->kind == EGI_ARGMIN ? EG_INT64 : (eg_dtype)c->in[0]->dtype;
    c->shape[0] = egi_reduced_shape(a, a->keepdims);
    if (a->kind == EGI_ALL || a->kind == EGI_ANY)
        return c->in[0]->dtype == EG_BOOL ||
               egi_fail(EG_ERROR_DTYPE, "eg_%s: needs bool, as comparisons make, not %s", c->op->name, egi_describe(c->in[0]));
    return a->kind == EGI_NORM2 ? egi_needs_float(c->op->name, c->in[0]) : egi_needs_number(c->op->name, c->in[0]);
}
// Kernels see (outer, n, inner): axes that lie together are reduced where they are, others are first copied to the end.
static bool egi_run_reduce(egi_call *c) {
    const egi_reduce_attr *a = (const egi_reduce_attr *)c->attr;
    const eg_tensor *x = c->in[0];
    egi_reduce_parameters p = { a->kind, 1, 1, 1, false, false };
    int first = -1, last = -1;
    bool together = true;
    for (int i = 0; i < x->rank; i++) if (a->mask >> i & 1 && x->dims[i] != 1) { if (first < 0) first = i; last = i; }
    for (int i = first; i >= 0 && i <= last; i++) if (!(a->mask >> i & 1) && x->dims[i] != 1) together = false;
    eg_tensor *packed;
    if (together) {
        for (int i = 0; i < x->rank; i++) {
            if (first >= 0 && i >= first && i <= last) p.n *= x->dims[i];
            else if (first >= 0 && i > last) p.inner *= x->dims[i];
            else p.outer *= x->dims[i];
        }
        packed = egi_contiguous(x);
    } else {
        eg_tensor *view = egi_alias(c->op->name, x);
        if (!view) return false;
        int k = 0;
        for (int reduced = 0; reduced < 2; reduced++)
            for (int i = 0; i < x->rank; i++)
                if ((int)(a->mask >> i & 1) == reduced) {
                    view->dims[k] = x->dims[i];
                    view->strides[k++] = x->strides[i];
                    if (reduced) p.n *= x->dims[i];
                    else p.outer *= x->dims[i];
                }
        egi_find_contiguous(view);
        packed = egi_contiguous(view);
        egi_object_release(&view->object);
    }
    if (!packed) return false;
    bool ok = true;
    if (c->out[0]->size == 0) ok = true;
    else if (p.n == 0) {                  // nothing to reduce
        bool f = egi_is_float(x->dtype);
        if (a->kind == EGI_ARGMAX || a->kind == EGI_ARGMIN)
            ok = egi_fail(EG_ERROR_SHAPE, "eg_%s: %s has no elements along that axis", c->op->name, egi_describe(x));
        else if (a->kind == EGI_MAX_) ok = egi_fill(c->out[0], f ? -HUGE_VAL : -1e300);
        else if (a->kind == EGI_MIN_) ok = egi_fill(c->out[0], f ? HUGE_VAL : 1e300);
        else ok = egi_fill(c->out[0], a->kind == EGI_MEAN && f ? (double)NAN : a->kind == EGI_ALL ? 1 : 0);
    } else {
        egi_args args;
        memset(&args, 0, sizeof args);
        args.op = c->op;
        args.in[0] = packed;
        args.out[0] = c->out[0];
        args.parameters = &p;
        ok = egi_launch(c->backend, EGI_REDUCE, &args);
    }
    egi_object_release(&packed->object);
    return ok;
}
// g back with the reduced axes as 1, ready to broadcast.
static eg_tensor *egi_unreduced(eg_tensor *g, const egi_reduce_attr *a) { return eg_reshape(g, egi_reduced_shape(a, true)); }
EGI_GRAD(reduce_sum) {
    const egi_reduce_attr *a = (const egi_reduce_attr *)c->attributes;
    (void)op;
    return egi_set_dx(c, 0, dx, eg_broadcast_to(egi_unreduced(c->upstream[0], a), a->from));
}
EGI_GRAD(reduce_mean) {
    const egi_reduce_attr *a = (const egi_reduce_attr *)c->attributes;
    double n = 1;
    (void)op;
    for (int i = 0; i < a->from.rank; i++) if (a->mask >> i & 1) n *= (double)a->from.dims[i];
    return egi_set_dx(c, 0, dx, eg_broadcast_to(egi_unreduced((eg_div)(c->upstream[0], eg_number(n)), a), a->from));
}
EGI_GRAD(reduce_max) {                    // ties share: g mask / count
    const egi_reduce_attr *a = (const egi_reduce_attr *)c->attributes;
    (void)op;
    eg_tensor *mask = (eg_equal)(c->inputs[0], egi_unreduced(c->outputs[0], a));
    eg_reduce_options o;
    memset(&o, 0, sizeof o);
    o.keepdims = true;
    for (int i = 0; i < a->from.rank; i++) if (a->mask >> i & 1) o.axes.axes[o.axes.count++] = i;
    eg_tensor *count = o.axes.count ? (eg_reduce_sum)(eg_cast(mask, eg_dtype_of(c->upstream[0])), o) : eg_number(1);
    return egi_set_dx(c, 0, dx, (eg_where)(mask, (eg_divide_no_nan)(egi_unreduced(c->upstream[0], a), count), eg_number(0)));
}
EGI_GRAD(norm) {                          // x / |x|, and 0 where |x| is
    const egi_reduce_attr *a = (const egi_reduce_attr *)c->attributes;
    (void)op;
    return egi_set_dx(c, 0, dx, (eg_mul)(c->inputs[0], (eg_divide_no_nan)(egi_unreduced(c->upstream[0], a), egi_unreduced(c->outputs[0], a))));
}
#define egi_grad_reduce_min egi_grad_reduce_max
#define EGI_REDUCTION(name, kind, save) \
    EGI_REDUCTION_(name, kind, save, egi_grad_##name, 0)
#define EGI_REDUCTION_(name, kind, save, grad, flags) \
    static const egi_op egi_op_##name = { #name, 1, 1, flags, sizeof(egi_reduce_attr), egi_shape_reduce, egi_run_reduce, grad, { save, 0, 0 }, 0, { 0 }, { 0, 0, 0 }, NULL, NULL, { 0 } };
EGI_REDUCTION(reduce_sum, EGI_SUM, 0)
EGI_REDUCTION(reduce_mean, EGI_MEAN, 0)
EGI_REDUCTION(reduce_max, EGI_MAX_, EGI_USES_A | EGI_USES_Y)
EGI_REDUCTION(reduce_min, EGI_MIN_, EGI_USES_A | EGI_USES_Y)
EGI_REDUCTION(norm, EGI_NORM2, EGI_USES_A | EGI_USES_Y)
EGI_REDUCTION_(reduce_all, EGI_ALL, 0, NULL, EGI_NOT_DIFFERENTIABLE)
EGI_REDUCTION_(reduce_any, EGI_ANY, 0, NULL, EGI_NOT_DIFFERENTIABLE)
EGI_REDUCTION_(argmax, EGI_ARGMAX, 0, NULL, EGI_NOT_DIFFERENTIABLE)
EGI_REDUCTION_(argmin, EGI_ARGMIN, 0, NULL, EGI_NOT_DIFFERENTIABLE)
static eg_tensor *egi_reduce(const egi_op *op, egi_reduction kind, eg_tensor *x, const eg_axes *axes, bool keepdims) {
    egi_reduce_attr attr;
    if (!egi_alive(op->name, 0, x) || !egi_axes_mask(op->name, axes, x->rank, &attr.mask)) return NULL;
    if (!axes->count) attr.mask = (1u << x->rank) - 1;
    attr.kind = kind;
    attr.keepdims = keepdims;
    attr.from = egi_shape(x);
    return egi_apply1(op, &x, 1, &attr);
}
EAGER_API eg_tensor *(eg_reduce_sum)(eg_tensor *x, eg_reduce_options o) { return egi_reduce(&egi_op_reduce_sum, EGI_SUM, x, &o.axes, o.keepdims); }
EAGER_API eg_tensor *(eg_reduce_mean)(eg_tensor *x, eg_reduce_options o) { return egi_reduce(&egi_op_reduce_mean, EGI_MEAN, x, &o.axes, o.keepdims); }
EAGER_API eg_tensor *(eg_reduce_max)(eg_tensor *x, eg_reduce_options o) { return egi_reduce(&egi_op_reduce_max, EGI_MAX_, x, &o.axes, o.keepdims); }
EAGER_API eg_tensor *(eg_reduce_min)(eg_tensor *x, eg_reduce_options o) { return egi_reduce(&egi_op_reduce_min, EGI_MIN_, x, &o.axes, o.keepdims); }
EAGER_API eg_tensor *(eg_reduce_all)(eg_tensor *x, eg_reduce_options o) { return egi_reduce(&egi_op_reduce_all, EGI_ALL, x, &o.axes, o.keepdims); }
EAGER_API eg_tensor *(eg_reduce_any)(eg_tensor *x, eg_reduce_options o) { return egi_reduce(&egi_op_reduce_any, EGI_ANY, x, &o.axes, o.keepdims); }
static eg_tensor *egi_arg(const egi_op *op, egi_reduction kind, eg_tensor *x, eg_arg_options o) {
    eg_axes axes = { 0, 1, { o.axis == EG_ZERO ? 0 : o.axis } };
    if (x && x->object.kind == EGI_TENSOR && x->rank == 0)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: %s has no axis", op->name, egi_describe(x));
    return egi_reduce(op, kind, x, &axes, o.keepdims);
}
EAGER_API eg_tensor *(eg_argmax)(eg_tensor *x, eg_arg_options o) { return egi_arg(&egi_op_argmax, EGI_ARGMAX, x, o); }
EAGER_API eg_tensor *(eg_argmin)(eg_tensor *x, eg_arg_options o) { return egi_arg(&egi_op_argmin, EGI_ARGMIN, x, o); }

// Composed: their gradients follow.
static eg_tensor *egi_compose_reduce_variance(eg_tensor *x, eg_reduce_options o) {
    eg_reduce_options keep = o;
    keep.keepdims = true;
    if (!egi_alive("reduce_variance", 0, x) || !egi_needs_float("reduce_variance", x)) return NULL;
    return (eg_reduce_mean)((eg_squared_difference)(x, (eg_reduce_mean)(x, keep)), o);
}
EAGER_API eg_tensor *(eg_reduce_variance)(eg_tensor *x, eg_reduce_options o) { EGI_AS("reduce_variance", egi_compose_reduce_variance(x, o)); }
EAGER_API eg_tensor *(eg_reduce_std)(eg_tensor *x, eg_reduce_options o) { EGI_AS("reduce_std", eg_sqrt((eg_reduce_variance)(x, o))); }
// log(sum(exp(x - m))) + m with the largest element as m, which needs no gradient: it cancels.
static eg_tensor *egi_compose_reduce_logsumexp(eg_tensor *x, eg_reduce_options o) {
    eg_reduce_options keep = o;
    keep.keepdims = true;
    if (!egi_alive("reduce_logsumexp", 0, x) || !egi_needs_float("reduce_logsumexp", x)) return NULL;
    eg_tensor *m = eg_stop_gradient((eg_reduce_max)(x, keep));
    m = (eg_where)(eg_is_finite(m), m, eg_number(0));
    eg_tensor *y = eg_log((eg_reduce_sum)(eg_exp((eg_sub)(x, m)), keep));
    y = (eg_add)(y, m);
    if (o.keepdims || !y) return y;
    egi_reduce_attr a;
    if (!egi_axes_mask("reduce_logsumexp", &o.axes, x->rank, &a.mask)) return NULL;
    if (!o.axes.count) a.mask = (1u << x->rank) - 1;
    a.from = egi_shape(x);
    return eg_reshape(y, egi_reduced_shape(&a, false));
}
EAGER_API eg_tensor *(eg_reduce_logsumexp)(eg_tensor *x, eg_reduce_options o) { EGI_AS("reduce_logsumexp", egi_compose_reduce_logsumexp(x, o)); }
// The two halves of an axis are multiplied until one element is left: exact gradients of every order, at zeros too.
static eg_tensor *egi_prod_axis(eg_tensor *x, int axis) {
    eg_shape begin, size;
    eg_pad_options one;
    memset(&one, 0, sizeof one);
    one.value = 1;
    while (x && x->dims[axis] != 1) {
        int64_t half = (x->dims[axis] + 1) / 2;
        if (x->dims[axis] % 2 || !half) {                      // an empty axis becomes a single 1
            eg_pads pads;
            memset(&pads, 0, sizeof pads);
            pads.count = 2 * x->rank;
            pads.pads[2 * axis + 1] = 1;
            x = (eg_pad)(x, pads, one);
            if (!x || !half) return x;
        }
        begin = size = egi_shape(x);
        for (int i = 0; i < x->rank; i++) begin.dims[i] = 0;
        size.dims[axis] = half;
        eg_tensor *low = eg_slice(x, begin, size);
        begin.dims[axis] = half;
        x = (eg_mul)(low, eg_slice(x, begin, size));
    }
    return x;
}
EAGER_API eg_tensor *(eg_reduce_prod)(eg_tensor *x, eg_reduce_options o) {
    egi_reduce_attr a;
    if (!egi_alive("reduce_prod", 0, x) || !egi_needs_number("reduce_prod", x) || !egi_axes_mask("reduce_prod", &o.axes, x->rank, &a.mask))
        return NULL;
    if (!o.axes.count) a.mask = (1u << x->rank) - 1;
    a.from = egi_shape(x);
    for (int i = 0; i < a.from.rank && x; i++) if (a.mask >> i & 1) x = egi_prod_axis(x, i);
    return x ? eg_reshape(x, egi_reduced_shape(&a, o.keepdims)) : NULL;
}
static eg_tensor *egi_compose_norm(eg_tensor *x, eg_norm_options options) {
    eg_reduce_options o;
    memset(&o, 0, sizeof o);
    o.axes = options.axes;
    o.keepdims = options.keepdims;
    if (options.ord == 0 || options.ord == 2) return egi_reduce(&egi_op_norm, EGI_NORM2, x, &o.axes, o.keepdims);
    if (options.ord == 1) return (eg_reduce_sum)(eg_abs(x), o);
    if (options.ord > DBL_MAX) return (eg_reduce_max)(eg_abs(x), o);
    return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_norm: ord %g; there are 1, 2 and INFINITY", options.ord);
}
EAGER_API eg_tensor *(eg_norm)(eg_tensor *x, eg_norm_options options) { EGI_AS("norm", egi_compose_norm(x, options)); }

// ---- cumsum, argsort, softmax: along one axis

typedef struct egi_axis_attr { int axis; bool exclusive, reverse; egi_reduction kind; } egi_axis_attr;
static egi_reduce_parameters egi_split_at(const eg_tensor *x, int axis) {
    egi_reduce_parameters p = { EGI_SUM, 1, 1, 1, false, false };
    for (int i = 0; i < x->rank; i++) *(i < axis ? &p.outer : i == axis ? &p.n : &p.inner) *= x->dims[i];
    return p;
}
static bool egi_run_along(egi_call *c, egi_kernel kernel) {
    const egi_axis_attr *a = (const egi_axis_attr *)c->attr;
    egi_reduce_parameters p = egi_split_at(c->in[0], a->axis);
    egi_args args;
    if (c->out[0]->size == 0) return true;
    p.kind = a->kind;
    p.exclusive = a->exclusive;
    p.reverse = a->reverse;
    memset(&args, 0, sizeof args);
    eg_tensor *x = egi_contiguous(c->in[0]);
    if (!x) return false;
    args.op = c->op;
    args.in[0] = x;
    args.out[0] = c->out[0];
    args.parameters = &p;
    bool ok = egi_launch(c->backend, kernel, &args);
    egi_object_release(&x->object);
    return ok;
}
static bool egi_shape_cumsum(egi_call *c) { egi_same_out(c, c->in[0]); return egi_needs_number("cumsum", c->in[0]); }
static bool egi_run_cumsum(egi_call *c) { return egi_run_along(c, EGI_CUMSUM); }
EGI_GRAD(cumsum) {
    const egi_axis_attr *a = (const egi_axis_attr *)c->attributes;
    eg_cumsum_options o = { 0, a->axis, a->exclusive, !a->reverse };
    (void)op;
    return egi_set_dx(c, 0, dx, (eg_cumsum)(c->upstream[0], o));
}
EGI_OP(cumsum, 1, 0, sizeof(egi_axis_attr), 0, 0)
EAGER_API eg_tensor *(eg_cumsum)(eg_tensor *x, eg_cumsum_options o) {
    egi_axis_attr a = { 0, o.exclusive, o.reverse, EGI_SUM };
    if (!egi_alive("cumsum", 0, x) || !egi_axis("cumsum", o.axis == EG_ZERO ? 0 : o.axis, x->rank, &a.axis)) return NULL;
    return egi_apply1(&egi_op_cumsum, &x, 1, &a);
}

// The softmax rows work on the last axis; another is brought there.
static bool egi_shape_softmax(egi_call *c) { egi_same_out(c, c->in[0]); return egi_needs_float(c->op->name, c->in[0]); }
static bool egi_run_softmax(egi_call *c) { return egi_run_along(c, EGI_SOFTMAX); }
EGI_GRAD(softmax) {                       // y (g - sum(g y))
    (void)op;
    eg_tensor *y = c->outputs[0], *g = c->upstream[0];
    return egi_set_dx(c, 0, dx, (eg_mul)(y, (eg_sub)(g, (eg_reduce_sum)((eg_mul)(g, y), egi_over_axis(-1, true)))));
}
EGI_OP(softmax, 1, 0, sizeof(egi_axis_attr), EGI_USES_Y, 0)
#define egi_shape_log_softmax egi_shape_softmax
#define egi_run_log_softmax egi_run_softmax
EGI_GRAD(log_softmax) {                   // g - exp(y) sum(g)
    (void)op;
    eg_tensor *y = c->outputs[0], *g = c->upstream[0];
    return egi_set_dx(c, 0, dx, (eg_sub)(g, (eg_mul)(eg_exp(y), (eg_reduce_sum)(g, egi_over_axis(-1, true)))));
}
EGI_OP(log_softmax, 1, 0, sizeof(egi_axis_attr), EGI_USES_Y, 0)
static eg_tensor *egi_softmax(const egi_op *op, egi_reduction kind, eg_tensor *x, int axis) {
    egi_axis_attr a = { 0, false, false, kind };
    if (!egi_alive(op->name, 0, x)) return NULL;
    if (x->rank == 0) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: %s has no axis", op->name, egi_describe(x));
    if (!egi_axis(op->name, axis == 0 ? -1 : axis == EG_ZERO ? 0 : axis, x->rank, &axis)) return NULL;
    a.axis = x->rank - 1;
    x = egi_axis_to_end(x, axis, false);
    return egi_axis_to_end(egi_apply1(op, &x, 1, &a), axis, true);
}
EAGER_API eg_tensor *(eg_softmax)(eg_tensor *x, eg_axis_options o) { return egi_softmax(&egi_op_softmax, EGI_SOFTMAX_, x, o.axis); }
EAGER_API eg_tensor *(eg_log_softmax)(eg_tensor *x, eg_axis_options o) { return egi_softmax(&egi_op_log_softmax, EGI_LOG_SOFTMAX, x, o.axis); }

static bool egi_shape_argsort(egi_call *c) { egi_same_out(c, c->in[0]); c->dtype[0] = EG_INT64; return egi_needs_number("argsort", c->in[0]); }
static bool egi_run_argsort(egi_call *c) { return egi_run_along(c, EGI_ARGSORT); }
EGI_OP_ND(argsort, 1, 0, sizeof(egi_axis_attr))
EAGER_API eg_tensor *(eg_argsort)(eg_tensor *x, eg_sort_options o) {
    egi_axis_attr a = { 0, false, o.descending, EGI_SUM };
    int axis = 0;
    if (!egi_alive("argsort", 0, x) || !egi_axis("argsort", o.axis == 0 ? -1 : o.axis == EG_ZERO ? 0 : o.axis, x->rank, &axis)) return NULL;
    a.axis = x->rank - 1;
    x = egi_axis_to_end(x, axis, false);
    return egi_axis_to_end(egi_apply1(&egi_op_argsort, &x, 1, &a), axis, true);
}
static eg_tensor *egi_compose_sort(eg_tensor *x, eg_sort_options o) {
    if (!egi_alive("sort", 0, x)) return NULL;
    return eg_take_along_axis(x, (eg_argsort)(x, o), o.axis == 0 ? -1 : o.axis == EG_ZERO ? 0 : o.axis);
}
EAGER_API eg_tensor *(eg_sort)(eg_tensor *x, eg_sort_options o) { EGI_AS("sort", egi_compose_sort(x, o)); }
static eg_tensor *egi_compose_top_k(eg_tensor *x, int64_t k, eg_tensor **indices) {
    eg_sort_options o = { 0, -1, true };
    if (indices) *indices = NULL;
    if (!egi_alive("top_k", 0, x)) return NULL;
    if (x->rank < 1 || k < 0 || k > x->dims[x->rank - 1])
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_top_k: %lld elements of the last axis of %s", (long long)k, egi_describe(x));
    eg_shape begin = egi_shape(x), size = begin;
    for (int i = 0; i < x->rank; i++) begin.dims[i] = 0;
    size.dims[x->rank - 1] = k;
    eg_tensor *order = eg_slice((eg_argsort)(x, o), begin, size), *y = eg_take_along_axis(x, order, -1);
    if (indices && y) *indices = order;
    return y;
}
EAGER_API eg_tensor *eg_top_k(eg_tensor *x, int64_t k, eg_tensor **indices) { EGI_AS("top_k", egi_compose_top_k(x, k, indices)); }

// ---- cross entropies

EAGER_API eg_tensor *eg_softmax_cross_entropy_with_logits(eg_tensor *labels, eg_tensor *logits) {
    const char *name = "softmax_cross_entropy_with_logits";
    if (!egi_alive(name, 0, labels) || !egi_alive(name, 1, logits)) return NULL;
    if (!egi_same_shape(labels, logits) || labels->rank < 1)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE,
                                     "eg_%s: labels %s and logits %s must have one shape (..., classes); for class numbers there is eg_sparse_%s",
                                     name, egi_describe(labels), egi_describe(logits), name);
    if (!egi_needs_float(name, logits) || !egi_same_dtype(name, labels, logits)) return NULL;
    eg_axis_options last = { 0, -1 };
    return eg_negative((eg_reduce_sum)((eg_mul)(labels, (eg_log_softmax)(logits, last)), egi_over_axis(-1, false)));
}
static bool egi_shape_sparse_softmax_cross_entropy_with_logits(egi_call *c) {
    const eg_tensor *labels = c->in[0], *x = c->in[1];
    bool fits = labels->rank == x->rank - 1;
    for (int i = 0; i < labels->rank && fits; i++) fits = labels->dims[i] == x->dims[i];
    if (!egi_needs_index(c->op->name, labels) || !egi_needs_float(c->op->name, x)) return false;
    if (!fits)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: labels %s must have the shape of logits %s without the last axis", c->op->name, egi_describe(labels),
                        egi_describe(x));
    egi_same_out(c, labels);
    c->dtype[0] = (eg_dtype)x->dtype;
    return true;
}
static bool egi_run_sparse_softmax_cross_entropy_with_logits(egi_call *c) {
    egi_args args;
    if (c->out[0]->size == 0) return true;
    memset(&args, 0, sizeof args);
    eg_tensor *labels = egi_contiguous(c->in[0]), *x = egi_contiguous(c->in[1]);
    args.op = c->op;
    args.in[0] = labels;
    args.in[1] = x;
    args.out[0] = c->out[0];
    bool ok = labels && x && egi_launch(c->backend, EGI_SPARSE_XENT, &args);
    if (labels) egi_object_release(&labels->object);
    if (x) egi_object_release(&x->object);
    return ok;
}
EGI_GRAD(sparse_softmax_cross_entropy_with_logits) {      // g (softmax(x) - one_hot(label))
    (void)op;
    eg_tensor *x = c->inputs[1];
    eg_axis_options last = { 0, -1 };
    eg_one_hot_options hot;
    memset(&hot, 0, sizeof hot);
    hot.dtype = (eg_dtype)x->dtype;
    eg_tensor *difference = (eg_sub)((eg_softmax)(x, last), (eg_one_hot)(c->inputs[0], x->dims[x->rank - 1], hot));
    return egi_set_dx(c, 1, dx, (eg_mul)(difference, eg_expand_dims(c->upstream[0], -1)));
}
EGI_OP(sparse_softmax_cross_entropy_with_logits, 2, 0, 0, 0, EGI_USES_A | EGI_USES_B)
EAGER_API eg_tensor *eg_sparse_softmax_cross_entropy_with_logits(eg_tensor *labels, eg_tensor *logits) {
    eg_tensor *in[2];
    in[0] = labels;
    in[1] = logits;
    return egi_apply1(&egi_op_sparse_softmax_cross_entropy_with_logits, in, 2, NULL);
}

// ---- matmul

typedef struct egi_matmul_attr { bool ta, tb; } egi_matmul_attr;
// What the rules for shapes and the errors read of x, its last two axes left out. Not *x: another thread may be counting its users.
static eg_tensor egi_without_matrix(const eg_tensor *x) {
    eg_tensor y;
    memset(&y, 0, sizeof y);
    y.dtype = x->dtype;
    y.rank = (int8_t)(x->rank - 2);
    y.flags = x->flags;
    y.op = x->op;
    y.name = x->name;
    memcpy(y.dims, x->dims, sizeof y.dims);
    return y;
}
static bool egi_shape_matmul(egi_call *c) {
    const egi_matmul_attr *t = (const egi_matmul_attr *)c->attr;
    const eg_tensor *a = c->in[0], *b = c->in[1];
    if (!egi_same_dtype("matmul", a, b)) return false;
    if (a->dtype > EG_INT64) return egi_fail(EG_ERROR_DTYPE, "eg_matmul: no product of %s; eg_cast to a number type", egi_describe(a));
    if (a->rank < 2 || b->rank < 2)
        return egi_fail(EG_ERROR_SHAPE, "eg_matmul: needs matrices, not %s and %s; eg_expand_dims makes a vector one", egi_describe(a),
                        egi_describe(b));
    int64_t m = a->dims[a->rank - (t->ta ? 1 : 2)], k = a->dims[a->rank - (t->ta ? 2 : 1)];
    int64_t k2 = b->dims[b->rank - (t->tb ? 1 : 2)], n = b->dims[b->rank - (t->tb ? 2 : 1)];
    if (k != k2)
        return egi_fail(EG_ERROR_SHAPE, "eg_matmul: inner dimensions differ: %s x %s (%lld against %lld): %s%s and %s%s%s", egi_show(egi_shape(a)),
                        egi_show(egi_shape(b)), (long long)k, (long long)k2, egi_describe(a), t->ta ? " transposed" : "", egi_describe(b),
                        t->tb ? " transposed" : "",
                        k == n    ? "; .transpose_b?"
                        : m == k2 ? "; .transpose_a?"
                                  : "");
    eg_tensor batch_a = egi_without_matrix(a), batch_b = egi_without_matrix(b), *pair[] = {&batch_a, &batch_b};
    c->dtype[0] = (eg_dtype)a->dtype;
    if (!egi_broadcast("matmul", pair, 2, &c->shape[0])) return false;
    c->shape[0].dims[c->shape[0].rank++] = m;
    c->shape[0].dims[c->shape[0].rank++] = n;
    return true;
}
// A matrix that kernels can read: unit stride along rows or along columns, else a copy.
static eg_tensor *egi_matrix(const eg_tensor *x, bool *transposed, int64_t *ld) {
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    for (int copy = 0; copy < 2; copy++) {
        int64_t s0 = rows == 1 ? (columns > 1 ? columns : 1) : x->strides[x->rank - 2], s1 = columns == 1 ? 1 : x->strides[x->rank - 1];
        if (copy) { s0 = columns > 1 ? columns : 1; s1 = 1; }
        if (s1 == 1 && s0 >= columns && s0 >= 1) { *ld = s0; break; }
        if (columns == 1) s1 = rows > 1 ? rows : 1;
        if (s0 == 1 && s1 >= rows && !copy) { *ld = s1; *transposed = !*transposed; break; }
        eg_tensor *packed = egi_contiguous(x);
        *ld = columns > 1 ? columns : 1;
        return packed;
    }
    return eg_retain((eg_tensor *)(uintptr_t)x);
}
static bool egi_run_matmul(egi_call *c) {
    const egi_matmul_attr *t = (const egi_matmul_attr *)c->attr;
    egi_matmul_parameters p;
    egi_args args;
    if (c->out[0]->size == 0) return true;
    memset(&p, 0, sizeof p);
    memset(&args, 0, sizeof args);
    const eg_shape *shape = &c->shape[0];
    p.precision = egi_this.precision;
    p.ta = t->ta;
    p.tb = t->tb;
    p.m = shape->dims[shape->rank - 2];
    p.n = shape->dims[shape->rank - 1];
    p.k = c->in[0]->dims[c->in[0]->rank - (t->ta ? 2 : 1)];
    eg_tensor *a = egi_matrix(c->in[0], &p.ta, &p.lda), *b = egi_matrix(c->in[1], &p.tb, &p.ldb);
    if (a && b) {
        p.batch_rank = shape->rank - 2;
        bool one_b = true;
        for (int i = 0; i < p.batch_rank; i++) {
            int ka = i - (p.batch_rank - (a->rank - 2)), kb = i - (p.batch_rank - (b->rank - 2));
            p.batch[i] = shape->dims[i];
            p.a_strides[i] = ka < 0 || a->dims[ka] == 1 ? 0 : a->strides[ka];
            p.b_strides[i] = kb < 0 || b->dims[kb] == 1 ? 0 : b->strides[kb];
            one_b = one_b && (kb < 0 || b->dims[kb] == 1);
        }
        if (one_b && p.batch_rank && !p.ta && (a->flags & EGI_CONTIGUOUS) && a->rank == shape->rank && p.lda == p.k) {      // one tall product
            for (int i = 0; i < p.batch_rank; i++) p.m *= a->dims[i];
            bool whole = p.m * p.n == c->out[0]->size;
            if (whole) p.batch_rank = 0;
            else p.m = shape->dims[shape->rank - 2];
        }
        args.op = c->op;
        args.in[0] = a;
        args.in[1] = b;
        args.out[0] = c->out[0];
        args.parameters = &p;
    }
    bool ok = a && b && egi_launch(c->backend, EGI_MATMUL, &args);
    if (a) egi_object_release(&a->object);
    if (b) egi_object_release(&b->object);
    return ok;
}
static eg_tensor *egi_matmul(eg_tensor *a, bool ta, eg_tensor *b, bool tb);
// With Y = A B: dA = G B^T and dB = A^T G; a transposed operand's gradient is the transposed one.
EGI_GRAD(matmul) {
    const egi_matmul_attr *t = (const egi_matmul_attr *)c->attributes;
    eg_tensor *a = c->inputs[0], *b = c->inputs[1], *g = c->upstream[0];
    (void)op;
    if (c->needed[0] && !egi_set_dx(c, 0, dx, t->ta ? egi_matmul(b, t->tb, g, true) : egi_matmul(g, false, b, !t->tb))) return false;
    return !c->needed[1] || egi_set_dx(c, 1, dx, t->tb ? egi_matmul(g, true, a, t->ta) : egi_matmul(a, !t->ta, g, false));
}
EGI_OP(matmul, 2, 0, sizeof(egi_matmul_attr), EGI_USES_B, EGI_USES_A)
static eg_tensor *egi_matmul(eg_tensor *a, bool ta, eg_tensor *b, bool tb) {
    egi_matmul_attr attr = { ta, tb };
    eg_tensor *in[2];
    in[0] = a;
    in[1] = b;
    return egi_apply1(&egi_op_matmul, in, 2, &attr);
}
EAGER_API eg_tensor *(eg_matmul)(eg_tensor *a, eg_tensor *b, eg_matmul_options o) { return egi_matmul(a, o.transpose_a, b, o.transpose_b); }

// ---- gather and scatter_add: each the other's gradient

typedef struct egi_gather_attr { int axis, index_rank; int64_t rows; const char *name; } egi_gather_attr;     // name: of the public op, for errors
static bool egi_shape_gather(egi_call *c) {
    const egi_gather_attr *a = (const egi_gather_attr *)c->attr;
    const eg_tensor *x = c->in[0], *index = c->in[1];
    if (!egi_needs_index(a->name, index)) return false;
    if (x->rank + index->rank - 1 > EG_MAX_RANK)
        return egi_fail(EG_ERROR_SHAPE, "eg_gather: the result of %s and %s would have more than %d axes", egi_describe(x), egi_describe(index),
                        EG_MAX_RANK);
    egi_same_out(c, x);
    eg_shape *s = &c->shape[0];
    s->rank = 0;
    for (int i = 0; i < a->axis; i++) s->dims[s->rank++] = x->dims[i];
    for (int i = 0; i < index->rank; i++) s->dims[s->rank++] = index->dims[i];
    for (int i = a->axis + 1; i < x->rank; i++) s->dims[s->rank++] = x->dims[i];
    return true;
}
static bool egi_run_pick(egi_call *c, egi_kernel kernel, egi_gather_parameters *p) {
    egi_args args;
    memset(&args, 0, sizeof args);
    eg_tensor *x = egi_contiguous(c->in[0]), *index = egi_contiguous(c->in[1]);
    args.op = c->op;
    args.in[0] = x;
    args.in[1] = index;
    args.out[0] = c->out[0];
    args.parameters = p;
    bool ok = x && index && egi_launch(c->backend, kernel, &args);
    if (x) egi_object_release(&x->object);
    if (index) egi_object_release(&index->object);
    return ok;
}
static bool egi_run_gather(egi_call *c) {
    const egi_gather_attr *a = (const egi_gather_attr *)c->attr;
    egi_reduce_parameters s = egi_split_at(c->in[0], a->axis);
    egi_gather_parameters p = { s.outer, s.n, s.inner, a->name };
    return egi_run_pick(c, EGI_GATHER, &p);
}
static eg_tensor *egi_pick(const egi_op *op, eg_tensor *x, eg_tensor *index, egi_gather_attr a) {
    eg_tensor *in[2];
    in[0] = x;
    in[1] = index;
    return egi_apply1(op, in, 2, &a);
}
static const egi_op *egi_row_scatter_add(void);
EGI_GRAD(gather) {
    (void)op;
    return egi_set_dx(c, 0, dx, egi_pick(egi_row_scatter_add(), c->upstream[0], c->inputs[1], *(const egi_gather_attr *)c->attributes));
}
EGI_OP(gather, 2, 0, sizeof(egi_gather_attr), EGI_USES_B, 0)
static bool egi_shape_scatter_add(egi_call *c) {
    const egi_gather_attr *a = (const egi_gather_attr *)c->attr;
    const eg_tensor *x = c->in[0], *index = c->in[1];
    bool fits = x->rank >= a->axis + index->rank;
    for (int i = 0; i < index->rank && fits; i++) fits = x->dims[a->axis + i] == index->dims[i];
    if (!egi_needs_index(a->name, index) || !egi_needs_number(a->name, x)) return false;
    if (!fits) return egi_fail(EG_ERROR_SHAPE, "eg_%s: updates %s do not match indices %s", a->name, egi_describe(x), egi_describe(index));
    egi_same_out(c, x);
    eg_shape *s = &c->shape[0];
    s->rank = 0;
    for (int i = 0; i < a->axis; i++) s->dims[s->rank++] = x->dims[i];
    s->dims[s->rank++] = a->rows;
    for (int i = a->axis + index->rank; i < x->rank; i++) s->dims[s->rank++] = x->dims[i];
    return true;
}
static bool egi_run_scatter_add(egi_call *c) {
    const egi_gather_attr *a = (const egi_gather_attr *)c->attr;
    egi_reduce_parameters s = egi_split_at(c->out[0], a->axis);
    egi_gather_parameters p = { s.outer, s.n, s.inner, a->name };
    return egi_run_pick(c, EGI_SCATTER_ADD, &p);
}
EGI_GRAD(scatter_add) {
    (void)op;
    return egi_set_dx(c, 0, dx, egi_pick(&egi_op_gather, c->upstream[0], c->inputs[1], *(const egi_gather_attr *)c->attributes));
}
static const egi_op egi_op_scatter_add = { "scatter_add", 2, 1, 0, sizeof(egi_gather_attr), egi_shape_scatter_add, egi_run_scatter_add, egi_grad_scatter_add, { EGI_USES_B, 0, 0 }, 0, { 0 }, { 0, 0, 0 }, NULL, NULL, { 0 } };
static const egi_op *egi_row_scatter_add(void) { return &egi_op_scatter_add; }
EAGER_API eg_tensor *(eg_gather)(eg_tensor *x, eg_tensor *indices, eg_gather_options o) {
    egi_gather_attr a;
    if (!egi_alive("gather", 0, x) || !egi_alive("gather", 1, indices) || !egi_axis("gather", o.axis == EG_ZERO ? 0 : o.axis, x->rank, &a.axis))
        return NULL;
    a.index_rank = indices->flags & EGI_NUMBER ? 0 : indices->rank;
    a.rows = x->dims[a.axis];
    a.name = "gather";
    if (indices->flags & EGI_NUMBER) indices = egi_number_tensor("gather", indices, EG_INT64, egi_backend_of(x));
    return egi_pick(&egi_op_gather, x, indices, a);
}
// Positions in several axes at once become positions in the flat tensor, each checked, on the host.
static eg_tensor *egi_flat_positions(const char *name, eg_tensor *index, eg_shape shape, int depth, int along) {
    if (!egi_needs_index(name, index)) return NULL;
    eg_scope scope = eg_scope_begin();
    const char *p = (const char *)eg_data(index);
    int64_t n = along >= 0 ? index->size : depth ? index->size / depth : 0;
    if (along < 0 && !depth) { n = 1; for (int i = 0; i < index->rank - 1; i++) n *= index->dims[i]; }
    int64_t *flat = p ? (int64_t *)egi_alloc((size_t)(n ? n : 1) * sizeof *flat) : NULL;
    if (p && !flat) egi_no_memory(name, n * 8);
    bool ok = flat != NULL;
    int size = egi_dtypes[index->dtype].size;
    for (int64_t i = 0; i < n && ok; i++) {
        int64_t at = 0, rest = i, parts[EG_MAX_RANK] = { 0 };
        if (along >= 0) for (int d = index->rank - 1; d >= 0; d--) { parts[d] = rest % index->dims[d]; rest /= index->dims[d]; }
        for (int d = 0; d < depth && ok; d++) {
            int64_t value = along < 0    ? egi_load_int(index->dtype, p + (i * depth + d) * size)
                            : d == along ? egi_load_int(index->dtype, p + i * size)
                                         : parts[d];
            if (value < 0 || value >= shape.dims[d])
                ok = egi_fail(EG_ERROR_INDEX, "eg_%s: index %lld (entry %lld of %s) is out of range [0, %lld) of axis %d", name, (long long)value,
                              (long long)(along < 0 ? i * depth + d : i), egi_describe(index), (long long)shape.dims[d], d);
            else at = at * shape.dims[d] + value;
        }
        flat[i] = at;
    }
    eg_shape s = egi_shape(index);
    if (along < 0) s.rank--;
    eg_tensor *y = ok ? eg_to(eg_from_data(EG_INT64, s, flat), eg_device_of(index)) : NULL;
    egi_free(flat);
    eg_keep(y);
    eg_scope_end(scope);
    return y;
}
// (first `depth` axes as one, the others)
static eg_shape egi_flattened(eg_shape s, int depth) {
    eg_shape flat = { 1, { 1 } };
    for (int i = 0; i < depth; i++) flat.dims[0] *= s.dims[i];
    for (int i = depth; i < s.rank; i++) flat.dims[flat.rank++] = s.dims[i];
    return flat;
}
EAGER_API eg_tensor *eg_gather_nd(eg_tensor *x, eg_tensor *indices) {
    if (!egi_alive("gather_nd", 0, x) || !egi_alive("gather_nd", 1, indices)) return NULL;
    int64_t depth = indices->rank ? indices->dims[indices->rank - 1] : -1;
    if (depth < 0 || depth > x->rank)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_gather_nd: the last axis of indices %s must be at most the rank of %s",
                                     egi_describe(indices), egi_describe(x));
    eg_gather_options rows;
    memset(&rows, 0, sizeof rows);
    eg_tensor *flat = egi_flat_positions("gather_nd", indices, egi_shape(x), (int)depth, -1);
    return flat ? (eg_gather)(eg_reshape(x, egi_flattened(egi_shape(x), (int)depth)), flat, rows) : NULL;
}
EAGER_API eg_tensor *eg_take_along_axis(eg_tensor *x, eg_tensor *indices, int axis) {
    if (!egi_alive("take_along_axis", 0, x) || !egi_alive("take_along_axis", 1, indices) || !egi_axis("take_along_axis", axis, x->rank, &axis))
        return NULL;
    bool fits = x->rank == indices->rank;
    for (int i = 0; i < x->rank && fits; i++) fits = i == axis || x->dims[i] == indices->dims[i];
    if (!fits)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_take_along_axis: %s and indices %s must agree but for axis %d", egi_describe(x),
                                     egi_describe(indices), axis);
    eg_gather_options rows;
    memset(&rows, 0, sizeof rows);
    eg_tensor *flat = egi_flat_positions("take_along_axis", indices, egi_shape(x), x->rank, axis);
    return flat ? (eg_gather)(eg_reshape(x, egi_flattened(egi_shape(x), x->rank)), flat, rows) : NULL;
}
EAGER_API eg_tensor *eg_scatter_nd(eg_tensor *indices, eg_tensor *updates, eg_shape shape) {
    if (!egi_alive("scatter_nd", 0, indices) || !egi_alive("scatter_nd", 1, updates) || !egi_shape_valid("scatter_nd", shape, EG_FLOAT64))
        return NULL;
    int64_t depth = indices->rank ? indices->dims[indices->rank - 1] : -1;
    if (depth < 0 || depth > shape.rank)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_scatter_nd: the last axis of indices %s must be at most the rank of %s",
                                     egi_describe(indices), egi_show(shape));
    eg_shape flat_shape = egi_flattened(shape, (int)depth);
    bool fits = updates->rank == indices->rank - 1 + shape.rank - (int)depth;
    for (int i = 0; i < indices->rank - 1 && fits; i++) fits = updates->dims[i] == indices->dims[i];
    for (int i = (int)depth; i < shape.rank && fits; i++) fits = updates->dims[indices->rank - 1 + i - (int)depth] == shape.dims[i];
    if (!fits)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_scatter_nd: updates %s do not fit indices %s into shape %s", egi_describe(updates),
                                     egi_describe(indices), egi_show(shape));
    egi_gather_attr a = { 0, indices->rank - 1, flat_shape.dims[0], "scatter_nd" };
    eg_tensor *flat = egi_flat_positions("scatter_nd", indices, shape, (int)depth, -1);
    return flat ? eg_reshape(egi_pick(&egi_op_scatter_add, updates, flat, a), shape) : NULL;
}
static eg_tensor *egi_compose_tensor_scatter_add(eg_tensor *x, eg_tensor *indices, eg_tensor *updates) {
    if (!egi_alive("tensor_scatter_add", 0, x) || !egi_alive("tensor_scatter_add", 1, indices) || !egi_alive("tensor_scatter_add", 2, updates))
        return NULL;
    if (!egi_same_dtype("tensor_scatter_add", x, updates)) return NULL;
    return (eg_add)(x, eg_scatter_nd(indices, updates, egi_shape(x)));
}
EAGER_API eg_tensor *eg_tensor_scatter_add(eg_tensor *x, eg_tensor *indices, eg_tensor *updates) {
    EGI_AS("tensor_scatter_add", egi_compose_tensor_scatter_add(x, indices, updates));
}
EAGER_API eg_tensor *eg_segment_sum(eg_tensor *x, eg_tensor *segments, int64_t n) {
    if (!egi_alive("segment_sum", 0, x) || !egi_alive("segment_sum", 1, segments)) return NULL;
    if (n < 0 || segments->rank != 1 || x->rank < 1 || segments->dims[0] != x->dims[0])
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_segment_sum: segments %s must have one entry for each row of %s", egi_describe(segments),
                                     egi_describe(x));
    egi_gather_attr a = { 0, 1, n, "segment_sum" };
    return egi_pick(&egi_op_scatter_add, x, segments, a);
}
static eg_tensor *egi_compose_one_hot(eg_tensor *indices, int64_t depth, eg_one_hot_options o) {
    if (!egi_alive("one_hot", 0, indices)) return NULL;
    if (indices->flags & EGI_NUMBER) indices = egi_number_tensor("one_hot", indices, EG_INT64, egi_backend_here());
    if (!indices || !egi_needs_index("one_hot", indices)) return NULL;
    if (depth < 0) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_one_hot: depth %lld", (long long)depth);
    if (!egi_dtype_valid(o.dtype)) return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_one_hot: %d is no dtype", (int)o.dtype);
    int axis = 0;
    if (!egi_axis("one_hot", o.axis == 0 ? -1 : o.axis == EG_ZERO ? 0 : o.axis, indices->rank + 1, &axis)) return NULL;
    double on = o.on_value == 0 ? 1 : o.on_value == EG_ZERO ? 0 : o.on_value, off = o.off_value == EG_ZERO ? 0 : o.off_value;
    eg_shape classes = { 1, { depth } }, scalar = { 0, { 0 } };
    eg_tensor *numbers = eg_to(eg_range((eg_dtype)indices->dtype, 0, (double)depth, 1), eg_device_of(indices));
    eg_tensor *hot = (eg_equal)(eg_expand_dims(indices, -1), eg_reshape(numbers, classes));
    if (on == 1 && off == 0) hot = eg_cast(hot, o.dtype);
    else
        hot =
            (eg_where)(hot, eg_to(eg_full(o.dtype, scalar, on), eg_device_of(indices)), eg_to(eg_full(o.dtype, scalar, off), eg_device_of(indices)));
    return egi_axis_to_end(hot, axis, true);
}
EAGER_API eg_tensor *(eg_one_hot)(eg_tensor *indices, int64_t depth, eg_one_hot_options o) {
    EGI_AS("one_hot", egi_compose_one_hot(indices, depth, o));
}

// ---- convolution: conv2d, conv2d_input, conv2d_filter; any two give the gradients of the third

static bool egi_conv_out(egi_call *c, int kind, const egi_conv_dims *d) {
    eg_shape x = { 4, { d->n, d->h, d->w, d->c } }, f = { 4, { d->kh, d->kw, d->c / d->groups, d->oc } }, y = { 4, { d->n, d->oh, d->ow, d->oc } };
    c->dtype[0] = (eg_dtype)c->in[0]->dtype;
    c->shape[0] = kind == EGI_CONV_FORWARD ? y : kind == EGI_CONV_INPUT ? x : f;
    return egi_same_dtype(c->op->name, c->in[0], c->in[1]) && egi_needs_float(c->op->name, c->in[0]);
}
static bool egi_conv_run(egi_call *c, egi_conv_kind kind) {
    egi_conv_parameters p;
    egi_args args;
    if (c->out[0]->size == 0) return true;
    p.kind = kind;
    p.dims = *(const egi_conv_dims *)c->attr;
    memset(&args, 0, sizeof args);
    eg_tensor *a = egi_contiguous(c->in[0]), *b = egi_contiguous(c->in[1]);
    args.op = c->op;
    args.in[0] = a;
    args.in[1] = b;
    args.out[0] = c->out[0];
    args.parameters = &p;
    bool ok = a && b && egi_launch(c->backend, EGI_CONV, &args);
    if (a) egi_object_release(&a->object);
    if (b) egi_object_release(&b->object);
    return ok;
}
static bool egi_shape_conv2d(egi_call *c) { return egi_conv_out(c, EGI_CONV_FORWARD, (const egi_conv_dims *)c->attr); }
static bool egi_shape_conv2d_input(egi_call *c) { return egi_conv_out(c, EGI_CONV_INPUT, (const egi_conv_dims *)c->attr); }
static bool egi_shape_conv2d_filter(egi_call *c) { return egi_conv_out(c, EGI_CONV_FILTER, (const egi_conv_dims *)c->attr); }
static bool egi_run_conv2d(egi_call *c) { return egi_conv_run(c, EGI_CONV_FORWARD); }
static bool egi_run_conv2d_input(egi_call *c) { return egi_conv_run(c, EGI_CONV_INPUT); }
static bool egi_run_conv2d_filter(egi_call *c) { return egi_conv_run(c, EGI_CONV_FILTER); }
static const egi_op *egi_row_conv(egi_conv_kind kind);
static bool egi_conv_grad(const eg_grad_context *c, int i, eg_tensor **dx, egi_conv_kind kind, eg_tensor *a, eg_tensor *b) {
    eg_tensor *in[2];
    in[0] = a;
    in[1] = b;
    return !c->needed[i] || egi_set_dx(c, i, dx, egi_apply1(egi_row_conv(kind), in, 2, c->attributes));
}
EGI_GRAD(conv2d) {           // y(x, f): dx = input(g, f), df = filter(x, g)
    (void)op;
    return egi_conv_grad(c, 0, dx, EGI_CONV_INPUT, c->upstream[0], c->inputs[1]) &&
           egi_conv_grad(c, 1, dx, EGI_CONV_FILTER, c->inputs[0], c->upstream[0]);
}
EGI_GRAD(conv2d_input) {     // x(dy, f): the same with x and y in each other's place
    (void)op;
    return egi_conv_grad(c, 0, dx, EGI_CONV_FORWARD, c->upstream[0], c->inputs[1]) &&
           egi_conv_grad(c, 1, dx, EGI_CONV_FILTER, c->upstream[0], c->inputs[0]);
}
EGI_GRAD(conv2d_filter) {    // f(x, dy)
    (void)op;
    return egi_conv_grad(c, 0, dx, EGI_CONV_INPUT, c->inputs[1], c->upstream[0]) &&
           egi_conv_grad(c, 1, dx, EGI_CONV_FORWARD, c->inputs[0], c->upstream[0]);
}
#define EGI_CONV_ROW(name) { #name, 2, 1, 0, sizeof(egi_conv_dims), egi_shape_##name, egi_run_##name, egi_grad_##name, { EGI_USES_B, EGI_USES_A, 0 }, 0, { 0 }, { 0, 0, 0 }, NULL, NULL, { 0 } }
static const egi_op egi_op_conv2d = EGI_CONV_ROW(conv2d);
static const egi_op egi_op_conv2d_input = EGI_CONV_ROW(conv2d_input);
static const egi_op egi_op_conv2d_filter = EGI_CONV_ROW(conv2d_filter);
static const egi_op *egi_row_conv(egi_conv_kind kind) { return kind == EGI_CONV_FORWARD ? &egi_op_conv2d : kind == EGI_CONV_INPUT ? &egi_op_conv2d_input : &egi_op_conv2d_filter; }

static int64_t egi_option_or(int64_t value, int64_t fallback) { return value ? value : fallback; }
// One axis: length of the output and padding before it, from input length n, window k (dilated), stride s.
static bool egi_window(const char *name, const eg_tensor *x, int64_t n, int64_t k, int64_t s, eg_padding padding, int64_t *out, int64_t *before) {
    if (padding == EG_SAME) {
        *out = n / s + (n % s != 0);
        int64_t pad = *out > 0 ? k - (n - (*out - 1) * s) : 0;
        *before = pad > 0 ? pad / 2 : 0;
        return true;
    }
    *before = 0;
    if (n < k)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: a window of %lld does not fit into %s without padding; .padding = EG_SAME?", name, (long long)k,
                        egi_describe(x));
    *out = (n - k) / s + 1;
    return true;
}
// Rows that k taps of a filter span, dilated; so far below the largest integer that sums of a few such do not overflow.
static bool egi_span(const char *name, const eg_tensor *f, int64_t k, int64_t dilation, int64_t *span) {
    if (!egi_checked_product(k - 1, dilation, span) || *span > INT64_MAX / 4)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: the filter %s, dilated by %lld, is too large", name, egi_describe(f), (long long)dilation);
    ++*span;
    return true;
}
static bool egi_conv_options_valid(const char *name, const eg_conv_options *o) {
    for (int i = 0; i < 2; i++)
        if (o->strides[i] < 0 || o->dilations[i] < 0 || o->output_padding[i] < 0 || o->strides[i] > INT32_MAX || o->dilations[i] > INT32_MAX ||
            o->output_padding[i] > INT32_MAX)
            return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: strides, dilations and paddings must be between 1 and 2^31", name);
    if (o->padding != EG_VALID && o->padding != EG_SAME)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: padding %d is neither EG_VALID nor EG_SAME", name, (int)o->padding);
    return o->groups >= 0 || egi_fail(EG_ERROR_ARGUMENT, "eg_%s: %lld groups", name, (long long)o->groups);
}
static void egi_conv_steps(egi_conv_dims *d, const eg_conv_options *o) {
    d->sh = egi_option_or(o->strides[0], 1);
    d->sw = egi_option_or(o->strides[1], d->sh);
    d->dh = egi_option_or(o->dilations[0], 1);
    d->dw = egi_option_or(o->dilations[1], d->dh);
    d->groups = egi_option_or(o->groups, 1);
}
static eg_tensor *egi_conv(const char *name, eg_tensor *x, eg_tensor *f, const eg_conv_options *o) {
    egi_conv_dims d;
    eg_tensor *in[2];
    if (!egi_alive(name, 0, x) || !egi_alive(name, 1, f) || !egi_conv_options_valid(name, o)) return NULL;
    if (o->output_padding[0] || o->output_padding[1]) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: .output_padding is for transposed convolution", name);
    if (x->rank != 4 || f->rank != 4)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: needs x (N, H, W, C) and a filter (KH, KW, C, O), not %s and %s", name, egi_describe(x),
                                     egi_describe(f));
    egi_conv_steps(&d, o);
    d.n = x->dims[0]; d.h = x->dims[1]; d.w = x->dims[2]; d.c = x->dims[3];
    d.kh = f->dims[0]; d.kw = f->dims[1]; d.oc = f->dims[3];
    if (d.c % d.groups || d.oc % d.groups || f->dims[2] != d.c / d.groups)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: %lld channels of %s in %lld groups against %lld input channels of filter %s", name,
                                     (long long)d.c, egi_describe(x), (long long)d.groups, (long long)f->dims[2], egi_describe(f));
    if (d.kh < 1 || d.kw < 1) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: the filter %s is empty", name, egi_describe(f));
    int64_t kh, kw;
    if (!egi_span(name, f, d.kh, d.dh, &kh) || !egi_span(name, f, d.kw, d.dw, &kw)) return NULL;
    if (!egi_window(name, x, d.h, kh, d.sh, o->padding, &d.oh, &d.pt) || !egi_window(name, x, d.w, kw, d.sw, o->padding, &d.ow, &d.pl)) return NULL;
    in[0] = x;
    in[1] = f;
    return egi_apply1(&egi_op_conv2d, in, 2, &d);
}
EAGER_API eg_tensor *(eg_conv2d)(eg_tensor *x, eg_tensor *filter, eg_conv_options o) { return egi_conv("conv2d", x, filter, &o); }
static eg_tensor *egi_compose_depthwise_conv2d(eg_tensor *x, eg_tensor *filter, eg_conv_options o) {
    const char *name = "depthwise_conv2d";
    if (!egi_alive(name, 0, x) || !egi_alive(name, 1, filter)) return NULL;
    if (x->rank != 4 || filter->rank != 4 || filter->dims[2] != x->dims[3])
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: needs x (N, H, W, C) and a filter (KH, KW, C, multiplier), not %s and %s", name,
                                     egi_describe(x), egi_describe(filter));
    eg_shape shape = { 4, { filter->dims[0], filter->dims[1], 1, filter->dims[2] * filter->dims[3] } };
    o.groups = x->dims[3];
    return egi_conv(name, x, eg_reshape(filter, shape), &o);
}
EAGER_API eg_tensor *(eg_depthwise_conv2d)(eg_tensor *x, eg_tensor *filter, eg_conv_options o) {
    EGI_AS("depthwise_conv2d", egi_compose_depthwise_conv2d(x, filter, o));
}
static eg_tensor *egi_conv_transpose(const char *name, eg_tensor *x, eg_tensor *f, const eg_conv_options *o) {
    egi_conv_dims d;
    eg_tensor *in[2];
    if (!egi_alive(name, 0, x) || !egi_alive(name, 1, f) || !egi_conv_options_valid(name, o)) return NULL;
    egi_conv_steps(&d, o);
    if (x->rank != 4 || f->rank != 4 || f->dims[3] != x->dims[3] || x->dims[3] % d.groups)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: needs x (N, H, W, C) and a filter (KH, KW, O, C), not %s and %s", name, egi_describe(x),
                                     egi_describe(f));
    d.n = x->dims[0]; d.oh = x->dims[1]; d.ow = x->dims[2]; d.oc = x->dims[3];
    d.kh = f->dims[0]; d.kw = f->dims[1];
    if (d.kh < 1 || d.kw < 1 || !egi_checked_product(f->dims[2], d.groups, &d.c))
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: the filter %s is empty or too large", name, egi_describe(f));
    int64_t kh, kw, oh, ow;
    if (!egi_span(name, f, d.kh, d.dh, &kh) || !egi_span(name, f, d.kw, d.dw, &kw)) return NULL;
    bool same = o->padding == EG_SAME;
    int64_t ph = o->output_padding[0], pw = o->output_padding[1];
    if (same && (ph || pw)) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: .output_padding goes with EG_VALID alone", name);
    if (ph >= d.sh || pw >= d.sw)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: output padding (%lld, %lld) must be less than the strides (%lld, %lld)", name,
                                     (long long)ph, (long long)pw, (long long)d.sh, (long long)d.sw);
    if (!egi_checked_product(d.oh, d.sh, &d.h) || !egi_checked_product(d.ow, d.sw, &d.w) || d.h > INT64_MAX / 4 || d.w > INT64_MAX / 4)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: the result is too large", name);
    if (!same) { d.h = d.oh ? d.h - d.sh + kh + ph : 0; d.w = d.ow ? d.w - d.sw + kw + pw : 0; }
    if (d.oh && d.ow && (!egi_window(name, x, d.h, kh, d.sh, o->padding, &oh, &d.pt) || !egi_window(name, x, d.w, kw, d.sw, o->padding, &ow, &d.pl)))
        return NULL;
    if (!d.oh || !d.ow) d.pt = d.pl = 0;
    in[0] = x;
    in[1] = f;
    return egi_apply1(&egi_op_conv2d_input, in, 2, &d);
}
EAGER_API eg_tensor *(eg_conv2d_transpose)(eg_tensor *x, eg_tensor *filter, eg_conv_options o) {
    EGI_AS("conv2d_transpose", egi_conv_transpose("conv2d_transpose", x, filter, &o));
}
// One dimension is two with a height of 1.
static eg_tensor *egi_conv_1d(const char *name, eg_tensor *x, eg_tensor *f, eg_conv_options o,
                              eg_tensor *(*conv)(const char *, eg_tensor *, eg_tensor *, const eg_conv_options *)) {
    if (!egi_alive(name, 0, x) || !egi_alive(name, 1, f)) return NULL;
    if (x->rank != 3 || f->rank != 3)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: needs x (N, W, C) and a filter of 3 axes, not %s and %s", name, egi_describe(x),
                                     egi_describe(f));
    o.strides[1] = egi_option_or(o.strides[0], 1);
    o.dilations[1] = egi_option_or(o.dilations[0], 1);
    o.output_padding[1] = o.output_padding[0];
    o.strides[0] = o.dilations[0] = 1;
    o.output_padding[0] = 0;
    eg_squeeze_options height;
    memset(&height, 0, sizeof height);
    height.axes.count = 1;
    height.axes.axes[0] = 1;
    eg_tensor *y = conv(name, eg_expand_dims(x, 1), eg_expand_dims(f, 0), &o);
    return y ? (eg_squeeze)(y, height) : NULL;
}
EAGER_API eg_tensor *(eg_conv1d)(eg_tensor *x, eg_tensor *filter, eg_conv_options o) {
    EGI_AS("conv1d", egi_conv_1d("conv1d", x, filter, o, egi_conv));
}
EAGER_API eg_tensor *(eg_conv1d_transpose)(eg_tensor *x, eg_tensor *filter, eg_conv_options o) {
    EGI_AS("conv1d_transpose", egi_conv_1d("conv1d_transpose", x, filter, o, egi_conv_transpose));
}

// ---- pooling: the average and its adjoint are each other's gradient; the maximum is a gather of the winners

static bool egi_pool_run(egi_call *c, egi_pool_kind kind) {
    egi_pool_parameters p;
    egi_args args;
    if (c->out[0]->size == 0) return true;
    p.kind = kind;
    p.dims = *(const egi_pool_dims *)c->attr;
    memset(&args, 0, sizeof args);
    eg_tensor *x = egi_contiguous(c->in[0]);
    if (!x) return false;
    args.op = c->op;
    args.in[0] = x;
    args.out[0] = c->out[0];
    args.parameters = &p;
    bool ok = egi_launch(c->backend, EGI_POOL, &args);
    egi_object_release(&x->object);
    return ok;
}
static bool egi_shape_pooled(egi_call *c, bool back, eg_dtype dtype) {
    const egi_pool_dims *d = (const egi_pool_dims *)c->attr;
    eg_shape x = { 4, { d->n, d->h, d->w, d->c } }, y = { 4, { d->n, d->oh, d->ow, d->c } };
    c->shape[0] = back ? x : y;
    c->dtype[0] = dtype;
    return egi_needs_float(c->op->name, c->in[0]);
}
static bool egi_shape_max_pool_index(egi_call *c) { return egi_shape_pooled(c, false, EG_INT64); }
static bool egi_run_max_pool_index(egi_call *c) { return egi_pool_run(c, EGI_POOL_MAX_INDEX); }
EGI_OP_ND(max_pool_index, 1, 0, sizeof(egi_pool_dims))
static const egi_op *egi_row_avg_pool2d_grad(void);
static bool egi_shape_avg_pool2d(egi_call *c) { return egi_shape_pooled(c, false, (eg_dtype)c->in[0]->dtype); }
static bool egi_run_avg_pool2d(egi_call *c) { return egi_pool_run(c, EGI_POOL_AVG); }
EGI_GRAD(avg_pool2d) { (void)op; return egi_set_dx(c, 0, dx, egi_apply1(egi_row_avg_pool2d_grad(), &c->upstream[0], 1, c->attributes)); }
EGI_OP(avg_pool2d, 1, 0, sizeof(egi_pool_dims), 0, 0)
static bool egi_shape_avg_pool2d_grad(egi_call *c) { return egi_shape_pooled(c, true, (eg_dtype)c->in[0]->dtype); }
static bool egi_run_avg_pool2d_grad(egi_call *c) { return egi_pool_run(c, EGI_POOL_AVG_GRAD); }
EGI_GRAD(avg_pool2d_grad) { (void)op; return egi_set_dx(c, 0, dx, egi_apply1(&egi_op_avg_pool2d, &c->upstream[0], 1, c->attributes)); }
static const egi_op egi_op_avg_pool2d_grad = { "avg_pool2d_grad", 1, 1, 0, sizeof(egi_pool_dims), egi_shape_avg_pool2d_grad, egi_run_avg_pool2d_grad, egi_grad_avg_pool2d_grad, { 0, 0, 0 }, 0, { 0 }, { 0, 0, 0 }, NULL, NULL, { 0 } };

static const egi_op *egi_row_avg_pool2d_grad(void) { return &egi_op_avg_pool2d_grad; }
static bool egi_pool_dims_of(const char *name, eg_tensor *x, const eg_pool_options *o, egi_pool_dims *d) {
    if (!egi_alive(name, 0, x)) return false;
    if (x->rank != 4) return egi_fail(EG_ERROR_SHAPE, "eg_%s: needs (N, H, W, C), not %s", name, egi_describe(x));
    for (int i = 0; i < 2; i++)
        if (o->size[i] < 0 || o->strides[i] < 0 || o->size[i] > INT32_MAX || o->strides[i] > INT32_MAX)
            return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: size and strides must be between 1 and 2^31", name);
    if (o->padding != EG_VALID && o->padding != EG_SAME)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: padding %d is neither EG_VALID nor EG_SAME", name, (int)o->padding);
    d->n = x->dims[0]; d->h = x->dims[1]; d->w = x->dims[2]; d->c = x->dims[3];
    d->kh = egi_option_or(o->size[0], 2);
    d->kw = egi_option_or(o->size[1], d->kh);
    d->sh = egi_option_or(o->strides[0], d->kh);
    d->sw = egi_option_or(o->strides[1], o->strides[0] ? d->sh : d->kw);
    return egi_window(name, x, d->h, d->kh, d->sh, o->padding, &d->oh, &d->pt) && egi_window(name, x, d->w, d->kw, d->sw, o->padding, &d->ow, &d->pl);
}
static eg_tensor *egi_max_pool(const char *name, eg_tensor *x, const eg_pool_options *o) {
    egi_pool_dims d;
    eg_shape flat = { 1, { -1 } };
    eg_gather_options rows;
    memset(&rows, 0, sizeof rows);
    if (!egi_pool_dims_of(name, x, o, &d)) return NULL;
    flat.dims[0] = x->size;
    return (eg_gather)(eg_reshape(x, flat), egi_apply1(&egi_op_max_pool_index, &x, 1, &d), rows);
}
static eg_tensor *egi_avg_pool(const char *name, eg_tensor *x, const eg_pool_options *o) {
    egi_pool_dims d;
    return egi_pool_dims_of(name, x, o, &d) ? egi_apply1(&egi_op_avg_pool2d, &x, 1, &d) : NULL;
}
static eg_tensor *egi_pool_1d(const char *name, eg_tensor *x, eg_pool_options o,
                              eg_tensor *(*pool)(const char *, eg_tensor *, const eg_pool_options *)) {
    if (!egi_alive(name, 0, x)) return NULL;
    if (x->rank != 3) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: needs (N, W, C), not %s", name, egi_describe(x));
    o.size[1] = egi_option_or(o.size[0], 2);
    o.strides[1] = egi_option_or(o.strides[0], o.size[1]);
    o.size[0] = o.strides[0] = 1;
    eg_squeeze_options height;
    memset(&height, 0, sizeof height);
    height.axes.count = 1;
    height.axes.axes[0] = 1;
    eg_tensor *y = pool(name, eg_expand_dims(x, 1), &o);
    return y ? (eg_squeeze)(y, height) : NULL;
}
EAGER_API eg_tensor *(eg_max_pool2d)(eg_tensor *x, eg_pool_options o) { EGI_AS("max_pool2d", egi_max_pool("max_pool2d", x, &o)); }
EAGER_API eg_tensor *(eg_avg_pool2d)(eg_tensor *x, eg_pool_options o) { EGI_AS("avg_pool2d", egi_avg_pool("avg_pool2d", x, &o)); }
EAGER_API eg_tensor *(eg_max_pool1d)(eg_tensor *x, eg_pool_options o) { EGI_AS("max_pool1d", egi_pool_1d("max_pool1d", x, o, egi_max_pool)); }
EAGER_API eg_tensor *(eg_avg_pool1d)(eg_tensor *x, eg_pool_options o) { EGI_AS("avg_pool1d", egi_pool_1d("avg_pool1d", x, o, egi_avg_pool)); }

// ---- resize: along each axis, two rows of the source weighted

static eg_tensor *egi_resize_axis(eg_tensor *x, int axis, int64_t to, bool nearest) {
    int64_t from = x->dims[axis];
    size_t n = (size_t)(to ? to : 1);
    if (to > INT64_MAX / 32) { egi_no_memory("resize", to); return NULL; }
    int64_t *low = (int64_t *)egi_alloc(n * (2 * sizeof(int64_t) + sizeof(double)));
    if (!low) { egi_no_memory("resize", to * 24); return NULL; }
    int64_t *high = low + n;
    double *weight = (double *)(void *)(high + n);
    for (int64_t i = 0; i < to; i++) {
        double at = ((double)i + 0.5) * (double)from / (double)to - (nearest ? 0 : 0.5), whole = floor(at);
        low[i] = egi_saturate((int64_t)whole, 0, from - 1);
        high[i] = egi_saturate((int64_t)whole + 1, 0, from - 1);
        weight[i] = at - whole;
    }
    eg_shape list = { 1, { to } }, column = { 1, { to } };
    for (int i = axis + 1; i < x->rank; i++) column.dims[column.rank++] = 1;
    eg_gather_options along;
    memset(&along, 0, sizeof along);
    along.axis = axis;
    const char *device = eg_device_of(x);
    eg_tensor *y = (eg_gather)(x, eg_to(eg_from_data(EG_INT64, list, low), device), along);
    if (!nearest && y) {
        eg_tensor *w = eg_cast(eg_to(eg_from_data(EG_FLOAT64, column, weight), device), (eg_dtype)x->dtype);
        eg_tensor *next = (eg_gather)(x, eg_to(eg_from_data(EG_INT64, list, high), device), along);
        y = (eg_add)(y, (eg_mul)((eg_sub)(next, y), w));
    }
    egi_free(low);
    return y;
}
static eg_tensor *egi_compose_resize(eg_tensor *x, int64_t height, int64_t width, eg_resize_options o) {
    if (!egi_alive("resize", 0, x)) return NULL;
    if (x->rank != 4 || height < 0 || width < 0 || ((height || width) && (x->dims[1] == 0 || x->dims[2] == 0)))
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_resize: cannot make %s (needed: N, H, W, C) %lld x %lld", egi_describe(x), (long long)height,
                                     (long long)width);
    if (!egi_needs_float("resize", x)) return NULL;
    if (o.method != EG_BILINEAR && o.method != EG_NEAREST)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_resize: there is no method %d", (int)o.method);
    x = egi_resize_axis(x, 1, height, o.method == EG_NEAREST);
    return x ? egi_resize_axis(x, 2, width, o.method == EG_NEAREST) : NULL;
}
EAGER_API eg_tensor *(eg_resize)(eg_tensor *x, int64_t height, int64_t width, eg_resize_options o) {
    EGI_AS("resize", egi_compose_resize(x, height, width, o));
}

// ---- einsum: letters to axes, then transposes, sums and one batched product for each pair

enum { EGI_LETTERS = 64, EGI_ELLIPSIS = 52 };       // a-z, A-Z, then the axes of "..." counted from its right end
typedef struct egi_term { int n; unsigned char letters[EG_MAX_RANK]; } egi_term;
static int egi_letter(char ch) { return ch >= 'a' && ch <= 'z' ? ch - 'a' : ch >= 'A' && ch <= 'Z' ? ch - 'A' + 26 : -1; }
// Reads one term, up to a comma, an arrow or the end; dots stands for how many axes (-1: not known yet).
static const char *egi_einsum_term(const char *p, int rank, int dots, egi_term *term, const char *equation) {
    int letters = 0;
    bool ellipsis = false;
    term->n = 0;
    for (const char *q = p; *q && *q != ',' && *q != '-'; q++) if (egi_letter(*q) >= 0) letters++;
    for (; *p && *p != ',' && *p != '-'; p++) {
        int letter = egi_letter(*p), many = 0;
        if (*p == ' ') continue;
        if (*p == '.') {
            if (ellipsis || p[1] != '.' || p[2] != '.') break;
            ellipsis = true;
            p += 2;
            many = rank >= 0 ? rank - letters : dots;
            if (many < 0 || term->n + many > EG_MAX_RANK) { letters = -1; break; }
            for (int i = 0; i < many; i++) term->letters[term->n++] = (unsigned char)(EGI_ELLIPSIS + many - 1 - i);
            continue;
        }
        if (letter < 0 || term->n >= EG_MAX_RANK) break;
        term->letters[term->n++] = (unsigned char)letter;
    }
    if (letters < 0 || (*p && *p != ',' && *p != '-') || (rank >= 0 && term->n != rank)) {
        if (rank >= 0 && letters >= 0 && (!*p || *p == ',' || *p == '-'))
            egi_fail(EG_ERROR_SHAPE, "eg_einsum: a term of \"%s\" names %d axes, but its operand has %d", equation, term->n, rank);
        else egi_fail(EG_ERROR_ARGUMENT, "eg_einsum: \"%s\" is no equation such as \"ij,jk->ik\" (at position %d)", equation, (int)(p - equation));
        return NULL;
    }
    return p;
}
static int egi_term_find(const egi_term *t, int letter) {
    for (int i = 0; i < t->n; i++) if (t->letters[i] == letter) return i;
    return -1;
}
// A letter that stands twice in one term: the diagonal of its two axes, as every (n + 1)th element of both as one.
static eg_tensor *egi_einsum_diagonal(eg_tensor *x, egi_term *t) {
    for (int i = 0; x && i < t->n; i++)
        for (int j = i + 1; x && j < t->n; j++) {
            if (t->letters[i] != t->letters[j]) continue;
            int64_t n = x->dims[i];
            if (x->dims[j] != n)
                return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_einsum: one letter stands for axes of %lld and %lld of %s", (long long)n,
                                             (long long)x->dims[j], egi_describe(x));
            egi_perm p;
            eg_shape flat = { 0, { 0 } }, begin = { 0, { 0 } }, end = begin, step = begin;
            int k = 0;
            egi_term rest = { 0, { 0 } };
            for (int d = 0; d < t->n; d++)
                if (d != i && d != j) {
                    rest.letters[rest.n++] = t->letters[d];
                    flat.dims[flat.rank++] = x->dims[d];
                    p.perm[k++] = d;
                }
            p.perm[k] = i;
            p.perm[k + 1] = j;
            rest.letters[rest.n++] = t->letters[i];
            flat.dims[flat.rank++] = n * n;
            begin.rank = end.rank = step.rank = flat.rank;
            for (int d = 0; d < flat.rank; d++) { begin.dims[d] = 0; end.dims[d] = EG_END; step.dims[d] = d == flat.rank - 1 ? n + 1 : 1; }
            x = eg_strided_slice(eg_reshape(egi_transpose(x, &p), flat), begin, end, step);
            *t = rest;
            i = -1;
            break;
        }
    return x;
}
static eg_tensor *egi_einsum_sum(eg_tensor *x, egi_term *t, uint64_t keep) {
    eg_reduce_options o;
    egi_term rest = { 0, { 0 } };
    memset(&o, 0, sizeof o);
    for (int i = 0; i < t->n; i++) {
        if (keep >> t->letters[i] & 1) rest.letters[rest.n++] = t->letters[i];
        else o.axes.axes[o.axes.count++] = i;
    }
    *t = rest;
    return o.axes.count ? (eg_reduce_sum)(x, o) : x;
}
static eg_tensor *egi_einsum_order(eg_tensor *x, egi_term *t, const egi_term *order) {
    egi_perm p;
    if (!x) return NULL;
    for (int i = 0; i < order->n; i++) p.perm[i] = egi_term_find(t, order->letters[i]);
    *t = *order;
    for (int i = 0; i < order->n; i++) if (p.perm[i] != i) return egi_transpose(x, &p);
    return x;
}
// Where an axis of 1 meets a longer one it is stretched.
static eg_tensor *egi_einsum_stretch(eg_tensor *x, const egi_term *t, const int64_t *sizes) {
    if (!x) return NULL;
    eg_shape s = egi_shape(x);
    bool same = true;
    for (int i = 0; i < t->n; i++) { same = same && s.dims[i] == sizes[t->letters[i]]; s.dims[i] = sizes[t->letters[i]]; }
    return same ? x : eg_broadcast_to(x, s);
}
static eg_tensor *egi_einsum_pair(eg_tensor *a, egi_term *ta, eg_tensor *b, egi_term *tb, uint64_t keep, const int64_t *sizes) {
    uint64_t in_a = 0, in_b = 0;
    for (int i = 0; i < ta->n; i++) in_a |= (uint64_t)1 << ta->letters[i];
    for (int i = 0; i < tb->n; i++) in_b |= (uint64_t)1 << tb->letters[i];
    a = egi_einsum_sum(a, ta, keep | in_b);
    b = egi_einsum_sum(b, tb, keep | in_a);
    egi_term order_a = { 0, { 0 } }, order_b = order_a, out = order_a, free_b = order_a, sum = order_a;
    int64_t batch = 1, m = 1, n = 1, k = 1;
    bool fits = true;
    for (int i = 0; i < ta->n; i++) {
        int l = ta->letters[i];
        if (!(in_b >> l & 1)) continue;
        if (keep >> l & 1) { out.letters[out.n++] = (unsigned char)l; fits = fits && egi_checked_product(batch, sizes[l], &batch); }
        else { sum.letters[sum.n++] = (unsigned char)l; fits = fits && egi_checked_product(k, sizes[l], &k); }
    }
    order_a = order_b = out;
    for (int i = 0; i < ta->n; i++)
        if (!(in_b >> ta->letters[i] & 1)) {
            order_a.letters[order_a.n++] = ta->letters[i];
            fits = fits && egi_checked_product(m, sizes[ta->letters[i]], &m);
        }
    for (int i = 0; i < tb->n; i++)
        if (!(in_a >> tb->letters[i] & 1)) {
            free_b.letters[free_b.n++] = tb->letters[i];
            fits = fits && egi_checked_product(n, sizes[tb->letters[i]], &n);
        }
    if (!fits) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_einsum: an intermediate result has more elements than 64 bits count");
    if (order_a.n + free_b.n > EG_MAX_RANK)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_einsum: an intermediate result has more than %d axes", EG_MAX_RANK);
    egi_term result = order_a;
    for (int i = 0; i < free_b.n; i++) result.letters[result.n++] = free_b.letters[i];
    for (int i = 0; i < sum.n; i++) { order_a.letters[order_a.n++] = sum.letters[i]; order_b.letters[order_b.n++] = sum.letters[i]; }
    for (int i = 0; i < free_b.n; i++) order_b.letters[order_b.n++] = free_b.letters[i];
    a = egi_einsum_stretch(egi_einsum_order(a, ta, &order_a), &order_a, sizes);
    b = egi_einsum_stretch(egi_einsum_order(b, tb, &order_b), &order_b, sizes);
    eg_shape sa = { 3, { batch, m, k } }, sb = { 3, { batch, k, n } }, sy = { result.n, { 0 } };
    for (int i = 0; i < result.n; i++) sy.dims[i] = sizes[result.letters[i]];
    *ta = result;
    return a && b ? eg_reshape(egi_matmul(eg_reshape(a, sa), false, eg_reshape(b, sb), false), sy) : NULL;
}
static eg_tensor *egi_compose_einsum(const char *equation, eg_tensor *const *operands, int n) {
    egi_term terms[16], out = { 0, { 0 } };
    int64_t sizes[EGI_LETTERS];
    int count[EGI_LETTERS] = { 0 }, dots = 0;
    uint64_t keep = 0;
    if (!equation || n < 1 || n > 16 || !operands)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_einsum: an equation and 1 to 16 operands are needed");
    for (int i = 0; i < EGI_LETTERS; i++) sizes[i] = -1;
    const char *p = equation;
    for (int i = 0; i < n; i++) {
        if (!egi_alive("einsum", i, operands[i])) return NULL;
        if (!(p = egi_einsum_term(p, operands[i]->rank, -1, &terms[i], equation))) return NULL;
        for (int d = 0; d < terms[i].n; d++) {
            int l = terms[i].letters[d];
            int64_t size = operands[i]->dims[d];
            count[l]++;
            if (l >= EGI_ELLIPSIS && l - EGI_ELLIPSIS + 1 > dots) dots = l - EGI_ELLIPSIS + 1;
            if (sizes[l] < 0 || sizes[l] == 1) sizes[l] = size;
            else if (size != sizes[l] && size != 1)
                return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_einsum: in \"%s\" one letter stands for axes of %lld and %lld (axis %d of %s)",
                                             equation, (long long)sizes[l], (long long)size, d, egi_describe(operands[i]));
        }
        if (i < n - 1 ? *p != ',' : *p == ',')
            return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_einsum: \"%s\" does not name %d operands", equation, n);
        if (i < n - 1) p++;
    }
    if (*p == '-') {
        if (p[1] != '>' || !(p = egi_einsum_term(p + 2, -1, dots, &out, equation)) || *p) {
            if (egi_this.error == EG_OK || (p && *p)) egi_fail(EG_ERROR_ARGUMENT, "eg_einsum: \"%s\" is no equation", equation);
            return NULL;
        }
    } else {
        for (int i = 0; i < dots; i++) out.letters[out.n++] = (unsigned char)(EGI_ELLIPSIS + dots - 1 - i);
        for (int l = 0; l < EGI_ELLIPSIS; l++) {
            int sorted = l < 26 ? l + 26 : l - 26;      // capitals come first, as in ASCII
            if (count[sorted] != 1) continue;
            if (out.n == EG_MAX_RANK)
                return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_einsum: the result of \"%s\" has more than %d axes", equation, EG_MAX_RANK);
            out.letters[out.n++] = (unsigned char)sorted;
        }
    }
    for (int i = 0; i < out.n; i++) {
        if (!count[out.letters[i]] || keep >> out.letters[i] & 1)
            return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_einsum: a letter of the result of \"%s\" is in no operand, or stands twice",
                                         equation);
        keep |= (uint64_t)1 << out.letters[i];
    }
    eg_tensor *y = egi_einsum_diagonal(operands[0], &terms[0]);
    for (int i = 1; i < n && y; i++) {
        uint64_t later = keep;
        for (int j = i + 1; j < n; j++) for (int d = 0; d < terms[j].n; d++) later |= (uint64_t)1 << terms[j].letters[d];
        eg_tensor *b = egi_einsum_diagonal(operands[i], &terms[i]);
        y = b ? egi_einsum_pair(y, &terms[0], b, &terms[i], later, sizes) : NULL;
    }
    if (!y) return NULL;
    y = egi_einsum_sum(y, &terms[0], keep);
    y = egi_einsum_order(y, &terms[0], &out);
    return y == operands[0] ? eg_identity(y) : y;
}
EAGER_API eg_tensor *eg_einsum(const char *equation, eg_tensor *const *operands, int n) {
    EGI_AS("einsum", egi_compose_einsum(equation, operands, n));
}

// ---- assertions

static bool egi_assert(const char *name, eg_tensor *a, eg_tensor *b, double tolerance) {
    if (!egi_alive(name, 0, a) || !egi_alive(name, 1, b)) return false;
    if (a->dtype != b->dtype) return egi_fail(EG_ERROR_ASSERT, "eg_%s: dtypes differ: %s and %s", name, egi_describe(a), egi_describe(b));
    if (!egi_same_shape(a, b)) return egi_fail(EG_ERROR_ASSERT, "eg_%s: shapes differ: %s and %s", name, egi_describe(a), egi_describe(b));
    const char *p = (const char *)eg_data(a), *q = (const char *)eg_data(b);
    if (!p || !q) return false;
    int size = egi_dtypes[a->dtype].size;
    char list[256];
    size_t at = 0;
    int64_t different = 0;
    for (int64_t i = 0; i < a->size; i++) {
        double u = egi_load(a->dtype, p + i * size), v = egi_load(a->dtype, q + i * size);
        bool equal = tolerance > 0          ? fabs(u - v) <= tolerance || u == v
                     : a->dtype == EG_INT64 ? egi_load_int(EG_INT64, p + i * size) == egi_load_int(EG_INT64, q + i * size)
                                            : u == v;
        if (equal || (u != u && v != v)) continue;
        if (different++ < 3) {
            eg_shape where = egi_shape(a);
            int64_t rest = i;
            for (int d = a->rank - 1; d >= 0; d--) { where.dims[d] = rest % a->dims[d]; rest /= a->dims[d]; }
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s: %.9g against %.9g", different > 1 ? "; " : "", egi_show(where), u, v);
            if (at >= sizeof list) at = sizeof list - 1;
        }
    }
    if (!different) return true;
    if (tolerance > 0)
        return egi_fail(EG_ERROR_ASSERT, "eg_%s: %s and %s differ by more than %g in %lld of %lld elements: at %s", name, egi_describe(a),
                        egi_describe(b), tolerance, (long long)different, (long long)a->size, list);
    return egi_fail(EG_ERROR_ASSERT, "eg_%s: %s == %s does not hold for %lld of %lld elements: at %s", name, egi_describe(a), egi_describe(b),
                    (long long)different, (long long)a->size, list);
}
EAGER_API bool eg_assert_equal(eg_tensor *a, eg_tensor *b) { return egi_assert("assert_equal", a, b, 0); }
EAGER_API bool eg_assert_near(eg_tensor *a, eg_tensor *b, double tolerance) { return egi_assert("assert_near", a, b, tolerance); }
EAGER_API bool eg_assert_shape(eg_tensor *x, eg_shape shape) {
    if (!egi_alive("assert_shape", 0, x)) return false;
    bool fits = x->rank == shape.rank;
    for (int i = 0; fits && i < shape.rank; i++) fits = shape.dims[i] == -1 || shape.dims[i] == x->dims[i];
    return fits || egi_fail(EG_ERROR_ASSERT, "eg_assert_shape: %s has not the shape %s", egi_describe(x), egi_show(shape));
}

// ---- all rows, for who wants to walk over them

static const egi_op *const egi_other_ops[] = { &egi_op_identity,
                                               &egi_op_stop_gradient,
                                               &egi_op_reshape,
                                               &egi_op_transpose,
                                               &egi_op_broadcast_to,
                                               &egi_op_slice,
                                               &egi_op_pad,
                                               &egi_op_reverse,
                                               &egi_op_cast,
                                               &egi_op_concat,
                                               &egi_op_reduce_sum,
                                               &egi_op_reduce_mean,
                                               &egi_op_reduce_max,
                                               &egi_op_reduce_min,
                                               &egi_op_norm,
                                               &egi_op_reduce_all,
                                               &egi_op_reduce_any,
                                               &egi_op_argmax,
                                               &egi_op_argmin,
                                               &egi_op_cumsum,
                                               &egi_op_softmax,
                                               &egi_op_log_softmax,
                                               &egi_op_argsort,
                                               &egi_op_sparse_softmax_cross_entropy_with_logits,
                                               &egi_op_matmul,
                                               &egi_op_gather,
                                               &egi_op_scatter_add,
                                               &egi_op_conv2d,
                                               &egi_op_conv2d_input,
                                               &egi_op_conv2d_filter,
                                               &egi_op_max_pool_index,
                                               &egi_op_avg_pool2d,
                                               &egi_op_avg_pool2d_grad };
enum { EGI_OTHER_OPS = (int)(sizeof egi_other_ops / sizeof egi_other_ops[0]) };

// ---- random tensors

static eg_tensor *egi_draw(const char *name, eg_dtype dtype, eg_shape shape, egi_random_parameters *p) {
    if (!egi_shape_valid(name, shape, dtype)) return NULL;
    egi_random state = { egi_this.random.seed, egi_this.random.counter };
    eg_tensor *x = egi_new(name, egi_backend_here(), dtype, &shape);
    egi_args args;
    if (!x) return NULL;
    p->seed = state.seed;
    p->counter = state.counter;
    memset(&args, 0, sizeof args);
    args.out[0] = x;
    args.parameters = p;
    if (x->size && !egi_launch(egi_backend_of(x), EGI_RANDOM, &args)) { egi_object_release(&x->object); return NULL; }
    bool wide = dtype == EG_FLOAT64 || p->kind == EGI_INTEGERS || p->kind == EGI_PERMUTATION;
    egi_random_advance(&state, x->size, wide ? EGI_RANDOM_PER_BLOCK_64 : EGI_RANDOM_PER_BLOCK_32);
    egi_this.random.counter = state.counter;
    return egi_own(x);
}
static bool egi_random_float(const char *name, eg_dtype dtype) {
    return dtype == EG_FLOAT32 || dtype == EG_FLOAT64 ||
           egi_fail(EG_ERROR_DTYPE, "eg_%s: makes float32 or float64, not %s", name, eg_dtype_name(dtype));
}
EAGER_API eg_tensor *(eg_random_normal)(eg_shape shape, eg_random_options o) {
    egi_random_parameters p = { EGI_NORMAL, 0, 0, egi_or(o.mean, 0), egi_or(o.stddev, 1), 0, 0 };
    if (!(p.b >= 0)) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_random_normal: stddev %g is negative", p.b);
    return egi_random_float("random_normal", o.dtype) ? egi_draw("random_normal", o.dtype, shape, &p) : NULL;
}
EAGER_API eg_tensor *(eg_random_truncated_normal)(eg_shape shape, eg_random_options o) {
    egi_random_parameters p = { EGI_TRUNCATED_NORMAL, 0, 0, egi_or(o.mean, 0), egi_or(o.stddev, 1), 0, 0 };
    if (!(p.b >= 0)) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_random_truncated_normal: stddev %g is negative", p.b);
    return egi_random_float("random_truncated_normal", o.dtype) ? egi_draw("random_truncated_normal", o.dtype, shape, &p) : NULL;
}
EAGER_API eg_tensor *(eg_random_uniform)(eg_shape shape, eg_random_options o) {
    egi_random_parameters p = { EGI_UNIFORM, 0, 0, egi_or(o.minval, 0), o.minval == 0 && o.maxval == 0 ? 1 : egi_or(o.maxval, 0), 0, 0 };
    double most = o.dtype == EG_FLOAT32 ? (double)FLT_MAX : HUGE_VAL;
    if (!(p.a <= p.b)) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_random_uniform: minval %g is not below maxval %g", p.a, p.b);
    if (!(p.b - p.a < HUGE_VAL) || fabs(p.a) > most || fabs(p.b) > most)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_random_uniform: the range from %g to %g is too wide for %s", p.a, p.b,
                                     eg_dtype_name(o.dtype));
    return egi_random_float("random_uniform", o.dtype) ? egi_draw("random_uniform", o.dtype, shape, &p) : NULL;
}
EAGER_API eg_tensor *(eg_random_bernoulli)(eg_shape shape, eg_random_options o) {
    egi_random_parameters p = { EGI_BERNOULLI, 0, 0, egi_or(o.probability, 0.5), 0, 0, 0 };
    if (!(p.a >= 0 && p.a <= 1))
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_random_bernoulli: the probability %g is not between 0 and 1", p.a);
    return egi_draw("random_bernoulli", EG_BOOL, shape, &p);
}
EAGER_API eg_tensor *eg_random_integers(eg_shape shape, int64_t low, int64_t high) {
    egi_random_parameters p = { EGI_INTEGERS, 0, 0, 0, 0, low, high };
    if (low >= high)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_random_integers: there is none in [%lld, %lld)", (long long)low, (long long)high);
    return egi_draw("random_integers", low >= INT32_MIN && high - 1 <= INT32_MAX ? EG_INT32 : EG_INT64, shape, &p);
}
EAGER_API eg_tensor *eg_random_permutation(int64_t n) {
    egi_random_parameters p = { EGI_PERMUTATION, 0, 0, 0, 0, 0, 0 };
    eg_shape shape = { 1, { n } };
    return egi_draw("random_permutation", EG_INT64, shape, &p);
}
EAGER_API void eg_seed(uint64_t seed) { egi_this.random.seed = seed; egi_this.random.counter = 0; }
EAGER_API eg_random_state eg_random_get_state(void) { return egi_this.random; }
EAGER_API void eg_random_set_state(eg_random_state state) { egi_this.random = state; }

// ---- printing tensors

static void egi_print_text(const char *text) {
    egi_lock();
    void (*print)(const char *, void *) = egi_shared.print;
    void *user = egi_shared.print_user;
    egi_unlock();
    if (print) print(text ? text : "", user);
#ifndef EAGER_NO_STDIO
    else if (text) fputs(text, stdout);
#endif
}
// Hands a text out as snprintf does, and frees it.
static int64_t egi_text_deliver(const char *function, egi_text *out, char *text, size_t capacity) {
    int64_t size = out->failed ? -1 : (int64_t)out->size;
    if (out->failed) egi_no_memory(function, 0);
    if (capacity && text) {
        size_t n = out->failed ? 0 : out->size < capacity ? out->size : capacity - 1;
        if (n) memcpy(text, out->data, n);
        text[n] = 0;
    }
    egi_text_free(out);
    return size;
}
static bool egi_text_tensor(const char *name, eg_tensor *x, egi_text *out) {
    static const signed char kinds[] = { 0, 1, 2, 2, 3, 4, 5, 6 };     // ORDER eg_dtype: as egi_format_array numbers them
    memset(out, 0, sizeof *out);
    if (!egi_alive(name, 0, x)) return false;
    const void *data = eg_data(x);
    void *converted = NULL;
    if (!data && x->size) return false;
    int wide = x->dtype == EG_INT32 || x->dtype == EG_UINT8 ? 8 : x->dtype == EG_FLOAT16 || x->dtype == EG_BFLOAT16 ? 4 : 0;
    if (wide && x->size) {
        converted = egi_alloc((size_t)x->size * (size_t)wide);
        if (!converted) return egi_no_memory(name, x->size * wide);
        egi_convert(x->dtype, data, wide == 4 ? EG_FLOAT32 : EG_INT64, converted, x->size);
        data = converted;
    }
    egi_format_array(out, kinds[x->dtype], data, x->rank, x->dims);
    egi_free(converted);
    char shape[EG_SHAPE_TEXT], tail[EG_SHAPE_TEXT + 64];
    snprintf(tail, sizeof tail, "  shape=%s dtype=%s", eg_shape_text(egi_shape(x), shape), egi_dtypes[x->dtype].name);
    egi_text_string(out, tail);
    if (!out->failed) return true;
    egi_text_free(out);
    return egi_no_memory(name, 0);
}
EAGER_API void eg_print(eg_tensor *x) {
    egi_text text;
    if (!egi_text_tensor("print", x, &text)) return;
    egi_text_string(&text, "\n");
    if (text.failed) egi_no_memory("print", 0);
    else egi_print_text(text.data);
    egi_text_free(&text);
}
EAGER_API int64_t eg_format(eg_tensor *x, char *text, size_t capacity) {
    egi_text out;
    if (capacity && text) text[0] = 0;
    return egi_text_tensor("format", x, &out) ? egi_text_deliver("format", &out, text, capacity) : -1;
}
#ifndef EAGER_NO_STDIO
EAGER_API void eg_fprint(FILE *stream, eg_tensor *x) {
    egi_text text;
    if (!stream) { egi_fail(EG_ERROR_NULL, "eg_fprint: the stream is NULL"); return; }
    if (!egi_text_tensor("fprint", x, &text)) return;
    fprintf(stream, "%s\n", text.data);
    egi_text_free(&text);
}
#endif

//# 25  THE TAPE ---------------------------------------------------------------
// Idea: running an op also writes one line: the op, where its inputs came from,
// and the values its gradient will read. Reading the lines backwards, each
// hands its upstream gradient to its inputs; where two lines meet, gradients
// add. Nothing else. A tape knows tensors by their ids: a slot for each.
// Read first: 20, 21.  Entry: eg_tape_gradients_from().  Proof: tests/tape.c

typedef struct egi_slot {
    int64_t id;
    int32_t record;            // the line that made it, -1: watched
    int8_t dtype;
    eg_shape shape;
    eg_tensor *variable;       // a reference, if it is one
} egi_slot;
typedef struct egi_line {      // one op that ran; everything in one block
    const egi_op *op;
    int n, n_out;
    int32_t *slots;            // of the inputs (-1: not watched), then of the outputs
    eg_tensor **in, **out;     // the values saved, NULL where not needed
    eg_tensor **saved;         // what a custom forward kept, or NULL
    void *attr;
} egi_line;
struct eg_tape {
    egi_object object;
    eg_tape *outer;
    bool persistent, listed, recording, used, watch_variables, zeros;
    int reading;               // gradients being computed from it now
    int paused;                // how deep recording was paused when it began: deeper pauses are meant for it
    egi_context *owner;
    int64_t *keys;             // hash map from id to slot, open addressing; 0 is free
    int32_t *values;
    int64_t map_size;
    egi_slot *slots;
    int64_t n_slots, slot_capacity;
    egi_line **lines;
    int64_t n_lines, line_capacity;
};

static int64_t egi_hash(const eg_tape *t, int64_t id) { return (int64_t)(((uint64_t)id * 0x9E3779B97F4A7C15u) >> 20) & (t->map_size - 1); }
static int32_t egi_find_slot(const eg_tape *t, int64_t id) {
    if (!t->map_size) return -1;
    for (int64_t i = egi_hash(t, id);; i = (i + 1) & (t->map_size - 1)) {
        if (t->keys[i] == id) return t->values[i];
        if (t->keys[i] == 0) return -1;
    }
}
static void egi_map_put(eg_tape *t, int64_t id, int32_t slot) {
    int64_t i = egi_hash(t, id);
    while (t->keys[i]) i = (i + 1) & (t->map_size - 1);
    t->keys[i] = id;
    t->values[i] = slot;
}
// A new slot; -1 without memory.
static int32_t egi_add_slot(eg_tape *t, const eg_tensor *x, int32_t record) {
    void *slots = t->slots;
    if (t->n_slots >= INT32_MAX - 1 || !egi_grow(&slots, &t->slot_capacity, t->n_slots + 1, sizeof *t->slots)) return -1;
    t->slots = (egi_slot *)slots;
    if ((t->n_slots + 1) * 2 > t->map_size) {
        int64_t size = t->map_size ? t->map_size * 2 : 32;
        int64_t *keys = (int64_t *)egi_alloc((size_t)size * (sizeof *keys + sizeof *t->values));
        if (!keys) return -1;
        memset(keys, 0, (size_t)size * sizeof *keys);
        egi_free(t->keys);
        t->keys = keys;
        t->values = (int32_t *)(void *)(keys + size);
        t->map_size = size;
        for (int64_t i = 0; i < t->n_slots; i++) egi_map_put(t, t->slots[i].id, (int32_t)i);
    }
    egi_slot *s = &t->slots[t->n_slots];
    s->id = x->id;
    s->record = record;
    s->dtype = x->dtype;
    s->shape.rank = x->rank;
    for (int i = 0; i < x->rank; i++) s->shape.dims[i] = x->dims[i];
    s->variable = NULL;
    egi_map_put(t, x->id, (int32_t)t->n_slots);
    return (int32_t)t->n_slots++;
}

static void egi_let_go(eg_tensor **list, int n) {
    for (int i = 0; i < n; i++)
        if (list[i]) { egi_object_release(&list[i]->object); list[i] = NULL; }
}
// Lets go of the values a line saved; the line stays, to tell who came from whom.
static void egi_line_forget(egi_line *line) {
    egi_let_go(line->in, line->n);
    egi_let_go(line->out, line->n_out);
    if (line->saved) egi_let_go(line->saved, EG_MAX_SAVED);
}
static void egi_line_free(egi_line *line) {
    egi_line_forget(line);
    egi_free(line);
}
static void egi_tape_clear(eg_tape *t) {
    for (int64_t i = t->n_lines - 1; i >= 0; i--) egi_line_free(t->lines[i]);
    for (int64_t i = 0; i < t->n_slots; i++) if (t->slots[i].variable) egi_object_release(&t->slots[i].variable->object);
    egi_free(t->lines);
    egi_free(t->slots);
    egi_free(t->keys);
    t->lines = NULL;
    t->slots = NULL;
    t->keys = NULL;
    t->n_lines = t->line_capacity = t->n_slots = t->slot_capacity = t->map_size = 0;
}
static void egi_tape_unlist(eg_tape *t) {
    if (!t->listed) return;
    eg_tape **at = &egi_this.tapes;
    while (*at && *at != t) at = &(*at)->outer;
    if (*at) *at = t->outer;
    t->listed = false;
    if (t->recording) egi_this.recording--;
    t->recording = false;
}
static void egi_tape_destroy(eg_tape *t) {
    egi_tape_unlist(t);
    egi_tape_clear(t);
    t->object.kind = EGI_DEAD;
    egi_free(t);
}
static bool egi_tape_alive(const char *function, const eg_tape *t) {
    if (!t) return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_%s: the tape is NULL", function) : false;
    if (t->object.kind != EGI_TAPE) return egi_fail(EG_ERROR_STATE, "eg_%s: the tape was used after its scope ended", function);
    return t->owner == &egi_this || egi_fail(EG_ERROR_TAPE, "eg_%s: the tape belongs to another thread", function);
}

static eg_tape *egi_tape_new(bool persistent) {
    eg_tape *t = (eg_tape *)egi_alloc(sizeof *t);
    if (!t) { egi_no_memory("tape_begin", (int64_t)sizeof *t); return NULL; }
    memset(t, 0, sizeof *t);
    t->object.refs = 1;
    t->object.kind = EGI_TAPE;
    t->persistent = persistent;
    t->watch_variables = true;
    t->paused = egi_this.paused;
    t->owner = &egi_this;
    if (!egi_stack_push((uintptr_t)t)) { egi_free(t); egi_no_memory("tape_begin", 0); return NULL; }
    t->outer = egi_this.tapes;
    egi_this.tapes = t;
    t->listed = t->recording = true;
    egi_this.recording++;
    return t;
}
EAGER_API eg_tape *eg_tape_begin(void) { return egi_tape_new(false); }
EAGER_API eg_tape *eg_tape_begin_persistent(void) { return egi_tape_new(true); }
EAGER_API bool eg_tape_watch(eg_tape *t, eg_tensor *x) {
    if (!egi_tape_alive("tape_watch", t) || !egi_alive("tape_watch", 1, x)) return false;
    if (t->used) return egi_fail(EG_ERROR_TAPE, "eg_tape_watch: the tape has given its gradients and is empty; begin a new one");
    if (x->flags & EGI_NUMBER)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_tape_watch: a plain number cannot be watched: make it a tensor, as eg_scalar does");
    if (x->dtype != EG_FLOAT32 && x->dtype != EG_FLOAT64)
        return egi_fail(EG_ERROR_DTYPE, "eg_tape_watch: %s cannot be watched: only float32 and float64 have gradients", egi_describe(x));
    if (egi_find_slot(t, x->id) >= 0) return true;
    int32_t slot = egi_add_slot(t, x, -1);
    if (slot < 0) return egi_no_memory("tape_watch", 0);
    if (x->flags & EGI_VARIABLE) t->slots[slot].variable = eg_retain(x);
    return true;
}
EAGER_API bool eg_tape_stop(eg_tape *t) {
    if (!egi_tape_alive("tape_stop", t)) return false;
    if (!t->recording) return egi_fail(EG_ERROR_TAPE, "eg_tape_stop: the tape is not recording");
    t->recording = false;
    egi_this.recording--;
    return true;
}
EAGER_API bool eg_tape_resume(eg_tape *t) {
    if (!egi_tape_alive("tape_resume", t)) return false;
    if (t->used) return egi_fail(EG_ERROR_TAPE, "eg_tape_resume: the tape has given its gradients and is empty; begin a new one");
    if (t->recording) return egi_fail(EG_ERROR_TAPE, "eg_tape_resume: the tape is recording already");
    t->recording = true;
    egi_this.recording++;
    return true;
}
EAGER_API bool eg_tape_reset(eg_tape *t) {
    if (!egi_tape_alive("tape_reset", t)) return false;
    if (t->reading) return egi_fail(EG_ERROR_TAPE, "eg_tape_reset: a gradient is being computed from this tape");
    egi_tape_clear(t);
    t->used = false;
    t->paused = egi_this.paused;
    if (!t->listed) { t->outer = egi_this.tapes; egi_this.tapes = t; t->listed = true; }
    if (!t->recording) { t->recording = true; egi_this.recording++; }
    return true;
}
EAGER_API bool eg_tape_watch_variables(eg_tape *t, bool on) {
    if (!egi_tape_alive("tape_watch_variables", t)) return false;
    bool former = t->watch_variables;
    t->watch_variables = on;
    return former;
}
EAGER_API bool eg_tape_unconnected_zeros(eg_tape *t, bool on) {
    if (!egi_tape_alive("tape_unconnected_zeros", t)) return false;
    bool former = t->zeros;
    t->zeros = on;
    return former;
}
EAGER_API int eg_tape_watched_variables(eg_tape *t, eg_tensor **variables, int capacity) {
    int count = 0;
    if (!egi_tape_alive("tape_watched_variables", t)) return 0;
    for (int64_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].variable) {
            if (count < capacity) variables[count] = t->slots[i].variable;
            count++;
        }
    return count;
}
EAGER_API bool eg_executing_eagerly(void) { return true; }
EAGER_API void eg_recording_pause(void) { egi_this.paused++; }
EAGER_API void eg_recording_unpause(void) {
    if (egi_this.paused == 0) return;
    egi_this.paused--;
    for (eg_tape *t = egi_this.tapes; t; t = t->outer) if (t->paused > egi_this.paused) t->paused = egi_this.paused;
}
static bool egi_recording_though_paused(void) {
    for (const eg_tape *t = egi_this.tapes; t; t = t->outer) if (t->recording && t->paused == egi_this.paused) return true;
    return false;
}

// ---- writing a line

// The value an op reads now, to be kept: of a variable a snapshot, known by the variable's id.
static eg_tensor *egi_snapshot(eg_tensor *x) {
    if (!(x->flags & EGI_VARIABLE)) return eg_retain(x);
    eg_tensor *y = egi_alias("variable", x);       // not its name: the tape may outlive the variable
    if (y) y->id = x->id;
    return y;
}
static unsigned egi_saves(const egi_op *op, int i) {
    if (op->uses) return op->plain[i < 3 ? i : 0] ? 0 : op->uses(i) & ~(unsigned)EGI_USES_G;
    return op->flags & EGI_USER ? 0 : op->saves[i < 3 ? i : 2];
}
static bool egi_record_on(eg_tape *t, const egi_op *op, eg_tensor *const *in, int n, const void *attr, eg_tensor *const *out, int n_out,
                          eg_tensor *const *saved, const int32_t *slots) {
    unsigned keep = 0;
    if (op->grad) for (int i = 0; i < n; i++) if (slots[i] >= 0 && egi_is_float(in[i]->dtype)) keep |= egi_saves(op, i);
    if (!op->grad) saved = NULL;
    size_t pointers = (size_t)(n + n_out) + (saved ? EG_MAX_SAVED : 0);
    size_t attr_size = op->flags & EGI_ATTR_PER_INPUT ? op->attr_size * (size_t)(n + 1) : op->attr_size;
    size_t attr_space = (attr_size + 7) / 8 * 8;           // the slots behind it must be aligned
    size_t bytes = sizeof(egi_line) + pointers * sizeof(eg_tensor *) + attr_space + (size_t)(n + n_out) * sizeof(int32_t);
    void *lines = t->lines;
    if (!egi_grow(&lines, &t->line_capacity, t->n_lines + 1, sizeof *t->lines)) return false;
    t->lines = (egi_line **)lines;
    egi_line *line = (egi_line *)egi_alloc(bytes);
    if (!line) return false;
    memset(line, 0, bytes);
    line->op = op;
    line->n = n;
    line->n_out = n_out;
    line->in = (eg_tensor **)(void *)(line + 1);
    line->out = line->in + n;
    line->saved = saved ? line->out + n_out : NULL;
    line->attr = (void *)(line->in + pointers);
    line->slots = (int32_t *)(void *)((char *)line->attr + attr_space);
    if (attr_size) memcpy(line->attr, attr, attr_size);
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        line->slots[i] = slots[i];
        if (i < 3 && keep >> i & 1) ok = (line->in[i] = egi_snapshot(in[i])) != NULL;
    }
    for (int i = 0; i < n_out && ok; i++) {
        if (keep & EGI_USES_Y) line->out[i] = eg_retain(out[i]);
        line->slots[n + i] = egi_add_slot(t, out[i], (int32_t)t->n_lines);
        ok = line->slots[n + i] >= 0;
    }
    for (int i = 0; saved && ok && i < EG_MAX_SAVED; i++) if (saved[i]) ok = (line->saved[i] = egi_snapshot(saved[i])) != NULL;
    if (!ok) { egi_line_free(line); return false; }
    t->lines[t->n_lines++] = line;
    return true;
}
static bool egi_record(const egi_op *op, eg_tensor *const *in, int n, const void *attr, eg_tensor *const *out, int n_out, eg_tensor *const *saved) {
    int32_t few[16], *slots = few;
    if (n > 16 && !(slots = (int32_t *)egi_alloc((size_t)n * sizeof *slots))) return egi_no_memory(op->name, 0);
    bool ok = true;
    for (eg_tape *t = egi_this.tapes; t && ok; t = t->outer) {
        bool any = false;
        if (!t->recording || t->paused < egi_this.paused) continue;
        for (int i = 0; i < n && ok; i++) {
            slots[i] = in[i]->flags & EGI_NUMBER ? -1 : egi_find_slot(t, in[i]->id);
            if (slots[i] < 0 && (in[i]->flags & EGI_TRAINABLE) && t->watch_variables) {
                slots[i] = egi_add_slot(t, in[i], -1);
                ok = slots[i] >= 0;
                if (ok) t->slots[slots[i]].variable = eg_retain(in[i]);
            }
            any = any || slots[i] >= 0;
        }
        if (ok && any) ok = egi_record_on(t, op, in, n, attr, out, n_out, saved, slots);
    }
    if (slots != few) egi_free(slots);
    return ok || egi_no_memory(op->name, 0);
}

// ---- reading the lines backwards

// Sums what broadcasting had spread: dx down to the shape of the input it belongs to.
static eg_tensor *egi_unbroadcast(eg_tensor *dx, const eg_shape *shape) {
    eg_reduce_options over;
    memset(&over, 0, sizeof over);
    int extra = dx->rank - shape->rank;
    bool same = extra == 0;
    for (int i = 0; i < dx->rank; i++) {
        if (i >= extra && dx->dims[i] == shape->dims[i - extra]) continue;
        over.axes.axes[over.axes.count++] = i;
        same = false;
    }
    if (same) return dx;
    if (over.axes.count) {
        over.keepdims = true;
        dx = (eg_reduce_sum)(dx, over);
    }
    return eg_reshape(dx, *shape);
}

// Adds dx to what the slot has already. Takes no reference of dx; the result is held by grads.
static bool egi_accumulate(eg_tensor **grads, int32_t slot, eg_tensor *dx) {
    if (!dx) return false;
    if (grads[slot]) {
        eg_tensor *sum = (eg_add)(grads[slot], dx);
        if (!sum) return false;
        egi_object_release(&grads[slot]->object);
        dx = sum;
    }
    grads[slot] = eg_retain(dx);
    return true;
}

// The gradient of a slice goes straight to its place in the sum: padded to the whole, n pieces of a tensor would cost n times its
// size. Only where no tape records it, and nobody else can see the sum change.
static bool egi_sum_is_ours(const eg_tensor *sum) {
    if (egi_recording()) return false;
    return !sum || (sum->object.refs == 1 && sum->buffer && sum->buffer->refs == 1 && sum->flags & EGI_CONTIGUOUS);
}
static bool egi_accumulate_slice(eg_tensor **sum, eg_backend *backend, const egi_slice_attr *a, eg_tensor *g) {
    bool first = !*sum;
    if (first && !egi_accumulate(sum, 0, egi_full_as("pad", backend, (eg_dtype)g->dtype, a->from, 0))) return false;
    eg_tensor *part = egi_own(egi_slice_view("slice", *sum, a));
    if (part && !first) g = (eg_add)(part, g);
    return part && g && egi_copy(g, part);
}

// One line: from the gradients of its outputs to those of its inputs.
static bool egi_backward_line(eg_tape *t, int64_t index, eg_tensor **grads, const unsigned char *wanted) {
    const egi_line *line = t->lines[index];
    eg_grad_context c;
    eg_tensor *upstream[EGI_MAX_OUT], *few_dx[8], **dx = few_dx;
    bool few_needed[8], *needed = few_needed, ok = true;
    eg_scope scope = eg_scope_begin();
    if (line->n > 8) {
        dx = (eg_tensor **)egi_alloc((size_t)line->n * (sizeof *dx + sizeof *needed));
        if (!dx) { eg_scope_end(scope); return egi_no_memory("tape_gradient", 0); }
        needed = (bool *)(void *)(dx + line->n);
    }
    eg_backend *backend = egi_backend_here();
    for (int i = 0; i < line->n_out; i++) if (grads[line->slots[line->n + i]]) backend = egi_backend_of(grads[line->slots[line->n + i]]);
    for (int i = 0; i < line->n_out && ok; i++) {
        int32_t slot = line->slots[line->n + i];
        upstream[i] = grads[slot] ? grads[slot] : egi_full_as("zeros", backend, (eg_dtype)t->slots[slot].dtype, t->slots[slot].shape, 0);
        ok = upstream[i] != NULL;
    }
    for (int i = 0; i < line->n; i++) {
        dx[i] = NULL;
        needed[i] = line->slots[i] >= 0 && wanted[line->slots[i]] && egi_is_float(t->slots[line->slots[i]].dtype);
    }
    memset(&c, 0, sizeof c);
    c.n_inputs = line->n;
    c.n_outputs = line->n_out;
    for (int i = 0; line->saved && i < EG_MAX_SAVED; i++) c.saved[i] = line->saved[i];
    c.upstream = upstream;
    c.inputs = line->in;
    c.outputs = line->out;
    c.needed = needed;
    c.attributes = line->attr;
    const char *outer = egi_this.gradient_of;
    egi_this.gradient_of = line->op->name;
    if (ok && line->op == &egi_op_slice && needed[0] && egi_sum_is_ours(grads[line->slots[0]]))
        ok = egi_accumulate_slice(&grads[line->slots[0]], backend, (const egi_slice_attr *)line->attr, upstream[0]);
    else ok = ok && line->op->grad(&c, line->op, dx);
    for (int i = 0; i < line->n && ok; i++) {
        if (!dx[i] || !needed[i]) continue;
        int32_t slot = line->slots[i];
        eg_shape shape = t->slots[slot].shape;
        int dtype = t->slots[slot].dtype;
        if (eg_is_variable(dx[i])) dx[i] = eg_read(dx[i]);      // what comes out must not change with the variable
        if (!egi_alive(line->op->name, i, dx[i])) { ok = false; break; }
        if (dx[i]->flags & EGI_NUMBER) dx[i] = egi_full_as("full", backend, (eg_dtype)dtype, shape, dx[i]->number);
        else if ((line->op->flags & EGI_USER) && (dx[i]->dtype != dtype || !egi_equal_shapes(egi_shape(dx[i]), shape)))
            ok = egi_fail(EG_ERROR_GRADIENT, "eg_%s: the gradient for input %d is %s, but the input is %s %s", line->op->name, i, egi_describe(dx[i]),
                          egi_dtypes[dtype].name, egi_show(shape));
        else dx[i] = egi_unbroadcast(dx[i], &shape);
        // The eager ops of a user's gradient are trapped one by one; what it made by hand is not.
        if (ok && egi_this.trap && (line->op->flags & EGI_USER)) ok = egi_trap_passes(line->op->name, upstream, line->n_out, &dx[i], 1);
        ok = ok && egi_accumulate(grads, slot, dx[i]);
    }
    egi_this.gradient_of = outer;
    if (dx != few_dx) egi_free(dx);
    eg_scope_end(scope);
    return ok;
}

static EGI_COLD void egi_set_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void egi_set_reason(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(egi_this.reason, sizeof egi_this.reason, format, list);
    va_end(list);
}
EAGER_API const char *eg_tape_unconnected_reason(void) { return egi_this.reason; }

// Why does y have no gradient for x? Follows the lines, those without a gradient too.
static EGI_COLD void egi_explain(const eg_tape *t, const eg_tensor *x, int32_t sx, eg_tensor *const *ys, const int32_t *sy, int ny) {
    char name[64];
    snprintf(name, sizeof name, "%.60s", x->name ? x->name : "the source");
    if (sx < 0) {
        if (x->flags & EGI_VARIABLE && !(x->flags & EGI_TRAINABLE))
            egi_set_reason("%s was not watched: it is not trainable; eg_set_trainable it, or eg_tape_watch it", name);
        else
            egi_set_reason("%s was not watched: eg_tape_watch it before it is used%s", name,
                           x->flags & EGI_VARIABLE ? ", or use it while the tape records" : "");
        return;
    }
    unsigned char *from = (unsigned char *)egi_alloc((size_t)t->n_slots * 2), *to = from ? from + t->n_slots : NULL;
    if (!from) { egi_set_reason("unknown: out of memory"); return; }
    memset(from, 0, (size_t)t->n_slots * 2);
    from[sx] = 1;
    bool outside = true, whole = false;
    for (int i = 0; i < ny; i++) {
        if (sy[i] >= 0) { to[sy[i]] = 1; outside = false; }
        if (!egi_is_float(ys[i]->dtype)) whole = true;
    }
    for (int64_t l = 0; l < t->n_lines; l++) {
        const egi_line *line = t->lines[l];
        bool reached = false;
        for (int i = 0; i < line->n; i++) reached = reached || (line->slots[i] >= 0 && from[line->slots[i]]);
        for (int i = 0; reached && i < line->n_out; i++) from[line->slots[line->n + i]] = 1;
    }
    const egi_line *cut = NULL;
    for (int64_t l = t->n_lines - 1; l >= 0; l--) {
        const egi_line *line = t->lines[l];
        bool leads = false, comes = false;
        for (int i = 0; i < line->n_out; i++) leads = leads || to[line->slots[line->n + i]];
        for (int i = 0; leads && i < line->n; i++) if (line->slots[i] >= 0) { to[line->slots[i]] = 1; comes = comes || from[line->slots[i]]; }
        if (leads && comes && !line->op->grad) cut = line;
        else if (leads && comes && !cut && !egi_is_float(t->slots[line->slots[line->n]].dtype)) cut = line;
    }
    if (outside)
        egi_set_reason("the target was made outside the tape: it is a constant for it (made before %s was watched, or from numbers of C), or the tape was not recording", name);
    else if (cut && !strcmp(cut->op->name, "stop_gradient")) egi_set_reason("the path from %s to the target goes through eg_stop_gradient", name);
    else if (cut && !egi_is_float(t->slots[cut->slots[cut->n]].dtype) )
        egi_set_reason("the path is integer: from %s to the target it goes through eg_%s, which makes %s", name, cut->op->name,
                       egi_dtypes[t->slots[cut->slots[cut->n]].dtype].name);
    else if (cut) egi_set_reason("the path from %s to the target goes through eg_%s, which is not differentiable", name, cut->op->name);
    else if (whole) egi_set_reason("the path is integer: the target's dtype has no gradient");
    else if (to[sx]) egi_set_reason("an op on the path from %s to the target gave no gradient for its input", name);
    else egi_set_reason("the target does not depend on %s", name);
    egi_free(from);
}

EAGER_API bool eg_tape_gradients_from(eg_tape *t, eg_tensor *const *ys, int ny, eg_tensor *const *output_gradients, eg_tensor *const *xs, int nx,
                                      eg_tensor **out) {
    if (nx < 0 || ny < 0 || (nx && (!xs || !out)) || (ny && !ys)) return egi_fail(EG_ERROR_ARGUMENT, "eg_tape_gradient: a list is NULL");
    for (int i = 0; i < nx; i++) out[i] = NULL;
    egi_this.reason[0] = 0;
    egi_this.at_function = NULL;
    if (!egi_tape_alive("tape_gradient", t)) return false;
    if (t->used)
        return egi_fail(
            EG_ERROR_TAPE,
            "eg_tape_gradient: this tape has given its gradients already; eg_tape_begin_persistent() makes one that gives them more than once");
    for (int i = 0; i < ny; i++) {
        if (!egi_alive("tape_gradient", 0, ys[i])) return false;
        eg_tensor *g = output_gradients ? output_gradients[i] : NULL;
        if (!g) continue;
        if (!egi_alive("tape_gradient", 0, g)) return false;
        if (!(g->flags & EGI_NUMBER) && (g->dtype != ys[i]->dtype || !egi_same_shape(g, ys[i])))
            return egi_fail(EG_ERROR_SHAPE, "eg_tape_gradient: output gradient %d is %s, but its target is %s", i, egi_describe(g),
                            egi_describe(ys[i]));
    }
    for (int i = 0; i < nx; i++) if (!egi_alive("tape_gradient", 0, xs[i])) return false;
    enum { WANTED = 1, ASKED = 2 };             // a source leads here; it is a source
    if (!t->persistent) {                       // from here on the tape is spent: what the gradients run is not for it
        egi_tape_unlist(t);
        t->used = true;
    }
    int64_t n = t->n_slots, n_lines = t->n_lines;
    size_t bytes = (size_t)n * (sizeof(eg_tensor *) + 2) + (size_t)(nx + ny + 1) * sizeof(int32_t) + 16;
    eg_tensor **grads = (eg_tensor **)egi_alloc(bytes);
    if (!grads) {
        if (!t->persistent) egi_tape_clear(t);
        return egi_no_memory("tape_gradient", (int64_t)bytes);
    }
    memset(grads, 0, bytes);
    t->reading++;
    int32_t *sx = (int32_t *)(void *)(grads + n), *sy = sx + nx;
    unsigned char *wanted = (unsigned char *)(sy + ny);
    eg_scope scope = eg_scope_begin();
    bool ok = true;
    for (int i = 0; i < nx; i++) {
        sx[i] = xs[i]->flags & EGI_NUMBER ? -1 : egi_find_slot(t, xs[i]->id);
        if (sx[i] >= 0) wanted[sx[i]] = WANTED | ASKED;
    }
    for (int i = 0; i < ny && ok; i++) {
        eg_tensor *g = output_gradients ? output_gradients[i] : NULL;
        sy[i] = ys[i]->flags & EGI_NUMBER ? -1 : egi_find_slot(t, ys[i]->id);
        if (sy[i] < 0 || !egi_is_float(ys[i]->dtype)) continue;
        if (!g || (g->flags & EGI_NUMBER))
            g = egi_full_as("ones", egi_backend_of(ys[i]), (eg_dtype)ys[i]->dtype, egi_shape(ys[i]), g ? g->number : 1);
        else if (g->flags & EGI_VARIABLE) g = eg_read(g);       // what comes out must not change with the variable
        ok = egi_accumulate(grads, sy[i], g);
    }
    // Only lines that a source leads to can matter.
    for (int64_t l = 0; l < n_lines; l++) {
        const egi_line *line = t->lines[l];
        bool reached = false;
        for (int i = 0; line->op->grad && i < line->n; i++) reached = reached || (line->slots[i] >= 0 && wanted[line->slots[i]]);
        for (int i = 0; reached && i < line->n_out; i++) wanted[line->slots[line->n + i]] |= WANTED;
    }
    bool missing = false;
    for (int64_t l = n_lines - 1; l >= 0 && ok; l--) {
        egi_line *line = t->lines[l];
        bool here = false, reached = false;
        for (int i = 0; i < line->n_out; i++) here = here || grads[line->slots[line->n + i]];
        for (int i = 0; here && i < line->n; i++) reached = reached || (line->slots[i] >= 0 && wanted[line->slots[i]]);
        if (reached && line->op->grad) ok = egi_backward_line(t, l, grads, wanted);
        // What will not be read again is let go: the gradients of the outputs (unless asked for), and the line's values.
        for (int i = 0; i < line->n_out; i++) {
            int32_t slot = line->slots[line->n + i];
            if (!(wanted[slot] & ASKED)) egi_let_go(&grads[slot], 1);
        }
        if (!t->persistent) egi_line_forget(line);
    }
    egi_this.reason[0] = 0;                     // a gradient's own gradients may have left theirs
    for (int i = 0; i < nx && ok; i++) {
        if (sx[i] >= 0 && grads[sx[i]]) { out[i] = eg_retain(grads[sx[i]]); continue; }
        if (!missing) { missing = true; egi_explain(t, xs[i], sx[i], ys, sy, ny); }
        if (t->zeros) out[i] = eg_retain(egi_full_as("zeros", egi_backend_of(xs[i]), (eg_dtype)xs[i]->dtype, egi_shape(xs[i]), 0));
        if (t->zeros && !out[i]) ok = false;
    }
    for (int64_t i = 0; i < n; i++) egi_let_go(&grads[i], 1);
    egi_free(grads);
    t->reading--;
    if (!t->persistent) egi_tape_clear(t);
    eg_scope_end(scope);
    for (int i = 0; i < nx; i++) {
        if (out[i] && ok && !egi_own(out[i])) { out[i] = NULL; ok = false; }
        else if (out[i] && !ok) egi_object_release(&out[i]->object);
    }
    if (!ok) for (int i = 0; i < nx; i++) out[i] = NULL;
    return ok;
}
EAGER_API bool eg_tape_gradients(eg_tape *t, eg_tensor *y, eg_tensor *const *xs, int n, eg_tensor **grads) {
    return eg_tape_gradients_from(t, &y, 1, NULL, xs, n, grads);
}
EAGER_API eg_tensor *eg_tape_gradient(eg_tape *t, eg_tensor *y, eg_tensor *x) {
    eg_tensor *g = NULL;
    eg_tape_gradients_from(t, &y, 1, NULL, &x, 1, &g);
    return g;
}

// Rows of the Jacobian: one backward pass for each upstream that picks columns of y. `batch` picks the same element of every row at once.
static eg_tensor *egi_jacobian(const char *function, eg_tape *t, eg_tensor *y, eg_tensor *x, bool batch) {
    if (!egi_tape_alive(function, t) || !egi_alive(function, 1, y) || !egi_alive(function, 2, x)) return NULL;
    if (!t->persistent) return (eg_tensor *)eg_raise(EG_ERROR_TAPE, "eg_%s: needs a persistent tape: eg_tape_begin_persistent()", function);
    if (!egi_is_float(y->dtype)) return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_%s: the target %s is not floating", function, egi_describe(y));
    if (batch && (y->rank < 1 || x->rank < 1 || y->dims[0] != x->dims[0]))
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: the first dimensions of %s and %s must be the same batch", function, egi_describe(y),
                                     egi_describe(x));
    eg_shape shape = egi_shape(y), row = egi_shape(x);
    if (y->rank + x->rank - (batch ? 1 : 0) > EG_MAX_RANK)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: the result for %s and %s would have more than %d axes", function, egi_describe(y),
                                     egi_describe(x), EG_MAX_RANK);
    int64_t rows = batch ? y->dims[0] : 1, n = rows ? y->size / rows : 0, element = egi_dtypes[y->dtype].size;
    eg_scope scope = eg_scope_begin();
    // Flat while they are stacked: with their own axes and that of the stack they might have too many.
    eg_shape line = { batch ? 2 : 1, { batch ? rows : x->size, rows ? x->size / rows : 0 } };
    eg_tensor *result = NULL, **list = (eg_tensor **)egi_alloc((size_t)(n ? n : 1) * sizeof *list + (size_t)(y->size * element));
    char *pick = (char *)(list + (n ? n : 1));
    bool ok = list != NULL;
    if (!ok) egi_no_memory(function, 0);
    else memset(pick, 0, (size_t)(y->size * element));
    for (int64_t j = 0; j < n && ok; j++) {
        eg_scope inner = eg_scope_begin();
        for (int64_t b = 0; b < rows; b++) egi_store(y->dtype, pick + (b * n + j) * element, 1);
        eg_tensor *g = eg_to(eg_from_data((eg_dtype)y->dtype, shape, pick), eg_device_of(y)), *dx = NULL;
        for (int64_t b = 0; b < rows; b++) egi_store(y->dtype, pick + (b * n + j) * element, 0);
        ok = g && eg_tape_gradients_from(t, &y, 1, &g, &x, 1, &dx);
        list[j] = eg_keep(dx ? eg_reshape(dx, line) : NULL);
        ok = ok && list[j];
        eg_scope_end(inner);
    }
    if (ok) {
        eg_shape whole = shape;
        for (int i = batch ? 1 : 0; i < row.rank; i++) whole.dims[whole.rank++] = row.dims[i];
        result = n && n <= INT_MAX ? eg_reshape(eg_stack(list, (int)n, batch ? 1 : 0), whole)
                                   : egi_full_as(function, egi_backend_of(x), (eg_dtype)x->dtype, whole, 0);
        eg_keep(result);
    }
    egi_free(list);
    eg_scope_end(scope);
    return result;
}
EAGER_API eg_tensor *eg_tape_jacobian(eg_tape *t, eg_tensor *y, eg_tensor *x) { return egi_jacobian("tape_jacobian", t, y, x, false); }
EAGER_API eg_tensor *eg_tape_batch_jacobian(eg_tape *t, eg_tensor *y, eg_tensor *x) { return egi_jacobian("tape_batch_jacobian", t, y, x, true); }

// ---- showing a tape

static void egi_slot_text(const eg_tape *t, int32_t slot, egi_text *out) {
    char text[160];
    if (slot < 0) { egi_text_string(out, "-"); return; }
    const egi_slot *s = &t->slots[slot];
    if (s->variable) snprintf(text, sizeof text, "%.60s", s->variable->name ? s->variable->name : "variable");
    else if (s->record < 0) snprintf(text, sizeof text, "watched.%d", (int)slot);
    else snprintf(text, sizeof text, "%%%d", (int)slot);
    egi_text_string(out, text);
}
EAGER_API void eg_tape_print(eg_tape *t) {
    egi_text out;
    memset(&out, 0, sizeof out);
    if (!egi_tape_alive("tape_print", t)) return;
    char text[256];
    snprintf(text, sizeof text, "tape: %lld lines, %lld tensors%s%s\n", (long long)t->n_lines, (long long)t->n_slots,
             t->persistent ? ", persistent" : "", t->recording ? ", recording" : "");
    egi_text_string(&out, text);
    for (int64_t l = 0; l < t->n_lines; l++) {
        const egi_line *line = t->lines[l];
        snprintf(text, sizeof text, "%4lld  ", (long long)l);
        egi_text_string(&out, text);
        for (int i = 0; i < line->n_out; i++) { if (i) egi_text_string(&out, ", "); egi_slot_text(t, line->slots[line->n + i], &out); }
        snprintf(text, sizeof text, " = %s(", line->op->name);
        egi_text_string(&out, text);
        for (int i = 0; i < line->n; i++) { if (i) egi_text_string(&out, ", "); egi_slot_text(t, line->slots[i], &out); }
        egi_text_string(&out, ")  ");
        for (int i = 0; i < line->n_out; i++) {
            const egi_slot *s = &t->slots[line->slots[line->n + i]];
            snprintf(text, sizeof text, "%s%s %s", i ? ", " : "", egi_dtypes[s->dtype].name, egi_show(s->shape));
            egi_text_string(&out, text);
        }
        bool any = false;
        for (int i = 0; i < line->n; i++)
            if (line->in[i]) {
                snprintf(text, sizeof text, "%s input %d", any ? "," : "  saves", i);
                any = true;
                egi_text_string(&out, text);
            }
        for (int i = 0; i < line->n_out; i++) if (line->out[i]) { egi_text_string(&out, any ? ", output" : "  saves output"); any = true; }
        for (int i = 0; line->saved && i < EG_MAX_SAVED; i++)
            if (line->saved[i]) {
                snprintf(text, sizeof text, "%s saved[%d]", any ? "," : "  saves", i);
                any = true;
                egi_text_string(&out, text);
            }
        if (!line->op->grad) egi_text_string(&out, "  (no gradient)");
        egi_text_string(&out, "\n");
    }
    if (out.failed) egi_no_memory("tape_print", 0);
    else egi_print_text(out.data);
    egi_text_free(&out);
}
EAGER_API int64_t eg_tape_dot(eg_tape *t, char *text, size_t capacity) {
    egi_text out;
    char item[400];
    memset(&out, 0, sizeof out);
    if (!egi_tape_alive("tape_dot", t)) return -1;
    egi_text_string(&out, "digraph tape {\n  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=11];\n");
    for (int64_t i = 0; i < t->n_slots; i++) {
        const egi_slot *s = &t->slots[i];
        if (s->record >= 0) continue;
        char name[64];
        size_t k = 0;
        for (const char *p = s->variable && s->variable->name ? s->variable->name : "watched"; *p && k < sizeof name - 1; p++)
            name[k++] = *p == '"' || *p == '\\' ? '\'' : *p;
        name[k] = 0;
        snprintf(item, sizeof item, "  s%lld [label=\"%s\\n%s\", shape=ellipse, style=filled, fillcolor=\"#dbe9f6\"];\n", (long long)i, name,
                 egi_show(s->shape));
        egi_text_string(&out, item);
    }
    for (int64_t l = 0; l < t->n_lines; l++) {
        const egi_line *line = t->lines[l];
        snprintf(item, sizeof item, "  l%lld [label=\"%s\\n%s\", shape=box%s];\n", (long long)l, line->op->name,
                 egi_show(t->slots[line->slots[line->n]].shape), line->op->grad ? "" : ", style=dashed");
        egi_text_string(&out, item);
        for (int i = 0; i < line->n; i++) {
            int32_t slot = line->slots[i];
            if (slot < 0) continue;
            if (t->slots[slot].record >= 0) snprintf(item, sizeof item, "  l%d -> l%lld;\n", (int)t->slots[slot].record, (long long)l);
            else snprintf(item, sizeof item, "  s%d -> l%lld;\n", (int)slot, (long long)l);
            egi_text_string(&out, item);
        }
    }
    egi_text_string(&out, "}\n");
    return egi_text_deliver("tape_dot", &out, text, capacity);
}

// ---- custom gradients and ops

typedef struct egi_user_attr { eg_custom_backward *backward; void *user; } egi_user_attr;
static bool egi_grad_user(const eg_grad_context *c, const egi_op *op, eg_tensor **dx) {
    const egi_user_attr *a = (const egi_user_attr *)c->attributes;
    int64_t errors = egi_this.errors;
    eg_grad_context user = *c;
    (void)op;
    user.attributes = NULL;
    user.inputs = NULL;
    user.outputs = NULL;
    a->backward(&user, dx, a->user);
    return egi_this.errors == errors || egi_this.error == EG_OK;      // it may have dealt with an error of its own
}
static bool egi_no_shape(egi_call *c) { (void)c; return false; }
static const egi_op egi_op_custom = { "custom_gradient", -1, 1, EGI_USER, sizeof(egi_user_attr), egi_no_shape, NULL, egi_grad_user, { 0, 0, 0 }, 0, { 0 }, { 0, 0, 0 }, NULL, NULL, { 0 } };

static bool egi_custom(const egi_op *op, eg_custom_forward_multi *forward, eg_custom_forward *single, eg_custom_backward *backward, void *user,
                       eg_tensor *const *in, int n, eg_tensor **out, int n_out) {
    eg_grad_context c;
    egi_user_attr attr = { backward, user };
    if (n_out < 1 || n_out > EGI_MAX_OUT) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: between 1 and %d outputs, not %d", op->name, EGI_MAX_OUT, n_out);
    for (int i = 0; i < n_out; i++) out[i] = NULL;
    for (int i = 0; i < n; i++) if (!egi_alive(op->name, i, in[i])) return false;
    memset(&c, 0, sizeof c);
    c.n_inputs = n;
    c.n_outputs = n_out;
    // Inside, ops are recorded for the tapes that may differentiate the gradient; a lone single-use tape never does.
    int tapes = 0;
    bool again = false;
    for (eg_tape *t = egi_this.tapes; t; t = t->outer) if (t->recording && t->paused >= egi_this.paused) { tapes++; again = again || t->persistent; }
    bool quiet = tapes < 2 && !again;
    eg_scope scope = eg_scope_begin();
    eg_tensor *made[EGI_MAX_OUT] = { NULL, NULL, NULL, NULL };
    if (quiet) eg_recording_pause();
    bool ok = single ? (made[0] = single(in, &c, user)) != NULL : forward(in, made, &c, user);
    if (quiet) eg_recording_unpause();
    if (!ok && egi_this.error == EG_OK) egi_fail(EG_ERROR_STATE, "eg_%s: the forward function failed without an error", op->name);
    for (int i = 0; i < n_out && ok; i++) {
        ok = egi_alive(op->name, i, made[i]);
        if (ok && (made[i]->flags & EGI_NUMBER)) ok = (made[i] = egi_number_tensor(op->name, made[i], EG_FLOAT32, egi_backend_here())) != NULL;
        // A handle of its own, so that the tape leads here and not into the forward's ops.
        if (ok) ok = (out[i] = egi_alias(op->name, made[i])) != NULL;
    }
    if (ok && egi_this.trap) ok = egi_trap_passes(op->name, in, n, out, n_out);
    // An output that was saved is the op's own result: its gradient is the custom one, not that of the forward's ops.
    for (int k = 0; ok && k < EG_MAX_SAVED; k++)
        for (int i = 0; i < n_out; i++) if (c.saved[k] && c.saved[k] == made[i]) { c.saved[k] = out[i]; break; }
    if (ok && egi_recording()) ok = egi_record(op, in, n, &attr, out, n_out, c.saved);
    eg_scope_end(scope);
    for (int i = 0; i < n_out; i++) {
        if (out[i] && ok && !egi_own(out[i])) { out[i] = NULL; ok = false; }
        else if (out[i] && !ok) egi_object_release(&out[i]->object);
    }
    if (!ok) for (int i = 0; i < n_out; i++) out[i] = NULL;
    return ok;
}
EAGER_API eg_tensor *eg_custom_gradient(eg_custom_forward *forward, eg_custom_backward *backward, void *user, eg_tensor *const *inputs, int n) {
    eg_tensor *out = NULL;
    if (!forward || !backward) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_custom_gradient: a function is NULL");
    return egi_custom(&egi_op_custom, NULL, forward, backward, user, inputs, n, &out, 1) ? out : NULL;
}
EAGER_API bool eg_custom_gradient_multi(eg_custom_forward_multi *forward, eg_custom_backward *backward, void *user, eg_tensor *const *inputs, int n,
                                        eg_tensor **outputs, int n_outputs) {
    if (!forward || !backward) return egi_fail(EG_ERROR_ARGUMENT, "eg_custom_gradient_multi: a function is NULL");
    return egi_custom(&egi_op_custom, forward, NULL, backward, user, inputs, n, outputs, n_outputs);
}

enum { EGI_USER_OPS = 256 };
static struct { egi_op op; eg_op_definition definition; char name[64]; } egi_user_ops[EGI_USER_OPS];
static int egi_n_user_ops;
static bool egi_op_exists(const char *name);
EAGER_API int eg_op_register(const eg_op_definition *d) {
    if (!d || !d->name || !d->name[0] || !d->forward) {
        egi_fail(EG_ERROR_ARGUMENT, "eg_op_register: a name and a forward function are needed");
        return -1;
    }
    if (strlen(d->name) >= sizeof egi_user_ops[0].name) {
        egi_fail(EG_ERROR_ARGUMENT, "eg_op_register: the name %.40s... is longer than 63 characters", d->name);
        return -1;
    }
    if (d->n_outputs < 1 || d->n_outputs > EGI_MAX_OUT || d->n_inputs < -1) {
        egi_fail(EG_ERROR_ARGUMENT, "eg_op_register: %s: between 1 and %d outputs, and -1 or more inputs", d->name, EGI_MAX_OUT);
        return -1;
    }
    egi_lock();
    int at = egi_n_user_ops;
    bool taken = egi_op_exists(d->name);
    if (!taken && at < EGI_USER_OPS) {
        memset(&egi_user_ops[at].op, 0, sizeof egi_user_ops[at].op);
        memcpy(egi_user_ops[at].name, d->name, strlen(d->name) + 1);
        egi_user_ops[at].definition = *d;
        egi_user_ops[at].op.name = egi_user_ops[at].definition.name = egi_user_ops[at].name;
        egi_user_ops[at].op.n_in = d->n_inputs;
        egi_user_ops[at].op.n_out = d->n_outputs;
        egi_user_ops[at].op.flags = EGI_USER | (d->backward ? 0 : EGI_NOT_DIFFERENTIABLE);
        egi_user_ops[at].op.attr_size = sizeof(egi_user_attr);
        egi_user_ops[at].op.grad = d->backward ? egi_grad_user : NULL;
        __atomic_store_n(&egi_n_user_ops, at + 1, __ATOMIC_RELEASE);
    }
    egi_unlock();
    if (taken) { egi_fail(EG_ERROR_ARGUMENT, "eg_op_register: there is an op named %s already", d->name); return -1; }
    if (at >= EGI_USER_OPS) { egi_fail(EG_ERROR_STATE, "eg_op_register: no more than %d ops can be registered", EGI_USER_OPS); return -1; }
    return at;
}
EAGER_API bool eg_op_run(int op, eg_tensor *const *inputs, int n, eg_tensor **outputs, int n_outputs) {
    if (op < 0 || op >= __atomic_load_n(&egi_n_user_ops, __ATOMIC_ACQUIRE))
        return egi_fail(EG_ERROR_ARGUMENT, "eg_op_run: there is no op number %d", op);
    const eg_op_definition *d = &egi_user_ops[op].definition;
    if (d->n_inputs >= 0 && n != d->n_inputs) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: takes %d inputs, not %d", d->name, d->n_inputs, n);
    if (n_outputs != d->n_outputs) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: has %d outputs, not %d", d->name, d->n_outputs, n_outputs);
    return egi_custom(&egi_user_ops[op].op, d->forward, NULL, d->backward, d->user, inputs, n, outputs, n_outputs);
}

//# 26  FUNCTIONS OF FUNCTIONS -------------------------------------------------
// Idea: run f on a tape of one's own and hand out only the results. Because the
// gradient is made of eager ops, the same few lines nest to any order.
// Read first: 25.  Proof: tests/functions.c

// f's value; NULL is an error, whether f raised one or not, and a variable counts as its value now.
static eg_tensor *egi_value(const char *name, eg_function1 *f, void *user, eg_tensor *const *in) {
    eg_tensor *y = f(in, user);
    if (!y && egi_this.error == EG_OK) egi_fail(EG_ERROR_NULL, "eg_%s: the function returned NULL", name);
    return eg_is_variable(y) ? eg_read(y) : y;
}
// The inputs, each with an id of its own: a tensor given twice has a gradient for each place. fresh: all with new ones.
static eg_tensor **egi_distinct(const char *name, eg_tensor *const *xs, int n, eg_tensor **few, int n_few, bool fresh) {
    eg_tensor **own = n <= n_few ? few : (eg_tensor **)egi_alloc((size_t)n * sizeof *own);
    if (!own) { egi_no_memory(name, 0); return NULL; }
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        bool twice = fresh;
        for (int j = 0; j < i && !twice; j++) twice = xs[j] == xs[i];
        own[i] = twice ? eg_identity(xs[i]) : xs[i];
        ok = egi_alive(name, i, own[i]);
    }
    if (ok) return own;
    if (own != few) egi_free(own);
    return NULL;
}
EAGER_API eg_tensor *eg_value_and_gradients_function(eg_function1 *f, void *user, eg_tensor *const *xs, int n, eg_tensor **grads) {
    eg_tensor *few[8];
    for (int i = 0; i < n; i++) grads[i] = NULL;
    if (!f) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_gradients_function: the function is NULL");
    eg_scope scope = eg_scope_begin();
    eg_tensor **own = egi_distinct("gradients_function", xs, n, few, 8, false);
    eg_tape *tape = own ? eg_tape_begin() : NULL;
    bool ok = tape != NULL;
    for (int i = 0; i < n && ok; i++) ok = eg_tape_watch(tape, own[i]);
    eg_tensor *y = ok ? egi_value("gradients_function", f, user, own) : NULL;
    if (y) eg_tape_unconnected_zeros(tape, true);
    ok = y && eg_tape_gradients(tape, y, own, n, grads);
    if (own != few) egi_free(own);
    for (int i = 0; i < n && ok; i++) ok = eg_keep(grads[i]) != NULL;
    if (!ok || !eg_keep(y)) y = NULL;
    eg_scope_end(scope);
    if (!y) for (int i = 0; i < n; i++) grads[i] = NULL;
    return y;
}
EAGER_API bool eg_gradients_function(eg_function1 *f, void *user, eg_tensor *const *xs, int n, eg_tensor **grads) {
    return eg_value_and_gradients_function(f, user, xs, n, grads) != NULL;
}
EAGER_API eg_tensor *eg_implicit_value_and_gradients(eg_function1 *f, void *user, eg_tensor *const *in, eg_gradient_pair *pairs, int capacity,
                                                     int *count) {
    if (count) *count = 0;
    if (!f) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_implicit_gradients: the function is NULL");
    eg_scope scope = eg_scope_begin();
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = tape ? egi_value("implicit_gradients", f, user, in) : NULL, **list = NULL;
    int n = y ? eg_tape_watched_variables(tape, NULL, 0) : 0, used = 0;
    bool ok = y != NULL;
    if (ok && n) {
        list = (eg_tensor **)egi_alloc((size_t)n * 2 * sizeof *list);
        ok = list != NULL || egi_no_memory("implicit_gradients", 0);
    }
    if (ok) {
        if (n) eg_tape_watched_variables(tape, list, n);
        for (int i = 0; i < n; i++) eg_retain(list[i]);       // the tape lets go of them
        ok = eg_tape_gradients(tape, y, list, n, list + n);
        for (int i = 0; i < n && ok; i++) {
            if (!list[n + i]) continue;
            if (used < capacity) {
                pairs[used].variable = list[i];
                pairs[used].gradient = eg_keep(list[n + i]);
                ok = pairs[used].gradient != NULL;
            }
            used++;
        }
        for (int i = 0; i < n; i++) eg_release(list[i]);
    }
    if (list) egi_free(list);
    if (!ok || !eg_keep(y)) y = NULL;
    eg_scope_end(scope);
    if (count && y) *count = used;
    return y;
}
EAGER_API int eg_implicit_gradients(eg_function1 *f, void *user, eg_tensor *const *in, eg_gradient_pair *pairs, int capacity) {
    int count;
    return eg_implicit_value_and_gradients(f, user, in, pairs, capacity, &count) ? count : -1;
}

EAGER_API eg_tensor *eg_nth_gradient(eg_function1 *f, void *user, eg_tensor *x, int order) {
    if (!f || order < 0) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_nth_gradient: a function and an order of 0 or more are needed");
    eg_scope scope = eg_scope_begin();
    eg_tape *tape = order > 0 ? eg_tape_begin() : NULL;
    eg_tensor *y = NULL, *g = NULL;
    if (order == 0) g = eg_keep(egi_value("nth_gradient", f, user, &x));
    else if (tape && eg_tape_watch(tape, x)) y = eg_nth_gradient(f, user, x, order - 1);
    if (y) eg_tape_unconnected_zeros(tape, true);
    if (y) g = eg_keep(eg_tape_gradient(tape, y, x));
    eg_scope_end(scope);
    return g;
}

// sum over i of sum(a[i] b[i]); NULL entries of a are zero. NULL with an error, or if all are NULL.
static eg_tensor *egi_inner(eg_tensor *const *a, eg_tensor *const *b, int n) {
    eg_reduce_options all;
    eg_tensor *s = NULL;
    memset(&all, 0, sizeof all);
    for (int i = 0; i < n; i++) {
        if (!a[i]) continue;
        eg_tensor *term = (eg_reduce_sum)((eg_mul)(a[i], b[i]), all);
        if (!term) return NULL;
        s = s ? (eg_add)(s, term) : term;
        if (!s) return NULL;
    }
    return s;
}
static bool egi_check_directions(const char *name, eg_tensor *const *xs, eg_tensor *const *vs, int n) {
    for (int i = 0; i < n; i++) {
        if (!egi_alive(name, i, xs[i]) || !egi_alive(name, n + i, vs[i])) return false;
        if (!egi_same_shape(xs[i], vs[i]) || xs[i]->dtype != vs[i]->dtype)
            return egi_fail(EG_ERROR_SHAPE, "eg_%s: direction %d is %s, but its input is %s", name, i, egi_describe(vs[i]), egi_describe(xs[i]));
    }
    return true;
}
// The gradient J^T u is linear in u, so its derivative with respect to u along v is J v, whatever u is.
EAGER_API eg_tensor *eg_jvp(eg_function1 *f, void *user, eg_tensor *const *xs, eg_tensor *const *vs, int n) {
    eg_tensor *few[8], *few_own[8], **grads = few, *result = NULL;
    if (!f || n < 1) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_jvp: a function and at least one input are needed");
    if (!egi_check_directions("jvp", xs, vs, n)) return NULL;
    if (n > 8 && !(grads = (eg_tensor **)egi_alloc((size_t)n * sizeof *grads))) { egi_no_memory("jvp", 0); return NULL; }
    eg_scope scope = eg_scope_begin();
    eg_tensor **own = egi_distinct("jvp", xs, n, few_own, 8, false);
    eg_tape *inner = own ? eg_tape_begin() : NULL;
    bool ok = inner != NULL;
    for (int i = 0; i < n && ok; i++) ok = eg_tape_watch(inner, own[i]);
    eg_tensor *y = ok ? egi_value("jvp", f, user, own) : NULL, *u = y ? eg_zeros_like(y) : NULL;
    eg_tape *outer = u ? eg_tape_begin() : NULL;
    if (outer && eg_tape_watch(outer, u) && eg_tape_gradients_from(inner, &y, 1, &u, own, n, grads)) {
        eg_tensor *s = egi_inner(grads, vs, n);
        eg_tape_unconnected_zeros(outer, true);
        if (s) result = eg_tape_gradient(outer, s, u);
        else if (egi_this.error == EG_OK) result = eg_zeros_like(y);
    }
    eg_keep(result);
    eg_scope_end(scope);
    if (grads != few) egi_free(grads);
    if (own != few_own) egi_free(own);
    return result;
}
EAGER_API bool eg_hvp(eg_function1 *f, void *user, eg_tensor *const *xs, eg_tensor *const *vs, int n, eg_tensor **out) {
    for (int i = 0; i < n; i++) out[i] = NULL;
    if (!f || n < 1) return egi_fail(EG_ERROR_ARGUMENT, "eg_hvp: a function and at least one input are needed");
    if (!egi_check_directions("hvp", xs, vs, n)) return false;
    eg_tensor *few[8], *few_vs[8];
    eg_scope scope = eg_scope_begin();
    // The directions are constants for the outer tape, also where they are the inputs themselves.
    eg_tensor **own = egi_distinct("hvp", xs, n, few, 8, false), **along = own ? egi_distinct("hvp", vs, n, few_vs, 8, true) : NULL;
    eg_tape *outer = along ? eg_tape_begin() : NULL;
    bool ok = outer != NULL;
    for (int i = 0; i < n && ok; i++) ok = eg_tape_watch(outer, own[i]);
    if (ok) eg_tape_unconnected_zeros(outer, true);
    ok = ok && eg_gradients_function(f, user, own, n, out);
    eg_tensor *s = ok ? egi_inner(out, along, n) : NULL;
    ok = s && eg_tape_gradients(outer, s, own, n, out);
    if (own != few) egi_free(own);
    if (along != few_vs) egi_free(along);
    for (int i = 0; i < n && ok; i++) ok = eg_keep(out[i]) != NULL;
    eg_scope_end(scope);
    for (int i = 0; i < n && !ok; i++) out[i] = NULL;
    return ok;
}
EAGER_API eg_tensor *eg_hessian(eg_function1 *f, void *user, eg_tensor *x) {
    eg_tensor *g = NULL, *h = NULL;
    if (!egi_alive("hessian", 0, x)) return NULL;
    eg_scope scope = eg_scope_begin();
    eg_tape *outer = eg_tape_begin_persistent();
    if (outer && eg_tape_watch(outer, x) && eg_gradients_function(f, user, &x, 1, &g)) {
        eg_tape_stop(outer);
        eg_tape_unconnected_zeros(outer, true);
        h = eg_keep(eg_tape_jacobian(outer, g, x));
    }
    eg_scope_end(scope);
    return h;
}

// ---- comparing gradients with differences

typedef struct egi_check { eg_function1 *f; void *user; eg_tensor **xs, **weights, **directions; int n; uint64_t seed; } egi_check;
// A number in (-1, 1) or so from a place: splitmix64.
static double egi_check_number(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}
static eg_tensor *egi_check_random(uint64_t seed, eg_tensor *like) {
    double *values = (double *)egi_alloc((size_t)(like->size ? like->size : 1) * sizeof *values);
    if (!values) { egi_no_memory("check_gradient", like->size * 8); return NULL; }
    for (int64_t i = 0; i < like->size; i++) values[i] = egi_check_number(&seed);
    eg_tensor *x = eg_to(eg_from_data(EG_FLOAT64, egi_shape(like), values), eg_device_of(like));
    egi_free(values);
    return x;
}
// The function whose gradient is compared: of order 1 sum(f r), of order k the gradient of the one before times random weights.
static eg_tensor *egi_check_value(const egi_check *k, eg_tensor *const *xs, int order) {
    eg_reduce_options all;
    memset(&all, 0, sizeof all);
    if (order == 1) {
        eg_tensor *y = egi_value("check_gradient", k->f, k->user, xs);
        if (!y) return NULL;
        if (!egi_is_float(y->dtype))
            return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_check_gradient: the function's value %s is not floating", egi_describe(y));
        y = eg_cast(y, EG_FLOAT64);
        eg_tensor *r = y ? egi_check_random(k->seed * 7919 + 17, y) : NULL;
        return r ? (eg_reduce_sum)((eg_mul)(y, r), all) : NULL;
    }
    eg_scope scope = eg_scope_begin();
    eg_tape *tape = eg_tape_begin();
    bool ok = tape != NULL;
    for (int i = 0; i < k->n && ok; i++) if (egi_is_float(xs[i]->dtype)) ok = eg_tape_watch(tape, xs[i]);
    eg_tensor *y = ok ? egi_check_value(k, xs, order - 1) : NULL, *s = NULL;
    eg_tensor **grads = y ? (eg_tensor **)egi_alloc((size_t)k->n * sizeof *grads) : NULL;
    if (y && !grads) egi_no_memory("check_gradient", 0);
    if (grads && eg_tape_gradients(tape, y, xs, k->n, grads)) {
        s = egi_inner(grads, k->weights + (order - 2) * k->n, k->n);
        if (!s && egi_this.error == EG_OK) s = eg_scalar_of(EG_FLOAT64, 0);
    }
    egi_free(grads);
    eg_keep(s);
    eg_scope_end(scope);
    return s;
}
static bool egi_check_order(egi_check *k, const eg_check_options *o, int order) {
    eg_scope scope = eg_scope_begin();
    eg_tensor **moved = (eg_tensor **)egi_alloc((size_t)k->n * 2 * sizeof *moved), **grads = moved ? moved + k->n : NULL;
    eg_tape *tape = moved || egi_no_memory("check_gradient", 0) ? eg_tape_begin() : NULL;
    bool ok = tape != NULL;
    double h = o->step > 0 ? o->step : 1e-5, tolerance = o->tolerance > 0 ? o->tolerance : 1e-5;
    for (int i = 0; i < k->n && ok; i++) if (egi_is_float(k->xs[i]->dtype)) ok = eg_tape_watch(tape, k->xs[i]);
    eg_tensor *y = ok ? egi_check_value(k, k->xs, order) : NULL;
    ok = y && eg_tape_gradients(tape, y, k->xs, k->n, grads);
    int directions = o->directions > 0 ? o->directions : 2;
    for (int d = 0; d < directions && ok; d++) {
        double value[2] = { 0, 0 };
        for (int i = 0; i < k->n && ok; i++) {
            k->directions[i] = NULL;
            if (egi_is_float(k->xs[i]->dtype))
                ok = (k->directions[i] = egi_check_random(k->seed * 104729 + (uint64_t)(order * 1000 + d * 100 + i), k->xs[i])) != NULL;
            else grads[i] = NULL;
        }
        eg_tensor *slope = ok ? egi_inner(grads, k->directions, k->n) : NULL;
        ok = ok && (slope || egi_this.error == EG_OK);
        double analytic = slope ? eg_item(slope) : 0;
        eg_recording_pause();
        for (int side = 0; side < 2 && ok; side++) {
            for (int i = 0; i < k->n && ok; i++)
                ok = (moved[i] = k->directions[i] ? (eg_add)(k->xs[i], (eg_mul)(k->directions[i], eg_number(side ? -h : h))) : k->xs[i]) != NULL;
            eg_tensor *v = ok ? egi_check_value(k, moved, order) : NULL;     // the tapes of higher orders record all the same
            ok = v != NULL;
            value[side] = v ? eg_item(v) : 0;
        }
        eg_recording_unpause();
        double numeric = (value[0] - value[1]) / (2 * h);
        double scale = 1 + (fabs(analytic) > fabs(numeric) ? fabs(analytic) : fabs(numeric));
        if (ok && !(fabs(analytic - numeric) <= tolerance * scale))
            ok = egi_fail(EG_ERROR_GRADIENT, "eg_check_gradient: order %d, direction %d: the gradient says %.12g, differences say %.12g", order, d,
                          analytic, numeric);
    }
    egi_free(moved);
    eg_scope_end(scope);
    return ok;
}
EAGER_API bool (eg_check_gradient)(eg_function1 *f, void *user, eg_tensor *const *xs, int n, eg_check_options o) {
    egi_check k = { f, user, NULL, NULL, NULL, n, o.seed ? o.seed : 1 };
    int order = o.order > 0 ? o.order : 1;
    if (!f || n < 1) return egi_fail(EG_ERROR_ARGUMENT, "eg_check_gradient: a function and at least one input are needed");
    for (int i = 0; i < n; i++) if (!egi_alive("check_gradient", i, xs[i])) return false;
    eg_scope scope = eg_scope_begin();
    k.xs = (eg_tensor **)egi_alloc((size_t)n * (size_t)(order + 2) * sizeof *k.xs);
    bool ok = k.xs != NULL || egi_no_memory("check_gradient", 0);
    if (ok) { k.directions = k.xs + n; k.weights = k.directions + n; }
    for (int i = 0; i < n && ok; i++) {
        // A handle of its own, so that the caller's tapes and variables are left alone.
        k.xs[i] = egi_is_float(xs[i]->dtype) ? eg_identity(eg_cast(xs[i], EG_FLOAT64)) : xs[i];
        ok = k.xs[i] != NULL;
        for (int w = 0; w < order - 1 && ok; w++) {
            k.weights[w * n + i] = egi_is_float(xs[i]->dtype) ? egi_check_random(k.seed * 31 + (uint64_t)(w * n + i), k.xs[i]) : k.xs[i];
            ok = k.weights[w * n + i] != NULL;
        }
    }
    for (int w = 1; w <= order && ok; w++) ok = egi_check_order(&k, &o, w);
    egi_free(k.xs);
    eg_scope_end(scope);
    return ok;
}

//# 27  VARIABLES AND OPTIMIZERS -----------------------------------------------
// Idea: a variable keeps its id and changes its buffer. Who still holds the old
// buffer (a tape, a view) keeps the old values. An optimizer's rule is a formula
// in the words of the op table, stamped into one loop over a variable, its
// gradient and its slots. Read first: 20, 25.  Proof: tests/optimizers.c

// x as a variable can hold it, not owned by a scope: contiguous, and neither borrowed nor a part of something larger that
// it would keep alive. Who made x and lets go of it hands its buffer over.
static eg_tensor *egi_holdable(const char *function, const eg_tensor *x) {
    const egi_buffer *b = x->buffer;
    bool borrowed = !b->on_device && b->data != (const void *)((const char *)b + EGI_ALIGN);
    if (!borrowed && x->size * egi_dtypes[x->dtype].size == b->bytes) return egi_contiguous(x);
    eg_shape shape = egi_shape(x);
    eg_tensor *copy = egi_new(function, egi_backend_of(x), (eg_dtype)x->dtype, &shape);
    if (copy && !egi_copy(x, copy)) { egi_object_release(&copy->object); copy = NULL; }
    return copy;
}
EAGER_API eg_tensor *eg_variable(eg_tensor *initial, const char *name) {
    if (!egi_alive("variable", 0, initial)) return NULL;
    eg_scope scope = eg_scope_begin();
    if (initial->flags & EGI_NUMBER) initial = egi_number_tensor("variable", initial, EG_FLOAT32, egi_backend_here());
    eg_tensor *packed = initial ? egi_holdable("variable", initial) : NULL, *v = packed ? egi_alias("variable", packed) : NULL;
    if (packed) egi_object_release(&packed->object);
    if (v) {
        size_t length = name ? strlen(name) : 0;
        v->flags = (uint16_t)(EGI_CONTIGUOUS | EGI_VARIABLE | (v->dtype == EG_FLOAT32 || v->dtype == EG_FLOAT64 ? EGI_TRAINABLE : 0));
        if (name && !(v->name = (char *)egi_alloc(length + 1))) {
            egi_object_release(&v->object);
            v = NULL;
            egi_no_memory("variable", (int64_t)length + 1);
        } else if (name) memcpy(v->name, name, length + 1);
    }
    eg_scope_end(scope);
    return v;
}
static bool egi_needs_variable(const char *function, eg_tensor *v) {
    if (!egi_alive(function, 0, v)) return false;
    return v->flags & EGI_VARIABLE || egi_fail(EG_ERROR_ARGUMENT, "eg_%s: %s is no variable; tensors do not change", function, egi_describe(v));
}
EAGER_API bool eg_is_variable(eg_tensor *x) { return x && x->object.kind == EGI_TENSOR && (x->flags & EGI_VARIABLE); }
EAGER_API bool eg_trainable(eg_tensor *v) { return egi_needs_variable("trainable", v) && (v->flags & EGI_TRAINABLE); }
EAGER_API void eg_set_trainable(eg_tensor *v, bool trainable) {
    if (!egi_needs_variable("set_trainable", v)) return;
    if (trainable && v->dtype != EG_FLOAT32 && v->dtype != EG_FLOAT64)
        egi_fail(EG_ERROR_DTYPE, "eg_set_trainable: variable %s has no gradient; only float32 and float64 can be trained", egi_describe(v));
    else v->flags = (uint16_t)(trainable ? v->flags | EGI_TRAINABLE : v->flags & ~EGI_TRAINABLE);
}
// The variable takes over the contiguous elements of x. Cannot fail.
static void egi_take(eg_tensor *v, eg_tensor *x) {
    if (v->buffer != x->buffer) {
        egi_buffer *former = v->buffer;
        __atomic_fetch_add(&x->buffer->refs, 1, __ATOMIC_RELAXED);
        v->buffer = x->buffer;
        egi_buffer_release(former);
    }
    v->data = x->data;
    if (v->host) { egi_free(v->host); v->host = NULL; }
}
static bool egi_alone(const eg_tensor *v) { return __atomic_load_n(&v->buffer->refs, __ATOMIC_ACQUIRE) == 1; }

static bool egi_assignable(const char *function, eg_tensor *v, eg_tensor *x) {
    if (x->dtype != v->dtype)
        return egi_fail(EG_ERROR_DTYPE, "eg_%s: %s cannot be assigned to variable %s; eg_cast it", function, egi_describe(x), egi_describe(v));
    if (!egi_same_shape(x, v))
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: the shape of %s is not that of variable %s", function, egi_describe(x), egi_describe(v));
    return egi_same_device(function, v, 0, x, 1);
}
// A number in the shape and dtype of another tensor; an integer stays exact.
static eg_tensor *egi_number_everywhere(const char *function, eg_tensor *x, const eg_tensor *like) {
    x = egi_number_tensor(function, x, (eg_dtype)like->dtype, egi_backend_of(like));
    return x ? eg_broadcast_to(x, egi_shape(like)) : NULL;
}
EAGER_API eg_tensor *(eg_assign)(eg_tensor *v, eg_tensor *x) {
    if (!egi_needs_variable("assign", v) || !egi_alive("assign", 1, x)) return NULL;
    eg_scope scope = eg_scope_begin();
    if (x->flags & EGI_NUMBER) x = egi_number_everywhere("assign", x, v);
    eg_tensor *packed = x && egi_assignable("assign", v, x) ? egi_holdable("assign", x) : NULL;
    if (packed) { egi_take(v, packed); egi_object_release(&packed->object); }
    eg_scope_end(scope);
    return packed ? v : NULL;
}
static eg_tensor *egi_assign_with(const char *function, eg_tensor *v, eg_tensor *x, eg_tensor *(*op)(eg_tensor *, eg_tensor *)) {
    if (!egi_needs_variable(function, v) || !egi_alive(function, 1, x)) return NULL;
    if (!(x->flags & EGI_NUMBER) && !egi_assignable(function, v, x)) return NULL;
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    eg_tensor *y = op(v, x), *result = y ? (eg_assign)(v, y) : NULL;
    eg_recording_unpause();
    eg_scope_end(scope);
    return result;
}
EAGER_API eg_tensor *(eg_assign_add)(eg_tensor *v, eg_tensor *x) { return egi_assign_with("assign_add", v, x, (eg_add)); }
EAGER_API eg_tensor *(eg_assign_sub)(eg_tensor *v, eg_tensor *x) { return egi_assign_with("assign_sub", v, x, (eg_sub)); }
EAGER_API eg_tensor *(eg_assign_slice)(eg_tensor *v, eg_shape begin, eg_shape size, eg_tensor *x) {
    if (!egi_needs_variable("assign_slice", v) || !egi_alive("assign_slice", 3, x)) return NULL;
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    eg_shape shape = egi_shape(v);
    eg_tensor *result = NULL, *copy = egi_own(egi_new("assign_slice", egi_backend_of(v), (eg_dtype)v->dtype, &shape));
    eg_tensor *part = copy ? eg_slice(copy, begin, size) : NULL;
    if (part && (x->flags & EGI_NUMBER)) x = egi_number_everywhere("assign_slice", x, part);
    if (part && x && egi_assignable("assign_slice", part, x) && egi_copy(v, copy) && egi_copy(x, part)) {
        egi_take(v, copy);
        result = v;
    }
    eg_recording_unpause();
    eg_scope_end(scope);
    return result;
}

// ---- schedules: eager functions of the step

static eg_tensor *egi_rate_exponential(eg_tensor *step, const eg_schedule *s) {
    eg_tensor *p = (eg_div)(step, eg_number(s->numbers[1]));
    if (s->numbers[3] != 0) p = eg_floor(p);
    return (eg_mul)(eg_number(s->numbers[0]), (eg_pow)(eg_scalar_of(EG_FLOAT64, s->numbers[2]), p));
}
EAGER_API eg_schedule eg_exponential_decay(double initial, double steps, double rate, bool staircase) {
    eg_schedule s = { egi_rate_exponential, { initial, steps, rate, staircase ? 1.0 : 0.0, 0, 0, 0, 0 }, NULL, NULL, 0 };
    return s;
}
static eg_tensor *egi_rate_piecewise(eg_tensor *step, const eg_schedule *s) {
    eg_tensor *rate = eg_scalar_of(EG_FLOAT64, s->values[s->count]);
    for (int i = s->count - 1; i >= 0; i--) rate = (eg_where)((eg_less_equal)(step, eg_number(s->boundaries[i])), eg_number(s->values[i]), rate);
    return rate;
}
EAGER_API eg_schedule eg_piecewise_constant(const double *boundaries, const double *values, int n) {
    if (n < 0 || !values || (n && !boundaries)) { egi_fail(EG_ERROR_ARGUMENT, "eg_piecewise_constant: a list is NULL"); n = 0; }
    eg_schedule s = { values ? egi_rate_piecewise : NULL, { 0, 0, 0, 0, 0, 0, 0, 0 }, values, boundaries, n };
    return s;
}
static eg_tensor *egi_rate_cosine(eg_tensor *step, const eg_schedule *s) {
    double initial = s->numbers[0], steps = s->numbers[1], alpha = s->numbers[2], target = s->numbers[3], warmup = s->numbers[4],
           top = warmup > 0 ? target : initial;
    eg_tensor *t = (eg_minimum)((eg_maximum)((eg_sub)(step, eg_number(warmup)), eg_number(0)), eg_number(steps));
    eg_tensor *half = (eg_mul)((eg_add)(eg_cos((eg_mul)(t, eg_number(3.141592653589793 / steps))), eg_number(1)), eg_number(0.5));
    eg_tensor *rate = (eg_mul)((eg_add)((eg_mul)(half, eg_number(1 - alpha)), eg_number(alpha)), eg_number(top));
    if (!(warmup > 0)) return rate;
    return (eg_where)((eg_less)(step, eg_number(warmup)), (eg_add)((eg_mul)(step, eg_number((target - initial) / warmup)), eg_number(initial)), rate);
}
EAGER_API eg_schedule eg_cosine_decay(double initial, double steps, double alpha, double warmup_target, double warmup_steps) {
    eg_schedule s = { egi_rate_cosine, { initial, steps, alpha, warmup_target, warmup_steps, 0, 0, 0 }, NULL, NULL, 0 };
    return s;
}
static eg_tensor *egi_rate_polynomial(eg_tensor *step, const eg_schedule *s) {
    double initial = s->numbers[0], steps = s->numbers[1], end = s->numbers[2], power = s->numbers[3];
    eg_tensor *length = eg_scalar_of(EG_FLOAT64, steps);
    if (s->numbers[4] != 0) length = (eg_mul)((eg_maximum)(eg_ceil((eg_div)(step, eg_number(steps))), eg_number(1)), length);
    else step = (eg_minimum)(step, length);
    return (eg_add)((eg_mul)((eg_pow)((eg_sub)(eg_number(1), (eg_div)(step, length)), eg_number(power)), eg_number(initial - end)), eg_number(end));
}
EAGER_API eg_schedule eg_polynomial_decay(double initial, double steps, double end, double power, bool cycle) {
    eg_schedule s = { egi_rate_polynomial, { initial, steps, end, power, cycle ? 1.0 : 0.0, 0, 0, 0 }, NULL, NULL, 0 };
    return s;
}
EAGER_API double eg_schedule_value(const eg_schedule *schedule, int64_t step) {
    if (!schedule || !schedule->rate) { egi_fail(EG_ERROR_ARGUMENT, "eg_schedule_value: there is no schedule"); return (double)NAN; }
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    double value = eg_item(schedule->rate(eg_scalar_of(EG_FLOAT64, (double)step), schedule));
    eg_recording_unpause();
    eg_scope_end(scope);
    return value;
}

#endif // EGI_IMPLEMENTED
#if (defined(EAGER_IMPLEMENTATION) || defined(EAGER_BACKEND)) && !defined(EGI_RULES_SHARED)   // a GPU has the rules, too
#define EGI_RULES_SHARED
// ---- update rules

// One rule: names of slots, then how scalars k0.. follow from the options o, the learning rate lr and the step t (both double,
// t counts from 1), then the loop's body on w (variable), g (gradient), s0.. (slots). Formulas: Keras 3's.
#define EGI_DECAY(s, x, k) EGI_ADD(s, EGI_MUL(EGI_SUB(x, s), k))                   /* s + (x - s) k */
#define EGI_UPDATE_TABLE(RULE) \
    RULE(sgd, 0, { k[0] = lr; }, \
        { w = EGI_SUB(w, EGI_MUL(k0, g)); }) \
    RULE(momentum, 1, { k[0] = lr; k[1] = o->momentum; }, \
        { s0 = EGI_SUB(EGI_MUL(k1, s0), EGI_MUL(k0, g)); w = EGI_ADD(w, s0); }) \
    RULE(nesterov, 1, { k[0] = lr; k[1] = o->momentum; }, \
        { s0 = EGI_SUB(EGI_MUL(k1, s0), EGI_MUL(k0, g)); w = EGI_ADD(w, EGI_SUB(EGI_MUL(k1, s0), EGI_MUL(k0, g))); }) \
    RULE(rmsprop, 1, { k[0] = lr; k[1] = 1 - o->rho; k[2] = o->epsilon; }, \
        { s0 = EGI_DECAY(s0, EGI_MUL(g, g), k1); w = EGI_SUB(w, EGI_DIV(EGI_MUL(k0, g), EGI_SQRT(EGI_ADD(s0, k2)))); }) \
    RULE(rmsprop_momentum, 3, { k[0] = lr; k[1] = 1 - o->rho; k[2] = o->epsilon; k[3] = o->momentum; k[4] = o->centered; }, \
        { s0 = EGI_DECAY(s0, EGI_MUL(g, g), k1); s1 = EGI_DECAY(s1, g, k1); \
          s2 = EGI_ADD(EGI_MUL(k3, s2), EGI_DIV(EGI_MUL(k0, g), EGI_SQRT(EGI_ADD(EGI_SUB(s0, EGI_MUL(k4, EGI_MUL(s1, s1))), k2)))); \
          w = EGI_SUB(w, s2); }) \
    RULE(adam, 2, { k[0] = lr * sqrt(1 - pow(o->beta_2, t)) / (1 - pow(o->beta_1, t)); k[1] = 1 - o->beta_1; k[2] = 1 - o->beta_2; k[3] = o->epsilon; }, \
        { s0 = EGI_DECAY(s0, g, k1); s1 = EGI_DECAY(s1, EGI_MUL(g, g), k2); \
          w = EGI_SUB(w, EGI_DIV(EGI_MUL(k0, s0), EGI_ADD(EGI_SQRT(s1), k3))); }) \
    RULE(amsgrad, 3, { k[0] = lr * sqrt(1 - pow(o->beta_2, t)) / (1 - pow(o->beta_1, t)); k[1] = 1 - o->beta_1; k[2] = 1 - o->beta_2; k[3] = o->epsilon; }, \
        { s0 = EGI_DECAY(s0, g, k1); s1 = EGI_DECAY(s1, EGI_MUL(g, g), k2); s2 = EGI_MAX(s2, s1); \
          w = EGI_SUB(w, EGI_DIV(EGI_MUL(k0, s0), EGI_ADD(EGI_SQRT(s2), k3))); }) \
    RULE(adagrad, 1, { k[0] = lr; k[1] = o->epsilon; }, \
        { s0 = EGI_ADD(s0, EGI_MUL(g, g)); w = EGI_SUB(w, EGI_DIV(EGI_MUL(k0, g), EGI_SQRT(EGI_ADD(s0, k1)))); }) \
    RULE(adadelta, 2, { k[0] = lr; k[1] = 1 - o->rho; k[2] = o->epsilon; }, \
        { s0 = EGI_DECAY(s0, EGI_MUL(g, g), k1); \
          g = EGI_MUL(EGI_DIV(EGI_SQRT(EGI_ADD(s1, k2)), EGI_SQRT(EGI_ADD(s0, k2))), g); \
          s1 = EGI_DECAY(s1, EGI_MUL(g, g), k1); w = EGI_SUB(w, EGI_MUL(k0, g)); }) \
    RULE(adamax, 2, { k[0] = lr / (1 - pow(o->beta_1, t)); k[1] = 1 - o->beta_1; k[2] = o->beta_2; k[3] = o->epsilon; }, \
        { s0 = EGI_DECAY(s0, g, k1); s1 = EGI_MAX(EGI_MUL(k2, s1), EGI_ABS(g)); w = EGI_SUB(w, EGI_DIV(EGI_MUL(k0, s0), EGI_ADD(s1, k3))); }) \
    RULE(nadam, 2, { egi_nadam_scalars(o, lr, t, k); }, \
        { s0 = EGI_DECAY(s0, g, k1); s1 = EGI_DECAY(s1, EGI_MUL(g, g), k2); \
          w = EGI_SUB(w, EGI_DIV(EGI_ADD(EGI_MUL(k0, s0), EGI_MUL(k4, g)), EGI_ADD(EGI_SQRT(EGI_MUL(s1, k5)), k3))); }) \
    RULE(ftrl, 2, { k[0] = 1 / lr; k[1] = -o->learning_rate_power; k[2] = o->l1; k[3] = 2 * (o->l2 + o->beta / (2 * lr)); k[4] = 2 * o->l2_shrinkage; }, \
        { const EGI_T power = EGI_POW(EGI_ADD(s0, EGI_MUL(g, g)), k1); \
          s1 = EGI_ADD(s1, EGI_SUB(EGI_ADD(g, EGI_MUL(k4, w)), EGI_MUL(EGI_MUL(EGI_SUB(power, EGI_POW(s0, k1)), k0), w))); \
          s0 = EGI_ADD(s0, EGI_MUL(g, g)); \
          w = EGI_DIV(EGI_SUB(EGI_MIN(EGI_MAX(s1, EGI_NEG(k2)), k2), s1), EGI_ADD(EGI_MUL(power, k0), k3)); }) \
    RULE(lion, 1, { k[0] = lr; k[1] = 1 - o->beta_1; k[2] = 1 - o->beta_2; }, \
        { w = EGI_SUB(w, EGI_MUL(k0, EGI_SIGN(EGI_DECAY(s0, g, k1)))); s0 = EGI_DECAY(s0, g, k2); })

// Nadam's momentum grows with the step; its running product is what the bias correction needs.
EGI_EVERYWHERE void egi_nadam_scalars(const eg_optimizer_options *o, double lr, double t, double *k) {
    double product = 1, power = 1, now = 0, next;
    for (double i = 1; i <= t && product > 1e-30; i++) {
        power = i < 2 ? 0.96 : power * 0.96;
        now = o->beta_1 * (1 - 0.5 * power);
        product *= now;
    }
    if (product <= 1e-30) now = o->beta_1 * (1 - 0.5 * pow(0.96, t));
    next = o->beta_1 * (1 - 0.5 * pow(0.96, t + 1));
    k[0] = lr * next / (1 - product * next);
    k[1] = 1 - o->beta_1;
    k[2] = 1 - o->beta_2;
    k[3] = o->epsilon;
    k[4] = lr * (1 - now) / (1 - product);
    k[5] = 1 / (1 - pow(o->beta_2, t));
}
#define EGI_RULE_SCALARS(name, slots, scalars, body) \
    EGI_EVERYWHERE void egi_scalars_##name(const eg_optimizer_options *o, double lr, double t, double *k) { (void)o; (void)t; (void)lr; scalars }
EGI_UPDATE_TABLE(EGI_RULE_SCALARS)
#define EGI_RULE_ID(name, slots, scalars, body) EGI_RULE_##name,
typedef enum egi_rule { EGI_UPDATE_TABLE(EGI_RULE_ID) EGI_RULES } egi_rule;
// in: w, g, learning rate (float64), step (int64), slots; out: w, slots. Outputs may be the inputs' own memory.
typedef struct egi_update_parameters { egi_rule rule; eg_optimizer_options options; } egi_update_parameters;
#endif // EGI_RULES_SHARED
#if defined(EAGER_IMPLEMENTATION) && !defined(EGI_IMPLEMENTED_AFTER_RULES_SHARED)
#define EGI_IMPLEMENTED_AFTER_RULES_SHARED

typedef void egi_update_scalars(const eg_optimizer_options *o, double lr, double t, double *k);
typedef void egi_update_loop(int64_t n, const double *k, const void *const *in, void *const *out);      // w, g, slots -> w, slots
// In steps of a count that the compiler knows, on copies, since the outputs may be the inputs' memory: at -O2 it takes vectors then.
#define EGI_UPDATE_LOOP(V, name, slots, body) \
    static inline __attribute__((always_inline)) void V##_step_##name(int64_t n, int64_t o, const EGI_T *k, const void *const *in, void *const *out) { \
        const EGI_T k0 = k[0], k1 = k[1], k2 = k[2], k3 = k[3], k4 = k[4], k5 = k[5], decay = k[7]; \
        EGI_T x[5][EGI_WIDE]; \
        (void)k0; (void)k1; (void)k2; (void)k3; (void)k4; (void)k5; \
        for (int j = 0; j < 2 + slots; j++) memcpy(x[j], (const EGI_T *)in[j] + o, (size_t)n * sizeof(EGI_T)); \
        for (int64_t i = 0; i < n; i++) { \
            EGI_T w = x[0][i], g = x[1][i], s0 = slots > 0 ? x[2][i] : 0, s1 = slots > 1 ? x[3][i] : 0, s2 = slots > 2 ? x[4][i] : 0; \
            (void)s0; (void)s1; (void)s2; \
            w = EGI_SUB(w, EGI_MUL(w, decay)); \
            body \
            x[0][i] = w; \
            if (slots > 0) x[2][i] = s0; \
            if (slots > 1) x[3][i] = s1; \
            if (slots > 2) x[4][i] = s2; \
        } \
        for (int j = 0; j <= slots; j++) memcpy((EGI_T *)out[j] + o, x[j ? j + 1 : 0], (size_t)n * sizeof(EGI_T)); \
    } \
    static void V##_update_##name(int64_t n, const double *scalars, const void *const *in, void *const *out) { \
        EGI_T k[8]; \
        int64_t o = 0; \
        for (int i = 0; i < 8; i++) k[i] = (EGI_T)scalars[i]; \
        for (; n - o >= EGI_WIDE; o += EGI_WIDE) V##_step_##name(EGI_WIDE, o, k, in, out); \
        V##_step_##name(n - o, o, k, in, out); \
    }
#define EGI_V egi_f32
#define EGI_T float
#define EGI_RULE_F32(name, slots, scalars, body) EGI_UPDATE_LOOP(egi_f32, name, slots, body)
EGI_UPDATE_TABLE(EGI_RULE_F32)
#undef EGI_T
#undef EGI_V
#define EGI_V egi_f64
#define EGI_T double
#define EGI_RULE_F64(name, slots, scalars, body) EGI_UPDATE_LOOP(egi_f64, name, slots, body)
EGI_UPDATE_TABLE(EGI_RULE_F64)
#undef EGI_T
#undef EGI_V
#define EGI_RULE_ROW(name, slots, scalars, body) { #name, slots, egi_scalars_##name, egi_f32_update_##name, egi_f64_update_##name },
static const struct { const char *name; int slots; egi_update_scalars *scalars; egi_update_loop *f32, *f64; } egi_rules[] = { EGI_UPDATE_TABLE(EGI_RULE_ROW) };
static bool egi_cpu_update(eg_backend *b, const egi_args *args) {
    const egi_update_parameters *p = (const egi_update_parameters *)args->parameters;
    const eg_tensor *w = args->in[0];
    const void *in[5];
    void *out[4];
    double k[8] = { 0 }, lr = egi_load(EG_FLOAT64, args->in[2]->data);
    int slots = egi_rules[p->rule].slots;
    (void)b;
    egi_rules[p->rule].scalars(&p->options, lr, egi_load(EG_INT64, args->in[3]->data), k);
    k[7] = lr * p->options.weight_decay;
    in[0] = w->data;
    in[1] = args->in[1]->data;
    for (int i = 0; i < slots; i++) in[2 + i] = args->in[4 + i]->data;
    for (int i = 0; i <= slots; i++) out[i] = args->out[i]->data;
    (w->dtype == EG_FLOAT32 ? egi_rules[p->rule].f32 : egi_rules[p->rule].f64)(w->size, k, in, out);
    return true;
}

// ---- optimizers

enum { EGI_MAX_SLOTS = 4 };      // the last one accumulates gradients
typedef struct egi_slots {
    int64_t id, turn;            // of the variable; the latest call that had it
    bool given;                  // gradients have accumulated
    eg_tensor *slot[EGI_MAX_SLOTS];
} egi_slots;
struct eg_optimizer {
    int32_t refs;
    const char *name;
    egi_rule rule;
    eg_optimizer_options options;
    eg_tensor *steps, *rate;     // variables: int64, float64
    eg_tensor *accumulated;      // int64, calls since the latest update; NULL where each call is one
    egi_slots *slots;
    int64_t n_slots, slots_capacity, turn;
    int64_t next;                // where the next variable's slots should be, if the order is that of the call before
};

// What an optimizer has, as bits; setting another option is an error.
enum {
    EGI_O_MOMENTUM = 1, EGI_O_NESTEROV = 2, EGI_O_BETAS = 4, EGI_O_EPSILON = 8, EGI_O_RHO = 16, EGI_O_CENTERED = 32, EGI_O_AMSGRAD = 64,
    EGI_O_INITIAL = 128, EGI_O_FTRL = 256
};
static bool egi_option_allowed(const char *name, const char *option, bool set, bool has) {
    return !set || has || egi_fail(EG_ERROR_ARGUMENT, "eg_%s: has no option .%s", name, option);
}
static eg_optimizer *egi_optimizer(const char *name, egi_rule rule, const eg_optimizer_options *given, unsigned has,
                                   const eg_optimizer_options *defaults) {
    eg_optimizer_options o = *given;
    if (!egi_option_allowed(name, "momentum", o.momentum != 0, has & EGI_O_MOMENTUM) ||
        !egi_option_allowed(name, "nesterov", o.nesterov, has & EGI_O_NESTEROV) ||
        !egi_option_allowed(name, "beta_1 or .beta_2", o.beta_1 != 0 || o.beta_2 != 0, has & EGI_O_BETAS) ||
        !egi_option_allowed(name, "epsilon", o.epsilon != 0, has & EGI_O_EPSILON) || !egi_option_allowed(name, "rho", o.rho != 0, has & EGI_O_RHO) ||
        !egi_option_allowed(name, "centered", o.centered, has & EGI_O_CENTERED) ||
        !egi_option_allowed(name, "amsgrad", o.amsgrad, has & EGI_O_AMSGRAD) ||
        !egi_option_allowed(name, "initial_accumulator_value", o.initial_accumulator_value != 0, has & EGI_O_INITIAL) ||
        !egi_option_allowed(name, "learning_rate_power, .l1, .l2, .l2_shrinkage or .beta",
                            o.learning_rate_power != 0 || o.l1 != 0 || o.l2 != 0 || o.l2_shrinkage != 0 || o.beta != 0, has & EGI_O_FTRL))
        return NULL;
    o.clipvalue = egi_or(o.clipvalue, 0);
    o.clipnorm = egi_or(o.clipnorm, 0);
    o.global_clipnorm = egi_or(o.global_clipnorm, 0);
    o.l1 = egi_or(o.l1, 0);
    o.l2 = egi_or(o.l2, 0);
    o.l2_shrinkage = egi_or(o.l2_shrinkage, 0);
    o.beta = egi_or(o.beta, 0);
    if (o.accumulate_steps == EG_ZERO) o.accumulate_steps = 0;
    if (o.learning_rate != 0 && o.schedule.rate)
        return (eg_optimizer *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: give .learning_rate or .schedule, not both", name);
    if ((o.clipvalue != 0) + (o.clipnorm != 0) + (o.global_clipnorm != 0) > 1)
        return (eg_optimizer *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: only one of .clipvalue, .clipnorm and .global_clipnorm can be given", name);
    if (!(o.clipvalue >= 0 && o.clipnorm >= 0 && o.global_clipnorm >= 0) || o.accumulate_steps < 0)
        return (eg_optimizer *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: clipping and .accumulate_steps must be positive", name);
    o.learning_rate = egi_or(o.learning_rate, defaults->learning_rate);
    o.momentum = egi_or(o.momentum, 0);
    o.beta_1 = egi_or(o.beta_1, defaults->beta_1);
    o.beta_2 = egi_or(o.beta_2, defaults->beta_2);
    o.epsilon = egi_or(o.epsilon, 1e-7);
    o.rho = egi_or(o.rho, defaults->rho);
    o.initial_accumulator_value = egi_or(o.initial_accumulator_value, 0.1);
    o.learning_rate_power = egi_or(o.learning_rate_power, -0.5);
    o.weight_decay = egi_or(o.weight_decay, defaults->weight_decay);
    const struct { const char *option; double value, low, high; } ranges[] = {       // low <= value < high
        { "learning_rate", o.learning_rate, 0, HUGE_VAL }, { "beta_1", o.beta_1, 0, 1 }, { "beta_2", o.beta_2, 0, 1 },
        { "rho", o.rho, 0, 1 + DBL_EPSILON }, { "momentum", o.momentum, 0, 1 + DBL_EPSILON }, { "weight_decay", o.weight_decay, 0, HUGE_VAL },
        { "epsilon", o.epsilon, 0, HUGE_VAL }, { "initial_accumulator_value", o.initial_accumulator_value, 0, HUGE_VAL },
        { "learning_rate_power", -o.learning_rate_power, 0, HUGE_VAL }, { "l1", o.l1, 0, HUGE_VAL }, { "l2", o.l2, 0, HUGE_VAL },
        { "l2_shrinkage", o.l2_shrinkage, 0, HUGE_VAL }
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value < ranges[i].high))
            return (eg_optimizer *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: .%s is out of its range (%g)", name, ranges[i].option, ranges[i].value);
    eg_optimizer *opt = (eg_optimizer *)egi_alloc(sizeof *opt);
    if (!opt) { egi_no_memory(name, (int64_t)sizeof *opt); return NULL; }
    memset(opt, 0, sizeof *opt);
    opt->refs = 1;
    opt->name = name;
    opt->rule = rule;
    opt->options = o;
    eg_scope scope = eg_scope_begin();
    eg_tensor *zero = eg_scalar_of(EG_INT64, 0), *rate = eg_scalar_of(EG_FLOAT64, o.learning_rate);
    opt->steps = zero ? eg_variable(zero, "steps") : NULL;
    opt->rate = rate ? eg_variable(rate, "learning_rate") : NULL;
    opt->accumulated = zero && o.accumulate_steps > 1 ? eg_variable(zero, "accumulated") : NULL;
    eg_scope_end(scope);
    if (!opt->steps || !opt->rate || (o.accumulate_steps > 1 && !opt->accumulated)) { eg_optimizer_release(opt); return NULL; }
    eg_set_trainable(opt->rate, false);
    return opt;
}
#define EGI_OPTIMIZER(name, rule, has, lr, b1, b2, rho_, decay) \
    EAGER_API eg_optimizer *(eg_##name)(eg_optimizer_options o) { \
        eg_optimizer_options d; \
        memset(&d, 0, sizeof d); \
        d.learning_rate = lr; \
        d.beta_1 = b1; \
        d.beta_2 = b2; \
        d.rho = rho_; \
        d.weight_decay = decay; \
        return egi_optimizer(#name, rule, &o, has, &d); \
    }
EGI_OPTIMIZER(sgd,
              egi_or(o.momentum, 0) == 0 ? EGI_RULE_sgd
              : o.nesterov               ? EGI_RULE_nesterov
                                         : EGI_RULE_momentum,
              EGI_O_MOMENTUM | EGI_O_NESTEROV, .01, 0, 0, 0, 0)
EGI_OPTIMIZER(rmsprop, o.centered || egi_or(o.momentum, 0) != 0 ? EGI_RULE_rmsprop_momentum : EGI_RULE_rmsprop,
              EGI_O_MOMENTUM | EGI_O_RHO | EGI_O_EPSILON | EGI_O_CENTERED, .001, 0, 0, .9, 0)
EGI_OPTIMIZER(adam, o.amsgrad ? EGI_RULE_amsgrad : EGI_RULE_adam, EGI_O_BETAS | EGI_O_EPSILON | EGI_O_AMSGRAD, .001, .9, .999, 0, 0)
EGI_OPTIMIZER(adamw, o.amsgrad ? EGI_RULE_amsgrad : EGI_RULE_adam, EGI_O_BETAS | EGI_O_EPSILON | EGI_O_AMSGRAD, .001, .9, .999, 0, .004)
EGI_OPTIMIZER(adagrad, EGI_RULE_adagrad, EGI_O_EPSILON | EGI_O_INITIAL, .001, 0, 0, 0, 0)
EGI_OPTIMIZER(adadelta, EGI_RULE_adadelta, EGI_O_EPSILON | EGI_O_RHO, .001, 0, 0, .95, 0)
EGI_OPTIMIZER(adamax, EGI_RULE_adamax, EGI_O_BETAS | EGI_O_EPSILON, .001, .9, .999, 0, 0)
EGI_OPTIMIZER(nadam, EGI_RULE_nadam, EGI_O_BETAS | EGI_O_EPSILON, .001, .9, .999, 0, 0)
EGI_OPTIMIZER(ftrl, EGI_RULE_ftrl, EGI_O_INITIAL | EGI_O_FTRL, .001, 0, 0, 0, 0)
EGI_OPTIMIZER(lion, EGI_RULE_lion, EGI_O_BETAS, .001, .9, .99, 0, 0)

EAGER_API eg_optimizer *eg_optimizer_retain(eg_optimizer *opt) {
    if (opt) __atomic_fetch_add(&opt->refs, 1, __ATOMIC_RELAXED);
    return opt;
}
static void egi_drop_slots(eg_optimizer *opt, int64_t keep) {
    while (opt->n_slots > keep) {
        egi_slots *s = &opt->slots[--opt->n_slots];
        for (int k = 0; k < EGI_MAX_SLOTS; k++) eg_release(s->slot[k]);
    }
}
EAGER_API void eg_optimizer_release(eg_optimizer *opt) {
    if (!opt || __atomic_sub_fetch(&opt->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    egi_drop_slots(opt, 0);
    egi_free(opt->slots);
    eg_release(opt->steps);
    eg_release(opt->rate);
    eg_release(opt->accumulated);
    egi_free(opt);
}
static bool egi_optimizer_alive(const char *function, const eg_optimizer *opt) {
    return opt != NULL || (egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_%s: the optimizer is NULL", function) : false);
}
// The slots of a variable, made when it is first seen; -1 without memory (or, if they are not to be made, without them).
static int64_t egi_slots_of(eg_optimizer *opt, eg_tensor *v, bool make) {
    static const char *const names[EGI_MAX_SLOTS] = { "slot 0", "slot 1", "slot 2", "accumulated" };
    void *slots = opt->slots;
    for (int64_t i = 0, at = opt->next; i < opt->n_slots; i++, at++) {
        if (at >= opt->n_slots) at = 0;
        if (opt->slots[at].id == v->id) { opt->next = at + 1; return at; }
    }
    if (!make) return -1;
    if (!egi_grow(&slots, &opt->slots_capacity, opt->n_slots + 1, sizeof *opt->slots)) { egi_no_memory("apply_gradients", 0); return -1; }
    opt->slots = (egi_slots *)slots;
    egi_slots *s = &opt->slots[opt->n_slots];
    memset(s, 0, sizeof *s);
    s->id = v->id;
    eg_scope scope = eg_scope_begin();
    bool ok = true;
    for (int k = 0; k < EGI_MAX_SLOTS && ok; k++) {
        bool accumulates = k == EGI_MAX_SLOTS - 1;
        if (accumulates ? opt->options.accumulate_steps < 2 : k >= egi_rules[opt->rule].slots) continue;
        double initial = k == 0 && (opt->rule == EGI_RULE_adagrad || opt->rule == EGI_RULE_ftrl) ? opt->options.initial_accumulator_value : 0;
        eg_tensor *x = egi_full_as("slot", egi_backend_of(v), (eg_dtype)v->dtype, egi_shape(v), initial);
        char name[96];
        snprintf(name, sizeof name, "%.64s/%s", v->name ? v->name : "variable", names[k]);
        s->slot[k] = x ? eg_variable(x, name) : NULL;
        ok = s->slot[k] != NULL;
        if (ok) eg_set_trainable(s->slot[k], false);
    }
    eg_scope_end(scope);
    if (!ok) { for (int k = 0; k < EGI_MAX_SLOTS; k++) eg_release(s->slot[k]); return -1; }
    opt->next = opt->n_slots + 1;
    return opt->n_slots++;
}

EAGER_API eg_tensor *eg_global_norm(eg_tensor *const *xs, int n) {
    eg_reduce_options all;
    eg_tensor *sum = NULL;
    memset(&all, 0, sizeof all);
    for (int i = 0; i < n; i++) {
        if (!xs[i]) continue;
        eg_tensor *square = (eg_reduce_sum)(eg_square(xs[i]), all);
        // Of float32 and float64 the wider one.
        if (sum && square && sum->dtype != square->dtype) { sum = eg_cast(sum, EG_FLOAT64); square = eg_cast(square, EG_FLOAT64); }
        sum = sum && square ? (eg_add)(sum, square) : square;
        if (!sum) return NULL;
    }
    return sum ? eg_sqrt(sum) : (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_global_norm: there is no tensor in the list");
}
// x, scaled down to the norm where its own is larger.
static eg_tensor *egi_clip_to(eg_tensor *x, eg_tensor *own, double norm) {
    return own ? (eg_mul)(x, eg_cast((eg_div)(eg_number(norm), (eg_maximum)(own, eg_number(norm))), (eg_dtype)x->dtype)) : NULL;
}
EAGER_API eg_tensor *eg_clip_by_norm(eg_tensor *x, double norm) {
    eg_norm_options all;
    memset(&all, 0, sizeof all);
    if (!(norm > 0)) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_clip_by_norm: the norm %g is not positive", norm);
    return egi_clip_to(x, (eg_norm)(x, all), norm);
}
EAGER_API bool eg_clip_by_global_norm(eg_tensor *const *xs, int n, double norm, eg_tensor **out) {
    if (!(norm > 0)) return egi_fail(EG_ERROR_ARGUMENT, "eg_clip_by_global_norm: the norm %g is not positive", norm);
    eg_tensor *own = eg_global_norm(xs, n);
    bool ok = own != NULL;
    for (int i = 0; i < n; i++) {
        eg_tensor *x = xs[i];                                  // out may be the same list
        out[i] = ok && x ? egi_clip_to(x, own, norm) : NULL;
        ok = ok && (out[i] || !x);
    }
    for (int i = 0; i < n && !ok; i++) out[i] = NULL;
    return ok;
}

// One variable's update. Everything that can fail comes first; then all is taken over at once.
typedef struct egi_prepared { eg_tensor *variable, *gradient, *sum, *out[EGI_MAX_OUT]; int64_t slots; } egi_prepared;

// The learning rate of the next update, as a float64 scalar.
static eg_tensor *egi_current_rate(eg_optimizer *opt) {
    if (!opt->options.schedule.rate) return opt->rate;
    eg_backend *former = egi_this.backend;
    egi_this.backend = egi_backend_of(opt->steps);             // where the schedule's numbers have to be
    eg_tensor *step = eg_cast(opt->steps, EG_FLOAT64), *rate = step ? opt->options.schedule.rate(step, &opt->options.schedule) : NULL;
    egi_this.backend = former;
    if (step && (!rate || rate->size != 1)) {
        if (egi_this.error == EG_OK)
            egi_fail(EG_ERROR_ARGUMENT, "eg_%s: the schedule's rate is %s, not one number", opt->name, rate ? egi_describe(rate) : "NULL");
        return NULL;
    }
    return rate ? eg_cast(rate, EG_FLOAT64) : NULL;
}
static bool egi_check_pair(const eg_optimizer *opt, eg_tensor *g, eg_tensor *v, int i) {
    if (!egi_needs_variable("apply_gradients", v)) return false;
    if (!g) return true;
    if (!egi_alive("apply_gradients", i, g)) return false;
    if (v->dtype != EG_FLOAT32 && v->dtype != EG_FLOAT64)
        return egi_fail(EG_ERROR_DTYPE, "eg_apply_gradients: %s trains float32 and float64, not variable %s", opt->name, egi_describe(v));
    if (g->flags & EGI_NUMBER || g->dtype != v->dtype || !egi_same_shape(g, v))
        return egi_fail(EG_ERROR_GRADIENT, "eg_apply_gradients: gradient %d is %s, but its variable is %s", i, egi_describe(g), egi_describe(v));
    return egi_same_device("apply_gradients", g, i, v, i);
}
// Clips the list in place, as the options say.
static bool egi_clip_gradients(const eg_optimizer *opt, eg_tensor **grads, int n) {
    const eg_optimizer_options *o = &opt->options;
    if (o->global_clipnorm > 0) return eg_clip_by_global_norm(grads, n, o->global_clipnorm, grads);
    for (int i = 0; i < n; i++) {
        if (!grads[i]) continue;
        if (o->clipnorm > 0) grads[i] = eg_clip_by_norm(grads[i], o->clipnorm);
        else if (o->clipvalue > 0) grads[i] = (eg_clip_by_value)(grads[i], eg_number(-o->clipvalue), eg_number(o->clipvalue));
        if (!grads[i]) return false;
    }
    return true;
}
// Adds the gradient to what has accumulated; on the last of the steps it becomes the mean, and the sum starts again at 0.
static bool egi_accumulate_gradient(eg_optimizer *opt, egi_prepared *p, bool last) {
    if (p->slots < 0) return true;
    eg_tensor *so_far = opt->slots[p->slots].slot[EGI_MAX_SLOTS - 1];
    bool given = p->gradient || opt->slots[p->slots].given;
    p->sum = p->gradient ? (eg_add)(so_far, p->gradient) : so_far;
    p->gradient = NULL;
    if (!p->sum || !last) return p->sum != NULL;
    if (given && !(p->gradient = (eg_div)(p->sum, eg_number(opt->options.accumulate_steps)))) return false;
    p->sum = eg_zeros_like(so_far);
    return p->sum != NULL;
}
static bool egi_prepare(eg_optimizer *opt, egi_prepared *p) {
    eg_shape shape = egi_shape(p->variable);
    p->gradient = egi_own(egi_contiguous(p->gradient));
    bool ok = p->gradient != NULL;
    for (int k = 0; k <= egi_rules[opt->rule].slots && ok; k++) {
        eg_tensor *from = k ? opt->slots[p->slots].slot[k - 1] : p->variable;
        // Where nobody else holds the buffer it is written in place; else the new values get a fresh one.
        p->out[k] = egi_own(egi_alone(from) && !egi_this.trap ? egi_alias(opt->name, from)
                                                              : egi_new(opt->name, egi_backend_of(from), (eg_dtype)from->dtype, &shape));
        ok = p->out[k] != NULL;
    }
    return ok;
}
static bool egi_launch_update(eg_optimizer *opt, const egi_prepared *p, eg_tensor *rate, eg_tensor *steps) {
    egi_update_parameters parameters = { opt->rule, opt->options };
    egi_args args;
    memset(&args, 0, sizeof args);
    args.in[0] = p->variable;
    args.in[1] = p->gradient;
    args.in[2] = rate;
    args.in[3] = steps;
    for (int k = 0; k < egi_rules[opt->rule].slots; k++) args.in[4 + k] = opt->slots[p->slots].slot[k];
    for (int k = 0; k <= egi_rules[opt->rule].slots; k++) args.out[k] = p->out[k];
    args.parameters = &parameters;
    if (p->variable->size && !egi_launch(egi_backend_of(p->variable), EGI_UPDATE, &args)) return false;
    if (!egi_this.trap) return true;
    eg_tensor *in[2 + EGI_MAX_SLOTS];
    in[0] = p->variable;
    in[1] = p->gradient;
    for (int k = 0; k < egi_rules[opt->rule].slots; k++) in[2 + k] = opt->slots[p->slots].slot[k];
    return egi_trap_passes(opt->name, in, 2 + egi_rules[opt->rule].slots, p->out, 1 + egi_rules[opt->rule].slots);
}
EAGER_API bool eg_apply_gradients(eg_optimizer *opt, eg_tensor *const *grads, eg_tensor *const *variables, int n) {
    int given = 0;
    if (!egi_optimizer_alive("apply_gradients", opt)) return false;
    if (n > 0 && (!grads || !variables)) return egi_fail(EG_ERROR_ARGUMENT, "eg_apply_gradients: a list is NULL");
    for (int i = 0; i < n; i++) {
        if (!grads[i] && egi_this.error != EG_OK) return false;       // the trace of an earlier error: nothing is changed
        if (!egi_check_pair(opt, grads[i], variables[i], i)) return false;
        if (grads[i]) given++;
    }
    if (!given)
        return egi_fail(EG_ERROR_GRADIENT, "eg_apply_gradients: No gradients provided for any variable (%d variables%s%.60s)", n,
                        n > 0 ? ", first " : "", n > 0 ? eg_name_of(variables[0]) : "");
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    egi_prepared *p = (egi_prepared *)egi_alloc((size_t)n * (sizeof *p + sizeof(eg_tensor *)));
    eg_tensor **list = (eg_tensor **)(void *)(p + (p ? n : 0)), *steps = NULL, *rate = NULL, *accumulated = NULL;
    bool ok = p != NULL || egi_no_memory("apply_gradients", 0), update = true;
    int64_t seen = opt->n_slots;
    if (p) memset(p, 0, (size_t)n * sizeof *p);
    opt->turn++;
    for (int i = 0; i < n && ok; i++) {
        p[i].variable = variables[i];
        // A variable as a gradient: its values now, whatever the update of another makes of it.
        p[i].gradient = grads[i] && (grads[i]->flags & EGI_VARIABLE) ? eg_read(grads[i]) : grads[i];
        p[i].slots = egi_slots_of(opt, variables[i], grads[i] != NULL);
        if (!grads[i]) continue;
        ok = p[i].gradient && p[i].slots >= 0;
        if (ok && opt->slots[p[i].slots].turn == opt->turn)
            ok = egi_fail(EG_ERROR_ARGUMENT, "eg_apply_gradients: variable '%.60s' is in the list twice", eg_name_of(variables[i]));
        if (ok) opt->slots[p[i].slots].turn = opt->turn;
    }
    if (ok && opt->accumulated) {
        int64_t calls = eg_item_int(opt->accumulated) + 1;
        update = calls >= opt->options.accumulate_steps;
        accumulated = update ? eg_zeros_like(opt->accumulated) : (eg_add)(opt->accumulated, eg_integer(1));
        ok = accumulated != NULL;
        for (int i = 0; i < n && ok; i++) ok = egi_accumulate_gradient(opt, &p[i], update);
    }
    if (ok && update) {
        for (int i = 0; i < n; i++) list[i] = p[i].gradient;
        ok = egi_clip_gradients(opt, list, n);
        steps = ok ? (eg_add)(opt->steps, eg_integer(1)) : NULL;
        rate = steps ? egi_current_rate(opt) : NULL;
        ok = rate != NULL;
        for (int i = 0; i < n && ok; i++) if ((p[i].gradient = list[i])) ok = egi_prepare(opt, &p[i]);
        for (int i = 0; i < n && ok; i++) if (p[i].gradient) ok = egi_launch_update(opt, &p[i], rate, steps);
        for (int i = 0; i < n && ok; i++) {
            if (!p[i].gradient) continue;
            egi_take(p[i].variable, p[i].out[0]);
            for (int k = 0; k < egi_rules[opt->rule].slots; k++) egi_take(opt->slots[p[i].slots].slot[k], p[i].out[k + 1]);
        }
        if (ok) egi_take(opt->steps, steps);
    }
    for (int i = 0; i < n && ok; i++) {
        if (!p[i].sum) continue;
        egi_slots *s = &opt->slots[p[i].slots];
        egi_take(s->slot[EGI_MAX_SLOTS - 1], p[i].sum);
        s->given = !update && (s->given || grads[i]);
    }
    if (ok && accumulated) egi_take(opt->accumulated, accumulated);
    if (!ok) egi_drop_slots(opt, seen);
    egi_free(p);
    eg_recording_unpause();
    eg_scope_end(scope);
    return ok;
}
EAGER_API bool eg_apply_gradient_pairs(eg_optimizer *opt, const eg_gradient_pair *pairs, int n) {
    eg_tensor **list = (eg_tensor **)egi_alloc((size_t)(n > 0 ? n : 1) * 2 * sizeof *list);
    if (!list) return egi_no_memory("apply_gradient_pairs", 0);
    for (int i = 0; i < n; i++) { list[i] = pairs[i].gradient; list[n + i] = pairs[i].variable; }
    bool ok = eg_apply_gradients(opt, list, list + n, n);
    egi_free(list);
    return ok;
}
EAGER_API eg_tensor *eg_minimize(eg_optimizer *opt, eg_function1 *loss, void *user, eg_tensor *const *in) {
    if (!egi_optimizer_alive("minimize", opt)) return NULL;
    if (!loss) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_minimize: the loss function is NULL");
    eg_scope scope = eg_scope_begin();
    eg_tape *tape = eg_tape_begin();
    eg_tensor *y = tape ? egi_value("minimize", loss, user, in) : NULL, *result = NULL;
    int n = y ? eg_tape_watched_variables(tape, NULL, 0) : 0;
    eg_tensor **list = y ? (eg_tensor **)egi_alloc((size_t)(n ? n : 1) * 2 * sizeof *list) : NULL;
    if (y && !list) egi_no_memory("minimize", 0);
    if (list) {
        eg_tape_watched_variables(tape, list, n);
        for (int i = 0; i < n; i++) eg_retain(list[i]);
        if (eg_tape_gradients(tape, y, list, n, list + n) && eg_apply_gradients(opt, list + n, list, n)) result = eg_keep(y);
        for (int i = 0; i < n; i++) eg_release(list[i]);
    }
    egi_free(list);
    eg_scope_end(scope);
    return result;
}
EAGER_API int64_t eg_optimizer_steps(eg_optimizer *opt) { return egi_optimizer_alive("optimizer_steps", opt) ? eg_item_int(opt->steps) : -1; }
EAGER_API double eg_optimizer_learning_rate(eg_optimizer *opt) {
    if (!egi_optimizer_alive("optimizer_learning_rate", opt)) return (double)NAN;
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    double rate = eg_item(egi_current_rate(opt));
    eg_recording_unpause();
    eg_scope_end(scope);
    return rate;
}
EAGER_API bool eg_optimizer_set_learning_rate(eg_optimizer *opt, double rate) {
    if (!egi_optimizer_alive("optimizer_set_learning_rate", opt)) return false;
    if (!(rate >= 0)) return egi_fail(EG_ERROR_ARGUMENT, "eg_optimizer_set_learning_rate: %g is no learning rate", rate);
    eg_scope scope = eg_scope_begin();
    bool ok = (eg_assign)(opt->rate, eg_number(rate)) != NULL;
    eg_scope_end(scope);
    if (ok) opt->options.schedule.rate = NULL;
    return ok;
}
EAGER_API int eg_optimizer_state(eg_optimizer *opt, eg_tensor **state, int capacity) {
    int count = 0;
    if (!egi_optimizer_alive("optimizer_state", opt)) return 0;
    if (count++ < capacity) state[0] = opt->steps;
    if (count++ < capacity) state[1] = opt->rate;
    if (opt->accumulated && count++ < capacity) state[2] = opt->accumulated;
    for (int64_t i = 0; i < opt->n_slots; i++)
        for (int k = 0; k < EGI_MAX_SLOTS; k++)
            if (opt->slots[i].slot[k]) { if (count < capacity) state[count] = opt->slots[i].slot[k]; count++; }
    return count;
}

//# 28  LAYERS AND MODELS ------------------------------------------------------
// Idea: a kind of layer is a row of a table: name, the options it has, and three
// functions: make the weights, call, tell the output's shape. What every layer
// does (scopes, names, masks, checks, freezing, configuration) is written once
// around the rows. A layer holds a list of parts, its weights and its layers;
// paths, saving, counting and training are walks over parts.
// Read first: 27.  Proof: tests/layers.c, tests/layers_fixtures.c

// Texts, files and JSON, which this chapter and the next ones use before chapter 31 has their code.

#define EGI_LATER __attribute__((unused)) static      // not every program's switches leave a use of each

// More for the texts of chapter 19. After a failure (no memory; nothing is raised) the rest is ignored: look at failed, at the end.
EGI_LATER void egi_text_printf(egi_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
EGI_LATER void egi_text_json(egi_text *t, const char *string);       // in quotes, escaped
EGI_LATER void egi_text_number(egi_text *t, double value);           // the shortest that reads back the same; '.' in any locale
// string and what is to stand behind it, in memory of its own; NULL without memory, nothing raised.
EGI_LATER char *egi_copy_string(const char *string, const char *behind);
// A whole number or fraction written in n bytes, all of them, '.' in any locale; false where they are something else.
EGI_LATER bool egi_parse_number(const char *text, int64_t n, double *value);

// "eg_function: path: byte 12: sentence"; an offset of -1 is left out. Returns false.
EGI_LATER EGI_COLD bool egi_file_fail(const char *function, const char *path, int64_t offset, const char *format, ...) __attribute__((format(printf, 4, 5)));

// A file to read from. With unzip a gzip file gives what it holds (EAGER_ZLIB; an error without).
typedef struct egi_source { const char *function; char *path; void *file, *gzip; int64_t size, offset; } egi_source;   // size: -1 where it cannot be known
EGI_LATER bool egi_source_open(egi_source *s, const char *function, const char *path, bool unzip);
EGI_LATER int64_t egi_source_read(egi_source *s, void *to, int64_t n);       // how many bytes; fewer than n only at the end; -1 with an error
EGI_LATER bool egi_source_seek(egi_source *s, int64_t offset);
EGI_LATER void egi_source_close(egi_source *s);                              // of one that is not open: nothing
EGI_LATER char *egi_file_read(const char *function, const char *path, int64_t *size);     // the whole file and one '\0'; egi_free frees it
// The next record of a TFRecord file into record, whose former text goes: 1; 0 at the end; -1 and an error that names the offset.
EGI_LATER int egi_record_read(egi_source *s, egi_text *record);

// A file to write: under a temporary name beside it, on the disk before it takes its own. Folders on the way are made.
typedef struct egi_sink { const char *function; char *path, *temporary; void *file; int64_t offset; bool failed; } egi_sink;
EGI_LATER bool egi_sink_open(egi_sink *s, const char *function, const char *path);
EGI_LATER bool egi_sink_write(egi_sink *s, const void *bytes, int64_t n);    // after a failure nothing: look once, at the close
EGI_LATER bool egi_sink_close(egi_sink *s, bool good);                       // good: it takes its name; else it goes
EGI_LATER bool egi_file_write(const char *function, const char *path, const void *data, int64_t size);
// Makes the folders that lead to a file, where they are missing; what cannot be made shows when the file is opened.
EGI_LATER void egi_make_folders(const char *path);

// JSON as a list of nodes in the order of the text: a container's members follow it, a member's name stands before its value.
typedef enum egi_json_kind { EGI_JSON_NULL, EGI_JSON_BOOL, EGI_JSON_NUMBER, EGI_JSON_STRING, EGI_JSON_ARRAY, EGI_JSON_OBJECT } egi_json_kind;
typedef struct egi_json_node {
    egi_json_kind kind;
    bool whole;                    // a number without fraction and exponent that fits an int64: integer is exact
    int64_t count, next;           // members; the node after this one and all in it
    int64_t offset, integer;       // where it stands in the text; of a bool 0 or 1
    double number;
    const char *string;            // decoded, '\0' behind it
} egi_json_node;
typedef struct egi_json { char *text; egi_json_node *nodes; int64_t count, capacity; const char *function, *path; int64_t base; } egi_json;
// Reads text (n bytes that stand at offset base of the file path; path may be NULL). An error names the place.
EGI_LATER bool egi_json_read(egi_json *j, const char *function, const char *path, int64_t base, const char *text, int64_t n);
EGI_LATER int64_t egi_json_member(const egi_json *j, int64_t object, const char *name);   // the value's node; -1 where there is none
EGI_LATER const char *egi_json_string(const egi_json *j, int64_t node);                   // NULL of anything else
EGI_LATER void egi_json_free(egi_json *j);

// ---- what a layer is told: fields of one struct, each with a kind, so that one loop checks, writes or reads them all

typedef struct egi_layer_config {
    eg_layer_options o;
    int64_t units;              // what stands before the options: units, filters, features, heads; the size of a window; a rate
    int64_t size, count;
    double rate;
    eg_shape target;            // of a reshape
    eg_pads pads;
    int n_in, n_out;            // of a custom layer
} egi_layer_config;

typedef enum egi_field_kind { EGI_FIELD_INT, EGI_FIELD_INT64, EGI_FIELD_PAIR, EGI_FIELD_NUMBER, EGI_FIELD_BOOL, EGI_FIELD_SHAPE, EGI_FIELD_PADS,
                              EGI_FIELD_ACTIVATION, EGI_FIELD_INITIALIZER, EGI_FIELD_DTYPE, EGI_FIELD_PADDING } egi_field_kind;
// Id, what it is called, its kind, where it is.
#define EGI_LAYER_FIELDS(F) \
    F(input_shape, EGI_FIELD_SHAPE, o.input_shape) F(dtype, EGI_FIELD_DTYPE, o.dtype) F(frozen, EGI_FIELD_BOOL, o.frozen) \
    F(activation, EGI_FIELD_ACTIVATION, o.activation) F(recurrent_activation, EGI_FIELD_ACTIVATION, o.recurrent_activation) \
    F(no_bias, EGI_FIELD_BOOL, o.no_bias) F(kernel_initializer, EGI_FIELD_INITIALIZER, o.kernel_initializer) \
    F(recurrent_initializer, EGI_FIELD_INITIALIZER, o.recurrent_initializer) F(bias_initializer, EGI_FIELD_INITIALIZER, o.bias_initializer) \
    F(kernel_initializer_value, EGI_FIELD_NUMBER, o.kernel_initializer_value) F(bias_initializer_value, EGI_FIELD_NUMBER, o.bias_initializer_value) \
    F(kernel_l1, EGI_FIELD_NUMBER, o.kernel_l1) F(kernel_l2, EGI_FIELD_NUMBER, o.kernel_l2) F(bias_l1, EGI_FIELD_NUMBER, o.bias_l1) \
    F(bias_l2, EGI_FIELD_NUMBER, o.bias_l2) F(recurrent_l1, EGI_FIELD_NUMBER, o.recurrent_l1) F(recurrent_l2, EGI_FIELD_NUMBER, o.recurrent_l2) \
    F(kernel_size, EGI_FIELD_PAIR, o.kernel_size) F(pool_size, EGI_FIELD_PAIR, o.pool_size) F(strides, EGI_FIELD_PAIR, o.strides) \
    F(dilations, EGI_FIELD_PAIR, o.dilations) F(padding, EGI_FIELD_PADDING, o.padding) F(causal, EGI_FIELD_BOOL, o.causal) \
    F(groups, EGI_FIELD_INT64, o.groups) F(output_padding, EGI_FIELD_PAIR, o.output_padding) F(depth_multiplier, EGI_FIELD_INT64, o.depth_multiplier) \
    F(bilinear, EGI_FIELD_BOOL, o.bilinear) F(axis, EGI_FIELD_INT, o.axis) F(epsilon, EGI_FIELD_NUMBER, o.epsilon) \
    F(momentum, EGI_FIELD_NUMBER, o.momentum) F(no_center, EGI_FIELD_BOOL, o.no_center) F(no_scale, EGI_FIELD_BOOL, o.no_scale) \
    F(mask_zero, EGI_FIELD_BOOL, o.mask_zero) F(return_sequences, EGI_FIELD_BOOL, o.return_sequences) \
    F(go_backwards, EGI_FIELD_BOOL, o.go_backwards) F(no_forget_bias, EGI_FIELD_BOOL, o.no_forget_bias) \
    F(reset_before, EGI_FIELD_BOOL, o.reset_before) F(dropout, EGI_FIELD_NUMBER, o.dropout) \
    F(recurrent_dropout, EGI_FIELD_NUMBER, o.recurrent_dropout) F(value_dim, EGI_FIELD_INT64, o.value_dim) F(output_units, EGI_FIELD_INT64, o.output_units) \
    F(kv_heads, EGI_FIELD_INT64, o.kv_heads) F(merge, EGI_FIELD_INT, o.merge) \
    F(units, EGI_FIELD_INT64, units) F(size, EGI_FIELD_INT64, size) F(count, EGI_FIELD_INT64, count) F(rate, EGI_FIELD_NUMBER, rate) \
    F(target, EGI_FIELD_SHAPE, target) F(pads, EGI_FIELD_PADS, pads) F(n_in, EGI_FIELD_INT, n_in) F(n_out, EGI_FIELD_INT, n_out)
#define EGI_FIELD_ID(id, kind, member) EGI_F_##id,
enum { EGI_LAYER_FIELDS(EGI_FIELD_ID) EGI_LAYER_FIELD_COUNT };
#define EGI_FIELD_ROW(id, kind, member) { #id, kind, offsetof(egi_layer_config, member), sizeof(((egi_layer_config *)0)->member) },
static const struct { const char *name; egi_field_kind kind; size_t offset, size; } egi_layer_fields[] = { EGI_LAYER_FIELDS(EGI_FIELD_ROW) };
// A row of layers says which fields it has by bits.
#define EGI_HAS(id) (UINT64_C(1) << EGI_F_##id)
#define EGI_HAS_ALWAYS (EGI_HAS(input_shape) | EGI_HAS(frozen))
#define EGI_HAS_BIAS (EGI_HAS(no_bias) | EGI_HAS(bias_initializer) | EGI_HAS(bias_initializer_value) | EGI_HAS(bias_l1) | EGI_HAS(bias_l2))
#define EGI_HAS_RECURRENT (EGI_HAS_KERNEL | EGI_HAS_BIAS | EGI_HAS(units) | EGI_HAS(activation) | EGI_HAS(recurrent_initializer) | EGI_HAS(recurrent_l1) | \
    EGI_HAS(recurrent_l2) | EGI_HAS(return_sequences) | EGI_HAS(go_backwards) | EGI_HAS(dropout) | EGI_HAS(recurrent_dropout))
#define EGI_HAS_KERNEL (EGI_HAS(dtype) | EGI_HAS(kernel_initializer) | EGI_HAS(kernel_initializer_value) | EGI_HAS(kernel_l1) | EGI_HAS(kernel_l2))

// ---- layers and their parts

enum { EGI_LAYER_IN = 16, EGI_LAYER_OUT = 8 };
typedef struct egi_part {                // a weight or a layer
    char *name;                          // unique in its layer: a piece of the path
    eg_tensor *variable;
    bool trainable;                      // when the layer is not frozen
    double l1, l2;
    eg_layer *child;
} egi_part;
typedef struct egi_layer_type egi_layer_type;
struct eg_layer {
    int32_t refs, tracked;               // how many layers it is a part of
    const egi_layer_type *type;
    char *name;
    bool named;                          // by the user, so that nobody renames it
    bool built, frozen;
    egi_layer_config config;
    eg_shape input, output;              // of the first build or call; rank -1: not known yet
    egi_part *parts;
    int64_t n_parts, parts_capacity;
    char *custom;                        // a custom layer: what its maker is called
    eg_function1 *call;
    eg_layer_function *call_multi;
    void *user;
    void (*user_release)(void *user);
    void *training;                      // what eg_compile made; chapter 29's
    void (*training_free)(void *training);
};
// One call (or build) of a layer, on the C stack; the one that runs is egi_this.layer.
typedef struct egi_layer_run {
    eg_layer *layer;
    struct egi_layer_run *up;
    bool training;
    int n, n_out;                        // inputs given, outputs asked for
    eg_tensor *const *in;
    eg_tensor *mask[EGI_LAYER_IN];       // of each input; NULL: all counts
    eg_tensor *out[EGI_LAYER_OUT], *out_mask[EGI_LAYER_OUT];      // a call sets out, and out_mask where it is not the first input's
} egi_layer_run;

enum {
    EGI_PASSES_MASK = 1,                 // the mask of the first input is that of the output
    EGI_FIXED_LAST = 2,                  // once built, the last dimension stays
    EGI_CONTAINER = 4                    // calls other layers, so that it has no weights of its own to make
};
struct egi_layer_type {
    const char *name, *class_name;       // eg_layer_<name>, and the automatic name; what the summary and a configuration say
    int rank;                            // of inputs: 4 is exactly that, -2 at least 2, 0 any
    int n_in, n_out;                     // at most; n_in -1: two or more
    unsigned flags;
    uint64_t has;
    bool (*build)(eg_layer *l, const eg_shape *in, int n);
    bool (*call)(eg_layer *l, egi_layer_run *c);
    bool (*shape)(eg_layer *l, const eg_shape *in, int n, eg_shape *out);     // NULL: as the input; false: not known, or an error
};

static char *egi_layer_copy(const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = (char *)egi_alloc(n);
    if (copy) memcpy(copy, text, n);
    else egi_no_memory("layer", (int64_t)n);
    return copy;
}
// "sequential/dense_1", the layer that runs, into text; returns its length.
static size_t egi_layer_path(const egi_layer_run *run, char *text, size_t capacity) {
    size_t at = run->up ? egi_layer_path(run->up, text, capacity) : 0;
    int more = snprintf(text + at, capacity - at, at ? "/%.60s" : "%.60s", run->layer->name);
    return more > 0 && at + (size_t)more < capacity ? at + (size_t)more : at;
}
// Every error that is raised while a layer runs says in which one.
static void egi_layer_mark(char *text, size_t capacity) {
    char path[200];
    size_t length = strlen(text);
    if (!egi_this.layer) return;
    egi_layer_path(egi_this.layer, path, sizeof path);
    snprintf(text + length, capacity - length, ", in layer %s", path);
}

static void egi_part_drop(egi_part *p) {
    if (p->child) {
        __atomic_fetch_sub(&p->child->tracked, 1, __ATOMIC_RELAXED);
        eg_layer_release(p->child);
    }
    eg_release(p->variable);
    egi_free(p->name);
}
static void egi_parts_drop(eg_layer *l, int64_t keep) {
    while (l->n_parts > keep) egi_part_drop(&l->parts[--l->n_parts]);
}
EAGER_API eg_layer *eg_layer_retain(eg_layer *l) {
    if (l) __atomic_fetch_add(&l->refs, 1, __ATOMIC_RELAXED);
    return l;
}
EAGER_API void eg_layer_release(eg_layer *l) {
    if (!l || __atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (l->training_free) l->training_free(l->training);
    egi_parts_drop(l, 0);
    if (l->user_release) l->user_release(l->user);
    egi_free(l->parts);
    egi_free(l->custom);
    egi_free(l->name);
    egi_free(l);
}
static bool egi_layer_alive(const char *function, const eg_layer *l) {
    if (l) return true;
    return egi_this.error != EG_OK ? false : egi_fail(EG_ERROR_NULL, "eg_%s: the layer is NULL", function);
}

static bool egi_field_given(const egi_layer_config *c, int field) {
    const char *p = (const char *)c + egi_layer_fields[field].offset;
    for (size_t i = 0; i < egi_layer_fields[field].size; i++) if (p[i]) return true;
    return false;
}
// A new layer of this kind. Only what its row has may be set.
static eg_layer *egi_layer_make(const egi_layer_type *type, const egi_layer_config *config) {
    for (int f = 0; f < EGI_LAYER_FIELD_COUNT; f++)
        if (!((type->has | EGI_HAS_ALWAYS) >> f & 1) && egi_field_given(config, f))
            return (eg_layer *)eg_raise(EG_ERROR_ARGUMENT, "eg_layer_%s: has no option .%s", type->name, egi_layer_fields[f].name);
    const eg_layer_options *o = &config->o;
    if (o->dtype != EG_FLOAT32 && o->dtype != EG_FLOAT64)
        return (eg_layer *)eg_raise(EG_ERROR_DTYPE, "eg_layer_%s: weights are float32 or float64, not %s", type->name, eg_dtype_name(o->dtype));
    eg_layer *l = (eg_layer *)egi_alloc(sizeof *l);
    if (!l) { egi_no_memory("layer", (int64_t)sizeof *l); return NULL; }
    memset(l, 0, sizeof *l);
    l->refs = 1;
    l->type = type;
    l->config = *config;
    l->config.o.name = NULL;
    l->frozen = o->frozen;
    l->named = o->name != NULL;
    l->input.rank = l->output.rank = -1;
    l->name = egi_layer_copy(o->name ? o->name : type->name);
    if (!l->name) { eg_layer_release(l); return NULL; }
    return l;
}
// The size that stands before the options must be at least 1.
static bool egi_layer_positive(const egi_layer_type *type, const char *what, int64_t value) {
    return value >= 1 || egi_fail(EG_ERROR_ARGUMENT, "eg_layer_%s: %lld %s; there must be at least 1", type->name, (long long)value, what);
}

static egi_part *egi_part_new(eg_layer *l, const char *name) {
    void *parts = l->parts;
    for (int64_t i = 0; i < l->n_parts; i++)
        if (strcmp(l->parts[i].name, name) == 0) {
            egi_fail(EG_ERROR_ARGUMENT, "eg_layer: layer %.60s has a part called %.60s already", l->name, name);
            return NULL;
        }
    if (!*name || strchr(name, '/')) {
        egi_fail(EG_ERROR_ARGUMENT, "eg_layer: '%.60s' is no name for a part of layer %.60s", name, l->name);
        return NULL;
    }
    if (!egi_grow(&parts, &l->parts_capacity, l->n_parts + 1, sizeof *l->parts)) { egi_no_memory("layer", 0); return NULL; }
    l->parts = (egi_part *)parts;
    egi_part *p = &l->parts[l->n_parts];
    memset(p, 0, sizeof *p);
    p->name = egi_layer_copy(name);
    if (!p->name) return NULL;
    l->n_parts++;
    return p;
}
EAGER_API eg_tensor *eg_layer_weight(eg_layer *l, const char *name, eg_tensor *initial, bool trainable) {
    char path[320];
    if (!egi_layer_alive("layer_weight", l) || !egi_alive("layer_weight", 2, initial)) return NULL;
    if (!name) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_layer_weight: a weight needs a name");
    egi_layer_run here;                  // so that a weight made outside of a call has a path, too
    memset(&here, 0, sizeof here);
    here.layer = l;
    size_t at = egi_layer_path(egi_this.layer && egi_this.layer->layer == l ? egi_this.layer : &here, path, sizeof path);
    snprintf(path + at, sizeof path - at, "/%.60s", name);
    eg_tensor *v = eg_variable(initial, path);
    egi_part *p = v ? egi_part_new(l, name) : NULL;
    if (!p) { eg_release(v); return NULL; }
    p->variable = v;
    p->trainable = trainable && eg_trainable(v);
    if (!p->trainable || l->frozen) eg_set_trainable(v, false);
    return v;
}

// Whether child is the layer, or somewhere in it.
static bool egi_layer_contains(const eg_layer *l, const eg_layer *child) {
    if (l == child) return true;
    for (int64_t i = 0; i < l->n_parts; i++) if (l->parts[i].child && egi_layer_contains(l->parts[i].child, child)) return true;
    return false;
}
// base, or base_1, base_2 ... where a part has that name.
static void egi_layer_unique(const eg_layer *l, const char *base, char *name, size_t capacity) {
    snprintf(name, capacity, "%s", base);
    for (int64_t i = 0, turn = 0; i < l->n_parts; i++)
        if (strcmp(l->parts[i].name, name) == 0) {
            snprintf(name, capacity, "%.80s_%lld", base, (long long)++turn);
            i = -1;
        }
}
EAGER_API eg_layer *eg_layer_track(eg_layer *l, const char *name, eg_layer *child) {
    char unique[128];
    bool ok = egi_layer_alive("layer_track", child) && egi_layer_alive("layer_track", l);
    if (ok && egi_layer_contains(child, l)) ok = egi_fail(EG_ERROR_ARGUMENT, "eg_layer_track: layer %.60s cannot be a part of itself", l->name);
    if (ok && !name) {
        if (child->named) snprintf(unique, sizeof unique, "%.100s", child->name);
        else egi_layer_unique(l, child->custom ? child->custom : child->type->name, unique, sizeof unique);
    }
    egi_part *p = ok ? egi_part_new(l, name ? name : unique) : NULL;
    char *own = p && !child->named ? egi_layer_copy(p->name) : NULL;
    if (p && !child->named && !own) { egi_parts_drop(l, l->n_parts - 1); p = NULL; }
    if (!p) { eg_layer_release(child); return NULL; }
    p->child = child;
    if (own && !child->tracked) { egi_free(child->name); child->name = own; }
    else egi_free(own);
    __atomic_fetch_add(&child->tracked, 1, __ATOMIC_RELAXED);
    if (l->frozen) eg_layer_set_trainable(child, false);
    return child;
}
EAGER_API const char *eg_layer_name(eg_layer *l) { return egi_layer_alive("layer_name", l) ? l->name : ""; }
EAGER_API bool eg_layer_set_name(eg_layer *l, const char *name) {
    if (!egi_layer_alive("layer_set_name", l)) return false;
    if (!name || !*name || strchr(name, '/')) return egi_fail(EG_ERROR_ARGUMENT, "eg_layer_set_name: '%.60s' is no name for a layer", name ? name : "NULL");
    char *copy = egi_layer_copy(name);
    if (!copy) return false;
    egi_free(l->name);
    l->name = copy;
    l->named = true;
    return true;
}
EAGER_API int eg_layer_layers(eg_layer *l, eg_layer **layers, int capacity) {
    int count = 0;
    if (!egi_layer_alive("layer_layers", l)) return 0;
    for (int64_t i = 0; i < l->n_parts; i++) {
        if (!l->parts[i].child) continue;
        if (count < capacity) layers[count] = l->parts[i].child;
        count++;
    }
    return count;
}

// ---- walks

// All weights below a layer, one at a time, in order. A layer that is part of several is met once.
typedef struct egi_weight_walk {
    bool (*visit)(struct egi_weight_walk *w, egi_part *p);       // false: that is enough
    const eg_layer **shared;
    int64_t n_shared, capacity;
    char path[512];
    int64_t i, wanted;                                    // what visitors count and look for
    bool trainable;
    eg_tensor **out;
    eg_tensor *sum;
} egi_weight_walk;
static bool egi_walk_parts(egi_weight_walk *w, const eg_layer *l, size_t at) {
    if (l->tracked > 1) {
        void *shared = (void *)w->shared;
        for (int64_t i = 0; i < w->n_shared; i++) if (w->shared[i] == l) return true;
        if (!egi_grow(&shared, &w->capacity, w->n_shared + 1, sizeof *w->shared)) return egi_no_memory("layer", 0);
        w->shared = (const eg_layer **)shared;
        w->shared[w->n_shared++] = l;
    }
    for (int64_t i = 0; i < l->n_parts; i++) {
        egi_part *p = &l->parts[i];
        int more = snprintf(w->path + at, sizeof w->path - at, at ? "/%s" : "%s", p->name);
        size_t next = more > 0 && at + (size_t)more < sizeof w->path ? at + (size_t)more : sizeof w->path - 1;
        if (p->child ? !egi_walk_parts(w, p->child, next) : !w->visit(w, p)) return false;
    }
    return true;
}
static bool egi_walk_from(egi_weight_walk *w, const eg_layer *l) {
    bool all = egi_walk_parts(w, l, 0);
    egi_free((void *)w->shared);
    return all;
}
static bool egi_visit_list(egi_weight_walk *w, egi_part *p) {
    if (w->trainable && !eg_trainable(p->variable)) return true;
    if (w->i < w->wanted) w->out[w->i] = p->variable;
    w->i++;
    return true;
}
static bool egi_visit_path(egi_weight_walk *w, egi_part *p) { (void)p; return w->i++ < w->wanted; }
static bool egi_visit_count(egi_weight_walk *w, egi_part *p) { w->i += p->variable->size; return true; }

static bool egi_layer_build_alone(eg_layer *l);
static int egi_layer_list(const char *function, eg_layer *l, eg_tensor **out, int capacity, bool trainable) {
    egi_weight_walk w;
    if (!egi_layer_alive(function, l) || !egi_layer_build_alone(l)) return 0;
    memset(&w, 0, sizeof w);
    w.visit = egi_visit_list;
    w.out = out;
    w.wanted = capacity;
    w.trainable = trainable;
    return egi_walk_from(&w, l) ? (int)w.i : 0;
}
EAGER_API int eg_layer_weights(eg_layer *l, eg_tensor **out, int capacity) { return egi_layer_list("layer_weights", l, out, capacity, false); }
EAGER_API int eg_layer_trainable_weights(eg_layer *l, eg_tensor **out, int capacity) {
    return egi_layer_list("layer_trainable_weights", l, out, capacity, true);
}
EAGER_API const char *eg_layer_weight_path(eg_layer *l, int i, char *text, size_t capacity) {
    egi_weight_walk w;
    if (!egi_layer_alive("layer_weight_path", l) || !egi_layer_build_alone(l)) return NULL;
    memset(&w, 0, sizeof w);
    w.visit = egi_visit_path;
    w.wanted = i;
    if (i < 0 || egi_walk_from(&w, l)) {
        egi_fail(EG_ERROR_INDEX, "eg_layer_weight_path: layer %.60s has no weight %d", l->name, i);
        return NULL;
    }
    snprintf(text, capacity, "%s", w.path);
    return text;
}
EAGER_API int64_t eg_layer_parameters(eg_layer *l) {
    egi_weight_walk w;
    if (!egi_layer_alive("layer_parameters", l) || !egi_layer_build_alone(l)) return 0;
    memset(&w, 0, sizeof w);
    w.visit = egi_visit_count;
    return egi_walk_from(&w, l) ? w.i : 0;
}
EAGER_API void eg_layer_set_trainable(eg_layer *l, bool trainable) {
    if (!egi_layer_alive("layer_set_trainable", l)) return;
    l->frozen = !trainable;
    for (int64_t i = 0; i < l->n_parts; i++) {
        egi_part *p = &l->parts[i];
        if (p->child) eg_layer_set_trainable(p->child, trainable);
        else if (p->trainable) eg_set_trainable(p->variable, trainable);
    }
}
EAGER_API bool eg_layer_trainable(eg_layer *l) { return egi_layer_alive("layer_trainable", l) && !l->frozen; }

static bool egi_visit_losses(egi_weight_walk *w, egi_part *p) {
    eg_reduce_options all;
    memset(&all, 0, sizeof all);
    if (!eg_trainable(p->variable)) return true;
    for (int k = 0; k < 2; k++) {
        double rate = k ? p->l2 : p->l1;
        if (rate == 0) continue;
        eg_tensor *term = (eg_mul)((eg_reduce_sum)(k ? eg_square(p->variable) : eg_abs(p->variable), all), eg_number(rate));
        if (term && w->sum && term->dtype != w->sum->dtype) { term = eg_cast(term, EG_FLOAT64); w->sum = eg_cast(w->sum, EG_FLOAT64); }
        w->sum = term && w->sum ? (eg_add)(w->sum, term) : term;
        if (!w->sum) return false;
    }
    return true;
}
EAGER_API eg_tensor *eg_layer_losses(eg_layer *l) {
    egi_weight_walk w;
    if (!egi_layer_alive("layer_losses", l) || !egi_layer_build_alone(l)) return NULL;
    memset(&w, 0, sizeof w);
    w.visit = egi_visit_losses;
    return egi_walk_from(&w, l) ? w.sum : NULL;
}

// ---- initializers

static const char *const egi_initializers[] = { "default", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal",       // ORDER eg_initializer
    "orthogonal", "identity", "zeros", "ones", "constant", "uniform", "normal", "truncated_normal" };
enum { EGI_INITIALIZERS = (int)(sizeof egi_initializers / sizeof egi_initializers[0]) };

static void egi_fans(eg_shape shape, double *in, double *out) {
    double window = 1;
    for (int i = 0; i < shape.rank - 2; i++) window *= (double)shape.dims[i];
    *in = shape.rank == 0 ? 1 : shape.rank == 1 ? (double)shape.dims[0] : window * (double)shape.dims[shape.rank - 2];
    *out = shape.rank < 2 ? *in : window * (double)shape.dims[shape.rank - 1];
}
// Rows made orthonormal one after the other; a second pass takes away what rounding left in the first.
static void egi_orthonormalize(double *a, int64_t rows, int64_t n) {
    for (int64_t j = 0; j < rows; j++) {
        double *v = a + j * n, norm = 0;
        for (int64_t k = 0; k < 2 * j; k++) {
            const double *u = a + (k % j) * n;
            double dot = 0;
            for (int64_t i = 0; i < n; i++) dot += u[i] * v[i];
            for (int64_t i = 0; i < n; i++) v[i] -= dot * u[i];
        }
        for (int64_t i = 0; i < n; i++) norm += v[i] * v[i];
        norm = sqrt(norm);
        for (int64_t i = 0; i < n; i++) v[i] /= norm;
    }
}
// All but the last dimension are rows. The shorter side's vectors are orthonormal.
static eg_tensor *egi_orthogonal(eg_dtype dtype, eg_shape shape, double gain) {
    if (shape.rank < 2) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_initialize: an orthogonal matrix has two dimensions or more, not %s", egi_show(shape));
    int64_t columns = shape.dims[shape.rank - 1], rows = 1;
    for (int i = 0; i < shape.rank - 1; i++) rows *= shape.dims[i];
    eg_random_options normal;
    eg_transpose_options reverse;
    memset(&normal, 0, sizeof normal);
    memset(&reverse, 0, sizeof reverse);
    normal.dtype = EG_FLOAT64;
    eg_shape flat = { 2, { rows < columns ? rows : columns, rows < columns ? columns : rows } };
    eg_tensor *x = (eg_random_normal)(flat, normal);
    const double *values = x ? (const double *)eg_data(x) : NULL;
    double *q = values ? (double *)egi_alloc((size_t)x->size * sizeof *q + 1) : NULL;
    if (!q) {
        if (values) egi_no_memory("initialize", x->size * 8);
        return NULL;
    }
    if (x->size) memcpy(q, values, (size_t)x->size * sizeof *q);
    egi_orthonormalize(q, flat.dims[0], flat.dims[1]);
    for (int64_t i = 0; i < x->size; i++) q[i] *= gain;
    eg_tensor *y = eg_from_data(EG_FLOAT64, flat, q);
    egi_free(q);
    if (rows > columns) y = (eg_transpose)(y, reverse);
    return y ? eg_cast(eg_reshape(y, shape), dtype) : NULL;
}
static eg_tensor *egi_initialize(eg_initializer kind, double value, eg_dtype dtype, eg_shape shape) {
    double in, out;
    egi_fans(shape, &in, &out);
    eg_random_options o;
    memset(&o, 0, sizeof o);
    o.dtype = dtype;
    double fan = kind == EG_INIT_HE_UNIFORM || kind == EG_INIT_HE_NORMAL || kind == EG_INIT_LECUN_UNIFORM || kind == EG_INIT_LECUN_NORMAL ? in : (in + out) / 2;
    double variance = (kind == EG_INIT_HE_UNIFORM || kind == EG_INIT_HE_NORMAL ? 2.0 : 1.0) / (fan > 1 ? fan : 1);
    switch (kind) {
    case EG_INIT_ZEROS: return eg_zeros(dtype, shape);
    case EG_INIT_ONES: return eg_ones(dtype, shape);
    case EG_INIT_CONSTANT: return eg_full(dtype, shape, egi_or(value, 0));
    case EG_INIT_ORTHOGONAL: return egi_orthogonal(dtype, shape, egi_or(value, 1));
    case EG_INIT_IDENTITY:
        if (shape.rank != 2) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_initialize: an identity has two dimensions, not %s", egi_show(shape));
        return (eg_mul)(eg_eye(dtype, shape.dims[0], shape.dims[1]), eg_number(egi_or(value, 1)));
    case EG_INIT_NORMAL: case EG_INIT_TRUNCATED_NORMAL:
        o.stddev = value == 0 ? .05 : value;
        return kind == EG_INIT_NORMAL ? (eg_random_normal)(shape, o) : (eg_random_truncated_normal)(shape, o);
    case EG_INIT_GLOROT_NORMAL: case EG_INIT_HE_NORMAL: case EG_INIT_LECUN_NORMAL:
        o.stddev = sqrt(variance) / .87962566103423978;        // the stddev that is left of 1 when a normal is cut at 2
        return (eg_random_truncated_normal)(shape, o);
    case EG_INIT_UNIFORM: o.maxval = egi_or(value, .05); break;
    case EG_DEFAULT_INITIALIZER: case EG_INIT_GLOROT_UNIFORM: case EG_INIT_HE_UNIFORM: case EG_INIT_LECUN_UNIFORM: default: o.maxval = sqrt(3 * variance);
    }
    if (o.maxval == 0) return eg_zeros(dtype, shape);
    o.minval = -o.maxval;
    return (eg_random_uniform)(shape, o);
}
EAGER_API eg_tensor *eg_initialize(eg_initializer kind, double value, eg_dtype dtype, eg_shape shape) {
    if ((int)kind < 0 || (int)kind >= EGI_INITIALIZERS) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_initialize: %d is no initializer", (int)kind);
    if (!egi_shape_valid("initialize", shape, dtype)) return NULL;
    EGI_AS("initialize", egi_initialize(kind, value, dtype, shape));
}

// A weight of a built-in layer, from what its options say and the layer's own default.
static eg_tensor *egi_weight(eg_layer *l, const char *name, eg_shape shape, eg_initializer kind, eg_initializer fallback, double value, double l1, double l2) {
    eg_tensor *initial = eg_initialize(kind ? kind : fallback, value, l->config.o.dtype, shape);
    eg_tensor *v = initial ? eg_layer_weight(l, name, initial, true) : NULL;
    if (!v) return NULL;
    egi_part *p = &l->parts[l->n_parts - 1];
    p->l1 = egi_or(l1, 0);
    p->l2 = egi_or(l2, 0);
    return v;
}
static bool egi_kernel_weight(eg_layer *l, eg_shape shape) {
    const eg_layer_options *o = &l->config.o;
    return egi_weight(l, "kernel", shape, o->kernel_initializer, EG_INIT_GLOROT_UNIFORM, o->kernel_initializer_value, o->kernel_l1, o->kernel_l2) != NULL;
}
static bool egi_bias_weight(eg_layer *l, int64_t n) {
    const eg_layer_options *o = &l->config.o;
    eg_shape shape = { 1, { n } };
    return o->no_bias || egi_weight(l, "bias", shape, o->bias_initializer, EG_INIT_ZEROS, o->bias_initializer_value, o->bias_l1, o->bias_l2) != NULL;
}
// A weight by name, NULL where the layer has none.
static eg_tensor *egi_part_of(const eg_layer *l, const char *name) {
    for (int64_t i = 0; i < l->n_parts; i++) if (strcmp(l->parts[i].name, name) == 0) return l->parts[i].variable;
    return NULL;
}

// ---- activations

static eg_tensor *egi_linear(eg_tensor *x) { return x; }
static eg_tensor *egi_leaky(eg_tensor *x) { return (eg_leaky_relu)(x, eg_number(.2)); }
static eg_tensor *egi_elu_1(eg_tensor *x) { return (eg_elu)(x, eg_number(1)); }
static eg_tensor *egi_softmax_last(eg_tensor *x) { eg_axis_options last = { 0, 0 }; return (eg_softmax)(x, last); }
static eg_tensor *egi_log_softmax_last(eg_tensor *x) { eg_axis_options last = { 0, 0 }; return (eg_log_softmax)(x, last); }
static const struct { const char *name; eg_tensor *(*f)(eg_tensor *x); } egi_activations[] = {       // ORDER eg_activation
    { "default", egi_linear }, { "linear", egi_linear }, { "relu", eg_relu }, { "relu6", eg_relu6 }, { "leaky_relu", egi_leaky },
    { "elu", egi_elu_1 }, { "selu", eg_selu }, { "gelu", eg_gelu }, { "gelu_tanh", eg_gelu_tanh }, { "silu", eg_silu }, { "mish", eg_mish },
    { "softplus", eg_softplus }, { "softsign", eg_softsign }, { "tanh", eg_tanh }, { "sigmoid", eg_sigmoid }, { "hard_sigmoid", eg_hard_sigmoid },
    { "softmax", egi_softmax_last }, { "log_softmax", egi_log_softmax_last }, { "exponential", eg_exp }
};
enum { EGI_ACTIVATIONS = (int)(sizeof egi_activations / sizeof egi_activations[0]) };
EAGER_API eg_tensor *eg_activate(eg_tensor *x, eg_activation a) {
    if ((int)a < 0 || (int)a >= EGI_ACTIVATIONS) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_activate: %d is no activation", (int)a);
    return egi_activations[a].f(x);
}

// ---- calling and building

EAGER_API bool eg_training(void) { return egi_this.layer && egi_this.layer->training; }
EAGER_API eg_tensor *eg_mask_of(eg_tensor *x) { return x && egi_alive("mask_of", 0, x) ? x->mask : NULL; }

// A result with this mask: a handle of its own where somebody else may see x.
static eg_tensor *egi_with_mask(eg_tensor *x, eg_tensor *mask) {
    if (!x || x->mask == mask) return x;
    if (x->mask || (x->flags & (EGI_VARIABLE | EGI_NUMBER)) || __atomic_load_n(&x->object.refs, __ATOMIC_ACQUIRE) != 1) x = eg_identity(x);
    if (x) x->mask = eg_retain(mask);
    return x;
}
EAGER_API eg_tensor *eg_with_mask(eg_tensor *x, eg_tensor *mask) {
    if (!egi_alive("with_mask", 0, x) || (mask && !egi_alive("with_mask", 1, mask))) return NULL;
    if (mask && mask->dtype != EG_BOOL) return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_with_mask: the mask %s is not bool", egi_describe(mask));
    return egi_with_mask(eg_identity(x), mask);
}
static void egi_layer_enter(egi_layer_run *run, eg_layer *l, bool training) {
    memset(run, 0, sizeof *run);
    run->layer = l;
    run->up = egi_this.layer;
    run->training = training;
    egi_this.layer = run;
}
static void egi_layer_leave(const egi_layer_run *run) { egi_this.layer = run->up; }

// Whether inputs of these shapes (-1: free) are what the layer takes, and what it was built for.
static bool egi_layer_takes(const eg_layer *l, const eg_shape *in, int n) {
    const egi_layer_type *t = l->type;
    int most = t->n_in < 0 ? EGI_LAYER_IN : l->config.n_in ? l->config.n_in : t->n_in;
    if (n > most || n < (t->n_in < 0 ? 2 : 1))
        return egi_fail(EG_ERROR_ARGUMENT, "eg_call: %d inputs; %s takes %s%d", n, t->class_name, n > most && most > 1 ? "at most " : "", n > most ? most : t->n_in < 0 ? 2 : 1);
    if (t->rank > 0 ? in->rank != t->rank : in->rank < -t->rank)
        return egi_fail(EG_ERROR_SHAPE, "eg_call: %s takes inputs of rank %d%s, not %s (rank %d)", t->class_name, abs(t->rank), t->rank < 0 ? " or more" : "",
                        egi_show(*in), in->rank);
    const eg_shape *given = &l->config.o.input_shape;
    bool fits = !given->rank || in->rank == given->rank + 1;
    for (int i = 0; i < given->rank && fits; i++) fits = given->dims[i] < 0 || in->dims[i + 1] < 0 || given->dims[i] == in->dims[i + 1];
    if (!fits) return egi_fail(EG_ERROR_SHAPE, "eg_call: the input %s is not the batch of %s that .input_shape promised", egi_show(*in), egi_show(*given));
    if (!l->built || !(t->flags & EGI_FIXED_LAST)) return true;
    int64_t now = in->dims[in->rank - 1], built = l->input.dims[l->input.rank - 1];
    return now < 0 || now == built ||
           egi_fail(EG_ERROR_SHAPE, "eg_call: the layer was built for inputs %s, but is called with %s (%lld against %lld)", egi_show(l->input), egi_show(*in),
                    (long long)built, (long long)now);
}
// Makes the weights, on the first call or before it. Nothing is left of a build that failed.
static bool egi_layer_make_weights(eg_layer *l, const eg_shape *in, int n) {
    if (l->built || (l->type->flags & EGI_CONTAINER)) return true;
    int64_t before = l->n_parts;
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    bool ok = !l->type->build || l->type->build(l, in, n);
    eg_recording_unpause();
    eg_scope_end(scope);
    if (!ok) egi_parts_drop(l, before);
    else { l->built = true; l->input = *in; }
    return ok;
}
// The shape of the output; rank -1 where only a call can tell.
static bool egi_layer_shape(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    *out = *in;
    return !l->type->shape || l->type->shape(l, in, n, out);
}
// Checks, makes the weights of the layer and all in it, tells the output's shape.
static bool egi_layer_prepare(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    egi_layer_run run;
    egi_layer_enter(&run, l, false);
    bool ok = egi_layer_takes(l, in, n) && egi_layer_make_weights(l, in, n);
    if (ok && (l->type->flags & EGI_CONTAINER) && l->type->build) ok = l->type->build(l, in, n);
    ok = ok && egi_layer_shape(l, in, n, out);
    egi_layer_leave(&run);
    if (!ok || out->rank < 0) return ok;
    l->built = true;
    l->input = *in;
    l->output = *out;
    return true;
}
EAGER_API bool eg_layer_build(eg_layer *l, eg_shape input) {
    eg_shape out;
    if (!egi_layer_alive("layer_build", l)) return false;
    if (input.rank < 0 || input.rank > EG_MAX_RANK) return egi_fail(EG_ERROR_SHAPE, "eg_layer_build: rank %d is not between 0 and %d", input.rank, EG_MAX_RANK);
    for (int i = 0; i < input.rank; i++)
        if (input.dims[i] < -1) return egi_fail(EG_ERROR_SHAPE, "eg_layer_build: dimension %d of %s is negative", i, egi_show(input));
    if (!egi_layer_prepare(l, &input, 1, &out)) return false;
    return out.rank >= 0 || egi_fail(EG_ERROR_STATE, "eg_layer_build: layer %.60s holds a function of yours; its weights are made when it is called", l->name);
}
// The shape that the layer was told to expect, batch included; rank -1: none.
static eg_shape egi_layer_expects(const eg_layer *l) {
    eg_shape shape = l->config.o.input_shape;
    if (!shape.rank && (l->type->flags & EGI_CONTAINER) && !l->custom && l->n_parts && l->parts[0].child) return egi_layer_expects(l->parts[0].child);
    for (int i = shape.rank; i > 0; i--) shape.dims[i] = shape.dims[i - 1];
    shape.dims[0] = -1;
    shape.rank = shape.rank ? shape.rank + 1 : -1;
    return shape;
}
// One who looks at a layer that knows what it will be called with finds its weights made.
static bool egi_layer_build_alone(eg_layer *l) {
    eg_shape in = egi_layer_expects(l), out;
    return l->built || in.rank < 0 || egi_layer_prepare(l, &in, 1, &out);
}

static bool egi_layer_inputs(egi_layer_run *run, eg_tensor *const *in, eg_tensor **own, int n, eg_tensor *mask) {
    if (n < 1 || n > EGI_LAYER_IN) return egi_fail(EG_ERROR_ARGUMENT, "eg_call: %d inputs; a layer takes 1 to %d", n, EGI_LAYER_IN);
    for (int i = 0; i < n; i++) {
        if (!egi_alive("call", i, in[i])) return false;
        own[i] = in[i];
    }
    if (mask && (!egi_alive("call", n, mask) || mask->dtype != EG_BOOL))
        return egi_fail(EG_ERROR_DTYPE, "eg_call: the mask %s is not bool", egi_describe(mask));
    if (mask && mask != own[0]->mask && !(own[0] = egi_with_mask(eg_identity(own[0]), mask))) return false;
    for (int i = 0; i < n; i++) run->mask[i] = own[i]->mask;
    run->in = own;
    run->n = n;
    run->out_mask[0] = run->layer->type->flags & EGI_PASSES_MASK ? run->mask[0] : NULL;
    return true;
}
static bool egi_layer_run_inputs(egi_layer_run *run) {
    eg_layer *l = run->layer;
    eg_shape shapes[EGI_LAYER_IN];
    for (int i = 0; i < run->n; i++) shapes[i] = egi_shape(run->in[i]);
    if (!l->built && (l->type->has & EGI_HAS(dtype)) && run->in[0]->dtype == EG_FLOAT64) l->config.o.dtype = EG_FLOAT64;
    if (!egi_layer_takes(l, shapes, run->n) || !egi_layer_make_weights(l, shapes, run->n)) return false;
    if (!l->type->call(l, run)) return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_call: the layer's function failed") : false;
    for (int i = 0; i < run->n_out; i++) {
        if (!run->out[i]) return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_call: output %d of the layer is NULL", i) : false;
        if (run->out_mask[i] && !(run->out[i] = egi_with_mask(run->out[i], run->out_mask[i]))) return false;
    }
    l->built = true;
    if (l->input.rank < 0) l->input = shapes[0];
    if (l->output.rank < 0) l->output = egi_shape(run->out[0]);
    return true;
}
// What eg_call does, for layers that call layers: mask NULL is the one that in[0] carries.
static bool egi_layer_call(eg_layer *l, eg_tensor *const *in, int n, eg_tensor **out, int n_out, eg_tensor *mask, bool training) {
    egi_layer_run run;
    eg_tensor *own[EGI_LAYER_IN];
    for (int i = 0; i < n_out; i++) out[i] = NULL;
    if (!egi_layer_alive("call", l)) return false;
    egi_layer_enter(&run, l, training);
    run.n_out = n_out;
    int most = l->config.n_out ? l->config.n_out : l->type->n_out;
    bool ok = (n_out >= 1 && n_out <= most) || egi_fail(EG_ERROR_ARGUMENT, "eg_call: %d outputs asked for; the layer has %d", n_out, most);
    eg_scope scope = eg_scope_begin();
    ok = ok && egi_layer_inputs(&run, in, own, n, mask) && egi_layer_run_inputs(&run);
    for (int i = 0; i < n_out && ok; i++) ok = eg_keep(run.out[i]) != NULL;
    eg_scope_end(scope);
    egi_layer_leave(&run);
    for (int i = 0; i < n_out && ok; i++) out[i] = run.out[i];
    return ok;
}
static eg_tensor *egi_layer_call1(eg_layer *l, eg_tensor *x) {
    eg_tensor *y;
    return egi_layer_call(l, &x, 1, &y, 1, NULL, eg_training()) ? y : NULL;
}
EAGER_API bool (eg_call_multi)(eg_layer *l, eg_tensor *const *in, int n, eg_tensor **out, int n_out, eg_call_options o) {
    if (o.training && o.inference) {
        for (int i = 0; i < n_out; i++) out[i] = NULL;
        return egi_fail(EG_ERROR_ARGUMENT, "eg_call: .training and .inference cannot both be");
    }
    return egi_layer_call(l, in, n, out, n_out, o.mask, o.training || (!o.inference && eg_training()));
}
EAGER_API eg_tensor *(eg_call)(eg_layer *l, eg_tensor *x, eg_call_options o) {
    eg_tensor *y;
    return (eg_call_multi)(l, &x, 1, &y, 1, o) ? y : NULL;
}

// ---- fully connected

static bool egi_last_known(const eg_shape *in) {
    return in->dims[in->rank - 1] >= 0 || egi_fail(EG_ERROR_SHAPE, "eg_layer_build: the last dimension of %s must be known, for the weights depend on it", egi_show(*in));
}
static eg_tensor *egi_biased(eg_layer *l, eg_tensor *y) {
    eg_tensor *bias = egi_part_of(l, "bias");
    return eg_activate(bias ? (eg_add)(y, bias) : y, l->config.o.activation);
}
static bool egi_build_dense(eg_layer *l, const eg_shape *in, int n) {
    eg_shape shape = { 2, { in->dims[in->rank - 1], l->config.units } };
    (void)n;
    return egi_last_known(in) && egi_kernel_weight(l, shape) && egi_bias_weight(l, l->config.units);
}
static bool egi_call_dense(eg_layer *l, egi_layer_run *c) {
    eg_tensor *x = c->in[0], *kernel = egi_part_of(l, "kernel");
    eg_shape flat = { 2, { -1, 0 } }, shape = egi_shape(x);
    flat.dims[1] = shape.dims[shape.rank - 1];
    shape.dims[shape.rank - 1] = l->config.units;
    if (x->rank == 2) c->out[0] = egi_biased(l, egi_matmul(x, false, kernel, false));
    else if (x->size) c->out[0] = egi_biased(l, eg_reshape(egi_matmul(eg_reshape(x, flat), false, kernel, false), shape));     // one large product
    else c->out[0] = egi_biased(l, egi_matmul(x, false, kernel, false));
    return c->out[0] != NULL;
}
static bool egi_shape_dense(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    (void)n;
    out->dims[in->rank - 1] = l->config.units;
    return true;
}

// ---- layers of layers

static bool egi_build_sequential(eg_layer *l, const eg_shape *in, int n) {
    eg_shape shape = *in;
    (void)n;
    for (int64_t i = 0; i < l->n_parts && shape.rank >= 0; i++) if (!egi_layer_prepare(l->parts[i].child, &shape, 1, &shape)) return false;
    return true;
}
static bool egi_shape_sequential(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    *out = *in;
    (void)n;
    for (int64_t i = 0; i < l->n_parts && out->rank >= 0; i++) {
        eg_shape shape = *out;
        if (!egi_layer_shape(l->parts[i].child, &shape, 1, out)) return false;
    }
    return true;
}
// What a layer made dies when the next one has read it; a tape keeps what it needs.
static bool egi_call_sequential(eg_layer *l, egi_layer_run *c) {
    eg_tensor *x = eg_retain(c->in[0]);
    if (!l->n_parts) { eg_release(x); return egi_fail(EG_ERROR_STATE, "eg_call: the model has no layers"); }
    for (int64_t i = 0; i < l->n_parts && x; i++) {
        eg_scope scope = eg_scope_begin();
        eg_tensor *y = eg_retain(egi_layer_call1(l->parts[i].child, x));
        eg_scope_end(scope);
        eg_release(x);
        x = y;
    }
    return (c->out[0] = egi_own(x)) != NULL;
}
static bool egi_call_custom(eg_layer *l, egi_layer_run *c) {
    eg_tensor *in[EGI_LAYER_IN] = { NULL };
    for (int i = 0; i < c->n; i++) in[i] = c->in[i];
    if (l->call_multi) return l->call_multi(in, c->out, l->user);
    return (c->out[0] = l->call(in, l->user)) != NULL;
}
static bool egi_shape_unknown(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    (void)l;
    (void)in;
    (void)n;
    out->rank = -1;
    return true;
}

// ---- recurrent layers
// h' = cell(x W + b, h): the product with the inputs of all steps is made at once; then a loop goes from step to step.

typedef struct egi_recurrence egi_recurrence;
typedef struct egi_cell {
    const char *name;
    int gates, states;
    bool (*step)(const egi_recurrence *r, eg_tensor *z, eg_tensor **state);    // state[0] is the output
} egi_cell;
struct egi_recurrence {
    const egi_cell *cell;
    eg_activation activation, gate;     // of what enters the state, and of the gates
    eg_tensor *recurrent[2];            // U; of a GRU that resets before the product also U of its last gate
    eg_tensor *bias;                    // of a GRU that resets after the product: that product's own; else NULL
    eg_tensor *dropout;                 // multiplies the state before the product; or NULL
};

static eg_tensor *egi_recur(const egi_recurrence *r, eg_tensor *h, int part) {
    return egi_matmul(r->dropout ? (eg_mul)(h, r->dropout) : h, false, r->recurrent[part], false);
}

// h' = f(z + h U)
static bool egi_simple_rnn_step(const egi_recurrence *r, eg_tensor *z, eg_tensor **state) {
    state[0] = eg_activate((eg_add)(z, egi_recur(r, state[0], 0)), r->activation);
    return state[0] != NULL;
}
// c' = forget c + input f(z), h' = output f(c')    (Hochreiter & Schmidhuber 1997; the forget gate: Gers et al. 2000)
static bool egi_lstm_step(const egi_recurrence *r, eg_tensor *z, eg_tensor **state) {
    eg_tensor *gate[4];                                        // i f c o
    if (!eg_split((eg_add)(z, egi_recur(r, state[0], 0)), 4, 1, gate)) return false;
    for (int i = 0; i < 4; i++) gate[i] = eg_activate(gate[i], i == 2 ? r->activation : r->gate);
    state[1] = (eg_add)((eg_mul)(gate[1], state[1]), (eg_mul)(gate[0], gate[2]));
    state[0] = (eg_mul)(gate[3], eg_activate(state[1], r->activation));
    return state[0] != NULL;
}
// h' = update h + (1 - update) f(z + reset (h U))    (Cho et al. 2014 have (reset h) U)
static bool egi_gru_step(const egi_recurrence *r, eg_tensor *z, eg_tensor **state) {
    eg_tensor *in[3], *back[3], *h = state[0], *product = egi_recur(r, h, 0);
    bool after = !r->recurrent[1];
    if (!eg_split(z, 3, 1, in)) return false;                  // z r h
    if (after && r->bias) product = (eg_add)(product, r->bias);
    if (!eg_split(product, after ? 3 : 2, 1, back)) return false;
    eg_tensor *update = eg_activate((eg_add)(in[0], back[0]), r->gate), *reset = eg_activate((eg_add)(in[1], back[1]), r->gate);
    eg_tensor *memory = after ? (eg_mul)(reset, back[2]) : egi_recur(r, (eg_mul)(reset, h), 1);
    eg_tensor *candidate = eg_activate((eg_add)(in[2], memory), r->activation);
    state[0] = (eg_add)(candidate, (eg_mul)(update, (eg_sub)(h, candidate)));
    return state[0] != NULL;
}
static const egi_cell egi_cells[] = {
    { "simple_rnn", 1, 1, egi_simple_rnn_step },
    { "lstm", 4, 2, egi_lstm_step },
    { "gru", 3, 1, egi_gru_step },
};

// Steps through z (T, B, gates x units). mask: (T, B, 1) bool or NULL; a masked step leaves the states as they are and repeats
// the output before it (0 at the start). outputs: T of them, in the order of the steps taken, or NULL; *last: the last one.
static bool egi_unroll(const egi_recurrence *r, eg_tensor *z, eg_tensor *mask, bool backwards, eg_tensor **state, eg_tensor **outputs, eg_tensor **last) {
    int64_t steps = z->dims[0];
    bool ok = (*last = eg_zeros_like(state[0])) != NULL;
    for (int64_t i = 0; i < steps && ok; i++) {
        eg_scope scope = eg_scope_begin();
        int64_t t = backwards ? steps - 1 - i : i;
        eg_tensor *next[2] = { state[0], state[1] }, *output;
        ok = r->cell->step(r, eg_index(z, t), next);
        output = next[0];
        if (mask && ok) {
            eg_tensor *runs = eg_index(mask, t);
            for (int s = 0; s < r->cell->states; s++) next[s] = (eg_where)(runs, next[s], state[s]);
            output = (eg_where)(runs, output, *last);
            ok = output && next[r->cell->states - 1];
        }
        for (int s = 0; s < r->cell->states && ok; s++) state[s] = eg_keep(next[s]);
        if (ok) *last = eg_keep(output);
        if (outputs) outputs[i] = *last;
        eg_scope_end(scope);
    }
    return ok;
}

static const egi_cell *egi_cell_of(const eg_layer *l) {
    for (size_t i = 0; i < sizeof egi_cells / sizeof *egi_cells; i++) if (!strcmp(egi_cells[i].name, l->type->name)) return &egi_cells[i];
    return NULL;
}
static bool egi_build_recurrent(eg_layer *l, const eg_shape *in, int n) {
    const egi_cell *cell = egi_cell_of(l);
    const eg_layer_options *o = &l->config.o;
    int64_t units = l->config.units, width;
    if (!egi_last_known(in) || !egi_checked_product(units, cell->gates, &width)) return egi_fail(EG_ERROR_SHAPE, "eg_layer_%s: too many units", cell->name);
    bool two = cell->gates == 3 && !o->reset_before;
    eg_shape kernel = { 2, { in->dims[2], width } }, recurrent = { 2, { units, width } }, bias = { two ? 2 : 1, { two ? 2 : width, width } };
    (void)n;
    if (!egi_kernel_weight(l, kernel)) return false;
    if (!egi_weight(l, "recurrent_kernel", recurrent, o->recurrent_initializer, EG_INIT_ORTHOGONAL, 0, o->recurrent_l1, o->recurrent_l2)) return false;
    if (o->no_bias) return true;
    eg_tensor *b = egi_weight(l, "bias", bias, o->bias_initializer, EG_INIT_ZEROS, o->bias_initializer_value, o->bias_l1, o->bias_l2);
    if (!b || cell->states == 1 || o->no_forget_bias) return b != NULL;
    eg_shape begin = { 1, { units } };                         // at first, nothing is forgotten
    return eg_assign_slice(b, begin, begin, eg_number(1)) != NULL;
}
static bool egi_shape_recurrent(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    (void)n;
    out->rank = l->config.o.return_sequences ? 3 : 2;
    out->dims[1] = in->dims[1];
    out->dims[out->rank - 1] = l->config.units;
    return true;
}

// What a state (or an input) is multiplied by in training: the same for all steps.
static eg_tensor *egi_step_dropout(const eg_tensor *like, eg_shape shape, double rate) {
    eg_random_options keep;
    memset(&keep, 0, sizeof keep);
    keep.probability = 1 - rate;
    return (eg_div)(eg_cast((eg_random_bernoulli)(shape, keep), (eg_dtype)like->dtype), eg_number(1 - rate));
}
// (batch, steps, ...) to (steps, batch, ...).
static eg_tensor *egi_steps_first(eg_tensor *x) {
    eg_transpose_options swap;
    memset(&swap, 0, sizeof swap);
    swap.perm.count = 3;
    swap.perm.axes[0] = 1;
    swap.perm.axes[2] = 2;
    return (eg_transpose)(x, swap);
}
// The states to start with: those given, or zeros.
static bool egi_first_states(const eg_layer *l, const egi_layer_run *c, int states, eg_tensor **state) {
    const eg_tensor *x = c->in[0];
    eg_shape shape = { 2, { x->dims[0], l->config.units } };
    if (c->n != 1 && c->n != 1 + states)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_call: %d inputs; %s takes the sequences, and none or all of its %d states", c->n, l->type->class_name, states);
    for (int s = 0; s < states; s++) {
        state[s] = c->n > 1 ? c->in[1 + s] : egi_full_as("zeros", egi_backend_of(x), (eg_dtype)x->dtype, shape, 0);
        if (!state[s]) return false;
        if (!egi_equal_shapes(egi_shape(state[s]), shape))
            return egi_fail(EG_ERROR_SHAPE, "eg_call: state %d of %s is %s; for the sequences %s and %lld units it must be %s", s, l->type->class_name,
                            egi_describe(state[s]), egi_describe(x), (long long)l->config.units, egi_show(shape));
    }
    return true;
}
// x W + b for all steps: (steps, batch, gates x units).
static eg_tensor *egi_all_steps(const eg_layer *l, eg_tensor *x, eg_tensor *bias) {
    eg_tensor *kernel = egi_part_of(l, "kernel");
    eg_shape flat = { 2, { x->dims[0] * x->dims[1], x->dims[2] } }, split = { 3, { x->dims[1], x->dims[0], kernel->dims[1] } };
    eg_tensor *z = egi_matmul(eg_reshape(egi_steps_first(x), flat), false, kernel, false);
    return eg_reshape(bias ? (eg_add)(z, bias) : z, split);
}
static bool egi_recurrence_of(const eg_layer *l, const egi_layer_run *c, egi_recurrence *r, eg_tensor **bias) {
    const eg_layer_options *o = &l->config.o;
    int64_t units = l->config.units;
    eg_shape begin = { 2, { 0, 0 } }, size = { 2, { units, 2 * units } }, state = { 2, { c->in[0]->dims[0], units } };
    memset(r, 0, sizeof *r);
    r->cell = egi_cell_of(l);
    r->activation = o->activation ? o->activation : EG_TANH;
    r->gate = o->recurrent_activation ? o->recurrent_activation : EG_SIGMOID;
    r->recurrent[0] = egi_part_of(l, "recurrent_kernel");
    *bias = egi_part_of(l, "bias");
    if (*bias && (*bias)->rank == 2) {
        r->bias = eg_index(*bias, 1);
        *bias = r->bias ? eg_index(*bias, 0) : NULL;
    }
    if (o->reset_before) {
        eg_tensor *all = r->recurrent[0];
        r->recurrent[0] = eg_slice(all, begin, size);
        begin.dims[1] = 2 * units;
        size.dims[1] = units;
        r->recurrent[1] = eg_slice(all, begin, size);
    }
    bool drops = c->training && o->recurrent_dropout > 0, ok = r->recurrent[0] && (!o->reset_before || r->recurrent[1]) && (o->no_bias || *bias);
    if (drops) r->dropout = egi_step_dropout(c->in[0], state, o->recurrent_dropout);
    return ok && (!drops || r->dropout);
}
static bool egi_call_recurrent(eg_layer *l, egi_layer_run *c) {
    egi_recurrence r;
    eg_tensor *x = c->in[0], *mask = c->mask[0], *bias, *state[2] = { NULL, NULL }, *last, **outputs = NULL;
    const eg_layer_options *o = &l->config.o;
    int64_t steps = x->dims[1];
    eg_shape same = { 3, { x->dims[0], 1, x->dims[2] } };
    if (steps < 1 || steps > INT_MAX) return egi_fail(EG_ERROR_SHAPE, "eg_call: %s of sequences of %lld steps: %s", l->type->class_name, (long long)steps, egi_describe(x));
    if (mask && (mask->rank != 2 || mask->dims[0] != x->dims[0] || mask->dims[1] != steps))
        return egi_fail(EG_ERROR_SHAPE, "eg_call: the mask %s does not fit the sequences %s: one bool for each step", egi_describe(mask), egi_describe(x));
    if (!egi_recurrence_of(l, c, &r, &bias) || !egi_first_states(l, c, r.cell->states, state)) return false;
    if (c->training && o->dropout > 0) x = (eg_mul)(x, egi_step_dropout(x, same, o->dropout));
    eg_tensor *z = x ? egi_all_steps(l, x, bias) : NULL;
    if (mask) mask = egi_steps_first(eg_expand_dims(mask, 2));
    if (!z || (c->mask[0] && !mask)) return false;
    if (o->return_sequences && !(outputs = (eg_tensor **)egi_alloc((size_t)steps * sizeof *outputs))) return egi_no_memory("call", steps * 8);
    bool ok = egi_unroll(&r, z, mask, o->go_backwards, state, outputs, &last);
    if (ok) c->out[0] = outputs ? eg_stack(outputs, (int)steps, 1) : last;
    egi_free(outputs);
    for (int s = 0; s < r.cell->states && ok; s++) c->out[1 + s] = state[s];
    c->out_mask[0] = o->return_sequences ? c->mask[0] : NULL;
    if (c->out_mask[0] && o->go_backwards) {
        eg_axes time = { EGI_AXES_MARK, 1, { 1 } };
        c->out_mask[0] = eg_reverse(c->mask[0], time);
    }
    return ok && c->out[0];
}

// ---- both directions

static bool egi_build_bidirectional(eg_layer *l, const eg_shape *in, int n) {
    eg_shape out;
    (void)n;
    return egi_layer_prepare(l->parts[0].child, in, 1, &out) && egi_layer_prepare(l->parts[1].child, in, 1, &out);
}
static bool egi_shape_bidirectional(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    if (!egi_shape_recurrent(l->parts[0].child, in, n, out)) return false;
    if (l->config.o.merge == EG_MERGE_CONCAT) out->dims[out->rank - 1] *= 2;
    return true;
}
static eg_tensor *egi_merged(eg_merge merge, eg_tensor *a, eg_tensor *b) {
    eg_tensor *both[2] = { a, b };
    if (merge == EG_MERGE_CONCAT) return eg_concat(both, 2, -1);
    if (merge == EG_MERGE_MUL) return (eg_mul)(a, b);
    eg_tensor *sum = (eg_add)(a, b);
    return merge == EG_MERGE_SUM ? sum : (eg_mul)(sum, eg_number(.5));
}
static bool egi_call_bidirectional(eg_layer *l, egi_layer_run *c) {
    const eg_layer *forward = l->parts[0].child;
    eg_axes time = { EGI_AXES_MARK, 1, { 1 } };
    int states = egi_cell_of(forward)->states, given = (c->n - 1) / 2;
    eg_tensor *in[3], *out[2][3];
    if (c->n != 1 && c->n != 1 + 2 * states)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_call: %d inputs; Bidirectional takes the sequences, and none or all of its %d states", c->n, 2 * states);
    for (int k = 0; k < 2; k++) {
        in[0] = c->in[0];
        for (int s = 0; s < given; s++) in[1 + s] = c->in[1 + k * given + s];
        if (!egi_layer_call(l->parts[k].child, in, 1 + given, out[k], c->n_out > 1 ? 1 + states : 1, NULL, c->training)) return false;
        for (int s = 0; s < states && c->n_out > 1; s++) c->out[1 + k * states + s] = out[k][1 + s];
        if (!forward->config.o.return_sequences) continue;
        if (l->parts[k].child->config.o.go_backwards) out[k][0] = eg_reverse(out[k][0], time);
        if (c->mask[0]) out[k][0] = (eg_where)(eg_expand_dims(c->mask[0], 2), out[k][0], eg_number(0));      // what one way repeats, the other has not seen
    }
    c->out_mask[0] = forward->config.o.return_sequences ? c->mask[0] : NULL;
    return (c->out[0] = egi_merged(l->config.o.merge, out[0][0], out[1][0])) != NULL;
}

// ---- attention

// Queries, keys and values, without the mask that may come last.
static int egi_attention_inputs(const egi_layer_run *c, eg_tensor **mask) {
    *mask = c->in && c->n > 1 && c->in[c->n - 1]->dtype == EG_BOOL ? c->in[c->n - 1] : NULL;
    return *mask ? c->n - 1 : c->n;
}
static bool egi_build_attention(eg_layer *l, const eg_shape *in, int n) {
    static const char *const names[] = { "query", "key", "value", "attention_output" };
    const egi_layer_config *k = &l->config;
    int64_t value_dim = k->o.value_dim ? k->o.value_dim : k->size, heads = k->units, shared = k->o.kv_heads ? k->o.kv_heads : heads;
    int64_t units[4] = { 0, 0, 0, k->o.output_units ? k->o.output_units : in->dims[2] };
    eg_tensor *mask;
    if (n > 1) n = egi_attention_inputs(egi_this.layer, &mask);
    eg_shape from[4] = { in[0], in[n > 2 ? 2 : n - 1], in[n > 1 ? 1 : 0], in[0] }, out;
    if (!egi_last_known(in)) return false;
    if (!egi_checked_product(heads, k->size, &units[0]) || !egi_checked_product(shared, k->size, &units[1]) || !egi_checked_product(shared, value_dim, &units[2]) ||
        !egi_checked_product(heads, value_dim, &from[3].dims[2])) return egi_fail(EG_ERROR_SHAPE, "eg_layer_multi_head_attention: too many heads");
    for (int i = 0; i < 4; i++) {
        eg_layer_options o = k->o;
        memset(&o.input_shape, 0, sizeof o.input_shape);
        o.name = NULL;
        o.causal = false;
        o.dropout = 0;
        o.value_dim = o.output_units = o.kv_heads = 0;
        eg_layer *part = eg_layer_track(l, names[i], (eg_layer_dense)(units[i], o));
        if (!part || !egi_layer_prepare(part, &from[i], 1, &out)) return false;
    }
    return true;
}
static bool egi_shape_attention(eg_layer *l, const eg_shape *in, int n, eg_shape *out) {
    (void)in;
    (void)n;
    if (l->config.o.output_units) out->dims[2] = l->config.o.output_units;
    return true;
}
static eg_tensor *egi_swap_heads(eg_tensor *x) {               // (B, T, H, K) to (B, H, T, K), and back
    eg_transpose_options swap;
    memset(&swap, 0, sizeof swap);
    swap.perm.count = 4;
    swap.perm.axes[1] = 2;
    swap.perm.axes[2] = 1;
    swap.perm.axes[3] = 3;
    return (eg_transpose)(x, swap);
}
// The product of an input with all heads' matrices, a head apart: (B, H, T, K).
static eg_tensor *egi_heads(eg_layer *l, int part, eg_tensor *x, int64_t heads) {
    eg_tensor *y = egi_layer_call1(l->parts[part].child, x);
    eg_shape apart = { 4, { x->dims[0], x->dims[1], heads, y ? y->dims[2] / heads : 0 } };
    return egi_swap_heads(eg_reshape(y, apart));
}
static bool egi_narrow(eg_tensor **mask, eg_tensor *by) {
    *mask = *mask && by ? eg_logical_and(*mask, by) : by;
    return *mask != NULL;
}
// What comes together into one mask that broadcasts to (B, H, T, S); NULL: none. *whole: no row of it can be all false.
static bool egi_attention_mask(const eg_layer *l, const egi_layer_run *c, int n, eg_tensor *given, eg_tensor **mask, bool *whole) {
    const eg_tensor *query = c->in[0], *value = c->in[n > 1 ? 1 : 0];
    *mask = NULL;
    for (int i = 0; i < (n == 1 ? 2 : n); i++) {               // of the query (B, 1, T, 1); of value and key (B, 1, 1, S)
        const eg_tensor *x = i ? value : query;
        eg_tensor *one = c->mask[i < n ? i : 0];
        if (!one) continue;
        if (one->rank != 2 || one->dims[0] != x->dims[0] || one->dims[1] != x->dims[1])
            return egi_fail(EG_ERROR_SHAPE, "eg_call: the mask %s does not fit the sequences %s: one bool for each step", egi_describe(one), egi_describe(x));
        if (!egi_narrow(mask, eg_expand_dims(eg_expand_dims(one, 1), i ? 1 : 3))) return false;
    }
    if (given) {
        eg_shape full = { 3, { query->dims[0], query->dims[1], value->dims[1] } };
        bool fits = given->rank <= 3;
        for (int i = 1; i <= given->rank && fits; i++) fits = given->dims[given->rank - i] == 1 || given->dims[given->rank - i] == full.dims[3 - i];
        if (!fits) return egi_fail(EG_ERROR_SHAPE, "eg_call: the mask %s does not broadcast to (batch, queries, keys) %s", egi_describe(given), egi_show(full));
        if (!egi_narrow(mask, given->rank == 3 ? eg_expand_dims(given, 1) : given)) return false;
    }
    *whole = !*mask;
    if (!l->config.o.causal) return true;
    eg_tensor *t = eg_expand_dims(eg_range(EG_INT32, 0, (double)query->dims[1], 1), 1), *s = eg_range(EG_INT32, 0, (double)value->dims[1], 1);
    return egi_narrow(mask, eg_greater_equal(t, s));
}
// Keys (or values) of fewer heads than the queries serve several of these: a dimension to broadcast over.
static eg_tensor *egi_for_groups(eg_tensor *x, int64_t heads, bool few) {
    if (few) return eg_expand_dims(x, 2);
    eg_shape grouped = { 5, { x->dims[0], heads, x->dims[1] / heads, x->dims[2], x->dims[3] } };
    return eg_reshape(x, grouped);
}
// a b, or a b^T, for each head.
static eg_tensor *egi_by_heads(eg_tensor *a, eg_tensor *b, bool transposed) {
    if (!a || !b || a->dims[1] == b->dims[1]) return egi_matmul(a, false, b, transposed);
    eg_shape shape = { 4, { a->dims[0], a->dims[1], a->dims[2], b->dims[transposed ? 2 : 3] } };
    return eg_reshape(egi_matmul(egi_for_groups(a, b->dims[1], false), false, egi_for_groups(b, 0, true), transposed), shape);
}
// softmax(q k^T / sqrt(K)): who looks at whom (Vaswani et al. 2017).
static eg_tensor *egi_attention_weights(eg_tensor *query, eg_tensor *key, eg_tensor *mask, bool whole) {
    if (!query || !key) return NULL;
    eg_tensor *scores = egi_by_heads((eg_mul)(query, eg_number(1 / sqrt((double)query->dims[3]))), key, true);
    if (!mask) return egi_softmax_last(scores);
    eg_tensor *weights = egi_softmax_last((eg_where)(mask, scores, eg_number(-1e9)));
    return whole ? weights : (eg_where)(mask, weights, eg_number(0));       // who may look at nobody sees nothing
}
static bool egi_call_attention(eg_layer *l, egi_layer_run *c) {
    const egi_layer_config *k = &l->config;
    int64_t heads = k->units, shared = k->o.kv_heads ? k->o.kv_heads : heads;
    bool whole = true;
    eg_tensor *mask, *given;
    int n = egi_attention_inputs(c, &given);
    for (int i = 1; i < n; i++)
        if (c->in[i]->rank != 3 || c->in[i]->dims[0] != c->in[0]->dims[0] || c->in[i]->dims[1] != c->in[1]->dims[1])
            return egi_fail(EG_ERROR_SHAPE, "eg_call: query %s, value %s%s%s do not go together: (B, T, C), (B, S, D) and (B, S, E)", egi_describe(c->in[0]),
                            egi_describe(c->in[1]), n > 2 ? ", key " : "", n > 2 ? egi_describe(c->in[2]) : "");
    if (!egi_attention_mask(l, c, n, given, &mask, &whole)) return false;
    eg_tensor *query = egi_heads(l, 0, c->in[0], heads), *key = egi_heads(l, 1, c->in[n > 2 ? 2 : n - 1], shared), *value = egi_heads(l, 2, c->in[n > 1 ? 1 : 0], shared);
    eg_tensor *weights = egi_attention_weights(query, key, mask, whole);
    c->out[1] = weights;
    if (weights && c->training && k->o.dropout > 0) weights = (eg_mul)(weights, egi_step_dropout(weights, egi_shape(weights), k->o.dropout));
    eg_tensor *seen = egi_by_heads(weights, value, false);
    eg_shape together = { 3, { c->in[0]->dims[0], c->in[0]->dims[1], seen ? heads * seen->dims[3] : 0 } };
    return seen && (c->out[0] = egi_layer_call1(l->parts[3].child, eg_reshape(egi_swap_heads(seen), together))) != NULL;
}

// ---- the table of layers

// Function, class, rank of inputs, inputs, outputs, flags, options, build, call, shape.
#define EGI_LAYER_TABLE(ROW) \
    ROW(dense, "Dense", -2, 1, 1, EGI_PASSES_MASK | EGI_FIXED_LAST, EGI_HAS_KERNEL | EGI_HAS_BIAS | EGI_HAS(units) | EGI_HAS(activation), \
        egi_build_dense, egi_call_dense, egi_shape_dense) \
    ROW(simple_rnn, "SimpleRNN", 3, 2, 2, EGI_FIXED_LAST, EGI_HAS_RECURRENT, egi_build_recurrent, egi_call_recurrent, egi_shape_recurrent) \
    ROW(lstm, "LSTM", 3, 3, 3, EGI_FIXED_LAST, EGI_HAS_RECURRENT | EGI_HAS(recurrent_activation) | EGI_HAS(no_forget_bias), \
        egi_build_recurrent, egi_call_recurrent, egi_shape_recurrent) \
    ROW(gru, "GRU", 3, 2, 2, EGI_FIXED_LAST, EGI_HAS_RECURRENT | EGI_HAS(recurrent_activation) | EGI_HAS(reset_before), \
        egi_build_recurrent, egi_call_recurrent, egi_shape_recurrent) \
    ROW(bidirectional, "Bidirectional", 3, 5, 5, EGI_CONTAINER, EGI_HAS(merge), egi_build_bidirectional, egi_call_bidirectional, egi_shape_bidirectional) \
    ROW(multi_head_attention, "MultiHeadAttention", 3, 4, 2, EGI_FIXED_LAST | EGI_PASSES_MASK, EGI_HAS_KERNEL | EGI_HAS_BIAS | EGI_HAS(units) | EGI_HAS(size) | \
        EGI_HAS(causal) | EGI_HAS(dropout) | EGI_HAS(value_dim) | EGI_HAS(output_units) | EGI_HAS(kv_heads), egi_build_attention, egi_call_attention, egi_shape_attention) \
    ROW(sequential, "Sequential", 0, 1, 1, EGI_CONTAINER, 0, egi_build_sequential, egi_call_sequential, egi_shape_sequential) \
    ROW(custom, "Custom", 0, 1, 1, EGI_CONTAINER, EGI_HAS(n_in) | EGI_HAS(n_out), NULL, egi_call_custom, egi_shape_unknown)
#define EGI_LAYER_ROW(name, class_name, rank, n_in, n_out, flags, has, build, call, shape) { #name, class_name, rank, n_in, n_out, flags, has, build, call, shape },
static const egi_layer_type egi_layer_types[] = { EGI_LAYER_TABLE(EGI_LAYER_ROW) };
#define EGI_LAYER_ID(name, class_name, rank, n_in, n_out, flags, has, build, call, shape) EGI_LAYER_##name,
enum { EGI_LAYER_TABLE(EGI_LAYER_ID) EGI_LAYER_TYPES };

static egi_layer_config egi_layer_options_of(const eg_layer_options *o) {
    egi_layer_config c;
    memset(&c, 0, sizeof c);
    c.o = *o;
    return c;
}
EAGER_API eg_layer *(eg_layer_dense)(int64_t units, eg_layer_options o) {
    egi_layer_config c = egi_layer_options_of(&o);
    c.units = units;
    return egi_layer_positive(&egi_layer_types[EGI_LAYER_dense], "units", units) ? egi_layer_make(&egi_layer_types[EGI_LAYER_dense], &c) : NULL;
}
// ---- recurrent layers and attention

static bool egi_layer_rate(const egi_layer_type *type, double rate) {
    return (rate >= 0 && rate < 1) || egi_fail(EG_ERROR_ARGUMENT, "eg_layer_%s: a dropout of %g is not in [0, 1)", type->name, rate);
}
static eg_layer *egi_layer_recurrent(int type, int64_t units, const eg_layer_options *o) {
    egi_layer_config c = egi_layer_options_of(o);
    const egi_layer_type *t = &egi_layer_types[type];
    c.units = units;
    if (!egi_layer_positive(t, "units", units) || !egi_layer_rate(t, o->dropout) || !egi_layer_rate(t, o->recurrent_dropout)) return NULL;
    return egi_layer_make(t, &c);
}
EAGER_API eg_layer *(eg_layer_simple_rnn)(int64_t units, eg_layer_options o) { return egi_layer_recurrent(EGI_LAYER_simple_rnn, units, &o); }
EAGER_API eg_layer *(eg_layer_lstm)(int64_t units, eg_layer_options o) { return egi_layer_recurrent(EGI_LAYER_lstm, units, &o); }
EAGER_API eg_layer *(eg_layer_gru)(int64_t units, eg_layer_options o) { return egi_layer_recurrent(EGI_LAYER_gru, units, &o); }
EAGER_API eg_layer *(eg_layer_bidirectional)(eg_layer *layer, eg_layer_options o) {
    egi_layer_config c = egi_layer_options_of(&o);
    char name[2][64];
    if (!egi_layer_alive("layer_bidirectional", layer)) return NULL;
    bool fits = egi_cell_of(layer) || egi_fail(EG_ERROR_ARGUMENT, "eg_layer_bidirectional: %s is no recurrent layer", layer->type->class_name);
    if (fits && ((int)o.merge < 0 || o.merge > EG_MERGE_AVE)) fits = egi_fail(EG_ERROR_ARGUMENT, "eg_layer_bidirectional: there is no merge %d", (int)o.merge);
    eg_layer *l = fits ? egi_layer_make(&egi_layer_types[EGI_LAYER_bidirectional], &c) : NULL;
    egi_layer_config other = layer->config;
    other.o.go_backwards = !other.o.go_backwards;
    eg_layer *back = l ? egi_layer_make(layer->type, &other) : NULL;
    for (int k = 0; k < 2; k++) snprintf(name[k], sizeof name[k], "%s_%s", k ? "backward" : "forward", layer->type->name);
    if (!back) eg_layer_release(layer);
    else if (!eg_layer_track(l, name[0], layer)) eg_layer_release(back);
    else if (eg_layer_track(l, name[1], back)) return l;
    eg_layer_release(l);
    return NULL;
}
EAGER_API eg_layer *(eg_layer_multi_head_attention)(int64_t heads, int64_t key_dim, eg_layer_options o) {
    egi_layer_config c = egi_layer_options_of(&o);
    const egi_layer_type *t = &egi_layer_types[EGI_LAYER_multi_head_attention];
    c.units = heads;
    c.size = key_dim;
    if (!egi_layer_positive(t, "heads", heads) || !egi_layer_positive(t, "elements a head", key_dim) || !egi_layer_rate(t, o.dropout)) return NULL;
    if (o.value_dim < 0 || o.output_units < 0) return (eg_layer *)eg_raise(EG_ERROR_ARGUMENT, "eg_layer_multi_head_attention: a negative size");
    if (o.kv_heads < 0 || (o.kv_heads && heads % o.kv_heads))
        return (eg_layer *)eg_raise(EG_ERROR_ARGUMENT, "eg_layer_multi_head_attention: %lld heads cannot share the keys of %lld", (long long)heads, (long long)o.kv_heads);
    return egi_layer_make(t, &c);
}

EAGER_API bool eg_layer_add(eg_layer *model, eg_layer *layer) {
    if (model && model->type != &egi_layer_types[EGI_LAYER_sequential]) {
        eg_layer_release(layer);
        return egi_fail(EG_ERROR_ARGUMENT, "eg_layer_add: %.60s is no eg_sequential; eg_layer_track gives it layers", model->name);
    }
    bool last_known = model && (!model->n_parts || model->output.rank >= 0);
    if (!eg_layer_track(model, NULL, layer)) return false;
    eg_shape in = last_known && model->n_parts > 1 ? model->output : egi_layer_expects(layer), out;
    if (!last_known || in.rank < 0) { model->output.rank = -1; return true; }
    egi_layer_run run;
    egi_layer_enter(&run, model, false);
    bool ok = egi_layer_prepare(layer, &in, 1, &out);
    egi_layer_leave(&run);
    if (!ok) { egi_parts_drop(model, model->n_parts - 1); return false; }
    if (model->n_parts == 1) model->input = in;
    model->output = out;
    model->built = out.rank >= 0;
    return true;
}
EAGER_API eg_layer *eg_sequential_of(eg_layer *const *layers, int n) {
    egi_layer_config c;
    memset(&c, 0, sizeof c);
    eg_layer *model = egi_layer_make(&egi_layer_types[EGI_LAYER_sequential], &c);
    bool ok = model != NULL;
    for (int i = 0; i < n; i++) {
        if (ok) ok = eg_layer_add(model, layers[i]);
        else eg_layer_release(layers[i]);
    }
    if (!ok) { eg_layer_release(model); model = NULL; }
    return model;
}
static eg_layer *egi_layer_custom(const char *name, egi_layer_config *c) {
    if (!name || !*name || strchr(name, '/'))
        return (eg_layer *)eg_raise(EG_ERROR_ARGUMENT, "eg_layer_custom: '%.60s' is no name for a kind of layer", name ? name : "NULL");
    eg_layer *l = egi_layer_make(&egi_layer_types[EGI_LAYER_custom], c);
    char *copy = l ? egi_layer_copy(name) : NULL, *own = copy ? egi_layer_copy(name) : NULL;
    if (!own) { egi_free(copy); eg_layer_release(l); return NULL; }
    egi_free(l->name);
    l->name = own;
    l->custom = copy;
    return l;
}
EAGER_API eg_layer *eg_layer_custom(const char *name, eg_function1 *call, void *user) {
    egi_layer_config c;
    memset(&c, 0, sizeof c);
    if (!call) return (eg_layer *)eg_raise(EG_ERROR_ARGUMENT, "eg_layer_custom: the function is NULL");
    eg_layer *l = egi_layer_custom(name, &c);
    if (l) { l->call = call; l->user = user; }
    return l;
}
EAGER_API eg_layer *eg_layer_custom_multi(const char *name, int n_in, int n_out, eg_layer_function *call, void *user) {
    egi_layer_config c;
    memset(&c, 0, sizeof c);
    c.n_in = n_in;
    c.n_out = n_out;
    if (!call || n_in < 1 || n_in > EGI_LAYER_IN || n_out < 1 || n_out > EGI_LAYER_OUT)
        return (eg_layer *)eg_raise(EG_ERROR_ARGUMENT, "eg_layer_custom_multi: a function, 1 to %d inputs and 1 to %d outputs are needed", EGI_LAYER_IN, EGI_LAYER_OUT);
    eg_layer *l = egi_layer_custom(name, &c);
    if (l) { l->call_multi = call; l->user = user; }
    return l;
}
EAGER_API void eg_layer_on_release(eg_layer *l, void (*release)(void *user)) { if (egi_layer_alive("layer_on_release", l)) l->user_release = release; }

//# 29  LOSSES, METRICS, TRAINING ----------------------------------------------
// Idea: see chapter 10. Read first: 28.

// ---- losses: a row each, with the formula for one value an example

// Means and sums over the last axis; of rank 1 and 0, where an element is an example, there is nothing to mean.
static eg_tensor *egi_mean_last(eg_tensor *x) { return x && x->rank > 1 ? (eg_reduce_mean)(x, egi_over_axis(-1, false)) : x; }
static eg_tensor *egi_sum_last(eg_tensor *x) { return x && x->rank > 0 ? (eg_reduce_sum)(x, egi_over_axis(-1, false)) : x; }
static eg_tensor *egi_mean_all(eg_tensor *x) {
    eg_reduce_options all;
    memset(&all, 0, sizeof all);
    return (eg_reduce_mean)(x, all);
}
static eg_tensor *egi_from_1(eg_tensor *x) { return (eg_sub)(eg_number(1), x); }
static eg_tensor *egi_at_least(eg_tensor *x, double least) { return (eg_maximum)(x, eg_number(least)); }
enum { EGI_L_DELTA = 1, EGI_L_SMOOTHING = 2, EGI_L_GAMMA = 4, EGI_L_ALPHA = 8 };
static const double egi_loss_epsilon = 1e-7;                // Keras's
static eg_tensor *egi_probabilities(eg_tensor *p) { return (eg_clip_by_value)(p, eg_number(egi_loss_epsilon), eg_number(1 - egi_loss_epsilon)); }

#define EGI_LOSS_FORMULA(name) static eg_tensor *egi_each_##name(eg_tensor *y, eg_tensor *p, const eg_loss_options *o)
#define EGI_LOSS_UNUSED (void)o
EGI_LOSS_FORMULA(mean_squared_error) { EGI_LOSS_UNUSED; return egi_mean_last((eg_squared_difference)(p, y)); }
EGI_LOSS_FORMULA(mean_absolute_error) { EGI_LOSS_UNUSED; return egi_mean_last(eg_abs((eg_sub)(p, y))); }
EGI_LOSS_FORMULA(mean_absolute_percentage_error) {
    EGI_LOSS_UNUSED;
    return (eg_mul)(eg_number(100), egi_mean_last(eg_abs((eg_div)((eg_sub)(y, p), egi_at_least(eg_abs(y), egi_loss_epsilon)))));
}
EGI_LOSS_FORMULA(mean_squared_logarithmic_error) {
    EGI_LOSS_UNUSED;
    return egi_mean_last((eg_squared_difference)(eg_log1p(egi_at_least(p, egi_loss_epsilon)), eg_log1p(egi_at_least(y, egi_loss_epsilon))));
}
EGI_LOSS_FORMULA(huber) {
    eg_tensor *e = (eg_sub)(p, y), *size = eg_abs(e), *delta = eg_number(o->delta);
    eg_tensor *line = (eg_sub)((eg_mul)(delta, size), eg_number(o->delta * o->delta / 2));
    return egi_mean_last((eg_where)((eg_less_equal)(size, delta), (eg_mul)(eg_number(0.5), eg_square(e)), line));
}
EGI_LOSS_FORMULA(log_cosh) {                                // log((exp(e) + exp(-e)) / 2)
    EGI_LOSS_UNUSED;
    eg_tensor *e = (eg_sub)(p, y);
    return egi_mean_last((eg_sub)((eg_add)(e, eg_softplus((eg_mul)(eg_number(-2), e))), eg_number(0.69314718055994530942)));
}
EGI_LOSS_FORMULA(poisson) { EGI_LOSS_UNUSED; return egi_mean_last((eg_sub)(p, (eg_mul)(y, eg_log((eg_add)(p, eg_number(egi_loss_epsilon)))))); }
EGI_LOSS_FORMULA(kl_divergence) {
    EGI_LOSS_UNUSED;
    y = (eg_clip_by_value)(y, eg_number(egi_loss_epsilon), eg_number(1));
    p = (eg_clip_by_value)(p, eg_number(egi_loss_epsilon), eg_number(1));
    return egi_sum_last((eg_mul)(y, eg_log((eg_div)(y, p))));
}
// Labels of 0 and 1, and no others, count as -1 and 1; decided by a tensor, so that nothing is read back.
static eg_tensor *egi_sides(eg_tensor *y) {
    eg_reduce_options all;
    memset(&all, 0, sizeof all);
    eg_tensor *binary = (eg_reduce_all)((eg_logical_or)((eg_equal)(y, eg_number(0)), (eg_equal)(y, eg_number(1))), all);
    return (eg_where)(binary, (eg_sub)((eg_mul)(eg_number(2), y), eg_number(1)), y);
}
static eg_tensor *egi_hinge_of(eg_tensor *y, eg_tensor *p) { return egi_at_least(egi_from_1((eg_mul)(egi_sides(y), p)), 0); }
EGI_LOSS_FORMULA(hinge) { EGI_LOSS_UNUSED; return egi_mean_last(egi_hinge_of(y, p)); }
EGI_LOSS_FORMULA(squared_hinge) { EGI_LOSS_UNUSED; return egi_mean_last(eg_square(egi_hinge_of(y, p))); }
EGI_LOSS_FORMULA(categorical_hinge) {
    EGI_LOSS_UNUSED;
    eg_tensor *right = egi_sum_last((eg_mul)(y, p)), *wrong = (eg_reduce_max)((eg_mul)(egi_from_1(y), p), egi_over_axis(-1, false));
    return egi_at_least((eg_add)((eg_sub)(wrong, right), eg_number(1)), 0);
}
static eg_tensor *egi_unit(eg_tensor *x) {
    eg_tensor *squares = (eg_reduce_sum)(eg_square(x), egi_over_axis(-1, true));
    return (eg_mul)(x, eg_rsqrt(egi_at_least(squares, egi_loss_epsilon * egi_loss_epsilon)));
}
EGI_LOSS_FORMULA(cosine_similarity) { EGI_LOSS_UNUSED; return eg_negative(egi_sum_last((eg_mul)(egi_unit(y), egi_unit(p)))); }
static eg_tensor *egi_sum_example(eg_tensor *x) {           // over all axes but the first
    while (x && x->rank > 1) x = egi_sum_last(x);
    return x;
}
EGI_LOSS_FORMULA(dice) {
    EGI_LOSS_UNUSED;
    eg_tensor *both = (eg_mul)(eg_number(2), egi_sum_example((eg_mul)(y, p)));
    return egi_from_1((eg_div)(both, (eg_add)((eg_add)(egi_sum_example(y), egi_sum_example(p)), eg_number(egi_loss_epsilon))));
}
// Label smoothing: a part of each label is spread over the classes (of which a binary label has two).
static eg_tensor *egi_smooth(eg_tensor *y, double part, double classes) {
    return part == 0 ? y : (eg_add)((eg_mul)(y, eg_number(1 - part)), eg_number(part / classes));
}
static eg_tensor *egi_smooth_classes(eg_tensor *y, const eg_loss_options *o) {
    return egi_smooth(y, o->label_smoothing, y->rank ? (double)y->dims[y->rank - 1] : 1);
}
static eg_tensor *egi_binary_entropy(eg_tensor *y, eg_tensor *p) {
    p = egi_probabilities(p);
    return eg_negative((eg_add)((eg_mul)(y, eg_log(p)), (eg_mul)(egi_from_1(y), eg_log(egi_from_1(p)))));
}
EGI_LOSS_FORMULA(binary_crossentropy) { return egi_mean_last(eg_sigmoid_cross_entropy_with_logits(egi_smooth(y, o->label_smoothing, 2), p)); }
EGI_LOSS_FORMULA(binary_crossentropy_from_probabilities) { return egi_mean_last(egi_binary_entropy(egi_smooth(y, o->label_smoothing, 2), p)); }
EGI_LOSS_FORMULA(categorical_crossentropy) { return eg_softmax_cross_entropy_with_logits(egi_smooth_classes(y, o), p); }
static eg_tensor *egi_shares(eg_tensor *p) { return egi_probabilities((eg_div)(p, (eg_reduce_sum)(p, egi_over_axis(-1, true)))); }
EGI_LOSS_FORMULA(categorical_crossentropy_from_probabilities) {
    return eg_negative(egi_sum_last((eg_mul)(egi_smooth_classes(y, o), eg_log(egi_shares(p)))));
}
EGI_LOSS_FORMULA(sparse_categorical_crossentropy) { EGI_LOSS_UNUSED; return eg_sparse_softmax_cross_entropy_with_logits(y, p); }
EGI_LOSS_FORMULA(sparse_categorical_crossentropy_from_probabilities) {
    EGI_LOSS_UNUSED;
    return eg_sparse_softmax_cross_entropy_with_logits(y, eg_log(egi_probabilities(p)));
}
EGI_LOSS_FORMULA(binary_focal_crossentropy_from_probabilities) {
    y = egi_smooth(y, o->label_smoothing, 2);
    eg_tensor *right = (eg_add)((eg_mul)(y, p), (eg_mul)(egi_from_1(y), egi_from_1(p)));
    eg_tensor *e = (eg_mul)((eg_pow)(egi_from_1(right), eg_number(o->gamma)), egi_binary_entropy(y, p));
    if (o->alpha != 0) e = (eg_mul)((eg_add)((eg_mul)(y, eg_number(o->alpha)), (eg_mul)(egi_from_1(y), eg_number(1 - o->alpha))), e);
    return egi_mean_last(e);
}
EGI_LOSS_FORMULA(binary_focal_crossentropy) { return egi_each_binary_focal_crossentropy_from_probabilities(y, eg_sigmoid(p), o); }
EGI_LOSS_FORMULA(categorical_focal_crossentropy_from_probabilities) {
    p = egi_shares(p);
    eg_tensor *e = (eg_mul)(eg_negative(egi_smooth_classes(y, o)), eg_log(p));
    return egi_sum_last((eg_mul)((eg_mul)((eg_pow)(egi_from_1(p), eg_number(o->gamma)), eg_number(o->alpha == 0 ? 0.25 : o->alpha)), e));
}
EGI_LOSS_FORMULA(categorical_focal_crossentropy) {
    eg_axis_options last = { 0, -1 };
    return egi_each_categorical_focal_crossentropy_from_probabilities(y, (eg_softmax)(p, last), o);
}

enum { EGI_DENSE, EGI_SPARSE };                             // labels of the predictions' shape, or class numbers without its last axis
//    name                                              labels      options
#define EGI_LOSSES(X) \
    X(mean_squared_error,                               EGI_DENSE,  0) \
    X(mean_absolute_error,                              EGI_DENSE,  0) \
    X(mean_absolute_percentage_error,                   EGI_DENSE,  0) \
    X(mean_squared_logarithmic_error,                   EGI_DENSE,  0) \
    X(huber,                                            EGI_DENSE,  EGI_L_DELTA) \
    X(log_cosh,                                         EGI_DENSE,  0) \
    X(poisson,                                          EGI_DENSE,  0) \
    X(kl_divergence,                                    EGI_DENSE,  0) \
    X(hinge,                                            EGI_DENSE,  0) \
    X(squared_hinge,                                    EGI_DENSE,  0) \
    X(categorical_hinge,                                EGI_DENSE,  0) \
    X(cosine_similarity,                                EGI_DENSE,  0) \
    X(dice,                                             EGI_DENSE,  0) \
    X(binary_crossentropy,                              EGI_DENSE,  EGI_L_SMOOTHING) \
    X(binary_crossentropy_from_probabilities,           EGI_DENSE,  EGI_L_SMOOTHING) \
    X(categorical_crossentropy,                         EGI_DENSE,  EGI_L_SMOOTHING) \
    X(categorical_crossentropy_from_probabilities,      EGI_DENSE,  EGI_L_SMOOTHING) \
    X(sparse_categorical_crossentropy,                  EGI_SPARSE, 0) \
    X(sparse_categorical_crossentropy_from_probabilities, EGI_SPARSE, 0) \
    X(binary_focal_crossentropy,                        EGI_DENSE,  EGI_L_SMOOTHING | EGI_L_GAMMA | EGI_L_ALPHA) \
    X(binary_focal_crossentropy_from_probabilities,     EGI_DENSE,  EGI_L_SMOOTHING | EGI_L_GAMMA | EGI_L_ALPHA) \
    X(categorical_focal_crossentropy,                   EGI_DENSE,  EGI_L_SMOOTHING | EGI_L_GAMMA | EGI_L_ALPHA) \
    X(categorical_focal_crossentropy_from_probabilities, EGI_DENSE, EGI_L_SMOOTHING | EGI_L_GAMMA | EGI_L_ALPHA)
#define EGI_LOSS_NUMBER(name, labels, options) EGI_LOSS_##name,
enum { EGI_LOSSES(EGI_LOSS_NUMBER) EGI_N_LOSSES };
typedef struct egi_loss_row { eg_loss *mean; const char *name; eg_tensor *(*each)(eg_tensor *, eg_tensor *, const eg_loss_options *); int labels, options; } egi_loss_row;
#define EGI_LOSS_ROW(name, labels, options) { eg_##name, #name, egi_each_##name, labels, options },
static const egi_loss_row egi_losses[] = { EGI_LOSSES(EGI_LOSS_ROW) };

static const egi_loss_row *egi_loss_find(eg_loss *loss) {
    for (int i = 0; i < EGI_N_LOSSES; i++) if (egi_losses[i].mean == loss) return &egi_losses[i];
    return NULL;
}
// Whether labels and predictions belong together. Broadcasting (N) against (N, 1) to (N, N) would give a number, and a wrong one.
static bool egi_labels_fit(const char *name, int kind, const eg_tensor *y, const eg_tensor *p) {
    if (!egi_alive(name, 0, y) || !egi_alive(name, 1, p)) return false;
    bool fits = y->rank == p->rank - (kind == EGI_SPARSE ? 1 : 0);
    for (int i = 0; i < y->rank && fits; i++) fits = y->dims[i] == p->dims[i];
    if (fits) return true;
    if (kind == EGI_SPARSE)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: labels %s must be class numbers, of the shape of the predictions %s without the last axis", name,
                        egi_describe(y), egi_describe(p));
    return egi_fail(EG_ERROR_SHAPE, "eg_%s: labels %s and predictions %s must have one shape%s", name, egi_describe(y), egi_describe(p),
                    y->rank == p->rank ? "" : "; eg_reshape one of them (nothing is broadcast here)");
}
static eg_tensor *egi_labels_as(int kind, eg_tensor *y, const eg_tensor *p) {
    if (kind == EGI_SPARSE) return y->dtype == EG_UINT8 || y->dtype == EG_BOOL ? eg_cast(y, EG_INT32) : y;
    return y->dtype != p->dtype && egi_is_float(p->dtype) ? eg_cast(y, (eg_dtype)p->dtype) : y;
}
static eg_tensor *egi_loss_each(const egi_loss_row *row, eg_tensor *y, eg_tensor *p, const eg_loss_options *o) {
    if (!egi_labels_fit(row->name, row->labels, y, p) || !egi_needs_float(row->name, p)) return NULL;
    if (p->rank == 0 && (row->each == egi_each_categorical_hinge || row->each == egi_each_cosine_similarity))
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: %s has no axis of classes", row->name, egi_describe(p));
    y = egi_labels_as(row->labels, y, p);
    return y ? row->each(y, p, o) : NULL;
}
static const eg_loss_options egi_loss_defaults = { 0, 1, 0, 2, 0, NULL };
#define EGI_LOSS_FUNCTION(name, labels_, options_) \
    EAGER_API eg_tensor *eg_##name(eg_tensor *labels, eg_tensor *predictions) { \
        EGI_AS(#name, egi_mean_all(egi_loss_each(&egi_losses[EGI_LOSS_##name], labels, predictions, &egi_loss_defaults))); \
    }
EGI_LOSSES(EGI_LOSS_FUNCTION)

// Weights as a tensor of the values' shape and dtype: of as many leading axes as there are, the rest broadcast.
static eg_tensor *egi_weights_for(const char *function, eg_tensor *weights, eg_tensor *values) {
    if (!egi_alive(function, 2, weights)) return NULL;
    eg_shape shape = egi_shape(values), own = egi_shape(weights);
    bool fits = own.rank <= shape.rank;
    for (int i = 0; i < own.rank && fits; i++) fits = own.dims[i] == shape.dims[i] || own.dims[i] == 1;
    if (!fits)
        return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: weights %s do not fit values of shape %s (one an example)", function, egi_describe(weights), egi_show(shape));
    for (int i = own.rank; i < shape.rank; i++) own.dims[i] = 1;
    own.rank = shape.rank;
    return eg_broadcast_to(eg_reshape(eg_cast(weights, (eg_dtype)values->dtype), own), shape);
}
static eg_tensor *egi_loss_run(const char *function, eg_loss *loss, eg_tensor *y, eg_tensor *p, eg_loss_options o, bool mean) {
    const egi_loss_row *row = egi_loss_find(loss);
    int has = row ? row->options : 0;
    const char *name = row ? row->name : function;
    if (!loss) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: the loss is NULL", function);
    if (!egi_option_allowed(name, "delta", o.delta != 0, has & EGI_L_DELTA) || !egi_option_allowed(name, "gamma", o.gamma != 0, has & EGI_L_GAMMA) ||
        !egi_option_allowed(name, "alpha", o.alpha != 0, has & EGI_L_ALPHA) ||
        !egi_option_allowed(name, "label_smoothing", o.label_smoothing != 0, has & EGI_L_SMOOTHING) ||
        !egi_option_allowed(function, "weights: eg_loss_mean has", !mean && o.weights, false))
        return NULL;
    o.delta = egi_or(o.delta, 1);
    o.gamma = egi_or(o.gamma, 2);
    o.label_smoothing = egi_or(o.label_smoothing, 0);
    o.alpha = egi_or(o.alpha, 0);
    if (!(o.delta >= 0 && o.gamma >= 0 && o.label_smoothing >= 0 && o.label_smoothing <= 1))
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: .delta and .gamma must be positive, .label_smoothing between 0 and 1", name);
    eg_tensor *values = row ? egi_loss_each(row, y, p, &o) : loss(y, p);
    if (!values || !mean) return values;
    if (o.weights) {
        if (!row && values->rank == 0)
            return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_%s: the loss function returned one number; with weights it must return one value an example", function);
        eg_tensor *weights = egi_weights_for(function, o.weights, values);
        values = weights ? (eg_mul)(values, weights) : NULL;
    }
    return values && values->rank ? egi_mean_all(values) : values;
}
EAGER_API eg_tensor *(eg_loss_per_example)(eg_loss *loss, eg_tensor *labels, eg_tensor *predictions, eg_loss_options o) {
    const egi_loss_row *row = egi_loss_find(loss);
    EGI_AS(row ? row->name : "loss_per_example", egi_loss_run("loss_per_example", loss, labels, predictions, o, false));
}
EAGER_API eg_tensor *(eg_loss_mean)(eg_loss *loss, eg_tensor *labels, eg_tensor *predictions, eg_loss_options o) {
    const egi_loss_row *row = egi_loss_find(loss);
    EGI_AS(row ? row->name : "loss_mean", egi_loss_run("loss_mean", loss, labels, predictions, o, true));
}

// ---- metrics: a row each. What a batch adds to the state is a tensor of the state's shape; what the state says, a number.

typedef struct egi_metric_row egi_metric_row;
struct eg_metric {
    int32_t refs;
    const egi_metric_row *row;
    eg_metric_options options;
    eg_loss *function;              // of eg_metric_of
    eg_tensor *state;
    char name[64];
};
struct egi_metric_row {
    const char *name;
    int options;
    eg_shape (*shape)(const eg_metric_options *o);
    eg_tensor *(*delta)(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w);     // w NULL: all 1
    double (*result)(const eg_metric *m, const double *s);
};
static double egi_ratio(double a, double b) { return b != 0 ? a / b : 0; }

// Means and sums of values: [sum of w v, sum of w].
static eg_shape egi_shape_pair(const eg_metric_options *o) { (void)o; eg_shape s = { 1, { 2 } }; return s; }
static eg_tensor *egi_delta_values(eg_tensor *v, eg_tensor *w) {
    eg_tensor *parts[2];
    eg_reduce_options all;
    memset(&all, 0, sizeof all);
    v = v ? eg_cast(v, EG_FLOAT64) : NULL;
    if (!v || (w && !(w = egi_weights_for("metric_update", w, v)))) return NULL;
    if (!v->size) return eg_zeros(EG_FLOAT64, egi_shape_pair(NULL));
    parts[0] = (eg_reduce_sum)(w ? (eg_mul)(v, w) : v, all);
    parts[1] = w ? (eg_reduce_sum)(w, all) : eg_full_like(parts[0], (double)v->size);
    return parts[0] && parts[1] ? eg_stack(parts, 2, 0) : NULL;
}
static double egi_result_mean(const eg_metric *m, const double *s) { (void)m; return egi_ratio(s[0], s[1]); }
static double egi_result_sum(const eg_metric *m, const double *s) { (void)m; return s[0]; }
static double egi_result_root(const eg_metric *m, const double *s) { (void)m; return sqrt(egi_ratio(s[0], s[1])); }

static eg_tensor *egi_delta_function(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    const egi_loss_row *row = egi_loss_find(m->function);
    return egi_delta_values(row ? egi_loss_each(row, y, p, &egi_loss_defaults) : m->function(y, p), w);
}

// Accuracies: 1 where the answer is right.
static eg_tensor *egi_best(eg_tensor *x) {
    eg_arg_options last = { 0, -1, false };
    return (eg_argmax)(x, last);
}
static eg_tensor *egi_right_binary(const eg_metric *m, eg_tensor *y, eg_tensor *p) {
    eg_tensor *said = (eg_greater)(p, eg_number(m->options.threshold));
    return egi_mean_last(eg_cast((eg_equal)(eg_cast(y, EG_FLOAT64), eg_cast(said, EG_FLOAT64)), EG_FLOAT64));
}
static eg_tensor *egi_right_categorical(const eg_metric *m, eg_tensor *y, eg_tensor *p) { (void)m; return (eg_equal)(egi_best(y), egi_best(p)); }
static eg_tensor *egi_right_sparse(const eg_metric *m, eg_tensor *y, eg_tensor *p) { (void)m; return (eg_equal)(eg_cast(y, EG_INT64), egi_best(p)); }
static eg_tensor *egi_delta_binary_accuracy(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    return egi_labels_fit("metric_update", EGI_DENSE, y, p) ? egi_delta_values(egi_right_binary(m, y, p), w) : NULL;
}
static eg_tensor *egi_delta_categorical_accuracy(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    return egi_labels_fit("metric_update", EGI_DENSE, y, p) ? egi_delta_values(egi_right_categorical(m, y, p), w) : NULL;
}
static eg_tensor *egi_delta_sparse_accuracy(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    return egi_labels_fit("metric_update", EGI_SPARSE, y, p) ? egi_delta_values(egi_right_sparse(m, y, p), w) : NULL;
}
static eg_tensor *egi_delta_accuracy(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    if (!egi_alive("metric_update", 0, y) || !egi_alive("metric_update", 1, p)) return NULL;
    if (y->rank + 1 == p->rank) return egi_delta_sparse_accuracy(m, y, p, w);
    return p->rank < 2 || p->dims[p->rank - 1] == 1 ? egi_delta_binary_accuracy(m, y, p, w) : egi_delta_categorical_accuracy(m, y, p, w);
}
// Among the k largest is what fewer than k others exceed.
static eg_tensor *egi_delta_top_k(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    if (!egi_alive("metric_update", 0, y) || !egi_alive("metric_update", 1, p)) return NULL;
    bool sparse = y->rank + 1 == p->rank;
    if (!egi_labels_fit("metric_update", sparse ? EGI_SPARSE : EGI_DENSE, y, p)) return NULL;
    eg_tensor *label = eg_expand_dims(sparse ? eg_cast(y, EG_INT64) : egi_best(y), -1);
    eg_tensor *above = label ? (eg_greater)(p, eg_take_along_axis(p, label, -1)) : NULL;
    return egi_delta_values((eg_less)(egi_sum_last(eg_cast(above, EG_INT64)), eg_integer(m->options.k)), w);
}

// Precision, recall, AUC: for each threshold [weight of the 1s above it, weight of the 0s above it]. The first one is below
// everything, so its row is the whole weight of the 1s and of the 0s.
static int64_t egi_threshold_count(const eg_metric_options *o) { return o->thresholds ? o->thresholds : 2; }
static eg_shape egi_shape_thresholds(const eg_metric_options *o) { eg_shape s = { 2, { egi_threshold_count(o), 2 } }; return s; }
static double egi_threshold_rule(int64_t i, const double *p) {                             // p: how many, and the threshold where there is one
    if (p[0] < 3) return i ? p[1] : -HUGE_VAL;
    return i == 0 ? -egi_loss_epsilon : (double)i == p[0] - 1 ? 1 + egi_loss_epsilon : (double)i / (p[0] - 1);
}
static eg_tensor *egi_delta_thresholds(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    if (!egi_labels_fit("metric_update", EGI_DENSE, y, p) || !egi_needs_float("metric_update", p)) return NULL;
    double rule[2];
    eg_shape shape = egi_shape_thresholds(&m->options), row = { 2, { 1, -1 } };
    if (!p->size) return eg_zeros(EG_FLOAT64, shape);
    if (m->options.thresholds) {
        eg_reduce_options all;
        memset(&all, 0, sizeof all);
        double low = eg_item((eg_reduce_min)(p, all)), high = eg_item((eg_reduce_max)(p, all));
        if (!(low >= 0 && high <= 1))
            return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_metric_update: %s takes probabilities, and these go from %g to %g; eg_sigmoid or eg_softmax them", m->name, low, high);
    }
    rule[0] = (double)shape.dims[0];
    rule[1] = m->options.threshold;
    shape.dims[1] = 1;
    eg_tensor *thresholds = egi_from_rule("thresholds", (eg_dtype)p->dtype, shape, egi_threshold_rule, rule), *sides[2];
    if (!thresholds) return NULL;
    if (w && !(w = egi_weights_for("metric_update", w, eg_cast(p, EG_FLOAT64)))) return NULL;
    sides[0] = eg_cast((eg_not_equal)(y, eg_integer(0)), EG_FLOAT64);
    sides[1] = egi_from_1(sides[0]);
    for (int i = 0; i < 2; i++) sides[i] = eg_reshape(w ? (eg_mul)(sides[i], w) : sides[i], row);
    eg_tensor *above = eg_cast((eg_greater)(eg_reshape(p, row), thresholds), EG_FLOAT64), *both = eg_concat(sides, 2, 0);
    eg_matmul_options turned = { 0, false, true };
    return above && both ? (eg_matmul)(above, both, turned) : NULL;
}
static double egi_result_precision(const eg_metric *m, const double *s) { (void)m; return egi_ratio(s[2], s[2] + s[3]); }
static double egi_result_recall(const eg_metric *m, const double *s) { (void)m; return egi_ratio(s[2], s[0]); }
static double egi_result_f1(const eg_metric *m, const double *s) { (void)m; return egi_ratio(2 * s[2], s[0] + s[2] + s[3]); }
// ROC: trapezoids. Precision and recall: between two thresholds true and false ones grow in proportion (Davis & Goadrich 2006).
static double egi_result_auc(const eg_metric *m, const double *s) {
    double area = 0, ones = s[0], zeros = s[1];
    for (int64_t i = 0; i + 1 < m->options.thresholds; i++, s += 2) {
        double more = s[0] - s[2], said = s[0] + s[1], said_next = s[2] + s[3];
        if (m->options.curve == EG_ROC) {
            area += egi_ratio(s[1] - s[3], zeros) * egi_ratio(s[0] + s[2], ones) / 2;
            continue;
        }
        double slope = egi_ratio(more, said - said_next > 0 ? said - said_next : 0), rest = s[2] - slope * said_next;
        area += egi_ratio(slope * (more + rest * log(said > 0 && said_next > 0 ? said / said_next : 1)), ones);
    }
    return area;
}

// R2: [sum of w, of w y, of w y^2, of w (y - p)^2].
static eg_shape egi_shape_r2(const eg_metric_options *o) { (void)o; eg_shape s = { 1, { 4 } }; return s; }
static eg_tensor *egi_delta_r2(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    (void)m;
    if (!egi_labels_fit("metric_update", EGI_DENSE, y, p)) return NULL;
    eg_tensor *parts[4];
    eg_reduce_options all;
    memset(&all, 0, sizeof all);
    y = eg_cast(y, EG_FLOAT64);
    p = eg_cast(p, EG_FLOAT64);
    w = !y ? NULL : w ? egi_weights_for("metric_update", w, y) : eg_ones_like(y);
    if (!w || !p) return NULL;
    parts[0] = w;
    parts[1] = (eg_mul)(w, y);
    parts[2] = (eg_mul)(parts[1], y);
    parts[3] = (eg_mul)(w, (eg_squared_difference)(y, p));
    for (int i = 0; i < 4; i++) if (!(parts[i] = (eg_reduce_sum)(parts[i], all))) return NULL;
    return eg_stack(parts, 4, 0);
}
static double egi_result_r2(const eg_metric *m, const double *s) {
    (void)m;
    double spread = s[2] - egi_ratio(s[1] * s[1], s[0]);
    return spread > 0 ? 1 - s[3] / spread : 0;
}

// Confusion: a count at [label, prediction].
static eg_shape egi_shape_confusion(const eg_metric_options *o) { eg_shape s = { 2, { o->classes, o->classes } }; return s; }
static eg_tensor *egi_delta_confusion(const eg_metric *m, eg_tensor *y, eg_tensor *p, eg_tensor *w) {
    if (!egi_alive("metric_update", 0, y) || !egi_alive("metric_update", 1, p)) return NULL;
    if (p->rank == y->rank + 1 && egi_is_float(p->dtype)) p = egi_best(p);
    if (!p || !egi_labels_fit("metric_update", EGI_DENSE, y, p)) return NULL;
    eg_shape flat = { 1, { -1 } }, shape = egi_shape_confusion(&m->options);
    eg_tensor *at[2], *count = eg_full(EG_FLOAT64, egi_shape(y), 1);
    if (count && w) count = egi_weights_for("metric_update", w, count);
    if (!count) return NULL;
    if (!y->size) return eg_zeros(EG_FLOAT64, shape);
    at[0] = eg_reshape(eg_cast(y, EG_INT64), flat);
    at[1] = eg_reshape(eg_cast(p, EG_INT64), flat);
    return at[0] && at[1] ? eg_scatter_nd(eg_stack(at, 2, -1), eg_reshape(count, flat), shape) : NULL;
}
static double egi_result_confusion(const eg_metric *m, const double *s) {
    double right = 0, all = 0;
    int64_t n = m->options.classes;
    for (int64_t i = 0; i < n * n; i++) {
        all += s[i];
        if (i / n == i % n) right += s[i];
    }
    return egi_ratio(right, all);
}
static double egi_result_mean_iou(const eg_metric *m, const double *s) {
    double sum = 0, count = 0;
    int64_t n = m->options.classes;
    for (int64_t i = 0; i < n; i++) {
        double either = -s[i * n + i];
        for (int64_t j = 0; j < n; j++) either += s[i * n + j] + s[j * n + i];
        if (either <= 0) continue;                          // a class that nobody named
        sum += s[i * n + i] / either;
        count++;
    }
    return egi_ratio(sum, count);
}

enum { EGI_M_THRESHOLD = 1, EGI_M_K = 2, EGI_M_CLASSES = 4, EGI_M_AUC = 8 };
//    function                       name                            options          state                 of a batch                      its number
#define EGI_METRICS(X) \
    X(mean,                          "mean",                         0,               egi_shape_pair,       NULL,                           egi_result_mean) \
    X(sum,                           "sum",                          0,               egi_shape_pair,       NULL,                           egi_result_sum) \
    X(accuracy,                      "accuracy",                     EGI_M_THRESHOLD, egi_shape_pair,       egi_delta_accuracy,             egi_result_mean) \
    X(binary_accuracy,               "binary_accuracy",              EGI_M_THRESHOLD, egi_shape_pair,       egi_delta_binary_accuracy,      egi_result_mean) \
    X(categorical_accuracy,          "categorical_accuracy",         0,               egi_shape_pair,       egi_delta_categorical_accuracy, egi_result_mean) \
    X(sparse_categorical_accuracy,   "sparse_categorical_accuracy",  0,               egi_shape_pair,       egi_delta_sparse_accuracy,      egi_result_mean) \
    X(top_k,                         "top_k",                        EGI_M_K,         egi_shape_pair,       egi_delta_top_k,                egi_result_mean) \
    X(precision,                     "precision",                    EGI_M_THRESHOLD, egi_shape_thresholds, egi_delta_thresholds,           egi_result_precision) \
    X(recall,                        "recall",                       EGI_M_THRESHOLD, egi_shape_thresholds, egi_delta_thresholds,           egi_result_recall) \
    X(f1,                            "f1",                           EGI_M_THRESHOLD, egi_shape_thresholds, egi_delta_thresholds,           egi_result_f1) \
    X(auc,                           "auc",                          EGI_M_AUC,       egi_shape_thresholds, egi_delta_thresholds,           egi_result_auc) \
    X(r2,                            "r2",                           0,               egi_shape_r2,         egi_delta_r2,                   egi_result_r2) \
    X(mean_iou,                      "mean_iou",                     EGI_M_CLASSES,   egi_shape_confusion,  egi_delta_confusion,            egi_result_mean_iou) \
    X(confusion_matrix,              "confusion_matrix",             EGI_M_CLASSES,   egi_shape_confusion,  egi_delta_confusion,            egi_result_confusion)
static const egi_metric_row egi_metric_function = { "function", 0, egi_shape_pair, egi_delta_function, egi_result_mean };
static const egi_metric_row egi_metric_root = { "function", 0, egi_shape_pair, egi_delta_function, egi_result_root };

static eg_metric *egi_metric_new(const egi_metric_row *row, eg_loss *function, const char *name, eg_metric_options o) {
    int has = row->options;
    if (!egi_option_allowed("metric", "threshold here", o.threshold != 0, has & EGI_M_THRESHOLD) || !egi_option_allowed("metric", "k here", o.k != 0, has & EGI_M_K) ||
        !egi_option_allowed("metric", "classes here", o.classes != 0, has & EGI_M_CLASSES) ||
        !egi_option_allowed("metric", "thresholds or .curve here", o.thresholds != 0 || o.curve != EG_ROC, has & EGI_M_AUC))
        return NULL;
    o.threshold = egi_or(o.threshold, 0.5);
    if (o.k == 0) o.k = 5;
    if (has & EGI_M_AUC && o.thresholds == 0) o.thresholds = 200;
    if (o.k < 1 || (o.thresholds && (o.thresholds < 3 || o.thresholds > 1000000)) || (has & EGI_M_CLASSES && (o.classes < 1 || o.classes > 1000000)))
        return (eg_metric *)eg_raise(EG_ERROR_ARGUMENT, "eg_metric_%s: .k %lld, .thresholds %lld or .classes %lld is out of its range%s", row->name, (long long)o.k,
                                     (long long)o.thresholds, (long long)o.classes, has & EGI_M_CLASSES && o.classes == 0 ? "; say how many .classes there are" : "");
    eg_metric *m = (eg_metric *)egi_alloc(sizeof *m);
    if (!m) { egi_no_memory("metric", (int64_t)sizeof *m); return NULL; }
    m->refs = 1;
    m->row = row;
    m->options = o;
    m->function = function;
    snprintf(m->name, sizeof m->name, "%s", o.name ? o.name : name);
    m->options.name = m->name;
    eg_scope scope = eg_scope_begin();
    m->state = eg_variable(eg_zeros(EG_FLOAT64, row->shape(&m->options)), m->name);
    eg_scope_end(scope);
    if (!m->state) { egi_free(m); return NULL; }
    eg_set_trainable(m->state, false);
    return m;
}
#define EGI_METRIC_NEW(function, name, options_, shape, delta, result) \
    static const egi_metric_row egi_metric_row_##function = { name, options_, shape, delta, result }; \
    EAGER_API eg_metric *(eg_metric_##function)(eg_metric_options options) { return egi_metric_new(&egi_metric_row_##function, NULL, name, options); }
EGI_METRICS(EGI_METRIC_NEW)
EAGER_API eg_metric *(eg_metric_of)(eg_loss *function, eg_metric_options options) {
    const egi_loss_row *row = egi_loss_find(function);
    if (!function) return (eg_metric *)eg_raise(EG_ERROR_ARGUMENT, "eg_metric_of: the function is NULL");
    return egi_metric_new(&egi_metric_function, function, row ? row->name : "metric", options);
}
EAGER_API eg_metric *(eg_metric_mean_squared_error)(eg_metric_options options) { return (eg_metric_of)(eg_mean_squared_error, options); }
EAGER_API eg_metric *(eg_metric_mean_absolute_error)(eg_metric_options options) { return (eg_metric_of)(eg_mean_absolute_error, options); }
EAGER_API eg_metric *(eg_metric_root_mean_squared_error)(eg_metric_options options) {
    return egi_metric_new(&egi_metric_root, eg_mean_squared_error, "root_mean_squared_error", options);
}
EAGER_API eg_metric *eg_metric_retain(eg_metric *m) {
    if (m) __atomic_fetch_add(&m->refs, 1, __ATOMIC_RELAXED);
    return m;
}
EAGER_API void eg_metric_release(eg_metric *m) {
    if (!m || __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    eg_release(m->state);
    egi_free(m);
}
static bool egi_metric_alive(const char *function, const eg_metric *m) {
    return m != NULL || (egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_%s: the metric is NULL", function) : false);
}
static bool egi_metric_take(eg_metric *m, eg_tensor *delta) { return delta && (eg_assign_add)(m->state, delta) != NULL; }
EAGER_API bool (eg_metric_update)(eg_metric *m, eg_tensor *labels, eg_tensor *predictions, eg_weight_options o) {
    if (!egi_metric_alive("metric_update", m)) return false;
    if (!m->row->delta) return egi_fail(EG_ERROR_ARGUMENT, "eg_metric_update: %s takes values, by eg_metric_add", m->name);
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    bool ok = egi_metric_take(m, m->row->delta(m, labels, predictions, o.weights));
    eg_recording_unpause();
    eg_scope_end(scope);
    return ok;
}
EAGER_API bool (eg_metric_add)(eg_metric *m, eg_tensor *values, eg_weight_options o) {
    if (!egi_metric_alive("metric_add", m) || !egi_alive("metric_add", 0, values)) return false;
    if (m->row->delta) return egi_fail(EG_ERROR_ARGUMENT, "eg_metric_add: %s takes labels and predictions, by eg_metric_update", m->name);
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    bool ok = egi_metric_take(m, egi_delta_values(values, o.weights));
    eg_recording_unpause();
    eg_scope_end(scope);
    return ok;
}
EAGER_API double eg_metric_result(eg_metric *m) {
    const double *state = egi_metric_alive("metric_result", m) ? (const double *)eg_data(m->state) : NULL;
    return state ? m->row->result(m, state) : (double)NAN;
}
EAGER_API eg_tensor *eg_metric_tensor(eg_metric *m) {
    if (!egi_metric_alive("metric_tensor", m)) return NULL;
    if (m->row->result == egi_result_confusion) return eg_read(m->state);
    double result = eg_metric_result(m);
    return eg_scalar_of(EG_FLOAT64, result);
}
EAGER_API bool eg_metric_reset(eg_metric *m) {
    if (!egi_metric_alive("metric_reset", m)) return false;
    eg_scope scope = eg_scope_begin();
    bool ok = (eg_assign)(m->state, eg_number(0)) != NULL;
    eg_scope_end(scope);
    return ok;
}
EAGER_API const char *eg_metric_name(eg_metric *m) { return egi_metric_alive("metric_name", m) ? m->name : ""; }
EAGER_API eg_tensor *eg_metric_state(eg_metric *m) { return egi_metric_alive("metric_state", m) ? m->state : NULL; }

// ---- history: numbers that grow

struct eg_history {
    int columns;                        // of an epoch
    char (*names)[64];
    double *values, *losses;            // [epoch][column]; of every batch
    int64_t *ends;                      // how many batches there were at the end of each epoch
    int64_t epochs, batches, values_capacity, losses_capacity, ends_capacity;
    int64_t first_epoch;
};
static void egi_history_free(eg_history *h) {
    if (!h) return;
    egi_free(h->names);
    egi_free(h->values);
    egi_free(h->losses);
    egi_free(h->ends);
    egi_free(h);
}
static bool egi_push_double(double **list, int64_t *capacity, int64_t at, double value) {
    void *grown = *list;
    if (!egi_grow(&grown, capacity, at + 1, sizeof **list)) return egi_no_memory("fit", 0);
    *list = (double *)grown;
    (*list)[at] = value;
    return true;
}
static bool egi_history_epoch(eg_history *h, const double *values) {
    void *ends = h->ends;
    if (!egi_grow(&ends, &h->ends_capacity, h->epochs + 1, sizeof *h->ends)) return egi_no_memory("fit", 0);
    h->ends = (int64_t *)ends;
    for (int i = 0; i < h->columns; i++)
        if (!egi_push_double(&h->values, &h->values_capacity, h->epochs * h->columns + i, values[i])) return false;
    h->ends[h->epochs++] = h->batches;
    return true;
}
EAGER_API int64_t eg_history_epochs(const eg_history *h) { return h ? h->epochs : 0; }
EAGER_API const char *eg_history_name(const eg_history *h, int i) { return h && i >= 0 && i < h->columns ? h->names[i] : NULL; }
static int egi_history_column(const eg_history *h, const char *name) {
    for (int i = 0; h && name && i < h->columns; i++) if (strcmp(h->names[i], name) == 0) return i;
    return -1;
}
EAGER_API double eg_history_value(const eg_history *h, const char *name, int64_t epoch) {
    int column = egi_history_column(h, name);
    if (h && epoch == -1) epoch = h->epochs - 1;
    return column >= 0 && epoch >= 0 && epoch < h->epochs ? h->values[epoch * h->columns + column] : (double)NAN;
}
EAGER_API int64_t eg_history_batches(const eg_history *h) { return h ? h->batches : 0; }
EAGER_API double eg_history_batch_loss(const eg_history *h, int64_t batch) {
    if (h && batch == -1) batch = h->batches - 1;
    return h && batch >= 0 && batch < h->batches ? h->losses[batch] : (double)NAN;
}
static void egi_text_csv(egi_text *t, double value) {                          // what CSV has no number for is left out
    if (value - value == 0) egi_text_number(t, value);
    else if (value == value) egi_text_printf(t, value > 0 ? "inf" : "-inf");
    else egi_text_printf(t, "nan");
}
static void egi_history_csv_line(const eg_history *h, egi_text *t, int64_t epoch) {      // epoch -1: the names
    egi_text_printf(t, epoch < 0 ? "epoch" : "%lld", (long long)(h->first_epoch + epoch + 1));
    for (int i = 0; i < h->columns; i++) {
        egi_text_printf(t, ",%s", epoch < 0 ? h->names[i] : "");
        if (epoch >= 0) egi_text_csv(t, h->values[epoch * h->columns + i]);
    }
    egi_text_printf(t, "\n");
}
static bool egi_text_save(const char *function, egi_text *t, const char *path) {
    bool ok = t->failed ? egi_no_memory(function, 0) : egi_file_write(function, path, t->data, (int64_t)t->size);
    egi_text_free(t);
    return ok;
}
static bool egi_history_ready(const char *function, const eg_history *h, const char *path) {
    return (h && path) || (egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_%s: the %s is NULL", function, h ? "path" : "history") : false);
}
EAGER_API bool eg_history_csv(const eg_history *h, const char *path) {
    egi_text t;
    if (!egi_history_ready("history_csv", h, path)) return false;
    memset(&t, 0, sizeof t);
    for (int64_t i = -1; i < h->epochs; i++) egi_history_csv_line(h, &t, i);
    return egi_text_save("history_csv", &t, path);
}
EAGER_API bool eg_history_batches_csv(const eg_history *h, const char *path) {
    egi_text t;
    if (!egi_history_ready("history_batches_csv", h, path)) return false;
    memset(&t, 0, sizeof t);
    egi_text_printf(&t, "epoch,batch,loss\n");
    for (int64_t i = 0, epoch = 0, first = 0; i < h->batches; i++) {
        while (epoch < h->epochs && i >= h->ends[epoch]) first = h->ends[epoch++];
        egi_text_printf(&t, "%lld,%lld,", (long long)(h->first_epoch + epoch + 1), (long long)(i - first + 1));
        egi_text_csv(&t, h->losses[i]);
        egi_text_printf(&t, "\n");
    }
    return egi_text_save("history_batches_csv", &t, path);
}

// ---- the curves: a panel for the loss and one for each metric, training and validation in each

typedef struct egi_panel { double left, top, width, height, x_low, x_high, y_low, y_high; } egi_panel;
static void egi_svg_at(egi_text *t, double v) { egi_text_number(t, floor(v * 10 + 0.5) / 10); }
static double egi_panel_x(const egi_panel *p, double x) { return p->left + p->width * (x - p->x_low) / (p->x_high - p->x_low); }
static double egi_panel_y(const egi_panel *p, double y) { return p->top + p->height * (p->y_high - y) / (p->y_high - p->y_low); }
// 1, 2 or 5 times a power of ten, so that about n steps fit.
static double egi_nice_step(double range, double n) {
    double raw = range / n, power = pow(10, floor(log10(raw))), m = raw / power;
    return power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}
static void egi_svg_text(egi_text *t, double x, double y, const char *kind, const char *text) {
    egi_text_printf(t, "<text class=\"%s\" x=\"", kind);
    egi_svg_at(t, x);
    egi_text_printf(t, "\" y=\"");
    egi_svg_at(t, y);
    egi_text_printf(t, "\">");
    for (; *text; text++)
        if (*text == '<' || *text == '&') egi_text_printf(t, "&#%d;", *text);
        else egi_text_add(t, text, 1);
    egi_text_printf(t, "</text>\n");
}
static void egi_svg_line(egi_text *t, const char *kind, double x1, double y1, double x2, double y2) {
    const double at[4] = { x1, y1, x2, y2 };
    static const char *const names[4] = { "x1", "y1", "x2", "y2" };
    egi_text_printf(t, "<line class=\"%s\"", kind);
    for (int i = 0; i < 4; i++) {
        egi_text_printf(t, " %s=\"", names[i]);
        egi_svg_at(t, at[i]);
        egi_text_printf(t, "\"");
    }
    egi_text_printf(t, "/>\n");
}
// Numbers along an axis, with no more digits than their step has.
static void egi_svg_ticks(egi_text *t, const egi_panel *p) {
    double step = egi_nice_step(p->y_high - p->y_low, 5);
    char text[64];
    for (double i = ceil(p->y_low / step - 1e-9); i * step <= p->y_high + step * 1e-6; i++) {
        double y = egi_panel_y(p, i * step);
        egi_svg_line(t, "grid", p->left, y, p->left + p->width, y);
        snprintf(text, sizeof text, "%.*f", step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9), i * step + 0.0);
        for (char *c = text; *c; c++) if (*c == ',') *c = '.';                  // whatever the locale
        egi_svg_text(t, p->left - 10, y + 4, "y", text);
    }
    step = egi_nice_step(p->x_high - p->x_low, 10);
    if (step < 1) step = 1;
    for (double i = ceil(p->x_low / step - 1e-9); i * step <= p->x_high + 1e-9; i++) {
        double x = egi_panel_x(p, i * step);
        egi_svg_line(t, "tick", x, p->top + p->height, x, p->top + p->height + 5);
        snprintf(text, sizeof text, "%.0f", i * step + 0.0);
        egi_svg_text(t, x, p->top + p->height + 20, "x", text);
    }
    egi_svg_line(t, "axis", p->left, p->top + p->height, p->left + p->width, p->top + p->height);
}
// A line through n points; a NaN among them leaves a gap. Few points are dotted.
static void egi_svg_curve(egi_text *t, const egi_panel *p, const char *kind, int64_t n, const double *x, const double *y, int64_t stride) {
    bool down = false;
    egi_text_printf(t, "<path class=\"%s\" d=\"", kind);
    for (int64_t i = 0; i < n; i++) {
        double v = y[i * stride];
        if (v - v != 0) { down = false; continue; }
        egi_text_printf(t, down ? "L" : "M");
        egi_svg_at(t, egi_panel_x(p, x[i]));
        egi_text_printf(t, " ");
        egi_svg_at(t, egi_panel_y(p, v));
        down = true;
    }
    egi_text_printf(t, "\"/>\n");
    for (int64_t i = 0; i < n && n <= 40 && strcmp(kind, "batch"); i++) {
        if (y[i * stride] - y[i * stride] != 0) continue;
        egi_text_printf(t, "<circle class=\"%s\" r=\"3\" cx=\"", kind);
        egi_svg_at(t, egi_panel_x(p, x[i]));
        egi_text_printf(t, "\" cy=\"");
        egi_svg_at(t, egi_panel_y(p, y[i * stride]));
        egi_text_printf(t, "\"/>\n");
    }
}
static void egi_widen(const double *y, int64_t n, int64_t stride, double *low, double *high) {
    for (int64_t i = 0; i < n; i++) {
        double v = y[i * stride];
        if (v < *low && v - v == 0) *low = v;
        if (v > *high && v - v == 0) *high = v;
    }
}
enum { EGI_SVG_POINTS = 400, EGI_SVG_WIDTH = 760, EGI_SVG_PANEL = 330 };
// The batches' losses, at most EGI_SVG_POINTS of them: means of neighbours beyond that. Their place is a part of an epoch.
static int64_t egi_history_thin(const eg_history *h, double *x, double *y) {
    int64_t points = h->batches < EGI_SVG_POINTS ? h->batches : (int64_t)EGI_SVG_POINTS, epoch = 0;
    for (int64_t k = 0; k < points; k++) {
        int64_t first = k * h->batches / points, last = (k + 1) * h->batches / points;
        double sum = 0;
        for (int64_t i = first; i < last; i++) sum += h->losses[i];
        y[k] = sum / (double)(last - first);
        while (epoch < h->epochs && last > h->ends[epoch]) epoch++;
        int64_t begin = epoch ? h->ends[epoch - 1] : 0, length = epoch < h->epochs ? h->ends[epoch] - begin : epoch ? begin - (epoch > 1 ? h->ends[epoch - 2] : 0) : h->batches;
        x[k] = (double)(h->first_epoch + epoch) + (double)(last - begin) / (double)(length ? length : 1);
    }
    return points;
}
static void egi_svg_panel(egi_text *t, const eg_history *h, int column, double top, const double *epochs, double *x, double *y) {
    char other[72];
    double low = HUGE_VAL, high = -HUGE_VAL;
    const char *name = h->names[column];
    int64_t points = column == 0 ? egi_history_thin(h, x, y) : 0;
    snprintf(other, sizeof other, "val_%s", name);
    int validation = egi_history_column(h, other);
    egi_widen(h->values + column, h->epochs, h->columns, &low, &high);
    if (validation >= 0) egi_widen(h->values + validation, h->epochs, h->columns, &low, &high);
    egi_widen(y, points, 1, &low, &high);
    if (low > high) low = 0, high = 1;
    if (low > 0 && low < 0.5 * high) low = 0;                                  // show the zero where it is not far
    double step = egi_nice_step(high > low ? high - low : fabs(high) > 0 ? fabs(high) : 1, 5);
    bool share = low >= 0 && high <= 1;                                        // an accuracy goes no further
    low = floor(low / step + 1e-9) * step;
    high = ceil(high / step - 1e-9) * step;
    if (high <= low) high = low + step;
    if (share && column && high > 1) high = 1;
    egi_panel p = { 72, top + 46, EGI_SVG_WIDTH - 72 - 28, EGI_SVG_PANEL - 46 - 44, column == 0 ? (double)h->first_epoch : (double)h->first_epoch + 1,
                    (double)(h->first_epoch + (h->epochs > 0 ? h->epochs : 1)), low, high };
    if (p.x_high <= p.x_low) p.x_low -= 1;
    egi_svg_ticks(t, &p);
    egi_svg_text(t, p.left, top + 26, "title", name);
    egi_svg_text(t, p.left + p.width, p.top + p.height + 36, "unit", "epoch");
    if (points) egi_svg_curve(t, &p, "batch", points, x, y, 1);
    egi_svg_curve(t, &p, "train", h->epochs, epochs, h->values + column, h->columns);
    if (validation >= 0) egi_svg_curve(t, &p, "valid", h->epochs, epochs, h->values + validation, h->columns);
    const struct { const char *kind, *text; bool there; } legend[] = { { "valid", "validation", validation >= 0 }, { "train", "training", true }, { "batch", "batches", points > 0 } };
    double at = p.left + p.width;
    for (int i = 0; i < 3; i++) {
        if (!legend[i].there) continue;
        at -= 6.4 * (double)strlen(legend[i].text);
        egi_svg_text(t, at, top + 26, "key", legend[i].text);
        egi_svg_line(t, legend[i].kind, at - 28, top + 22, at - 8, top + 22);
        at -= 44;
    }
}
static bool egi_is_validation(const char *name) { return strncmp(name, "val_", 4) == 0; }
EAGER_API bool eg_history_svg(const eg_history *h, const char *path) {
    egi_text t;
    int panels = 0;
    if (!egi_history_ready("history_svg", h, path)) return false;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < h->columns; i++) if (!egi_is_validation(h->names[i]) && strcmp(h->names[i], "learning_rate")) panels++;
    int height = panels * EGI_SVG_PANEL + 12;
    double *numbers = (double *)egi_alloc((size_t)(2 * EGI_SVG_POINTS + h->epochs) * sizeof(double)), *epochs = numbers + 2 * EGI_SVG_POINTS;
    if (!numbers) return egi_no_memory("history_svg", 0);
    for (int64_t i = 0; i < h->epochs; i++) epochs[i] = (double)(h->first_epoch + i + 1);
    egi_text_printf(&t, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n",
                    EGI_SVG_WIDTH, height, EGI_SVG_WIDTH, height);
    egi_text_printf(&t, "<style>.title{font-size:15px;font-weight:600;fill:#1f2937}.key,.x,.y,.unit{font-size:12px;fill:#6b7280}.x{text-anchor:middle}"
                        ".y,.unit{text-anchor:end}.grid{stroke:#e5e7eb}.axis,.tick{stroke:#9ca3af}path,line.train,line.valid,line.batch{fill:none;stroke-linejoin:round;stroke-linecap:round}"
                        "path.batch,line.batch{stroke:#93c5fd;stroke-width:1.2}path.train,line.train{stroke:#2563eb;stroke-width:2.2}path.valid,line.valid{stroke:#ea580c;stroke-width:2.2}"
                        "circle.train{fill:#2563eb}circle.valid{fill:#ea580c}circle{stroke:#fff;stroke-width:1.2}</style>\n"
                        "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#fff\"/>\n", EGI_SVG_WIDTH, height);
    double top = 6;
    for (int i = 0; i < h->columns; i++) {
        if (egi_is_validation(h->names[i]) || !strcmp(h->names[i], "learning_rate")) continue;
        egi_svg_panel(&t, h, i, top, epochs, numbers, numbers + EGI_SVG_POINTS);
        top += EGI_SVG_PANEL;
    }
    egi_text_printf(&t, "</svg>\n");
    egi_free(numbers);
    return egi_text_save("history_svg", &t, path);
}

// ---- what eg_compile makes: it hangs on the model

typedef struct egi_training {
    eg_optimizer *optimizer;
    eg_loss *loss;
    eg_metric **metrics;
    int n;                              // metrics
    bool fitting;
    char (*names)[64];                  // loss, metrics, val_loss, val_metrics, learning_rate
    double *values;                     // of the latest epoch, evaluation or step
    double loss_sum, loss_weight;       // over this epoch's examples so far
    eg_tensor **list;                   // trainable weights, and behind them their gradients
    int64_t list_capacity;
    eg_history *history;
} egi_training;

static void egi_training_free(void *training) {
    egi_training *t = (egi_training *)training;
    if (!t) return;
    eg_optimizer_release(t->optimizer);
    for (int i = 0; i < t->n; i++) eg_metric_release(t->metrics[i]);
    egi_free(t->metrics);
    egi_free(t->names);
    egi_free(t->values);
    egi_free(t->list);
    egi_history_free(t->history);
    egi_free(t);
}
static int egi_result_count(const egi_training *t) { return 2 * (t->n + 1) + 1; }
static int egi_result_find(const egi_training *t, const char *name) {
    for (int i = 0; name && i < egi_result_count(t); i++) if (strcmp(t->names[i], name) == 0) return i;
    return -1;
}
static bool egi_compile_into(egi_training *t, eg_loss *loss, eg_metric *const *metrics, int n) {
    t->loss = loss;
    t->metrics = (eg_metric **)egi_alloc((size_t)(n ? n : 1) * sizeof(eg_metric *));
    t->names = (char (*)[64])egi_alloc((size_t)(2 * n + 3) * sizeof *t->names);
    t->values = (double *)egi_alloc((size_t)(2 * n + 3) * sizeof(double));
    if (!t->metrics || !t->names || !t->values) return egi_no_memory("compile", 0);
    for (int i = 0; i < n; i++) t->metrics[i] = metrics[i];
    t->n = n;
    for (int i = 0; i <= n; i++) {
        const char *name = i ? metrics[i - 1]->name : "loss";
        snprintf(t->names[i], sizeof *t->names, "%s", name);
        snprintf(t->names[n + 1 + i], sizeof *t->names, "val_%.59s", name);
    }
    snprintf(t->names[2 * n + 2], sizeof *t->names, "learning_rate");
    for (int i = 0; i < egi_result_count(t); i++) t->values[i] = (double)NAN;
    return true;
}
EAGER_API bool (eg_compile)(eg_layer *model, eg_optimizer *optimizer, eg_loss *loss, eg_metric *const *metrics, int n) {
    egi_training *former = model ? (egi_training *)model->training : NULL, *t = NULL;
    bool ok = model && optimizer && loss;
    if (n < 0 || !metrics) n = 0;
    for (int i = 0; i < n; i++) ok = ok && metrics[i];
    if (!ok) { if (egi_this.error == EG_OK) egi_fail(EG_ERROR_NULL, "eg_compile: the %s is NULL", !model ? "model" : !optimizer ? "optimizer" : !loss ? "loss" : "metric"); }
    else if (former && former->fitting) ok = egi_fail(EG_ERROR_STATE, "eg_compile: the model is being fitted");
    else if (!(t = (egi_training *)egi_alloc(sizeof *t))) ok = egi_no_memory("compile", (int64_t)sizeof *t);
    else {
        memset(t, 0, sizeof *t);
        ok = egi_compile_into(t, loss, metrics, n);
    }
    if (!ok) {
        if (t) { t->n = 0; egi_training_free(t); }
        eg_optimizer_release(optimizer);
        for (int i = 0; i < n; i++) eg_metric_release(metrics[i]);
        return false;
    }
    t->optimizer = optimizer;
    egi_training_free(former);
    model->training = t;
    model->training_free = egi_training_free;
    return true;
}
static egi_training *egi_compiled(const char *function, eg_layer *model) {
    if (!model) return egi_this.error == EG_OK ? (egi_training *)eg_raise(EG_ERROR_NULL, "eg_%s: the model is NULL", function) : NULL;
    if (model->training) return (egi_training *)model->training;
    return (egi_training *)eg_raise(EG_ERROR_STATE, "eg_%s: the model has no loss and optimizer yet; eg_compile it first", function);
}
EAGER_API double eg_model_result(eg_layer *model, const char *name) {
    egi_training *t = egi_compiled("model_result", model);
    int i = t ? egi_result_find(t, name) : -1;
    return i >= 0 ? t->values[i] : (double)NAN;
}
static void egi_results_take(egi_training *t, int at) {        // what was summed up to now, to the results from there on
    t->values[at] = egi_ratio(t->loss_sum, t->loss_weight);
    for (int i = 0; i < t->n; i++) t->values[at + 1 + i] = eg_metric_result(t->metrics[i]);
}
static bool egi_results_reset(egi_training *t) {
    t->loss_sum = t->loss_weight = 0;
    for (int i = 0; i < t->n; i++) if (!eg_metric_reset(t->metrics[i])) return false;
    return true;
}
EAGER_API bool eg_model_reset_metrics(eg_layer *model) {
    egi_training *t = egi_compiled("model_reset_metrics", model);
    return t && egi_results_reset(t);
}
EAGER_API eg_optimizer *eg_model_optimizer(eg_layer *model) { return model && model->training ? ((egi_training *)model->training)->optimizer : NULL; }
EAGER_API eg_metric *eg_model_metric(eg_layer *model, int i) {
    egi_training *t = model ? (egi_training *)model->training : NULL;
    return t && i >= 0 && i < t->n ? t->metrics[i] : NULL;
}
EAGER_API const eg_history *eg_model_history(eg_layer *model) { return model && model->training ? ((egi_training *)model->training)->history : NULL; }

// ---- one step

static eg_tensor *egi_model_call(eg_layer *model, eg_tensor *const *inputs, int n, bool training) {
    eg_call_options o;
    eg_tensor *y = NULL;
    memset(&o, 0, sizeof o);
    o.training = training;
    o.inference = !training;
    if (n == 1) return (eg_call)(model, inputs[0], o);
    return (eg_call_multi)(model, inputs, n, &y, 1, o) ? y : NULL;
}
// The weights of the classes that the labels name, one an example. Labels: class numbers, or (of the predictions' shape) one-hot.
static eg_tensor *egi_class_weights_of(eg_class_weights weights, eg_tensor *y, eg_tensor *p) {
    eg_shape shape = { 1, { weights.count } };
    if (y->rank == p->rank && y->rank > 1) {
        if (y->dims[y->rank - 1] > 1) y = egi_best(y);
        else {
            eg_shape flat = egi_shape(y);
            flat.rank--;
            y = eg_reshape(y, flat);
        }
    }
    eg_tensor *table = eg_constant_values(EG_FLOAT32, shape, weights.weights, weights.count), *classes = y ? eg_cast(y, EG_INT64) : NULL;
    eg_gather_options first = { 0, EG_ZERO };
    return table && classes ? (eg_gather)(table, classes, first) : NULL;
}
// Steps that a mask leaves out weigh nothing, the others as much more.
static eg_tensor *egi_mask_weights(eg_tensor *mask) {
    eg_tensor *count = eg_cast(mask, EG_FLOAT32);
    return (eg_divide_no_nan)(count, egi_mean_all(count));
}
// All that weighs the examples, as one tensor; *weights stays NULL where nothing does.
static bool egi_step_weights(const char *function, eg_class_weights classes, eg_tensor *y, eg_tensor *p, eg_tensor *mask, eg_tensor *given, eg_tensor **weights) {
    eg_tensor *factors[3] = { NULL, NULL, NULL };
    *weights = NULL;
    if (mask && !(factors[0] = egi_mask_weights(mask))) return false;
    if (classes.count > 0 && !(factors[1] = egi_class_weights_of(classes, y, p))) return false;
    if (given && !(factors[2] = eg_cast(given, EG_FLOAT32))) return false;
    for (int i = 0; i < 3; i++) {
        if (!factors[i]) continue;
        eg_tensor *x = factors[i], *w = *weights;
        if (w && w->rank > x->rank) x = egi_weights_for(function, x, w);
        else if (w) w = egi_weights_for(function, w, x);
        *weights = w && x ? (eg_mul)(w, x) : w ? NULL : x;
        if (!*weights) return false;
    }
    return true;
}
static bool egi_step_gradients(egi_training *t, eg_layer *model, eg_tape *tape, eg_tensor *loss) {
    int n = eg_layer_trainable_weights(model, NULL, 0);
    if (n < 1) return egi_fail(EG_ERROR_GRADIENT, "eg_fit: the model has no trainable weights");
    if (2 * (int64_t)n > t->list_capacity) {
        void *list = t->list;
        if (!egi_grow(&list, &t->list_capacity, 2 * (int64_t)n, sizeof *t->list)) return egi_no_memory("fit", 0);
        t->list = (eg_tensor **)list;
    }
    eg_layer_trainable_weights(model, t->list, n);
    return eg_tape_gradients(tape, loss, t->list, n, t->list + n) && eg_apply_gradients(t->optimizer, t->list + n, t->list, n);
}
typedef struct egi_step { const char *function; int inputs; bool train; eg_class_weights classes; double loss; } egi_step;
// The loss of a batch with all that weighs its examples, and the regularizers'.
static eg_tensor *egi_step_loss(egi_training *t, eg_layer *model, const egi_step *s, eg_tensor *y, eg_tensor *p, eg_tensor *mask, eg_tensor *given) {
    eg_loss_options o;
    memset(&o, 0, sizeof o);
    if (!egi_step_weights(s->function, s->classes, y, p, mask, given, &o.weights)) return NULL;
    eg_tensor *loss = egi_loss_run(s->function, t->loss, y, p, o, true);
    if (!loss && egi_this.error == EG_OK) egi_fail(EG_ERROR_NULL, "eg_%s: the loss function returned NULL", s->function);
    int64_t errors = egi_this.errors;
    eg_tensor *penalty = loss ? eg_layer_losses(model) : NULL;
    if (penalty) return (eg_add)(loss, penalty->dtype == loss->dtype ? penalty : eg_cast(penalty, (eg_dtype)loss->dtype));
    return egi_this.errors == errors ? loss : NULL;
}
static bool egi_step_metrics(egi_training *t, eg_tensor *y, eg_tensor *p, eg_tensor *mask) {
    eg_weight_options weights = { 0, mask };
    if (t->loss == eg_binary_crossentropy) p = eg_sigmoid(p);
    for (int i = 0; i < t->n; i++) if (!(eg_metric_update)(t->metrics[i], y, p, weights)) return false;
    return p != NULL;
}
// One batch of n components: forward, and for training backward and update; then loss and metrics. A tape of the caller sees none of it.
static bool egi_step_run(egi_training *t, eg_layer *model, egi_step *s, eg_tensor *const *c, int n) {
    if (n != s->inputs + 1 && n != s->inputs + 2)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: an element has %d components; for a model of %d input%s it must have %d, or %d with sample weights", s->function, n,
                        s->inputs, s->inputs == 1 ? "" : "s (.inputs)", s->inputs + 1, s->inputs + 2);
    eg_tensor *y = c[s->inputs], *given = n > s->inputs + 1 ? c[n - 1] : NULL;
    if (!egi_alive(s->function, s->inputs, y)) return false;
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    eg_tape *tape = s->train ? eg_tape_begin() : NULL;
    eg_tensor *p = tape || !s->train ? egi_model_call(model, c, s->inputs, s->train) : NULL, *mask = p ? eg_mask_of(p) : NULL;
    if (mask && mask->rank != p->rank - 1) mask = NULL;
    eg_tensor *loss = p ? egi_step_loss(t, model, s, y, p, mask, given) : NULL;
    bool ok = loss && (!s->train || egi_step_gradients(t, model, tape, loss));
    eg_recording_pause();                                  // the new tape, too
    ok = ok && egi_step_metrics(t, y, p, mask);
    if (ok) {
        double examples = y->rank ? (double)y->dims[0] : 1;
        s->loss = eg_item(loss);
        t->loss_sum += s->loss * examples;
        t->loss_weight += examples;
    }
    eg_recording_unpause();
    eg_recording_unpause();
    eg_scope_end(scope);
    return ok;
}
static double egi_on_batch(const char *function, eg_layer *model, eg_tensor *x, eg_tensor *y, eg_batch_step_options o, bool train) {
    egi_training *t = egi_compiled(function, model);
    egi_step s = { function, 1, train, o.class_weights, (double)NAN };
    eg_tensor *c[3];
    c[0] = x;
    c[1] = y;
    c[2] = o.sample_weights;
    if (!t || !egi_step_run(t, model, &s, c, o.sample_weights ? 3 : 2)) return (double)NAN;
    egi_results_take(t, 0);
    return s.loss;
}
EAGER_API double (eg_train_on_batch)(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_batch_step_options o) { return egi_on_batch("train_on_batch", model, x, y, o, true); }
EAGER_API double (eg_test_on_batch)(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_batch_step_options o) { return egi_on_batch("test_on_batch", model, x, y, o, false); }

// ---- progress: a line that a person likes to watch, or one an epoch for a file

typedef struct egi_bar {
    bool on, live, blocks, color;
    int columns, shown;                 // of the terminal; of what stands on the line now
    double began, drawn;                // this epoch; when it was last drawn
} egi_bar;
static double egi_now(void) {
#ifdef TIME_UTC
    struct timespec t;
    if (timespec_get(&t, TIME_UTC)) return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
    return (double)time(NULL);
}
// A terminal is stdout, where nobody took the printing over. What it can show is asked of the environment.
static void egi_bar_open(egi_bar *b, bool quiet, eg_progress progress) {
    memset(b, 0, sizeof *b);
    b->on = !quiet;
    b->columns = 80;
    if (!b->on || progress == EG_PROGRESS_LINES) return;
    bool terminal = false;
#ifndef EAGER_NO_STDIO
    const char *names[] = { "LC_ALL", "LC_CTYPE", "LANG" }, *kind = getenv("TERM"), *locale = NULL;
    for (int i = 0; i < 3 && (!locale || !*locale); i++) locale = getenv(names[i]);
    egi_lock();
    terminal = !egi_shared.print && isatty(1) && !(kind && !strcmp(kind, "dumb"));
    egi_unlock();
    b->blocks = locale && (strstr(locale, "UTF-8") || strstr(locale, "utf8"));
    b->color = terminal && !getenv("NO_COLOR");
#ifdef TIOCGWINSZ
    struct winsize size;
    if (terminal && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) b->columns = size.ws_col;
#endif
#endif
    b->live = terminal || progress == EG_PROGRESS_BAR;
}
static void egi_bar_flush(void) {
#ifndef EAGER_NO_STDIO
    fflush(stdout);
#endif
}
static void egi_bar_cells(egi_text *t, const egi_bar *b, double share, int cells) {
    static const char *const parts[] = { "", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d", "\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89" };    // an eighth to seven of a block
    int eighths = (int)((share < 0 ? 0 : share > 1 ? 1 : share) * cells * 8 + 0.5), cell = 0;
    if (b->color) egi_text_string(t, "\033[36m");
    for (; cell < eighths / 8; cell++) egi_text_string(t, b->blocks ? "\xe2\x96\x88" : "#");
    if (b->blocks && eighths % 8) { egi_text_string(t, parts[eighths % 8]); cell++; }
    if (b->color) egi_text_string(t, "\033[90m");
    for (; cell < cells; cell++) egi_text_string(t, b->blocks ? "\xc2\xb7" : ".");
    if (b->color) egi_text_string(t, "\033[0m");
}
// head, a bar where share is not negative, tail; it replaces the line before. A live line is cut to fit, so that it never wraps.
static void egi_bar_draw(egi_bar *b, const char *head, double share, const char *tail, bool final) {
    egi_text t;
    memset(&t, 0, sizeof t);
    int used = (int)(strlen(head) + strlen(tail)), cells = b->columns - 2 - used;
    cells = share < 0 || cells < 8 ? 0 : cells > 32 ? 32 : cells;
    int room = final || !b->live ? (int)strlen(tail) : b->columns - 1 - (int)strlen(head) - cells;
    if (room > (int)strlen(tail)) room = (int)strlen(tail);
    int width = (int)strlen(head) + cells + (room > 0 ? room : 0);
    if (b->live) egi_text_string(&t, "\r");
    egi_text_string(&t, head);
    if (cells) egi_bar_cells(&t, b, share, cells);
    egi_text_add(&t, tail, room > 0 ? (size_t)room : 0);
    for (int i = width; i < b->shown; i++) egi_text_add(&t, " ", 1);
    if (final) egi_text_add(&t, "\n", 1);
    b->shown = final ? 0 : width;
    if (!t.failed) egi_print_text(t.data);
    egi_text_free(&t);
    egi_bar_flush();
}
static void egi_show_time(char *text, size_t size, double seconds) {
    int64_t s = (int64_t)(seconds + 0.5);
    if (seconds < 0 || seconds > 1e8) snprintf(text, size, "?");
    else if (s >= 3600) snprintf(text, size, "%lld:%02lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60), (long long)(s % 60));
    else snprintf(text, size, "%lld:%02lld", (long long)(s / 60), (long long)(s % 60));
}
static void egi_show_rate(char *text, size_t size, double seconds) {
    if (seconds < 1e-3) snprintf(text, size, "%.0f us/step", 1e6 * seconds);
    else if (seconds < 1) snprintf(text, size, "%.1f ms/step", 1e3 * seconds);
    else snprintf(text, size, "%.1f s/step", seconds);
}
static int egi_show_value(char *text, size_t size, const char *name, double value) {
    bool plain = value == 0 || (fabs(value) >= 1e-3 && fabs(value) < 1e5);
    int n = snprintf(text, size, plain ? "  %s %.4f" : "  %s %.3e", name, value);
    return n < (int)size ? n : (int)size - 1;
}

// ---- eg_fit

struct eg_callback {
    int32_t refs;
    eg_callback_functions functions;
};
typedef struct egi_fit {
    eg_fit_state state;                 // first: from it a callback's eg_fit_value finds the rest
    egi_training *t;
    eg_fit_options o;
    egi_bar bar;
    egi_step step;
    eg_dataset *data;
    double began, validating;           // the first step; how long a validation took
    int64_t steps;                      // since then
} egi_fit;

EAGER_API double eg_fit_value(const eg_fit_state *state, const char *name) {
    const egi_training *t = state ? ((const egi_fit *)(const void *)state)->t : NULL;
    int i = t ? egi_result_find(t, name) : -1;
    if (i < 0) return (double)NAN;
    if (i == 2 * t->n + 2) return eg_optimizer_learning_rate(t->optimizer);
    if (i > t->n) return t->values[i];
    return i == 0 ? egi_ratio(t->loss_sum, t->loss_weight) : eg_metric_result(t->metrics[i - 1]);
}
static int egi_show_results(const egi_training *t, int from, bool now, char *text, size_t size) {
    int at = 0;
    text[0] = 0;
    for (int i = 0; i <= t->n && at < (int)size - 1; i++) {
        double value = !now ? t->values[from + i] : i ? eg_metric_result(t->metrics[i - 1]) : egi_ratio(t->loss_sum, t->loss_weight);
        at += egi_show_value(text + at, size - (size_t)at, t->names[from + i], value);
    }
    return at;
}
enum { EGI_LINE = 1024 };
static void egi_fit_head(const egi_fit *f, char *head, size_t size) {
    int64_t last = f->state.epochs;
    int width = snprintf(NULL, 0, "%lld", (long long)last);
    snprintf(head, size, "Epoch %*lld/%lld ", width, (long long)(f->state.epoch + 1), (long long)last);
}
// A few times a second, on a terminal.
static void egi_fit_show(egi_fit *f) {
    egi_bar *b = &f->bar;
    if (!b->on || !b->live) return;
    double now = egi_now();
    if (now >= b->drawn && now - b->drawn < 0.2) return;
    b->drawn = now;
    char head[64], rate[32], left[32], tail[EGI_LINE];
    int64_t done = f->state.batch + 1, all = f->state.batches, epochs = f->state.epochs - f->state.epoch - 1;
    double each = f->steps > 0 ? (now - f->began) / (double)f->steps : 0;
    egi_fit_head(f, head, sizeof head);
    egi_show_rate(rate, sizeof rate, each);
    egi_show_time(left, sizeof left, each * ((double)(all - done) + (double)epochs * (double)all) + f->validating * (double)(epochs + 1));
    int at = all < 0 ? snprintf(tail, sizeof tail, " %lld steps  %s", (long long)done, rate)
                     : snprintf(tail, sizeof tail, " %*lld/%lld  %s  %s left", snprintf(NULL, 0, "%lld", (long long)all), (long long)done, (long long)all, rate, left);
    egi_show_results(f->t, 0, true, tail + at, sizeof tail - (size_t)at);
    egi_bar_draw(b, head, all > 0 ? (double)done / (double)all : -1, tail, false);
}
static void egi_fit_show_epoch(egi_fit *f, double seconds, int64_t steps, bool validated) {
    char head[64], rate[32], tail[EGI_LINE];
    if (!f->bar.on) return;
    egi_fit_head(f, head, sizeof head);
    egi_show_rate(rate, sizeof rate, steps ? seconds / (double)steps : 0);
    int at = snprintf(tail, sizeof tail, " %lld steps  %s  %.1f s", (long long)steps, rate, egi_now() - f->bar.began);
    at += egi_show_results(f->t, 0, false, tail + at, sizeof tail - (size_t)at);
    if (validated) egi_show_results(f->t, f->t->n + 1, false, tail + at, sizeof tail - (size_t)at);
    if (!f->bar.live) head[strlen(head) - 1] = ':';
    egi_bar_draw(&f->bar, head, f->bar.live ? 1 : -1, tail, true);
}
static void egi_say(const egi_bar *b, const char *text) {
    if (!b->on) return;
    egi_print_text(text);
    egi_bar_flush();
}

static bool egi_tell(egi_fit *f, size_t which) {
    for (int i = 0; i < f->o.callbacks.count; i++) {
        eg_callback *callback = f->o.callbacks.list[i];
        eg_callback_function *function;
        memcpy(&function, (const char *)&callback->functions + which, sizeof function);
        if (!function) continue;
        eg_scope scope = eg_scope_begin();
        eg_recording_pause();
        bool ok = function(&f->state, callback->functions.user);
        eg_recording_unpause();
        eg_scope_end(scope);
        if (!ok && egi_this.error == EG_OK) egi_fail(EG_ERROR_STATE, "eg_fit: a callback failed");
        if (!ok) return false;
    }
    return true;
}
#define EGI_TELL_FIT(f, event) egi_tell(f, offsetof(eg_callback_functions, event))

// All batches of a dataset through the model as it is, without a tape; the sums stay in the metrics.
static bool egi_evaluate_sums(egi_training *t, eg_layer *model, eg_dataset *data, egi_step *s, int64_t steps, egi_bar *bar, const char *head, int64_t *done) {
    eg_iterator *it = egi_results_reset(t) ? eg_iterator_new(data) : NULL;
    int64_t all = steps > 0 ? steps : eg_dataset_cardinality(data), former = egi_this.batch;
    eg_status status = it ? EG_NEXT : EG_FAILED;
    *done = 0;
    if (it && all == EG_INFINITE) {
        egi_fail(EG_ERROR_ARGUMENT, "eg_%s: the dataset has no end; say how many batches", s->function);
        status = EG_FAILED;
    }
    while (status == EG_NEXT && (steps <= 0 || *done < steps)) {
        eg_scope scope = eg_scope_begin();
        eg_tensor *c[EG_MAX_COMPONENTS];
        egi_this.batch = *done + 1;
        status = eg_iterator_next(it, c);
        if (status == EG_NEXT) {
            if (!egi_step_run(t, model, s, c, eg_dataset_components(data))) status = EG_FAILED;
            else ++*done;
        }
        eg_scope_end(scope);
        double now = bar && bar->live ? egi_now() : 0;
        if (status != EG_NEXT || !bar || !bar->live || (now >= bar->drawn && now - bar->drawn < 0.2)) continue;
        char tail[EGI_LINE];
        bar->drawn = now;
        snprintf(tail, sizeof tail, all > 0 ? " %lld/%lld  evaluating" : " %lld  evaluating", (long long)*done, (long long)all);
        egi_bar_draw(bar, head, all > 0 ? (double)*done / (double)all : -1, tail, false);
    }
    egi_this.batch = former;
    eg_iterator_release(it);
    if (status != EG_FAILED && *done == 0) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: the dataset has no elements", s->function);
    return status != EG_FAILED;
}

// One epoch's batches. The iterator stays for the next epoch where .steps_per_epoch cuts the dataset.
static bool egi_fit_batches(egi_fit *f) {
    int64_t most = f->o.steps_per_epoch;
    eg_fit_state *s = &f->state;
    bool anew = !s->iterator;
    for (s->batch = 0; !s->stop && (most <= 0 || s->batch < most);) {
        if (!s->iterator && !(s->iterator = eg_iterator_new(f->data))) return false;
        eg_scope scope = eg_scope_begin();
        eg_tensor *c[EG_MAX_COMPONENTS];
        egi_this.batch = s->batch + 1;
        eg_status status = eg_iterator_next(s->iterator, c);
        bool ok = status != EG_FAILED;
        if (status == EG_NEXT) {
            ok = EGI_TELL_FIT(f, batch_begin) && egi_step_run(f->t, s->model, &f->step, c, eg_dataset_components(f->data));
            s->loss = f->step.loss;
            ok = ok && egi_push_double(&f->t->history->losses, &f->t->history->losses_capacity, f->t->history->batches, s->loss);
            if (ok) f->t->history->batches++;
            f->steps++;
            ok = ok && EGI_TELL_FIT(f, batch_end);
        }
        eg_scope_end(scope);
        if (!ok) return false;
        if (status == EG_NEXT) {
            if (!s->stop) egi_fit_show(f);
            s->batch++;
            anew = false;
            continue;
        }
        eg_iterator_release(s->iterator);
        s->iterator = NULL;
        if (anew) return egi_fail(EG_ERROR_ARGUMENT, "eg_fit: the dataset has no elements");
        if (most <= 0) break;
        anew = true;                                       // from its start, for as many batches as are still to do
    }
    return true;
}
static bool egi_fit_validate(egi_fit *f) {
    char head[64];
    int64_t done;
    egi_step s = { "fit", f->step.inputs, false, { 0, NULL }, 0 };
    double began = egi_now();
    egi_fit_head(f, head, sizeof head);
    if (!egi_evaluate_sums(f->t, f->state.model, f->o.validation, &s, f->o.validation_steps, f->bar.on ? &f->bar : NULL, head, &done)) return false;
    egi_results_take(f->t, f->t->n + 1);
    f->validating = egi_now() - began;
    return true;
}
static bool egi_fit_epoch(egi_fit *f) {
    egi_training *t = f->t;
    eg_fit_state *s = &f->state;
    int64_t every = f->o.validation_every > 0 ? f->o.validation_every : 1;
    f->bar.began = egi_now();
    f->bar.drawn = 0;
    if (s->epoch == f->o.initial_epoch) f->began = f->bar.began;
    if (!egi_results_reset(t) || !EGI_TELL_FIT(f, epoch_begin) || !egi_fit_batches(f)) return false;
    double seconds = egi_now() - f->bar.began;
    if (s->batches < 0 && !s->stop) s->batches = s->batch;     // now it is known
    egi_results_take(t, 0);
    t->values[2 * t->n + 2] = eg_optimizer_learning_rate(t->optimizer);
    bool validate = f->o.validation && (s->epoch + 1) % every == 0;
    if (validate && !egi_fit_validate(f)) return false;
    f->began += validate ? f->validating : 0;              // so that it does not count as time of steps
    double row[3 * 64];
    eg_history *h = t->history;
    double *values = h->columns <= (int)(sizeof row / sizeof *row) ? row : (double *)egi_alloc((size_t)h->columns * sizeof *values);
    if (!values) return egi_no_memory("fit", 0);
    for (int i = 0; i < h->columns; i++) values[i] = t->values[egi_result_find(t, h->names[i])];
    bool ok = egi_history_epoch(h, values);
    if (values != row) egi_free(values);
    if (ok) egi_fit_show_epoch(f, seconds, s->batch, validate);
    return ok && EGI_TELL_FIT(f, epoch_end);
}
// The columns: what there is without validation has no "val_".
static bool egi_fit_history(egi_training *t, const eg_fit_options *o) {
    eg_history *h = (eg_history *)egi_alloc(sizeof *h);
    if (!h) return egi_no_memory("fit", 0);
    memset(h, 0, sizeof *h);
    h->first_epoch = o->initial_epoch;
    h->names = (char (*)[64])egi_alloc((size_t)egi_result_count(t) * sizeof *h->names);
    if (!h->names) { egi_history_free(h); return egi_no_memory("fit", 0); }
    for (int i = 0; i < egi_result_count(t); i++)
        if (o->validation || !egi_is_validation(t->names[i])) memcpy(h->names[h->columns++], t->names[i], sizeof *h->names);
    egi_history_free(t->history);
    t->history = h;
    for (int i = 0; i < egi_result_count(t); i++) t->values[i] = (double)NAN;
    return true;
}
static bool egi_fit_ready(egi_fit *f, eg_dataset *data, const eg_fit_options *o) {
    if (o->batch_size || o->no_shuffle || o->sample_weights || o->validation_x || o->validation_y)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_fit: .batch_size, .no_shuffle, .sample_weights, .validation_x and .validation_y are options of eg_fit_arrays; a dataset has them in it");
    if (o->epochs < 0 || o->initial_epoch < 0 || o->steps_per_epoch < 0 || o->validation_steps < 0 || o->validation_every < 0 || o->inputs < 0 || o->class_weights.count < 0)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_fit: an option that counts something is negative");
    if (!data) return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_fit: the dataset is NULL") : false;
    for (int i = 0; i < o->callbacks.count; i++)
        if (!o->callbacks.list[i]) return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_fit: callback %d is NULL", i) : false;
    if (f->t->fitting) return egi_fail(EG_ERROR_STATE, "eg_fit: the model is being fitted already");
    f->state.batches = o->steps_per_epoch > 0 ? o->steps_per_epoch : eg_dataset_cardinality(data);
    if (f->state.batches == EG_INFINITE) return egi_fail(EG_ERROR_ARGUMENT, "eg_fit: the dataset has no end; give .steps_per_epoch");
    if (f->state.batches < 0) f->state.batches = -1;
    return egi_fit_history(f->t, o);
}
EAGER_API const eg_history *(eg_fit)(eg_layer *model, eg_dataset *data, eg_fit_options o) {
    egi_fit f;
    memset(&f, 0, sizeof f);
    if (o.epochs == 0) o.epochs = 1;
    if (o.inputs == 0) o.inputs = 1;
    f.t = egi_compiled("fit", model);
    f.o = o;
    f.data = data;
    f.state.model = model;
    bool ok = f.t && egi_fit_ready(&f, data, &o);
    if (ok) {
        egi_step step = { "fit", o.inputs, true, o.class_weights, 0 };
        f.step = step;
        f.state.optimizer = f.t->optimizer;
        f.state.history = f.t->history;
        f.state.epochs = o.epochs;
        eg_layer_retain(model);
        f.t->fitting = true;
        egi_bar_open(&f.bar, o.quiet, o.progress);
        int64_t epoch = egi_this.epoch, batch = egi_this.batch;
        ok = EGI_TELL_FIT(&f, fit_begin);
        for (f.state.epoch = o.initial_epoch; ok && !f.state.stop && f.state.epoch < o.epochs; f.state.epoch++) {
            egi_this.epoch = f.state.epoch + 1;
            ok = egi_fit_epoch(&f);
        }
        egi_this.epoch = epoch;
        egi_this.batch = batch;
        if (!ok && f.bar.shown) egi_say(&f.bar, "\n");
        if (ok && f.state.stop && f.state.reason) {
            char text[EGI_LINE];
            snprintf(text, sizeof text, "%.1000s\n", f.state.reason);
            egi_say(&f.bar, text);
        }
        ok = ok && EGI_TELL_FIT(&f, fit_end);
        eg_iterator_release(f.state.iterator);
        f.t->fitting = false;
    }
    for (int i = 0; i < o.callbacks.count; i++) eg_callback_release(o.callbacks.list[i]);
    const eg_history *history = ok ? f.t->history : NULL;
    if (f.state.optimizer) eg_layer_release(model);
    return history;
}
static bool egi_arrays(const char *function, eg_tensor *x, eg_tensor *y) {
    if (!egi_alive(function, 0, x) || !egi_alive(function, 1, y)) return false;
    return true;
}
// Rows in batches; their pipeline is borrowed no longer than the call, so the tensors stay the caller's.
static eg_dataset *egi_array_batches(eg_tensor *x, eg_tensor *y, eg_tensor *weights, int64_t batch, bool shuffle) {
    eg_tensor *list[3];
    list[0] = x;
    list[1] = y;
    list[2] = weights;
    eg_batch_options plain;
    eg_shuffle_options mixed;
    memset(&plain, 0, sizeof plain);
    memset(&mixed, 0, sizeof mixed);
    eg_dataset *d = eg_dataset_from_slices_of(list, weights ? 3 : y ? 2 : 1);
    if (d && shuffle && x->rank > 0 && x->dims[0] > 0) d = (eg_dataset_shuffle)(d, x->dims[0], mixed);
    return d ? (eg_dataset_batch)(d, batch, plain) : NULL;
}
static int64_t egi_batch_size(int64_t given) { return given == 0 ? 32 : given; }
EAGER_API const eg_history *(eg_fit_arrays)(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_fit_options o) {
    eg_dataset *data = egi_arrays("fit_arrays", x, y) ? egi_array_batches(x, y, o.sample_weights, egi_batch_size(o.batch_size), !o.no_shuffle) : NULL, *validation = NULL;
    bool ok = data != NULL;
    if (ok && (!o.validation_x != !o.validation_y || (o.validation_x && o.validation)))
        ok = egi_fail(EG_ERROR_ARGUMENT, "eg_fit_arrays: give .validation_x and .validation_y, both, or a .validation dataset");
    if (ok && o.validation_x) {
        o.validation = validation = egi_array_batches(o.validation_x, o.validation_y, NULL, egi_batch_size(o.batch_size), false);
        ok = validation != NULL;
    }
    o.batch_size = 0;
    o.no_shuffle = false;
    o.sample_weights = o.validation_x = o.validation_y = NULL;
    const eg_history *h = NULL;
    if (ok) h = (eg_fit)(model, data, o);
    else for (int i = 0; i < o.callbacks.count; i++) eg_callback_release(o.callbacks.list[i]);
    eg_dataset_release(data);
    eg_dataset_release(validation);
    return h;
}

// ---- evaluate, predict

EAGER_API double (eg_evaluate)(eg_layer *model, eg_dataset *data, eg_evaluate_options o) {
    egi_training *t = egi_compiled("evaluate", model);
    egi_step s = { "evaluate", o.inputs ? o.inputs : 1, false, { 0, NULL }, 0 };
    egi_bar bar;
    int64_t done;
    if (!t) return (double)NAN;
    if (!data) { if (egi_this.error == EG_OK) egi_fail(EG_ERROR_NULL, "eg_evaluate: the dataset is NULL"); return (double)NAN; }
    if (o.batch_size) { egi_fail(EG_ERROR_ARGUMENT, "eg_evaluate: .batch_size is an option of eg_evaluate_arrays"); return (double)NAN; }
    if (t->fitting) { egi_fail(EG_ERROR_STATE, "eg_evaluate: the model is being fitted, which sums in the same metrics; use .validation or eg_predict"); return (double)NAN; }
    egi_bar_open(&bar, o.quiet, o.progress);
    double began = egi_now();
    int64_t batch = egi_this.batch;
    bool ok = egi_evaluate_sums(t, model, data, &s, o.steps, bar.on ? &bar : NULL, "", &done);
    egi_this.batch = batch;
    if (!ok) {
        if (bar.shown) egi_say(&bar, "\n");
        return (double)NAN;
    }
    egi_results_take(t, 0);
    if (bar.on) {
        char rate[32], tail[EGI_LINE];
        double seconds = egi_now() - began;
        egi_show_rate(rate, sizeof rate, seconds / (double)done);
        int at = snprintf(tail, sizeof tail, "%s%lld steps  %s  %.1f s", bar.live ? " " : "", (long long)done, rate, seconds);
        egi_show_results(t, 0, false, tail + at, sizeof tail - (size_t)at);
        egi_bar_draw(&bar, "", bar.live ? 1 : -1, tail, true);
    }
    return t->values[0];
}
EAGER_API double (eg_evaluate_arrays)(eg_layer *model, eg_tensor *x, eg_tensor *y, eg_evaluate_options o) {
    eg_dataset *data = egi_arrays("evaluate_arrays", x, y) ? egi_array_batches(x, y, NULL, egi_batch_size(o.batch_size), false) : NULL;
    o.batch_size = 0;
    double loss = data ? (eg_evaluate)(model, data, o) : (double)NAN;
    eg_dataset_release(data);
    return loss;
}
EAGER_API eg_tensor *(eg_predict_dataset)(eg_layer *model, eg_dataset *data, eg_evaluate_options o) {
    int inputs = o.inputs ? o.inputs : 1;
    if (!model || !data) return egi_this.error == EG_OK ? (eg_tensor *)eg_raise(EG_ERROR_NULL, "eg_predict: the %s is NULL", model ? "dataset" : "model") : NULL;
    if (o.batch_size) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_predict_dataset: .batch_size is an option of eg_predict");
    if (inputs < 1 || inputs > eg_dataset_components(data))
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_predict: a model of %d inputs, and elements of %d components", inputs, eg_dataset_components(data));
    if (o.steps <= 0 && eg_dataset_cardinality(data) == EG_INFINITE)
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_predict: the dataset has no end; give .steps");
    eg_scope whole = eg_scope_begin();
    eg_recording_pause();
    eg_iterator *it = eg_iterator_new(data);
    eg_status status = it ? EG_NEXT : EG_FAILED;
    eg_tensor **parts = NULL, *result = NULL;
    int64_t n = 0, capacity = 0;
    while (status == EG_NEXT && (o.steps <= 0 || n < o.steps)) {
        eg_scope scope = eg_scope_begin();
        eg_tensor *c[EG_MAX_COMPONENTS];
        status = eg_iterator_next(it, c);
        if (status == EG_NEXT) {
            void *grown = parts;
            eg_tensor *y = egi_model_call(model, c, inputs, false);
            if (y && egi_grow(&grown, &capacity, n + 1, sizeof *parts)) {
                parts = (eg_tensor **)grown;
                parts[n++] = eg_retain(y);
            } else {
                if (egi_this.error == EG_OK) egi_no_memory("predict", 0);
                status = EG_FAILED;
            }
        }
        eg_scope_end(scope);
    }
    if (status != EG_FAILED && n == 0) egi_fail(EG_ERROR_ARGUMENT, "eg_predict: the dataset has no elements");
    else if (status != EG_FAILED && n <= INT_MAX) result = eg_keep(n == 1 ? egi_again(parts[0]) : eg_concat(parts, (int)n, 0));
    for (int64_t i = 0; i < n; i++) eg_release(parts[i]);
    egi_free(parts);
    eg_iterator_release(it);
    eg_recording_unpause();
    eg_scope_end(whole);
    return result;
}
EAGER_API eg_tensor *(eg_predict)(eg_layer *model, eg_tensor *x, eg_evaluate_options o) {
    if (!egi_alive("predict", 0, x)) return NULL;
    eg_dataset *data = egi_array_batches(x, NULL, NULL, egi_batch_size(o.batch_size), false);
    o.batch_size = 0;
    eg_tensor *y = data ? (eg_predict_dataset)(model, data, o) : NULL;
    eg_dataset_release(data);
    return y;
}

// ---- callbacks

EAGER_API eg_callback *eg_callback_new(eg_callback_functions functions) {
    eg_callback *callback = (eg_callback *)egi_alloc(sizeof *callback);
    if (!callback) {
        egi_no_memory("callback_new", (int64_t)sizeof *callback);
        if (functions.release) functions.release(functions.user);
        return NULL;
    }
    callback->refs = 1;
    callback->functions = functions;
    return callback;
}
EAGER_API eg_callback *eg_callback_retain(eg_callback *callback) {
    if (callback) __atomic_fetch_add(&callback->refs, 1, __ATOMIC_RELAXED);
    return callback;
}
EAGER_API void eg_callback_release(eg_callback *callback) {
    if (!callback || __atomic_sub_fetch(&callback->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (callback->functions.release) callback->functions.release(callback->functions.user);
    egi_free(callback);
}

// What the library's own callbacks know: their options, and what they have seen.
typedef struct egi_watch {
    eg_callback_options o;
    const char *name;                   // of the function, for errors
    char *path, *monitor;               // copies
    bool best_known, set_up;
    double best;
    int64_t waited, cooling, best_epoch;
    eg_tensor **weights;                // of the best epoch: they share their buffers with the variables until these change
    int n;
    egi_text text;                      // CSV: the file so far
    eg_summary_writer *train, *validation;
    int64_t seen;                       // batches
    char said[256];
} egi_watch;
static void egi_watch_forget(egi_watch *w) {
    for (int i = 0; i < w->n; i++) eg_release(w->weights[i]);
    egi_free(w->weights);
    w->weights = NULL;
    w->n = 0;
}
static void egi_watch_release(void *user) {
    egi_watch *w = (egi_watch *)user;
    egi_watch_forget(w);
    egi_text_free(&w->text);
    eg_summary_writer_release(w->train);
    eg_summary_writer_release(w->validation);
    egi_free(w->path);
    egi_free(w->monitor);
    egi_free(w);
}
enum { EGI_C_MONITOR = 1, EGI_C_DELTA = 2, EGI_C_PATIENCE = 4, EGI_C_RESTORE = 8, EGI_C_SAVE = 16, EGI_C_PLATEAU = 32, EGI_C_APPEND = 64, EGI_C_EVERY = 128, EGI_C_RATE = 256 };
static eg_callback *egi_watch_new(const char *name, const char *path, eg_callback_options o, unsigned has, eg_callback_functions functions) {
    if (!egi_option_allowed(name, "monitor or .mode", o.monitor || o.mode != EG_AUTO, has & EGI_C_MONITOR) ||
        !egi_option_allowed(name, "min_delta", o.min_delta != 0, has & EGI_C_DELTA) || !egi_option_allowed(name, "patience", o.patience != 0, has & EGI_C_PATIENCE) ||
        !egi_option_allowed(name, "restore_best", o.restore_best, has & EGI_C_RESTORE) || !egi_option_allowed(name, "save_best", o.save_best, has & EGI_C_SAVE) ||
        !egi_option_allowed(name, "factor, .cooldown or .min_learning_rate", o.factor != 0 || o.cooldown != 0 || o.min_learning_rate != 0, has & EGI_C_PLATEAU) ||
        !egi_option_allowed(name, "append", o.append, has & EGI_C_APPEND) || !egi_option_allowed(name, "every", o.every != 0, has & EGI_C_EVERY) ||
        !egi_option_allowed(name, "rate or .user", o.rate || o.user, has & EGI_C_RATE))
        return NULL;
    bool plateau = has & EGI_C_PLATEAU;
    o.min_delta = fabs(egi_or(o.min_delta, plateau ? 1e-4 : 0));
    o.patience = o.patience == EG_ZERO ? 0 : o.patience == 0 && plateau ? 10 : o.patience;
    o.factor = egi_or(o.factor, 0.1);
    o.min_learning_rate = egi_or(o.min_learning_rate, 0);
    if (!(o.factor > 0 && o.factor < 1 && o.min_learning_rate >= 0) || o.patience < 0 || o.cooldown < 0 || o.every < 0)
        return (eg_callback *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: an option is out of its range (.factor is between 0 and 1, the others are not negative)", name);
    if (has & EGI_C_RATE && !o.rate) return (eg_callback *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: give .rate, a function of the epoch and the rate so far", name);
    egi_watch *w = (egi_watch *)egi_alloc(sizeof *w);
    if (!w) { egi_no_memory(name, (int64_t)sizeof *w); return NULL; }
    memset(w, 0, sizeof *w);
    w->o = o;
    w->name = name;
    if ((path && !(w->path = egi_copy_string(path, ""))) || (o.monitor && !(w->monitor = egi_copy_string(o.monitor, "")))) {
        egi_watch_release(w);
        egi_no_memory(name, 0);
        return NULL;
    }
    functions.user = w;
    functions.release = egi_watch_release;
    return eg_callback_new(functions);
}
// Begins anew with each fit.
static bool egi_watch_begin(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    (void)s;
    w->best_known = false;
    w->waited = w->cooling = 0;
    egi_watch_forget(w);
    return true;
}
// Scores grow as they become better, losses fall.
static bool egi_grows(const char *name) {
    static const char *const scores[] = { "acc", "auc", "precision", "recall", "f1", "r2", "iou", "top_k" };
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) if (strstr(name, scores[i])) return true;
    return false;
}
// The monitored value of the epoch that has just ended, and whether it is the best so far. False where there is none of that name.
static bool egi_watch_look(egi_watch *w, const eg_fit_state *s, double *value, bool *better) {
    const char *name = w->monitor ? w->monitor : egi_history_column(s->history, "val_loss") >= 0 ? "val_loss" : "loss";
    bool grows = w->o.mode == EG_MAX || (w->o.mode == EG_AUTO && egi_grows(name));
    *better = false;
    if (egi_history_column(s->history, name) < 0) {
        char names[512];
        int at = 0;
        names[0] = 0;
        for (int i = 0; i < s->history->columns && at < (int)sizeof names; i++)
            at += snprintf(names + at, sizeof names - (size_t)at, i ? ", %s" : "%s", s->history->names[i]);
        return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: there is no '%s' to monitor; this fit has %s", w->name, name, names);
    }
    *value = eg_history_value(s->history, name, -1);
    if (*value != *value) return true;                     // no validation in this epoch, or nothing to compare
    *better = !w->best_known || (grows ? *value > w->best + w->o.min_delta : *value < w->best - w->o.min_delta);
    if (*better) {
        w->best = *value;
        w->best_known = true;
        w->best_epoch = s->epoch;
    }
    return true;
}

static bool egi_watch_snapshot(egi_watch *w, eg_layer *model) {
    egi_watch_forget(w);
    int n = eg_layer_weights(model, NULL, 0);
    w->weights = (eg_tensor **)egi_alloc((size_t)(n ? n : 1) * sizeof *w->weights);
    if (!w->weights) return egi_no_memory(w->name, 0);
    eg_layer_weights(model, w->weights, n);
    for (; w->n < n; w->n++) {
        eg_tensor *value = eg_read(w->weights[w->n]);
        if (!value) return false;
        w->weights[w->n] = eg_retain(value);
    }
    return true;
}
static bool egi_watch_restore(egi_watch *w, eg_layer *model) {
    int n = eg_layer_weights(model, NULL, 0);
    eg_tensor **now = (eg_tensor **)egi_alloc((size_t)(n ? n : 1) * sizeof *now);
    if (!now) return egi_no_memory(w->name, 0);
    eg_layer_weights(model, now, n);
    bool ok = true;
    for (int i = 0; i < n && i < w->n && ok; i++) ok = (eg_assign)(now[i], w->weights[i]) != NULL;
    egi_free(now);
    return ok;
}
static bool egi_early_epoch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    double value;
    bool better;
    if (!egi_watch_look(w, s, &value, &better)) return false;
    if (better && w->o.restore_best && !egi_watch_snapshot(w, s->model)) return false;
    if (value != value) return true;
    w->waited = better ? 0 : w->waited + 1;
    if (better || w->waited < (w->o.patience > 1 ? w->o.patience : 1)) return true;
    s->stop = true;
    snprintf(w->said, sizeof w->said, "Stopped after epoch %lld: the best was %.6g, in epoch %lld%s", (long long)s->epoch + 1, w->best, (long long)w->best_epoch + 1,
             w->o.restore_best ? ", whose weights are back" : "");
    s->reason = w->said;
    return true;
}
static bool egi_early_end(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    bool ok = !w->n || egi_watch_restore(w, s->model);
    egi_watch_forget(w);
    return ok;
}
EAGER_API eg_callback *(eg_callback_early_stopping)(eg_callback_options o) {
    eg_callback_functions f;
    memset(&f, 0, sizeof f);
    f.fit_begin = egi_watch_begin;
    f.epoch_end = egi_early_epoch;
    f.fit_end = egi_early_end;
    return egi_watch_new("callback_early_stopping", NULL, o, EGI_C_MONITOR | EGI_C_DELTA | EGI_C_PATIENCE | EGI_C_RESTORE, f);
}

static bool egi_plateau_epoch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    double value;
    bool better;
    if (!egi_watch_look(w, s, &value, &better)) return false;
    if (value != value) return true;
    if (w->cooling > 0) { w->cooling--; w->waited = 0; }
    if (better) w->waited = 0;
    else if (w->cooling <= 0 && ++w->waited >= w->o.patience) {
        double rate = eg_optimizer_learning_rate(s->optimizer), lower = fmax(rate * w->o.factor, w->o.min_learning_rate);
        if (rate > w->o.min_learning_rate && !eg_optimizer_set_learning_rate(s->optimizer, lower)) return false;
        w->cooling = w->o.cooldown;
        w->waited = 0;
    }
    return true;
}
EAGER_API eg_callback *(eg_callback_plateau)(eg_callback_options o) {
    eg_callback_functions f;
    memset(&f, 0, sizeof f);
    f.fit_begin = egi_watch_begin;
    f.epoch_end = egi_plateau_epoch;
    return egi_watch_new("callback_plateau", NULL, o, EGI_C_MONITOR | EGI_C_DELTA | EGI_C_PATIENCE | EGI_C_PLATEAU, f);
}
static bool egi_rate_epoch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    return eg_optimizer_set_learning_rate(s->optimizer, w->o.rate(s->epoch, eg_optimizer_learning_rate(s->optimizer), w->o.user));
}
EAGER_API eg_callback *(eg_callback_learning_rate)(eg_callback_options o) {
    eg_callback_functions f;
    memset(&f, 0, sizeof f);
    f.epoch_begin = egi_rate_epoch;
    return egi_watch_new("callback_learning_rate", NULL, o, EGI_C_RATE, f);
}
static bool egi_nan_batch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    if (s->loss - s->loss == 0) return true;
    s->stop = true;
    snprintf(w->said, sizeof w->said, "Stopped in epoch %lld at batch %lld: the loss is %s", (long long)s->epoch + 1, (long long)s->batch + 1, s->loss != s->loss ? "not a number" : "infinite");
    s->reason = w->said;
    return true;
}
EAGER_API eg_callback *eg_callback_stop_on_nan(void) {
    eg_callback_functions f;
    eg_callback_options none;
    memset(&f, 0, sizeof f);
    memset(&none, 0, sizeof none);
    f.batch_end = egi_nan_batch;
    return egi_watch_new("callback_stop_on_nan", NULL, none, 0, f);
}

static bool egi_file_there(const char *path) {
#ifdef EAGER_NO_STDIO
    return path == NULL;
#else
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
#endif
}
static bool egi_csv_begin(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    (void)s;
    egi_text_free(&w->text);
    if (!w->o.append || !egi_file_there(w->path)) return true;
    int64_t size;
    char *former = egi_file_read("callback_csv", w->path, &size);
    if (!former) return false;
    egi_text_add(&w->text, former, (size_t)size);
    egi_free(former);
    return !w->text.failed || egi_no_memory("callback_csv", size);
}
static bool egi_csv_epoch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    if (!w->text.size) egi_history_csv_line(s->history, &w->text, -1);
    egi_history_csv_line(s->history, &w->text, s->history->epochs - 1);
    return w->text.failed ? egi_no_memory("callback_csv", 0) : egi_file_write("callback_csv", w->path, w->text.data, (int64_t)w->text.size);
}
EAGER_API eg_callback *(eg_callback_csv)(const char *path, eg_callback_options o) {
    eg_callback_functions f;
    memset(&f, 0, sizeof f);
    if (!path) return (eg_callback *)eg_raise(EG_ERROR_NULL, "eg_callback_csv: the path is NULL");
    f.fit_begin = egi_csv_begin;
    f.epoch_end = egi_csv_epoch;
    return egi_watch_new("callback_csv", path, o, EGI_C_APPEND, f);
}

// {epoch} and {name} in a path become numbers; another brace stays as it is.
static char *egi_fill_path(const egi_watch *w, const eg_fit_state *s) {
    egi_text t;
    memset(&t, 0, sizeof t);
    for (const char *p = w->path; *p;) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        char name[64];
        int column = -1;
        if (end && end - p < (int)sizeof name) {
            memcpy(name, p + 1, (size_t)(end - p - 1));
            name[end - p - 1] = 0;
            column = strcmp(name, "epoch") ? egi_history_column(s->history, name) : -2;
        }
        if (column == -2) egi_text_printf(&t, "%lld", (long long)s->epoch + 1);
        else if (column >= 0) egi_text_number(&t, floor(eg_history_value(s->history, name, -1) * 1e4 + 0.5) / 1e4);
        else egi_text_add(&t, p, 1);
        p = column == -1 ? p + 1 : end + 1;
    }
    if (!t.failed) return t.data;
    egi_text_free(&t);
    egi_no_memory(w->name, 0);
    return NULL;
}
static bool egi_checkpoint_epoch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    double value;
    bool better = true;
    if (w->o.save_best && !egi_watch_look(w, s, &value, &better)) return false;
    if (!better) return true;
    char *path = egi_fill_path(w, s);
    bool ok = path && eg_save_weights(s->model, path);
    egi_free(path);
    return ok;
}
EAGER_API eg_callback *(eg_callback_checkpoint)(const char *path, eg_callback_options o) {
    eg_callback_functions f;
    memset(&f, 0, sizeof f);
    if (!path) return (eg_callback *)eg_raise(EG_ERROR_NULL, "eg_callback_checkpoint: the path is NULL");
    f.fit_begin = egi_watch_begin;
    f.epoch_end = egi_checkpoint_epoch;
    return egi_watch_new("callback_checkpoint", path, o, EGI_C_MONITOR | EGI_C_DELTA | EGI_C_SAVE, f);
}

// As Keras lays them out: two runs, train and validation, whose curves have one name and so share a chart.
static bool egi_board_write(eg_summary_writer *writer, const char *prefix, const char *name, double value, int64_t step) {
    char tag[96];
    eg_summary_options o;
    memset(&o, 0, sizeof o);
    o.writer = writer;
    o.step = step == 0 ? EG_ZERO : step;
    snprintf(tag, sizeof tag, "%s_%s", prefix, name);
    return (eg_summary_scalar)(tag, eg_number(value), o);
}
static eg_summary_writer *egi_board_open(egi_watch *w, const char *run) {
    char *folder = egi_copy_string(w->path, run);
    eg_summary_writer *writer = folder ? eg_summary_writer_open(folder) : NULL;
    if (!folder) egi_no_memory(w->name, 0);
    egi_free(folder);
    return writer;
}
static bool egi_board_begin(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    w->seen = 0;
    if (!w->train && !(w->train = egi_board_open(w, "/train"))) return false;
    bool validation = egi_history_column(s->history, "val_loss") >= 0;
    return !validation || w->validation || (w->validation = egi_board_open(w, "/validation")) != NULL;
}
static bool egi_board_batch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    int64_t step = w->seen++;
    return w->o.every == 0 || step % w->o.every != 0 || egi_board_write(w->train, "batch", "loss", s->loss, step);
}
static bool egi_board_epoch(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    const eg_history *h = s->history;
    for (int i = 0; i < h->columns; i++) {
        bool validation = egi_is_validation(h->names[i]);
        double value = eg_history_value(h, h->names[i], -1);
        if (validation && value != value) continue;                            // an epoch without
        if (!egi_board_write(validation ? w->validation : w->train, "epoch", h->names[i] + (validation ? 4 : 0), value, s->epoch)) return false;
    }
    return true;
}
static bool egi_board_end(eg_fit_state *s, void *user) {
    egi_watch *w = (egi_watch *)user;
    (void)s;
    return eg_summary_writer_flush(w->train) && (!w->validation || eg_summary_writer_flush(w->validation));
}
EAGER_API eg_callback *(eg_callback_tensorboard)(const char *folder, eg_callback_options o) {
    eg_callback_functions f;
    memset(&f, 0, sizeof f);
    if (!folder) return (eg_callback *)eg_raise(EG_ERROR_NULL, "eg_callback_tensorboard: the folder is NULL");
    f.fit_begin = egi_board_begin;
    f.batch_end = o.every > 0 ? egi_board_batch : NULL;
    f.epoch_end = egi_board_epoch;
    f.fit_end = egi_board_end;
    return egi_watch_new("callback_tensorboard", folder, o, EGI_C_EVERY, f);
}

//# 30  DATASETS ---------------------------------------------------------------
// Idea: a dataset is what to do: a tree of stages that never changes. A cursor is one
// reading of it: a tree of the same form with the places. An iterator holds the
// root cursor. Each kind of stage is a row of a few functions; whatever is common
// (opening what is upstream when it is first asked, ends, errors and their place)
// stands in egi_pull. What a stage hands out is a reference that goes over to
// whoever asked. Read first: 16.  Entry: eg_iterator_next().  Proof: tests/datasets.c

typedef struct egi_element { eg_tensor *x[EG_MAX_COMPONENTS]; } egi_element;
typedef struct egi_cursor egi_cursor;
typedef struct egi_stage {
    const char *name;                                         // eg_dataset_<name>
    size_t state;                                             // bytes of a cursor's own state, zero at first
    bool (*rule)(eg_dataset *d);                              // components, specs and cardinality, from those of d->from
    eg_status (*next)(egi_cursor *c, eg_tensor **out);
    int64_t (*skip)(egi_cursor *c, int64_t n);                // steps over n elements; returns how many there were, -1 on an error. NULL: by reading
    void (*close)(egi_cursor *c);                             // frees what the state holds
    bool random;                                              // has a seed
} egi_stage;

struct eg_dataset {
    int32_t refs;
    const egi_stage *stage;
    eg_dataset *from[EG_MAX_COMPONENTS];
    int n_from, stages;                                       // stages: of the tree, this one included
    int n;                                                    // components
    eg_spec spec[EG_MAX_COMPONENTS];
    int64_t cardinality;
    int64_t number[3];                                        // what the row says: a size, a count, a range
    int64_t width;                                            // threads, or elements read ahead: what comes out is the same
    bool flag;
    double value;
    uint64_t seed;
    int64_t epochs;                                           // of a shuffle: iterators made so far
    union {                                                   // the callback
        eg_map_function *map;
        eg_function1 *one;
        eg_dataset_function *dataset;
        eg_generator *generator;
    } f;
    void *user;
    egi_element tensors;                                      // of sources
    void *data;                                               // the row's own, freed with the dataset by
    void (*drop)(eg_dataset *d);
};

struct egi_cursor {
    eg_dataset *d;                                            // alive as long as the iterator is
    egi_cursor *from[EG_MAX_COMPONENTS];                      // NULL until first asked
    int number, total;                                        // stage number of total, for errors
    bool ended, below;                                        // below: what failed stands upstream and has said so
    uint64_t epoch, epoch_below;                              // keys of random orders; what is upstream gets the second
    int64_t element;                                          // elements handed out
    void *state;
};

static eg_tensor *egi_to(eg_tensor *x, eg_backend *from, eg_backend *to);
static void egi_cursor_close(egi_cursor *c);

static void egi_element_drop(eg_tensor **x) {
    for (int i = 0; i < EG_MAX_COMPONENTS; i++) {
        if (x[i]) egi_object_release(&x[i]->object);
        x[i] = NULL;
    }
}

// ---- datasets

EAGER_API eg_dataset *eg_dataset_retain(eg_dataset *d) {
    if (d) __atomic_fetch_add(&d->refs, 1, __ATOMIC_RELAXED);
    return d;
}
EAGER_API void eg_dataset_release(eg_dataset *d) {
    if (!d || __atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (d->drop) d->drop(d);
    for (int i = 0; i < d->n_from; i++) eg_dataset_release(d->from[i]);
    egi_element_drop(d->tensors.x);
    egi_free(d->data);
    egi_free(d);
}
// A dataset on top of others, whose references it takes over. The caller sets what the row wants and calls egi_dataset_done.
static eg_dataset *egi_dataset_begin(const egi_stage *stage, eg_dataset *const *from, int n_from) {
    bool ok = true;
    for (int i = 0; i < n_from && ok; i++) ok = from[i] != NULL || egi_null_operand(stage->name, i);
    eg_dataset *d = ok ? (eg_dataset *)egi_alloc(sizeof *d) : NULL;
    if (!d) {
        if (ok) egi_no_memory(stage->name, (int64_t)sizeof *d);
        for (int i = 0; i < n_from; i++) eg_dataset_release(from[i]);
        return NULL;
    }
    memset(d, 0, sizeof *d);
    d->refs = 1;
    d->stage = stage;
    d->stages = 1;
    for (int i = 0; i < n_from; i++) {
        d->from[d->n_from++] = from[i];
        d->stages += from[i]->stages;
    }
    if (n_from) {                                             // most stages change little of what they are given
        d->n = from[0]->n;
        memcpy(d->spec, from[0]->spec, sizeof d->spec);
        d->cardinality = from[0]->cardinality;
    }
    return d;
}
static eg_dataset *egi_dataset_done(eg_dataset *d, bool ok) {
    if (d && ok && (!d->stage->rule || d->stage->rule(d))) return d;
    eg_dataset_release(d);
    return NULL;
}
static eg_dataset *egi_dataset_on(const egi_stage *stage, eg_dataset *from) { return egi_dataset_begin(stage, &from, 1); }
// The same thread's generator gives a dataset its seed where the caller gives none.
static uint64_t egi_mix(uint64_t a, uint64_t b) {
    egi_random r = { a, b };
    uint32_t word[4];
    egi_random_block(word, r, 0, 0x64617461u);                // a sequence that no tensor is drawn from
    return egi_random_word64(word, 0);
}
static uint64_t egi_dataset_seed(uint64_t seed) {
    return seed ? seed : egi_mix(egi_this.random.seed, egi_this.random.counter++) | 1;
}

static const eg_spec egi_unknown_spec = { EG_NO_DTYPE, { -1, { 0 } } };
static eg_spec egi_spec_of(const eg_tensor *x) {
    eg_spec s;
    s.dtype = (eg_dtype)x->dtype;
    s.shape = egi_shape(x);
    return s;
}
// What is true of both.
static eg_spec egi_spec_join(eg_spec a, eg_spec b) {
    if (a.dtype != b.dtype) a.dtype = EG_NO_DTYPE;
    if (a.shape.rank != b.shape.rank) a.shape.rank = -1;
    for (int i = 0; i < a.shape.rank; i++) if (a.shape.dims[i] != b.shape.dims[i]) a.shape.dims[i] = -1;
    return a;
}
// May something be of both? What is unknown fits all.
static bool egi_spec_fits(eg_spec a, eg_spec b) {
    if (a.dtype != EG_NO_DTYPE && b.dtype != EG_NO_DTYPE && a.dtype != b.dtype) return false;
    if (a.shape.rank < 0 || b.shape.rank < 0) return true;
    if (a.shape.rank != b.shape.rank) return false;
    for (int i = 0; i < a.shape.rank; i++)
        if (a.shape.dims[i] >= 0 && b.shape.dims[i] >= 0 && a.shape.dims[i] != b.shape.dims[i]) return false;
    return true;
}
static EGI_COLD const char *egi_spec_show(eg_spec s) {
    char *text = egi_text_buffer();
    snprintf(text, EGI_TEXT, "%s %s", s.dtype == EG_NO_DTYPE ? "any dtype" : eg_dtype_name(s.dtype), s.shape.rank < 0 ? "of any shape" : egi_show(s.shape));
    return text;
}
static bool egi_specs_given(eg_dataset *d, const eg_spec *specs, int n) {
    if (n < 1 || n > EG_MAX_COMPONENTS)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_%s: %d components; an element has 1 to %d", d->stage->name + 8, n, EG_MAX_COMPONENTS);
    d->n = n;
    for (int i = 0; i < n; i++) d->spec[i] = specs ? specs[i] : egi_unknown_spec;
    return true;
}
static bool egi_specs_agree(const char *function, const eg_spec *a, int n, const eg_spec *b, int m) {
    if (n != m) return egi_fail(EG_ERROR_SHAPE, "eg_%s: elements of %d and of %d components are no one structure", function, n, m);
    for (int i = 0; i < n; i++)
        if (!egi_spec_fits(a[i], b[i]))
            return egi_fail(a[i].dtype != b[i].dtype && a[i].dtype != EG_NO_DTYPE && b[i].dtype != EG_NO_DTYPE ? EG_ERROR_DTYPE : EG_ERROR_SHAPE,
                            "eg_%s: component %d is %s in one dataset and %s in the other", function, i, egi_spec_show(a[i]), egi_spec_show(b[i]));
    return true;
}
static bool egi_dataset_alive(const char *function, const eg_dataset *d) { return d != NULL || egi_null_operand(function, 0); }

EAGER_API int eg_dataset_components(eg_dataset *d) { return egi_dataset_alive("dataset_components", d) ? d->n : -1; }
EAGER_API eg_spec eg_dataset_spec(eg_dataset *d, int component) {
    if (!egi_dataset_alive("dataset_spec", d)) return egi_unknown_spec;
    if (component >= 0 && component < d->n) return d->spec[component];
    egi_fail(EG_ERROR_INDEX, "eg_dataset_spec: no component %d; the elements have %d", component, d->n);
    return egi_unknown_spec;
}
EAGER_API int64_t eg_dataset_cardinality(eg_dataset *d) { return egi_dataset_alive("dataset_cardinality", d) ? d->cardinality : 0; }

static size_t egi_dataset_words(const eg_dataset *d, char *text, size_t capacity, size_t at) {
#define EGI_SAY(...) at += (size_t)snprintf(text ? text + (at < capacity ? at : capacity) : NULL, at < capacity ? capacity - at : 0, __VA_ARGS__)
    if (d->n_from > 1) EGI_SAY("(");
    for (int i = 0; i < d->n_from; i++) {
        if (i) EGI_SAY(", ");
        at = egi_dataset_words(d->from[i], text, capacity, at);
    }
    if (d->n_from) EGI_SAY(d->n_from > 1 ? ") > " : " > ");
    EGI_SAY("%s", d->stage->name + 8);
    for (int i = 0; i < 3; i++) if (d->number[i]) EGI_SAY(" %lld", (long long)d->number[i]);
#undef EGI_SAY
    return at;
}
EAGER_API int64_t eg_dataset_format(eg_dataset *d, char *text, size_t capacity) {
    if (!egi_dataset_alive("dataset_format", d)) return -1;
    return (int64_t)egi_dataset_words(d, capacity ? text : NULL, capacity, 0);
}

// ---- cursors

static egi_cursor *egi_cursor_open(eg_dataset *d, uint64_t epoch, int number, int total) {
    egi_cursor *c = (egi_cursor *)egi_alloc(sizeof *c + d->stage->state);
    if (!c) { egi_no_memory(d->stage->name, (int64_t)(sizeof *c + d->stage->state)); return NULL; }
    memset((void *)c, 0, sizeof *c + d->stage->state);
    c->d = d;
    c->epoch = c->epoch_below = epoch;
    c->number = number;
    c->total = total;
    c->state = c + 1;
    return c;
}
static void egi_cursor_drop_below(egi_cursor *c, int i) {
    egi_cursor_close(c->from[i]);
    c->from[i] = NULL;
}
static void egi_cursor_close(egi_cursor *c) {
    if (!c) return;
    if (c->d->stage->close) c->d->stage->close(c);            // first: a thread may still read what is upstream
    for (int i = 0; i < c->d->n_from; i++) egi_cursor_drop_below(c, i);
    egi_free(c);
}
// Writes into the pending error where in the pipeline it happened, once.
static EGI_COLD void egi_place(egi_cursor *c) {
    char text[sizeof egi_this.message], own[80];
    if (c->below) return;
    int n = snprintf(own, sizeof own, "eg_%s: ", c->d->stage->name);
    const char *rest = strncmp(egi_this.message, own, (size_t)n) ? egi_this.message : egi_this.message + n;
    snprintf(text, sizeof text, "eg_%s (stage %d of %d, element %lld): %.900s", c->d->stage->name, c->number, c->total, (long long)c->element, rest);
    memcpy(egi_this.message, text, sizeof text);
}
static eg_status egi_next(egi_cursor *c, eg_tensor **out) {
    if (c->ended) return EG_END_OF_SEQUENCE;
    memset((void *)out, 0, EG_MAX_COMPONENTS * sizeof *out);
    eg_status status = c->d->stage->next(c, out);
    if (status == EG_NEXT) { c->element++; return status; }
    egi_element_drop(out);
    if (status == EG_END_OF_SEQUENCE) c->ended = true;
    else egi_place(c);
    return status;
}
static int64_t egi_skip_by_next(egi_cursor *c, int64_t n) {
    egi_element e;
    for (int64_t i = 0; i < n; i++) {
        eg_status status = egi_next(c, e.x);
        if (status != EG_NEXT) return status == EG_FAILED ? -1 : i;
        egi_element_drop(e.x);
    }
    return n;
}
static int64_t egi_skip(egi_cursor *c, int64_t n) {
    if (n <= 0 || c->ended) return 0;
    if (!c->d->stage->skip) return egi_skip_by_next(c, n);
    int64_t done = c->d->stage->skip(c, n);
    if (done < 0) egi_place(c);
    else c->element += done, c->ended = c->ended || done < n;
    return done;
}
// For a stage's own skip where it cannot do better.
static int64_t egi_skip_reading(egi_cursor *c, int64_t n) {
    int64_t before = c->element, done = egi_skip_by_next(c, n);
    c->element = before;
    return done;
}
static egi_cursor *egi_below(egi_cursor *c, int i) {
    if (!c->from[i]) {
        int number = c->number - 1;                           // the last of the stages below is the one before this
        for (int j = i + 1; j < c->d->n_from; j++) number -= c->d->from[j]->stages;
        c->from[i] = egi_cursor_open(c->d->from[i], c->epoch_below, number, c->total);
    }
    return c->from[i];
}
// The next element of what is upstream.
static eg_status egi_pull(egi_cursor *c, int i, eg_tensor **out) {
    egi_cursor *from = egi_below(c, i);
    eg_status status = from ? egi_next(from, out) : EG_FAILED;
    if (from && status == EG_FAILED) c->below = true;
    return status;
}
static int64_t egi_pass(egi_cursor *c, int i, int64_t n) {    // steps over n of them
    egi_cursor *from = egi_below(c, i);
    int64_t done = from ? egi_skip(from, n) : -1;
    if (from && done < 0) c->below = true;
    return done;
}
static int64_t egi_skip_below(egi_cursor *c, int64_t n) { return egi_pass(c, 0, n); }        // of stages that give as many as they get

// A tensor on the CPU, to be filled; its reference is the caller's.
static eg_tensor *egi_host_new(const char *op, eg_dtype dtype, const eg_shape *shape) { return egi_new(op, egi_backend_cpu(), dtype, shape); }
static eg_tensor *egi_host_int64(const char *op, int64_t value) {
    eg_shape scalar = { 0, { 0 } };
    eg_tensor *x = egi_host_new(op, EG_INT64, &scalar);
    if (x) memcpy(x->data, &value, sizeof value);
    return x;
}

// ---- callbacks

// Errors wait while a pipeline runs: they get their place before the handler hears of them, and one that was pending before
// comes back. What is computed is computed on the CPU and not recorded.
typedef struct egi_hush { eg_error_code code; int64_t errors; bool telling; eg_backend *backend; const char *as; eg_random_state random; char message[sizeof egi_this.message]; } egi_hush;
static void egi_hush_begin(egi_hush *h) {
    h->code = egi_this.error;
    h->errors = egi_this.errors;
    h->telling = egi_this.telling;
    h->backend = egi_this.backend;
    h->as = egi_this.as;
    h->random = egi_this.random;
    if (h->code != EG_OK) memcpy(h->message, egi_this.message, sizeof h->message);
    eg_error_clear();
    egi_this.telling = true;
    egi_this.backend = egi_backend_cpu();
    egi_this.as = NULL;
    egi_this.paused++;
}
// failed: the error that waits is raised.
static void egi_hush_end(egi_hush *h, bool failed) {
    char message[sizeof egi_this.message];
    eg_error_code code = egi_this.error;
    if (failed) memcpy(message, egi_this.message, sizeof message);
    egi_this.paused--;
    egi_this.telling = h->telling;
    egi_this.backend = h->backend;
    egi_this.as = h->as;
    egi_this.random = h->random;
    egi_this.errors = h->errors;
    egi_this.error = h->code;
    if (h->code != EG_OK) memcpy(egi_this.message, h->message, sizeof h->message);
    else egi_this.message[0] = 0;
    if (!failed) return;
    egi_this.at_function = NULL;                              // the message names its place
    egi_raise_text(code == EG_OK ? EG_ERROR_STATE : code, message);
}

// What a callback returned, as an element keeps it: on the CPU, no number, no variable. The reference is the caller's.
static eg_tensor *egi_settle(const char *op, eg_tensor *x) {
    if (x->flags & EGI_NUMBER) x = egi_number_tensor(op, x, EG_FLOAT32, egi_backend_cpu());
    else if (x->flags & EGI_VARIABLE) x = eg_read(x);
    if (x && egi_backend_of(x) != egi_backend_cpu()) x = egi_to(x, egi_backend_of(x), egi_backend_cpu());
    return eg_retain(x);
}
static bool egi_results(const char *name, const eg_dataset *d, eg_tensor **x, eg_tensor **out) {
    for (int i = 0; i < d->n; i++) {
        if (!x[i]) return egi_this.error != EG_OK ? false : egi_fail(EG_ERROR_NULL, "eg_%s: the function left component %d of %d NULL", name, i, d->n);
        if (!egi_alive(name, i, x[i])) return false;
        out[i] = egi_settle(name, x[i]);
        if (!out[i]) return false;
        if (!egi_spec_fits(egi_spec_of(out[i]), d->spec[i]))
            return egi_fail(out[i]->dtype != (int8_t)d->spec[i].dtype && d->spec[i].dtype != EG_NO_DTYPE ? EG_ERROR_DTYPE : EG_ERROR_SHAPE,
                            "eg_%s: the function gave %s as component %d, which was declared %s", name, egi_describe(out[i]), i, egi_spec_show(d->spec[i]));
    }
    return true;
}
static void egi_key_random(const egi_cursor *c, int64_t element) {      // 2^32 blocks for each element
    egi_this.random.seed = egi_mix(__atomic_load_n(&c->d->seed, __ATOMIC_RELAXED), c->epoch);
    egi_this.random.counter = (uint64_t)element << 32;
}
// One call of a map's function, on any thread.
static eg_status egi_map_call(const egi_cursor *c, int64_t element, eg_tensor *const *in, eg_tensor **out) {
    eg_dataset *d = c->d;
    eg_tensor *x[EG_MAX_COMPONENTS] = { 0 };
    eg_scope scope = eg_scope_begin();
    bool ok = scope.position >= 0;
    egi_key_random(c, element);
    if (ok && d->flag) x[0] = d->f.one(in, d->user);
    else if (ok) ok = d->f.map(in, x, d->user);
    if (ok) ok = egi_results(d->stage->name, d, x, out);
    else if (egi_this.error == EG_OK) egi_fail(EG_ERROR_STATE, "eg_%s: the function failed without an error", d->stage->name);
    eg_scope_end(scope);
    if (!ok) egi_element_drop(out);
    return ok ? EG_NEXT : EG_FAILED;
}

// ---- sources in memory

static bool egi_sources(eg_dataset *d, eg_tensor *const *tensors, int n) {
    if (n < 1 || n > EG_MAX_COMPONENTS)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: %d components; an element has 1 to %d", d->stage->name, n, EG_MAX_COMPONENTS);
    d->n = n;
    eg_scope scope = eg_scope_begin();
    bool ok = scope.position >= 0;
    eg_recording_pause();
    for (int i = 0; i < n && ok; i++) {
        ok = egi_alive(d->stage->name, i, tensors[i]);
        eg_tensor *x = ok ? egi_settle(d->stage->name, tensors[i]) : NULL;
        if (x) d->tensors.x[i] = egi_contiguous(x);
        eg_release(x);
        ok = d->tensors.x[i] != NULL;
        if (ok) d->spec[i] = egi_spec_of(d->tensors.x[i]);
    }
    eg_recording_unpause();
    eg_scope_end(scope);
    return ok;
}
static bool egi_from_tensors_rule(eg_dataset *d) {
    d->cardinality = 1;
    return true;
}
static eg_status egi_from_tensors_next(egi_cursor *c, eg_tensor **out) {
    if (c->element > 0) return EG_END_OF_SEQUENCE;
    for (int i = 0; i < c->d->n; i++) out[i] = eg_retain(c->d->tensors.x[i]);
    return EG_NEXT;
}
static const egi_stage egi_stage_from_tensors = { "dataset_from_tensors", 0, egi_from_tensors_rule, egi_from_tensors_next, NULL, NULL, false };
EAGER_API eg_dataset *eg_dataset_from_tensors_of(eg_tensor *const *tensors, int n) {
    eg_dataset *d = egi_dataset_begin(&egi_stage_from_tensors, NULL, 0);
    return d ? egi_dataset_done(d, egi_sources(d, tensors, n)) : NULL;
}

// Row `first` of x, or with rows >= 0 the rows from there on, as another handle on the same elements: nothing is copied.
static eg_tensor *egi_rows(const char *op, const eg_tensor *x, int64_t first, int64_t rows) {
    eg_tensor *y = egi_alias(op, x);
    if (!y) return NULL;
    int drop = rows < 0;
    int64_t row = x->dims[0] ? x->size / x->dims[0] : 0;
    y->rank = (int8_t)(x->rank - drop);
    for (int i = 0; i < y->rank; i++) {
        y->dims[i] = x->dims[i + drop];
        y->strides[i] = x->strides[i + drop];
    }
    if (!drop) y->dims[0] = rows;
    y->size = drop ? row : rows * row;
    if (y->size) y->data += first * row * egi_dtypes[x->dtype].size;
    return y;
}
static bool egi_from_slices_rule(eg_dataset *d) {
    for (int i = 0; i < d->n; i++) {
        eg_tensor *x = d->tensors.x[i];
        if (x->rank == 0) return egi_fail(EG_ERROR_SHAPE, "eg_dataset_from_slices: component %d is a scalar, which has no rows", i);
        if (x->dims[0] != d->tensors.x[0]->dims[0])
            return egi_fail(EG_ERROR_SHAPE, "eg_dataset_from_slices: lengths differ: component 0 is %s and component %d is %s (%lld against %lld rows)",
                            egi_describe(d->tensors.x[0]), i, egi_describe(x), (long long)d->tensors.x[0]->dims[0], (long long)x->dims[0]);
        d->spec[i].shape.rank--;
        memmove(d->spec[i].shape.dims, d->spec[i].shape.dims + 1, (EG_MAX_RANK - 1) * sizeof(int64_t));
    }
    d->number[0] = d->cardinality = d->tensors.x[0]->dims[0];
    return true;
}
static eg_status egi_from_slices_next(egi_cursor *c, eg_tensor **out) {
    if (c->element >= c->d->cardinality) return EG_END_OF_SEQUENCE;
    for (int i = 0; i < c->d->n; i++) if (!(out[i] = egi_rows("dataset_from_slices", c->d->tensors.x[i], c->element, -1))) return EG_FAILED;
    return EG_NEXT;
}
// Of sources that can begin anywhere, as the element's number is all they know.
static int64_t egi_jump(egi_cursor *c, int64_t n) {
    int64_t left = c->d->cardinality - c->element;
    return n < left ? n : left;
}
static const egi_stage egi_stage_from_slices = { "dataset_from_slices", 0, egi_from_slices_rule, egi_from_slices_next, egi_jump, NULL, false };
EAGER_API eg_dataset *eg_dataset_from_slices_of(eg_tensor *const *tensors, int n) {
    eg_dataset *d = egi_dataset_begin(&egi_stage_from_slices, NULL, 0);
    return d ? egi_dataset_done(d, egi_sources(d, tensors, n)) : NULL;
}

static bool egi_from_windows_rule(eg_dataset *d) {
    const eg_tensor *x = d->tensors.x[0];
    int64_t size = d->number[0], shift = d->number[1];
    if (x->rank == 0) return egi_fail(EG_ERROR_SHAPE, "eg_dataset_from_windows: a scalar has no rows");
    if (size < 1 || shift < 1)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_from_windows: size %lld and shift %lld must be at least 1", (long long)size, (long long)shift);
    d->cardinality = x->dims[0] < size ? 0 : (x->dims[0] - size) / shift + 1;
    d->spec[0].shape.dims[0] = size;
    return true;
}
static eg_status egi_from_windows_next(egi_cursor *c, eg_tensor **out) {
    if (c->element >= c->d->cardinality) return EG_END_OF_SEQUENCE;
    out[0] = egi_rows("dataset_from_windows", c->d->tensors.x[0], c->element * c->d->number[1], c->d->number[0]);
    return out[0] ? EG_NEXT : EG_FAILED;
}
static const egi_stage egi_stage_from_windows = { "dataset_from_windows", 0, egi_from_windows_rule, egi_from_windows_next, egi_jump, NULL, false };
EAGER_API eg_dataset *eg_dataset_from_windows(eg_tensor *x, int64_t size, int64_t shift) {
    eg_dataset *d = egi_dataset_begin(&egi_stage_from_windows, NULL, 0);
    if (!d) return NULL;
    d->number[0] = size;
    d->number[1] = shift;
    return egi_dataset_done(d, egi_sources(d, &x, 1));
}

static bool egi_range_rule_of_dataset(eg_dataset *d) {
    int64_t start = d->number[0], stop = d->number[1], step = d->number[2];
    if (step == 0) return egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_range: the step must not be 0");
    // The distance as an unsigned number: it fits where the difference of two int64 does not.
    uint64_t distance = step > 0 ? (stop > start ? (uint64_t)stop - (uint64_t)start : 0) : (start > stop ? (uint64_t)start - (uint64_t)stop : 0);
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step, count = distance / stride + (distance % stride != 0);
    if (count > INT64_MAX) return egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_range: more elements than 63 bits count");
    d->n = 1;
    d->spec[0].dtype = EG_INT64;
    d->cardinality = (int64_t)count;
    return true;
}
static eg_status egi_dataset_range_next(egi_cursor *c, eg_tensor **out) {
    if (c->element >= c->d->cardinality) return EG_END_OF_SEQUENCE;
    out[0] = egi_host_int64("dataset_range", (int64_t)((uint64_t)c->d->number[0] + (uint64_t)c->element * (uint64_t)c->d->number[2]));
    return out[0] ? EG_NEXT : EG_FAILED;
}
static const egi_stage egi_stage_range = { "dataset_range", 0, egi_range_rule_of_dataset, egi_dataset_range_next, egi_jump, NULL, false };
EAGER_API eg_dataset *eg_dataset_range(int64_t start, int64_t stop, int64_t step) {
    eg_dataset *d = egi_dataset_begin(&egi_stage_range, NULL, 0);
    if (!d) return NULL;
    d->number[0] = start;
    d->number[1] = stop;
    d->number[2] = step;
    return egi_dataset_done(d, true);
}

static eg_status egi_generator_next(egi_cursor *c, eg_tensor **out) {
    eg_dataset *d = c->d;
    eg_tensor *x[EG_MAX_COMPONENTS] = { 0 };
    eg_scope scope = eg_scope_begin();
    egi_key_random(c, c->element);
    eg_status status = scope.position < 0 ? EG_FAILED : d->f.generator(c->element, x, d->user);
    if (status == EG_NEXT && !egi_results("dataset_from_generator", d, x, out)) status = EG_FAILED;
    if (status != EG_NEXT && status != EG_END_OF_SEQUENCE) {
        if (egi_this.error == EG_OK) egi_fail(EG_ERROR_STATE, "eg_dataset_from_generator: the function failed without an error");
        status = EG_FAILED;
    }
    eg_scope_end(scope);
    return status;
}
static bool egi_unknown_rule(eg_dataset *d) {
    d->cardinality = EG_UNKNOWN;
    return true;
}
static const egi_stage egi_stage_from_generator = { "dataset_from_generator", 0, egi_unknown_rule, egi_generator_next, NULL, NULL, true };
EAGER_API eg_dataset *eg_dataset_from_generator(eg_generator *f, void *user, int n, const eg_spec *specs) {
    if (!f) return (eg_dataset *)eg_raise(EG_ERROR_ARGUMENT, "eg_dataset_from_generator: the function is NULL");
    eg_dataset *d = egi_dataset_begin(&egi_stage_from_generator, NULL, 0);
    if (!d) return NULL;
    d->f.generator = f;
    d->user = user;
    d->seed = egi_dataset_seed(0);
    return egi_dataset_done(d, egi_specs_given(d, specs, n));
}

// ---- map and filter

#ifndef EAGER_NO_THREADS
// Several threads call a map's function. Whoever asks for an element reads upstream and hands out jobs in order; results
// wait in a ring until it is their turn. Where no thread could be started, the asking one does the jobs.
typedef struct egi_job { egi_element in, out; int64_t element; eg_status status; bool done, below; eg_error_code code; char message[sizeof egi_this.message]; } egi_job;
typedef struct egi_crew {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    int threads, made, capacity;
    bool stop;
    int64_t oldest, next, filled;                             // jobs: to be delivered, to be begun, to be handed out
    const egi_cursor *c;
    pthread_t *thread;
    egi_job *job;                                             // number i at i % capacity
} egi_crew;

static void egi_job_do(const egi_cursor *c, egi_job *job) {
    job->status = egi_map_call(c, job->element, job->in.x, job->out.x);
    if (job->status == EG_FAILED) {
        job->code = egi_this.error;
        memcpy(job->message, egi_this.message, sizeof job->message);
        eg_error_clear();
    }
    egi_element_drop(job->in.x);
}
static void *egi_crew_work(void *p) {
    egi_crew *crew = (egi_crew *)p;
    egi_this.telling = true;                                  // errors travel to whoever asks
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->stop && crew->next == crew->filled) pthread_cond_wait(&crew->work, &crew->lock);
        if (crew->stop) break;
        egi_job *job = &crew->job[crew->next++ % crew->capacity];
        if (job->done) continue;                              // the last one
        pthread_mutex_unlock(&crew->lock);
        egi_job_do(crew->c, job);
        pthread_mutex_lock(&crew->lock);
        job->done = true;
        pthread_cond_signal(&crew->done);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}
static void egi_crew_end(egi_crew *crew) {
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->made; i++) pthread_join(crew->thread[i], NULL);
    for (int i = 0; crew->job && i < crew->capacity; i++) {
        egi_element_drop(crew->job[i].in.x);
        egi_element_drop(crew->job[i].out.x);
    }
    pthread_cond_destroy(&crew->work);
    pthread_cond_destroy(&crew->done);
    pthread_mutex_destroy(&crew->lock);
    egi_free(crew->thread);
    egi_free(crew->job);
    egi_free(crew);
}
static egi_crew *egi_crew_new(const egi_cursor *c, int threads) {
    egi_crew *crew = (egi_crew *)egi_alloc(sizeof *crew);
    if (!crew) { egi_no_memory("dataset_map", (int64_t)sizeof *crew); return NULL; }
    memset(crew, 0, sizeof *crew);
    crew->c = c;
    crew->capacity = 2 * threads;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    pthread_cond_init(&crew->done, NULL);
    size_t bytes = (size_t)crew->capacity * sizeof *crew->job;
    crew->thread = (pthread_t *)egi_alloc((size_t)threads * sizeof *crew->thread);
    crew->job = crew->thread ? (egi_job *)egi_alloc(bytes) : NULL;
    if (!crew->job) {
        egi_crew_end(crew);
        egi_no_memory("dataset_map", (int64_t)bytes);
        return NULL;
    }
    memset((void *)crew->job, 0, bytes);
    while (crew->made < threads && pthread_create(&crew->thread[crew->made], NULL, egi_crew_work, crew) == 0) crew->made++;
    return crew;
}
// Hands out jobs as long as there is room. What ended upstream, or failed there, is the last job, done at once.
static void egi_crew_fill(egi_crew *crew, egi_cursor *c, bool *drained) {
    while (!*drained && crew->filled - crew->oldest < crew->capacity) {
        egi_job *job = &crew->job[crew->filled % crew->capacity];
        job->element = crew->filled;
        job->status = egi_pull(c, 0, job->in.x);
        job->done = *drained = job->status != EG_NEXT;
        if (job->status == EG_FAILED) {
            job->code = egi_this.error;
            memcpy(job->message, egi_this.message, sizeof job->message);
            eg_error_clear();
        }
        job->below = c->below;
        c->below = false;
        pthread_mutex_lock(&crew->lock);
        crew->filled++;
        pthread_cond_signal(&crew->work);
        pthread_mutex_unlock(&crew->lock);
    }
}
static eg_status egi_crew_take(egi_crew *crew, egi_cursor *c, eg_tensor **out) {
    egi_job *job = &crew->job[crew->oldest % crew->capacity];
    pthread_mutex_lock(&crew->lock);
    bool mine = crew->next == crew->oldest && !job->done;
    if (mine) crew->next++;
    else while (!job->done) pthread_cond_wait(&crew->done, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    if (mine) egi_job_do(c, job);
    job->done = false;
    crew->oldest++;
    memcpy((void *)out, (void *)job->out.x, sizeof job->out.x);
    memset((void *)job->out.x, 0, sizeof job->out.x);
    if (job->status == EG_FAILED) {
        egi_this.error = job->code;
        memcpy(egi_this.message, job->message, sizeof job->message);
        c->below = job->below;
    }
    return job->status;
}
#endif

typedef struct egi_map_state { struct egi_crew *crew; bool drained; } egi_map_state;
static eg_status egi_map_next(egi_cursor *c, eg_tensor **out) {
#ifndef EAGER_NO_THREADS
    egi_map_state *s = (egi_map_state *)c->state;
    if (c->d->width > 1) {
        if (!s->crew && !(s->crew = egi_crew_new(c, (int)c->d->width))) return EG_FAILED;
        if (s->crew->filled == 0) s->crew->oldest = s->crew->next = s->crew->filled = c->element;
        egi_crew_fill(s->crew, c, &s->drained);
        return egi_crew_take(s->crew, c, out);
    }
#endif
    egi_element in;
    eg_status status = egi_pull(c, 0, in.x);
    if (status != EG_NEXT) return status;
    status = egi_map_call(c, c->element, in.x, out);
    egi_element_drop(in.x);
    return status;
}
static int64_t egi_map_skip(egi_cursor *c, int64_t n) {
    return ((egi_map_state *)c->state)->crew == NULL ? egi_skip_below(c, n) : egi_skip_reading(c, n);      // jobs are under way
}
static void egi_map_close(egi_cursor *c) {
#ifndef EAGER_NO_THREADS
    egi_map_state *s = (egi_map_state *)c->state;
    if (s->crew) egi_crew_end(s->crew);
#else
    (void)c;
#endif
}
static const egi_stage egi_stage_map = { "dataset_map", sizeof(egi_map_state), NULL, egi_map_next, egi_map_skip, egi_map_close, true };
static eg_dataset *egi_map_new(eg_dataset *from, void *user, eg_map_options o, int components, bool given) {
    eg_dataset *d = egi_dataset_on(&egi_stage_map, from);
    if (!d) return NULL;
    d->user = user;
    d->seed = egi_dataset_seed(o.seed);
    d->width = o.threads;
    if (o.canary) egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_map: name the options, as in .threads = 4");
    else if (!given) egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_map: the function is NULL");
    else if (o.threads < 0 || o.threads > 1024) egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_map: %d threads are not between 0 and 1024", o.threads);
    else return egi_dataset_done(d, egi_specs_given(d, o.specs, o.components ? o.components : components));
    return egi_dataset_done(d, false);
}
EAGER_API eg_dataset *(eg_dataset_map)(eg_dataset *from, eg_map_function *f, void *user, eg_map_options o) {
    eg_dataset *d = egi_map_new(from, user, o, from ? from->n : 1, f != NULL);
    if (d) d->f.map = f;
    return d;
}
EAGER_API eg_dataset *(eg_dataset_map_one)(eg_dataset *from, eg_function1 *f, void *user, eg_map_options o) {
    eg_dataset *d = egi_map_new(from, user, o, 1, f != NULL);
    if (!d) return NULL;
    d->f.one = f;
    d->flag = true;
    if (d->n == 1) return d;
    egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_map: a function that returns one tensor gives 1 component, not %d", d->n);
    return egi_dataset_done(d, false);
}

static eg_status egi_filter_next(egi_cursor *c, eg_tensor **out) {
    for (;;) {
        eg_status status = egi_pull(c, 0, out);
        if (status != EG_NEXT) return status;
        eg_scope scope = eg_scope_begin();
        egi_key_random(c, *(int64_t *)c->state);
        ++*(int64_t *)c->state;
        eg_tensor *keep = scope.position < 0 ? NULL : c->d->f.one(out, c->d->user);
        double value = keep ? eg_item(keep) : 0;
        eg_scope_end(scope);
        if (!keep && egi_this.error == EG_OK) egi_fail(EG_ERROR_NULL, "eg_dataset_filter: the function returned NULL");
        if (egi_this.error != EG_OK) return EG_FAILED;
        if (value != 0) return EG_NEXT;
        egi_element_drop(out);
    }
}
static bool egi_filter_rule(eg_dataset *d) {
    d->cardinality = d->cardinality == 0 ? 0 : EG_UNKNOWN;
    return true;
}
static const egi_stage egi_stage_filter = { "dataset_filter", sizeof(int64_t), egi_filter_rule, egi_filter_next, NULL, NULL, true };
EAGER_API eg_dataset *eg_dataset_filter(eg_dataset *from, eg_function1 *keep, void *user) {
    eg_dataset *d = egi_dataset_on(&egi_stage_filter, from);
    if (!d) return NULL;
    d->f.one = keep;
    d->user = user;
    d->seed = egi_dataset_seed(0);
    return egi_dataset_done(d, keep || egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_filter: the function is NULL"));
}

// ---- batches

typedef struct egi_batch_state { egi_element *list; int64_t capacity; } egi_batch_state;
static bool egi_element_room(egi_cursor *c, egi_element **list, int64_t *capacity, int64_t count) {
    void *grown = *list;
    if (!egi_grow(&grown, capacity, count, sizeof **list)) return egi_no_memory(c->d->stage->name, count * (int64_t)sizeof **list);
    *list = (egi_element *)grown;
    return true;
}
// The extents of component k stacked: padded, the longest of each axis; else all must be those of the first.
static bool egi_stacked_shape(egi_cursor *c, const egi_element *list, int64_t n, int k, bool padded, eg_shape *shape) {
    const eg_tensor *first = list[0].x[k];
    *shape = egi_shape(first);
    for (int64_t i = 1; i < n; i++) {
        const eg_tensor *x = list[i].x[k];
        if (x->dtype != first->dtype)
            return egi_fail(EG_ERROR_DTYPE, "eg_%s: component %d is %s in one element of the batch and %s in another", c->d->stage->name, k,
                            egi_describe(first), egi_describe(x));
        if (padded ? x->rank != first->rank : !egi_same_shape(x, first))
            return egi_fail(EG_ERROR_SHAPE, "eg_%s: elements of a batch differ in shape: component %d is %s in its first and %s in its element %lld%s",
                            c->d->stage->name, k, egi_show(egi_shape(first)), egi_show(egi_shape(x)), (long long)i,
                            padded || x->rank != first->rank ? "" : "; eg_dataset_padded_batch fills them up");
        for (int a = 0; padded && a < x->rank; a++) if (x->dims[a] > shape->dims[a]) shape->dims[a] = x->dims[a];
    }
    if (shape->rank == EG_MAX_RANK)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: component %d has rank %d already, a batch of it would have more", c->d->stage->name, k, shape->rank);
    memmove(shape->dims + 1, shape->dims, (size_t)shape->rank * sizeof(int64_t));
    shape->dims[0] = n;
    shape->rank++;
    return egi_shape_valid(c->d->stage->name, *shape, (eg_dtype)first->dtype);
}
// The block x into the corner of a larger one: runs of the last axis.
static void egi_copy_corner(const char *from, const eg_tensor *x, char *to, const int64_t *dims, size_t element) {
    int last = x->rank - 1;
    if (x->size == 0) return;
    if (x->rank == 0) { memcpy(to, from, element); return; }
    size_t run = (size_t)x->dims[last] * element;
    int64_t at[EG_MAX_RANK] = { 0 };
    for (int64_t r = x->size / x->dims[last]; r > 0; r--, from += run) {
        int64_t place = 0;
        for (int a = 0; a <= last; a++) place = place * dims[a] + at[a];
        memcpy(to + place * (int64_t)element, from, run);
        for (int a = last - 1; a >= 0 && ++at[a] == x->dims[a]; a--) at[a] = 0;
    }
}
static eg_tensor *egi_stack_elements(egi_cursor *c, const egi_element *list, int64_t n, int k) {
    bool padded = c->d->flag;
    eg_shape shape;
    if (!egi_stacked_shape(c, list, n, k, padded, &shape)) return NULL;
    eg_dtype dtype = (eg_dtype)list[0].x[k]->dtype;
    eg_tensor *y = egi_host_new(c->d->stage->name, dtype, &shape);
    if (!y || !y->size) return y;
    size_t element = (size_t)egi_dtypes[dtype].size, row = (size_t)(y->size / n) * element;
    bool ok = !padded || (egi_value_fits(c->d->stage->name, c->d->value, dtype) && egi_fill(y, c->d->value));
    for (int64_t i = 0; i < n && ok; i++) {
        const char *from = (const char *)eg_data(list[i].x[k]);
        ok = from != NULL;
        if (ok && padded) egi_copy_corner(from, list[i].x[k], y->data + (size_t)i * row, shape.dims + 1, element);
        else if (ok) memcpy(y->data + (size_t)i * row, from, row);
    }
    if (ok) return y;
    egi_object_release(&y->object);
    return NULL;
}
static eg_status egi_batch_next(egi_cursor *c, eg_tensor **out) {
    egi_batch_state *s = (egi_batch_state *)c->state;
    int64_t want = c->d->number[0], n = 0;
    eg_status status = EG_NEXT;
    while (n < want && status == EG_NEXT) {
        if (!egi_element_room(c, &s->list, &s->capacity, n + 1)) status = EG_FAILED;
        else status = egi_pull(c, 0, s->list[n].x);
        n += status == EG_NEXT;
    }
    bool ok = status != EG_FAILED, some = n == want || (n > 0 && !c->d->number[1]);
    for (int k = 0; k < c->d->n && ok && some; k++) ok = (out[k] = egi_stack_elements(c, s->list, n, k)) != NULL;
    while (n > 0) egi_element_drop(s->list[--n].x);
    return !ok ? EG_FAILED : some ? EG_NEXT : EG_END_OF_SEQUENCE;
}
static int64_t egi_batch_skip(egi_cursor *c, int64_t n) {
    int64_t size = c->d->number[0], elements;
    if (!egi_checked_product(n, size, &elements)) elements = INT64_MAX;
    int64_t done = egi_skip_below(c, elements);
    return done < 0 ? -1 : done / size + (done % size != 0 && !c->d->number[1]);
}
static void egi_batch_close(egi_cursor *c) { egi_free(((egi_batch_state *)c->state)->list); }
static bool egi_batch_rule(eg_dataset *d) {
    int64_t n = d->number[0], have = d->cardinality;
    bool drop = d->number[1] != 0;
    if (n < 1) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: a batch of %lld elements; it needs at least 1", d->stage->name, (long long)n);
    if (have >= 0) d->cardinality = have / n + (have % n != 0 && !drop);
    for (int i = 0; i < d->n; i++) {
        eg_shape *s = &d->spec[i].shape;
        if (s->rank < 0) continue;
        if (s->rank == EG_MAX_RANK) return egi_fail(EG_ERROR_SHAPE, "eg_%s: component %d has rank %d already", d->stage->name, i, EG_MAX_RANK);
        for (int a = 0; a < s->rank && d->flag; a++) s->dims[a] = -1;      // as long as the longest
        memmove(s->dims + 1, s->dims, (size_t)s->rank * sizeof(int64_t));
        s->dims[0] = drop || have == EG_INFINITE || (have >= 0 && have % n == 0) ? n : -1;
        s->rank++;
    }
    return true;
}
static const egi_stage egi_stage_batch = { "dataset_batch", sizeof(egi_batch_state), egi_batch_rule, egi_batch_next, egi_batch_skip, egi_batch_close, false };
static const egi_stage egi_stage_padded = { "dataset_padded_batch", sizeof(egi_batch_state), egi_batch_rule, egi_batch_next, egi_batch_skip, egi_batch_close, false };
static eg_dataset *egi_batch_new(const egi_stage *stage, eg_dataset *from, int64_t n, eg_batch_options o, bool padded) {
    eg_dataset *d = egi_dataset_on(stage, from);
    if (!d) return NULL;
    d->number[0] = n;
    d->number[1] = o.drop_remainder;
    d->flag = padded;
    d->value = egi_or(o.padding_value, 0);
    bool ok = !o.canary || egi_fail(EG_ERROR_ARGUMENT, "eg_%s: name the options, as in .drop_remainder = true", stage->name);
    if (ok && !padded && o.padding_value != 0) ok = egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_batch: padding_value is an option of eg_dataset_padded_batch");
    return egi_dataset_done(d, ok);
}
EAGER_API eg_dataset *(eg_dataset_batch)(eg_dataset *d, int64_t n, eg_batch_options o) { return egi_batch_new(&egi_stage_batch, d, n, o, false); }
EAGER_API eg_dataset *(eg_dataset_padded_batch)(eg_dataset *d, int64_t n, eg_batch_options o) { return egi_batch_new(&egi_stage_padded, d, n, o, true); }

typedef struct egi_unbatch_state { egi_element now; int64_t row; } egi_unbatch_state;
static eg_status egi_unbatch_next(egi_cursor *c, eg_tensor **out) {
    egi_unbatch_state *s = (egi_unbatch_state *)c->state;
    while (!s->now.x[0] || s->row == s->now.x[0]->dims[0]) {
        egi_element_drop(s->now.x);
        eg_status status = egi_pull(c, 0, s->now.x);
        if (status != EG_NEXT) return status;
        s->row = 0;
        for (int i = 0; i < c->d->n; i++) {
            eg_tensor *x = s->now.x[i];
            if (x->rank == 0 || x->dims[0] != s->now.x[0]->dims[0]) {
                egi_fail(EG_ERROR_SHAPE, "eg_dataset_unbatch: components have not as many rows: 0 is %s and %d is %s", egi_show(egi_shape(s->now.x[0])), i,
                         egi_show(egi_shape(x)));
                return EG_FAILED;
            }
            s->now.x[i] = egi_contiguous(x);
            egi_object_release(&x->object);
            if (!s->now.x[i]) return EG_FAILED;
        }
    }
    for (int i = 0; i < c->d->n; i++) if (!(out[i] = egi_rows("dataset_unbatch", s->now.x[i], s->row, -1))) return EG_FAILED;
    s->row++;
    return EG_NEXT;
}
static void egi_unbatch_close(egi_cursor *c) { egi_element_drop(((egi_unbatch_state *)c->state)->now.x); }
static bool egi_unbatch_rule(eg_dataset *d) {
    int64_t rows = -1;
    for (int i = 0; i < d->n; i++) {
        eg_shape *s = &d->spec[i].shape;
        if (s->rank == 0) return egi_fail(EG_ERROR_SHAPE, "eg_dataset_unbatch: component %d is a scalar, which has no rows", i);
        if (s->rank < 0) continue;
        if (s->dims[0] >= 0) rows = s->dims[0];
        s->rank--;
        memmove(s->dims, s->dims + 1, (size_t)s->rank * sizeof(int64_t));
    }
    if (d->cardinality == 0 || rows == 0) d->cardinality = 0;
    else if (d->cardinality > 0 && (rows < 0 || !egi_checked_product(d->cardinality, rows, &d->cardinality))) d->cardinality = EG_UNKNOWN;
    return true;
}
static const egi_stage egi_stage_unbatch = { "dataset_unbatch", sizeof(egi_unbatch_state), egi_unbatch_rule, egi_unbatch_next, NULL, egi_unbatch_close, false };
EAGER_API eg_dataset *eg_dataset_unbatch(eg_dataset *d) { return egi_dataset_done(egi_dataset_on(&egi_stage_unbatch, d), true); }

// ---- shuffle

// A buffer of the next elements; the drawn one's place is taken by the last. Which place is drawn is a function of the seed,
// the epoch and the number of the draw, so that the order can be computed without the elements.
typedef struct egi_shuffle_state { egi_element *buffer; int64_t size, capacity, drawn; bool drained; } egi_shuffle_state;
static int64_t egi_shuffle_draw(uint64_t key, int64_t i, int64_t n) {
    egi_random r = { key, 0 };
    uint32_t word[4];
    egi_random_block(word, r, (uint64_t)i / 2, 0);
    return (int64_t)egi_random_below(r, (uint64_t)i / 2, (int)(i % 2), egi_random_word64(word, (int)(i % 2)), (uint64_t)n);
}
static uint64_t egi_shuffle_key(const egi_cursor *c) {
    return egi_mix(__atomic_load_n(&c->d->seed, __ATOMIC_RELAXED), c->d->flag ? 0 : c->epoch + 1);
}
static eg_status egi_shuffle_next(egi_cursor *c, eg_tensor **out) {
    egi_shuffle_state *s = (egi_shuffle_state *)c->state;
    while (!s->drained && s->size < c->d->number[0]) {
        if (!egi_element_room(c, &s->buffer, &s->capacity, s->size + 1)) return EG_FAILED;
        eg_status status = egi_pull(c, 0, s->buffer[s->size].x);
        if (status == EG_FAILED) return status;
        if (status == EG_NEXT) s->size++;
        else s->drained = true;
    }
    if (s->size == 0) return EG_END_OF_SEQUENCE;
    int64_t at = egi_shuffle_draw(egi_shuffle_key(c), s->drawn++, s->size);
    memcpy((void *)out, (void *)s->buffer[at].x, sizeof s->buffer[at].x);
    s->buffer[at] = s->buffer[--s->size];
    return EG_NEXT;
}
typedef struct egi_place_of { int64_t element, slot; } egi_place_of;
static int egi_by_element(const void *a, const void *b) {
    int64_t x = ((const egi_place_of *)a)->element, y = ((const egi_place_of *)b)->element;
    return (x > y) - (x < y);
}
// Draws n times on the elements' numbers, then reads only those elements that are in the buffer at the end.
static int64_t egi_shuffle_replay(egi_cursor *c, egi_shuffle_state *s, int64_t most, int64_t n) {
    int64_t total = c->d->from[0]->cardinality, size = 0, next = 0, done = 0, at = 0;
    egi_place_of *place = (egi_place_of *)egi_alloc((size_t)most * sizeof *place);
    if (!place) { egi_no_memory("dataset_shuffle", most * (int64_t)sizeof *place); return -1; }
    uint64_t key = egi_shuffle_key(c);
    for (; done < n; done++) {
        while (size < most && (total < 0 || next < total)) place[size++].element = next++;
        if (size == 0) break;
        int64_t drawn = egi_shuffle_draw(key, done, size);
        place[drawn] = place[--size];
    }
    for (int64_t i = 0; i < size; i++) place[i].slot = i;
    qsort(place, (size_t)size, sizeof *place, egi_by_element);
    bool ok = egi_element_room(c, &s->buffer, &s->capacity, size);
    if (ok && size) memset((void *)s->buffer, 0, (size_t)size * sizeof *s->buffer);
    if (ok) s->size = size;
    s->drawn = done;
    for (int64_t i = 0; i <= size && ok; i++) {
        int64_t to = i < size ? place[i].element : next;      // at last to where the next element will be read
        ok = egi_pass(c, 0, to - at) == to - at && (i == size || egi_pull(c, 0, s->buffer[place[i].slot].x) == EG_NEXT);
        at = to + 1;
    }
    egi_free(place);
    return ok ? done : -1;
}
static int64_t egi_shuffle_skip(egi_cursor *c, int64_t n) {
    egi_shuffle_state *s = (egi_shuffle_state *)c->state;
    int64_t total = c->d->from[0]->cardinality, most = c->d->number[0];
    if (total >= 0 && most > total) most = total;
    if (s->drawn == 0 && s->size == 0 && !s->drained && total != EG_UNKNOWN && most < INT64_MAX / 64) return egi_shuffle_replay(c, s, most, n);
    return egi_skip_reading(c, n);
}
static void egi_shuffle_close(egi_cursor *c) {
    egi_shuffle_state *s = (egi_shuffle_state *)c->state;
    while (s->size > 0) egi_element_drop(s->buffer[--s->size].x);
    egi_free(s->buffer);
}
static const egi_stage egi_stage_shuffle = { "dataset_shuffle", sizeof(egi_shuffle_state), NULL, egi_shuffle_next, egi_shuffle_skip, egi_shuffle_close, true };
EAGER_API eg_dataset *(eg_dataset_shuffle)(eg_dataset *from, int64_t buffer, eg_shuffle_options o) {
    eg_dataset *d = egi_dataset_on(&egi_stage_shuffle, from);
    if (!d) return NULL;
    d->number[0] = buffer;
    d->flag = o.no_reshuffle;
    d->seed = egi_dataset_seed(o.seed);
    bool ok = !o.canary || egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_shuffle: name the options, as in .seed = 7");
    if (ok && buffer < 1) ok = egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_shuffle: a buffer of %lld elements; it needs at least 1", (long long)buffer);
    return egi_dataset_done(d, ok);
}

// ---- how many: repeat, take, skip, enumerate

// Each round opens what is upstream anew, with an epoch key of its own.
static void egi_repeat_again(egi_cursor *c) {
    int64_t *round = (int64_t *)c->state;
    ++*round;
    egi_cursor_drop_below(c, 0);
    c->epoch_below = egi_mix(c->epoch, (uint64_t)*round);
}
static eg_status egi_repeat_next(egi_cursor *c, eg_tensor **out) {
    int64_t *round = (int64_t *)c->state, rounds = c->d->number[0];
    while (rounds < 0 || *round < rounds) {
        eg_status status = egi_pull(c, 0, out);
        if (status != EG_END_OF_SEQUENCE) return status;
        if (c->from[0]->element == 0) break;                  // nothing comes of nothing, however often
        egi_repeat_again(c);
    }
    return EG_END_OF_SEQUENCE;
}
static int64_t egi_repeat_skip(egi_cursor *c, int64_t n) {
    int64_t *round = (int64_t *)c->state, rounds = c->d->number[0], each = c->d->from[0]->cardinality, done = 0;
    while (done < n && (rounds < 0 || *round < rounds)) {
        if (!c->from[0] && each > 0 && n - done >= each) {    // whole rounds, by arithmetic
            int64_t whole = (n - done) / each;
            if (rounds >= 0 && whole > rounds - *round) whole = rounds - *round;
            *round += whole - 1;
            egi_repeat_again(c);
            done += whole * each;
            continue;
        }
        int64_t passed = egi_pass(c, 0, n - done);
        if (passed < 0) return -1;
        done += passed;
        if (done == n || c->from[0]->element == 0) break;
        egi_repeat_again(c);
    }
    return done;
}
static bool egi_repeat_rule(eg_dataset *d) {
    int64_t n = d->cardinality, count = d->number[0];
    if (count == 0 || n == 0) d->cardinality = 0;
    else if (count < 0) d->cardinality = EG_INFINITE;
    else if (n > 0 && !egi_checked_product(n, count, &d->cardinality)) d->cardinality = EG_INFINITE;
    return true;
}
static const egi_stage egi_stage_repeat = { "dataset_repeat", sizeof(int64_t), egi_repeat_rule, egi_repeat_next, egi_repeat_skip, NULL, false };
// A stage whose one parameter is a number, with -1 for "without limit".
static eg_dataset *egi_counted_stage(const egi_stage *stage, eg_dataset *from, int64_t n) {
    eg_dataset *d = egi_dataset_on(stage, from);
    if (!d) return NULL;
    d->number[0] = n;
    return egi_dataset_done(d, n >= -1 || egi_fail(EG_ERROR_ARGUMENT, "eg_%s: %lld is no count; -1 stands for all", stage->name, (long long)n));
}
EAGER_API eg_dataset *eg_dataset_repeat(eg_dataset *d, int64_t count) { return egi_counted_stage(&egi_stage_repeat, d, count); }

static eg_status egi_take_next(egi_cursor *c, eg_tensor **out) {
    return c->d->number[0] >= 0 && c->element >= c->d->number[0] ? EG_END_OF_SEQUENCE : egi_pull(c, 0, out);
}
static int64_t egi_take_skip(egi_cursor *c, int64_t n) {
    int64_t left = c->d->number[0] < 0 ? n : c->d->number[0] - c->element;
    return egi_pass(c, 0, n < left ? n : left);
}
static bool egi_take_rule(eg_dataset *d) {
    int64_t n = d->number[0];
    if (n >= 0 && (d->cardinality > n || d->cardinality == EG_INFINITE || n == 0)) d->cardinality = n;
    return true;
}
static const egi_stage egi_stage_take = { "dataset_take", 0, egi_take_rule, egi_take_next, egi_take_skip, NULL, false };
EAGER_API eg_dataset *eg_dataset_take(eg_dataset *d, int64_t n) { return egi_counted_stage(&egi_stage_take, d, n); }

static bool egi_skip_first(egi_cursor *c) {                   // once, before anything else
    bool *done = (bool *)c->state;
    if (*done) return true;
    *done = true;
    return egi_pass(c, 0, c->d->number[0]) >= 0;
}
static eg_status egi_skip_next(egi_cursor *c, eg_tensor **out) {
    if (c->d->number[0] < 0) return EG_END_OF_SEQUENCE;
    return egi_skip_first(c) ? egi_pull(c, 0, out) : EG_FAILED;
}
static int64_t egi_skip_skip(egi_cursor *c, int64_t n) {
    if (c->d->number[0] < 0) return 0;
    return egi_skip_first(c) ? egi_pass(c, 0, n) : -1;
}
static bool egi_skip_rule(eg_dataset *d) {
    int64_t n = d->number[0];
    if (n < 0) d->cardinality = 0;
    else if (d->cardinality >= 0) d->cardinality = d->cardinality > n ? d->cardinality - n : 0;
    return true;
}
static const egi_stage egi_stage_skip = { "dataset_skip", sizeof(bool), egi_skip_rule, egi_skip_next, egi_skip_skip, NULL, false };
EAGER_API eg_dataset *eg_dataset_skip(eg_dataset *d, int64_t n) { return egi_counted_stage(&egi_stage_skip, d, n); }

static eg_status egi_enumerate_next(egi_cursor *c, eg_tensor **out) {
    egi_element e;
    eg_status status = egi_pull(c, 0, e.x);
    if (status != EG_NEXT) return status;
    memcpy((void *)(out + 1), (void *)e.x, (EG_MAX_COMPONENTS - 1) * sizeof *out);
    out[0] = egi_host_int64("dataset_enumerate", c->element);
    return out[0] ? EG_NEXT : EG_FAILED;
}
static bool egi_enumerate_rule(eg_dataset *d) {
    if (d->n == EG_MAX_COMPONENTS)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_enumerate: elements of %d components have no room for one more", d->n);
    memmove(d->spec + 1, d->spec, (size_t)d->n * sizeof *d->spec);
    memset(&d->spec[0], 0, sizeof d->spec[0]);
    d->spec[0].dtype = EG_INT64;
    d->n++;
    return true;
}
static const egi_stage egi_stage_enumerate = { "dataset_enumerate", 0, egi_enumerate_rule, egi_enumerate_next, egi_skip_below, NULL, false };
EAGER_API eg_dataset *eg_dataset_enumerate(eg_dataset *d) { return egi_dataset_done(egi_dataset_on(&egi_stage_enumerate, d), true); }

// ---- several into one: zip, concatenate, interleave

static eg_status egi_zip_next(egi_cursor *c, eg_tensor **out) {
    int n = 0;
    for (int i = 0; i < c->d->n_from; i++) {
        egi_element e;
        eg_status status = egi_pull(c, i, e.x);
        if (status != EG_NEXT) return status;
        for (int k = 0; k < c->d->from[i]->n; k++) out[n++] = e.x[k];
    }
    return EG_NEXT;
}
static int64_t egi_zip_skip(egi_cursor *c, int64_t n) {
    int64_t least = n;
    for (int i = 0; i < c->d->n_from; i++) {
        int64_t done = egi_pass(c, i, n);
        if (done < 0) return -1;
        if (done < least) least = done;
    }
    return least;
}
static bool egi_zip_rule(eg_dataset *d) {
    for (int i = 1; i < d->n_from; i++) {
        eg_dataset *from = d->from[i];
        if (d->n + from->n > EG_MAX_COMPONENTS)
            return egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_zip: more than %d components together", EG_MAX_COMPONENTS);
        memcpy(d->spec + d->n, from->spec, (size_t)from->n * sizeof *d->spec);
        d->n += from->n;
        if (d->cardinality == 0 || from->cardinality == 0) d->cardinality = 0;
        else if (d->cardinality == EG_UNKNOWN || from->cardinality == EG_UNKNOWN) d->cardinality = EG_UNKNOWN;
        else if (d->cardinality < 0 || (from->cardinality >= 0 && from->cardinality < d->cardinality)) d->cardinality = from->cardinality;
    }
    return true;
}
static const egi_stage egi_stage_zip = { "dataset_zip", 0, egi_zip_rule, egi_zip_next, egi_zip_skip, NULL, false };
EAGER_API eg_dataset *eg_dataset_zip_of(eg_dataset *const *list, int n) {
    if (n >= 1 && n <= EG_MAX_COMPONENTS) return egi_dataset_done(egi_dataset_begin(&egi_stage_zip, list, n), true);
    for (int i = 0; i < n; i++) eg_dataset_release(list[i]);
    return (eg_dataset *)eg_raise(EG_ERROR_ARGUMENT, "eg_dataset_zip: %d datasets are not between 1 and %d", n, EG_MAX_COMPONENTS);
}

static eg_status egi_concatenate_next(egi_cursor *c, eg_tensor **out) {
    int *at = (int *)c->state;
    for (; *at < 2; egi_cursor_drop_below(c, (*at)++)) {
        eg_status status = egi_pull(c, *at, out);
        if (status != EG_END_OF_SEQUENCE) return status;
    }
    return EG_END_OF_SEQUENCE;
}
static int64_t egi_concatenate_skip(egi_cursor *c, int64_t n) {
    int *at = (int *)c->state;
    int64_t done = 0;
    for (; *at < 2; egi_cursor_drop_below(c, (*at)++)) {
        int64_t passed = egi_pass(c, *at, n - done);
        if (passed < 0) return -1;
        done += passed;
        if (done == n) break;
    }
    return done;
}
static bool egi_concatenate_rule(eg_dataset *d) {
    eg_dataset *a = d->from[0], *b = d->from[1];
    eg_spec any[EG_MAX_COMPONENTS];                           // shapes may differ, as they may within a dataset
    for (int i = 0; i < b->n; i++) {
        any[i] = b->spec[i];
        any[i].shape.rank = -1;
    }
    if (!egi_specs_agree("dataset_concatenate", a->spec, a->n, any, b->n)) return false;
    for (int i = 0; i < d->n; i++) d->spec[i] = egi_spec_join(a->spec[i], b->spec[i]);
    if (a->cardinality == EG_INFINITE || b->cardinality == EG_INFINITE) d->cardinality = EG_INFINITE;
    else if (a->cardinality < 0 || b->cardinality < 0 || __builtin_add_overflow(a->cardinality, b->cardinality, &d->cardinality)) d->cardinality = EG_UNKNOWN;
    return true;
}
static const egi_stage egi_stage_concatenate = { "dataset_concatenate", sizeof(int), egi_concatenate_rule, egi_concatenate_next, egi_concatenate_skip, NULL, false };
EAGER_API eg_dataset *eg_dataset_concatenate(eg_dataset *first, eg_dataset *second) {
    eg_dataset *list[2] = { first, second };
    return egi_dataset_done(egi_dataset_begin(&egi_stage_concatenate, list, 2), true);
}

typedef struct egi_turn { eg_dataset *d; egi_cursor *c; } egi_turn;
typedef struct egi_interleave_state { egi_turn *turn; int64_t at, taken, asked, open; bool drained; } egi_interleave_state;
static void egi_turn_end(egi_turn *t) {
    egi_cursor_close(t->c);
    eg_dataset_release(t->d);
    t->c = NULL;
    t->d = NULL;
}
static eg_status egi_interleave_open(egi_cursor *c, egi_interleave_state *s) {
    egi_element in;
    egi_turn *t = &s->turn[s->at];
    eg_status status = egi_pull(c, 0, in.x);
    if (status != EG_NEXT) return status;
    eg_scope scope = eg_scope_begin();
    egi_key_random(c, s->asked);
    t->d = scope.position < 0 ? NULL : c->d->f.dataset(in.x, c->d->user);
    eg_scope_end(scope);
    egi_element_drop(in.x);
    uint64_t epoch = egi_mix(c->epoch, (uint64_t)s->asked++);
    if (!t->d && egi_this.error == EG_OK) egi_fail(EG_ERROR_NULL, "eg_dataset_interleave: the function returned NULL");
    if (!t->d || !egi_specs_agree("dataset_interleave", t->d->spec, t->d->n, c->d->spec, c->d->n)) return EG_FAILED;
    t->c = egi_cursor_open(t->d, epoch, t->d->stages, t->d->stages);
    s->open += t->c != NULL;
    return t->c ? EG_NEXT : EG_FAILED;
}
static eg_status egi_interleave_next(egi_cursor *c, eg_tensor **out) {
    egi_interleave_state *s = (egi_interleave_state *)c->state;
    int64_t cycle = c->d->number[0], block = c->d->number[1];
    size_t bytes = (size_t)cycle * sizeof *s->turn;
    if (!s->turn) {
        s->turn = (egi_turn *)egi_alloc(bytes);
        if (!s->turn) { egi_no_memory("dataset_interleave", (int64_t)bytes); return EG_FAILED; }
        memset((void *)s->turn, 0, bytes);
    }
    while (!s->drained || s->open > 0) {
        egi_turn *t = &s->turn[s->at];
        if (!t->c && !s->drained) {
            eg_status opened = egi_interleave_open(c, s);
            if (opened == EG_FAILED) return opened;
            s->drained = opened == EG_END_OF_SEQUENCE;
        }
        eg_status status = t->c ? egi_next(t->c, out) : EG_END_OF_SEQUENCE;
        if (status == EG_FAILED) { c->below = true; return status; }
        if (status == EG_END_OF_SEQUENCE && t->c) { egi_turn_end(t); s->open--; }
        if (status == EG_END_OF_SEQUENCE || ++s->taken == block) { s->at = (s->at + 1) % cycle; s->taken = 0; }
        if (status == EG_NEXT) return status;
    }
    return EG_END_OF_SEQUENCE;
}
static void egi_interleave_close(egi_cursor *c) {
    egi_interleave_state *s = (egi_interleave_state *)c->state;
    for (int64_t i = 0; s->turn && i < c->d->number[0]; i++) egi_turn_end(&s->turn[i]);
    egi_free(s->turn);
}
static const egi_stage egi_stage_interleave = { "dataset_interleave", sizeof(egi_interleave_state), egi_filter_rule, egi_interleave_next, NULL, egi_interleave_close, true };
EAGER_API eg_dataset *(eg_dataset_interleave)(eg_dataset *from, eg_dataset_function *f, void *user, eg_interleave_options o) {
    eg_dataset *d = egi_dataset_on(&egi_stage_interleave, from);
    if (!d) return NULL;
    d->f.dataset = f;
    d->user = user;
    d->seed = egi_dataset_seed(o.seed);
    d->number[0] = o.cycle ? o.cycle : 4;
    d->number[1] = o.block ? o.block : 1;
    bool ok = !o.canary || egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_interleave: name the options, as in .cycle = 4");
    if (ok && !f) ok = egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_interleave: the function is NULL");
    if (ok && (d->number[0] < 1 || d->number[0] > 65536 || d->number[1] < 1))
        ok = egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_interleave: a cycle of %lld (1 to 65536) and a block of %lld (at least 1)", (long long)d->number[0],
                      (long long)d->number[1]);
    return egi_dataset_done(d, ok && egi_specs_given(d, o.specs, o.components ? o.components : 1));
}

// ---- cache and prefetch

// The elements of one whole reading. The first cursor that gets to the end gives its own to the dataset. What is upstream is
// always read under the same key, so that it does not matter which epoch fills it.
typedef struct egi_cache { int64_t n, capacity; egi_element *list; } egi_cache;
static void egi_cache_empty(egi_cache *cache) {
    while (cache->n > 0) egi_element_drop(cache->list[--cache->n].x);
    egi_free(cache->list);
}
static egi_cache *egi_cache_full(const egi_cursor *c) { return (egi_cache *)__atomic_load_n(&c->d->data, __ATOMIC_ACQUIRE); }
static bool egi_cache_publish(egi_cursor *c, egi_cache *own) {
    egi_cache *full = (egi_cache *)egi_alloc(sizeof *full);
    if (!full) return egi_no_memory("dataset_cache", (int64_t)sizeof *full);
    void *none = NULL;
    *full = *own;
    if (__atomic_compare_exchange_n(&c->d->data, &none, (void *)full, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) memset((void *)own, 0, sizeof *own);
    else egi_free(full);                                      // another cursor was first
    return true;
}
static eg_status egi_cache_next(egi_cursor *c, eg_tensor **out) {
    egi_cache *own = (egi_cache *)c->state, *full = egi_cache_full(c);
    if (full) {
        if (c->element >= full->n) return EG_END_OF_SEQUENCE;
        for (int i = 0; i < c->d->n; i++) out[i] = eg_retain(full->list[c->element].x[i]);
        return EG_NEXT;
    }
    c->epoch_below = 0;
    eg_status status = egi_pull(c, 0, out);
    if (status == EG_END_OF_SEQUENCE && !egi_cache_publish(c, own)) return EG_FAILED;
    if (status != EG_NEXT) return status;
    if (!egi_element_room(c, &own->list, &own->capacity, own->n + 1)) return EG_FAILED;
    memcpy((void *)&own->list[own->n], (void *)out, sizeof *own->list);
    for (int i = 0; i < c->d->n; i++) eg_retain(out[i]);
    own->n++;
    return EG_NEXT;
}
static int64_t egi_cache_skip(egi_cursor *c, int64_t n) {
    egi_cache *full = egi_cache_full(c);
    if (!full) return egi_skip_reading(c, n);
    int64_t left = full->n - c->element;
    return n < left ? n : left;
}
static void egi_cache_close(egi_cursor *c) { egi_cache_empty((egi_cache *)c->state); }
static void egi_cache_drop(eg_dataset *d) { if (d->data) egi_cache_empty((egi_cache *)d->data); }
static const egi_stage egi_stage_cache = { "dataset_cache", sizeof(egi_cache), NULL, egi_cache_next, egi_cache_skip, egi_cache_close, false };
EAGER_API eg_dataset *eg_dataset_cache(eg_dataset *from) {
    eg_dataset *d = egi_dataset_on(&egi_stage_cache, from);
    if (d) d->drop = egi_cache_drop;
    return egi_dataset_done(d, true);
}

#ifndef EAGER_NO_THREADS
// One thread reads what is upstream into a ring; whoever asks takes from it.
typedef struct egi_ahead {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool running, stop, over;
    egi_cursor *c;
    int64_t first, size, capacity;
    eg_status last;                                           // why it is over
    eg_error_code code;
    char message[sizeof egi_this.message];
    egi_element ring[1];                                      // capacity of them
} egi_ahead;
static void *egi_ahead_work(void *p) {
    egi_ahead *a = (egi_ahead *)p;
    egi_element e;
    egi_this.telling = true;                                  // errors travel to whoever asks
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->stop && a->size == a->capacity) pthread_cond_wait(&a->changed, &a->lock);
        if (a->stop) break;
        pthread_mutex_unlock(&a->lock);
        eg_status status = egi_pull(a->c, 0, e.x);
        pthread_mutex_lock(&a->lock);
        if (status == EG_NEXT) {
            a->ring[(a->first + a->size++) % a->capacity] = e;
            pthread_cond_signal(&a->changed);
            continue;
        }
        a->last = status;
        a->code = egi_this.error;
        memcpy(a->message, egi_this.message, sizeof a->message);
        a->over = true;
        pthread_cond_signal(&a->changed);
        break;
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}
static egi_ahead *egi_ahead_new(egi_cursor *c) {
    size_t bytes = sizeof(egi_ahead) + (size_t)c->d->width * sizeof(egi_element);
    egi_ahead *a = (egi_ahead *)egi_alloc(bytes);
    if (!a) { egi_no_memory("dataset_prefetch", (int64_t)bytes); return NULL; }
    memset((void *)a, 0, sizeof *a);
    a->c = c;
    a->capacity = c->d->width;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->running = pthread_create(&a->thread, NULL, egi_ahead_work, a) == 0;
    return a;
}
static eg_status egi_prefetch_next(egi_cursor *c, eg_tensor **out) {
    egi_ahead **state = (egi_ahead **)c->state, *a = *state ? *state : (*state = egi_ahead_new(c));
    if (!a) return EG_FAILED;
    if (!a->running) return egi_pull(c, 0, out);              // the system gave no thread
    eg_status status = EG_NEXT;
    pthread_mutex_lock(&a->lock);
    while (a->size == 0 && !a->over) pthread_cond_wait(&a->changed, &a->lock);
    if (a->size > 0) {
        memcpy((void *)out, (void *)a->ring[a->first].x, sizeof a->ring[a->first]);
        a->first = (a->first + 1) % a->capacity;
        a->size--;
        pthread_cond_signal(&a->changed);
    } else if ((status = a->last) == EG_FAILED) {
        egi_this.error = a->code;
        memcpy(egi_this.message, a->message, sizeof a->message);
    }
    pthread_mutex_unlock(&a->lock);
    return status;
}
static void egi_prefetch_close(egi_cursor *c) {
    egi_ahead *a = *(egi_ahead **)c->state;
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (a->running) pthread_join(a->thread, NULL);
    for (; a->size > 0; a->size--, a->first = (a->first + 1) % a->capacity) egi_element_drop(a->ring[a->first].x);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    egi_free(a);
}
static bool egi_prefetch_idle(egi_cursor *c) { return *(egi_ahead **)c->state == NULL; }
typedef egi_ahead *egi_prefetch_state;
#else
static eg_status egi_prefetch_next(egi_cursor *c, eg_tensor **out) { return egi_pull(c, 0, out); }
static void egi_prefetch_close(egi_cursor *c) { (void)c; }
static bool egi_prefetch_idle(egi_cursor *c) { return c != NULL; }
typedef char egi_prefetch_state;
#endif
static int64_t egi_prefetch_skip(egi_cursor *c, int64_t n) { return egi_prefetch_idle(c) ? egi_skip_below(c, n) : egi_skip_reading(c, n); }
static const egi_stage egi_stage_prefetch = { "dataset_prefetch", sizeof(egi_prefetch_state), NULL, egi_prefetch_next, egi_prefetch_skip, egi_prefetch_close, false };
EAGER_API eg_dataset *eg_dataset_prefetch(eg_dataset *from, int64_t n) {
    eg_dataset *d = egi_dataset_on(&egi_stage_prefetch, from);
    if (!d) return NULL;
    d->width = n;
    return egi_dataset_done(d, (n >= 1 && n <= 1 << 24) || egi_fail(EG_ERROR_ARGUMENT, "eg_dataset_prefetch: %lld elements are not between 1 and 2^24", (long long)n));
}

// ---- iterators

struct eg_iterator {
    int32_t refs;
    eg_dataset *d;                                            // NULL before one is given
    egi_cursor *c;                                            // NULL before the first element is asked for
    uint64_t epoch;
    int64_t taken;
    bool failed;
    eg_dataset_maker *make;
    void *user;
    int n;                                                    // of eg_iterator_from_specs
    eg_spec spec[EG_MAX_COMPONENTS];
    int64_t handle;
    eg_iterator *newer, *older;                               // those with handles
};
static struct { int64_t next; eg_iterator *newest; } egi_handles;      // under egi_lock

// Shuffles in the tree count the iterators that were made over them: the number is the iterator's epoch.
static void egi_epochs(eg_dataset *d, int64_t *most, const int64_t *set) {
    if (d->stage == &egi_stage_shuffle) {
        if (set) d->epochs = *set;
        else if (d->epochs > *most) *most = d->epochs;
    }
    for (int i = 0; i < d->n_from; i++) egi_epochs(d->from[i], most, set);
}
static void egi_iterator_begin(eg_iterator *it, eg_dataset *d) {      // takes over the reference
    int64_t epoch = 0, after;
    egi_cursor_close(it->c);
    eg_dataset_release(it->d);
    it->c = NULL;
    it->d = d;
    it->taken = 0;
    it->failed = false;
    egi_lock();
    egi_epochs(d, &epoch, NULL);
    after = epoch + 1;
    egi_epochs(d, &epoch, &after);
    egi_unlock();
    it->epoch = (uint64_t)epoch;
}
static eg_iterator *egi_iterator_empty(const char *function) {
    eg_iterator *it = (eg_iterator *)egi_alloc(sizeof *it);
    if (!it) { egi_no_memory(function, (int64_t)sizeof *it); return NULL; }
    memset((void *)it, 0, sizeof *it);
    it->refs = 1;
    return it;
}
EAGER_API eg_iterator *eg_iterator_new(eg_dataset *d) {
    eg_iterator *it = egi_dataset_alive("iterator_new", d) ? egi_iterator_empty("iterator_new") : NULL;
    if (it) egi_iterator_begin(it, eg_dataset_retain(d));
    return it;
}
EAGER_API eg_iterator *eg_iterator_initializable(eg_dataset_maker *make, void *user) {
    eg_iterator *it = make || egi_fail(EG_ERROR_ARGUMENT, "eg_iterator_initializable: the function is NULL") ? egi_iterator_empty("iterator_initializable") : NULL;
    if (!it) return NULL;
    it->make = make;
    it->user = user;
    return it;
}
EAGER_API eg_iterator *eg_iterator_from_specs(const eg_spec *specs, int n) {
    if (!specs || n < 1 || n > EG_MAX_COMPONENTS)
        return (eg_iterator *)eg_raise(EG_ERROR_ARGUMENT, "eg_iterator_from_specs: %d components; an element has 1 to %d", n, EG_MAX_COMPONENTS);
    eg_iterator *it = egi_iterator_empty("iterator_from_specs");
    if (!it) return NULL;
    it->n = n;
    memcpy(it->spec, specs, (size_t)n * sizeof *specs);
    return it;
}
EAGER_API eg_iterator *eg_iterator_retain(eg_iterator *it) {
    if (it) __atomic_fetch_add(&it->refs, 1, __ATOMIC_RELAXED);
    return it;
}
EAGER_API void eg_iterator_release(eg_iterator *it) {
    if (!it || __atomic_sub_fetch(&it->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (it->handle) {
        egi_lock();
        if (it->newer) it->newer->older = it->older;
        else egi_handles.newest = it->older;
        if (it->older) it->older->newer = it->newer;
        egi_unlock();
    }
    egi_cursor_close(it->c);
    eg_dataset_release(it->d);
    egi_free(it);
}
static bool egi_iterator_alive(const char *function, const eg_iterator *it) { return it != NULL || egi_null_operand(function, 0); }
EAGER_API bool eg_iterator_set(eg_iterator *it, eg_dataset *d) {
    if (!egi_iterator_alive("iterator_set", it) || !egi_dataset_alive("iterator_set", d)) return false;
    if (it->make) return egi_fail(EG_ERROR_STATE, "eg_iterator_set: this iterator makes its datasets itself, from what eg_iterator_feed gives it");
    const eg_spec *spec = it->n ? it->spec : it->d->spec;
    if (!egi_specs_agree("iterator_set", spec, it->n ? it->n : it->d->n, d->spec, d->n)) return false;
    egi_iterator_begin(it, eg_dataset_retain(d));
    return true;
}
EAGER_API bool eg_iterator_feed(eg_iterator *it, eg_tensor *const *feed) {
    if (!egi_iterator_alive("iterator_feed", it)) return false;
    if (!it->make) return egi_fail(EG_ERROR_STATE, "eg_iterator_feed: only an iterator of eg_iterator_initializable is fed");
    eg_scope scope = eg_scope_begin();
    eg_recording_pause();
    eg_dataset *d = scope.position < 0 ? NULL : it->make(feed, it->user);
    eg_recording_unpause();
    eg_scope_end(scope);
    if (!d) return egi_this.error != EG_OK ? false : egi_fail(EG_ERROR_NULL, "eg_iterator_feed: the function returned NULL");
    if (it->d && !egi_specs_agree("iterator_feed", it->d->spec, it->d->n, d->spec, d->n)) { eg_dataset_release(d); return false; }
    egi_iterator_begin(it, d);
    return true;
}
static bool egi_iterator_ready(const char *function, const eg_iterator *it) {
    if (!egi_iterator_alive(function, it)) return false;
    if (it->d) return true;
    return egi_fail(EG_ERROR_STATE, "eg_%s: the iterator was not initialized: %s", function,
                    it->make ? "eg_iterator_feed makes its dataset" : "eg_iterator_set gives it one");
}
static egi_cursor *egi_iterator_cursor(eg_iterator *it) {
    return it->c ? it->c : (it->c = egi_cursor_open(it->d, it->epoch, it->d->stages, it->d->stages));
}
// Elements leave on the asking thread's device, each owned by its scope.
static bool egi_hand_out(egi_element *e, int n, eg_backend *to, eg_tensor **out) {
    bool ok = true;
    for (int i = 0; i < n; i++) {
        eg_tensor *x = e->x[i];
        e->x[i] = NULL;
        if (ok) out[i] = egi_own(x);
        else egi_object_release(&x->object);
        if (ok && out[i]) out[i] = egi_to(out[i], egi_backend_of(out[i]), to);
        ok = ok && out[i];
    }
    for (int i = 0; !ok && i < n; i++) out[i] = NULL;
    return ok;
}
EAGER_API eg_status eg_iterator_next(eg_iterator *it, eg_tensor **out) {
    egi_element e;
    egi_hush hush;
    for (int i = 0; i < EG_MAX_COMPONENTS; i++) out[i] = NULL;
    if (!egi_iterator_ready("iterator_next", it)) return EG_FAILED;
    if (it->failed) {
        egi_fail(EG_ERROR_STATE, "eg_iterator_next: this iterator failed before; restore it, initialize it, or make another");
        return EG_FAILED;
    }
    egi_hush_begin(&hush);
    egi_cursor *c = egi_iterator_cursor(it);
    eg_status status = c ? egi_next(c, e.x) : EG_FAILED;
    if (status == EG_NEXT && !egi_hand_out(&e, it->d->n, hush.backend ? hush.backend : egi_backend_cpu(), out)) status = EG_FAILED;
    egi_hush_end(&hush, status == EG_FAILED);
    it->failed = status == EG_FAILED;
    it->taken += status == EG_NEXT;
    return status;
}

EAGER_API eg_tensor *eg_iterator_handle(eg_iterator *it) {
    if (!egi_iterator_alive("iterator_handle", it)) return NULL;
    egi_lock();
    if (!it->handle) {
        it->handle = ++egi_handles.next;
        it->older = egi_handles.newest;
        if (it->older) it->older->newer = it;
        egi_handles.newest = it;
    }
    egi_unlock();
    eg_shape scalar = { 0, { 0 } };
    return egi_upload("iterator_handle", EG_INT64, &scalar, &it->handle);
}
EAGER_API eg_status eg_iterator_next_by_handle(eg_tensor *handle, eg_tensor **out) {
    for (int i = 0; i < EG_MAX_COMPONENTS; i++) out[i] = NULL;
    if (!egi_alive("iterator_next_by_handle", 0, handle)) return EG_FAILED;
    int64_t number = eg_item_int(handle);
    egi_lock();
    eg_iterator *it = egi_handles.newest;
    while (it && it->handle != number) it = it->older;
    eg_iterator_retain(it);
    egi_unlock();
    if (!it) {
        egi_fail(EG_ERROR_ARGUMENT, "eg_iterator_next_by_handle: there is no iterator with the handle %lld (any more)", (long long)number);
        return EG_FAILED;
    }
    eg_status status = eg_iterator_next(it, out);
    eg_iterator_release(it);
    return status;
}

// ---- positions

// "egpos1\n", then as 64-bit little-endian numbers: epoch, elements taken, how many seeds, the seeds, the length of the stages'
// words; then those words, by which a position of another pipeline is known.
static void egi_put64(unsigned char *p, uint64_t v) { for (int i = 0; i < 8; i++) p[i] = (unsigned char)(v >> (8 * i)); }
static uint64_t egi_get64(const unsigned char *p) {
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
    return v;
}
// Writes (or sets from there, or with NULL counts) the seeds of the tree.
static int64_t egi_seeds(eg_dataset *d, int64_t at, unsigned char *write, const unsigned char *read) {
    for (int i = 0; i < d->n_from; i++) at = egi_seeds(d->from[i], at, write, read);
    if (!d->stage->random) return at;
    if (write) egi_put64(write + 8 * at, __atomic_load_n(&d->seed, __ATOMIC_RELAXED));
    if (read) __atomic_store_n(&d->seed, egi_get64(read + 8 * at), __ATOMIC_RELAXED);
    return at + 1;
}
enum { EGI_POSITION_HEAD = 8 + 4 * 8 };
EAGER_API eg_tensor *eg_iterator_position(eg_iterator *it) {
    if (!egi_iterator_ready("iterator_position", it)) return NULL;
    int64_t seeds = egi_seeds(it->d, 0, NULL, NULL), words = eg_dataset_format(it->d, NULL, 0), size = EGI_POSITION_HEAD + 8 * seeds + words;
    unsigned char *p = (unsigned char *)egi_alloc((size_t)size + 1);
    if (!p) { egi_no_memory("iterator_position", size); return NULL; }
    memcpy(p, "egpos1\n", 8);
    egi_put64(p + 8, it->epoch);
    egi_put64(p + 16, (uint64_t)it->taken);
    egi_put64(p + 24, (uint64_t)seeds);
    egi_put64(p + 32, (uint64_t)words);
    egi_seeds(it->d, 0, p + EGI_POSITION_HEAD, NULL);
    eg_dataset_format(it->d, (char *)p + EGI_POSITION_HEAD + 8 * seeds, (size_t)words + 1);
    eg_shape shape = { 1, { size } };
    eg_tensor *x = egi_upload("iterator_position", EG_UINT8, &shape, p);
    egi_free(p);
    return x;
}
static bool egi_position_fits(eg_iterator *it, eg_tensor *position, const unsigned char *p) {
    int64_t size = position->size, seeds = egi_seeds(it->d, 0, NULL, NULL), words = eg_dataset_format(it->d, NULL, 0);
    if (position->dtype != EG_UINT8 || position->rank != 1 || size < EGI_POSITION_HEAD || memcmp(p, "egpos1\n", 8) != 0 || egi_get64(p + 24) > (uint64_t)size ||
        egi_get64(p + 32) > (uint64_t)size || EGI_POSITION_HEAD + 8 * egi_get64(p + 24) + egi_get64(p + 32) != (uint64_t)size || egi_get64(p + 16) > INT64_MAX)
        return egi_fail(EG_ERROR_ARGUMENT, "eg_iterator_restore: %s is no position of an iterator", egi_describe(position));
    char *own = (char *)egi_alloc((size_t)words + 1);
    if (!own) return egi_no_memory("iterator_restore", words);
    eg_dataset_format(it->d, own, (size_t)words + 1);
    const char *saved = (const char *)p + size - egi_get64(p + 32);
    bool same = egi_get64(p + 24) == (uint64_t)seeds && egi_get64(p + 32) == (uint64_t)words && memcmp(saved, own, (size_t)words) == 0;
    if (!same)
        egi_fail(EG_ERROR_STATE, "eg_iterator_restore: the position belongs to another pipeline: \"%.*s\", while this iterator reads \"%.200s\"",
                 (int)(egi_get64(p + 32) < 200 ? egi_get64(p + 32) : 200), saved, own);
    egi_free(own);
    return same;
}
EAGER_API bool eg_iterator_restore(eg_iterator *it, eg_tensor *position) {
    if (!egi_iterator_ready("iterator_restore", it) || !egi_alive("iterator_restore", 1, position)) return false;
    const unsigned char *p = (const unsigned char *)eg_data(position);
    if (!p || !egi_position_fits(it, position, p)) return false;
    egi_iterator_begin(it, eg_dataset_retain(it->d));
    egi_seeds(it->d, 0, NULL, p + EGI_POSITION_HEAD);
    it->epoch = egi_get64(p + 8);
    int64_t after = (int64_t)(it->epoch + 1), taken = (int64_t)egi_get64(p + 16);
    egi_lock();
    egi_epochs(it->d, NULL, &after);
    egi_unlock();
    egi_hush hush;
    egi_hush_begin(&hush);
    egi_cursor *c = egi_iterator_cursor(it);
    it->taken = c ? egi_skip(c, taken) : -1;
    if (it->taken >= 0 && it->taken < taken)
        egi_fail(EG_ERROR_STATE, "eg_iterator_restore: the position is behind %lld elements, but the data ends after %lld", (long long)taken, (long long)it->taken);
    it->failed = it->taken < taken;
    egi_hush_end(&hush, it->failed);
    return !it->failed;
}

//# 31  FILES ------------------------------------------------------------------
// Idea: see chapter 12. Read first: 16.

// ---- texts

static void egi_text_printf(egi_text *t, const char *format, ...) {
    char small[256];
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(small, sizeof small, format, list);
    if (n < (int)sizeof small) egi_text_add(t, small, n > 0 ? (size_t)n : 0);
    else if (egi_text_reserve(t, (size_t)n + 1)) {
        vsnprintf(t->data + t->size, (size_t)n + 1, format, again);
        t->size += (size_t)n;
    }
    va_end(again);
    va_end(list);
}
static void egi_text_json(egi_text *t, const char *string) {
    egi_text_add(t, "\"", 1);
    for (const char *p = string; *p; p++)
        if (*p == '"' || *p == '\\') egi_text_printf(t, "\\%c", *p);
        else if ((unsigned char)*p < 32) egi_text_printf(t, "\\u%04x", (unsigned)(unsigned char)*p);
        else egi_text_add(t, p, 1);
    egi_text_add(t, "\"", 1);
}
// The C library writes and reads numbers with the locale's point: where it is not '.', the two are exchanged.
static bool egi_parse_number(const char *text, int64_t n, double *value) {
    char copy[512];
    const char *point = localeconv()->decimal_point;
    size_t at = 0, length = strlen(point);
    if (n <= 0 || n >= 480 || length > 16) return false;
    for (int64_t i = 0; i < n; i++) {
        bool is_point = text[i] == '.';
        if (!is_point && !strchr("+-0123456789eE", text[i])) return false;      // nor a '\0', which strchr finds: see the end
        memcpy(copy + at, is_point ? point : text + i, is_point ? length : 1);
        at += is_point ? length : 1;
        if (at + length >= sizeof copy) return false;
    }
    copy[at] = 0;
    char *end;
    *value = strtod(copy, &end);
    return end == copy + at;
}
static void egi_text_number(egi_text *t, double value) {
    char text[64];
    const char *point = localeconv()->decimal_point;
    size_t length = strlen(point);
    if (value != value) { egi_text_string(t, "null"); return; }                 // JSON has neither; 1e999 is read as infinity
    if (value - value != 0) { egi_text_printf(t, "%s1e999", value < 0 ? "-" : ""); return; }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    char *at = strcmp(point, ".") ? strstr(text, point) : NULL;
    if (at) { *at = '.'; memmove(at + 1, at + length, strlen(at + length) + 1); }
    egi_text_string(t, text);
}

// ---- files

static bool egi_file_fail(const char *function, const char *path, int64_t offset, const char *format, ...) {
    char text[600], place[40] = "";
    size_t length = path ? strlen(path) : 0;
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (offset >= 0) snprintf(place, sizeof place, "byte %lld: ", (long long)offset);
    return egi_fail(EG_ERROR_FILE, "eg_%s: %s%s%s%s%s", function, length > 300 ? "..." : "", path ? path + (length > 300 ? length - 300 : 0) : "",
                    path ? ": " : "", place, text);
}
static char *egi_copy_string(const char *string, const char *behind) {
    size_t n = strlen(string), more = strlen(behind);
    char *copy = (char *)egi_alloc(n + more + 1);
    if (copy) { memcpy(copy, string, n); memcpy(copy + n, behind, more + 1); }
    return copy;
}

// Tests make this something that ends the process, to see what a crash leaves behind.
#ifndef EGI_FILE_STEP
#define EGI_FILE_STEP() ((void)0)
#endif

#ifdef EAGER_NO_STDIO
static bool egi_no_files(const char *function, const char *path) {
    return egi_file_fail(function, path ? path : "NULL", -1, "the program was compiled with EAGER_NO_STDIO and has no files");
}
static bool egi_source_open(egi_source *s, const char *function, const char *path, bool unzip) {
    (void)unzip;
    memset(s, 0, sizeof *s);
    return egi_no_files(function, path);
}
static int64_t egi_source_read(egi_source *s, void *to, int64_t n) { (void)s; (void)to; (void)n; return -1; }
static bool egi_source_seek(egi_source *s, int64_t offset) { (void)s; (void)offset; return false; }
static void egi_source_close(egi_source *s) { (void)s; }
static void egi_make_folders(const char *path) { (void)path; }
static bool egi_sink_open(egi_sink *s, const char *function, const char *path) {
    memset(s, 0, sizeof *s);
    s->failed = true;
    return egi_no_files(function, path);
}
static bool egi_sink_write(egi_sink *s, const void *bytes, int64_t n) { (void)s; (void)bytes; (void)n; return false; }
static bool egi_sink_close(egi_sink *s, bool good) { (void)s; (void)good; return false; }
#else

#ifdef _WIN32
#define EGI_SEEK(file, offset, from) _fseeki64(file, offset, from)
#define EGI_TELL(file) _ftelli64(file)
#define EGI_MAKE_FOLDER(path) _mkdir(path)
__declspec(dllimport) int __stdcall MoveFileExA(const char *from, const char *to, unsigned long flags);
static bool egi_rename(const char *from, const char *to) { return MoveFileExA(from, to, 9) != 0; }        // replace existing, write through
static bool egi_is_device(const char *path) { (void)path; return false; }
static bool egi_sync(FILE *file) { return _commit(_fileno(file)) == 0; }
static void egi_sync_folder(const char *path) { (void)path; }
#else
#define EGI_SEEK(file, offset, from) fseek(file, (long)(offset), from)
#define EGI_TELL(file) (int64_t)ftell(file)
#define EGI_MAKE_FOLDER(path) mkdir(path, 0777)
#if defined(__STRICT_ANSI__) && !defined(__cplusplus)      // the headers hide what is not ISO C
int fileno(FILE *file);
int fsync(int file);
#endif
static bool egi_rename(const char *from, const char *to) { return rename(from, to) == 0; }
// Something like /dev/stdout, which a file must not replace.
static bool egi_is_device(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && (s.st_mode & 0170000) != 0100000 && (s.st_mode & 0170000) != 0040000;
}
static bool egi_sync(FILE *file) { return fsync(fileno(file)) == 0 || errno == EINVAL || errno == EROFS; }  // what cannot be synced need not be
// The new name is on the disk when the folder is; a file system that does not sync folders needs no help.
static void egi_sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = egi_copy_string(path, "");
    if (!folder) return;
    if (slash) folder[slash == path ? 1 : slash - path] = 0;
    int file = open(slash ? folder : ".", O_RDONLY);
    if (file >= 0) { fsync(file); close(file); }
    egi_free(folder);
}
#endif
static void egi_make_folders(const char *path) {
    char *part = egi_copy_string(path, "");
    for (char *p = part; p && *p; p++) {
        if (p == part || *p != '/') continue;
        *p = 0;
        EGI_MAKE_FOLDER(part);
        *p = '/';
    }
    egi_free(part);
}
static const char *egi_reason(void) { return errno ? strerror(errno) : "input or output failed"; }

static bool egi_path_given(const char *function, const char *path) {
    return (path && *path) || egi_fail(EG_ERROR_ARGUMENT, "eg_%s: the path is %s", function, path ? "empty" : "NULL");
}
static bool egi_source_open(egi_source *s, const char *function, const char *path, bool unzip) {
    unsigned char magic[3] = { 0, 0, 0 };
    memset(s, 0, sizeof *s);
    s->function = function;
    s->size = -1;
    if (!egi_path_given(function, path)) return false;
    if (!(s->path = egi_copy_string(path, ""))) return egi_no_memory(function, (int64_t)strlen(path) + 1);
    errno = 0;
    FILE *file = fopen(path, "rb");
    s->file = file;
    if (!file) { egi_file_fail(function, path, -1, "cannot be opened: %s", egi_reason()); egi_source_close(s); return false; }
    if (EGI_SEEK(file, 0, SEEK_END) == 0) s->size = EGI_TELL(file);
    if (s->size == INT64_MAX) s->size = -1;                      // what a folder says
    clearerr(file);
    if (s->size < 0) return true;                                // a pipe: read as it comes
    rewind(file);
    if (unzip && fread(magic, 1, 3, file) == 3 && magic[0] == 0x1f && magic[1] == 0x8b && magic[2] == 8) {
#ifdef EAGER_ZLIB
        s->gzip = (void *)gzopen(path, "rb");
        if (s->gzip) { s->size = -1; return true; }
        egi_file_fail(function, path, -1, "cannot be opened: %s", egi_reason());
#else
        egi_file_fail(function, path, -1, "is a gzip file; compile with -DEAGER_ZLIB and link with -lz to read it");
#endif
        egi_source_close(s);
        return false;
    }
    clearerr(file);
    rewind(file);
    return true;
}
static int64_t egi_source_read(egi_source *s, void *to, int64_t n) {
    int64_t got = 0;
    errno = 0;
#ifdef EAGER_ZLIB
    while (s->gzip && got < n) {
        int part = gzread((gzFile)s->gzip, (char *)to + got, (unsigned)(n - got < 1 << 28 ? n - got : 1 << 28)), code = 0;
        const char *what = part <= 0 ? gzerror((gzFile)s->gzip, &code) : "";
        if (part < 0 || code < 0) {                              // an end within the last block comes as a code alone
            egi_file_fail(s->function, s->path, s->offset + got, "broken gzip data: %s", code == Z_ERRNO ? egi_reason() : what);
            return -1;
        }
        got += part;
        if (!part) break;
    }
#endif
    if (!s->gzip && n > 0) {
        FILE *file = (FILE *)s->file;
        got = (int64_t)fread(to, 1, (size_t)n, file);
        if (got < n && ferror(file)) { egi_file_fail(s->function, s->path, s->offset + got, "cannot be read: %s", egi_reason()); return -1; }
    }
    s->offset += got;
    return got;
}
static bool egi_source_seek(egi_source *s, int64_t offset) {
    bool ok;
    errno = 0;
#ifdef EAGER_ZLIB
    if (s->gzip) ok = gzseek((gzFile)s->gzip, (z_off_t)offset, SEEK_SET) >= 0;
    else
#endif
        ok = EGI_SEEK((FILE *)s->file, offset, SEEK_SET) == 0;
    if (ok) s->offset = offset;
    return ok || egi_file_fail(s->function, s->path, offset, "cannot be read from here: %s", egi_reason());
}
static void egi_source_close(egi_source *s) {
#ifdef EAGER_ZLIB
    if (s->gzip) gzclose((gzFile)s->gzip);
#endif
    if (s->file) fclose((FILE *)s->file);
    egi_free(s->path);
    memset(s, 0, sizeof *s);
}

static bool egi_sink_open(egi_sink *s, const char *function, const char *path) {
    memset(s, 0, sizeof *s);
    s->function = function;
    s->failed = true;
    if (!egi_path_given(function, path)) return false;
    bool device = egi_is_device(path);
    s->path = egi_copy_string(path, "");
    s->temporary = device ? NULL : egi_copy_string(path, ".part");
    if (!s->path || (!device && !s->temporary)) { egi_no_memory(function, (int64_t)strlen(path) + 6); egi_sink_close(s, false); return false; }
    const char *name = device ? s->path : s->temporary;
    EGI_FILE_STEP();
    FILE *file = fopen(name, "wb");
    if (!file) { egi_make_folders(name); errno = 0; file = fopen(name, "wb"); }
    s->file = file;
    s->failed = !file;
    if (!file) { egi_file_fail(function, path, -1, "cannot be written: %s", egi_reason()); egi_sink_close(s, false); return false; }
    return true;
}
static bool egi_sink_write(egi_sink *s, const void *bytes, int64_t n) {
    if (s->failed || n <= 0) return !s->failed;
    errno = 0;
    EGI_FILE_STEP();
    s->failed = fwrite(bytes, 1, (size_t)n, (FILE *)s->file) != (size_t)n;
    if (s->failed) egi_file_fail(s->function, s->path, s->offset, "cannot be written: %s", egi_reason());
    s->offset += n;
    return !s->failed;
}
static bool egi_sink_close(egi_sink *s, bool good) {
    FILE *file = (FILE *)s->file;
    bool ok = good && !s->failed && file;
    errno = 0;
    EGI_FILE_STEP();
    if (ok) ok = fflush(file) == 0 || egi_file_fail(s->function, s->path, s->offset, "cannot be written: %s", egi_reason());
    EGI_FILE_STEP();
    if (ok) ok = egi_sync(file) || egi_file_fail(s->function, s->path, -1, "cannot be brought to the disk: %s", egi_reason());
    EGI_FILE_STEP();
    if (file && fclose(file) != 0 && ok) ok = egi_file_fail(s->function, s->path, -1, "cannot be written: %s", egi_reason());
    EGI_FILE_STEP();
    if (ok && s->temporary) ok = egi_rename(s->temporary, s->path) || egi_file_fail(s->function, s->path, -1, "cannot take its name: %s", egi_reason());
    EGI_FILE_STEP();
    if (ok && s->temporary) egi_sync_folder(s->path);
    if (!ok && file && s->temporary) remove(s->temporary);
    egi_free(s->path);
    egi_free(s->temporary);
    memset(s, 0, sizeof *s);
    return ok;
}
#endif

static bool egi_file_write(const char *function, const char *path, const void *data, int64_t size) {
    egi_sink s;
    return egi_sink_open(&s, function, path) && (egi_sink_write(&s, data, size), egi_sink_close(&s, true));
}
// In pieces where the size is not known before, as of a pipe; a file that says it is large is not believed before it is read.
static char *egi_file_read(const char *function, const char *path, int64_t *size) {
    egi_source s;
    void *data = NULL;
    int64_t capacity = 0, total = 0, got = 0, part = 1 << 16;
    if (!egi_source_open(&s, function, path, false)) return NULL;
    do {
        total += got;
        if (s.size >= total) part = s.size - total + 1;
        if (!egi_grow(&data, &capacity, total + part + 1, 1)) { egi_no_memory(function, total + part + 1); got = -1; break; }
        got = egi_source_read(&s, (char *)data + total, part);
    } while (got == part);
    egi_source_close(&s);
    if (got < 0) { egi_free(data); return NULL; }
    *size = total + got;
    ((char *)data)[*size] = 0;
    return (char *)data;
}

// ---- JSON

// The first byte that is not UTF-8 as it should be (too long, a surrogate, above 10FFFF), or n.
static int64_t egi_utf8_fault(const char *text, int64_t n) {
    const unsigned char *p = (const unsigned char *)text;
    for (int64_t i = 0, more; i < n; i += more + 1) {
        unsigned c = p[i];
        more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : -1;
        if (more < 0 || i + more >= n) return i;
        for (int64_t k = 1; k <= more; k++) if ((p[i + k] & 0xc0) != 0x80) return i;
        if (more && ((c == 0xe0 && p[i + 1] < 0xa0) || (c == 0xed && p[i + 1] >= 0xa0) || (c == 0xf0 && p[i + 1] < 0x90) || (c == 0xf4 && p[i + 1] >= 0x90))) return i;
    }
    return n;
}
typedef struct egi_json_reader { egi_json *j; char *at, *start, *end; int depth; } egi_json_reader;
enum { EGI_JSON_DEPTH = 100 };

static bool egi_json_fault(const egi_json_reader *r, const char *where, const char *what) {
    return egi_file_fail(r->j->function, r->j->path, r->j->base + (where - r->start), "%s", what);
}
static void egi_json_blank(egi_json_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}
static int egi_hex4(const char *p, const char *end) {
    int value = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}
static char *egi_utf8_put(char *to, unsigned c) {
    if (c < 0x80) *to++ = (char)c;
    else {
        int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        *to++ = (char)((0xff00u >> (more + 1) & 0xffu) | c >> 6 * more);
        while (more--) *to++ = (char)(0x80u | (c >> 6 * more & 63u));
    }
    return to;
}
// Decoded where it stands: it gets no longer.
static bool egi_json_quoted(egi_json_reader *r, const char **string) {
    char *start = r->at, *to = r->at + 1, *p = r->at + 1;
    for (;; p++) {
        if (p >= r->end) return egi_json_fault(r, start, "broken JSON: a string does not end");
        if (*p == '"') break;
        if ((unsigned char)*p < 32) return egi_json_fault(r, p, "broken JSON: a control character in a string");
        if (*p != '\\') { *to++ = *p; continue; }
        static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
        const char *letter = ++p < r->end && *p ? strchr(letters, *p) : NULL;
        if (letter) { *to++ = bytes[letter - letters]; continue; }
        int c = p < r->end && *p == 'u' ? egi_hex4(p + 1, r->end) : -1, low;
        if (c < 0 || (c >= 0xdc00 && c < 0xe000)) return egi_json_fault(r, p - 1, "broken JSON: no such escape");
        if (c == 0) return egi_json_fault(r, p - 1, "a string with a zero byte");
        p += 4;
        if (c >= 0xd800 && c < 0xdc00) {
            if (r->end - p < 7 || p[1] != '\\' || p[2] != 'u' || (low = egi_hex4(p + 3, r->end)) < 0xdc00 || low >= 0xe000)
                return egi_json_fault(r, p - 5, "broken JSON: half of a surrogate pair");
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
        to = egi_utf8_put(to, (unsigned)c);
    }
    *to = 0;
    r->at = p + 1;
    *string = start + 1;
    return true;
}
static bool egi_json_number(egi_json_reader *r, egi_json_node *node) {
    char *p = r->at, *digits;
    bool whole = true;
    if (*p == '-') p++;
    for (digits = p; p < r->end && *p >= '0' && *p <= '9'; p++) {}
    if (p == digits || (*digits == '0' && p - digits > 1)) return egi_json_fault(r, r->at, "broken JSON: no value stands here");
    if (p < r->end && *p == '.') {
        whole = false;
        for (digits = ++p; p < r->end && *p >= '0' && *p <= '9'; p++) {}
        if (p == digits) return egi_json_fault(r, r->at, "broken JSON: a number without digits behind its point");
    }
    if (p < r->end && (*p == 'e' || *p == 'E')) {
        whole = false;
        if (++p < r->end && (*p == '+' || *p == '-')) p++;
        for (digits = p; p < r->end && *p >= '0' && *p <= '9'; p++) {}
        if (p == digits) return egi_json_fault(r, r->at, "broken JSON: a number without an exponent");
    }
    if (!egi_parse_number(r->at, p - r->at, &node->number)) return egi_json_fault(r, r->at, "a number of too many digits");
    for (char *d = r->at + (*r->at == '-'); whole && d < p; d++)
        whole = !__builtin_mul_overflow(node->integer, (int64_t)10, &node->integer) &&
                !__builtin_add_overflow(node->integer, (int64_t)(*r->at == '-' ? '0' - *d : *d - '0'), &node->integer);
    node->whole = whole;
    node->kind = EGI_JSON_NUMBER;
    r->at = p;
    return true;
}
static int egi_compare_names(const void *a, const void *b) {
    const char *x = (*(const egi_json_node *const *)a)->string, *y = (*(const egi_json_node *const *)b)->string;
    return strcmp(x, y);
}
static bool egi_json_names_differ(const egi_json_reader *r, int64_t object) {
    const egi_json *j = r->j;
    int64_t n = j->nodes[object].count, at = object + 1, i = 0;
    if (n < 2) return true;
    const egi_json_node **list = (const egi_json_node **)egi_alloc((size_t)n * sizeof *list);
    if (!list) return egi_no_memory(j->function, n * (int64_t)sizeof *list);
    for (; i < n; at = j->nodes[at + 1].next) list[i++] = &j->nodes[at];
    qsort(list, (size_t)n, sizeof *list, egi_compare_names);
    for (i = 1; i < n && strcmp(list[i - 1]->string, list[i]->string) != 0; i++) {}
    bool ok = i == n;
    if (!ok) {
        int64_t second = list[i]->offset > list[i - 1]->offset ? list[i]->offset : list[i - 1]->offset;
        egi_file_fail(j->function, j->path, j->base + second, "the name '%.200s' stands there twice", list[i]->string);
    }
    egi_free(list);
    return ok;
}
static bool egi_json_value(egi_json_reader *r);
static bool egi_json_container(egi_json_reader *r, int64_t node, char close) {
    egi_json *j = r->j;
    if (++r->depth > EGI_JSON_DEPTH) return egi_json_fault(r, r->at, "JSON nested too deeply");
    j->nodes[node].kind = close == '}' ? EGI_JSON_OBJECT : EGI_JSON_ARRAY;
    for (r->at++;; r->at++) {
        egi_json_blank(r);
        if (r->at < r->end && *r->at == close && j->nodes[node].count == 0) break;
        if (close == '}') {
            if (r->at >= r->end || *r->at != '"') return egi_json_fault(r, r->at, "broken JSON: a name in quotes is missing");
            if (!egi_json_value(r)) return false;
            egi_json_blank(r);
            if (r->at >= r->end || *r->at != ':') return egi_json_fault(r, r->at, "broken JSON: a ':' is missing");
            r->at++;
        }
        if (!egi_json_value(r)) return false;
        j->nodes[node].count++;
        egi_json_blank(r);
        if (r->at < r->end && *r->at == close) break;
        if (r->at >= r->end || *r->at != ',') return egi_json_fault(r, r->at, close == '}' ? "broken JSON: a ',' or '}' is missing" : "broken JSON: a ',' or ']' is missing");
    }
    r->at++;
    r->depth--;
    return close == ']' || egi_json_names_differ(r, node);
}
static bool egi_json_value(egi_json_reader *r) {
    egi_json *j = r->j;
    void *nodes = j->nodes;
    static const struct { const char *word; egi_json_kind kind; int64_t value; } words[] = {
        { "null", EGI_JSON_NULL, 0 }, { "false", EGI_JSON_BOOL, 0 }, { "true", EGI_JSON_BOOL, 1 }
    };
    egi_json_blank(r);
    if (r->at >= r->end) return egi_json_fault(r, r->at, "broken JSON: it ends too early");
    int64_t at = j->count;
    if (!egi_grow(&nodes, &j->capacity, at + 1, sizeof *j->nodes)) return egi_no_memory(j->function, (at + 1) * (int64_t)sizeof *j->nodes);
    j->nodes = (egi_json_node *)nodes;
    j->count++;
    memset(&j->nodes[at], 0, sizeof *j->nodes);
    j->nodes[at].offset = r->at - r->start;
    bool ok = true, word = false;
    for (int i = 0; i < 3 && !word; i++) {
        size_t n = strlen(words[i].word);
        word = (size_t)(r->end - r->at) >= n && !memcmp(r->at, words[i].word, n);
        if (!word) continue;
        j->nodes[at].kind = words[i].kind;
        j->nodes[at].integer = words[i].value;
        r->at += n;
    }
    if (word) {}
    else if (*r->at == '{') ok = egi_json_container(r, at, '}');
    else if (*r->at == '[') ok = egi_json_container(r, at, ']');
    else if (*r->at != '"') ok = egi_json_number(r, &j->nodes[at]);
    else {
        j->nodes[at].kind = EGI_JSON_STRING;
        ok = egi_json_quoted(r, &j->nodes[at].string);
    }
    j->nodes[at].next = j->count;
    return ok;
}
static bool egi_json_read(egi_json *j, const char *function, const char *path, int64_t base, const char *text, int64_t n) {
    egi_json_reader r;
    memset(j, 0, sizeof *j);
    j->function = function;
    j->path = path;
    j->base = base;
    if (!(j->text = (char *)egi_alloc((size_t)n + 1))) return egi_no_memory(function, n + 1);
    if (n) memcpy(j->text, text, (size_t)n);
    j->text[n] = 0;
    r.j = j;
    r.at = r.start = j->text;
    r.end = r.at + n;
    r.depth = 0;
    int64_t fault = egi_utf8_fault(text, n);
    bool ok = fault == n ? egi_json_value(&r) : egi_json_fault(&r, r.start + fault, "bytes that are not UTF-8");
    egi_json_blank(&r);
    if (ok && r.at < r.end) ok = egi_json_fault(&r, r.at, "broken JSON: more stands behind its end");
    if (!ok) egi_json_free(j);
    return ok;
}
static int64_t egi_json_member(const egi_json *j, int64_t object, const char *name) {
    if (object < 0 || j->nodes[object].kind != EGI_JSON_OBJECT) return -1;
    int64_t at = object + 1;
    for (int64_t i = 0; i < j->nodes[object].count; i++, at = j->nodes[at + 1].next)
        if (!strcmp(j->nodes[at].string, name)) return at + 1;
    return -1;
}
static const char *egi_json_string(const egi_json *j, int64_t node) { return node >= 0 ? j->nodes[node].string : NULL; }
static void egi_json_free(egi_json *j) {
    egi_free(j->text);
    egi_free(j->nodes);
    memset(j, 0, sizeof *j);
}

// ---- checksums and records

// Numbers of 1 to 8 bytes in a file's order, little-endian, whatever the machine's is.
static uint64_t egi_little(const void *from, int bytes) {
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | ((const unsigned char *)from)[i];
    return v;
}
static void egi_put_little(void *to, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++, v >>= 8) ((unsigned char *)to)[i] = (unsigned char)(v & 255);
}

// CRC-32 by eight bytes at a time: table k says what a byte leaves behind that k others follow.
typedef enum egi_crc_kind { EGI_CRC32, EGI_CRC32C } egi_crc_kind;          // zip, PNG; TFRecord (Castagnoli's)
static struct { int ready; uint32_t table[2][8][256]; } egi_crcs;
static EGI_COLD void egi_crc_prepare(void) {
    static const uint32_t polynomial[2] = { 0xedb88320u, 0x82f63b78u };
    egi_lock();
    for (int kind = 0; kind < 2 && !egi_crcs.ready; kind++)
        for (int k = 0; k < 8; k++)
            for (uint32_t byte = 0; byte < 256; byte++) {
                uint32_t crc = k ? egi_crcs.table[kind][k - 1][byte] : byte;
                for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? polynomial[kind] : 0);
                egi_crcs.table[kind][k][byte] = crc;
            }
    __atomic_store_n(&egi_crcs.ready, 1, __ATOMIC_RELEASE);
    egi_unlock();
}
// Of all bytes so far, whose checksum is crc (0 at the start), and n more.
static uint32_t egi_crc(egi_crc_kind kind, uint32_t crc, const void *data, int64_t n) {
    const unsigned char *p = (const unsigned char *)data;
    if (!__atomic_load_n(&egi_crcs.ready, __ATOMIC_ACQUIRE)) egi_crc_prepare();
    uint32_t (*t)[256] = egi_crcs.table[kind];
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = t[7][crc & 255] ^ t[6][crc >> 8 & 255] ^ t[5][crc >> 16 & 255] ^ t[4][crc >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
    }
    for (; n > 0; n--, p++) crc = crc >> 8 ^ t[0][(crc ^ *p) & 255];
    return ~crc;
}
// A checksum of what holds checksums would be weak, so TFRecord files store it turned.
static uint32_t egi_crc_masked(const void *data, int64_t n) {
    uint32_t crc = egi_crc(EGI_CRC32C, 0, data, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// A record of a TFRecord file: its length (8 bytes), the checksum of that (4), the data, the checksum of the data (4).
// Adds one to text; false without memory.
static bool egi_record_frame(egi_text *text, const void *data, int64_t size) {
    unsigned char head[12], tail[4];
    egi_put_little(head, (uint64_t)size, 8);
    egi_put_little(head + 8, egi_crc_masked(head, 8), 4);
    egi_put_little(tail, egi_crc_masked(data, size), 4);
    egi_text_add(text, (const char *)head, 12);
    egi_text_add(text, (const char *)data, (size_t)size);
    egi_text_add(text, (const char *)tail, 4);
    return !text->failed;
}
// Reads n bytes and their checksum into text: 1 if they fit; *got says how many came. A length that the file made up costs no more
// memory than the file has bytes.
static int egi_record_part(egi_source *s, int64_t n, egi_text *text, int64_t *got) {
    text->size = 0;
    *got = 0;
    while (*got < n + 4) {
        int64_t want = n + 4 - *got, most = *got < 65536 ? 65536 : *got;
        if (want > most) want = most;
        if (!egi_text_reserve(text, (size_t)want)) { egi_no_memory(s->function, want); return -1; }
        int64_t came = egi_source_read(s, text->data + text->size, want);
        if (came < 0) return -1;
        text->size += (size_t)came;
        *got += came;
        if (came < want) return 0;
    }
    text->size = (size_t)n;
    return egi_crc_masked(text->data, n) == egi_little(text->data + n, 4);
}
static int egi_record_read(egi_source *s, egi_text *record) {
    int64_t start = s->offset, at = start, size = 8, got = 0;
    int good = egi_record_part(s, size, record, &got);
    if (good == 0 && got == 0) return 0;
    if (good > 0) {
        uint64_t length = egi_little(record->data, 8);
        size = length > INT64_MAX - 16 ? INT64_MAX - 16 : (int64_t)length;
        at += 12;
        good = egi_record_part(s, size, record, &got);
    }
    if (good == 0 && got < size + 4) egi_file_fail(s->function, s->path, -1, "truncated record at %lld", (long long)start);
    else if (good == 0) egi_file_fail(s->function, s->path, -1, "corrupted record at %lld", (long long)at);
    return good > 0 ? 1 : -1;
}

static eg_tensor *egi_to(eg_tensor *x, eg_backend *from, eg_backend *to);       // chapter 33

// ---- named tensors

typedef struct egi_item { char *name; eg_tensor *x; } egi_item;
typedef struct egi_note { char *key, *value; } egi_note;
struct eg_archive {
    int32_t refs;
    egi_item *items;
    egi_note *notes;
    int64_t count, capacity, n_notes, notes_capacity;
};
static bool egi_archive_alive(const char *function, const eg_archive *a) {
    return a != NULL || (egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_%s: the archive is NULL", function) : false);
}
EAGER_API eg_archive *eg_archive_new(void) {
    eg_archive *a = (eg_archive *)egi_alloc(sizeof *a);
    if (!a) { egi_no_memory("archive_new", (int64_t)sizeof *a); return NULL; }
    memset(a, 0, sizeof *a);
    a->refs = 1;
    return a;
}
EAGER_API eg_archive *eg_archive_retain(eg_archive *a) {
    if (a) __atomic_fetch_add(&a->refs, 1, __ATOMIC_RELAXED);
    return a;
}
EAGER_API void eg_archive_release(eg_archive *a) {
    if (!a || __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    for (int64_t i = 0; i < a->count; i++) { egi_free(a->items[i].name); eg_release(a->items[i].x); }
    for (int64_t i = 0; i < a->n_notes; i++) { egi_free(a->notes[i].key); egi_free(a->notes[i].value); }
    egi_free(a->items);
    egi_free(a->notes);
    egi_free(a);
}
static int64_t egi_archive_find(const eg_archive *a, const char *name) {
    for (int64_t i = 0; i < a->count; i++) if (!strcmp(a->items[i].name, name)) return i;
    return -1;
}
// Adds a name that is not there yet; the caller keeps its reference.
static bool egi_archive_put(const char *function, eg_archive *a, const char *name, eg_tensor *x) {
    void *items = a->items;
    char *copy = egi_copy_string(name, "");
    if (!copy || !egi_grow(&items, &a->capacity, a->count + 1, sizeof *a->items)) { egi_free(copy); return egi_no_memory(function, 0); }
    a->items = (egi_item *)items;
    a->items[a->count].name = copy;
    a->items[a->count++].x = eg_retain(x);
    return true;
}
// x with values that do not change any more; not owned by a scope.
static eg_tensor *egi_frozen(const char *function, eg_tensor *x) {
    if (x->flags & EGI_NUMBER) {
        eg_scope scope = eg_scope_begin();
        eg_tensor *y = eg_retain(egi_number_tensor(function, x, EG_FLOAT32, egi_backend_here()));
        eg_scope_end(scope);
        return y;
    }
    return x->flags & EGI_VARIABLE ? egi_alias(function, x) : eg_retain(x);
}
EAGER_API bool (eg_archive_add)(eg_archive *a, const char *name, eg_tensor *x) {
    if (!egi_archive_alive("archive_add", a) || !egi_alive("archive_add", 2, x)) return false;
    if (!name || egi_utf8_fault(name, (int64_t)strlen(name)) != (int64_t)strlen(name))
        return egi_fail(EG_ERROR_ARGUMENT, "eg_archive_add: the name is %s", name ? "not UTF-8" : "NULL");
    if (egi_archive_find(a, name) >= 0) return egi_fail(EG_ERROR_ARGUMENT, "eg_archive_add: a tensor '%.200s' is there already", name);
    x = egi_frozen("archive_add", x);
    bool ok = x && egi_archive_put("archive_add", a, name, x);
    eg_release(x);
    return ok;
}
EAGER_API eg_tensor *eg_archive_get(eg_archive *a, const char *name) {
    if (!egi_archive_alive("archive_get", a)) return NULL;
    int64_t i = name ? egi_archive_find(a, name) : -1;
    if (i >= 0) return egi_again(a->items[i].x);
    return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_archive_get: there is no tensor '%.200s' among the %lld%s%.100s%s", name ? name : "NULL",
                                 (long long)a->count, a->count ? ", first '" : "", a->count ? a->items[0].name : "", a->count ? "'" : "");
}
EAGER_API bool eg_archive_has(eg_archive *a, const char *name) { return a && name && egi_archive_find(a, name) >= 0; }
EAGER_API int64_t eg_archive_count(eg_archive *a) { return a ? a->count : 0; }
EAGER_API const char *eg_archive_name(eg_archive *a, int64_t i) { return a && i >= 0 && i < a->count ? a->items[i].name : NULL; }
EAGER_API const char *eg_archive_text(eg_archive *a, const char *key) {
    for (int64_t i = 0; a && key && i < a->n_notes; i++) if (!strcmp(a->notes[i].key, key)) return a->notes[i].value;
    return NULL;
}
EAGER_API bool eg_archive_set_text(eg_archive *a, const char *key, const char *value) {
    if (!egi_archive_alive("archive_set_text", a)) return false;
    if (!key) return egi_fail(EG_ERROR_ARGUMENT, "eg_archive_set_text: the key is NULL");
    if (egi_utf8_fault(key, (int64_t)strlen(key)) != (int64_t)strlen(key) || (value && egi_utf8_fault(value, (int64_t)strlen(value)) != (int64_t)strlen(value)))
        return egi_fail(EG_ERROR_ARGUMENT, "eg_archive_set_text: the key or the text is not UTF-8");
    void *notes = a->notes;
    int64_t i = 0;
    while (i < a->n_notes && strcmp(a->notes[i].key, key) != 0) i++;
    char *copy = value ? egi_copy_string(value, "") : NULL, *name = value && i == a->n_notes ? egi_copy_string(key, "") : NULL;
    if (value && (!copy || (i == a->n_notes && (!name || !egi_grow(&notes, &a->notes_capacity, i + 1, sizeof *a->notes))))) {
        egi_free(copy);
        egi_free(name);
        return egi_no_memory("archive_set_text", 0);
    }
    a->notes = (egi_note *)notes;
    if (i < a->n_notes) {
        egi_free(a->notes[i].value);
        a->notes[i].value = copy;
        if (value) return true;
        egi_free(a->notes[i].key);
        for (a->n_notes--; i < a->n_notes; i++) a->notes[i] = a->notes[i + 1];
    } else if (value) {
        a->notes[i].key = name;
        a->notes[i].value = copy;
        a->n_notes++;
    }
    return true;
}

// How dtypes are written, and as what those are read that we have not.
static const struct { const char *npy, *safetensors; int size; eg_dtype dtype; } egi_stored[] = {     // first ORDER eg_dtype
    { "f4", "F32", 4, EG_FLOAT32 }, { "f8", "F64", 8, EG_FLOAT64 }, { "i4", "I32", 4, EG_INT32 }, { "i8", "I64", 8, EG_INT64 },
    { "u1", "U8", 1, EG_UINT8 }, { "b1", "BOOL", 1, EG_BOOL }, { "f2", "F16", 2, EG_FLOAT16 }, { NULL, "BF16", 2, EG_BFLOAT16 },
    { "i1", "I8", 1, EG_INT32 }, { "i2", "I16", 2, EG_INT32 }, { "u2", "U16", 2, EG_INT32 }, { "u4", "U32", 4, EG_INT64 },
    { "u8", "U64", 8, EG_INT64 }
};
enum { EGI_STORED = sizeof egi_stored / sizeof egi_stored[0], EGI_STORED_I1 = EGI_DTYPES, EGI_STORED_I2, EGI_STORED_U2, EGI_STORED_U4, EGI_STORED_U8 };
#define EGI_READABLE "bool, uint8, int8 to int64, uint16 to uint64, float16 to float64"

#ifdef __BYTE_ORDER__
enum { EGI_BIG = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };
#else
enum { EGI_BIG = 0 };
#endif
static void egi_turn_bytes(void *data, int64_t n, int size) {
    for (unsigned char *p = (unsigned char *)data; n > 0; n--, p += size)
        for (int i = 0, j = size - 1; i < j; i++, j--) { unsigned char c = p[i]; p[i] = p[j]; p[j] = c; }
}
static int64_t egi_widened(int stored, const void *p) {
    switch (stored) {
        case EGI_STORED_I1: return *(const signed char *)p;
        case EGI_STORED_I2: { int16_t v; memcpy(&v, p, 2); return v; }
        case EGI_STORED_U2: { uint16_t v; memcpy(&v, p, 2); return v; }
        case EGI_STORED_U4: { uint32_t v; memcpy(&v, p, 4); return v; }
        default: { uint64_t v; memcpy(&v, p, 8); return v > INT64_MAX ? -1 : (int64_t)v; }
    }
}

// A stretch of a file as a stream, inflated where it is compressed.
typedef struct egi_stream {
    egi_source *source;
    int64_t left, given, size;     // bytes in the file that are still to be read; bytes given; bytes there will be
    uint32_t crc;                  // of what was given
    bool inflates;
#ifdef EAGER_ZLIB
    z_stream z;
    unsigned char chunk[1 << 14];
#endif
} egi_stream;
static bool egi_stream_fail(const egi_stream *s, const char *what) {
    return egi_file_fail(s->source->function, s->source->path, s->source->offset, "%s", what);
}
static bool egi_stream_plain(egi_stream *s, void *to, int64_t n) {
    if (n > s->left) return egi_stream_fail(s, "truncated: the data ends too early");
    int64_t got = egi_source_read(s->source, to, n);
    s->left -= n;
    return got == n || (got >= 0 && egi_stream_fail(s, "truncated: the file ends too early"));
}
// All n bytes, or an error.
static bool egi_stream_read(egi_stream *s, void *to, int64_t n) {
    bool ok = true;
    if (!s->inflates) ok = egi_stream_plain(s, to, n);
#ifdef EAGER_ZLIB
    int64_t done = 0;
    while (s->inflates && ok && done < n) {
        unsigned want = (unsigned)(n - done < 1 << 28 ? n - done : 1 << 28);
        if (!s->z.avail_in && s->left > 0) {
            int64_t part = s->left < (int64_t)sizeof s->chunk ? s->left : (int64_t)sizeof s->chunk;
            if (!(ok = egi_stream_plain(s, s->chunk, part))) break;
            s->z.next_in = s->chunk;
            s->z.avail_in = (uInt)part;
        }
        s->z.next_out = (Bytef *)to + done;
        s->z.avail_out = want;
        int code = inflate(&s->z, Z_NO_FLUSH);
        done += want - s->z.avail_out;
        if (done < n && code != Z_OK) ok = egi_stream_fail(s, code == Z_STREAM_END ? "truncated: the compressed data ends too early" :
                                                              code == Z_BUF_ERROR && !s->left ? "truncated compressed data" :
                                                              code == Z_MEM_ERROR ? "zlib has no memory" : "broken compressed data");
    }
#endif
    if (!ok) return false;
    s->crc = egi_crc(EGI_CRC32, s->crc, to, n);
    s->given += n;
    return true;
}
// The tensor that comes next in the stream. Its size has been held against the file's. Not owned by a scope.
static eg_tensor *egi_stream_tensor(egi_stream *s, int stored, const eg_shape *shape, bool turned) {
    eg_dtype dtype = egi_stored[stored].dtype;
    eg_backend *backend = egi_backend_here();
    const char *function = s->source->function;
    eg_tensor *x = egi_new("load", backend, dtype, shape);
    if (!x || !x->size) return x;
    int64_t n = x->size, bytes = n * egi_stored[stored].size;
    bool direct = backend->host_reads && stored < EGI_DTYPES;
    char *data = direct ? x->data : (char *)egi_alloc((size_t)bytes);
    bool ok = (data || egi_no_memory(function, bytes)) && egi_stream_read(s, data, bytes);
    if (ok && (turned != (EGI_BIG != 0))) egi_turn_bytes(data, n, egi_stored[stored].size);
    for (int64_t i = 0; ok && dtype == EG_BOOL && i < n; i++) data[i] = data[i] != 0;
    if (ok && stored >= EGI_DTYPES) {
        int element = egi_dtypes[dtype].size, from = egi_stored[stored].size;
        char *wide = (char *)egi_alloc((size_t)(n * element));
        ok = wide || egi_no_memory(function, n * element);
        for (int64_t i = 0; ok && i < n; i++) {
            int64_t v = egi_widened(stored, data + i * from);
            if (v < 0 && stored == EGI_STORED_U8) ok = egi_stream_fail(s, "a uint64 value is too large for int64");
            else egi_store_int(dtype, wide + i * element, v);
        }
        if (ok) ok = backend->write(backend, x->data, wide, n * element);
        egi_free(wide);
    } else if (ok && !direct) ok = backend->write(backend, x->data, data, bytes);
    if (!direct) egi_free(data);
    if (ok) return x;
    egi_object_release(&x->object);
    return NULL;
}
// Element count times size, all of it checked.
static bool egi_stored_bytes(const eg_shape *shape, int stored, int64_t *bytes) {
    *bytes = egi_stored[stored].size;
    for (int i = 0; i < shape->rank; i++) if (shape->dims[i] == 0) { *bytes = 0; return true; }
    for (int i = 0; i < shape->rank; i++) if (!egi_checked_product(*bytes, shape->dims[i], bytes)) return false;
    return *bytes / egi_stored[stored].size <= INT64_MAX / 8;                  // a widened one must be countable too
}

// ---- .npy: a Python literal, then the elements

enum { EGI_NPY_MOST = 10000 };                                       // NumPy reads no longer header
typedef struct egi_npy { const char *at, *end, *start; int64_t base; egi_stream *s; } egi_npy;
static bool egi_npy_fault(const egi_npy *p, const char *what) {
    return egi_file_fail(p->s->source->function, p->s->source->path, p->s->inflates ? -1 : p->base + (p->at - p->start), "%s", what);
}
static void egi_npy_blank(egi_npy *p) { while (p->at < p->end && strchr(" \t\r\n\f", *p->at) && *p->at) p->at++; }
static bool egi_npy_sign(egi_npy *p, char c) {
    egi_npy_blank(p);
    if (p->at >= p->end || *p->at != c) return false;
    p->at++;
    return true;
}
static bool egi_npy_word(egi_npy *p, const char *word) {
    size_t n = strlen(word);
    egi_npy_blank(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}
static bool egi_npy_string(egi_npy *p, char *text, size_t capacity) {
    egi_npy_blank(p);
    if (p->at >= p->end || (*p->at != '\'' && *p->at != '"')) return false;
    const char *end = (const char *)memchr(p->at + 1, *p->at, (size_t)(p->end - p->at - 1));
    if (!end || (size_t)(end - p->at) > capacity || memchr(p->at, '\\', (size_t)(end - p->at))) return false;
    memcpy(text, p->at + 1, (size_t)(end - p->at - 1));
    text[end - p->at - 1] = 0;
    p->at = end + 1;
    return true;
}
static bool egi_npy_shape(egi_npy *p, eg_shape *shape) {
    if (!egi_npy_sign(p, '(')) return egi_npy_fault(p, "broken .npy header: the shape is no tuple");
    for (shape->rank = 0; !egi_npy_sign(p, ')'); shape->rank++) {
        int64_t v = 0;
        egi_npy_blank(p);
        const char *start = p->at;
        if (p->at < p->end && *p->at == '-') return egi_npy_fault(p, "a negative dimension");
        for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
            if (__builtin_mul_overflow(v, (int64_t)10, &v) || __builtin_add_overflow(v, (int64_t)(*p->at - '0'), &v)) return egi_npy_fault(p, "a dimension does not fit 64 bits");
        if (p->at == start) return egi_npy_fault(p, "broken .npy header: a dimension is no number");
        if (p->at < p->end && *p->at == 'L') p->at++;                // Python 2 wrote long integers so
        if (shape->rank == EG_MAX_RANK) return egi_npy_fault(p, "more than 8 dimensions (EG_MAX_RANK)");
        shape->dims[shape->rank] = v;
        if (!egi_npy_sign(p, ',')) {
            if (shape->rank == 0 || !egi_npy_sign(p, ')')) return egi_npy_fault(p, "broken .npy header: the shape is no tuple");
            shape->rank++;
            break;
        }
    }
    return true;
}
static bool egi_npy_descr(egi_npy *p, int *stored, bool *turned) {
    char text[32];
    egi_npy_blank(p);
    if (p->at < p->end && *p->at == '[') return egi_npy_fault(p, "a structured dtype; save each field as an array of its own");
    if (!egi_npy_string(p, text, sizeof text)) return egi_npy_fault(p, "broken .npy header: descr is no text");
    *turned = text[0] == '>';
    const char *code = strchr("<>|=", text[0]) && text[0] ? text + 1 : text;
    for (*stored = 0; *stored < EGI_STORED; ++*stored) if (egi_stored[*stored].npy && !strcmp(egi_stored[*stored].npy, code)) break;
    if (*stored < EGI_STORED) return true;
    if (*code == 'O') return egi_npy_fault(p, "dtype object: Python objects are not read");
    char what[160];
    snprintf(what, sizeof what, "dtype '%s' is none that can be read (%s)", text, EGI_READABLE);
    return egi_npy_fault(p, what);
}
// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } in any order, each once, nothing else.
static bool egi_npy_header(egi_npy *p, int *stored, bool *turned, bool *fortran, eg_shape *shape) {
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char key[24];
    unsigned seen = 0;
    if (!egi_npy_sign(p, '{')) return egi_npy_fault(p, "broken .npy header: no dictionary");
    while (!egi_npy_sign(p, '}')) {
        int k = 0;
        egi_npy_blank(p);
        const char *start = p->at;
        bool quoted = egi_npy_string(p, key, sizeof key);
        while (quoted && k < 3 && strcmp(keys[k], key) != 0) k++;
        if (!quoted || k == 3 || (seen & 1u << k)) {
            p->at = start;
            return egi_npy_fault(p, !quoted || k == 3 ? "a .npy header with a key that is not descr, fortran_order or shape" : "a .npy header with a key twice");
        }
        seen |= 1u << k;
        if (!egi_npy_sign(p, ':')) return egi_npy_fault(p, "broken .npy header: a ':' is missing");
        if (k == 0 && !egi_npy_descr(p, stored, turned)) return false;
        if (k == 1 && !(*fortran = egi_npy_word(p, "True")) && !egi_npy_word(p, "False")) return egi_npy_fault(p, "broken .npy header: fortran_order is neither True nor False");
        if (k == 2 && !egi_npy_shape(p, shape)) return false;
        if (!egi_npy_sign(p, ',') && (egi_npy_blank(p), p->at >= p->end || *p->at != '}')) return egi_npy_fault(p, "broken .npy header: a ',' or '}' is missing");
    }
    egi_npy_blank(p);
    if (p->at < p->end) return egi_npy_fault(p, "broken .npy header: more stands behind the dictionary");
    if (seen == 7) return true;
    char what[80];
    snprintf(what, sizeof what, "a .npy header without %s", keys[seen & 1 ? seen & 2 ? 2 : 1 : 0]);
    return egi_npy_fault(p, what);
}
// In rows although it was written in columns: the same bytes are those of the transposed array.
static eg_tensor *egi_from_columns(eg_tensor *x) {
    eg_tensor *view = egi_alias(x->op, x), *rows = NULL;
    for (int i = 0; view && i < x->rank; i++) {
        view->dims[i] = x->dims[x->rank - 1 - i];
        view->strides[i] = x->strides[x->rank - 1 - i];
    }
    if (view) {
        egi_find_contiguous(view);
        rows = egi_contiguous(view);
        egi_object_release(&view->object);
    }
    egi_object_release(&x->object);
    return rows;
}
// Not owned by a scope.
static eg_tensor *egi_npy_read(egi_stream *s) {
    unsigned char magic[12];
    char header[EGI_NPY_MOST + 1];
    int stored = 0;
    bool turned = false, fortran = false;
    eg_shape shape = { 0, { 0 } };
    if (s->size < 10) { egi_stream_fail(s, "no .npy file: shorter than its shortest header"); return NULL; }
    if (!egi_stream_read(s, magic, 8)) return NULL;
    if (memcmp(magic, "\x93NUMPY", 6) != 0) { s->source->offset -= s->inflates ? 0 : 8; egi_stream_fail(s, "no .npy file: it does not begin with \\x93NUMPY"); return NULL; }
    if (magic[6] < 1 || magic[6] > 3 || magic[7] != 0) { egi_file_fail(s->source->function, s->source->path, -1, ".npy version %d.%d; 1.0, 2.0 and 3.0 are read", magic[6], magic[7]); return NULL; }
    int bytes = magic[6] == 1 ? 2 : 4;
    if (!egi_stream_read(s, magic + 8, bytes)) return NULL;
    int64_t length = (int64_t)egi_little(magic + 8, bytes), data;
    if (length > EGI_NPY_MOST) { egi_stream_fail(s, "a .npy header of more than 10000 bytes"); return NULL; }
    egi_npy p = { header, header + length, header, s->source->offset, s };
    if (!egi_stream_read(s, header, length) || !egi_npy_header(&p, &stored, &turned, &fortran, &shape)) return NULL;
    if (!egi_stored_bytes(&shape, stored, &data)) { egi_stream_fail(s, "a shape with more bytes than 64 bits count"); return NULL; }
    if (data > s->size - s->given) {
        egi_file_fail(s->source->function, s->source->path, s->inflates ? -1 : s->source->offset, "truncated: shape %s needs %lld bytes, but %lld follow", egi_show(shape), (long long)data,
                      (long long)(s->size - s->given));
        return NULL;
    }
    for (int i = 0, j = shape.rank - 1; fortran && i < j; i++, j--) { int64_t d = shape.dims[i]; shape.dims[i] = shape.dims[j]; shape.dims[j] = d; }
    eg_tensor *x = egi_stream_tensor(s, stored, &shape, turned);
    return x && fortran ? egi_from_columns(x) : x;
}
EAGER_API eg_tensor *eg_load_npy(const char *path) {
    egi_source source;
    eg_tensor *x = NULL;
    if (!egi_source_open(&source, "load_npy", path, false)) return NULL;
    egi_stream *s = (egi_stream *)egi_alloc(sizeof *s);
    if (s) {
        memset(s, 0, sizeof *s);
        s->source = &source;
        s->left = s->size = source.size < 0 ? INT64_MAX : source.size;
        x = source.size < 0 ? (egi_stream_fail(s, "cannot be read: its size is not known (a pipe, or a folder)"), (eg_tensor *)NULL) : egi_npy_read(s);
        egi_free(s);
    } else egi_no_memory("load_npy", (int64_t)sizeof *s);
    egi_source_close(&source);
    return egi_own(x);
}
// A header whose length makes the data begin at a multiple of 64.
static int egi_npy_write_header(char *text, const eg_tensor *x) {
    int at = 10;
    memcpy(text, "\x93NUMPY\1\0", 8);
    const char *code = egi_stored[x->dtype].npy;
    at += snprintf(text + at, 128, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", code[1] == '1' ? '|' : '<', code);
    for (int i = 0; i < x->rank; i++) at += snprintf(text + at, 24, "%s%lld", i ? ", " : "", (long long)x->dims[i]);
    at += snprintf(text + at, 16, x->rank == 1 ? ",), }" : "), }");
    while ((at + 1) % 64) text[at++] = ' ';
    text[at++] = '\n';
    egi_put_little(text + 8, (uint64_t)at - 10, 2);
    return at;
}
enum { EGI_NPY_HEADER = 384 };
static bool egi_npy_writable(const char *function, const char *name, const eg_tensor *x) {
    return egi_stored[x->dtype].npy ||
           egi_fail(EG_ERROR_DTYPE, "eg_%s: NumPy has no bfloat16, which '%.100s' is; eg_cast it, or write a safetensors file", function, name);
}
// The elements in the file's byte order.
static bool egi_sink_elements(egi_sink *s, const void *data, const eg_tensor *x) {
    int size = egi_dtypes[x->dtype].size;
    if (!EGI_BIG) return egi_sink_write(s, data, x->size * size);
    char turned[4096];
    for (int64_t i = 0, part; i < x->size; i += part) {
        part = x->size - i < 512 ? x->size - i : 512;
        memcpy(turned, (const char *)data + i * size, (size_t)(part * size));
        egi_turn_bytes(turned, part, size);
        egi_sink_write(s, turned, part * size);
    }
    return !s->failed;
}
EAGER_API bool (eg_save_npy)(eg_tensor *x, const char *path) {
    char header[EGI_NPY_HEADER];
    egi_sink s;
    if (!egi_alive("save_npy", 0, x) || !egi_npy_writable("save_npy", eg_name_of(x), x)) return false;
    const void *data = eg_data(x);
    if (!data && x->size) return false;
    if (!egi_sink_open(&s, "save_npy", path)) return false;
    egi_sink_write(&s, header, egi_npy_write_header(header, x));
    egi_sink_elements(&s, data, x);
    return egi_sink_close(&s, true);
}

// ---- .npz: a zip file of .npy files

// Sizes and places that 32 bits do not hold stand in an extra field of 64 bit numbers (zip64); all ones stand in their place.
#ifndef EGI_ZIP64_FROM
#define EGI_ZIP64_FROM 0xffffffffu                                   // a test lowers it
#endif
typedef struct egi_member { char *name; int64_t packed, size, local, next; uint32_t crc; int method; } egi_member;
static const char egi_metadata_name[] = "__metadata__";

static void egi_zip_number(egi_text *t, uint64_t v, int bytes) {
    unsigned char b[8];
    egi_put_little(b, v, bytes);
    egi_text_add(t, b, (size_t)bytes);
}
// A member's header: in front of it, or (central) in the list at the end.
static void egi_zip_header(egi_text *t, const egi_member *m, bool central) {
    bool wide = (uint64_t)m->size >= EGI_ZIP64_FROM || (central && (uint64_t)m->local >= EGI_ZIP64_FROM);
    bool ascii = true;
    for (const char *p = m->name; *p; p++) ascii = ascii && !(*p & 0x80);
    egi_zip_number(t, central ? 0x02014b50 : 0x04034b50, 4);
    if (central) egi_zip_number(t, 3 << 8 | 45, 2);                  // made on Unix
    egi_zip_number(t, wide ? 45 : 20, 2);
    egi_zip_number(t, ascii ? 0 : 1 << 11, 2);                       // the name is UTF-8
    egi_zip_number(t, 0, 2);                                         // stored
    egi_zip_number(t, 0, 2);
    egi_zip_number(t, 0x21, 2);                                      // 1980-01-01, so that equal tensors make equal files
    egi_zip_number(t, m->crc, 4);
    egi_zip_number(t, wide ? 0xffffffffu : (uint64_t)m->size, 4);
    egi_zip_number(t, wide ? 0xffffffffu : (uint64_t)m->size, 4);
    egi_zip_number(t, strlen(m->name) + 4, 2);
    egi_zip_number(t, wide ? central ? 28 : 20 : 0, 2);
    if (central) {
        egi_zip_number(t, 0, 2 + 2 + 2);
        egi_zip_number(t, (uint64_t)0600 << 16, 4);
        egi_zip_number(t, wide ? 0xffffffffu : (uint64_t)m->local, 4);
    }
    egi_text_string(t, m->name);
    egi_text_add(t, ".npy", 4);
    if (!wide) return;
    egi_zip_number(t, 1, 2);
    egi_zip_number(t, central ? 24 : 16, 2);
    egi_zip_number(t, (uint64_t)m->size, 8);
    egi_zip_number(t, (uint64_t)m->size, 8);
    if (central) egi_zip_number(t, (uint64_t)m->local, 8);
}
static void egi_zip_end(egi_text *t, int64_t count, int64_t start, int64_t size) {
    bool wide = (uint64_t)start >= EGI_ZIP64_FROM || (uint64_t)size >= EGI_ZIP64_FROM || count >= 0xffff;
    if (wide) {
        egi_zip_number(t, 0x06064b50, 4);
        egi_zip_number(t, 44, 8);
        egi_zip_number(t, (uint64_t)45 << 16 | 45, 4);
        egi_zip_number(t, 0, 8);
        egi_zip_number(t, (uint64_t)count, 8);
        egi_zip_number(t, (uint64_t)count, 8);
        egi_zip_number(t, (uint64_t)size, 8);
        egi_zip_number(t, (uint64_t)start, 8);
        egi_zip_number(t, 0x07064b50, 4);
        egi_zip_number(t, 0, 4);
        egi_zip_number(t, (uint64_t)(start + size), 8);
        egi_zip_number(t, 1, 4);
    }
    egi_zip_number(t, 0x06054b50, 4);
    egi_zip_number(t, 0, 4);
    egi_zip_number(t, wide ? 0xffff : (uint64_t)count, 2);
    egi_zip_number(t, wide ? 0xffff : (uint64_t)count, 2);
    egi_zip_number(t, wide ? 0xffffffffu : (uint64_t)size, 4);
    egi_zip_number(t, wide ? 0xffffffffu : (uint64_t)start, 4);
    egi_zip_number(t, 0, 2);
}
// The texts as JSON; empty where there are none.
static void egi_notes_json(egi_text *t, const eg_archive *a) {
    for (int64_t i = 0; i < a->n_notes; i++) {
        egi_text_add(t, i ? "," : "{", 1);
        egi_text_json(t, a->notes[i].key);
        egi_text_add(t, ":", 1);
        egi_text_json(t, a->notes[i].value);
    }
    if (a->n_notes) egi_text_add(t, "}", 1);
}
static bool egi_notes_read(const char *function, eg_archive *a, const egi_json *j, int64_t object) {
    int64_t at = object + 1;
    for (int64_t i = 0; i < j->nodes[object].count; i++, at = j->nodes[at + 1].next) {
        const char *value = egi_json_string(j, at + 1);
        if (!value) return egi_file_fail(function, j->path, j->base + j->nodes[at + 1].offset, "metadata '%.100s' is no text", j->nodes[at].string);
        if (!eg_archive_set_text(a, j->nodes[at].string, value)) return false;
    }
    return true;
}
static bool egi_npz_write(egi_sink *s, egi_text *list, char *name, eg_tensor *x) {
    char header[EGI_NPY_HEADER];
    egi_text head;
    egi_member m;
    memset(&head, 0, sizeof head);
    memset(&m, 0, sizeof m);
    if (!egi_npy_writable("save_npz", name, x)) return false;
    if (strlen(name) > 65000) return egi_fail(EG_ERROR_ARGUMENT, "eg_save_npz: a name of %lld bytes; a zip file has no room for it", (long long)strlen(name));
    const void *data = eg_data(x);
    if (!data && x->size) return false;
    int length = egi_npy_write_header(header, x);
    int64_t bytes = x->size * egi_dtypes[x->dtype].size;
    m.name = name;
    m.size = length + bytes;
    m.local = s->offset;
    m.crc = egi_crc(EGI_CRC32, egi_crc(EGI_CRC32, 0, header, length), data, EGI_BIG ? 0 : bytes);
    for (int64_t i = 0; EGI_BIG && i < x->size; i++) {
        char one[8];
        int size = egi_dtypes[x->dtype].size;
        memcpy(one, (const char *)data + i * size, (size_t)size);
        egi_turn_bytes(one, 1, size);
        m.crc = egi_crc(EGI_CRC32, m.crc, one, size);
    }
    egi_zip_header(&head, &m, false);
    egi_zip_header(list, &m, true);
    bool ok = (!head.failed && !list->failed) || egi_no_memory("save_npz", 0);
    if (ok) ok = egi_sink_write(s, head.data, (int64_t)head.size) && egi_sink_write(s, header, length) && egi_sink_elements(s, data, x);
    egi_text_free(&head);
    return ok;
}
EAGER_API bool eg_save_npz(eg_archive *a, const char *path) {
    egi_sink s;
    egi_text list, notes;
    char metadata[sizeof egi_metadata_name];
    memset(&list, 0, sizeof list);
    memset(&notes, 0, sizeof notes);
    memcpy(metadata, egi_metadata_name, sizeof metadata);
    if (!egi_archive_alive("save_npz", a) || !egi_sink_open(&s, "save_npz", path)) return false;
    bool ok = true;
    int64_t count = a->count + (a->n_notes > 0);
    for (int64_t i = 0; i < a->count && ok; i++) ok = egi_npz_write(&s, &list, a->items[i].name, a->items[i].x);
    if (ok && a->n_notes) {
        eg_scope scope = eg_scope_begin();
        egi_notes_json(&notes, a);
        eg_shape shape = { 1, { (int64_t)notes.size } };
        ok = !notes.failed || egi_no_memory("save_npz", 0);
        eg_tensor *x = ok ? eg_from_data(EG_UINT8, shape, notes.data) : NULL;
        ok = x && egi_npz_write(&s, &list, metadata, x);
        eg_scope_end(scope);
    }
    int64_t start = s.offset, size = (int64_t)list.size;
    if (ok) egi_zip_end(&list, count, start, size);
    ok = ok && (!list.failed || egi_no_memory("save_npz", 0)) && egi_sink_write(&s, list.data, (int64_t)list.size);
    egi_text_free(&list);
    egi_text_free(&notes);
    return egi_sink_close(&s, ok);
}

typedef struct egi_zip { egi_source *source; egi_member *members; int64_t count, capacity; char *text; int64_t start, size, offset; } egi_zip;
static bool egi_zip_fail(const egi_zip *z, int64_t offset, const char *what) { return egi_file_fail(z->source->function, z->source->path, offset, "%s", what); }
static bool egi_zip_bytes(egi_zip *z, int64_t offset, void *to, int64_t n) {
    if (offset < 0 || n < 0 || offset > z->source->size - n) return egi_zip_fail(z, offset, "broken zip file: it points beyond its end");
    if (!egi_source_seek(z->source, offset)) return false;
    int64_t got = egi_source_read(z->source, to, n);
    return got == n || (got >= 0 && egi_zip_fail(z, offset + got, "truncated: the file ends too early"));
}
// The end record says where the list of members is. It is searched from the end, for a comment may follow it.
static bool egi_zip_find(egi_zip *z, int64_t *count) {
    int64_t size = z->source->size, most = size < 65557 ? size : 65557, at = most - 22;
    unsigned char wide[56];
    if (size < 22) return egi_zip_fail(z, -1, "no .npz file: shorter than an empty zip file");
    unsigned char *tail = (unsigned char *)egi_alloc((size_t)most);
    if (!tail) return egi_no_memory(z->source->function, most);
    bool ok = egi_zip_bytes(z, size - most, tail, most);
    while (ok && at >= 0 && !(egi_little(tail + at, 4) == 0x06054b50 && at + 22 + (int64_t)egi_little(tail + at + 20, 2) <= most)) at--;
    if (ok && at < 0) ok = egi_zip_fail(z, -1, "no .npz file: a zip file's end record is missing");
    int64_t end = size - most + at;
    if (ok) {
        *count = (int64_t)egi_little(tail + at + 10, 2);
        z->size = (int64_t)egi_little(tail + at + 12, 4);
        z->start = (int64_t)egi_little(tail + at + 16, 4);
        if (egi_little(tail + at + 4, 4) != 0 || egi_little(tail + at + 8, 2) != egi_little(tail + at + 10, 2)) ok = egi_zip_fail(z, end, "a zip file in several parts");
    }
    egi_free(tail);
    if (ok && (*count == 0xffff || z->size == 0xffffffff || z->start == 0xffffffff) && end >= 20) {
        if (!egi_zip_bytes(z, end - 20, wide, 20)) return false;
        if (egi_little(wide, 4) == 0x07064b50) {
            end = (int64_t)egi_little(wide + 8, 8);
            if (!egi_zip_bytes(z, end, wide, 56)) return false;
            if (egi_little(wide, 4) != 0x06064b50) return egi_zip_fail(z, end, "broken zip file: its 64 bit end record is missing");
            *count = (int64_t)egi_little(wide + 32, 8);
            z->size = (int64_t)egi_little(wide + 40, 8);
            z->start = (int64_t)egi_little(wide + 48, 8);
        }
    }
    if (ok && (z->size < 0 || z->start < 0 || z->start > end - z->size)) ok = egi_zip_fail(z, end, "broken zip file: its list of members is not in it");
    if (ok && (*count < 0 || *count > z->size / 46)) ok = egi_zip_fail(z, end, "broken zip file: it counts more members than it lists");
    return ok;
}
static bool egi_zip_wide(egi_member *m, const unsigned char *extra, int64_t n) {
    int64_t *const fields[] = { &m->size, &m->packed, &m->local };
    int needed = 0;
    for (int k = 0; k < 3; k++) needed += *fields[k] == 0xffffffff;
    for (int64_t at = 0; needed && at + 4 <= n; at += 4 + (int64_t)egi_little(extra + at + 2, 2)) {
        int64_t bytes = (int64_t)egi_little(extra + at + 2, 2), from = at + 4;
        if (egi_little(extra + at, 2) != 1 || from + bytes > n) continue;
        for (int k = 0; k < 3; k++) {
            if (*fields[k] != 0xffffffff) continue;
            if (from + 8 > at + 4 + bytes) return false;
            *fields[k] = (int64_t)egi_little(extra + from, 8);
            from += 8;
        }
        needed = 0;
    }
    return !needed && m->size >= 0 && m->packed >= 0 && m->local >= 0;
}
static int egi_compare_members(const void *a, const void *b) { return strcmp(((const egi_member *)a)->name, ((const egi_member *)b)->name); }
static int egi_compare_places(const void *a, const void *b) {
    const egi_member *x = (const egi_member *)a, *y = (const egi_member *)b;
    return x->local < y->local ? -1 : x->local > y->local;
}
// The list of members. What it says of sizes is held against the file's, so that none of it can ask for more memory than fits.
static bool egi_zip_list(egi_zip *z) {
    int64_t count = 0, at = 0;
    void *members = NULL;
    if (!egi_zip_find(z, &count)) return false;
    unsigned char *list = (unsigned char *)egi_alloc((size_t)z->size + 1);
    if (!list) return egi_no_memory(z->source->function, z->size);
    bool ok = egi_zip_bytes(z, z->start, list, z->size) && (egi_grow(&members, &z->capacity, count + 1, sizeof *z->members) || egi_no_memory(z->source->function, 0));
    z->members = (egi_member *)members;
    for (int64_t i = 0; ok && i < count; i++) {
        const unsigned char *p = list + at;
        egi_member *m = &z->members[z->count];
        if (z->size - at < 46 || egi_little(p, 4) != 0x02014b50) { ok = egi_zip_fail(z, z->start + at, "broken zip file: a member's entry is missing"); break; }
        int64_t name = (int64_t)egi_little(p + 28, 2), extra = (int64_t)egi_little(p + 30, 2), comment = (int64_t)egi_little(p + 32, 2);
        if (z->size - at < 46 + name + extra + comment) { ok = egi_zip_fail(z, z->start + at, "broken zip file: a member's entry is cut off"); break; }
        memset(m, 0, sizeof *m);
        m->method = (int)egi_little(p + 10, 2);
        m->crc = (uint32_t)egi_little(p + 16, 4);
        m->packed = (int64_t)egi_little(p + 20, 4);
        m->size = (int64_t)egi_little(p + 24, 4);
        m->local = (int64_t)egi_little(p + 42, 4);
        if (!egi_zip_wide(m, p + 46 + name, extra)) ok = egi_zip_fail(z, z->start + at, "broken zip file: a member's 64 bit sizes are missing");
        else if (name >= 4 && !memcmp(p + 46 + name - 4, ".npy", 4)) {
            m->name = (char *)egi_alloc((size_t)name - 3);
            if (!m->name) { ok = egi_no_memory(z->source->function, name); break; }
            memcpy(m->name, p + 46, (size_t)name - 4);
            m->name[name - 4] = 0;
            z->count++;
            if (strlen(m->name) != (size_t)name - 4 || egi_utf8_fault(m->name, name - 4) != name - 4) ok = egi_zip_fail(z, z->start + at + 46, "a name that is not UTF-8");
            else if (egi_little(p + 8, 2) & 1) ok = egi_zip_fail(z, z->start + at, "an encrypted member");
            else if (m->method != 0 && m->method != 8) ok = egi_file_fail(z->source->function, z->source->path, z->start + at, "member '%.100s' is compressed by method %d; stored (0) and deflated (8) are read", m->name, m->method);
            else if (m->method == 0 && m->size != m->packed) ok = egi_zip_fail(z, z->start + at, "broken zip file: a stored member has two sizes");
            // Deflate makes at most 1032 bytes of one.
            else if (m->packed > z->start || m->size / 1032 > m->packed) ok = egi_file_fail(z->source->function, z->source->path, z->start + at, "member '%.100s' says it has %lld bytes, which the file cannot hold", m->name, (long long)m->size);
        }
        at += 46 + name + extra + comment;
    }
    egi_free(list);
    // In the order of the list they are given back; by name none may come twice, by place none may lie in another.
    for (int64_t i = 0; ok && i < z->count; i++) z->members[i].next = i;
    if (z->count) qsort(z->members, (size_t)z->count, sizeof *z->members, egi_compare_members);
    for (int64_t i = 1; ok && i < z->count; i++)
        if (!strcmp(z->members[i - 1].name, z->members[i].name)) ok = egi_file_fail(z->source->function, z->source->path, z->start, "the name '%.200s' stands there twice", z->members[i].name);
    if (z->count) qsort(z->members, (size_t)z->count, sizeof *z->members, egi_compare_places);
    for (int64_t i = 0; ok && i < z->count; i++) {
        int64_t end = i + 1 < z->count ? z->members[i + 1].local : z->start;
        if (z->members[i].local > end || z->members[i].packed + 30 > end - z->members[i].local)
            ok = egi_file_fail(z->source->function, z->source->path, z->members[i].local, "broken zip file: member '%.100s' overlaps what follows", z->members[i].name);
    }
    return ok;
}
// Not owned by a scope.
static eg_tensor *egi_zip_tensor(egi_zip *z, egi_stream *s, const egi_member *m) {
    unsigned char local[30], rest[256];
    eg_tensor *x = NULL;
    if (!egi_zip_bytes(z, m->local, local, 30)) return NULL;
    if (egi_little(local, 4) != 0x04034b50) { egi_zip_fail(z, m->local, "broken zip file: a member is not where the list says"); return NULL; }
    int64_t data = m->local + 30 + (int64_t)egi_little(local + 26, 2) + (int64_t)egi_little(local + 28, 2);
    if (data > z->start - m->packed) { egi_zip_fail(z, m->local, "broken zip file: a member lies beyond its end"); return NULL; }
    if (!egi_source_seek(z->source, data)) return NULL;
    memset(s, 0, sizeof *s);
    s->source = z->source;
    s->left = m->packed;
    s->size = m->size;
    s->inflates = m->method == 8;
#ifdef EAGER_ZLIB
    if (s->inflates && inflateInit2(&s->z, -15) != Z_OK) { egi_no_memory(z->source->function, 0); return NULL; }
#else
    if (s->inflates) {
        egi_file_fail(z->source->function, z->source->path, m->local, "member '%.100s' is compressed; compile with -DEAGER_ZLIB and link with -lz to read it", m->name);
        return NULL;
    }
#endif
    x = egi_npy_read(s);
    // The checksum is that of all bytes, those behind the array too.
    for (int64_t part; x && s->given < s->size;) {
        part = s->size - s->given < (int64_t)sizeof rest ? s->size - s->given : (int64_t)sizeof rest;
        if (!egi_stream_read(s, rest, part)) { egi_object_release(&x->object); x = NULL; }
    }
    if (x && s->crc != m->crc) {
        egi_file_fail(z->source->function, z->source->path, m->local, "member '%.100s' is corrupted: its checksum is %08lx, not %08lx", m->name, (unsigned long)s->crc, (unsigned long)m->crc);
        egi_object_release(&x->object);
        x = NULL;
    }
#ifdef EAGER_ZLIB
    if (s->inflates) inflateEnd(&s->z);
#endif
    return x;
}
static bool egi_npz_take(egi_zip *z, eg_archive *a, const egi_member *m, eg_tensor *x) {
    if (strcmp(m->name, egi_metadata_name) != 0 || x->dtype != EG_UINT8 || x->rank != 1) return egi_archive_put("load_npz", a, m->name, x);
    egi_json j;
    const char *text = (const char *)eg_data(x);
    if (!text || !egi_json_read(&j, "load_npz", z->source->path, -1, text, x->size)) return false;
    bool ok = j.nodes[0].kind == EGI_JSON_OBJECT ? egi_notes_read("load_npz", a, &j, 0) : egi_file_fail("load_npz", z->source->path, m->local, "__metadata__ is no JSON object");
    egi_json_free(&j);
    return ok;
}
static int egi_compare_turns(const void *a, const void *b) {
    const egi_member *x = (const egi_member *)a, *y = (const egi_member *)b;
    return x->next < y->next ? -1 : x->next > y->next;
}
EAGER_API eg_archive *eg_load_npz(const char *path) {
    egi_source source;
    egi_zip z;
    memset(&z, 0, sizeof z);
    if (!egi_source_open(&source, "load_npz", path, false)) return NULL;
    z.source = &source;
    eg_archive *a = eg_archive_new();
    egi_stream *s = a ? (egi_stream *)egi_alloc(sizeof *s) : NULL;
    if (a && !s) egi_no_memory("load_npz", (int64_t)sizeof *s);
    bool ok = s && (source.size >= 0 || egi_zip_fail(&z, -1, "cannot be read: its size is not known (a pipe, or a folder)")) && egi_zip_list(&z);
    if (z.count) qsort(z.members, (size_t)z.count, sizeof *z.members, egi_compare_turns);
    for (int64_t i = 0; ok && i < z.count; i++) {
        eg_tensor *x = egi_zip_tensor(&z, s, &z.members[i]);
        ok = x && egi_npz_take(&z, a, &z.members[i], x);
        if (x) egi_object_release(&x->object);
    }
    for (int64_t i = 0; i < z.count; i++) egi_free(z.members[i].name);
    egi_free(z.members);
    egi_free(s);
    egi_source_close(&source);
    if (ok) return a;
    eg_archive_release(a);
    return NULL;
}

// ---- safetensors: a length, JSON, data

enum { EGI_SAFE_MOST = 100000000 };                                  // bytes of a header
EAGER_API bool eg_save_safetensors(eg_archive *a, const char *path) {
    egi_sink s;
    egi_text head;
    unsigned char length[8];
    int64_t at = 0;
    memset(&head, 0, sizeof head);
    if (!egi_archive_alive("save_safetensors", a)) return false;
    for (int64_t i = 0; i < a->count; i++)
        if (!strcmp(a->items[i].name, egi_metadata_name)) return egi_fail(EG_ERROR_ARGUMENT, "eg_save_safetensors: no tensor can be named %s", egi_metadata_name);
    if (a->n_notes) {
        egi_text_printf(&head, "{\"%s\":", egi_metadata_name);
        egi_notes_json(&head, a);
    } else egi_text_add(&head, "{", 1);
    // The widest elements first: then all of them are aligned.
    bool first = !a->n_notes;
    for (int size = 8; size; size /= 2)
        for (int64_t i = 0; i < a->count; i++) {
            const eg_tensor *x = a->items[i].x;
            if (egi_dtypes[x->dtype].size != size) continue;
            if (!first) egi_text_add(&head, ",", 1);
            first = false;
            egi_text_json(&head, a->items[i].name);
            egi_text_printf(&head, ":{\"dtype\":\"%s\",\"shape\":[", egi_stored[x->dtype].safetensors);
            for (int d = 0; d < x->rank; d++) egi_text_printf(&head, "%s%lld", d ? "," : "", (long long)x->dims[d]);
            egi_text_printf(&head, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + x->size * size));
            at += x->size * size;
        }
    egi_text_add(&head, "}", 1);
    while (!head.failed && head.size % 8) egi_text_add(&head, " ", 1);
    bool ok = !head.failed || egi_no_memory("save_safetensors", 0);
    if (ok && head.size > EGI_SAFE_MOST) ok = egi_fail(EG_ERROR_ARGUMENT, "eg_save_safetensors: a header of %lld bytes; the format ends at %d", (long long)head.size, EGI_SAFE_MOST);
    if (!ok || !egi_sink_open(&s, "save_safetensors", path)) { egi_text_free(&head); return false; }
    egi_put_little(length, head.size, 8);
    egi_sink_write(&s, length, 8);
    egi_sink_write(&s, head.data, (int64_t)head.size);
    egi_text_free(&head);
    for (int size = 8; size; size /= 2)
        for (int64_t i = 0; i < a->count && ok; i++) {
            eg_tensor *x = a->items[i].x;
            if (egi_dtypes[x->dtype].size != size) continue;
            const void *data = eg_data(x);
            ok = (data || !x->size) && egi_sink_elements(&s, data, x);
        }
    return egi_sink_close(&s, ok);
}

typedef struct egi_safe { const char *name; int64_t begin, end, node; int stored; eg_shape shape; } egi_safe;
static int egi_compare_safes(const void *a, const void *b) {
    const egi_safe *x = (const egi_safe *)a, *y = (const egi_safe *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}
static bool egi_safe_fail(const egi_json *j, int64_t node, const char *name, const char *what) {
    return egi_file_fail(j->function, j->path, j->base + j->nodes[node].offset, "tensor '%.200s': %s", name, what);
}
// One tensor's dtype, shape and place, as far as they can be judged alone.
static bool egi_safe_entry(const egi_json *j, int64_t node, int64_t data, egi_safe *t) {
    int64_t dtype = egi_json_member(j, node, "dtype"), shape = egi_json_member(j, node, "shape"), offsets = egi_json_member(j, node, "data_offsets"), bytes;
    char what[160];
    if (j->nodes[node].kind != EGI_JSON_OBJECT) return egi_safe_fail(j, node, t->name, "its entry is no object");
    if (dtype < 0 || shape < 0 || offsets < 0) return egi_safe_fail(j, node, t->name, dtype < 0 ? "without a dtype" : shape < 0 ? "without a shape" : "without data_offsets");
    const char *code = egi_json_string(j, dtype);
    for (t->stored = 0; code && t->stored < EGI_STORED; t->stored++) if (!strcmp(egi_stored[t->stored].safetensors, code)) break;
    if (!code || t->stored == EGI_STORED) {
        snprintf(what, sizeof what, "dtype '%.20s' is none that can be read (%s, bfloat16)", code ? code : "?", EGI_READABLE);
        return egi_safe_fail(j, dtype, t->name, what);
    }
    if (j->nodes[shape].kind != EGI_JSON_ARRAY) return egi_safe_fail(j, shape, t->name, "its shape is no list");
    if (j->nodes[shape].count > EG_MAX_RANK) return egi_safe_fail(j, shape, t->name, "more than 8 dimensions (EG_MAX_RANK)");
    t->shape.rank = (int)j->nodes[shape].count;
    for (int i = 0; i < t->shape.rank; i++) {
        const egi_json_node *d = &j->nodes[shape + 1 + i];
        if (d->kind != EGI_JSON_NUMBER || !d->whole || d->integer < 0) return egi_safe_fail(j, shape, t->name, "a dimension is no size");
        t->shape.dims[i] = d->integer;
    }
    const egi_json_node *place = &j->nodes[offsets];
    if (place->kind != EGI_JSON_ARRAY || place->count != 2 || !place[1].whole || place[1].kind != EGI_JSON_NUMBER || !place[2].whole || place[2].kind != EGI_JSON_NUMBER)
        return egi_safe_fail(j, offsets, t->name, "data_offsets are not two whole numbers");
    t->begin = place[1].integer;
    t->end = place[2].integer;
    if (t->begin < 0 || t->end < t->begin) return egi_safe_fail(j, offsets, t->name, "its data ends before it begins");
    if (t->end > data) return egi_safe_fail(j, offsets, t->name, "its data lies beyond the file's end");
    if (!egi_stored_bytes(&t->shape, t->stored, &bytes)) return egi_safe_fail(j, shape, t->name, "its shape has more bytes than 64 bits count");
    if (bytes == t->end - t->begin) return true;
    snprintf(what, sizeof what, "its shape and dtype need %lld bytes, its data_offsets say %lld", (long long)bytes, (long long)(t->end - t->begin));
    return egi_safe_fail(j, offsets, t->name, what);
}
// The data must be covered by the tensors without holes and overlaps; then they are read in the order of their places.
static bool egi_safe_read(egi_stream *s, const egi_json *j, eg_archive *a, int64_t data) {
    int64_t most = j->nodes[0].count, n = 0, at = 1, end = 0;
    egi_safe *list = (egi_safe *)egi_alloc((size_t)(most + 1) * sizeof *list);
    if (!list) return egi_no_memory(j->function, most * (int64_t)sizeof *list);
    bool ok = true;
    for (int64_t i = 0; ok && i < most; i++, at = j->nodes[at + 1].next) {
        list[n].name = j->nodes[at].string;
        list[n].node = at;
        if (strcmp(list[n].name, egi_metadata_name) != 0) { ok = egi_safe_entry(j, at + 1, data, &list[n]); n++; }
        else if (j->nodes[at + 1].kind != EGI_JSON_OBJECT) ok = egi_safe_fail(j, at + 1, egi_metadata_name, "is no object of texts");
        else ok = egi_notes_read(j->function, a, j, at + 1);
    }
    if (ok && n) qsort(list, (size_t)n, sizeof *list, egi_compare_safes);
    for (int64_t i = 0; ok && i < n; end = list[i++].end)
        if (list[i].begin != end) ok = egi_safe_fail(j, list[i].node, list[i].name, list[i].begin > end ? "a hole in front of its data" : "its data overlaps another's");
    if (ok && end != data) ok = egi_file_fail(j->function, j->path, j->base + (s->source->offset - 8) + end, "%lld bytes behind the last tensor", (long long)(data - end));
    for (int64_t i = 0; ok && i < n; i++) {
        eg_tensor *x = egi_stream_tensor(s, list[i].stored, &list[i].shape, false);
        ok = x && egi_archive_put(j->function, a, list[i].name, x);
        if (x) egi_object_release(&x->object);
    }
    egi_free(list);
    return ok;
}
EAGER_API eg_archive *eg_load_safetensors(const char *path) {
    static const char function[] = "load_safetensors";
    egi_source source;
    unsigned char size[8];
    egi_json j;
    if (!egi_source_open(&source, function, path, false)) return NULL;
    eg_archive *a = eg_archive_new();
    egi_stream *s = a ? (egi_stream *)egi_alloc(sizeof *s) : NULL;
    char *text = NULL;
    bool ok = s != NULL;
    if (a && !s) egi_no_memory(function, (int64_t)sizeof *s);
    if (s) {
        memset(s, 0, sizeof *s);
        s->source = &source;
        s->left = s->size = source.size;
        if (source.size < 0) ok = egi_stream_fail(s, "cannot be read: its size is not known (a pipe, or a folder)");
        else if (source.size < 8) ok = egi_stream_fail(s, "no safetensors file: shorter than 8 bytes");
        else ok = egi_stream_read(s, size, 8);
    }
    uint64_t n = ok ? egi_little(size, 8) : 0;
    if (ok && n > EGI_SAFE_MOST) ok = egi_file_fail(function, path, 0, "a header of %llu bytes; at most %d are allowed", (unsigned long long)n, EGI_SAFE_MOST);
    if (ok && (int64_t)n > source.size - 8) ok = egi_file_fail(function, path, 0, "truncated: a header of %llu bytes, but %lld follow", (unsigned long long)n, (long long)(source.size - 8));
    if (ok) ok = (text = (char *)egi_alloc((size_t)n + 1)) != NULL ? egi_stream_read(s, text, (int64_t)n) : egi_no_memory(function, (int64_t)n);
    if (ok) {
        ok = egi_json_read(&j, function, path, 8, text, (int64_t)n);
        egi_free(text);
        text = NULL;
        if (ok) {
            ok = j.nodes[0].kind == EGI_JSON_OBJECT ? egi_safe_read(s, &j, a, source.size - 8 - (int64_t)n) : egi_file_fail(function, path, 8, "the header is no JSON object");
            egi_json_free(&j);
        }
    }
    egi_free(text);
    egi_free(s);
    egi_source_close(&source);
    if (ok) return a;
    eg_archive_release(a);
    return NULL;
}

static bool egi_ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}
enum { EGI_FORMAT_NPZ, EGI_FORMAT_SAFETENSORS, EGI_FORMATS };
static const struct { const char *ending; bool (*save)(eg_archive *, const char *); eg_archive *(*load)(const char *); } egi_formats[] = {
    { ".npz", eg_save_npz, eg_load_npz }, { ".safetensors", eg_save_safetensors, eg_load_safetensors }
};
static int egi_format_of(const char *function, const char *path) {
    if (!path) { egi_fail(EG_ERROR_ARGUMENT, "eg_%s: the path is NULL", function); return -1; }
    for (int f = 0; f < EGI_FORMATS; f++) if (egi_ends_with(path, egi_formats[f].ending)) return f;
    egi_file_fail(function, path, -1, "its ending is neither .safetensors nor .npz");
    return -1;
}
EAGER_API bool eg_archive_save(eg_archive *a, const char *path) {
    int f = egi_format_of("archive_save", path);
    return f >= 0 && egi_formats[f].save(a, path);
}
EAGER_API eg_archive *eg_archive_load(const char *path) {
    int f = egi_format_of("archive_load", path);
    return f >= 0 ? egi_formats[f].load(path) : NULL;
}

// ---- weights

// What does not fit, of each kind how many and the first few by name, so that one error tells all.
typedef struct egi_misfits { egi_text names[3]; int64_t count[3]; } egi_misfits;
enum { EGI_MISSING, EGI_UNEXPECTED, EGI_MISSHAPEN, EGI_MISFITS_SHOWN = 6 };
static void egi_misfit(egi_misfits *m, int kind, const char *name, const char *more) {
    int64_t n = m->count[kind]++;
    if (n < EGI_MISFITS_SHOWN) egi_text_printf(&m->names[kind], "%s'%.80s'%.100s", n ? ", " : "", name, more);
    else if (n == EGI_MISFITS_SHOWN) egi_text_string(&m->names[kind], " ...");
}
static void egi_misfit_shape(egi_misfits *m, const char *name, const eg_tensor *here, const eg_tensor *there) {
    char more[100];
    snprintf(more, sizeof more, " (%s %s here, %s %s there)", egi_dtypes[here->dtype].name, egi_show(egi_shape(here)), egi_dtypes[there->dtype].name, egi_show(egi_shape(there)));
    egi_misfit(m, EGI_MISSHAPEN, name, more);
}
// True if all fits; the texts go.
static bool egi_all_fits(const char *function, const char *path, eg_error_code code, egi_misfits *m) {
    static const char *const words[] = { "missing", "unexpected", "of another shape" };
    egi_text all;
    memset(&all, 0, sizeof all);
    bool ok = true;
    for (int k = 0; k < 3; k++) {
        if (m->count[k]) egi_text_printf(&all, "%s%lld %s: %s", ok ? "" : "; ", (long long)m->count[k], words[k], m->names[k].data ? m->names[k].data : "?");
        ok = ok && !m->count[k];
        egi_text_free(&m->names[k]);
    }
    if (!ok) egi_fail(code, "eg_%s: %s%s%s", function, path ? path : "", path ? ": " : "", all.data ? all.data : "names do not fit");
    egi_text_free(&all);
    return ok;
}

// The weights of a layer with their paths. The list goes by egi_weights_free.
typedef struct egi_weights { egi_weight_walk walk; const char *function; egi_item *items; int64_t count, capacity; } egi_weights;
static bool egi_visit_collect(egi_weight_walk *walk, egi_part *p) {
    egi_weights *w = (egi_weights *)(void *)walk;
    void *items = w->items;
    char *name = egi_copy_string(walk->path, "");
    if (!name || !egi_grow(&items, &w->capacity, w->count + 1, sizeof *w->items)) { egi_free(name); return egi_no_memory(w->function, 0); }
    w->items = (egi_item *)items;
    w->items[w->count].name = name;
    w->items[w->count++].x = p->variable;
    return true;
}
static void egi_weights_free(egi_weights *w) {
    for (int64_t i = 0; i < w->count; i++) egi_free(w->items[i].name);
    egi_free(w->items);
}
static bool egi_weights_now(const char *function, eg_layer *l, egi_weights *w) {
    memset(w, 0, sizeof *w);
    w->function = function;
    w->walk.visit = egi_visit_collect;
    if (egi_walk_from(&w->walk, l)) return true;
    egi_weights_free(w);
    return false;
}
static bool egi_weights_of(const char *function, eg_layer *l, egi_weights *w) {
    memset(w, 0, sizeof *w);
    if (!egi_layer_alive(function, l) || !egi_layer_build_alone(l) || !egi_weights_now(function, l, w)) return false;
    if (w->count || l->built) return true;
    egi_weights_free(w);
    return egi_fail(EG_ERROR_STATE, "eg_%s: layer %.60s has no weights yet; they are made by its first call, or by eg_layer_build", function, l->name);
}
static bool egi_add_weights(const char *function, eg_archive *a, eg_layer *l) {
    egi_weights w;
    bool ok = egi_weights_of(function, l, &w);
    if (!ok) return false;
    for (int64_t i = 0; i < w.count && ok; i++) ok = (eg_archive_add)(a, w.items[i].name, w.items[i].x);
    egi_weights_free(&w);
    return ok;
}
EAGER_API bool eg_archive_add_weights(eg_archive *a, eg_layer *l) { return egi_archive_alive("archive_add_weights", a) && egi_add_weights("archive_add_weights", a, l); }
EAGER_API bool eg_save_weights(eg_layer *l, const char *path) {
    if (egi_format_of("save_weights", path) < 0) return false;
    eg_archive *a = eg_archive_new();
    bool ok = a && egi_add_weights("save_weights", a, l) && eg_archive_save(a, path);
    eg_archive_release(a);
    return ok;
}

// -- finding a weight's values in a file

typedef struct egi_import {
    const char *function, *path;
    eg_archive *archive;
    const eg_load_options *o;
    eg_layer *model;
    bool *used;                          // of the archive's tensors
    int64_t errors;                      // of this thread before it began
} egi_import;

// The tensor of that name behind the prefix, or NULL; whoever asked uses it.
static eg_tensor *egi_import_get(egi_import *m, const char *name) {
    const char *prefix = m->o->prefix ? m->o->prefix : "";
    size_t n = strlen(prefix);
    for (int64_t i = 0; i < m->archive->count; i++) {
        const char *there = m->archive->items[i].name;
        if (strncmp(there, prefix, n) != 0 || strcmp(there + n, name) != 0) continue;
        m->used[i] = true;
        return m->archive->items[i].x;
    }
    return NULL;
}
static eg_tensor *egi_import_get2(egi_import *m, const char *a, const char *b, const char *c) {
    char name[1024];
    int n = snprintf(name, sizeof name, "%s%s%s", a, b, c);
    return n >= 0 && n < (int)sizeof name ? egi_import_get(m, name) : NULL;
}
// Theirs for a path of ours: the longest pair that is it or leads to it. What is left of the path goes to *rest ("" where the pair
// names the weight itself).
static const char *egi_import_pair(const egi_import *m, const char *path, const char **rest) {
    const char *theirs = NULL;
    size_t longest = 0;
    for (const char *const *p = m->o->names; p && p[0] && p[1]; p += 2) {
        size_t n = strlen(p[0]);
        if (strncmp(path, p[0], n) != 0 || (path[n] && path[n] != '/' && n) || (theirs && n < longest)) continue;
        theirs = p[1];
        longest = n;
        *rest = path + n + (path[n] == '/');
    }
    return theirs;
}
// Our own names, and Keras's, where a recurrent layer's weights are those of a cell in it.
static eg_tensor *egi_import_keras(egi_import *m, const char *path) {
    static const char *const cells[] = { "lstm_cell/", "gru_cell/", "simple_rnn_cell/" };
    char base[600];
    const char *rest = path, *theirs = egi_import_pair(m, path, &rest);
    snprintf(base, sizeof base, "%.500s%s", theirs ? theirs : "", theirs && *theirs && *rest ? "/" : "");
    eg_tensor *x = egi_import_get2(m, base, rest, "");
    const char *leaf = strrchr(rest, '/');
    leaf = leaf ? leaf + 1 : rest;
    size_t n = strlen(base);
    for (int i = 0; !x && i < 3 && n + (size_t)(leaf - rest) < sizeof base; i++) {
        snprintf(base + n, sizeof base - n, "%.*s", (int)(leaf - rest), rest);
        x = egi_import_get2(m, base, cells[i], leaf);
    }
    return x;
}

// What PyTorch calls a weight of ours and how its layout becomes ours. Of several rows the first that the file has.
typedef enum egi_layout { EGI_AS_IS, EGI_KERNEL, EGI_GATES, EGI_GATES_BIAS, EGI_THIRD, EGI_RESHAPED } egi_layout;
static const struct { const char *ours, *theirs; egi_layout layout; int third; } egi_torch_names[] = {
    { "query/kernel", ".in_proj_weight", EGI_THIRD, 0 }, { "key/kernel", ".in_proj_weight", EGI_THIRD, 1 }, { "value/kernel", ".in_proj_weight", EGI_THIRD, 2 },
    { "query/kernel", ".q_proj_weight", EGI_KERNEL, 0 }, { "key/kernel", ".k_proj_weight", EGI_KERNEL, 0 }, { "value/kernel", ".v_proj_weight", EGI_KERNEL, 0 },
    { "query/bias", ".in_proj_bias", EGI_THIRD, 0 }, { "key/bias", ".in_proj_bias", EGI_THIRD, 1 }, { "value/bias", ".in_proj_bias", EGI_THIRD, 2 },
    { "attention_output/kernel", ".out_proj.weight", EGI_KERNEL, 0 }, { "attention_output/bias", ".out_proj.bias", EGI_RESHAPED, 0 },
    { "kernel", ".weight", EGI_KERNEL, 0 }, { "kernel", ".weight_ih_l", EGI_GATES, 0 }, { "recurrent_kernel", ".weight_hh_l", EGI_GATES, 0 },
    { "bias", ".bias", EGI_AS_IS, 0 }, { "bias", ".bias_ih_l", EGI_GATES_BIAS, 0 }, { "depthwise_kernel", ".weight", EGI_KERNEL, 0 },
    { "embeddings", ".weight", EGI_AS_IS, 0 }, { "gamma", ".weight", EGI_AS_IS, 0 }, { "scale", ".weight", EGI_AS_IS, 0 }, { "beta", ".bias", EGI_AS_IS, 0 },
    { "moving_mean", ".running_mean", EGI_AS_IS, 0 }, { "moving_variance", ".running_var", EGI_AS_IS, 0 }
};
static eg_tensor *egi_permuted(eg_tensor *x, int a, int b, int c, int d) {
    eg_transpose_options o;
    memset(&o, 0, sizeof o);
    const int axes[4] = { a, b, c, d };
    o.perm.mark = EGI_AXES_MARK;
    o.perm.count = x ? x->rank : 0;
    for (int i = 0; i < o.perm.count; i++) o.perm.axes[i] = axes[i];
    return x ? (eg_transpose)(x, o) : NULL;
}
static eg_tensor *egi_import_rows(eg_tensor *x, int64_t begin, int64_t n) {
    eg_shape from = { x->rank, { begin } }, size = { x->rank, { n } };
    for (int i = 1; i < x->rank; i++) size.dims[i] = x->dims[i];
    return eg_slice(x, from, size);
}
// PyTorch's LSTM has its gates in our order (i f g o). Its GRU has r before z.
static eg_tensor *egi_gates(eg_tensor *x, int64_t units) {
    if (!x || !units || x->dims[0] != 3 * units) return x;
    eg_tensor *parts[3] = { egi_import_rows(x, units, units), egi_import_rows(x, 0, units), egi_import_rows(x, 2 * units, units) };
    return parts[0] && parts[1] && parts[2] ? eg_concat(parts, 3, 0) : NULL;
}
// The image that a Flatten in front of the Dense with this kernel lays out: PyTorch's comes channel by channel. False: there is none.
static bool egi_import_image(const eg_layer *l, const eg_tensor *kernel, eg_shape *image) {
    eg_shape open = { 0, { 0 } };
    for (int64_t i = 0; i < l->n_parts; i++) {
        const eg_layer *child = l->parts[i].child;
        if (l->parts[i].variable == kernel) return false;
        if (!child) continue;
        if (egi_import_image(child, kernel, image)) return true;
        if (!strcmp(child->type->name, "flatten")) open = child->input;
        for (int64_t k = 0; k < child->n_parts; k++) {
            if (child->parts[k].variable == kernel && open.rank > 2) { *image = open; return true; }
            if (child->parts[k].variable && child->parts[k].variable->rank >= 2) open.rank = 0;
        }
    }
    return false;
}
static eg_tensor *egi_torch_kernel(egi_import *m, eg_tensor *x, const eg_tensor *here) {
    eg_shape image;
    int64_t pixels = 1;
    if (x->rank == 3) return egi_permuted(x, 2, 1, 0, 0);
    if (x->rank == 4) {
        eg_shape split = { 4, { 0, here->rank == 4 ? here->dims[3] : 0, x->dims[2], x->dims[3] } };
        bool depthwise = here->rank == 4 && x->dims[1] == 1 && here->dims[3] > 0 && here->dims[2] * here->dims[3] == x->dims[0] && here->dims[2] != 1;
        if (!depthwise) return egi_permuted(x, 2, 3, 1, 0);
        split.dims[0] = here->dims[2];
        return egi_permuted(eg_reshape(x, split), 2, 3, 0, 1);
    }
    if (x->rank != 2) return x;
    if (here->rank == 2 && egi_import_image(m->model, here, &image) && image.dims[image.rank - 1] > 0) {
        for (int i = 1; i < image.rank - 1; i++) pixels *= image.dims[i];
        int64_t channels = image.dims[image.rank - 1];
        eg_shape split = { 3, { x->dims[0], channels, pixels } }, whole = { 2, { pixels * channels, x->dims[0] } };
        if (pixels > 0 && pixels * channels == x->dims[1]) return eg_reshape(egi_permuted(eg_reshape(x, split), 2, 1, 0, 0), whole);
    }
    x = egi_permuted(x, 1, 0, 0, 0);
    return x && here->rank > 2 && x->size == here->size ? eg_reshape(x, egi_shape(here)) : x;
}
// Row k of the table for the module base: the values in our layout, or NULL where the file has them not (or an error is pending).
static eg_tensor *egi_torch_get(egi_import *m, size_t k, const char *base, const char *layer, const eg_tensor *here) {
    bool recurrent = egi_torch_names[k].layout == EGI_GATES || egi_torch_names[k].layout == EGI_GATES_BIAS;
    const char *suffix = recurrent ? layer : "", *theirs = egi_torch_names[k].theirs + (*base ? 0 : 1);
    eg_tensor *x = egi_import_get2(m, base, theirs, suffix), *other = NULL;
    if (!x || !x->rank) return x;
    eg_tensor *hidden = recurrent ? egi_import_get2(m, base, *base ? ".weight_hh_l" : "weight_hh_l", layer) : NULL;
    int64_t units = hidden && hidden->rank == 2 ? hidden->dims[1] : 0, third = x->dims[0] / 3;
    switch (egi_torch_names[k].layout) {
        case EGI_KERNEL: return egi_torch_kernel(m, x, here);
        case EGI_GATES: x = egi_gates(x, units); return x && x->rank == 2 ? egi_permuted(x, 1, 0, 0, 0) : x;
        case EGI_GATES_BIAS: {
            other = egi_import_get2(m, base, *base ? ".bias_hh_l" : "bias_hh_l", layer);
            eg_tensor *both[2] = { egi_gates(x, units), egi_gates(other, units) };
            if (!both[0] || !both[1]) return both[0];
            return here->rank == 2 ? eg_stack(both, 2, 0) : (eg_add)(both[0], both[1]);
        }
        case EGI_THIRD:
            if (x->dims[0] % 3) return x;
            x = egi_import_rows(x, egi_torch_names[k].third * third, third);
            if (x && x->rank == 2) x = egi_permuted(x, 1, 0, 0, 0);
            return x && x->size == here->size ? eg_reshape(x, egi_shape(here)) : x;
        case EGI_RESHAPED: return x->size == here->size ? eg_reshape(x, egi_shape(here)) : x;
        case EGI_AS_IS: default: return x;
    }
}
static eg_tensor *egi_import_torch(egi_import *m, const char *path, const eg_tensor *here) {
    const char *rest = path, *theirs = egi_import_pair(m, path, &rest);
    char base[600], layer[80] = "0";
    if (theirs && !*rest) {                                // a weight that is named itself: its layout follows from its own name
        eg_tensor *x = egi_import_get(m, theirs);
        const char *leaf = strrchr(path, '/');
        return x && !strcmp(leaf ? leaf + 1 : path, "kernel") ? egi_torch_kernel(m, x, here) : x;
    }
    const char *at = theirs ? strchr(theirs, '@') : NULL;
    if (at) snprintf(layer, sizeof layer, "%.60s", at + 1);
    for (size_t k = 0; k < sizeof egi_torch_names / sizeof egi_torch_names[0]; k++) {
        size_t n = strlen(rest), leaf = strlen(egi_torch_names[k].ours);
        if (n < leaf || strcmp(rest + n - leaf, egi_torch_names[k].ours) != 0 || (n > leaf && rest[n - leaf - 1] != '/')) continue;
        size_t between = n > leaf ? n - leaf - 1 : 0;      // "forward_lstm" of "bidirectional/forward_lstm/kernel"
        const char *direction = layer;
        char back[100];
        if (egi_torch_names[k].layout == EGI_GATES || egi_torch_names[k].layout == EGI_GATES_BIAS) {
            const char *last = rest + between;
            while (last > rest && last[-1] != '/') last--;
            bool forward = !strncmp(last, "forward_", 8), backward = !strncmp(last, "backward_", 9);
            if (backward) { snprintf(back, sizeof back, "%s_reverse", layer); direction = back; }
            if (forward || backward) between = last > rest ? (size_t)(last - rest) - 1 : 0;
        }
        int length = theirs ? (int)(at ? at - theirs : (long)strlen(theirs)) : 0;
        snprintf(base, sizeof base, "%.*s%s%.*s", length > 300 ? 300 : length, theirs ? theirs : "", length && between ? "." : "", (int)between, rest);
        for (char *p = base; *p; p++) if (*p == '/') *p = '.';
        eg_tensor *x = egi_torch_get(m, k, base, direction, here);
        if (x || egi_this.errors != m->errors) return x;
    }
    return NULL;
}
// One weight's new values, contiguous, in its dtype and on its device, retained; or a misfit is noted. False: an error.
static bool egi_import_one(egi_import *m, const egi_item *weight, egi_misfits *misfits, eg_tensor **result) {
    eg_tensor *here = weight->x;
    eg_scope scope = eg_scope_begin();
    eg_tensor *x = m->o->torch ? egi_import_torch(m, weight->name, here) : egi_import_keras(m, weight->name);
    bool failed = egi_this.errors != m->errors;
    if (x && (!egi_same_shape(x, here) || egi_is_float(x->dtype) != egi_is_float(here->dtype) || (!egi_is_float(x->dtype) && x->dtype != here->dtype))) {
        if (!m->o->skip_mismatch) egi_misfit_shape(misfits, weight->name, here, x);
        x = NULL;
    } else if (x) {
        if (x->dtype != here->dtype) x = eg_cast(x, (eg_dtype)here->dtype);
        if (x) x = egi_to(x, egi_backend_of(x), egi_backend_of(here));
        *result = x ? egi_holdable(m->function, x) : NULL;
        failed = !*result;
    } else if (!failed && !m->o->partial) egi_misfit(misfits, EGI_MISSING, weight->name, "");
    eg_scope_end(scope);
    return !failed;
}
static bool egi_import_weights(const char *function, const char *path, eg_archive *a, eg_layer *l, const eg_load_options *o) {
    egi_weights w;
    egi_misfits misfits;
    if (!egi_weights_of(function, l, &w)) return false;
    memset(&misfits, 0, sizeof misfits);
    size_t bytes = (size_t)w.count * sizeof(eg_tensor *) + (size_t)a->count + 1;
    eg_tensor **values = (eg_tensor **)egi_alloc(bytes);
    bool ok = values != NULL || egi_no_memory(function, (int64_t)bytes);
    if (values) memset(values, 0, bytes);
    egi_import m = { function, path, a, o, l, (bool *)(values + (values ? w.count : 0)), egi_this.errors };
    eg_recording_pause();
    for (int64_t i = 0; i < w.count && ok; i++) ok = egi_import_one(&m, &w.items[i], &misfits, &values[i]);
    eg_recording_unpause();
    size_t n = o->prefix ? strlen(o->prefix) : 0;
    for (int64_t i = 0; i < a->count && ok && !o->partial; i++) {
        const char *name = a->items[i].name;
        bool counter = o->torch && egi_ends_with(name, "num_batches_tracked");      // of PyTorch's batch normalization; nothing here needs it
        if (!m.used[i] && !counter && !strncmp(name, n ? o->prefix : "", n)) egi_misfit(&misfits, EGI_UNEXPECTED, name, "");
    }
    ok = egi_all_fits(function, path, EG_ERROR_SHAPE, &misfits) && ok;
    for (int64_t i = 0; i < w.count; i++) {
        if (!values || !values[i]) continue;
        if (ok) egi_take(w.items[i].x, values[i]);
        egi_object_release(&values[i]->object);
    }
    egi_free(values);
    egi_weights_free(&w);
    return ok;
}
EAGER_API bool (eg_archive_get_weights)(eg_archive *a, eg_layer *l, eg_load_options o) {
    return egi_archive_alive("archive_get_weights", a) && egi_layer_alive("archive_get_weights", l) && egi_import_weights("archive_get_weights", NULL, a, l, &o);
}
EAGER_API bool (eg_load_weights)(eg_layer *l, const char *path, eg_load_options o) {
    if (!egi_layer_alive("load_weights", l)) return false;
    eg_archive *a = eg_archive_load(path);
    bool ok = a && egi_import_weights("load_weights", path, a, l, &o);
    eg_archive_release(a);
    return ok;
}

//# 32  SUMMARIES AND EXCHANGE -------------------------------------------------
// Idea: event files, tf.Example and graphs are protocol buffers, which are a few
// lines to write; pictures are PNG by a deflate of a screenful. A tensor lent
// is a reference to its buffer. Read first: 31.  Proof: tests/summaries.c,
// tests/exchange.c, tests/check_summaries.sh, tests/check_dlpack.sh

// ---- protocol buffers: a message is fields, each a key (number and kind) and a value; messages nest as strings of bytes

enum { EGI_PB_VARINT = 0, EGI_PB_DOUBLE = 1, EGI_PB_BYTES = 2, EGI_PB_FLOAT = 5 };

static void egi_pb_number(egi_text *t, uint64_t v) {       // seven bits a byte, the lowest first; the top bit says that more follow
    char bytes[10];
    size_t n = 0;
    for (; v > 127; v >>= 7) bytes[n++] = (char)(unsigned char)(v | 128);
    bytes[n++] = (char)v;
    egi_text_add(t, bytes, n);
}
static void egi_pb_key(egi_text *t, int field, int kind) { egi_pb_number(t, (uint64_t)field << 3 | (unsigned)kind); }
static void egi_pb_varint(egi_text *t, int field, int64_t v) {
    egi_pb_key(t, field, EGI_PB_VARINT);
    egi_pb_number(t, (uint64_t)v);
}
static void egi_pb_double_bits(egi_text *t, double v) {
    char bytes[8];
    uint64_t bits;
    memcpy(&bits, &v, 8);
    egi_put_little(bytes, bits, 8);
    egi_text_add(t, bytes, 8);
}
static void egi_pb_double(egi_text *t, int field, double v) {
    egi_pb_key(t, field, EGI_PB_DOUBLE);
    egi_pb_double_bits(t, v);
}
static void egi_pb_float_bits(egi_text *t, float v) {
    char bytes[4];
    uint32_t bits;
    memcpy(&bits, &v, 4);
    egi_put_little(bytes, bits, 4);
    egi_text_add(t, bytes, 4);
}
static void egi_pb_bytes(egi_text *t, int field, const void *data, size_t n) {
    egi_pb_key(t, field, EGI_PB_BYTES);
    egi_pb_number(t, n);
    egi_text_add(t, (const char *)data, n);
}
static void egi_pb_string(egi_text *t, int field, const char *s) { egi_pb_bytes(t, field, s, strlen(s)); }
// Puts a message that is done into the one around it, and ends it.
static void egi_pb_message(egi_text *t, int field, egi_text *inner) {
    if (inner->failed) t->failed = true;
    egi_pb_bytes(t, field, inner->data, inner->size);
    egi_text_free(inner);
}

// Reading: what is left of a message, and the field at its head.
typedef struct egi_pb { const unsigned char *at, *end; } egi_pb;
typedef struct egi_pb_field { int number, kind; uint64_t value; egi_pb inside; } egi_pb_field;
static bool egi_pb_read_number(egi_pb *p, uint64_t *v) {
    *v = 0;
    for (int shift = 0; shift < 64 && p->at < p->end; shift += 7) {
        unsigned char byte = *p->at++;
        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return shift < 63 || byte < 2;
    }
    return false;
}
static bool egi_pb_read(egi_pb *p, egi_pb_field *f) {      // false: it is broken
    uint64_t key;
    if (!egi_pb_read_number(p, &key) || key >> 3 == 0 || key >> 3 > INT32_MAX) return false;
    f->number = (int)(key >> 3);
    f->kind = (int)(key & 7);
    f->inside.at = f->inside.end = NULL;
    f->value = 0;
    if (f->kind == EGI_PB_VARINT) return egi_pb_read_number(p, &f->value);
    if (f->kind == EGI_PB_BYTES) {
        uint64_t n;
        if (!egi_pb_read_number(p, &n) || n > (uint64_t)(p->end - p->at)) return false;
        f->inside.at = p->at;
        f->inside.end = p->at += n;
        return true;
    }
    int bytes = f->kind == EGI_PB_DOUBLE ? 8 : f->kind == EGI_PB_FLOAT ? 4 : 0;
    if (!bytes || p->end - p->at < bytes) return false;
    f->value = egi_little(p->at, bytes);
    p->at += bytes;
    return true;
}

// ---- record files

struct eg_record_writer { int32_t refs; bool open; egi_sink sink; };

EAGER_API eg_record_writer *eg_record_writer_open(const char *path) {
    eg_record_writer *w = (eg_record_writer *)egi_alloc(sizeof *w);
    if (!w) { egi_no_memory("record_writer_open", (int64_t)sizeof *w); return NULL; }
    w->refs = 1;
    w->open = egi_sink_open(&w->sink, "record_writer_write", path);
    if (w->open) return w;
    egi_free(w);
    return NULL;
}
static bool egi_record_writer_alive(const char *function, const eg_record_writer *w) {
    if (!w) return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_%s: the writer is NULL", function) : false;
    return w->open || egi_fail(EG_ERROR_STATE, "eg_%s: the file has been closed", function);
}
EAGER_API bool eg_record_writer_write(eg_record_writer *w, const void *data, int64_t size) {
    egi_text framed;
    memset(&framed, 0, sizeof framed);
    if (!egi_record_writer_alive("record_writer_write", w)) return false;
    if (size < 0 || (!data && size))                       // of a tensor that is not there, as a rule
        return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_record_writer_write: the record is NULL, or of %lld bytes", (long long)size) : false;
    if (w->sink.failed) return egi_fail(EG_ERROR_FILE, "eg_record_writer_write: an earlier record could not be written to %s, so none can follow", w->sink.path);
    bool ok = egi_record_frame(&framed, data, size) ? egi_sink_write(&w->sink, framed.data, (int64_t)framed.size) : egi_no_memory("record_writer_write", size + 16);
    egi_text_free(&framed);
    return ok;
}
EAGER_API bool eg_record_writer_close(eg_record_writer *w) {
    if (!egi_record_writer_alive("record_writer_close", w)) return false;
    w->open = false;
    w->sink.function = "record_writer_close";
    return egi_sink_close(&w->sink, true);
}
EAGER_API eg_record_writer *eg_record_writer_retain(eg_record_writer *w) {
    if (w) __atomic_fetch_add(&w->refs, 1, __ATOMIC_RELAXED);
    return w;
}
EAGER_API void eg_record_writer_release(eg_record_writer *w) {
    if (!w || __atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (w->open) eg_record_writer_close(w);
    egi_free(w);
}

// ---- event files

// Events are not written under a temporary name, for TensorBoard reads while they come; nor are they held back: each is one write.
#ifdef EAGER_NO_STDIO
static void *egi_event_file(const char *folder, egi_text *path) {
    (void)path;
    egi_no_files("summary_writer_open", folder);
    return NULL;
}
static bool egi_event_append(void *file, const char *data, size_t n) { (void)file; (void)data; (void)n; return false; }
static bool egi_event_sync(void *file) { (void)file; return false; }
static void egi_event_close(void *file) { (void)file; }
static const char *egi_event_reason(void) { return "there are no files"; }
static double egi_wall_time(void) { return 0; }
#else
static double egi_wall_time(void) {
#ifdef TIME_UTC
    struct timespec t;
    if (timespec_get(&t, TIME_UTC) == TIME_UTC) return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
#endif
    return (double)time(NULL);
}
// Two writers of one second have two files: the name is the first of its kind that is free.
static void *egi_event_file(const char *folder, egi_text *path) {
    double now = egi_wall_time();
    for (int i = 0; i < 1000; i++) {
        path->size = 0;
        egi_text_printf(path, "%s/events.out.tfevents.%010.0f.eager.%03d", folder, floor(now), i);
        if (path->failed) { egi_no_memory("summary_writer_open", (int64_t)strlen(folder) + 64); return NULL; }
        if (i == 0) egi_make_folders(path->data);
        errno = 0;
        FILE *file = fopen(path->data, "wbx");
        if (file) { setvbuf(file, NULL, _IONBF, 0); return file; }
        if (errno != EEXIST) break;
    }
    egi_file_fail("summary_writer_open", path->data, -1, "cannot be written: %s", egi_reason());
    return NULL;
}
static bool egi_event_append(void *file, const char *data, size_t n) {
    errno = 0;
    return fwrite(data, 1, n, (FILE *)file) == n;
}
static bool egi_event_sync(void *file) {
    errno = 0;
    return fflush((FILE *)file) == 0 && egi_sync((FILE *)file);
}
static void egi_event_close(void *file) { if (file) fclose((FILE *)file); }
static const char *egi_event_reason(void) { return egi_reason(); }
#endif

struct eg_summary_writer {
    int32_t refs;
    bool failed;               // an event may be there in part: nothing can follow it
    void *file;                // NULL once it is closed
    egi_text path;
};
static EGI_THREAD struct { eg_summary_writer *writer; int64_t step, every; bool step_set; } egi_summaries;

static bool egi_writer_alive(const char *function, const eg_summary_writer *w) {
    if (!w) return egi_this.error == EG_OK ? egi_fail(EG_ERROR_NULL, "eg_%s: the writer is NULL", function) : false;
    if (!w->file) return egi_fail(EG_ERROR_STATE, "eg_%s: %s has been closed", function, w->path.data);
    return !w->failed || egi_file_fail(function, w->path.data, -1, "an earlier summary could not be written, so none can follow");
}
// Event: 1 time, 2 step, and one field more. The body is used up.
static bool egi_event_write(const char *function, eg_summary_writer *w, int64_t step, int field, egi_text *body) {
    egi_text event, framed;
    memset(&event, 0, sizeof event);
    memset(&framed, 0, sizeof framed);
    egi_pb_double(&event, 1, egi_wall_time());
    if (step) egi_pb_varint(&event, 2, step);
    egi_pb_message(&event, field, body);
    bool ok = (!event.failed && egi_record_frame(&framed, event.data, (int64_t)event.size)) || egi_no_memory(function, (int64_t)event.size);
    if (ok && !egi_event_append(w->file, framed.data, framed.size)) {
        w->failed = true;
        ok = egi_file_fail(function, w->path.data, -1, "cannot be written: %s", egi_event_reason());
    }
    egi_text_free(&event);
    egi_text_free(&framed);
    return ok;
}
EAGER_API eg_summary_writer *eg_summary_writer_open(const char *folder) {
    egi_text version;
    memset(&version, 0, sizeof version);
    if (!folder || !*folder) return (eg_summary_writer *)eg_raise(EG_ERROR_ARGUMENT, "eg_summary_writer_open: the folder is %s", folder ? "\"\"; write \".\"" : "NULL");
    eg_summary_writer *w = (eg_summary_writer *)egi_alloc(sizeof *w);
    if (!w) { egi_no_memory("summary_writer_open", (int64_t)sizeof *w); return NULL; }
    memset(w, 0, sizeof *w);
    w->refs = 1;
    w->file = egi_event_file(folder, &w->path);
    egi_text_string(&version, "brain.Event:2");            // what readers look for at the start of a file
    if (w->file && egi_event_write("summary_writer_open", w, 0, 3, &version)) return w;
    egi_text_free(&version);
    eg_summary_writer_release(w);
    return NULL;
}
EAGER_API eg_summary_writer *eg_summary_writer_retain(eg_summary_writer *w) {
    if (w) __atomic_fetch_add(&w->refs, 1, __ATOMIC_RELAXED);
    return w;
}
EAGER_API void eg_summary_writer_release(eg_summary_writer *w) {
    if (!w || __atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    egi_event_close(w->file);
    egi_text_free(&w->path);
    egi_free(w);
}
EAGER_API bool eg_summary_writer_flush(eg_summary_writer *w) {
    if (!egi_writer_alive("summary_writer_flush", w)) return false;
    return egi_event_sync(w->file) || egi_file_fail("summary_writer_flush", w->path.data, -1, "cannot be brought to the disk: %s", egi_event_reason());
}
EAGER_API bool eg_summary_writer_close(eg_summary_writer *w) {
    bool ok = eg_summary_writer_flush(w);
    if (w) { egi_event_close(w->file); w->file = NULL; }
    return ok;
}
EAGER_API const char *eg_summary_writer_path(eg_summary_writer *w) { return w ? w->path.data : ""; }

EAGER_API void eg_summary_set_writer(eg_summary_writer *w) {
    eg_summary_writer *former = egi_summaries.writer;
    egi_heap_get();                                        // a thread that has a heap is told when it ends
    egi_summaries.writer = eg_summary_writer_retain(w);
    eg_summary_writer_release(former);
}
EAGER_API void eg_summary_set_step(int64_t step) { egi_summaries.step = step; egi_summaries.step_set = step >= 0; }
EAGER_API int64_t eg_summary_step(void) { return egi_summaries.step_set ? egi_summaries.step : -1; }
EAGER_API bool eg_summary_every(int64_t steps) {
    if (steps < 1) return egi_fail(EG_ERROR_ARGUMENT, "eg_summary_every: every %lld steps is never", (long long)steps);
    egi_summaries.every = steps;
    return true;
}
static bool egi_summary_divides(int64_t step) { return egi_summaries.every < 2 || step % egi_summaries.every == 0; }
EAGER_API bool eg_summary_due(void) { return egi_summaries.writer && egi_summaries.step_set && egi_summary_divides(egi_summaries.step); }

// ---- summaries

enum { EGI_SUMMARY_BUCKETS = 1, EGI_SUMMARY_IMAGES = 2, EGI_SUMMARY_STEP = 4 };       // the options that a kind of summary has
// To whom a summary goes, and at which step: 1; 0: nowhere; -1 and an error.
static int egi_summary_where(const char *function, const char *tag, const eg_summary_options *o, int has, eg_summary_writer **w, int64_t *step) {
    const char *wrong = o->buckets && !(has & EGI_SUMMARY_BUCKETS) ? "buckets" : o->images && !(has & EGI_SUMMARY_IMAGES) ? "images" : o->step && !(has & EGI_SUMMARY_STEP) ? "step" : NULL;
    *w = o->writer ? o->writer : egi_summaries.writer;
    *step = o->step == EG_ZERO ? 0 : o->step ? o->step : egi_summaries.step;
    if (o->canary) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: the options were not zeroed", function), -1;
    if (wrong) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: has no option .%s", function, wrong), -1;
    if (o->buckets < 0 || o->images < 0) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: .%s is negative", function, o->buckets < 0 ? "buckets" : "images"), -1;
    if (!*w) return 0;
    if (!tag) return egi_fail(EG_ERROR_NULL, "eg_%s: the tag is NULL", function), -1;
    if (has & EGI_SUMMARY_STEP) {
        if (!o->step && !egi_summaries.step_set)
            return egi_fail(EG_ERROR_STATE, "eg_%s: no step is set for '%.100s'; eg_summary_set_step(step), or the option .step", function, tag), -1;
        if (*step < 0) return egi_fail(EG_ERROR_ARGUMENT, "eg_%s: step %lld of '%.100s' is negative", function, (long long)*step, tag), -1;
        if (!o->writer && !egi_summary_divides(*step)) return 0;
    }
    return egi_writer_alive(function, *w) ? 1 : -1;
}
// Event 5 Summary { 1 Value { 1 tag, and one field more } }. The value is used up.
static bool egi_summary_write(const char *function, eg_summary_writer *w, int64_t step, const char *tag, egi_text *value) {
    egi_text whole, summary;
    memset(&whole, 0, sizeof whole);
    memset(&summary, 0, sizeof summary);
    egi_pb_string(&whole, 1, tag);
    egi_text_add(&whole, value->data, value->size);        // fields may come in any order, so one message behind another is both
    whole.failed = whole.failed || value->failed;
    egi_text_free(value);
    egi_pb_message(&summary, 1, &whole);
    return egi_event_write(function, w, step, 5, &summary);
}
EAGER_API bool (eg_summary_scalar)(const char *tag, eg_tensor *x, eg_summary_options options) {
    eg_summary_writer *w;
    int64_t step;
    egi_text value;
    int where = egi_summary_where("summary_scalar", tag, &options, EGI_SUMMARY_STEP, &w, &step);
    if (where <= 0) return where == 0;
    if (!egi_alive("summary_scalar", 1, x)) return false;
    if (x->size != 1) return egi_fail(EG_ERROR_SHAPE, "eg_summary_scalar: '%.100s' needs a tensor of one element, not %s", tag, egi_describe(x));
    memset(&value, 0, sizeof value);
    egi_pb_key(&value, 2, EGI_PB_FLOAT);
    egi_pb_float_bits(&value, (float)eg_item(x));
    return egi_summary_write("summary_scalar", w, step, tag, &value);
}

// Buckets of one width from the least element to the greatest, as TensorFlow 2 has them.
EAGER_API bool (eg_summary_histogram)(const char *tag, eg_tensor *x, eg_summary_options options) {
    static const char *const function = "summary_histogram";
    eg_summary_writer *w;
    int64_t step, strange = 0;
    int where = egi_summary_where(function, tag, &options, EGI_SUMMARY_STEP | EGI_SUMMARY_BUCKETS, &w, &step);
    if (where <= 0) return where == 0;
    const char *p = egi_alive(function, 1, x) ? (const char *)eg_data(x) : NULL;
    if (!p) return false;
    double low = 0, high = 0, sum = 0, squares = 0;
    int64_t size = egi_dtypes[x->dtype].size;
    for (int64_t i = 0; i < x->size; i++) {
        double v = egi_load(x->dtype, p + i * size);
        strange += v - v != 0;
        low = i == 0 || v < low ? v : low;
        high = i == 0 || v > high ? v : high;
        sum += v;
        squares += v * v;
    }
    if (strange)
        return egi_fail(EG_ERROR_NONFINITE, "eg_summary_histogram: %lld of the %lld elements of '%.100s' are NaN or infinite", (long long)strange, (long long)x->size, tag);
    int64_t n = x->size == 0 || high == low ? 1 : options.buckets ? options.buckets : 30;
    int64_t *count = (int64_t *)egi_alloc((size_t)n * sizeof *count);
    if (!count) return egi_no_memory(function, n * (int64_t)sizeof *count);
    memset(count, 0, (size_t)n * sizeof *count);
    for (int64_t i = 0; i < x->size; i++) {                // halves, so that no width overflows
        double part = n == 1 ? 0 : (egi_load(x->dtype, p + i * size) / 2 - low / 2) / (high / 2 - low / 2) * (double)n;
        count[part < (double)n ? (int64_t)part : n - 1]++;
    }
    egi_text value, histogram, list;
    memset(&value, 0, sizeof value);
    memset(&histogram, 0, sizeof histogram);
    memset(&list, 0, sizeof list);
    const double facts[5] = { low, high, (double)x->size, sum, squares };
    for (int i = 0; i < 5; i++) egi_pb_double(&histogram, i + 1, facts[i]);
    for (int64_t i = 1; i <= n; i++) egi_pb_double_bits(&list, i == n ? high : low + (high / (double)n - low / (double)n) * (double)i);
    egi_pb_message(&histogram, 6, &list);
    for (int64_t i = 0; i < n; i++) egi_pb_double_bits(&list, (double)count[i]);
    egi_pb_message(&histogram, 7, &list);
    egi_pb_message(&value, 5, &histogram);
    egi_free(count);
    return egi_summary_write(function, w, step, tag, &value);
}
EAGER_API bool (eg_summary_text)(const char *tag, const char *text, eg_summary_options options) {
    eg_summary_writer *w;
    int64_t step;
    egi_text value, part, plugin;
    int where = egi_summary_where("summary_text", tag, &options, EGI_SUMMARY_STEP, &w, &step);
    if (where <= 0) return where == 0;
    if (!text) return egi_fail(EG_ERROR_NULL, "eg_summary_text: the text of '%.100s' is NULL", tag);
    memset(&value, 0, sizeof value);
    memset(&part, 0, sizeof part);
    memset(&plugin, 0, sizeof plugin);
    egi_pb_varint(&part, 1, 7);                            // 8 tensor { 1 dtype: string, 2 shape: (), 8 the string }
    egi_pb_string(&part, 2, "");
    egi_pb_string(&part, 8, text);
    egi_pb_message(&value, 8, &part);
    egi_pb_string(&plugin, 1, "text");                     // 9 metadata { 1 plugin { 1 name }, 4 class: tensor }
    egi_pb_message(&part, 1, &plugin);
    egi_pb_varint(&part, 4, 2);
    egi_pb_message(&value, 9, &part);
    return egi_summary_write("summary_text", w, step, tag, &value);
}

// A GraphDef is a list of nodes; edges are the names of what a node reads. Here a node is a line of the tape, or a slot that no
// line made: a variable or a watched tensor.
static void egi_graph_name(egi_text *t, const eg_tape *tape, int64_t slot, bool edge) {
    const egi_slot *s = &tape->slots[slot];
    if (s->record < 0) {
        const char *name = s->variable && s->variable->name ? s->variable->name : "watched";
        for (const char *c = name; *c; c++) egi_text_add(t, (unsigned char)*c < 128 && (strchr("_./-", *c) || (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z')) ? c : "_", 1);
        egi_text_printf(t, "_%lld", (long long)slot);
        return;
    }
    const egi_line *line = tape->lines[s->record];
    int64_t output = slot - line->slots[line->n];          // the slots of a line's outputs follow each other
    egi_text_printf(t, "%s_%lld", line->op->name, (long long)s->record);
    if (edge && output) egi_text_printf(t, ":%lld", (long long)output);
}
// NodeDef { 1 name, 2 op, 3 inputs, 5 attributes { 1 key, 2 value } }, with the shapes of its outputs: AttrValue { 1 list { 7 shapes } }.
static void egi_graph_node(egi_text *graph, const eg_tape *tape, int64_t slot, const egi_line *line) {
    egi_text node, part, shapes, shape, dim;
    memset(&node, 0, sizeof node);
    memset(&part, 0, sizeof part);
    memset(&shapes, 0, sizeof shapes);
    memset(&shape, 0, sizeof shape);
    memset(&dim, 0, sizeof dim);
    egi_graph_name(&part, tape, slot, false);
    egi_pb_message(&node, 1, &part);
    egi_pb_string(&node, 2, line ? line->op->name : tape->slots[slot].variable ? "variable" : "watched");
    for (int i = 0; line && i < line->n; i++) {
        if (line->slots[i] < 0) continue;                  // the tape does not know where it came from
        egi_graph_name(&part, tape, line->slots[i], true);
        egi_pb_message(&node, 3, &part);
    }
    for (int i = 0; i < (line ? line->n_out : 1); i++) {
        const eg_shape *s = &tape->slots[slot + i].shape;
        for (int k = 0; k < s->rank; k++) {
            egi_pb_varint(&dim, 1, s->dims[k]);
            egi_pb_message(&shape, 2, &dim);
        }
        egi_pb_message(&shapes, 7, &shape);
    }
    egi_pb_message(&part, 1, &shapes);
    egi_pb_string(&shape, 1, "_output_shapes");
    egi_pb_message(&shape, 2, &part);
    egi_pb_message(&node, 5, &shape);
    egi_pb_message(graph, 1, &node);
}
EAGER_API bool (eg_summary_graph)(eg_tape *tape, eg_summary_options options) {
    eg_summary_writer *w;
    int64_t step;
    egi_text graph, versions;
    int where = egi_summary_where("summary_graph", "graph", &options, 0, &w, &step);
    if (where <= 0) return where == 0;
    if (!egi_tape_alive("summary_graph", tape)) return false;
    if (tape->n_lines == 0) return egi_fail(EG_ERROR_TAPE, "eg_summary_graph: %s", tape->used ? "the tape has given its gradients and is empty; ask before that" : "nothing is recorded on the tape yet");
    memset(&graph, 0, sizeof graph);
    memset(&versions, 0, sizeof versions);
    for (int64_t i = 0; i < tape->n_slots; i++) {
        int32_t record = tape->slots[i].record;
        const egi_line *line = record < 0 ? NULL : tape->lines[record];
        if (!line || line->slots[line->n] == i) egi_graph_node(&graph, tape, i, line);
    }
    egi_pb_varint(&versions, 1, 22);
    egi_pb_message(&graph, 4, &versions);
    return egi_event_write("summary_graph", w, 0, 4, &graph);
}

// ---- pictures: PNG written

// Deflate with its fixed codes: a run seen before, in the last 32768 bytes, is written as length and distance.
typedef struct egi_deflate_state { egi_text *out; uint32_t bits; int n; } egi_deflate_state;
static void egi_deflate_bits(egi_deflate_state *d, uint32_t value, int n) {            // lowest bit first
    d->bits |= value << d->n;
    for (d->n += n; d->n >= 8; d->n -= 8, d->bits >>= 8) {
        char byte = (char)(unsigned char)(d->bits & 255);
        egi_text_add(d->out, &byte, 1);
    }
}
static void egi_deflate_code(egi_deflate_state *d, uint32_t code, int n) {              // codes stand highest bit first
    uint32_t turned = 0;
    for (int i = 0; i < n; i++) turned |= (code >> i & 1) << (n - 1 - i);
    egi_deflate_bits(d, turned, n);
}
static void egi_deflate_symbol(egi_deflate_state *d, uint32_t s) {
    if (s < 144) egi_deflate_code(d, 0x30 + s, 8);
    else if (s < 256) egi_deflate_code(d, 0x190 + s - 144, 9);
    else if (s < 280) egi_deflate_code(d, s - 256, 7);
    else egi_deflate_code(d, 0xc0 + s - 280, 8);
}
// Lengths and distances have 2^keep codes to each doubling, and the rest in extra bits.
static uint32_t egi_deflate_slot(uint32_t v, int keep, int *extra) {
    *extra = v >> keep ? 31 - __builtin_clz(v) - keep : 0;
    return ((uint32_t)*extra << keep) + (v >> *extra);
}
static void egi_deflate_match(egi_deflate_state *d, uint32_t length, uint32_t distance) {
    int extra;
    uint32_t slot = egi_deflate_slot(length - 3, 2, &extra);
    if (length == 258) { slot = 28; extra = 0; }           // the longest has a code of its own
    egi_deflate_symbol(d, 257 + slot);
    egi_deflate_bits(d, (length - 3) & ((1u << extra) - 1), extra);
    slot = egi_deflate_slot(distance - 1, 1, &extra);
    egi_deflate_code(d, slot, 5);
    egi_deflate_bits(d, (distance - 1) & ((1u << extra) - 1), extra);
}
static bool egi_zlib_write(egi_text *out, const unsigned char *data, int64_t n) {
    enum { HASHES = 4096 };
    egi_deflate_state d = { out, 0, 0 };
    uint32_t a = 1, b = 0;                                 // Adler-32
    int64_t *last = (int64_t *)egi_alloc(HASHES * sizeof *last);   // where three such bytes stood, plus 1
    if (!last) return false;
    memset(last, 0, HASHES * sizeof *last);
    egi_text_add(out, "\x78\x01", 2);
    egi_deflate_bits(&d, 3, 3);                            // the last block, with fixed codes
    for (int64_t i = 0; i < n;) {
        int64_t length = 0, from = 0;
        if (i + 3 <= n) {
            int64_t *slot = &last[((data[i] * 0x9E5Fu) ^ (data[i + 1] * 0x3D5u) ^ (data[i + 2] * 0x71u)) % HASHES];
            from = *slot - 1;
            *slot = i + 1;
            if (from >= 0 && i - from <= 32768) while (length < 258 && i + length < n && data[from + length] == data[i + length]) length++;
        }
        if (length < 3) { egi_deflate_symbol(&d, data[i++]); continue; }
        egi_deflate_match(&d, (uint32_t)length, (uint32_t)(i - from));
        i += length;
    }
    egi_deflate_symbol(&d, 256);
    egi_deflate_bits(&d, 0, 7);                            // up to a whole byte
    egi_free(last);
    for (int64_t i = 0; i < n; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    char check[4] = { (char)(b >> 8), (char)b, (char)(a >> 8), (char)a };
    egi_text_add(out, check, 4);
    return !out->failed;
}
static void egi_png_big(char *to, uint32_t v) { for (int i = 0; i < 4; i++) to[i] = (char)(unsigned char)(v >> (24 - 8 * i) & 255); }
static void egi_png_chunk(egi_text *t, const char *name, const void *data, size_t n) {
    char number[4];
    egi_png_big(number, (uint32_t)n);
    egi_text_add(t, number, 4);
    egi_text_add(t, name, 4);
    egi_text_add(t, (const char *)data, n);
    egi_png_big(number, egi_crc(EGI_CRC32, egi_crc(EGI_CRC32, 0, name, 4), data, (int64_t)n));
    egi_text_add(t, number, 4);
}
static unsigned char egi_pixel(int dtype, const char *p) {
    double v = egi_load(dtype, p);
    if (dtype == EG_UINT8) return (unsigned char)v;
    return (unsigned char)(v > 0 ? v < 1 ? v * 255 + .5 : 255 : 0);
}
// The elements from p on, (H, W, C), as a PNG file. A row is a byte that says how it was filtered (not at all) and its pixels.
static bool egi_png_write(const char *function, egi_text *png, const char *p, int dtype, int64_t h, int64_t w, int64_t c) {
    static const char colours[5] = { 0, 0, 4, 2, 6 };
    int64_t row = 0, bytes = 0, size = egi_dtypes[dtype].size;
    if (h < 1 || w < 1 || c < 1 || c > 4)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: (%lld, %lld, %lld) is no picture: it takes (H, W) or (H, W, C) with at least a pixel and 1 to 4 channels", function,
                        (long long)h, (long long)w, (long long)c);
    if (!egi_checked_product(w, c, &row) || !egi_checked_product(row + 1, h, &bytes) || bytes > INT32_MAX / 9 * 8 - 64)      // what a chunk holds
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: a picture of %lld x %lld pixels is too large", function, (long long)w, (long long)h);
    unsigned char *rows = (unsigned char *)egi_alloc((size_t)bytes), *at = rows;
    egi_text data;
    memset(&data, 0, sizeof data);
    if (!rows) return egi_no_memory(function, bytes);
    for (int64_t y = 0; y < h; y++) {
        *at++ = 0;
        for (int64_t x = 0; x < row; x++, p += size) *at++ = egi_pixel(dtype, p);
    }
    bool ok = egi_zlib_write(&data, rows, bytes);
    char head[13];
    egi_png_big(head, (uint32_t)w);
    egi_png_big(head + 4, (uint32_t)h);
    memcpy(head + 8, "\10\0\0\0", 5);                      // 8 bits
    head[9] = colours[c];
    egi_text_add(png, "\x89PNG\r\n\x1a\n", 8);
    egi_png_chunk(png, "IHDR", head, 13);
    if (ok) egi_png_chunk(png, "IDAT", data.data, data.size);
    egi_png_chunk(png, "IEND", "", 0);
    ok = ok && !png->failed;
    egi_text_free(&data);
    egi_free(rows);
    return ok || egi_no_memory(function, bytes);
}
// (H, W) or (H, W, C) from axis on (behind that of a batch, where one may be), of a dtype that pictures have.
static bool egi_picture(const char *function, eg_tensor *x, int axis, bool batches, int64_t hwc[3]) {
    if (x->dtype != EG_UINT8 && x->dtype != EG_BOOL && !egi_is_float(x->dtype))
        return egi_fail(EG_ERROR_DTYPE, "eg_%s: a picture is uint8, or floating from 0 to 1, or bool, not %s", function, egi_describe(x));
    if (x->rank - axis != 2 && x->rank - axis != 3)
        return egi_fail(EG_ERROR_SHAPE, "eg_%s: takes a picture (H, W) or (H, W, C)%s, not %s", function, batches ? ", or a batch (N, H, W, C)" : "", egi_describe(x));
    for (int i = 0; i < 3; i++) hwc[i] = axis + i < x->rank ? x->dims[axis + i] : 1;
    return true;
}
static bool egi_encode_png(const char *function, eg_tensor *x, egi_text *png) {
    int64_t hwc[3];
    memset(png, 0, sizeof *png);
    if (!egi_alive(function, 0, x) || !egi_picture(function, x, 0, false, hwc)) return false;
    const char *p = (const char *)eg_data(x);
    return p && egi_png_write(function, png, p, x->dtype, hwc[0], hwc[1], hwc[2]);
}
static eg_tensor *egi_bytes_tensor(const char *op, const void *data, int64_t n) {
    eg_shape shape = { 1, { n } };
    return egi_upload(op, EG_UINT8, &shape, data);
}
EAGER_API eg_tensor *eg_encode_png(eg_tensor *x) {
    egi_text png;
    eg_tensor *bytes = egi_encode_png("encode_png", x, &png) ? egi_bytes_tensor("encode_png", png.data, (int64_t)png.size) : NULL;
    egi_text_free(&png);
    return bytes;
}
EAGER_API bool eg_save_png(const char *path, eg_tensor *x) {
    egi_text png;
    bool ok = egi_encode_png("save_png", x, &png) && egi_file_write("save_png", path, png.data, (int64_t)png.size);
    egi_text_free(&png);
    return ok;
}
// Image { 1 height, 2 width, 3 channels, 4 PNG } as field 4 of a value.
EAGER_API bool (eg_summary_image)(const char *tag, eg_tensor *x, eg_summary_options options) {
    static const char *const function = "summary_image";
    eg_summary_writer *w;
    int64_t step, hwc[3];
    int where = egi_summary_where(function, tag, &options, EGI_SUMMARY_STEP | EGI_SUMMARY_IMAGES, &w, &step);
    if (where <= 0) return where == 0;
    if (!egi_alive(function, 1, x)) return false;
    bool batch = x->rank == 4, ok = egi_picture(function, x, batch, true, hwc);
    const char *p = ok ? (const char *)eg_data(x) : NULL;
    int64_t shown = options.images ? options.images : 3, n = !batch ? 1 : x->dims[0] < shown ? x->dims[0] : shown;
    ok = ok && p;
    for (int64_t i = 0; i < n && ok; i++) {
        egi_text name, value, image, png;
        memset(&name, 0, sizeof name);
        memset(&value, 0, sizeof value);
        memset(&image, 0, sizeof image);
        memset(&png, 0, sizeof png);
        egi_text_string(&name, tag);
        if (batch) egi_text_printf(&name, "/%lld", (long long)i);
        ok = egi_png_write(function, &png, p + i * (hwc[0] * hwc[1] * hwc[2]) * egi_dtypes[x->dtype].size, x->dtype, hwc[0], hwc[1], hwc[2]);
        for (int k = 0; k < 3; k++) egi_pb_varint(&image, k + 1, hwc[k]);
        egi_pb_message(&image, 4, &png);
        egi_pb_message(&value, 4, &image);
        if (name.failed) ok = ok && egi_no_memory(function, (int64_t)strlen(tag) + 20);
        if (ok) ok = egi_summary_write(function, w, step, name.data, &value);
        egi_text_free(&value);
        egi_text_free(&name);
    }
    return ok;
}
static eg_tensor *egi_image_grid(eg_tensor *x, int64_t columns) {
    int64_t n = x->dims[0], h = x->dims[1], w = x->dims[2], c = x->dims[3], rows = (n + columns - 1) / columns;
    eg_pads pads = { 8, { 0, rows * columns - n, 0, 1, 0, 1, 0, 0 } };
    eg_shape cells = { 5, { rows, columns, h + 1, w + 1, c } }, sheet = { 3, { rows * (h + 1), columns * (w + 1), c } }, from = { 3, { 0, 0, 0 } };
    eg_shape inner = { 3, { rows * (h + 1) - 1, columns * (w + 1) - 1, c } };
    eg_pad_options zeros;
    eg_transpose_options order;
    memset(&zeros, 0, sizeof zeros);
    memset(&order, 0, sizeof order);
    order.perm.mark = EGI_AXES_MARK;
    order.perm.count = 5;
    for (int i = 0; i < 5; i++) order.perm.axes[i] = i == 1 ? 2 : i == 2 ? 1 : i;
    x = eg_reshape((eg_transpose)(eg_reshape((eg_pad)(x, pads, zeros), cells), order), sheet);
    return eg_slice(x, from, inner);
}
EAGER_API eg_tensor *eg_image_grid(eg_tensor *x, int64_t columns) {
    if (!egi_alive("image_grid", 0, x)) return NULL;
    if (x->rank != 4 || x->dims[0] < 1) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_image_grid: takes pictures (N, H, W, C), not %s", egi_describe(x));
    if (columns < 1) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_image_grid: %lld columns", (long long)columns);
    if (columns > x->dims[0]) columns = x->dims[0];
    EGI_AS("image_grid", egi_image_grid(x, columns));
}

// ---- pictures: read

EAGER_API eg_tensor *eg_read_file(const char *path) {
    int64_t n = 0;
    char *data = egi_file_read("read_file", path, &n);
    eg_tensor *bytes = data ? egi_bytes_tensor("read_file", data, n) : NULL;
    egi_free(data);
    return bytes;
}
#ifdef EAGER_IMAGE
// libpng and libjpeg leave by longjmp; all that must survive it is here. Rows come into pixels, of `channels` bytes a pixel.
typedef struct egi_decoder {
    const char *function;
    const unsigned char *at, *end;
    unsigned char *pixels, **rows;
    int64_t h, w, c;
    bool memory;
    char message[JMSG_LENGTH_MAX > 200 ? JMSG_LENGTH_MAX : 200];
    struct jpeg_error_mgr jpeg_errors;
    jmp_buf leave;
} egi_decoder;
static bool egi_decode_rows(egi_decoder *d, int64_t most) {     // most: how many pixels the file can hold, at the best of compressions
    if (d->w > most / d->h) {
        snprintf(d->message, sizeof d->message, "it claims to be %lld x %lld pixels, which so few bytes cannot hold", (long long)d->w, (long long)d->h);
        return false;
    }
    d->pixels = (unsigned char *)egi_alloc((size_t)(d->h * d->w * d->c));
    d->rows = (unsigned char **)egi_alloc((size_t)d->h * sizeof *d->rows);
    d->memory = !d->pixels || !d->rows;
    for (int64_t y = 0; y < d->h && !d->memory; y++) d->rows[y] = d->pixels + y * d->w * d->c;
    return !d->memory;
}
static void egi_png_error(png_structp png, png_const_charp message) {
    egi_decoder *d = (egi_decoder *)png_get_error_ptr(png);
    snprintf(d->message, sizeof d->message, "%s", message);
    longjmp(d->leave, 1);
}
static void egi_png_warning(png_structp png, png_const_charp message) { (void)png; (void)message; }
static void egi_png_bytes(png_structp png, png_bytep to, size_t n) {
    egi_decoder *d = (egi_decoder *)png_get_io_ptr(png);
    if (n > (size_t)(d->end - d->at)) png_error(png, "it ends too early");
    memcpy(to, d->at, n);
    d->at += n;
}
static bool egi_decode_png(egi_decoder *d) {
    int64_t file = d->end - d->at;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, egi_png_error, egi_png_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) { png_destroy_read_struct(&png, NULL, NULL); d->memory = true; return false; }
    if (setjmp(d->leave)) { png_destroy_read_struct(&png, &info, NULL); return false; }
    png_set_read_fn(png, d, egi_png_bytes);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_read_info(png, info);
    png_set_expand(png);                                    // palettes, fewer bits than 8, a colour that is transparent
    png_set_strip_16(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    d->h = png_get_image_height(png, info);
    d->w = png_get_image_width(png, info);
    d->c = png_get_channels(png, info);
    bool ok = egi_decode_rows(d, file * 1100 * 8);          // deflate gets to 1032 : 1, and a byte may hold 8 pixels
    if (ok) {
        png_read_image(png, d->rows);
        png_read_end(png, NULL);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return ok;
}
static void egi_jpeg_error(j_common_ptr jpeg) {
    egi_decoder *d = (egi_decoder *)jpeg->client_data;
    jpeg->err->format_message(jpeg, d->message);
    longjmp(d->leave, 1);
}
// libjpeg only warns of data that is broken or cut off, and makes up the rest.
static void egi_jpeg_message(j_common_ptr jpeg, int level) {
    int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)) egi_jpeg_error(jpeg);
}
static bool egi_decode_jpeg(egi_decoder *d, int channels) {
    struct jpeg_decompress_struct jpeg;
    int64_t file = d->end - d->at;
    memset(&jpeg, 0, sizeof jpeg);
    jpeg.err = jpeg_std_error(&d->jpeg_errors);
    jpeg.client_data = d;
    d->jpeg_errors.error_exit = egi_jpeg_error;
    d->jpeg_errors.emit_message = egi_jpeg_message;
    if (setjmp(d->leave)) { jpeg_destroy_decompress(&jpeg); return false; }
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, (unsigned char *)(uintptr_t)d->at, (unsigned long)file);
    jpeg_read_header(&jpeg, TRUE);
    d->c = channels ? channels : jpeg.num_components == 1 ? 1 : 3;
    d->h = jpeg.image_height;
    d->w = jpeg.image_width;
    jpeg.out_color_space = d->c == 1 ? JCS_GRAYSCALE : JCS_RGB;
    bool ok = egi_decode_rows(d, file * 1024);              // a bit or more for each 8 x 8 pixels
    if (ok) {
        jpeg_start_decompress(&jpeg);
        while (jpeg.output_scanline < jpeg.output_height) jpeg_read_scanlines(&jpeg, d->rows + jpeg.output_scanline, jpeg.output_height - jpeg.output_scanline);
        jpeg_finish_decompress(&jpeg);
    }
    jpeg_destroy_decompress(&jpeg);
    return ok;
}
// Grey is copied or weighed, alpha left out or full.
static void egi_convert_pixel(const unsigned char *from, int64_t c, unsigned char *to, int64_t wanted) {
    bool grey = c < 3;
    unsigned char rgb[3] = { from[0], from[grey ? 0 : 1], from[grey ? 0 : 2] };
    if (wanted == 1) to[0] = grey ? from[0] : (unsigned char)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
    else memcpy(to, rgb, 3);
    if (wanted == 4) to[3] = c == 2 || c == 4 ? from[c - 1] : 255;
}
static eg_tensor *egi_decode(const char *function, const unsigned char *bytes, int64_t n, bool jpeg, int channels) {
    egi_decoder *d = (egi_decoder *)egi_alloc(sizeof *d);
    eg_tensor *picture = NULL;
    if (!d) { egi_no_memory(function, (int64_t)sizeof *d); return NULL; }
    memset(d, 0, sizeof *d);
    d->function = function;
    d->at = bytes;
    d->end = bytes + n;
    bool ok = jpeg ? egi_decode_jpeg(d, channels) : egi_decode_png(d);
    if (ok) {
        eg_shape shape = { 3, { d->h, d->w, channels ? channels : d->c } };
        int64_t pixels = d->h * d->w;
        unsigned char *converted = d->pixels;
        if (shape.dims[2] != d->c) converted = (unsigned char *)egi_alloc((size_t)(pixels * channels));
        if (!converted) egi_no_memory(function, pixels * channels);
        for (int64_t i = 0; converted && converted != d->pixels && i < pixels; i++) egi_convert_pixel(d->pixels + i * d->c, d->c, converted + i * channels, channels);
        if (converted) picture = egi_upload(function, EG_UINT8, &shape, converted);
        if (converted != d->pixels) egi_free(converted);
    } else if (d->memory) egi_no_memory(function, d->h * d->w * d->c);
    else egi_fail(EG_ERROR_FILE, "eg_%s: broken %s data: %s", function, jpeg ? "JPEG" : "PNG", d->message);
    egi_free(d->pixels);
    egi_free(d->rows);
    egi_free(d);
    return picture;
}
#else
static eg_tensor *egi_decode(const char *function, const unsigned char *bytes, int64_t n, bool jpeg, int channels) {
    (void)bytes;
    (void)n;
    (void)channels;
    return (eg_tensor *)eg_raise(EG_ERROR_FILE, "eg_%s: reading %s needs %s; compile with -DEAGER_IMAGE and link with -lpng -ljpeg", function, jpeg ? "JPEG" : "PNG",
                                 jpeg ? "libjpeg" : "libpng");
}
#endif
enum { EGI_PNG = 1, EGI_JPEG = 2 };
static eg_tensor *egi_decode_any(const char *function, eg_tensor *x, int kinds, eg_decode_options o) {
    if (!egi_alive(function, 0, x)) return NULL;
    if (o.canary) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: the options were not zeroed", function);
    if (x->dtype != EG_UINT8 || x->rank != 1) return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_%s: takes the bytes of a file, a uint8 vector, not %s", function, egi_describe(x));
    if (o.channels != 0 && o.channels != 1 && o.channels != 3 && (o.channels != 4 || kinds == EGI_JPEG))
        return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: .channels is %d, not 1, 3%s", function, o.channels, kinds == EGI_JPEG ? "" : " or 4");
    const unsigned char *p = (const unsigned char *)eg_data(x);
    if (!p) return NULL;
    bool png = x->size >= 8 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8), jpeg = x->size >= 3 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff;
    if (!(png && kinds & EGI_PNG) && !(jpeg && kinds & EGI_JPEG))
        return (eg_tensor *)eg_raise(EG_ERROR_FILE, "eg_%s: these %lld bytes are no %s file%s", function, (long long)x->size,
                                     kinds == EGI_PNG ? "PNG" : kinds == EGI_JPEG ? "JPEG" : "PNG or JPEG", png ? " but a PNG file" : jpeg ? " but a JPEG file" : "");
    if (jpeg && o.channels == 4) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_%s: .channels is 4, but a JPEG file has no alpha", function);
    return egi_decode(function, p, x->size, jpeg, o.channels);
}
EAGER_API eg_tensor *(eg_decode_png)(eg_tensor *x, eg_decode_options options) { return egi_decode_any("decode_png", x, EGI_PNG, options); }
EAGER_API eg_tensor *(eg_decode_jpeg)(eg_tensor *x, eg_decode_options options) { return egi_decode_any("decode_jpeg", x, EGI_JPEG, options); }
EAGER_API eg_tensor *(eg_decode_image)(eg_tensor *x, eg_decode_options options) { return egi_decode_any("decode_image", x, EGI_PNG | EGI_JPEG, options); }

// ---- tf.Example: Example { 1 Features { 1 entry { 1 name, 2 Feature { 1 bytes, 2 floats or 3 integers { 1 values } } } } }

static bool egi_example_feature(egi_text *features, const char *name, eg_tensor *x) {
    egi_text entry, feature, list, packed;
    const char *p = (const char *)eg_data(x);
    int64_t size = egi_dtypes[x->dtype].size;
    if (!p) return false;
    memset(&entry, 0, sizeof entry);
    memset(&feature, 0, sizeof feature);
    memset(&list, 0, sizeof list);
    memset(&packed, 0, sizeof packed);
    egi_pb_string(&entry, 1, name);
    if (x->dtype == EG_UINT8) egi_pb_bytes(&list, 1, p, (size_t)x->size);
    else {
        for (int64_t i = 0; i < x->size; i++)
            if (egi_is_float(x->dtype)) egi_pb_float_bits(&packed, (float)egi_load(x->dtype, p + i * size));
            else egi_pb_number(&packed, (uint64_t)egi_load_int(x->dtype, p + i * size));
        egi_pb_message(&list, 1, &packed);
    }
    egi_pb_message(&feature, x->dtype == EG_UINT8 ? 1 : egi_is_float(x->dtype) ? 2 : 3, &list);
    egi_pb_message(&entry, 2, &feature);
    egi_pb_message(features, 1, &entry);
    return !features->failed || egi_no_memory("example_serialize", x->size * size);
}
EAGER_API eg_tensor *eg_example_serialize(const char *const *names, eg_tensor *const *values, int n) {
    egi_text features, example;
    bool ok = n >= 0 && (n == 0 || (names && values));
    if (!ok) return (eg_tensor *)eg_raise(EG_ERROR_ARGUMENT, "eg_example_serialize: a list is NULL, or %d features are given", n);
    memset(&features, 0, sizeof features);
    memset(&example, 0, sizeof example);
    for (int i = 0; i < n && ok; i++) {
        ok = names[i] ? egi_alive("example_serialize", i, values[i]) : egi_fail(EG_ERROR_NULL, "eg_example_serialize: name %d is NULL", i);
        ok = ok && egi_example_feature(&features, names[i], values[i]);
    }
    egi_pb_message(&example, 1, &features);
    if (ok && example.failed) ok = egi_no_memory("example_serialize", (int64_t)example.size);
    eg_tensor *bytes = ok ? egi_bytes_tensor("example_serialize", example.data, (int64_t)example.size) : NULL;
    egi_text_free(&example);
    return bytes;
}

// A feature that was found: its values are read twice, once to count them.
typedef struct egi_found { int kind; egi_pb list; } egi_found;      // kind: the field of Feature, 0: none
static const char *egi_feature_kind(int kind) { return kind == 1 ? "bytes" : kind == 2 ? "floats" : kind == 3 ? "integers" : "nothing"; }
// Finds a feature; of two with one name the last counts, as in protocol buffers. False: the record is broken.
static bool egi_example_find(egi_pb example, const char *name, egi_found *found) {
    egi_pb_field features, entry, part, list;
    found->kind = 0;
    while (example.at < example.end) {
        if (!egi_pb_read(&example, &features)) return false;
        if (features.number != 1 || features.kind != EGI_PB_BYTES) continue;
        while (features.inside.at < features.inside.end) {
            if (!egi_pb_read(&features.inside, &entry)) return false;
            if (entry.number != 1 || entry.kind != EGI_PB_BYTES) continue;
            egi_found here = { 0, { NULL, NULL } };
            bool named = *name == 0;                        // a name that is left out is ""
            while (entry.inside.at < entry.inside.end) {
                if (!egi_pb_read(&entry.inside, &part)) return false;
                if (part.kind != EGI_PB_BYTES) continue;
                size_t n = (size_t)(part.inside.end - part.inside.at);
                if (part.number == 1) named = n == strlen(name) && (n == 0 || !memcmp(part.inside.at, name, n));
                if (part.number != 2) continue;
                here.kind = 0;
                while (part.inside.at < part.inside.end) {
                    if (!egi_pb_read(&part.inside, &list)) return false;
                    if (list.kind == EGI_PB_BYTES && list.number <= 3) { here.kind = list.number; here.list = list.inside; }
                }
            }
            if (named) *found = here;
        }
    }
    return true;
}
// Values of a list into to, or only counted where that is NULL; -1: broken. Numbers may be packed or not. Of bytes: how many strings
// there are; *size is the length of the last.
static int64_t egi_example_values(egi_found f, char *to, int64_t *size) {
    egi_pb_field field;
    int64_t n = 0;
    *size = 0;
    while (f.list.at < f.list.end) {
        if (!egi_pb_read(&f.list, &field)) return -1;
        if (field.number != 1) continue;
        if (f.kind == 1) {
            if (field.kind != EGI_PB_BYTES) return -1;
            *size = field.inside.end - field.inside.at;
            if (to && *size) memcpy(to, field.inside.at, (size_t)*size);
            n++;
            continue;
        }
        int single = f.kind == 2 ? EGI_PB_FLOAT : EGI_PB_VARINT, width = f.kind == 2 ? 4 : 8;
        if (field.kind != single && field.kind != EGI_PB_BYTES) return -1;
        for (bool first = true; field.kind == EGI_PB_BYTES ? field.inside.at < field.inside.end : first; first = false) {
            uint64_t v = field.value;
            if (field.kind == EGI_PB_BYTES && f.kind == 3 && !egi_pb_read_number(&field.inside, &v)) return -1;
            if (field.kind == EGI_PB_BYTES && f.kind == 2) {
                if (field.inside.end - field.inside.at < 4) return -1;
                v = egi_little(field.inside.at, 4);
                field.inside.at += 4;
            }
            uint32_t low = (uint32_t)v;
            if (to) memcpy(to + n * width, f.kind == 2 ? (const void *)&low : (const void *)&v, (size_t)width);
            n++;
        }
    }
    return n;
}
// The shape with its -1 worked out for n elements.
static bool egi_feature_shape(const eg_feature *f, int64_t n, eg_shape *shape) {
    int64_t known = 1;
    int open = -1;
    *shape = f->shape;
    if (f->dtype == EG_UINT8 && f->shape.rank == 0) { shape->rank = 1; shape->dims[0] = n; return true; }
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == -1 && open < 0) { open = i; continue; }
        if (shape->dims[i] < 0 || !egi_checked_product(known, shape->dims[i], &known))
            return egi_fail(EG_ERROR_SHAPE, "eg_example_parse: %s is no shape for '%.100s'", egi_show(f->shape), f->name);
    }
    if (open >= 0) shape->dims[open] = known ? n / known : 0;
    if (open >= 0 ? (known ? n % known == 0 : n == 0) : n == known) return egi_shape_valid("example_parse", *shape, f->dtype);
    return egi_fail(EG_ERROR_SHAPE, "eg_example_parse: feature '%.100s' has %lld %s, which do not fill shape %s", f->name, (long long)n,
                    f->dtype == EG_UINT8 ? "bytes" : "values", egi_show(f->shape));
}
static eg_tensor *egi_example_feature_of(egi_pb example, const eg_feature *f) {
    egi_found found;
    int64_t size, n;
    int kind = f->dtype == EG_UINT8 ? 1 : f->dtype == EG_FLOAT32 ? 2 : f->dtype == EG_INT64 ? 3 : 0;
    eg_shape shape;
    if (!f->name) return (eg_tensor *)eg_raise(EG_ERROR_NULL, "eg_example_parse: the name of a feature is NULL");
    if (!kind) return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_example_parse: feature '%.100s' is asked for as %s; there are float32, int64 and uint8 (bytes)", f->name, eg_dtype_name(f->dtype));
    if (f->shape.rank < 0 || f->shape.rank > EG_MAX_RANK) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_example_parse: '%.100s' has a shape of rank %d", f->name, f->shape.rank);
    if (!egi_example_find(example, f->name, &found)) return (eg_tensor *)eg_raise(EG_ERROR_FILE, "eg_example_parse: the record is no tf.Example, or broken");
    if (!found.kind) {
        if (f->missing) return egi_alive("example_parse", 1, f->missing) ? egi_again(f->missing) : NULL;
        return (eg_tensor *)eg_raise(EG_ERROR_FILE, "eg_example_parse: the record has no feature '%.100s', which has no default either", f->name);
    }
    if (found.kind != kind)
        return (eg_tensor *)eg_raise(EG_ERROR_DTYPE, "eg_example_parse: feature '%.100s' is asked for as %s, but holds %s", f->name, eg_dtype_name(f->dtype), egi_feature_kind(found.kind));
    n = egi_example_values(found, NULL, &size);
    if (n < 0) return (eg_tensor *)eg_raise(EG_ERROR_FILE, "eg_example_parse: the record is broken at feature '%.100s'", f->name);
    if (kind == 1 && n != 1) return (eg_tensor *)eg_raise(EG_ERROR_SHAPE, "eg_example_parse: feature '%.100s' has %lld strings of bytes; one can be a tensor", f->name, (long long)n);
    if (kind == 1) n = size;
    if (!egi_feature_shape(f, n, &shape)) return NULL;
    int64_t bytes = n * egi_dtypes[f->dtype].size;         // no overflow: each value has a byte or more in the record
    char *values = (char *)egi_alloc((size_t)bytes);
    if (!values) { egi_no_memory("example_parse", bytes); return NULL; }
    egi_example_values(found, values, &size);
    eg_tensor *x = egi_upload("example_parse", f->dtype, &shape, values);
    egi_free(values);
    return x;
}
EAGER_API bool eg_example_parse(eg_tensor *record, const eg_feature *features, int n, eg_tensor **out) {
    if (n < 0 || (n && (!features || !out))) return egi_fail(EG_ERROR_ARGUMENT, "eg_example_parse: a list is NULL, or %d features are asked for", n);
    for (int i = 0; i < n; i++) out[i] = NULL;
    if (!egi_alive("example_parse", 0, record)) return false;
    if (record->dtype != EG_UINT8 || record->rank != 1) return egi_fail(EG_ERROR_DTYPE, "eg_example_parse: a record is a uint8 vector, not %s", egi_describe(record));
    egi_pb example;
    example.at = (const unsigned char *)eg_data(record);
    if (!example.at) return false;
    example.end = example.at + record->size;
    for (int i = 0; i < n; i++) {
        out[i] = egi_example_feature_of(example, &features[i]);
        if (out[i]) continue;
        while (i-- > 0) out[i] = NULL;                      // the scope has them
        return false;
    }
    return true;
}

// ---- DLPack

// What is lent stands in one block with its deleter's knowledge: the buffer, which lives as long.
typedef struct egi_lent {
    union { eg_dlpack now; eg_dlpack_legacy legacy; } of;  // first: the block's address is that of what is lent
    egi_buffer *buffer;
    int64_t shape[EG_MAX_RANK], strides[EG_MAX_RANK];
} egi_lent;
enum { EGI_DLPACK_CPU = 1, EGI_DLPACK_CUDA = 2, EGI_DLPACK_CUDA_HOST = 3, EGI_DLPACK_OTHER = 12 };
static const struct { uint8_t code, bits; } egi_dlpack_dtypes[EGI_DTYPES] = {              // ORDER eg_dtype
    { 2, 32 }, { 2, 64 }, { 0, 32 }, { 0, 64 }, { 1, 8 }, { 6, 8 }, { 2, 16 }, { 4, 16 }
};
static egi_lent *egi_lend(const char *function, eg_tensor *x, size_t at) {
    if (!egi_alive(function, 0, x)) return NULL;
    eg_scope scope = eg_scope_begin();
    egi_lent *l = NULL;
    if (x->flags & EGI_NUMBER) x = egi_number_tensor(function, x, (eg_dtype)x->dtype, egi_backend_here());
    if (x && !(l = (egi_lent *)egi_alloc(sizeof *l))) egi_no_memory(function, (int64_t)sizeof *l);
    if (l) {
        memset(l, 0, sizeof *l);
        eg_dlpack_tensor *t = (eg_dlpack_tensor *)(void *)((char *)l + at);
        const char *name = x->buffer->backend->name, *number = strchr(name, ':');
        t->data = x->size ? x->data : NULL;
        t->device.type = x->buffer->backend->host_reads ? EGI_DLPACK_CPU : !strncmp(name, "gpu:", 4) ? EGI_DLPACK_CUDA : EGI_DLPACK_OTHER;
        t->device.id = number ? (int32_t)strtol(number + 1, NULL, 10) : 0;
        t->ndim = x->rank;
        t->dtype.code = egi_dlpack_dtypes[x->dtype].code;
        t->dtype.bits = egi_dlpack_dtypes[x->dtype].bits;
        t->dtype.lanes = 1;
        t->shape = l->shape;
        t->strides = l->strides;
        for (int i = 0; i < x->rank; i++) { l->shape[i] = x->dims[i]; l->strides[i] = x->strides[i]; }
        l->buffer = x->buffer;
        __atomic_fetch_add(&l->buffer->refs, 1, __ATOMIC_RELAXED);
    }
    eg_scope_end(scope);
    return l;
}
static void egi_lent_back(egi_lent *l) {
    egi_buffer_release(l->buffer);
    egi_free(l);
}
static void egi_dlpack_deleter(eg_dlpack *self) { if (self) egi_lent_back((egi_lent *)(void *)self); }
static void egi_dlpack_legacy_deleter(eg_dlpack_legacy *self) { if (self) egi_lent_back((egi_lent *)(void *)self); }
EAGER_API eg_dlpack *eg_to_dlpack(eg_tensor *x) {
    egi_lent *l = egi_lend("to_dlpack", x, offsetof(eg_dlpack, tensor));
    if (!l) return NULL;
    l->of.now.version.major = 1;
    l->of.now.deleter = egi_dlpack_deleter;
    l->of.now.flags = 1;
    return &l->of.now;
}
EAGER_API eg_dlpack_legacy *eg_to_dlpack_legacy(eg_tensor *x) {
    egi_lent *l = egi_lend("to_dlpack_legacy", x, offsetof(eg_dlpack_legacy, tensor));
    if (!l) return NULL;
    l->of.legacy.deleter = egi_dlpack_legacy_deleter;
    return &l->of.legacy;
}

// How a tensor that another library lends lies in memory; x gets dimensions and strides. Elements, bytes and addresses all count in
// 64 bits, or it is an error.
static bool egi_dlpack_layout(const char *function, const eg_dlpack_tensor *t, eg_tensor *x) {
    eg_shape shape = { t->ndim, { 0 } };
    int64_t extent = 0, size = egi_dtypes[x->dtype].size;
    bool fits = t->byte_offset <= INT64_MAX / 4;
    if (t->ndim < 0 || t->ndim > EG_MAX_RANK) return egi_fail(EG_ERROR_SHAPE, "eg_%s: rank %d is not between 0 and %d", function, (int)t->ndim, EG_MAX_RANK);
    if (t->ndim && !t->shape) return egi_fail(EG_ERROR_NULL, "eg_%s: the shape is NULL", function);
    for (int i = 0; i < t->ndim; i++) shape.dims[i] = t->shape[i];
    if (!egi_shape_valid(function, shape, (eg_dtype)x->dtype)) return false;
    egi_set_shape_checked(x, &shape);
    if (x->size && !t->data) return egi_fail(EG_ERROR_NULL, "eg_%s: the data of %s is NULL", function, egi_show(shape));
    for (int i = 0; t->strides && x->size && i < t->ndim; i++) {
        int64_t part, stride = shape.dims[i] == 1 ? 0 : t->strides[i];
        fits = fits && stride > INT64_MIN && !__builtin_mul_overflow(shape.dims[i] - 1, stride < 0 ? -stride : stride, &part) && !__builtin_add_overflow(extent, part, &extent);
        x->strides[i] = t->strides[i];
    }
    if (!fits || extent > INT64_MAX / 4 / size) return egi_fail(EG_ERROR_SHAPE, "eg_%s: the strides of %s reach farther than memory", function, egi_show(shape));
    egi_find_contiguous(x);
    return true;
}
// Where element i lies, counted in elements.
static int64_t egi_position(const eg_tensor *x, int64_t i) {
    int64_t at = 0;
    for (int d = x->rank - 1; d >= 0; d--) {
        at += i % x->dims[d] * x->strides[d];
        i /= x->dims[d];
    }
    return at;
}
// Kernels load whole elements, and count on 0 and 1 in bool tensors.
static bool egi_dlpack_as_it_is(const eg_tensor *x) {
    if ((uintptr_t)x->data % (uintptr_t)egi_dtypes[x->dtype].size) return false;
    for (int64_t i = 0; x->dtype == EG_BOOL && i < x->size; i++)
        if (((const unsigned char *)x->data)[egi_position(x, i)] > 1) return false;
    return true;
}
static eg_tensor *egi_dlpack_copy(const char *function, const eg_tensor *x) {
    eg_shape shape = egi_shape(x);
    int64_t size = egi_dtypes[x->dtype].size;
    eg_tensor *y = egi_new(function, egi_backend_cpu(), (eg_dtype)x->dtype, &shape);
    for (int64_t i = 0; y && i < x->size; i++) {
        char *to = y->data + i * size;
        memcpy(to, x->data + egi_position(x, i) * size, (size_t)size);
        if (x->dtype == EG_BOOL) *to = *to != 0;
    }
    return egi_own(y);
}
static eg_backend *egi_backend_named(const char *function, const char *name);
// Either a tensor that calls done(data, lender) when its memory is no longer used, or an error after it has been called.
static eg_tensor *egi_borrow(const char *function, const eg_dlpack_tensor *t, void (*done)(void *data, void *lender), void *lender) {
    eg_backend *backend = egi_backend_cpu();
    eg_tensor *x = NULL;
    egi_buffer *b = NULL;
    char name[32];
    int dtype = 0;
    bool ok = true;
    while (dtype < EGI_DTYPES && (egi_dlpack_dtypes[dtype].code != t->dtype.code || egi_dlpack_dtypes[dtype].bits != t->dtype.bits)) dtype++;
    if (dtype == EGI_DTYPES || t->dtype.lanes != 1)
        ok = egi_fail(EG_ERROR_DTYPE, "eg_%s: there is no dtype for DLPack's code %d with %d bits and %d lanes", function, t->dtype.code, t->dtype.bits, t->dtype.lanes);
    if (ok && t->device.type == EGI_DLPACK_CUDA) {
        snprintf(name, sizeof name, "gpu:%d", (int)t->device.id);
        backend = egi_backend_named(function, name);
        ok = backend != NULL;
    } else if (ok && t->device.type != EGI_DLPACK_CPU && t->device.type != EGI_DLPACK_CUDA_HOST)
        ok = egi_fail(EG_ERROR_DEVICE, "eg_%s: the tensor is on a device of DLPack's type %d; only the CPU (1) and CUDA (2) are known", function, (int)t->device.type);
    if (ok) {
        x = egi_tensor_new();
        b = x ? (egi_buffer *)egi_alloc(sizeof *b) : NULL;
        ok = b || egi_no_memory(function, (int64_t)sizeof *b);
    }
    if (ok) {
        x->op = function;
        x->dtype = (int8_t)dtype;
        ok = egi_dlpack_layout(function, t, x);
    }
    if (ok) {
        x->data = (char *)t->data + (x->size ? t->byte_offset : 0);
        b->refs = 2;                                       // as in eg_wrap_data: the scope may have no room for x
        b->on_device = 0;
        b->backend = backend;
        b->data = x->data;
        b->bytes = x->size * egi_dtypes[dtype].size;
        b->deleter = NULL;
        b->user = lender;
        x->buffer = b;
        bool copy = backend->host_reads && x->size && !egi_dlpack_as_it_is(x);
        eg_tensor *y = copy ? egi_dlpack_copy(function, x) : egi_own(x);
        if (copy) egi_object_release(&x->object);
        if (y && !copy) b->deleter = done;
        else done(NULL, lender);
        egi_buffer_release(b);
        return y;
    }
    egi_free(b);
    if (x) egi_object_release(&x->object);
    done(NULL, lender);
    return NULL;
}
static void egi_dlpack_done(void *data, void *lender) {
    eg_dlpack *m = (eg_dlpack *)lender;
    (void)data;
    if (m->deleter) m->deleter(m);
}
static void egi_dlpack_legacy_done(void *data, void *lender) {
    eg_dlpack_legacy *m = (eg_dlpack_legacy *)lender;
    (void)data;
    if (m->deleter) m->deleter(m);
}
EAGER_API eg_tensor *eg_from_dlpack(eg_dlpack *m) {
    if (!m) { egi_null_operand("from_dlpack", 0); return NULL; }
    if (m->version.major == 1) return egi_borrow("from_dlpack", &m->tensor, egi_dlpack_done, m);
    egi_fail(EG_ERROR_ARGUMENT, "eg_from_dlpack: the tensor is of DLPack version %u.%u; only major version 1 is known", (unsigned)m->version.major, (unsigned)m->version.minor);
    egi_dlpack_done(NULL, m);                              // its place is the same in all versions
    return NULL;
}
EAGER_API eg_tensor *eg_from_dlpack_legacy(eg_dlpack_legacy *m) {
    if (m) return egi_borrow("from_dlpack_legacy", &m->tensor, egi_dlpack_legacy_done, m);
    egi_null_operand("from_dlpack_legacy", 0);
    return NULL;
}

//# 33  DEVICES ----------------------------------------------------------------
// Idea: a device is a backend with a name; tensors are made on the thread's
// device and computed where they are. Read first: 15.

enum { EGI_MAX_BACKENDS = 32 };
static eg_backend *egi_backends[EGI_MAX_BACKENDS] = { &egi_cpu };
static int egi_n_backends = 1;
EAGER_API bool egi_backend_register(eg_backend *b) {
    if (!b || b->backend_size != sizeof(eg_backend) || b->tensor_size != sizeof(eg_tensor) || b->kernels != EGI_KERNELS ||
        b->version != egi_cpu.version)
        return egi_fail(EG_ERROR_DEVICE, "egi_backend_register: the backend was compiled against another eager.h, or with other switches");
    egi_lock();
    int at = egi_n_backends;
    bool ok = at < EGI_MAX_BACKENDS;
    for (int i = 0; i < at && ok; i++) ok = strcmp(egi_backends[i]->name, b->name) != 0;
    if (ok) {
        egi_backends[at] = b;
        __atomic_store_n(&egi_n_backends, at + 1, __ATOMIC_RELEASE);
    }
    egi_unlock();
    return ok || egi_fail(EG_ERROR_DEVICE, "egi_backend_register: %s exists already, or there are too many devices", b->name);
}
// The GPUs register when one is first asked for. Why there is none, or NULL.
#ifdef EAGER_CUDA
extern const char *egi_cuda_start(void);                // in eager_cuda.cu
#endif
static const char *egi_no_gpu(const char *name) {
    if (!name || strncmp(name, "gpu", 3)) return NULL;
#ifdef EAGER_CUDA
    return egi_cuda_start();
#else
    return "the program was compiled without -DEAGER_CUDA";
#endif
}
static eg_backend *egi_backend_named(const char *function, const char *name) {
    const char *why = egi_no_gpu(name);
    int n = __atomic_load_n(&egi_n_backends, __ATOMIC_ACQUIRE);
    for (int i = 0; name && i < n; i++) if (!strcmp(egi_backends[i]->name, name)) return egi_backends[i];
    egi_fail(EG_ERROR_DEVICE, "eg_%s: there is no device \"%.40s\"%s%s", function, name ? name : "NULL", why ? ": " : "", why ? why : "");
    return NULL;
}
EAGER_API bool eg_set_device(const char *device) {
    eg_backend *b = egi_backend_named("set_device", device);
    if (b) egi_this.backend = b;
    return b != NULL;
}
EAGER_API egi_device_scope egi_device_enter(const char *device) {
    egi_device_scope scope = { egi_this.backend };
    eg_backend *b = egi_backend_named("with_device", device);
    if (b) egi_this.backend = b;
    return scope;
}
EAGER_API void egi_device_leave(egi_device_scope *scope) { egi_this.backend = (eg_backend *)scope->former; }
EAGER_API int eg_device_count(const char *kind) {
    egi_no_gpu(kind);
    int count = 0, n = __atomic_load_n(&egi_n_backends, __ATOMIC_ACQUIRE);
    size_t length = kind ? strlen(kind) : 0;
    for (int i = 0; kind && i < n; i++) count += !strncmp(egi_backends[i]->name, kind, length) && egi_backends[i]->name[length] == ':';
    return count;
}
EAGER_API bool eg_synchronize(void) {
    bool ok = true;
    int n = __atomic_load_n(&egi_n_backends, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++) if (egi_backends[i]->synchronize && !egi_backends[i]->synchronize(egi_backends[i])) ok = false;
    return ok;
}
static void egi_backends_trim(void) {
    int n = __atomic_load_n(&egi_n_backends, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++) if (egi_backends[i]->trim) egi_backends[i]->trim(egi_backends[i]);
}
EAGER_API eg_precision eg_matmul_precision(eg_precision precision) {
    eg_precision former = egi_this.precision;
    egi_this.precision = precision;
    return former;
}
// The same values on another device; the gradient comes back to this one.
typedef struct egi_to_attr { eg_backend *from, *to; } egi_to_attr;
static eg_tensor *egi_to(eg_tensor *x, eg_backend *from, eg_backend *to);
static bool egi_shape_to(egi_call *c) {
    egi_same_out(c, c->in[0]);
    c->backend = ((const egi_to_attr *)c->attr)->to;
    return true;
}
static bool egi_run_to(egi_call *c) {
    eg_backend *from = egi_backend_of(c->in[0]), *to = c->backend;
    eg_tensor *x = egi_contiguous(c->in[0]);
    int64_t bytes = c->in[0]->size * egi_dtypes[c->in[0]->dtype].size;
    bool ok = x != NULL;
    egi_count(&egi_this.heap->device_copies, 1);
    if (ok && bytes && from->host_reads) ok = to->write(to, c->out[0]->data, x->data, bytes);
    else if (ok && bytes && to->host_reads) { ok = from->read(from, c->out[0]->data, x->data, bytes); egi_count_host_copy(); }
    else if (ok && bytes) {
        void *host = egi_alloc((size_t)bytes);
        ok = host != NULL || egi_no_memory("to", bytes);
        ok = ok && from->read(from, host, x->data, bytes) && to->write(to, c->out[0]->data, host, bytes);
        egi_free(host);
        egi_count_host_copy();
    }
    if (x) egi_object_release(&x->object);
    return ok;
}
EGI_GRAD(to) {
    const egi_to_attr *a = (const egi_to_attr *)c->attributes;
    (void)op;
    return egi_set_dx(c, 0, dx, egi_to(c->upstream[0], a->to, a->from));
}
EGI_OP(to, 1, 0, sizeof(egi_to_attr), 0, 0)
static eg_tensor *egi_to(eg_tensor *x, eg_backend *from, eg_backend *to) {
    egi_to_attr attr = { from, to };
    return from == to ? x : egi_apply1(&egi_op_to, &x, 1, &attr);
}
EAGER_API eg_tensor *eg_to(eg_tensor *x, const char *device) {
    if (!egi_alive("to", 0, x)) return NULL;
    eg_backend *b = egi_backend_named("to", device);
    if (!b) return NULL;
    if (x->flags & EGI_NUMBER || egi_backend_of(x) == b) return egi_again(x);
    return egi_to(x, egi_backend_of(x), b);
}
EAGER_API eg_tensor *eg_cpu(eg_tensor *x) { return eg_to(x, "cpu:0"); }
EAGER_API eg_tensor *eg_gpu(eg_tensor *x) { return eg_to(x, "gpu:0"); }
static bool egi_op_exists(const char *name) {
    for (int i = 0; i < EGI_ELEMENTWISE_OPS; i++) if (!strcmp(egi_elementwise_ops[i].name, name)) return true;
    for (int i = 0; i < EGI_OTHER_OPS; i++) if (!strcmp(egi_other_ops[i]->name, name)) return true;
    for (int i = 0; i < egi_n_user_ops; i++) if (!strcmp(egi_user_ops[i].name, name)) return true;
    return false;
}

#ifdef __cplusplus
}
#endif
#endif // EGI_IMPLEMENTED

//# 34  KERNEL TEXTS -----------------------------------------------------------
// Idea: what chapter 22 stamps. Compiled only there. Read first: 22.

#elif EGI_STAMP == 1  // ------------------------------------------------------------------------- a GEMM tile

// c[6][2 vectors] (+)= rows · b, where row i of A is a[i][0], a[i][astep], … and row p of B is at b + p * bstep.
EGI_TILE_TARGET static void EGI_TILE(int64_t k, const EGI_T *const *a, int64_t astep, const EGI_T *b, int64_t bstep, EGI_T *c,
                                     int64_t ldc, bool accumulate) {
    enum { LANES = (int)(sizeof(EGI_VEC) / sizeof(EGI_T)) };
    const EGI_T *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *a4 = a[4], *a5 = a[5];
    EGI_VEC c00 = {0}, c01 = c00, c10 = c00, c11 = c00, c20 = c00, c21 = c00;
    EGI_VEC c30 = c00, c31 = c00, c40 = c00, c41 = c00, c50 = c00, c51 = c00;
#define EGI_STEP(i)                              \
    {                                            \
        EGI_VEC s = EGI_SPLAT(a##i[o]);          \
        c##i##0 = EGI_VFMA(s, b0, c##i##0);      \
        c##i##1 = EGI_VFMA(s, b1, c##i##1);      \
    }
    for (int64_t p = 0, o = 0; p < k; p++, o += astep, b += bstep) {
        EGI_VEC b0 = *(const EGI_VEC *)b, b1 = *(const EGI_VEC *)(b + LANES);
        EGI_STEP(0) EGI_STEP(1) EGI_STEP(2) EGI_STEP(3) EGI_STEP(4) EGI_STEP(5)
    }
#define EGI_PUT(i)                                              \
    {                                                           \
        EGI_VEC *to = (EGI_VEC *)(c + (i) * ldc);               \
        EGI_VEC *to1 = (EGI_VEC *)(c + (i) * ldc + LANES);      \
        if (accumulate) c##i##0 += *to, c##i##1 += *to1;        \
        *to = c##i##0;                                          \
        *to1 = c##i##1;                                         \
    }
    EGI_PUT(0) EGI_PUT(1) EGI_PUT(2) EGI_PUT(3) EGI_PUT(4) EGI_PUT(5)
#undef EGI_STEP
#undef EGI_PUT
}

#elif EGI_STAMP == 2  // ------------------------------------------------------------------ float and double

typedef void EGI_TN(egi_tile_fn)(int64_t k, const EGI_T *const *a, int64_t astep, const EGI_T *b, int64_t bstep, EGI_T *c,
                                 int64_t ldc, bool accumulate);

// Sum of a[i] * b[i], in four vectors side by side, added in a fixed order.
EGI_NOINLINE static EGI_T EGI_TN(egi_dot)(int64_t n, const EGI_T *a, const EGI_T *b) {
    enum { L = (int)(16 / sizeof(EGI_T)) };
    typedef EGI_TN(egi_v16) vec;
    vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        s0 += *(const vec *)(a + i) * *(const vec *)(b + i);
        s1 += *(const vec *)(a + i + L) * *(const vec *)(b + i + L);
        s2 += *(const vec *)(a + i + 2 * L) * *(const vec *)(b + i + 2 * L);
        s3 += *(const vec *)(a + i + 3 * L) * *(const vec *)(b + i + 3 * L);
    }
    s0 = (s0 + s1) + (s2 + s3);
    EGI_T sum = 0, tail = 0;
    for (int l = 0; l < L; l++) sum += s0[l];
    for (; i < n; i++) tail += a[i] * b[i];
    return sum + tail;
}

// y[i] += s * x[i]
EGI_NOINLINE static void EGI_TN(egi_axpy)(int64_t n, EGI_T s, const EGI_T *EGI_RESTRICT x, EGI_T *EGI_RESTRICT y) {
    enum { L = (int)(16 / sizeof(EGI_T)) };
    typedef EGI_TN(egi_v16) vec;
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        *(vec *)(y + i) += s * *(const vec *)(x + i);
        *(vec *)(y + i + L) += s * *(const vec *)(x + i + L);
    }
    for (; i < n; i++) y[i] += s * x[i];
}

// Panels of EGI_MR rows, column after column. The last panel may be short; its missing rows are never read.
EGI_NOINLINE static void EGI_TN(egi_pack_a)(bool ta, int64_t m, int64_t k, const EGI_T *a, int64_t lda, EGI_T *to) {
    for (int64_t i = 0; i < m; i += EGI_MR, to += EGI_MR * k) {
        int64_t rows = egi_min64(EGI_MR, m - i);
        if (ta && rows == EGI_MR)
            for (int64_t p = 0; p < k; p++) memcpy(to + p * EGI_MR, a + p * lda + i, EGI_MR * sizeof(EGI_T));
        else
            for (int64_t r = 0; r < rows; r++) {
                const EGI_T *from = ta ? a + i + r : a + (i + r) * lda;
                int64_t step = ta ? lda : 1;
                for (int64_t p = 0; p < k; p++) to[p * EGI_MR + r] = from[p * step];
            }
    }
}

// Panels of nr columns, row after row, filled up with zeros.
EGI_NOINLINE static void EGI_TN(egi_pack_b)(bool tb, int64_t k, int64_t n, const EGI_T *b, int64_t ldb, EGI_T *to, int64_t nr) {
    for (int64_t j = 0; j < n; j += nr, to += nr * k) {
        int64_t cols = egi_min64(nr, n - j);
        if (!tb)
            for (int64_t p = 0; p < k; p++) {
                const EGI_T *from = b + p * ldb + j;
                EGI_T *row = to + p * nr;
                if (cols == 16) {
                    memcpy(row, from, 16 * sizeof(EGI_T));
                } else if (cols == 8) {
                    memcpy(row, from, 8 * sizeof(EGI_T));
                } else {
                    for (int64_t q = 0; q < cols; q++) row[q] = from[q];
                }
                for (int64_t q = cols; q < nr; q++) row[q] = 0;
            }
        else
            for (int64_t q = 0; q < nr; q++) {
                const EGI_T *from = b + (j + q) * ldb;
                if (q < cols)
                    for (int64_t p = 0; p < k; p++) to[p * nr + q] = from[p];
                else
                    for (int64_t p = 0; p < k; p++) to[p * nr + q] = 0;
            }
    }
}

// One matrix row or column: y (+)= op(A) x, for contiguous x and y. There is nothing to reuse, so nothing to block.
EGI_NOINLINE static void EGI_TN(egi_gemv)(bool ta, int64_t m, int64_t k, const EGI_T *a, int64_t lda, const EGI_T *x, EGI_T *y,
                             bool accumulate) {
    if (!ta) {
        for (int64_t i = 0; i < m; i++) {
            EGI_T s = EGI_TN(egi_dot)(k, a + i * lda, x);
            y[i] = accumulate ? y[i] + s : s;
        }
        return;
    }
    if (!accumulate)
        for (int64_t i = 0; i < m; i++) y[i] = 0;
    for (int64_t p = 0; p < k; p++) EGI_TN(egi_axpy)(m, x[p], a + p * lda, y);
}

// C (m,n) = op(A) (m,k) · op(B) (k,n), or C += where accumulate. Row-major; ld* is the distance between stored rows.
// The order of summation depends on the sizes, the layout and the instruction set, never on threads or values.
static bool EGI_TN(egi_gemm)(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const EGI_T *a, int64_t lda, const EGI_T *b,
                             int64_t ldb, EGI_T *c, int64_t ldc, bool accumulate) {
    if (m <= 0 || n <= 0) return true;
    if (k <= 0 || m * n <= 64 / (k < 64 ? k : 64)) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                EGI_T s = 0;
                for (int64_t p = 0; p < k; p++)
                    s += (ta ? a[p * lda + i] : a[i * lda + p]) * (tb ? b[j * ldb + p] : b[p * ldb + j]);
                c[i * ldc + j] = accumulate ? c[i * ldc + j] + s : s;
            }
        return true;
    }
    if (n == 1 && ldc == 1 && (tb || ldb == 1)) {
        EGI_TN(egi_gemv)(ta, m, k, a, lda, b, c, accumulate);
        return true;
    }
    if (m == 1 && (!ta || lda == 1)) {
        EGI_TN(egi_gemv)(!tb, n, k, b, ldb, a, c, accumulate);
        return true;
    }
#ifdef EAGER_OPENBLAS
    if (m <= INT_MAX && n <= INT_MAX && k <= INT_MAX && lda <= INT_MAX && ldb <= INT_MAX && ldc <= INT_MAX) {
        EGI_CBLAS_GEMM(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1,
                       a, (int)lda, b, (int)ldb, (EGI_T)(accumulate ? 1 : 0), c, (int)ldc);
        return true;
    }
#endif
    EGI_TN(egi_tile_fn) *tile = EGI_TN(egi_tile);
    int64_t nr = (int64_t)(32 / sizeof(EGI_T));
#if EGI_X86
    if (egi_cpu_has_avx2()) tile = EGI_TN(egi_tile_avx2), nr *= 2;
#endif
    // Packing pays where a block is read again often, or where reading it in place would touch a page per element.
    bool pack_a = n > 6 * nr;
    bool pack_b = tb || n % nr != 0 || (m > 4 * EGI_MR && ldb > 2 * nr);
    int64_t kc_most = egi_min64(k, EGI_KC), nc_most = egi_min64((n + nr - 1) / nr * nr, EGI_NC);
    int64_t mc_most = egi_min64((m + EGI_MR - 1) / EGI_MR * EGI_MR, EGI_MC);
    int64_t need_a = pack_a ? mc_most * kc_most : 0, need_b = pack_b ? nc_most * kc_most : 0;
    EGI_T stack[EGI_PACK_STACK] __attribute__((aligned(64)));
    EGI_T *space = stack;
    need_a = (need_a + 15) / 16 * 16;
    if (need_a + need_b > EGI_PACK_STACK) {
        space = (EGI_T *)egi_alloc((size_t)(need_a + need_b) * sizeof(EGI_T));
        if (space == NULL) return false;
    }
    EGI_T *packed_a = space, *packed_b = space + need_a;
    EGI_T edge[EGI_MR * 16] __attribute__((aligned(64)));  // a tile that hangs over C's border is made here

    for (int64_t jc = 0; jc < n; jc += EGI_NC) {
        int64_t nc = egi_min64(EGI_NC, n - jc);
        for (int64_t pc = 0; pc < k; pc += EGI_KC) {
            int64_t kc = egi_min64(EGI_KC, k - pc);
            bool add = accumulate || pc > 0;
            const EGI_T *block_b = tb ? b + jc * ldb + pc : b + pc * ldb + jc;
            if (pack_b) EGI_TN(egi_pack_b)(tb, kc, nc, block_b, ldb, packed_b, nr);
            for (int64_t ic = 0; ic < m; ic += EGI_MC) {
                int64_t mc = egi_min64(EGI_MC, m - ic);
                const EGI_T *block_a = ta ? a + pc * lda + ic : a + ic * lda + pc;
                if (pack_a) EGI_TN(egi_pack_a)(ta, mc, kc, block_a, lda, packed_a);
                for (int64_t j = 0; j < nc; j += nr) {
                    int64_t cols = egi_min64(nr, nc - j);
                    const EGI_T *bj = pack_b ? packed_b + j * kc : block_b + j;
                    for (int64_t i = 0; i < mc; i += EGI_MR) {
                        int64_t rows = egi_min64(EGI_MR, mc - i);
                        const EGI_T *ai = pack_a ? packed_a + i * kc : ta ? block_a + i : block_a + i * lda;
                        int64_t row_step = pack_a || ta ? 1 : lda, step = pack_a ? (int64_t)EGI_MR : ta ? lda : 1;
                        const EGI_T *row[EGI_MR];
                        for (int64_t r = 0; r < EGI_MR; r++) row[r] = ai + egi_min64(r, rows - 1) * row_step;
                        EGI_T *cij = c + (ic + i) * ldc + jc + j;
                        if (rows == EGI_MR && cols == nr) {
                            tile(kc, row, step, bj, pack_b ? nr : ldb, cij, ldc, add);
                            continue;
                        }
                        tile(kc, row, step, bj, pack_b ? nr : ldb, edge, nr, false);
                        for (int64_t r = 0; r < rows; r++)
                            for (int64_t q = 0; q < cols; q++)
                                cij[r * ldc + q] = add ? cij[r * ldc + q] + edge[r * nr + q] : edge[r * nr + q];
                    }
                }
            }
        }
    }
    if (space != stack) egi_free(space);
    return true;
}

// y[i] += a[i] * b[i]
EGI_NOINLINE static void EGI_TN(egi_muladd)(int64_t n, const EGI_T *EGI_RESTRICT a, const EGI_T *EGI_RESTRICT b, EGI_T *EGI_RESTRICT y) {
    enum { L = (int)(16 / sizeof(EGI_T)) };
    typedef EGI_TN(egi_v16) vec;
    int64_t i = 0;
    for (; i + L <= n; i += L) *(vec *)(y + i) += *(const vec *)(a + i) * *(const vec *)(b + i);
    for (; i < n; i++) y[i] += a[i] * b[i];
}

static void EGI_TN(egi_zero)(int64_t n, EGI_T *y) {
    if (n > 0) memset(y, 0, (size_t)n * sizeof(EGI_T));
}

// CONVOLUTION. Idea: write what the filter sees at each output position into one row of a matrix ("columns"); then it is a
// product, y = columns · f. Both gradients are products with the same matrix: d columns = dy · fᵀ, which is added back to the
// places the values came from, and df = columnsᵀ · dy. A few rows at a time are made, so that they stay in cache.

// Rows [r0, r1) of the columns of one group; back: add them to x instead, where they came from.
EGI_NOINLINE static void EGI_TN(egi_conv_columns)(const egi_conv_dims *d, int64_t group, int64_t r0, int64_t r1, EGI_T *x, EGI_T *columns,
                                     bool back) {
    int64_t cg = d->c / d->groups, width = d->kh * d->kw * cg;
    bool span = d->groups == 1 && d->dw == 1 && cg >= 4;  // a filter's row is then one piece of x's row
    for (int64_t r = r0; r < r1;) {
        int64_t ox = r % d->ow, oy = r / d->ow % d->oh, image = r / d->ow / d->oh;
        int64_t count = egi_min64(d->ow - ox, r1 - r);  // as many as lie in one row of y
        for (int64_t ky = 0; ky < d->kh; ky++) {
            int64_t iy = oy * d->sh - d->pt + ky * d->dh;
            EGI_T *to = columns + (r - r0) * width + ky * d->kw * cg;
            if (iy < 0 || iy >= d->h) {
                if (!back)
                    for (int64_t o = 0; o < count; o++) EGI_TN(egi_zero)(d->kw * cg, to + o * width);
                continue;
            }
            EGI_T *line = x + (image * d->h + iy) * d->w * d->c + group * cg;
            if (span) {
                for (int64_t o = 0; o < count; o++, to += width) {
                    int64_t ix = (ox + o) * d->sw - d->pl;
                    int64_t left = egi_min64(egi_max64(-ix, 0), d->kw), right = egi_max64(egi_min64(d->w - ix, d->kw), left);
                    int64_t n = (right - left) * cg;
                    if (back) {
                        if (n > 0) EGI_TN(egi_axpy)(n, 1, to + left * cg, line + (ix + left) * cg);
                        continue;
                    }
                    EGI_TN(egi_zero)(left * cg, to);
                    if (n > 0) memcpy(to + left * cg, line + (ix + left) * cg, (size_t)n * sizeof(EGI_T));
                    EGI_TN(egi_zero)((d->kw - right) * cg, to + right * cg);
                }
                continue;
            }
            for (int64_t kx = 0; kx < d->kw; kx++, to += cg) {
                int64_t offset = ox * d->sw - d->pl + kx * d->dw, first, last;
                egi_tap_range(offset, d->sw, d->w, count, &first, &last);
                for (int64_t q = 0; q < cg; q++) {
                    EGI_T *at = line + q, *row = to + q;
                    if (back) {
                        for (int64_t o = first; o < last; o++) at[(offset + o * d->sw) * d->c] += row[o * width];
                        continue;
                    }
                    for (int64_t o = 0; o < first; o++) row[o * width] = 0;
                    for (int64_t o = first; o < last; o++) row[o * width] = at[(offset + o * d->sw) * d->c];
                    for (int64_t o = last; o < count; o++) row[o * width] = 0;
                }
            }
        }
        r += count;
    }
}

// A convolution in which every output channel sees one input channel: nothing is summed over channels, so a product would be
// all overhead. what: 0 makes y, 1 x's gradient, 2 the filter's; the array that is made has been cleared.
EGI_NOINLINE static void EGI_TN(egi_conv_depthwise)(const egi_conv_dims *d, EGI_T *x, EGI_T *f, EGI_T *y, int what) {
    int64_t times = d->oc / d->groups;
    for (int64_t image = 0; image < d->n; image++)
        for (int64_t oy = 0; oy < d->oh; oy++)
            for (int64_t ox = 0; ox < d->ow; ox++, y += d->oc)
                for (int64_t ky = 0; ky < d->kh; ky++) {
                    int64_t iy = oy * d->sh - d->pt + ky * d->dh;
                    if (iy < 0 || iy >= d->h) continue;
                    for (int64_t kx = 0; kx < d->kw; kx++) {
                        int64_t ix = ox * d->sw - d->pl + kx * d->dw;
                        if (ix < 0 || ix >= d->w) continue;
                        EGI_T *fp = f + (ky * d->kw + kx) * d->oc, *xp = x + ((image * d->h + iy) * d->w + ix) * d->c;
                        if (times == 1) {
                            if (what == 0) EGI_TN(egi_muladd)(d->oc, xp, fp, y);
                            if (what == 1) EGI_TN(egi_muladd)(d->oc, y, fp, xp);
                            if (what == 2) EGI_TN(egi_muladd)(d->oc, y, xp, fp);
                            continue;
                        }
                        for (int64_t g = 0; g < d->c; g++)
                            for (int64_t o = g * times; o < (g + 1) * times; o++) {
                                if (what == 0) y[o] += xp[g] * fp[o];
                                if (what == 1) xp[g] += y[o] * fp[o];
                                if (what == 2) fp[o] += y[o] * xp[g];
                            }
                    }
                }
}

// The three convolutions are one walk over blocks of rows: what is 0 for y, 1 for x's gradient, 2 for the filter's. Only the
// array that is made is written; the others are const in the callers below.
static bool EGI_TN(egi_conv)(const egi_conv_dims *d, EGI_T *x, EGI_T *f, EGI_T *y, int what) {
    int64_t cg = d->c / d->groups, og = d->oc / d->groups, width = d->kh * d->kw * cg, rows = d->n * d->oh * d->ow;
    if (what == 1) EGI_TN(egi_zero)(d->n * d->h * d->w * d->c, x);
    if (what == 2) EGI_TN(egi_zero)(width * d->oc, f);
    if (cg == 1 && d->groups > 1) {
        if (what == 0) EGI_TN(egi_zero)(rows * d->oc, y);
        EGI_TN(egi_conv_depthwise)(d, x, f, y, what);
        return true;
    }
    // A 1x1 filter at stride 1 sees x as it lies.
    bool direct = d->kh == 1 && d->kw == 1 && d->sh == 1 && d->sw == 1 && d->pt == 0 && d->pl == 0 && d->oh == d->h && d->ow == d->w;
    int64_t block = (int64_t)(EGI_COLUMNS_BYTES / sizeof(EGI_T)) / egi_max64(width, 1);
    block = direct ? rows : egi_min64(egi_max64(block / EGI_MR * EGI_MR, EGI_MR), rows);
    EGI_T *columns = NULL;
    if (!direct && block > 0 && width > 0) {
        columns = (EGI_T *)egi_alloc((size_t)(block * width) * sizeof(EGI_T));
        if (columns == NULL) return false;
    }
    bool ok = true;
    for (int64_t group = 0; group < d->groups; group++) {
        EGI_T *fg = f + group * og;
        for (int64_t r = 0; ok && r < rows; r += block) {
            int64_t m = egi_min64(block, rows - r), ld = direct ? d->c : width;
            EGI_T *yr = y + r * d->oc + group * og, *cols = direct ? x + r * d->c + group * cg : columns;
            if (what != 1 && !direct && width > 0) EGI_TN(egi_conv_columns)(d, group, r, r + m, x, cols, false);
            if (what == 0) ok = EGI_TN(egi_gemm)(false, false, m, og, width, cols, ld, fg, d->oc, yr, d->oc, false);
            if (what == 1) ok = EGI_TN(egi_gemm)(false, true, m, width, og, yr, d->oc, fg, d->oc, cols, ld, false);
            if (what == 2) ok = EGI_TN(egi_gemm)(true, false, width, og, m, cols, ld, yr, d->oc, fg, d->oc, true);
            if (what == 1 && ok && !direct && width > 0) EGI_TN(egi_conv_columns)(d, group, r, r + m, x, cols, true);
        }
    }
    if (columns != NULL) egi_free(columns);
    return ok;
}

// y = x * f
static bool EGI_TN(egi_conv2d)(const egi_conv_dims *d, const EGI_T *x, const EGI_T *f, EGI_T *y) {
    return EGI_TN(egi_conv)(d, (EGI_T *)x, (EGI_T *)f, y, 0);
}
// dx from dy and f; dx is overwritten. (A transposed convolution, too.)
static bool EGI_TN(egi_conv2d_input)(const egi_conv_dims *d, const EGI_T *dy, const EGI_T *f, EGI_T *dx) {
    return EGI_TN(egi_conv)(d, dx, (EGI_T *)f, (EGI_T *)dy, 1);
}
// df from x and dy; df is overwritten.
static bool EGI_TN(egi_conv2d_filter)(const egi_conv_dims *d, const EGI_T *x, const EGI_T *dy, EGI_T *df) {
    return EGI_TN(egi_conv)(d, (EGI_T *)x, df, (EGI_T *)dy, 2);
}

// POOLING. index[i]: where in x the maximum of y[i]'s window lies, the first of equals; a NaN counts as the largest. A window
// that lies wholly in the padding (SAME and VALID have none) gives -1.
static void EGI_TN(egi_max_pool_index)(const egi_pool_dims *d, const EGI_T *x, int64_t *index) {
    for (int64_t image = 0; image < d->n; image++)
        for (int64_t oy = 0; oy < d->oh; oy++)
            for (int64_t ox = 0; ox < d->ow; ox++, index += d->c) {
                int64_t y0 = oy * d->sh - d->pt, y1 = egi_min64(y0 + d->kh, d->h);
                int64_t x0 = ox * d->sw - d->pl, x1 = egi_min64(x0 + d->kw, d->w);
                y0 = egi_max64(y0, 0), x0 = egi_max64(x0, 0);
                bool empty = y0 >= y1 || x0 >= x1;
                const EGI_T *base = x + image * d->h * d->w * d->c;
                enum { LANES = 16 };  // a count the compiler knows, and integers of EGI_T's width: it takes vectors then
                for (int64_t q0 = 0; q0 < d->c; q0 += LANES) {
                    int64_t cols = egi_min64(LANES, d->c - q0), first = (y0 * d->w + x0) * d->c + q0;
                    EGI_T top[LANES] = {0}, v[LANES] = {0};
                    EGI_INT best[LANES] = {0};  // the tap, in pixels from the first
                    if (!empty) memcpy(top, base + first, (size_t)cols * sizeof(EGI_T));
                    for (int64_t iy = y0; iy < y1; iy++)
                        for (int64_t ix = x0; ix < x1; ix++) {
                            EGI_INT tap = (EGI_INT)((iy - y0) * d->w + ix - x0);
                            const EGI_T *at = base + first + (int64_t)tap * d->c;
                            if (cols == LANES) memcpy(v, at, sizeof v);
                            else memcpy(v, at, (size_t)cols * sizeof(EGI_T));
                            for (int q = 0; q < LANES; q++) {
                                bool wins = (v[q] > top[q]) | ((v[q] != v[q]) & (top[q] == top[q]));
                                best[q] = wins ? tap : best[q];
                                top[q] = wins ? v[q] : top[q];
                            }
                        }
                    for (int64_t q = 0; q < cols; q++) index[q0 + q] = empty ? -1 : base - x + first + (int64_t)best[q] * d->c + q;
                }
            }
}

// back: dy's share is added to x, else y = mean of x. An empty window averages to 0.
EGI_NOINLINE static void EGI_TN(egi_avg_pool_walk)(const egi_pool_dims *d, EGI_T *x, EGI_T *y, bool back) {
    for (int64_t image = 0; image < d->n; image++)
        for (int64_t oy = 0; oy < d->oh; oy++)
            for (int64_t ox = 0; ox < d->ow; ox++, y += d->c) {
                int64_t y0 = oy * d->sh - d->pt, y1 = egi_min64(y0 + d->kh, d->h);
                int64_t x0 = ox * d->sw - d->pl, x1 = egi_min64(x0 + d->kw, d->w);
                y0 = egi_max64(y0, 0), x0 = egi_max64(x0, 0);
                if (!back) EGI_TN(egi_zero)(d->c, y);
                if (y0 >= y1 || x0 >= x1) continue;
                EGI_T share = (EGI_T)1 / (EGI_T)((y1 - y0) * (x1 - x0));
                for (int64_t iy = y0; iy < y1; iy++)
                    for (int64_t ix = x0; ix < x1; ix++) {
                        EGI_T *at = x + ((image * d->h + iy) * d->w + ix) * d->c;
                        if (back)
                            EGI_TN(egi_axpy)(d->c, share, y, at);
                        else
                            EGI_TN(egi_axpy)(d->c, 1, at, y);
                    }
                if (!back)
                    for (int64_t q = 0; q < d->c; q++) y[q] /= (EGI_T)((y1 - y0) * (x1 - x0));
            }
}
static void EGI_TN(egi_avg_pool)(const egi_pool_dims *d, const EGI_T *x, EGI_T *y) {
    EGI_TN(egi_avg_pool_walk)(d, (EGI_T *)x, y, false);
}
static void EGI_TN(egi_avg_pool_grad)(const egi_pool_dims *d, const EGI_T *dy, EGI_T *dx) {
    EGI_TN(egi_zero)(d->n * d->h * d->w * d->c, dx);
    EGI_TN(egi_avg_pool_walk)(d, dx, (EGI_T *)dy, true);
}

// SOFTMAX and what belongs to it, on contiguous rows. Shifting a row by its maximum changes no result and keeps exp in range.
// As in TensorFlow and PyTorch: a row with NaN or +inf, or of nothing but -inf, has NaN everywhere in its softmax and its
// log-softmax; its logsumexp is NaN, +inf and -inf. y may be x.

EGI_NOINLINE static EGI_T EGI_TN(egi_row_max)(int64_t n, const EGI_T *x) {
    EGI_T m = -(EGI_T)INFINITY, lane[16];
    int64_t i = 0;
    if (n >= 32) {
        for (int l = 0; l < 16; l++) lane[l] = m;
        for (; n - i >= 16; i += 16)
            for (int l = 0; l < 16; l++) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
        for (int l = 0; l < 16; l++) m = lane[l] > m ? lane[l] : m;
    }
    for (; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

// y[i] = exp(x[i] - m) for 64 at once, and their sum, in an order that never changes; y may be x.
static inline double EGI_TN(egi_exp_step)(const EGI_T *x, EGI_T m, EGI_T *y) {
    EGI_T e[64];
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int i = 0; i < 64; i++) e[i] = EGI_EXP_T(x[i] - m);
    for (int i = 0; i < 64; i += 4) {
        s0 += (double)e[i];
        s1 += (double)e[i + 1];
        s2 += (double)e[i + 2];
        s3 += (double)e[i + 3];
    }
    memcpy(y, e, sizeof e);
    return (s0 + s1) + (s2 + s3);
}
static void EGI_TN(egi_softmax)(int64_t rows, int64_t n, const EGI_T *x, EGI_T *y) {
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        EGI_T m = EGI_TN(egi_row_max)(n, x);
        double sum = 0;
        int64_t i = 0;
        for (; n - i >= 64; i += 64) sum += EGI_TN(egi_exp_step)(x + i, m, y + i);
        for (; i < n; i++) sum += (double)(y[i] = EGI_EXP_T(x[i] - m));
        EGI_T scale = (EGI_T)(1 / sum);
        for (i = 0; n - i >= 16; i += 16)
            for (int l = 0; l < 16; l++) y[i + l] *= scale;
        for (; i < n; i++) y[i] *= scale;
    }
}

// log of the sum of exp(x[i] - m)
EGI_NOINLINE static EGI_T EGI_TN(egi_row_logsum)(int64_t n, const EGI_T *x, EGI_T m) {
    EGI_T unused[64];
    double sum = 0;
    int64_t i = 0;
    for (; n - i >= 64; i += 64) sum += EGI_TN(egi_exp_step)(x + i, m, unused);
    for (; i < n; i++) sum += (double)EGI_EXP_T(x[i] - m);
    return (EGI_T)log(sum);
}

static void EGI_TN(egi_log_softmax)(int64_t rows, int64_t n, const EGI_T *x, EGI_T *y) {
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        EGI_T m = EGI_TN(egi_row_max)(n, x), l = EGI_TN(egi_row_logsum)(n, x, m);
        for (int64_t i = 0; i < n; i++) y[i] = x[i] - m - l;
    }
}

// loss[r] = -log_softmax(x[r])[label[r]]; the caller has checked 0 <= label[r] < n.
static void EGI_TN(egi_sparse_xent)(int64_t rows, int64_t n, const EGI_T *x, const int64_t *label, EGI_T *loss) {
    for (int64_t r = 0; r < rows; r++, x += n) {
        EGI_T m = EGI_TN(egi_row_max)(n, x);
        loss[r] = (m - x[label[r]]) + EGI_TN(egi_row_logsum)(n, x, m);
    }
}

#elif EGI_STAMP == 3  // --------------------------------------------------------------- all five number types

// Sum of a row, or of its squares.
EGI_NOINLINE static EGI_ACC EGI_TN(egi_row_sum)(int64_t n, const EGI_T *x, bool squares) {
    EGI_ACC s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    int64_t i = 0;
#if EGI_IS_FLOAT
    for (; squares && i + 4 <= n; i += 4) {
        s0 += EGI_TO_ACC(x[i]) * EGI_TO_ACC(x[i]);
        s1 += EGI_TO_ACC(x[i + 1]) * EGI_TO_ACC(x[i + 1]);
        s2 += EGI_TO_ACC(x[i + 2]) * EGI_TO_ACC(x[i + 2]);
        s3 += EGI_TO_ACC(x[i + 3]) * EGI_TO_ACC(x[i + 3]);
    }
    for (; squares && i < n; i++) s4 += EGI_TO_ACC(x[i]) * EGI_TO_ACC(x[i]);
#else
    (void)squares;
#endif
    for (; i + 8 <= n; i += 8) {
        s0 += EGI_TO_ACC(x[i]), s1 += EGI_TO_ACC(x[i + 1]), s2 += EGI_TO_ACC(x[i + 2]), s3 += EGI_TO_ACC(x[i + 3]);
        s4 += EGI_TO_ACC(x[i + 4]), s5 += EGI_TO_ACC(x[i + 5]), s6 += EGI_TO_ACC(x[i + 6]), s7 += EGI_TO_ACC(x[i + 7]);
    }
    for (; i < n; i++) s0 += EGI_TO_ACC(x[i]);
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
}

// acc[j] = sum over i of x[i * inner + j], or of the squares, for j < cols <= EGI_CHUNK
EGI_NOINLINE static void EGI_TN(egi_column_sums)(int64_t n, int64_t inner, const EGI_T *x, int64_t cols, bool squares, EGI_ACC *acc) {
    enum { STEP = 16 };  // a count the compiler knows
    int64_t first = 0;
    for (; !squares && cols - first >= STEP; first += STEP) {
        EGI_ACC sums[STEP] = {0};
        const EGI_T *row = x + first;
        for (int64_t i = 0; i < n; i++, row += inner)
            for (int j = 0; j < STEP; j++) sums[j] += EGI_TO_ACC(row[j]);
        memcpy(acc + first, sums, sizeof sums);
    }
    for (int64_t j = first; j < cols; j++) acc[j] = 0;
    for (int64_t i = 0; i < n && first < cols; i++, x += inner)
        for (int64_t j = first; j < cols; j++) acc[j] += squares ? EGI_TO_ACC(x[j]) * EGI_TO_ACC(x[j]) : EGI_TO_ACC(x[j]);
}

// what: 's' sum, 'm' mean (integers: truncated), 'n' the root of the sum of squares
EGI_NOINLINE static void EGI_TN(egi_reduce_sums)(int64_t outer, int64_t n, int64_t inner, const EGI_T *x, EGI_T *y, char what) {
    EGI_ACC acc[EGI_CHUNK];
    for (int64_t o = 0; o < outer; o++, x += n * inner, y += inner)
        for (int64_t j = 0; j < inner; j += EGI_CHUNK) {
            int64_t cols = egi_min64(EGI_CHUNK, inner - j);
            if (inner == 1)
                acc[0] = EGI_TN(egi_row_sum)(n, x, what == 'n');
            else
                EGI_TN(egi_column_sums)(n, inner, x + j, cols, what == 'n', acc);
            for (int64_t q = 0; q < cols; q++) {
                if (what == 's') y[j + q] = (EGI_T)acc[q];
                if (what == 'm') y[j + q] = (EGI_T)EGI_QUOTIENT(acc[q], n);
                if (what == 'n') y[j + q] = (EGI_T)sqrt((double)acc[q]);
            }
        }
}
static void EGI_TN(egi_reduce_sum)(int64_t outer, int64_t n, int64_t inner, const EGI_T *x, EGI_T *y) {
    EGI_TN(egi_reduce_sums)(outer, n, inner, x, y, 's');
}
static void EGI_TN(egi_reduce_mean)(int64_t outer, int64_t n, int64_t inner, const EGI_T *x, EGI_T *y) {
    EGI_TN(egi_reduce_sums)(outer, n, inner, x, y, 'm');
}
#if EGI_IS_FLOAT
static void EGI_TN(egi_reduce_norm)(int64_t outer, int64_t n, int64_t inner, const EGI_T *x, EGI_T *y) {
    EGI_TN(egi_reduce_sums)(outer, n, inner, x, y, 'n');
}
#endif

// Does v come before top? A NaN comes before all but an earlier NaN.
#define EGI_MORE(v, top) ((v) > (top) || (EGI_ISNAN(v) && !EGI_ISNAN(top)))
#define EGI_LESS(v, top) ((v) < (top) || (EGI_ISNAN(v) && !EGI_ISNAN(top)))

// The greatest or least element, and where the first such one is. n >= 1.
#define EGI_EXTREME(NAME, ARGNAME, WINS, CMP)                                                                                 \
    EGI_NOINLINE static EGI_T EGI_TN(EGI_PASTE(NAME, _row))(int64_t n, const EGI_T *x) {                                      \
        EGI_T m0 = x[0], m1 = m0, m2 = m0, m3 = m0;                                                                           \
        bool nan = false;                                                                                                     \
        int64_t i = 0;                                                                                                        \
        for (; i + 4 <= n; i += 4) {                                                                                          \
            m0 = x[i] CMP m0 ? x[i] : m0;                                                                                     \
            m1 = x[i + 1] CMP m1 ? x[i + 1] : m1;                                                                             \
            m2 = x[i + 2] CMP m2 ? x[i + 2] : m2;                                                                             \
            m3 = x[i + 3] CMP m3 ? x[i + 3] : m3;                                                                             \
            nan |= EGI_ISNAN(x[i]) | EGI_ISNAN(x[i + 1]) | EGI_ISNAN(x[i + 2]) | EGI_ISNAN(x[i + 3]);                         \
        }                                                                                                                     \
        m0 = m1 CMP m0 ? m1 : m0;                                                                                             \
        m2 = m3 CMP m2 ? m3 : m2;                                                                                             \
        m0 = m2 CMP m0 ? m2 : m0;                                                                                             \
        for (; i < n; i++) m0 = WINS(x[i], m0) ? x[i] : m0;                                                                   \
        for (i = 0; nan && i < n; i++)                                                                                        \
            if (EGI_ISNAN(x[i])) return x[i];                                                                                 \
        return m0;                                                                                                            \
    }                                                                                                                         \
    static void EGI_TN(NAME)(int64_t outer, int64_t n, int64_t inner, const EGI_T *x, EGI_T *EGI_RESTRICT y) {                \
        for (int64_t o = 0; o < outer; o++, x += n * inner, y += inner) {                                                     \
            if (inner == 1) {                                                                                                 \
                y[0] = EGI_TN(EGI_PASTE(NAME, _row))(n, x);                                                                   \
                continue;                                                                                                     \
            }                                                                                                                 \
            for (int64_t j = 0; j < inner; j++) y[j] = x[j];                                                                  \
            for (int64_t i = 1; i < n; i++)                                                                                   \
                for (int64_t j = 0; j < inner; j++) y[j] = WINS(x[i * inner + j], y[j]) ? x[i * inner + j] : y[j];            \
        }                                                                                                                     \
    }                                                                                                                         \
    static void EGI_TN(ARGNAME)(int64_t outer, int64_t n, int64_t inner, const EGI_T *x, int64_t *y) {                        \
        for (int64_t o = 0; o < outer; o++, x += n * inner, y += inner) {                                                     \
            for (int64_t j = 0; j < inner; j++) y[j] = 0;                                                                     \
            for (int64_t i = 1; i < n; i++)                                                                                   \
                for (int64_t j = 0; j < inner; j++)                                                                           \
                    if (WINS(x[i * inner + j], x[y[j] * inner + j])) y[j] = i;                                                \
        }                                                                                                                     \
    }
EGI_EXTREME(egi_reduce_max, egi_argmax, EGI_MORE, >)
EGI_EXTREME(egi_reduce_min, egi_argmin, EGI_LESS, <)
#undef EGI_EXTREME
#undef EGI_MORE
#undef EGI_LESS

// Running sums along the middle axis. exclusive: without the element itself; reverse: from the end. y may be x.
static void EGI_TN(egi_cumsum)(int64_t outer, int64_t n, int64_t inner, const EGI_T *x, EGI_T *y, bool exclusive, bool reverse) {
    EGI_ACC acc[EGI_CHUNK];
    for (int64_t o = 0; o < outer; o++, x += n * inner, y += n * inner)
        for (int64_t j = 0; j < inner; j += EGI_CHUNK) {
            int64_t cols = egi_min64(EGI_CHUNK, inner - j);
            for (int64_t q = 0; q < cols; q++) acc[q] = 0;
            for (int64_t i = 0; i < n; i++) {
                int64_t at = (reverse ? n - 1 - i : i) * inner + j;
                for (int64_t q = 0; q < cols; q++) {
                    EGI_ACC before = acc[q];
                    acc[q] += EGI_TO_ACC(x[at + q]);
                    y[at + q] = (EGI_T)(exclusive ? before : acc[q]);
                }
            }
        }
}

// Must b stand before a, although it comes later? (NaN stands last either way.)
static inline bool EGI_TN(egi_overtakes)(EGI_T b, EGI_T a, bool descending) {
    if (EGI_ISNAN(a)) return !EGI_ISNAN(b);
    return descending ? b > a : b < a;
}

// index[0..n): the order that sorts x, equal elements in the order they come. tmp holds n more. Merge sort, from short runs up.
static void EGI_TN(egi_argsort)(const EGI_T *x, int64_t n, bool descending, int64_t *index, int64_t *tmp) {
    enum { RUN = 16 };
    for (int64_t start = 0; start < n; start += RUN)
        for (int64_t i = start, end = egi_min64(start + RUN, n); i < end; i++) {
            int64_t to = i;
            for (; to > start && EGI_TN(egi_overtakes)(x[i], x[index[to - 1]], descending); to--) index[to] = index[to - 1];
            index[to] = i;
        }
    int64_t *from = index, *to = tmp;
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            int64_t a = start, middle = egi_min64(start + width, n), b = middle, end = egi_min64(start + 2 * width, n);
            for (int64_t k = start; k < end; k++) {
                bool right = b < end && (a >= middle || EGI_TN(egi_overtakes)(x[from[b]], x[from[a]], descending));
                to[k] = right ? from[b++] : from[a++];
            }
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != index && n > 0) memcpy(index, from, (size_t)n * sizeof *index);
}

#endif // EGI_STAMP

/* LICENSE
 *
 * Choose one of two.
 *
 * A. Public domain (Unlicense). This is free and unencumbered software released
 *    into the public domain. Anyone may copy, modify, publish, use, compile, sell
 *    or distribute it, in source or binary form, for any purpose and by any means.
 *
 * B. MIT. Copyright (c) 2026 the authors of eager.h. Permission is granted, free
 *    of charge, to any person obtaining a copy, to deal in it without restriction,
 *    provided that this notice is in all copies or substantial portions.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 * IMPLIED. THE AUTHORS ARE NOT LIABLE FOR ANY CLAIM OR DAMAGES ARISING FROM IT.
 * The full texts are in the file LICENSE.
 */
