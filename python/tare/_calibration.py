"""Calibrations: activation statistics of a model over representative samples."""

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Union

import numpy as np

from . import _native
from ._errors import Error, InvalidArgumentError, NotFoundError, Status, UsageError
from ._options import one_path, option_text
from ._owner import Owner
from ._table import framed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import AlgorithmName, DescribeOptions, Setting

__all__ = ["Calibration", "Histogram", "Ranges"]

Path = Union[str, "os.PathLike[str]"]


class Ranges(NamedTuple):
    """Clipping ranges of all observed tensors by one calibration algorithm, on the grid of 8-bit activations.

    Attributes
    ----------
    names : list of str
        ``FUNCTION/NODE:OUTPUT``; ``NODE:OUTPUT`` in the main graph.
    low, high : ndarray of float64, shape (tensors,)
        The ranges, in the unit of the tensor.
    scale : ndarray of float64, shape (tensors,)
        Step of the integers.
    zero_point : ndarray of int64, shape (tensors,)
        The integer of the value 0.

    Examples
    --------
    >>> ranges = calibration.ranges("min_max")
    >>> bool((ranges.low <= ranges.high).all())
    True
    """

    names: List[str]
    low: "np.ndarray[Any, np.dtype[np.float64]]"
    high: "np.ndarray[Any, np.dtype[np.float64]]"
    scale: "np.ndarray[Any, np.dtype[np.float64]]"
    zero_point: "np.ndarray[Any, np.dtype[np.int64]]"


class Histogram(NamedTuple):
    """The finite values of a tensor: bins with at least one value, in ascending order, at most 0.2 % wide.

    Attributes
    ----------
    counts : ndarray of int64, shape (bins,)
        Number of values.
    low, high : ndarray of float64, shape (bins,)
        Smallest and largest value that a bin can hold; zero has the bin [0, 0].

    Examples
    --------
    >>> histogram = calibration.histogram(calibration.tensors[0])
    >>> bool((histogram.low[1:] > histogram.high[:-1]).all())
    True
    """

    counts: "np.ndarray[Any, np.dtype[np.int64]]"
    low: "np.ndarray[Any, np.dtype[np.float64]]"
    high: "np.ndarray[Any, np.dtype[np.float64]]"


_BIN = np.dtype([("low", np.float64), ("high", np.float64), ("count", np.int64)])


class Calibration(Owner):
    """Activation statistics. One calibration serves every quantization method and calibration algorithm.

    Made by `calibrate` and `Calibration.load`.

    Examples
    --------
    >>> calibration = tare.calibrate(model, images[:200])
    >>> calibration
    <tare.Calibration of 200 records, 15 tensors>
    """

    def __init__(self, handle: Any) -> None:
        self._held = handle
        self._described: Optional[Dict[str, Any]] = None
        self._merges = 0  # what a thread describes meanwhile is out of date

    def __repr__(self) -> str:
        return f"<tare.Calibration of {self.records} records, {len(self.tensors)} tensors>"

    @classmethod
    def load(cls, path: Path) -> "Calibration":
        """Read a calibration file, as `save` and ``tare calibrate`` write it.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Calibration

        Raises
        ------
        NotFoundError, CorruptDataError
            There is no such file, or it is damaged.

        Examples
        --------
        >>> calibration.save(tmp / "glyphs.calib")
        >>> tare.Calibration.load(tmp / "glyphs.calib").records
        200
        """
        return cls(_native.calibration_open(one_path(path)))

    def save(self, path: Path) -> None:
        """Write a calibration file. After a crash the path has the old contents or the new.

        Parameters
        ----------
        path : path
            The file.
        """
        _native.calibration_write(self._handle, one_path(path))

    def __copy__(self) -> "Calibration":
        """A calibration of its own: merging into one of them does not change the other."""
        return Calibration(_native.calibration_copy(self._handle))

    def __deepcopy__(self, memo: Any) -> "Calibration":
        return self.__copy__()

    def __reduce__(self) -> Any:
        return Calibration.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """The bytes of the file that `save` writes, to send to another process; pickling does the same.

        Returns
        -------
        bytes

        Examples
        --------
        >>> tare.Calibration.from_bytes(calibration.to_bytes()).records
        200
        """
        with tempfile.TemporaryDirectory(prefix="tare-") as folder:
            self.save(os.path.join(folder, "calibration"))
            with open(os.path.join(folder, "calibration"), "rb") as file:
                return file.read()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Calibration":
        """A calibration from the bytes of `to_bytes`, or of a calibration file.

        Parameters
        ----------
        data : bytes
            The whole file.

        Returns
        -------
        Calibration

        Raises
        ------
        CorruptDataError
            The bytes are damaged.

        Examples
        --------
        >>> parts = [tare.calibrate(model, images[i : i + 100], name=f"part {i}").to_bytes() for i in (0, 100)]
        >>> first, second = map(tare.Calibration.from_bytes, parts)
        >>> first.merge(second).records
        200
        """
        with tempfile.TemporaryDirectory(prefix="tare-") as folder:
            path = os.path.join(folder, "calibration")
            with open(path, "wb") as file:
                file.write(data)
            try:
                return cls.load(path)
            except Error as error:
                raise type(error)(str(error).replace(path, "calibration"), error.status) from None

    def merge(self, *others: "Calibration") -> "Calibration":
        """Add the statistics of other calibrations of the same model, over other records.

        All of them are added, or after an exception none. Other threads may use the calibrations meanwhile.

        Parameters
        ----------
        *others : Calibration
            Unchanged. Those from memory need different names (`calibrate`).

        Returns
        -------
        Calibration
            This one.

        Raises
        ------
        InvalidArgumentError
            Another model, or the same records.

        Examples
        --------
        >>> parts = [tare.calibrate(model, images[i : i + 200], name=f"part {i}") for i in (0, 200)]
        >>> parts[0].merge(parts[1]).records
        400
        """
        for other in others:
            if not isinstance(other, Calibration):
                raise InvalidArgumentError(f"calibration: expected a Calibration, got {type(other).__name__}")
        _native.calibration_add(self._handle, [other._handle for other in others])
        self._merges += 1
        self._described = None
        return self

    @property
    def records(self) -> int:
        """Number of records that the statistics were collected over."""
        return _native.calibration_count(self._handle)

    def describe(self, **options: "Unpack[DescribeOptions]") -> Dict[str, Any]:
        """Statistics, ranges, coverage and warnings, with the keys of ``tare show --json``.

        Parameters
        ----------
        **options
            ``algorithms="mse,entropy"``, ``tensor="REGEX"``.

        Returns
        -------
        dict
            See docs/json.md.
        """
        if "html" in options:
            raise UsageError("option html: is not one of describe (use to_html)", Status.USAGE)
        described: Dict[str, Any] = json.loads(_native.calibration_report(self._handle, option_text(options)))
        return described

    def _description(self) -> Dict[str, Any]:
        described, merges = self._described, self._merges
        if described is None:
            described = self.describe(algorithms="min_max")
            if merges == self._merges:
                self._described = described
        return described

    @property
    def tensors(self) -> List[str]:
        """Names of the observed tensors."""
        return [_name(tensor) for tensor in self._description()["tensors"]]

    @property
    def warnings(self) -> List[str]:
        """What may make the statistics unsuitable, the gravest first."""
        return [warning["text"] for warning in self._description()["warnings"]]

    def ranges(self, algorithm: "Union[AlgorithmName, Setting]" = "min_max") -> Ranges:
        """Clipping ranges of all tensors that had finite values.

        Parameters
        ----------
        algorithm : str
            With parameters, as for `Model.quantize`.

        Returns
        -------
        Ranges

        Raises
        ------
        UsageError
            There is no such algorithm.
        """
        rows = [(t, t["ranges"][0]) for t in self.describe(algorithms=algorithm)["tensors"] if "ranges" in t]
        if any(len(tensor["ranges"]) > 1 for tensor, _ in rows):
            raise UsageError(f"algorithm: expected one, got {algorithm!r} (describe takes several)", Status.USAGE)
        return Ranges(
            [_name(tensor) for tensor, _ in rows],
            np.array([found["low"] for _, found in rows], np.float64),
            np.array([found["high"] for _, found in rows], np.float64),
            np.array([found["scale"] for _, found in rows], np.float64),
            np.array([found["zero_point"] for _, found in rows], np.int64),
        )

    def histogram(self, tensor: str) -> Histogram:
        """The histogram of a tensor.

        Parameters
        ----------
        tensor : str
            One of `tensors`.

        Returns
        -------
        Histogram

        Raises
        ------
        NotFoundError
            The tensor was not observed.
        """
        for found in self._description()["tensors"]:
            if _name(found) == tensor:
                data = _native.calibration_histogram(self._handle, found["function"], found["node"], found["output"])
                bins = np.frombuffer(data, _BIN)
                return Histogram(bins["count"].copy(), bins["low"].copy(), bins["high"].copy())
        raise NotFoundError(f"tensor {tensor}: was not observed (calibrate with observe='all' for more tensors)", Status.NOT_FOUND)

    def to_html(self) -> str:
        """A page with histograms and ranges, without external references."""
        return _native.calibration_report(self._handle, "html")

    def _repr_html_(self) -> str:
        return framed(self.to_html())


def _name(tensor: Dict[str, Any]) -> str:
    place = f"{tensor['function']}/" if tensor["function"] else ""
    return f"{place}{tensor['node']}:{tensor['output']}"
