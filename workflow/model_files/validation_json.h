/* What a validation found (convert/validation/validate.h) as JSON. */
#ifndef TARE_WORKFLOW_MODEL_FILES_VALIDATION_JSON_H
#define TARE_WORKFLOW_MODEL_FILES_VALIDATION_JSON_H

#include "interpreter/validation/validate.h"

struct tare_strbuf;

/* Appends the violations and notes about the model at `path` (docs/json.md). */
tare_status tare_workflow_validation_json(struct tare_strbuf *out, const char *path,
                                          const struct tare_faults *faults) TARE_WARN_UNUSED;

#endif
