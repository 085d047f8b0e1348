"""Writer of golden files: cases of ops with inputs and expected outputs, made by an independent program.

A script tests/golden/<family>.py adds cases and saves them next to itself:

    from golden import Golden, FEW_ULPS
    g = Golden()
    g.case("Relu", "T: float", [x], [np.maximum(x, 0)])
    g.save(__file__)                                   # writes <family>.bin

Tensors are numpy arrays; the dtype follows from the array. numpy has no bfloat16, quantized or float8 types: wrap those
with T("bfloat16", array) (a float array, rounded to nearest even) or T("qint8", integer array). Strings: arrays of bytes
objects (dtype object or S). None as an output: not compared. The format is in README.md.
"""
import gzip
import os
import struct

import numpy as np

MAGIC = b"TAREGLD\n"
VERSION = 1

# Tolerances: (absolute, relative, ulps).
EXACT = (0.0, 0.0, 0)
ONE_ULP = (0.0, 0.0, 1)          # one correct rounding against another chain of them
FEW_ULPS = (0.0, 0.0, 4)         # elementary functions of good libraries
FLOAT_SUMS = (1e-6, 1e-5, 0)     # float results of sums in another order

NUMBERS = {
    "float": 1, "double": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9,
    "bool": 10, "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16, "uint16": 17,
    "complex128": 18, "half": 19, "uint32": 22, "uint64": 23, "float8_e5m2": 24, "float8_e4m3fn": 25, "int4": 29,
    "uint4": 30,
}
NUMPY = {
    "float": np.float32, "double": np.float64, "int32": np.int32, "uint8": np.uint8, "int16": np.int16,
    "int8": np.int8, "complex64": np.complex64, "int64": np.int64, "bool": np.bool_, "complex128": np.complex128,
    "half": np.float16, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
}
STORAGE = {"qint8": np.int8, "quint8": np.uint8, "qint32": np.int32, "qint16": np.int16, "quint16": np.uint16,
           "float8_e5m2": np.uint8, "float8_e4m3fn": np.uint8, "int4": np.int8, "uint4": np.uint8}


def bfloat16_bits(array):
    """Round to nearest, ties to even; NaN stays a quiet NaN of the same sign."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    nan = np.isnan(np.asarray(array, dtype=np.float32))
    return np.where(nan, ((bits >> 16) & 0x8000 | 0x7FC0).astype(np.uint16), rounded).reshape(np.shape(array))


def from_bfloat16(bits):
    return (np.asarray(bits, dtype=np.uint32) << 16).view(np.float32)


class T:
    """A tensor of a dtype named as in op specifications."""

    def __init__(self, dtype, array):
        self.dtype = dtype
        if dtype == "bfloat16":
            self.array = bfloat16_bits(array)
        elif dtype == "string":
            self.array = np.asarray(array, dtype=object)
        else:
            self.array = np.asarray(array, dtype=NUMPY.get(dtype) or STORAGE[dtype])

    @staticmethod
    def of(value):
        if isinstance(value, T):
            return value
        array = np.asarray(value)
        if array.dtype.kind in "OSU":
            return T("string", array)
        for name, kind in NUMPY.items():
            if array.dtype == np.dtype(kind):
                return T(name, array)
        raise TypeError(f"no dtype for numpy's {array.dtype}")

    def pack(self):
        array = self.array
        head = struct.pack("<ii", NUMBERS[self.dtype], array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
        if self.dtype != "string":
            return head + np.ascontiguousarray(array).tobytes()
        body = b""
        for item in array.reshape(-1):
            item = item if isinstance(item, bytes) else str(item).encode()
            body += struct.pack("<I", len(item)) + item
        return head + body


def _text(text):
    data = (text or "").encode()
    return struct.pack("<I", len(data)) + data


class Golden:
    def __init__(self):
        self.cases = []

    def case(self, op, attrs, inputs, outputs, tolerance=EXACT, error=None, infer=None, dynamic=False):
        """One case. `attrs`: "T: float; strides: [1, 2]"; `error`: words of the error text (outputs are then none);
        `infer`: "[2,?] -> [?]" (see tests/support/op_case.h); `dynamic`: the shape depends on more than known values."""
        body = _text(op) + _text(attrs) + _text(error) + _text(infer)
        body += struct.pack("<ddqI", tolerance[0], tolerance[1], tolerance[2], 1 if dynamic else 0)
        for group in (inputs, outputs):
            body += struct.pack("<I", len(group))
            for value in group:
                body += struct.pack("<ii", 0, 0) if value is None else T.of(value).pack()
        self.cases.append(struct.pack("<I", len(body)) + body)

    def save(self, script, family=None):
        """Writes <family>.bin next to the script; by default its own name."""
        path = os.path.splitext(os.path.abspath(script))[0] + ".bin"
        if family:
            path = os.path.join(os.path.dirname(path), family + ".bin")
        data = MAGIC + struct.pack("<II", VERSION, len(self.cases)) + b"".join(self.cases)
        with open(path, "wb") as out:
            out.write(gzip.compress(data, 9, mtime=0))
        print(f"{path}: {len(self.cases)} cases, {os.path.getsize(path)} bytes")
