"""exports.py RESULTS [NAME…]: JAX and the TPU compiler judge what `tare export` writes.

Each model is exported in the number formats of FORMS, as a file of jax.export. JAX must read the file and compute on the CPU what
`tare run` computes of the model that was exported; and the compiler for TPUs (libtpu) must compile it for each chip, with the
operands of the form at the matrix unit (tpu_compiler.py). README.md describes the bounds."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# As the files say: no sums in another precision, no multiplication and addition in one rounding (AVX has no such instruction).
os.environ |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3",
               "XLA_FLAGS": "--xla_allow_excess_precision=false --xla_cpu_max_isa=AVX"}

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax import export  # noqa: E402

import compilation  # noqa: E402
import exported_models  # noqa: E402
import program  # noqa: E402
from exported_models import Rows  # noqa: E402
from results import FAILED, PASSED, SKIPPED, Finding, Results  # noqa: E402

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TARE_TEST_DATA", "")) / "models"
REAL = ("resnet8_cifar10", "mlperf-tiny-kws", "autoencoder_ad", "mobilenet_vww", "mcunet", "basic-pitch", "cifar-mlnet", "scisharp-simple",
        "vespa-mnist", "vespa-batchnorm", "rust-keras-single", "scisharp-pyfunc", "wakeword_stream")
BATCH, JUDGED = 2, 2      # examples in one call; calls that are compared
AMPLIFYING = {"basic-pitch": 16}       # times as many ulps: logarithms of spectra with small values

NO_FORM = ("the model has no quantizable op",)      # models that cannot have a form
ONLY_AS_MODULE = "does not support TensorFlow 1 models"

# Differences that are known; one that passes is a failure.
KNOWN = {
    "mcunet export/fp8_dynamic values": "steps of 1/8 through 52 layers on random images: differences of an ulp end 19 % apart",
    "basic-pitch export/int8_dynamic values": "4.3 % of the largest magnitude, the bound is 4 % (logarithms of spectra)",
}


@dataclass(frozen=True)
class Form:
    """How a model becomes the one that is exported: `tare COMMAND MODEL OUT ARGUMENTS…`; without command it is exported as it is.

    `ulps`: how far outputs may be from those of `tare run`, in units of the last place of the largest one, in the output's own type or
    in `unit`. `steps`: rounding to the form's numbers, after which a difference of an ulp may be a whole step of it: part of the
    largest output that outputs may then be apart, or a third of what the form itself changed, where many layers amplify steps;
    0: they may not."""

    name: str
    command: str = ""
    arguments: tuple[str, ...] = ()
    ulps: float = 64
    steps: float = 0


FORMS = (
    Form("float"),
    Form("bfloat16", "convert", ("--tpu_functions", "auto"), steps=3e-2),
    Form("int8", "quantize", ("--method", "int8", "--min-elements", "1"), steps=4e-2),
    Form("int8_dynamic", "quantize", ("--method", "int8_dynamic", "--min-elements", "1"), steps=4e-2),
    Form("w4a8", "quantize", ("--method", "w4a8", "--min-elements", "1"), steps=4e-2),
    Form("int4", "quantize", ("--method", "weight_only", "--bits", "4", "--min-elements", "1")),
    Form("fp8", "quantize", ("--method", "fp8", "--min-elements", "1"), steps=8e-2),
    Form("fp8_dynamic", "quantize", ("--method", "fp8_dynamic", "--min-elements", "1"), steps=8e-2),
)
CALIBRATED = {"int8", "w4a8", "fp8"}


@dataclass(frozen=True)
class Case:
    """A model with the values of its inputs, one dict a call."""

    name: str
    model: Path
    rows: Rows


def signature(model: Path) -> dict[str, dict]:
    """The inputs of a SavedModel's default signature: {name: {dtype, shape}}."""
    done = subprocess.run([program.TARE, "inspect", str(model), "--json"], capture_output=True, text=True, check=True)
    signatures = json.loads(done.stdout)["signatures"]
    return signatures.get("serving_default", next(iter(signatures.values())))["inputs"]


def saved_model(name: str, model: Path) -> Case:
    """A SavedModel with random examples, BATCH in a call."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    rows: Rows = []
    for _ in range(8):
        row = {}
        for key, spec in signature(model).items():
            shape = [BATCH if size < 0 else size for size in spec["shape"]]
            integers = spec["dtype"].startswith(("int", "uint"))
            row[key] = (random.integers(0, 2, shape) if integers else random.normal(size=shape)).astype(spec["dtype"])
        rows.append(row)
    return Case(name, model, rows)


def cases(folder: Path, names: list[str]) -> Iterator[Case]:
    """The bundled example, the models of exported_models.py, and those of TARE_TEST_DATA; all of them, or those named."""
    if not names or "glyphs" in names:
        yield saved_model("glyphs", ROOT / "examples/glyphs/saved_model")
    for name, write in exported_models.MODELS.items():
        if not names or name in names:
            rows = write(folder / f"{name}.jaxexport", np.random.default_rng(zlib.crc32(name.encode())))
            yield Case(name, folder / f"{name}.jaxexport", rows)
    for name in REAL:
        if (DATA / name).is_dir() and (not names or name in names):
            yield saved_model(name, DATA / name)


class Exports:
    """A run of the judge."""

    def __init__(self, folder: Path, results: Results) -> None:
        self.folder, self.results = folder, results
        self.modules = folder / "modules"     # for the TPU's compiler
        self.modules.mkdir()

    def add(self, model: str, form: str, check: str, status: str, text: str = "") -> None:
        self.results.add(Finding(model, f"export/{form}", check, status, " ".join(text.split())[:400]))

    def ran(self, case: Case, form: Form, check: str, run: program.Run) -> bool:
        if run.status:
            expected = any(text in run.message for text in NO_FORM)
            self.add(case.name, form.name, check, SKIPPED if expected else FAILED, run.message)
        return run.status == 0

    def judge(self, case: Case) -> None:
        data = self.folder / "rows.npz"
        open_batch = case.model.is_dir() or case.name.startswith("open_")
        joined = np.concatenate if open_batch else np.stack
        np.savez(data, **{key: joined([row[key] for row in case.rows]) for key in case.rows[0]})
        for form in FORMS:
            source = case.model if not form.command else self.folder / f"{case.name}-{form.name}"
            if form.command:
                given = ("--data", str(data)) if form.name in CALIBRATED else ()
                if not self.ran(case, form, form.command, self.make(case, form, source, *given)):
                    continue
            file = self.folder / f"{case.name}.jax"
            if self.ran(case, form, "export", self.export(case, source, file)):
                self.call(case, form, source, file)

    @staticmethod
    def export(case: Case, source: Path, file: Path, container: str = "jax") -> program.Run:
        batch = next(iter(case.rows[0].values())).shape[:1] or (1,)
        return program.tare("export", source, file, "--container", container, "--batch", batch[0], "--quiet")

    def make(self, case: Case, form: Form, source: Path, *given: str) -> program.Run:
        """Makes the form of the model. TensorFlow 1 models are converted as the modules that they are exported to."""
        run = program.tare(form.command, case.model, source, "--quiet", *form.arguments, *given)
        if ONLY_AS_MODULE not in run.message:
            return run
        module = self.folder / f"{case.name}-module"
        run = self.export(case, case.model, module, "saved_model")
        return run if run.status else program.tare(form.command, module, source, "--quiet", *form.arguments, *given)

    def call(self, case: Case, form: Form, source: Path, file: Path) -> None:
        """JAX reads the file and calls it."""
        try:
            exported = export.deserialize(bytearray(file.read_bytes()))
            text = exported.mlir_module()
            inputs, outputs = (re.findall(rf'jax.{kind}_info = "([^"]*)"', text) for kind in ("arg", "result"))
            found = [[np.asarray(value) for value in jax.tree.leaves(exported.call(*[row[key] for key in inputs]))] for row in case.rows[:JUDGED]]
        except Exception as error:  # noqa: BLE001 (whatever JAX raises)
            self.add(case.name, form.name, "jax", FAILED, f"{type(error).__name__}: {error}")
            return
        self.add(case.name, form.name, "jax", PASSED)
        (self.modules / f"{case.name}@export+{form.name}@0.mlirbc").write_bytes(exported.mlir_module_serialized)
        worst = ""
        for row, values in zip(case.rows, found, strict=False):
            run, expected = self.run(source, row)
            if not self.ran(case, form, "run", run):
                return
            _, original = self.run(case.model, row) if form.steps else (run, expected)
            ulps = form.ulps * AMPLIFYING.get(case.name, 1)
            for key, value in zip(outputs, values, strict=True):
                worst = worst or self.difference(form, key, ulps, expected[key], value, original[key])
        self.add(case.name, form.name, "values", FAILED if worst else PASSED, worst)

    def run(self, source: Path, row: dict[str, np.ndarray]) -> tuple[program.Run, dict[str, np.ndarray]]:
        """Outputs of `tare run`."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            inputs = []
            for index, (key, value) in enumerate(row.items()):
                np.save(f"{folder}/{index}.npy", value)
                inputs += ["--input", f"{key}={folder}/{index}.npy"]
            run = program.tare("run", source, *inputs, "--output-dir", f"{folder}/out", "--quiet")
            return run, {path.stem: np.load(path) for path in Path(f"{folder}/out").glob("*.npy")} if run.status == 0 else {}

    @staticmethod
    def difference(form: Form, key: str, ulps: float, expected: np.ndarray, found: np.ndarray, original: np.ndarray) -> str:
        """How an output of JAX differs from the expected one by more than the form allows; "": it does not."""
        if expected.shape != found.shape:
            return f"{key}: shape {found.shape} (expected {expected.shape})"
        unit = 2.0**-7 if found.dtype.itemsize == 2 else 2.0**-52 if found.dtype == np.float64 else 2.0**-23
        a, b, c = program.plain(expected), program.plain(found), program.plain(original)
        if a.dtype.kind not in "fc":
            differ = np.count_nonzero(a != b)
            allowed = np.count_nonzero(a != c) if form.steps else 0     # positions of extremes, say, which a step changes
            return f"{key}: {differ} of {a.size} integers differ" if differ > allowed else ""
        both = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~both], b[~both], equal_nan=True):
            return f"{key}: other values that are not finite"
        largest = np.abs(np.where(both, a, 0)).max(initial=0)
        error, changed = (np.abs(np.where(both, a - other, 0)).max(initial=0) for other in (b, c))
        steps = max(form.steps * largest, changed / 3) if form.steps else 0
        if error > max(largest * ulps * unit, steps):
            return f"{key}: {error / largest / unit:.3g} ulp of its largest magnitude, {error / largest:.3g} of it"
        return ""


def main(path: Path, names: list[str]) -> int:
    started = time.monotonic()
    results = Results(KNOWN, path)
    with tempfile.TemporaryDirectory(prefix="tare-exports-", ignore_cleanup_errors=True) as folder:
        exports = Exports(Path(folder), results)
        for case in cases(Path(folder), names):
            exports.judge(case)
        if "TARE_JUDGES_WITHOUT_TPU" not in os.environ:
            compilation.compile_all(exports.modules, Path(folder) / "journal", results)
    results.save()
    print(results.table())
    print(f"{time.monotonic() - started:.0f} s")
    return int(results.failed or not results.findings)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
