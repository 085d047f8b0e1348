"""judge.py quick|all|quantizer|MODEL…: lets TensorFlow judge what `tare` makes of the models of the zoo.

Called by scripts/judges.sh, in the environment that it installs; README.md describes what is judged."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from catalogue import GROUPS
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


def judge_zoo(tier: str, names: list[str], results: Results, work: Path, keep: bool) -> int:
    """Judges the models of a tier, or those named; returns their number."""
    models = 0
    for group, environment in GROUPS:
        if tier == "quick" and environment:     # the quick tier installs no JAX
            continue
        skip, left = 0, 1
        while left > 0:
            task = {"modules": group, "quantizer": False, "tier": tier, "names": names, "skip": skip, "count": 1000 if tier == "quick" else COUNT,
                    "work": str(work), "journal": str(work / "journal"), "keep": keep}
            tried, left = worker(task, environment, results)
            skip += tried
        models += skip
    return models


def judge_quantizer(results: Results, work: Path) -> None:
    """TensorFlow's own quantizer (quantizer.py)."""
    task = {"modules": [], "quantizer": True, "tier": "named", "names": [], "skip": 0, "count": 0, "work": str(work),
            "journal": str(work / "journal"), "keep": True}
    worker(task, {}, results)


def main(arguments: list[str]) -> int:
    started = time.monotonic()
    tier = arguments[0] if arguments in (["quick"], ["all"]) else "named"
    names = arguments if tier == "named" else []
    results = Results(KNOWN)
    keep = os.environ.get("TARE_JUDGES_KEEP")
    with tempfile.TemporaryDirectory(prefix="tare-judges-", ignore_cleanup_errors=True) as folder:
        work = Path(keep or folder)
        work.mkdir(exist_ok=True)
        if tier != "named" or QUANTIZER in names:
            judge_quantizer(results, work)
        names = [name for name in names if name != QUANTIZER]
        models = judge_zoo(tier, names, results, work, bool(keep)) if names or tier != "named" else 0
    results.save(Path(os.environ["TARE_JUDGES_RESULTS"]))
    if tier == "named" and models != len(names):
        print(f"judges: {len(names)} models named, {models} found", file=sys.stderr)
        return 2
    print(results.table())
    print(f"{models} models, {time.monotonic() - started:.0f} s")
    return int(results.failed or not results.findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
