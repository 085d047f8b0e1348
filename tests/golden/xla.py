"""XlaConvV2 and XlaDotV2 by torch and numpy: int8 exactly in int64 cut to int32, floats in float64."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden, T, from_bfloat16

rng = np.random.default_rng(9)
g = Golden()
SUMS = (2e-5, 1e-5, 0)


def varint(n):
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out


def message(fields, packed=True):
    """fields: number -> int or list; single zeros are left out, as protobuf does."""
    out = b""
    for number, value in sorted(fields.items()):
        if isinstance(value, int):
            out += varint(number << 3) + varint(value) if value else b""
        elif packed and value:
            body = b"".join(varint(v) for v in value)
            out += varint(number << 3 | 2) + varint(len(body)) + body
        else:
            out += b"".join(varint(number << 3) + varint(v) for v in value)
    return out


def quoted(data):
    return "'" + "".join(f"\\{b:03o}" for b in data) + "'"


def conv_dims(lhs, rhs, out, packed=True):
    """Strings over b, f, spatial digits; i, o in rhs: "b01f", "01io", "b01f"."""
    spatial = sorted(c for c in lhs if c.isdigit())
    return message({3: rhs.index("i"), 4: rhs.index("o"), 6: [rhs.index(c) for c in spatial], 7: lhs.index("b"),
                    8: lhs.index("f"), 9: out.index("b"), 10: out.index("f"), 11: [lhs.index(c) for c in spatial],
                    12: [out.index(c) for c in spatial]}, packed)


def convolve(x, w, lhs, rhs, out, strides, padding, lhs_dilation, rhs_dilation, groups):
    """In float64, exact for small integers."""
    n = len(strides)
    order = "bf" + "".join(str(i) for i in range(n))
    t = np.transpose(x, [lhs.index(c) for c in order]).astype(np.float64)
    k = np.transpose(w, [rhs.index(c) for c in "oi" + order[2:]]).astype(np.float64)
    for i in range(n):
        d = lhs_dilation[i]
        shape = list(t.shape)
        shape[2 + i] = (shape[2 + i] - 1) * d + 1
        wide = np.zeros(shape)
        wide[(slice(None),) * (2 + i) + (slice(None, None, d),)] = t
        t = wide
        low, high = padding[i]
        if low < 0:
            t = np.take(t, range(-low, t.shape[2 + i]), 2 + i)
        if high < 0:
            t = np.take(t, range(t.shape[2 + i] + high), 2 + i)
        t = np.pad(t, [(0, 0)] * (2 + i) + [(max(low, 0), max(high, 0))] + [(0, 0)] * (n - 1 - i))
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[n]
    y = conv(torch.from_numpy(t.copy()), torch.from_numpy(k.copy()), stride=strides, dilation=rhs_dilation, groups=groups)
    return np.transpose(y.numpy(), ["bf0123".index(c) if c in "bf" else 2 + int(c) for c in out])


def numbers(t, *shape):
    if t == "int8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    if t == "int32":
        return rng.integers(-255, 256, shape).astype(np.int32)
    return T(t, rng.standard_normal(shape))


def wide(v):
    v = T.of(v)
    return from_bfloat16(v.array) if v.dtype == "bfloat16" else v.array


def conv(lt, rt, ot, x, w, lhs, rhs, out, strides, padding, lhs_dilation=None, rhs_dilation=None, groups=1, tol=None,
         index=np.int32, packed=True):
    n = len(strides)
    lhs_dilation, rhs_dilation = lhs_dilation or (1,) * n, rhs_dilation or (1,) * n
    y = convolve(wide(x), wide(w), lhs, rhs, out, strides, padding, lhs_dilation, rhs_dilation, groups)
    y = y.astype(np.int64).astype(np.int32) if ot == "int32" else T(ot, y)
    it = "int32" if index is np.int32 else "int64"
    g.case("XlaConvV2", f"LhsT: {lt}; RhsT: {rt}; Tindices: {it}; dimension_numbers: "
           f"{quoted(conv_dims(lhs, rhs, out, packed))}; precision_config: ''; preferred_element_type: {ot}",
           [x, w, np.array(strides, index), np.array(padding, index).reshape(n, 2), np.array(lhs_dilation, index),
            np.array(rhs_dilation, index), np.array(groups, index)], [y],
           tol or ((0, 0, 0) if ot == "int32" else SUMS))


def dot(lt, rt, ot, x, w, lc, rc, lb=(), rb=(), tol=None, packed=True):
    a, b = wide(x), wide(w)
    names = "abcdefghijk"
    left = list(names[:a.ndim])
    right = list(names[a.ndim:a.ndim + b.ndim])
    for i, j in list(zip(lc, rc)) + list(zip(lb, rb)):
        right[j] = left[i]
    out = [left[i] for i in lb] + [c for i, c in enumerate(left) if i not in lc and i not in lb] + \
        [c for i, c in enumerate(right) if i not in rc and i not in rb]
    kind = np.int64 if ot == "int32" else np.float64
    y = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a.astype(kind), b.astype(kind))
    dims = quoted(message({1: list(lc), 2: list(rc), 3: list(lb), 4: list(rb)}, packed))
    attrs = f"dimension_numbers: {dims}; precision_config: ''; "
    y = y.astype(np.int32) if ot == "int32" else T(ot, y)
    op, types = ("XlaDot", f"T: {lt}") if tol == "v1" else \
        ("XlaDotV2", f"LhsT: {lt}; RhsT: {rt}; preferred_element_type: {ot}")
    tol = None if tol == "v1" else tol
    g.case(op, attrs + types, [x, w], [y], tol or ((0, 0, 0) if ot == "int32" else SUMS))


f = np.float32


def conv_cases():
    for lt, rt, ot, tol in [("int8", "int8", "int32", None), ("int32", "int8", "int32", None), ("float", "int8", "float", None),
                            ("float", "float", "float", None), ("bfloat16", "bfloat16", "float", None),
                            ("bfloat16", "bfloat16", "bfloat16", (0.1, 0.01, 0)), ("double", "double", "double", None)]:
        scale = (2e-3, 1e-5, 0) if rt == "int8" and ot == "float" else tol
        conv(lt, rt, ot, numbers(lt, 2, 6, 7, 5), numbers(rt, 3, 3, 5, 9), "b01f", "01io", "b01f", (1, 1), [(1, 1), (1, 1)], tol=scale)
        conv(lt, rt, ot, numbers(lt, 1, 7, 8, 6), numbers(rt, 3, 2, 3, 4), "b01f", "01io", "b01f", (2, 1), [(0, 1), (2, 0)],
             groups=2, tol=scale, index=np.int64)
        conv(lt, rt, ot, numbers(lt, 2, 6, 9, 20), numbers(rt, 3, 3, 1, 20), "b01f", "01io", "b01f", (1, 2), [(1, 1), (1, 1)],
             groups=20, tol=scale)
        conv(lt, rt, ot, numbers(lt, 1, 5, 6, 4), numbers(rt, 2, 3, 1, 8), "b01f", "01io", "b01f", (1, 1), [(0, 0), (0, 0)],
             groups=4, tol=scale)
        conv(lt, rt, ot, numbers(lt, 2, 3, 5, 6), numbers(rt, 4, 3, 2, 3), "bf01", "oi01", "bf01", (1, 1), [(1, 0), (0, 1)], tol=scale)
        conv(lt, rt, ot, numbers(lt, 1, 4, 3, 2), numbers(rt, 3, 3, 2, 3), "b01f", "01io", "f01b", (1, 1), [(2, 2), (-1, 2)],
             (2, 3), (1, 2), tol=scale, packed=False)
        conv(lt, rt, ot, numbers(lt, 1, 4, 3, 20), numbers(rt, 3, 3, 1, 20), "b01f", "01io", "b01f", (1, 1), [(2, 2), (1, 2)],
             (2, 2), (1, 1), groups=20, tol=scale)
        conv(lt, rt, ot, numbers(lt, 2, 9, 3), numbers(rt, 4, 3, 5), "b0f", "0io", "b0f", (2,), [(1, 2)], tol=scale)
        conv(lt, rt, ot, numbers(lt, 1, 4, 5, 3, 2), numbers(rt, 2, 2, 2, 2, 3), "b012f", "012io", "b012f", (1, 2, 1),
             [(0, 1), (1, 1), (0, 0)], tol=scale)
    x = rng.integers(-2**31, 2**31, (1, 3, 2)).astype(np.int32)  # too large for the fast way
    w = rng.integers(-128, 128, (1, 2, 3)).astype(np.int8)
    y = (x[0].astype(object) @ w[0].astype(object)) % 2**32
    NUM = quoted(conv_dims("b0f", "0io", "b0f"))
    ONE = np.ones(1, np.int32)
    REST = [ONE, np.zeros((1, 2), np.int32), ONE, ONE, np.array(1, np.int32)]
    g.case("XlaConvV2", f"LhsT: int32; RhsT: int8; Tindices: int32; dimension_numbers: {NUM}; precision_config: ''; "
           "preferred_element_type: int32", [x, w, *REST], [np.array(y.tolist(), np.uint64).astype(np.uint32).view(np.int32)[None]])
    ATTRS = f"T: float; Tindices: int32; dimension_numbers: {NUM}; precision_config: ''"
    for shape in [(2, 5, 3), (1, 4, 4), (1, 7, 2)]:
        x, w = rng.standard_normal(shape).astype(f), rng.standard_normal((2, shape[2], 6)).astype(f)
        g.case("XlaConv", ATTRS, [x, w, *REST],
               [convolve(x, w, "b0f", "0io", "b0f", (1,), [(0, 0)], (1,), (1,), 1).astype(f)], SUMS,
               infer="[?,5,3] [2,3,6] []* []* []* []* []* -> [?,4,6]".replace("[]*", "[1]*") if shape[2] == 9 else None)
    g.case("XlaConv", ATTRS, [x, w[:, :1], *REST], [], error="the kernel sees 1 channels")
    g.case("XlaConv", ATTRS, [x, w, *REST[:4], np.array(0, np.int32)], [], error="groups")
    g.case("XlaConv", ATTRS.replace(NUM, "'\\072'"), [x, w, *REST], [], error="dimension numbers")
    g.case("XlaConv", ATTRS.replace(NUM, "''"), [x, w, *REST], [], error="spatial dimensions")


def dot_cases():
    for lt, rt, ot, tol in [("int8", "int8", "int32", None), ("int32", "int8", "int32", None),
                            ("float", "int8", "float", (2e-3, 1e-5, 0)), ("float", "float", "float", None),
                            ("bfloat16", "bfloat16", "float", None), ("double", "double", "double", None)]:
        dot(lt, rt, ot, numbers(lt, 5, 33), numbers(rt, 33, 18), [1], [0], tol=tol)
        dot(lt, rt, ot, numbers(lt, 33, 1), numbers(rt, 7, 33), [0], [1], tol=tol, packed=False)
        dot(lt, rt, ot, numbers(lt, 2, 3, 9), numbers(rt, 2, 9, 4), [2], [1], [0], [0], tol=tol)
        dot(lt, rt, ot, numbers(lt, 2, 3, 4, 5), numbers(rt, 5, 6, 3), [1, 3], [2, 0], tol=tol)
        dot(lt, rt, ot, numbers(lt, 3, 4), numbers(rt, 5, 2), [], [], tol=tol)
        dot(lt, rt, ot, numbers(lt, 2, 3, 4, 5), numbers(rt, 3, 5, 2, 6), [3], [1], [1, 0], [0, 2], tol=tol)
    for shapes in [((3, 4), (4, 5)), ((1, 9), (9, 2)), ((6, 1), (1, 3))]:
        dot("float", "float", "float", numbers("float", *shapes[0]), numbers("float", *shapes[1]), [1], [0], tol="v1")
    D = "T: float; precision_config: ''; dimension_numbers: "
    g.case("XlaDot", D + quoted(message({1: [1], 2: [0]})), [np.zeros((2, 3), f), np.zeros((4, 2), f)], [], error="contracting dimensions differ")
    g.case("XlaDot", D + quoted(message({1: [7], 2: [0]})), [np.zeros((2, 3), f), np.zeros((4, 2), f)], [], error="out of range")
    g.case("XlaDot", D + quoted(message({1: [1], 2: [0]})), [np.zeros((2, 0), f), np.zeros((0, 2), f)], [np.zeros((2, 2), f)],
           infer="[?,3] [3,?] -> [?,?]")


if __name__ == "__main__":
    conv_cases()
    dot_cases()
    g.save(__file__)
