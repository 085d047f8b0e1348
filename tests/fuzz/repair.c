#include "fuzz/repair.h"
#include "base/arena.h"
#include "base/varint.h"
#include "calib/hash.h"
#include "datasets/zip.h"
#include "fuzz/target.h"
#include "proto/crc32c.h"
#include "proto/highway_hash.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

static uint64_t load(const uint8_t *p, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static void store(uint8_t *p, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* ---- TFRecords ---- */

void repair_tfrecord(uint8_t *data, size_t size) {
    enum { HEADER = 12, TRAILER = 4 };
    for (size_t at = 0; size - at >= HEADER + TRAILER;) {
        const uint64_t most = size - at - HEADER - TRAILER;
        uint64_t length = load(data + at, 8);
        if (length > most) store(data + at, length = most, 8);
        store(data + at + 8, tare_crc32c_mask(tare_crc32c(data + at, 8)), 4);
        store(data + at + HEADER + length, tare_crc32c_mask(tare_crc32c(data + at + HEADER, (size_t)length)), 4);
        at += HEADER + (size_t)length + TRAILER;
    }
}

/* ---- checkpoints ---- */

enum { FOOTER = 48, BLOCK_TRAILER = 5 };

struct table {
    uint8_t *data;
    size_t size;
    struct fuzz_part tensors; /* the data file */
};

/* The fields of a BundleEntryProto that its checksum depends on. `crc`: where the stored checksum is, NULL if absent.
 */
struct entry {
    uint64_t dtype, offset, size;
    const uint8_t *crc;
};

static bool read_entry(struct entry *out, const uint8_t *at, const uint8_t *end) {
    enum { DTYPE = 1 << 3, OFFSET = 4 << 3, SIZE = 5 << 3, CRC = 6 << 3 | 5 };
    *out = (struct entry){ 0 };
    while (at < end) {
        uint64_t tag, value;
        if (!tare_varint_next(&tag, &at, end)) return false;
        if (tag == CRC) {
            if (end - at < 4) return false;
            out->crc = at;
            at += 4;
            continue;
        }
        if ((tag & 7) == 5 || (tag & 7) == 1 || !tare_varint_next(&value, &at, end)) return false;
        if (tag == DTYPE) out->dtype = value;
        if (tag == OFFSET) out->offset = value;
        if (tag == SIZE) out->size = value;
        if ((tag & 7) == 2) {
            if (value > (uint64_t)(end - at)) return false;
            at += value;
        }
    }
    return out->crc;
}

static void repair_entry(const struct table *table, const uint8_t *value, const uint8_t *end) {
    const struct fuzz_part *tensors = &table->tensors;
    enum { STRING = 7 }; /* its checksum is not that of its bytes */
    struct entry entry;
    if (!read_entry(&entry, value, end) || entry.dtype == STRING) return;
    if (entry.offset > tensors->size || entry.size > tensors->size - entry.offset) return;
    store(table->data + (entry.crc - table->data),
          tare_crc32c_mask(tare_crc32c(tensors->data + entry.offset, (size_t)entry.size)), 4);
}

static void repair_block(const struct table *table, uint64_t offset, uint64_t size, bool is_index) {
    const uint8_t *at, *end;
    if (offset > table->size || size > table->size - offset || table->size - offset - size < BLOCK_TRAILER) return;
    at = table->data + offset;
    end = at + size;
    if (size >= 4 && !*end) { /* not compressed: without its restarts, a list of entries */
        const uint64_t restarts = load(end - 4, 4) * 4 + 4;
        const uint8_t *stop = restarts <= size ? end - restarts : at;
        uint64_t shared, unshared, length;
        while (at < stop && tare_varint_next(&shared, &at, stop) && tare_varint_next(&unshared, &at, stop) &&
               tare_varint_next(&length, &at, stop) && unshared <= (uint64_t)(stop - at) &&
               length <= (uint64_t)(stop - at) - unshared) {
            const uint8_t *value = at + unshared;
            at = value + length;
            if (!is_index)
                repair_entry(table, value, at);
            else if (tare_varint_next(&shared, &value, at) && tare_varint_next(&unshared, &value, at))
                repair_block(table, shared, unshared, false);
        }
    }
    store(table->data + offset + size + 1, tare_crc32c_mask(tare_crc32c(table->data + offset, (size_t)size + 1)), 4);
}

void repair_checkpoint(uint8_t *data, size_t size, uint32_t index) {
    static const uint8_t magic[] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };
    const struct fuzz_part part = fuzz_part(data, size, index);
    struct table table = { .size = part.size, .tensors = fuzz_part(data, size, index + 1) };
    uint64_t unused, offset, length;
    const uint8_t *at, *end;
    if (part.size < FOOTER) return;
    table.data = data + (part.data - data);
    at = table.data + table.size - FOOTER;
    end = at + FOOTER - sizeof magic;
    memcpy(table.data + table.size - sizeof magic, magic, sizeof magic);
    if (tare_varint_next(&unused, &at, end) && tare_varint_next(&unused, &at, end) &&
        tare_varint_next(&offset, &at, end) && tare_varint_next(&length, &at, end))
        repair_block(&table, offset, length, true);
}

/* ---- calibration files ---- */

void repair_calibration(uint8_t *data, size_t size) {
    struct tare_hash hash;
    uint64_t sum[2];
    if (size < 8) return;
    tare_hash_begin(&hash);
    tare_hash_add(&hash, data, size - 8);
    tare_hash_end(&hash, sum);
    store(data + size - 8, sum[0], 8);
}

/* ---- Riegeli files ---- */

void repair_riegeli(uint8_t *data, size_t size) {
    enum { BLOCK_HEADER = 24, CHUNK_HEADER = 40, BLOCK = 1 << 16 };
    static const uint64_t key[4] = { 0x2f696c6567656952u, 0x0a7364726f636572u, 0x2f696c6567656952u,
                                     0x0a7364726f636572u };
    size_t at = BLOCK_HEADER;
    if (size > BLOCK) return; /* block headers inside chunks are not worth the code */
    while (at <= size && size - at >= CHUNK_HEADER) {
        uint8_t *header = data + at;
        const uint64_t most = size - at - CHUNK_HEADER;
        uint64_t length = load(header + 8, 8), records;
        if (length > most) store(header + 8, length = most, 8);
        store(header + 16, tare_highway_hash64(key, header + CHUNK_HEADER, (size_t)length), 8);
        store(header, tare_highway_hash64(key, header + 8, CHUNK_HEADER - 8), 8);
        records = load(header + 24, 8) >> 8;
        if (records > size) return;
        at += records > CHUNK_HEADER + length ? (size_t)records : CHUNK_HEADER + (size_t)length;
    }
}

/* ---- ZIP files ---- */

/* Inflates a member piece by piece; its checksum is that of what comes out. */
static uint32_t inflated_checksum(const struct tare_zip_member *member) {
    uint8_t out[4096];
    z_stream z = { .next_in = (Bytef *)(uintptr_t)member->packed, .avail_in = (uInt)member->packed_size };
    uLong crc = crc32(0, NULL, 0);
    int code = inflateInit2(&z, -15);
    size_t total = 0;
    while (code == Z_OK && total <= member->size) {
        z.next_out = out;
        z.avail_out = sizeof out;
        code = inflate(&z, Z_NO_FLUSH);
        crc = crc32(crc, out, (uInt)(sizeof out - z.avail_out));
        total += sizeof out - z.avail_out;
    }
    inflateEnd(&z);
    return (uint32_t)crc;
}

void repair_zip(uint8_t *data, size_t size) {
    struct tare_arena arena = { 0 };
    struct tare_zip zip;
    if (tare_zip_open(&zip, &arena, data, size) == TARE_OK)
        for (size_t i = 0, at = 0; i < zip.count; i++) { /* the i-th entry of the directory is the i-th "PK 1 2" */
            const struct tare_zip_member *member = &zip.members[i];
            while (at + 46 <= size && memcmp(data + at, "PK\1\2", 4) != 0)
                at++;
            if (at + 46 > size) break;
            store(data + at + 16,
                  member->method ? inflated_checksum(member) : crc32(0, member->packed, (uInt)member->size), 4);
            at += 46;
        }
    tare_error_clear();
    tare_arena_free(&arena);
}

/* ---- images ---- */

void repair_image(uint8_t *data, size_t size) {
    static const uint8_t png[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    if (size < sizeof png || memcmp(data, png, sizeof png) != 0) return;
    for (size_t at = sizeof png; size - at >= 12;) {
        const uint32_t length = __builtin_bswap32((uint32_t)load(data + at, 4));
        if (length > size - at - 12) return;
        store(data + at + 8 + length, __builtin_bswap32((uint32_t)crc32(0, data + at + 4, length + 4)), 4);
        at += 12 + (size_t)length;
    }
}
