/* Riegeli files: records in chunks, chunks in blocks of 64 KiB. What TensorFlow's chunked models are kept in. */
#ifndef TARE_PROTO_RIEGELI_H
#define TARE_PROTO_RIEGELI_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct tare_riegeli_record {
    uint64_t position; /* as writers number them: the chunk's place in the file plus the record's number in it */
    const uint8_t *data;
    size_t size;
};

/* Every record of a file; arena memory. Hashes of headers and chunks are compared. TARE_CORRUPT with the byte; also
 * when a chunk takes absurdly more memory than it has bytes. TARE_UNSUPPORTED: chunks that are transposed or compressed
 * with zstd or snappy, and brotli where the program was built without it. */
tare_status tare_riegeli_read(struct tare_riegeli_record **out, size_t *count, struct tare_arena *arena,
                              const uint8_t *data, size_t size) TARE_WARN_UNUSED;

#endif
