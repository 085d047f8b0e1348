/* AttrValue -> struct tare_attr. */
#include "convert/import/attr_pool.h"
#include "convert/import/import.h"
#include "proto/tensor_message.h"

#include <string.h>

static tare_status copy_string(struct tare_str *out, struct tare_graph_model *model, ProtobufCBinaryData data) {
    const char *copy = tare_arena_strndup(&model->arena, (const char *)data.data, data.len);
    if (!copy) return TARE_NO_MEMORY;
    *out = (struct tare_str){ copy, data.len };
    return TARE_OK;
}

/* Strings of a message that is freed are copied to the pool. */
static tare_status keep_text(const char **out, struct tare_graph_model *model, const char *text) {
    *out = model->pool ? tare_attr_pool_text(model->pool, text) : text;
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

/* Bytes. Larger constants of a model loaded for inspection are stored as a splat of their first element. */
enum { LARGEST_KEPT = 1024 };

/* A tensor without a buffer of its own, its elements in the model's arena. */
static tare_status place_tensor(struct tare_tensor **out, struct tare_graph_model *model,
                                const struct tare_tensor *tensor) {
    size_t bytes = tensor->splat ? tare_dtype_size(tensor->dtype) : tare_tensor_bytes(tensor);
    struct tare_tensor *view = tare_arena_extend(&model->arena, tensor, 1, 0, sizeof *tensor);
    if (!view) return TARE_NO_MEMORY;
    view->buffer = NULL;
    if (bytes > LARGEST_KEPT) {
        bytes = tare_dtype_size(tensor->dtype);
        view->splat = true;
    }
    if (tensor->elements) view->data = tare_arena_extend(&model->arena, tensor->data, 1, 0, bytes);
    if (tensor->elements && !view->data) return TARE_NO_MEMORY;
    *out = view;
    return TARE_OK;
}

static bool is_plain(int dtype) {
    return dtype != TARE_DT_STRING && dtype != TARE_DT_RESOURCE && dtype != TARE_DT_VARIANT && tare_dtype_size(dtype);
}

static tare_status import_tensor(struct tare_tensor **out, struct tare_graph_model *model,
                                 const Tensorflow__TensorProto *message) {
    struct tare_tensor tensor, copy = { 0 };
    tare_status status = tare_tensor_from_message(&tensor, message, TARE_TENSOR_BORROW);
    if (status != TARE_OK) return status;
    if (!model->pool) {
        *out = tare_model_keep_tensor(model, &tensor);
        status = *out ? TARE_OK : TARE_NO_MEMORY;
    } else if (is_plain(tensor.dtype)) {
        status = place_tensor(out, model, &tensor);
    } else {
        status = tare_tensor_copy(&copy, &tensor);
        *out = status == TARE_OK ? tare_model_keep_tensor(model, &copy) : NULL;
        tare_tensor_reset(&copy);
        if (status == TARE_OK && !*out) status = TARE_NO_MEMORY;
    }
    tare_tensor_reset(&tensor);
    return status;
}

static tare_status import_shape(const struct tare_shape **out, struct tare_graph_model *model,
                                const Tensorflow__TensorShapeProto *message) {
    struct tare_shape shape;
    TARE_TRY(tare_shape_from_message(&shape, message));
    *out = model->pool ? tare_attr_pool_shape(model->pool, &shape)
                       : tare_arena_extend(&model->arena, &shape, 1, 0, sizeof shape);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status import_func(struct tare_func *out, struct tare_graph_model *model,
                               const Tensorflow__NameAttrList *func) {
    struct tare_graph *callee = tare_model_find_function(model, func->name);
    out->graph = callee;
    if (callee)
        out->name = callee->name;
    else
        TARE_TRY(keep_text(&out->name, model, func->name));
    if (func->n_attr == 0) return TARE_OK;
    struct tare_attr_list *own = TARE_NEW(&model->arena, struct tare_attr_list);
    size_t capacity;
    out->own = own;
    if (!own) return TARE_NO_MEMORY;
    return tare_import_attrs(&own->attrs, &own->count, &capacity, model, func->attr, func->n_attr);
}

/* Kind and length of the list that is set in an AttrValue.ListValue. */
static enum tare_attr_kind list_kind(const Tensorflow__AttrValue__ListValue *list, size_t *count) {
    const struct {
        enum tare_attr_kind kind;
        size_t count;
    } lists[] = {
        { TARE_ATTR_STRING, list->n_s },      { TARE_ATTR_INT, list->n_i },     { TARE_ATTR_FLOAT, list->n_f },
        { TARE_ATTR_BOOL, list->n_b },        { TARE_ATTR_TYPE, list->n_type }, { TARE_ATTR_SHAPE, list->n_shape },
        { TARE_ATTR_TENSOR, list->n_tensor }, { TARE_ATTR_FUNC, list->n_func },
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!lists[i].count) continue;
        *count = lists[i].count;
        return lists[i].kind;
    }
    *count = 0;
    return TARE_ATTR_NONE;
}

static tare_status import_list(struct tare_attr *out, struct tare_graph_model *model,
                               const Tensorflow__AttrValue__ListValue *list) {
    out->is_list = true;
    out->kind = list_kind(list, &out->count);
    out->items = TARE_NEW_ARRAY(&model->arena, union tare_attr_item, out->count ? out->count : 1);
    if (!out->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->count; i++) {
        union tare_attr_item *item = &out->items[i];
        switch (out->kind) {
        case TARE_ATTR_STRING:
            TARE_TRY(copy_string(&item->s, model, list->s[i]));
            break;
        case TARE_ATTR_INT:
            item->i = list->i[i];
            break;
        case TARE_ATTR_FLOAT:
            item->f = list->f[i];
            break;
        case TARE_ATTR_BOOL:
            item->b = list->b[i];
            break;
        case TARE_ATTR_TYPE:
            item->type = (int)list->type[i];
            break;
        case TARE_ATTR_SHAPE:
            TARE_TRY(import_shape(&item->shape, model, list->shape[i]));
            break;
        case TARE_ATTR_TENSOR:
            TARE_TRY(import_tensor(&item->tensor, model, list->tensor[i]));
            break;
        case TARE_ATTR_FUNC:
            TARE_TRY(import_func(&item->func, model, list->func[i]));
            break;
        default:
            break;
        }
    }
    return TARE_OK;
}

/* `item` is storage for one value. */
static tare_status import_into(struct tare_attr *out, union tare_attr_item *item, struct tare_graph_model *model,
                               const char *name, const Tensorflow__AttrValue *value) {
    *out = (struct tare_attr){ .origin = model->pool ? NULL : value, .count = 1, .items = item };
    TARE_TRY(keep_text(&out->name, model, name));
    switch (value ? value->value_case : TENSORFLOW__ATTR_VALUE__VALUE__NOT_SET) {
    case TENSORFLOW__ATTR_VALUE__VALUE_S:
        out->kind = TARE_ATTR_STRING;
        return copy_string(&item->s, model, value->s);
    case TENSORFLOW__ATTR_VALUE__VALUE_I:
        out->kind = TARE_ATTR_INT;
        item->i = value->i;
        return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_F:
        out->kind = TARE_ATTR_FLOAT;
        item->f = value->f;
        return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_B:
        out->kind = TARE_ATTR_BOOL;
        item->b = value->b;
        return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_TYPE:
        out->kind = TARE_ATTR_TYPE;
        item->type = (int)value->type;
        return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_SHAPE:
        out->kind = TARE_ATTR_SHAPE;
        return import_shape(&item->shape, model, value->shape);
    case TENSORFLOW__ATTR_VALUE__VALUE_TENSOR:
        out->kind = TARE_ATTR_TENSOR;
        return import_tensor(&item->tensor, model, value->tensor);
    case TENSORFLOW__ATTR_VALUE__VALUE_FUNC:
        out->kind = TARE_ATTR_FUNC;
        return import_func(&item->func, model, value->func);
    case TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER:
        out->kind = TARE_ATTR_PLACEHOLDER;
        TARE_TRY(keep_text(&item->s.data, model, value->placeholder));
        item->s.size = strlen(item->s.data);
        return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_LIST:
        return import_list(out, model, value->list);
    default:
        out->count = 0;
        return TARE_OK;
    }
}

tare_status tare_import_attr(struct tare_attr *out, struct tare_graph_model *model, const char *name,
                             const Tensorflow__AttrValue *value) {
    union tare_attr_item *item = TARE_NEW(&model->arena, union tare_attr_item);
    return item ? import_into(out, item, model, name, value) : TARE_NO_MEMORY;
}

tare_status tare_import_attrs(struct tare_attr **out, size_t *count, size_t *capacity, struct tare_graph_model *model,
                              Tensorflow__AttrEntry *const *entries, size_t n_entries) {
    struct one {
        struct tare_attr attr;
        union tare_attr_item item;
    };
    char *memory =
        tare_arena_calloc(&model->arena, n_entries, sizeof(struct one)); /* the attributes, followed by their items */
    struct tare_attr *attrs = (struct tare_attr *)memory;
    union tare_attr_item *items = (union tare_attr_item *)(memory + n_entries * sizeof *attrs);
    if (!memory) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_entries; i++)
        TARE_TRY(tare_error_prefix(import_into(&attrs[i], &items[i], model, entries[i]->key, entries[i]->value),
                                   "attr %s", entries[i]->key));
    *out = attrs;
    *count = *capacity = n_entries;
    return TARE_OK;
}
