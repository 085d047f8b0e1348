"""Matrix products by numpy in float64 (integers exactly), with transposition, adjoints and broadcasting."""
import numpy as np

from golden import Golden, T, from_bfloat16

SUMS = (2e-5, 1e-5, 0)
NARROW = (0.02, 0.01, 0)
rng = np.random.default_rng(2)
g = Golden()


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def flip(x, flag):
    return np.swapaxes(x, -1, -2) if flag else x


def adjoint(x, flag):
    return np.conj(np.swapaxes(x, -1, -2)) if flag else x


def flags(first, a, second, b):
    return f"{first}: {str(a).lower()}; {second}: {str(b).lower()}"


for m, n, k in [(1, 1, 1), (3, 5, 7), (1, 40, 33), (2, 17, 9), (13, 16, 300), (30, 50, 20), (5, 1, 64), (4, 6, 0)]:
    for ta in (False, True):
        for tb in (False, True):
            a, b = normal(m, k), normal(k, n)
            y = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
            g.case("MatMul", "T: float; " + flags("transpose_a", ta, "transpose_b", tb), [flip(a, ta), flip(b, tb)],
                   [y], SUMS)
a, b = rng.standard_normal((4, 9)), rng.standard_normal((9, 5))
g.case("MatMul", "T: double", [a, b], [a @ b], (1e-13, 1e-12, 0))
for t in ("int32", "int64", "uint8", "uint16", "uint32", "uint64"):
    info = np.iinfo(t)
    a = rng.integers(info.min, info.max, (3, 6), dtype=t, endpoint=True)
    b = rng.integers(info.min, info.max, (6, 4), dtype=t, endpoint=True)
    wide = (a.astype(object) @ b.astype(object)) % (1 << info.bits)
    y = np.array([[int(v) for v in row] for row in wide], dtype=np.uint64).astype("uint" + str(info.bits)).view(t)
    g.case("MatMul", f"T: {t}", [a, b], [y])
a = rng.integers(-255, 256, (20, 33)).astype(np.int32)  # the small values of quantized models
b = rng.integers(-127, 128, (33, 18)).astype(np.int32)
for ta in (False, True):
    for tb in (False, True):
        g.case("MatMul", "T: int32; " + flags("transpose_a", ta, "transpose_b", tb), [flip(a, ta), flip(b, tb)],
               [a @ b])
for t, np_t in (("complex64", np.complex64), ("complex128", np.complex128)):
    a = (rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))).astype(np_t)
    b = (rng.standard_normal((4, 2)) + 1j * rng.standard_normal((4, 2))).astype(np_t)
    g.case("MatMul", f"T: {t}; transpose_b: true", [a, b.T],
           [(a.astype(np.complex128) @ b.astype(np.complex128)).astype(np_t)], (1e-5, 1e-5, 0))
for t in ("half", "bfloat16"):
    a, b = T(t, normal(5, 20)), T(t, normal(20, 9))
    wide = [v.array.astype(np.float32) if t == "half" else from_bfloat16(v.array) for v in (a, b)]
    g.case("MatMul", f"T: {t}", [a, b], [T(t, wide[0] @ wide[1])], NARROW)
g.case("MatMul", "T: float", [normal(2, 3), normal(4, 5)], [], error="inner sizes differ")
g.case("MatMul", "T: float", [normal(1, 2, 3), normal(3, 5)], [], error="rank 3")
g.case("MatMul", "T: float", [normal(2, 3), normal(3, 5)], [None], infer="[?,3] [3,5] -> [?,5]")

BATCHES = [((2,), (2,)), ((3, 2), (3, 2)), ((), ()), ((2, 0), (2, 0))]
BROADCASTS = BATCHES + [((3, 1), (2,)), ((), (4,)), ((4,), ()), ((2, 1, 3), (1, 2, 1)), ((1,), (5,)), ((5,), (1,))]
for op, batches in (("BatchMatMul", BATCHES), ("BatchMatMulV2", BROADCASTS), ("BatchMatMulV3", BROADCASTS)):
    for i, (ba, bb) in enumerate(batches):
        x, y = i % 2 == 1, i % 3 == 1
        a, b = normal(*ba, 4, 6), normal(*bb, 6, 19)
        out = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
        types = "Ta: float; Tb: float; Tout: float; " if op == "BatchMatMulV3" else "T: float; "
        g.case(op, types + flags("adj_x", x, "adj_y", y), [flip(a, x), flip(b, y)], [out], SUMS)
a = (rng.standard_normal((2, 4, 3)) + 1j * rng.standard_normal((2, 4, 3))).astype(np.complex64)
b = (rng.standard_normal((2, 5, 4)) + 1j * rng.standard_normal((2, 5, 4))).astype(np.complex64)
g.case("BatchMatMul", "T: complex64; adj_x: true; adj_y: true", [a, b],
       [(adjoint(a, True) @ adjoint(b, True)).astype(np.complex64)], (1e-5, 1e-5, 0))
g.case("BatchMatMul", "T: float", [normal(2, 3, 4), normal(3, 4, 5)], [], error="2")
g.case("BatchMatMulV2", "T: float", [normal(3), normal(3, 4)], [], error="rank 1")
g.case("BatchMatMulV2", "T: float", [normal(2, 1, 3, 4), normal(5, 4, 2)], [None],
       infer="[?,1,3,4] [5,4,?] -> [?,5,3,?]")
a = rng.integers(-128, 128, (2, 3, 40)).astype(np.int8)
b = rng.integers(-128, 128, (40, 7)).astype(np.int8)
g.case("BatchMatMulV3", "Ta: int8; Tb: int8; Tout: int32", [a, b], [a.astype(np.int32) @ b.astype(np.int32)])
g.save(__file__)
