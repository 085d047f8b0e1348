#!/usr/bin/env python3
"""Accuracy of quantized models here and by other tools, in the same method, on seven small models that are trained in a minute each,
and on the models and records of kws and resnet8 in the folder of test data, $TARE_TEST_DATA.

quantizers.py write FOLDER [NAME…]  trains the models (or those named) and writes them as SavedModels, TensorFlow Lite and ONNX models, with
                                    samples and test records; TensorFlow with Keras, tf2onnx
quantizers.py peers FOLDER [NAME…]  quantizes and runs them by each of the other tools that this Python has: TensorFlow's quantizer;
                                    TensorFlow Lite, ONNX Runtime, NNCF (OpenVINO), ai-edge-quantizer (ai-edge-litert runs the first and last)
quantizers.py table FOLDER TARE [PAGE]  quantizes and runs them by TARE, the program; prints a table in Markdown, or puts it into PAGE; numpy

Data and weights follow from fixed seeds. A cell has the measure, and `*` where it is significantly worse than ours in the same
row and `+` where it is better (paired test, p < 0.05): McNemar's exact test of classes, the sign test of squared errors.
"""
from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
METHODS = ("static", "dynamic", "weight_only")
SAMPLES, RECORDS = 256, 2000
TAKEN = {"kws": ("models/mlperf-tiny-kws", "tasks/kws/calibration.tfrecord.gz", "tasks/kws/eval.tfrecord.gz"),
         "resnet8": ("models/resnet8_cifar10", "datasets/cifar10/calibration-512.tfrecord.gz", "datasets/cifar10/eval-1000.tfrecord.gz")}
NAMES = ("depthwise", "depthwise-spread", "transformer", "autoencoder", "table-1", "table-2", "lstm", *TAKEN)
MARKS = ("<!-- table of bench/quantizers.py -->", "<!-- end of the table -->")


# ---- data: classes, or the input itself as the target ----

def images(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gratings of ten directions in noise."""
    y = random.integers(0, 10, count)
    angle = (y * math.pi / 10 + random.normal(0, 0.05, count))[:, None, None]
    row, column = np.mgrid[0:16, 0:16] / 16
    wave = np.sin(12 * (row * np.cos(angle) + column * np.sin(angle)) + random.uniform(0, 6.3, (count, 1, 1)))
    x = wave[..., None] * random.uniform(0.3, 1, (count, 1, 1, 3)) + random.normal(0, 0.7, (count, 16, 16, 3))
    return x.astype(np.float32), y


def sequences(random: np.random.Generator, count: int, length: int = 12, width: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The class is that of two channels that are most alike over time."""
    x = random.normal(0, 1, (count, length, width)).astype(np.float32)
    y = random.integers(0, width // 2, count)
    for i, channel in enumerate(y):
        x[i, :, 2 * channel + 1] = 0.75 * x[i, :, 2 * channel] + 0.66 * x[i, :, 2 * channel + 1]
    return x * np.exp(random.normal(0, 0.3, (count, 1, 1))).astype(np.float32), y


def spectra(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mixtures of six shapes, some of them large."""
    base = np.random.default_rng(9).normal(0, 1, (6, 64))
    x = np.tanh(random.gamma(0.7, 1.5, (count, 6)) @ base / 4) * np.exp(random.normal(0, 0.5, (count, 1)))
    x = (x + random.normal(0, 0.02, x.shape)).astype(np.float32)
    return x, x


def table(random: np.random.Generator, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features between 0.001 and 2,500; the class depends on products of small and large ones."""
    fixed = np.random.default_rng(seed)
    scale, shift, w = 10 ** fixed.uniform(-3, 3.4, 12), fixed.uniform(-2, 4, 12), fixed.normal(0, 1, (12, 4))
    z = random.normal(0, 1, (count, 12))
    score = z @ w + (z * np.roll(z, 1, 1)) @ np.roll(w, 3, 0)
    return ((z + shift) * scale).astype(np.float32), score.argmax(1)


def data_of(name: str, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    if name.startswith("table"):
        return table(random, count, int(name[-1]))
    return {"depthwise": images, "depthwise-spread": images, "transformer": sequences, "lstm": sequences,
            "autoencoder": spectra}[name](random, count)


# ---- models ----

def network(name: str, x: np.ndarray):  # noqa: ANN201 (a Keras model)
    import keras
    layers = keras.layers
    i = layers.Input(x.shape[1:])
    if name.startswith("depthwise"):
        h = layers.Conv2D(16, 3, strides=2, padding="same", activation="swish")(i)
        for _ in range(2):
            h = layers.DepthwiseConv2D(3, padding="same")(layers.Conv2D(32, 1)(h))
            h = layers.Conv2D(24, 1)(layers.Activation("swish")(layers.BatchNormalization()(h)))
        o = layers.Dense(10)(layers.GlobalAveragePooling2D()(layers.Activation("swish")(h)))
    elif name == "transformer":
        def gelu(x):  # noqa: ANN001, ANN202 (of tanh: tf2onnx has no Erfc)
            return keras.activations.gelu(x, approximate=True)

        h = layers.Dense(32)(i)
        for _ in range(2):
            a = layers.LayerNormalization()(h)
            h = layers.Add()([h, layers.MultiHeadAttention(4, 8)(a, a)])
            h = layers.Add()([h, layers.Dense(32)(layers.Activation(gelu)(layers.Dense(64)(layers.LayerNormalization()(h))))])
        o = layers.Dense(6)(layers.Flatten()(h))
    elif name == "autoencoder":
        h = layers.Dense(8, "relu")(layers.Dense(48, "relu")(i))
        o = layers.Dense(64)(layers.Dense(48, "relu")(h))
    elif name.startswith("table"):
        h = layers.Dense(64, "relu")(layers.Normalization(mean=x.mean(0), variance=x.var(0))(i))
        o = layers.Dense(4)(layers.Dense(64, "relu")(h))
    else:
        o = layers.Dense(6)(layers.LSTM(32, unroll=True)(layers.LSTM(24, unroll=True, return_sequences=True)(i)))
    return keras.Model(i, o)


def spread(model) -> None:  # noqa: ANN001
    """Channels between two linear layers, or a normalization and the layers that read it, get other scales: the function stays."""
    import keras
    random = np.random.default_rng(4)
    stack = model.layers
    for first, second in zip(stack, stack[1:], strict=False):
        if isinstance(first, keras.layers.Conv2D) and isinstance(second, keras.layers.DepthwiseConv2D):
            scale = np.exp(random.normal(0, 1.6, first.filters)).astype(np.float32)
            first.set_weights([w * scale for w in first.get_weights()])
            kernel, bias = second.get_weights()
            second.set_weights([kernel / scale[:, None], bias])


def outliers(model) -> None:  # noqa: ANN001
    """Three channels of each normalization become 40 times as large."""
    import keras
    scale = np.ones(32, np.float32)
    scale[[3, 11, 20]] = 40
    readers = {"MultiHeadAttention", "Dense"}
    for layer in model.layers:
        if not isinstance(layer, keras.layers.LayerNormalization):
            continue
        layer.set_weights([w * scale for w in layer.get_weights()])
        for node in layer._outbound_nodes:     # noqa: SLF001
            reader = node.operation
            assert type(reader).__name__ in readers
            parts = [reader] if hasattr(reader, "kernel") else [reader.query_dense, reader.key_dense, reader.value_dense]
            for part in parts:
                kernel, *rest = part.get_weights()
                part.set_weights([kernel / scale.reshape([32] + [1] * (kernel.ndim - 1)), *rest])


def train(name: str):  # noqa: ANN201 (a Keras model, samples, test records, expected values)
    import keras
    keras.utils.set_random_seed(2)
    x, y = data_of(name, 1, 6000)
    model = network(name, x)
    regression = name == "autoencoder"
    model.compile(keras.optimizers.Adam(3e-3), "mse" if regression else keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=100, epochs=8, verbose=0)
    if name == "depthwise-spread":
        spread(model)
    if name == "transformer":
        outliers(model)
    return model, data_of(name, 3, SAMPLES)[0], *data_of(name, 5, RECORDS)


def take(name: str):  # noqa: ANN201 (likewise)
    import tensorflow as tf
    from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2
    model, *paths = (os.path.join(os.environ["TARE_TEST_DATA"], path) for path in TAKEN[name])
    loaded = tf.saved_model.load(model)
    signature = loaded.signatures["serving_default"]
    key, output = next(iter(signature.structured_input_signature[1])), next(iter(signature.structured_outputs))
    found = []
    for path in paths:
        samples = [quantization_options_pb2.RepresentativeDataSample.FromString(record.numpy()).tensor_proto_inputs
                   for record in tf.data.TFRecordDataset(path, compression_type="GZIP")]
        found.append(np.concatenate([tf.make_ndarray(sample[key]) for sample in samples]))
    labels = np.array([int(tf.make_ndarray(sample["label"]).ravel()[0]) for sample in samples])

    class Taken(tf.Module):
        def __call__(self, x: tf.Tensor, **_: bool) -> tf.Tensor:
            return signature(**{key: x})[output]

    module = Taken()
    module.loaded = loaded
    return module, found[0][:SAMPLES], found[1], labels


def write_model(name: str, folder: Path) -> None:
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    model, samples, test, expected = take(name) if name in TAKEN else train(name)
    folder.mkdir(parents=True)
    for key, array in (("samples", samples), ("test", test), ("expected", expected)):
        np.save(folder / f"{key}.npy", array)
    outputs = []
    for place, rows in (("model", None), ("one", 1)):
        serve = tf.function(lambda x: {"y": model(x, training=False)},
                            input_signature=[tf.TensorSpec((rows, *test.shape[1:]), tf.float32, name="x")])
        module = tf.Module()
        # TensorFlow Lite and TensorFlow's quantizer do not freeze the variables of every model.
        frozen = convert_variables_to_constants_v2(serve.get_concrete_function())
        module.serve = tf.function(lambda x: {"y": frozen(x)[0]}, input_signature=serve.input_signature)
        tf.saved_model.save(module, str(folder / place), signatures=module.serve,
                            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False))  # of swish: not frozen
        if not rows:
            outputs = [serve(tf.constant(test[i:i + 100]))["y"].numpy() for i in range(0, len(test), 100)]
    np.save(folder / "float.npy", np.concatenate(outputs))
    for method in ("float", "static", "dynamic"):
        converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "one"))
        if method != "float":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if method == "static":
            converter.representative_dataset = lambda: ([row[None]] for row in samples)
        (folder / f"{method}.tflite").write_bytes(converter.convert())
    import tf2onnx
    batch = tf.function(lambda x: model(x, training=False), input_signature=[tf.TensorSpec((None, *test.shape[1:]), name="x")])
    tf2onnx.convert.from_function(batch, batch.input_signature, opset=17, output_path=str(folder / "model.onnx"))


# ---- the other tools: each yields the method and the outputs for the test records ----

def of_litert(model: bytes | Path, test: np.ndarray) -> np.ndarray:
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_content=model if isinstance(model, bytes) else model.read_bytes())
    interpreter.allocate_tensors()
    [i], [o] = interpreter.get_input_details(), interpreter.get_output_details()
    (scale, zero), (step, middle) = i["quantization"], o["quantization"]
    found = []
    for row in test:
        if scale:  # the model takes integers, and returns them
            row = np.clip(np.round(row / scale) + zero, -128, 127).astype(np.int8)
        interpreter.set_tensor(i["index"], row[None])
        interpreter.invoke()
        output = interpreter.get_tensor(o["index"])[0].copy()
        found.append((output.astype(np.float32) - middle) * step if step else output)
    return np.array(found)


def tensorflow_lite(method: str, folder: Path, _: np.ndarray, test: np.ndarray) -> np.ndarray | None:
    return of_litert(folder / f"{method}.tflite", test) if method != "weight_only" else None


def ai_edge_quantizer(method: str, folder: Path, samples: np.ndarray, test: np.ndarray) -> np.ndarray:
    from ai_edge_quantizer import quantizer, recipe
    rows = {"static": recipe.static_wi8_ai8, "dynamic": recipe.dynamic_wi8_afp32, "weight_only": recipe.weight_only_wi8_afp32}
    made = quantizer.Quantizer(str(folder / "float.tflite"), rows[method]())
    statistics = None
    if made.need_calibration:
        from ai_edge_litert.interpreter import Interpreter
        [signature] = Interpreter(model_path=str(folder / "float.tflite")).get_signature_list().items()
        statistics = made.calibrate({signature[0]: [{signature[1]["inputs"][0]: row[None]} for row in samples]})
    return of_litert(bytes(made.quantize(statistics).quantized_model), test)


def onnx_runtime(method: str, folder: Path, samples: np.ndarray, test: np.ndarray) -> np.ndarray | None:
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    path, prepared = folder / f"ort-{method}.onnx", folder / "prepared.onnx"

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rows = iter(samples)

        def get_next(self) -> dict[str, np.ndarray] | None:
            row = next(self.rows, None)
            return None if row is None else {"x": row[None]}

    if method == "weight_only":
        return None
    quant_pre_process(str(folder / "model.onnx"), str(prepared), skip_symbolic_shape=True)
    if method == "static":
        quantize_static(str(prepared), str(path), Reader(), per_channel=True)
    else:
        quantize_dynamic(str(prepared), str(path), per_channel=True, weight_type=QuantType.QInt8)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"x": row[None]})[0] for row in test])


def nncf_openvino(method: str, folder: Path, samples: np.ndarray, test: np.ndarray) -> np.ndarray | None:
    import nncf
    import openvino
    model = openvino.convert_model(str(folder / "model.onnx"))
    if method == "dynamic":
        return None
    if method == "static":
        model = nncf.quantize(model, nncf.Dataset(list(samples), lambda row: row[None]))
    else:
        model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
    run = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return np.concatenate([next(iter(run(row[None]).values())) for row in test])


def tensorflow(method: str, folder: Path, samples: np.ndarray, test: np.ndarray) -> np.ndarray | None:
    import tensorflow as tf
    from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2 as pb
    from tensorflow.compiler.mlir.quantization.tensorflow.python import quantize_model
    if method == "weight_only":
        return None
    preset = {"static": pb.QuantizationMethod.METHOD_STATIC_RANGE_INT8, "dynamic": pb.QuantizationMethod.METHOD_DYNAMIC_RANGE_INT8}[method]
    options = pb.QuantizationOptions(
        quantization_method=pb.QuantizationMethod(preset_method=preset), op_set=pb.OpSet.XLA,
        signature_keys=["serving_default"], tags=["serve"], enable_per_channel_quantization=method == "static")
    key = next(iter(tf.saved_model.load(str(folder / "model")).signatures["serving_default"].structured_input_signature[1]))
    data = [{key: tf.constant(row[None])} for row in samples] if method == "static" else None
    made = quantize_model.quantize(str(folder / "model"), str(folder / f"tensorflow-{method}"), options, representative_dataset=data,
                                   overwrite_output_directory=True)
    signature = made.signatures["serving_default"]
    run = tf.function(lambda x: next(iter(signature(**{key: x}).values())), jit_compile=True)
    return np.concatenate([run(tf.constant(row[None])).numpy() for row in test])


PEERS = {"TensorFlow": tensorflow, "TensorFlow Lite": tensorflow_lite, "ONNX Runtime": onnx_runtime, "NNCF": nncf_openvino,
         "ai-edge-quantizer": ai_edge_quantizer}


def run_peers(folder: Path) -> None:
    samples, test = np.load(folder / "samples.npy"), np.load(folder / "test.npy")
    for peer, run in PEERS.items():
        for method in METHODS:
            path, refused = folder / f"{peer}-{method}.npy", folder / f"{peer}-{method}.refused"
            if path.exists() or refused.exists():
                continue
            try:
                outputs = run(method, folder, samples, test)
            except ImportError:
                continue
            except Exception as error:  # noqa: BLE001 (whatever a tool raises: it has no model then)
                reason = f"{folder.name}, {peer}, {method}: {str(error).splitlines()[0][:200]}"
                refused.write_text(reason + "\n", encoding="utf-8")
                print(reason, file=sys.stderr)
                continue
            if outputs is not None:
                np.save(path, outputs)


# ---- ours, and the table ----

def ours(tare: str, folder: Path) -> None:
    ways = {method: ("--method", method) for method in METHODS} | {"auto": ("--method", "static", "--auto")}
    for method, options in ways.items():
        data = () if method in ("dynamic", "weight_only") else ("--data", folder / "samples.npy")
        model = folder / f"tare-{method}"
        subprocess.run([tare, "quantize", folder / "model", model, *options, *data, "--allow-unquantized", "--overwrite", "--quiet"], check=True)
        subprocess.run([tare, "run", model, "--data", folder / "test.npy", "--output-dir", folder / "outputs", "--batch", "64"],
                       check=True, stderr=subprocess.DEVNULL)
        [path] = (folder / "outputs").glob("*.npy")
        path.rename(folder / f"tare-{method}.npy")


def losses(folder: Path, key: str) -> np.ndarray | None:
    """Of each record: 1 where its class is wrong, or its mean squared error."""
    path, expected = folder / f"{key}.npy", np.load(folder / "expected.npy")
    if not path.exists():
        return None
    outputs = np.load(path).reshape(len(expected), -1)
    return ((outputs - expected) ** 2).mean(1) if expected.ndim > 1 else (outputs.argmax(1) != expected).astype(float)


def sign_test(mine: np.ndarray, theirs: np.ndarray) -> tuple[float, bool]:
    """The two-sided p of the records that differ, and whether theirs are better."""
    better, worse = int((theirs < mine).sum()), int((theirs > mine).sum())
    count, least = better + worse, min(better, worse)
    if count == 0:
        return 1, False
    terms = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) - count * math.log(2) for k in range(least + 1)]
    return min(1, 2 * sum(map(math.exp, terms))), better > worse


def cell(folder: Path, key: str, against: np.ndarray | None, found_by: list[tuple[float, bool]] | None = None) -> str:
    found = losses(folder, key)
    if found is None:
        return "–"
    text = f"{found.mean():.3g}" if np.load(folder / "expected.npy").ndim > 1 else f"{100 - 100 * found.mean():.1f} %"
    if against is None:
        return text
    p, better = sign_test(against, found)
    if found_by is not None:
        found_by.append((p, better))
    return text if p >= 0.05 else text + (" +" if better else " \\*")


def corrected(tests: list[tuple[float, bool]]) -> tuple[int, int]:
    """How many are worse and better by Holm's correction for the number of tests."""
    counts = [0, 0]
    for i, (p, better) in enumerate(sorted(tests)):
        if p * (len(tests) - i) >= 0.05:
            break
        counts[better] += 1
    return counts[0], counts[1]


def table_of(folder: Path) -> str:
    lines = [f"| model | method | float | tare | --auto | {' | '.join(PEERS)} |", f"|{'---|' * (5 + len(PEERS))}"]
    tests: list[tuple[float, bool]] = []
    for name in NAMES:
        for method in METHODS if (folder / name).exists() else ():
            model = folder / name
            mine = losses(model, f"tare-{method}")
            cells = [cell(model, "float", None), cell(model, f"tare-{method}", None),
                     cell(model, "tare-auto", losses(model, "float")) if method == "static" else "–"]
            peers = [cell(model, f"{peer}-{method}", mine, tests) for peer in PEERS]
            lines.append(f"| {name} | {method} | {' | '.join(cells + peers)} |")
    single = [sum(p < 0.05 and better == is_better for p, better in tests) for is_better in (False, True)]
    worse, better = corrected(tests)
    lines += ["", f"{len(tests)} comparisons with other tools: {single[0]} are significantly worse, {single[1]} better. By Holm's correction "
                  f"for their number, {worse} are worse and {better} better."]
    return "\n".join(lines)


def put_table(text: str, page: Path) -> None:
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    page.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0] not in ("write", "peers", "table"):
        print(__doc__, file=sys.stderr)
        return 2
    command, folder = arguments[0], Path(arguments[1])
    if command == "table":
        for name in NAMES:
            if (folder / name).exists():
                ours(arguments[2], folder / name)
        text = table_of(folder)
        put_table(text, Path(arguments[3])) if len(arguments) > 3 else print(text)
        return 0
    for name in arguments[2:] or NAMES:
        if command == "write" and (folder / name / "model.onnx").exists():
            continue
        if command == "write":
            shutil.rmtree(folder / name, ignore_errors=True)
            write_model(name, folder / name)
        elif (folder / name).exists():
            run_peers(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
