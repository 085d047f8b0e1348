/* Intervals and tests for counts. */
#include "eval/significance.h"
#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

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

/* ---- means ---- */

enum { RESAMPLES = 2000, MOST_RESAMPLED = 20000 };

/* xorshift64*: the same sequence on every machine. */
static size_t draw(uint64_t *state, size_t count) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (size_t)((*state * UINT64_C(0x2545F4914F6CDD1D)) >> 32) % count;
}

static void resample_means(double *means, const double *values, size_t count) {
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t r = 0; r < RESAMPLES; r++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += values[draw(&state, count)];
        means[r] = sum / (double)count;
    }
}

static double mean_of(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* Standard error of the mean. */
static double error_of(const double *values, size_t count, double mean) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / ((double)count - 1) / (double)count);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void tare_mean_interval(double *low, double *high, const double *values, size_t count) {
    double *means;
    *low = *high = NAN;
    if (count < 2) return;
    if (count > MOST_RESAMPLED) {
        const double mean = mean_of(values, count), reach = Z_95 * error_of(values, count, mean);
        *low = mean - reach;
        *high = mean + reach;
        return;
    }
    means = tare_calloc(RESAMPLES, sizeof *means);
    if (!means) return;
    resample_means(means, values, count);
    qsort(means, RESAMPLES, sizeof *means, by_value);
    *low = means[RESAMPLES / 40];
    *high = means[RESAMPLES - 1 - RESAMPLES / 40];
    tare_free(means);
}

double tare_paired_mean_p(const double *a, const double *b, size_t count) {
    double *differences, mean, p = NAN;
    size_t beyond = 0;
    if (count < 2) return NAN;
    differences = tare_calloc(count + RESAMPLES, sizeof *differences);
    if (!differences) return NAN;
    for (size_t i = 0; i < count; i++)
        differences[i] = a[i] - b[i];
    mean = mean_of(differences, count);
    if (count > MOST_RESAMPLED) {
        const double error = error_of(differences, count, mean);
        p = error > 0 ? erfc(fabs(mean) / error / sqrt(2)) : mean == 0 ? 1 : 0;
    } else {
        for (size_t i = 0; i < count; i++)
            differences[i] -= mean;
        resample_means(differences + count, differences, count);
        for (size_t r = 0; r < RESAMPLES; r++)
            beyond += fabs(differences[count + r]) >= fabs(mean);
        p = ((double)beyond + 1) / (RESAMPLES + 1);
    }
    tare_free(differences);
    return p;
}
