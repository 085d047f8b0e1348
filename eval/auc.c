/* Area under the ROC curve by placements. The placement of a positive is the share of negatives that score below it,
 * with ties counted half; that of a negative is the share of positives above it. Their mean is the AUC, and the
 * confidence interval and that of a difference follow from their variances and covariances (DeLong). Placements are
 * counted in halves, so that sums are exact. */
#include "eval/auc.h"
#include "eval/series.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

tare_status tare_auc_add(struct tare_auc *auc, double score, bool positive) {
    TARE_TRY(TARE_SPILL_GROW(auc->scored, auc->count, auc->capacity));
    TARE_TRY(TARE_SPILL_GROW(auc->order, auc->count, auc->order_capacity));
    TARE_TRY(TARE_SPILL_GROW(auc->halves, auc->count, auc->halves_capacity));
    auc->scored[auc->count++] = (struct tare_scored){ isnan(score) ? -INFINITY : score, positive };
    return TARE_OK;
}

void tare_auc_reset(struct tare_auc *auc) {
    tare_spill_free(auc->scored, auc->capacity, sizeof *auc->scored);
    tare_spill_free(auc->order, auc->order_capacity, sizeof *auc->order);
    tare_spill_free(auc->halves, auc->halves_capacity, sizeof *auc->halves);
    memset(auc, 0, sizeof *auc);
}

static void forget(const struct tare_auc *auc) {
    tare_spill_forget(auc->scored, auc->capacity, sizeof *auc->scored);
    tare_spill_forget(auc->halves, auc->halves_capacity, sizeof *auc->halves);
}

/* In a loop over all examples: gives back the pages of those before. */
static void forget_before(const struct tare_auc *auc, size_t i) {
    if (i % TARE_SPILL_AT_ONCE != 0) return;
    forget(auc);
    tare_spill_forget(auc->order, auc->order_capacity, sizeof *auc->order);
}

static int by_score(const void *a, const void *b) {
    const double x = ((const struct tare_ranked *)a)->value, y = ((const struct tare_ranked *)b)->value;
    return (x > y) - (x < y);
}

static int by_place(const void *a, const void *b) {
    const uint64_t x = ((const struct tare_ranked *)a)->place, y = ((const struct tare_ranked *)b)->place;
    return (x > y) - (x < y);
}

/* Replaces scores, in their order, by placements. */
static void place(const struct tare_auc *auc) {
    struct tare_ranked *order = auc->order;
    double below[2] = { 0, 0 };
    for (size_t first = 0, end; first < auc->count; first = end) {
        double tied[2] = { 0, 0 };
        for (end = first; end < auc->count && order[end].value == order[first].value; end++) {
            forget_before(auc, end);
            tied[order[end].place & 1] += 1;
        }
        for (size_t i = first; i < end; i++) {
            forget_before(auc, i);
            order[i].value =
                order[i].place & 1 ? 2 * below[0] + tied[0] : 2 * (auc->positives - below[1] - tied[1]) + tied[1];
        }
        below[0] += tied[0];
        below[1] += tied[1];
    }
}

void tare_auc_finish(struct tare_auc *auc) {
    struct tare_ranked *order = auc->order;
    if (!order) return;
    for (size_t i = 0; i < auc->count; i++) {
        forget_before(auc, i);
        order[i] = (struct tare_ranked){ auc->scored[i].score, 2 * i + auc->scored[i].positive };
        *(auc->scored[i].positive ? &auc->positives : &auc->negatives) += 1;
    }
    tare_spill_sort(order, auc->count, auc->order_capacity, sizeof *order, by_score);
    place(auc);
    tare_spill_sort(order, auc->count, auc->order_capacity, sizeof *order, by_place);
    for (size_t i = 0; i < auc->count; i++) {
        forget_before(auc, i);
        auc->halves[i] = order[i].value;
    }
    tare_spill_free(order, auc->order_capacity, sizeof *order);
    auc->order = NULL;
    forget(auc);
}

/* False when a class has no example. */
static bool is_placed(const struct tare_auc *auc) {
    return auc->positives > 0 && auc->negatives > 0;
}

static double value_of(const struct tare_auc *auc) {
    double halves = 0;
    for (size_t i = 0; i < auc->count; i++) {
        forget_before(auc, i);
        if (auc->scored[i].positive) halves += auc->halves[i];
    }
    return halves / (2 * auc->positives * auc->negatives);
}

double tare_auc_value(const struct tare_auc *auc) {
    const double value = is_placed(auc) ? value_of(auc) : NAN;
    forget(auc);
    return value;
}

/* Variance of the AUC of a, or of the difference of a and b (NULL: of a alone). */
static double variance(const struct tare_auc *a, const struct tare_auc *b) {
    const double mean = value_of(a) - (b ? value_of(b) : 0);
    double sums[2] = { 0, 0 };
    for (size_t i = 0; i < a->count; i++) {
        forget_before(a, i);
        if (b) forget_before(b, i);
        const double whole = 2 * (a->scored[i].positive ? a->negatives : a->positives);
        const double d = (a->halves[i] - (b ? b->halves[i] : 0)) / whole - mean;
        sums[a->scored[i].positive] += d * d;
    }
    return sums[1] / (a->positives * (a->positives - 1)) + sums[0] / (a->negatives * (a->negatives - 1));
}

void tare_auc_interval(double *low, double *high, const struct tare_auc *auc) {
    *low = *high = NAN;
    if (auc->positives > 1 && auc->negatives > 1) {
        const double value = value_of(auc), reach = tare_normal_quantile(1 - TARE_TAIL_95) * sqrt(variance(auc, NULL));
        *low = fmax(0, value - reach);
        *high = fmin(1, value + reach);
    }
    forget(auc);
}

static bool same_examples(const struct tare_auc *a, const struct tare_auc *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        forget_before(a, i);
        forget_before(b, i);
        if (a->scored[i].positive != b->scored[i].positive) return false;
    }
    return true;
}

static void find_paired(struct tare_paired *out, const struct tare_auc *a, const struct tare_auc *b, double tail) {
    const double z = tare_normal_quantile(1 - tail);
    *out = (struct tare_paired){ NAN, NAN, NAN, NAN, 0, z, (int64_t)a->count };
    if (!same_examples(a, b) || !is_placed(a)) return;
    out->loss = value_of(b) - value_of(a);
    if (fmin(a->positives, a->negatives) < TARE_FEWEST_EXAMPLES / 2) return;
    const double error = sqrt(variance(a, b));
    out->spread = error * sqrt((double)a->count);
    out->low = out->loss - z * error;
    out->high = out->loss + z * error;
}

void tare_auc_paired(struct tare_paired *out, const struct tare_auc *a, const struct tare_auc *b, double tail) {
    find_paired(out, a, b, tail);
    forget(a);
    forget(b);
}
