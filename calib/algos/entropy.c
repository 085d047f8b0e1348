/* entropy: the range whose codes preserve the distribution of the values best (least Kullback-Leibler divergence).
 *
 * The histogram is resampled to bins of equal width on [-m, m], where m is the largest magnitude. For a threshold t
 * the candidate range is [max(low, -t), min(high, t)], extended to contain 0. P is the distribution inside the range,
 * with the mass outside it added to the end bins. Q is the distribution that the codes can represent: the mass of each
 * code's bins, spread evenly over the nonempty ones. Zeros are excluded from both: they are exact, and
 * after a rectifier they would outweigh everything else.
 *
 * With prefix sums of n, of n log n and of the number of nonempty bins, the cost of a candidate is proportional to the
 * number of codes.
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
#include <string.h>

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
}

static double n_log_n(double n) {
    return n > 0 ? n * log(n) : 0;
}

/* The sum of p log q over the bins from … to-1; -HUGE_VAL if P has mass where Q has none. */
static double cross_entropy(const struct linear *linear, int from, int to, int codes, double below, double above) {
    double sum = 0;
    for (int code = 0; code < codes; code++) {
        int start = from + (int)((int64_t)(to - from) * code / codes);
        int end = from + (int)((int64_t)(to - from) * (code + 1) / codes);
        double filled = linear->filled[end] - linear->filled[start];
        double mass = filled > 0 ? linear->count[end] - linear->count[start] : 0, p = mass;
        if (start == from && below > 0) {
            p += below;
            filled += linear->n[from] == 0;
        }
        if (end == to && above > 0) {
            p += above;
            filled += linear->n[to - 1] == 0;
        }
        if (p <= 0) continue;
        if (mass <= 0) return -HUGE_VAL;
        sum += p * log(mass / filled);
    }
    return sum;
}

/* Divergence of the range from … to-1 (at least two bins) represented by `codes` codes. */
static double divergence(const struct linear *linear, int from, int to, int codes) {
    double inside = linear->count[to] - linear->count[from];
    if (inside <= 0) return HUGE_VAL;
    double below = linear->count[from], above = linear->total - linear->count[to];
    double first = linear->n[from], last = linear->n[to - 1];
    double own = linear->entropy[to] - linear->entropy[from] + n_log_n(first + below) - n_log_n(first) +
                 n_log_n(last + above) - n_log_n(last);
    double cross = cross_entropy(linear, from, to, codes, below, above);
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

static void search_thresholds(struct tare_range *out, const struct linear *linear, const struct judge *judge,
                              double low, double high, int codes) {
    double best = HUGE_VAL;
    int64_t candidates = 0;
    for (int i = 1; i <= linear->half; i++) {
        int from, to;
        ends_of(&from, &to, linear, low, high, i);
        if (to - from < codes && i < linear->half) continue; /* fewer bins than codes: no divergence to compare */
        const double value = divergence(linear, from, to, codes);
        const struct tare_range range = range_of(linear, low, high, i);
        candidates++;
        if (value > best) continue; /* the widest of equal ones */
        if (i < linear->half && error_of(judge, range.low, range.high) > judge->limit) continue;
        best = value;
        *out = range;
    }
    out->candidates = candidates;
}

static tare_status search(struct tare_range *out, const struct tare_histogram_bin *bins, size_t count, double low,
                          double high, int codes, struct judge *judge) {
    struct linear *linear = tare_calloc(1, sizeof *linear);
    if (!linear) return TARE_NO_MEMORY;
    *out = (struct tare_range){ .low = low, .high = high };
    resample(linear, bins, count, fmax(fabs(low), fabs(high)));
    merge_bins(linear);
    sum_up(linear);
    judge->limit = error_of(judge, low, high);
    search_thresholds(out, linear, judge, low, high, codes);
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
