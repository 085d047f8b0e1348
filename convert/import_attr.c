/* AttrValue -> struct tare_attr. */
#include "convert/import.h"
#include "proto/tensor_message.h"

#include <string.h>

static tare_status copy_string(struct tare_str *out, struct tare_model *model, ProtobufCBinaryData data) {
    const char *copy = tare_arena_strndup(&model->arena, (const char *)data.data, data.len);
    if (!copy) return TARE_NO_MEMORY;
    *out = (struct tare_str){ copy, data.len };
    return TARE_OK;
}

static tare_status import_tensor(struct tare_tensor **out, struct tare_model *model,
                                 const Tensorflow__TensorProto *message) {
    struct tare_tensor tensor;
    TARE_TRY(tare_tensor_from_message(&tensor, message, TARE_TENSOR_BORROW));
    *out = tare_model_keep_tensor(model, &tensor);
    tare_tensor_reset(&tensor);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status import_func(struct tare_func *out, struct tare_model *model, const Tensorflow__NameAttrList *func) {
    size_t capacity;
    out->name = func->name;
    return tare_import_attrs(&out->attrs, &out->n_attrs, &capacity, model, func->attr,
                             func->n_attr);
}

/* The lists of an AttrValue.ListValue in turn: kind and length of the one that is set. */
static enum tare_attr_kind list_kind(const Tensorflow__AttrValue__ListValue *list, size_t *count) {
    const struct {
        enum tare_attr_kind kind;
        size_t count;
    } lists[] = {
        { TARE_ATTR_STRING, list->n_s }, { TARE_ATTR_INT, list->n_i },       { TARE_ATTR_FLOAT, list->n_f },
        { TARE_ATTR_BOOL, list->n_b },   { TARE_ATTR_TYPE, list->n_type },   { TARE_ATTR_SHAPE, list->n_shape },
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

static tare_status import_list(struct tare_attr *out, struct tare_model *model,
                               const Tensorflow__AttrValue__ListValue *list) {
    out->is_list = true;
    out->kind = list_kind(list, &out->count);
    out->items = TARE_NEW_ARRAY(&model->arena, union tare_attr_item, out->count ? out->count : 1);
    if (!out->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->count; i++) {
        union tare_attr_item *item = &out->items[i];
        switch (out->kind) {
        case TARE_ATTR_STRING: TARE_TRY(copy_string(&item->s, model, list->s[i])); break;
        case TARE_ATTR_INT: item->i = list->i[i]; break;
        case TARE_ATTR_FLOAT: item->f = list->f[i]; break;
        case TARE_ATTR_BOOL: item->b = list->b[i]; break;
        case TARE_ATTR_TYPE: item->type = (int)list->type[i]; break;
        case TARE_ATTR_SHAPE: TARE_TRY(tare_shape_from_message(&item->shape, list->shape[i])); break;
        case TARE_ATTR_TENSOR: TARE_TRY(import_tensor(&item->tensor, model, list->tensor[i])); break;
        case TARE_ATTR_FUNC: TARE_TRY(import_func(&item->func, model, list->func[i])); break;
        default: break;
        }
    }
    return TARE_OK;
}

tare_status tare_import_attr(struct tare_attr *out, struct tare_model *model, const char *name,
                             const Tensorflow__AttrValue *value) {
    union tare_attr_item *item = TARE_NEW(&model->arena, union tare_attr_item);
    if (!item) return TARE_NO_MEMORY;
    *out = (struct tare_attr){ .name = name, .origin = value, .count = 1, .items = item };
    switch (value ? value->value_case : TENSORFLOW__ATTR_VALUE__VALUE__NOT_SET) {
    case TENSORFLOW__ATTR_VALUE__VALUE_S: out->kind = TARE_ATTR_STRING; return copy_string(&item->s, model, value->s);
    case TENSORFLOW__ATTR_VALUE__VALUE_I: out->kind = TARE_ATTR_INT; item->i = value->i; return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_F: out->kind = TARE_ATTR_FLOAT; item->f = value->f; return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_B: out->kind = TARE_ATTR_BOOL; item->b = value->b; return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_TYPE: out->kind = TARE_ATTR_TYPE; item->type = (int)value->type; return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_SHAPE:
        out->kind = TARE_ATTR_SHAPE;
        return tare_shape_from_message(&item->shape, value->shape);
    case TENSORFLOW__ATTR_VALUE__VALUE_TENSOR:
        out->kind = TARE_ATTR_TENSOR;
        return import_tensor(&item->tensor, model, value->tensor);
    case TENSORFLOW__ATTR_VALUE__VALUE_FUNC:
        out->kind = TARE_ATTR_FUNC;
        return import_func(&item->func, model, value->func);
    case TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER:
        out->kind = TARE_ATTR_PLACEHOLDER;
        item->s = (struct tare_str){ value->placeholder, strlen(value->placeholder) };
        return TARE_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_LIST: return import_list(out, model, value->list);
    default: out->count = 0; return TARE_OK;
    }
}

tare_status tare_import_attrs(struct tare_attr **out, size_t *count, size_t *capacity, struct tare_model *model,
                              Tensorflow__AttrEntry *const *entries, size_t n_entries) {
    struct tare_attr *attrs = TARE_NEW_ARRAY(&model->arena, struct tare_attr, n_entries ? n_entries : 1);
    if (!attrs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_entries; i++)
        TARE_TRY(tare_error_prefix(tare_import_attr(&attrs[i], model, entries[i]->key, entries[i]->value), "attr %s",
                                   entries[i]->key));
    *out = attrs;
    *count = n_entries;
    *capacity = n_entries ? n_entries : 1;
    return TARE_OK;
}
