"""Calibration: every form of data gives the statistics of the file with the same samples."""

import copy
import gc
import pathlib
import pickle
import subprocess
import tempfile
import threading
import unittest
import warnings

import numpy as np
from support import CALIBRATION, GLYPHS, PROGRAM, ROOT, Case, samples

import tare
from tare._data import records_of

try:
    import pandas
except ImportError:
    pandas = None



def statistics(calibration):
    return calibration.describe(algorithms="min_max")["tensors"]


class Data(Case):
    def setUp(self):
        super().setUp()
        self.expected = statistics(tare.calibrate(self.model, CALIBRATION))

    def same(self, data, **arguments):
        found = tare.calibrate(self.model, data, **arguments)
        self.assertEqual(found.records, 300)
        self.assertEqual(statistics(found), self.expected)

    def test_arrays(self):
        self.same(samples())

    def test_arrays_with_a_batch_dimension_each(self):
        self.same(samples()[:, np.newaxis])

    def test_dicts_of_arrays_with_labels(self):
        self.same({"image": samples(), "label": np.zeros(300, np.int64)})

    def test_pairs_of_inputs_and_labels(self):
        self.same((samples(), np.zeros(300)))

    def test_generators_of_dicts(self):
        self.same({"image": image[np.newaxis], "label": 3} for image in samples())

    def test_generators_of_arrays_without_the_batch_dimension(self):
        self.same(image for image in samples())

    def test_lists_of_paths(self):
        self.same([CALIBRATION])
        self.same(str(CALIBRATION), workers=2)

    def test_written_records(self):
        count = tare.write_records(self.tmp / "a.tfrecord.gz", ({"image": i[np.newaxis]} for i in samples()))
        self.assertEqual(count, 300)
        self.same(self.tmp / "a.tfrecord.gz")

    def test_array_files(self):
        np.save(self.tmp / "image.npy", samples())
        self.same(self.tmp / "image.npy")

    def test_workers_do_not_matter(self):
        self.same(samples(), workers=1)
        self.same(samples(), workers=3)

    def test_a_negative_limit_is_refused(self):
        for data in (samples(), CALIBRATION):
            with self.fails(tare.UsageError, "limit"):
                tare.calibrate(self.model, data, limit=-1)
            with self.fails(tare.UsageError, "limit"):
                tare.calibrate(self.model, data, limit=10**30)

    def test_arrays_of_other_libraries_are_arrays(self):
        class Other:
            """As an array of JAX: it also iterates over its rows."""

            def __init__(self, array):
                self.array, self.ndim, self.shape = array, array.ndim, array.shape

            def __array__(self, dtype=None, copy=None):
                return self.array if dtype is None else self.array.astype(dtype)

            def __iter__(self):
                return iter(self.array)

            def __len__(self):
                return len(self.array)

        array = samples()[:20].reshape(20, *samples().shape[1:])
        flat = array.reshape(array.shape[:-1]) if array.shape[-1] == 1 else array
        first = tare.calibrate(self.model, array)
        for other in (Other(array), Other(flat)):
            self.assertEqual(tare.calibrate(self.model, other).describe(), first.describe())

    def test_limit_takes_the_first_records(self):
        found = tare.calibrate(self.model, samples(), limit=20)
        self.assertEqual(found.records, 20)
        self.assertEqual(statistics(found), statistics(tare.calibrate(self.model, CALIBRATION, limit=20)))
        self.assertEqual(tare.calibrate(self.model, samples(), limit=0).records, 300)

    def test_functions_instead_of_signatures(self):
        found = tare.calibrate(self.model, CALIBRATION, function="tpu_func", limit=20)
        calls = ({"image": image[None]} for image in samples())
        self.assertEqual(statistics(tare.calibrate(self.model, calls, function="tpu_func", limit=20)), statistics(found))
        self.assertEqual(statistics(found), statistics(tare.calibrate(self.model, CALIBRATION, limit=20)))
        with self.fails(tare.NotFoundError, "there is no function 'none'"):
            tare.calibrate(self.model, [{"image": samples()[:1]}], function="none")
        with self.fails(tare.InvalidArgumentError, "a record is a ndarray (expected a dict of arrays by name)"):
            tare.calibrate(self.model, samples(), function="tpu_func")
        with self.fails(tare.UsageError, "signature and function are mutually exclusive"):
            tare.calibrate(self.model, CALIBRATION, function="tpu_func", signature="serving_default")

    def test_arguments_that_do_not_apply_are_refused(self):
        with self.fails(tare.UsageError, "spec: applies to files"):
            tare.calibrate(self.model, samples(), spec="a.spec")
        with self.fails(tare.UsageError, "name: applies to data from memory"):
            tare.calibrate(self.model, CALIBRATION, name="a")
        calibration = tare.calibrate(self.model, samples()[:5])
        for other in (5, None, self.model):
            with self.fails(tare.InvalidArgumentError, "calibration: expected a Calibration"):
                calibration.merge(other)
        with self.fails(tare.UsageError, "use to_html"):
            calibration.describe(html=True)


class Feedback(unittest.TestCase):
    """z = x + y, where y is the z of the record before."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "sum"
        shapes = ["--shape", "[?,2]"] * 2
        subprocess.run([PROGRAM, "ops", "AddV2", *shapes, "--attr", "T=float", "--save-model", path], check=True, capture_output=True)
        self.model = tare.load(path)
        self.steps = np.array([[1, 10], [2, 20], [3, 30], [4, 40]], np.float32)
        self.clip = np.array([7, 7, 8, 8], np.int32)

    def mean_state(self, data, **options):
        calibration = tare.calibrate(self.model, data, observe="all", feedback="z=y", **options)
        return next(tensor["mean"] for tensor in calibration.describe()["tensors"] if tensor["node"] == "y")

    def test_states_are_those_of_the_model(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tare.TareWarning)
            self.assertEqual(self.mean_state({"x": self.steps}), (0 + 1 + 3 + 6) * 11 / 8)
            self.assertEqual(self.mean_state({"x": self.steps, "clip": self.clip}, sequence="clip"), (0 + 1 + 0 + 3) * 11 / 8)
            self.assertEqual(self.mean_state(({"x": step} for step in self.steps), workers=3, batch=4), (0 + 1 + 3 + 6) * 11 / 8)

    def test_each_model_of_a_comparison_has_its_own(self):
        compared = tare.compare(self.model, {"x": self.steps}, others=[self.model], feedback=["z=y"])
        self.assertEqual(compared.describe()["records"], 4)

    def test_no_pairs_are_no_feedback(self):
        data = {"x": self.steps, "y": self.steps}
        for none in [], ():
            self.assertEqual(tare.compare(self.model, data, others=[self.model], feedback=none).describe()["records"], 4)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tare.TareWarning)
                self.assertEqual(tare.calibrate(self.model, data, feedback=none).records, 4)
        with self.assertRaisesRegex(tare.UsageError, "expected OUTPUT=INPUT"):
            tare.calibrate(self.model, data, feedback="")

    def test_records_without_the_key_are_refused(self):
        for data, text in (
            ({"x": self.steps}, "the record has no such key"),
            (({"x": step} for step in self.steps), "the record has no such key"),
        ):
            with self.assertRaisesRegex(tare.NotFoundError, text):
                tare.calibrate(self.model, data, feedback="z=y", sequence="clip")


@unittest.skipUnless(pandas, "pandas (python3-pandas) is not installed")
class Columns(Case):
    def matrix(self, dtype, number, **columns):
        spec = tare.TensorSpec("x", dtype, (None, len(columns)), number)
        return np.concatenate([record["x"] for record in records_of(pandas.DataFrame(columns), {"x": spec})])

    def test_numbers_that_the_input_does_not_hold_are_refused(self):
        with self.fails(tare.DTypeError, "array b: 1e+300 at [1] is out of range (expected float32)"):
            self.matrix("float32", 1, a=[1, 2], b=[1.0, 1e300])
        with self.fails(tare.DTypeError, "array a: 2.5 at [1] is out of range (expected int32)"):
            self.matrix("int32", 3, a=[1.0, 2.5])
        with self.fails(tare.DTypeError, "array a: nan at [0] is out of range (expected int64)"):
            self.matrix("int64", 9, a=[np.nan, 2.0])
        with self.fails(tare.DTypeError, "array a: 1e+20 at [0] is out of range (expected int64)"):
            self.matrix("int64", 9, a=[1e20, 2.0])

    def test_numbers_of_several_kinds_get_the_dtype_of_the_input(self):
        found = self.matrix("float32", 1, a=[1, 2], b=[True, False], c=[np.nan, 0.5], d=pandas.array([3, 4], "Int64"))
        np.testing.assert_array_equal(found, np.float32([[1, 1, np.nan, 3], [2, 0, 0.5, 4]]))
        self.assertEqual(self.matrix("int32", 3, a=[1.0, 2.0], b=[3, 4]).tolist(), [[1, 3], [2, 4]])


class Merging(Case):
    """Merging into a calibration that something else uses."""

    def part(self, name):
        return tare.calibrate(self.model, samples()[:3], name=name)

    def test_a_merge_that_fails_changes_nothing(self):
        a, b = self.part("a"), self.part("b")
        before = a.describe()
        for others in ((b, b), (b, a)):
            with self.fails(tare.InvalidArgumentError, "is in both"):
                a.merge(*others)
            self.assertEqual(a.describe(), before)
        self.assertEqual(a.merge(b, self.part("c")).records, 9)

    def test_copies_are_calibrations_of_their_own(self):
        for made in (copy.copy, copy.deepcopy):
            a = self.part("a")
            other = made(a)
            self.assertEqual(other.describe(), a.describe())
            other.merge(self.part("b"))
            self.assertEqual((a.records, other.records), (3, 6))
            a.merge(self.part("c"))
            self.assertEqual((a.records, other.records), (6, 6))
        again = pickle.loads(pickle.dumps(a))
        self.assertEqual(again.to_bytes(), a.to_bytes())
        a.save(self.tmp / "a.calib")
        self.assertEqual((self.tmp / "a.calib").read_bytes(), a.to_bytes())
        for data in (b"", b"x" * 100, a.to_bytes()[:-1]):
            with self.fails(tare.CorruptDataError, "calibration"):
                tare.Calibration.from_bytes(data)

    def test_other_threads_read_meanwhile(self):
        total, parts = self.part("total"), [self.part(str(i)) for i in range(20)]
        failures, ended = [], threading.Event()

        def read():
            try:
                while not ended.is_set():
                    self.assertEqual(total.records % 3, 0)
                    total.histogram(total.tensors[0])
                    total.ranges()
            except BaseException as error:
                failures.append(error)

        readers = [threading.Thread(target=read) for _ in range(2)]
        adders = [threading.Thread(target=lambda i=i: [total.merge(part) for part in parts[i::2]]) for i in range(2)]
        for thread in readers + adders:
            thread.start()
        for thread in adders:
            thread.join()
        ended.set()
        for thread in readers:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(total.records, 63)
        self.assertEqual(repr(total), f"<tare.Calibration of 63 records, {len(total.tensors)} tensors>")

    def test_a_comparison_keeps_what_it_was_made_from(self):
        calibration = self.part("a")
        result = tare.compare(self.model, samples()[:5], calibration=calibration, methods=["static"])
        page = result.to_html()
        calibration.merge(tare.calibrate(self.model, 9 * samples()[:3], name="b"))
        self.assertEqual(result.to_html(), page)
        del calibration
        gc.collect()
        self.assertEqual(result.to_html(), page)

    def test_a_callback_may_merge(self):
        calibration, other = self.part("a"), self.part("b")

        def metric(outputs, labels):
            if calibration.records == 3:
                calibration.merge(other)
            return 1.0

        tare.compare(self.model, samples()[:5], calibration=calibration, methods=["static"], metric=metric)
        self.assertEqual(calibration.records, 6)


@unittest.skipUnless(pandas, "pandas (python3-pandas) is not installed")
class Frames(unittest.TestCase):
    def setUp(self):
        self.frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4, 5, 6], "label": [0, 1, 0]})

    def records(self, *specs):
        return list(records_of(self.frame, {spec.name: spec for spec in specs}))

    def test_columns_are_inputs(self):
        found = self.records(tare.TensorSpec("a", "float32", (None, 1), 1), tare.TensorSpec("b", "int64", (None,), 9))
        self.assertEqual(len(found), 3)
        self.assertEqual((found[1]["a"].tolist(), found[1]["b"].tolist()), ([[2.0]], [5]))
        self.assertEqual(found[1]["label"].tolist(), [1])

    def test_columns_are_features_of_one_input(self):
        found = self.records(tare.TensorSpec("x", "float32", (None, 2), 1))
        self.assertEqual(found[2]["x"].tolist(), [[3.0, 6.0]])
        self.assertEqual((found[2]["x"].dtype, found[2]["label"].tolist()), (np.float32, [0]))


class Places(Case):
    """Errors about data from memory name the argument and the record."""

    def test_of_records(self):
        good, small, double = samples()[0], samples()[0][:20], samples()[0].astype(np.float64)
        for arguments in ({}, {"hessians": True}, {"name": "a"}, {"name": "a", "hessians": True}):
            with self.fails(tare.ShapeError, "data: record 1: input image: expected shape"):
                tare.calibrate(self.model, [{"image": good}, {"image": small}], **arguments)
            with self.assertRaises(tare.DTypeError) as caught:
                tare.calibrate(self.model, iter([{"image": good}, {"image": double}]), **arguments)
            self.assertEqual(
                str(caught.exception),
                "data: record 1: input image: expected float32, got float64 (convert it with .astype('float32'))",
            )
            self.assertEqual(caught.exception.where, "data")
            with self.fails(tare.InvalidArgumentError, "data: no records"):
                tare.calibrate(self.model, [], **arguments)

    def test_of_records_to_compare_with(self):
        good, small = samples()[0], samples()[0][:20]
        with self.fails(tare.ShapeError, "data: record 1: input image: expected shape"):
            tare.compare(self.model, [{"image": good}, {"image": small}], methods=["weight_only"])
        with self.fails(tare.ShapeError, "calibration: record 0: input image: expected shape"):
            tare.compare(self.model, [good], calibration=[small], methods=["static"])
        with self.fails(tare.UsageError, "samples (pass calibration=)"):
            tare.compare(self.model, [good], methods=["static"])

    def test_of_inputs(self):
        with self.fails(tare.DTypeError, "input image: expected float32, got float64 (convert it with .astype('float32'))"):
            self.model.run(samples()[:1].astype(np.float64))

    def test_failures_of_the_data_are_raised_unchanged(self):
        def records():
            yield samples()[0]
            raise tare.ShapeError("mine: broken")

        for hessians in (False, True):
            with self.fails(tare.ShapeError, "mine: broken"):
                tare.calibrate(self.model, records(), hessians=hessians)

    def test_of_calibrations_with_hessians(self):
        first, second = (tare.calibrate(self.model, samples()[:5], hessians=True) for _ in range(2))
        self.assertEqual(first.describe()["inputs"][0]["file"], "memory")
        with self.fails(tare.InvalidArgumentError, "record 0 of 'memory' is in both"):
            first.merge(second)
        other = tare.calibrate(self.model, samples()[5:8], hessians=True, name="b")
        self.assertEqual(first.merge(other).records, 8)
        self.assertEqual([found["file"] for found in first.describe()["inputs"]], ["b", "memory"])


class Failures(Case):
    def test_records_that_do_not_match(self):
        with self.fails(tare.ShapeError, "expected shape"):
            tare.calibrate(self.model, samples()[:, :20])
        with self.fails(tare.InvalidArgumentError, "different numbers of records (image 3, other 2)"):
            tare.calibrate(self.model, {"image": samples()[:3], "other": np.zeros(2)})
        with self.fails(tare.InvalidArgumentError, "{image}"):
            tare.calibrate(self.model, ({"picture": image} for image in samples()[:2]))
        with self.fails(tare.InvalidArgumentError, "data: record 0: tuple of 4 (expected (inputs), (inputs, labels) or"):
            tare.calibrate(self.model, iter([(1, 2, 3, 4)]))
        with self.fails(tare.InvalidArgumentError, "int is not supported"):
            tare.calibrate(self.model, 7)

    def test_no_records(self):
        with self.assertRaises(tare.InvalidArgumentError):
            tare.calibrate(self.model, iter([]))

    def test_exceptions_of_the_generator_are_raised(self):
        def broken():
            yield {"image": samples()[0]}
            raise ZeroDivisionError("in the generator")

        with self.assertRaisesRegex(ZeroDivisionError, "in the generator"):
            tare.calibrate(self.model, broken())
        self.assertEqual(tare.calibrate(self.model, samples()[:5]).records, 5)  # the model still works

    def test_a_path_in_place_of_the_model(self):
        with self.fails(tare.InvalidArgumentError, "model: expected a Model, got str (open it with tare.load("):
            tare.calibrate(self.model.path, samples()[:2])

    def test_missing_files(self):
        with self.assertRaises(tare.NotFoundError):
            tare.calibrate(self.model, self.tmp / "none.tfrecord")


class Contents(Case):
    def test_files_round_trip(self):
        calibration = tare.calibrate(self.model, samples()[:50])
        calibration.save(self.tmp / "a.calib")
        again = tare.Calibration.load(self.tmp / "a.calib")
        self.assertEqual(statistics(again), statistics(calibration))
        again.save(self.tmp / "b.calib")
        self.assertEqual((self.tmp / "a.calib").read_bytes(), (self.tmp / "b.calib").read_bytes())

    def test_ranges_are_of_one_algorithm(self):
        calibration = tare.calibrate(self.model, samples()[:20])
        with self.fails(tare.UsageError, "algorithm: expected one, got"):
            calibration.ranges("mse,min_max")

    def test_merge_adds_records(self):
        parts = [tare.calibrate(self.model, samples()[i::2], name=f"part {i}") for i in range(2)]
        merged = parts[0].merge(parts[1])
        self.assertIs(merged, parts[0])
        self.assertEqual(merged.records, 300)
        expected = tare.calibrate(self.model, samples()).ranges("mse")
        np.testing.assert_array_equal(merged.ranges("mse").high, expected.high)
        with self.fails(tare.InvalidArgumentError, "in both"):
            merged.merge(parts[1])

    def test_ranges_and_histograms_are_arrays(self):
        calibration = tare.calibrate(self.model, samples()[:40])
        ranges = calibration.ranges("min_max")
        self.assertEqual(ranges.names, calibration.tensors)
        at = next(i for i, name in enumerate(ranges.names) if name.endswith("/image:0"))
        self.assertEqual(ranges.high[at], samples()[:40].max())
        self.assertEqual(ranges.zero_point.dtype, np.int64)
        histogram = calibration.histogram(ranges.names[at])
        self.assertEqual(histogram.counts.sum(), 40 * 28 * 28)
        self.assertEqual(histogram.counts[histogram.low == 0].sum(), (samples()[:40] == 0).sum())
        with self.fails(tare.NotFoundError, "was not observed"):
            calibration.histogram("nothing:0")
        with self.fails(tare.UsageError, "best"):
            calibration.ranges("best")
        self.assertIn("<iframe", calibration._repr_html_())

    def test_warnings_are_python_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            calibration = tare.calibrate(self.model, samples()[:10])
        ours = [w for w in caught if issubclass(w.category, tare.TareWarning)]
        self.assertIn("only 10 records", " ".join(str(w.message) for w in ours))
        self.assertEqual(ours[0].filename, __file__)
        self.assertIn("only 10 records", " ".join(calibration.warnings))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(tare.TareWarning):
                tare.calibrate(self.model, samples()[:10])

    def test_rotated_images_are_warned_of(self):
        jpeg = (ROOT / "tests" / "corpus" / "image" / "seed-gray.jpg").read_bytes()
        exif = b"Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.jpg")
            path.write_bytes(jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:])
            spec = pathlib.Path(folder, "a.spec")
            spec.write_text('input { name: "image" feature: "image/encoded" source: IMAGE image { channels: 1 step { resize { height: 28 width: 28 } } } }')
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                tare.calibrate(self.model, path, spec=spec)
        self.assertIn("EXIF orientation other than 1", " ".join(str(w.message) for w in caught))

    def test_progress_is_reported(self):
        calls = []
        tare.calibrate(self.model, CALIBRATION, progress=lambda *call: calls.append(call))
        self.assertEqual(calls[-1][:2], ("calibrating", 300))
        calls.clear()
        tare.calibrate(self.model, iter(samples()), progress=lambda *call: calls.append(call))
        self.assertEqual(calls[-1], ("calibrating", 300, 300))

    def test_hessians_serve_gptq(self):
        calibration = tare.calibrate(self.model, samples()[:60], hessians=True)
        self.assertGreater(self.model.quantize("static", calibration, passes=["gptq"]).report["quantized_ops"], 0)

    def test_callbacks_may_not_call_back(self):
        def again(*_):
            tare.calibrate(self.model, CALIBRATION, limit=1)

        with self.fails(RuntimeError, "a callback may not call"):
            tare.calibrate(self.model, CALIBRATION, progress=again)

    def test_generators_may_not_call_back(self):
        calls = (
            lambda: tare.calibrate(self.model, CALIBRATION, limit=1),
            lambda: self.model.quantize("weight_only"),
            lambda: tare.compare(self.model, CALIBRATION, methods=["weight_only"], limit=1),
            lambda: self.model.convert(),
        )
        for call in calls:

            def records(call=call):
                for sample in samples()[:3]:
                    yield sample
                    call()

            with self.fails(RuntimeError, "a callback may not call"):
                tare.calibrate(self.model, records())
        self.assertEqual(tare.calibrate(self.model, samples()[:3]).records, 3)

    def test_generators_of_two_threads_may_not_wait_for_each_other(self):
        models = [tare.load(GLYPHS / "saved_model") for _ in range(2)]
        both, refused = threading.Barrier(2), []

        def records(other):
            yield samples()[0]
            both.wait(60)
            tare.calibrate(other, samples()[:1])

        def calibrate(one, other):
            try:
                tare.calibrate(one, records(other))
            except RuntimeError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=calibrate, args=pair, daemon=True) for pair in (models, models[::-1])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertEqual(len(refused), 1)
        self.assertIn("a callback may not call", refused[0])

    def test_generators_run_on_the_calling_thread(self):
        import threading

        seen = set()

        def records():
            for image in samples()[:20]:
                seen.add(threading.get_ident())
                yield image

        tare.calibrate(self.model, records())
        tare.compare(self.model, records(), methods=["weight_only"])
        self.assertEqual(seen, {threading.get_ident()})

    def test_the_model_may_go_first(self):
        model = tare.load(GLYPHS / "saved_model")
        calibration = tare.calibrate(model, samples()[:5])
        del model
        gc.collect()
        self.assertEqual(calibration.records, 5)


if __name__ == "__main__":
    unittest.main()
