/* A random sample of the records of a data set, drawn without writing it: the first part of a partition by a seed. */
#ifndef TARE_DATASETS_SAMPLING_H
#define TARE_DATASETS_SAMPLING_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_sampling {
    int64_t records; /* of the data set */
    uint16_t *parts; /* by index: 0 for those of the sample */
};

/* Counts the records of the files, of `rows` rows each (datasets/source.h), whose indices include invalid ones, and
 * draws `count` of them: the same for the same files in the same order, on every machine. TARE_INVALID_ARGUMENT if
 * there are fewer, TARE_USAGE for standard input and pipes, which can be read only once. Release with
 * tare_sampling_free. */
tare_status tare_sampling_draw(struct tare_sampling *out, const char *const *paths, size_t n_paths, int64_t rows,
                               int64_t count, uint64_t seed) TARE_WARN_UNUSED;
/* Whether the record of this index in the data set is in the sample. */
bool tare_sampling_has(const struct tare_sampling *sampling, int64_t index);
void tare_sampling_free(struct tare_sampling *sampling);

#endif
