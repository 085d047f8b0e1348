"""Records for the library: of data in memory (`_forms`), or paths that libtare reads itself."""

import os
import tempfile
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _native
from ._arrays import DTYPES, NativeArray, TensorSpec, copy, encoded, native, prepare
from ._errors import Error, InvalidArgumentError, Status, UsageError, data_errors
from ._forms import Parser, Record
from ._options import one_path, paths

__all__ = ["read_records", "write_records"]

_MOST_RECORDS = 10**15  # as for the option of the library
#: Everything that `calibrate` and `compare` take as data.
Data = Any


def is_path(data: Data) -> bool:
    """Whether the data is a path or a list of paths."""
    if isinstance(data, (str, bytes, os.PathLike)):
        return True
    return isinstance(data, (list, tuple)) and len(data) > 0 and all(isinstance(d, (str, os.PathLike)) for d in data)


def check_limit(limit: Any) -> None:
    """A number of records, or None."""
    if limit is None:
        return
    if not isinstance(limit, (int, np.integer)) or isinstance(limit, bool) or not 0 <= limit <= _MOST_RECORDS:
        raise UsageError(f"limit: invalid number of records (expected 0 to {_MOST_RECORDS}, got {limit!r})", Status.USAGE)


def records_of(data: Data, specs: Mapping[str, TensorSpec], label: str = "label", **known: Any) -> Iterator[Record]:
    """The data as records: a dict for each, with the shapes of the inputs. `known`: as for `_forms.Parser`."""
    return Parser(specs, label, **known).parse(data)


class _Binder:
    """Turns records into tuples for the extension module. What depends on the name alone is looked up once per name."""

    def __init__(self, specs: Mapping[str, TensorSpec], only_inputs: bool, besides: Optional[str]) -> None:
        self._specs = specs
        self._only_inputs = only_inputs
        self._besides = besides
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
        """Tuples, and the arrays that own their elements. Keys that are no inputs are left out if there is an input, but for `besides`."""
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
            inputs = [item for item, name in zip(tuples, record) if name in self._specs or name == self._besides]
            return inputs or tuples, keep
        return tuples, keep


def native_records(
    records: Iterable[Mapping[str, Any]], specs: Mapping[str, TensorSpec], only_inputs: bool = False, besides: Optional[str] = None
) -> Iterator[List[NativeArray]]:
    """Records for the extension module, which takes the next one only when it is done with the last."""
    binder = _Binder(specs, only_inputs, besides)
    for number, record in enumerate(records):
        try:
            tuples, keep = binder.bind(record)
        except Error as error:
            raise type(error)(f"{'data' if specs else 'records'}: record {number}: {error}", error.status) from error.__cause__
        yield tuples
        del keep


# ---- files


@contextmanager
def as_paths(data: Data, argument: str, specs: Mapping[str, TensorSpec], label: str, **known: Any) -> Iterator[List[bytes]]:
    """Paths of the data; data from memory is in a temporary file meanwhile, and errors name the argument instead of it. `known`: as
    for `records_of`."""
    if is_path(data):
        yield paths(data)
        return
    with tempfile.TemporaryDirectory(prefix="tare-") as folder:
        path = os.path.join(folder, "memory")
        with data_errors("data", argument):
            writer = _native.writer_open(path)
            for record in native_records(records_of(data, specs, label, **known), specs):
                _native.writer_add(writer, record)
            _native.writer_finish(writer)
        with data_errors(path, argument):
            yield paths(path)


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
    for record in native_records(map(expect_dict, records), {}):
        _native.writer_add(writer, record)
        count += 1
    _native.writer_finish(writer)
    return count


def expect_dict(record: Any) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise InvalidArgumentError(f"records: a record is a {type(record).__name__} (expected a dict of arrays by name)")
    return record
