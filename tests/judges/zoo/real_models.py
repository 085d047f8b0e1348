"""Models that others wrote, from the folder models of TARE_TEST_DATA: one row per folder. What they refuse is not known
beforehand, so that every refusal with a message is accepted; records are drawn from the shapes of the signatures."""
from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

import catalogue
import execution
import loaders
from catalogue import Record

FOLDER = Path(os.environ.get("TARE_TEST_DATA", "")) / "models"
COUNT, TRIES = 3, 12


def value(random: np.random.Generator, dtype: tf.DType, shape: tf.TensorShape) -> np.ndarray:
    """A value of an input: small numbers, which are also indices, or digits as text."""
    sizes = [] if shape.rank is None else [2 if size is None else size for size in shape.as_list()]
    if dtype == tf.string:
        return np.vectorize(lambda number: b"%d" % number, otypes=[object])(random.integers(0, 3, sizes))
    if dtype.is_integer or dtype.is_bool:
        return random.integers(0, 2, sizes).astype(dtype.as_numpy_dtype)
    return random.normal(size=sizes).astype(dtype.as_numpy_dtype)


def is_finite(values: Record) -> bool:
    """A mean over no elements, for example, is NaN, which integers have no value for."""
    return all(np.isfinite(array).all() for array in values.values() if array.dtype.kind in "fc")


def write(source: Path, folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """Links the model, and returns records for the signatures that TensorFlow runs with them."""
    Path(folder).symlink_to(source)
    try:
        loaded = tf.saved_model.load(folder, tags=list(loaders.meta_graph(folder).meta_info_def.tags))
    except Exception:  # noqa: BLE001 (the judge reports it)
        return {}
    found = {}
    for name, signature in loaded.signatures.items():
        if "/" in name or signature.structured_input_signature[0]:
            continue
        specs = signature.structured_input_signature[1]
        rows = [{key: value(random, spec.dtype, spec.shape) for key, spec in specs.items()} for _ in range(TRIES)]
        try:
            outputs = execution.run(loaded, name, rows)
            found[name] = [row for row, values in zip(rows, outputs, strict=True) if is_finite(values)][:COUNT] or rows[:COUNT]
        except Exception:  # noqa: BLE001 (the model needs other values, or has none)
            continue
    return found


for path in sorted(FOLDER.iterdir()) if FOLDER.is_dir() else ():
    if path.name not in catalogue.MODELS:
        catalogue.MODELS[path.name] = catalogue.Model(path.name, "real_models", partial(write, path), may_refuse=True)
