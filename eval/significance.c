/* Intervals of shares, means and paired differences; see the header. */
#include "eval/significance.h"
#include "base/alloc.h"

#include <math.h>

static const double CONTINUITY = 0.5; /* of an example */

double tare_normal_quantile(double p) {
    double low = -40, high = 40;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (0.5 * erfc(-middle / sqrt(2)) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

void tare_share_interval(double *low, double *high, int64_t successes, int64_t count) {
    const double z = tare_normal_quantile(1 - TARE_TAIL_95);
    double n = (double)count, p, centre, reach, divisor;
    *low = 0;
    *high = 1;
    if (count <= 0) return;
    p = (double)successes / n;
    divisor = 1 + z * z / n;
    centre = (p + z * z / (2 * n)) / divisor;
    reach = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / divisor;
    if (successes > 0) *low = fmax(0, centre - reach);
    if (successes < count) *high = fmin(1, centre + reach);
}

/* ---- paired shares ---- */

/* Variance of `lost` - `gained` if the loss is `loss`. q: the share of gained examples that is most likely then. */
static double variance(double loss, double gained, double lost, double n) {
    if (loss < 0) return variance(-loss, lost, gained, n);
    const double b = gained + lost + (lost - gained) * loss - 2 * n * loss;
    const double q = (b + sqrt(b * b + 8 * n * gained * loss * (1 - loss))) / (4 * n);
    return n * (2 * q + loss - loss * loss);
}

/* The greatest loss that is not `quantile` standard deviations above what was counted. */
static double greatest_loss(double gained, double lost, double n, double quantile) {
    double low = (lost - gained) / n, high = 1;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        const double above = n * middle - (lost - gained) - CONTINUITY;
        if (above <= quantile * sqrt(variance(middle, gained, lost, n)))
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

void tare_paired_shares(struct tare_paired *out, int64_t gained, int64_t lost, int64_t count, double tail) {
    const double g = (double)gained, l = (double)lost, n = (double)count, z = tare_normal_quantile(1 - tail);
    *out = (struct tare_paired){ NAN, NAN, NAN, NAN, NAN, z, count };
    if (count <= 0) return;
    out->loss = (l - g) / n;
    out->spread = sqrt((l + g) / n);
    out->high = greatest_loss(g, l, n, z);
    out->low = -greatest_loss(l, g, n, z);
    out->rare = n * greatest_loss(0, 0, n, z);
}

/* ---- means ---- */

/* a[i] - b[i]; b NULL: a[i]. */
struct series {
    const struct tare_series *a, *b;
    size_t count;
};

/* Called for all i in their order. */
static double item(const struct series *s, size_t i) {
    return tare_series_next(s->a, i) - (s->b ? tare_series_next(s->b, i) : 0);
}

struct moments {
    double n, mean, spread, skewness;
};

/* Items that are NaN are left out. */
static struct moments moments_of(const struct series *s) {
    struct moments m = { 0 };
    double squares = 0, cubes = 0;
    for (size_t i = 0; i < s->count; i++) {
        const double value = item(s, i);
        if (isnan(value)) continue;
        m.n++;
        m.mean += value;
    }
    m.mean /= m.n;
    for (size_t i = 0; i < s->count; i++) {
        const double d = item(s, i) - m.mean;
        if (isnan(d)) continue;
        squares += d * d;
        cubes += d * d * d;
    }
    m.spread = sqrt(squares / (m.n - 1));
    if (squares > 0) m.skewness = cubes / m.n / pow(squares / m.n, 1.5);
    return m;
}

/* Student's quantile for n - 1 degrees of freedom by its expansion about the normal one, z. */
static double student(double z, double n) {
    const double f = n - 1, z3 = z * z * z, z5 = z3 * z * z;
    return z + (z3 + z) / (4 * f) + (5 * z5 + 16 * z3 + 3 * z) / (96 * f * f);
}

static void limits(double *low, double *high, const struct moments *m, double z) {
    const double skew = m->skewness * (2 * z * z + 1) / (6 * sqrt(m->n));
    const double error = m->spread / sqrt(m->n), reach = student(z, m->n);
    *low = *high = NAN;
    if (m->n < TARE_FEWEST_EXAMPLES) return;
    *low = m->mean - error * (reach + fmax(0, -skew));
    *high = m->mean + error * (reach + fmax(0, skew));
}

void tare_mean_interval(double *low, double *high, const struct tare_series *values) {
    const struct series s = { .a = values, .count = values->count };
    const struct moments m = moments_of(&s);
    limits(low, high, &m, tare_normal_quantile(1 - TARE_TAIL_95));
}

void tare_paired_means(struct tare_paired *out, const struct tare_series *a, const struct tare_series *b, double tail) {
    const struct series s = { .a = a, .b = b, .count = a->count == b->count ? a->count : 0 };
    const struct moments m = moments_of(&s);
    const double z = tare_normal_quantile(1 - tail);
    *out = (struct tare_paired){ m.mean, NAN, NAN, m.spread, 0, z, (int64_t)m.n };
    limits(&out->low, &out->high, &m, z);
}

/* ---- results ---- */

void tare_paired_scale(struct tare_paired *p, double factor) {
    const double low = p->low, high = p->high;
    p->loss *= factor;
    p->low = (factor < 0 ? high : low) * factor;
    p->high = (factor < 0 ? low : high) * factor;
    p->spread *= fabs(factor);
    p->rare *= fabs(factor);
}

double tare_paired_needed(const struct tare_paired *p, double most) {
    const double by_spread = p->quantile * p->spread / most;
    return ceil(fmax(TARE_FEWEST_EXAMPLES, by_spread * by_spread + p->rare / most));
}
