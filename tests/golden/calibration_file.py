"""Reads a calibration file as docs/formats.md describes it and compares it with the output of `tare show --json`.

usage: calibration_file.py TARE FILE.calib
"""
import json
import struct
import subprocess
import sys
from fractions import Fraction

WORDS = 34  # of an exact sum


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return value

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self):
        size = self.varint()
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def sum(self):
        first, kind = self.varint(), self.varint()
        words = [0] * first + [self.take("Q") for _ in range(kind >> 1)]
        words += [(1 << 64) - 1 if kind & 1 else 0] * (WORDS - len(words))
        value = sum(word << (64 * i) for i, word in enumerate(words))
        return Fraction(value - (1 << 64 * WORDS) if value >> (64 * WORDS - 1) else value, 1 << 1074)

    def list(self, item):
        return [item() for _ in range(self.varint())]

    def runs(self):
        found, end = [], 0
        for _ in range(self.varint()):
            first = end + self.varint()
            end = first + self.varint()
            found.append([first, end - 1])
        return found

    def passed_over(self):
        found, following = [], 0
        for _ in range(self.varint()):
            record = following + self.varint()
            found.append({"record": record, "offset": self.varint(), "reason": self.text(), "text": self.text()})
            following = record + 1
        return found

    def input(self):
        return {"signature": self.text(), "file": self.text(), "runs": self.runs(), "passed_over": self.passed_over()}

    def digests(self):
        found = {"signature": self.text()}
        digests = self.list(lambda: self.take("Q"))
        if any(a >= b for a, b in zip(digests, digests[1:])):
            sys.exit("digests are not ascending")
        return found | {"count": len(digests)}

    def side(self):
        function, node, op, _, target = self.text(), self.text(), self.text(), self.varint(), self.text()
        return {"function": function, "node": node, "op": op, "target": target, "records": self.varint()}

    def extreme(self):
        return {"value": self.take("f"), "input": self.varint(), "record": self.varint()}

    def place(self):
        found = {"input": self.varint(), "record": self.varint()}
        self.varint()
        return found

    def histogram(self):
        found, following = {}, 0
        for _ in range(self.varint()):
            bin_number = following + self.varint()
            found[bin_number] = self.varint()
            following = bin_number + 1
        return found

    def tensor(self):
        t = {"function": self.text(), "node": self.text(), "output": self.varint(), "samples": self.varint()}
        self.varint()
        kind = self.varint()
        least = [self.extreme() for _ in range(kind >> 2)]
        greatest = [self.extreme() for _ in range(kind >> 2)]
        if least:
            t["min"], t["max"] = least[0], greatest[0]
        if kind & 2:
            t["first_nan"] = self.place()
        if kind & 1:
            t["first_infinity"] = self.place()
        sums = [self.sum() for _ in range(4)]
        used = self.varint()
        for bucket in range(48):
            if used >> bucket & 1:
                self.take("f"), self.take("f")
        channels = self.varint() - 1
        if channels > 0:
            found = [(self.take("f"), self.take("f"), self.sum()) for _ in range(channels)]
            t["channels"] = {"count": channels, "low": [c[0] for c in found], "high": [c[1] for c in found]}
        for key in ("zeros", "nan", "positive_infinities", "negative_infinities"):
            t[key] = self.varint()
        bins = self.histogram()
        finite = t["zeros"] + sum(bins.values())
        t["elements"] = finite + t["nan"] + t["positive_infinities"] + t["negative_infinities"]
        if finite:
            t["mean"] = float(sums[0] / finite)
            for end in ("min", "max"):
                check_bin(bins, t[end]["value"])
        return t


def check_bin(bins, value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != 0 and bits >> 14 not in bins:
        sys.exit(f"{value} is an extreme but no bin holds it")


def compare(where, got, expected):
    """Every key of `expected` is in `got` with the same value."""
    if isinstance(expected, dict):
        for key in expected:
            compare(f"{where}.{key}", got.get(key), expected[key])
    elif isinstance(expected, list) and isinstance(got, list) and len(got) == len(expected):
        for i, item in enumerate(expected):
            compare(f"{where}[{i}]", got[i], item)
    elif isinstance(expected, float) and isinstance(got, float):
        if abs(got - expected) > 1e-15 * abs(expected):
            sys.exit(f"{where}: show reports {got!r}, the file contains {expected!r}")
    elif got != expected:
        sys.exit(f"{where}: show reports {got!r}, the file contains {expected!r}")


def main(tare, path):
    with open(path, "rb") as file:
        data = file.read()
    reader = Reader(data)
    if data[:8] != b"TARECAL\n":
        sys.exit("no calibration file")
    reader.at = 8
    version = reader.varint()
    fingerprint = "%016x%016x" % (reader.take("Q"), reader.take("Q"))
    flags = reader.varint()
    expected = {"fingerprint": fingerprint, "settings": reader.text(), "unfinished": bool(flags & 2)}
    if flags & 2:
        reader.text()
    expected["inputs"] = reader.list(reader.input)
    expected["digests"] = reader.list(reader.digests)
    expected["functions"] = reader.list(lambda: {"name": reader.text(), "records": reader.varint()})
    expected["branches"] = reader.list(reader.side)
    expected["tensors"] = reader.list(reader.tensor)
    if version != 2 or reader.at != len(data) - 8:
        sys.exit(f"version {version}, {len(data) - 8 - reader.at} bytes left")
    shown = json.loads(subprocess.run([tare, "show", path, "--json"], check=True, capture_output=True).stdout)
    compare("", shown, expected)
    print(f"{len(expected['tensors'])} tensors, {len(expected['branches'])} sides of branches")


main(*sys.argv[1:])
