#!/usr/bin/env python3
"""Regression tasks on sequences for bench/accuracy.sh.

    sequence_tasks.py [--steps N] [--records N] FOLDER [NAME...]

Trains four small networks on synthetic data and writes each as a task (docs/accuracy.md): a temporal convolutional network
(tcn), an LSTM whose steps are a While loop (lstm), a transformer encoder (transformer) and a multilayer perceptron (mlp).
Everything follows from the seeds, except for the last bits of the floating-point results, which depend on NumPy's BLAS.

With --steps and --records, the networks are trained for N steps and evaluated on N records: a small form that shows whether
everything runs, not what the methods lose.

A network is written once, as a function of `ops`: Tape computes its values and derivatives, Emitter writes the ops of a
TensorFlow graph. Needs NumPy.
"""
import argparse
import gzip
import os
import struct

import numpy as np

CALIBRATION, EVALUATION, BATCH, TRAINING = 300, 1000, 64, 20000


# ---- protobuf messages and TFRecord files ----

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def entry(field, key, value):
    return message(field, message(1, key) + message(2, value))


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC = crc32c_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_records(path, examples):
    """Writes records of RepresentativeDataSample messages: a tensor for each key."""
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for example in examples:
            record = b"".join(entry(2, key, tensor_message(np.asarray(value, np.float32)[None]))
                              for key, value in example.items())
            length = struct.pack("<Q", len(record))
            file.write(length + masked_crc(length) + record + masked_crc(record))


# ---- the graph ----

FLOAT, INT32, BOOL = 1, 3, 10


def shape_message(shape):
    return b"".join(message(2, number(1, size)) for size in shape)


def tensor_message(value):
    value = np.asarray(value)
    dtype = {"f": FLOAT, "i": INT32}[value.dtype.kind]
    data = value.astype("<f4" if dtype == FLOAT else "<i4").tobytes()
    return number(1, dtype) + message(2, shape_message(value.shape)) + message(4, data)


def attr(value):
    """AttrValue: a type, int, bool, str, list of ints, function, shape or tensor."""
    kind, content = value
    if kind == "ints":
        return message(1, message(3, b"".join(varint(i) for i in content)))
    if kind == "types":
        return message(1, message(6, b"".join(varint(i) for i in content)))
    if kind == "func":
        return message(10, message(1, content))
    if kind == "shape":
        return message(7, shape_message(content))
    if kind == "tensor":
        return message(8, tensor_message(content))
    if kind == "str":
        return message(2, content)
    return number({"int": 3, "bool": 5, "type": 6}[kind], content)


class Emitter:
    """The nodes of a graph, or of a function of it."""

    def __init__(self, weights, root=None):
        self.weights, self.nodes, self.names, self.in_function = weights, [], {}, root is not None
        self.functions = root.functions if root else []

    def add(self, op, inputs, name=None, **attrs):
        name = name or op.lower()
        self.names[name] = self.names.get(name, -1) + 1
        name += f"_{self.names[name]}" if self.names[name] else ""
        body = message(1, name) + message(2, op) + b"".join(message(3, i) for i in inputs)
        body += b"".join(entry(5, key, attr(value)) for key, value in sorted(attrs.items()))
        self.nodes.append(body)
        outputs = {"Const": "output", "BatchMatMulV2": "output", "BiasAdd": "output", "Relu": "activations",
                   "Softmax": "softmax", "Conv2D": "output", "MatMul": "product", "Pad": "output", "Mean": "output",
                   "Reshape": "output", "GatherV2": "output", "StatelessWhile": "output"}
        if self.in_function:
            return f"{name}:{outputs.get(op, 'y' if op in ('Sigmoid', 'Tanh', 'Rsqrt', 'Transpose') else 'z')}:0"
        return name

    def constant(self, value, name="const"):
        value = np.asarray(value)
        return self.add("Const", [], name, dtype=("type", FLOAT if value.dtype.kind == "f" else INT32),
                        value=("tensor", value))

    def weight(self, name):
        return self.constant(self.weights[name].astype(np.float32), name)

    def unary(self, op, x):
        return self.add(op, [x], T=("type", FLOAT))

    def binary(self, op, x, y):
        return self.add(op, [x, y], T=("type", FLOAT))

    def relu(self, x):
        return self.unary("Relu", x)

    def sigmoid(self, x):
        return self.unary("Sigmoid", x)

    def tanh(self, x):
        return self.unary("Tanh", x)

    def softmax(self, x):
        return self.unary("Softmax", x)

    def plus(self, x, y):
        return self.binary("AddV2", x, y)

    def times(self, x, y):
        return self.binary("Mul", x, y)

    def scaled(self, x, factor):
        return self.times(x, self.constant(np.float32(factor)))

    def dense(self, x, name):
        """x [batch, in]."""
        product = self.add("MatMul", [x, self.weight(name + "/kernel")], name, T=("type", FLOAT))
        return self.add("BiasAdd", [product, self.weight(name + "/bias")], name + "/add", T=("type", FLOAT))

    def rows(self, x, width):
        """[batch, steps, width] -> [batch * steps, width]."""
        return self.reshape(x, (-1, width))

    def reshape(self, x, shape):
        return self.add("Reshape", [x, self.constant(np.asarray(shape, np.int32))], T=("type", FLOAT), Tshape=("type", INT32))

    def transpose(self, x, axes):
        return self.add("Transpose", [x, self.constant(np.asarray(axes, np.int32))], T=("type", FLOAT), Tperm=("type", INT32))

    def matmul(self, x, y, adjoint):
        return self.add("BatchMatMulV2", [x, y], T=("type", FLOAT), adj_x=("bool", 0), adj_y=("bool", int(adjoint)))

    def mean(self, x, axis, keep=False):
        return self.add("Mean", [x, self.constant(np.asarray([axis], np.int32))], T=("type", FLOAT), Tidx=("type", INT32),
                        keep_dims=("bool", int(keep)))

    def normalized(self, x, name):
        mean = self.mean(x, -1, True)
        variance = self.mean(self.binary("SquaredDifference", x, mean), -1, True)
        factor = self.unary("Rsqrt", self.plus(variance, self.constant(np.float32(1e-3))))
        scaled = self.times(self.times(self.binary("Sub", x, mean), factor), self.weight(name + "/gamma"))
        return self.plus(scaled, self.weight(name + "/beta"))

    def conv(self, x, name, dilation, steps):
        """A causal convolution over time: x [batch, steps, in], kernel [width, in, out]."""
        kernel = self.weights[name + "/kernel"].astype(np.float32)
        low = dilation * (kernel.shape[0] - 1)
        x = self.reshape(x, (-1, 1, steps, kernel.shape[1]))
        x = self.add("Pad", [x, self.constant(np.array([[0, 0], [0, 0], [low, 0], [0, 0]], np.int32))], T=("type", FLOAT),
                     Tpaddings=("type", INT32))
        y = self.add("Conv2D", [x, self.constant(kernel[None], name + "/kernel")], name, T=("type", FLOAT),
                     strides=("ints", (1, 1, 1, 1)), dilations=("ints", (1, 1, dilation, 1)), padding=("str", "VALID"))
        y = self.add("BiasAdd", [y, self.weight(name + "/bias")], name + "/add", T=("type", FLOAT))
        return self.reshape(y, (-1, steps, kernel.shape[2]))

    def last(self, x, steps):
        return self.step(x, self.constant(np.int32(steps - 1)))

    def step(self, x, index):
        return self.add("GatherV2", [x, index, self.constant(np.int32(1))], Tparams=("type", FLOAT), Tindices=("type", INT32),
                        Taxis=("type", INT32))

    def lstm(self, x, name, steps, units):
        """The last state of an LSTM: a While loop over index, h, c and x."""
        zero = self.add("MatMul", [self.last(x, 1), self.constant(np.zeros((self.weights[name + "/kernel"].shape[0] - units,
                                                                            units), np.float32))], "zero", T=("type", FLOAT))
        types = (INT32, FLOAT, FLOAT, FLOAT)
        arguments = ("i", "h", "c", "x")
        body = Emitter(self.weights, self)
        at = body.step("x", "i")
        joined = body.add("ConcatV2", [at, "h", body.constant(np.int32(1))], T=("type", FLOAT), Tidx=("type", INT32),
                          N=("int", 2)).replace(":z:", ":output:")
        gates = body.dense(joined, name)
        parts = [body.add("Slice", [gates, body.constant(np.array([0, k * units], np.int32)),
                                    body.constant(np.array([-1, units], np.int32))], T=("type", FLOAT),
                          Index=("type", INT32)).replace(":z:", ":output:") for k in range(4)]
        cell = body.plus(body.times(body.sigmoid(parts[1]), "c"), body.times(body.sigmoid(parts[0]), body.tanh(parts[2])))
        state = body.times(body.sigmoid(parts[3]), body.tanh(cell))
        following = body.add("AddV2", ["i", body.constant(np.int32(1))], T=("type", INT32))
        body.define(name + "_body", arguments, types, {"i": following, "h": state, "c": cell, "x": "x"}, types)
        cond = Emitter(self.weights, self)
        less = cond.add("Less", ["i", cond.constant(np.int32(steps))], T=("type", INT32))
        cond.define(name + "_cond", arguments, types, {"less": less}, (BOOL,))
        loop = self.add("StatelessWhile", [self.constant(np.int32(0)), zero, zero, x], name + "/while", T=("types", types),
                        cond=("func", name + "_cond"), body=("func", name + "_body"), output_shapes=("ints", ()))
        return loop + ":1"

    def define(self, name, arguments, types, results, result_types):
        signature = message(1, name)
        signature += b"".join(message(2, message(1, a) + number(3, t)) for a, t in zip(arguments, types))
        signature += b"".join(message(3, message(1, r + "_out") + number(3, t)) for r, t in zip(results, result_types))
        self.functions.append(message(1, signature) + b"".join(message(3, node) for node in self.nodes) +
                              b"".join(message(4, message(1, r + "_out") + message(2, v)) for r, v in results.items()))


def write_model(path, network, weights, shape):
    graph = Emitter(weights)
    x = graph.add("Placeholder", [], "x", dtype=("type", FLOAT), shape=("shape", (-1,) + shape))
    y = graph.reshape(network(graph, x), (-1, 1))

    def tensor(name, dims):
        return message(1, name + ":0") + number(2, FLOAT) + message(3, shape_message(dims))

    signature = entry(1, "x", tensor(x, (-1,) + shape)) + entry(2, "y", tensor(y, (-1, 1)))
    signature += message(3, "tensorflow/serving/predict")
    definition = b"".join(message(1, node) for node in graph.nodes)
    definition += message(2, b"".join(message(1, f) for f in graph.functions)) + message(4, number(1, 1395))
    meta = message(1, message(4, "serve")) + message(2, definition) + entry(5, "serving_default", signature)
    os.makedirs(os.path.join(path, "variables"), exist_ok=True)
    with open(os.path.join(path, "saved_model.pb"), "wb") as file:
        file.write(number(1, 1) + message(2, meta))


# ---- values and derivatives ----

class Value:
    def __init__(self, data, parents=(), backward=None):
        self.data, self.parents, self.backward, self.gradient = data, parents, backward, None


def fold(gradient, shape):
    """Sums over the axes that were broadcast."""
    while gradient.ndim > len(shape):
        gradient = gradient.sum(0)
    for axis, size in enumerate(shape):
        if size == 1 and gradient.shape[axis] != 1:
            gradient = gradient.sum(axis, keepdims=True)
    return gradient


class Tape:
    def __init__(self, weights):
        self.values = {name: Value(value) for name, value in weights.items()}

    def weight(self, name):
        return self.values[name]

    def relu(self, x):
        return Value(np.maximum(x.data, 0), (x,), lambda g: (g * (x.data > 0),))

    def sigmoid(self, x):
        y = 1 / (1 + np.exp(-x.data))
        return Value(y, (x,), lambda g: (g * y * (1 - y),))

    def tanh(self, x):
        y = np.tanh(x.data)
        return Value(y, (x,), lambda g: (g * (1 - y * y),))

    def softmax(self, x):
        y = np.exp(x.data - x.data.max(-1, keepdims=True))
        y /= y.sum(-1, keepdims=True)
        return Value(y, (x,), lambda g: (y * (g - (g * y).sum(-1, keepdims=True)),))

    def plus(self, x, y):
        return Value(x.data + y.data, (x, y), lambda g: (fold(g, x.data.shape), fold(g, y.data.shape)))

    def times(self, x, y):
        return Value(x.data * y.data, (x, y), lambda g: (fold(g * y.data, x.data.shape), fold(g * x.data, y.data.shape)))

    def scaled(self, x, factor):
        return Value(x.data * factor, (x,), lambda g: (g * factor,))

    def product(self, x, w):
        return Value(x.data @ w.data, (x, w), lambda g: (g @ w.data.T, x.data.T @ g))

    def dense(self, x, name):
        return self.plus(self.product(x, self.values[name + "/kernel"]), self.values[name + "/bias"])

    def rows(self, x, width):
        return self.reshape(x, (-1, width))

    def reshape(self, x, shape):
        return Value(x.data.reshape(shape), (x,), lambda g: (g.reshape(x.data.shape),))

    def transpose(self, x, axes):
        return Value(x.data.transpose(axes), (x,), lambda g: (g.transpose(np.argsort(axes)),))

    def matmul(self, x, y, adjoint):
        other = y.data.swapaxes(-1, -2) if adjoint else y.data

        def backward(g):
            right = x.data.swapaxes(-1, -2) @ g
            return g @ other.swapaxes(-1, -2), right.swapaxes(-1, -2) if adjoint else right
        return Value(x.data @ other, (x, y), backward)

    def mean(self, x, axis, keep=False):
        count = x.data.shape[axis]
        return Value(x.data.mean(axis, keepdims=keep), (x,), lambda g: (
            np.broadcast_to(g if keep else np.expand_dims(g, axis), x.data.shape) / count,))

    def normalized(self, x, name):
        centred = x.data - x.data.mean(-1, keepdims=True)
        factor = 1 / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-3)
        y = centred * factor
        normal = Value(y, (x,), lambda g: (
            factor * (g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True)),))
        return self.plus(self.times(normal, self.values[name + "/gamma"]), self.values[name + "/beta"])

    def conv(self, x, name, dilation, steps):
        kernel = self.values[name + "/kernel"]
        width, inputs, outputs = kernel.data.shape
        low = dilation * (width - 1)
        padded = np.pad(x.data, ((0, 0), (low, 0), (0, 0)))
        taps = np.concatenate([padded[:, k * dilation:k * dilation + steps] for k in range(width)], -1)

        def backward(g):
            around = (g @ kernel.data.reshape(-1, outputs).T).reshape(g.shape[:2] + (width, inputs))
            back = np.zeros_like(padded)
            for k in range(width):
                back[:, k * dilation:k * dilation + steps] += around[:, :, k]
            filters = taps.reshape(-1, width * inputs).T @ g.reshape(-1, outputs)
            return back[:, low:], filters.reshape(kernel.data.shape)
        product = Value(taps @ kernel.data.reshape(-1, outputs), (x, kernel), backward)
        return self.plus(product, self.values[name + "/bias"])

    def last(self, x, steps):
        return self.step(x, steps - 1)

    def step(self, x, index):
        def backward(g):
            back = np.zeros_like(x.data)
            back[:, index] = g
            return (back,)
        return Value(x.data[:, index], (x,), backward)

    def part(self, x, first, count):
        def backward(g):
            back = np.zeros_like(x.data)
            back[:, first:first + count] = g
            return (back,)
        return Value(x.data[:, first:first + count], (x,), backward)

    def lstm(self, x, name, steps, units):
        inputs = x.data.shape[2]
        state = cell = Value(np.zeros((len(x.data), units), np.float32))
        for i in range(steps):
            at, h = self.step(x, i), state
            joined = Value(np.concatenate([at.data, h.data], 1), (at, h), lambda g: (g[:, :inputs], g[:, inputs:]))
            gates = self.dense(joined, name)
            parts = [self.part(gates, k * units, units) for k in range(4)]
            cell = self.plus(self.times(self.sigmoid(parts[1]), cell), self.times(self.sigmoid(parts[0]), self.tanh(parts[2])))
            state = self.times(self.sigmoid(parts[3]), self.tanh(cell))
        return state

    def derive(self, output, gradient):
        """Sets the gradients of the weights."""
        order, seen = [], set()
        stack = [(output, False)]
        while stack:
            value, done = stack.pop()
            if done:
                order.append(value)
            elif id(value) not in seen:
                seen.add(id(value))
                stack.append((value, True))
                stack.extend((parent, False) for parent in value.parents)
        output.gradient = gradient
        for value in reversed(order):
            if value.backward is None:
                continue
            for parent, part in zip(value.parents, value.backward(value.gradient)):
                parent.gradient = part if parent.gradient is None else parent.gradient + part


# ---- the networks ----

STEPS, WIDTH, HEADS = 32, 48, 2


def tcn(ops, x):
    y = x
    for k, dilation in enumerate((1, 2, 4, 8)):
        y = ops.relu(ops.conv(y, f"conv{k}a", dilation, STEPS))
        y = ops.conv(y, f"conv{k}b", dilation, STEPS)
        y = ops.relu(ops.plus(y, ops.conv(x, "skip", 1, STEPS) if k == 0 else before))
        before = y
    return ops.dense(ops.relu(ops.dense(ops.last(y, STEPS), "hidden")), "output")


def lstm(ops, x):
    return ops.dense(ops.lstm(x, "lstm", STEPS, WIDTH), "output")


def attention(ops, x, name):
    size = WIDTH // HEADS
    parts = [ops.transpose(ops.reshape(ops.dense(ops.rows(x, WIDTH), f"{name}/{part}"), (-1, STEPS, HEADS, size)), (0, 2, 1, 3))
             for part in ("query", "key", "value")]
    weights = ops.softmax(ops.scaled(ops.matmul(parts[0], parts[1], True), size ** -0.5))
    joined = ops.transpose(ops.matmul(weights, parts[2], False), (0, 2, 1, 3))
    return ops.reshape(ops.dense(ops.rows(joined, WIDTH), f"{name}/output"), (-1, STEPS, WIDTH))


def transformer(ops, x):
    y = ops.reshape(ops.dense(ops.rows(x, 4), "embedding"), (-1, STEPS, WIDTH))
    y = ops.plus(y, ops.weight("positions"))
    for k in range(2):
        y = ops.plus(y, attention(ops, ops.normalized(y, f"norm{k}a"), f"attention{k}"))
        hidden = ops.relu(ops.dense(ops.rows(ops.normalized(y, f"norm{k}b"), WIDTH), f"mlp{k}/in"))
        y = ops.plus(y, ops.reshape(ops.dense(hidden, f"mlp{k}/out"), (-1, STEPS, WIDTH)))
    return ops.dense(ops.mean(ops.normalized(y, "norm"), 1), "output")


def mlp(ops, x):
    y = x
    for k in range(3):
        y = ops.relu(ops.dense(y, f"dense{k}"))
    return ops.dense(y, "output")


# ---- data ----

def series(random, count):
    """Four channels of sums of sinusoids with noise; the target is a nonlinear function of their future and past."""
    time = np.arange(STEPS + 4)
    frequency = random.uniform(0.05, 0.6, (count, 4, 3, 1))
    phase = random.uniform(0, 2 * np.pi, (count, 4, 3, 1))
    amplitude = random.exponential(1, (count, 4, 3, 1)) * np.array([1, 0.3, 2, 0.1])[:, None, None]
    x = (amplitude * np.sin(frequency * time + phase)).sum(2)
    target = 0.02 * (x[:, 0, -1] + x[:, 2, STEPS - 6] * np.tanh(x[:, 1, STEPS - 2]) + 5 * x[:, 3, -2]) + 0.3
    x = x[:, :, :STEPS] + 0.02 * random.standard_normal((count, 4, STEPS))
    return x.transpose(0, 2, 1), target


def table(random, count):
    """Twelve columns of very different scales; a smooth function of them, with values from 0.5 to 4."""
    x = random.standard_normal((count, 12)) * np.logspace(-1, 1, 12)
    z = x / np.logspace(-1, 1, 12)
    target = 2 + 0.4 * np.sin(2 * z[:, 0]) * z[:, 11] + 0.3 * z[:, 5] + 0.2 * np.tanh(z[:, 1] * z[:, 2]) + 0.1 * z[:, 8] ** 2
    return x, target


def layer_shapes():
    shapes = {}

    def dense(name, inputs, outputs):
        shapes[name + "/kernel"], shapes[name + "/bias"] = (inputs, outputs), (outputs,)

    def conv(name, width, inputs, outputs):
        shapes[name + "/kernel"], shapes[name + "/bias"] = (width, inputs, outputs), (outputs,)

    for k in range(4):
        conv(f"conv{k}a", 3, WIDTH if k else 4, WIDTH)
        conv(f"conv{k}b", 3, WIDTH, WIDTH)
    conv("skip", 1, 4, WIDTH)
    dense("hidden", WIDTH, WIDTH)
    dense("lstm", 4 + WIDTH, 4 * WIDTH)
    dense("embedding", 4, WIDTH)
    shapes["positions"] = (STEPS, WIDTH)
    for k in range(2):
        for part in ("query", "key", "value", "output"):
            dense(f"attention{k}/{part}", WIDTH, WIDTH)
        dense(f"mlp{k}/in", WIDTH, 2 * WIDTH)
        dense(f"mlp{k}/out", 2 * WIDTH, WIDTH)
    for name in ("norm0a", "norm0b", "norm1a", "norm1b", "norm"):
        shapes[name + "/gamma"] = shapes[name + "/beta"] = (WIDTH,)
    for k in range(3):
        dense(f"dense{k}", 64 if k else 12, 64)
    return shapes


class Task:
    def __init__(self, network, draw, shape, prefixes, width, steps):
        self.network, self.draw, self.shape, self.steps = network, draw, shape, steps
        self.shapes = {name: size for name, size in layer_shapes().items() if name.startswith(prefixes)}
        self.shapes.update({"output/kernel": (width, 1), "output/bias": (1,)})


TASKS = {
    "tcn": Task(tcn, series, (STEPS, 4), ("conv", "skip", "hidden"), WIDTH, 2500),
    "lstm": Task(lstm, series, (STEPS, 4), ("lstm",), WIDTH, 2500),
    "transformer": Task(transformer, series, (STEPS, 4), ("embedding", "positions", "attention", "mlp", "norm"), WIDTH, 2500),
    "mlp": Task(mlp, table, (12,), ("dense",), 64, 6000),
}


def initial_weights(task, random):
    weights = {}
    for name, shape in task.shapes.items():
        if name.endswith("/gamma"):
            value = np.ones(shape)
        elif name.endswith(("/bias", "/beta")):
            value = np.zeros(shape)
        else:
            value = random.standard_normal(shape) * np.sqrt(1.5 / (np.prod(shape[:-1]) if len(shape) > 1 else 1))
        weights[name] = value.astype(np.float32)
    return weights


def train(task, random, steps):
    """Adam on the squared error, with a learning rate that falls to zero; targets are standardized."""
    weights = initial_weights(task, random)
    data, target = task.draw(random, min(TRAINING, BATCH * steps))
    data, mean, deviation = data.astype(np.float32), target.mean(), target.std()
    moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in weights.items()}
    for step in range(steps):
        rows = random.integers(0, len(data), BATCH)
        tape = Tape(weights)
        y = task.network(tape, Value(data[rows]))
        error = y.data[:, 0] - (target[rows] - mean) / deviation
        tape.derive(y, (2 / BATCH * error[:, None]).astype(np.float32))
        rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
        for name, w in weights.items():
            gradient = tape.values[name].gradient
            first, second = moments[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient ** 2 - second)
            w -= rate * first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
    weights["output/kernel"] = (weights["output/kernel"] * deviation).astype(np.float32)
    weights["output/bias"] = (weights["output/bias"] * deviation + mean).astype(np.float32)
    return weights


def write_task(folder, name, steps=None, records=None):
    task = TASKS[name]
    random = np.random.default_rng(20)
    weights = train(task, random, steps or task.steps)
    path = os.path.join(folder, name)
    write_model(os.path.join(path, "saved_model"), task.network, weights, task.shape)
    for kind, count in (("calibration", records or CALIBRATION), ("eval", records or EVALUATION)):
        data, target = task.draw(random, count)
        y = task.network(Tape(weights), Value(data.astype(np.float32))).data[:, 0]
        write_records(os.path.join(path, kind + ".tfrecord.gz"),
                      [{"x": x, "target": [t]} for x, t in zip(data, target)])
    with open(os.path.join(path, "README.md"), "w", encoding="utf-8") as file:
        file.write(f"# {name}\n\nWritten by bench/sequence_tasks.py.\n\n- metric: MAE of `y`\n"
                   f"- float score: {np.abs(y - target).mean():.6f} (standard deviation of the targets {target.std():.4f})\n")
    print(f"{name}: MAE {np.abs(y - target).mean():.6f}, standard deviation of the targets {target.std():.4f}")


def main():
    parser = argparse.ArgumentParser(description="Writes regression tasks on sequences for bench/accuracy.sh.")
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", choices=[[], *TASKS])
    parser.add_argument("--steps", type=int, help="training steps (default: those of the task)")
    parser.add_argument("--records", type=int, help="records for calibration, and for evaluation")
    options = parser.parse_args()
    for name in options.names or TASKS:
        write_task(options.folder, name, options.steps, options.records)


if __name__ == "__main__":
    main()
