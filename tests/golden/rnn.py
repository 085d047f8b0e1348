"""Fused recurrent cells by numpy in float64; the LSTM without peepholes also against torch."""
import numpy as np
import torch

from golden import Golden, T

rng = np.random.default_rng(14)
g = Golden()
f32 = np.float32
FLOATS = (3e-6, 1e-5, 0)
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def normal(*shape):
    return (rng.standard_normal(shape) * 0.5).astype(f32)


for batch, n, cell in ((3, 4, 5), (1, 7, 16), (2, 1, 1)):
    x, h, wru, wc = normal(batch, n), normal(batch, cell), normal(n + cell, 2 * cell), normal(n + cell, cell)
    bru, bc = normal(2 * cell), normal(cell)
    d = [v.astype(np.float64) for v in (x, h, wru, wc, bru, bc)]
    ru = sigmoid(np.concatenate(d[:2], 1) @ d[2] + d[4])
    r, u = ru[:, :cell], ru[:, cell:]
    c = np.tanh(np.concatenate([d[0], r * d[1]], 1) @ d[3] + d[5])
    g.case("GRUBlockCell", "T: float", [x, h, wru, wc, bru, bc], [v.astype(f32) for v in (r, u, c, u * d[1] + (1 - u) * c)], FLOATS,
           infer="[?,4] [2,5] [9,10] [9,5] [10] [5] -> [2,5] [2,5] [2,5] [2,5]")
g.case("GRUBlockCell", "T: float", [x, h, wru[:1], wc, bru, bc], [], error="w_ru has shape")


def step(x, cs, h, w, peep, b, forget, clip, order):
    z = np.concatenate([x, h], 1) @ w + b
    part = dict(zip(order, np.split(z, 4, 1)))
    i, f = sigmoid(part["i"] + peep[0] * cs), sigmoid(part["f"] + forget + peep[1] * cs)
    ci = np.tanh(part["c"])
    new = ci * i + cs * f
    if clip > 0:
        new = np.clip(new, -clip, clip)
    o = sigmoid(part["o"] + peep[2] * new)
    co = np.tanh(new)
    return [i, new, f, o, ci, co, co * o]


def arrays(batch, n, cell):
    return [normal(batch, cell), normal(batch, cell), normal(n + cell, 4 * cell), normal(cell), normal(cell), normal(cell),
            normal(4 * cell)]


for peephole in (False, True):
    for clip, forget in ((3.0, 1.0), (0.2, 0.5), (-1.0, 0.0)):
        batch, n, cell, time = 2, 3, 5, 4
        rest = arrays(batch, n, cell)
        cs, h, w, *peep, b = [v.astype(np.float64) for v in rest]
        peep = peep if peephole else [np.zeros(cell)] * 3
        x = normal(batch, n)
        common = f"T: float; cell_clip: {clip}; use_peephole: {str(peephole).lower()}"
        out = step(x, cs, h, w, peep, b, forget, clip, "icfo")
        g.case("LSTMBlockCell", common + f"; forget_bias: {forget}", [x, *rest], [v.astype(f32) for v in out], FLOATS)
        xs = normal(time, batch, n)
        for op, order, bias in (("BlockLSTM", "icfo", forget), ("BlockLSTMV2", "ifco", 0.0)):
            for steps in (time, 2, 0):
                outs, c, s = [np.zeros((time, batch, cell)) for _ in range(7)], cs, h
                for t in range(steps):
                    got = step(xs[t], c, s, w, peep, b, bias, clip, order)
                    for k in range(7):
                        outs[k][t] = got[k]
                    c, s = got[1], got[6]
                if op == "BlockLSTMV2" and not peephole and clip < 0 and steps == time:  # torch's gates: i, f, c, o as here
                    lstm = torch.nn.LSTM(n, cell).double()
                    with torch.no_grad():
                        lstm.weight_ih_l0.copy_(torch.from_numpy(w[:n].T.copy()))
                        lstm.weight_hh_l0.copy_(torch.from_numpy(w[n:].T.copy()))
                        lstm.bias_ih_l0.copy_(torch.from_numpy(b))
                        lstm.bias_hh_l0.zero_()
                        y, _ = lstm(torch.from_numpy(xs.astype(np.float64)), (torch.from_numpy(h)[None], torch.from_numpy(cs)[None]))
                    assert np.abs(y.numpy() - outs[6]).max() < 1e-9
                g.case(op, common + (f"; forget_bias: {forget}" if op == "BlockLSTM" else ""), [np.int64(steps), xs, *rest],
                       [v.astype(f32) for v in outs], FLOATS)
rest16 = [v.astype(np.float16) for v in rest]
x16 = x.astype(np.float16)
out = step(x16.astype(float), *[v.astype(float) for v in rest16[:3]], [np.zeros(cell)] * 3, rest16[6].astype(float), 1.0, 3.0, "icfo")
g.case("LSTMBlockCell", "T: half", [x16, *rest16], [v.astype(np.float16) for v in out], (2e-3, 2e-3, 0))
g.case("BlockLSTM", "T: float", [np.int64(5), xs, *rest], [], error="seq_len_max is 5")
g.case("LSTMBlockCell", "T: float", [x, rest[0][:1], *rest[1:]], [], error="cs_prev has shape")
g.save(__file__)
