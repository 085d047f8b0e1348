"""Fourier transforms over given axes, by numpy in double."""
import numpy as np

from golden import Golden

rng = np.random.default_rng(97)
g = Golden()
f32, c64 = np.float32, np.complex64
NEAR = {False: (2e-6, 2e-6, 0), True: (1e-13, 1e-13, 0)}
CASES = [((5,), (5,), (0,)), ((2, 3, 4), (3, 4), (1, 2)), ((2, 3, 4), (4, 2), (2, 0)), ((3, 5), (2, 7), (0, 1)), ((2, 3, 2, 2), (3, 2, 2, 5), (1, 0, 3, 2)),
         ((4, 3), (1, 4), (-1, -2)), ((6,), (4,), (0,)), ((3,), (8,), (-1,))]
for wide in (False, True):
    c, r = (np.complex128, np.float64) if wide else (c64, f32)
    names = "Treal: double; Tcomplex: complex128" if wide else "Treal: float; Tcomplex: complex64"
    for shape, lengths, axes in CASES:
        more = [np.int32(lengths), np.int32(axes)]
        x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(c)
        g.case("FFTND", names.split("; ")[1], [x] + more, [np.fft.fftn(x.astype(np.complex128), lengths, axes).astype(c)], NEAR[wide])
        g.case("IFFTND", names.split("; ")[1], [x] + more, [np.fft.ifftn(x.astype(np.complex128), lengths, axes).astype(c)], NEAR[wide])
        v = x.real.astype(r)
        g.case("RFFTND", names, [v] + more, [np.fft.rfftn(v.astype(np.float64), lengths, axes).astype(c)], NEAR[wide])
        y = np.fft.irfftn(x.astype(np.complex128), lengths, axes) if lengths[-1] > 0 else None
        g.case("IRFFTND", names, [x] + more, [y.astype(r)], NEAR[wide])
x = np.ones((2, 3), c64)
g.case("FFTND", None, [x, np.int32([2, 2]), np.int32([1, 1])], [], error="axes contains 1 twice")
g.case("FFTND", None, [x, np.int32([2]), np.int32([2])], [], error="Expected dimension in the range [-2, 2), but got 2")
g.case("IFFTND", None, [x, np.int32([2]), np.int32([0, 1])], [], error="fft_length and axes must have the same shape")
g.case("RFFTND", None, [x.real.astype(f32), np.int32([-2]), np.int32([0])], [], error="fft_length[0] must >= 0")
g.case("IRFFTND", None, [x, np.int32([0]), np.int32([0])], [np.zeros((0, 3), f32)])
for old, new in (("BatchFFT", np.fft.fft), ("BatchIFFT", np.fft.ifft), ("BatchFFT2D", np.fft.fft2), ("BatchIFFT2D", np.fft.ifft2),
                 ("BatchFFT3D", lambda v: np.fft.fftn(v, axes=(-3, -2, -1))), ("BatchIFFT3D", lambda v: np.fft.ifftn(v, axes=(-3, -2, -1)))):
    for shape in ((2, 3, 4), (1, 1, 5), (2, 2, 2, 3)):
        x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(c64)
        g.case(old, None, [x], [new(x.astype(np.complex128)).astype(c64)], NEAR[False])
g.save(__file__)
