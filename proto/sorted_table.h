/* Sorted string tables (the LevelDB layout): the .index file of a checkpoint. */
#ifndef TARE_PROTO_SORTED_TABLE_H
#define TARE_PROTO_SORTED_TABLE_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

struct tare_table_entry {
    const char *key; /* may contain NUL bytes; followed by a NUL */
    size_t key_size;
    const uint8_t *value;
    size_t value_size;
};

/* Reads all entries of a table and verifies block checksums. Entries and keys are in the arena, values in the arena if
 * compressed, otherwise they point into `data`. TARE_CORRUPT with the byte offset and LevelDB's texts, also for keys
 * that are not in ascending order. The memory for keys is a bounded multiple of the file's size. */
tare_status tare_table_read(struct tare_table_entry **entries, size_t *count, struct tare_arena *arena,
                            const uint8_t *data, size_t size);
/* Serializes entries, which must be in ascending order of keys: blocks of 256 KiB, no compression. Release *data with
 * tare_free. TARE_NO_MEMORY. */
tare_status tare_table_write(uint8_t **data, size_t *size, const struct tare_table_entry *entries, size_t count);

#endif
