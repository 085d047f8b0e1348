/* Writes the items of a definition in the registration grammar, so that they can be read again. */
#include "base/strbuf.h"
#include "graph/attr_text.h"
#include "graph/definitions/opspec.h"

#include <math.h>
#include <string.h>

enum { MOST_READABLE = 16 }; /* elements of a tensor that are written as numbers; more are written as bytes */

static void print_quoted(struct tare_strbuf *text, const void *data, size_t size) {
    tare_strbuf_putc(text, '"');
    if (size) tare_strbuf_escape(text, data, size);
    tare_strbuf_putc(text, '"');
}

/* DT_FLOAT, DT_INT32_REF */
static void print_dtype(struct tare_strbuf *text, int dtype) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    if (!info) {
        tare_strbuf_printf(text, "%d", dtype);
        return;
    }
    tare_strbuf_puts(text, "DT_");
    for (const char *c = info->spec_name; *c; c++)
        tare_strbuf_putc(text, (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c));
    if (tare_dtype_is_ref(dtype)) tare_strbuf_puts(text, "_REF");
}

static void print_shape(struct tare_strbuf *text, const struct tare_shape *shape) {
    tare_strbuf_puts(text, "{");
    if (shape->rank < 0) tare_strbuf_puts(text, " unknown_rank: true");
    for (int i = 0; i < shape->rank; i++)
        tare_strbuf_printf(text, " dim { size: %lld }", (long long)shape->dims[i]);
    tare_strbuf_puts(text, " }");
}

/* The field that holds elements of the dtype as numbers; NULL when they are written as bytes. */
static const char *number_field(const struct tare_tensor *tensor) {
    switch (tensor->dtype) {
    case TARE_DT_FLOAT:
        return "float_val";
    case TARE_DT_DOUBLE:
        return "double_val";
    case TARE_DT_INT8:
    case TARE_DT_INT16:
    case TARE_DT_INT32:
    case TARE_DT_UINT8:
    case TARE_DT_UINT16:
        return "int_val";
    case TARE_DT_INT64:
        return "int64_val";
    case TARE_DT_BOOL:
        return "bool_val";
    default:
        return NULL;
    }
}

static const void *element(const struct tare_tensor *tensor, int64_t i) {
    return (const char *)tensor->data + (tensor->splat ? 0 : (size_t)i * tare_dtype_size(tensor->dtype));
}

static bool is_readable(const struct tare_tensor *tensor) {
    if (!number_field(tensor) || tensor->elements > MOST_READABLE) return false;
    for (int64_t i = 0; i < tensor->elements; i++) {
        if (tensor->dtype == TARE_DT_FLOAT && isnan(*(const float *)element(tensor, i))) return false;
        if (tensor->dtype == TARE_DT_DOUBLE && isnan(*(const double *)element(tensor, i))) return false;
    }
    return true;
}

static void print_number(struct tare_strbuf *text, const struct tare_tensor *tensor, int64_t i) {
    const void *at = element(tensor, i);
    switch (tensor->dtype) {
    case TARE_DT_FLOAT:
        tare_strbuf_printf(text, "%.9g", (double)*(const float *)at);
        break;
    case TARE_DT_DOUBLE:
        tare_strbuf_printf(text, "%.17g", *(const double *)at);
        break;
    case TARE_DT_BOOL:
        tare_strbuf_puts(text, *(const uint8_t *)at ? "true" : "false");
        break;
    default:
        tare_strbuf_printf(text, "%lld", (long long)tare_tensor_get_i64(tensor, tensor->splat ? 0 : i));
    }
}

static void print_elements(struct tare_strbuf *text, const struct tare_tensor *tensor) {
    size_t size = tare_dtype_size(tensor->dtype);
    if (tensor->dtype == TARE_DT_STRING) {
        for (int64_t i = 0; i < tensor->elements; i++) {
            const struct tare_str *string = element(tensor, i);
            tare_strbuf_puts(text, " string_val: ");
            print_quoted(text, string->data, string->size);
        }
    } else if (is_readable(tensor)) {
        for (int64_t i = 0; i < tensor->elements; i++) {
            tare_strbuf_printf(text, " %s: ", number_field(tensor));
            print_number(text, tensor, i);
        }
    } else {
        tare_strbuf_puts(text, " tensor_content: \"");
        for (int64_t i = 0; i < tensor->elements; i++)
            tare_strbuf_escape(text, element(tensor, i), size);
        tare_strbuf_putc(text, '"');
    }
}

static void print_tensor(struct tare_strbuf *text, const struct tare_tensor *tensor) {
    tare_strbuf_puts(text, "{ dtype: ");
    print_dtype(text, tensor->dtype);
    if (tensor->shape.rank != 0) {
        tare_strbuf_puts(text, " tensor_shape ");
        print_shape(text, &tensor->shape);
    }
    print_elements(text, tensor);
    tare_strbuf_puts(text, " }");
}

/* The field of AttrValue that holds a kind. */
static const char *value_field(enum tare_attr_kind kind) {
    static const char *const fields[] = {
        [TARE_ATTR_NONE] = "",       [TARE_ATTR_STRING] = "s",
        [TARE_ATTR_INT] = "i",       [TARE_ATTR_FLOAT] = "f",
        [TARE_ATTR_BOOL] = "b",      [TARE_ATTR_TYPE] = "type",
        [TARE_ATTR_SHAPE] = "shape", [TARE_ATTR_TENSOR] = "tensor",
        [TARE_ATTR_FUNC] = "func",   [TARE_ATTR_PLACEHOLDER] = "placeholder",
    };
    return fields[kind];
}

static void print_item(struct tare_strbuf *text, enum tare_attr_kind kind, const union tare_attr_item *item);

static void print_func(struct tare_strbuf *text, const struct tare_func *func) {
    tare_strbuf_puts(text, "{ name: ");
    print_quoted(text, func->name, strlen(func->name));
    for (size_t i = 0; func->own && i < func->own->count; i++) {
        const struct tare_attr *attr = &func->own->attrs[i];
        tare_strbuf_puts(text, " attr { key: ");
        print_quoted(text, attr->name, strlen(attr->name));
        tare_strbuf_puts(text, " value { ");
        if (attr->is_list) tare_strbuf_puts(text, "list { ");
        for (size_t k = 0; k < attr->count; k++) {
            tare_strbuf_printf(text, "%s: ", value_field(attr->kind));
            print_item(text, attr->kind, &attr->items[k]);
            tare_strbuf_putc(text, ' ');
        }
        tare_strbuf_puts(text, attr->is_list ? "} } }" : "} }");
    }
    tare_strbuf_puts(text, " }");
}

static void print_item(struct tare_strbuf *text, enum tare_attr_kind kind, const union tare_attr_item *item) {
    switch (kind) {
    case TARE_ATTR_STRING:
    case TARE_ATTR_PLACEHOLDER:
        print_quoted(text, item->s.data, item->s.size);
        break;
    case TARE_ATTR_TYPE:
        print_dtype(text, item->type);
        break;
    case TARE_ATTR_SHAPE:
        print_shape(text, item->shape);
        break;
    case TARE_ATTR_TENSOR:
        print_tensor(text, item->tensor);
        break;
    case TARE_ATTR_FUNC:
        print_func(text, &item->func);
        break;
    default:
        tare_attr_print_item(text, kind, item); /* numbers are written alike */
    }
}

static void print_value(struct tare_strbuf *text, const struct tare_attr *attr) {
    if (attr->is_list) tare_strbuf_putc(text, '[');
    for (size_t i = 0; i < attr->count; i++) {
        if (i) tare_strbuf_puts(text, ", ");
        print_item(text, attr->kind, &attr->items[i]);
    }
    if (attr->is_list) tare_strbuf_putc(text, ']');
}

/* {'a', 'b'} or {float, int32} */
static void print_allowed(struct tare_strbuf *text, const struct tare_attr *allowed) {
    tare_strbuf_putc(text, '{');
    for (size_t i = 0; i < allowed->count; i++) {
        if (i) tare_strbuf_puts(text, ", ");
        tare_attr_print_item(text, allowed->kind, &allowed->items[i]);
    }
    tare_strbuf_putc(text, '}');
}

void tare_opspec_print_attr(struct tare_strbuf *text, const struct tare_op_attr *attr) {
    tare_strbuf_printf(text, "%s: %s", attr->name, attr->is_list ? "list(" : "");
    if (attr->allowed)
        print_allowed(text, attr->allowed);
    else
        tare_strbuf_puts(text, tare_attr_kind_name(attr->kind, false));
    if (attr->is_list) tare_strbuf_putc(text, ')');
    if (attr->has_minimum) tare_strbuf_printf(text, " >= %lld", (long long)attr->minimum);
    if (attr->default_value) {
        tare_strbuf_puts(text, " = ");
        print_value(text, attr->default_value);
    }
}

void tare_opspec_print_arg(struct tare_strbuf *text, const struct tare_op_arg *arg) {
    const struct tare_dtype_info *info = tare_dtype_get(arg->dtype);
    tare_strbuf_printf(text, "%s: %s", arg->name, arg->is_ref ? "Ref(" : "");
    if (arg->number_attr) tare_strbuf_printf(text, "%s * ", arg->number_attr);
    tare_strbuf_puts(text, arg->type_attr        ? arg->type_attr
                           : arg->type_list_attr ? arg->type_list_attr
                           : info                ? info->spec_name
                                                 : "?");
    if (arg->is_ref) tare_strbuf_putc(text, ')');
}
