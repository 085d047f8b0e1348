/* Exporting a signature as a StableHLO module, and a model from JAX as one without modules. */
#ifndef TARE_WORKFLOW_MODEL_FILES_EXPORT_H
#define TARE_WORKFLOW_MODEL_FILES_EXPORT_H

#include "base/log.h"
#include "base/option.h"
#include "convert/stablehlo/emit/export.h"

/* What to export, as parsed from options. */
struct tare_export_request {
    struct tare_shlo_export_options module; /* without what is below, which is copied to it */
    int container;
    int64_t tpu_call;
    struct tare_option_list shapes;
};
extern const struct tare_option tare_export_rows[];

/* Before the model is loaded: TARE_USAGE for options that exclude each other or cannot be read, and for one file for
 * the module and its weights. */
tare_status tare_workflow_export_check(const struct tare_export_request *request, const char *path) TARE_WARN_UNUSED;
/* Writes a signature of a prepared model, which is changed, to `path`, and logs what was written as a note. */
tare_status tare_workflow_export(struct tare_graph_model *prepared, const char *path,
                                 const struct tare_export_request *request,
                                 const struct tare_log *log) TARE_WARN_UNUSED;

/* Writes a model whose StableHLO modules were replaced when it was loaded, and logs their number as a note.
 * TARE_NOT_FOUND if it has none, TARE_UNSUPPORTED if one could not be replaced. */
tare_status tare_workflow_unwrap(const struct tare_graph_model *model, const char *directory, bool overwrite,
                                 const struct tare_log *log) TARE_WARN_UNUSED;

#endif
