#!/usr/bin/env python3
"""The whole job with six tools, as their documentation does it: a static int8 model from 1,078 samples, the accuracy of the float and
of the int8 model on 719 others, and sizes. Prints lines of code and seconds.

    bench/whole_job.py --keras PYTHON --peers PYTHON [--tare PYTHON] [--rounds 3] [--work FOLDER]

PYTHON of --keras has tensorflow and tf2onnx, that of --peers onnxruntime, openvino, nncf, ai-edge-litert, ai-edge-quantizer and
scikit-learn, that of --tare the package (default: --keras with build/python on its path). The data are the digits of scikit-learn, the
model a small Keras network, which every tool gets in its own format. Programs (bench/whole_job) run alternately; the least of the
rounds counts, processor time and elapsed, with start and imports. A line is one that is not empty; none is longer than 150 characters.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = {"tare": "tare", "nncf": "peers", "tensorflow": "keras", "onnxruntime": "peers", "ai_edge": "peers", "litert": "keras"}
DATA = """
import numpy as np
from sklearn.datasets import load_digits
x, y = load_digits(return_X_y=True)
x = (x.reshape(-1, 8, 8, 1) / 16).astype(np.float32)
order = np.random.default_rng(1).permutation(len(x))
for name, rows in (("samples", order[:1078]), ("test", order[1078:])):
    np.save(f"{name}.npy", x[rows])
np.save("train_labels.npy", y[order[:1078]])
np.save("labels.npy", y[order[1078:]])
"""
MODEL = """
import keras, numpy as np, tensorflow as tf, tf2onnx
keras.utils.set_random_seed(1)
layers = keras.layers
model = keras.Sequential([keras.Input((8, 8, 1), name="x"), layers.Conv2D(16, 3, activation="relu"), layers.Conv2D(32, 3, activation="relu"),
                          layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(np.load("samples.npy"), np.load("train_labels.npy"), epochs=20, verbose=0)
spec = tf.TensorSpec((None, 8, 8, 1), tf.float32, name="x")
model.export("saved_model", input_signature=[spec], verbose=False)
open("model.tflite", "wb").write(tf.lite.TFLiteConverter.from_saved_model("saved_model").convert())
tf2onnx.convert.from_function(tf.function(lambda x: model(x)), [spec], output_path="model.onnx")
"""


def run(python, words, folder):
    """Runs it and returns processor seconds, elapsed seconds and the last line that it prints."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    if python[1]:
        environment["PYTHONPATH"] = python[1]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([python[0], *words], cwd=folder, env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"whole_job.py: {' '.join(words)[:80]}: {done.stderr[-2000:]}")
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return busy, time.perf_counter() - begin, done.stdout.strip().splitlines()[-1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keras", required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--tare")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "whole_job")
    options = parser.parse_args()
    pythons = {"keras": (options.keras, None), "peers": (options.peers, None)}
    pythons["tare"] = (options.tare, None) if options.tare else (options.keras, str(ROOT / "build" / "python"))
    options.work.mkdir(parents=True, exist_ok=True)
    if not (options.work / "model.onnx").exists():
        run(pythons["peers"], ["-c", DATA], options.work)
        run(pythons["keras"], ["-c", MODEL], options.work)
    found = {}
    for _ in range(options.rounds):
        for job, python in JOBS.items():
            found.setdefault(job, []).append(run(pythons[python], [str(ROOT / "bench" / "whole_job" / f"{job}_job.py")], options.work))
    print("| tool | lines | seconds, elapsed | processor seconds | prints last |\n|---|---|---|---|---|")
    for job, runs in found.items():
        lines = [line for line in (ROOT / "bench" / "whole_job" / f"{job}_job.py").read_text().splitlines() if line.strip()]
        last = "".join(runs[0][2])
        print(f"| {job} | {len(lines)} | {min(r[1] for r in runs):.1f} | {min(r[0] for r in runs):.1f} | {last} |")


main()
