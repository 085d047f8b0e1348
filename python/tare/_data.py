"""Data in the forms that users have it in, as records: dicts of arrays, or paths that libtare reads itself."""

import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import numpy as np

from . import _native
from ._arrays import BFLOAT16, DTYPES, NativeArray, TensorSpec, converted, copy, encoded, exact, native, prepare
from ._errors import Error, InvalidArgumentError, Status, UsageError
from ._options import one_path, paths

__all__ = ["read_records", "write_records"]

Record = Dict[str, Any]
_MOST_RECORDS = 10**15  # as for the option of the library
#: Everything that `calibrate` and `compare` take as data.
Data = Any


def is_path(data: Data) -> bool:
    """Whether the data is a path or a list of paths."""
    if isinstance(data, (str, bytes, os.PathLike)):
        return True
    return isinstance(data, (list, tuple)) and len(data) > 0 and all(isinstance(d, (str, os.PathLike)) for d in data)


def _rows(array: Any, spec: Optional[TensorSpec]) -> Tuple[int, Callable[[int], Any]]:
    """Number of records in an array, and a function that returns the value of one."""
    if array.ndim == 0:
        raise InvalidArgumentError("data: an array needs a first dimension of records (expected at least 1, got 0)")
    rank = spec.rank if spec else None
    if rank is not None and array.ndim == rank + 1:
        return len(array), lambda i: array[i]
    if rank is not None and array.ndim == rank - 1 and spec and spec.shape and spec.shape[0] in (None, 1):
        # One dimension fewer: each row of the array is the row of a record, and a further dimension of 1 is missing.
        return len(array), lambda i: array[i : i + 1].reshape(array[i : i + 1].shape + (1,))
    size = (spec.shape[0] if spec and spec.shape else None) or 1
    if len(array) % size:
        name = spec.name if spec else ""
        raise InvalidArgumentError(f"data {name}: {len(array)} rows (expected a multiple of {size}, the batch of the model)")
    return len(array) // size, lambda i: array[i * size : (i + 1) * size]


def _rows_like(array: Any, counts: Set[int], specs: Mapping[str, TensorSpec]) -> Optional[Tuple[int, Callable[[int], Any]]]:
    """Labels of each example, for a model whose records have a fixed number of examples; None: one row is a record."""
    sizes = {spec.shape[0] for spec in specs.values() if spec.shape}
    size = (next(iter(sizes)) if len(sizes) == 1 else None) or 1
    count = next(iter(counts)) if len(counts) == 1 else 0
    if size == 1 or array.ndim == 0 or len(array) != count * size:
        return None
    return count, lambda i: array[i * size : (i + 1) * size]


def _from_arrays(columns: Mapping[str, Any], specs: Mapping[str, TensorSpec]) -> Iterator[Record]:
    if not columns:
        raise InvalidArgumentError(f"data: the dict is empty (expected keys {', '.join(specs)})")
    arrays = {
        name: prepare(values, specs[name].number if name in specs else 0, name) for name, values in columns.items()
    }
    rows = {name: _rows(array, specs.get(name)) for name, array in arrays.items()}
    for name in arrays.keys() - specs.keys():
        rows[name] = _rows_like(arrays[name], {rows[known][0] for known in arrays.keys() & specs.keys()}, specs) or rows[name]
    counts = {name: count for name, (count, _) in rows.items()}
    if len(set(counts.values())) != 1:
        found = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InvalidArgumentError(f"data: arrays have different numbers of records ({found})")
    for i in range(next(iter(counts.values()))):
        yield {name: row(i) for name, (_, row) in rows.items()}


def _column(values: Any, dtype: "np.dtype[Any]", name: str) -> "np.ndarray[Any, Any]":
    """Columns of objects hold numbers with missing ones; columns of floats may hold integers, as pandas makes them."""
    array = np.asarray(values.tolist()) if values.dtype.kind == "O" else values
    return exact(array, dtype, name) if array.dtype.kind == "f" else converted(array, dtype, name)


def _matrix(features: Any, spec: TensorSpec) -> Any:
    """The columns as one matrix in the dtype of the input."""
    if spec.number not in DTYPES or spec.number == BFLOAT16:
        return features.to_numpy()
    dtype = DTYPES[spec.number]
    return np.stack([_column(features[name].to_numpy(), dtype, str(name)) for name in features.columns], axis=1)


def _frame_columns(frame: Any, specs: Mapping[str, TensorSpec], label: str) -> Dict[str, Any]:
    """Columns of a DataFrame by input; for a single input that no column names, all but the label as one matrix."""
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    if len(specs) != 1 or any(name in columns for name in specs):
        return columns
    name, spec = next(iter(specs.items()))
    features = frame.drop(columns=[label]) if label in columns else frame
    matrix = {name: _matrix(features, spec)}
    return {**matrix, label: columns[label]} if label in columns else matrix


def _as_record(item: Any, specs: Mapping[str, TensorSpec], label: str) -> Record:
    if isinstance(item, dict):
        return item
    if isinstance(item, Mapping):
        return dict(item)
    values = item if isinstance(item, tuple) else (item,)
    names = [*specs, label] if len(values) == len(specs) + 1 else list(specs)
    if len(values) != len(names):
        raise InvalidArgumentError(
            f"data: a record has {len(values)} values (expected {len(specs)}, or {len(specs) + 1} with a label; or a dict)"
        )
    return dict(zip(names, values))


def check_limit(limit: Any) -> None:
    """A number of records, or None."""
    if limit is None:
        return
    if not isinstance(limit, (int, np.integer)) or isinstance(limit, bool) or not 0 <= limit <= _MOST_RECORDS:
        raise UsageError(f"limit: invalid number of records (expected 0 to {_MOST_RECORDS}, got {limit!r})", Status.USAGE)


def records_of(data: Data, specs: Mapping[str, TensorSpec], label: str = "label") -> Iterator[Record]:
    """The data as records: a dict for each, with the shapes of the inputs."""
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        return _from_arrays(_frame_columns(data, specs, label), specs)
    if isinstance(data, Mapping):
        return _from_arrays(data, specs)
    if hasattr(data, "__array__") and hasattr(data, "ndim"):  # of NumPy, JAX and others
        return _from_arrays(_as_record(np.asarray(data), specs, label), specs)
    if isinstance(data, tuple) and all(hasattr(part, "__array__") or isinstance(part, list) for part in data):
        return _from_arrays(_as_record(data, specs, label), specs)
    if not hasattr(data, "__iter__"):
        raise InvalidArgumentError(
            f"data: {type(data).__name__} is not supported (expected arrays, a dict of arrays, an iterable of records, "
            "a DataFrame, or paths)"
        )
    return _from_items(data, specs, label)


def _from_items(data: Iterable[Any], specs: Mapping[str, TensorSpec], label: str) -> Iterator[Record]:
    for item in data:
        yield _as_record(item, specs, label)


class _Binder:
    """Turns records into tuples for the extension module. What depends on the name alone is looked up once per name."""

    def __init__(self, specs: Mapping[str, TensorSpec], only_inputs: bool) -> None:
        self._specs = specs
        self._only_inputs = only_inputs
        self._known: Dict[str, Tuple[bytes, int, Optional[int], Any]] = {}

    def _look_up(self, name: str) -> Tuple[bytes, int, Optional[int], Any]:
        """Name, expected element type with its dtype, and the rank of a value without the leading dimension of 1."""
        spec = self._specs.get(name)
        rank: Optional[int] = 0 if self._specs else None  # of labels: one number per row; None: any
        number = spec.number if spec else 0
        if spec is not None:
            rank = len(spec.shape) - 1 if spec.shape and spec.shape[0] in (None, 1) else None
        self._known[name] = encoded(name), number, rank, DTYPES.get(number)
        return self._known[name]

    def bind(self, record: Mapping[str, Any]) -> "Tuple[List[NativeArray], List[np.ndarray[Any, Any]]]":
        """Tuples, and the arrays that own their elements. Keys that are no inputs are left out if there is an input."""
        tuples, keep = [], []
        known = self._known
        for name, value in record.items():
            encoded, expected, rank, dtype = known.get(name) or self._look_up(name)
            array = value
            if type(value) is not np.ndarray or value.dtype is not dtype or not value.flags.c_contiguous:
                array = prepare(value, expected, name)
            if array.ndim == rank:
                array = array[np.newaxis]
            keep.append(array)
            if array.dtype is dtype:
                tuples.append((encoded, expected, array.shape, array.__array_interface__["data"][0]))
            else:
                tuples.append(native(encoded, array, expected))
        if self._only_inputs and len(tuples) > 1:
            inputs = [item for item, name in zip(tuples, record) if name in self._specs]
            return inputs or tuples, keep
        return tuples, keep


def native_records(
    records: Iterable[Mapping[str, Any]], specs: Mapping[str, TensorSpec], only_inputs: bool = False
) -> Iterator[List[NativeArray]]:
    """Records for the extension module, which takes the next one only when it is done with the last."""
    binder = _Binder(specs, only_inputs)
    for number, record in enumerate(records):
        try:
            tuples, keep = binder.bind(record)
        except Error as error:
            raise type(error)(f"{'data' if specs else 'records'}: record {number}: {error}", error.status) from error.__cause__
        yield tuples
        del keep


# ---- files


def read_records(data: Union[str, "os.PathLike[str]", Sequence[Any]], spec: Any = None) -> Iterator[Record]:
    """Read data files one record at a time.

    Parameters
    ----------
    data : path or list of paths
        TFRecord, NPY, NPZ or CSV files, or folders of images; patterns are expanded.
    spec : path, optional
        A DatasetSpec that maps features of ``tf.Example`` to inputs.

    Yields
    ------
    dict of str to ndarray
        The tensors of a record, as copies.

    Raises
    ------
    CorruptDataError
        With file, record and byte.

    Examples
    --------
    >>> record = next(tare.read_records(glyphs / "eval.tfrecord.gz"))
    >>> {name: array.shape for name, array in sorted(record.items())}
    {'image': (1, 28, 28, 1), 'label': (1,)}
    """
    spec = None if spec is None else one_path(spec)
    reader = _native.reader_open(_native.context(lambda level, text: None), paths(data), spec)
    while True:
        arrays = _native.reader_next(reader)
        if arrays is None:
            return
        yield copy(arrays)


def write_records(path: Union[str, "os.PathLike[str]"], records: Iterable[Mapping[str, Any]]) -> int:
    """Write records to a TFRecord file of RepresentativeDataSample, which every command of tare reads.

    Parameters
    ----------
    path : path
        The file; GZIP-compressed if it ends in ``.gz``. It appears when it is complete.
    records : iterable of dict
        For each record, arrays by name.

    Returns
    -------
    int
        Number of records.

    Examples
    --------
    >>> tare.write_records(tmp / "two.tfrecord", ({"x": np.float32([i])} for i in range(2)))
    2
    """
    writer = _native.writer_open(one_path(path))
    count = 0
    for record in native_records(map(_expect_dict, records), {}):
        _native.writer_add(writer, record)
        count += 1
    _native.writer_finish(writer)
    return count


def _expect_dict(record: Any) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise InvalidArgumentError(f"records: a record is a {type(record).__name__} (expected a dict of arrays by name)")
    return record
