/* Checks of evaluation records before anything runs: a label key that no record has, and records that were also used
 * for calibration (leakage). */
#ifndef TARE_WORKFLOW_EVALUATION_DATA_H
#define TARE_WORKFLOW_EVALUATION_DATA_H

#include "datasets/spec.h"
#include "graph/model.h"

#include <signal.h>

/* Everything is borrowed. */
struct tare_evaluation_data {
    const struct tare_graph_model *model;
    const char *signature;    /* NULL: serving_default, or the only one */
    const char *const *paths; /* evaluation records */
    size_t n_paths;
    int64_t limit; /* 0: all */
    const struct tare_dataset_spec *spec;
    const char *label;                   /* key of the labels */
    const char *const *calibration_data; /* "FILE" or "SIGNATURE=FILE" */
    size_t n_calibration_data;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

struct tare_leakage {
    int64_t records; /* evaluation records */
    int64_t shared;  /* of these, records whose inputs equal those of a calibration sample in every byte */
};

/* TARE_NOT_FOUND if `label` is neither the default "label", nor an output of the signature, nor a key of any record;
 * the text lists the integer keys of the records. Reads up to the first record with the key. Standard input and pipes
 * are not checked, because they can be read only once. */
tare_status tare_workflow_check_label(const struct tare_evaluation_data *data) TARE_WARN_UNUSED;
/* Compares all evaluation records with all calibration samples of the signature by a 128-bit hash of their inputs. Both
 * counts are 0 if something cannot be read twice. 16 bytes of memory per record. */
tare_status tare_workflow_find_leakage(struct tare_leakage *out,
                                       const struct tare_evaluation_data *data) TARE_WARN_UNUSED;

#endif
