"""tpu_costs.py TABLE [CHIP…]: what Google's compiler for TPUs says that networks cost, without a TPU.

Appends to TABLE (tab-separated) the rows that it lacks, smallest networks first. A network is a line of NETWORKS: the sizes
of its input without the batch, and its layers:
  cK.N.S  convolution K × K with N outputs and stride S, bias, Relu      dK.S  the same, depthwise
  +I      the layer before is added to the output of layer I, Relu       m     mean over the image
  fN      dense layer with N outputs, bias, Relu
Forms: bf16 is what a conversion writes; int8 is static quantization of all layers but the depthwise ones and the additions. cycles
are the compiler's estimate; bundles are the instructions of the machine code. The estimate is too high for int8 convolutions
of fewer than 32 images: the compiler rounds their rows up."""
from __future__ import annotations

import glob
import math
import os
import re
import sys
import tempfile
from pathlib import Path

DUMP = tempfile.mkdtemp(prefix="tpu-costs-")
os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-4",
               "ALLOW_MULTIPLE_LIBTPU_LOAD": "true", "JAX_ENABLE_COMPILATION_CACHE": "false", "TF_CPP_MIN_LOG_LEVEL": "3",
               "LIBTPU_INIT_ARGS": f"--xla_jf_dump_to={DUMP} --xla_jf_dump_hlo_text=true --xla_jf_dump_llo_text=true"}

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import topologies  # noqa: E402

ONE = {"chips_per_host_bounds": (1, 1, 1)}
MEGACORE = {"chip_config_name": "megacore"}
CHIPS = {"v5e": ("v5e:1x1", ONE), "v6e": ("v6e:1x1", ONE), "v5p": ("v5:2x2x1", MEGACORE), "tpu7x": ("tpu7x:1x1x1", ONE)}
BATCHES = (8, 32, 1)
FORMS = ("bf16", "int8")


def single_layers() -> dict[str, str]:
    found = {}
    for n, k in [(256, 256), (1024, 1024), (640, 128), (2048, 512), (64, 64), (4096, 1000)]:
        found[f"dense_{n}_{k}"] = f"{n} f{k}"
    for h, c, n, k, s in [(8, 16, 16, 3, 1), (16, 16, 32, 3, 2), (32, 3, 16, 3, 1), (32, 16, 16, 3, 1), (16, 32, 32, 3, 1), (8, 64, 64, 3, 1),
                          (14, 256, 256, 3, 1), (7, 512, 512, 3, 1), (28, 128, 128, 3, 1), (56, 64, 64, 3, 1), (112, 3, 32, 3, 2),
                          (14, 512, 512, 1, 1), (28, 256, 256, 1, 1), (28, 64, 192, 1, 1), (14, 96, 576, 1, 1), (7, 960, 160, 1, 1),
                          (56, 24, 144, 1, 1), (7, 2048, 512, 1, 1), (28, 32, 64, 5, 1), (14, 64, 128, 3, 2)]:
        found[f"conv_{h}_{c}_{n}_{k}_{s}"] = f"{h}x{h}x{c} c{k}.{n}.{s}"
    for h, c, s in [(16, 64, 1), (28, 128, 1), (14, 384, 1), (56, 96, 2)]:
        found[f"depthwise_{h}_{c}_{s}"] = f"{h}x{h}x{c} d3.{s}"
    return found


def networks() -> dict[str, str]:
    found = {
        "mlp_small": "64 f64 f64 f10", "mlp_640": "640 f128 f128 f8 f128 f128 f640", "mlp_wide": "784 f1024 f1024 f10", "mlp_deep": "256 f256 f256 f256 f256 f256 f256 f10",
        "lenet": "28x28x1 c5.8.2 c5.16.2 m f64 f10", "glyphs": "28x28x1 c3.16.1 c3.16.2 c3.32.1 c3.32.2 m f10",
        "plain8": "32x32x3 c3.16.1 c3.16.1 c3.32.2 c3.32.1 c3.64.2 c3.64.1 m f10",
        "resnet8": "32x32x3 c3.16.1 c3.16.1 c3.16.1 +1 c3.32.2 c3.32.1 +4 c3.64.2 c3.64.1 +7 m f10",
        "resnet14": "32x32x3 c3.32.1 c3.32.1 c3.32.1 +1 c3.32.1 c3.32.1 +4 c3.64.2 c3.64.1 c3.64.1 +7 m f10",
        "kws": "49x10x1 c3.64.2 d3.1 c1.64.1 d3.1 c1.64.1 d3.1 c1.64.1 m f12",
        "mobile_small": "96x96x3 c3.8.2 d3.1 c1.16.1 d3.2 c1.32.1 d3.1 c1.32.1 d3.2 c1.64.1 d3.1 c1.64.1 m f2",
        "mobile_wide": "56x56x64 d3.1 c1.128.1 d3.2 c1.256.1 d3.1 c1.256.1 m f100",
        "inverted": "28x28x32 c1.192.1 d3.1 c1.32.1 c1.192.1 d3.2 c1.64.1 m f10",
        "bottleneck": "14x14x256 c1.64.1 c3.64.1 c1.256.1 +0 c1.64.1 c3.64.1 c1.256.1 +4 m f10",
        "bottleneck_wide": "14x14x1024 c1.256.1 c3.256.1 c1.1024.1 +0 m f1000",
        "pointwise4": "14x14x256 c1.256.1 c1.256.1 c1.256.1 c1.256.1 m f10", "pointwise512": "14x14x512 c1.512.1 c1.512.1 m f10",
        "conv128": "28x28x128 c3.128.1 c3.128.1 m f10", "conv256": "14x14x256 c3.256.1 c3.256.1 c3.256.1 m f10", "conv512": "7x7x512 c3.512.1 c3.512.1 m f10",
        "conv64": "56x56x64 c3.64.1 c3.64.1 m f10", "stem": "64x64x3 c3.32.2 c3.64.2 c3.128.2 c3.256.2 m f10", "stem5": "64x64x3 c5.16.2 c5.32.2 c5.64.2 m f10",
        "audio": "96x64x1 c3.32.2 c3.64.2 c3.64.1 c3.128.2 m f50", "vgg_small": "32x32x3 c3.64.1 c3.64.1 c3.128.2 c3.128.1 c3.256.2 c3.256.1 m f256 f10",
        "residual128": "28x28x128 c3.128.1 c3.128.1 +0 c3.128.1 c3.128.1 +3 m f10",
    }
    return found


NETWORKS = single_layers() | networks()


class Builder:
    """The function of a network in one form."""

    def __init__(self, text: str, form: str) -> None:
        sizes, *self.layers = text.split()
        self.sizes = tuple(int(size) for size in sizes.split("x"))
        self.form = form
        self.random = np.random.default_rng(0)

    def constant(self, shape: tuple[int, ...], kind: str) -> jax.Array:
        return jnp.asarray(self.random.integers(-127, 128, shape), kind) if kind.startswith("int") else jnp.asarray(self.random.standard_normal(shape) * .05, kind)

    def product(self, x, shape: tuple[int, ...], stride: int, kind: str, depthwise: bool):  # noqa: ANN001, ANN201
        w = self.constant(shape, kind)
        accumulated = jnp.int32 if kind == "int8" else jnp.float32
        if len(shape) == 2:
            return lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=accumulated)
        padding: str | list = "SAME"
        if kind == "int8" and shape[0] > 1:         # with the zero point
            pads = lax.padtype_to_pads(x.shape[1:3], shape[:2], (stride, stride), "SAME")
            x = lax.pad(x, jnp.int8(-128), [(0, 0, 0), *[(low, high, 0) for low, high in pads], (0, 0, 0)])
            padding = "VALID"
        return lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                        feature_group_count=x.shape[-1] if depthwise else 1, preferred_element_type=accumulated)

    def quantized(self, y):  # noqa: ANN001, ANN201
        y = y.astype(jnp.float32) * jnp.float32(20.3) + jnp.float32(-128)
        return lax.round(jnp.clip(y, jnp.float32(-128), jnp.float32(127)), lax.RoundingMethod.TO_NEAREST_EVEN).astype(jnp.int8)

    def real(self, q, kind=jnp.float32):  # noqa: ANN001, ANN201
        return ((q.astype(jnp.float32) + jnp.float32(128)) * jnp.float32(.05)).astype(kind)

    def weighted(self, x, layer: str):  # noqa: ANN001, ANN201
        depthwise = layer[0] == "d"
        values = [int(value) for value in layer[1:].split(".")]
        if layer[0] == "f":
            shape, stride = (x.shape[-1], values[0]), 1
        elif depthwise:
            shape, stride = (values[0], values[0], 1, x.shape[-1]), values[1]
        else:
            shape, stride = (values[0], values[0], x.shape[-1], values[1]), values[2]
        n = (shape[-1],)
        if self.form == "int8" and not depthwise:
            y = self.product(x, shape, stride, "int8", False) + self.constant(n, "int32")
            return self.quantized(y.astype(jnp.float32) * self.constant(n, "float32"))
        x = self.real(x, jnp.bfloat16) if self.form == "int8" else x
        y = self.product(x, shape, stride, "bfloat16", depthwise).astype(jnp.bfloat16) + self.constant(n, "bfloat16")
        y = jnp.maximum(y, 0)
        return self.quantized(y) if self.form == "int8" else y

    def __call__(self, x):  # noqa: ANN001, ANN204
        is_int8 = self.form == "int8"
        outputs = [self.quantized(x) if is_int8 else x.astype(jnp.bfloat16)]
        for layer in self.layers:
            last = outputs[-1]
            if layer[0] == "+":
                other = outputs[int(layer[1:])]
                y = jnp.maximum(self.real(last) + self.real(other) if is_int8 else last + other, 0)
                outputs.append(self.quantized(y) if is_int8 else y)
            elif layer == "m":
                y = jnp.mean(self.real(last) if is_int8 else last.astype(jnp.float32), (1, 2))
                outputs.append(self.quantized(y) if is_int8 else y.astype(jnp.bfloat16))
            else:
                outputs.append(self.weighted(last, layer))
        return self.real(outputs[-1]) if is_int8 else outputs[-1].astype(jnp.float32)


def bundles(text: str) -> int:
    grid = {}
    for line in text.splitlines():
        name, bounds = re.match(r"\s*(?:ROOT )?%?(\S+) = ", line), re.search(r'"iteration_bounds":\[([^\]]*)\]', line)
        if name and bounds:
            grid[name[1]] = math.prod(int(one.strip('"')) for one in bounds[1].split(",") if one.strip('"')) or 1
    total = 0
    for path in glob.glob(DUMP + "/*schedule-analysis_final_bundles.txt"):
        name = re.sub(r"-\d+-schedule.*", "", re.sub(r"^\d+-", "", Path(path).name))
        count = re.search(r"total scheduled bundles:\s+(\d+)", Path(path).read_text())
        total += int(count[1]) * grid[name] if count and name in grid else 0
    return total


def measured(device, text: str, form: str, batch: int) -> tuple[int, int]:  # noqa: ANN001
    for path in glob.glob(DUMP + "/*"):
        os.remove(path)
    network = Builder(text, form)
    here = jax.sharding.SingleDeviceSharding(device)
    program = jax.jit(network, in_shardings=here, out_shardings=here).lower(jax.ShapeDtypeStruct((batch, *network.sizes), jnp.float32)).compile()
    code = program.runtime_executable().hlo_modules()[0].to_string()
    return sum(int(one) for one in re.findall(r'"estimated_cycles":"(\d+)"', code)), bundles(code)


def work(text: str) -> int:
    return len(text) + math.prod(int(size) for size in text.split()[0].split("x")) // 2000


def main(table: Path, chips: list[str]) -> None:
    if not table.exists():
        table.write_text("network\tform\tchip\tbatch\tcycles\tbundles\tlayers\n")
    known = {tuple(line.split("\t")[:4]) for line in table.read_text().splitlines()}
    devices = {chip: topologies.get_topology_desc(CHIPS[chip][0], platform="tpu", **CHIPS[chip][1]).devices[0] for chip in chips}
    for batch in BATCHES:
        for name, text in sorted(NETWORKS.items(), key=lambda item: work(item[1])):
            for chip in chips:
                for form in FORMS:
                    if (name, form, chip, str(batch)) in known:
                        continue
                    cycles, count = measured(devices[chip], text, form, batch)
                    with table.open("a") as file:
                        file.write(f"{name}\t{form}\t{chip}\t{batch}\t{cycles}\t{count}\t{text}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(CHIPS))
