/* 128-bit hashes of contents, to find equal records. Not resistant to deliberate collisions. */
#ifndef TARE_DATASETS_CONTENT_HASH_H
#define TARE_DATASETS_CONTENT_HASH_H

#include "datasets/sample.h"

#include <stdint.h>

struct tare_content_hash {
    uint64_t words[2];
};

/* Hash of dtype, shape and elements. */
struct tare_content_hash tare_content_hash_tensor(const struct tare_tensor *tensor);
/* Hash of all keys and values, independent of their order. */
struct tare_content_hash tare_content_hash_sample(const struct tare_sample *sample);

#endif
