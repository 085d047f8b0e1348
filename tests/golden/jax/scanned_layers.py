"""Four residual blocks under lax.scan, and the same ones unrolled, for tests/cli/scanned_layers_test.sh: run with JAX
(tests/judges/README.md). The blocks' activations differ in size, and so do the channels of their weights. Writes
layers_scanned.jaxexport and layers_unrolled.jaxexport beside this script."""
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

FOLDER = os.path.dirname(os.path.abspath(__file__))
LAYERS, WIDTH, HIDDEN = 4, 16, 32
random = np.random.default_rng(5)
growth = np.array([1, 3, 0.3, 2])[:, None, None]
first = random.normal(size=(LAYERS, WIDTH, HIDDEN)) * growth * np.exp(random.normal(size=(LAYERS, 1, HIDDEN)) / 2) / 4
second = random.normal(size=(LAYERS, HIDDEN, WIDTH)) * growth / 6
bias = random.normal(size=(LAYERS, HIDDEN)) / 3
stacks = tuple(jnp.asarray(stack, jnp.float32) for stack in (first, second, bias))


def block(x, layer):
    w, v, b = layer
    return x + jax.nn.relu(x @ w + b) @ v, None


def scanned(x):
    return lax.scan(block, x, stacks)[0]


def unrolled(x):
    for i in range(LAYERS):
        x = block(x, tuple(stack[i] for stack in stacks))[0]
    return x


for function in (scanned, unrolled):
    exported = export.export(jax.jit(function), platforms=("cpu",))(jax.ShapeDtypeStruct((1, WIDTH), jnp.float32))
    with open(os.path.join(FOLDER, f"layers_{function.__name__}.jaxexport"), "wb") as out:
        out.write(exported.serialize())
