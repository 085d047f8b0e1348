"""String ops by Python's own strings, bytes and regular expressions: case, whitespace, length, parts, joining, splitting,
replacing, base64, numbers."""
import base64
import itertools
import os
import re

import numpy as np

from golden import Golden

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["", "a", "Hello, World", "  two  words ", "\tx\n", "ÄÖÜ straße", "日本語テキスト", "a,b,,c", "1.5e3", "ÀÉ ñ", "🙂🙃 ok", "x" * 40]


def text(values, shape=None):
    out = np.empty(len(values), dtype=object)
    out[:] = [v.encode() if isinstance(v, str) else v for v in values]
    return out if shape is None else out.reshape(shape)


def save(g, family):
    g.save(os.path.join(HERE, family + ".py"))


g = Golden()
all_texts = text(TEXTS)
for shape in [(12,), (3, 4), (2, 3, 2)]:
    x = all_texts.reshape(shape)
    for op, f in (("StringLower", lambda s: s.decode().lower()), ("StringUpper", lambda s: s.decode().upper())):
        g.case(op, "encoding: 'utf-8'", [x], [text([f(s) for s in x.reshape(-1)], shape)])

        def ascii_only(s, upper=op == "StringUpper"):
            return s.upper() if upper else s.lower()  # bytes: ASCII letters only
        g.case(op, "", [x], [text([ascii_only(s) for s in x.reshape(-1)], shape)])
    g.case("StringStrip", "", [x], [text([s.strip(b" \t\n\v\f\r") for s in x.reshape(-1)], shape)])
    g.case("StringLength", "", [x], [np.array([len(s) for s in x.reshape(-1)], np.int32).reshape(shape)])
    g.case("StringLength", "unit: 'UTF8_CHAR'", [x],
           [np.array([len(s.decode()) for s in x.reshape(-1)], np.int32).reshape(shape)])
long = [t for t in TEXTS if len(t) >= 6]
for pos, length in itertools.product((-5, -1, 0, 2, 5), (0, 1, 3, 100)):
    for index in (np.int32, np.int64):
        kind = "int32" if index is np.int32 else "int64"

        def part(s):
            start = pos if pos >= 0 else len(s) + pos
            return s[start:start + length]
        g.case("Substr", f"T: {kind}", [text(long), index(pos), index(length)], [text([part(t.encode()) for t in long])])
        g.case("Substr", f"T: {kind}; unit: 'UTF8_CHAR'", [text(long), index(pos), index(length)], [text([part(t) for t in long])])
pos, length = np.array([0, 1, 2, 3], np.int32), np.array([3, 2, 1, 0], np.int32)
x = text(["abcd", "efgh", "ijkl", "mnop"])
g.case("Substr", "T: int32", [x, pos, length], [text(["abc", "fg", "k", ""])])
for separator in ("", "-", ", "):
    for n in (1, 2, 3):
        parts = [text([f"{k}{i}" for i in range(4)]) for k in "abc"[:n]]
        g.case("StringJoin", f"N: {n}; separator: '{separator}'", parts,
               [text([separator.join(p[i].decode() for p in parts) for i in range(4)])])
    one = text(["s"])[0]
    g.case("StringJoin", f"N: 2; separator: '{separator}'", [np.array(one, dtype=object), text(["x", "y"])],
           [text(["s" + separator + "x", "s" + separator + "y"])])
    table = text([f"{i}{k}" for i in range(3) for k in "xyz"] * 2, (2, 3, 3))
    for axes in ([0], [1], [2], [-1], [0, 1], [1, 0], [2, 1], [0, 1, 2], []):
        for keep in (False, True):
            kept = [a % 3 for a in axes]
            others = [a for a in range(3) if a not in kept]
            y = np.empty([table.shape[a] for a in others], dtype=object)
            for at in np.ndindex(y.shape):
                picked = []
                # dims go in the order given: the first of them runs fastest
                for inner in itertools.product(*[range(table.shape[a]) for a in reversed(kept)]):
                    index = [0, 0, 0]
                    for a, i in list(zip(others, at)) + list(zip(reversed(kept), inner)):
                        index[a] = i
                    picked.append(table[tuple(index)])
                y[at] = separator.encode().join(picked)
            if keep:
                y = y.reshape([1 if a in kept else table.shape[a] for a in range(3)])
            g.case("ReduceJoin", f"keep_dims: {str(keep).lower()}; separator: '{separator}'", [table, np.array(axes, np.int32)], [y])
save(g, "string")

g = Golden()
SPLIT = ["a,b,,c", ",", "", "no", ",,x,", "a b  c", "  lead and trail  ", "1<>2<>3", "日,本"]
for sep in ("", ",", "<>", " "):
    for most in (-1, 1, 2):
        rows = []
        for t in SPLIT:
            if sep == "":
                row = t.split(None, most)
                row = [r.rstrip() if i == len(row) - 1 and most < 0 else r for i, r in enumerate(row)]
            else:
                row = t.split(sep, most)
            rows.append(row)
        if sep == "" and most > 0:
            continue  # Python treats trailing whitespace differently
        indices = np.array([(i, j) for i, r in enumerate(rows) for j in range(len(r))], np.int64).reshape(-1, 2)
        g.case("StringSplitV2", f"maxsplit: {most}", [text(SPLIT), np.array(sep.encode(), dtype=object)],
               [indices, text([v for r in rows for v in r]), np.array([len(rows), max(map(len, rows))], np.int64)], dynamic=True)
for skip in (True, False):
    for delimiters in (",", " ", ",b", ""):
        rows = []
        for t in SPLIT[:7]:
            row = list(t) if delimiters == "" else re.split("[" + re.escape(delimiters) + "]", t)
            rows.append([r for r in row if r or not skip] if t else [])  # of nothing TensorFlow makes no part
        indices = np.array([(i, j) for i, r in enumerate(rows) for j in range(len(r))], np.int64).reshape(-1, 2)
        g.case("StringSplit", f"skip_empty: {str(skip).lower()}", [text(SPLIT[:7]), np.array(delimiters.encode(), dtype=object)],
               [indices, text([v for r in rows for v in r]), np.array([len(rows), max(map(len, rows))], np.int64)], dynamic=True)
save(g, "string_split")

g = Golden()
WORDS = text(["foo bar", "", "aaa", "x1y22z333", "ÄÖ ü", "line\nbreak", "foofoo", "[tag]"])
PATTERNS = [("o+", "0"), ("a", "bb"), ("[0-9]+", "<\\\\0>"), ("(\\\\w)(\\\\d)", "\\\\2\\\\1"), ("^foo", ""), ("bar$", "!"), ("x*", "-"),
            ("\\\\[|\\\\]", ""), ("(?i)FOO", "f"), ("[^a-z]", "_"), ("\\\\s+", " ")]
for pattern, new in PATTERNS:
    plain, plain_new = pattern.replace("\\\\", "\\"), new.replace("\\\\", "\\")
    program = re.compile(plain.encode(), 0)
    substitute = re.sub(rb"\\(\d)", rb"\\g<\1>", plain_new.encode())
    if pattern == "[^a-z]":
        continue  # by character there, by byte here
    for everywhere in (True, False):
        if pattern == "x*" and everywhere:
            continue  # empty matches next to others: RE2 and Python differ
        y = text([program.sub(substitute, w, count=0 if everywhere else 1) for w in WORDS])
        flag = f"replace_global: {str(everywhere).lower()}"
        g.case("RegexReplace", flag, [WORDS, np.array(plain.encode(), dtype=object), np.array(plain_new.encode(), dtype=object)], [y])
        g.case("StaticRegexReplace", f"pattern: '{pattern}'; rewrite: '{new}'; {flag}", [WORDS], [y])
for pattern in ("foo.*", "a{3}", "[a-z0-9]+", ".*", "", "(?s).*", "\\\\[.*\\\\]", "foo|bar"):
    plain = pattern.replace("\\\\", "\\").encode()
    y = np.array([re.fullmatch(plain, w) is not None for w in WORDS])
    g.case("RegexFullMatch", "", [WORDS, np.array(plain, dtype=object)], [y])
    g.case("StaticRegexFullMatch", f"pattern: '{pattern}'", [WORDS], [y])
save(g, "regex")
