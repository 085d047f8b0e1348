/* Records that several models run over: read and decoded once, if they fit into a bound, and kept in temporary files
 * whose pages the process gives back; otherwise each run reads the files again. */
#ifndef TARE_EVAL_RECORD_STORE_H
#define TARE_EVAL_RECORD_STORE_H

#include "base/arena.h"
#include "datasets/source.h"
#include "eval/reference_store.h"
#include "eval/runner.h"

enum { TARE_RECORD_STORE_BYTES = 256 << 20 }; /* default bound */

/* Initialise with zeros. */
struct tare_record_store {
    bool complete;           /* contains all records of the data; false: it is empty */
    struct tare_arena arena; /* keys */
    struct tare_reference_store values;
    struct tare_stored_record {
        const char **keys; /* of this record and of those beside it that have the same */
        size_t n_values;
        struct tare_record where;
    } * records; /* in a temporary file (eval/series.h) */
    size_t count, capacity;
    char **files; /* for error messages */
    size_t n_files;
};

/* Reads the records of a run's options, whose `records` is ignored and whose `rows` is known. The store stays empty if
 * they need more than `most` bytes, if a record cannot be read, and after an interruption: the run that reads the files
 * reports the error. */
void tare_record_store_fill(struct tare_record_store *store, const struct tare_runner_options *options, size_t most);
void tare_record_store_free(struct tare_record_store *store);

/* The records of one run, from options->records or from the files. */
struct tare_record_reader {
    const struct tare_record_store *store; /* NULL: from `source` */
    size_t next, end;                      /* in the store */
    struct tare_source *source;
    const char *const *files; /* names by provenance */
};

/* Release with tare_record_reader_close, also after a failure. */
tare_status tare_record_reader_open(struct tare_record_reader *out,
                                    const struct tare_runner_options *options) TARE_WARN_UNUSED;
/* The next record, which the caller resets; after the last one, sets only *end. Stored samples are views, which must
 * not outlive the store. One thread at a time. */
tare_status tare_record_reader_next(struct tare_sample *out, struct tare_record *where, bool *end,
                                    struct tare_record_reader *reader) TARE_WARN_UNUSED;
void tare_record_reader_close(struct tare_record_reader *reader);

#endif
