/* The MetaGraphDef around an exported graph. */
#include "convert/export/meta.h"
#include "proto/tensor_message.h"

#include <string.h>

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant;
}

/* ---- signatures ---- */

static tare_status tensor_name(char **out, struct tare_arena *arena, struct tare_edge edge) {
    *out = tare_arena_printf(arena, "%s:%d", edge.node->name, edge.index);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

/* The components of a SparseTensor. */
static tare_status export_sparse(Tensorflow__TensorInfo *info, struct tare_arena *arena,
                                 const struct tare_binding *parts) {
    Tensorflow__TensorInfo__CooSparse *sparse = TARE_NEW(arena, Tensorflow__TensorInfo__CooSparse);
    if (!sparse) return TARE_NO_MEMORY;
    tensorflow__tensor_info__coo_sparse__init(sparse);
    info->dtype = (Tensorflow__DataType)parts[1].dtype;
    info->encoding_case = TENSORFLOW__TENSOR_INFO__ENCODING_COO_SPARSE;
    info->coo_sparse = sparse;
    TARE_TRY(tensor_name(&sparse->indices_tensor_name, arena, parts[0].edge));
    TARE_TRY(tensor_name(&sparse->values_tensor_name, arena, parts[1].edge));
    return tensor_name(&sparse->dense_shape_tensor_name, arena, parts[2].edge);
}

/* The components of another composite tensor, which only files have. */
static tare_status export_composite(Tensorflow__TensorInfo *info, struct tare_arena *arena,
                                    const struct tare_binding *parts) {
    Tensorflow__TensorInfo__CompositeTensor *composite = TARE_NEW(arena, Tensorflow__TensorInfo__CompositeTensor);
    if (!composite) return TARE_NO_MEMORY;
    *composite = *info->composite_tensor;
    composite->components = TARE_NEW_ARRAY(arena, Tensorflow__TensorInfo *, composite->n_components + 1);
    if (!composite->components) return TARE_NO_MEMORY;
    for (size_t i = 0; i < composite->n_components; i++) {
        Tensorflow__TensorInfo *part = TARE_NEW(arena, Tensorflow__TensorInfo);
        if (!part) return TARE_NO_MEMORY;
        *part = *info->composite_tensor->components[i];
        composite->components[i] = part;
        TARE_TRY(tensor_name(&part->name, arena, parts[i].edge));
    }
    info->composite_tensor = composite;
    return TARE_OK;
}

/* A tensor of its own, or the first component of a composite one. */
static tare_status export_binding(Tensorflow__TensorInfo **out, struct tare_arena *arena,
                                  const struct tare_binding *binding, const Tensorflow__TensorInfo *origin) {
    Tensorflow__TensorInfo *info = TARE_NEW(arena, Tensorflow__TensorInfo);
    if (!info) return TARE_NO_MEMORY;
    tensorflow__tensor_info__init(info);
    if (origin) *info = *origin;
    *out = info;
    if (info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_COMPOSITE_TENSOR)
        return export_composite(info, arena, binding);
    if (binding->whole) return export_sparse(info, arena, binding);
    if (!binding->edge.node) return TARE_OK;
    info->dtype = (Tensorflow__DataType)binding->dtype;
    if (!origin) info->tensor_shape = tare_shape_to_message(arena, &binding->shape);
    if (!info->tensor_shape && !origin) return TARE_NO_MEMORY;
    info->encoding_case = TENSORFLOW__TENSOR_INFO__ENCODING_NAME;
    return tensor_name(&info->name, arena, binding->edge);
}

/* Inputs and outputs are maps with entries of this type. */
typedef Tensorflow__TensorInfoEntry binding_entry;

/* The file's bindings by name; the first counts. */
static tare_status index_infos(struct tare_map *infos, binding_entry *const *entries, size_t count) {
    if (!tare_map_reserve(infos, count)) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!entries[i]->value || tare_map_get(infos, entries[i]->key)) continue;
        if (!tare_map_set(infos, entries[i]->key, entries[i]->value)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* One side of a signature; `origin` is that side in the file. */
static tare_status export_bindings(binding_entry ***out, size_t *n_out, struct tare_arena *arena,
                                   const struct tare_binding *bindings, size_t count, binding_entry *const *origin,
                                   size_t n_origin) {
    binding_entry **entries = TARE_NEW_ARRAY(arena, binding_entry *, count + 1);
    struct tare_map infos = { 0 };
    tare_status status = entries ? index_infos(&infos, origin, n_origin) : TARE_NO_MEMORY;
    *out = entries;
    *n_out = 0;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        const struct tare_composite_tensor *whole = bindings[i].whole;
        const char *key = whole ? whole->key : bindings[i].key;
        binding_entry *entry;
        if (whole && bindings[i].part > 0) continue; /* exported with the first */
        entry = TARE_NEW(arena, binding_entry);
        status = entry ? TARE_OK : TARE_NO_MEMORY;
        if (!entry) break;
        tensorflow__tensor_info_entry__init(entry);
        entry->key = text(key);
        entries[(*n_out)++] = entry;
        status = export_binding(&entry->value, arena, &bindings[i], tare_map_get(&infos, key));
    }
    tare_map_free(&infos);
    return status;
}

static tare_status export_inputs(Tensorflow__SignatureDef *def, struct tare_arena *arena,
                                 const struct tare_signature *signature, const Tensorflow__SignatureDef *origin) {
    return export_bindings(&def->inputs, &def->n_inputs, arena, signature->inputs, signature->n_inputs,
                           origin ? origin->inputs : NULL, origin ? origin->n_inputs : 0);
}

static tare_status export_outputs(Tensorflow__SignatureDef *def, struct tare_arena *arena,
                                  const struct tare_signature *signature, const Tensorflow__SignatureDef *origin) {
    return export_bindings(&def->outputs, &def->n_outputs, arena, signature->outputs, signature->n_outputs,
                           origin ? origin->outputs : NULL, origin ? origin->n_outputs : 0);
}

static tare_status add_signature(Tensorflow__MetaGraphDef *meta, struct tare_arena *arena, const char *key,
                                 Tensorflow__SignatureDef *def) {
    Tensorflow__MetaGraphDef__SignatureDefEntry *entry = TARE_NEW(arena, Tensorflow__MetaGraphDef__SignatureDefEntry);
    if (!entry) return TARE_NO_MEMORY;
    tensorflow__meta_graph_def__signature_def_entry__init(entry);
    entry->key = text(key);
    entry->value = def;
    meta->signature_def[meta->n_signature_def++] = entry;
    return TARE_OK;
}

static tare_status export_signatures(Tensorflow__MetaGraphDef *meta, struct tare_arena *arena,
                                     const struct tare_graph_model *model, const Tensorflow__MetaGraphDef *origin) {
    static const char init[] = "__saved_model_init_op";
    meta->signature_def = TARE_NEW_ARRAY(arena, Tensorflow__MetaGraphDef__SignatureDefEntry *, model->n_signatures + 2);
    meta->n_signature_def = 0;
    if (!meta->signature_def) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *signature = &model->signatures[i];
        const Tensorflow__SignatureDef *old = signature->origin;
        Tensorflow__SignatureDef *def = TARE_NEW(arena, Tensorflow__SignatureDef);
        if (!def) return TARE_NO_MEMORY;
        tensorflow__signature_def__init(def);
        if (old) *def = *old;
        def->method_name = text(signature->method_name);
        TARE_TRY(export_inputs(def, arena, signature, old));
        TARE_TRY(export_outputs(def, arena, signature, old));
        TARE_TRY(add_signature(meta, arena, signature->key, def));
    }
    for (size_t i = 0; origin && i < origin->n_signature_def; i++)
        if (strcmp(origin->signature_def[i]->key, init) == 0 && model->init_node)
            TARE_TRY(add_signature(meta, arena, init, origin->signature_def[i]->value));
    return TARE_OK;
}

/* ---- tags and aliases ---- */

static tare_status set_tags(Tensorflow__MetaGraphDef__MetaInfoDef *info, struct tare_arena *arena,
                            const struct tare_graph_model *model, bool has_tags) {
    if (!model->tags && has_tags) return TARE_OK;
    char *rest = tare_arena_strdup(arena, model->tags ? model->tags : "serve");
    info->tags = rest ? TARE_NEW_ARRAY(arena, char *, strlen(rest) + 1) : NULL;
    info->n_tags = 0;
    if (!info->tags) return TARE_NO_MEMORY;
    while (rest && *rest)
        info->tags[info->n_tags++] = strsep(&rest, ",");
    return TARE_OK;
}

static tare_status export_info(Tensorflow__MetaGraphDef *meta, struct tare_arena *arena,
                               const struct tare_graph_model *model, const Tensorflow__MetaGraphDef *origin) {
    Tensorflow__MetaGraphDef__MetaInfoDef *info = TARE_NEW(arena, Tensorflow__MetaGraphDef__MetaInfoDef);
    if (!info) return TARE_NO_MEMORY;
    tensorflow__meta_graph_def__meta_info_def__init(info);
    if (origin && origin->meta_info_def) *info = *origin->meta_info_def;
    TARE_TRY(set_tags(info, arena, model, origin && origin->meta_info_def));
    TARE_TRY(tare_export_op_list(&info->stripped_op_list, arena, model, info->stripped_op_list));
    info->function_aliases = TARE_NEW_ARRAY(arena, Tensorflow__StringEntry *, model->n_aliases + 1);
    info->n_function_aliases = model->n_aliases;
    if (!info->function_aliases) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_aliases; i++) {
        info->function_aliases[i] = TARE_NEW(arena, Tensorflow__StringEntry);
        if (!info->function_aliases[i]) return TARE_NO_MEMORY;
        tensorflow__string_entry__init(info->function_aliases[i]);
        info->function_aliases[i]->key = text(model->aliases[i].function);
        info->function_aliases[i]->value = text(model->aliases[i].alias);
    }
    meta->meta_info_def = info;
    return TARE_OK;
}

/* ---- saver, assets, collections ---- */

static tare_status export_saver(Tensorflow__MetaGraphDef *meta, struct tare_arena *arena,
                                const struct tare_saver *saver) {
    meta->saver_def = NULL;
    if (!saver->restore_op) return TARE_OK;
    meta->saver_def = TARE_NEW(arena, Tensorflow__SaverDef);
    if (!meta->saver_def) return TARE_NO_MEMORY;
    tensorflow__saver_def__init(meta->saver_def);
    meta->saver_def->filename_tensor_name = text(saver->filename_tensor);
    meta->saver_def->save_tensor_name = text(saver->save_tensor);
    meta->saver_def->restore_op_name = text(saver->restore_op);
    meta->saver_def->version = TENSORFLOW__SAVER_DEF__CHECKPOINT_FORMAT_VERSION__V2;
    return TARE_OK;
}

/* Only the collections that loaders of TF1 models read: lists of variables and contexts would name removed nodes. */
static tare_status export_collections(Tensorflow__MetaGraphDef *meta, struct tare_arena *arena,
                                      const Tensorflow__MetaGraphDef *origin) {
    static const char *const kept[] = { "saved_model_main_op", "legacy_init_op", "saved_model_assets",
                                        "table_initializer" };
    meta->collection_def = NULL;
    meta->n_collection_def = 0;
    if (!origin || !origin->n_collection_def) return TARE_OK;
    meta->collection_def =
        TARE_NEW_ARRAY(arena, Tensorflow__MetaGraphDef__CollectionDefEntry *, origin->n_collection_def);
    if (!meta->collection_def) return TARE_NO_MEMORY;
    for (size_t i = 0; i < origin->n_collection_def; i++)
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            if (strcmp(origin->collection_def[i]->key, kept[k]) == 0)
                meta->collection_def[meta->n_collection_def++] = origin->collection_def[i];
    return TARE_OK;
}

tare_status tare_export_meta(Tensorflow__MetaGraphDef **out, struct tare_arena *arena,
                             const struct tare_graph_model *model, const Tensorflow__MetaGraphDef *origin,
                             const struct tare_saver *saver) {
    Tensorflow__MetaGraphDef *meta = TARE_NEW(arena, Tensorflow__MetaGraphDef);
    if (!meta) return TARE_NO_MEMORY;
    tensorflow__meta_graph_def__init(meta);
    if (origin) *meta = *origin;
    TARE_TRY(export_signatures(meta, arena, model, origin));
    TARE_TRY(export_info(meta, arena, model, origin));
    TARE_TRY(export_collections(meta, arena, origin));
    *out = meta;
    return export_saver(meta, arena, saver);
}
