"""Holds eager.h beside NumPy, row by row, on one core: ./build.sh bench numpy [NAME...] [--dtypes fdilub] [--slow].

The rows are the lines of ROWS in numpy_table.c. Each is run on both sides with the same operands, the values are
compared, then both are measured in turns, and the best of each counts. float32 is compared with what NumPy makes of the
same numbers in float64. NumPy's kernels for AVX-512 are switched off, as they were when eager.h had none; --avx512 leaves
them on, and EAGER_ISA=avx2 switches eager.h's off. A row that takes more than 1.2 times NumPy's time is marked with <--,
one whose values differ with its largest difference.
A NAME is a part of rows' names; =NAME is the whole name."""

import argparse
import os
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("program", help="numpy_table.c, compiled")
parser.add_argument("names", nargs="*")
parser.add_argument("--dtypes", default="fdilub")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--seconds", type=float, default=0.01, help="of one measurement")
parser.add_argument("--slow", action="store_true", help="print only rows over the limit, or that differ")
parser.add_argument("--limit", type=float, default=1.2)
parser.add_argument("--avx512", action="store_true")
options = parser.parse_intermixed_args()

if not options.avx512:
    with open("/proc/cpuinfo") as f:
        if "avx512f" in f.read():
            os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL"
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[library + "_NUM_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import warnings

warnings.simplefilter("ignore")
import numpy as np

DTYPES = {"f": np.float32, "d": np.float64, "i": np.int32, "l": np.int64, "u": np.uint8, "b": np.bool_}
random = np.random.default_rng(1)


def numbers(dtype, *shape):
    """Numbers around 0, none of them 0; in uint8 those above 0."""
    if dtype in "fd":
        return (random.standard_normal(shape) * 10).astype(DTYPES[dtype])
    if dtype == "b":
        return random.random(shape) < 0.5
    if dtype == "u":
        return random.integers(1, 200, shape).astype(np.uint8)
    return (random.integers(1, 10000, shape) * random.choice([-1, 1], shape)).astype(DTYPES[dtype])


def positive(dtype, *shape):
    x = random.random(shape) * 100 + 0.01
    return x > 50 if dtype == "b" else (np.ceil(x) if dtype not in "fd" else x).astype(DTYPES[dtype])


def near_1(dtype, *shape):
    return (random.random(shape) * 1e-4 + 1).astype(DTYPES[dtype])


INPUTS = {
    "a": lambda t: numbers(t, 1000, 1000),
    "b": lambda t: numbers(t, 1000, 1000),
    "p": lambda t: positive(t, 1000, 1000),
    "s": lambda t: (random.random((1000, 1000)) * 1.9 - 0.95).astype(DTYPES[t]),
    "row": lambda t: numbers(t, 1000),
    "col": lambda t: numbers(t, 1000, 1),
    "one": lambda t: numbers(t),
    "wide": lambda t: numbers(t, 1000, 2000),
    "picture": lambda t: numbers(t, 10, 25, 40, 100),
    "one_ish": lambda t: near_1(t, 1000, 1000),
}


def one_hot(labels, dtype):
    y = np.zeros((len(labels), 1000), dtype)
    y[np.arange(len(labels)), labels] = 1
    return y


def difference(ours, numpy, dtype):
    """What is wrong with our values, or None. Floats may differ by roundings, and an integer mean is truncated."""
    numpy = np.asarray(numpy)
    if ours.shape != numpy.shape:
        return f"shapes {ours.shape} and {numpy.shape}"
    if ours.dtype.kind in "iu" and numpy.dtype.kind == "f":
        numpy = np.trunc(numpy).astype(ours.dtype)
    if ours.dtype.kind != "f":
        differs = ours != numpy
        return f"{int(np.sum(differs))} elements" if np.any(differs) else None
    ours, numpy = ours.astype(np.float64), numpy.astype(np.float64)
    scale = np.abs(numpy) + 1e-3 * np.max(np.abs(numpy[np.isfinite(numpy)]), initial=0)
    with np.errstate(all="ignore"):
        error = np.abs(ours - numpy) / np.where(scale == 0, 1, scale)
    error = np.where((ours == numpy) | (np.isnan(ours) & np.isnan(numpy)), 0, error)
    worst = np.max(error, initial=0)
    return None if worst < (2e-5 if dtype == "f" else 1e-9) else f"by {worst:.2g}"


def measure(function, seconds):
    runs, start = 0, time.perf_counter()
    end = start
    while runs < 2 or end < start + seconds:
        function()
        end, runs = time.perf_counter(), runs + 1
    return (end - start) / runs


with tempfile.TemporaryDirectory() as folder:
    operands = {}
    for t in DTYPES:
        operands[t] = {name: make(t) for name, make in INPUTS.items()}
        for name, x in operands[t].items():
            np.save(f"{folder}/{name}_{t}.npy", x)
    shared = {
        "m": operands["b"]["a"], "yes": np.ones((1000, 1000), bool), "no": np.zeros((1000, 1000), bool),
        "pick": random.integers(0, 1000, 1000), "order": np.argsort(random.random((1000, 1000)), 1),
        "large": random.standard_normal(10000000, np.float32), "np": np, "one_hot": one_hot, "random": random}
    for name, t in (("yes", "b"), ("no", "b"), ("pick", "l"), ("order", "l"), ("large", "f")):
        np.save(f"{folder}/{name}_{t}.npy", shared[name])

    child = subprocess.Popen([options.program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(*words):
        child.stdin.write(" ".join(map(str, words)) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        if not answer:
            sys.exit("numpy_table: the program ended early")
        return answer.strip()

    rows = []
    while (line := child.stdout.readline().rstrip("\n")):
        rows.append(line.split("\t"))
    print(f"NumPy {np.__version__}, one core, microseconds of 1000 x 1000 elements; ratio: eager.h's time by NumPy's")
    print(f"{'':<26}{'eager.h':>12}{'NumPy':>12}{'ratio':>8}")
    slower = different = shown = 0
    for t in options.dtypes:
        for number, (name, dtypes, text) in enumerate(rows):
            if t not in dtypes or (options.names and not any(n[1:] == name if n[0] == "=" else n in name for n in options.names)):
                continue
            function = eval("lambda: " + text, {**shared, **operands[t], "D": DTYPES[t]})
            answer = ask("value", number, t)
            if answer != "ok":
                print(f"{name + ' ' + np.dtype(DTYPES[t]).name:<26}{answer}")
                different += 1
                continue
            exact = {name: x.astype(np.float64) for name, x in operands[t].items()} if t == "f" else operands[t]
            expected = eval(text, {**shared, **exact, "D": np.float64 if t == "f" else DTYPES[t]})
            wrong = None if text.startswith("random") else difference(np.load(f"{folder}/value.npy"), expected, t)
            ours = numpy = float("inf")
            for i in range(options.rounds):
                for side in (0, 1) if i % 2 else (1, 0):
                    if side:
                        ours = min(ours, float(ask("time", number, t, options.seconds)))
                    else:
                        numpy = min(numpy, measure(function, options.seconds))
            ratio = ours / numpy
            slower += ratio > options.limit
            different += wrong is not None
            shown += 1
            if not options.slow or ratio > options.limit or wrong:
                print(f"{name + ' ' + np.dtype(DTYPES[t]).name:<26}{ours * 1e6:12.1f}{numpy * 1e6:12.1f}{ratio:8.2f}"
                      f"{' <--' if ratio > options.limit else ''}{'  values differ: ' + wrong if wrong else ''}", flush=True)
    print(f"{shown} rows, {slower} of them over {options.limit} times NumPy's time, {different} with other values")
    child.stdin.close()
