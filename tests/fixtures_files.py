#!/usr/bin/env python3
"""Makes the files that tests/imports.c and examples/17_transfer.c read: small models of PyTorch and Keras, with what they give.

  fixtures_files.py torch | keras | transfer | all      write tests/fixtures/NAME.safetensors, examples/transfer.safetensors

A file holds several models: NAME.WEIGHT... as the framework calls its weights, NAME.in and NAME.out, an input and the output
for it. Images are stored as we have them, (N, H, W, C).
"""
import os, subprocess, sys, tempfile
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
EXAMPLES = os.path.join(os.path.dirname(HERE), "..", "examples")


def torch_models():
    import torch
    from torch import nn
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(2)

    class First(nn.Module):                                  # a recurrent layer's sequence alone
        def __init__(self, rnn): super().__init__(); self.rnn = rnn
        def forward(self, x): return self.rnn(x)[0]

    class Attention(nn.Module):
        def __init__(self): super().__init__(); self.mha = nn.MultiheadAttention(8, 2, batch_first=True)
        def forward(self, x): return self.mha(x, x, x, need_weights=False)[0]

    image = lambda *s: torch.randn(*s, generator=g)
    models = {
        "dense": (nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), image(3, 5)),
        "conv": (nn.Sequential(nn.Conv2d(3, 4, (3, 2)), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 4 * 4, 3)), image(2, 3, 6, 5)),
        "conv_groups": (nn.Sequential(nn.Conv2d(4, 6, 3, groups=2, stride=2, bias=False)), image(2, 4, 7, 7)),
        "conv1d": (nn.Sequential(nn.Conv1d(3, 4, 3)), image(2, 3, 8)),
        "depthwise": (nn.Sequential(nn.Conv2d(3, 6, 3, groups=3)), image(2, 3, 5, 5)),
        "transposed": (nn.Sequential(nn.ConvTranspose2d(3, 4, 3, stride=2)), image(2, 3, 4, 4)),
        "norms": (nn.Sequential(nn.LayerNorm(6), nn.BatchNorm1d(6)), image(7, 6)),
        "embedding": (nn.Sequential(nn.Embedding(9, 4)), torch.tensor([[1, 8, 0], [3, 3, 2]])),
        "rnn": (First(nn.RNN(3, 4, batch_first=True)), image(2, 5, 3)),
        "lstm": (First(nn.LSTM(3, 4, num_layers=2, batch_first=True)), image(2, 5, 3)),
        "gru": (First(nn.GRU(3, 4, batch_first=True)), image(2, 5, 3)),
        "bidirectional": (First(nn.LSTM(3, 4, batch_first=True, bidirectional=True)), image(2, 5, 3)),
        "attention": (Attention(), image(2, 5, 8)),
    }
    out = {}
    for name, (model, x) in models.items():
        with torch.no_grad():
            for p in model.parameters():                     # biases that are zero at the start would hide their order
                p.copy_(torch.randn(p.shape, generator=g) * 0.4)
            for k, b in model.named_buffers():
                if "running" in k: b.copy_(torch.rand(b.shape, generator=g) + 0.5)
            y = model.eval()(x)
        last = lambda t: t.permute(0, 2, 3, 1) if t.dim() == 4 else t.permute(0, 2, 1) if name == "conv1d" else t
        out |= {f"{name}.{k}": v.contiguous().numpy() for k, v in model.state_dict().items()}
        out[f"{name}.in"], out[f"{name}.out"] = (np.ascontiguousarray(last(t).numpy()) for t in (x, y))
    out["embedding.in"] = out["embedding.in"].astype("int32")
    return out


def keras_models():
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    from keras import layers as L
    keras.utils.set_random_seed(1)
    r = np.random.default_rng(2)

    def attention():
        x = keras.Input((5, 8))
        return keras.Model(x, L.MultiHeadAttention(2, 4)(x, x))
    models = {
        "dense": (lambda: keras.Sequential([keras.Input((5,)), L.Dense(4, activation="relu"), L.Dense(3)]), (3, 5)),
        "conv": (lambda: keras.Sequential([keras.Input((6, 5, 3)), L.Conv2D(4, (3, 2), activation="relu"), L.Flatten(), L.Dense(3)]), (2, 6, 5, 3)),
        "norms": (lambda: keras.Sequential([keras.Input((6,)), L.LayerNormalization(), L.BatchNormalization()]), (7, 6)),
        "lstm": (lambda: keras.Sequential([keras.Input((5, 3)), L.LSTM(4, return_sequences=True), L.LSTM(4)]), (2, 5, 3)),
        "gru": (lambda: keras.Sequential([keras.Input((5, 3)), L.GRU(4, return_sequences=True)]), (2, 5, 3)),
        "bidirectional": (lambda: keras.Sequential([keras.Input((5, 3)), L.Bidirectional(L.LSTM(4, return_sequences=True))]), (2, 5, 3)),
        "attention": (attention, (2, 5, 8)),
    }
    out = {}
    for name, (make, shape) in models.items():
        keras.backend.clear_session()
        model, x = make(), r.standard_normal(shape).astype("float32")
        for w in model.weights:
            w.assign(r.uniform(.5, 1.5, w.shape) if "variance" in w.path else r.standard_normal(w.shape) * .4)
        start = "" if name == "attention" else "sequential/"
        for w in model.weights:
            assert w.path.startswith(start), w.path
            out[f"{name}.{w.path[len(start):]}"] = np.ascontiguousarray(w.numpy())
        out[f"{name}.in"], out[f"{name}.out"] = x, np.ascontiguousarray(model(x, training=False).numpy())
    return out


def drawn(count, seed):
    """The digits that examples/digits.h draws."""
    with tempfile.TemporaryDirectory() as t:
        with open(t + "/draw.c", "w") as f:
            f.write('#include "digits.h"\nint main(void) { digits d; if (!digits_draw(&d, %d, %d)) return 1;'
                    'fwrite(d.pixels, 784, %d, stdout); for (int i = 0; i < %d; i++) putchar(d.labels[i]); return 0; }' % (count, seed, count, count))
        subprocess.run(["cc", "-O2", "-I", EXAMPLES, t + "/draw.c", "-o", t + "/draw", "-lm"], check=True)
        b = np.frombuffer(subprocess.run([t + "/draw"], check=True, capture_output=True).stdout, np.uint8)
    return b[:count * 784].reshape(count, 1, 28, 28).astype("float32") / 255, b[count * 784:].astype("int64")


def transfer():
    """A digit model trained by PyTorch, saved as people save them: state_dict(), in half precision."""
    import torch
    from torch import nn
    torch.manual_seed(3)
    torch.set_num_threads(1)
    x, y = map(torch.from_numpy, drawn(8000, 1))
    tx, ty = map(torch.from_numpy, drawn(1000, 2))

    class Digits(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, stride=2), nn.Conv2d(6, 8, 3, stride=2)
            self.fc1, self.fc2 = nn.Linear(8 * 5 * 5, 16), nn.Linear(16, 10)
        def forward(self, x):
            x = self.conv2(self.conv1(x).relu()).relu()
            return self.fc2(self.fc1(x.flatten(1)).relu())
    model = Digits()
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(8):
        for rows in torch.randperm(len(x)).split(64):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            adam.zero_grad(); loss.backward(); adam.step()
    model.half().float()
    right = (model(tx).argmax(1) == ty).float().mean().item()
    print(f"held out: {right:.3f}")
    return {k: v.half().numpy() for k, v in model.state_dict().items()}, {"format": "pt", "accuracy": f"{right:.3f}"}


def save(path, tensors, metadata=None):
    from safetensors.numpy import save_file
    save_file(tensors, path, metadata)
    print(f"{path}: {len(tensors)} tensors, {os.path.getsize(path)} bytes")


def main(what):
    if what == "all":
        for each in ("torch", "keras", "transfer"): subprocess.run([sys.executable, __file__, each], check=True)
    elif what == "transfer": save(os.path.normpath(os.path.join(EXAMPLES, "transfer.safetensors")), *transfer())
    else: save(os.path.join(HERE, f"{what}.safetensors"), {"torch": torch_models, "keras": keras_models}[what]())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "all")
