/* entropy: the range whose codes tell most of the values' distribution (least Kullback-Leibler divergence).
 *
 * The histogram is spread over bins of equal width on [-m, m], m the greatest magnitude. For a threshold t the
 * candidate range is [max(low, -t), min(high, t)], widened to hold 0. P is the distribution inside, with what lies
 * outside added to the end bins; Q is what the codes can tell: the mass of each code's bins spread evenly over those of
 * them that are not empty. Zeros are left out of both: they are represented without error, and behind a rectifier they
 * would outweigh all the rest.
 *
 * With prefix sums of n, n log n and of the bins that are not empty, one candidate takes time in the number of codes.
 */
#include "calib/algos/rows.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum {
    HALF = 4096, /* bins on each side of zero */
    BINS = 2 * HALF,
};
/* Below this magnitude a bin's width would leave the normal doubles' comfortable range for float data; such a tensor
 * has one scale whatever is chosen. */
static const double SMALLEST_REACH = 0x1p-110;

struct linear {
    double n[BINS];
    double count[BINS + 1], entropy[BINS + 1], filled[BINS + 1]; /* prefix sums */
    double total, width;
};

static void spread(struct linear *linear, const struct tare_histogram_bin *bins, size_t count, double reach) {
    linear->width = reach / HALF;
    for (size_t i = 0; i < count; i++) {
        const struct tare_histogram_bin *bin = &bins[i];
        if (bin->low == 0 && bin->high == 0) continue;
        double from = bin->low / linear->width + HALF, to = bin->high / linear->width + HALF;
        int first = (int)floor(from), last = (int)floor(to);
        first = first < 0 ? 0 : first >= BINS ? BINS - 1 : first;
        last = last < first ? first : last >= BINS ? BINS - 1 : last;
        for (int at = first; at <= last; at++) {
            double part = first == last ? 1 : (fmin(to, at + 1) - fmax(from, at)) / (to - from);
            if (part > 0) linear->n[at] += part * (double)bin->count;
        }
    }
    for (int i = 0; i < BINS; i++) {
        double n = linear->n[i];
        linear->count[i + 1] = linear->count[i] + n;
        linear->entropy[i + 1] = linear->entropy[i] + (n > 0 ? n * log(n) : 0);
        linear->filled[i + 1] = linear->filled[i] + (n > 0);
    }
    linear->total = linear->count[BINS];
}

static double n_log_n(double n) {
    return n > 0 ? n * log(n) : 0;
}

/* The sum of p log q over the bins from … to-1; -HUGE_VAL when P has mass where Q has none. */
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

/* Divergence of the range from … to-1 (at least two bins) told by `codes` codes. */
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

/* Bins of the range that a threshold of `i` bins gives. */
static void ends_of(int *from, int *to, const struct linear *linear, double low, double high, int i) {
    int lowest = (int)floor(low / linear->width + HALF), highest = (int)ceil(high / linear->width + HALF);
    *from = HALF - i > lowest ? HALF - i : lowest;
    *to = HALF + i < highest ? HALF + i : highest;
    *from = *from < 0 ? 0 : *from > HALF ? HALF : *from;
    *to = *to > BINS ? BINS : *to < HALF ? HALF : *to;
}

static tare_status search(struct tare_range *out, const struct tare_histogram_bin *bins, size_t count, double low,
                          double high, int codes) {
    double reach = fmax(fabs(low), fabs(high)), best = HUGE_VAL;
    struct linear *linear = tare_calloc(1, sizeof *linear);
    if (!linear) return TARE_NO_MEMORY;
    spread(linear, bins, count, reach);
    int chosen = HALF;
    out->candidates = 0;
    for (int i = 1; i <= HALF; i++) {
        int from, to;
        ends_of(&from, &to, linear, low, high, i);
        if (to - from < codes && i < HALF) continue; /* fewer bins than codes tell everything: no candidate */
        double value = divergence(linear, from, to, codes);
        out->candidates++;
        if (value > best) continue; /* of equals the widest */
        best = value;
        chosen = i;
    }
    double threshold = chosen * linear->width;
    out->low = chosen == HALF ? low : fmax(low, fmin(-threshold, high));
    out->high = chosen == HALF ? high : fmin(high, fmax(threshold, low));
    tare_free(linear);
    return TARE_OK;
}

/* The bins of the magnitudes, in no order. */
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
    int codes = (1 << scheme->bits) - 1;
    if (!scheme->symmetric) return search(out, bins->bins, bins->count, bins->low, bins->high, codes);
    struct tare_histogram_bin *folded = fold(bins);
    if (!folded) return TARE_NO_MEMORY;
    tare_status status = search(out, folded, bins->count, 0, reach, codes / 2 + 1);
    out->low = -out->high;
    tare_free(folded);
    return status;
}

const struct tare_algorithm tare_algorithm_entropy = {
    .name = "entropy",
    .help = "the range whose codes tell most of the values' distribution (least Kullback-Leibler divergence)",
    .range = range,
};
