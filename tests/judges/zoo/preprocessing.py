"""Models with a part that only a CPU computes: strings, look-ups, images, boxes."""
from __future__ import annotations

import numpy as np
import tensorflow as tf

from catalogue import Record, model
from zoo.modules import FLOAT_IN_DYNAMIC, Layers, Spec, traced
from zoo.saving import SERVING, drawn, floats, save


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


@model(refuses={"convert/batching": "whose dimension 0 is fixed"})
def boxes_after_suppression(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (3, 3, 3, 8), (8, 64), (8, 16))

    def serve(image: tf.Tensor) -> dict[str, tf.Tensor]:
        features = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(image, module.w0, 2, "SAME")), [1, 2])
        corners = tf.sort(tf.reshape(tf.sigmoid(features @ module.w1), [-1, 16, 2, 2]), axis=2)
        scores = tf.sigmoid(features @ module.w2)
        found = tf.image.combined_non_max_suppression(tf.reshape(corners, [-1, 16, 1, 4]), scores[..., tf.newaxis], 4, 8)
        kept = tf.image.non_max_suppression(tf.reshape(corners[0], [16, 4]), scores[0], 4)
        return {"boxes": found.nmsed_boxes, "scores": found.nmsed_scores, "count": found.valid_detections, "kept": kept}

    module.serve = traced(serve, Spec([1, 16, 16, 3], name="image"))
    save(module, folder, module.serve)
    return {SERVING: [{"image": floats(random, 1, 16, 16, 3)} for _ in range(4)]}


@model()
def texts_in_and_out(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (50, 16), (16, 3))
    module.labels = tf.constant(["bad", "so so", "good"])

    def serve(text: tf.Tensor) -> dict[str, tf.Tensor]:
        words = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(text), "[^a-z ]", "")).to_tensor("")
        scores = tf.reduce_mean(tf.gather(module.w0, tf.strings.to_hash_bucket_fast(words, 50)), 1) @ module.w1
        return {"label": tf.gather(module.labels, tf.argmax(scores, -1)), "scores": scores,
                "joined": tf.strings.join([text, tf.strings.as_string(tf.strings.length(text))], "-")}

    module.serve = traced(serve, Spec([None], tf.string, name="text"))
    save(module, folder, module.serve)
    return {SERVING: [{"text": np.array([text, b"x y"], dtype=object)} for text in (b"Very good!", b"not so", b"a b c d", b"x")]}


@model()
def examples_parsed(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (6, 4))
    features = {"x": tf.io.FixedLenFeature([4], tf.float32), "n": tf.io.FixedLenFeature([1], tf.int64, default_value=[3]),
                "tags": tf.io.VarLenFeature(tf.string)}

    def serve(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        row = tf.io.parse_example(examples, features)
        tags = tf.sparse.reduce_sum(row["tags"].with_values(tf.ones_like(row["tags"].values, tf.float32)), 1)
        x = tf.concat([row["x"], tf.cast(row["n"], tf.float32), tf.reshape(tags, [-1, 1])], 1)
        return {"y": x @ module.w0}

    module.serve = traced(serve, Spec([None], tf.string, name="examples"))
    save(module, folder, module.serve)

    def example(count: int) -> bytes:
        feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=floats(random, 4))),
                   "tags": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"t"] * count))}
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    return {SERVING: [{"examples": np.array([example(1), example(count)], dtype=object)} for count in range(1, 4)]}


@model()
def segments_and_unique(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (10, 8), (8, 4))

    def serve(ids: tf.Tensor, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        values, places = tf.unique(ids)
        mean = tf.math.segment_mean(tf.gather(module.w0, ids), rows)
        return {"y": mean @ module.w1, "values": values, "places": places, "nonzero": tf.where(ids > 4)}

    module.serve = traced(serve, Spec([None], tf.int32, name="ids"), Spec([None], tf.int32, name="rows"))
    save(module, folder, module.serve)
    return {SERVING: [{"ids": random.integers(0, 10, 4).astype(np.int32), "rows": np.array([0, 0, 1, 2], np.int32)} for _ in range(4)]}


@model(refuses=FLOAT_IN_DYNAMIC)
def table_that_changes(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (8, 4))
    module.table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, empty_key=-1, deleted_key=-2)
    module.table.insert(tf.range(5, dtype=tf.int64), tf.range(5, dtype=tf.int64) * 3)

    def serve(keys: tf.Tensor) -> dict[str, tf.Tensor]:
        found = module.table.lookup(keys)
        return {"found": found, "y": tf.one_hot(found % 8, 8) @ module.w0}

    module.serve = traced(serve, Spec([None], tf.int64, name="keys"))
    save(module, folder, module.serve)
    return {SERVING: [{"keys": random.integers(0, 7, 4)} for _ in range(4)]}


@model(refuses=FLOAT_IN_DYNAMIC)
def tables_of_vectors_and_empty_ones(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (4, 4))
    module.vectors = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.0, 0.0, 0.0, 1.0])
    module.vectors.insert(tf.constant(["a", "b"]), tf.constant(floats(random, 2, 4)))
    module.empty = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)

    def serve(words: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": module.vectors.lookup(words) @ module.w0, "n": module.empty.lookup(tf.cast(tf.strings.length(words), tf.int64))}

    module.serve = traced(serve, Spec([None], tf.string, name="words"))
    save(module, folder, module.serve)
    return {SERVING: [{"words": np.array([b"a", word], dtype=object)} for word in (b"b", b"c")]}


@model()
def embedding_of_sparse_ids(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """Numbers of rows that values decide: of the nonzero ids, and of the different ones among them."""
    module = Layers(random, (20, 16), (16, 4))

    def serve(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.nn.embedding_lookup_sparse(module.w0, tf.sparse.from_dense(ids), None, combiner="mean") @ module.w1}

    module.serve = traced(serve, Spec([None, 4], tf.int64, name="ids"))
    save(module, folder, module.serve)
    return {SERVING: [{"ids": np.array([[1, 0, 3, 0], [5, 2, 0, index]])} for index in range(1, 4)]}


@model()
def images_augmented_on_the_cpu(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    module = Layers(random, (3, 3, 3, 8), (8, 4))

    def serve(image: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.image.resize(tf.cast(image, tf.float32), (20, 20), "bicubic", antialias=True)
        x = tf.image.per_image_standardization(tf.image.central_crop(tf.image.adjust_contrast(x, 1.5), 0.8))
        return {"y": tf.reduce_max(tf.nn.relu(tf.nn.conv2d(x, module.w0, 2, "VALID")), [1, 2]) @ module.w1}

    module.serve = traced(serve, Spec([None, 24, 30, 3], tf.uint8, name="image"))
    save(module, folder, module.serve)
    return {SERVING: [{"image": random.integers(0, 256, (1, 24, 30, 3)).astype(np.uint8)} for _ in range(4)]}


@model()
def sparse_sums_and_products(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    """On the CPU, where the scope ALL leaves a sum in float32, for which TensorFlow has no bfloat16 kernel."""
    module = Layers(random, (10, 6), (6, 3))

    def serve(values: tf.Tensor) -> dict[str, tf.Tensor]:
        sparse = tf.sparse.from_dense(tf.nn.relu(values))
        doubled = tf.sparse.add(sparse, sparse)
        return {"y": tf.nn.relu(tf.sparse.sparse_dense_matmul(doubled, module.w0)) @ module.w1}

    module.serve = traced(serve, Spec([None, 10], name="values"))
    save(module, folder, module.serve)
    return drawn(random, {"values": (2, 10)})
