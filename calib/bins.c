/* Bins with prefix sums, from the counters of a histogram. */
#include "calib/bins.h"

#include "base/alloc.h"
#include "base/tensor/number.h"
#include "calib/scan.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void fill_sums(struct tare_bins *bins) {
    bins->counts[0] = bins->sums[0] = bins->squares[0] = 0;
    bins->centers[bins->count] = HUGE_VAL;
    for (size_t i = 0; i < bins->count; i++) {
        double count = (double)bins->bins[i].count;
        double center = 0.5 * (bins->bins[i].low + bins->bins[i].high);
        bins->centers[i] = center;
        bins->counts[i + 1] = bins->counts[i] + count;
        bins->sums[i + 1] = bins->sums[i] + count * center;
        bins->squares[i + 1] = bins->squares[i] + count * center * center;
    }
}

/* ---- places by value ---- */

/* Pages in ascending order of value: the negative ones from the greatest exponent down, then the positive ones. */
static int page_in_order(int i) {
    return i < TARE_HISTOGRAM_PAGES / 2 ? TARE_HISTOGRAM_PAGES - 1 - i : i - TARE_HISTOGRAM_PAGES / 2;
}

/* Place of a value's bin in its page, in ascending order of value. */
static uint32_t bin_in_order(uint32_t bits) {
    uint32_t bin = bits >> TARE_SCAN_SHIFT & (TARE_HISTOGRAM_BINS - 1);
    return bits >> 31 ? TARE_HISTOGRAM_BINS - 1 - bin : bin;
}

static uint32_t bits_of(double value) {
    return tare_float_bits((float)value); /* an end of a bin, or an exact extreme: a float */
}

/* Fills the numbers of bins below each place of a page; the first bin of the page is bin `first`. Returns the number of
 * bins in the page. */
static size_t index_page(uint16_t below[TARE_HISTOGRAM_BINS], const struct tare_bins *bins, size_t first, int page) {
    uint32_t next = 0;
    size_t at = first;
    for (; at < bins->count; at++) {
        const uint32_t bits = bits_of(bins->bins[at].low);
        if (bits >> 23 != (uint32_t)page || bins->centers[at] == 0) break;
        for (const uint32_t end = bin_in_order(bits); next <= end; next++)
            below[next] = (uint16_t)(at - first);
    }
    for (; next < TARE_HISTOGRAM_BINS; next++)
        below[next] = (uint16_t)(at - first);
    return at - first;
}

static tare_status index_bins(struct tare_bins *bins) {
    int16_t pages = 0;
    for (int page = 0; page < TARE_HISTOGRAM_PAGES; page++)
        bins->place[page] = -1;
    for (size_t i = 0; i < bins->count; i++) {
        if (bins->centers[i] < 0) bins->negative++;
        int16_t *place = &bins->place[bits_of(bins->bins[i].low) >> 23];
        if (bins->centers[i] != 0 && *place < 0) *place = pages++;
    }
    bins->below = tare_calloc((size_t)pages * TARE_HISTOGRAM_BINS + 1, sizeof *bins->below);
    if (!bins->below) return TARE_NO_MEMORY;
    size_t at = 0;
    for (int i = 0; i < TARE_HISTOGRAM_PAGES; i++) {
        int page = page_in_order(i);
        if (page == 0 && at < bins->count && bins->centers[at] == 0) at++;
        bins->before[page] = (uint32_t)at;
        if (bins->place[page] < 0) continue;
        uint16_t *below = bins->below + (size_t)bins->place[page] * TARE_HISTOGRAM_BINS;
        at += index_page(below, bins, at, page);
    }
    return TARE_OK;
}

/* Centres and sums in one block, which fill_sums fills: the system clears large blocks, which costs as much. */
static bool new_sums(struct tare_bins *bins) {
    const size_t each = bins->count + 1;
    bins->centers = tare_malloc(4 * each * sizeof *bins->centers);
    if (!bins->centers) return false;
    bins->counts = bins->centers + each;
    bins->sums = bins->counts + each;
    bins->squares = bins->sums + each;
    return true;
}

tare_status tare_bins_make(struct tare_bins *out, const struct tare_statistics *statistics) {
    memset(out, 0, sizeof *out);
    if (!tare_statistics_extremes(&out->low, &out->high, statistics))
        return TARE_FAIL(TARE_NOT_FOUND, "no finite value was seen");
    tare_status status = TARE_OK;
    TARE_CHECK(tare_histogram_list(&out->bins, &out->count, &statistics->histogram));
    if (out->count == 0) {
        status = TARE_FAIL(TARE_CORRUPT, "statistics with extremes but without counts");
        goto done;
    }
    struct tare_histogram_bin *first = &out->bins[0], *last = &out->bins[out->count - 1];
    if (out->low > first->low && out->low <= first->high) first->low = out->low;
    if (out->high < last->high && out->high >= last->low) last->high = out->high;
    if (!new_sums(out)) {
        status = TARE_NO_MEMORY;
        goto done;
    }
    fill_sums(out);
    status = index_bins(out);
done:
    if (status != TARE_OK) tare_bins_free(out);
    return status;
}

void tare_bins_free(struct tare_bins *bins) {
    tare_free(bins->bins);
    tare_free(bins->centers);
    tare_free(bins->below);
    memset(bins, 0, sizeof *bins);
}

size_t tare_bins_below(const struct tare_bins *bins, double value) {
    float rounded = (float)value;
    if (rounded > FLT_MAX || rounded < -FLT_MAX) return value > 0 ? bins->count : 0;
    if (rounded == 0) {
        size_t at = bins->negative;
        while (at > 0 && bins->centers[at - 1] >= value)
            at--;
        while (at < bins->count && bins->centers[at] < value)
            at++;
        return at;
    }
    uint32_t bits = tare_float_bits(rounded), page = bits >> 23;
    size_t at = bins->before[page];
    if (bins->place[page] >= 0) at += bins->below[(size_t)bins->place[page] * TARE_HISTOGRAM_BINS + bin_in_order(bits)];
    /* Bins below the value's own have centres below it. Its own has in half of the cases, which no branch could
     * foresee, and rounding may have moved the value over an end of its bin. */
    at += bins->centers[at] < value;
    while (at > 0 && bins->centers[at - 1] >= value)
        at--;
    while (bins->centers[at] < value)
        at++;
    return at;
}
