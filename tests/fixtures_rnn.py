#!/usr/bin/env python3
"""Makes tests/fixtures/rnn.txt: what Keras's recurrent layers and attention compute, forward and backward.

The rows are those of fixtures.py, and these besides: `weight` (the layer's weights, in Keras's order and shapes), `wgrad`
(their gradients for the upstreams `up`), `state` (initial states passed in, with their gradients `sgrad`), `mask` (of the
steps; for attention: of query, key, value, and of all pairs). The outputs are the output and, where asked for, the
states or scores. Computed in float64, written with the digits of float32.
"""
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"
import numpy as np
from fixtures import R, b, save, write_case


def values(name, kind, i, shape):
    return R(*shape, lo=-1.2, hi=1.2).make("%s/%s%d" % (name, kind, i))


STEPS = b([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 1, 1, 0, 1]])          # ends early, is whole, has gaps and a gap at its start
CASES = []


def case(name, **options): CASES.append((name, options))


for op in ("simple_rnn", "lstm", "gru"):
    for label, options in (("last", {}), ("sequences", dict(return_sequences=1)), ("states", dict(return_sequences=1, return_state=1)),
                           ("last_state", dict(return_state=1)), ("no_bias", dict(no_bias=1)), ("backwards", dict(return_sequences=1, go_backwards=1)),
                           ("backwards_last", dict(go_backwards=1)), ("initial", dict(return_sequences=1, return_state=1, initial=1)),
                           ("mask", dict(mask=1)), ("mask_sequences", dict(mask=1, return_sequences=1, return_state=1)),
                           ("mask_initial", dict(mask=1, return_sequences=1, return_state=1, initial=1)),
                           ("mask_backwards", dict(mask=1, return_sequences=1, return_state=1, go_backwards=1)),
                           ("activation", dict(activation="softsign"))):
        case(op + "/" + label, **options)
        if op == "gru": case(op + "/before_" + label, reset_before=1, **options)
case("lstm/recurrent_activation", recurrent_activation="hard_sigmoid")
case("gru/recurrent_activation", recurrent_activation="hard_sigmoid", return_sequences=1)
case("lstm/one_step", steps=1, return_sequences=1)
for merge in ("concat", "sum", "mul", "ave"):
    case("bidirectional/lstm_" + merge, layer="lstm", merge=merge)
    case("bidirectional/gru_sequences_" + merge, layer="gru", merge=merge, return_sequences=1)
case("bidirectional/lstm_states", layer="lstm", merge="concat", return_sequences=1, return_state=1)
case("bidirectional/lstm_initial", layer="lstm", merge="sum", return_state=1, initial=1)
case("bidirectional/simple_rnn_mask", layer="simple_rnn", merge="concat", mask=1)
case("bidirectional/lstm_mask_sequences", layer="lstm", merge="concat", mask=1, return_sequences=1)
case("bidirectional/gru_mask_states", layer="gru", merge="ave", mask=1, return_sequences=1, return_state=1)

for label, options in (("self", {}), ("scores", dict(scores=1)), ("no_bias", dict(no_bias=1)), ("causal", dict(causal=1)), ("causal_scores", dict(causal=1, scores=1)),
                       ("cross", dict(cross=1)), ("three", dict(cross=2)), ("value_dim", dict(value_dim=5)), ("cross_causal", dict(cross=1, causal=1)),
                       ("query_mask", dict(query_mask=1)), ("query_mask_scores", dict(query_mask=1, scores=1)), ("value_mask", dict(cross=1, value_mask=1)),
                       ("key_mask", dict(cross=2, key_mask=1, scores=1)), ("all_masks", dict(cross=2, query_mask=1, key_mask=1, value_mask=1)),
                       ("pairs", dict(pair_mask=1)), ("pairs_causal", dict(pair_mask=1, causal=1, scores=1)), ("output_units", dict(output_units=3))):
    case("multi_head_attention/" + label, **options)


def make_recurrent(keras, op, o):
    names = dict(simple_rnn="SimpleRNN", lstm="LSTM", gru="GRU")
    k = dict(use_bias=not o.get("no_bias"), activation=o.get("activation", "tanh"),
             **{w: bool(o.get(w)) for w in ("return_sequences", "return_state", "go_backwards")})
    if op != "simple_rnn": k["recurrent_activation"] = o.get("recurrent_activation", "sigmoid")
    if op == "gru": k["reset_after"] = not o.get("reset_before")
    return getattr(keras.layers, names[op])(4, **k)


def make():
    import tensorflow as tf, keras
    keras.backend.set_floatx("float64")
    rows = ["# Reference values by Keras %s. Made by `tests/fixtures_rnn.py`, which says what the rows mean." % keras.__version__]

    for name, o in CASES:
        op = name.split("/")[0]
        attrs = dict(o, units=4)
        if op == "multi_head_attention":
            attrs = dict(o, heads=2, key_dim=3)
            layer = keras.layers.MultiHeadAttention(2, 3, value_dim=o.get("value_dim"), use_bias=not o.get("no_bias"), output_shape=o.get("output_units"))
            shapes = [(2, 4, 6), (2, 5, 7), (2, 5, 6)][:1 + o.get("cross", 0)]
            ins = [tf.constant(values(name, "in", i, s)) for i, s in enumerate(shapes)]      # query, value, key
            masks = dict(query_mask=b([[1, 1, 0, 1], [0, 1, 1, 1]]), key_mask=b([[1, 1, 0, 1, 1], [1, 0, 1, 1, 1]]), value_mask=b([[1, 1, 1, 1, 0], [1, 0, 0, 1, 1]]),
                         pair_mask=values(name, "mask", 3, (2, 4, 4)) > -.6)
            masks = {k: (m if o.get(k) else None) for k, m in masks.items()}
            states = []

            def call():
                q, v, k = (ins + ins[-1:] * 2)[:3]
                for x, m in zip((v, k, q), ("value_mask", "key_mask", "query_mask")):       # as Masking leaves them on what it makes
                    if masks[m] is not None: keras.src.backend.set_keras_mask(x, tf.constant(masks[m]))
                pairs = None if masks["pair_mask"] is None else tf.constant(masks["pair_mask"])
                # Keras has two ways; in the one with scores, a query that may look nowhere sees nothing (in the other, the mean of all).
                y = layer(q, v, k if len(ins) > 2 else None, attention_mask=pairs, return_attention_scores=True, use_causal_mask=bool(o.get("causal")))
                return y if o.get("scores") else y[0]
        else:
            inner = o.get("layer", op)
            layer = make_recurrent(keras, inner, o)
            n = 2 if inner == "lstm" else 1
            if op == "bidirectional": layer, n = keras.layers.Bidirectional(layer, merge_mode=o["merge"]), 2 * n
            ins = [tf.constant(values(name, "in", 0, (3, o.get("steps", 5), 3)))]
            states = [tf.constant(values(name, "state", i, (3, 4))) for i in range(n)] if o.get("initial") else []
            masks = dict(mask=STEPS if o.get("mask") else None)

            def call():
                k = dict(initial_state=states) if states else {}
                return layer(ins[0], mask=None if masks["mask"] is None else tf.constant(masks["mask"]), **k)
        call()
        for i, w in enumerate(layer.weights): w.assign(values(name, "weight", i, w.shape))
        with tf.GradientTape() as tape:
            for x in ins + states: tape.watch(x)
            outs = call()
            outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
            ups = [values(name, "up", i, y.shape) for i, y in enumerate(outs)]
            target = sum(tf.reduce_sum(y * u) for y, u in zip(outs, ups))
        grads = [g.numpy() for g in tape.gradient(target, ins + states + layer.trainable_weights, unconnected_gradients="zero")]
        a, c = len(ins), len(ins) + len(states)
        arrays = {"in": ins, "state": states, "weight": layer.weights, "out": outs, "up": ups, "grad": grads[:a], "sgrad": grads[a:c], "wgrad": grads[c:]}
        write_case(rows, name, attrs, mask=list(masks.values()), **{k: [np.asarray(x.numpy() if hasattr(x, "numpy") else x, np.float32) for x in v] for k, v in arrays.items()})
    return rows


if __name__ == "__main__": save(make(), "rnn.txt")
