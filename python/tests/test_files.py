"""Models as files: differences, validity, and StableHLO modules."""

import json
import subprocess
import unittest

import numpy as np
from support import GLYPHS, PROGRAM, ROOT, Case, samples

import tare

MODULES = ROOT / "tests" / "golden" / "stablehlo"


def printed(*arguments):
    """What the program prints."""
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True).stdout


class Differences(Case):
    def test_are_those_of_the_program(self):
        made = self.model.quantize("weight_only")
        made.save(self.tmp / "small")
        paths = GLYPHS / "saved_model", self.tmp / "small"
        expected = json.loads(printed("diff", *paths, "--json"))
        found = tare.diff(*paths)
        self.assertEqual(found, expected)
        self.assertEqual(tare.diff(self.model, self.tmp / "small"), expected)
        self.assertEqual(found.to_text(all=True), printed("diff", *paths, "--all"))
        self.assertNotEqual(found.to_text(all=True), found.to_text())
        self.assertTrue(tare.diff(self.model, made).to_html().startswith("<!doctype html>"))
        self.assertIn("<pre>", found._repr_html_())

    def test_of_arrays(self):
        for name, value in (("a", 1.0), ("b", 2.0)):
            np.save(self.tmp / name, np.full(3, value, np.float32))
        self.assertEqual(tare.diff(self.tmp / "a.npy", self.tmp / "b.npy"), json.loads(printed("diff", self.tmp / "a.npy", self.tmp / "b.npy", "--json")))
        with self.fails(tare.UsageError, "of one kind"):
            tare.diff(self.tmp, GLYPHS / "saved_model")
        with self.fails(tare.InvalidArgumentError, "null character"):
            tare.diff("a\0b", "c")


class Validity(Case):
    def test_is_that_of_the_program(self):
        self.assertEqual(tare.validate(GLYPHS / "saved_model"), json.loads(printed("validate", GLYPHS / "saved_model", "--json")))
        self.model.save(self.tmp / "damaged")
        with open(self.tmp / "damaged/variables/variables.data-00000-of-00001", "r+b") as file:
            file.write(b"\xff")
        found = tare.validate(self.tmp / "damaged", tags=["serve"])
        self.assertFalse(found["valid"])
        self.assertIn("Checksum", found["faults"][0]["what"])
        with self.fails(tare.NotFoundError, "/nowhere"):
            tare.validate("/nowhere")


class Modules(Case):
    def test_run_as_the_model(self):
        self.model.export(self.tmp / "m.mlirbc", batch=3)
        expected, [found] = self.model.run(samples()[:3])["probabilities"], tare.load(self.tmp / "m.mlirbc").run(samples()[:3]).values()
        np.testing.assert_allclose(found, expected, atol=1e-6)
        subprocess.run([PROGRAM, "export", GLYPHS / "saved_model", self.tmp / "p", "--batch=3", "--quiet"], check=True)
        self.assertEqual((self.tmp / "m.mlirbc").read_bytes(), (self.tmp / "p").read_bytes())

    def test_shapes_are_given_one_by_one(self):
        """Each is an option of its own: a comma is part of a shape."""
        with self.fails(tare.Error, "other"):
            self.model.export(self.tmp / "m.mlirbc", shape=["image=2,28,28,1", "other=1,2"])
        self.model.export(self.tmp / "m.mlirbc", shape=["image=2,28,28,1"])
        self.assertEqual(tare.load(self.tmp / "m.mlirbc").signatures["serving_default"].inputs["arg0"].shape, (2, 28, 28, 1))
        with self.fails(tare.Error, "other"):
            self.model.check(estimate=True, shape=["image=2,28,28,1", "other=1,2"])

    def test_are_unwrapped(self):
        model = tare.load(MODULES / "mlp.mlirbc")
        model.unwrap(self.tmp / "plain")
        subprocess.run([PROGRAM, "unwrap", MODULES / "mlp.mlirbc", self.tmp / "program", "--quiet"], check=True)
        self.assertEqual((self.tmp / "plain/saved_model.pb").read_bytes(), (self.tmp / "program/saved_model.pb").read_bytes())
        with self.fails(tare.InvalidArgumentError, "overwrite=True"):
            model.unwrap(self.tmp / "plain")
        with self.fails(tare.NotFoundError, "no XlaCallModule"):
            self.model.unwrap(self.tmp / "none")


if __name__ == "__main__":
    unittest.main()
