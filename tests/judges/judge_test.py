"""Tests of the judges' own code that need no TensorFlow: `python3 -m unittest judge_test`, as tests/cli/judges_test.sh does."""
from __future__ import annotations

import ast
import contextlib
import fnmatch
import io
import os
import signal
import subprocess
import tempfile
import textwrap
import unittest
import unittest.mock
from pathlib import Path

import compilation
import judge
import known
import results
from catalogue import GROUPS
from steps import STEPS_OF_A_MODEL

HERE = Path(__file__).parent
ZOO = sorted(path for path in (HERE / "zoo").glob("*.py") if path.stem not in ("__init__", "saving"))
CHECKS = {"tare", "validate", "load", "load-v1", "cli", "functions", "values", "placed", "v5e", "v6e", "compiler", "weights", "numbers", "outputs"}


def rows(path: Path) -> dict[str, dict[str, ast.expr]]:
    """{model: arguments of its @model} of a module of zoo/."""
    functions = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
    calls = {node.name: call for node in functions for call in node.decorator_list if isinstance(call, ast.Call)}
    return {name: {one.arg or "": one.value for one in call.keywords} for name, call in calls.items()}


class Tables(unittest.TestCase):
    """The tables agree with each other."""

    def test_models__have_a_process_and_names_of_their_own(self) -> None:
        self.assertEqual([path.stem for path in ZOO], sorted(module for group, _ in GROUPS for module in group))
        names = [name for path in ZOO for name in rows(path)]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 60)

    def test_quick_models__need_no_process_of_their_own(self) -> None:
        quick = {path.stem for path in ZOO for arguments in rows(path).values() if "quick" in arguments}
        self.assertLessEqual(quick, {module for group, environment in GROUPS if not environment for module in group})

    def test_refusals__name_steps(self) -> None:
        names = ["calibrate", *(step.name for step in STEPS_OF_A_MODEL)]
        for path in ZOO:
            for name, arguments in rows(path).items():
                refuses = arguments.get("refuses")
                for key in filter(None, refuses.keys if isinstance(refuses, ast.Dict) else []):     # None: ** of another table
                    pattern = ast.literal_eval(key)
                    self.assertTrue(fnmatch.filter(names, pattern), f"{name}: no step {pattern}")

    def test_known_failures__name_models_and_checks(self) -> None:
        names = {name for path in ZOO for name in rows(path)}
        for place, reason in known.KNOWN.items():
            model, _, check = place.split(" ")
            self.assertTrue(model in names or model.startswith("quantizer/"), place)
            self.assertIn(check.split(":")[0], CHECKS, place)
            self.assertTrue(reason, place)

    def test_requirements__have_versions_and_hashes(self) -> None:
        for path in (HERE / "requirements").glob("*.txt"):
            for line in path.read_text(encoding="utf-8").splitlines():
                self.assertRegex(line, r"^[\w.\-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}$")


WORKER = '''
import json, os, sys
task = json.loads(sys.argv[1])
names = [name for name in "abcdefghij"][task["skip"]:][:task["count"]]
left = 10 - task["skip"] - len(names)
with open(task["journal"], "a") as file:
    print(json.dumps({"mark": "left", "value": left}), file=file)
    for i, name in enumerate(names):        # the next model is started before one is judged
        for started in names[:2] if i == 0 else names[i + 1:i + 2]:
            print(json.dumps({"mark": "started", "value": started}), file=file, flush=True)
        if name == "c":
            os.abort()
        print(json.dumps({"model": name, "step": "run", "check": "values", "status": "passed", "text": ""}), file=file)
        print(json.dumps({"mark": "finished", "value": [name, 1.0]}), file=file, flush=True)
'''


class Processes(unittest.TestCase):
    """A process that ends early fails one model; the others are judged by the next."""

    def test_abort__fails_its_model_alone(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), \
                unittest.mock.patch.dict(os.environ, TARE_JUDGES_WITHOUT_TPU="1"):
            (Path(folder) / "worker.py").write_text(textwrap.dedent(WORKER), encoding="utf-8")
            before, judge.HERE, groups, judge.GROUPS = judge.HERE, Path(folder), judge.GROUPS, ((["letters"], {}),)
            try:
                found = results.Results({}, Path(folder) / "results.json")
                models = judge.Judges("all", [], found, Path(folder), keep=False).zoo()
            finally:
                judge.HERE, judge.GROUPS = before, groups
        self.assertEqual(models, 10)
        self.assertEqual([one.model for one in found.findings if one.status == results.PASSED], list("abdefghij"))
        self.assertEqual([(one.model, one.check) for one in found.findings if one.status == results.FAILED], [("c", "abort")])

    def test_a_run_that_continues__judges_what_is_missing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.json"
            before, after = results.Results({}, path), results.Results({}, path)
            before.findings = [results.Finding(name, "s", "load", results.PASSED) for name in ("a", "b", "quantizer/dense")]
            before.finished("a")
            before.save()
            after.load()
            self.assertEqual([one.model for one in after.findings], ["a", "quantizer/dense"])
            self.assertEqual(judge.Judges("all", [], after, Path(folder), keep=False).task()["known"], ["a"])

    def test_known_failure__is_skipped_and_fails_when_it_passes(self) -> None:
        found = results.Results({"m s load": "a reason"}, Path())
        with contextlib.redirect_stdout(io.StringIO()) as lines:
            found.add(results.Finding("m", "s", "load", results.FAILED, "an error"))
            self.assertFalse(found.failed)
            found.add(results.Finding("m", "s", "load", results.PASSED))
        self.assertTrue(found.failed)
        self.assertIn("remove it from known.py", lines.getvalue())
        self.assertTrue(found.table().endswith("0 passed, 1 failed, 1 skipped"))


class Compiler(unittest.TestCase):
    """A TPU compiler that ends the process."""

    def test_the_programs_after_one_that_ends_it__are_compiled(self) -> None:
        begun = []
        ends = {"b": (139, "*** SIGSEGV STACK OVERFLOW"), "d": (-signal.SIGXCPU, ""), "e": (1, "an error")}

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess:
            journal, skip = results.Journal(Path(command[-3])), int(command[-1])
            begun.append(skip)
            for name in list("abcdef")[skip:]:
                journal.mark("program", f"{name}@s@1@v5e")
                if name in ends:
                    return subprocess.CompletedProcess(command, ends[name][0], "", ends[name][1])
                journal.add(name, "s", "v5e", results.PASSED)
            return subprocess.CompletedProcess(command, 0, "", "")

        found = results.Results({}, Path())
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("compilation.subprocess.run", run), \
                contextlib.redirect_stdout(io.StringIO()):
            compilation.compile_all(Path(folder), Path(folder) / "journal", found)
        self.assertEqual(begun, [0, 2, 4, 5])
        self.assertEqual([(one.model, one.check, one.status) for one in found.findings],
                         [(name, "v5e", results.SKIPPED if name in "bd" else results.FAILED if name == "e" else results.PASSED)
                          for name in "abcdef"])
        self.assertIn("exceeds the time", found.findings[3].text)


if __name__ == "__main__":
    unittest.main()
