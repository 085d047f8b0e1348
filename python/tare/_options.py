"""Keyword arguments as libtare's option texts, and dicts as protobuf messages in text form."""

import os
from typing import Any, Dict, Iterable, List, Mapping

import numpy as np

from ._errors import ARGUMENTS, DTypeError, InvalidArgumentError, Status, UsageError


def argument(name: str, value: Any) -> str:
    """A string for the library."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name}: expected a str, got {type(value).__name__}")
    if "\0" in value:
        raise InvalidArgumentError(f"{name}: contains a null character ({value!r})")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{name}: is not valid Unicode ({value!r})") from error
    return value


def one_path(value: Any) -> Any:
    """A path as str or bytes."""
    path = os.fspath(value)
    if b"\0" in os.fsencode(path):
        raise InvalidArgumentError(f"path {path!r}: contains a null character")
    return path


def _text(name: str, value: Any) -> str:
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(value, (bytes, bytearray)):  # their text would be taken for the value
        raise DTypeError(
            f"{name.replace('-', '_')}: expected a str, got {type(value).__name__} (decode it, a path with os.fsdecode)",
            Status.TYPE,
        )
    return str(value)


#: Options that are repeated for several values; those of others are joined with commas.
_REPEATED = frozenset({"data", "eval", "feedback", "rule", "shape", "with"})


def _word(name: str, value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return name if value else f"no-{name}"
    several = value if isinstance(value, (list, tuple)) else [value]
    if name in _REPEATED and len(several) > 1:
        return " ".join(_word(name, item) for item in several)
    text = argument(f"option {name}", ",".join(_text(name, item) for item in several))
    quoted = text.replace('"', '\\"')
    return f'{name}="{quoted}"'


def option_text(options: Mapping[str, Any]) -> str:
    """`name=value` words; None and a list of no feedback are left out, True and False are flags, lists are joined with commas. Python's
    own words have an underscore at their end: for_."""
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(given.get("feedback"), (list, tuple)) and not given["feedback"]:
        del given["feedback"]
    return " ".join(_word(name.rstrip("_").replace("_", "-"), value) for name, value in given.items())


def with_options(given: Mapping[str, Any], options: Mapping[str, Any]) -> Dict[str, Any]:
    """The parameters of a call and its further options, none of which is a parameter by the name of the command line."""
    for name in options:
        if name in given:
            raise UsageError(f"unknown option '{name}' (did you mean '{ARGUMENTS.get(name, name)}'?)", Status.USAGE)
    return {**given, **options}


def paths(values: Any) -> List[bytes]:
    """One path or several as bytes."""
    several: Iterable[Any] = [values] if isinstance(values, (str, bytes, os.PathLike)) else values
    return [os.fsencode(one_path(value)) for value in several]


def _scalar(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    text = argument(name, str(getattr(value, "name", value)))
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{quoted}"'


def message_text(message: Mapping[str, Any]) -> str:
    """A protobuf message in text form: dicts are messages, lists repeat their field."""
    if not isinstance(message, Mapping):
        raise InvalidArgumentError(f"options: expected a str or a dict, got {type(message).__name__}")
    parts = []
    for name, value in message.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, Mapping):
                parts.append(f"{name} {{ {message_text(item)} }}")
            elif item is not None:
                parts.append(f"{name}: {_scalar(name, item)}")
    return " ".join(parts)
