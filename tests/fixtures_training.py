#!/usr/bin/env python3
"""Makes tests/fixtures/losses.txt and metrics.txt with Keras, in float64: fixtures_training.py [losses|metrics].

Losses: in 0 the labels, in 1 the predictions, out 0 one value an example, out 1 their mean, grad 1 the mean's gradient.
Metrics: in 0 the labels of each batch, in 1 its predictions, in 2 (where there is one) its weights, all stacked; out 0 the
result after each batch. fixtures.py says how a case is written."""
import os, sys
import numpy as np
from fixtures import POS, R, save, write_case

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", KERAS_BACKEND="tensorflow")
import keras
import tensorflow as tf


def draw(key, kind, shape):
    if kind == "any": return R(*shape).make(key)
    if kind == "positive": return POS(*shape).make(key)
    if kind == "unit": return R(*shape, lo=.01, hi=.99).make(key)
    if kind == "sides": return np.sign(R(*shape).make(key))
    if kind == "binary": return (np.sign(R(*shape).make(key)) + 1) / 2
    if kind == "simplex":
        x = POS(*shape).make(key)
        return x / x.sum(-1, keepdims=True)
    if kind == "one_hot": return np.eye(shape[-1])[draw(key, "classes", shape)]
    if kind == "classes":
        return (np.abs(R(*shape[:-1]).make(key)) * 100).astype("int32") % shape[-1]


LOSSES = [                                                      # ours, Keras's function, labels, predictions, options
    ("mean_squared_error", "mean_squared_error", "any", "any", {}), ("mean_absolute_error", "mean_absolute_error", "any", "any", {}),
    ("mean_absolute_percentage_error", "mean_absolute_percentage_error", "any", "any", {}),
    ("mean_squared_logarithmic_error", "mean_squared_logarithmic_error", "any", "any", {}),
    ("huber", "huber", "any", "any", {}), ("huber", "huber", "any", "any", dict(delta=.4)), ("log_cosh", "log_cosh", "any", "any", {}),
    ("poisson", "poisson", "positive", "positive", {}), ("kl_divergence", "kl_divergence", "simplex", "simplex", {}),
    ("hinge", "hinge", "sides", "any", {}), ("hinge", "hinge", "binary", "any", {}), ("squared_hinge", "squared_hinge", "sides", "any", {}),
    ("categorical_hinge", "categorical_hinge", "one_hot", "any", {}), ("cosine_similarity", "cosine_similarity", "any", "any", {}),
    ("dice", "dice", "binary", "unit", {}),
    ("binary_crossentropy", "binary_crossentropy", "binary", "any", {}), ("binary_crossentropy", "binary_crossentropy", "unit", "any", dict(label_smoothing=.1)),
    ("categorical_crossentropy", "categorical_crossentropy", "one_hot", "any", {}),
    ("categorical_crossentropy", "categorical_crossentropy", "simplex", "any", dict(label_smoothing=.2)),
    ("sparse_categorical_crossentropy", "sparse_categorical_crossentropy", "classes", "any", {}),
    ("binary_focal_crossentropy", "binary_focal_crossentropy", "binary", "any", {}),
    ("binary_focal_crossentropy", "binary_focal_crossentropy", "binary", "any", dict(gamma=1.5, alpha=.3, label_smoothing=.1)),
    ("categorical_focal_crossentropy", "categorical_focal_crossentropy", "one_hot", "any", {}),
    ("categorical_focal_crossentropy", "categorical_focal_crossentropy", "one_hot", "any", dict(gamma=3., alpha=.5, label_smoothing=.1)),
]


def losses():
    rows = ["# By Keras %s. Made by `tests/fixtures_training.py`, which says what the rows mean." % keras.__version__]

    def one(name, kind, y, p, options, **more):
        f = getattr(keras.losses, kind)
        if kind == "dice": more["axis"] = tuple(range(1, p.ndim))
        if "alpha" in options and kind.startswith("binary"): more["apply_class_balancing"] = True
        with tf.GradientTape() as tape:
            x = tf.constant(p)
            tape.watch(x)
            each = f(tf.constant(y), x, **options, **more)
            mean = tf.reduce_mean(each)
        write_case(rows, name, options, **{"in": [y, p], "out": [each.numpy(), mean.numpy()], "grad": [None, tape.gradient(mean, x).numpy()]})

    for i, (name, kind, labels, predictions, options) in enumerate(LOSSES):
        for label, shape in ("flat", (4, 3)), ("deep", (2, 3, 4)):
            key = "%s/%s%d" % (name, label, i)
            y, logits = draw(key + "y", labels, shape), "crossentropy" in kind
            one(key, kind, y, draw(key + "p", predictions, shape), options, **({"from_logits": True} if logits else {}))
            if logits:
                key = "%s_from_probabilities/%s%d" % (name, label, i)
                one(key, kind, y, draw(key, "unit" if kind.startswith("binary") else "simplex", shape), options)
    return rows


METRICS = [                                                     # ours, Keras's class, labels, predictions, options, shape of a batch
    ("binary_accuracy", "BinaryAccuracy", "binary", "unit", {}, (6, 1)), ("binary_accuracy", "BinaryAccuracy", "binary", "unit", dict(threshold=.655), (6, 3)),
    ("categorical_accuracy", "CategoricalAccuracy", "one_hot", "any", {}, (6, 4)),
    ("sparse_categorical_accuracy", "SparseCategoricalAccuracy", "classes", "any", {}, (6, 4)),
    ("sparse_categorical_accuracy", "SparseCategoricalAccuracy", "classes", "any", {}, (3, 2, 4)),
    ("top_k", "TopKCategoricalAccuracy", "one_hot", "any", dict(k=2), (6, 5)), ("top_k", "SparseTopKCategoricalAccuracy", "classes", "any", dict(k=3), (6, 7)),
    ("precision", "Precision", "binary", "unit", {}, (8,)), ("precision", "Precision", "binary", "unit", dict(thresholds=.305), (4, 2)),
    ("recall", "Recall", "binary", "unit", {}, (8,)), ("recall", "Recall", "binary", "unit", dict(thresholds=.305), (4, 2)),
    ("f1", "F1Score", "binary", "unit", dict(threshold=.5), (8, 1)),
    ("auc", "AUC", "binary", "unit", {}, (12,)), ("auc", "AUC", "binary", "unit", dict(num_thresholds=20), (12,)),
    ("auc", "AUC", "binary", "unit", dict(curve="PR"), (12,)),
    ("mean_squared_error", "MeanSquaredError", "any", "any", {}, (5, 2)), ("mean_absolute_error", "MeanAbsoluteError", "any", "any", {}, (5, 2)),
    ("root_mean_squared_error", "RootMeanSquaredError", "any", "any", {}, (5, 2)), ("r2", "R2Score", "any", "any", {}, (7, 1)),
    ("r2", "R2Score", "any", "any", {}, (7, 3)),
    ("mean_iou", "MeanIoU", "classes", "classes", dict(num_classes=4), (9, 4)),
]


def metrics():
    rows = ["# By Keras %s. Made by `tests/fixtures_training.py`, which says what the rows mean." % keras.__version__]
    for i, (name, kind, labels, predictions, options, shape) in enumerate(METRICS):
        for weighted in (False, True) if name != "mean_iou" else (False,):          # where Keras rounds weights to integers
            key = "%s/%s%d" % (name, "weighted" if weighted else "plain", i)
            m = getattr(keras.metrics, kind)(**options)
            ys, ps, ws, outs = [], [], [], []
            for b in range(3):
                y, p = draw("%sy%d" % (key, b), labels, shape), draw("%sp%d" % (key, b), predictions, shape)
                if name == "top_k": p = p.astype("float32")         # TensorFlow has no other
                # one weight a value: Keras gives precision's elements theirs by broadcasting the other way
                w = POS(*shape[:1]).make("%sw%d" % (key, b)) if weighted else None
                values = w if w is None or len(shape) == 1 or name not in ("precision", "recall") else np.broadcast_to(w[:, None], shape)
                if len(shape) == 3 and w is not None: values = np.broadcast_to(w[:, None], shape[:2])
                m.update_state(y, p, sample_weight=values)
                outs.append(np.float64(np.asarray(m.result()).reshape(-1)[0]))
                ys.append(y), ps.append(p), ws.append(w)
            attrs = {{"thresholds": "threshold", "num_classes": "classes", "num_thresholds": "thresholds"}.get(k, k): v for k, v in options.items()}
            write_case(rows, key, attrs, **{"in": [np.array(ys), np.array(ps)] + ([np.array(ws)] if weighted else []), "out": [np.array(outs)]})
    return rows


if __name__ == "__main__":
    keras.config.set_floatx("float64")
    for what, make in ("losses", losses), ("metrics", metrics):
        if what in sys.argv[1:] or len(sys.argv) == 1: save(make(), what + ".txt")
