"""Compares with TensorFlow's own quantizer: eight kinds of layers, by every method and op set that both have.

Weights are equal, so are scales and zero points, and so are outputs but for the differences that docs/quantization.md lists."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2 as options_pb2
from tensorflow.compiler.mlir.quantization.tensorflow.python import quantize_model

import execution
import loaders
import program
import records
from catalogue import Record
from results import FAILED, PASSED, SKIPPED, Journal
from steps import STEPS
from zoo.modules import Layers
from zoo.saving import SERVING, floats, save

Preset = options_pb2.QuantizationMethod
OpSet = options_pb2.OpSet
DYNAMIC = ("dynamic-xla", "dynamic-tf", "dynamic-uniform")
BIAS = np.linspace(-0.5, 0.5, 16, dtype=np.float32)


@dataclass(frozen=True)
class Kind:
    """A layer: its weight, the shape of its input, and what it computes from both."""

    name: str
    weight: tuple[int, ...]
    input: tuple[int, ...]
    compute: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    table: bool = False
    float_in: tuple[str, ...] = ()      # ways in which `tare` leaves it float, as docs/quantization.md says, and TensorFlow may not
    ours_in: tuple[str, ...] = ()       # ways in which `tare` quantizes it and TensorFlow does not


KINDS = (
    Kind("matmul", (32, 16), (2, 32), lambda x, w: x @ w),
    Kind("dense", (32, 16), (2, 32), lambda x, w: tf.nn.relu(tf.nn.bias_add(x @ w, BIAS))),
    Kind("conv2d", (3, 3, 4, 16), (1, 6, 6, 4), lambda x, w: tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), BIAS))),
    Kind("depthwise", (3, 3, 16, 1), (1, 6, 6, 16), lambda x, w: tf.nn.bias_add(tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID"), BIAS),
         float_in=("dynamic-xla",)),
    Kind("conv3d", (2, 2, 2, 4, 16), (1, 4, 4, 4, 4), lambda x, w: tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "VALID"), float_in=DYNAMIC),
    Kind("batch_matmul", (3, 8, 16), (3, 5, 8), lambda x, w: tf.linalg.matmul(x, w),
         float_in=("dynamic-tf", "dynamic-uniform", "static-uniform"), ours_in=("dynamic-xla",)),
    Kind("einsum", (8, 2, 8), (2, 5, 8), lambda x, w: tf.einsum("btd,dhk->bthk", x, w), float_in=("dynamic-tf", "dynamic-uniform"),
         ours_in=("dynamic-xla",)),
    Kind("gather", (64, 32), (5,), lambda x, w: tf.gather(w, tf.cast(tf.abs(x) * 20.0, tf.int32)), table=True),
)


@dataclass(frozen=True)
class Way:
    """A method and op set, in TensorFlow's words and in those of `tare`; `difference` maps our outputs to TensorFlow's,
    or is "rows": ranges of their own."""

    name: str
    preset: int
    op_set: int
    method: str
    op_set_name: str
    difference: str = ""

    @property
    def static(self) -> bool:
        return self.method == "static"


WAYS = (
    Way("static-xla", Preset.METHOD_STATIC_RANGE_INT8, OpSet.XLA, "static", "xla", "clips"),
    Way("static-tf", Preset.METHOD_STATIC_RANGE_INT8, OpSet.TF, "static", "tf", "rounds"),
    Way("static-uniform", Preset.METHOD_STATIC_RANGE_INT8, OpSet.UNIFORM_QUANTIZED, "static", "uniform_quantized", "rounds"),
    Way("dynamic-xla", Preset.METHOD_DYNAMIC_RANGE_INT8, OpSet.XLA, "dynamic", "xla", "rows"),
    Way("dynamic-tf", Preset.METHOD_DYNAMIC_RANGE_INT8, OpSet.TF, "dynamic", "tf"),
    Way("dynamic-uniform", Preset.METHOD_DYNAMIC_RANGE_INT8, OpSet.UNIFORM_QUANTIZED, "dynamic", "uniform_quantized"),
    Way("weight-only", Preset.METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8, OpSet.XLA, "weight_only", "xla"),
)


def write(kind: Kind, folder: Path) -> list[Record]:
    random = np.random.default_rng(7)
    module = Layers(random, kind.weight)
    module.serve = tf.function(lambda x: {"y": kind.compute(x, module.w0)}, input_signature=[tf.TensorSpec(kind.input, name="x")])
    save(module, str(folder / "model"), module.serve)
    rows = [{"x": floats(random, *kind.input)} for _ in range(8)]
    records.save(str(folder / "records"), rows)
    return rows


def by_tensorflow(way: Way, folder: Path, out: Path, rows: list[Record]) -> None:
    options = options_pb2.QuantizationOptions(op_set=way.op_set, tags=["serve"], signature_keys=[SERVING], min_num_elements_for_weights=1)
    options.quantization_method.preset_method = way.preset
    quantize_model.quantize(str(folder / "model"), str(out), options, rows if way.static else None)


def by_tare(way: Way, folder: Path, out: Path) -> program.Run:
    """Per tensor, as TensorFlow does by default."""
    samples = ["--data", folder / "records", "--activation-bits", "8"] if way.static else []
    return program.tare("quantize", folder / "model", out, "--method", way.method, "--op-set", way.op_set_name, "--granularity", "per_tensor",
                        "--min-elements", "1", "--quiet", *samples)


def constants(model: Path) -> list[np.ndarray]:
    """Constants of all functions; quantized ones as integers."""
    definition = loaders.meta_graph(str(model)).graph_def
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    values = [tf.make_ndarray(node.attr["value"].tensor) for node in nodes if node.op == "Const" and node.attr["dtype"].type != tf.string]
    return [value.view(value.dtype[0]) if value.dtype.names else value for value in values]


def weights(values: Iterable[np.ndarray]) -> list[bytes]:
    return sorted(value.tobytes() for value in values if value.dtype == np.int8 and value.size > 1)


def unknown_numbers(ours: list[np.ndarray], theirs: list[np.ndarray]) -> list[float]:
    """Scalars of ours (scales, zero points, limits) that TensorFlow's model lacks."""
    known = np.array([number for value in theirs if value.dtype.kind in "fi" for number in value.ravel().astype(np.float64)])
    numbers = [float(value.ravel()[0]) for value in ours if value.size == 1 and value.dtype.kind in "fi"]
    return [number for number in numbers if not np.isclose(known, number, rtol=2.0**-22, atol=0).any()]


def grid(values: list[np.ndarray]) -> tuple[np.float32, int]:
    """Scale and zero point of int8 for values of this range, as TensorFlow computes them."""
    low, high = min(0.0, *(float(value.min()) for value in values)), max(0.0, *(float(value.max()) for value in values))
    scale = (high - low) / 255
    return np.float32(scale), int(np.round(-128 - low / scale))


def adapted(ours: np.ndarray, difference: str, scale: np.float32, zero: int) -> np.ndarray:
    """Our output with TensorFlow's documented difference: clipped to the calibrated range, or rounded to its integers."""
    low, high = scale * np.float32(-128 - zero), scale * np.float32(127 - zero)
    if difference == "clips":
        return np.clip(ours, low, high)
    if difference == "rounds":
        return (np.clip(np.round(ours / scale) + zero, -128, 127) - zero).astype(np.float32) * scale
    return ours


def judge_pair(kind: Kind, way: Way, folder: Path, rows: list[Record], float_outputs: list[np.ndarray], journal: Journal) -> None:
    def add(check: str, status: str, text: str = "") -> None:
        journal.add(f"quantizer/{kind.name}", way.name, check, status, text)

    theirs, ours = folder / f"{way.name}-tensorflow", folder / f"{way.name}-tare"
    try:
        by_tensorflow(way, folder, theirs, rows)
    except Exception as error:  # noqa: BLE001 (whatever TensorFlow raises)
        add("tensorflow", SKIPPED, f"TensorFlow does not quantize it: {error}"[:100])
        return
    their_numbers = constants(theirs)
    run = by_tare(way, folder, ours)
    if run.status and way.name in kind.float_in:
        add("tare", SKIPPED, "stays float, as documented")
        return
    if run.status:
        quantized = bool(weights(their_numbers))
        add("tare", FAILED if quantized else PASSED, run.message)
        return
    our_numbers = constants(ours)
    counts = f"{len(weights(our_numbers))} weights of int8 (TensorFlow has {len(weights(their_numbers))}), or other values"
    if way.name not in kind.ours_in:
        add("weights", *verdict("" if weights(our_numbers) == weights(their_numbers) else counts))
    if way.method != "dynamic":     # which computes scales when it runs, in other ways
        unknown = unknown_numbers(our_numbers, their_numbers)
        add("numbers", *verdict(f"not in TensorFlow's model: {unknown[:4]}" if unknown else ""))
    run, got = program.outputs(str(ours), SERVING, str(folder / "records"), folder / f"{way.name}-outputs")
    try:
        want = execution.run(tf.saved_model.load(str(theirs)), SERVING, rows, loaders.has_ops(str(theirs), "Xla"))
    except Exception as error:  # noqa: BLE001
        add("outputs", SKIPPED, f"TensorFlow does not run its own model: {error}"[:200])
        return
    scale, zero = grid(float_outputs)
    difference = "" if kind.table else way.difference
    worst = 0.0
    for mine, their in zip(got, want, strict=True):
        [a], [b] = mine.values(), their.values()
        worst = max(worst, float(np.abs(adapted(a, difference, scale, zero) - b).max()))
    size = max(float(np.abs(value).max()) for value in float_outputs)
    bound = STEPS.largest if difference == "rows" else 1e-5     # each row has a range of its own
    add("outputs", *verdict("" if worst <= bound * size else f"differs by {worst:.3g} of {size:.3g}; scale {scale:.3g}"))


def verdict(text: str) -> tuple[str, str]:
    return (FAILED if text else PASSED), text


def judge(work: Path, journal: Journal) -> None:
    for kind in KINDS:
        folder = work / f"quantizer-{kind.name}"
        folder.mkdir()
        rows = write(kind, folder)
        original = execution.run(tf.saved_model.load(str(folder / "model")), SERVING, rows)
        for way in WAYS:
            judge_pair(kind, way, folder, rows, [next(iter(one.values())) for one in original], journal)
