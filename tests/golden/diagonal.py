"""MatrixDiagPartV3, MatrixDiagV3 and MatrixSetDiagV3 by the definition, element by element, over k and alignments."""
import numpy as np

from golden import Golden

g = Golden()
rng = np.random.default_rng(29)


def pack(matrix, low, high, align, padding):
    rows, columns = matrix.shape
    above, below = align.split("_")
    diagonals = [np.diagonal(matrix, k) for k in range(high, low - 1, -1)]
    length = max(len(d) for d in diagonals)
    out = np.full((len(diagonals), length), padding, dtype=matrix.dtype)
    for i, d in enumerate(diagonals):
        k = high - i
        left = (above == "LEFT" if k >= 0 else False) or (below == "LEFT" if k <= 0 else False)
        first = 0 if left else length - len(d)
        out[i, first:first + len(d)] = d
    return out if len(diagonals) > 1 else out[0]


for rows, columns in [(3, 3), (2, 5), (4, 2), (1, 3)]:
    for low, high in [(0, 0), (-1, 1), (-rows + 1, columns - 1), (0, columns - 1), (-rows + 1, 0), (1, 1), (-1, -1)]:
        if not (-rows < low <= high < columns):
            continue
        for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
            batch = np.arange(1, 2 * rows * columns + 1, dtype=np.float32).reshape(2, rows, columns)
            k = np.array([low, high] if low != high else low, dtype=np.int32)
            packed = np.stack([pack(m, low, high, align, np.float32(-1)) for m in batch])
            attrs = f"T: float; align: '{align}'"
            g.case("MatrixDiagPartV3", attrs, [batch, k, np.float32(-1)], [packed])
            band = np.stack([np.triu(np.tril(np.ones((rows, columns)), high), low)] * 2)
            size = [np.array(v, dtype=np.int32) for v in (rows, columns)]
            shortest = max(packed.shape[-1] - min(high, 0), 0), max(packed.shape[-1] + max(low, 0), 0)
            if rows == shortest[0] or columns == shortest[1]:
                g.case("MatrixDiagV3", attrs, [packed, k, size[0], size[1], np.float32(7)],
                       [np.where(band > 0, batch, np.float32(7)).astype(np.float32)])
            other = rng.normal(size=batch.shape).astype(np.float32)
            g.case("MatrixSetDiagV3", attrs, [other, packed, k], [np.where(band > 0, batch, other)])
for lower in (-1, 0, 1, 2):
    for upper in (-1, 0, 1, 3):
        x = rng.normal(size=(2, 3, 4)).astype(np.float32)
        i, j = np.indices((3, 4))
        keep = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
        g.case("MatrixBandPart", "T: float", [x, np.array(lower, dtype=np.int64), np.array(upper, dtype=np.int64)],
               [np.where(keep, x, np.float32(0))])
g.save(__file__)
