/* A 128-bit hash for the model's fingerprint and the calibration file's checksum. Not cryptographic.
 *
 * Definition: two 64-bit lanes start at H0 = 0x9e3779b97f4a7c15, H1 = 0xc2b2ae3d27d4eb4f. For each 8 bytes w (little
 * endian; the last ones padded with zeros) H0 = rotl(H0 ^ w, 29) * 0xff51afd7ed558ccd and
 * H1 = rotl(H1 ^ w, 37) * 0x87c37b91114253d5 (mod 2^64). At the end the number of bytes is mixed in as one more w, and
 * each lane is finished by h ^= h >> 32; h *= 0xd6e8feb86659fd93; h ^= h >> 32. Each step is one-to-one in w, so a
 * change of one word always changes both lanes. */
#ifndef TARE_CALIB_HASH_H
#define TARE_CALIB_HASH_H

#include <stddef.h>
#include <stdint.h>

struct tare_hash {
    uint64_t lanes[2];
    uint64_t size;
    uint8_t rest[8]; /* size mod 8 bytes that wait for their word */
};

void tare_hash_begin(struct tare_hash *hash);
void tare_hash_add(struct tare_hash *hash, const void *data, size_t size);
void tare_hash_add_u64(struct tare_hash *hash, uint64_t value);
/* Size and bytes, so that neighbouring texts cannot run into each other. */
void tare_hash_add_bytes(struct tare_hash *hash, const void *data, size_t size);
void tare_hash_add_text(struct tare_hash *hash, const char *text);
void tare_hash_end(struct tare_hash *hash, uint64_t out[2]);

#endif
