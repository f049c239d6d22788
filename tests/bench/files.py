#!/usr/bin/env python3
"""Data and files beside NumPy, pandas, safetensors, PyTorch and tf.data, as far as Python has them. files.py PROGRAM [--seconds S] [ROW...]

PROGRAM is tests/bench/files.c, which makes the files in a temporary folder first. Each row is a process of its own on each side, on
one core (the first that this process may use), in turns; the files are in the page cache. Times are medians; "memory" is by how much the
process grew in the first run. Numbers that both sides compute are compared. `files.py --peer ROW NAME FOLDER` is such a process.
To add a row: a function here, named as the row of files.c, in PEERS; without one the row has eager.h alone.
"""
import os, shutil, statistics, subprocess, sys, tempfile, time

SCALARS = 200000


def csv(name):
    def run(folder):
        import pandas
        return lambda: float(pandas.read_csv(f"{folder}/{name}.csv", header=None).to_numpy().sum())
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
    w = torch.nn.Parameter(torch.zeros(25_000_000))
    adam = torch.optim.Adam([w], lr=1e-3)
    w.grad = torch.ones_like(w)
    adam.step()
    torch.save({"w": w.data, "adam": adam.state_dict()}, f"{folder}/state.pt")

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
            for x in make(tf, folder): n += len(x) if batch else 1
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


def numbers(tf, n=SCALARS): return tf.data.Dataset.range(n)


PEERS = {
    "csv_integers": {"pandas": csv("integers")},
    "csv_thousandths": {"pandas": csv("thousandths")},
    "csv_floats": {"pandas": csv("floats")},
    "csv_rows": {"pandas": csv_chunks},
    "csv_batches": {"pandas": csv_chunks},
    "idx": {"NumPy": numpy_idx},
    "npy": {"NumPy": numpy_npy},
    "weights": {"safetensors": safetensors_weights},
    "weights_one": {"safetensors": safetensors_one},
    "npz": {"NumPy": numpy_npz},
    "restore": {"PyTorch": torch_restore},
    "records": {"tf.data": tf_count(lambda tf, f: tf.data.TFRecordDataset(f"{f}/records.tfrecord"))},
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
SIZES = {"png"}  # what is compared is no equal number, but a file's size


def memory(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key))


def peer(row, name, folder, least):
    try:
        run = PEERS[row][name](folder)
    except ImportError:
        return 3
    before, times = memory("VmRSS"), []
    while len(times) < 3 or sum(times) < least:
        start = time.perf_counter()
        value = run()
        times.append(time.perf_counter() - start)
        if len(times) == 1: grown = memory("VmHWM") - before
    print(statistics.median(times), max(grown, 0), value)


def main():
    program, rows, least = sys.argv[1], sys.argv[2:], "0.5"
    if rows[:1] == ["--seconds"]: least, rows = rows[1], rows[2:]
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    folder = tempfile.mkdtemp(prefix="files")
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    try:
        subprocess.run([program, "make", folder], check=True)
        print("| row | eager.h, ms | MB | peer | ms | MB | eager.h's time of the peer's |\n|---|---:|---:|---|---:|---:|---:|")
        for row in rows or PEERS:
            def measure(command):
                p = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                return [float(x) for x in p.stdout.split()] if p.returncode == 0 else None
            ours = measure([program, row, folder, least])
            if not ours: sys.exit(f"files.py: the row {row} failed")
            left = f"| {row} | {ours[0] * 1e3:.3g} | {ours[1] / 1e6:.0f} |"
            known = False
            for name in PEERS.get(row, {}):
                theirs = measure([sys.executable, os.path.abspath(__file__), "--peer", row, name, folder, least])
                if not theirs: continue
                known = True
                print(f"{left} {name} | {theirs[0] * 1e3:.3g} | {theirs[1] / 1e6:.0f} | {ours[0] / theirs[0]:.2f} |", flush=True)
                if row not in SIZES and abs(ours[2] - theirs[2]) > 1e-6 * abs(theirs[2]):
                    sys.exit(f"files.py: {row}: eager.h has {ours[2]}, {name} {theirs[2]}")
            if not known: print(f"{left} – | | | |", flush=True)
    finally:
        shutil.rmtree(folder)


if sys.argv[1:2] == ["--peer"]: sys.exit(peer(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5])))
main()
