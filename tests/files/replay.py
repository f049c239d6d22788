#!/usr/bin/env python3
"""Replays what eg_record wrote, in PyTorch, and names the first op that differs.

  replay.py run.npz [--tolerance 2e-5] [--all]

Each op is computed again in float64 from the inputs that the library read, so an error shows where it is made and not where it
arrives; each gradient is PyTorch's own. What differs by more than tolerance * (the largest value that was expected) is told, with
the op, its place and the largest difference; --all goes on after the first. Ops that stand in no table below (a user's own) are
counted. Exit status: 0 all agree, 1 something differs.

The file is an .npz: tensors t<number>, and "ops", a JSON text, a list in the order of time:
  {"op": name, "in": [...], "out": [...], "attributes": {...}, "as": the composed op whose part it is, "in_gradient_of": ...}
  {"gradient": name, "of": the op's first output, "upstream": [...], "dx": [...]}
A value is the name of a tensor, {"number": x}, or null.
"""
import argparse
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F

DTYPES = [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool, torch.float16, torch.bfloat16]


def axes(mask, x):
    return [i for i in range(x.dim()) if mask >> i & 1]


def reduced(f):
    return lambda x, mask, keepdims: f(x, axes(mask, x), bool(keepdims)) if mask else f(x.unsqueeze(0), [0], False)


def prod(x, over, keep):
    for axis in sorted(over, reverse=True):
        x = x.prod(axis, keepdim=keep, dtype=x.dtype)
    return x


def norm(x, over, keep):
    return torch.linalg.vector_norm(x, dim=over, keepdim=keep)


def along(f):                                  # an op of PyTorch's that takes one axis
    def run(x, mask, keepdims):
        over = axes(mask, x)
        y = x.movedim(over, list(range(-len(over), 0))).flatten(-len(over)) if over else x.unsqueeze(-1)
        y = f(y)
        for i in sorted(over) if keepdims else []:
            y = y.unsqueeze(i)
        return y
    return run


def prod_of(x, over, keep):
    for i in sorted(over, reverse=True):
        x = x.prod(i, keepdim=keep)
    return x


def slice_(x, begin, size, step):
    for i in range(x.dim()):
        index = torch.tensor([begin[i] + k * step[i] for k in range(size[i])], dtype=torch.int64)
        x = x.index_select(i, index)
    return x


def pad(x, low, high, step, value):
    for i in range(x.dim()):
        n = x.shape[i]
        length = low[i] + high[i] + ((n - 1) * step[i] + 1 if n else 0)
        at = [low[i] + k * step[i] for k in range(n)]
        inside = [k for k in range(n) if 0 <= at[k] < length]
        shape = list(x.shape)
        shape[i] = length
        x = torch.full(shape, value, dtype=x.dtype).index_copy(i, torch.tensor([at[k] for k in inside], dtype=torch.int64),
                                                              x.index_select(i, torch.tensor(inside, dtype=torch.int64)))
    return x


def cumsum(x, axis, reverse, exclusive):
    y = x.flip(axis) if reverse else x
    z = y.cumsum(axis)
    if exclusive:
        z = z - y
    return (z.flip(axis) if reverse else z).to(x.dtype)


def argsort(x, axis, reverse):
    return torch.sort(x, dim=axis, descending=bool(reverse), stable=True)[1]


def matmul(a, b, transpose_a, transpose_b):
    return torch.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b)


def gather(x, index, axis, rows):
    y = x.index_select(axis, index.flatten().long())
    return y.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1:])


def scatter_add(x, index, axis, rows):
    behind = x.shape[axis + index.dim():]
    flat = x.reshape(x.shape[:axis] + (index.numel(),) + behind)
    return torch.zeros(x.shape[:axis] + (rows,) + behind, dtype=x.dtype).index_add(axis, index.flatten().long(), flat)


# Convolution and pooling. windows: n c oc groups, then of depth, height and width: in out taps stride dilation before.
# An op over fewer axes has axes of one element in front; everything here has all three.
def axes_of(windows):
    return [windows[i:i + 6] for i in range(4, 22, 6)]


def deep(x, lengths):                          # (N, D, H, W, C) as (N, C, D, H, W)
    return x.reshape([x.shape[0]] + lengths + [x.shape[-1]]).permute(0, 4, 1, 2, 3)


def padded(x, windows, fill):
    pads = []
    for n, out, taps, stride, dilation, before in axes_of(windows)[::-1]:
        pads += [before, (out - 1) * stride + (taps - 1) * dilation + 1 - n - before]
    return F.pad(deep(x, [a[0] for a in axes_of(windows)]), pads, value=fill)


def like(y, x):                                # (N, C, D, H, W) as (N, ..., C) with as many axes as x
    y = y.permute(0, 2, 3, 4, 1)
    return y.reshape(y.shape[:1] + y.shape[6 - x.dim():])


def conv2d(x, f, windows):
    axes = axes_of(windows)
    f5 = f.reshape([a[2] for a in axes] + list(f.shape[-2:])).permute(4, 3, 0, 1, 2)
    stride, dilation = [[a[i] for a in axes] for i in (3, 4)]
    return like(F.conv3d(padded(x, windows, 0.), f5, stride=stride, dilation=dilation, groups=windows[3]), x)


# The gradients of a convolution are linear in each operand: they are asked of autograd at zeros.
def conv2d_input(g, f, windows):
    shape = [windows[0]] + [a[0] for a in axes_of(windows)][5 - g.dim():] + [windows[1]]
    x = torch.zeros(shape, dtype=g.dtype, requires_grad=True)
    return torch.autograd.grad(conv2d(x, f, windows), x, g, create_graph=True)[0]


def conv2d_filter(x, g, windows):
    shape = [a[2] for a in axes_of(windows)][5 - g.dim():] + [windows[1] // windows[3], windows[2]]
    f = torch.zeros(shape, dtype=g.dtype, requires_grad=True)
    return torch.autograd.grad(conv2d(x, f, windows), f, g, create_graph=True)[0]


def unfolded(x, windows, fill):                # (N, OD, OH, OW, C, taps)
    x5 = padded(x, windows, fill)
    for i, a in enumerate(axes_of(windows)): x5 = x5.unfold(2 + i, a[2], a[3])
    return x5.flatten(-3).permute(0, 2, 3, 4, 1, 5)


def pooled(y, x):                              # (N, OD, OH, OW, C) with as many axes as x
    return y.reshape(y.shape[:1] + y.shape[6 - x.dim():])


def avg_pool2d(x, windows):
    return pooled(unfolded(x, windows, 0.).sum(-1) / unfolded(torch.ones_like(x), windows, 0.).sum(-1), x)


def avg_pool2d_grad(g, windows):
    shape = [windows[0]] + [a[0] for a in axes_of(windows)][5 - g.dim():] + [windows[1]]
    x = torch.zeros(shape, dtype=g.dtype, requires_grad=True)
    return torch.autograd.grad(avg_pool2d(x, windows), x, g, create_graph=True)[0]


def max_pool_index(x, windows):                # the element's place in the flat x
    places = torch.arange(x.numel(), dtype=torch.float64).reshape(x.shape)
    best = unfolded(x.double(), windows, -float("inf")).argmax(-1, keepdim=True)
    return pooled(unfolded(places, windows, -1.).gather(-1, best).squeeze(-1).long(), x)


def floordiv(a, b):
    return torch.div(a, b, rounding_mode="floor")


def divide_no_nan(a, b):
    return torch.where(b == 0, torch.zeros_like(a * b), a / torch.where(b == 0, torch.ones_like(b), b))


# TensorFlow's rule for ties, which is ours: all of the gradient goes to the first.
def maximum(a, b):
    return torch.where(a >= b, a, b)


def minimum(a, b):
    return torch.where(a <= b, a, b)


def leaky_relu(a, b):
    return torch.where(a > 0, a, a * b)


def elu(a, b):
    return torch.where(a > 0, a, b * torch.expm1(torch.where(a > 0, torch.zeros_like(a), a)))


def cross_entropy(labels, logits):
    return -torch.log_softmax(logits, -1).gather(-1, labels.long().unsqueeze(-1)).squeeze(-1)


def clip(x, low, high):
    return minimum(torch.where(x >= low, x, low), high)


OPS = {
    "negative": torch.neg, "abs": torch.abs, "sign": torch.sign, "square": torch.square, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal, "exp": torch.exp, "expm1": torch.expm1, "log": torch.log, "log1p": torch.log1p, "sin": torch.sin,
    "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh,
    "tanh": torch.tanh, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh, "erf": torch.erf, "erfc": torch.erfc, "floor": torch.floor,
    "ceil": torch.ceil, "round": torch.round, "is_nan": torch.isnan, "is_inf": torch.isinf, "is_finite": torch.isfinite,
    "logical_not": torch.logical_not, "sigmoid": torch.sigmoid, "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "softsign": F.softsign, "relu": torch.relu, "relu6": F.relu6, "selu": F.selu, "silu": F.silu, "mish": F.mish, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "hard_sigmoid": F.hardsigmoid,
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "divide_no_nan": divide_no_nan, "floordiv": floordiv,
    "mod": torch.remainder, "pow": torch.pow, "maximum": maximum, "minimum": minimum, "squared_difference": lambda a, b: (a - b) ** 2,
    "atan2": torch.atan2, "leaky_relu": leaky_relu, "elu": elu,
    "sigmoid_cross_entropy_with_logits": lambda z, x: F.binary_cross_entropy_with_logits(x, z, reduction="none"),
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt, "greater_equal": torch.ge,
    "logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
    "where": torch.where, "clip_by_value": clip, "huber_difference": lambda a, b, c: torch.min((a - b).abs(), c) * ((a - b).abs() - torch.min((a - b).abs(), c) / 2),
    "identity": lambda x: x, "stop_gradient": lambda x: x.detach(), "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, perm: x.permute(perm), "broadcast_to": lambda x, shape: x.broadcast_to(shape), "slice": slice_, "pad": pad,
    "reverse": lambda x, mask: x.flip(axes(mask, x)), "concat": lambda *x, axis: torch.cat(x, axis),
    "reduce_sum": reduced(lambda x, a, k: x.sum(a, k, dtype=x.dtype)), "reduce_mean": reduced(lambda x, a, k: x.mean(a, k)),
    "reduce_prod": reduced(prod),
    "reduce_max": reduced(lambda x, a, k: x.amax(a, k)), "reduce_min": reduced(lambda x, a, k: x.amin(a, k)), "norm": reduced(norm),
    "reduce_all": along(lambda x: x.all(-1)), "reduce_any": along(lambda x: x.any(-1)), "argmax": along(lambda x: x.argmax(-1)),
    "argmin": along(lambda x: x.argmin(-1)), "cumsum": cumsum, "argsort": argsort,
    "softmax": lambda x, axis: torch.softmax(x, axis), "log_softmax": lambda x, axis: torch.log_softmax(x, axis),
    "sparse_softmax_cross_entropy_with_logits": cross_entropy, "matmul": matmul, "gather": gather, "scatter_add": scatter_add,
    "conv2d": conv2d, "conv2d_input": conv2d_input, "conv2d_filter": conv2d_filter, "avg_pool2d": avg_pool2d,
    "avg_pool2d_grad": avg_pool2d_grad, "max_pool_index": max_pool_index, "to": lambda x: x,
}


class Replay:
    def __init__(self, path, tolerance):
        self.values = np.load(path)
        self.ops = json.loads(bytes(self.values["ops"]))
        self.tolerance = tolerance
        self.made = {}                         # the op that made a tensor
        self.counts = {"op": 0, "gradient": 0}
        self.unknown = {}
        self.differences = 0

    def tensor(self, name):
        return torch.from_numpy(np.array(self.values[name]))

    def inputs(self, op):
        """Floating inputs in float64, plain numbers in the dtype that they met."""
        tensors = [None if isinstance(i, dict) else self.tensor(i) for i in op["in"]]
        tensors = [t.double() if t is not None and t.is_floating_point() else t for t in tensors]
        met = next((t.dtype for t in tensors[op["op"] == "where":] if t is not None), torch.float64)
        return [torch.tensor(i["number"], dtype=met) if t is None else t for i, t in zip(op["in"], tensors)]

    def run(self, op, x):
        if op["op"] == "cast":
            to = DTYPES[op["attributes"]["dtype"]]
            return x[0].to(torch.float64 if to.is_floating_point and x[0].is_floating_point() else to)
        return OPS[op["op"]](*x, **op["attributes"])

    def compare(self, number, what, name, got, want):
        """got is the library's, want PyTorch's; True if they agree."""
        got, want = np.asarray(got), np.asarray(want.detach())
        if got.shape == want.shape:
            a, b = got.astype(np.float64), want.astype(np.float64)
            with np.errstate(invalid="ignore"):
                off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
            off = np.where(np.isnan(off), np.inf, off)
            finite = np.abs(b[np.isfinite(b)])
            half = 2e-3 if got.dtype == np.float16 else self.tolerance
            if off.size == 0 or off.max() <= half * max(finite.max() if finite.size else 0, 1e-6):
                return True
            at = np.unravel_index(off.argmax(), off.shape)
            detail = "largest difference %.3g at %s: %.9g here, %.9g in PyTorch" % (off.max(), list(map(int, at)), a[at], b[at])
        else:
            detail = "its shape is %s, in PyTorch %s" % (got.shape, want.shape)
        op = self.ops[number]
        print("line %d: eg_%s%s%s: %s %s %s %s: %s" % (
            number, op.get("op") or op["gradient"], ", part of eg_" + op["as"] if "as" in op else "",
            ", in the gradient of eg_" + op["in_gradient_of"] if "in_gradient_of" in op else "", what, name, got.dtype, got.shape, detail))
        reads = op if "op" in op else self.made[op["of"]]
        print("    read: " + ", ".join(str(i) if isinstance(i, dict) else "%s %s %s" % (i, self.values[i].dtype, self.values[i].shape) for i in reads["in"]))
        print("    attributes: %s" % reads.get("attributes"))
        self.differences += 1
        return False

    def forward(self, number, op):
        self.made[op["out"][0]] = op
        if op["op"] not in OPS and op["op"] != "cast":
            self.unknown[op["op"]] = self.unknown.get(op["op"], 0) + 1
            return True
        self.counts["op"] += 1
        y = self.run(op, self.inputs(op))
        return self.compare(number, "output", op["out"][0], self.values[op["out"][0]], y)

    def backward(self, number, record):
        op = self.made.get(record["of"])
        if op is None or (op["op"] not in OPS and op["op"] != "cast"):
            self.unknown[record["gradient"]] = self.unknown.get(record["gradient"], 0) + 1
            return True
        self.counts["gradient"] += 1
        asked = [i for i, name in enumerate(record["dx"]) if name is not None]
        x = self.inputs(op)
        for i in asked:
            x[i] = x[i].requires_grad_()
        upstream = record["upstream"][0]
        g = torch.tensor(upstream["number"]).double() if isinstance(upstream, dict) else self.tensor(upstream).double()
        y = self.run(op, x)
        dx = torch.autograd.grad(y, [x[i] for i in asked], g.expand(y.shape), allow_unused=True) if asked and y.requires_grad else [None] * len(asked)
        good = True
        for i, want in zip(asked, dx):
            want = torch.zeros_like(x[i]) if want is None else want
            good = self.compare(number, "gradient of input %d" % i, record["dx"][i], self.values[record["dx"][i]], want) and good
        return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("--tolerance", type=float, default=2e-5)
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(1)
    r = Replay(a.file, a.tolerance)
    for number, op in enumerate(r.ops):
        good = r.forward(number, op) if "op" in op else r.backward(number, op)
        if not good and not a.all:
            break
    print("replayed %d ops and %d gradients in PyTorch %s%s: %s" % (
        r.counts["op"], r.counts["gradient"], torch.__version__,
        "; not known: " + ", ".join("%s (%d)" % u for u in sorted(r.unknown.items())) if r.unknown else "",
        "%d differ" % r.differences if r.differences else "all agree within %g" % a.tolerance))
    sys.exit(r.differences > 0)


main()
