/* RepresentativeDataSample records: a map from input key to tensor. */
#ifndef TARE_DATASETS_SAMPLE_H
#define TARE_DATASETS_SAMPLE_H

#include "base/arena.h"
#include "base/tensor/tensor.h"

struct tare_sample {
    struct tare_arena arena; /* owns the keys and memory that tensors borrow */
    const char **keys;
    struct tare_tensor *values;
    size_t count;
};

/* Decodes a record; reset *out also after a failure. Of duplicate keys the last one is used. Errors name the key. */
tare_status tare_sample_decode(struct tare_sample *out, const void *data, size_t size) TARE_WARN_UNUSED;
/* Releases the tensors and zeroes the sample. */
void tare_sample_reset(struct tare_sample *sample);
/* The tensor of a key; NULL if absent. */
const struct tare_tensor *tare_sample_find(const struct tare_sample *sample, const char *key);
/* The class index in the only element of `key` (see also datasets/label.h). */
tare_status tare_sample_label(int64_t *out, const struct tare_sample *sample, const char *key) TARE_WARN_UNUSED;
/* Encodes a record; release *data with tare_free. */
tare_status tare_sample_encode(void **data, size_t *size, const char *const *keys, const struct tare_tensor *values,
                               size_t count) TARE_WARN_UNUSED;

#endif
