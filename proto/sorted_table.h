/* Sorted string tables (the LevelDB layout): the .index file of a checkpoint. */
#ifndef TARE_PROTO_SORTED_TABLE_H
#define TARE_PROTO_SORTED_TABLE_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

struct tare_table_entry {
    const char *key; /* NUL-terminated behind its size; may hold NUL bytes */
    size_t key_size;
    const uint8_t *value;
    size_t value_size;
};

/* Reads every entry of a table, checking block checksums; entries and keys are arena memory, values too where blocks
 * were compressed, else they point into `data`. TARE_CORRUPT with the byte offset and LevelDB's texts; also when keys
 * do not ascend. The keys take a bounded multiple of the file's size. */
tare_status tare_table_read(struct tare_table_entry **entries, size_t *count, struct tare_arena *arena,
                            const uint8_t *data, size_t size);
/* The bytes of a table with entries in ascending order of key: blocks of 256 KiB, no compression; *data is the caller's
 * to tare_free. */
tare_status tare_table_write(uint8_t **data, size_t *size, const struct tare_table_entry *entries, size_t count);

#endif
