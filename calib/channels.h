/* The part of a tensor's statistics that is kept for each index of the last axis. */
#ifndef TARE_CALIB_CHANNELS_H
#define TARE_CALIB_CHANNELS_H

#include "calib/statistics.h"

enum { TARE_CHANNEL_BYTES = 2 * sizeof(float) + sizeof(double) + sizeof(struct tare_exact_sum) };

/* Allocates for the last axis of `shape`, or drops per-channel statistics (channels = -1) if its length has changed or
 * is too large, or if the rank is below 2: the last axis is then that of the records. */
tare_status tare_channels_match(struct tare_statistics *statistics, const struct tare_shape *shape) TARE_WARN_UNUSED;
/* The same for a known length; 0 changes nothing, -1 drops per-channel statistics. */
tare_status tare_channels_set(struct tare_statistics *statistics, int64_t channels) TARE_WARN_UNUSED;
/* One sample: begin, runs of values (`first` is the index in the sample of the run's first value), end. */
void tare_channels_begin(struct tare_statistics *statistics);
void tare_channels_add(struct tare_statistics *statistics, const float *values, int64_t first, int64_t count);
void tare_channels_end(struct tare_statistics *statistics);
tare_status tare_channels_merge(struct tare_statistics *statistics,
                                const struct tare_statistics *other) TARE_WARN_UNUSED;
bool tare_channels_equal(const struct tare_statistics *a, const struct tare_statistics *b);
void tare_channels_free(struct tare_statistics *statistics);

#endif
