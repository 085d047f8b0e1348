"""Quantized layers by their formulas, in integers: static range int8 of convolutions with every padding, stride, dilation
and kind of zero point, of matrix products and Einsums, with and without bias and activation; scales and zero points of
min-max ranges; dynamic range and weight-only for comparison with the same code.

A case is the float op with its attributes; inputs are the activation, the weight (or the second activation), the bias (no
elements: none) and numbers:
  method (0 static, 1 dynamic with one range for all, as in the op set TF, 2 static with activations of 16 bits,
  3 weight-only, 4 dynamic with a range for each row), activation (0 none, 1 Relu, 2 Relu6), bits, per tensor, two inputs,
  second layer,
  low and high of input, of second input, of output
With "second layer" the output goes, as int8, into a 1x1 convolution (1) or a BatchMatMulV2 (2): inputs 4 is its weight.
Of bfloat16 and half cases the activation, weights, bias and the float model's own ops are of that dtype; scales and the
arithmetic around the integers are float32, and the result is rounded once.
The expected output is exact.
"""
import numpy as np

from golden import Golden, T, bfloat16_bits, from_bfloat16

rng = np.random.default_rng(17)
g = Golden()


# ---- parameters (docs/numerics.md; every step in double) ----

def half_away(x):
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def activation_params(low, high):
    low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-6:
        low, high = min(low, -5e-7), max(high, 5e-7)
    scale = (high - low) / 255
    from_low, from_high = -128 - low / scale, 127 - high / scale
    zero = from_low if 128 + abs(low / scale) < 127 + abs(high / scale) else from_high
    return scale, int(half_away(min(max(zero, -128.0), 127.0)))


def wide_params(low, high):
    """int16, symmetric in [-32767, 32767]."""
    high = max(-min(low, 0.0), max(high, 0.0))
    if 2 * high <= 1e-6:
        high = 5e-7
    return 2 * high / 65534, 0, 32767


def quantize_weight(w, axes, bits, per_tensor):
    """Integers and scales; `axes` are those that one scale covers."""
    qmax = 2 ** (bits - 1) - 1
    w = w.astype(np.float64)
    axes = tuple(range(w.ndim)) if per_tensor else axes
    high = np.maximum(np.abs(w).max(axis=axes, keepdims=True), 0)
    high = np.where(2 * high <= 1e-6, 5e-7, high)
    scale = (high - -high) / (2 * qmax)
    return np.clip(half_away(w / scale), -qmax, qmax).astype(np.int64), scale


def quantize(x, params):
    scale, zero = params[:2]
    low, high = (-params[2], params[2]) if len(params) == 3 else (-128, 127)
    q = x.astype(np.float32) / np.float32(scale) + np.float32(zero)
    return np.rint(np.minimum(np.maximum(q, np.float32(low)), np.float32(high))).astype(np.int64)


def dynamic_integers(x, rows=None):
    """Of all values, or of the rows, which span these axes."""
    f = np.float32
    low, high = (np.asarray(v, f) for v in (x.min(axis=rows, keepdims=rows is not None),
                                            x.max(axis=rows, keepdims=rows is not None)))
    low, high = np.minimum(f(0), low), np.maximum(f(0), high)
    s = np.maximum(high / f(255) - low / f(255), f(1e-30) / f(255))
    zero = f(127) - high / s
    zero = (np.rint(zero) if rows else np.trunc(np.rint(zero * f(1024)) / f(1024))).astype(np.int64)
    q = np.floor((x / s + zero.astype(f)) + f(0.5))
    return np.clip(q, -128, 127).astype(np.int64) - zero, s


# ---- integer products ----

def conv(x, w, strides, dilations, pads):
    """N spatial dimensions, channels last, groups by the shapes; `x` is centred, so padding is zero."""
    n = len(strides)
    x = np.pad(x, [(0, 0)] + list(pads) + [(0, 0)])
    kernel = w.shape[:n]
    out = [(x.shape[1 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    groups = x.shape[-1] // w.shape[n]
    per = w.shape[n + 1] // groups
    result = np.zeros([x.shape[0]] + out + [w.shape[n + 1]], dtype=np.int64)
    for index in np.ndindex(*kernel):
        where = [slice(None)]
        for i in range(n):
            first = index[i] * dilations[i]
            where.append(slice(first, first + (out[i] - 1) * strides[i] + 1, strides[i]))
        patch = x[tuple(where)]
        for group in range(groups):
            a, b = group * w.shape[n], group * per
            result[..., b:b + per] += patch[..., a:a + w.shape[n]] @ w[index][:, b:b + per]
    return result


def same_pads(sizes, kernel, strides, dilations):
    pads = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads


# ---- one layer ----

def finish(sums, x_scale, w_scales, bias, activation, output, wide=False):
    """Real output, or integers when `output` are parameters. w_scales broadcast with sums; bias is added in int32. The
    factor is made in float32: input scale times weight scale, over the output's."""
    factor = np.float32(x_scale) * np.asarray(w_scales).astype(np.float32)
    if bias is not None:
        scales = x_scale * w_scales
        codes = half_away(bias.astype(np.float64) / scales.reshape(-1))
        sums = sums + (codes if wide else np.clip(codes, -2 ** 31, 2 ** 31 - 1)).astype(np.int64)
    assert np.abs(sums).max(initial=0) < (2 ** 62 if wide else 2 ** 31)
    sums = sums.astype(np.float32)
    if output is None:
        y = sums * factor
        if activation:
            y = np.maximum(y, np.float32(0))
        return np.minimum(y, np.float32(6)) if activation == 2 else y
    scale, zero = output[:2]
    low, high = (np.float32(-32767), np.float32(32767)) if wide else (np.float32(-128), np.float32(127))
    if activation:
        low = max(low, np.float32(zero))
    if activation == 2:
        high = min(high, np.float32(quantize(np.float32(6), output)))
    y = sums * (factor / np.float32(scale)) + np.float32(zero)
    return np.rint(np.minimum(np.maximum(y, low), high)).astype(np.int64)


RANGES = [(0.0, 4.0), (-3.0, 0.0), (-128 * 0.03125, 127 * 0.03125), (-1.7, 2.9), (0.5, 0.6), (-1e-8, 1e-8)]


def draw(shape, low, high):
    """Some values are outside the range and are clipped."""
    return rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), shape).astype(np.float32)


def narrowed(dtype, values):
    """The nearest number of the dtype."""
    if dtype == "bfloat16":
        return from_bfloat16(bfloat16_bits(values))
    return values.astype(np.float16).astype(np.float32) if dtype == "half" else values


def numbers(method, activation, bits, per_tensor, two, second, ranges):
    return np.array([method, activation, bits, per_tensor, two, second] + [v for r in ranges for v in r])


EIGHTHS = 8  # weight-only: activations are whole multiples of 1/8


def exact_draw(shape):
    """Numbers with few bits, whose products with int8 sum exactly in float32."""
    return (rng.integers(-24, 25, shape) / EIGHTHS).astype(np.float32)


def epilogue(y, bias, activation, dtype):
    """Ops that stay those of the float model, each of its dtype."""
    y = narrowed(dtype, y)
    if bias is not None:
        y = narrowed(dtype, y + bias)
    if activation:
        y = np.maximum(y, np.float32(0))
    return np.minimum(y, np.float32(6)) if activation == 2 else y


def emit(op, attrs, product, x, w, axes, fields, bias=None, activation=0, bits=8, per_tensor=False, range_=None, method=0,
         second=None, dtype="float", rows=None, of_rows=None):
    """`product(x_q, w_q)` are the integer sums; `fields(scale)` shapes the scales to broadcast with them, and `of_rows`
    those of the activation's rows, which span the axes `rows`."""
    x, w = narrowed(dtype, x), narrowed(dtype, w)
    bias = None if bias is None else narrowed(dtype, bias)
    second = None if second is None else narrowed(dtype, second)
    attrs = attrs.replace("T: float", f"T: {dtype}")
    w_q, w_scale = quantize_weight(w, axes, bits, per_tensor)
    none = np.zeros(0, np.float32)
    inputs = [T(dtype, v) for v in (x, w, bias if bias is not None else none)]
    for form in {1: [1, 4], 3: [3], 4: [4]}.get(method, []):
        x_q, scale = np.rint(x * EIGHTHS).astype(np.int64), np.float32(1)
        if form != 3:
            x_q, scale = dynamic_integers(x, rows if form == 4 else None)
        assert form != 3 or np.all(x_q == x * EIGHTHS)
        sums = product(x_q, w_q)
        assert np.abs(sums).max() < 2 ** (24 if form == 3 else 31)  # exact in float32, in whatever order they are added
        if form == 4:
            scale = of_rows(scale)
        factor = scale * np.broadcast_to(fields(w_scale), fields(w_scale).shape).astype(np.float32)
        y = sums.astype(np.float32) / np.float32(EIGHTHS if form == 3 else 1)
        y = epilogue(y * factor, bias, activation, dtype)
        g.case(op, attrs, inputs + [numbers(form, activation, bits, per_tensor, 0, 0, [(0, 0)] * 3)], [T(dtype, y)])
    if method in (1, 3, 4):
        return
    wide = method == 2
    find = wide_params if wide else activation_params
    params = find(*range_)
    if bias is not None:  # the quotient of bias and scale stays below 2^30, in wide sums below 2^46
        least = np.abs(bias.astype(np.float64)) / (params[0] * 2.0 ** (46 if wide else 30))
        least = least.max() if per_tensor else least.reshape(w_scale.shape)
        w_scale = np.maximum(w_scale, least)
        qmax = 2 ** (bits - 1) - 1
        w_q = np.clip(half_away(w.astype(np.float64) / w_scale), -qmax, qmax).astype(np.int64)
    sums = product(quantize(x, params) - params[1], w_q)
    w_scales = fields(w_scale)
    out_range = (0.0, 0.0)
    output = None
    if second is not None:
        real = finish(sums, params[0], w_scales, bias, activation, None, wide)
        out_range = (float(real.min()) * 0.9, float(real.max()) * 0.9)  # something is clipped
        output = find(*out_range)
    y = finish(sums, params[0], w_scales, bias, activation, output, wide)
    form = 0
    if second is not None:
        inputs_2 = [T(dtype, second)]
        form = 1 if second.ndim == 4 else 2
        v_q, v_scale = quantize_weight(second, tuple(range(second.ndim - 1)), bits, per_tensor)
        sums = conv(y - output[1], v_q, [1, 1], [1, 1], [(0, 0), (0, 0)]) if form == 1 else (y - output[1]) @ v_q
        y = finish(sums, output[0], v_scale.reshape(-1), None, 0, None, wide)
    else:
        inputs_2 = []
    g.case(op, attrs, inputs + [numbers(method, activation, bits, per_tensor, 0, form, [range_, (0, 0), out_range])] +
           inputs_2, [T(dtype, y)])


# ---- convolutions ----

def conv_case(i, size, kernel, channels, out, strides, dilations, padding, range_, depthwise=False, **options):
    n = len(size)
    x = draw([2] + size + [channels], *range_)
    shape = kernel + ([channels, out] if depthwise else [options.pop("group_channels", channels), out])
    w = rng.normal(0, 1, shape).astype(np.float32)
    if i % 5 == 0:
        w[..., 0] = 0  # a channel of zeros
    columns = channels * out if depthwise else out
    pads = {"VALID": [(0, 0)] * n, "SAME": same_pads(size, kernel, strides, dilations),
            "EXPLICIT": [(1, 2), (0, 1), (2, 0)][:n]}[padding]
    attrs = f"T: float; padding: '{padding}'; strides: {[1] + strides + [1]}; dilations: {[1] + dilations + [1]}"
    if padding == "EXPLICIT":
        attrs += f"; explicit_paddings: {[0, 0] + [v for p in pads for v in p] + [0, 0]}"
    if options.get("bias"):
        options["bias"] = rng.normal(0, 2, columns).astype(np.float32)
    else:
        options["bias"] = None
    if options.get("second"):
        options["second"] = rng.normal(0, 1, [1, 1, columns, 3]).astype(np.float32)
    else:
        options["second"] = None

    def product(x_q, w_q):
        if depthwise:
            w_q = w_q.reshape(kernel + [1, columns])
        return conv(x_q, w_q, strides, dilations, pads)

    axes = tuple(range(n)) if depthwise else tuple(range(n + 1))
    op = "Conv3D" if n == 3 else "DepthwiseConv2dNative" if depthwise else "Conv2D"
    emit(op, attrs, product, x, w, axes, lambda s: s.reshape(-1), range_=range_, rows=tuple(range(1, n + 2)),
         of_rows=lambda s: s, **options)


def varied(i):
    """Bias and activation in every combination, whatever else goes in steps of two or three."""
    return dict(bias=(i // 3) % 2, activation=i % 3)


i = 0
for padding in ["SAME", "VALID", "EXPLICIT"]:
    for strides, dilations in [([1, 1], [1, 1]), ([2, 2], [1, 1]), ([2, 3], [1, 1]), ([1, 1], [2, 2]), ([1, 1], [2, 1]),
                               ([2, 2], [2, 2]), ([1, 2], [2, 3])]:
        for k, range_ in enumerate(RANGES):
            conv_case(i, [7, 6], [3, 2], 3, 4, strides, dilations, padding, range_, second=i % 4 == 3, per_tensor=i % 7 == 0,
                      **varied(k + i // 6))
            i += 1
for range_ in RANGES:
    for k in range(6):
        conv_case(i, [5, 5], [1, 1], 2, 3, [1, 1], [1, 1], "SAME", range_, **varied(k))
        i += 1
    conv_case(i, [4, 5], [3, 3], 4, 6, [1, 1], [1, 1], "SAME", range_, bias=1, activation=1, group_channels=2)
    conv_case(i, [4, 4], [4, 4], 2, 3, [3, 3], [1, 1], "SAME", range_, bits=4, second=True, activation=2, bias=1)
    i += 1
for padding in ["SAME", "VALID", "EXPLICIT"]:
    for strides, dilations in [([1, 1], [1, 1]), ([2, 2], [1, 1]), ([1, 1], [2, 2]), ([1, 1], [1, 2])]:
        for k, range_ in enumerate(RANGES):
            conv_case(i, [6, 7], [3, 3], 3, 1 + (i + k) % 3, strides, dilations, padding, range_, depthwise=True,
                      second=i % 4 == 1, per_tensor=i % 5 == 0, **varied(k + i // 6))
            i += 1
for padding in ["SAME", "VALID"]:
    for strides, dilations in [([1, 1, 1], [1, 1, 1]), ([2, 1, 2], [1, 1, 1]), ([2, 2, 3], [1, 1, 1]), ([1, 1, 1], [1, 2, 2])]:
        for k, range_ in enumerate(RANGES):
            conv_case(i, [4, 4, 5], [2, 2, 3], 2, 3, strides, dilations, padding, range_, per_tensor=i % 5 == 0,
                      **varied(k + i // 6))
            i += 1


# activations of 16 bits, with sums that int32 holds (few products, small weights) and that it does not
for padding in ["SAME", "VALID", "EXPLICIT"]:
    for strides, dilations in [([1, 1], [1, 1]), ([2, 2], [1, 1]), ([1, 1], [2, 1])]:
        for k, range_ in enumerate(RANGES):
            conv_case(i, [7, 6], [3, 2], 3 + 97 * (k == 1), 4, strides, dilations, padding, range_, second=i % 4 == 3,
                      per_tensor=i % 7 == 0, method=2, **varied(k + i // 6))
            i += 1
for range_ in RANGES:
    conv_case(i, [6, 7], [3, 3], 3, 2, [1, 1], [1, 1], "SAME", range_, depthwise=True, second=i % 2, method=2, **varied(i))
    conv_case(i, [4, 4, 5], [2, 2, 3], 2, 3, [2, 1, 2], [1, 1, 1], "SAME", range_, method=2, **varied(i))
    i += 1

# ---- products ----

def matmul_case(i, transpose_a, transpose_b, range_, **options):
    m, k, n = 3, 7, 5
    x = draw([k, m] if transpose_a else [m, k], *range_)
    w = rng.normal(0, 1, [n, k] if transpose_b else [k, n]).astype(np.float32)
    bias = rng.normal(0, 3, n).astype(np.float32) if i // 3 % 2 else None
    if i % 4 == 1 and "method" not in options:
        options["second"] = rng.normal(0, 1, [n, 3]).astype(np.float32)
    attrs = f"T: float; transpose_a: {str(transpose_a).lower()}; transpose_b: {str(transpose_b).lower()}"
    emit("MatMul", attrs, lambda a, b: (a.T if transpose_a else a) @ (b.T if transpose_b else b), x, w,
         (1,) if transpose_b else (0,), lambda s: s.reshape(-1), bias=bias, activation=i % 3, range_=range_,
         rows=(0,) if transpose_a else (1,), of_rows=lambda s: s.T if transpose_a else s, **options)


for transpose_a in [False, True]:
    for transpose_b in [False, True]:
        for range_ in RANGES:
            matmul_case(i, transpose_a, transpose_b, range_, per_tensor=i % 4 == 0, bits=4 if i % 3 == 0 else 8)
            i += 1
        matmul_case(i, transpose_a, transpose_b, (-2.0, 2.5), method=2)
        matmul_case(i + 3, transpose_a, transpose_b, (-2.0, 0.5), method=2, bits=4)
        matmul_case(i, transpose_a, transpose_b, (-2.0, 2.5), method=1)
        matmul_case(i + 1, transpose_a, transpose_b, (0.0, 2.5), method=1, per_tensor=True)


def einsum_case(op, attrs, equation, x_shape, w_shape, sum_axes, range_, weight_first=False, field_shape=None, **options):
    x, w = draw(x_shape, *range_), rng.normal(0, 1, w_shape).astype(np.float32)

    def product(a, b):
        return np.einsum(equation, *((b, a) if weight_first else (a, b)))

    def fields(scale):
        if scale.size == 1:
            return scale.reshape(())
        # a scale of one einsum with ones in the activation's place has the output's labels
        labels = equation.split("->")[1]
        rhs = equation.split("->")[0].split(",")[0 if weight_first else 1]
        kept = [c for c in rhs if c in labels]
        squeezed = scale.reshape([w.shape[rhs.index(c)] for c in kept])
        order = [c for c in labels if c in kept]
        squeezed = np.transpose(squeezed, [kept.index(c) for c in order])
        return squeezed.reshape([squeezed.shape[order.index(c)] if c in order else 1 for c in labels])

    bias = None
    if options.pop("bias", False):
        bias = rng.normal(0, 3, product(x, w).shape[-1]).astype(np.float32)
    if options.pop("second", False):
        options["second"] = rng.normal(0, 1, [product(x, w).shape[-1], 3]).astype(np.float32)

    def of_rows(scale):
        labels = equation.split("->")[1]
        kept = [c for c in x_labels if c in labels]
        scale = scale.reshape([scale.shape[x_labels.index(c)] for c in kept])
        order = [c for c in labels if c in kept]
        scale = np.transpose(scale, [kept.index(c) for c in order])
        return scale.reshape([scale.shape[order.index(c)] if c in order else 1 for c in labels])

    x_labels = equation.split("->")[0].split(",")[1 if weight_first else 0]
    rows = tuple(j for j, c in enumerate(x_labels) if c not in equation.split("->")[1])
    emit(op, attrs, product, x, w, sum_axes, fields, bias=bias, range_=range_, rows=rows, of_rows=of_rows, **options)


i = 0
for range_ in RANGES:
    for adj_x in [False, True]:
        for adj_y in [False, True]:
            attrs = f"T: float; adj_x: {str(adj_x).lower()}; adj_y: {str(adj_y).lower()}"
            left = "abkm" if adj_x else "abmk"
            lhs = [2, 3, 5, 4] if adj_x else [2, 3, 4, 5]
            for batch, dims in [("", []), ("b", [3]), ("ab", [2, 3])]:
                rhs = batch + ("nk" if adj_y else "kn")
                shape = dims + ([6, 5] if adj_y else [5, 6])
                einsum_case("BatchMatMulV2", attrs, f"{left},{rhs}->abmn", lhs, shape, (rhs.index("k"),), range_,
                            per_tensor=adj_x and adj_y, activation=i % 3, bias=not batch and i // 3 % 2,
                            second=i % 5 == 2)
                i += 1
SIZES = dict(zip("abcdefgh", [2, 3, 4, 5, 2, 3, 2, 2]))
EQUATIONS = [("abc,cd->abd", False), ("abc,cde->abde", False), ("abcd,cde->abe", False), ("ab,cb->ac", False),
             ("abc,bcd->abd", False), ("abc,acd->abd", False), ("cd,abc->abd", True), ("abc,cd->adb", False),
             ("abc,dc->dab", False), ("dc,abc->abd", True)]
for range_ in RANGES:
    for equation, weight_first in EQUATIONS:
        terms = equation.split("->")[0].split(",")
        x_labels, w_labels = terms[::-1] if weight_first else terms
        out = equation.split("->")[1]
        single = equation in ("abc,cd->abd", "ab,cb->ac", "abcd,cde->abe")  # one free axis of the weight, the last
        einsum_case("Einsum", f"T: float; N: 2; equation: '{equation}'", equation, [SIZES[c] for c in x_labels],
                    [SIZES[c] for c in w_labels], tuple(j for j, c in enumerate(w_labels) if c not in out), range_,
                    weight_first=weight_first, activation=i % 3, bias=single and i // 3 % 2, second=single and i % 4 == 1)
        i += 1


def two_input_case(op, attrs, equation, a_shape, b_shape, a_range, b_range):
    a, b = draw(a_shape, *a_range), draw(b_shape, *b_range)
    p, q = activation_params(*a_range), activation_params(*b_range)
    product = equation if callable(equation) else lambda m, n: np.einsum(equation, m, n)
    sums = product(quantize(a, p) - p[1], quantize(b, q) - q[1])
    y = sums.astype(np.int32).astype(np.float32) * (np.float32(p[0]) * np.float32(q[0]))
    g.case(op, attrs, [a, b, np.zeros(0, np.float32), numbers(0, 0, 8, 0, 1, 0, [a_range, b_range, (0, 0)])], [y])


for a_range in RANGES:
    for b_range in RANGES:
        two_input_case("MatMul", "T: float; transpose_b: true", "mk,nk->mn", [3, 5], [4, 5], a_range, b_range)
        two_input_case("BatchMatMulV2", "T: float; adj_y: true", "bhmk,bhnk->bhmn", [2, 2, 3, 5], [2, 2, 4, 5], a_range, b_range)
        two_input_case("Einsum", "T: float; N: 2; equation: 'aecd,abcd->acbe'", "aecd,abcd->acbe", [2, 3, 2, 4], [2, 5, 2, 4],
                       a_range, b_range)

for equation in ["abc,cd->abd", "abc,bcd->abd", "abc,cd->adb"]:
    einsum_case("Einsum", f"T: float; N: 2; equation: '{equation}'", equation, [2, 3, 4],
                [dict(zip("bcd", [3, 4, 5]))[c] for c in equation.split("->")[0].split(",")[1]],
                (equation.split("->")[0].split(",")[1].index("c"),), (-1.5, 2.0), method=2, activation=1)

# ---- products whose batch axes broadcast ----

def broadcast_case(i, x_shape, w_shape, range_, **options):
    x = exact_draw(x_shape) if options.get("method") == 3 else draw(x_shape, *range_)
    w = rng.normal(0, 1, w_shape).astype(np.float32)
    if options.pop("second", False):
        options["second"] = rng.normal(0, 1, [w_shape[-1], 3]).astype(np.float32)
    emit("BatchMatMulV2", "T: float; adj_x: false; adj_y: false", np.matmul, x, w, (len(w_shape) - 2,),
         lambda s: s.reshape(()) if s.size == 1 else s, range_=range_, per_tensor=i % 4 == 3, activation=i % 3,
         rows=(len(x_shape) - 1,), of_rows=lambda s: s, **options)


i = 0
BROADCASTS = [([4, 5], [3, 5, 6]), ([1, 4, 5], [3, 5, 6]), ([2, 1, 4, 5], [2, 3, 5, 6]), ([3, 1, 4, 5], [2, 5, 6]),
              ([1, 4, 5], [2, 3, 5, 6]), ([2, 3, 4, 5], [1, 3, 5, 6]), ([1, 2, 4, 5], [3, 1, 5, 6])]
for x_shape, w_shape in BROADCASTS:
    for range_ in RANGES[1:4]:
        broadcast_case(i, x_shape, w_shape, range_, second=i % 5 == 2)
        i += 1
    broadcast_case(i, x_shape, w_shape, (-3.0, 3.0), method=3)
    broadcast_case(i + 1, x_shape, w_shape, (-2.0, 2.5), method=2)

for a_shape, b_shape in [([1, 3, 5], [2, 5, 4]), ([2, 3, 3, 5], [2, 1, 5, 4]), ([3, 5], [2, 2, 5, 4]), ([2, 1, 3, 5], [1, 3, 5, 4])]:
    for a_range, b_range in [(RANGES[1], RANGES[3]), (RANGES[2], RANGES[2])]:
        two_input_case("BatchMatMulV2", "T: float", np.matmul, a_shape, b_shape, a_range, b_range)

for equation, x_shape, w_shape in [("...x,xy->...y", [2, 3, 4, 5], [5, 6]), ("a...b,bc->ac...", [2, 3, 4, 5], [5, 6]),
                                   ("...ab,abc->...c", [2, 4, 5], [4, 5, 3])]:
    for range_ in RANGES[2:4]:
        summed = tuple(j for j, c in enumerate(equation.split("->")[0].split(",")[1]) if c not in equation[-4:])
        x, w = draw(x_shape, *range_), rng.normal(0, 1, w_shape).astype(np.float32)
        emit("Einsum", f"T: float; N: 2; equation: '{equation}'", lambda a, b: np.einsum(equation, a, b), x, w,
             summed, lambda s: s.reshape([-1, 1, 1]) if equation.endswith("c...") else s.reshape(-1), range_=range_)

# ---- dynamic range of convolutions: what they pad with depends on the values ----

for i, range_ in enumerate([(-1.0, 3.0), (-3.0, 0.0), (0.5, 2.0), (-2.0, 2.0)]):
    conv_case(i, [7, 6], [3, 2], 3, 4, [2, 1], [1, 1], "SAME", range_, method=1, **varied(i))
    conv_case(i, [7, 6], [3, 2], 3, 4, [1, 1], [2, 1], "SAME", range_, method=1, per_tensor=i % 2, **varied(i + 3))
    conv_case(i, [7, 6], [3, 2], 3, 4, [1, 2], [1, 1], "EXPLICIT", range_, method=1, bits=4, **varied(i + 1))

# ---- bfloat16 and half ----

i = 0
for dtype in ["bfloat16", "half"]:
    for range_ in RANGES[:4]:
        conv_case(i, [7, 6], [3, 2], 3, 4, [2, 1], [1, 1], "SAME", range_, dtype=dtype, second=i % 2, **varied(i))
        conv_case(i, [5, 5], [3, 3], 3, 2, [1, 1], [1, 1], "SAME", range_, depthwise=True, dtype=dtype, **varied(i + 1))
        matmul_case(i, False, i % 2 == 1, range_, dtype=dtype)
        matmul_case(i + 1, False, False, range_, dtype=dtype, per_tensor=True)
        einsum_case("BatchMatMulV2", "T: float", "abmk,kn->abmn", [2, 3, 4, 5], [5, 6], (0,), range_, dtype=dtype,
                    activation=i % 3, bias=i % 2, second=i % 3 == 2)
        einsum_case("Einsum", "T: float; N: 2; equation: 'abc,cd->adb'", "abc,cd->adb", [2, 3, 4], [4, 5], (0,), range_,
                    dtype=dtype, activation=i % 3)
        i += 1
    for k in range(6):
        matmul_case(k, False, k % 2 == 1, (-2.0, 2.5), method=1, dtype=dtype)
    matmul_case(0, True, False, (-2.0, 0.5), method=2, dtype=dtype)

    draw, kept = lambda shape, low, high: exact_draw(shape), draw
    for k in range(6):
        matmul_case(k, False, k % 2 == 1, (-3.0, 3.0), method=3, dtype=dtype, per_tensor=k == 5, bits=4 if k == 4 else 8)
        conv_case(k, [7, 6], [3, 2], 3, 4, [2, 1], [1, 1], "SAME", (-3.0, 3.0), method=3, dtype=dtype, **varied(k))
    einsum_case("Einsum", "T: float; N: 2; equation: 'abc,cd->adb'", "abc,cd->adb", [2, 3, 4], [4, 5], (0,), (-3.0, 3.0),
                method=3, dtype=dtype, activation=1)
    draw = kept

# ---- dynamic range of products of any form, with a range for each row ----

i = 0
draw = kept
for range_ in [(-1.0, 3.0), (0.5, 2.0)]:
    for equation, weight_first in EQUATIONS + [("ba,bc->ac", False), ("bca,bcd->ad", False)]:
        x_labels, w_labels = (equation.split("->")[0].split(",")[k] for k in ((1, 0) if weight_first else (0, 1)))
        summed = tuple(j for j, c in enumerate(w_labels) if c not in equation.split("->")[1])
        einsum_case("Einsum", f"T: float; N: 2; equation: '{equation}'", equation, [SIZES[c] for c in x_labels],
                    [SIZES[c] for c in w_labels], summed, range_, weight_first=weight_first, activation=i % 3, method=4)
        i += 1
    for adj_x in [False, True]:
        for batch, dims in [("", []), ("b", [3]), ("ab", [2, 3])]:
            einsum_case("BatchMatMulV2", f"T: float; adj_x: {str(adj_x).lower()}; adj_y: false",
                        f"{'abkm' if adj_x else 'abmk'},{batch}kn->abmn", [2, 3, 5, 4] if adj_x else [2, 3, 4, 5],
                        dims + [5, 6], (len(batch),), range_, activation=i % 3, method=4)
            i += 1
    for x_shape, w_shape in BROADCASTS:
        broadcast_case(i, x_shape, w_shape, range_, method=4)
        i += 1

# ---- scales and zero points alone: low, high -> scale, zero point ----

edges = [(0, 0), (1e-7, 2e-7), (-1e-6, 0), (0, 1e-6), (0, 1.0000001e-6), (-127.5, 127.5), (-128, 127), (-1, 1), (2, 5.1),
         (-2.55, -1), (0, 255), (-255, 0), (-1e-30, 1e30), (-3e38, 3e38), (0, 5e-324)]
pairs = edges + [tuple(sorted(rng.normal(0, 10.0 ** rng.integers(-7, 7), 2))) for _ in range(200)]
table = np.array([activation_params(float(low), float(high)) for low, high in pairs])
g.case("parameters", None, [np.array(pairs, dtype=np.float64)], [table])
g.save(__file__)
