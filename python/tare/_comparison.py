"""Comparisons: accuracy, size and estimated time of quantized models next to the float model."""

import html
import json
import os
import re
import tempfile
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Union

import numpy as np

from . import _native
from ._arrays import NativeArray, TakenArray, TensorSpec, copy
from ._calibrate import calibrate
from ._calibration import Calibration
from ._data import Data, check_limit, is_path, native_records, records_of
from ._errors import InvalidArgumentError, Status, UsageError, data_errors
from ._model import Model, expect_model
from ._options import one_path, option_text, paths, with_options
from ._owner import Owner
from ._progress import Progress, reporting
from ._table import Table, framed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import Algorithm, CompareOptions, Method, MetricName

__all__ = ["Comparison", "Metric", "compare"]

Path = Union[str, "os.PathLike[str]"]
Arrays = Dict[str, "np.ndarray[Any, Any]"]

_JSON, _HTML, _CSV, _TEXT, _NODE_DATA = 1, 2, 3, 4, 5


class Metric(Protocol):
    """A metric that takes records one at a time, for outputs that do not fit into memory at once.

    An attribute ``lower_is_better = True`` makes the smallest value the best. The methods are called on the thread that
    called `compare`.

    Examples
    --------
    >>> class Worst:
    ...     lower_is_better = True
    ...     def reset(self):
    ...         self.value = 0.0
    ...     def update(self, outputs, record):
    ...         self.value = max(self.value, 1 - float(outputs["probabilities"].max()))
    ...     def result(self):
    ...         return self.value
    >>> tare.compare(model, images[:20], methods=["weight_only"], metric=Worst()).measure
    'Worst'
    """

    def reset(self) -> None:
        """Called before the records of each model."""

    def update(self, outputs: Arrays, record: Arrays) -> None:
        """Called for each record, in the order of the data, with the outputs of a model and the record, labels included."""

    def result(self) -> float:
        """Called after the last record of each model; NaN if there is no value."""


#: Called once per model with the outputs of all records (an array if the signature has one output, otherwise a dict), and
#: their labels (None without labels).
MetricFunction = Callable[[Any, Any], float]


def _joined(parts: List["np.ndarray[Any, Any]"]) -> "np.ndarray[Any, Any]":
    """The rows of all records in one array; a new first dimension if they are scalars or differ in shape."""
    if parts[0].ndim and all(part.shape[1:] == parts[0].shape[1:] for part in parts):
        return np.concatenate(parts)
    if all(part.shape == parts[0].shape for part in parts):
        return np.stack(parts)
    array = np.empty(len(parts), object)
    array[:] = parts
    return array


class _Collector:
    """Collects outputs and labels for a metric function."""

    def __init__(self, function: MetricFunction, label: str) -> None:
        self._function, self._label = function, label
        self.reset()

    def reset(self) -> None:
        self._outputs: Dict[str, List["np.ndarray[Any, Any]"]] = {}
        self._labels: List["np.ndarray[Any, Any]"] = []
        self._records = 0

    def update(self, outputs: Arrays, record: Arrays) -> None:
        self._records += 1
        for name, value in outputs.items():
            self._outputs.setdefault(name, []).append(value)
        if self._label in record:
            self._labels.append(record[self._label])

    def result(self) -> float:
        outputs = {name: _joined(parts) for name, parts in self._outputs.items()}
        if self._labels and len(self._labels) < self._records:
            raise InvalidArgumentError(
                f"metric: {len(self._labels)} of {self._records} records have '{self._label}' (expected all, or none)"
            )
        labels = _joined(self._labels) if self._labels else None
        return float(self._function(next(iter(outputs.values())) if len(outputs) == 1 else outputs, labels))


class _NativeMetric:
    """What the extension module calls."""

    def __init__(self, metric: Union[Metric, _Collector]) -> None:
        self._metric = metric

    def begin(self) -> None:
        self._metric.reset()

    def record(self, outputs: List[TakenArray], record: List[TakenArray]) -> None:
        self._metric.update(copy(outputs), copy(record))

    def end(self) -> float:
        return float(self._metric.result())


def _metric_name(metric: Any) -> str:
    name = str(getattr(metric, "__name__", None) or getattr(metric, "name", None) or type(metric).__name__)
    return name.encode(errors="replace").decode().replace("\0", "?")


def _check_metric(metric: Any) -> None:
    if metric is None or isinstance(metric, str):
        return
    if isinstance(metric, type):
        raise InvalidArgumentError(f"metric: expected an object of the class {metric.__name__}, got the class")
    if not callable(metric) and not all(hasattr(metric, name) for name in ("reset", "update", "result")):
        raise InvalidArgumentError(
            f"metric: expected a name, a function, or an object with reset, update and result; got {type(metric).__name__}"
        )


def _rules(text: str) -> List[str]:
    """The rules of a recipe, without comments."""
    lines = (re.sub(r"  #[^\"]*$", "", line).rstrip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


@contextmanager
def given_models(others: Any) -> Iterator[Optional[List[str]]]:
    """Paths of the models to compare with. Those in memory are in a temporary folder meanwhile, and named by their place."""
    if others is None:
        yield None
        return
    single = isinstance(others, (Model, str, bytes, os.PathLike))
    if not isinstance(others, Mapping):
        if not single and not isinstance(others, (list, tuple)):
            raise InvalidArgumentError(f"others: expected a Model or a path, got {type(others).__name__}")
        several = [others] if single else others
        others = {("model " if isinstance(o, Model) else "") + str(i + 1): o for i, o in enumerate(several)}
    with tempfile.TemporaryDirectory(prefix="tare-") as folder:
        found = []
        for name, other in others.items():
            if not isinstance(name, str) or not name or os.sep in name or name in (".", ".."):
                raise InvalidArgumentError(f"others: invalid name {name!r} (expected one without '/')")
            path = os.path.join(folder, name)
            if isinstance(other, Model):
                other.save(path)
            elif isinstance(other, (str, bytes, os.PathLike)) and name.isdigit():
                path = os.fsdecode(one_path(other))
            elif isinstance(other, (str, bytes, os.PathLike)):
                os.symlink(os.path.abspath(os.fsdecode(one_path(other))), path)
            else:
                raise InvalidArgumentError(f"others: expected a Model or a path, got {type(other).__name__}")
            found.append(path)
        yield found


def _quantize_arguments(row: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Of the plan of a row: options `name=value`, and rules for layers, one per line."""
    if "quantize_command" not in row:
        return None
    found: Dict[str, Any] = {}
    for line in row["plan"].splitlines():
        if "->" in line:
            found.setdefault("rule", []).append(line)
        else:
            name, value = line.split("=", 1)
            found[name] = int(value) if value.isdigit() else {"true": True, "false": False}.get(value, value)
    return found


class Comparison(Owner):
    """The result of `compare`: one row per model, the float model first.

    Notebooks show the page that `save_html` writes.

    Attributes
    ----------
    rows : Table
        One dict per model with the keys of ``results`` in docs/json.md, and ``value`` (of the measure), ``low`` and
        ``high`` (95 % interval), ``difference``, ``difference_low``, ``difference_high`` (from float, 95 % interval),
        ``recommended``, and ``arguments``: those of
        `Model.quantize` that make the model, None where it does not (float, computation in bfloat16, other models).
    measure : str
        What models are ranked by: ``"top1"``, ``"mae"``, ``"sqnr"`` … or the name of a metric.
    verdict : str
        The recommendation as a sentence; empty where there is nothing to recommend.
    warnings : list of str
        What was issued as `TareWarning`, and what is known of the calibration and of each layer.
    skipped : Table
        Combinations that were not measured, with the ``reason``.

    Examples
    --------
    >>> result = tare.compare(model, (images[:100], labels[:100]), methods=["weight_only", "dynamic"], margin=10)
    >>> result.rows.column("method")
    ['float', 'weight_only', 'dynamic']
    >>> result.measure
    'top1'
    """

    rows: Table
    measure: str
    verdict: str
    warnings: List[str]
    skipped: Table

    def __init__(self, handle: Any, options: Mapping[str, Any]) -> None:
        self._held, self._options = handle, options
        self._report = self.describe()
        values = self._report["measure"]["results"]
        self.rows = Table(
            {**row, **value, "arguments": _quantize_arguments(row)}
            for row, value in zip(self._report["results"], values)
        )
        self.measure = self._report["measure"]["name"]
        self.verdict = self._report.get("verdict", "")
        self.warnings = self._report["warnings"]
        self.skipped = Table(self._report.get("skipped", []))

    def __copy__(self) -> "Comparison":
        """The result does not change; a copy has rows of its own."""
        return Comparison(self._handle, self._options)

    def __deepcopy__(self, memo: Any) -> "Comparison":
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise TypeError("a Comparison cannot be pickled (use describe or save_html)")

    def __repr__(self) -> str:
        return f"<tare.Comparison of {len(self.rows)} models on {self._report['records']} records by {self.measure}>"

    def __str__(self) -> str:
        return _native.comparison_report(self._handle, _TEXT)

    def describe(self) -> Dict[str, Any]:
        """Everything, with the keys of ``tare compare --json`` (docs/json.md)."""
        described: Dict[str, Any] = json.loads(_native.comparison_report(self._handle, _JSON))
        return described

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Model, measure, accuracy, size and estimated time; figures by output are left out.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        rows = ({name: value for name, value in row.items() if name not in ("outputs", "arguments")} for row in self.rows)
        return Table(rows).to_dataframe()

    def best(self) -> Optional[Dict[str, Any]]:
        """The recommended row, or the mix of precisions that a target chose; None if no smaller model keeps up with float.

        Returns
        -------
        dict or None
            A row of `rows`. Its ``arguments``, with the calibration, make the model.

        Examples
        --------
        >>> result.best()["method"]
        'weight_only'
        >>> small = model.quantize(**result.best()["arguments"], calibration=None)
        >>> small.weight_bytes == result.best()["size_bytes"]
        True
        """
        return next((row for row in self.rows if row["recommended"]), None) or self._mix()

    def _mix(self) -> Optional[Dict[str, Any]]:
        """The mix of precisions that a target chose, as a row."""
        target = self._report.get("target", {})
        chosen = next((dict(point) for point in target.get("points", []) if point["chosen"]), None)
        base = next((row["arguments"] for row in self.rows if row["method"] == target.get("method") and row["arguments"]), None)
        if chosen is None or base is None:
            return None
        rules = [*base.get("rule", []), *_rules(target["rules"])]
        arguments = {**base, "rule": rules} if rules else base
        return {"method": target["method"], **chosen, "value": chosen.get("measure"), "recommended": True, "arguments": arguments}

    def sensitivity(self) -> Table:
        """The layers by their effect on accuracy, the worst first.

        Returns
        -------
        Table
            ``function``, ``layer``, ``op``, ``weight_elements``, and figures ``alone`` (only this layer quantized),
            ``all_but_it`` and ``kept_so_far``.

        Raises
        ------
        InvalidArgumentError
            It was not measured: pass ``sensitivity=True`` to `compare`.
        """
        if "sensitivity" not in self._report:
            raise InvalidArgumentError("the sensitivity was not measured (pass sensitivity=True to compare)")
        return Table(self._report["sensitivity"]["layers"])

    def to_html(self) -> str:
        """A page with plots and tables, without external references."""
        return _native.comparison_report(self._handle, _HTML)

    def save_html(self, path: Path) -> None:
        """Write the page of `to_html` to a file.

        Parameters
        ----------
        path : path
            The file, which is replaced.

        Examples
        --------
        >>> result.save_html(tmp / "compare.html")
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_html())

    def to_csv(self) -> str:
        """One line per model and output, with a header line."""
        return _native.comparison_report(self._handle, _CSV)

    def to_node_data(self) -> str:
        """The error of each layer as node data of Model Explorer, which colours the nodes of the SavedModel by it.

        Returns
        -------
        str
            JSON, as ``tare compare --node-data`` writes it.

        Examples
        --------
        >>> "results" in result.to_node_data()
        True
        """
        return _native.comparison_report(self._handle, _NODE_DATA)

    def _repr_html_(self) -> str:
        return framed(self.to_html())


def _calibrates_first(data: Data, samples: Data, spec: Optional[Path], options: Mapping[str, Any]) -> bool:
    """Whether the samples become a calibration before the comparison: which records are left follows from one, and the library
    applies a spec to all files."""
    return bool(options.get("rest")) or (spec is not None and is_path(data) != is_path(samples))


def _native_data(
    data: Data, argument: str, inputs: Mapping[str, TensorSpec], limit: Optional[int], reads: Mapping[str, Any]
) -> Union[List[bytes], Iterator[List[NativeArray]]]:
    """Paths, or the records of data in memory. `reads`: as for `records_of`."""
    return paths(data) if is_path(data) else _native_memory(data, argument, inputs, limit, reads)


def _native_memory(
    data: Data, argument: str, inputs: Mapping[str, TensorSpec], limit: Optional[int], reads: Mapping[str, Any]
) -> Iterator[List[NativeArray]]:
    with data_errors("data", argument):
        yield from native_records(islice(records_of(data, inputs, **reads), limit or None), inputs)


def compare(
    model: Model,
    data: Data,
    *,
    calibration: Union[Calibration, Data, None] = None,
    methods: "Union[Method, Sequence[Method], None]" = None,
    algorithms: "Union[Algorithm, Sequence[Algorithm], None]" = None,
    label: str = "label",
    target: Optional[str] = None,
    metric: "Union[MetricName, MetricFunction, Metric, None]" = None,
    others: Union[Model, Path, Sequence[Union[Model, Path]], Mapping[str, Union[Model, Path]], None] = None,
    signature: Optional[str] = None,
    spec: Optional[Path] = None,
    sensitivity: bool = False,
    workers: Optional[int] = None,
    limit: Optional[int] = None,
    progress: Progress = None,
    **options: "Unpack[CompareOptions]",
) -> Comparison:
    """Run the float model and each quantized one on the same records.

    Parameters
    ----------
    model : Model
        The float model.
    data : array, tuple, dict of arrays, iterable, DataFrame, or path(s)
        As for `calibrate`, and with labels: in a dict or DataFrame under `label`, or last in a tuple
        ``(inputs, labels)``. Data from memory is kept in a temporary file during the call, because each model reads it.
    calibration : Calibration, or data for one
        Needed by the method ``"static"``; as data, which may have labels, also by the option ``auto``.
    methods : list of str
        Of ``"static"``, ``"dynamic"``, ``"weight_only"``, ``"bfloat16"``, with settings: ``"weight_only:bits=4"``.
        Default: all that apply.
    algorithms : list of str
        Calibration algorithms of ``"static"``. Default: ``"min_max"``.
    label : str
        Key of the class index, or of an output: the values expected for it.
    target : str, optional
        Key of the values expected for the first output (regression).
    metric : str, callable or Metric, optional
        What ranks the models: a built-in metric (``"top1"``, ``"auc"``, ``"mae"``, ``"rmse"``, ``"r2"``, ``"sqnr"``),
        a function ``metric(outputs, labels)`` that returns a number, or a `Metric`. Default: inferred from the data.
        Functions get the outputs of all records in one array (or a dict of arrays), and the labels likewise.
    others : Model, path, or list or dict of them, optional
        Also compare these quantized or converted versions of the model, by the names of a dict. Only they are compared unless
        there are `methods`.
    signature, spec, workers, limit, progress
        As for `calibrate`.
    sensitivity : bool
        Also measure each layer alone (`Comparison.sensitivity`).
    **options
        Further options of ``tare compare``: ``granularities="per_tensor"``, ``margin=0.5`` (points that a recommended
        model may lose), ``auto=True`` (also measure settings chosen on the samples), ``chip="v5e"``, ``bits=4``, ``feedback``
        and ``sequence`` as for `calibrate`.

    Returns
    -------
    Comparison

    Raises
    ------
    UsageError
        No method is applicable.
    Exception
        What a metric or the data raised.

    Examples
    --------
    >>> def mean_confidence(outputs, labels):
    ...     return float(outputs.max(axis=-1).mean())
    >>> tare.compare(model, images[:50], methods=["weight_only"], metric=mean_confidence).measure
    'mean_confidence'
    """
    expect_model(model)
    _check_metric(metric)
    if spec is not None and not is_path(data) and not is_path(calibration):
        raise UsageError("spec: applies to files (the data is in memory)", Status.USAGE)
    samples = None if isinstance(calibration, Calibration) else calibration
    if samples is not None and _calibrates_first(data, samples, spec, options):
        own = spec if is_path(samples) else None
        with data_errors("data", "calibration"):
            state: Any = {name: value for name, value in options.items() if name in ("feedback", "sequence")}
            calibration = calibrate(model, samples, signature=signature, spec=own, workers=workers, progress=progress, **state)
        samples = None
    custom = None if metric is None or isinstance(metric, str) else metric
    given = with_options({"methods": methods, "algorithms": algorithms, "label": label, "target": target, "signature": signature,
             "threads": workers, "limit": limit, "metric": metric if custom is None else None,
             "sensitivity": sensitivity or None, "spec": spec if is_path(data) else None}, options)  # fmt: skip
    check_limit(limit)
    chosen = model._signature(signature)
    reads = {"label": target or label, **model._reads(chosen)}
    streamed: Any = custom if custom is None or hasattr(custom, "update") else _Collector(custom, target or label)
    with ExitStack() as held:
        given["with"] = held.enter_context(given_models(others))
        for name, argument in (("samples", "calibration"), ("memory", "data")):  # errors without a name are of data
            held.enter_context(data_errors(name, argument))
        held.enter_context(model._context.lock)
        held.enter_context(reporting(model._context.handle, progress))
        handle = _native.comparison_open(
            model._handle,
            _native_data(data, "data", chosen.inputs, limit, reads),
            calibration._handle if isinstance(calibration, Calibration) else None,
            None if samples is None else _native_data(samples, "calibration", chosen.inputs, None, reads),
            None if custom is None else _NativeMetric(streamed),
            None if custom is None else _metric_name(custom),
            bool(getattr(custom, "lower_is_better", False)),
            option_text(given),
        )
    return Comparison(handle, options)
