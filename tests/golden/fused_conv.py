"""FusedPadConv2D and FusedResizeAndPadConv2D: numpy's mirrored borders, torch's convolution in float64, and bilinear weights
from the formula."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden

rng = np.random.default_rng(83)
g = Golden()
f32 = np.float32
SUMS = {np.float32: (2e-5, 1e-5, 0), np.float64: (1e-4, 1e-5, 0), np.float16: (2e-2, 5e-3, 0)}
NAMES = {np.float32: "float", np.float64: "double", np.float16: "half"}


def matrix(n_in, n_out, align):
    m = np.zeros((n_out, n_in))
    scale = f32(n_in - 1) / f32(n_out - 1) if align and n_out > 1 else f32(n_in) / f32(n_out)
    for i in range(n_out):
        p = f32(i) * scale
        low = int(np.floor(p))
        t = float(p - np.floor(p))
        m[i, min(low, n_in - 1)] += 1 - t
        m[i, min(int(np.ceil(p)), n_in - 1)] += t
    return m


def conv(x, w, stride, padding):
    if padding == "SAME":
        pads = []
        for n, k in zip(x.shape[1:3], w.shape[:2]):
            total = max((-(-n // stride) - 1) * stride + k - n, 0)
            pads.append((total // 2, total - total // 2))
        x = np.pad(x, [(0, 0)] + pads + [(0, 0)])
    y = F.conv2d(torch.tensor(x.transpose(0, 3, 1, 2)), torch.tensor(w.transpose(3, 2, 0, 1)), stride=stride)
    return y.numpy().transpose(0, 2, 3, 1)


def border(x, pads, mode):
    return np.pad(x, pads, mode="reflect" if mode == "REFLECT" else "symmetric")


for kind in (np.float32, np.float64, np.float16):
    for mode in ("REFLECT", "SYMMETRIC"):
        for padding, stride, pads in [("VALID", 1, (1, 1, 2, 0)), ("SAME", 2, (0, 3, 1, 2)), ("VALID", 2, (0, 0, 0, 0))]:
            x, w = rng.normal(size=(2, 4, 5, 3)).astype(kind), rng.normal(size=(3, 2, 3, 4)).astype(kind)
            paddings = np.array([[0, 0], pads[:2], pads[2:], [0, 0]], np.int32)
            attrs = f"T: {NAMES[kind]}; mode: '{mode}'; strides: [1, {stride}, {stride}, 1]; padding: '{padding}'"
            y = conv(border(x.astype(np.float64), paddings, mode), w.astype(np.float64), stride, padding)
            g.case("FusedPadConv2D", attrs, [x, paddings, w], [y.astype(kind)], SUMS[kind], dynamic=True)
            for size, align in [((6, 7), False), ((5, 4), True)]:
                z = np.einsum("yh,bhwc,xw->byxc", matrix(4, size[0], align), x.astype(np.float64), matrix(5, size[1], align))
                y = conv(border(z, paddings, mode), w.astype(np.float64), stride, padding)
                g.case("FusedResizeAndPadConv2D", attrs + f"; resize_align_corners: {str(align).lower()}",
                       [x, np.int32(size), paddings, w], [y.astype(kind)], SUMS[kind], dynamic=True)
x, w = np.ones((1, 3, 3, 1), f32), np.ones((1, 1, 1, 1), f32)
attrs = "T: float; mode: 'REFLECT'; strides: [1, 1, 1, 1]; padding: 'VALID'"
g.case("FusedPadConv2D", attrs, [x, np.array([[0, 0], [3, 0], [0, 0], [0, 0]], np.int32), w], [],
       error="paddings of 3 and 0 along dimension 1 (expected 0 to 2)")
g.case("FusedPadConv2D", attrs, [x, np.array([[0, 1], [0, 0], [0, 0], [0, 0]], np.int32), w], [],
       error="paddings of 0 and 1 along dimension 0 (expected 0 to 0)")
g.case("FusedResizeAndPadConv2D", attrs, [x, np.int32([0, 2]), np.zeros((4, 2), np.int32), w], [], error="size contains 0")
g.save(__file__)
