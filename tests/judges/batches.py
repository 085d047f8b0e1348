"""Dynamic range: TensorFlow computes the same outputs for a record in batches of 1, 8 and 64, and `tare` those, alone and in the
comparison that predicts them.

Records differ in size by orders of magnitude, so that a range for the whole batch would leave small ones few integers.
Outputs are compared relative to those of their own record."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import program
import records
import tensorflow as tf
from results import FAILED, PASSED, Journal
from steps import FLOAT32, STEPS, Bound

BATCHES = (1, 8, 64)
layers = keras.layers


def dense(x: keras.KerasTensor) -> keras.KerasTensor:
    return layers.Dense(8)(layers.Dense(32, "relu")(layers.Dense(48, "relu")(x)))


def convolutions(x: keras.KerasTensor) -> keras.KerasTensor:
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    x = layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)
    x = layers.Conv2D(12, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(layers.Conv2D(12, 1)(x))
    return layers.Dense(8)(layers.GlobalAveragePooling2D()(x))


def attention(x: keras.KerasTensor) -> keras.KerasTensor:
    x = layers.Add()([x, layers.MultiHeadAttention(2, 8)(x, x)])
    return layers.Dense(8)(layers.GlobalAveragePooling1D()(layers.Dense(32, "relu")(x)))


def recurrent(x: keras.KerasTensor) -> keras.KerasTensor:
    return layers.Dense(8)(layers.LSTM(16)(x))


# Softmax and float products are rounded in another order with the number of records.
NETWORKS: tuple[tuple[Callable[[keras.KerasTensor], keras.KerasTensor], tuple[int, ...], Bound], ...] = (
    (dense, (20,), FLOAT32), (convolutions, (12, 10, 3), FLOAT32), (attention, (6, 16), STEPS), (recurrent, (5, 6), FLOAT32))


def difference(got: np.ndarray, want: np.ndarray, bound: Bound) -> str:
    """The first record whose outputs differ, or ""."""
    size = np.abs(want).max(axis=1)
    apart = np.abs(got - want).max(axis=1) / np.maximum(size, 1e-30)
    worst = int(apart.argmax())
    return f"record {worst} differs by {apart[worst]:.2g} of {size[worst]:.3g}" if apart[worst] > bound.largest else ""


def predict(folder: Path, data: np.ndarray, classes: np.ndarray) -> tuple[str, dict, dict]:
    """The results of `compare` for the method and for the written model, with the classes of the float model as labels."""
    records.save(str(folder / "labelled"), [{"x": row[None], "label": np.array([label])} for row, label in zip(data, classes, strict=True)])
    run = program.tare("compare", folder / "model", "--eval", folder / "labelled", "--methods", "dynamic", "--with", folder / "dynamic",
                       "--min-elements", "1", "--quiet", "--report", folder / "report.json")
    if run.status:
        return run.message, {}, {}
    results = json.loads((folder / "report.json").read_text())["results"]
    [method] = [row for row in results if row["method"] == "dynamic"]
    [written] = [row for row in results if row.get("path")]
    return "", method, written


def judge_prediction(add: Callable[[str, str], None], folder: Path, data: np.ndarray, outputs: dict[int, np.ndarray]) -> None:
    """The comparison measures the outputs of the written model, and its accuracy is that of each batch size."""
    served = tf.saved_model.load(str(folder / "model"))
    classes = served.signatures["serving_default"](x=tf.constant(data))["y"].numpy().argmax(axis=1)
    message, method, written = predict(folder, data, classes)
    if message:
        add("compare", message)
        return
    add("compare", "" if method["answers_hash"] == written["answers_hash"] else "compare has other outputs than the written model")
    for size in BATCHES:
        right, expected = int((outputs[size].argmax(axis=1) == classes).sum()), round(method["top1"] * len(data))
        add(f"compare, {size}", "" if right == expected else f"{right} of {len(data)} records are right, compare predicts {expected}")


def judge_network(name: str, folder: Path, data: np.ndarray, bound: Bound, journal: Journal) -> None:
    def add(check: str, text: str) -> None:
        journal.add(f"batches/{name}", "quantize/dynamic", check, FAILED if text else PASSED, text)

    run = program.tare("quantize", folder / "model", folder / "dynamic", "--method", "dynamic", "--min-elements", "1")
    if run.status:
        add("tare", run.message)
        return
    loaded = tf.saved_model.load(str(folder / "dynamic"))   # the signature lives as long as the model
    signature = loaded.signatures["serving_default"]
    function = tf.function(lambda x: signature(x=x)["y"], jit_compile=True)
    outputs = {size: np.concatenate([function(tf.constant(data[i:i + size])).numpy() for i in range(0, len(data), size)])
               for size in BATCHES}
    for size in BATCHES[1:]:
        add(f"of {size}", difference(outputs[size], outputs[1], bound))
    records.save(str(folder / "records"), [{"x": row[None]} for row in data])
    run, got = program.outputs(str(folder / "dynamic"), "serving_default", str(folder / "records"), folder / "outputs")
    add("tare", run.message if run.status else difference(np.concatenate([one["y"] for one in got]), outputs[64], STEPS))
    judge_prediction(add, folder, data, outputs)


def judge(work: Path, journal: Journal) -> None:
    random = np.random.default_rng(5)
    for network, shape, bound in NETWORKS:
        folder = work / f"batches-{network.__name__}"
        folder.mkdir()
        keras.utils.set_random_seed(1)
        x = keras.Input(shape)
        model = keras.Model(x, network(x))
        serve = tf.function(lambda x, model=model: {"y": model(x)}, input_signature=[tf.TensorSpec((None, *shape), name="x")])
        tf.saved_model.save(model, str(folder / "model"), signatures=serve)
        sizes = np.exp(random.normal(0, 2, (BATCHES[-1],) + (1,) * len(shape)))
        judge_network(network.__name__, folder, (random.normal(0, 1, (BATCHES[-1], *shape)) * sizes).astype(np.float32), bound, journal)
