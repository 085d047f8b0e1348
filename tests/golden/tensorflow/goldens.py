"""Goldens whose values TensorFlow computes, one file for each family: run with TensorFlow 2.21 (tests/judges/README.md)
as `python tests/golden/tensorflow/goldens.py [FAMILY …]`."""
import os
import shutil
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


def regex():
    """RE2's classes outside ASCII and in text that is not UTF-8, and patterns on which backtracking takes for ever."""
    g = Golden()
    spaced = ["W\u00f6rld 42".encode(), "na\x0bve\tcaf\u00e9".encode(), b"a\xff\xc3b", "\u65e5 \u672c\r\n\f".encode()]
    rows = [(pattern, spaced) for pattern in (
        r"\D", r"\W", r"\S", r"\s", r"[\s]", r"[^\s]", r"[\S]", r"[^\S]", r"[\Sx]", r"[[:space:]]", r"\Q\s\E", r"[]\s]",
        r"[[a]", r"[^]a]", r"\\\\s", r".", r"[^a]", r"[\d\s]+", r"\w+\s")]
    rows += [(r"(a*)*b", [b"a" * 40]), (r"(a|aa)+$", [b"a" * 40 + b"b", b"a" * 40]), (r"(x+x+)+y", [b"x" * 40, b"x" * 40 + b"y"]),
             (r"((a{0,5}){0,5}){0,5}[c]", [b"a" * 60]), (r"(a|b|\s)*", [b"ab " * 20000])]
    for pattern, texts in rows:
        given = text(texts)
        g.case("RegexFullMatch", "", [given, text(pattern)], [tf.strings.regex_full_match(texts, pattern).numpy()])
        replaced = tf.raw_ops.RegexReplace(input=texts, pattern=pattern, rewrite="|").numpy()
        g.case("RegexReplace", "", [given, text(pattern), text("|")], [replaced])
    g.save(__file__, "regex")


def model():
    """A SavedModel with a 4-bit variable, a function without results and outputs of similar names, for tests/cli/tensorflow_values_test.sh."""
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.Variable(tf.cast(tf.constant([-8, -3, 0, 1, 7]), tf.dtypes.experimental.int4))

        @tf.function(input_signature=[])
        def values(self):
            return {"values": tf.cast(self.table, tf.int8)}

        @tf.function(input_signature=[])
        def names(self):
            return {"a/b": tf.constant(1.0), "a__b": tf.constant(2.0)}

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
        def check(self, x):
            tf.print("got", x)
            tf.debugging.assert_greater(x, 0.0)

    made = Model()
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
    shutil.rmtree(folder, ignore_errors=True)
    tf.saved_model.save(made, folder, signatures={"serving_default": made.values, "names": made.names},
                        options=tf.saved_model.SaveOptions(save_debug_info=False))
    os.remove(os.path.join(folder, "fingerprint.pb"))
    os.rmdir(os.path.join(folder, "assets"))


def string():
    """Characters whose upper case has several code points."""
    g = Golden()
    several = [c for c in map(chr, (*range(0xD800), *range(0xE000, 0x20000))) if len(c.upper()) > 1]
    texts = ["".join(several[at:at + 8]).encode() for at in range(0, len(several), 8)]
    for op in ("StringUpper", "StringLower"):
        g.case(op, "encoding: 'utf-8'", [text(texts)], [getattr(tf.raw_ops, op)(input=texts, encoding="utf-8").numpy()])
    g.save(__file__, "string")


FAMILIES = {f.__name__: f for f in (image_file, regex, string, model)}
for name in sys.argv[1:] or FAMILIES:
    FAMILIES[name]()
