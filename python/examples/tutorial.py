# %% [markdown]
# # From a NumPy data set to a model for Cloud TPU
#
# The model recognizes ten glyphs in images of 28 × 28 pixels. Run the cells from the root of a checkout, as a notebook
# (`examples/tutorial.ipynb`) or as a script: `python3 python/examples/tutorial.py`.

# %%
import importlib.util

import numpy as np
import tare

model = tare.load("examples/glyphs/saved_model")
print(model.signatures["serving_default"].inputs["image"])

# %% [markdown]
# ## Data
# Arrays from anywhere: the first dimension counts the samples. Here they come from the files of the example; shifted copies of
# the images are further samples.


# %%
def read(name):
    records = list(tare.read_records(f"examples/glyphs/{name}.tfrecord.gz"))
    return {key: np.concatenate([record[key] for record in records]) for key in records[0]}


images = read("calibration")["image"]
samples = np.concatenate([np.roll(images, shift, axis=(1, 2)) for shift in ((0, 0), (1, 0), (0, 1), (1, 1))])[:1000]
evaluation = read("eval")  # "image" and "label"

# %% [markdown]
# ## Calibrate
# Collects what values the activations take. One calibration serves every method.

# %%
calibration = tare.calibrate(model, samples)
print(calibration, calibration.warnings)

# %% [markdown]
# ## Compare six methods
# A notebook shows `result` as the page that `save_html` writes.

# %%
result = tare.compare(model, evaluation, calibration=calibration, methods=[
    "static", "static:bits=4", "dynamic", "weight_only", "weight_only:bits=4:block=32", "bfloat16"])
result.save_html("glyphs.html")
print(result.verdict)

# %%
if importlib.util.find_spec("pandas"):
    print(result.to_dataframe()[["method", "top1", "size_bytes", "tpu_seconds"]].to_string())

# %% [markdown]
# ## Quantize, convert, run
# The converted model runs on the CPU, too, with the outputs that the TPU computes up to rounding.

# %%
converted = model.quantize("static", calibration, algorithm="mse").convert(functions="tpu_func")
converted.save("glyphs_tpu", overwrite=True)
probabilities = converted.run({"image": evaluation["image"]})["probabilities"]
print(f"{(probabilities.argmax(-1) == evaluation['label']).mean():.1%} correct, {converted.weight_bytes} bytes of weights")
