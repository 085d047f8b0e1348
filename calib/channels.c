/* Sets, matches and merges the channels of a tensor's statistics. */
#include "calib/channels.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

void tare_channels_free(struct tare_statistics *s) {
    tare_free(s->channel_low);
    tare_free(s->channel_high);
    tare_free(s->channel_sum);
    tare_free(s->channel_sample);
    s->channel_low = s->channel_high = NULL;
    s->channel_sum = NULL;
    s->channel_sample = NULL;
}

static void channels_clear(struct tare_statistics *s) {
    for (int64_t i = 0; i < s->channels; i++) {
        s->channel_low[i] = INFINITY;
        s->channel_high[i] = -INFINITY;
        s->channel_sum[i] = (struct tare_exact_sum){ { 0 } };
    }
}

static tare_status give_up(struct tare_statistics *s) {
    tare_channels_free(s);
    s->channels = -1;
    return TARE_OK;
}

tare_status tare_channels_set(struct tare_statistics *s, int64_t channels) {
    if (channels == 0 || s->channels == channels || s->channels < 0) return TARE_OK;
    if (channels < 0 || channels > TARE_STATISTICS_MAX_CHANNELS || s->channels > 0) return give_up(s);
    s->channel_low = tare_calloc((size_t)channels, sizeof *s->channel_low);
    s->channel_high = tare_calloc((size_t)channels, sizeof *s->channel_high);
    s->channel_sum = tare_calloc((size_t)channels, sizeof *s->channel_sum);
    s->channel_sample = tare_calloc((size_t)channels, sizeof *s->channel_sample);
    if (!s->channel_low || !s->channel_high || !s->channel_sum || !s->channel_sample) {
        tare_channels_free(s);
        return TARE_NO_MEMORY;
    }
    s->channels = channels;
    channels_clear(s);
    return TARE_OK;
}

tare_status tare_channels_match(struct tare_statistics *s, const struct tare_shape *shape) {
    int64_t channels = shape->rank >= 2 ? shape->dims[shape->rank - 1] : -1;
    return tare_channels_set(s, channels);
}

void tare_channels_begin(struct tare_statistics *s) {
    memset(s->channel_sample, 0, (size_t)s->channels * sizeof *s->channel_sample);
}

void tare_channels_add(struct tare_statistics *s, const float *values, int64_t first, int64_t count) {
    int64_t channel = first % s->channels;
    for (int64_t i = 0; i < count; i++) {
        float value = values[i];
        if (isfinite(value)) {
            value += 0.0f; /* -0 becomes +0: the result must not depend on which came first */
            if (value < s->channel_low[channel]) s->channel_low[channel] = value;
            if (value > s->channel_high[channel]) s->channel_high[channel] = value;
            s->channel_sample[channel] += (double)value;
        }
        if (++channel == s->channels) channel = 0;
    }
}

void tare_channels_end(struct tare_statistics *s) {
    for (int64_t i = 0; i < s->channels; i++)
        tare_exact_sum_add(&s->channel_sum[i], s->channel_sample[i]);
}

tare_status tare_channels_merge(struct tare_statistics *s, const struct tare_statistics *other) {
    TARE_TRY(tare_channels_set(s, other->channels));
    if (s->channels <= 0 || other->channels <= 0) return TARE_OK;
    for (int64_t i = 0; i < s->channels; i++) {
        if (other->channel_low[i] < s->channel_low[i]) s->channel_low[i] = other->channel_low[i];
        if (other->channel_high[i] > s->channel_high[i]) s->channel_high[i] = other->channel_high[i];
        tare_exact_sum_merge(&s->channel_sum[i], &other->channel_sum[i]);
    }
    return TARE_OK;
}

bool tare_channels_equal(const struct tare_statistics *a, const struct tare_statistics *b) {
    if (a->channels != b->channels) return false;
    for (int64_t i = 0; i < a->channels; i++) {
        if (a->channel_low[i] != b->channel_low[i] || a->channel_high[i] != b->channel_high[i] ||
            !tare_exact_sum_equal(&a->channel_sum[i], &b->channel_sum[i]))
            return false;
    }
    return true;
}
