#!/usr/bin/env python3
"""generator.py BUILD_DIR [RECORDS [ROUNDS]]: time and memory of tare.calibrate from a Python generator against `tare calibrate` over a
TFRecord file with the same records (default: 50,000 records of 28 × 28 floats, 7 rounds).

Both sides are processes, alternate, and use one worker per processor. The generator yields dicts of arrays, so Python's work per
record is included; the start of Python and the imports are not, and neither is the start of the program, which takes milliseconds.
Prints the least wall and processor time of each side, the ratios, and the peak memory for all and for a tenth of the records. Exits
with 1 if the calibrations differ. Run it on a machine at rest with a Python that has NumPy."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "examples" / "glyphs" / "saved_model"
CHILD = """
import json, resource, sys, time, warnings
import numpy as np, tare
warnings.simplefilter("ignore")
def records(count):
    images = np.random.default_rng(1).random((512, 28, 28, 1), dtype=np.float32)
    for i in range(count):
        image = images[i % 512]
        yield {"image": image + np.float32(i // 512)}
out, count = sys.argv[1], int(sys.argv[2])
if out.endswith(".tfrecord"):
    tare.write_records(out, ({"image": r["image"][None]} for r in records(count)))
    sys.exit()
model = tare.load(sys.argv[3])
data = records(count)
def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
wall, busy = time.monotonic(), cpu()
calibration = tare.calibrate(model, data, name="NAME", progress=False)
wall, busy = time.monotonic() - wall, cpu() - busy
calibration.save(out)
print(json.dumps([wall, busy, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def by_program(tare, folder, file):
    """Wall seconds, processor seconds, peak memory in MiB."""
    start = time.monotonic()
    process = subprocess.Popen([tare, "calibrate", MODEL, "--data", file, "-o", f"{folder}/program.calib", "--quiet"],
                               stderr=subprocess.DEVNULL)  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("generator.py: tare calibrate failed")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def by_generator(folder, count):
    return json.loads(subprocess.run([sys.executable, "-c", CHILD, f"{folder}/generator.calib", str(count), MODEL], check=True,
                                     capture_output=True, text=True).stdout)  # fmt: skip


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    os.environ["PYTHONPATH"] = str(build / "python")
    with tempfile.TemporaryDirectory() as folder:
        files = {n: f"{folder}/{n}.tfrecord" for n in (count // 10, count)}
        for n, file in files.items():
            subprocess.run([sys.executable, "-c", CHILD, file, str(n)], check=True)
        sides = {"program": [], "generator": []}
        for _ in range(rounds):
            sides["program"].append(by_program(build / "tare", folder, files[count]))
            sides["generator"].append(by_generator(folder, count))
        least = {name: [min(column) for column in zip(*runs)] for name, runs in sides.items()}
        for name, (wall, busy, memory) in least.items():
            print(f"{name:10} {wall:7.2f} s wall {busy:7.2f} s processor {memory:7.1f} MiB")
        print(f"ratio      {least['generator'][0] / least['program'][0]:7.3f}        {least['generator'][1] / least['program'][1]:7.3f}")
        show = [build / "tare", "show", "--json"]
        tensors = [json.loads(subprocess.run([*show, f"{folder}/{name}.calib"], check=True, capture_output=True).stdout)["tensors"]
                   for name in sides]  # fmt: skip
        print(f"memory of {count // 10} records: {by_generator(folder, count // 10)[2]:.1f} MiB")
    if tensors[0] != tensors[1]:
        sys.exit("generator.py: the calibrations differ")


main()
