#!/usr/bin/env python3
"""Data and files beside NumPy, pandas, polars, safetensors, OpenCV, PyTorch and tf.data, as far as a Python has them.
files.py PROGRAM [--before PROGRAM] [--python PYTHON]... [--seconds S] [--rounds N] [--cpu] [ROW...]

PROGRAM is tests/bench/files.c, which makes the files in a temporary folder first; --before: the same with an older eager.h. Each row
is a process of its own on each side, on one core (the first that this process may use), in turns, N rounds (2) of S seconds (0.3) and
three runs at least; the files are in the page cache. Times are the least of the rounds' medians; "MB" is by how much the process grew
at most, over what it had once its libraries were loaded. Numbers that both sides compute are compared. --python: another Python, which
is asked for the peers that this one has not. --cpu: the processor's time instead of the clock's, for a busy machine, where rows
with threads say nothing then. `files.py --peer ROW NAME FOLDER S CLOCK` is such a process.
To add a row: a function here, named as the row of files.c, in PEERS; with an empty table the row has eager.h alone.
"""
import argparse, importlib, os, shutil, statistics, subprocess, sys, tempfile, time

SCALARS = 200000
MODULES = {"pandas": "pandas", "polars": "polars", "NumPy": "numpy", "safetensors": "safetensors.numpy", "PyTorch": "torch", "DataLoader": "torch",
           "tf.data": "tensorflow", "OpenCV": "cv2"}


def csv(name):
    def run(folder):
        import pandas
        return lambda: float(pandas.read_csv(f"{folder}/{name}.csv", header=None).to_numpy().sum())
    return run


def csv_polars(name):
    def run(folder):
        import polars
        return lambda: float(polars.read_csv(f"{folder}/{name}.csv", has_header=False).to_numpy().sum())
    return run


def csv_chunks(folder):
    import pandas
    return lambda: sum(len(c.to_numpy()) for c in pandas.read_csv(f"{folder}/thousandths.csv", header=None, chunksize=256))


def numpy_idx(folder):
    import numpy
    return lambda: numpy.fromfile(f"{folder}/pictures.idx", numpy.uint8, offset=16).size


def numpy_npy(folder):
    import numpy
    return lambda: float(numpy.load(f"{folder}/array.npy")[-1])


def numpy_npz(folder):
    import numpy
    return lambda: float({k: v for k, v in numpy.load(f"{folder}/arrays.npz").items()}["weight_19"][-1])


def safetensors_weights(folder):
    from safetensors.numpy import load_file
    return lambda: float(load_file(f"{folder}/weights.safetensors")["weight_24"][-1])


def safetensors_one(folder):
    from safetensors import safe_open

    def run():
        with safe_open(f"{folder}/weights.safetensors", "np") as f: return float(f.get_tensor("weight_12")[-1])
    return run


def torch_restore(folder):
    import torch

    def model():
        w = torch.nn.Parameter(torch.zeros(25_000_000))
        return w, torch.optim.Adam([w], lr=1e-3)
    if os.fork() == 0:  # so that this process has not had the memory that saving takes
        w, adam = model()
        w.grad = torch.ones_like(w)
        adam.step()
        torch.save({"w": w.data, "adam": adam.state_dict()}, f"{folder}/state.pt")
        os._exit(0)
    os.wait()
    w, adam = model()

    def run():
        state = torch.load(f"{folder}/state.pt")
        w.data.copy_(state["w"])
        adam.load_state_dict(state["adam"])
        return float(w[-1].detach())
    return run


def tf_count(make, batch=False):
    def run(folder):
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)

        def count():
            n = 0
            d = make(tf, folder)
            for x in d if batch else d.batch(1024): n += len(x)  # a step of Python for each element would be most of the time
            return n
        return count
    return run


def numpy_gather(folder):
    import numpy
    x = numpy.load(f"{folder}/pictures.npy")

    def run():
        order, n = numpy.random.permutation(len(x)), 0
        for i in range(0, len(x), 64): n += len(x[order[i:i + 64]] / numpy.float32(255))
        return n
    return run


def torch_loader(folder):
    import numpy, torch
    x = torch.from_numpy(numpy.load(f"{folder}/pictures.npy"))

    class Scaled(torch.utils.data.Dataset):
        def __len__(self): return len(x)
        def __getitem__(self, i): return x[i].float() / 255
    return lambda: sum(len(b) for b in torch.utils.data.DataLoader(Scaled(), 64, shuffle=True))


def opencv_png(folder):
    import cv2
    x = cv2.imread(f"{folder}/picture.png")
    return lambda: cv2.imencode(".png", x)[1].size


def pictures(tf, folder):
    import numpy
    return tf.data.Dataset.from_tensor_slices(numpy.load(f"{folder}/pictures.npy"))


def scaled(tf, x): return tf.cast(x, tf.float32) / 255


def parsed(tf, x):
    shapes = {"x": tf.io.FixedLenFeature([10], tf.float32), "y": tf.io.FixedLenFeature([1], tf.int64)}
    return tf.io.parse_single_example(x, shapes)["x"]


def numbers(tf, n=SCALARS): return tf.data.Dataset.range(n)


PEERS = {
    "csv_integers": {"pandas": csv("integers"), "polars": csv_polars("integers")},
    "csv_thousandths": {"pandas": csv("thousandths"), "polars": csv_polars("thousandths")},
    "csv_floats": {"pandas": csv("floats"), "polars": csv_polars("floats")},
    "csv_rows": {"pandas": csv_chunks},
    "csv_batches": {"pandas": csv_chunks},
    "idx": {"NumPy": numpy_idx},
    "npy": {"NumPy": numpy_npy},
    "weights": {"safetensors": safetensors_weights},
    "weights_one": {"safetensors": safetensors_one},
    "npz": {"NumPy": numpy_npz},
    "restore": {"PyTorch": torch_restore},
    "records": {"tf.data": tf_count(lambda tf, f: tf.data.TFRecordDataset(f"{f}/records.tfrecord"))},
    "examples": {"tf.data": tf_count(lambda tf, f: tf.data.TFRecordDataset(f"{f}/examples.tfrecord").map(lambda x: parsed(tf, x)))},
    "lines": {"tf.data": tf_count(lambda tf, f: tf.data.TextLineDataset(f"{f}/thousandths.csv"))},
    "padded": {"tf.data": tf_count(lambda tf, f: numbers(tf).map(lambda x: tf.range(x % 16)).padded_batch(32), True)},
    "slices_map_batch": {
        "NumPy": numpy_gather,
        "DataLoader": torch_loader,
        "tf.data": tf_count(lambda tf, f: pictures(tf, f).map(lambda x: scaled(tf, x)).shuffle(60000).batch(64), True)},
    "slices_batch_map": {
        "NumPy": numpy_gather,
        "tf.data": tf_count(lambda tf, f: pictures(tf, f).shuffle(60000).batch(64).map(lambda x: scaled(tf, x)), True)},
    "range": {"tf.data": tf_count(lambda tf, f: numbers(tf))},
    "prefetch": {"tf.data": tf_count(lambda tf, f: numbers(tf).prefetch(64))},
    "map_one": {"tf.data": tf_count(lambda tf, f: numbers(tf).map(lambda x: x))},
    "map_threads": {"tf.data": tf_count(lambda tf, f: numbers(tf).map(lambda x: x, num_parallel_calls=2))},
    "shuffle": {"tf.data": tf_count(lambda tf, f: numbers(tf, 1000000).shuffle(1000000))},
    "cache": {"tf.data": tf_count(lambda tf, f: numbers(tf, 1000000).cache().repeat(2))},
    "png": {"OpenCV": opencv_png},
}
SIZES = {"png"}  # what both sides say is no equal number, but a file's size


def memory(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key))


def peer(row, name, folder, least, clock):
    clock = time.process_time if clock == "cpu" else time.perf_counter
    try:
        importlib.import_module(MODULES[name])
    except ImportError:
        return 3
    before, times = memory("VmRSS"), []
    run = PEERS[row][name](folder)
    try:  # the most memory counts from here
        with open("/proc/self/clear_refs", "w") as f: f.write("5")
    except OSError: pass
    while len(times) < 3 or sum(times) < least:
        start = clock()
        value = run()
        times.append(clock() - start)
    print(statistics.median(times), max(memory("VmHWM") - before, 0), value)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--before")
    options.add_argument("--python", action="append", default=[])
    options.add_argument("--seconds", default="0.3")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--cpu", action="store_const", const="cpu", default="wall")
    options.add_argument("rows", nargs="*")
    o = options.parse_intermixed_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    folder = tempfile.mkdtemp(prefix="files")
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1")

    def measure(command):
        p = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return p.returncode, [float(x) for x in p.stdout.split()] if p.returncode == 0 else None

    def measure_peer(row, name):
        for python in [sys.executable] + o.python:
            code, numbers = measure([python, os.path.abspath(__file__), "--peer", row, name, folder, o.seconds, o.cpu])
            if code != 3: return numbers
        return None

    def least(rounds):  # of several rounds of one side
        rounds = [x for x in rounds if x]
        return [min(x[0] for x in rounds), max(x[1] for x in rounds), rounds[-1][2]] if rounds else None
    try:
        subprocess.run([o.program, "make", folder], check=True)
        print("| row | before, ms | MB | eager.h, ms | MB | peer | ms | MB | eager.h's time of the peer's |")
        print("|---|---:|---:|---:|---:|---|---:|---:|---:|")
        for row in o.rows or PEERS:
            ours, before, theirs = [], [], {name: [] for name in PEERS.get(row, {})}
            for _ in range(o.rounds):
                ours.append(measure([o.program, row, folder, o.seconds, o.cpu])[1])
                if o.before: before.append(measure([o.before, row, folder, o.seconds, o.cpu])[1])
                for name in list(theirs):
                    theirs[name].append(measure_peer(row, name))
                    if not theirs[name][-1]: del theirs[name]  # this machine has it not
            ours, before = least(ours), least(before)
            if not ours: sys.exit(f"files.py: the row {row} failed")
            left = f"| {row} | {before[0] * 1e3:.3g} | {before[1] / 1e6:.0f} |" if before else f"| {row} | | |"
            left += f" {ours[0] * 1e3:.3g} | {ours[1] / 1e6:.0f} |"
            for name, rounds in theirs.items():
                x = least(rounds)
                size = f", its size {ours[2] / x[2]:.2f}" if row in SIZES else ""
                print(f"{left} {name} | {x[0] * 1e3:.3g} | {x[1] / 1e6:.0f} | {ours[0] / x[0]:.2f}{size} |", flush=True)
                if row not in SIZES and abs(ours[2] - x[2]) > 1e-5 * abs(x[2]):
                    sys.exit(f"files.py: {row}: eager.h has {ours[2]}, {name} {x[2]}")
            if not theirs: print(f"{left} – | | | |", flush=True)
    finally:
        shutil.rmtree(folder)


if sys.argv[1:2] == ["--peer"]: sys.exit(peer(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]), sys.argv[6]))
main()
