# eg_record: what the file says is what ran. NumPy computes some ops of a recorded step again; where there is PyTorch, tests/files/replay.py
# computes them all, and finds the op that was changed in a file.
. tests/checks/check.sh
T=$TEST_TEMP
cat >"$T/step.c" <<'END'
#include "eager.h"
static eg_tensor *twice(eg_tensor *const *in, eg_grad_context *c, void *user) { (void)c; (void)user; return eg_mul(in[0], 2); }
static void twice_grad(const eg_grad_context *c, eg_tensor **dx, void *user) { (void)user; dx[0] = eg_mul(c->upstream[0], 2); }
static eg_tensor *ops(eg_tensor *x) {                        // positive, (2, 3)
    eg_tensor *y = eg_add(eg_sqrt(x), eg_log(x));
    eg_tensor *unary[] = {eg_abs(x), eg_rsqrt(x), eg_reciprocal(x), eg_expm1(x), eg_log1p(x), eg_sin(x), eg_cos(x), eg_tan(x), eg_atan(x), eg_sinh(x), eg_cosh(x), eg_asinh(x),
        eg_erf(x), eg_erfc(x), eg_floor(x), eg_sigmoid(x), eg_softplus(x), eg_softsign(x), eg_relu(x), eg_relu6(x), eg_selu(x), eg_silu(x), eg_mish(x), eg_gelu(x), eg_gelu_tanh(x),
        eg_hard_sigmoid(x), eg_leaky_relu(eg_negative(x), .3), eg_elu(eg_negative(x), 1), eg_div(x, 3), eg_divide_no_nan(x, eg_relu(eg_sub(x, 1))), eg_pow(x, 2.5), eg_maximum(x, 1),
        eg_minimum(x, eg_reverse(x, EG_AXES(1))), eg_squared_difference(x, 2), eg_huber_difference(x, 2, .5), eg_atan2(x, 2), eg_mod(x, .3), eg_where(eg_greater(x, 1), x, 0), eg_clip_by_value(x, .5, 1),
        eg_softmax(x), eg_log_softmax(x, .axis = EG_ZERO), eg_cumsum(x, .axis = 1, .exclusive = true), eg_sort(x), eg_tile(eg_slice(x, EG_SHAPE(0, 1), EG_SHAPE(2, 1)), EG_SHAPE(1, 3)),
        eg_pad(eg_strided_slice(x, EG_SHAPE(0, 0), EG_SHAPE(2, 3), EG_SHAPE(1, 2)), EG_PADS(0, 0, 1, 0), .value = 3), eg_transpose(eg_reshape(x, EG_SHAPE(3, 2))),
        eg_concat(EG_TENSORS(eg_slice(x, EG_SHAPE(1, 0), EG_SHAPE(1, 3)), eg_slice(x, EG_SHAPE(0, 0), EG_SHAPE(1, 3))), 0)};
    for (int i = 0; i < (int)(sizeof unary / sizeof *unary); i++) y = eg_add(y, unary[i]);
    y = eg_add(y, eg_reduce_sum(x, .axes = EG_AXES(1), .keepdims = true));
    y = eg_add(eg_add(y, eg_reduce_mean(x, .axes = EG_AXES(0))), eg_add(eg_reduce_max(x), eg_add(eg_reduce_min(x), eg_add(eg_norm(x), eg_reduce_logsumexp(x)))));
    y = eg_add(y, eg_cast(eg_argmax(x, .axis = 1, .keepdims = true), EG_FLOAT32));
    return eg_reduce_sum(eg_mul(y, y));
}
int main(int argc, char **argv) {
    if (argc < 2) return 2;
    eg_seed(4);
    eg_tensor *filter = eg_variable(eg_random_normal(EG_SHAPE(3, 3, 1, 2)), "filter"), *W = eg_variable(eg_random_normal(EG_SHAPE(8, 5)), "W"), *b = eg_variable(eg_zeros(EG_FLOAT32, EG_SHAPE(5)), "b");
    eg_tensor *table = eg_variable(eg_random_normal(EG_SHAPE(6, 3)), "table"), *filter1 = eg_variable(eg_random_normal(EG_SHAPE(3, 8, 2)), "filter1");
    eg_tensor *images = eg_random_uniform(EG_SHAPE(4, 9, 8, 1)), *labels = eg_random_integers(EG_SHAPE(4), 0, 5), *rows = eg_random_integers(EG_SHAPE(2), 0, 6);
    eg_optimizer *adam = eg_adam(.learning_rate = .05);
    if (!eg_record(argv[1])) return 1;
    for (int step = 0; step < 2; step++) {
        EG_SCOPE;
        eg_tape *tape = eg_tape_begin();
        eg_tensor *h = eg_relu(eg_conv2d(images, filter, .strides = {2, 2}, .padding = EG_SAME));
        eg_tensor *p = eg_add(eg_max_pool2d(h, .padding = EG_SAME), eg_avg_pool2d(h, .padding = EG_SAME));
        eg_tensor *s = eg_conv1d(eg_reshape(images, EG_SHAPE(4, 9, 8)), filter1, .strides = {2}, .padding = EG_SAME);
        s = eg_add(eg_max_pool1d(s, .padding = EG_SAME), eg_avg_pool1d(s, .padding = EG_SAME));
        eg_tensor *logits = eg_add(eg_matmul(eg_reshape(eg_slice(p, EG_SHAPE(0, 0, 0, 0), EG_SHAPE(4, 2, 2, 2)), EG_SHAPE(4, 8)), W), b);
        eg_tensor *x = eg_add(eg_square(eg_gather(table, rows)), .1);
        eg_tensor *loss = eg_add(eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(labels, logits)), eg_mul(ops(x), .001));
        loss = eg_add(loss, eg_mul(eg_reduce_mean(eg_square(s)), .001));
        loss = eg_custom_gradient(twice, twice_grad, NULL, &loss, 1);
        eg_tensor *v[] = {filter, W, b, table, filter1}, *g[5];
        if (!eg_tape_gradients(tape, loss, v, 5, g) || !eg_apply_gradients(adam, g, v, 5)) return 1;
    }
    if (!eg_record_stop()) return 1;
    eg_release(filter), eg_release(W), eg_release(b), eg_release(table), eg_release(filter1), eg_optimizer_release(adam);
    return eg_error() != EG_OK;
}
END
cat >"$T/read.py" <<'END'
import json, sys
import numpy as np
z = np.load(sys.argv[1])
lines = json.loads(bytes(z["ops"]))
value = lambda v: np.float32(v["number"]) if isinstance(v, dict) else z[v]
def reduce(f):
    return lambda x, mask, keepdims: f(x, axis=tuple(i for i in range(x.ndim) if mask >> i & 1), keepdims=bool(keepdims))
def matmul(a, b, transpose_a, transpose_b):
    return (np.swapaxes(a, -1, -2) if transpose_a else a) @ (np.swapaxes(b, -1, -2) if transpose_b else b)
ops = {"add": np.add, "mul": np.multiply, "sub": np.subtract, "sqrt": np.sqrt, "sin": np.sin, "matmul": matmul, "reduce_sum": reduce(np.sum), "reduce_max": reduce(np.max),
       "transpose": lambda x, perm: x.transpose(perm), "reshape": lambda x, shape: x.reshape(shape), "relu": lambda x: np.maximum(x, 0)}
seen = {}
for line in lines:
    op = line.get("op")
    if op in ops:
        np.testing.assert_allclose(value(line["out"][0]), ops[op](*map(value, line["in"]), **line["attributes"]), rtol=2e-5, atol=1e-5, err_msg=str(line))
        seen[op] = seen.get(op, 0) + 1
assert set(seen) == set(ops), seen
gradients = [line for line in lines if "gradient" in line]
product = next(i for i in lines if i.get("op") == "matmul")
g = next(i for i in gradients if i["of"] == product["out"][0])
np.testing.assert_allclose(z[g["dx"][1]], z[product["in"][0]].T @ z[g["upstream"][0]], rtol=1e-5, atol=1e-6)
assert any(i.get("op") == "custom_gradient" for i in lines) and any(i.get("as") == "tile" for i in lines) and any(i.get("in_gradient_of") == "relu" for i in lines)
# the variables of the second step are others than those of the first
W = [i["in"][1] for i in lines if i.get("op") == "matmul" and "in_gradient_of" not in i]
assert len(W) == 2 and W[1] == W[0] + ".1" and np.abs(z[W[0]] - z[W[1]]).max() > .01, W
print(seen, len(gradients))
if len(sys.argv) > 2:                                       # a copy in which one op went wrong
    wrong = next(i for i in lines if i.get("op") == "softplus")
    arrays = {name: z[name] for name in z.files}
    arrays[wrong["out"][0]] = arrays[wrong["out"][0]] + np.float32(.01)
    np.savez(sys.argv[2], **arrays)
END
record() { $CC -std=c11 -O1 -I. "$T/step.c" "$B/plain/eager.o" -o "$T/step" $LIBS && "$T/step" "$T/step.npz" && [ -s "$T/step.npz" ]; }
tampered() { ! "$PYTHON" tests/files/replay.py "$T/wrong.npz" >"$T/told" && cat "$T/told" && grep -q '^line [0-9]*: eg_softplus: output t' "$T/told"; }
python_has() { [ -n "$PYTHON" ] && "$PYTHON" -c "import $1" 2>/dev/null; }
check a_step_is_recorded record
if python_has numpy; then check numpy_computes_it_again "$PYTHON" "$T/read.py" "$T/step.npz" "$T/wrong.npz"; else skip numpy_computes_it_again "no Python with NumPy"; fi
if python_has torch; then
    check pytorch_computes_it_again "$PYTHON" tests/files/replay.py "$T/step.npz"
    check pytorch_finds_the_wrong_op tampered
else skip pytorch_computes_it_again "no Python with PyTorch"; fi
finish
