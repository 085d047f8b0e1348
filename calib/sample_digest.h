/* Digests of samples: which inputs a calibration has seen, so that a later evaluation can find records that were also
 * calibrated with (leakage).
 *
 * A digest is computed from the tensors that reach the model, not from the bytes of the file: an evaluation record has
 * a label in addition, and may come from a file of another format. A set keeps the least TARE_DIGESTS_MOST digests, so
 * its size does not grow with the records, and it depends only on the samples, not on their order or on how the
 * records were divided among runs: the least digests of a union are among the least of its parts. */
#ifndef TARE_CALIB_SAMPLE_DIGEST_H
#define TARE_CALIB_SAMPLE_DIGEST_H

#include "base/tensor/tensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { TARE_DIGESTS_MOST = 16384 };

/* Zero it to start. Members other than `items` and `count` are private. After tare_digest_set_finish, items are
 * ascending and unique. */
struct tare_digest_set {
    uint64_t *items;
    size_t count, capacity, sorted;
};

/* 64-bit digest of one sample: dtype, shape and elements of each input (calib/hash.h). */
uint64_t tare_sample_digest(const struct tare_tensor *inputs, size_t count);

tare_status tare_digest_set_add(struct tare_digest_set *set, uint64_t digest) TARE_WARN_UNUSED;
/* Sorts, removes duplicates, and drops all but the least TARE_DIGESTS_MOST. */
void tare_digest_set_finish(struct tare_digest_set *set);
/* Adds the digests of another set. Finishes the set. */
tare_status tare_digest_set_merge(struct tare_digest_set *set, const struct tare_digest_set *other) TARE_WARN_UNUSED;
/* The next two need a finished set. */
bool tare_digest_set_has(const struct tare_digest_set *set, uint64_t digest);
/* Whether the set would have kept this digest: true unless digests were dropped and it is greater than all that were
 * kept. */
bool tare_digest_set_decides(const struct tare_digest_set *set, uint64_t digest);
void tare_digest_set_free(struct tare_digest_set *set);

#endif
