"""Goldens of the transpose family by numpy: permutations, reversals, rolls, reversed sequences."""
import itertools

import numpy as np

from golden import Golden, T

g = Golden()
rng = np.random.default_rng(7)
i32, i64 = np.int32, np.int64

for perm in itertools.permutations(range(3)):
    x = rng.standard_normal((3, 18, 35)).astype(np.float32)  # wider than one tile
    g.case("Transpose", "T: float", [x, np.array(perm, i32)], [x.transpose(perm)])
for dtype in (np.int8, np.int16, np.int64, np.complex128, np.bool_):
    x = (rng.integers(0, 2 if dtype is np.bool_ else 100, (17, 2, 19))).astype(dtype)
    g.case("Transpose", f"T: {T.of(x).dtype}; Tperm: int64", [x, np.array([2, 0, 1], i64)], [x.transpose(2, 0, 1)])
x = np.array([[b"a", b"bb", b"ccc"], [b"", b"e", b"f\0"]], dtype=object)
g.case("Transpose", "T: string", [x, np.array([1, 0], i32)], [x.T])
x = rng.standard_normal((2, 3, 1, 2, 3, 2)).astype(np.float32)
g.case("Transpose", "T: float", [x, np.array([5, 1, 4, 2, 0, 3], i32)], [x.transpose(5, 1, 4, 2, 0, 3)])
g.case("Transpose", "T: float", [x, np.array([2, 0, 1, 3, 4, 5], i32)], [x.transpose(2, 0, 1, 3, 4, 5)])
for perm in ((0, 1), (1, 0)):
    x = (rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))).astype(np.complex64)
    g.case("ConjugateTranspose", "T: complex64", [x, np.array(perm, i32)], [x.transpose(perm).conj()])
x = x.astype(np.complex128)
g.case("ConjugateTranspose", "T: complex128", [x, np.array([1, 0], i32)], [x.T.conj()])

x = rng.integers(-9, 9, (2, 3, 4)).astype(np.int32)
for axes in ([], [0], [-1], [1, 2], [0, 1, 2]):
    g.case("ReverseV2", "T: int32", [x, np.array(axes, i32)], [np.flip(x, tuple(axes))])
    mask = np.array([d in [a % 3 for a in axes] for d in range(3)])
    g.case("Reverse", "T: int32", [x, mask], [np.flip(x, tuple(axes))])

for shift, axis in ((1, 0), (-2, 1), (7, -1), ([1, 2], [0, 2]), ([1, 1], [1, 1])):
    shift, axis = np.array(shift, i32), np.array(axis, i32)
    want = x
    for s, a in zip(shift.reshape(-1), axis.reshape(-1)):
        want = np.roll(want, s, a)
    g.case("Roll", "T: int32; Tshift: int32; Taxis: int32", [x, shift, axis], [want])


def reverse_sequence(x, lengths, seq, batch):
    out = x.copy()
    for b, n in enumerate(lengths):
        at = [slice(None)] * x.ndim
        at[batch] = b
        part = [slice(None)] * x.ndim
        part[batch], part[seq] = b, slice(0, n)
        axis = seq - (batch < seq)
        out[tuple(part)] = np.flip(x[tuple(part)], axis)
    return out


for shape, seq, batch in (((3, 5), 1, 0), ((5, 3), 0, 1), ((2, 3, 4, 2), 2, 0), ((2, 3, 4, 2), 1, 3)):
    x = rng.standard_normal(shape).astype(np.float32)
    lengths = rng.integers(0, shape[seq] + 1, shape[batch])
    g.case("ReverseSequence", f"T: float; Tlen: int64; seq_dim: {seq}; batch_dim: {batch}",
           [x, lengths.astype(i64)], [reverse_sequence(x, lengths, seq, batch)])
g.save(__file__)
