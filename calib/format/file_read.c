/* Decodes statistics and checks the invariants between their parts. */
#include "calib/format/file_parts.h"

#include "base/alloc.h"
#include "calib/channels.h"
#include "calib/scan.h"

#include <math.h>
#include <string.h>

static int32_t read_input(struct tare_wire_reader *in, size_t n_inputs) {
    uint64_t input = tare_wire_varint(in, INT32_MAX);
    if (in->status == TARE_OK && input >= n_inputs) tare_wire_fail(in, "bad input number");
    return in->status == TARE_OK ? (int32_t)input : 0;
}

static void read_place(struct tare_wire_reader *in, struct tare_place *place, size_t n_inputs) {
    place->input = read_input(in, n_inputs);
    place->record = (int64_t)tare_wire_varint(in, INT64_MAX);
    place->index = (int64_t)tare_wire_varint(in, INT64_MAX);
}

static void read_extremes(struct tare_wire_reader *in, struct tare_extreme *extremes, int count, float sign,
                          size_t n_inputs) {
    for (int i = 0; i < count; i++) {
        extremes[i].value = tare_wire_float(in);
        extremes[i].input = read_input(in, n_inputs);
        extremes[i].record = (int64_t)tare_wire_varint(in, INT64_MAX);
    }
    bool same = count == 2 && extremes[0].input == extremes[1].input && extremes[0].record == extremes[1].record;
    if (count == 2 && (same || sign * extremes[0].value < sign * extremes[1].value))
        tare_wire_fail(in, "bad order of extremes");
}

static void read_buckets(struct tare_wire_reader *in, struct tare_statistics *s) {
    uint64_t used = tare_wire_varint(in, ((uint64_t)1 << TARE_STATISTICS_BUCKETS) - 1);
    for (int i = 0; i < TARE_STATISTICS_BUCKETS; i++) {
        s->bucket_used[i] = used >> i & 1;
        if (!s->bucket_used[i]) continue;
        s->bucket_low[i] = tare_wire_float(in);
        s->bucket_high[i] = tare_wire_float(in);
        if (s->bucket_low[i] > s->bucket_high[i]) tare_wire_fail(in, "bad range");
    }
}

static void read_channels(struct tare_wire_reader *in, struct tare_statistics *s) {
    uint64_t channels = tare_wire_varint(in, TARE_STATISTICS_MAX_CHANNELS + 1);
    enum { LEAST_BYTES = 10 }; /* of one channel: two floats and an empty sum */
    if (channels > 1 && (!s->per_channel || channels - 1 > (in->size - in->offset) / LEAST_BYTES))
        tare_wire_fail(in, "bad number of channels");
    if (in->status != TARE_OK) return;
    in->status = tare_channels_set(s, (int64_t)channels - 1);
    for (int64_t i = 0; i < s->channels && in->status == TARE_OK; i++) {
        float low = tare_wire_float(in), high = tare_wire_float(in);
        s->channel_low[i] = low <= high ? low : INFINITY;
        s->channel_high[i] = low <= high ? high : -INFINITY;
        tare_wire_sum(in, &s->channel_sum[i]);
    }
}

static void add_count(struct tare_wire_reader *in, int64_t *total, uint64_t count) {
    if (__builtin_add_overflow(*total, (int64_t)count, total)) tare_wire_fail(in, "bad count");
}

static void add_page(struct tare_wire_reader *in, struct tare_histogram *histogram, uint64_t page,
                     const int64_t counts[TARE_HISTOGRAM_BINS]) {
    if (in->status != TARE_OK) return;
    const tare_status status = tare_histogram_add_page(histogram, (int)page, counts);
    if (status != TARE_OK) in->status = status;
}

/* The bins, which are collected by page; *finite counts them. */
static void read_bins(struct tare_wire_reader *in, struct tare_histogram *histogram, int64_t *finite) {
    int64_t counts[TARE_HISTOGRAM_BINS] = { 0 };
    const size_t count = tare_wire_count(in, 2);
    uint64_t slot = 0, current = TARE_HISTOGRAM_PAGES;
    for (size_t i = 0; i < count && in->status == TARE_OK; i++, slot++) {
        slot += tare_wire_varint(in, TARE_SCAN_SLOTS);
        uint64_t number = tare_wire_varint(in, INT64_MAX);
        uint64_t page = slot / TARE_HISTOGRAM_BINS;
        bool beyond = page >= TARE_HISTOGRAM_PAGES || page % (TARE_HISTOGRAM_PAGES / 2) == TARE_HISTOGRAM_PAGES / 2 - 1;
        if (in->status == TARE_OK && (beyond || number == 0)) tare_wire_fail(in, "bad bin");
        if (in->status != TARE_OK) return;
        if (page != current && current < TARE_HISTOGRAM_PAGES) {
            add_page(in, histogram, current, counts);
            memset(counts, 0, sizeof counts);
        }
        current = page;
        counts[slot % TARE_HISTOGRAM_BINS] = (int64_t)number;
        add_count(in, finite, number);
    }
    if (current < TARE_HISTOGRAM_PAGES) add_page(in, histogram, current, counts);
}

/* *finite counts all values but NaN and infinities. */
static void read_histogram(struct tare_wire_reader *in, struct tare_histogram *histogram, int64_t *finite) {
    int64_t all = 0;
    histogram->zeros = (int64_t)tare_wire_varint(in, INT64_MAX);
    histogram->nans = (int64_t)tare_wire_varint(in, INT64_MAX);
    histogram->positive_infinities = (int64_t)tare_wire_varint(in, INT64_MAX);
    histogram->negative_infinities = (int64_t)tare_wire_varint(in, INT64_MAX);
    *finite = histogram->zeros;
    read_bins(in, histogram, finite);
    all = *finite;
    add_count(in, &all, (uint64_t)histogram->nans);
    add_count(in, &all, (uint64_t)histogram->positive_infinities);
    add_count(in, &all, (uint64_t)histogram->negative_infinities);
}

/* The extremes must be in the outermost bins: calibration algorithms rely on it. */
static void check_extremes(struct tare_wire_reader *in, const struct tare_statistics *s) {
    struct tare_histogram_bin *bins;
    size_t count;
    tare_status status = tare_histogram_list(&bins, &count, &s->histogram);
    if (status != TARE_OK) {
        in->status = status;
        return;
    }
    double low = s->lowest[0].value, high = s->highest[0].value;
    bool fit = count > 0 && low >= bins[0].low && low <= bins[0].high && high >= bins[count - 1].low &&
               high <= bins[count - 1].high;
    tare_free(bins);
    if (!fit) tare_wire_fail(in, "extremes that do not fit the histogram");
}

void tare_statistics_read(struct tare_wire_reader *in, struct tare_statistics *s, size_t n_inputs) {
    int64_t finite = 0;
    s->samples = (int64_t)tare_wire_varint(in, INT64_MAX);
    s->finite_samples = (int64_t)tare_wire_varint(in, (uint64_t)s->samples);
    uint64_t kind = tare_wire_varint(in, 2 << 2 | 3);
    s->n_extremes = (int)(kind >> 2);
    s->has_nan = kind >> 1 & 1;
    s->has_infinity = kind & 1;
    read_extremes(in, s->lowest, s->n_extremes, -1, n_inputs);
    read_extremes(in, s->highest, s->n_extremes, 1, n_inputs);
    if (s->has_nan) read_place(in, &s->first_nan, n_inputs);
    if (s->has_infinity) read_place(in, &s->first_infinity, n_inputs);
    tare_wire_sum(in, &s->sum);
    tare_wire_sum(in, &s->sum_of_squares);
    tare_wire_sum(in, &s->sum_of_minima);
    tare_wire_sum(in, &s->sum_of_maxima);
    read_buckets(in, s);
    read_channels(in, s);
    read_histogram(in, &s->histogram, &finite);
    if (in->status != TARE_OK) return;
    int64_t infinities = s->histogram.positive_infinities + s->histogram.negative_infinities;
    if ((s->n_extremes > 0) != (finite > 0) || (s->finite_samples > 0) != (finite > 0) ||
        s->has_nan != (s->histogram.nans > 0) || s->has_infinity != (infinities > 0)) {
        tare_wire_fail(in, "statistics that contradict each other");
    } else if (s->n_extremes > 0) {
        check_extremes(in, s);
    }
}
