"""tpu_compiler.py FOLDER JOURNAL [SKIP]: compiles the modules of a folder by Google's compiler for TPUs (libtpu), without a TPU.

Files are MODEL@STEP@NUMBER.hlo, an HloProto of XLA before its optimizations, or .mlirbc, a portable artifact of StableHLO. Each must
compile for every chip of CHIPS (artifacts: of ARTIFACT_CHIPS), and the convolutions of int8, int4 and float8 must be convolutions of
these types for the matrix unit afterwards; the compiler may compute small matrix products elsewhere.

The mark "module" is set before each; a process that the compiler ends is followed by one that skips those SKIP modules."""
from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import Counter
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
from results import FAILED, PASSED, SKIPPED, Journal  # noqa: E402

CHIPS = {"v5e": "v5e:1x1", "v6e": "v6e:1x1"}
ARTIFACT_CHIPS = CHIPS | {"tpu7x": "tpu7x:1x1x1"}
NARROW = ("s8", "s4", "f8e4m3fn", "f8e5m2")
HLO_NARROW = {2: "s8", 21: "s4", 20: "f8e4m3fn", 19: "f8e5m2"}      # PrimitiveType in xla_data.proto
MLIR_NARROW = {"i8": "s8", "i4": "s4", "f8E4M3FN": "f8e4m3fn", "f8E5M2": "f8e5m2"}
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?(\S+) = (\S+?)\[.*? (convolution|dot)\(([^)]*)\)")
CONVOLUTION = re.compile(r"stablehlo\.convolution.* : \(tensor<(?:\d+x)*(\w+)>, tensor<(?:\d+x)*(\w+)>\)")
Types = Counter[tuple[str, str]]      # pairs of operand types


class Compiler:
    """Compiles each program once: the steps of a model write many that differ in the name of the module alone."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], str | Exception] = {}

    def __call__(self, module: bytes | str, topology: str) -> str:
        with mlir.make_ir_context():
            text = str(ir.Module.parse(module))
        key = hashlib.sha256(re.sub(r"module @\S+", "module", text, count=1).encode()).hexdigest(), topology
        if key not in self.known:
            try:
                self.known[key] = compiled(module, topology)
            except Exception as error:  # noqa: BLE001 (whatever the compiler raises)
                self.known[key] = error
        result = self.known[key]
        if isinstance(result, Exception):
            raise result
        return result


def compiled(module: bytes | str, topology: str) -> str:
    """The optimized program of a StableHLO module as text."""
    device = topologies.get_topology_desc(topology, platform="tpu", chips_per_host_bounds=(1, 1, 1)).devices[0]
    with mlir.make_ir_context():
        options = compiler.get_compile_options(1, 1, device_assignment=np.array([[device.id]]))
        program = device.client.compile(ir.Module.parse(module), compile_options=options,
                                        executable_devices=_jax.DeviceList((device,)))
    return program.hlo_modules()[0].to_string()


def narrow(pairs: list[tuple[str, str]]) -> Types:
    return Counter(pair for pair in pairs if set(pair) <= set(NARROW))


def convolutions_of_hlo(data: bytes) -> tuple[bytes, Types]:
    """The module of an HloProto, and what its convolutions of narrow types have as operands."""
    from tensorflow.compiler.xla.service import hlo_pb2     # artifacts need no TensorFlow
    module = hlo_pb2.HloProto.FromString(data).hlo_module
    pairs = []
    for computation in module.computations:
        types = {one.id: HLO_NARROW.get(one.shape.element_type, "") for one in computation.instructions}
        pairs += [tuple(types[operand] for operand in one.operand_ids) for one in computation.instructions if one.opcode == "convolution"]
    return portable.hlo_to_stablehlo(module.SerializeToString()), narrow(pairs)


def convolutions_of_artifact(data: bytes) -> tuple[str, Types]:
    """The same for a portable artifact."""
    with mlir.make_ir_context():
        text = str(portable.deserialize_portable_artifact(data))
    return text, narrow([tuple(MLIR_NARROW.get(one, "") for one in found.groups()) for found in CONVOLUTION.finditer(text)])


def products_of(text: str) -> Types:
    """Convolutions of the program by the types of their operands; the compiler makes convolutions of matrix products, too."""
    types = dict(re.findall(r"^\s*(?:ROOT )?%?(\S+) = (\w+)\[", text, re.M))
    found = [INSTRUCTION.match(line) for line in text.splitlines()]
    operands = [re.findall(r"%([\w.\-]+)", one[4]) for one in found if one]
    return narrow([tuple(types.get(name, "") for name in names) for names in operands if len(names) == 2])


def judge(path: Path, journal: Journal, compile_once: Compiler) -> None:
    model, step, _ = path.stem.replace("+", "/").split("@")
    is_artifact = path.suffix == ".mlirbc"
    module, expected = (convolutions_of_artifact if is_artifact else convolutions_of_hlo)(path.read_bytes())
    for chip, topology in (ARTIFACT_CHIPS if is_artifact else CHIPS).items():
        try:
            text = compile_once(module, topology)
        except Exception as error:  # noqa: BLE001 (whatever the compiler raises)
            imported = "failed to legalize operation 'mhlo.copy'" not in str(error)      # on the way to the compiler
            journal.add(model, step, chip, FAILED if imported else SKIPPED,
                        f"{type(error).__name__}: {error}" if imported else "JAX does not import the op copy")
            continue
        missing = expected - products_of(text)
        journal.add(model, step, chip, FAILED if missing else PASSED,
                    f"products that do not reach the matrix unit in their types: {dict(missing)} of {dict(expected)}" if missing else "")


def main(folder: Path, journal: Journal, skip: int) -> None:
    compile_once = Compiler()
    for path in sorted([*folder.glob("*.hlo"), *folder.glob("*.mlirbc")])[skip:]:
        journal.mark("module", path.stem)
        judge(path, journal, compile_once)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Journal(Path(sys.argv[2])), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
