"""Cloud TPU: what a conversion places on the TPU, and what it costs there."""

from typing import Any

from ._model import Model, expect_model
from ._report import Report

__all__ = ["Report", "report"]


def report(model: Model, options: Any = None, **arguments: Any) -> Report:
    """Report what a conversion would do, without keeping the converted model.

    Parameters
    ----------
    model : Model
        The model to convert.
    options, **arguments
        As for `tare.Model.convert`.

    Returns
    -------
    Report
        The Conversion Report: cost per function and op, memory and estimated times per chip, changes by pass, findings.

    Examples
    --------
    >>> costs = tare.tpu.report(model, functions="tpu_func")
    >>> [chip["fits"] for chip in costs["chips"] if chip["chip"] == "v5e"]
    [True]
    """
    made = expect_model(model).convert(options, **arguments).report
    assert made is not None
    return made
