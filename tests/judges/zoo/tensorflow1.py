"""Models of TensorFlow 1: graphs with sessions, saved by the builder or by simple_save."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from catalogue import Record, model
from zoo.saving import SERVING, drawn

v1 = tf.compat.v1
OUTSIDE = "its weight is outside of the TensorFlow 1 loop"
NOTHING = "the model has no quantizable op"
REFUSES = {"convert/*": "does not support TensorFlow 1 models"}


def weights(random: np.random.Generator, name: str, *shape: int, resource: bool = False) -> tf.Tensor:
    value = random.normal(0, 0.3, shape).astype(np.float32)
    return v1.get_variable(name, initializer=value, use_resource=resource)


def saved(session: v1.Session, folder: str, inputs: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]) -> None:
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])
    v1.saved_model.simple_save(session, folder, inputs, outputs, legacy_init_op=v1.tables_initializer())


@model(quick=True, refuses=REFUSES)
def v1_reference_variables(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 32], "x")
        hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights(random, "w", 32, 16)), weights(random, "b", 16)))
        saved(session, folder, {"x": x}, {"y": tf.matmul(hidden, weights(random, "v", 16, 4))})
    return drawn(random, {"x": (2, 32)})


@model(refuses=REFUSES)
def v1_convolutions(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 8, 8, 3], "image")
        y = tf.nn.conv2d(x, weights(random, "w", 3, 3, 3, 8, resource=True), 1, "SAME")
        y, _, _ = v1.nn.fused_batch_norm(y, weights(random, "scale", 8, resource=True), weights(random, "offset", 8, resource=True),
                                         tf.zeros([8]), tf.ones([8]), is_training=False)
        y = tf.nn.depthwise_conv2d(tf.nn.relu6(y), weights(random, "d", 3, 3, 8, 1), [1, 2, 2, 1], "VALID")
        saved(session, folder, {"image": x}, {"y": tf.matmul(tf.reshape(y, [-1, 72]), weights(random, "v", 72, 4))})
    return drawn(random, {"image": (2, 8, 8, 3)})


@model(refuses={"quantize/*": OUTSIDE, **REFUSES})
def v1_control_flow(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 8], "x")
            w = weights(random, "w", 8, 8)
            _, y = v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w))), [tf.constant(0), x])
            y = v1.cond(tf.reduce_sum(y) > 0, lambda: y * 2.0, lambda: tf.matmul(y, w))
            saved(session, folder, {"x": x}, {"y": y})
    finally:
        v1.enable_control_flow_v2()
    return drawn(random, {"x": (2, 8)})


@model(refuses={"quantize/*": NOTHING, **REFUSES})
def v1_counter(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.int32, [], "x")
        counter = v1.get_variable("counter", [], tf.int32, initializer=v1.zeros_initializer(), use_resource=True)
        with tf.control_dependencies([v1.assign_add(counter, 1)]):
            y = x + counter.read_value()
        saved(session, folder, {"x": x}, {"y": y})
    return {SERVING: [{"x": np.int32(value)} for value in (3, 4, 5)]}


@model(refuses=REFUSES)
def v1_vocabulary_file(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    file = Path(folder).with_name("words.txt")
    file.write_text("red\ngreen\nblue\n", encoding="utf-8")
    with tf.Graph().as_default(), v1.Session() as session:
        words = v1.placeholder(tf.string, [None], "words")
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, tf.constant(str(file)))
        table = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
            v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)[0], tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), 1)
        y = tf.nn.softmax(tf.matmul(tf.gather(weights(random, "e", 4, 16), table.lookup(words)), weights(random, "w", 16, 4)))
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder = v1.saved_model.Builder(folder)
        signature = v1.saved_model.predict_signature_def({"words": words}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {SERVING: signature, "again": signature},
                                             v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS), main_op=v1.tables_initializer())
        builder.save()
    rows = [{"words": np.array([b"red", word], dtype=object)} for word in (b"blue", b"green", b"else")]
    return {SERVING: rows, "again": rows}


@model(refuses=REFUSES)
def v1_partitioned_variable(folder: str, random: np.random.Generator) -> dict[str, list[Record]]:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.int32, [None, 3], "ids")
        with v1.variable_scope("table", partitioner=v1.fixed_size_partitioner(2)):
            table = v1.get_variable("t", [10, 16], initializer=v1.random_normal_initializer(seed=3), use_resource=False)
        y = tf.reduce_mean(tf.nn.embedding_lookup(table, x), 1)
        saved(session, folder, {"ids": x}, {"y": tf.matmul(y, weights(random, "w", 16, 4)), "ids": x + 1})
    return {SERVING: [{"ids": random.integers(0, 10, (2, 3)).astype(np.int32)} for _ in range(4)]}
