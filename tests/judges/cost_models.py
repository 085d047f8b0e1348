"""Models of tests/tpu/compiler/models.tsv, whose costs tpu_costs.py asks of the TPU compiler. fit_costs.py fits the estimate to FITTED and
judges it by HELD_OUT, which it never sees."""
from __future__ import annotations

from keras import Input, Model
from keras import layers as kl


def normed(x, relu=True):  # noqa: ANN001, ANN201
    x = kl.BatchNormalization()(x)
    return kl.ReLU()(x) if relu else x


def conv(x, channels: int, size: int = 3, stride: int = 1):  # noqa: ANN001, ANN201
    return normed(kl.Conv2D(channels, size, strides=stride, padding="same", use_bias=False)(x))


def relu_conv(x, channels: int, stride: int = 1):  # noqa: ANN001, ANN201
    return kl.Conv2D(channels, 3, strides=stride, padding="same", activation="relu")(x)


def classified(i, x, classes: int, activation: str | None = None) -> Model:  # noqa: ANN001
    if len(x.shape) > 2:
        x = (kl.GlobalAveragePooling2D if len(x.shape) == 4 else kl.GlobalAveragePooling1D)()(x)
    return Model(i, kl.Dense(classes, activation=activation)(x))


def dense(size: int, *layers: int, classes: int, activation: str = "relu", last: str | None = None) -> Model:
    x = i = Input((size,))
    for n in layers:
        x = kl.Dense(n, activation=activation)(x)
    return classified(i, x, classes, last)


def residual(shape: tuple[int, ...], *blocks: tuple[int, int], first: int) -> Model:
    x = i = Input(shape)
    x = conv(x, first)
    for n, stride in blocks:
        y = conv(x, n, stride=stride)
        y = normed(kl.Conv2D(n, 3, padding="same", use_bias=False)(y), relu=False)
        x = kl.Conv2D(n, 1, strides=stride)(x) if stride > 1 else x
        x = kl.ReLU()(x + y)
    return classified(i, x, 10)


def separable(side: int, first: int, *blocks: tuple[int, int], classes: int) -> Model:
    x = i = Input((side, side, 3))
    x = conv(x, first, stride=2)
    for n, stride in blocks:
        x = normed(kl.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(x))
        x = conv(x, n, 1)
    return classified(i, x, classes)


def pooled(side: int, *channels: int, hidden: int) -> Model:
    x = i = Input((side, side, 3))
    for n in channels:
        x = kl.MaxPooling2D()(relu_conv(x, n))
    return classified(i, kl.Dense(hidden, activation="relu")(kl.Flatten()(x)), 10, "softmax")


def images() -> Model:
    x = i = Input((40, 40, 3))
    x = conv(conv(conv(x, 24), 24), 48, stride=2)
    return classified(i, relu_conv(kl.MaxPooling2D()(x), 96), 20, "softmax")


def encoder(i, x, blocks: int, heads: int, hidden: int, classes: int) -> Model:  # noqa: ANN001
    size = x.shape[-1]
    for _ in range(blocks):
        x = kl.LayerNormalization()(x + kl.MultiHeadAttention(heads, size // heads)(x, x))
        x = kl.LayerNormalization()(x + kl.Dense(size)(kl.Dense(hidden, activation="gelu")(x)))
    return classified(i, x, classes)


def values(length: int, size: int, *rest: int) -> Model:
    i = Input((length, size))
    return encoder(i, i, *rest)


def tokens(length: int, words: int, size: int, *rest: int) -> Model:
    i = Input((length,), dtype="int32")
    return encoder(i, kl.Embedding(words, size)(i), *rest)


def embedded(length: int, words: int, size: int, *layers: int, classes: int) -> Model:
    i = Input((length,), dtype="int32")
    x = kl.Flatten()(kl.Embedding(words, size)(i))
    for n in layers:
        x = kl.Dense(n, activation="relu")(x)
    return classified(i, x, classes)


def lines(length: int, channels: int, size: int, *layers: tuple[int, int]) -> Model:
    x = i = Input((length, channels))
    for n, stride in layers:
        x = kl.Conv1D(n, size, strides=stride, padding="same", activation="relu")(x)
    return classified(i, x, 6)


def recurrent(cell: type, steps: int, size: int, units: int, classes: int) -> Model:
    i = Input((steps, size))
    return classified(i, cell(units, unroll=True)(i), classes)


def enlarged(shape: tuple[int, ...], *channels: int, classes: int, transposed: bool = False) -> Model:
    """A U-Net: each level halves the image."""
    x = i = Input(shape)
    levels = []
    for k, n in enumerate(channels):
        x = relu_conv(x, n, 2 if k else 1)
        levels.append(x)
    for n, other in zip(reversed(channels[:-1]), reversed(levels[:-1]), strict=True):
        x = kl.Conv2DTranspose(n, 2, strides=2)(x) if transposed else kl.UpSampling2D()(x)
        x = relu_conv(kl.Concatenate()([x, other]), n)
    return Model(i, kl.Conv2D(classes, 1)(x))


def excited() -> Model:
    x = i = Input((16, 16, 8))
    x = conv(x, 32)
    s = kl.Conv2D(8, 1, activation="relu")(kl.GlobalAveragePooling2D(keepdims=True)(x))
    return classified(i, conv(x * kl.Conv2D(32, 1, activation="sigmoid")(s), 64, stride=2), 6)


FITTED = {
    "images": images,
    "separable": lambda: separable(32, 24, (48, 1), (96, 2), (96, 1), classes=8),
    "dense": lambda: dense(300, 512, 256, 128, classes=12),
    "dense_small": lambda: dense(96, 160, 160, 64, classes=7),
    "dense_gelu": lambda: dense(120, 256, 256, 128, classes=1, activation="gelu", last="sigmoid"),
    "transformer": lambda: values(32, 64, 2, 4, 256, 5),
    "transformer_tokens": lambda: tokens(24, 800, 96, 1, 4, 192, 4),
    "lstm": lambda: recurrent(kl.LSTM, 12, 32, 64, 6),
    "gru": lambda: recurrent(kl.GRU, 5, 24, 96, 4),
    "unet": lambda: enlarged((32, 32, 1), 16, 32, 64, classes=2),
    "unet_transposed": lambda: enlarged((12, 12, 4), 16, 32, classes=3, transposed=True),
    "residual": lambda: residual((28, 28, 3), (32, 1), (64, 2), (128, 2), first=32),
    "residual_small": lambda: residual((14, 14, 16), (32, 1), (64, 2), first=32),
    "lines": lambda: lines(128, 12, 5, (32, 2), (64, 2), (64, 2)),
    "pooled": lambda: pooled(16, 24, 48, hidden=64),
    "embedding": lambda: embedded(10, 300, 48, 64, classes=3),
    "excited": excited,
}
HELD_OUT = {
    "other_residual": lambda: residual((20, 20, 3), (24, 1), (40, 2), first=24),
    "other_separable": lambda: separable(24, 16, (32, 1), (64, 2), classes=5),
    "other_pooled": lambda: pooled(24, 16, 32, hidden=96),
    "other_dense": lambda: dense(200, 400, 400, classes=10),
    "other_dense_wide": lambda: dense(1024, 1536, 512, classes=100, last="softmax"),
    "other_dense_gelu": lambda: dense(60, 128, 128, 64, 64, classes=1, activation="gelu", last="sigmoid"),
    "other_transformer": lambda: values(20, 48, 1, 4, 96, 5),
    "other_transformer_wide": lambda: values(16, 256, 1, 4, 1024, 8),
    "other_tokens": lambda: tokens(16, 500, 64, 1, 2, 128, 4),
    "other_embedding": lambda: embedded(12, 2000, 32, 256, 128, classes=2),
    "other_lines": lambda: lines(64, 9, 3, (32, 1), (48, 2), (64, 2)),
    "other_unet": lambda: enlarged((16, 16, 3), 12, 24, classes=2),
    "other_lstm": lambda: recurrent(kl.LSTM, 8, 20, 48, 4),
    "other_gru": lambda: recurrent(kl.GRU, 6, 40, 64, 4),
}
