/* Accuracy of outputs. Sums are in double. */
#include "eval/metrics.h"

#include <math.h>

/* Place of the largest element; the first on a tie, NaN never. */
static int64_t largest(const struct tare_tensor *tensor) {
    int64_t best = -1;
    double value = 0;
    for (int64_t i = 0; i < tensor->elements; i++) {
        double x = tare_tensor_get_f64(tensor, i);
        if (isnan(x) || (best >= 0 && !(x > value))) continue;
        best = i;
        value = x;
    }
    return best;
}

/* How many elements are larger than the label's; ties before it count. */
static int64_t rank_of(const struct tare_tensor *tensor, int64_t label) {
    double value = tare_tensor_get_f64(tensor, label);
    int64_t rank = 0;
    for (int64_t i = 0; i < tensor->elements; i++) {
        double x = tare_tensor_get_f64(tensor, i);
        rank += x > value || (x == value && i < label);
    }
    return rank;
}

static void add_label(struct tare_metrics *m, const struct tare_tensor *value, int64_t label) {
    int64_t rank;
    if (label < 0 || label >= value->elements) return;
    rank = rank_of(value, label);
    m->labelled++;
    m->top1 += rank == 0;
    m->top5 += rank < 5;
}

static void add_difference(struct tare_metrics *m, const struct tare_tensor *value, const struct tare_tensor *reference,
                           int64_t record) {
    for (int64_t i = 0; i < value->elements; i++) {
        double x = tare_tensor_get_f64(value, i), r = tare_tensor_get_f64(reference, i), d = x - r;
        if (!isfinite(x) || !isfinite(r)) {
            m->not_finite += !isfinite(x) && isfinite(r);
            continue;
        }
        m->signal += r * r;
        m->noise += d * d;
        m->dot += r * x;
        m->self += x * x;
        m->absolute_error += fabs(d);
        if (fabs(d) > m->max_abs_error) {
            m->max_abs_error = fabs(d);
            m->max_abs_record = record;
        }
    }
    m->elements += value->elements;
}

void tare_metrics_add(struct tare_metrics *m, const struct tare_tensor *value, const struct tare_tensor *reference,
                      int64_t label, int64_t record) {
    const struct tare_tensor *against = reference ? reference : value;
    m->records++;
    if (value->dtype == TARE_DT_STRING || against->elements != value->elements) return;
    add_label(m, value, label);
    m->agree += largest(value) == largest(against);
    add_difference(m, value, against, record);
}

double tare_metrics_sqnr_db(const struct tare_metrics *m) {
    if (m->noise <= 0) return INFINITY;
    return m->signal > 0 ? 10 * log10(m->signal / m->noise) : -INFINITY;
}

double tare_metrics_cosine(const struct tare_metrics *m) {
    double scale = sqrt(m->signal) * sqrt(m->self);
    if (scale > 0) return m->dot / scale;
    return m->signal == m->self ? 1 : 0;
}
