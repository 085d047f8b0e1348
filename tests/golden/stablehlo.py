"""StableHLO portable artifacts (MLIR bytecode) for tests/unit/convert/stablehlo, by a writer that shares no code with tare.

usage: stablehlo.py FOLDER    FOLDER has vhlo_write.py, a writer of VHLO modules in Python (numpy only)

Writes stablehlo/NAME.mlirbc beside this script."""
import os
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
from vhlo_write import A, B, DI, E, F, I, Module, S, T, arr, ivec, ten  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stablehlo')


def save(name, module):
    with open(os.path.join(FOLDER, name + '.mlirbc'), 'wb') as out:
        out.write(module.dump())


def constant(block, value, element=None):
    attr = arr(value, element)
    return block.op('constant', [], [attr[1]], {'value': attr})


def constants():
    """One constant of each element type, packed and splat bools, an empty and a large one."""
    m = Module('constants', '1.20.0')
    f = m.func('main', [], visibility='public')
    values = [constant(f, np.array([1.5, -2, np.inf], np.float32)), constant(f, np.array([0.1], np.float64)),
              constant(f, np.array([1, -1], np.int8)), constant(f, np.array([255, 0], np.uint8)),
              constant(f, np.array([[-3, 4]], np.int32)), constant(f, np.array(2 ** 64 - 1, np.uint64)),
              constant(f, np.array([True, False, True])), constant(f, np.ones(20, bool)), constant(f, np.zeros(20, bool)),
              constant(f, np.arange(17) % 3 == 0), constant(f, np.zeros((0, 2), np.float32)),
              constant(f, np.full((4, 5), 7, np.int64)), constant(f, np.arange(100, dtype=np.int16))]
    m.ret(f, values)
    save('constants', m)


def regions():
    """A reduction, a loop that captures an outer value, a conditional, a call, attributes of functions."""
    m = Module('regions', '1.8.0')
    t, s, p = ten((2, 3), 'f32'), ten((), 'f32'), ten((), 'bool')
    helper = m.func('helper', [s])
    m.ret(helper, [helper.op('negate', [helper.args[0]], [s])])
    f = m.func('main', [t, s], [{'jax.arg_info': S('x')}, None], 'public')
    x, limit = f.args
    zero = constant(f, np.float32(0))
    from vhlo_write import Blk
    body = Blk([s, s], f)
    body.op('return', [body.op('add', body.args, [s])])
    total = f.op('reduce', [x, zero], [s], {'dimensions': ivec([0, 1])}, [body])
    cond = Blk([s], f)
    cond.op('return', [cond.op('compare', [cond.args[0], limit], [p],
                               {'comparison_direction': E('cmpdir', 'LT'), 'compare_type': E('cmptype', 'FLOAT')})])
    step = Blk([s], f)
    step.op('return', [step.op('add', [step.args[0], step.args[0]], [s])])
    grown = f.op('while', [total], [s], {}, [cond, step])
    negative = f.op('call', [grown], [s], {'callee': S('helper')})
    yes, no = Blk([], f), Blk([], f)
    yes.op('return', [grown])
    no.op('return', [negative])
    flag = f.op('compare', [grown, limit], [p],
                {'comparison_direction': E('cmpdir', 'GE'), 'compare_type': E('cmptype', 'NOTYPE')})
    chosen = f.op('if', [flag], [s], {}, [yes, no])
    m.ret(f, [chosen, x], [{'jax.result_info': S('result')}, None])
    save('regions', m)


def network():
    """A quantized product and a convolution with an open batch."""
    m = Module('network', '1.14.0')
    batch = -(1 << 63)
    x, w, y = ten((batch, 8, 8, 2), 'f32'), ten((3, 3, 2, 4), 'f32'), ten((batch, 8, 8, 4), 'f32')
    f = m.func('main', [x, w], visibility='public')
    one = ivec([1, 1])
    y = f.op('convolution', f.args, [y], {
        'batch_group_count': I(1), 'feature_group_count': I(1), 'input_batch_dimension': I(0),
        'input_feature_dimension': I(3), 'input_spatial_dimensions': ivec([1, 2]),
        'kernel_input_feature_dimension': I(2), 'kernel_output_feature_dimension': I(3),
        'kernel_spatial_dimensions': ivec([0, 1]), 'lhs_dilation': one, 'output_batch_dimension': I(0),
        'output_feature_dimension': I(3), 'output_spatial_dimensions': ivec([1, 2]),
        'padding': arr(np.array([[1, 1], [1, 1]], np.int64)), 'precision_config': A(E('prec', 'DEFAULT'), E('prec', 'HIGH')),
        'rhs_dilation': one, 'window_reversal': arr(np.zeros(2, bool)), 'window_strides': one})
    z = f.op('custom_call', [y], [y.t], {
        'api_version': E('api', 'ORIGINAL'), 'backend_config': S('a"b\n'), 'call_target_name': S('Sharding'),
        'called_computations': A(), 'has_side_effect': B(False), 'operand_layouts': A(), 'output_operand_aliases': A(),
        'result_layouts': A()}, extra={'mhlo.sharding': S('{replicated}')})
    m.ret(f, [z])
    save('network', m)


def custom_call(block, target, operands, results, effect=True, extra=None):
    return block.op('custom_call', operands, results, {
        'api_version': E('api', 'ORIGINAL'), 'backend_config': S(''), 'call_target_name': S(target),
        'called_computations': A(), 'has_side_effect': B(effect), 'operand_layouts': A(), 'output_operand_aliases': A(),
        'result_layouts': A()}, extra=extra)


def checks():
    """Every kind of check on arguments: in main, in a called function, in a branch; main returns nothing."""
    from vhlo_write import Blk
    m = Module('checks', '1.8.0')
    reals, halves, integers, flag = ten((2, 3), 'f32'), ten((2,), 'f16'), ten((0, 2), 'si32'), ten((), 'bool')
    helper = m.func('helper', [halves])
    custom_call(helper, 'check.expect_eq', [helper.args[0], constant(helper, np.array([1, np.nan], np.float16))], [])
    m.ret(helper, [])
    f = m.func('main', [reals, halves, integers, flag], visibility='public')
    x, h, i, p = f.args
    expected = constant(f, np.array([[1, 2, 3], [4, 5, np.inf]], np.float32))
    custom_call(f, 'check.expect_almost_eq', [x, expected], [], extra={'tolerance': F(0.5, 'f64')})
    f.op('call', [h], [], {'callee': S('helper')})
    custom_call(f, 'check.expect_eq', [i, i], [])
    yes, no = Blk([], f), Blk([], f)
    custom_call(yes, 'check.expect_close', [x, expected], [], extra={'max_ulp_difference': I(2)})
    yes.op('return', [])
    no.op('return', [])
    f.op('if', [p], [], {}, [yes, no])
    m.ret(f, [])
    save('checks', m)


def mlp():
    """Two layers with constant weights, a bias and a relu, for a batch of one."""
    m = Module('mlp', '1.8.0')
    random = np.random.default_rng(3)
    t = lambda n: ten((1, n), 'f32')
    f = m.func('main', [t(8)], visibility='public')
    x = f.args[0]
    for n, columns in (8, 16), (16, 4):
        w = constant(f, random.normal(0, 0.5, (n, columns)).astype(np.float32))
        b = constant(f, random.normal(0, 0.5, columns).astype(np.float32))
        x = f.op('dot_general', [x, w], [t(columns)], {
            'lhs_batching_dimensions': ivec([]), 'rhs_batching_dimensions': ivec([]),
            'lhs_contracting_dimensions': ivec([1]), 'rhs_contracting_dimensions': ivec([0]),
            'precision_config': A(E('prec', 'DEFAULT'), E('prec', 'DEFAULT')), **{name: T('none') for name in (
                'lhs_precision_type', 'rhs_precision_type', 'accumulation_type', 'lhs_component_count',
                'rhs_component_count', 'num_primitive_operations', 'allow_imprecise_accumulation')}})
        x = f.op('add', [x, f.op('broadcast_in_dim', [b], [t(columns)], {'broadcast_dimensions': ivec([1])})], [t(columns)])
        if columns == 16:
            zero = f.op('broadcast_in_dim', [constant(f, np.float32(0))], [t(columns)], {'broadcast_dimensions': ivec([])})
            x = f.op('maximum', [x, zero], [t(columns)])
    m.ret(f, [x])
    save('mlp', m)


def patterns():
    """Compositions that TensorFlow has one op for, on an argument, with the expected results by numpy: softmax and its
    logarithm, pools, means, relu6; and for each a composition that is almost the same."""
    from vhlo_write import Blk
    m = Module('patterns', '1.8.0')
    x = np.random.default_rng(5).normal(0, 3, (2, 6, 6, 4)).astype(np.float32)
    f = m.func('main', [ten(x.shape, 'f32')], visibility='public')
    arg = f.args[0]

    def number(value):
        return constant(f, np.float32(value))

    def spread(v, shape, dims):
        return f.op('broadcast_in_dim', [v], [ten(shape, 'f32')], {'broadcast_dimensions': ivec(dims)})

    def body(name):
        block = Blk([ten((), 'f32')] * 2, f)
        block.op('return', [block.op(name, block.args, [ten((), 'f32')])])
        return block

    def reduce(v, name, initial, axes):
        shape = [n for i, n in enumerate(v.shape) if i not in axes]
        return f.op('reduce', [v, number(initial)], [ten(shape, 'f32')], {'dimensions': ivec(axes)}, [body(name)])

    def window(v, name, initial, size, stride, pads=(0, 0)):
        outs = (2, *((6 + sum(pads) - size) // stride + 1,) * 2, 4)
        ones, padding = ivec([1, 1, 1, 1]), np.array([[0, 0], pads, pads, [0, 0]], np.int64)
        return f.op('reduce_window', [v, number(initial)], [ten(outs, 'f32')], {
            'window_dimensions': ivec([1, size, size, 1]), 'window_strides': ivec([1, stride, stride, 1]),
            'base_dilations': ones, 'window_dilations': ones, 'padding': arr(padding)}, [body(name)])

    def expect(v, values):
        custom_call(f, 'check.expect_almost_eq', [v, constant(f, np.asarray(values, np.float32))], [])

    def elementwise(name, a, b):
        return f.op(name, [a, b], [a.t])

    def softmax(axis, log=False):
        kept = [i for i in range(4) if i != axis]
        def whole(v):
            shape = [1 if i == axis else n for i, n in enumerate(x.shape)]
            return spread(spread(v, shape, kept), x.shape, range(4))
        shifted = elementwise('subtract', arg, whole(reduce(arg, 'maximum', -np.inf, [axis])))
        e = f.op('exponential', [shifted], [arg.t])
        total = reduce(e, 'add', 0, [axis])
        if log:
            return elementwise('subtract', shifted, whole(f.op('log', [total], [total.t])))
        return elementwise('divide', e, whole(total))

    for axis in 3, 1:
        e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
        expect(softmax(axis), e / e.sum(axis, keepdims=True))
        expect(softmax(axis, True), np.log(e / e.sum(axis, keepdims=True)))

    def last(v, order):
        return f.op('transpose', [v], [ten([v.shape[i] for i in order], 'f32')], {'permutation': ivec(order)})

    def window_first(v, name, initial, size, stride, pads=(0, 0)):
        """The same with channels before the window, between transpositions."""
        outs = (2, 4, *((6 + sum(pads) - size) // stride + 1,) * 2)
        ones, padding = ivec([1, 1, 1, 1]), np.array([[0, 0], [0, 0], pads, pads], np.int64)
        pooled = f.op('reduce_window', [last(v, [0, 3, 1, 2]), number(initial)], [ten(outs, 'f32')], {
            'window_dimensions': ivec([1, 1, size, size]), 'window_strides': ivec([1, 1, stride, stride]),
            'base_dilations': ones, 'window_dilations': ones, 'padding': arr(padding)}, [body(name)])
        if name == 'add':
            pooled = elementwise('divide', pooled, spread(number(size * size), outs, []))
        return last(pooled, [0, 2, 3, 1])

    def windows(size, stride, pads=(0, 0), fill=0.0):
        padded = np.pad(x.astype(np.float64), [(0, 0), pads, pads, (0, 0)], constant_values=fill)
        n = (padded.shape[1] - size) // stride + 1
        return np.array([[padded[:, i * stride:i * stride + size, j * stride:j * stride + size] for j in range(n)]
                         for i in range(n)]).transpose(2, 0, 1, 3, 4, 5)

    expect(window(arg, 'maximum', -np.inf, 2, 2), windows(2, 2).max((3, 4)))
    expect(window(arg, 'maximum', -np.inf, 3, 1, (1, 1)), windows(3, 1, (1, 1), -np.inf).max((3, 4)))
    expect(window(arg, 'maximum', -np.inf, 3, 1, (2, 0)), windows(3, 1, (2, 0), -np.inf).max((3, 4)))
    expect(window(arg, 'maximum', 0, 2, 2), np.maximum(windows(2, 2).max((3, 4)), 0))
    expect(window_first(arg, 'maximum', -np.inf, 3, 1, (1, 1)), windows(3, 1, (1, 1), -np.inf).max((3, 4)))
    expect(window_first(arg, 'add', 0, 3, 3), windows(3, 3).mean((3, 4)))
    for divisor in 9, 8:
        sums = window(arg, 'add', 0, 3, 3)
        expect(elementwise('divide', sums, spread(number(divisor), sums.shape, [])), windows(3, 3).sum((3, 4)) / divisor)
    sums = window(arg, 'add', 0, 3, 1, (1, 1))
    counts = window(spread(number(1), x.shape, []), 'add', 0, 3, 1, (1, 1))
    count = np.full((6, 6), 9.0)
    count[[0, -1], :] = count[:, [0, -1]] = 6
    count[np.ix_([0, -1], [0, -1])] = 4
    expect(elementwise('divide', sums, counts), windows(3, 1, (1, 1)).sum((3, 4)) / count[None, :, :, None])

    mean = reduce(arg, 'add', 0, [1, 2])
    expect(elementwise('divide', mean, spread(number(36), mean.shape, [])), x.astype(np.float64).mean((1, 2)))
    total = spread(reduce(arg, 'add', 0, [3]), (2, 6, 6, 1), [0, 1, 2])
    expect(elementwise('divide', total, spread(number(4), total.shape, [])), x.astype(np.float64).mean(3, keepdims=True))
    expect(elementwise('divide', total, spread(number(3), total.shape, [])), x.astype(np.float64).sum(3, keepdims=True) / 3)
    relu = elementwise('maximum', arg, spread(number(0), x.shape, []))
    expect(elementwise('minimum', relu, spread(number(6), x.shape, [])), np.clip(x, 0, 6))
    expect(elementwise('minimum', relu, spread(number(5), x.shape, [])), np.clip(x, 0, 5))

    def gather(v, index, axis, slices, offsets, out):
        return f.op('gather', [v, index], [ten(out, 'f32')], {
            'offset_dims': ivec(offsets), 'collapsed_slice_dims': ivec([axis]), 'operand_batching_dims': ivec([]),
            'start_indices_batching_dims': ivec([]), 'start_index_map': ivec([axis]), 'index_vector_dim': I(2),
            'slice_sizes': ivec(slices), 'indices_are_sorted': B(False)})

    at = np.array([[[0], [9], [-3]], [[5], [2], [1]]], np.int32)
    index = constant(f, at)
    inside = np.clip(at[..., 0], 0, 5)
    expect(gather(arg, index, 1, [2, 1, 6, 4], [0, 3, 4], (2, 2, 3, 6, 4)), x[:, inside])
    expect(gather(arg, index, 1, [2, 1, 6, 4], [2, 3, 4], (2, 3, 2, 6, 4)), np.moveaxis(x[:, inside], 0, 2))
    expect(gather(arg, index, 1, [1, 1, 6, 4], [0, 3, 4], (1, 2, 3, 6, 4)), x[:1, inside])

    def gather_by_vectors(v, index, axes, collapsed, slices, offsets, out):
        return f.op('gather', [v, index], [ten(out, 'f32')], {
            'offset_dims': ivec(offsets), 'collapsed_slice_dims': ivec(collapsed), 'operand_batching_dims': ivec([]),
            'start_indices_batching_dims': ivec([]), 'start_index_map': ivec(axes), 'index_vector_dim': I(2),
            'slice_sizes': ivec(slices), 'indices_are_sorted': B(False)})

    # The numbers of axes that are taken whole are clamped to 0.
    pairs = constant(f, np.concatenate([at[:, ::-1], at], 2))
    expect(gather_by_vectors(arg, pairs, [2, 1], [], [2, 1, 6, 4], [0, 3, 4, 5], (2, 2, 3, 1, 6, 4)),
           x[:, inside][:, :, :, None])
    expect(gather_by_vectors(arg, pairs, [2, 1], [2], [2, 6, 1, 4], [0, 1, 4], (2, 6, 2, 3, 4)), x[:, :, inside[:, ::-1]])
    expect(gather_by_vectors(arg, pairs, [2, 1], [], [2, 1, 1, 4], [0, 3, 4, 5], (2, 2, 3, 1, 1, 4)),
           x[:, inside, inside[:, ::-1]][:, :, :, None, None])

    def channels(values):
        return spread(constant(f, np.asarray(values, np.float32)), (1, 1, 1, 4), [3])

    def whole(v):
        return spread(v, x.shape, range(4))

    mean, variance, scale, offset = np.array([[1, 2, 3, -4], [0.5, 1, 2, 4], [1, -1, 0.5, 2], [0, 1, 2, 3]])
    centred = elementwise('subtract', arg, whole(channels(mean)))
    deviation = elementwise('add', channels(variance), spread(number(0.25), (1, 1, 1, 4), []))
    factor = elementwise('multiply', f.op('rsqrt', [deviation], [deviation.t]), channels(scale))
    normed = (x - mean) / np.sqrt(variance + 0.25) * scale
    expect(elementwise('add', elementwise('multiply', centred, whole(factor)), whole(channels(offset))), normed + offset)
    expect(elementwise('add', elementwise('multiply', centred, whole(factor)), arg), normed + x) # not an offset
    m.ret(f, [])
    save('patterns', m)
    x.tofile(os.path.join(FOLDER, 'patterns.f32'))


def wrap(name, m, platforms):
    """The table of jax.export around a module: only the platforms and the module."""
    module = m.dump()
    u16, u32 = (lambda n: n.to_bytes(2, 'little')), (lambda n: n.to_bytes(4, 'little'))
    fields = [0] * 14
    fields[9], fields[13] = 4, 8
    vtable = u16(4 + 2 * len(fields)) + u16(12) + b''.join(u16(n) for n in fields)
    head = u32(4 + len(vtable)) + vtable
    table = len(head)
    vector = table + 12
    texts = vector + 4 + 4 * len(platforms)
    places = [texts + 8 * i for i in range(len(platforms))]
    end = texts + 8 * len(platforms)
    data = head + u32(table - 4) + u32(vector - table - 4) + u32(end - table - 8) + u32(len(platforms))
    for i, at in enumerate(places):
        data += u32(at - (vector + 4 + 4 * i))
    for platform in platforms:
        data += u32(len(platform)) + platform + b'\0'
    with open(os.path.join(FOLDER, name + '.jaxexport'), 'wb') as out:
        out.write(data + u32(len(module)) + module)


def exported():
    """Files of jax.export's serialize(): a module for two platforms, which takes the index of the running one, and one for CPU."""
    m = Module('exported', '1.8.0')
    index, t = ten((), 'si32'), ten((-(1 << 63), 2), 'f32')
    f = m.func('main', [index, t], [{'jax.global_constant': S('_platform_index')}, None], 'public')
    factor = f.op('convert', [f.args[0]], [ten((), 'f32')])
    wide = f.op('dynamic_broadcast_in_dim', [factor, f.op('concatenate', [
        f.op('reshape', [f.op('get_dimension_size', [f.args[1]], [index], {'dimension': I(0)})], [ten((1,), 'si32')]),
        constant(f, np.array([2], np.int32))], [ten((2,), 'si32')], {'dimension': I(0)})], [t],
        {'broadcast_dimensions': ivec([]), 'known_expanding_dimensions': ivec([]),
         'known_nonexpanding_dimensions': ivec([])})
    m.ret(f, [f.op('add', [f.args[1], wide], [t])])
    wrap('exported', m, [b'tpu', b'cpu'])
    m = Module('cpu', '1.8.0')
    t = ten((2,), 'f32')
    f = m.func('main', [t], visibility='public')
    m.ret(f, [f.op('negate', f.args, [t])])
    wrap('cpu', m, [b'cpu'])


def many():
    """Twelve arguments and results: result i is 100 times argument i, plus i. The order of the numbers is not that of the names."""
    m = Module('many', '1.8.0')
    t = ten((1,), 'f32')
    f = m.func('main', [t] * 12, visibility='public')
    hundred = constant(f, np.array([100], np.float32))
    m.ret(f, [f.op('add', [f.op('multiply', [x, hundred], [t]), constant(f, np.array([i], np.float32))], [t])
              for i, x in enumerate(f.args)])
    save('many', m)


constants()
regions()
network()
checks()
mlp()
patterns()
exported()
many()
