/* Statistics to bytes. */
#include "calib/format/file_parts.h"

static void write_place(struct tare_wire_writer *out, const struct tare_place *place) {
    tare_wire_put_varint(out, (uint64_t)place->input);
    tare_wire_put_varint(out, (uint64_t)place->record);
    tare_wire_put_varint(out, (uint64_t)place->index);
}

static void write_extremes(struct tare_wire_writer *out, const struct tare_extreme *extremes, int count) {
    for (int i = 0; i < count; i++) {
        tare_wire_put_float(out, extremes[i].value);
        tare_wire_put_varint(out, (uint64_t)extremes[i].input);
        tare_wire_put_varint(out, (uint64_t)extremes[i].record);
    }
}

static void write_buckets(struct tare_wire_writer *out, const struct tare_statistics *s) {
    uint64_t used = 0;
    for (int i = 0; i < TARE_STATISTICS_BUCKETS; i++)
        used |= (uint64_t)s->bucket_used[i] << i;
    tare_wire_put_varint(out, used);
    for (int i = 0; i < TARE_STATISTICS_BUCKETS; i++) {
        if (!s->bucket_used[i]) continue;
        tare_wire_put_float(out, s->bucket_low[i]);
        tare_wire_put_float(out, s->bucket_high[i]);
    }
}

/* A channel without finite values has low > high; it is written as low 1, high 0. */
static void write_channels(struct tare_wire_writer *out, const struct tare_statistics *s) {
    tare_wire_put_varint(out, (uint64_t)(s->channels + 1));
    for (int64_t i = 0; i < s->channels; i++) {
        bool seen = s->channel_low[i] <= s->channel_high[i];
        tare_wire_put_float(out, seen ? s->channel_low[i] : 1);
        tare_wire_put_float(out, seen ? s->channel_high[i] : 0);
        tare_wire_put_sum(out, &s->channel_sum[i]);
    }
}

static void write_histogram(struct tare_wire_writer *out, const struct tare_histogram *histogram) {
    tare_wire_put_varint(out, (uint64_t)histogram->zeros);
    tare_wire_put_varint(out, (uint64_t)histogram->nans);
    tare_wire_put_varint(out, (uint64_t)histogram->positive_infinities);
    tare_wire_put_varint(out, (uint64_t)histogram->negative_infinities);
    uint64_t used = 0, next = 0;
    int64_t counts[TARE_HISTOGRAM_BINS];
    for (int k = 0; k < histogram->n_pages; k++) {
        tare_histogram_read_page(counts, histogram, k);
        for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)
            used += counts[i] != 0;
    }
    tare_wire_put_varint(out, used);
    for (int k = 0; k < histogram->n_pages; k++) {
        const int page = tare_histogram_read_page(counts, histogram, k);
        for (int i = 0; i < TARE_HISTOGRAM_BINS; i++) {
            if (counts[i] == 0) continue;
            uint64_t slot = (uint64_t)page * TARE_HISTOGRAM_BINS + (uint64_t)i;
            tare_wire_put_varint(out, slot - next);
            tare_wire_put_varint(out, (uint64_t)counts[i]);
            next = slot + 1;
        }
    }
}

void tare_statistics_write(struct tare_wire_writer *out, const struct tare_statistics *s) {
    tare_wire_put_varint(out, (uint64_t)s->samples);
    tare_wire_put_varint(out, (uint64_t)s->finite_samples);
    tare_wire_put_varint(out, (uint64_t)s->n_extremes << 2 | (uint64_t)s->has_nan << 1 | s->has_infinity);
    write_extremes(out, s->lowest, s->n_extremes);
    write_extremes(out, s->highest, s->n_extremes);
    if (s->has_nan) write_place(out, &s->first_nan);
    if (s->has_infinity) write_place(out, &s->first_infinity);
    tare_wire_put_sum(out, &s->sum);
    tare_wire_put_sum(out, &s->sum_of_squares);
    tare_wire_put_sum(out, &s->sum_of_minima);
    tare_wire_put_sum(out, &s->sum_of_maxima);
    write_buckets(out, s);
    write_channels(out, s);
    write_histogram(out, &s->histogram);
}
