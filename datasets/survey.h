/* What a data set holds: keys with their types, shapes and values, records that are equal or bad. */
#ifndef TARE_DATASETS_SURVEY_H
#define TARE_DATASETS_SURVEY_H

#include "datasets/content_hash.h"
#include "datasets/spec.h"

#include <signal.h>

enum { TARE_SURVEY_LISTED = 20 }; /* duplicates and bad records that are kept one by one; all are counted */

struct tare_survey_place {
    int32_t file;
    int64_t number;
};

struct tare_survey_key {
    const char *name;
    int dtype;               /* of the first record; see mixed */
    bool mixed;              /* records have values of different dtypes */
    struct tare_shape shape; /* of all records: -1 where they differ, unknown rank when their ranks do */
    int64_t records;         /* that have it */
    int64_t elements;        /* in all of them */
    int64_t largest;         /* the most in one */
    /* Numbers: of all elements that are neither NaN nor infinite; least > most when there is none. */
    double least, most;
    int64_t nan, infinite, zeros;
    struct tare_survey_place first_nan; /* of the first NaN or infinity */
    /* Strings: lengths in bytes, and how many begin like a picture file. */
    size_t shortest, longest;
    int64_t pictures;
    bool constant; /* two records at least, and the same value in each */
    struct tare_content_hash first;
};

struct tare_survey_file {
    const char *path, *format;
    int64_t records, bytes, bad; /* bytes: of the file, -1 when not known; records: good ones */
};

struct tare_survey_duplicate {
    struct tare_survey_place at, first;
};

struct tare_survey {
    struct tare_arena arena;
    struct tare_survey_file *files;
    size_t n_files;
    struct tare_survey_key *keys; /* in the order in which they were met */
    size_t n_keys;
    const char *kind; /* of the records: "tf.Example" …, "samples" through a spec; "mixed" */
    int64_t records, bad;
    int64_t duplicates; /* records that equal an earlier one in every key and value */
    struct tare_survey_duplicate listed[TARE_SURVEY_LISTED];
    const char *bad_texts[TARE_SURVEY_LISTED];
};

struct tare_survey_options {
    const struct tare_dataset_spec *spec; /* NULL: records are looked at as they are */
    const char *labels;
    int64_t limit; /* records; 0: all */
    void (*progress)(void *arg, int64_t records);
    void *progress_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* Reads the files from first to last; bad records are counted and passed over. *out is the caller's to free, also after
 * a failure. Memory grows by about 100 bytes a record. */
tare_status tare_survey_files(struct tare_survey *out, const char *const *paths, size_t n_paths,
                              const struct tare_survey_options *options) TARE_WARN_UNUSED;
void tare_survey_free(struct tare_survey *survey);

#endif
