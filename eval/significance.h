/* Confidence intervals, and the paired comparison of two models on the same examples: its interval, the loss that it
 * detects and the examples that it needs. docs/reading-a-comparison.md has the formulas and their sources.
 *
 * `tail` is the error probability on one side: 0.025 for a 95 % interval, divided by the number of comparisons where
 * all of them are to hold together (Bonferroni). */
#ifndef TARE_EVAL_SIGNIFICANCE_H
#define TARE_EVAL_SIGNIFICANCE_H

#include "eval/series.h"

#include <stddef.h>
#include <stdint.h>

#define TARE_TAIL_95 0.025
/* With fewer examples the mean of unknown values has no interval: one of seven of another kind could be missing. */
enum { TARE_FEWEST_EXAMPLES = 20 };

/* The x below which a standard normal value is with the probability `p`, 0 < p < 1. */
double tare_normal_quantile(double p);

/* Wilson's score interval at 95 % for `successes` of `count`, as shares 0 … 1; [0, 1] when count is 0. */
void tare_share_interval(double *low, double *high, int64_t successes, int64_t count);
/* 95 % confidence interval of the mean of `count` values: Student's, widened by their skewness. Values that are NaN are
 * left out. NaN with fewer than TARE_FEWEST_EXAMPLES. */
void tare_mean_interval(double *low, double *high, const struct tare_series *values);

/* How much one model is worse than another. */
struct tare_paired {
    double loss, low, high; /* negative: better; the limits are NaN with too few examples */
    double spread;          /* standard deviation of the loss of an example */
    double rare;            /* part of the limit that shrinks with the number of examples, times that number */
    double quantile;        /* of the normal distribution, for `tail` */
    int64_t examples;
};

/* The share of right examples, 0 … 1, of `count` of which `gained` are right in this model only and `lost` in the other
 * one only: Tango's score interval with continuity correction. */
void tare_paired_shares(struct tare_paired *out, int64_t gained, int64_t lost, int64_t count, double tail);
/* The mean of a[i] - b[i], where more is worse; pairs with a NaN are left out, and all if the numbers of
 * values differ. The interval of tare_mean_interval. */
void tare_paired_means(struct tare_paired *out, const struct tare_series *a, const struct tare_series *b, double tail);
/* Changes the unit: all figures but `quantile` and `examples` times `factor`; if it is negative, more is better. */
void tare_paired_scale(struct tare_paired *paired, double factor);
/* The examples after which models that differ as these do, but without loss on average, have `high` <= `most`. */
double tare_paired_needed(const struct tare_paired *paired, double most);

#endif
