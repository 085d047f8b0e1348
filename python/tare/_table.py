"""Tables of results: lists of dicts that become DataFrames, and HTML in notebooks."""

import html
from typing import Any, Dict, Iterable, List, Optional

__all__ = ["Table"]


def framed(page: str) -> str:
    """A whole page in a frame of a notebook, so that styles of both do not meet."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: 640px; border: 1px solid #ccc" '
        'sandbox="allow-scripts" title="tare report"></iframe>'
    )


class Table(List[Dict[str, Any]]):
    """A list of rows, each a dict.

    Examples
    --------
    >>> table = tare.Table([{"layer": "conv", "bits": 8}, {"layer": "fc", "bits": 4}])
    >>> table.column("bits")
    [8, 4]
    """

    def __init__(self, rows: Iterable[Dict[str, Any]] = (), columns: Optional[List[str]] = None) -> None:
        super().__init__(rows)
        found: Dict[str, None] = {}
        for row in self:
            found.update(dict.fromkeys(row))
        self._columns = columns if columns is not None else list(found)

    def column(self, name: str) -> List[Any]:
        """The values of one column; None where a row has none.

        Parameters
        ----------
        name : str
            Key of the rows.

        Returns
        -------
        list
        """
        return [row.get(name) for row in self]

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas  # type: ignore

        return pandas.DataFrame(list(self), columns=self._columns)

    def _repr_html_(self) -> str:
        def cell(value: Any) -> str:
            text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
            return f"<td>{html.escape(text)}</td>"

        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in self._columns)
        rows = "".join("<tr>" + "".join(cell(row.get(name)) for name in self._columns) + "</tr>" for row in self)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
