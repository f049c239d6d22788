// Chapters 14 and 34: which device there is, where tensors are made, copies and what they count. On cpu:0, on guard:0
// and on the GPU (or what stands in for one): here is test_device(), there is the other.
#define FAULTS_DENSE
#include "faults.h"

TEST(with_device_ends_with_the_block) {
    {
        eg_with_device("cpu:0");
        CHECK_STR(eg_device_of(eg_ones(EG_FLOAT32, EG_SHAPE(2))), "cpu:0");
        for (int i = 0; i < 2; i++) {
            eg_with_device(test_device());
            CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
            if (i == 0) continue;
            break;
        }
        CHECK_STR(eg_device_of(eg_scalar(1)), "cpu:0");
    }
    CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
    {
        egi_device_scope scope;
        CHECK_ERROR(scope = egi_device_enter("tpu:0"), EG_ERROR_DEVICE, "eg_with_device: there is no device \"tpu:0\"");
        CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
        egi_device_leave(&scope);
    }
}

TEST(an_optimizer_is_on_another_device_than_its_variables) {
    if (test_on_host) SKIP("there is one device");
    eg_tensor *here = eg_variable(eg_scalar(1), "here"), *v[2], *grads[2];
    eg_optimizer *there_too = eg_sgd(.learning_rate = 1, .momentum = 0.9), *opt;
    grads[0] = eg_scalar(1);
    {
        eg_with_device("cpu:0");
        opt = eg_sgd(.learning_rate = 1, .momentum = 0.9);
        v[1] = eg_variable(eg_scalar(1), "there");
        grads[1] = eg_scalar(1);
    }
    v[0] = here;
    CHECK(eg_apply_gradients(opt, grads, v, 2) && eg_apply_gradients(there_too, grads, v, 2));
    CHECK(eg_item(here) == -1 && eg_item(v[1]) == -1);
    CHECK_INT(eg_optimizer_steps(opt), 1);
    eg_optimizer_release(opt);
    eg_optimizer_release(there_too);
    eg_release(here);
    eg_release(v[1]);
}

TEST(devices_as_tensorflow_spells_them) {
    static const char *const cpus[] = { "cpu:0", "/cpu:0", "CPU:0", "/CPU:0", "cpu", "/device:CPU:0", "/device:cpu:0",
                                        "/job:localhost/replica:0/task:0/device:CPU:0" };
    static const char *const gpus[] = { "/gpu:0", "GPU:0", "gpu", "/device:GPU:0" };
    static const char *const none[] = { "/cpu:1", "//cpu:0", "/", "", "cp",
                                        "cpux:0", "cpu0", "/device:", "/job:localhost/replica:0/task:1/device:CPU:0",
                                        "cpu:0123456789012345678901234567890123456789" };
    eg_tensor *x = eg_scalar(1);
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        CHECK_STR(eg_device_of(eg_to(x, cpus[i])), "cpu:0");
        eg_with_device(cpus[i]);
        CHECK_STR(eg_device_of(eg_scalar(1)), "cpu:0");
    }
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        bool there = eg_device_count("gpu") > 0;
        if (there) CHECK_STR(eg_device_of(eg_to(x, gpus[i])), "gpu:0");
        else CHECK_ERROR(eg_to(x, gpus[i]), EG_ERROR_DEVICE, gpus[i]);        // as it was written
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_ERROR(eg_set_device(none[i]), EG_ERROR_DEVICE, "there is no device \"");
    CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
}
TEST(a_missing_gpu_is_an_error_that_says_why) {
    CHECK(eg_device_count("cpu") == 1);
    CHECK_INT(eg_device_count("tpu"), 0);
    CHECK_INT(eg_device_count(NULL), 0);
    if (eg_device_count("gpu") == 0) {                   // to ask is no error
#ifdef EAGER_CUDA
        const char *why = "\"gpu:0\": no ";              // no driver, or no GPU
#else
        const char *why = "\"gpu:0\": eager.h's implementation was compiled without -DEAGER_CUDA";
#endif
        CHECK_ERROR(eg_set_device("gpu:0"), EG_ERROR_DEVICE, why);
        CHECK_ERROR(eg_gpu(eg_scalar(1)), EG_ERROR_DEVICE, why);
    }
    CHECK_ERROR(eg_set_device("gpu:77"), EG_ERROR_DEVICE, "eg_set_device: there is no device \"gpu:77\"");
    CHECK_STR(eg_device_of(eg_scalar(1)), test_device());
    CHECK_ERROR(eg_set_device("cuda:0"), EG_ERROR_DEVICE,
                "there is no device \"cuda:0\"; there are \"cpu:0\" and, with CUDA, \"gpu:0\"");
    CHECK_ERROR(eg_matmul_precision((eg_precision)7), EG_ERROR_ARGUMENT, "eg_matmul_precision: 7 is none of");
    CHECK_INT(eg_matmul_precision(EG_PRECISION_FLOAT32), EG_PRECISION_FLOAT32);
}

TEST(copies_are_explicit_and_counted) {
    eg_tensor *x = eg_constant(EG_SHAPE(2), 1, 2);
    int64_t copies = eg_memory().device_copies, bytes = eg_memory().device_bytes;
    eg_tensor *y = eg_cpu(x);
    CHECK_STR(eg_device_of(y), "cpu:0");
    CHECK_TENSOR(y, 0, 1, 2);
    CHECK_INT(eg_memory().device_copies, copies + !test_on_host);
    CHECK(test_on_host ? y == x : y != x);
    eg_tensor *z = eg_to(y, test_device());
    CHECK_INT(eg_memory().device_copies, copies + 2 * !test_on_host);
    CHECK_INT(eg_memory().device_bytes, bytes + (test_on_host ? 0 : 8));
    CHECK_TENSOR(z, 0, 1, 2);
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    CHECK_TENSOR(eg_tape_gradient(tape, eg_square(eg_cpu(x)), x), 0, 2, 4);
}

TEST(synchronize_waits) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(100));
    for (int i = 0; i < 10; i++) x = eg_add(x, 1);
    CHECK(eg_synchronize());
    CHECK_NEAR(eg_item(eg_index(x, 99)), 11, 0);
}

TEST(precision_is_this_threads) {
    CHECK_INT(eg_matmul_precision(EG_PRECISION_TF32), EG_PRECISION_FLOAT32);
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(4, 4), 0.5);
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_matmul(x, x))), 16, 1e-2);
    CHECK_INT(eg_matmul_precision(EG_PRECISION_BFLOAT16), EG_PRECISION_TF32);
    CHECK_NEAR(eg_item(eg_reduce_sum(eg_matmul(x, x))), 16, 1e-1);
    CHECK_INT(eg_matmul_precision(EG_PRECISION_FLOAT32), EG_PRECISION_BFLOAT16);
}

// ---- no memory, and a device that is lost, in the middle of what no other file sweeps

static bool act_of_reading(void) {
    char text[200];
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *y = x ? eg_transpose(x) : NULL,
              *whole = eg_ones(EG_INT32, EG_SHAPE(2));
    return y && whole && eg_format(y, text, sizeof text) > 0 && eg_data(y) && eg_assert_equal(x, x) &&
           eg_assert_near(y, y, 1) && eg_item(eg_index(eg_index(y, 0), 0)) == 1 && eg_floordiv(whole, whole) &&
           eg_mod(whole, 2) && eg_gather_nd(x, eg_zeros(EG_INT32, EG_SHAPE(1, 2))) && eg_error() == EG_OK;
}
static bool act_of_random_numbers(void) {
    return eg_random_normal(EG_SHAPE(2, 3)) && eg_random_integers(EG_SHAPE(3), 0, 9) && eg_random_permutation(5) &&
           eg_random_bernoulli(EG_SHAPE(2)) && eg_error() == EG_OK;
}
static bool act_of_the_trap(void) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4)), *y = x ? eg_reverse(x, EG_AXES(0)) : NULL;
    bool former = eg_trap_nonfinite(true), right = y && eg_exp(y) && eg_mul(y, 2) && eg_reduce_sum(y);
    right = right && eg_synchronize();
    eg_trap_nonfinite(former);
    return right && eg_error() == EG_OK;
}
static bool act_of_variables(void) {
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), "v"), *g = eg_full(EG_FLOAT32, EG_SHAPE(2, 3), .5);
    eg_optimizer *optimizer = eg_adam(.clipnorm = 1, .schedule = eg_exponential_decay(.1, 2, .5, false));
    bool right = v && g &&
                 optimizer && eg_assign(v, eg_transpose(eg_zeros(EG_FLOAT32, EG_SHAPE(3, 2)))) && eg_assign_add(v, 1) &&
                 eg_assign_slice(v, EG_SHAPE(0, 1), EG_SHAPE(2, 1), 5) && eg_apply_gradients(optimizer, &g, &v, 1) &&
                 eg_apply_gradient_pairs(optimizer, (eg_gradient_pair[]){{g, v}}, 1) &&
                 eg_optimizer_learning_rate(optimizer) < .1;
    right = right && eg_item(eg_reduce_sum(v)) > 0;
    eg_optimizer_release(optimizer);
    eg_release(v);
    return right && eg_error() == EG_OK;
}
static bool act_of_jacobians(void) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2)), *list[20];
    eg_tape *tape = eg_tape_begin_persistent();
    bool right = x && tape && eg_tape_watch(tape, x) && eg_tape_jacobian(tape, eg_square(x), x) &&
                 eg_tape_batch_jacobian(tape, eg_square(x), x);
    for (int i = 0; i < 20; i++) list[i] = x;
    return right && eg_tape_gradient(tape, eg_concat(list, 20, 0), x) && eg_error() == EG_OK;
}
static bool act_of_copies(void) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    return x && eg_cpu(eg_transpose(x)) && eg_to(eg_cpu(x), test_device()) &&
           eg_wrap_data(EG_BOOL, EG_SHAPE(2), (const void *)"\1\2", NULL, NULL) && eg_pad(x, EG_PADS(1, 1, 0, 0)) &&
           eg_error() == EG_OK;
}
TEST(faults_in_reading) { faults_sweep(act_of_reading); }
TEST(faults_in_random_numbers) { faults_sweep(act_of_random_numbers); }
TEST(faults_in_the_trap) { faults_sweep(act_of_the_trap); }
TEST(faults_in_variables) { faults_sweep(act_of_variables); }
TEST(faults_in_jacobians) { faults_sweep(act_of_jacobians); }
TEST(faults_in_copies) { faults_sweep(act_of_copies); }

#ifdef TEST_GUARD
// ---- a second device that the host cannot read

static eg_backend second_guard;
static bool second_fails;
static int second_trims;
static bool second_synchronize(eg_backend *b) {
    (void)b;
    return !second_fails || (eg_raise(EG_ERROR_DEVICE, "guard:1 is lost"), false);
}
static void second_trim(eg_backend *b) { (void)b; second_trims++; }

TEST(backends_that_are_refused) {
    static const char other_file[] = "the backend was compiled against another eager.h, or with other switches";
    eg_backend b = guard_backend;
    CHECK_ERROR(egi_backend_register(NULL), EG_ERROR_DEVICE, other_file);
    b.backend_size--;
    CHECK_ERROR(egi_backend_register(&b), EG_ERROR_DEVICE, other_file);
    b = guard_backend;
    b.tensor_size++;
    CHECK_ERROR(egi_backend_register(&b), EG_ERROR_DEVICE, other_file);
    b = guard_backend;
    b.kernels--;
    CHECK_ERROR(egi_backend_register(&b), EG_ERROR_DEVICE, other_file);
    b = guard_backend;
    b.version++;
    CHECK_ERROR(egi_backend_register(&b), EG_ERROR_DEVICE, other_file);
    b = guard_backend;
    CHECK_ERROR(egi_backend_register(&b), EG_ERROR_DEVICE, "guard:0 exists already");
    CHECK_INT(eg_device_count("guard"), 1);
}
TEST(two_devices_that_no_host_reads) {
    second_guard = guard_backend;
    second_guard.name = "guard:1";
    second_guard.synchronize = second_synchronize;
    second_guard.trim = second_trim;
    REQUIRE(egi_backend_register(&second_guard));
    CHECK_INT(eg_device_count("guard"), 2);
    eg_tensor *x = eg_transpose(eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)), *y,
              *none = eg_to(eg_zeros(EG_INT32, EG_SHAPE(0, 3)), "guard:1");
    CHECK_SHAPE(none, 0, 3);
    CHECK_STR(eg_device_of(none), "guard:1");
    eg_tape *tape = eg_tape_begin();
    eg_tape_watch(tape, x);
    y = eg_to(x, "guard:1");
    CHECK_STR(eg_device_of(y), "guard:1");
    CHECK_TENSOR(y, 0, 1, 3, 2, 4);
    CHECK(eg_to(y, "guard:1") == y || eg_item(eg_reduce_sum(eg_to(y, "guard:1"))) == 10);
    {
        eg_with_device("guard:1");
        y = eg_reduce_sum(eg_square(y));
    }
    eg_tensor *dx = eg_tape_gradient(tape, y, x);
    CHECK_STR(eg_device_of(dx), "guard:0");
    CHECK_TENSOR(dx, 0, 2, 6, 4, 8);
    CHECK_ERROR(eg_add(x, eg_to(x, "guard:1")), EG_ERROR_DEVICE, "guard:1");
    second_fails = true;
    CHECK_ERROR(eg_synchronize(), EG_ERROR_DEVICE, "guard:1 is lost");
    second_fails = false;
    CHECK(eg_synchronize());
    int before = second_trims;
    eg_memory_trim();
    CHECK(second_trims > before);
}
static eg_tensor *twice(eg_tensor *const *in, eg_grad_context *c, void *user) {
    (void)c, (void)user;
    return eg_mul(in[0], 2);
}
static void twice_on_the_host(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)user;
    dx[0] = eg_cpu(eg_mul(c->upstream[0], 2));
}
static void twice_as_a_number(const eg_grad_context *c, eg_tensor **dx, void *user) {
    (void)c, (void)user;
    dx[0] = eg_number(2);
}
TEST(gradients_from_another_device) {
    eg_tensor *x = eg_constant(EG_SHAPE(1, 2), 1, 3), *y, *g = eg_cpu(eg_constant(EG_SHAPE(1, 2), 1, 0)), *dx;
    eg_tape *tape = eg_tape_begin_persistent();
    eg_tape_watch(tape, x);
    y = eg_softmax(x);
    CHECK_ERROR(eg_tape_gradients_from(tape, &y, 1, &g, &x, 1, &dx), EG_ERROR_DEVICE,
                "output gradient 0 is on cpu:0, but its target is on guard:0; eg_to(g, \"guard:0\")");
    CHECK(dx == NULL);
    g = eg_to(g, "guard:0");
    CHECK(eg_tape_gradients_from(tape, &y, 1, &g, &x, 1, &dx));
    y = eg_custom_gradient(twice, twice_on_the_host, NULL, &x, 1);
    CHECK_ERROR(eg_tape_gradient(tape, y, x), EG_ERROR_DEVICE,
                "the gradient for input 0 is on cpu:0, but the input is on guard:0");
    {
        eg_with_device("cpu:0");
        y = eg_custom_gradient(twice, twice_as_a_number, NULL, &x, 1);
        CHECK_STR(eg_device_of(eg_tape_gradient(tape, y, x)), "guard:0");
    }
}
TEST(more_devices_than_there_is_room_for) {
    static eg_backend many[40];
    static char names[40][16];
    int n = 0;
    for (; n < 40; n++) {
        many[n] = guard_backend;
        snprintf(names[n], sizeof names[n], "spare:%d", n);
        many[n].name = names[n];
        if (!egi_backend_register(&many[n])) break;
    }
    eg_error_clear();
    CHECK(n < 32);
    CHECK_ERROR(egi_backend_register(&many[n]), EG_ERROR_DEVICE, "or there are too many devices");
    CHECK_INT(eg_device_count("spare"), n);
    CHECK_STR(eg_device_of(eg_to(eg_scalar(1), "spare:0")), "spare:0");
}
#endif
