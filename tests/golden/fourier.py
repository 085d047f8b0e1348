"""Fourier transforms of lengths that are and are not powers of two, against numpy's in double."""
import numpy as np

from golden import Golden

g = Golden()
rng = np.random.default_rng(37)
DOUBLE, FLOAT = (1e-12, 0.0, 0), (2e-6, 2e-7, 0)


def add(op, attrs, inputs, y, narrow, tolerance=None):
    g.case(op, attrs, inputs, [y.astype(narrow)], tolerance or (DOUBLE if narrow in (np.complex128, np.float64) else FLOAT))


for n in (1, 2, 3, 5, 7, 8, 12, 16, 31, 64, 100, 127):
    z = rng.normal(size=(2, n)) + 1j * rng.normal(size=(2, n))
    c = z.astype(np.complex64)
    add("FFT", "Tcomplex: complex128", [z], np.fft.fft(z), np.complex128)
    add("IFFT", "Tcomplex: complex128", [z], np.fft.ifft(z), np.complex128)
    add("FFT", "", [c], np.fft.fft(c.astype(complex)), np.complex64)
    add("IFFT", "", [c], np.fft.ifft(c.astype(complex)), np.complex64)
    x = z.real.copy()
    f = x.astype(np.float32)
    length = np.array([n], dtype=np.int32)
    add("RFFT", "Treal: double; Tcomplex: complex128", [x, length], np.fft.rfft(x), np.complex128)
    add("RFFT", "", [f, length], np.fft.rfft(f.astype(float)), np.complex64)
    half = z[:, :n // 2 + 1]
    add("IRFFT", "Treal: double; Tcomplex: complex128", [half, length], np.fft.irfft(half, n), np.float64)
    add("IRFFT", "", [half.astype(np.complex64), length],
        np.fft.irfft(half.astype(np.complex64).astype(complex), n), np.float32)
for shape in [(2, 4, 4), (3, 5), (1, 6, 7)]:
    z = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    add("FFT2D", "Tcomplex: complex128", [z], np.fft.fft2(z), np.complex128)
    add("IFFT2D", "Tcomplex: complex128", [z], np.fft.ifft2(z), np.complex128)
    add("FFT2D", "", [z.astype(np.complex64)], np.fft.fft2(z.astype(np.complex64).astype(complex)), np.complex64)
    length = np.array(shape[-2:], dtype=np.int32)
    add("RFFT2D", "Treal: double; Tcomplex: complex128", [z.real.copy(), length], np.fft.rfft2(z.real), np.complex128)
    cut = np.array([shape[-2] - 1, shape[-1] - 2], dtype=np.int32)
    add("RFFT2D", "Treal: double; Tcomplex: complex128", [z.real.copy(), cut], np.fft.rfft2(z.real, cut), np.complex128)
    half = z[..., :shape[-1] // 2 + 1]
    add("IRFFT2D", "Treal: double; Tcomplex: complex128", [half, length], np.fft.irfft2(half, length), np.float64)
    add("IRFFT2D", "Treal: double; Tcomplex: complex128", [half, cut], np.fft.irfft2(half, cut), np.float64)
    add("IRFFT2D", "", [half.astype(np.complex64), length],
        np.fft.irfft2(half.astype(np.complex64).astype(complex), length), np.float32)
for shape in [(2, 3, 4), (2, 2, 3, 5), (1, 4, 2, 6)]:
    axes = (-3, -2, -1)
    z = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    length = np.array(shape[-3:], dtype=np.int32)
    add("FFT3D", "Tcomplex: complex128", [z], np.fft.fftn(z, axes=axes), np.complex128)
    add("IFFT3D", "Tcomplex: complex128", [z], np.fft.ifftn(z, axes=axes), np.complex128)
    add("RFFT3D", "Treal: double; Tcomplex: complex128", [z.real.copy(), length],
        np.fft.rfftn(z.real, axes=axes), np.complex128)
    half = z[..., :shape[-1] // 2 + 1]
    add("IRFFT3D", "Treal: double; Tcomplex: complex128", [half, length],
        np.fft.irfftn(half, length, axes=axes), np.float64)
g.save(__file__)
