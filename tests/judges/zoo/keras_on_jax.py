"""Models that Keras 3 exports with the backend JAX. The module needs a process of its own, with KERAS_BACKEND=jax."""
from __future__ import annotations

import numpy as np

from catalogue import Record, model
from zoo.keras3 import export, keras, layers


@model()
def keras_on_jax_dense(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((32,), name="x")
    y = layers.Dense(8)(layers.Dropout(0.5)(layers.Dense(32, activation="silu")(x)))
    return export(keras.Model(x, y), folder, random, (2, 32))


@model()
def keras_on_jax_batch_normalization(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((16, 16, 3), name="image")
    y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, strides=2)(x)))
    y = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3)(y)))
    return export(keras.Model(x, layers.Dense(4)(layers.Flatten()(y))), folder, random, (1, 16, 16, 3))


@model()
def keras_on_jax_recurrent(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((6, 8), name="x")
    y = layers.GRU(8)(layers.Bidirectional(layers.LSTM(12, return_sequences=True))(x))
    return export(keras.Model(x, layers.Dense(3)(y)), folder, random, (2, 6, 8))


@model()
def keras_on_jax_nested(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """Moving averages that are returned unchanged, of a network that is used twice."""
    inner = keras.Input((8,), name="inner")
    encoder = keras.Model(inner, layers.BatchNormalization()(layers.Dense(8)(inner)))
    a, b = keras.Input((8,), name="a"), keras.Input((8,), name="b")
    outputs = {"distance": encoder(a) - encoder(b), "score": layers.Dense(1)(encoder(a))}
    return export(keras.Model({"a": a, "b": b}, outputs), folder, random, (2, 8), (2, 8))


@model()
def keras_on_jax_attention_with_dropout(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """A seed that no layer draws from at inference."""
    x = keras.Input((5, 16), name="x")
    y = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8, dropout=0.3)(x, x))
    return export(keras.Model(x, layers.Dense(2)(layers.Dropout(0.2)(y))), folder, random, (2, 5, 16))


@model()
def keras_on_jax_recurrent_dropout(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """A seed that a layer advances at inference, too."""
    x = keras.Input((5, 8), name="x")
    y = layers.LSTM(8, dropout=0.2, recurrent_dropout=0.1)(x)
    return export(keras.Model(x, layers.Dense(2)(y)), folder, random, (2, 5, 8))
