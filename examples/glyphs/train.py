#!/usr/bin/env python3
"""Draws the glyphs data set, trains a small network on it, and writes both for tare.

Needs numpy and PyTorch. Everything follows from the seeds below; README.md says what the files are.
"""
import argparse
import gzip
import os
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SIZE = 28                # pixels a side
CLASSES = 10
TRAIN_COUNT, CALIBRATION_COUNT, EVAL_COUNT = 50000, 300, 1000
TRAIN_SEED, CALIBRATION_SEED, EVAL_SEED, NET_SEED = 1, 2, 3, 4
EPOCHS = 9
BATCH = 64
LEARNING_RATE = 4e-3
BN_EPSILON = 1e-3        # Keras' default; PyTorch's is 1e-5

# One line a layer; it reads the output of the line before. `add` also reads the layer named by `from`.
# The same text builds the network here and, from weights/architecture.txt, the SavedModel.
ARCHITECTURE = """\
input name=image height=28 width=28 channels=1
conv name=stem_conv filters=16 kernel=3 stride=2
bn name=stem_bn epsilon=0.001
relu6 name=stem_relu
depthwise name=block1_depthwise kernel=3 stride=1
bn name=block1_depthwise_bn epsilon=0.001
relu6 name=block1_depthwise_relu
conv name=block1_pointwise filters=32 kernel=1 stride=1
bn name=block1_pointwise_bn epsilon=0.001
relu6 name=block1_pointwise_relu
depthwise name=block2_depthwise kernel=3 stride=2
bn name=block2_depthwise_bn epsilon=0.001
relu6 name=block2_depthwise_relu
conv name=block2_pointwise filters=64 kernel=1 stride=1
bn name=block2_pointwise_bn epsilon=0.001
relu6 name=block2_pointwise_relu
depthwise name=block3_depthwise kernel=3 stride=1
bn name=block3_depthwise_bn epsilon=0.001
relu6 name=block3_depthwise_relu
conv name=block3_pointwise filters=64 kernel=1 stride=1
bn name=block3_pointwise_bn epsilon=0.001
relu6 name=block3_pointwise_relu
add name=block3_add from=block2_pointwise_relu
depthwise name=block4_depthwise kernel=3 stride=1
bn name=block4_depthwise_bn epsilon=0.001
relu6 name=block4_depthwise_relu
conv name=block4_pointwise filters=128 kernel=1 stride=1
bn name=block4_pointwise_bn epsilon=0.001
relu6 name=block4_pointwise_relu
depthwise name=block5_depthwise kernel=3 stride=1
bn name=block5_depthwise_bn epsilon=0.001
relu6 name=block5_depthwise_relu
conv name=block5_pointwise filters=128 kernel=1 stride=1
bn name=block5_pointwise_bn epsilon=0.001
relu6 name=block5_pointwise_relu
add name=block5_add from=block4_pointwise_relu
global_average_pool name=pool
dense name=logits units=10
softmax name=probabilities
"""


# ---- Drawing: strokes are polylines in a square from -1 to 1, x to the right, y down ----

def arc(cx, cy, rx, ry, start, end):
    """Points of an ellipse from angle start to end, in degrees; 0 is right, 90 is down."""
    angle = np.radians(np.linspace(start, end, 2 + int(abs(end - start) / 30)))
    return np.stack([cx + rx * np.cos(angle), cy + ry * np.sin(angle)], axis=1)


def line(*points):
    """Points along straight lines; cut finely, so that the warp can bend them."""
    pieces = [np.linspace(a, b, 4) for a, b in zip(points, points[1:])]
    return np.concatenate(pieces)


def glyph_strokes():
    """The strokes of the ten classes: the digits, in their order."""
    return [
        [arc(0, 0, .52, .8, 0, 360)],
        [line((-.3, -.5), (.05, -.8), (.05, .8))],
        [np.concatenate([arc(0, -.35, .48, .45, 190, 380), line((.4, -.1), (-.5, .8), (.52, .8))])],
        [arc(0, -.4, .46, .4, -160, 90), arc(0, .4, .52, .4, -90, 160)],
        [line((.25, .8), (.25, -.8), (-.55, .3), (.55, .3))],
        [line((.45, -.8), (-.38, -.8), (-.44, -.1)), arc(0, .28, .5, .52, -140, 150)],
        [arc(.35, .3, .82, 1.08, 180, 270), arc(0, .36, .47, .44, 0, 360)],
        [line((-.5, -.8), (.5, -.8), (-.1, .8))],
        [arc(0, -.4, .42, .4, 0, 360), arc(0, .4, .5, .4, 0, 360)],
        [arc(-.35, -.3, .82, 1.08, 0, 90), arc(0, -.36, .47, .44, 0, 360)],
    ]


GLYPHS = glyph_strokes()


def warp(points, phase, amount):
    """Bends strokes smoothly, as a hand does."""
    x, y = points[:, 0], points[:, 1]
    dx = np.sin(2.2 * y + phase[0]) + .5 * np.sin(4.1 * x + phase[1])
    dy = np.sin(2.2 * x + phase[2]) + .5 * np.sin(4.1 * y + phase[3])
    return points + amount * np.stack([dx, dy], axis=1)


def random_affine(rng):
    """A random matrix and shift that take stroke coordinates to pixels."""
    angle, shear = rng.normal(0, np.radians(14)), rng.normal(0, .22)
    scale = rng.uniform(7.0, 11.0) * np.exp(rng.normal(0, .1, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, shear], [0, 1]]) @ np.diag(scale)
    return matrix, SIZE / 2 - .5 + rng.uniform(-3, 3, 2)


def distance_to_strokes(strokes):
    """For each pixel the distance from its centre to the nearest segment."""
    begin = np.concatenate([s[:-1] for s in strokes])
    span = np.concatenate([s[1:] for s in strokes]) - begin
    y, x = np.mgrid[:SIZE, :SIZE]
    offset = np.stack([x.ravel(), y.ravel()], axis=1)[:, None] - begin
    # A segment of no length (where two lines of a stroke meet) is a point: t is 0 there.
    t = np.clip((offset * span).sum(2) / np.maximum((span * span).sum(1), 1e-9), 0, 1)
    nearest = offset - t[:, :, None] * span
    return np.sqrt((nearest * nearest).sum(2).min(1)).reshape(SIZE, SIZE)


def ink(strokes, width):
    """Coverage 0..1 of strokes of the given width, with an edge one pixel soft."""
    return np.clip(width / 2 - distance_to_strokes(strokes) + .5, 0, 1)


def occlude(image, rng):
    """Wipes out a rectangle near the middle, in most pictures."""
    if rng.random() < .6:
        height, width = rng.integers(3, 12, 2)
        top, left = rng.integers(3, SIZE - 3 - height), rng.integers(3, SIZE - 3 - width)
        image[top:top + height, left:left + width] = 0
    return image


def scratch(image, rng):
    """Draws a stray line across, in half of the pictures."""
    if rng.random() < .5:
        stray = ink([rng.uniform(0, SIZE, (2, 2))], rng.uniform(1, 2.2))
        image = np.maximum(image, rng.uniform(.4, 1) * stray)
    return image


def draw(label, rng):
    """One picture of a class, SIZE x SIZE in 0..1."""
    matrix, shift = random_affine(rng)
    phase, amount = rng.uniform(0, 2 * np.pi, 4), rng.uniform(0, .16)
    strokes = [warp(s, phase, amount) @ matrix.T + shift for s in GLYPHS[label]]
    image = rng.uniform(.5, 1) * ink(strokes, rng.uniform(1.4, 3.6))
    image = scratch(occlude(image, rng), rng)
    image += rng.normal(-.05, rng.uniform(.02, .18), image.shape)
    # Eight bits a pixel, as a camera gives; it also lets gzip do its work.
    return (np.round(np.clip(image, 0, 1) * 255) / 255).astype(np.float32)


def make_set(count, seed):
    """Pictures [count, SIZE, SIZE, 1] float32 and labels int64; the classes take turns."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count, dtype=np.int64) % CLASSES
    images = np.stack([draw(label, rng) for label in labels])
    return images[..., None], labels


# ---- The network ----

def parse_architecture(text):
    """(kind, {key: value}) for each line; values that are numbers become int or float."""
    layers = []
    for row in text.splitlines():
        kind, *pairs = row.split()
        options = dict(pair.split('=') for pair in pairs)
        for key in options.keys() - {'name', 'from'}:
            value = float(options[key])
            options[key] = int(value) if value.is_integer() else value
        layers.append((kind, options))
    return layers


class SameConv(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding.

    TensorFlow gives an odd padding's extra pixel to the bottom and right, PyTorch pads both sides
    alike: with stride 2 they would read different pixels.
    """

    def forward(self, x):
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = []
        for size in (x.shape[3], x.shape[2]):    # functional.pad wants the last dimension first
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [total // 2, total - total // 2]
        return super().forward(functional.pad(x, pads))


def make_layer(kind, options, channels):
    """The PyTorch module of a layer, None where it has no weights; and its output channels."""
    if kind in ('conv', 'depthwise'):
        filters = options.get('filters', channels)
        groups = channels if kind == 'depthwise' else 1
        module = SameConv(channels, filters, options['kernel'], options['stride'], groups=groups, bias=False)
        return module, filters
    if kind == 'bn':
        return nn.BatchNorm2d(channels, eps=options['epsilon']), channels
    if kind == 'dense':
        return nn.Linear(channels, options['units']), options['units']
    return None, options.get('channels', channels)


class Net(nn.Module):
    """The network that ARCHITECTURE describes."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.weighted = nn.ModuleDict()
        channels = None
        for kind, options in layers:
            module, channels = make_layer(kind, options, channels)
            if module is not None:
                self.weighted[options['name']] = module

    def logits(self, x):
        """The input of the softmax; the loss wants it, as a logarithm of a softmax loses digits."""
        outputs = {}
        for kind, options in self.layers:
            name = options['name']
            if name in self.weighted:
                x = self.weighted[name](x)
            elif kind == 'relu6':
                x = functional.relu6(x)
            elif kind == 'add':
                x = x + outputs[options['from']]
            elif kind == 'global_average_pool':
                x = x.mean((2, 3))
            outputs[name] = x
        return x

    def forward(self, x):
        return self.logits(x).softmax(1)


def to_torch(images):
    """[N, H, W, 1] to PyTorch's [N, 1, H, W]."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()


def train_epoch(net, optimizer, schedule, images, labels):
    """One pass over the data in a random order; the mean loss."""
    net.train()
    total = 0.0
    batches = torch.randperm(len(images)).split(BATCH)
    for batch in batches:
        loss = functional.cross_entropy(net.logits(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    return total / len(batches)


def train(images, labels):
    """A trained network, in eval mode."""
    torch.manual_seed(NET_SEED)
    # Channels last is twice as fast for depthwise convolutions on a CPU.
    net = Net(parse_architecture(ARCHITECTURE)).to(memory_format=torch.channels_last)
    images = to_torch(images).to(memory_format=torch.channels_last)
    labels = torch.from_numpy(labels)
    optimizer = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=1e-2)
    steps = EPOCHS * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for epoch in range(EPOCHS):
        loss = train_epoch(net, optimizer, schedule, images, labels)
        print(f'epoch {epoch + 1}/{EPOCHS} loss {loss:.4f}', flush=True)
    return net.eval()


def probabilities(net, images):
    """What the network answers: in double precision, so that it can serve as the reference."""
    with torch.no_grad():
        return net.double()(to_torch(images).double()).float().numpy()


# ---- Writing: weights ----

def tensorflow_weights(net):
    """{file name: array} in TensorFlow's layouts."""
    weights = {}
    for kind, options in net.layers:
        name = options['name']
        module = net.weighted[name] if name in net.weighted else None
        if kind == 'conv':                       # OIHW to HWIO
            weights[name + '_kernel'] = module.weight.permute(2, 3, 1, 0)
        elif kind == 'depthwise':                # C1HW to HWC1
            weights[name + '_kernel'] = module.weight.permute(2, 3, 0, 1)
        elif kind == 'dense':                    # [out, in] to [in, out]
            weights[name + '_kernel'], weights[name + '_bias'] = module.weight.t(), module.bias
        elif kind == 'bn':
            weights[name + '_gamma'], weights[name + '_beta'] = module.weight, module.bias
            weights[name + '_moving_mean'] = module.running_mean
            weights[name + '_moving_variance'] = module.running_var
    return {key: value.detach().float().contiguous().numpy() for key, value in weights.items()}


def write_weights(folder, net):
    os.makedirs(folder, exist_ok=True)
    for name, array in tensorflow_weights(net).items():
        np.save(os.path.join(folder, name + '.npy'), array)
    with open(os.path.join(folder, 'architecture.txt'), 'w', encoding='ascii') as file:
        file.write(ARCHITECTURE)


# ---- Writing: TFRecord files of RepresentativeDataSample messages ----

def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC32C_TABLE = crc32c_table()


def masked_crc32c(data):
    """The CRC of a TFRecord; masked, as a CRC over data that holds its own CRC is a poor check."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number, value):
    return varint(number << 3) + varint(value)


def bytes_field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


TENSOR_DTYPES = {'float32': 1, 'int64': 9}       # DT_FLOAT, DT_INT64


def tensor_proto(array):
    """A TensorProto: dtype = 1, tensor_shape = 2 { dim = 2 { size = 1 } }, tensor_content = 4."""
    shape = b''.join(bytes_field(2, number_field(1, size)) for size in array.shape)
    little = array.astype(array.dtype.newbyteorder('<'))
    return (number_field(1, TENSOR_DTYPES[array.dtype.name]) + bytes_field(2, shape)
            + bytes_field(4, little.tobytes()))


def representative_sample(tensors):
    """A RepresentativeDataSample: map<string, TensorProto> tensor_proto_inputs = 2."""
    entries = (bytes_field(1, key.encode()) + bytes_field(2, tensor_proto(array))
               for key, array in tensors.items())
    return b''.join(bytes_field(2, entry) for entry in entries)


def frame(record):
    """A record as it lies in a TFRecord file."""
    length = struct.pack('<Q', len(record))
    return (length + struct.pack('<I', masked_crc32c(length))
            + record + struct.pack('<I', masked_crc32c(record)))


def write_records(path, samples):
    """A gzip-compressed TFRecord file; without a time or a name in it, so that it comes out the same again."""
    with open(path, 'wb') as file, gzip.GzipFile('', 'wb', 9, file, mtime=0) as packed:
        for sample in samples:
            packed.write(frame(representative_sample(sample)))


def image_samples(images):
    return [{'image': image[None]} for image in images]


def labelled_samples(images, labels):
    return [{'image': image[None], 'label': label[None]} for image, label in zip(images, labels)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--output', default=os.path.dirname(os.path.abspath(__file__)),
                        help='folder to write to (default: where this script is)')
    folder = parser.parse_args().output
    # One thread: the order of additions, and so the result, must not depend on the number of cores.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    calibration_images, _ = make_set(CALIBRATION_COUNT, CALIBRATION_SEED)
    eval_images, eval_labels = make_set(EVAL_COUNT, EVAL_SEED)
    net = train(*make_set(TRAIN_COUNT, TRAIN_SEED))

    write_weights(os.path.join(folder, 'weights'), net)
    write_records(os.path.join(folder, 'calibration.tfrecord.gz'), image_samples(calibration_images))
    write_records(os.path.join(folder, 'eval.tfrecord.gz'), labelled_samples(eval_images, eval_labels))
    answers = probabilities(net, eval_images)
    np.save(os.path.join(folder, 'expected_eval.npy'), answers)
    correct = (answers.argmax(1) == eval_labels).mean()
    parameters = sum(p.numel() for p in net.parameters())
    print(f'{parameters} parameters, accuracy {correct:.1%} on {EVAL_COUNT} pictures')


if __name__ == '__main__':
    main()
