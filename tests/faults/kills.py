#!/usr/bin/env python3
"""Kills commands that replace an output, and checks what is there afterwards.

    kills.py --program build/tare --helper build/tests/helpers/kill_at_call --random N [--every K] [--scenarios a,b]

Each scenario is a command whose output exists already, with other contents. Three kinds of kills (SIGKILL):

  - N random ones, one to three in a row on the same folder: of the process alone, or of its whole group;
  - N random ones of one of two such commands that run at the same time on one output;
  - at every K-th system call that changes files (kill_at_call), also with a renameat2 that fails, as on file systems
    that cannot exchange two folders.

After a kill the output is the old one or the new one, byte for byte. The next run without a kill gives the new one, with
the same bytes, and nothing else is left in the folder. Where folders cannot be exchanged, an output may be absent after a
kill; the next run, even one that is refused, then restores the old one.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT = 300


def contents(path):
    """Name -> bytes of all files below a path; a file is the name ""; None if nothing is there. Hidden names next to an
    output belong to runs; inside an output they are part of it."""
    if path.is_file():
        return {"": path.read_bytes()}
    if not path.is_dir():
        return None
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


class Scenario:
    """`arguments` write `outputs` (paths in the folder where the command runs); `first` are those that write the old ones."""

    def __init__(self, name, arguments, first, outputs, kept=(), expected_refusal=None):
        self.name, self.arguments, self.first, self.outputs, self.kept = name, arguments, first, outputs, kept
        self.expected_refusal = expected_refusal


def scenarios(glyphs, inputs):
    model, calib, int8 = glyphs / "saved_model", inputs / "glyphs.calib", inputs / "int8"
    samples = inputs / "samples.tfrecord"
    quantize = ["quantize", model, "out", "--quiet", "--calibration", calib]
    convert = ["convert", int8, "out", "--quiet"]
    calibrate = ["calibrate", model, "--data", samples, "-o", "out.calib", "--quiet", "--threads", "2"]
    batch = ["batch", inputs / "models", "--output-dir", "out", "--state", "state", "--jobs", "2", "--retries", "0", "--quiet", "--calibration", calib,
             "--methods", "static,weight_only", "--overwrite"]
    weights = ["quantize", model, "out", "--quiet", "--method", "weight_only"]
    return [
        Scenario("quantize", quantize + ["--overwrite"], weights, ["out"], expected_refusal=quantize),
        Scenario("convert", convert + ["--overwrite"], weights, ["out"], expected_refusal=convert),
        Scenario("calibrate", calibrate + ["--resume", "--autosave", "0.001"], calibrate + ["--limit", "2"], ["out.calib"]),
        Scenario("batch", batch + ["--resume"], batch + ["--algorithm", "mse"], ["out/glyphs-static", "out/glyphs-weight_only"], kept=("state",)),
    ]


class Runner:
    def __init__(self, options, work):
        self.program, self.helper, self.work = options.program, options.helper, work
        self.folder = work / "run"
        self.count_file = work / "count"
        self.findings, self.kills = [], 0

    def command(self, arguments):
        return [str(self.program)] + [str(a) for a in arguments]

    def start(self, command):
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)

    def run(self, command):
        process = self.start(command)
        try:
            _, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 124, "does not end"
        return process.returncode, err.decode(errors="replace")

    def found(self, scenario, what, where):
        self.findings.append((scenario.name, what, where))
        print(f"{scenario.name}: {where}: {what}", flush=True)

    # ---- the folder ----

    def reset(self, scenario):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.work / "old" / scenario.name, self.folder)

    def names(self, scenario):
        """Everything but the contents of the outputs and what is kept between runs."""
        outputs = [self.folder / output for output in scenario.outputs]
        kept = [self.folder / name for name in scenario.kept]
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*")
                      if not any(o in p.parents for o in outputs) and not any(k == p or k in p.parents for k in kept))

    def outputs(self, scenario):
        return {output: contents(self.folder / output) for output in scenario.outputs}

    def prepare(self, scenario):
        """The old state, and what a run without a kill makes of it."""
        self.folder.mkdir(exist_ok=True)
        old = self.work / "old" / scenario.name
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        status, err = self.run(self.command(scenario.first))
        if status:
            raise SystemExit(f"{scenario.name}: the first run fails: {err}")
        for name in scenario.kept:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.folder, old)
        scenario.old = self.outputs(scenario)
        began = time.monotonic()
        status, err = self.run(self.command(scenario.arguments))
        scenario.seconds = time.monotonic() - began
        if status:
            raise SystemExit(f"{scenario.name}: fails without a kill: {err}")
        scenario.new, scenario.after = self.outputs(scenario), self.names(scenario)
        if any(scenario.old[o] == scenario.new[o] for o in scenario.outputs):
            raise SystemExit(f"{scenario.name}: the old and the new output are equal")

    # ---- checks ----

    def check_killed(self, scenario, where, may_be_absent=False):
        for output, files in self.outputs(scenario).items():
            if files in (scenario.old[output], scenario.new[output]) or (files is None and may_be_absent):
                continue
            self.found(scenario, f"{output} is neither the old one nor the new one" if files is not None else f"{output} is absent", where)

    def check_next_run(self, scenario, where):
        began = time.monotonic()
        status, err = self.run(self.command(scenario.arguments))
        scenario.seconds = (scenario.seconds * 3 + time.monotonic() - began) / 4
        if status:
            self.found(scenario, f"the next run fails with {status}: {err.strip()[-300:]}", where)
            return
        if self.outputs(scenario) != scenario.new:
            self.found(scenario, "the next run gives other bytes", where)
        if self.names(scenario) != scenario.after:
            self.found(scenario, f"left after the next run: {sorted(set(self.names(scenario)) ^ set(scenario.after))[:5]}", where)

    # ---- kills ----

    def random_kill(self, scenario, process, rng):
        """True if the process was still running."""
        time.sleep(rng.random() * scenario.seconds * 1.1)
        target = "group" if rng.random() < 0.5 else "process"
        try:
            if target == "group":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        except ProcessLookupError:
            pass
        process.communicate()
        self.kills += process.returncode == -signal.SIGKILL
        return process.returncode == -signal.SIGKILL

    def wait_for_workers(self):
        """Workers of a batch end when their parent is killed, a moment later."""
        for _ in range(200):
            if not any(self.runs_here(pid) for pid in os.listdir("/proc") if pid.isdigit()):
                return
            time.sleep(0.02)

    def runs_here(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/cwd").startswith(str(self.folder)) and os.readlink(f"/proc/{pid}/exe") == str(self.program)
        except OSError:
            return False

    def kill_alone(self, scenario, count, rng):
        while count > 0:
            self.reset(scenario)
            for _ in range(min(count, rng.randint(1, 3))):
                process = self.start(self.command(scenario.arguments))
                count -= self.random_kill(scenario, process, rng)
                self.wait_for_workers()
                self.check_killed(scenario, f"random kill, {count} left")
            self.check_next_run(scenario, f"random kill, {count} left")

    def kill_one_of_two(self, scenario, count, rng):
        while count > 0:
            where = f"kill of one of two, {count} left"
            self.reset(scenario)
            pair = [self.start(self.command(scenario.arguments)) for _ in range(2)]
            if rng.random() < 0.5:
                pair.reverse()
            count -= self.random_kill(scenario, pair[0], rng)
            _, err = pair[1].communicate(timeout=TIMEOUT)
            if pair[1].returncode not in (0, 1):
                self.found(scenario, f"the other run ends with {pair[1].returncode}: {err.decode()[-300:]}", where)
            self.wait_for_workers()
            self.check_killed(scenario, where)
            self.check_next_run(scenario, where)

    def traced(self, scenario, at, flags, arguments=None):
        self.count_file.write_text("0")
        command = [str(self.helper), str(self.count_file), str(at)] + flags
        status, err = self.run(command + self.command(arguments or scenario.arguments))
        return status, int(self.count_file.read_text()), err

    def kill_at_calls(self, scenario, every, offset, flags):
        self.reset(scenario)
        status, total, err = self.traced(scenario, 0, flags)
        if status == 77:
            print(f"{scenario.name}: tracing is not possible here")
            return 0
        if status:
            self.found(scenario, f"fails when it is traced: {err}", "system calls")
            return 0
        runs = 0
        for at in range(1 + offset % every, total + 1, every):
            where = f"system call {at} of {total}{' ' + ' '.join(flags) if flags else ''}"
            self.reset(scenario)
            status, _, err = self.traced(scenario, at, flags)
            if status not in (0, 137):
                self.found(scenario, f"ends with {status}: {err}", where)
            self.kills += status == 137
            runs += 1
            self.check_killed(scenario, where, may_be_absent=bool(flags))
            if flags and scenario.expected_refusal:
                status, err = self.run(self.command(scenario.expected_refusal))
                if status != 1:
                    self.found(scenario, f"a run without --overwrite ends with {status} (expected 1)", where)
                self.check_killed(scenario, where + ", after a refused run")
            self.check_next_run(scenario, where)
        return runs


def prepare_inputs(options, work):
    inputs, glyphs = work / "inputs", options.source / "examples/glyphs"
    inputs.mkdir()
    (work / "old").mkdir()
    data = subprocess.run(["gzip", "-dc", str(glyphs / "calibration.tfrecord.gz")], check=True, capture_output=True).stdout
    record = int.from_bytes(data[:8], "little") + 16
    (inputs / "samples.tfrecord").write_bytes(data[: 64 * record])
    quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tare = str(options.program)
    subprocess.run([tare, "calibrate", glyphs / "saved_model", "--data", inputs / "samples.tfrecord", "-o", inputs / "glyphs.calib", "--limit", "4"], **quiet)
    subprocess.run([tare, "quantize", glyphs / "saved_model", inputs / "int8", "--calibration", inputs / "glyphs.calib"], **quiet)
    (inputs / "models").mkdir()
    shutil.copytree(glyphs / "saved_model", inputs / "models" / "glyphs")
    return scenarios(glyphs, inputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--helper", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--random", type=int, default=300, help="random kills of each scenario, alone and one of two")
    parser.add_argument("--every", type=int, default=1, help="take every K-th system call")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenarios", default="", help="comma-separated; default: all")
    options = parser.parse_args()
    options.program, options.helper = options.program.resolve(), options.helper.resolve()
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    work = pathlib.Path(tempfile.mkdtemp(prefix="tare-kills-", dir=base))
    rng = random.Random(options.seed)
    runner = Runner(options, work)
    try:
        for scenario in prepare_inputs(options, work):
            if options.scenarios and scenario.name not in options.scenarios.split(","):
                continue
            began, before = time.monotonic(), len(runner.findings)
            runner.prepare(scenario)
            runner.kill_alone(scenario, options.random, rng)
            runner.kill_one_of_two(scenario, options.random, rng)
            calls = [runner.kill_at_calls(scenario, options.every, options.offset, flags) for flags in ([], ["--no-exchange"])]
            print(f"{scenario.name}: {options.random} random kills, {options.random} of one of two, {calls[0]} at system calls, {calls[1]} without exchange, "
                  f"{len(runner.findings) - before} findings, {time.monotonic() - began:.0f} s", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{runner.kills} kills, {len(runner.findings)} findings")
    return 1 if runner.findings else 0


if __name__ == "__main__":
    sys.exit(main())
