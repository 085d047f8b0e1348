/* struct tare_attr -> AttrValue. */
#include "convert/export.h"
#include "proto/tensor_message.h"

#include <string.h>

static ProtobufCBinaryData bytes_of(struct tare_str text) {
    return (ProtobufCBinaryData){ text.size, (uint8_t *)(uintptr_t)text.data };
}

static tare_status export_func(Tensorflow__NameAttrList **out, struct tare_arena *arena, const struct tare_func *func) {
    Tensorflow__NameAttrList *list = TARE_NEW(arena, Tensorflow__NameAttrList);
    if (!list) return TARE_NO_MEMORY;
    tensorflow__name_attr_list__init(list);
    list->name = (char *)(uintptr_t)func->name;
    list->attr = TARE_NEW_ARRAY(arena, Tensorflow__AttrEntry *, func->n_attrs + 1);
    if (!list->attr) return TARE_NO_MEMORY;
    for (size_t i = 0; i < func->n_attrs; i++) {
        Tensorflow__AttrEntry *entry = TARE_NEW(arena, Tensorflow__AttrEntry);
        if (!entry) return TARE_NO_MEMORY;
        tensorflow__attr_entry__init(entry);
        entry->key = (char *)(uintptr_t)func->attrs[i].name;
        TARE_TRY(tare_export_attr(&entry->value, arena, &func->attrs[i]));
        list->attr[list->n_attr++] = entry;
    }
    *out = list;
    return TARE_OK;
}

/* Items of one kind into the array of the list message that holds that kind. */
static tare_status export_list(Tensorflow__AttrValue__ListValue *list, struct tare_arena *arena,
                               const struct tare_attr *attr) {
    size_t n = attr->count;
#define FILL(field, type, expression)                                                                                  \
    do {                                                                                                               \
        list->field = TARE_NEW_ARRAY(arena, type, n + 1);                                                              \
        if (!list->field) return TARE_NO_MEMORY;                                                                       \
        list->n_##field = n;                                                                                           \
        for (size_t i = 0; i < n; i++)                                                                                 \
            list->field[i] = (expression);                                                                             \
    } while (0)
#define FILL_BY(field, type, call)                                                                                     \
    do {                                                                                                               \
        list->field = TARE_NEW_ARRAY(arena, type, n + 1);                                                              \
        if (!list->field) return TARE_NO_MEMORY;                                                                       \
        list->n_##field = n;                                                                                           \
        for (size_t i = 0; i < n; i++)                                                                                 \
            TARE_TRY(call);                                                                                            \
    } while (0)
    switch (attr->kind) {
    case TARE_ATTR_STRING:
        FILL(s, ProtobufCBinaryData, bytes_of(attr->items[i].s));
        break;
    case TARE_ATTR_INT:
        FILL(i, int64_t, attr->items[i].i);
        break;
    case TARE_ATTR_FLOAT:
        FILL(f, float, attr->items[i].f);
        break;
    case TARE_ATTR_BOOL:
        FILL(b, protobuf_c_boolean, attr->items[i].b);
        break;
    case TARE_ATTR_TYPE:
        FILL(type, Tensorflow__DataType, (Tensorflow__DataType)attr->items[i].type);
        break;
    case TARE_ATTR_SHAPE:
        FILL(shape, Tensorflow__TensorShapeProto *, tare_shape_to_message(arena, attr->items[i].shape));
        break;
    case TARE_ATTR_TENSOR:
        FILL_BY(tensor, Tensorflow__TensorProto *,
                tare_tensor_to_message(&list->tensor[i], arena, attr->items[i].tensor, TARE_TENSOR_BORROW));
        break;
    case TARE_ATTR_FUNC:
        FILL_BY(func, Tensorflow__NameAttrList *, export_func(&list->func[i], arena, &attr->items[i].func));
        break;
    default:
        break; /* an empty list of no kind */
    }
#undef FILL
#undef FILL_BY
    return TARE_OK;
}

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
#define CASE(kind) value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_##kind
    if (attr->is_list) {
        CASE(LIST);
        value->list = TARE_NEW(arena, Tensorflow__AttrValue__ListValue);
        if (!value->list) return TARE_NO_MEMORY;
        tensorflow__attr_value__list_value__init(value->list);
        return export_list(value->list, arena, attr);
    }
    if (!attr->count) return TARE_OK;
    switch (attr->kind) {
    case TARE_ATTR_STRING:
        CASE(S);
        value->s = bytes_of(item->s);
        break;
    case TARE_ATTR_INT:
        CASE(I);
        value->i = item->i;
        break;
    case TARE_ATTR_FLOAT:
        CASE(F);
        value->f = item->f;
        break;
    case TARE_ATTR_BOOL:
        CASE(B);
        value->b = item->b;
        break;
    case TARE_ATTR_TYPE:
        CASE(TYPE);
        value->type = (Tensorflow__DataType)item->type;
        break;
    case TARE_ATTR_SHAPE:
        CASE(SHAPE);
        value->shape = tare_shape_to_message(arena, item->shape);
        return value->shape ? TARE_OK : TARE_NO_MEMORY;
    case TARE_ATTR_TENSOR:
        CASE(TENSOR);
        return tare_tensor_to_message(&value->tensor, arena, item->tensor, TARE_TENSOR_BORROW);
    case TARE_ATTR_FUNC:
        CASE(FUNC);
        return export_func(&value->func, arena, &item->func);
    case TARE_ATTR_PLACEHOLDER:
        CASE(PLACEHOLDER);
        value->placeholder = (char *)(uintptr_t)item->s.data;
        break;
    case TARE_ATTR_NONE:
        break;
    }
#undef CASE
    return TARE_OK;
}
