"""Random StableHLO modules that check themselves: ops of general dimension numbers, by StableHLO's definitions.

usage: stablehlo_random.py FOLDER                     writes stablehlo/random_NAME.mlirbc beside this script
       stablehlo_random.py FOLDER TARE FIRST COUNT    runs modules of the seeds FIRST … with the program TARE

FOLDER has vhlo_write.py, a writer of VHLO modules in Python (numpy only). tests/unit/convert/stablehlo/ops_test.c
runs the modules that are written."""
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, sys.argv[1])
from vhlo_write import A, B, E, I, Module, S, T, arr, ivec, ten, Blk  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stablehlo')
NAMES = {np.dtype(np.float32): 'f32', np.dtype(np.float64): 'f64', np.dtype(np.int8): 'si8', np.dtype(np.int32): 'si32',
         np.dtype(np.int64): 'si64', np.dtype(np.uint8): 'ui8', np.dtype(np.uint32): 'ui32'}
DTYPES = list(NAMES)
PRECISION = A(E('prec', 'DEFAULT'), E('prec', 'DEFAULT'))
NO_ALGORITHM = {name: T('none') for name in (
    'lhs_precision_type', 'rhs_precision_type', 'accumulation_type', 'lhs_component_count', 'rhs_component_count',
    'num_primitive_operations', 'allow_imprecise_accumulation')}


def of(value):
    return ten(value.shape, NAMES[value.dtype])


class Case:
    """A module without arguments; numbers are small integers, so that every sum is exact in every order."""

    def __init__(self, name, seed):
        self.name, self.module, self.random = name, Module(name, '1.8.0'), np.random.default_rng(seed)
        self.f = self.module.func('main', [], visibility='public')

    def below(self, n):
        return int(self.random.integers(n))

    def sizes(self, count, most=4):
        return [1 + self.below(most) for _ in range(count)]

    def order(self, n):
        return [int(i) for i in self.random.permutation(n)]

    def dtype(self):
        return DTYPES[self.below(len(DTYPES))]

    def numbers(self, shape, dtype):
        return self.random.integers(0 if dtype.kind == 'u' else -3, 4, shape).astype(dtype)

    def constant(self, value):
        attr = arr(np.array(value, order='C'))
        return self.f.op('constant', [], [attr[1]], {'value': attr})

    def check(self, op, operands, expected, attrs, regions=()):
        value = self.f.op(op, [self.constant(v) for v in operands], [of(expected)], attrs, regions)
        self.f.op('custom_call', [value, self.constant(expected)], [], {
            'api_version': E('api', 'ORIGINAL'), 'backend_config': S(''), 'call_target_name': S('check.expect_eq'),
            'called_computations': A(), 'has_side_effect': B(True), 'operand_layouts': A(),
            'output_operand_aliases': A(), 'result_layouts': A()})

    def combine(self, dtype, op):
        scalar = ten((), NAMES[dtype])
        block = Blk([scalar, scalar], self.f)
        block.op('return', [block.op(op, block.args, [scalar])])
        return block

    def bytes(self):
        self.module.ret(self.f, [])
        return self.module.dump()


# ---- products ----

def dot_general(c):
    """Batch, contracted and free dimensions in any order."""
    dtype, n_batch, n_contracted = c.dtype(), c.below(3), c.below(3)
    batch, contracted = c.sizes(n_batch, 3), c.sizes(n_contracted)
    frees = [c.sizes(c.below(3), 3) for _ in range(2)]
    whole = [c.numbers(batch + contracted + free, dtype) for free in frees]
    orders = [c.order(v.ndim) for v in whole]
    places = [np.argsort(order).tolist() for order in orders]  # where a dimension is in the operand
    operands = [v.transpose(order) for v, order in zip(whole, orders)]
    kept = [[i for i in range(v.ndim) if i not in p[:n_batch + n_contracted]] for v, p in zip(operands, places)]
    first = places[0][:n_batch] + kept[0] + places[0][n_batch:n_batch + n_contracted]
    second = places[1][:n_batch] + kept[1] + places[1][n_batch:n_batch + n_contracted]
    a, b = operands[0].transpose(first), operands[1].transpose(second)
    depth = int(np.prod(contracted, dtype=np.int64))
    rows, columns = (list(v.shape[n_batch:v.ndim - n_contracted]) for v in (a, b))
    a = a.reshape(batch + [int(np.prod(rows)), 1, depth])
    b = b.reshape(batch + [1, int(np.prod(columns)), depth])
    c.check('dot_general', operands, (a * b).sum(-1, dtype=dtype).reshape(batch + rows + columns), {
        'lhs_batching_dimensions': ivec(places[0][:n_batch]), 'rhs_batching_dimensions': ivec(places[1][:n_batch]),
        'lhs_contracting_dimensions': ivec(places[0][n_batch:n_batch + n_contracted]),
        'rhs_contracting_dimensions': ivec(places[1][n_batch:n_batch + n_contracted]),
        'precision_config': PRECISION, **NO_ALGORITHM})


def padded(x, fill, low, high, between):
    """The definition of pad: negative amounts remove elements."""
    shape = [n + max(n - 1, 0) * b + l + h for n, l, h, b in zip(x.shape, low, high, between)]
    y = np.full(shape, fill, x.dtype)
    for at in np.ndindex(*x.shape):
        to = tuple(i * (b + 1) + l for i, l, b in zip(at, low, between))
        if all(0 <= i < n for i, n in zip(to, shape)):
            y[to] = x[at]
    return y


def amounts(c, shape, dilation):
    """Padding at both ends that leaves no negative size."""
    while True:
        pads = [(c.below(6) - 2, c.below(6) - 2) for _ in shape]
        if all((n - 1) * d + 1 + sum(p) >= 0 for n, d, p in zip(shape, dilation, pads)):
            return pads


def window_parts(x, size, stride, dilation):
    """For each position in the window, the elements that the windows have there."""
    outs = [max(0, (n - (k - 1) * d - 1) // s + 1) for n, k, s, d in zip(x.shape[-len(size):], size, stride, dilation)]
    for place in itertools.product(*map(range, size)):
        cut = tuple(slice(p * d, p * d + (o - 1) * s + 1 if o else p * d, s)
                    for p, d, o, s in zip(place, dilation, outs, stride))
        yield place, x[(..., *cut)]


def convolve(x, w, stride, pads, dilations, groups, batch_groups):
    """x [batch, channels, …], w [outputs, inputs, …]."""
    spatial = len(stride)
    wide = padded(x, 0, [0, 0] + [p[0] for p in pads], [0, 0] + [p[1] for p in pads],
                  [0, 0] + [d - 1 for d in dilations[0]])
    results = []
    for g in range(max(groups, batch_groups)):
        part = np.array_split(wide, batch_groups, 0)[g] if batch_groups > 1 else np.array_split(wide, groups, 1)[g]
        weights = np.array_split(w, max(groups, batch_groups), 0)[g]
        if spatial == 0:
            results.append(part @ weights.T)
            continue
        results.append(sum(np.tensordot(weights[(..., *place)], taps, (1, 1)).swapaxes(0, 1)
                           for place, taps in window_parts(part, w.shape[2:], stride, dilations[1])))
    return np.concatenate(results, 1).astype(x.dtype)


def convolution(c):
    """Any order of dimensions, groups of channels or of the batch, dilations, reversed windows, 0 to 3 dimensions."""
    dtype, spatial = c.dtype(), c.below(4)
    groups, batch_groups = [(1, 1), (1, 1), (1 + c.below(3), 1), (1, 1 + c.below(3))][c.below(4)]
    inputs, outputs, batch = 1 + c.below(3), (1 + c.below(3)) * groups * batch_groups, (1 + c.below(2)) * batch_groups
    image, kernel, stride = c.sizes(spatial, 6), c.sizes(spatial), c.sizes(spatial, 3)
    dilations = [c.sizes(spatial, 2) for _ in range(2)]
    pads = amounts(c, image, dilations[0])
    x, w = c.numbers([batch, inputs * groups] + image, dtype), c.numbers([outputs, inputs] + kernel, dtype)
    reverse = [c.below(5) == 0 for _ in range(spatial)]
    turned = w[(slice(None), slice(None), *(slice(None, None, -1 if r else 1) for r in reverse))]
    y = convolve(x, turned, stride, pads, dilations, groups, batch_groups)
    orders = [c.order(spatial + 2) for _ in range(3)]
    at = [np.argsort(order).tolist() for order in orders]
    c.check('convolution', [x.transpose(orders[0]), w.transpose(orders[1])], y.transpose(orders[2]), {
        'batch_group_count': I(batch_groups), 'feature_group_count': I(groups),
        'input_batch_dimension': I(at[0][0]), 'input_feature_dimension': I(at[0][1]),
        'input_spatial_dimensions': ivec(at[0][2:]), 'kernel_output_feature_dimension': I(at[1][0]),
        'kernel_input_feature_dimension': I(at[1][1]), 'kernel_spatial_dimensions': ivec(at[1][2:]),
        'output_batch_dimension': I(at[2][0]), 'output_feature_dimension': I(at[2][1]),
        'output_spatial_dimensions': ivec(at[2][2:]), 'precision_config': PRECISION, 'window_strides': ivec(stride),
        'lhs_dilation': ivec(dilations[0]), 'rhs_dilation': ivec(dilations[1]),
        'window_reversal': arr(np.array(reverse, bool)), 'padding': arr(np.array(pads, np.int64).reshape(spatial, 2))})


# ---- windows and padding ----

def reduce_window(c):
    dtype, rank = c.dtype(), 1 + c.below(4)
    shape, size, stride = c.sizes(rank, 5), c.sizes(rank, 3), c.sizes(rank, 3)
    base, dilation = c.sizes(rank, 2), c.sizes(rank, 2)
    op, fold = [('add', np.add), ('maximum', np.maximum), ('minimum', np.minimum)][c.below(3)]
    start = np.array(0 if op == 'add' else c.below(3), dtype)
    x, pads = c.numbers(shape, dtype), amounts(c, shape, base)
    wide = padded(x, start, [p[0] for p in pads], [p[1] for p in pads], [d - 1 for d in base])
    y = None
    for _, taps in window_parts(wide, size, stride, dilation):
        y = fold(np.broadcast_to(start, taps.shape), taps) if y is None else fold(y, taps)
    c.check('reduce_window', [x, start], y.astype(dtype), {
        'window_dimensions': ivec(size), 'window_strides': ivec(stride), 'base_dilations': ivec(base),
        'window_dilations': ivec(dilation), 'padding': arr(np.array(pads, np.int64))}, [c.combine(dtype, op)])


def pad(c):
    x = c.numbers(c.sizes(c.below(4), 5), c.dtype())
    between = [c.below(3) for _ in x.shape]
    pads, fill = amounts(c, x.shape, [b + 1 for b in between]), np.array(2, x.dtype)
    low, high = [p[0] for p in pads], [p[1] for p in pads]
    c.check('pad', [x, fill], padded(x, 2, low, high, between), {
        'edge_padding_low': ivec(low), 'edge_padding_high': ivec(high), 'interior_padding': ivec(between)})


# ---- gather and scatter ----

class Slices:
    """Dimension numbers of a gather, or of a scatter, which is its opposite: where slices of an operand start."""

    def __init__(self, c):
        self.shape = c.sizes(1 + c.below(4))
        kinds = ['bcwww'[c.below(5)] for _ in self.shape]  # batching, collapsed, in the slice
        self.batching, self.collapsed, self.kept = ([i for i, k in enumerate(kinds) if k == kind] for kind in 'bcw')
        indexed = self.collapsed + self.kept
        self.map = [indexed[i] for i in c.order(len(indexed))][:c.below(len(indexed) + 1)]
        self.sizes = [1 + c.below(n) if k == 'w' else 1 for n, k in zip(self.shape, kinds)]
        own = self.batching + [None] * c.below(3)
        own = [own[i] for i in c.order(len(own))]  # dimensions of the indices: of the operand, or their own
        self.steps = [3 if d is None else self.shape[d] for d in own]
        self.of = {d: k for k, d in enumerate(own) if d is not None}
        self.vector = c.below(len(own) + 1)
        places = [k + (k >= self.vector) for k in range(len(own))]
        self.index_batching = [places[self.of[d]] for d in self.batching]
        full = self.steps[:self.vector] + [len(self.map)] + self.steps[self.vector:]
        self.indices = c.random.integers(-1, 4, full).astype(np.int32)
        rank = len(own) + len(self.kept)
        self.offsets = sorted(c.order(rank)[:len(self.kept)])
        slices, steps = iter(self.sizes[d] for d in self.kept), iter(self.steps)
        self.result = [next(slices) if d in self.offsets else next(steps) for d in range(rank)]

    def start(self, at):
        """The start of the slice that the element `at` of the result is in, and the element's place in the slice."""
        step = [i for d, i in enumerate(at) if d not in self.offsets]
        start, inside = [0] * len(self.shape), [0] * len(self.shape)
        for k, d in enumerate(self.map):
            start[d] = int(self.indices[tuple(step[:self.vector] + [k] + step[self.vector:])])
        for d in self.batching:
            start[d] = step[self.of[d]]
        for d, offset in zip(self.kept, self.offsets):
            inside[d] = at[offset]
        return np.array(start, int), np.array(inside, int)

    def most(self):
        return np.array(self.shape, int) - self.sizes


def gather(c):
    s = Slices(c)
    x = c.numbers(s.shape, c.dtype())
    y = np.zeros(s.result, x.dtype)
    for at in np.ndindex(*s.result):
        start, inside = s.start(at)
        y[at] = x[tuple(np.clip(start, 0, s.most()) + inside)]
    c.check('gather', [x, s.indices], y, {
        'offset_dims': ivec(s.offsets), 'collapsed_slice_dims': ivec(s.collapsed), 'start_index_map': ivec(s.map),
        'operand_batching_dims': ivec(s.batching), 'start_indices_batching_dims': ivec(s.index_batching),
        'index_vector_dim': I(s.vector), 'slice_sizes': ivec(s.sizes), 'indices_are_sorted': B(False)})


def scatter(c):
    """A window that is partly outside is skipped, as XLA does."""
    s, dtype = Slices(c), c.dtype()
    x, updates = c.numbers(s.shape, dtype), c.numbers(s.result, dtype)
    y = x.copy()
    op, fold = [('add', np.add), ('maximum', np.maximum), ('subtract', np.subtract)][c.below(3)]
    for at in np.ndindex(*s.result):
        start, inside = s.start(at)
        if (start >= 0).all() and (start <= s.most()).all():
            y[tuple(start + inside)] = fold(y[tuple(start + inside)], updates[at])
    c.check('scatter', [x, s.indices, updates], y, {
        'update_window_dims': ivec(s.offsets), 'inserted_window_dims': ivec(s.collapsed),
        'scatter_dims_to_operand_dims': ivec(s.map), 'input_batching_dims': ivec(s.batching),
        'scatter_indices_batching_dims': ivec(s.index_batching), 'index_vector_dim': I(s.vector),
        'indices_are_sorted': B(False), 'unique_indices': B(False)}, [c.combine(dtype, op)])


def module(draw, seed):
    case = Case(f'random_{draw.__name__}', seed)
    with np.errstate(over='ignore'):
        for _ in range(20):
            draw(case)
    return case.bytes()


def main():
    draws = [dot_general, convolution, reduce_window, pad, gather, scatter]
    if len(sys.argv) == 2:
        for draw in draws:
            with open(os.path.join(FOLDER, f'random_{draw.__name__}.mlirbc'), 'wb') as out:
                out.write(module(draw, 1))
        return
    tare, first, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with tempfile.NamedTemporaryFile(suffix='.mlirbc') as file:
        for seed, draw in itertools.product(range(first, first + count), draws):
            with open(file.name, 'wb') as out:
                out.write(module(draw, seed))
            run = subprocess.run([tare, 'run', file.name, '--quiet'], capture_output=True, text=True)
            if run.returncode:
                print(f'{draw.__name__}, seed {seed}: exit status {run.returncode}: {run.stderr.strip()}')


main()
