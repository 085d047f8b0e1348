"""Modules that JAX writes, for tests/cli/jax_values_test.sh: run with JAX (tests/judges/README.md). Writes
NAME.jaxexport and NAME.values, the elements of its first result for the argument [1, 2, 3] on a CPU, beside this script."""
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

FOLDER = os.path.dirname(os.path.abspath(__file__))


def narrow_constants(x):
    """Constants of 4-bit and 2-bit integers, whose upper bits are 0 in the file."""
    table = jnp.array([[-8, -1, 7], [3, -5, 0]], jnp.int4).astype(jnp.float32) @ x
    unsigned = jnp.array([15, 8, 1], jnp.uint4).astype(jnp.float32) * x
    pairs = jnp.array([-2, -1, 1], jnp.int2).astype(jnp.float32) * x
    same = jnp.full((3,), -3, jnp.int4).astype(jnp.float32)
    return jnp.concatenate([table, unsigned, pairs, same])


@jax.jit
def inner(x, weights):
    return lax.platform_dependent(x, cpu=lambda x: x @ weights + 1, tpu=lambda x: (x @ weights) * 2)


def platform_branches(x):
    """Branches by platform: in main, in a function that is called twice, and in another branch."""
    weights = jnp.arange(9, dtype=jnp.float32).reshape(3, 3)
    y = inner(inner(x, weights), weights[::-1])
    return lax.platform_dependent(y, cpu=lambda y: inner(y, weights), tpu=lambda y: y - 1)


def in_bfloat16(x):
    """A network that computes in bfloat16."""
    weights = (jnp.arange(9, dtype=jnp.bfloat16) % 4).reshape(3, 3)
    return (jax.nn.relu(x.astype(jnp.bfloat16) @ weights) @ weights.T).astype(jnp.float32)


def float8_weights(x):
    """Weights in float8 times scales, none of which has its largest code."""
    first = (jnp.arange(96).reshape(12, 8) % 23 - 11).astype(jnp.float8_e4m3fn)
    second = (jnp.arange(24).reshape(8, 3) % 5 - 2).astype(jnp.float8_e4m3fn)
    y = jax.nn.relu(jnp.tile(x, 4) @ (first.astype(jnp.float32) * (jnp.arange(1, 9) * 0.375)))
    return (y @ second.astype(jnp.float32)) * 0.25


def float8_stack(x):
    """Layers of a loop with weights in float8 times scales."""
    stack = (jnp.arange(48).reshape(3, 16) % 5 - 2).reshape(3, 4, 4).astype(jnp.float8_e4m3fn)
    scales = jnp.arange(1, 13, dtype=jnp.float32).reshape(3, 1, 4) / 8
    layer = lambda y, entry: (y + jax.nn.relu(y @ (entry[0].astype(jnp.float32) * entry[1])), None)
    return lax.scan(layer, jnp.concatenate([x, x[:1]])[None], (stack, scales))[0][0]


def integer_stack(x):
    """The same in integers, with zero points, and scales in bfloat16 of a transposed weight."""
    stack = (jnp.arange(48).reshape(3, 16) * 7 % 11).reshape(3, 4, 4).astype(jnp.int8)
    zeros = (jnp.arange(12).reshape(3, 4, 1) % 3 + 4).astype(jnp.int8)
    scales = 2.0 ** -(jnp.arange(12).reshape(3, 1, 4) % 4 + 2).astype(jnp.bfloat16)

    def layer(y, entry):
        codes, zero, scale = entry
        weight = (codes.astype(jnp.bfloat16) - zero.astype(jnp.bfloat16)).T * scale
        return y + jax.nn.relu(y @ weight.astype(jnp.float32)), None

    return lax.scan(layer, jnp.concatenate([x, x[:1]])[None], (stack, zeros, scales))[0][0]


def grouped_stack(x):
    """Layers of a loop with scales for groups of four inputs."""
    stack = (jnp.arange(96).reshape(3, 32) * 5 % 13 - 6).reshape(3, 8, 4).astype(jnp.int4)
    scales = 2.0 ** -(jnp.arange(24, dtype=jnp.float32).reshape(3, 2, 1, 4) % 5 + 2)

    def layer(y, entry):
        codes, scale = entry
        weight = (codes.astype(jnp.float32).reshape(2, 4, 4) * scale).reshape(8, 4)
        return y + jnp.concatenate([y, -y], 1) @ weight / 4, None

    return lax.scan(layer, jnp.concatenate([x, x[:1]])[None], (stack, scales))[0][0]


def float8_experts(x):
    """Rows with experts of their own, in float8 times scales."""
    rows = jnp.stack([x, x[::-1], 2 * x])
    stack = (jnp.arange(36).reshape(4, 9) % 5 - 2).reshape(4, 3, 3).astype(jnp.float8_e4m3fn)
    scales = jnp.arange(1, 13, dtype=jnp.float32).reshape(4, 1, 3) / 8
    expert = rows[:, 0].astype(jnp.int32)
    return jnp.einsum("ri,rij->rj", rows, stack[expert].astype(jnp.float32) * scales[expert]).sum(0)


def integer_products(x):
    """A product of integers, as qwix writes them."""
    step = jnp.abs(x).max() / 127
    weights = (jnp.arange(9).reshape(3, 3) * 7 % 11 - 5).astype(jnp.int8)
    codes = jnp.round(x / step).astype(jnp.int8)
    return lax.dot(codes, weights, preferred_element_type=jnp.int32).astype(jnp.float32) * step


def trained_weights(x):
    """Weights as quantization-aware training leaves them in a module: rounded there, by their largest values."""
    weights = jnp.sin(jnp.arange(192, dtype=jnp.float32)).reshape(12, 16)
    step = jnp.abs(weights).max(0) / 127
    rounded = weights + lax.stop_gradient(jnp.clip(jnp.round(weights / step), -127, 127) * step - weights)
    return jnp.floor((jnp.tile(x, 4) @ rounded)[:3] * 16)


def extremes(x):
    """Of rows with NaN in the first, in the second or in none."""
    rows = jnp.stack([x.at[0].set(jnp.nan), x.at[1].set(jnp.nan) * 2, x[::-1]])
    results = jnp.concatenate([rows.max(0), rows.min(0), rows.min(1), jnp.abs(rows[2:]).max(keepdims=True)[0]])
    return jnp.where(jnp.isnan(results), -1, results)


def loop_over_rows(x):
    """For vectors of any size: each step takes a slice with a start and sizes that are computed."""
    rows = jnp.stack([x, 2 * x, 3 * x])
    return lax.scan(lambda y, row: (y / 2 + row, None), jnp.zeros_like(x), rows)[0]


def rolled_in_a_loop(x):
    """For vectors of any size: the body calls functions of the size, also in branches and in a loop of its own."""
    inner = lambda i, y: jnp.roll(y, 1) + jnp.broadcast_to(i.astype(jnp.float32), y.shape)
    step = lambda i, y: lax.cond(y[0] > 4, lambda y: jnp.roll(y, -1) - jnp.ones(y.shape), lambda y: lax.fori_loop(0, 2, inner, y), y)
    return lax.fori_loop(0, 4, step, x)


def matrix_of_any_size(x):
    """The call of LAPACK has the shapes of its results as further operands."""
    return jnp.linalg.cholesky(jnp.outer(x, x) + 4 * jnp.eye(x.shape[0])).sum(0)


def platform_kernel(x):
    """What a TPU runs is a kernel of somebody's own."""
    kernel = jax.ffi.ffi_call("kernel_of_somebody", jax.ShapeDtypeStruct(x.shape, x.dtype))
    return lax.platform_dependent(x, cpu=lambda x: 2 * x, tpu=kernel)


def decompositions(x):
    """Calls of LAPACK on a CPU; other calls, or none, on a TPU. Signs of vectors are not defined."""
    matrix = jnp.outer(x, x[::-1]) + jnp.diag(x + 4) + jnp.eye(3, k=1)
    symmetric = matrix @ matrix.T
    q, r = jnp.linalg.qr(matrix)
    values, vectors = jnp.linalg.eigh(symmetric)
    u, s, vt = jnp.linalg.svd(matrix, full_matrices=False)
    parts = [jnp.abs(q), jnp.abs(r), values, jnp.abs(vectors), s, (u * s) @ vt, jnp.linalg.solve(matrix, x),
             jnp.linalg.inv(symmetric), jnp.linalg.det(matrix), jnp.linalg.cholesky(symmetric)]
    return jnp.concatenate([part.ravel() for part in parts])


def calls_of_any_batch(x):
    """The call of a TPU has results of open shapes."""
    return jnp.abs(jnp.linalg.qr(x[:, None, None] + jnp.eye(2))[1]).sum((1, 2))


def ops_of_xla(x):
    """Ops without a TensorFlow op of the same semantics, which `tare export` writes back."""
    matrix = jnp.outer(x, x) + 4 * jnp.eye(3)
    table = jnp.arange(24, dtype=jnp.float32).reshape(4, 6) * x[0]
    index = x.astype(jnp.int32)
    root = jnp.linalg.cholesky(matrix, upper=True)
    pooled = jax.grad(lambda y: lax.reduce_window(y, -jnp.inf, lax.max, (2, 3), (1, 2), "SAME").sum())(table)
    middle = lax.reduce_window(table, 4.0, lambda a, b: jnp.maximum(jnp.abs(a), jnp.abs(b)), (2, 2), (2, 2), ((0, 0), (1, 1)))
    parts = [
        lax.dynamic_slice(table, (index[0], index[1]), (2, 3)),
        lax.dynamic_update_slice(table, matrix[:2], (index[1], 9)),
        lax.pad(x, 7.0, [(1, -1, 2)]),
        table[index, index[::-1]],
        table.at[index].add(2.0),
        table.at[:, index].max(5.0),
        lax.reduce(table, (0.0), lambda a, b: jnp.maximum(jnp.abs(a), jnp.abs(b)), (1,)),
        pooled,
        middle,
        jnp.sort(-table, axis=0),
        jnp.argsort(jnp.sin(table), axis=1),
        lax.top_k(jnp.cos(table), 2)[0],
        lax.top_k(jnp.cos(table), 2)[1],
        jnp.cumsum(table, axis=1),
        lax.cumprod(table / 9 + 1, axis=0, reverse=True),
        lax.reduce_precision(x / 3, 5, 3),
        lax.bitcast_convert_type(x, jnp.int32) >> 20,
        lax.population_count(index * 37),
        jnp.abs(jnp.fft.rfft(table)),
        jnp.fft.irfft(jnp.fft.fft(table)[:, :4]),
        jnp.real(jnp.conj(jnp.exp(1j * table[0]))),
        root,
        lax.linalg.triangular_solve(jnp.tril(matrix), table[:3], left_side=True, lower=True, transpose_a=True),
        lax.switch(index[0], [lambda y: y, lambda y: y * y, lambda y: -y], x),
        jax.random.bits(jax.random.key(5, impl="rbg"), (3,)) >> 20,
        jnp.isinf(1 / (x - 1)),
        jnp.arctan(x),
        jnp.arctan2(x, x[::-1]),
        jax.scipy.special.erfinv(x / 4),
        jax.scipy.special.gammaln(x + 0.5),
    ]
    return jnp.concatenate([part.ravel().astype(jnp.float32) for part in parts])


def asked_precision(x):
    """Two products, of which one asks for more than the default, one pass of bfloat16 on a TPU."""
    weights = jnp.arange(9, dtype=jnp.float32).reshape(3, 3)
    return jnp.tanh(jnp.dot(x, weights, precision="highest")) @ weights[::-1]


def named_layers(x):
    """Layers with the names of their modules, one of them in a loop."""
    weights = jnp.arange(12, dtype=jnp.float32).reshape(3, 4) / 4

    def step(y, _):
        with jax.named_scope("decoder"):
            return jax.nn.relu(y @ weights) @ weights.T / 8, None

    with jax.named_scope("encoder"):
        y = lax.scan(step, x[None], None, length=2)[0]
    with jax.named_scope("head"):
        return (y @ weights)[0]


def of_a_tree(weights, batch):
    """Arguments in dictionaries, two of which it does not use."""
    return batch["x"] @ weights["dense"]["kernel"]


OPEN = (loop_over_rows, rolled_in_a_loop, matrix_of_any_size, calls_of_any_batch)
for function in (narrow_constants, in_bfloat16, float8_weights, float8_stack, integer_stack, grouped_stack, float8_experts, integer_products, trained_weights, extremes, platform_branches, platform_kernel, decompositions, ops_of_xla, asked_precision, named_layers, *OPEN):
    shape = export.symbolic_shape("n") if function in OPEN else (3,)
    platforms = ("tpu",) if function is ops_of_xla else ("cpu", "tpu")  # on a CPU JAX calls LAPACK
    allowed = [export.DisabledSafetyCheck.custom_call("kernel_of_somebody")]
    exported = export.export(jax.jit(function), platforms=platforms, disabled_checks=allowed)(jax.ShapeDtypeStruct(shape, jnp.float32))
    with open(os.path.join(FOLDER, function.__name__ + ".jaxexport"), "wb") as out:
        out.write(exported.serialize())
    values = np.asarray(jax.jit(function)(np.array([1, 2, 3], np.float32)))
    with open(os.path.join(FOLDER, function.__name__ + ".values"), "w") as out:
        out.write(" ".join(f"{value:g}" for value in values) + "\n")
float32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
exported = export.export(jax.jit(of_a_tree))({"dense": {"kernel": float32(4, 4), "bias": float32(4)}}, {"x": float32(2, 4), "mask": float32(2)})
with open(os.path.join(FOLDER, "of_a_tree.jaxexport"), "wb") as out:
    out.write(exported.serialize())
