"""Arithmetic with broadcasting against numpy."""
import numpy as np

from golden import Golden, T, EXACT, ONE_ULP, FEW_ULPS, from_bfloat16, bfloat16_bits

g = Golden()
rng = np.random.default_rng(11)
SHAPES = [((3, 5), (3, 5)), ((4, 1, 3), (2, 3)), ((7,), (5, 1)), ((2, 1, 3, 1), (1, 4, 1, 5)), ((2, 3, 4), (4,)),
          ((2, 3, 4), (2, 1, 1)), ((1,), (3, 3)), ((), (2, 3)), ((2, 2, 2, 2, 2), (2, 1, 2, 1, 2))]
NAMES = {np.float32: "float", np.float64: "double", np.float16: "half", np.int8: "int8", np.uint8: "uint8",
         np.int16: "int16", np.uint16: "uint16", np.int32: "int32", np.int64: "int64", np.uint32: "uint32",
         np.uint64: "uint64"}
FLOATS = [("AddV2", np.add, EXACT), ("Sub", np.subtract, EXACT), ("Mul", np.multiply, EXACT),
          ("RealDiv", np.divide, EXACT), ("Maximum", np.maximum, EXACT), ("Minimum", np.minimum, EXACT),
          ("FloorDiv", lambda a, b: np.floor(a / b), EXACT), ("FloorMod", np.mod, ONE_ULP),
          ("TruncateMod", np.fmod, EXACT), ("Atan2", np.arctan2, ONE_ULP),
          ("Pow", lambda a, b: np.power(np.abs(a), b), ONE_ULP),
          ("SquaredDifference", lambda a, b: (a - b) * (a - b), EXACT)]
np.seterr(over="ignore")
for s, (left, right) in enumerate(SHAPES):
    for name, f, tolerance in FLOATS:
        a = np.asarray(rng.normal(size=left) * 4, dtype=np.float32)
        b = np.asarray(rng.normal(size=right) * 4, dtype=np.float32)
        if name == "Pow":
            a = np.abs(a)
        exact = f(a.astype(float), b.astype(float)).astype(np.float32) if name in ("Atan2", "Pow") else f(a, b)
        g.case(name, "T: float", [a, b], [exact], tolerance)
        if s < 3:
            d, e = a.astype(np.float64) * 1.1, b.astype(np.float64) * 1.1
            g.case(name, "T: double", [d, e], [f(d, e)], tolerance)
            h, k = a.astype(np.float16), b.astype(np.float16)
            g.case(name, "T: half", [h, k], [f(h.astype(np.float32), k.astype(np.float32)).astype(np.float16)], ONE_ULP)
            h, k = from_bfloat16(bfloat16_bits(a)), from_bfloat16(bfloat16_bits(b))
            g.case(name, "T: bfloat16", [T("bfloat16", h), T("bfloat16", k)],
                   [T("bfloat16", f(h.astype(np.float32), k.astype(np.float32)))], ONE_ULP)

INTS = [("AddV2", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("FloorDiv", np.floor_divide),
        ("FloorMod", np.mod), ("Maximum", np.maximum), ("Minimum", np.minimum), ("BitwiseAnd", np.bitwise_and),
        ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor)]
with np.errstate(over="ignore"):
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        limits = np.iinfo(kind)
        for i, (name, f) in enumerate(INTS):
            left, right = SHAPES[i % len(SHAPES)]
            a = rng.integers(limits.min, limits.max, size=left, dtype=kind, endpoint=True)
            b = rng.integers(limits.min // 3, limits.max // 3, size=right, dtype=kind)
            b = np.where(b == 0, kind(3), b).astype(kind)
            g.case(name, f"T: {NAMES[kind]}", [a, b], [np.asarray(f(a, b), dtype=kind)])
        a = rng.integers(limits.min, limits.max, size=(3, 4), dtype=kind)
        n = rng.integers(0, limits.bits, size=(4,)).astype(kind)
        g.case("LeftShift", f"T: {NAMES[kind]}", [a, n], [np.left_shift(a, n)])
        g.case("RightShift", f"T: {NAMES[kind]}", [a, n], [np.right_shift(a, n)])
for name, f in [("AddV2", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("RealDiv", np.divide),
                ("Pow", np.power)]:
    a = rng.normal(size=(3, 1)) + 1j * rng.normal(size=(3, 1))
    b = rng.normal(size=(1, 4)) + 1j * rng.normal(size=(1, 4))
    g.case(name, "T: complex128", [a, b], [f(a, b)], (1e-13, 1e-13, 0))
    c, d = a.astype(np.complex64), b.astype(np.complex64)
    g.case(name, "T: complex64", [c, d], [f(c.astype(complex), d.astype(complex)).astype(np.complex64)], (1e-6, 1e-6, 0))
g.save(__file__)
