"""Exceptions and warnings. Every failure of libtare is a subclass of `Error`."""

import enum
import re
from contextlib import contextmanager
from typing import Dict, Iterator, Type

from . import _native

__all__ = [
    "CorruptDataError",
    "DTypeError",
    "Error",
    "FileError",
    "InternalError",
    "Interrupted",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfMemoryError",
    "ShapeError",
    "Status",
    "TareWarning",
    "UnsupportedError",
    "UsageError",
]


#: Options of the command line whose argument has another name here.
ARGUMENTS = {"plugin": "plugins", "threads": "workers"}
#: What the command asks for where `compare` has one argument.
_CALIBRATIONS = (
    ("give --data SAMPLES --eval FILE, or --calibration FILE.calib", "pass calibration="),
    ("give --data SAMPLES --eval FILE", "pass data as calibration="),
)
#: An option with the space before the placeholder of its value, outside of a command: those are for a shell.
_OPTION = re.compile(r"\btare (?:[a-z]+|…)[^();']*|(?<![^\s('\"])--([a-z][a-z-]*)(?: (?=[A-Z]))?")


def argument_names(text: str) -> str:
    """A text of the library with the arguments of this package in place of options: `--spec FILE` is `spec=FILE`."""

    def named(match: "re.Match[str]") -> str:
        option, whole = match.group(1), match.group(0)
        if option is None:
            return whole
        name = ARGUMENTS.get(option, option.replace("-", "_"))
        return f"{name}=" if whole.endswith(" ") else name

    for command, call in _CALIBRATIONS:
        text = text.replace(command, call)
    return _OPTION.sub(named, text)


@contextmanager
def data_errors(name: str, argument: str = "data") -> Iterator[None]:
    """Errors about data from memory, which the library knows as `name`, begin with the argument: `data: record 3: …`."""
    try:
        yield
    except Error as error:
        text = str(error)
        if text.startswith(f"{name}: "):
            text = text[len(name) + 2 :]
        elif not re.match(r"record \d", text):
            raise
        text = re.sub(r"^(record \d+) at \d+", r"\1", text)  # the place in a temporary file
        raise type(error)(f"{argument}: {text}", error.status) from error.__cause__


class Status(enum.IntEnum):
    """Status codes of libtare, with their numbers in ``tare/status.h``.

    Examples
    --------
    >>> int(tare.Status.SHAPE)
    5
    """

    INVALID_ARGUMENT = 1
    UNSUPPORTED = 2
    CORRUPT = 3
    TYPE = 4
    SHAPE = 5
    NOT_FOUND = 6
    IO = 7
    NO_MEMORY = 8
    INTERRUPTED = 9
    USAGE = 10
    INTERNAL = 11


class Error(Exception):
    """A failure: one line with the place, what is wrong, and the expected and actual values.

    Parameters
    ----------
    text : str
        The whole line.
    status : int
        The status code.

    Attributes
    ----------
    status : Status
        The kind of failure.
    where : str
        The file, record, input or layer where it was found; empty if the text names none.

    Examples
    --------
    >>> try:
    ...     tare.load("/nowhere")
    ... except tare.Error as error:
    ...     print(error.status.name, error.where)
    NOT_FOUND /nowhere
    """

    status: Status
    where: str

    def __init__(self, text: str, status: int = Status.INVALID_ARGUMENT) -> None:
        text = argument_names(text)
        super().__init__(text)
        self.status = Status(status)
        place, colon, _ = text.partition(": ")
        self.where = place if colon else ""

    def __reduce__(self) -> "tuple[Type[Error], tuple[str, int]]":
        return type(self), (str(self), int(self.status))


class InvalidArgumentError(Error, ValueError):
    """An argument does not fit the model, the data or another argument."""


class UsageError(InvalidArgumentError):
    """An option is unknown, has an invalid value, or conflicts with another one."""


class DTypeError(InvalidArgumentError, TypeError):
    """An array has the wrong dtype."""


class ShapeError(InvalidArgumentError):
    """An array has the wrong shape."""


class NotFoundError(InvalidArgumentError, LookupError):
    """There is no signature, input, function, tensor or file of that name."""


class CorruptDataError(Error):
    """A file is damaged or malformed."""


class UnsupportedError(Error):
    """The model is valid, but tare cannot do this with it: an op without a kernel, or one that no TPU compiles."""


class FileError(Error, OSError):
    """The system could not read or write a file."""


class OutOfMemoryError(Error, MemoryError):
    """Memory is exhausted, or a limit on memory is reached."""


class Interrupted(Error):
    """The work was cancelled. Ctrl-C raises KeyboardInterrupt instead."""


class InternalError(Error):
    """A bug in tare."""


class TareWarning(UserWarning):
    """The result may not be what you expect: few records, outliers, losses that an option avoids."""


_CLASSES: Dict[int, Type[Error]] = {
    Status.INVALID_ARGUMENT: InvalidArgumentError,
    Status.UNSUPPORTED: UnsupportedError,
    Status.CORRUPT: CorruptDataError,
    Status.TYPE: DTypeError,
    Status.SHAPE: ShapeError,
    Status.NOT_FOUND: NotFoundError,
    Status.IO: FileError,
    Status.NO_MEMORY: OutOfMemoryError,
    Status.INTERRUPTED: Interrupted,
    Status.USAGE: UsageError,
    Status.INTERNAL: InternalError,
}
_native.set_errors({int(status): error for status, error in _CLASSES.items()})
