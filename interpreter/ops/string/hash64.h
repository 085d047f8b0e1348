/* String hashes whose values are part of a model: the bucket numbers index embedding tables, so they must match
 * TensorFlow's bit by bit. */
#ifndef TARE_INTERPRETER_OPS_STRING_HASH64_H
#define TARE_INTERPRETER_OPS_STRING_HASH64_H

#include <stddef.h>
#include <stdint.h>

/* FarmHash Fingerprint64: StringToHashBucketFast, Fingerprint. */
uint64_t tare_fingerprint64(const void *data, size_t size);
/* Combines two fingerprints, as the feature crosses do. */
uint64_t tare_fingerprint_concat64(uint64_t a, uint64_t b);
/* SipHash-2-4: StringToHashBucketStrong. */
uint64_t tare_siphash24(const void *data, size_t size, uint64_t key0, uint64_t key1);
/* A 64-bit Murmur variant with TensorFlow's seed: StringToHashBucket. */
uint64_t tare_murmur64(const void *data, size_t size);

#endif
