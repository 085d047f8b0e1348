"""ray_calibrate.py MODEL OUT FILE…: calibrates a model with Ray, a task for each of SHARDS shards of the samples (default 8).

RAY_ADDRESS names the cluster; default: this machine. Workers need `tare-quant`, and MODEL and the files on a file system that they have.
The bytes of OUT are those of `tare calibrate` in one process.
"""

import os
import subprocess
import sys
import tempfile

import ray

import tare


@ray.remote
def part(index, count, model, files):
    """The calibration of every N-th record of the files, by the command of the package."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "part.calib")
        data = [word for file in files for word in ("--data", file)]
        command = [os.environ.get("TARE", "tare"), "calibrate", model, *data, "--shard", f"{index}/{count}", "-o", out, "--quiet"]
        subprocess.run(command, check=True)
        return tare.Calibration.load(out)


@ray.remote
def merged(first, second):
    return first.merge(second)


def main(path, out, *files):
    ray.init()
    count = int(os.environ.get("SHARDS", 8))
    parts = [part.remote(index, count, path, files) for index in range(count)]
    while len(parts) > 1:  # as a tree, on the workers
        parts = [merged.remote(*pair) if len(pair) > 1 else pair[0] for pair in (parts[i : i + 2] for i in range(0, len(parts), 2))]
    ray.get(parts[0]).save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
