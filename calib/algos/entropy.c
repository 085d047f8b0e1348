/* entropy: the range whose codes preserve the distribution of the values best (least Kullback-Leibler divergence).
 *
 * The histogram is resampled to bins of equal width on [-m, m], where m is the largest magnitude. For a threshold t
 * the candidate range is [max(low, -t), min(high, t)], extended to contain 0. P is the distribution inside the range,
 * with the mass outside it added to the end bins. Q is the distribution that the codes can represent: the mass of each
 * code's bins, spread evenly over the nonempty ones. Zeros are excluded from both: they are exact, and
 * after a rectifier they would outweigh everything else.
 *
 * With prefix sums of n, of n log n and of the number of nonempty bins, the cost of a candidate is proportional to the
 * number of codes. Divergences of all candidates are first computed with an approximate logarithm, in a fraction of the
 * time; exact ones only in that order, until no other candidate can be as good. The range is that of the exact search.
 *
 * The divergence alone is not a safe criterion, for two reasons, and each has its rule:
 *
 * - Minimum evidence. The count of a bin is a random sample. Q smooths its noise, which the divergence counts as a
 *   loss; the expected loss is (nonempty bins - codes) / 2N (Miller and Madow, 1955), so with few values
 *   narrow ranges, whose codes span fewer bins, look better than they are. Bins are therefore merged in pairs until
 * they hold EVIDENCE values each on average. When that leaves fewer bins than codes, the values justify no clipping and
 * the range is that of min_max.
 * - The reconstruction error must agree. The divergence does not weigh how far a clipped value is moved. Where large
 *   values are rare but matter (inputs that mix scales, sparse features) it would clip all of them. A candidate is
 *   considered only if its squared error on the histogram is not greater than that of min_max. */
#include "calib/algos/rows.h"

#include "base/alloc.h"
#include "calib/quantization_error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double APPROXIMATION = 1e-8; /* bound of the error of an approximate divergence */

enum {
    MOST_HALF = 4096, /* bins on each side of zero, before merging */
    MOST_BINS = 2 * MOST_HALF,
    EVIDENCE = 8, /* minimum average number of values in a nonempty bin */
};
/* Below this magnitude, range-degenerate determines the scale for any threshold. */
static const double SMALLEST_REACH = 0x1p-110;

struct linear {
    int half; /* bins on each side of zero */
    double n[MOST_BINS];
    double count[MOST_BINS + 1], entropy[MOST_BINS + 1], filled[MOST_BINS + 1]; /* prefix sums */
    double total, width;
    double log_filled[MOST_BINS + 1]; /* by the number of nonempty bins of a code */
};

/* Distributes the counts of the histogram over bins of equal width, in proportion to the overlap. */
static void resample(struct linear *linear, const struct tare_histogram_bin *bins, size_t count, double reach) {
    linear->half = MOST_HALF;
    linear->width = reach / MOST_HALF;
    for (size_t i = 0; i < count; i++) {
        const struct tare_histogram_bin *bin = &bins[i];
        if (bin->low == 0 && bin->high == 0) continue;
        double from = bin->low / linear->width + MOST_HALF, to = bin->high / linear->width + MOST_HALF;
        int first = (int)floor(from), last = (int)floor(to);
        first = first < 0 ? 0 : first >= MOST_BINS ? MOST_BINS - 1 : first;
        last = last < first ? first : last >= MOST_BINS ? MOST_BINS - 1 : last;
        for (int at = first; at <= last; at++) {
            double part = first == last ? 1 : (fmin(to, at + 1) - fmax(from, at)) / (to - from);
            if (part > 0) linear->n[at] += part * (double)bin->count;
        }
    }
}

static bool has_evidence(const struct linear *linear) {
    double total = 0, filled = 0;
    for (int i = 0; i < 2 * linear->half; i++) {
        total += linear->n[i];
        filled += linear->n[i] > 0;
    }
    return total >= EVIDENCE * filled;
}

/* Merges bins in pairs until the average count is large enough. */
static void merge_bins(struct linear *linear) {
    while (linear->half > 1 && !has_evidence(linear)) {
        for (int i = 0; i < linear->half; i++)
            linear->n[i] = linear->n[2 * i] + linear->n[2 * i + 1];
        linear->half /= 2;
        linear->width *= 2;
    }
}

static void sum_up(struct linear *linear) {
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

/* ---- approximate logarithms ---- */

enum { LOG_BITS = 10 };

/* Of the mantissas 1 + k / 2^LOG_BITS. */
struct log_table {
    struct {
        double reciprocal, log;
    } entries[1 << LOG_BITS];
};

static void fill_log_table(struct log_table *table) {
    for (int k = 0; k < 1 << LOG_BITS; k++) {
        const double mantissa = 1 + (double)k / (1 << LOG_BITS);
        table->entries[k].reciprocal = 1 / mantissa;
        table->entries[k].log = log(mantissa);
    }
}

/* log x for a positive normal x, with an error below 1e-12: x = 2^e m (1 + r) with m from the table and r < 2^-10, and
 * three terms of the series of log(1 + r). */
static inline double approximate_log(const struct log_table *table, double x) {
    uint64_t bits;
    double mantissa;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52) - 1023, k = (int)(bits >> (52 - LOG_BITS) & ((1 << LOG_BITS) - 1));
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
static double code_term(const struct linear *linear, int start, int end, int from, int to,
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
static double cross_entropy(const struct linear *linear, int from, int to, int codes, const struct outside *outside) {
    double sum = 0;
    for (int code = 0; code < codes; code++)
        sum += code_term(linear, code_start(from, to, code, codes), code_start(from, to, code + 1, codes), from, to,
                         outside);
    return sum;
}

/* The same with approximate logarithms; at least two codes, each of at least one bin. Values outside the range are in
 * the terms of the first and the last code only. */
static double approximate_cross_entropy(const struct linear *linear, int from, int to, int codes,
                                        const struct outside *outside, const struct log_table *table) {
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

/* Divergence of the range from … to-1 (at least two bins) represented by `codes` codes; approximate with a table. */
static double divergence(const struct linear *linear, int from, int to, int codes, const struct log_table *table) {
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

/* Bins of the range with a threshold of `i` bins. */
static void ends_of(int *from, int *to, const struct linear *linear, double low, double high, int i) {
    const int half = linear->half;
    int lowest = (int)floor(low / linear->width + half), highest = (int)ceil(high / linear->width + half);
    *from = half - i > lowest ? half - i : lowest;
    *to = half + i < highest ? half + i : highest;
    *from = *from < 0 ? 0 : *from > half ? half : *from;
    *to = *to > 2 * half ? 2 * half : *to < half ? half : *to;
}

/* The histogram and scheme that errors are computed with. */
struct judge {
    const struct tare_bins *bins;
    const struct tare_qscheme *scheme;
    double limit; /* the squared error of min_max */
};

static double error_of(const struct judge *judge, double low, double high) {
    if (judge->scheme->symmetric) low = -(high = fmax(fabs(low), fabs(high)));
    const struct tare_qparams params = tare_qparams_of_range(low, high, judge->scheme);
    const struct tare_quantization_error error = tare_quantization_error_of(&params, judge->bins);
    return error.rounding + error.clipping;
}

static struct tare_range range_of(const struct linear *linear, double low, double high, int i) {
    const double threshold = i * linear->width;
    if (i == linear->half) return (struct tare_range){ .low = low, .high = high };
    return (struct tare_range){ .low = fmax(low, fmin(-threshold, high)), .high = fmin(high, fmax(threshold, low)) };
}

/* A threshold of `half_bins` bins. */
struct candidate {
    int half_bins, from, to;
    double divergence; /* approximate */
};

static int by_divergence(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->divergence != y->divergence) return x->divergence < y->divergence ? -1 : 1;
    return y->half_bins - x->half_bins;
}

/* Returns the number of candidates. */
static int list_candidates(struct candidate *out, const struct linear *linear, double low, double high, int codes) {
    struct log_table table;
    int count = 0;
    fill_log_table(&table);
    for (int i = 1; i <= linear->half; i++) {
        struct candidate *c = &out[count];
        c->half_bins = i;
        ends_of(&c->from, &c->to, linear, low, high, i);
        if (c->to - c->from < codes && i < linear->half) continue; /* fewer bins than codes: no divergence to compare */
        c->divergence = divergence(linear, c->from, c->to, codes, &table);
        count++;
    }
    return count;
}

/* The least exact divergence wins, and of equal ones the widest range. */
static void search_thresholds(struct tare_range *out, struct candidate *candidates, const struct linear *linear,
                              const struct judge *judge, double low, double high, int codes) {
    const int count = list_candidates(candidates, linear, low, high, codes);
    double best = HUGE_VAL;
    int widest = 0;
    qsort(candidates, (size_t)count, sizeof *candidates, by_divergence);
    for (int i = 0; i < count && candidates[i].divergence <= best + APPROXIMATION; i++) {
        const struct candidate *c = &candidates[i];
        const double value = divergence(linear, c->from, c->to, codes, NULL);
        const struct tare_range range = range_of(linear, low, high, c->half_bins);
        if (value > best || (value == best && c->half_bins < widest)) continue;
        if (c->half_bins < linear->half && error_of(judge, range.low, range.high) > judge->limit) continue;
        best = value;
        widest = c->half_bins;
        *out = range;
    }
    out->candidates = count;
}

static tare_status search(struct tare_range *out, const struct tare_histogram_bin *bins, size_t count, double low,
                          double high, int codes, struct judge *judge) {
    struct linear *linear = tare_calloc(1, sizeof *linear);
    struct candidate *candidates = tare_calloc(MOST_HALF, sizeof *candidates);
    if (!linear || !candidates) {
        tare_free(linear);
        tare_free(candidates);
        return TARE_NO_MEMORY;
    }
    *out = (struct tare_range){ .low = low, .high = high };
    resample(linear, bins, count, fmax(fabs(low), fabs(high)));
    merge_bins(linear);
    sum_up(linear);
    judge->limit = error_of(judge, low, high);
    search_thresholds(out, candidates, linear, judge, low, high, codes);
    tare_free(candidates);
    tare_free(linear);
    return TARE_OK;
}

/* The histogram of magnitudes; not sorted. */
static struct tare_histogram_bin *fold(const struct tare_bins *bins) {
    struct tare_histogram_bin *folded = tare_calloc(bins->count, sizeof *folded);
    for (size_t i = 0; folded && i < bins->count; i++) {
        folded[i] = bins->bins[i];
        if (folded[i].high >= 0) continue;
        folded[i].low = -bins->bins[i].high;
        folded[i].high = -bins->bins[i].low;
    }
    return folded;
}

static tare_status range(struct tare_range *out, const struct tare_statistics *statistics, const struct tare_bins *bins,
                         const double *values, const struct tare_qscheme *scheme) {
    (void)statistics;
    (void)values;
    double reach = fmax(fabs(bins->low), fabs(bins->high));
    out->low = bins->low;
    out->high = bins->high;
    if (reach < SMALLEST_REACH) return TARE_OK;
    struct judge judge = { .bins = bins, .scheme = scheme };
    int codes = (1 << scheme->bits) - 1;
    if (!scheme->symmetric) return search(out, bins->bins, bins->count, bins->low, bins->high, codes, &judge);
    struct tare_histogram_bin *folded = fold(bins);
    if (!folded) return TARE_NO_MEMORY;
    tare_status status = search(out, folded, bins->count, 0, reach, codes / 2 + 1, &judge);
    out->low = -out->high;
    tare_free(folded);
    return status;
}

const struct tare_algorithm tare_algorithm_entropy = {
    .name = "entropy",
    .help = "minimises the KL divergence between values and codes, with no more squared error than min_max",
    .range = range,
};
