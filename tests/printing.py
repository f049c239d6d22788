#!/usr/bin/env python3
"""Makes tests/fixtures/printing.txt: arrays, and what NumPy's print() writes for them. printing.c reads it.
With `check` the file is compared with what would be written.

A case is a line `DTYPE RANK DIMS... VALUES...` (floats with the digits that tell them apart) and the text, each line of it after a `|`.
"""
import os, sys
import numpy as np

rng = np.random.default_rng(7)
NAN, INF = float("nan"), float("inf")
arrays = []


def add(dtype, values, *shape):
    with np.errstate(all="ignore"):
        a = np.array(values).astype(dtype)
    arrays.append(a.reshape(shape) if shape else a)


# Powers of ten as they are read, not as NumPy's pow computes them, whose last digit depends on the processor.
ten_to = np.vectorize(lambda k: float("1e%d" % k), otypes=[float])

for t in "float32", "float64", "float16":
    for v in [0.0, -0.0, 1.0, 7.5, 0.1, 1 / 3, -2.5e-5, 1e-4, 12345.678, 999999.0, 1e6, 1.5e16, 3e-20, NAN, INF, -INF, 65504.0, 1e8, 123456789.0]:
        add(t, v)
    add(t, [1, 2, 3])
    add(t, [0, 0, 0])
    add(t, [1.5, -2.25, 1000])
    add(t, [0.1, 0.22, 0.333])
    add(t, [1e-5, 1])
    add(t, [1e8, 1])
    add(t, [1e-3, 1])
    add(t, [1e-3, 2])
    add(t, [NAN, 1, -INF])
    add(t, [NAN, NAN])
    add(t, [-INF, INF])
    add(t, [INF, 1e10, 1])
    add(t, [1e-40, 1e-38])
    add(t, [-1.0, -0.0, 5e-5])
    add(t, [16777216, 1])
    add(t, [99999.5, 0.5])
    for _ in range(12):
        n = int(rng.integers(1, 30))
        add(t, rng.normal(size=n) * ten_to(rng.integers(-6, 7)))
        add(t, rng.normal(size=n) * ten_to(rng.integers(-4, 4, n)))
        add(t, np.round(rng.normal(size=n) * 100, int(rng.integers(0, 4))))
    add(t, rng.normal(size=(2, 3)), 2, 3)
    add(t, rng.normal(size=(2, 2, 3)), 2, 2, 3)
    add(t, rng.normal(size=(1, 2, 1, 3)), 1, 2, 1, 3)
    add(t, rng.normal(size=(3, 20)), 3, 20)
    add(t, rng.normal(size=1001))
    add(t, np.round(rng.normal(size=(40, 30)), 2), 40, 30)
    add(t, rng.normal(size=(7, 3, 50)), 7, 3, 50)
    add(t, np.round(rng.normal(size=(8, 2, 2, 2, 16)), 1), 8, 2, 2, 2, 16)
    add(t, np.arange(1000))
    add(t, [], 0)
    add(t, [], 2, 0, 3)
for t in "int32", "int64", "uint8", "bool":
    add(t, 1)
    add(t, [0, 1, 1])
    add(t, [[1, 0], [0, 1]], 2, 2)
    add(t, np.arange(60) % 2, 5, 3, 4)
    add(t, np.arange(1200) % 100 if t != "bool" else np.arange(1200) % 3 == 0, 30, 40)
    add(t, np.arange(50) % 7)
    add(t, [], 0, 4)
for t in "int32", "int64":
    add(t, [-5, 1000, 0])
    add(t, [[-2147483648, 2147483647], [0, 7]], 2, 2)
    add(t, np.arange(2000) - 1000)
add("int64", np.array([-2**63, 2**63 - 1, 0], np.int64))
add("uint8", [0, 255, 10])

out = ["Arrays and what NumPy's print() writes for them. Made by `tests/printing.py`, which says what the rows mean."]
for a in arrays:
    values = [str(v) if a.dtype.kind == "f" else str(int(v)) for v in a.ravel()]
    out.append(" ".join([a.dtype.name, str(a.ndim), *map(str, a.shape), *values]))
    out += ["|" + line for line in str(a).split("\n")] if a.ndim else ["|" + str(a[()])]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures", "printing.txt")
text = "\n".join(out) + "\n"
if sys.argv[1:] == ["check"]:
    same = open(path).read() == text
    print("printing.txt: %d arrays printed again, %s" % (len(arrays), "all the same" if same else "NOT all the same"))
    sys.exit(not same)
with open(path, "w") as f:
    f.write(text)
print("printing.txt: %d arrays" % len(arrays))
