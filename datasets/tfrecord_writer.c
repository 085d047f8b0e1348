/* Writing TFRecord files. */
#include "base/alloc.h"
#include "base/output.h"
#include "datasets/tfrecord.h"
#include "proto/crc32c.h"

#include <string.h>
#include <zlib.h>

enum { CHUNK = 64 * 1024 };

struct tare_tfrecord_writer {
    struct tare_output_file file;
    bool compressed;
    z_stream stream;
    uint8_t chunk[CHUNK];
};

static void store32(uint8_t *p, uint32_t value) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

static bool ends_with(const char *text, const char *ending) {
    size_t a = strlen(text), b = strlen(ending);
    return a >= b && strcmp(text + a - b, ending) == 0;
}

tare_status tare_tfrecord_create(struct tare_tfrecord_writer **out, const char *path) {
    struct tare_tfrecord_writer *writer = tare_calloc(1, sizeof *writer);
    tare_status status;
    *out = NULL;
    if (!writer) return TARE_NO_MEMORY;
    status = tare_output_file_begin(&writer->file, path);
    if (status == TARE_OK && ends_with(path, ".gz")) {
        writer->compressed = deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 31, 8, 0) == Z_OK;
        if (!writer->compressed) status = TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    }
    if (status == TARE_OK)
        *out = writer;
    else
        tare_tfrecord_abort(writer);
    return status;
}

static tare_status deflate_bytes(struct tare_tfrecord_writer *writer, const void *data, size_t size, int flush) {
    z_stream *stream = &writer->stream;
    int code;
    stream->next_in = (Bytef *)(uintptr_t)data;
    stream->avail_in = (uInt)size;
    do {
        stream->next_out = writer->chunk;
        stream->avail_out = CHUNK;
        code = deflate(stream, flush);
        if (code == Z_STREAM_ERROR) return TARE_FAIL(TARE_INTERNAL, "zlib error");
        TARE_TRY(tare_output_file_write(&writer->file, writer->chunk, CHUNK - stream->avail_out));
    } while (stream->avail_out == 0 || (flush == Z_FINISH && code != Z_STREAM_END));
    return TARE_OK;
}

static tare_status put(struct tare_tfrecord_writer *writer, const void *data, size_t size) {
    const uint8_t *bytes = data;
    if (!writer->compressed) return tare_output_file_write(&writer->file, data, size);
    while (size) { /* zlib has 32-bit counters */
        size_t step = size > (1u << 30) ? 1u << 30 : size;
        TARE_TRY(deflate_bytes(writer, bytes, step, Z_NO_FLUSH));
        bytes += step;
        size -= step;
    }
    return TARE_OK;
}

tare_status tare_tfrecord_write(struct tare_tfrecord_writer *writer, const void *data, size_t size) {
    uint8_t header[12], footer[4];
    if (size > TARE_TFRECORD_LONGEST)
        return TARE_FAIL(TARE_UNSUPPORTED, "a record of %zu bytes is too long (expected at most %llu)", size,
                         (unsigned long long)TARE_TFRECORD_LONGEST);
    store32(header, (uint32_t)size);
    store32(header + 4, (uint32_t)((uint64_t)size >> 32));
    store32(header + 8, tare_crc32c_mask(tare_crc32c(header, 8)));
    store32(footer, tare_crc32c_mask(tare_crc32c(data, size)));
    TARE_TRY(put(writer, header, sizeof header));
    TARE_TRY(put(writer, data, size));
    return put(writer, footer, sizeof footer);
}

tare_status tare_tfrecord_commit(struct tare_tfrecord_writer *writer) {
    tare_status status = writer->compressed ? deflate_bytes(writer, NULL, 0, Z_FINISH) : TARE_OK;
    if (status == TARE_OK) status = tare_output_file_commit(&writer->file);
    tare_tfrecord_abort(writer);
    return status;
}

void tare_tfrecord_abort(struct tare_tfrecord_writer *writer) {
    if (!writer) return;
    if (writer->compressed) deflateEnd(&writer->stream);
    tare_output_file_abort(&writer->file);
    tare_free(writer);
}
