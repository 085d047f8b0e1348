"""Saves modules and draws records."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from catalogue import Record

SERVING = "serving_default"
# The key of the outputs that a writer computes itself, where TensorFlow does not read the model.
EXPECTED = "expected"


def floats(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.normal(size=shape).astype(np.float32)


def drawn(random: np.random.Generator, shapes: dict[str, tuple[int, ...]], count: int = 4) -> dict[str, list[Record]]:
    """Records of serving_default with normally distributed inputs of these shapes."""
    return {SERVING: [{name: floats(random, *shape) for name, shape in shapes.items()} for _ in range(count)]}


def save(module: tf.Module, folder: str, signatures: Callable | dict[str, Callable], alias: Callable | None = None) -> None:
    """Saves a module with its signatures; `alias` is the function that is saved as tpu_func."""
    options = tf.saved_model.SaveOptions(function_aliases={"tpu_func": alias} if alias is not None else None)
    named = signatures if isinstance(signatures, dict) else {SERVING: signatures}
    tf.saved_model.save(module, folder, signatures=named, options=options)
