import os
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import quantizer, recipe
made = quantizer.Quantizer("model.tflite", recipe.static_wi8_ai8())
statistics = made.calibrate({"serving_default": [{"x": row[None]} for row in np.load("samples.npy")]})
made.quantize(statistics).export_model("ai_edge.tflite", overwrite=True)
test = np.load("test.npy")
for path in ("model.tflite", "ai_edge.tflite"):
    interpreter = Interpreter(path)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], test.shape)
    interpreter.allocate_tensors()
    scale, zero_point = interpreter.get_input_details()[0]["quantization"]
    x = np.clip(np.rint(test / scale) + zero_point, -128, 127).astype(np.int8) if scale else test
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    outputs = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    print(path, (outputs.argmax(1) == np.load("labels.npy")).mean(), os.path.getsize(path))
