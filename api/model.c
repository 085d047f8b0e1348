/* Models: opening, describing and writing. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "calib/fingerprint.h"
#include "calib/format/file.h"
#include "convert/saved_model.h"
#include "eval/comparison.h"
#include "eval/model_inputs.h"
#include "eval/report/json_text.h"
#include "graph/signature_uses.h"
#include "workflow/inspection.h"
#include "api/handles.h"

#include <stdatomic.h>
#include <string.h>

/* ---- signatures ---- */

static tare_status add(struct tare_public_side *side, struct tare_arena *arena, const char *name, int dtype,
                       const struct tare_shape *shape) {
    tare_array *array = &side->items[side->count++];
    array->name = tare_arena_strdup(arena, name);
    array->dtype = tare_dtype_base(dtype);
    array->rank = shape->rank;
    for (int i = 0; i < shape->rank; i++)
        array->dims[i] = shape->dims[i];
    return array->name ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_public_describe(struct tare_public_side *side, struct tare_arena *arena,
                                 const struct tare_binding *bindings, size_t count) {
    side->items = TARE_NEW_ARRAY(arena, tare_array, count + 1);
    if (!side->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(add(side, arena, bindings[i].key, bindings[i].dtype, &bindings[i].shape));
    return TARE_OK;
}

static tare_status describe_signatures(tare_model *handle) {
    const struct tare_graph_model *model = handle->model;
    handle->inputs = TARE_NEW_ARRAY(&handle->arena, struct tare_public_side, model->n_signatures + 1);
    handle->outputs = TARE_NEW_ARRAY(&handle->arena, struct tare_public_side, model->n_signatures + 1);
    if (!handle->inputs || !handle->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *s = &model->signatures[i];
        TARE_TRY(tare_public_describe(&handle->inputs[i], &handle->arena, s->inputs, s->n_inputs));
        TARE_TRY(tare_public_describe(&handle->outputs[i], &handle->arena, s->outputs, s->n_outputs));
    }
    return TARE_OK;
}

/* NULL if there is no such signature; then the error text is set. */
static const struct tare_public_side *find_side(const tare_model *handle, const struct tare_public_side *sides,
                                                const char *signature) {
    const struct tare_signature *found;
    if (tare_pick_signature(&found, handle->model, signature) != TARE_OK) return NULL;
    return &sides[found - handle->model->signatures];
}

static size_t side_count(const tare_model *handle, const struct tare_public_side *sides, const char *signature) {
    const struct tare_public_side *side = find_side(handle, sides, signature);
    if (!side) tare_error_clear();
    return side ? side->count : 0;
}

static tare_status side_item(tare_array *out, const tare_model *handle, const struct tare_public_side *sides,
                             const char *signature, size_t i) {
    const struct tare_public_side *side = find_side(handle, sides, signature);
    *out = (tare_array){ 0 };
    if (!side) return TARE_NOT_FOUND;
    if (i >= side->count)
        return TARE_FAIL(TARE_NOT_FOUND, "index %zu is out of range (the signature has %zu)", i, side->count);
    *out = side->items[i];
    return TARE_OK;
}

size_t tare_model_signature_count(const tare_model *model) {
    return model->model->n_signatures;
}

const char *tare_model_signature_name(const tare_model *model, size_t i) {
    return i < model->model->n_signatures ? model->model->signatures[i].key : NULL;
}

size_t tare_model_input_count(const tare_model *model, const char *signature) {
    return side_count(model, model->inputs, signature);
}

size_t tare_model_output_count(const tare_model *model, const char *signature) {
    return side_count(model, model->outputs, signature);
}

tare_status tare_model_input(tare_array *out, const tare_model *model, const char *signature, size_t i) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(tare_error_prefix(side_item(out, model, model->inputs, signature, i), "input"));
}

tare_status tare_model_output(tare_array *out, const tare_model *model, const char *signature, size_t i) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(tare_error_prefix(side_item(out, model, model->outputs, signature, i), "output"));
}

/* ---- opening and closing ---- */

static void release_folder(struct tare_public_folder *folder) {
    if (!folder || atomic_fetch_sub(&folder->shares, 1) > 0) return;
    if (folder->path && tare_file_remove_tree(folder->path) != TARE_OK) tare_error_clear();
    tare_free(folder->path);
    tare_free(folder);
}

/* Owns the model, and frees it on failure. `path`: the directory it was opened from; NULL: none. */
static tare_status make_handle(tare_model **out, struct tare_context_handle *context, struct tare_graph_model *model,
                               const char *path) {
    tare_model *handle = tare_calloc(1, sizeof *handle);
    tare_status status = TARE_NO_MEMORY;
    *out = NULL;
    if (!handle) {
        tare_model_free(model);
        return TARE_NO_MEMORY;
    }
    *handle = (struct tare_model_handle){ .context = context, .family = tare_public_family(), .model = model };
    pthread_mutex_init(&handle->lock, NULL);
    if (path) handle->path = tare_strdup(path);
    if (!path || handle->path) status = describe_signatures(handle);
    if (status == TARE_OK) status = tare_control_verify();
    if (status == TARE_OK)
        *out = handle;
    else
        tare_model_close(handle);
    return status;
}

tare_status tare_public_made(tare_model **out, const tare_model *of, struct tare_graph_model *copy) {
    TARE_TRY(make_handle(out, of->context, copy, NULL));
    (*out)->source = of->temporary;
    if (of->temporary) atomic_fetch_add(&of->temporary->shares, 1);
    return TARE_OK;
}

static tare_status hand_out(tare_model **out, tare_context *context, struct tare_graph_model *model, const char *path) {
    TARE_TRY(make_handle(out, context, model, path));
    (*out)->opened = true;
    return TARE_OK;
}

static tare_status open_model(tare_model **out, tare_context *context, const char *directory) {
    const struct tare_saved_model_options options = { .ops = tare_public_ops(context) };
    struct tare_graph_model *model;
    *out = NULL;
    TARE_TRY(tare_saved_model_load(&model, directory, &options));
    return hand_out(out, context, model, directory);
}

tare_status tare_model_open(tare_model **out, tare_context *context, const char *directory) {
    tare_public_begin(context, 0);
    return tare_public_end(open_model(out, context, directory));
}

tare_status tare_public_tags(struct tare_saved_model_options *out, struct tare_arena *arena, const char *text) {
    char *at = tare_arena_strdup(arena, text);
    const char **tags = TARE_NEW_ARRAY(arena, const char *, strlen(text) + 1);
    if (!at || !tags) return TARE_NO_MEMORY;
    out->tags = tags;
    while (at && *text) {
        tags[out->n_tags++] = strsep(&at, ",");
    }
    return TARE_OK;
}

/* The handle has no path: later loads would choose another MetaGraph than the one with these tags. */
static tare_status open_tagged(tare_model **out, tare_context *context, const char *directory, const char *tags) {
    struct tare_saved_model_options options = { .ops = tare_public_ops(context) };
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model;
    tare_status status = tare_public_tags(&options, &arena, tags);
    *out = NULL;
    if (status == TARE_OK) status = tare_saved_model_load(&model, directory, &options);
    tare_arena_free(&arena);
    return status == TARE_OK ? hand_out(out, context, model, NULL) : status;
}

tare_status tare_model_open_tagged(tare_model **out, tare_context *context, const char *directory, const char *tags) {
    tare_public_begin(context, 0);
    return tare_public_end(tags ? open_tagged(out, context, directory, tags) : open_model(out, context, directory));
}

void tare_model_close(tare_model *model) {
    if (!model) return;
    tare_model_free(model->model);
    pthread_mutex_destroy(&model->lock);
    tare_arena_free(&model->arena);
    release_folder(model->temporary);
    release_folder(model->source);
    tare_free(model->path);
    tare_free(model);
}

tare_status tare_public_check_calibration(const struct tare_calibration *calibration,
                                          const struct tare_graph_model *prepared) {
    uint64_t fingerprint[2];
    if (!calibration) return TARE_OK;
    TARE_TRY(tare_model_fingerprint(fingerprint, prepared));
    return tare_calibration_check_model(calibration, fingerprint, "the calibration");
}

/* ---- describing and writing ---- */

/* Analyses count uses, in lists that graphs and signatures build when they are first needed. */
static tare_status index_uses(const struct tare_graph_model *model) {
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(tare_graph_index_uses(model->functions[i]));
    (void)tare_signatures_count_uses(model->main->model, (struct tare_edge){ NULL, 0 });
    return tare_graph_index_uses(model->main);
}

tare_status tare_public_index(const tare_model *model) {
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&model->lock;
    pthread_mutex_lock(lock);
    const tare_status status = index_uses(model->model);
    pthread_mutex_unlock(lock);
    return status;
}

static tare_status describe_model(char **json, const tare_model *model) {
    const struct inspect_options options = { .functions = true, .name = model->opened ? NULL : "model" };
    json_t *root = NULL;
    tare_status status = tare_public_index(model);
    if (status == TARE_OK) status = inspect_json(&root, model->model, &options);
    *json = status == TARE_OK ? tare_json_dump(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return status == TARE_OK && !*json ? TARE_NO_MEMORY : status;
}

tare_status tare_model_describe(char **json, const tare_model *model) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(describe_model(json, model));
}

int64_t tare_model_weight_size(const tare_model *model) {
    int64_t bytes;
    tare_public_begin(model->context, model->family);
    return tare_public_end(tare_model_weight_bytes(&bytes, model->model)) == TARE_OK ? bytes : -1;
}

tare_status tare_public_write_flags(bool *overwrite, unsigned flags) {
    const unsigned unknown = flags & ~(unsigned)TARE_WRITE_OVERWRITE;
    if (unknown) return TARE_FAIL(TARE_INVALID_ARGUMENT, "unknown flags %#x", unknown);
    *overwrite = flags & TARE_WRITE_OVERWRITE;
    return TARE_OK;
}

static tare_status write_model(const tare_model *model, const char *directory, unsigned flags) {
    struct tare_export_options options = { 0 };
    TARE_TRY(tare_public_write_flags(&options.overwrite, flags));
    return tare_saved_model_export(model->model, directory, &options);
}

/* Writes the model to a new folder in $TMPDIR, else /tmp. With the lock of the path. */
static tare_status write_temporary(tare_model *model) {
    const struct tare_export_options options = { 0 };
    char *path;
    if (!model->temporary && !(model->temporary = tare_calloc(1, sizeof *model->temporary))) return TARE_NO_MEMORY;
    if (!model->temporary->path) TARE_TRY(tare_public_temporary(&model->temporary->path));
    path = tare_path_join(model->temporary->path, "model");
    if (!path) return TARE_NO_MEMORY;
    const tare_status status = tare_saved_model_export(model->model, path, &options);
    if (status == TARE_OK)
        model->path = path;
    else
        tare_free(path);
    return status;
}

tare_status tare_public_path(const char **out, const tare_model *model) {
    tare_model *handle = (tare_model *)(uintptr_t)model; /* the path is no part of what callers see of a model */
    tare_status status = TARE_OK;
    pthread_mutex_lock(&handle->lock);
    if (!handle->path) status = write_temporary(handle);
    *out = handle->path;
    pthread_mutex_unlock(&handle->lock);
    return status;
}

const char *tare_public_name(const tare_model *model, const char *otherwise) {
    return model->opened ? model->model->path : otherwise;
}

const char *tare_public_report_name(const tare_model *model) {
    return model->temporary ? tare_public_name(model, "model") : NULL;
}

tare_status tare_public_load(struct tare_graph_model **out, const tare_model *model) {
    const struct tare_saved_model_options options = { .ops = tare_public_ops(model->context) };
    const char *path;
    TARE_TRY(tare_public_path(&path, model));
    return tare_saved_model_load(out, path, &options);
}

tare_status tare_public_check_values(const tare_model *model) {
    const struct tare_log log = tare_public_log(model->context);
    if (!model->opened) return TARE_OK;
    return tare_saved_model_check_values(model->model, model->context && model->context->allows_missing, &log);
}

tare_status tare_model_write(const tare_model *model, const char *directory, unsigned flags) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(write_model(model, directory, flags));
}
