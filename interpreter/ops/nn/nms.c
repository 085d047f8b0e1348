/* Non-maximum suppression: keeps the boxes with the highest scores and drops boxes that overlap a kept one too much.
 * Boxes are [y1, x1, y2, x2] with the corners in any order. Candidates are processed by descending score, ties by
 * ascending index. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"

#include "base/alloc.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the selection ---- */

struct candidate {
    float score;
    int64_t index;
    int64_t checked; /* number of selected boxes it has already been compared with */
};

struct suppression {
    const float *overlaps; /* overlap of each pair of boxes, `boxes` entries per row; NULL: computed from the corners */
    const float *boxes;
    int64_t stride; /* floats from one box to the next, or from one row of `overlaps` to the next */
    float iou_threshold, score_threshold;
    float soft; /* factor in the exponent for soft suppression; 0: hard suppression */
    int64_t most;
};

static float box_area(const float box[4]) {
    return fabsf(box[2] - box[0]) * fabsf(box[3] - box[1]);
}

static float overlap_1d(float a0, float a1, float b0, float b1) {
    const float first = fmaxf(fminf(a0, a1), fminf(b0, b1)), last = fminf(fmaxf(a0, a1), fmaxf(b0, b1));
    return fmaxf(last - first, 0);
}

/* Intersection over union; 0 if either box is empty. */
static float similarity(const struct suppression *s, int64_t i, int64_t j) {
    if (s->overlaps) return s->overlaps[i * s->stride + j];
    const float *a = s->boxes + i * s->stride, *b = s->boxes + j * s->stride;
    const float area_a = box_area(a), area_b = box_area(b);
    if (!(area_a > 0) || !(area_b > 0)) return 0;
    const float both = overlap_1d(a[0], a[2], b[0], b[2]) * overlap_1d(a[1], a[3], b[1], b[3]);
    return both / (area_a + area_b - both);
}

static bool is_before(const struct candidate *a, const struct candidate *b) {
    return a->score > b->score || (a->score == b->score && a->index < b->index);
}

/* Restores the heap property; the root is the next candidate. */
static void sift_down(struct candidate *heap, int64_t count, int64_t at) {
    for (;;) {
        int64_t best = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (is_before(&heap[child], &heap[best])) best = child;
        if (best == at) return;
        const struct candidate moved = heap[at];
        heap[at] = heap[best];
        heap[best] = moved;
        at = best;
    }
}

/* Compares the candidate with the boxes selected since its last check, newest first; returns false if it is
 * suppressed. */
static bool survives(struct candidate *candidate, const struct suppression *s, const struct candidate *selected,
                     int64_t count) {
    for (int64_t j = count - 1; j >= candidate->checked; j--) {
        const float iou = similarity(s, candidate->index, selected[j].index);
        if (s->soft == 0 && iou > s->iou_threshold) return false;
        if (s->soft != 0)
            candidate->score *= (float)tare_exp((double)(s->soft * iou * iou)); /* regardless of the threshold */
        if (candidate->score <= s->score_threshold) break;
    }
    candidate->checked = count;
    return true;
}

/* Fills selected[0 … most-1] and returns their number; `heap` has space for `count` candidates. */
static int64_t select_boxes(struct candidate *selected, struct candidate *heap, const struct suppression *s,
                            const float *scores, int64_t score_stride, int64_t count) {
    int64_t waiting = 0, chosen = 0;
    for (int64_t i = 0; i < count; i++) {
        const float score = scores[i * score_stride];
        if (score > s->score_threshold) heap[waiting++] = (struct candidate){ score, i, 0 };
    }
    for (int64_t i = waiting / 2 - 1; i >= 0; i--)
        sift_down(heap, waiting, i);
    while (chosen < s->most && waiting > 0) {
        struct candidate next = heap[0];
        const float original = next.score;
        const bool stays = survives(&next, s, selected, chosen);
        if (stays && next.score == original) selected[chosen++] = next;
        if (stays && next.score != original && next.score > s->score_threshold)
            heap[0] = next; /* reinserted with its reduced score */
        else
            heap[0] = heap[--waiting];
        sift_down(heap, waiting, 0);
    }
    return chosen;
}

/* ---- NonMaxSuppression, V2 … V5 ---- */

/* A row's aux: the inputs and outputs of the version. */
struct version {
    bool iou_is_attr, has_score_threshold, has_sigma, has_scores, has_count;
};
static const struct version versions[] = {
    { .iou_is_attr = true },
    { 0 },
    { .has_score_threshold = true },
    { .has_score_threshold = true, .has_count = true },
    { .has_score_threshold = true, .has_count = true, .has_scores = true, .has_sigma = true },
};

static tare_status scalar_of(float *out, const struct tare_tensor *tensor, const char *what) {
    if (tensor->elements != 1) return TARE_FAIL(TARE_SHAPE, "%s is not a scalar", what);
    *out = (float)tare_tensor_get_f64(tensor, 0);
    return TARE_OK;
}

static tare_status thresholds_of(struct suppression *s, const struct tare_kernel *kernel,
                                 const struct version *version) {
    float sigma = 0;
    const struct tare_tensor *inputs = kernel->inputs;
    s->score_threshold = -FLT_MAX;
    if (version->iou_is_attr)
        s->iou_threshold = tare_node_float(kernel->node, "iou_threshold", 0.5f);
    else
        TARE_TRY(scalar_of(&s->iou_threshold, &inputs[3], "iou_threshold"));
    if (version->has_score_threshold) TARE_TRY(scalar_of(&s->score_threshold, &inputs[4], "score_threshold"));
    if (version->has_sigma) TARE_TRY(scalar_of(&sigma, &inputs[5], "soft_nms_sigma"));
    if (!(s->iou_threshold >= 0 && s->iou_threshold <= 1))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "iou_threshold is %g (expected 0 to 1)", (double)s->iou_threshold);
    if (!(sigma >= 0)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "soft_nms_sigma is %g", (double)sigma);
    s->soft = sigma > 0 ? -0.5f / sigma : 0;
    return TARE_OK;
}

static tare_status check_boxes(const struct tare_shape *boxes, const struct tare_shape *scores) {
    if (boxes->rank >= 0 && (boxes->rank != 2 || (boxes->dims[1] >= 0 && boxes->dims[1] != 4)))
        return TARE_FAIL(TARE_SHAPE, "boxes must be [boxes, 4]");
    if (scores->rank >= 0 && scores->rank != 1)
        return TARE_FAIL(TARE_SHAPE, "scores has rank %d (expected 1)", scores->rank);
    if (boxes->rank == 2 && scores->rank == 1 && boxes->dims[0] >= 0 && scores->dims[0] >= 0 &&
        boxes->dims[0] != scores->dims[0])
        return TARE_FAIL(TARE_SHAPE, "scores has %lld elements (expected %lld)", (long long)scores->dims[0],
                         (long long)boxes->dims[0]);
    return TARE_OK;
}

static tare_status count_of(int64_t *out, const struct tare_tensor *tensor, const char *what) {
    if (tensor->elements != 1) return TARE_FAIL(TARE_SHAPE, "%s is not a scalar", what);
    *out = tare_tensor_get_i64(tensor, 0);
    if (*out < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s is %lld", what, (long long)*out);
    return TARE_OK;
}

static tare_status infer_nms(struct tare_infer *infer) {
    const struct version *version = infer->node->def->row->aux;
    TARE_TRY(check_boxes(&infer->inputs[0], &infer->inputs[1]));
    infer->outputs[0] = tare_shape_make(1, -1);
    if (tare_node_bool(infer->node, "pad_to_max_output_size", false) && infer->input_values[2])
        TARE_TRY(count_of(&infer->outputs[0].dims[0], infer->input_values[2], "max_output_size"));
    if (version->has_scores) infer->outputs[1] = infer->outputs[0];
    if (version->has_count) infer->outputs[version->has_scores ? 2 : 1] = tare_shape_scalar();
    return TARE_OK;
}

static tare_status store_selection(struct tare_kernel *kernel, const struct version *version,
                                   const struct candidate *selected, int64_t count, int64_t padded) {
    const struct tare_shape shape = { .rank = 1, .dims = { padded } }, scalar = tare_shape_scalar();
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &shape));
    for (int64_t i = 0; i < padded; i++)
        TARE_DATA(int32_t, &kernel->outputs[0])[i] = i < count ? (int32_t)selected[i].index : 0;
    if (version->has_scores) {
        const int dtype = kernel->inputs[1].dtype;
        TARE_TRY(tare_kernel_output(kernel, 1, dtype, &shape));
        for (int64_t i = 0; i < padded; i++) {
            const float score = i < count ? selected[i].score : 0;
            tare_floats_to((char *)kernel->outputs[1].data + (size_t)i * tare_dtype_size(dtype), dtype, &score, 1);
        }
    }
    if (!version->has_count) return TARE_OK;
    const size_t at = version->has_scores ? 2 : 1;
    TARE_TRY(tare_kernel_output(kernel, at, TARE_DT_INT32, &scalar));
    TARE_DATA(int32_t, &kernel->outputs[at])[0] = (int32_t)count;
    return TARE_OK;
}

static tare_status run_nms(struct tare_kernel *kernel) {
    const struct version *version = kernel->op->aux;
    const struct tare_tensor *boxes = &kernel->inputs[0];
    struct suppression s = { .stride = 4 };
    int64_t expected;
    TARE_TRY(check_boxes(&boxes->shape, &kernel->inputs[1].shape));
    TARE_TRY(count_of(&expected, &kernel->inputs[2], "max_output_size"));
    TARE_TRY(thresholds_of(&s, kernel, version));
    const int64_t count = boxes->shape.dims[0];
    s.most = expected < count ? expected : count;
    s.boxes = tare_floats_in(kernel, boxes);
    const float *scores = tare_floats_in(kernel, &kernel->inputs[1]);
    struct candidate *heap = TARE_NEW_ARRAY(kernel->scratch, struct candidate, (size_t)count);
    struct candidate *selected = TARE_NEW_ARRAY(kernel->scratch, struct candidate, (size_t)s.most);
    if (!s.boxes || !scores || !heap || !selected) return TARE_NO_MEMORY;
    const int64_t chosen = select_boxes(selected, heap, &s, scores, 1, count);
    const bool pad = tare_node_bool(kernel->node, "pad_to_max_output_size", false);
    return store_selection(kernel, version, selected, chosen, pad ? expected : chosen);
}

/* ---- NonMaxSuppressionWithOverlaps ---- */

static tare_status check_overlaps(const struct tare_shape *overlaps, const struct tare_shape *scores) {
    struct tare_shape square = tare_shape_make(2, (int64_t)-1, (int64_t)-1);
    if (scores->rank >= 0 && scores->rank != 1)
        return TARE_FAIL(TARE_SHAPE, "scores has rank %d (expected 1)", scores->rank);
    if (scores->rank == 1) square.dims[0] = square.dims[1] = scores->dims[0];
    if (overlaps->rank >= 0 && !tare_shape_compatible(overlaps, &square))
        return TARE_FAIL(TARE_SHAPE, "overlaps must be [boxes, boxes]");
    return TARE_OK;
}

static tare_status infer_overlaps(struct tare_infer *infer) {
    infer->outputs[0] = tare_shape_make(1, (int64_t)-1);
    return check_overlaps(&infer->inputs[0], &infer->inputs[1]);
}

static tare_status run_overlaps(struct tare_kernel *kernel) {
    static const struct version version = { 0 };
    const struct tare_tensor *scores = &kernel->inputs[1];
    struct suppression s = { .overlaps = kernel->inputs[0].data, .stride = scores->elements };
    int64_t expected;
    TARE_TRY(check_overlaps(&kernel->inputs[0].shape, &scores->shape));
    TARE_TRY(count_of(&expected, &kernel->inputs[2], "max_output_size"));
    TARE_TRY(scalar_of(&s.iou_threshold, &kernel->inputs[3], "overlap_threshold"));
    TARE_TRY(scalar_of(&s.score_threshold, &kernel->inputs[4], "score_threshold"));
    s.most = expected < scores->elements ? expected : scores->elements;
    struct candidate *heap = TARE_NEW_ARRAY(kernel->scratch, struct candidate, (size_t)scores->elements);
    struct candidate *selected = TARE_NEW_ARRAY(kernel->scratch, struct candidate, (size_t)s.most);
    if (!heap || !selected) return TARE_NO_MEMORY;
    const int64_t chosen = select_boxes(selected, heap, &s, scores->data, 1, scores->elements);
    return store_selection(kernel, &version, selected, chosen, chosen);
}

/* ---- CombinedNonMaxSuppression ---- */

struct combined {
    int64_t batch, boxes, per_box, classes; /* per_box: 1, or one box per class */
    int64_t per_class, total, rows;         /* limits; rows of the outputs */
    struct suppression suppression;
    const float *all_boxes, *scores;
    bool clip;
};

struct detection {
    float score;
    int64_t class, box, order;
};

static int compare_detections(const void *left, const void *right) {
    const struct detection *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static tare_status infer_combined(struct tare_infer *infer) {
    const struct tare_shape *scores = &infer->inputs[1];
    int64_t rows = -1;
    if (infer->inputs[0].rank >= 0 && infer->inputs[0].rank != 4)
        return TARE_FAIL(TARE_SHAPE, "boxes has rank %d (expected 4)", infer->inputs[0].rank);
    if (scores->rank >= 0 && scores->rank != 3)
        return TARE_FAIL(TARE_SHAPE, "scores has rank %d (expected 3)", scores->rank);
    const int64_t batch = infer->inputs[0].rank == 4 ? infer->inputs[0].dims[0] : -1;
    if (infer->input_values[3]) TARE_TRY(count_of(&rows, infer->input_values[3], "max_total_size"));
    if (tare_node_bool(infer->node, "pad_per_class", false)) {
        int64_t per_class = -1, most;
        if (infer->input_values[2]) TARE_TRY(count_of(&per_class, infer->input_values[2], "max_output_size_per_class"));
        const bool known = rows >= 0 && per_class >= 0 && scores->rank == 3 && scores->dims[2] >= 0;
        if (!known || !tare_mul_i64(&most, per_class, scores->dims[2]))
            rows = -1;
        else if (most < rows)
            rows = most;
    }
    infer->outputs[0] = (struct tare_shape){ .rank = 3, .dims = { batch, rows, 4 } };
    infer->outputs[1] = infer->outputs[2] = (struct tare_shape){ .rank = 2, .dims = { batch, rows } };
    infer->outputs[3] = (struct tare_shape){ .rank = 1, .dims = { batch } };
    return TARE_OK;
}

static tare_status open_combined(struct combined *c, const struct tare_kernel *kernel) {
    const struct tare_tensor *inputs = kernel->inputs;
    const struct tare_shape *boxes = &inputs[0].shape, *scores = &inputs[1].shape;
    if (boxes->rank != 4 || boxes->dims[3] != 4 || scores->rank != 3 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[1])
        return TARE_FAIL(TARE_SHAPE, "boxes must be [batch, boxes, classes or 1, 4], scores [batch, boxes, classes]");
    *c = (struct combined){ .batch = boxes->dims[0],
                            .boxes = boxes->dims[1],
                            .per_box = boxes->dims[2],
                            .classes = scores->dims[2],
                            .all_boxes = inputs[0].data,
                            .scores = inputs[1].data,
                            .clip = tare_node_bool(kernel->node, "clip_boxes", true) };
    if (c->per_box != 1 && c->per_box != c->classes)
        return TARE_FAIL(TARE_SHAPE, "boxes has %lld boxes a place (expected 1 or %lld)", (long long)c->per_box,
                         (long long)c->classes);
    TARE_TRY(count_of(&c->per_class, &inputs[2], "max_output_size_per_class"));
    TARE_TRY(count_of(&c->total, &inputs[3], "max_total_size"));
    TARE_TRY(scalar_of(&c->suppression.iou_threshold, &inputs[4], "iou_threshold"));
    TARE_TRY(scalar_of(&c->suppression.score_threshold, &inputs[5], "score_threshold"));
    if (!(c->suppression.iou_threshold >= 0 && c->suppression.iou_threshold <= 1))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "iou_threshold is %g (expected 0 to 1)",
                         (double)c->suppression.iou_threshold);
    int64_t most = 0;
    c->rows = c->total;
    if (tare_node_bool(kernel->node, "pad_per_class", false) && tare_mul_i64(&most, c->per_class, c->classes) &&
        most < c->rows)
        c->rows = most;
    c->suppression.most = c->per_class < c->boxes ? c->per_class : c->boxes;
    c->suppression.stride = 4 * c->per_box;
    return TARE_OK;
}

/* Detects all classes of one image into `found`, best first; returns their number. */
static int64_t detect(struct detection *found, const struct combined *c, int64_t image, struct candidate *heap,
                      struct candidate *selected) {
    int64_t count = 0;
    struct suppression s = c->suppression;
    for (int64_t class = 0; class < c->classes; class ++) {
        s.boxes = c->all_boxes + (image * c->boxes * c->per_box + (c->per_box == 1 ? 0 : class)) * 4;
        const float *scores = c->scores + image * c->boxes * c->classes + class;
        const int64_t chosen = select_boxes(selected, heap, &s, scores, c->classes, c->boxes);
        for (int64_t i = 0; i < chosen; i++, count++)
            found[count] = (struct detection){ selected[i].score, class, selected[i].index, count };
    }
    qsort(found, (size_t)count, sizeof *found, compare_detections);
    return count < c->rows ? count : c->rows;
}

static void store_detections(struct tare_kernel *kernel, const struct combined *c, int64_t image,
                             const struct detection *found, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = image * c->rows + i, class = c->per_box == 1 ? 0 : found[i].class;
        const float *box = c->all_boxes + ((image * c->boxes + found[i].box) * c->per_box + class) * 4;
        for (int k = 0; k < 4; k++)
            TARE_DATA(float, &kernel->outputs[0])
        [4 * at + k] = !c->clip ? box[k] : box[k] < 0 ? 0 : box[k] > 1 ? 1 : box[k];
        TARE_DATA(float, &kernel->outputs[1])[at] = found[i].score;
        TARE_DATA(float, &kernel->outputs[2])[at] = (float)found[i].class;
    }
    TARE_DATA(int32_t, &kernel->outputs[3])[image] = (int32_t)count;
}

static tare_status run_combined(struct tare_kernel *kernel) {
    struct combined c;
    int64_t most;
    TARE_TRY(open_combined(&c, kernel));
    const struct tare_shape boxes = { .rank = 3, .dims = { c.batch, c.rows, 4 } };
    const struct tare_shape rows = { .rank = 2, .dims = { c.batch, c.rows } };
    const struct tare_shape counts = { .rank = 1, .dims = { c.batch } };
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, &boxes));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_FLOAT, &rows));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_FLOAT, &rows));
    TARE_TRY(tare_kernel_output(kernel, 3, TARE_DT_INT32, &counts));
    for (int i = 0; i < 4; i++)
        if (kernel->outputs[i].elements > 0) memset(kernel->outputs[i].data, 0, tare_tensor_bytes(&kernel->outputs[i]));
    if (!tare_mul_i64(&most, c.suppression.most, c.classes)) return TARE_FAIL(TARE_NO_MEMORY, "too many boxes");
    struct candidate *heap = TARE_NEW_ARRAY(kernel->scratch, struct candidate, (size_t)c.boxes);
    struct candidate *selected = TARE_NEW_ARRAY(kernel->scratch, struct candidate, (size_t)c.suppression.most);
    struct detection *found = TARE_NEW_ARRAY(kernel->scratch, struct detection, (size_t)most);
    if (!heap || !selected || !found) return TARE_NO_MEMORY;
    for (int64_t image = 0; image < c.batch; image++)
        store_detections(kernel, &c, image, found, detect(found, &c, image, heap, selected));
    return TARE_OK;
}

#define ROW(op, version)                                                                                               \
    { .name = op, .infer = infer_nms, .run = run_nms, .aux = &versions[version] }

const struct tare_op tare_ops_nms[] = {
    ROW("NonMaxSuppression", 0),
    ROW("NonMaxSuppressionV2", 1),
    ROW("NonMaxSuppressionV3", 2),
    ROW("NonMaxSuppressionV4", 3),
    ROW("NonMaxSuppressionV5", 4),
    { .name = "CombinedNonMaxSuppression", .infer = infer_combined, .run = run_combined },
    { .name = "NonMaxSuppressionWithOverlaps", .infer = infer_overlaps, .run = run_overlaps },
    { 0 },
};
#undef ROW
