"""Runs signatures in TensorFlow, and compares outputs."""
from __future__ import annotations

import re

import numpy as np
import tensorflow as tf

from catalogue import Record
from program import plain
from steps import Bound


def run(loaded: object, signature: str, records: list[Record], compiled: bool = False) -> list[dict[str, np.ndarray]]:
    """Outputs of a loaded model for each record; `compiled`: the whole signature by XLA."""
    function = loaded.signatures[signature]     # type: ignore[attr-defined]
    specs = function.structured_input_signature[1]

    def call(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return function(**inputs)

    call = tf.function(call, jit_compile=True, autograph=False) if compiled else call
    found = []
    for record in records:
        inputs = {name: tf.constant(record[name], dtype=spec.dtype) for name, spec in specs.items() if name in record}
        found.append({part: array for name, value in call(inputs).items() for part, array in parts(name, value)})
    return found


def parts(name: str, value: object) -> list[tuple[str, np.ndarray]]:
    """An output by the names of `tare`: a sparse or ragged one has several."""
    if isinstance(value, tf.SparseTensor):
        return [(f"{name}.{part}", getattr(value, part).numpy()) for part in ("indices", "values", "dense_shape")]
    if isinstance(value, tf.RaggedTensor):
        return [*parts(f"{name}.values", value.values), (f"{name}.row_splits", value.row_splits.numpy())]
    array = value.numpy()     # type: ignore[attr-defined]
    return [(name, np.array([array], dtype=object) if isinstance(array, bytes) else array)]     # a scalar string is bytes


def beyond_xla(error: str) -> str:
    """Why XLA for CPUs does not compile a function, if it is not for what it computes; or ""."""
    unsupported = re.search(r"Detected unsupported operations .* on XLA_CPU_JIT: (?!Xla|Uniform)(\w+)", error, re.S)
    if unsupported:
        return f"XLA does not support {unsupported[1]}"
    return "XLA's compiler for CPUs generates invalid code" if "Invalid LLVM IR" in error else ""


def cause(error: str) -> str:
    """What an error of XLA says, without the places: names of nodes and functions, and where it was called from."""
    text = re.sub(r"Graph execution error:|Detected at node .*|<stack traces .*|\{\{.*?\}\}|\[\[.*?\]\]|__inference\w+", "", error)
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")


def compare(got: list[dict[str, np.ndarray]], want: list[dict[str, np.ndarray]], bound: Bound) -> str:
    """The first difference between the outputs of `tare` (got) and TensorFlow's (want), or ""."""
    if len(got) != len(want):
        return f"{len(got)} records (expected {len(want)})"
    for index, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if ours.keys() != {name.replace("/", "__") for name in theirs}:
            return f"outputs {sorted(ours)} (expected {sorted(theirs)})"
        for name, value in theirs.items():
            text = difference(plain(ours[name.replace("/", "__")]), plain(value), bound)
            if text:
                return f"record {index}, {name}: {text}"
    return ""


def apart(got: list[Record], want: list[Record]) -> Bound:
    """How far floats of two runs of `tare` are apart at most, as parts of each output's largest magnitude."""
    largest = mean = 0.0
    for ours, theirs in zip(got, want, strict=True):
        for name in ours.keys() & theirs.keys():
            a, b = plain(ours[name]), plain(theirs[name])
            if a.dtype.kind == "f" and a.shape == b.shape and a.size and np.isfinite(a).all() and np.isfinite(b).all():
                off = np.abs(a.astype(np.float64) - b) / (float(np.abs(b).max()) or 1.0)
                largest, mean = max(largest, float(off.max())), max(mean, float(off.mean()))
    return Bound(largest, mean)


def difference(got: np.ndarray, want: np.ndarray, bound: Bound) -> str:
    if want.dtype == object:
        return "" if list(got) == list(want.ravel()) else f"{list(got)[:4]} (expected {list(want.ravel())[:4]})"
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} (expected {want.dtype}{list(want.shape)})"
    if want.dtype.kind not in "fc" or not want.size:
        wrong = int((got != want).sum())
        return f"{wrong} of {want.size} values differ" if wrong else ""
    finite = np.isfinite(want)
    if not (np.isfinite(got) == finite).all() or not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return "NaN or infinity in other places"
    if not finite.any():
        return ""
    size = float(np.abs(want[finite]).max()) or 1.0
    apart = np.abs(got[finite] - want[finite].astype(np.result_type(want, np.float64))) / size
    if apart.max() > bound.largest or apart.mean() > bound.mean:
        return f"largest difference {apart.max():.2g}, mean {apart.mean():.2g} of {size:.3g} (bounds {bound.largest:g}, {bound.mean:g})"
    return ""
