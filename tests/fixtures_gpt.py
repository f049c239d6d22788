#!/usr/bin/env python3
"""Reference for examples/gpt.h: the same GPT in PyTorch, from the same weights, on the same batches.

  EAGER_DATA=folder fixtures_gpt.py     writes fixtures/gpt_loss.txt (PyTorch; tinyshakespeare.txt of that folder)
"""
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fixtures import Stream, head, save, write_case
import numpy as np

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, STEPS, EVERY, SEED = 4, 128, 4, 64, 8, 500, 100, 50000


def text():
    """The characters as numbers in the order of their bytes; the last tenth is for validation."""
    with open(os.path.join(os.environ.get("EAGER_DATA", ""), "tinyshakespeare.txt"), "rb") as f: raw = np.frombuffer(f.read(), np.uint8)
    letters, ids = np.unique(raw, return_inverse=True)
    cut = len(ids) * 9 // 10
    return len(letters), ids[:cut], ids[cut:]


def batch(ids, r):
    """Windows that begin at floor(u (length - CONTEXT - 1)), u uniform from the stream; what comes next is one to the right."""
    starts = np.floor(r.uniform(BATCH) * (len(ids) - CONTEXT - 1)).astype(np.int64)
    return tuple(np.stack([ids[s + k:s + k + CONTEXT] for s in starts]) for k in (0, 1))


def train(dtype):
    import torch
    F = torch.nn.functional
    torch.set_num_threads(2)
    dtype = getattr(torch, dtype)
    letters, train_ids, valid_ids = text()
    r, p = Stream(SEED), []
    def weight(*shape): p.append(torch.tensor(r.normal(*shape, scale=.02)).to(dtype).requires_grad_())
    def norm(): p.extend(torch.full((WIDTH,), float(k)).to(dtype).requires_grad_() for k in (1, 0))
    def dense(*shape):
        weight(*shape)
        p.append(torch.zeros(shape[1]).to(dtype).requires_grad_())
    weight(letters, WIDTH)
    weight(CONTEXT, WIDTH)
    for _ in range(LAYERS):
        norm()
        for _ in range(4): dense(WIDTH, WIDTH)                  # query, key, value, output
        norm()
        dense(WIDTH, 4 * WIDTH)
        dense(4 * WIDTH, WIDTH)
    norm()
    weight(WIDTH, letters)

    def loss(x, y):
        x, y = torch.tensor(x), torch.tensor(y)
        h = p[0][x] + p[1]
        ln = lambda h, at: F.layer_norm(h, (WIDTH,), p[at], p[at + 1], 1e-3)
        for i in range(2, 2 + 16 * LAYERS, 16):
            n = ln(h, i)
            q, k, v = ((n @ p[j] + p[j + 1]).view(BATCH, CONTEXT, HEADS, -1).transpose(1, 2) for j in (i + 2, i + 4, i + 6))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)
            h = h + a @ p[i + 8] + p[i + 9]
            h = h + F.gelu(ln(h, i + 10) @ p[i + 12] + p[i + 13], approximate="tanh") @ p[i + 14] + p[i + 15]
        return F.cross_entropy((ln(h, len(p) - 3) @ p[-1]).view(-1, letters), y.view(-1))

    def validate():
        r = Stream(SEED * 3)                                    # always the same 16 batches
        with torch.no_grad(): return np.mean([loss(*batch(valid_ids, r)).item() for _ in range(16)])

    optimizer, r = torch.optim.AdamW(p, 1e-3, eps=1e-7, weight_decay=.01), Stream(SEED * 2)
    losses, validation = [], [validate()]
    for step in range(STEPS):
        optimizer.zero_grad()
        l = loss(*batch(train_ids, r))
        l.backward()
        optimizer.step()
        losses.append(l.item())
        if (step + 1) % EVERY == 0: validation.append(validate())
    print(dtype, "training", losses[::100], "validation", validation)
    return np.array(losses), np.array(validation)


if __name__ == "__main__":
    import torch
    rows = head("gpt", "PyTorch " + torch.__version__) + [
        "# out: the loss before each of 500 steps, and the mean of 16 validation batches before the first and after each 100th.",
        "# Shakespeare (tinyshakespeare.txt), 8 windows of 64 a batch; AdamW 1e-3, weight decay .01; weights from splitmix64(50001...)."]
    for dtype in ("float32", "float64"): write_case(rows, "gpt_loss/" + dtype, dict(), out=list(train(dtype)))
    save(rows, "gpt_loss.txt")
