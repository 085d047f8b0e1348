/* Signatures of a MetaGraphDef. Composite tensors become their components. */
#include "convert/import/edges.h"
#include "convert/import/import.h"
#include "convert/source.h"
#include "proto/tensor_message.h"

#include <stdlib.h>
#include <string.h>

struct binding_list {
    struct tare_graph_model *model;
    struct tare_binding *items; /* as many as `count_components` says */
    size_t count;
};

static tare_status add_binding(struct binding_list *list, const char *key, int dtype,
                               const Tensorflow__TensorShapeProto *shape, const char *name) {
    struct tare_binding *binding = &list->items[list->count];
    *binding = (struct tare_binding){ .key = key, .dtype = dtype, .shape = tare_shape_unknown() };
    if (!key) return TARE_NO_MEMORY;
    if (shape) TARE_TRY(tare_shape_from_message(&binding->shape, shape));
    list->count++;
    if (!*name) return TARE_OK; /* not bound: some exporters write optional inputs this way */
    return tare_import_tensor_name(&binding->edge, list->model, name);
}

/* ---- components of composite tensors ---- */

static const Tensorflow__TensorInfo__CompositeTensor *composite_of(const Tensorflow__TensorInfo *info) {
    return info && info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_COMPOSITE_TENSOR ? info->composite_tensor
                                                                                             : NULL;
}

static size_t count_components(const Tensorflow__TensorInfo *info) {
    if (info && info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_COO_SPARSE) return 3;
    return composite_of(info) ? composite_of(info)->n_components : 1;
}

/* The names that Python has for the components, in the order in which TensorFlow flattens them. */
static const char *component_name(struct tare_arena *arena, const char *key, int class, size_t i, size_t count) {
    static const char *const sparse[] = { "indices", "values", "dense_shape" }, *const slices[] = { "values", "indices",
                                                                                                    "dense_shape" };
    switch (class) {
    case TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__SPARSE_TENSOR_SPEC:
    case TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__INDEXED_SLICES_SPEC:
        if (i >= 3) break;
        return tare_arena_printf(arena, "%s.%s", key,
                                 class == TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__SPARSE_TENSOR_SPEC ? sparse[i]
                                                                                                           : slices[i]);
    case TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__RAGGED_TENSOR_SPEC:
        if (i == 0) return tare_arena_printf(arena, "%s.%s", key, count > 2 ? "flat_values" : "values");
        return count > 2 ? tare_arena_printf(arena, "%s.row_splits_%zu", key, i - 1)
                         : tare_arena_printf(arena, "%s.row_splits", key);
    default:
        break;
    }
    return tare_arena_printf(arena, "%s.component_%zu", key, i);
}

static const char *kind_of(int class) {
    switch (class) {
    case TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__SPARSE_TENSOR_SPEC:
        return "SparseTensor";
    case TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__RAGGED_TENSOR_SPEC:
        return "RaggedTensor";
    case TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__INDEXED_SLICES_SPEC:
        return "IndexedSlices";
    default:
        return "CompositeTensor";
    }
}

static tare_status import_sparse(struct binding_list *list, const char *key, const Tensorflow__TensorInfo *info) {
    const Tensorflow__TensorInfo__CooSparse *sparse = info->coo_sparse;
    const char *const names[] = { sparse->indices_tensor_name, sparse->values_tensor_name,
                                  sparse->dense_shape_tensor_name };
    const int class = TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__SPARSE_TENSOR_SPEC;
    for (size_t i = 0; i < 3; i++)
        TARE_TRY(add_binding(list, component_name(&list->model->arena, key, class, i, 3),
                             i == 1 ? (int)info->dtype : TARE_DT_INT64, NULL, names[i]));
    return TARE_OK;
}

static tare_status import_composite(struct binding_list *list, const char *key, int class,
                                    const Tensorflow__TensorInfo__CompositeTensor *composite) {
    for (size_t i = 0; i < composite->n_components; i++) {
        const Tensorflow__TensorInfo *part = composite->components[i];
        const char *name = component_name(&list->model->arena, key, class, i, composite->n_components);
        if (part->encoding_case != TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
            return TARE_FAIL(TARE_UNSUPPORTED, "component %zu is not a tensor", i);
        TARE_TRY(add_binding(list, name, (int)part->dtype, part->tensor_shape, part->name));
    }
    return TARE_OK;
}

static tare_status import_whole(struct binding_list *list, const char *key, const Tensorflow__TensorInfo *info) {
    const Tensorflow__TensorInfo__CompositeTensor *composite = composite_of(info);
    const int class = composite ? composite->type_spec ? (int)composite->type_spec->type_spec_class : 0
                                : TENSORFLOW__TYPE_SPEC_PROTO__TYPE_SPEC_CLASS__SPARSE_TENSOR_SPEC;
    struct tare_composite_tensor *whole = TARE_NEW(&list->model->arena, struct tare_composite_tensor);
    const size_t first = list->count;
    if (!whole) return TARE_NO_MEMORY;
    *whole = (struct tare_composite_tensor){ .key = key, .kind = kind_of(class) };
    TARE_TRY(composite ? import_composite(list, key, class, composite) : import_sparse(list, key, info));
    for (size_t i = first; i < list->count; i++) {
        list->items[i].whole = whole;
        list->items[i].part = i - first;
    }
    return TARE_OK;
}

static tare_status import_binding(struct binding_list *list, const char *key, const Tensorflow__TensorInfo *info) {
    if (!info) return TARE_FAIL(TARE_CORRUPT, "no tensor");
    switch (info->encoding_case) {
    case TENSORFLOW__TENSOR_INFO__ENCODING_COO_SPARSE:
    case TENSORFLOW__TENSOR_INFO__ENCODING_COMPOSITE_TENSOR:
        return import_whole(list, key, info);
    case TENSORFLOW__TENSOR_INFO__ENCODING_NAME:
        return add_binding(list, key, (int)info->dtype, info->tensor_shape, info->name);
    default:
        return add_binding(list, key, (int)info->dtype, info->tensor_shape, "");
    }
}

/* Maps have no order: by key, components in theirs. */
static int compare_bindings(const void *a, const void *b) {
    const struct tare_binding *x = a, *y = b;
    if (x->whole && x->whole == y->whole) return x->part < y->part ? -1 : x->part > y->part;
    return strcmp(x->key, y->key);
}

static tare_status import_bindings(struct tare_binding **out, size_t *count, struct tare_graph_model *model,
                                   Tensorflow__TensorInfoEntry *const *entries, size_t n_entries) {
    struct binding_list list = { .model = model };
    size_t most = 0;
    for (size_t i = 0; i < n_entries; i++)
        most += count_components(entries[i]->value);
    list.items = TARE_NEW_ARRAY(&model->arena, struct tare_binding, most + 1);
    if (!list.items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_entries; i++)
        TARE_TRY(tare_error_prefix(import_binding(&list, entries[i]->key, entries[i]->value), "%s", entries[i]->key));
    qsort(list.items, list.count, sizeof *list.items, compare_bindings);
    *out = list.items;
    *count = list.count;
    return TARE_OK;
}

/* ---- signatures ---- */

static tare_status import_signature(struct tare_signature *out, struct tare_graph_model *model, const char *key,
                                    const Tensorflow__SignatureDef *def) {
    out->key = key;
    out->method_name = def->method_name;
    out->origin = def;
    TARE_TRY(import_bindings(&out->inputs, &out->n_inputs, model, def->inputs, def->n_inputs));
    return import_bindings(&out->outputs, &out->n_outputs, model, def->outputs, def->n_outputs);
}

static int compare_signatures(const void *a, const void *b) {
    return strcmp(((const struct tare_signature *)a)->key, ((const struct tare_signature *)b)->key);
}

static const char INIT_OP[] = "__saved_model_init_op", TRAIN_OP[] = "__saved_model_train_op";

/* The init op is stored as a signature with one output, which names a node. */
static tare_status import_init_signature(struct tare_graph_model *model, const Tensorflow__SignatureDef *def) {
    const Tensorflow__TensorInfo *info = def->n_outputs == 1 ? def->outputs[0]->value : NULL;
    struct tare_edge edge;
    const char *name = info && info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_NAME ? info->name : "";
    model->init_node = tare_graph_find(model->main, name);
    if (model->init_node) return TARE_OK;
    TARE_TRY(tare_import_tensor_name(&edge, model, name));
    model->init_node = edge.node;
    return TARE_OK;
}

/* Reports an error of a signature if errors are collected; otherwise prefixes it with the signature's name. */
static tare_status at_signature(const struct tare_saved_model *source, const char *key, tare_status status) {
    TARE_TRY(tare_error_prefix(tare_import_fault(source->faults, status, "signature %s", key), "signature %s", key));
    return TARE_OK;
}

tare_status tare_import_signatures(struct tare_graph_model *model, const struct tare_saved_model *source) {
    const Tensorflow__MetaGraphDef *meta = source->meta;
    size_t count;
    model->signatures = TARE_NEW_ARRAY(&model->arena, struct tare_signature, meta->n_signature_def + 1);
    if (!model->signatures) return TARE_NO_MEMORY;
    for (size_t i = 0; i < meta->n_signature_def; i++) {
        const char *key = meta->signature_def[i]->key;
        const Tensorflow__SignatureDef *def = meta->signature_def[i]->value;
        if (!def) continue;
        if (strcmp(key, INIT_OP) == 0) {
            TARE_TRY(at_signature(source, key, import_init_signature(model, def)));
            continue;
        }
        if (strcmp(key, TRAIN_OP) == 0) continue;
        count = source->faults ? source->faults->count : 0;
        TARE_TRY(at_signature(source, key, import_signature(&model->signatures[model->n_signatures], model, key, def)));
        model->n_signatures += !source->faults || source->faults->count == count;
    }
    qsort(model->signatures, model->n_signatures, sizeof *model->signatures, compare_signatures);
    return TARE_OK;
}
