/* Exporting a signature as a StableHLO module, and a model from JAX as one without modules. */
#include "workflow/model_files/export.h"
#include "base/file.h"
#include "convert/saved_model.h"

#define TARE_ROW_STRUCT struct tare_export_request
const struct tare_option tare_export_rows[] = {
    { TARE_ROW("signature", STRING, module.signature), .placeholder = "KEY",
      .help = "signature to export (default: serving_default, or the only one)" },
    { TARE_ROW("batch", INT64, module.batch), .placeholder = "N", .min = 1, .max = 1 << 20, .fallback = "1",
      .help = "size of open first dimensions: a module has arguments of one size" },
    { TARE_ROW("shape", LIST, shapes), .placeholder = "INPUT=SIZES",
      .help = "shape of an input whose sizes are open, as text=1,128" },
    { TARE_ROW("tpu-call", INT64, tpu_call), .placeholder = "N", .min = 1, .max = 1 << 20,
      .help =
          "of a converted model: only its Nth computation on the TPU, whose arguments are those that the host sends "
          "(default: the whole signature)" },
    { TARE_ROW("container", CHOICE, container), .choices = tare_shlo_container_names, .fallback = "mlirbc",
      .help = "what to write: a portable artifact, a file of jax.export around it, or a SavedModel whose signature "
              "calls it "
              "(one XlaCallModule op)" },
    { TARE_ROW("weights", STRING, module.weights), .placeholder = "FILE",
      .help =
          "write constants of 1,024 elements or more to FILE in the safetensors format; they are arguments after those "
          "of the signature, sorted by name" },
    { TARE_ROW("vhlo-version", STRING, module.vhlo_version), .placeholder = "VERSION",
      .fallback = TARE_SHLO_EXPORT_VERSION,
      .help = "oldest version of StableHLO that reads the file; JAX of 2024 reads the default" },
    { 0 },
};
#undef TARE_ROW_STRUCT

static struct tare_shlo_export_options module_of(const struct tare_export_request *request) {
    struct tare_shlo_export_options module = request->module;
    module.container = (enum tare_shlo_container)request->container;
    module.tpu_call = (size_t)request->tpu_call;
    module.shapes = request->shapes.items;
    module.n_shapes = request->shapes.count;
    return module;
}

tare_status tare_workflow_export_check(const struct tare_export_request *request, const char *path) {
    if (request->module.weights && request->container == TARE_SHLO_SAVED_MODEL)
        return TARE_FAIL(TARE_USAGE, "--weights and --container saved_model are mutually exclusive: TensorFlow's "
                                     "signature would have the weights as inputs");
    if (request->module.weights && tare_path_is_same(request->module.weights, path))
        return TARE_FAIL(TARE_USAGE, "--weights %s is also OUT (expected a file of its own)", request->module.weights);
    const struct tare_shlo_export_options module = module_of(request);
    return tare_shlo_export_check(&module);
}

tare_status tare_workflow_export(struct tare_graph_model *prepared, const char *path,
                                 const struct tare_export_request *request, const struct tare_log *log) {
    const struct tare_shlo_export_options module = module_of(request);
    struct tare_shlo_exported_summary summary;
    TARE_TRY(tare_shlo_export_model(&summary, prepared, path, &module));
    tare_note(log, "%s: %zu ops, %zu arguments, %zu results, %.2f MB", path, summary.n_ops, summary.n_inputs,
              summary.n_outputs, (double)summary.bytes / 1e6);
    return TARE_OK;
}

tare_status tare_workflow_unwrap(const struct tare_graph_model *model, const char *directory, bool overwrite,
                                 const struct tare_log *log) {
    if (model->module_error) return TARE_FAIL(TARE_UNSUPPORTED, "%s: %s", model->path, model->module_error);
    if (!model->n_modules) return TARE_FAIL(TARE_NOT_FOUND, "%s: the model has no XlaCallModule op", model->path);
    TARE_TRY(tare_saved_model_export(model, directory, &(struct tare_export_options){ .overwrite = overwrite }));
    tare_note(log, "replaced %zu XlaCallModule op%s; wrote %s", model->n_modules, model->n_modules == 1 ? "" : "s",
              directory);
    return TARE_OK;
}
