/* Models: opened from a SavedModel directory, or returned by quantization or conversion.
 *
 * A model is immutable: quantizing and converting return new models. */
#ifndef TARE_MODEL_H
#define TARE_MODEL_H

#include "array.h"
#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-safe: it does not change. */
typedef struct tare_model_handle tare_model;

enum tare_write_flags {
    TARE_WRITE_OVERWRITE = 1 /* replace an existing directory; without it, one is TARE_ERROR_INVALID_ARGUMENT */
};

/* Opens a SavedModel directory: its only MetaGraph, or the one whose only tag is "serve". The checkpoint is mapped into
 * memory, not read. Release it with tare_model_close. */
TARE_API TARE_CHECKED tare_status tare_model_open(tare_model **out, tare_context *context, const char *directory);
/* The same for the MetaGraph that has exactly these tags, separated by commas: "serve,tpu"; "" for the one without
 * tags; NULL as tare_model_open. TARE_ERROR_NOT_FOUND lists the tags of the MetaGraphs. */
TARE_API TARE_CHECKED tare_status tare_model_open_tagged(tare_model **out, tare_context *context, const char *directory,
                                                         const char *tags);
/* Frees the model. Close its runners and calibrators first. No-op if NULL. */
TARE_API void tare_model_close(tare_model *model);

/* Signatures, in file order. Wherever a function takes a signature, NULL means serving_default, or the only one. */
TARE_API size_t tare_model_signature_count(const tare_model *model);
/* The name of signature i, valid as long as the model; NULL if i is out of range. */
TARE_API const char *tare_model_signature_name(const tare_model *model, size_t i);
/* Number of inputs and outputs of a signature; 0 if there is no such signature. A SparseTensor counts as three
 * (NAME.indices, NAME.values, NAME.dense_shape), a RaggedTensor as two (NAME.values, NAME.row_splits) or, with more
 * ragged dimensions, NAME.flat_values, NAME.row_splits_0 ... */
TARE_API size_t tare_model_input_count(const tare_model *model, const char *signature);
TARE_API size_t tare_model_output_count(const tare_model *model, const char *signature);
/* Describes input or output i: name (valid as long as the model), dtype, rank and dims as far as they are known, no
 * data. TARE_ERROR_NOT_FOUND if there is no such signature or i is out of range. */
TARE_API TARE_CHECKED tare_status tare_model_input(tare_array *out, const tare_model *model, const char *signature,
                                                   size_t i);
TARE_API TARE_CHECKED tare_status tare_model_output(tare_array *out, const tare_model *model, const char *signature,
                                                    size_t i);
/* Returns the output of `tare inspect --json` (docs/json.md): signatures, aliases, functions, variables, ops. Release
 * *json with tare_text_free. */
TARE_API TARE_CHECKED tare_status tare_model_describe(char **json, const tare_model *model);
/* Bytes of all constants and variables; -1, with the error text, after a cancellation or without memory. */
TARE_API int64_t tare_model_weight_size(const tare_model *model);

/* Writes the model as a SavedModel directory, pruned to what its signatures and aliases use. `flags`: bits of enum
 * tare_write_flags. The directory is renamed into place when it is complete; on failure no partial output
 * remains. A model that was opened without a checkpoint is written without one. TARE_ERROR_IO if the folder assets or
 * assets.extra was removed since the model was opened. */
TARE_API TARE_CHECKED tare_status tare_model_write(const tare_model *model, const char *directory, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
