"""Values of the TensorFlow Text library: run with TensorFlow 2.21 and tensorflow-text 2.21 (pip install tensorflow-text) as
`python tests/golden/tensorflow/text_goldens.py`. Writes regex_split.bin and unicode_form.bin beside this script, and
tests/ops/wordpiece.graphs."""
import itertools
import os
import sys

import numpy as np
import tensorflow as tf
import tensorflow_text as text  # noqa: F401: registers the ops
from tensorflow_text.python.ops.normalize_ops import gen_normalize_ops
from tensorflow_text.python.ops.regex_split_ops import gen_regex_split_ops
from tensorflow_text.python.ops.wordpiece_tokenizer import gen_wordpiece_tokenizer

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from golden import Golden  # noqa: E402


def strings(data):
    return np.array(data, dtype=object)


def regex_split():
    g = Golden()
    texts = ["hello there".encode(), "a-b, c".encode(), "naïve\t日本語!".encode(), b"", b"a\xff b\xc3", b"  x  "]
    for delimiter, kept in ((r"(\s)", ""), (r"(\s+|\pP)", r"\pP"), (r"(\s)", r"\s"), (r"([^a-z])", "-|,"), (r"a(.)", "."), (r"(^.)", "a"),
                            (r"\s", ""), ("([\\p{Han}]|[!-/])", r"\p{Han}"), (r"(\b.)", "")):
        operands = [strings(texts), strings(delimiter.encode()), strings(kept.encode())]
        result = gen_regex_split_ops.regex_split_with_offsets(texts, delimiter, kept)
        g.case("RegexSplitWithOffsets", "", operands, [strings(result[0].numpy()), *(value.numpy() for value in result[1:])],
               dynamic=True)
    g.case("RegexSplitWithOffsets", "", [strings([b"a"]), strings(b"("), strings(b"")], [], error="Invalid pattern", dynamic=True)
    g.save(__file__, "regex_split")


def quoted(value):
    return '"' + "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\x{c:02x}" for c in value) + '"'


def wordpiece():
    vocabulary = ["want", "##want", "##ed", "wa", "un", "runn", "##ing", "日", "##é", "[UNK]", "a", "##a"]
    words = ["unwanted".encode(), b"runni", "日本".encode(), "waé".encode(), b"", b"aaaa", b"unwant\xed"]
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(vocabulary, tf.range(len(vocabulary), dtype=tf.int64)), -1)
    lines = ["# Written by tests/golden/tensorflow/text_goldens.py: values of the TensorFlow Text library.", ""]
    for unknown, split, (most_bytes, most_chars) in itertools.product((True, False), (True, False), ((100, 0), (6, 0), (100, 3))):
        kind = "row_splits" if most_chars else "row_lengths"
        attrs = {"suffix_indicator": "##", "max_bytes_per_word": most_bytes, "max_chars_per_token": most_chars,
                 "use_unknown_token": unknown, "unknown_token": "[UNK]", "split_unknown_characters": split,
                 "output_row_partition_type": kind}
        outputs = gen_wordpiece_tokenizer.wordpiece_tokenize_with_offsets(words, table.resource_handle, **attrs)
        printed = "; ".join(f"{name}: '{value}'" if isinstance(value, str) else f"{name}: {str(value).lower()}"
                            for name, value in attrs.items())
        lines += [f"graph words of pieces, of {most_bytes} bytes, {most_chars} characters, unknown {unknown}, split {split}",
                  "t = HashTableV2() key_dtype: string; value_dtype: int64",
                  f"k = string[{len(vocabulary)}] " + " ".join(quoted(word.encode()) for word in vocabulary),
                  f"v = int64[{len(vocabulary)}] " + " ".join(map(str, range(len(vocabulary)))),
                  "fill = InitializeTableV2(t, k, v)", f"x = string[{len(words)}] " + " ".join(map(quoted, words)),
                  f"y = WordpieceTokenizeWithOffsets(x, t, ^fill) {printed}", "run y:0 y:1 y:2 y:3"]
        for output in outputs:
            values = output.numpy()
            form = "string" if output.dtype == tf.string else "int64"
            lines.append(f"out {form}[{len(values)}] " + " ".join(quoted(v) if form == "string" else str(v) for v in values))
        lines.append("")
    with open(os.path.join(FOLDER, "..", "..", "ops", "wordpiece.graphs"), "w") as out:
        out.write("\n".join(lines))


def unicode_form():
    g = Golden()
    rng = np.random.default_rng(3)
    codes = [c for c in range(0x20, 0x2fa20) if not 0xd800 <= c < 0xe000]
    chosen = [*range(0xa0, 0x250), *range(0x370, 0x400), *range(0x1e00, 0x2150), *range(0xfb00, 0xfb10), *range(0xff00, 0xff60),
              *rng.choice(codes, 600)]
    chosen.remove(0x2065)  # unassigned, removed by TensorFlow Text
    texts = ["".join(map(chr, map(int, chosen[at:at + 16]))).encode() for at in range(0, len(chosen), 16)]
    texts += ["e\u0301\u0323 \uac00\u11a8 \u1100\u1161 \ufb03 \u00df \u0130 A\u030a\u2126".encode(), b"", b"a\xff\xc3b \xe6\x97", "İSTANBUL ΣΑΣ ﷺ".encode()]
    g.case("CaseFoldUTF8", "", [strings(texts)], [gen_normalize_ops.case_fold_utf8(texts).numpy()])
    g.case("CaseFoldUTF8", "", [strings([[b"A", b"b"]])], [strings([[b"a", b"b"]])])
    g.case("CaseFoldUTF8", "", [strings(b"\xc3\x84")], [strings(b"\xc3\xa4")])
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        g.case("NormalizeUTF8", f"normalization_form: '{form}'", [strings(texts)],
               [gen_normalize_ops.normalize_utf8(texts, normalization_form=form).numpy()])
    g.save(__file__, "unicode_form")


regex_split()
wordpiece()
unicode_form()
