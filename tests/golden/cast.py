"""Every pair of numeric dtypes against numpy, on values that the target holds (beyond that C leaves it open)."""
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
g.save(__file__)
