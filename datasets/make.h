/* Writing TFRecord files of RepresentativeDataSample records, and splitting TFRecord files. */
#ifndef TARE_DATASETS_MAKE_H
#define TARE_DATASETS_MAKE_H

#include "datasets/spec.h"

#include <signal.h>
#include <stdbool.h>

/* Options of both. */
struct tare_make_options {
    int64_t limit;   /* maximum number of records; 0: all */
    int64_t max_bad; /* bad records to skip before failing */
    void (*on_bad)(void *arg, const char *text);
    void *on_bad_arg;
    void (*progress)(void *arg, int64_t records);
    void *progress_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

struct tare_make_outcome {
    int64_t records, bad; /* written; skipped */
    bool labelled;        /* a record has the key "label" */
};

/* Writes the samples of files of any format (datasets/data_file.h), or of one NPY file per name, to `out`, atomically;
 * compressed if the name ends in ".gz". `spec` and `labels` may be NULL. */
tare_status tare_dataset_make(struct tare_make_outcome *outcome, const char *out, const char *const *paths,
                              size_t n_paths, const struct tare_dataset_spec *spec, const char *labels,
                              const struct tare_make_options *options) TARE_WARN_UNUSED;
tare_status tare_dataset_make_arrays(struct tare_make_outcome *outcome, const char *out, const char *const *names,
                                     const char *const *paths, size_t n_paths, const struct tare_dataset_spec *spec,
                                     const struct tare_make_options *options) TARE_WARN_UNUSED;

struct tare_split_options {
    struct tare_make_options common;
    int64_t parts;                  /* exactly one of these three is set */
    const char *counts, *fractions; /* "100,50", "0.8,0.2": see datasets/partition.h */
    const char *names;              /* "train,test": names of the parts, in place of their numbers */
    bool shuffle;
    uint64_t seed;
    bool compress;
    const struct tare_file_list *origin; /* files that the ones to split were made from: no part may replace one. NULL:
                                            none */
};

/* One output file of a split. */
struct tare_split_part {
    const char *path;
    int64_t records;
};

struct tare_split_outcome {
    struct tare_arena arena;
    struct tare_split_part *parts;
    size_t count;
    int64_t bad;
};

/* Copies the records of TFRecord files, byte for byte and in their order, to PREFIX-00000-of-00003.tfrecord … or
 * PREFIX-NAME.tfrecord, with ".gz" if compressed; all files or none. The files are read twice, so standard input is
 * refused. Free *outcome also after a failure. */
tare_status tare_dataset_split(struct tare_split_outcome *outcome, const char *prefix, const char *const *paths,
                               size_t n_paths, const struct tare_split_options *options) TARE_WARN_UNUSED;
void tare_split_outcome_free(struct tare_split_outcome *outcome);

#endif
