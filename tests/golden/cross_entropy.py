"""Cross entropy and its gradient against torch."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import Golden, ONE_ULP, FEW_ULPS

g = Golden()
rng = np.random.default_rng(41)
for rows, classes, scale in [(3, 5, 1), (2, 40, 6), (1, 1, 1)]:
    x = (rng.normal(size=(rows, classes)) * scale).astype(np.float32)
    classes_of = rng.integers(0, classes, rows)
    spread = rng.dirichlet(np.ones(classes), rows).astype(np.float32)
    for op, labels in [("SparseSoftmaxCrossEntropyWithLogits", classes_of),
                       ("SoftmaxCrossEntropyWithLogits", spread)]:
        t = torch.tensor(x.astype(float), requires_grad=True)
        loss = F.cross_entropy(t, torch.tensor(labels if labels.ndim == 1 else labels.astype(float)), reduction="none")
        loss.sum().backward()
        total = 1.0 if labels.ndim == 1 else labels.astype(float).sum(axis=1, keepdims=True)
        # torch scales the softmax by the sum of the labels, TensorFlow does not
        softmax = torch.softmax(t.detach(), 1).numpy()
        gradient = t.grad.numpy() - softmax * (total - 1.0)
        g.case(op, "T: float", [x, labels.astype(np.int64) if labels.ndim == 1 else labels],
               [loss.detach().numpy().astype(np.float32), gradient.astype(np.float32)], (1e-9, 0.0, 2))
g.save(__file__)
