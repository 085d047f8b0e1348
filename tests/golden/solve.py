"""Determinants and linear systems against numpy (LAPACK) in complex double."""
import numpy as np

from golden import Golden

g = Golden()
rng = np.random.default_rng(77)
LOOSE = {"double": (1e-12, 1e-11, 0), "float": (2e-6, 4e-6, 0), "complex128": (1e-12, 1e-11, 0),
         "complex64": (2e-6, 4e-6, 0), "half": (2e-3, 2e-3, 0)}
KINDS = {"double": np.float64, "float": np.float32, "complex128": np.complex128, "complex64": np.complex64,
         "half": np.float16}


def draw(name, *shape, diagonal=0.0):
    x = rng.normal(size=shape)
    if name.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    if diagonal:
        x = x + diagonal * np.eye(shape[-2], shape[-1])
    return x.astype(KINDS[name])


def to(name, y):
    y = np.asarray(y)
    return (y if name.startswith("complex") else y.real).astype(KINDS[name])


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def wide(a):
    return a.astype(np.complex128)


def least_squares_tolerance(name, w, y):
    """Errors of QR decompositions grow with the condition of the matrix (Golub and Van Loan, Matrix Computations, 5.3);
    which ones a library makes depends on the processor."""
    absolute, relative, ulps = LOOSE[name]
    if name == "half":  # computed in float
        return LOOSE[name]
    return max(absolute, 4 * np.finfo(KINDS[name]).eps * np.linalg.cond(w).max() * np.abs(y).max()), relative, ulps


for name in KINDS:
    tolerance = LOOSE[name]
    for shape in [(1, 1), (3, 3), (2, 4, 4), (0, 0), (2, 0, 0), (0, 2, 2)]:
        a = draw(name, *shape, diagonal=1.0)
        g.case("MatrixDeterminant", f"T: {name}", [a], [to(name, np.linalg.det(wide(a)))], tolerance)
        sign, size = np.linalg.slogdet(wide(a))
        g.case("LogMatrixDeterminant", f"T: {name}", [a], [to(name, sign), to(name, size)], tolerance)
        if name != "half":
            g.case("BatchMatrixDeterminant", f"T: {name}", [a], [to(name, np.linalg.det(wide(a)))], tolerance)
    for batch, n, k in [((), 1, 1), ((), 4, 3), ((2,), 3, 2), ((2, 1), 5, 1), ((), 3, 0), ((0,), 2, 2)]:
        a, b = draw(name, *batch, n, n, diagonal=4.0), draw(name, *batch, n, k)
        for flag in (False, True):
            attrs = f"T: {name}; adjoint: {str(flag).lower()}"
            y = np.linalg.solve(adjoint(wide(a)) if flag else wide(a), wide(b))
            g.case("MatrixSolve", attrs, [a, b], [to(name, y)], tolerance)
            if name in ("double", "float"):
                g.case("BatchMatrixSolve", attrs, [a, b], [to(name, y)], tolerance)
            for lower in (False, True):
                triangle = np.tril(wide(a)) if lower else np.triu(wide(a))
                y = np.linalg.solve(adjoint(triangle) if flag else triangle, wide(b))
                more = attrs + f"; lower: {str(lower).lower()}"
                g.case("MatrixTriangularSolve", more, [a, b], [to(name, y)], tolerance)
                if name in ("double", "float"):
                    g.case("BatchMatrixTriangularSolve", more, [a, b], [to(name, y)], tolerance)
    # one matrix for many right sides, and the other way round
    for left, right in [((), (2,)), ((2,), ()), ((3, 1), (2,))]:
        a, b = np.tril(draw(name, *left, 3, 3, diagonal=4.0)), draw(name, *right, 3, 2)
        g.case("MatrixTriangularSolve", f"T: {name}", [a, b], [to(name, np.linalg.inv(wide(a)) @ wide(b))], tolerance)
    # diagonals in rows
    for bands, n in [(1, 3), (2, 4), (3, 3)]:
        for lower in (False, True):
            for flag in (False, True):
                held, full = draw(name, 2, bands, n), np.zeros((2, n, n), np.complex128)
                held[:, 0 if lower else bands - 1] += 3
                for d in range(bands):
                    off = d if lower else bands - 1 - d
                    for j in range(n):
                        column = j - off if lower else j + off
                        if 0 <= column < n:
                            full[:, j, column] = held[:, d, j]
                b = draw(name, 2, n, 2)
                y = np.linalg.solve(adjoint(full) if flag else full, wide(b))
                g.case("BandedTriangularSolve", f"T: {name}; lower: {str(lower).lower()}; adjoint: {str(flag).lower()}",
                       [held, b], [to(name, y)], tolerance)
    # least squares, more rows and more columns
    for m, n, k in [(4, 2, 3), (2, 4, 1), (3, 3, 2)]:
        for l2 in (0.0, 0.5):
            for fast in (True, False):
                a, b = draw(name, 2, m, n, diagonal=2.0), draw(name, 2, m, k)
                w, weight = wide(a), l2 if fast else 0.0
                if m >= n:
                    y = np.linalg.solve(adjoint(w) @ w + weight * np.eye(n), adjoint(w) @ wide(b))
                else:
                    y = adjoint(w) @ np.linalg.solve(w @ adjoint(w) + weight * np.eye(m), wide(b))
                attrs = f"T: {name}; fast: {str(fast).lower()}"
                room = tolerance if fast else least_squares_tolerance(name, w, y)  # fast: in double
                g.case("MatrixSolveLs", attrs, [a, b, np.float64(l2)], [to(name, y)], room)
                if name in ("double", "float"):
                    g.case("BatchMatrixSolveLs", attrs, [a, b, np.float64(l2)], [to(name, y)], room)
    # LU with row exchange
    a = draw(name, 2, 4, 4)
    lu, order = wide(a).copy(), np.zeros((2, 4), np.int32)
    for m in range(2):
        order[m] = np.arange(4)
        for c in range(4):
            p = c + int(np.argmax(np.abs(lu[m, c:, c])))
            lu[m, [c, p]] = lu[m, [p, c]]
            order[m, [c, p]] = order[m, [p, c]]
            for r in range(c + 1, 4):
                lu[m, r, c] /= lu[m, c, c]
                lu[m, r, c + 1:] -= lu[m, r, c] * lu[m, c, c + 1:]
        lower, upper = np.tril(lu[m], -1) + np.eye(4), np.triu(lu[m])
        assert np.allclose((lower @ upper), wide(a)[m][order[m]])
    g.case("Lu", f"T: {name}", [a], [to(name, lu), order], tolerance)
    g.case("Lu", f"T: {name}; output_idx_type: int64", [a[0]], [to(name, lu[0]), order[0].astype(np.int64)], tolerance)

    if name != "half":
        for pivoting in (True, False):
            for shape, k in [((1,), 1), ((5,), 2), ((2, 4), 3), ((2,), 1)]:
                n = shape[-1]
                d = draw(name, *shape[:-1], 3, n)
                d[..., 1, :] += 5
                full = np.zeros(shape[:-1] + (n, n), np.complex128)
                for i in range(n):
                    full[..., i, i] = d[..., 1, i]
                    if i + 1 < n:
                        full[..., i, i + 1] = d[..., 0, i]
                        full[..., i + 1, i] = d[..., 2, i + 1]
                b = draw(name, *shape, k)
                g.case("TridiagonalSolve", f"T: {name}; partial_pivoting: {str(pivoting).lower()}", [d, b],
                       [to(name, np.linalg.solve(full, wide(b)))], tolerance)
                g.case("TridiagonalMatMul", f"T: {name}", [d[..., :1, :], d[..., 1:2, :], d[..., 2:, :], b],
                       [to(name, full @ wide(b))], tolerance)

singular = np.array([[1, 2], [2, 4]], np.float32)
g.case("MatrixSolve", "T: float", [singular, singular], [], error="not invertible")
g.case("BatchMatrixSolve", "T: float", [singular, singular], [], error="not invertible")
g.case("MatrixTriangularSolve", "T: float", [np.diag([1, 0]).astype(np.float32), singular], [], error="not invertible")
g.case("MatrixSolve", "T: float", [singular, np.ones((3, 1), np.float32)], [], error="incompatible")
g.case("MatrixSolve", "T: float", [np.ones((2, 3), np.float32), singular], [], error="must be square")
g.case("MatrixDeterminant", "T: float", [singular], [np.float32(0)], (1e-30, 0.0, 0))
g.case("LogMatrixDeterminant", "T: float", [singular], [np.float32(0), np.float32(-np.inf)], (1e-30, 0.0, 0))
g.case("Lu", "T: float", [singular], [], error="not invertible")
g.case("MatrixDeterminant", "T: float", [np.ones(3, np.float32)], [], error="rank")
g.save(__file__)
