/* Area under the ROC curve of two classes. DeLong's interval and test. */
#include "eval/measure_row.h"

static bool has(const struct tare_metrics *m) {
    return m->auc.count > 0;
}

static double value(const struct tare_metrics *m) {
    return tare_auc_value(&m->auc);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_auc_interval(low, high, &m->auc);
}

static void paired(struct tare_paired *out, const struct tare_metrics *m, const struct tare_metrics *other,
                   double tail) {
    tare_auc_paired(out, &m->auc, &other->auc, tail);
}

static double chance(const struct tare_metrics *m) {
    (void)m;
    return 0.5;
}

const struct tare_measure_row tare_measure_auc = {
    .key = "auc",
    .measure = { "AUC", "AUC", "", false, TARE_MEASURE_AUC },
    .needs = "labels 0 and 1 of an output with one or two scores per example: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .paired = paired,
    .chance = chance,
    .guess = "a random order",
};
