/* Default values of attributes: from text format to struct tare_attr. */
#include "graph/definitions/opspec.h"
#include "graph/definitions/textvalue.h"
#include "base/tensor/number.h"

#include <string.h>

struct tare_opspec_tensor {
    struct tare_tensor tensor;
    struct tare_opspec_tensor *next;
};

enum { MOST_ELEMENTS = 1 << 20 };

void tare_opspec_memory_free(struct tare_opspec_memory *memory) {
    for (struct tare_opspec_tensor *kept = memory->tensors; kept; kept = kept->next)
        tare_tensor_reset(&kept->tensor);
    memory->tensors = NULL;
    tare_arena_free(&memory->arena);
}

static bool dim_of(int64_t *out, const struct tare_text_value *dim) {
    const struct tare_text_value *size = dim->kind == TARE_TEXT_MESSAGE ? tare_text_find(dim->fields, "size") : NULL;
    *out = 0;
    return dim->kind == TARE_TEXT_MESSAGE && (!size || tare_text_int(out, size));
}

static bool shape_of(struct tare_shape *out, const struct tare_text_value *value) {
    int64_t dims[TARE_MAX_RANK];
    int rank = 0;
    bool unknown = false;
    if (value->kind != TARE_TEXT_MESSAGE) return false;
    for (const struct tare_text_value *field = value->fields; field; field = field->next) {
        if (strcmp(field->name, "unknown_rank") == 0) {
            if (!tare_text_bool(&unknown, field)) return false;
        } else if (strcmp(field->name, "dim") != 0 || rank == TARE_MAX_RANK || !dim_of(&dims[rank++], field)) {
            return false;
        }
    }
    if (unknown) *out = tare_shape_unknown();
    return unknown ? rank == 0 : tare_shape_from_dims(out, rank, dims) == TARE_OK;
}

/* Element i of a tensor from one entry of a *_val field. */
static bool set_element(struct tare_tensor *tensor, int64_t i, const struct tare_text_value *value) {
    const struct tare_dtype_info *info = tare_dtype_get(tensor->dtype);
    int64_t number;
    double real;
    bool truth;
    switch (info->class) {
    case TARE_CLASS_FLOAT:
        if (tensor->dtype == TARE_DT_HALF || tensor->dtype == TARE_DT_BFLOAT16) { /* half_val holds the bits */
            if (!tare_text_int(&number, value)) return false;
            TARE_DATA(uint16_t, tensor)[i] = (uint16_t)number;
            return true;
        }
        if (info->size < 4 || !tare_text_float(&real, value)) return false;
        if (info->size == 4) TARE_DATA(float, tensor)[i] = (float)real;
        if (info->size == 8) TARE_DATA(double, tensor)[i] = real;
        return true;
    case TARE_CLASS_SIGNED:
    case TARE_CLASS_UNSIGNED:
    case TARE_CLASS_QUANTIZED:
        if (!tare_text_int(&number, value)) return false;
        memcpy((char *)tensor->data + (size_t)i * info->size, &number, info->size); /* little-endian */
        return true;
    case TARE_CLASS_BOOL:
        if (!tare_text_bool(&truth, value)) return false;
        TARE_DATA(uint8_t, tensor)[i] = truth;
        return true;
    case TARE_CLASS_STRING:
        return value->kind == TARE_TEXT_STRING &&
               tare_tensor_set_string(tensor, i, value->text.data, value->text.size) == TARE_OK;
    default:
        return false;
    }
}

static const char *value_field(int dtype) {
    switch (dtype) {
    case TARE_DT_FLOAT:
        return "float_val";
    case TARE_DT_DOUBLE:
        return "double_val";
    case TARE_DT_STRING:
        return "string_val";
    case TARE_DT_BOOL:
        return "bool_val";
    case TARE_DT_INT64:
        return "int64_val";
    case TARE_DT_UINT32:
        return "uint32_val";
    case TARE_DT_UINT64:
        return "uint64_val";
    case TARE_DT_HALF:
    case TARE_DT_BFLOAT16:
        return "half_val";
    default:
        return "int_val";
    }
}

/* Fills every element: the written ones, then the last of them again; none written: zeros. */
static bool fill(struct tare_tensor *tensor, const struct tare_text_value *fields) {
    const struct tare_text_value *content = tare_text_find(fields, "tensor_content");
    const char *name = value_field(tensor->dtype);
    const struct tare_text_value *entry = tare_text_find(fields, name), *next = entry;
    int64_t i = 0;
    if (content) {
        if (tensor->dtype == TARE_DT_STRING || content->kind != TARE_TEXT_STRING ||
            content->text.size != tare_tensor_bytes(tensor))
            return false;
        if (content->text.size) memcpy(tensor->data, content->text.data, content->text.size);
        return true;
    }
    if (!entry && tensor->dtype != TARE_DT_STRING && tensor->data) memset(tensor->data, 0, tare_tensor_bytes(tensor));
    for (; entry && i < tensor->elements; i++) {
        if (!set_element(tensor, i, next ? next : entry)) return false;
        if (next) entry = next;
        if (next) next = tare_text_find(next->next, name);
    }
    return !next;
}

static struct tare_tensor *tensor_of(struct tare_opspec_memory *memory, const struct tare_text_value *value) {
    struct tare_opspec_tensor *kept = TARE_NEW(&memory->arena, struct tare_opspec_tensor);
    const struct tare_text_value *field;
    struct tare_shape shape = tare_shape_scalar();
    int dtype = TARE_DT_INVALID;
    int64_t elements;
    if (!kept || value->kind != TARE_TEXT_MESSAGE) return NULL;
    if ((field = tare_text_find(value->fields, "dtype"))) dtype = tare_text_dtype(field);
    if ((field = tare_text_find(value->fields, "tensor_shape")) && !shape_of(&shape, field)) return NULL;
    if (tare_shape_elements(&elements, &shape) != TARE_OK || elements > MOST_ELEMENTS ||
        tare_tensor_new(&kept->tensor, dtype, &shape) != TARE_OK)
        return NULL;
    kept->next = memory->tensors;
    memory->tensors = kept;
    return fill(&kept->tensor, value->fields) ? &kept->tensor : NULL;
}

static bool item_of(struct tare_opspec_memory *memory, union tare_attr_item *item, enum tare_attr_kind kind,
                    const struct tare_text_value *value);

/* The kind of a field of AttrValue by its name; NONE for an unknown one. */
static enum tare_attr_kind kind_of_field(const char *name) {
    static const struct {
        const char *name;
        enum tare_attr_kind kind;
    } fields[] = {
        { "s", TARE_ATTR_STRING },      { "i", TARE_ATTR_INT },     { "f", TARE_ATTR_FLOAT },
        { "b", TARE_ATTR_BOOL },        { "type", TARE_ATTR_TYPE }, { "shape", TARE_ATTR_SHAPE },
        { "tensor", TARE_ATTR_TENSOR }, { "func", TARE_ATTR_FUNC }, { "placeholder", TARE_ATTR_PLACEHOLDER },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0) return fields[i].kind;
    return TARE_ATTR_NONE;
}

static bool items_of(struct tare_opspec_memory *memory, struct tare_attr *attr, const struct tare_text_value *first) {
    const struct tare_text_value *field;
    size_t count = 0;
    for (field = first; field; field = field->next)
        count++;
    attr->items = TARE_NEW_ARRAY(&memory->arena, union tare_attr_item, count ? count : 1);
    if (!attr->items) return false;
    for (field = first; field; field = field->next)
        if (!item_of(memory, &attr->items[attr->count++], attr->kind, field)) return false;
    return true;
}

/* An AttrValue message: one field with the value, or `list` with fields of one name. */
static bool attr_value_of(struct tare_opspec_memory *memory, struct tare_attr *attr,
                          const struct tare_text_value *value) {
    const struct tare_text_value *field = value->kind == TARE_TEXT_MESSAGE ? value->fields : NULL;
    if (!field) return value->kind == TARE_TEXT_MESSAGE;
    if (field->next) return false;
    attr->is_list = strcmp(field->name, "list") == 0;
    if (attr->is_list) {
        if (field->kind != TARE_TEXT_MESSAGE) return false;
        field = field->fields;
        for (const struct tare_text_value *other = field; other; other = other->next)
            if (strcmp(other->name, field->name) != 0) return false;
    }
    attr->kind = field ? kind_of_field(field->name) : TARE_ATTR_NONE;
    return (!field || attr->kind != TARE_ATTR_NONE) && items_of(memory, attr, field);
}

/* { name: 'f' attr { key: 'T' value { type: DT_FLOAT } } } */
static bool func_of(struct tare_opspec_memory *memory, struct tare_func *func, const struct tare_text_value *value) {
    const struct tare_text_value *field,
        *name = value->kind == TARE_TEXT_MESSAGE ? tare_text_find(value->fields, "name") : NULL;
    struct tare_attr_list *own = TARE_NEW(&memory->arena, struct tare_attr_list);
    size_t count = 0;
    if (value->kind != TARE_TEXT_MESSAGE || (name && name->kind != TARE_TEXT_STRING)) return false;
    func->name = name ? name->text.data : "";
    for (field = value->fields; (field = tare_text_find(field, "attr")); field = field->next)
        count++;
    func->own = own;
    if (!own || !(own->attrs = TARE_NEW_ARRAY(&memory->arena, struct tare_attr, count ? count : 1))) return false;
    for (field = value->fields; (field = tare_text_find(field, "attr")); field = field->next) {
        const struct tare_text_value *key, *content;
        struct tare_attr *attr = &own->attrs[own->count++];
        if (field->kind != TARE_TEXT_MESSAGE) return false;
        key = tare_text_find(field->fields, "key");
        content = tare_text_find(field->fields, "value");
        if (!key || key->kind != TARE_TEXT_STRING || !content || !attr_value_of(memory, attr, content)) return false;
        attr->name = key->text.data;
    }
    return true;
}

static bool item_of(struct tare_opspec_memory *memory, union tare_attr_item *item, enum tare_attr_kind kind,
                    const struct tare_text_value *value) {
    struct tare_shape *shape;
    double real;
    bool fine;
    switch (kind) {
    case TARE_ATTR_STRING:
    case TARE_ATTR_PLACEHOLDER:
        item->s = value->text;
        return value->kind == TARE_TEXT_STRING;
    case TARE_ATTR_INT:
        return tare_text_int(&item->i, value);
    case TARE_ATTR_FLOAT:
        fine = tare_text_float(&real, value);
        if (fine) item->f = (float)real;
        return fine;
    case TARE_ATTR_BOOL:
        return tare_text_bool(&item->b, value);
    case TARE_ATTR_TYPE:
        return (item->type = tare_text_dtype(value)) != TARE_DT_INVALID;
    case TARE_ATTR_SHAPE:
        shape = TARE_NEW(&memory->arena, struct tare_shape);
        item->shape = shape;
        return shape && shape_of(shape, value);
    case TARE_ATTR_TENSOR:
        return (item->tensor = tensor_of(memory, value));
    case TARE_ATTR_FUNC:
        return func_of(memory, &item->func, value);
    default:
        return false;
    }
}

/* Parses "[a, b]" into a linked list of values; false if the list is malformed. */
static bool read_list(struct tare_text_reader *reader, struct tare_text_value **first) {
    struct tare_text_value **tail = first;
    reader->at++;
    tare_text_skip(reader);
    while (reader->at < reader->end && *reader->at != ']') {
        if (!(*tail = tare_text_read(reader))) return false;
        tail = &(*tail)->next;
        tare_text_skip(reader);
        if (reader->at == reader->end || (*reader->at != ',' && *reader->at != ']')) return false;
        if (*reader->at == ']') break;
        reader->at++;
        tare_text_skip(reader);
        if (reader->at < reader->end && *reader->at == ']') return false; /* a trailing comma */
    }
    if (reader->at == reader->end) return false;
    reader->at++;
    return true;
}

struct tare_attr *tare_opspec_parse_value(struct tare_opspec_memory *memory, enum tare_attr_kind kind, bool is_list,
                                          const char *text, size_t size) {
    struct tare_text_reader reader = { .at = text, .end = text + size, .arena = &memory->arena };
    struct tare_attr *attr = TARE_NEW(&memory->arena, struct tare_attr);
    struct tare_text_value *first = NULL;
    if (!attr) return NULL;
    tare_text_skip(&reader);
    if (is_list) {
        if (reader.at == reader.end || *reader.at != '[' || !read_list(&reader, &first)) return NULL;
    } else if (!(first = tare_text_read(&reader))) {
        return NULL;
    }
    tare_text_skip(&reader);
    if (reader.at != reader.end) return NULL;
    attr->kind = kind;
    attr->is_list = is_list;
    return items_of(memory, attr, first) ? attr : NULL;
}
