#!/usr/bin/env python3
"""Compares the outputs of two int8 forms of a network, before their speeds are compared (bench/peers.sh).

    output_agreement.py FLOAT OURS PEER

The files contain float32 outputs for the same examples: of the float model, of tare's int8 model and of the peer's.
Prints the signal-to-quantization-noise ratio (SQNR, decibels) of both int8 models to the float model and to each other.
Fails if the int8 models are further apart than 20 dB (1 % of the energy), or if one of them is more than 3 dB worse than
the other: then they do not compute the same network with the same precision.
"""
import array
import math
import sys

LEAST_AGREEMENT, MOST_DIFFERENCE = 20.0, 3.0


def read(path):
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def sqnr(reference, values):
    if len(reference) != len(values) or not reference:
        sys.exit(f"output_agreement.py: {len(values)} values, expected {len(reference)}")
    signal = sum(a * a for a in reference)
    noise = sum((a - b) ** 2 for a, b in zip(reference, values))
    return 10 * math.log10(signal / noise) if noise and signal else math.inf if signal else -math.inf


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    reference, ours, peer = map(read, sys.argv[1:])
    to_float, peer_to_float, between = sqnr(reference, ours), sqnr(reference, peer), sqnr(ours, peer)
    print(f"SQNR to the float model: tare {to_float:.1f} dB, peer {peer_to_float:.1f} dB; to each other {between:.1f} dB")
    if not between >= LEAST_AGREEMENT or abs(to_float - peer_to_float) > MOST_DIFFERENCE:
        sys.exit("output_agreement.py: the int8 models do not agree")


main()
