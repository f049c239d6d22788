#!/usr/bin/env python3
"""Writes the tables of RESULTS.md anew, one for each number of threads, and a picture of the first.

  results.py [--threads 1,2] [--peers NAMES] [--work NAMES] [--rounds 3] [--min-time 0.3]

One run makes all: the machine's own limits first, then every workload of peers.py, the peers and the numbers of threads in turns, as many rounds as asked.
A cell is the median of the rounds' medians and, in brackets, its ratio to eager.h's. The tables stand in RESULTS.md between two
marks; what stands around them is not touched. The picture is docs/speed.svg. With --work, a part of the whole, the tables are only printed.
"""
import argparse, json, math, os, re, subprocess, sys, textwrap, time
from statistics import median
import peers

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {"eager": "eager.h", "eager-openblas": "eager.h, OpenBLAS", "eager.function": "eager.h, traced",
         "torch": "PyTorch", "tf": "TensorFlow", "jax": "JAX",
         "numpy": "NumPy", "libtorch": "PyTorch, C++"}
APART = 150             # nanoseconds of a handoff: two cores that have a cache in common take less
DRAWN = ["op_add_4", "tape_chain_4", "linreg_2000", "ew_tanh_1m", "softmax_1024x1000", "matmul_256", "mlp_32", "cnn_32", "lstm_128",
         "gpt_small"]


def machine():
    return json.loads(subprocess.run([peers.build("eager"), "machine"], stdout=subprocess.PIPE, text=True, check=True,
                                     preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])).stdout)


def handoff(threads):
    """Nanoseconds for a line of memory from one of these cores to another and back: a hypervisor may move them apart meanwhile."""
    cores = sorted(os.sched_getaffinity(0))[-threads:]
    return int(subprocess.run([peers.build("eager"), "handoff"], stdout=subprocess.PIPE, text=True, check=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores)).stdout)


def measure(works, names, counts, rounds, min_time):
    """For each number of threads {workload: {peer: seconds, or why it was left out}}; the numbers take turns, as the peers do."""
    tables = {threads: {} for threads in counts}
    for work in works:
        runs, handoffs = {threads: [] for threads in counts}, {threads: [] for threads in counts}
        for _ in range(rounds):
            for threads in counts:
                if threads > 1: handoffs[threads].append(handoff(threads))
                runs[threads].append({peer: peers.pair(peer, work, threads, min_time, math.inf) for peer in names})
        for threads in counts:
            row = tables[threads][work] = {"handoffs": handoffs[threads]} if threads > 1 else {}
            for peer in names:
                skipped = [r[peer]["skip"] for r in runs[threads] if "skip" in r[peer]]
                row[peer] = skipped[0] if skipped else median(r[peer]["median"] for r in runs[threads])
            checks = [r[peer]["check"] for r in runs[threads] for peer in names if "check" in r[peer]]
            if checks and max(checks) - min(checks) > 1e-3 * max(checks): row["differs"] = checks
            print(threads, work, {p: "%.4g s" % v if isinstance(v, float) else v for p, v in row.items()}, file=sys.stderr, flush=True)
    return tables


def number(x):
    """Three digits, without exponents: 0.123, 12.3, 1,230."""
    return "{:,.{}f}".format(float("%.3g" % x), max(0, 2 - math.floor(math.log10(x)))) if x > 0 else "0"


def ratio(x):
    return "%.2g" % x if x < 10 else "{:,.0f}".format(float("%.2g" % x))


def markdown(table, names):
    yield "| workload | unit | " + " | ".join(NAMES.get(p, p) for p in names) + " |"
    yield "|---|---|" + "---:|" * len(names)
    reasons = {}
    for work, row in table.items():
        unit, scale, _ = peers.WORK[work]
        cells = []
        for peer in names:
            if isinstance(row[peer], str):
                cells.append("–")
                if "not written" not in row[peer]: reasons.setdefault((peer, row[peer]), []).append(work)
                continue
            cell = number(row[peer] * scale)
            if peer != "eager" and not isinstance(row.get("eager"), str): cell += " (%s×)" % ratio(row[peer] / row["eager"])
            cells.append(cell)
        yield "| %s | %s | %s |" % (work, unit.replace("us", "µs"), " | ".join(cells))
    for (peer, why), works in reasons.items():
        yield "\n%s does not run %s: %s." % (NAMES.get(peer, peer), ", ".join(works), why.strip().rstrip("."))
    for work, row in table.items():
        if "differs" in row: yield "\n%s: the check sums differ." % work
    every = [n for row in table.values() for n in row.get("handoffs", [])]
    far = ["%s (%s)" % (work, ", ".join(map(str, row["handoffs"]))) for work, row in table.items() if max(row.get("handoffs", [0])) > APART]
    if every:
        yield "\n" + textwrap.fill("Before each round a line of memory went from one core to the other and back in %d to %d ns%s." % (
            min(every), max(every), ", which says that the two had no cache in common for " + ", ".join(far) if far else ""), 120)


def picture(table, names, title):
    """Bars of time divided by eager.h's, on a logarithmic axis from 0.25 to 256."""
    colors = ["#2f6fde", "#d9730d", "#2e9c6a", "#8a5cd1", "#c2417b", "#7a828f", "#b59b12", "#3aa6b9"]
    low, high, left, width, bar = -2, 8, 185, 525, 11
    drawn = [w for w in DRAWN if w in table and not isinstance(table[w]["eager"], str)]
    height = 96 + len(drawn) * (len(names) - 1) * bar + len(drawn) * 10
    at = lambda x: left + width * (min(max(math.log2(x), low), high) - low) / (high - low)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 %d" width="760" height="%d" role="img" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#5b6472">' % (height, height),
           "<title>%s</title>" % title, '<rect width="760" height="%d" rx="8" fill="#fff"/>' % height,
           '<text x="24" y="28" font-size="15" font-weight="bold" fill="#1d2430">%s</text>' % title]
    x = 24
    for i, peer in enumerate(names[1:]):
        name = NAMES.get(peer, peer)
        out.append('<rect x="%d" y="40" width="10" height="10" fill="%s"/><text x="%d" y="49">%s</text>' % (x, colors[i % 8], x + 14, name))
        x += 30 + 7 * len(name)
    for k in range(low, high + 1):
        v = 2.0 ** k
        out.append('<line x1="%.1f" y1="70" x2="%.1f" y2="%d" stroke="%s"/><text x="%.1f" y="66" text-anchor="middle">%g×</text>'
                   % (at(v), at(v), height - 12, "#1d2430" if k == 0 else "#e4e7ec", at(v), v))
    y = 78
    for work in drawn:
        middle = y + (len(names) - 1) * bar / 2 + 4
        out.append('<text x="%d" y="%.1f" text-anchor="end" fill="#1d2430">%s</text>' % (left - 40, middle, work))
        for i, peer in enumerate(names[1:]):
            if not isinstance(table[work][peer], str):
                r = table[work][peer] / table[work]["eager"]
                a, b = sorted((at(1), at(r)))
                out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>' % (a, y, max(b - a, 1), bar - 2, colors[i % 8]))
                out.append('<text x="%.1f" y="%.1f" font-size="10" text-anchor="%s">%s</text>'
                           % (b + 4 if r >= 1 else a - 4, y + bar - 3, "start" if r >= 1 else "end", ratio(r)))
            y += bar
        y += 10
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    ap = argparse.ArgumentParser(description="Writes the tables of RESULTS.md anew.")
    ap.add_argument("--threads", default="1", help="numbers of threads, a table each (default: %(default)s)")
    ap.add_argument("--peers", default="eager,torch,tf,jax,eager.function,torch.compile,tf.function,tf.xla,jax.jit")
    ap.add_argument("--work", help="these workloads alone; the tables are printed, and no file is written")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--min-time", type=float, default=0.3)
    a = ap.parse_args()
    names = a.peers.split(",")
    if names[0] != "eager": ap.error("the first peer is eager, with which the others are compared")
    works = a.work.split(",") if a.work else [w for w in peers.WORK if w not in ("conv_56_tf32", "matmul_1000_x200")]
    limits = machine()
    text = ["<!-- made by tests/bench/results.py -->", "",
            textwrap.fill("%s. On %s: %.0f GFLOP/s of float32 products and sums on one core, %.1f GB/s read, %.1f GB/s in a plain loop c = a + b over "
            "ten million floats. Medians of %d round%s, in which the peers take turns; in brackets the time divided by eager.h's. Made by" % (
                time.strftime("%d %B %Y").lstrip("0"), limits["processor"], limits["flops"] / 1e9, limits["reading"] / 1e9, limits["adding"] / 1e9, a.rounds, "s"[:a.rounds > 1]), 120),
            "", "    tests/bench/results.py " + " ".join(sys.argv[1:]), ""]
    for threads, table in measure(works, names, [int(n) for n in a.threads.split(",")], a.rounds, a.min_time).items():
        text += ["### One thread" if threads == 1 else "### %d threads" % threads, "", *markdown(table, names), ""]
        if threads == 1 and not a.work:
            with open(os.path.join(HERE, "..", "..", "docs", "speed.svg"), "w") as f:
                f.write(picture(table, names, "Time divided by eager.h's, one thread: right of 1×, eager.h is faster"))
    path = os.path.join(HERE, "RESULTS.md")
    if a.work: print("\n".join(text)); return
    with open(path) as f: old = f.read()
    made = "\n".join(text + ["<!-- made until here -->"])
    new, n = re.subn(r"<!-- made by tests/bench/results.py -->.*?<!-- made until here -->", lambda m: made, old, flags=re.S)
    if n != 1: sys.exit("RESULTS.md has no place for the tables:\n" + made)
    with open(path, "w") as f: f.write(new)


if __name__ == "__main__":
    main()
