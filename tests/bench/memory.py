#!/usr/bin/env python3
"""Peak memory of one training step of the digits' network (`./build.sh run`) in eager.h and in PyTorch. memory.py

Conv 16 3x3 relu, max-pool 2, Conv 32 3x3 relu, max-pool 2, Dense 10; batch 32, Adam; float32; one thread. The step is the
fourth, so that the optimizer's state is there. Bytes are counted, not pages:
- eager.h counts by itself (eg_memory): everything it holds, that is elements, handles, the tape's lines and the kernels'
  workspaces, each rounded up to its size class.
- In PyTorch a dispatch mode sees every op, forward, backward and optimizer, and adds up the storages of all tensors alive.
  Workspaces inside an op (oneDNN's, reordered filters) and the objects of Python and of the graph are not seen.
So the comparison favours PyTorch. `resident` is what the operating system says: how much the process grew from before the
first step to its peak, code that is loaded lazily included.
"""
import json, os, shutil, subprocess, sys, tempfile, weakref
HERE = os.path.dirname(os.path.abspath(__file__))


def peak_resident(reset=False):
    if reset:
        with open("/proc/self/clear_refs", "w") as f: f.write("5")
    with open("/proc/self/status") as f:
        return next(int(l.split()[1]) * 1024 for l in f if l.startswith("VmHWM" if not reset else "VmRSS"))


def eager():
    folder = tempfile.mkdtemp(prefix="memory")
    try:
        out = os.path.join(folder, "bench")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-I" + os.path.join(HERE, "..", ".."), os.path.join(HERE, "bench.c"),
                        "-o", out, "-lm", "-lpthread"], check=True)
        return json.loads(subprocess.run([out, "memory"], check=True, stdout=subprocess.PIPE).stdout)
    finally:
        shutil.rmtree(folder)


def torch_():
    import torch, torch.nn as nn
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    torch.set_num_threads(1)

    class Count(TorchDispatchMode):
        """Adds up the storages of the tensors that ops take and make, for as long as they live."""
        def __init__(self):
            super().__init__()
            self.live, self.bytes, self.peak = {}, 0, 0

        def see(self, t):
            s = t.untyped_storage()
            if s.data_ptr() == 0 or s._cdata in self.live: return
            self.live[s._cdata] = s.nbytes()
            self.bytes += s.nbytes()
            self.peak = max(self.peak, self.bytes)
            weakref.finalize(s, self.gone, s._cdata)

        def gone(self, key): self.bytes -= self.live.pop(key)

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            out = op(*args, **(kwargs or {}))
            for t in tree_leaves((args, kwargs, out)):
                if isinstance(t, torch.Tensor): self.see(t)
            return out

    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 10))
    x, y = torch.randn(32, 1, 28, 28), torch.randint(10, (32,))
    opt = torch.optim.Adam(model.parameters(), 1e-3)

    def step():
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()
    start = peak_resident(reset=True)
    for _ in range(3): step()
    grown = peak_resident() - start
    with Count() as count: step()
    return {"peak": count.peak, "resident": grown, "version": torch.__version__}


if __name__ == "__main__":
    if sys.argv[1:]: sys.exit(__doc__)
    e, t = eager(), torch_()
    print("| | peak bytes of a step | resident set grew by |\n|---|---:|---:|")
    print("| eager.h | %.2f MB | %.1f MB |" % (e["peak"] / 1e6, e["resident"] / 1e6))
    print("| PyTorch %s | %.2f MB | %.1f MB |" % (t["version"].split("+")[0], t["peak"] / 1e6, t["resident"] / 1e6))
