"""The tutorial runs as a script, with the results that it describes; so does the example of a model exported from JAX."""

import contextlib
import importlib.util
import io
import os
import pathlib
import runpy
import sys
import unittest
from unittest import mock

from support import ROOT, Case

import tare

EXAMPLES = ROOT / "python" / "examples"


def code_lines(path):
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and not line.lstrip().startswith("#")]


class Tutorial(Case):
    def run_script(self, script, *arguments):
        """Runs a script in the temporary folder, with the examples of the repository; returns its names and output."""
        (self.tmp / "examples").symlink_to(ROOT / "examples")
        before = os.getcwd()
        os.chdir(self.tmp)
        self.addCleanup(os.chdir, before)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.object(sys, "argv", [str(script), *arguments]):
            return runpy.run_path(str(script)), out.getvalue()

    def test_is_short(self):
        self.assertLess(len(code_lines(EXAMPLES / "tutorial.py")), 25)

    def test_leads_from_arrays_to_a_converted_model(self):
        names, output = self.run_script(EXAMPLES / "tutorial.py")
        self.assertIn("TensorSpec(name='image', dtype='float32', shape=(None, 28, 28, 1), number=1)", output)
        self.assertEqual(names["samples"].shape, (1000, 28, 28, 1))
        self.assertIn("<tare.Calibration of 1000 records", output)
        self.assertEqual(len(names["result"].rows), 7)
        self.assertIn(names["result"].verdict, output)
        if importlib.util.find_spec("pandas"):
            self.assertIn("tpu_seconds", output)
        self.assertIn("<svg", (self.tmp / "glyphs.html").read_text(encoding="utf-8"))
        self.assertIn("TPUPartitionedCall", tare.load(self.tmp / "glyphs_tpu").describe()["ops"])
        accuracy = (names["probabilities"].argmax(-1) == names["evaluation"]["label"]).mean()
        self.assertGreater(accuracy, 0.93)
        self.assertIn(f"{accuracy:.1%} correct", output)

    def test_models_exported_from_jax(self):
        data = pathlib.Path(os.environ.get("TARE_TEST_DATA") or os.environ.get("TARE_TEST_DATA_DEFAULT", "/nowhere"))
        models = sorted((data / "stablehlo" / "models").glob("jax_mlp*"))
        if not models:
            self.skipTest("no test data (TARE_TEST_DATA)")
        _, output = self.run_script(EXAMPLES / "jax_model.py", str(models[0]))
        self.assertIn("static", output)
        self.assertIn("50 records", " ".join(output.split()))  # the heading wraps where the path of the model is long
        self.assertIn("output_0", output.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
