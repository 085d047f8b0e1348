/* Types and attributes, which contain each other, in StableHLO's notation. Large constants are elided. */
#include "convert/stablehlo/print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- types ---- */

static void print_list(struct tare_strbuf *out, const struct tare_shlo_type_list *list, bool brackets) {
    if (brackets) tare_strbuf_putc(out, '(');
    for (size_t i = 0; i < list->count; i++) {
        if (i) tare_strbuf_puts(out, ", ");
        tare_shlo_print_type(out, list->items[i]);
    }
    if (brackets) tare_strbuf_putc(out, ')');
}

static void print_function(struct tare_strbuf *out, const struct tare_shlo_type *type) {
    print_list(out, &type->inputs, true);
    tare_strbuf_puts(out, " -> ");
    print_list(out, &type->outputs, type->outputs.count != 1);
}

static void print_shaped(struct tare_strbuf *out, const char *name, const struct tare_shlo_type *type) {
    tare_strbuf_printf(out, "%s<", name);
    for (size_t i = 0; i < type->rank; i++)
        if (type->dims[i] == TARE_SHLO_DYNAMIC)
            tare_strbuf_puts(out, "?x");
        else
            tare_strbuf_printf(out, "%" PRId64 "x", type->dims[i]);
    tare_shlo_print_type(out, type->element);
    if (type->encoding) {
        tare_strbuf_puts(out, ", ");
        tare_shlo_print_attr(out, type->encoding, 16);
    }
    tare_strbuf_putc(out, '>');
}

/* The range is printed where it is not that of the storage type. */
static void print_storage(struct tare_strbuf *out, const struct tare_shlo_quantized *q) {
    const int bits = tare_shlo_type_bits(q->storage);
    const int64_t high = bits < 2 || bits > 32 ? 0
                         : q->is_signed        ? (INT64_C(1) << (bits - 1)) - 1
                                               : (INT64_C(1) << bits) - 1;
    const int64_t low = q->is_signed ? -high - 1 : 0;
    tare_shlo_print_type(out, q->storage);
    if (q->minimum != low || q->maximum != high)
        tare_strbuf_printf(out, "<%" PRId64 ":%" PRId64 ">", q->minimum, q->maximum);
    tare_strbuf_putc(out, ':');
    tare_shlo_print_type(out, q->expressed);
}

static void print_quantized(struct tare_strbuf *out, const struct tare_shlo_quantized *q) {
    tare_strbuf_puts(out, "!quant.uniform<");
    print_storage(out, q);
    if (q->axis >= 0) tare_strbuf_printf(out, ":%" PRId64, q->axis);
    tare_strbuf_puts(out, q->axis >= 0 ? ", {" : ", ");
    for (size_t i = 0; i < q->count; i++) {
        tare_strbuf_printf(out, "%s%.9g", i ? ", " : "", q->scales[i]);
        if (q->zero_points[i]) tare_strbuf_printf(out, ":%" PRId64, q->zero_points[i]);
    }
    tare_strbuf_puts(out, q->axis >= 0 ? "}>" : ">");
}

static void print_composed(struct tare_strbuf *out, const char *name, const struct tare_shlo_type *type) {
    tare_strbuf_printf(out, "%s<", name);
    if (type->element)
        tare_shlo_print_type(out, type->element);
    else
        print_list(out, &type->inputs, false);
    tare_strbuf_putc(out, '>');
}

static const char *const scalar_names[TARE_SHLO_N_TYPES] = {
    [TARE_SHLO_BOOL] = "i1",
    [TARE_SHLO_BF16] = "bf16",
    [TARE_SHLO_F16] = "f16",
    [TARE_SHLO_F32] = "f32",
    [TARE_SHLO_F64] = "f64",
    [TARE_SHLO_F8E4M3FN] = "f8E4M3FN",
    [TARE_SHLO_F8E5M2] = "f8E5M2",
    [TARE_SHLO_INDEX] = "index",
    [TARE_SHLO_SI4] = "i4",
    [TARE_SHLO_SI8] = "i8",
    [TARE_SHLO_SI16] = "i16",
    [TARE_SHLO_SI32] = "i32",
    [TARE_SHLO_SI64] = "i64",
    [TARE_SHLO_UI4] = "ui4",
    [TARE_SHLO_UI8] = "ui8",
    [TARE_SHLO_UI16] = "ui16",
    [TARE_SHLO_UI32] = "ui32",
    [TARE_SHLO_UI64] = "ui64",
    [TARE_SHLO_TOKEN] = "!stablehlo.token",
    [TARE_SHLO_WITNESS] = "!shape.witness",
    [TARE_SHLO_F8E4M3FNUZ] = "f8E4M3FNUZ",
    [TARE_SHLO_F8E5M2FNUZ] = "f8E5M2FNUZ",
    [TARE_SHLO_F8E4M3B11FNUZ] = "f8E4M3B11FNUZ",
    [TARE_SHLO_SI2] = "i2",
    [TARE_SHLO_UI2] = "ui2",
    [TARE_SHLO_NONE] = "none",
    [TARE_SHLO_TF32] = "tf32",
    [TARE_SHLO_F8E4M3] = "f8E4M3",
    [TARE_SHLO_F8E3M4] = "f8E3M4",
    [TARE_SHLO_F4E2M1FN] = "f4E2M1FN",
    [TARE_SHLO_F6E2M3FN] = "f6E2M3FN",
    [TARE_SHLO_F6E3M2FN] = "f6E3M2FN",
    [TARE_SHLO_F8E8M0FNU] = "f8E8M0FNU",
};

void tare_shlo_print_type(struct tare_strbuf *out, const struct tare_shlo_type *type) {
    switch (type->kind) {
    case TARE_SHLO_COMPLEX:
        print_composed(out, "complex", type);
        break;
    case TARE_SHLO_FUNCTION:
        print_function(out, type);
        break;
    case TARE_SHLO_TENSOR:
        print_shaped(out, "tensor", type);
        break;
    case TARE_SHLO_BUFFER:
        print_shaped(out, "memref", type);
        break;
    case TARE_SHLO_UNRANKED:
        tare_strbuf_puts(out, "tensor<*x");
        tare_shlo_print_type(out, type->element);
        tare_strbuf_putc(out, '>');
        break;
    case TARE_SHLO_TUPLE:
        print_composed(out, "tuple", type);
        break;
    case TARE_SHLO_FUTURE:
        print_composed(out, "!stablehlo.future", type);
        break;
    case TARE_SHLO_QUANTIZED:
    case TARE_SHLO_QUANTIZED_PER_AXIS:
        print_quantized(out, type->quantized);
        break;
    default:
        tare_strbuf_puts(out, scalar_names[type->kind]);
    }
}

/* ---- attributes ---- */

enum { MOST_LISTED = 64 }; /* elements of a list of dimensions */

/* Significant digits that distinguish adjacent values of the type. */
static int digits(enum tare_shlo_type_kind kind) {
    return kind == TARE_SHLO_F64 ? 17 : kind == TARE_SHLO_F32 || kind == TARE_SHLO_TF32 ? 9 : 5;
}

static void print_real(struct tare_strbuf *out, enum tare_shlo_type_kind kind, double value) {
    if (isnan(value))
        tare_strbuf_puts(out, "nan");
    else if (isinf(value))
        tare_strbuf_puts(out, value < 0 ? "-inf" : "inf");
    else
        tare_strbuf_printf(out, "%.*g%s", digits(kind), value, value == floor(value) && fabs(value) < 1e5 ? ".0" : "");
}

static void print_element(struct tare_strbuf *out, const struct tare_shlo_attr *tensor, size_t i) {
    const struct tare_shlo_type *type = tensor->type->element;
    if (type->quantized) type = type->quantized->storage;
    if (type->kind == TARE_SHLO_COMPLEX) {
        tare_strbuf_putc(out, '(');
        print_real(out, type->element->kind, tare_shlo_tensor_real(tensor, 2 * i));
        tare_strbuf_puts(out, ", ");
        print_real(out, type->element->kind, tare_shlo_tensor_real(tensor, 2 * i + 1));
        tare_strbuf_putc(out, ')');
    } else if (tare_shlo_type_is_float(type->kind)) {
        print_real(out, type->kind, tare_shlo_tensor_real(tensor, i));
    } else if (type->kind == TARE_SHLO_BOOL) {
        tare_strbuf_puts(out, tare_shlo_tensor_integer(tensor, i) ? "true" : "false");
    } else if (type->kind == TARE_SHLO_UI64) {
        tare_strbuf_printf(out, "%" PRIu64, (uint64_t)tare_shlo_tensor_integer(tensor, i));
    } else {
        tare_strbuf_printf(out, "%" PRId64, tare_shlo_tensor_integer(tensor, i));
    }
}

static size_t print_nested(struct tare_strbuf *out, const struct tare_shlo_attr *tensor, size_t dim, size_t i) {
    if (dim == tensor->type->rank) {
        print_element(out, tensor, i);
        return i + 1;
    }
    tare_strbuf_putc(out, '[');
    for (int64_t k = 0; k < tensor->type->dims[dim]; k++) {
        if (k) tare_strbuf_puts(out, ", ");
        i = print_nested(out, tensor, dim + 1, i);
    }
    tare_strbuf_putc(out, ']');
    return i;
}

static void print_elements(struct tare_strbuf *out, const struct tare_shlo_attr *tensor, size_t max_elements) {
    size_t count = 0;
    tare_shlo_tensor_count(&count, tensor);
    if (tare_shlo_tensor_is_splat(tensor))
        print_element(out, tensor, 0);
    else if (count > max_elements)
        tare_strbuf_puts(out, "__elided__");
    else
        print_nested(out, tensor, 0, 0);
}

void tare_shlo_print_constant(struct tare_strbuf *out, const struct tare_shlo_attr *tensor, size_t max_elements) {
    tare_strbuf_puts(out, "dense<");
    print_elements(out, tensor, max_elements);
    tare_strbuf_puts(out, "> : ");
    tare_shlo_print_type(out, tensor->type);
}

static void print_tensor(struct tare_strbuf *out, const struct tare_shlo_attr *tensor, size_t max_elements) {
    const enum tare_shlo_type_kind kind = tensor->type->element->kind;
    const bool is_list = (tensor->type->rank == 1 || tensor->type->rank == 2) &&
                         (kind == TARE_SHLO_SI64 || kind == TARE_SHLO_BOOL || kind == TARE_SHLO_INDEX);
    size_t count = 0;
    tare_shlo_tensor_count(&count, tensor);
    if (is_list && count <= MOST_LISTED)
        print_nested(out, tensor, 0, 0);
    else
        tare_shlo_print_constant(out, tensor, max_elements);
}

static void print_text(struct tare_strbuf *out, const struct tare_shlo_text *text) {
    tare_strbuf_putc(out, '"');
    tare_strbuf_escape(out, text->data, text->size);
    tare_strbuf_putc(out, '"');
}

static void print_items(struct tare_strbuf *out, const struct tare_shlo_attr *attr, size_t max_elements) {
    const bool pairs = attr->kind == TARE_SHLO_ATTR_DICTIONARY;
    tare_strbuf_putc(out, pairs ? '{' : '[');
    for (size_t i = 0; i < attr->n_items; i++) {
        if (i) tare_strbuf_puts(out, pairs && i % 2 ? " = " : ", ");
        if (pairs && i % 2 == 0)
            tare_strbuf_append(out, attr->items[i]->text.data, attr->items[i]->text.size);
        else
            tare_shlo_print_attr(out, attr->items[i], max_elements);
    }
    tare_strbuf_putc(out, pairs ? '}' : ']');
}

static void print_integer(struct tare_strbuf *out, const struct tare_shlo_attr *attr) {
    if (attr->type->kind == TARE_SHLO_BOOL) {
        tare_strbuf_puts(out, attr->bits ? "true" : "false");
        return;
    }
    if (attr->type->kind == TARE_SHLO_UI64)
        tare_strbuf_printf(out, "%" PRIu64, attr->bits);
    else
        tare_strbuf_printf(out, "%" PRId64, (int64_t)attr->bits);
    if (attr->type->kind == TARE_SHLO_SI64) return;
    tare_strbuf_puts(out, " : ");
    tare_shlo_print_type(out, attr->type);
}

static void print_numbers(struct tare_strbuf *out, const int64_t *numbers, size_t count) {
    tare_strbuf_putc(out, '[');
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == TARE_SHLO_DYNAMIC)
            tare_strbuf_printf(out, "%s?", i ? ", " : "");
        else
            tare_strbuf_printf(out, "%s%" PRId64, i ? ", " : "", numbers[i]);
    tare_strbuf_putc(out, ']');
}

static void print_accuracy(struct tare_strbuf *out, const struct tare_shlo_attr *attr) {
    double tolerances[2];
    memcpy(tolerances, attr->numbers, sizeof tolerances);
    tare_strbuf_printf(out, "#stablehlo.result_accuracy<atol = %g, rtol = %g, ulps = %" PRId64 ", mode = %s>",
                       tolerances[0], tolerances[1], attr->numbers[2], attr->items[0]->text.data);
}

static const char *const part_names[] = {
    [TARE_SHLO_ATTR_EXTENSIONS] = "#stablehlo.bounds",
    [TARE_SHLO_ATTR_SUB_AXIS] = "sub_axis",
    [TARE_SHLO_ATTR_AXIS_REF] = "axis_ref",
    [TARE_SHLO_ATTR_MESH_AXES] = "replica_group_mesh_axes",
    [TARE_SHLO_ATTR_MESH_AXIS] = "mesh_axis",
    [TARE_SHLO_ATTR_MESH] = "mesh",
    [TARE_SHLO_ATTR_SHARDING] = "sharding",
};

/* Named parts, such as mesh_axis<["x", 2]>. */
static void print_parts(struct tare_strbuf *out, const char *name, const struct tare_shlo_attr *attr,
                        size_t max_elements) {
    tare_strbuf_printf(out, "%s<", name);
    if (attr->n_items) print_items(out, attr, max_elements);
    if (attr->n_items && attr->n_numbers) tare_strbuf_puts(out, ", ");
    if (attr->n_numbers) print_numbers(out, attr->numbers, attr->n_numbers);
    tare_strbuf_putc(out, '>');
}

static void print_alias(struct tare_strbuf *out, const struct tare_shlo_attr *attr) {
    tare_strbuf_puts(out, "#stablehlo.output_operand_alias<output = ");
    print_numbers(out, attr->numbers, attr->n_first);
    tare_strbuf_printf(out, ", operand = %" PRId64 ", indices = ", (int64_t)attr->bits);
    print_numbers(out, attr->numbers + attr->n_first, attr->n_numbers - attr->n_first);
    tare_strbuf_putc(out, '>');
}

void tare_shlo_print_attr(struct tare_strbuf *out, const struct tare_shlo_attr *attr, size_t max_elements) {
    switch (attr->kind) {
    case TARE_SHLO_ATTR_ARRAY:
    case TARE_SHLO_ATTR_DICTIONARY:
        print_items(out, attr, max_elements);
        break;
    case TARE_SHLO_ATTR_BOOL:
        tare_strbuf_puts(out, attr->bits ? "true" : "false");
        break;
    case TARE_SHLO_ATTR_ENUM:
        tare_strbuf_puts(out, attr->text.data);
        break;
    case TARE_SHLO_ATTR_INTEGER:
        print_integer(out, attr);
        break;
    case TARE_SHLO_ATTR_FLOAT:
        print_real(out, attr->type->kind, tare_shlo_float_of_bits(attr->type->kind, attr->bits));
        tare_strbuf_puts(out, " : ");
        tare_shlo_print_type(out, attr->type);
        break;
    case TARE_SHLO_ATTR_STRING:
        print_text(out, &attr->text);
        break;
    case TARE_SHLO_ATTR_SYMBOL:
        tare_strbuf_printf(out, "@%s", attr->text.data);
        break;
    case TARE_SHLO_ATTR_TENSOR:
        print_tensor(out, attr, max_elements);
        break;
    case TARE_SHLO_ATTR_TYPE:
        tare_shlo_print_type(out, attr->type);
        break;
    case TARE_SHLO_ATTR_UNIT:
        tare_strbuf_puts(out, "unit");
        break;
    case TARE_SHLO_ATTR_ALIAS:
        print_alias(out, attr);
        break;
    case TARE_SHLO_ATTR_ACCURACY:
        print_accuracy(out, attr);
        break;
    case TARE_SHLO_ATTR_EXTENSIONS:
    case TARE_SHLO_ATTR_SUB_AXIS:
    case TARE_SHLO_ATTR_AXIS_REF:
    case TARE_SHLO_ATTR_MESH_AXES:
    case TARE_SHLO_ATTR_MESH_AXIS:
    case TARE_SHLO_ATTR_MESH:
    case TARE_SHLO_ATTR_SHARDING:
        print_parts(out, part_names[attr->kind], attr, max_elements);
        break;
    case TARE_SHLO_ATTR_OPAQUE:
        tare_strbuf_printf(out, "#%s<%zu bytes>", attr->text.data ? attr->text.data : "builtin", attr->size);
        break;
    }
}
