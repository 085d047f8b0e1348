"""The uniform-quantized ops in numpy: integers exactly, the fixed-point multiplier by Python's integers."""
import math

import numpy as np

from golden import Golden, T
from xla import convolve, message, quoted  # noqa: the reference convolution and the wire writer

rng = np.random.default_rng(11)
g = Golden()
f32 = np.float32
I32 = (-2**31, 2**31 - 1)


def limits(prefix, axis, low, high):
    return f"{prefix}quantization_axis: {axis}; {prefix}quantization_min_val: {low}; {prefix}quantization_max_val: {high}"


def multiplier(scale):
    m, shift = math.frexp(scale)
    q = int(math.floor(m * 2**31 + 0.5))
    if q == 2**31:
        q, shift = q // 2, shift + 1
    if shift < -31:
        q, shift = 0, 0
    if shift > 30:
        q, shift = 2**31 - 1, 30
    return q, shift


def scaled(x, scale):
    q, shift = multiplier(scale)
    total = 31 - shift
    v = (int(x) * q + (1 << (total - 1))) >> total
    return min(max(v, I32[0]), I32[1])


def clamp(v, low, high):
    return min(max(v, low), high)


def wrap(v):
    return (int(v) + 2**31) % 2**32 - 2**31


# Element by element.
x = np.concatenate([rng.standard_normal(50) * 5, [0, 0.25, -0.25, 1e9, -1e9]]).astype(f32)
for t, low, high in (("qint8", -128, 127), ("qint8", -127, 127), ("quint8", 0, 255), ("qint32", *I32)):
    for scale, zero in ((0.05, 3), (0.5, -7), (1.7, 0)):
        steps = np.floor(x * (f32(1) / f32(scale)) + f32(0.5)).astype(np.float64)
        q = np.clip(np.clip(steps, *I32) + zero, low, high).astype(np.int64)
        attrs = "Tin: float; Tout: " + t + "; " + limits("", -1, low, high)
        g.case("UniformQuantize", attrs, [x, f32(scale), np.int32(zero)], [T(t, q)])
        back = ((q - zero).astype(np.int64).astype(f32) * f32(scale)).astype(f32)
        g.case("UniformDequantize", f"Tin: {t}; Tout: float; " + limits("", -1, low, high), [T(t, q), f32(scale), np.int32(zero)], [back])
x = rng.standard_normal((2, 3, 4)).astype(f32)
scales, zeros = np.array([0.1, 0.02, 0.3], f32), np.array([1, -2, 5], np.int32)
q = np.clip(np.floor(x * (f32(1) / scales)[:, None] + f32(0.5)) + zeros[:, None], -128, 127).astype(np.int64)
g.case("UniformQuantize", "Tin: float; Tout: qint8; " + limits("", 1, -128, 127), [x, scales, zeros], [T("qint8", q)])
g.case("UniformDequantize", "Tin: qint8; Tout: float; " + limits("", 1, -128, 127), [T("qint8", q), scales, zeros],
       [((q - zeros[:, None]).astype(f32) * scales[:, None]).astype(f32)])
g.case("UniformQuantize", "Tin: float; Tout: qint8; " + limits("", 1, -128, 127), [x, scales[:2], zeros], [], error="2 scales")
g.case("UniformQuantize", "Tin: float; Tout: qint8; " + limits("", -1, -128, 127), [x, f32(-1), np.int32(0)], [], error="scale -1")


def requantize(q, axis_in, axis_out, s_in, z_in, s_out, z_out, low, high):
    out = np.zeros(q.shape, np.int64)
    for at in np.ndindex(q.shape):
        si, zi = (s_in[at[axis_in]], z_in[at[axis_in]]) if axis_in >= 0 else (s_in, z_in)
        so, zo = (s_out[at[axis_out]], z_out[at[axis_out]]) if axis_out >= 0 else (s_out, z_out)
        out[at] = clamp(scaled(wrap(int(q[at]) - int(zi)), float(si) / float(so)) + int(zo), low, high)
    return out


for t, values in (("qint32", rng.integers(-100000, 100000, (4, 3, 5))), ("qint8", rng.integers(-128, 128, (4, 3, 5)))):
    for axis_in, axis_out in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
        s_in = np.array([0.001, 0.02, 0.3], f32) if axis_in >= 0 else f32(0.0021)
        z_in = np.array([1, -2, 3], np.int32) if axis_in >= 0 else np.int32(4)
        s_out = np.array([0.1, 0.07, 1.2], f32) if axis_out >= 0 else f32(0.9)
        z_out = np.array([0, -9, 3], np.int32) if axis_out >= 0 else np.int32(-3)
        y = requantize(values, axis_in, axis_out, s_in, z_in, s_out, z_out, -128, 127)
        g.case("UniformRequantize", f"Tin: {t}; Tout: qint8; " + limits("input_", axis_in, *I32) + "; " +
               limits("output_", axis_out, -128, 127), [T(t, values), s_in, z_in, s_out, z_out], [T("qint8", y)])
q = rng.integers(-1000, 1000, (3, 4))
g.case("UniformQuantizedClipByValue", "T: qint32; " + limits("", -1, *I32),
       [T("qint32", q), T("qint32", -100), T("qint32", 300), f32(0.1), np.int32(0)], [T("qint32", np.clip(q, -100, 300))])
low, high = np.array([-50, 0, -900, 5]), np.array([60, 500, 900, 5])
g.case("UniformQuantizedClipByValue", "T: qint32; " + limits("", 1, *I32),
       [T("qint32", q), T("qint32", low), T("qint32", high), np.ones(4, f32), np.zeros(4, np.int32)],
       [T("qint32", np.clip(q, low, high))])
g.case("UniformQuantizedClipByValue", "T: qint32; " + limits("", 1, *I32),
       [T("qint32", q), T("qint32", low[:2]), T("qint32", high), np.ones(4, f32), np.zeros(4, np.int32)], [], error="min has 2")

# Addition.
for shape_b, axes in (((2, 3, 4), (-1, -1, -1)), ((4,), (2, 0, 2)), ((4,), (-1, -1, 2)), ((1, 3, 1), (-1, -1, -1))):
    a, b = rng.integers(-5000, 5000, (2, 3, 4)), rng.integers(-5000, 5000, shape_b)

    def pair(axis, base):
        return (np.linspace(base, base * 2, 4).astype(f32), np.arange(4, dtype=np.int32)) if axis >= 0 else (f32(base), np.int32(2))

    (sa, za), (sb, zb), (so, zo) = (pair(axes[i], v) for i, v in enumerate((0.01, 0.03, 0.02)))
    bb = np.broadcast_to(b, a.shape)
    y = np.zeros(a.shape, np.int64)
    for at in np.ndindex(a.shape):
        pick = lambda v, axis: v if np.ndim(v) == 0 else v[at[2]]
        left = scaled(int(a[at]) - int(pick(za, axes[0])), float(pick(sa, axes[0])) / float(pick(so, axes[2])))
        right = scaled(int(bb[at]) - int(pick(zb, axes[1])), float(pick(sb, axes[1])) / float(pick(so, axes[2])))
        y[at] = clamp(left + right + int(pick(zo, axes[2])), -6000, 6000)
    g.case("UniformQuantizedAdd", "T: qint32; " + limits("lhs_", axes[0], *I32) + "; " + limits("rhs_", axes[1], *I32) + "; " +
           limits("output_", axes[2], -6000, 6000), [T("qint32", a), T("qint32", b), sa, za, sb, zb, so, zo], [T("qint32", y)])

# Products.
THREE = lambda r, o: limits("lhs_", -1, -128, 127) + "; " + limits("rhs_", r, -128, 127) + "; " + limits("output_", o, *I32)


def finish(acc, s_l, s_r, s_o, z_o):
    out = np.zeros(acc.shape, np.int64)
    for at in np.ndindex(acc.shape):
        c = at[-1]
        sr, so, zo = (v if np.ndim(v) == 0 else v[c] for v in (s_r, s_o, z_o))
        out[at] = clamp(scaled(wrap(acc[at]), float(s_l) * float(sr) / float(so)) + int(zo), *I32)
    return out


for channels, out_channels in ((False, False), (True, False), (True, True)):
    a, b = rng.integers(-128, 128, (5, 33)), rng.integers(-127, 128, (33, 18))
    s_r = rng.uniform(0.001, 0.1, 18).astype(f32) if channels else f32(0.03)
    z_r = rng.integers(-3, 4, 18).astype(np.int32) if channels else np.int32(2)
    s_o = rng.uniform(0.001, 0.1, 18).astype(f32) if out_channels else f32(0.0017)
    z_o = rng.integers(-30, 40, 18).astype(np.int32) if out_channels else np.int32(0)
    acc = (a + 5) @ (b - z_r)
    g.case("UniformQuantizedDot", "Tin: qint8; Tout: qint32; " + THREE(1 if channels else -1, 1 if out_channels else -1),
           [T("qint8", a), T("qint8", b), f32(0.02), np.int32(-5), s_r, z_r, s_o, z_o],
           [T("qint32", finish(acc, f32(0.02), s_r, s_o, z_o))])


def asymmetric(x):
    """Codes without zero point, and the scale, of one image."""
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = (high - low) / 255
    if scale == 0:
        return np.zeros(x.shape, np.int64), f32(1)
    low_is_closer = 128 + abs(low / scale) < 127 + abs(high / scale)
    zero = -128 - low / scale if low_is_closer else 127 - high / scale
    zero = int(clamp(math.floor(abs(zero) + 0.5) * (1 if zero >= 0 else -1), -128, 127))
    q = np.floor(x * (f32(1) / f32(scale)) + f32(0.5)).astype(np.int64) + zero
    return np.clip(q, -128, 127) - zero, f32(scale)


for channels in (False, True):
    x, b = rng.standard_normal((4, 20)).astype(f32), rng.integers(-127, 128, (20, 7))
    x[2] = 0
    s_r = rng.uniform(0.001, 0.1, 7).astype(f32) if channels else f32(0.03)
    z_r = rng.integers(-3, 4, 7).astype(np.int32) if channels else np.int32(1)
    y = []
    for row in x:
        q, scale = asymmetric(row)
        y.append((q @ (b - z_r)).astype(f32) * scale * s_r)
    g.case("UniformQuantizedDotHybrid", "Tlhs: float; Trhs: qint8; Tout: float; " + limits("rhs_", 1 if channels else -1, -128, 127),
           [x, T("qint8", b), s_r, z_r], [np.array(y, f32)], (0, 1e-6, 0))
g.case("UniformQuantizedDotHybrid", "Tlhs: float; Trhs: qint8; Tout: float; " + limits("rhs_", -1, -128, 127),
       [x, T("qint8", b[:5]), f32(1), np.int32(0)], [], error="times")


# Convolutions; padding is the left zero point, so the difference is zero there.
def uniform_dims(lhs, rhs, out):
    spatial = sorted(c for c in lhs if c.isdigit())
    return quoted(message({1: lhs.index("b"), 2: lhs.index("f"), 3: [lhs.index(c) for c in spatial], 4: rhs.index("i"),
                           5: rhs.index("o"), 6: [rhs.index(c) for c in spatial], 7: out.index("b"), 8: out.index("f"),
                           9: [out.index(c) for c in spatial]}))


def same(size, kernel, stride, lhs_dilation, rhs_dilation):
    size, kernel = (size - 1) * lhs_dilation + 1, (kernel - 1) * rhs_dilation + 1
    total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return total // 2, total - total // 2


CONVS = [("b01f", "01io", "b01f", (2, 6, 7, 4), (3, 3, 4, 5), (1, 1), "SAME", (1, 1), (1, 1), 1),
         ("b01f", "01io", "b01f", (1, 7, 6, 4), (3, 2, 2, 6), (2, 1), "VALID", (1, 1), (1, 2), 2),
         ("bf01", "oi01", "bf01", (1, 3, 5, 5), (4, 3, 2, 2), (2, 2), [(1, 0), (2, 1)], (2, 1), (1, 1), 1),
         ("b01f", "01io", "b01f", (1, 5, 5, 6), (3, 3, 1, 6), (1, 1), "SAME", (1, 1), (1, 1), 6)]
for lhs, rhs, out, xs, ws, strides, padding, ld, rd, groups in CONVS:
    sp = [(xs[lhs.index(str(i))], ws[rhs.index(str(i))]) for i in range(2)]
    pad = [same(*sp[i], strides[i], ld[i], rd[i]) for i in range(2)] if padding == "SAME" else \
        [(0, 0)] * 2 if padding == "VALID" else padding
    dims = "''" if lhs == "bf01" else uniform_dims(lhs, rhs, out)
    common = f"window_strides: {list(strides)}; lhs_dilation: {list(ld)}; rhs_dilation: {list(rd)}; feature_group_count: {groups}; " \
        f"dimension_numbers: {dims}; padding: '{padding if isinstance(padding, str) else 'EXPLICIT'}'" + \
        ("" if isinstance(padding, str) else f"; explicit_padding: {[v for p in pad for v in p]}") + "; "
    cout = ws[rhs.index("o")]
    for channels in (False, True):
        a, b = rng.integers(-128, 128, xs), rng.integers(-127, 128, ws)
        s_r = rng.uniform(0.001, 0.1, cout).astype(f32) if channels else f32(0.03)
        z_r = np.zeros(cout, np.int32) if channels else np.int32(1)
        bz = b - (z_r if not channels else 0)
        acc = convolve(a + 3, bz, lhs, rhs, out, strides, pad, ld, rd, groups).astype(np.int64)
        axis = out.index("f")
        y = np.moveaxis(finish(np.moveaxis(acc, axis, -1), f32(0.05), s_r, f32(0.004), np.int32(7)), -1, axis)
        r_axis = rhs.index("o") if channels else -1
        g.case("UniformQuantizedConvolution", "Tin: qint8; Tout: qint32; " + common + THREE(r_axis, -1),
               [T("qint8", a), T("qint8", b), f32(0.05), np.int32(-3), s_r, z_r, f32(0.004), np.int32(7)], [T("qint32", y)])
        x = rng.standard_normal(xs).astype(f32)
        parts = []
        for image in np.split(x, xs[lhs.index("b")], lhs.index("b")):
            q, scale = asymmetric(image)
            part = convolve(q, bz, lhs, rhs, out, strides, pad, ld, rd, groups)
            part = np.moveaxis(part, axis, -1).astype(f32) * scale * s_r
            parts.append(np.moveaxis(part, -1, axis))
        g.case("UniformQuantizedConvolutionHybrid", "Tlhs: float; Trhs: qint8; Tout: float; " + common + limits("rhs_", r_axis, -128, 127),
               [x, T("qint8", b), s_r, z_r], [np.concatenate(parts, out.index("b")).astype(f32)], (1e-6, 1e-6, 0))
g.save(__file__)
