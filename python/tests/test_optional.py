"""Packages that tare uses where they are installed: tqdm, IPython, ml_dtypes. ml_dtypes is not a Debian package, and tqdm may be
missing: small stand-ins with the same interface take their place, so that these paths always run."""

import contextlib
import io
import sys
import time
import types
import unittest
from unittest import mock

import numpy as np
from support import Case, samples

import tare
from tare._arrays import native_inputs


class StandInBar:
    """The part of tqdm.tqdm that a progress bar of tare calls."""

    made = []

    def __init__(self, desc, total, unit, leave):
        self.desc, self.total, self.unit, self.n, self.closed = desc, total, unit, 0, False
        StandInBar.made.append(self)

    def update(self, count):
        self.n += count

    def close(self):
        self.closed = True


def installed(name):
    try:
        return __import__(name)
    except ImportError:
        return None


class ProgressBars(Case):
    def setUp(self):
        super().setUp()
        StandInBar.made = []
        module = types.ModuleType("tqdm.auto")
        module.tqdm = StandInBar
        patch = mock.patch.dict(sys.modules, {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": module})
        patch.start()
        self.addCleanup(patch.stop)

    def test_counts_records(self):
        tare.calibrate(self.model, iter(samples()), progress=True)
        bar = StandInBar.made[-1]
        self.assertEqual((bar.desc, bar.total, bar.unit, bar.n), ("calibrating", 300, " records", 300))
        self.assertTrue(bar.closed)
        self.assertEqual(len(StandInBar.made), 1)

    def test_is_closed_after_a_failure(self):
        def broken():
            yield from samples()[:50]
            time.sleep(0.2)
            yield from samples()[:50]
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            tare.calibrate(self.model, broken(), progress=True)
        self.assertEqual([bar.closed for bar in StandInBar.made], [True])

    def test_is_not_drawn_where_nobody_sees_it(self):
        for progress in (False, None):
            with mock.patch.object(sys, "stderr", io.StringIO()):
                tare.calibrate(self.model, samples()[:20], progress=progress)
        self.assertEqual(StandInBar.made, [])

    def test_needs_no_tqdm(self):
        with mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}):
            self.assertEqual(tare.calibrate(self.model, samples()[:20], progress=True).records, 20)


class Tqdm(Case):
    def test_draws_a_bar(self):
        if not installed("tqdm"):
            self.skipTest("tqdm (python3-tqdm) is not installed")

        def slow():
            for image in samples()[:5]:
                time.sleep(0.15)
                yield image

        with contextlib.redirect_stderr(io.StringIO()) as drawn:
            tare.calibrate(self.model, slow(), progress=True)
        self.assertRegex(drawn.getvalue(), r"calibrating: [1-9]")


class Notebooks(Case):
    def display(self, thing):
        if not installed("IPython"):
            self.skipTest("IPython (ipython3) is not installed")
        from IPython.core.formatters import DisplayFormatter

        return DisplayFormatter().format(thing)[0]

    def test_show_results_as_pages(self):
        calibration = tare.calibrate(self.model, samples())
        result = tare.compare(self.model, samples()[:20], calibration=calibration, methods=["static"])
        for thing, words in ((calibration, "Histograms and ranges"), (result, "Accuracy and cost")):
            shown = self.display(thing)
            self.assertTrue(shown["text/html"].startswith("<iframe") and words in shown["text/html"], f"no {words}")
            self.assertLess(len(shown["text/plain"].splitlines()), 40)

    def test_show_bars_in_a_kernel(self):
        from tare import _progress

        with mock.patch.object(sys, "stderr", io.StringIO()):
            self.assertFalse(_progress._visible())
            with mock.patch.dict(sys.modules, {"ipykernel": types.ModuleType("ipykernel")}):
                self.assertTrue(_progress._visible())


class StandInDType:
    """What tare reads of a dtype of ml_dtypes."""

    kind, isnative = "V", True

    def __init__(self, name):
        self.name = name


class StandInArray(np.ndarray):
    """An array whose dtype has the name of one of ml_dtypes; its elements have NumPy's dtype of the same size."""

    stand_in = None
    dtype = property(lambda self: self.stand_in or self.view(np.ndarray).dtype)


class StandInTensor:
    """What tare reads of a tensor of torch before it takes the elements."""

    def __init__(self, dtype):
        self.dtype = dtype

    def detach(self):
        return self

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")


class ExtendedDTypes(Case):
    def bfloat16(self, values):
        """An array of bfloat16 and the dtype that results have."""
        module = installed("ml_dtypes")
        if module:
            return np.array(values, module.bfloat16), np.dtype(module.bfloat16)
        module = types.ModuleType("ml_dtypes")
        module.bfloat16 = np.dtype([("bfloat16", np.uint16)])
        with mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            array = np.asarray(tare.float32_to_bfloat16(values)).view(StandInArray)
        array.stand_in = StandInDType("bfloat16")
        patch = mock.patch.dict(sys.modules, {"ml_dtypes": module})
        patch.start()
        self.addCleanup(patch.stop)
        return array, module.bfloat16

    def test_bfloat16_in_and_out(self):
        array, dtype = self.bfloat16([[1.0, -2.5], [3.140625, 0.0]])
        tare.write_records(self.tmp / "a.tfrecord", [{"x": array}])
        (found,) = tare.read_records(self.tmp / "a.tfrecord")
        self.assertEqual((found["x"].dtype, found["x"].shape), (dtype, (2, 2)))
        np.testing.assert_array_equal(tare.bfloat16_to_float32(found["x"]), [[1.0, -2.5], [3.140625, 0.0]])
        self.assertEqual(tare.float32_to_bfloat16([1.0]).dtype, dtype)

    def test_bfloat16_without_the_package(self):
        with mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            bits = tare.float32_to_bfloat16([1.0, -2.5])
        self.assertEqual((bits.dtype, bits.tolist()), (np.uint16, [0x3F80, 0xC020]))

    def test_bfloat16_tensors_of_torch_are_named_with_the_remedy(self):
        torch = installed("torch")
        tensor = torch.ones(3, dtype=torch.bfloat16) if torch else StandInTensor("torch.bfloat16")
        for dtype, number in (("float32", 1), ("int64", 9), ("bool", 10)):
            with self.fails(tare.DTypeError, f"input x: expected {dtype}, got torch.bfloat16 (convert it with .to(torch.{dtype}))"):
                native_inputs({"x": tensor}, {"x": tare.TensorSpec("x", dtype, (3,), number)})

    def test_integers_below_one_byte_become_int8(self):
        module = installed("ml_dtypes")
        if module:
            array = np.array([-8, 0, 7], module.int4)
        else:
            array = np.array([-8, 0, 7], np.int8).view(StandInArray)
            array.stand_in = StandInDType("int4")
        tare.write_records(self.tmp / "a.tfrecord", [{"x": array}])
        (found,) = tare.read_records(self.tmp / "a.tfrecord")
        self.assertEqual((found["x"].dtype, found["x"].tolist()), (np.int8, [-8, 0, 7]))


if __name__ == "__main__":
    unittest.main()
