/* Assigns records of a data set to parts, deterministically and independent of the machine. */
#ifndef TARE_DATASETS_PARTITION_H
#define TARE_DATASETS_PARTITION_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TARE_PARTITION_MOST = 512 };

struct tare_partition {
    int64_t sizes[TARE_PARTITION_MOST]; /* records of each part; they sum to the records */
    size_t count;
};

/* `parts` sizes that differ by at most one; the first ones are larger. */
tare_status tare_partition_equally(struct tare_partition *out, int64_t records, int64_t parts) TARE_WARN_UNUSED;
/* "100,50": these sizes and, if records remain, one more part with the rest. "0.8,0.1": the same with fractions; part k
 * ends at the record nearest to the sum of the fractions up to it. TARE_USAGE for other texts and for sums that are too
 * large. */
tare_status tare_partition_parse_counts(struct tare_partition *out, int64_t records, const char *text) TARE_WARN_UNUSED;
tare_status tare_partition_parse_fractions(struct tare_partition *out, int64_t records,
                                           const char *text) TARE_WARN_UNUSED;
/* parts[i]: the part of record i. Without shuffling, the first records are in the first part; with it, parts are
 * assigned at random by `seed` (splitmix64, Fisher-Yates). The array has as many elements as the sizes sum to. */
void tare_partition_assign(uint16_t *parts, const struct tare_partition *partition, bool shuffle, uint64_t seed);

#endif
