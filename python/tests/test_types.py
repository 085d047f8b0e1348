"""Options and their types: those of the library are those that type checkers know, and both find mistakes."""

import inspect
import keyword
import operator
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing
import unittest

from support import INSTALLED, PACKAGE, PROGRAM, ROOT, Case, evaluation, samples

import tare
from tare import _native, _types
from tare._options import _REPEATED, option_text

#: Named parameters, and options with another name or none in Python.
NAMED = {
    "quantize": {"method", "calibration", "algorithm", "granularity", "bits", "passes", "recipe"},
    "compare": {"with_", "methods", "algorithms", "label", "target", "metric", "signature", "spec", "sensitivity", "limit", "threads"},
    "calibrate": {"signature", "spec", "threads", "batch", "limit"},
    "show": {"html"},
}
#: Parameters whose names differ from those of the options.
RENAMED = {"with_": "others", "plugin": "plugins", "threads": "workers", "tpu_functions": "functions"}
#: Options of the commands that neither libtare nor Python has, by the reason.
_RESULTS = "the caller has the result as an object, which it describes, writes and prints"
_PROCESS = "the caller's own: messages go to the modules warnings and logging"
_LOAD = "a parameter of tare.load"
_CALLS = "another call of the library"
EXCEPTIONS = {
    **dict.fromkeys(("output", "json", "report", "wide", "dry_run", "quiet"), _RESULTS),
    **dict.fromkeys(("verbose", "log_file", "help"), _PROCESS),
    **dict.fromkeys(("plugin", "allow_missing_variables"), _LOAD),
}
OWN_EXCEPTIONS = {
    "calibrate": {
        "data": "a parameter: records in memory or paths",
        "input": "arrays in memory are data",
        "shard": "Calibration.merge joins the parts that a caller distributes",
        "resume": "the parameter state",
        "autosave": "the parameter state",
    },
    "auto": {},
    "diff": {"all": _CALLS + ": Difference.to_text"},
    "export": {},
    "unwrap": {"tags": _LOAD},
    "validate": {},
    "check": {
        "with_": "two reports are compared by the caller",
        "top": "the report has all ops",
    },
    "quantize": {"overwrite": _CALLS + ": Model.save"},
    "compare": {
        "data": "the parameter calibration: a Calibration, or data for one",
        "eval": "the parameter data: records in memory or paths",
        "input": "arrays in memory are data",
        "calibration": "a parameter: a Calibration, or data for one",
        "explain": _CALLS + ": Comparison.describe, the key explanations",
        "node_data": _CALLS + ": Comparison.to_node_data",
        "write_recipe": _CALLS + ": the arguments of the best row",
        "worst": _CALLS + ": the arguments of the best row",
    },
    "convert": {
        "overwrite": _CALLS + ": Model.save",
        "input_model_dir": "the model is an object",
        "output_model_dir": "the copy is an object",
        "converter_options_string": "the parameter options",
        "converter_options_file": "the parameter options",
        "float": "the program names it in the command that it prints next",
        "tags": "the parameter keep_tags",
        "check": _CALLS + ": Model.check",
        "keep_module": "a form for servers with one version of XLA, made from a file by the program",
        "stablehlo": "a form of files, of the program: convert, then export",
        "bfloat16": "the field bfloat16_optimization of the options; its check runs records of files",
    },
}
#: Commands by their call in Python. The reasons are those of calls that Python has not.
COMMANDS = {
    "auto": tare.Model.auto,
    "batch": tare.batch,
    "calibrate": tare.calibrate,
    "check": tare.Model.check,
    "compare": tare.compare,
    "convert": tare.Model.convert,
    "diff": tare.diff,
    "export": tare.Model.export,
    "inspect": tare.Model.describe,
    "merge": tare.Calibration.merge,
    "quantize": tare.Model.quantize,
    "run": tare.Model.run,
    "show": tare.Calibration.describe,
    "unwrap": tare.Model.unwrap,
    "validate": tare.validate,
    "dataset": "read_records and write_records; what there is in data and how to split it is the program's",
    "copy": "copies files; the standard library of every language does",
    "ops": "lists what the program's tables have",
    "completion": "of the shell",
    "help": "of the program",
    "version": "tare.__version__",
}
#: Options of quantize that compare has not.
NOT_COMPARED = {
    **dict.fromkeys(("method", "passes"), "--methods varies them"),
    "algorithm": "--algorithms varies it",
    "granularity": "--granularities varies it",
    **dict.fromkeys(("for", "keep-variables", "overwrite", "allow-unquantized", "allow-missing-variables"), "of a model that is written"),
}
MISTAKES = (
    'tare.compare(model, "d", methods=["dynamc"])',
    'tare.compare(model, "d", chip="v9")',
    'model.quantize("statik")',
    'model.quantize("static", granularty="per_tensor")',
    'model.quantize("static", bits=5)',
    'tare.compare(model, "d", methods=["weight_only:bit=4"])',
    'tare.compare(model, "d", algorithms="percentil:p=99.9")',
    'tare.calibrate(model, 1, threads=2)',
    'tare.calibrate(model, 1, observe="al")',
    'tare.setting("weightonly", bits=4)',
)
CORRECT = (
    'tare.compare(model, "d", methods=["weight_only:bits=4+gptq", "static+bfloat16", "int8"], algorithms="percentile:p=99.9")',
    'methods = [tare.setting("static"), tare.Setting("weight_only:bits=4:block=256+gptq+bias_correction")]',
    'tare.compare(model, "d", methods=methods, workers=2, calibration=tare.calibrate(model, 1, workers=2))',
    'tare.compare(model, "d", methods=["dynamic", tare.setting("weight_only", "gptq", bits=4)], chip="v5e", others=[model])',
    'model.quantize("int8", depthwise=True, granularity="per_block:64", passes=["gptq"], algorithm="mse")',
    'model.quantize(**(tare.compare(model, "d").best() or {})["arguments"])',
    'tare.calibrate(model, 1, observe="all", channels=True).describe(algorithms=["mse"])',
    'with tare.load("x") as opened: opened.run(1, batch_size=3)',
)


def python_name(option):
    """The name of a keyword argument: words of the language have an underscore at their end."""
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


class Options(Case):
    def options(self, command):
        """Names of the options of a command of the program, by its help."""
        text = subprocess.run([PROGRAM, command, "--help"], check=True, capture_output=True, text=True).stdout
        return re.findall(r"^ {2,6}(?:-\w, )?--([a-z0-9_-]+)", text, re.MULTILINE)

    def accepted(self, command, call):
        """Options of a command of the program that a function of the library takes."""
        found = set()
        for name in self.options(command):
            try:
                call(name)
            except tare.Error as error:
                if "unknown option" in str(error):
                    continue
            found.add(python_name(name))
        return found - {"help"} - NAMED[command]

    def test_are_those_of_the_library(self):
        calibration = tare.calibrate(self.model, samples()[:2])
        handle, value = self.model._handle, str(self.tmp / "none")

        def compared(name):
            _native.comparison_open(handle, iter(()), None, None, None, None, False, option_text({name: value}))

        calls = {
            "quantize": (_types.QuantizeOptions, lambda name: _native.model_quantize(handle, "float", None, option_text({name: value}), False)),
            "compare": (_types.CompareOptions, compared),
            "calibrate": (_types.CalibrateOptions, lambda name: _native.calibrator_open(handle, option_text({name: value}))),
            "show": (_types.DescribeOptions, lambda name: calibration.describe(**{name: value})),
        }
        for command, (known, call) in calls.items():
            with self.subTest(command):
                self.assertEqual(self.accepted(command, call), set(known.__annotations__))

    def test_of_the_commands_are_in_the_library_and_in_python(self):
        """An option that only a command has is an exception with a reason; one that is no exception any more is none."""
        calls = {command: COMMANDS[command] for command in OWN_EXCEPTIONS}
        types = {"calibrate": _types.CalibrateOptions, "quantize": _types.QuantizeOptions, "compare": _types.CompareOptions}
        known = {}
        for command, call in calls.items():
            parameters = set(inspect.signature(call).parameters) - {"options"}
            known[command] = parameters | set(typing.get_type_hints(types[command]) if command in types else ())
        known["convert"] |= known["quantize"]  # a conversion takes what quantize returns
        for command in calls:
            with self.subTest(command):
                options = {python_name(name) for name in self.options(command)}
                missing = {name for name in options if RENAMED.get(name, name) not in known[command]}
                own = OWN_EXCEPTIONS[command]
                self.assertEqual(missing - set(EXCEPTIONS) - set(own), set(), "neither in Python nor an exception")
                self.assertEqual({name for name in own if name not in options}, set(), "exceptions that are no options")
                self.assertEqual(known[command] & set(EXCEPTIONS), set(), "exceptions that Python has")
                for name in re.findall(r"\b[A-Z]\w+\.\w+", " ".join(own.values())):
                    self.assertTrue(operator.attrgetter(name)(tare), name)
                of_load = {RENAMED.get(name, name) for name, reason in {**EXCEPTIONS, **own}.items() if reason == _LOAD}
                self.assertEqual(of_load - set(inspect.signature(tare.load).parameters), set(), "no parameters of tare.load")

    def test_that_are_repeated_are_given_one_by_one(self):
        text = subprocess.run([PROGRAM, "completion", "zsh"], check=True, capture_output=True, text=True).stdout
        repeated = set()
        for command in OWN_EXCEPTIONS:
            body = re.search(rf"^_tare_{command}\(\) \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL).group(1)
            repeated |= set(re.findall(r"'\*'--([a-z0-9-]+)=", body))
        self.assertEqual(_REPEATED - repeated, set(), "not repeated")
        self.assertEqual({python_name(name) for name in repeated - _REPEATED} - set(EXCEPTIONS) - {"input", "function"}, set())

    def test_of_the_library_are_those_of_its_page(self):
        """docs/library.md lists the options of the functions whose options are not all of a command's."""
        handle, calibration, missing = self.model._handle, tare.calibrate(self.model, samples()[:2])._handle, str(self.tmp / "none")
        calls = {
            "tare_model_calibrate": lambda text: _native.model_calibrate(handle, [], text),
            "tare_calibration_report": lambda text: _native.calibration_report(calibration, text),
            "tare_model_check": lambda text: _native.model_check(handle, f"signature=none {text}"),
            "tare_model_auto": lambda text: _native.model_auto(handle, missing, [missing.encode()], text),
            "tare_model_export": lambda text: _native.model_export(handle, missing, f"{text} signature=none"),
            "tare_model_diff": lambda text: _native.model_diff(handle, handle, f"{text} html text"),
        }
        names = {name for command in COMMANDS for name in self.options(command)} - {"help"}
        page = (ROOT / "docs" / "library.md").read_text()
        for function, call in calls.items():
            listed = set(re.findall(r"`([a-z-]+)`", re.search(rf"^\| `{function}`[^|]*\|([^|]*)\|", page, re.MULTILINE).group(1)))
            accepted = set()
            for name in names | listed | {"hessians", "name", "state", "page", "text"}:
                try:
                    call(f"{name}=x")
                except tare.Error as error:
                    if "unknown option" in str(error):
                        continue
                accepted.add(name)
            with self.subTest(function):
                self.assertEqual(accepted - {"name"} if function == "tare_model_calibrate" else accepted, listed)

    def test_every_command_is_a_call_or_has_a_reason(self):
        text = subprocess.run([PROGRAM, "help"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(set(re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE)), set(COMMANDS))

    def test_of_plans_are_in_every_command_that_makes_models(self):
        """The rows of a plan are in quantize and convert, and in compare but for those that a comparison varies."""
        quantize, convert, compare = (set(self.options(command)) for command in ("quantize", "convert", "compare"))
        self.assertEqual(quantize - convert, set())
        self.assertEqual(quantize - compare, set(NOT_COMPARED))

    def test_names_are_those_of_the_library(self):
        calibration = tare.calibrate(self.model, samples()[:2], channels=True)
        for method in typing.get_args(_types.MethodName):
            if method != "bfloat16":  # of compare
                self.model.quantize(method, calibration, allow_unquantized=True)
        for algorithm in (*typing.get_args(_types.AlgorithmName), *typing.get_args(_types.AlgorithmText)):
            calibration.ranges(algorithm)
        for name in typing.get_args(_types.PassName):
            if name != "gptq":  # needs Hessians
                self.model.layers("static", calibration, passes=name)
        for granularity in typing.get_args(_types.Granularity):
            self.model.layers("weight_only", granularity=granularity)
        complete = tare.calibrate(self.model, samples()[:2], channels=True, hessians=True)
        result = tare.compare(self.model, samples()[:1], methods=typing.get_args(_types.MethodText), calibration=complete)
        self.assertNotIn("skipped", result.describe())
        for chip in typing.get_args(_types.Chip):
            tare.compare(self.model, samples()[:1], methods=["float"], chip=chip)

    def test_mistakes_name_what_resembles_them(self):
        images = samples()[:2]
        self.model.save(self.tmp / "saved")
        for call, text in (
            (lambda: tare.compare(self.model, images, methods=["dynamc"]), "unknown method 'dynamc' (did you mean 'dynamic'?)"),
            (lambda: self.model.quantize("statik"), "did you mean 'static'?"),
            (lambda: self.model.quantize("static", granularty="x"), "unknown option 'granularty' (did you mean 'granularity'?)"),
            (lambda: tare.calibrate(self.model, images, threads=2), "unknown option 'threads' (did you mean 'workers'?)"),
            (lambda: tare.compare(self.model, images, threads=2), "did you mean 'workers'?"),
            (lambda: self.model.convert(functionz="a"), "no field 'functionz' (did you mean 'functions'?)"),
            (lambda: self.model.save(self.tmp / "saved"), "(pass overwrite=True to replace it)"),
        ):
            with self.fails(tare.InvalidArgumentError, text):
                call()

    def test_models_of_others_say_what_to_do(self):
        keras = type("Sequential", (), {"__module__": "keras.src.models.sequential"})
        torch = type("Module", (), {"__module__": "torch.nn", "__call__": lambda self: 0})
        for model, text in (
            (keras(), "got Sequential (write it with model.export('my_model') and open it with tare.load('my_model'))"),
            (type("Mine", (keras,), {})(), "model.export("),
            (torch(), "docs/exporting.md"),
            ("my_model", "got str (open it with tare.load('my_model'))"),
        ):
            with self.fails(tare.InvalidArgumentError, text):
                tare.calibrate(model, samples()[:2])


class Objects(Case):
    def test_are_closed_by_with(self):
        with tare.load(self.model.path) as model, tare.calibrate(self.model, samples()[:5]) as calibration:
            small = model.quantize("static", calibration)
        for use in (lambda: model.run(samples()[:1]), lambda: model.weight_bytes):
            with self.fails(tare.InvalidArgumentError, "model: is closed"):
                use()
        with self.fails(tare.InvalidArgumentError, "calibration: is closed"):
            calibration.records
        self.assertEqual(small.run(samples()[:1])["probabilities"].shape, (1, 10))

    def test_of_models_are_shown_in_notebooks(self):
        shown = self.model._repr_html_()
        for text in ("serving_default", "image", "[?, 28, 28, 1]", "probabilities", "0.153 MB"):
            self.assertIn(text, shown)

    def test_in_memory_are_compared(self):
        X, Y = (array[:100] for array in evaluation())
        small = self.model.quantize("weight_only", bits=4, granularity="per_block:32")
        result = tare.compare(self.model, (X, Y), others={"small": small, "TPU": self.model.convert(), "same": self.model.path})
        self.assertEqual(result.rows.column("method"), ["float", "small", "TPU", "same"])
        self.assertEqual(result.rows.column("size_bytes")[1], small.weight_bytes)
        expected = float((small.run(X)["probabilities"].argmax(axis=1) == Y).mean())
        self.assertAlmostEqual(result.rows.column("top1")[1], expected)
        self.assertEqual(result.rows.column("top1")[3], result.rows.column("top1")[0])
        self.assertEqual(tare.compare(self.model, X, others=small).rows.column("method"), ["float", "model 1"])
        for others, text in ((7, "expected a Model or a path, got int"), ({"a/b": small}, "invalid name 'a/b'")):
            with self.fails(tare.InvalidArgumentError, text):
                tare.compare(self.model, X, others=others)

    def test_mixes_of_a_target_are_the_best(self):
        images, labels = (array[:200] for array in evaluation())
        result = tare.compare(self.model, (images, labels), methods=["weight_only"], bits=4, min_sqnr=25)
        best = result.best()
        self.assertGreater(len(best["arguments"]["rule"]), 0)
        self.assertEqual(self.model.quantize(**best["arguments"]).weight_bytes, best["size_bytes"])
        self.assertGreaterEqual(best["sqnr_db"], 25)


def mypy_version():
    from mypy.version import __version__

    return __version__


class Checkers(unittest.TestCase):
    def check(self, module, *arguments):
        try:
            __import__(module)
        except ImportError:
            self.skipTest(f"{module} is not installed")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "user.py"
            program.write_text("import tare\nmodel = tare.load('x')\n" + "\n".join((*CORRECT, *MISTAKES)) + "\n")
            if module == "mypy" and tuple(map(int, mypy_version().split(".")[:2])) < (1, 7):
                arguments = (*arguments, "--enable-incomplete-feature=Unpack")
            examples = (ROOT / "python/examples/tutorial.py", ROOT / "python/examples/jax_model.py")
            command = [sys.executable, "-m", module, *arguments, str(program), *map(str, examples)]
            where = folder if INSTALLED else PACKAGE.parent
            found = subprocess.run(command, cwd=where, capture_output=True, text=True, env={**os.environ, "MYPY_CACHE_DIR": folder}).stdout
        lines = {int(line) for line in re.findall(r"user\.py:(\d+):.*\berror\b", found)}
        self.assertNotRegex(found, r"(tutorial|jax_model)\.py:.*\berror\b(?!.*\[(no-untyped|import-))", found)
        first = 3 + len(CORRECT)
        self.assertEqual(lines, set(range(first, first + len(MISTAKES))), found)

    def test_mypy_finds_mistakes(self):
        self.check("mypy", "--strict")

    def test_pyright_finds_mistakes(self):
        self.check("pyright")


if __name__ == "__main__":
    unittest.main()
