/* Counts by class over all positions of the examples of a record. */
#include "eval/positions.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* ---- shapes ---- */

/* Axes with several elements, without that of the examples. */
static int wide_axes(const struct tare_shape *shape, int64_t rows) {
    int count = 0;
    for (int d = shape->rank > 0 && shape->dims[0] == rows; d < shape->rank; d++)
        count += shape->dims[d] > 1;
    return count;
}

bool tare_positions_fit(int *classes, const struct tare_tensor *value, const struct tare_tensor *labels, int64_t rows) {
    const int64_t last = value->shape.rank > 0 ? value->shape.dims[value->shape.rank - 1] : 1;
    const bool numbers = tare_dtype_is_integer(value->dtype);
    if (rows < 1 || labels->elements <= rows || labels->dtype == TARE_DT_STRING || value->dtype == TARE_DT_STRING)
        return false;
    if (value->elements == labels->elements) {
        *classes = numbers ? 0 : 1;
        return numbers || wide_axes(&labels->shape, rows) > 1;
    }
    *classes = (int)last;
    return !numbers && last > 1 && last <= INT32_MAX && value->elements == labels->elements * last;
}

/* ---- counting ---- */

/* One model's output, and how a class follows from it. */
struct scores {
    const struct tare_tensor *value;
    int classes;
    double threshold; /* of one score */
};

/* -1 if all scores are NaN. */
static int64_t class_at(const struct scores *s, int64_t position) {
    int64_t best = -1;
    double most = NAN;
    if (s->classes == 0) return tare_tensor_get_i64(s->value, position);
    for (int64_t c = 0; c < s->classes; c++) {
        const double score = tare_tensor_get_f64(s->value, position * s->classes + c);
        if (isnan(score) || (best >= 0 && !(score > most))) continue;
        best = c;
        most = score;
    }
    return s->classes == 1 && best == 0 ? most >= s->threshold : best;
}

static int64_t label_at(const struct tare_tensor *labels, int classes, int64_t position) {
    const double label = tare_tensor_get_f64(labels, position);
    if (!(label >= 0)) return -1;
    if (classes == 1) return label > 0;
    return classes > 1 && label >= classes ? -1 : (int64_t)label;
}

static bool is_counted_class(int64_t class) {
    return class >= 0 && class < TARE_POSITION_CLASSES;
}

/* Whether there is a class that IoU does not count. */
static bool has_others(const struct tare_tensor *value, const struct tare_tensor *labels, int classes) {
    if (classes > TARE_POSITION_CLASSES) return true;
    for (int64_t i = 0; i < labels->elements && classes == 0; i++)
        if (tare_tensor_get_i64(value, i) >= TARE_POSITION_CLASSES || label_at(labels, 0, i) >= TARE_POSITION_CLASSES)
            return true;
    return false;
}

/* Intersections and unions of one example. */
struct overlap {
    int64_t both[TARE_POSITION_CLASSES], either[TARE_POSITION_CLASSES], labels[TARE_POSITION_CLASSES];
};

static void add_overlap(struct overlap *o, int64_t label, int64_t class) {
    if (is_counted_class(label)) o->either[label]++;
    if (is_counted_class(label)) o->labels[label]++;
    if (label == class && is_counted_class(label)) o->both[label]++;
    if (label != class && is_counted_class(class)) o->either[class]++;
}

/* Mean over the classes that occur, from `first` on. */
static double mean_iou(const int64_t *both, const int64_t *either, int first) {
    double sum = 0;
    int count = 0;
    for (int c = first; c < TARE_POSITION_CLASSES; c++) {
        if (!either[c]) continue;
        sum += (double)both[c] / (double)either[c];
        count++;
    }
    return count ? sum / count : NAN;
}

static tare_status add_example(struct tare_position_counts *counts, const struct overlap *o, int64_t count,
                               int64_t right, int first) {
    const double iou = mean_iou(o->both, o->either, first);
    TARE_TRY(tare_series_add(&counts->shares, (double)right / (double)count));
    TARE_TRY(tare_series_add(&counts->ious, isnan(iou) ? 1 : iou)); /* neither has the positive class */
    for (int c = 0; c < TARE_POSITION_CLASSES; c++) {
        counts->both[c] += o->both[c];
        counts->either[c] += o->either[c];
        counts->labels[c] += o->labels[c];
    }
    return TARE_OK;
}

/* Positions first … first+width-1. */
static tare_status count_example(struct tare_position_counts *counts, const struct scores *value,
                                 const struct scores *reference, const struct tare_tensor *labels, int64_t first,
                                 int64_t width) {
    struct overlap overlap = { { 0 }, { 0 }, { 0 } };
    int64_t count = 0, right = 0, before = 0;
    for (int64_t i = first; i < first + width; i++) {
        const int64_t label = label_at(labels, value->classes, i), class = class_at(value, i);
        if (label < 0) continue;
        count++;
        right += class == label;
        before += reference && class_at(reference, i) == label;
        add_overlap(&overlap, label, class);
    }
    if (!count) return TARE_OK;
    counts->count += count;
    counts->right += right;
    counts->examples++;
    counts->whole += right == count;
    counts->gained += reference && right == count && before != count;
    counts->lost += reference && right != count && before == count;
    return add_example(counts, &overlap, count, right, value->classes == 1);
}

static bool leaves_unit(const struct tare_tensor *value) {
    for (int64_t i = 0; i < value->elements; i++) {
        const double x = tare_tensor_get_f64(value, i);
        if (x < 0 || x > 1) return true;
    }
    return false;
}

tare_status tare_positions_add(struct tare_positions *p, const struct tare_tensor *value,
                               const struct tare_tensor *reference, const struct tare_tensor *labels, int64_t rows) {
    const int64_t width = labels->elements / rows;
    struct tare_position_counts *const counts[] = { &p->at_half, &p->at_zero };
    const double thresholds[] = { 0.5, 0 };
    int classes;
    if (!tare_positions_fit(&classes, value, labels, rows)) return TARE_OK;
    p->classes = classes;
    p->known = true;
    p->uncounted |= has_others(value, labels, classes);
    p->mask = wide_axes(&labels->shape, rows) > 1;
    p->outside_unit |= classes == 1 && leaves_unit(reference ? reference : value);
    for (int64_t r = 0; r < rows; r++)
        for (int t = 0; t < (classes == 1 ? 2 : 1); t++) {
            const struct scores own = { value, classes, thresholds[t] }, other = { reference, classes, thresholds[t] };
            TARE_TRY(count_example(counts[t], &own, reference ? &other : NULL, labels, r * width, width));
        }
    return TARE_OK;
}

void tare_positions_reset(struct tare_positions *p) {
    tare_series_reset(&p->at_half.shares);
    tare_series_reset(&p->at_half.ious);
    tare_series_reset(&p->at_zero.shares);
    tare_series_reset(&p->at_zero.ious);
    memset(p, 0, sizeof *p);
}

const struct tare_position_counts *tare_positions_counts(const struct tare_positions *p) {
    return p->classes == 1 && p->outside_unit ? &p->at_zero : &p->at_half;
}

double tare_positions_iou(const struct tare_positions *p) {
    const struct tare_position_counts *counts = tare_positions_counts(p);
    return p->known && !p->uncounted ? mean_iou(counts->both, counts->either, p->classes == 1) : NAN;
}

void tare_positions_constant(double *right, double *iou, const struct tare_positions *p) {
    const struct tare_position_counts *counts = tare_positions_counts(p);
    int64_t most = 0, classes = 0;
    for (int c = 0; c < TARE_POSITION_CLASSES; c++) {
        classes += counts->labels[c] > 0;
        if (counts->labels[c] > most) most = counts->labels[c];
    }
    *right = counts->count ? (double)most / (double)counts->count : NAN;
    *iou = p->classes == 1 ? (double)counts->labels[1] / (double)counts->count : *right / (double)classes;
}
