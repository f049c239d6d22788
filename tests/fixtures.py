#!/usr/bin/env python3
"""Makes the reference values of the tests: tests/fixtures/*.txt.

  fixtures.py numpy          write numpy.txt (needs NumPy alone)
  fixtures.py check          make numpy.txt again in memory and compare it with the one committed
  fixtures.py tf | torch     write tf.txt (TensorFlow, Keras) or torch.txt (PyTorch)
  fixtures.py all            the three, each in a process of its own (TensorFlow and PyTorch can't share one)
  fixtures.py train          write guide_loss.txt (PyTorch; the digits of the folder that EAGER_DATA names)

CASES below lists every case once: a name (the op up to the slash, then a variant), the inputs, the attributes. Each
framework has a table of the ops that it knows. A case is written to the file of the first framework that has it
(NumPy for plain values, TensorFlow where there are gradients, PyTorch for the rest); the frameworks that come later
compute it too and are held against the earlier ones, so that most values here have two witnesses.

A case in a file, one row a line, all of it words between blanks:
  case NAME
  attr NAME NUMBER...        an option; zero or more numbers
  text NAME WORD             an option that is a word
  KIND I DTYPE RANK DIMS... VALUES...
  end
KIND is `in` (input I), `out` (output I), `up` (the upstream gradient of output I), `grad` (the gradient of input I for
those upstreams; no row: not differentiable), and for second order `up2` (the upstream of gradient I) and `grad2` (the
gradient of input I of sum(grad[i] * up2[i]), the first upstreams held constant).
"""
import os, subprocess, sys, zlib
import math
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
NAN, INF = float("nan"), float("inf")


# ---------------------------------------------------------------- inputs
class Spec:
    """Random values with two decimals, no two alike and none of them zero, in (lo, hi)."""
    def __init__(self, *shape, lo=-2., hi=2., dtype="float64"):
        self.shape, self.lo, self.hi, self.dtype = shape, lo, hi, dtype

    def make(self, key):
        n, state = math.prod(self.shape), zlib.crc32(key.encode())
        pool = [i for i in range(round(self.lo * 100) + 1, round(self.hi * 100)) if i]
        for i in range(n):                                  # the first n of a shuffle by splitmix64
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
            j = i + (z ^ z >> 31) % (len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return (np.array(pool[:n], np.float64) / 100).reshape(self.shape).astype(self.dtype)


def R(*shape, **k): return Spec(*shape, **k)
def POS(*shape, **k): return Spec(*shape, lo=.1, hi=3., **k)
def UNIT(*shape, **k): return Spec(*shape, lo=-.97, hi=.97, **k)
def F32(*shape): return Spec(*shape, dtype="float32")
def f64(v): return np.array(v, np.float64)
def f32(v): return np.array(v, np.float32)
def i32(v): return np.array(v, np.int32)
def i64(v): return np.array(v, np.int64)
def u8(v): return np.array(v, np.uint8)
def b(v): return np.array(v, np.bool_)


# ---------------------------------------------------------------- the cases
CASES = []


def case(name, *ins, only="numpy tf torch", second=False, forward=False, **attrs):
    """only: the frameworks that are asked. second: second order too. forward: no gradients."""
    CASES.append((name, ins, attrs, only.split(), second, forward))


SPECIAL = [0., -0., 1., -1., .5, -2.5, 30., -30., 800., -800., INF, -INF, NAN]

# Arithmetic with broadcasting. Where two dtypes meet, NumPy's and TensorFlow's rules agree in these cases.
for op in "add sub mul maximum minimum squared_difference".split():
    case(op + "/same", R(2, 3), R(2, 3), second=op == "mul")
    case(op + "/broadcast", R(2, 1, 3), R(4, 1))
    case(op + "/scalar", R(2, 3), R())
    case(op + "/float32", F32(5), F32(5))
    case(op + "/int32", i32([[1, -2], [3, 4]]), i32([-5, 6]))
    case(op + "/int64", i64([2**40, -3, 7]), i64([5, -9, 2**33]), only="numpy torch" if op == "squared_difference" else "numpy tf torch", forward=op == "mul")
    case(op + "/empty", R(0, 3), R(1, 3))
for op in ("add", "sub", "mul"):
    case(op + "/uint8_wraps", u8([200, 3, 255]), u8([100, 5, 255]))
case("add/int32_wraps", i32([2**31 - 1, -2**31]), i32([1, -1]))
case("mul/int32_wraps", i32([2**31 - 1, 65536]), i32([2, 65536]))
case("add/rank0", R(), R())
case("add/rank8", R(1, 2, 1, 1, 2, 1, 1, 2), R(2, 1, 1, 3, 1, 1, 1, 2))
case("add/special", f64([INF, INF, NAN, 1e308]), f64([1, -INF, 0, 1e308]), forward=True)
case("maximum/special", f64([NAN, 1, INF, -0.]), f64([1, NAN, -INF, 0.]), forward=True)
case("minimum/special", f64([NAN, 1, INF, -INF]), f64([1, NAN, -INF, 2]), forward=True)
case("div/same", R(2, 3), R(2, 3), second=True)
case("div/broadcast", R(2, 1, 3), R(4, 1))
case("div/float32", F32(6), F32(6))
case("div/special", f64([1, -1, 0, INF, 3, -0.]), f64([0, 0, 0, INF, INF, 5]), forward=True)
case("divide_no_nan/broadcast", R(2, 3), f64([2, 0, -4]), only="numpy tf")
case("divide_no_nan/zeros", f64([0, 1, NAN, INF]), f64([0, 0, 0, 0]), only="numpy tf", forward=True)
for op in ("floordiv", "mod"):
    case(op + "/int32", i32([-7, 7, -7, 7, 6, -6, 0, -1]), i32([2, -2, -2, 2, 3, 3, 5, 7]))
    case(op + "/int64", i64([-7, 7, 2**40 + 1]), i64([2, -2, -3]))
    case(op + "/uint8", u8([255, 7]), u8([16, 2]))
    case(op + "/float64", f64([-7, 7, -7.5, 7.5, .25, -.25, 6]), f64([2, -2, -2, 2, 1, 1, 3]), forward=op == "floordiv")
    case(op + "/float32", f32([-7, 7, -7.5, 7.5]), f32([2, -2, -2, 2]), forward=op == "floordiv")
    case(op + "/broadcast", R(2, 1, 3), f64([[.73], [1.31], [-.97], [2.11]]), forward=op == "floordiv")
case("floordiv/int32_min", i32([-2**31, -2**31]), i32([-1, 2]), only="numpy")
case("mod/int32_min", i32([-2**31, -2**31]), i32([-1, 3]), only="numpy")
case("pow/broadcast", POS(2, 1, 3), R(4, 1), second=True)
case("pow/int32", i32([2, -3, 0, 7, -1]), i32([10, 3, 0, 1, 5]))
case("pow/special", f64([0, 0, -2, -2, -8, INF, 1, NAN]), f64([0, 2, 3, -2, 1 / 3, -1, NAN, 0]), forward=True)
case("atan2/broadcast", R(2, 1, 3), R(4, 1), second=True)
case("atan2/special", f64([0, -0., 0, -0., 1, -1, INF, -INF, 0]), f64([1, 1, -1, -1, 0, 0, INF, -INF, 0]), forward=True)

for op in "equal not_equal less less_equal greater greater_equal".split():
    case(op + "/float64", f64([1, 2, NAN, NAN, INF, 0]), f64([1, 3, 1, NAN, INF, -0.]))
    case(op + "/broadcast", i32([[1], [2], [3]]), i32([1, 2, 3]))
    case(op + "/int64", i64([2**53 - 1, 2**53 - 1]), i64([2**53 - 2, 2**53 - 1]))
case("equal/bool", b([True, False]), b([[True], [False]]))
for op in "logical_and logical_or logical_xor".split():
    case(op + "/broadcast", b([[True], [False]]), b([True, False, True]))
case("logical_not/bool", b([True, False]))
for op in "is_nan is_inf is_finite".split():
    case(op + "/float64", f64([0, NAN, INF, -INF, 1e308]))
case("where/same", b([[True, False, True], [False, False, True]]), R(2, 3), R(2, 3))
case("where/broadcast", b([True, False, True]), R(2, 1), R())
case("where/int32", b([[True], [False]]), i32([1, 2, 3]), i32([7]))
case("where/nan", b([True, False]), f64([1, NAN]), f64([NAN, 2]))

# One input, elementwise.
for op, ins in dict(negative=R(2, 3), abs=R(2, 3), sign=R(2, 3), square=R(2, 3), sqrt=POS(2, 3), rsqrt=POS(2, 3), reciprocal=R(2, 3),
                    exp=R(2, 3), expm1=R(2, 3), log=POS(2, 3), log1p=POS(2, 3), sin=R(2, 3), cos=R(2, 3), tan=R(2, 3, lo=-1.4, hi=1.4),
                    asin=UNIT(2, 3), acos=UNIT(2, 3), atan=R(2, 3), sinh=R(2, 3), cosh=R(2, 3), tanh=R(2, 3), asinh=R(2, 3),
                    acosh=R(2, 3, lo=1.1, hi=4.), atanh=UNIT(2, 3), sigmoid=R(2, 3, lo=-6., hi=6.), softplus=R(2, 3, lo=-6., hi=6.),
                    floor=R(2, 3), ceil=R(2, 3), round=R(2, 3), erf=R(2, 3)).items():
    flat = op in "sign floor ceil round".split()
    case(op + "/float64", ins, second=not flat and op not in "negative abs".split(), forward=flat)
    case(op + "/float32", Spec(*ins.shape, lo=ins.lo, hi=ins.hi, dtype="float32"), forward=True)
    case(op + "/special", f64(SPECIAL), only={"erf": "numpy torch", "sign": "numpy tf"}.get(op, "numpy tf torch"), forward=True)   # TensorFlow's erf(inf) is nan, PyTorch's sign(nan) 0
    case(op + "/empty", R(0, 2), forward=True)
for op in "negative abs sign square".split():
    case(op + "/int32", i32([[0, -3], [7, -1]]))
    case(op + "/int64", i64([-2**40, 5]), forward=op == "square", only="numpy" if op == "square" else "numpy tf torch")
case("abs/int32_min", i32([-2**31, 5]), only="numpy")
case("negative/int32_min", i32([-2**31, 5]), only="numpy")
case("round/half_even", f64([.5, 1.5, 2.5, -.5, -1.5, -2.5, 1e300, 2**52 + 1., 4503599627370495.5]), forward=True)
case("round/half_even_float32", f32([.5, 1.5, 2.5, -.5, -1.5, 8388607.5]), forward=True)
case("expm1/tiny", f64([1e-20, -1e-12, 1e-5]), forward=True)
case("log1p/tiny", f64([1e-20, -1e-12, 1e-5]), forward=True)
case("softplus/large", f64([100, -100, 1000, -1000, 0, 30, -30]))
case("sigmoid/large", f64([100, -100, 710, -745, 0, 36, -36]))
case("tanh/large", f64([20, -20, 1e-9, 400]))
case("softplus/large_float32", f32([100, -100, 88, -88, 0, 17, -17]))

# Where a function has an edge: the gradient there is a choice, and the choice is TensorFlow's.
case("relu/edge", f64([-1, 0, 2]))
case("relu6/edge", f64([-1, 0, 3, 6, 7]))
case("abs/edge", f64([-1, 0, 2]))
case("sqrt/edge", f64([0, 4]))
case("rsqrt/edge", f64([0, 4]), only="tf torch")
case("log/edge", f64([0, 4]), only="tf torch")
case("reciprocal/edge", f64([0, 4]), only="tf torch")
case("maximum/edge", f64([1, 2, 3]), f64([1, 3, 2]), only="tf")
case("minimum/edge", f64([1, 2, 3]), f64([1, 3, 2]), only="tf")
case("reduce_max/edge", f64([[1, 3, 3], [2, 2, 2]]), axes=[1])
case("reduce_min/edge", f64([[1, 1, 3], [2, 2, 2]]), axes=[1])
case("clip_by_value/edge", f64([-2, -1, 0, 1, 2]), low=-1., high=1., only="numpy tf")
case("reduce_prod/zero", f64([0, 2, 3]))
case("reduce_prod/zeros", f64([[0, 2, 0], [0, 2, 3], [4, 5, 6]]), axes=[1])
case("reduce_prod/zero_second", f64([0, 2, 3]), only="torch", second=True)       # TensorFlow's second order is wrong beside a zero
case("reduce_prod/zeros_second", f64([[0, 2, 0], [0, 2, 3], [4, 5, 6]]), axes=[1], only="torch", second=True)
case("pow/edge", f64([0, 0, 2, 0]), f64([2, 0, 0, 1]), only="torch")               # TensorFlow's gradient of 0^0 is nan
case("leaky_relu/edge", f64([-1, 0, 2]), alpha=.25, only="tf torch")
case("elu/edge", f64([-1, 0, 2]), only="tf torch")
case("selu/edge", f64([-1, 0, 2]), only="tf")
case("hard_sigmoid/edge", f64([-4, -3, 0, 3, 4]), only="tf")
case("norm/zero", f64([[0, 0], [3, 4]]), axes=[1], ord=2, only="torch")       # TensorFlow's gradient is nan here
case("norm/l1_zero", f64([[0, -2], [3, 4]]), axes=[1], ord=1)
case("norm/inf_tie", f64([[3, -3, 1], [1, 2, 0]]), axes=[1], ord=INF, only="tf")
case("max_pool2d/edge", f64(np.array([[1, 1, 2, 0], [1, 1, 2, 2], [0, 0, 5, 5], [0, 0, 5, 5]]).reshape(1, 4, 4, 1)), size=[2, 2], strides=[2, 2], same=False, only="tf torch")
case("div/edge", f64([0, 1]), f64([2, 4]))
case("atan2/edge", f64([0, 0, 1]), f64([1, -1, 0]))

# Products.
case("matmul/plain", R(2, 3), R(3, 4), second=True)
case("matmul/float32", F32(3, 5), F32(5, 2))
case("matmul/int32", i32([[1, 2], [3, 4]]), i32([[5, -6], [7, 8]]))
case("matmul/transpose_a", R(3, 2), R(3, 4), transpose_a=True)
case("matmul/transpose_b", R(2, 3), R(4, 3), transpose_b=True)
case("matmul/transpose_both", R(3, 2), R(4, 3), transpose_a=True, transpose_b=True)
case("matmul/batched", R(2, 2, 3), R(2, 3, 2), second=True)
case("matmul/batched_transpose_a", R(2, 3, 2), R(2, 3, 2), transpose_a=True)
case("matmul/batched_transpose_b", R(2, 2, 3), R(2, 2, 3), transpose_b=True)
case("matmul/broadcast", R(2, 1, 2, 3), R(3, 3, 2))
case("matmul/broadcast_rank", R(2, 3), R(2, 2, 3, 2))
case("matmul/inner_zero", R(2, 0), R(0, 3))
case("matmul/outer_zero", R(0, 2), R(2, 3))
case("matmul/vectors", R(1, 5), R(5, 1))
for label, equation, *shapes in (
        ("matmul", "ij,jk->ik", (2, 3), (3, 4)), ("batched", "bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("diagonal", "ii->i", (3, 3)),
        ("trace", "ii->", (3, 3)), ("trace_implicit", "ii", (3, 3)), ("outer", "i,j->ij", (2,), (3,)), ("sum", "ij->", (2, 3)),
        ("row_sums", "ij->i", (2, 3)), ("column_sums", "ij->j", (2, 3)), ("dot", "i,i->", (3,), (3,)), ("transpose", "ijk->kij", (2, 3, 2)),
        ("implicit", "ij,jk", (2, 3), (3, 2)), ("implicit_order", "ba", (2, 3)), ("ellipsis", "...ij,...jk->...ik", (2, 1, 2, 3), (2, 3, 2)),
        ("ellipsis_transpose", "...ij->...ji", (2, 2, 3)), ("ellipsis_sum", "i...->...", (2, 3, 2)), ("ellipsis_implicit", "i...", (2, 3)),
        ("attention", "bqhd,bkhd->bhqk", (1, 2, 2, 3), (1, 3, 2, 3)), ("three", "ij,jk,kl->il", (2, 3), (3, 2), (2, 2)),
        ("hadamard", "ij,ij->ij", (2, 3), (2, 3)), ("bilinear", "bi,ijk,bk->bj", (2, 2), (2, 3, 2), (2, 2)), ("scale", "ij,->ij", (2, 2), ()),
        ("batched_diagonal", "bii->bi", (2, 2, 2)), ("diagonal_product", "ii,i->i", (3, 3), (3,)), ("contract_two", "ijk,ijl->kl", (2, 2, 3), (2, 2, 2)),
        ("repeat_in_product", "iij,jk->ik", (2, 2, 3), (3, 2)), ("sum_alone", "ij,k->k", (2, 2), (3,))):
    case("einsum/" + label, *(R(*s) for s in shapes), equation=equation, second=label in ("matmul", "bilinear"))

# Reductions.
for op in "reduce_sum reduce_mean reduce_max reduce_min reduce_prod".split():
    case(op + "/all", R(2, 3), second=op == "reduce_prod")
    case(op + "/axis0", R(2, 3), axes=[0])
    case(op + "/last", R(2, 3), axes=[-1])
    case(op + "/keepdims", R(2, 3, 2), axes=[0, -1], keepdims=True)
    case(op + "/middle", R(2, 3, 2), axes=[1])
    case(op + "/outer", R(2, 3, 2), axes=[0, 2])
    case(op + "/all_keepdims", R(2, 3), keepdims=True)
    case(op + "/rank0", R())
    case(op + "/float32", F32(3, 4), axes=[1])
    case(op + "/int32", i32([[1, -2, 4], [3, 5, -7]]), axes=[1], only="numpy tf torch" if op != "reduce_mean" else "tf")
    case(op + "/int64", i64([2**40, 1, 3]), only="numpy tf" if op != "reduce_mean" else "tf")
    case(op + "/empty_rows", R(0, 3), axes=[1])
    if op in ("reduce_sum", "reduce_prod"): case(op + "/empty", R(0, 3), axes=[0])
    else: case(op + "/empty", R(0, 3), axes=[0], only="tf", forward=True)
for op in ("reduce_max", "reduce_min"):
    case(op + "/infinite", f64([[INF, 1], [-INF, -INF], [NAN, 1]]), axes=[1], forward=True)
case("reduce_mean/int_truncates", i32([[-1, -2, -4], [1, 2, 4]]), axes=[1], only="tf")
for op in ("reduce_all", "reduce_any"):
    case(op + "/all", b([[True, False], [True, True]]))
    case(op + "/axis", b([[True, False], [True, True], [False, False]]), axes=[1])
    case(op + "/keepdims", b([[True, False], [True, True]]), axes=[0], keepdims=True)
    case(op + "/empty", b(np.zeros((0, 2))), axes=[0])
case("reduce_variance/axis", R(3, 4), axes=[1])
case("reduce_std/axis", R(3, 4), axes=[0], keepdims=True)
case("reduce_logsumexp/all", R(2, 3), second=True)
case("reduce_logsumexp/axis", R(2, 3), axes=[1], keepdims=True)
case("reduce_logsumexp/axes", R(2, 3, 2), axes=[0, 2])
case("reduce_logsumexp/large", f64([[1000, 1001, 999], [-1000, -1001, -999]]), axes=[1])
case("reduce_logsumexp/infinite", f64([[-INF, -INF], [-INF, 0], [INF, 0]]), axes=[1], only="tf torch", forward=True)
for label, k in dict(plain={}, exclusive=dict(exclusive=True), reverse=dict(reverse=True), both=dict(exclusive=True, reverse=True)).items():
    case("cumsum/" + label, R(2, 4), axis=1, **k)
case("cumsum/axis0", R(3, 2), axis=0)
case("cumsum/negative_axis", R(2, 3, 2), axis=-2)
case("cumsum/int32", i32([1, 2, 3, -4]), axis=0)
case("norm/l2", R(2, 3), ord=2, second=True)
case("norm/l2_axis", R(2, 3), axes=[1], keepdims=True, ord=2)
case("norm/l1", R(2, 3), axes=[0], ord=1)
case("norm/inf", R(2, 3), axes=[1], ord=INF)
for op in ("argmax", "argmin"):
    case(op + "/axis0", R(3, 4), axis=0)
    case(op + "/last", R(2, 3, 4), axis=-1)
    case(op + "/ties", f64([[1, 3, 3], [2, 2, 2], [5, 1, 1]]), axis=1)
    case(op + "/int32", i32([[1, 3, -3], [2, 9, 2]]), axis=1)
    case(op + "/vector", F32(5), axis=0)
case("top_k/plain", R(2, 5), k=3)
case("top_k/one", R(5), k=1)
case("top_k/ties", f64([1, 3, 3, 2, 3]), k=3, only="numpy tf")
case("top_k/all", i32([4, -1, 9]), k=3)
for op in ("sort", "argsort"):
    case(op + "/ascending", R(2, 4), axis=-1)
    case(op + "/descending", R(2, 4), axis=-1, descending=True)
    case(op + "/axis0", R(4, 2), axis=0)
    case(op + "/axis0_descending", R(4, 2), axis=0, descending=True)
    case(op + "/int32", i32([3, -1, 2, 9]), axis=0)
case("sort/nan_last", f64([2, NAN, 1, INF]), axis=0, only="numpy")
case("argsort/ties", f64([2, 1, 2, 1, 0]), axis=0)
case("argsort/ties_descending", f64([2, 1, 2, 1, 0]), axis=0, descending=True)

# Indexing.
case("gather/axis0", R(4, 2), i32([3, 0, 3]), axis=0)
case("gather/axis1", R(2, 4), i32([1, 1, 0]), axis=1)
case("gather/negative_axis", R(2, 3, 2), i32([2, 0]), axis=-2)
case("gather/matrix", R(4, 2), i64([[0, 1], [3, 3]]), axis=0)
case("gather/matrix_axis1", R(2, 4), i32([[0, 1], [3, 3]]), axis=1)
case("gather/scalar", R(4, 2), i32(2), axis=0)
case("gather/int32", i32([10, 20, 30]), i32([2, 2, 0]), axis=0)
case("gather/empty", R(4, 2), i32([]), axis=0)
case("gather_nd/points", R(3, 4), i32([[0, 1], [2, 3], [0, 1]]))
case("gather_nd/rows", R(3, 4), i32([[2], [0], [2]]))
case("gather_nd/deep", R(2, 3, 2), i32([[[0, 1], [1, 2]]]))
case("take_along_axis/axis1", R(2, 4), i64([[3, 0, 0], [1, 1, 2]]), axis=1)
case("take_along_axis/axis0", R(3, 2), i64([[2, 0], [2, 1]]), axis=0)
case("segment_sum/rows", R(4, 2), i32([1, 0, 1, 1]), n=3, only="numpy tf")
case("segment_sum/scalars", R(5), i64([2, 2, 0, 3, 2]), n=4, only="numpy tf")
case("scatter_nd/points", i32([[0, 1], [2, 0], [0, 1]]), R(3), shape=[3, 2])
case("scatter_nd/rows", i32([[2], [0], [2]]), R(3, 2), shape=[4, 2])
case("tensor_scatter_add/points", R(3, 2), i32([[0, 1], [2, 0], [0, 1]]), R(3))
case("tensor_scatter_add/rows", R(4, 2), i32([[2], [0], [2]]), R(3, 2))
case("one_hot/plain", i32([0, 2, 1]), depth=3)
case("one_hot/out_of_range", i32([-1, 3, 1]), depth=3, only="numpy tf")
case("one_hot/matrix", i32([[0, 1], [1, 0]]), depth=2)
case("one_hot/values", i32([0, 2]), depth=3, on=5., off=-1., only="numpy tf")
case("one_hot/axis0", i32([0, 2]), depth=3, axis=0, only="numpy tf")
case("strided_slice/plain", R(4, 5), begin=[1, 2], end=[3, 5], strides=[1, 1])
case("strided_slice/strided", R(5, 6), begin=[0, 1], end=[5, 6], strides=[2, 2])
case("strided_slice/reverse", R(3, 4), begin=[2, 3], end=[-4, -5], strides=[-1, -1])
case("strided_slice/reverse_strided", R(5, 4), begin=[4, 2], end=[0, -5], strides=[-2, -2])
case("strided_slice/negative", R(4, 5), begin=[-3, -2], end=[-1, 5], strides=[1, 1])
case("strided_slice/clamped", R(3, 2), begin=[1, 0], end=[99, 99], strides=[1, 1])
case("strided_slice/empty", R(3, 2), begin=[2, 0], end=[2, 2], strides=[1, 1])
case("strided_slice/int32", i32([1, 2, 3, 4, 5]), begin=[1], end=[5], strides=[3])
case("strided_slice/first_axes", R(2, 3, 2), begin=[1], end=[2], strides=[1])
case("slice/plain", R(4, 5), begin=[1, 2], size=[2, 3])
case("slice/rest", R(3, 2, 4), begin=[1, 0, 2], size=[-1, 1, 2])
case("slice/nothing", R(3, 2), begin=[1, 1], size=[0, 1])
case("pad/constant", R(2, 3), paddings=[1, 2, 0, 1], mode="constant")
case("pad/constant_value", R(2, 2), paddings=[0, 1, 1, 0], mode="constant", value=7.)
case("pad/reflect", R(3, 4), paddings=[1, 2, 3, 0], mode="reflect")
case("pad/symmetric", R(3, 2), paddings=[2, 1, 1, 2], mode="symmetric")
case("pad/symmetric_full", R(3), paddings=[3, 3], mode="symmetric")
case("pad/int32", i32([1, 2, 3]), paddings=[2, 2], mode="reflect", forward=True)
case("tile/plain", R(2, 3), multiples=[2, 2])
case("tile/zero", R(2, 3), multiples=[1, 0])
case("tile/rank3", R(1, 2, 2), multiples=[3, 1, 2])
case("repeat/axis0", R(2, 2), repeats=3, axis=0)
case("repeat/last", R(2, 3), repeats=2, axis=-1)
case("concat/axis0", R(2, 3), R(1, 3), R(2, 3), axis=0)
case("concat/axis1", R(2, 1), R(2, 3), axis=1)
case("concat/negative", R(2, 1, 2), R(2, 2, 2), axis=-2)
case("concat/empty", R(0, 2), R(2, 2), axis=0)
case("split/equal", R(2, 6), num=3, axis=1)
case("split/negative", R(2, 4), num=2, axis=-1)
case("stack/axis0", R(2, 2), R(2, 2), axis=0)
case("stack/last", R(2, 3), R(2, 3), R(2, 3), axis=-1)
case("stack/scalars", R(), R(), axis=0)
case("unstack/axis0", R(3, 2), axis=0)
case("unstack/last", R(2, 3), axis=-1)
case("transpose/plain", R(2, 3))
case("transpose/perm", R(2, 3, 2), perm=[1, 2, 0])
case("transpose/reversed", R(2, 3, 4))
case("transpose/rank4", R(2, 1, 3, 2), perm=[0, 3, 1, 2])
case("reshape/plain", R(2, 6), shape=[3, 4])
case("reshape/infer", R(2, 6), shape=[3, -1])
case("reshape/scalar", R(1, 1), shape=[])
case("reverse/axis0", R(3, 2), axes=[0])
case("reverse/both", R(2, 3), axes=[0, 1])
case("reverse/last", R(2, 3, 2), axes=[-1])
case("expand_dims/front", R(2, 3), axis=0)
case("expand_dims/last", R(2, 3), axis=-1)
case("squeeze/all", R(1, 3, 1))
case("squeeze/axis", R(1, 3, 1), axes=[0])
case("broadcast_to/plain", R(3, 1), shape=[2, 3, 4])
case("clip_by_value/plain", R(2, 4), low=-.5, high=.75)
case("clip_by_value/int32", i32([-5, 0, 5]), low=-1, high=2, forward=True)
case("clip_by_norm/over", R(2, 3), norm=1.)
case("clip_by_norm/under", R(2, 2), norm=50., forward=True)
case("clip_by_global_norm/over", R(2, 3), R(2), norm=1., only="numpy tf", forward=True)
case("clip_by_global_norm/under", R(2), R(), norm=50., only="numpy tf", forward=True)
case("range/int32", start=2, limit=11, delta=3, dtype="int32")
case("range/backward", start=5, limit=-3, delta=-2, dtype="int32")
case("range/float64", start=0, limit=1, delta=.25, dtype="float64")
case("range/float64_inexact", start=0, limit=1, delta=.1, dtype="float64")
case("linspace/float64", start=-1., stop=2., num=7, dtype="float64")
case("linspace/one", start=3., stop=9., num=1, dtype="float64")
case("eye/square", rows=3, columns=3, dtype="float64")
case("eye/wide", rows=2, columns=4, dtype="float64")

# Casts: from the input's dtype to the output's.
case("cast/float64_to_int32", f64([2.9, -2.9, .5, -.5, 0, 123456.7]), to="int32")
case("cast/float32_to_int64", f32([2.9, -2.9, 16777216]), to="int64")
case("cast/float64_to_uint8", f64([0, 2.9, 255]), to="uint8")
case("cast/float64_to_bool", f64([0, -0., .1, -3, NAN]), to="bool")
case("cast/int32_to_bool", i32([0, 1, -1, 256]), to="bool")
case("cast/bool_to_float32", b([True, False]), to="float32")
case("cast/bool_to_int32", b([True, False]), to="int32")
case("cast/int64_to_int32_wraps", i64([2**32 + 5, -2**40 - 3, 2**31]), to="int32")
case("cast/int32_to_uint8_wraps", i32([300, -1, 256, 255]), to="uint8")
case("cast/int64_to_float64", i64([2**53 - 1, -7]), to="float64")
case("cast/int64_to_float32", i64([16777217, -16777219, 3]), to="float32")
case("cast/uint8_to_int64", u8([0, 255]), to="int64")
case("cast/float64_to_float32", f64([1 / 3, 1e300, 1e-50, 16777217, NAN]), to="float32", forward=True)
case("cast/float32_to_float64", f32([.1, -2.5]), to="float64")
case("cast/float32_to_float16", f32([1 / 3, 65504, 65519, 65520, 1e-8, 6e-8, 3e-8, -2049, 2051, 6.1e-5, NAN, -INF]), to="float16", forward=True)
case("cast/float32_to_bfloat16", f32([1 / 3, 256.5, 257, 259, 3.3895314e38, 3.4e38, 1e-40, NAN, -INF]), to="bfloat16", only="tf", forward=True)

# Convolutions: x (N,H,W,C), filter (H,W,in/groups,out), as TensorFlow has them. SAME is `same 1`, VALID `same 0`.
def conv(label, x, w, strides=(1, 1), same=False, dilations=(1, 1), groups=1, **k):
    x, w = (R(*a) if isinstance(a, tuple) else a for a in (x, w))
    case("conv2d/" + label, x, w, strides=strides, same=same, dilations=dilations, groups=groups, **k)

conv("valid", (2, 4, 5, 2), (3, 2, 2, 3), second=True)
conv("same", (1, 4, 5, 2), (3, 3, 2, 2), same=True)
conv("same_even", (1, 4, 5, 1), (2, 4, 1, 2), same=True)
conv("strided", (1, 6, 5, 2), (3, 2, 2, 2), strides=(2, 2))
conv("same_strided", (1, 5, 6, 2), (3, 3, 2, 2), strides=(2, 2), same=True, second=True)
conv("same_strided_wide", (1, 7, 5, 1), (2, 2, 1, 1), strides=(3, 3), same=True)
conv("strides_differ", (1, 6, 6, 1), (3, 3, 1, 2), strides=(1, 2), same=True, only="torch")      # TensorFlow's kernel wants equal strides
conv("one_by_one", (2, 2, 3, 3), (1, 1, 3, 2))
conv("dilated", (1, 6, 7, 2), (3, 2, 2, 2), dilations=(2, 3), only="torch")                     # nor does it dilate in the backward
conv("dilated_same", (1, 5, 6, 1), (3, 3, 1, 2), dilations=(2, 2), same=True, only="torch", second=True)
conv("grouped", (1, 4, 4, 4), (3, 3, 2, 6), groups=2, only="torch", second=True)
conv("grouped_same_strided", (2, 5, 4, 4), (3, 2, 2, 4), groups=2, same=True, strides=(2, 2), only="torch")
conv("depthwise_by_groups", (1, 4, 4, 3), (3, 3, 1, 6), groups=3, only="torch")
conv("float32", F32(1, 4, 4, 1), F32(3, 3, 1, 1))
conv("ones_5x5", np.ones((1, 5, 5, 1)), np.ones((3, 3, 1, 1)), strides=(2, 2), same=True)
conv("ones_4x4", np.ones((1, 4, 4, 1)), np.ones((3, 3, 1, 1)), strides=(2, 2), same=True)
conv("empty_batch", (0, 4, 4, 1), (3, 3, 1, 2), only="torch")
case("conv1d/valid", R(2, 6, 2), R(3, 2, 2), strides=[1], same=False, dilations=[1], groups=1, second=True)
case("conv1d/same_strided", R(1, 7, 2), R(4, 2, 3), strides=[2], same=True, dilations=[1], groups=1)
case("conv1d/dilated", R(1, 8, 1), R(3, 1, 2), strides=[1], same=False, dilations=[2], groups=1, only="torch")
case("conv1d/dilated_same", R(1, 6, 2), R(2, 2, 2), strides=[1], same=True, dilations=[2], groups=1, only="torch")
case("conv1d/grouped", R(1, 5, 4), R(2, 2, 4), strides=[1], same=False, dilations=[1], groups=2, only="torch")
case("depthwise_conv2d/valid", R(1, 4, 5, 2), R(3, 2, 2, 2), strides=[1, 1], same=False, dilations=[1, 1], second=True)
case("depthwise_conv2d/same_strided", R(2, 5, 5, 3), R(3, 3, 3, 1), strides=[2, 2], same=True, dilations=[1, 1])
case("depthwise_conv2d/dilated", R(1, 6, 6, 2), R(2, 2, 2, 1), strides=[1, 1], same=True, dilations=[2, 2], only="torch")
# Transposed: filter (H,W,out,in); the forward is the gradient of the convolution from output_shape to x's shape.
case("conv2d_transpose/valid", R(1, 3, 2, 2), R(3, 2, 3, 2), strides=[1, 1], same=False, output_shape=[1, 5, 3, 3], second=True)
case("conv2d_transpose/strided", R(1, 2, 3, 2), R(3, 3, 1, 2), strides=[2, 2], same=False, output_shape=[1, 5, 7, 1])
case("conv2d_transpose/gap", R(2, 2, 2, 1), R(1, 1, 2, 1), strides=[2, 2], same=False, output_shape=[2, 3, 3, 2])
case("conv2d_transpose/same", R(1, 3, 3, 1), R(3, 3, 2, 1), strides=[1, 1], same=True, output_shape=[1, 3, 3, 2])
case("conv2d_transpose/same_strided", R(1, 3, 2, 2), R(3, 3, 2, 2), strides=[2, 2], same=True, output_shape=[1, 6, 4, 2])
case("conv1d_transpose/valid", R(1, 4, 2), R(3, 3, 2), strides=[1], same=False, output_shape=[1, 6, 3])
case("conv1d_transpose/same_strided", R(2, 3, 2), R(3, 1, 2), strides=[2], same=True, output_shape=[2, 6, 1])

# Pooling, resizing.
for op in ("max_pool2d", "avg_pool2d"):
    case(op + "/valid", R(2, 4, 5, 2), size=[2, 2], strides=[2, 2], same=False, second=True)
    case(op + "/same", R(1, 5, 5, 2), size=[2, 2], strides=[2, 2], same=True)
    case(op + "/overlap", R(1, 5, 5, 1), size=[3, 3], strides=[2, 2], same=False)
    case(op + "/same_overlap", R(1, 4, 5, 2), size=[3, 3], strides=[1, 1], same=True)
    case(op + "/window_differs", R(1, 4, 6, 1), size=[2, 3], strides=[2, 3], same=False)
    case(op + "/negative", Spec(1, 3, 3, 1, lo=-3, hi=-.1), size=[2, 2], strides=[2, 2], same=True)
    case(op + "/float32", F32(1, 4, 4, 1), size=[2, 2], strides=[2, 2], same=False)
for op in ("max_pool1d", "avg_pool1d"):
    case(op + "/valid", R(2, 6, 2), size=[2], strides=[2], same=False)
    case(op + "/same", R(1, 5, 2), size=[3], strides=[2], same=True)
case("resize/bilinear_up", R(1, 2, 3, 2), size=[4, 6], method="bilinear", only="torch")
case("resize/bilinear_down", R(1, 4, 6, 1), size=[2, 3], method="bilinear", only="torch")
case("resize/bilinear_uneven", R(2, 3, 4, 1), size=[5, 3], method="bilinear", only="torch")
case("resize/bilinear_float32", F32(1, 3, 3, 1), size=[5, 7], method="bilinear", only="tf torch")
case("resize/nearest_up", R(1, 2, 3, 2), size=[4, 6], method="nearest", only="tf torch")
case("resize/nearest_down", R(1, 5, 6, 1), size=[2, 4], method="nearest", only="tf torch")
case("resize/nearest_uneven", R(1, 3, 4, 1), size=[5, 7], method="nearest", only="tf torch")

# Activations.
for op in "relu relu6 elu selu silu mish softsign hard_sigmoid softmax log_softmax".split():
    case(op + "/float64", R(2, 4, lo=-4., hi=8.), only={"relu": "numpy tf torch", "relu6": "numpy tf torch", "hard_sigmoid": "tf"}.get(op, "tf torch"), second=op in "elu silu softmax log_softmax mish".split())
    case(op + "/float32", Spec(2, 4, lo=-4., hi=8., dtype="float32"), only="tf torch", forward=True)
case("softsign/second", R(2, 2), only="torch", second=True)
case("elu/alpha", R(2, 3), only="torch", alpha=.5)
case("leaky_relu/float64", R(2, 4), alpha=.2, only="torch")
case("leaky_relu/layer", R(2, 4), alpha=.3, only="torch")
# TensorFlow rounds the constants of gelu to float32, and the alpha of leaky_relu.
case("gelu/float64", R(2, 4), only="torch", second=True)
case("gelu_tanh/float64", R(2, 4), only="torch", second=True)
case("gelu/one", f64([1.]), only="torch")
case("gelu_tanh/one", f64([1.]), only="torch")
for op in ("gelu", "gelu_tanh"): case(op + "/float32", Spec(2, 4, lo=-4., hi=8., dtype="float32"), only="tf torch", forward=True)
case("silu/large", f64([800, -800, 40, -40]), only="tf torch")
case("mish/large", f64([800, -800, 40, -40]), only="torch")
case("softsign/edge", f64([0, -3, 1e20]), only="tf torch")
for op in ("softmax", "log_softmax"):
    case(op + "/axis0", R(3, 2), axis=0, only="tf torch")
    case(op + "/middle", R(2, 3, 2), axis=1, only="tf torch")
    case(op + "/large", f64([[1000, 1001, 999], [-1000, 0, 1000]]), only="tf torch")
    case(op + "/vector", R(4), only="tf torch")
case("softmax/infinite", f64([[0, -INF, 1]]), only="tf torch", forward=True)
PROBABILITIES = f64([[.2, .5, .3], [1, 0, 0]])
case("softmax_cross_entropy_with_logits/plain", PROBABILITIES, R(2, 3), only="tf torch")
# Second order in the labels, and labels that don't sum to 1: TensorFlow drops their sum from the logits' gradient.
case("softmax_cross_entropy_with_logits/second", PROBABILITIES, R(2, 3), only="torch", second=True)
case("softmax_cross_entropy_with_logits/unnormalized", f64([[.5, 2, 0]]), R(1, 3), only="torch", second=True)
case("softmax_cross_entropy_with_logits/large", PROBABILITIES, f64([[1000, 0, -1000], [-500, 500, 0]]), only="tf torch")
case("sparse_softmax_cross_entropy_with_logits/plain", i32([2, 0, 1]), R(3, 4), only="tf torch", second=True)
case("sparse_softmax_cross_entropy_with_logits/fact", i64([0]), f64([[2, 1, .1]]), only="tf torch")
case("sparse_softmax_cross_entropy_with_logits/large", i64([0, 1]), f64([[1000, 0, -1000], [-500, 500, 0]]), only="tf torch")
case("sparse_softmax_cross_entropy_with_logits/float32", i32([2, 0, 1]), F32(3, 4), only="tf torch")
case("sigmoid_cross_entropy_with_logits/plain", f64([[1, 0, .3], [0, 1, .8]]), R(2, 3), only="tf torch", second=True)
case("sigmoid_cross_entropy_with_logits/large", f64([0, 1, 0, 1]), f64([800, 800, -800, -800]), only="tf torch")


# ---------------------------------------------------------------- files
def word(v, dtype):
    """The shortest decimal that reads back as the same number (of the dtype, where C has it)."""
    if dtype == "bool": return str(int(v))
    if not dtype.startswith(("float", "bfloat")): return str(int(v))
    s = str(np.float32(v) if dtype == "float32" else np.float64(v))
    return s[:-2] if s.endswith(".0") else s


def array(kind, i, a, dtype=None):
    dtype = dtype or str(a.dtype)
    return " ".join([kind, str(i), dtype, str(a.ndim), *map(str, a.shape), *(word(v, dtype) for v in a.reshape(-1))])


def attribute(name, v):
    if isinstance(v, str): return "text %s %s" % (name, v)
    v = v if isinstance(v, (list, tuple)) else [v]
    return " ".join(["attr", name, *(word(float(x), "float64") for x in v)])


def inputs(name, ins):
    return [a.make("%s/%d" % (name, i)) if isinstance(a, Spec) else a for i, a in enumerate(ins)]


def write_case(rows, name, attrs, **arrays):
    """arrays: kind -> list of NumPy arrays, None for a row that isn't there."""
    rows.append("case " + name)
    rows.extend(attribute(*kv) for kv in attrs.items())
    for kind, list_ in arrays.items():
        rows.extend(array(kind, i, a) for i, a in enumerate(list_) if a is not None)
    rows.append("end")


def head(how, who):
    return ["# Reference values by %s. Made by `tests/fixtures.py %s`, which says what the rows mean." % (who, how)]


def save(rows, file):
    os.makedirs(HERE, exist_ok=True)
    text = "\n".join(rows) + "\n"
    with open(os.path.join(HERE, file), "w") as f: f.write(text)
    print("%s: %d cases, %d bytes" % (file, sum(r.startswith("case ") for r in rows), len(text)))


def parse(lines):
    """name -> {row's head: (dtype, shape, values)}; a row's head is its kind and index."""
    out, now = {}, None
    for line in lines:
        w = line.split()
        if not w or w[0].startswith("#"): continue
        if w[0] == "case": now = out.setdefault(w[1], {})
        elif w[0] in ("attr", "text"): now[w[0] + " " + w[1]] = ("", (), w[2:])
        elif w[0] != "end":
            rank = int(w[3])
            now[w[0] + " " + w[1]] = (w[2], tuple(map(int, w[4:4 + rank])), w[4 + rank:])
    return out


def read(file):
    with open(os.path.join(HERE, file)) as f: return parse(f)


def differences(old, new, rtol={"float64": 1e-12, "float32": 2e-6}, kinds="in out up grad up2 grad2 attr text".split()):
    """What is different between two readings of one case: a list of sentences."""
    bad = []
    for k in sorted(set(old) | set(new)):
        if k.split()[0] not in kinds: continue
        if k not in old or k not in new:
            bad.append("%s is only in the %s" % (k, "old" if k in old else "new"))
            continue
        (d0, s0, v0), (d1, s1, v1) = old[k], new[k]
        if (d0, s0) != (d1, s1): bad.append("%s: %s %s against %s %s" % (k, d0, s0, d1, s1))
        elif d0.startswith("float"):
            a, c = np.array(v0, np.float64), np.array(v1, np.float64)
            t = rtol.get(d0, 1e-12)
            if not np.allclose(a, c, rtol=t, atol=t, equal_nan=True): bad.append("%s: %s against %s" % (k, v0, v1))
        elif v0 != v1: bad.append("%s: %s against %s" % (k, v0, v1))
    return bad


# ---------------------------------------------------------------- NumPy
def axes_of(axes): return None if axes is None else tuple(axes)


def numpy_ops():
    def reduction(f, **more):
        return lambda x, axes=None, keepdims=False: f(x, axis=axes_of(axes), keepdims=keepdims, **more)

    def total(f):                   # int32 stays int32; NumPy alone would widen the sum
        return lambda x, axes=None, keepdims=False: f(x, axis=axes_of(axes), keepdims=keepdims, dtype=x.dtype)

    def logsumexp(x, axes=None, keepdims=False):
        m = x.max(axis=axes_of(axes), keepdims=True)
        y = np.log(np.exp(x - m).sum(axis=axes_of(axes), keepdims=True)) + m
        return y if keepdims else y.squeeze(axes_of(axes))

    def cumsum(x, axis, exclusive=False, reverse=False):
        if reverse: x = np.flip(x, axis)
        y = np.cumsum(x, axis, dtype=x.dtype)
        if exclusive: y = y - x
        return np.flip(y, axis) if reverse else y

    def argsort(x, axis, descending=False):
        return np.argsort(-x if descending else x, axis, kind="stable")

    def top_k(x, k):
        order = argsort(x, -1, True)[..., :k]
        return np.take_along_axis(x, order, -1), order

    def norm(x, ord, axes=None, keepdims=False):
        a = np.abs(x)
        if ord == INF: return a.max(axis=axes_of(axes), keepdims=keepdims)
        return (a ** ord).sum(axis=axes_of(axes), keepdims=keepdims) ** (1 / ord)

    def scatter_add(x, indices, updates):
        y = x.copy()
        np.add.at(y, tuple(np.moveaxis(indices, -1, 0)), updates)
        return y

    def one_hot(i, depth, on=1., off=0., axis=-1):
        return np.moveaxis(np.where(i[..., None] == np.arange(depth), np.float32(on), np.float32(off)), -1, axis)

    def pad(x, paddings, mode, value=0.):
        pairs = np.array(paddings).reshape(-1, 2)
        return np.pad(x, pairs, constant_values=value) if mode == "constant" else np.pad(x, pairs, mode)



    def sigmoid(x): return np.where(x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), 1 / (1 + np.exp(-np.maximum(x, 0)))).astype(x.dtype)

    def clip_by_norms(*x, norm):
        n = np.sqrt(sum((a * a).sum() for a in x))
        return [a * norm / max(n, norm) for a in x]

    ops = dict(add=np.add, sub=np.subtract, mul=np.multiply, div=np.divide, floordiv=np.floor_divide, mod=np.mod, pow=np.power,
               maximum=np.maximum, minimum=np.minimum, squared_difference=lambda x, y: np.square(x - y), atan2=np.arctan2,
               equal=np.equal, not_equal=np.not_equal, less=np.less, less_equal=np.less_equal, greater=np.greater, greater_equal=np.greater_equal,
               logical_and=np.logical_and, logical_or=np.logical_or, logical_xor=np.logical_xor, logical_not=np.logical_not,
               is_nan=np.isnan, is_inf=np.isinf, is_finite=np.isfinite, where=np.where,
               negative=np.negative, abs=np.abs, sign=np.sign, square=np.square, sqrt=np.sqrt, reciprocal=lambda x: 1 / x, rsqrt=lambda x: 1 / np.sqrt(x),
               exp=np.exp, expm1=np.expm1, log=np.log, log1p=np.log1p, sin=np.sin, cos=np.cos, tan=np.tan, asin=np.arcsin, acos=np.arccos,
               atan=np.arctan, sinh=np.sinh, cosh=np.cosh, tanh=np.tanh, asinh=np.arcsinh, acosh=np.arccosh, atanh=np.arctanh,
               sigmoid=sigmoid, softplus=lambda x: np.logaddexp(x, x.dtype.type(0)), floor=np.floor, ceil=np.ceil, round=np.round,
               erf=lambda x: np.vectorize(math.erf, otypes=[x.dtype])(x), relu=lambda x: np.maximum(x, 0), relu6=lambda x: np.clip(x, 0, 6),
               reduce_sum=total(np.sum), reduce_mean=reduction(np.mean), reduce_max=reduction(np.max), reduce_min=reduction(np.min), reduce_prod=total(np.prod),
               reduce_all=reduction(np.all), reduce_any=reduction(np.any), reduce_variance=reduction(np.var), reduce_std=reduction(np.std),
               reduce_logsumexp=logsumexp, cumsum=cumsum, norm=norm, argmax=lambda x, axis: np.argmax(x, axis), argmin=lambda x, axis: np.argmin(x, axis),
               top_k=top_k, argsort=argsort, sort=lambda x, axis, descending=False: np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis),
               gather=lambda x, i, axis: np.take(x, i, axis), gather_nd=lambda x, i: x[tuple(np.moveaxis(i, -1, 0))],
               scatter_nd=lambda i, u, shape: scatter_add(np.zeros(shape, u.dtype), i, u), tensor_scatter_add=scatter_add, one_hot=one_hot,
               strided_slice=lambda x, begin, end, strides: x[tuple(slice(*s) for s in zip(begin, end, strides))],
               slice=lambda x, begin, size: x[tuple(slice(b, None if n < 0 else b + n) for b, n in zip(begin, size))],
               repeat=lambda x, repeats, axis: np.repeat(x, repeats, axis), take_along_axis=lambda x, i, axis: np.take_along_axis(x, i, axis),
               segment_sum=lambda x, i, n: scatter_add(np.zeros((n, *x.shape[1:]), x.dtype), i[:, None], x),
               divide_no_nan=lambda x, y: np.where(y == 0, 0., x / y),
               pad=pad, tile=lambda x, multiples: np.tile(x, multiples), concat=lambda *x, axis: np.concatenate(x, axis), split=lambda x, num, axis: np.split(x, num, axis),
               stack=lambda *x, axis: np.stack(x, axis), unstack=lambda x, axis: [np.squeeze(a, axis) for a in np.split(x, x.shape[axis], axis)],
               transpose=lambda x, perm=None: np.transpose(x, perm), reshape=lambda x, shape: np.reshape(x, shape), reverse=lambda x, axes: np.flip(x, axes),
               expand_dims=np.expand_dims, squeeze=lambda x, axes=None: np.squeeze(x, axes_of(axes)), broadcast_to=np.broadcast_to,
               clip_by_value=lambda x, low, high: np.clip(x, low, high), clip_by_norm=clip_by_norms, clip_by_global_norm=clip_by_norms, matmul=lambda x, y, transpose_a=False, transpose_b=False:
               np.matmul(x.swapaxes(-1, -2) if transpose_a else x, y.swapaxes(-1, -2) if transpose_b else y),
               einsum=lambda *x, equation: np.einsum(equation, *x), cast=lambda x, to: x.astype(to),
               range=lambda start, limit, delta, dtype: np.arange(start, limit, delta, dtype=dtype),
               linspace=lambda start, stop, num, dtype: np.linspace(start, stop, num, dtype=dtype),
               eye=lambda rows, columns, dtype: np.eye(rows, columns, dtype=dtype))
    return ops


def philox4x32(counter, key, rounds=10):
    """Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), section 3.3."""
    c, k = list(counter), list(key)
    for i in range(rounds):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


# The known answers that Random123 (the authors' library) is tested with.
PHILOX = {"zeros": ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
          "ones": ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
          "pi": ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])}


def make_numpy():
    rows, ops = head("numpy", "NumPy"), numpy_ops()
    np.seterr(all="ignore")
    for name, ins, attrs, only, _, _ in CASES:
        if "numpy" not in only or name.split("/")[0] not in ops: continue
        x = inputs(name, ins)
        y = ops[name.split("/")[0]](*x, **attrs)
        y = [np.asarray(a) for a in (y if isinstance(y, (list, tuple)) else [y])]
        write_case(rows, name, attrs, **{"in": x, "out": y})
    for label, (counter, key, known) in PHILOX.items():
        assert philox4x32(counter, key) == known, label
        write_case(rows, "philox4x32/" + label, {}, **{"in": [i64(counter), i64(key)], "out": [i64(known)]})
    for n in range(4):                                          # consecutive blocks of one stream
        write_case(rows, "philox4x32/block%d" % n, {}, **{"in": [i64([n, 0, 0, 0]), i64([42, 7])], "out": [i64(philox4x32([n, 0, 0, 0], [42, 7]))]})
    return rows


def check():
    old, new = read("numpy.txt"), parse(make_numpy())
    bad = ["%s is only in the %s" % (n, "file" if n in old else "script") for n in sorted(set(old) ^ set(new))]
    for n in old:
        if n in new: bad += ["%s: %s" % (n, d) for d in differences(old[n], new[n])]
    print("\n".join(bad) if bad else "numpy.txt: %d cases made again, all the same" % len(new))
    return 1 if bad else 0


# ---------------------------------------------------------------- what TensorFlow and PyTorch share
def upstreams(name, kind, like):
    return [R(*a.shape).make("%s/%s%d" % (name, kind, i)).astype(a.dtype) if a is not None and a.dtype.kind == "f" else None for i, a in enumerate(like)]


def make_framework(who, file, ops, evaluate, earlier):
    """evaluate(op, inputs, attrs, name, forward, second) gives the arrays of a case. What the earlier files have is
    compared, and written again only if this framework adds the gradients."""
    rows, bad, agreed = head(file[:-4], who), [], 0
    for name, ins, attrs, only, second, forward in CASES:
        op = name.split("/")[0]
        if file[:-4] not in only or op not in ops: continue
        try: arrays = evaluate(ops[op], inputs(name, ins), attrs, name, forward, second)
        except Exception as e:
            bad.append("%s: %s" % (name, str(e).split("\n")[0][:200]))
            continue
        text = []
        write_case(text, name, attrs, **arrays)
        new = parse(text)[name]
        kinds = {k.split()[0] for k in new}
        witnesses = [old[name] for old in earlier if name in old]
        for old in witnesses:
            common = [k for k in ("in", "out", "up", "grad", "up2", "grad2", "attr", "text") if k in kinds and any(h.split()[0] == k for h in old)]
            bad += ["%s: %s" % (name, d) for d in differences(old, new, kinds=common)]
            agreed += 1
        if not witnesses or ("grad" in kinds and not any(h.startswith("grad ") for w in witnesses for h in w)): rows += text
    print("%s: %d cases compared with earlier files%s" % (file, agreed, "".join("\n  " + d for d in bad)))
    return rows, bad


# ---------------------------------------------------------------- TensorFlow
def tf_ops(tf, keras):
    def padding(same): return "SAME" if same else "VALID"

    def reduction(f): return lambda x, axes=None, keepdims=False: f(x, axes, keepdims)

    def norm(x, ord, axes=None, keepdims=False):
        return tf.norm(x, np.inf if ord == INF else ord, axes[0] if axes else None, keepdims)

    def direction(descending): return "DESCENDING" if descending else "ASCENDING"

    def pool(f): return lambda x, size, strides, same: f(x, size, strides, padding(same))

    def one_hot(i, depth, on=None, off=None, axis=-1): return tf.one_hot(i, depth, on, off, axis)

    def conv2d(x, w, strides, same, dilations, groups): return tf.nn.conv2d(x, w, strides, padding(same), dilations=dilations)

    ops = dict(add=tf.add, sub=tf.subtract, mul=tf.multiply, div=tf.divide, floordiv=tf.math.floordiv, mod=tf.math.floormod, pow=tf.pow, atan2=tf.atan2,
               negative=tf.negative, sigmoid=tf.sigmoid, softplus=tf.nn.softplus, relu=tf.nn.relu, relu6=tf.nn.relu6, elu=tf.nn.elu, selu=tf.nn.selu,
               silu=tf.nn.silu, mish=keras.activations.mish, softsign=tf.nn.softsign, hard_sigmoid=keras.activations.hard_sigmoid,
               leaky_relu=tf.nn.leaky_relu, gelu=tf.nn.gelu, gelu_tanh=lambda x: tf.nn.gelu(x, approximate=True), softmax=tf.nn.softmax, log_softmax=tf.nn.log_softmax,
               where=tf.where, matmul=tf.matmul, einsum=lambda *x, equation: tf.einsum(equation, *x),
               cumsum=tf.cumsum, norm=norm, top_k=lambda x, k: (lambda y: (y.values, tf.cast(y.indices, tf.int64)))(tf.math.top_k(x, k)),
               sort=lambda x, axis, descending=False: tf.sort(x, axis, direction(descending)),
               argsort=lambda x, axis, descending=False: tf.cast(tf.argsort(x, axis, direction(descending), stable=True), tf.int64),
               gather=lambda x, i, axis: tf.gather(x, i, axis=axis), gather_nd=tf.gather_nd, scatter_nd=lambda i, u, shape: tf.scatter_nd(i, u, shape),
               tensor_scatter_add=tf.tensor_scatter_nd_add, one_hot=one_hot, slice=tf.slice, strided_slice=tf.strided_slice,
               repeat=tf.repeat, take_along_axis=lambda x, i, axis: tf.experimental.numpy.take_along_axis(x, i, axis),
               segment_sum=lambda x, i, n: tf.math.unsorted_segment_sum(x, i, n), divide_no_nan=tf.math.divide_no_nan,
               pad=lambda x, paddings, mode, value=0.: tf.pad(x, np.array(paddings).reshape(-1, 2), mode.upper(), value),
               split=lambda x, num, axis: tf.split(x, num, axis),
               concat=lambda *x, axis: tf.concat(x, axis), stack=lambda *x, axis: tf.stack(x, axis), unstack=lambda x, axis: tf.unstack(x, axis=axis),
               reverse=lambda x, axes: tf.reverse(x, axes), squeeze=lambda x, axes=None: tf.squeeze(x, axes), cast=lambda x, to: tf.cast(x, to),
               clip_by_value=lambda x, low, high: tf.clip_by_value(x, low, high), clip_by_norm=lambda x, norm: tf.clip_by_norm(x, norm),
               clip_by_global_norm=lambda *x, norm: tf.clip_by_global_norm(x, norm)[0],
               conv2d=conv2d, conv1d=lambda x, w, strides, same, dilations, groups: tf.nn.conv1d(x, w, strides, padding(same), dilations=dilations),
               depthwise_conv2d=lambda x, w, strides, same, dilations: tf.nn.depthwise_conv2d(x, w, [1, *strides, 1], padding(same), dilations=dilations),
               conv2d_transpose=lambda x, w, strides, same, output_shape: tf.nn.conv2d_transpose(x, w, output_shape, strides, padding(same)),
               conv1d_transpose=lambda x, w, strides, same, output_shape: tf.nn.conv1d_transpose(x, w, output_shape, strides, padding(same)),
               resize=lambda x, size, method: tf.image.resize(x, size, method),
               softmax_cross_entropy_with_logits=lambda y, z: tf.nn.softmax_cross_entropy_with_logits(y, z),
               sparse_softmax_cross_entropy_with_logits=lambda y, z: tf.nn.sparse_softmax_cross_entropy_with_logits(y, z),
               sigmoid_cross_entropy_with_logits=lambda y, z: tf.nn.sigmoid_cross_entropy_with_logits(y, z))
    for name in "maximum minimum squared_difference equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not \
                 is_nan is_inf is_finite abs sign square sqrt rsqrt reciprocal exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh \
                 atanh floor ceil round erf argmax argmin".split(): ops[name] = getattr(tf.math, name)
    for name in "transpose reshape expand_dims broadcast_to tile".split(): ops[name] = getattr(tf, name)
    for name in "sum mean max min prod all any variance std logsumexp".split(): ops["reduce_" + name] = reduction(getattr(tf.math, "reduce_" + name))
    for name in "max_pool2d avg_pool2d max_pool1d avg_pool1d".split(): ops[name] = pool(getattr(tf.nn, name))
    return ops


def make_tf():
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", KERAS_BACKEND="tensorflow")
    import tensorflow as tf
    import keras
    tf.config.threading.set_intra_op_parallelism_threads(1)

    def plain(a): return None if a is None else tf.convert_to_tensor(a).numpy()

    def evaluate(f, x, attrs, name, forward, second):
        xs = [tf.constant(a) for a in x]
        floats = [i for i, a in enumerate(x) if a.dtype.kind == "f"]
        with tf.GradientTape(persistent=True) as outer, tf.GradientTape() as inner:
            for i in floats:
                outer.watch(xs[i])
                inner.watch(xs[i])
            ys = f(*xs, **attrs)
            ys = list(ys) if isinstance(ys, (list, tuple)) else [ys]
            arrays = {"in": x, "out": [a.numpy() for a in ys]}
            ups = upstreams(name, "up", arrays["out"])
            if forward or not floats or all(u is None for u in ups): return arrays
            gs = [None] * len(x)
            targets = [(y, tf.constant(u)) for y, u in zip(ys, ups) if u is not None]
            for i, g in zip(floats, inner.gradient([t[0] for t in targets], [xs[i] for i in floats], [t[1] for t in targets])):
                gs[i] = None if g is None else tf.convert_to_tensor(g)
            arrays["grad"] = [plain(g) for g in gs]
            if all(g is None for g in gs): return {k: arrays[k] for k in ("in", "out")}
            arrays["up"] = ups
            if second:
                ups2 = upstreams(name, "up2", arrays["grad"])
                total = sum(tf.reduce_sum(g * u) for g, u in zip(gs, ups2) if g is not None)
        if second:
            arrays["up2"] = ups2
            arrays["grad2"] = [plain(outer.gradient(total, xs[i])) if i in floats else None for i in range(len(x))]
        return arrays

    rows, bad = make_framework("TensorFlow %s and Keras %s" % (tf.__version__, keras.__version__), "tf.txt", tf_ops(tf, keras), evaluate, [read("numpy.txt")])
    return rows + keras_rows(tf, keras), bad


OPTIMIZERS = [                                                  # name/variant, Keras's class, options
    ("sgd/plain", "SGD", {}), ("sgd/momentum", "SGD", dict(momentum=.9)), ("sgd/nesterov", "SGD", dict(momentum=.9, nesterov=True)),
    ("sgd/weight_decay", "SGD", dict(weight_decay=.01)), ("sgd/clipnorm", "SGD", dict(clipnorm=.75)), ("sgd/clipvalue", "SGD", dict(clipvalue=.75)),
    ("rmsprop/plain", "RMSprop", {}), ("rmsprop/centered", "RMSprop", dict(centered=True)), ("rmsprop/momentum", "RMSprop", dict(momentum=.9)),
    ("rmsprop/centered_momentum", "RMSprop", dict(centered=True, momentum=.5, rho=.8)),
    ("adam/plain", "Adam", {}), ("adam/amsgrad", "Adam", dict(amsgrad=True)), ("adam/betas", "Adam", dict(beta_1=.8, beta_2=.7, epsilon=1e-3)),
    ("adam/amsgrad_betas", "Adam", dict(amsgrad=True, beta_1=.5, beta_2=.5)), ("adamw/plain", "AdamW", dict(weight_decay=.004)), ("adamw/decay", "AdamW", dict(weight_decay=.1)),
    ("adagrad/plain", "Adagrad", {}), ("adagrad/accumulator", "Adagrad", dict(initial_accumulator_value=.5)), ("adadelta/plain", "Adadelta", {}),
    ("adadelta/rho", "Adadelta", dict(rho=.5, epsilon=1e-2)), ("adamax/plain", "Adamax", {}), ("nadam/plain", "Nadam", {}),
    ("nadam/betas", "Nadam", dict(beta_1=.8, beta_2=.7)), ("lion/plain", "Lion", {}), ("lion/betas", "Lion", dict(beta_1=.5, beta_2=.6)),
    ("ftrl/plain", "Ftrl", {}), ("ftrl/regularized", "Ftrl", dict(l1_regularization_strength=.1, l2_regularization_strength=.2)),
    ("ftrl/beta_power", "Ftrl", dict(beta=.5, learning_rate_power=-.75, l2_shrinkage_regularization_strength=.1)),
]
SCHEDULES = [
    ("exponential_decay/plain", "ExponentialDecay", dict(initial_learning_rate=.1, decay_steps=10, decay_rate=.5)),
    ("exponential_decay/staircase", "ExponentialDecay", dict(initial_learning_rate=.1, decay_steps=10, decay_rate=.5, staircase=True)),
    ("piecewise_constant/plain", "PiecewiseConstantDecay", dict(boundaries=[5, 10], values=[.1, .05, .01])),
    ("polynomial_decay/linear", "PolynomialDecay", dict(initial_learning_rate=.1, decay_steps=10, end_learning_rate=.01)),
    ("polynomial_decay/square", "PolynomialDecay", dict(initial_learning_rate=.1, decay_steps=10, end_learning_rate=.01, power=2.)),
    ("polynomial_decay/cycle", "PolynomialDecay", dict(initial_learning_rate=.1, decay_steps=10, end_learning_rate=.01, cycle=True)),
    ("cosine_decay/plain", "CosineDecay", dict(initial_learning_rate=.1, decay_steps=15)),
    ("cosine_decay/alpha", "CosineDecay", dict(initial_learning_rate=.1, decay_steps=15, alpha=.1)),
    ("cosine_decay/warmup", "CosineDecay", dict(initial_learning_rate=.01, decay_steps=15, alpha=.1, warmup_target=.1, warmup_steps=5)),
]


def keras_rows(tf, keras):
    """Optimizers: in 0 the start, in 1 one gradient a row; out 0 the weights after each. With two variables (a norm over
    both): in 2, in 3 and out 1 are the second's. Schedules: in 0 the steps, out 0 the rate.
    Keras rounds the options to float32 even where the variables are float64 (Adam's first step is then .9000013 and not
    .9000006); here they stay as they were written."""
    import keras.src.backend.tensorflow.core as core
    keras.config.set_floatx("float64")
    rounding_cast = core.cast
    core.cast = lambda x, dtype: tf.constant(x, dtype) if isinstance(x, float) else rounding_cast(x, dtype)
    rows = ["# Optimizers and schedules by Keras, in float64."]

    def exact(options):
        return {k: [np.float64(x) for x in v] if k == "values" else np.float64(v) if isinstance(v, float) else v for k, v in options.items()}

    def steps(name, kind, options, *pairs):
        o = getattr(keras.optimizers, kind)(learning_rate=.1, **exact(options))
        ws = [keras.Variable(w, dtype="float64") for w, _ in pairs]
        outs = [[] for _ in pairs]
        for t in range(len(pairs[0][1])):
            o.apply([keras.ops.convert_to_tensor(g[t]) for _, g in pairs], ws)
            for out, w in zip(outs, ws): out.append(keras.ops.convert_to_numpy(w))
        write_case(rows, name, {"learning_rate": .1, **options}, **{"in": [a for p in pairs for a in p], "out": [np.array(a) for a in outs]})

    for name, kind, options in OPTIMIZERS:
        steps(name, kind, options, (f64(1.), f64([.5, -1, 2])))
        op, label = name.split("/")
        steps("%s/vector_%s" % (op, label), kind, options, (R(3).make(name + "/w"), R(6, 3).make(name + "/g")))
    steps("sgd/global_clipnorm", "SGD", dict(global_clipnorm=1.), (R(3).make("gw"), R(4, 3).make("gg")), (R(2, 2).make("gw2"), R(4, 2, 2).make("gg2")))
    for name, kind, options in SCHEDULES:
        s, at = getattr(keras.optimizers.schedules, kind)(**exact(options)), i64([0, 1, 4, 5, 6, 9, 10, 11, 15, 20, 21, 37])
        write_case(rows, name, options, **{"in": [at], "out": [np.array([float(s(int(t))) for t in at])]})
    return rows


# ---------------------------------------------------------------- PyTorch
def torch_ops(torch):
    F = torch.nn.functional

    def axes_list(x, axes): return list(range(x.ndim)) if axes is None else list(axes)

    def reduction(f): return lambda x, axes=None, keepdims=False: f(x, axes_list(x, axes), keepdims)

    def total(x, axes=None, keepdims=False): return torch.sum(x, axes_list(x, axes), keepdims, dtype=x.dtype)

    def one_by_one(f):                                          # for what takes one axis at a time
        def g(x, axes=None, keepdims=False):
            for a in sorted((a % x.ndim for a in axes_list(x, axes)), reverse=True): x = f(x, a, keepdims)
            return x
        return g

    def cumsum(x, axis, exclusive=False, reverse=False):
        if reverse: x = x.flip(axis)
        y = torch.cumsum(x, axis, dtype=x.dtype)
        if exclusive: y = y - x
        return y.flip(axis) if reverse else y

    def norm(x, ord, axes=None, keepdims=False): return torch.linalg.vector_norm(x, ord, axes, keepdims)

    def swap(x, on): return x.transpose(-1, -2) if on else x

    def index(x, i, axis): return torch.index_select(x, axis, i.reshape(-1).long()).reshape(*x.shape[:axis % x.ndim], *i.shape, *x.shape[axis % x.ndim + 1:])

    def point(i): return tuple(torch.moveaxis(i.long(), -1, 0))

    def cut(x, begin, end, strides):
        for a, s in enumerate(zip(begin, end, strides)):
            x = torch.index_select(x, a, torch.tensor(list(range(*slice(*s).indices(x.shape[a]))), dtype=torch.long))
        return x

    def pad(x, paddings, mode, value=0.):
        for a, (before, after) in enumerate(np.array(paddings).reshape(-1, 2)):
            i = np.arange(x.shape[a])
            if mode == "constant":
                def strip(n): return torch.full((*x.shape[:a], n, *x.shape[a + 1:]), value, dtype=x.dtype)
                x = torch.cat([strip(before), x, strip(after)], a)
            else: x = torch.index_select(x, a, torch.tensor(np.pad(i, (before, after), mode)))
        return x

    def same_padding(x, kernel, strides, dilations, value=0.):
        """x (N,C,...) padded so that a VALID window gives TensorFlow's SAME: the odd pad goes to the end."""
        pads = []
        for n, k, s, d in reversed(list(zip(x.shape[2:], kernel, strides, dilations))):
            total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
            pads += [total // 2, total - total // 2]
        return F.pad(x, pads, value=value)

    def front(x): return x.movedim(-1, 1)                       # channels first, as PyTorch has them, and back
    def back(x): return x.movedim(1, -1)

    def convolution(f):
        def g(x, w, strides, same, dilations, groups):
            x, w = front(x), w.movedim(-1, 0).movedim(-1, 1)
            if same: x = same_padding(x, w.shape[2:], strides, dilations)
            return back(f(x, w, stride=strides, dilation=dilations, groups=groups))
        return g

    def depthwise(x, w, strides, same, dilations):
        h, v, c, m = w.shape
        return convolution(F.conv2d)(x, w.reshape(h, v, 1, c * m), strides, same, dilations, c)

    def transposed(f):
        def g(x, w, strides, same, output_shape):
            kernel, out = w.shape[:-2], output_shape[1:-1]
            y = f(front(x), w.movedim(-1, 0).movedim(-1, 1).contiguous(), stride=strides)        # VALID, as short as can be
            for a, (n, k, s) in enumerate(zip(out, kernel, strides), 2):
                before = max(0, (-(-n // s) - 1) * s + k - n) // 2 if same else 0
                y = F.pad(y, [0, 0] * (y.ndim - 1 - a) + [0, max(0, before + n - y.shape[a])]).narrow(a, before, n)
            return back(y)
        return g

    def max_pool(f):
        def g(x, size, strides, same):
            x = front(x)
            return back(f(same_padding(x, size, strides, [1, 1], -INF) if same else x, size, strides))
        return g

    def avg_pool(f):
        def g(x, size, strides, same):
            x = front(x)
            if not same: return back(f(x, size, strides))
            ones = same_padding(torch.ones_like(x), size, strides, [1, 1])
            return back(f(same_padding(x, size, strides, [1, 1]), size, strides) / f(ones, size, strides))
        return g

    def resize(x, size, method): return back(F.interpolate(front(x), size, mode="nearest-exact" if method == "nearest" else method))

    def softmax(f): return lambda x, axis=-1: f(x, axis)

    def clip_by_norm(x, norm):
        n = torch.sqrt((x * x).sum())
        return x * norm / torch.maximum(n, torch.tensor(norm, dtype=x.dtype))

    dtypes = {k: getattr(torch, k) for k in "float16 bfloat16 float32 float64 int32 int64 uint8 bool".split()}
    ops = dict(div=torch.true_divide, floordiv=torch.floor_divide, mod=torch.remainder, equal=torch.eq, not_equal=torch.ne, less=torch.lt, less_equal=torch.le,
               greater=torch.gt, greater_equal=torch.ge, is_nan=torch.isnan, is_inf=torch.isinf, is_finite=torch.isfinite, where=torch.where,
               negative=torch.neg, relu=F.relu, relu6=F.relu6, elu=F.elu, selu=F.selu, silu=F.silu, mish=F.mish, softsign=F.softsign, hard_sigmoid=F.hardsigmoid,
               leaky_relu=lambda x, alpha: F.leaky_relu(x, alpha), gelu=F.gelu, gelu_tanh=lambda x: F.gelu(x, approximate="tanh"),
               softplus=lambda x: torch.logaddexp(x, torch.zeros_like(x)), softmax=softmax(F.softmax), log_softmax=softmax(F.log_softmax),
               squared_difference=lambda x, y: torch.square(x - y), reduce_sum=total, reduce_mean=reduction(torch.mean),
               reduce_max=reduction(torch.amax), reduce_min=reduction(torch.amin), reduce_prod=one_by_one(lambda x, a, k: torch.prod(x, a, k, dtype=x.dtype)),
               reduce_all=one_by_one(torch.all), reduce_any=one_by_one(torch.any), reduce_logsumexp=reduction(torch.logsumexp),
               reduce_variance=lambda x, axes=None, keepdims=False: torch.var(x, axes, correction=0, keepdim=keepdims),
               reduce_std=lambda x, axes=None, keepdims=False: torch.std(x, axes, correction=0, keepdim=keepdims),
               cumsum=cumsum, norm=norm, argmax=lambda x, axis: torch.argmax(x, axis), argmin=lambda x, axis: torch.argmin(x, axis),
               top_k=lambda x, k: [torch.topk(x, k).values, torch.topk(x, k).indices],
               sort=lambda x, axis, descending=False: torch.sort(x, dim=axis, descending=descending).values,
               argsort=lambda x, axis, descending=False: torch.argsort(x, dim=axis, descending=descending, stable=True),
               gather=index, gather_nd=lambda x, i: x[point(i)],
               scatter_nd=lambda i, u, shape: torch.zeros(shape, dtype=u.dtype).index_put(point(i), u, accumulate=True),
               tensor_scatter_add=lambda x, i, u: x.index_put(point(i), u, accumulate=True),
               one_hot=lambda i, depth: F.one_hot(i.long(), depth).float(), strided_slice=cut, pad=pad, tile=lambda x, multiples: x.tile(multiples),
               concat=lambda *x, axis: torch.cat(x, axis), split=lambda x, num, axis: torch.split(x, x.shape[axis] // num, axis),
               slice=lambda x, begin, size: cut(x, begin, [n + b if n >= 0 else d for b, n, d in zip(begin, size, x.shape)], [1] * x.ndim),
               repeat=lambda x, repeats, axis: torch.repeat_interleave(x, repeats, axis), take_along_axis=torch.take_along_dim,
               stack=lambda *x, axis: torch.stack(x, axis), unstack=lambda x, axis: torch.unbind(x, axis),
               transpose=lambda x, perm=None: x.permute(perm or list(range(x.ndim))[::-1]), reshape=lambda x, shape: x.reshape(shape),
               reverse=lambda x, axes: x.flip(axes), expand_dims=lambda x, axis: x.unsqueeze(axis),
               squeeze=lambda x, axes=None: x.squeeze() if axes is None else x.squeeze(tuple(axes)), broadcast_to=lambda x, shape: x.broadcast_to(shape),
               clip_by_value=lambda x, low, high: torch.clamp(x, low, high), clip_by_norm=clip_by_norm,
               matmul=lambda x, y, transpose_a=False, transpose_b=False: torch.matmul(swap(x, transpose_a), swap(y, transpose_b)),
               einsum=lambda *x, equation: torch.einsum(equation, *x), cast=lambda x, to: x.to(dtypes[to]),
               conv2d=convolution(F.conv2d), conv1d=convolution(F.conv1d), depthwise_conv2d=depthwise,
               conv2d_transpose=transposed(F.conv_transpose2d), conv1d_transpose=transposed(F.conv_transpose1d),
               max_pool2d=max_pool(F.max_pool2d), max_pool1d=max_pool(F.max_pool1d), avg_pool2d=avg_pool(F.avg_pool2d), avg_pool1d=avg_pool(F.avg_pool1d),
               resize=resize,
               softmax_cross_entropy_with_logits=lambda y, z: -(y * F.log_softmax(z, -1)).sum(-1),
               sparse_softmax_cross_entropy_with_logits=lambda y, z: F.cross_entropy(z, y.long(), reduction="none"),
               sigmoid_cross_entropy_with_logits=lambda y, z: F.binary_cross_entropy_with_logits(z, y, reduction="none"))
    for name in "add sub mul pow atan2 maximum minimum logical_and logical_or logical_xor logical_not abs sign square sqrt rsqrt reciprocal exp expm1 log \
                 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid floor ceil round erf".split(): ops[name] = getattr(torch, name)
    return ops


def make_torch():
    import torch
    torch.set_num_threads(1)

    def plain(a):
        return None if a is None else a.detach().numpy()

    def evaluate(f, x, attrs, name, forward, second):
        xs = [torch.tensor(a) for a in x]
        floats = [i for i, a in enumerate(x) if a.dtype.kind == "f"]
        for i in floats: xs[i].requires_grad_(not forward)
        ys = f(*xs, **{k: list(v) if isinstance(v, tuple) else v for k, v in attrs.items()})
        ys = list(ys) if isinstance(ys, (list, tuple)) else [ys]
        arrays = {"in": x, "out": [plain(a) for a in ys]}
        ups = upstreams(name, "up", arrays["out"])
        targets = [(y, torch.tensor(u)) for y, u in zip(ys, ups) if u is not None and y.requires_grad]
        if forward or not targets: return arrays
        gs = [None] * len(x)
        got = torch.autograd.grad([t[0] for t in targets], [xs[i] for i in floats], [t[1] for t in targets], create_graph=second, allow_unused=True)
        for i, g in zip(floats, got): gs[i] = g
        arrays["up"], arrays["grad"] = ups, [plain(g) for g in gs]
        if second:
            ups2 = upstreams(name, "up2", arrays["grad"])
            total = sum((g * torch.tensor(u)).sum() for g, u in zip(gs, ups2) if g is not None)
            arrays["up2"], arrays["grad2"] = ups2, [None] * len(x)
            for i in floats:
                g = torch.autograd.grad(total, xs[i], retain_graph=True, allow_unused=True)[0]
                arrays["grad2"][i] = np.zeros_like(x[i]) if g is None else plain(g)
        return arrays

    return make_framework("PyTorch " + torch.__version__, "torch.txt", torch_ops(torch), evaluate, [read("numpy.txt"), read("tf.txt")])


# ---------------------------------------------------------------- the guide's model, step by step
def idx(folder, name):
    """An IDX file of bytes, plain or gzip'ed, in the folder or in its mnist/."""
    import gzip
    for path in (os.path.join(f, name + end) for f in (folder, os.path.join(folder, "mnist")) for end in ("", ".gz")):
        if not os.path.exists(path): continue
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f: raw = f.read()
        dims = np.frombuffer(raw, ">u4", raw[3], 4)
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(dims)
    raise SystemExit("EAGER_DATA must name a folder that holds " + name)


class Stream:
    """Normals that any language can make: element k of the stream is splitmix64(k); two make one normal."""
    def __init__(self, k): self.k = k                           # the last element drawn

    def uniform(self, n):
        z = np.arange(self.k + 1, self.k + n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self.k += n
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return ((z ^ z >> np.uint64(31)) >> np.uint64(11)) * 2.**-53

    def normal(self, *shape, scale):
        u = self.uniform(2 * math.prod(shape))
        return (np.sqrt(-2 * np.log1p(-u[0::2])) * np.cos(2 * np.pi * u[1::2]) * scale).astype(np.float32).reshape(shape)


def train(dtype):
    """Conv 16 3x3 relu twice (VALID), the mean over the pixels, Dense 10; Adam as Keras computes it."""
    import torch
    F = torch.nn.functional
    torch.set_num_threads(1)
    folder, dtype = os.environ.get("EAGER_DATA", ""), getattr(torch, dtype)
    images, labels = idx(folder, "t10k-images-idx3-ubyte")[:8000], idx(folder, "t10k-labels-idx1-ubyte")[:8000]
    images = torch.tensor(images).to(dtype).unsqueeze(1) / 255
    labels, r = torch.tensor(labels).long(), Stream(30000)
    shapes = [((3, 3, 1, 16), (2 / 9) ** .5), ((16,), 0), ((3, 3, 16, 16), (2 / 144) ** .5), ((16,), 0), ((16, 10), (1 / 16) ** .5), ((10,), 0)]
    p = [torch.tensor(r.normal(*s, scale=k) if k else np.zeros(s, np.float32)).to(dtype).requires_grad_() for s, k in shapes]
    m, v, losses = [torch.zeros_like(a) for a in p], [torch.zeros_like(a) for a in p], []
    for t in range(250):
        batch = torch.arange(32 * t, 32 * t + 32) % 8000
        x = images[batch]
        for w, bias in (p[0:2], p[2:4]): x = F.relu(F.conv2d(x, w.permute(3, 2, 0, 1), bias))
        loss = F.cross_entropy(x.mean((2, 3)) @ p[4] + p[5], labels[batch])
        losses.append(loss.item())
        rate = 1e-3 * (1 - .999 ** (t + 1)) ** .5 / (1 - .9 ** (t + 1))
        with torch.no_grad():
            for a, g, m1, v1 in zip(p, torch.autograd.grad(loss, p), m, v):
                m1 += (g - m1) * .1
                v1 += (g * g - v1) * .001
                a -= rate * m1 / (v1.sqrt() + 1e-7)
    return np.array(losses, str(dtype)[6:])


def make_train_rows():
    import torch
    rows = head("train", "PyTorch " + torch.__version__) + [
        "# The loss before each of 250 steps. " + " ".join(train.__doc__.split()),
        "# Learning rate 1e-3, epsilon 1e-7; the first 8000 digits of MNIST's t10k files over 255, in file order, 32 a batch.",
        "# Weights from splitmix64(30001), splitmix64(30002), ... as class Stream draws them, in this order: filter (3,3,1,16) by",
        "# sqrt(2/9), filter (3,3,16,16) by sqrt(2/144), matrix (16,10) by sqrt(1/16); all biases 0. The steps magnify rounding:",
        "# from most starts float32 ends up to 3e-3 from float64, from this one 1e-4 (in PyTorch, with three different kernels)."]
    for dtype in ("float32", "float64"):
        write_case(rows, "guide_loss/" + dtype, dict(batch=32, learning_rate=1e-3, epsilon=1e-7), out=[train(dtype)])
    return rows


def main():
    how = sys.argv[1] if len(sys.argv) == 2 else ""
    if how == "numpy": save(make_numpy(), "numpy.txt")
    elif how == "check": return check()
    elif how in ("tf", "torch"):
        rows, bad = make_tf() if how == "tf" else make_torch()
        save(rows, how + ".txt")
        return 1 if bad else 0
    elif how == "train": save(make_train_rows(), "guide_loss.txt")
    elif how == "all": return max(subprocess.call([sys.executable, os.path.abspath(__file__), h]) for h in ("numpy", "tf", "torch"))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__": sys.exit(main())
