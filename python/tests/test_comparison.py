"""Comparisons: data from memory gives the figures of the file; metrics in Python; reports."""

import copy
import json
import pickle
import shutil
import subprocess
import unittest
import warnings

import numpy as np
from support import CALIBRATION, EVALUATION, GLYPHS, PROGRAM, Case, evaluation, samples

import tare

try:
    import pandas
except ImportError:
    pandas = None

FIGURES = ("method", "top1", "sqnr_db", "answers_hash", "size_bytes")


def figures(comparison):
    return [{name: row.get(name) for name in FIGURES} for row in comparison.rows]


def accuracy(outputs, labels):
    return float((outputs.argmax(-1) == labels).mean())


class Data(Case):
    def setUp(self):
        super().setUp()
        self.images, self.labels = (part[:60] for part in evaluation())
        self.expected = figures(tare.compare(self.model, EVALUATION, limit=60, methods=["weight_only", "dynamic"]))

    def same(self, data, **arguments):
        found = tare.compare(self.model, data, methods=["weight_only", "dynamic"], **arguments)
        self.assertEqual(figures(found), self.expected)

    def test_pairs_of_arrays(self):
        self.same((self.images, self.labels))

    def test_dicts_of_arrays(self):
        self.same({"image": self.images, "class": self.labels}, label="class")

    def test_generators(self):
        self.same({"image": image, "label": label} for image, label in zip(self.images, self.labels))

    def test_the_limit_ends_the_generator(self):
        taken = []

        def endless():
            while True:
                taken.append(1)
                yield {"image": samples()[0]}

        result = tare.compare(self.model, endless(), methods=["weight_only"], limit=7)
        self.assertEqual(len(taken), 7)
        self.assertEqual(result.describe()["records"], 7)
        with self.fails(tare.UsageError, "limit: invalid number of records"):
            tare.compare(self.model, endless(), limit=-1)

    def test_generators_of_pairs(self):
        self.same(zip(self.images, self.labels), workers=2)

    def test_labels_of_models_with_a_fixed_batch(self):
        """The model with a first dimension of 4: an open one, -1, is a varint of ten bytes, and so is this 4."""
        shutil.copytree(GLYPHS / "saved_model", self.tmp / "fixed")
        graph = self.tmp / "fixed" / "saved_model.pb"
        graph.write_bytes(graph.read_bytes().replace(b"\x08" + b"\xff" * 9 + b"\x01", b"\x08\x84" + b"\x80" * 8 + b"\x00"))
        model = tare.load(self.tmp / "fixed")
        self.assertEqual(model.signatures["serving_default"].inputs["image"].shape, (4, 28, 28, 1))
        batches, classes = self.images.reshape(15, 4, 28, 28, 1), self.labels.reshape(15, 4)
        one_hot = np.eye(10, dtype=np.float32)[self.labels]
        for data in ((self.images, self.labels), (batches, classes), (batches, self.labels), (self.images, classes),
                     (self.images, one_hot), {"image": self.images, "label": self.labels}, zip(batches, classes)):  # fmt: skip
            result = tare.compare(model, data, methods=["weight_only"])
            self.assertEqual((result.measure, result.describe()["records"]), ("top1", 15))
            self.assertEqual([row["top1"] for row in result.rows], [row["top1"] for row in self.expected[:2]])
        np.savez(self.tmp / "rows.npz", image=self.images, label=self.labels)
        result = tare.compare(model, self.tmp / "rows.npz", methods=["weight_only"])
        self.assertEqual([row["top1"] for row in result.rows], [row["top1"] for row in self.expected[:2]])
        expected = self.model.run(self.images)["probabilities"]
        for data in (self.images, {"image": self.images}, iter([self.images[:4], self.images[4:]])):
            np.testing.assert_array_equal(model.run(data)["probabilities"], expected)
        with self.fails(tare.ShapeError, "inputs: the model takes 4 rows at a time (expected a multiple of 4 rows, got 59)"):
            model.run(self.images[:59])
        with self.fails(tare.ShapeError, "data: record 0: label 'label' has the wrong number of elements (expected 4, got 1)"):
            tare.compare(model, (self.images, self.labels[:15]), methods=["weight_only"])
        with self.fails(tare.InvalidArgumentError, "different numbers of records (image 15, label 59)"):
            tare.compare(model, (self.images, self.labels[:59]), methods=["weight_only"])

    def test_labels_that_are_not_classes(self):
        labels = self.labels.copy()
        labels[:5] = 10
        expected = r"5 of 60 labels are not classes of the output and are not counted \(got 10, expected 0 to 9"
        with self.assertWarnsRegex(tare.TareWarning, expected):
            tare.compare(self.model, (self.images, labels), methods=["weight_only"])

    def test_labels_that_are_not_indices(self):
        labels = self.labels.copy()
        labels[3] = -1
        with self.assertRaisesRegex(tare.Error, r"record 3: label 'label' is not a class index \(got -1\)"):
            tare.compare(self.model, (self.images, labels), methods=["weight_only"])

    def test_expected_values_beside_inputs(self):
        expected = next(iter(self.model.run({"image": self.images}).values())) + 0.25
        result = tare.compare(self.model, (self.images, expected), methods=["weight_only"], target="label")
        self.assertEqual(result.measure, "mae")
        self.assertAlmostEqual(result.rows[0]["expected_mean_abs_error"], 0.25, places=5)
        with self.assertRaisesRegex(tare.Error, r"record 0: label 'label' is not a class index \(got .*; give expected values as the target\)"):
            tare.compare(self.model, (self.images, expected[:, :1]), methods=["weight_only"])

    def test_specs_are_of_files(self):
        with self.fails(tare.UsageError, "spec: applies to files"):
            tare.compare(self.model, (self.images, self.labels), methods=["weight_only"], spec="a.spec")

    def test_generator_exceptions(self):
        def broken():
            yield {"image": self.images[0]}
            raise ZeroDivisionError("in the generator")

        with self.assertRaisesRegex(ZeroDivisionError, "in the generator"):
            tare.compare(self.model, broken(), methods=["weight_only"])
        self.same((self.images, self.labels))


class Metrics(Case):
    def test_functions_rank_the_models(self):
        images, labels = evaluation()
        found = tare.compare(self.model, (images[:80], labels[:80]), methods=["weight_only"], metric=accuracy)
        self.assertEqual(found.measure, "accuracy")
        for row in found.rows:
            self.assertAlmostEqual(row["value"], row["top1"])
        self.assertIn("accuracy", found.to_html())
        self.assertIn("accuracy", str(found))

    def test_functions_get_the_labels_of_all_records(self):
        records = [{"image": image, **({"label": 1} if i else {})} for i, image in enumerate(samples()[:4])]
        with self.fails(tare.InvalidArgumentError, "3 of 4 records have 'label'"):
            tare.compare(self.model, records, methods=["weight_only"], metric=lambda outputs, labels: 1.0)

    def test_objects_take_one_record_at_a_time(self):
        class Count:
            lower_is_better = True

            def __init__(self):
                self.models, self.records = 0, 0

            def reset(self):
                self.models += 1
                self.records = 0

            def update(self, outputs, record):
                assert outputs["probabilities"].shape == (1, 10) and "image" in record
                self.records += 1

            def result(self):
                return self.records

        count = Count()
        found = tare.compare(self.model, samples()[:30], methods=["weight_only", "dynamic"], metric=count)
        self.assertEqual((count.models, count.records), (3, 30))
        self.assertEqual(found.rows.column("value"), [30.0, 30.0, 30.0])

    def test_exceptions_of_a_metric_are_raised(self):
        def broken(outputs, labels):
            raise KeyError("of the metric")

        with self.assertRaisesRegex(KeyError, "of the metric"):
            tare.compare(self.model, samples()[:5], methods=["weight_only"], metric=broken)
        self.assertEqual(len(tare.compare(self.model, samples()[:5], methods=["weight_only"]).rows), 2)

    def test_built_in_metrics_by_name(self):
        found = tare.compare(self.model, evaluation(), limit=20, methods=["weight_only"], metric="sqnr")
        self.assertEqual(found.measure, "sqnr")


class Reports(Case):
    def setUp(self):
        super().setUp()
        calibration = tare.calibrate(self.model, samples()[:100])
        self.result = tare.compare(
            self.model, evaluation(), calibration=calibration, limit=50, methods=["static", "weight_only"],
            algorithms=["min_max", "mse"], sensitivity=True,
        )  # fmt: skip

    def test_rows_and_best(self):
        self.assertEqual([row["method"] for row in self.result.rows], ["float", "static", "static", "weight_only"])
        best = self.result.best()
        self.assertTrue(best is None or best["recommended"])
        self.assertTrue(self.result.verdict)
        self.assertIn("4 models on 50 records", repr(self.result))

    def test_arguments_make_the_models_of_the_rows(self):
        images, labels = (part[:40] for part in evaluation())
        calibration = tare.calibrate(self.model, samples()[:60], hessians=True)
        result = tare.compare(
            self.model, (images, labels), calibration=calibration, depthwise=True, algorithms=["mse", "percentile:p=99.9"], margin=90,
            methods=["weight_only:bits=4:block=32", "weight_only+gptq", "static:activation_bits=16+smooth_quant:alpha=0.5",
                     "static:op_set=tf", "dynamic", "bfloat16", "weight_only+bfloat16"],
        )  # fmt: skip
        made = 0
        for row in result.rows:
            if row["method"] in ("float", "bfloat16", "weight_only+bfloat16"):
                self.assertIsNone(row["arguments"])
                continue
            model = self.model.quantize(**row["arguments"], calibration=calibration)
            outputs = np.concatenate([model.run(image[None])["probabilities"] for image in images])  # as records are run
            self.assertEqual(model.weight_bytes, row["size_bytes"], row["method"])
            self.assertAlmostEqual(float((outputs.argmax(-1) == labels).mean()), row["top1"], msg=row["method"])
            error = float(np.abs(outputs - self.model.run(images)["probabilities"]).mean())
            self.assertAlmostEqual(error, row["mean_abs_error"], delta=1e-6 + 1e-3 * row["mean_abs_error"], msg=row["method"])
            made += 1
        self.assertEqual(made, 7)
        self.assertIn("arguments", result.best())

    def test_copies_have_rows_of_their_own(self):
        result = tare.compare(self.model, samples()[:5], methods=["weight_only"])
        for made in (copy.copy(result), copy.deepcopy(result)):
            self.assertEqual(list(made.rows), list(result.rows))
            made.rows[0]["method"] = "changed"
            self.assertEqual(result.rows[0]["method"], "float")
            self.assertEqual(made.to_html(), result.to_html())
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(result)

    def test_sensitivity_lists_layers(self):
        layers = self.result.sensitivity()
        self.assertEqual(str(self.result).count("sensitivity to"), 1)
        self.assertGreater(len(layers), 3)
        self.assertIn("alone", layers[0])
        without = tare.compare(self.model, samples()[:5], methods=["weight_only"])
        with self.fails(tare.InvalidArgumentError, "sensitivity=True"):
            without.sensitivity()

    def test_pages_and_tables(self):
        self.result.save_html(self.tmp / "a.html")
        page = (self.tmp / "a.html").read_text(encoding="utf-8")
        self.assertIn("<svg", page)
        self.assertEqual(page, self.result.to_html())
        self.assertIn("srcdoc", self.result._repr_html_())
        self.assertTrue(self.result.to_csv().startswith("output,method,"))

    @unittest.skipUnless(pandas, "pandas (python3-pandas) is not installed")
    def test_data_frames(self):
        frame = self.result.to_dataframe()
        self.assertEqual(list(frame["method"]), self.result.rows.column("method"))
        self.assertNotIn("outputs", frame.columns)
        self.assertEqual(len(self.result.sensitivity().to_dataframe()), len(self.result.sensitivity()))

    def test_data_as_calibration(self):
        found = tare.compare(self.model, evaluation(), calibration=samples()[:50], limit=10, methods=["static"])
        self.assertEqual(len(found.rows), 2)

    def test_automatic_settings_are_those_of_the_command(self):
        options = ("--auto", "--methods=static", "--limit=20", "--json")
        command = [PROGRAM, "compare", self.model.path, "--data", CALIBRATION, "--eval", EVALUATION, *options]
        expected = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        images, labels = (array[:20] for array in evaluation())
        for data, calibration in ((EVALUATION, CALIBRATION), ((images, labels), samples()), ((images, labels), iter(samples()))):
            with warnings.catch_warnings(record=True) as issued:
                warnings.simplefilter("always")
                found = tare.compare(self.model, data, calibration=calibration, auto=True, methods=["static"], limit=20)
            self.assertEqual(found.rows.column("plan")[1:], [row["plan"] for row in expected["results"][1:]])
            self.assertEqual(found.rows.column("answers_hash"), [row["answers_hash"] for row in expected["results"]])
            self.assertEqual([str(warning.message) for warning in issued], expected["warnings"])
            self.assertIn("held-out samples", str(found))
        with self.fails(tare.UsageError, "auto needs representative samples (pass data as calibration=)"):
            tare.compare(self.model, EVALUATION, calibration=tare.calibrate(self.model, samples()[:5]), auto=True)

    def test_rest_is_what_the_samples_do_not_have(self):
        found = tare.compare(self.model, [CALIBRATION, EVALUATION], calibration=CALIBRATION, rest=True, methods=["static"])
        self.assertEqual(found.describe()["records"], 1000)

    def test_errors(self):
        with self.fails(tare.UsageError, "method static needs representative samples (pass calibration=)"):
            tare.compare(self.model, samples()[:5], methods=["static"])
        with self.fails(tare.InvalidArgumentError, "model: expected a Model, got str (open it with tare.load("):
            tare.compare("glyphs", samples()[:5])
        with self.fails(tare.InvalidArgumentError, "expected at least 1, got 0"):
            tare.compare(self.model, np.array(1, np.float32), methods=["dynamic"])
        for metric in (5, [], dict, object()):
            with self.fails(tare.InvalidArgumentError, "metric: expected"):
                tare.compare(self.model, samples()[:5], metric=metric)
        with self.fails(tare.InvalidArgumentError, "progress: expected"):
            tare.compare(self.model, samples()[:5], progress=5)


if __name__ == "__main__":
    unittest.main()
