"""Objects that own a handle of the library."""

from typing import Any, TypeVar

from ._errors import InvalidArgumentError

_Self = TypeVar("_Self", bound="Owner")


class Owner:
    """Owns a handle: until the end of its ``with`` statement, otherwise as long as the object exists."""

    _held: Any

    @property
    def _handle(self) -> Any:
        if self._held is None:
            name = type(self).__name__
            raise InvalidArgumentError(f"{name.lower()}: is closed (use the {name} in its with statement)")
        return self._held

    def close(self) -> None:
        """Release the memory of the object, which cannot be used any more."""
        self._held = None

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
