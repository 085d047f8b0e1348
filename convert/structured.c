/* Python values as text. Their depth is bounded by that of the message that they were read from. */
#include "convert/structured.h"
#include "base/format.h"
#include "base/alloc.h"
#include "proto/tensor_message.h"
#include "base/tensor/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Tensorflow__StructuredValue value_message;

/* ---- leaves ---- */

static struct tare_shape shape_of(const Tensorflow__TensorShapeProto *message) {
    struct tare_shape shape;
    if (tare_shape_from_message(&shape, message) == TARE_OK) return shape;
    tare_error_clear(); /* a bad shape is only shown here */
    return tare_shape_unknown();
}

void tare_shape_python(struct tare_strbuf *out, const struct tare_shape *shape) {
    if (shape->rank < 0) {
        tare_strbuf_puts(out, "<unknown>");
        return;
    }
    tare_strbuf_putc(out, '(');
    for (int i = 0; i < shape->rank; i++) {
        if (i) tare_strbuf_puts(out, ", ");
        if (shape->dims[i] < 0)
            tare_strbuf_puts(out, "None");
        else
            tare_strbuf_printf(out, "%lld", (long long)shape->dims[i]);
    }
    tare_strbuf_puts(out, shape->rank == 1 ? ",)" : ")");
}

static void put_shape_repr(struct tare_strbuf *out, const Tensorflow__TensorShapeProto *message) {
    struct tare_shape shape = shape_of(message);
    if (shape.rank < 0) {
        tare_strbuf_puts(out, "TensorShape(None)");
        return;
    }
    tare_strbuf_puts(out, "TensorShape([");
    for (int i = 0; i < shape.rank; i++) {
        if (i) tare_strbuf_puts(out, ", ");
        if (shape.dims[i] < 0)
            tare_strbuf_puts(out, "None");
        else
            tare_strbuf_printf(out, "%lld", (long long)shape.dims[i]);
    }
    tare_strbuf_puts(out, "])");
}

/* The shortest decimal form that parses to the same number, with a point or an exponent. */
static void put_double(struct tare_strbuf *out, double number) {
    char text[40];
    if (isnan(number) || isinf(number)) {
        tare_strbuf_puts(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        tare_format(text, sizeof text, "%.*g", digits, number);
        if (tare_read_double(text, NULL) == number) break;
    }
    if (fabs(number) >= 1e-4 && fabs(number) < 1e16 && strchr(text, 'e'))
        tare_format(text, sizeof text, "%.0f", number);
    tare_strbuf_puts(out, text);
    if (!strpbrk(text, ".e")) tare_strbuf_puts(out, ".0");
}

static void put_quoted(struct tare_strbuf *out, const char *text) {
    char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
    tare_strbuf_putc(out, quote);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == (unsigned char)quote || c == '\\')
            tare_strbuf_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\r' || c == '\t')
            tare_strbuf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if (c < 0x20 || c == 0x7f)
            tare_strbuf_printf(out, "\\x%02x", c);
        else
            tare_strbuf_putc(out, *text); /* UTF-8 passes */
    }
    tare_strbuf_putc(out, quote);
}

static void put_spec_repr(struct tare_strbuf *out, const char *class, const Tensorflow__TensorShapeProto *message,
                          int dtype, const char *name) {
    struct tare_shape shape = shape_of(message);
    tare_strbuf_printf(out, "%s(shape=", class);
    tare_shape_python(out, &shape);
    tare_strbuf_printf(out, ", dtype=tf.%s, name=", tare_dtype_name(dtype));
    if (*name)
        put_quoted(out, name);
    else
        tare_strbuf_puts(out, "None");
    tare_strbuf_putc(out, ')');
}

static const char *class_name(const Tensorflow__TypeSpecProto *spec) {
    static const char *const names[] = { "TypeSpec",        "SparseTensorSpec", "IndexedSlicesSpec", "RaggedTensorSpec",
                                         "TensorArraySpec", "DatasetSpec",      "IteratorSpec",      "OptionalSpec",
                                         "PerReplicaSpec",  "VariableSpec",     "RowPartitionSpec" };
    if (*spec->type_spec_class_name) return spec->type_spec_class_name;
    return (size_t)spec->type_spec_class < sizeof names / sizeof *names ? names[spec->type_spec_class] : names[0];
}

static void put_type_spec(struct tare_strbuf *out, const Tensorflow__TypeSpecProto *spec) {
    bool tuple = spec->type_state && spec->type_state->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE;
    tare_strbuf_puts(out, class_name(spec));
    if (!tuple) tare_strbuf_putc(out, '(');
    if (spec->type_state) tare_structured_repr(out, spec->type_state);
    if (!tuple) tare_strbuf_putc(out, ')');
}

static void put_tensor(struct tare_strbuf *out, const Tensorflow__TensorProto *message) {
    struct tare_shape shape = shape_of(message->tensor_shape);
    tare_strbuf_puts(out, "<tensor: shape=");
    tare_shape_python(out, &shape);
    tare_strbuf_printf(out, ", dtype=%s>", tare_dtype_name((int)message->dtype));
}

static void put_leaf(struct tare_strbuf *out, const value_message *value) {
    switch (value->kind_case) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_FLOAT64_VALUE:
        put_double(out, value->float64_value);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE:
        tare_strbuf_printf(out, "%lld", (long long)value->int64_value);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE:
        put_quoted(out, value->string_value);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOOL_VALUE:
        tare_strbuf_puts(out, value->bool_value ? "True" : "False");
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SHAPE_VALUE:
        put_shape_repr(out, value->tensor_shape_value);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_DTYPE_VALUE:
        tare_strbuf_printf(out, "tf.%s", tare_dtype_name((int)value->tensor_dtype_value));
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE:
        put_spec_repr(out, "TensorSpec", value->tensor_spec_value->shape, (int)value->tensor_spec_value->dtype,
                      value->tensor_spec_value->name);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE:
        put_spec_repr(out, "BoundedTensorSpec", value->bounded_tensor_spec_value->shape,
                      (int)value->bounded_tensor_spec_value->dtype, value->bounded_tensor_spec_value->name);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TYPE_SPEC_VALUE:
        put_type_spec(out, value->type_spec_value);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_VALUE:
        put_tensor(out, value->tensor_value);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_NUMPY_VALUE:
        put_tensor(out, value->numpy_value);
        return;
    default:
        tare_strbuf_puts(out, "None");
        return;
    }
}

/* ---- nests ---- */

/* Children of a nest in the order in which Python's nest functions flatten it: dictionaries by key. */
struct children {
    const char *open, *close;
    const char *name; /* of a named tuple */
    bool is_dict, is_tuple;
    size_t count;
    struct child {
        const char *key; /* NULL: no key */
        const value_message *value;
    } * items;
};

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct child *)a)->key, ((const struct child *)b)->key);
}

static bool is_nest(const value_message *value) {
    return value && (value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE ||
                     value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE ||
                     value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE ||
                     value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_NAMED_TUPLE_VALUE);
}

static bool set_plain(struct children *out, value_message *const *values, size_t count) {
    out->count = count;
    out->items = tare_calloc(count, sizeof *out->items);
    for (size_t i = 0; out->items && i < count; i++)
        out->items[i].value = values[i];
    return out->items;
}

static bool set_dict(struct children *out, const Tensorflow__DictValue *dict) {
    out->is_dict = true;
    out->count = dict->n_fields;
    out->items = tare_calloc(dict->n_fields, sizeof *out->items);
    for (size_t i = 0; out->items && i < out->count; i++)
        out->items[i] = (struct child){ dict->fields[i]->key, dict->fields[i]->value };
    if (out->items) qsort(out->items, out->count, sizeof *out->items, by_key);
    return out->items;
}

static bool set_named(struct children *out, const Tensorflow__NamedTupleValue *tuple) {
    out->name = tuple->name;
    out->count = tuple->n_values;
    out->items = tare_calloc(tuple->n_values, sizeof *out->items);
    for (size_t i = 0; out->items && i < out->count; i++)
        out->items[i] = (struct child){ tuple->values[i]->key, tuple->values[i]->value };
    return out->items;
}

/* False if out of memory (recorded in the buffer). */
static bool open_nest(struct children *out, struct tare_strbuf *text, const value_message *value) {
    bool made;
    *out = (struct children){ .open = "(", .close = ")" };
    switch (value->kind_case) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE:
        out->open = "[";
        out->close = "]";
        made = set_plain(out, value->list_value->values, value->list_value->n_values);
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE:
        out->is_tuple = true;
        made = set_plain(out, value->tuple_value->values, value->tuple_value->n_values);
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE:
        out->open = "{";
        out->close = "}";
        made = set_dict(out, value->dict_value);
        break;
    default:
        made = set_named(out, value->named_tuple_value);
        break;
    }
    if (!made) text->failed = true;
    return made;
}

/* Writes a nest; `leaf` writes its leaves and may count them. */
static void put_nest(struct tare_strbuf *out, const value_message *value, size_t *marker) {
    struct children children;
    if (!is_nest(value)) {
        if (marker)
            tare_strbuf_printf(out, "<%zu>", ++*marker);
        else if (value)
            put_leaf(out, value);
        else
            tare_strbuf_puts(out, "None");
        return;
    }
    if (!open_nest(&children, out, value)) return;
    tare_strbuf_printf(out, "%s%s", children.name ? children.name : "", children.open);
    for (size_t i = 0; i < children.count; i++) {
        const struct child *child = &children.items[i];
        if (i) tare_strbuf_puts(out, ", ");
        if (children.is_dict) {
            put_quoted(out, child->key);
            tare_strbuf_puts(out, ": ");
        } else if (child->key) {
            tare_strbuf_printf(out, "%s=", child->key);
        }
        put_nest(out, child->value, marker);
    }
    tare_strbuf_printf(out, "%s%s", children.is_tuple && children.count == 1 ? "," : "", children.close);
    tare_free(children.items);
}

void tare_structured_repr(struct tare_strbuf *out, const value_message *value) {
    put_nest(out, value, NULL);
}

void tare_structured_str(struct tare_strbuf *out, const value_message *value) {
    struct tare_shape shape;
    switch (value ? value->kind_case : TENSORFLOW__STRUCTURED_VALUE__KIND__NOT_SET) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE:
        tare_strbuf_puts(out, value->string_value);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SHAPE_VALUE:
        shape = shape_of(value->tensor_shape_value);
        tare_shape_python(out, &shape);
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_DTYPE_VALUE:
        tare_strbuf_printf(out, "<dtype: '%s'>", tare_dtype_name((int)value->tensor_dtype_value));
        return;
    default:
        tare_structured_repr(out, value);
        return;
    }
}

const char *tare_structured_type(const value_message *value) {
    switch (value ? value->kind_case : TENSORFLOW__STRUCTURED_VALUE__KIND__NOT_SET) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_FLOAT64_VALUE:
        return "float";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE:
        return "int";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE:
        return "str";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOOL_VALUE:
        return "bool";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE:
        return "list";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE:
    case TENSORFLOW__STRUCTURED_VALUE__KIND_NAMED_TUPLE_VALUE:
        return "tuple";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE:
        return "dict";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SHAPE_VALUE:
        return "TensorShape";
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_DTYPE_VALUE:
        return "DType";
    default:
        return "NoneType";
    }
}

size_t tare_structured_tuple_size(const value_message *value) {
    return value && value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE ? value->tuple_value->n_values
                                                                                       : 0;
}

const value_message *tare_structured_tuple_item(const value_message *value, size_t i) {
    return i < tare_structured_tuple_size(value) ? value->tuple_value->values[i] : NULL;
}

bool tare_structured_each_leaf(const value_message *value, tare_structured_leaf_fn leaf, void *arg) {
    struct tare_strbuf ignored = { 0 };
    struct children children;
    bool go_on = true;
    if (!is_nest(value)) return leaf(arg, value);
    if (!open_nest(&children, &ignored, value)) return false;
    for (size_t i = 0; i < children.count && go_on; i++)
        go_on = tare_structured_each_leaf(children.items[i].value, leaf, arg);
    tare_free(children.items);
    return go_on;
}

bool tare_structured_has_spec(const value_message *value) {
    struct tare_strbuf ignored = { 0 };
    struct children children;
    bool found = false;
    if (!value) return false;
    if (!is_nest(value))
        return value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE ||
               value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE ||
               value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TYPE_SPEC_VALUE;
    if (!open_nest(&children, &ignored, value)) return false;
    for (size_t i = 0; i < children.count && !found; i++)
        found = tare_structured_has_spec(children.items[i].value);
    tare_free(children.items);
    return found;
}

static void put_tensor_line(struct tare_strbuf *out, int dtype, const Tensorflow__TensorShapeProto *message) {
    struct tare_shape shape = shape_of(message);
    tare_strbuf_printf(out, "%s Tensor, shape=", tare_dtype_name(dtype));
    tare_shape_python(out, &shape);
}

static void put_marked(struct tare_strbuf *out, const value_message *value, size_t *marker) {
    struct children children;
    if (!is_nest(value)) {
        tare_strbuf_printf(out, "\n      <%zu>: ", ++*marker);
        tare_structured_spec(out, value);
        return;
    }
    if (!open_nest(&children, out, value)) return;
    for (size_t i = 0; i < children.count; i++)
        put_marked(out, children.items[i].value, marker);
    tare_free(children.items);
}

void tare_structured_spec(struct tare_strbuf *out, const value_message *value) {
    size_t marker = 0;
    if (value && value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE) {
        put_tensor_line(out, (int)value->tensor_spec_value->dtype, value->tensor_spec_value->shape);
    } else if (value && value->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE) {
        put_tensor_line(out, (int)value->bounded_tensor_spec_value->dtype, value->bounded_tensor_spec_value->shape);
    } else if (is_nest(value)) {
        put_nest(out, value, &marker);
        marker = 0;
        put_marked(out, value, &marker);
    } else {
        tare_structured_repr(out, value);
    }
}
