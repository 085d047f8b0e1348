/* The samples of one or several files, in order, with their origin. */
#ifndef TARE_DATASETS_SOURCE_H
#define TARE_DATASETS_SOURCE_H

#include "base/record.h"
#include "datasets/sample.h"
#include "datasets/spec.h"

struct tare_source;

/* Decodes a record. On success the caller owns the sample; on failure it may be partially filled. */
typedef tare_status (*tare_sample_decoder)(void *arg, struct tare_sample *out, const void *data, size_t size);

struct tare_source_options {
    int64_t rows;  /* records that make one sample, one after the other: their values joined on axis 0, with the number,
                      file and offset of the first one; 0, 1: each record is a sample. What follows counts such samples
                      as records. TARE_SHAPE if the last sample has fewer */
    int64_t limit; /* maximum number of samples, including records that `wanted` refuses but not bad ones; 0: all */
    int64_t shard, shards; /* returns record i of the data set if i mod shards == shard; shards 0: all */
    bool other_shards;     /* returns the records that are not in the shard instead */
    /* Chooses records of the data set before any filter; called on the thread that reads. NULL: all. */
    bool (*takes)(void *arg, const char *file, const struct tare_record *where);
    void *takes_arg;
    int64_t stop;    /* reads only records with a lower index; 0: all */
    int64_t max_bad; /* bad records to skip (and note) before failing; a truncated file counts once. A bad record
                        counts only in its own shard */
    void (*on_bad)(void *arg, const char *text); /* called for each skipped record; NULL: not called */
    void *on_bad_arg;
    const char *sequence; /* record key by which sequences are numbered (datasets/sequence.h); NULL: they are not */
    size_t prefetch;      /* samples that a thread decodes in advance; 0: none */
    const struct tare_dataset_spec *spec; /* maps records to samples; borrowed. NULL: records are samples */
    const char *labels;                   /* of images, see datasets/image_folder.h; NULL: by their folders */
    tare_sample_decoder decode;           /* used instead of spec for TFRecords; called on the prefetch thread */
    void *decode_arg;
};

/* Why a record was skipped. */
enum tare_bad_reason {
    TARE_BAD_CORRUPT,     /* checksum mismatch or invalid compressed data */
    TARE_BAD_TRUNCATED,   /* the file ends in the middle of the record */
    TARE_BAD_UNDECODABLE, /* intact bytes with unexpected contents */
    TARE_BAD_REFUSED,     /* decoded, but refused by the caller: tare_source_refuse */
};

struct tare_bad_record {
    struct tare_record where;
    enum tare_bad_reason reason;
    tare_status status;
    const char *text; /* the whole error: file, record, byte, reason */
};

/* Opens files by path or pattern, of any format (datasets/data_file.h); "-" is standard input. TARE_NOT_FOUND
 * for a path that does not exist. NULL options: all records, no bad ones. */
tare_status tare_source_new(struct tare_source **out, const char *const *paths, size_t n_paths,
                            const struct tare_source_options *options) TARE_WARN_UNUSED;
/* Stops prefetching and frees the source. No-op if NULL. */
void tare_source_free(struct tare_source *source);
/* Returns the next sample, which the caller resets; after the last one, sets only *end. TARE_INVALID_ARGUMENT if the
 * data has no records. `wanted` (NULL: all) filters records; it is called on the calling thread and, without
 * prefetch, before decoding. Errors name file, record and byte. After a failure the source can only be freed. */
tare_status tare_source_next(struct tare_sample *out, struct tare_record *where, bool *end, struct tare_source *source,
                             bool (*wanted)(void *arg, const struct tare_record *where), void *arg) TARE_WARN_UNUSED;
const char *const *tare_source_files(const struct tare_source *source, size_t *count);
/* Rejects a sample returned by `next`. The caller has set the error text (without file and record) and passes `status`.
 * The sample counts as a bad record: returns TARE_OK if it may be skipped (the text is recorded and cleared), otherwise
 * `status`, with the text prefixed by file, record and byte. A rejected sample counts towards the limit. Must be called
 * on the thread that calls `next`. */
tare_status tare_source_refuse(struct tare_source *source, const struct tare_record *where,
                               tare_status status) TARE_WARN_UNUSED;
/* Bad records that were passed over so far, in the order in which they were met; valid until the next call on the
 * source. */
const struct tare_bad_record *tare_source_bad_records(const struct tare_source *source, size_t *count);
/* Their number. */
int64_t tare_source_bad(const struct tare_source *source);
/* "corrupt", "truncated", "undecodable", "refused". */
const char *tare_bad_reason_name(enum tare_bad_reason reason);

#endif
