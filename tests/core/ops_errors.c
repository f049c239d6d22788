// What ops do with operands that do not fit: every op, every operand, and options out of their range. A failed op
// returns NULL and raises one error that names the op; nothing leaks (the harness looks), nothing crashes.
#define FAULTS_DENSE
#include "faults.h"

// One line an op: its name, good operands ("f2 3": float32 (2, 3); i: int32, b: bool; f: rank 0), a call on them.
typedef struct op_call { const char *name, *operands; eg_tensor *(*call)(eg_tensor **x); } op_call;
#define UNARY(O, name) O(name, name, "f2 3", eg_##name(x[0]))
#define BINARY(O, name) O(name, name, "f2 3,f2 3", eg_##name(x[0], x[1]))
#define CALLS(O) \
    UNARY(O, negative) UNARY(O, abs) UNARY(O, sign) UNARY(O, square) UNARY(O, sqrt) UNARY(O, rsqrt) \
    UNARY(O, reciprocal) UNARY(O, exp) UNARY(O, expm1) \
    UNARY(O, log) UNARY(O, log1p) UNARY(O, sin) UNARY(O, cos) UNARY(O, tan) UNARY(O, asin) UNARY(O, acos) \
    UNARY(O, atan) UNARY(O, sinh) UNARY(O, cosh) \
    UNARY(O, tanh) UNARY(O, asinh) UNARY(O, acosh) UNARY(O, atanh) UNARY(O, erf) UNARY(O, erfc) UNARY(O, floor) \
    UNARY(O, ceil) UNARY(O, round) UNARY(O, is_nan) UNARY(O, is_inf) \
    UNARY(O, is_finite) UNARY(O, sigmoid) UNARY(O, softplus) UNARY(O, softsign) UNARY(O, relu) UNARY(O, relu6) \
    UNARY(O, selu) UNARY(O, silu) UNARY(O, mish) \
    UNARY(O, gelu) UNARY(O, gelu_tanh) UNARY(O, hard_sigmoid) UNARY(O, identity) UNARY(O, stop_gradient) \
    BINARY(O, add) BINARY(O, sub) BINARY(O, mul) BINARY(O, div) BINARY(O, divide_no_nan) BINARY(O, floordiv) \
    BINARY(O, mod) BINARY(O, pow) BINARY(O, maximum) \
    BINARY(O, minimum) BINARY(O, squared_difference) \
    BINARY(O, log_cosh_difference) BINARY(O, atan2) BINARY(O, leaky_relu) BINARY(O, elu) \
    BINARY(O, sigmoid_cross_entropy_with_logits) \
    BINARY(O, equal) BINARY(O, not_equal) BINARY(O, less) BINARY(O, less_equal) BINARY(O, greater) \
    BINARY(O, greater_equal) \
    BINARY(O, softmax_cross_entropy_with_logits) \
    O(logical_not, logical_not, "b2 3", eg_logical_not(x[0])) \
    O(logical_and, logical_and, "b2 3,b2 3", eg_logical_and(x[0], x[1])) \
    O(logical_or, logical_or, "b2 3,b2 3", eg_logical_or(x[0], x[1])) \
    O(logical_xor, logical_xor, "b2 3,b2 3", eg_logical_xor(x[0], x[1])) \
    O(where, where, "b2 3,f2 3,f2 3", eg_where(x[0], x[1], x[2])) \
    O(huber_difference, huber_difference, "f2 3,f2 3,f", eg_huber_difference(x[0], x[1], x[2])) \
    O(hinge_margin, hinge_margin, "f2 3,f2 3,f", eg_hinge_margin(x[0], x[1], x[2])) \
    O(clip_by_value, clip_by_value, "f2 3,f,f", eg_clip_by_value(x[0], x[1], x[2])) \
    O(softmax, softmax, "f2 3", eg_softmax(x[0])) O(softmax, softmax_first, "f2 3", eg_softmax(x[0], .axis = EG_ZERO)) \
    O(log_softmax, log_softmax, "f2 3", eg_log_softmax(x[0])) \
    O(sparse_softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits, "i2,f2 3", \
      eg_sparse_softmax_cross_entropy_with_logits(x[0], x[1])) \
    O(reduce_sum, reduce_sum, "f2 3", eg_reduce_sum(x[0])) \
    O(reduce_sum, reduce_sum_axis, "f2 3", eg_reduce_sum(x[0], .axes = EG_AXES(1))) \
    O(reduce_mean, reduce_mean, "f2 3", eg_reduce_mean(x[0], .axes = EG_AXES(1))) \
    O(reduce_max, reduce_max, "f2 3", eg_reduce_max(x[0], .axes = EG_AXES(1))) \
    O(reduce_min, reduce_min, "f2 3", eg_reduce_min(x[0], .axes = EG_AXES(-2))) \
    O(reduce_prod, reduce_prod, "f2 3", eg_reduce_prod(x[0], .axes = EG_AXES(1))) \
    O(reduce_all, reduce_all, "b2 3", eg_reduce_all(x[0])) O(reduce_any, reduce_any, "b2 3", eg_reduce_any(x[0])) \
    O(reduce_logsumexp, reduce_logsumexp, "f2 3", eg_reduce_logsumexp(x[0], .axes = EG_AXES(1))) \
    O(reduce_variance, reduce_variance, "f2 3", eg_reduce_variance(x[0], .axes = EG_AXES(1))) \
    O(reduce_std, reduce_std, "f2 3", eg_reduce_std(x[0], .axes = EG_AXES(1))) \
    O(norm, norm, "f2 3", eg_norm(x[0], .axes = EG_AXES(1))) O(norm, norm1, "f2 3", eg_norm(x[0], .ord = 1)) \
    O(norm, norm_max, "f2 3", eg_norm(x[0], .ord = INFINITY)) \
    O(argmax, argmax, "f2 3", eg_argmax(x[0], .axis = 1)) O(argmin, argmin, "f2 3", eg_argmin(x[0])) \
    O(cumsum, cumsum, "f2 3", eg_cumsum(x[0], .axis = 1)) \
    O(sort, sort, "f2 3", eg_sort(x[0])) O(argsort, argsort, "f2 3", eg_argsort(x[0])) \
    O(top_k, top_k, "f2 3", eg_top_k(x[0], 2, NULL)) \
    O(matmul, matmul, "f2 3,f3 4", eg_matmul(x[0], x[1])) \
    O(matmul, matmul_batched, "f2 3,f5 4 3", eg_matmul(x[0], x[1], .transpose_b = true)) \
    O(einsum, einsum, "f2 3,f3 4", eg_einsum("ij,jk->ik", x, 2)) \
    O(einsum, einsum_one, "f2 3", eg_einsum("ij->ji", x, 1)) \
    O(einsum, einsum_diagonal, "f3 3", eg_einsum("ii->i", x, 1)) \
    O(reshape, reshape, "f2 3", eg_reshape(x[0], EG_SHAPE(3, 2))) O(transpose, transpose, "f2 3", eg_transpose(x[0])) \
    O(transpose, transpose_perm, "f2 3", eg_transpose(x[0], .perm = EG_AXES(1, 0))) \
    O(expand_dims, expand_dims, "f2 3", eg_expand_dims(x[0], 1)) \
    O(squeeze, squeeze, "f2 1", eg_squeeze(x[0], .axes = EG_AXES(1))) \
    O(broadcast_to, broadcast_to, "f2 1", eg_broadcast_to(x[0], EG_SHAPE(2, 3))) \
    O(concat, concat, "f2 3,f2 1,f2 2", eg_concat(x, 3, 1)) O(stack, stack, "f2 3,f2 3", eg_stack(x, 2, 0)) \
    O(split, split, "f2 4", first_of_split(x[0])) \
    O(unstack, unstack, "f2 3", first_of_unstack(x[0])) \
    O(slice, slice, "f2 3", eg_slice(x[0], EG_SHAPE(0, 1), EG_SHAPE(1, -1))) \
    O(strided_slice, \
      strided_slice, "f2 3", eg_strided_slice(x[0], EG_SHAPE(0, -1), EG_SHAPE(2, EG_END), EG_SHAPE(1, -1))) \
    O(index, index, "f2 3", eg_index(x[0], 1)) \
    O(reverse, reverse, "f2 3", eg_reverse(x[0], EG_AXES(1))) O(pad, pad, "f2 3", eg_pad(x[0], EG_PADS(1, 0, 0, 1))) \
    O(pad, pad_reflect, "f2 3", eg_pad(x[0], EG_PADS(1, 0, 0, 1), .mode = EG_PAD_REFLECT)) \
    O(tile, tile, "f2 3", eg_tile(x[0], EG_SHAPE(2, 1))) O(repeat, repeat, "f2 3", eg_repeat(x[0], 2, 1)) \
    O(gather, gather, "f2 3,i2", eg_gather(x[0], x[1])) \
    O(gather, gather_axis, "f2 3,i2 2", eg_gather(x[0], x[1], .axis = 1)) \
    O(gather_nd, gather_nd, "f2 3,i2 2", eg_gather_nd(x[0], x[1])) \
    O(take_along_axis, take_along_axis, "f2 3,i2 1", eg_take_along_axis(x[0], x[1], 1)) \
    O(scatter_nd, scatter_nd, "i2 1,f2 3", eg_scatter_nd(x[0], x[1], EG_SHAPE(4, 3))) \
    O(tensor_scatter_add, tensor_scatter_add, "f4 3,i2 1,f2 3", eg_tensor_scatter_add(x[0], x[1], x[2])) \
    O(segment_sum, segment_sum, "f2 3,i2", eg_segment_sum(x[0], x[1], 3)) \
    O(one_hot, one_hot, "i2", eg_one_hot(x[0], 3)) \
    O(conv2d, conv2d, "f1 4 4 2,f2 2 2 3", eg_conv2d(x[0], x[1])) \
    O(conv1d, conv1d, "f1 4 2,f2 2 3", eg_conv1d(x[0], x[1])) \
    O(depthwise_conv2d, depthwise_conv2d, "f1 4 4 2,f2 2 2 3", eg_depthwise_conv2d(x[0], x[1])) \
    O(conv2d_transpose, conv2d_transpose, "f1 4 4 2,f2 2 3 2", eg_conv2d_transpose(x[0], x[1])) \
    O(conv1d_transpose, conv1d_transpose, "f1 4 2,f2 3 2", eg_conv1d_transpose(x[0], x[1])) \
    O(max_pool2d, max_pool2d, "f1 4 4 2", eg_max_pool2d(x[0])) \
    O(avg_pool2d, avg_pool2d, "f1 4 4 2", eg_avg_pool2d(x[0])) \
    O(max_pool1d, max_pool1d, "f1 4 2", eg_max_pool1d(x[0])) O(avg_pool1d, avg_pool1d, "f1 4 2", eg_avg_pool1d(x[0])) \
    O(resize, resize, "f1 2 2 1", eg_resize(x[0], 3, 3)) O(cast, cast, "f2 3", eg_cast(x[0], EG_FLOAT64))

static eg_tensor *first_of_split(eg_tensor *x) {
    eg_tensor *part[2];
    bool ok = eg_split(x, 2, 1, part);
    CHECK(ok == (part[0] != NULL) && ok == (part[1] != NULL));
    return part[0];
}
static eg_tensor *first_of_unstack(eg_tensor *x) {
    eg_tensor *part[3];
    bool ok = eg_unstack(x, 3, 1, part);
    CHECK(ok == (part[0] != NULL) && ok == (part[2] != NULL));
    return part[0];
}
#define FUNCTION(name, id, operands, expression) static eg_tensor *call_##id(eg_tensor **x) { return expression; }
CALLS(FUNCTION)
#define LINE(name, id, operands, expression) { "eg_" #name, operands, call_##id },
static const op_call calls[] = { CALLS(LINE) };
enum { NUMBER_OF_CALLS = (int)(sizeof calls / sizeof calls[0]) };

static int operands_of(const op_call *c, eg_tensor **x) {
    int n = 0;
    for (const char *p = c->operands; *p; n++) {
        eg_shape s = EG_SCALAR;
        eg_dtype dtype = *p == 'i' ? EG_INT32 : *p == 'b' ? EG_BOOL : EG_FLOAT32;
        for (p++; *p && *p != ',';) {
            char *end;
            s.dims[s.rank++] = strtoll(p, &end, 10);
            p = *end == ' ' ? end + 1 : end;
        }
        if (*p) p++;
        x[n] = eg_ones(dtype, s);
    }
    return n;
}
TEST(every_op_runs_on_its_good_operands) {
    for (int k = 0; k < NUMBER_OF_CALLS; k++) {
        EG_SCOPE;
        eg_tensor *x[3];
        operands_of(&calls[k], x);
        CHECK(calls[k].call(x) != NULL);
        if (eg_error()) { printf("    %s: %s\n", calls[k].name, eg_error_message()); eg_error_clear(); }
    }
}
TEST(a_null_operand_is_an_error_that_names_the_op) {
    for (int k = 0; k < NUMBER_OF_CALLS; k++) {
        EG_SCOPE;
        eg_tensor *x[3], *y;
        int n = operands_of(&calls[k], x);
        for (int i = 0; i < n; i++) {
            eg_tensor *good = x[i];
            x[i] = NULL;
            CHECK_ERROR(y = calls[k].call(x), EG_ERROR_NULL, calls[k].name);
            CHECK(y == NULL);
            x[i] = good;
        }
        // Where an error is pending already, a NULL adds none: the first one stays.
        int64_t before = eg_error_count();
        eg_raise(EG_ERROR_STATE, "the first error");
        x[0] = NULL;
        CHECK(calls[k].call(x) == NULL);
        CHECK_STR(eg_error_message(), "the first error");
        CHECK_INT(eg_error_count() - before, 1);
        eg_error_clear();
    }
}
// Each operand in turn becomes something odd. Whatever it is: a result and no error, or no result and an error that
// begins with the op's name; and a gradient, where there is a result, that comes or fails in the same way.
TEST(odd_operands_give_a_result_or_an_error) {
    const eg_shape shapes[] = { EG_SCALAR, EG_SHAPE(1), EG_SHAPE(3), EG_SHAPE(0), EG_SHAPE(2, 3), EG_SHAPE(3, 2),
                                EG_SHAPE(2, 0), EG_SHAPE(0, 3), EG_SHAPE(5, 7), EG_SHAPE(2, 3, 1),
                                EG_SHAPE(2, 2, 2, 2), EG_SHAPE(1, 4, 4, 2), EG_SHAPE(0, 0, 0, 0),
                                EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), EG_SHAPE(2, 2, 2, 2, 2, 2, 2, 2) };
    int results = 0, errors = 0;
    for (int k = 0; k < NUMBER_OF_CALLS; k++)
        for (int dtype = EG_FLOAT32; dtype <= EG_BFLOAT16 + 2; dtype++)
            for (int s = 0; s < 15; s++) {
                EG_SCOPE;
                eg_tensor *x[3];
                int n = operands_of(&calls[k], x);
                for (int i = 0; i < n; i++) {
                    eg_tensor *good = x[i], *odd = dtype == EG_BFLOAT16 + 1 ? eg_integer(s)
                                                   : dtype == EG_BFLOAT16 + 2 ? eg_number(0.5 + s)
                                                   : eg_cast(eg_ones(EG_FLOAT32, shapes[s]), (eg_dtype)dtype);
                    x[i] = odd;
                    eg_tape *tape = eg_tape_begin();
                    bool watched = dtype < EG_INT32 && eg_tape_watch(tape, odd);
                    eg_tensor *y = calls[k].call(x);
                    if (y && !eg_synchronize()) y = NULL;             // a GPU may notice only now
                    bool fine = y ? eg_error() == EG_OK : eg_error() != EG_OK &&
                                !strncmp(eg_error_message(), calls[k].name, strlen(calls[k].name));
                    if (!fine)
                        printf("    %s, operand %d, shape %d of %s: %s\n", calls[k].name, i, s,
                               dtype <= EG_BFLOAT16 ? eg_dtype_name((eg_dtype)dtype) : "number", eg_error_message());
                    CHECK(fine);
                    eg_error_clear();
                    if (y && watched) {
                        eg_tensor *g = eg_tape_gradient(tape, y, odd);
                        CHECK(!g || (eg_size(g) == eg_size(odd) && eg_dtype_of(g) == eg_dtype_of(odd)));
                        CHECK_INT(eg_error(), EG_OK);
                        eg_error_clear();
                    }
                    y ? results++ : errors++;
                    x[i] = good;
                }
            }
    CHECK(results > 1000 && errors > 1000);
}
TEST(an_error_frees_what_was_made) {
    for (int k = 0; k < NUMBER_OF_CALLS; k++) {
        eg_scope scope = eg_scope_begin();
        eg_tensor *x[3];
        int64_t before = eg_memory().live_tensors;
        int n = operands_of(&calls[k], x);
        x[n - 1] = eg_cast(eg_ones(EG_FLOAT32, EG_SHAPE(5, 7, 3)), EG_FLOAT16);
        calls[k].call(x);
        eg_error_clear();
        eg_scope_end(scope);
        CHECK_INT(eg_memory().live_tensors, before);
    }
}

// A loss of one's own may be made of any op: it gives what it gives alone, and what goes wrong in it goes wrong in the
// loss.
static const op_call *called;
static eg_tensor **called_on;
static eg_tensor *calling_loss(eg_tensor *labels, eg_tensor *predictions) {
    return labels == predictions ? called->call(called_on) : NULL;
}
TEST(every_op_within_a_loss) {
    for (int k = 0; k < NUMBER_OF_CALLS; k++) {
        EG_SCOPE;
        eg_tensor *x[3], *y = eg_scalar(1);
        operands_of(called = &calls[k], called_on = x);
        CHECK_SAME(eg_loss_per_example(calling_loss, y, y), calls[k].call(x), 0);
        x[0] = NULL;
        CHECK_ERROR(eg_loss_per_example(calling_loss, y, y), EG_ERROR_NULL, "NULL");
    }
}
// Every op and its gradient on operands whose elements lie apart, with one allocation after the other failing.
static eg_tensor *apart(eg_tensor *x) {
    if (!x || eg_rank(x) < 2) return x;
    eg_shape s = eg_shape_of(x), turned = s;
    for (int i = 0; i < s.rank; i++) turned.dims[i] = s.dims[s.rank - 1 - i];
    return eg_transpose(eg_ones(eg_dtype_of(x), turned));
}
static bool act_of_a_call(void) {
    eg_tensor *x[3], *of[3], *g[3];
    eg_tape *tape = eg_tape_begin();
    int floats = 0;
    bool right = tape != NULL;
    for (int i = 0, n = operands_of(called, x); i < n; i++) {
        x[i] = apart(x[i]);
        right = right && x[i] && (eg_dtype_of(x[i]) != EG_FLOAT32 || eg_tape_watch(tape, of[floats++] = x[i]));
    }
    eg_tensor *y = right ? called->call(x) : NULL;
    return y && (!floats || (eg_dtype_of(y) != EG_FLOAT32 && eg_dtype_of(y) != EG_FLOAT64) ||
                 eg_tape_gradients(tape, y, of, floats, g)) && eg_error() == EG_OK;
}
TEST(every_op_without_memory) {
    for (int k = 0; k < NUMBER_OF_CALLS && test_fails < 5; k++) {
        int before = test_fails;
        called = &calls[k];
        faults_sweep(act_of_a_call);
        if (test_fails > before) printf("    %s\n", calls[k].name);
    }
}

// ---- one by one

static eg_tensor *f(int64_t a, int64_t b) { return eg_ones(EG_FLOAT32, EG_SHAPE(a, b)); }
TEST(shapes_that_do_not_broadcast_show_both) {
    CHECK_ERROR(eg_add(f(2, 3), f(3, 2)), EG_ERROR_SHAPE, "eg_add: shapes do not broadcast: float32 [2, 3]");
    CHECK_ERROR(eg_add(f(2, 3), f(3, 2)), EG_ERROR_SHAPE, "float32 [3, 2]");
    CHECK_ERROR(eg_mul(f(2, 3), f(2, 4)), EG_ERROR_SHAPE, "axis -1: 3 against 4");
    CHECK_ERROR(eg_where(eg_ones(EG_BOOL, EG_SHAPE(5)), f(2, 3), f(2, 3)), EG_ERROR_SHAPE, "eg_where");
    CHECK_ERROR(eg_clip_by_value(f(2, 3), f(2, 2), 1), EG_ERROR_SHAPE, "[2, 2]");
    CHECK_ERROR(eg_less(f(0, 3), f(2, 3)), EG_ERROR_SHAPE, "0 against 2");
    CHECK_ERROR(eg_broadcast_to(f(2, 3), EG_SHAPE(2, 4)), EG_ERROR_SHAPE, "eg_broadcast_to: float32 [2, 3]");
    CHECK_ERROR(eg_broadcast_to(f(2, 3), EG_SHAPE(3)), EG_ERROR_SHAPE, "[3]");
    CHECK_ERROR(eg_broadcast_to(f(1, 3), EG_SHAPE(-1, 3)), EG_ERROR_SHAPE, "negative");
    eg_tensor *long_axis = eg_broadcast_to(eg_scalar(1), EG_SHAPE(INT64_C(1) << 50)),
              *other = eg_broadcast_to(eg_scalar(1), EG_SHAPE(INT64_C(1) << 50, 1));
    CHECK_ERROR(eg_add(long_axis, other), EG_ERROR_SHAPE, "more bytes than 64 bits");
    CHECK_ERROR(eg_add(long_axis, 1), EG_ERROR_MEMORY, "eg_add");
    CHECK_ERROR(eg_add(eg_broadcast_to(eg_scalar(1), EG_SHAPE(INT64_C(1) << 40, 0)), other), EG_ERROR_SHAPE, "eg_add");
    CHECK_ERROR(eg_reshape(f(0, 3), EG_SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40)), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_pad(long_axis, EG_PADS(1, 1), .mode = EG_PAD_REFLECT), EG_ERROR_MEMORY, "eg_pad");
    CHECK_ERROR(eg_einsum("ij,ij->ij", EG_TENSORS(other, eg_expand_dims(long_axis, 0))), EG_ERROR_SHAPE,
                "eg_einsum: an intermediate");
    CHECK_ERROR(eg_tile(long_axis, EG_SHAPE(1 << 20)), EG_ERROR_ARGUMENT, "eg_tile");
    CHECK_ERROR(eg_repeat(long_axis, 1 << 20, 0), EG_ERROR_ARGUMENT, "eg_repeat");
    CHECK_ERROR(eg_matmul(other, eg_expand_dims(long_axis, 0)), EG_ERROR_SHAPE, "eg_matmul");
    CHECK_ERROR(eg_concat(EG_TENSORS(long_axis, long_axis), 0), EG_ERROR_MEMORY, "eg_concat");
    CHECK_ERROR(eg_one_hot(eg_ones(EG_INT64, EG_SHAPE(1)), INT64_C(1) << 50), EG_ERROR_MEMORY,
                "eg_one_hot: out of memory (9007199254740992 bytes");
    CHECK_ERROR(eg_one_hot(eg_ones(EG_INT32, EG_SHAPE(1)), INT64_C(1) << 62), EG_ERROR_SHAPE,
                "eg_one_hot: a tensor of shape [1, 4611686018427387904] has more bytes");
    CHECK_ERROR(eg_gather(long_axis, 0), EG_ERROR_MEMORY, "eg_");
}
TEST(variables_are_named_in_errors) {
    eg_tensor *W = eg_variable(f(2, 3), "weights");
    CHECK_ERROR(eg_matmul(W, f(2, 3)), EG_ERROR_SHAPE, "'weights'");
    eg_release(W);
}
TEST(matmul_errors) {
    CHECK_ERROR(eg_matmul(f(32, 784), f(128, 10)), EG_ERROR_SHAPE,
                "eg_matmul: inner dimensions differ: [32, 784] x [128, 10] (784 against 128)");
    CHECK_ERROR(eg_matmul(eg_ones(EG_FLOAT32, EG_SHAPE(4, 1, 2, 3)), eg_ones(EG_FLOAT32, EG_SHAPE(5, 7, 3, 2))),
                EG_ERROR_SHAPE, "eg_matmul: batch axes do not broadcast: float32 [4, 1, 2, 3] (from eg_ones) and "
                                "float32 [5, 7, 3, 2] (from eg_ones) (axis -4: 4 against 5)");
    CHECK_ERROR(eg_matmul(f(2, 3), 3), EG_ERROR_SHAPE, "and float32 [] (from eg_number); eg_expand_dims makes");
    CHECK_ERROR(eg_matmul(f(2, 3), f(4, 3)), EG_ERROR_SHAPE, "transpose_b?");
    CHECK_ERROR(eg_matmul(f(3, 2), f(3, 4)), EG_ERROR_SHAPE, "transpose_a?");
    CHECK_ERROR(eg_matmul(eg_ones(EG_FLOAT32, EG_SHAPE(3)), f(3, 4)), EG_ERROR_SHAPE, "[3]");
    CHECK_ERROR(eg_matmul(eg_ones(EG_FLOAT32, EG_SHAPE(2, 1, 2)), eg_ones(EG_FLOAT32, EG_SHAPE(3, 2, 2))),
                EG_ERROR_SHAPE, "eg_matmul: batch axes do not broadcast");
    CHECK_ERROR(eg_matmul(f(2, 2), eg_ones(EG_FLOAT64, EG_SHAPE(2, 2))), EG_ERROR_DTYPE, "float64");
    CHECK_ERROR(eg_matmul(eg_ones(EG_BOOL, EG_SHAPE(2, 2)), eg_ones(EG_BOOL, EG_SHAPE(2, 2))), EG_ERROR_DTYPE, "bool");
}
TEST(axis_errors) {
    eg_tensor *x = f(2, 3);
    CHECK_ERROR(eg_reduce_sum(x, .axes = EG_AXES(2)), EG_ERROR_ARGUMENT,
                "eg_reduce_sum: axis 2 is out of range for rank 2");
    CHECK_ERROR(eg_reduce_max(x, .axes = EG_AXES(-3)), EG_ERROR_ARGUMENT, "axis -3");
    CHECK_ERROR(eg_reduce_mean(x, .axes = EG_AXES(1, -1)), EG_ERROR_ARGUMENT, "axis 1 is given twice");
    CHECK_ERROR(eg_reduce_prod(x, .axes = EG_AXES(5)), EG_ERROR_ARGUMENT, "eg_reduce_prod");
    CHECK_ERROR(eg_reduce_variance(x, .axes = EG_AXES(5)), EG_ERROR_ARGUMENT, "eg_reduce_variance");
    CHECK_ERROR(eg_reduce_logsumexp(x, .axes = EG_AXES(5)), EG_ERROR_ARGUMENT, "eg_reduce_logsumexp");
    CHECK_ERROR(eg_norm(x, .axes = EG_AXES(5)), EG_ERROR_ARGUMENT, "eg_norm");
    CHECK_ERROR(eg_argmax(x, .axis = 2), EG_ERROR_ARGUMENT, "eg_argmax: axis 2");
    CHECK_ERROR(eg_cumsum(x, .axis = -3), EG_ERROR_ARGUMENT, "eg_cumsum: axis -3");
    CHECK_ERROR(eg_sort(x, .axis = 2), EG_ERROR_ARGUMENT, "eg_sort: axis 2");
    CHECK_ERROR(eg_argsort(x, .axis = 2), EG_ERROR_ARGUMENT, "eg_argsort: axis 2");
    CHECK_ERROR(eg_softmax(x, .axis = 2), EG_ERROR_ARGUMENT, "eg_softmax: axis 2");
    CHECK_ERROR(eg_log_softmax(x, .axis = -3), EG_ERROR_ARGUMENT, "eg_log_softmax: axis -3");
    CHECK_ERROR(eg_expand_dims(x, 3), EG_ERROR_ARGUMENT, "eg_expand_dims: axis 3");
    CHECK_ERROR(eg_expand_dims(x, -4), EG_ERROR_ARGUMENT, "axis -4");
    CHECK_ERROR(eg_squeeze(x, .axes = EG_AXES(0)), EG_ERROR_SHAPE, "eg_squeeze: axis 0 of float32 [2, 3]");
    CHECK_ERROR(eg_transpose(x, .perm = EG_AXES(0, 0)), EG_ERROR_ARGUMENT, "eg_transpose: axis 0 is given twice");
    CHECK_ERROR(eg_transpose(x, .perm = EG_AXES(0)), EG_ERROR_ARGUMENT, "1 axes in perm");
    CHECK_ERROR(eg_concat(EG_TENSORS(x, x), 2), EG_ERROR_ARGUMENT, "eg_concat: axis 2");
    CHECK_ERROR(eg_stack(EG_TENSORS(x, x), 3), EG_ERROR_ARGUMENT, "eg_stack: axis 3");
    CHECK_ERROR(eg_gather(x, 0, .axis = 2), EG_ERROR_ARGUMENT, "eg_gather: axis 2");
    CHECK_ERROR(eg_take_along_axis(x, eg_zeros(EG_INT32, EG_SHAPE(2, 3)), 2), EG_ERROR_ARGUMENT,
                "eg_take_along_axis: axis 2");
    CHECK_ERROR(eg_repeat(x, 2, 2), EG_ERROR_ARGUMENT, "eg_repeat: axis 2");
    CHECK_ERROR(eg_reverse(x, EG_AXES(2)), EG_ERROR_ARGUMENT, "eg_reverse: axis 2");
    CHECK_ERROR(eg_one_hot(0, 3, .axis = 1), EG_ERROR_ARGUMENT, "eg_one_hot: axis 1");
    eg_tensor *part[2];
    CHECK_ERROR(eg_split(x, 2, 2, part), EG_ERROR_ARGUMENT, "eg_split: axis 2");
    CHECK_ERROR(eg_unstack(x, 2, 2, part), EG_ERROR_ARGUMENT, "eg_unstack: axis 2");
    eg_axes many = { 0, 9, { 0 } }, fewer = { 0, -1, { 0 } };
    CHECK_ERROR((eg_reduce_sum)(x, (eg_reduce_options){ .axes = many }), EG_ERROR_ARGUMENT, "9 axes");
    CHECK_ERROR((eg_reduce_sum)(x, (eg_reduce_options){ .axes = fewer }), EG_ERROR_ARGUMENT, "-1 axes");
}
TEST(shape_op_errors) {
    eg_tensor *x = f(2, 3), *part[4];
    CHECK_ERROR(eg_reshape(x, EG_SHAPE(4, 2)), EG_ERROR_SHAPE, "eg_reshape: float32 [2, 3]");
    CHECK_ERROR(eg_reshape(x, EG_SHAPE(4, -1)), EG_ERROR_SHAPE, "[4, -1]");
    CHECK_ERROR(eg_reshape(x, EG_SHAPE(-1, -1)), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_reshape(x, EG_SHAPE(-2, 3)), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_reshape(f(0, 3), EG_SHAPE(0, -1)), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_reshape(x, EG_SHAPE(INT64_MAX, INT64_MAX)), EG_ERROR_SHAPE, "eg_reshape");
    eg_shape bad = { 9, { 0 } };
    CHECK_ERROR(eg_reshape(x, bad), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_broadcast_to(x, bad), EG_ERROR_SHAPE, "rank 9");
    bad.rank = -1;
    CHECK_ERROR(eg_reshape(x, bad), EG_ERROR_SHAPE, "eg_reshape");
    CHECK_ERROR(eg_tile(x, bad), EG_ERROR_SHAPE, "eg_tile");
    CHECK_ERROR(eg_slice(x, bad, bad), EG_ERROR_SHAPE, "eg_slice");
    CHECK_ERROR(eg_strided_slice(x, bad, bad, bad), EG_ERROR_SHAPE, "eg_strided_slice");
    CHECK_ERROR(eg_scatter_nd(eg_zeros(EG_INT32, EG_SHAPE(1, 1)), eg_scalar(1), bad), EG_ERROR_SHAPE, "eg_scatter_nd");
    CHECK_ERROR(eg_concat(EG_TENSORS(x, f(3, 3)), 1), EG_ERROR_SHAPE, "float32 [3, 3]");
    CHECK_ERROR(eg_concat(EG_TENSORS(eg_scalar(1), eg_scalar(2)), 0), EG_ERROR_SHAPE, "eg_stack");
    CHECK_ERROR(eg_concat(part, 0, 0), EG_ERROR_ARGUMENT, "at least one");
    CHECK_ERROR(eg_concat(NULL, 2, 0), EG_ERROR_ARGUMENT, "eg_concat: a list of 2 is NULL");
    CHECK_ERROR(eg_stack(NULL, 2, 0), EG_ERROR_ARGUMENT, "eg_stack: a list of 2 is NULL");
    CHECK_ERROR(eg_stack(EG_TENSORS(x, f(3, 3)), 0), EG_ERROR_SHAPE, "eg_stack: shapes differ: float32 [2, 3]");
    CHECK_ERROR(eg_split(x, 2, 1, part), EG_ERROR_SHAPE, "does not divide into 2");
    CHECK_ERROR(eg_split(x, 0, 1, part), EG_ERROR_SHAPE, "eg_split");
    CHECK_ERROR(eg_split(x, -3, 1, part), EG_ERROR_ARGUMENT, "eg_split: a list of -3");
    CHECK_ERROR(eg_unstack(x, 2, 1, part), EG_ERROR_SHAPE, "has 3 slices, not 2");
    CHECK_ERROR(eg_slice(x, EG_SHAPE(0, 1), EG_SHAPE(1, 3)), EG_ERROR_INDEX, "axis 1 of float32 [2, 3]");
    CHECK_ERROR(eg_slice(x, EG_SHAPE(-1, 0), EG_SHAPE(1, 1)), EG_ERROR_INDEX, "axis 0");
    CHECK_ERROR(eg_slice(x, EG_SHAPE(3, 0), EG_SHAPE(-1, -1)), EG_ERROR_INDEX, "axis 0");
    CHECK_ERROR(eg_slice(x, EG_SHAPE(INT64_MIN, 0), EG_SHAPE(-1, 1)), EG_ERROR_INDEX, "axis 0");
    CHECK_ERROR(eg_slice(x, EG_SHAPE(INT64_MAX, 0), EG_SHAPE(INT64_MAX, INT64_MIN)), EG_ERROR_INDEX, "axis 0");
    CHECK_ERROR(eg_slice(x, EG_SHAPE(0), EG_SHAPE(1)), EG_ERROR_SHAPE, "[2, 3]");
    CHECK_ERROR(eg_strided_slice(x, EG_SHAPE(0), EG_SHAPE(1), EG_SHAPE(0)), EG_ERROR_ARGUMENT, "step of axis 0 is 0");
    CHECK_ERROR(eg_strided_slice(x, EG_SHAPE(0), EG_SHAPE(1), EG_SHAPE(INT64_MIN)), EG_ERROR_ARGUMENT,
                "eg_strided_slice");
    CHECK_ERROR(eg_strided_slice(x, EG_SHAPE(0, 0, 0), EG_SHAPE(1, 1, 1), EG_SHAPE(1, 1, 1)), EG_ERROR_SHAPE,
                "at most the rank");
    CHECK_ERROR(eg_strided_slice(x, EG_SHAPE(0), EG_SHAPE(1, 1), EG_SHAPE(1)), EG_ERROR_SHAPE, "one length");
    CHECK_ERROR(eg_index(eg_scalar(1), 0), EG_ERROR_INDEX, "eg_index");
    CHECK_ERROR(eg_tile(x, EG_SHAPE(2)), EG_ERROR_SHAPE, "[2, 3]");
    CHECK_ERROR(eg_tile(x, EG_SHAPE(-1, 1)), EG_ERROR_ARGUMENT, "eg_tile");
    CHECK_ERROR(eg_tile(x, EG_SHAPE(INT64_MAX, 1)), EG_ERROR_ARGUMENT, "eg_tile");
    CHECK_ERROR(eg_repeat(x, -1, 0), EG_ERROR_ARGUMENT, "-1 repeats");
    CHECK_ERROR(eg_repeat(x, INT64_MAX, 0), EG_ERROR_ARGUMENT, "eg_repeat");
    CHECK_ERROR(eg_repeat(x, INT64_MAX / 8, 0), EG_ERROR_SHAPE, "eg_repeat");
    CHECK_ERROR(eg_pad(x, EG_PADS(1, 1)), EG_ERROR_ARGUMENT, "2 paddings");
    CHECK_ERROR(eg_pad(x, EG_PADS(-1, 0, 0, 0)), EG_ERROR_ARGUMENT, "axis 0");
    CHECK_ERROR(eg_pad(x, EG_PADS(0, 0, 3, 0), .mode = EG_PAD_REFLECT), EG_ERROR_ARGUMENT, "axis 1");
    CHECK_ERROR(eg_pad(x, EG_PADS(0, 0, 4, 0), .mode = EG_PAD_SYMMETRIC), EG_ERROR_ARGUMENT, "axis 1");
    CHECK_ERROR(eg_pad(x, EG_PADS(0, 0, 1, 0), .mode = (eg_pad_mode)7), EG_ERROR_ARGUMENT, "mode 7");
    CHECK_ERROR(eg_pad(x, EG_PADS(INT64_MAX, INT64_MAX, 0, 0)), EG_ERROR_SHAPE, "eg_pad");
    CHECK_ERROR(eg_pad(eg_ones(EG_INT32, EG_SHAPE(1)), EG_PADS(1, 0), .value = 0.5), EG_ERROR_DTYPE, "0.5");
}
TEST(picking_errors) {
    eg_tensor *x = f(2, 3), *i = eg_zeros(EG_INT32, EG_SHAPE(2));
    CHECK_ERROR(eg_gather(x, f(1, 1)), EG_ERROR_DTYPE, "eg_gather: indices must be int32 or int64, not float32 [1, 1] "
                                                       "(from eg_ones); eg_cast(indices, EG_INT32) makes them so");
    CHECK_ERROR(eg_gather(x, 0.5), EG_ERROR_DTYPE, "0.5");
    CHECK_ERROR(eg_gather(eg_scalar(1), i), EG_ERROR_ARGUMENT, "eg_gather");
    CHECK_ERROR(eg_gather_nd(x, f(1, 1)), EG_ERROR_DTYPE, "eg_gather_nd");
    CHECK_ERROR(eg_gather_nd(x, eg_zeros(EG_INT32, EG_SHAPE(1, 3))), EG_ERROR_SHAPE,
                "at most the rank of float32 [2, 3]");
    CHECK_ERROR(eg_gather_nd(x, eg_scalar_of(EG_INT32, 0)), EG_ERROR_SHAPE, "eg_gather_nd");
    CHECK_ERROR(eg_gather_nd(x, eg_from_data(EG_INT64, EG_SHAPE(1, 2), (const int64_t[]){ 1, INT64_MAX })),
                EG_ERROR_INDEX, "out of range [0, 3) of axis 1");
    CHECK_ERROR(eg_gather(x, eg_from_data(EG_INT64, EG_SHAPE(1), (const int64_t[]){ INT64_MIN })), EG_ERROR_INDEX,
                "index -9223372036854775808");
    CHECK_ERROR(eg_take_along_axis(x, eg_zeros(EG_INT32, EG_SHAPE(3, 1)), 1), EG_ERROR_SHAPE, "int32 [3, 1]");
    CHECK_ERROR(eg_scatter_nd(eg_zeros(EG_INT32, EG_SHAPE(2, 1)), f(3, 3), EG_SHAPE(4, 3)), EG_ERROR_SHAPE,
                "into shape [4, 3]");
    CHECK_ERROR(eg_scatter_nd(eg_zeros(EG_INT32, EG_SHAPE(2, 3)), f(2, 3), EG_SHAPE(4, 3)), EG_ERROR_SHAPE,
                "eg_scatter_nd");
    CHECK_ERROR(eg_tensor_scatter_add(x, eg_zeros(EG_INT32, EG_SHAPE(1, 1)), f(1, 2)), EG_ERROR_SHAPE,
                "eg_tensor_scatter_add");
    CHECK_ERROR(eg_tensor_scatter_add(x, eg_zeros(EG_INT32, EG_SHAPE(1, 1)), eg_ones(EG_INT32, EG_SHAPE(1, 3))),
                EG_ERROR_DTYPE, "eg_tensor_scatter_add");
    CHECK_ERROR(eg_segment_sum(x, eg_zeros(EG_INT32, EG_SHAPE(3)), 2), EG_ERROR_SHAPE, "int32 [3]");
    CHECK_ERROR(eg_segment_sum(x, i, -1), EG_ERROR_ARGUMENT, "eg_segment_sum: -1 segments");
    CHECK_ERROR(eg_one_hot(i, -1), EG_ERROR_ARGUMENT, "eg_one_hot: the depth is -1");
    CHECK_ERROR(eg_one_hot(x, 3), EG_ERROR_DTYPE, "eg_one_hot");
    CHECK_ERROR(eg_one_hot(i, 3, .dtype = (eg_dtype)77), EG_ERROR_DTYPE, "77");
    CHECK_ERROR(eg_one_hot(i, 3, .dtype = EG_INT32, .on_value = 0.5), EG_ERROR_DTYPE, "0.5");
    CHECK_ERROR(eg_top_k(x, 4, NULL), EG_ERROR_ARGUMENT, "eg_top_k: k is 4, but must be 0 to");
    eg_tensor *where = x;
    CHECK_ERROR(eg_top_k(x, -1, &where), EG_ERROR_ARGUMENT, "k is -1, but");
    CHECK(where == NULL);
    CHECK_ERROR(eg_cast(x, (eg_dtype)-1), EG_ERROR_DTYPE, "eg_cast: -1 is no dtype");
    CHECK_ERROR(eg_norm(x, .ord = 3), EG_ERROR_ARGUMENT, "ord 3");
    CHECK_ERROR(eg_norm(x, .ord = NAN), EG_ERROR_ARGUMENT, "eg_norm");
}
TEST(convolution_errors) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(1, 4, 5, 4)), *k = eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 4, 2));
    CHECK_ERROR(eg_conv2d(x, eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 3, 2))), EG_ERROR_SHAPE,
                "eg_conv2d: 4 channels of float32 [1, 4, 5, 4] (from eg_ones) in 1 group against 3 input channels");
    CHECK_ERROR(eg_conv2d(x, eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 3, 2))), EG_ERROR_SHAPE, "float32 [3, 3, 3, 2]");
    CHECK_ERROR(eg_conv2d(x, eg_ones(EG_FLOAT32, EG_SHAPE(5, 3, 4, 2))), EG_ERROR_SHAPE, "EG_SAME?");
    CHECK_ERROR(eg_conv2d(x, k, .dilations = { 2 }), EG_ERROR_SHAPE, "window of 5");
    CHECK_ERROR(eg_conv2d(x, eg_ones(EG_FLOAT32, EG_SHAPE(3, 0, 4, 2))), EG_ERROR_SHAPE, "empty");
    CHECK_ERROR(eg_conv2d(x, k, .groups = 3), EG_ERROR_SHAPE, "3 groups");
    CHECK_ERROR(eg_conv2d(x, k, .groups = 2), EG_ERROR_SHAPE, "2 groups");
    CHECK_ERROR(eg_conv2d(x, k, .groups = -1), EG_ERROR_ARGUMENT, "-1 groups");
    CHECK_ERROR(eg_depthwise_conv2d(x, k, .groups = -1), EG_ERROR_ARGUMENT, "eg_depthwise_conv2d: -1 groups");
    CHECK_ERROR(eg_depthwise_conv2d(x, k, .groups = 2), EG_ERROR_ARGUMENT,
                "eg_depthwise_conv2d: .groups is 2: each channel has filters of its own");
    CHECK_SHAPE(eg_depthwise_conv2d(x, k, .groups = 1), 1, 2, 3, 8);
    CHECK_ERROR(eg_conv2d(x, k, .strides = { -1 }), EG_ERROR_ARGUMENT, "strides");
    CHECK_ERROR(eg_conv2d(x, k, .strides = { INT64_MAX }), EG_ERROR_ARGUMENT, "strides");
    CHECK_ERROR(eg_conv2d(x, k, .dilations = { 1, -1 }), EG_ERROR_ARGUMENT, "dilations");
    CHECK_ERROR(eg_conv2d(x, k, .padding = (eg_padding)5), EG_ERROR_ARGUMENT, "padding 5");
    CHECK_ERROR(eg_conv2d(x, eg_cast(k, EG_FLOAT64)), EG_ERROR_DTYPE, "eg_conv2d: dtypes differ");
    CHECK_ERROR(eg_conv2d(eg_cast(x, EG_INT32), eg_cast(k, EG_INT32)), EG_ERROR_DTYPE,
                "eg_conv2d: needs float32 or float64");
    CHECK_ERROR(eg_conv2d(f(2, 3), k), EG_ERROR_SHAPE, "(N, H, W, C)");
    CHECK_ERROR(eg_conv1d(f(2, 3), k), EG_ERROR_SHAPE, "eg_conv1d: needs x (N, W, C) and a filter (KW, C, O), not");
    CHECK_ERROR(eg_depthwise_conv2d(x, eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 3, 1))), EG_ERROR_SHAPE,
                "eg_depthwise_conv2d");
    CHECK_ERROR(eg_conv2d_transpose(x, k), EG_ERROR_SHAPE, "(KH, KW, O / groups, C)");
    eg_tensor *t = eg_ones(EG_FLOAT32, EG_SHAPE(3, 3, 2, 4));
    CHECK_ERROR(eg_conv2d_transpose(x, t, .strides = { 2 }, .output_padding = { 2 }), EG_ERROR_ARGUMENT,
                "a stride of 2 with EG_VALID it must be between 0 and 1");
    CHECK_ERROR(eg_conv2d_transpose(x, t, .groups = 3), EG_ERROR_SHAPE, "eg_conv2d_transpose");
    CHECK_ERROR(eg_conv2d_transpose(eg_cast(x, EG_INT32), eg_cast(t, EG_INT32)), EG_ERROR_DTYPE, "eg_conv2d_transpose");
    CHECK_ERROR(eg_conv2d_transpose(x, t, .strides = { INT32_MAX }, .dilations = { INT32_MAX }), EG_ERROR_SHAPE,
                "eg_conv2d_transpose");
    eg_tensor *one = eg_ones(EG_FLOAT32, EG_SHAPE(1, 1, 1, 1)),
              *tall = eg_broadcast_to(one, EG_SHAPE(INT64_C(1) << 40, 1, 1, 1));
    CHECK_ERROR(eg_conv2d(one, tall, .dilations = { 1 << 30 }), EG_ERROR_SHAPE,
                "eg_conv2d: the filter float32 [1099511627776, 1, 1, 1] (from eg_broadcast_to), dilated by 1073741824, "
                "is too large");
    CHECK_ERROR(eg_conv2d_transpose(one, tall, .dilations = { 1 << 30 }), EG_ERROR_SHAPE, "is too large");
    CHECK_ERROR(eg_conv2d_transpose(eg_broadcast_to(one, EG_SHAPE(1, INT64_C(1) << 57, 1, 1)), one, .strides = { 63 }),
                EG_ERROR_SHAPE, "the result is too large");
    CHECK_ERROR(eg_max_pool2d(x, .size = { 5 }), EG_ERROR_SHAPE, "eg_max_pool2d: a window of 5");
    CHECK_ERROR(eg_avg_pool2d(x, .size = { -1 }), EG_ERROR_ARGUMENT, "eg_avg_pool2d: size and strides");
    CHECK_ERROR(eg_avg_pool2d(x, .strides = { -1 }), EG_ERROR_ARGUMENT, "eg_avg_pool2d");
    CHECK_ERROR(eg_avg_pool2d(x, .padding = (eg_padding)2), EG_ERROR_ARGUMENT, "padding 2");
    CHECK_ERROR(eg_max_pool2d(f(2, 3)), EG_ERROR_SHAPE, "(N, H, W, C)");
    CHECK_ERROR(eg_max_pool1d(x), EG_ERROR_SHAPE, "eg_max_pool1d: needs (N, W, C)");
    CHECK_ERROR(eg_max_pool1d(eg_cast(eg_index(x, 0), EG_INT32)), EG_ERROR_DTYPE, "eg_max_pool1d");
    CHECK_ERROR(eg_resize(x, -1, 2), EG_ERROR_SHAPE, "-1 x 2");
    CHECK_ERROR(eg_resize(f(2, 3), 2, 2), EG_ERROR_SHAPE, "eg_resize: cannot make float32 [2, 3]");
    CHECK_ERROR(eg_resize(eg_ones(EG_FLOAT32, EG_SHAPE(1, 0, 2, 1)), 2, 2), EG_ERROR_SHAPE, "[1, 0, 2, 1]");
    CHECK_ERROR(eg_resize(eg_cast(x, EG_BOOL), 2, 2), EG_ERROR_DTYPE, "eg_resize");
    CHECK_ERROR(eg_resize(eg_zeros(EG_FLOAT32, EG_SHAPE(0, 2, 3)), 2, 2), EG_ERROR_SHAPE,
                "eg_resize: cannot make float32 [1, 0, 2, 3]");
    CHECK_ERROR(eg_resize(x, 2, 2, .method = (eg_resize_method)4), EG_ERROR_ARGUMENT, "method 4");
    CHECK_ERROR(eg_resize(x, INT64_MAX, 2), EG_ERROR_MEMORY, "eg_resize");
    CHECK_ERROR(eg_resize(x, INT64_C(1) << 61, 2), EG_ERROR_MEMORY, "eg_resize");
}
TEST(einsum_errors) {
    eg_tensor *x = f(2, 3), *y = f(3, 4);
    const char *const wrong[] = { "ij,jk-ik", "ij,jk->", "i,jk->ik", "ij,jk->iz", "ij,jk->ii",
                                  "ij;jk->ik", "ij,jk,kl->il", "ij->ij", "i..j,jk->ik", "...ij...,jk->ik", "ij,jk->ik,",
                                  "ij,jk->i-k", "", "ij,jk->ik->", "ijklmnopqr,jk->ik", "i1,jk->ik" };
    for (int k = 0; k < 16; k++) {
        eg_tensor *in[] = { x, y }, *z = eg_einsum(wrong[k], in, 2);
        if (k == 1) { CHECK(z != NULL); continue; }
        CHECK(z == NULL && eg_error() != EG_OK);
        CHECK_CONTAINS(eg_error_message(), "eg_einsum: ");
        eg_error_clear();
    }
    CHECK_ERROR(eg_einsum("ij,jk->ik", EG_TENSORS(x, f(4, 3))), EG_ERROR_SHAPE,
                "one letter stands for axes of 3 and 4");
    CHECK_ERROR(eg_einsum("ijk,jk->ik", EG_TENSORS(x, y)), EG_ERROR_SHAPE, "names 3 axes, but its operand has 2");
    CHECK_ERROR(eg_einsum("ii->i", EG_TENSORS(x)), EG_ERROR_SHAPE, "eg_einsum");
    eg_tensor *five = eg_ones(EG_FLOAT32, EG_SHAPE(1, 1, 2, 1, 2));
    CHECK_ERROR(eg_einsum("abcde,fghij", EG_TENSORS(five, five)), EG_ERROR_SHAPE, "has more than 8 axes");
    CHECK_ERROR(eg_einsum(NULL, EG_TENSORS(x)), EG_ERROR_ARGUMENT, "eg_einsum");
    CHECK_ERROR(eg_einsum("ij->ij", NULL, 1), EG_ERROR_ARGUMENT, "eg_einsum");
    CHECK_ERROR(eg_einsum("ij->ij", &x, 0), EG_ERROR_ARGUMENT, "eg_einsum");
    CHECK_ERROR(eg_einsum("ij,jk->ik", EG_TENSORS(x, eg_cast(y, EG_FLOAT64))), EG_ERROR_DTYPE,
                "eg_einsum: dtypes differ");
}
TEST(loss_errors) {
    eg_tensor *x = f(3, 4);
    CHECK_ERROR(eg_softmax_cross_entropy_with_logits(f(3, 3), x), EG_ERROR_SHAPE, "[3, 3]");
    CHECK_ERROR(eg_softmax_cross_entropy_with_logits(eg_ones(EG_INT32, EG_SHAPE(3, 4)), x), EG_ERROR_DTYPE, "int32");
    CHECK_ERROR(eg_softmax_cross_entropy_with_logits(eg_ones(EG_INT32, EG_SHAPE(3)), x), EG_ERROR_SHAPE,
                "eg_sparse_softmax");
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(x, eg_ones(EG_INT32, EG_SHAPE(3))), EG_ERROR_DTYPE,
                "the labels come first and the logits second: float32 [3, 4] ");
    CHECK_ERROR(eg_softmax_cross_entropy_with_logits(eg_scalar(1), eg_scalar(1)), EG_ERROR_SHAPE, "(..., classes)");
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(x, x), EG_ERROR_DTYPE,
                "eg_sparse_softmax_cross_entropy_with_logits");
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(eg_ones(EG_INT32, EG_SHAPE(4)), x), EG_ERROR_SHAPE,
                "int32 [4]");
    CHECK_ERROR(eg_sparse_softmax_cross_entropy_with_logits(eg_ones(EG_INT32, EG_SHAPE(3)), eg_cast(x, EG_INT32)),
                EG_ERROR_DTYPE, "float32 or float64");
}
TEST(dtype_errors_say_what_helps) {
    eg_tensor *i = eg_ones(EG_INT32, EG_SHAPE(2)), *b = eg_ones(EG_BOOL, EG_SHAPE(2)),
              *u = eg_ones(EG_UINT8, EG_SHAPE(2));
    CHECK_ERROR(eg_div(i, 2), EG_ERROR_DTYPE, "eg_floordiv");
    CHECK_ERROR(eg_sqrt(i), EG_ERROR_DTYPE, "eg_cast to a floating dtype");
    CHECK_ERROR(eg_add(b, b), EG_ERROR_DTYPE, "eg_cast it to a number");
    CHECK_ERROR(eg_logical_and(i, i), EG_ERROR_DTYPE, "it takes bool");
    CHECK_ERROR(eg_where(i, i, i), EG_ERROR_DTYPE, "the condition is int32 [2]");
    CHECK_ERROR(eg_negative(u), EG_ERROR_DTYPE, "uint8");
    CHECK_ERROR(eg_reduce_all(i), EG_ERROR_DTYPE, "needs bool");
    CHECK_ERROR(eg_reduce_sum(b), EG_ERROR_DTYPE, "eg_reduce_sum");
    CHECK_ERROR(eg_softmax(i), EG_ERROR_DTYPE, "eg_softmax");
    CHECK_ERROR(eg_reduce_variance(i), EG_ERROR_DTYPE, "eg_reduce_variance");
    CHECK_ERROR(eg_sort(b), EG_ERROR_DTYPE, "eg_sort");
    CHECK_ERROR(eg_is_nan(i), EG_ERROR_DTYPE, "eg_is_nan");
}

TEST(rows_of_no_indices_into_as_many_axes_as_there_can_be) {
    eg_shape all = EG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), seven = EG_SHAPE(1, 1, 1, 1, 1, 1, 1);
    eg_tensor *none = eg_zeros(EG_INT32, EG_SHAPE(1, 0));
    CHECK_ERROR(eg_gather_nd(eg_ones(EG_FLOAT32, all), none), EG_ERROR_SHAPE,
                "has 8 axes: at most 7 are possible then");
    CHECK_ERROR(eg_scatter_nd(none, eg_ones(EG_FLOAT32, all), all), EG_ERROR_SHAPE,
                "has 8 axes: at most 7 are possible then");
    CHECK_TENSOR(eg_reshape(eg_gather_nd(eg_ones(EG_FLOAT32, seven), none), EG_SHAPE(1)), 0, 1);
}

TEST(axes_are_not_bare_numbers) {
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    eg_reduce_options o;
    memset(&o, 0, sizeof o);
    o.axes.mark = 1;        // what .axes = 1 sets
    CHECK_ERROR((eg_reduce_sum)(x, o), EG_ERROR_ARGUMENT, "EG_AXES(1)");
}
