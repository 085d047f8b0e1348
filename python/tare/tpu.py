"""Cloud TPU: what a conversion places on the TPU, and what it costs there."""

import html
from typing import TYPE_CHECKING, Any, Dict

if TYPE_CHECKING:
    from ._model import Model

__all__ = ["Report", "report"]


class Report(Dict[str, Any]):
    """The report of a conversion or a quantization: a dict with the keys of docs/json.md and docs/converter.md.

    Examples
    --------
    >>> sorted(model.quantize("weight_only").report)[:3]
    ['float_weight_bytes', 'layers', 'quantizable_ops']
    """

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(_short(value))}</td></tr>" for name, value in self.items()
        )
        return f"<table><tbody>{rows}</tbody></table>"


def _short(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"{len(value)} entries"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def report(model: "Model", options: Any = None, **arguments: Any) -> Report:
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
    made = model.convert(options, **arguments).report
    assert made is not None
    return made
