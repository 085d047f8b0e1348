"""tpu_compiler.py FOLDER JOURNAL: compiles the HLO modules of a folder by Google's compiler for TPUs (libtpu), without a TPU.

Files are MODEL@STEP@NUMBER.hlo, an HloProto of XLA before its optimizations. Each must compile for every chip of CHIPS, and the
convolutions of int8 must be convolutions of int8 for the matrix unit afterwards; the compiler may compute small matrix products
elsewhere."""
from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-4",
               "ALLOW_MULTIPLE_LIBTPU_LOAD": "true", "JAX_ENABLE_COMPILATION_CACHE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}

import jax  # noqa: E402, F401 (initializes libtpu's plug-in)
import numpy as np  # noqa: E402
from jax._src import compiler  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib.mlir import ir  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.extend import mlir as portable  # noqa: E402
from jaxlib import _jax  # noqa: E402
from tensorflow.compiler.xla.service import hlo_pb2  # noqa: E402

from results import FAILED, PASSED, SKIPPED, Journal  # noqa: E402

CHIPS = {"v5e": "v5e:1x1", "v6e": "v6e:1x1"}
S8 = 2      # PrimitiveType of int8 in xla_data.proto
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?(\S+) = (\S+?)\[.*? (convolution|dot)\(([^)]*)\)")


def compiled(module: bytes, topology: str) -> str:
    """The optimized program as text."""
    [device] = topologies.get_topology_desc(topology, platform="tpu", chips_per_host_bounds=(1, 1, 1)).devices
    with mlir.make_ir_context():
        options = compiler.get_compile_options(1, 1, device_assignment=np.array([[device.id]]))
        program = device.client.compile(ir.Module.parse(portable.hlo_to_stablehlo(module)), compile_options=options,
                                        executable_devices=_jax.DeviceList((device,)))
    return program.hlo_modules()[0].to_string()


def int8_convolutions(module: hlo_pb2.HloModuleProto) -> int:
    count = 0
    for computation in module.computations:
        types = {one.id: one.shape.element_type for one in computation.instructions}
        count += sum(one.opcode == "convolution" and {types[operand] for operand in one.operand_ids} == {S8} for one in computation.instructions)
    return count


def int8_products(text: str) -> int:
    """Convolutions of the program whose operands are int8; the compiler makes convolutions of matrix products, too."""
    types = dict(re.findall(r"^\s*(?:ROOT )?%?(\S+) = (\w+)\[", text, re.M))
    found = [INSTRUCTION.match(line) for line in text.splitlines()]
    operands = [re.findall(r"%([\w.\-]+)", one[4]) for one in found if one]
    return sum({types.get(name) for name in names} == {"s8"} for names in operands)


def main(folder: Path, journal: Journal) -> None:
    for path in sorted(folder.glob("*.hlo")):
        model, step, _ = path.stem.replace("+", "/").split("@")
        module = hlo_pb2.HloProto.FromString(path.read_bytes()).hlo_module
        for chip, topology in CHIPS.items():
            try:
                text = compiled(module.SerializeToString(), topology)
            except Exception as error:  # noqa: BLE001 (whatever the compiler raises)
                imported = "failed to legalize operation 'mhlo.copy'" not in str(error)      # on the way to the compiler
                journal.add(model, step, chip, FAILED if imported else SKIPPED,
                            f"{type(error).__name__}: {error}" if imported else "JAX does not import the op copy")
                continue
            expected, products = int8_convolutions(module), int8_products(text)
            wrong = products < expected
            journal.add(model, step, chip, FAILED if wrong else PASSED,
                        f"{products} int8 products for the matrix unit (expected {expected})" if wrong else "")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Journal(Path(sys.argv[2])))
