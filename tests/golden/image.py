"""Colours by Python's colorsys, contrast and patches by numpy."""
import colorsys

import numpy as np

from golden import Golden, T

rng = np.random.default_rng(12)
g = Golden()
f32 = np.float32
CLOSE = (2e-6, 2e-6, 0)
rgb = np.concatenate([rng.uniform(0, 1, (20, 3)), [[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.2], [0.2, 0.5, 0.5], [0.5, 0.2, 0.5],
                                                   [1, 0, 0], [0, 1, 0], [0, 0, 1]]]).astype(f32)
hsv = np.array([colorsys.rgb_to_hsv(*map(float, p)) for p in rgb], f32)
back = np.array([colorsys.hsv_to_rgb(*map(float, p)) for p in hsv], f32)
for shape in ((28, 3), (1, 7, 4, 3)):
    g.case("RGBToHSV", "T: float", [rgb.reshape(shape)], [hsv.reshape(shape)], CLOSE)
    g.case("HSVToRGB", "T: float", [hsv.reshape(shape)], [back.reshape(shape)], CLOSE)
wide = rng.uniform(0, 1, (5, 3))
g.case("RGBToHSV", "T: double", [wide], [np.array([colorsys.rgb_to_hsv(*p) for p in wide])], (1e-12, 1e-12, 0))
g.case("HSVToRGB", "T: double", [wide], [np.array([colorsys.hsv_to_rgb(*p) for p in wide])], (1e-12, 1e-12, 0))
half = wide.astype(np.float16)
g.case("RGBToHSV", "T: half", [half], [np.array([colorsys.rgb_to_hsv(*map(float, p)) for p in half]).astype(np.float16)], (1e-3, 1e-3, 0))
for op in ("RGBToHSV", "HSVToRGB"):
    g.case(op, "T: float", [rgb[:, :2]], [], error="3 channels")

for delta in (0.0, 0.3, -0.45, 1.0, -1.0):
    want = [colorsys.hsv_to_rgb((h + delta) % 1.0, s, v) for h, s, v in (colorsys.rgb_to_hsv(*map(float, p)) for p in rgb)]
    g.case("AdjustHue", "T: float", [rgb.reshape(2, 7, 2, 3), f32(delta)], [np.array(want, f32).reshape(2, 7, 2, 3)], CLOSE)
for scale in (0.0, 0.5, 1.0, 3.0):
    want = [colorsys.hsv_to_rgb(h, min(1.0, s * scale), v) for h, s, v in (colorsys.rgb_to_hsv(*map(float, p)) for p in rgb)]
    g.case("AdjustSaturation", "T: float", [rgb.reshape(4, 7, 3), f32(scale)], [np.array(want, f32).reshape(4, 7, 3)], CLOSE)
    g.case("AdjustSaturation", "T: half", [half.reshape(1, 5, 3), f32(scale)],
           [np.array([colorsys.hsv_to_rgb(h, min(1.0, s * scale), v) for h, s, v in
                      (colorsys.rgb_to_hsv(*map(float, p)) for p in half)]).astype(np.float16).reshape(1, 5, 3)],
           (1e-3, 1e-3, 0))
for op in ("AdjustHue", "AdjustSaturation"):
    g.case(op, "T: float", [rgb, f32(1)], [], error="at least 3-D")
    g.case(op, "T: float", [rgb[None, :, :2], f32(1)], [], error="3 channels")
    g.case(op, "T: float", [rgb[None], np.zeros(1, f32)], [], error="scalar")

for shape in ((4, 5, 3), (2, 3, 4, 1), (1, 2, 2, 2, 2)):
    for factor in (0.5, 2.0, -1.0):
        x = rng.standard_normal(shape).astype(f32)
        mean = x.astype(np.float64).mean((-3, -2), keepdims=True)
        g.case("AdjustContrastv2", "T: float", [x, f32(factor)], [((x - mean) * factor + mean).astype(f32)], CLOSE)
x = rng.standard_normal((2, 3, 3)).astype(np.float16)
mean = x.astype(np.float64).mean((0, 1))
g.case("AdjustContrastv2", "T: half", [x, f32(1.5)], [((x - mean) * 1.5 + mean).astype(np.float16)], (5e-3, 5e-3, 0))
g.case("AdjustContrastv2", "T: float", [np.zeros((2, 3), f32), f32(1)], [], error="rank 2")


def patches(x, k, s, r, padding):
    n, h, w, c = x.shape
    reach = [(k[i] - 1) * r[i] + 1 for i in range(2)]
    size = (h, w)
    if padding == "SAME":
        out = [-(-size[i] // s[i]) for i in range(2)]
        total = [max(0, (out[i] - 1) * s[i] + reach[i] - size[i]) for i in range(2)]
    else:
        out, total = [(size[i] - reach[i]) // s[i] + 1 for i in range(2)], [0, 0]
    x = np.pad(x, [(0, 0)] + [(t // 2, t - t // 2) for t in total] + [(0, 0)])
    y = np.zeros((n, *out, k[0], k[1], c), x.dtype)
    for a in range(k[0]):
        for b in range(k[1]):
            y[:, :, :, a, b] = x[:, a * r[0]:, b * r[1]:][:, :out[0] * s[0]:s[0], :out[1] * s[1]:s[1]][:, :out[0], :out[1]]
    return y.reshape(n, *out, -1)


for k, s, r in (((3, 2), (1, 1), (1, 1)), ((2, 2), (2, 3), (1, 1)), ((3, 3), (1, 2), (2, 1)), ((1, 1), (2, 2), (1, 1))):
    for padding in ("VALID", "SAME"):
        for t in (np.float32, np.uint8, np.int64):
            x = rng.integers(0, 100, (2, 7, 6, 3)).astype(t)
            name = {np.float32: "float", np.uint8: "uint8", np.int64: "int64"}[t]
            g.case("ExtractImagePatches", f"T: {name}; ksizes: [1, {k[0]}, {k[1]}, 1]; strides: [1, {s[0]}, {s[1]}, 1]; "
                   f"rates: [1, {r[0]}, {r[1]}, 1]; padding: '{padding}'", [x], [patches(x, k, s, r, padding)],
                   infer="[?,7,?,?] -> [?,5,?,?]" if (k, s, padding) == ((3, 2), (1, 1), "VALID") else None)
g.case("ExtractImagePatches", "T: float; ksizes: [1, 9, 9, 1]; strides: [1, 1, 1, 1]; rates: [1, 1, 1, 1]; padding: 'VALID'",
       [np.zeros((1, 4, 4, 1), f32)], [], error="does not fit")
g.save(__file__)
