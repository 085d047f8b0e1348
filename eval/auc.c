/* Area under the ROC curve by placements. The placement of a positive is the share of negatives that score below it,
 * with ties counted half; that of a negative is the share of positives above it. Their mean is the AUC, and the
 * confidence interval and the paired test follow from their variances and covariances (DeLong). Placements are counted
 * in halves, so that sums are exact. */
#include "eval/auc.h"
#include "base/alloc.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const double Z_95 = 1.959963984540054; /* the 97.5 % point of the normal distribution */

tare_status tare_auc_add(struct tare_auc *auc, double score, bool positive) {
    if (!TARE_GROW(auc->scored, auc->count, auc->capacity)) return TARE_NO_MEMORY;
    auc->scored[auc->count++] = (struct tare_scored){ isnan(score) ? -INFINITY : score, positive };
    return TARE_OK;
}

void tare_auc_reset(struct tare_auc *auc) {
    tare_free(auc->scored);
    memset(auc, 0, sizeof *auc);
}

/* An example with its place in the order of adding. */
struct ranked {
    double score;
    size_t at;
};

static int by_score(const void *a, const void *b) {
    const double x = ((const struct ranked *)a)->score, y = ((const struct ranked *)b)->score;
    return (x > y) - (x < y);
}

/* Placements in halves, in the order of adding: for positives, twice the negatives below; for negatives, twice the
 * positives above. */
struct placements {
    double *halves;
    double positives, negatives;
};

static void place_group(struct placements *out, const struct tare_auc *auc, const struct ranked *order, size_t first,
                        size_t end, double below[2]) {
    double tied[2] = { 0, 0 };
    for (size_t i = first; i < end; i++)
        tied[auc->scored[order[i].at].positive] += 1;
    for (size_t i = first; i < end; i++) {
        const bool positive = auc->scored[order[i].at].positive;
        out->halves[order[i].at] =
            positive ? 2 * below[0] + tied[0] : 2 * (out->positives - below[1] - tied[1]) + tied[1];
    }
    below[0] += tied[0];
    below[1] += tied[1];
}

/* False without memory, or when a class has no example. */
static bool place(struct placements *out, const struct tare_auc *auc) {
    struct ranked *order = tare_calloc(auc->count + 1, sizeof *order);
    double below[2] = { 0, 0 };
    *out = (struct placements){ .halves = tare_calloc(auc->count + 1, sizeof *out->halves) };
    for (size_t i = 0; order && i < auc->count; i++) {
        order[i] = (struct ranked){ auc->scored[i].score, i };
        *(auc->scored[i].positive ? &out->positives : &out->negatives) += 1;
    }
    if (order && out->halves && out->positives > 0 && out->negatives > 0) {
        qsort(order, auc->count, sizeof *order, by_score);
        for (size_t i = 0, end; i < auc->count; i = end) {
            for (end = i + 1; end < auc->count && order[end].score == order[i].score;)
                end++;
            place_group(out, auc, order, i, end, below);
        }
        tare_free(order);
        return true;
    }
    tare_free(order);
    tare_free(out->halves);
    out->halves = NULL;
    return false;
}

static double value_of(const struct placements *p, const struct tare_auc *auc) {
    double halves = 0;
    for (size_t i = 0; i < auc->count; i++)
        if (auc->scored[i].positive) halves += p->halves[i];
    return halves / (2 * p->positives * p->negatives);
}

double tare_auc_value(const struct tare_auc *auc) {
    struct placements p;
    double value;
    if (!place(&p, auc)) return NAN;
    value = value_of(&p, auc);
    tare_free(p.halves);
    return value;
}

/* Variance of the AUC of a, or of the difference of a and b (NULL: of a alone). */
static double variance(const struct tare_auc *auc, const struct placements *a, const struct placements *b) {
    const double mean = value_of(a, auc) - (b ? value_of(b, auc) : 0);
    double sums[2] = { 0, 0 };
    for (size_t i = 0; i < auc->count; i++) {
        const double whole = 2 * (auc->scored[i].positive ? a->negatives : a->positives);
        const double d = (a->halves[i] - (b ? b->halves[i] : 0)) / whole - mean;
        sums[auc->scored[i].positive] += d * d;
    }
    return sums[1] / (a->positives * (a->positives - 1)) + sums[0] / (a->negatives * (a->negatives - 1));
}

void tare_auc_interval(double *low, double *high, const struct tare_auc *auc) {
    struct placements p;
    *low = *high = NAN;
    if (!place(&p, auc)) return;
    if (p.positives > 1 && p.negatives > 1) {
        const double value = value_of(&p, auc), reach = Z_95 * sqrt(variance(auc, &p, NULL));
        *low = fmax(0, value - reach);
        *high = fmin(1, value + reach);
    }
    tare_free(p.halves);
}

static bool same_examples(const struct tare_auc *a, const struct tare_auc *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->scored[i].positive != b->scored[i].positive) return false;
    return true;
}

double tare_auc_paired_p(const struct tare_auc *a, const struct tare_auc *b) {
    struct placements p, q;
    double result = NAN;
    if (!same_examples(a, b) || !place(&p, a)) return NAN;
    if (place(&q, b)) {
        if (p.positives > 1 && p.negatives > 1) {
            const double spread = variance(a, &p, &q), difference = value_of(&p, a) - value_of(&q, b);
            result = spread > 0 ? erfc(fabs(difference) / sqrt(2 * spread)) : difference == 0 ? 1 : 0;
        }
        tare_free(q.halves);
    }
    tare_free(p.halves);
    return result;
}
