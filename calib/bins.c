#include "calib/bins.h"

#include "base/alloc.h"

#include <string.h>

static void fill_sums(struct tare_bins *bins) {
    bins->counts[0] = bins->sums[0] = bins->squares[0] = 0;
    for (size_t i = 0; i < bins->count; i++) {
        double count = (double)bins->bins[i].count;
        double center = 0.5 * (bins->bins[i].low + bins->bins[i].high);
        bins->centers[i] = center;
        bins->counts[i + 1] = bins->counts[i] + count;
        bins->sums[i + 1] = bins->sums[i] + count * center;
        bins->squares[i + 1] = bins->squares[i] + count * center * center;
    }
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
    out->centers = tare_calloc(out->count, sizeof *out->centers);
    out->counts = tare_calloc(out->count + 1, sizeof *out->counts);
    out->sums = tare_calloc(out->count + 1, sizeof *out->sums);
    out->squares = tare_calloc(out->count + 1, sizeof *out->squares);
    if (out->centers == NULL || out->counts == NULL || out->sums == NULL || out->squares == NULL) {
        status = TARE_NO_MEMORY;
        goto done;
    }
    fill_sums(out);
done:
    if (status != TARE_OK) tare_bins_free(out);
    return status;
}

void tare_bins_free(struct tare_bins *bins) {
    tare_free(bins->bins);
    tare_free(bins->centers);
    tare_free(bins->counts);
    tare_free(bins->sums);
    tare_free(bins->squares);
    memset(bins, 0, sizeof *bins);
}

size_t tare_bins_below(const struct tare_bins *bins, double value) {
    size_t low = 0, high = bins->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bins->centers[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
