"""Models with a part that only a CPU computes: strings, look-ups, images, boxes."""
from __future__ import annotations

import numpy as np
import tensorflow as tf

from catalogue import Record, model
from zoo.modules import Layers, Spec, traced
from zoo.saving import SERVING, floats, save


@model(quick=True)
def numbers_from_strings(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (64, 8))
    module.serve = traced(lambda x: {"y": tf.nn.relu(tf.strings.to_number(x) @ module.w0)}, Spec([None, 64], tf.string, name="x"))
    save(module, folder, module.serve)
    return {SERVING: [{"x": np.array([[b"%.3f" % value for value in floats(random, 64)]], dtype=object)} for _ in range(4)]}


@model(quick=True)
def embedding_of_looked_up_strings(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    words = [b"red", b"green", b"blue", b"white"]
    module = Layers(random, (5, 64), (64, 32), (32, 3))
    module.table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(words), tf.range(4, dtype=tf.int64)), num_oov_buckets=1)

    def serve(words: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.gather(module.w0, module.table.lookup(tf.strings.lower(words)))
        return {"p": tf.nn.softmax(tf.nn.relu(tf.reduce_mean(rows, 1) @ module.w1) @ module.w2)}

    module.serve = traced(serve, Spec([None, None], tf.string, name="words"))
    save(module, folder, module.serve)
    return {SERVING: [{"words": np.array([[words[index % 4].upper(), b"else", words[index // 2]]], dtype=object)} for index in range(4)]}


@model(quick=True)
def jpeg_classifier(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (3, 3, 3, 16), (16, 10))
    module.names = tf.constant([f"class {index}" for index in range(10)])

    def network(image: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(image, module.w0, 2, "SAME")), [1, 2]) @ module.w1

    def decoded(file: tf.Tensor) -> tf.Tensor:
        return tf.image.resize(tf.image.convert_image_dtype(tf.io.decode_jpeg(file, 3), tf.float32), (32, 32))

    def serve(jpeg: tf.Tensor) -> dict[str, tf.Tensor]:
        scores = module.network(tf.map_fn(decoded, jpeg, fn_output_signature=Spec([32, 32, 3])))
        return {"scores": scores, "name": tf.gather(module.names, tf.argmax(scores, -1))}

    module.network = traced(network, Spec([None, 32, 32, 3], name="image"))
    module.serve = traced(serve, Spec([None], tf.string, name="jpeg"))
    save(module, folder, module.serve, module.network)
    images = np.clip(tf.image.resize(random.normal(128, 60, (4, 8, 8, 3)), (40, 50)).numpy(), 0, 255).astype(np.uint8)
    return {SERVING: [{"jpeg": np.array([tf.io.encode_jpeg(image, quality=95).numpy()], dtype=object)} for image in images]}
