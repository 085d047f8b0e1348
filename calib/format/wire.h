/* Encoding of the calibration file: little endian, varints of 7 bits per byte (low bits first), length-prefixed
 * strings. The reader checks every length against the remaining bytes. */
#ifndef TARE_CALIB_FORMAT_WIRE_H
#define TARE_CALIB_FORMAT_WIRE_H

#include "base/exact_sum.h"
#include "base/status.h"
#include "calib/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TARE_WIRE_BUFFER = 4096 };

/* Buffered writer that passes full buffers to `take`, so memory does not depend on the size of the file. The first
 * failure is sticky. */
struct tare_wire_writer {
    tare_status (*take)(void *arg, const void *data, size_t size);
    void *arg;
    tare_status status;
    struct tare_hash hash; /* of what was taken */
    size_t used;
    char buffer[TARE_WIRE_BUFFER];
};
void tare_wire_begin(struct tare_wire_writer *out, tare_status (*take)(void *arg, const void *data, size_t size),
                     void *arg);
void tare_wire_put(struct tare_wire_writer *out, const void *data, size_t size);
void tare_wire_put_u64(struct tare_wire_writer *out, uint64_t value); /* 8 bytes */
void tare_wire_put_varint(struct tare_wire_writer *out, uint64_t value);
void tare_wire_put_float(struct tare_wire_writer *out, float value); /* 4 bytes */
void tare_wire_put_text(struct tare_wire_writer *out, const char *text);
/* The lowest nonzero word, the number of words up to the last that is not sign extension, these words, the sign. */
void tare_wire_put_sum(struct tare_wire_writer *out, const struct tare_exact_sum *sum);
/* Writes 8 bytes of the hash of everything before, and flushes the buffer. */
tare_status tare_wire_end_with_checksum(struct tare_wire_writer *out) TARE_WARN_UNUSED;

/* Reads from `data` up to `size`. The first failure is sticky: later getters return zero, and the status and message
 * remain those of the first failure. */
struct tare_wire_reader {
    const uint8_t *data;
    size_t size, offset;
    tare_status status;
};
uint64_t tare_wire_u64(struct tare_wire_reader *in);
/* TARE_CORRUPT unless the value is written in as few bytes as it takes and is at most `most`. */
uint64_t tare_wire_varint(struct tare_wire_reader *in, uint64_t most);
/* A count of items that take at least `item` bytes each. */
size_t tare_wire_count(struct tare_wire_reader *in, size_t item);
/* A finite float. */
float tare_wire_float(struct tare_wire_reader *in);
/* A copy without NUL bytes inside; the caller's to tare_free. NULL after a failure. */
char *tare_wire_text(struct tare_wire_reader *in);
void tare_wire_sum(struct tare_wire_reader *in, struct tare_exact_sum *out);
/* Fails with "what at byte N". */
void tare_wire_fail(struct tare_wire_reader *in, const char *what);

#endif
