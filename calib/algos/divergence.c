/* Divergences of candidate ranges; see the header, and entropy.c for P and Q.
 *
 * With prefix sums of n, of n log n and of the number of nonempty bins, a divergence costs as much as the number of
 * codes, and with approximate logarithms a fraction of that. */
#include "calib/algos/divergence.h"

#include <math.h>
#include <string.h>

enum { EVIDENCE = 8 }; /* minimum average number of values in a nonempty bin */

/* Distributes the counts of the histogram over bins of equal width, in proportion to the overlap. */
static void resample(struct tare_linear_bins *linear, const struct tare_histogram_bin *bins, size_t count,
                     double reach) {
    linear->half = TARE_MOST_HALF_BINS;
    linear->width = reach / TARE_MOST_HALF_BINS;
    for (size_t i = 0; i < count; i++) {
        const struct tare_histogram_bin *bin = &bins[i];
        if (bin->low == 0 && bin->high == 0) continue;
        double from = bin->low / linear->width + TARE_MOST_HALF_BINS,
               to = bin->high / linear->width + TARE_MOST_HALF_BINS;
        int first = (int)floor(from), last = (int)floor(to);
        first = first < 0 ? 0 : first >= TARE_MOST_LINEAR_BINS ? TARE_MOST_LINEAR_BINS - 1 : first;
        last = last < first ? first : last >= TARE_MOST_LINEAR_BINS ? TARE_MOST_LINEAR_BINS - 1 : last;
        for (int at = first; at <= last; at++) {
            double part = first == last ? 1 : (fmin(to, at + 1) - fmax(from, at)) / (to - from);
            if (part > 0) linear->n[at] += part * (double)bin->count;
        }
    }
}

static bool has_evidence(const struct tare_linear_bins *linear) {
    double total = 0, filled = 0;
    for (int i = 0; i < 2 * linear->half; i++) {
        total += linear->n[i];
        filled += linear->n[i] > 0;
    }
    return total >= EVIDENCE * filled;
}

/* Merges bins in pairs until the average count is large enough. */
static void merge_bins(struct tare_linear_bins *linear) {
    while (linear->half > 1 && !has_evidence(linear)) {
        for (int i = 0; i < linear->half; i++)
            linear->n[i] = linear->n[2 * i] + linear->n[2 * i + 1];
        linear->half /= 2;
        linear->width *= 2;
    }
}

static void sum_up(struct tare_linear_bins *linear) {
    for (int i = 0; i < 2 * linear->half; i++) {
        double n = linear->n[i];
        linear->count[i + 1] = linear->count[i] + n;
        linear->entropy[i + 1] = linear->entropy[i] + (n > 0 ? n * log(n) : 0);
        linear->filled[i + 1] = linear->filled[i] + (n > 0);
    }
    linear->total = linear->count[2 * linear->half];
    for (int i = 1; i <= 2 * linear->half; i++)
        linear->log_filled[i] = log(i);
}

void tare_linear_bins_make(struct tare_linear_bins *out, const struct tare_histogram_bin *bins, size_t count,
                           double reach) {
    resample(out, bins, count, reach);
    merge_bins(out);
    sum_up(out);
}

/* ---- approximate logarithms ---- */

void tare_log_table_fill(struct tare_log_table *table) {
    for (int k = 0; k < 1 << TARE_LOG_BITS; k++) {
        const double mantissa = 1 + (double)k / (1 << TARE_LOG_BITS);
        table->entries[k].reciprocal = 1 / mantissa;
        table->entries[k].log = log(mantissa);
    }
}

/* log x for a positive normal x, with an error below 1e-12: x = 2^e m (1 + r) with m from the table and r < 2^-10, and
 * three terms of the series of log(1 + r). */
static inline double approximate_log(const struct tare_log_table *table, double x) {
    uint64_t bits;
    double mantissa;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52) - 1023, k = (int)(bits >> (52 - TARE_LOG_BITS) & ((1 << TARE_LOG_BITS) - 1));
    bits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52;
    memcpy(&mantissa, &bits, sizeof mantissa);
    const double r = mantissa * table->entries[k].reciprocal - 1;
    return exponent * 0.69314718055994530942 + table->entries[k].log + r * (1 - r * (0.5 - r * (1.0 / 3)));
}

/* ---- divergences ---- */

static double n_log_n(double n) {
    return n > 0 ? n * log(n) : 0;
}

/* The values outside a candidate range, which its end bins take. */
struct outside {
    double below, above;
};

/* p log q of a code with the bins start … end-1 of the range from … to-1; -HUGE_VAL if P has mass where Q has none. */
static double code_term(const struct tare_linear_bins *linear, int start, int end, int from, int to,
                        const struct outside *outside) {
    double filled = linear->filled[end] - linear->filled[start];
    double mass = filled > 0 ? linear->count[end] - linear->count[start] : 0, p = mass;
    if (start == from && outside->below > 0) {
        p += outside->below;
        filled += linear->n[from] == 0;
    }
    if (end == to && outside->above > 0) {
        p += outside->above;
        filled += linear->n[to - 1] == 0;
    }
    if (p <= 0) return 0;
    return mass <= 0 ? -HUGE_VAL : p * log(mass / filled);
}

/* First bin of a code of the range from … to-1. */
static int code_start(int from, int to, int code, int codes) {
    return from + (int)((int64_t)(to - from) * code / codes);
}

/* The sum of p log q over the bins from … to-1; -HUGE_VAL if P has mass where Q has none. */
static double cross_entropy(const struct tare_linear_bins *linear, int from, int to, int codes,
                            const struct outside *outside) {
    double sum = 0;
    for (int code = 0; code < codes; code++)
        sum += code_term(linear, code_start(from, to, code, codes), code_start(from, to, code + 1, codes), from, to,
                         outside);
    return sum;
}

/* The same with approximate logarithms; at least two codes, each of at least one bin. Values outside the range are in
 * the terms of the first and the last code only. */
static double approximate_cross_entropy(const struct tare_linear_bins *linear, int from, int to, int codes,
                                        const struct outside *outside, const struct tare_log_table *table) {
    const int last = code_start(from, to, codes - 1, codes), width = (to - from) / codes, rest = (to - from) % codes;
    int start = code_start(from, to, 1, codes), fraction = rest;
    double sum = code_term(linear, from, start, from, to, outside) + code_term(linear, last, to, from, to, outside);
    for (int code = 1; code < codes - 1; code++) {
        int end = start + width;
        fraction += rest;
        if (fraction >= codes) {
            fraction -= codes;
            end++;
        }
        const double mass = linear->count[end] - linear->count[start];
        const int filled = (int)(linear->filled[end] - linear->filled[start]);
        if (filled > 0 && mass > 0) sum += mass * (approximate_log(table, mass) - linear->log_filled[filled]);
        start = end;
    }
    return sum;
}

double tare_divergence(const struct tare_linear_bins *linear, int from, int to, int codes,
                       const struct tare_log_table *table) {
    double inside = linear->count[to] - linear->count[from];
    if (inside <= 0) return HUGE_VAL;
    const struct outside outside = { linear->count[from], linear->total - linear->count[to] };
    double first = linear->n[from], last = linear->n[to - 1];
    double own = linear->entropy[to] - linear->entropy[from] + n_log_n(first + outside.below) - n_log_n(first) +
                 n_log_n(last + outside.above) - n_log_n(last);
    double cross = table && codes > 1 && to - from >= codes
                       ? approximate_cross_entropy(linear, from, to, codes, &outside, table)
                       : cross_entropy(linear, from, to, codes, &outside);
    if (cross == -HUGE_VAL) return HUGE_VAL;
    return (own - cross) / linear->total + log(inside / linear->total);
}

/* p log (p / q) of the bins of a code at an end of the range, with the values outside. */
static double end_loss(double mass, double outside) {
    if (outside <= 0) return 0;
    return mass > 0 ? (mass + outside) * log((mass + outside) / mass) : HUGE_VAL;
}

/* A bound of the divergence from below, from two codes: by the log sum inequality, P and Q are closer when the bins of
 * each are taken together, which only the first and the last code distinguish from the codes between. */
double tare_divergence_bound(const struct tare_linear_bins *linear, int from, int to, int codes) {
    const double inside = linear->count[to] - linear->count[from];
    const int first = code_start(from, to, 1, codes), last = code_start(from, to, codes - 1, codes);
    if (inside <= 0) return HUGE_VAL;
    if (codes < 2 || to - from < codes) return 0;
    const double loss = end_loss(linear->count[first] - linear->count[from], linear->count[from]) +
                        end_loss(linear->count[to] - linear->count[last], linear->total - linear->count[to]);
    return loss / linear->total + log(inside / linear->total);
}
