"""Progress callbacks, and log messages as warnings and log records."""

import logging
import os
import sys
import time
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

from . import _native
from ._errors import InvalidArgumentError, TareWarning, argument_names

#: Called with what is done ("calibrating"), how many records are done, and their total (-1: unknown).
ProgressFunction = Callable[[str, int, int], None]
#: A callback; True: a progress bar of tqdm; False: none; None: a bar if tqdm is installed and somebody can see it.
Progress = Union[ProgressFunction, bool, None]

_logger = logging.getLogger("tare")
_PACKAGE = os.path.dirname(__file__)
_WARNING, _NOTE = 1, 2


def _depth() -> int:
    """Stack level of the caller of the package, for warnings."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level


def on_log(level: int, text: str) -> None:
    """Receives the messages of the library."""
    text = argument_names(text)
    if level == _WARNING:
        warnings.warn(text, TareWarning, stacklevel=_depth())
    else:
        _logger.log(logging.INFO if level == _NOTE else logging.DEBUG, "%s", text)


class _Bar:
    """A progress bar of tqdm, which is opened by the first report."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._what = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None or what != self._what:
            self.close()
            self._bar = self._tqdm(desc=what, total=None if total < 0 else total, unit=" records", leave=False)
            self._what = what
        if total >= 0:
            self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _visible() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _function(progress: Progress) -> Optional[ProgressFunction]:
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise InvalidArgumentError(f"progress: expected a function, True or False, got {type(progress).__name__}")
    if progress is False or (progress is None and not _visible()):
        return None
    try:
        from tqdm.auto import tqdm  # type: ignore
    except ImportError:
        return None
    return _Bar(tqdm)


class Reporter:
    """Progress of work that Python itself drives: calls the function at most ten times per second."""

    def __init__(self, function: Optional[ProgressFunction], what: str) -> None:
        self._function, self._what = function, what
        self._next = time.monotonic() + 0.1

    def report(self, done: int) -> None:
        """Reports, unless the last report was just before."""
        if self._function is not None and time.monotonic() >= self._next:
            self._function(self._what, done, -1)
            self._next = time.monotonic() + 0.1

    def finish(self, done: int) -> None:
        """Reports the end."""
        if self._function is not None:
            self._function(self._what, done, done)


@contextmanager
def reporting(context: Any, progress: Progress, native: bool = True) -> Iterator[Optional[ProgressFunction]]:
    """The progress function during a call; `native`: the library itself calls it."""
    function = _function(progress)
    if native:
        _native.context_progress(context, function)
    try:
        yield function
    finally:
        if native:
            _native.context_progress(context, None)
        if isinstance(function, _Bar):
            function.close()
