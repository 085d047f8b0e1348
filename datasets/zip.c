/* ZIP files: the directory at the end of the file has the locations of the members. */
#include "datasets/zip.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

enum {
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    LARGEST_COMMENT = 65535,
    STORED = 0,
    DEFLATED = 8,
    LARGEST_GAIN = 1032, /* of deflate */
};

struct file {
    const uint8_t *bytes;
    size_t size;
};

static uint64_t load(const uint8_t *p, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static bool has(const struct file *file, uint64_t offset, uint64_t size) {
    return offset <= file->size && size <= file->size - offset;
}

static bool is(const struct file *file, uint64_t offset, uint64_t size, const char *mark) {
    return has(file, offset, size) && memcmp(file->bytes + offset, mark, 4) == 0;
}

/* Finds the last end marker; a comment may follow it. */
static bool find_end(uint64_t *out, const struct file *file) {
    size_t least = file->size > END_SIZE + LARGEST_COMMENT ? file->size - END_SIZE - LARGEST_COMMENT : 0;
    if (file->size < END_SIZE) return false;
    for (size_t at = file->size - END_SIZE + 1; at-- > least;) {
        if (!is(file, at, END_SIZE, "PK\5\6")) continue;
        *out = at;
        return true;
    }
    return false;
}

struct directory {
    uint64_t count, size, offset;
};

static tare_status find_directory(struct directory *out, const struct file *file) {
    uint64_t end, end64;
    if (!find_end(&end, file)) return TARE_FAIL(TARE_CORRUPT, "the ZIP directory is missing (is the file truncated?)");
    out->count = load(file->bytes + end + 10, 2);
    out->size = load(file->bytes + end + 12, 4);
    out->offset = load(file->bytes + end + 16, 4);
    if (end >= LOCATOR_SIZE && is(file, end - LOCATOR_SIZE, LOCATOR_SIZE, "PK\6\7")) {
        end64 = load(file->bytes + end - LOCATOR_SIZE + 8, 8);
        if (!is(file, end64, END64_SIZE, "PK\6\6")) return TARE_FAIL(TARE_CORRUPT, "the ZIP directory is damaged");
        out->count = load(file->bytes + end64 + 32, 8);
        out->size = load(file->bytes + end64 + 40, 8);
        out->offset = load(file->bytes + end64 + 48, 8);
    }
    if (!has(file, out->offset, out->size) || out->count > out->size / ENTRY_SIZE)
        return TARE_FAIL(TARE_CORRUPT, "the ZIP directory is damaged");
    return TARE_OK;
}

/* Reads the 64-bit values of those fields that the entry marks as too large for 32 bits, in this order. */
static bool read_extra(uint64_t *size, uint64_t *packed, uint64_t *offset, const uint8_t *extra, size_t extra_size) {
    while (extra_size >= 4) {
        size_t id = (size_t)load(extra, 2), length = (size_t)load(extra + 2, 2), at = 4;
        if (length > extra_size - 4) return false;
        if (id == 1) {
            uint64_t *const wide[] = { size, packed, offset };
            for (int i = 0; i < 3; i++) {
                if (*wide[i] != UINT32_MAX) continue;
                if (at + 8 > length + 4) return false;
                *wide[i] = load(extra + at, 8);
                at += 8;
            }
        }
        extra += 4 + length;
        extra_size -= 4 + length;
    }
    return true;
}

static tare_status read_entry(struct tare_zip_member *out, size_t *used, struct tare_arena *arena,
                              const struct file *file, const uint8_t *entry, size_t left) {
    uint64_t size, packed, offset, start;
    size_t name, extra, comment;
    if (left < ENTRY_SIZE || memcmp(entry, "PK\1\2", 4) != 0) return TARE_FAIL(TARE_CORRUPT, "bad entry");
    name = (size_t)load(entry + 28, 2);
    extra = (size_t)load(entry + 30, 2);
    comment = (size_t)load(entry + 32, 2);
    *used = ENTRY_SIZE + name + extra + comment;
    if (*used > left) return TARE_FAIL(TARE_CORRUPT, "bad entry");
    out->method = (int)load(entry + 10, 2);
    out->crc = (uint32_t)load(entry + 16, 4);
    packed = load(entry + 20, 4);
    size = load(entry + 24, 4);
    offset = load(entry + 42, 4);
    out->name = tare_arena_strndup(arena, (const char *)entry + ENTRY_SIZE, name);
    if (!out->name) return TARE_NO_MEMORY;
    if (load(entry + 8, 2) & 1) return TARE_FAIL(TARE_UNSUPPORTED, "'%s' is encrypted", out->name);
    if (out->method != STORED && out->method != DEFLATED)
        return TARE_FAIL(TARE_UNSUPPORTED, "'%s' is compressed by method %d (expected 0 or 8)", out->name, out->method);
    if (!read_extra(&size, &packed, &offset, entry + ENTRY_SIZE + name, extra) ||
        !is(file, offset, LOCAL_SIZE, "PK\3\4"))
        return TARE_FAIL(TARE_CORRUPT, "'%s' is damaged", out->name);
    start = offset + LOCAL_SIZE + load(file->bytes + offset + 26, 2) + load(file->bytes + offset + 28, 2);
    if (!has(file, start, packed) || (out->method == STORED && size != packed) || size / LARGEST_GAIN > packed + 64)
        return TARE_FAIL(TARE_CORRUPT, "'%s' runs past the end of the file", out->name);
    out->packed = file->bytes + start;
    out->packed_size = (size_t)packed;
    out->size = (size_t)size;
    return TARE_OK;
}

tare_status tare_zip_open(struct tare_zip *out, struct tare_arena *arena, const uint8_t *bytes, size_t size) {
    const struct file file = { bytes, size };
    struct directory directory;
    size_t at, used;
    memset(out, 0, sizeof *out);
    TARE_TRY(find_directory(&directory, &file));
    out->members = TARE_NEW_ARRAY(arena, struct tare_zip_member, (size_t)directory.count + 1);
    if (!out->members) return TARE_NO_MEMORY;
    at = (size_t)directory.offset;
    for (; out->count < directory.count; out->count++, at += used)
        TARE_TRY(tare_error_prefix(read_entry(&out->members[out->count], &used, arena, &file, bytes + at,
                                              (size_t)(directory.offset + directory.size) - at),
                                   "member %zu", out->count));
    return TARE_OK;
}

static uint32_t checksum(const uint8_t *data, size_t size) {
    uLong crc = crc32(0, NULL, 0);
    while (size) { /* zlib counts in 32 bits */
        uInt step = size > (1u << 30) ? 1u << 30 : (uInt)size;
        crc = crc32(crc, data, step);
        data += step;
        size -= step;
    }
    return (uint32_t)crc;
}

static bool inflate_member(uint8_t *out, const struct tare_zip_member *member) {
    z_stream z = { .next_in = (Bytef *)(uintptr_t)member->packed };
    size_t in = member->packed_size, room = member->size;
    int code = Z_OK;
    if (inflateInit2(&z, -15) != Z_OK) return false;
    z.next_out = out;
    while (code == Z_OK) {
        uInt in_step = in > (1u << 30) ? 1u << 30 : (uInt)in, out_step = room > (1u << 30) ? 1u << 30 : (uInt)room;
        z.avail_in = in_step;
        z.avail_out = out_step;
        code = inflate(&z, Z_NO_FLUSH);
        in -= in_step - z.avail_in;
        room -= out_step - z.avail_out;
        if (code == Z_OK && z.avail_in == in_step && z.avail_out == out_step) break;
    }
    inflateEnd(&z);
    return code == Z_STREAM_END && room == 0;
}

tare_status tare_zip_read(const uint8_t **data, struct tare_arena *arena, const struct tare_zip_member *member) {
    bool fits = true;
    *data = member->packed;
    if (member->method == DEFLATED) {
        uint8_t *out = tare_arena_alloc(arena, member->size + 1);
        if (!out) return TARE_NO_MEMORY;
        fits = inflate_member(out, member);
        *data = out;
    }
    if (fits && checksum(*data, member->size) == member->crc) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "'%s' is damaged", member->name);
}
