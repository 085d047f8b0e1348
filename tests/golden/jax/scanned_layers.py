"""Four residual blocks under lax.scan, and the same ones unrolled, for tests/cli/scanned_layers_test.sh: run with JAX
(tests/judges/README.md). The blocks' activations differ in size, and so do the channels of their weights. Writes
layers_scanned.jaxexport and layers_unrolled.jaxexport beside this script, the same with two or three layers in an iteration,
from the last entry to the first, in two nested loops, with a loop over rows in each layer, with layers that a condition guards, and
with weights that are computed from entries (pairs, rest, backwards, nested, rows, guarded, normalized), and layers_convolutions.jaxexport with three convolutions
under lax.scan. layers_masked.jaxexport has the blocks with a causal mask for eight heads, layers_masked_whole.jaxexport the same
as one iteration of lax.scan."""
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


def pairs(x):
    """Two layers in an iteration."""
    return lax.scan(block, x, stacks, unroll=2)[0]


def rest(x):
    """Three layers in the only iteration, and one that is left."""
    return lax.scan(block, x, stacks, unroll=3)[0]


def backwards(x):
    """The last entry first, which is the first layer."""
    return lax.scan(block, x, tuple(stack[::-1] for stack in stacks), reverse=True)[0]


def nested(x):
    """Loops over two groups of two layers."""
    groups = tuple(stack.reshape(2, 2, *stack.shape[1:]) for stack in stacks)
    return lax.scan(lambda x, group: (lax.scan(block, x, group)[0], None), x, groups)[0]


def rows(x):
    """A loop in each layer, which uses the layer's weights whole."""
    return lax.scan(lambda x, layer: (lax.map(lambda row: block(row[None], layer)[0][0], x), None), x, stacks)[0]


def guarded(x):
    """A condition in each layer, whose branch uses the layer's weights."""
    used = jnp.ones(LAYERS, jnp.int32)
    return lax.scan(lambda x, layer: (lax.cond(layer[1] > 0, lambda h: block(h, layer[0])[0], lambda h: h, x), None), x, (stacks, used))[0]


def normalized(x):
    """Weights that each iteration computes from directions and lengths."""
    lengths = jnp.linalg.norm(stacks[0], axis=1)
    directions = stacks[0] * jnp.linspace(0.5, 2, HIDDEN)

    def layer(x, given):
        w, length, *others = given
        return block(x, (w * lax.rsqrt((w * w).sum(0)) * length, *others))

    return lax.scan(layer, x, (directions, lengths, *stacks[1:]))[0]


def masked_block(x, layer):
    products = jnp.repeat((x[:, :, None] * x[:, None, :])[:, None], 8, axis=1) * jnp.arange(1, 9)[:, None, None]
    causal = jnp.where(jnp.tril(jnp.ones((WIDTH, WIDTH), bool)), products, 0)
    return block(x + causal.mean((1, 3)) / 50, layer)


def masked(x):
    for i in range(LAYERS):
        x = masked_block(x, tuple(stack[i] for stack in stacks))[0]
    return x


def masked_whole(x):
    return lax.scan(masked_block, x, stacks, unroll=LAYERS)[0]


filters = jnp.asarray(random.normal(size=(3, 3, 3, 8, 8)) / 9, jnp.float32)


def convolutions(x):
    numbers = ("NHWC", "HWIO", "NHWC")
    convolve = lambda y, w: lax.conv_general_dilated(y, w, (1, 1), "SAME", dimension_numbers=numbers)
    return lax.scan(lambda y, w: (y + jax.nn.relu(convolve(y, w)), None), x, filters)[0]


for function in (scanned, unrolled, pairs, rest, backwards, nested, rows, guarded, normalized, convolutions, masked, masked_whole):
    shape = (1, 6, 6, 8) if function is convolutions else (1, WIDTH)
    exported = export.export(jax.jit(function), platforms=("cpu",))(jax.ShapeDtypeStruct(shape, jnp.float32))
    with open(os.path.join(FOLDER, f"layers_{function.__name__}.jaxexport"), "wb") as out:
        out.write(exported.serialize())
