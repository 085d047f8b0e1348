/* The samples of one or several files, in order, with where each came from. */
#ifndef TARE_DATASETS_SOURCE_H
#define TARE_DATASETS_SOURCE_H

#include "datasets/sample.h"
#include "datasets/spec.h"

struct tare_source;

/* What a record's bytes mean. On success the sample is the caller's; on failure the decoder may leave a part in it. */
typedef tare_status (*tare_sample_decoder)(void *arg, struct tare_sample *out, const void *data, size_t size);

struct tare_source_options {
    int64_t limit;         /* samples to give (records that `expected` refuses count, bad ones do not); 0: all */
    int64_t shard, shards; /* gives record i of the whole when i mod shards == shard; shards 0: all */
    int64_t stop;          /* gives records with an index below, and looks at no other; 0: all */
    int64_t max_bad;       /* bad records to pass over (each is noted) before failing; a file that is cut counts once.
                              Of several shards only that counts a bad record to which it belongs */
    void (*on_bad)(void *arg, const char *text); /* told of each record passed over; NULL: nobody */
    void *on_bad_arg;
    size_t prefetch;                      /* samples that a thread decodes ahead; 0: none */
    const struct tare_dataset_spec *spec; /* what records become; borrowed. NULL: records are samples */
    const char *labels;                   /* of pictures, see datasets/picture_folder.h; NULL: by their folders */
    tare_sample_decoder decode;           /* instead of all that, for TFRecords. With prefetch it runs on that thread */
    void *decode_arg;
};

/* Where a sample came from. */
struct tare_provenance {
    int32_t file;   /* index into tare_source_files */
    int64_t number; /* of the record in its file, from 0 */
    int64_t index;  /* of the record in the whole data set, from 0; bad records count */
    int64_t offset; /* of the record in its file's uncompressed stream */
};

/* Why a record was passed over. */
enum tare_bad_reason {
    TARE_BAD_CORRUPT,     /* a checksum or compressed data does not fit: bytes changed */
    TARE_BAD_TRUNCATED,   /* the file ends in the middle of the record */
    TARE_BAD_UNDECODABLE, /* whole, but not what it should hold */
    TARE_BAD_REFUSED,     /* decoded, but the caller had no use for it: tare_source_refuse */
};

struct tare_bad_record {
    struct tare_provenance where;
    enum tare_bad_reason reason;
    tare_status status;
    const char *text; /* the whole error: file, record, byte, reason */
};

/* Opens files by path or pattern, of any format (datasets/data_file.h); "-" is standard input. A path that does not
 * exist is told here. NULL options: everything, no bad record. */
tare_status tare_source_new(struct tare_source **out, const char *const *paths, size_t n_paths,
                            const struct tare_source_options *options) TARE_WARN_UNUSED;
/* Stops reading ahead. NULL is fine. */
void tare_source_free(struct tare_source *source);
/* The next sample, the caller's to reset; *end is set, and nothing else, behind the last. `expected` (NULL: all) is
 * asked on the calling thread; without prefetch before the record is decoded. Errors name file, record and byte. After
 * a failure the source can only be freed. */
tare_status tare_source_next(struct tare_sample *out, struct tare_provenance *where, bool *end,
                             struct tare_source *source,
                             bool (*expected)(void *arg, const struct tare_provenance *where),
                             void *arg) TARE_WARN_UNUSED;
const char *const *tare_source_files(const struct tare_source *source, size_t *count);
/* A sample that `next` gave is of no use to the caller, who has set the error text (without file and record) and
 * `status`. It counts as a bad record: TARE_OK when it may be passed over (the text is noted and cleared), else the
 * status, the text with file, record and byte in front. A refused sample counts towards the limit. To be called on the
 * thread that calls `next`. */
tare_status tare_source_refuse(struct tare_source *source, const struct tare_provenance *where,
                               tare_status status) TARE_WARN_UNUSED;
/* Bad records that were passed over so far, in the order in which they were met; valid until the next call on the
 * source. */
const struct tare_bad_record *tare_source_bad_records(const struct tare_source *source, size_t *count);
/* Their number. */
int64_t tare_source_bad(const struct tare_source *source);
/* "corrupt", "truncated", "undecodable", "refused". */
const char *tare_bad_reason_name(enum tare_bad_reason reason);

#endif
