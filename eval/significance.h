/* How sure a measured accuracy is, and whether two models differ: for counts of right and wrong answers. */
#ifndef TARE_EVAL_SIGNIFICANCE_H
#define TARE_EVAL_SIGNIFICANCE_H

#include <stdint.h>

/* Wilson's score interval at 95 % for `successes` of `count` (Wilson 1927): shares 0 … 1. The whole of it when count is
 * 0. */
void tare_share_interval(double *low, double *high, int64_t successes, int64_t count);

/* McNemar's exact test of two models on the same examples: `gained` were wrong in the first and are right in the
 * second, `lost` the reverse; examples where both are right or wrong say nothing. Two-sided p of the hypothesis that
 * either is as likely: twice the smaller tail of the binomial with 1/2, at most 1. */
double tare_paired_p(int64_t gained, int64_t lost);

#endif
