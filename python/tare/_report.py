"""Reports of conversions and quantizations."""

import html
from typing import Any, Dict

__all__ = ["Report"]


class Report(Dict[str, Any]):
    """The report of a conversion or a quantization: a dict with the keys of docs/json.md and docs/converter.md.

    Examples
    --------
    >>> sorted(model.quantize("weight_only").report)[:3]
    ['composites', 'float_weight_bytes', 'layers']
    """

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(_short(value))}</td></tr>" for name, value in self.items()
        )
        return f"<table><tbody>{rows}</tbody></table>"


def _short(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"{len(value)} entries"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
