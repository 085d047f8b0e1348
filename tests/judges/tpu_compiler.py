"""tpu_compiler.py FOLDER JOURNAL STORE [SKIP]: compiles the modules of a folder by Google's compiler for TPUs (libtpu), without a TPU.

Files are MODEL@STEP@NUMBER.hlo, an HloProto of XLA before its optimizations, or .mlirbc, a portable artifact of StableHLO. Each must
compile for every chip of CHIPS (artifacts: of ARTIFACT_CHIPS), and the convolutions of int8, int4 and float8 must be convolutions of
these types for the matrix unit afterwards, and so must matrix products of LARGE matrices; the compiler may compute small ones elsewhere.

Compilation takes hours: what the compiler says of a program remains in the folder STORE, and later runs read it there.
The mark "program" is set before each module and chip; a process that the compiler ends, or that SIGXCPU ends after SECONDS of
processor time for one program, is followed by one that skips those SKIP programs."""
from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import sys
from collections import Counter
from importlib import metadata
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
SECONDS = int(os.environ.get("TARE_JUDGES_SECONDS", "1200"))
NARROW = ("s8", "s4", "f8e4m3fn", "f8e5m2")
HLO_NARROW = {2: "s8", 21: "s4", 20: "f8e4m3fn", 19: "f8e5m2"}      # PrimitiveType in xla_data.proto
MLIR_NARROW = {"i8": "s8", "i4": "s4", "f8E4M3FN": "f8e4m3fn", "f8E5M2": "f8e5m2"}
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?(\S+) = (\S+?)\[.*? (convolution|dot)\(([^)]*)\)")
TENSOR = r"tensor<((?:\d+x)*)(\w+)>"
PRODUCT = re.compile(rf"stablehlo\.(convolution|dot_general)\(?\s*(%\w+), (%\w+).* : \({TENSOR}, {TENSOR}\) -> {TENSOR}")
FOUR_BITS = re.compile(r"(%\w+) = stablehlo\.convert .* : \(tensor<(?:\d+x)*i4>\) -> tensor<(?:\d+x)*i8>")
LARGE = 128 * 128      # elements of both operands and of the result
Types = Counter[tuple[str, str]]      # pairs of operand types


class Compiler:
    """What the compiler says of programs: the products of each, or its error. The steps of a model write many programs that
    differ in the name of the module alone. `store` keeps one file per program and version of the compiler."""

    def __init__(self, store: Path) -> None:
        self.store = store / f"libtpu-{metadata.version('libtpu')}"
        self.store.mkdir(parents=True, exist_ok=True)

    def __call__(self, module: bytes | str, chip: str) -> tuple[Types, str]:
        """The products of the compiled program, and the compiler's error or ""."""
        with mlir.make_ir_context():
            text = str(ir.Module.parse(module))
        key = hashlib.sha256(re.sub(r"module @\S+", "module", text, count=1).encode()).hexdigest()
        file = self.store / f"{chip}-{key}.json"
        if not file.exists():
            self.write(file, *self.compile(module, ARTIFACT_CHIPS[chip]))
        found = json.loads(file.read_text(encoding="utf-8"))
        return Counter({(left, right): count for left, right, count in found["products"]}), found["error"]

    @staticmethod
    def compile(module: bytes | str, topology: str) -> tuple[Types, str]:
        try:
            return products_of(compiled(module, topology)), ""
        except Exception as error:  # noqa: BLE001 (whatever the compiler raises)
            return Counter(), f"{type(error).__name__}: {error}"

    @staticmethod
    def write(file: Path, products: Types, error: str) -> None:
        """A run that is interrupted leaves no half of a file."""
        text = json.dumps({"products": [[*pair, count] for pair, count in products.items()], "error": error})
        file.with_suffix(".part").write_text(text, encoding="utf-8")
        file.with_suffix(".part").rename(file)


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


def products_of_artifact(data: bytes) -> tuple[str, Types]:
    """The same for a portable artifact, with the large matrix products. Weights of 4 bits are converted in front of them."""
    with mlir.make_ir_context():
        text = str(portable.deserialize_portable_artifact(data))
    four_bits, pairs = set(FOUR_BITS.findall(text)), []
    for op, left, right, *tensors in (found.groups() for found in PRODUCT.finditer(text)):
        large = min(np.prod([int(size) for size in sizes.split("x")[:-1]]) for sizes in tensors[::2]) >= LARGE
        if op == "convolution" or large:
            types = [MLIR_NARROW.get(name, "") for name in tensors[1:4:2]]
            pairs.append(tuple("s4" if large and name in four_bits else kind for name, kind in zip((left, right), types, strict=True)))
    return text, narrow(pairs)


def products_of(text: str) -> Types:
    """Convolutions of the program by the types of their operands; the compiler makes convolutions of matrix products, too."""
    types = dict(re.findall(r"^\s*(?:ROOT )?%?(\S+) = (\w+)\[", text, re.M))
    found = [INSTRUCTION.match(line) for line in text.splitlines()]
    operands = [re.findall(r"%([\w.\-]+)", one[4]) for one in found if one]
    return narrow([tuple(types.get(name, "") for name in names) for names in operands if len(names) == 2])


def missing_products(expected: Types, found: Types) -> Types:
    """What is expected and not found. Weights of 4 bits may stay so where 8 are expected."""
    more = Counter()
    for pair, count in (found - expected).items():
        more[tuple("s8" if kind == "s4" else kind for kind in pair)] += count
    return expected - found - more


def limit_time() -> None:
    """SIGXCPU ends the process if the next program takes more than SECONDS, whatever else the machine does."""
    used = sum(os.times()[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def judge(path: Path, chips: list[str], journal: Journal, compiler_says: Compiler) -> None:
    model, step, _ = path.stem.replace("+", "/").split("@")
    module, expected = (products_of_artifact if path.suffix == ".mlirbc" else convolutions_of_hlo)(path.read_bytes())
    for chip in chips:
        journal.mark("program", f"{path.stem}@{chip}")
        limit_time()
        products, error = compiler_says(module, chip)
        missing = missing_products(expected, products)
        if "failed to legalize operation 'mhlo.copy'" in error:      # on the way to the compiler
            journal.add(model, step, chip, SKIPPED, "JAX does not import the op copy")
        elif missing and not error:
            error = f"products that do not reach the matrix unit in their types: {dict(missing)} of {dict(expected)}"
            journal.add(model, step, chip, FAILED, error)
        else:
            journal.add(model, step, chip, FAILED if error else PASSED, error)


def main(folder: Path, journal: Journal, store: Path, skip: int) -> None:
    compiler_says = Compiler(store)
    for path in sorted([*folder.glob("*.hlo"), *folder.glob("*.mlirbc")]):
        chips = list(ARTIFACT_CHIPS if path.suffix == ".mlirbc" else CHIPS)
        if skip < len(chips):
            judge(path, chips[skip:], journal, compiler_says)
        skip = max(skip - len(chips), 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Journal(Path(sys.argv[2])), Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0)
