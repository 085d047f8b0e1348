/* A cursor over MLIR bytecode (mlir/docs/BytecodeFormat.md): bytes, variable-width integers, sections. Every read is
 * checked against the end of the enclosing section; an error names the offset in the file. */
#ifndef TARE_CONVERT_STABLEHLO_INPUT_H
#define TARE_CONVERT_STABLEHLO_INPUT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_mlir_input {
    const uint8_t *data; /* start of the file, so that offsets and alignment are absolute */
    size_t at, end;
};

/* The number of remaining bytes. */
static inline size_t tare_mlir_left(const struct tare_mlir_input *in) {
    return in->end - in->at;
}

/* TARE_CORRUPT with `what` and the offset. */
tare_status tare_mlir_corrupt(const struct tare_mlir_input *in, const char *what);

tare_status tare_mlir_byte(uint8_t *out, struct tare_mlir_input *in);
/* A view of `size` bytes. */
tare_status tare_mlir_bytes(const uint8_t **out, struct tare_mlir_input *in, uint64_t size);
/* The number of low zero bits of the first byte is the number of bytes that follow; 8 raw bytes after a zero byte. */
tare_status tare_mlir_varint(uint64_t *out, struct tare_mlir_input *in);
/* A zigzag-coded varint. */
tare_status tare_mlir_signed(int64_t *out, struct tare_mlir_input *in);
/* A varint whose lowest bit is a flag. */
tare_status tare_mlir_flagged(uint64_t *out, bool *flag, struct tare_mlir_input *in);
/* A count of items that take at least `item_bytes` each: a count that exceeds the remaining bytes is an error. */
tare_status tare_mlir_count(size_t *out, struct tare_mlir_input *in, size_t item_bytes);
/* An index below `count`; `what` names the table in the error. */
tare_status tare_mlir_index(size_t *out, struct tare_mlir_input *in, size_t count, const char *what);
/* A section: its number and a cursor over its content; `in` continues after it. */
tare_status tare_mlir_section(int *id, struct tare_mlir_input *content, struct tare_mlir_input *in);
/* TARE_CORRUPT unless all bytes were read. */
tare_status tare_mlir_at_end(const struct tare_mlir_input *in, const char *what);

#endif
