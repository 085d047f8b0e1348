/* Area under the ROC curve by ranks (Mann-Whitney): scores are sorted once, and each positive counts the negatives
 * below it. */
#include "eval/auc.h"
#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tare_status tare_auc_add(struct tare_auc *auc, double score, bool positive) {
    if (!TARE_GROW(auc->scored, auc->count, auc->capacity)) return TARE_NO_MEMORY;
    auc->scored[auc->count++] = (struct tare_scored){ isnan(score) ? -INFINITY : score, positive };
    return TARE_OK;
}

static int by_score(const void *a, const void *b) {
    double x = ((const struct tare_scored *)a)->score, y = ((const struct tare_scored *)b)->score;
    return (x > y) - (x < y);
}

double tare_auc_value(struct tare_auc *auc) {
    /* Counts half units, so that the sum is exact. */
    double won_halves = 0, negatives = 0, positives = 0;
    if (auc->count) qsort(auc->scored, auc->count, sizeof *auc->scored, by_score);
    for (size_t i = 0; i < auc->count;) {
        double tied_positives = 0, tied_negatives = 0;
        size_t end = i;
        for (; end < auc->count && auc->scored[end].score == auc->scored[i].score; end++)
            *(auc->scored[end].positive ? &tied_positives : &tied_negatives) += 1;
        won_halves += tied_positives * (2 * negatives + tied_negatives);
        positives += tied_positives;
        negatives += tied_negatives;
        i = end;
    }
    return positives > 0 && negatives > 0 ? won_halves / (2 * positives * negatives) : NAN;
}

void tare_auc_reset(struct tare_auc *auc) {
    tare_free(auc->scored);
    memset(auc, 0, sizeof *auc);
}
