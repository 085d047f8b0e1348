#!/usr/bin/env python3
"""Resized images as TensorFlow and PIL compute them, for tests/unit/base/image/resize_test.c. Needs TensorFlow and Pillow, each
in its own environment if need be (Pillow 11.3 to 12.3; 13.0 resizes tall images in the other order):

    resize.py tensorflow > resize.tensorflow.txt
    resize.py pil > resize.pil.txt

Each line: rule, antialias, height, width, new height, new width, the values of the new image of one channel, row by row. Pixel
(y, x) of the image is (y * 37 + x * 91 + x * y * 7) modulo 256."""
import sys

import numpy as np

SIZES = [((13, 9), (5, 4)), ((7, 16), (3, 23)), ((6, 5), (11, 9)), ((4, 31), (4, 6))]


def image(height, width):
    y, x = np.mgrid[:height, :width]
    return ((y * 37 + x * 91 + x * y * 7) % 256).astype(np.uint8)


def line(rule, antialias, old, new, values):
    print(rule, int(antialias), *old, *new, *(f"{v:.9g}" for v in np.asarray(values).reshape(-1)))


def tensorflow():
    import tensorflow as tf
    for rule in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"):
        for antialias in (False, True):
            for old, new in SIZES:
                line(rule, antialias, old, new, tf.image.resize(image(*old)[..., None], new, rule, antialias=antialias))


def pil():
    from PIL import Image
    for rule in ("BILINEAR", "NEAREST", "BICUBIC", "LANCZOS"):
        for old, new in SIZES:
            resized = Image.fromarray(image(*old)).resize(new[::-1], getattr(Image.Resampling, rule))
            line({"LANCZOS": "lanczos3"}.get(rule, rule.lower()), True, old, new, resized)


{"tensorflow": tensorflow, "pil": pil}[sys.argv[1]]()
