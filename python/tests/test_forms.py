"""The forms of data of Keras, torch, TensorFlow Lite and pandas: each gives the records that it means there. Forms of packages that
are not installed are those of small stand-ins with the same protocol. TARE_PYTHONS=/env/bin/python:… runs them in other environments,
with the real packages."""

import collections
import functools
import os
import subprocess
import sys
import unittest

import numpy as np
from support import Case, evaluation, samples

import tare
from tare._data import records_of

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")


def package(name):
    try:
        return __import__(name, fromlist=["name"])
    except ImportError:
        return None


pandas, torch, tensorflow, keras = map(package, ("pandas", "torch", "tensorflow", "keras"))


class Tensor:
    """As a tensor of TensorFlow: it becomes an array on request alone."""

    def __init__(self, array):
        self._array = np.asarray(array)
        self.shape, self.ndim = self._array.shape, self._array.ndim

    def __array__(self, dtype=None, copy=None):
        return self._array if dtype is None else self._array.astype(dtype)

    def __iter__(self):
        return (Tensor(row) for row in self._array)

    def __len__(self):
        return len(self._array)


def tensor(array):
    return torch.from_numpy(np.ascontiguousarray(array)) if torch else Tensor(array)


class StandInDataset:
    """As tf.data.Dataset and torch.utils.data.DataLoader: it can be iterated over again and has no index."""

    def __init__(self, items):
        self._items = items

    def __iter__(self):
        return iter(self._items)


class Indexed:
    """As torch.utils.data.Dataset with an index: without __iter__, and without an end of its own."""

    def __init__(self, count, item):
        self._count, self._item = count, item

    def __len__(self):
        return self._count

    def __getitem__(self, i):
        return self._item(i)


def mapped(function, value):
    if isinstance(value, dict):
        return {name: mapped(function, item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(mapped(function, item) for item in value)
    return function(value)


def slices(value, size):
    count = len(evaluation_part()[1])
    return [mapped(lambda array, i=i: array[i : i + size], value) for i in range(0, count, size)]


def rows(value):
    return [mapped(lambda array, i=i: array[i], value) for i in range(len(evaluation_part()[1]))]


def tf_data(value, batch=None):
    if tensorflow:
        data = tensorflow.data.Dataset.from_tensor_slices(value)
        return data if batch is None else data.batch(batch)
    return StandInDataset([mapped(Tensor, item) for item in (rows(value) if batch is None else slices(value, batch))])


def py_dataset(value, batch):
    parts = slices(value, batch)
    if not keras:
        return Indexed(len(parts), parts.__getitem__)

    class Parts(keras.utils.PyDataset):
        def __len__(self):
            return len(parts)

        def __getitem__(self, i):
            return parts[i]

    return Parts()


def loader(*arrays, batch):
    if torch:
        from torch.utils.data import DataLoader, TensorDataset

        return DataLoader(TensorDataset(*map(tensor, arrays)), batch_size=batch)
    return StandInDataset([list(map(Tensor, part)) for part in slices(tuple(arrays), batch)])


def evaluation_part():
    images, labels = evaluation()
    return images[:10], labels[:10]


IMAGE = {"image": tare.TensorSpec("image", "float32", (None, 28, 28, 1), 1)}
TWO = {"a": tare.TensorSpec("a", "float32", (None, 28, 28, 1), 1), "b": tare.TensorSpec("b", "int64", (None,), 9)}
FIXED = {"image": tare.TensorSpec("image", "float32", (5, 28, 28, 1), 1)}
Point = collections.namedtuple("Point", "image label")


def one_input():
    """(form, data, has labels): each has the ten records of X and Y."""
    X, Y = evaluation_part()
    W = np.ones(10, np.float32)
    plain, pair, weighted = X, (X, Y), (X, Y, W)
    yield "array", X, False
    yield "array without the trailing dimension of 1", X[..., 0], False
    yield "array of items", X[:, np.newaxis], False
    yield "array of batches", X.reshape(5, 2, 28, 28, 1), False
    yield "tensor", tensor(X), False
    yield "dict", {"image": X}, False
    yield "dict with labels", {"image": X, "label": Y}, True
    yield "dict without the trailing dimension of 1", {"image": X[..., 0], "label": Y}, True
    yield "dict of tensors", {"image": tensor(X), "label": tensor(Y)}, True
    yield "(inputs,)", (X,), False
    yield "(inputs, labels)", pair, True
    yield "(inputs, None)", (X, None), False
    yield "(inputs, labels, weights)", weighted, True
    yield "(tensor, tensor)", (tensor(X), tensor(Y)), True
    yield "(list, list)", (X.tolist(), Y.tolist()), True
    yield "([inputs], labels)", ([X], Y), True
    yield "(dict, labels)", ({"image": X}, Y), True
    yield "(dict, labels, weights)", ({"image": X}, Y, W), True
    yield "(dict, dict of labels)", ({"image": X}, {"label": Y}), True
    yield "(batches, batches)", (X.reshape(5, 2, 28, 28, 1), Y.reshape(5, 2)), True
    yield "[inputs]", [X], False
    yield "[inputs, labels]", [X, Y], True
    yield "[inputs, list of labels]", [X, Y.tolist()], True
    yield "[inputs, labels, weights]", [X, Y, W], True
    yield "[dict, labels]", [{"image": X}, Y], True
    yield "list of examples", list(X), False
    yield "list of examples without the trailing dimension of 1", list(X[..., 0]), False
    yield "list of pairs", rows(pair), True
    yield "list of dicts", rows({"image": X, "label": Y}), True
    yield "tuple of dicts", tuple(rows({"image": X, "label": Y})), True
    yield "list of batches", [X[:4], X[4:8], X[8:]], False
    yield "list of Python lists", X.tolist(), False
    yield "generator of examples", (x for x in X), False
    yield "generator of batches", iter(slices(plain, 4)), False
    yield "generator of pairs", iter(rows(pair)), True
    yield "generator of batches of pairs", iter(slices(pair, 4)), True
    yield "generator of batches with weights", iter(slices(weighted, 4)), True
    yield "generator of batches of (dict, labels)", iter(slices(({"image": X}, Y), 3)), True
    yield "generator of named tuples", (Point(x, y) for x, y in zip(X, Y)), True
    yield "generator of batches without the trailing dimension of 1", iter(slices((X[..., 0], Y), 3)), True
    yield "function, as a representative data set of TensorFlow Lite", lambda: ([x[np.newaxis]] for x in X), False
    yield "partial function", functools.partial(slices, pair, 4), True
    yield "tf.data", tf_data(X), False
    yield "tf.data in batches", tf_data(X, 4), False
    yield "tf.data of pairs", tf_data(pair), True
    yield "tf.data of pairs in batches", tf_data(pair, 4), True
    yield "tf.data with weights in batches", tf_data(weighted, 4), True
    yield "tf.data of dicts in batches", tf_data({"image": X, "label": Y}, 3), True
    yield "tf.data of (dict, labels) in batches", tf_data(({"image": X}, Y), 4), True
    yield "PyDataset", py_dataset(pair, 4), True
    yield "PyDataset with weights", py_dataset(weighted, 4), True
    yield "PyDataset of dicts", py_dataset(({"image": X}, Y), 4), True
    yield "DataLoader", loader(X, Y, batch=4), True
    yield "DataLoader of inputs", loader(X, batch=4), False
    yield "data set with an index", Indexed(10, lambda i: (tensor(X[i]), int(Y[i]))), True
    yield "data set of dicts with an index", Indexed(10, lambda i: {"image": X[i], "label": Y[i]}), True
    yield "data set with an index and a batch of one each", Indexed(10, lambda i: (X[i : i + 1], Y[i : i + 1])), True
    yield "deque", collections.deque(rows(pair)), True
    if pandas:
        frame = pandas.DataFrame({"image": list(X), "label": Y})
        yield "DataFrame with a column of arrays", frame, True
        yield "DataFrame with a column of lists", pandas.DataFrame({"image": X.tolist(), "label": Y}), True
        yield "DataFrame whose column has another name", frame.rename(columns={"image": "pixels"}), True
        yield "(DataFrame, column)", (frame[["image"]], frame["label"]), True
        yield "(column, column)", (frame["image"], frame["label"]), True
        yield "(DataFrame, DataFrame)", (frame[["image"]], frame[["label"]]), True
        yield "dict of columns", {"image": frame["image"], "label": frame["label"]}, True
        yield "generator of DataFrames", iter([frame[:4], frame[4:]]), True


def two_inputs():
    """The same for the inputs a, X, and b, the numbers from 0 to 9."""
    X, Y = evaluation_part()
    B = np.arange(10)
    columns = {"a": X, "b": B}
    yield "dict", columns, False
    yield "dict with labels", {**columns, "label": Y}, True
    yield "(a, b)", (X, B), False
    yield "(a, b, labels)", (X, B, Y), True
    yield "[a, b]", [X, B], False
    yield "[a, b, labels]", [X, B, Y], True
    yield "((a, b), labels)", ((X, B), Y), True
    yield "([a, b], labels)", ([X, B], Y), True
    yield "([a, b], labels, weights)", ([X, B], Y, np.ones(10)), True
    yield "(dict, labels)", (columns, Y), True
    yield "generator of dicts", iter(rows(columns)), False
    yield "generator of batches of (dict, labels)", iter(slices((columns, Y), 4)), True
    yield "generator of batches of ((a, b), labels)", iter(slices(((X, B), Y), 4)), True
    yield "tf.data in batches", tf_data((columns, Y), 4), True
    yield "tf.data of tuples", tf_data(((X, B), Y), 4), True
    yield "PyDataset", py_dataset(((X, B), Y), 4), True
    yield "DataLoader", loader(X, B, Y, batch=4), True
    if pandas:
        yield "DataFrame", pandas.DataFrame({"b": B.astype(float), "a": list(X), "label": Y}), True


class Forms(unittest.TestCase):
    def check(self, specs, data, labelled):
        X, Y = evaluation_part()
        expected = {"image": X, "a": X, "b": np.arange(10)}
        found = list(records_of(data, specs))
        self.assertEqual(len(found), 10)
        for i, record in enumerate(found):
            self.assertEqual(set(record) - {"sample_weight"}, {*specs, "label"} if labelled else set(specs))
            for name in specs:
                self.assertEqual(record[name].shape[1:], expected[name].shape[1:])
                np.testing.assert_array_equal(record[name], expected[name][i : i + 1])
            if labelled:
                self.assertEqual(np.asarray(record["label"]).reshape(-1).tolist(), [Y[i]])

    def test_of_one_input(self):
        forms = list(one_input())
        self.assertGreaterEqual(len(forms), 55)
        for name, data, labelled in forms:
            with self.subTest(name):
                self.check(IMAGE, data, labelled)

    def test_of_two_inputs(self):
        for name, data, labelled in two_inputs():
            with self.subTest(name):
                self.check(TWO, data, labelled)

    def test_of_a_model_with_a_fixed_batch(self):
        X, Y = evaluation_part()
        for data in ((X, Y), [X, Y], {"image": X, "label": Y}, iter([(X, Y)]), iter(slices((X, Y), 5)), tf_data((X, Y), 5)):
            found = list(records_of(data, FIXED))
            self.assertEqual([record["image"].shape for record in found], [(5, 28, 28, 1)] * 2)
            np.testing.assert_array_equal(np.concatenate([record["image"] for record in found]), X)
            np.testing.assert_array_equal(np.concatenate([record["label"] for record in found]), Y)

    def test_of_numbers_and_texts(self):
        number = {"x": tare.TensorSpec("x", "float32", (None, 1), 1)}
        for data in (np.float32([1, 2, 3]), np.float32([[1], [2], [3]]), [1.0, 2.0, 3.0], iter(np.float32([1, 2, 3])), [[1.0], [2.0], [3.0]]):
            self.assertEqual([r["x"].tolist() for r in records_of(data, number)], [[[1.0]], [[2.0]], [[3.0]]])
        text = {"x": tare.TensorSpec("x", "string", (None,), 7)}
        for data in (np.array(["a", "b"], object), iter(["a", "b"]), (["a", "b"], [0, 1]), iter([(["a", "b"], [0, 1])])):
            self.assertEqual([r["x"].tolist() for r in records_of(data, text)], [["a"], ["b"]])
        scalar = {"x": tare.TensorSpec("x", "float32", (None, 2), 1), "rate": tare.TensorSpec("rate", "float32", (), 1)}
        X = np.float32([[1, 2], [3, 4]])
        for data in ({"x": X, "rate": np.float32(0.5)}, (X, 0.5), iter([(X, 0.5)])):
            found = list(records_of(data, scalar))
            self.assertEqual([(r["x"].tolist(), r["rate"].tolist()) for r in found], [([[1, 2]], 0.5), ([[3, 4]], 0.5)])

    def test_of_memoryviews(self):
        X = np.float32(np.arange(12).reshape(3, 4))
        spec = {"x": tare.TensorSpec("x", "float32", (None, 4), 1)}
        wide = np.zeros((3, 8), np.float32)
        wide[:, ::2] = X
        for data in (memoryview(X), memoryview(wide[:, ::2]), (memoryview(X), np.arange(3)), {"x": memoryview(X)}, map(memoryview, X)):
            self.assertEqual([r["x"].tolist() for r in records_of(data, spec)], [[row] for row in X.tolist()])
        with self.assertRaisesRegex(tare.DTypeError, "array x: expected float32, got complex128"):
            list(records_of(memoryview(X.astype(complex)), spec))

    def test_batches_of_dependent_rows_are_records(self):
        clouds = [np.float32(np.arange(3 * n).reshape(n, 3)) for n in (4, 6)]
        spec = {"points": tare.TensorSpec("points", "float32", (None, 3), 1)}
        asked = []
        found = list(records_of(iter(clouds), spec, separable=lambda two: asked.append(two) or False))
        self.assertEqual([record["points"].shape for record in found], [(4, 3), (6, 3)])
        self.assertEqual([two["points"].tolist() for two in asked], [clouds[0][:2].tolist()])

    def test_errors_name_the_form(self):
        X, Y = evaluation_part()

        def fails(specs, data, *texts):
            for text in texts:
                with self.assertRaises(tare.InvalidArgumentError) as caught:
                    list(records_of(data() if callable(data) else data, specs, outputs=["u", "v"]))
                self.assertIn(text, str(caught.exception))

        fails(IMAGE, (X, Y, Y, Y), "tuple of 4: array [10, 28, 28, 1]; array [10]; array [10]; … (expected (inputs), (inputs, labels) or")
        fails(TWO, X, "data: array [10, 28, 28, 1], but the model has 2 inputs (expected a dict with keys a, b, or a tuple")
        fails(TWO, [X, X, X, X, X], "data: record 0: array [10, 28, 28, 1], but the model has 2 inputs")
        fails(IMAGE, [X, X], "list of 2: array [10, 28, 28, 1]; array [10, 28, 28, 1]: batches, or inputs and labels?")
        fails(IMAGE, ({"image": X}, {"image": Y}), "labels have the name of the input image")
        fails(IMAGE, ({"image": X}, (Y, Y)), "labels are a tuple of 2: array [10]; array [10] (pass a dict by output: u, v)")
        fails(IMAGE, {"image": X, "label": Y[:3]}, "different numbers of records (image 10, label 3)")
        fails(IMAGE, lambda: iter([X[0], (X[1], 1, 1, 1)]), "data: record 1: tuple of 4")
        fails(IMAGE, 7, "int is not supported (expected a DataFrame, a dict of arrays, an array")


class Batches(Case):
    """In calibrations, comparisons and runs a batch counts as its examples."""

    def test_are_counted_as_examples(self):
        X, Y = (array[:100] for array in evaluation())
        expected = tare.calibrate(self.model, X).describe()["tensors"]
        for data in ((X[i : i + 32] for i in range(0, 100, 32)), ({"image": X}, Y), [X, Y], ((X[i : i + 32], Y[i : i + 32]) for i in (0, 32, 64, 96))):
            calibration = tare.calibrate(self.model, data)
            self.assertEqual(calibration.records, 100)
            self.assertEqual(calibration.describe()["tensors"], expected)
        self.assertEqual(tare.calibrate(self.model, iter([X]), limit=30).records, 30)

    def test_have_the_interval_of_their_examples(self):
        X, Y = (array[:100] for array in evaluation())
        whole, parts = (tare.compare(self.model, data, methods=["weight_only"]) for data in ((X, Y), iter([(X[:60], Y[:60]), (X[60:], Y[60:])])))
        self.assertEqual(parts.describe()["records"], 100)
        for name in ("value", "low", "high", "p"):
            self.assertEqual(parts.rows.column(name), whole.rows.column(name))

    def test_run_takes_the_same_forms(self):
        X, Y = evaluation_part()
        expected = self.model.run(X)["probabilities"]
        for data in (X[..., 0], memoryview(X), {"image": X[..., 0]}, iter([X[:6], X[6:]]), tf_data((X, Y), 4), loader(X, Y, batch=4), py_dataset((X, Y), 3), list(X)):
            np.testing.assert_array_equal(self.model.run(data)["probabilities"], expected)
        if pandas:
            np.testing.assert_array_equal(self.model.run(pandas.DataFrame({"image": list(X)}))["probabilities"], expected)
        with self.fails(tare.InvalidArgumentError, "inputs: no records"):
            self.model.run(iter([]))

    def test_run_in_batches(self):
        expected = self.model.run(samples()[:100])
        for size in (1, 7, 32, 100, 1000):
            found = self.model.run(samples()[:100], batch_size=size)
            self.assertEqual(list(found), list(expected))
            np.testing.assert_array_equal(found["probabilities"], expected["probabilities"])
        self.assertEqual(self.model.run(samples()[:0], batch_size=4)["probabilities"].shape, (0, 10))
        for size in (0, -1, 1.5, True):
            with self.fails(tare.UsageError, "batch_size: invalid number of rows"):
                self.model.run(samples()[:4], batch_size=size)
        with self.fails(tare.UsageError, "batch_size: applies to arrays"):
            self.model.run(iter([samples()[:4]]), batch_size=2)

    def test_memory_of_a_run_in_batches_does_not_grow(self):
        program = (
            "import resource, sys, numpy as np, tare\n"
            "model = tare.load(sys.argv[1])\n"
            "images = np.zeros((8000, 28, 28, 1), np.float32)\n"
            "size = int(sys.argv[2]) or None\n"
            "model.run(images[:64])\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "model.run(images, batch_size=size)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        )
        path = self.model.path
        grown = [int(subprocess.run([sys.executable, "-c", program, path, size], check=True, capture_output=True, text=True).stdout) for size in ("64", "0")]
        self.assertLess(grown[0], 40_000, "KiB, of which the images are 24,500")
        self.assertGreater(grown[1], grown[0] + 20_000)


class Environments(unittest.TestCase):
    def test_have_the_same_forms(self):
        if "TARE_PYTHONS" not in os.environ:
            self.skipTest("TARE_PYTHONS names no other environments")
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
        pythons = environment.pop("TARE_PYTHONS").split(":")
        for python in pythons:
            result = subprocess.run([python, "-B", __file__], env=environment, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, f"{python}: {result.stderr}")


if __name__ == "__main__":
    unittest.main()
