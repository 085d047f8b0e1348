"""Records of a signature in files of RepresentativeDataSample messages, TensorFlow's format, which `tare` reads, too."""
from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2

from catalogue import Record

Sample = quantization_options_pb2.RepresentativeDataSample


def save(path: str, records: list[Record]) -> None:
    with tf.io.TFRecordWriter(path) as file:
        for record in records:
            sample = Sample()
            for name, value in record.items():
                sample.tensor_proto_inputs[name].CopyFrom(tf.make_tensor_proto(value))
            file.write(sample.SerializeToString())


def load(path: str) -> list[Record]:
    compression = "GZIP" if open(path, "rb").read(2) == b"\x1f\x8b" else ""
    samples = (Sample.FromString(record.numpy()) for record in tf.data.TFRecordDataset(path, compression_type=compression))
    return [{name: np.asarray(tf.make_ndarray(value)) for name, value in sample.tensor_proto_inputs.items()} for sample in samples]
