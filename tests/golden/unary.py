"""Elementary functions, rounded from 40 digits of mpmath."""
import mpmath as mp
import numpy as np

from golden import Golden, T, ONE_ULP, FEW_ULPS, from_bfloat16, bfloat16_bits

mp.mp.dps = 40
g = Golden()
rng = np.random.default_rng(20240501)

WIDE = np.concatenate([rng.normal(size=24) * 4, rng.normal(size=8) * 1e-3, rng.normal(size=8) * 40, [1e-30, -1e-30]])
UNIT = np.concatenate([rng.uniform(-1, 1, 32), rng.normal(size=4) * 1e-4, [0.999999, -0.999999]])
ABOVE = np.concatenate([np.abs(rng.normal(size=32) * 10) + 1e-3, [1e-30, 1e30, 1.0000001, 0.9999999]])

FUNCTIONS = [
    ("Exp", mp.exp, WIDE, FEW_ULPS), ("Expm1", mp.expm1, WIDE, ONE_ULP), ("Log", mp.log, ABOVE, ONE_ULP),
    ("Log1p", mp.log1p, ABOVE, ONE_ULP), ("Sin", mp.sin, WIDE, ONE_ULP), ("Cos", mp.cos, WIDE, ONE_ULP),
    ("Tan", mp.tan, WIDE, ONE_ULP), ("Asin", mp.asin, UNIT, ONE_ULP), ("Acos", mp.acos, UNIT, ONE_ULP),
    ("Atan", mp.atan, WIDE, ONE_ULP), ("Sinh", mp.sinh, WIDE, FEW_ULPS), ("Cosh", mp.cosh, WIDE, FEW_ULPS),
    ("Tanh", mp.tanh, WIDE, FEW_ULPS), ("Asinh", mp.asinh, WIDE, FEW_ULPS), ("Acosh", mp.acosh, ABOVE + 1, FEW_ULPS),
    ("Atanh", mp.atanh, UNIT, FEW_ULPS), ("Sigmoid", lambda x: 1 / (1 + mp.exp(-x)), WIDE, FEW_ULPS),
    ("Erf", mp.erf, WIDE, FEW_ULPS), ("Erfc", mp.erfc, np.clip(WIDE, -20, 9), FEW_ULPS),
    ("Erfinv", mp.erfinv, UNIT, FEW_ULPS),
    ("Ndtri", lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), np.concatenate([np.abs(UNIT), [1e-10, 1e-6, 0.3, 0.7]]), FEW_ULPS),
    # lgamma and digamma cross zero, where only their absolute error is small
    ("Lgamma", lambda x: mp.log(abs(mp.gamma(x))), WIDE[:40], (1e-6, 0.0, 4)),
    ("Digamma", mp.digamma, WIDE[:40], (1e-6, 0.0, 8)), ("Sqrt", mp.sqrt, ABOVE, ONE_ULP),
    ("Rsqrt", lambda x: 1 / mp.sqrt(x), ABOVE, ONE_ULP),
]
DOUBLE_ABSOLUTE = {"Lgamma": (1e-14, 0.0, 8), "Digamma": (2e-14, 0.0, 32)}


def exact(f, values):
    out = []
    for v in values:
        try:
            out.append(float(f(mp.mpf(float(v)))))
        except (OverflowError, ZeroDivisionError):
            out.append(np.inf)
    return np.array(out)


for name, f, arguments, tolerance in FUNCTIONS:
    x = arguments.astype(np.float32)
    with np.errstate(over="ignore"):
        g.case(name, "T: float", [x], [exact(f, x).astype(np.float32)], tolerance)
    g.case(name, "T: double", [arguments], [exact(f, arguments)], DOUBLE_ABSOLUTE.get(name, FEW_ULPS))
    h = np.clip(arguments, -60000, 60000).astype(np.float16)
    with np.errstate(over="ignore"):
        g.case(name, "T: half", [h], [exact(f, h).astype(np.float16)], ONE_ULP)
    b = from_bfloat16(bfloat16_bits(arguments))
    with np.errstate(over="ignore"):
        g.case(name, "T: bfloat16", [T("bfloat16", b)], [T("bfloat16", exact(f, b).astype(np.float32))], ONE_ULP)

COMPLEX = (rng.normal(size=16) + 1j * rng.normal(size=16)) * 2
for name, f in [("Exp", np.exp), ("Log", np.log), ("Sqrt", np.sqrt), ("Sin", np.sin), ("Cos", np.cos), ("Tan", np.tan),
                ("Tanh", np.tanh), ("Sinh", np.sinh), ("Cosh", np.cosh), ("Asin", np.arcsin), ("Acos", np.arccos),
                ("Atan", np.arctan), ("Asinh", np.arcsinh), ("Acosh", np.arccosh), ("Atanh", np.arctanh),
                ("Expm1", np.expm1), ("Log1p", np.log1p), ("Rsqrt", lambda z: 1 / np.sqrt(z)),
                ("Sigmoid", lambda z: 1 / (1 + np.exp(-z))), ("Square", np.square), ("Reciprocal", lambda z: 1 / z)]:
    g.case(name, "T: complex128", [COMPLEX], [f(COMPLEX)], (1e-13, 1e-12, 0))
    z = COMPLEX.astype(np.complex64)
    g.case(name, "T: complex64", [z], [f(z.astype(np.complex128)).astype(np.complex64)], (1e-6, 2e-6, 0))

g.save(__file__)
