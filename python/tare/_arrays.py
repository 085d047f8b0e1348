"""Arrays between NumPy and libtare, without copies where dtype and strides allow it.

libtare's element types are those of TensorFlow. NumPy has no bfloat16: with the package ``ml_dtypes`` such arrays have its
dtype, without it they are uint16 views of the upper halves of float32 numbers (`bfloat16_to_float32`).
"""

import sys
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _native
from ._errors import DTypeError, InvalidArgumentError, ShapeError, Status

__all__ = ["TensorSpec", "bfloat16_to_float32", "float32_to_bfloat16"]

#: (name, element type, shape, address or list of bytes), as the extension module takes it.
NativeArray = Tuple[bytes, int, Tuple[int, ...], Union[int, List[bytes]]]
#: The same as it returns it.
TakenArray = Tuple[str, int, Tuple[int, ...], Union[int, List[bytes]]]

STRING, BFLOAT16 = 7, 14
_NUMPY: Dict[int, str] = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64", 9: "int64", 10: "bool",
    11: "int8", 12: "uint8", 13: "int32", 14: "uint16", 15: "int16", 16: "uint16", 17: "uint16", 18: "complex128",
    19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
_QUANTIZED = {11, 12, 13, 15, 16}
DTYPES = {number: np.dtype(name) for number, name in _NUMPY.items()}
_NUMBERS = {dtype: number for number, dtype in DTYPES.items() if number not in _QUANTIZED and number != BFLOAT16}
_NARROW = {"int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}
#: Integers of 4 and 2 bits, which have a byte each; the library checks that those of inputs fit.
_STORED = {29: np.dtype(np.int8), 30: np.dtype(np.uint8), 31: np.dtype(np.int8), 32: np.dtype(np.uint8)}
_is_masked: Any = np.ma.is_masked
#: Kinds of Python numbers by the kind of dtype that holds them without loss of a fraction, an imaginary part or a sign.
_KINDS = {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}


class TensorSpec(NamedTuple):
    """An input or output of a signature.

    Attributes
    ----------
    name : str
        Its name in the signature.
    dtype : str
        NumPy's name of the element type, or TensorFlow's where NumPy has none: ``"float32"``, ``"bfloat16"``, ``"string"``.
    shape : tuple of (int or None) or None
        Dims, None for an open one; None as a whole for an unknown rank.
    number : int
        The number of the element type in TensorFlow (``tare/dtype.h``).

    Examples
    --------
    >>> model.signatures["serving_default"].inputs["image"]
    TensorSpec(name='image', dtype='float32', shape=(None, 28, 28, 1), number=1)
    """

    name: str
    dtype: str
    shape: Optional[Tuple[Optional[int], ...]]
    number: int

    @classmethod
    def _of(cls, item: Tuple[str, int, Optional[Tuple[int, ...]]]) -> "TensorSpec":
        name, number, dims = item
        shape = None if dims is None else tuple(None if dim < 0 else dim for dim in dims)
        return cls(name, _native.element_name(number), shape, number)

    @property
    def rank(self) -> Optional[int]:
        """Number of dimensions; None if it is unknown."""
        return None if self.shape is None else len(self.shape)


def bfloat16_to_float32(values: Any) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Convert bfloat16 numbers, as uint16 or with the dtype of ``ml_dtypes``, to float32. Exact.

    Parameters
    ----------
    values : array_like
        Array of any shape.

    Returns
    -------
    ndarray of float32
        Array of the same shape.

    Raises
    ------
    DTypeError
        The values have another dtype.

    Examples
    --------
    >>> tare.bfloat16_to_float32(tare.float32_to_bfloat16([1.0, -2.5]))
    array([ 1. , -2.5], dtype=float32)
    """
    bits = np.asarray(values)
    if bits.dtype.newbyteorder("=") != np.uint16 and (bits.dtype.kind, bits.dtype.itemsize) != ("V", 2):
        raise DTypeError(f"values: expected uint16 or bfloat16, got {bits.dtype}", Status.TYPE)
    shape = bits.shape
    bits = np.ascontiguousarray(_known(bits))
    return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(shape)


def float32_to_bfloat16(values: Any) -> "np.ndarray[Any, Any]":
    """Round float32 numbers to bfloat16, to nearest, ties to even.

    Parameters
    ----------
    values : array_like
        Array of any shape, convertible to float32.

    Returns
    -------
    ndarray of uint16, or of ml_dtypes.bfloat16 where that package is installed
        Array of the same shape.

    Raises
    ------
    DTypeError
        A number is out of the range of float32.

    Examples
    --------
    >>> tare.bfloat16_to_float32(tare.float32_to_bfloat16(3.14159))
    array(3.140625, dtype=float32)
    """
    given = np.asarray(values)
    single = np.dtype(np.float32)
    numbers = np.ascontiguousarray(exact(given, single, "values") if given.dtype.kind in "fiu" else given, single)
    bits = numbers.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    rounded = np.where(np.isnan(numbers), (bits >> np.uint32(16)) | np.uint32(0x40), rounded)
    return _as_bfloat16(rounded.astype(np.uint16).reshape(given.shape))


def _as_bfloat16(bits: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    try:
        import ml_dtypes  # type: ignore
    except ImportError:
        return bits
    view: "np.ndarray[Any, Any]" = bits.view(ml_dtypes.bfloat16)
    return view


# ---- to the library


def encoded(name: Any) -> bytes:
    """The name of an array."""
    if not isinstance(name, str):
        raise InvalidArgumentError(f"array {name!r}: the name is of type {type(name).__name__} (expected str)")
    try:
        data = name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"array {name!r}: the name is not valid Unicode") from error
    if b"\0" in data:
        raise InvalidArgumentError(f"array {name!r}: the name contains a null character")
    return data


def _text(item: Any, name: str) -> bytes:
    if isinstance(item, str):
        try:
            return item.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"array {name}: {item!r} is not valid Unicode (pass bytes)") from error
    if not isinstance(item, bytes):
        raise DTypeError(f"array {name}: an element is of type {type(item).__name__} (expected str or bytes)", Status.TYPE)
    return item


def _texts(values: "np.ndarray[Any, Any]", name: str) -> List[bytes]:
    return [_text(item, name) for item in values.ravel().tolist()]


def _number(values: "np.ndarray[Any, Any]", name: str, expected: int) -> int:
    """Element type of an array; NumPy's dtype decides unless several element types share it."""
    if expected in DTYPES and DTYPES[expected] == values.dtype:
        return expected
    number = _NUMBERS.get(values.dtype)
    if number is None and values.dtype.name == "bfloat16":
        return BFLOAT16
    if number is None:
        raise DTypeError(f"array {name}: {values.dtype} is not a dtype of arrays", Status.TYPE)
    return number


def _known(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Integers below one byte as int8 or uint8; other byte orders as the native one."""
    if array.dtype.name in _NARROW:
        return array.astype(_NARROW[array.dtype.name])
    if array.dtype == np.dtype("V2"):  # what numpy.load makes of bfloat16
        return _as_bfloat16(array.view(np.uint16))
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _objects(value: Any, name: str) -> "np.ndarray[Any, Any]":
    """Python objects as an array. NumPy would make strings of numbers, and cut null bytes from the end of bytes."""
    try:
        array = np.asarray(value)
        return np.asarray(value, object) if array.dtype.kind in "SU" else array
    except UnicodeDecodeError:  # str and bytes in one list
        return np.asarray(value, object)
    except (TypeError, ValueError) as error:
        text = str(error).split(". ")[0]
        raise ShapeError(f"array {name}: the value is not an array ({text})", Status.SHAPE) from error


def _check_range(found: "np.ndarray[Any, Any]", array: "np.ndarray[Any, Any]", dtype: Any, name: str) -> None:
    """Names the first number that the dtype does not hold."""
    if found.any():
        place = np.unravel_index(int(np.argmax(found)), found.shape)
        where = f" at [{', '.join(map(str, place))}]" if place else ""
        raise DTypeError(f"array {name}: {array[place]}{where} is out of range (expected {dtype})", Status.TYPE)


def converted(array: "np.ndarray[Any, Any]", dtype: "np.dtype[Any]", name: str) -> "np.ndarray[Any, Any]":
    """Numbers in the dtype of the input; those that it does not hold are not rounded to integers, wrapped or made infinite
    silently."""
    if array.size and array.dtype.kind not in _KINDS[dtype.kind]:
        raise DTypeError(f"array {name}: expected {dtype}, got {array.dtype}", Status.TYPE)
    return exact(array, dtype, name)


def exact(array: "np.ndarray[Any, Any]", dtype: "np.dtype[Any]", name: str) -> "np.ndarray[Any, Any]":
    """The same for numbers of any kind: floats that are integers are integers."""
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(dtype)
    if dtype.kind in "iu":
        _check_range(result != array, array, dtype, name)
    elif dtype.kind in "fc":
        _check_range(np.isinf(result) & ~np.isinf(array), array, dtype, name)
    return result


def _rounded_to_bfloat16(array: "np.ndarray[Any, Any]", name: str) -> "np.ndarray[Any, Any]":
    numbers = converted(array, np.dtype(np.float32), name)
    result = float32_to_bfloat16(numbers)
    _check_range(np.isinf(bfloat16_to_float32(result)) & ~np.isinf(numbers), array, "bfloat16", name)
    return result


def _from_python(value: Any, expected: int, name: str) -> "np.ndarray[Any, Any]":
    array = _objects(value, name)
    if expected == STRING and not array.size:
        return array.astype(object)
    if expected == BFLOAT16:
        return _rounded_to_bfloat16(array, name)
    dtype = DTYPES.get(expected, _STORED.get(expected))
    return converted(array, dtype, name) if dtype else array


def is_python(value: Any) -> bool:
    """Whether the value is of Python numbers, strings or lists of them, so that it has no dtype of its own."""
    return not (isinstance(value, np.ndarray) or hasattr(value, "__array__") or hasattr(value, "__array_interface__"))


def _foreign(value: Any, expected: int, name: str) -> "np.ndarray[Any, Any]":
    """An array of another library. Tensors of torch may need gradients, be on a device, or be bfloat16, which NumPy lacks."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach().cpu()
    if str(value.dtype) == "torch.bfloat16":
        if expected in DTYPES and expected != BFLOAT16:
            wanted = _native.element_name(expected)
            raise DTypeError(
                f"input {name}: expected {wanted}, got torch.bfloat16 (convert it with .to(torch.{DTYPES[expected]}))", Status.TYPE
            )
        return _as_bfloat16(np.asarray(value.view(sys.modules["torch"].int16)).view(np.uint16))
    return np.asarray(value)


def prepare(value: Any, expected: int = 0, name: str = "") -> "np.ndarray[Any, Any]":
    """The value as an aligned C-contiguous array in native byte order.

    Python numbers and lists get the expected element type."""
    if isinstance(value, np.ndarray):
        array: "np.ndarray[Any, Any]" = value
        if _is_masked(value):
            raise InvalidArgumentError(f"array {name}: has masked elements (fill them with .filled)")
    elif is_python(value):
        array = _from_python(value, expected, name)
    else:
        array = _foreign(value, expected, name)
    if array.dtype not in _NUMBERS:
        array = _known(array)
    if array.flags.c_contiguous:
        return array if array.flags.aligned else array.copy()  # of a packed record or at any byte of a buffer
    return np.ascontiguousarray(array).reshape(array.shape)


def _advice(expected: int) -> str:
    if expected == BFLOAT16:
        return " (convert it with tare.float32_to_bfloat16)"
    return f" (convert it with .astype('{DTYPES[expected]}'))"


def native(name: bytes, array: "np.ndarray[Any, Any]", expected: int = 0) -> NativeArray:
    """The tuple of a prepared array, which must outlive the call."""
    if array.dtype.kind in "OSU":
        if expected in DTYPES:
            raise DTypeError(f"array {name.decode()}: expected {DTYPES[expected]}, got {array.dtype}", Status.TYPE)
        return name, STRING, array.shape, _texts(array, name.decode())
    number = _number(array, name.decode(), expected)
    if expected in DTYPES and number != expected:
        raise DTypeError(
            f"input {name.decode()}: expected {_native.element_name(expected)}, got {array.dtype}{_advice(expected)}",
            Status.TYPE,
        )
    address: int = array.__array_interface__["data"][0]
    return name, number, array.shape, address


# ---- from the library


class _Memory:
    """Elements that another object owns, for NumPy to make an array over."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, shape: Tuple[int, ...], dtype: "np.dtype[Any]", owner: Any) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": dtype.str, "version": 3}
        self.owner = owner


def _take(item: TakenArray, owner: Any) -> "np.ndarray[Any, Any]":
    _, number, shape, elements = item
    array: "np.ndarray[Any, Any]"
    if isinstance(elements, list):
        array = np.empty(len(elements), object)
        array[:] = elements
        return array.reshape(shape)
    dtype = _STORED[number] if number in _STORED else DTYPES[number]
    if 0 in shape:
        array = np.empty(shape, dtype)
    else:
        array = np.asarray(_Memory(elements, shape, dtype, owner))
    return _as_bfloat16(array) if number == BFLOAT16 else array


def take(items: Iterable[TakenArray], owner: Any) -> "Dict[str, np.ndarray[Any, Any]]":
    """Arrays over the library's memory, which `owner` keeps alive; writable."""
    return {item[0]: _take(item, owner) for item in items}


def copy(items: Iterable[TakenArray]) -> "Dict[str, np.ndarray[Any, Any]]":
    """Copies of arrays that are valid only now."""
    return {item[0]: np.array(_take(item, None)) for item in items}


# ---- inputs by name


def native_inputs(
    values: Mapping[str, Any], specs: Mapping[str, TensorSpec]
) -> "Tuple[List[NativeArray], List[np.ndarray[Any, Any]]]":
    """Tuples for the extension module, and the arrays that own their elements."""
    keep = []
    tuples = []
    for name, value in values.items():
        expected = specs[name].number if name in specs else 0
        array = prepare(value, expected, name)
        keep.append(array)
        tuples.append(native(encoded(name), array, expected))
    return tuples, keep
