/* Writing sorted string tables in the layout of TensorFlow's BundleWriter. Failed buffers are checked once, at the end.
 */
#include "base/strbuf.h"
#include "proto/crc32c.h"
#include "proto/sorted_table.h"

#include <string.h>

enum { BLOCK_SIZE = 256 * 1024, DATA_RESTARTS = 16, INDEX_RESTARTS = 1 };

static const uint64_t MAGIC = 0xdb4775248b80fb57u;

/* The block being written. */
struct block {
    struct tare_strbuf bytes, restarts;
    size_t since_restart, interval, entries;
    const char *last; /* its last key */
    size_t last_size;
};

struct writer {
    struct tare_strbuf out;
    bool failed; /* a buffer that was freed had failed */
    struct block data, index;
};

static void put32(struct tare_strbuf *out, uint32_t value) {
    unsigned char bytes[4] = { (unsigned char)value, (unsigned char)(value >> 8), (unsigned char)(value >> 16),
                               (unsigned char)(value >> 24) };
    tare_strbuf_append(out, bytes, 4);
}

static size_t shared_prefix(const char *a, size_t a_size, const char *b, size_t b_size) {
    size_t n = 0;
    while (n < a_size && n < b_size && a[n] == b[n])
        n++;
    return n;
}

static void add(struct block *block, const char *key, size_t key_size, const void *value, size_t value_size) {
    size_t shared = 0;
    if (block->since_restart == block->interval || block->entries == 0) {
        put32(&block->restarts, (uint32_t)block->bytes.size);
        block->since_restart = 0;
    } else {
        shared = shared_prefix(block->last, block->last_size, key, key_size);
    }
    tare_strbuf_append_varint(&block->bytes, shared);
    tare_strbuf_append_varint(&block->bytes, key_size - shared);
    tare_strbuf_append_varint(&block->bytes, value_size);
    tare_strbuf_append(&block->bytes, key + shared, key_size - shared);
    tare_strbuf_append(&block->bytes, value, value_size);
    block->since_restart++;
    block->entries++;
    block->last = key;
    block->last_size = key_size;
}

/* Writes the block with its trailer, empties it, and stores its handle in `handle`. */
static void flush(struct tare_strbuf *out, struct block *block, struct tare_strbuf *handle) {
    size_t start = out->size;
    uint32_t crc;
    if (block->entries == 0) put32(&block->restarts, 0);
    tare_strbuf_append(out, block->bytes.data, block->bytes.size);
    tare_strbuf_append(out, block->restarts.data, block->restarts.size);
    put32(out, (uint32_t)(block->restarts.size / 4));
    handle->size = 0;
    tare_strbuf_append_varint(handle, start);
    tare_strbuf_append_varint(handle, out->size - start);
    tare_strbuf_putc(out, 0); /* no compression */
    if (out->failed) return;
    crc = tare_crc32c(out->data + start, out->size - start);
    put32(out, tare_crc32c_mask(crc));
    block->bytes.size = block->restarts.size = 0;
    block->entries = block->since_restart = 0;
}

/* The shortest key >= `last` and < `next` (LevelDB's FindShortestSeparator); NULL next: >= `last` (FindShortSuccessor).
 */
static void separator(struct tare_strbuf *out, const char *last, size_t last_size, const char *next, size_t next_size) {
    out->size = 0;
    tare_strbuf_append(out, last, last_size);
    if (out->failed) return;
    if (next) {
        size_t n = shared_prefix(last, last_size, next, next_size);
        if (n < last_size && n < next_size) {
            unsigned char byte = (unsigned char)last[n];
            if (byte < 0xff && byte + 1 < (unsigned char)next[n]) {
                out->data[n] = (char)(byte + 1);
                out->size = n + 1;
            }
        }
        return;
    }
    for (size_t i = 0; i < last_size; i++) {
        if ((unsigned char)last[i] == 0xff) continue;
        out->data[i] = (char)((unsigned char)last[i] + 1);
        out->size = i + 1;
        return;
    }
}

/* A block ends when it is full, and before a very large entry. */
static bool ends_block(const struct block *block, const struct tare_table_entry *next) {
    if (block->bytes.size + block->restarts.size + 4 >= BLOCK_SIZE) return true;
    return next->key_size + next->value_size >= 2 * (size_t)BLOCK_SIZE;
}

/* Frees a buffer; a failure that it had fails the whole table. */
static void release(struct writer *writer, struct tare_strbuf *buffer) {
    writer->failed |= buffer->failed;
    tare_strbuf_free(buffer);
}

static void write_blocks(struct writer *writer, const struct tare_table_entry *entries, size_t count) {
    struct tare_strbuf handle = { 0 };
    for (size_t i = 0; i < count; i++) {
        struct tare_strbuf key = { 0 };
        bool last = i + 1 == count;
        add(&writer->data, entries[i].key, entries[i].key_size, entries[i].value, entries[i].value_size);
        if (!last && !ends_block(&writer->data, &entries[i + 1])) continue;
        flush(&writer->out, &writer->data, &handle);
        separator(&key, entries[i].key, entries[i].key_size, last ? NULL : entries[i + 1].key,
                  last ? 0 : entries[i + 1].key_size);
        add(&writer->index, tare_strbuf_text(&key), key.size, handle.data, handle.size);
        release(writer, &key); /* the index restarts at every entry, so that it does not use the previous key */
    }
    release(writer, &handle);
}

static void write_footer(struct tare_strbuf *out, const struct tare_strbuf *metaindex,
                         const struct tare_strbuf *index) {
    size_t start = out->size;
    tare_strbuf_append(out, metaindex->data, metaindex->size);
    tare_strbuf_append(out, index->data, index->size);
    while (out->size - start < 40 && !out->failed)
        tare_strbuf_putc(out, 0);
    put32(out, (uint32_t)MAGIC);
    put32(out, (uint32_t)(MAGIC >> 32));
}

tare_status tare_table_write(uint8_t **data, size_t *size, const struct tare_table_entry *entries, size_t count) {
    struct writer writer = { .data = { .interval = DATA_RESTARTS }, .index = { .interval = INDEX_RESTARTS } };
    struct tare_strbuf metaindex = { 0 }, index = { 0 };
    struct block empty = { .interval = DATA_RESTARTS };
    write_blocks(&writer, entries, count);
    flush(&writer.out, &empty, &metaindex);
    flush(&writer.out, &writer.index, &index);
    write_footer(&writer.out, &metaindex, &index);
    release(&writer, &writer.data.bytes);
    release(&writer, &writer.data.restarts);
    release(&writer, &writer.index.bytes);
    release(&writer, &writer.index.restarts);
    release(&writer, &empty.bytes);
    release(&writer, &empty.restarts);
    release(&writer, &metaindex);
    release(&writer, &index);
    if (writer.failed || writer.out.failed) {
        tare_strbuf_free(&writer.out);
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    }
    *data = (uint8_t *)writer.out.data;
    *size = writer.out.size;
    return TARE_OK;
}
