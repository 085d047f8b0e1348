"""Goldens of ParseSequenceExample and its forms: tf.SequenceExample messages encoded here by hand, answers written out."""
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


def feature(kind, values):
    if kind is None:
        return b""
    if kind == "bytes":
        return field(1, b"".join(field(1, v) for v in values))
    if kind == "float":
        return field(2, field(1, b"".join(struct.pack("<f", v) for v in values)))
    return field(3, field(1, b"".join(varint(v) for v in values)))


def entry(key, body):
    return field(1, field(1, key.encode()) + field(2, body))


def sequence(context=(), lists=()):
    features = b"".join(entry(k, feature(*v)) for k, v in dict(context).items())
    steps = b"".join(entry(k, b"".join(field(1, feature(*s)) for s in v)) for k, v in dict(lists).items())
    return (field(1, features) if context else b"") + (field(2, steps) if lists else b"")


def S(*items):
    return np.array(list(items), dtype=object)


i64, i32, f32 = np.int64, np.int32, np.float32
none = S()
a = sequence({"id": ("int", [7]), "name": ("bytes", [b"ann"]), "tags": ("int", [1, 2])},
             {"x": [("float", [1, 2]), ("float", [3, 4])], "w": [("bytes", [b"p", b"q"]), ("bytes", []), ("bytes", [b"r"])],
              "n": [("int", [5]), ("int", [6, 7])]})
b = sequence({"id": ("int", [-1])}, {"x": [("float", [9, 8])], "n": []})
c = sequence({"tags": ("int", [3]), "other": ("float", [1])}, {"w": [("bytes", [b"s"])], "x": [], "n": [(None, []), ("int", [1])]})
batch = S(a, b, c)

V2 = ("Ncontext_sparse: 1; context_sparse_types: [int64]; Tcontext_dense: [int64, string]; context_dense_shapes: [{}, {}]; "
      "context_ragged_value_types: [int64]; context_ragged_split_types: [int32]; "
      "Nfeature_list_sparse: 1; feature_list_sparse_types: [string]; "
      "Nfeature_list_dense: 1; feature_list_dense_types: [float]; feature_list_dense_shapes: [{ dim { size: 2 } }]; "
      "feature_list_ragged_value_types: [int64]; feature_list_ragged_split_types: [int64]").replace("{}", "{ }")
# a key may not be listed twice: the context's ragged column reads "id" where the dense one reads "name"
attrs = V2.replace("Tcontext_dense: [int64, string]; context_dense_shapes: [{ }, { }]",
                   "Tcontext_dense: [string]; context_dense_shapes: [{ }]")
inputs = [batch, none, S(b"tags"), S(b"name"), S(b"id"), S(b"w"), S(b"x"), S(b"n"), np.array([True]),
          np.array(b"?", dtype=object)]
g.case("ParseSequenceExampleV2", attrs, inputs,
       [np.array([[0, 0], [0, 1], [2, 0]], i64), np.array([1, 2, 3], i64), np.array([3, 2], i64), S(b"ann", b"?", b"?"),
        np.array([7, -1], i64), np.array([0, 1, 2, 2], i32),
        np.array([[0, 0, 0], [0, 0, 1], [0, 2, 0], [2, 0, 0]], i64), S(b"p", b"q", b"r", b"s"), np.array([3, 3, 2], i64),
        np.array([[[1, 2], [3, 4]], [[9, 8], [0, 0]], [[0, 0], [0, 0]]], f32), np.array([2, 1, 0], i64),
        np.array([5, 6, 7, 1], i64), np.array([0, 2, 2, 4], i64), np.array([0, 1, 3, 3, 4], i64)], dynamic=True)
single = [np.array(a, dtype=object), np.array(b"", dtype=object)] + inputs[2:]
g.case("ParseSequenceExampleV2", attrs, single,
       [np.array([[0], [1]], i64), np.array([1, 2], i64), np.array([2], i64), np.array(b"ann", dtype=object),
        np.array([7], i64), np.zeros(0, i32),
        np.array([[0, 0], [0, 1], [2, 0]], i64), S(b"p", b"q", b"r"), np.array([3, 2], i64),
        np.array([[1, 2], [3, 4]], f32), np.array(2, i64),
        np.array([5, 6, 7], i64), np.zeros(0, i64), np.array([0, 1, 3], i64)], dynamic=True)
empty = [S()] + inputs[1:]
g.case("ParseSequenceExampleV2", attrs, empty,
       [np.zeros((0, 2), i64), np.zeros(0, i64), np.array([0, 0], i64), S(), np.zeros(0, i64), np.array([0], i32),
        np.zeros((0, 3), i64), S(), np.array([0, 0, 0], i64), np.zeros((0, 0, 2), f32), np.zeros(0, i64), np.zeros(0, i64),
        np.array([0], i64), np.array([0], i64)], dynamic=True)
must = [S(sequence({"name": ("bytes", [b"x"])}))] + inputs[1:8] + [np.array([False])] + inputs[9:]
g.case("ParseSequenceExampleV2", attrs, must, [], error="Key: x, Index: 0.  Feature list is required but could not be found.")
for bad, words in ((sequence({}, {"x": [("float", [1])]}), "Number of values != expected."),
                   (sequence({}, {"x": [("int", [1, 2])]}), "Data types don't match."),
                   (sequence({"name": ("int", [1])}), "Key: name, Index: 0.  Data types don't match."),
                   (b"\x0a\x05\x0a", "Could not parse example input 0 of 3 bytes"),
                   (b"\x12\x06\x0a\x04\x0a\x01x\x12", "Could not parse example input")):
    g.case("ParseSequenceExampleV2", attrs, [S(bad)] + inputs[1:], [], error=words)
nodefault = inputs[:9] + [S()]
g.case("ParseSequenceExampleV2", attrs, [S(b)] + nodefault[1:], [], error="Key: name, Index: 0.  Feature is required")

V1 = ("feature_list_dense_missing_assumed_empty: ['x']; context_sparse_keys: ['tags']; context_dense_keys: ['id']; "
      "feature_list_sparse_keys: ['w', 'n']; feature_list_dense_keys: ['x']; Ncontext_sparse: 1; Ncontext_dense: 1; "
      "context_sparse_types: [int64]; Tcontext_dense: [int64]; context_dense_shapes: [{ dim { size: 1 } }]; "
      "Nfeature_list_sparse: 2; feature_list_sparse_types: [string, int64]; Nfeature_list_dense: 1; "
      "feature_list_dense_types: [float]; feature_list_dense_shapes: [{ dim { size: 2 } }]")
want = [np.array([[0, 0], [0, 1], [2, 0]], i64), np.array([1, 2, 3], i64), np.array([3, 2], i64),
        np.array([[7], [-1], [40]], i64),
        np.array([[0, 0, 0], [0, 0, 1], [0, 2, 0], [2, 0, 0]], i64),
        np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [2, 1, 0]], i64), S(b"p", b"q", b"r", b"s"), np.array([5, 6, 7, 1], i64),
        np.array([3, 3, 2], i64), np.array([3, 2, 2], i64),
        np.array([[[1, 2], [3, 4]], [[9, 8], [0, 0]], [[0, 0], [0, 0]]], f32), np.array([2, 1, 0], i64)]
g.case("ParseSequenceExample", V1, [batch, none, np.array([40], i64)], want, dynamic=True)
g.case("ParseSequenceExample", V1, [batch, S(b"A", b"B", b"C"), np.zeros(0, i64)], [], error="Name: C, Key: id, Index: 2.")
g.case("ParseSequenceExample", V1.replace("['x']; context", "[]; context"), [S(sequence({"id": ("int", [1])})), none, np.array([40], i64)],
       [], error="Feature list is required")
g.case("ParseSequenceExample", V1, [np.array(a, dtype=object), none, np.array([40], i64)], [], error="Expected serialized to be a vector, got rank 0")

single = V1.split("Ncontext_sparse: 1", 1)
SINGLE = "Ncontext_sparse: 1" + single[1]
key = lambda k: np.array(k, dtype=object)
args = [S(b"x"), key(b"tags"), key(b"id"), key(b"w"), key(b"n"), key(b"x"), np.array([40], i64), key(b"dbg")]
g.case("ParseSingleSequenceExample", SINGLE, [np.array(a, dtype=object)] + args,
       [np.array([[0], [1]], i64), np.array([1, 2], i64), np.array([2], i64), np.array([7], i64),
        np.array([[0, 0], [0, 1], [2, 0]], i64), np.array([[0, 0], [1, 0], [1, 1]], i64), S(b"p", b"q", b"r"),
        np.array([5, 6, 7], i64), np.array([3, 2], i64), np.array([2, 2], i64), np.array([[1, 2], [3, 4]], f32)], dynamic=True)
g.case("ParseSingleSequenceExample", SINGLE, [np.array(sequence(), dtype=object)] + args,
       [np.zeros((0, 1), i64), np.zeros(0, i64), np.array([0], i64), np.array([40], i64),
        np.zeros((0, 2), i64), np.zeros((0, 2), i64), S(), np.zeros(0, i64), np.array([0, 0], i64), np.array([0, 0], i64),
        np.zeros((0, 2), f32)], dynamic=True)
g.case("ParseSingleSequenceExample", SINGLE, [np.array(sequence(), dtype=object), S()] + args[1:], [], error="Name: dbg, Key: x, Index: 0.")
g.save(__file__)
