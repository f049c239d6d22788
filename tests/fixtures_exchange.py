#!/usr/bin/env python3
"""Writes tests/fixtures/exchange.txt, which tests/exchange.c includes: bytes that TensorFlow makes (a JPEG file, a tf.Example, a
TFRecord file). Run by `./build.sh fixtures exchange`; needs TensorFlow and NumPy. With a file's name it reads that TFRecord file of
tf.Examples with TensorFlow and prints what is in it."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def array(name, data):
    lines = [", ".join(str(b) for b in data[i:i + 32]) for i in range(0, len(data), 32)]
    return "static const unsigned char %s[] = {\n    %s};\n" % (name, ",\n    ".join(lines))


def picture():
    y, x = np.mgrid[0:12, 0:16]
    rgb = np.stack([x * 16, y * 20, np.full_like(x, 128)], -1).astype(np.uint8)
    return tf.io.encode_jpeg(rgb, quality=95, chroma_downsampling=False).numpy()


def example():
    feature = {
        "pixels": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes([1, 2, 3, 4, 5, 255])])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[-7])),
        "weights": tf.train.Feature(float_list=tf.train.FloatList(value=[.5, -1.5, 1e30])),
        "flags": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 0])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True)


def main():
    if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
        for record in tf.data.TFRecordDataset(sys.argv[1]):
            print(tf.train.Example.FromString(record.numpy()))
        return
    path = os.path.join(HERE, "fixtures", "exchange.txt")
    with open(path, "w") as f:
        f.write("// Made by tests/fixtures_exchange.py with TensorFlow %s.\n" % tf.__version__)
        f.write(array("picture_jpeg", picture()) + array("tf_example", example()))
    print("wrote", os.path.relpath(path))


main()
