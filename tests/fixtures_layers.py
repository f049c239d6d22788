#!/usr/bin/env python3
"""Makes tests/fixtures/layers.txt: what Keras's layers compute, forward and backward, in training and inference.

The rows are those of fixtures.py, and these besides: `text config` (our layer as eg_layer_from_config reads it), `weight`
(in Keras's order and shapes), `wgrad` (the gradients of the trainable ones for the upstreams `up`), `after` (the weights
after the call, where it changes them), `mask` (given with input 0), `outmask` (that of the output), `loss` (the sum of
the regularizers; `wgrad` has their gradients then). Computed in float64, written with the digits of float32.
"""
import json, os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"
import numpy as np
from fixtures import R, b, i32, save, write_case

CASES = []
ZERO = -0x7f5e                              # EG_ZERO: an output padding of 0 that was given
STEPS = b([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 1, 1, 0, 1]])          # ends early, is whole, has gaps


def wide(*shape):                          # as many different values as there are places
    w = max(2, int(np.prod(shape)) / 150)
    return R(*shape, lo=-w, hi=w)


def case(name, layer, config, *shapes, **options):
    """layer: of keras.layers, the function that makes Keras's; config: ours, "class" aside; shapes (or values) of the inputs."""
    CASES.append((name, layer, config, shapes, options))


def both(name, layer, config, *shapes, **options):
    """In inference and in training."""
    case(name, layer, config, *shapes, **options)
    case(name + "_training", layer, config, *shapes, training=1, **options)


# Fully connected, with every activation.
case("layer_dense/plain", lambda L: L.Dense(4), dict(units=4), (3, 5))
case("layer_dense/rank3_no_bias", lambda L: L.Dense(4, use_bias=False), dict(units=4, no_bias=True), (2, 3, 5))
case("layer_dense/rank4", lambda L: L.Dense(2, activation="relu"), dict(units=2, activation="relu"), (2, 2, 3, 5))
for a in "linear relu relu6 leaky_relu elu selu gelu silu mish softplus softsign tanh sigmoid hard_sigmoid softmax log_softmax exponential".split():
    case("layer_activation/" + a, lambda L, a=a: L.Activation(a), dict(activation=a), (3, 7))
case("layer_activation/gelu_tanh", lambda L: L.Lambda(lambda x: __import__("keras").activations.gelu(x, approximate=True)), dict(activation="gelu_tanh"), (3, 7))
case("layer_dense/softmax", lambda L: L.Dense(4, activation="softmax"), dict(units=4, activation="softmax"), (3, 5))
case("layer_leaky_relu/default", lambda L: L.LeakyReLU(), dict(), (3, 7))
case("layer_leaky_relu/slope", lambda L: L.LeakyReLU(.1), dict(rate=.1), (3, 7))


def regularized(L):
    import keras
    return L.Dense(3, kernel_regularizer=keras.regularizers.L1L2(.2, .3), bias_regularizer=keras.regularizers.L2(.5))


case("layer_losses/l1_l2", regularized, dict(units=3, kernel_l1=.2, kernel_l2=.3, bias_l2=.5), (2, 4), loss=1)

# Convolutions.
for label, k, c in (("valid", dict(), dict()), ("same", dict(padding="same"), dict(padding="same")),
                    ("strides", dict(strides=(2, 3), padding="same"), dict(strides=[2, 3], padding="same")),
                    ("dilations", dict(dilation_rate=2), dict(dilations=[2, 2])), ("relu_no_bias", dict(activation="relu", use_bias=False), dict(activation="relu", no_bias=True))):
    case("layer_conv2d/" + label, lambda L, k=k: L.Conv2D(3, 3, **k), dict(units=3, size=3, **c), (2, 6, 5, 2))
case("layer_conv2d/groups", lambda L: L.Conv2D(4, 2, groups=2), dict(units=4, size=2, groups=2), (2, 4, 4, 4))
case("layer_conv2d/window", lambda L: L.Conv2D(2, (2, 4), padding="same"), dict(units=2, kernel_size=[2, 4], padding="same"), (2, 5, 5, 2))
for label, k, c in (("valid", dict(), dict()), ("same_strides", dict(strides=2, padding="same"), dict(strides=[2, 0], padding="same")),
                    ("dilations", dict(dilation_rate=2), dict(dilations=[2, 0])), ("causal", dict(padding="causal"), dict(causal=True)),
                    ("causal_dilations", dict(padding="causal", dilation_rate=2, activation="tanh"), dict(causal=True, dilations=[2, 0], activation="tanh")),
                    ("causal_strides", dict(padding="causal", strides=2), dict(causal=True, strides=[2, 0])), ("groups", dict(groups=2), dict(groups=2))):
    case("layer_conv1d/" + label, lambda L, k=k: L.Conv1D(4, 3, **k), dict(units=4, size=3, **c), (2, 7, 2))
for label, k, c in (("valid", dict(), dict()), ("same", dict(padding="same"), dict(padding="same")), ("strides", dict(strides=2), dict(strides=[2, 0])),
                    ("same_strides", dict(strides=(2, 3), padding="same", activation="relu"), dict(strides=[2, 3], padding="same", activation="relu")),
                    ("wide_strides", dict(strides=4), dict(strides=[4, 0])), ("output_padding", dict(strides=2, output_padding=1), dict(strides=[2, 2], output_padding=[1, 1])),
                    ("same_output_padding", dict(strides=(2, 3), padding="same", output_padding=(1, 2)), dict(strides=[2, 3], padding="same", output_padding=[1, 2])),
                    ("same_without", dict(strides=(2, 3), padding="same", output_padding=0), dict(strides=[2, 3], padding="same", output_padding=[ZERO, ZERO])),
                    ("without", dict(strides=4, output_padding=0), dict(strides=[4, 0], output_padding=[ZERO, ZERO]))):
    case("layer_conv2d_transpose/" + label, lambda L, k=k: L.Conv2DTranspose(2, 3, **k), dict(units=2, size=3, **c), (2, 3, 4, 3))
for label, k, c in (("valid", dict(), dict()), ("same_strides", dict(strides=2, padding="same"), dict(strides=[2, 0], padding="same")),
                    ("wide_strides", dict(strides=5), dict(strides=[5, 0])),
                    ("same_output_padding", dict(strides=2, padding="same", output_padding=0), dict(strides=[2, 0], padding="same", output_padding=[ZERO, 0]))):
    case("layer_conv1d_transpose/" + label, lambda L, k=k: L.Conv1DTranspose(2, 3, **k), dict(units=2, size=3, **c), (2, 4, 3))
case("layer_conv2d_transpose/same_even_window", lambda L: L.Conv2DTranspose(2, (2, 4), strides=3, padding="same", output_padding=1),
     dict(units=2, kernel_size=[2, 4], strides=[3, 0], padding="same", output_padding=[1, 1]), (2, 3, 4, 3))
case("layer_depthwise_conv2d/valid", lambda L: L.DepthwiseConv2D(3), dict(size=3), (2, 5, 5, 3))
case("layer_depthwise_conv2d/multiplier", lambda L: L.DepthwiseConv2D(2, strides=2, padding="same", depth_multiplier=2, activation="tanh"),
     dict(size=2, strides=[2, 2], padding="same", depth_multiplier=2, activation="tanh"), (2, 5, 5, 2))
case("layer_separable_conv2d/valid", lambda L: L.SeparableConv2D(4, 3), dict(units=4, size=3), (2, 5, 5, 3))
case("layer_separable_conv2d/multiplier", lambda L: L.SeparableConv2D(3, (2, 3), strides=2, padding="same", depth_multiplier=2, activation="tanh", use_bias=False),
     dict(units=3, kernel_size=[2, 3], strides=[2, 2], padding="same", depth_multiplier=2, activation="tanh", no_bias=True), (2, 5, 5, 2))
case("layer_separable_conv2d/dilations", lambda L: L.SeparableConv2D(2, 2, dilation_rate=2), dict(units=2, size=2, dilations=[2, 2]), (2, 5, 5, 2))

# Pooling.
for kind in ("Max", "Average"):
    for label, k, c in (("default", dict(pool_size=2), dict()), ("same", dict(pool_size=2, padding="same"), dict(padding="same")), ("overlapping", dict(pool_size=3, strides=2), dict(pool_size=[3, 0], strides=[2, 0])),
                        ("same_overlapping", dict(pool_size=3, strides=2, padding="same"), dict(pool_size=[3, 0], strides=[2, 0], padding="same"))):
        case("layer_%s_pooling2d/%s" % (kind.lower(), label), lambda L, kind=kind, k=k: getattr(L, kind + "Pooling2D")(**k), c, (2, 5, 6, 2))
        case("layer_%s_pooling1d/%s" % (kind.lower(), label), lambda L, kind=kind, k=k: getattr(L, kind + "Pooling1D")(**k), c, (2, 7, 3))
    case("layer_%s_pooling2d/window" % kind.lower(), lambda L, kind=kind: getattr(L, kind + "Pooling2D")((1, 3)), dict(pool_size=[1, 3]), (2, 5, 6, 2))
    case("layer_global_%s_pooling2d/plain" % kind.lower(), lambda L, kind=kind: getattr(L, "Global%sPooling2D" % kind)(), dict(), (2, 3, 4, 5))
    case("layer_global_%s_pooling1d/plain" % kind.lower(), lambda L, kind=kind: getattr(L, "Global%sPooling1D" % kind)(), dict(), (2, 4, 5))
case("layer_global_average_pooling1d/mask", lambda L: L.GlobalAveragePooling1D(), dict(), (3, 5, 2), mask=STEPS)

# Shapes.
case("layer_flatten/rank4", lambda L: L.Flatten(), dict(), (2, 3, 4, 2))
case("layer_flatten/rank2", lambda L: L.Flatten(), dict(), (2, 3))
case("layer_reshape/plain", lambda L: L.Reshape((3, 4)), dict(target=[3, 4]), (2, 2, 6))
case("layer_reshape/free", lambda L: L.Reshape((-1, 2, 3)), dict(target=[-1, 2, 3]), (2, 12))
case("layer_permute/two", lambda L: L.Permute((2, 1)), dict(target=[2, 1]), (2, 3, 4))
case("layer_permute/three", lambda L: L.Permute((3, 1, 2)), dict(target=[3, 1, 2]), (2, 3, 4, 2))
case("layer_repeat_vector/three", lambda L: L.RepeatVector(3), dict(size=3), (2, 4))
case("layer_zero_padding1d/one", lambda L: L.ZeroPadding1D(2), dict(pads=[2]), (2, 3, 2))
case("layer_zero_padding1d/two", lambda L: L.ZeroPadding1D((1, 2)), dict(pads=[1, 2]), (2, 3, 2))
case("layer_zero_padding2d/one", lambda L: L.ZeroPadding2D(1), dict(pads=[1]), (2, 3, 2, 2))
case("layer_zero_padding2d/two", lambda L: L.ZeroPadding2D((1, 2)), dict(pads=[1, 2]), (2, 3, 2, 2))
case("layer_zero_padding2d/four", lambda L: L.ZeroPadding2D(((1, 0), (2, 3))), dict(pads=[1, 0, 2, 3]), (2, 3, 2, 2))
case("layer_up_sampling1d/three", lambda L: L.UpSampling1D(3), dict(size=3), (2, 3, 2))
case("layer_up_sampling2d/nearest", lambda L: L.UpSampling2D(2), dict(size=2), (2, 3, 2, 2))
case("layer_up_sampling2d/bilinear", lambda L: L.UpSampling2D(3, interpolation="bilinear"), dict(size=3, bilinear=True), (2, 3, 2, 2))

# Normalization.
both("layer_batch_normalization/rank2", lambda L: L.BatchNormalization(), dict(), (6, 3))
both("layer_batch_normalization/rank4", lambda L: L.BatchNormalization(momentum=.9, epsilon=.01), dict(momentum=.9, epsilon=.01), (2, 3, 4, 3))
both("layer_batch_normalization/axis1", lambda L: L.BatchNormalization(axis=1, center=False), dict(axis=1, no_center=True), (2, 3, 4, 3))
both("layer_batch_normalization/no_scale", lambda L: L.BatchNormalization(scale=False), dict(no_scale=True), (6, 3))
both("layer_batch_normalization/mask", lambda L: L.BatchNormalization(), dict(), (3, 5, 2), mask=STEPS)
case("layer_batch_normalization/frozen", lambda L: L.BatchNormalization(trainable=False), dict(frozen=True), (6, 3), training=1)
case("layer_layer_normalization/last", lambda L: L.LayerNormalization(), dict(), (3, 4, 5))
case("layer_layer_normalization/axis1", lambda L: L.LayerNormalization(axis=1, center=False), dict(axis=1, no_center=True), (3, 4, 5))
case("layer_layer_normalization/no_scale", lambda L: L.LayerNormalization(scale=False, epsilon=.1), dict(no_scale=True, epsilon=.1), (3, 4))
case("layer_rms_normalization/last", lambda L: L.RMSNormalization(), dict(), (3, 4, 5))
case("layer_rms_normalization/epsilon", lambda L: L.RMSNormalization(epsilon=.5), dict(epsilon=.5), (3, 4))
case("layer_group_normalization/groups", lambda L: L.GroupNormalization(2), dict(groups=2), (2, 3, 3, 4))
case("layer_group_normalization/instance", lambda L: L.GroupNormalization(-1), dict(groups=-1), (2, 3, 3, 4))
case("layer_group_normalization/one_rank3", lambda L: L.GroupNormalization(1, center=False, scale=False), dict(groups=1, no_center=True, no_scale=True), (2, 5, 6))
case("layer_group_normalization/axis1", lambda L: L.GroupNormalization(2, axis=1), dict(groups=2, axis=1), (2, 4, 3, 3))

# Embedding and masks.
case("layer_embedding/plain", lambda L: L.Embedding(7, 3), dict(count=7, units=3), i32([[1, 6, 1], [0, 3, 3]]))
case("layer_embedding/mask", lambda L: L.Embedding(7, 2, mask_zero=True), dict(count=7, units=2, mask_zero=True), i32([[1, 6, 0], [0, 3, 3]]))
case("layer_masking/zero", lambda L: L.Masking(), dict(), np.array([[[0., 0], [1, 0], [2, 3]], [[0, 4], [0, 0], [0, 0]]]))
case("layer_masking/value", lambda L: L.Masking(2.), dict(rate=2), np.array([[[0., 0], [2, 2], [2, 3]], [[0, 4], [2, 2], [0, 0]]]))

# Several inputs.
for kind in "Add Subtract Multiply Average Maximum Minimum".split():
    n = 2 if kind == "Subtract" else 3
    case("layer_merge_%s/same" % kind.lower(), lambda L, kind=kind: getattr(L, kind)(), dict(), *[(2, 3)] * n)
    case("layer_merge_%s/stretched" % kind.lower(), lambda L, kind=kind: getattr(L, kind)(), dict(), (2, 3, 4), (2, 1, 4))
case("layer_concatenate/last", lambda L: L.Concatenate(), dict(), (2, 3), (2, 1), (2, 4))
case("layer_concatenate/axis1", lambda L: L.Concatenate(axis=1), dict(axis=1), (2, 3, 2), (2, 1, 2))


def model(L):
    import keras
    return keras.Sequential([L.Conv2D(3, 2, activation="relu"), L.BatchNormalization(), L.MaxPooling2D(), L.Flatten(), L.Dense(4, activation="tanh"), L.Dense(2)])


def residual(L):
    import keras
    class Residual(keras.layers.Layer):
        def __init__(self): super().__init__(); self.f = L.Dense(4, activation="tanh")
        def call(self, x): return x + self.f(x)
    return Residual()


def layers(*list_): return [dict(c, part="l%d" % i, name="l%d" % i) for i, c in enumerate(list_)]
def kind(name, **k): return {"class": name, **k}


both("sequential_of/model", model, dict(layers=layers(kind("Conv2D", units=3, size=2, activation="relu"), kind("BatchNormalization"), kind("MaxPooling2D"), kind("Flatten"),
                                                      kind("Dense", units=4, activation="tanh"), kind("Dense", units=2))), (2, 5, 5, 2))
case("layer_residual/dense", residual, dict(layers=layers(kind("Dense", units=4, activation="tanh"))), (2, 3, 4))


def class_of(name, layer):
    if name.startswith("sequential"): return "Sequential"
    if name.startswith("layer_activation"): return "Activation"
    return type(layer).__name__


def make():
    import tensorflow as tf, keras
    keras.backend.set_floatx("float64")
    rows = ["# Reference values by Keras %s. Made by `tests/fixtures_layers.py`, which says what the rows mean." % keras.__version__]
    for name, maker, config, shapes, o in CASES:
        layer = maker(keras.layers)
        ins = [tf.constant(wide(*s).make("%s/in%d" % (name, i)) if isinstance(s, tuple) else s) for i, s in enumerate(shapes)]
        k = dict(training=True) if o.get("training") and ("normal" in name or "sequential" in name) else {}
        mask = tf.constant(o["mask"]) if "mask" in o else None

        def call():
            x = ins if len(ins) > 1 else ins[0]
            return layer(x, **k) if mask is None else layer(x, mask=mask, **k)
        call()
        for i, w in enumerate(layer.weights):
            values = R(*w.shape, lo=-1.2, hi=1.2).make("%s/weight%d" % (name, i))
            w.assign(np.abs(values) + .1 if "variance" in w.path else values)
        weights = [w.numpy() for w in layer.weights]
        with tf.GradientTape() as tape:
            for x in ins:
                if x.dtype.is_floating: tape.watch(x)
            y = call()
            up = wide(*y.shape).make(name + "/up")
            loss = sum(layer.losses) if o.get("loss") else None
            target = tf.reduce_sum(y * up) if loss is None else loss
        sources = [x for x in ins if x.dtype.is_floating] if loss is None else []
        grads = tape.gradient(target, sources + layer.trainable_weights)
        grads = [tf.convert_to_tensor(g).numpy() for g in grads]
        f32 = lambda list_: [np.asarray(x.numpy() if hasattr(x, "numpy") else x).astype(np.float32 if np.asarray(x).dtype == np.float64 else np.asarray(x).dtype) for x in list_]
        after = [w.numpy() for w in layer.weights]
        out_mask = getattr(y, "_keras_mask", None)
        if mask is not None and ("pooling" in name): out_mask = None
        write_case(rows, name, dict(config=json.dumps({"class": class_of(name, layer), "name": "layer", **config}, separators=(",", ":")), training=int(bool(o.get("training")))),
                   **{"in": f32(ins), "weight": f32(weights), "mask": [o.get("mask")], "out": f32([y]), "up": f32([up]), "grad": f32(grads[:len(sources)]), "wgrad": f32(grads[len(sources):]),
                      "loss": f32([loss]) if loss is not None else [], "outmask": [None if out_mask is None else np.asarray(out_mask)],
                      "after": f32(after) if any((a != w).any() for a, w in zip(after, weights)) else []})
    return rows


if __name__ == "__main__": save(make(), "layers.txt")
