/* Takes samples from the source in order and puts those together that fit. Not thread-safe: the engine's lock is held.
 */
#ifndef TARE_CALIB_FEED_H
#define TARE_CALIB_FEED_H

#include "calib/batch.h"
#include "calib/calibration.h"

struct tare_feeder {
    const struct tare_sample_source *source;
    size_t n_feeds;
    const struct tare_calibration *calibration; /* records that are already done */
    const int32_t *inputs;                      /* source file -> input */
    int64_t limit, left;                        /* left: to take still, -1: any number */
    struct tare_batch_sample held[2];           /* taken, but not handed out yet; in order */
    int n_held;
    bool ended;
};

/* After the fields above `left` are set: counts the records that are done against the limit. */
void tare_feeder_begin(struct tare_feeder *feeder);
void tare_feeder_end(struct tare_feeder *feeder);
/* Fills an empty batch with up to `room` samples that fit each other; none at the end. On failure *index is the
 * record's (INT64_MAX: not known) and the error names it. */
tare_status tare_feeder_fill(struct tare_feeder *feeder, struct tare_batch *batch, size_t room,
                             int64_t *index) TARE_WARN_UNUSED;
/* Two samples to come that fit, or the first one twice; NULL at the end. They stay to be handed out. */
tare_status tare_feeder_peek(struct tare_feeder *feeder, const struct tare_batch_sample *samples[2]) TARE_WARN_UNUSED;
/* Prepends "FILE: record N: " to the error message. */
tare_status tare_feeder_name(const struct tare_feeder *feeder, tare_status status, const struct tare_record *record);

#endif
