#!/usr/bin/env python3
"""Fails each heap allocation of every command and checks what the command does then.

    allocation.py --program build/tare --shim build/tests/faults/allocation.so [options]

Each command runs on examples/glyphs once without faults, which gives the reference and the number of allocations, and then
for n = 1 … all with the n-th allocation failing: once, and again with all later ones failing as well. Accepted are:

  - exit status 0 with the standard output, the standard error and the files of the reference, byte for byte;
  - exit status 1 with one error on the last line of standard error ("tare: …"), before it only lines of the reference, and
    no file that was not there before.
    Where memory runs out after an output was moved to its place (for the text that follows), the error says that what was
    written is complete, and its bytes are those of the reference.
    batch reports failed jobs one by one and keeps their state, so that --resume continues: it may leave its state folder.

Everything else is a finding: other bytes with status 0, a signal, another status, leftovers, no message, a hang.
--every K takes every K-th allocation between the first --first and the last --last ones, to sample. --stacks N takes the first and
the last of the allocations that the same N calls led to: every place of the program in its uses, in a fraction of the time.
"""
import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

TIMEOUT = 60
MOST_ALLOCATIONS = 1 << 20


def commands(glyphs, inputs):
    """Name -> arguments. The working folder is empty at the start of each; inputs are outside it."""
    model, data, calib = glyphs / "saved_model", inputs / "samples.tfrecord", inputs / "glyphs.calib"
    return {
        "calibrate": ["calibrate", model, "--data", data, "-o", "out.calib", "--threads", "1", "--limit", "3", "--channels", "--json"],
        "quantize": ["quantize", model, "out", "--calibration", calib, "--passes", "equalization,weight_clipping"],
        "convert": ["convert", inputs / "int8", "out", "--report", "report.json"],
        "compare": ["compare", model, "--data", data, "--limit", "2", "--calibration", calib, "--methods", "float,static", "--threads", "1", "--json"],
        "run": ["run", model, "--data", data, "--limit", "2", "--threads", "1", "--output-dir", "out"],
        "diff": ["diff", model, inputs / "int8", "--report", "out.html"],
        "validate": ["validate", inputs / "int8", "--json"],
        "copy": ["copy", model, "out"],
        "batch": ["batch", inputs / "models", "--methods", "static", "--calibration", calib, "--output-dir", "out", "--state", "state", "--jobs", "1",
                  "--retries", "0", "--quiet", "--json"],
        "auto": ["auto", model, "made", "--data", data, "--quiet"],
        "inspect": ["inspect", model, "--functions", "--json"],
        "suggest": ["inspect", model, "--suggest"],
        "merge": ["merge", inputs / "half0.calib", inputs / "half1.calib", "-o", "out.calib"],
        "show": ["show", calib, "--report", "out.html"],
        "check": ["check", inputs / "int8", "--chip", "v5e", "--estimate", "--json"],
        "export": ["export", model, "out.mlirbc"],
        "unwrap": ["unwrap", inputs / "module.mlirbc", "out"],
        "info": ["dataset", "info", data, "--json"],
        "draft": ["dataset", "info", data, "--draft-spec", "out.spec", "--model", model],
        "head": ["dataset", "head", data, "--json"],
        "make": ["dataset", "make", data, "-o", "out.tfrecord"],
        "split": ["dataset", "split", data, "--parts", "2", "-o", "part"],
        "images": ["dataset", "export", data, "-o", "out"],
        "ops": ["ops", "Conv2D", "--json"],
        "man": ["man", "compare"],
        "completion": ["completion", "bash"],
        "help": ["help", "compare"],
    }


# What differs between two runs without faults: times, and the process id in a temporary name.
TIMES = [
    (re.compile(rb'("[a-z_]*(?:seconds|_s|_ms|_ns|per_second|time|date|memory|peak_bytes|started|finished)":\s*)[-0-9.e+"TZ: ]+'), rb"\1T"),
    (re.compile(rb"\b\d+(?:\.\d+)? (?:s|ms|min)\b"), b"T s"),
    (re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?"), b"DATE"),
]


def normal(data):
    for pattern, replacement in TIMES:
        data = pattern.sub(replacement, data)
    return data


def tree(folder):
    result = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        text = path.suffix in (".json", ".html", ".csv", ".log", ".txt")
        if name == "made.html":  # has the seconds of each model
            result[name] = b"</html>" if path.read_bytes().endswith(b"</html>\n") else b""
            continue
        result[name] = None if path.is_dir() else normal(path.read_bytes()) if text else path.read_bytes()
    return result


class Runner:
    def __init__(self, program, shim, work):
        self.program, self.shim, self.work = program, shim, work
        self.file = work / "counters"
        self.folder = work / "run"

    def run(self, args, at, sticky, **more):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.file.write_bytes(struct.pack("=qqq", 0, at, sticky))
        environment = dict(os.environ, LD_PRELOAD=str(self.shim), TARE_FAULT_FILE=str(self.file), **more)
        process = subprocess.Popen([self.program] + [str(a) for a in args], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return "hangs", out, err, tree(self.folder)
        return process.returncode, normal(out), normal(err), tree(self.folder)

    def count(self):
        return struct.unpack("=qqq", self.file.read_bytes())[0]

    def stacks(self, args, calls):
        """Of each allocation of the command, a number that those with the same calls share."""
        path = self.work / "stacks"
        path.write_bytes(bytes(8 * MOST_ALLOCATIONS))
        self.run(args, 0, 0, TARE_FAULT_STACKS=str(path), TARE_FAULT_FRAMES=str(calls))
        return struct.unpack(f"={self.count()}q", path.read_bytes()[: 8 * self.count()])


def difference(expected, got):
    for what, a, b in (("standard output", expected[1], got[1]), ("standard error", expected[2], got[2])):
        if a != b:
            lines = [l for l in b.splitlines() if l not in a.splitlines()] or [l for l in a.splitlines() if l not in b.splitlines()]
            return f"other {what}: {lines[:2]}"
    for name in sorted(set(expected[3]) | set(got[3])):
        if name not in got[3]:
            return f"no file {name}"
        if expected[3].get(name, b"") != got[3][name]:
            return f"other bytes in {name}" if name in expected[3] else f"a file more: {name}"
    return None


def finding(name, expected, got):
    """None if the outcome is accepted, otherwise what is wrong with it."""
    status, out, err, files = got
    lines = err.decode(errors="replace").splitlines()
    if status == 0:
        return difference(expected, got)
    if status == 127 and b"error while loading shared libraries" in err:
        return None
    if status != 1:
        return f"status {status}: {' / '.join(lines[-2:])}"
    if name == "batch":
        files = {f: d for f, d in files.items() if f.split("/")[0] != "state" and f != "out"}
        if all(expected[3].get(f, b"") == d for f, d in files.items()):
            files = {}
    if lines and "what was written is complete" in lines[-1] and all(expected[3].get(f, b"") == d for f, d in files.items()):
        files = {}
    if files:
        return f"leaves {sorted(files)[:3]}: {lines[-1:]}"
    if not lines or not lines[-1].startswith("tare: ") or len(lines[-1]) < 10:
        return f"no message: {lines[-1:]}"
    extra = [line for line in lines[:-1] if line not in expected[2].decode(errors="replace").splitlines()]
    if extra and name != "batch":
        return f"another line before the error: {extra}"
    return None


def ends(stacks):
    """The first and the last allocation of each stack."""
    first, last = {}, {}
    for number, stack in enumerate(stacks, 1):
        first.setdefault(stack, number)
        last[stack] = number
    return sorted(set(first.values()) | set(last.values()))


def chosen(total, options):
    return [n for n in range(1, total + 1)
            if n <= options.first or n > total - options.last or (n - options.offset) % options.every == 0]


def check(runner, name, args, options):
    expected = runner.run(args, 0, 0)
    total = runner.count()
    again = runner.run(args, 0, 0)
    if expected[0] != 0:
        return [(name, 0, "", f"fails without a fault: {expected[2].decode()}")], 0, total
    if difference(expected, again):
        return [(name, 0, "", f"differs between two runs without faults: {difference(expected, again)}")], 0, total
    numbers = ends(runner.stacks(args, options.stacks)) if options.stacks else chosen(total, options)
    found, runs = [], 0
    for sticky in (0, 1):
        for n in numbers:
            if options.only and n != options.only:
                continue
            runs += 1
            wrong = finding(name, expected, runner.run(args, n, sticky))
            if wrong:
                found.append((name, n, "and all later ones" if sticky else "once", wrong))
                print(f"{name}: allocation {n} {found[-1][2]}: {wrong}", flush=True)
    return found, runs, total


def prepare(options, work):
    inputs = work / "inputs"
    glyphs = options.source / "examples/glyphs"
    inputs.mkdir()
    tare = str(options.program)
    quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    data = subprocess.run(["gzip", "-dc", str(glyphs / "calibration.tfrecord.gz")], check=True, capture_output=True).stdout
    (inputs / "samples.tfrecord").write_bytes(data[: 4 * record_size(data)])
    subprocess.run([tare, "calibrate", glyphs / "saved_model", "--data", inputs / "samples.tfrecord", "-o", inputs / "glyphs.calib", "--channels"], **quiet)
    subprocess.run([tare, "quantize", glyphs / "saved_model", inputs / "int8", "--calibration", inputs / "glyphs.calib"], **quiet)
    for half in "01":
        subprocess.run([tare, "calibrate", glyphs / "saved_model", "--data", inputs / "samples.tfrecord", "--shard", f"{half}/2", "-o",
                        inputs / f"half{half}.calib"], **quiet)
    subprocess.run([tare, "export", glyphs / "saved_model", inputs / "module.mlirbc"], **quiet)
    (inputs / "models").mkdir()
    shutil.copytree(glyphs / "saved_model", inputs / "models" / "glyphs")
    return commands(glyphs, inputs)


def record_size(data):
    return struct.unpack("<Q", data[:8])[0] + 16


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--shim", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--commands", default="", help="comma-separated; default: all")
    parser.add_argument("--first", type=int, default=0, help="take all of the first N allocations")
    parser.add_argument("--last", type=int, default=0, help="take all of the last N allocations")
    parser.add_argument("--every", type=int, default=1, help="of the others, take every K-th")
    parser.add_argument("--offset", type=int, default=0, help="of the others, take n with n %% K = OFFSET %% K")
    parser.add_argument("--stacks", type=int, default=0, metavar="N", help="take the first and the last allocation of each stack of N calls (at most 64)")
    parser.add_argument("--only", type=int, default=0, help="take only this allocation")
    options = parser.parse_args()
    options.program, options.shim = options.program.resolve(), options.shim.resolve()
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    work = pathlib.Path(tempfile.mkdtemp(prefix="tare-faults-", dir=base))
    failures = sampled = 0
    try:
        rows = prepare(options, work)
        runner = Runner(options.program, options.shim, work)
        for name, args in rows.items():
            if options.commands and name not in options.commands.split(","):
                continue
            start = time.time()
            found, runs, total = check(runner, name, args, options)
            for row in found if not runs else []:
                print(f"{row[0]}: {row[3]}")
            print(f"{name}: {total} allocations, {runs} runs with a fault, {len(found)} findings, {time.time() - start:.0f} s", flush=True)
            failures += len(found)
            sampled += runs
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{sampled} runs, {failures} findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
