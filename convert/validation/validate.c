/* The rules of the files of a SavedModel, around those of its graphs. */
#include "convert/validation/validate.h"
#include "interpreter/ops/builtin.h"
#include "base/alloc.h"
#include "base/control.h"
#include "convert/import/edges.h"
#include "convert/import/import.h"
#include "convert/validation/internal.h"
#include "graph/graphs.h"
#include "tpu/compatibility.h"

#include <stdio.h>
#include <string.h>

/* ---- graphs ---- */

static void add_fault(void *arg, const char *where, const char *what) {
    tare_file_fault(arg, where, "%s", what);
}

/* The model owns what it was imported from; a part that failed is freed with it, except the source. If the nodes do not
 * form a valid graph, the violations are listed during the import. */
static tare_status import(struct tare_graph_model **out, struct tare_file_validator *v,
                          const struct tare_saved_model_options *options) {
    struct tare_import_faults faults = { .add = add_fault, .arg = v };
    tare_status status;
    v->source->faults = &faults;
    status = tare_saved_model_import(out, v->source, options);
    v->source->faults = NULL;
    if (status == TARE_OK || status == TARE_NO_MEMORY) return status;
    if (!faults.no_graph) tare_file_fault(v, "model", "%s", tare_error_text());
    tare_error_clear();
    return TARE_OK;
}

static void check_saver(struct tare_file_validator *v) {
    const Tensorflow__SaverDef *saver = v->source->meta->saver_def;
    const char *names[2];
    if (!saver) return;
    names[0] = saver->filename_tensor_name;
    names[1] = saver->restore_op_name;
    for (size_t i = 0; i < 2; i++) {
        struct tare_edge edge;
        if (!*names[i] || tare_graph_find(v->model->main, names[i])) continue;
        const tare_status status = tare_import_tensor_name(&edge, v->model, names[i]);
        if (status == TARE_NO_MEMORY) v->out_of_memory = true;
        if (status == TARE_OK || status == TARE_NO_MEMORY) continue;
        tare_error_clear();
        tare_file_fault(v, "saver_def", "tensor %s is not in the graph", names[i]);
    }
}

/* ---- the checkpoint ---- */

/* The i-th text of a constant; NULL when there is none. Free it. */
static char *constant_text(struct tare_file_validator *v, struct tare_edge edge, int64_t i) {
    const struct tare_tensor *texts = tare_edge_constant(edge);
    const struct tare_str *text;
    char *copy;
    if (!texts || texts->dtype != TARE_DT_STRING || i >= texts->elements) return NULL;
    text = &TARE_CONST_DATA(struct tare_str, texts)[texts->splat ? 0 : i];
    copy = tare_malloc(text->size + 1);
    if (!copy) {
        v->out_of_memory = true;
        return NULL;
    }
    if (text->size) memcpy(copy, text->data, text->size);
    copy[text->size] = '\0';
    return copy;
}

static void check_restored(struct tare_file_validator *v, const char *where, const char *key, const char *slice) {
    struct tare_bundle_entry entry;
    if (!tare_bundle_has(v->source->bundle, key))
        tare_file_fault(v, where, "restores %s, which the checkpoint lacks", key);
    else if (slice && *slice)
        tare_file_check(v, where, "restores ", tare_bundle_check_slice(&entry, v->source->bundle, key, slice));
}

/* The number of distinct pairs of names and slices: one if both constants are splats. */
static int64_t pair_count(const struct tare_tensor *names, const struct tare_tensor *slices) {
    const struct tare_tensor *listed = names->splat && slices && !slices->splat ? slices : names;
    int64_t count = listed->elements < names->elements ? listed->elements : names->elements;
    return listed->splat && count > 1 ? 1 : count;
}

static void check_restore(struct tare_file_validator *v, const struct tare_node *node) {
    const char *graph = *node->graph->name ? node->graph->name : "graph";
    const struct tare_tensor *names = node->n_inputs > 2 ? tare_edge_constant(node->inputs[1]) : NULL;
    int64_t count = names ? pair_count(names, tare_edge_constant(node->inputs[2])) : 0;
    char where[1024];
    snprintf(where, sizeof where, "%s/%s (RestoreV2)", graph, node->name);
    for (int64_t i = 0; i < count; i++) {
        char *key = constant_text(v, node->inputs[1], i), *slice = constant_text(v, node->inputs[2], i);
        if (key) check_restored(v, where, key, slice);
        tare_free(key);
        tare_free(slice);
        if (!key) break;
    }
}

static void check_restores(struct tare_file_validator *v) {
    for (size_t f = 0; f <= v->model->n_functions; f++) {
        const struct tare_graph *graph = tare_model_graph(v->model, f);
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (strcmp(graph->nodes[i]->op, "RestoreV2") == 0) check_restore(v, graph->nodes[i]);
    }
}

/* Size, location and checksum of every stored tensor, used or not. */
static void check_tensors(struct tare_file_validator *v) {
    for (size_t i = 0; i < tare_bundle_count(v->source->bundle); i++) {
        struct tare_tensor tensor;
        tare_status status = tare_bundle_read(&tensor, v->source->bundle, tare_bundle_key(v->source->bundle, i));
        if (status == TARE_OK) tare_tensor_reset(&tensor);
        if (status == TARE_UNSUPPORTED) status = tare_error_dismiss(status); /* a variant is sound, though not read */
        tare_file_check(v, "checkpoint", "", status);
    }
}

/* ---- the TPU ---- */

/* Ops that a TPU lacks, and dtypes, are among the rules of graphs: here what ops it has cannot be compiled with. */
static void add_finding(void *arg, const struct tare_node *member, const struct tare_tpu_finding *finding) {
    const bool lacks_form =
        finding->kind == TARE_TPU_NOT_COMPILABLE && finding->node && tare_tpu_compiles(finding->node->op);
    if (lacks_form || finding->kind == TARE_TPU_BAD_SHAPE)
        tare_file_fault(arg, member->graph->name, "%s", finding->text);
}

static tare_status check_clusters(struct tare_file_validator *v) {
    struct tare_arena arena = { 0 };
    tare_status status = TARE_OK;
    for (size_t f = 0; f < v->model->n_functions && status == TARE_OK; f++) {
        const struct tare_graph *graph = v->model->functions[f];
        bool placed = false;
        for (size_t i = 0; i < graph->n_nodes; i++)
            placed |= tare_node_is(graph->nodes[i], "TPUReplicateMetadata");
        if (placed) status = tare_tpu_check_cluster(add_finding, v, &arena, graph);
        tare_arena_reset(&arena);
    }
    tare_arena_free(&arena);
    return status;
}

/* ---- names of files ---- */

/* TensorFlow skips an alias of a function that was not saved; one that we write names a function. */
static void check_aliases(struct tare_file_validator *v) {
    const Tensorflow__MetaGraphDef__MetaInfoDef *info = v->source->meta->meta_info_def;
    for (size_t i = 0; info && v->model && i < info->n_function_aliases; i++) {
        const Tensorflow__StringEntry *entry = info->function_aliases[i];
        if (tare_model_find_function(v->model, entry->key)) continue;
        if (v->written)
            tare_file_fault(v, "function_aliases", "%s: no function %s", entry->value, entry->key);
        else
            tare_file_note(v, "function_aliases", "%s: no function %s, so that loaders skip the alias", entry->value,
                           entry->key);
    }
}

static void check_assets(struct tare_file_validator *v) {
    const Tensorflow__MetaGraphDef *meta = v->source->meta;
    for (size_t i = 0; i < meta->n_asset_file_def; i++) {
        char *folder = tare_path_join(v->source->path, "assets");
        char *path = folder ? tare_path_join(folder, meta->asset_file_def[i]->filename) : NULL;
        if (!path)
            v->out_of_memory = true;
        else if (tare_file_kind_of(path) == TARE_FILE_NONE)
            tare_file_fault(v, "assets", "%s is missing", meta->asset_file_def[i]->filename);
        tare_free(folder);
        tare_free(path);
    }
}

/* What functions capture and return is judged by object graphs that are sound. */
static void check_objects(struct tare_file_validator *v) {
    const size_t before = v->faults->count;
    tare_validate_objects(v);
    if (v->source->bundle) tare_validate_trackable(v);
    if (v->faults->count > before) return;
    tare_validate_captures(v);
    tare_validate_structured(v);
}

/* ---- one MetaGraph, all ---- */

static tare_status check_meta(struct tare_file_validator *v, const struct tare_saved_model_options *options) {
    const struct tare_validate_options rules = { .compiles = v->written ? NULL : tare_tpu_compiles,
                                                 .any_tpu_dtypes = v->written,
                                                 .ops = v->written     ? NULL
                                                        : options->ops ? options->ops
                                                                       : tare_ops_builtin(),
                                                 .values_optional = v->written,
                                                 .values_in_file = true };
    struct tare_graph_model *model = NULL;
    tare_status status = import(&model, v, options);
    v->model = model;
    if (model) {
        const size_t before = v->faults->count;
        status = tare_model_validate(v->faults, model, &rules);
        if (status == TARE_OK && v->faults->count == before) tare_validate_shapes(v);
        if (status == TARE_OK && v->faults->count == before && !v->written) status = check_clusters(v);
        if (!v->written) tare_validate_serving(v);
        check_saver(v);
        if (v->source->bundle) check_restores(v);
    }
    check_aliases(v);
    check_objects(v);
    if (v->source->bundle && !v->written) check_tensors(v);
    check_assets(v);
    if (model) {
        tare_model_free(model); /* and the source */
        v->source = NULL;
    }
    return status;
}

static tare_status open_and_check(struct tare_faults *faults, size_t *n_metas, const char *path, size_t index,
                                  const struct tare_saved_model_options *options, bool written) {
    struct tare_file_validator v = { .faults = faults, .written = written };
    struct tare_saved_model_options open = options ? *options : (struct tare_saved_model_options){ 0 };
    int64_t version;
    tare_status status;
    open.without_values = open.read_only = true;
    TARE_TRY(tare_source_open_nth(&v.source, path, &open, index));
    *n_metas = v.source->message->n_meta_graphs;
    version = v.source->message->saved_model_schema_version;
    if (version != 1 && index == 0)
        tare_file_fault(&v, "saved_model", "schema version %lld (expected 1)", (long long)version);
    status = check_meta(&v, &open);
    tare_source_close(v.source);
    if (status == TARE_OK) status = tare_control_check(); /* a check that it stopped is no lack of memory */
    if (status == TARE_OK && v.out_of_memory)
        status = TARE_FAIL(TARE_NO_MEMORY, "out of memory while faults were listed");
    return tare_error_prefix(status, "%s", path);
}

static tare_status validate(struct tare_faults *faults, const char *path,
                            const struct tare_saved_model_options *options, bool written) {
    bool all = !options || !options->tags;
    size_t n_metas = 1;
    for (size_t i = 0; i < n_metas; i++) {
        TARE_TRY(open_and_check(faults, &n_metas, path, i, options, written));
        if (!all) break;
    }
    return TARE_OK;
}

tare_status tare_saved_model_validate(struct tare_faults *faults, const char *path,
                                      const struct tare_saved_model_options *options) {
    return validate(faults, path, options, false);
}

/* ---- a model that was just written ---- */

static const char *what_of(const char *fault) {
    const char *colon = strstr(fault, ": ");
    return colon ? colon + 2 : fault;
}

/* How many of the first `count` violations read like this one; passes move and rename nodes, so that the places differ.
 */
static size_t count_like(const struct tare_faults *faults, size_t count, const char *what) {
    size_t like = 0;
    for (size_t i = 0; i < count; i++)
        like += strcmp(what_of(faults->items[i]), what) == 0;
    return like;
}

/* The first violation that `before` has less often; NULL: none. */
static const char *first_new(const struct tare_faults *faults, const struct tare_faults *before) {
    for (size_t i = 0; i < faults->count; i++) {
        const char *what = what_of(faults->items[i]);
        if (count_like(faults, i + 1, what) > count_like(before, before->count, what)) return faults->items[i];
    }
    return NULL;
}

tare_status tare_saved_model_check_written(const char *path, const char *source_path,
                                           const struct tare_saved_model_options *options) {
    struct tare_faults faults = { 0 }, before = { 0 };
    const char *fault;
    tare_status status = validate(&faults, path, options, true);
    if (status == TARE_OK && faults.count && source_path) status = validate(&before, source_path, options, true);
    fault = status == TARE_OK ? first_new(&faults, &before) : NULL;
    if (fault)
        status =
            TARE_FAIL(TARE_INTERNAL, "the model would not be valid and was not written (an internal error): %s", fault);
    tare_faults_free(&faults);
    tare_faults_free(&before);
    return status;
}
