# The steps of tests/bench/cluster.c in PyTorch, by DistributedDataParallel over gloo. Started once for each rank, with
# RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set. The same lines, without bytes.
import os, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROUNDS, STEPS, WARM, ROWS = 12, 10, 8, 64
torch.set_num_threads(1)
dist.init_process_group("gloo")
x, y = torch.randn(ROWS, 1, 28, 28), torch.arange(ROWS) % 10


def network(kind):
    if kind == "conv":
        return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 10))
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def step(model, sgd):
    sgd.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    sgd.step()


for kind in "conv", "dense":
    models = [network(kind), DistributedDataParallel(network(kind), gradient_as_bucket_view=True)]
    sgds = [torch.optim.SGD(m.parameters(), lr=1e-3) for m in models]
    ms = [[], []]
    for round in range(-1, ROUNDS):
        for way in range(2):
            dist.barrier()
            for i in range(STEPS if round >= 0 else WARM):
                begun = time.perf_counter()
                step(models[way], sgds[way])
                if round >= 0:
                    ms[way].append(1e3 * (time.perf_counter() - begun))
    for m in ms:
        m.sort()
    if dist.get_rank() == 0:
        print(f"{kind} gloo {ms[0][0]:.3f} {ms[0][len(ms[0]) // 2]:.3f} {ms[1][0]:.3f} {ms[1][len(ms[1]) // 2]:.3f}")
dist.destroy_process_group()
