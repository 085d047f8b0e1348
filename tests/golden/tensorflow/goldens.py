"""Goldens whose values TensorFlow computes, one file for each family: run with TensorFlow 2.21 (tests/judges/README.md)
as `python tests/golden/tensorflow/goldens.py [FAMILY …]`."""
import os
import sys

import numpy as np
import tensorflow as tf

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from golden import Golden  # noqa: E402


def text(data):
    return np.array(data, dtype=object)


def image_file():
    """JPEG files: the inverse cosine transform of each dct_method, every sampling, and each op that decodes them."""
    g = Golden()
    rng = np.random.default_rng(11)
    for height, width, channels, quality, downsampling in ((17, 21, 3, 80, True), (16, 9, 3, 95, False), (8, 13, 1, 60, True)):
        pixels = rng.integers(0, 256, (-(-height // 4), -(-width // 4), channels)).repeat(4, 0).repeat(4, 1)[:height, :width]
        pixels = np.clip(pixels + rng.integers(-20, 21, pixels.shape), 0, 255).astype(np.uint8)
        file = tf.io.encode_jpeg(pixels, quality=quality, chroma_downsampling=downsampling)
        contents = text(file.numpy())
        for attrs in ({}, {"dct_method": "INTEGER_FAST"}, {"dct_method": "INTEGER_ACCURATE"}, {"fancy_upscaling": False},
                      {"ratio": 2}):
            words = "; ".join(f"{key}: '{value}'" if isinstance(value, str) else f"{key}: {str(value).lower()}"
                              for key, value in attrs.items())
            g.case("DecodeJpeg", words, [contents], [tf.raw_ops.DecodeJpeg(contents=file, **attrs).numpy()], dynamic=True)
        for op in ("DecodeImage", "DecodePng"):
            g.case(op, "expand_animations: false" if op == "DecodeImage" else "", [contents],
                   [getattr(tf.raw_ops, op)(contents=file).numpy()], dynamic=True)
        window = np.array([2, 3, 5, 4], np.int32)
        g.case("DecodeAndCropJpeg", "", [contents, window],
               [tf.raw_ops.DecodeAndCropJpeg(contents=file, crop_window=window).numpy()], dynamic=True)
    g.save(__file__, "image_file")


FAMILIES = {f.__name__: f for f in (image_file,)}
for name in sys.argv[1:] or FAMILIES:
    FAMILIES[name]()
