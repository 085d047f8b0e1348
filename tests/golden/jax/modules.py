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


def loop_over_rows(x):
    """For vectors of any size: each step takes a slice with a start and sizes that are computed."""
    rows = jnp.stack([x, 2 * x, 3 * x])
    return lax.scan(lambda y, row: (y / 2 + row, None), jnp.zeros_like(x), rows)[0]


def matrix_of_any_size(x):
    """The call of LAPACK has the shapes of its results as further operands."""
    return jnp.linalg.cholesky(jnp.outer(x, x) + 4 * jnp.eye(x.shape[0])).sum(0)


OPEN = (loop_over_rows, matrix_of_any_size)
for function in (narrow_constants, platform_branches, *OPEN):
    shape = export.symbolic_shape("n") if function in OPEN else (3,)
    exported = export.export(jax.jit(function), platforms=("cpu", "tpu"))(jax.ShapeDtypeStruct(shape, jnp.float32))
    with open(os.path.join(FOLDER, function.__name__ + ".jaxexport"), "wb") as out:
        out.write(exported.serialize())
    values = np.asarray(jax.jit(function)(np.array([1, 2, 3], np.float32)))
    with open(os.path.join(FOLDER, function.__name__ + ".values"), "w") as out:
        out.write(" ".join(f"{value:g}" for value in values) + "\n")
