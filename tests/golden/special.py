"""Special functions against mpmath, at inputs rounded to each dtype."""
import mpmath as mp
import numpy as np

from golden import Golden, T, from_bfloat16

mp.mp.dps = 40
g = Golden()
# a double of a few roundings; float and the half types get that rounded once
LOOSE = {"double": (2e-14, 5e-14, 0), "float": (1e-7, 0.0, 1), "half": (0.0, 0.0, 1), "bfloat16": (0.0, 0.0, 1)}
KINDS = {"double": np.float64, "float": np.float32, "half": np.float16}


def held(name, values):
    if name == "bfloat16":
        return from_bfloat16(T(name, np.array(values, np.float32)).array).astype(np.float64)
    return np.array(values, KINDS[name]).astype(np.float64)


def real(fn, *x):
    y = fn(*[mp.mpf(float(v)) for v in x])
    return float(mp.re(y))


def give(name, values):
    values = np.asarray(values, np.float64)
    if name == "bfloat16":
        return T(name, values.astype(np.float32))
    with np.errstate(over="ignore"):
        return values.astype(KINDS[name])


def one(op, fn, points, special=()):
    for name in ("double", "float", "half", "bfloat16"):
        x = held(name, points)
        y = [real(fn, v) for v in x]
        x = list(x) + [a for a, _ in special]
        y = y + [b for _, b in special]
        g.case(op, f"T: {name}", [give(name, x)], [give(name, y)], LOOSE[name])


inf, nan = float("inf"), float("nan")
wide = [0.0, 1e-3, 0.1, 0.5, 1.0, 1.9, 2.1, 3.3, 4.7, 8.0, 12.5, 19.0, 29.5, 30.5, 40.0, 77.0]
signed = wide + [-v for v in wide[1:]]
one("BesselI0", lambda x: mp.besseli(0, x), signed, [(nan, nan), (inf, inf), (-inf, inf)])
one("BesselI1", lambda x: mp.besseli(1, x), signed, [(nan, nan), (inf, inf), (-inf, -inf)])
one("BesselI0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), signed + [300.0, 5000.0], [(nan, nan), (inf, 0.0)])
one("BesselI1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), signed + [300.0, 5000.0], [(nan, nan), (inf, 0.0)])
positive = [1e-3, 0.02, 0.3, 0.9, 1.1, 1.7, 2.5, 5.0, 9.0, 17.0, 29.0, 31.0]
one("Dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), signed + [1000.0, -1000.0], [(nan, nan)])
one("Expint", mp.ei, positive + [0.37, 39.5, 40.5, 60.0], [(nan, nan), (0.0, -inf), (-1.0, nan)])
one("FresnelCos", mp.fresnelc, signed + [1.5, 1.59, 1.61, 2.5, 2.9], [(nan, nan), (inf, 0.5), (-inf, -0.5)])
one("FresnelSin", mp.fresnels, signed + [1.5, 1.59, 1.61, 2.5, 2.9], [(nan, nan), (inf, 0.5), (-inf, -0.5)])
one("Spence", lambda x: mp.polylog(2, 1 - x), [0.0, 0.01, 0.3, 0.49, 0.51, 0.9, 1.0, 1.2, 1.49, 1.51, 2.0, 3.0, 50.0], [(nan, nan), (-1.0, nan)])


def two(op, fn, a, x, names, special=()):
    for name in names:
        left, right = held(name, a), held(name, x)
        grid = np.array([[real(fn, p, q) for q in right] for p in left])
        g.case(op, f"T: {name}", [give(name, left[:, None]), give(name, right[None, :])], [give(name, grid)], LOOSE[name])
        flat = [give(name, [s[k] for s in special]) for k in range(3)]
        g.case(op, f"T: {name}", flat[:2], flat[2:], LOOSE[name])


SMALL = ("double", "float", "half", "bfloat16")
shapes = [0.05, 0.5, 1.0, 2.5, 7.0, 19.0, 21.0, 60.0]
points = [0.0, 0.01, 0.3, 1.0, 2.0, 6.5, 18.0, 22.0, 55.0, 80.0]
two("Igamma", lambda a, x: mp.gammainc(a, 0, x, regularized=True), shapes, points, SMALL,
    [(1.0, inf, 1.0), (-1.0, 1.0, nan), (0.0, 1.0, nan), (1.0, -1.0, nan), (nan, 1.0, nan), (1.0, 0.0, 0.0)])
two("Igammac", lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), shapes, points, SMALL,
    [(1.0, inf, 0.0), (-1.0, 1.0, nan), (0.0, 1.0, nan), (1.0, -1.0, nan), (nan, 1.0, nan), (1.0, 0.0, 1.0)])
two("Zeta", mp.zeta, [1.1, 1.5, 2.0, 3.0, 10.0], [0.01, 0.5, 1.0, 2.5, 8.5, 30.0], ("double", "float"),
    [(1.0, 2.0, inf), (0.5, 2.0, nan), (2.0, 0.0, inf), (2.0, -1.0, inf), (2.5, -0.5, nan)])
two("Polygamma", lambda n, x: mp.psi(int(n), x), [0.0, 1.0, 2.0, 3.0, 6.0], [0.05, 0.5, 1.0, 3.5, 12.0],
    ("double", "float"), [(0.5, 1.0, nan), (-1.0, 1.0, nan), (1.0, 0.0, inf)])
for name in ("double", "float"):
    a, b, x = np.meshgrid([0.1, 1.0, 3.5, 20.0], [0.2, 1.0, 5.0, 30.0], [0.0, 0.01, 0.3, 0.5, 0.9, 1.0])
    a, b, x = (held(name, v.reshape(-1)) for v in (a, b, x))
    y = [real(lambda p, q, r: mp.betainc(p, q, 0, r, regularized=True), *v) for v in zip(a, b, x)]
    g.case("Betainc", f"T: {name}", [give(name, a), give(name, b), give(name, x)], [give(name, y)], LOOSE[name])
    y = [real(lambda r: mp.betainc(2, mp.mpf("0.5"), 0, r, regularized=True), v) for v in x]
    g.case("Betainc", f"T: {name}", [give(name, 2.0), give(name, 0.5), give(name, x)], [give(name, y)], LOOSE[name])
    g.case("Betainc", f"T: {name}", [give(name, [-1.0, 1.0, 1.0, 0.0]), give(name, 1.0), give(name, [0.5, 1.5, -0.1, 0.5])],
           [give(name, [nan] * 4)], LOOSE[name])
g.case("Betainc", "T: float", [np.zeros(2, np.float32), np.zeros(3, np.float32), np.float32(0)], [], error="hapes")
g.case("Zeta", "T: float", [np.zeros(2, np.float32), np.zeros(3, np.float32)], [], error="Incompatible shapes")
g.save(__file__)
