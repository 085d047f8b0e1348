"""Single layers of tests/tpu/compiler/layers.tsv, whose costs tpu_costs.py asks of the TPU compiler: at least one of each kind that is
quantized, and some that are not, each between an argument and a result."""
from __future__ import annotations

from collections.abc import Callable

import keras
from keras import Input, Model
from keras import layers as kl


def layer(sizes: str, *layers: Callable, dtype: str = "float32") -> Callable[[], Model]:
    """A model of one input, with sizes as 28x28x3, and of one layer with what the compiler joins to it."""

    def made() -> Model:
        x = i = Input([int(size) for size in sizes.split("x")], dtype=dtype)
        for each in layers:
            x = each(x)
        return Model(i, x)

    return made


def conv(channels: int, size: int, stride: int = 1, **more: object) -> kl.Layer:
    return kl.Conv2D(channels, size, strides=stride, padding="same", activation="relu", **more)


def attention(heads: int, size: int) -> Callable:
    return lambda x: kl.MultiHeadAttention(heads, size)(x, x)


def cell(kind: type, units: int) -> Callable:
    """One step: the state is zero, and the compiler does not know it."""
    return lambda x: kind(units)(x[:, :units], [x[:, units : 2 * units]] * (2 if kind is kl.LSTMCell else 1))[0]


def excited(reduced: int) -> Callable:
    def made(x):  # noqa: ANN001, ANN202
        s = kl.Dense(reduced, activation="relu")(kl.GlobalAveragePooling2D(keepdims=True)(x))
        return x * kl.Dense(x.shape[-1], activation="sigmoid")(s)

    return made


def joined(channels: int) -> Callable:
    return lambda x: kl.Concatenate()([conv(channels, 1)(x), conv(channels, 3)(x)])


def added(channels: int, size: int) -> Callable:
    return lambda x: kl.ReLU()(x + kl.Conv2D(channels, size, padding="same")(x))


def split_product(x):  # noqa: ANN001, ANN201
    """Of two activations."""
    half = x.shape[-1] // 2
    return keras.ops.matmul(x[..., :half], keras.ops.transpose(x[..., half:], (0, 2, 1)))


LAYERS = {
    "conv1_14_512": layer("14x14x512", lambda x: conv(512, 1)(x)),
    "conv1_28_192": layer("28x28x64", lambda x: conv(192, 1)(x)),
    "conv1_7_160": layer("7x7x960", lambda x: conv(160, 1)(x)),
    "conv1_56_144": layer("56x56x24", lambda x: conv(144, 1)(x)),
    "conv1_28_256_strided": layer("28x28x128", lambda x: conv(256, 1, 2)(x)),
    "conv3_8_16": layer("8x8x16", lambda x: conv(16, 3)(x)),
    "conv3_32_16": layer("32x32x16", lambda x: conv(16, 3)(x)),
    "conv3_16_64": layer("16x16x64", lambda x: conv(64, 3)(x)),
    "conv3_28_128": layer("28x28x128", lambda x: conv(128, 3)(x)),
    "conv3_14_256": layer("14x14x256", lambda x: conv(256, 3)(x)),
    "conv3_56_32": layer("56x56x32", lambda x: conv(32, 3)(x)),
    "conv3_28_128_strided": layer("28x28x64", lambda x: conv(128, 3, 2)(x)),
    "conv3_64_3_strided": layer("64x64x3", lambda x: conv(32, 3, 2)(x)),
    "conv7_64_3_strided": layer("64x64x3", lambda x: conv(64, 7, 2)(x)),
    "conv5_28_1": layer("28x28x1", lambda x: conv(16, 5)(x)),
    "conv5_20_48": layer("20x20x48", lambda x: conv(48, 5)(x)),
    "conv7_14_64": layer("14x14x64", lambda x: conv(64, 7)(x)),
    "conv3_16_64_dilated": layer("16x16x64", lambda x: conv(64, 3, dilation_rate=2)(x)),
    "conv3_24_32_dilated": layer("24x24x32", lambda x: conv(32, 3, dilation_rate=4)(x)),
    "conv3_14_128_groups": layer("14x14x128", lambda x: conv(128, 3, groups=4)(x)),
    "conv3_14_256_groups": layer("14x14x256", lambda x: conv(256, 3, groups=32)(x)),
    "conv3_14_64_normed": layer("14x14x64", lambda x: kl.ReLU()(kl.BatchNormalization()(kl.Conv2D(64, 3, padding="same", use_bias=False)(x)))),
    "conv3_14_64_added": layer("14x14x64", added(64, 3)),
    "conv1_14_256_added": layer("14x14x256", added(256, 1)),
    "conv3_16_32_pooled": layer("16x16x32", lambda x: kl.MaxPooling2D()(conv(64, 3)(x))),
    "conv3_16_32_swish": layer("16x16x32", lambda x: kl.Conv2D(64, 3, padding="same", activation="silu")(x)),
    "conv_joined_14_64": layer("14x14x64", joined(64)),
    "depthwise3_28_128": layer("28x28x128", lambda x: kl.DepthwiseConv2D(3, padding="same", activation="relu")(x)),
    "depthwise3_40_48_strided": layer("40x40x48", lambda x: kl.DepthwiseConv2D(3, strides=2, padding="same", activation="relu")(x)),
    "depthwise5_14_240": layer("14x14x240", lambda x: kl.DepthwiseConv2D(5, padding="same", activation="relu")(x)),
    "separable3_16_128": layer("16x16x64", lambda x: kl.SeparableConv2D(128, 3, padding="same", activation="relu")(x)),
    "transposed2_14_32": layer("14x14x64", lambda x: kl.Conv2DTranspose(32, 2, strides=2)(x)),
    "transposed3_16_16": layer("16x16x32", lambda x: kl.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu")(x)),
    "transposed4_8_64": layer("8x8x128", lambda x: kl.Conv2DTranspose(64, 4, strides=2, padding="same")(x)),
    "enlarged3_14_32": layer("14x14x32", lambda x: conv(32, 3)(kl.UpSampling2D()(x))),
    "line3_128_64": layer("128x32", lambda x: kl.Conv1D(64, 3, padding="same", activation="relu")(x)),
    "line9_64_32_strided": layer("64x16", lambda x: kl.Conv1D(32, 9, strides=2, padding="same", activation="relu")(x)),
    "line2_96_48_dilated": layer("96x48", lambda x: kl.Conv1D(48, 2, dilation_rate=4, padding="causal", activation="relu")(x)),
    "space3_8_32": layer("8x8x8x16", lambda x: kl.Conv3D(32, 3, padding="same", activation="relu")(x)),
    "space3_16_2": layer("8x16x16x2", lambda x: kl.Conv3D(16, 3, padding="same", activation="relu")(x)),
    "dense_64": layer("64", lambda x: kl.Dense(64, activation="relu")(x)),
    "dense_256": layer("256", lambda x: kl.Dense(256, activation="relu")(x)),
    "dense_1024": layer("1024", lambda x: kl.Dense(1024, activation="relu")(x)),
    "dense_2048_512": layer("2048", lambda x: kl.Dense(512, activation="relu")(x)),
    "dense_640_128": layer("640", lambda x: kl.Dense(128, activation="relu")(x)),
    "dense_4096_1000_softmax": layer("4096", lambda x: kl.Dense(1000, activation="softmax")(x)),
    "dense_768_3072_gelu": layer("768", lambda x: kl.Dense(3072, activation="gelu")(x)),
    "dense_30_7": layer("30", lambda x: kl.Dense(7)(x)),
    "dense_rows_32_256": layer("32x256", lambda x: kl.Dense(1024, activation="relu")(x)),
    "dense_rows_128_64": layer("128x64", lambda x: kl.Dense(64)(x)),
    "dense_normed_64_256": layer("64x256", lambda x: kl.Dense(256)(kl.LayerNormalization()(x))),
    "dense_flat_7_64": layer("7x7x64", lambda x: kl.Dense(128, activation="relu")(kl.Flatten()(x))),
    "dense_mean_7_320": layer("7x7x320", lambda x: kl.Dense(100)(kl.GlobalAveragePooling2D()(x))),
    "einsum_heads_32_128": layer("32x128", lambda x: kl.EinsumDense("abc,cde->abde", (None, 4, 32), bias_axes="de")(x)),
    "product_64_64": layer("64x128", split_product),
    "attention_16_64": layer("16x64", attention(4, 16)),
    "attention_64_128": layer("64x128", attention(8, 16)),
    "embedding_16_64": layer("16", lambda x: kl.Embedding(1000, 64)(x), dtype="int32"),
    "embedding_dense_16_64": layer("16", lambda x: kl.Dense(64, activation="relu")(kl.Flatten()(kl.Embedding(1000, 32)(x))), dtype="int32"),
    "lstm_cell_64": layer("128", cell(kl.LSTMCell, 64)),
    "lstm_cell_256": layer("512", cell(kl.LSTMCell, 256)),
    "gru_cell_96": layer("192", cell(kl.GRUCell, 96)),
    "excited_16_32": layer("16x16x32", excited(8)),
    "excited_28_96": layer("28x28x96", excited(24)),
}
FLOAT_ONLY = {"depthwise3_28_128", "depthwise3_40_48_strided", "depthwise5_14_240", "product_64_64", "embedding_16_64"}     # nothing is quantized by default
