"""judge.py quick|all|tpu|quantizer|MODEL…: lets TensorFlow judge what `tare` makes of the models of the zoo.

Called by scripts/judges.sh, in the environment that it installs; README.md describes what is judged."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compilation
from catalogue import GROUPS, REAL_MODELS
from known import KNOWN
from results import FAILED, Finding, Results

HERE = Path(__file__).parent
QUANTIZER = "quantizer"
COUNT = 8   # models in one process: TensorFlow keeps every function that it loads, and becomes slower


def worker(task: dict, environment: dict[str, str], results: Results) -> tuple[int, int]:
    """Judges some models in a process; (models tried, models left)."""
    journal = Path(task["journal"])
    journal.unlink(missing_ok=True)
    command = [sys.executable, "-W", "ignore", str(HERE / "worker.py"), json.dumps(task)]
    done = subprocess.run(command, env=os.environ | environment, stderr=subprocess.PIPE, text=True, errors="replace")
    marks = results.read(journal)
    tried = len(marks.get("started", []))
    if done.returncode:
        finished = {name for name, _ in marks.get("finished", [])}
        open_models = [name for name in marks.get("started", []) if name not in finished] or [", ".join(task["modules"])]
        text = " ".join(done.stderr.split())[-300:]
        results.add(Finding(open_models[0], "process", "abort", FAILED, f"status {done.returncode}: {text}"))
        tried = len(finished) + 1   # the next process begins after the model that was being judged
    return tried, marks["left"][0] + len(marks.get("started", [])) - tried if "left" in marks else 0


class Judges:
    """The parts of a run, with what they share."""

    def __init__(self, tier: str, names: list[str], results: Results, work: Path, keep: bool) -> None:
        self.tier, self.names, self.results, self.work, self.keep = tier, names, results, work, keep
        self.known = sorted(name for name in results.seconds if not names or name in names)     # judged by an earlier run
        self.modules = work / "hlo"     # for the TPU's compiler
        self.compiles = tier != "quick" and "TARE_JUDGES_WITHOUT_TPU" not in os.environ

    def task(self, **given: object) -> dict:
        return {"modules": [], "quantizer": False, "tier": self.tier, "names": self.names, "skip": 0, "count": 0, "work": str(self.work),
                "journal": str(self.work / "journal"), "keep": self.keep, "hlo": "", "known": self.known} | given

    def quantizer(self) -> None:
        """TensorFlow's own quantizer (quantizer.py), and batches of dynamic range (batches.py)."""
        if QUANTIZER not in self.known:
            worker(self.task(quantizer=True, journal=str(self.work / f"journal-{QUANTIZER}")), {}, self.results)
            self.results.finished(QUANTIZER)

    def zoo(self) -> int:
        """The models of the tier, or those named; returns their number."""
        models = 0
        if self.compiles:
            (self.modules / "dump").mkdir(parents=True)
        for group, environment in GROUPS:
            compiles = self.compiles and not (self.tier == "all" and group == REAL_MODELS)     # these take half a day
            hlo = {"XLA_FLAGS": f"--xla_dump_to={self.modules}/dump --xla_dump_hlo_as_proto"} if compiles else {}
            if self.tier == "quick" and environment:     # the quick tier installs no JAX
                continue
            skip, left = 0, 1
            while left > 0:
                task = self.task(modules=group, skip=skip, count=1000 if self.tier == "quick" else COUNT, hlo=str(self.modules) if hlo else "")
                tried, left = worker(task, environment | hlo, self.results)
                self.compile()
                skip += tried
            models += skip
        return models + len(set(self.known) - {QUANTIZER})

    def compile(self) -> None:
        """Google's compiler for TPUs, on the modules that XLA compiled of the models so far."""
        if any(self.modules.glob("*.hlo")):
            compilation.compile_all(self.modules, self.work / "journal", self.results)
            for path in self.modules.glob("*.hlo"):
                path.unlink()
        self.results.save()


def main(arguments: list[str]) -> int:
    started = time.monotonic()
    tier = arguments[0] if arguments in (["quick"], ["all"], ["tpu"]) else "named"
    names = [name for name in arguments if tier == "named" and name != QUANTIZER]
    path = Path(os.environ["TARE_JUDGES_RESULTS"])
    results = Results(KNOWN, path)
    if "TARE_JUDGES_CONTINUE" in os.environ and path.exists():
        results.load()
    keep = os.environ.get("TARE_JUDGES_KEEP")
    with tempfile.TemporaryDirectory(prefix="tare-judges-", ignore_cleanup_errors=True) as folder:
        work = Path(keep or folder)
        work.mkdir(exist_ok=True)
        judges = Judges(tier, names, results, work, bool(keep))
        with ThreadPoolExecutor(1) as beside:     # TensorFlow uses one processor for most of what it is asked here
            quantizer = beside.submit(judges.quantizer) if tier in ("quick", "all") or QUANTIZER in arguments else None
            models = judges.zoo() if names or tier != "named" else 0
            if quantizer:
                quantizer.result()
    results.save()
    if tier == "named" and models != len(names):
        print(f"judges: {len(names)} models named, {models} found", file=sys.stderr)
        return 2
    print(results.table())
    print(f"{models} models, {time.monotonic() - started:.0f} s")
    return int(results.failed or not results.findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
