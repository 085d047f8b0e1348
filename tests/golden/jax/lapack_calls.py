"""Modules with the LAPACK and BLAS calls of old versions of JAX, for tests/cli/jax_values_test.sh: run with JAX 0.4.30
(pip install jax==0.4.30 jaxlib==0.4.30 "numpy<2" "scipy<1.13" "ml_dtypes<0.5" flatbuffers absl-py). Writes
lapack_PRECISION.jaxexport and .values like modules.py: products of the factors, and what does not depend on their signs,
in thousandths."""
import os

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import export, lax

FOLDER = os.path.dirname(os.path.abspath(__file__))
jax.config.update("jax_enable_x64", True)
TARGETS = [f"{prefix}{letter}{name}" for letter in "sdcz" for prefix, name in
           [("lapack_", name) for name in ("gehrd", "sytrd", "hetrd", "geev", "gees", "getrf", "geqrf", "orgqr", "ungqr",
                                           "gesdd", "syevd", "heevd", "potrf")] + [("blas_", "trsm")]]


def adjoint(a):
    return jnp.swapaxes(a, -1, -2).conj()


def triangular(x, a):
    """Solutions for both sides, triangles, transposed forms and diagonals."""
    forms = [(left, lower, transpose, conjugate, unit) for left in (True, False) for lower in (True, False)
             for transpose, conjugate in ((False, False), (True, False), (True, True)) for unit in (True, False)]
    for left, lower, transpose, conjugate, unit in forms:
        b = x if left else adjoint(x)
        yield lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate,
                                          unit_diagonal=unit)


def results(a, tall):
    """a [2, 3, 3], tall [2, 4, 3]."""
    both = a @ adjoint(a) + 3 * jnp.eye(3, dtype=a.dtype)
    yield lax.linalg.cholesky(both)
    yield lax.linalg.cholesky(jnp.conj(both), symmetrize_input=False)
    yield jnp.linalg.solve(a, tall[:, :3])
    for full in (True, False):
        q, r = lax.linalg.qr(tall, full_matrices=full)
        yield q @ r
        q, r = lax.linalg.qr(adjoint(tall), full_matrices=full)
        yield q @ r
    for matrix in (tall, adjoint(tall)):
        u, s, v = jnp.linalg.svd(matrix, full_matrices=False)
        yield (u * s[:, None].astype(u.dtype)) @ v
        u, s, v = jnp.linalg.svd(matrix)
        yield (u[:, :, :3] * s[:, None].astype(u.dtype))[:, :, :3] @ v[:, :3]
        yield jnp.linalg.svd(matrix, compute_uv=False)
    for lower in (True, False):
        v, w = lax.linalg.eigh(both, lower=lower, symmetrize_input=False)
        yield w
        yield (v * w[:, None].astype(v.dtype)) @ adjoint(v)
    w, left, right = lax.linalg.eig(a)
    yield jnp.sum(w, -1)
    yield right * w[:, None] - a.astype(w.dtype) @ right
    yield adjoint(left) * w[:, :, None] - adjoint(left) @ a.astype(w.dtype)
    w = lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
    yield jnp.sum(w * w, -1)
    t, z = lax.linalg.schur(a)
    yield z @ t @ adjoint(z)
    h, taus = lax.linalg.hessenberg(a)
    q = lax.linalg.householder_product(jnp.tril(h, -2)[:, 1:, :2] + jnp.eye(2, dtype=a.dtype), taus)
    yield jnp.abs(q)
    yield jnp.abs(jnp.triu(h, -1))
    for lower in (True, False):
        _, d, e, _ = lax.linalg.tridiagonal(both, lower=lower)
        yield d
        yield jnp.abs(e)
    yield from triangular(tall[:, :3], a)


def module(dtype):
    def function(x):
        numbers = jnp.arange(42) * 0.37 + x[0]
        numbers = jnp.sin(numbers * numbers)
        if np.issubdtype(dtype, np.complexfloating):
            numbers = numbers + 1j * jnp.cos(jnp.arange(42) * x[1])
        a = numbers[:18].reshape(2, 3, 3).astype(dtype) + x[2] * jnp.eye(3, dtype=dtype)
        tall = numbers[18:].reshape(2, 4, 3).astype(dtype)
        flat = jnp.concatenate([value.ravel().astype(jnp.complex128) for value in results(a, tall)])
        return jnp.round(1000 * jnp.concatenate([flat.real, flat.imag])).astype(jnp.int32)
    return function


for letter, dtype in (("s", np.float32), ("d", np.float64), ("c", np.complex64), ("z", np.complex128)):
    function = jax.jit(module(dtype))
    exported = export.export(function, platforms=("cpu",),
                             disabled_checks=[export.DisabledSafetyCheck.custom_call(target) for target in TARGETS])
    name = os.path.join(FOLDER, "lapack_" + letter)
    with open(name + ".jaxexport", "wb") as out:
        out.write(exported(jax.ShapeDtypeStruct((3,), jnp.float32)).serialize())
    with open(name + ".values", "w") as out:
        out.write(" ".join(map(str, np.asarray(function(np.array([1, 2, 3], np.float32))))) + "\n")
