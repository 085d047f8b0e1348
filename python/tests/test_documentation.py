"""Every public name is documented, its examples run, and its types pass mypy --strict."""

import doctest
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
from support import GLYPHS, PACKAGE, ROOT, evaluation, samples

import tare



def public(scope=tare):
    """Public names with their objects: those of __all__, and the members that their classes define."""
    for name in scope.__all__:
        value = getattr(scope, name)
        if inspect.ismodule(value):
            yield from ((f"{name}.{inner}", item) for inner, item in public(value))
            continue
        yield name, value
        if inspect.isclass(value):
            for member, item in vars(value).items():
                if not member.startswith("_") and (callable(item) or isinstance(item, (property, classmethod))):
                    yield f"{name}.{member}", getattr(value, member) if isinstance(item, classmethod) else item


def undocumented(names):
    return [name for name, value in names if not (getattr(value, "__doc__", None) or "").strip()]


class Docstrings(unittest.TestCase):
    def test_every_public_name_has_one(self):
        names = list(public())
        self.assertGreater(len(names), 60)
        self.assertEqual(undocumented(names), [])

    def test_the_check_finds_a_missing_one(self):
        def bare():
            pass

        self.assertEqual(undocumented([("bare", bare), ("load", tare.load)]), ["bare"])

    def test_parameters_are_described(self):
        missing = []
        for name, value in public():
            if not inspect.isfunction(value) or value.__qualname__.startswith(("_", "Metric")):
                continue
            text = value.__doc__ or ""
            for parameter in inspect.signature(value).parameters:
                if parameter not in ("self", "cls") and parameter not in text:
                    missing.append(f"{name}({parameter})")
        self.assertEqual(missing, [])

    def test_names_are_exported_once_and_exist(self):
        self.assertEqual(len(set(tare.__all__)), len(tare.__all__))
        self.assertEqual(sorted(tare.__all__), tare.__all__)


class Examples(unittest.TestCase):
    def test_examples_run(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        images, labels = evaluation()
        model = tare.load(GLYPHS / "saved_model")
        calibration = tare.calibrate(model, samples()[:200])
        names = {"tare": tare, "np": np, "glyphs": GLYPHS, "tmp": pathlib.Path(folder.name), "model": model,
                 "images": np.concatenate([samples(), images]), "labels": np.concatenate([np.zeros(300, int), labels]),
                 "calibration": calibration}  # fmt: skip
        names["result"] = tare.compare(model, (images[:100], labels[:100]), methods=["weight_only", "dynamic"], margin=10)
        finder = doctest.DocTestFinder(recurse=False)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        count = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tare.TareWarning)
            for name, value in public():
                for test in finder.find(value, name, globs=dict(names), module=False):
                    count += len(test.examples)
                    runner.run(test)
        self.assertGreater(count, 40)
        self.assertEqual(runner.failures, 0)


class Reference(unittest.TestCase):
    def test_the_page_is_of_these_docstrings(self):
        found = subprocess.run(
            [sys.executable, ROOT / "scripts" / "make-python-reference.py"],
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)}, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        page = (ROOT / "docs" / "python-reference.md").read_text(encoding="utf-8")
        self.assertEqual(found, page, "run: PYTHONPATH=build/python scripts/make-python-reference.py > docs/python-reference.md")


class Types(unittest.TestCase):
    def run_mypy(self, *arguments):
        try:
            import mypy  # noqa: F401
        except ImportError:
            self.skipTest("mypy is not installed")
        from mypy.version import __version__

        unpack = ["--enable-incomplete-feature=Unpack"] if tuple(map(int, __version__.split(".")[:2])) < (1, 7) else []
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *unpack, *arguments],
                cwd=PACKAGE.parent, capture_output=True, text=True,
            )  # fmt: skip

    def test_the_package_passes_mypy_strict(self):
        result = self.run_mypy("-p", "tare")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_users_get_types(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "user.py"
            path.write_text("import tare\nmodel: int = tare.load('x')\n")
            result = self.run_mypy(str(path))
        self.assertIn('expression has type "Model"', result.stdout)


if __name__ == "__main__":
    unittest.main()
