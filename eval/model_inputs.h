/* Binds samples and .npy files to the inputs of a signature, in its order. Shared by run, calibrate and compare. */
#ifndef TARE_EVAL_MODEL_INPUTS_H
#define TARE_EVAL_MODEL_INPUTS_H

#include "datasets/source.h"
#include "graph/model.h"
#include "interpreter/feedback.h"

/* Finds the signature `key`; NULL: serving_default, or the only signature. Errors list the signatures. */
tare_status tare_pick_signature(const struct tare_signature **out, const struct tare_graph_model *model,
                                const char *key);
/* Shares the sample's tensors in feed order. Errors name a missing key, or a dtype or shape that does not match
 * (expected and got). Other keys are labels or expected outputs, for the evaluation. The inputs of `feedback` (NULL:
 * none) may be missing. */
tare_status tare_bind_sample(struct tare_tensor *values, const struct tare_signature *signature,
                             const struct tare_sample *sample, const struct tare_feedback *feedback);
/* The same where a key that the signature does not have is an error: that of an input with a default, misspelled. */
tare_status tare_bind_inputs(struct tare_tensor *values, const struct tare_signature *signature,
                             const struct tare_sample *sample, const struct tare_feedback *feedback);
/* The value of a record that has a single one besides "label", whatever its key; NULL: it has none, or several. */
const struct tare_tensor *tare_record_only_value(const struct tare_sample *sample);
/* As tare_bind_sample for a record of a data file: if the signature has one input, it takes the value of a record with
 * a single key besides "label", whatever that key is: a bare .npy file has no other name than its own. */
tare_status tare_bind_record(struct tare_tensor *values, const struct tare_signature *signature,
                             const struct tare_sample *sample, const struct tare_feedback *feedback);

/* The size of the first axis of the inputs, if that is fixed, all inputs in the sample have the same, and each value
 * has another number of such rows, *given; otherwise 1. */
int64_t tare_rows_of_sample(int64_t *given, const struct tare_signature *signature, const struct tare_sample *sample);
/* How many records the model takes at a time: 1, or the size of the first axis of its inputs, where that is fixed and a
 * record is one row of it, as the first record of the files shows. 1 for standard input and pipes, which can be read
 * only once. */
tare_status tare_rows_at_a_time(int64_t *rows, const struct tare_signature *signature, const char *const *paths,
                                size_t n_paths, const struct tare_dataset_spec *spec) TARE_WARN_UNUSED;

#endif
