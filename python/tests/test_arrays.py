"""Dtypes of arrays: each element type of TensorFlow that NumPy has, and bfloat16, strings and narrow integers."""

import subprocess
import unittest

import numpy as np
from support import PROGRAM, Case, samples

import tare
from tare import _arrays


class Types(Case):
    def test_every_dtype_survives_a_file(self):
        names = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "bool", "complex64", "complex128"]  # fmt: skip
        record = {name: np.arange(6).reshape(2, 3).astype(name) for name in names}
        record["text"] = np.array([b"a", "b\u00e4", b"\x00\xff"], object)
        record["empty"] = np.zeros((0, 3), np.float32)
        record["scalar"] = np.float32(3)
        tare.write_records(self.tmp / "a.tfrecord", [record])
        (found,) = tare.read_records(self.tmp / "a.tfrecord")
        self.assertEqual(set(found), set(record))
        for name in names:
            self.assertEqual(found[name].dtype, record[name].dtype)
            np.testing.assert_array_equal(found[name], record[name])
        self.assertEqual(found["text"].tolist(), [b"a", "b\u00e4".encode(), b"\x00\xff"])
        self.assertEqual((found["empty"].shape, found["scalar"].shape), ((0, 3), ()))

    def test_arrays_at_any_byte(self):
        values = np.arange(6, dtype=np.float32)
        packed = np.zeros(6, np.dtype([("flag", "u1"), ("x", "f4")]))
        packed["x"] = values
        shifted = np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(np.float32)
        self.assertFalse(shifted.flags.aligned)
        tare.write_records(self.tmp / "a.tfrecord", [{"a": shifted, "b": packed["x"], "c": packed["x"][:1]}])
        (found,) = tare.read_records(self.tmp / "a.tfrecord")
        for name, expected in {"a": values, "b": values, "c": values[:1]}.items():
            np.testing.assert_array_equal(found[name], expected)

    def test_bfloat16_rounds_to_nearest_even(self):
        values = np.array([1, 1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8, np.inf, -np.inf, np.nan, 3.3895e38], np.float32)
        found = tare.bfloat16_to_float32(tare.float32_to_bfloat16(values))
        expected = np.array([1, 1, 1, 1 + 2**-6, np.inf, -np.inf, np.nan, 3.3895e38], np.float32)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found[:6], expected[:6], rtol=0)
        self.assertEqual(np.shape(tare.float32_to_bfloat16(1.0)), ())

    def test_narrow_integers_become_int8(self):
        class Int4(np.ndarray):
            pass

        self.assertEqual(_arrays._NARROW["int4"], np.int8)
        with self.fails(tare.DTypeError, "timedelta64"):
            tare.write_records(self.tmp / "a", [{"x": np.zeros(2, "timedelta64[s]")}])

    def test_inputs_and_outputs_of_four_bits_have_bytes(self):
        for dtype, values in {"int4": [-8, 0, 7], "uint4": [0, 9, 15], "int2": [-2, 0, 1], "uint2": [0, 2, 3]}.items():
            folder, stored = self.tmp / dtype, np.int8 if dtype[0] == "i" else np.uint8
            command = [PROGRAM, "ops", "Identity", "--save-model", folder, "--shape", f"{dtype}[3]"]
            subprocess.run(command, check=True, capture_output=True)
            model = tare.load(folder)
            for given in (values, np.array(values, stored)):
                found = model.run({"input": given})["output"]
                self.assertEqual((found.dtype, found.tolist()), (stored, values))
            with self.fails(tare.InvalidArgumentError, "element 1 is 16 (expected"):
                model.run({"input": [0, 16, 0]})
            with self.fails(tare.DTypeError, f"expected {dtype}, got int32"):
                model.run({"input": np.array(values, np.int32)})

    def test_failures_leave_no_file(self):
        def broken():
            yield {"x": np.float32(1)}
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            tare.write_records(self.tmp / "a.tfrecord", broken())
        self.assertEqual(list(self.tmp.iterdir()), [])


    def test_a_record_is_a_dict(self):
        with self.fails(tare.InvalidArgumentError, "records: a record is a list (expected a dict of arrays by name)"):
            tare.write_records(self.tmp / "a.tfrecord", [[1]])
        self.assertEqual(list(self.tmp.iterdir()), [])


class PythonValues(Case):
    def read_back(self, value):
        tare.write_records(self.tmp / "a.tfrecord", [{"x": value}])
        return next(tare.read_records(self.tmp / "a.tfrecord"))["x"].tolist()

    def test_strings(self):
        self.assertEqual(self.read_back([b"a\0", "b", b"\xff"]), [b"a\0", b"b", b"\xff"])
        for value in (np.array([1, 2], object), ["x", 1], [None], np.array([10**13], object)):
            with self.fails(tare.DTypeError, "array x: an element is of type"):
                self.read_back(value)
        with self.fails(tare.InvalidArgumentError, "is not valid Unicode"):
            self.read_back(["\udcff"])

    def test_names(self):
        for name in (1, None, "a\0b", "\udcff"):
            with self.fails(tare.InvalidArgumentError, "name"):
                tare.write_records(self.tmp / "a.tfrecord", [{name: 1.0}])
            with self.fails(tare.InvalidArgumentError, "name"):
                tare.calibrate(self.model, {name: samples()[:2]}, progress=False)

    def test_shapes(self):
        with self.fails(tare.ShapeError, "array x: the value is not an array"):
            self.read_back([[1.0], [1.0, 2.0]])
        with self.fails(tare.ShapeError, "array x: has 13 dimensions (expected at most 12)"):
            self.read_back(np.zeros((1,) * 13, np.float32))

    def test_numbers_do_not_become_infinite(self):
        for value, number, text in (
            ([[0.0, 1e300]], 1, "array x: 1e+300 at [0, 1] is out of range (expected float32)"),
            (1e300, 1, "array x: 1e+300 is out of range"),
            (np.float64(-1e39).tolist(), 1, "array x: -1e+39 is out of range"),
            ([70000], 19, "array x: 70000 at [0] is out of range (expected float16)"),
            ([1e39j], 8, "array x: 1e+39j at [0] is out of range (expected complex64)"),
            ([3.4e38], 14, "array x: 3.4e+38 at [0] is out of range (expected bfloat16)"),
            ([300], 6, "array x: 300 at [0] is out of range (expected int8)"),
        ):
            with self.fails(tare.DTypeError, text):
                _arrays.prepare(value, number, "x")
        self.assertEqual(_arrays.prepare([float("inf"), -float("inf"), 1e-50], 1, "x").tolist(), [np.inf, -np.inf, 0])
        with self.fails(tare.DTypeError, "array values: 1e+300 at [1] is out of range (expected float32)"):
            tare.float32_to_bfloat16([1.0, 1e300])
        np.testing.assert_array_equal(tare.bfloat16_to_float32(tare.float32_to_bfloat16([np.inf, 2])), [np.inf, 2])
        with self.fails(tare.DTypeError, "array image: 1e+300 at [0, 0] is out of range (expected float32)"):
            self.model.run([[1e300]])

    def test_numbers_are_not_rounded_or_wrapped(self):
        for dtype, value in ((np.int32, [1.5]), (np.uint8, [300]), (np.uint8, [-1]), (np.int64, [2**70]), (np.float32, ["1.5"]),
                             (np.float32, [None]), (np.float32, [1j]), (np.bool_, [2])):  # fmt: skip
            with self.assertRaises(tare.DTypeError, msg=f"{dtype} {value}"):
                _arrays.prepare(value, _arrays._NUMBERS[np.dtype(dtype)], "x")
        for dtype, value in ((np.int32, [-3]), (np.uint64, [2**64 - 1]), (np.float32, [1, True]), (np.complex64, [1.5]),
                             (np.uint8, []), (np.int8, range(3))):  # fmt: skip
            found = _arrays.prepare(value, _arrays._NUMBERS[np.dtype(dtype)], "x")
            self.assertEqual((found.dtype, found.tolist()), (np.dtype(dtype), list(value)))
        with self.fails(tare.DTypeError, "array image: expected float32, got object"):
            self.model.run(samples()[:1].astype(object))
        with self.fails(tare.InvalidArgumentError, "array image: has masked elements"):
            self.model.run(np.ma.masked_array(samples()[:1], samples()[:1] > 0.5))

    def test_bfloat16(self):
        found = _arrays.prepare([1.5, -2], _arrays.BFLOAT16, "x")
        np.testing.assert_array_equal(tare.bfloat16_to_float32(found), [1.5, -2])
        swapped = np.array([16256, 16384], ">u2")
        np.testing.assert_array_equal(tare.bfloat16_to_float32(swapped), [1, 2])
        for values in ([1.0], np.float16([1]), np.float32([1]), b"ab", None):
            with self.fails(tare.DTypeError, "values: expected uint16 or bfloat16, got"):
                tare.bfloat16_to_float32(values)


class Batches(Case):
    def test_a_job_is_a_dict_with_a_model_and_an_output(self):
        number, empty = tare.batch([3, {"name": "none"}], progress=False)
        self.assertEqual((number.name, str(number.error)), ("0", "job: expected a dict, got int"))
        self.assertEqual((empty.name, str(empty.error)), ("none", "job: lacks model and output"))

    def test_jobs_are_a_list(self):
        for jobs in ("jobs.textproto", self.tmp / "jobs", {"model": "a", "output": "b"}):
            with self.fails(tare.UsageError, "jobs: expected a list of dicts, got"):
                tare.batch(jobs, progress=False)

    def test_keys_without_effect_are_refused(self):
        base = {"model": self.model.path, "output": self.tmp / "x"}
        for keys, words in (
            ({"method": None, "quantize": {"bits": 4}}, "method is None"),
            ({"method": None, "data": "a.tfrecord"}, "method is None"),
            ({"calibration": "a.calib", "data": "a.tfrecord"}, "has calibration and data"),
        ):
            (result,) = tare.batch([{**base, **keys}], progress=False)
            self.assertIn(words, str(result.error))
            self.assertFalse((self.tmp / "x").exists())

    def test_results_do_not_hide_failures(self):
        results = tare.batch(
            [
                {"model": "/nowhere", "output": self.tmp / "a", "method": "weight_only"},
                {"model": self.model.path, "output": self.tmp / "b", "method": "weight_only", "name": "second",
                 "convert": {"functions": "tpu_func"}},
                {"model": self.model.path, "output": self.tmp / "c", "metod": "weight_only"},
                {"model": self.model.path, "output": self.tmp / "b", "method": None},
            ],
            progress=False,
        )  # fmt: skip
        self.assertEqual([result.done for result in results], [False, True, False, False])
        self.assertIsInstance(results[0].error, tare.NotFoundError)
        self.assertEqual(results[1].name, "second")
        self.assertIn("TPUPartitionedCall", tare.load(self.tmp / "b").describe()["ops"])
        self.assertIn("metod", str(results[2].error))
        self.assertIsInstance(results[3].error, tare.InvalidArgumentError)
        self.assertFalse((self.tmp / "c").exists())


if __name__ == "__main__":
    unittest.main()
