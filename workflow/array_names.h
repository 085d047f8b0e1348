/* Checks the names of --input NAME=FILE.npy of a command that runs a model over records: an array that nothing reads is
 * a misspelled input or label, which would silently have no effect. */
#ifndef TARE_WORKFLOW_ARRAY_NAMES_H
#define TARE_WORKFLOW_ARRAY_NAMES_H

#include "datasets/spec.h"
#include "graph/model.h"

/* What reads the values of records; everything is borrowed. */
struct tare_array_readers {
    const struct tare_signature *signature;
    const struct tare_dataset_spec *spec; /* NULL: records are samples */
    const char *label;                    /* key of the labels */
    const char *target;                   /* key of expected values; NULL: none */
    const char *sequence;                 /* key whose value begins sequences; NULL: none */
};

/* TARE_USAGE with the names that are read, if one of the arrays in `paths` (datasets/data_file.h) has another name.
 * Other data files are not checked: they may have more features than a command needs. */
tare_status tare_workflow_check_array_names(const char *const *paths, size_t n_paths,
                                            const struct tare_array_readers *readers) TARE_WARN_UNUSED;

#endif
