/* entropy: the range whose codes preserve the distribution of the values best (least Kullback-Leibler divergence).
 *
 * The histogram is resampled to bins of equal width on [-m, m], where m is the largest magnitude. For a threshold t
 * the candidate range is [max(low, -t), min(high, t)], extended to contain 0. P is the distribution inside the range,
 * with the mass outside it added to the end bins. Q is the distribution that the codes can represent: the mass of each
 * code's bins, spread evenly over the nonempty ones. Zeros are excluded from both: they are exact, and
 * after a rectifier they would outweigh everything else.
 *
 * Of a candidate there is a bound from below, which takes constant time, the approximate divergence and the exact one,
 * which take a time proportional to the number of codes (divergence.h). The candidate with the least of these numbers
 * is computed better until no other one can be as good as the best exact one: mostly a fifth of the candidates need an
 * approximate divergence and one an exact one. The range is that of the exact search.
 *
 * The divergence alone is not a safe criterion, for two reasons, and each has its rule:
 *
 * - Minimum evidence. The count of a bin is a random sample. Q smooths its noise, which the divergence counts as a
 *   loss; the expected loss is (nonempty bins - codes) / 2N (Miller and Madow, 1955), so with few values
 *   narrow ranges, whose codes span fewer bins, look better than they are. Bins are therefore merged in pairs until
 * they hold EVIDENCE values (divergence.c) each on average. When that leaves fewer bins than codes, the values justify
 * no clipping and the range is that of min_max.
 * - The reconstruction error must agree. The divergence does not weigh how far a clipped value is moved. Where large
 *   values are rare but matter (inputs that mix scales, sparse features) it would clip all of them. A candidate is
 *   considered only if its squared error on the histogram is not greater than that of min_max. */
#include "calib/algos/rows.h"

#include "base/alloc.h"
#include "calib/algos/divergence.h"
#include "calib/quantization_error.h"

#include <math.h>
#include <string.h>

/* Below this magnitude, range-degenerate determines the scale for any threshold. */
static const double SMALLEST_REACH = 0x1p-110;

/* Bins of the range with a threshold of `i` bins. */
static void ends_of(int *from, int *to, const struct tare_linear_bins *linear, double low, double high, int i) {
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

static struct tare_range range_of(const struct tare_linear_bins *linear, double low, double high, int i) {
    const double threshold = i * linear->width;
    if (i == linear->half) return (struct tare_range){ .low = low, .high = high };
    return (struct tare_range){ .low = fmax(low, fmin(-threshold, high)), .high = fmin(high, fmax(threshold, low)) };
}

/* ---- the search ---- */

/* A threshold of `half_bins` bins. */
struct candidate {
    int half_bins, from, to;
    bool bounded; /* `divergence` is a bound from below; otherwise it is approximate */
    double divergence;
};

/* A heap: no candidate is before the one at half its place. */
struct queue {
    struct candidate *items; /* from 1 */
    int count;
};

static bool is_before(const struct candidate *a, const struct candidate *b) {
    return a->divergence != b->divergence ? a->divergence < b->divergence : a->half_bins > b->half_bins;
}

/* Puts a candidate at the place `at` or below it, over what is there. */
static void sink(struct queue *queue, int at, struct candidate candidate) {
    for (int below = 2 * at; below <= queue->count; at = below, below *= 2) {
        below += below < queue->count && is_before(&queue->items[below + 1], &queue->items[below]);
        if (!is_before(&queue->items[below], &candidate)) break;
        queue->items[at] = queue->items[below];
    }
    queue->items[at] = candidate;
}

static void list_candidates(struct queue *out, const struct tare_linear_bins *linear, double low, double high,
                            int codes) {
    out->count = 0;
    for (int i = 1; i <= linear->half; i++) {
        struct candidate c = { .half_bins = i, .bounded = true };
        ends_of(&c.from, &c.to, linear, low, high, i);
        if (c.to - c.from < codes && i < linear->half) continue; /* fewer bins than codes: no divergence to compare */
        c.divergence = tare_divergence_bound(linear, c.from, c.to, codes);
        out->items[++out->count] = c;
    }
    for (int at = out->count / 2; at > 0; at--)
        sink(out, at, out->items[at]);
}

/* The least exact divergence wins, and of equal ones the widest range. */
static void search_thresholds(struct tare_range *out, struct queue *queue, const struct tare_linear_bins *linear,
                              const struct judge *judge, double low, double high, int codes) {
    struct tare_log_table table;
    double best = HUGE_VAL;
    int widest = 0;
    tare_log_table_fill(&table);
    list_candidates(queue, linear, low, high, codes);
    out->candidates = queue->count;
    while (queue->count > 0 && queue->items[1].divergence <= best + TARE_DIVERGENCE_ERROR) {
        struct candidate c = queue->items[1];
        if (c.bounded) {
            c.bounded = false;
            c.divergence = tare_divergence(linear, c.from, c.to, codes, &table);
            sink(queue, 1, c);
            continue;
        }
        sink(queue, 1, queue->items[queue->count--]);
        const double value = tare_divergence(linear, c.from, c.to, codes, NULL);
        const struct tare_range range = range_of(linear, low, high, c.half_bins);
        if (value > best || (value == best && c.half_bins < widest)) continue;
        if (c.half_bins < linear->half && error_of(judge, range.low, range.high) > judge->limit) continue;
        best = value;
        widest = c.half_bins;
        *out = (struct tare_range){ .low = range.low, .high = range.high, .candidates = out->candidates };
    }
}

static tare_status search(struct tare_range *out, const struct tare_histogram_bin *bins, size_t count, double low,
                          double high, int codes, struct judge *judge) {
    struct tare_linear_bins *linear = tare_calloc(1, sizeof *linear);
    struct queue queue = { .items = tare_calloc(TARE_MOST_HALF_BINS + 1, sizeof *queue.items) };
    if (!linear || !queue.items) {
        tare_free(linear);
        tare_free(queue.items);
        return TARE_NO_MEMORY;
    }
    *out = (struct tare_range){ .low = low, .high = high };
    tare_linear_bins_make(linear, bins, count, fmax(fabs(low), fabs(high)));
    judge->limit = error_of(judge, low, high);
    search_thresholds(out, &queue, linear, judge, low, high, codes);
    tare_free(queue.items);
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
    .of_integers = true,
};
