import os
import numpy as np
import tensorflow as tf
converter = tf.lite.TFLiteConverter.from_saved_model("saved_model")
open("float.tflite", "wb").write(converter.convert())
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = lambda: ([row[None]] for row in np.load("samples.npy"))
open("int8.tflite", "wb").write(converter.convert())
test = np.load("test.npy")
for path in ("float.tflite", "int8.tflite"):
    interpreter = tf.lite.Interpreter(path)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], test.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], test)
    interpreter.invoke()
    outputs = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    print(path, (outputs.argmax(1) == np.load("labels.npy")).mean(), os.path.getsize(path))
