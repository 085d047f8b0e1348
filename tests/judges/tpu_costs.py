"""tpu_costs.py FOLDER TABLES [CHIP:BATCH…] [NAME…]: what Google's compiler for TPUs says that layers (cost_layers.py), networks
(cost_networks.py) and models (cost_models.py) cost, without a TPU. They are written to FOLDER as SavedModels, float and quantized, and
converted as `tare check` does it. The rows that layers.tsv, networks.tsv and models.tsv of the folder TABLES lack are added, one at a time:
all, or those of a chip and batch, of a table (layers, networks, models) or of one of its names. TARE is the program.

Forms: bf16 is what a conversion writes; int8 is static quantization, of a layer or network whatever its size, but for depthwise layers
and additions.
cycles are the compiler's estimate; they are too high for int8 convolutions of fewer than 32 images, whose rows the compiler
rounds up. There, bundles are the instructions of the machine code, - elsewhere."""
from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}

import keras  # noqa: E402
import numpy as np  # noqa: E402
from cost_layers import FLOAT_ONLY, LAYERS  # noqa: E402
from cost_models import FITTED, HELD_OUT  # noqa: E402
from cost_networks import NETWORKS, network  # noqa: E402
from keras import layers as kl  # noqa: E402

COMPILER = Path(__file__).parents[2] / "workflow" / "check"
sys.path.insert(0, str(COMPILER))       # before the judge of the same name
import tpu_compiler  # noqa: E402

FORMS, RECORDS = ("bf16", "int8"), 64
ORDER = [("v5e", 8), ("v6e", 8), ("v5e", 32), ("v6e", 32), ("v5p", 8), ("tpu7x", 8), ("v5e", 1), ("v6e", 1), ("v5p", 32), ("tpu7x", 32),
         ("v5p", 1), ("tpu7x", 1)]      # what is asked first


# ---- models ----

def write(folder: Path, name: str, model: keras.Model, all_layers: bool) -> None:
    """The float model, its records and the quantized model, if anything is quantized."""
    random = np.random.default_rng(5)
    for layer in model.layers:
        if isinstance(layer, kl.BatchNormalization):
            n = len(layer.get_weights()[0])
            layer.set_weights([random.uniform(.7, 1.3, n), random.normal(0, .2, n), random.normal(0, .1, n), random.uniform(.5, 1.5, n)])
    shape = (RECORDS // (8 if all_layers else 1), *model.input_shape[1:])
    is_words = model.inputs[0].dtype == "int32"
    np.save(folder / f"{name}.npy", random.integers(0, model.layers[1].input_dim, shape).astype("int32") if is_words else random.normal(0, 1, shape).astype("float32"))
    if name not in FLOAT_ONLY:
        model.export(folder / f"{name}-float", format="tf_saved_model", verbose=False)
        subprocess.run([os.environ["TARE"], "quantize", folder / f"{name}-float", folder / f"{name}-int8", "--data", folder / f"{name}.npy", "--method",
                        "static", "--bits", "8", "--activation-bits", "8", *(["--min-elements", "1"] if all_layers else []), "--quiet", "--overwrite"], check=True)
        (folder / f"{name}-float").rename(folder / f"{name}-bf16")      # last: an interrupted run writes the model again
    else:
        model.export(folder / f"{name}-bf16", format="tf_saved_model", verbose=False)


def module(folder: Path, model: str, batch: int) -> Path:
    """What a conversion hands to the compiler, the same for all chips: a program in the compiler's place keeps it."""
    found = folder / "modules" / f"{model}-{batch}.mlirbc"
    found.parent.mkdir(exist_ok=True)
    if not found.exists():
        keeper = f"sh -c 'cp \"$2\" \"{found}\"; exit 3' keeper"
        subprocess.run([os.environ["TARE"], "check", folder / model, "--batch", str(batch), "--json"], check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"TARE_TPU_COMPILER": keeper})
    return found


# ---- the compiler ----

def compiled(chip: str, modules: list[Path]):  # noqa: ANN201
    """What the compiler says of each module, as soon as it does."""
    process = subprocess.Popen([sys.executable, COMPILER / "tpu_compiler.py", chip, *modules], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in process.stdout:
        yield json.loads(line)
    if process.wait():
        raise SystemExit(f"tpu_costs.py: the TPU compiler: exit status {process.returncode}")


def bundles(chip: str, one: Path) -> int:
    """Instructions of each op, as often as its grid has steps."""
    grid, total = {}, 0
    with tempfile.TemporaryDirectory(prefix="tpu-costs-") as dump:
        more = tpu_compiler.WITHOUT_TPU | {"PYTHONPATH": str(COMPILER), "LIBTPU_INIT_ARGS": f"--xla_jf_dump_to={dump} --xla_jf_dump_llo_text=true"}
        print_program = f"import tpu_compiler as t; print(t.compile_file({str(one)!r}, t.device_of({chip!r})).hlo_modules()[0].to_string())"
        text = subprocess.run([sys.executable, "-c", print_program], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | more).stdout
        for line in text.splitlines():
            name, bounds = re.match(r"\s*(?:ROOT )?%?(\S+) = ", line), re.search(r'"iteration_bounds":\[([^\]]*)\]', line)
            if name and bounds:
                grid[name[1]] = math.prod(int(each.strip('"')) for each in bounds[1].split(",") if each.strip('"')) or 1
        for path in Path(dump).glob("*schedule-analysis_final_bundles.txt"):
            name = re.sub(r"-\d+-schedule.*", "", re.sub(r"^\d+-", "", path.name))
            count = re.search(r"total scheduled bundles:\s+(\d+)", path.read_text())
            total += int(count[1]) * grid[name] if count and name in grid else 0
    return total


# ---- tables ----

class Table:
    """Rows by network or model, form, chip and batch."""

    def __init__(self, path: Path, columns: str) -> None:
        self.path, self.columns, self.rows = path, columns, {}
        if path.exists():
            lines = [line.split("\t") for line in path.read_text().splitlines()[1:]]
            self.rows = {tuple(line[:4]): line[4:] for line in lines}

    def missing(self, names: list[str], chip: str, batch: int) -> list[tuple[str, str]]:
        return [(name, form) for name in names for form in FORMS if (name, form, chip, str(batch)) not in self.rows and (form == "bf16" or name not in FLOAT_ONLY)]

    def set(self, key: tuple[str, ...], *more: object) -> None:
        """A run that is interrupted leaves a whole table."""
        self.rows[key] = [str(one) for one in more]
        part = self.path.with_suffix(".part")
        part.write_text("\n".join(["\t".join(self.columns), *("\t".join([*one, *rest]) for one, rest in sorted(self.rows.items()))]) + "\n")
        part.rename(self.path)


def fill(table: Table, folder: Path, names: list[str], asked: list[tuple[str, int]], more) -> None:  # noqa: ANN001
    for chip, batch in asked:
        rows = table.missing(names, chip, batch)
        modules = [module(folder, f"{name}-{form}", batch) for name, form in rows]
        for (name, form), found in zip(rows, compiled(chip, modules) if rows else [], strict=True):
            if found["ok"]:
                table.set((name, form, chip, str(batch)), found["cycles"], *more(name))
            else:
                print(f"{name} {form} {chip} {batch}: {found['error']}", file=sys.stderr)


def fill_bundles(table: Table, folder: Path, names: list[str], asked: list[tuple[str, int]]) -> None:
    """Where the cycles of int8 are known to be wrong."""
    for key, (cycles, known, layers) in list(table.rows.items()):
        name, form, chip, batch = key
        is_wrong = chip in ("v5e", "v6e") and batch == "8" and " c" in layers
        if known == "-" and is_wrong and name in names and (chip, 8) in asked:
            table.set(key, cycles, bundles(chip, module(folder, f"{name}-{form}", int(batch))), layers)


def asked_of(words: list[str], kind: str, all_of: dict) -> dict:
    """The names of a table that are asked for: all by default, or by the table's name."""
    names = [word for word in words if ":" not in word]
    return {name: all_of[name] for name in all_of if not names or kind in names or name in names}


def main(folder: Path, tables: Path, words: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    layers, networks, models = (asked_of(words, *one) for one in (("layers", LAYERS), ("networks", NETWORKS), ("models", FITTED | HELD_OUT)))
    for name, made in (layers | {name: partial(network, line) for name, line in networks.items()} | models).items():
        if not (folder / f"{name}-bf16").exists():
            keras.utils.set_random_seed(5)
            write(folder, name, made(), name not in models)
    table = Table(tables / "networks.tsv", ["network", "form", "chip", "batch", "cycles", "bundles", "layers"])
    asked = [one for one in ORDER if f"{one[0]}:{one[1]}" in words] or ORDER
    for one in asked:
        fill(Table(tables / "layers.tsv", ["layer", "form", "chip", "batch", "cycles"]), folder, [*layers], [one], lambda _: ())
        fill(table, folder, [*networks], [one], lambda name: ("-", networks[name]))
        fill(Table(tables / "models.tsv", ["model", "form", "chip", "batch", "cycles"]), folder, [*models], [one], lambda _: ())
    fill_bundles(table, folder, list(networks), asked)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
