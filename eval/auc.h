/* Area under the ROC curve of a two-class score: the probability that a random positive scores above a random negative,
 * with ties counted half (the Mann-Whitney statistic), its confidence interval and that of the difference of two models
 * by DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988). */
#ifndef TARE_EVAL_AUC_H
#define TARE_EVAL_AUC_H

#include "base/status.h"
#include "eval/significance.h"

#include <stdbool.h>
#include <stdint.h>

/* Initialise with zeros. Stores every score, in the order of adding, and room for ranking them, so that the figures
 * need no memory: 40 bytes per example, 24 after tare_auc_finish, of many examples in unnamed files. Thread-compatible:
 * the figures only read. */
struct tare_auc {
    struct tare_scored {
        double score;
        bool positive;
    } * scored;
    struct tare_ranked {
        double value;   /* a score, then its placement */
        uint64_t place; /* twice the number in the order of adding, and 1 more of a positive */
    } * order;          /* until tare_auc_finish */
    double *halves; /* placements in the order of adding: for positives twice the negatives below, ties counted once;
                     * for negatives twice the positives above */
    double positives, negatives;
    size_t count, capacity, order_capacity, halves_capacity;
};

/* Scores that are NaN rank below all others. */
tare_status tare_auc_add(struct tare_auc *auc, double score, bool positive) TARE_WARN_UNUSED;
/* Ranks the scores, once, after the last one was added; the figures below are of what was ranked. */
void tare_auc_finish(struct tare_auc *auc);
/* 0 … 1; NaN when one of the classes has no example. */
double tare_auc_value(const struct tare_auc *auc);
/* 95 % confidence interval, clipped to 0 … 1; NaN like the value, and with fewer than two examples of a class. */
void tare_auc_interval(double *low, double *high, const struct tare_auc *auc);
/* How much less the AUC of `a` is than that of `b`, which scored the same examples in the same order; the limits are
 * NaN when they differ in examples, and with fewer than TARE_FEWEST_EXAMPLES / 2 of a class. */
void tare_auc_paired(struct tare_paired *out, const struct tare_auc *a, const struct tare_auc *b, double tail);
void tare_auc_reset(struct tare_auc *auc);

#endif
