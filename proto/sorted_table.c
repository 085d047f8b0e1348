/* Reading sorted string tables. Every length is checked against the remaining bytes before it is used. */
#include "proto/sorted_table.h"
#include "base/alloc.h"
#include "base/varint.h"
#include "proto/crc32c.h"

#include <snappy-c.h>
#include <string.h>

enum {
    FOOTER_SIZE = 48,
    TRAILER_SIZE = 5,
    NO_COMPRESSION = 0,
    SNAPPY = 1,
    /* Keys share prefixes, so that a small file can describe long keys: all keys together take at most this multiple of
     * the file's size, plus this many bytes. */
    KEY_GROWTH = 64,
    FREE_KEY_BYTES = 1 << 20,
};

static const uint64_t MAGIC = 0xdb4775248b80fb57u;

struct reader {
    struct tare_arena *arena;
    const uint8_t *data;
    size_t size;
    struct tare_table_entry *entries;
    size_t count, capacity;
    size_t key_bytes; /* size of all keys, including those of the index block */
};

struct block {
    const uint8_t *data;
    size_t size;     /* size of the entries, without restarts */
    uint64_t offset; /* in the file, for errors */
};

/* ---- blocks ---- */

static tare_status inflate_block(struct block *block, struct reader *reader, const uint8_t *data, size_t size) {
    size_t length;
    uint8_t *memory;
    /* snappy expands two bytes to at most 64: a larger length is refused before allocating memory */
    if (snappy_uncompressed_length((const char *)data, size, &length) != SNAPPY_OK || length > size * 32 + 64)
        return TARE_FAIL(TARE_CORRUPT, "corrupted compressed block contents at byte %llu",
                         (unsigned long long)block->offset);
    memory = tare_arena_alloc(reader->arena, length);
    if (!memory) return TARE_NO_MEMORY;
    if (snappy_uncompress((const char *)data, size, (char *)memory, &length) != SNAPPY_OK)
        return TARE_FAIL(TARE_CORRUPT, "corrupted compressed block contents at byte %llu",
                         (unsigned long long)block->offset);
    block->data = memory;
    block->size = length;
    return TARE_OK;
}

static tare_status drop_restarts(struct block *block) {
    uint32_t restarts;
    if (block->size < 4) return TARE_FAIL(TARE_CORRUPT, "bad block at byte %llu", (unsigned long long)block->offset);
    restarts = tare_load_u32(block->data + block->size - 4);
    if (!restarts || (uint64_t)restarts * 4 + 4 > block->size)
        return TARE_FAIL(TARE_CORRUPT, "bad block contents at byte %llu", (unsigned long long)block->offset);
    block->size -= 4 + (size_t)restarts * 4;
    return TARE_OK;
}

static tare_status read_block(struct block *block, struct reader *reader, uint64_t offset, uint64_t size) {
    const uint8_t *data;
    block->offset = offset;
    if (offset > reader->size || size > reader->size - offset || reader->size - offset - size < TRAILER_SIZE)
        return TARE_FAIL(TARE_CORRUPT, "truncated block read at byte %llu (%llu bytes)", (unsigned long long)offset,
                         (unsigned long long)size);
    data = reader->data + offset;
    if (tare_crc32c_mask(tare_crc32c(data, (size_t)size + 1)) != tare_load_u32(data + size + 1))
        return TARE_FAIL(TARE_CORRUPT, "block checksum mismatch at byte %llu", (unsigned long long)offset);
    if (data[size] == NO_COMPRESSION) {
        block->data = data;
        block->size = (size_t)size;
    } else if (data[size] == SNAPPY) {
        TARE_TRY(inflate_block(block, reader, data, (size_t)size));
    } else {
        return TARE_FAIL(TARE_CORRUPT, "bad block type %d at byte %llu", data[size], (unsigned long long)offset);
    }
    return drop_restarts(block);
}

/* Calls fn for each entry; a key shares a prefix with the previous one. */
static tare_status each_entry(const struct block *block, struct reader *reader,
                              tare_status (*fn)(struct reader *reader, const struct tare_table_entry *entry)) {
    const uint8_t *at = block->data, *end = block->data + block->size;
    const char *previous = "";
    size_t previous_size = 0;
    while (at < end) {
        uint64_t shared, unshared, value_size;
        char *key;
        if (!tare_varint_next(&shared, &at, end) || !tare_varint_next(&unshared, &at, end) ||
            !tare_varint_next(&value_size, &at, end) || shared > previous_size || unshared > (uint64_t)(end - at) ||
            value_size > (uint64_t)(end - at) - unshared)
            return TARE_FAIL(TARE_CORRUPT, "bad entry in the block at byte %llu", (unsigned long long)block->offset);
        reader->key_bytes += (size_t)(shared + unshared) + 1;
        if (reader->key_bytes > reader->size * KEY_GROWTH + FREE_KEY_BYTES)
            return TARE_FAIL(TARE_CORRUPT, "keys too long for the file's size in the block at byte %llu",
                             (unsigned long long)block->offset);
        key = tare_arena_alloc(reader->arena, (size_t)(shared + unshared) + 1);
        if (!key) return TARE_NO_MEMORY;
        memcpy(key, previous, (size_t)shared);
        memcpy(key + shared, at, (size_t)unshared);
        key[shared + unshared] = '\0';
        at += unshared;
        TARE_TRY(fn(reader, &(struct tare_table_entry){ key, (size_t)(shared + unshared), at, (size_t)value_size }));
        at += value_size;
        previous = key;
        previous_size = (size_t)(shared + unshared);
    }
    return TARE_OK;
}

static bool in_order(const struct tare_table_entry *a, const struct tare_table_entry *b) {
    int order = memcmp(a->key, b->key, a->key_size < b->key_size ? a->key_size : b->key_size);
    return order ? order < 0 : a->key_size < b->key_size;
}

static tare_status add_entry(struct reader *reader, const struct tare_table_entry *entry) {
    if (reader->count && !in_order(&reader->entries[reader->count - 1], entry))
        return TARE_FAIL(TARE_CORRUPT, "keys are out of order at key %s", entry->key);
    if (reader->count == reader->capacity) {
        size_t extra = reader->count + 64;
        struct tare_table_entry *grown =
            tare_arena_extend(reader->arena, reader->entries, reader->count, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        reader->entries = grown;
        reader->capacity = reader->count + extra;
    }
    reader->entries[reader->count++] = *entry;
    return TARE_OK;
}

static tare_status read_handle(uint64_t *offset, uint64_t *size, const uint8_t **at, const uint8_t *end) {
    if (tare_varint_next(offset, at, end) && tare_varint_next(size, at, end)) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "bad block handle");
}

static tare_status read_data_block(struct reader *reader, const struct tare_table_entry *entry) {
    const uint8_t *at = entry->value;
    uint64_t offset = 0, size = 0;
    struct block block;
    TARE_TRY(read_handle(&offset, &size, &at, entry->value + entry->value_size));
    TARE_TRY(read_block(&block, reader, offset, size));
    return each_entry(&block, reader, add_entry);
}

tare_status tare_table_read(struct tare_table_entry **entries, size_t *count, struct tare_arena *arena,
                            const uint8_t *data, size_t size) {
    struct reader reader = { .arena = arena, .data = data, .size = size };
    const uint8_t *at;
    uint64_t offset = 0, block_size = 0, magic;
    struct block index;
    if (size < FOOTER_SIZE)
        return TARE_FAIL(TARE_CORRUPT, "file is too short to be an sstable (expected %d, got %zu bytes)", FOOTER_SIZE,
                         size);
    at = data + size - FOOTER_SIZE;
    magic = (uint64_t)tare_load_u32(data + size - 8) | (uint64_t)tare_load_u32(data + size - 4) << 32;
    if (magic != MAGIC) return TARE_FAIL(TARE_CORRUPT, "not an sstable (bad magic number) at byte %zu", size - 8);
    TARE_TRY(read_handle(&offset, &block_size, &at, data + size - 8)); /* metaindex: empty */
    TARE_TRY(read_handle(&offset, &block_size, &at, data + size - 8));
    TARE_TRY(read_block(&index, &reader, offset, block_size));
    TARE_TRY(each_entry(&index, &reader, read_data_block));
    *entries = reader.entries;
    *count = reader.count;
    return TARE_OK;
}
