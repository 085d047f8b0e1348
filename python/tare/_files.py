"""Models as files: differences and validity."""

import html
import json
import os
from typing import Any, Callable, Sequence, Union

from . import _native
from ._model import Context, Model, Path, load
from ._options import argument, one_path, option_text
from ._report import Report

__all__ = ["Difference", "diff", "validate"]


class Difference(Report):
    """What differs between two models, arrays or reports: a dict with the keys of docs/json.md. Made by `diff`."""

    def __init__(self, form: Callable[[str], str]) -> None:
        super().__init__(json.loads(form("")))
        self._form = form

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, *, all: bool = False) -> str:
        """Return the tables that ``tare diff`` prints.

        Parameters
        ----------
        all : bool
            List every weight and number, not only the first ones.

        Returns
        -------
        str
        """
        return self._form(option_text({"text": True, "all": all or None}))

    def to_html(self) -> str:
        """Return a page without external references.

        Returns
        -------
        str
        """
        return self._form("html")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def diff(first: Union[Model, Path], second: Union[Model, Path], *, plugins: Union[Path, Sequence[Path]] = ()) -> Difference:
    """Compare two models, or files of two: sizes, ops, signatures, layers, weights, scales.

    Parameters
    ----------
    first, second : Model or path
        Models, which may be in memory only, or paths of SavedModels; or two ``.npy`` files, folders of them, or JSON
        reports of comparisons.
    plugins : path or list of path
        As for `load`, of models given by their paths.

    Returns
    -------
    Difference

    Raises
    ------
    UsageError
        The paths are not of one kind.

    Examples
    --------
    >>> changes = tare.diff(model, model.quantize("weight_only"))
    >>> changes["second_weight_bytes"] < changes["first_weight_bytes"] / 2
    True
    >>> print(tare.diff(model, glyphs / "saved_model").to_text().splitlines()[-1])
    Ops, weights and signatures are the same.
    """
    if not isinstance(first, Model) and not isinstance(second, Model):
        context = Context(0, plugins)
        one, other = (os.fsdecode(one_path(path)) for path in (first, second))
        return Difference(lambda options: _native.diff(context.handle, one, other, options))
    models = [model if isinstance(model, Model) else load(model, plugins=plugins) for model in (first, second)]
    return Difference(lambda options: models[0]._diff(models[1], options))


def validate(path: Path, *, tags: Union[str, Sequence[str], None] = None, plugins: Union[Path, Sequence[Path]] = ()) -> Report:
    """Check a SavedModel directory against the rules of TensorFlow's loader. Every tensor of the checkpoint is read.

    Parameters
    ----------
    path : path
        The directory.
    tags : str or list of str, optional
        Tags of the MetaGraph, exactly. Default: every MetaGraph.
    plugins : path or list of path
        As for `load`.

    Returns
    -------
    Report
        With the keys of ``tare validate --json``: ``valid``, and ``faults`` with ``where`` and ``what``.

    Examples
    --------
    >>> tare.validate(glyphs / "saved_model")["valid"]
    True
    """
    context = Context(0, plugins)
    text = None if tags is None else argument("tags", tags if isinstance(tags, str) else ",".join(tags))
    report: Any = json.loads(_native.validate(context.handle, os.fsdecode(one_path(path)), text))
    return Report(report)
