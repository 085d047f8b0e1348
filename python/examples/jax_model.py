# %% [markdown]
# # A model exported from JAX
#
# `jax.export.export(jax.jit(f))(shape).serialize()`, written to a file, and SavedModels of `jax2tf` and Keras 3 open like any other
# model. Run it as `python3 jax_model.py MODEL`.

# %%
import sys

import numpy as np
import tare

model = tare.load(sys.argv[1])
(signature,) = model.signatures.values()
print(signature)

# %% [markdown]
# Random inputs stand for a data set here; an open dimension is 1. A generator is read once, record by record.


# %%
def records(seed, count):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield {
            name: generator.standard_normal([size or 1 for size in spec.shape or ()]).astype(spec.dtype)
            for name, spec in signature.inputs.items()
        }


calibration = tare.calibrate(model, records(1, 200))
result = tare.compare(model, records(2, 50), calibration=calibration, methods=["static", "dynamic", "weight_only"])
print(result)

# %%
converted = model.quantize("static", calibration).convert({"tpu_functions": [{"signature_name": signature.name}]})
print({name: array.shape for name, array in converted.run(next(records(3, 1))).items()})
