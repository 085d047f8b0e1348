"""Models of tf.Module and tf.function."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from catalogue import Record, model
from zoo.saving import SERVING, drawn, floats, save

Spec = tf.TensorSpec


class Layers(tf.Module):
    """A module with variables w0, w1, … of the given shapes."""

    def __init__(self, random: np.random.Generator, *shapes: tuple[int, ...]) -> None:
        super().__init__()
        for index, shape in enumerate(shapes):
            setattr(self, f"w{index}", tf.Variable(random.normal(0, 0.3, shape).astype(np.float32), name=f"w{index}"))


def traced(function: Callable, *specs: tf.TensorSpec) -> Callable:
    return tf.function(function, input_signature=specs)


@model(quick=True)
def silu_and_custom_gradient(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (32, 32), (32, 8))

    @tf.custom_gradient
    def clipped(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return tf.clip_by_value(x, -1.0, 1.0), lambda dy: dy

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": clipped(tf.nn.silu(x @ module.w0)) @ module.w1}

    module.serve = traced(serve, Spec([None, 32], name="x"))
    save(module, folder, module.serve, module.serve)
    return drawn(random, {"x": (2, 32)})


@model(quick=True)
def lambda_function(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (32, 8))
    module.serve = traced(lambda x: {"y": tf.nn.relu(x @ module.w0)}, Spec([None, 32], name="x"))
    save(module, folder, module.serve, module.serve)
    return drawn(random, {"x": (2, 32)})


@model(quick=True)
def names_outside_ascii(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (32, 8))

    def übersicht(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": x @ module.w0}

    module.serve = traced(übersicht, Spec([None, 32], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (2, 32)})


@model(quick=True)
def aliased_function_that_ran(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    class Network(Layers):
        @tf.function(input_signature=[Spec([None, 32], name="x")])
        def network(self, x: tf.Tensor) -> tf.Tensor:
            return tf.nn.relu(x @ self.w0) @ self.w1

        @tf.function(input_signature=[Spec([None, 32], name="x")])
        def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"y": self.network(x)}

    module = Network(random, (32, 16), (16, 4))
    module.network(tf.ones([1, 32]))
    save(module, folder, module.serve, module.network)
    return drawn(random, {"x": (2, 32)})


@model(quick=True)
def control_flow(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (16, 16))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        for _ in tf.range(3):
            x = tf.tanh(x @ module.w0)
        return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - 1.0)}

    module.serve = traced(serve, Spec([None, 16], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (2, 16)})


@model(quick=True)
def many_inputs_and_outputs(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 8))

    def serve(**inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {f"output_{index}": inputs[f"arg{index}"] @ module.w0 + float(index) for index in range(12)}

    specs = {f"arg{index}": Spec([None, 8], name=f"arg{index}") for index in range(12)}
    module.serve = tf.function(serve).get_concrete_function(**specs)
    save(module, folder, module.serve)
    return drawn(random, {name: (1, 8) for name in specs})
