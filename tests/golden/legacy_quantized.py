"""TensorFlow 1's quantized ops by their formulas in numpy: ranges and single values in float64, arrays in float32,
qint32 to quint8 in integers; products and convolutions by torch in float64, in which the sums are exact."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden, T

rng = np.random.default_rng(71)
f32 = np.float32
LIMITS = {"qint8": (-128, 127), "quint8": (0, 255), "qint16": (-32768, 32767), "quint16": (0, 65535),
          "qint32": (-2 ** 31, 2 ** 31 - 1)}
BITS = {"qint8": 8, "quint8": 8, "qint16": 16, "quint16": 16, "qint32": 32}


def away(x):
    x = np.asarray(x)
    return (np.sign(x) * np.floor(np.abs(x) + x.dtype.type(0.5))).astype(x.dtype)


# ---- one value ----

def steps(kind, x, low, high):
    count = 2.0 ** BITS[kind]
    if f32(low) == f32(high):
        return LIMITS[kind][0]
    scale = count / (float(f32(high) - f32(low)) * (count / (count - 1)))
    return int(away(np.float64(f32(x)) * scale)) - int(away(np.float64(f32(low)) * scale)) + LIMITS[kind][0]


def quantized(kind, x, low, high):
    return min(max(steps(kind, x, low, high), LIMITS[kind][0]), LIMITS[kind][1])


def real(kind, q, low, high):
    count = 2.0 ** BITS[kind]
    if f32(low) == f32(high):
        return f32(low)
    scale = float(f32(high) - f32(low)) * (count / (count - 1)) / count
    base = float(away(np.float64(f32(low) / f32(scale)))) * float(f32(scale))
    return f32(base + (int(q) - LIMITS[kind][0]) * scale)


def product_range(a, b, kind):
    def step(span):
        k, low, high = span
        return (f32(high) - f32(low)) / f32(LIMITS[k][1] - LIMITS[k][0])
    one = step(a) * step(b)
    return one * f32(LIMITS[kind][0]), one * f32(LIMITS[kind][1])


# ---- arrays ----

def array_reals(kind, q, low, high):
    scale = f32(float(f32(high) - f32(low)) / (2.0 ** BITS[kind] - 1))
    base = f32(low) if f32(low) == f32(high) else away(f32(low) / scale) * scale
    return (base - f32(LIMITS[kind][0]) * scale) + q.astype(f32) * scale


def array_steps(kind, x, low, high):
    scale = f32(0) if f32(low) == f32(high) else f32((2.0 ** BITS[kind] - 1) / float(f32(high) - f32(low)))
    y = away(x * scale) - (away(f32(low) * scale) - f32(LIMITS[kind][0]))
    top = f32(2147483520) if kind == "qint32" else f32(LIMITS[kind][1])
    return np.minimum(np.maximum(y, f32(LIMITS[kind][0])), top).astype(np.int64)


def requantized(kind, q, span, to, expected):
    low, high = map(f32, span)
    a, b = map(f32, expected)
    if (kind, to) != ("qint32", "quint8"):
        return array_steps(to, array_reals(kind, q, low, high), a, b)
    width = b - a
    scale = shift = 0
    inverse = f32(0)
    if width != 0:
        scale = int(255.0 * 65536 * float(high - low) / float(width))
        shift = int(65536 * (float(a) * 255.0) / float(width))
        inverse = f32(255.0 / float(width))
    middle = int((f32(float(low + high) / 2.0) * inverse) * f32(65536))
    return np.array([min(max(((((int(v) * scale) >> 32) + middle - shift + 32768) >> 16), 0), 255)
                     for v in q.reshape(-1)], np.int64).reshape(q.shape)


def used(kind, q, low, high):
    least, most = (int(q.min()), int(q.max())) if q.size else (LIMITS[kind][1], LIMITS[kind][0])
    return min(f32(0), real(kind, least, low, high)), real(kind, most, low, high)


def draw(kind, shape, narrow=False):
    low, high = LIMITS[kind]
    if narrow:
        low, high = low // 4, high // 3
    return rng.integers(low, high, size=shape, endpoint=True)


SPANS = [(-1.0, 1.0), (-12.5, 3.25), (0.0, 6.0), (-0.3, 255.0)]
g = Golden()

for span in SPANS:
    for kind in ("qint32", "quint8", "qint8"):
        q = draw(kind, (3, 5), narrow=True)
        low, high = used(kind, q, *span)
        g.case("RequantizationRange", f"Tinput: {kind}", [T(kind, q), f32(span[0]), f32(span[1])], [low, high])
        for to in ("quint8", "qint8"):
            expected = used("qint32" if kind == "qint32" else kind, q, *span)
            y = requantized(kind, q, span, to, expected)
            g.case("QuantizeDownAndShrinkRange", f"Tinput: {kind}; out_type: {to}",
                   [T(kind, q), f32(span[0]), f32(span[1])], [T(to, y), expected[0], expected[1]])
            for expected in [(-1.5, 0.75), (0.0, 4.0), (-7.0, 7.0)]:
                y = requantized(kind, q, span, to, expected)
                g.case("Requantize", f"Tinput: {kind}; out_type: {to}",
                       [T(kind, q), f32(span[0]), f32(span[1]), f32(expected[0]), f32(expected[1])],
                       [T(to, y), f32(expected[0]), f32(expected[1])])
q = draw("qint32", (4,))
g.case("Requantize", "Tinput: qint32; out_type: quint8", [T("qint32", q), f32(-1), f32(1), f32(0), f32(0)],
       [T("quint8", requantized("qint32", q, (-1, 1), "quint8", (0, 0))), f32(0), f32(0)])
g.case("Requantize", "Tinput: qint32; out_type: quint8", [T("qint32", q), f32(-1), f32(1), f32(1), f32(2)], [],
       error="requested_output_min must be <= 0")
g.case("Requantize", "Tinput: qint32; out_type: quint8", [T("qint32", q), f32(-1), f32(1), f32(-1), f32(-2)], [],
       error="requested_output_max must be >=")
g.case("RequantizationRange", "Tinput: qint32", [T("qint32", q), f32([-1, 1]), f32(1)], [], error="2 elements (expected 1)")

for channels, negative, clip in [(3, True, 6.0), (4, False, 2.0), (1, True, 1000.0)]:
    q = draw("qint32", (2, 3, channels), narrow=True)
    if not negative:
        q = np.abs(q)
    low, high = -rng.uniform(1, 9, channels).astype(f32), rng.uniform(1, 9, channels).astype(f32)
    end = np.maximum(-low, high)
    most = max(end[c] * f32(np.abs(q[..., c]).max()) / f32(2 ** 31) for c in range(channels))
    most = min(most, f32(clip))
    g.case("RequantizationRangePerChannel", f"T: qint32; clip_value_max: {clip}", [T("qint32", q), low, high],
           [-most if negative else f32(0), most])
    for to in ("qint8", "quint8"):
        top = f32(LIMITS[to][1])
        scale = top * (end / most / f32(2 ** 31))
        y = np.clip(np.rint(q.astype(f32) * scale), *LIMITS[to]).astype(np.int64)
        g.case("RequantizePerChannel", f"T: qint32; out_type: {to}",
               [T("qint32", q), low, high, f32(-most), f32(most)], [T(to, y), f32(-most), f32(most)])

for kind in ("quint8", "qint32"):
    for span in SPANS:
        q = draw(kind, (2, 6))
        ends = [f32(span[0]), f32(span[1])]
        zero = quantized(kind, 0, *span)
        for op, limit in (("QuantizedRelu", None), ("QuantizedRelu6", 6.0), ("QuantizedReluX", 2.5)):
            y = np.maximum(q, zero)
            if limit is not None:
                y = np.minimum(y, quantized(kind, limit, *span))
            more = [f32(limit)] if op == "QuantizedReluX" else []
            g.case(op, f"Tinput: {kind}; out_type: {kind}", [T(kind, q)] + more + ends, [T(kind, y)] + ends)
q = draw("quint8", (4, 3))
for expected in ([2, 6], [-1], [3, -1, 2]):
    for kind in (np.int32, np.int64):
        g.case("QuantizedReshape", f"T: quint8; Tshape: {T.of(kind(0)).dtype}",
               [T("quint8", q), np.array(expected, kind), f32(-1), f32(2)], [T("quint8", q.reshape(expected)), f32(-1), f32(2)])
g.case("QuantizedReshape", "T: quint8", [T("quint8", q), np.array([5, -1], np.int32), f32(-1), f32(2)], [], error="do not match")

for kind in ("quint8", "qint8"):
    for span, other in [((-1, 1), (-0.25, 0.5)), ((0, 6), (-3, 1)), ((-20, 30), (0, 100))]:
        q, b = draw(kind, (3, 4)), draw(kind, (4,))
        end = max(f32(v) for v in (span[1], -span[0], other[1], -other[0])) * f32(2 ** 17)
        total = (array_steps("qint32", array_reals(kind, q, *span), -end, end) +
                 array_steps("qint32", array_reals(kind, b, *other), -end, end) + quantized("qint32", 0, -end, end))
        g.case("QuantizedBiasAdd", f"T1: {kind}; T2: {kind}; out_type: qint32",
               [T(kind, q), T(kind, b)] + [f32(v) for v in span + other], [T("qint32", total), -end, end])
g.case("QuantizedBiasAdd", "T1: quint8; T2: quint8; out_type: qint32",
       [T("quint8", q % 256), T("quint8", [1, 2, 3])] + [f32(v) for v in (0, 1, 0, 1)], [], error="bias has 3 elements")


def wrap(x):
    return (np.asarray(x).astype(np.int64) + 2 ** 31) % 2 ** 32 - 2 ** 31


for a, b in [((2, 3), (2, 3)), ((4, 2, 3), (3,)), ((), (3, 2)), ((3, 2), (1,)), ((2, 1, 3), (4, 1)), ((1,), ())]:
    for span, other in [((-1, 1), (-0.25, 0.5)), ((0, 6), (-3, 1))]:
        x, y = draw("quint8", a), draw("quint8", b)
        end = max(abs(f32(min(span[0], other[0]))), abs(f32(max(span[1], other[1])))) * f32(2 ** 14)

        def ladder(q, ends):
            if q.size == 1 and not ladder.done:
                ladder.done = True
                return np.array([quantized("qint32", real("quint8", v, *ends), -end, end) for v in q.reshape(-1)]).reshape(q.shape)
            first = steps("qint32", real("quint8", 0, *ends), -end, end)
            step = steps("qint32", real("quint8", 1, *ends), -end, end) - first
            return np.clip(first + q * step, -2 ** 31, 2 ** 31 - 1)
        ladder.done = False
        left = ladder(x, span)
        right = ladder(y, other)
        ends = [f32(v) for v in span + other]
        attrs = "T1: quint8; T2: quint8; Toutput: qint32"
        g.case("QuantizedAdd", attrs, [T("quint8", x), T("quint8", y)] + ends, [T("qint32", wrap(left + right)), -end, end])
        low, high = product_range(("quint8",) + span, ("quint8",) + other, "qint32")
        z = (x - steps("quint8", 0, *span)) * (y - steps("quint8", 0, *other))
        g.case("QuantizedMul", attrs, [T("quint8", x), T("quint8", y)] + ends, [T("qint32", z), low, high])
g.case("QuantizedAdd", attrs, [T("quint8", [1]), T("quint8", [1])] + [f32(v) for v in (1, 1, 0, 1)], [],
       error="max_x must be larger than min_x")
g.case("QuantizedMul", attrs, [T("quint8", [1, 2]), T("quint8", [1, 2, 3])] + [f32(v) for v in (0, 1, 0, 1)], [],
       error="Incompatible shapes")

for scales in (False, True):
    for span in SPANS[:3]:
        q = draw("quint8", (2, 2, 2, 3))
        vectors = [draw("quint8", (3,)) for _ in range(4)]
        ends = [span, (-1.0, 1.5), (0.5, 4.0), (-2.0, 2.0), (0.0, 3.0)]
        at = [np.array([real("quint8", v, *e) for v in vector], f32) for vector, e in zip(vectors, ends[1:])]
        epsilon = f32(0.001)
        factor = f32(1) / np.sqrt(at[1] + epsilon) * (at[3] if scales else f32(1))
        offset = -at[0] * factor + at[2]
        space = (-2.0 ** 20, 2.0 ** 20)
        one = quantized("qint32", 1, *space)
        y = np.zeros(q.shape, np.int64)
        for i in np.ndindex(*q.shape):
            x = quantized("qint32", real("quint8", q[i], *span), *space)
            product = int(wrap(x * quantized("qint32", factor[i[3]], *space)))
            y[i] = wrap(int(np.trunc(product / one)) + quantized("qint32", offset[i[3]], *space))
        inputs = [T("quint8", q), f32(span[0]), f32(span[1])]
        for vector, e in zip(vectors, ends[1:]):
            inputs += [T("quint8", vector), f32(e[0]), f32(e[1])]
        g.case("QuantizedBatchNormWithGlobalNormalization", "Tinput: quint8; out_type: qint32; variance_epsilon: 0.001; "
               f"scale_after_normalization: {str(scales).lower()}", inputs,
               [T("qint32", y), f32(space[0]), f32(space[1])])

for kind in ("quint8", "qint32"):
    for axis in (0, 1):
        shapes = [(2, 3), (2, 3), (4, 3)] if axis == 0 else [(2, 3), (2, 1), (2, 0)]
        spans = [(-1.0, 1.0), (-0.5, 4.0), (-1.0, 4.0)]
        parts = [draw(kind, s, narrow=kind == "qint32") for s in shapes]
        low, high = f32(-1), f32(4)
        if kind != "quint8":
            low = f32(-4)
        y = np.concatenate([p if e == (low, high) else array_steps(kind, array_reals(kind, p, *e), low, high)
                            for p, e in zip(parts, spans)], axis)
        ends = [f32(e[0]) for e in spans] + [f32(e[1]) for e in spans]
        values = [T(kind, p) for p in parts]
        g.case("QuantizedConcat", f"N: 3; T: {kind}", [np.int32(axis)] + values + ends, [T(kind, y), low, high])
        g.case("QuantizedConcatV2", f"N: 3; T: {kind}; Tidx: int64", values + [np.int64(axis)] + ends, [T(kind, y), low, high])
g.case("QuantizedConcat", "N: 2; T: quint8", [np.int32(2)] + [T("quint8", [[1]])] * 2 + [f32(0)] * 2 + [f32(1)] * 2, [],
       error="Expected concatenating dimensions in the range [0, 2), but got 2")
for shape, given in [((2, 3, 4, 5), None), ((1, 2, 2, 16), None), ((1, 3, 3, 2), (-1.5, 1.25)), ((1, 1, 1, 3), None)]:
    q = draw("quint8", shape)
    low, high = f32(-3), f32(5)
    scale = (high - low) / f32(255)
    x = q.astype(np.float64)
    mean = x.mean((1, 2), keepdims=True).astype(f32)
    centred = scale * (q.astype(f32) - mean)
    var = (centred.astype(np.float64) ** 2).mean((1, 2), keepdims=True).astype(f32)
    y = centred * (f32(1) / np.sqrt(var + f32(1e-5)))
    a, b = (f32(v) for v in given) if given else (y.min(), y.max())
    if b - a < f32(1e-3):
        b = a + f32(1e-3)
    attrs = f"T: quint8; output_range_given: true; given_y_min: {given[0]}; given_y_max: {given[1]}" if given else "T: quint8"
    g.case("QuantizedInstanceNorm", attrs, [T("quint8", q), low, high], [T("quint8", array_steps("quint8", y, a, b)), a, b])
g.case("QuantizedInstanceNorm", "T: quint8", [T("quint8", q), high, low], [], error="x_max must be larger than x_min")
g.save(__file__)

# ---- products ----

g = Golden()
KINDS = [("quint8", "quint8"), ("quint8", "qint8"), ("qint8", "qint8")]
for n, (ka, kb) in enumerate(KINDS):
    for ta, tb in [(False, False), (True, False), (False, True), (True, True)]:
        for span, other in [((-1, 1), (-0.25, 0.5)), ((0, 6), (-3, 1))]:
            a, b = draw(ka, (3, 7)), draw(kb, (7, 5))
            c = (a - steps(ka, 0, *span)) @ (b - steps(kb, 0, *other))
            low, high = product_range((ka,) + span, (kb,) + other, "qint32")
            g.case("QuantizedMatMul", f"T1: {ka}; T2: {kb}; transpose_a: {str(ta).lower()}; transpose_b: {str(tb).lower()}",
                   [T(ka, a.T if ta else a), T(kb, b.T if tb else b)] + [f32(v) for v in span + other],
                   [T("qint32", c), low, high])
g.case("QuantizedMatMul", "T1: quint8; T2: quint8", [T("quint8", [[1]]), T("quint8", [[1]])] + [f32(v) for v in (1, 0, 0, 1)],
       [], error="max_a must be larger than min_a")
g.case("QuantizedMatMul", "T1: quint8; T2: quint8", [T("quint8", [[1, 2]]), T("quint8", [[1]])] + [f32(v) for v in (0, 1, 0, 1)],
       [], error="inner sizes differ")

for ka, kb in KINDS:
    for padding in ("SAME", "VALID"):
        for stride, dilation, size in [(1, 1, (3, 3)), (2, 1, (3, 2)), (1, 2, (2, 2)), (2, 1, (1, 1))]:
            span, other = (-0.7, 2.0), (-1.5, 1.0)
            x, w = draw(ka, (2, 6, 5, 2)), draw(kb, size + (2, 3))
            centred = torch.tensor((x - steps(ka, 0, *span)).transpose(0, 3, 1, 2).astype(np.float64))
            kernel = torch.tensor((w - steps(kb, 0, *other)).transpose(3, 2, 0, 1).astype(np.float64))
            if padding == "SAME":
                pads = []
                for length, k in zip((6, 5), size):
                    total = max((-(-length // stride) - 1) * stride + (k - 1) * dilation + 1 - length, 0)
                    pads = [total // 2, total - total // 2] + pads
                centred = F.pad(centred, pads)
            y = F.conv2d(centred, kernel, stride=stride, dilation=dilation).numpy().transpose(0, 2, 3, 1)
            low, high = product_range((ka,) + span, (kb,) + other, "qint32")
            g.case("QuantizedConv2D", f"Tinput: {ka}; Tfilter: {kb}; strides: [1, {stride}, {stride}, 1]; padding: '{padding}'; "
                   f"dilations: [1, {dilation}, {dilation}, 1]",
                   [T(ka, x), T(kb, w)] + [f32(v) for v in span + other], [T("qint32", y.astype(np.int64)), low, high])

for kind in ("quint8", "qint8"):
    for padding in ("SAME", "VALID"):
        for k, stride in [(2, 2), (3, 1), (3, 2)]:
            x = draw(kind, (2, 5, 6, 2))
            rows = [(-(-n // stride) if padding == "SAME" else (n - k) // stride + 1) for n in (5, 6)]
            pads = [max((o - 1) * stride + k - n, 0) // 2 if padding == "SAME" else 0 for o, n in zip(rows, (5, 6))]
            tops = np.zeros((2, rows[0], rows[1], 2), np.int64)
            means = np.zeros_like(tops)
            for i in range(rows[0]):
                for j in range(rows[1]):
                    a, b = i * stride - pads[0], j * stride - pads[1]
                    window = x[:, max(a, 0):a + k, max(b, 0):b + k]
                    tops[:, i, j] = window.max((1, 2))
                    means[:, i, j] = np.trunc(window.sum((1, 2)) / (window.shape[1] * window.shape[2]))
            attrs = f"T: {kind}; ksize: [1, {k}, {k}, 1]; strides: [1, {stride}, {stride}, 1]; padding: '{padding}'"
            ends = [f32(-1), f32(2)]
            g.case("QuantizedMaxPool", attrs, [T(kind, x)] + ends, [T(kind, tops)] + ends)
            g.case("QuantizedAvgPool", attrs, [T(kind, x)] + ends, [T(kind, means)] + ends)
g.save(__file__.replace("legacy_quantized.py", "legacy_products.py"))
