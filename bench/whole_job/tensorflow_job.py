import os
import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow import quantization_options_pb2 as options_pb2
from tensorflow.compiler.mlir.quantization.tensorflow.python import quantize_model
method = options_pb2.QuantizationMethod(preset_method=options_pb2.QuantizationMethod.METHOD_STATIC_RANGE_INT8)
options = options_pb2.QuantizationOptions(quantization_method=method, op_set=options_pb2.XLA, tags=["serve"], signature_keys=["serving_default"])
quantize_model.quantize("saved_model", "tensorflow", options, [{"x": row[None]} for row in np.load("samples.npy")], overwrite_output_directory=True)
test, labels = np.load("test.npy"), np.load("labels.npy")
for folder in ("saved_model", "tensorflow"):
    outputs = tf.saved_model.load(folder).signatures["serving_default"](x=tf.constant(test))
    print(folder, (next(iter(outputs.values())).numpy().argmax(1) == labels).mean(), os.path.getsize(f"{folder}/saved_model.pb"))
