"""Writes tests/ops/optimizer.graphs: two steps of every optimizer on a small variable, by numpy in float64 with the
formulas of the papers, for resource variables and reference variables."""
import os

import numpy as np

VAR, GRADS = np.array([1.0, -2.0, 0.5, 3.0]), [np.array([0.5, 0.25, -1.0, 0.0]), np.array([-0.25, 0.5, -0.5, 2.0])]
text = ["# Optimizer steps; written by tests/golden/optimizer.py."]


def numbers(x):
    return " ".join(repr(float(v)) for v in np.asarray(x).reshape(-1))


def case(name, slots, scalars, order, step, attrs="", tag=""):
    """`slots`: names and initial values that follow the variable; `order`: operands after the slots, "g" is the gradient."""
    for prefix in ("ResourceApply", "Apply"):
        if prefix == "Apply" and name in ("KerasMomentum", "AdamWithAmsgrad"):
            continue
        text.append(f"\ngraph {prefix}{name}{tag}")
        text.append("types float double")
        names = ["var"] + [s for s, _ in slots]
        values = [VAR] + [np.full(4, float(v)) for _, v in slots]
        init = []
        for n, v in zip(names, values):
            if prefix == "Apply":
                text.append(f"{n}_0 = @[4] {numbers(v)}")
                text.append(f"{n} = VariableV2() shape: [4]; dtype: @")
                text.append(f"{n}_set = Assign({n}, {n}_0)")
                text.append(f"{n}_read = Identity({n})")
                init.append(f"{n}_set")
            else:
                text.append(f"var {n} @[4] {numbers(v)}")
                text.append(f"{n}_read = ReadVariableOp({n}) dtype: @")
        for i, g in enumerate(GRADS):
            text.append(f"g{i} = @[4] {numbers(g)}")
        for k, v in scalars.items():
            text.append(f"{k} = @[] {v!r}")
        for i in range(len(GRADS)):
            operands = ", ".join(names + [f"g{i}" if o == "g" else o for o in order])
            text.append(f"step{i} = {prefix}{name}({operands}) {attrs}".rstrip())
        for n in init:
            text.append(f"do {n}")
        state = [np.array(v) for v in values]
        for i, g in enumerate(GRADS):
            text.append(f"do step{i}")
            state = step(state, g, scalars)
            text.append("run " + " ".join(f"{n}_read" for n in names))
            for v in state:
                text.append(f"out @[4] {numbers(v)}")
            text.append("tol abs 1e-6 rel 1e-5")


def descent(s, g, k):
    return [s[0] - k["lr"] * g]


def momentum(nesterov):
    def step(s, g, k):
        a = k["m"] * s[1] + g
        return [s[0] - k["lr"] * (g + k["m"] * a if nesterov else a), a]
    return step


def keras(nesterov):
    def step(s, g, k):
        a = k["m"] * s[1] - k["lr"] * g
        return [s[0] + (k["m"] * a - k["lr"] * g if nesterov else a), a]
    return step


def adam(nesterov, ams=False):
    def step(s, g, k):
        rate = k["lr"] * np.sqrt(1 - k["p2"]) / (1 - k["p1"])
        m = k["b1"] * s[1] + (1 - k["b1"]) * g
        v = k["b2"] * s[2] + (1 - k["b2"]) * g ** 2
        top = k["b1"] * m + (1 - k["b1"]) * g if nesterov else m
        if ams:
            most = np.maximum(s[3], v)
            return [s[0] - rate * top / (np.sqrt(most) + k["eps"]), m, v, most]
        return [s[0] - rate * top / (np.sqrt(v) + k["eps"]), m, v]
    return step


def adamax(s, g, k):
    m = k["b1"] * s[1] + (1 - k["b1"]) * g
    v = np.maximum(k["b2"] * s[2], np.abs(g))
    return [s[0] - k["lr"] / (1 - k["p1"]) * m / (v + k["eps"]), m, v]


def adagrad(update, eps=False):
    def step(s, g, k):
        a = s[1] + (g ** 2 if update else 0)
        return [s[0] - k["lr"] * g / (np.sqrt(a) + (k["eps"] if eps else 0)), a]
    return step


def adadelta(s, g, k):
    a = k["rho"] * s[1] + (1 - k["rho"]) * g ** 2
    d = np.sqrt(s[2] + k["eps"]) / np.sqrt(a + k["eps"]) * g
    return [s[0] - k["lr"] * d, a, k["rho"] * s[2] + (1 - k["rho"]) * d ** 2]


def rms(s, g, k):
    a = k["rho"] * s[1] + (1 - k["rho"]) * g ** 2
    m = k["m"] * s[2] + k["lr"] * g / np.sqrt(a + k["eps"])
    return [s[0] - m, a, m]


def centered(s, g, k):
    mean = k["rho"] * s[1] + (1 - k["rho"]) * g
    a = k["rho"] * s[2] + (1 - k["rho"]) * g ** 2
    m = k["m"] * s[3] + k["lr"] * g / np.sqrt(a - mean ** 2 + k["eps"])
    return [s[0] - m, mean, a, m]


def ftrl(s, g, k):
    n, power = s[1] + g ** 2, k["power"]
    sigma = (n ** -power - s[1] ** -power) / k["lr"]
    z = s[2] + g + 2 * k.get("shrink", 0.0) * s[0] - sigma * s[0]
    w = -(z - np.sign(z) * k["l1"]) / (n ** -power / k["lr"] + 2 * k["l2"])
    return [np.where(np.abs(z) > k["l1"], w, 0.0), n, z]


def soft(x, rate, k):
    x = np.sign(x) * np.maximum(np.abs(x) - rate * k["l1"], 0) if k["l1"] > 0 else x
    return x / (1 + rate * k["l2"])


def proximal(s, g, k):
    return [soft(s[0] - k["lr"] * g, k["lr"], k)]


def proximal_adagrad(s, g, k):
    a = s[1] + g ** 2
    rate = k["lr"] / np.sqrt(a)
    return [soft(s[0] - rate * g, rate, k), a]


def power_sign(s, g, k):
    m = k["b"] * s[1] + (1 - k["b"]) * g
    return [s[0] - k["lr"] * g * np.exp(k["base"] * k["decay"] * np.sign(g) * np.sign(m)), m]


def add_sign(s, g, k):
    m = k["b"] * s[1] + (1 - k["b"]) * g
    return [s[0] - k["lr"] * g * (k["base"] + k["decay"] * np.sign(g) * np.sign(m)), m]


case("GradientDescent", [], {"lr": 0.125}, ["lr", "g"], descent)
case("GradientDescent", [], {"lr": 2.0}, ["lr", "g"], descent, tag=", a large step")
ADAM = {"p1": 0.9, "p2": 0.999, "lr": 0.01, "b1": 0.9, "b2": 0.999, "eps": 1e-4}
for nesterov in (False, True):
    attrs = f"use_nesterov: {str(nesterov).lower()}"
    tag = ", Nesterov's" if nesterov else ""
    case("Momentum", [("accum", 0.5)], {"lr": 0.125, "m": 0.75}, ["lr", "g", "m"], momentum(nesterov), attrs, tag)
    case("KerasMomentum", [("accum", 0.5)], {"lr": 0.125, "m": 0.75}, ["lr", "g", "m"], keras(nesterov), attrs, tag)
    case("Adam", [("m", 0.25), ("v", 0.5)], ADAM, ["p1", "p2", "lr", "b1", "b2", "eps", "g"], adam(nesterov), attrs, tag)
for first in (0.5, 0.01):
    tag = "" if first == 0.5 else ", from small slots"
    case("AdamWithAmsgrad", [("m", 0.25), ("v", first), ("vhat", 0.05)], ADAM,
         ["p1", "p2", "lr", "b1", "b2", "eps", "g"], adam(False, True), tag=tag)
    case("AdaMax", [("m", 0.25), ("v", first)], ADAM | {"b2": 0.9}, ["p1", "lr", "b1", "b2", "eps", "g"], adamax, tag=tag)
    case("Adadelta", [("accum", first), ("accum_update", 0.1)], {"lr": 0.5, "rho": 0.9, "eps": 0.001},
         ["lr", "rho", "eps", "g"], adadelta, tag=tag)
    case("RMSProp", [("ms", first), ("mom", 0.1)], {"lr": 0.1, "rho": 0.9, "m": 0.5, "eps": 0.01},
         ["lr", "rho", "m", "eps", "g"], rms, tag=tag)
    case("CenteredRMSProp", [("mg", 0.1), ("ms", first + 0.1), ("mom", 0.1)], {"lr": 0.1, "rho": 0.9, "m": 0.5, "eps": 0.01},
         ["lr", "rho", "m", "eps", "g"], centered, tag=tag)
    case("ProximalAdagrad", [("accum", first)], {"lr": 0.5, "l1": 0.25, "l2": 0.5}, ["lr", "l1", "l2", "g"],
         proximal_adagrad, tag=tag)
    case("PowerSign", [("m", first)], {"lr": 0.1, "base": 1.0, "decay": 0.5, "b": 0.9}, ["lr", "base", "decay", "b", "g"],
         power_sign, tag=tag)
    case("AddSign", [("m", first)], {"lr": 0.1, "base": 1.0, "decay": 0.5, "b": 0.9}, ["lr", "base", "decay", "b", "g"],
         add_sign, tag=tag)
for update in (True, False):
    attrs, tag = f"update_slots: {str(update).lower()}", "" if update else ", slots kept"
    case("Adagrad", [("accum", 0.5)], {"lr": 0.125}, ["lr", "g"], adagrad(update), attrs, tag)
    case("AdagradV2", [("accum", 0.5)], {"lr": 0.125, "eps": 0.01}, ["lr", "eps", "g"], adagrad(update, True), attrs, tag)
for l1 in (0.25, 0.0):
    tag = "" if l1 else ", no l1"
    case("Ftrl", [("accum", 0.5), ("linear", 0.1)], {"lr": 0.25, "l1": l1, "l2": 0.5, "power": -0.5},
         ["g", "lr", "l1", "l2", "power"], ftrl, tag=tag)
    case("FtrlV2", [("accum", 0.5), ("linear", 0.1)], {"lr": 0.25, "l1": l1, "l2": 0.5, "shrink": 0.125, "power": -0.5},
         ["g", "lr", "l1", "l2", "shrink", "power"], ftrl, tag=tag)
    case("ProximalGradientDescent", [], {"lr": 0.25, "l1": l1, "l2": 0.5}, ["lr", "l1", "l2", "g"], proximal, tag=tag)
text.append("""
graph a gradient of another shape
types float double half
var v @[4] 1 2 3 4
g = @[2] 1 2
lr = @[] 1
step = ResourceApplyProximalGradientDescent(v, lr, lr, lr, g)
do step
error variable 'v' has shape [4], the gradient [2]""")


# ---- steps on rows: the third row is named twice, the second not at all ----

ROWS, INDICES = np.array([[0.5, -0.25], [1.0, 0.5], [-0.5, 2.0]]), [2, 0, 2]


def rows(name, slots, scalars, order, step, attrs="", tag=""):
    for prefix in ("ResourceSparseApply", "SparseApply"):
        if prefix == "SparseApply" and name == "KerasMomentum":
            continue
        text.append(f"\ngraph {prefix}{name}{tag}")
        text.append("types float double half" if not tag else "types float double")
        names = ["var"] + [s for s, _ in slots]
        values = [np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]])] + [np.full((3, 2), float(v)) for _, v in slots]
        for n, v in zip(names, values):
            if prefix == "SparseApply":
                text.append(f"{n}_0 = @[3,2] {numbers(v)}")
                text.append(f"{n} = VariableV2() shape: [3, 2]; dtype: @")
                text.append(f"{n}_set = Assign({n}, {n}_0)")
                text.append(f"{n}_read = Identity({n})")
            else:
                text.append(f"var {n} @[3,2] {numbers(v)}")
                text.append(f"{n}_read = ReadVariableOp({n}) dtype: @")
        text.append(f"g = @[3,2] {numbers(ROWS)}")
        text.append("i = int32[3] 2 0 2")
        for k, v in scalars.items():
            text.append(f"{k} = @[] {v!r}")
        operands = ", ".join(names + ["g, i" if o == "g" else o for o in order])
        text.append(f"step = {prefix}{name}({operands}) {attrs}".rstrip())
        if prefix == "SparseApply":
            text.extend(f"do {n}_set" for n in names)
        text.append("do step")
        for g, i in zip(ROWS, INDICES):
            for v, after in zip(values, step([v[i].copy() for v in values], g, scalars)):
                v[i] = after
        text.append("run " + " ".join(f"{n}_read" for n in names))
        for v in values:
            text.append(f"out @[3,2] {numbers(v)}")
        text.append("tol abs 4e-3 rel 2e-3" if not tag else "tol abs 1e-6 rel 1e-5")


def ftrl_times_lr(s, g, k):
    w, n, z = ftrl([s[0], s[1], s[2] / k["lr"]], g, k)
    return [w, n, z * k["lr"]]


for tag in ("", ", exactly"):
    rows("Momentum", [("accum", 0.5)], {"lr": 0.125, "m": 0.75}, ["lr", "g", "m"], momentum(True), "use_nesterov: true", tag)
    rows("KerasMomentum", [("accum", 0.5)], {"lr": 0.125, "m": 0.75}, ["lr", "g", "m"], keras(False), "", tag)
    rows("Adadelta", [("accum", 0.5), ("accum_update", 0.1)], {"lr": 0.5, "rho": 0.9, "eps": 0.001}, ["lr", "rho", "eps", "g"],
         adadelta, "", tag)
    rows("RMSProp", [("ms", 0.5), ("mom", 0.1)], {"lr": 0.1, "rho": 0.9, "m": 0.5, "eps": 0.01}, ["lr", "rho", "m", "eps", "g"],
         rms, "", tag)
    rows("CenteredRMSProp", [("mg", 0.1), ("ms", 0.6), ("mom", 0.1)], {"lr": 0.1, "rho": 0.9, "m": 0.5, "eps": 0.01},
         ["lr", "rho", "m", "eps", "g"], centered, "", tag)
    rows("ProximalAdagrad", [("accum", 0.5)], {"lr": 0.5, "l1": 0.25, "l2": 0.5}, ["lr", "l1", "l2", "g"], proximal_adagrad, "", tag)
    rows("ProximalGradientDescent", [], {"lr": 0.25, "l1": 0.25, "l2": 0.5}, ["lr", "l1", "l2", "g"], proximal, "", tag)
    rows("Adagrad", [("accum", 0.5)], {"lr": 0.125}, ["lr", "g"], adagrad(True), "", tag)
    rows("AdagradV2", [("accum", 0.5)], {"lr": 0.125, "eps": 0.01}, ["lr", "eps", "g"], adagrad(False, True),
         "update_slots: false", tag)
    rows("Ftrl", [("accum", 0.5), ("linear", 0.1)], {"lr": 0.25, "l1": 0.25, "l2": 0.5, "power": -0.5},
         ["g", "lr", "l1", "l2", "power"], ftrl, "", tag)
    rows("FtrlV2", [("accum", 0.5), ("linear", 0.1)], {"lr": 0.25, "l1": 0.0, "l2": 0.5, "shrink": 0.125, "power": -0.5},
         ["g", "lr", "l1", "l2", "shrink", "power"], ftrl_times_lr, "multiply_linear_by_lr: true", tag)
text.append("""
graph a gradient for rows that are not there
var v float[2,2] 1 2 3 4
g = float[1,2] 1 2
h = float[1,3] 1 2 3
lr = float[] 1
i = int64[1] 2
z = int64[1] 0
step = ResourceSparseApplyProximalGradientDescent(v, lr, lr, lr, g, i)
wide = ResourceSparseApplyProximalGradientDescent(v, lr, lr, lr, h, z)
do step
error indices[0] = 2 is not in [0, 2)
do wide
error variable 'v' has shape [2,2], the gradient [2,3]""")
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops", "optimizer.graphs")
with open(path, "w") as out:
    out.write("\n".join(text) + "\n")
