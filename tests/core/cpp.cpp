// eager.h in C++17: overloads where C has _Generic, options as structs, scopes that a destructor ends. Linked with an
// eager.o that was compiled as C or as C++; both have one layout.
#include "test.h"
#include <type_traits>

TEST(numbers_mix_on_either_side) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4);
    CHECK_TENSOR(eg_matmul(x, x), 0, 7, 10, 15, 22);
    CHECK_TENSOR(eg_mul(eg_add(x, 1), 2.0), 0, 4, 6, 8, 10);
    CHECK_TENSOR(eg_sub(1.0f, x), 0, 0, -1, -2, -3);
    CHECK_TENSOR(eg_add(x, 0), 0, 1, 2, 3, 4);
    CHECK_TENSOR(eg_add(int64_t{1} << 40, eg_constant_of(EG_INT64, EG_SHAPE(1), 1)), 0, 1099511627777.0);
    CHECK_ERROR(eg_add(x, nullptr), EG_ERROR_NULL, "eg_add");
}

TEST(options_are_structs) {
    eg_tensor *x = eg_constant(EG_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    eg_reduce_options rows{};
    rows.axes = EG_AXES(1);
    rows.keepdims = true;
    eg_tensor *sums = eg_reduce_sum(x, rows);
    CHECK_SHAPE(sums, 2, 1);
    CHECK_TENSOR(sums, 0, 6, 15);
    CHECK_TENSOR(eg_reduce_sum(x), 0, 21);
    CHECK_INT(eg_rank(eg_zeros(EG_FLOAT32, EG_SCALAR)), 0);
}

TEST(scopes_end_with_their_block) {
    int64_t before = eg_memory().live_tensors;
    for (int i = 0; i < 3; i++) {
        EG_SCOPE;
        eg_tensor *x = eg_scalar(i);
        if (i == 1) continue;
        CHECK(eg_add(x, x) != nullptr);
    }
    CHECK_INT(eg_memory().live_tensors, before);
}

TEST(functions_may_be_lambdas) {
    eg_tensor *x = eg_scalar(3.0), *dx = nullptr;
    CHECK(eg_gradients_function([](eg_tensor *const *in, void *) { return eg_mul(in[0], eg_square(in[0])); }, nullptr,
                                &x, 1, &dx));
    CHECK_TENSOR(dx, 1e-6, 27);
}

TEST(training_step) {
    eg_tensor *w = eg_variable(eg_scalar(1.0), "w");
    eg_optimizer_options options{};
    options.learning_rate = 0.1;
    eg_optimizer *sgd = eg_sgd(options);
    eg_tape *tape = eg_tape_begin();
    eg_tensor *gradient = eg_tape_gradient(tape, eg_square(w), w);
    CHECK(eg_apply_gradients(sgd, &gradient, &w, 1));
    CHECK_NEAR(eg_item(w), 0.8, 1e-6);
    eg_tensor *b = eg_variable(eg_scalar(1.0), "b");
    tape = eg_tape_begin();
    CHECK(eg_tape_minimize(tape, eg_add(w, b), EG_LIST(w, b), sgd));
    CHECK_NEAR(eg_item(b), 0.9, 1e-6);
    eg_list state = eg_optimizer_state_list(sgd);
    CHECK_INT(state.count, 2);
    eg_release(b);
    eg_optimizer_release(sgd);
    eg_release(w);
}

TEST(values_have_operators) {
    eg_value x = eg_constant(EG_SHAPE(2), 1, 2);
    eg_value y = 2 * x + 1 - x / 2.0 * x;
    CHECK_TENSOR(y, 1e-6, 2.5, 3);
    CHECK_TENSOR(-y, 1e-6, -2.5, -3);
    CHECK_TENSOR(eg_add(x, y), 1e-6, 3.5, 5);
    eg_tensor *plain = x;
    CHECK_TENSOR(plain - x, 0, 0, 0);
}

enum small { SMALL_TWO = 2 };
template <class N> static void check_operators(N two) {
    eg_tensor *x = std::is_floating_point<N>::value ? eg_constant_of(EG_FLOAT64, EG_SHAPE(2), 4, 6)
                                                    : eg_constant_of(EG_INT64, EG_SHAPE(2), 4, 6);
    eg_value v = x;
    CHECK_TENSOR(v + two, 0, 6, 8);
    CHECK_TENSOR(two + v, 0, 6, 8);
    CHECK_TENSOR(v - two, 0, 2, 4);
    CHECK_TENSOR(two - v, 0, -2, -4);
    CHECK_TENSOR(v * two, 0, 8, 12);
    CHECK_TENSOR(two * v, 0, 8, 12);
    eg_value y = v;
    y += two;
    CHECK_TENSOR(y, 0, 6, 8);
    y -= two;
    CHECK_TENSOR(y, 0, 4, 6);
    (y *= two) += two;
    CHECK_TENSOR(y, 0, 10, 14);
    CHECK_TENSOR(x, 0, 4, 6);
}
TEST(operators_take_every_number) {
    check_operators<signed char>(2);
    check_operators<unsigned char>(2);
    check_operators<char>(2);
    check_operators<short>(2);
    check_operators<unsigned short>(2);
    check_operators(2);
    check_operators(2u);
    check_operators(2l);
    check_operators(2ul);
    check_operators(2ll);
    check_operators(2ull);
    check_operators(sizeof(short));
    check_operators(SMALL_TWO);
    check_operators(2.0f);
    check_operators(2.0);
    check_operators(2.0L);
    eg_tensor *x = eg_constant(EG_SHAPE(2), 4, 6);
    eg_value y = x;
    y /= 2;
    CHECK_TENSOR(y, 0, 2, 3);
    y += x;
    CHECK_TENSOR(y, 0, 6, 9);
    CHECK_TENSOR(true + y, 0, 7, 10);
    CHECK_ERROR(y += nullptr, EG_ERROR_NULL, "eg_add");
}

static eg_dtype unknown(eg_dtype dtype) { return dtype; }
TEST(pointers_to_data_have_a_type) {
    double rows[2][2] = {{1, 2}, {3, 4}};
    const double (*first)[2] = rows;
    long long wide[2] = {5, 6};
    const unsigned char bytes[2] = {0, 7};
    CHECK_TENSOR(eg_from_data(EG_FLOAT64, EG_SHAPE(2, 2), rows), 0, 1, 2, 3, 4);
    CHECK_TENSOR(eg_from_data(unknown(EG_FLOAT64), EG_SHAPE(2, 2), first), 0, 1, 2, 3, 4);
    CHECK_TENSOR(eg_from_data(EG_INT64, EG_SHAPE(2), wide), 0, 5, 6);
    CHECK_TENSOR(eg_from_data(EG_BOOL, EG_SHAPE(2), bytes), 0, 0, 1);
    CHECK_TENSOR(eg_from_data(EG_FLOAT64, EG_SHAPE(1), static_cast<const void *>(rows)), 0, 1);
    CHECK_TENSOR(eg_wrap_data(EG_FLOAT64, EG_SHAPE(4), rows, [](void *, void *) {}, nullptr), 0, 1, 2, 3, 4);
    CHECK_SHAPE(eg_from_data(EG_FLOAT32, EG_SHAPE(0), nullptr), 0);
    CHECK_ERROR(eg_from_data(unknown(EG_FLOAT32), EG_SHAPE(2, 2), rows), EG_ERROR_DTYPE,
                "eg_from_data: the pointer is to double, the tensor's dtype is float32");
    CHECK_ERROR(eg_wrap_data(unknown(EG_INT32), EG_SHAPE(2), wide, nullptr, nullptr), EG_ERROR_DTYPE,
                "eg_wrap_data: the pointer is to long long");
    float into[2][1] = {};
    CHECK(eg_read_into(eg_constant(EG_SHAPE(2), 8, 9), into, 2) && into[1][0] == 9);
    CHECK_ERROR(eg_read_into(eg_constant(EG_SHAPE(2), 8, 9), wide, 2), EG_ERROR_DTYPE,
                "eg_read_into: the pointer is to long long");
}

TEST(graphs_are_written_in_blocks) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *v, *y;
    {
        EG_GRAPH(g);
        v = eg_variable(eg_scalar(1), "v");
        eg_tensor *raise = eg_assign_add(v, eg_scalar(1));
        EG_AFTER(raise);
        y = eg_mul(v, eg_scalar(2));
    }
    CHECK(eg_executing_eagerly());
    eg_session *s = eg_session_new(g);
    CHECK(eg_session_initialize(s, nullptr, 0));
    CHECK_NEAR(eg_item(eg_session_eval(s, y, nullptr, 0)), 4, 0);
    CHECK_NEAR(eg_item(eg_session_eval(s, y, nullptr, 0)), 6, 0);
    eg_session_release(s);
    eg_graph_release(g);
    eg_release(v);
}
TEST(nothing_is_recorded_in_a_quiet_block) {
    eg_tensor *x = eg_scalar(3.0);
    eg_tape *tape = eg_tape_begin();
    CHECK(eg_tape_watch(tape, x));
    eg_tensor *y = eg_square(x), *quiet = nullptr;
    {
        EG_NO_RECORDING;
        quiet = eg_square(x);
    }
    CHECK_TENSOR(eg_tape_gradient(tape, eg_add(y, quiet), x), 1e-6, 6);
}

TEST(datasets_are_built_alike) {
    eg_map_options options{};
    options.threads = 2;
    eg_dataset *d = eg_dataset_zip(eg_dataset_range(0, 5, 1),
                                   eg_dataset_from_slices(eg_constant(EG_SHAPE(5), 1, 2, 3, 4, 5)));
    d = eg_dataset_map_one(d, [](eg_tensor *const *in, void *) -> eg_tensor * {
        return eg_mul(eg_cast(in[0], EG_FLOAT32), in[1]);
    }, nullptr, options);
    d = eg_dataset_batch(eg_dataset_shuffle(d, 1), 5);
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *out[EG_MAX_COMPONENTS];
    CHECK(eg_iterator_next(it, out) == EG_NEXT);
    CHECK_TENSOR(out[0], 0, 0, 2, 6, 12, 20);
    eg_iterator_release(it);
    eg_dataset_release(d);
}

TEST(a_loop_lets_go_of_what_it_had) {
    EG_SCOPE;
    eg_tensor *x = eg_constant(EG_SHAPE(2, 2), 1, 1, 0, 1);
    const int64_t before = eg_memory().live_tensors;
    for (int i = 0; i < 3; i++) eg_replace(&x, eg_matmul(x, x));
    CHECK_TENSOR(x, 0, 1, 8, 0, 1);
    CHECK_INT(eg_memory().live_tensors, before);
}
TEST(models_are_made_and_called) {
    eg_layer_options relu{};
    relu.activation = EG_RELU;
    eg_layer *model = eg_sequential(eg_layer_conv2d(4, 3, relu), eg_layer_global_average_pooling2d(),
                                    eg_layer_dense(2));
    eg_layer *empty = eg_sequential();
    eg_call_options training{};
    training.training = true;
    CHECK_SHAPE(eg_call(model, eg_zeros(EG_FLOAT32, EG_SHAPE(3, 8, 8, 1)), training), 3, 2);
    CHECK_INT(eg_layer_parameters(model), 4 * 9 + 4 + 4 * 2 + 2);
    CHECK(eg_layer_add(empty, eg_layer_reshape(EG_SHAPE(2, -1))));
    CHECK_SHAPE(eg_call(empty, eg_zeros(EG_FLOAT32, EG_SHAPE(3, 8))), 3, 2, 4);
    eg_layer_release(empty);
    eg_layer_release(model);
}

// Options or none, numbers or tensors: what a call of a function that can fail says in C it says here, too.
TEST(errors_name_the_line) {
#ifdef NDEBUG
    SKIP("NDEBUG leaves it out");
#endif
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), *integers = eg_cast(x, EG_INT32),
              *y = eg_ones(EG_FLOAT32, EG_SHAPE(2, 2));
    eg_layer_options relu{};
    relu.activation = EG_RELU;
    eg_reduce_options rows{};
    rows.axes = EG_AXES(7);
    char place[40];
#define PLACE (snprintf(place, sizeof place, "(at cpp.cpp:%d)", __LINE__), place)
    CHECK_ERROR(eg_softmax(integers), EG_ERROR_DTYPE, PLACE);
    CHECK_ERROR(eg_reduce_sum(x, rows), EG_ERROR_ARGUMENT, PLACE);
    CHECK_ERROR(eg_matmul(x, x), EG_ERROR_SHAPE, PLACE);
    CHECK_ERROR(eg_layer_dense(-1, relu), EG_ERROR_ARGUMENT, PLACE);
    CHECK_ERROR(eg_sequential(eg_layer_dense(1), nullptr), EG_ERROR_NULL, PLACE);
    CHECK_ERROR(eg_dataset_batch(eg_dataset_range(0, 1, 1), 0), EG_ERROR_ARGUMENT, PLACE);
    CHECK_ERROR(eg_dataset_from_slices(x, eg_scalar(1)), EG_ERROR_SHAPE, PLACE);
    CHECK_ERROR(eg_load_npz("no such file"), EG_ERROR_FILE, PLACE);
    CHECK_ERROR(eg_random_normal(EG_SHAPE(-1)), EG_ERROR_SHAPE, PLACE);
    eg_layer *model = eg_layer_dense(3);
    CHECK(eg_compile(model, eg_sgd(), eg_mean_squared_error, nullptr, 0));
    CHECK_ERROR(eg_train_on_batch(model, x, y), EG_ERROR_SHAPE, PLACE);
    CHECK_ERROR(eg_call(model, eg_scalar(1)), EG_ERROR_SHAPE, PLACE);
#undef PLACE
    eg_layer_release(model);
}
