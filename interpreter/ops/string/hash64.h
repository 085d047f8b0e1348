/* The string hashes whose values are part of a model's meaning: bucket numbers index embedding tables. */
#ifndef TARE_INTERPRETER_OPS_STRING_HASH64_H
#define TARE_INTERPRETER_OPS_STRING_HASH64_H

#include <stddef.h>
#include <stdint.h>

/* FarmHash's Fingerprint64: StringToHashBucketFast, Fingerprint. */
uint64_t tare_fingerprint64(const void *data, size_t size);
/* Two fingerprints in one, as the crosses of features do. */
uint64_t tare_fingerprint_concat64(uint64_t a, uint64_t b);
/* SipHash-2-4: StringToHashBucketStrong. */
uint64_t tare_siphash24(const void *data, size_t size, uint64_t key0, uint64_t key1);
/* A 64-bit Murmur variant with TensorFlow's seed: StringToHashBucket. */
uint64_t tare_murmur64(const void *data, size_t size);

#endif
