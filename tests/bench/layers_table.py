"""Holds eager.h beside PyTorch, layer by layer, on one core or on --threads N: ./build.sh bench layers [NAME...] [--slow].

A row is a function of layers_table.c and a method of Rows here, both forward and backward with all gradients. Our values are held against
those of PyTorch in float64: they may be off by 1e-4, or by as much as PyTorch's own in float32, whose sums of many terms lose more. Then
both sides are measured in turns, and the best of each counts. A method returns a list of variants (memory layouts; optimizers for
each tensor, foreach and fused): the fastest one counts. A row slower than PyTorch is marked with <--."""

import argparse
import os
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("program", help="layers_table.c, compiled")
parser.add_argument("names", nargs="*", help="parts of rows' names; =NAME is the whole name")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--before", help="a second program, of another version of eager.h, which takes turns, too")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=0.05, help="of one measurement")
parser.add_argument("--cpu", action="store_true", help="time of the processor, which other programs do not lengthen (one thread)")
parser.add_argument("--slow", action="store_true", help="print only rows that are slower, or that differ")
options = parser.parse_intermixed_args()

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[library + "_NUM_THREADS"] = str(options.threads)
os.environ["EAGER_NUM_THREADS"] = str(options.threads)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.threads:])

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(options.threads)
random = np.random.default_rng(1)


def normal(*shape, scale=1):
    return (random.standard_normal(shape) * scale).astype(np.float32)


INPUTS = {
    "x": normal(1024, 1024), "gx": normal(1024, 1024), "gamma_x": normal(1024), "beta_x": normal(1024),
    "picture": normal(32, 32, 32, 64), "gpicture": normal(32, 32, 32, 64), "gamma_p": normal(64), "beta_p": normal(64),
    "logits": normal(1024, 1000, scale=2), "targets": random.random((1024, 1000)).astype(np.float32),
    "labels": random.integers(0, 1000, 1024), "glogits": normal(1024, 1000), "table": normal(10000, 256),
    "ids": random.integers(0, 10000, 4096), "gids": normal(4096, 256), "photo": normal(1, 28, 28, 1)}
for name, sharpness in ("shares", 1), ("predicted", 1):
    e = np.exp(normal(1024, 1000, scale=sharpness))
    INPUTS[name] = (e / e.sum(1, keepdims=True)).astype(np.float32)
INPUTS["targets_from_1"], INPUTS["sides"] = INPUTS["targets"] + 1, np.sign(INPUTS["targets"] - 0.5)
SHAPES = [(784, 512), (512,), (512, 512), (512,), (512, 256), (256,), (3, 3, 64, 64), (64,), (256, 256), (256,), (256, 10), (10,)]
for i, shape in enumerate(SHAPES):
    INPUTS[f"v{i}"], INPUTS[f"s{i}"] = normal(*shape, scale=0.1), normal(*shape, scale=0.1)
for i, shape in enumerate([(3, 3, 1, 16), (16,), (3, 3, 16, 16), (16,), (16, 10), (10,)]):
    INPUTS[f"w{i}"] = normal(*shape, scale=0.2)
INPUTS.update({
    "maps": normal(8, 56, 56, 64), "gmaps": normal(8, 56, 56, 64), "image": normal(8, 117, 117, 3), "field": normal(32, 28, 28, 32),
    "gfield": normal(32, 14, 14, 32), "small": normal(8, 28, 28, 64), "gsmall": normal(8, 28, 28, 64), "signal": normal(32, 256, 64), "gsignal": normal(32, 256, 64),
    "filter_3x3": normal(3, 3, 64, 64, scale=0.1), "filter_1x1": normal(1, 1, 64, 64), "filter_7x7": normal(7, 7, 3, 64),
    "filter_depthwise": normal(3, 3, 64, 1), "filter_turned": normal(4, 4, 64, 64, scale=0.1), "filter_1d": normal(5, 64, 64, scale=0.1),
    "steps": normal(32, 50, 128), "gsteps": normal(32, 50, 128), "tokens": normal(8, 256, 256), "gtokens": normal(8, 256, 256),
    "long_row": random.random((1, 1000000)).astype(np.float32), "long_column": random.random((1000000, 1)).astype(np.float32),
    "square_a": random.random((1000, 1000)).astype(np.float32), "square_b": random.random((1000, 1000)).astype(np.float32),
    "column": random.random((1000, 1)).astype(np.float32), "eights_a": normal(1000, 8, 8), "eights_b": normal(1000, 8, 8),
    "threes_a": normal(10000, 3, 3), "threes_b": normal(10000, 3, 3)})
for i, shape in enumerate([(128, 512), (128, 512), (512,)]):
    INPUTS[f"lstm{i}"] = normal(*shape, scale=0.08)
for i, shape in enumerate([(128, 384), (128, 384), (2, 384)]):
    INPUTS[f"gru{i}"] = normal(*shape, scale=0.08)
for i, shape in enumerate([(256, 256), (256,)] * 4):
    INPUTS[f"attention{i}"] = normal(*shape, scale=0.06)
for i, shape in enumerate([(3, 3, 64, 64), (64,), (64,)] * 2):
    INPUTS[f"resnet{i}"] = normal(*shape, scale=0.1)
for i, shape in enumerate([(256,), (256,)] + [(256, 256), (256,)] * 4 + [(256,), (256,), (256, 1024), (1024,), (1024, 256), (256,)]):
    INPUTS[f"transformer{i}"] = normal(*shape, scale=0.06)
T = {name: torch.from_numpy(a) for name, a in INPUTS.items()}


def of(f, sources, g=None):
    """A variant: f(*sources) and the gradients of the sources."""
    leaves = [s.detach().requires_grad_() for s in sources]

    def run():
        y = f(*leaves)
        return [y, *torch.autograd.grad(y, leaves, g)]
    return run


def of_pictures(f, sources, g):
    """Variants for pictures in both memory layouts; results have the channels last."""
    def arrange(variant):
        run = of(f, [variant(T["picture"].permute(0, 3, 1, 2)), *sources], variant(g.permute(0, 3, 1, 2)))
        return lambda: [t.permute(0, 2, 3, 1) if t.dim() == 4 else t for t in run()]
    return [arrange(lambda t: t.contiguous()), arrange(lambda t: t.contiguous(memory_format=torch.channels_last))]


def of_maps(f, x, w, g, axes):
    """Variants of a convolution of x and w, whose axes are turned to PyTorch's order, in both memory layouts."""
    to, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if T[x].dim() == 4 else ((0, 2, 1), (0, 2, 1))
    undo = [axes.index(i) for i in range(len(axes))]

    def arrange(variant):
        run = of(f, [variant(T[x].permute(to)), variant(T[w].permute(axes))], variant(T[g].permute(to)))

        def results():
            y, dx, dw = run()
            return [y.permute(back), dx.permute(back), dw.permute(undo)]
        return results
    kept = [arrange(lambda t: t.contiguous())]
    return kept if T[x].dim() == 3 else kept + [arrange(lambda t: t.contiguous(memory_format=torch.channels_last))]


class Rows:
    def conv_3x3(): return of_maps(lambda x, w: F.conv2d(x, w, padding=1), "maps", "filter_3x3", "gmaps", (3, 2, 0, 1))
    def conv_1x1(): return of_maps(F.conv2d, "maps", "filter_1x1", "gmaps", (3, 2, 0, 1))
    def conv_7x7_of_3(): return of_maps(lambda x, w: F.conv2d(x, w, stride=2), "image", "filter_7x7", "gmaps", (3, 2, 0, 1))
    def depthwise_3x3(): return of_maps(lambda x, w: F.conv2d(x, w, padding=1, groups=64), "maps", "filter_depthwise", "gmaps", (2, 3, 0, 1))
    def conv_transpose(): return of_maps(
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), "small", "filter_turned", "gmaps", (3, 2, 0, 1))
    def conv_1d(): return of_maps(lambda x, w: F.conv1d(x, w, padding=2), "signal", "filter_1d", "gsignal", (2, 1, 0))

    def pool(f):
        def arrange(variant):
            run = of(f, [variant(T["field"].permute(0, 3, 1, 2))], variant(T["gfield"].permute(0, 3, 1, 2)))
            return lambda: [t.permute(0, 2, 3, 1) for t in run()]
        return [arrange(lambda t: t.contiguous()), arrange(lambda t: t.contiguous(memory_format=torch.channels_last))]
    def max_pool(): return Rows.pool(lambda x: F.max_pool2d(x, 2))
    def avg_pool(): return Rows.pool(lambda x: F.avg_pool2d(x, 2))
    def dot_1m(): return [lambda: [T["long_row"] @ T["long_column"]], lambda: [torch.dot(T["long_row"][0], T["long_column"][:, 0])]]
    def dots_of_rows(): return [lambda: [torch.einsum("ij,ij->i", T["square_a"], T["square_b"])],
                                lambda: [(T["square_a"] * T["square_b"]).sum(1)]]
    def matvec_1000(): return [lambda: [T["square_a"] @ T["column"]]]
    def vecmat_1000(): return [lambda: [T["column"].t() @ T["square_a"]]]
    def batch_8x8(): return [lambda: [T["eights_a"] @ T["eights_b"]]]
    def batch_3x3(): return [lambda: [T["threes_a"] @ T["threes_b"]]]

    def recurrent(kind, name, gates, order):
        """torch.nn.LSTM or GRU with the weights of our layer; order: our gates in PyTorch's order."""
        layer = kind(128, 128, batch_first=True)
        ours = [T[f"{name}{i}"] for i in range(3)]
        def turned(w): return torch.cat([w.reshape(-1, gates, 128)[:, i] for i in order], 1).t().contiguous().clone()
        biases = ours[2].reshape(-1, gates * 128)
        with torch.no_grad():
            layer.weight_ih_l0.copy_(turned(ours[0]))
            layer.weight_hh_l0.copy_(turned(ours[1]))
            layer.bias_ih_l0.copy_(turned(biases[:1])[:, 0])
            layer.bias_hh_l0.copy_(turned(biases[1:])[:, 0] if len(biases) > 1 else torch.zeros(gates * 128))
        x = T["steps"].clone().requires_grad_()
        def back(w): return torch.cat([w.reshape(gates, 128, -1)[order.index(i)] for i in range(gates)], 0).t()

        def run():
            y = layer(x)[0]
            d = torch.autograd.grad(y, [x, *layer.parameters()], T["gsteps"])
            b = [back(d[3])[0]] if len(biases) == 1 else [torch.stack([back(d[3])[0], back(d[4])[0]])]
            return [y, d[0], back(d[1]), back(d[2]), *b]
        return [run]
    def lstm(): return Rows.recurrent(torch.nn.LSTM, "lstm", 4, [0, 1, 2, 3])
    def gru(): return Rows.recurrent(torch.nn.GRU, "gru", 3, [1, 0, 2])
    def attended(x, wq, bq, wk, bk, wv, bv, wo, bo):
        def heads(w, b): return F.linear(x, w.reshape(256, 256).t(), b.reshape(256)).reshape(8, 256, 8, 32).transpose(1, 2)
        y = F.scaled_dot_product_attention(heads(wq, bq), heads(wk, bk), heads(wv, bv)).transpose(1, 2).reshape(8, 256, 256)
        return F.linear(y, wo.reshape(256, 256).t(), bo)
    def attention(): return [of(Rows.attended, [T["tokens"], *(T[f"attention{i}"] for i in range(8))], T["gtokens"])]
    def resnet_block():
        mean, variance = torch.zeros(64), torch.ones(64)
        def normalized(x, w, b): return F.batch_norm(x, mean, variance, w, b, True, 0.01, 1e-5)
        def f(x, k0, w0, b0, k1, w1, b1):
            h = F.relu(normalized(F.conv2d(x, k0, padding=1), w0, b0))
            return F.relu(x + normalized(F.conv2d(h, k1, padding=1), w1, b1))

        def arrange(variant):
            weights = [T[f"resnet{i}"] if i % 3 else variant(T[f"resnet{i}"].permute(3, 2, 0, 1)) for i in range(6)]
            run = of(f, [variant(T["small"].permute(0, 3, 1, 2)), *weights], variant(T["gsmall"].permute(0, 3, 1, 2)))

            def results():
                y, dx, *d = run()
                return [y.permute(0, 2, 3, 1), dx.permute(0, 2, 3, 1), *(t if i % 3 else t.permute(2, 3, 1, 0) for i, t in enumerate(d))]
            return results
        return [arrange(lambda t: t.contiguous()), arrange(lambda t: t.contiguous(memory_format=torch.channels_last))]
    def transformer_block():
        def f(x, w0, b0, *rest):
            h = x + Rows.attended(F.layer_norm(x, (256,), w0, b0), *rest[:8])
            w1, b1, wa, ba, wb, bb = rest[8:]
            return h + F.linear(F.gelu(F.linear(F.layer_norm(h, (256,), w1, b1), wa.t(), ba)), wb.t(), bb)
        return [of(f, [T["tokens"], *(T[f"transformer{i}"] for i in range(16))], T["gtokens"])]
    def layer_norm(): return [of(lambda x, w, b: F.layer_norm(x, (1024,), w, b), [T["x"], T["gamma_x"], T["beta_x"]], T["gx"])]
    def rms_norm(): return [of(lambda x, w: F.rms_norm(x, (1024,), w, 1e-5), [T["x"], T["gamma_x"]], T["gx"])]
    def batch_norm():
        mean, variance = torch.zeros(64), torch.ones(64)
        return of_pictures(lambda x, w, b: F.batch_norm(x, mean, variance, w, b, True, 0.01, 1e-5), [T["gamma_p"], T["beta_p"]], T["gpicture"])
    def group_norm(): return of_pictures(lambda x, w, b: F.group_norm(x, 32, w, b), [T["gamma_p"], T["beta_p"]], T["gpicture"])
    def instance_norm(): return of_pictures(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [T["gamma_p"], T["beta_p"]], T["gpicture"])
    def dropout(): return [of(lambda x: F.dropout(x, 0.5), [T["x"]], T["gx"])]
    def embedding(): return [of(lambda t: F.embedding(T["ids"], t), [T["table"]], T["gids"])]
    def global_pooling(): return [
        of(lambda p: p.mean((1, 2)).square().sum(), [T["picture"]]),
        of(lambda p: F.adaptive_avg_pool2d(p.permute(0, 3, 1, 2), 1).square().sum(), [T["picture"]])]
    def relu(): return [of(F.relu, [T["x"]], T["gx"])]
    def gelu(): return [of(F.gelu, [T["x"]], T["gx"])]
    def gelu_tanh(): return [of(lambda x: F.gelu(x, approximate="tanh"), [T["x"]], T["gx"])]
    def silu(): return [of(F.silu, [T["x"]], T["gx"])]
    def softplus(): return [of(F.softplus, [T["x"]], T["gx"])]
    def sigmoid(): return [of(torch.sigmoid, [T["x"]], T["gx"])]
    def tanh_(): return [of(torch.tanh, [T["x"]], T["gx"])]
    def mish(): return [of(F.mish, [T["x"]], T["gx"])]
    def elu(): return [of(F.elu, [T["x"]], T["gx"])]
    def selu(): return [of(F.selu, [T["x"]], T["gx"])]
    def leaky_relu(): return [of(F.leaky_relu, [T["x"]], T["gx"])]
    def relu6(): return [of(F.relu6, [T["x"]], T["gx"])]
    def hard_sigmoid(): return [of(F.hardsigmoid, [T["x"]], T["gx"])]
    def softsign(): return [of(F.softsign, [T["x"]], T["gx"])]
    def softmax(): return [of(lambda x: F.softmax(x, 1), [T["logits"]], T["glogits"])]
    def log_softmax(): return [of(lambda x: F.log_softmax(x, 1), [T["logits"]], T["glogits"])]
    def cross_entropy(): return [of(lambda x: F.cross_entropy(x, T["labels"]), [T["logits"]])]
    def binary_cross_entropy(): return [of(lambda x: F.binary_cross_entropy_with_logits(x, T["targets"]), [T["logits"]])]
    def mse(): return [of(lambda x: F.mse_loss(x, T["targets"]), [T["logits"]])]
    def mae(): return [of(lambda x: F.l1_loss(x, T["targets"]), [T["logits"]])]
    def huber(): return [of(lambda x: F.huber_loss(x, T["targets"]), [T["logits"]])]
    def dense_cross_entropy(): return [of(lambda x: F.cross_entropy(x, T["shares"]), [T["logits"]])]
    # Losses of probabilities, and those that PyTorch composes.
    def binary_cross_entropy_of_shares(): return [of(lambda p: F.binary_cross_entropy(p, T["targets"]), [T["predicted"]])]
    def cross_entropy_of_shares(): return [
        of(lambda p: -(T["shares"] * (p / p.sum(1, keepdim=True)).log()).sum(1).mean(), [T["predicted"]])]
    def sparse_cross_entropy_of_shares(): return [of(lambda p: F.nll_loss((p / p.sum(1, keepdim=True)).log(), T["labels"]), [T["predicted"]])]
    def binary_focal():
        def loss(p):
            y = T["targets"]
            right = y * p + (1 - y) * (1 - p)
            return ((1 - right).square() * F.binary_cross_entropy(p, y, reduction="none")).mean()
        return [of(loss, [T["predicted"]])]
    def kl_divergence(): return [of(lambda p: F.kl_div(p.log(), T["shares"], reduction="batchmean"), [T["predicted"]])]
    def poisson(): return [of(lambda p: F.poisson_nll_loss(p, T["targets"], log_input=False, eps=1e-7), [T["predicted"]])]
    def log_cosh():
        def loss(x):
            e = x - T["targets"]
            return (e + F.softplus(-2 * e) - 0.6931472).mean()
        return [of(loss, [T["logits"]])]
    def squared_logarithmic(): return [of(lambda p: F.mse_loss(p.log1p(), T["targets"].log1p()), [T["predicted"]])]
    def percentage(): return [of(lambda x: 100 * ((T["targets_from_1"] - x) / T["targets_from_1"]).abs().mean(), [T["logits"]])]
    def hinge(): return [of(lambda x: F.relu(1 - T["sides"] * x).mean(), [T["logits"]])]
    def cosine_similarity(): return [of(lambda x: -F.cosine_similarity(T["targets"], x, 1).mean(), [T["logits"]])]

    def optimizer(make, *ways):
        def variant(way):
            variables = [T[f"v{i}"].clone().requires_grad_() for i in range(len(SHAPES))]
            for i, v in enumerate(variables):
                v.grad = T[f"s{i}"].clone()
            optimizer = make(variables, way)

            def run():
                optimizer.step()
                return variables
            return run
        return [variant(way) for way in ways]
    def sgd_momentum(): return Rows.optimizer(lambda v, w: torch.optim.SGD(v, 1e-2, 0.9, **w), {"foreach": True}, {"fused": True}, {"foreach": False})
    def adam(): return Rows.optimizer(lambda v, w: torch.optim.Adam(v, 1e-3, **w), {"foreach": True}, {"fused": True}, {"foreach": False})
    def adamw(): return Rows.optimizer(lambda v, w: torch.optim.AdamW(v, 1e-3, weight_decay=0.01, **w), {"foreach": True}, {"fused": True}, {"foreach": False})
    def adagrad(): return Rows.optimizer(lambda v, w: torch.optim.Adagrad(v, 1e-2, initial_accumulator_value=0.1, eps=1e-20, **w), {"foreach": True}, {"fused": True}, {"foreach": False})
    def adadelta(): return Rows.optimizer(lambda v, w: torch.optim.Adadelta(v, 1, 0.9, 1e-6, **w), {"foreach": True}, {"foreach": False})
    def adamax(): return Rows.optimizer(lambda v, w: torch.optim.Adamax(v, 2e-3, **w), {"foreach": True}, {"foreach": False})
    def rmsprop(): return Rows.optimizer(lambda v, w: torch.optim.RMSprop(v, 1e-3, 0.99, 1e-12, **w), {"foreach": True}, {"foreach": False})
    def clip_by_global_norm():
        def variant(foreach):
            def run():
                slopes = [T[f"s{i}"] for i in range(len(SHAPES))]
                norm = torch.nn.utils.get_total_norm(slopes, foreach=foreach)
                scale = torch.clamp(1 / norm, max=1.0)
                return torch._foreach_mul(slopes, scale) if foreach else [s * scale for s in slopes]
            return run
        return [variant(True), variant(False)]
    def inference():
        w = [T[f"w{i}"] for i in range(6)]
        k0, k1, k2 = w[0].permute(3, 2, 0, 1).contiguous(), w[2].permute(3, 2, 0, 1).contiguous(), w[4].t().contiguous()

        def variant(layout):
            photo, f0, f1 = (t.contiguous(memory_format=layout) for t in (T["photo"].permute(0, 3, 1, 2), k0, k1))

            @torch.inference_mode()
            def run():
                h = F.relu(F.conv2d(F.relu(F.conv2d(photo, f0, w[1], padding=1)), f1, w[3], padding=1))
                return [F.linear(h.mean((2, 3)), k2, w[5])]
            return run
        return [variant(torch.contiguous_format), variant(torch.channels_last)]


def in_float64(name):
    """The results of a row's first variant, computed in float64."""
    kept = dict(T)
    T.update({n: t.double() for n, t in T.items() if t.is_floating_point()})
    torch.set_default_dtype(torch.float64)
    results = [t.detach().numpy().copy() for t in getattr(Rows, name)()[0]()]
    torch.set_default_dtype(torch.float32)
    T.update(kept)
    return results


def error(values, true):
    """The greatest error by the value, or by 1% of the greatest value."""
    return np.max(np.abs(values - true) / (np.abs(true) + 1e-2 * np.max(np.abs(true)) + 1e-30))


def difference(ours, theirs, true):
    """What is wrong with our values, or None."""
    if ours.shape != true.shape:
        return f"shapes {ours.shape} and {true.shape}"
    off, off_theirs = error(ours, true), error(theirs, true)
    return None if off <= max(1e-4, off_theirs) else f"by {off:.2g}, PyTorch's by {off_theirs:.2g}"


def measure(function, seconds):
    clock = time.process_time if options.cpu else time.perf_counter
    runs, start = 0, clock()
    end = start
    while runs < 2 or end < start + seconds:
        function()
        end, runs = clock(), runs + 1
    return (end - start) / runs


with tempfile.TemporaryDirectory() as folder:
    for name, a in INPUTS.items():
        np.save(f"{folder}/{name}.npy", a)
    def start(program): return subprocess.Popen([program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = start(options.program)
    before = start(options.before) if options.before else None

    def ask(*words, child=child):
        child.stdin.write(" ".join(map(str, words)) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        if not answer:
            sys.exit("layers_table: the program ended early")
        return answer.strip()

    rows = []
    while (line := child.stdout.readline().rstrip("\n")):
        rows.append(line)
    while before and before.stdout.readline().rstrip("\n"):
        pass
    print(f"PyTorch {torch.__version__}, {options.threads} core(s), microseconds; ratio: eager.h's time by PyTorch's")
    print(f"{'':<22}{'before' if before else '':>12}{'eager.h':>12}{'PyTorch':>12}{'ratio':>8}")
    slower = different = shown = 0
    for number, name in enumerate(rows):
        if options.names and not any(n[1:] == name if n[0] == "=" else n in name for n in options.names):
            continue
        variants = getattr(Rows, name)()
        answer = ask("value", number)
        wrong = None if answer.isdigit() else answer
        # The second variant of a layout holds the first one's values; of optimizers the first one is compared.
        expected = [t.detach().numpy().copy() for t in variants[0]()]
        if not wrong and int(answer) != len(expected):
            wrong = f"{answer} results, not {len(expected)}"
        true = in_float64(name)
        for i, e in enumerate(expected):
            # Left out: of a bias that adds 0 to all scores.
            if not wrong and name != "dropout" and (name, i) not in {("attention", 5), ("transformer_block", 7)}:
                bad = difference(np.load(f"{folder}/value{i}.npy"), e, true[i])
                wrong = f"result {i}: {bad}" if bad else None
        ours = former = float("inf")
        if before:
            ask("value", number, child=before)
        theirs = [float("inf")] * len(variants)
        for i in range(options.rounds):
            for side in (0, 1) if i % 2 else (1, 0):
                if side:
                    ours = min(ours, float(ask("cpu" if options.cpu else "time", number, options.seconds)))
                    former = min(former, float(ask("cpu" if options.cpu else "time", number, options.seconds, child=before))) if before else former
                else:
                    theirs = [min(t, measure(v, options.seconds)) for t, v in zip(theirs, variants)]
        ratio = ours / min(theirs)
        slower += ratio > 1
        different += wrong is not None
        shown += 1
        if not options.slow or ratio > 1 or wrong:
            print(f"{name:<22}{f'{former * 1e6:.1f}' if before else '':>12}{ours * 1e6:12.1f}{min(theirs) * 1e6:12.1f}{ratio:8.2f}"
                  f"{' <--' if ratio > 1 else ''}{'  values differ: ' + wrong if wrong else ''}", flush=True)
    print(f"{shown} rows, {slower} of them slower than PyTorch, {different} with other values")
    child.stdin.close()
    if before:
        before.stdin.close()
