/* Accuracy of one model's outputs against labels and against another model's outputs, record by record. */
#ifndef TARE_EVAL_METRICS_H
#define TARE_EVAL_METRICS_H

#include "tensor/tensor.h"

/* Sums over records; zero it to start. Order of records does not matter to the counts. */
struct tare_metrics {
    int64_t records;
    int64_t labelled, top1, top5; /* records with a label, and those that got it right */
    int64_t agree;                /* largest element at the same place as in the reference */
    double signal, noise;         /* sums of squares of the reference, and of the difference */
    double dot, self;             /* sums for the cosine: reference * value, value * value */
    double absolute_error;        /* sum of |difference| */
    int64_t elements;
    double max_abs_error;
    int64_t max_abs_record; /* index of the record that shows it */
    int64_t not_finite;     /* elements that are NaN or infinite here but not in the reference */
};

/* Adds one record: `value` against `reference` (NULL: the value is the reference itself). `label` < 0: none. Real dtypes;
 * others count agreement of all elements only. */
void tare_metrics_add(struct tare_metrics *metrics, const struct tare_tensor *value, const struct tare_tensor *reference,
                      int64_t label, int64_t record);
/* 10 log10(signal / noise); +infinity when there is no noise. */
double tare_metrics_sqnr_db(const struct tare_metrics *metrics);
/* Cosine of reference and value over all elements; 1 when both are zero. */
double tare_metrics_cosine(const struct tare_metrics *metrics);

#endif
