"""Every pair of numeric dtypes against numpy, on values that the target can represent (C leaves others undefined)."""
import numpy as np

from golden import Golden, T, from_bfloat16, bfloat16_bits

g = Golden()
rng = np.random.default_rng(5)
KINDS = {"float": np.float32, "double": np.float64, "half": np.float16, "int8": np.int8, "uint8": np.uint8,
         "int16": np.int16, "uint16": np.uint16, "int32": np.int32, "uint32": np.uint32, "int64": np.int64,
         "uint64": np.uint64, "bool": np.bool_, "complex64": np.complex64, "complex128": np.complex128,
         "bfloat16": None}


def source(name, target):
    if name == "bfloat16":
        return from_bfloat16(bfloat16_bits(source("float", target)))
    kind = KINDS[name]
    if name == "bool":
        return rng.integers(0, 2, 12).astype(bool)
    if np.issubdtype(kind, np.integer):
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max, 12, dtype=kind, endpoint=True)
    low = -100 if target.startswith(("i", "f", "d", "h", "c", "b")) else 0
    return (rng.uniform(low, 120, 12)).astype(kind)


for a in KINDS:
    for b in KINDS:
        if a == b:
            continue
        x = source(a, b)
        real = x.real if a.startswith("complex") and not b.startswith("complex") and b != "bool" else x
        with np.errstate(over="ignore"):
            if b == "bfloat16":
                y = T("bfloat16", real.astype(np.float32))
            else:
                y = real.astype(KINDS[b])
        g.case("Cast", f"SrcT: {a}; DstT: {b}", [T("bfloat16", x) if a == "bfloat16" else x], [y])


def float8_values(name):
    """Every number of a format, by its definition: index is the byte."""
    bits = np.arange(256)
    fraction, bias = (2, 15) if name == "float8_e5m2" else (3, 7)
    exponent, low = (bits & 127) >> fraction, bits & ((1 << fraction) - 1)
    size = np.where(exponent == 0, low * 2.0 ** (1 - bias - fraction),
                    (1 + low / 2.0 ** fraction) * 2.0 ** (exponent.astype(float) - bias))
    if name == "float8_e5m2":
        size = np.where(exponent == 31, np.where(low == 0, np.inf, np.nan), size)
    else:
        size = np.where((bits & 127) == 127, np.nan, size)
    return np.where(bits >= 128, -size, size)


def to_float8(x, name):
    """By search among all numbers of the format and the one that would follow the largest."""
    values = float8_values(name)
    top = 57344.0 if name == "float8_e5m2" else 448.0
    beyond = 65536.0 if name == "float8_e5m2" else 480.0
    finite = [b for b in range(128) if np.isfinite(values[b])]
    out = []
    for v in np.asarray(x, np.float64).reshape(-1):
        sign = 128 if np.signbit(v) else 0
        if np.isnan(v):
            out.append(sign | (0x7e if name == "float8_e5m2" else 0x7f))
            continue
        grid = [(values[b], b) for b in finite] + [(beyond, finite[-1] + 1)]
        a = min(abs(v), beyond)
        best = min(grid, key=lambda p: (abs(p[0] - a), p[1] & 1))
        out.append(sign | best[1])
    return np.array(out, np.uint8).reshape(np.shape(x))


for name in ("float8_e5m2", "float8_e4m3fn"):
    every = np.arange(256).astype(np.uint8)
    values = float8_values(name)
    number = ~np.isnan(values)
    g.case("Cast", f"SrcT: {name}; DstT: float", [T(name, every[number])], [values[number].astype(np.float32)])
    g.case("Cast", f"SrcT: {name}; DstT: half", [T(name, every[number])], [values[number].astype(np.float16)])
    g.case("Cast", f"SrcT: {name}; DstT: double", [T(name, every[number])], [values[number]])
    g.case("Cast", f"SrcT: {name}; DstT: int32", [T(name, every[number & np.isfinite(values)])],
           [values[number & np.isfinite(values)].astype(np.int32)])
    g.case("Cast", f"SrcT: {name}; DstT: bfloat16", [T(name, every[number])], [T("bfloat16", values[number].astype(np.float32))])
    finite = np.unique(values[np.isfinite(values)])
    middles = (finite[1:] + finite[:-1]) / 2  # ties
    near = np.concatenate([middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf), finite,
                           [464.0, 464.1, 463.9, 61440.0, 61441.0, 61439.0, -464.0, -500.0, -61440.0, 1e300, -1e300, np.inf,
                            -np.inf, np.nan, 1e-30, -1e-30, 0.0, -0.0]])
    g.case("Cast", f"SrcT: double; DstT: {name}", [near], [T(name, to_float8(near, name))])
    g.case("Cast", f"SrcT: float; DstT: {name}", [near[:-18].astype(np.float32)],
           [T(name, to_float8(near[:-18].astype(np.float32), name))])
    g.case("Cast", f"SrcT: half; DstT: {name}", [middles.astype(np.float16)], [T(name, to_float8(middles.astype(np.float16), name))])
    whole = np.arange(-500, 500, 7).astype(np.int32)
    g.case("Cast", f"SrcT: int32; DstT: {name}", [whole], [T(name, to_float8(whole, name))])
e5, e4 = np.arange(0x7c).astype(np.uint8), np.arange(0x7f).astype(np.uint8)
g.case("Cast", "SrcT: float8_e5m2; DstT: float8_e4m3fn", [T("float8_e5m2", e5)],
       [T("float8_e4m3fn", to_float8(float8_values("float8_e5m2")[e5], "float8_e4m3fn"))])
g.case("Cast", "SrcT: float8_e4m3fn; DstT: float8_e5m2", [T("float8_e4m3fn", e4)],
       [T("float8_e5m2", to_float8(float8_values("float8_e4m3fn")[e4], "float8_e5m2"))])
g.save(__file__)
