/* The measure of a comparison: the one figure by which models are ranked, plotted and recommended, with its confidence
 * interval and that of its difference from another model on the same examples. eval/verdict.h decides by it.
 *
 * The measure follows from the data. Labels: top-1 (accuracy at the threshold for a single score), IoU for one label
 * per pixel, sequence accuracy for one label per token. Expected values: PSNR if the output is images, otherwise mean
 * absolute error. Without either, the SQNR against the float model, which has no interval. Agreement of predicted
 * classes is reported, but is not a measure. Each measure is a file of eval/measures/. */
#ifndef TARE_EVAL_MEASURE_H
#define TARE_EVAL_MEASURE_H

#include "eval/comparison.h"
#include "eval/significance.h"

/* Kind, and name of --metric and of the file in eval/measures/. */
#define TARE_EACH_MEASURE(X)                                                                                           \
    X(TOP1, top1)                                                                                                      \
    X(AUC, auc)                                                                                                        \
    X(MAE, mae)                                                                                                        \
    X(RMSE, rmse)                                                                                                      \
    X(R2, r2)                                                                                                          \
    X(IOU, iou)                                                                                                        \
    X(PIXEL_ACCURACY, pixel_accuracy)                                                                                  \
    X(SEQUENCE, sequence)                                                                                              \
    X(PSNR, psnr)                                                                                                      \
    X(SSIM, ssim)                                                                                                      \
    X(SQNR, sqnr)
#define TARE_MEASURE_KIND(kind, name) TARE_MEASURE_##kind,
enum tare_measure_kind {
    TARE_EACH_MEASURE(TARE_MEASURE_KIND) TARE_MEASURE_CUSTOM, /* the caller's metric; not a name for --metric */
    TARE_MEASURES
};
#undef TARE_MEASURE_KIND
/* "auto", then the names by kind; terminated by NULL. */
extern const char *const tare_metric_names[];

struct tare_measure {
    const char *name;  /* in running text: "top-1", "mean absolute error" */
    const char *title; /* of columns and axes */
    const char *unit;  /* after a value: " %", " dB", "" */
    bool lower_is_better;
    enum tare_measure_kind kind;
};

/* *metric: the value of comparison->metric for a name of --metric. TARE_INVALID_ARGUMENT lists the names. */
tare_status tare_measure_read(int *metric, const char *name) TARE_WARN_UNUSED;
/* The measure of a kind, not TARE_MEASURE_CUSTOM. */
const struct tare_measure *tare_measure_find(enum tare_measure_kind kind);
/* The name in JSON: that of --metric, or of the caller's metric. */
const char *tare_measure_key(const struct tare_measure *measure);
/* Whether two models can be compared by this measure example by example (tare_measure_paired). */
bool tare_measure_is_tested(const struct tare_measure *measure);

/* TARE_NOT_FOUND if comparison->metric is set and no output of the first model has data for it. */
tare_status tare_measure_check_requested(const struct tare_comparison *comparison) TARE_WARN_UNUSED;

/* Index of the output by which models are measured: the first one with data for comparison->metric, for expected values
 * or for labels, of several with classes the one by which the first model is right most often; without any of these the
 * first floating-point one that differs between records (the SQNR of class indices means little), then any
 * floating-point one, then any numeric one (strings have no SQNR); otherwise 0. */
size_t tare_measured_output(const struct tare_comparison *comparison);
/* The figures of a row at that output. */
const struct tare_metrics *tare_measured_of(const struct tare_comparison *comparison,
                                            const struct tare_comparison_row *row);
/* The SQNR of a row, of which `outputs` are the figures, at its worst output: the least one of the floating-point
 * outputs that differ between records; without any, of all floating-point outputs; without any, of the measured output.
 * *index (NULL: not requested): that output. Searches for settings and layers use it, so that each output counts. */
double tare_worst_sqnr_db(size_t *index, const struct tare_comparison *comparison, const struct tare_metrics *outputs);
/* The measure of the measured output: comparison->metric if it has data, otherwise inferred. */
const struct tare_measure *tare_measure_of(const struct tare_comparison *comparison);
/* False when the metrics have no data for a measure. */
bool tare_measure_has(enum tare_measure_kind kind, const struct tare_metrics *metrics);
/* Value in the unit of the measure: percent, dB (+infinity: exact), or the unit of the output. NaN without data. */
double tare_measure_value(const struct tare_measure *measure, const struct tare_metrics *metrics);
/* 95 % confidence interval; both NaN when the measure has none (R2, SQNR). */
void tare_measure_interval(double *low, double *high, const struct tare_measure *measure,
                           const struct tare_metrics *metrics);
/* How much worse the model is than another one on the same examples, in the unit of the measure, with limits for an
 * error probability of `tail` on each side (eval/significance.h). All NaN when the measure has none, or no data. */
void tare_measure_paired(struct tare_paired *out, const struct tare_measure *measure,
                         const struct tare_metrics *metrics, const struct tare_metrics *other, double tail);
/* Difference of the value from another model's, and its 95 % interval: NaN when there is none. */
void tare_measure_difference(double *difference, double *low, double *high, const struct tare_measure *measure,
                             const struct tare_metrics *metrics, const struct tare_metrics *other);
/* A loss of one point in the unit of the measure: a percentage point, a decibel, a hundredth of AUC, SSIM and R², one
 * percent of the error of the float model. */
double tare_measure_point(const struct tare_measure *measure, const struct tare_metrics *float_model);

/* A float model that is no better than guessing. */
struct tare_guess {
    const struct tare_measure *measure;
    double value, low, high; /* of the model, by the measure, with its 95 % interval */
    double chance;           /* what guessing reaches */
    const char *how;         /* "the most frequent label for all" */
};
/* Whether the 95 % interval of the measure contains what guessing reaches, or is worse; of errors against expected
 * values, that of the RMSE. False if the measure has no data or no such value. */
bool tare_measure_is_guess(struct tare_guess *out, const struct tare_measure *measure,
                           const struct tare_metrics *metrics);

/* Appends "75.60 %", "31.2 dB", "exact". */
void tare_measure_put(struct tare_strbuf *out, const struct tare_measure *measure, double value);

/* Appends points in the unit of the measure: "1 percentage point of top-1", "0.3 dB of PSNR", "0.012 of AUC", "2 % of
 * the MAE". */
void tare_measure_put_points(struct tare_strbuf *out, const struct tare_measure *measure, double points, int digits);
/* Appends a loss against float in the unit of the measure, with `digits` significant digits; `points`: the difference
 * of the scores in hundredths (struct tare_sensitivity_figures). "1.2 percentage points of top-1 lost", "0.3 dB of PSNR
 * lost", "0.012 of AUC lost", "2 % more MAE". */
void tare_measure_put_loss(struct tare_strbuf *out, const struct tare_measure *measure, double points, int digits);

/* Ranks the models by a metric of the caller, which is borrowed. Before the first model is added. */
tare_status tare_measure_set_custom(struct tare_comparison *comparison,
                                    const struct tare_custom_metric *metric) TARE_WARN_UNUSED;

#endif
