"""worker.py TASK: judges some models of the zoo in one process of TensorFlow, and writes findings as lines of JSON.

judge.py starts it; TASK is a JSON object: modules of zoo/, names (or a tier), the models to skip and the number to judge, the
folder of work and the file of findings. A process of its own keeps other models safe from one that aborts TensorFlow."""
from __future__ import annotations

import fnmatch
import gc
import json
import os
import shutil
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# oneDNN computes float sums in an order that depends on the processor.
os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0",
               "XLA_FLAGS": f"--xla_allow_excess_precision=false {os.environ.get('XLA_FLAGS', '')}"}

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import batches  # noqa: E402
import catalogue  # noqa: E402
import execution  # noqa: E402
import gradients  # noqa: E402
import loaders  # noqa: E402
import program  # noqa: E402
import quantizer  # noqa: E402
import records  # noqa: E402
import tpu_calls  # noqa: E402
import xla_calls  # noqa: E402
from catalogue import MODELS, Model, Record  # noqa: E402
from results import FAILED, PASSED, REFUSED, SKIPPED, Journal  # noqa: E402
from steps import FLOAT32, STEPS, STEPS_OF_A_MODEL, Bound, Step  # noqa: E402
from zoo.saving import EXPECTED  # noqa: E402


def write(model: Model, folder: Path) -> None:
    """Writes FOLDER/model and its records, FOLDER/SIGNATURE.tfrecord, by a seed that follows from the name."""
    shutil.rmtree(folder, ignore_errors=True)     # of a process that ended before it judged the model
    folder.mkdir(parents=True)
    tf.keras.backend.clear_session()
    tf.random.set_seed(1)
    found = model.write(str(folder / "model"), np.random.default_rng(zlib.crc32(model.name.encode())))
    for signature, rows in found.items():
        records.save(str(folder / f"{signature}.tfrecord"), rows)


def steps_of(model: Path, tier: str) -> list[Step]:
    """The steps of the model in this folder or file."""
    aliased = model.is_dir() and "tpu_func" in loaders.meta_graph(str(model)).meta_info_def.function_aliases.values()
    rows = [step for step in STEPS_OF_A_MODEL if aliased or not step.aliased]
    return [step for step in rows if (step.quick if tier == "quick" else step.judged == "tpu" if tier == "tpu" else True)]


class Case:
    """A model with its records and the results of `tare`: FOLDER/{model,SIGNATURE.tfrecord,calibration,out/STEP}."""

    def __init__(self, row: Model, folder: Path, tier: str) -> None:
        self.row, self.folder, self.model, self.tier = row, folder, folder / "model", tier
        self.data = {path.stem: path for path in sorted(folder.glob("*.tfrecord")) if path.stem != EXPECTED}
        self.rows = {signature: records.load(str(path)) for signature, path in self.data.items()}
        self.steps = steps_of(self.model, tier)
        self.runs: dict[str, program.Run] = {}

    def output(self, step: Step) -> Path:
        return self.folder / "out" / step.name.replace("/", "-")

    def work(self) -> None:
        """Runs every step of the model; needs no TensorFlow, and runs while TensorFlow judges another model."""
        (self.folder / "out").mkdir()
        calibration = self.folder / "calibration"
        self.runs["validate"] = program.tare("validate", self.model) if self.model.is_dir() else program.Run(0, "")
        samples = [f"--data={signature}={path}" for signature, path in self.data.items()]
        if samples:
            self.runs["calibrate"] = program.tare("calibrate", self.model, *samples, "-o", calibration, "--quiet")
        self.steps = [step for step in self.steps if self.data or "CALIBRATION" not in step.arguments]
        for step in self.steps:
            arguments = [str(calibration) if one == "CALIBRATION" else one for one in step.arguments]
            run = program.tare(step.command, self.model, self.output(step), "--quiet", *arguments)
            self.runs[step.name] = run
            if run.status == 0:
                self.runs[f"{step.name}/validate"] = program.tare("validate", self.output(step))


def refusal_of(loader: Callable[[str], object], model: Path) -> str:
    """Why a loader does not read the original model either (TensorFlow lacks a kernel of an op, say); or ""."""
    try:
        loader(str(model))
    except Exception as error:  # noqa: BLE001
        return f"TensorFlow does not load the original model so: {type(error).__name__}"
    return ""


class Judge:
    """TensorFlow's part: loads and runs what `tare` wrote."""

    def __init__(self, case: Case, journal: Journal, modules: Path | None) -> None:
        self.case, self.journal, self.modules = case, journal, modules
        self.by_xla = False     # XLA compiles the result of the step, or its functions for the TPU

    def add(self, step: str, check: str, status: str, text: str = "") -> None:
        self.journal.add(self.case.row.name, step, check, status, text)

    def judge(self) -> None:
        case = self.case
        try:
            if case.model.is_dir():
                loaders.by_python_loader(str(case.model))
        except Exception as error:  # noqa: BLE001 (whatever TensorFlow raises)
            self.add("run", "load", SKIPPED, f"TensorFlow does not load the model itself: {type(error).__name__}")
            return
        self.status("validate", "tare", case.runs["validate"])
        if "calibrate" in case.runs:
            self.status("calibrate", "tare", case.runs["calibrate"])
        self.run_itself()
        for step in case.steps:
            if not self.status(step.name, "tare", case.runs[step.name]):
                continue
            self.status(step.name, "validate", case.runs[f"{step.name}/validate"])
            loaded = self.load(step) if case.tier != "tpu" else None
            if loaded is not None or case.tier == "tpu":
                self.run_step(step, loaded)
            if loaded is not None and step.trained and case.model.is_dir():
                self.gradients(step)
            del loaded
            gc.collect()

    def status(self, step: str, check: str, run: program.Run) -> bool:
        """Adds the finding of a run of `tare`, and returns whether it wrote something."""
        reason = next((text for pattern, text in self.case.row.refuses.items() if fnmatch.fnmatch(step, pattern)), None)
        if run.status == 1 and run.message and self.case.row.may_refuse and check == "tare":
            self.add(step, check, REFUSED, run.message)
        elif reason is None or check == "validate":
            self.add(step, check, FAILED if run.status else PASSED, run.message if run.status else "")
        elif run.status == 1 and reason in run.message:
            self.add(step, check, REFUSED, reason)
        else:
            self.add(step, check, FAILED, f"expected a refusal with '{reason}', got status {run.status}: {run.message}")
        return run.status == 0

    def run_itself(self) -> None:
        """`tare run` of the model itself, against TensorFlow or the outputs that came with the model."""
        expected = self.case.folder / f"{EXPECTED}.tfrecord"
        if expected.exists():
            [signature] = self.case.data
            run, got = self.outputs(self.case.model, signature)
            text = run.message if run.status else execution.compare(got, records.load(str(expected)), FLOAT32)
            self.add("run", "values", FAILED if text else PASSED, text)
            return
        original = tf.saved_model.load(str(self.case.model))
        self.values("run", original, self.case.model, FLOAT32, False, str(self.case.model))

    def load(self, step: Step) -> object | None:
        loaded = None
        for check, loader in loaders.LOADERS.items():
            try:
                value = loader(str(self.case.output(step)))
                loaded = value if value is not None else loaded
                self.add(step.name, check, PASSED)
            except Exception as error:  # noqa: BLE001
                reason = self.case.model.is_dir() and refusal_of(loader, self.case.model)
                self.add(step.name, check, SKIPPED if reason else FAILED, reason or f"{type(error).__name__}: {error}")
        return loaded

    def run_step(self, step: Step, loaded: object | None) -> None:
        output = self.case.output(step)
        source = f"{output}-cpu" if step.judged == "tpu" else str(output)
        if step.judged == "tpu":
            try:
                if not tpu_calls.runnable(str(output), source):
                    self.add(step.name, "placed", SKIPPED, "nothing is placed on the TPU")
                loaded = tf.saved_model.load(source)
            except Exception as error:  # noqa: BLE001
                self.add(step.name, "values", FAILED, f"{type(error).__name__}: {error}")
                return
            self.collect_modules(None)
        compiled = step.judged == "xla" and loaders.has_ops(str(output), "Xla", "Uniform")
        self.by_xla = compiled or step.judged == "tpu"
        self.values(step.name, loaded, output, step.bound, compiled, source)
        self.by_xla = False
        if step.judged == "tpu":
            self.collect_modules(step)

    def gradients(self, step: Step) -> None:
        """Those of the first record, which must be those of the original model where TensorFlow computes them."""
        for signature, rows in self.case.rows.items():
            check = "gradients" if len(self.case.rows) == 1 else f"gradients:{signature}"
            try:
                want = gradients.of_signature(tf.saved_model.load(str(self.case.model)), signature, rows[:1])
            except Exception as error:  # noqa: BLE001
                self.add(step.name, check, SKIPPED, f"TensorFlow has none of the original model: {type(error).__name__}")
                continue
            try:
                got = gradients.of_signature(tf.saved_model.load(str(self.case.output(step))), signature, rows[:1])
                text = execution.compare([{key.replace("/", "__"): value for key, value in row.items()} for row in got], want, STEPS)
            except Exception as error:  # noqa: BLE001
                text = f"{type(error).__name__}: {error}"
            self.add(step.name, check, FAILED if text else PASSED, text)

    def collect_modules(self, step: Step | None) -> None:
        """Keeps the modules that XLA compiled in this step for the TPU's compiler; other files of its dump are removed."""
        for number, path in enumerate(sorted(self.modules.glob("dump/*"))) if self.modules else ():
            if step and path.name.endswith("before_optimizations.hlo.pb"):
                path.rename(self.modules / f"{self.case.row.name}@{step.name.replace('/', '+')}@{number}.hlo")
            elif path.is_file():
                path.unlink()

    def outputs(self, model: Path, signature: str) -> tuple[program.Run, list[dict[str, np.ndarray]]]:
        folder = self.case.folder / "outputs"
        shutil.rmtree(folder, ignore_errors=True)
        return program.outputs(str(model), signature, str(self.case.data[signature]), folder)

    def values(self, step: str, loaded: object, model: Path, bound: Bound, compiled: bool, source: str) -> None:
        """Runs every signature with records in `tare` and in TensorFlow, which loads `source` again for each, and compares."""
        for signature, rows in self.case.rows.items():
            check = "values" if len(self.case.rows) == 1 else f"values:{signature}"
            run, got = self.outputs(model, signature)
            if run.status:
                self.add(step, check, FAILED, run.message)
            elif self.case.row.differs:
                self.add(step, check, SKIPPED, self.case.row.differs)
            else:
                fresh = loaded if len(self.case.rows) == 1 else tf.saved_model.load(source)     # without the state of others
                self.compare(step, check, fresh, signature, got, self.case.row.bound or bound, source if compiled else "")

    def compare(self, step: str, check: str, loaded: object, signature: str, got: list[Record], bound: Bound, compiled: str) -> None:
        """`compiled`: the folder of a model whose ops XLA compiles, or ""."""
        try:
            want = self.by_tensorflow(loaded, signature, compiled)
        except Exception as error:  # noqa: BLE001
            reason = execution.beyond_xla(str(error)) or (self.by_xla and self.error_of_the_original(signature, str(error)))
            self.add(step, check, SKIPPED if reason else FAILED, reason or f"{type(error).__name__}: {error}")
            return
        text = execution.compare(got, want, bound)
        if text and bound != FLOAT32:
            text = execution.compare(got, want, self.widened(signature, got, bound))
        reason = self.original_by_xla(signature, bound) if text and self.by_xla else ""
        if reason and compiled:
            reason, text = "", execution.compare(got, self.by_op(compiled, signature), bound)
        self.add(step, check, SKIPPED if reason else FAILED if text else PASSED, reason or text)

    def by_tensorflow(self, loaded: object, signature: str, compiled: str) -> list[Record]:
        """TensorFlow's outputs: compiled as a whole where XLA compiles the original model, too, otherwise op by op."""
        strings = any(np.asarray(value).dtype.kind in "OSU" for value in self.case.rows[signature][0].values())     # XLA may abort
        if compiled and (strings or self.case.row.uncompiled):
            return self.by_op(compiled, signature)
        try:
            return execution.run(loaded, signature, self.case.rows[signature], bool(compiled))
        except Exception as error:  # noqa: BLE001
            if not compiled or not (execution.beyond_xla(str(error)) or self.error_of_the_original(signature, str(error))):
                raise
        return self.by_op(compiled, signature)

    def by_op(self, model: str, signature: str, prefixes: tuple[str, ...] = xla_calls.XLA_ALONE) -> list[Record]:
        """Outputs of a model of which XLA compiles some ops one by one."""
        single = self.case.folder / "single"
        shutil.rmtree(single, ignore_errors=True)
        xla_calls.runnable(model, str(single), prefixes)
        return execution.run(tf.saved_model.load(str(single)), signature, self.case.rows[signature])

    def widened(self, signature: str, got: list[Record], bound: Bound) -> Bound:
        """At least a third of what the step itself changed: many layers amplify a step of one as they amplify all rounding."""
        changed = execution.apart(got, self.outputs(self.case.model, signature)[1])
        return Bound(max(bound.largest, changed.largest / 3), max(bound.mean, changed.mean / 3))

    def error_of_the_original(self, signature: str, error: str) -> str:
        """Why XLA rejects the original model, if it is for the same reason; or ""."""
        try:
            execution.run(tf.saved_model.load(str(self.case.model)), signature, self.case.rows[signature], True)
        except Exception as original:  # noqa: BLE001
            reason = execution.cause(str(original))
            return f"XLA rejects the original model, too: {reason}" if reason == execution.cause(error) else ""
        return ""

    def original_by_xla(self, signature: str, bound: Bound) -> str:
        """How XLA's values of the original model differ from those of TensorFlow's kernels, which `tare` has; or ""."""
        model, rows = str(self.case.model), self.case.rows[signature]
        plain = execution.run(tf.saved_model.load(model), signature, rows)
        try:
            compiled = execution.run(tf.saved_model.load(model), signature, rows, True)
        except Exception:  # noqa: BLE001 (XLA does not compile the whole of it: the ops that it is known to compute in another way)
            compiled = self.by_op(model, signature, xla_calls.OF_OTHER_NUMBERS)
        text = execution.compare([{key.replace("/", "__"): value for key, value in row.items()} for row in compiled], plain, bound)
        return f"XLA computes other values of the original model: {text}" if text else ""


def main(task: dict) -> None:
    loaders.silence()
    tier, work, journal = task["tier"], Path(task["work"]), Journal(Path(task["journal"]))
    if task["quantizer"]:
        quantizer.judge(work, journal)
        batches.judge(work, journal)
    modules = Path(task["hlo"]) if task["hlo"] else None
    for module in task["modules"]:
        catalogue.load(module)
    selected = [row for row in MODELS.values() if row.module in task["modules"] and
                (tier in ("all", "tpu") or (tier == "quick" and row.quick) or row.name in task["names"])]
    selected = [row for row in selected if row.name not in task["known"]]
    chunk = selected[task["skip"]:][:task["count"]]
    journal.mark("left", len(selected) - task["skip"] - len(chunk))
    waiting: Case | None = None
    with ThreadPoolExecutor(1) as thread:
        for row in [*chunk, None]:
            case = None
            if row is not None:
                journal.mark("started", row.name)
                try:
                    write(row, work / row.name)
                    case = Case(row, work / row.name, tier)
                    future = thread.submit(case.work)
                except Exception as error:  # noqa: BLE001
                    journal.add(row.name, "write", "write", FAILED, f"{type(error).__name__}: {error}")
                    journal.mark("finished", [row.name, 0.0])
            if waiting:
                started = time.monotonic()
                Judge(waiting, journal, modules).judge()
                journal.mark("finished", [waiting.row.name, round(time.monotonic() - started, 1)])
                if not task["keep"]:
                    shutil.rmtree(waiting.folder)
            if case:
                future.result()
            waiting = case


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
