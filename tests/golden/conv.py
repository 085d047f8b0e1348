"""Convolutions by torch in float64: every padding, stride, dilation and layout, groups, depthwise, transposed."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden, T, EXACT

SUMS = (1e-5, 1e-5, 0)  # one float chain against a sum in float64
NARROW = (0.02, 0.01, 0)  # half and bfloat16: inputs exact, one rounding of the result
rng = np.random.default_rng(1)


def pads(size, kernel, stride, dilation, padding):
    """TensorFlow's padding before and after."""
    if padding == "VALID":
        return 0, 0
    if padding != "SAME":
        return padding
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


def forward(x, w, strides, dilations, padding, groups=1):
    """x: N spatial C, w: spatial I O; float64."""
    n = x.ndim - 2
    padding = [padding] * n if isinstance(padding, str) else padding
    p = [pads(x.shape[1 + i], w.shape[i], strides[i], dilations[i], padding[i]) for i in range(n)]
    t = torch.from_numpy(np.moveaxis(x.astype(np.float64), -1, 1).copy())
    t = F.pad(t, [v for pair in reversed(p) for v in pair])
    k = torch.from_numpy(np.moveaxis(w.astype(np.float64), [-1, -2], [0, 1]).copy())
    conv = {2: F.conv2d, 3: F.conv3d}[n]
    return np.moveaxis(conv(t, k, stride=strides, dilation=dilations, groups=groups).numpy(), 1, -1)


def attrs(strides, dilations, padding, first, t="float"):
    n = len(strides)
    fill = (lambda v: [1, 1] + list(v)) if first else (lambda v: [1] + list(v) + [1])
    name = {2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[n][first]
    text = f"T: {t}; strides: {fill(strides)}; dilations: {fill(dilations)}; data_format: '{name}'; "
    if isinstance(padding, str):
        return text + f"padding: '{padding}'"
    flat = [0, 0, 0, 0] + [v for p in padding for v in p] if first else \
        [0, 0] + [v for p in padding for v in p] + [0, 0]
    return text + f"padding: 'EXPLICIT'; explicit_paddings: {flat}"


def first(x, channels_first):
    return np.moveaxis(x, -1, 1) if channels_first else x


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


g = Golden()
SHAPES = [((2, 7, 8, 3), (3, 3, 3, 5)), ((1, 9, 6, 4), (1, 1, 4, 17)), ((1, 8, 11, 2), (5, 2, 2, 4)),
          ((1, 13, 13, 3), (7, 7, 3, 9))]
for i, (xs, ws) in enumerate(SHAPES):
    for strides in [(1, 1), (2, 2), (2, 1), (3, 2)]:
        for dilations in [(1, 1), (2, 1), (2, 2)]:
            if (i + strides[0] + strides[1] + dilations[0]) % 3 == 0:
                continue
            if ws[0] == 7 and (strides, dilations) != ((2, 2), (1, 1)):
                continue
            if dilations != (1, 1) and (xs[1] - 1) < (ws[0] - 1) * dilations[0]:
                continue
            for padding in ["VALID", "SAME", [(1, 2), (0, 3)]]:
                channels_first = (i + strides[0] + dilations[1]) % 2 == 1
                x, w = normal(*xs), normal(*ws)
                y = forward(x, w, strides, dilations, padding).astype(np.float32)
                g.case("Conv2D", attrs(strides, dilations, padding, channels_first),
                       [first(x, channels_first), w], [first(y, channels_first)], SUMS)

x, w = normal(2, 6, 6, 8), normal(3, 3, 2, 12)
g.case("Conv2D", attrs((1, 1), (1, 1), "SAME", False), [x, w],
       [forward(x, w, (1, 1), (1, 1), "SAME", 4).astype(np.float32)], SUMS)
xd, wd = rng.standard_normal((1, 5, 5, 2)), rng.standard_normal((2, 3, 2, 3))
g.case("Conv2D", attrs((1, 1), (1, 1), "SAME", False, "double"), [xd, wd],
       [forward(xd, wd, (1, 1), (1, 1), "SAME")], (1e-13, 1e-12, 0))
xi = rng.integers(-255, 256, (1, 6, 5, 3)).astype(np.int32)
wi = rng.integers(-127, 128, (3, 2, 3, 4)).astype(np.int32)
g.case("Conv2D", attrs((2, 1), (1, 1), "SAME", False, "int32"), [xi, wi],
       [forward(xi, wi, (2, 1), (1, 1), "SAME").astype(np.int64).astype(np.int32)])
big = rng.integers(-2**31, 2**31, (1, 4, 4, 2)).astype(np.int32)  # sums wrap
wrapped = np.zeros((1, 3, 4, 3), np.uint32)
wb = rng.integers(-2**31, 2**31, (2, 1, 2, 3)).astype(np.int32)
for a in range(2):
    for c in range(2):
        wrapped += big[:, a:a + 3, :, c:c + 1].view(np.uint32) * wb[a, 0, c].view(np.uint32)
g.case("Conv2D", attrs((1, 1), (1, 1), "VALID", False, "int32"), [big, wb], [wrapped.view(np.int32)])
for t, dtype in [("half", np.float16), ("bfloat16", None)]:
    x, w = T(t, normal(1, 5, 6, 3)), T(t, normal(3, 3, 3, 4))
    wide = [v.array.astype(np.float32) if dtype else (v.array.astype(np.uint32) << 16).view(np.float32) for v in (x, w)]
    g.case("Conv2D", attrs((1, 1), (1, 1), "SAME", False, t), [x, w],
           [T(t, forward(*wide, (1, 1), (1, 1), "SAME").astype(np.float32))], NARROW)
g.case("Conv2D", attrs((1, 1), (1, 1), "VALID", False), [normal(0, 5, 5, 3), normal(2, 2, 3, 4)],
       [np.zeros((0, 4, 4, 4), np.float32)], infer="[?,?,5,3] [2,2,3,4] -> [?,?,4,4]")
g.case("Conv2D", attrs((1, 1), (1, 1), "VALID", False), [normal(1, 5, 5, 3), normal(2, 2, 4, 4)], [],
       error="3 channels")
g.case("Conv2D", attrs((1, 1), (1, 1), "VALID", False), [normal(1, 5, 5), normal(2, 2, 4, 4)], [], error="rank 3")
g.case("Conv2D", attrs((1, 1), (1, 1), "VALID", False), [normal(1, 2, 2, 1), normal(4, 4, 1, 1)], [],
       error="does not fit")
g.case("Conv2D", "T: float; strides: [2, 1, 1, 1]; padding: 'SAME'", [normal(1, 2, 2, 1), normal(1, 1, 1, 1)], [],
       error="strides along batch")

# Depthwise: as many groups as channels.
for c, m in [(5, 1), (16, 1), (19, 1), (4, 3), (1, 4)]:
    for strides, dilations, padding in [((1, 1), (1, 1), "SAME"), ((2, 2), (1, 1), "SAME"), ((1, 1), (2, 2), "VALID"),
                                        ((1, 1), (2, 1), "SAME"), ((2, 2), (1, 1), [(0, 1), (2, 1)])]:
        channels_first = (c + strides[0]) % 3 == 0
        x, w = normal(2, 8, 13, c), normal(3, 3, c, m)
        y = forward(x, w.reshape(3, 3, 1, c * m), strides, dilations, padding, c).astype(np.float32)
        g.case("DepthwiseConv2dNative", attrs(strides, dilations, padding, channels_first),
               [first(x, channels_first), w], [first(y, channels_first)], SUMS)
x, w = normal(1, 4, 4, 3), normal(2, 2, 3, 2)
g.case("DepthwiseConv2dNative", attrs((1, 1), (1, 1), "VALID", False, "half"), [T("half", x), T("half", w)],
       [T("half", forward(np.float16(x), np.float16(w).reshape(2, 2, 1, 6), (1, 1), (1, 1), "VALID", 3))], NARROW,
       infer="[1,4,?,3] [2,2,3,2] -> [1,3,?,6]; [] [2,2,?,2]".split(";")[0])
g.case("DepthwiseConv2dNative", attrs((1, 1), (1, 1), "VALID", False), [x, normal(2, 2, 4, 2)], [],
       error="filter has 4 channels")

# 3-D.
for strides, dilations, padding in [((1, 1, 1), (1, 1, 1), "SAME"), ((2, 1, 2), (1, 1, 1), "SAME"),
                                    ((1, 2, 1), (1, 1, 2), "VALID"), ((1, 1, 1), (2, 1, 1), "SAME")]:
    channels_first = strides[0] == 2
    x, w = normal(2, 5, 6, 7, 3), normal(3, 2, 3, 3, 4)
    y = forward(x, w, strides, dilations, padding).astype(np.float32)
    g.case("Conv3D", attrs(strides, dilations, padding, channels_first), [first(x, channels_first), w],
           [first(y, channels_first)], SUMS)
g.case("Conv3D", attrs((1, 1, 1), (1, 1, 1), "SAME", False), [normal(1, 2, 2, 2), normal(1, 1, 1, 1, 1)], [],
       error="rank 4")


# Transposed: the gradient of the forward convolution, by torch's autograd.
def gradient(shape, w, dy, strides, dilations, padding):
    n = len(shape) - 2
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    padding = [padding] * n if isinstance(padding, str) else padding
    p = [pads(shape[1 + i], w.shape[i], strides[i], dilations[i], padding[i]) for i in range(n)]
    t = F.pad(torch.movedim(x, -1, 1), [v for pair in reversed(p) for v in pair])
    k = torch.from_numpy(np.moveaxis(w.astype(np.float64), [-1, -2], [0, 1]).copy())
    y = {2: F.conv2d, 3: F.conv3d}[n](t, k, stride=strides, dilation=dilations)
    y.backward(torch.from_numpy(np.moveaxis(dy.astype(np.float64), -1, 1).copy()))
    return x.grad.numpy().astype(np.float32)


for shape, ws in [((2, 7, 8, 3), (3, 3, 3, 5)), ((1, 8, 8, 2), (4, 4, 2, 6)), ((1, 6, 5, 4), (1, 1, 4, 3)),
                  ((1, 9, 9, 3), (2, 3, 3, 2))]:
    for strides in [(1, 1), (2, 2), (3, 2)]:
        for dilations in [(1, 1), (2, 2)]:
            for padding in ["VALID", "SAME", [(1, 0), (2, 1)]]:
                if dilations == (2, 2) and (padding == "VALID" and (ws[0] - 1) * 2 >= shape[1] or strides != (1, 1)):
                    continue
                channels_first = (strides[0] + ws[0]) % 2 == 1
                w = normal(*ws)
                dy = normal(*forward(np.zeros(shape), w, strides, dilations, padding).shape)
                dx = gradient(shape, w, dy, strides, dilations, padding)
                sizes = first(np.zeros(shape), channels_first).shape
                g.case("Conv2DBackpropInput", attrs(strides, dilations, padding, channels_first),
                       [np.array(sizes, np.int32), w, first(dy, channels_first)], [first(dx, channels_first)], SUMS)
w, dy = normal(3, 3, 2, 4), normal(1, 4, 4, 4)
g.case("Conv2DBackpropInput", attrs((2, 2), (1, 1), "SAME", False), [np.array([8, 8], np.int32), w, dy],
       [gradient((1, 8, 8, 2), w, dy, (2, 2), (1, 1), "SAME")], SUMS)
g.case("Conv2DBackpropInput", attrs((2, 2), (1, 1), "SAME", False), [np.array([1, 9, 8, 2], np.int32), w, dy], [],
       error="out_backprop has shape")
for strides, padding in [((1, 1, 1), "SAME"), ((2, 2, 1), "SAME"), ((1, 2, 2), "VALID")]:
    shape, w = (1, 4, 6, 5, 2), normal(2, 3, 3, 2, 3)
    dy = normal(*forward(np.zeros(shape), w, strides, (1, 1, 1), padding).shape)
    g.case("Conv3DBackpropInputV2", attrs(strides, (1, 1, 1), padding, False),
           [np.array(shape, np.int32), w, dy], [gradient(shape, w, dy, strides, (1, 1, 1), padding)], SUMS)

# Every combination on small arrays: window, stride, dilation, padding, layout and groups.
def fits(size, window, dilations, padding):
    return padding == "SAME" or all((w - 1) * d + 1 <= n + (0 if padding == "VALID" else sum(padding[i]))
                                    for i, (n, w, d) in enumerate(zip(size, window, dilations)))


for channels_first in (False, True):
    for window in [(1, 1), (2, 3), (3, 3)]:
        for strides in [(1, 1), (2, 2), (1, 3)]:
            for dilations in [(1, 1), (2, 2), (1, 2)]:
                for padding in ["VALID", "SAME", [(1, 0), (2, 3)]]:
                    if not fits((5, 6), window, dilations, padding):
                        continue
                    for groups in (1, 2):
                        x, w = normal(1, 5, 6, 4), normal(*window, 4 // groups, 2 * groups)
                        y = forward(x, w, strides, dilations, padding, groups).astype(np.float32)
                        g.case("Conv2D", attrs(strides, dilations, padding, channels_first), [first(x, channels_first), w],
                               [first(y, channels_first)], SUMS)
                    w = normal(*window, 4, 3)
                    dy = normal(*forward(np.zeros((1, 5, 6, 4)), w, strides, dilations, padding).shape)
                    dx = gradient((1, 5, 6, 4), w, dy, strides, dilations, padding)
                    g.case("Conv2DBackpropInput", attrs(strides, dilations, padding, channels_first),
                           [np.array(first(dx, channels_first).shape, np.int32), w, first(dy, channels_first)],
                           [first(dx, channels_first)], SUMS)
                    if strides[0] != strides[1] or (strides != (1, 1) and dilations != (1, 1)):
                        continue
                    x, w = normal(1, 5, 6, 3), normal(*window, 3, 2)
                    y = forward(x, w.reshape(*window, 1, 6), strides, dilations, padding, 3).astype(np.float32)
                    g.case("DepthwiseConv2dNative", attrs(strides, dilations, padding, channels_first),
                           [first(x, channels_first), w], [first(y, channels_first)], SUMS)
    for window in [(1, 1, 1), (2, 3, 2)]:
        for strides in [(1, 1, 1), (2, 2, 2), (1, 2, 3)]:
            for dilations in [(1, 1, 1), (1, 2, 1), (2, 1, 2)]:
                for padding in ("VALID", "SAME"):
                    if not fits((4, 5, 4), window, dilations, padding):
                        continue
                    x, w = normal(1, 4, 5, 4, 2), normal(*window, 2, 3)
                    y = forward(x, w, strides, dilations, padding).astype(np.float32)
                    g.case("Conv3D", attrs(strides, dilations, padding, channels_first), [first(x, channels_first), w],
                           [first(y, channels_first)], SUMS)
                    dy = normal(*y.shape)
                    dx = gradient(x.shape, w, dy, strides, dilations, padding)
                    for kind in (np.int32, np.int64):
                        if kind is np.int64 and strides != (2, 2, 2):
                            continue
                        g.case("Conv3DBackpropInputV2", attrs(strides, dilations, padding, channels_first)
                               + ("" if kind is np.int32 else "; Tshape: int64"),
                               [np.array(first(dx, channels_first).shape, kind), w, first(dy, channels_first)],
                               [first(dx, channels_first)], SUMS)
x, w = normal(1, 5, 5, 6), normal(3, 3, 2, 9)
g.case("Conv2D", attrs((2, 1), (1, 1), "SAME", True), [first(x, True), w],
       [first(forward(x, w, (2, 1), (1, 1), "SAME", 3).astype(np.float32), True)], SUMS)
x, w = normal(2, 3, 4, 4, 4), normal(2, 2, 2, 2, 6)
g.case("Conv3D", attrs((1, 1, 1), (1, 1, 1), "SAME", False), [x, w],
       [forward(x, w, (1, 1, 1), (1, 1, 1), "SAME", 2).astype(np.float32)], SUMS)
g.save(__file__)
