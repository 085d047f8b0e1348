/* 128-bit hashes of contents, to find equal records. Not safe against those who want two records to collide. */
#ifndef TARE_DATASETS_CONTENT_HASH_H
#define TARE_DATASETS_CONTENT_HASH_H

#include "datasets/sample.h"

#include <stdint.h>

struct tare_content_hash {
    uint64_t words[2];
};

/* Of dtype, shape and elements. */
struct tare_content_hash tare_content_hash_tensor(const struct tare_tensor *tensor);
/* Of all keys and values; their order does not matter. */
struct tare_content_hash tare_content_hash_sample(const struct tare_sample *sample);

#endif
