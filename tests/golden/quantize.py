"""TensorFlow's quantizing ops, redone step by step in numpy float32."""
import numpy as np

from golden import Golden, T, from_bfloat16, EXACT

rng = np.random.default_rng(10)
g = Golden()
f32 = np.float32


def away(x):
    return np.sign(x) * np.floor(np.abs(x) + f32(0.5))


def fake(x, low, high, bits, narrow):
    if low == 0 and high == 0:
        return np.zeros_like(x)
    low, high = f32(low), f32(high)
    first, last = f32(1 if narrow else 0), f32(2**bits - 1)
    scale = (high - low) / (last - first)
    zero = first - low / scale
    zero = first if zero < first else last if zero > last else away(zero)
    low, high = (first - zero) * scale, (last - zero) * scale
    inverse = f32(1) / scale
    quant_zero = np.floor(-low * inverse + f32(0.5))
    return (np.floor((np.clip(x, low, high) - low) * inverse - quant_zero + f32(0.5)) * scale).astype(f32)


x = np.concatenate([rng.standard_normal(200) * 4, [0, -0.0, 6, -6, 100, -100]]).astype(f32)
for low, high in [(-6, 6), (0, 6), (-1.3, 4.7), (-0.1, 0.0), (0.2, 1.0), (-5, -1)]:
    for bits in (8, 4, 16, 2):
        for narrow in (False, True):
            attrs = f"num_bits: {bits}; narrow_range: {str(narrow).lower()}"
            y = fake(x, low, high, bits, narrow)
            g.case("FakeQuantWithMinMaxArgs", f"min: {low}; max: {high}; {attrs}", [x], [y])
            g.case("FakeQuantWithMinMaxVars", attrs, [x, f32(low), f32(high)], [y])
g.case("FakeQuantWithMinMaxVars", None, [x, f32(0), f32(0)], [np.zeros_like(x)])
g.case("FakeQuantWithMinMaxVars", "num_bits: 17", [x, f32(0), f32(1)], [], error="num_bits is 17")
x = (rng.standard_normal((3, 4, 5)) * 2).astype(f32)
lows, highs = np.array([-1, -2, 0, 0, -3], f32), np.array([1, 0.5, 4, 0, 2.2], f32)
for narrow in (False, True):
    y = np.stack([fake(x[..., c], lows[c], highs[c], 8, narrow) for c in range(5)], -1)
    g.case("FakeQuantWithMinMaxVarsPerChannel", f"narrow_range: {str(narrow).lower()}", [x, lows, highs], [y])
g.case("FakeQuantWithMinMaxVarsPerChannel", None, [x[0, 0], lows, highs],
       [np.array([fake(x[0, 0, c:c + 1], lows[c], highs[c], 8, False)[0] for c in range(5)], f32)])
g.case("FakeQuantWithMinMaxVarsPerChannel", None, [x, lows[:4], highs], [], error="min has 4")

LIMITS = {"qint8": (-128, 127), "quint8": (0, 255), "qint16": (-2**15, 2**15 - 1), "quint16": (0, 2**16 - 1),
          "qint32": (-2**31, 2**31 - 1)}


def quantizer(low, high, t, mode, narrow, least=f32(0.01)):
    lowest, highest = LIMITS[t]
    low, high = f32(low), f32(high)
    start = min(f32(0), low)
    end = max(f32(0), max(high, start + max(f32(1), abs(low), abs(high)) * least))
    if mode == "MIN_COMBINED":
        return start, end, f32(np.float64(highest - lowest) / np.float64(end - start))
    if mode == "SCALED":
        first = f32(lowest + (1 if narrow and lowest < 0 else 0))
        most = np.finfo(f32).max
        a = first / start if first * start > 0 else most
        b = f32(highest) / end if f32(highest) * end > 0 else most
        scale = min(a, b)
        return first / scale, f32(highest) / scale, scale
    count = np.float64(highest - lowest + 1)
    return start, end, f32(count / ((np.float64(end) - np.float64(start)) * (count / (count - 1))))


def quantize(x, low, high, t, mode, rounding, narrow):
    lowest, highest = LIMITS[t]
    start, end, scale = quantizer(low, high, t, mode, narrow)
    if mode == "MIN_FIRST":
        steps = away(x * scale) - away(start * scale) + f32(lowest)
    else:
        c = np.clip(x, start, end)
        if mode == "SCALED":
            steps = np.rint(c * scale) if rounding == "HALF_TO_EVEN" else away(c * scale)
        elif lowest < 0:
            steps = away((c - start) * scale - (f32(highest) - f32(lowest) + f32(1)) / f32(2))
        else:
            steps = np.trunc((c - start) * scale + f32(0.5))
    return np.clip(steps.astype(np.float64), lowest, highest).astype(np.int64), start, end


x = np.concatenate([rng.standard_normal(60) * 3, [0, 0.5, 1.5, -0.5, 100, -100]]).astype(f32)
for t in ("qint8", "quint8", "qint16", "quint16"):
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for low, high in [(-3, 5), (0, 6), (-1, -0.999), (0.5, 2)]:
            for rounding in ("HALF_TO_EVEN", "HALF_AWAY_FROM_ZERO") if mode == "SCALED" else ("HALF_AWAY_FROM_ZERO",):
                narrow = low == -3
                q, start, end = quantize(x, low, high, t, mode, rounding, narrow)
                attrs = f"T: {t}; mode: '{mode}'; round_mode: '{rounding}'; narrow_range: {str(narrow).lower()}"
                g.case("QuantizeV2", attrs, [x, f32(low), f32(high)], [T(t, q), f32(start), f32(end)])
x = rng.standard_normal((2, 3, 4)).astype(f32)
lows, highs = np.array([-1, -2, -0.5], f32), np.array([1.5, 1, 3], f32)
parts = [quantize(x[:, c], lows[c], highs[c], "qint8", "SCALED", "HALF_TO_EVEN", False) for c in range(3)]
g.case("QuantizeV2", "T: qint8; mode: 'SCALED'; round_mode: 'HALF_TO_EVEN'; axis: 1", [x, lows, highs],
       [T("qint8", np.stack([p[0] for p in parts], 1)), np.array([p[1] for p in parts], f32),
        np.array([p[2] for p in parts], f32)], infer="[2,?,4] [3] [3] -> [2,?,4] [?] [?]")
g.case("QuantizeV2", "T: qint8", [x, f32(2), f32(1)], [], error="below min_range")


def dequantize(q, low, high, t, mode, narrow):
    lowest, highest = LIMITS[t]
    low, high, q = f32(low), f32(high), q.astype(f32)
    if mode == "SCALED":
        b = high / f32(highest)
        return q * (b if lowest == 0 else max(low / f32(lowest + narrow), b))
    if mode == "MIN_COMBINED":
        scale = (high - low) / (f32(highest) - f32(lowest))
        half = f32(0) if lowest == 0 else (f32(highest) - f32(lowest) + f32(1)) / f32(2)
        return (q + half) * scale + low
    scale = f32((np.float64(high) - np.float64(low)) / np.float64(highest - lowest))
    return (q - f32(lowest)) * scale + away(low / scale) * scale


for t in ("qint8", "quint8", "qint16", "quint16", "qint32"):
    lowest, highest = LIMITS[t]
    q = np.concatenate([rng.integers(lowest, highest, 40), [lowest, highest, max(0, lowest)]])
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for low, high in [(-3, 5), (0, 6)]:
            for narrow in (False, True):
                g.case("Dequantize", f"T: {t}; mode: '{mode}'; narrow_range: {str(narrow).lower()}", [T(t, q), f32(low), f32(high)],
                       [dequantize(q, low, high, t, mode, narrow).astype(f32)], (1e-6, 1e-6, 0))
q = rng.integers(-128, 128, (2, 3, 2))
g.case("Dequantize", "T: qint8; mode: 'SCALED'; axis: 1", [T("qint8", q), lows, highs],
       [np.stack([dequantize(q[:, c], lows[c], highs[c], "qint8", "SCALED", 0) for c in range(3)], 1).astype(f32)])
g.case("Dequantize", "T: qint8; dtype: bfloat16", [T("qint8", q), f32(-1), f32(1)],
       [T("bfloat16", dequantize(q, -1, 1, "qint8", "MIN_COMBINED", 0))])
g.case("Dequantize", "T: qint8; axis: 3", [T("qint8", q), lows, highs], [], error="axis 3")


def round_trip(x, low, high, given, signed, bits, narrow, up, kind):
    half = 2**(bits - 1)
    first = kind(((1 - half) if narrow else -half) if signed else 0)
    last = kind(half - 1 if signed else 2**bits - 1)
    low, high = (kind(low), kind(high)) if given else (x.min(), x.max())
    most = np.finfo(kind).max
    a = first / low if first * low > 0 else most
    b = last / high if last * high > 0 else most
    if a < b:
        scale, inverse = a, low / first
        high = last * inverse
    else:
        scale, inverse = b, high / last
        low = first * inverse
    steps = (np.clip(x, low, high) if given else x) * scale
    return ((np.floor(steps + kind(0.5)) if up else np.rint(steps)) * inverse).astype(kind)


for kind, t in ((f32, "float"), (np.float64, "double")):
    x = np.concatenate([rng.standard_normal(50) * 2, [0, 1.5, -2.5, 3]]).astype(kind)
    for signed in (True, False):
        for given in (True, False):
            for narrow in (True, False):
                for bits, up in ((8, False), (8, True), (4, False)):
                    y = round_trip(x, -2, 3, given, signed, bits, narrow, up, kind)
                    b = lambda v: str(v).lower()
                    common = f"T: {t}; signed_input: {b(signed)}; range_given: {b(given)}; narrow_range: {b(narrow)}"
                    mode = f"; num_bits: {bits}; round_mode: '{'HALF_UP' if up else 'HALF_TO_EVEN'}'"
                    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
                        g.case(op, common + mode, [x, kind(-2), kind(3)], [y])
                    if not up:
                        g.case("QuantizeAndDequantizeV3", common, [x, kind(-2), kind(3), np.int32(bits)], [y])
x = rng.standard_normal((3, 2, 4)).astype(f32)
lows, highs = np.array([-1, -2], f32), np.array([1.5, 1], f32)
for given in (True, False):
    y = np.stack([round_trip(x[:, c], lows[c], highs[c], given, True, 8, False, False, f32) for c in range(2)], 1)
    g.case("QuantizeAndDequantizeV2", f"T: float; axis: 1; range_given: {str(given).lower()}", [x, lows, highs], [y])
g.case("QuantizeAndDequantizeV2", "T: float; range_given: true", [x, f32(2), f32(1)], [], error="above input_max")

g.save(__file__)
