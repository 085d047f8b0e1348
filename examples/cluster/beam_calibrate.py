"""beam_calibrate.py MODEL OUT FILE…: calibrates a model with Apache Beam, one shard of the samples per element.

--shards=N: their number (default 8). Options of Beam follow: --runner=DataflowRunner … Default: the direct runner, in this process. Workers need `tare-quant`, and MODEL and
the files on a file system that they have. The bytes of OUT are those of `tare calibrate` in one process.
"""

import argparse
import os
import subprocess
import tempfile

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

import tare


def calibrate(index, count, model, files):
    """The calibration of every N-th record of the files, by the command of the package."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "part.calib")
        data = [word for file in files for word in ("--data", file)]
        command = [os.environ.get("TARE", "tare"), "calibrate", model, *data, "--shard", f"{index}/{count}", "-o", out, "--quiet"]
        subprocess.run(command, check=True)
        return tare.Calibration.load(out).to_bytes()


class Merge(beam.CombineFn):
    """The sum of calibrations: any order and grouping gives the same bytes."""

    def create_accumulator(self):
        return b""

    def add_input(self, total, part):
        if not total or not part:
            return total or part
        return tare.Calibration.from_bytes(total).merge(tare.Calibration.from_bytes(part)).to_bytes()

    def merge_accumulators(self, totals):
        found = b""
        for total in totals:
            found = self.add_input(found, total)
        return found

    def extract_output(self, total):
        return total


def write(data, path):
    tare.Calibration.from_bytes(data).save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--shards", type=int, default=8)
    arguments, options = parser.parse_known_args()
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        (
            pipeline
            | beam.Create(range(arguments.shards))
            | beam.Reshuffle()
            | beam.Map(calibrate, arguments.shards, arguments.model, arguments.files)
            | beam.CombineGlobally(Merge())
            | beam.Map(write, arguments.out)
        )


if __name__ == "__main__":
    main()
