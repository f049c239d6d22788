#!/usr/bin/env python3
"""How much a busy neighbour costs: each workload alone with one thread, then with two while a loop keeps one of two cores busy.

  neighbour.py [--peers eager,torch] [--work NAMES] [--rounds 3] [--min-time 0.5]

The four kinds of run take turns. A cell is the median of the rounds' medians, and of their 95th percentiles; a sample is one run, or
as many as fill 2 ms. The aim: with the neighbour a median of at most 1.3 times the one of one thread alone, and a 95th percentile of at
most 2 times that. Rows beyond it are marked with <--. On a machine of more than two cores the process and its neighbour share two.
"""
import argparse, math, os, subprocess, sys
from statistics import median
import peers

WORK = ["mlp_32", "mlp_256", "matmul_256", "matmul_1000", "conv_64", "cnn_32", "lstm_128", "gpt_small", "ew_exp_1m", "ew_tanh_1m", "ew_gelu_1m",
        "ew_chain20_1m", "sum_10m", "softmax_1024x1000"]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--peers", default="eager,torch")
    ap.add_argument("--work", default=",".join(WORK))
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--min-time", type=float, default=0.5, help="seconds of timed runs")
    a = ap.parse_args()
    names = a.peers.split(",")
    cores = sorted(os.sched_getaffinity(0))[-2:]
    if len(cores) < 2: ap.error("there is one core only")
    print("| workload | unit |" + "".join(" %s, 1 thread: median, p95 | 2 threads and a neighbour | ratios |" % p for p in names))
    print("|---|---|" + "---:|" * (3 * len(names)))
    for work in a.work.split(","):
        runs = {}
        for _ in range(a.rounds):
            for peer in names:
                runs.setdefault((peer, 1), []).append(peers.pair(peer, work, 1, a.min_time, math.inf))
                loop = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, cores[-1:]))
                try: runs.setdefault((peer, 2), []).append(peers.pair(peer, work, 2, a.min_time, math.inf))
                finally: loop.kill(); loop.wait()
        unit, scale, _ = peers.WORK[work]
        line = ""
        for peer in names:
            if any("skip" in r for k in (1, 2) for r in runs[peer, k]):
                line += " – | – | – |"
                continue
            m = {(k, what): median(r[what] for r in runs[peer, k]) for k in (1, 2) for what in ("median", "p95")}
            ratios = m[2, "median"] / m[1, "median"], m[2, "p95"] / m[1, "median"]
            line += " %.3g, %.3g | %.3g, %.3g | %.2f, %.2f%s |" % (
                m[1, "median"] * scale, m[1, "p95"] * scale, m[2, "median"] * scale, m[2, "p95"] * scale, *ratios,
                " <--" if ratios[0] > 1.3 or ratios[1] > 2 else "")
        print("| %s | %s |%s" % (work, unit, line), flush=True)


if __name__ == "__main__":
    main()
