"""Models that Keras 2 (tf_keras) saves in the format of TensorFlow."""
from __future__ import annotations

import numpy as np
import tensorflow as tf
import tf_keras
from tf_keras import layers

from catalogue import Record, model
from steps import BFLOAT16
from zoo.saving import SERVING, drawn, floats


def saved(network: tf_keras.Model, folder: str, random: np.random.Generator) -> None:
    """Saves a network with seeded weights that are not the initial ones."""
    for variable in network.variables:
        if variable.dtype.is_floating:
            value = random.normal(0, 0.3 if len(variable.shape) > 1 else 0.1, variable.shape)
            variable.assign(np.abs(value) + 0.5 if "variance" in variable.name else value)
    network.save(folder, save_format="tf")


@model(quick=True)
def tf_keras_lstm(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """Its functions are interchangeable with those of another LSTM of the process that has the same names."""
    x = layers.Input((6, 8), name="x")
    saved(tf_keras.Model(x, layers.Dense(4)(layers.LSTM(12)(x))), folder, random)
    return drawn(random, {"x": (2, 6, 8)})


@model()
def tf_keras_recurrent(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = layers.Input((8, 12), name="x")
    y = layers.LSTM(24, return_sequences=True)(layers.Masking()(x))
    y = layers.SimpleRNN(12)(layers.Bidirectional(layers.GRU(16, return_sequences=True, reset_after=False))(y))
    saved(tf_keras.Model(x, layers.Dense(4)(y)), folder, random)
    return drawn(random, {"x": (2, 8, 12)})


@model()
def tf_keras_lstm_and_gru(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = layers.Input((6, 8), name="x")
    y = layers.Bidirectional(layers.LSTM(12, return_sequences=True))(x)
    y = layers.LSTM(12, return_sequences=True)(layers.GRU(12, return_sequences=True)(y))
    saved(tf_keras.Model(x, layers.Dense(4)(layers.GRU(8)(y))), folder, random)
    return drawn(random, {"x": (2, 6, 8)})


@model()
def tf_keras_sequential(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    network = tf_keras.Sequential([layers.Input((28,), name="x"), layers.Dense(32, activation="swish"), layers.Dropout(0.3),
                                   layers.Dense(10, activation="softmax")])
    network.compile("adam", "categorical_crossentropy")
    network.fit(floats(random, 8, 28), np.eye(10, dtype=np.float32)[:8], verbose=0)
    network.save(folder, save_format="tf")
    return drawn(random, {"x": (2, 28)})


@model()
def tf_keras_mobile(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = layers.Input((16, 16, 3), name="image")
    y = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)))
    y = layers.ReLU(6.0)(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    z = layers.BatchNormalization()(layers.Conv2D(8, 1, use_bias=False)(y))
    y = layers.SeparableConv2D(16, 3, activation="relu")(layers.Add()([y, z]))
    saved(tf_keras.Model(x, layers.Dense(5)(layers.GlobalAveragePooling2D()(layers.ZeroPadding2D()(y)))), folder, random)
    return drawn(random, {"image": (1, 16, 16, 3)})


@model()
def tf_keras_attention(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = layers.Input((6, 16), name="x")
    y = layers.LayerNormalization()(layers.MultiHeadAttention(2, 8)(x, x) + x)
    saved(tf_keras.Model(x, layers.Dense(3)(layers.GlobalAveragePooling1D()(layers.Attention()([y, y])))), folder, random)
    return drawn(random, {"x": (2, 6, 16)})


@model()
def tf_keras_generator(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = layers.Input((16,), name="noise")
    y = layers.Reshape((4, 4, 8))(layers.Dense(128, activation="relu")(x))
    y = layers.LeakyReLU(0.2)(layers.BatchNormalization()(layers.Conv2DTranspose(8, 4, strides=2, padding="same")(y)))
    y = layers.Conv2D(3, 3, padding="same", activation="tanh")(layers.UpSampling2D(interpolation="bilinear")(y))
    saved(tf_keras.Model(x, y), folder, random)
    return drawn(random, {"noise": (1, 16)})


@model(bound=BFLOAT16)
def tf_keras_mixed_bfloat16(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    x = layers.Input((8, 8, 3), name="x")
    y = layers.Conv2D(8, 3, activation="relu", dtype="mixed_bfloat16")(x)
    saved(tf_keras.Model(x, layers.Dense(4, dtype="float32")(layers.Flatten(dtype="mixed_bfloat16")(y))), folder, random)
    return drawn(random, {"x": (2, 8, 8, 3)})


@model()
def tf_keras_text(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    text = layers.Input((1,), dtype=tf.string, name="text")
    words = layers.TextVectorization(vocabulary=["the", "cat", "sat", "mat"], output_sequence_length=5)(text)
    y = layers.Bidirectional(layers.LSTM(8))(layers.Embedding(8, 16, mask_zero=True)(words))
    saved(tf_keras.Model(text, layers.Dense(2)(y)), folder, random)
    return {SERVING: [{"text": np.array([[line]], dtype=object)} for line in (b"The cat sat.", b"mat", b"the mat!", b"dog")]}


class Shared(tf_keras.Model):
    """A subclassed model: layers used twice, a dict of outputs, a nested call."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = tf_keras.Sequential([layers.Dense(16, activation="gelu"), layers.Dense(8)])
        self.head = layers.Dense(1, activation="sigmoid")

    def call(self, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        left, right = self.encoder(inputs["left"]), self.encoder(inputs["right"])
        return {"distance": tf.norm(left - right, axis=-1), "same": self.head(left * right)}


@model()
def tf_keras_siamese(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    network = Shared()
    network({"left": tf.ones([1, 12]), "right": tf.ones([1, 12])})
    saved(network, folder, random)
    return drawn(random, {"left": (2, 12), "right": (2, 12)})


@model(refuses={"convert/batching": "has 12 rows for a request of 13"})
def tf_keras_ragged(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """Its inputs are values and row splits, and the layer takes what both make dense together with the splits."""
    tokens = layers.Input((None,), dtype="int32", ragged=True, name="tokens")
    y = layers.LSTM(6)(layers.Embedding(20, 8)(tokens))
    saved(tf_keras.Model(tokens, layers.Dense(3)(layers.Dense(8, activation="relu")(y))), folder, random)
    return {SERVING: [{"args_0": random.integers(0, 20, 5).astype(np.int32), "args_0_1": np.array([0, middle, 5], np.int64)}
                      for middle in range(1, 5)]}
