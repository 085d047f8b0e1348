/* CRC-32C (Castagnoli), as TFRecord files and checkpoints use it, and TensorFlow's masking of stored sums. */
#ifndef TARE_PROTO_CRC32C_H
#define TARE_PROTO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of a text that follows one whose sum is `crc` (0 for none). */
uint32_t tare_crc32c_extend(uint32_t crc, const void *data, size_t size);
static inline uint32_t tare_crc32c(const void *data, size_t size) {
    return tare_crc32c_extend(0, data, size);
}

/* A sum that is stored beside the bytes that it covers is rotated and shifted, so that the sum of both is no constant.
 */
static inline uint32_t tare_crc32c_mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
static inline uint32_t tare_crc32c_unmask(uint32_t masked) {
    uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
}

#endif
