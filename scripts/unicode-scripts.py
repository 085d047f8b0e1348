#!/usr/bin/env python3
"""Prints the ranges of interpreter/ops/string/unicode_script.c: the scripts of TensorFlow 2.21, which are ICU's numbers."""
import tensorflow as tf

UNKNOWN = 103


def main():
    scripts = tf.raw_ops.UnicodeScript(input=range(0x110000)).numpy().tolist()
    ranges = []
    for code, script in enumerate(scripts):
        if script == UNKNOWN:
            continue
        if ranges and ranges[-1][1:] == [code - 1, script]:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, script])
    line = "   "
    for row in ranges:
        item = " { " + ", ".join(str(number) for number in row) + " },"
        if len(line + item) > 120:
            print(line)
            line = "   "
        line += item
    print(line)


main()
