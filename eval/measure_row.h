/* One measure: one file in eval/measures/ and one row of the table in eval/measure.c. */
#ifndef TARE_EVAL_MEASURE_ROW_H
#define TARE_EVAL_MEASURE_ROW_H

#include "eval/measure.h"
#include "eval/significance.h"

struct tare_measure_row {
    const char *key; /* name for --metric and JSON */
    struct tare_measure measure;
    const char *needs;                               /* what the records must have for it, in running text */
    bool (*has)(const struct tare_metrics *metrics); /* whether there is data for it */
    double (*value)(const struct tare_metrics *metrics);
    void (*interval)(double *low, double *high, const struct tare_metrics *metrics); /* NULL: none */
    /* How much worse than another model on the same examples, in the unit of the measure. NULL: not known. */
    void (*paired)(struct tare_paired *out, const struct tare_metrics *metrics, const struct tare_metrics *other,
                   double tail);
    double (*chance)(const struct tare_metrics *metrics); /* what guessing reaches; NULL: as the RMSE, if it has data */
    const char *guess;                                    /* how, in running text */
};

#define TARE_MEASURE_EXTERN(kind, name) extern const struct tare_measure_row tare_measure_##name;
TARE_EACH_MEASURE(TARE_MEASURE_EXTERN)
#undef TARE_MEASURE_EXTERN

#endif
