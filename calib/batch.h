/* Samples that run together. */
#ifndef TARE_CALIB_BATCH_H
#define TARE_CALIB_BATCH_H

#include "calib/source.h"

struct tare_batch_sample {
    struct tare_tensor *feeds; /* n_feeds, NULL: no sample */
    struct tare_record record;
    uint64_t digest; /* of the feeds (calib/sample_digest.h), set by the engine */
};

struct tare_batch {
    struct tare_batch_sample *samples;
    size_t count, room, n_feeds;
};

tare_status tare_batch_init(struct tare_batch *batch, size_t room, size_t n_feeds) TARE_WARN_UNUSED;
void tare_batch_free(struct tare_batch *batch);
/* Drops the samples; the batch can be filled again. */
void tare_batch_clear(struct tare_batch *batch);
/* Drops one sample's tensors. */
void tare_batch_drop(struct tare_batch_sample *sample, size_t n_feeds);

/* True when all feeds of both have the same dtype and shape, of rank 1 or more. */
bool tare_batch_fits(const struct tare_batch_sample *a, const struct tare_batch_sample *b, size_t n_feeds);
/* Concatenates the samples' values, which must fit, on axis 0, in buffers from the pool. `joined` are n_feeds zeroed
 * tensors, which the caller resets, also after a failure. */
tare_status tare_batch_join(struct tare_tensor *joined, const struct tare_batch *batch,
                            struct tare_buffer_pool *pool) TARE_WARN_UNUSED;

#endif
