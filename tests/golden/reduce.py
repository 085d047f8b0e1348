"""Reductions over every set of axes of several shapes, against numpy in double."""
import itertools

import numpy as np

from golden import Golden, T, EXACT, ONE_ULP, from_bfloat16, bfloat16_bits

g = Golden()
rng = np.random.default_rng(3)
REAL = [("Sum", np.sum), ("Mean", np.mean), ("Prod", np.prod), ("Max", np.max), ("Min", np.min),
        ("EuclideanNorm", lambda x, **k: np.sqrt(np.sum(x * x, **k)))]


def reduce(f, x, axes, keep):
    return np.asarray(f(x, axis=tuple(axes), keepdims=keep))


for shape in [(4, 5), (2, 3, 4), (3, 1, 2, 5), (2, 3, 2, 3, 2), (700,)]:
    choices = [c for r in range(len(shape) + 1) for c in itertools.combinations(range(len(shape)), r)]
    for n, axes in enumerate(choices):
        if len(shape) == 5 and n % 3:
            continue
        name, f = REAL[n % len(REAL)] if len(shape) > 1 else REAL[0]
        keep = bool(n % 2)
        for k in range(2):
            x = rng.normal(size=shape).astype(np.float32)
            given = np.array([a - len(shape) if (a + k) % 2 else a for a in axes], dtype=np.int32)
            y = reduce(f, x.astype(np.float64), axes, keep).astype(np.float32)
            g.case(name, f"T: float; keep_dims: {str(keep).lower()}", [x, given], [y],
                   (1e-9, 0.0, 1) if name in ("Sum", "Mean") else ONE_ULP)
            name, f = REAL[(n + 3) % len(REAL)]
for name, f in REAL:
    x = rng.normal(size=(5, 20))
    axes = np.array([1], dtype=np.int64)
    g.case(name, "T: double; Tidx: int64", [x, axes], [reduce(f, x, [1], False)], (1e-14, 1e-14, 0))
    h = x.astype(np.float16)
    g.case(name, "T: half; Tidx: int64", [h, axes], [reduce(f, h.astype(float), [1], False).astype(np.float16)],
           ONE_ULP)
    b = from_bfloat16(bfloat16_bits(x)).reshape(x.shape)
    g.case(name, "T: bfloat16; Tidx: int64", [T("bfloat16", b), axes],
           [T("bfloat16", reduce(f, b.astype(float), [1], False))], ONE_ULP)
    if name in ("Sum", "Mean", "Prod"):
        z = x + 1j * rng.normal(size=x.shape)
        g.case(name, "T: complex128; Tidx: int64", [z, axes], [reduce(f, z, [1], False)], (1e-10, 1e-12, 0))
        g.case(name, "T: complex64; Tidx: int64", [z.astype(np.complex64), axes],
               [reduce(f, z.astype(np.complex64).astype(complex), [1], False).astype(np.complex64)], (1e-6, 1e-6, 0))
with np.errstate(over="ignore"):
    for label, kind in [("int8", np.int8), ("uint8", np.uint8), ("int16", np.int16), ("int32", np.int32),
                        ("int64", np.int64), ("uint64", np.uint64)]:
        limits = np.iinfo(kind)
        x = rng.integers(limits.min, limits.max, size=(4, 5, 3), dtype=kind, endpoint=True)
        for name, f in (("Sum", np.sum), ("Prod", np.prod), ("Max", np.max), ("Min", np.min)):
            y = f(x, axis=(0, 2)) if name in ("Max", "Min") else f(x, axis=(0, 2), dtype=kind)
            g.case(name, f"T: {label}", [x, np.array([0, 2], dtype=np.int32)], [y])
for name, f in (("All", np.all), ("Any", np.any)):
    x = rng.integers(0, 4, size=(6, 5)) > (0 if name == "All" else 2)
    g.case(name, "", [x, np.array([1], dtype=np.int32)], [f(x, axis=1)])
g.save(__file__)
