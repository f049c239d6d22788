#!/usr/bin/env python3
"""Times the same small workloads in several tensor frameworks, for side-by-side comparison.

  peers.py [--peers eager,torch,...] [--work NAME,...] [--threads 1|2] [--gpu] [--min-time 1.0] [--rounds 1] [--seconds N] [--json | --markdown] [--best]

Every (workload, peer) pair runs in a process of its own, pinned to exactly --threads cores. One row a pair:
  workload <TAB> peer <TAB> threads <TAB> unit <TAB> median <TAB> min <TAB> runs <TAB> check
With --rounds the peers of a workload take turns, and the median is that of the rounds' medians. --markdown makes one
table, a row a workload, in which a peer's time stands with its ratio to eager's (2.0x: eager takes half as long);
with --best it shows the best runs, which say more than medians on a machine that others use too.
`check` shows that the work was done and was the same work: the sum of |result| (for a training step: the loss)
of the last of the warm-up calls, whose number is fixed in WORK. A peer that cannot do a workload has '-' in the
numbers and a reason as check. Compiling peers have one more row, <workload>.compile: their first call.

All arrays are float32 from one stream (class Rng), so a C program can make the same inputs: element i is
splitmix64(i); a normal takes two elements. Arrays are drawn in the order of the data_* functions.
"""
import argparse, atexit, json, math, os, shutil, subprocess, sys, tempfile, time
from statistics import median
import numpy as np

PEERS = "eager,eager-openblas,eager.function,tf,tf.function,tf.xla,torch,torch.compile,jax.jit,jax,tinygrad".split(",")   # and numpy, libtorch
COMPILED = {"eager", "eager-openblas", "eager.function", "libtorch"}
GPU = "--gpu" in sys.argv or "PEERS_GPU" in os.environ         # eager, torch and jax on the first GPU; cuda.sh says how eager is linked
JIT = {"tf.function", "tf.xla", "torch.compile", "jax.jit", "tinygrad"}

# workload: unit, units in a second of one call, warm-up calls
WORK = {
    "op_add_4": ("ns", 1e9 / 1000, 5),          # c = c + a, 1000 times, shape [4], not recorded: per op
    "tape_chain_4": ("ns", 1e9 / 100, 5),       # y = w; 50 times { y = y*w; y = tanh(y) }; d sum(y)/dw: per op of the 100
    "linreg_2000": ("us", 1e6, 10),             # mean((W*x+B-y)^2), W=5 B=10 at first, SGD 0.01: per step
    "ew_add_10m": ("ms", 1e3, 3),               # a + b (a second row: GB/s at 12 bytes an element)
    "ew_exp_1m": ("us", 1e6, 5),
    "ew_tanh_1m": ("us", 1e6, 5),
    "ew_gelu_1m": ("us", 1e6, 5),               # 0.5*x*(1+tanh(0.79788456*(x+0.044715*x^3)))
    "ew_chain20_1m": ("ms", 1e3, 5),            # 5 times { x = x*1.0001; x = x+0.5; t = tanh(x); x = t*x }: 20 ops
    "ew_cheap20_1m": ("ms", 1e3, 5),            # 10 times x = x*y + 0.5, no functions: 20 ops
    "sum_10m": ("ms", 1e3, 3),
    "softmax_1024x1000": ("ms", 1e3, 5),        # over rows of 1000
    "matmul_64": ("us", 1e6, 5),
    "matmul_256": ("us", 1e6, 5),
    "matmul_1000": ("ms", 1e3, 3),
    "matmul_1000_x200": ("s", 1.0, 1),          # the same product 200 times
    "mlp_32": ("us", 1e6, 10),                  # 784-128-10, relu, sparse softmax cross entropy, SGD 0.01: per step
    "mlp_256": ("us", 1e6, 10),
    "cnn_32": ("us", 1e6, 10),                  # conv16 3x3 relu, conv16 3x3 relu, mean over pixels, dense 10, Adam 1e-3
    "conv_64": ("ms", 1e3, 3),                  # y = conv(x, w), 64->64 3x3 same, 16 pictures of 32x32; y, and dx and dw for a given dy
    "conv_56": ("ms", 1e3, 3),                  # 32 pictures of 56x56, as in the first stage of a ResNet
    "conv_56_tf32": ("ms", 1e3, 3),             # the same, its factors rounded to TF32 (on a GPU; elsewhere float32)
    "conv_1x1": ("ms", 1e3, 3),                 # 256->64 1x1
    "conv_mnist": ("ms", 1e3, 3),               # 1->32 3x3, 128 pictures of 28x28
    "lstm_128": ("ms", 1e3, 3),                 # embedding 65->128, LSTM 128, dense 65, 64 steps of 32, SGD 0.1
    "gpt_small": ("ms", 1e3, 3),                # 4 layers, d=128, 4 heads, T=64, batch 8, AdamW 1e-3
    "hvp_mlp": ("us", 1e6, 3),                  # gradient of (gradient of the mlp_32 loss . v)
    "third_derivative": ("us", 1e6, 3),         # f''' of f(x) = sum(tanh(x)*sin(x)) at 1000 points, gradient nested 3 times
    "startup": ("ms", 1e3, 1),                  # fresh process: import, gradient of x*x at 3, print
}


# ---------------------------------------------------------------- inputs, the same for all peers
class Rng:
    def __init__(self):
        self.k = 0

    def bits(self, n):
        z = np.arange(self.k + 1, self.k + n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self.k += n
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def normal(self, *shape, scale=1.0):
        u = (self.bits(2 * math.prod(shape)) >> np.uint64(11)) * 2.0 ** -53
        z = np.sqrt(-2 * np.log1p(-u[0::2])) * np.cos(2 * np.pi * u[1::2])
        return (z * scale).astype(np.float32).reshape(shape)

    def ints(self, hi, *shape):
        return ((self.bits(math.prod(shape)) >> np.uint64(33)) % np.uint64(hi)).astype(np.int32).reshape(shape)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def ones(*shape):
    return np.ones(shape, np.float32)


def data(work):
    """The inputs of a workload: for models (params, x, y), else a list of arrays."""
    r, n = Rng(), Rng.normal
    if work == "op_add_4": return [n(r, 4)]
    if work == "tape_chain_4": return [1.5 + n(r, 4, scale=0.1)]
    if work == "linreg_2000":
        x = n(r, 2000); e = n(r, 2000)
        return [np.float32(5), np.float32(10)], x, 3 * x + 2 + e
    if work == "ew_add_10m": return [np.tile(n(r, 1000000), 10), np.tile(n(r, 1000000), 10)]   # 1M normals, ten times over
    if work == "sum_10m": return [np.tile(n(r, 1000000), 10)]
    if work == "ew_cheap20_1m": return [n(r, 1000000), n(r, 1000000, scale=0.1)]
    if work.startswith("ew_"): return [n(r, 1000000)]
    if work.startswith("softmax"): return [n(r, 1024, 1000)]
    if work.startswith("matmul"):
        s = int(work.split("_")[1])
        return [n(r, s, s), n(r, s, s)]
    if work in ("mlp_32", "mlp_256", "hvp_mlp"):
        b = 256 if work == "mlp_256" else 32
        x = n(r, b, 784); y = r.ints(10, b)
        p = [n(r, 784, 128, scale=(2 / 784) ** .5), zeros(128), n(r, 128, 10, scale=(2 / 128) ** .5), zeros(10)]
        return ([p, x, y, [n(r, *a.shape) for a in p]] if work == "hvp_mlp" else (p, x, y))
    if work == "cnn_32":    # NHWC and HWIO
        x = n(r, 32, 28, 28, 1); y = r.ints(10, 32)
        return [n(r, 3, 3, 1, 16, scale=(2 / 9) ** .5), zeros(16), n(r, 3, 3, 16, 16, scale=(2 / 144) ** .5), zeros(16),
                n(r, 16, 10, scale=(1 / 16) ** .5), zeros(10)], x, y
    if work in CONV:        # x, w, dy
        b, size, c, k, oc = CONV[work]
        return [n(r, b, size, size, c), n(r, k, k, c, oc, scale=(1 / (k * k * c)) ** .5), n(r, b, size, size, oc)]
    if work == "lstm_128":  # gates in the order i, f, g, o; x and y are ids [batch, time]
        s = 128 ** -.5
        x = r.ints(65, 32, 64); y = r.ints(65, 32, 64)
        return [n(r, 65, 128), n(r, 128, 512, scale=s), n(r, 128, 512, scale=s), zeros(512),
                n(r, 128, 65, scale=s), zeros(65)], x, y
    if work == "gpt_small":
        x = r.ints(65, 8, 64); y = r.ints(65, 8, 64)
        p = [n(r, 65, 128, scale=.02), n(r, 64, 128, scale=.02)]                    # tokens, positions
        for _ in range(4):
            p += [ones(128), zeros(128), n(r, 128, 384, scale=.02), zeros(384),     # norm 1, q|k|v
                  n(r, 128, 128, scale=.02), zeros(128), ones(128), zeros(128),     # projection, norm 2
                  n(r, 128, 512, scale=.02), zeros(512), n(r, 512, 128, scale=.02), zeros(128)]
        return p + [ones(128), zeros(128), n(r, 128, 65, scale=.02)], x, y          # last norm, head without bias
    if work == "third_derivative": return [n(r, 1000)]
    raise SystemExit("unknown workload " + work)


CONV = {"conv_64": (16, 32, 64, 3, 64), "conv_56": (32, 56, 64, 3, 64), "conv_56_tf32": (32, 56, 64, 3, 64), "conv_1x1": (32, 56, 256, 1, 64),
        "conv_mnist": (128, 28, 1, 3, 32)}                                     # pictures, their size, channels in, the filter's size, channels out
LR = {"linreg_2000": .01, "mlp_32": .01, "mlp_256": .01, "lstm_128": .1}   # plain SGD
SKIP_JIT = "a chain of single ops has no meaning when compiled"


class Skip(Exception):
    pass


# ---------------------------------------------------------------- TensorFlow: eager, tf.function, tf.function(jit_compile)
def tf_peer(peer, work, threads):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    graph = {"tf": lambda f: f, "tf.function": tf.function, "tf.xla": tf.function(jit_compile=True)}[peer]
    d = data(work)
    # Kernels on the CPU run before the Python call returns, so array results need no further wait; losses are read.
    ce = lambda z, y: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=z))

    def mlp(p, x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, p[0]) + p[1]), p[2]) + p[3]

    def cnn(p, x):
        for w, b in (p[0:2], p[2:4]):
            x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "VALID"), b))
        return tf.matmul(tf.reduce_mean(x, [1, 2]), p[4]) + p[5]

    def lstm(p, ids):
        emb, wi, wh, b, wo, bo = p
        xs = tf.unstack(tf.gather(emb, tf.transpose(ids)))
        h = c = tf.zeros([ids.shape[0], 128])
        hs = []
        for xt in xs:
            i, f, g, o = tf.split(tf.matmul(xt, wi) + tf.matmul(h, wh) + b, 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            hs.append(h)
        return tf.matmul(tf.reshape(tf.stack(hs, 1), [-1, 128]), wo) + bo

    def norm(x, g, b):
        m, v = tf.nn.moments(x, -1, keepdims=True)
        return tf.nn.batch_normalization(x, m, v, b, g, 1e-5)

    def gpt(p, ids):
        B, T = ids.shape
        x = tf.gather(p[0], ids) + p[1]
        mask = tf.linalg.band_part(tf.ones([T, T]), -1, 0) * 1e9 - 1e9
        for l in range(4):
            g1, b1, wq, bq, wp, bp, g2, b2, wf, bf, wg, bg = p[2 + 12 * l:14 + 12 * l]
            h = tf.reshape(norm(x, g1, b1), [-1, 128])
            q, k, v = tf.unstack(tf.transpose(tf.reshape(tf.matmul(h, wq) + bq, [B, T, 3, 4, 32]), [2, 0, 3, 1, 4]))
            a = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 32 ** -.5 + mask), v)
            a = tf.reshape(tf.transpose(a, [0, 2, 1, 3]), [-1, 128])
            x = x + tf.reshape(tf.matmul(a, wp) + bp, [B, T, 128])
            h = tf.reshape(norm(x, g2, b2), [-1, 128])
            x = x + tf.reshape(tf.matmul(tf.nn.gelu(tf.matmul(h, wf) + bf, approximate=True), wg) + bg, [B, T, 128])
        return tf.matmul(tf.reshape(norm(x, p[-3], p[-2]), [-1, 128]), p[-1])

    if work in ("linreg_2000", "mlp_32", "mlp_256", "cnn_32", "lstm_128", "gpt_small"):
        p, x, y = [tf.Variable(a) for a in d[0]], tf.constant(d[1]), tf.constant(d[2])
        if work == "linreg_2000": loss = lambda: tf.reduce_mean(tf.square(p[0] * x + p[1] - y))
        elif work == "cnn_32": loss = lambda: ce(cnn(p, x), y)
        elif work == "lstm_128": loss = lambda: ce(lstm(p, x), tf.reshape(y, [-1]))
        elif work == "gpt_small": loss = lambda: ce(gpt(p, x), tf.reshape(y, [-1]))
        else: loss = lambda: ce(mlp(p, x), y)
        if work in LR:                                          # by hand: keras.optimizers.SGD costs far more in eager mode
            def apply(g):
                for v, dv in zip(p, g): v.assign_sub(LR[work] * tf.convert_to_tensor(dv))
        else:                                                   # low-level tf.nn above, Keras only for the optimizer
            import keras
            opt = keras.optimizers.Adam(1e-3) if work == "cnn_32" else keras.optimizers.AdamW(1e-3, weight_decay=.01, epsilon=1e-8)
            opt.build(p)
            def apply(g): opt.apply_gradients(zip([tf.convert_to_tensor(dv) for dv in g], p))   # no IndexedSlices

        @graph
        def step():
            with tf.GradientTape() as t: l = loss()
            apply(t.gradient(l, p))
            return l
        return lambda: step().numpy()
    c = [tf.constant(a) for a in d] if work != "hvp_mlp" else None
    if work == "op_add_4":
        if peer != "tf": raise Skip(SKIP_JIT)
        def run():
            s = c[0]
            for _ in range(1000): s = s + c[0]
            return s.numpy()
        return run
    if work == "tape_chain_4":
        w = tf.Variable(d[0])
        @graph
        def chain():
            with tf.GradientTape() as t:
                y = w
                for _ in range(50): y = tf.tanh(y * w)
            return t.gradient(y, w)
        return lambda: chain().numpy()
    if work in CONV:
        @graph
        def conv(x, w, g):
            with tf.GradientTape() as t:
                t.watch([x, w])
                y = tf.nn.conv2d(x, w, 1, "SAME")
            return y, t.gradient(y, [x, w], output_gradients=g)     # y too, or graphs leave the forward pass out
        return lambda: conv(*c)
    if work == "hvp_mlp":
        p, v = [tf.Variable(a) for a in d[0]], [tf.constant(a) for a in d[3]]
        x, y = tf.constant(d[1]), tf.constant(d[2])
        @graph
        def hvp():
            with tf.GradientTape() as t2:
                with tf.GradientTape() as t1: l = ce(mlp(p, x), y)
                s = tf.add_n([tf.reduce_sum(a * b) for a, b in zip(t1.gradient(l, p), v)])
            return t2.gradient(s, p)
        return hvp
    if work == "third_derivative":
        @graph
        def third(x):
            with tf.GradientTape() as t3:
                t3.watch(x)
                with tf.GradientTape() as t2:
                    t2.watch(x)
                    with tf.GradientTape() as t1:
                        t1.watch(x)
                        f = tf.reduce_sum(tf.tanh(x) * tf.sin(x))
                    g1 = t1.gradient(f, x)
                g2 = t2.gradient(g1, x)
            return t3.gradient(g2, x)
        return lambda: third(c[0]).numpy()

    def chain20(x):
        for _ in range(5):
            x = x * 1.0001
            x = x + .5
            x = tf.tanh(x) * x
        return x
    f = graph({"ew_add_10m": lambda a, b: a + b, "ew_exp_1m": tf.exp, "ew_tanh_1m": tf.tanh, "ew_chain20_1m": chain20, "ew_cheap20_1m": cheap20,
               "ew_gelu_1m": lambda x: tf.nn.gelu(x, approximate=True), "sum_10m": tf.reduce_sum,
               "softmax_1024x1000": tf.nn.softmax}.get(work, tf.matmul))
    return repeat(lambda: f(*c), work)


def cheap20(x, y):
    for _ in range(10): x = x * y + .5
    return x


def repeat(f, work, wait=lambda c: c):
    """f itself; for matmul_1000_x200 200 calls of it. `wait` blocks until the result is there."""
    if work != "matmul_1000_x200": return lambda: wait(f())
    def run():
        for _ in range(200): c = f()
        return wait(c)
    return run


# ---------------------------------------------------------------- PyTorch: eager, torch.compile
def torch_peer(peer, work, threads):
    import torch, torch.nn.functional as F
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)
    graph = torch.compile if peer == "torch.compile" else lambda f: f
    if GPU:                                         # float32 means float32, as it does in eager.h
        torch.set_default_device("cuda")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = work.endswith("_tf32")
    T = lambda a: torch.from_numpy(np.array(a)).to("cuda" if GPU else "cpu")
    d = data(work)

    def mlp(p, x):
        return torch.relu(x @ p[0] + p[1]) @ p[2] + p[3]

    def cnn(p, x):
        x = F.relu(F.conv2d(F.relu(F.conv2d(x, p[0], p[1])), p[2], p[3]))
        return x.mean((2, 3)) @ p[4] + p[5]

    def norm(x, g, b): return F.layer_norm(x, (128,), g, b)

    def gpt(p, ids):
        B, T = ids.shape
        x = p[0][ids] + p[1]
        for l in range(4):
            g1, b1, wq, bq, wp, bp, g2, b2, wf, bf, wg, bg = p[2 + 12 * l:14 + 12 * l]
            q, k, v = (norm(x, g1, b1) @ wq + bq).view(B, T, 3, 4, 32).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, 128)
            x = x + (a @ wp + bp)
            x = x + (F.gelu(norm(x, g2, b2) @ wf + bf, approximate="tanh") @ wg + bg)
        return norm(x, p[-3], p[-2]) @ p[-1]

    if work in ("linreg_2000", "mlp_32", "mlp_256", "cnn_32", "lstm_128", "gpt_small"):
        np_p = d[0]
        if work == "cnn_32":                                    # NCHW and OIHW
            np_p = [a.transpose(3, 2, 0, 1) if a.ndim == 4 else a for a in np_p]
            d = (np_p, d[1].transpose(0, 3, 1, 2), d[2])
        x, y = T(np.ascontiguousarray(d[1])), T(d[2])
        if work != "linreg_2000": y = y.long()
        if work == "lstm_128":
            net = torch.nn.LSTM(128, 128, batch_first=True)
            p = [T(np_p[0]).requires_grad_(), net.weight_ih_l0, net.weight_hh_l0, net.bias_ih_l0, T(np_p[4]).requires_grad_(),
                 T(np_p[5]).requires_grad_(), net.bias_hh_l0]
            with torch.no_grad():
                for q, a in zip(p[1:4], np_p[1:4]): q.copy_(T(a.T))
                net.bias_hh_l0.zero_().requires_grad_(False)    # one bias, as in the other peers
            p, x, y = p[:6], x.long(), y.view(-1)
            loss = lambda p, x, y: F.cross_entropy(net(p[0][x])[0].reshape(-1, 128) @ p[4] + p[5], y)
        else:
            p = [T(np.ascontiguousarray(a)).requires_grad_() for a in np_p]
            if work == "linreg_2000": loss = lambda p, x, y: ((p[0] * x + p[1] - y) ** 2).mean()
            elif work == "gpt_small":
                x, y = x.long(), y.view(-1)
                loss = lambda p, x, y: F.cross_entropy(gpt(p, x).view(-1, 65), y)
            else:
                net = cnn if work == "cnn_32" else mlp
                loss = lambda p, x, y: F.cross_entropy(net(p, x), y)
        opt = (torch.optim.SGD(p, LR[work]) if work in LR else torch.optim.Adam(p, 1e-3, eps=1e-7) if work == "cnn_32"
               else torch.optim.AdamW(p, 1e-3, weight_decay=.01))
        loss = graph(loss)

        def step():
            opt.zero_grad()
            l = loss(p, x, y)
            l.backward()
            opt.step()
            return l.item()
        return step
    if work == "hvp_mlp":
        p, v, x, y = [T(a) for a in d[0]], [T(a) for a in d[3]], T(d[1]), T(d[2]).long()
        if peer == "torch":
            for a in p: a.requires_grad_()
            def hvp():
                g = torch.autograd.grad(F.cross_entropy(mlp(p, x), y), p, create_graph=True)
                return torch.autograd.grad(sum((a * b).sum() for a, b in zip(g, v)), p)
            return hvp
        g1 = torch.func.grad(lambda p: F.cross_entropy(mlp(p, x), y))   # .backward() twice is not supported by torch.compile
        g2 = torch.compile(torch.func.grad(lambda p: sum((a * b).sum() for a, b in zip(g1(p), v))))
        return lambda: g2(p)
    if work in CONV:
        d = [d[0].transpose(0, 3, 1, 2), d[1].transpose(3, 2, 0, 1), d[2].transpose(0, 3, 1, 2)]
    c = [T(np.ascontiguousarray(a)) for a in d]
    if work in CONV:
        f = graph(lambda x, w: F.conv2d(x, w, padding=CONV[work][3] // 2))
        c[0].requires_grad_(), c[1].requires_grad_()
        def conv():
            y = f(c[0], c[1])
            return y, torch.autograd.grad(y, c[:2], c[2])
        return conv
    if work == "op_add_4":
        if peer != "torch": raise Skip(SKIP_JIT)
        def run():
            s = c[0]
            for _ in range(1000): s = s + c[0]
            return s
        return run
    if work == "tape_chain_4":
        w = c[0].requires_grad_()
        def chain(w):
            y = w
            for _ in range(50): y = torch.tanh(y * w)
            return y.sum()
        f = graph(chain)
        return lambda: torch.autograd.grad(f(w), w)[0]
    if work == "third_derivative":
        f = lambda x: (torch.tanh(x) * torch.sin(x)).sum()
        if peer == "torch.compile":
            G = torch.func.grad
            g3 = torch.compile(G(lambda x: G(lambda x: G(f)(x).sum())(x).sum()))
            return lambda: g3(c[0])
        x = c[0].requires_grad_()
        def third():
            g = torch.autograd.grad(f(x), x, create_graph=True)[0]
            g = torch.autograd.grad(g.sum(), x, create_graph=True)[0]
            return torch.autograd.grad(g.sum(), x)[0]
        return third

    def chain20(x):
        for _ in range(5):
            x = x * 1.0001
            x = x + .5
            x = torch.tanh(x) * x
        return x
    f = graph({"ew_add_10m": lambda a, b: a + b, "ew_exp_1m": lambda x: torch.exp(x), "ew_tanh_1m": lambda x: torch.tanh(x),
               "ew_gelu_1m": lambda x: F.gelu(x, approximate="tanh"), "ew_chain20_1m": chain20, "ew_cheap20_1m": cheap20, "sum_10m": lambda x: x.sum(),
               "softmax_1024x1000": lambda x: torch.softmax(x, 1)}.get(work, lambda a, b: a @ b))
    return repeat(lambda: f(*c), work)


# ---------------------------------------------------------------- JAX: jit, op by op
def jax_peer(peer, work, threads):
    import jax, jax.numpy as jnp
    from functools import partial
    # float32 means float32: on a GPU the default is TF32
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if work.endswith("_tf32") else "highest")
    graph = jax.jit if peer == "jax.jit" else lambda f: f
    ready = jax.block_until_ready
    d = data(work)

    def ce(z, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))

    def mlp(p, x):
        return jax.nn.relu(x @ p[0] + p[1]) @ p[2] + p[3]

    conv2d = partial(jax.lax.conv_general_dilated, window_strides=(1, 1), dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def cnn(p, x):
        for w, b in (p[0:2], p[2:4]): x = jax.nn.relu(conv2d(x, w, padding="VALID") + b)
        return x.mean((1, 2)) @ p[4] + p[5]

    def lstm(p, ids):
        emb, wi, wh, b, wo, bo = p
        def cell(hc, zt):
            i, f, g, o = jnp.split(zt + hc[0] @ wh, 4, 1)
            c = jax.nn.sigmoid(f) * hc[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        z = jnp.zeros((ids.shape[0], 128))
        hs = jax.lax.scan(cell, (z, z), emb[ids.T] @ wi + b)[1]         # input products of all steps at once
        return hs.transpose(1, 0, 2).reshape(-1, 128) @ wo + bo

    def norm(x, g, b):
        m = x.mean(-1, keepdims=True)
        return (x - m) * jax.lax.rsqrt(jnp.square(x - m).mean(-1, keepdims=True) + 1e-5) * g + b

    def gpt(p, ids):
        B, T = ids.shape
        x = p[0][ids] + p[1]
        mask = jnp.tril(jnp.ones((T, T), bool))
        for l in range(4):
            g1, b1, wq, bq, wp, bp, g2, b2, wf, bf, wg, bg = p[2 + 12 * l:14 + 12 * l]
            q, k, v = (norm(x, g1, b1) @ wq + bq).reshape(B, T, 3, 4, 32).transpose(2, 0, 3, 1, 4)
            a = jax.nn.softmax(jnp.where(mask, q @ k.swapaxes(2, 3) * 32 ** -.5, -1e9)) @ v
            x = x + a.swapaxes(1, 2).reshape(B, T, 128) @ wp + bp
            x = x + jax.nn.gelu(norm(x, g2, b2) @ wf + bf) @ wg + bg
        return (norm(x, p[-3], p[-2]) @ p[-1]).reshape(-1, 65)

    if work in ("linreg_2000", "mlp_32", "mlp_256", "cnn_32", "lstm_128", "gpt_small"):
        p, x, y = [jnp.asarray(a) for a in d[0]], jnp.asarray(d[1]), jnp.asarray(d[2])
        if work == "linreg_2000": loss = lambda p: jnp.mean(jnp.square(p[0] * x + p[1] - y))
        else:
            y, net = y.reshape(-1), {"cnn_32": cnn, "lstm_128": lstm, "gpt_small": gpt}.get(work, mlp)
            loss = lambda p: ce(net(p, x), y)
        if work in LR:
            def step(p):
                l, g = jax.value_and_grad(loss)(p)
                return [a - LR[work] * b for a, b in zip(p, g)], l
            state = p
        else:
            eps, decay = (1e-7, 0.) if work == "cnn_32" else (1e-8, .01)
            def step(s):
                p, m, v, t = s
                l, g = jax.value_and_grad(loss)(p)
                t = t + 1
                m = [.9 * a + .1 * b for a, b in zip(m, g)]
                v = [.999 * a + .001 * b * b for a, b in zip(v, g)]
                r = 1e-3 / (1 - .9 ** t)
                k = jnp.sqrt(1 - .999 ** t)
                return (([a * (1 - 1e-3 * decay) - r * b / (jnp.sqrt(c) / k + eps) for a, b, c in zip(p, m, v)], m, v, t)), l
            state = (p, [jnp.zeros_like(a) for a in p], [jnp.zeros_like(a) for a in p], jnp.float32(0))
        step = jax.jit(step, donate_argnums=0) if peer == "jax.jit" else step
        box = [state]
        def run():
            box[0], l = step(box[0])
            ready(box[0])
            return float(l)
        return run
    if work == "hvp_mlp":
        p, v, x, y = jax.tree.map(jnp.asarray, (d[0], d[3], d[1], d[2]))
        g1 = jax.grad(lambda p: ce(mlp(p, x), y))
        f = graph(jax.grad(lambda p: sum(jnp.sum(a * b) for a, b in zip(g1(p), v))))
        return lambda: ready(f(p))
    c = [jnp.asarray(a) for a in d]
    if work == "op_add_4":
        if peer != "jax": raise Skip(SKIP_JIT)
        def run():
            s = c[0]
            for _ in range(1000): s = s + c[0]
            return ready(s)
        return run
    if work == "tape_chain_4":
        def chain(w):
            y = w
            for _ in range(50): y = jnp.tanh(y * w)
            return y.sum()
        f = graph(jax.grad(chain))
    elif work in CONV:
        def conv(x, w, g):
            y, back = jax.vjp(partial(conv2d, padding="SAME"), x, w)
            return y, back(g)
        f = graph(conv)
    elif work == "third_derivative":
        G = jax.grad
        f = graph(G(lambda x: G(lambda x: G(lambda x: jnp.sum(jnp.tanh(x) * jnp.sin(x)))(x).sum())(x).sum()))
    else:
        def chain20(x):
            for _ in range(5):
                x = x * 1.0001
                x = x + .5
                x = jnp.tanh(x) * x
            return x
        f = graph({"ew_add_10m": jnp.add, "ew_exp_1m": jnp.exp, "ew_tanh_1m": jnp.tanh, "ew_gelu_1m": jax.nn.gelu,
                   "ew_chain20_1m": chain20, "ew_cheap20_1m": cheap20, "sum_10m": jnp.sum, "softmax_1024x1000": jax.nn.softmax}.get(work, jnp.matmul))
    return repeat(lambda: f(*c), work, ready)


# ---------------------------------------------------------------- tinygrad: op_add_4 and tape_chain_4 lazily, the rest under TinyJit
def tinygrad_peer(peer, work, threads):
    from tinygrad import Tensor, TinyJit, Device
    from tinygrad.helpers import Context
    import tinygrad.nn.optim as optim
    if not (work in ("op_add_4", "tape_chain_4", "linreg_2000", "ew_add_10m", "mlp_32", "mlp_256")
            or work in ("ew_exp_1m", "ew_tanh_1m", "ew_gelu_1m") or work.startswith("matmul")):
        raise Skip("not written for tinygrad")
    d = data(work)
    T = lambda a: Tensor(np.asarray(a)).realize()
    if work in LR:
        p, x, y = [T(np.atleast_1d(a)) for a in d[0]], T(d[1]), T(d[2])
        for a in p: a.requires_grad = True
        opt = optim.SGD(p, lr=LR[work])
        def loss():
            if work == "linreg_2000": return ((p[0] * x + p[1] - y) ** 2).mean()
            return ((x @ p[0] + p[1]).relu() @ p[2] + p[3]).sparse_categorical_crossentropy(y)
        @TinyJit
        def step():
            opt.zero_grad()
            l = loss()
            l.backward()
            return l.realize(*opt.schedule_step())
        def run():
            with Context(TRAINING=1): return step().item()
        return run
    c = [T(a) for a in d]
    if work == "op_add_4":
        def run():
            s = c[0]
            for _ in range(1000): s = (s + c[0]).realize()
            return s.numpy()
        return run
    if work == "tape_chain_4":
        def chain():
            w = c[0]
            y = w
            for _ in range(50): y = (y * w).tanh()
            return y.sum().gradient(w)[0].numpy()
        return chain
    f = {"ew_add_10m": lambda a, b: a + b, "ew_exp_1m": Tensor.exp, "ew_tanh_1m": Tensor.tanh,
         "ew_gelu_1m": Tensor.gelu}.get(work, Tensor.matmul)
    j = TinyJit(lambda *a: f(*a).realize())
    def wait(r):
        Device[Device.DEFAULT].synchronize()
        return r
    return repeat(lambda: j(*c), work, wait)


# ---------------------------------------------------------------- NumPy, for the workloads without gradients
def numpy_peer(peer, work, threads):
    c = data(work)
    if work == "op_add_4":
        def run():
            s = c[0]
            for _ in range(1000): s = s + c[0]
            return s
        return run
    def gelu(x): return .5 * x * (1 + np.tanh(np.float32(.79788456) * (x + np.float32(.044715) * x * x * x)))
    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    def chain20(x):
        for _ in range(5):
            x = x * np.float32(1.0001)
            x = x + np.float32(.5)
            x = np.tanh(x) * x
        return x
    f = {"ew_add_10m": np.add, "ew_exp_1m": np.exp, "ew_tanh_1m": np.tanh, "ew_gelu_1m": gelu, "ew_chain20_1m": chain20, "ew_cheap20_1m": cheap20,
         "sum_10m": np.sum, "softmax_1024x1000": softmax}.get(work, np.matmul if work.startswith("matmul") else None)
    if f is None: raise Skip("no gradients")
    return repeat(lambda: f(*c), work)


# ---------------------------------------------------------------- startup: whole processes
STARTUP = {
    "tf": "import tensorflow as tf\nx=tf.constant(3.)\nwith tf.GradientTape() as t:\n  t.watch(x)\n  y=x*x\nprint(float(t.gradient(y,x)))",
    "tf.function": "import tensorflow as tf\n@tf.function\ndef g(x):\n  with tf.GradientTape() as t:\n    t.watch(x)\n    y=x*x\n  return t.gradient(y,x)\nprint(float(g(tf.constant(3.))))",
    "torch": "import torch\nx=torch.tensor(3.,requires_grad=True)\n(x*x).backward()\nprint(float(x.grad))",
    "torch.compile": "import torch\nx=torch.tensor(3.,requires_grad=True)\ntorch.compile(lambda x:x*x)(x).backward()\nprint(float(x.grad))",
    "jax": "import jax\nprint(float(jax.grad(lambda x:x*x)(3.)))",
    "jax.jit": "import jax\nprint(float(jax.jit(jax.grad(lambda x:x*x))(3.)))",
    "tinygrad": "from tinygrad import Tensor\nx=Tensor([3.])\nprint((x*x).sum().gradient(x)[0].item())",
    "numpy": "import numpy as np\nprint(2*float(np.float32(3)))",
}
STARTUP["tf.xla"] = STARTUP["tf.function"].replace("@tf.function", "@tf.function(jit_compile=True)")


def startup(peer):
    out = subprocess.run([sys.executable, "-c", STARTUP[peer]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return float(out.split()[-1])


# ---------------------------------------------------------------- measuring
def size(r):
    """Sum of |x| over everything in a result."""
    if isinstance(r, (list, tuple)): return sum(size(a) for a in r)
    if hasattr(r, "detach"): r = r.detach()
    if hasattr(r, "cpu"): r = r.cpu()
    if hasattr(r, "numpy"): r = r.numpy()
    return float(np.abs(np.asarray(r).astype(np.float64)).sum())


def child(peer, work, threads, min_time):
    """Runs one pair and prints one line of JSON."""
    now = time.perf_counter
    try:
        if work == "startup": run = lambda: startup(peer)
        else:
            family = {"tf": tf_peer, "torch": torch_peer, "jax": jax_peer, "tinygrad": tinygrad_peer, "numpy": numpy_peer}
            run = family[peer.split(".")[0]](peer, work, threads)
    except Skip as e:
        print(json.dumps({"skip": str(e)}))
        return
    def wait():
        if GPU and peer.startswith("torch"):
            import torch
            torch.cuda.synchronize()
    t = now(); r = run(); wait(); first = now() - t
    for _ in range(max(WORK[work][2] - 1, 0)): r = run()
    check = size(r)
    del r
    t = now(); run(); wait(); once = now() - t
    k = max(1, int(.002 / once))                    # calls a sample: a sample lasts 2 ms or more
    ts, end = [], now() + min_time
    while now() < end or len(ts) < (3 if once < 1 else 1):
        t = now()
        for _ in range(k): run()
        wait()
        ts.append((now() - t) / k)
    print(json.dumps({"median": median(ts), "min": min(ts), "p95": sorted(ts)[(len(ts) * 95 + 99) // 100 - 1], "runs": len(ts), "check": check, "compile": first}))


HERE = os.path.dirname(os.path.abspath(__file__))


def build(peer, built={}):
    """The program of a peer that is compiled; made once, in a folder that goes when we go."""
    if not built: built["folder"] = tempfile.mkdtemp(prefix="peers"); atexit.register(shutil.rmtree, built["folder"], ignore_errors=True)
    if peer not in built:
        out = os.path.join(built["folder"], peer)
        if peer == "libtorch":
            import importlib.util
            root = os.path.dirname(importlib.util.find_spec("torch").origin)
            lib = os.path.join(root, "lib")
            cmd = ["g++", "-O2", "-std=c++20", os.path.join(HERE, "libtorch_bench.cpp"), "-o", out, "-I" + root + "/include",
                   "-I" + root + "/include/torch/csrc/api/include", "-L" + lib, "-Wl,-rpath," + lib, "-Wl,--no-as-needed",
                   "-ltorch_cpu", "-lc10", "-Wl,--as-needed", "-Wl,--allow-shlib-undefined"]
        else:
            cmd = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-I" + os.path.join(HERE, "..", ".."), os.path.join(HERE, "bench.c"), "-o", out]
            if peer == "eager-openblas": cmd += ["-DEAGER_OPENBLAS", "-I/usr/include/openblas", "-lopenblas"]
            if GPU: cmd += ["-DEAGER_CUDA"] + os.environ["EAGER_CUDA_LINK"].split()
            cmd += ["-lm", "-lpthread"]
        print("compiling %s, which takes a minute or more" % peer, file=sys.stderr, flush=True)
        p = subprocess.run(cmd, stderr=subprocess.PIPE, text=True)
        built[peer] = out if p.returncode == 0 else Skip("does not compile here: " + p.stderr.split("\n")[0][:100])
    if isinstance(built[peer], Skip): raise built[peer]
    return built[peer]


def pair(peer, work, threads, min_time, end):
    left = min(100 if GPU else 300, end - time.time())
    if left < 5: return {"skip": "no time was left"}
    cores = sorted(os.sched_getaffinity(0))[-threads:]
    n, tmp = str(threads), tempfile.mkdtemp(prefix="peers")
    env = dict(os.environ, EAGER_NUM_THREADS=n, OMP_NUM_THREADS=n, MKL_NUM_THREADS=n, OPENBLAS_NUM_THREADS=n, TF_NUM_INTRAOP_THREADS=n, TF_NUM_INTEROP_THREADS=n,
               TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", NPROC=n, DEV="CPU", NUM_CPU_THREADS=n,
               KERAS_BACKEND="tensorflow", TORCHINDUCTOR_CACHE_DIR=tmp, TORCHINDUCTOR_COMPILE_THREADS=n, CACHEDB=tmp + "/tinygrad.db")
    if GPU:                                         # all cores for all: a GPU's frameworks compile, launch and differentiate in threads of their own
        cores = sorted(os.sched_getaffinity(0))
        for name in "CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "DEV", "TORCHINDUCTOR_COMPILE_THREADS": env.pop(name)
        if "CUDA_VISIBLE_DEVICES" in os.environ: env["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
        env.pop("EAGER_NUM_THREADS")
        env.update(PEERS_GPU="1", BENCH_DEVICE="gpu:0", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    elif threads == 1: env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    try:
        cmd = ([build(peer.removesuffix(".function")), work + "_traced" * (peer == "eager.function"), n, str(min_time), str(WORK[work][2])] if peer in COMPILED else
               [sys.executable, os.path.abspath(__file__), "--child", peer, work, n, str(min_time)])
        p = subprocess.run(cmd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=left,
                           preexec_fn=lambda: os.sched_setaffinity(0, cores))
        lines = [l for l in p.stdout.splitlines() if l.startswith("{")]
        if p.returncode == 0 and lines: return json.loads(lines[-1])
        return {"skip": ("exit %d: " % p.returncode) + " ".join(p.stderr.split("\n")[-3:]).strip()[-150:]}
    except subprocess.TimeoutExpired:
        return {"skip": "longer than %.0f s" % left}
    except Skip as e:
        return {"skip": str(e)}
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    ap = argparse.ArgumentParser(description="Times workloads in tensor frameworks.")
    ap.add_argument("--peers", default=",".join(PEERS), help="also: numpy, libtorch (default: %(default)s)")
    ap.add_argument("--work", default=",".join(WORK), help="default: all")
    ap.add_argument("--threads", type=int, choices=(1, 2), default=1)
    ap.add_argument("--min-time", type=float, default=1.0, help="seconds of timed runs a pair")
    ap.add_argument("--rounds", type=int, default=1, help="how often each pair is run, the peers taking turns")
    ap.add_argument("--seconds", type=float, default=1e9, help="what is not measured by then is left out")
    ap.add_argument("--gpu", action="store_true", help="eager, torch and jax on the first GPU (EAGER_CUDA_LINK: how eager is linked)")
    ap.add_argument("--json", action="store_true", help="one JSON object a row")
    ap.add_argument("--markdown", action="store_true", help="one table")
    ap.add_argument("--best", action="store_true", help="the table shows the best runs, not the medians")
    a = ap.parse_args()
    key, end = "min" if a.best else "median", time.time() + a.seconds
    a.work, a.peers = a.work.split(","), a.peers.split(",")
    for w in a.work:
        if w not in WORK: ap.error("no workload " + w)
    for p in a.peers:
        if p not in PEERS + ["numpy", "libtorch"]: ap.error("no peer " + p)
    names = ["workload", "peer", "threads", "unit", "median", "min", "runs", "check"]

    def row(*v):
        if a.markdown: return
        s = ["%.6g" % x if isinstance(x, float) else str(x) for x in v]
        print(json.dumps(dict(zip(names, v))) if a.json else "\t".join(s), flush=True)

    def cell(r, scale, eager):
        if "skip" in r: return "-"
        return "%.3g" % (r[key] * scale) + (" (%.2gx)" % (r[key] / eager[key]) if key in eager and eager is not r else "")

    if a.markdown: print("| workload | unit |" + "".join(" %s |" % p for p in a.peers) + "\n|---|---|" + "---:|" * len(a.peers), flush=True)
    elif not a.json: print("\t".join(names), flush=True)
    why = []
    for work in a.work:
        unit, scale, _ = WORK[work]
        rounds = [[pair(peer, work, a.threads, a.min_time, end) for peer in a.peers] for _ in range(a.rounds)]
        result = {}
        for peer, rs in zip(a.peers, zip(*rounds)):
            r = result[peer] = dict(rs[0])
            if any("skip" in q for q in rs):
                r["skip"] = next(q["skip"] for q in rs if "skip" in q)
                row(work, peer, a.threads, "-", "-", "-", "-", r["skip"].replace("\t", " ").replace("\n", " "))
                if a.markdown: why.append("%s, %s: %s" % (work, peer, r["skip"].replace("\n", " ")))
                continue
            r.update(median=median(q["median"] for q in rs), min=min(q["min"] for q in rs), runs=sum(q["runs"] for q in rs))
            row(work, peer, a.threads, unit, r["median"] * scale, r["min"] * scale, r["runs"], r["check"])
            if work == "ew_add_10m": row(work, peer, a.threads, "GB/s", .12 / r["median"], .12 / r["min"], r["runs"], r["check"])
            if peer in JIT and work not in ("startup", "matmul_1000_x200"): row(work + ".compile", peer, a.threads, "ms", r["compile"] * 1e3, r["compile"] * 1e3, 1, r["check"])
        checks = [r["check"] for r in result.values() if "check" in r]
        if checks and max(checks) - min(checks) > 1e-3 * max(checks): print("%s: the checks differ: %s" % (work, checks), file=sys.stderr)
        eager = result.get("eager", {})
        if a.markdown: print("| %s | %s |" % (work, unit) + "".join(" %s |" % cell(result[p], scale, eager) for p in a.peers), flush=True)
    if why: print("\nLeft out:\n" + "\n".join(why))
    return 0


if __name__ == "__main__":
    sys.exit(main())
