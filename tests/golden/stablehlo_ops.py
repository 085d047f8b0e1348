"""Modules that check ops of StableHLO, for tests/unit/convert/stablehlo/ops_test.c, by a writer that shares no code with tare.

usage: stablehlo_ops.py FOLDER    FOLDER has vhlo_write.py, a writer of VHLO modules in Python (numpy only)

Writes stablehlo/ops_NAME.mlirbc beside this script. main has no arguments; each check compares a result with what numpy, or
a loop over the definition in StableHLO's specification, computes here."""
import math
import os
import sys
from fractions import Fraction

import numpy as np

sys.path.insert(0, sys.argv[1])
import vhlo_write  # noqa: E402
from vhlo_write import A, B, DI, E, F, I, Module, S, T, arr, ivec, section, svi, ten, vi, Blk  # noqa: E402

vhlo_write.TC.update({'f8E4M3FN': 6, 'f8E5M2': 7, 'si2': 31, 'ui2': 32, 'f4E2M1FN': 37})  # codes of VHLO that the writer does not know
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stablehlo')
random = np.random.default_rng(7)
# names of types that the writer does not derive from numpy's
NAMES = {np.dtype(np.float32): 'f32', np.dtype(np.float64): 'f64', np.dtype(np.float16): 'f16', np.dtype(bool): 'bool',
         np.dtype(np.int8): 'si8', np.dtype(np.int32): 'si32', np.dtype(np.int64): 'si64', np.dtype(np.uint8): 'ui8',
         np.dtype(np.uint32): 'ui32', np.dtype(np.uint64): 'ui64'}


class Case:
    """A module with one main."""

    def __init__(self, name, version='1.8.0'):
        self.name, self.module = name, Module(name, version)
        self.f = self.module.func('main', [], visibility='public')
        self.tilings = {'result_tilings': A()} if version == '1.20.0' else {}

    def constant(self, value):
        attr = arr(np.asarray(value))
        return self.f.op('constant', [], [attr[1]], {'value': attr})

    def quantized(self, value, kind):
        attr = arr(np.asarray(value))
        return self.f.op('constant', [], [ten(np.shape(value), kind)], {'value': attr})

    def op(self, name, operands, results, attrs=None, regions=(), extra=None):
        return self.f.op(name, operands, results, attrs or {}, regions, extra)

    def call(self, target, operands, results, extra=None, called=(), config=''):
        return self.op('custom_call', operands, results, {
            'api_version': E('api', 'ORIGINAL'), 'backend_config': S(config), 'call_target_name': S(target),
            'called_computations': A(*[S(c) for c in called]), 'has_side_effect': B(not results), 'operand_layouts': A(),
            'output_operand_aliases': A(), 'result_layouts': A(), **self.tilings}, extra=extra)

    def equal(self, value, expected, tolerance=None):
        if tolerance is None:
            self.call('check.expect_eq', [value, self.constant(expected)], [])
        else:
            self.call('check.expect_almost_eq', [value, self.constant(expected)], [],
                      {'tolerance': F(tolerance, 'f64')})

    def save(self):
        self.module.ret(self.f, [])
        with open(os.path.join(FOLDER, f'ops_{self.name}.mlirbc'), 'wb') as out:
            out.write(self.module.dump())


def of(value):
    value = np.asarray(value)
    return ten(value.shape, NAMES[value.dtype])


def combine(case, dtype, op):
    """A region of two scalars."""
    s = ten((), dtype)
    block = Blk([s, s], case.f)
    block.op('return', [block.op(op, block.args, [s])])
    return block


# ---- structure ----

def structure():
    c = Case('structure')
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([5, -7], np.int32)
    pair = ('tuple', (of(x), of(y)))
    t = c.op('tuple', [c.constant(x), c.constant(y)], [pair])
    c.equal(c.op('get_tuple_element', [t], [of(y)], {'index': I(1, 'si32')}), y)
    swap = c.module.func('swap', [pair])
    a = swap.op('get_tuple_element', [swap.args[0]], [of(x)], {'index': I(0, 'si32')})
    b = swap.op('get_tuple_element', [swap.args[0]], [of(y)], {'index': I(1, 'si32')})
    swapped = ('tuple', (of(y), of(x)))
    c.module.ret(swap, [swap.op('tuple', [b, a], [swapped])])
    t = c.op('call', [t], [swapped], {'callee': S('swap')})
    c.equal(c.op('get_tuple_element', [t], [of(x)], {'index': I(1, 'si32')}), x)
    limit = c.constant(np.float32(7)) # the loop captures it beside the two elements of its tuple
    limit = c.op('add', [limit, limit], [ten((), 'f32')])
    both, i1 = ('tuple', (ten((), 'f32'), ten((), 'si32'))), ten((), 'bool')
    test, body = Blk([both], c.f), Blk([both], c.f)
    first = [b.op('get_tuple_element', [b.args[0]], [ten((), 'f32')], {'index': I(0, 'si32')}) for b in (test, body)]
    test.op('return', [test.op('compare', [first[0], limit], [i1], {
        'comparison_direction': E('cmpdir', 'LT'), 'compare_type': E('cmptype', 'FLOAT')})])
    count = body.op('get_tuple_element', [body.args[0]], [ten((), 'si32')], {'index': I(1, 'si32')})
    after = [body.op('add', [first[1], first[1]], [ten((), 'f32')]), body.op('add', [count, count], [ten((), 'si32')])]
    body.op('return', [body.op('tuple', after, [both])])
    t = c.op('tuple', [c.constant(np.float32(1)), c.constant(np.int32(3))], [both])
    t = c.op('while', [t], [both], {}, [test, body])
    c.equal(c.op('get_tuple_element', [t], [ten((), 'si32')], {'index': I(1, 'si32')}), np.int32(48))
    token = c.op('create_token', [], ['token'])
    token = c.op('after_all', [token, token], ['token'])
    held = c.op('optimization_barrier', [c.constant(x), token], [of(x), 'token'])
    c.equal(held[0], x)
    block = Blk([ten((), 'f32')] * 2, c.f)
    two = block.op('constant', [], [ten((), 'f32')], {'value': arr(np.float32(2))})
    block.op('return', [block.op('multiply', [block.op('add', block.args, [ten((), 'f32')]), two], [ten((), 'f32')])])
    c.equal(c.op('map', [c.constant(x), c.constant(x + 1)], [of(x)], {'dimensions': ivec([0, 1])}, [block]), 4 * x + 2)
    block = Blk([ten((), 'f32')], c.f)
    block.op('return', [block.op('constant', [], [ten((), 'f32')], {'value': arr(np.float32(3))})])
    c.equal(c.op('map', [c.constant(x)], [of(x)], {'dimensions': ivec([0, 1])}, [block]), np.full_like(x, 3))
    c.equal(c.op('set_dimension_size', [c.constant(x), c.constant(np.int32(2))], [ten((2, 2), 'f32')],
                 {'dimension': I(1)}), x[:, :2])
    groups = arr(np.zeros((1, 1), np.int64))
    c.equal(c.op('all_reduce', [c.constant(x)], [of(x)], {
        'channel_id': I(0), 'replica_groups': groups, 'use_global_device_ids': B(False)}, [combine(c, 'f32', 'add')]), x)
    c.equal(c.op('torch_index_select', [c.constant(x), c.constant(np.array([[2, 0], [1, 1]], np.int32))],
                 [ten((2, 2), 'f32')], {'batch_dims': I(1), 'dim': I(1)}), np.array([[2, 0], [4, 4]], np.float32))
    m = random.normal(size=(3, 4)).astype(np.float32)
    c.equal(c.op('einsum', [c.constant(x), c.constant(m)], [ten((4, 2), 'f32')], {'einsum_config': S('ij,jk->ki')}),
            (x @ m).T, 1e-5)
    c.equal(c.op('unary_einsum', [c.constant(x)], [ten((3,), 'f32')], {'einsum_config': S('ij->j')}), x.sum(0))
    none = A(E('prec', 'DEFAULT'), E('prec', 'DEFAULT'))
    c.equal(c.op('dot', [c.constant(x), c.constant(m)], [ten((2, 4), 'f32')], {'precision_config': none}), x @ m, 1e-5)
    c.equal(c.op('dot', [c.constant(m[0]), c.constant(m[1])], [ten((), 'f32')], {'precision_config': none}),
            np.float32(m[0] @ m[1]), 1e-5)
    c.save()


# ---- numbers ----

def numbers():
    c = Case('numbers')
    x = random.normal(1, 2, (2, 3, 4)).astype(np.float32)
    scale, offset, grad = (random.normal(1, 1, s).astype(np.float32) for s in ((3,), (3,), (2, 3, 4)))
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    wide = lambda v: v[None, :, None]
    attrs = {'epsilon': F(0.01), 'feature_index': I(1)}
    v3 = ten((3,), 'f32')
    ins = [c.constant(v) for v in (x, scale, offset, mean, variance, grad)]
    normal = (x - wide(mean)) / np.sqrt(wide(variance) + np.float32(0.01))
    expected = normal * wide(scale) + wide(offset)
    c.equal(c.op('batch_norm_inference', ins[:5], [of(x)], attrs), expected, 1e-5)
    out = c.op('batch_norm_training', ins[:3], [of(x), v3, v3], attrs)
    for got, want in zip(out, (expected, mean, variance)):
        c.equal(got, want, 1e-5)
    out = c.op('batch_norm_grad', [ins[0], ins[1], ins[3], ins[4], ins[5]], [of(x), v3, v3], attrs)
    # by differences of the loss sum(grad * output) in double
    d = lambda x, s, o: (grad * ((x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 0.01) *
                                 wide(s) + wide(o))).sum()
    args = [x.astype(np.float64), scale.astype(np.float64), offset.astype(np.float64)]
    for k, got in enumerate(out):
        slope = np.zeros_like(args[k])
        for i in np.ndindex(slope.shape):
            step = np.zeros_like(slope)
            step[i] = 1e-5
            up, down = [list(args) for _ in range(2)]
            up[k], down[k] = args[k] + step, args[k] - step
            slope[i] = (d(*up) - d(*down)) / 2e-5
        c.equal(got, slope.astype(np.float32), 1e-4)
    a = np.array([0.5 + 1j, -2 - 0.25j, 3 + 0j], np.complex64)
    b = np.array([1.5 - 1j, -2 + 0.5j, -3 + 1j], np.complex64)

    def parts(v):
        return c.op('complex', [c.constant(v.real.copy()), c.constant(v.imag.copy())],
                    [ten(v.shape, ('complex', 'f32'))])

    def equal_complex(value, want, tolerance):
        for name, part in (('real', want.real), ('imag', want.imag)):
            c.equal(c.op(name, [value], [ten(want.shape, 'f32')]), part.astype(np.float32), tolerance)

    z = ten(a.shape, ('complex', 'f32'))
    w, v = a.astype(complex), b.astype(complex)
    equal_complex(c.op('atan2', [parts(a), parts(b)], [z]), -1j * np.log((v + 1j * w) / np.sqrt(v * v + w * w)), 1e-5)
    order = [(p.real, p.imag) > (q.real, q.imag) for p, q in zip(a, b)]
    equal_complex(c.op('maximum', [parts(a), parts(b)], [z]), np.where(order, a, b), 0)
    equal_complex(c.op('minimum', [parts(a), parts(b)], [z]), np.where(order, b, a), 0)
    bits = np.array([True, False, True])
    c.equal(c.op('bitcast_convert', [c.constant(bits)], [of(bits)]), bits)
    c.save()


# ---- windows and scatters ----

def windows():
    c = Case('windows')
    x, index = random.normal(size=(3, 5)).astype(np.float32), np.arange(15, dtype=np.int32).reshape(3, 5)
    f, i, p = ten((), 'f32'), ten((), 'si32'), ten((), 'bool')

    def larger():
        block = Blk([f, i, f, i], c.f)
        a, k, b, m = block.args
        flag = block.op('compare', [a, b], [p], {'comparison_direction': E('cmpdir', 'GE'),
                                                 'compare_type': E('cmptype', 'FLOAT')})
        block.op('return', [block.op('select', [flag, a, b], [f]), block.op('select', [flag, k, m], [i])])
        return block

    low = np.float32(-np.inf)
    pad = np.array([[1, 0], [0, 2]], np.int64)
    stride, size, dilation, base = (1, 2), (2, 2), (1, 2), (2, 1)
    full = np.full((3 * 2 - 1 + 1, 5 + 2), low, np.float32)
    where = np.full(full.shape, -1, np.int32)
    full[1::2, :5], where[1::2, :5] = x, index
    shape = (full.shape[0] - 1, (full.shape[1] - 3) // 2 + 1)
    best, at = np.zeros(shape, np.float32), np.zeros(shape, np.int32)
    for r in range(shape[0]):
        for k in range(shape[1]):
            cells = [(full[r + a, 2 * k + 2 * b], where[r + a, 2 * k + 2 * b]) for a in range(2) for b in range(2)]
            best[r, k], at[r, k] = max(cells, key=lambda cell: cell[0])
    windows_of = {'window_dimensions': ivec(size), 'window_strides': ivec(stride), 'base_dilations': ivec(base),
                  'window_dilations': ivec(dilation), 'padding': arr(pad)}
    out = c.op('reduce_window', [c.constant(x), c.constant(index), c.constant(low), c.constant(np.int32(-1))],
               [of(best), of(at)], windows_of, [larger()])
    c.equal(out[0], best)
    c.equal(out[1], at)
    helper = c.module.func('add', [f, f])
    c.module.ret(helper, [helper.op('add', helper.args, [f])])
    lists = [c.constant(np.array(v, np.int32)) for v in ((1, 2), (1, 1), (1, 1), (1, 1), ((0, 0), (1, 0)))]
    padded = np.pad(x, ((0, 0), (1, 0)))
    c.equal(c.call('stablehlo.dynamic_reduce_window', [c.constant(x), c.constant(np.float32(0))] + lists, [of(x)],
                   called=['add']), padded[:, 1:] + padded[:, :-1], 1e-6)
    # two operands, each with its own combination
    first, second = x.copy(), index.copy()
    updates, other = random.normal(size=(2, 5)).astype(np.float32), np.arange(10, dtype=np.int32).reshape(2, 5) + 3
    for row, u, o in zip((2, 0), updates, other):
        first[row] += u
        second[row] = np.maximum(second[row], o)
    block = Blk([f, i, f, i], c.f)
    a, k, b, m = block.args
    total, most = block.op('add', [a, b], [f]), block.op('maximum', [k, m], [i])
    block.op('return', [total, most])
    out = c.op('scatter', [c.constant(x), c.constant(index), c.constant(np.array([[2], [0]], np.int32)),
                           c.constant(updates), c.constant(other)], [of(x), of(index)],
               {'update_window_dims': ivec([1]), 'inserted_window_dims': ivec([0]),
                'scatter_dims_to_operand_dims': ivec([0]), 'index_vector_dim': I(1), 'indices_are_sorted': B(False),
                'unique_indices': B(False), 'input_batching_dims': ivec([]), 'scatter_indices_batching_dims': ivec([])},
               [block])
    c.equal(out[0], first, 1e-6)
    c.equal(out[1], second)
    c.save()


# ---- random bits ----

M32 = 0xffffffff


def philox(key, low, high):
    ctr, k = [low & M32, low >> 32, high & M32, high >> 32], [key & M32, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * ctr[0], 0xCD9E8D57 * ctr[2]
        ctr = [b >> 32 ^ ctr[1] ^ k[0], b & M32, a >> 32 ^ ctr[3] ^ k[1], a & M32]
        k = [k[0] + 0x9E3779B9 & M32, k[1] + 0xBB67AE85 & M32]
    return ctr


def threefry(key, counter):
    k = [key & M32, key >> 32]
    k.append(0x1BD11BDA ^ k[0] ^ k[1])
    x0, x1 = (counter & M32) + k[0] & M32, (counter >> 32) + k[1] & M32
    for group in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = x0 + x1 & M32
            x1 = (x1 << r | x1 >> 32 - r) & M32 ^ x0
        x0, x1 = x0 + k[(group + 1) % 3] & M32, x1 + k[(group + 2) % 3] + group + 1 & M32
    return x0, x1


def bits():
    c = Case('bits')
    key, counter = 0x123456789abcdef0, 0xfffffffffffffffe

    def check(algorithm, state, shape, dtype, want, after):
        out = c.op('rng_bit_generator', [c.constant(np.array(state, np.uint64))],
                   [ten((len(state),), 'ui64'), ten(shape, NAMES[np.dtype(dtype)])],
                   {'rng_algorithm': E('rngalg', algorithm)})
        c.equal(out[0], np.array(after, np.uint64))
        c.equal(out[1], np.array(want).astype(dtype).reshape(shape))

    mask = (1 << 64) - 1
    words = [w for n in range(3) for w in philox(key, counter + n & mask, key)]
    check('PHILOX', [key, counter], (5,), np.uint32, words[:5], [key, counter + 2 & mask])
    check('DEFAULT', [key, counter], (3,), np.uint64, [words[2 * n] | words[2 * n + 1] << 32 for n in range(3)],
          [key, counter + 2 & mask])
    check('PHILOX', [key, counter], (2, 3), np.uint8, [w & 0xff for w in words[:6]], [key, counter + 2 & mask])
    carried = [w for n in range(3) for w in philox(key, counter + n & mask, 7 + (counter + n > mask))]
    check('PHILOX', [key, counter, 7], (9,), np.uint32, carried[:9], [key, counter + 3 & mask, 8])
    even, odd = np.zeros((3, 4), np.uint64), np.zeros((3, 5), np.uint64)
    for out in even, odd:  # dimension 1 is the first even one, or the largest
        half = (out.shape[1] + 1) // 2
        for r in range(3):
            for h in range(half):
                for n, w in enumerate(threefry(key, counter + r * half + h & mask)):
                    if 2 * h + n < out.shape[1]:
                        out[r, 2 * h + n] = w
        check('THREE_FRY', [key, counter], out.shape, np.uint32, out, [key, counter + 3 * half & mask])
    pairs = [threefry(key, counter + n & mask) for n in range(3)]
    check('THREE_FRY', [key, counter], (3,), np.int64, [np.uint64(a | b << 32).astype(np.int64) for a, b in pairs],
          [key, counter + 3 & mask])
    k0, k1, x0, x1 = (random.integers(0, 1 << 32, 4, dtype=np.uint64).astype(np.uint32) for _ in range(4))
    want = [threefry(int(a) | int(b) << 32, int(x) | int(y) << 32) for a, b, x, y in zip(k0, k1, x0, x1)]
    out = c.call('cu_threefry2x32_ffi', [c.constant(v) for v in (k0, k1, x0, x1)], [of(k0), of(k0)])
    for n in range(2):
        c.equal(out[n], np.array([w[n] for w in want], np.uint32))
    c.save()


# ---- the largest elements ----

def top():
    c = Case('top')
    x = np.array([[1, np.nan, 3, -2, 3], [-0.0, 0.0, -np.inf, 5, np.inf]], np.float32)
    f32, i32 = ten((2, 3), 'f32'), ten((2, 3), 'si32')
    out = c.call('mhlo.topk', [c.constant(x)], [f32, i32], {'mhlo.attributes': DI({'k': I(3), 'largest': B(True)})})
    c.equal(out[0], np.array([[np.nan, 3, 3], [np.inf, 5, 0]], np.float32))
    c.equal(out[1], np.array([[1, 2, 4], [4, 3, 1]], np.int32))
    out = c.call('mhlo.topk', [c.constant(x)], [f32, i32], {'mhlo.attributes': DI({'k': I(3), 'largest': B(False)})})
    c.equal(out[0], np.array([[-2, 1, 3], [-np.inf, -0.0, 0.0]], np.float32))
    c.equal(out[1], np.array([[3, 0, 2], [2, 0, 1]], np.int32))
    y = np.array([4, 9, 9, 1], np.int32)
    out = c.call('stablehlo.dynamic_top_k', [c.constant(y), c.constant(np.int32(2))], [ten((2,), 'si32')] * 2)
    c.equal(out[0], np.array([9, 9], np.int32))
    c.equal(out[1], np.array([1, 2], np.int32))
    s, k, p = ten((), 'f32'), ten((), 'si32'), ten((), 'bool')
    greater = c.module.func('greater', [s, s, k, k])
    c.module.ret(greater, [greater.op('compare', greater.args[:2], [p], {
        'comparison_direction': E('cmpdir', 'GT'), 'compare_type': E('cmptype', 'FLOAT')})])
    z = np.array([[3, 1], [0, 7], [5, 2]], np.float32)
    index = np.array([[0, 0], [1, 1], [2, 2]], np.int32)
    config = DI({'top_k': I(2), 'reduction_dim': I(0), 'recall_target': F(0.95), 'aggregate_to_topk': B(True)})
    out = c.call('ApproxTopK', [c.constant(z), c.constant(index), c.constant(np.float32(-np.inf)),
                                c.constant(np.int32(-1))], [ten((2, 2), 'f32'), ten((2, 2), 'si32')],
                 {'mhlo.backend_config': config}, ['greater'])
    c.equal(out[0], np.array([[5, 7], [3, 2]], np.float32))
    c.equal(out[1], np.array([[2, 1], [0, 2]], np.int32))
    c.save()


# ---- quantized types ----

def quantized():
    c = Case('quantized')
    kind = ('uq', 1, 'si8', 'f32', 0.5, 3, -128, 127)
    other = ('uq', 1, 'si8', 'f32', 0.25, -10, -128, 127)
    shape, x = (2, 3), np.array([[0.2, -0.25, 0.25], [100, -100, 7.8]], np.float32)

    def quantize(v, scale, zero):
        return np.rint(np.clip(np.float32(v) / np.float32(scale) + np.float32(zero), -128, 127)).astype(np.int8)

    def value(q, kind=None):
        return c.op('uniform_dequantize', [q], [ten(shape, 'f32')])

    q = c.op('uniform_quantize', [c.constant(x)], [ten(shape, kind)])
    stored = quantize(x, 0.5, 3)
    real = (stored.astype(np.float32) - 3) * np.float32(0.5)
    c.equal(value(q), real)
    again = quantize(real, 0.25, -10)
    c.equal(value(c.op('uniform_quantize', [q], [ten(shape, other)])), (again.astype(np.float32) + 10) * np.float32(0.25))
    r = c.quantized(np.array([[1, 2, 3], [4, 5, 6]], np.int8), other)
    real_r = (np.array([[1, 2, 3], [4, 5, 6]], np.float32) + 10) * np.float32(0.25)
    total = quantize(real + real_r, 0.5, 3)
    c.equal(value(c.op('add', [q, r], [ten(shape, kind)])), (total.astype(np.float32) - 3) * np.float32(0.5))
    c.equal(value(c.op('maximum', [q, q], [ten(shape, kind)])), real)
    t = c.op('uniform_dequantize', [c.op('transpose', [q], [ten((3, 2), kind)], {'permutation': ivec([1, 0])})],
             [ten((3, 2), 'f32')])
    c.equal(t, real.T)
    # weights with a scale per column; the int32 result has the product of the scales
    scales = (0.1, 0.02)
    weight = np.array([[127, -3], [-128, 4], [5, 90]], np.int8)
    per_axis = ('uqa', 1, 'si8', 'f32', 1, scales, (0, 0), -127, 127)
    sums = ('uqa', 1, 'si32', 'f32', 1, tuple(0.5 * s for s in scales), (0, 0), -(1 << 31), (1 << 31) - 1)
    w = c.quantized(weight, per_axis)
    dims = {'lhs_batching_dimensions': ivec([]), 'rhs_batching_dimensions': ivec([]),
            'lhs_contracting_dimensions': ivec([1]), 'rhs_contracting_dimensions': ivec([0]),
            'precision_config': A(E('prec', 'DEFAULT'), E('prec', 'DEFAULT')), **{n: ('type', 'none') for n in (
                'lhs_precision_type', 'rhs_precision_type', 'accumulation_type', 'lhs_component_count',
                'rhs_component_count', 'num_primitive_operations', 'allow_imprecise_accumulation')}}
    product = c.op('dot_general', [q, w], [ten((2, 2), sums)], dims)
    exact = (stored.astype(np.int32) - 3) @ weight.astype(np.int32)
    bias = np.array([[1000, -7], [12, 0]], np.int32)
    attr = arr(bias)
    biased = c.op('add', [product, c.op('constant', [], [ten((2, 2), sums)], {'value': attr})], [ten((2, 2), sums)])
    factors = np.array(scales) * 0.5
    c.equal(c.op('uniform_dequantize', [product], [ten((2, 2), 'f32')]), (exact * factors).astype(np.float32), 1e-5)
    narrow = ('uq', 1, 'si8', 'f32', 2.0, -1, -128, 127)
    got = c.op('uniform_dequantize', [c.op('uniform_quantize', [biased], [ten((2, 2), narrow)])], [ten((2, 2), 'f32')])
    want = np.rint(np.clip((exact + bias) * factors / 2.0 - 1, -128, 127))
    c.equal(got, ((want + 1) * 2).astype(np.float32))
    # float activations: the weight is dequantized
    hybrid = c.op('dot_general', [c.constant(x), w], [ten((2, 2), 'f32')], dims)
    c.equal(hybrid, (x.astype(np.float64) @ (weight * np.array(scales))).astype(np.float32), 1e-4)
    c.save()


# ---- narrow types ----

def float8(values, exponent_bits, mantissa_bits, bias, most):
    """The nearest number of the format, ties to even; what is beyond the greatest finite number stays for the caller."""
    values = np.asarray(values, np.float64)
    exponent = np.maximum(np.floor(np.log2(np.maximum(np.abs(values), 1e-30))), 1 - bias)
    step = 2.0 ** (exponent - mantissa_bits)
    return np.minimum(np.abs(np.rint(values / step) * step), most) * np.sign(values)


def narrow():
    c = Case('narrow')
    x, y = (random.normal(0, 3, (2, 4)).astype(np.float32) for _ in range(2))
    for name, form in ('f8E4M3FN', (4, 3, 7, 448)), ('f8E5M2', (5, 2, 15, 57344)):
        t = ten((2, 4), name)
        a, b = (c.op('convert', [c.constant(v)], [t]) for v in (x, y))
        wide = lambda v, shape=(2, 4): c.op('convert', [v], [ten(shape, 'f32')])
        fa, fb = float8(x, *form), float8(y, *form)
        c.equal(wide(a), fa.astype(np.float32))
        c.equal(wide(c.op('add', [a, b], [t])), float8(fa + fb, *form).astype(np.float32))
        c.equal(wide(c.op('multiply', [a, b], [t])), float8(fa * fb, *form).astype(np.float32))
        flag = c.op('compare', [a, b], [ten((2, 4), 'bool')], {'comparison_direction': E('cmpdir', 'LT'),
                                                              'compare_type': E('cmptype', 'FLOAT')})
        c.equal(flag, fa < fb)
        c.equal(wide(c.op('transpose', [a], [ten((4, 2), name)], {'permutation': ivec([1, 0])}), (4, 2)),
                fa.T.astype(np.float32))
    p, q = np.array([7, -8, 3, -1], np.int8), np.array([1, 1, -8, 7], np.int8)
    t, w = ten((4,), 'si4'), ten((4,), 'si8')
    a, b = (c.op('convert', [c.constant(v)], [t]) for v in (p, q))
    wrap = lambda v: ((v.astype(np.int32) + 8) % 16 - 8).astype(np.int8)
    c.equal(c.op('convert', [c.op('add', [a, b], [t])], [w]), wrap(p + q.astype(np.int32)))
    c.equal(c.op('convert', [c.op('multiply', [a, b], [t])], [w]), wrap(p * q.astype(np.int32)))
    z = np.array([7.9, -100, 100, np.nan], np.float32)
    c.equal(c.op('convert', [c.op('convert', [c.constant(z)], [t])], [w]), np.array([7, -8, 7, 0], np.int8))
    u = ten((4,), 'ui4')
    c.equal(c.op('convert', [c.op('convert', [c.constant(z)], [u])], [ten((4,), 'ui8')]),
            np.array([7, 0, 15, 0], np.uint8))
    c.save()


# ---- assertions ----

def assertion():
    c = Case('assertion')
    c.call('shape_assertion', [c.constant(np.array(True)), c.constant(np.int32(1))], [],
           {'error_message': S('expected {0}, got {1}')})
    c.call('shape_assertion', [c.constant(np.array(False)), c.constant(np.int32(4)), c.constant(np.int64(5))], [],
           {'error_message': S('the batch {0} is not divisible by {1}')})
    c.save()


def calls():
    """A function of 30 additions that is called once, and one that is called twice."""
    c = Case('calls')
    one = np.ones(2, np.float32)
    t = of(one)
    for name in 'once', 'twice':
        g = c.module.func(name, [t])
        x = g.args[0]
        for _ in range(30):
            x = g.op('add', [x, g.op('constant', [], [t], {'value': arr(one)})], [t])
        c.module.ret(g, [x])
    x = c.constant(one)
    for name in 'once', 'twice', 'twice':
        x = c.op('call', [x], [t], {'callee': S(name)})
    c.equal(x, 91 * one)
    c.save()


def collectives():
    """Communication in groups of one process: it receives what it sends, and zeros where none sends to it."""
    c = Case('collectives', '1.20.0')
    x, root = np.array([[1, -2]], np.float32), np.zeros(1, np.int32)
    groups, channel = arr(np.zeros((1, 1), np.int64)), {'channel_id': I(1)}
    v = c.constant(x)
    add = lambda: [combine(c, 'f32', 'add')]
    ids = {'use_global_device_ids': B(False)}
    c.equal(c.op('all_reduce', [v], [of(x)], {'replica_groups': groups, **channel, **ids}, add()), x)
    c.equal(c.op('all_gather', [v], [of(x)], {'replica_groups': groups, 'all_gather_dim': I(0), **channel, **ids}), x)
    c.equal(c.op('reduce_scatter', [v], [of(x)], {'replica_groups': groups, 'scatter_dimension': I(0), **channel, **ids},
                 add()), x)
    for operands, flag in ([v], False), ([v, c.constant(root)], True):
        c.equal(c.op('collective_broadcast', operands, [of(x)],
                     {'replica_groups': groups, 'has_dynamic_root': B(flag), **channel}), x)
        c.equal(c.op('collective_reduce', operands, [of(x)],
                     {'replica_groups': groups, 'has_dynamic_root': B(flag), **channel, **ids}, add()), x)
    for pairs, expected in (np.zeros((1, 2), np.int64), x), (np.zeros((0, 2), np.int64), 0 * x):
        c.equal(c.op('collective_permute', [v], [of(x)], {'source_target_pairs': arr(pairs), **channel}), expected)
    for name in 'partition_id', 'replica_id':
        c.equal(c.op(name, [], [of(np.uint32(0))]), np.uint32(0))
    c.save()


# ---- floats of at most eight bits without TensorFlow dtype, by exact fractions ----

class Format:
    """Codes and numbers of a format; `kind`: ieee (infinity, NaN), finite (neither), powers (of two, and NaN)."""

    def __init__(self, exponent_bits, mantissa_bits, bias, kind):
        self.kind, self.bits = kind, exponent_bits + mantissa_bits + (kind != 'powers')
        self.sign = 1 << (exponent_bits + mantissa_bits)
        self.numbers = []  # the finite numbers without sign, by code
        for code in range(self.sign):
            exponent, mantissa = code >> mantissa_bits, code % (1 << mantissa_bits)
            if kind == 'powers':
                value = Fraction(2) ** (exponent - bias)
            elif exponent:
                value = (1 + Fraction(mantissa, 1 << mantissa_bits)) * Fraction(2) ** (exponent - bias)
            else:
                value = Fraction(mantissa, 1 << mantissa_bits) * Fraction(2) ** (1 - bias)
            self.numbers.append(value)
        last = {'ieee': ((1 << exponent_bits) - 1) << mantissa_bits, 'finite': self.sign, 'powers': 255}[kind]
        self.numbers = self.numbers[:last]
        self.nan = {'ieee': last | 1 << max(mantissa_bits - 1, 0), 'powers': 255}.get(kind)

    def code(self, x):
        """The code of the nearest number to a Python float."""
        negative = math.copysign(1, x) < 0
        if self.kind == 'powers':
            if not 0 < x < 1.5 * 2.0 ** 127:
                return 255
            if x <= 2.0 ** -127:
                return 0
            if x < 2.0 ** -126:
                return 1
        if math.isnan(x):
            return self.nan if self.kind == 'ieee' else 0 if negative else self.sign
        sign = self.sign if negative else 0
        greatest, below = self.numbers[-1], self.numbers[-2]
        half_up = greatest + (greatest - below) / 2
        if math.isinf(x) or Fraction(abs(x)) >= half_up:
            if self.kind == 'ieee':
                return sign | len(self.numbers)
            if self.kind == 'finite' or math.isinf(x):
                return sign | len(self.numbers) - 1
        x = Fraction(abs(x))
        high = next((i for i, n in enumerate(self.numbers) if n >= x), len(self.numbers) - 1)
        low = max(high - 1, 0)
        near_low, near_high = x - self.numbers[low], self.numbers[high] - x
        if self.numbers[high] <= x:
            return sign | high
        tie = high if self.kind == 'powers' else (low, high)[low % 2]
        return sign | (low if near_low < near_high else high if near_high < near_low else tie)

    def value(self, code):
        negative = self.kind != 'powers' and code & self.sign
        code &= self.sign - 1
        if self.kind == 'ieee' and code >= len(self.numbers):
            return math.nan if code > len(self.numbers) else -math.inf if negative else math.inf
        if self.kind == 'powers' and code == 255:
            return math.nan
        return -float(self.numbers[code]) if negative else float(self.numbers[code])

    def round(self, values):
        values = np.asarray(values)
        return np.array([self.value(self.code(float(v))) for v in values.ravel()]).reshape(values.shape)


FORMATS = {'f8E4M3': Format(4, 3, 7, 'ieee'), 'f8E3M4': Format(3, 4, 3, 'ieee'), 'f4E2M1FN': Format(2, 1, 1, 'finite'),
           'f6E2M3FN': Format(2, 3, 1, 'finite'), 'f6E3M2FN': Format(3, 2, 3, 'finite'),
           'f8E8M0FNU': Format(8, 0, 127, 'powers')}


def interesting(f):
    """Numbers of the format, the middles between them, what is next to the middles, and numbers out of range."""
    values = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, -1e30, 3e-45, -3e-45]
    pairs = list(zip(f.numbers, f.numbers[1:] + [2 * f.numbers[-1] - f.numbers[-2]]))
    for a, b in pairs[:6] + pairs[124:130] + pairs[-6:] if f.kind == 'powers' else pairs:
        values += [float(a), float((a + b) / 2)]
    values += [-v for v in values[9:]]
    values = np.array(values)
    narrow = values.astype(np.float32)
    near = [np.nextafter(v, s * np.float32(np.inf)) for v in narrow[9:] for s in (-1, 1)]
    close = [np.nextafter(v, s * np.inf) for v in values[9:] for s in (-1, 1)]
    return np.array(list(narrow) + near, np.float32), np.array(list(values) + close)


def dynamic_windows():
    """A windowed reduction of two operands whose window is an operand."""
    c = Case('dynamic_windows')
    x, y = random.normal(size=(3, 4)).astype(np.float32), random.integers(-9, 9, (3, 4)).astype(np.int32)
    f, i = ten((), 'f32'), ten((), 'si32')
    g = c.module.func('both', [f, i, f, i])
    a, k, b, m = g.args
    c.module.ret(g, [g.op('add', [a, b], [f]), g.op('minimum', [k, m], [i])])
    lists = [c.constant(np.array(v, np.int32)) for v in ((2, 3), (1, 2), (1, 1), (1, 1), ((1, 0), (0, 1)))]
    total, least = np.zeros((3, 2), np.float32), np.zeros((3, 2), np.int32)
    wide_x, wide_y = np.pad(x, ((1, 0), (0, 1))), np.pad(y, ((1, 0), (0, 1)), constant_values=99)
    for r in range(3):
        for s in range(2):
            total[r, s] = wide_x[r:r + 2, 2 * s:2 * s + 3].sum()
            least[r, s] = wide_y[r:r + 2, 2 * s:2 * s + 3].min()
    out = c.call('stablehlo.dynamic_reduce_window',
                 [c.constant(x), c.constant(y), c.constant(np.float32(0)), c.constant(np.int32(99))] + lists,
                 [of(total), of(least)], called=['both'])
    c.equal(out[0], total, 1e-5)
    c.equal(out[1], least)
    c.save()


def batch_groups():
    """Convolutions with batch groups in three orders of dimensions, by loops over the definition."""
    c = Case('batch_groups')
    none = A(E('prec', 'DEFAULT'), E('prec', 'DEFAULT'))
    for groups, x_order, w_order, y_order, kind in (
            (2, (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), np.float32), (3, (0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2), np.float32),
            (2, (3, 1, 0, 2), (2, 0, 3, 1), (1, 2, 0, 3), np.float32), (3, (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), np.int8)):
        x, w = random.integers(-9, 9, (6, 5, 4, 2)), random.integers(-9, 9, (2, 3, 2, 6))  # NHWC, HWIO
        wide, step, part, kernel = np.pad(x, ((0, 0), (1, 0), (1, 1), (0, 0))), 6 // groups, 6 // groups, (2, 3)
        y = np.zeros((6 // groups, 3, 4, 6), np.int64)
        for g in range(groups):
            for n in range(6 // groups):
                for i in range(3):
                    for j in range(4):
                        patch = wide[g * part + n, 2 * i:2 * i + 2, j:j + 3]
                        y[n, i, j, g * step:(g + 1) * step] = np.tensordot(patch, w[..., g * step:(g + 1) * step], 3)
        at = lambda order, axis: order.index(axis)
        result = y.astype(np.float32 if kind == np.float32 else np.int32).transpose(y_order)
        out = c.op('convolution', [c.constant(x.astype(kind).transpose(x_order)), c.constant(w.astype(kind).transpose(w_order))],
                   [of(result)], {
            'batch_group_count': I(groups), 'feature_group_count': I(1), 'input_batch_dimension': I(at(x_order, 0)),
            'input_feature_dimension': I(at(x_order, 3)), 'input_spatial_dimensions': ivec([at(x_order, 1), at(x_order, 2)]),
            'kernel_input_feature_dimension': I(at(w_order, 2)), 'kernel_output_feature_dimension': I(at(w_order, 3)),
            'kernel_spatial_dimensions': ivec([at(w_order, 0), at(w_order, 1)]),
            'output_batch_dimension': I(at(y_order, 0)), 'output_feature_dimension': I(at(y_order, 3)),
            'output_spatial_dimensions': ivec([at(y_order, 1), at(y_order, 2)]), 'lhs_dilation': ivec([1, 1]),
            'padding': arr(np.array([[1, 0], [1, 1]])), 'precision_config': none, 'rhs_dilation': ivec([1, 1]),
            'window_reversal': arr(np.array([False, False])), 'window_strides': ivec([2, 1])})
        c.equal(out, result)
    c.save()


def elementary():
    """erf as the rational approximation that JAX exports, almost that, and as a composite; another composite; custom calls."""
    c = Case('elementary', '1.14.0')
    alpha = [0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084]
    beta = [-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667,
            0.11098505178285362, 0.49746925110067538, 1.0]
    x = np.linspace(-5, 5, 41).astype(np.float32)
    t = of(x)
    erf = np.array([math.erf(v) for v in x])
    v = c.constant(x)

    def number(f, value):
        scalar = f.op('constant', [], [ten((), 'f32')], {'value': arr(np.float32(value))})
        return f.op('broadcast_in_dim', [scalar], [t], {'broadcast_dimensions': ivec([])})

    def rational(f, v, p, q):
        end = 3.7439211627767994
        v = f.op('clamp', [number(f, -end), v, number(f, end)], [t])
        square, sums = f.op('multiply', [v, v], [t]), []
        for coefficients in p, q:
            y = number(f, coefficients[0])
            for a in coefficients[1:]:
                y = f.op('add', [f.op('multiply', [y, square], [t]), number(f, a)], [t])
            sums.append(y)
        return f.op('divide', [f.op('multiply', [v, sums[0]], [t]), sums[1]], [t])

    c.equal(rational(c.f, v, alpha, beta), erf.astype(np.float32), 1e-6)
    other = alpha[:-1] + [1.2]
    wide = np.clip(x.astype(np.float64), -3.7439211627767994, 3.7439211627767994)
    expected = wide * np.polyval(other, wide ** 2) / np.polyval(beta, wide ** 2)
    c.equal(rational(c.f, v, other, beta), expected.astype(np.float32), 1e-5)
    for name, body, result in (('chlo.erf', lambda f, v: rational(f, v, alpha, beta), erf),
                               ('my.cube', lambda f, v: f.op('multiply', [v, f.op('multiply', [v, v], [t])], [t]),
                                x.astype(np.float64) ** 3)):
        f = c.module.func(name + '.impl', [t])
        c.module.ret(f, [body(f, f.args[0])])
        out = c.op('composite', [v], [t], {'composite_attributes': DI({}), 'decomposition': S(name + '.impl'),
                                           'name': S(name), 'version': I(1, 'si32')})
        c.equal(out, result.astype(np.float32), 1e-4 if name == 'my.cube' else 1e-6)
    small = x / 8
    for name, f in (('acos', np.arccos), ('asin', np.arcsin), ('asinh', np.arcsinh), ('atanh', np.arctanh),
                    ('cosh', np.cosh), ('erf', np.vectorize(math.erf)), ('sinh', np.sinh), ('tan', np.tan)):
        out = c.call('mhlo.' + name, [c.constant(small)], [t], {'mhlo.attributes': DI({}), 'mhlo.version': I(1)})
        c.equal(out, f(small.astype(np.float64)).astype(np.float32), 1e-6)
    out = c.call('mhlo.acosh', [c.constant(x + 7)], [t], {'mhlo.attributes': DI({}), 'mhlo.version': I(1)})
    c.equal(out, np.arccosh(x.astype(np.float64) + 7).astype(np.float32), 1e-6)
    c.save()


class ShardyModule(Module):
    """A module with Shardy's ops and attributes, and one mesh of axes {name: size}."""
    OPS = {'manual_computation_v1': ['in_shardings', 'manual_axes', 'out_shardings'], 'sharding_constraint_v1': ['sharding']}

    def __init__(self, name, axes):
        super().__init__(name, '1.14.0', {'mhlo.num_partitions': ('bint', 'i32', int(np.prod(list(axes.values()))))})
        self.mesh = ('sdy_mesh', tuple(('sdy_axis', *a) for a in axes.items()))
        for op, attrs in self.OPS.items():
            vhlo_write.SPEC[op] = ((1, 0, 0), None, attrs)

    def sharding(self, *dims):
        return ('sdy_sharding', ('bsym', 'mesh'), tuple(('sdy_dim', tuple(('sdy_ref', a) for a in d)) for d in dims))

    def dialect(self, x, isattr):
        return 'sdy' if x[0].startswith('sdy') else 'builtin' if x[0] == 'bsym' else super().dialect(x, isattr)

    def enc_attr(self, a):
        each = lambda items: vi(len(items)) + b''.join(vi(self.ai(i)) for i in items)
        if a[0] == 'bsym':
            return vi(4) + vi(self.ai(('bstr', a[1])))
        if a[0] == 'sdy_manual':
            return vi(0) + each([('bstr', n) for n in a[1]])
        if a[0] == 'sdy_axis':
            return vi(1) + vi(self.st(a[1])) + svi(a[2])
        if a[0] == 'sdy_mesh':
            return vi(2) + each(a[1]) + vi(0)
        if a[0] == 'sdy_ref':
            return vi(4) + vi(self.st(a[1])) + vi(0)
        if a[0] == 'sdy_dim':
            return vi(5) + each(a[1]) + b'\x01' + vi(0)
        if a[0] == 'sdy_sharding':
            return vi(6) + vi(self.ai(a[1])) + each(a[2]) + vi(0)
        if a[0] == 'sdy_list':
            return vi(7) + each(a[1])
        return super().enc_attr(a)

    def emit_op(self, name, *args):
        return super().emit_op('sdy.' + name[5:-3] if name[5:] in self.OPS else name, *args)

    def module_op(self):
        mesh = super().emit_op('sdy.mesh', vi(self.ai(self.mesh)) + vi(self.ai(('bstr', 'mesh'))), [], [], [], {})
        region = vi(1) + vi(0) + vi(len(self.funcs) + 1 << 1) + mesh + b''.join(self.func_op(f) for f in self.funcs)
        properties = vi(self.ai(('bstr', self.name)) << 1 | 1) + vi(0)
        return vi(1 << 1) + super().emit_op('builtin.module', properties, [], [], [(region, 1)], self.attrs)

    def freeze(self):
        order = ['builtin', 'sdy', 'vhlo']
        self.AT = sorted(self.at, key=lambda x: order.index(self.dialect(x, True)))
        self.TY = sorted(self.ty, key=lambda x: order.index(self.dialect(x, False)))
        self.at, self.ty = ({x: i for i, x in enumerate(t)} for t in (self.AT, self.TY))
        self.opn = {x: i for i, x in enumerate(sorted(self.opn, key=lambda x: order.index(x.split('.')[0])))}
        self.props, self.PR = {}, []

    def dump(self):
        dialects = ['builtin', 'sdy', 'vhlo']
        self.strs, self.at, self.ty, self.props, self.opn = {}, {}, {}, {}, {}
        for self.final in range(2):
            ir = self.module_op()
            if not self.final:
                self.freeze()
        names = vi(3) + b''.join(vi(self.st(d) << 1) for d in dialects) + vi(len(self.opn))
        for i, d in enumerate(dialects):
            group = [n for n in self.opn if n.startswith(d + '.')]
            names += vi(i) + vi(len(group)) + b''.join(vi(self.st(n.split('.', 1)[1]) << 1 | 1) for n in group)
        sizes, data = vi(len(self.AT)) + vi(len(self.TY)), b''
        for table, encode in (self.AT, self.enc_attr), (self.TY, self.enc_type):
            for i, d in enumerate(dialects):
                group = [encode(x) for x in table if self.dialect(x, table is self.AT) == d]
                if group:
                    sizes += vi(i) + vi(len(group)) + b''.join(vi(len(e) << 1 | 1) for e in group)
                    data += b''.join(group)
        props = vi(len(self.PR)) + b''.join(vi(len(p)) + p for p in self.PR)
        texts = [x.encode() + b'\0' for x in self.strs]
        strings = vi(len(texts)) + b''.join(vi(len(x)) for x in texts[::-1]) + b''.join(texts)
        sections = (1, names), (3, sizes), (2, data), (4, ir), (6, vi(0)), (5, b''), (0, strings), (8, props)
        return b'ML\xefR' + vi(6) + b'StableHLO_v' + self.vs.encode() + b'\0' + b''.join(section(i, b) for i, b in sections)


def shardy(name, rows, columns):
    """A manual computation on a mesh of rows x columns devices with each collective op, and a constraint."""
    c = Case(name)
    c.module = module = ShardyModule('shardy', {'a': rows, 'b': columns})
    c.f = module.func('main', [], visibility='public')
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    v = c.op('sharding_constraint', [c.constant(x)], [of(x)], {'sharding': module.sharding('a', 'b')})
    c.equal(v, x)
    high, wide, devices = 4 // rows, 6 // columns, np.arange(rows * columns).reshape(rows, columns)
    local, i64 = ten((high, wide), 'f32'), lambda values: arr(np.array(values, np.int64))
    block = Blk([local], c.f)
    p = block.args[0]
    along_a, along_b = i64(devices.T), i64(devices)
    channel, ids = {'channel_id': I(1)}, {'use_global_device_ids': B(True)}

    def add():
        s = ten((), 'f32')
        inner = Blk([s, s], block)
        inner.op('return', [inner.op('add', inner.args, [s])])
        return inner

    doubled = block.op('add', [p, p], [local])
    total = block.op('all_reduce', [doubled], [local], {'replica_groups': along_b, **channel, **ids}, [add()])
    row = block.op('all_gather', [p], [ten((high, 6), 'f32')], {'all_gather_dim': I(1), 'replica_groups': along_b, **channel, **ids})
    ring = block.op('collective_permute', [p], [local], {'source_target_pairs': i64(np.stack([np.arange(devices.size - 1), np.arange(1, devices.size)], 1)), **channel})
    part = block.op('reduce_scatter', [p], [ten((high // rows, wide), 'f32')],
                    {'scatter_dimension': I(0), 'replica_groups': along_a, **channel, **ids}, [add()])
    turned = block.op('all_to_all', [p], [ten((4, wide // rows), 'f32')], {
        'split_dimension': I(1), 'concat_dimension': I(0), 'split_count': I(rows), 'replica_groups': along_a, **channel})
    number = block.op('partition_id', [], [ten((), 'ui32')])
    number = block.op('reshape', [number], [ten((1, 1), 'ui32')])
    block.op('return', [total, row, ring, part, turned, number])
    places = (('a', ''), ('a', ''), ('a', 'b'), ('a', 'b'), ('', 'ba'), ('a', 'b'))
    blocks = [[x[high * a:, wide * b:][:high, :wide] for b in range(columns)] for a in range(rows)]
    moved = [0 * blocks[0][0]] + sum(blocks, [])[:-1]
    results = [np.concatenate([2 * sum(row) for row in blocks]), x, np.block([moved[columns * a:][:columns] for a in range(rows)]),
               sum(x.reshape(rows, high, 6)), x, devices.astype(np.uint32)]
    out = c.op('manual_computation', [v], [of(r) for r in results], {
        'in_shardings': ('sdy_list', (module.sharding('a', 'b'),)), 'manual_axes': ('sdy_manual', ('a', 'b')),
        'out_shardings': ('sdy_list', tuple(module.sharding(*p) for p in places))}, [block])
    for value, result in zip(out, results):
        c.equal(value, result)
    c.save()


def shard_shape():
    """The part that one of two devices has of an array, as JAX wrote it before Shardy."""
    c = Case('shard_shape')
    x = np.ones((4, 2), np.float32)
    c.equal(c.call('SPMDFullToShardShape', [c.constant(x)], [ten((2, 2), 'f32')]), x[:2])
    c.save()


def packed_bits():
    """Integers of 2 and 4 bits in bytes and words, the first of them in the lowest bits."""
    c = Case('packed_bits')
    data = np.random.default_rng(3).integers(0, 256, (3, 2, 8), np.uint8)

    def cast(x, shape, kind):
        return c.op('bitcast_convert', [x], [ten(shape, kind)])

    def parts(bits):
        return (data[..., None] >> (np.arange(8 // bits, dtype=np.uint8) * bits)) & (2 ** bits - 1)

    def signed(codes, bits):
        return ((codes.astype(np.int64) ^ 2 ** (bits - 1)) - 2 ** (bits - 1)).astype(np.int8)

    x = c.constant(data)
    for bits in 2, 4:
        codes = parts(bits)
        for kind, wide, expected in (f'ui{bits}', 'ui8', codes), (f'si{bits}', 'si8', signed(codes, bits)):
            packed = cast(x, codes.shape, kind)
            c.equal(c.op('convert', [packed], [ten(codes.shape, wide)]), expected)
            c.equal(cast(packed, data.shape, 'ui8'), data)
            c.equal(cast(packed, data.shape, 'si8'), data.view(np.int8))
        for word, kind in (np.int16, 'si16'), (np.int32, 'si32'), (np.float32, 'f32'), (np.uint64, 'ui64'):
            words = data.view(word)
            split = parts(bits).reshape(*words.shape, -1)
            packed = cast(c.constant(words), split.shape, f'ui{bits}')
            c.equal(c.op('convert', [packed], [ten(split.shape, 'ui8')]), split)
            c.equal(cast(packed, words.shape, kind), words)
    two, four = cast(x, (3, 2, 8, 4), 'ui2'), cast(x, (3, 2, 8, 2), 'si4')
    c.equal(c.op('convert', [cast(four, (3, 2, 8, 2, 2), 'si2')], [ten((3, 2, 8, 2, 2), 'si8')]),
            signed(parts(2), 2).reshape(3, 2, 8, 2, 2))
    reshaped = c.op('reshape', [two], [ten((3, 2, 8, 2, 2), 'ui2')])
    c.equal(c.op('convert', [cast(reshaped, (3, 2, 8, 2), 'si4')], [ten((3, 2, 8, 2), 'si8')]), signed(parts(4), 4))
    floats = cast(x, (3, 2, 8, 2), 'f4E2M1FN')
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    c.equal(c.op('convert', [floats], [ten((3, 2, 8, 2), 'f32')]),
            np.where(parts(4) & 8, -1, 1).astype(np.float32) * values[parts(4) & 7])
    c.equal(cast(floats, data.shape, 'ui8'), data)
    c.save()


def small_floats():
    c = Case('small_floats')
    vhlo_write.TC.update({'f8E4M3': 35, 'f8E3M4': 36, 'f4E2M1FN': 37, 'f6E2M3FN': 38, 'f6E3M2FN': 39, 'f8E8M0FNU': 40})
    none = A(E('prec', 'DEFAULT'), E('prec', 'DEFAULT'))
    for name, f in FORMATS.items():
        codes = np.arange(1 << f.bits, dtype=np.uint8)
        every = np.array([f.value(int(code)) for code in codes])
        t = ten((len(codes),), name)
        constant = c.op('constant', [], [t], {'value': ('dense', t, codes.tobytes())})
        c.equal(c.op('convert', [constant], [ten((len(codes),), 'f32')]), every.astype(np.float32))
        if f.bits == 8:
            back = np.where(np.isnan(every), f.nan, codes).astype(np.uint8)
            c.equal(c.op('bitcast_convert', [constant], [ten((len(codes),), 'ui8')]), back)
            c.equal(c.op('convert', [c.op('bitcast_convert', [c.constant(codes)], [t])], [ten((len(codes),), 'f64')]), every)
        if f.bits == 4:
            four = c.op('bitcast_convert', [constant], [ten((16,), 'ui4')])
            c.equal(c.op('convert', [four], [ten((16,), 'ui8')]), codes)
            signed = c.op('bitcast_convert', [constant], [ten((16,), 'si4')])
            c.equal(c.op('convert', [signed], [ten((16,), 'si8')]), ((codes ^ 8).astype(np.int8) - 8).astype(np.int8))
            for source in four, signed:
                c.equal(c.op('convert', [c.op('bitcast_convert', [source], [t])], [ten((16,), 'f32')]),
                        every.astype(np.float32))
        for values in interesting(f):
            shape, expected = values.shape, f.round(values)
            rounded = c.op('convert', [c.constant(values)], [ten(shape, name)])
            c.equal(c.op('convert', [rounded], [ten(shape, 'f64')]), expected)
            signs = c.op('bitcast_convert', [c.op('convert', [rounded], [ten(shape, 'f32')])], [ten(shape, 'si32')])
            zero = np.zeros(shape, np.int32)
            negative = c.op('compare', [signs, c.constant(zero)], [ten(shape, 'bool')],
                            {'comparison_direction': E('cmpdir', 'LT'), 'compare_type': E('cmptype', 'SIGNED')})
            c.equal(c.op('and', [negative, c.constant(~np.isnan(expected))], [ten(shape, 'bool')]),
                    np.signbit(expected) & ~np.isnan(expected))
        whole = np.array([-300, -7, -1, 1, 3, 5, 6, 7, 21, 100, 247, 248, 3000001], np.int32)
        c.equal(c.op('convert', [c.op('convert', [c.constant(whole)], [ten(whole.shape, name)])], [ten(whole.shape, 'f64')]),
                f.round(whole))
        if name in ('f8E3M4', 'f6E2M3FN'):
            continue  # arithmetic as that of f8E4M3 and f6E3M2FN
        x, y = (f.round(random.normal(0, 2, (3, 4))) for _ in range(2))
        s = ten((3, 4), name)
        a, b = (c.op('convert', [c.constant(v)], [s]) for v in (x, y))
        wide = lambda v: c.op('convert', [v], [ten((3, 4), 'f64')])
        with np.errstate(all='ignore'):
            results = {'add': x + y, 'subtract': x - y, 'multiply': x * y, 'divide': x / y, 'maximum': np.maximum(x, y)}
            for op, result in results.items():
                c.equal(wide(c.op(op, [a, b], [s])), f.round(result))
            c.equal(wide(c.op('negate', [a], [s])), f.round(-x))
            c.equal(wide(c.op('sqrt', [a], [s])), f.round(np.sqrt(x)))
        z = np.where(np.isnan(x), 1, x)
        v = c.op('convert', [c.constant(z)], [s])
        product = c.op('dot_general', [v, v], [ten((3, 3), 'f32')], {
            'lhs_batching_dimensions': ivec([]), 'rhs_batching_dimensions': ivec([]),
            'lhs_contracting_dimensions': ivec([1]), 'rhs_contracting_dimensions': ivec([1]), 'precision_config': none,
            'lhs_precision_type': T('none'), 'rhs_precision_type': T('none'), 'accumulation_type': T('none'),
            'lhs_component_count': T('none'), 'rhs_component_count': T('none'), 'num_primitive_operations': T('none'),
            'allow_imprecise_accumulation': T('none')})
        c.equal(product, (z @ z.T).astype(np.float32), 1e-4)
        if f.kind != 'powers':
            start = c.op('convert', [c.constant(np.float64(0))], [ten((), name)])
            total, sums = c.op('reduce', [v, start], [ten((3,), name)], {'dimensions': ivec([1])},
                               [combine(c, name, 'add')]), np.zeros(3)
            for column in z.T:
                sums = f.round(sums + column)
            c.equal(c.op('convert', [total], [ten((3,), 'f64')]), sums)
    c.save()


def small_argument():
    """main(f4E2M1FN) -> f4E2M1FN: what a caller passes is rounded."""
    module = Module('small_argument', '1.8.0')
    t = ten((4,), 'f4E2M1FN')
    f = module.func('main', [t], visibility='public')
    module.ret(f, [f.op('add', [f.args[0], f.args[0]], [t])])
    with open(os.path.join(FOLDER, 'ops_small_argument.mlirbc'), 'wb') as out:
        out.write(module.dump())


def wrong_type():
    """The real part of complex numbers as complex numbers."""
    c = Case('wrong_type')
    x = c.op('complex', [c.constant(np.float32(1)), c.constant(np.float32(2))], [ten((), ('complex', 'f32'))])
    c.op('real', [x], [ten((), ('complex', 'f32'))])
    c.save()


def too_few():
    """Modules with fewer operands or dimensions than an op has."""
    dims = {'dimensions': ivec([0])}
    windows = {name: ivec([1]) for name in ('window_dimensions', 'window_strides', 'base_dilations', 'window_dilations')}
    windows['padding'] = arr(np.zeros((1, 2), np.int64))
    for name, attrs in (('reduce', dims), ('reduce_window', windows), ('sort', {'dimension': I(0), 'is_stable': B(True)})):
        c = Case(f'{name}_of_none')
        c.op(name, [], [ten((), 'f32')], attrs, [combine(c, 'f32', 'add')])
        c.save()
    c = Case('cholesky_of_vector')
    x = np.ones(1, np.float32)
    c.op('cholesky', [c.constant(x)], [of(x)], {'lower': B(False)})
    c.save()


def wrong_regions():
    """Regions and functions whose arguments or results are not those of the op."""
    f32, i32, i1 = ten((), 'f32'), ten((), 'si32'), ten((), 'bool')

    def region(c, args, number, results, ends=1):
        block = Blk(args, c.f)
        value = block.op('constant', [], results, {'value': arr(number)})
        block.op('return', [value] * ends)
        return block

    one, two, true = np.float32(1), np.int32(2), np.array(True)
    c = Case('if_without_result')
    c.op('if', [c.constant(true)], [f32], {}, [region(c, [], one, [f32]), region(c, [], one, [f32], 0)])
    c.save()
    c = Case('case_of_other_result')
    c.op('case', [c.constant(two)], [f32], {}, [region(c, [], one, [f32]), region(c, [], two, [i32])])
    c.save()
    c = Case('while_of_other_condition')
    c.op('while', [c.constant(one)], [f32], {}, [region(c, [f32], two, [i32]), region(c, [f32], one, [f32])])
    c.save()
    c = Case('while_of_other_argument')
    c.op('while', [c.constant(one)], [f32], {}, [region(c, [i32], true, [i1]), region(c, [f32], one, [f32])])
    c.save()
    c = Case('while_of_two_results')
    c.op('while', [c.constant(one)], [f32, f32], {}, [region(c, [f32], true, [i1]), region(c, [f32], one, [f32])])
    c.save()
    c = Case('map_of_other_argument')
    c.op('map', [c.constant(np.ones(3, np.float32))], [ten((3,), 'f32')], {'dimensions': ivec([0])},
         [region(c, [i32], one, [f32])])
    c.save()
    c = Case('map_of_other_result')
    c.op('map', [c.constant(np.ones(3, np.float32))], [ten((3,), 'f32')], {'dimensions': ivec([0])},
         [region(c, [f32], two, [i32])])
    c.save()
    c = Case('call_of_other_argument')
    f = c.module.func('f', [i32])
    x = f.args[0]
    for _ in range(30): # not inlined
        x = f.op('negate', [x], [i32])
    c.module.ret(f, [x])
    for _ in range(2):
        c.op('call', [c.constant(one)], [i32], {'callee': S('f')})
    c.save()


def wrong_declarations():
    """Results whose declared types are not what the op computes, and operands that would have to be broadcast."""
    pair, row, column = np.ones(2, np.float32), np.ones((1, 3), np.float32), np.ones((2, 1), np.float32)
    table, flags = np.ones((2, 3), np.float32), np.array([True, False])

    def module(name, op, operands, result, attrs=None):
        c = Case(name)
        c.op(op, [c.constant(x) for x in operands], [result], attrs)
        c.save()

    module('transpose_to_other_shape', 'transpose', [table], of(table), {'permutation': ivec([1, 0])})
    module('slice_to_other_shape', 'slice', [pair], of(pair),
           {'start_indices': ivec([0]), 'limit_indices': ivec([1]), 'strides': ivec([1])})
    module('negate_to_other_type', 'negate', [pair], ten((2,), 'f64'))
    module('add_of_other_shapes', 'add', [row, column], of(table))
    module('select_of_other_shapes', 'select', [flags, np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)], ten((2, 2), 'f32'))
    module('clamp_of_other_shapes', 'clamp', [pair, np.ones(1, np.float32), np.float32(1)], of(pair))
    module('reshape_of_other_size', 'reshape', [pair], of(table))
    c = Case('region_of_other_shape') # in the function of the region, whose argument is a captured value
    x = c.constant(table)
    y = c.op('negate', [x], [of(table)])
    blocks = [Blk([], c.f), Blk([], c.f)]
    for block in blocks:
        block.op('return', [block.op('transpose', [y], [of(table)], {'permutation': ivec([1, 0])})])
    c.op('if', [c.constant(np.array(True))], [of(table)], {}, blocks)
    c.save()


def deep_calls():
    """300 functions of which each calls the next one."""
    module, t = Module('deep_calls', '1.8.0'), ten((), 'f32')
    functions = [module.func('main' if i == 0 else f'f{i}', [t], visibility='private' if i else 'public') for i in range(300)]
    for i, f in enumerate(functions):
        call = ('call', {'callee': S(f'f{i + 1}')}) if i + 1 < len(functions) else ('negate', {})
        module.ret(f, [f.op(call[0], [f.args[0]], [t], call[1])])
    with open(os.path.join(FOLDER, 'ops_deep_calls.mlirbc'), 'wb') as out:
        out.write(module.dump())


def edges():
    """Dtypes, dimension numbers and sizes at which TensorFlow's ops differ from StableHLO's."""
    c = Case('edges')
    none = A(E('prec', 'DEFAULT'), E('prec', 'DEFAULT'))
    for kind in np.uint8, np.uint32, np.uint64:
        bits = 8 * np.dtype(kind).itemsize
        bases = np.array([3, 2, 5, 0, 7, 2 ** bits - 1, 2 ** (bits - 1) + 1, 2, 4, 255], kind)
        powers = np.array([2, 7, 11, 0, 2 ** bits - 1, 2 ** bits - 2, 2 ** (bits - 1), 2 ** (bits - 1), 31, 3], kind)
        results = [pow(int(b), int(p), 2 ** bits) for b, p in zip(bases, powers)]
        c.equal(c.op('power', [c.constant(bases), c.constant(powers)], [of(bases)]), np.array(results, kind))
    x, y = np.array([[2 ** 62, 3], [-5, 7]]), np.array([[6, 1], [4, -1]])
    with np.errstate(over='ignore'):
        c.equal(c.op('dot_general', [c.constant(x), c.constant(y)], [of(x)], {
            'lhs_batching_dimensions': ivec([]), 'rhs_batching_dimensions': ivec([]),
            'lhs_contracting_dimensions': ivec([1]), 'rhs_contracting_dimensions': ivec([0]), 'precision_config': none,
            **{name: T('none') for name in ('lhs_precision_type', 'rhs_precision_type', 'accumulation_type',
                                            'lhs_component_count', 'rhs_component_count', 'num_primitive_operations',
                                            'allow_imprecise_accumulation')}}), x @ y)

    def convolve(lhs, rhs, spatial, shape):
        places, one = range(1, spatial + 1), ivec([1] * spatial)
        return c.op('convolution', [c.constant(lhs), c.constant(rhs)], [ten(shape, 'f32')], {
            'batch_group_count': I(1), 'feature_group_count': I(1), 'input_batch_dimension': I(0),
            'input_feature_dimension': I(spatial + 1), 'input_spatial_dimensions': ivec(places),
            'kernel_input_feature_dimension': I(spatial), 'kernel_output_feature_dimension': I(spatial + 1),
            'kernel_spatial_dimensions': ivec(range(spatial)), 'lhs_dilation': one, 'output_batch_dimension': I(0),
            'output_feature_dimension': I(spatial + 1), 'output_spatial_dimensions': ivec(places),
            'padding': arr(np.zeros((spatial, 2), np.int64)), 'precision_config': none, 'rhs_dilation': one,
            'window_reversal': arr(np.zeros(spatial, bool)), 'window_strides': one})

    a, b = random.normal(size=(2, 3)).astype(np.float32), random.normal(size=(3, 4)).astype(np.float32)
    c.equal(convolve(a, b, 0, (2, 4)), a @ b, 1e-5)
    image, wide = np.ones((1, 2, 5, 3), np.float32), np.ones((3, 2, 3, 4), np.float32)
    c.equal(convolve(image, wide, 2, (1, 0, 4, 4)), np.zeros((1, 0, 4, 4), np.float32)) # no window fits

    rows, at = np.arange(20, dtype=np.float32).reshape(4, 5), np.array([[[0], [9]], [[4], [2]], [[-1], [3]], [[1], [1]]], np.int32)
    c.equal(c.op('gather', [c.constant(rows), c.constant(at)], [ten((4, 2), 'f32')], {
        'offset_dims': ivec([]), 'collapsed_slice_dims': ivec([1]), 'operand_batching_dims': ivec([0]),
        'start_indices_batching_dims': ivec([0]), 'start_index_map': ivec([1]), 'index_vector_dim': I(2),
        'slice_sizes': ivec([1, 1]), 'indices_are_sorted': B(False)}),
        np.take_along_axis(rows, np.clip(at[..., 0], 0, 4), 1))
    updates = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    expected = np.arange(5, dtype=np.float32)
    expected[1:3] += updates[0]
    c.equal(c.op('scatter', [c.constant(np.arange(5, dtype=np.float32)), c.constant(np.array([[1], [4], [-1]], np.int32)),
                             c.constant(updates)], [ten((5,), 'f32')], { # a window that is partly outside is skipped
        'update_window_dims': ivec([1]), 'inserted_window_dims': ivec([]), 'scatter_dims_to_operand_dims': ivec([0]),
        'index_vector_dim': I(1), 'indices_are_sorted': B(False), 'unique_indices': B(False),
        'input_batching_dims': ivec([]), 'scatter_indices_batching_dims': ivec([])}, [combine(c, 'f32', 'add')]), expected)
    c.save()


def corners():
    """Zeros with signs, NaN, initial values and roundings at which TensorFlow's ops differ from StableHLO's."""
    c = Case('corners')
    words = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64, np.dtype(np.float16): np.uint16}
    words_of = {np.uint16: 'ui16', np.uint32: 'ui32', np.uint64: 'ui64'}
    NAMES[np.dtype(np.uint16)] = 'ui16'
    vhlo_write.NPE['ui16'] = '<u2'

    def bits_equal(value, expected):
        word = words[expected.dtype]
        c.equal(c.op('bitcast_convert', [value], [ten(expected.shape, words_of[word])]), expected.view(word))

    zeros = np.array([-0.0, 0.0, -2.5, 0.5, -0.3, 7, -np.inf])
    for kind in np.float16, np.float32, np.float64:
        x = zeros.astype(kind)
        bits_equal(c.op('sign', [c.constant(x)], [of(x)]), np.where(x == 0, x, np.sign(x)).astype(kind))
        bits_equal(c.op('round_nearest_afz', [c.constant(x)], [of(x)]),
                   np.copysign(np.floor(np.abs(x) + kind(0.5)), x).astype(kind))
        cubes = np.array([-0.0, 0.0, 27, -1e3, 8, np.inf, -np.inf]).astype(kind)
        bits_equal(c.op('cbrt', [c.constant(cubes)], [of(cubes)]), np.array([-0.0, 0.0, 3, -10, 2, np.inf, -np.inf]).astype(kind))
    wide = np.concatenate([10.0 ** np.arange(-300, 308, 19), random.normal(size=40) * 1e5])
    root = c.op('cbrt', [c.constant(wide)], [of(wide)])
    c.call('check.expect_close', [root, c.constant(np.cbrt(wide))], [], {'max_ulp_difference': I(2), 'min_ulp_difference': I(0)})

    nan = np.float32(np.nan)
    x, bounds = np.array([1, 5, -5], np.float32), np.array([0, nan, nan], np.float32)
    one, clamped = np.ones(3, np.float32), np.array([1, nan, nan], np.float32)
    c.equal(c.op('clamp', [c.constant(bounds), c.constant(x), c.constant(one)], [of(x)]), clamped)
    c.equal(c.op('clamp', [c.constant(-one), c.constant(x), c.constant(np.array([2, nan, nan], np.float32))], [of(x)]), clamped)
    c.equal(c.op('clamp', [c.constant(nan), c.constant(x), c.constant(np.float32(1))], [of(x)]), np.full(3, nan))
    c.equal(c.op('clamp', [c.constant(np.float32(-2)), c.constant(np.array([1, 5, nan], np.float32)), c.constant(np.float32(3))],
                 [of(x)]), np.array([1, 3, nan], np.float32))
    for kind in np.float32, np.float64:
        pair, part = ten((3,), ('complex', NAMES[np.dtype(kind)])), of(np.zeros(3, kind))
        base, power = [c.op('complex', [c.constant(np.array(real, kind)), c.constant(np.array(imaginary, kind))], [pair])
                       for real, imaginary in (([0, 0, 2], [0, 0, 1]), ([0, 2, 0], [0, 0, 0]))]
        result = c.op('power', [base, power], [pair])
        c.equal(c.op('real', [result], [part]), np.array([1, 0, 1], kind))
        c.equal(c.op('imag', [result], [part]), np.zeros(3, kind))

    # ties of the half after rounding to float, which rounding twice gets wrong, and what is beyond float
    exact = [1 + 2.0 ** -11 + 2.0 ** -40, 1 + 3 * 2.0 ** -11 - 2.0 ** -40, 2.0 ** -25 + 2.0 ** -60, 2.0 ** -25, 65519.999999999, 65520,
             1 + 2.0 ** -11, 1e300, 1e-300, 0, np.inf, 0.1]
    doubles = np.array(exact + [-v for v in exact])
    with np.errstate(over='ignore'):
        bits_equal(c.op('convert', [c.constant(doubles)], [ten(doubles.shape, 'f16')]), doubles.astype(np.float16))
    c.equal(c.op('convert', [c.constant(np.array([np.nan]))], [ten((1,), 'f16')]), np.array([np.nan], np.float16))
    halves = c.op('convert', [c.constant(np.array([1 + 2.0 ** -8 + 2.0 ** -40, 1 + 3 * 2.0 ** -8 - 2.0 ** -40, -1 - 2.0 ** -8]))],
                  [ten((3,), 'bf16')])
    c.equal(c.op('convert', [halves], [ten((3,), 'f32')]), np.array([1 + 2.0 ** -7, 1 + 2.0 ** -7, -1], np.float32))

    # padding and gaps hold the initial value, whatever it is
    row = np.array([1, 2, 3], np.float32)
    windows_of = {'window_dimensions': ivec([2]), 'window_strides': ivec([1]), 'base_dilations': ivec([2]),
                  'window_dilations': ivec([1]), 'padding': arr(np.array([[1, 2]], np.int64))}
    for start in 0, 10:
        full = np.full(8, start, np.float32)
        full[1:6:2] = row
        for op, combined in (('add', start + full[:-1] + full[1:]), ('maximum', np.maximum(start, np.maximum(full[:-1], full[1:])))):
            out = c.op('reduce_window', [c.constant(row), c.constant(np.float32(start))], [ten((7,), 'f32')], windows_of,
                       [combine(c, 'f32', op)])
            c.equal(out, combined)
            whole = c.op('reduce_window', [c.constant(row.astype(np.int32)), c.constant(np.int32(start))], [ten((7,), 'si32')],
                         windows_of, [combine(c, 'si32', op)])
            c.equal(whole, combined.astype(np.int32))
    c.save()


structure()
numbers()
windows()
bits()
top()
quantized()
narrow()
assertion()
calls()
collectives()
packed_bits()
small_floats()
small_argument()
dynamic_windows()
batch_groups()
elementary()
shardy('shardy', 1, 1)
shardy('shardy_devices', 2, 3)
shard_shape()
edges()
corners()
wrong_type()
too_few()
wrong_declarations()
wrong_regions()
deep_calls()
