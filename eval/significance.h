/* Confidence intervals and paired tests for measured accuracy. */
#ifndef TARE_EVAL_SIGNIFICANCE_H
#define TARE_EVAL_SIGNIFICANCE_H

#include <stddef.h>
#include <stdint.h>

/* Wilson's score interval at 95 % for `successes` of `count` (Wilson 1927), as shares 0 … 1; [0, 1] when count is 0. */
void tare_share_interval(double *low, double *high, int64_t successes, int64_t count);

/* McNemar's exact test of two models on the same examples: `gained` are wrong in the first model and right in the
 * second, `lost` the reverse; examples that both models classify alike do not count. Returns the two-sided p of the
 * hypothesis that both changes are equally likely: twice the smaller tail of the binomial distribution with 1/2, at
 * most 1. */
double tare_paired_p(int64_t gained, int64_t lost);

/* 95 % confidence interval of the mean of `count` values: percentiles of 2,000 bootstrap resamples, with the same
 * random numbers each time; the normal approximation above 20,000 values. Values that are NaN are left out. NaN with
 * fewer than two. */
void tare_mean_interval(double *low, double *high, const double *values, size_t count);
/* Two-sided p of the hypothesis that the mean of a[i] - b[i] is zero, by a bootstrap of the centred differences (the
 * normal approximation above 20,000); 1 when all differences are zero. Pairs with a NaN are left out; NaN with fewer
 * than two. */
double tare_paired_mean_p(const double *a, const double *b, size_t count);

#endif
