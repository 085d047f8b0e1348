"""Non-maximum suppression by plain loops in float64."""
import numpy as np

from golden import Golden, T

rng = np.random.default_rng(13)
g = Golden()
f32 = np.float32


def iou(a, b):
    area = lambda v: abs(v[2] - v[0]) * abs(v[3] - v[1])
    if area(a) <= 0 or area(b) <= 0:
        return 0.0
    side = lambda i: max(0.0, min(max(a[i], a[i + 2]), max(b[i], b[i + 2])) - max(min(a[i], a[i + 2]), min(b[i], b[i + 2])))
    both = side(0) * side(1)
    return both / (area(a) + area(b) - both)


def hard(boxes, scores, most, threshold, lowest):
    order = sorted((i for i in range(len(scores)) if scores[i] > lowest), key=lambda i: (-scores[i], i))
    chosen = []
    for i in order:
        if len(chosen) < most and all(iou(boxes[i], boxes[j]) <= threshold for j in chosen):
            chosen.append(i)
    return chosen


def soft(boxes, scores, most, threshold, lowest, sigma):
    """Every round takes the best of what is left after all chosen boxes have lowered it."""
    left = {i: float(s) for i, s in enumerate(scores) if s > lowest}
    chosen, out = [], []
    while left and len(chosen) < most:
        i = min(left, key=lambda j: (-left[j], j))
        s = left.pop(i)
        if s <= lowest:
            continue
        chosen.append(i)
        out.append(s)
        for j in left:
            v = iou(boxes[i], boxes[j])
            left[j] *= np.exp(-0.5 / sigma * v * v)  # whatever the threshold
    return chosen, out


def random_boxes(n):
    corner = rng.uniform(0, 1, (n, 2))
    size = rng.uniform(0.1, 0.5, (n, 2))
    boxes = np.concatenate([corner, corner + size], 1).astype(f32)
    boxes[::3] = boxes[::3][:, [2, 3, 0, 1]]  # corners the other way round
    return boxes


def pad(v, n, t):
    return np.concatenate([np.asarray(v, t), np.zeros(n - len(v), t)])


f, i32 = f32, np.int32
for n, most, threshold, lowest in [(30, 10, 0.5, 0.2), (40, 40, 0.3, -1.0), (1, 3, 0.5, 0.0), (25, 5, 0.0, 0.5), (20, 0, 0.5, 0.0),
                                   (0, 4, 0.5, 0.0)]:
    boxes, scores = random_boxes(n), rng.uniform(0, 1, n).astype(f32)
    scores[2::5] = scores[1::5][:len(scores[2::5])]  # equal scores
    sel, all_sel = hard(boxes.astype(float), scores, most, threshold, lowest), hard(boxes.astype(float), scores, most, threshold, -1e30)
    m = i32(most)
    g.case("NonMaxSuppression", f"iou_threshold: {threshold}", [boxes, scores, m], [np.array(all_sel, i32)], dynamic=True)
    g.case("NonMaxSuppressionV2", "T: float; T_threshold: float", [boxes, scores, m, f(threshold)], [np.array(all_sel, i32)], dynamic=True)
    g.case("NonMaxSuppressionV3", "T: float; T_threshold: float", [boxes, scores, m, f(threshold), f(lowest)], [np.array(sel, i32)],
           dynamic=True)
    g.case("NonMaxSuppressionV4", "T: float; T_threshold: float", [boxes, scores, m, f(threshold), f(lowest)],
           [np.array(sel, i32), i32(len(sel))], dynamic=True)
    g.case("NonMaxSuppressionV4", "T: float; T_threshold: float; pad_to_max_output_size: true",
           [boxes, scores, m, f(threshold), f(lowest)], [pad(sel, most, i32), i32(len(sel))],
           infer=f"[?,4] [?] []* [] [] -> [{most}] []")
    g.case("NonMaxSuppressionV5", "T: float", [boxes, scores, m, f(threshold), f(lowest), f(0)],
           [np.array(sel, i32), scores[sel], i32(len(sel))], dynamic=True)
    overlaps = rng.uniform(0, 1, (n, n)).astype(f32)
    picked = []
    for i in sorted((i for i in range(n) if scores[i] > lowest), key=lambda i: (-scores[i], i)):
        if len(picked) < most and all(overlaps[i, j] <= threshold for j in picked):
            picked.append(i)
    g.case("NonMaxSuppressionWithOverlaps", None, [overlaps, scores, m, f(threshold), f(lowest)], [np.array(picked, i32)], dynamic=True)
    for sigma in (0.5, 0.1):
        low = max(lowest, 0.0)
        sel, values = soft(boxes.astype(float), scores, most, threshold, low, sigma)
        g.case("NonMaxSuppressionV5", "T: float; pad_to_max_output_size: true", [boxes, scores, m, f(threshold), f(low), f(sigma)],
               [pad(sel, most, i32), pad(values, most, f32), i32(len(sel))], (1e-5, 1e-5, 0))
boxes, scores = random_boxes(5), rng.uniform(0, 1, 5).astype(f32)
g.case("NonMaxSuppressionV3", "T: half; T_threshold: float",
       [boxes.astype(np.float16), scores.astype(np.float16), i32(3), f(0.5), f(0)],
       [np.array(hard(boxes.astype(np.float16).astype(float), scores.astype(np.float16), 3, 0.5, 0), i32)], dynamic=True)
g.case("NonMaxSuppressionV3", "T: float; T_threshold: float", [boxes, scores, i32(3), f(1.5), f(0)], [], error="iou_threshold is 1.5")
g.case("NonMaxSuppressionV3", "T: float; T_threshold: float", [boxes, scores[:4], i32(3), f(0.5), f(0)], [], error="4 elements (expected 5)")
g.case("NonMaxSuppressionV3", "T: float; T_threshold: float", [boxes, scores, i32(-1), f(0.5), f(0)], [], error="max_output_size is -1")

for q, classes, per_class, total, per_pad, clip in [(1, 3, 4, 8, False, True), (3, 3, 5, 30, True, False), (1, 1, 10, 4, False, True),
                                                    (2, 2, 2, 3, True, True)]:
    n, batch = 15, 2
    boxes = np.stack([np.stack([random_boxes(n) for _ in range(q)], 1) for _ in range(batch)])
    scores = rng.uniform(0, 1, (batch, n, classes)).astype(f32)
    rows = min(total, per_class * classes) if per_pad else total
    ob, os_, oc, ov = np.zeros((batch, rows, 4), f32), np.zeros((batch, rows), f32), np.zeros((batch, rows), f32), np.zeros(batch, i32)
    for b in range(batch):
        found = []
        for c in range(classes):
            own = boxes[b, :, c if q > 1 else 0]
            found += [(-scores[b, i, c], len(found) + k, c, own[i]) for k, i in
                      enumerate(hard(own.astype(float), scores[b, :, c], per_class, 0.4, 0.3))]
        found.sort(key=lambda v: v[:2])
        ov[b] = min(rows, len(found))
        for k, (s, _, c, box) in enumerate(found[:rows]):
            ob[b, k], os_[b, k], oc[b, k] = np.clip(box, 0, 1) if clip else box, -s, c
    g.case("CombinedNonMaxSuppression", f"pad_per_class: {str(per_pad).lower()}; clip_boxes: {str(clip).lower()}",
           [boxes, scores, i32(per_class), i32(total), f(0.4), f(0.3)], [ob, os_, oc, ov])
g.case("CombinedNonMaxSuppression", None, [boxes[:, :, :1], scores[:, :4], i32(1), i32(1), f(0.5), f(0)], [], error="boxes must be")
g.save(__file__)
