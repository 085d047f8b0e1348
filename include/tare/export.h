/* Models for other programs: StableHLO modules, and models from JAX without them. */
#ifndef TARE_EXPORT_H
#define TARE_EXPORT_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a signature as a StableHLO module, as `tare export` does; variables become constants. `path`: the file, which
 * is replaced, or with "container=saved_model" a new directory. `options`: those of `tare export` except for its
 * messages: "batch=8 container=jax". What was written is logged as a note. TARE_ERROR_UNSUPPORTED names the ops that
 * StableHLO does not have; nothing is written then. */
TARE_API TARE_CHECKED tare_status tare_model_export(const tare_model *model, const char *path, const char *options);

/* Writes a model from JAX with its StableHLO modules (XlaCallModule ops) replaced by TensorFlow and XLA ops, as
 * `tare unwrap` does. `flags`: as for tare_model_write, which writes the same, but also a model without modules, which
 * is TARE_ERROR_NOT_FOUND here, and keeps a module that cannot be replaced, which is TARE_ERROR_UNSUPPORTED here. */
TARE_API TARE_CHECKED tare_status tare_model_unwrap(const tare_model *model, const char *directory, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
