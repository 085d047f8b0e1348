"""fit_costs.py TABLE: writes tpu/cost/fitted.c to standard output: the cycles of each kind of work of tpu/cost/schedule.h, fitted to
what the TPU compiler says of the networks in TABLE (tests/tpu/compiler/networks.tsv, see tpu_costs.py), and to standard error
how well they fit. Needs NumPy and SciPy.

The fit minimizes relative errors of a network's cycles, networks of several layers counting twice; cycles that few networks
tell are held near those of PRIOR. Batch 1 is left out: the compiler has other algorithms for it."""
from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

WORKS = ("first dense", "dense", "convolutions", "others", "reads", "read tiles", "written tiles", "weight bytes", "shallow", "deep", "stem",
         "depthwise", "convolution tiles", "other tiles")
PRIOR = np.array([3000, 1200, 1300, 1800, 2800, 15, 8, .002, 1.2, 2, 18, 2.5, 3, .5])
HELD = np.array([.03, .03, .03, .5, .03, .03, .03, .03, .03, .03, .03, .03, .03, .03])  # how firmly; means are always the last but one
CHIPS = {  # clock, memory of the vector unit, size of a matrix unit
    "v5e": (1.5e9, 128, 128), "v6e": (1.75e9, 128, 256), "v5p": (1.75e9, 64, 128), "tpu7x": (1.9e9, 64, 256),
}
LANES, SUBLANES, INTEGER_ROWS = 128, 8, 32


def up(value: float, size: int) -> int:
    return math.ceil(value / size)


def tiles(batch: int, height: int, width: int, channels: int) -> int:
    return min(height * width * up(batch, SUBLANES) * up(channels, LANES), channels * height * up(batch, SUBLANES) * up(width, LANES),
               height * channels * up(width, SUBLANES) * up(batch, LANES), height * width * up(channels, SUBLANES) * up(batch, LANES))


def amounts(layers: str, form: str, batch: int, matrix: int) -> list[float]:
    """The work of a network, as tpu/cost/fused.c counts it."""
    work = dict.fromkeys(WORKS, 0.0)
    integer = form == "int8"
    sizes, *steps = layers.split()
    numbers = [int(size) for size in sizes.split("x")]
    height, width, channels = numbers if len(numbers) == 3 else (1, 1, numbers[0])

    def product(places: int, taps: int, depth: int, columns: int) -> None:
        rows = up(batch, INTEGER_ROWS if integer else SUBLANES)
        work["deep" if depth >= matrix else "shallow"] += places * taps * up(depth, matrix) * up(columns, matrix) * rows

    if integer or steps[0][0] != "f":
        work["reads"] += 1
        work["read tiles"] += tiles(batch, height, width, channels)
    else:
        work["first dense"] += 1
    for step in steps:
        values = [int(value) for value in step[1:].split(".") if value]
        if step[0] == "+":
            work["convolution tiles"] += tiles(batch, height, width, channels)
        elif step == "m":
            height = width = 1
            work["others"] += 1
            work["other tiles"] += tiles(batch, 1, 1, channels)
        elif step[0] == "f":
            work["dense"] += 1
            work["weight bytes"] += channels * values[0] * (1 if integer else 2)
            product(1, 1, channels, values[0])
            channels = values[0]
        else:
            size, stride = values[0], values[-1]
            height, width = up(height, stride), up(width, stride)
            work["convolutions"] += 1
            if step[0] == "d":
                work["depthwise"] += height * width * up(batch, SUBLANES) * up(channels, LANES) * size * size
            else:
                work["weight bytes"] += size * size * channels * values[1] * (1 if integer else 2)
                if channels <= 4:
                    work["stem"] += height * width * (up(batch, SUBLANES) if batch < 32 else up(batch, LANES) / 4)
                else:
                    product(height * width, size * size, channels, values[1])
                channels = values[1]
            work["convolution tiles"] += tiles(batch, height, width, channels)
    work["written tiles"] += tiles(batch, height, width, channels)
    return list(work.values())


def fit(rows: list[dict[str, str]], matrix: int) -> tuple[np.ndarray, np.ndarray]:
    """Cycles by work, and the relative errors."""
    work = np.array([amounts(row["layers"], row["form"], int(row["batch"]), matrix) for row in rows])
    cycles = np.array([float(row["cycles"]) for row in rows])
    weights = np.array([2 if len(row["layers"].split()) > 2 else 1 for row in rows])

    def errors(logarithms: np.ndarray) -> np.ndarray:
        return np.concatenate([weights * (np.log(work @ np.exp(logarithms)) - np.log(cycles)), HELD * (logarithms - np.log(PRIOR))])

    found = np.exp(least_squares(errors, np.log(PRIOR), loss="soft_l1", f_scale=.2).x)
    return found, work @ found / cycles


def main(path: Path) -> None:
    keys, *lines = path.read_text().splitlines()
    rows = [dict(zip(keys.split("\t"), line.split("\t"))) for line in lines]
    print("/* Written by tests/judges/fit_costs.py from tests/tpu/compiler/networks.tsv. */")
    print('#include "tpu/cost/fitted.h"\n')
    print("/* clang-format off */")
    print(f"/* {', '.join(WORKS)} */")
    print("const struct tare_tpu_fitted tare_tpu_fitted[TARE_TPU_FITTED_CHIPS] = {")
    for chip, (clock, megabytes, matrix) in CHIPS.items():
        print(f'    {{ "{chip}", {clock:g}, {megabytes << 20}, {matrix},')
        for form in ("bf16", "int8"):
            chosen = [row for row in rows if row["chip"] == chip and row["form"] == form and row["batch"] != "1"]
            cycles, ratios = fit(chosen, matrix)
            print(f"      {{ {', '.join(f'{value:.4g}' for value in cycles)} }}{',' if form == 'bf16' else ' },'}")
            print(f"{chip} {form}: {len(chosen)} networks, error {np.sqrt(np.mean(np.log(ratios) ** 2)):.3f}, {ratios.min():.2f} to {ratios.max():.2f}", file=sys.stderr)
    print("};")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
