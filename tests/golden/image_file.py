"""Goldens of image files: PNG and BMP written here from the formats' descriptions."""
import struct
import zlib

import numpy as np

from golden import Golden

g = Golden()
rng = np.random.default_rng(5)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(pixels, color, extra=b""):
    h, w = pixels.shape[:2]
    depth = 8 * pixels.itemsize
    raw = b"".join(b"\0" + row.astype(row.dtype.newbyteorder(">")).tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, 0)) + extra
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def bmp(pixels, top_down=False):
    h, w, c = pixels.shape
    rows = pixels if top_down else pixels[::-1]
    if c >= 3:
        rows = np.concatenate([rows[..., 2::-1], rows[..., 3:]], -1)
    pad = b"\0" * (-w * c % 4)
    body = b"".join(r.tobytes() + pad for r in rows)
    return (b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, w, -h if top_down else h, 1, 8 * c, 0, len(body), 0, 0, 0, 0) + body)


def text(data):
    return np.array(data, dtype=object)


rgb = rng.integers(0, 256, (3, 5, 3)).astype(np.uint8)
rgba = rng.integers(0, 256, (2, 3, 4)).astype(np.uint8)
gray = rng.integers(0, 256, (4, 3, 1)).astype(np.uint8)
gray_alpha = rng.integers(0, 256, (2, 2, 2)).astype(np.uint8)
wide = rng.integers(0, 65536, (2, 3, 3)).astype(np.uint16)
for op in ("DecodePng", "DecodeImage"):
    more = "; expand_animations: false" if op == "DecodeImage" else ""
    for pixels, color in ((rgb, 2), (rgba, 6), (gray, 0), (gray_alpha, 4)):
        g.case(op, "channels: 0" + more, [text(png(pixels, color))], [pixels], dynamic=True)
    g.case(op, "channels: 3" + more, [text(png(gray, 0))], [np.repeat(gray, 3, 2)], dynamic=True)
    g.case(op, "channels: 3" + more, [text(png(rgba, 6))], [rgba[..., :3]], dynamic=True)
    g.case(op, "channels: 4" + more, [text(png(rgb, 2))], [np.concatenate([rgb, np.full((3, 5, 1), 255, np.uint8)], 2)],
           dynamic=True)
    g.case(op, "channels: 1" + more, [text(png(gray_alpha, 4))], [gray_alpha[..., :1]], dynamic=True)
    g.case(op, "dtype: uint16" + more, [text(png(wide, 2))], [wide], dynamic=True)
    g.case(op, "dtype: uint16" + more, [text(png(gray, 0))], [gray.astype(np.uint16) * 257], dynamic=True)
    g.case(op, "dtype: uint8" + more, [text(png(wide, 2))], [(wide >> 8).astype(np.uint8)], dynamic=True)
# Gray by the weights of TensorFlow's core/lib/png/png_io.cc, in libpng's 15 bits, which it truncates.
red, green = 29900 * 32768 // 100000, 58700 * 32768 // 100000
luma = (rgb.astype(np.int64) @ np.array([red, green, 32768 - red - green]) >> 15).astype(np.uint8)[..., None]
for op in ("DecodePng", "DecodeImage"):
    g.case(op, "channels: 1" + ("; expand_animations: false" if op == "DecodeImage" else ""), [text(png(rgb, 2))], [luma],
           dynamic=True)
palette = rng.integers(0, 256, (4, 3)).astype(np.uint8)
index = rng.integers(0, 4, (2, 5, 1)).astype(np.uint8)
g.case("DecodePng", "", [text(png(index, 3, chunk(b"PLTE", palette.tobytes())))], [palette[index[..., 0]]], dynamic=True)
data = png(rgb, 2)
for bad in (data[:40], data[:-20], data[:50] + b"\xff" + data[51:], data[:16] + b"\0\0\0\0" + data[20:]):
    g.case("DecodePng", "", [text(bad)], [], error="Invalid PNG data")
g.case("DecodePng", "", [text(b"what")], [], error="Unknown image file format")
g.case("DecodePng", "channels: 5", [text(data)], [], error="channels must be 0, 1, 3 or 4, got 5")
# PNG to float: from 16 bits (DecodePngV2 in TensorFlow's kernels/image/decode_image_op.cc)
for pixels, words in ((rgb, rgb.astype(np.uint16) * 257), (wide, wide)):
    g.case("DecodeImage", "dtype: float; expand_animations: false", [text(png(pixels, 2))],
           [words.astype(np.float32) * np.float32(1 / 65535)], dynamic=True)
g.case("DecodeImage", "dtype: float; expand_animations: false", [text(bmp(rgb))],
       [rgb.astype(np.float32) * np.float32(1 / 255)], dynamic=True)
g.case("DecodeImage", "", [text(b"GIF89a")], [], error="Invalid GIF data")


def lzw(numbers, size):
    """GIF's codes: the encoder's side of the table, low bits first, in blocks of at most 255 bytes."""
    clear, value, count, out = 1 << size, 0, 0, bytearray()

    def put(code, width):
        nonlocal value, count
        value |= code << count
        count += width
        while count >= 8:
            out.append(value & 255)
            value >>= 8
            count -= 8

    table, width = {bytes([i]): i for i in range(clear)}, size + 1
    put(clear, width)
    word = b""
    for n in numbers:
        if word + bytes([n]) in table:
            word += bytes([n])
            continue
        put(table[word], width)
        if len(table) + 2 < 4096:
            table[word + bytes([n])] = len(table) + 2
            if len(table) + 1 == 1 << width and width < 12:  # the entry just made does not fit the old width
                width += 1
        else:
            put(clear, width)
            table, width = {bytes([i]): i for i in range(clear)}, size + 1
        word = bytes([n])
    put(table[word], width)
    put(clear + 1, width)
    if count:
        out.append(value & 255)
    return bytes([size]) + b"".join(bytes([len(out[i:i + 255])]) + bytes(out[i:i + 255]) for i in range(0, len(out), 255)) + b"\0"


def gif(frames, palette, bits=3):
    """frames: (numbers, left, top, interlaced, transparent or None, palette of its own or None)."""
    h, w = frames[0][0].shape
    out = b"GIF89a" + struct.pack("<HHBBB", w, h, 0x80 | bits - 1, 0, 0) + palette.tobytes()
    out += b"\x21\xfe\x05hello\0"  # a comment
    for numbers, left, top, interlaced, transparent, own in frames:
        if transparent is not None:
            out += bytes([0x21, 0xf9, 4, 1, 0, 0, transparent, 0])
        rows = list(range(numbers.shape[0]))
        if interlaced:
            rows = rows[::8] + rows[4::8] + rows[2::4] + rows[1::2]
        flags = (0x40 if interlaced else 0) | (0x80 | bits - 1 if own is not None else 0)
        out += b"\x2c" + struct.pack("<HHHHB", left, top, numbers.shape[1], numbers.shape[0], flags)
        out += (own.tobytes() if own is not None else b"") + lzw(numbers[rows].reshape(-1).tolist(), bits)
    return out + b"\x3b"


colours = rng.integers(0, 256, (8, 3)).astype(np.uint8)
others = rng.integers(0, 256, (8, 3)).astype(np.uint8)
first = rng.integers(0, 8, (13, 11)).astype(np.uint8)
second = rng.integers(0, 8, (13, 11)).astype(np.uint8)
patch = rng.integers(0, 8, (4, 5)).astype(np.uint8)
want = [colours[first], others[second]]
third = want[1].copy()
third[6:10, 3:8] = np.where((patch == 2)[..., None], third[6:10, 3:8], colours[patch])
movie = gif([(first, 0, 0, False, None, None), (second, 0, 0, True, None, others), (patch, 3, 6, False, 2, None)], colours)
g.case("DecodeGif", "", [text(movie)], [np.stack(want + [third])], dynamic=True)
g.case("DecodeImage", "", [text(movie)], [np.stack(want + [third])], dynamic=True)
g.case("DecodeImage", "expand_animations: false", [text(movie)], [want[0]], dynamic=True)
g.case("DecodePng", "", [text(movie)], [], error="Got 3 frames, but animated gifs can only be decoded by")
still = gif([(first, 0, 0, True, None, None)], colours)
g.case("DecodePng", "", [text(still)], [want[0]], dynamic=True)
g.case("DecodeGif", "", [text(png(rgb, 2))], [rgb[None]], dynamic=True)
holes = first.copy()
black = np.where((holes == 5)[..., None], 0, colours[holes]).astype(np.uint8)
g.case("DecodeGif", "", [text(gif([(holes, 0, 0, False, 5, None)], colours))], [black[None]], dynamic=True)
# enough pixels that the table fills and is cleared, with every width of code on the way
big = rng.integers(0, 256, (150, 160)).astype(np.uint8)
full = rng.integers(0, 256, (256, 3)).astype(np.uint8)
g.case("DecodeGif", "", [text(gif([(big, 0, 0, False, None, None)], full, 8))], [full[big][None]], dynamic=True)
stripes = np.repeat(np.arange(40, dtype=np.uint8)[:, None] % 8, 300, 1)  # long strings, and codes of the entry being made
g.case("DecodeGif", "", [text(gif([(stripes, 0, 0, False, None, None)], colours))], [colours[stripes][None]], dynamic=True)
for cut in (10, 30, 60, 120):
    g.case("DecodeGif", "", [text(still[:cut])], [], error="Invalid GIF data")
g.case("DecodeImage", "channels: 1", [text(still)], [], error="channels must be 0 or 3 for GIF, got 1")

for pixels in (rgb, rgba, gray):
    g.case("DecodeBmp", "", [text(bmp(pixels))], [pixels], dynamic=True)
g.case("DecodeBmp", "channels: 3", [text(bmp(rgb, True))], [rgb], dynamic=True)
g.case("DecodeBmp", "channels: 4", [text(bmp(rgb))], [], error="does not match bits per pixel from file 3")
g.case("DecodeBmp", "", [text(bmp(rgb)[:-1])], [], error="Incomplete bmp content")
g.case("DecodeBmp", "", [text(b"BM")], [], error="requires at least 54 bytes, got 2")
g.save(__file__)
