"""Networks of tests/tpu/compiler/networks.tsv, whose costs tpu_costs.py asks of the TPU compiler. A network is a line: the sizes of its
input without the batch, and its layers:
  cK.N.S  convolution K × K with N outputs and stride S, bias, Relu      dK.S  the same, depthwise
  +I      the layer before is added to the output of layer I, Relu       m     mean over the image
  fN      dense layer with N outputs, bias, Relu"""
from __future__ import annotations

from keras import Input, Model
from keras import layers as kl


def networks() -> dict[str, str]:
    found = {
        "mlp_small": "64 f64 f64 f10", "mlp_640": "640 f128 f128 f8 f128 f128 f640", "mlp_wide": "784 f1024 f1024 f10", "mlp_deep": "256 f256 f256 f256 f256 f256 f256 f10",
        "lenet": "28x28x1 c5.8.2 c5.16.2 m f64 f10", "glyphs": "28x28x1 c3.16.1 c3.16.2 c3.32.1 c3.32.2 m f10",
        "plain8": "32x32x3 c3.16.1 c3.16.1 c3.32.2 c3.32.1 c3.64.2 c3.64.1 m f10",
        "resnet8": "32x32x3 c3.16.1 c3.16.1 c3.16.1 +1 c3.32.2 c3.32.1 +5 c3.64.2 c3.64.1 +8 m f10",
        "resnet14": "32x32x3 c3.32.1 c3.32.1 c3.32.1 +1 c3.32.1 c3.32.1 +4 c3.64.2 c3.64.1 c3.64.1 +8 m f10",
        "kws": "49x10x1 c3.64.2 d3.1 c1.64.1 d3.1 c1.64.1 d3.1 c1.64.1 m f12",
        "mobile_small": "96x96x3 c3.8.2 d3.1 c1.16.1 d3.2 c1.32.1 d3.1 c1.32.1 d3.2 c1.64.1 d3.1 c1.64.1 m f2",
        "mobile_wide": "56x56x64 d3.1 c1.128.1 d3.2 c1.256.1 d3.1 c1.256.1 m f100",
        "inverted": "28x28x32 c1.192.1 d3.1 c1.32.1 c1.192.1 d3.2 c1.64.1 m f10",
        "bottleneck": "14x14x256 c1.64.1 c3.64.1 c1.256.1 +0 c1.64.1 c3.64.1 c1.256.1 +4 m f10",
        "bottleneck_wide": "14x14x1024 c1.256.1 c3.256.1 c1.1024.1 +0 m f1000",
        "pointwise4": "14x14x256 c1.256.1 c1.256.1 c1.256.1 c1.256.1 m f10", "pointwise512": "14x14x512 c1.512.1 c1.512.1 m f10",
        "conv128": "28x28x128 c3.128.1 c3.128.1 m f10", "conv256": "14x14x256 c3.256.1 c3.256.1 c3.256.1 m f10", "conv512": "7x7x512 c3.512.1 c3.512.1 m f10",
        "conv64": "56x56x64 c3.64.1 c3.64.1 m f10", "stem": "64x64x3 c3.32.2 c3.64.2 c3.128.2 c3.256.2 m f10", "stem5": "64x64x3 c5.16.2 c5.32.2 c5.64.2 m f10",
        "audio": "96x64x1 c3.32.2 c3.64.2 c3.64.1 c3.128.2 m f50", "vgg_small": "32x32x3 c3.64.1 c3.64.1 c3.128.2 c3.128.1 c3.256.2 c3.256.1 m f256 f10",
        "residual128": "28x28x128 c3.128.1 c3.128.1 +0 c3.128.1 c3.128.1 +3 m f10",
    }
    return found


NETWORKS = networks()


def weighted(x, layer: str):  # noqa: ANN001, ANN201
    values = [int(value) for value in layer[1:].split(".")]
    if layer[0] == "f":
        return kl.Dense(values[0], activation="relu")(x)
    if layer[0] == "d":
        return kl.DepthwiseConv2D(values[0], strides=values[1], padding="same", activation="relu")(x)
    return kl.Conv2D(values[1], values[0], strides=values[2], padding="same", activation="relu")(x)


def network(text: str) -> Model:
    sizes, *layers = text.split()
    outputs = [Input([int(size) for size in sizes.split("x")])]
    for layer in layers:
        last = outputs[-1]
        if layer[0] == "+":
            outputs.append(kl.ReLU()(outputs[int(layer[1:])] + last))
        else:
            outputs.append(kl.GlobalAveragePooling2D()(last) if layer == "m" else weighted(last, layer))
    return Model(outputs[0], outputs[-1])
