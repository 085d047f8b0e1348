"""Model.auto: files and data from memory, what it writes and logs, and what it refuses before it works."""

import unittest

import numpy as np
from support import CALIBRATION, EVALUATION, Case, evaluation, samples

import tare


class Auto(Case):
    def steps(self, logged):
        return [record.getMessage().split()[2] for record in logged.records if record.getMessage().startswith("step: tare ")]

    def test_files(self):
        with self.assertLogs("tare", "INFO") as logged:
            made = self.model.auto(self.tmp / "int8", CALIBRATION, EVALUATION)
        self.assertEqual(self.steps(logged), ["compare", "quantize", "compare"])
        self.assertEqual(made.path, str(self.tmp / "int8"))
        self.assertEqual(made.report["records"], 1000)
        self.assertLess(made.weight_bytes, self.model.weight_bytes / 2)
        self.assertIn("method=", (self.tmp / "int8.recipe").read_text())
        self.assertIn("<html", (self.tmp / "int8.html").read_text())
        with self.fails(tare.InvalidArgumentError, "(pass overwrite=True to replace it)"):
            self.model.auto(self.tmp / "int8", CALIBRATION, EVALUATION)

    def test_data_from_memory_gives_the_model_of_the_files(self):
        images, labels = evaluation()
        for name, data, labelled in (("files", CALIBRATION, EVALUATION), ("memory", samples(), {"image": images, "class": labels})):
            self.model.auto(self.tmp / name, data, labelled, label="label" if name == "files" else "class")
        outputs = [tare.load(self.tmp / name).run(images[:20])["probabilities"] for name in ("files", "memory")]
        np.testing.assert_array_equal(*outputs)
        self.assertEqual((self.tmp / "files.recipe").read_text(), (self.tmp / "memory.recipe").read_text())

    def test_tpu_replaces(self):
        self.model.save(self.tmp / "tpu")
        images, labels = (part[:200] for part in evaluation())
        made = self.model.auto(self.tmp / "tpu", (images, labels), tpu=True, margin=20, overwrite=True)
        self.assertIn("TPUPartitionedCall", made.describe()["ops"])

    def test_errors_name_the_argument(self):
        wrong = [{"image": np.zeros((1, 28, 28, 1), np.float32)}, {"image": np.zeros((1, 5, 5, 1), np.float32)}]
        for data, labelled, text in ((wrong, None, "data: record 1: input image"), (samples()[:9], wrong, "eval: record 1: input image")):
            with self.fails(tare.Error, text):
                self.model.auto(self.tmp / "none", data, labelled)
        for data, labelled in ((samples()[:9], None), (CALIBRATION, samples()[:9]), (samples()[:9], EVALUATION)):
            with self.fails(tare.UsageError, "spec: applies to files"):
                self.model.auto(self.tmp / "none", data, labelled, spec="x.textproto")
        with self.fails(tare.NotFoundError, "missing.tfrecord"):
            self.model.auto(self.tmp / "none", self.tmp / "missing.tfrecord")
        self.assertFalse((self.tmp / "none").exists())


if __name__ == "__main__":
    unittest.main()
