/* Attributes in messages, and their equality. */
#include "graph/attr_text.h"

#include <string.h>

enum { MOST_PRINTED = 16 };

const char *tare_attr_kind_name(enum tare_attr_kind kind, bool is_list) {
    static const char *const names[][2] = {
        [TARE_ATTR_NONE] = { "any", "list(any)" },
        [TARE_ATTR_STRING] = { "string", "list(string)" },
        [TARE_ATTR_INT] = { "int", "list(int)" },
        [TARE_ATTR_FLOAT] = { "float", "list(float)" },
        [TARE_ATTR_BOOL] = { "bool", "list(bool)" },
        [TARE_ATTR_TYPE] = { "type", "list(type)" },
        [TARE_ATTR_SHAPE] = { "shape", "list(shape)" },
        [TARE_ATTR_TENSOR] = { "tensor", "list(tensor)" },
        [TARE_ATTR_FUNC] = { "func", "list(func)" },
        [TARE_ATTR_PLACEHOLDER] = { "placeholder", "list(placeholder)" },
    };
    return names[kind][is_list];
}

static void print_tensor(struct tare_strbuf *text, const struct tare_tensor *tensor) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    tare_strbuf_printf(text, "Tensor<type: %s shape: %s>", tare_dtype_name(tensor->dtype),
                       tare_shape_text(shape, &tensor->shape));
}

void tare_attr_print_item(struct tare_strbuf *text, enum tare_attr_kind kind, const union tare_attr_item *item) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    switch (kind) {
    case TARE_ATTR_NONE:
        break;
    case TARE_ATTR_STRING:
        tare_strbuf_putc(text, '"');
        tare_strbuf_escape(text, item->s.data, item->s.size);
        tare_strbuf_putc(text, '"');
        break;
    case TARE_ATTR_INT:
        tare_strbuf_printf(text, "%lld", (long long)item->i);
        break;
    case TARE_ATTR_FLOAT:
        tare_strbuf_printf(text, "%.9g", (double)item->f);
        break;
    case TARE_ATTR_BOOL:
        tare_strbuf_puts(text, item->b ? "true" : "false");
        break;
    case TARE_ATTR_TYPE: {
        const struct tare_dtype_info *info = tare_dtype_is_ref(item->type) ? NULL : tare_dtype_get(item->type);
        tare_strbuf_puts(text, info ? info->spec_name : tare_dtype_name(item->type));
        break;
    }
    case TARE_ATTR_SHAPE:
        tare_strbuf_puts(text, tare_shape_text(shape, item->shape));
        break;
    case TARE_ATTR_TENSOR:
        print_tensor(text, item->tensor);
        break;
    case TARE_ATTR_FUNC:
        tare_strbuf_puts(text, item->func.name);
        break;
    case TARE_ATTR_PLACEHOLDER:
        tare_strbuf_printf(text, "$%s", item->s.data);
        break;
    }
}

void tare_attr_print(struct tare_strbuf *text, const struct tare_attr *attr) {
    if (attr->is_list) tare_strbuf_putc(text, '[');
    for (size_t i = 0; i < attr->count && i <= MOST_PRINTED; i++) {
        if (i) tare_strbuf_puts(text, ", ");
        if (i == MOST_PRINTED)
            tare_strbuf_puts(text, "...");
        else
            tare_attr_print_item(text, attr->kind, &attr->items[i]);
    }
    if (attr->is_list) tare_strbuf_putc(text, ']');
}

static bool same_tensor(const struct tare_tensor *a, const struct tare_tensor *b) {
    const char *x, *y;
    size_t size;
    if (a->dtype != b->dtype || !tare_shape_equal(&a->shape, &b->shape)) return false;
    size = tare_dtype_size(a->dtype);
    for (int64_t i = 0; i < a->elements; i++) {
        x = (const char *)a->data + (a->splat ? 0 : (size_t)i * size);
        y = (const char *)b->data + (b->splat ? 0 : (size_t)i * size);
        if (a->dtype == TARE_DT_STRING) {
            const struct tare_str *s = (const struct tare_str *)x, *t = (const struct tare_str *)y;
            if (s->size != t->size || (s->size && memcmp(s->data, t->data, s->size) != 0)) return false;
        } else if (memcmp(x, y, size) != 0) {
            return false;
        }
    }
    return true;
}

static bool same_func(const struct tare_func *a, const struct tare_func *b) {
    const size_t count = a->own ? a->own->count : 0;
    if (strcmp(a->name, b->name) != 0 || count != (b->own ? b->own->count : 0)) return false;
    for (size_t i = 0; i < count; i++) {
        const struct tare_attr *x = &a->own->attrs[i], *y = &b->own->attrs[i];
        if (strcmp(x->name, y->name) != 0 || !tare_attr_equal(x, y)) return false;
    }
    return true;
}

static bool same_item(enum tare_attr_kind kind, const union tare_attr_item *a, const union tare_attr_item *b) {
    switch (kind) {
    case TARE_ATTR_NONE:
        return true;
    case TARE_ATTR_STRING:
    case TARE_ATTR_PLACEHOLDER:
        return a->s.size == b->s.size && (!a->s.size || memcmp(a->s.data, b->s.data, a->s.size) == 0);
    case TARE_ATTR_INT:
        return a->i == b->i;
    case TARE_ATTR_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case TARE_ATTR_BOOL:
        return a->b == b->b;
    case TARE_ATTR_TYPE:
        return a->type == b->type;
    case TARE_ATTR_SHAPE:
        return tare_shape_equal(a->shape, b->shape);
    case TARE_ATTR_TENSOR:
        return a->tensor == b->tensor || same_tensor(a->tensor, b->tensor);
    case TARE_ATTR_FUNC:
        return same_func(&a->func, &b->func);
    }
    return false;
}

bool tare_attr_equal(const struct tare_attr *a, const struct tare_attr *b) {
    if (a->is_list != b->is_list || a->count != b->count) return false;
    if (a->kind != b->kind) return a->is_list && a->count == 0;
    for (size_t i = 0; i < a->count; i++)
        if (!same_item(a->kind, &a->items[i], &b->items[i])) return false;
    return true;
}
