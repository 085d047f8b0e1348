"""Runs of many rows: in batches, with the outputs in one array each."""

from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np

from ._arrays import TensorSpec
from ._errors import InvalidArgumentError, ShapeError, Status, UsageError

Arrays = Dict[str, "np.ndarray[Any, Any]"]


def _check_size(size: Any) -> int:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
        raise UsageError(f"batch_size: invalid number of rows (expected at least 1, got {size!r})", Status.USAGE)
    return int(size)


def _rows(values: Mapping[str, Any], specs: Mapping[str, TensorSpec], size: int) -> Dict[str, int]:
    """Rows of the inputs that have a batch dimension."""
    rows = {}
    for name, value in values.items():
        shape = specs[name].shape if name in specs else None
        if shape == ():
            continue
        if not value.ndim or (shape is not None and shape[0] not in (None, size)):
            raise InvalidArgumentError(f"batch_size: input {name} has no open batch dimension (run it without batch_size)")
        rows[name] = len(value)
    if len(set(rows.values())) != 1:
        found = ", ".join(f"{name} {count}" for name, count in rows.items())
        raise InvalidArgumentError(f"batch_size: inputs have different numbers of rows ({found})")
    return rows


def fixed_size(values: Mapping[str, Any], specs: Mapping[str, TensorSpec]) -> Optional[int]:
    """The rows that the model takes at a time, if its inputs fix their number and the values have another one of rows of their shape."""
    sizes, counts = set(), set()
    for name, value in values.items():
        shape = specs[name].shape if name in specs else None
        if shape is None or not shape:
            return None
        if shape[0] is None or value.ndim != len(shape) or any(size not in (None, got) for size, got in zip(shape[1:], value.shape[1:])):
            return None
        sizes.add(shape[0])
        counts.add(len(value))
    if len(sizes) != 1 or len(counts) != 1 or sizes == counts:
        return None
    size, count = sizes.pop(), counts.pop()
    if count % size:
        raise ShapeError(f"inputs: the model takes {size} rows at a time (expected a multiple of {size} rows, got {count})", Status.SHAPE)
    return size


def in_batches(run: Callable[[Mapping[str, Any]], Arrays], values: Mapping[str, Any], specs: Mapping[str, TensorSpec], size: int) -> Arrays:
    """The outputs of `size` rows at a time."""
    size = _check_size(size)
    rows = _rows(values, specs, size)
    count = next(iter(rows.values()))
    outputs: Arrays = {}
    for start in range(0, max(count, 1), size):
        part = run({name: value[start : start + size] if name in rows else value for name, value in values.items()})
        taken = min(size, count - start)
        for name, value in part.items():
            if value.shape[:1] != (taken,):
                found = len(value) if value.ndim else "no"
                raise InvalidArgumentError(
                    f"batch_size: output {name} has {found} rows for {taken} of the inputs (run it without batch_size)"
                )
            if name not in outputs:
                outputs[name] = np.empty((count, *value.shape[1:]), value.dtype)
            if outputs[name].shape[1:] != value.shape[1:]:
                raise InvalidArgumentError(
                    f"batch_size: output {name} has rows of shape {list(value.shape[1:])} after {list(outputs[name].shape[1:])}"
                    " (run it without batch_size)"
                )
            outputs[name][start : start + taken] = value
    return outputs


def joined(parts: List[Arrays]) -> Arrays:
    """The outputs of several batches."""
    if not parts:
        raise InvalidArgumentError("inputs: no records")
    for name, first in parts[0].items():
        for part in parts[1:]:
            if not first.ndim or part[name].shape[1:] != first.shape[1:]:
                raise InvalidArgumentError(
                    f"inputs: output {name} has the shapes {list(first.shape)} and {list(part[name].shape)} in two batches (run them one by one)"
                )
    return {name: np.concatenate([part[name] for part in parts]) if len(parts) > 1 else first for name, first in parts[0].items()}
