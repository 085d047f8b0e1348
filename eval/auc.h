/* Area under the ROC curve of a two-class score: the probability that a random positive scores above a random negative,
 * with ties counted half (the Mann-Whitney statistic). */
#ifndef TARE_EVAL_AUC_H
#define TARE_EVAL_AUC_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Initialise with zeros. Stores every score: 16 bytes per example. */
struct tare_auc {
    struct tare_scored {
        double score;
        bool positive;
    } * scored;
    size_t count, capacity;
};

/* Scores that are NaN rank below all others. */
tare_status tare_auc_add(struct tare_auc *auc, double score, bool positive) TARE_WARN_UNUSED;
/* 0 … 1; NaN when one of the classes has no example. Sorts the stored scores. */
double tare_auc_value(struct tare_auc *auc);
void tare_auc_reset(struct tare_auc *auc);

#endif
