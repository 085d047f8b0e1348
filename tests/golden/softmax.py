"""Softmax and log-softmax against numpy in double."""
import numpy as np

from golden import Golden, T, FEW_ULPS, ONE_ULP, from_bfloat16, bfloat16_bits

g = Golden()
# x - max is rounded to float, up to half a unit of a number near 100, and exp makes that relative
SHIFTED = (1e-30, 6e-6, 4)
rng = np.random.default_rng(13)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x):
    s = x - x.max(axis=-1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=-1, keepdims=True))


for shape, scale in [((4, 10), 1), ((2, 301), 5), ((2, 3, 7), 20), ((5,), 0.01), ((2, 1), 3)]:
    x = (rng.normal(size=shape) * scale).astype(np.float32)
    # absolute: where the shifted value nearly cancels the logarithm of the sum
    for name, f, tolerance in [("Softmax", softmax, SHIFTED), ("LogSoftmax", log_softmax, (1e-6, 0, 4))]:
        g.case(name, "T: float", [x], [f(x.astype(float)).astype(np.float32)], tolerance)
        g.case(name, "T: double", [x.astype(float)], [f(x.astype(float))], (1e-14, 1e-13, 4))
        h = x.astype(np.float16)
        g.case(name, "T: half", [h], [f(h.astype(float)).astype(np.float16)], ONE_ULP)
        b = from_bfloat16(bfloat16_bits(x)).reshape(shape)
        g.case(name, "T: bfloat16", [T("bfloat16", b)], [T("bfloat16", f(b.astype(float)))], ONE_ULP)
g.save(__file__)
