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
palette = rng.integers(0, 256, (4, 3)).astype(np.uint8)
index = rng.integers(0, 4, (2, 5, 1)).astype(np.uint8)
g.case("DecodePng", "", [text(png(index, 3, chunk(b"PLTE", palette.tobytes())))], [palette[index[..., 0]]], dynamic=True)
data = png(rgb, 2)
for bad in (data[:40], data[:-20], data[:50] + b"\xff" + data[51:], data[:16] + b"\0\0\0\0" + data[20:]):
    g.case("DecodePng", "", [text(bad)], [], error="Invalid PNG data")
g.case("DecodePng", "", [text(b"what")], [], error="Unknown image file format")
g.case("DecodePng", "channels: 5", [text(data)], [], error="channels must be 0, 1, 3 or 4, got 5")
g.case("DecodeImage", "dtype: float; expand_animations: false", [text(data)],
       [rgb.astype(np.float32) * np.float32(1 / 255)], dynamic=True)
g.case("DecodeImage", "", [text(b"GIF89a")], [], error="GIF")

for pixels in (rgb, rgba, gray):
    g.case("DecodeBmp", "", [text(bmp(pixels))], [pixels], dynamic=True)
g.case("DecodeBmp", "channels: 3", [text(bmp(rgb, True))], [rgb], dynamic=True)
g.case("DecodeBmp", "channels: 4", [text(bmp(rgb))], [], error="does not match bits per pixel from file 3")
g.case("DecodeBmp", "", [text(bmp(rgb)[:-1])], [], error="Incomplete bmp content")
g.case("DecodeBmp", "", [text(b"BM")], [], error="requires at least 54 bytes, got 2")
g.save(__file__)
