"""Goldens whose values TensorFlow computes, one file for each family: run with TensorFlow 2.21 (tests/judges/README.md)
as `python tests/golden/tensorflow/goldens.py [FAMILY …]`."""
import os
import shutil
import sys

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from golden import Golden, T  # noqa: E402


def text(data):
    return np.array(data, dtype=object)


def attrs_text(given):
    """The attributes of one op, as tests/support/attrs_text.h reads them."""
    return "; ".join(f"{key}: {str(value).lower() if isinstance(value, bool) else repr(value)}" for key, value in given.items())


def types_text(tensors):
    return "[" + ", ".join(types_pb2.DataType.Name(tensor.dtype.as_datatype_enum) for tensor in tensors) + "]"


def message(error):
    """The text of an error that one op returned."""
    return error.message.split("}} ")[1].split(" [Op:")[0]


EVERY_BYTE = text([bytes([byte]) for byte in range(256)])


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
    """RE2's syntax, classes outside ASCII and in text that is not UTF-8, and patterns on which backtracking takes for ever."""
    g = Golden()
    spaced = ["W\u00f6rld 42".encode(), "na\x0bve\tcaf\u00e9".encode(), b"a\xff\xc3b", "\u65e5 \u672c\r\n\f".encode()]
    rows = [(pattern, spaced) for pattern in (
        r"\D", r"\W", r"\S", r"\s", r"[\s]", r"[^\s]", r"[\S]", r"[^\S]", r"[\Sx]", r"[[:space:]]", r"\Q\s\E", r"[]\s]",
        r"[[a]", r"[^]a]", r"\\\\s", r".", r"[^a]", r"[\d\s]+", r"\w+\s")]
    rows += [(r"(a*)*b", [b"a" * 40]), (r"(a|aa)+$", [b"a" * 40 + b"b", b"a" * 40]), (r"(x+x+)+y", [b"x" * 40, b"x" * 40 + b"y"]),
             (r"((a{0,5}){0,5}){0,5}[c]", [b"a" * 60]), (r"(a|b|\s)*", [b"ab " * 20000])]
    letters = ["aab \u017fk\n".encode(), b"x-1\xff\x80B_", "\u212a\u00e9\u65e5S\nab".encode(), b"", b"\xc3"]
    rows += [(pattern, letters) for pattern in (
        "", r"a{0}", r"(?i)s|K", r"(?i)\w", r"(?i)\W", r"(?i)[^\W\n]", r"(?i)[[:^upper:]]", r"(?m)^", r"(?m)$", r"(?s).+", r".+", r"(?U)a+",
        r"(?U)a+?", r"a*?", r"(a|ab)(c|bcd)*", r"a(?i)*", r"(?:a*)*b", r"a{2}", r"a{,2}", r"x{", r"\Qa.b\E*", r"\101", r"\x{e9}", r"\v", r"[\x61-c]",
        r"[a-\x{e9}]", r"[\d-z]", r"[^\n]", r"\pL", r"\PL+", r"[\p{Han}\p{Latin}]", r"\p{^Greek}", r"\pN|\pP", r"\pC", r"\z", r"\b", r"(?P<n>a)",
        r"(?-s:.)", r"()*", r"a||b", r"(|a)*", r"(|a)+", r"[[:word:]]", r"\_", r"(?i)\x{130}", r"\p{Any}")]
    refused = (r"a**", r"a*+", r"a{2}{3}", r"a{1001}", r"(a{40}){40}", r"*a", r"a|*", r"(?=a)", r"(?!a)", r"(?<=a)", r"(?<n>a)", r"(?>a)", r"(?x)a",
               r"(?#a)", r"(a)\1", r"\Z", r"\h", r"\R", r"\X", r"\K", r"\G", r"\N", r"\e", r"\q", "a\\", r"(", r")", r"[a", r"[b-a]", r"[a-\d]",
               r"[[:foo:]]", r"[\b]", r"\p{Foo}", r"\p{Alphabetic}", r"(?P<1 >a)", r"(?i", r"(?-)a", "\u00e9\\\u00e9", r"\8")
    for pattern in refused:
        try:
            tf.strings.regex_full_match("a", pattern)
        except tf.errors.InvalidArgumentError:
            g.case("RegexFullMatch", "", [text(b"a"), text(pattern.encode())], [], error="Invalid pattern")
        else:
            raise AssertionError(pattern)
    for rewrite in (rb"<\1>", rb"<\2>", b"x\\", rb"x\q", rb"\\\0"):
        for everything in (True, False):
            replaced = tf.raw_ops.RegexReplace(input=letters, pattern="(a)?b", rewrite=rewrite, replace_global=everything).numpy()
            g.case("RegexReplace", f"replace_global: {str(everything).lower()}", [text(letters), text("(a)?b"), text(rewrite)], [replaced])
    for pattern, texts in rows:
        given = text(texts)
        g.case("RegexFullMatch", "", [given, text(pattern)], [tf.strings.regex_full_match(texts, pattern).numpy()])
        replaced = tf.raw_ops.RegexReplace(input=texts, pattern=pattern, rewrite="|").numpy()
        g.case("RegexReplace", "", [given, text(pattern), text("|")], [replaced])
    g.save(__file__, "regex")


def save_model(made, name, **arguments):
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    shutil.rmtree(folder, ignore_errors=True)
    tf.saved_model.save(made, folder, **arguments)
    os.remove(os.path.join(folder, "fingerprint.pb"))
    os.rmdir(os.path.join(folder, "assets"))
    return folder


def traces():
    """A SavedModel whose functions have several traces, and traces.values: what TensorFlow returns for x = [1, 2] where
    only tensors are passed, for tests/cli/traces_test.sh."""
    x = tf.TensorSpec([None], tf.float32, name="x")

    class Inner(tf.Module):
        @tf.function
        def scale(self, x, factor=10.0):
            return x * factor

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        @tf.function
        def layer(self, x, training=False):
            return x + (100.0 if training else 1.0)

        @tf.function
        def late(self, x, training=True):
            return x + (100.0 if training else 1.0)

        @tf.function
        def power(self, x, exponent=2, *, offset=1.0, label="a"):
            return x**exponent + offset + (0.5 if label == "a" else 0.0)

        @tf.function
        def shapes(self, x):
            return x + float(x.shape[0] or 0)

        @tf.function
        def maybe(self, x, y=None):
            return x if y is None else x + y

        @tf.function
        def required(self, x, training):
            return x + (100.0 if training else 1.0)

        @tf.function
        def scale(self, x):
            return x * 2

    made = Model()
    for training in (True, False):
        made.layer.get_concrete_function(x, training=training)
        made.late.get_concrete_function(x, training=training)
        made.required.get_concrete_function(x, training)
    for exponent, offset, label in ((3, 1.0, "a"), (2, 5.0, "a"), (2, 1.0, "b"), (2, 1.0, "a")):
        made.power.get_concrete_function(x, exponent, offset=offset, label=label)
    for shape in ([2], [None], [3]):
        made.shapes.get_concrete_function(tf.TensorSpec(shape, tf.float32, name="x"))
    made.maybe.get_concrete_function(x, x)
    made.maybe.get_concrete_function(x)
    made.inner.scale.get_concrete_function(x, 3.0)
    made.inner.scale.get_concrete_function(x)
    made.scale.get_concrete_function(x)
    folder = save_model(made, "traces", options=tf.saved_model.SaveOptions(
        save_debug_info=False, function_aliases={"layer_alias": made.layer, "power_alias": made.power}))
    loaded = tf.saved_model.load(folder)
    given = tf.constant([1.0, 2.0])
    methods = {name: getattr(loaded, name) for name in ("layer", "late", "power", "shapes", "maybe", "scale")}
    methods |= {"layer_alias": loaded.layer, "power_alias": loaded.power, "inner.scale": loaded.inner.scale}
    with open(folder + ".values", "w") as out:
        for name, method in methods.items():
            out.write(f"{name} {' '.join(f'{value:g}' for value in method(given).numpy())}\n")


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

        @tf.function(input_signature=[])
        def texts(self):
            return {"texts": tf.constant(["W\u00f6rld\x0b\t\u65e5\u672c".encode(), b"a\\b\nc\r\x00\xff\x1b[m", b"\xc2\x85"])}

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
        def check(self, x):
            tf.print("got", x)
            tf.debugging.assert_greater(x, 0.0)

    made = Model()
    save_model(made, "model", signatures={"serving_default": made.values, "names": made.names, "texts": made.texts},
               options=tf.saved_model.SaveOptions(save_debug_info=False))


def random():
    """Permutations, which are TensorFlow's bit for bit."""
    g = Golden()
    for dtype, shape, key in ((np.float32, (7,), 3), (np.int64, (1000,), 2**40 + 5), (np.uint8, (5, 3), 9), (np.float32, (1, 4), 1),
                              (np.int32, (0, 2), 1)):
        x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        operands = [x, np.array([key], np.uint64), np.array([key * 7, 1], np.uint64), np.array(1, np.int32)]
        names = dict(zip(("value", "key", "counter", "alg"), operands))
        g.case("StatelessShuffle", f"T: {T.of(x).dtype}", operands, [tf.raw_ops.StatelessShuffle(**names).numpy()])
    g.save(__file__, "random")


def index_shuffle():
    """Places in permutations of every size of blocks, and seeds and bounds for each index."""
    g = Golden()

    def case(index, seed, most, rounds):
        got = tf.raw_ops.RandomIndexShuffle(index=index, seed=seed, max_index=most, rounds=rounds).numpy()
        g.case("RandomIndexShuffle", f"rounds: {rounds}; dtype: {T.of(index).dtype}; Tseed: {T.of(seed).dtype}", [index, seed, most], [got])

    rng = np.random.default_rng(5)
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        for bits in (0, 1, 3, 8, 15, 16, 17, 20, 25, 30, *((33, 40, 51, 62) if dtype().itemsize == 8 else ())):
            most = dtype((1 << bits) - int(bits % 2))
            index = np.array([0, most // 2, most], dtype)
            seed = rng.integers(0, 2**31, 3).astype((np.int32, np.uint32, np.int64, np.uint64)[bits % 4])
            case(index, seed, np.array(most), 4 + 2 * (bits % 3))
    case(np.array(5, np.int64), np.array([1, 2, 3], np.int32), np.array(10, np.int64), 4)
    case(np.array([5, 6], np.int32), np.array([[1, 2, 3], [4, 5, -6]], np.int32), np.array([10, 20], np.int32), 8)
    g.save(__file__, "index_shuffle")


def truncated_normal():
    """Numbers of each sampler: bounds around the mean, near to it, far from it, open ones; with parameters by batch."""
    def attrs(operands):
        return "; ".join(f"{name}: {T.of(operand).dtype}" for name, operand in zip(("S", "Tseed", "dtype"), operands))

    g = Golden()
    for dtype, tolerance in ((np.float32, (3e-6, 3e-6, 0)), (np.float64, (1e-12, 1e-12, 0)), (np.float16, (0, 0, 2))):
        for low, high in ((-2, 3), (-0.5, 0.4), (2, 2.5), (1, 9), (3, np.inf), (-np.inf, -1.5), (-np.inf, 4), (-4, -3.9)):
            operands = [np.array([23], np.int32), np.array([5, -7], np.int64), *(np.array(x, dtype) for x in (0.25, 1.5, low, high))]
            names = dict(zip(("shape", "seed", "means", "stddevs", "minvals", "maxvals"), operands))
            g.case("StatelessParameterizedTruncatedNormal", attrs(operands), operands,
                   [tf.raw_ops.StatelessParameterizedTruncatedNormal(**names).numpy()], tolerance=tolerance)
        operands = [np.array([3, 2, 3], np.int64), np.array([1, 2], np.int32), np.array([[0], [4]], dtype),
                    np.array([1, 2, 0.5], dtype), np.array(-1, dtype), np.array([[1], [5]], dtype)]
        names = dict(zip(("shape", "seed", "means", "stddevs", "minvals", "maxvals"), operands))
        g.case("StatelessParameterizedTruncatedNormal", attrs(operands), operands,
               [tf.raw_ops.StatelessParameterizedTruncatedNormal(**names).numpy()], tolerance=tolerance)
    g.save(__file__, "truncated_normal")


def string():
    """Upper and lower case of all code points that have another one, the sigma before and after each kind of character,
    text that is not UTF-8."""
    g = Golden()
    codes = [*range(1, 0xD800), *range(0xE000, 0x110000)]
    texts = [chr(c) for c in codes]
    upper, lower = ([t.decode() for t in op(input=[t.encode() for t in texts], encoding="utf-8").numpy()]
                    for op in (tf.raw_ops.StringUpper, tf.raw_ops.StringLower))
    cased = "".join(t for t, u, d in zip(texts, upper, lower) if t != u or t != d)
    given = [cased[at:at + 64].encode() for at in range(0, len(cased), 64)]
    between = [t[-1] for t in (x.decode() for x in tf.strings.lower([("A" + t + "\u03a3").encode() for t in texts], "utf-8").numpy())]
    before = [t[-1] for t in (x.decode() for x in tf.strings.lower([(t + "\u03a3").encode() for t in texts], "utf-8").numpy())]
    edges = sorted({i + k for i in range(1, len(codes)) for k in (-1, 0)
                    if between[i] != between[i - 1] or before[i] != before[i - 1]})
    given += [" ".join(text.replace("?", texts[i]) for i in edges).encode() for text in ("?\u03a3", "A?\u03a3", "A\u03a3?b")]
    given += ["A\u03a3", "\u03a3", "A\u03a3\u03a3'", "A\u03a3.b", "\u0130\u03a3"]
    given += [b"a\0B", b"\xffA\xce", b"A\xed\xa0\x80\xf4\x90\x80\x80b\xe0\x80c\xf0\x9f\x98d", b""]
    given = [t.encode() if isinstance(t, str) else t for t in given]
    for op in ("StringUpper", "StringLower"):
        g.case(op, "encoding: 'utf-8'", [text(given)], [getattr(tf.raw_ops, op)(input=given, encoding="utf-8").numpy()])
    g.save(__file__, "string")


def xla_move():
    """XLA's order of floats: -NaN, -inf … -0, 0 … inf, NaN."""
    from tensorflow.compiler.tf2xla.python import xla
    g = Golden()
    places = np.arange(14, dtype=np.int32).reshape(1, 14)
    for dtype in (np.float32, np.float64, np.float16):
        keys = np.array([[np.nan, 0.0, -0.0, 1, -1, np.inf, -np.inf, 0.0, -0.0, -2, 2, 6e-8, -6e-8, -np.nan]], dtype)
        keys[0, -1] = np.copysign(keys[0, -1], -1)
        pair = tf.function(xla.key_value_sort, jit_compile=True)(keys, places)
        g.case("XlaKeyValueSort", f"K: {np.dtype(dtype).name.replace('float16', 'half').replace('float32', 'float').replace('float64', 'double')}; V: int32", [keys, places], [np.asarray(t) for t in pair])
    g.save(__file__, "xla_move")


def string_number():
    """Forms of NaN."""
    g = Golden()
    for dtype, name in ((tf.float32, "float"), (tf.float64, "double")):
        for word in ("nan", "-NaN(1)", "nan(abc)", "nan()", " nan(1_a) ", "nan(1", "nan(a b)", "nan(1)x", "(1)"):
            given = [text([word.encode()])]
            try:
                got = tf.raw_ops.StringToNumber(string_tensor=[word], out_type=dtype).numpy()
                g.case("StringToNumber", f"out_type: {name}", given, [got])
            except tf.errors.InvalidArgumentError:
                g.case("StringToNumber", f"out_type: {name}", given, [], error="could not correctly convert string")
    g.save(__file__, "string_number")


def string_format():
    """Strings with every byte, dtypes that are not printed, an empty placeholder."""
    g = Golden()

    def case(values, template="%s", placeholder="%s", summarize=3):
        given = [tf.constant(value) for value in values]
        printed = f"T: {types_text(given)}; " + attrs_text({"template": template, "placeholder": placeholder, "summarize": summarize})
        names = {"template": template, "placeholder": placeholder, "summarize": summarize}
        try:
            got = tf.raw_ops.StringFormat(inputs=given, **names)
            g.case("StringFormat", printed, [value.numpy() for value in given], [got.numpy()])
        except tf.errors.InvalidArgumentError as error:
            g.case("StringFormat", printed, [value.numpy() for value in given], [], error=message(error))
    case([EVERY_BYTE], summarize=-1)
    for value in (b"a\"b\n", "\u00e9\u65e5\U0001f600'\\".encode(), [[b"\t"], [b"\r\n"]]):
        case([value])
    for summarize in (-1, 0, 1, 2, 5):
        case([np.full([2, 2], 1 + 2j, np.complex64), np.complex128(1)], "%s|%s", summarize=summarize)
    case([np.zeros([2, 0], np.complex64)])
    for template, count in (("ab", 1), ("abc", 2), ("ab", 0), ("", 0), ("", 1), ("a", 0)):
        case([np.int32(7)] * count, template, placeholder="")
    g.save(__file__, "string_format")


def structure():
    """The text of Assert: brackets of dimensions, strings with every ASCII character, dtypes that are not printed."""
    g = Golden()
    square = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
    shapes = [square, square.reshape(2, 4), square.reshape(8), np.int32(7), np.zeros([0], np.int32), np.zeros([3, 0], np.int32),
              np.zeros([0, 3], np.int32), np.zeros([1, 2, 0], np.int32)]
    numbers = [np.array([0.1, 0.405638, 0.666458249, 16777216, 1e-30, np.inf, np.nan, -1], np.float32), np.array([0.1, 1e300]),
               np.array([0.1, 1.5], np.float16), np.array([1, 2 ** 64 - 1], np.uint64), np.array([-1], np.int8)]
    others = [np.array([True, False]), np.array(True), np.zeros([0], bool), np.full([2, 2], 1 + 2j, np.complex64), np.complex128(1)]
    strings = [EVERY_BYTE[:128], text(b"a\"b\n"), text([["\u00e9".encode(), b"b"], [b"c", b""]])]
    for values in (shapes, numbers, others, strings):
        for summarize in (-1, 0, 1, 3, 5):
            given = [tf.constant(value) for value in values]
            try:
                tf.raw_ops.Assert(condition=False, data=given, summarize=summarize)
            except tf.errors.InvalidArgumentError as error:
                g.case("Assert", f"T: {types_text(given)}; summarize: {summarize}", [np.array(False), *(value.numpy() for value in given)], [],
                       error=message(error))
    g.save(__file__, "structure")


def file():
    """Records with line ends, quotes and delimiters in every place."""
    g = Golden()
    records = ["1,2,3\n", "1,2,3\r\n", '"1",2,"3"\n', '1,2,"3"\r', "1,2,\n", "1,\n2,3", "\n1,2,3", "\r\n1,2,3", "1\n,2,3", "1,2,3\n\n", '1,"2"\n,3',
               ",,\r\n", ",\n,", ",,", "", ",", "\n", "1,2", "1,2,3,", '1,"2"x,3', '1,""2"",3', '"1,2",3,""', '"1\n","""2""",3', '"', '""', '"""', '""""',
               '"1,2,3', '1,2,"3""', "\r,\n,\r", '1,2,3,"', '4,1,2,3']
    for record in records:
        for attrs in ({}, {"use_quote_delim": False}, {"select_cols": [0, 1, 2]}, {"select_cols": [0, 2, 3]}):
            inputs = [text([record.encode()]), *([text([b"default"])] * 3)]
            printed = "OUT_TYPE: [DT_STRING, DT_STRING, DT_STRING]; " + attrs_text(attrs)
            try:
                got = tf.raw_ops.DecodeCSV(records=inputs[0], record_defaults=inputs[1:], **attrs)
                g.case("DecodeCSV", printed, inputs, [value.numpy() for value in got])
            except tf.errors.InvalidArgumentError as error:
                g.case("DecodeCSV", printed, inputs, [], error=message(error))
    g.save(__file__, "file")


def unicode():
    """Control characters, which are errors of UnicodeTranscode where errors are strict; numbers that are not characters;
    the code points before and after each change of the script."""
    g = Golden()
    without_shape = ("UnicodeTranscode", "UnicodeDecodeWithOffsets")

    def case(op, attrs, inputs):
        printed = attrs_text(attrs)
        try:
            got = getattr(tf.raw_ops, op)(**inputs, **attrs)
            outputs = [value.numpy() for value in (got if isinstance(got, tuple) else [got])]
            g.case(op, printed, list(inputs.values()), outputs, dynamic=op in without_shape)
        except tf.errors.InvalidArgumentError as error:
            g.case(op, printed, list(inputs.values()), [], error=message(error), dynamic=op in without_shape)

    texts = text(["a\nb".encode(), "\x85c".encode()])
    for op, attrs in (("UnicodeTranscode", {"output_encoding": "UTF-8"}), ("UnicodeDecodeWithOffsets", {})):
        for errors in ("strict", "replace", "ignore"):
            case(op, {"input_encoding": "UTF-8", "errors": errors, "replace_control_characters": True, **attrs}, {"input": texts})
    ends = [65, 0xD7FF, 0xE000, 0xFDCF, 0xFDD0, 0xFDEF, 0xFDF0, *(plane + end for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF))]
    for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        for errors in ("strict", "replace", "ignore"):
            for codes in (ends, [0xD83D, 0xDE00, 65], [65, 0xD800], [0xDFFF, 0xD83D], [0xD83D, 0xD83D, 0xDE00], [-1, 66, 0x110000]):
                case("UnicodeEncode", {"output_encoding": encoding, "errors": errors},
                     {"input_values": np.array(codes, np.int32), "input_splits": np.array([0, len(codes)], np.int64)})
        for replacement in (0xFFFF, 0xD83D, 0x10FFFF):
            case("UnicodeEncode", {"output_encoding": encoding, "replacement_char": replacement},
                 {"input_values": np.array([0xDE00, 65, 0xDE00, 0xDE00], np.int32), "input_splits": np.array([0, 2, 4], np.int64)})
    scripts = tf.raw_ops.UnicodeScript(input=range(0x110000)).numpy()
    changes = np.flatnonzero(np.diff(scripts)).astype(np.int32)
    case("UnicodeScript", {}, {"input": np.stack([changes, changes + 1])})
    g.save(__file__, "unicode")


tf.config.threading.set_intra_op_parallelism_threads(1)  # TensorFlow divides random numbers between its threads
FAMILIES = {f.__name__: f for f in (file, image_file, index_shuffle, model, random, regex, string, string_format, string_number, structure, traces, truncated_normal, unicode, xla_move)}
for name in sys.argv[1:] or FAMILIES:
    FAMILIES[name]()
