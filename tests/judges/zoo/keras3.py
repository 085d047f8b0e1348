"""Models that Keras 3 exports: Model.export, ExportArchive, and tf.saved_model.save of a model."""
from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from catalogue import Record, model
from steps import BFLOAT16, FLOAT8
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


# Weights of float8 stay what they are in a float model (convert/passes/fold_constants.c).
@model(bound=FLOAT8, refuses={"quantize/*-variables": "its weight is computed from a kept variable"})
def keras3_float8(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((64,), name="x")
    network = keras.Model(x, layers.Dense(8)(layers.Dense(32, activation="relu")(x)))
    network.quantize("float8")
    network.export(folder, verbose=False)
    return drawn(random, {"x": (2, 64)})


@model(refuses={"quantize/*-uniform": "only float32, bfloat16 and half ops are quantized",
                "convert/int8": "only float32, bfloat16 and half ops are quantized"})
def keras3_int8(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    tokens = keras.Input((6,), dtype="int32", name="tokens")
    y = layers.Flatten()(layers.Embedding(20, 16)(tokens))
    network = keras.Model(tokens, layers.Dense(8)(layers.Dense(32, activation="relu")(y)))
    network.quantize("int8")
    network.export(folder, verbose=False)
    return {SERVING: [{"tokens": random.integers(0, 20, (2, 6)).astype(np.int32)} for _ in range(4)]}


@model()
def keras3_transformer(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    tokens = keras.Input((6,), dtype="int32", name="tokens")
    x = layers.Embedding(20, 16, mask_zero=True)(tokens)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True)]))
    x = layers.Add()([x, layers.Dense(16)(layers.Dense(32, activation="gelu")(x))])
    export(keras.Model(tokens, layers.Dense(20)(layers.LayerNormalization()(x))), folder, random, (1,))
    return {SERVING: [{"tokens": random.integers(0, 20, (2, 6)).astype(np.int32)} for _ in range(4)]}


@model()
def keras3_saved_by_tensorflow(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((24,), name="x")
    network = keras.Model(x, layers.Dense(4)(layers.Dense(24, activation="swish")(x)))
    serve = tf.function(lambda x: {"y": network(x)}, input_signature=[tf.TensorSpec([None, 24], name="x")])
    tf.saved_model.save(network, folder, signatures={SERVING: serve})
    return drawn(random, {"x": (2, 24)})


@model()
def keras3_u_net(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((16, 16, 3), name="image")
    top = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    low = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(top))
    up = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(low)
    y = layers.Conv2D(2, 1, activation="sigmoid")(layers.Concatenate()([top, up]))
    return export(keras.Model(x, y), folder, random, (1, 16, 16, 3))


@model()
def keras3_separable_1d(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((20, 8), name="x")
    y = layers.SeparableConv1D(16, 3, padding="same", activation="elu")(x)
    y = layers.Conv1D(16, 3, dilation_rate=2, padding="causal", activation="relu")(y)
    y = layers.Dense(3)(layers.GlobalMaxPooling1D()(layers.AveragePooling1D(2)(y)))
    return export(keras.Model(x, y), folder, random, (2, 20, 8))


@model()
def keras3_volume(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((6, 8, 8, 2), name="volume")
    y = layers.MaxPooling3D()(layers.Conv3D(8, 3, padding="same", activation="relu")(x))
    y = layers.Conv3DTranspose(4, 2, strides=2)(y)
    return export(keras.Model(x, layers.Dense(3)(layers.GlobalAveragePooling3D()(y))), folder, random, (1, 6, 8, 8, 2))


@model()
def keras3_feature_preprocessing(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    color = keras.Input((1,), dtype="string", name="color")
    size = keras.Input((1,), name="size")
    year = keras.Input((1,), dtype="int64", name="year")
    looked_up = layers.StringLookup(vocabulary=["red", "green", "blue"], output_mode="one_hot")(color)
    normal = layers.Normalization(mean=3.0, variance=4.0)(size)
    years = layers.IntegerLookup(vocabulary=[1999, 2005, 2010], output_mode="multi_hot")(year)
    network = keras.Model([color, size, year], layers.Dense(4)(layers.Concatenate()([looked_up, normal, years])))
    network.export(folder, verbose=False)
    return {SERVING: [{"color": np.array([[color]], dtype=object), "size": floats(random, 1, 1), "year": np.array([[year]])}
                      for color, year in ((b"red", 1999), (b"blue", 2010), (b"else", 2005), (b"", 7))]}


@model()
def keras3_text_vectorization(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    text = keras.Input((1,), dtype="string", name="text")
    words = layers.TextVectorization(vocabulary=["the", "cat", "sat", "mat"], output_sequence_length=5)(text)
    network = keras.Model(text, layers.Dense(3)(layers.GlobalAveragePooling1D()(layers.Embedding(8, 16)(words))))
    network.export(folder, verbose=False)
    return {SERVING: [{"text": np.array([[line]], dtype=object)} for line in (b"The cat sat.", b"", b"a mat, the mat!", b"dog")]}


@model()
def keras3_resized_images(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((12, 10, 3), dtype="uint8", name="image")
    y = layers.Resizing(16, 16)(layers.Rescaling(1 / 127.5, offset=-1.0)(x))
    y = layers.Conv2D(8, 3, strides=2, activation="relu6")(y)
    export(keras.Model(x, layers.Dense(5)(layers.Flatten()(y))), folder, random, (1,))
    return {SERVING: [{"image": random.integers(0, 256, (1, 12, 10, 3)).astype(np.uint8)} for _ in range(4)]}


@model()
def keras3_normalizations(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((8, 8, 4), name="x")
    y = layers.GroupNormalization(2)(layers.Conv2D(8, 3, activation="leaky_relu")(x))
    y = layers.UnitNormalization()(layers.PReLU()(layers.Conv2D(8, 3, groups=2)(y)))
    y = layers.Dense(4, activation="softplus")(layers.RMSNormalization()(layers.Flatten()(y)))
    return export(keras.Model(x, y), folder, random, (2, 8, 8, 4))


@model()
def keras3_many_inputs(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    inputs = [keras.Input((4,), name=f"x{index}") for index in range(12)]
    outputs = [layers.Dense(2, activation="tanh")(x) for x in inputs]
    return export(keras.Model(inputs, [*outputs, layers.Concatenate()(inputs)]), folder, random, *[(2, 4)] * 12)


@model()
def keras3_named_outputs(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((16,), name="x")
    y = layers.EinsumDense("ab,bc->ac", output_shape=12, bias_axes="c", activation="mish")(x)
    return export(keras.Model(x, {"score": layers.Dense(1)(y), "class": layers.Softmax()(layers.Dense(3)(y))}), folder, random, (2, 16))


@model()
def keras3_one_pixel_images(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((4, 4, 8), name="x")
    y = layers.GlobalAveragePooling2D(keepdims=True)(layers.Conv2D(16, 3, padding="same", activation="hard_swish")(x))
    y = layers.Conv2D(16, 1, activation="sigmoid")(layers.Conv2D(4, 1, activation="relu")(y))
    return export(keras.Model(x, layers.Conv2D(1, 1)(layers.Multiply()([layers.Conv2D(16, 3, padding="same")(x), y]))), folder, random, (2, 4, 4, 8))


@model()
def keras3_recurrent_convolution(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((4, 6, 6, 2), name="x")
    y = layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True)(x)
    y = layers.TimeDistributed(layers.Dense(5, activation="relu"))(layers.TimeDistributed(layers.Flatten())(y))
    return export(keras.Model(x, layers.GRU(3, reset_after=False)(y)), folder, random, (1, 4, 6, 6, 2))


@model()
def keras3_stacked_recurrent(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((None, 6), name="x")
    y = layers.RNN([layers.LSTMCell(8), layers.GRUCell(8)], return_sequences=True)(layers.Masking()(x))
    return export(keras.Model(x, layers.Dense(2)(layers.SimpleRNN(6, go_backwards=True)(y))), folder, random, (2, 5, 6))


@model()
def keras3_dropout_and_noise(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((16,), name="x")
    y = layers.Dropout(0.5)(layers.GaussianNoise(0.1)(layers.Dense(32, activation="selu")(x)))
    return export(keras.Model(x, layers.Dense(4)(layers.AlphaDropout(0.2)(y))), folder, random, (2, 16))


@model()
def keras3_half(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((16,), name="x", dtype="float16")
    y = layers.Dense(32, activation="relu", dtype="float16")(x)
    export(keras.Model(x, layers.Dense(4, dtype="float32")(y)), folder, random, (2, 16))
    return {SERVING: [{"x": floats(random, 2, 16).astype(np.float16)} for _ in range(4)]}


@model()
def keras3_random_at_inference(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = keras.Input((16, 16, 3), name="image")
    y = layers.RandomFlip("horizontal", seed=5)(layers.RandomRotation(0.2, seed=4)(x, training=True), training=True)
    y = layers.GlobalAveragePooling2D()(layers.Conv2D(4, 3)(y))
    return export(keras.Model(x, layers.Dense(3)(layers.GaussianDropout(0.3, seed=6)(y, training=True))), folder, random, (1, 16, 16, 3))
