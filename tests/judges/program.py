"""Runs the program under test and reads what it writes."""
from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

TARE = os.environ.get("TARE", "tare")
SECONDS = 120


@dataclass(frozen=True)
class Run:
    """A run of `tare`: its exit status and the last line of its standard error."""

    status: int
    message: str


def tare(*arguments: object) -> Run:
    done = subprocess.run([TARE, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=SECONDS)
    lines = [line for line in done.stderr.splitlines() if line.startswith("tare:")] or done.stderr.splitlines()
    return Run(done.returncode, lines[-1] if lines else "")


def outputs(model: str, signature: str, data: str, folder: Path) -> tuple[Run, list[dict[str, np.ndarray]]]:
    """Outputs of a signature for every record of `data`, by name; strings as object arrays of one dimension."""
    run = tare("run", model, "--signature", signature, "--data", data, "--output-dir", folder, "--per-record", "--quiet")
    records: list[dict[str, np.ndarray]] = []
    for path in sorted(folder.glob("*")) if run.status == 0 else []:
        name, record, suffix = path.name.rsplit(".", 2)
        index = int(record.removeprefix("rec"))
        records.extend({} for _ in range(index + 1 - len(records)))
        records[index][name] = np.load(path) if suffix == "npy" else text(path)
    return run, records


def text(path: Path) -> np.ndarray:
    """One string a line, with \\\\, \\n, \\r and \\xhh."""
    return np.array([unescaped(line) for line in path.read_bytes().removesuffix(b"\n").split(b"\n")], dtype=object)


def unescaped(line: bytes) -> bytes:
    meanings = {b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
    return re.sub(rb"\\(x..|.)", lambda escape: meanings.get(escape[1]) or bytes.fromhex(escape[1][1:].decode()), line)


def plain(array: np.ndarray) -> np.ndarray:
    """The array in a type that NumPy computes with: bfloat16, which .npy files store as two raw bytes, becomes float32."""
    if array.dtype == np.dtype("V2"):
        array = array.view(ml_dtypes.bfloat16)
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype == ml_dtypes.bfloat16 else array
