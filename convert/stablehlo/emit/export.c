/* Loads a model, freezes its variables, and writes the module of a signature. */
#include "convert/stablehlo/emit/export.h"

#include "base/output.h"
#include "convert/prepared_model.h"
#include "convert/saved_model.h"
#include "convert/stablehlo/artifact.h"
#include "convert/stablehlo/emit/emit.h"
#include "convert/stablehlo/exported_write.h"
#include "convert/stablehlo/write.h"

#include <stdio.h>
#include <string.h>

const char *const tare_shlo_container_names[] = {
    [TARE_SHLO_ARTIFACT] = "mlirbc", [TARE_SHLO_JAX_EXPORT] = "jax", [TARE_SHLO_SAVED_MODEL] = "saved_model", NULL
};

/* The first version whose gather and scatter have batch axes, which rules use. */
enum { OLDEST = TARE_VHLO_VERSION(1, 1, 0) };

static tare_status parse_version(int *out, const char *text) {
    unsigned major, minor, patch;
    int used = 0;
    if (sscanf(text, "%3u.%3u.%3u%n", &major, &minor, &patch, &used) == 3 && !text[used]) {
        *out = TARE_VHLO_VERSION((int)major, (int)minor, (int)patch);
        if (*out >= OLDEST && *out <= TARE_VHLO_NEWEST) return TARE_OK;
    }
    return TARE_FAIL(TARE_USAGE, "VHLO version '%s' (expected 1.1.0 to 1.20.0)", text);
}

tare_status tare_shlo_export_check(const struct tare_shlo_export_options *options) {
    int version;
    TARE_TRY(parse_version(&version, options->vhlo_version));
    return tare_emit_check_shapes(options->shapes, options->n_shapes);
}

static const struct tare_shlo_type *main_type(const struct tare_shlo_module *module) {
    return tare_shlo_op_attr(tare_shlo_function(module, "main"), "function_type")->type;
}

/* The names of main's arguments or results, from the attributes that emit.c gives them. */
static const char **names_of(struct tare_arena *arena, const struct tare_shlo_module *module, const char *attrs) {
    const struct tare_shlo_attr *list = tare_shlo_op_attr(tare_shlo_function(module, "main"), attrs);
    const char **names = TARE_NEW_ARRAY(arena, const char *, list->n_items + 1);
    for (size_t i = 0; names && i < list->n_items; i++)
        names[i] = list->items[i]->items[1]->text.data;
    return names;
}

/* A SavedModel whose signature has the names of the model's. */
static tare_status write_saved_model(const struct tare_shlo_module *module, const struct tare_strbuf *artifact,
                                     const char *path, const struct tare_op_registry *ops) {
    struct tare_arena arena = { 0 };
    struct tare_graph_model *wrapped = NULL;
    const char **arguments = names_of(&arena, module, "arg_attrs"), **results = names_of(&arena, module, "res_attrs");
    tare_status status = arguments && results ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK)
        status = tare_shlo_artifact_wrap(&wrapped, artifact->data, artifact->size, arguments, results, ops);
    if (status == TARE_OK) status = tare_saved_model_export(wrapped, path, NULL);
    tare_model_free(wrapped);
    tare_arena_free(&arena);
    return status;
}

static tare_status write_module(struct tare_shlo_exported_summary *summary, const struct tare_shlo_module *module,
                                const char *path, const struct tare_shlo_export_options *options,
                                const struct tare_op_registry *ops) {
    const struct tare_shlo_type *type = main_type(module);
    struct tare_strbuf artifact = { 0 }, wrapped = { 0 };
    tare_status status = tare_error_prefix(tare_shlo_write(&artifact, module, module->version), "%s", path);
    if (status == TARE_OK && options->container == TARE_SHLO_JAX_EXPORT)
        status = tare_shlo_write_exported(&wrapped, type, "main", artifact.data, artifact.size);
    const struct tare_strbuf *file = options->container == TARE_SHLO_JAX_EXPORT ? &wrapped : &artifact;
    if (status == TARE_OK)
        status = options->container == TARE_SHLO_SAVED_MODEL ? write_saved_model(module, &artifact, path, ops)
                                                             : tare_file_write(path, file->data, file->size);
    *summary = (struct tare_shlo_exported_summary){
        .n_ops = module->n_ops, .n_inputs = type->inputs.count, .n_outputs = type->outputs.count, .bytes = file->size
    };
    tare_strbuf_free(&artifact);
    tare_strbuf_free(&wrapped);
    return status;
}

tare_status tare_shlo_export_model(struct tare_shlo_exported_summary *summary, struct tare_graph_model *model,
                                   const char *out_path, const struct tare_shlo_export_options *options) {
    struct tare_emit_options request = { .signature = options->signature,
                                         .batch = options->batch,
                                         .shapes = options->shapes,
                                         .n_shapes = options->n_shapes,
                                         .tpu_call = options->tpu_call,
                                         .weights_apart = options->weights };
    struct tare_emit emit = { 0 };
    struct tare_shlo_module *module = NULL;
    TARE_TRY(parse_version(&request.version, options->vhlo_version));
    tare_status status = tare_error_prefix(tare_emit_module(&module, &emit, model, &request), "%s", model->path);
    if (status == TARE_OK && options->weights)
        status = tare_emit_write_weights(options->weights, emit.weights, emit.n_weights);
    if (status == TARE_OK) status = write_module(summary, module, out_path, options, model->ops);
    tare_shlo_free(module);
    tare_emit_free(&emit);
    return status;
}

tare_status tare_shlo_export(struct tare_shlo_exported_summary *summary, const char *model_path, const char *out_path,
                             const struct tare_shlo_export_options *options) {
    struct tare_graph_model *model;
    TARE_TRY(tare_load_prepared(&model, model_path));
    const tare_status status = tare_shlo_export_model(summary, model, out_path, options);
    tare_model_free(model);
    return status;
}
