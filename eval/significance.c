/* Intervals and tests for counts. */
#include "eval/significance.h"

#include <math.h>

static const double Z_95 = 1.959963984540054; /* the normal distribution's 97.5 % point */

void tare_share_interval(double *low, double *high, int64_t successes, int64_t count) {
    double n = (double)count, p, centre, reach, divisor;
    *low = 0;
    *high = 1;
    if (count <= 0) return;
    p = (double)successes / n;
    divisor = 1 + Z_95 * Z_95 / n;
    centre = (p + Z_95 * Z_95 / (2 * n)) / divisor;
    reach = Z_95 * sqrt(p * (1 - p) / n + Z_95 * Z_95 / (4 * n * n)) / divisor;
    if (successes > 0) *low = fmax(0, centre - reach);
    if (successes < count) *high = fmin(1, centre + reach);
}

double tare_paired_p(int64_t gained, int64_t lost) {
    int64_t n = gained + lost, smaller = gained < lost ? gained : lost;
    double tail = 0;
    for (int64_t k = 0; k <= smaller; k++) /* in logarithms, because 2^-n alone would underflow */
        tail += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) - (double)n * log(2));
    return fmin(1, 2 * tail);
}
