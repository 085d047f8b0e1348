"""Compiles StableHLO modules with Google's TPU compiler, which needs no TPU. Run by tare check.

usage: python tpu_compiler.py CHIP FILE.mlirbc ...
Prints one JSON object for each file: ok, and error or cycles, products, memory and ops. Exit status 3: this Python has no
compiler (pip install 'jax[tpu]'); 5: the compiler has no such chip. Cycles are the compiler's own estimates; a loop of known length counts each iteration.
"""
import collections
import importlib.metadata
import json
import os
import re
import sys

CHIPS = {  # topology of one chip, and what its name does not say
    "v2": ("v2:2x2", {}),
    "v3": ("v3:2x2", {}),
    "v4": ("v4:2x2x1", {"chip_config_name": "megacore"}),
    "v5e": ("v5e:1x1", {"chips_per_host_bounds": (1, 1, 1)}),
    "v5p": ("v5:2x2x1", {"chip_config_name": "megacore"}),
    "v6e": ("v6e:1x1", {"chips_per_host_bounds": (1, 1, 1)}),
    "tpu7x": ("tpu7x:1x1x1", {"chips_per_host_bounds": (1, 1, 1)}),
}
WITHOUT_TPU = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost",
               "TPU_ACCELERATOR_TYPE": "v5litepod-4", "ALLOW_MULTIPLE_LIBTPU_LOAD": "true", "TF_CPP_MIN_LOG_LEVEL": "3",
               "JAX_ENABLE_COMPILATION_CACHE": "false"}
INSTRUCTION = re.compile(r"\s*(?:ROOT )?%?(\S+) = (.*?) ([a-z][a-z0-9-]*)\((.*)$")
CALLED = re.compile(r"(?:calls|to_apply|body|condition)=%?([\w.\-]+)")
# What XLA adds around the ops of the model.
PLUMBING = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"}


def first(pattern, text, missing=None):
    found = re.search(pattern, text)
    return found.group(1) if found else missing


def computations(text):
    """The instructions of each computation of an HLO text, and the name of the entry."""
    found, entry, current = collections.defaultdict(list), None, None
    for line in text.splitlines():
        if line.endswith("{") and "->" in line:
            words = line.split()
            current = (words[1] if words[0] == "ENTRY" else words[0]).lstrip("%").split("(")[0]
            if words[0] == "ENTRY":
                entry = current
        elif match := INSTRUCTION.match(line):
            name, shape, op, rest = match.groups()
            found[current].append({
                "name": name, "shape": shape, "op": op, "rest": rest,
                "node": first(r'source_file="([^"]*)"', rest),
                "cycles": int(first(r'"estimated_cycles":"(\d+)"', rest, 0)),
                "trips": int(first(r'"known_trip_count":\{"n":"(\d+)"\}', rest, 1)),
                "called": CALLED.findall(rest) + [name.strip().lstrip("%") for name in
                                                  first(r"branch_computations=\{([^}]*)\}", rest, "").split(",") if name.strip()],
            })
    return found, entry


def element(shape):
    return shape.split("[")[0].lstrip("(")


def products(found, name, seen=()):
    """The element types of the matrix products in a computation and in those that it calls."""
    types = collections.Counter()
    shapes = {i["name"]: i["shape"] for i in found[name]}
    for i in found[name]:
        if i["op"] in ("convolution", "dot"):
            operands = [shapes.get(word.strip().lstrip("%").split(" ")[-1].lstrip("%"), "?") for word in i["rest"].split(")")[0].split(",")[:2]]
            types["%s x %s -> %s" % (element(operands[0]), element(operands[1]), element(i["shape"]))] += 1
        for called in i["called"]:
            if called not in seen:
                types += products(found, called, seen + (name,))
    return types


def report(found, name, times, ops):
    """Adds what an instruction costs, each time that it runs."""
    for i in found[name]:
        if i["op"] in ("while", "conditional", "call"):
            for called in i["called"]:
                report(found, called, times * i["trips"], ops)
        elif i["cycles"]:
            types = collections.Counter()
            for called in i["called"]:
                types += products(found, called)
            if i["op"] in ("convolution", "dot"):
                types += products({"": [i]}, "")
            ops.append({"node": i["node"], "op": i["op"], "cycles": times * i["cycles"], "products": sorted(types)})


def device_of(chip):
    """None: the compiler does not know the chip."""
    from jax.experimental import topologies

    topology, more = CHIPS.get(chip, (chip, {}))
    try:
        return topologies.get_topology_desc(topology, platform="tpu", **more).devices[0]
    except Exception:  # whatever an unknown name raises
        return None


def compile_file(path, device):
    import numpy
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax.extend import mlir as extend
    from jaxlib import _jax

    with open(path, "rb") as file, mlir.make_ir_context():
        module = extend.deserialize_portable_artifact(file.read())
        options = compiler.get_compile_options(1, 1, device_assignment=numpy.array([[device.id]]))
        return device.client.compile(module, executable_devices=_jax.DeviceList((device,)), compile_options=options)


def check(path, device):
    try:
        program = compile_file(path, device)
    except Exception as error:  # what the compiler says of the module
        return {"ok": False, "error": str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__}
    found, entry = computations(program.hlo_modules()[0].to_string())
    memory, ops = program.get_compiled_memory_stats(), []
    report(found, entry, 1, ops)
    return {
        "ok": True, "cycles": sum(op["cycles"] for op in ops), "products": dict(products(found, entry)), "ops": ops,
        "memory": {"code": memory.generated_code_size_in_bytes, "arguments": memory.argument_size_in_bytes,
                   "results": memory.output_size_in_bytes, "temporary": memory.temp_size_in_bytes},
    }


def main(chip, *paths):
    os.environ.update(WITHOUT_TPU)
    try:
        import jax  # noqa: F401
        version = importlib.metadata.version("libtpu")
    except (ImportError, importlib.metadata.PackageNotFoundError):
        return 3
    device = device_of(chip)
    if not device:
        return 5
    for path in paths:
        print(json.dumps({"compiler": "libtpu " + version, **check(path, device)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
