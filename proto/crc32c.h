/* CRC-32C (Castagnoli), as TFRecord files and checkpoints use it, and TensorFlow's masking of stored sums. */
#ifndef TARE_PROTO_CRC32C_H
#define TARE_PROTO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extends a checksum `crc` (0: of nothing) by further bytes. */
uint32_t tare_crc32c_extend(uint32_t crc, const void *data, size_t size);
static inline uint32_t tare_crc32c(const void *data, size_t size) {
    return tare_crc32c_extend(0, data, size);
}

/* Stored checksums are rotated and offset: the checksum of data followed by its own checksum would be constant. */
static inline uint32_t tare_crc32c_mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
static inline uint32_t tare_crc32c_unmask(uint32_t masked) {
    uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
}

#endif
