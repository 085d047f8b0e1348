"""Running sums, products and log-sum-exp along each axis, both directions, against numpy."""
import numpy as np

from golden import Golden, ONE_ULP

g = Golden()
rng = np.random.default_rng(17)


def running(f, x, axis, exclusive, reverse, start):
    if reverse:
        x = np.flip(x, axis)
    y = f(x, axis)
    if exclusive:
        y = np.concatenate([np.full_like(np.take(y, [0], axis), start),
                            np.take(y, range(x.shape[axis] - 1), axis)], axis)
    return np.flip(y, axis) if reverse else y


for axis in range(3):
    for exclusive in (False, True):
        for reverse in (False, True):
            x = rng.normal(size=(3, 4, 5)).astype(np.float32)
            at = np.array(axis - 3 if reverse else axis, dtype=np.int32)
            flags = f"T: float; exclusive: {str(exclusive).lower()}; reverse: {str(reverse).lower()}"
            d = x.astype(float)
            for name, f, start in [("Cumsum", lambda v, a: np.cumsum(v, a), 0), ("Cumprod", lambda v, a: np.cumprod(v, a), 1),
                                   ("CumulativeLogsumexp", lambda v, a: np.logaddexp.accumulate(v, a),
                                    -np.finfo(np.float32).max)]:
                y = running(f, d, axis, exclusive, reverse, start).astype(np.float32)
                g.case(name, flags, [x, at], [y], (1e-7, 0, 1))
            i = rng.integers(-2**31, 2**31, size=(3, 4, 5), dtype=np.int64).astype(np.int32)
            with np.errstate(over="ignore"):
                for name, f, start in [("Cumsum", lambda v, a: np.cumsum(v, a, dtype=np.int32), 0),
                                       ("Cumprod", lambda v, a: np.cumprod(v, a, dtype=np.int32), 1)]:
                    g.case(name, flags.replace("float", "int32"), [i, at],
                           [running(f, i, axis, exclusive, reverse, start)])
g.save(__file__)
