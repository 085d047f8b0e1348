#include "support/attrs_text.h"

#include "graph/definitions/opdef.h"
#include "support/tensor_text.h"

#include <ctype.h>
#include <string.h>

/* Finds the end of one attribute: a ';' outside quotes and brackets, or the end of the text. */
static const char *end_of_attr(const char *at) {
    int depth = 0;
    char quote = '\0';
    for (; *at != '\0'; at++) {
        if (quote != '\0') {
            if (*at == '\\' && at[1] != '\0')
                at++;
            else if (*at == quote)
                quote = '\0';
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
        } else if (strchr("[{(", *at)) {
            depth++;
        } else if (strchr("]})", *at)) {
            depth--;
        } else if (*at == ';' && depth == 0) {
            break;
        }
    }
    return at;
}

/* "name" or "[name, name]". */
static tare_status add_functions(struct tare_node *node, struct tare_opspec_memory *memory, const char *name,
                                 bool is_list, const char *value, const char *end) {
    struct tare_attr attr = { .name = name, .kind = TARE_ATTR_FUNC, .is_list = is_list };
    const size_t room = (size_t)(end - value) + 1;
    union tare_attr_item *items = TARE_NEW_ARRAY(&memory->arena, union tare_attr_item, room);
    if (!items) return TARE_NO_MEMORY;
    while (value < end) {
        const size_t size = strcspn(value, " \t,;[]");
        if (value + size > end || size == 0) {
            value++;
            continue;
        }
        items[attr.count].func.name = tare_arena_strndup(&memory->arena, value, size);
        if (!items[attr.count++].func.name) return TARE_NO_MEMORY;
        value += size;
    }
    attr.items = items;
    const struct tare_node from = { .attrs = &attr, .n_attrs = 1 };
    return tare_node_copy_attrs(node, &from);
}

static tare_status add_attr(struct tare_node *node, struct tare_opspec_memory *memory, const char *text,
                            const char *end) {
    while (text < end && isspace((unsigned char)*text))
        text++;
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    if (text == end) return TARE_OK;
    const char *colon = memchr(text, ':', (size_t)(end - text));
    if (!colon) return TARE_FAIL(TARE_INVALID_ARGUMENT, "attribute '%.*s' has no ':'", (int)(end - text), text);
    const struct tare_op_attr *spec = tare_op_def_find_attr(node->def, text, (size_t)(colon - text));
    if (!spec) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the op has no attribute '%.*s'", (int)(colon - text), text);
    const char *value = colon + 1;
    while (value < end && isspace((unsigned char)*value))
        value++;
    if (spec->kind == TARE_ATTR_SHAPE && !spec->is_list && *value == '[') {
        struct tare_shape shape;
        TARE_TRY(shape_from_text(&shape, value, &value));
        return tare_node_set_shape(node, spec->name, &shape);
    }
    if (spec->kind == TARE_ATTR_FUNC && *value != '{')
        return add_functions(node, memory, spec->name, spec->is_list, value, end);
    struct tare_attr *attr = tare_opspec_parse_value(memory, spec->kind, spec->is_list, value, (size_t)(end - value));
    if (!attr)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attribute %s: '%.*s' is no value of its kind", spec->name,
                         (int)(end - value), value);
    attr->name = spec->name;
    const struct tare_node from = { .attrs = attr, .n_attrs = 1 };
    return tare_node_copy_attrs(node, &from);
}

tare_status attrs_from_text(struct tare_node *node, struct tare_opspec_memory *memory, const char *attrs) {
    while (attrs && *attrs != '\0') {
        const char *end = end_of_attr(attrs);
        TARE_TRY(add_attr(node, memory, attrs, end));
        attrs = *end ? end + 1 : end;
    }
    return TARE_OK;
}
