/* A model: what a SavedModel directory holds, or what a quantization or conversion made of one.
 *
 * A model is never changed once it is there: quantizing and converting give a new one. */
#ifndef TARE_MODEL_H
#define TARE_MODEL_H

#include "array.h"
#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_model_handle tare_model;

enum tare_write_flags {
    TARE_OVERWRITE = 1 /* replace a directory that is there; without it that is TARE_INVALID_ARGUMENT */
};

/* Opens a SavedModel directory: its only MetaGraph, or the one tagged "serve" alone. The checkpoint is mapped, not
 * read. Close it with tare_model_close. */
TARE_API tare_status tare_model_open(tare_model **out, tare_context *context, const char *directory);
/* Runners and calibrators of the model must be closed before. NULL is fine. */
TARE_API void tare_model_close(tare_model *model);

/* Signatures, in the order of the file. A `signature` argument NULL stands for serving_default, or the only one. */
TARE_API size_t tare_model_signature_count(const tare_model *model);
/* The name of signature i; NULL when there are not so many. Lives as long as the model. */
TARE_API const char *tare_model_signature_name(const tare_model *model, size_t i);
/* Inputs and outputs of a signature; 0 when there is no such signature. A sparse input counts as three: NAME.indices,
 * NAME.values, NAME.dense_shape. */
TARE_API size_t tare_model_input_count(const tare_model *model, const char *signature);
TARE_API size_t tare_model_output_count(const tare_model *model, const char *signature);
/* Describes input or output i: name (lives as long as the model), dtype, rank and dims as far as they are known, no
 * data. TARE_NOT_FOUND when there is no such signature or not so many. */
TARE_API tare_status tare_model_input(tare_array *out, const tare_model *model, const char *signature, size_t i);
TARE_API tare_status tare_model_output(tare_array *out, const tare_model *model, const char *signature, size_t i);
/* What `tare inspect --json` prints (docs/json.md): signatures, aliases, functions, variables, ops. *json is the
 * caller's: tare_text_free. */
TARE_API tare_status tare_model_describe(char **json, const tare_model *model);
/* Bytes of constants and variables. */
TARE_API int64_t tare_model_weight_size(const tare_model *model);

/* Writes the model as a SavedModel directory of its own, pruned to what signatures and aliases need. `flags`: bits of
 * enum tare_write_flags. The directory appears when it is complete; a failure leaves nothing behind. */
TARE_API tare_status tare_model_write(const tare_model *model, const char *directory, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
