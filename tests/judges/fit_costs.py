"""fit_costs.py COUNTER FOLDER: writes tpu/cost/fitted.c to standard output: the cycles of each kind of work of tpu/cost/schedule.h, fitted
to what the TPU compiler says of the layers and networks in layers.tsv and networks.tsv of tests/tpu/compiler and of the models FITTED in
models.tsv (tpu_costs.py, which leaves them in FOLDER). COUNTER is build/tests/helpers/network_work, which prints what the estimate counts in
them. To standard error: how well they fit, how well each is told by a fit without it (a fifth of the names left out at a time), and the
models HELD_OUT, which no fit sees. Needs NumPy and SciPy.

The fit minimizes relative errors of cycles and of the quotient int8 ÷ bf16. Cycles that few models tell are held near those of PRIOR,
which are what single ops of compiled programs cost. Batch 1 is left out: the compiler has other algorithms for it."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import spearmanr

WORKS = {  # how firmly the prior holds
    "loops": 4.5, "denses": .3, "first": .3, "convs": 2, "conv loops": 2, "bare": .9, "read tiles": 3, "written tiles": .3, "weight bytes": .3,
    "groups": .6, "latched": .5, "streamed": .5, "latched wide": .5, "streamed wide": .5, "tall": 1, "stem": .3, "turned": .3, "depthwise": .5,
    "conv tiles": .6, "inner tiles": 1, "loop tiles": .6, "reduced tiles": .6, "spread tiles": .6, "curve tiles": .6}
NARROW = [1830, 270, 3700, 256, 1830, 1866, 19, 1, .0005, 0, 2, 2, 0, 0, 2.2, 8, 25, 2, 8.2, 6, 22, 14, 9, 8]
WIDE = [2120, 1000, 2000, 1024, 1000, 0, 11.4, 1, .0005, 0, 0, 0, 10, 2, 1.06, 6, 25, 2, 4, 4, 3, 8, 8, 6]
NARROW_INTEGER = [1830, 270, 3700, 256, 1830, 1866, 19, 1, .0005, 1, 2, 4, 0, 0, 3.6, 8, 25, 2, 8.2, 6, 22, 14, 9, 8]
WIDE_INTEGER = [2120, 1900, 2000, 2048, 1000, 0, 11.4, 1, .0005, 8, 0, 0, 10, 4, 4.2, 6, 25, 2, 4, 4, 3, 8, 8, 6]
SHARED = [4400, 4400, 300, 4400, 300, 300]       # v5p: what one op writes for another goes through the memory that both cores read
PRIOR = {"narrow": np.array(NARROW + NARROW_INTEGER), "wide": np.array(WIDE + WIDE_INTEGER),
         "shared": np.array(SHARED + NARROW[len(SHARED):] + SHARED + NARROW_INTEGER[len(SHARED):])}
CHIPS = {  # clock, memory of the vector unit, prior: matrix units of 128 × 128 or of 256 × 256, two cores
    "v5e": (1.5e9, 128, "narrow"), "v6e": (1.75e9, 128, "wide"), "v5p": (1.75e9, 64, "shared"), "tpu7x": (1.9e9, 64, "wide"),
}
TABLES = Path(__file__).parents[1] / "tpu" / "compiler"
WEIGHTS = {"layer": .4, "network": .8, "model": 1.5}
RATIOS = 1.5    # weight of a quotient
FOLDS = 5


def read(table: Path) -> list[dict[str, str]]:
    keys, *lines = table.read_text().splitlines()
    return [dict(zip(keys.split("\t"), line.split("\t"), strict=True)) for line in lines]


def counted(counter: str, folder: Path) -> list[dict]:
    """Rows of all tables with their amounts of work: those of float groups, then those of integers."""
    rows = [row | {"kind": "layer", "network": row["layer"]} for row in read(TABLES / "layers.tsv")]
    rows += [row | {"kind": "network"} for row in read(TABLES / "networks.tsv")]
    for row in read(TABLES / "models.tsv"):
        rows.append(row | {"kind": "held out" if row["model"].startswith("other_") else "model", "network": row["model"]})
    work = {}
    for row in rows:
        key = folder / f"{row['network']}-{row['form']}", row["batch"]
        if key not in work:
            line = subprocess.run([counter, *key], check=True, capture_output=True, text=True).stdout.splitlines()[0]
            work[key] = np.array(line.split("\t")[1:], float)
        row["work"], row["cycles"] = work[key], float(row["cycles"])
    return rows


def pairs(rows: list[dict]) -> list[tuple[int, int]]:
    index = {(row["network"], row["form"], row["batch"], row["chip"]): i for i, row in enumerate(rows)}
    return [(i, index[name, "int8", batch, chip]) for (name, form, batch, chip), i in index.items() if form == "bf16" and (name, "int8", batch, chip) in index]


def fit(rows: list[dict], prior: np.ndarray) -> np.ndarray:
    used = prior > 0
    work = np.array([row["work"] for row in rows])[:, used]
    cycles = np.log([row["cycles"] for row in rows])
    weights = np.array([WEIGHTS[row["kind"]] for row in rows])
    real, integer = np.array(pairs(rows)).T
    firm = np.array([*WORKS.values()] * 2)[used]

    def errors(logarithms: np.ndarray) -> np.ndarray:
        wrong = np.log(work @ np.exp(logarithms)) - cycles
        return np.concatenate([weights * wrong, RATIOS * weights[real] * (wrong[integer] - wrong[real]), firm * (logarithms - np.log(prior[used]))])

    found = np.zeros(len(prior))
    found[used] = np.exp(least_squares(errors, np.log(prior[used]), loss="soft_l1", f_scale=.25).x)
    return found


def report(title: str, rows: list[dict]) -> None:
    wrong = np.array([row["told"] / row["cycles"] for row in rows])
    told = np.array([[rows[k]["cycles"] / rows[i]["cycles"], wrong[k] / wrong[i]] for i, k in pairs(rows)]).T
    print(f"{title}: {len(rows)} rows, {wrong.min():.2f} to {wrong.max():.2f} times the compiler's cycles; {len(told[0])} quotients int8 ÷ bf16: rank correlation "
          f"{spearmanr(told[0], told[0] * told[1])[0]:.2f}, median {np.median(told[1]):.2f}, {told[1].min():.2f} to {told[1].max():.2f}", file=sys.stderr)


def report_all(title: str, rows: list[dict]) -> None:
    for kind in ("layer", "network", "model", "held out"):
        for chips in (*((chip,) for chip in CHIPS), ("v5e", "v6e")):
            chosen = [row for row in rows if row["kind"] == kind and row["chip"] in chips and "told" in row]
            if len(pairs(chosen)) > 1:
                report(f"{title}{kind}, {' and '.join(chips)}", chosen)


def cross_validate(rows: list[dict]) -> None:
    """Tells the rows of each fifth of the names by a fit to the others."""
    for chip, (_, _, prior) in CHIPS.items():
        chosen = [row for row in rows if row["chip"] == chip and row["kind"] != "held out"]
        names = sorted({row["network"] for row in chosen})
        for first in range(FOLDS):
            out = set(names[first::FOLDS])
            fitted = fit([row for row in chosen if row["network"] not in out], PRIOR[prior])
            for row in chosen:
                if row["network"] in out:
                    row["told"] = row["work"] @ fitted


def main(counter: str, folder: Path) -> None:
    rows = [row for row in counted(counter, folder) if row["batch"] != "1"]
    cross_validate(rows)
    report_all("cross-validated ", rows)
    fitted = {chip: fit([row for row in rows if row["chip"] == chip and row["kind"] != "held out"], PRIOR[prior]) for chip, (_, _, prior) in CHIPS.items()}
    for row in rows:
        row["told"] = row["work"] @ fitted[row["chip"]]
    report_all("", rows)
    print("/* Written by tests/judges/fit_costs.py from tests/tpu/compiler. */")
    print('#include "tpu/cost/fitted.h"\n')
    print("/* clang-format off */")
    print(f"/* {', '.join(WORKS)} */")
    print("const struct tare_tpu_fitted tare_tpu_fitted[TARE_TPU_FITTED_CHIPS] = {")
    for chip, (clock, megabytes, _) in CHIPS.items():
        print(f'    {{ "{chip}", {clock:g}, {megabytes << 20},')
        for end, values in zip((",", " },"), np.split(fitted[chip], 2), strict=True):
            print(f"      {{ {', '.join(f'{value:.4g}' for value in values)} }}{end}")
    print("};")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
