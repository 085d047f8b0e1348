import os
import nncf
import numpy as np
import openvino
test, labels = np.load("test.npy"), np.load("labels.npy")
model = openvino.convert_model("saved_model")
int8 = nncf.quantize(model, nncf.Dataset(np.load("samples.npy"), lambda row: row[None]))
openvino.save_model(int8, "nncf.xml")
correct = [(openvino.compile_model(m, "CPU")(test)[0].argmax(1) == labels).mean() for m in (model, int8)]
print(*correct, os.path.getsize("nncf.bin"))
