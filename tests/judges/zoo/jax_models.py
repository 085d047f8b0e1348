"""Models of JAX and flax: SavedModels of jax2tf, and the files of jax.export."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf

from catalogue import Record, model
from steps import BFLOAT16
from zoo.saving import EXPECTED, SERVING, drawn, floats

Spec = tf.TensorSpec
FIXED_BATCH = {"convert/batching": "whose dimension 0 is fixed"}


def saved(function: Callable, folder: str, shape: str, *specs: tf.TensorSpec, variables: object = None) -> None:
    """Saves `function(variables, *inputs)` by jax2tf, with the variables of JAX as variables of TensorFlow."""
    module = tf.Module()
    module.variables_of_jax = tf.nest.map_structure(tf.Variable, variables)
    converted = jax2tf.convert(function, polymorphic_shapes=[None, *[shape] * len(specs)])

    def serve(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": converted(module.variables_of_jax, *inputs)}

    module.serve = tf.function(serve, input_signature=specs, autograph=False)
    tf.saved_model.save(module, folder, signatures={SERVING: module.serve})


def exported(function: Callable, folder: str, *rows: list[np.ndarray]) -> dict[str, list[Record]]:
    """Writes the file of jax.export instead of a SavedModel; the expected outputs are JAX's."""
    shapes = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in rows[0]]
    Path(folder).write_bytes(jax.export.export(jax.jit(function))(*shapes).serialize())
    inputs = [{f"arg{index}": value for index, value in enumerate(values)} for values in rows]
    outputs = [jax.tree.leaves(function(*values)) for values in rows]
    expected = [{f"output_{index}": np.asarray(value) for index, value in enumerate(values)} for values in outputs]
    return {SERVING: inputs, EXPECTED: expected}


@model()
def jax2tf_dense(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    weights = {"w": floats(random, 32, 16), "b": floats(random, 16), "v": floats(random, 16, 4)}

    def network(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jax.nn.silu(x @ weights["w"] + weights["b"]) @ weights["v"]

    saved(network, folder, "(b, ...)", Spec([None, 32], name="x"), variables=weights)
    return drawn(random, {"x": (2, 32)})


class Convolutional(nn.Module):
    """A small network of images with batch normalization."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(16, (3, 3), strides=2)(x)))
        x = nn.relu(nn.Conv(16, (3, 3), feature_group_count=16)(x))
        x = nn.relu(nn.ConvTranspose(8, (2, 2), strides=(2, 2))(x))
        return nn.Dense(5)(x.mean((1, 2)))


@model()
def flax_images(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    network = Convolutional()
    variables = network.init(jax.random.key(1), jnp.ones((1, 16, 16, 3)))
    saved(network.apply, folder, "(b, ...)", Spec([None, 16, 16, 3], name="image"), variables=jax.tree.map(np.asarray, variables))
    return drawn(random, {"image": (1, 16, 16, 3)})


class Transformer(nn.Module):
    """One block with attention."""

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = nn.Embed(20, 16)(tokens)
        x = x + nn.MultiHeadDotProductAttention(2, qkv_features=16)(nn.LayerNorm()(x))
        return nn.Dense(20)(x + nn.Dense(16)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x)))))


@model()
def flax_transformer(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    network = Transformer()
    variables = network.init(jax.random.key(1), jnp.zeros((1, 6), jnp.int32))
    saved(network.apply, folder, "(b, ...)", Spec([None, 6], tf.int32, name="tokens"), variables=jax.tree.map(np.asarray, variables))
    return {SERVING: [{"tokens": random.integers(0, 20, (2, 6)).astype(np.int32)} for _ in range(4)]}


@model(refuses={"quantize/*-variables": "its weight is computed from a kept variable"})
def flax_lstm(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    network = nn.RNN(nn.OptimizedLSTMCell(12))
    variables = network.init(jax.random.key(1), jnp.ones((1, 6, 8)))
    saved(network.apply, folder, "(b, ...)", Spec([None, 6, 8], name="x"), variables=jax.tree.map(np.asarray, variables))
    return drawn(random, {"x": (2, 6, 8)})


@model(bound=BFLOAT16)
def jax2tf_bfloat16(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    weights = {"w": floats(random, 32, 16), "v": floats(random, 16, 4)}

    def network(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        hidden = jax.nn.relu(x.astype(jnp.bfloat16) @ weights["w"].astype(jnp.bfloat16))
        return (hidden @ weights["v"].astype(jnp.bfloat16)).astype(jnp.float32)

    saved(network, folder, "(b, ...)", Spec([None, 32], name="x"), variables=weights)
    return drawn(random, {"x": (2, 32)})


@model(refuses=FIXED_BATCH)
def jax_export_many_arguments(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    weights = floats(random, 8, 8)
    return exported(lambda *xs: tuple(x @ weights + float(index) for index, x in enumerate(xs)), folder,
                    *[[floats(random, 2, 8) for _ in range(12)] for _ in range(3)])


@model(refuses=FIXED_BATCH)
def jax_export_control_flow(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    weights = floats(random, 8, 8) * 0.3

    def network(x: jax.Array) -> jax.Array:
        y, _ = jax.lax.scan(lambda y, row: (jnp.tanh(y @ weights + row), None), jnp.zeros((2, 8)), x)
        return jax.lax.cond(y.sum() > 0, lambda y: jax.nn.softmax(y), lambda y: jnp.sort(y, axis=-1), y)

    return exported(network, folder, *[[floats(random, 4, 2, 8)] for _ in range(3)])


@model(refuses=FIXED_BATCH)
def jax_export_int4(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    weights = jnp.asarray(random.integers(-8, 8, (32, 8)), jnp.int4)
    return exported(lambda x: x @ (weights.astype(jnp.float32) * 0.1), folder, *[[floats(random, 2, 32)] for _ in range(3)])
