"""Several quantizations or conversions as one list of jobs."""

import os
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional

from ._calibrate import calibrate
from ._calibration import Calibration
from ._errors import Status, UsageError
from ._model import load
from ._progress import Progress, _function

__all__ = ["BatchResult", "batch"]

_KEYS = {"name", "model", "output", "calibration", "data", "method", "quantize", "convert", "overwrite"}


@dataclass
class BatchResult:
    """The outcome of a job.

    Attributes
    ----------
    name : str
        Of the job.
    output : str or None
        Directory that was written; None after a failure.
    error : Exception or None
        What the job raised; None after success.
    report : dict or None
        Of the quantization or conversion.
    weight_bytes : int
        Bytes of the weights of the result; 0 after a failure.
    seconds : float
        Time of the job.
    """

    name: str
    output: Optional[str]
    error: Optional[Exception]
    report: Optional[Mapping[str, Any]]
    weight_bytes: int
    seconds: float

    @property
    def done(self) -> bool:
        """Whether the job succeeded."""
        return self.error is None


def _run(job: Any) -> Any:
    if not isinstance(job, Mapping):
        raise UsageError(f"job: expected a dict, got {type(job).__name__}", Status.USAGE)
    missing = [key for key in ("model", "output") if key not in job]
    if missing:
        raise UsageError(f"job: lacks {' and '.join(missing)}", Status.USAGE)
    unknown = set(job) - _KEYS
    if unknown:
        raise UsageError(f"job: unknown keys {', '.join(sorted(map(str, unknown)))} (expected {', '.join(sorted(_KEYS))})", Status.USAGE)
    method = job.get("method", "static")
    if method is None and (job.get("quantize") or job.get("data") is not None or job.get("calibration") is not None):
        raise UsageError("job: method is None, so quantize, data and calibration would have no effect", Status.USAGE)
    if job.get("calibration") is not None and job.get("data") is not None:
        raise UsageError("job: has calibration and data (expected one of them)", Status.USAGE)
    model = load(job["model"])
    calibration = job.get("calibration")
    if calibration is not None and not isinstance(calibration, Calibration):
        calibration = Calibration.load(calibration)
    if job.get("data") is not None:
        calibration = calibrate(model, job["data"], progress=False)
    if method is not None:
        model = model.quantize(method, calibration, **job.get("quantize", {}))
    if job.get("convert") is not None:
        model = model.convert(progress=False, **job["convert"])
    model.save(job["output"], overwrite=job.get("overwrite", False))
    return model


def batch(jobs: Iterable[Mapping[str, Any]], *, progress: Progress = None) -> List[BatchResult]:
    """Quantize and convert several models, one after another; each uses all processors.

    A job that fails does not stop the others. Resumable jobs in several processes: ``tare batch``.

    Parameters
    ----------
    jobs : iterable of dict
        Each with

        - ``model``: path of a SavedModel; ``output``: directory to write; ``overwrite``: replace it;
        - ``name``: default the output;
        - ``calibration``: a `Calibration` or the path of one, or ``data`` as for `calibrate`;
        - ``method``: as for `Model.quantize`, default ``"static"``; None: no quantization; ``quantize``: dict of its options;
        - ``convert``: dict of the arguments of `Model.convert`; absent: no conversion.
    progress : callable or bool, optional
        As for `calibrate`; counts jobs.

    Returns
    -------
    list of BatchResult
        In the order of the jobs.

    Examples
    --------
    >>> results = tare.batch([
    ...     {"model": glyphs / "saved_model", "method": "weight_only", "output": tmp / "a"},
    ...     {"model": "/nowhere", "method": "weight_only", "output": tmp / "b"},
    ... ], progress=False)
    >>> [result.done for result in results]
    [True, False]
    """
    if isinstance(jobs, (str, bytes, os.PathLike, Mapping)):
        raise UsageError(f"jobs: expected a list of dicts, got {type(jobs).__name__} (job files: tare batch FILE)", Status.USAGE)
    todo = list(jobs)
    report = _function(progress)
    results = []
    for number, job in enumerate(todo):
        start = time.monotonic()
        outcome: Dict[str, Any] = {"output": None, "error": None, "report": None, "weight_bytes": 0}
        try:
            made = _run(job)
            outcome.update(output=str(job["output"]), report=made.report, weight_bytes=made.weight_bytes)
        except Exception as error:  # of any kind: data may be the caller's generator
            outcome["error"] = error
        named = job if isinstance(job, Mapping) else {}
        name = str(named.get("name", named.get("output", number)))
        results.append(BatchResult(name, seconds=time.monotonic() - start, **outcome))
        if report is not None:
            report("batch", number + 1, len(todo))
    return results
