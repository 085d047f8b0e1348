"""Crops and scaling with translation by numpy from the formulas."""
import numpy as np

from golden import Golden

rng = np.random.default_rng(8)
g = Golden()
FLOATS = (3e-5, 1e-5, 0)
f32 = np.float32


def crop(image, boxes, index, size, method, outside):
    h, w = image.shape[1:3]
    out = np.full((len(boxes), *size, image.shape[3]), outside, np.float64)
    for b, (y1, x1, y2, x2) in enumerate(boxes.astype(np.float64)):
        for i in range(size[0]):
            y = y1 * (h - 1) + i * (y2 - y1) * (h - 1) / (size[0] - 1) if size[0] > 1 else 0.5 * (y1 + y2) * (h - 1)
            for j in range(size[1]):
                x = x1 * (w - 1) + j * (x2 - x1) * (w - 1) / (size[1] - 1) if size[1] > 1 else 0.5 * (x1 + x2) * (w - 1)
                if not (0 <= y <= h - 1 and 0 <= x <= w - 1):
                    continue
                im = image[index[b]].astype(np.float64)
                if method == "nearest":
                    out[b, i, j] = im[int(np.floor(y + 0.5)), int(np.floor(x + 0.5))]
                    continue
                t, l, ty, tx = int(np.floor(y)), int(np.floor(x)), y - np.floor(y), x - np.floor(x)
                d, r = int(np.ceil(y)), int(np.ceil(x))
                out[b, i, j] = (im[t, l] * (1 - tx) + im[t, r] * tx) * (1 - ty) + (im[d, l] * (1 - tx) + im[d, r] * tx) * ty
    return out.astype(f32)


image = rng.standard_normal((2, 7, 9, 3)).astype(f32)
boxes = np.array([[0.1, 0.15, 0.83, 0.9], [-0.2, 0.3, 0.55, 1.25], [0.9, 0.8, 0.15, 0.12], [0.31, 0.37, 0.31, 0.37]], f32)
index = np.array([0, 1, 1, 0], np.int32)
for size in [(4, 5), (1, 1), (1, 6), (9, 3)]:
    for method in ("bilinear", "nearest"):
        g.case("CropAndResize", f"T: float; method: '{method}'; extrapolation_value: 0.5",
               [image, boxes, index, np.array(size, np.int32)], [crop(image, boxes, index, size, method, 0.5)], FLOATS)
small = rng.integers(0, 256, (1, 4, 4, 2)).astype(np.uint8)
g.case("CropAndResize", "T: uint8", [small, boxes[:1], np.zeros(1, np.int32), np.array([3, 3], np.int32)],
       [crop(small, boxes[:1], [0], (3, 3), "bilinear", 0)], (1e-2, 1e-5, 0), infer="[1,4,4,2] [?,4] [?] [2]* -> [?,3,3,2]")
g.case("CropAndResize", "T: float", [image, boxes, np.array([0, 2, 0, 0], np.int32), np.array([2, 2], np.int32)], [],
       error="box_ind[1] is 2")
g.case("CropAndResize", "T: float", [image, boxes, index[:2], np.array([2, 2], np.int32)], [], error="box_ind has 2")

KERNELS = {
    "lanczos1": (1, lambda x: np.sinc(x) * np.sinc(x)),
    "lanczos3": (3, lambda x: np.sinc(x) * np.sinc(x / 3)),
    "lanczos5": (5, lambda x: np.sinc(x) * np.sinc(x / 5)),
    "gaussian": (1.5, lambda x: np.exp(-x * x / 0.5) if x < 1.5 else 0.0),
    "box": (1, lambda x: 1.0 if x < 0.5 else 0.5 if x == 0.5 else 0.0),
    "triangle": (1, lambda x: max(0.0, 1 - x)),
    "keyscubic": (2, lambda x: ((-0.5 * x + 2.5) * x - 4) * x + 2 if x >= 1 else (1.5 * x - 2.5) * x * x + 1),
    "mitchellcubic": (2, lambda x: ((-7 * x / 18 + 2) * x - 10 / 3) * x + 16 / 9 if x >= 1
                      else (7 * x / 6 - 2) * x * x + 8 / 9),
}


def matrix(n_in, n_out, scale, shift, antialias, name):
    radius, weight = KERNELS[name]
    m = np.zeros((n_out, n_in))
    stretch = max(1 / scale, 1) if antialias else 1
    for i in range(n_out):
        p = (i + 0.5) / scale - shift / scale
        if not 0 <= p <= n_in:
            continue
        for j in range(max(0, int(np.ceil(p - radius * stretch - 0.5))), min(n_in - 1, int(np.floor(p + radius * stretch - 0.5))) + 1):
            d = abs(j + 0.5 - p) / stretch
            m[i, j] = weight(d) if d <= radius else 0
        if abs(m[i].sum()) > 1e-30:
            m[i] /= m[i].sum()
    return m


for name in KERNELS:
    for scale, shift, size, antialias in [((1.7, 0.6), (0.3, -0.7), (9, 5), True), ((0.45, 0.4), (0.2, 0.17), (3, 4), False),
                                          ((0.43, 1.3), (1.13, 2.37), (5, 8), True)]:
        x = rng.standard_normal((2, 7, 9, 2)).astype(f32)
        y = np.einsum("yh,bhwc,xw->byxc", matrix(7, size[0], f32(scale[0]), f32(shift[0]), antialias, name), x.astype(np.float64),
                      matrix(9, size[1], f32(scale[1]), f32(shift[1]), antialias, name)).astype(f32)
        g.case("ScaleAndTranslate", f"T: float; kernel_type: '{name}'; antialias: {str(antialias).lower()}",
               [x, np.array(size, np.int32), np.array(scale, f32), np.array(shift, f32)], [y], (1e-4, 1e-4, 0))
x = np.zeros((1, 2, 2, 1), f32)
g.case("ScaleAndTranslate", "T: float; kernel_type: 'sinc'", [x, np.array([2, 2], np.int32), np.ones(2, f32), np.zeros(2, f32)], [],
       error="kernel_type 'sinc'")
g.case("ScaleAndTranslate", "T: float", [x, np.array([2, 2], np.int32), np.zeros(2, f32), np.zeros(2, f32)], [], error="scale 0")
g.save(__file__)
