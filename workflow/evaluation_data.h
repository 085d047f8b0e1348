/* Checks of evaluation records before anything runs: a label key that no record has, and records that were also used
 * for calibration (leakage). */
#ifndef TARE_WORKFLOW_EVALUATION_DATA_H
#define TARE_WORKFLOW_EVALUATION_DATA_H

#include "base/log.h"
#include "datasets/spec.h"
#include "eval/evaluation.h"

struct tare_leakage {
    int64_t records; /* evaluation records that could be compared */
    int64_t shared;  /* of these, records whose inputs equal those of a calibration sample in every byte */
};

/* Makes a spec (NULL: none), which may be written for samples without them, keep the labels and the expected values
 * (NULL: none). */
tare_status tare_workflow_keep_expected(struct tare_dataset_spec *spec, const char *label,
                                        const char *target) TARE_WARN_UNUSED;
/* TARE_NOT_FOUND if `label` is neither the default "label" nor a key of any record, also where it is the name of an
 * output; the text lists the integer keys of the records. Reads up to the first record with the key. Standard input and
 * pipes are not checked, because they can be read only once. */
tare_status tare_workflow_check_label(const struct tare_evaluation *evaluation) TARE_WARN_UNUSED;
/* Compares the evaluation records with all samples of the signature that the calibration has seen, by digests of their
 * inputs. Both counts are 0 if the calibration has no digests or the records cannot be read twice. */
tare_status tare_workflow_find_leakage(struct tare_leakage *out, const struct tare_graph_model *model,
                                       const struct tare_evaluation *evaluation) TARE_WARN_UNUSED;
/* Logs a warning for each output of the float model, the first row, that contains NaN. */
struct tare_comparison;
void tare_workflow_warn_of_nan(const struct tare_log *log, const struct tare_comparison *comparison);
struct tare_metrics;
/* Logs a warning if labels are no classes of the measured output, and are therefore not counted. */
void tare_workflow_warn_of_labels(const struct tare_log *log, const struct tare_metrics *metrics);
/* For records without labels and expected values: logs a warning if the first one has a key that is called like those
 * of labels elsewhere and that no input takes, or if the key "label" is that of an input. */
tare_status tare_workflow_warn_of_unread_label(const struct tare_log *log, const struct tare_graph_model *model,
                                               const struct tare_evaluation *evaluation) TARE_WARN_UNUSED;
/* Logs a warning if records are shared. */
void tare_workflow_warn_of_leakage(const struct tare_log *log, const struct tare_leakage *leakage);

#endif
