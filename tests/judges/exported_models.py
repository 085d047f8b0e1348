"""Models of JAX in files of jax.export: what `tare export` reads and writes back (exports.py). Needs no TensorFlow."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

Rows = list[dict[str, np.ndarray]]
Random = np.random.Generator
Function = Callable[..., object]
MODELS: dict[str, Callable[[Path, Random], Rows]] = {}
COUNT = 8
IMAGES = ("NHWC", "HWIO", "NHWC")


def written(build: Callable[[Random], tuple[Function, list[list[np.ndarray]]]], size: str, path: Path, random: Random) -> Rows:
    """Writes the file, with an open first dimension if `size` names one, and returns examples for it."""
    function, rows = build(random)
    shapes = [(export.symbolic_shape(", ".join([size, *map(str, value.shape[1:])])) if size else value.shape) for value in rows[0]]
    specs = [jax.ShapeDtypeStruct(shape, value.dtype) for shape, value in zip(shapes, rows[0], strict=True)]
    path.write_bytes(export.export(jax.jit(function), platforms=("cpu", "tpu"))(*specs).serialize())
    return [{f"arg{index}": value for index, value in enumerate(row)} for row in rows]


def model(build: Callable[[Random], tuple[Function, list[list[np.ndarray]]]]) -> Callable:
    """Registers a function that returns a function of arrays and examples of its arguments."""
    MODELS[build.__name__] = partial(written, build, "")
    return build


def of_any_batch(build: Callable[[Random], tuple[Function, list[list[np.ndarray]]]]) -> Callable:
    """The same, for batches of any size."""
    MODELS[f"open_{build.__name__}"] = partial(written, build, "b")
    return model(build)


def floats(random: Random, *shape: int, scale: float = 0.3) -> jax.Array:
    return jnp.asarray(random.normal(0, scale, shape), jnp.float32)


def normal(random: Random, *shapes: tuple[int, ...]) -> list[list[np.ndarray]]:
    return [[random.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(COUNT)]


def tokens(random: Random, size: int, *shape: int) -> list[list[np.ndarray]]:
    return [[random.integers(0, size, shape).astype(np.int32)] for _ in range(COUNT)]


def with_index(random: Random, count: int, *shapes: tuple[int, ...]) -> list[list[np.ndarray]]:
    """A last argument of one index."""
    return [[*row, np.array([index % count], np.int32)] for index, row in enumerate(normal(random, *shapes))]


@of_any_batch
def mlp(random: Random) -> tuple:
    w, b, v = floats(random, 32, 64), floats(random, 64), floats(random, 64, 10)
    return lambda x: jax.nn.softmax(jax.nn.relu(x @ w + b) @ v), normal(random, (2, 32))


@of_any_batch
def images(random: Random) -> tuple:
    first, second, head = floats(random, 3, 3, 3, 16), floats(random, 3, 3, 16, 32), floats(random, 32, 10)

    def network(x: jax.Array) -> jax.Array:
        x = jax.nn.relu(lax.conv_general_dilated(x, first, (2, 2), "SAME", dimension_numbers=IMAGES))
        x = jax.nn.silu(lax.conv_general_dilated(x, second, (1, 1), "VALID", dimension_numbers=IMAGES))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.mean((1, 2)) @ head

    return network, normal(random, (2, 16, 16, 3))


@model
def images_channels_first(random: Random) -> tuple:
    first, second, order = floats(random, 16, 3, 3, 3), floats(random, 16, 4, 3, 3), ("NCHW", "OIHW", "NCHW")

    def network(x: jax.Array) -> jax.Array:
        x = jax.nn.gelu(lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=order))
        return lax.conv_general_dilated(x, second, (1, 1), "SAME", dimension_numbers=order, feature_group_count=4, rhs_dilation=(2, 2))

    return network, normal(random, (2, 3, 12, 12))


@model
def signal(random: Random) -> tuple:
    """Causal convolution of one axis."""
    w = floats(random, 5, 8, 8)
    return lambda x: lax.conv_general_dilated(x, w, (1,), [(4, 0)], dimension_numbers=("NWC", "WIO", "NWC")), normal(random, (2, 20, 8))


@model
def transposed_convolution(random: Random) -> tuple:
    w = floats(random, 3, 3, 8, 4)
    return lambda x: lax.conv_transpose(x, w, (2, 2), "SAME"), normal(random, (2, 6, 6, 8))


@model
def resized(random: Random) -> tuple:
    w = floats(random, 3, 3, 3, 8)

    def network(x: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(jax.image.resize(x, (2, 12, 12, 3), "bilinear"), w, (1, 1), "SAME", dimension_numbers=IMAGES)

    return network, normal(random, (2, 6, 6, 3))


@model
def wide(random: Random) -> tuple:
    """Products that are large enough for the matrix unit in each type."""
    w, v = floats(random, 256, 512, scale=0.06), floats(random, 512, 256, scale=0.06)
    return lambda x: jax.nn.relu(x @ w) @ v, normal(random, (128, 256))


# ---- attention ----

def rotated(x: jax.Array) -> jax.Array:
    """Rotary positions of the last axis but one."""
    positions, width = x.shape[-2:]
    angles = jnp.arange(positions)[:, None] / 10000 ** (jnp.arange(0, width, 2) / width)
    sine, cosine, even, odd = jnp.sin(angles), jnp.cos(angles), x[..., ::2], x[..., 1::2]
    return jnp.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1).reshape(x.shape)


def normalized(x: jax.Array, gain: jax.Array) -> jax.Array:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain


def decoder(x: jax.Array, layer: dict[str, jax.Array], heads: int = 4) -> jax.Array:
    """A layer of a language model: causal attention with rotary positions and a gated network."""
    batch, length, width = x.shape
    y = normalized(x, layer["g1"])
    query, key, value = ((y @ layer[name]).reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3) for name in "qkv")
    scores = jnp.einsum("bhqd,bhkd->bhqk", rotated(query), rotated(key)) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), value).transpose(0, 2, 1, 3).reshape(batch, length, width)
    x = x + mixed @ layer["o"]
    y = normalized(x, layer["g2"])
    return x + (jax.nn.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]


def decoder_weights(random: Random, width: int, hidden: int, *layers: int) -> dict[str, jax.Array]:
    shapes = dict.fromkeys("qkvo", (width, width)) | {"gate": (width, hidden), "up": (width, hidden), "down": (hidden, width)}
    weights = {name: floats(random, *layers, *shape, scale=shape[0] ** -0.5) for name, shape in shapes.items()}
    return weights | {name: 1 + floats(random, *layers, width) for name in ("g1", "g2")}


@of_any_batch
def attention(random: Random) -> tuple:
    weights = decoder_weights(random, 32, 64)
    return lambda x: decoder(x, weights), normal(random, (2, 8, 32))


@model
def language(random: Random) -> tuple:
    weights, table = decoder_weights(random, 32, 64, 3), floats(random, 40, 32, scale=1)

    def network(text: jax.Array) -> jax.Array:
        x = table[text]
        for index in range(3):
            x = decoder(x, jax.tree.map(lambda stack, index=index: stack[index], weights))
        return x @ table.T

    return network, tokens(random, 40, 2, 8)


@model
def language_scanned(random: Random) -> tuple:
    weights, table = decoder_weights(random, 32, 64, 3), floats(random, 40, 32, scale=1)
    return lambda text: lax.scan(lambda x, layer: (decoder(x, layer), None), table[text], weights)[0] @ table.T, tokens(random, 40, 2, 8)


@model
def cached_attention(random: Random) -> tuple:
    """One step of decoding: the caches of keys and values are updated at a position."""
    w = {name: floats(random, 16, 16) for name in "qkvo"}

    def network(x: jax.Array, keys: jax.Array, values: jax.Array, position: jax.Array) -> tuple:
        keys = lax.dynamic_update_slice(keys, (x @ w["k"])[:, None], (0, position[0], 0))
        values = lax.dynamic_update_slice(values, (x @ w["v"])[:, None], (0, position[0], 0))
        scores = jnp.where(jnp.arange(8) <= position[0], jnp.einsum("bd,btd->bt", x @ w["q"], keys) / 4, -1e9)
        return jnp.einsum("bt,btd->bd", jax.nn.softmax(scores), values) @ w["o"], keys, values

    return network, with_index(random, 8, (2, 16), (2, 8, 16), (2, 8, 16))


# ---- loops and branches ----

def stack_of(random: Random, *layers: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    return floats(random, *layers, 16, 32), floats(random, *layers, 32), floats(random, *layers, 32, 16)


def residual(x: jax.Array, layer: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, None]:
    w, b, v = layer
    return x + jax.nn.relu(x @ w + b) @ v, None


@of_any_batch
def scan(random: Random) -> tuple:
    stack = stack_of(random, 4)
    return lambda x: lax.scan(residual, x, stack)[0], normal(random, (2, 16))


@model
def scan_of_pairs(random: Random) -> tuple:
    stack = stack_of(random, 4)
    return lambda x: lax.scan(residual, x, stack, unroll=2)[0], normal(random, (2, 16))


@model
def scan_backwards(random: Random) -> tuple:
    stack = stack_of(random, 4)
    return lambda x: lax.scan(residual, x, stack, reverse=True)[0], normal(random, (2, 16))


@model
def scan_in_scan(random: Random) -> tuple:
    stack = stack_of(random, 2, 3)
    return lambda x: lax.scan(lambda x, layers: (lax.scan(residual, x, layers)[0], None), x, stack)[0], normal(random, (2, 16))


@model
def scan_of_codes(random: Random) -> tuple:
    """Weights in float8 with scales by output, and in integers with scales by groups of inputs."""
    w, b, v = stack_of(random, 4)
    scale, groups = jnp.abs(w).max(1, keepdims=True) / 448, v.reshape(4, 2, 16, 16)
    steps = jnp.abs(groups).max(2, keepdims=True) / 127
    stacks = (w / scale).astype(jnp.float8_e4m3fn), scale, b, jnp.round(groups / steps).astype(jnp.int8), steps

    def network(x: jax.Array, layer: tuple) -> tuple[jax.Array, None]:
        codes, scale, b, groups, steps = layer
        return residual(x, (codes.astype(jnp.float32) * scale, b, (groups.astype(jnp.float32) * steps).reshape(32, 16)))

    return lambda x: lax.scan(network, x, stacks)[0], normal(random, (2, 16))


@model
def scan_of_directions(random: Random) -> tuple:
    """Weights that each iteration computes from directions and lengths."""
    w, b, v = stack_of(random, 4)
    stacks = w, 1 + floats(random, 4, 32), b, v

    def network(x: jax.Array, layer: tuple) -> tuple[jax.Array, None]:
        direction, length, b, v = layer
        return residual(x, (direction * lax.rsqrt((direction * direction).sum(0)) * length, b, v - v.mean(0)))

    return lambda x: lax.scan(network, x, stacks)[0], normal(random, (2, 16))


@model
def scan_with_outputs(random: Random) -> tuple:
    stack = stack_of(random, 4)

    def network(x: jax.Array) -> dict[str, jax.Array]:
        y, sums = lax.scan(lambda x, layer: (residual(x, layer)[0], x.sum(-1)), x, stack)
        return {"y": y, "sums": sums}

    return network, normal(random, (2, 16))


@model
def loop_of_layers(random: Random) -> tuple:
    w = floats(random, 4, 16, 16)
    return lambda x: lax.fori_loop(0, 4, lambda index, x: jnp.tanh(x @ w[index]), x), normal(random, (2, 16))


@model
def loop_until_small(random: Random) -> tuple:
    w = floats(random, 16, 16)

    def network(x: jax.Array) -> jax.Array:
        return lax.while_loop(lambda state: (state[0] < 5) & (jnp.abs(state[1]).max() > 1e-3), lambda state: (state[0] + 1, jnp.tanh(state[1] @ w)), (0, x))[1]

    return network, normal(random, (2, 16))


@model
def loop_over_rows(random: Random) -> tuple:
    w = floats(random, 16, 16)
    return lambda x: lax.map(lambda row: jax.nn.relu(row @ w), x), normal(random, (6, 2, 16))


@model
def branches(random: Random) -> tuple:
    w, v = floats(random, 16, 16), floats(random, 16, 16)
    return lambda x: lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: jnp.sort(x @ v, -1), x), normal(random, (2, 16))


@model
def branches_by_index(random: Random) -> tuple:
    w = floats(random, 3, 16, 16)
    cases = [lambda x: x @ w[0], lambda x: jax.nn.relu(x @ w[1]), lambda x: jnp.tanh(x) @ w[2]]
    return lambda x, index: lax.switch(index[0], cases, x), with_index(random, 4, (2, 16))


@model
def gated_units(random: Random) -> tuple:
    """A GRU."""
    size, wx, wh, bx, bh, head = 16, floats(random, 8, 48), floats(random, 16, 48), floats(random, 48), floats(random, 48), floats(random, 16, 4)

    def step(state: jax.Array, x: jax.Array) -> tuple:
        given, kept = x @ wx + bx, state @ wh + bh
        update, reset = (jax.nn.sigmoid(given[:, part] + kept[:, part]) for part in (slice(size), slice(size, 2 * size)))
        state = (1 - update) * jnp.tanh(given[:, 2 * size:] + reset * kept[:, 2 * size:]) + update * state
        return state, state

    return lambda x: lax.scan(step, jnp.zeros((2, size)), x.transpose(1, 0, 2))[1].transpose(1, 0, 2) @ head, normal(random, (2, 6, 8))


@model
def both_directions(random: Random) -> tuple:
    """An LSTM forwards and one backwards."""
    cells = [(floats(random, 8, 48), floats(random, 12, 48), floats(random, 48)) for _ in range(2)]
    head = floats(random, 24, 4)

    def run(x: jax.Array, cell: tuple, reverse: bool) -> jax.Array:
        def step(state: tuple, x: jax.Array) -> tuple:
            enter, forget, new, leave = jnp.split(x @ cell[0] + state[0] @ cell[1] + cell[2], 4, -1)
            memory = jax.nn.sigmoid(forget) * state[1] + jax.nn.sigmoid(enter) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
            return (hidden, memory), hidden
        return lax.scan(step, (jnp.zeros((2, 12)), jnp.zeros((2, 12))), x, reverse=reverse)[1]

    def network(x: jax.Array) -> jax.Array:
        x = x.transpose(1, 0, 2)
        return jnp.concatenate([run(x, cells[0], False), run(x, cells[1], True)], -1) @ head

    return network, normal(random, (2, 6, 8))


# ---- experts ----

@model
def experts(random: Random) -> tuple:
    """All experts, of whose results two are mixed."""
    gate, w, v = floats(random, 16, 4), floats(random, 4, 16, 32), floats(random, 4, 32, 16)

    def network(x: jax.Array) -> jax.Array:
        weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        results = jnp.einsum("beh,ehd->bed", jax.nn.gelu(jnp.einsum("bd,edh->beh", x, w)), v)
        mask = (jax.nn.one_hot(chosen, 4) * weights[..., None]).sum(1)
        return (results * mask[..., None]).sum(1)

    return network, normal(random, (4, 16))


@model
def experts_by_row(random: Random) -> tuple:
    """Each row gathers the weights of its expert."""
    gate, w, v = floats(random, 16, 4), floats(random, 4, 16, 32), floats(random, 4, 32, 16)

    def network(x: jax.Array) -> jax.Array:
        chosen = jnp.argmax(x @ gate, -1)
        return jnp.einsum("bh,bhd->bd", jax.nn.relu(jnp.einsum("bd,bdh->bh", x, w[chosen])), v[chosen])

    return network, normal(random, (4, 16))


@model
def expert_by_index(random: Random) -> tuple:
    w, v = floats(random, 4, 16, 32), floats(random, 4, 32, 16)

    def network(x: jax.Array, index: jax.Array) -> jax.Array:
        first, second = (lax.dynamic_index_in_dim(stack, index[0], keepdims=False) for stack in (w, v))
        return jax.nn.relu(x @ first) @ second

    return network, with_index(random, 4, (2, 16))


# ---- ops ----

@model
def functions(random: Random) -> tuple:
    w = floats(random, 16, 16)

    def network(x: jax.Array) -> list[jax.Array]:
        y = x @ w
        size = jnp.abs(y)
        return [jnp.exp(y), jnp.log1p(size), jax.scipy.special.erf(y), jnp.sin(y), jnp.arctan2(y, x), jnp.cbrt(y), jnp.sign(y),
                jnp.cumsum(y, -1), jax.scipy.special.logsumexp(y, -1), jnp.power(size, 1.7), jnp.expm1(y), jnp.tan(y), jnp.isfinite(y)]

    return network, normal(random, (2, 16))


@model
def integers(random: Random) -> tuple:
    def network(x: jax.Array) -> list[jax.Array]:
        return [x // 3, x % 5, x << 2, x >> 1, x & 6, ~x, jnp.sort(x, -1), jnp.argsort(x, -1), jnp.cumsum(x, 0), x.astype(jnp.int8),
                lax.population_count(x), lax.clz(x), jnp.clip(x, 2, 9), x.astype(jnp.float32) / 3 > 2]

    return network, tokens(random, 1000, 4, 8)


@model
def scattered(random: Random) -> tuple:
    w = floats(random, 8, 16)
    rows = [[*row, random.integers(0, 10, 6).astype(np.int32)] for row in normal(random, (6, 8))]
    return lambda x, index: jnp.zeros((10, 16)).at[index].add(x @ w).at[0].set(1.0), rows


@model
def computed_in_bfloat16(random: Random) -> tuple:
    w, v = floats(random, 32, 64).astype(jnp.bfloat16), floats(random, 64, 8).astype(jnp.bfloat16)
    return lambda x: (jax.nn.gelu(x.astype(jnp.bfloat16) @ w) @ v).astype(jnp.float32), normal(random, (4, 32))


@model
def normalizations(random: Random) -> tuple:
    w, gain, bias = floats(random, 16, 16), 1 + floats(random, 16), floats(random, 16)

    def network(x: jax.Array) -> jax.Array:
        y = x @ w
        y = (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-5) * gain + bias
        groups = y.reshape(2, 5, 4, 4)
        groups = (groups - groups.mean((1, 3), keepdims=True)) / jnp.sqrt(groups.var((1, 3), keepdims=True) + 1e-5)
        return groups.reshape(y.shape) @ w

    return network, normal(random, (2, 5, 16))


@model
def mapped(random: Random) -> tuple:
    w = floats(random, 4, 16, 8)
    return lambda x: jax.vmap(jnp.matmul, (1, 0), 1)(x, w), normal(random, (2, 4, 16))


@model
def spectrum(random: Random) -> tuple:
    w = floats(random, 9, 4)
    return lambda x: jnp.abs(jnp.fft.rfft(x)) @ w, normal(random, (2, 16))


@model
def drawn(random: Random) -> tuple:
    """Random numbers of a fixed key."""
    w = floats(random, 16, 16)

    def network(x: jax.Array) -> jax.Array:
        key = jax.random.key(3)
        return (x @ w) * jax.random.bernoulli(key, 0.7, x.shape) + jax.random.normal(key, x.shape) / 10

    return network, normal(random, (2, 16))
