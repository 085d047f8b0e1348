"""Models of tf.Module and tf.function."""
from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from catalogue import Record, model
from zoo.saving import SERVING, drawn, floats, save

Spec = tf.TensorSpec
FLOAT_IN_DYNAMIC = {"quantize/dynamic-*": "method dynamic does not quantize this op by default"}


class Layers(tf.Module):
    """A module with variables w0, w1, … of the given shapes."""

    def __init__(self, random: np.random.Generator, *shapes: tuple[int, ...]) -> None:
        super().__init__()
        for index, shape in enumerate(shapes):
            setattr(self, f"w{index}", tf.Variable(random.normal(0, 0.3, shape).astype(np.float32), name=f"w{index}"))


def traced(function: Callable, *specs: tf.TensorSpec) -> Callable:
    return tf.function(function, input_signature=specs)


@model(quick=True)
def bundled_example(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """examples/glyphs, which tare wrote itself from weights."""
    shutil.copytree(Path(__file__).parents[3] / "examples/glyphs/saved_model", folder, dirs_exist_ok=True)
    return {SERVING: [{"image": random.random((1, 28, 28, 1), np.float32)} for _ in range(12)]}


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
def gradient_reversal(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """As in domain adaptation: the gradient is another one than that of what is computed."""
    module = Layers(random, (32, 32), (32, 8))

    @tf.custom_gradient
    def reverse(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return tf.identity(x), lambda dy: -3.0 * dy

    @tf.custom_gradient
    def weighted(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return tf.identity(x), lambda dy: dy * tf.exp(x)

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": reverse(weighted(x) @ module.w0) @ module.w1}

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


@model(quick=True, refuses={"convert/*batching": "the results of a request depend on the requests that are batched with it"})
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


@model()
def several_signatures(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """Signatures that share variables, one with a variable that the other does not use."""
    module = Layers(random, (16, 8), (8, 4), (16, 4))
    module.encode = traced(lambda x: {"code": tf.nn.relu(x @ module.w0)}, Spec([None, 16], name="x"))
    module.decode = traced(lambda code: {"y": code @ module.w1}, Spec([None, 8], name="code"))
    module.both = traced(lambda x: {"y": tf.nn.relu(x @ module.w0) @ module.w1 + x @ module.w2}, Spec([None, 16], name="x"))
    save(module, folder, {SERVING: module.both, "encode": module.encode, "decode": module.decode}, module.encode)
    rows = drawn(random, {"x": (2, 16)})[SERVING]
    return {SERVING: rows, "encode": rows, "decode": drawn(random, {"code": (2, 8)})[SERVING]}


@model(refuses={"quantize/static-uniform": "several of its input's axes are not known", **FLOAT_IN_DYNAMIC})
def einsum_attention(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (16, 2, 8), (16, 2, 8), (16, 2, 8), (2, 8, 16))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        q, k, v = (tf.einsum("btd,dhk->bthk", x, w) for w in (module.w0, module.w1, module.w2))
        weights = tf.nn.softmax(tf.einsum("bqhk,bthk->bhqt", q, k) / 2.8)
        return {"y": tf.einsum("bqhk,hkd->bqd", tf.einsum("bhqt,bthk->bqhk", weights, v), module.w3)}

    module.serve = traced(serve, Spec([None, None, 16], name="x"))
    save(module, folder, module.serve, module.serve)
    return drawn(random, {"x": (2, 5, 16)})


@model()
def layer_normalization_and_gelu(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (16, 32), (32, 16), (16,))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        y = (x - mean) * tf.math.rsqrt(variance + 1e-5) * module.w2
        return {"y": x + tf.nn.gelu(y @ module.w0) @ module.w1}

    module.serve = traced(serve, Spec([None, 16], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (3, 16)})


@model()
def convolutions_of_every_kind(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (3, 3, 4, 8), (3, 3, 4, 8), (3, 3, 8, 1), (1, 1, 8, 8), (2, 2, 6, 8), (8, 3))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        y = tf.nn.relu(tf.nn.conv2d(x, module.w0, 1, "SAME", dilations=2))
        y = tf.nn.relu(tf.nn.conv2d(y, module.w1, 1, [[0, 0], [1, 0], [0, 1], [0, 0]]))     # two groups
        y = tf.nn.depthwise_conv2d(y, module.w2, [1, 2, 2, 1], "SAME")
        y = tf.nn.conv2d(y, module.w3, 1, "VALID")
        y = tf.nn.conv2d_transpose(y, module.w4, [tf.shape(y)[0], 8, 8, 6], 2)
        return {"y": y, "z": tf.reduce_mean(tf.nn.avg_pool2d(tf.nn.elu(y), 2, 2, "SAME"), [1, 2]) @ tf.ones([6, 3])}

    module.serve = traced(serve, Spec([None, 8, 8, 4], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (1, 8, 8, 4)})


@model()
def one_pixel_convolution(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (3, 3, 16, 16), (1, 1, 16, 8))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, module.w0, 1, "SAME")), module.w1, 1, "VALID")}

    module.serve = traced(serve, Spec([None, 1, 1, 16], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (2, 1, 1, 16)})


@model(refuses={"convert/batching": "whose dimension 0 is fixed", **FLOAT_IN_DYNAMIC})
def products_of_activations(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (4, 8, 8), (8, 8))

    def serve(a: tf.Tensor, b: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.matmul(a, b, transpose_b=True), "z": tf.matmul(a, module.w0), "t": tf.matmul(module.w1, b, transpose_b=True)}

    module.serve = traced(serve, Spec([4, None, 8], name="a"), Spec([4, None, 8], name="b"))
    save(module, folder, module.serve)
    return drawn(random, {"a": (4, 3, 8), "b": (4, 5, 8)})


@model(quick=True, refuses={"convert/batching": "whose dimension 0 is fixed"})
def sparse_and_ragged_results(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (6, 4))

    def serve(x: tf.Tensor) -> dict[str, object]:
        return {"s": tf.sparse.from_dense(tf.nn.relu(x)), "y": x @ module.w0, "r": tf.RaggedTensor.from_tensor(x, lengths=[2, 3])}

    module.serve = traced(serve, Spec([2, 6], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (2, 6)})


@model()
def printing_and_asserting(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 4))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        tf.print("got", tf.shape(x), output_stream="file:///dev/null")
        tf.debugging.assert_greater(tf.shape(x)[0], 0)
        return {"y": tf.ensure_shape(x, [None, 8]) @ module.w0}

    module.serve = traced(serve, Spec([None, None], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (2, 8)})


@model(refuses={"convert/batching": "input 'which' is a scalar"})
def tensor_arrays_and_switch(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 8))

    def serve(x: tf.Tensor, which: tf.Tensor) -> dict[str, tf.Tensor]:
        steps = tf.TensorArray(tf.float32, 4)
        for index in tf.range(4):
            x = tf.tanh(x @ module.w0)
            steps = steps.write(index, x)
        branches = [lambda: x * 2.0, lambda: tf.nn.relu(x), lambda: tf.cumsum(x, -1)]
        return {"steps": steps.stack(), "y": tf.switch_case(which, branches)}

    module.serve = traced(serve, Spec([2, 8], name="x"), Spec([], tf.int32, name="which"))
    save(module, folder, module.serve)
    return {SERVING: [{"x": floats(random, 2, 8), "which": np.int32(index)} for index in range(4)]}


@model(quick=True, refuses={"convert/*": "shape"}, uncompiled="XLA requires loops whose shapes stay the same")
def loop_with_growing_shape(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 8))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        for _ in tf.range(3):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None, 8]))])
            x = tf.concat([x, x[:1] @ module.w0], 0)
        return {"y": x}

    module.serve = traced(serve, Spec([None, 8], name="x"))
    save(module, folder, module.serve, module.serve)
    return drawn(random, {"x": (2, 8)})


@model()
def integers_of_every_size(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (6, 4))

    def serve(ids: tf.Tensor, image: tf.Tensor) -> dict[str, tf.Tensor]:
        scaled = tf.cast(image, tf.float32) / 255.0
        bits = tf.bitwise.bitwise_xor(tf.cast(ids, tf.int32), 5)
        best = tf.math.top_k(scaled @ module.w0, 2)
        return {"bits": bits, "mod": tf.math.floormod(ids, 7), "top": best.values, "index": best.indices,
                "sorted": tf.sort(ids, direction="DESCENDING"), "where": scaled > 0.5, "byte": tf.cast(image // 2, tf.int8)}

    module.serve = traced(serve, Spec([None, 5], tf.int64, name="ids"), Spec([None, 6], tf.uint8, name="image"))
    save(module, folder, module.serve)
    return {SERVING: [{"ids": random.integers(-50, 50, (3, 5)), "image": random.integers(0, 256, (3, 6)).astype(np.uint8)} for _ in range(4)]}


@model(refuses={"quantize/*-variables": "is a variable that other ops read as well"})
def half_and_double(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 4))

    def serve(x: tf.Tensor, d: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"h": tf.cast(x, tf.float16) @ tf.cast(module.w0, tf.float16), "d": tf.exp(d) @ tf.cast(module.w0, tf.float64)}

    module.serve = traced(serve, Spec([None, 8], name="x"), Spec([None, 8], tf.float64, name="d"))
    save(module, folder, module.serve)
    return {SERVING: [{"x": floats(random, 2, 8), "d": random.normal(size=(2, 8))} for _ in range(4)]}


@model()
def bfloat16_input(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 4))
    module.serve = traced(lambda x: {"y": tf.cast(x, tf.float32) @ module.w0, "x": x}, Spec([None, 8], tf.bfloat16, name="x"))
    save(module, folder, module.serve)
    return {SERVING: [{"x": floats(random, 2, 8).astype(tf.bfloat16.as_numpy_dtype)} for _ in range(4)]}


@model(refuses={"convert/batching": "is a scalar, which cannot be split between requests"})
def nested_outputs_and_defaults(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    class Network(Layers):
        @tf.function(input_signature=[Spec([None, 8], name="x"), Spec([], name="scale")])
        def inner(self, x: tf.Tensor, scale: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
            return x @ self.w0 * scale, [x, tf.constant(3)]

        @tf.function(input_signature=[Spec([None, 8], name="x")])
        def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            y, (z, n) = self.inner(x, tf.constant(2.0))
            return {"b": y, "a": z, "n": n, "B": tf.nn.relu(y)}

    module = Network(random, (8, 4))
    save(module, folder, module.__call__)
    return drawn(random, {"x": (2, 8)})


@model()
def tied_and_sliced_weights(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """A table that is also the output layer, and a stack of weights that a loop indexes."""
    module = Layers(random, (20, 16), (3, 16, 16))

    def serve(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.gather(module.w0, ids)
        for index in tf.range(3):
            x = tf.nn.relu(x @ module.w1[index])
        return {"logits": tf.matmul(x, module.w0, transpose_b=True)}

    module.serve = traced(serve, Spec([None], tf.int32, name="ids"))
    save(module, folder, module.serve)
    return {SERVING: [{"ids": random.integers(0, 20, 4).astype(np.int32)} for _ in range(4)]}


@model(refuses={"convert/batching": "whose dimension 0 is fixed"})
def state_between_calls(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 8))
    module.state = tf.Variable(tf.zeros([1, 8]), trainable=False, name="state")

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        module.state.assign(tf.tanh(x @ module.w0 + module.state))
        return {"y": module.state.read_value()}

    module.serve = traced(serve, Spec([1, 8], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (1, 8)})


@model(refuses={"quantize/dynamic-uniform": "its function is compiled by XLA"})
def compiled_function(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (16, 16), (16, 4))
    module.network = tf.function(lambda x: tf.nn.relu(x @ module.w0) @ module.w1, input_signature=[Spec([None, 16])], jit_compile=True)
    module.serve = traced(lambda x: {"p": tf.nn.softmax(module.network(x)), "best": tf.argmax(module.network(x), -1)}, Spec([None, 16], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (2, 16)})


@model(refuses={"convert/batching": "whose dimension 0 is fixed"})
def seeded_random_numbers(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 4))

    def serve(x: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        noise = tf.random.stateless_normal(tf.shape(x), seed, alg="philox")     # others depend on the device
        return {"y": (x + 0.1 * noise) @ module.w0, "u": tf.random.stateless_uniform([4], seed, maxval=100, dtype=tf.int32, alg="philox")}

    module.serve = traced(serve, Spec([None, 8], name="x"), Spec([2], tf.int32, name="seed"))
    save(module, folder, module.serve)
    return {SERVING: [{"x": floats(random, 2, 8), "seed": np.array([1, index], np.int32)} for index in range(4)]}


@model(refuses={"quantize/static-uniform": "several of its input's axes are not known", **FLOAT_IN_DYNAMIC})
def frequencies(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (33, 8))

    def serve(wave: tf.Tensor) -> dict[str, tf.Tensor]:
        power = tf.abs(tf.signal.stft(wave, 64, 32)) ** 2
        return {"y": tf.math.log(power + 1e-3) @ module.w0, "c": tf.signal.fft(tf.cast(wave[:, :8], tf.complex64))}

    module.serve = traced(serve, Spec([None, 160], name="wave"))
    save(module, folder, module.serve)
    return drawn(random, {"wave": (1, 160)})


@model(refuses={"convert/batching": "has 4 rows according to the signature"})
def scans_over_time(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """An output whose first dimension is time."""
    module = Layers(random, (6, 6), (6, 3))

    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        hidden = tf.scan(lambda state, row: tf.tanh(row + state @ module.w0), tf.transpose(x, [1, 0, 2]), tf.zeros_like(x[:, 0]))
        return {"y": tf.vectorized_map(lambda row: row @ module.w1, hidden), "folded": tf.foldl(lambda a, b: a + b, hidden)}

    module.serve = traced(serve, Spec([None, 4, 6], name="x"))
    save(module, folder, module.serve)
    return drawn(random, {"x": (2, 4, 6)})
