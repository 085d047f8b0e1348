/* The rules of a SavedModel that loads: those of its graphs (interpreter/validation/validate.h), and those of the file
 * around them: schema, saver, object graph, checkpoint, assets. docs/validation.md lists them. */
#ifndef TARE_CONVERT_VALIDATE_H
#define TARE_CONVERT_VALIDATE_H

#include "convert/saved_model.h"
#include "interpreter/validation/validate.h"

/* Adds the violations of a SavedModel to a zeroed (or earlier) list: of the MetaGraph that options->tags select, else
 * of every one. Every tensor of the checkpoint is read. If a graph cannot be imported, its errors are listed; the rules
 * of the file are still checked. Violations are not a failure; a failure means that the model cannot be opened, or out
 * of memory. */
tare_status tare_saved_model_validate(struct tare_faults *faults, const char *path,
                                      const struct tare_saved_model_options *options) TARE_WARN_UNUSED;

/* The rules for a folder that was just written from a model loaded from `source_path` (NULL: built from nothing),
 * without reading the tensors again and without the ops and dtypes that a TPU lacks: a conversion checks
 * them itself, and may have been asked to allow them. TARE_INTERNAL with the first violation that the source does not
 * have. Takes about as long as opening the model for inspection. */
tare_status tare_saved_model_check_written(const char *path, const char *source_path,
                                           const struct tare_saved_model_options *options) TARE_WARN_UNUSED;

#endif
