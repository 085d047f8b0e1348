/* Numbers in bytes: varints, the variable-length integers of protobuf, LevelDB tables, Riegeli and the calibration
 * file.
 *
 * An unsigned 64-bit value is stored in 1 to 10 bytes of 7 bits each, least significant first; every byte but the last
 * has its top bit set. Inline, because readers of packed fields spend most of their time here. */
#ifndef TARE_BASE_VARINT_H
#define TARE_BASE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number of four bytes, least significant first. */
static inline uint32_t tare_load_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

enum { TARE_VARINT_MAX = 10 }; /* bytes of the longest varint */

/* Decodes the varint at `at` and returns the byte after it. Returns NULL, and leaves *value alone, if no varint ends
 * before `end` within 10 bytes. Like protobuf, accepts padded encodings (80 00 is 0) and ignores the bits of a tenth
 * byte above the 64th. */
static inline const uint8_t *tare_varint_read(uint64_t *value, const uint8_t *at, const uint8_t *end) {
    uint64_t bits = 0;
    if (at < end && *at < 0x80) {
        *value = *at;
        return at + 1;
    }
    for (int shift = 0; shift < 7 * TARE_VARINT_MAX && at < end; shift += 7) {
        const uint8_t byte = *at++;
        bits |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = bits;
            return at;
        }
    }
    return NULL;
}

/* The same with a cursor: advances *at past the varint. Returns false, and leaves *value and *at alone, where
 * tare_varint_read returns NULL. */
static inline bool tare_varint_next(uint64_t *value, const uint8_t **at, const uint8_t *end) {
    const uint8_t *after = tare_varint_read(value, *at, end);
    if (after) *at = after;
    return after;
}

/* Encodes `value` in as few bytes as possible and returns their number, 1 to 10. */
static inline size_t tare_varint_write(uint8_t bytes[TARE_VARINT_MAX], uint64_t value) {
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    return size;
}

#endif
