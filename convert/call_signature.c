/* Reads the call signature of a concrete function from its canonicalized_input_signature: (positional, keywords). */
#include "convert/call_signature.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "convert/python_functions.h"
#include "convert/structured.h"
#include "proto/tensor_message.h"

#include <string.h>

typedef Tensorflow__StructuredValue value_message;

struct reader {
    struct tare_arena *arena;
    struct tare_call_signature *out;
    struct tare_strbuf summary;
    size_t n_arguments;
    bool failed; /* out of memory */
};

/* ---- shapes ---- */

struct leaves {
    struct tare_shape *shapes; /* NULL: only counts */
    const char **names;
    size_t count;
    bool has_composite; /* sparse, ragged ...: an argument that is several tensors of the graph */
};

static void add_leaf(struct leaves *leaves, const char *name, const Tensorflow__TensorShapeProto *shape) {
    if (leaves->shapes) {
        leaves->names[leaves->count] = name;
        if (tare_shape_from_message(&leaves->shapes[leaves->count], shape) != TARE_OK) {
            tare_error_clear();
            leaves->shapes[leaves->count] = tare_shape_unknown();
        }
    }
    leaves->count++;
}

static bool visit_leaf(void *arg, const value_message *leaf) {
    struct leaves *leaves = arg;
    switch (leaf ? leaf->kind_case : TENSORFLOW__STRUCTURED_VALUE__KIND__NOT_SET) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TYPE_SPEC_VALUE:
        leaves->has_composite = true;
        return true;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE:
        add_leaf(leaves, leaf->tensor_spec_value->name, leaf->tensor_spec_value->shape);
        return true;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE:
        add_leaf(leaves, leaf->bounded_tensor_spec_value->name, leaf->bounded_tensor_spec_value->shape);
        return true;
    default:
        return true;
    }
}

/* The arguments are flattened in the order of the leaves. Where every argument has the name of a leaf, names decide.
 * False if out of memory. */
static bool order_shapes(struct tare_shape *out, const struct leaves *leaves, const struct tare_graph *function) {
    struct tare_map places = { 0 };
    bool by_name = true, complete = true;
    for (size_t i = leaves->count; i > 0 && complete; i--) /* of leaves with one name the first counts */
        complete = tare_map_set(&places, leaves->names[i - 1], &leaves->shapes[i - 1]);
    for (size_t i = 0; i < leaves->count; i++)
        by_name = by_name && tare_map_get(&places, function->args[i]->name);
    for (size_t i = 0; i < leaves->count; i++) {
        const struct tare_shape *named = by_name ? tare_map_get(&places, function->args[i]->name) : NULL;
        out[i] = named ? *named : leaves->shapes[i];
    }
    tare_map_free(&places);
    return complete;
}

static tare_status read_shapes(struct tare_call_signature *out, struct tare_arena *arena, const value_message *nest,
                               const struct tare_graph *function, size_t expected) {
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, expected + 1);
    struct leaves leaves = { 0 };
    if (!shapes || !tare_structured_each_leaf(nest, visit_leaf, &leaves)) return TARE_NO_MEMORY;
    if (leaves.has_composite || leaves.count != expected) return TARE_OK;
    leaves.shapes = TARE_NEW_ARRAY(arena, struct tare_shape, expected + 1);
    leaves.names = TARE_NEW_ARRAY(arena, const char *, expected + 1);
    leaves.count = 0;
    if (!leaves.shapes || !leaves.names || !tare_structured_each_leaf(nest, visit_leaf, &leaves)) return TARE_NO_MEMORY;
    if (!order_shapes(shapes, &leaves, function)) return TARE_NO_MEMORY;
    out->shapes = shapes;
    out->n_shapes = expected;
    return TARE_OK;
}

/* ---- bound values ---- */

static bool read_number(double *out, const value_message *value) {
    switch (value ? value->kind_case : TENSORFLOW__STRUCTURED_VALUE__KIND__NOT_SET) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_FLOAT64_VALUE:
        *out = value->float64_value;
        return true;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE:
        *out = (double)value->int64_value;
        return true;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOOL_VALUE:
        *out = value->bool_value;
        return true;
    default:
        return false;
    }
}

/* As `==` in Python. `text` is the value's. */
static bool equals(const value_message *value, const char *text, const value_message *other) {
    struct tare_strbuf other_text = { 0 };
    double a, b;
    bool equal;
    if (!other) return false;
    if (read_number(&a, value) && read_number(&b, other)) return a == b;
    tare_structured_repr(&other_text, other);
    equal = !other_text.failed && strcmp(tare_strbuf_text(&other_text), text) == 0;
    tare_strbuf_free(&other_text);
    return equal;
}

static void add_bound(struct reader *r, const Tensorflow__FunctionSpec *spec, const char *name,
                      const value_message *value) {
    struct tare_strbuf text = { 0 };
    struct tare_bound_argument *grown =
        tare_arena_append(r->arena, r->out->bound, r->out->n_bound, sizeof *r->out->bound);
    tare_structured_repr(&text, value);
    r->failed = r->failed || !grown || text.failed;
    if (!r->failed) {
        struct tare_bound_argument *bound = &grown[r->out->n_bound++];
        *bound = (struct tare_bound_argument){ .name = tare_arena_strdup(r->arena, name),
                                               .type = tare_structured_type(value) };
        bound->text = tare_arena_strndup(r->arena, tare_strbuf_text(&text), text.size);
        bound->is_number = read_number(&bound->number, value);
        bound->is_default = equals(value, tare_strbuf_text(&text), tare_function_argument_default(spec, name));
        r->out->bound = grown;
        r->failed = !bound->name || !bound->text;
    }
    tare_strbuf_free(&text);
}

static void add_argument(struct reader *r, const Tensorflow__FunctionSpec *spec, const char *name,
                         const value_message *value) {
    tare_strbuf_printf(&r->summary, "%s%s", r->n_arguments++ ? ", " : "", name);
    if (!tare_structured_has_spec(value)) add_bound(r, spec, name, value);
}

static void read_arguments(struct reader *r, const value_message *nest, const Tensorflow__FunctionSpec *spec) {
    const value_message *positional = tare_structured_tuple_item(nest, 0),
                        *keywords = tare_structured_tuple_item(nest, 1);
    for (size_t i = 0; i < tare_structured_tuple_size(positional) && !r->failed; i++) {
        const char *name = tare_function_argument_name(spec, i);
        if (!name) name = tare_arena_printf(r->arena, "args_%zu", i);
        r->failed = !name;
        if (name) add_argument(r, spec, name, tare_structured_tuple_item(positional, i));
    }
    if (!keywords || keywords->kind_case != TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE) return;
    for (size_t i = 0; i < keywords->dict_value->n_fields && !r->failed; i++)
        add_argument(r, spec, keywords->dict_value->fields[i]->key, keywords->dict_value->fields[i]->value);
}

/* ---- the function ---- */

static tare_status read_trace(struct reader *r, const char *name, const struct tare_trace_source *trace) {
    const value_message *nest = trace->described ? trace->described->canonicalized_input_signature : NULL;
    const size_t bound = trace->bound ? trace->bound->n_bound : 0;
    if (!nest || bound > trace->graph->n_args) return TARE_OK;
    tare_strbuf_printf(&r->summary, "ConcreteFunction %s(", name);
    read_arguments(r, nest, trace->spec);
    tare_strbuf_putc(&r->summary, ')');
    if (r->failed || r->summary.failed) return TARE_NO_MEMORY;
    r->out->summary = tare_arena_strndup(r->arena, tare_strbuf_text(&r->summary), r->summary.size);
    if (!r->out->summary) return TARE_NO_MEMORY;
    return read_shapes(r->out, r->arena, nest, trace->graph, trace->graph->n_args - bound);
}

tare_status tare_call_signature_of_trace(struct tare_call_signature *out, struct tare_arena *arena,
                                         const struct tare_function_group *group, size_t i) {
    struct reader reader = { .arena = arena, .out = out };
    *out = (struct tare_call_signature){ 0 };
    const tare_status status = read_trace(&reader, group->name, &group->traces[i]);
    tare_strbuf_free(&reader.summary);
    return status;
}

tare_status tare_call_signature_make(struct tare_call_signature *out, struct tare_arena *arena,
                                     const struct tare_graph *function) {
    struct tare_function_list list;
    tare_status status = TARE_OK;
    *out = (struct tare_call_signature){ 0 };
    TARE_TRY(tare_function_list_make(&list, function->model));
    for (size_t g = 0; g < list.n_groups && status == TARE_OK; g++)
        for (size_t i = 0; i < list.groups[g]->n_traces && status == TARE_OK; i++)
            if (list.groups[g]->traces[i].graph == function)
                status = tare_call_signature_of_trace(out, arena, list.groups[g], i);
    tare_function_list_free(&list);
    return status;
}

const struct tare_bound_argument *tare_call_signature_find_bound(const struct tare_call_signature *signature,
                                                                 const char *name) {
    for (size_t i = 0; i < signature->n_bound; i++)
        if (strcmp(signature->bound[i].name, name) == 0) return &signature->bound[i];
    return NULL;
}

/* ---- comparing a value ---- */

static const char *python_type(const struct tare_tensor *value) {
    if (value->elements != 1) return "ndarray";
    if (value->dtype == TARE_DT_STRING) return "str";
    if (value->dtype == TARE_DT_BOOL) return "bool";
    return tare_dtype_is_floating(value->dtype) ? "float" : "int";
}

/* The value as a message, to be printed like the bound one; `text` holds a string. */
static bool as_message(value_message *out, struct tare_strbuf *text, const struct tare_tensor *value) {
    *out = (value_message)TENSORFLOW__STRUCTURED_VALUE__INIT;
    if (value->elements != 1) return false;
    if (value->dtype == TARE_DT_STRING) {
        tare_strbuf_append(text, TARE_CONST_DATA(struct tare_str, value)->data,
                           TARE_CONST_DATA(struct tare_str, value)->size);
        out->kind_case = TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE;
        out->string_value = (char *)(uintptr_t)tare_strbuf_text(text);
    } else if (value->dtype == TARE_DT_BOOL) {
        out->kind_case = TENSORFLOW__STRUCTURED_VALUE__KIND_BOOL_VALUE;
        out->bool_value = tare_tensor_get_i64(value, 0) != 0;
    } else if (tare_dtype_is_floating(value->dtype)) {
        out->kind_case = TENSORFLOW__STRUCTURED_VALUE__KIND_FLOAT64_VALUE;
        out->float64_value = tare_tensor_get_f64(value, 0);
    } else {
        out->kind_case = TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE;
        out->int64_value = tare_tensor_get_i64(value, 0);
    }
    return true;
}

tare_status tare_call_signature_check_bound(const struct tare_call_signature *signature,
                                            const struct tare_bound_argument *bound, const struct tare_tensor *value) {
    struct tare_strbuf string = { 0 }, got = { 0 };
    value_message message;
    double number;
    bool equal;
    tare_status status = TARE_OK;
    if (as_message(&message, &string, value))
        tare_structured_repr(&got, &message);
    else
        tare_strbuf_printf(&got, "of %lld elements", (long long)value->elements);
    equal = read_number(&number, &message) ? bound->is_number && number == bound->number
                                           : strcmp(tare_strbuf_text(&got), bound->text) == 0;
    if (!equal)
        status = TARE_FAIL(
            TARE_INVALID_ARGUMENT, "%s was constructed with %s value %s in %s, but was called with %s value %s",
            signature->summary, bound->type, bound->text, bound->name, python_type(value), tare_strbuf_text(&got));
    tare_strbuf_free(&string);
    tare_strbuf_free(&got);
    return status;
}
