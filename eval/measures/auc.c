/* Area under the ROC curve of two classes. DeLong's interval and test. */
#include "eval/measure_row.h"
#include "eval/significance.h"

static bool has(const struct tare_metrics *m) {
    return m->auc.count > 0;
}

static double value(const struct tare_metrics *m) {
    return tare_auc_value(&m->auc);
}

static void interval(double *low, double *high, const struct tare_metrics *m) {
    tare_auc_interval(low, high, &m->auc);
}

static double p(const struct tare_metrics *m, const struct tare_metrics *reference) {
    return tare_auc_paired_p(&m->auc, &reference->auc);
}

const struct tare_measure_row tare_measure_auc = {
    .key = "auc",
    .measure = { "AUC", "AUC", "", false, TARE_MEASURE_AUC },
    .needs = "labels 0 and 1 of an output with one or two scores per example: --label",
    .has = has,
    .value = value,
    .interval = interval,
    .p = p,
};
