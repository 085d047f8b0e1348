#!/usr/bin/env python3
"""A super-resolution task for bench/accuracy.sh.

    super_resolution_task.py [--steps N] [--records N] FOLDER

Trains a small network (three convolutions and DepthToSpace, as ESPCN) that doubles the height and width of images, and writes
it as the task `superresolution` (docs/accuracy.md). The images are drawn: soft ellipses, stripes and edges. Its outputs are
compared with the images of twice the size: `tare compare --target target` measures PSNR, and SSIM with --metric ssim.
Everything follows from the seed, except for the last bits of the floating-point results. Needs NumPy.
"""
import argparse
import os

import numpy as np

import sequence_tasks as tasks
from sequence_tasks import FLOAT, Emitter, Tape, Value, entry, message, number, shape_message

SIZE, CHANNELS, CALIBRATION, EVALUATION, BATCH, STEPS = 16, 24, 300, 400, 16, 1500
LAYERS = {"conv0": (5, 1, CHANNELS), "conv1": (3, CHANNELS, CHANNELS), "conv2": (3, CHANNELS, 4)}


class ImageEmitter(Emitter):
    def conv2d(self, x, name):
        y = self.add("Conv2D", [x, self.weight(name + "/kernel")], name, T=("type", FLOAT), strides=("ints", (1, 1, 1, 1)),
                     dilations=("ints", (1, 1, 1, 1)), padding=("str", "SAME"))
        return self.add("BiasAdd", [y, self.weight(name + "/bias")], name + "/add", T=("type", FLOAT))

    def depth_to_space(self, x):
        return self.add("DepthToSpace", [x], T=("type", FLOAT), block_size=("int", 2))


class ImageTape(Tape):
    def conv2d(self, x, name):
        kernel = self.values[name + "/kernel"]
        size, _, inputs, outputs = kernel.data.shape
        margin, (count, height, width, _) = size // 2, x.data.shape
        padded = np.pad(x.data, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
        places = [(i, k) for i in range(size) for k in range(size)]
        taps = np.concatenate([padded[:, i:i + height, k:k + width] for i, k in places], -1)

        def backward(g):
            around = (g.reshape(-1, outputs) @ kernel.data.reshape(-1, outputs).T).reshape(count, height, width, -1, inputs)
            back = np.zeros_like(padded)
            for at, (i, k) in enumerate(places):
                back[:, i:i + height, k:k + width] += around[:, :, :, at]
            filters = taps.reshape(-1, size * size * inputs).T @ g.reshape(-1, outputs)
            return back[:, margin:margin + height, margin:margin + width], filters.reshape(kernel.data.shape)
        product = Value(taps @ kernel.data.reshape(-1, outputs), (x, kernel), backward)
        return self.plus(product, self.values[name + "/bias"])

    def depth_to_space(self, x):
        count, height, width, _ = x.data.shape
        shape = (count, height, width, 2, 2)
        y = x.data.reshape(shape).transpose(0, 1, 3, 2, 4).reshape(count, 2 * height, 2 * width, 1)
        return Value(y, (x,), lambda g: (
            g.reshape(count, height, 2, width, 2).transpose(0, 1, 3, 2, 4).reshape(x.data.shape),))


def network(ops, x):
    y = ops.relu(ops.conv2d(x, "conv0"))
    y = ops.relu(ops.conv2d(y, "conv1"))
    return ops.depth_to_space(ops.conv2d(y, "conv2"))


def draw(random, count):
    """Images of twice the size, from 0 to 1, and their means over 2 x 2 pixels."""
    y, x = np.mgrid[:2 * SIZE, :2 * SIZE] / (2 * SIZE)
    images = np.empty((count, 2 * SIZE, 2 * SIZE))
    for image in images:
        image[:] = random.uniform(0.2, 0.8)
        for _ in range(4):
            angle, sharpness = random.uniform(0, np.pi), random.uniform(20, 80)
            u = np.cos(angle) * (x - random.uniform()) + np.sin(angle) * (y - random.uniform())
            v = np.cos(angle) * (y - random.uniform()) - np.sin(angle) * (x - random.uniform())
            kind = random.integers(3)
            shape = 0.3 - np.hypot(u, 2 * v) if kind == 0 else u if kind == 1 else np.sin(random.uniform(10, 40) * u) / 10
            image += random.uniform(-0.4, 0.4) / (1 + np.exp(-sharpness * shape))
    images = np.clip(images, 0, 1)
    small = images.reshape(count, SIZE, 2, SIZE, 2).mean((2, 4))
    return small[..., None].astype(np.float32), images[..., None].astype(np.float32)


def train(random, steps):
    """Adam on the squared error of the difference from the image scaled up without interpolation."""
    weights = {}
    for name, (size, inputs, outputs) in LAYERS.items():
        weights[name + "/kernel"] = (random.standard_normal((size, size, inputs, outputs)) *
                                     np.sqrt(1.5 / (size * size * inputs))).astype(np.float32)
        weights[name + "/bias"] = np.zeros(outputs, np.float32)
    weights["conv2/bias"][:] = 0.5
    data, target = draw(random, min(2000, BATCH * steps))
    moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in weights.items()}
    for step in range(steps):
        rows = random.integers(0, len(data), BATCH)
        tape = ImageTape(weights)
        y = network(tape, Value(data[rows]))
        tape.derive(y, ((y.data - target[rows]) * (2 / BATCH)).astype(np.float32))
        rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
        for name, w in weights.items():
            gradient = tape.values[name].gradient
            first, second = moments[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient ** 2 - second)
            w -= rate * first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
    return weights


def write_model(path, weights):
    graph = ImageEmitter(weights)
    x = graph.add("Placeholder", [], "x", dtype=("type", FLOAT), shape=("shape", (-1, SIZE, SIZE, 1)))
    y = network(graph, x)

    def tensor(name, dims):
        return message(1, name + ":0") + number(2, FLOAT) + message(3, shape_message(dims))

    signature = entry(1, "x", tensor(x, (-1, SIZE, SIZE, 1))) + entry(2, "y", tensor(y, (-1, 2 * SIZE, 2 * SIZE, 1)))
    signature += message(3, "tensorflow/serving/predict")
    definition = b"".join(message(1, node) for node in graph.nodes) + message(4, number(1, 1395))
    meta = message(1, message(4, "serve")) + message(2, definition) + entry(5, "serving_default", signature)
    os.makedirs(os.path.join(path, "variables"), exist_ok=True)
    with open(os.path.join(path, "saved_model.pb"), "wb") as file:
        file.write(number(1, 1) + message(2, meta))


def psnr(y, target):
    return np.mean(-10 * np.log10(((np.clip(y, 0, 1) - target) ** 2).mean((1, 2, 3))))


def main():
    parser = argparse.ArgumentParser(description="Writes a super-resolution task for bench/accuracy.sh.")
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=STEPS, help="training steps")
    parser.add_argument("--records", type=int, help="records for calibration, and for evaluation")
    options = parser.parse_args()
    random = np.random.default_rng(21)
    weights = train(random, options.steps)
    path = os.path.join(options.folder, "superresolution")
    write_model(os.path.join(path, "saved_model"), weights)
    for kind, count in (("calibration", options.records or CALIBRATION), ("eval", options.records or EVALUATION)):
        data, target = draw(random, count)
        y = network(ImageTape(weights), Value(data)).data
        tasks.write_records(os.path.join(path, kind + ".tfrecord.gz"),
                            [{"x": x, "target": t} for x, t in zip(data, target)])
    nearest = psnr(data.repeat(2, 1).repeat(2, 2), target)
    with open(os.path.join(path, "README.md"), "w", encoding="utf-8") as file:
        file.write(f"# superresolution\n\nWritten by bench/super_resolution_task.py.\n\n- metric: PSNR of `y`\n"
                   f"- float score: {psnr(y, target):.4f} dB (nearest pixels {nearest:.4f})\n")
    print(f"superresolution: PSNR {psnr(y, target):.4f} dB, nearest pixels {nearest:.4f}")


if __name__ == "__main__":
    main()
