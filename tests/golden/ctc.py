"""CTC decoders: the greedy one step by step, the beam search against the sum over every alignment (a beam wide enough
holds all prefixes, so the two must agree)."""
import itertools

import numpy as np

from golden import Golden

g = Golden()
rng = np.random.default_rng(11)
KINDS = {"float": np.float32, "double": np.float64}
LOOSE = {"float": (1e-5, 1e-5, 0), "double": (1e-12, 1e-12, 0)}


def sparse(rows):
    indices = [(b, t) for b, row in enumerate(rows) for t in range(len(row))]
    values = [v for row in rows for v in row]
    return [np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int64),
            np.array([len(rows), max([len(r) for r in rows], default=0)], np.int64)]


def greedy(x, lengths, merge, blank):
    rows, scores = [], []
    for b, n in enumerate(lengths):
        best = [int(np.argmax(x[t, b])) for t in range(n)]
        row, before = [], None
        for c in best:
            if c != blank and not (merge and c == before):
                row.append(c)
            before = c
        rows.append(row)
        scores.append([-sum(float(x[t, b, c]) for t, c in enumerate(best))])
    return sparse(rows) + [np.array(scores, x.dtype).reshape(-1, 1)]


def all_sums(x):
    """log probability of every labelling of one sequence [time, classes]."""
    logs = x.astype(np.float64) - np.log(np.exp(x.astype(np.float64)).sum(axis=1, keepdims=True))
    blank, sums = x.shape[1] - 1, {}
    for path in itertools.product(range(x.shape[1]), repeat=x.shape[0]):
        score = sum(logs[t, c] for t, c in enumerate(path))
        merged = tuple(c for c, _ in itertools.groupby(path) if c != blank)
        sums[merged] = np.logaddexp(sums.get(merged, -np.inf), score)
    return sorted(sums.items(), key=lambda kv: -kv[1])


for name, kind in KINDS.items():
    for steps, batch, classes in [(6, 3, 4), (1, 1, 2), (8, 2, 3)]:
        x = (rng.normal(size=(steps, batch, classes)) * 2).astype(kind)
        lengths = np.array([steps if b == 0 else max(0, steps - 2 * b) for b in range(batch)], np.int32)
        for merge in (False, True):
            for blank in (-1, 0):
                y = greedy(x, lengths, merge, blank % classes)
                g.case("CTCGreedyDecoder", f"T: {name}; merge_repeated: {str(merge).lower()}; blank_index: {blank}",
                       [x, lengths], y, LOOSE[name], dynamic=True)
    for steps, batch, classes, top in [(4, 2, 3, 3), (3, 1, 4, 2), (5, 2, 2, 1), (6, 1, 3, 5)]:
        x = (rng.normal(size=(steps, batch, classes)) * 2).astype(kind)
        lengths = np.array([steps - b for b in range(batch)], np.int32)
        found = [all_sums(x[:n, b]) for b, n in enumerate(lengths)]
        for merge in (False, True):
            rows = [[list(found[b][p][0]) for b in range(batch)] for p in range(top)]
            if merge:  # doubles are taken out of the labelling itself
                rows = [[[c for c, _ in itertools.groupby(row)] for row in path] for path in rows]
            parts = [sparse(r) for r in rows]
            outputs = [p[k] for k in range(3) for p in parts]
            outputs.append(np.array([[found[b][p][1] for p in range(top)] for b in range(batch)]).astype(kind))
            g.case("CTCBeamSearchDecoder", f"T: {name}; beam_width: 1000; top_paths: {top}; merge_repeated: {str(merge).lower()}",
                   [x, lengths], outputs, LOOSE[name], dynamic=True)
one = np.zeros((2, 1, 3), np.float32)
g.case("CTCGreedyDecoder", "T: float", [one, np.array([3], np.int32)], [], error="sequence_length(0) is 3")
g.case("CTCGreedyDecoder", "T: float", [one, np.array([1, 1], np.int32)], [], error="len(sequence_length)")
g.case("CTCGreedyDecoder", "T: float; blank_index: 3", [one, np.array([1], np.int32)], [], error="blank_index")
g.case("CTCBeamSearchDecoder", "T: float; beam_width: 1; top_paths: 2", [one, np.array([1], np.int32)], [], error="top_paths")
g.case("CTCBeamSearchDecoder", "T: float; beam_width: 9; top_paths: 8", [one, np.array([1], np.int32)], [], error="Less leaves")
g.save(__file__)
