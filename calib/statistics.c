/* Filling, merging and reading the statistics of one tensor. */
#include "calib/statistics.h"

#include "base/alloc.h"
#include "base/control.h"
#include "calib/channels.h"
#include "base/tensor/number.h"
#include "calib/tally.h"

#include <math.h>
#include <string.h>

static bool comes_before(int32_t input, int64_t record, int32_t other_input, int64_t other_record) {
    return input != other_input ? input < other_input : record < other_record;
}

/* True if a precedes b in a list of extremes; `sign`: 1 for maxima (largest first), -1 for minima. */
static bool is_ahead(const struct tare_extreme *a, const struct tare_extreme *b, float sign) {
    if (a->value != b->value) return sign * a->value > sign * b->value;
    return comes_before(a->input, a->record, b->input, b->record);
}

/* Inserts a record's extreme into a list of the best two, each record at most once. */
static void insert_extreme(struct tare_extreme list[2], int count, const struct tare_extreme *extreme, float sign) {
    for (int i = 0; i < count; i++) {
        if (list[i].input != extreme->input || list[i].record != extreme->record) continue;
        if (sign * extreme->value <= sign * list[i].value) return;
        list[i] = *extreme;
        if (i == 1 && is_ahead(&list[1], &list[0], sign)) {
            struct tare_extreme first = list[1];
            list[1] = list[0];
            list[0] = first;
        }
        return;
    }
    if (count == 0 || is_ahead(extreme, &list[0], sign)) {
        list[1] = list[0];
        list[0] = *extreme;
    } else if (count == 1 || is_ahead(extreme, &list[1], sign)) {
        list[1] = *extreme;
    }
}

static bool has_record(const struct tare_extreme *list, int count, int32_t input, int64_t record) {
    for (int i = 0; i < count; i++) {
        if (list[i].input == input && list[i].record == record) return true;
    }
    return false;
}

static void insert_record(struct tare_statistics *s, float low, float high, int32_t input, int64_t record) {
    bool known = has_record(s->lowest, s->n_extremes, input, record);
    struct tare_extreme least = { low, input, record }, greatest = { high, input, record };
    insert_extreme(s->lowest, s->n_extremes, &least, -1);
    insert_extreme(s->highest, s->n_extremes, &greatest, 1);
    /* Both lists have an entry until there are two records; with one record, both contain it. */
    if (!known && s->n_extremes < 2) s->n_extremes++;
}

static int bucket_of(int64_t index) {
    int bucket = index <= 0 ? 0 : 64 - __builtin_clzll((uint64_t)index);
    return bucket < TARE_STATISTICS_BUCKETS ? bucket : TARE_STATISTICS_BUCKETS - 1;
}

static void widen_bucket(struct tare_statistics *s, int bucket, float low, float high) {
    if (!s->bucket_used[bucket] || low < s->bucket_low[bucket]) s->bucket_low[bucket] = low;
    if (!s->bucket_used[bucket] || high > s->bucket_high[bucket]) s->bucket_high[bucket] = high;
    s->bucket_used[bucket] = true;
}

static void keep_first(bool *has, struct tare_place *first, const struct tare_place *place) {
    if (!*has || comes_before(place->input, place->record, first->input, first->record)) *first = *place;
    *has = true;
}

/* The summary of one sample's values, until it is added to the statistics. */
struct summary {
    float low, high; /* low > high: no finite value */
    double sum, squares;
    bool nan, infinity;
};

static void finish_sample(struct tare_statistics *s, const struct summary *summary, const struct tare_place *place) {
    s->samples++;
    if (summary->nan) keep_first(&s->has_nan, &s->first_nan, place);
    if (summary->infinity) keep_first(&s->has_infinity, &s->first_infinity, place);
    if (summary->low > summary->high) return;
    s->finite_samples++;
    insert_record(s, summary->low, summary->high, place->input, place->record);
    widen_bucket(s, bucket_of(place->index), summary->low, summary->high);
    tare_exact_sum_add(&s->sum, summary->sum);
    tare_exact_sum_add(&s->sum_of_squares, summary->squares);
    tare_exact_sum_add(&s->sum_of_minima, summary->low);
    tare_exact_sum_add(&s->sum_of_maxima, summary->high);
}

/* Values from element `first` on as floats: the tensor's own memory, or `buffer` filled with at most TARE_SCAN_BLOCK.
 */
static const float *as_floats(const struct tare_tensor *value, int64_t first, int64_t count, float *buffer) {
    if (value->dtype == TARE_DT_FLOAT) return TARE_CONST_DATA(float, value) + first;
    for (int64_t i = 0; i < count; i++) {
        switch (value->dtype) {
        case TARE_DT_BFLOAT16:
            buffer[i] = tare_float_from_bfloat16(TARE_CONST_DATA(uint16_t, value)[first + i]);
            break;
        case TARE_DT_HALF:
            buffer[i] = tare_float_from_half(TARE_CONST_DATA(uint16_t, value)[first + i]);
            break;
        default:
            buffer[i] = (float)tare_tensor_get_f64(value, first + i);
            break;
        }
    }
    return buffer;
}

/* Adds values to statistics that other threads may be adding to as well: they are accessed under the lock only. */
struct accumulator {
    struct tare_statistics *statistics;
    struct tare_tally *tally;
    pthread_mutex_t *lock; /* NULL: this thread has them for itself */
    const struct tare_tensor *value;
    bool channels; /* also counted per channel, directly into the statistics, with the lock held throughout */
};

static void lock(const struct accumulator *a) {
    if (a->lock && !a->channels) pthread_mutex_lock(a->lock);
}

static void unlock(const struct accumulator *a) {
    if (a->lock && !a->channels) pthread_mutex_unlock(a->lock);
}

static tare_status make_room(const struct accumulator *a) {
    if (!tare_tally_is_full(a->tally)) return TARE_OK;
    lock(a);
    tare_status status = tare_histogram_take(&a->statistics->histogram, a->tally);
    unlock(a);
    return status;
}

/* One record's share of the value: elements first … first+count-1. */
static tare_status scan_sample(struct summary *out, const struct accumulator *a, int64_t first, int64_t count) {
    float buffer[TARE_SCAN_BLOCK];
    int64_t step = a->value->dtype == TARE_DT_FLOAT && !a->channels ? TARE_TALLY_RUN : TARE_SCAN_BLOCK;
    struct tare_scan scan;
    *out = (struct summary){ .low = 1 };
    tare_scan_begin(&scan);
    if (a->channels) tare_channels_begin(a->statistics);
    for (int64_t done = 0; done < count; done += step) {
        TARE_TRY(tare_control_check());
        TARE_TRY(make_room(a));
        int64_t nans = tare_tally_nans(a->tally), infinities = tare_tally_infinities(a->tally);
        int64_t run = count - done < step ? count - done : step;
        const float *values = as_floats(a->value, first + done, run, buffer);
        tare_tally_add(a->tally, &scan, values, run);
        if (a->channels) tare_channels_add(a->statistics, values, done, run);
        out->nan = out->nan || tare_tally_nans(a->tally) != nans;
        out->infinity = out->infinity || tare_tally_infinities(a->tally) != infinities;
    }
    if (a->channels) tare_channels_end(a->statistics);
    if (scan.low > scan.high) return TARE_OK;
    out->low = scan.low;
    out->high = scan.high;
    out->sum = tare_scan_total(scan.sums);
    out->squares = tare_scan_total(scan.squares);
    return TARE_OK;
}

/* Scans all samples first, then adds their summaries, so that the statistics are locked only while adding. */
static tare_status add_samples(const struct accumulator *a, const struct tare_place *places, int64_t count,
                               int64_t share, bool split) {
    enum { MOST = 32 };
    struct summary summary[MOST];
    tare_status status = TARE_OK;
    tare_tally_begin(a->tally, share * count);
    for (int64_t done = 0; done < count && status == TARE_OK; done += MOST) {
        int64_t some = count - done < MOST ? count - done : MOST;
        for (int64_t i = 0; i < some && status == TARE_OK; i++)
            status = scan_sample(&summary[i], a, split ? (done + i) * share : 0, share);
        lock(a);
        if (status != TARE_OK || done + some == count) {
            tare_status taken = tare_histogram_take(&a->statistics->histogram, a->tally);
            if (status == TARE_OK) status = taken;
        }
        for (int64_t i = 0; i < some && status == TARE_OK; i++)
            finish_sample(a->statistics, &summary[i], &places[done + i]);
        unlock(a);
    }
    return status;
}

static tare_status check_value(const struct tare_tensor *value, int64_t count, enum tare_batch_layout layout) {
    char text[TARE_SHAPE_TEXT_SIZE];
    if (!tare_dtype_is_floating(value->dtype))
        return TARE_FAIL(TARE_TYPE, "statistics of %s values (expected a floating dtype)",
                         tare_dtype_name(value->dtype));
    if (layout != TARE_BATCH_SPLIT || count <= 1 || (value->shape.rank >= 1 && value->shape.dims[0] % count == 0))
        return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "%lld records do not divide axis 0 of %s", (long long)count,
                     tare_shape_text(text, &value->shape));
}

tare_status tare_statistics_add_shared(struct tare_statistics *s, pthread_mutex_t *mutex, struct tare_tally *tally,
                                       const struct tare_tensor *value, const struct tare_place *places, int64_t count,
                                       enum tare_batch_layout layout) {
    struct tare_tensor whole = { 0 };
    struct accumulator a = { s, tally, mutex, value, false };
    const bool split = layout == TARE_BATCH_SPLIT;
    TARE_TRY(check_value(value, count, layout));
    if (value->splat) {
        TARE_TRY(tare_tensor_copy(&whole, value));
        a.value = &whole;
    }
    tare_status status = TARE_OK;
    if (s->per_channel) {
        if (mutex) pthread_mutex_lock(mutex);
        status = tare_channels_match(s, &value->shape);
        a.channels = s->channels > 0;
        if (mutex && !a.channels) pthread_mutex_unlock(mutex);
    }
    if (status == TARE_OK)
        status = add_samples(&a, places, count, split && count > 1 ? value->elements / count : value->elements, split);
    if (mutex && a.channels) pthread_mutex_unlock(mutex);
    tare_tensor_reset(&whole);
    return status;
}

tare_status tare_statistics_add(struct tare_statistics *s, struct tare_tally *tally, const struct tare_tensor *value,
                                const struct tare_place *places, int64_t count, enum tare_batch_layout layout) {
    return tare_statistics_add_shared(s, NULL, tally, value, places, count, layout);
}

static int32_t mapped(const int32_t *inputs, int32_t input) {
    return !inputs ? input : inputs[input];
}

static void merge_extremes(struct tare_statistics *s, const struct tare_statistics *other, const int32_t *inputs) {
    int mine = s->n_extremes, low_count = mine, high_count = mine;
    for (int i = 0; i < other->n_extremes; i++) {
        struct tare_extreme low = other->lowest[i], high = other->highest[i];
        low.input = mapped(inputs, low.input);
        high.input = mapped(inputs, high.input);
        bool new_low = !has_record(s->lowest, low_count, low.input, low.record);
        bool new_high = !has_record(s->highest, high_count, high.input, high.record);
        insert_extreme(s->lowest, low_count, &low, -1);
        insert_extreme(s->highest, high_count, &high, 1);
        if (new_low && low_count < 2) low_count++;
        if (new_high && high_count < 2) high_count++;
    }
    s->n_extremes = low_count;
}

tare_status tare_statistics_merge(struct tare_statistics *s, const struct tare_statistics *other,
                                  const int32_t *inputs) {
    int64_t samples;
    if (!tare_add_i64(&samples, s->samples, other->samples))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "more samples than can be counted");
    TARE_TRY(tare_histogram_merge(&s->histogram, &other->histogram));
    TARE_TRY(tare_channels_merge(s, other));
    merge_extremes(s, other, inputs);
    s->samples = samples;
    s->finite_samples += other->finite_samples; /* never more than samples */
    tare_exact_sum_merge(&s->sum, &other->sum);
    tare_exact_sum_merge(&s->sum_of_squares, &other->sum_of_squares);
    tare_exact_sum_merge(&s->sum_of_minima, &other->sum_of_minima);
    tare_exact_sum_merge(&s->sum_of_maxima, &other->sum_of_maxima);
    struct tare_place place = other->first_nan;
    place.input = other->has_nan ? mapped(inputs, place.input) : 0;
    if (other->has_nan) keep_first(&s->has_nan, &s->first_nan, &place);
    place = other->first_infinity;
    place.input = other->has_infinity ? mapped(inputs, place.input) : 0;
    if (other->has_infinity) keep_first(&s->has_infinity, &s->first_infinity, &place);
    for (int i = 0; i < TARE_STATISTICS_BUCKETS; i++) {
        if (other->bucket_used[i]) widen_bucket(s, i, other->bucket_low[i], other->bucket_high[i]);
    }
    return TARE_OK;
}

void tare_statistics_renumber(struct tare_statistics *s, const int32_t *inputs) {
    for (int i = 0; i < s->n_extremes; i++) {
        s->lowest[i].input = inputs[s->lowest[i].input];
        s->highest[i].input = inputs[s->highest[i].input];
    }
    if (s->has_nan) s->first_nan.input = inputs[s->first_nan.input];
    if (s->has_infinity) s->first_infinity.input = inputs[s->first_infinity.input];
}

static void free_results(struct tare_stored_result *list) {
    while (list) {
        struct tare_stored_result *next = list->next;
        tare_free(list);
        list = next;
    }
}

void tare_statistics_reset(struct tare_statistics *s) {
    tare_histogram_reset(&s->histogram);
    free_results(s->ranges);
    free_results(s->errors);
    tare_channels_free(s);
    memset(s, 0, sizeof *s);
}

static bool places_equal(bool has_a, const struct tare_place *a, bool has_b, const struct tare_place *b) {
    if (!has_a || !has_b) return has_a == has_b;
    return a->input == b->input && a->record == b->record && a->index == b->index;
}

static bool extremes_equal(const struct tare_extreme *a, const struct tare_extreme *b, int count) {
    for (int i = 0; i < count; i++) {
        if (a[i].value != b[i].value || a[i].input != b[i].input || a[i].record != b[i].record) return false;
    }
    return true;
}

bool tare_statistics_equal(const struct tare_statistics *a, const struct tare_statistics *b) {
    for (int i = 0; i < TARE_STATISTICS_BUCKETS; i++) {
        if (a->bucket_used[i] != b->bucket_used[i]) return false;
        if (a->bucket_used[i] && (a->bucket_low[i] != b->bucket_low[i] || a->bucket_high[i] != b->bucket_high[i]))
            return false;
    }
    return a->samples == b->samples && a->finite_samples == b->finite_samples && a->n_extremes == b->n_extremes &&
           extremes_equal(a->lowest, b->lowest, a->n_extremes) &&
           extremes_equal(a->highest, b->highest, a->n_extremes) && tare_exact_sum_equal(&a->sum, &b->sum) &&
           tare_exact_sum_equal(&a->sum_of_squares, &b->sum_of_squares) &&
           tare_exact_sum_equal(&a->sum_of_minima, &b->sum_of_minima) &&
           tare_exact_sum_equal(&a->sum_of_maxima, &b->sum_of_maxima) &&
           places_equal(a->has_nan, &a->first_nan, b->has_nan, &b->first_nan) &&
           places_equal(a->has_infinity, &a->first_infinity, b->has_infinity, &b->first_infinity) &&
           tare_channels_equal(a, b) && tare_histogram_equal(&a->histogram, &b->histogram);
}

int64_t tare_statistics_elements(const struct tare_statistics *s) {
    return tare_histogram_finite(&s->histogram) + s->histogram.nans + s->histogram.positive_infinities +
           s->histogram.negative_infinities;
}

bool tare_statistics_extremes(double *low, double *high, const struct tare_statistics *s) {
    if (s->n_extremes == 0) return false;
    *low = s->lowest[0].value;
    *high = s->highest[0].value;
    return true;
}

bool tare_statistics_extremes_until(double *low, double *high, const struct tare_statistics *s, int power) {
    bool any = false;
    for (int i = 0; i <= power && i < TARE_STATISTICS_BUCKETS; i++) {
        if (!s->bucket_used[i]) continue;
        if (!any || s->bucket_low[i] < *low) *low = s->bucket_low[i];
        if (!any || s->bucket_high[i] > *high) *high = s->bucket_high[i];
        any = true;
    }
    return any;
}

size_t tare_statistics_bytes(const struct tare_statistics *s) {
    size_t channels = s->channels > 0 ? (size_t)s->channels : 0;
    return sizeof *s - sizeof s->histogram + tare_histogram_bytes(&s->histogram) + channels * TARE_CHANNEL_BYTES;
}

size_t tare_statistics_bound(int64_t channels) {
    size_t kept = channels > 0 && channels <= TARE_STATISTICS_MAX_CHANNELS ? (size_t)channels : 0;
    return sizeof(struct tare_statistics) + TARE_HISTOGRAM_MAX_BYTES + kept * TARE_CHANNEL_BYTES;
}
