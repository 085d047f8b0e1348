/* Reading TFRecord files: the frames in a stream of bytes. */
#include "datasets/tfrecord.h"
#include "base/alloc.h"
#include "base/varint.h"
#include "datasets/stream.h"
#include "proto/crc32c.h"

#include <string.h>

enum { HEADER_SIZE = 12, FOOTER_SIZE = 4 }; /* length and its checksum; checksum of the data */

struct tare_tfrecord_reader {
    char *path;
    struct tare_stream *stream;
    int64_t offset; /* of the next record, in the uncompressed stream */
    int64_t number;
    bool can_skip, broken, cut;
};

/* The length of a record could look like the beginning of a compressed file; its checksum decides. */
bool tare_tfrecord_is_header(const uint8_t *bytes, size_t size) {
    return size >= HEADER_SIZE && tare_crc32c_mask(tare_crc32c(bytes, 8)) == tare_load_u32(bytes + 8);
}

tare_status tare_tfrecord_open(struct tare_tfrecord_reader **out, const char *path) {
    struct tare_stream *stream;
    *out = NULL;
    TARE_TRY(tare_stream_open(&stream, path, tare_tfrecord_is_header));
    return tare_tfrecord_open_stream(out, path, stream);
}

tare_status tare_tfrecord_open_stream(struct tare_tfrecord_reader **out, const char *path, struct tare_stream *stream) {
    struct tare_tfrecord_reader *reader = tare_calloc(1, sizeof *reader);
    *out = NULL;
    if (!reader) {
        tare_stream_close(stream);
        return TARE_NO_MEMORY;
    }
    reader->stream = stream;
    reader->path = tare_strdup(path);
    if (!reader->path) {
        tare_tfrecord_close(reader);
        return TARE_NO_MEMORY;
    }
    *out = reader;
    return TARE_OK;
}

void tare_tfrecord_close_keeping(struct tare_tfrecord_reader *reader, struct tare_stream_memory *memory) {
    if (!reader) return;
    tare_stream_close_keeping(reader->stream, memory);
    tare_free(reader->path);
    tare_free(reader);
}

void tare_tfrecord_close(struct tare_tfrecord_reader *reader) {
    struct tare_stream_memory memory = { 0 };
    tare_tfrecord_close_keeping(reader, &memory);
    tare_stream_memory_free(&memory);
}

/* After a failure that cannot be skipped, reading ends. */
static tare_status bad_record(struct tare_tfrecord_reader *reader, const char *what, bool can_skip) {
    reader->can_skip = can_skip;
    reader->broken = !can_skip;
    return TARE_FAIL(TARE_CORRUPT, "%s: record %lld: %s record at %lld%s", reader->path, (long long)reader->number,
                     what, (long long)reader->offset, reader->offset == 0 ? " (Is this even a TFRecord file?)" : "");
}

static tare_status cut_record(struct tare_tfrecord_reader *reader) {
    reader->cut = true;
    return bad_record(reader, "truncated", false);
}

/* The compressed data ends after a whole record, but without its end marker and checksum. */
static tare_status cut_stream(struct tare_tfrecord_reader *reader) {
    reader->cut = reader->broken = true;
    return TARE_FAIL(TARE_CORRUPT,
                     "%s: record %lld: the %s data ends early at %lld, after a whole record (expected its checksum, or "
                     "further records)",
                     reader->path, (long long)reader->number, tare_stream_compression(reader->stream),
                     (long long)reader->offset);
}

static tare_status take(const uint8_t **data, size_t *got, struct tare_tfrecord_reader *reader, size_t size) {
    tare_status status = tare_stream_take(data, got, reader->stream, size);
    if (status == TARE_OK) return status;
    reader->broken = true;
    return tare_error_prefix(status, "record %lld at %lld", (long long)reader->number, (long long)reader->offset);
}

static void pass_record(struct tare_tfrecord_reader *reader, uint64_t length) {
    reader->offset += (int64_t)(HEADER_SIZE + length + FOOTER_SIZE);
    reader->number++;
}

tare_status tare_tfrecord_next(struct tare_tfrecord *out, bool *end, struct tare_tfrecord_reader *reader) {
    const uint8_t *bytes;
    uint64_t length;
    size_t got;
    *end = reader->broken;
    reader->can_skip = reader->cut = false;
    if (reader->broken) return TARE_OK;
    TARE_TRY(take(&bytes, &got, reader, HEADER_SIZE));
    if (got == 0 && !tare_stream_is_cut(reader->stream)) {
        *end = true;
        return TARE_OK;
    }
    if (got == 0 && reader->number) return cut_stream(reader);
    if (got < HEADER_SIZE) return cut_record(reader);
    if (!tare_tfrecord_is_header(bytes, got)) return bad_record(reader, "corrupted", false);
    length = (uint64_t)tare_load_u32(bytes) | (uint64_t)tare_load_u32(bytes + 4) << 32;
    if (length > TARE_TFRECORD_LONGEST) return bad_record(reader, "corrupted", false);
    TARE_TRY(take(&bytes, &got, reader, (size_t)length + FOOTER_SIZE));
    if (got < length + FOOTER_SIZE) return cut_record(reader);
    if (tare_crc32c_mask(tare_crc32c(bytes, (size_t)length)) != tare_load_u32(bytes + length)) {
        tare_status status = bad_record(reader, "corrupted", true);
        pass_record(reader, length);
        return status;
    }
    *out = (struct tare_tfrecord){ bytes, (size_t)length, reader->number, reader->offset };
    pass_record(reader, length);
    return TARE_OK;
}

bool tare_tfrecord_can_skip(const struct tare_tfrecord_reader *reader) {
    return reader->can_skip;
}

bool tare_tfrecord_is_cut(const struct tare_tfrecord_reader *reader) {
    return reader->cut;
}

void tare_tfrecord_position(int64_t *number, int64_t *offset, const struct tare_tfrecord_reader *reader) {
    *number = reader->number;
    *offset = reader->offset;
}

const char *tare_tfrecord_compression(const struct tare_tfrecord_reader *reader) {
    return tare_stream_compression(reader->stream);
}
