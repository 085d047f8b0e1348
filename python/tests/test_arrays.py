"""Dtypes of arrays: each element type of TensorFlow that NumPy has, and bfloat16, strings and narrow integers."""

import unittest

import numpy as np
from support import Case

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


class Batches(Case):
    def test_a_job_is_a_dict_with_a_model_and_an_output(self):
        number, empty = tare.batch([3, {"name": "none"}], progress=False)
        self.assertEqual((number.name, str(number.error)), ("0", "job: expected a dict, got int"))
        self.assertEqual((empty.name, str(empty.error)), ("none", "job: lacks model and output"))

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
