import os
import numpy as np
from onnxruntime import InferenceSession
from onnxruntime.quantization import CalibrationDataReader, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
class Reader(CalibrationDataReader):
    def __init__(self):
        self.rows = iter(np.load("samples.npy"))
    def get_next(self):
        row = next(self.rows, None)
        return None if row is None else {"x": row[None]}
quant_pre_process("model.onnx", "prepared.onnx")
quantize_static("prepared.onnx", "int8.onnx", Reader(), per_channel=True)
for path in ("model.onnx", "int8.onnx"):
    outputs = InferenceSession(path).run(None, {"x": np.load("test.npy")})[0]
    print(path, (outputs.argmax(1) == np.load("labels.npy")).mean(), os.path.getsize(path))
