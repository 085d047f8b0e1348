/* Area under the ROC curve of a two-class score: the chance that a random positive scores above a random negative, ties
 * counting one half (the Mann-Whitney statistic). */
#ifndef TARE_EVAL_AUC_H
#define TARE_EVAL_AUC_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Zero it to start. Keeps every score: 16 bytes an example. */
struct tare_auc {
    struct tare_scored {
        double score;
        bool positive;
    } * scored;
    size_t count, capacity;
};

/* Scores that are NaN rank below all others. */
tare_status tare_auc_add(struct tare_auc *auc, double score, bool positive) TARE_WARN_UNUSED;
/* 0 … 1; NaN while one of the classes has not been seen. Sorts what was added. */
double tare_auc_value(struct tare_auc *auc);
void tare_auc_reset(struct tare_auc *auc);

#endif
