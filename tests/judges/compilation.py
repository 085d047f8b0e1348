"""Runs tpu_compiler.py, again after each program with which its process ends. Needs neither TensorFlow nor JAX itself."""
from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from results import FAILED, SKIPPED, Finding, Results

PROGRAM = Path(__file__).with_name("tpu_compiler.py")
# What the compiler said of programs remains in the virtual environment.
STORE = Path(sys.prefix) / "programs"


def compile_all(modules: Path, journal: Path, results: Results) -> None:
    """Compiles all modules of a folder, and adds the findings."""
    skip = 0
    while True:
        journal.unlink(missing_ok=True)
        # Threads of the compiler have small stacks unless the limit is lifted.
        done = subprocess.run(["sh", "-c", 'ulimit -s unlimited 2>/dev/null; exec "$0" "$@"', sys.executable, "-W", "ignore",
                               str(PROGRAM), str(modules), str(journal), str(STORE), str(skip)],
                              stderr=subprocess.PIPE, text=True, errors="replace")
        started = results.read(journal).get("program", [])
        if not done.returncode:
            return
        model, step, _, chip = started[-1].replace("+", "/").split("@") if started else ("all", "tpu", "", "compiler")
        reason = "overflows its stack" if "STACK OVERFLOW" in done.stderr else \
            "exceeds the time for one program" if done.returncode == -signal.SIGXCPU else ""
        results.add(Finding(model, step, chip, SKIPPED if reason else FAILED,
                            f"the TPU compiler {reason}" if reason else done.stderr[-300:]))
        if not started:
            return
        skip += len(started)
