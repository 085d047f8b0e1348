"""The forms of data, as Keras, torch, TensorFlow Lite and pandas users have it: one table of containers (`FORMS`), and one parser of
the values in them.

A value is a whole data set, a batch of a loader, or one example: the same rules read all of them. Which part of it is an input and
which a label follows from the number of inputs of the signature; how many examples an array has, from the rank of the input.
"""

import inspect
import numbers
from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._arrays import BFLOAT16, DTYPES, TensorSpec, converted, exact, is_python, prepare
from ._errors import Error, InvalidArgumentError

Record = Dict[str, Any]
#: Key of the weights of ``(inputs, labels, weights)``: metric objects get them, built-in metrics do not use them.
WEIGHTS = "sample_weight"
_PARTS = "(inputs), (inputs, labels) or (inputs, labels, weights)"


def is_frame(value: Any) -> bool:
    """Whether the value is a DataFrame, of pandas or with its interface."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def is_array(value: Any) -> bool:
    """Whether the value has a dtype and a shape: arrays of NumPy, tensors of TensorFlow and torch, columns of pandas, memoryviews."""
    return isinstance(value, memoryview) or not (is_python(value) or is_frame(value))


def _several(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _shape(value: Any) -> Tuple[int, ...]:
    return tuple(int(size) for size in np.shape(value))


def _named(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values[:6])) + (", …" if len(values) > 6 else "")


def described(value: Any, inner: bool = False) -> str:
    """The form of a value, for messages: ``a list of 2: array [300, 28, 28], array [300]``."""
    if is_frame(value):
        return f"DataFrame with columns {_named(list(value.columns))}"
    if isinstance(value, Mapping):
        return f"dict with keys {_named(list(value))}"
    if is_array(value):
        return f"array [{', '.join(map(str, _shape(value)))}]"
    if _several(value):
        name = type(value).__name__
        if inner or not len(value) or isinstance(value[0], (numbers.Number, str, bytes)):
            return f"{name} of {len(value)}"
        return f"{name} of {len(value)}: " + "; ".join(described(part, True) for part in value[:3]) + ("; …" if len(value) > 3 else "")
    return type(value).__name__


# ---- how an array holds examples


def _matches(shape: Tuple[int, ...], dims: Tuple[Optional[int], ...]) -> bool:
    return len(shape) == len(dims) and all(dim is None or size == dim for size, dim in zip(shape, dims))


class Layout(NamedTuple):
    """How an array holds examples: ``rows`` along its first dimension, ``one`` without that dimension, or ``items`` of rows along
    a further one; ``missing``: the last dimension, of 1, is left out."""

    kind: str
    missing: bool


def layout(shape: Tuple[int, ...], dims: Tuple[Optional[int], ...]) -> Optional[Layout]:
    """The layout of an array for an input with these dims (at least one). None: no rank fits."""
    single = dims[0] in (None, 1)
    for missing in (False, True):
        full = (*shape, 1) if missing else shape
        if missing and (len(dims) < 2 or dims[-1] != 1):
            break
        if len(full) == len(dims) and _matches(full[1:], dims[1:]):
            return Layout("rows", missing)
        if single and _matches(full, dims[1:]):
            return Layout("one", missing)
        if len(full) == len(dims) + 1 and _matches(full[2:], dims[1:]):
            return Layout("items", missing)
    by_rank = {len(dims): "rows", len(dims) + 1: "items", **({len(dims) - 1: "one"} if single else {})}
    return Layout(by_rank[len(shape)], False) if len(shape) in by_rank else None  # the library reports the shape


class _Rows(NamedTuple):
    """An array as `number` records of `size` rows each (0: without that dimension); `outer`: rows of each item, where it was an array
    of items."""

    array: Any
    number: int
    size: int
    outer: int
    one: bool

    def record(self, i: int) -> Any:
        return self.array[i * self.size : (i + 1) * self.size] if self.size else self.array[i]


def _rows(array: "np.ndarray[Any, Any]", spec: TensorSpec) -> Optional[_Rows]:
    """The records of an input; None: all of it belongs to each record (a scalar), or its rank says nothing."""
    if not spec.shape:
        return _Rows(array, len(array), 0, 1, False) if array.ndim == 1 and spec.shape is not None else None
    found = layout(array.shape, spec.shape)
    if found is None:
        return None
    size, outer = spec.shape[0] or 1, 1
    if found.missing:
        array = array[..., np.newaxis]
    if found.kind == "one":
        return _Rows(array[np.newaxis], 1, 1, 1, True)
    if found.kind == "items":
        outer = array.shape[1]
        array = array.reshape(-1, *array.shape[2:])
    if size and len(array) % size:
        raise InvalidArgumentError(f"data {spec.name}: {len(array)} rows (expected a multiple of {size}, the batch of the model)")
    return _Rows(array, len(array) // size if size else 0, size, outer, False)


def _like(array: "np.ndarray[Any, Any]", inputs: _Rows) -> Optional[Callable[[int], Any]]:
    """Labels or weights of each record, given the rows of an input. None: their number is another one."""
    count, size = inputs.number, max(inputs.size, 1)
    if inputs.one or (array.ndim == 0 and count == 1):
        return lambda i: array if array.shape in ((), (1,)) else array[np.newaxis]
    if array.ndim and len(array) in (count * size, count):
        rows = len(array) // count if count else 1
        return lambda i: array[i * rows : (i + 1) * rows]
    if inputs.outer > 1 and array.ndim > 1 and array.shape[0] * array.shape[1] == count * size:
        flat = array.reshape(-1, *array.shape[2:])
        return lambda i: flat[i * size : (i + 1) * size]
    return None


# ---- columns of DataFrames


def _cells(values: Any, name: str) -> Any:
    """A column; one whose cells are arrays or lists becomes one array of them."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.dtype.kind == "O" and len(array) and (_several(array[0]) or (is_array(array[0]) and _shape(array[0]))):
        return prepare([np.asarray(cell) for cell in array], 0, name)
    return array


def _typed(values: Any, spec: TensorSpec, name: str) -> Any:
    """Numbers in the dtype of the input. Columns of objects hold numbers with missing ones; columns of floats may hold integers,
    as pandas makes them."""
    array = _cells(values, name)
    if spec.number not in DTYPES or spec.number == BFLOAT16 or array.dtype.kind in "SU":
        return array
    if array.dtype.kind == "O":
        array = np.asarray(array.tolist())
    dtype = DTYPES[spec.number]
    return exact(array, dtype, name) if array.dtype.kind == "f" else converted(array, dtype, name)


class Parser:
    """Reads values for a signature: `specs` of its inputs, names of its `outputs`, and the key of labels.

    `separable`: whether the rows of a batch are examples; a batch whose rows are not stays one record."""

    def __init__(
        self,
        specs: Mapping[str, TensorSpec],
        label: str = "label",
        outputs: Sequence[str] = (),
        separable: Optional[Callable[[Record], bool]] = None,
    ) -> None:
        self.specs, self._label, self._outputs = specs, label, list(outputs)
        self._separable, self._examples = separable, True

    # ---- parts of a value

    def columns(self, value: Any) -> Record:
        """Inputs, labels and weights of a value by name."""
        if is_frame(value):
            return self._frame(value)
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, tuple) or (isinstance(value, list) and self.is_parts(value)):
            return self._parts(value)
        return self.inputs(value)

    def inputs(self, value: Any) -> Record:
        """The inputs alone."""
        if is_frame(value) or isinstance(value, Mapping):
            return self.columns(value)
        names = list(self.specs)
        if len(names) == 1:
            whole = _several(value) and len(value) == 1 and is_array(value[0]) and self._fits(value[0])
            return {names[0]: value[0] if whole else value}
        if _several(value) and len(value) == len(names):
            return dict(zip(names, value))
        raise InvalidArgumentError(
            f"data: {described(value)}, but the model has {len(names)} inputs"
            f" (expected a dict with keys {', '.join(names)}, or a tuple in this order)"
        )

    def _parts(self, parts: Sequence[Any]) -> Record:
        fields = getattr(parts, "_fields", ())
        if fields and set(self.specs) <= set(fields):
            return dict(zip(fields, parts))
        count = len(self.specs)
        grouped = bool(parts) and self._is_group(parts[0])
        taken = 1 if grouped or count == 1 else count
        if not taken <= len(parts) <= taken + 2:
            forms = _PARTS if count == 1 else f"{_PARTS}, where inputs are a dict or tuple of {', '.join(self.specs)}"
            raise InvalidArgumentError(f"data: {described(parts)} (expected {forms})")
        found = dict(self.inputs(parts[0] if taken == 1 else parts[:taken]))
        rest = [part for part in parts[taken:]]
        if rest and rest[0] is not None:
            self._add_labels(found, rest[0])
        if len(rest) > 1 and rest[1] is not None:
            found[WEIGHTS] = rest[1]
        return found

    def _add_labels(self, found: Record, labels: Any) -> None:
        several = is_frame(labels) and set(map(str, labels.columns)) & set(self._outputs)
        if isinstance(labels, Mapping) or several:
            names = labels.columns if is_frame(labels) else labels
            added = {str(name): _cells(labels[name], str(name)) if is_frame(labels) else labels[name] for name in names}
        elif is_frame(labels):
            added = {self._label: labels.to_numpy()[:, 0] if len(labels.columns) == 1 else labels.to_numpy()}
        elif _several(labels) and len(self._outputs) > 1 and len(labels) == len(self._outputs) and is_array(labels[0]):
            raise InvalidArgumentError(
                f"data: labels are a {described(labels)} (pass a dict by output: {', '.join(self._outputs)})"
            )
        else:
            added = {self._label: labels}
        twice = [name for name in added if name in self.specs]
        if twice:
            raise InvalidArgumentError(f"data: labels have the name of the input {twice[0]} (pass label= another name)")
        found.update(added)

    def _is_group(self, value: Any) -> bool:
        """Whether the first of several values has all inputs."""
        if isinstance(value, Mapping) or is_frame(value):
            return True
        if len(self.specs) == 1:
            return True
        return _several(value) and len(value) == len(self.specs) and all(is_array(part) and _shape(part) for part in value)

    def is_parts(self, values: Sequence[Any]) -> bool:
        """Whether a list is `_PARTS`, and not a list of numbers, of examples or of batches."""
        if not values or len(values) > len(self.specs) + 2:
            return False
        first, others = values[0], values[1:]
        if isinstance(first, Mapping) or is_frame(first):
            return bool(others) and not (isinstance(others[0], Mapping) and set(self.specs) & set(others[0])) and not is_frame(others[0])
        if _several(first):
            return self._is_group(first) and bool(others) and is_array(others[0])
        if not is_array(first) or not all(is_array(value) or _several(value) for value in others):
            return len(self.specs) > 1 and len(values) >= len(self.specs) and all(isinstance(v, numbers.Number) for v in values)
        if len(self.specs) > 1:
            return len(values) >= len(self.specs)
        return self._fits(first) and not (others and all(map(self._fits, others))) and self._belong(first, others)

    def _belong(self, first: Any, others: Sequence[Any]) -> bool:
        """Whether the others may be labels and weights of examples of the only input."""
        spec = next(iter(self.specs.values()))
        found = layout(_shape(first), spec.shape) if spec.shape else None
        if found is not None and found.kind == "one":
            return all(len(_shape(other)) < max(len(_shape(first)), 1) for other in others)
        return all(_shape(other)[:1] == _shape(first)[:1] for other in others)

    def _fits(self, value: Any) -> bool:
        """Whether the value is examples of the only input, by its shape."""
        spec = next(iter(self.specs.values()))
        shape = _shape(value)
        if not spec.shape:
            return spec.shape is None or len(shape) <= 1
        found = layout(shape, spec.shape)
        if found is None:
            return False
        full = (*shape, 1) if found.missing else shape
        return _matches(full[{"one": 0, "rows": 1, "items": 2}[found.kind] :], spec.shape[1:])

    def _frame(self, frame: Any) -> Record:
        """Columns by input; for a single input that no column names, all but the label as one matrix, or the only column."""
        names = [str(name) for name in frame.columns]
        if len(self.specs) != 1 or any(name in names for name in self.specs):
            columns = zip(names, (frame[name] for name in frame.columns))
            return {n: _typed(c, self.specs[n], n) if n in self.specs else _cells(c, n) for n, c in columns}
        spec = next(iter(self.specs.values()))
        labels = {self._label: _cells(frame[self._label], self._label)} if self._label in names else {}
        features = [_typed(frame[name], spec, str(name)) for name in frame.columns if str(name) != self._label]
        if not features:
            raise InvalidArgumentError(f"data: {described(frame)} (expected features of the input {spec.name}, too)")
        if len(features) > 1 or features[0].ndim == 1:
            features = [np.concatenate([column.reshape(len(frame), -1) for column in features], axis=1)]
        return {spec.name: features[0], **labels}

    # ---- records

    def records(self, value: Any, item: bool = False) -> Iterator[Record]:
        """The examples of a value, one at a time; `item`: it is one of several, and may be a record as it is."""
        columns = self.columns(value)
        if not columns:
            raise InvalidArgumentError(f"data: the dict is empty (expected keys {', '.join(self.specs)})")
        arrays = {name: self._array(name, value) for name, value in columns.items()}
        found = {name: _rows(arrays[name], spec) for name, spec in self.specs.items() if name in arrays}
        rows = {name: one for name, one in found.items() if one is not None}
        if not rows or (item and len({one.number for one in rows.values()}) > 1):
            yield from self._unknown(arrays, item)
            return
        first = next(iter(rows.values()))
        of: Dict[str, Callable[[int], Any]] = {name: one.record for name, one in rows.items()}
        counts = {name: one.number for name, one in rows.items()}
        for name in arrays.keys() - rows.keys():
            constant = name in self.specs and not self.specs[name].shape and arrays[name].ndim == 0
            known = None if constant else _like(arrays[name], first)
            if known is None and not constant:
                counts[name] = len(arrays[name]) if arrays[name].ndim else 1
            of[name] = known or (lambda i, array=arrays[name]: array)  # type: ignore[misc]
        whole = {name: rows[name].array if name in rows else array for name, array in arrays.items()}
        if len(set(counts.values())) > 1:
            if item:
                yield whole
                return
            raise InvalidArgumentError(
                f"data: arrays have different numbers of records ({', '.join(f'{n} {c}' for n, c in counts.items())})"
            )
        if item and first.number > 1 and first.size < 2 and not self._are_examples(arrays, of):
            yield whole
            return
        for i in range(first.number):
            yield {name: of[name](i) for name in arrays}

    def _array(self, name: str, value: Any) -> "np.ndarray[Any, Any]":
        """A value of an input or a label as an array; columns of pandas as those of its DataFrames."""
        spec = self.specs.get(name)
        if is_frame(value):
            value = Parser({name: spec or TensorSpec(name, "", None, 0)}, "")._frame(value)[name]
        elif hasattr(value, "to_numpy"):
            value = _typed(value, spec, name) if spec else _cells(value, name)
        return prepare(value, spec.number if spec else 0, name)

    def batches(self, data: Any) -> Iterator[Record]:
        """The inputs of each item of a series."""
        items = next(form.items for form in FORMS if form.holds(data))
        assert items is not None
        return (self.batch(item, False) for item in items(data))

    def batch(self, value: Any, whole: bool = True) -> Record:
        """The inputs of a value as arrays of their rank, for one run; not `whole`: with labels, which are left out."""
        found = {}
        for name, item in (self.inputs(value) if whole else self.columns(value)).items():
            spec = self.specs.get(name)
            if spec is None and not whole:
                continue
            array = self._array(name, item)
            form = layout(array.shape, spec.shape) if spec and spec.shape else None
            if form and form.missing:
                array = array[..., np.newaxis]
            found[name] = array[np.newaxis] if form and form.kind == "one" and not whole else array
        return found

    def _unknown(self, arrays: Record, item: bool) -> Iterator[Record]:
        """Records where no input has a known rank: the rows of all arrays, or the item as it is."""
        if item:
            yield arrays
            return
        if not all(array.ndim for array in arrays.values()):
            raise InvalidArgumentError("data: an array needs a first dimension of records (expected at least 1, got 0)")
        counts = {name: len(array) for name, array in arrays.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise InvalidArgumentError(f"data: arrays have different numbers of records ({found})")
        for i in range(next(iter(counts.values()))):
            yield {name: array[i : i + 1] for name, array in arrays.items()}

    def _are_examples(self, arrays: Record, of: Mapping[str, Callable[[int], Any]]) -> bool:
        """Decides once, with two rows of the first batch that has as many."""
        if self._separable is not None:
            names = [name for name in self.specs if name in arrays]
            two = {name: np.concatenate([of[name](0), of[name](1)]) if of[name](0).ndim else of[name](0) for name in names}
            self._examples, self._separable = self._separable(two), None
        return self._examples

    # ---- containers

    def _list(self, data: List[Any]) -> Iterator[Record]:
        if self.is_parts(data):
            return self.records(data)
        if len(self.specs) == 1 and len(data) in (2, 3) and all(map(is_array, data)) and self._like_batches(data):
            raise InvalidArgumentError(
                f"data: {described(data)}: batches, or inputs and labels? (pass iter(…) for batches, a tuple for inputs and labels)"
            )
        return self._items(data)

    def _like_batches(self, data: List[Any]) -> bool:
        shapes = {_shape(value) for value in data}
        spec = next(iter(self.specs.values()))
        if len(shapes) != 1 or not spec.shape:
            return False
        found = layout(next(iter(shapes)), spec.shape)
        return found is not None and found.kind == "rows" and next(iter(shapes))[0] > 1

    def _items(self, data: Iterable[Any]) -> Iterator[Record]:
        done = 0
        for item in data:
            try:
                for record in self.records(item, item=True):
                    yield record
                    done += 1
            except Error as error:
                text = str(error)[len("data: ") :] if str(error).startswith("data: ") else str(error)
                raise type(error)(f"data: record {done}: {text}", error.status) from error.__cause__

    def _tuple(self, data: Tuple[Any, ...]) -> Iterator[Record]:
        several = len(data) > len(self.specs) + 2 and all(isinstance(part, Mapping) for part in data)
        return self._items(data) if several else self.records(data)

    def parse(self, data: Any) -> Iterator[Record]:
        """The records of data in any form of `FORMS`."""
        for form in FORMS:
            if form.holds(data):
                return form.read(self, data)
        raise InvalidArgumentError(
            f"data: {type(data).__name__} is not supported (expected {', '.join(form.name for form in FORMS)}, or paths)"
        )


def is_items(data: Any) -> bool:
    """Whether the data is a loader or another iterable of batches or examples, not an array, a dict, a list or a tuple."""
    form = next((form for form in FORMS if form.holds(data)), None)
    return form is not None and form.items is not None


def _by_index(data: Any) -> Iterator[Any]:
    return (data[i] for i in range(len(data)))


def _called(data: Any) -> Any:
    found = data()
    return _by_index(found) if _has_length(found) else found


def _has_length(data: Any) -> bool:
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


class Form(NamedTuple):
    """A container of data: its name in messages, what has it, how it is read, and its items if it is a series of values."""

    name: str
    holds: Callable[[Any], bool]
    read: Callable[[Parser, Any], Iterator[Record]]
    items: Optional[Callable[[Any], Iterable[Any]]] = None


def _series(name: str, holds: Callable[[Any], bool], items: Callable[[Any], Iterable[Any]]) -> Form:
    return Form(name, holds, lambda parser, data: parser._items(items(data)), items)


#: The first that holds the data reads it.
FORMS = (
    Form("a DataFrame", is_frame, Parser.records),
    Form("a dict of arrays", lambda data: isinstance(data, Mapping), Parser.records),
    Form("an array", lambda data: is_array(data) and hasattr(data, "ndim"), Parser.records),
    Form("a tuple " + _PARTS, lambda data: isinstance(data, tuple), Parser._tuple),
    Form("a list of records", lambda data: isinstance(data, list), Parser._list),
    _series("a function that returns an iterable", lambda data: inspect.isroutine(data) or isinstance(data, partial), _called),
    _series("a data set with an index", lambda data: _has_length(data) and not isinstance(data, (str, bytes)), _by_index),
    _series("an iterable of records", lambda data: hasattr(data, "__iter__") and not isinstance(data, (str, bytes)), iter),
)
