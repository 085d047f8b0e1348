/* Sequential reading of a file through a buffer, with decompression. GZIP and ZLIB are detected from the first bytes.
 * Files are not mapped: page faults cost more than copying into a warm buffer, and truncating a mapped file while it is
 * read would terminate the program. */
#ifndef TARE_DATASETS_STREAM_H
#define TARE_DATASETS_STREAM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_stream;

/* "-" is standard input; pipes are supported. `is_plain(head, size)` (may be NULL) is called with up to 16 bytes and
 * returns true if they are uncompressed data of the expected format, even if they look compressed. */
tare_status tare_stream_open(struct tare_stream **out, const char *path,
                             bool (*is_plain)(const uint8_t *head, size_t size)) TARE_WARN_UNUSED;
void tare_stream_close(struct tare_stream *stream);
/* The buffers of a closed stream, for reuse by the next one, so that memory does not depend on the number of files.
 * Zero it initially. Opening takes ownership of them, also on failure. */
struct tare_stream_memory {
    uint8_t *raw, *window;
    size_t capacity; /* size of the window */
};
tare_status tare_stream_open_in(struct tare_stream **out, const char *path,
                                bool (*is_plain)(const uint8_t *head, size_t size),
                                struct tare_stream_memory *memory) TARE_WARN_UNUSED;
/* `memory` must be zeroed. */
void tare_stream_close_keeping(struct tare_stream *stream, struct tare_stream_memory *memory);
void tare_stream_memory_free(struct tare_stream_memory *memory);
/* Returns the next `size` bytes contiguously, valid until the next call; *got is smaller only at the end. Memory grows
 * with the bytes that arrive, not with `size`. TARE_CORRUPT for damaged compressed data. */
tare_status tare_stream_take(const uint8_t **data, size_t *got, struct tare_stream *stream,
                             size_t size) TARE_WARN_UNUSED;
/* Like take, without consuming the bytes. */
tare_status tare_stream_peek(const uint8_t **data, size_t *got, struct tare_stream *stream,
                             size_t size) TARE_WARN_UNUSED;
/* Returns all remaining bytes; release *data with tare_free. */
tare_status tare_stream_take_all(uint8_t **data, size_t *size, struct tare_stream *stream) TARE_WARN_UNUSED;
/* True if compressed data ended before its end marker. */
bool tare_stream_is_cut(const struct tare_stream *stream);
/* "none", "gzip" or "zlib". */
const char *tare_stream_compression(const struct tare_stream *stream);

#endif
