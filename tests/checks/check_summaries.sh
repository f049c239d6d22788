# Others read what we write: TensorBoard's own reader the event files, Python's zlib the pictures. Without Python and TensorBoard it is
# skipped. The program below writes; the script in Python says what must be there.
. tests/checks/check.sh
T=$TEST_TEMP
cat >"$T/write.c" <<'END'
#include "eager.h"
#include <stdio.h>
#include <string.h>
static bool picture(const char *folder, const char *name, eg_tensor *x) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    return eg_save_png(path, x);
}
int main(int argc, char **argv) {
    if (argc < 2) return 2;
    eg_summary_writer *w = eg_summary_writer_open(argv[1]);
    eg_summary_set_writer(w);
    eg_summary_every(100);
    for (int step = 1; step <= 1000; step++) {
        EG_SCOPE;
        eg_summary_set_step(step);
        eg_summary_scalar("loss", 1 - step / 1000.);
    }
    eg_summary_every(1);
    eg_summary_set_step(7);
    eg_summary_histogram("weights", eg_range(EG_FLOAT32, 0, 100, 1), .buckets = 10);
    eg_tensor *ramp = eg_reshape(eg_linspace(EG_FLOAT32, 0, 1, 24), EG_SHAPE(2, 3, 4, 1));
    eg_summary_image("ramps", ramp);
    eg_summary_text("note", "a *word*");
    eg_tensor *W = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(2, 3)), "W"), *x = eg_ones(EG_FLOAT32, EG_SHAPE(4, 2));
    eg_tape *tape = eg_tape_begin();
    eg_reduce_sum(eg_relu(eg_matmul(x, W)));
    eg_summary_graph(tape);
    eg_release(W);
    eg_summary_set_writer(NULL);
    eg_summary_writer_release(w);
    eg_seed(1);
    bool ok = true;
    for (int c = 1; c <= 4; c++) {
        char name[16];
        snprintf(name, sizeof name, "noise%d", c);
        ok = ok && picture(argv[1], name, eg_cast(eg_random_integers(EG_SHAPE(50, 31, c), 0, 256), EG_UINT8));
    }
    // runs, and matches of every length and distance: elements i (i / 64) mod 251
    eg_tensor *i = eg_range(EG_INT64, 0, 300 * 400, 1);
    ok = ok && picture(argv[1], "runs", eg_cast(eg_reshape(eg_mod(eg_floordiv(eg_mul(i, eg_floordiv(i, 64)), 4096), 251), EG_SHAPE(300, 400)), EG_UINT8));
    ok = ok && picture(argv[1], "flat", eg_zeros(EG_UINT8, EG_SHAPE(700, 900)));
    ok = ok && picture(argv[1], "ramps", eg_image_grid(ramp, 2));
    return ok && eg_error() == EG_OK ? 0 : 1;
}
END
cat >"$T/read.py" <<'END'
import glob, os, struct, sys, zlib
import numpy as np

folder = sys.argv[1]


def png(data):
    """A PNG file as an array (H, W, C); every checksum is looked at."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, []
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body, crc = data[at + 8:at + 8 + n], struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0]
        assert zlib.crc32(kind + body) == crc, kind
        chunks.append((kind, body))
        at += 12 + n
    assert [k for k, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    w, h, bits, colour, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    c = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    assert bits == 8 and rest == [0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[1][1]), np.uint8).reshape(h, 1 + w * c)
    out = np.zeros((h + 1, (w + 1) * c), int)              # a row above and a pixel on the left, both 0
    for y in range(h):
        line, above = out[y + 1], out[y]
        for x in range(w * c):
            left, up, corner = line[x], above[x + c], above[x]
            by = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            nearest = left if by[0] <= min(by[1:]) else up if by[1] <= by[2] else corner
            line[x + c] = (int(rows[y, 1 + x]) + (0, left, up, (left + up) // 2, nearest)[rows[y, 0]]) % 256
    return out[1:, c:].reshape(h, w, c).astype(np.uint8)


def pictures():
    for c in range(1, 5):
        x = png(open(folder + "/noise%d.png" % c, "rb").read())
        assert x.shape == (50, 31, c) and 100 < x.mean() < 155 and x.min() < 5 and x.max() > 250
    i = np.arange(300 * 400)
    np.testing.assert_array_equal(png(open(folder + "/runs.png", "rb").read())[:, :, 0], (i * (i // 64) // 4096 % 251).reshape(300, 400))
    flat = open(folder + "/flat.png", "rb").read()
    assert not png(flat).any() and len(flat) < 10000
    ramp = np.round(np.linspace(0, 1, 24) * 255).reshape(2, 3, 4)
    sheet = png(open(folder + "/ramps.png", "rb").read())[:, :, 0].astype(int)
    assert sheet.shape == (3, 9)
    assert abs(sheet - np.concatenate([ramp[0], np.zeros((3, 1)), ramp[1]], 1)).max() <= 1


def events():
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util
    a = EventAccumulator(folder, size_guidance={k: 0 for k in ("scalars", "histograms", "images", "tensors")})
    a.Reload()
    print(a.Tags())
    loss = a.Scalars("loss")
    assert [e.step for e in loss] == list(range(100, 1001, 100)), loss
    np.testing.assert_allclose([e.value for e in loss], 1 - np.arange(1, 11) / 10, atol=1e-7)
    assert abs(loss[0].value - .9) < 1e-7 and loss[0].wall_time > 1.6e9
    h, = a.Histograms("weights")
    v = h.histogram_value
    assert h.step == 7 and (v.min, v.max, v.num, v.sum, v.sum_squares) == (0, 99, 100, 4950, 328350), v
    np.testing.assert_allclose(v.bucket_limit, np.linspace(0, 99, 11)[1:])
    np.testing.assert_array_equal(v.bucket, np.histogram(np.arange(100), 10)[0])
    ramp = np.round(np.linspace(0, 1, 24) * 255).reshape(2, 3, 4)
    for i in range(2):
        e, = a.Images("ramps/%d" % i)
        assert (e.step, e.width, e.height) == (7, 4, 3)
        assert abs(png(e.encoded_image_string)[:, :, 0].astype(int) - ramp[i]).max() <= 1
    e, = a.Tensors("note")
    assert tensor_util.make_ndarray(e.tensor_proto).item() == b"a *word*" and e.step == 7
    assert a.SummaryMetadata("note").plugin_data.plugin_name == "text"
    g = {n.name: n for n in a.Graph().node}
    print(sorted(g))
    product = next(n for n in g.values() if n.op == "matmul")
    assert list(product.input) == ["W_0"] and list(g["W_0"].attr["_output_shapes"].list.shape[0].dim)[1].size == 3
    assert [d.size for d in product.attr["_output_shapes"].list.shape[0].dim] == [4, 3]
    assert list(next(n for n in g.values() if n.op == "relu").input) == [product.name]


{"pictures": pictures, "events": events}[sys.argv[2]]()
END
write() {
    $CC -std=c11 -O1 -I. "$T/write.c" "$B/plain/eager.o" -o "$T/write" $LIBS && "$T/write" "$T/out"
}
check summaries_are_written write
python_has() { [ -n "$PYTHON" ] && "$PYTHON" -c "import $1" 2>/dev/null; }
if python_has numpy; then check pictures_are_png "$PYTHON" "$T/read.py" "$T/out" pictures
else skip pictures_are_png "no Python with NumPy"; fi
if python_has tensorboard.backend.event_processing.event_accumulator; then check tensorboard_reads_events "$PYTHON" "$T/read.py" "$T/out" events
else skip tensorboard_reads_events "no Python with tensorboard"; fi
finish
