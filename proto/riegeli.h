/* Riegeli files: records in chunks, chunks in blocks of 64 KiB. The container of TensorFlow's chunked models. */
#ifndef TARE_PROTO_RIEGELI_H
#define TARE_PROTO_RIEGELI_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct tare_riegeli_record {
    uint64_t position; /* as used by writers: offset of the chunk plus index of the record in it */
    const uint8_t *data;
    size_t size;
};

/* Reads all records of a file into the arena and verifies the hashes of headers and chunks. TARE_CORRUPT with the byte
 * offset; also for a chunk that expands too much. TARE_UNSUPPORTED: chunks that are transposed or compressed with zstd
 * or snappy, and brotli if the program was built without it. */
tare_status tare_riegeli_read(struct tare_riegeli_record **out, size_t *count, struct tare_arena *arena,
                              const uint8_t *data, size_t size) TARE_WARN_UNUSED;

#endif
