"""Bias additions by numpy."""
import numpy as np

from golden import Golden, T, from_bfloat16, ONE_ULP

rng = np.random.default_rng(3)
g = Golden()
for shape in [(2, 3), (1, 1), (2, 4, 5, 3), (3, 17), (2, 3, 33), (0, 4), (2, 2, 2, 3, 9)]:
    x, b = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(shape[-1]).astype(np.float32)
    g.case("BiasAdd", "T: float", [x, b], [x + b])
    g.case("BiasAddV1", "T: float", [x, b], [x + b])
    b = rng.standard_normal(shape[1]).astype(np.float32)
    g.case("BiasAdd", "T: float; data_format: 'NCHW'", [x, b],
           [x + b.reshape((1, -1) + (1,) * (len(shape) - 2))])
for t in ("double", "half", "complex64", "complex128"):
    np_t = {"double": np.float64, "half": np.float16}.get(t, t)
    x, b = rng.standard_normal((2, 3, 4)).astype(np_t), rng.standard_normal(4).astype(np_t)
    g.case("BiasAdd", f"T: {t}", [x, b], [x + b])
x, b = T("bfloat16", rng.standard_normal((3, 5))), T("bfloat16", rng.standard_normal(5))
g.case("BiasAdd", "T: bfloat16", [x, b], [T("bfloat16", from_bfloat16(x.array) + from_bfloat16(b.array))])
for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "qint32"):
    np_t = t.replace("qint", "int")
    info = np.iinfo(np_t)
    x = rng.integers(info.min, info.max, (4, 3), dtype=np_t, endpoint=True)
    b = rng.integers(info.min, info.max, 3, dtype=np_t, endpoint=True)
    with np.errstate(over="ignore"):
        g.case("BiasAdd", f"T: {t}", [T(t, x), T(t, b)], [T(t, x + b)])
g.case("BiasAdd", "T: float", [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)], [], error="4 elements (expected 3)")
g.case("BiasAdd", "T: float", [np.zeros(3, np.float32), np.zeros(3, np.float32)], [], error="rank 1")
g.save(__file__)
