/* Reading TFRecord files: a stream of bytes (mapped, or inflated into a buffer) and the frames in it. */
#include "datasets/tfrecord.h"
#include "base/alloc.h"
#include "base/file.h"
#include "proto/crc32c.h"

#include <string.h>
#include <zlib.h>

enum {
    HEADER_SIZE = 12, /* length and its checksum */
    FOOTER_SIZE = 4,
    INPUT_SIZE = 256 * 1024,
    GROWTH_STEP = 16 * 1024 * 1024, /* memory for a record grows as its bytes arrive: a false length costs nothing */
};

enum compression { NONE, GZIP, ZLIB };

struct tare_tfrecord_reader {
    char *path;
    struct tare_mapping mapping; /* of a plain or compressed file; unused for standard input */
    char *input;                 /* all of standard input */
    const uint8_t *bytes;        /* the file's bytes */
    size_t size;
    enum compression compression;
    z_stream stream; /* compressed */
    bool stream_open, stream_ended;
    uint8_t *buffer; /* one record with its frame */
    size_t buffer_capacity;
    size_t position; /* in bytes (plain) */
    int64_t offset;  /* in the uncompressed stream */
    int64_t number;
    bool can_skip;
};

static uint32_t load32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t load64(const uint8_t *p) { return (uint64_t)load32(p) | (uint64_t)load32(p + 4) << 32; }

/* ---- opening ---- */

static bool header_fits(const uint8_t *bytes, size_t size) {
    return size >= HEADER_SIZE && tare_crc32c_mask(tare_crc32c(bytes, 8)) == load32(bytes + 8);
}

/* A record's length could begin like a compressed file; its checksum decides. */
static enum compression detect(const uint8_t *bytes, size_t size) {
    if (size < 2 || header_fits(bytes, size)) return NONE;
    if (bytes[0] == 0x1f && bytes[1] == 0x8b) return GZIP;
    if ((bytes[0] & 0x0f) == 8 && bytes[0] >> 4 <= 7 && (bytes[0] << 8 | bytes[1]) % 31 == 0) return ZLIB;
    return NONE;
}

static tare_status open_stream(struct tare_tfrecord_reader *reader) {
    enum { ZLIB_WINDOW = 15, GZIP_WINDOW = 31 };
    if (reader->compression == NONE) return TARE_OK;
    if (inflateInit2(&reader->stream, reader->compression == GZIP ? GZIP_WINDOW : ZLIB_WINDOW) != Z_OK)
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    reader->stream_open = true;
    return TARE_OK;
}

static tare_status open_bytes(struct tare_tfrecord_reader *reader) {
    if (strcmp(reader->path, "-") == 0) {
        TARE_TRY(tare_file_read(&reader->input, &reader->size, reader->path));
        reader->bytes = (const uint8_t *)reader->input;
    } else {
        TARE_TRY(tare_file_map(&reader->mapping, reader->path));
        reader->bytes = reader->mapping.data;
        reader->size = reader->mapping.size;
    }
    reader->compression = detect(reader->bytes, reader->size);
    return open_stream(reader);
}

tare_status tare_tfrecord_open(struct tare_tfrecord_reader **out, const char *path) {
    struct tare_tfrecord_reader *reader = tare_calloc(1, sizeof *reader);
    tare_status status = TARE_NO_MEMORY;
    *out = NULL;
    if (!reader) return status;
    reader->path = tare_strdup(path);
    if (reader->path) status = open_bytes(reader);
    if (status == TARE_OK)
        *out = reader;
    else
        tare_tfrecord_close(reader);
    return status;
}

void tare_tfrecord_close(struct tare_tfrecord_reader *reader) {
    if (!reader) return;
    if (reader->stream_open) inflateEnd(&reader->stream);
    tare_file_unmap(&reader->mapping);
    tare_free(reader->input);
    tare_free(reader->buffer);
    tare_free(reader->path);
    tare_free(reader);
}

/* ---- bytes ---- */

/* Several GZIP members may follow each other. */
static int next_member(struct tare_tfrecord_reader *reader) {
    if (reader->compression == GZIP && reader->position < reader->size) return inflateReset(&reader->stream);
    reader->stream_ended = true;
    return Z_OK;
}

/* Inflates up to `wanted` bytes to the end of the buffer; *got tells how many came. */
static tare_status inflate_some(struct tare_tfrecord_reader *reader, uint8_t *to, size_t wanted, size_t *got) {
    z_stream *stream = &reader->stream;
    *got = 0;
    while (*got < wanted && !reader->stream_ended) {
        size_t step = reader->size - reader->position;
        int code;
        if (step > INPUT_SIZE) step = INPUT_SIZE;
        stream->next_in = (Bytef *)(uintptr_t)(reader->bytes + reader->position);
        stream->avail_in = (uInt)step;
        stream->next_out = to + *got;
        stream->avail_out = (uInt)(wanted - *got > GROWTH_STEP ? GROWTH_STEP : wanted - *got);
        code = inflate(stream, Z_NO_FLUSH);
        reader->position += step - stream->avail_in;
        *got = (size_t)(stream->next_out - to);
        if (code == Z_STREAM_END) code = next_member(reader);
        if (code == Z_BUF_ERROR) break; /* the file ends inside the stream */
        if (code != Z_OK)
            return TARE_FAIL(TARE_CORRUPT, "%s: the compressed data is damaged near byte %zu of the file (%s)",
                             reader->path, reader->position, stream->msg ? stream->msg : "zlib error");
    }
    return TARE_OK;
}

/* Makes `count` bytes available; *at points to them. *got is less at the end of the stream. `from` bytes of the buffer
 * are kept (compressed streams). */
static tare_status fetch(struct tare_tfrecord_reader *reader, size_t from, size_t count, const uint8_t **at,
                         size_t *got) {
    if (reader->compression == NONE) {
        size_t left = reader->size - reader->position;
        *at = reader->bytes + reader->position;
        *got = count < left ? count : left;
        reader->position += *got;
        return TARE_OK;
    }
    *got = 0;
    while (*got < count) {
        size_t step = count - *got > GROWTH_STEP ? GROWTH_STEP : count - *got, came;
        if (from + *got + step > reader->buffer_capacity &&
            !tare_grow((void **)&reader->buffer, &reader->buffer_capacity, from + *got + step, 1))
            return TARE_NO_MEMORY;
        TARE_TRY(inflate_some(reader, reader->buffer + from + *got, step, &came));
        *got += came;
        if (came < step) break;
    }
    *at = reader->buffer + from;
    return TARE_OK;
}

/* ---- records ---- */

static tare_status bad_record(struct tare_tfrecord_reader *reader, const char *what, bool can_skip) {
    reader->can_skip = can_skip;
    return TARE_FAIL(TARE_CORRUPT, "%s: record %lld: %s record at %lld%s", reader->path, (long long)reader->number, what,
                     (long long)reader->offset, reader->offset == 0 ? " (Is this even a TFRecord file?)" : "");
}

tare_status tare_tfrecord_next(struct tare_tfrecord *out, bool *end, struct tare_tfrecord_reader *reader) {
    const uint8_t *header, *body;
    uint64_t length;
    size_t got, wanted;
    *end = false;
    TARE_TRY(fetch(reader, 0, HEADER_SIZE, &header, &got));
    if (got == 0) {
        *end = true;
        return TARE_OK;
    }
    if (got < HEADER_SIZE) return bad_record(reader, "truncated", false);
    if (!header_fits(header, got)) return bad_record(reader, "corrupted", false);
    length = load64(header);
    if (length > SIZE_MAX / 2) return bad_record(reader, "corrupted", false);
    wanted = (size_t)length + FOOTER_SIZE;
    TARE_TRY(fetch(reader, HEADER_SIZE, wanted, &body, &got));
    if (got < wanted) return bad_record(reader, "truncated", false);
    if (tare_crc32c_mask(tare_crc32c(body, (size_t)length)) != load32(body + length)) {
        tare_status status = bad_record(reader, "corrupted", true);
        reader->offset += (int64_t)(HEADER_SIZE + wanted);
        reader->number++;
        return status;
    }
    *out = (struct tare_tfrecord){ body, (size_t)length, reader->number, reader->offset };
    reader->offset += (int64_t)(HEADER_SIZE + wanted);
    reader->number++;
    return TARE_OK;
}

bool tare_tfrecord_can_skip(const struct tare_tfrecord_reader *reader) { return reader->can_skip; }

const char *tare_tfrecord_compression(const struct tare_tfrecord_reader *reader) {
    static const char *const names[] = { "none", "gzip", "zlib" };
    return names[reader->compression];
}
