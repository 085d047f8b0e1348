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


constants()
regions()
network()
