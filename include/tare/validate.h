/* Whether a model loads in TensorFlow. */
#ifndef TARE_VALIDATE_H
#define TARE_VALIDATE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks a SavedModel directory against the rules of TensorFlow's loader (docs/validation.md), as `tare validate` does:
 * the MetaGraph that has exactly the tags (as for tare_model_open_tagged), with NULL every one. Every tensor of the
 * checkpoint is read. *report is the output of `tare validate --json` (docs/json.md; release: tare_text_free), whose
 * "valid" and "faults" tell the violations: they are no failure. *valid, unless `valid` is NULL, is 1 without
 * violations, otherwise 0. */
TARE_API TARE_CHECKED tare_status tare_validate(char **report, int *valid, tare_context *context, const char *directory,
                                                const char *tags);

#ifdef __cplusplus
}
#endif

#endif
