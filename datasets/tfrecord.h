/* TFRecord files: length, masked CRC-32C of the length, data, masked CRC-32C of the data, repeated; the
 * whole file may be compressed with GZIP or ZLIB, which the reader detects from the first bytes. */
#ifndef TARE_DATASETS_TFRECORD_H
#define TARE_DATASETS_TFRECORD_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_tfrecord_reader;

/* Maximum size of a record in bytes: protobuf's limit for a message. A longer one is corrupt. */
#define TARE_TFRECORD_LONGEST UINT64_C(0x7fffffff)

/* One record. `data` is valid until the next call on the reader. */
struct tare_tfrecord {
    const uint8_t *data;
    size_t size;
    int64_t number; /* in the file, from 0 */
    int64_t offset; /* of its first byte, in the uncompressed stream */
};

/* Opens a file; "-" is standard input; pipes are supported. */
tare_status tare_tfrecord_open(struct tare_tfrecord_reader **out, const char *path) TARE_WARN_UNUSED;
/* The same for a stream at its beginning, which the reader takes ownership of, also on failure. `path` is used in
 * errors. */
struct tare_stream;
tare_status tare_tfrecord_open_stream(struct tare_tfrecord_reader **out, const char *path,
                                      struct tare_stream *stream) TARE_WARN_UNUSED;
void tare_tfrecord_close(struct tare_tfrecord_reader *reader);
/* Like tare_stream_close_keeping. */
struct tare_stream_memory;
void tare_tfrecord_close_keeping(struct tare_tfrecord_reader *reader, struct tare_stream_memory *memory);
/* Reads and checks the next record; after the last one, sets only *end. TARE_CORRUPT: "PATH: record N:
 * corrupted record at OFFSET" for a checksum mismatch (data with a valid length is skipped, so that reading can
 * continue), "truncated record at OFFSET" if the file or compressed data ends inside a record. After the latter, and
 * after an invalid length, the next call sets *end. */
tare_status tare_tfrecord_next(struct tare_tfrecord *out, bool *end,
                               struct tare_tfrecord_reader *reader) TARE_WARN_UNUSED;
/* True if the last call failed and reading can continue. */
bool tare_tfrecord_can_skip(const struct tare_tfrecord_reader *reader);
/* True if the last call failed because the file or compressed data ends inside a record. */
bool tare_tfrecord_is_cut(const struct tare_tfrecord_reader *reader);
/* Number and offset of the record that the next call will read. */
void tare_tfrecord_position(int64_t *number, int64_t *offset, const struct tare_tfrecord_reader *reader);
/* "none", "gzip" or "zlib". */
const char *tare_tfrecord_compression(const struct tare_tfrecord_reader *reader);

/* True if the bytes begin with a length and its checksum (12 bytes), like a TFRecord. */
bool tare_tfrecord_is_header(const uint8_t *bytes, size_t size);

struct tare_tfrecord_writer;

/* Creates a file, which is renamed into place when it is committed; compressed with GZIP if the name ends in ".gz". "-"
 * is standard output. */
tare_status tare_tfrecord_create(struct tare_tfrecord_writer **out, const char *path) TARE_WARN_UNUSED;
tare_status tare_tfrecord_write(struct tare_tfrecord_writer *writer, const void *data, size_t size) TARE_WARN_UNUSED;
/* Completes the file and frees the writer; on failure no partial file remains. */
tare_status tare_tfrecord_commit(struct tare_tfrecord_writer *writer) TARE_WARN_UNUSED;
/* Frees the writer without writing a file. No-op if NULL. */
void tare_tfrecord_abort(struct tare_tfrecord_writer *writer);

#endif
