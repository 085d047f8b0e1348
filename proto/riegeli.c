/* Reading Riegeli files. A block header of 24 bytes is at every multiple of 64 KiB, also inside chunks; it is only
 * needed for seeking and is skipped. */
#include "proto/riegeli.h"
#include "base/alloc.h"
#include "base/varint.h"
#include "proto/highway_hash.h"

#include <stdbool.h>
#include <string.h>
#ifdef TARE_HAVE_BROTLI
#include <brotli/decode.h>
#endif

enum {
    BLOCK = 1 << 16,
    BLOCK_HEADER = 24,
    CHUNK_HEADER = 40,
    /* Limit of decompressed data: this multiple of the compressed size, plus this many bytes. */
    MAX_EXPANSION = 4096,
    FREE_EXPANSION = 16 << 20,
};

/* "Riegeli/records\n" twice. */
static const uint64_t KEY[4] = { 0x2f696c6567656952u, 0x0a7364726f636572u, 0x2f696c6567656952u, 0x0a7364726f636572u };

struct reader {
    struct tare_arena *arena;
    const uint8_t *data;
    uint64_t size, at;
    struct tare_riegeli_record *records;
    size_t count, capacity;
};

struct chunk {
    uint64_t begin, data_size, data_hash, n_records, decoded_size;
    uint8_t type;
    const uint8_t *data;
};

static uint64_t load64(const uint8_t *p) {
    uint64_t x = 0;
    for (int i = 0; i < 8; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return x;
}

static tare_status corrupt(const struct chunk *chunk, const char *what) {
    return TARE_FAIL(TARE_CORRUPT, "chunk at byte %llu: %s", (unsigned long long)chunk->begin, what);
}

/* ---- blocks and chunks ---- */

/* Reads the next bytes of a chunk, skipping block headers. */
static tare_status take(uint8_t *out, struct reader *r, uint64_t size, const struct chunk *chunk) {
    while (size) {
        uint64_t run;
        if (r->at % BLOCK == 0) r->at += BLOCK_HEADER;
        run = BLOCK - r->at % BLOCK;
        if (run > size) run = size;
        if (r->at > r->size || run > r->size - r->at) return corrupt(chunk, "is cut off");
        memcpy(out, r->data + r->at, run);
        out += run;
        r->at += run;
        size -= run;
    }
    return TARE_OK;
}

static tare_status read_header(struct chunk *chunk, struct reader *r) {
    uint8_t header[CHUNK_HEADER];
    *chunk = (struct chunk){ .begin = r->at };
    TARE_TRY(take(header, r, sizeof header, chunk));
    if (tare_highway_hash64(KEY, header + 8, sizeof header - 8) != load64(header))
        return corrupt(chunk, chunk->begin ? "its header does not match its hash" : "not a riegeli file");
    chunk->data_size = load64(header + 8);
    chunk->data_hash = load64(header + 16);
    chunk->type = header[24];
    chunk->n_records = load64(header + 24) >> 8;
    chunk->decoded_size = load64(header + 32);
    return TARE_OK;
}

/* The end of a chunk with more records than bytes: not inside a block header nor immediately after one. */
static uint64_t padded_end(const struct chunk *chunk) {
    uint64_t end = chunk->begin + chunk->n_records, offset = end % BLOCK;
    return offset && offset <= BLOCK_HEADER ? end + (BLOCK_HEADER + 1 - offset) : end;
}

static tare_status read_chunk(struct chunk *chunk, struct reader *r) {
    uint8_t *data;
    uint64_t end;
    TARE_TRY(read_header(chunk, r));
    if (chunk->data_size > r->size - r->at) return corrupt(chunk, "is cut off");
    data = tare_arena_alloc(r->arena, chunk->data_size + 1);
    if (!data) return TARE_NO_MEMORY;
    TARE_TRY(take(data, r, chunk->data_size, chunk));
    if (tare_highway_hash64(KEY, data, chunk->data_size) != chunk->data_hash)
        return corrupt(chunk, "its data does not match its hash");
    chunk->data = data;
    end = padded_end(chunk);
    if (end > r->at) r->at = end;
    return TARE_OK;
}

/* ---- compression ---- */

#ifdef TARE_HAVE_BROTLI
static void *allocate(void *arg, size_t size) {
    (void)arg;
    return tare_malloc(size);
}

static void release(void *arg, void *block) {
    (void)arg;
    tare_free(block);
}

static tare_status inflate(uint8_t *out, uint64_t size, const uint8_t *data, size_t data_size,
                           const struct chunk *chunk) {
    BrotliDecoderState *state = BrotliDecoderCreateInstance(allocate, release, NULL);
    size_t left = size;
    BrotliDecoderResult result;
    if (!state) return TARE_NO_MEMORY;
    result = BrotliDecoderDecompressStream(state, &data_size, &data, &left, &out, NULL);
    BrotliDecoderDestroyInstance(state);
    if (result == BROTLI_DECODER_RESULT_SUCCESS && !left && !data_size) return TARE_OK;
    return corrupt(chunk, "bad brotli data");
}
#else
static tare_status inflate(uint8_t *out, uint64_t size, const uint8_t *data, size_t data_size,
                           const struct chunk *chunk) {
    (void)out, (void)size, (void)data, (void)data_size, (void)chunk;
    return TARE_FAIL(TARE_UNSUPPORTED, "the file is compressed with brotli, which this program was built without");
}
#endif

/* Decodes a buffer of a chunk: uncompressed, or its size and a compressed stream. */
static tare_status decode(const uint8_t **out, uint64_t *out_size, struct reader *r, const struct chunk *chunk,
                          const uint8_t *at, const uint8_t *end) {
    uint8_t *memory;
    uint64_t limit = (uint64_t)(end - at) * MAX_EXPANSION + FREE_EXPANSION;
    *out = at;
    *out_size = (uint64_t)(end - at);
    if (chunk->data[0] == 0) return TARE_OK;
    if (chunk->data[0] != 'b')
        return TARE_FAIL(TARE_UNSUPPORTED, "the chunk at byte %llu has compression 0x%02x (expected none or brotli)",
                         (unsigned long long)chunk->begin, chunk->data[0]);
    if (!tare_varint_next(out_size, &at, end)) return corrupt(chunk, "a size is cut off");
    if (*out_size > limit) return corrupt(chunk, "expands too much");
    memory = tare_arena_alloc(r->arena, *out_size + 1);
    if (!memory) return TARE_NO_MEMORY;
    *out = memory;
    return inflate(memory, *out_size, at, (size_t)(end - at), chunk);
}

/* ---- records ---- */

static tare_status add_record(struct reader *r, uint64_t position, const uint8_t *data, uint64_t size) {
    if (r->count == r->capacity) {
        size_t extra = r->count + 16;
        struct tare_riegeli_record *grown = tare_arena_extend(r->arena, r->records, r->count, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        r->records = grown;
        r->capacity = r->count + extra;
    }
    r->records[r->count++] = (struct tare_riegeli_record){ position, data, size };
    return TARE_OK;
}

/* Layout: a buffer with all sizes, then a buffer with all bytes. */
static tare_status read_records(struct reader *r, const struct chunk *chunk) {
    const uint8_t *at = chunk->data + 1, *end = chunk->data + chunk->data_size, *sizes, *values;
    uint64_t packed = 0, sizes_size, values_size;
    if (!chunk->data_size || !tare_varint_next(&packed, &at, end) || packed > (uint64_t)(end - at))
        return corrupt(chunk, "its sizes exceed its end");
    TARE_TRY(decode(&sizes, &sizes_size, r, chunk, at, at + packed));
    TARE_TRY(decode(&values, &values_size, r, chunk, at + packed, end));
    end = sizes + sizes_size;
    for (uint64_t i = 0; i < chunk->n_records; i++) {
        uint64_t size;
        if (!tare_varint_next(&size, &sizes, end) || size > values_size)
            return corrupt(chunk, "its records exceed its end");
        TARE_TRY(add_record(r, chunk->begin + i, values, size));
        values += size;
        values_size -= size;
    }
    return values_size ? corrupt(chunk, "has data after its records") : TARE_OK;
}

tare_status tare_riegeli_read(struct tare_riegeli_record **out, size_t *count, struct tare_arena *arena,
                              const uint8_t *data, size_t size) {
    struct reader r = { .arena = arena, .data = data, .size = size };
    while (r.at < r.size) {
        struct chunk chunk;
        TARE_TRY(read_chunk(&chunk, &r));
        if (!chunk.begin && chunk.type != 's') return corrupt(&chunk, "not a riegeli file");
        if (chunk.type == 'r')
            TARE_TRY(read_records(&r, &chunk));
        else if (chunk.type == 't')
            return TARE_FAIL(TARE_UNSUPPORTED, "the chunk at byte %llu is transposed", (unsigned long long)chunk.begin);
    }
    *out = r.records;
    *count = r.count;
    return TARE_OK;
}
