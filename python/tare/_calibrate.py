"""Collecting the activation statistics of a calibration."""

import os
from itertools import islice
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Optional, Union

from . import _native
from ._arrays import NativeArray
from ._calibration import Calibration
from ._data import Data, check_limit, expect_dict, is_path, native_records, records_of
from ._errors import Error, Status, UsageError, data_errors
from ._model import Model, expect_model
from ._options import argument, option_text, paths, with_options
from ._progress import Progress, Reporter, reporting

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import CalibrateOptions

__all__ = ["calibrate"]

Path = Union[str, "os.PathLike[str]"]


def calibrate(
    model: Model,
    data: Data,
    *,
    signature: Optional[str] = None,
    spec: Optional[Path] = None,
    workers: Optional[int] = None,
    batch: Optional[int] = None,
    limit: Optional[int] = None,
    name: Optional[str] = None,
    hessians: bool = False,
    state: Optional[Path] = None,
    progress: Progress = None,
    **options: "Unpack[CalibrateOptions]",
) -> Calibration:
    """Collect activation statistics of a model over representative samples.

    Parameters
    ----------
    model : Model
        The float model.
    data : array, dict of arrays, iterable, DataFrame, or path(s)
        One of:

        - inputs: an array of the single input, a dict of arrays by input, or a tuple of arrays in the order of the inputs, with a
          row for each record; or ``(inputs, labels)`` or ``(inputs, labels, weights)``;
        - a pandas DataFrame: columns are inputs, or all of them the features of the single input;
        - an iterable, or a data set with an index, of such values, which are batches or single examples: a generator,
          ``tf.data``, ``keras.utils.PyDataset``, ``DataLoader``, a list of examples, a function that returns one. It is read
          once, in constant memory, on the calling thread. Each example of a batch is a record;
        - paths: TFRecord, NPY, NPZ or CSV files, patterns, or folders of images.

        A last dimension of 1 may be left out.
    signature : str, optional
        Default: ``serving_default``, or the only one.
    spec : path, optional
        A DatasetSpec, for paths (docs/dataset-spec.md).
    workers : int, optional
        Threads; default: one per processor. The result does not depend on it.
    batch : int, optional
        Records to run together where that changes no result. Default: automatic.
    limit : int, optional
        Use the first records only; 0: all.
    name : str, optional
        Name of data from memory in the calibration; calibrations to be merged need different names.
    hessians : bool
        Also collect what the pass ``gptq`` needs. Reads the data twice: from memory by way of a temporary file.
    state : path, optional
        File that keeps the statistics when the call is interrupted (Ctrl-C, an exception of the data). Calling again with the
        same file and data skips the records that it contains, and removes it in the end.
    progress : callable or bool, optional
        Called as ``progress(what, done, total)``, about ten times per second. True: a bar of tqdm. Default: a bar
        if tqdm is installed and standard error is a terminal or a notebook.
    **options
        Further options of ``tare calibrate``: ``observe="all"``, ``channels=True``, ``max_bad=3``; for streaming models
        ``feedback="h_out=h_in"`` (or a list), which feeds an output of each record to an input of the next one, and
        ``sequence="clip"``, the key of records whose value changes where a sequence begins. ``function="f"`` calibrates a
        function, by alias, path or name, instead of a signature; its data are paths, or an iterable of dicts with the arguments
        of one call each.

    Returns
    -------
    Calibration
        Byte-identical for any number of workers and any batch size.

    Raises
    ------
    InvalidArgumentError
        The data has no records, or a record does not match the signature.
    KeyboardInterrupt
        After Ctrl-C, within a second.

    Warns
    -----
    TareWarning
        Few records, outliers, values that are not finite …

    Examples
    --------
    >>> tare.calibrate(model, ({"image": image} for image in images[:250])).records
    250
    >>> tare.calibrate(model, glyphs / "calibration.tfrecord.gz").records
    300
    """
    expect_model(model)
    given = with_options({"signature": signature, "threads": workers, "batch": batch, "state": state}, options)
    if is_path(data):
        if name is not None:
            raise UsageError("name: applies to data from memory (files have theirs)", Status.USAGE)
        text = option_text({**given, "limit": limit, "spec": spec, "hessians": hessians or None})
        with model._context.lock, reporting(model._context.handle, progress):
            return Calibration(_native.model_calibrate(model._handle, paths(data), text))
    check_limit(limit)
    if spec is not None:
        raise UsageError("spec: applies to files (the data is in memory)", Status.USAGE)
    known = "memory" if name is None else argument("name", name)
    records = _records(model, data, signature, limit, options)
    with data_errors(known):
        if hessians or options.get("function") is not None:
            return _spooled(model, records, known, option_text({**given, "hessians": hessians or None}), progress)
        return _stream(model, records, option_text({**given, "name": known}), progress)


def _records(
    model: Model, data: Data, signature: Optional[str], limit: Optional[int], options: "CalibrateOptions"
) -> Iterator[List[NativeArray]]:
    if options.get("function") is not None:  # whose arguments are those of the first record
        return native_records(islice(map(expect_dict, data), limit or None), {})
    chosen = model._signature(signature)
    found = islice(records_of(data, chosen.inputs, **model._reads(chosen)), limit or None)
    return native_records(found, chosen.inputs, only_inputs=True, besides=options.get("sequence"))


def _spooled(
    model: Model, records: Iterator[List[NativeArray]], name: str, options: str, progress: Progress
) -> Calibration:
    with model._context.lock, reporting(model._context.handle, progress):
        return Calibration(_native.model_calibrate_records(model._handle, records, name, options))


def _push(calibrator: Any, record: List[NativeArray], number: int) -> None:
    """Failures of earlier records, which have a place, come here too."""
    try:
        _native.calibrator_push(calibrator, record)
    except Error as error:
        if ": record " in str(error):
            raise
        raise type(error)(f"data: record {number}: {error}", error.status) from error.__cause__


def _stream(model: Model, records: Iterable[List[NativeArray]], options: str, progress: Progress) -> Calibration:
    """Pushes records from the calling thread while workers run them."""
    with model._context.lock, reporting(model._context.handle, progress, native=False) as function:
        reporter = Reporter(function, "calibrating")
        calibrator = _native.calibrator_open(model._handle, options)
        try:
            done = 0
            for record in records:
                _push(calibrator, record, done)
                done += 1
                reporter.report(done)
            made = Calibration(_native.calibrator_finish(calibrator))
        finally:
            _native.close(calibrator)
        reporter.finish(done)
        return made
