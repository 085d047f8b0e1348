/* The samples of one or several files, in order, with where each came from. */
#ifndef TARE_DATASETS_SOURCE_H
#define TARE_DATASETS_SOURCE_H

#include "datasets/sample.h"

struct tare_source;

struct tare_source_options {
    int64_t limit;             /* samples to give; 0: all */
    int64_t shard, shards;     /* gives record i of the whole when i mod shards == shard; shards 0: all */
    int64_t max_bad;           /* bad records to pass over (each is noted) before failing */
    void (*on_bad)(void *arg, const char *text); /* told of each record passed over; NULL: nobody */
    void *on_bad_arg;
};

/* Where a sample came from. */
struct tare_provenance {
    int32_t file;   /* index into tare_source_files */
    int64_t number; /* of the record in its file, from 0 */
    int64_t index;  /* of the record in the whole data set, from 0 */
    int64_t offset; /* of the record in its file's uncompressed stream */
};

/* Opens files by path or pattern; "-" is standard input. NULL options: everything, no bad record. */
tare_status tare_source_new(struct tare_source **out, const char *const *paths, size_t n_paths,
                            const struct tare_source_options *options) TARE_WARN_UNUSED;
void tare_source_free(struct tare_source *source);
/* The next sample, the caller's to reset; *end is set, and nothing else, behind the last. `wanted` (NULL: all) is asked
 * before a record is decoded. Errors name file, record and byte. */
tare_status tare_source_next(struct tare_sample *out, struct tare_provenance *where, bool *end,
                             struct tare_source *source,
                             bool (*wanted)(void *arg, const struct tare_provenance *where), void *arg) TARE_WARN_UNUSED;
const char *const *tare_source_files(const struct tare_source *source, size_t *count);

#endif
