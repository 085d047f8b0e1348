"""Goldens by numpy of the families concat, split, tile, pad, gather, scatter and space_depth, space_batch: one file each."""
import os

import numpy as np

from golden import Golden, T

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(13)
i32, i64 = np.int32, np.int64


def save(golden, family):
    golden.save(os.path.join(HERE, family + ".py"))


# ---- concat, split ----
g = Golden()
for axis in (0, 1, 2, -1, -3):
    parts = []
    for n in (2, 3, 1):
        shape = [3, 4, 2]
        shape[axis] = n
        parts.append(rng.standard_normal(shape).astype(np.float32))
    g.case("ConcatV2", "N: 3; T: float", parts + [i32(axis)], [np.concatenate(parts, axis)])
    g.case("Concat", "N: 3; T: float", [i32(axis)] + parts, [np.concatenate(parts, axis)])
    x = [rng.integers(0, 99, (2, 3, 2)).astype(np.int16) for _ in range(3)]
    for a in (axis,) if axis >= 0 else (axis, -4):
        g.case("Pack", f"N: 3; T: int16; axis: {a}", x, [np.stack(x, a)])
s = [np.array([[b"a"], [b"b"]], dtype=object), np.array([[b"c", b"dd"], [b"", b"f"]], dtype=object)]
g.case("ConcatV2", "N: 2; T: string; Tidx: int64", s + [i64(1)], [np.concatenate(s, 1)])
e = [np.zeros((0, 2), np.float32), np.ones((3, 2), np.float32)]
g.case("ConcatV2", "N: 2; T: float", e + [i32(0)], [np.concatenate(e, 0)])
save(g, "concat")

g = Golden()
x = rng.standard_normal((4, 6, 2)).astype(np.float32)
for axis, n in ((0, 2), (1, 3), (1, 6), (-1, 2), (2, 1), (-3, 4)):
    g.case("Split", f"num_split: {n}; T: float", [i32(axis), x], np.split(x, n, axis))
for axis, sizes in ((0, [1, 3]), (1, [2, 0, 4]), (-2, [1, -1, 2]), (0, [4])):
    full = [x.shape[axis] - sum(v for v in sizes if v > 0) if v < 0 else v for v in sizes]
    want = np.split(x, np.cumsum(full)[:-1], axis)
    g.case("SplitV", f"num_split: {len(sizes)}; T: float; Tlen: int64", [x, np.array(sizes, i64), i32(axis)], want)
g.case("SplitV", "num_split: 2; T: float; Tlen: int8", [x, np.array([1, 5], np.int8), i32(1)], np.split(x, [1], 1))
for axis in (0, 1, -1):
    g.case("Unpack", f"num: {x.shape[axis]}; T: float; axis: {axis}", [x], list(np.moveaxis(x, axis, 0)))
save(g, "split")

# ---- tile ----
g = Golden()
x = rng.integers(0, 9, (2, 3)).astype(np.int32)
for m in ((1, 1), (2, 1), (1, 3), (3, 2), (0, 2)):
    g.case("Tile", "T: int32", [x, np.array(m, i32)], [np.tile(x, m)])
y = rng.standard_normal((2, 1, 3)).astype(np.float64)
g.case("Tile", "T: double; Tmultiples: int64", [y, np.array([2, 4, 2], i64)], [np.tile(y, (2, 4, 2))])
s = np.array([b"x", b"yz"], dtype=object)
g.case("Tile", "T: string", [s, np.array([2], i32)], [np.tile(s, 2)])
for shape, to in (((3,), (2, 3)), ((2, 1), (2, 4)), ((), (2, 2)), ((1, 3, 1), (5, 2, 3, 4)), ((2, 3), (2, 3)), ((1,), (0,))):
    v = rng.standard_normal(shape).astype(np.float32)
    g.case("BroadcastTo", "T: float", [v, np.array(to, i32)], [np.broadcast_to(v, to)])
save(g, "tile")

# ---- pad ----
g = Golden()
x = rng.integers(1, 99, (3, 4, 2)).astype(np.int32)
for p in ([[0, 0], [0, 0], [0, 0]], [[1, 2], [0, 0], [0, 0]], [[0, 0], [2, 1], [0, 0]], [[1, 0], [0, 3], [2, 1]],
          [[0, 0], [0, 0], [1, 1]]):
    g.case("Pad", "T: int32", [x, np.array(p, i32)], [np.pad(x, p)])
    g.case("PadV2", "T: int32; Tpaddings: int64", [x, np.array(p, i64), i32(-7)], [np.pad(x, p, constant_values=-7)])
for mode, name in (("REFLECT", "reflect"), ("SYMMETRIC", "symmetric")):
    for p in ([[2, 2], [3, 0], [0, 1]], [[0, 0], [1, 2], [1, 0]], [[1, 1], [1, 1], [1, 1]], [[0, 0], [0, 0], [0, 0]]):
        g.case("MirrorPad", f"T: int32; mode: '{mode}'", [x, np.array(p, i32)], [np.pad(x, p, name)])
    s = np.array([b"a", b"b", b"c"], dtype=object)
    g.case("MirrorPad", f"T: string; mode: '{mode}'", [s, np.array([[2, 1]], i32)], [np.pad(s, [[2, 1]], name)])
h = rng.standard_normal((2, 3)).astype(np.float16)
g.case("PadV2", "T: half", [h, np.array([[1, 1], [2, 0]], i32), np.float16(-np.inf)],
       [np.pad(h, [[1, 1], [2, 0]], constant_values=-np.inf)])
s = np.array([b"a", b"b"], dtype=object)
g.case("PadV2", "T: string", [s, np.array([[1, 2]], i32), np.array(b"pad", dtype=object)],
       [np.array([b"pad", b"a", b"b", b"pad", b"pad"], dtype=object)])
g.case("Pad", "T: float", [np.zeros((0, 2), np.float32), np.array([[1, 1], [0, 1]], i32)], [np.zeros((2, 3), np.float32)])
save(g, "pad")

# ---- gather ----
g = Golden()


def gather(params, indices, axis, batch):
    if batch == 0:
        return np.take(params, indices, axis)
    return np.stack([gather(p, i, axis - 1, batch - 1) for p, i in zip(params, indices)])


p = rng.standard_normal((3, 2, 4, 5)).astype(np.float32)
for axis, batch, shape in ((0, 0, (4,)), (2, 0, (2, 3)), (3, 0, ()), (1, 1, (3, 2)), (2, 1, (3, 4)), (3, 1, (3,)),
                           (2, 2, (3, 2, 3)), (3, 2, (3, 2)), (1, 0, (0,)), (-1, 0, (2,))):
    i = rng.integers(0, p.shape[axis], shape).astype(i32)
    g.case("GatherV2", f"Tparams: float; Tindices: int32; Taxis: int32; batch_dims: {batch}", [p, i, i32(axis)],
           [gather(p, i, axis % 4, batch)])
i = np.array([[2, 0], [1, 1], [0, 2]], np.int64)
q = rng.integers(0, 99, (3, 3, 2)).astype(np.int8)
g.case("GatherV2", "Tparams: int8; Tindices: int64; Taxis: int64; batch_dims: -1", [q, i, i64(1)], [gather(q, i, 1, 1)])
g.case("GatherV2", "Tparams: int8; Tindices: int16; Taxis: int32", [q, i.astype(np.int16), i32(0)], [np.take(q, i, 0)])
s = np.array([b"zero", b"one", b"two"], dtype=object)
g.case("GatherV2", "Tparams: string; Tindices: int32; Taxis: int32", [s, np.array([2, 2, 0], i32), i32(0)], [s[[2, 2, 0]]])
for shape in ((), (2,), (2, 2)):
    i = rng.integers(0, 3, shape).astype(i32)
    g.case("Gather", "Tparams: float; Tindices: int32", [p, i], [p[i]])
for shape in ((4, 1), (2, 3, 2), (3,), (5, 4), (2, 0)):
    depth = shape[-1]
    i = np.stack([rng.integers(0, p.shape[d], shape[:-1]) for d in range(depth)], -1) if depth else np.zeros(shape)
    want = p[tuple(np.moveaxis(i, -1, 0).astype(int))] if depth else np.stack([p] * shape[0])
    g.case("GatherNd", "Tparams: float; Tindices: int32", [p, i.astype(i32)], [want])
save(g, "gather")

# ---- scatter ----
g = Golden()
kinds = {"Add": np.add, "Sub": np.subtract, "Max": np.maximum, "Min": np.minimum}
for dtype in (np.float32, np.int32, np.uint8, np.int64, np.float64):
    for shape, index in (((6,), (5, 1)), ((4, 3), (6, 1)), ((4, 3, 2), (2, 3, 2))):
        base = rng.integers(0, 60, shape).astype(dtype)
        depth = index[-1]
        i = np.stack([rng.integers(0, shape[d], index[:-1]) for d in range(depth)], -1)
        u = rng.integers(0, 60, index[:-1] + shape[depth:]).astype(dtype)
        at = tuple(np.moveaxis(i, -1, 0))
        name = T.of(base).dtype
        for op, ufunc in kinds.items():
            want = base.copy()
            ufunc.at(want, at, u)
            g.case("TensorScatter" + op, f"T: {name}; Tindices: int32", [base, i.astype(i32), u], [want])
        want = base.copy()
        for where in np.ndindex(*index[:-1]):
            want[tuple(i[where])] = u[where]
        g.case("TensorScatterUpdate", f"T: {name}; Tindices: int64", [base, i.astype(i64), u], [want])
        want = np.zeros(shape, dtype)
        np.add.at(want, at, u)
        g.case("ScatterNd", f"T: {name}; Tindices: int32", [i.astype(i32), u, np.array(shape, i32)], [want])
save(g, "scatter")

# ---- space and depth, space and batch ----
g = Golden()


def space_to_depth(x, k):
    b, h, w, c = x.shape
    return x.reshape(b, h // k, k, w // k, k, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, h // k, w // k, k * k * c)


for k, shape, dtype in ((2, (1, 4, 6, 3), np.float32), (3, (2, 3, 6, 1), np.int8), (2, (2, 2, 2, 2), np.int64)):
    x = rng.integers(0, 99, shape).astype(dtype)
    y = space_to_depth(x, k)
    name = T.of(x).dtype
    nchw = lambda v: np.ascontiguousarray(v.transpose(0, 3, 1, 2))
    g.case("SpaceToDepth", f"T: {name}; block_size: {k}", [x], [y])
    g.case("DepthToSpace", f"T: {name}; block_size: {k}", [y], [x])
    g.case("SpaceToDepth", f"T: {name}; block_size: {k}; data_format: 'NCHW'", [nchw(x)], [nchw(y)])
    g.case("DepthToSpace", f"T: {name}; block_size: {k}; data_format: 'NCHW'", [nchw(y)], [nchw(x)])
save(g, "space_depth")

g = Golden()


def space_to_batch(x, block, pads):
    m = len(block)
    x = np.pad(x, [[0, 0]] + list(pads) + [[0, 0]] * (x.ndim - 1 - m))
    shape = [x.shape[0]]
    for d, k in enumerate(block):
        shape += [x.shape[d + 1] // k, k]
    x = x.reshape(shape + list(x.shape[m + 1:]))
    order = [2 * d + 2 for d in range(m)] + [0] + [2 * d + 1 for d in range(m)] + list(range(2 * m + 1, x.ndim))
    x = x.transpose(order)
    return x.reshape((-1,) + x.shape[m + 1:])


for shape, block, pads in (((2, 4, 6, 3), (2, 3), [[0, 0], [0, 0]]), ((1, 3, 5, 1), (2, 2), [[1, 0], [0, 1]]),
                           ((3, 5, 2), (3,), [[2, 2]]), ((2, 2, 3, 4), (1, 3, 2), [[0, 0], [3, 0], [0, 2]]),
                           ((1, 2, 2, 2), (), []), ((1, 1, 1), (4,), [[3, 0]])):
    x = rng.integers(1, 99, shape).astype(np.float32)
    y = space_to_batch(x, block, pads)
    blocks, edges = np.array(block, i32).reshape(-1), np.array(pads, i32).reshape(-1, 2)
    g.case("SpaceToBatchND", "T: float", [x, blocks, edges], [y])
    g.case("BatchToSpaceND", "T: float; Tcrops: int64", [y, blocks, edges.astype(i64)], [x])
for shape, k, pads in (((1, 4, 4, 2), 2, [[0, 0], [0, 0]]), ((2, 3, 4, 1), 3, [[0, 0], [1, 1]]), ((1, 2, 5, 1), 4, [[2, 0], [1, 2]])):
    x = rng.integers(1, 99, shape).astype(np.int32)
    y = space_to_batch(x, (k, k), pads)
    g.case("SpaceToBatch", f"T: int32; block_size: {k}", [x, np.array(pads, i32)], [y])
    g.case("BatchToSpace", f"T: int32; block_size: {k}", [y, np.array(pads, i32)], [x])
save(g, "space_batch")
