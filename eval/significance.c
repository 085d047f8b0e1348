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

/* lgamma writes the global variable signgam. */
static double log_factorial(int64_t n) {
    int sign;
    return lgamma_r((double)n + 1, &sign);
}

double tare_paired_p(int64_t gained, int64_t lost) {
    int64_t n = gained + lost, smaller = gained < lost ? gained : lost;
    double tail = 0;
    for (int64_t k = 0; k <= smaller; k++) /* in logarithms, because 2^-n alone would underflow */
        tail += exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) - (double)n * log(2));
    return fmin(1, 2 * tail);
}

/* ---- means ---- */

enum { RESAMPLES = 2000, MOST_RESAMPLED = 20000 };
static const uint64_t SEED = UINT64_C(0x9E3779B97F4A7C15);

/* xorshift64*: the same sequence on every machine. */
static size_t draw(uint64_t *state, size_t count) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (size_t)((*state * UINT64_C(0x2545F4914F6CDD1D)) >> 32) % count;
}

/* a[i] - b[i] - shift; b NULL: a[i]. */
struct series {
    const double *a, *b;
    double shift;
    size_t count;
};

static double item(const struct series *s, size_t i) {
    return s->b ? s->a[i] - s->b[i] - s->shift : s->a[i];
}

static double resampled_mean(const struct series *s, uint64_t *state) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += item(s, draw(state, s->count));
    return sum / (double)s->count;
}

static double mean_of(const struct series *s) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += item(s, i);
    return sum / (double)s->count;
}

/* Standard error of the mean. */
static double error_of(const struct series *s, double mean) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += (item(s, i) - mean) * (item(s, i) - mean);
    return sqrt(sum / ((double)s->count - 1) / (double)s->count);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Copies the values that are not NaN, of pairs those without a NaN; `b` may be NULL. NULL when out of memory. */
static double *without_nan(size_t *kept, const double *a, const double *b, size_t count) {
    double *room = tare_calloc(2 * count + 1, sizeof *room);
    *kept = 0;
    for (size_t i = 0; room && i < count; i++) {
        if (isnan(a[i]) || (b && isnan(b[i]))) continue;
        room[*kept] = a[i];
        if (b) room[count + *kept] = b[i];
        ++*kept;
    }
    return room;
}

static void interval_of(double *low, double *high, const double *values, size_t count) {
    const struct series s = { .a = values, .count = count };
    uint64_t state = SEED;
    double means[RESAMPLES];
    *low = *high = NAN;
    if (count < 2) return;
    if (count > MOST_RESAMPLED) {
        const double mean = mean_of(&s), reach = Z_95 * error_of(&s, mean);
        *low = mean - reach;
        *high = mean + reach;
        return;
    }
    for (size_t r = 0; r < RESAMPLES; r++)
        means[r] = resampled_mean(&s, &state);
    qsort(means, RESAMPLES, sizeof *means, by_value);
    *low = means[RESAMPLES / 40];
    *high = means[RESAMPLES - 1 - RESAMPLES / 40];
}

void tare_mean_interval(double *low, double *high, const double *values, size_t count) {
    size_t kept;
    double *finite = without_nan(&kept, values, NULL, count);
    *low = *high = NAN;
    if (finite) interval_of(low, high, finite, kept);
    tare_free(finite);
}

static double paired_p_of(const double *a, const double *b, size_t count) {
    struct series s = { .a = a, .b = b, .count = count };
    uint64_t state = SEED;
    size_t beyond = 0;
    if (count < 2) return NAN;
    const double mean = mean_of(&s);
    if (count > MOST_RESAMPLED) {
        const double error = error_of(&s, mean);
        return error > 0 ? erfc(fabs(mean) / error / sqrt(2)) : mean == 0 ? 1 : 0;
    }
    s.shift = mean;
    for (size_t r = 0; r < RESAMPLES; r++)
        beyond += fabs(resampled_mean(&s, &state)) >= fabs(mean);
    return ((double)beyond + 1) / (RESAMPLES + 1);
}

double tare_paired_mean_p(const double *a, const double *b, size_t count) {
    size_t kept;
    double *finite = without_nan(&kept, a, b, count);
    const double p = finite ? paired_p_of(finite, finite + count, kept) : NAN;
    tare_free(finite);
    return p;
}
