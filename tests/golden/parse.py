"""Goldens of ParseExample and its forms: tf.Example messages encoded here by hand, byte by byte."""
import struct

import numpy as np

from golden import Golden

g = Golden()


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def feature(values, packed=True):
    if values is None:
        return b""  # a feature without a list
    kind, values = values
    if kind == "bytes":
        return field(1, b"".join(field(1, v) for v in values))
    if kind == "float":
        raw = [struct.pack("<f", v) for v in values]
        return field(2, field(1, b"".join(raw)) if packed else b"".join(b"\x0d" + r for r in raw))
    raw = [varint(v) for v in values]
    return field(3, field(1, b"".join(raw)) if packed else b"".join(b"\x08" + r for r in raw))


def example(packed=True, **features):
    entries = b"".join(field(1, field(1, k.encode()) + field(2, feature(v, packed))) for k, v in features.items())
    return field(1, entries)


def S(*items):
    return np.array(list(items), dtype=object)


def scalar(text):
    return np.array(text, dtype=object)


i64, f32 = np.int64, np.float32
rows = S(example(x=("float", [1.5, -2]), n=("int", [7, -1]), s=("bytes", [b"a", b"", b"c\0"])),
         example(packed=False, x=("float", [3, 4]), s=None, n=("int", [1 << 40]), unknown=("int", [1])),
         example(x=("float", [0, float("inf")])))
none = np.zeros(0, dtype=object)
attrs = ("Nsparse: 2; Ndense: 1; sparse_types: [DT_INT64, DT_STRING]; Tdense: [DT_FLOAT]; "
         "dense_shapes: [{ dim { size: 2 } }]")
dense = np.array([[1.5, -2], [3, 4], [0, np.inf]], f32)
sparse_out = [np.array([[0, 0], [0, 1], [1, 0]], i64), np.array([[0, 0], [0, 1], [0, 2]], i64),
              np.array([7, -1, 1 << 40], i64), S(b"a", b"", b"c\0"), np.array([3, 2], i64), np.array([3, 3], i64)]
keys = [scalar(b"n"), scalar(b"s"), scalar(b"x")]
empty = np.zeros(0, f32)
g.case("ParseExample", attrs, [rows, none] + keys + [empty], sparse_out + [dense], dynamic=True,
       infer="[?] [0] [] [] [] [0] -> [?,2] [?,2] [?] [?] [2] [2] [?,2]")

# defaults, a variable-length dense feature padded with its default
attrs = ("Nsparse: 0; Ndense: 3; sparse_types: []; Tdense: [DT_INT64, DT_FLOAT, DT_STRING]; "
         "dense_shapes: [{ dim { size: -1 } }, { dim { size: 1 } dim { size: 2 } }, { }]")
rows3 = S(example(n=("int", [5])), example(n=("int", [6, 7, 8]), x=("float", [1, 2]), s=("bytes", [b"q"])), b"")
g.case("ParseExample", attrs,
       [rows3, S(b"one", b"two", b"three"), scalar(b"n"), scalar(b"x"), scalar(b"s"), np.array([-1], i64),
        np.array([[8, 9]], f32), scalar(b"none")],
       [np.array([[5, -1, -1], [6, 7, 8], [-1, -1, -1]], i64), np.array([[[8, 9]], [[1, 2]], [[8, 9]]], f32),
        S(b"none", b"q", b"none")], dynamic=True)
attrs1 = "Nsparse: 0; Ndense: 1; sparse_types: []; Tdense: [DT_FLOAT]; dense_shapes: [{ dim { size: %d } }]"
# stride of two values
g.case("ParseExample", "Nsparse: 0; Ndense: 1; sparse_types: []; Tdense: [DT_INT64]; "
       "dense_shapes: [{ dim { size: -1 } dim { size: 2 } }]",
       [S(example(n=("int", [1, 2, 3, 4])), example(n=("int", [5, 6]))), none, scalar(b"n"), np.zeros(0, i64)],
       [np.array([[[1, 2], [3, 4]], [[5, 6], [0, 0]]], i64)], dynamic=True)


def fails(rows, words, size=2, key=b"x", names=none):
    g.case("ParseExample", attrs1 % size, [rows, names, scalar(key), empty], [], error=words)


fails(S(example(n=("int", [1]))), "Name: <unknown>, Feature: x (data type: float) is required but could not be found.")
fails(S(example(x=("float", [1]))), "Name: me, Key: x, Index: 0.  Number of float values != expected.  Values size: 1 but "
      "output shape: [2]", names=S(b"me"))
fails(S(example(x=("float", [1, 2])), example(x=("int", [1, 2]))),
      "Key: x, Index: 1.  Data types don't match. Data type: int64 but expected type: float")
for bad in (b"\x0a\xff", b"\x0a\x05abc", rows[0][:-1], b"\xff" * 11, b"\x07", field(1, field(1, b"\x12\x02\x12\x7f")),
            field(1, field(1, field(1, b"x") + field(2, field(2, field(1, b"abc")))))):
    fails(S(bad), "arse")
fails(scalar(rows[0]), "Expected serialized to be a vector")
fails(S(rows[0]), "Expected len(names) == len(serialized), but got 2 vs. 1", names=S(b"a", b"b"))
# a later entry of a name replaces an earlier one
twice = field(1, field(1, field(1, b"x") + field(2, feature(("float", [1, 2]))))
              + field(1, field(1, b"x") + field(2, feature(("float", [3, 4])))))
g.case("ParseExample", attrs1 % 2, [S(twice), none, scalar(b"x"), empty], [np.array([[3, 4]], f32)], dynamic=True)

# V2: all kinds at once, of a batch and of a single example
attrs = ("Tdense: [DT_FLOAT]; num_sparse: 1; sparse_types: [DT_STRING]; ragged_value_types: [DT_INT64]; "
         "ragged_split_types: [%s]; dense_shapes: [{ dim { size: 2 } }]")
keys = [S(b"s"), S(b"x"), S(b"n")]
g.case("ParseExampleV2", attrs % "DT_INT32", [rows, none] + keys + [empty],
       [sparse_out[1], sparse_out[3], sparse_out[5], dense, sparse_out[2], np.array([0, 2, 3, 3], np.int32)],
       dynamic=True, infer="[3] [0] [1] [1] [1] [0] -> [?,2] [?] [2] [3,2] [?] [4]")
g.case("ParseExampleV2", attrs % "DT_INT64", [scalar(rows[0]), none] + keys + [empty],
       [np.array([[0], [1], [2]], i64), sparse_out[3], np.array([3], i64), dense[0], np.array([7, -1], i64),
        np.zeros(0, i64)], dynamic=True)
g.case("ParseExampleV2", "Tdense: []; num_sparse: 0; sparse_types: []; ragged_value_types: []; ragged_split_types: []; "
       "dense_shapes: []", [rows, none, none, none, none], [])
g.case("ParseExampleV2", attrs % "DT_INT32", [rows, none, S(b"x"), S(b"x"), S(b"n"), empty], [], error="key 'x' is listed twice")

attrs = ("num_sparse: 1; sparse_keys: ['s']; dense_keys: ['x', 'n']; sparse_types: [DT_STRING]; Tdense: [DT_FLOAT, DT_INT64]; "
         "dense_shapes: [{ dim { size: 2 } }, { dim { size: -1 } }]")
g.case("ParseSingleExample", attrs, [scalar(rows[0]), empty, np.zeros(0, i64)],
       [np.array([[0], [1], [2]], i64), sparse_out[3], np.array([3], i64), dense[0], np.array([7, -1], i64)], dynamic=True)
g.case("ParseSingleExample", attrs, [scalar(b""), np.array([1, 2], f32), np.zeros(0, i64)],
       [np.zeros((0, 1), i64), none, np.array([0], i64), np.array([1, 2], f32), np.zeros(0, i64)], dynamic=True)
g.case("ParseSingleExample", attrs, [S(rows[0]), empty, np.zeros(0, i64)], [], error="Expected serialized to be a scalar")
g.save(__file__)
