/* Checks of evaluation records before anything runs: a label key that no record has, and records that were also used
 * for calibration (leakage). */
#ifndef TARE_WORKFLOW_EVALUATION_DATA_H
#define TARE_WORKFLOW_EVALUATION_DATA_H

#include "base/log.h"
#include "base/record.h"
#include "calib/calibration.h"
#include "datasets/spec.h"
#include "graph/model.h"
#include "interpreter/feedback.h"

#include <signal.h>

/* Everything is borrowed. */
struct tare_evaluation_data {
    const struct tare_graph_model *model;
    const char *signature;    /* NULL: serving_default, or the only one */
    const char *const *paths; /* evaluation records */
    size_t n_paths;
    int64_t limit;                                                               /* 0: all */
    bool (*takes)(void *arg, const char *file, const struct tare_record *where); /* chooses records; NULL: all */
    void *takes_arg;
    const struct tare_dataset_spec *spec;
    const struct tare_feedback *feedback;       /* whose inputs records may lack; NULL: none */
    const char *label;                          /* key of the labels */
    const struct tare_calibration *calibration; /* NULL: none, leakage is not looked for */
    const volatile sig_atomic_t *interrupted;   /* NULL: never */
};

struct tare_leakage {
    int64_t records; /* evaluation records that could be compared */
    int64_t shared;  /* of these, records whose inputs equal those of a calibration sample in every byte */
};

/* TARE_NOT_FOUND if `label` is neither the default "label" nor a key of any record, also where it is the name of an
 * output; the text lists the integer keys of the records. Reads up to the first record with the key. Standard input and
 * pipes are not checked, because they can be read only once. */
tare_status tare_workflow_check_label(const struct tare_evaluation_data *data) TARE_WARN_UNUSED;
/* Compares the evaluation records with all samples of the signature that the calibration has seen, by digests of their
 * inputs. Both counts are 0 if the calibration has no digests or the records cannot be read twice. */
tare_status tare_workflow_find_leakage(struct tare_leakage *out,
                                       const struct tare_evaluation_data *data) TARE_WARN_UNUSED;
/* Logs a warning for each output of the float model, the first row, that contains NaN. */
struct tare_comparison;
void tare_workflow_warn_of_nan(const struct tare_log *log, const struct tare_comparison *comparison);
struct tare_metrics;
/* Logs a warning if some, not all, labels are no classes of the first output, and are therefore not counted. */
void tare_workflow_warn_of_labels(const struct tare_log *log, const struct tare_metrics *metrics);
/* Logs a warning if records are shared. */
void tare_workflow_warn_of_leakage(const struct tare_log *log, const struct tare_leakage *leakage);

#endif
