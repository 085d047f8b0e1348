"""bfloat16_kernels.py TARE: lists the ops whose definition allows bfloat16, but of which TensorFlow's CPU kernels compute float32 only.

tpu/bfloat16_choice.c keeps them in float32."""
import json
import subprocess
import sys

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels, op_def_registry


def computes(registered, attr, dtype):
    """Whether a kernel has no constraint on the attribute, or one that allows the type."""
    constraints = [[one for one in kernel.constraint if one.name == attr] for kernel in registered]
    return any(not found or any(dtype in one.allowed_values.list.type for one in found) for found in constraints)


ops = json.loads(subprocess.run([sys.argv[1], "ops", "--json"], capture_output=True, check=True).stdout)["ops"]
for name in [op["name"] for op in ops if not op["stateful"]]:
    definition = op_def_registry.get(name)
    registered = [kernel for kernel in kernels.get_registered_kernels_for_op(name).kernel if kernel.device_type == "CPU"]
    for attr in definition.attr if definition else ():
        allowed = attr.allowed_values.list.type
        if attr.type == "type" and (not allowed or types_pb2.DT_BFLOAT16 in allowed) and registered and \
                computes(registered, attr.name, types_pb2.DT_FLOAT) and not computes(registered, attr.name, types_pb2.DT_BFLOAT16):
            print(name, attr.name)
