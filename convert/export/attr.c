/* struct tare_attr -> AttrValue. */
#include "convert/export/export.h"
#include "proto/tensor_message.h"

#include <string.h>

static ProtobufCBinaryData bytes_of(struct tare_str text) {
    return (ProtobufCBinaryData){ text.size, (uint8_t *)(uintptr_t)text.data };
}

static tare_status export_func(Tensorflow__NameAttrList **out, struct tare_arena *arena, const struct tare_func *func) {
    const size_t count = func->own ? func->own->count : 0;
    Tensorflow__NameAttrList *list = TARE_NEW(arena, Tensorflow__NameAttrList);
    if (!list) return TARE_NO_MEMORY;
    tensorflow__name_attr_list__init(list);
    list->name = (char *)(uintptr_t)func->name;
    list->attr = TARE_NEW_ARRAY(arena, Tensorflow__AttrEntry *, count + 1);
    if (!list->attr) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Tensorflow__AttrEntry *entry = TARE_NEW(arena, Tensorflow__AttrEntry);
        if (!entry) return TARE_NO_MEMORY;
        tensorflow__attr_entry__init(entry);
        entry->key = (char *)(uintptr_t)func->own->attrs[i].name;
        TARE_TRY(tare_export_attr(&entry->value, arena, &func->own->attrs[i]));
        list->attr[list->n_attr++] = entry;
    }
    *out = list;
    return TARE_OK;
}

/* ---- lists: the items of one kind go into the list message's array of that kind ---- */

static tare_status export_strings(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                                  const struct tare_attr *attr) {
    list->s = TARE_NEW_ARRAY(arena, ProtobufCBinaryData, attr->count + 1);
    if (!list->s) return TARE_NO_MEMORY;
    for (; list->n_s < attr->count; list->n_s++)
        list->s[list->n_s] = bytes_of(attr->items[list->n_s].s);
    return TARE_OK;
}

static tare_status export_ints(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                               const struct tare_attr *attr) {
    list->i = TARE_NEW_ARRAY(arena, int64_t, attr->count + 1);
    if (!list->i) return TARE_NO_MEMORY;
    for (; list->n_i < attr->count; list->n_i++)
        list->i[list->n_i] = attr->items[list->n_i].i;
    return TARE_OK;
}

static tare_status export_floats(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                                 const struct tare_attr *attr) {
    list->f = TARE_NEW_ARRAY(arena, float, attr->count + 1);
    if (!list->f) return TARE_NO_MEMORY;
    for (; list->n_f < attr->count; list->n_f++)
        list->f[list->n_f] = attr->items[list->n_f].f;
    return TARE_OK;
}

static tare_status export_bools(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                                const struct tare_attr *attr) {
    list->b = TARE_NEW_ARRAY(arena, protobuf_c_boolean, attr->count + 1);
    if (!list->b) return TARE_NO_MEMORY;
    for (; list->n_b < attr->count; list->n_b++)
        list->b[list->n_b] = attr->items[list->n_b].b;
    return TARE_OK;
}

static tare_status export_types(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                                const struct tare_attr *attr) {
    list->type = TARE_NEW_ARRAY(arena, Tensorflow__DataType, attr->count + 1);
    if (!list->type) return TARE_NO_MEMORY;
    for (; list->n_type < attr->count; list->n_type++)
        list->type[list->n_type] = (Tensorflow__DataType)attr->items[list->n_type].type;
    return TARE_OK;
}

static tare_status export_shapes(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                                 const struct tare_attr *attr) {
    list->shape = TARE_NEW_ARRAY(arena, Tensorflow__TensorShapeProto *, attr->count + 1);
    if (!list->shape) return TARE_NO_MEMORY;
    for (; list->n_shape < attr->count; list->n_shape++) {
        list->shape[list->n_shape] = tare_shape_to_message(arena, attr->items[list->n_shape].shape);
        if (!list->shape[list->n_shape]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status export_tensors(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                                  const struct tare_attr *attr) {
    list->tensor = TARE_NEW_ARRAY(arena, Tensorflow__TensorProto *, attr->count + 1);
    if (!list->tensor) return TARE_NO_MEMORY;
    for (; list->n_tensor < attr->count; list->n_tensor++)
        TARE_TRY(tare_tensor_to_message(&list->tensor[list->n_tensor], arena, attr->items[list->n_tensor].tensor,
                                        TARE_TENSOR_BORROW));
    return TARE_OK;
}

static tare_status export_funcs(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                                const struct tare_attr *attr) {
    list->func = TARE_NEW_ARRAY(arena, Tensorflow__NameAttrList *, attr->count + 1);
    if (!list->func) return TARE_NO_MEMORY;
    for (; list->n_func < attr->count; list->n_func++)
        TARE_TRY(export_func(&list->func[list->n_func], arena, &attr->items[list->n_func].func));
    return TARE_OK;
}

static tare_status export_list(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                               const struct tare_attr *attr) {
    switch (attr->kind) {
    case TARE_ATTR_STRING:
        return export_strings(list, arena, attr);
    case TARE_ATTR_INT:
        return export_ints(list, arena, attr);
    case TARE_ATTR_FLOAT:
        return export_floats(list, arena, attr);
    case TARE_ATTR_BOOL:
        return export_bools(list, arena, attr);
    case TARE_ATTR_TYPE:
        return export_types(list, arena, attr);
    case TARE_ATTR_SHAPE:
        return export_shapes(list, arena, attr);
    case TARE_ATTR_TENSOR:
        return export_tensors(list, arena, attr);
    case TARE_ATTR_FUNC:
        return export_funcs(list, arena, attr);
    default:
        return TARE_OK; /* an empty list has no kind */
    }
}

/* ---- one value ---- */

tare_status tare_export_attr(Tensorflow__AttrValue **out, struct tare_arena *arena, const struct tare_attr *attr) {
    Tensorflow__AttrValue *value;
    const union tare_attr_item *item = attr->items;
    if (attr->origin) {
        *out = (Tensorflow__AttrValue *)(uintptr_t)attr->origin;
        return TARE_OK;
    }
    *out = value = TARE_NEW(arena, Tensorflow__AttrValue);
    if (!value) return TARE_NO_MEMORY;
    tensorflow__attr_value__init(value);
    if (attr->is_list) {
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_LIST;
        value->list = TARE_NEW(arena, Tensorflow__AttrValue__ListValue);
        if (!value->list) return TARE_NO_MEMORY;
        tensorflow__attr_value__list_value__init(value->list);
        return export_list(value->list, arena, attr);
    }
    if (!attr->count) return TARE_OK;
    switch (attr->kind) {
    case TARE_ATTR_STRING:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_S;
        value->s = bytes_of(item->s);
        break;
    case TARE_ATTR_INT:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_I;
        value->i = item->i;
        break;
    case TARE_ATTR_FLOAT:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_F;
        value->f = item->f;
        break;
    case TARE_ATTR_BOOL:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_B;
        value->b = item->b;
        break;
    case TARE_ATTR_TYPE:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_TYPE;
        value->type = (Tensorflow__DataType)item->type;
        break;
    case TARE_ATTR_SHAPE:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_SHAPE;
        value->shape = tare_shape_to_message(arena, item->shape);
        return value->shape ? TARE_OK : TARE_NO_MEMORY;
    case TARE_ATTR_TENSOR:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_TENSOR;
        return tare_tensor_to_message(&value->tensor, arena, item->tensor, TARE_TENSOR_BORROW);
    case TARE_ATTR_FUNC:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_FUNC;
        return export_func(&value->func, arena, &item->func);
    case TARE_ATTR_PLACEHOLDER:
        value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER;
        value->placeholder = (char *)(uintptr_t)item->s.data;
        break;
    case TARE_ATTR_NONE:
        break;
    }
    return TARE_OK;
}
