"""Models that Keras 3 exports: Model.export, ExportArchive, and tf.saved_model.save of a model."""
from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from catalogue import Record, model
from steps import BFLOAT16
from zoo.saving import SERVING, drawn, floats


def export(network: keras.Model, folder: str, random: np.random.Generator, *shapes: tuple[int, ...]) -> dict[str, list[Record]]:
    """Exports a network with seeded weights that are not the initial ones, and draws records of its inputs."""
    for variable in network.variables:
        if "float" in str(variable.dtype) and "seed" not in variable.path:
            value = random.normal(0, 0.3 if len(variable.shape) > 1 else 0.1, variable.shape)
            variable.assign(np.abs(value) + 0.5 if "variance" in variable.path else value)
    network.export(folder, verbose=False)
    return drawn(random, {tensor.name: shape for tensor, shape in zip(network.inputs, shapes, strict=True)})


@model(quick=True)
def keras3_dense(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((64,), name="x")
    y = layers.Dense(8, activation="softmax")(layers.Dense(32, activation="relu")(x))
    return export(keras.Model(x, y), folder, random, (2, 64))


@model(quick=True)
def keras3_image_network(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((16, 16, 3), name="image")
    y = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(x)))
    y = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    y = layers.Add()([y, layers.Conv2D(16, 1, activation="swish")(y)])
    y = layers.Dense(10)(layers.GlobalAveragePooling2D()(y))
    return export(keras.Model(x, y), folder, random, (1, 16, 16, 3))


@model(quick=True)
def keras3_export_archive(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((24,), name="x")
    network = keras.Model(x, layers.Dense(4)(layers.Dense(24, activation="silu")(x)))
    archive = keras.export.ExportArchive()
    archive.track(network)
    archive.add_endpoint("serve", network.call, [tf.TensorSpec([None, 24], name="x")])
    archive.add_endpoint("scaled", lambda x: network(2.0 * x), [tf.TensorSpec([None, 24], name="x")])
    archive.write_out(folder, verbose=False)
    rows = drawn(random, {"x": (2, 24)})[SERVING]
    return {SERVING: rows, "scaled": rows}


@model(quick=True)
def keras3_lstm(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((6, 8), name="x")
    y = layers.Bidirectional(layers.LSTM(12, return_sequences=True))(x)
    return export(keras.Model(x, layers.Dense(3)(layers.GRU(10)(y))), folder, random, (2, 6, 8))


@model(quick=True, bound=BFLOAT16)
def keras3_mixed_bfloat16(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((64,), name="x")
    y = layers.Dense(32, activation="relu", dtype="mixed_bfloat16")(x)
    return export(keras.Model(x, layers.Dense(8, dtype="float32")(y)), folder, random, (2, 64))


@model(quick=True)
def keras3_int4(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((64,), name="x")
    network = keras.Model(x, layers.Dense(8)(layers.Dense(32, activation="relu")(x)))
    network.quantize("int4")
    network.export(folder, verbose=False)
    return {SERVING: [{"x": floats(random, 2, 64)} for _ in range(4)]}
