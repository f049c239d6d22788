// What only the stand-in for CUDA can show (tests/gpu/cuda_host/): each call of the runtime failing in turn, no memory,
// a lost device. Compiled with -DTEST_CUDA_HOST; otherwise there is nothing to do.
#include "test.h"

#ifdef TEST_CUDA_HOST
extern int64_t cuda_host_calls, cuda_host_fail_at, cuda_host_launches, cuda_host_products, cuda_host_blocks;
extern int cuda_host_fail_with, cuda_host_failures;
enum { OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700, UNKNOWN = 999 };

// A bit of everything: copies both ways, convolution, gather and its gradient, softmax, layers that are one launch, an
// optimizer's step with clipping, random numbers.
enum { LAYERS = 4, VARIABLES = 24 };
typedef struct net { eg_tensor *filter, *table, *w; eg_layer *layer[LAYERS]; eg_optimizer *adam; } net;
static int net_variables(net *n, eg_tensor **v) {
    int count = 3;
    v[0] = n->filter;
    v[1] = n->table;
    v[2] = n->w;
    for (int i = 0; i < LAYERS; i++) count += eg_layer_weights(n->layer[i], v + count, VARIABLES - count);
    return count;
}
static eg_tensor *net_layers(net *n, eg_tensor *h) {
    h = eg_reshape(h, EG_SHAPE(1, 2, 8));
    for (int i = 0; i < LAYERS; i++) h = eg_call(n->layer[i], h);
    return eg_reshape(h, EG_SHAPE(2, 8));
}
static bool step(net *n, double *loss) {
    EG_SCOPE;
    eg_seed(3);
    eg_tensor *x = eg_random_normal(EG_SHAPE(2, 6, 6, 1)), *y = eg_constant_of(EG_INT32, EG_SHAPE(2), 1, 0),
              *v[VARIABLES], *g[VARIABLES];
    int count = net_variables(n, v);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *h = eg_max_pool2d(eg_relu(eg_conv2d(x, n->filter)));
    h = eg_add(eg_reshape(h, EG_SHAPE(2, 8)), eg_gather(n->table, y));
    h = net_layers(n, h);
    eg_tensor *l = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(y, eg_matmul(h, n->w)));
    if (!eg_tape_gradients(tape, l, v, count, g) || !eg_apply_gradients(n->adam, g, v, count)) return false;
    *loss = eg_item(l);
    return eg_error() == EG_OK;
}
static bool net_begin(net *n) {
    eg_seed(1);
    n->filter = eg_variable(eg_random_normal(EG_SHAPE(3, 3, 1, 2)), "filter");
    n->table = eg_variable(eg_random_normal(EG_SHAPE(3, 8)), "table");
    n->w = eg_variable(eg_random_normal(EG_SHAPE(8, 2)), "w");
    n->adam = eg_adam(.global_clipnorm = 0.1);
    n->layer[0] = eg_layer_multi_head_attention(2, 4, .causal = true);
    n->layer[1] = eg_layer_layer_normalization();
    n->layer[2] = eg_layer_dense(8, .activation = EG_RELU);
    n->layer[3] = eg_layer_gru(8, .return_sequences = true);
    // which builds them
    return n->filter && n->table && n->w && n->adam && net_layers(n, eg_zeros(EG_FLOAT32, EG_SHAPE(2, 8)));
}
static void net_end(net *n) {
    eg_release(n->filter);
    eg_release(n->table);
    eg_release(n->w);
    for (int i = 0; i < LAYERS; i++) eg_layer_release(n->layer[i]);
    eg_optimizer_release(n->adam);
}
static void sweep(int with) {
    double right = 0, loss;
    int64_t calls, share = test_share > 1 ? 3 : 1;
    net n;
    REQUIRE(net_begin(&n));
    calls = cuda_host_calls;
    CHECK(step(&n, &right));
    calls = cuda_host_calls - calls;
    net_end(&n);
    CHECK(calls > 50);
    for (int64_t at = 1; at < calls + 10; at += share) {
        EG_SCOPE;
        REQUIRE(net_begin(&n));
        if (at % 2) eg_memory_trim();
        cuda_host_fail_with = with;
        cuda_host_fail_at = at;
        loss = NAN;
        bool ok = step(&n, &loss);
        bool reached = cuda_host_fail_at == 0;
        cuda_host_fail_at = 0;
        if (!reached) eg_synchronize();
        if (with == OUT_OF_MEMORY) CHECK(ok);              // it was asked again
        if (ok) CHECK_NEAR(loss, right, 1e-6);             // an error that nothing depends on, such as of cudaFree
        else {
            CHECK(eg_error() == EG_ERROR_DEVICE || eg_error() == EG_ERROR_MEMORY);
            CHECK(eg_error_message()[0] != 0);
        }
        eg_error_clear();
        net_end(&n);
        eg_synchronize();
        eg_error_clear();
    }
    REQUIRE(net_begin(&n));                                 // and everything works again
    CHECK(step(&n, &loss));
    CHECK_NEAR(loss, right, 1e-6);
    net_end(&n);
}
TEST(host_each_call_fails) { sweep(UNKNOWN); }
TEST(host_each_call_has_no_memory) { sweep(OUT_OF_MEMORY); }
// Each call that finds no memory is made once more with the cache freed, and what it launches is launched once; where
// there is no memory then either, it is an error.
static eg_tensor *bit_of_everything(eg_tensor *v, eg_optimizer *opt) {
    eg_tensor *g = eg_full(EG_FLOAT32, EG_SHAPE(6, 4), 2), *b = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    if (!eg_apply_gradients(opt, &g, &v, 1)) return NULL;
    eg_tensor *y = eg_matmul(eg_matmul(v, eg_ones(EG_FLOAT32, EG_SHAPE(4, 4))),
                             eg_reshape(eg_cumsum(b), EG_SHAPE(4, 1)));
    return y ? eg_reduce_sum(y) : NULL;
}
TEST(host_no_memory_anywhere_frees_the_cache_and_tries_again) {
    int64_t most = 0;
    for (int lasting = 0; lasting < 2; lasting++)            // else there is memory when something has been given back
        for (int at = 1, failed = 1; at < 200 && failed; at++) {
            EG_SCOPE;
            eg_tensor *v = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(6, 4), 1), "v");
            eg_optimizer *opt = eg_sgd(.learning_rate = 0.25);
            { EG_SCOPE; eg_item(eg_reduce_sum(eg_zeros(EG_FLOAT32, EG_SHAPE(100000)))); }  // something to free
            cuda_host_fail_with = OUT_OF_MEMORY;
            cuda_host_failures = lasting ? 1000 : -1;
            cuda_host_fail_at = at;
            eg_tensor *y = bit_of_everything(v, opt);
            double sum = y ? eg_item(y) : NAN;
            failed = lasting ? cuda_host_failures != 1000 : cuda_host_fail_at == 0;          // was that call reached?
            cuda_host_fail_at = 0;
            cuda_host_failures = 1;
            if (lasting && failed) {
                CHECK_INT(eg_error(), EG_ERROR_MEMORY);
                CHECK_CONTAINS(eg_error_message(), "out of memory");
            } else {
                CHECK_INT(eg_error(), EG_OK);
                CHECK_NEAR(sum, 6 * 4 * 0.5 * (1 + 2 + 3 + 4), 0);
                CHECK_NEAR(*(const float *)eg_data(v), 0.5, 0);
            }
            eg_error_clear();
            if (!lasting && failed) most = at;
            eg_release(v);
            eg_optimizer_release(opt);
        }
    CHECK(most > 15);
}
TEST(host_no_memory_frees_the_cache_first) {
    for (int i = 0; i < 4; i++) { EG_SCOPE; eg_zeros(EG_FLOAT32, EG_SHAPE(10000 * (i + 1))); }
    int64_t blocks = cuda_host_blocks;
    cuda_host_malloc_fails = 1;
    cuda_host_malloc_fail_at = 1;
    eg_tensor *x = eg_zeros(EG_FLOAT32, EG_SHAPE(77777));
    CHECK(x != NULL);
    CHECK(cuda_host_blocks < blocks);                      // what was cached is gone
    cuda_host_malloc_fails = 2;
    cuda_host_malloc_fail_at = 1;
    CHECK_ERROR(eg_zeros(EG_FLOAT32, EG_SHAPE(777777)), EG_ERROR_MEMORY, "out of memory");
    cuda_host_malloc_fail_at = 0;
    CHECK(eg_zeros(EG_FLOAT32, EG_SHAPE(777777)) != NULL);
    CHECK_ERROR(eg_zeros(EG_FLOAT32, EG_SHAPE((int64_t)1 << 45)), EG_ERROR_MEMORY, "out of memory");
}
TEST(host_work_waits_until_it_is_read) {
    eg_synchronize();
    int64_t launches = cuda_host_launches, copies = eg_memory().host_copies;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(64));
    for (int i = 0; i < 100; i++) x = eg_add(x, x);
    CHECK_INT(cuda_host_launches - launches, 101);
    CHECK_INT(eg_memory().host_copies, copies);
    CHECK_NEAR(eg_item(eg_index(eg_log(x), 0)), 100 * log(2.0), 1e-3);
}
// A dense layer is one product that takes its bias and relu along, or one launch behind it.
TEST(host_a_dense_layer_is_one_call) {
    eg_layer *l = eg_layer_dense(5, .activation = EG_RELU);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3, 4));
    eg_call(l, x);
    int64_t launches = cuda_host_launches;
    CHECK(eg_call(l, x) != NULL);
    CHECK(cuda_host_launches - launches < 2);
    eg_layer_release(l);
}
// A cross entropy and its mean are two; their gradient is two: the mean's share, and the rows.
TEST(host_gradients_of_rows_are_one_launch) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 8)), *labels = eg_zeros(EG_INT32, EG_SHAPE(4));
    for (int i = 0; i < 2; i++) {
        eg_tape *tape = eg_tape_begin();
        eg_tape_watch(tape, x);
        eg_tensor *loss = eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, x));
        int64_t launches = cuda_host_launches;
        CHECK(eg_tape_gradient(tape, loss, x) != NULL);
        if (i) CHECK(cuda_host_launches - launches <= 3);
    }
}
// Layer norm is one launch; attention is so, but for who asks for its weights, too.
TEST(host_layers_are_one_launch) {
    eg_layer *norm = eg_layer_layer_normalization(), *attention = eg_layer_multi_head_attention(2, 4, .causal = true);
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3, 8)), *out[2];
    eg_call_options o;
    memset(&o, 0, sizeof o);
    eg_call(norm, x);
    eg_call(attention, x);
    int64_t launches = cuda_host_launches;
    CHECK(eg_call(norm, x) != NULL);
    CHECK_INT(cuda_host_launches - launches, 1);
    launches = cuda_host_launches;
    CHECK(eg_call(attention, x) != NULL);
    int64_t as_one = cuda_host_launches - launches;
    launches = cuda_host_launches;
    CHECK((eg_call_multi)(attention, &x, 1, out, 2, o));
    CHECK(as_one + 3 < cuda_host_launches - launches);
    eg_tensor *in[2] = { x, eg_constant_of(EG_BOOL, EG_SHAPE(3, 3), 1, 0, 1, 0, 0, 0, 1, 1, 1) };
    launches = cuda_host_launches;
    CHECK((eg_call_multi)(attention, in, 2, out, 1, o));     // nor is a mask a launch more
    CHECK_INT(cuda_host_launches - launches, as_one);
    eg_layer_release(norm);
    eg_layer_release(attention);
}
// A step of a recurrent layer is a product and a launch, there and back.
TEST(host_recurrence_is_two_launches_a_step) {
    for (int kind = 0; kind < 3; kind++) {
        EG_SCOPE;
        eg_layer *model = eg_sequential(kind == 0 ? eg_layer_lstm(4, .return_sequences = true)
                                        : kind == 1 ? eg_layer_gru(4, .return_sequences = true)
                                        : eg_layer_simple_rnn(4, .return_sequences = true), eg_layer_dense(3));
        eg_optimizer *sgd = eg_sgd(.learning_rate = 0.1);
        eg_tensor *x = eg_random_normal(EG_SHAPE(2, 64, 5)), *v[16], *g[16];
        CHECK(eg_call(model, x) != NULL);
        int n = eg_layer_weights(model, v, 16);
        int64_t launches = cuda_host_launches, products = cuda_host_products;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *loss = eg_reduce_sum(eg_square(eg_call(model, x, .training = true)));
        CHECK(eg_tape_gradients(tape, loss, v, n, g) && eg_apply_gradients(sgd, g, v, n));
        launches = cuda_host_launches - launches;
        products = cuda_host_products - products;
        CHECK(launches + products < 2 * 2 * 64 + 40);
        CHECK(products >= 2 * 64 && launches >= 2 * 64);
        eg_optimizer_release(sgd);
        eg_layer_release(model);
    }
}
// All variables of an optimizer are updated by one launch, clipping by two more; and where there is no memory, none is
// changed.
TEST(host_an_optimizer_updates_at_once) {
    for (int clip = 0; clip < 2; clip++) {
        eg_tensor *v[30], *g[30];
        eg_optimizer *opt = clip ? eg_adam(.global_clipnorm = 0.1) : eg_adam();
        for (int i = 0; i < 30; i++) {
            v[i] = eg_variable(eg_full(EG_FLOAT32, EG_SHAPE(100 + i), 1), "v");
            g[i] = eg_full(EG_FLOAT32, EG_SHAPE(100 + i), 2);
        }
        CHECK(eg_apply_gradients(opt, g, v, 30));            // makes the slots
        int64_t launches = cuda_host_launches;
        CHECK(eg_apply_gradients(opt, g, v, 30));
        CHECK_INT(cuda_host_launches - launches, clip ? 4 : 2);          // and one counts the steps
        float before = *(const float *)eg_data(v[29]);
        eg_tensor *held[30];
        // their buffers are shared: each update needs a fresh one
        for (int i = 0; i < 30; i++) held[i] = eg_read(v[i]);
        for (int at = 1, ok = 0; at < 200 && !ok; at++) {
            eg_memory_trim();
            cuda_host_malloc_fails = 2;
            cuda_host_malloc_fail_at = at;
            ok = eg_apply_gradients(opt, g, v, 30);
            cuda_host_malloc_fail_at = 0;
            if (ok) CHECK(at > 30);
            else CHECK_INT(eg_error(), EG_ERROR_MEMORY);
            eg_error_clear();
            for (int i = 0; i < 30; i++)
                CHECK(ok ? *(const float *)eg_data(v[i]) < before : *(const float *)eg_data(v[i]) == before);
            CHECK_INT(eg_optimizer_steps(opt), ok ? 3 : 2);
        }
        for (int i = 0; i < 30; i++) { CHECK_NEAR(*(const float *)eg_data(held[i]), before, 0); eg_release(v[i]); }
        eg_optimizer_release(opt);
    }
}

// On a machine with several GPUs, those that nobody asks for are left alone.
// Factors are rounded on request alone, where channels are multiples of four and the kernels' text knows tensor cores.
extern int cuda_host_text;
// 72 products of x and 1, for 8 channels
static double conv_sum(int64_t channels, eg_precision precision, const char *device) {
    eg_with_device(device);
    EG_SCOPE;
    eg_matmul_precision(precision);
    eg_tensor *x = eg_full(EG_FLOAT32, EG_SHAPE(1, 3, 4, channels), 1 + ldexp(1, -12)),
              *y = eg_conv2d(x, eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, channels, 4)));
    eg_matmul_precision(EG_PRECISION_FLOAT32);
    return eg_item(eg_reduce_max(y));
}
TEST(host_convolutions_are_rounded_on_request) {
    CHECK_NEAR(conv_sum(8, EG_PRECISION_FLOAT32, "gpu:0"), 72 + 72 * ldexp(1, -12), 0);
    CHECK_NEAR(conv_sum(8, EG_PRECISION_TF32, "gpu:0"), 72, 0);
    CHECK_NEAR(conv_sum(8, EG_PRECISION_BFLOAT16, "gpu:0"), 72, 0);
    CHECK_NEAR(conv_sum(2, EG_PRECISION_TF32, "gpu:0"), 18 + 18 * ldexp(1, -12), 0);
}
TEST(host_a_gpu_starts_when_it_is_asked_for) {
    int64_t calls = cuda_host_calls;
    CHECK_INT(eg_device_count("gpu"), 2);
    CHECK_INT(cuda_host_calls, calls);
    cuda_host_text = 75;
    eg_tensor *x = eg_to(eg_cpu(eg_scalar(3)), "gpu:1");
    cuda_host_text = 90;
    CHECK(cuda_host_calls > calls + 40);
    CHECK_NEAR(eg_item(eg_add(x, 1)), 4, 0);
    CHECK_NEAR(conv_sum(8, EG_PRECISION_TF32, "gpu:1"), 72 + 72 * ldexp(1, -12), 0);
}
// Memory that goes between libraries, each with streams of its own, does so when nobody works with it.
extern int64_t cuda_host_pending(void);
static int64_t pending_then = -1;
static void given_back(eg_dlpack *m) { (void)m; pending_then = cuda_host_pending(); }
TEST(host_what_is_lent_is_waited_for) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(6));
    CHECK(cuda_host_pending() > 0);
    eg_dlpack *lent = eg_to_dlpack(x), borrowed;
    REQUIRE(lent);
    CHECK_INT(cuda_host_pending(), 0);
    borrowed = *lent;
    borrowed.deleter = given_back;
    borrowed.tensor.byte_offset = 2;
    CHECK_ERROR(eg_from_dlpack(&borrowed), EG_ERROR_ARGUMENT,
                "eg_from_dlpack: the data, on gpu:0, is not aligned for float32");
    CHECK_INT(pending_then, 0);
    borrowed.tensor.byte_offset = 0;
    {
        EG_SCOPE;
        eg_add(x, x);
        eg_tensor *y = eg_from_dlpack(&borrowed);
        CHECK_INT(cuda_host_pending(), 0);
        CHECK_TENSOR(eg_add(y, 1), 0, 2, 2, 2, 2, 2, 2);
        pending_then = -1;
        eg_add(y, y);
    }
    CHECK_INT(pending_then, 0);
    eg_add(x, x);
    CHECK(cuda_host_pending() > 0);
    lent->deleter(lent);
    CHECK_INT(cuda_host_pending(), 0);
}
// Whoever gives it back goes on with the device of its own.
extern int cuda_host_current(void);
TEST(host_giving_back_leaves_the_thread_its_device) {
    eg_dlpack *lent = eg_to_dlpack(eg_ones(EG_FLOAT32, EG_SHAPE(6)));
    REQUIRE(lent);
    eg_tensor *y = eg_to(eg_cpu(eg_scalar(3)), "gpu:1");
    CHECK_NEAR(eg_item(eg_add(y, 1)), 4, 0);
    CHECK_INT(cuda_host_current(), 1);
    lent->deleter(lent);
    CHECK_INT(cuda_host_current(), 1);
    CHECK(eg_synchronize());
    CHECK_INT(cuda_host_current(), 1);
}

// A device whose context is lost stays so: that needs a process of its own.
TEST(host_child_that_loses_its_device) {
    if (!getenv("TEST_LOSES")) SKIP("started by the test below");
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(3));
    cuda_host_fail_with = ILLEGAL_ADDRESS;
    cuda_host_fail_at = 4;
    eg_exp(eg_add(x, x));
    eg_item(eg_reduce_sum(x));
    CHECK_CONTAINS(eg_error_message(), "gpu:0 is lost: an illegal memory access was encountered (CUDA error 700)");
    eg_error_clear();
    CHECK_ERROR(eg_data(x), EG_ERROR_DEVICE, "is lost");
    CHECK_ERROR(eg_add(x, 1), EG_ERROR_DEVICE, "is lost");
    CHECK_ERROR(eg_synchronize(), EG_ERROR_DEVICE, "is lost");
    eg_set_device("cpu:0");
    CHECK_TENSOR(eg_add(eg_ones(EG_FLOAT32, EG_SHAPE(1)), 1), 0, 2);
    _Exit(test_fails > 0);
}
TEST(host_a_lost_device_says_so) {
    char command[4096];
    snprintf(command, sizeof command, "TEST_LOSES=1 '%s' host_child_that_loses >/dev/null", test_program);
    if (getenv("TEST_LOSES")) SKIP("is that child");
    CHECK_INT(system(command), 0);
}
#endif
