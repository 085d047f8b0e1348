/* ZIP files as NumPy writes them: members stored or deflated, sizes of 64 bits; no encryption, no multi-part archives.
 */
#ifndef TARE_DATASETS_ZIP_H
#define TARE_DATASETS_ZIP_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct tare_zip_member {
    const char *name;
    const uint8_t *packed;
    size_t packed_size, size;
    uint32_t crc;
    int method; /* 0: stored, 8: deflated */
};

struct tare_zip {
    struct tare_zip_member *members;
    size_t count;
};

/* Reads the directory of a file in memory, which members borrow; the list is in the arena. TARE_CORRUPT for bytes that
 * are not a ZIP file or are truncated, TARE_UNSUPPORTED for other compression methods. */
tare_status tare_zip_open(struct tare_zip *out, struct tare_arena *arena, const uint8_t *bytes,
                          size_t size) TARE_WARN_UNUSED;
/* Returns a member's bytes after checking them: in the file if stored, otherwise in the arena. TARE_CORRUPT if damaged.
 */
tare_status tare_zip_read(const uint8_t **data, struct tare_arena *arena,
                          const struct tare_zip_member *member) TARE_WARN_UNUSED;

#endif
