#!/usr/bin/env python3
"""Speed of networks here and in other runtimes, on one machine in one run.

    bench/networks.py --keras PYTHON --peers PYTHON [--networks NAME…] [--batch 1 8] [--threads 1] [--seconds 1]
        [--rounds 3] [--work FOLDER] [--tare build/tare] [--bench build/bench/model_bench]

Keras 3 writes each network with random weights of a fixed seed (PYTHON of --keras: tensorflow, which also writes the
TensorFlow Lite models and is itself a peer). PYTHON of --peers has openvino, nncf and ai-edge-litert. Programs
alternate, --rounds times; the least processor time of a sample counts. Forms: float and static int8 of the default
options of each program (NNCF's of OpenVINO, the converter's of TensorFlow Lite), calibrated with the same 16 records;
tare also bfloat16, which has no peer. A float program whose outputs differ by more than 1e-3 of the largest magnitude
from TensorFlow's is not timed; of int8 models the signal-to-noise ratio to TensorFlow's float outputs is printed. Then
the processor time from the records to a written int8 model. Ratios are speeds: of tare over the best peer of the row;
at the end their geometric mean and the worst.
"""
import argparse
import json
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_ENABLE_ONEDNN_OPTS="1")
RECORDS = 16
APPLICATIONS = """MobileNetV2 MobileNet MobileNetV3Small MobileNetV3Large ResNet50 ResNet50V2 EfficientNetB0
    EfficientNetV2B0 ConvNeXtTiny DenseNet121 InceptionV3 Xception NASNetMobile VGG16""".split()


# ---- networks: written by the process of --keras ----


def unet(keras):
    layers = keras.layers
    x = inputs = keras.Input((128, 128, 3))
    kept = []
    for width in (16, 32, 64):
        for _ in range(2):
            x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(128, 3, padding="same", activation="relu")(x)
    for width in (64, 32, 16):
        x = layers.Conv2DTranspose(width, 2, strides=2)(x)
        x = layers.Concatenate()([x, kept.pop()])
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    return inputs, layers.Conv2D(2, 1, activation="softmax")(x)


def encoder(keras):
    layers = keras.layers
    x = inputs = keras.Input((128, 256))
    for _ in range(4):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(8, 32)(x, x))
        y = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization()(x + y)
    return inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


def bilstm(keras):
    layers = keras.layers
    inputs = keras.Input((32, 64))
    return inputs, layers.Dense(10)(layers.Bidirectional(layers.LSTM(128))(inputs))


def tcn(keras):
    layers = keras.layers
    x = inputs = keras.Input((128, 32))
    for dilation in (1, 2, 4, 8):
        y = layers.Conv1D(64, 3, padding="causal", dilation_rate=dilation, activation="swish")(x)
        x = layers.LayerNormalization()(layers.Dense(64)(x) + y)
    return inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


def perceptron(keras):
    layers = keras.layers
    x = inputs = keras.Input((256,))
    for _ in range(3):
        x = layers.Dense(512, activation="relu")(x)
    return inputs, layers.Dense(10, activation="softmax")(x)


def mixer(keras):
    layers = keras.layers
    inputs = keras.Input((128, 128, 3))
    x = layers.Reshape((256, 128))(layers.Conv2D(128, 8, strides=8)(inputs))
    for _ in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        x = x + layers.Permute((2, 1))(layers.Dense(256)(layers.Dense(128, activation="gelu")(y)))
        x = x + layers.Dense(128)(layers.Dense(512, activation="gelu")(layers.LayerNormalization()(x)))
    return inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


BUILT = {f.__name__: f for f in (unet, encoder, bilstm, tcn, perceptron, mixer)}
NETWORKS = APPLICATIONS + list(BUILT)


def write(folder, name):
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    size = {"input_shape": (224, 224, 3)} if name.startswith("MobileNetV3") else {}  # the only ones of any size by default
    model = keras.Model(*BUILT[name](keras)) if name in BUILT else getattr(keras.applications, name)(weights=None, **size)
    records = np.random.default_rng(1).random((RECORDS, *model.input_shape[1:]), "float32") - 0.5
    model.export(folder / "saved", verbose=False)
    np.save(folder / "records.npy", records)
    np.save(folder / "expected.npy", np.asarray(model(records)))
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved"))
    (folder / "float.tflite").write_bytes(converter.convert())
    begin = time.process_time()
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([record[None]] for record in records)
    (folder / "int8.tflite").write_bytes(converter.convert())
    return {"quantize": time.process_time() - begin}


# ---- programs: each in a process of its own ----


def open_tensorflow(folder, form, batch, threads):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    loaded = tf.saved_model.load(str(folder / "saved"))
    call = loaded.signatures["serving_default"]
    (name,) = call.structured_input_signature[1]
    return lambda x: next(iter(call(**{name: tf.constant(x)}).values())).numpy()


def open_openvino(folder, form, batch, threads):
    import openvino

    core = openvino.Core()
    model = core.read_model(str(folder / ("saved" if form == "float" else "int8.xml")))
    model.reshape([batch, *list(model.input(0).partial_shape)[1:]])
    config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(model, "CPU", config).create_infer_request()
    return lambda x: request.infer([x])[0]


def open_litert(folder, form, batch, threads):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(folder / f"{form}.tflite"), num_threads=threads)
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.resize_tensor_input(source["index"], [batch, *source["shape"][1:]])
    interpreter.allocate_tensors()

    def run(x):
        interpreter.set_tensor(source["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(result["index"])

    return run


PEERS = {"tensorflow": open_tensorflow, "openvino": open_openvino, "litert": open_litert}
FORMS = {"tensorflow": ("float",), "openvino": ("float", "int8"), "litert": ("float", "int8")}


def measure(folder, peer, form, batch, threads, seconds):
    import numpy as np

    records, expected = np.load(folder / "records.npy"), np.load(folder / "expected.npy")
    run = PEERS[peer](folder, form, batch, threads)
    x = np.ascontiguousarray(records[:batch])
    result = {"noise": noise(expected[:batch], np.array(run(x)))}
    begin, busy, runs = time.perf_counter(), time.process_time(), 0
    while runs < 2 or time.perf_counter() - begin < seconds:
        run(x)
        runs += 1
    result["ms"] = (time.process_time() - busy) * 1e3 / runs / batch
    return result


def quantize_openvino(folder):
    import nncf
    import numpy as np
    import openvino

    records = np.load(folder / "records.npy")
    begin = time.process_time()
    model = openvino.Core().read_model(str(folder / "saved"))
    openvino.save_model(nncf.quantize(model, nncf.Dataset([r[None] for r in records])), str(folder / "int8.xml"))
    return {"quantize": time.process_time() - begin}


def noise(expected, got):
    """The largest difference in units of the largest magnitude, and the signal-to-noise ratio in dB."""
    difference = got.reshape(expected.shape).astype(float) - expected
    energy = float((difference**2).sum())
    most = float(abs(difference).max() / (abs(expected).max() or 1))
    return [most, 10 * math.log10(float((expected.astype(float) ** 2).sum()) / energy) if energy else 999.0]


# ---- the comparison ----


class Comparison:
    def __init__(self, options):
        self.options = options
        self.ratios = {}

    def child(self, python, *words):
        done = subprocess.run([python, __file__, "--child", *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            print(f"  {' '.join(map(str, words[1:]))}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        return json.loads(done.stdout.strip().splitlines()[-1])

    def python(self, peer):
        return self.options.keras if peer == "tensorflow" else self.options.peers

    def prepare(self, folder, name):
        """Writes all models; returns the processor time from records to int8 of each program."""
        times = {}
        folder.mkdir(parents=True, exist_ok=True)
        written = self.child(self.options.keras, "write", folder, name)
        if not written:
            return None
        times["litert"] = written["quantize"]
        quantized = self.child(self.options.peers, "quantize", folder)
        if quantized:
            times["openvino"] = quantized["quantize"]
        tare, saved = [self.options.tare], str(folder / "saved")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.command(tare + ["calibrate", "--quiet", saved, "--data", str(folder / "records.npy"), "-o",
                             str(folder / "calibration")])
        self.command(tare + ["quantize", "--quiet", "--overwrite", saved, str(folder / "int8"), "--calibration",
                             str(folder / "calibration")])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times["tare"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.command(tare + ["convert", "--quiet", "--overwrite", saved, str(folder / "bfloat16")])
        return times

    @staticmethod
    def command(words):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"networks.py: {' '.join(words)}: {done.stderr}")

    def ours(self, folder, form, batch, threads):
        model = folder / ("saved" if form == "float" else form)
        words = [self.options.bench, model, batch, 1, self.options.seconds, "-", threads]
        line = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout
        return float(line.split(" ms a sample, ")[1].split()[0])

    def row(self, name, folder, batch, threads):
        least, ratio_of = {}, {}
        for _ in range(self.options.rounds):
            for form in ("float", "int8", "bfloat16"):
                least.setdefault((form, "tare"), []).append(self.ours(folder, form, batch, threads))
            for peer, forms in FORMS.items():
                for form in forms:
                    words = ("measure", folder, peer, form, batch, threads, self.options.seconds)
                    got = self.child(self.python(peer), *words)
                    if not got:
                        continue
                    if form == "float" and not got["noise"][0] < 1e-3:
                        print(f"{name}: {peer} differs from TensorFlow by {got['noise'][0]:.2g}: not timed")
                        continue
                    least.setdefault((form, peer), []).append(got["ms"])
        for form in ("float", "int8"):
            peers = {peer: min(times) for (f, peer), times in least.items() if f == form and peer != "tare"}
            if peers:
                ratio_of[form] = min(peers.values()) / min(least[form, "tare"])
                self.ratios.setdefault((form, threads), []).append((ratio_of[form], f"{name}, batch {batch}"))
        cells = "  ".join(f"{form} {program} {min(times):.3f}" for (form, program), times in sorted(least.items()))
        print(f"{name}, batch {batch}, {threads} threads: {cells}  ratios",
              " ".join(f"{form} {ratio:.2f}" for form, ratio in ratio_of.items()), flush=True)

    def check(self, name, folder):
        """The float outputs of tare against TensorFlow's, before anything is timed."""
        with tempfile.TemporaryDirectory() as out:
            records = str(folder / "records.npy")
            self.command([self.options.tare, "run", str(folder / "saved"), "--data", records, "--output-dir", out])
            got = self.child(self.options.keras, "check", folder, out)
        if not got or not got["noise"][0] < 1e-3:
            sys.exit(f"networks.py: {name}: outputs differ from TensorFlow's: {got}")

    def run(self):
        for name in self.options.networks:
            folder = pathlib.Path(self.options.work) / name
            times = self.prepare(folder, name)
            if not times:
                continue
            self.check(name, folder)
            print(f"{name}: seconds of processor time from records to int8:",
                  " ".join(f"{program} {seconds:.2f}" for program, seconds in times.items()))
            peers = [seconds for program, seconds in times.items() if program != "tare"]
            self.ratios.setdefault(("records to int8", 1), []).append((min(peers) / times["tare"], name))
            for threads in self.options.threads:
                for batch in self.options.batch:
                    self.row(name, folder, batch, threads)
        for (form, threads), ratios in self.ratios.items():
            mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
            worst, where = min(ratios)
            print(f"{form}, {threads} threads: geometric mean {mean:.2f}, worst {worst:.2f} ({where})")


def child(task, folder, *words):
    folder = pathlib.Path(folder)
    if task == "write":
        return write(folder, words[0])
    if task == "quantize":
        return quantize_openvino(folder)
    if task == "check":
        import numpy as np

        (file,) = sorted(pathlib.Path(words[0]).glob("*.npy"))
        return {"noise": noise(np.load(folder / "expected.npy"), np.load(file))}
    peer, form, batch, threads, seconds = words
    return measure(folder, peer, form, int(batch), int(threads), float(seconds))


def main():
    if sys.argv[1:2] == ["--child"]:
        print("\n" + json.dumps(child(*sys.argv[2:])))
        return
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keras", required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS, metavar="NAME")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", default=str(root / "build" / "networks"))
    parser.add_argument("--tare", default=str(root / "build" / "tare"))
    parser.add_argument("--bench", default=str(root / "build" / "bench" / "model_bench"))
    Comparison(parser.parse_args()).run()


main()
