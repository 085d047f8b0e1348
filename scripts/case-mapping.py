#!/usr/bin/env python3
"""Prints the tables of interpreter/ops/string/case_mapping.c: upper and lower case as TensorFlow 2.21 maps them."""
import tensorflow as tf

CODES = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]


def mapped(op, texts):
    return [text.decode() for text in op(input=[text.encode() for text in texts], encoding="utf-8").numpy()]


def steps(mapping):
    """[first, last, step, difference]: code points of one difference to their other case."""
    found = []
    for code in sorted(mapping):
        difference = mapping[code] - code
        if found and found[-1][3] == difference:
            first, last, step, _ = found[-1]
            if first == last and code - last <= 2:
                found[-1][1:3] = code, code - last
                continue
            if first != last and code - last == step:
                found[-1][1] = code
                continue
        found.append([code, code, 1, difference])
    return found


def ranges(codes):
    found = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(kind, name, rows):
    print(f"static const struct {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = " { " + ", ".join(str(number) for number in row) + " },"
        if len(line + item) > 120:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def main():
    texts = [chr(code) for code in CODES]
    several = []
    for name, op in (("upper_steps", tf.raw_ops.StringUpper), ("lower_steps", tf.raw_ops.StringLower)):
        others = mapped(op, texts)
        table("step", name, steps({ord(a): ord(b) for a, b in zip(texts, others) if len(b) == 1 and a != b}))
        several += [(ord(a), int(op is tf.raw_ops.StringUpper), b) for a, b in zip(texts, others) if len(b) > 1]
    table("several", "several", ([code, upper, "{ " + ", ".join(str(ord(c)) for c in text) + " }"]
                                 for code, upper, text in sorted(several)))
    # A sigma is final after a cased letter, with letters and marks that do not count between them.
    before = [text[-1] == "ς" for text in mapped(tf.raw_ops.StringLower, [text + "Σ" for text in texts])]
    between = [text[-1] == "ς" for text in mapped(tf.raw_ops.StringLower, ["Α" + text + "Σ" for text in texts])]
    table("range", "cased", ranges(code for code, cased in zip(CODES, before) if cased))
    table("range", "ignorable", ranges(code for code, cased, skip in zip(CODES, before, between) if skip and not cased))


main()
