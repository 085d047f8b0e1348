"""XLA's general gather by its definition, element by element, and numpy's indexing where the two mean the same."""
import numpy as np

from golden import Golden

g = Golden()
rng = np.random.default_rng(62)


def packed(number, values):
    body = bytes(values)
    return bytes([number << 3 | 2, len(body)]) + body if values else b""


def quoted(data):
    return "'" + "".join(f"\\{b:03o}" for b in data) + "'"


def numbers(offset, collapsed, index_map, vector, batching=(), index_batching=()):
    data = packed(1, offset) + packed(2, collapsed) + packed(3, index_map)
    data += bytes([4 << 3, vector]) if vector else b""
    return quoted(data + packed(5, batching) + packed(6, index_batching))


def gather(x, indices, sizes, offset, collapsed, index_map, vector, batching=(), index_batching=()):
    full = indices if vector < indices.ndim else indices[..., None]
    batch_shape = [n for d, n in enumerate(full.shape) if d != vector]
    dropped = [*collapsed, *batching]
    kept = [n for d, n in enumerate(sizes) if d not in dropped]
    rank = len(batch_shape) + len(offset)
    batch_dims = [d for d in range(rank) if d not in offset]
    shape = [0] * rank
    for d, n in zip(batch_dims, batch_shape):
        shape[d] = n
    for d, n in zip(offset, kept):
        shape[d] = n
    y = np.zeros(shape, x.dtype)
    for at in np.ndindex(*shape):
        batch = [at[d] for d in batch_dims]
        start = [0] * x.ndim
        for k, d in enumerate(index_map):
            place = batch[:vector] + [k] + batch[vector:]
            start[d] = int(np.clip(full[tuple(place)], 0, x.shape[d] - sizes[d]))
        for d, i in zip(batching, index_batching):
            start[d] = (batch[:vector] + [0] + batch[vector:])[i]
        inside = iter(at[d] for d in offset)
        y[at] = x[tuple(start[d] + (0 if d in dropped else next(inside)) for d in range(x.ndim))]
    return y


def case(x, indices, sizes, offset, collapsed, index_map, vector, name="float", index=np.int32, batching=((), ())):
    y = gather(x, indices, sizes, offset, collapsed, index_map, vector, *batching)
    label = "int32" if index is np.int32 else "int64"
    g.case("XlaGather", f"T: {name}; Tindices: {label}; dimension_numbers: {numbers(offset, collapsed, index_map, vector, *batching)}; "
           "indices_are_sorted: false", [x, indices.astype(index), np.array(sizes, index)], [y])
    return y


x = rng.normal(size=(4, 5, 6)).astype(np.float32)
rows = rng.integers(0, 4, size=3)
assert np.array_equal(case(x, rows[:, None], (1, 5, 6), [1, 2], [0], [0], 1), x[rows])
assert np.array_equal(case(x, rows, (1, 5, 6), [1, 2], [0], [0], 1), x[rows])  # no dim for the vector
pairs = np.stack([rng.integers(0, 4, size=(2, 3)), rng.integers(0, 5, size=(2, 3))], -1)
assert np.array_equal(case(x, pairs, (1, 1, 6), [2], [0, 1], [0, 1], 2, index=np.int64), x[pairs[..., 0], pairs[..., 1]])
case(x, np.moveaxis(pairs, -1, 0), (1, 1, 6), [0], [0, 1], [0, 1], 0)
case(x, np.moveaxis(pairs, -1, 1), (1, 1, 6), [1], [0, 1], [1, 0], 1)
case(x, rng.integers(-3, 9, size=(3, 2)), (2, 3, 6), [1, 2, 3], [], [0, 1], 1)  # starts moved inside
case(x, rng.integers(0, 3, size=(2, 3)), (2, 2, 2), [0, 2, 3], [], [2, 0, 1], 1)
case(x, np.array([1, 2, 3]), (1, 1, 1), [], [0, 1, 2], [0, 1, 2], 0)
case(x, np.zeros((0, 1), np.int64), (1, 5, 6), [1, 2], [0], [0], 1)
case((x * 10).astype(np.int32), rows[:, None], (1, 5, 2), [0, 1], [0], [2], 1, "int32")
case(x > 0, rows[:, None], (1, 5, 6), [0, 2], [0], [0], 1, "bool")
# As jax.vmap writes them: each row of the operand has its own indices.
own = rng.integers(-1, 6, size=(4, 3, 1))
assert np.array_equal(case(x[:, :, 0], own, (1, 1), [], [1], [1], 2, batching=([0], [0])),
                      np.take_along_axis(x[:, :, 0], np.clip(own[..., 0], 0, 4), 1))
case(x, np.moveaxis(own, 0, 1), (1, 2, 6), [1, 3], [], [1], 2, index=np.int64, batching=([0], [1]))
case(x, rng.integers(0, 5, size=(6, 1, 2, 4)), (1, 2, 1), [1], [], [1], 1, batching=([2, 0], [0, 3]))
case(x, rng.integers(0, 5, size=(6, 4)), (1, 1, 1), [], [1], [1], 2, batching=([0, 2], [1, 0]))
f = "T: float; Tindices: int32; indices_are_sorted: false; dimension_numbers: "
i = np.int32
g.case("XlaGather", f + numbers([1, 2], [0], [0], 1), [x, np.zeros((3, 1), i), np.array([1, 9, 6], i)], [], error="a slice of 9")
g.case("XlaGather", f + numbers([1], [0], [0], 1), [x, np.zeros((3, 1), i), np.array([1, 5, 6], i)], [], error="offset_dims for slices of 2")
g.case("XlaGather", f + numbers([1, 2], [0], [0], 5), [x, np.zeros((3, 1), i), np.array([1, 5, 6], i)], [], error="index_vector_dim is 5")
g.case("XlaGather", f + numbers([1, 2], [0], [0, 1], 1), [x, np.zeros((3, 1), i), np.array([1, 5, 6], i)], [], error="vectors of 1 indices")
batched = f + numbers([1, 2], [], [1], 2, [0], [0])
g.case("XlaGather", batched, [x, np.zeros((3, 2, 1), i), np.array([1, 5, 6], i)], [], error="batching dimensions differ (4 and 3)")
g.case("XlaGather", batched, [x, np.zeros((4, 2, 1), i), np.array([2, 5, 6], i)], [], error="a slice of 2")
g.case("XlaGather", f + numbers([1, 2], [], [1], 2, [0], [2]), [x, np.zeros((4, 2, 1), i), np.array([1, 5, 6], i)], [], error="contains index_vector_dim")
g.case("XlaGather", f + numbers([1, 2], [], [1], 2, [0]), [x, np.zeros((4, 2, 1), i), np.array([1, 5, 6], i)], [], error="1 operand_batching_dims and 0")
g.save(__file__)
