"""Goldens of data sets: records of tf.Example and tf.SequenceExample, specs, and what they become.

    python3 tests/golden/examples.py        writes tests/golden/examples/

For each NAME.spec there are NAME.INPUT.npy: the inputs of all records of RECORDS[NAME].tfrecord, stacked. Needs numpy, and
TensorFlow for the pixels of JPEG files: records, PNG and JPEG files are written here from the formats' descriptions, and pictures are scaled here by other means
than the program's (np.interp, integrals of step functions, dense matrices).
"""
import os
import struct
import zlib

import numpy as np
import tensorflow as tf

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples")
rng = np.random.default_rng(11)

# ---- protobuf and TFRecord ----


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def bytes_list(values):
    return field(1, b"".join(field(1, v) for v in values))


def float_list(values, packed=True):
    if not packed:
        return field(2, b"".join(varint(1 << 3 | 5) + struct.pack("<f", v) for v in values))
    return field(2, field(1, np.asarray(values, "<f4").tobytes()))


def int64_list(values, packed=True):
    if not packed:
        return field(3, b"".join(varint(1 << 3) + varint(int(v)) for v in values))
    return field(3, field(1, b"".join(varint(int(v)) for v in values)))


def features(entries):
    return b"".join(field(1, field(1, key.encode()) + field(2, value)) for key, value in entries)


def example(entries):
    return field(1, features(entries))


def sequence_example(context, lists):
    body = b"".join(field(1, field(1, key.encode()) + field(2, b"".join(field(1, step) for step in steps)))
                    for key, steps in lists)
    return field(1, features(context)) + field(2, body)


TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def write_records(name, records):
    with open(os.path.join(HERE, name + ".tfrecord"), "wb") as out:
        for data in records:
            size = struct.pack("<Q", len(data))
            out.write(size + struct.pack("<I", masked_crc(size)) + data + struct.pack("<I", masked_crc(data)))


# ---- pictures ----


def png(pixels):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    h, w, c = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, {1: 0, 3: 2, 4: 6}[c], 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, (i // 8 if (i // 8 + i % 8) % 2 else i % 8)))
DCT = np.array([[(np.sqrt(1 / 8) if k == 0 else 0.5) * np.cos((2 * n + 1) * k * np.pi / 16) for n in range(8)]
                for k in range(8)])
# Codes of one length for every symbol: 12 DC categories in 4 bits, 176 AC symbols in 8 bits.
DC_SYMBOLS = list(range(12))
AC_SYMBOLS = [0x00, 0xF0] + [run << 4 | size for run in range(16) for size in range(1, 11)]


class Bits:
    def __init__(self):
        self.text = ""

    def put(self, value, count):
        if count:
            self.text += format(value, f"0{count}b")

    def number(self, value, size):
        self.put(value if value >= 0 else value + (1 << size) - 1, size)

    def bytes(self):
        text = self.text + "1" * (-len(self.text) % 8)
        data = bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))
        return data.replace(b"\xff", b"\xff\x00")


def jpeg(pixels, step=6):
    """A baseline JPEG without chroma subsampling, and the pixels that TensorFlow decodes by default (INTEGER_FAST)."""
    h, w, c = pixels.shape
    x = pixels.astype(np.float64)
    if c == 3:
        r, g, b = x[..., 0], x[..., 1], x[..., 2]
        planes = [0.299 * r + 0.587 * g + 0.114 * b, 128 - 0.168736 * r - 0.331264 * g + 0.5 * b,
                  128 + 0.5 * r - 0.418688 * g - 0.081312 * b]
    else:
        planes = [x[..., 0]]
    padded = [np.pad(p, ((0, -h % 8), (0, -w % 8)), mode="edge") - 128 for p in planes]
    rows, columns = padded[0].shape
    bits, last = Bits(), [0] * c
    for y in range(0, rows, 8):
        for column in range(0, columns, 8):
            for i, plane in enumerate(padded):
                block = DCT @ plane[y:y + 8, column:column + 8] @ DCT.T
                quantized = np.rint(block / step).astype(int)
                values = [int(quantized.reshape(-1)[k]) for k in ZIGZAG]
                difference, last[i] = values[0] - last[i], values[0]
                size = abs(difference).bit_length()
                bits.put(DC_SYMBOLS.index(size), 4)
                bits.number(difference, size)
                run = 0
                end = max([k for k in range(1, 64) if values[k]] or [0])
                for k in range(1, end + 1):
                    if not values[k]:
                        run += 1
                        continue
                    while run > 15:
                        bits.put(AC_SYMBOLS.index(0xF0), 8)
                        run -= 16
                    size = abs(values[k]).bit_length()
                    bits.put(AC_SYMBOLS.index(run << 4 | size), 8)
                    bits.number(values[k], size)
                    run = 0
                if end < 63:
                    bits.put(AC_SYMBOLS.index(0), 8)

    def segment(marker, body):
        return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body

    counts = lambda length, n: bytes(n if k == length else 0 for k in range(1, 17))
    data = b"\xff\xd8" + segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0") + segment(0xDB, b"\0" + bytes([step] * 64))
    data += segment(0xC0, struct.pack(">BHHB", 8, h, w, c) + b"".join(bytes([k + 1, 0x11, 0]) for k in range(c)))
    data += segment(0xC4, b"\x00" + counts(4, len(DC_SYMBOLS)) + bytes(DC_SYMBOLS))
    data += segment(0xC4, b"\x10" + counts(8, len(AC_SYMBOLS)) + bytes(AC_SYMBOLS))
    data += segment(0xDA, bytes([c]) + b"".join(bytes([k + 1, 0]) for k in range(c)) + b"\0\x3f\0")
    data += bits.bytes() + b"\xff\xd9"
    return data, tf.io.decode_jpeg(data).numpy()


def along(matrix_of, image, h, w):
    rows, columns = matrix_of(image.shape[0], h), matrix_of(image.shape[1], w)
    return np.einsum("yi,xj,ijc->yxc", rows, columns, image.astype(np.float64))


def bilinear(size, new):
    """Rows of the identity between their neighbours, at the new pixels' centres."""
    at = (np.arange(new) + 0.5) * size / new - 0.5
    return np.stack([np.interp(at, np.arange(size), row) for row in np.eye(size)], 1)


def nearest(size, new):
    return np.eye(size)[np.minimum(((np.arange(new) + 0.5) * size / new).astype(int), size - 1)]


def area(size, new):
    """Differences of the integral of the pixels as a step function."""
    edges = np.linspace(0, size, new + 1)
    integral = np.stack([np.interp(edges, np.arange(size + 1), np.concatenate([[0], np.cumsum(row)]))
                         for row in np.eye(size)], 1)
    return np.diff(integral, axis=0) * new / size


def antialias(size, new):
    scale = max(size / new, 1)
    distance = np.abs((np.arange(new)[:, None] + 0.5) * size / new - (np.arange(size)[None] + 0.5))
    weights = np.clip(1 - distance / scale, 0, None)
    return weights / weights.sum(1, keepdims=True)


def crop(image, h, w):
    top, left = (image.shape[0] - h) // 2, (image.shape[1] - w) // 2
    return image[top:top + h, left:left + w]


def smooth(h, w, c):
    """A picture as photographs are: coarse noise, enlarged."""
    coarse = rng.integers(0, 256, (h // 4 + 2, w // 4 + 2, c)).astype(float)
    return np.clip(np.rint(along(bilinear, coarse, h, w)), 0, 255).astype(np.uint8)


# ---- records ----

SIZES = [(24, 32), (17, 20), (40, 25)]
colours = [smooth(h, w, 3) for h, w in SIZES]
grays = [smooth(h, w, 1) for h, w in SIZES]
alphas = [rng.integers(0, 256, (h, w, 4)).astype(np.uint8) for h, w in SIZES]
jpegs = [jpeg(p) for p in colours]
gray_jpegs = [jpeg(p) for p in grays]
NAMES = ["cat", "dog", "bird"]
raw = rng.integers(-30000, 30000, (3, 2, 3)).astype(np.int16)
floats = rng.normal(size=(3, 6)).astype(np.float32)
tokens = [[5, 6, 7], [1, 2, 3, 4, 5, 6], []]
write_records("images", [
    example([("image/jpeg", bytes_list([jpegs[i][0]])), ("image/gray", bytes_list([gray_jpegs[i][0]])),
             ("image/png", bytes_list([png(colours[i])])), ("image/alpha", bytes_list([png(alphas[i])])),
             ("label", int64_list([i + 1], packed=i != 1)), ("class", bytes_list([NAMES[2 - i].encode()])),
             ("raw", bytes_list([raw[i].astype("<i2").tobytes()])), ("floats", float_list(floats[i], packed=i != 2)),
             ("tokens", int64_list(tokens[i], packed=i != 0))] + ([("rare", float_list([2.5]))] if i == 1 else []))
    for i in range(3)])
frames = rng.normal(size=(3, 4, 2)).astype(np.float32)
write_records("sequences", [
    sequence_example([("length", int64_list([i + 2])), ("id", bytes_list([b"id%d" % i]))],
                     [("frames", [float_list(frames[i, k]) for k in range(i + 2)]),
                      ("words", [bytes_list([b"w%d" % k]) for k in range(i + 2)])])
    for i in range(3)])

# ---- specs and their expected results ----

mean, std = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])


def save(name, text, **inputs):
    with open(os.path.join(HERE, name + ".spec"), "w") as out:
        out.write(text)
    for key, values in inputs.items():
        np.save(os.path.join(HERE, f"{name}.{key}.npy"), np.stack(values))


png_rules = {"BILINEAR": bilinear, "NEAREST": nearest, "AREA": area, "ANTIALIAS": antialias}
for rule, matrix in png_rules.items():
    save(f"png_{rule.lower()}", f"""# smaller and larger at once
input {{ name: "x" feature: "image/png" source: PNG image {{ step {{ resize {{ height: 12 width: 28 method: {rule} }} }} }} }}
""", x=[along(matrix, p, 12, 28)[None].astype(np.float32) for p in colours])
save("jpeg", """input {
  name: "x"
  feature: "image/jpeg"
  source: JPEG
  image { step { crop { height: 16 width: 18 } } order: BGR }
  shape: [16, 18, 3]
}
""", x=[crop(d, 16, 18)[None, ..., ::-1] for _, d in jpegs])
save("jpeg_normalized", """input {
  name: "x"
  feature: "image/jpeg"
  image {
    channels: 3
    step { resize { shorter_side: 15 method: ANTIALIAS } }
    step { crop { height: 12 width: 12 } }
  }
  mean: [123.675, 116.28, 103.53]
  std: [58.395, 57.12, 57.375]
  channels_first: true
}
label { feature: "label" mean: 1 type: INT32 }
""", x=[((crop(along(antialias, d, *[15 if s == min(d.shape[:2]) else (2 * 15 * s + min(d.shape[:2])) // (2 * min(d.shape[:2]))
                                     for s in d.shape[:2]]), 12, 12) - mean) / std).transpose(2, 0, 1)[None].astype(np.float32)
        for _, d in jpegs], label=[np.array([[i]], np.int32) for i in range(3)])
save("gray", """input { name: "x" feature: "image/gray" source: IMAGE image { channels: 1 step { crop { fraction: 0.5 } }
  step { resize { height: 8 width: 8 method: AREA } } } scale: 0.00392156862745098 type: FLOAT16 }
input { name: "rgb" feature: "image/gray" image { channels: 3 step { crop { height: 4 width: 4 } } } }
input { name: "alpha" feature: "image/alpha" image { channels: 4 order: BGR step { crop { height: 5 width: 3 } } } }
""", x=[(along(area, d[int((d.shape[0] - d.shape[0] * 0.5) / 2):d.shape[0] - int((d.shape[0] - d.shape[0] * 0.5) / 2),
                       int((d.shape[1] - d.shape[1] * 0.5) / 2):d.shape[1] - int((d.shape[1] - d.shape[1] * 0.5) / 2)],
               8, 8) / 255)[None].astype(np.float16) for _, d in gray_jpegs],
     rgb=[np.repeat(crop(d, 4, 4), 3, 2)[None] for _, d in gray_jpegs],
     alpha=[crop(d, 5, 3)[None, ..., [2, 1, 0, 3]] for d in alphas])


def cut(row, n, front, filler):
    row = list(row)
    if len(row) >= n:
        return row[len(row) - n:] if front else row[:n]
    return [filler] * (n - len(row)) + row if front else row + [filler] * (n - len(row))


save("lists", """input { name: "floats" shape: [2, -1] source: FLOAT_LIST }
input { name: "scaled" feature: "floats" scale: 2 mean: [0.5, 1, -1] std: 4 shape: [2, 3] type: FLOAT64 }
input { name: "raw" source: RAW raw_type: INT16 type: FLOAT32 shape: 2 shape: 3 }
input { name: "raw_scaled" feature: "raw" source: RAW raw_type: INT16 scale: 0.001 type: INT8 shape: [-1] whole: true }
input { name: "tokens" length { rows: 4 value: 9 } type: INT32 }
input { name: "tail" feature: "tokens" length { rows: 5 front: true } source: INT64_LIST }
input { name: "rare" shape: [1] default_value: -1 type: BFLOAT16 }
input { name: "class" class_name: "dog" class_name: "bird" class_name: "cat" shape: 1 whole: true }
label { feature: "label" shape: 1 whole: true }
""", floats=list(floats.reshape(3, 1, 2, 3)),
     scaled=list(((floats.reshape(3, 1, 2, 3).astype(np.float64) * 2 - np.array([0.5, 1, -1])) / 4)),
     raw=list(raw.reshape(3, 1, 2, 3).astype(np.float32)),
     raw_scaled=list(np.clip(np.rint(raw.reshape(3, 6) * 0.001), -128, 127).astype(np.int8)),
     tokens=[np.array([cut(t, 4, False, 9)], np.int32) for t in tokens],
     tail=[np.array([cut(t, 5, True, 0)], np.int64) for t in tokens],
     rare=[np.array([[v]], np.float32) for v in (-1, 2.5, -1)],
     label=[np.array([i + 1]) for i in range(3)],
     **{"class": [np.array([["dog", "bird", "cat"].index(NAMES[2 - i])]) for i in range(3)]})
padded = np.zeros((3, 4, 2), np.float32)
for i in range(3):
    padded[i, :i + 2] = frames[i, :i + 2]
save("frames", """# steps of equal length; filled up at the end
input { name: "frames" length { rows: 4 } shape: [4, 2] }
input { name: "last" feature: "frames" length { rows: 1 front: true } }
input { name: "length" shape: [1] whole: true }
""", frames=list(padded[:, None]), last=[frames[i, i + 1].reshape(1, 1, 2) for i in range(3)],
     length=[np.array([i + 2]) for i in range(3)])
sizes = sum(os.path.getsize(os.path.join(HERE, f)) for f in os.listdir(HERE))
print(f"{HERE}: {len(os.listdir(HERE))} files, {sizes} bytes")
