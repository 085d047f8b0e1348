#!/usr/bin/env python3
"""Recommendations made on the even records, measured on the odd ones.

    halves.py TARE FOLDER [OPTION…]

FOLDER has tasks of docs/accuracy.md ("Tasks of your own") or the models of bench/quantizers.py; OPTIONs are those of `compare`.
For each, compares many models on the even records, builds the recommended one by the command that is printed, and measures it
on the odd ones: a recommendation holds if they do not show a loss above the margin. Where nothing is recommended, the comparison is
repeated as its sentence advises: with the margin that the records can show, or by AUC. Prints a table in Markdown; the exit status
is 1 if a recommendation does not hold.
"""
from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = "static,static:activation_bits=8,static+bias_correction,static+gptq,static:bits=4,static:bits=4+gptq,dynamic,weight_only," \
          "weight_only:bits=4:block=32,weight_only:bits=4:block=32+gptq,weight_only:bits=4,weight_only:bits=4+gptq"


class Task:
    """A model, its samples, and options to read and measure its records."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self.options = folder, folder.name, []
        readme = folder / "README.md"
        text = readme.read_text(encoding="utf-8") if readme.exists() else ""
        if (folder / "test.npy").exists():
            self.model, self.samples = folder / "model", folder / "samples.npy"
            self.options = ["--min-elements", "1"]
            return
        named = re.search(r"^- model: `(.*)`", text, re.M)
        places = [folder / "saved_model"] + [place / named[1] for place in (folder, folder.parent, folder.parent.parent) if named]
        self.model = next(place for place in places if place.is_dir())
        self.samples = next(folder.glob("calibration.tfrecord*"))
        for option in re.findall(r"^- options: `(.*)`", text, re.M):
            self.options += shlex.split(option)
        if re.search(r"^- metric: auc\b", text, re.M | re.I):
            self.options += ["--metric", "auc"]

    def split(self, into: Path) -> tuple[Path, Path]:
        """Files of the even records and of the odd ones."""
        if (self.folder / "test.npy").exists():
            return split_arrays(self.folder, into)
        path = next(self.folder.glob("eval.tfrecord*"))
        content = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        records, start = [], 0
        while start < len(content):
            end = start + 16 + int.from_bytes(content[start:start + 8], "little")
            records.append(content[start:end])
            start = end
        halves = into / "even.tfrecord", into / "odd.tfrecord"
        for i, half in enumerate(halves):
            half.write_bytes(b"".join(records[i::2]))
        return halves


def split_arrays(folder: Path, into: Path) -> tuple[Path, Path]:
    import numpy as np
    test, expected = np.load(folder / "test.npy"), np.load(folder / "expected.npy")
    halves = into / "even.npz", into / "odd.npz"
    for i, half in enumerate(halves):
        key = "label" if expected.ndim == 1 else "target"
        np.savez(half, x=test[i::2], **{key: expected[i::2]})
    return halves


class Check:
    """One task with one margin."""

    def __init__(self, tare: str, task: Task, options: list[str]) -> None:
        self.tare, self.task, self.options = tare, task, options
        self.row: dict | None = None

    def compare(self, *arguments: str | Path) -> tuple[dict, str]:
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            command = [self.tare, "compare", self.task.model, *arguments, *self.options, "--quiet", "--report", report.name]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                print(shlex.join(map(str, command)), run.stderr, sep="\n", file=sys.stderr)
            return json.load(open(report.name, encoding="utf-8")), " ".join(run.stdout.split())

    def recommend(self, even: Path) -> str:
        """Finds the recommended row; returns what the sentence advises otherwise: options, or ""."""
        report, text = self.compare("--data", self.task.samples, "--eval", even, "--methods", METHODS, *self.task.options)
        self.records, self.verdict = report["records"], text[max(text.find("No model"), text.find("Recommended")):]
        chosen = [row for row, figures in zip(report["results"], report["measure"]["results"]) if figures.get("recommended")]
        self.row = chosen[0] if chosen else None
        self.even = self.difference(report, self.row) if self.row else ""
        advice = re.search(r"--margin [0-9.]+[0-9]|--metric auc", self.verdict)
        return advice[0] if advice and not self.row else ""

    @staticmethod
    def difference(report: dict, row: dict) -> str:
        figures = report["measure"]["results"][report["results"].index(row)]
        if figures.get("difference_low") is None:
            return f"{row['sqnr_db']:.1f} dB"
        change = figures["value"] - report["measure"]["results"][0]["value"]
        return f"{change:+.3g} ({figures['difference_low']:+.3g} … {figures['difference_high']:+.3g})"

    def measure(self, odd: Path, into: Path) -> tuple[str, str]:
        """Returns the difference on the odd records and the outcome of the built model."""
        command = shlex.split(self.row.get("quantize_command") or self.row["convert_command"])
        words = [self.tare, *(str(into / "built") if word == "OUT" else word for word in command[1:]), "--overwrite", "--quiet"]
        subprocess.run(words, check=True, capture_output=True)
        metric = [self.task.options[i + 1] for i, option in enumerate(self.task.options) if option == "--metric"]
        report, text = self.compare("--with", into / "built", "--eval", odd, *(f"--metric={name}" for name in metric))
        return self.difference(report, report["results"][1]), text.split("built: ")[-1]


def check_task(tare: str, task: Task, options: list[str]) -> int:
    """Prints a line for each margin; returns the recommendations that do not hold."""
    broken = 0
    with tempfile.TemporaryDirectory() as scratch:
        even, odd = task.split(Path(scratch))
        keys = ["--target", "target"] if b"target" in even.read_bytes()[:4096] and b"label" not in even.read_bytes()[:4096] else []
        advised = [""]
        for advice in advised:
            check = Check(tare, task, [*keys, *options, *advice.split()])
            more = check.recommend(even)
            if not check.row:
                print(f"| {task.name} | {check.records} | {advice} | none | – | – | – |", flush=True)
                advised += [more] if more and not advice else []
                continue
            found, outcome = check.measure(odd, Path(scratch))
            holds = "loses more" not in outcome and "NaN" not in outcome and "another size" not in outcome
            broken += not holds
            name = " ".join(filter(None, (check.row["method"], check.row.get("algorithm"))))
            print(f"| {task.name} | {check.records} | {advice} | {name} | {check.even} | {found} | {'yes' if holds else 'no'} |", flush=True)
    return broken


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    tare, folder, options = arguments[0], Path(arguments[1]), arguments[2:]
    print("| task | even records | options | recommended | difference on them | on the odd ones | holds |\n|---|---|---|---|---|---|---|")
    tasks = [path for path in sorted(folder.iterdir()) if any(path.glob("eval.tfrecord*")) or (path / "test.npy").exists()]
    broken = sum(check_task(tare, Task(path), options) for path in tasks)
    return 1 if broken or not tasks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
