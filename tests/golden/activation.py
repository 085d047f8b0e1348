"""Activations against torch in double, rounded; torch's elu and selu lose the digits of a small argument: numpy's expm1."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden, T, FEW_ULPS, ONE_ULP, from_bfloat16, bfloat16_bits

g = Golden()
rng = np.random.default_rng(7)
x = np.concatenate([rng.normal(size=40) * 5, rng.normal(size=16) * 30, rng.normal(size=8) * 1e-3])


def elu(v, below=1.0, above=1.0):
    a = v.numpy()
    return torch.from_numpy(np.where(a < 0, below * np.expm1(np.minimum(a, 0)), above * a))


def selu(v):
    return elu(v, 1.7580993408473766, 1.0507009873554805)


for name, attrs, f in [("Elu", "", elu), ("Selu", "", selu), ("Softplus", "", lambda v: torch.log1p(torch.exp(v))),
                       ("Softsign", "", F.softsign), ("Relu", "", F.relu), ("Relu6", "", F.relu6),
                       ("LeakyRelu", "; alpha: 0.125", lambda v: F.leaky_relu(v, 0.125))]:
    def run(v, f=f):
        return f(torch.from_numpy(v.astype(np.float64))).numpy()
    a = x.astype(np.float32).reshape(8, 8)
    g.case(name, "T: float" + attrs, [a], [run(a).astype(np.float32)], FEW_ULPS)
    g.case(name, "T: double" + attrs, [x], [run(x)], FEW_ULPS)
    h = x.astype(np.float16)
    g.case(name, "T: half" + attrs, [h], [run(h).astype(np.float16)], ONE_ULP)
    b = from_bfloat16(bfloat16_bits(x))
    g.case(name, "T: bfloat16" + attrs, [T("bfloat16", b)], [T("bfloat16", run(b))], ONE_ULP)
g.save(__file__)
