/* Statistics of a data set: keys with their dtypes, shapes and value ranges, duplicate and bad records. */
#ifndef TARE_DATASETS_SURVEY_H
#define TARE_DATASETS_SURVEY_H

#include "datasets/content_hash.h"
#include "datasets/spec.h"

#include <signal.h>

enum {
    TARE_SURVEY_LISTED = 20,    /* duplicates and bad records that are listed; all are counted */
    TARE_SURVEY_TEXTS = 8,      /* distinct texts of a key that are listed */
    TARE_SURVEY_TEXT_SIZE = 64, /* bytes, with a NUL: longer strings are not listed */
};

struct tare_survey_place {
    int32_t file;
    int64_t number;
};

struct tare_survey_key {
    const char *name;
    int dtype;               /* in the first record that shows it: empty lists of a tf.Example do not; see mixed */
    bool mixed;              /* records have values of different dtypes */
    bool has_type;           /* a record shows the dtype */
    struct tare_shape shape; /* of all records: dims that differ are -1; unknown rank if the ranks differ */
    int64_t records;         /* number of records with this key */
    int64_t elements;        /* in all records */
    int64_t largest;         /* maximum in one record */
    /* Numbers: range of all finite elements; least > most if there are none. */
    double least, most;
    int64_t nan, infinite, zeros;
    struct tare_survey_place first_nan; /* of the first NaN or infinity */
    /* Strings: lengths in bytes, and how many are images by their first bytes. */
    size_t shortest, longest;
    int64_t images, rotated;              /* rotated: files with an EXIF orientation other than 1 */
    const char *texts[TARE_SURVEY_TEXTS]; /* the first distinct strings that are short and printable */
    size_t n_texts;
    bool has_more_texts; /* other strings that are not listed */
    bool constant;       /* at least two records, with equal values */
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
    struct tare_survey_key *keys; /* in order of first occurrence */
    size_t n_keys;
    const char *kind; /* of the records: "tf.Example" …, "samples" through a spec; "mixed" */
    int64_t records, bad;
    int64_t duplicates; /* records equal to an earlier one in all keys and values */
    struct tare_survey_duplicate listed[TARE_SURVEY_LISTED];
    const char *bad_texts[TARE_SURVEY_LISTED];
};

struct tare_survey_options {
    const struct tare_dataset_spec *spec; /* NULL: records are not converted */
    const char *labels;
    int64_t limit; /* records; 0: all */
    void (*progress)(void *arg, int64_t records);
    void *progress_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* Reads all files; bad records are counted and skipped. Free *out also after a failure. Uses about 100 bytes of memory
 * per record. */
tare_status tare_survey_files(struct tare_survey *out, const char *const *paths, size_t n_paths,
                              const struct tare_survey_options *options) TARE_WARN_UNUSED;
void tare_survey_free(struct tare_survey *survey);

#endif
