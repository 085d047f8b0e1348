"""What the tests share: the example model of the repository with its data, and a temporary folder per test."""

import pathlib
import re
import sys
import tempfile
import unittest
import warnings

import numpy as np

import tare

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(tare.__file__).resolve().parent
INSTALLED = PACKAGE.parent.name == "site-packages"  # else in a build folder, beside whose package the program lies
PROGRAM = pathlib.Path(sys.executable).parent / "tare" if INSTALLED else PACKAGE.parents[1] / "tare"
GLYPHS = ROOT / "examples" / "glyphs"
CALIBRATION, EVALUATION = GLYPHS / "calibration.tfrecord.gz", GLYPHS / "eval.tfrecord.gz"


def _read(path):
    records = list(tare.read_records(path))
    return {name: np.concatenate([record[name] for record in records]) for name in records[0]}


_cached = {}


def samples():
    """Calibration images, float32 [300, 28, 28, 1]."""
    if "samples" not in _cached:
        _cached["samples"] = _read(CALIBRATION)["image"]
    return _cached["samples"]


def evaluation():
    """Evaluation images, float32 [1000, 28, 28, 1], and labels, int64 [1000]."""
    if "evaluation" not in _cached:
        found = _read(EVALUATION)
        _cached["evaluation"] = found["image"], found["label"]
    return _cached["evaluation"]


class Case(unittest.TestCase):
    """A test with a temporary folder `tmp` and the example model `model`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = pathlib.Path(folder.name)
        self.model = tare.load(GLYPHS / "saved_model")
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore", tare.TareWarning)

    def fails(self, error, text):
        """As assertRaises; the text of the exception contains `text`."""
        return self.assertRaisesRegex(error, re.escape(text))
