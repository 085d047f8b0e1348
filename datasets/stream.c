/* Byte streams. Raw bytes are read into `raw`; the window holds the uncompressed bytes that were not consumed yet. */
#include "datasets/stream.h"
#include "base/alloc.h"
#include "base/file.h"

#include <string.h>
#include <zlib.h>

enum {
    HEAD_SIZE = 16,         /* raw bytes for the detection of the format */
    INPUT_SIZE = 1 << 18,   /* raw bytes read at a time */
    WINDOW_SIZE = 1 << 18,  /* minimum size of the buffer: fits into the L2 cache */
    LARGE_WINDOW = 1 << 20, /* minimum size for large requests, which reduces moves to its front */
    LARGEST_STEP = 1 << 24, /* maximum growth before further bytes have arrived */
};

enum compression { NONE, GZIP, ZLIB };

struct tare_stream {
    char *path;
    int fd;
    uint8_t head[HEAD_SIZE];
    uint8_t *raw;  /* raw bytes read so far: up to INPUT_SIZE of a compressed file, otherwise the head */
    uint8_t *kept; /* buffer of INPUT_SIZE bytes; NULL: not needed yet */
    size_t raw_capacity;
    size_t raw_size, raw_used;
    uint64_t raw_before; /* bytes of the file before raw[0] */
    enum compression compression;
    z_stream inflater;
    bool inflating, ended, cut;
    uint8_t *window; /* window[begin … end): bytes of the stream that were not consumed yet */
    size_t begin, end, capacity;
};

/* ---- raw bytes ---- */

/* Moves the remaining bytes to the front and reads more after them; none at the end of the file. */
static tare_status read_raw(struct tare_stream *stream) {
    size_t left = stream->raw_size - stream->raw_used, got;
    memmove(stream->raw, stream->raw + stream->raw_used, left);
    stream->raw_before += stream->raw_used;
    stream->raw_used = 0;
    stream->raw_size = left;
    TARE_TRY(tare_file_read_some(&got, stream->fd, stream->raw + left, stream->raw_capacity - left, stream->path));
    stream->raw_size += got;
    return TARE_OK;
}

static tare_status read_head(struct tare_stream *stream, size_t expected) {
    size_t before;
    do {
        before = stream->raw_size - stream->raw_used;
        if (before >= expected) return TARE_OK;
        TARE_TRY(read_raw(stream));
    } while (stream->raw_size - stream->raw_used > before);
    return TARE_OK;
}

static enum compression detect(const uint8_t *head, size_t size, bool (*is_plain)(const uint8_t *head, size_t size)) {
    if (size < 2 || (is_plain && is_plain(head, size < HEAD_SIZE ? size : HEAD_SIZE))) return NONE;
    if (head[0] == 0x1f && head[1] == 0x8b) return GZIP;
    if ((head[0] & 0x0f) == 8 && head[0] >> 4 <= 7 && (head[0] << 8 | head[1]) % 31 == 0) return ZLIB;
    return NONE;
}

static tare_status start(struct tare_stream *stream, bool (*is_plain)(const uint8_t *head, size_t size)) {
    TARE_TRY(tare_file_open(&stream->fd, stream->path));
    stream->raw = stream->head;
    stream->raw_capacity = HEAD_SIZE;
    TARE_TRY(read_head(stream, HEAD_SIZE));
    stream->compression = detect(stream->raw, stream->raw_size, is_plain);
    if (stream->compression == NONE) return TARE_OK;
    if (!stream->kept) stream->kept = tare_malloc(INPUT_SIZE);
    if (!stream->kept) return TARE_NO_MEMORY;
    memcpy(stream->kept, stream->head, stream->raw_size);
    stream->raw = stream->kept;
    stream->raw_capacity = INPUT_SIZE;
    if (inflateInit2(&stream->inflater, stream->compression == GZIP ? 31 : 15) != Z_OK)
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory for inflating");
    stream->inflating = true;
    return TARE_OK;
}

tare_status tare_stream_open(struct tare_stream **out, const char *path,
                             bool (*is_plain)(const uint8_t *head, size_t size)) {
    struct tare_stream_memory none = { 0 };
    return tare_stream_open_in(out, path, is_plain, &none);
}

tare_status tare_stream_open_in(struct tare_stream **out, const char *path,
                                bool (*is_plain)(const uint8_t *head, size_t size), struct tare_stream_memory *memory) {
    struct tare_stream *stream = tare_calloc(1, sizeof *stream);
    tare_status status = TARE_NO_MEMORY;
    *out = NULL;
    if (!stream) {
        tare_stream_memory_free(memory);
        return status;
    }
    stream->fd = -1;
    stream->kept = memory->raw;
    stream->window = memory->window;
    stream->capacity = memory->capacity;
    *memory = (struct tare_stream_memory){ 0 };
    stream->path = tare_strdup(path);
    if (stream->path) status = start(stream, is_plain);
    if (status == TARE_OK)
        *out = stream;
    else
        tare_stream_close(stream);
    return status;
}

void tare_stream_memory_free(struct tare_stream_memory *memory) {
    tare_free(memory->raw);
    tare_free(memory->window);
    *memory = (struct tare_stream_memory){ 0 };
}

void tare_stream_close(struct tare_stream *stream) {
    struct tare_stream_memory memory = { 0 };
    tare_stream_close_keeping(stream, &memory);
    tare_stream_memory_free(&memory);
}

void tare_stream_close_keeping(struct tare_stream *stream, struct tare_stream_memory *memory) {
    if (!stream) return;
    *memory = (struct tare_stream_memory){ stream->kept, stream->window, stream->capacity };
    if (stream->inflating) inflateEnd(&stream->inflater);
    tare_file_close(stream->fd);
    tare_free(stream->path);
    tare_free(stream);
}

/* ---- the window ---- */

static tare_status damaged(struct tare_stream *stream, const char *why) {
    return TARE_FAIL(TARE_CORRUPT, "%s: damaged %s data at byte %llu of the file (%s)", stream->path,
                     tare_stream_compression(stream), (unsigned long long)(stream->raw_before + stream->raw_used), why);
}

/* After an end marker: another GZIP member, zero padding, or the end. */
static tare_status next_member(struct tare_stream *stream) {
    TARE_TRY(read_head(stream, 2));
    while (stream->raw_used < stream->raw_size && stream->raw[stream->raw_used] == 0) {
        stream->raw_used++;
        TARE_TRY(read_head(stream, 2));
    }
    if (stream->raw_used == stream->raw_size) {
        stream->ended = true;
        return TARE_OK;
    }
    if (stream->compression != GZIP || stream->raw[stream->raw_used] != 0x1f)
        return damaged(stream, "unexpected data after its end");
    return inflateReset(&stream->inflater) == Z_OK ? TARE_OK : damaged(stream, "no further member");
}

/* Adds up to `room` bytes to the window; none at the end of the stream. */
static tare_status inflate_some(struct tare_stream *stream, size_t room) {
    z_stream *z = &stream->inflater;
    size_t have;
    int code;
    if (stream->raw_used == stream->raw_size) TARE_TRY(read_raw(stream));
    have = stream->raw_size - stream->raw_used;
    if (!have) {
        stream->ended = stream->cut = true;
        return TARE_OK;
    }
    z->next_in = (Bytef *)(uintptr_t)(stream->raw + stream->raw_used);
    z->avail_in = (uInt)have;
    z->next_out = stream->window + stream->end;
    z->avail_out = (uInt)room;
    code = inflate(z, Z_NO_FLUSH);
    stream->raw_used = (size_t)(z->next_in - stream->raw);
    stream->end = (size_t)(z->next_out - stream->window);
    if (code == Z_STREAM_END) return next_member(stream);
    if (code == Z_MEM_ERROR) return TARE_FAIL(TARE_NO_MEMORY, "out of memory for inflating");
    return code == Z_OK || code == Z_BUF_ERROR ? TARE_OK : damaged(stream, z->msg ? z->msg : "zlib error");
}

static tare_status read_some(struct tare_stream *stream, size_t room) {
    size_t got;
    if (stream->raw_used < stream->raw_size) { /* the head */
        got = stream->raw_size - stream->raw_used;
        if (got > room) got = room;
        memcpy(stream->window + stream->end, stream->raw + stream->raw_used, got);
        stream->raw_used += got;
    } else {
        TARE_TRY(tare_file_read_some(&got, stream->fd, stream->window + stream->end, room, stream->path));
        if (!got) stream->ended = true;
    }
    stream->end += got;
    return TARE_OK;
}

/* Makes space after the window's end: drops consumed bytes, then grows the buffer in bounded steps. */
static tare_status make_room(struct tare_stream *stream, size_t expected) {
    size_t have = stream->end - stream->begin, step = expected - have;
    size_t target = have + (step < LARGEST_STEP ? step : LARGEST_STEP);
    if (target < WINDOW_SIZE) target = WINDOW_SIZE;
    if (expected > WINDOW_SIZE / 4 && target < LARGE_WINDOW) target = LARGE_WINDOW;
    if (stream->begin) {
        memmove(stream->window, stream->window + stream->begin, have);
        stream->begin = 0;
        stream->end = have;
    }
    if (target <= stream->capacity || tare_grow((void **)&stream->window, &stream->capacity, target, 1)) return TARE_OK;
    return TARE_NO_MEMORY;
}

tare_status tare_stream_take(const uint8_t **data, size_t *got, struct tare_stream *stream, size_t size) {
    *got = 0;
    while (stream->end - stream->begin < size && !stream->ended) {
        size_t room, most;
        if (stream->end == stream->capacity || stream->begin + size > stream->capacity)
            TARE_TRY(make_room(stream, size));
        room = stream->capacity - stream->end;
        most = size - (stream->end - stream->begin) + LARGE_WINDOW; /* bytes read in advance may have to be moved */
        if (room > most) room = most;
        if (room > LARGEST_STEP) room = LARGEST_STEP;
        TARE_TRY(stream->compression == NONE ? read_some(stream, room) : inflate_some(stream, room));
    }
    *got = stream->end - stream->begin < size ? stream->end - stream->begin : size;
    *data = stream->window ? stream->window + stream->begin : (const uint8_t *)"";
    stream->begin += *got;
    return TARE_OK;
}

tare_status tare_stream_peek(const uint8_t **data, size_t *got, struct tare_stream *stream, size_t size) {
    TARE_TRY(tare_stream_take(data, got, stream, size));
    stream->begin -= *got;
    return TARE_OK;
}

tare_status tare_stream_take_all(uint8_t **data, size_t *size, struct tare_stream *stream) {
    size_t capacity = 0, got = 1;
    *data = NULL;
    *size = 0;
    while (got) {
        const uint8_t *piece;
        tare_status status = tare_stream_take(&piece, &got, stream, INPUT_SIZE);
        if (status == TARE_OK && *size + got + 1 > capacity && !tare_grow((void **)data, &capacity, *size + got + 1, 1))
            status = TARE_NO_MEMORY;
        if (status != TARE_OK) {
            tare_free(*data);
            *data = NULL;
            return status;
        }
        memcpy(*data + *size, piece, got);
        *size += got;
    }
    return TARE_OK;
}

bool tare_stream_is_cut(const struct tare_stream *stream) {
    return stream->cut;
}

const char *tare_stream_compression(const struct tare_stream *stream) {
    static const char *const names[] = { "none", "gzip", "zlib" };
    return names[stream->compression];
}
