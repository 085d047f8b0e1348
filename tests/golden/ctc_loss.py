"""CTC losses and their derivatives by torch in double."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden

rng = np.random.default_rng(103)
g = Golden()
NEAR = {"float": (2e-5, 1e-5, 0), "double": (1e-10, 1e-10, 0)}
KINDS = {"float": np.float32, "double": np.float64}


def sparse(rows):
    indices = [(b, t) for b, row in enumerate(rows) for t in range(len(row))]
    return [np.array(indices, np.int64).reshape(-1, 2), np.array([v for row in rows for v in row], np.int32)]


def collapsed(row):
    return [v for i, v in enumerate(row) if i == 0 or row[i - 1] != v]


def losses(x, rows, lengths, blank):
    t = torch.tensor(x.astype(np.float64), requires_grad=True)
    flat = torch.tensor([v for row in rows for v in row] or [0], dtype=torch.long)
    y = F.ctc_loss(F.log_softmax(t, -1), flat, torch.tensor(lengths), torch.tensor([len(r) for r in rows]), blank=blank, reduction="none")
    y.sum().backward()
    return y.detach().numpy(), np.nan_to_num(t.grad.numpy())


for steps, classes, rows, lengths in [(6, 4, [[0, 1], [2, 2], [1]], [6, 5, 3]), (8, 5, [[3, 3, 1, 0], []], [8, 4]),
                                      (5, 3, [[1, 0, 1, 0, 1]], [5]), (3, 2, [[0]], [1]), (4, 6, [[4, 4, 4], [0, 1, 2]], [4, 4])]:
    x = rng.normal(size=(steps, len(rows), classes)) * 2
    for name, kind in KINDS.items():
        loss, grad = losses(x.astype(kind), rows, lengths, classes - 1)
        possible = np.isfinite(loss)
        grad = np.where(possible[None, :, None], grad, 0)
        g.case("CTCLoss", f"T: {name}", [x.astype(kind)] + sparse(rows) + [np.array(lengths, np.int32)], [loss.astype(kind), grad.astype(kind)],
               NEAR[name])
    short = [collapsed(r) for r in rows]
    loss, grad = losses(x.astype(np.float32), short, lengths, classes - 1)
    g.case("CTCLoss", "preprocess_collapse_repeated: true", [x.astype(np.float32)] + sparse(rows) + [np.array(lengths, np.int32)],
           [loss.astype(np.float32), grad.astype(np.float32)], NEAR["float"])
    moved = [[v + 1 for v in r] for r in rows]
    loss, grad = losses(x.astype(np.float32), moved, lengths, 0)
    grad = np.where(np.isfinite(loss)[None, :, None], grad, 0)
    g.case("CTCLossV2", None, [x.astype(np.float32)] + sparse(moved) + [np.array(lengths, np.int32)],
           [loss.astype(np.float32), grad.astype(np.float32)], NEAR["float"])
x = np.zeros((2, 1, 4), np.float32)
g.case("CTCLoss", None, [x] + sparse([[0, 1, 2]]) + [np.int32([2])], [], error="Not enough time for target transition sequence (required: 3, available: 2)")
g.case("CTCLoss", "ignore_longer_outputs_than_inputs: true", [x] + sparse([[0, 1, 2]]) + [np.int32([2])], [np.zeros(1, np.float32), x])
g.case("CTCLoss", None, [x] + sparse([[0, 3]]) + [np.int32([2])], [], error="Saw the blank, 3, among the labels")
g.case("CTCLoss", None, [x] + sparse([[4]]) + [np.int32([2])], [], error="No label may be greater than num_classes")
g.case("CTCLoss", None, [x] + sparse([[-1]]) + [np.int32([2])], [], error="All labels must be nonnegative")
g.case("CTCLoss", None, [x] + sparse([[1]]) + [np.int32([3])], [], error="sequence_length(0) is 3 (expected 0 to 2)")
g.case("CTCLoss", None, [x] + sparse([[], [1]]) + [np.int32([2])], [], error="labels_indices[0] is of batch entry 1")
g.save(__file__)
