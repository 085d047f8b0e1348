import numpy as np
import tare
model = tare.load("saved_model")
calibration = tare.calibrate(model, np.load("samples.npy"))
model.quantize("static", calibration).save("tare", overwrite=True)
result = tare.compare(model, (np.load("test.npy"), np.load("labels.npy")), calibration=calibration, methods=["static"])
print(*((row["method"], row["top1"], row["size_bytes"]) for row in result.rows))
