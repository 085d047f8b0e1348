#!/usr/bin/env python3
"""Measures how the time and memory of each command grow with the size of a model.

    scaling.py BUILD_DIR [--markdown] [SHAPE[=N]...]

Each shape of bench/scaling_model.c (default: all) is written with N, 4 N and 16 N elements (default: SIZES), and each
command runs on the three models. Cost is fitted to size ** exponent by least squares over the logarithms, so that 1 is
linear. Start-up costs are not subtracted, which makes the exponents of short runs smaller.

Time is processor time, the least of several runs: up to 8, as long as they take less than a second together. An
exponent above LIMIT is measured up to twice more, because other work on the machine makes single runs longer. Memory is
the peak resident set (of at least the 13 MiB of Python, from which the commands are started).

Prints a table: text, or Markdown with --markdown. Exit status: 0 if every command succeeds and
every exponent is at most LIMIT, otherwise 1; 2 for a usage error.
"""
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

LIMIT = 1.1
FACTORS = (1, 4, 16)
SIZES = {  # N: by the time that the commands take
    "long": 1000,
    "wide": 1000,
    "functions": 1000,
    "nested": 30,
    "variables": 625,
    "recurrent": 400,
    "normalized": 500,
    "identity": 2000,
    "control": 2000,
    "fence": 2000,
    "effects": 2000,
    "constants": 2000,
    "outputs": 1000,
    "inputs": 250,
    "calls": 1000,
    "promised": 500,
    "served": 500,
    "branches": 2000,
    "loops": 2000,
    "split": 2000,
}
TPU_OPTIONS = 'tpu_functions { function_alias: "tpu_func" }'


def commands(tare):
    """Name, output (None: no file) and command line of each measurement, in the order of their dependencies."""
    return [
        ("inspect", None, [tare, "inspect", "model"]),
        ("validate", None, [tare, "validate", "model"]),
        ("calibrate", "calibration",
         [tare, "calibrate", "--quiet", "--threads=1", "--data=samples.tfrecord", "model", "-o", "calibration"]),
        ("quantize", "quantized", [tare, "quantize", "model", "quantized", "--calibration", "calibration"]),
        ("convert", "converted",
         [tare, "convert", "--quiet", "--input_model_dir=model", "--output_model_dir=converted",
          "--converter_options_string=" + TPU_OPTIONS]),
        ("compare", None,
         [tare, "compare", "model", "--threads=1", "--data=samples.tfrecord", "--calibration=calibration"]),
    ]


def write_samples(tare, inputs):
    """Eight records; each input has 8 values."""
    remove("samples.tfrecord")
    random.seed(1)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8), }"
    header += b" " * ((64 - (10 + len(header) + 1) % 64) % 64) + b"\n"
    with open("x.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack("<64f", *[random.gauss(0, 1) for _ in range(64)]))
    options = [option for name in inputs for option in ("--input", name + "=x.npy")]
    subprocess.run([tare, "dataset", "make", "--quiet", *options, "-o", "samples.tfrecord"], check=True)


def remove(path):
    if path and os.path.isdir(path):
        shutil.rmtree(path)
    elif path and os.path.exists(path):
        os.remove(path)


def run(output, command):
    """Processor time in seconds and peak memory in MiB of one run; None if the command fails."""
    remove(output)
    redirections = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, "errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    process = os.posix_spawnp(command[0], command, os.environ, file_actions=redirections)
    _, status, usage = os.wait4(process, 0)
    if status:
        with open("errors", encoding="utf-8", errors="replace") as file:
            print(f"scaling: {' '.join(command)}: status {status}: {file.read(500)}", file=sys.stderr)
        return None
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def least_cost(output, command, known):
    """The least time and the least peak of several runs and of `known` (None: not measured)."""
    costs = [known] if known else []
    spent = 0
    for _ in range(8):
        cost = run(output, command)
        if not cost:
            return None
        costs.append(cost)
        spent += cost[0]
        if spent > 1:
            break
    return min(seconds for seconds, _ in costs), min(memory for _, memory in costs)


def exponent(costs):
    """The slope of the line of least squares through equally spaced logarithms of the size: that of its ends."""
    return math.log(costs[-1] / costs[0]) / math.log(FACTORS[-1] / FACTORS[0])


class Measurements:
    """Costs by shape and command: a list of (seconds, MiB) in the order of FACTORS; None where a command failed."""

    def __init__(self, build):
        self.tare = os.path.join(build, "tare")
        self.generator = os.path.join(build, "bench", "scaling_model")
        self.costs = {}
        self.sizes = {}

    def exponents(self, key):
        return [exponent([cost[side] for cost in self.costs[key]]) for side in (0, 1)]

    def measure_size(self, shape, place, again):
        """All commands of one model; with `again`, those whose exponent exceeds the limit, and those they need."""
        remove("model")
        size = self.sizes[shape] * FACTORS[place]
        subprocess.run([self.generator, shape, "model", str(size)], check=True)
        write_samples(self.tare, ["x"] + [f"x{i}" for i in range(size if shape == "inputs" else 0)])
        for name, output, command in commands(self.tare):
            costs = self.costs.setdefault((shape, name), [None] * len(FACTORS))
            if again and name not in again:
                if name == "calibrate" and {"quantize", "compare"} & again:
                    run(output, command)
                continue
            costs[place] = least_cost(output, command, costs[place])
        for output in ("model", "calibration", "quantized", "converted"):
            remove(output)

    def above_limit(self, shape):
        keys = [key for key, costs in self.costs.items() if key[0] == shape and all(costs)]
        return {key[1] for key in keys if max(self.exponents(key)) > LIMIT}

    def measure(self, shape, size):
        self.sizes[shape] = size
        for place in range(len(FACTORS)):
            self.measure_size(shape, place, None)
        for _ in range(2):
            above = self.above_limit(shape)
            if above:
                self.measure_size(shape, len(FACTORS) - 1, above)

    def failures(self):
        lines = []
        for key, costs in self.costs.items():
            if not all(costs):
                lines.append(f"{key[0]}: {key[1]} failed")
                continue
            for what, value in zip(("time", "memory"), self.exponents(key)):
                if value > LIMIT:
                    lines.append(f"{key[0]}: {key[1]}: exponent of {what} {value:.2f} (at most {LIMIT})")
        return lines


def print_text(measured, shape):
    for key, costs in measured.costs.items():
        if key[0] != shape:
            continue
        cells = []
        for side, digits in ((0, 2), (1, 0)):
            values = " ".join(f"{cost[side]:8.{digits}f}" if cost else "       -" for cost in costs)
            fit = f"{exponent([cost[side] for cost in costs]):.2f}" if all(costs) else "-"
            cells.append(f"{values}: {fit:>5}")
        print(f"{shape:<10} {key[1]:<10} {cells[0]} {cells[1]}", flush=True)


def print_markdown(measured, shape):
    def cell(key):
        costs = measured.costs[key]
        if not all(costs):
            return "failed"
        time, memory = measured.exponents(key)
        return f"{costs[-1][0]:.2f} s, {costs[-1][1]:.0f} MiB; {time:.2f}, {memory:.2f}"

    size = measured.sizes[shape]
    row = [f"{shape}: {size:,} to {size * FACTORS[-1]:,}"] + [cell(key) for key in measured.costs if key[0] == shape]
    print("| " + " | ".join(row) + " |", flush=True)


def parse(arguments):
    """Build directory, whether to print Markdown, and the sizes by shape."""
    markdown = "--markdown" in arguments
    rest = [argument for argument in arguments if argument != "--markdown"]
    shapes = {}
    if not rest or rest[0].startswith("-"):
        sys.exit(__doc__)
    for argument in rest[1:]:
        shape, _, size = argument.partition("=")
        if shape not in SIZES or (size and not size.isdigit()):
            print(f"scaling: no shape '{argument}' (expected {', '.join(SIZES)}, each with =N)", file=sys.stderr)
            sys.exit(2)
        shapes[shape] = int(size) if size else SIZES[shape]
    return os.path.abspath(rest[0]), markdown, shapes or SIZES


def main():
    build, markdown, shapes = parse(sys.argv[1:])
    measured = Measurements(build)
    names = [name for name, _, _ in commands("")]
    if markdown:
        print("| " + " | ".join(["shape: n to 16 n"] + names) + " |\n|" + "---|" * (len(names) + 1))
    else:
        print(f"{'shape':<10} {'command':<10} {'seconds at n, 4n, 16n: exponent':<33} MiB at n, 4n, 16n: exponent")
    with tempfile.TemporaryDirectory(prefix="scaling.") as folder:
        os.chdir(folder)
        for shape, size in shapes.items():
            measured.measure(shape, size)
            (print_markdown if markdown else print_text)(measured, shape)
        os.chdir("/")
    failures = measured.failures()
    for line in failures:
        print(f"scaling: {line}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
