#!/usr/bin/env python3
"""Golden of error-compensated rounding (quant/gptq_rounding.c), by the update rule of the GPTQ paper: the upper Cholesky
factor of the inverse Hessian, row after row. Writes gptq.values: cases of
int32 rows, columns, blocks (rows that share a scale, 0: all), bits, act_order; double damp; float real[rows][columns];
double hessian[rows][rows]; double scales[n_blocks][columns]; int8 expected[rows][columns]."""
import os
import struct

import numpy as np


def gptq(w, h, scale_of, qmax, damp, act_order):
    """w [rows, columns] doubles; returns integers."""
    rows, columns = w.shape
    order = np.argsort(-np.diag(h), kind="stable") if act_order else np.arange(rows)
    h = h[np.ix_(order, order)] + damp * np.mean(np.diag(h)) * np.eye(rows)
    u = np.linalg.cholesky(np.linalg.inv(h)).T  # inverse = u' u, u upper
    w = w[order].copy()
    q = np.zeros((rows, columns))
    for j in range(rows):
        scale = scale_of(order[j])
        x = w[j] / scale
        q[j] = np.clip(np.sign(x) * np.floor(np.abs(x) + 0.5), -qmax, qmax)
        error = (w[j] - q[j] * scale) / u[j, j]
        w[j + 1:] -= np.outer(u[j, j + 1:], error)
    out = np.zeros((rows, columns), np.int8)
    out[order] = q.astype(np.int8)
    return out


def case(rng, rows, columns, block, bits, damp, act_order, samples):
    mix = rng.normal(size=(rows, rows)) / np.sqrt(rows)
    x = np.maximum(rng.normal(size=(samples, rows)) @ mix + 0.3, 0)
    h = x.T @ x / samples
    w = rng.normal(size=(rows, columns)).astype(np.float32)
    qmax = 2 ** (bits - 1) - 1
    size = block or rows
    scales = np.array([np.abs(w[i:i + size].astype(np.float64)).max(axis=0) / qmax for i in range(0, rows, size)])
    q = gptq(w.astype(np.float64), h, lambda row: scales[row // size], qmax, damp, act_order)
    nearest = np.clip(np.round(w / np.repeat(scales, size, axis=0)[:rows]), -qmax, qmax)
    damped = h + damp * np.mean(np.diag(h)) * np.eye(rows)
    for k, n in ((q, "gptq"), (nearest, "nearest")):
        e = w - k * np.repeat(scales, size, axis=0)[:rows]
        print(rows, columns, block, bits, act_order, n, np.einsum("in,ij,jn->", e, damped, e))
    return struct.pack("<5id", rows, columns, block, bits, act_order, damp) + w.tobytes() + h.tobytes() + \
        scales.tobytes() + q.tobytes()


def main():
    rng = np.random.default_rng(20230206)
    cases = [case(rng, 12, 5, 0, 4, 0.01, 0, 200), case(rng, 40, 35, 0, 4, 0.01, 1, 400),
             case(rng, 70, 33, 32, 4, 0.1, 0, 500), case(rng, 24, 8, 0, 8, 0.01, 0, 100),
             case(rng, 33, 3, 0, 4, 0.01, 1, 20)]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gptq.values"), "wb") as f:
        f.write(struct.pack("<i", len(cases)) + b"".join(cases))


main()
