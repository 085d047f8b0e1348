#!/usr/bin/env python3
"""Writes the TensorFlow Lite form of an int8 model that bench/onnx_writer.c wrote in QDQ form, with the same scales.

    tflite_from_qdq.py MODEL.int8.onnx OUT.tflite

Activations are int8 (uint8 minus 128), weights int8 per output channel, biases int32. Average pooling keeps the scale of
its input, as TensorFlow Lite requires, and the classifier, whose output has no scale in the file, is float. Arrays are
channels-last, so that transpositions are dropped. Fails on ops and paddings that have no such form.
"""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import protobuf_wire

FLOAT32, INT32, INT8 = 0, 2, 9  # TensorType
NONE, RELU, RELU6 = 0, 1, 3  # ActivationFunctionType
SAME, VALID = 0, 1
# BuiltinOperator, version, BuiltinOptions
OPS = {"Add": (0, 2, 11), "AveragePool": (1, 2, 5), "Conv": (3, 3, 1), "Depthwise": (4, 3, 2), "Dequantize": (6, 2, 0),
       "Gemm": (9, 1, 8), "MaxPool": (17, 2, 5), "Reshape": (22, 1, 17), "Softmax": (25, 1, 9), "Mean": (40, 2, 27),
       "Quantize": (114, 1, 0)}


# ---- protobuf ----

def fields(data):
    """Yields (number, value) of a message: signed integers, or bytes."""
    for number, value, _ in protobuf_wire.fields(data):
        yield number, value - (1 << 64) if isinstance(value, int) and value >> 63 else value


class Initializer:
    def __init__(self, data):
        self.dims = [v for f, v in fields(data) if f == 1]
        rest = {f: v for f, v in fields(data) if f != 1}
        self.type, self.name, self.raw = rest[2], bytes(rest[8]).decode(), bytes(rest.get(9, b""))

    def values(self):
        code, size = {1: ("f", 4), 2: ("B", 1), 3: ("b", 1), 6: ("i", 4), 7: ("q", 8)}[self.type]
        return struct.unpack(f"<{len(self.raw) // size}{code}", self.raw)


def parse_node(data):
    node = {"inputs": [], "attrs": {}}
    for field, value in fields(data):
        if field == 1:
            node["inputs"].append(bytes(value).decode())
        elif field == 2:
            node["output"] = bytes(value).decode()
        elif field == 4:
            node["op"] = bytes(value).decode()
        elif field == 5:
            parts = list(fields(value))
            name = next(bytes(v).decode() for f, v in parts if f == 1)
            numbers = [v for f, v in parts if f == 8]
            node["attrs"][name] = numbers or next((v for f, v in parts if f == 3), 0)
    return node


def input_shape(value):
    """Dimensions of a ValueInfoProto; the batch is 1."""
    tensor = dict(fields(dict(fields(dict(fields(value))[2]))[1]))
    return [dict(fields(dim)).get(1, 1) for field, dim in fields(tensor[2])]


# ---- FlatBuffers: parents first, so that every offset points forward ----

class Table:
    def __init__(self, **values):  # f0=("b", 1): field 0 is a byte; an object instead of the pair is an offset
        self.values = {int(name[1:]): value for name, value in values.items()}


class Vector:
    def __init__(self, code, values, align=None):
        self.code, self.values, self.align = code, values, align


def pad(out, boundary, ahead=0):
    while (len(out) + ahead) % boundary:
        out.append(0)


def write_table(out, table):
    entries = sorted(((number, ("I", value) if not isinstance(value, tuple) else value, value)
                      for number, value in table.values.items()), key=lambda e: -struct.calcsize("<" + e[1][0]))
    size, places = 4, {}
    for number, (code, _), _ in entries:
        places[number] = size
        size += struct.calcsize("<" + code)
    count = max(places, default=-1) + 1
    pad(out, 4, 2 * (count + 2))
    start = len(out)
    out += struct.pack(f"<{count + 2}H", 2 * (count + 2), size, *(places.get(i, 0) for i in range(count)))
    position = len(out)
    out += struct.pack("<i", position - start) + bytes(size - 4)
    for number, (code, _), value in entries:
        place = position + places[number]
        if isinstance(value, tuple):
            struct.pack_into("<" + code, out, place, value[1])
        else:
            struct.pack_into("<I", out, place, write(out, value) - place)
    return position


def write(out, item):
    """Appends an object and returns its position."""
    if isinstance(item, Table):
        return write_table(out, item)
    if isinstance(item, (bytes, bytearray)):
        pad(out, 16, 4)
        position = len(out)
        out += struct.pack("<I", len(item)) + item
    elif isinstance(item, str):
        pad(out, 4)
        position = len(out)
        out += struct.pack("<I", len(item)) + item.encode() + b"\0"
    elif isinstance(item, Vector):
        pad(out, struct.calcsize("<" + item.code), 4)
        pad(out, 4)
        position = len(out)
        out += struct.pack(f"<I{len(item.values)}{item.code}", len(item.values), *item.values)
    else:  # a list of objects
        pad(out, 4)
        position = len(out)
        out += struct.pack("<I", len(item)) + bytes(4 * len(item))
        for i, child in enumerate(item):
            place = position + 4 + 4 * i
            struct.pack_into("<I", out, place, write(out, child) - place)
    return position


# ---- the model ----

class Model:
    def __init__(self):
        self.tensors, self.buffers, self.operators, self.codes = [], [Table()], [], []
        self.shapes, self.grids = [], []

    def tensor(self, shape, kind, scales=None, zero=0, axis=0, data=None):
        if data is not None:
            self.buffers.append(Table(f0=bytes(data)))
        values = {"f0": Vector("i", shape), "f1": ("b", kind),
                  "f2": ("I", len(self.buffers) - 1 if data is not None else 0), "f3": f"t{len(self.tensors)}"}
        if scales:
            values["f4"] = Table(f2=Vector("f", scales), f3=Vector("q", [zero] * len(scales)), f6=("i", axis))
        self.tensors.append(Table(**values))
        self.shapes.append(list(shape))
        self.grids.append((scales[0], zero) if scales else None)
        return len(self.tensors) - 1

    def operator(self, op, inputs, output, options=None):
        code, version, union = OPS[op]
        if op not in self.codes:
            self.codes.append(op)
        values = {"f0": ("I", self.codes.index(op)), "f1": Vector("i", inputs), "f2": Vector("i", [output])}
        if union:
            values.update(f3=("B", union), f4=options)
        self.operators.append(Table(**values))
        return output

    def bytes(self, source, result):
        codes = [Table(f0=("b", OPS[op][0]), f2=("i", OPS[op][1]), f3=("i", OPS[op][0])) for op in self.codes]
        graph = Table(f0=self.tensors, f1=Vector("i", [source]), f2=Vector("i", [result]), f3=self.operators)
        out = bytearray(struct.pack("<I4s", 0, b"TFL3"))
        root = write(out, Table(f0=("I", 3), f1=codes, f2=[graph], f3="int8 network", f4=self.buffers))
        struct.pack_into("<I", out, 0, root)
        return out


def padding(node, shape, size, strides):
    """The padding and the height and width of the result."""
    pads = node["attrs"].get("pads", [0] * 4)
    same, results = [], []
    for i in range(2):
        result = -(-shape[1 + i] // strides[i])
        total = max((result - 1) * strides[i] + size[i] - shape[1 + i], 0)
        same.append((total // 2, total - total // 2))
        results.append((shape[1 + i] + pads[i] + pads[i + 2] - size[i]) // strides[i] + 1)
    if not any(pads):
        return VALID, results
    if [(pads[0], pads[2]), (pads[1], pads[3])] != same:
        sys.exit("tflite_from_qdq.py: explicit padding")
    return SAME, results


class Writer:
    """Values by name: ("t", tensor), ("c", weight), or ("p", pending op): one whose output has no grid yet."""

    def __init__(self, graph):
        self.model, self.values = Model(), {}
        self.constants = {i.name: i for i in (Initializer(v) for f, v in fields(graph) if f == 5)}
        source = next(v for f, v in fields(graph) if f == 11)
        self.input = self.model.tensor(input_shape(source), FLOAT32)
        self.values[bytes(dict(fields(source))[1]).decode()] = ("t", self.input)
        for field, value in fields(graph):
            if field == 1:
                node = parse_node(value)
                self.values[node["output"]] = self.write(node)

    def constant(self, name):
        return self.constants[name].values()

    def finish(self, pending, scale, zero):
        """The operator of a pending op, with an int8 output on the grid."""
        op, inputs, shape, make_options, activation = pending
        if op in ("AveragePool", "MaxPool", "Reshape"):
            scale, zero = self.model.grids[inputs[0]]
        output = self.model.tensor(shape, INT8, [scale], zero)
        return "t", self.model.operator(op, inputs, output, make_options(activation))

    def tensor_of(self, name):
        kind, value = self.values[name]
        if kind != "t":
            sys.exit(f"tflite_from_qdq.py: {name} has no grid")
        return value

    def write(self, node):
        op = node["op"]
        writer = getattr(self, "write_" + op, None)
        if not writer:
            sys.exit(f"tflite_from_qdq.py: no form of {op}")
        return writer(node)

    def write_Transpose(self, node):
        return self.values[node["inputs"][0]]

    def write_QuantizeLinear(self, node):
        kind, value = self.values[node["inputs"][0]]
        scale, zero = self.constant(node["inputs"][1])[0], self.constant(node["inputs"][2])[0] - 128
        if kind == "p":
            return self.finish(value, scale, zero)
        if self.model.grids[value]:
            return kind, value  # the same grid, after a transposition
        output = self.model.tensor(self.model.shapes[value], INT8, [scale], zero)
        return "t", self.model.operator("Quantize", [value], output)

    def write_DequantizeLinear(self, node):
        constant = self.constants.get(node["inputs"][0])
        if not constant:
            return self.values[node["inputs"][0]]
        return "c", (constant, self.constant(node["inputs"][1]))

    def write_Conv(self, node):
        x, attrs = self.tensor_of(node["inputs"][0]), node["attrs"]
        weight, scales = self.values[node["inputs"][1]][1]
        bias, bias_scales = self.values[node["inputs"][2]][1]
        shape, (outputs, inputs, height, width) = self.model.shapes[x], weight.dims
        depthwise = attrs["group"] > 1
        if attrs["dilations"] != [1, 1] or (depthwise and (inputs != 1 or attrs["group"] != shape[3])):
            sys.exit("tflite_from_qdq.py: dilations or groups")
        taps, raw = height * width, weight.raw
        if depthwise:  # height, width, channels
            data, dims = b"".join(raw[t::taps] for t in range(taps)), [1, height, width, outputs]
        else:
            size = inputs * taps
            data = b"".join(raw[o * size + t:(o + 1) * size:taps] for o in range(outputs) for t in range(taps))
            dims = [outputs, height, width, inputs]
        strides = attrs["strides"]
        mode, result = padding(node, shape, [height, width], strides)
        operands = [x, self.model.tensor(dims, INT8, scales, 0, 3 if depthwise else 0, data),
                    self.model.tensor([outputs], INT32, bias_scales, 0, 0, bias.raw)]
        head = {"f0": ("b", mode), "f1": ("i", strides[1]), "f2": ("i", strides[0])}
        if depthwise:
            options = lambda act: Table(**head, f3=("i", outputs // shape[3]), f4=("b", act))
        else:
            options = lambda act: Table(**head, f3=("b", act))
        return "p", ("Depthwise" if depthwise else "Conv", operands, [1] + result + [outputs], options, NONE)

    def activated(self, node, activation):
        op, inputs, shape, options, _ = self.values[node["inputs"][0]][1]
        return "p", (op, inputs, shape, options, activation)

    def write_Relu(self, node):
        return self.activated(node, RELU)

    def write_Clip(self, node):
        return self.activated(node, RELU6)

    def write_Add(self, node):
        operands = [self.tensor_of(name) for name in node["inputs"]]
        return "p", ("Add", operands, self.model.shapes[operands[0]], lambda act: Table(f0=("b", act)), NONE)

    def write_pool(self, node):
        x, size = self.tensor_of(node["inputs"][0]), node["attrs"]["kernel_shape"]
        shape, strides = self.model.shapes[x], node["attrs"]["strides"]
        mode, result = padding(node, shape, size, strides)
        options = lambda act: Table(f0=("b", mode), f1=("i", strides[1]), f2=("i", strides[0]), f3=("i", size[1]),
                                    f4=("i", size[0]), f5=("b", act))
        return "p", (node["op"], [x], [1] + result + [shape[3]], options, NONE)

    write_MaxPool = write_AveragePool = write_pool

    def write_GlobalAveragePool(self, node):
        x = self.tensor_of(node["inputs"][0])
        axes = self.model.tensor([2], INT32, data=struct.pack("<2i", 1, 2))
        return "p", ("Mean", [x, axes], [1, 1, 1, self.model.shapes[x][3]], lambda act: Table(f0=("b", 1)), NONE)

    def write_Reshape(self, node):
        x, dims = self.tensor_of(node["inputs"][0]), self.constant(node["inputs"][1])
        shape = self.model.tensor([len(dims)], INT32, data=struct.pack(f"<{len(dims)}i", *dims))
        return "p", ("Reshape", [x, shape], [1] + list(dims[1:]), lambda act: Table(f0=Vector("i", dims)), NONE)

    def write_Gemm(self, node):
        x = self.tensor_of(node["inputs"][0])
        (weight, scales), (bias, bias_scales) = (self.values[name][1] for name in node["inputs"][1:3])
        transposed = node["attrs"]["transB"]
        outputs, depth = weight.dims if transposed else weight.dims[::-1]
        step = (depth, 1) if transposed else (1, outputs)
        values = weight.values()
        data = struct.pack(f"<{outputs * depth}f", *(values[o * step[0] + k * step[1]] * scales[o]
                                                     for o in range(outputs) for k in range(depth)))
        biases = struct.pack(f"<{outputs}f", *(b * s for b, s in zip(bias.values(), bias_scales)))
        floats = self.model.operator("Dequantize", [x], self.model.tensor([1, depth], FLOAT32))
        operands = [floats, self.model.tensor([outputs, depth], FLOAT32, data=data),
                    self.model.tensor([outputs], FLOAT32, data=biases)]
        output = self.model.tensor([1, outputs], FLOAT32)
        return "t", self.model.operator("Gemm", operands, output, Table(f0=("b", NONE)))

    def write_Softmax(self, node):
        x = self.tensor_of(node["inputs"][0])
        output = self.model.tensor(self.model.shapes[x], FLOAT32)
        return "t", self.model.operator("Softmax", [x], output, Table(f0=("f", 1.0)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        graph = dict(fields(memoryview(file.read())))[7]
    writer = Writer(graph)
    result = next(bytes(dict(fields(v))[1]).decode() for f, v in fields(graph) if f == 12)
    with open(sys.argv[2], "wb") as file:
        file.write(writer.model.bytes(writer.input, writer.tensor_of(result)))


main()
