"""Models: loading, describing, running, quantizing, converting, saving."""

import copy
import pickle
import shutil
import threading
import unittest

import numpy as np
from support import CALIBRATION, GLYPHS, Case, evaluation, samples

import tare

RECIPE = "op=MatMul -> float\n"


class Loading(Case):
    def test_signatures_have_specs(self):
        signature = self.model.signatures["serving_default"]
        self.assertEqual(signature.inputs["image"].shape, (None, 28, 28, 1))
        self.assertEqual(signature.inputs["image"].dtype, "float32")
        self.assertEqual(signature.outputs["probabilities"].rank, 2)
        self.assertIn("tpu_func", self.model.aliases)
        self.assertIn("serving_default", repr(self.model))

    def test_models_are_loaded(self):
        with self.assertRaisesRegex(TypeError, r"made by tare\.load \(got Model\('my_model'\)\)"):
            tare.Model("my_model")

    def test_tags_choose_the_metagraph(self):
        self.assertEqual(list(tare.load(GLYPHS / "saved_model", tags=["serve"]).signatures), ["serving_default"])
        with self.fails(tare.NotFoundError, "serve"):
            tare.load(GLYPHS / "saved_model", tags="serve,tpu")

    def test_modules_for_several_platforms_run_as_on_a_cpu(self):
        model = tare.load(GLYPHS.parents[1] / "tests/golden/jax/platform_branches.jaxexport")
        [values] = model.run({"arg0": np.array([1, 2, 3], np.float32)}).values()
        np.testing.assert_array_equal(values, [3592, 4603, 5614])

    def test_errors_have_status_and_place(self):
        with self.assertRaises(tare.NotFoundError) as caught:
            tare.load("/nowhere/at/all")
        self.assertEqual(caught.exception.status, tare.Status.NOT_FOUND)
        self.assertEqual(caught.exception.where, "/nowhere/at/all")
        self.assertIsInstance(caught.exception, LookupError)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.status), (str(caught.exception), tare.Status.NOT_FOUND))

    def test_errors_name_arguments_in_place_of_options(self):
        for text, expected in [
            ("missing option '--data' (or --input NAME=FILE.npy)", "missing option 'data' (or input=NAME=FILE.npy)"),
            ("use --algorithm mse, or --bits 8", "use algorithm mse, or bits 8"),
            ("samples (give --data SAMPLES --eval FILE, or --calibration FILE.calib)", "samples (pass calibration=)"),
            ("load those with --plugin LIB.so: Bar", "load those with plugins=LIB.so: Bar"),
            ("(a path is /a--b/--c)", "(a path is /a--b/--c)"),
            ("names no function (tare inspect --suggest names some)", "names no function (tare inspect --suggest names some)"),
            ("copy it: 'gcloud cat | tare … --data -'", "copy it: 'gcloud cat | tare … --data -'"),
        ]:
            self.assertEqual(str(tare.Error(text)), expected)

    def test_a_damaged_model_is_corrupt(self):
        (self.tmp / "saved_model.pb").write_bytes(b"\x0a\xff\xff\xff\x0f")
        with self.assertRaises(tare.CorruptDataError):
            tare.load(self.tmp)

    def test_a_model_without_its_variables_is_not_converted(self):
        (self.tmp / "bare").mkdir()
        shutil.copy(GLYPHS / "saved_model" / "saved_model.pb", self.tmp / "bare")
        model = tare.load(self.tmp / "bare")
        for call in (model.convert, lambda: model.quantize("weight_only"), lambda: model.unwrap(self.tmp / "out")):
            with self.fails(tare.NotFoundError, "57 variables but no checkpoint"):
                call()
        model = tare.load(self.tmp / "bare", allow_missing_variables=True)
        with self.assertWarnsRegex(tare.TareWarning, "57 variables but no checkpoint"):
            model.convert().save(self.tmp / "out")

    def test_invalid_threads_are_refused(self):
        with self.fails(tare.InvalidArgumentError, "expected 0 to 1024, got -1"):
            tare.load(GLYPHS / "saved_model", threads=-1)

    def test_one_plugin_needs_no_list(self):
        with self.fails(tare.FileError, "plugin /nowhere.so"):
            tare.load(GLYPHS / "saved_model", plugins="/nowhere.so")

    def test_a_missing_plugin_is_reported(self):
        with self.fails(tare.Error, "no_such.so"):
            tare.load(GLYPHS / "saved_model", plugins=[self.tmp / "no_such.so"])


class Running(Case):
    def test_classifies_like_the_trained_model(self):
        images, labels = evaluation()
        expected = np.load(GLYPHS / "expected_eval.npy")
        found = self.model.run({"image": images})["probabilities"]
        self.assertEqual(found.shape, (1000, 10))
        np.testing.assert_allclose(found, expected, atol=1e-4)
        self.assertGreater((found.argmax(-1) == labels).mean(), 0.9)

    def test_takes_one_array_keywords_and_lists(self):
        image = samples()[:1]
        expected = self.model.run({"image": image})["probabilities"]
        for found in (self.model.run(image), self.model.run(image=image), self.model.run(image=image.tolist())):
            np.testing.assert_array_equal(found["probabilities"], expected)

    def test_strides_and_byte_orders_do_not_matter(self):
        image = samples()[:2]
        expected = self.model.run(image)["probabilities"]
        turned = np.asfortranarray(image)
        swapped = image.astype(">f4")
        wide = np.zeros((2, 28, 28, 3), np.float32)
        wide[..., 1:2] = image
        for other in (turned, swapped, wide[..., 1:2]):
            np.testing.assert_array_equal(self.model.run(other)["probabilities"], expected)

    def test_inputs_are_not_copied_and_outputs_are_not_shared(self):
        big = np.zeros((64, 28, 28, 1), np.float32)
        first = self.model.run(big)["probabilities"]
        kept = first.copy()
        self.model.run(big + 1)
        np.testing.assert_array_equal(first, kept)
        first[:] = 7  # writable, and nobody else's
        np.testing.assert_array_equal(self.model.run(big)["probabilities"], kept)

    def test_outputs_outlive_the_model(self):
        model = tare.load(GLYPHS / "saved_model")
        found = model.run(samples()[:3])["probabilities"]
        kept = found.copy()
        del model
        np.testing.assert_array_equal(found, kept)

    def test_inputs_that_do_not_match_are_refused(self):
        with self.fails(tare.DTypeError, "expected float32, got float64"):
            self.model.run(samples()[:1].astype(np.float64))
        with self.fails(tare.ShapeError, "expected shape [?,28,28,1]"):
            self.model.run(samples()[:1, :27])
        with self.fails(tare.InvalidArgumentError, "{image}. Got: {picture}"):
            self.model.run({"picture": samples()[:1]})
        with self.fails(tare.NotFoundError, "nothing"):
            self.model.run(samples()[:1], signature="nothing")
        with self.fails(tare.DTypeError, "datetime64"):
            self.model.run({"image": np.zeros((1,), "datetime64[s]")})

    def test_inputs_given_twice_are_refused(self):
        images = np.zeros((1, 28, 28, 1), np.float32)
        with self.fails(tare.InvalidArgumentError, "input image: is given twice"):
            self.model.run({"image": images}, image=images)
        with self.fails(tare.InvalidArgumentError, "input image: is given twice"):
            self.model.function("tpu_func")({"image": images}, image=images)

    def test_empty_batches_have_empty_outputs(self):
        self.assertEqual(self.model.run(samples()[:0])["probabilities"].shape, (0, 10))

    def test_functions_are_called_by_alias(self):
        function = self.model.function("tpu_func")
        expected = self.model.run(samples()[:2])["probabilities"]
        for _ in range(2):  # opened, then reused
            (found,) = function(image=samples()[:2]).values()
            np.testing.assert_array_equal(found, expected)
        for count in range(1, 11):  # more shapes than runners are kept for
            (found,) = function({"image": samples()[:count]}).values()
            self.assertEqual(found.shape, (count, 10))
        with self.fails(tare.NotFoundError, "nothing"):
            self.model.function("nothing")(x=1.0)

    def test_lists_get_the_dtype_of_the_argument(self):
        function = self.model.function("tpu_func")
        expected = function(image=samples()[:2])
        found = function(image=samples()[:2].tolist())
        for name, array in function({"image": samples()[:2].tolist()}).items():
            np.testing.assert_array_equal(array, expected[name])
            np.testing.assert_array_equal(found[name], expected[name])
        function(image=np.zeros((1, 28, 28, 1), np.int64).tolist())
        with self.fails(tare.DTypeError, "array image: 1e+300 at [0, 0, 0, 0] is out of range (expected float32)"):
            function(image=[[[[1e300]]]])
        with self.fails(tare.DTypeError, "expected to be a float tensor but is a double tensor"):
            function(image=samples()[:2].astype(np.float64))
        with self.fails(tare.InvalidArgumentError, "'image', is missing"):
            function(picture=[1])

    def test_copies_share_the_model(self):
        model = self.model.quantize("weight_only")
        expected = model.run(samples()[:2])["probabilities"]
        for made in (copy.copy(model), copy.deepcopy(model)):
            np.testing.assert_array_equal(made.run(samples()[:2])["probabilities"], expected)
            self.assertEqual(made.report, model.report)
        copy.deepcopy(model).report["layers"].clear()
        self.assertTrue(model.report["layers"])
        function = copy.deepcopy(self.model.function("tpu_func"))
        self.assertEqual(function(image=samples()[:2]).keys(), self.model.function("tpu_func")(image=samples()[:2]).keys())
        for refused in (model, function):
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(refused)

    def test_threads_run_at_the_same_time(self):
        images, _ = evaluation()
        expected = self.model.run(images[:50])["probabilities"]
        wrong = []

        def work():
            for _ in range(5):
                if not np.array_equal(self.model.run(images[:50])["probabilities"], expected):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Quantizing(Case):
    def test_weight_only_needs_no_calibration(self):
        small = self.model.quantize("weight_only", bits=4, granularity="per_block:32")
        self.assertLess(small.weight_bytes, 0.4 * self.model.weight_bytes)
        self.assertGreater(small.report["quantized_ops"], 5)
        found = small.run(samples()[:20])["probabilities"].argmax(-1)
        self.assertGreater((found == self.model.run(samples()[:20])["probabilities"].argmax(-1)).mean(), 0.8)

    def test_a_calibration_is_one_its_file_or_data_for_one(self):
        made = tare.calibrate(self.model, samples())
        made.save(self.tmp / "my.calib")
        wanted = self.model.quantize("static", made).run(samples()[:20])["probabilities"]
        for given in (self.tmp / "my.calib", samples(), {"image": samples()}, (example for example in samples())):
            found = self.model.quantize("static", given).run(samples()[:20])["probabilities"]
            np.testing.assert_array_equal(found, wanted, type(given).__name__)
        found = self.model.quantize("static", data=samples()).run(samples()[:20])["probabilities"]
        np.testing.assert_array_equal(found, wanted)
        self.assertEqual(self.model.layers("static", samples()).column("quantized")[0], "static")
        self.assertIn("tpu_cost", self.model.convert(calibration=self.tmp / "my.calib").report)

    def test_data_gives_what_passes_need(self):
        small = self.model.quantize("weight_only", samples(), bits=4, passes="gptq")
        self.assertLess(small.weight_bytes, 0.4 * self.model.weight_bytes)

    def test_what_is_no_calibration_is_named(self):
        with self.fails(tare.NotFoundError, "cannot open 'my.calib'"):
            self.model.quantize("static", "my.calib")
        with self.fails(tare.InvalidArgumentError, "calibration: int is not supported"):
            self.model.quantize("static", 3)
        with self.fails(tare.ShapeError, "calibration: record 0: input image"):
            self.model.quantize("static", samples()[:, :5])
        with self.fails(tare.UsageError, "and so is the option data"):
            self.model.quantize("static", samples(), data=samples())
        with self.fails(tare.UsageError, "applies to files"):
            self.model.quantize("static", samples(), spec="a.spec")
        with self.fails(tare.InvalidArgumentError, "expected a Calibration, got str"):
            self.model.convert(calibration="my.calib")

    def test_options_are_checked(self):
        with self.fails(tare.UsageError, "did you mean 'granularity'"):
            self.model.quantize("weight_only", granulariti="x")
        with self.fails(tare.NotFoundError, "cannot open 'a\"b'"):
            self.model.quantize("weight_only", recipe='a"b')
        with self.fails(tare.UsageError, "needs representative samples"):
            self.model.quantize("static")
        with self.fails(tare.UsageError, "unknown method"):
            self.model.quantize('weight_only" bits="4')
        for options in (5, b"x", [1]):
            with self.fails(tare.InvalidArgumentError, "options: expected a str or a dict"):
                self.model.convert(options)
        for call in (tare.load, self.model.save, self.model.function, self.model.quantize, tare.Calibration.load):
            with self.fails(tare.InvalidArgumentError, "contains a null character"):
                call("a\0b")
        with self.fails(tare.InvalidArgumentError, "contains a null character"):
            next(tare.read_records(f"{CALIBRATION}\0"))

    def test_bytes_are_no_text(self):
        for call in (
            lambda: self.model.quantize("weight_only", recipe=b"/nowhere"),
            lambda: self.model.quantize("weight_only", bits=b"4"),
            lambda: tare.calibrate(self.model, CALIBRATION, spec=b"/nowhere"),
            lambda: tare.calibrate(self.model, samples()[:1], state=b"/nowhere/my.state"),
            lambda: tare.compare(self.model, samples()[:1], methods=[b"weight_only"]),
            lambda: tare.compare(self.model, samples()[:1], label=b"label"),
        ):
            with self.assertRaises(TypeError) as caught:
                call()
            self.assertRegex(str(caught.exception), r"^[a-z]+: expected a str, got bytes")
        self.assertEqual(self.model.quantize("weight_only", depthwise=np.False_).weight_bytes, 47412)

    def test_unknown_inputs_are_refused(self):
        with self.fails(tare.InvalidArgumentError, "input imgae: unknown input (serving_default has image)"):
            self.model.run({"image": samples()[:1], "imgae": 1.0})

    def test_descriptions_are_the_callers(self):
        self.model.describe().clear()
        self.assertIn("tpu_func", self.model.aliases)

    def test_recipes_select_layers(self):
        (self.tmp / "my recipe.txt").write_text(RECIPE)
        fewer = self.model.quantize("weight_only", recipe=self.tmp / "my recipe.txt")
        every = self.model.quantize("weight_only")
        self.assertEqual(fewer.report["quantized_ops"], every.report["quantized_ops"] - 1)

    def test_layers_are_listed_with_the_reason_of_those_left_float(self):
        layers = self.model.layers()
        self.assertEqual(len(layers), 12)
        self.assertTrue(all("quantized" in layer or "refused" in layer for layer in layers))
        self.assertTrue(any(layer.get("refused") for layer in layers))
        self.assertIn("<table>", layers._repr_html_())

    def test_saved_models_give_the_same_outputs(self):
        small = self.model.quantize("weight_only")
        small.save(self.tmp / "small")
        with self.assertRaises(tare.InvalidArgumentError):
            small.save(self.tmp / "small")
        small.save(self.tmp / "small", overwrite=True)
        again = tare.load(self.tmp / "small")
        np.testing.assert_array_equal(
            again.run(samples()[:5])["probabilities"], small.run(samples()[:5])["probabilities"]
        )


class Converting(Case):
    def test_functions_go_to_the_tpu(self):
        for converted in (self.model.convert(), self.model.convert(functions="tpu_func"),
                          self.model.convert('tpu_functions { function_alias: "tpu_func" }')):  # fmt: skip
            self.assertIn("TPUPartitionedCall", converted.describe()["ops"])
            self.assertIn("chips", converted.report)
            self.assertEqual(converted.describe()["tags"], "serve,tpu")
        self.assertIn("chips", converted.report._repr_html_())
        self.assertEqual(self.model.convert(keep_tags=True).describe()["tags"], "serve")

    def test_comments_in_options_end_with_their_line(self):
        options = 'bfloat16_optimization: DISABLED  # not: tpu_functions { }, quantization_options'
        self.assertIn("TPUPartitionedCall", self.model.convert(options).describe()["ops"])
        self.assertIn("TPUPartitionedCall", self.model.convert(options, functions="tpu_func").describe()["ops"])
        with self.fails(tare.Error, "nope"):
            self.model.convert(options, functions="nope")
        calibration = tare.calibrate(self.model, samples()[:100])
        converted = self.model.convert(options, functions="tpu_func", calibration=calibration)
        self.assertGreater(sum(f["int8_macs"] for f in converted.report["functions"]), 0)

    def test_options_are_fields_of_the_message(self):
        report = tare.tpu.report(self.model, functions=["tpu_func"], bfloat16_optimization="DISABLED")
        rounded = tare.tpu.report(self.model, functions=["tpu_func"], bfloat16_optimization="ENABLED")
        self.assertLess(rounded["hbm"]["after"]["weights"], report["hbm"]["after"]["weights"])
        xla = self.model.convert(xla_functions=[{"device_type": "TPU", "function_alias": "tpu_func"}])
        self.assertEqual(xla.report["tpu_cost"], self.model.convert(functions="tpu_func").report["tpu_cost"])
        text = 'xla_functions { device_type: TPU function_alias: "tpu_func" }'
        self.assertEqual(self.model.convert(text).report["tpu_cost"], xla.report["tpu_cost"])
        with self.fails(tare.Error, "has no value 'OFF'"):
            self.model.convert(xla_io_optimization="OFF")
        with self.fails(tare.Error, "no_such_field"):
            self.model.convert({"no_such_field": 1})
        batched = self.model.convert(
            functions="tpu_func",
            batch_options={"num_batch_threads": 2, "max_batch_size": 8, "batch_timeout_micros": 100,
                           "allowed_batch_sizes": [4, 8], "max_enqueued_batches": 10},
        )  # fmt: skip
        self.assertEqual(batched.report["full_batch"], 8)

    def test_a_calibration_quantizes(self):
        calibration = tare.calibrate(self.model, samples()[:100])
        converted = self.model.convert(functions="tpu_func", calibration=calibration)
        self.assertGreater(sum(f["int8_macs"] for f in converted.report["functions"]), 0)

    def test_a_calibration_does_not_replace_the_options(self):
        calibration = tare.calibrate(self.model, samples()[:20])
        with self.fails(tare.InvalidArgumentError, "has no field 'no_such_field'"):
            self.model.convert(calibration=calibration, external_feature_configs={"quantization_options": {"no_such_field": 1}})
        converted = self.model.convert(
            'tpu_functions { function_alias: "tpu_func" } external_feature_configs { quantization_options { } }',
            calibration=calibration,
        )
        self.assertGreater(sum(f["int8_macs"] for f in converted.report["functions"]), 0)


if __name__ == "__main__":
    unittest.main()
