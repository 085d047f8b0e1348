"""Layers in float8 by their formulas, with the codes of ml_dtypes: static and dynamic range, weight-only, in both formats,
of matrix products and convolutions. JAX multiplies the same codes, and must agree with the sums up to their order.

A case is the float op with its attributes; inputs are the activation, the weight and numbers:
  method (0 static, 1 dynamic, 2 weight-only), format (1 fp8_e4m3, 2 fp8_e5m2), low and high of the input
The second output are the codes of the weight. Sums are float32 in the order of the contracted axis, each product exact.
Needs ml_dtypes and jax: the expected numbers are in float8_layers.bin."""
import jax
import ml_dtypes
import numpy as np

from golden import Golden, T

rng = np.random.default_rng(40)
g = Golden()
f = np.float32
FORMATS = {1: (ml_dtypes.float8_e4m3fn, 448.0), 2: (ml_dtypes.float8_e5m2, 57344.0)}


def codes(x, scale, form):
    dtype, largest = FORMATS[form]
    return np.minimum(np.maximum((x / scale).astype(f), f(-largest)), f(largest)).astype(dtype)


def weight_codes(w, axes, form):
    """Scales in double from the largest magnitude; saturating."""
    dtype, largest = FORMATS[form]
    high = np.abs(w.astype(np.float64)).max(axis=axes, keepdims=True)
    scale = np.where(2 * high <= 1e-6, 5e-7, high) / largest
    return np.clip(w.astype(np.float64) / scale, -largest, largest).astype(dtype), scale


def ordered(a, b):
    """a [rows, K] times b [K, columns], summed from the first k to the last in float32."""
    y = np.zeros((a.shape[0], b.shape[1]), f)
    for k in range(a.shape[1]):
        y = (y.astype(np.float64) + a[:, k, None].astype(np.float64) * b[None, k].astype(np.float64)).astype(f)
    return y


def patches(x, kernel, stride, pads):
    x = np.pad(x, [(0, 0), pads, pads, (0, 0)])
    out = [(x.shape[1 + i] - kernel) // stride + 1 for i in range(2)]
    rows = [x[b, i * stride:i * stride + kernel, j * stride:j * stride + kernel].reshape(-1)
            for b in range(x.shape[0]) for i in range(out[0]) for j in range(out[1])]
    return np.stack(rows), [x.shape[0]] + out


def layer(op, attrs, x, w, axes, rows, product, of_rows, judge):
    low, high = float(x.min()) * 0.8, float(x.max()) * 0.9  # something is clipped
    for method in range(3):
        for form in FORMATS:
            w_q, w_scale = weight_codes(w, axes, form)
            factors = w_scale.reshape(-1).astype(f)
            if method == 0:
                scale = f(max(-low, high) / FORMATS[form][1])
                x_q, factor = codes(x, scale, form), scale * factors
            elif method == 1:
                size = np.maximum(np.abs(x).max(axis=rows, keepdims=True), f(1e-30))
                scale = size / f(FORMATS[form][1])
                x_q, factor = codes(x, scale, form), of_rows(scale) * factors
            else:
                x_q, factor = x, factors
            sums = product(x_q.astype(f), w_q.astype(f))
            np.testing.assert_allclose(sums, judge(x_q, w_q), rtol=1e-5, atol=1e-5 * np.abs(sums).max())
            numbers = np.array([method, form, low, high])
            g.case(op, attrs, [x, w, numbers], [sums * factor, w_q.view(np.uint8)])


def wide(x_q):
    """Weight-only: the activation is float32, and so is the other operand."""
    return x_q.astype(f)


def matmul(transpose_a, transpose_b, zero):
    x, w = rng.normal(0, 2, [3, 9]).astype(f), rng.normal(0, 1, [9, 5]).astype(f)
    x[0] *= 30  # rows of unlike size
    x[1, :5] *= f(2.0 ** -9)  # subnormal codes
    w[:, 1] *= f(1e-4)
    w[2:6, 2] *= f(2.0 ** -12)
    if zero:
        x[2] = 0
        w[:, 3] = 0
    attrs = f"T: float; transpose_a: {str(transpose_a).lower()}; transpose_b: {str(transpose_b).lower()}"

    def judge(a, b):
        a, b = (a.T if transpose_a else a), (b.T if transpose_b else b)
        if a.dtype == f:
            b = wide(b)
        return np.asarray(jax.lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=f,
                                              precision=jax.lax.Precision.HIGHEST))

    layer("MatMul", attrs, x.T.copy() if transpose_a else x, w.T.copy() if transpose_b else w, 1 if transpose_b else 0,
          0 if transpose_a else 1,
          lambda a, b: ordered(a.T if transpose_a else a, b.T if transpose_b else b),
          lambda s: s.T if transpose_a else s, judge)


def conv(kernel, stride, padding):
    x, w = rng.normal(0, 1, [2, 6, 6, 3]).astype(f), rng.normal(0, 1, [kernel, kernel, 3, 4]).astype(f)
    x[1] *= f(0.01)
    pads = (0, 0)
    if padding == "SAME":
        total = max((-(-6 // stride) - 1) * stride + kernel - 6, 0)
        pads = (total // 2, total - total // 2)

    def product(a, b):
        rows, shape = patches(a, kernel, stride, pads)
        return ordered(rows, b.reshape(-1, b.shape[-1])).reshape(shape + [b.shape[-1]])

    def judge(a, b):
        if a.dtype == f:
            b = wide(b)
        return np.asarray(jax.lax.conv_general_dilated(a, b, (stride, stride), (pads, pads),
                                                       dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                                       preferred_element_type=f,
                                                       precision=jax.lax.Precision.HIGHEST))

    attrs = f"T: float; padding: '{padding}'; strides: [1, {stride}, {stride}, 1]"
    layer("Conv2D", attrs, x, w, (0, 1, 2), (1, 2, 3), product, lambda s: s, judge)


for transpose_a in (False, True):
    for transpose_b in (False, True):
        matmul(transpose_a, transpose_b, False)
        matmul(transpose_a, transpose_b, True)
for kernel, stride, padding in [(3, 1, "SAME"), (3, 2, "SAME"), (2, 1, "VALID"), (1, 1, "VALID"), (3, 3, "VALID")]:
    conv(kernel, stride, padding)
g.save(__file__)
