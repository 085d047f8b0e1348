"""Projective transforms of images: coordinates by numpy in float32, looked up by torch's grid_sample."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden

g = Golden()
rng = np.random.default_rng(31)
f32 = np.float32


def coordinates(t, h, w):
    y, x = np.meshgrid(np.arange(h, dtype=f32), np.arange(w, dtype=f32), indexing="ij")
    k = t[6] * x + t[7] * y + f32(1)
    return (t[0] * x + t[1] * y + t[2]) / k, (t[3] * x + t[4] * y + t[5]) / k


def project(images, transforms, out, rule, mode, fill=0.0):
    n, h, w, c = images.shape
    result = []
    for i in range(n):
        x, y = coordinates(transforms[i % len(transforms)], *out)
        source = torch.from_numpy(images[i].astype(np.float64).transpose(2, 0, 1))[None] - fill
        if mode == "REFLECT":  # borders are half a pixel outside
            grid = np.stack([(2 * x + 1) / w - 1, (2 * y + 1) / h - 1], -1)
            pad, corners = "reflection", False
        else:
            grid = np.stack([2 * x / max(w - 1, 1) - 1, 2 * y / max(h - 1, 1) - 1], -1)
            pad, corners = {"CONSTANT": "zeros", "NEAREST": "border"}[mode], True
        y = F.grid_sample(source, torch.from_numpy(grid.astype(np.float64))[None], mode=rule.lower(), padding_mode=pad,
                          align_corners=corners)
        result.append(y[0].numpy().transpose(1, 2, 0) + fill)
    return np.stack(result)


turn = np.array([np.cos(0.3), -np.sin(0.3), 0.7, np.sin(0.3), np.cos(0.3), -1.1, 0, 0], f32)
shift = np.array([1, 0, 1.25, 0, 1, -0.75, 0, 0], f32)
view = np.array([1.1, 0.13, -0.4, -0.05, 0.93, 0.6, 0.011, -0.017], f32)
same = np.array([1, 0, 0, 0, 1, 0, 0, 0], f32)
images = rng.uniform(0, 1, (3, 7, 6, 2)).astype(f32)
for transforms in (np.stack([turn, shift, view]), view[None], same[None]):
    for out in ((7, 6), (4, 9)):
        for mode in ("CONSTANT", "NEAREST", "REFLECT"):
            want = project(images, transforms, out, "BILINEAR", mode).astype(f32)
            attrs = f"dtype: float; interpolation: 'BILINEAR'; fill_mode: '{mode}'"
            g.case("ImageProjectiveTransformV2", attrs, [images, transforms, np.array(out, np.int32)], [want], (2e-5, 2e-5, 0))
            g.case("ImageProjectiveTransformV3", attrs, [images, transforms, np.array(out, np.int32), f32(0)], [want],
                   (2e-5, 2e-5, 0))
# nearest: coordinates off the halves, so that rounding is not a matter of taste
pixels = rng.integers(0, 255, (2, 5, 5, 3))
off = np.array([[1, 0, 1.2, 0, 1, -0.8, 0, 0], [0.9, 0.11, 0.23, -0.07, 1.03, 0.31, 0, 0]], f32)
for name, t in (("uint8", np.uint8), ("int32", np.int32), ("int64", np.int64), ("float", f32)):
    want = project(pixels, off, (5, 5), "NEAREST", "CONSTANT", 9.0)
    g.case("ImageProjectiveTransformV3", f"dtype: {name}; interpolation: 'NEAREST'",
           [pixels.astype(t), off, np.array([5, 5], np.int32), f32(9)], [want.astype(t)])
want = project(pixels.astype(f32), off, (5, 5), "BILINEAR", "CONSTANT", 2.5)
g.case("ImageProjectiveTransformV3", "dtype: float; interpolation: 'BILINEAR'",
       [pixels.astype(f32), off, np.array([5, 5], np.int32), f32(2.5)], [want.astype(f32)], (1e-4, 1e-5, 0))
row = np.arange(4, dtype=f32).reshape(1, 1, 4, 1)
# TensorFlow's WRAP counts rounds in widths less one, so that a whole row away it stops at the last pixel
moved = np.array([[1, 0, -3, 0, 1, 0, 0, 0]], f32)
g.case("ImageProjectiveTransformV2", "dtype: float; interpolation: 'NEAREST'; fill_mode: 'WRAP'",
       [row, moved, np.array([1, 8], np.int32)],
       [np.array([3, 2, 3, 0, 1, 2, 3, 0], f32).reshape(1, 1, 8, 1)])
bad = dict(interpolation="'NEAREST'")
size = np.array([2, 2], np.int32)
g.case("ImageProjectiveTransformV2", "dtype: float; interpolation: 'CUBIC'", [row, moved, size], [], error="Invalid interpolation CUBIC")
g.case("ImageProjectiveTransformV2", "dtype: float; interpolation: 'NEAREST'; fill_mode: 'X'", [row, moved, size], [], error="Invalid fill mode X")
g.case("ImageProjectiveTransformV2", "dtype: float; interpolation: 'NEAREST'", [row, moved[:, :7], size], [], error="num_images x 8")
g.case("ImageProjectiveTransformV2", "dtype: float; interpolation: 'NEAREST'", [row, moved, size[:1]], [], error="two positive elements")
g.save(__file__)
