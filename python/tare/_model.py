"""Models: opened from a SavedModel, or made by quantization and conversion."""

import copy
import difflib
import html
import json
import os
import re
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _native
from ._arrays import TensorSpec, encoded, is_python, native_inputs, take
from ._calibration import Calibration
from ._data import Data, as_paths, is_path
from ._errors import Error, InvalidArgumentError, NotFoundError, Status, UsageError
from ._forms import Parser, described, is_items
from ._options import argument, message_text, one_path, option_text
from ._owner import Owner
from ._progress import Progress, on_log, reporting
from ._report import Report
from ._run import fixed_size, in_batches, joined
from ._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import Algorithm, Chip, Granularity, MethodName, MetricName, Pass, QuantizeOptions

__all__ = ["Function", "Model", "Signature", "load"]

Path = Union[str, "os.PathLike[str]"]

_OVERWRITE = 1
_CALIBRATION_FILE = b"TARECAL\n"  # how one begins
_CONVERT_ARGUMENTS = ("options", "functions", "calibration", "allow_incompatible", "allow_dependent_rows", "bfloat16_outputs", "keep_tags", "progress")
_MOST_THREADS = 1024
_MOST_RUNNERS = 8  # of a function, by dtypes and shapes of the arguments
_ALLOW_INCOMPATIBLE, _FIND_FUNCTIONS, _BFLOAT16_OUTPUTS, _KEEP_TAGS, _ALLOW_DEPENDENT_ROWS = 1, 2, 4, 8, 16


class Signature(NamedTuple):
    """A signature of a model.

    Attributes
    ----------
    name : str
        ``"serving_default"``, for example.
    inputs, outputs : dict of str to TensorSpec
        By name, in the order of the model.

    Examples
    --------
    >>> list(model.signatures["serving_default"].outputs)
    ['probabilities']
    """

    name: str
    inputs: Dict[str, TensorSpec]
    outputs: Dict[str, TensorSpec]


def _dims(shape: Optional[Tuple[Optional[int], ...]]) -> str:
    return "of any rank" if shape is None else "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"


def _join(values: Dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add inputs; one that is given twice would otherwise be passed over."""
    for name in more:
        if name in values:
            raise InvalidArgumentError(f"input {name}: is given twice (expected once, in the dict or as a keyword)")
    values.update(more)


def calibration_handle(calibration: Any) -> Any:
    """The handle for the extension module; None for None."""
    if calibration is None:
        return None
    if not isinstance(calibration, Calibration):
        raise InvalidArgumentError(
            f"calibration: expected a Calibration, got {type(calibration).__name__}"
            " (make one with tare.calibrate, or read a file with tare.Calibration.load)"
        )
    return calibration._handle


def _loaded(calibration: Any) -> Any:
    """The Calibration in a file, instead of its path; anything else as it is."""
    if isinstance(calibration, (str, os.PathLike)) and os.path.isfile(calibration):
        with open(calibration, "rb") as file:
            if file.read(len(_CALIBRATION_FILE)) == _CALIBRATION_FILE:
                return Calibration.load(calibration)
    return calibration


def _with_nearest(text: str) -> str:
    """Adds the argument of `convert` that a name that is no field resembles."""
    found = re.search(r"has no field '(\w+)'$", text)
    near = difflib.get_close_matches(found.group(1), _CONVERT_ARGUMENTS, 1) if found else []
    return f"{text} (did you mean '{near[0]}'?)" if near else text


@contextmanager
def overwriting(overwrite: bool) -> Iterator[None]:
    """Names the argument where a directory that exists is not to be replaced."""
    try:
        yield
    except Error as error:
        if "already exists" not in str(error) or overwrite:
            raise
        raise type(error)(f"{error} (pass overwrite=True to replace it)", error.status) from None


def expect_model(model: Any) -> "Model":
    """The model; a path or a model of another library in its place is a frequent mistake."""
    if not isinstance(model, Model):
        raise InvalidArgumentError(f"model: expected a Model, got {type(model).__name__} ({_remedy(model)})")
    return model


def _remedy(model: Any) -> str:
    """How to make a Model of what was passed instead of one."""
    if isinstance(model, (str, os.PathLike)):
        return f"open it with tare.load({os.fspath(model)!r})"
    library = {base.__module__.split(".")[0] for base in type(model).__mro__}
    if library & {"keras", "tf_keras"}:
        return "write it with model.export('my_model') and open it with tare.load('my_model')"
    if "tensorflow" in library:
        return "write it with tf.saved_model.save(model, 'my_model') and open it with tare.load('my_model')"
    if library & {"torch", "flax", "jax", "equinox"} or callable(model):
        return "export it as a SavedModel or a StableHLO module, docs/exporting.md, and open that with tare.load"
    return "open one with tare.load"


class _Turn:
    """A lock of long calls. One that a callback of a long call starts is refused if it would wait for that call, directly or
    through long calls of other threads whose callbacks wait in turn."""

    _waiting: "Dict[int, _Turn]" = {}  # by thread
    _table = threading.Lock()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: Optional[int] = None

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._table:
            turn: Optional[_Turn] = self
            while turn and turn._owner is not None:
                if turn._owner == thread:
                    raise RuntimeError("a callback may not call the library with a model whose call waits for it")
                turn = self._waiting.get(turn._owner)
            self._waiting[thread] = self
        try:
            self._lock.acquire()
            self._owner = thread
        finally:
            del self._waiting[thread]

    def __exit__(self, *_: Any) -> None:
        self._owner = None
        self._lock.release()


class Context:
    """What the models of one load share: callbacks, threads, custom ops. Long calls take turns."""

    def __init__(self, threads: int, plugins: Union[Path, Sequence[Path]], allow_missing_variables: bool = False) -> None:
        self.handle = _native.context(on_log)
        self.lock = _Turn()
        if not isinstance(threads, (int, np.integer)) or not 0 <= threads <= _MOST_THREADS:
            raise InvalidArgumentError(f"threads: invalid number (expected 0 to {_MOST_THREADS}, got {threads})")
        _native.context_set(self.handle, int(threads), allow_missing_variables)
        for plugin in [plugins] if isinstance(plugins, (str, bytes, os.PathLike)) else plugins:
            _native.context_plugin(self.handle, one_path(plugin))


class Function:
    """A function of a model, called by its alias or name. Made by `Model.function`.

    Examples
    --------
    >>> f = model.function("tpu_func")
    >>> [array.shape for array in f(image=images[:3]).values()]
    [(3, 10)]
    """

    def __init__(self, model: "Model", name: str) -> None:
        self._model = model
        self._runners: Dict[Any, List[Any]] = {}
        self._arguments: Dict[str, int] = {}
        self.name = name

    def __call__(self, *args: Any, **arguments: Any) -> "Dict[str, np.ndarray[Any, Any]]":
        """Run the function once. The first call with other dtypes or shapes opens the model again.

        Parameters
        ----------
        *args : dict of str to array_like
            Arguments by name, as an alternative to keywords.
        **arguments : array_like
            Arguments by name. Dtypes and shapes select one of several concrete functions. Python numbers and lists get
            the dtype of the argument, if it is the same in all of these.

        Returns
        -------
        dict of str to ndarray
            Outputs by name.

        Raises
        ------
        NotFoundError
            No function has this name, or none takes these arguments.
        """
        values: Dict[str, Any] = {}
        for given in args:
            if not isinstance(given, Mapping):
                raise InvalidArgumentError(f"function {self.name}: pass arguments by name (expected a dict or keywords)")
            _join(values, given)
        _join(values, arguments)
        tuples, keep = native_inputs(values, {name: self._argument(name) for name, value in values.items() if is_python(value)})
        free = self._free_runners(tuple((name, number, shape) for name, number, shape, _ in tuples))
        try:
            runner = free.pop()
        except IndexError:
            runner = _native.runner_open_function(self._model._handle, self.name, tuples)
        try:
            outputs = take(*_native.runner_run(runner, tuples))
        finally:
            free.append(runner)
        del keep
        return outputs

    def _argument(self, name: Any) -> TensorSpec:
        """The element type that Python numbers get; an array has its own, which selects one of several concrete functions."""
        if name not in self._arguments:
            known = encoded(name).decode()
            self._arguments[name] = _native.function_argument(self._model._handle, self.name, known)
        return TensorSpec(name, "", None, self._arguments[name])

    def _free_runners(self, arguments: Any) -> List[Any]:
        """Runners of the concrete function for these arguments. Those of the oldest arguments are closed."""
        while len(self._runners) >= _MOST_RUNNERS and arguments not in self._runners:
            self._runners.pop(next(iter(self._runners), None), None)
        return self._runners.setdefault(arguments, [])

    def __repr__(self) -> str:
        return f"<tare.Function {self.name}>"

    def __copy__(self) -> "Function":
        return Function(self._model, self.name)

    def __deepcopy__(self, memo: Any) -> "Function":
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise TypeError("a Function cannot be pickled (save its model)")


class Model(Owner):
    """A model that can be run, calibrated, quantized, compared, converted and saved. Immutable.

    Models are made by `load`, `Model.quantize` and `Model.convert`. Several threads may use one model: `run` runs in
    parallel, and the long calls of the models of one `load` take turns, because they share a progress callback.

    Attributes
    ----------
    path : str or None
        The directory it was loaded from; None for a model made from another one.
    report : dict or None
        The report of the quantization or conversion that made it.

    Examples
    --------
    >>> model = tare.load(glyphs / "saved_model")
    >>> model
    <tare.Model saved_model: serving_default>
    >>> model.weight_bytes
    153392
    """

    path: Optional[str]
    report: Optional[Report]

    def __init__(
        self, handle: Any, context: Optional[Context] = None, path: Optional[str] = None, report: Optional[Report] = None
    ) -> None:
        if context is None:
            raise TypeError(f"a Model is made by tare.load (got Model({handle!r}))")
        self._held = handle
        self._context = context
        self._runners: Dict[str, List[Any]] = {}
        self._description: Optional[str] = None
        self.path = path
        self.report = report
        self._signatures = {
            name: Signature(
                name, {i[0]: TensorSpec._of(i) for i in inputs}, {o[0]: TensorSpec._of(o) for o in outputs}
            )
            for name, inputs, outputs in _native.model_signatures(handle)
        }

    def __repr__(self) -> str:
        name = os.path.basename(os.path.normpath(self.path)) if self.path else "in memory"
        return f"<tare.Model {name}: {', '.join(self._signatures)}>"

    def close(self) -> None:
        """Release the memory of the model, which cannot be used any more; also the end of a ``with`` statement."""
        super().close()
        self._runners.clear()

    def _repr_html_(self) -> str:
        tensors = [(signature, kind, spec) for signature in self._signatures.values()
                   for kind, specs in (("input", signature.inputs), ("output", signature.outputs)) for spec in specs.values()]  # fmt: skip
        rows = [{"signature": s.name, "": kind, "name": t.name, "dtype": t.dtype, "shape": _dims(t.shape)} for s, kind, t in tensors]
        return f"<p>{html.escape(repr(self))}, weights {self.weight_bytes / 1e6:.3g} MB</p>{Table(rows)._repr_html_()}"

    def __copy__(self) -> "Model":
        """Models are immutable: a copy shares all of it."""
        return Model(self._handle, self._context, self.path, self.report)

    def __deepcopy__(self, memo: Any) -> "Model":
        return Model(self._handle, self._context, self.path, copy.deepcopy(self.report, memo))

    def __reduce__(self) -> Any:
        raise TypeError("a Model cannot be pickled (use save and tare.load)")

    # ---- description

    @property
    def signatures(self) -> Dict[str, Signature]:
        """Signatures by name, in the order of the model."""
        return dict(self._signatures)

    def describe(self) -> Dict[str, Any]:
        """Signatures, aliases, functions, variables and ops, with the keys of ``tare inspect --json``.

        Returns
        -------
        dict
            See docs/json.md.

        Examples
        --------
        >>> model.describe()["ops"]["MatMul"]
        1
        """
        if self._description is None:
            self._description = _native.model_describe(self._handle)
        described: Dict[str, Any] = json.loads(self._description)  # the caller's own
        return described

    @property
    def aliases(self) -> Dict[str, List[str]]:
        """Aliases with the concrete functions that have them.

        Examples
        --------
        >>> model.aliases
        {'tpu_func': ['__inference_tpu_func_101']}
        """
        aliases: Dict[str, List[str]] = {}
        for function, alias in self.describe()["aliases"].items():
            aliases.setdefault(alias, []).append(function)
        return aliases

    @property
    def weight_bytes(self) -> int:
        """Bytes of all constants and variables."""
        return _native.model_weight_size(self._handle)

    def layers(
        self,
        method: "MethodName" = "weight_only",
        calibration: Union[Calibration, Data, None] = None,
        **options: "Unpack[QuantizeOptions]",
    ) -> Table:
        """List the quantizable layers, as a method would quantize them.

        Parameters
        ----------
        method : {"weight_only", "static", "dynamic"}
            Method of quantization.
        calibration : Calibration, or data for one, optional
            Needed by ``"static"``.
        **options
            As for `quantize`.

        Returns
        -------
        Table
            One row per layer: ``function``, ``layer``, ``op``, ``quantized`` or ``refused`` (the reason), weight and
            activation parameters; all keys are in docs/json.md.

        Examples
        --------
        >>> model.layers().column("op")[:2]
        ['Conv2D', 'DepthwiseConv2dNative']
        """
        return Table(self._quantized(method, calibration, options, False)[1]["layers"])

    # ---- running

    def _signature(self, name: Optional[str]) -> Signature:
        if name is None:
            if "serving_default" in self._signatures:
                return self._signatures["serving_default"]
            if len(self._signatures) == 1:
                return next(iter(self._signatures.values()))
        if not isinstance(name, str) or name not in self._signatures:
            raise NotFoundError(f"signature: {name} does not exist (expected {', '.join(self._signatures)})", Status.NOT_FOUND)
        return self._signatures[name]

    def _reads(self, signature: Signature) -> Dict[str, Any]:
        """What the parser of data needs to know of a signature besides its inputs."""
        return {"outputs": list(signature.outputs), "separable": lambda two: self._are_examples(signature, two)}

    def _are_examples(self, signature: Signature, two: Mapping[str, Any]) -> bool:
        """Whether the rows of two are examples: their outputs are those of each alone."""
        if any(spec.shape is not None and spec.shape[:1] != (None,) for spec in signature.outputs.values()):
            return False
        parts = [{n: value[i : i + 1] if signature.inputs[n].shape else value for n, value in two.items()} for i in (0, 1)]
        try:
            together, *alone = (self._run(signature, values) for values in (two, *parts))
        except Error:
            return True  # the library reports it with the record
        return all(
            value.shape[:1] == (2,) and all(value[i : i + 1].tobytes() == one[name].tobytes() for i, one in enumerate(alone))
            for name, value in together.items()
        )

    def run(
        self, inputs: Any = None, *, signature: Optional[str] = None, batch_size: Optional[int] = None, **named: Any
    ) -> "Dict[str, np.ndarray[Any, Any]]":
        """Run a signature on the CPU.

        Arrays with the dtype of the input, C-contiguous and in native byte order, are not copied, and neither are the
        outputs. Python numbers and lists get the dtype of the input. The GIL is released. A model with state
        (variables that it assigns, tables) keeps it per signature and per thread that runs at the same time.

        Parameters
        ----------
        inputs : dict of str to array_like, array_like, DataFrame, or iterable
            Arrays by input, in a dict, a DataFrame or a tuple; one array if the signature has one input. A data set or another
            iterable of batches (`calibrate` lists them) is run batch by batch, without its labels.
        signature : str, optional
            Default: ``serving_default``, or the only one.
        batch_size : int, optional
            Run so many rows at a time, as ``predict`` of Keras: memory for values of the model does not grow with the
            number of rows. Default: all at once, or as many as the inputs have if they fix their number.
        **named : array_like
            Inputs as keywords.

        Returns
        -------
        dict of str to ndarray
            Outputs by name. Strings are object arrays of bytes; bfloat16 has the dtype of ``ml_dtypes``, or is uint16
            without that package (`bfloat16_to_float32`).

        Raises
        ------
        DTypeError, ShapeError, InvalidArgumentError
            An input does not match the signature.
        UnsupportedError
            The signature has an op without a kernel.

        Examples
        --------
        >>> model.run({"image": images[:2]})["probabilities"].shape
        (2, 10)
        >>> model.run(images, batch_size=32)["probabilities"].dtype
        dtype('float32')
        """
        chosen = self._signature(signature)
        parser = Parser(chosen.inputs)
        if inputs is not None and not named and is_items(inputs):
            if batch_size is not None:
                raise UsageError(f"batch_size: applies to arrays (got {described(inputs)}, whose items are batches)", Status.USAGE)
            return joined([self._run_rows(chosen, batch, None) for batch in parser.batches(inputs)])
        values = parser.batch(inputs) if inputs is not None else {}
        _join(values, parser.batch(named) if named else {})
        return self._run_rows(chosen, values, batch_size)

    def _run_rows(self, chosen: Signature, values: Mapping[str, Any], batch_size: Optional[int]) -> "Dict[str, np.ndarray[Any, Any]]":
        size = fixed_size(values, chosen.inputs) if batch_size is None else batch_size
        if size is None:
            return self._run(chosen, values)
        return in_batches(lambda part: self._run(chosen, part), values, chosen.inputs, size)

    def _run(self, chosen: Signature, values: Mapping[str, Any]) -> "Dict[str, np.ndarray[Any, Any]]":
        tuples, keep = native_inputs(values, chosen.inputs)
        free = self._runners.setdefault(chosen.name, [])
        try:
            runner = free.pop()
        except IndexError:  # all are at work on other threads
            runner = _native.runner_open(self._handle, chosen.name)
        try:
            outputs = take(*_native.runner_run(runner, tuples))
        finally:
            free.append(runner)
        del keep
        return outputs

    def function(self, name: str) -> Function:
        """A function by alias, by name, by path ("layer.call"), or by its name in the program.

        Parameters
        ----------
        name : str
            An alias of `aliases`, for example.

        Returns
        -------
        Function
            To be called with its arguments by name.

        Examples
        --------
        >>> model.function("tpu_func")
        <tare.Function tpu_func>
        """
        return Function(self, argument("function", name))

    # ---- quantizing and converting

    def _quantized(
        self, method: str, calibration: Union[Calibration, Data, None], options: Mapping[str, Any], keep: bool
    ) -> Tuple[Any, Dict[str, Any]]:
        options = dict(options)
        calibration = _loaded(calibration)
        if calibration is not None and not isinstance(calibration, Calibration):
            if options.get("data") is not None:
                raise UsageError("calibration: is data, and so is the option data (expected one of them)", Status.USAGE)
            options["data"], calibration = calibration, None
        handle = calibration_handle(calibration)
        argument("method", method)
        with ExitStack() as held:
            if options.get("data") is not None:
                if options.get("spec") is not None and not is_path(options["data"]):
                    raise UsageError("spec: applies to files (calibration is in memory)", Status.USAGE)
                chosen = self._signature(options.get("signature"))
                files = as_paths(options["data"], "calibration", chosen.inputs, "label", **self._reads(chosen))
                options["data"] = [os.fsdecode(path) for path in held.enter_context(files)]
            held.enter_context(self._context.lock)
            made, report = _native.model_quantize(self._handle, method, handle, option_text(options), keep)
        return made, json.loads(report)

    def quantize(
        self,
        method: "MethodName" = "static",
        calibration: Union[Calibration, Data, None] = None,
        *,
        algorithm: "Optional[Algorithm]" = None,
        granularity: "Optional[Granularity]" = None,
        bits: "Optional[Literal[4, 8]]" = None,
        passes: "Union[Pass, Sequence[Pass], None]" = None,
        recipe: Optional[Path] = None,
        **options: "Unpack[QuantizeOptions]",
    ) -> "Model":
        """Return a quantized copy that still runs on a CPU.

        Parameters
        ----------
        method : {"static", "dynamic", "weight_only", "float"}
            ``"float"`` quantizes only what a recipe selects.
        calibration : Calibration, the path of one, or data for one, optional
            Of this model; needed by ``"static"``. Data as for `tare.calibrate`: it gives what the passes need, too.
        algorithm : str, optional
            Calibration algorithm: ``"min_max"``, ``"mse"``, ``"percentile:p=99.9"``, ``"entropy"`` …
        granularity : str, optional
            Of weight scales: ``"per_channel"``, ``"per_tensor"``, ``"per_block:64"``.
        bits : {8, 4}, optional
            Bit width of weights.
        passes : str or list of str, optional
            Accuracy passes: ``"gptq"``, ``"bias_correction"`` …
        recipe : path, optional
            File with rules for single layers.
        **options
            Further options of ``tare quantize``, with underscores: ``activation_bits=16``, ``depthwise=True``.

        Returns
        -------
        Model
            Its `report` has the result for each layer.

        Raises
        ------
        InvalidArgumentError
            The method needs a calibration (`UsageError`), or it belongs to another model.

        Examples
        --------
        >>> small = model.quantize("weight_only", bits=4, granularity="per_block:32")
        >>> round(model.weight_bytes / small.weight_bytes, 1)
        4.6
        """
        given = {"algorithm": algorithm, "granularity": granularity, "bits": bits, "passes": passes, "recipe": recipe}
        made, report = self._quantized(method, calibration, {**given, **options}, True)
        return Model(made, self._context, None, Report(report))

    def convert(
        self,
        options: Union[str, Mapping[str, Any], None] = None,
        *,
        functions: Union[str, Sequence[str], None] = None,
        calibration: Optional[Calibration] = None,
        allow_incompatible: bool = False,
        allow_dependent_rows: bool = False,
        bfloat16_outputs: bool = False,
        keep_tags: bool = False,
        progress: Progress = None,
        **fields: Any,
    ) -> "Model":
        """Return a copy for Cloud TPU inference.

        Parameters
        ----------
        options : str or dict, optional
            A ConverterOptions message, in text format or as a dict (docs/options.md).
        functions : str or list of str, optional
            Aliases of the functions to place on the TPU. Default: those of the options, else chosen automatically.
        calibration : Calibration, optional
            Quantize with it before the conversion, with the ``quantization_options`` of the options if they have any.
            Alternatively, convert a result of `quantize`.
        allow_incompatible : bool
            Convert functions that a TPU cannot compile, with a warning for each reason.
        allow_dependent_rows : bool
            Batch functions whose results for a request depend on the requests that are batched with it, with a warning.
        bfloat16_outputs : bool
            Also round the final probabilities and their logits to bfloat16.
        keep_tags : bool
            Write the copy with the tags of this model. Default: with ``serve`` and ``tpu``, which servers with TPUs look
            for.
        progress : callable or bool, optional
            See `tare.calibrate`.
        **fields
            Fields of ConverterOptions: ``bfloat16_optimization="DISABLED"``, ``batch_options={...}``.

        Returns
        -------
        Model
            Its `report` is the Conversion Report.

        Raises
        ------
        UnsupportedError
            A TPU cannot compile a function; each reason is a warning.

        Examples
        --------
        >>> converted = model.convert(functions="tpu_func")
        >>> converted.report["tpu_cost"] > converted.report["cpu_cost"]
        True
        """
        names = [functions] if isinstance(functions, str) else list(functions or [])
        message: Dict[str, Any] = {"tpu_functions": [{"function_alias": name} for name in names], **fields}
        text = argument("options", options) if isinstance(options, str) else message_text({} if options is None else options)
        text = f"{text}\n{message_text(message)}"
        flags = _FIND_FUNCTIONS | (_ALLOW_INCOMPATIBLE if allow_incompatible else 0)
        if bfloat16_outputs:
            flags |= _BFLOAT16_OUTPUTS
        if allow_dependent_rows:
            flags |= _ALLOW_DEPENDENT_ROWS
        if keep_tags:
            flags |= _KEEP_TAGS
        handle = calibration_handle(_loaded(calibration))
        with self._context.lock, reporting(self._context.handle, progress):
            try:
                made, report = _native.model_convert(self._handle, text, handle, flags)
            except Error as error:
                raise type(error)(_with_nearest(str(error)), error.status) from error.__cause__
        return Model(made, self._context, None, Report(json.loads(report)))

    def auto(
        self,
        out: Path,
        data: Data,
        eval: Optional[Data] = None,
        tpu: bool = False,
        *,
        for_: "Optional[Chip]" = None,
        batch: Optional[int] = None,
        label: str = "label",
        target: Optional[str] = None,
        metric: "Optional[MetricName]" = None,
        margin: Optional[float] = None,
        signature: Optional[str] = None,
        spec: Optional[Path] = None,
        feedback: Union[str, Sequence[str], None] = None,
        sequence: Optional[str] = None,
        overwrite: bool = False,
        progress: Progress = None,
    ) -> "Model":
        """Compare ways to quantize the model, write the one that the measurement supports, and check its outputs.

        The float model, ``static``, ``weight_only`` and automatically chosen settings are measured. What is written has the
        outputs that were measured. The command of each step is a record of the logger ``tare``.

        Parameters
        ----------
        out : path
            Directory to write; ``out.recipe`` gets the plan, if anything is quantized, and ``out.html`` the report;
            ``out.spec`` gets a DatasetSpec if files of records need one and `spec` is not given.
        data : array, tuple, dict of arrays, iterable, DataFrame, or path(s)
            Representative samples, as for `tare.calibrate`. Data from memory is kept in a temporary file during the call.
        eval : the same, optional
            Labelled records to compare the models on, as for `tare.compare`. Default: `data`.
        tpu : bool
            Write a model converted for Cloud TPU, which computes in bfloat16.
        for_ : {"v5e", "v6e", "tpu7x", …}, optional
            Write the fastest model within the margin on this Cloud TPU chip, by Google's compiler where it is installed (as
            `check`), otherwise by the estimate. Default: the smallest one.
        batch : int, optional
            Batch size on that chip. Default: 8.
        label, target : str, optional
            As for `tare.compare`.
        metric : str, optional
            A built-in metric. Default: inferred from labels and expected values.
        margin : float, optional
            Points that a recommended model may lose. Default: 1.
        signature, spec, feedback, sequence, progress
            As for `tare.calibrate`.
        overwrite : bool
            Replace an existing SavedModel.

        Returns
        -------
        Model
            The written model. Its `report` is the comparison, with the keys of ``tare compare --json``.

        Raises
        ------
        NotFoundError
            No model is recommended; only the report is written.
        InvalidArgumentError
            The directory exists.

        Examples
        --------
        >>> chosen = model.auto(tmp / "chosen", images[:100], (images, labels))
        >>> chosen.weight_bytes < model.weight_bytes / 2
        True
        """
        if spec is not None and not all(is_path(part) for part in (data, eval) if part is not None):
            raise UsageError("spec: applies to files (data or eval is in memory)", Status.USAGE)
        chosen = self._signature(signature)
        directory = os.fsdecode(one_path(out))
        given = {"tpu": tpu, "for": for_, "batch": batch, "label": label, "target": target, "metric": metric, "margin": margin,
                 "signature": signature, "spec": spec, "feedback": feedback, "sequence": sequence, "overwrite": overwrite}  # fmt: skip
        reads = self._reads(chosen)
        with ExitStack() as held:
            samples = held.enter_context(as_paths(data, "data", chosen.inputs, target or label, **reads))
            if eval is not None:
                records = held.enter_context(as_paths(eval, "eval", chosen.inputs, target or label, **reads))
                given["eval"] = [os.fsdecode(path) for path in records]
            held.enter_context(self._context.lock)
            held.enter_context(reporting(self._context.handle, progress))
            with overwriting(overwrite):
                report = _native.model_auto(self._handle, directory, samples, option_text(given))
            made = _native.model_open(self._context.handle, directory, None)
        return Model(made, self._context, directory, Report(json.loads(report)))

    def check(
        self,
        chip: "Chip" = "v5e",
        batch: int = 8,
        *,
        shape: Union[str, Sequence[str], None] = None,
        signature: Optional[str] = None,
        estimate: bool = False,
        page: Optional[Path] = None,
    ) -> Report:
        """Compile the model with Google's TPU compiler, which needs no TPU, and report what it costs there.

        A model that is not converted is converted for this first. The compiler is that of ``jax[tpu]`` in ``python3``, or in
        the command of the environment variable ``TARE_TPU_COMPILER``; without it, the report has the estimate.

        Parameters
        ----------
        chip : {"v5e", "v6e", "tpu7x", …}
            Cloud TPU chip.
        batch : int
            Size of open first dimensions.
        shape : str or sequence of str, optional
            Shape of an input whose sizes are open: ``"text=1,128"``.
        signature : str, optional
            Signature to check. Default: ``serving_default``, or the only one.
        estimate : bool
            Use the estimate, also where the compiler is installed.
        page : path, optional
            HTML page to write, with the compiler's figures beside the estimate's.

        Returns
        -------
        Report
            With the keys of ``tare check --json``: for each computation on the TPU cycles (None: estimated), estimated
            seconds, matrix products by type, memory and ops; ``compiler`` is None for an estimate.

        Examples
        --------
        >>> report = model.check("v6e", batch=32, estimate=True)
        >>> report["compiler"], report["computations"][0]["estimated_seconds"] > 0
        (None, True)
        """
        self._signature(signature)
        given = {"chip": chip, "batch": batch, "shape": shape, "signature": signature, "estimate": estimate, "page": page}
        with self._context.lock:
            return Report(json.loads(_native.model_check(self._handle, option_text(given))))

    def export(
        self,
        path: Path,
        *,
        signature: Optional[str] = None,
        batch: int = 1,
        shape: Union[str, Sequence[str], None] = None,
        container: 'Literal["mlirbc", "jax", "saved_model"]' = "mlirbc",
        weights: Optional[Path] = None,
        tpu_call: Optional[int] = None,
        vhlo_version: Optional[str] = None,
    ) -> None:
        """Write a signature as a StableHLO module, which JAX, PJRT and XLA run. Variables become constants.

        Parameters
        ----------
        path : path
            File to write, or new directory for ``container="saved_model"``.
        signature : str, optional
            Signature to export. Default: ``serving_default``, or the only one.
        batch : int
            Size of open first dimensions: a module has arguments of one size.
        shape : str or sequence of str, optional
            Shape of an input whose sizes are open: ``"text=1,128"``.
        container : {"mlirbc", "jax", "saved_model"}
            A portable artifact, a file for ``jax.export.deserialize``, or a SavedModel with one XlaCallModule op.
        weights : path, optional
            File in the safetensors format for constants of 1,024 elements or more, which are arguments of the module then.
        tpu_call : int, optional
            Of a converted model, only this computation on the TPU, counted from 1.
        vhlo_version : str, optional
            Oldest version of StableHLO that reads the file.

        Raises
        ------
        UnsupportedError
            StableHLO does not have an op of the model.

        Examples
        --------
        >>> model.quantize("weight_only").export(tmp / "small.mlirbc", batch=8)
        >>> tare.load(tmp / "small.mlirbc").signatures["serving_default"].outputs["output_0"].shape
        (8, 10)
        """
        given = {"signature": signature, "batch": batch, "shape": shape, "container": container, "weights": weights,
                 "tpu_call": tpu_call, "vhlo_version": vhlo_version}  # fmt: skip
        with self._context.lock:
            _native.model_export(self._handle, os.fsdecode(one_path(path)), option_text(given))

    def unwrap(self, path: Path, *, overwrite: bool = False) -> None:
        """Write a model from JAX with its StableHLO modules replaced by TensorFlow and XLA ops, as `save` does for every model.

        Parameters
        ----------
        path, overwrite
            As for `save`.

        Raises
        ------
        NotFoundError
            The model has no StableHLO module (XlaCallModule op).
        UnsupportedError
            A module cannot be replaced.

        Examples
        --------
        >>> model.export(tmp / "wrapped", container="saved_model")
        >>> tare.load(tmp / "wrapped").unwrap(tmp / "plain")
        >>> tare.validate(tmp / "plain")["valid"]
        True
        """
        with self._context.lock, overwriting(overwrite):
            _native.model_unwrap(self._handle, os.fsdecode(one_path(path)), _OVERWRITE if overwrite else 0)

    def _diff(self, other: "Model", options: str) -> str:
        """`tare.diff` of two models."""
        with self._context.lock:
            return _native.model_diff(self._handle, other._handle, options)

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the model as a SavedModel directory. It appears when it is complete.

        Parameters
        ----------
        path : path
            The directory.
        overwrite : bool
            Replace an existing SavedModel.

        Raises
        ------
        InvalidArgumentError
            The directory exists.

        Examples
        --------
        >>> model.quantize("weight_only").save(tmp / "small")
        >>> sorted(entry.name for entry in (tmp / "small").iterdir())[-2:]
        ['saved_model.pb', 'variables']
        """
        with self._context.lock, overwriting(overwrite):
            _native.model_write(self._handle, one_path(path), _OVERWRITE if overwrite else 0)


def load(
    path: Path,
    *,
    tags: Union[str, Sequence[str], None] = None,
    plugins: Union[Path, Sequence[Path]] = (),
    threads: int = 0,
    allow_missing_variables: bool = False,
) -> Model:
    """Open a SavedModel directory. The checkpoint is mapped into memory, not read.

    Parameters
    ----------
    path : path
        The directory.
    tags : str or list of str, optional
        Tags of the MetaGraph, exactly. Default: the only MetaGraph, or the one with the single tag ``serve``.
    plugins : path or list of path
        Shared libraries of custom ops (docs/custom-ops.md).
    threads : int
        Worker threads of calibration and comparison; 0: one per processor. Results do not depend on it.
    allow_missing_variables : bool
        Quantize, convert and unwrap also a model without its folder ``variables``, whose variables then have no values: that is a
        `TareWarning` instead of a `NotFoundError` of these calls.

    Returns
    -------
    Model

    Raises
    ------
    NotFoundError
        There is no such directory, or no MetaGraph with these tags.
    CorruptDataError
        The model is damaged.

    Examples
    --------
    >>> tare.load(glyphs / "saved_model").signatures["serving_default"].inputs["image"].shape
    (None, 28, 28, 1)
    """
    context = Context(threads, plugins, allow_missing_variables)
    directory = os.fsdecode(one_path(path))
    text = None if tags is None else argument("tags", tags if isinstance(tags, str) else ",".join(tags))
    return Model(_native.model_open(context.handle, directory, text), context, directory)
