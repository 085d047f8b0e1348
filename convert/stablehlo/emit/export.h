/* Files of StableHLO modules from models: the work of tare export. */
#ifndef TARE_CONVERT_STABLEHLO_EMIT_EXPORT_H
#define TARE_CONVERT_STABLEHLO_EMIT_EXPORT_H

#include "graph/model.h"

#include <stddef.h>
#include <stdint.h>

enum tare_shlo_container {
    TARE_SHLO_ARTIFACT,    /* a portable artifact (.mlirbc) */
    TARE_SHLO_JAX_EXPORT,  /* what jax.export.deserialize reads, around it */
    TARE_SHLO_SAVED_MODEL, /* a SavedModel with one XlaCallModule, a folder */
};
extern const char *const tare_shlo_container_names[]; /* by container; ends with NULL */

struct tare_shlo_export_options {
    const char *signature;     /* NULL: serving_default, or the only one */
    int64_t batch;             /* size of open first dimensions; at least 1 */
    const char *const *shapes; /* "KEY=2,16": the shape of an input */
    size_t n_shapes;
    const char *vhlo_version; /* "1.5.0" */
    enum tare_shlo_container container;
    /* A file of safetensors for constants of 1,024 elements or more; NULL: they are in the module. */
    const char *weights;
    size_t tpu_call; /* of a converted model: only this computation of the signature's on the TPU, from 1; 0: all */
};
/* Readable by JAX since 2024. */
#define TARE_SHLO_EXPORT_VERSION "1.5.0"

struct tare_shlo_exported_summary {
    size_t n_ops, n_inputs, n_outputs, bytes;
};

/* Before the model is loaded: TARE_USAGE for a version or a shape that cannot be read. */
tare_status tare_shlo_export_check(const struct tare_shlo_export_options *options) TARE_WARN_UNUSED;
/* Reads a SavedModel, prepares it (convert/pipeline.h), and writes a signature as a module. Nothing remains after a
 * failure. Errors name the file. */
tare_status tare_shlo_export(struct tare_shlo_exported_summary *summary, const char *model_path, const char *out_path,
                             const struct tare_shlo_export_options *options) TARE_WARN_UNUSED;
/* The same for a prepared model, which is changed. */
tare_status tare_shlo_export_model(struct tare_shlo_exported_summary *summary, struct tare_graph_model *model,
                                   const char *out_path,
                                   const struct tare_shlo_export_options *options) TARE_WARN_UNUSED;

#endif
