// Counts how often the two CPU kernels of an op run, which tells whether a layer ran as that op. Who includes it
// defines AS_ONE_KERNEL, as in EGI_ATTENTION (its gradient's kernel has the same name with _GRAD behind it), and may
// define AS_ONE_SEEN(args), which stands in each run.
#ifndef COUNTED_H
#define COUNTED_H

#define AS_ONE_PASTE_(a, b) a##b
#define AS_ONE_PASTE(a, b) AS_ONE_PASTE_(a, b)
#define AS_ONE_GRADIENT AS_ONE_PASTE(AS_ONE_KERNEL, _GRAD)
#ifndef AS_ONE_SEEN
#define AS_ONE_SEEN(args) ((void)(args))
#endif

static int64_t as_one[2];                                // runs of the two kernels so far, where they are the CPU's
static bool (*as_one_kernel[2])(eg_backend *b, const egi_args *args);
static bool count_forward(eg_backend *b, const egi_args *args) {
    as_one[0]++;
    AS_ONE_SEEN(args);
    return as_one_kernel[0](b, args);
}
static bool count_gradient(eg_backend *b, const egi_args *args) {
    as_one[1]++;
    AS_ONE_SEEN(args);
    return as_one_kernel[1](b, args);
}
static void count_as_one(void) {
    eg_backend *cpu = egi_backend_cpu();
    if (!as_one_kernel[0]) {
        as_one_kernel[0] = cpu->kernel[AS_ONE_KERNEL];
        as_one_kernel[1] = cpu->kernel[AS_ONE_GRADIENT];
        cpu->kernel[AS_ONE_KERNEL] = count_forward;
        cpu->kernel[AS_ONE_GRADIENT] = count_gradient;
    }
    as_one[0] = as_one[1] = 0;
}
// Another device's kernels are not those that are counted.
#ifdef TEST_CUDA
#define CHECK_AS_ONE(forward, gradient) count_as_one()
#else
#define CHECK_AS_ONE(forward, gradient) \
    do { CHECK_INT(as_one[0], forward); CHECK_INT(as_one[1], gradient); count_as_one(); } while (0)
#endif

#endif
