"""judge.py quick|all|tpu|MODEL…: writes the models of the zoo, lets `tare` work on them, and TensorFlow judge the results.

Called by scripts/judges.sh, in the environment that it installs; README.md describes what is judged."""
from __future__ import annotations

import fnmatch
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

# oneDNN computes float sums in an order that depends on the processor.
os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "XLA_FLAGS": "--xla_allow_excess_precision=false"}

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import catalogue  # noqa: E402
import execution  # noqa: E402
import loaders  # noqa: E402
import program  # noqa: E402
import records  # noqa: E402
import tpu_calls  # noqa: E402
from catalogue import MODELS, WRITERS, Model, Record  # noqa: E402
from known import KNOWN  # noqa: E402
from results import FAILED, PASSED, REFUSED, SKIPPED, Results  # noqa: E402
from steps import FLOAT32, STEPS_OF_A_MODEL, Bound, Step  # noqa: E402


def write(model: Model, folder: Path) -> None:
    """Writes FOLDER/model and its records, FOLDER/SIGNATURE.tfrecord, by a seed that follows from the name."""
    folder.mkdir(parents=True)
    tf.keras.backend.clear_session()
    tf.random.set_seed(1)
    found = model.write(str(folder / "model"), np.random.default_rng(zlib.crc32(model.name.encode())))
    for signature, rows in found.items():
        records.save(str(folder / f"{signature}.tfrecord"), rows)


def write_elsewhere(module: str, names: list[str], work: Path, results: Results) -> None:
    """The models of a module that needs a process of its own, such as Keras on another backend."""
    done = subprocess.run([sys.executable, __file__, "--write", module, str(work), *names], text=True, capture_output=True,
                          env=os.environ | (WRITERS[module] or {}))
    if done.returncode:
        results.add(module, "write", "write", FAILED, done.stderr[-400:])


class Judge:
    """Judges one model after another; `tare` works in a second thread, while TensorFlow judges the model before."""

    def __init__(self, results: Results, quick: bool, work: Path) -> None:
        self.results, self.work = results, work
        self.rows = [step for step in STEPS_OF_A_MODEL if step.quick or not quick]

    def steps(self, model: str) -> list[Step]:
        """The steps of the model in this folder."""
        aliased = "tpu_func" in loaders.meta_graph(model).meta_info_def.function_aliases.values()
        return [step for step in self.rows if aliased or not step.aliased]

    # The part of `tare`: needs no TensorFlow.
    def prepare(self, name: str, model: str, data: dict[str, str]) -> dict[str, program.Run]:
        """Runs every step of a model; {step: run}."""
        folder = self.work / name
        (folder / "out").mkdir(exist_ok=True)
        done = {"validate": program.tare("validate", model)}
        samples = [f"--data={signature}={path}" for signature, path in data.items()]
        done["calibrate"] = program.tare("calibrate", model, *samples, "-o", folder / "calibration", "--quiet")
        for step in self.steps(model):
            out = folder / "out" / step.name.replace("/", "-")
            arguments = [str(folder / "calibration") if one == "CALIBRATION" else one for one in step.arguments]
            done[step.name] = program.tare(step.command, model, out, "--quiet", *arguments)
            if done[step.name].status == 0:
                done[f"{step.name}/validate"] = program.tare("validate", out)
        return done

    # TensorFlow's part.
    def judge(self, name: str, model: str, data: dict[str, str], done: dict[str, program.Run], row: Model | None) -> None:
        folder = self.work / name
        refuses = row.refuses if row else {}
        rows = {signature: records.load(path) for signature, path in data.items()}
        self.status(name, "validate", "tare", done["validate"], refuses)
        self.status(name, "calibrate", "tare", done["calibrate"], refuses)
        try:
            original = tf.saved_model.load(model)
        except Exception as error:  # noqa: BLE001 (whatever TensorFlow raises is the finding)
            self.results.add(name, "run", "load", SKIPPED, f"TensorFlow does not load the model itself: {type(error).__name__}")
            return
        self.values(name, "run", original, model, data, rows, FLOAT32, False, row)
        for step in self.steps(model):
            if not self.status(name, step.name, "tare", done[step.name], refuses):
                continue
            self.status(name, step.name, "validate", done[f"{step.name}/validate"], {})
            out = str(folder / "out" / step.name.replace("/", "-"))
            loaded = self.load(name, step.name, out)
            if loaded is not None:
                self.run_step(name, step, out, loaded, data, rows, row)
            del loaded
            gc.collect()

    def status(self, name: str, step: str, check: str, run: program.Run, refuses: dict[str, str]) -> bool:
        """Adds the finding of a run of `tare`, and returns whether it wrote something."""
        reason = next((reason for pattern, reason in refuses.items() if fnmatch.fnmatch(step, pattern)), None)
        if reason is None:
            self.results.add(name, step, check, FAILED if run.status else PASSED, run.message if run.status else "")
        elif run.status == 1 and reason in run.message:
            self.results.add(name, step, check, REFUSED, reason)
        else:
            self.results.add(name, step, check, FAILED, f"expected a refusal with '{reason}', got status {run.status}: {run.message}")
        return run.status == 0

    def load(self, name: str, step: str, out: str) -> object | None:
        loaded = None
        for check, loader in loaders.LOADERS.items():
            try:
                value = loader(out)
                loaded = value if value is not None else loaded
                self.results.add(name, step, check, PASSED)
            except Exception as error:  # noqa: BLE001
                self.results.add(name, step, check, FAILED, f"{type(error).__name__}: {error}")
        return loaded

    def run_step(self, name: str, step: Step, out: str, loaded: object, data: dict[str, str], rows: dict[str, list[Record]],
                 row: Model | None) -> None:
        if step.judged == "tpu":
            runnable = f"{out}-cpu"
            try:
                if not tpu_calls.runnable(out, runnable):
                    self.results.add(name, step.name, "placed", SKIPPED, "nothing is placed on the TPU")
                loaded = tf.saved_model.load(runnable)
            except Exception as error:  # noqa: BLE001
                self.results.add(name, step.name, "values", FAILED, f"{type(error).__name__}: {error}")
                return
        self.values(name, step.name, loaded, out, data, rows, step.bound, step.judged == "xla", row)

    def values(self, name: str, step: str, loaded: object, model: str, data: dict[str, str], rows: dict[str, list[Record]],
               bound: Bound, may_compile: bool, row: Model | None) -> None:
        """Runs every signature with records in `tare` and in TensorFlow, and compares."""
        definition = loaders.meta_graph(model).graph_def if may_compile else None
        nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)] if definition else []
        compiled = any(node.op.startswith(("Xla", "Uniform")) for node in nodes)
        for signature, path in data.items():
            place = "values" if len(data) == 1 else f"values:{signature}"
            with tempfile.TemporaryDirectory(dir=self.work) as folder:
                run, got = program.outputs(model, signature, path, Path(folder) / "outputs")
            if run.status:
                self.results.add(name, step, place, FAILED, run.message)
                continue
            if row and row.differs:
                self.results.add(name, step, place, SKIPPED, row.differs)
                continue
            inputs = rows[signature][0].values()
            if compiled and any(np.asarray(value).dtype.kind in "OSU" for value in inputs):
                self.results.add(name, step, place, SKIPPED, "XLA does not support strings, and has the only kernels of these ops")
                continue
            try:
                want = execution.run(loaded, signature, rows[signature], compiled)
            except Exception as error:  # noqa: BLE001
                broken = "Invalid LLVM IR" in str(error)
                self.results.add(name, step, place, SKIPPED if broken else FAILED,
                                 "XLA's compiler for CPUs generates invalid code" if broken else f"{type(error).__name__}: {error}")
                continue
            text = execution.compare(got, want, row.bound if row and row.bound else bound)
            self.results.add(name, step, place, FAILED if text else PASSED, text)


def judge_zoo(names: list[str], results: Results, quick: bool, work: Path) -> None:
    judge = Judge(results, quick, work)
    rows = [MODELS[name] for name in names]
    for module, environment in WRITERS.items():
        elsewhere = [row.name for row in rows if row.module == module]
        if environment is not None and elsewhere:
            write_elsewhere(module, elsewhere, work, results)
    waiting: tuple[Model, dict[str, str], Future[dict[str, program.Run]]] | None = None
    with ThreadPoolExecutor(1) as thread:
        for row in [*rows, None]:
            following = None
            if row is not None:
                if WRITERS[row.module] is None:
                    try:
                        write(row, work / row.name)
                    except Exception as error:  # noqa: BLE001
                        results.add(row.name, "write", "write", FAILED, f"{type(error).__name__}: {error}")
                        continue
                data = {path.stem: str(path) for path in sorted((work / row.name).glob("*.tfrecord"))}
                if data:
                    following = (row, data, thread.submit(judge.prepare, row.name, str(work / row.name / "model"), data))
            if waiting:
                before, data, future = waiting
                judge.judge(before.name, str(work / before.name / "model"), data, future.result(), before)
                if not os.environ.get("TARE_JUDGES_KEEP"):
                    shutil.rmtree(work / before.name)
            waiting = following


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--write"]:
        module, work, *names = arguments[1:]
        catalogue.load(module)
        for name in names:
            write(MODELS[name], Path(work) / name)
        return 0
    for module in WRITERS:
        catalogue.load(module)
    unknown = [name for name in arguments if name not in MODELS and name not in ("quick", "all", "tpu")]
    if unknown:
        print(f"judges: unknown model {unknown[0]} (expected quick, all, tpu or one of {', '.join(sorted(MODELS))})", file=sys.stderr)
        return 2
    loaders.silence()
    started = time.monotonic()
    quick = arguments == ["quick"]
    results = Results(KNOWN)
    names = [name for name, row in MODELS.items() if name in arguments or "all" in arguments or (quick and row.quick)]
    keep = os.environ.get("TARE_JUDGES_KEEP")
    with tempfile.TemporaryDirectory(prefix="tare-judges-", ignore_cleanup_errors=True) as folder:
        work = Path(keep or folder)
        judge_zoo(names, results, quick, work)
    results.save(Path(os.environ["TARE_JUDGES_RESULTS"]))
    print(f"{len(names)} models, {time.monotonic() - started:.0f} s")
    print(results.table())
    return int(results.failed)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main(sys.argv[1:]))
