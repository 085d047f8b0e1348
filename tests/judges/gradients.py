"""Gradients by TensorFlow of what a signature computes, as a user takes them who trains the loaded model."""
from __future__ import annotations

import numpy as np
import tensorflow as tf

from catalogue import Record


def of_signature(loaded: object, signature: str, rows: list[Record]) -> list[dict[str, np.ndarray]]:
    """The gradients of the sum of all float outputs by each float input and trainable variable, for each record."""
    function = loaded.signatures[signature]     # type: ignore[attr-defined]
    return [of_record(function, row) for row in rows]


def of_record(function: object, row: Record) -> dict[str, np.ndarray]:
    inputs = {key: tf.constant(value) for key, value in row.items()}
    sources = {key: value for key, value in inputs.items() if value.dtype.is_floating}
    sources |= {variable.name: variable for variable in function.trainable_variables}     # type: ignore[attr-defined]
    with tf.GradientTape() as tape:
        tape.watch([value for key, value in sources.items() if key in inputs])
        outputs = function(**inputs)     # type: ignore[operator]
        total = tf.add_n([tf.reduce_sum(tf.cast(value, tf.float32)) for value in outputs.values() if value.dtype.is_floating])
    found = tape.gradient(total, sources)
    return {key: tf.convert_to_tensor(value).numpy() for key, value in found.items() if value is not None}
