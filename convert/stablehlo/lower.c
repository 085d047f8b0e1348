/* Building nodes for lowered ops. */
#include "convert/stablehlo/lower.h"

#include "base/arena.h"
#include "base/tensor/number.h"
#include "graph/definitions/opdef.h"
#include "graph/op.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void tare_lower_fail(struct tare_lowering *l, tare_status status, const char *format, ...) {
    va_list args;
    if (l->status != TARE_OK) return;
    va_start(args, format);
    l->status = tare_fail_va(status, format, args);
    va_end(args);
}

static void check(struct tare_lowering *l, tare_status status) {
    if (l->status == TARE_OK) l->status = status;
}

/* ---- the op ---- */

const struct tare_shlo_type *tare_lower_in_type(const struct tare_lowering *l, size_t i) {
    return l->op->operands[i]->type;
}

const struct tare_shlo_type *tare_lower_out_type(const struct tare_lowering *l, size_t i) {
    return l->op->results[i].type;
}

static const struct tare_shlo_attr *attr_of(struct tare_lowering *l, const char *name, enum tare_shlo_attr_kind kind) {
    const struct tare_shlo_attr *attr = tare_shlo_op_attr(l->op, name);
    if (attr && attr->kind == kind) return attr;
    tare_lower_fail(l, TARE_CORRUPT, "attribute '%s' is missing or of the wrong kind", name);
    return NULL;
}

size_t tare_lower_ints(struct tare_lowering *l, int64_t *out, size_t capacity, const char *name) {
    const struct tare_shlo_attr *attr = attr_of(l, name, TARE_SHLO_ATTR_TENSOR);
    size_t count = 0;
    if (!attr || !tare_shlo_tensor_count(&count, attr)) return 0;
    if (count > capacity) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "attribute '%s' has %zu values (expected at most %zu)", name, count,
                        capacity);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = tare_shlo_tensor_integer(attr, i);
    return count;
}

int64_t tare_lower_int(struct tare_lowering *l, const char *name) {
    const struct tare_shlo_attr *attr = attr_of(l, name, TARE_SHLO_ATTR_INTEGER);
    return attr ? (int64_t)attr->bits : 0;
}

bool tare_lower_flag(struct tare_lowering *l, const char *name) {
    const struct tare_shlo_attr *attr = attr_of(l, name, TARE_SHLO_ATTR_BOOL);
    return attr && attr->bits;
}

const char *tare_lower_text(struct tare_lowering *l, const char *name) {
    const struct tare_shlo_attr *attr = tare_shlo_op_attr(l->op, name);
    if (attr && (attr->kind == TARE_SHLO_ATTR_STRING || attr->kind == TARE_SHLO_ATTR_ENUM)) return attr->text.data;
    tare_lower_fail(l, TARE_CORRUPT, "attribute '%s' is missing or of the wrong kind", name);
    return "";
}

bool tare_lower_is_one_of(const struct tare_shlo_op *op, const char *const *names) {
    for (; *names; names++)
        if (tare_shlo_op_is(op, *names)) return true;
    return false;
}

bool tare_lower_moves(const struct tare_shlo_op *op) {
    static const char *const names[] = { "reshape",
                                         "dynamic_reshape",
                                         "broadcast_in_dim",
                                         "dynamic_broadcast_in_dim",
                                         "broadcast",
                                         "transpose",
                                         "reverse",
                                         "concatenate",
                                         "slice",
                                         "dynamic_slice",
                                         "dynamic_update_slice",
                                         "real_dynamic_slice",
                                         "gather",
                                         "dynamic_gather",
                                         "select",
                                         "pad",
                                         "dynamic_pad",
                                         "maximum",
                                         "minimum",
                                         "clamp",
                                         NULL };
    return tare_lower_is_one_of(op, names);
}

/* The constant that the value is a broadcast or a conversion of; NULL if there is none. */
static const struct tare_shlo_attr *constant_of(const struct tare_shlo_value *value) {
    const struct tare_shlo_op *op = value->op;
    while (op && (tare_shlo_op_is(op, "broadcast_in_dim") || tare_shlo_op_is(op, "dynamic_broadcast_in_dim") ||
                  tare_shlo_op_is(op, "convert")))
        op = op->operands[0]->op;
    return op && tare_shlo_op_is(op, "constant") ? tare_shlo_op_attr(op, "value") : NULL;
}

bool tare_lower_is_constant(const struct tare_lowering *l, size_t i, double value) {
    return tare_lower_is_number(l->op->operands[i], value);
}

bool tare_lower_number_of(double *number, const struct tare_shlo_value *value) {
    const struct tare_shlo_attr *constant = constant_of(value);
    size_t count;
    if (!constant || constant->kind != TARE_SHLO_ATTR_TENSOR || !tare_shlo_tensor_count(&count, constant)) return false;
    if (!tare_shlo_type_is_float(constant->type->element->kind) || !count) return false;
    if (count != 1 && !tare_shlo_tensor_is_splat(constant)) return false;
    *number = tare_shlo_tensor_real(constant, 0);
    return true;
}

bool tare_lower_is_number(const struct tare_shlo_value *value, double number) {
    double found;
    return tare_lower_number_of(&found, value) && found == number;
}

void tare_lower_set(struct tare_lowering *l, struct tare_edge value) {
    l->outputs[0] = value;
}

/* ---- nodes ---- */

static const struct tare_edge no_edge;

static bool is_list(const struct tare_op_arg *arg) {
    return arg->type_list_attr || arg->number_attr;
}

/* Inputs of argument a of the definition, the first of which is input `at`: lists share what single inputs leave. */
static size_t inputs_of(const struct tare_op_def *def, size_t a, size_t left) {
    size_t lists = 0, singles = 0;
    if (!is_list(&def->inputs[a])) return 1;
    for (size_t i = a; i < def->n_inputs; i++)
        if (is_list(&def->inputs[i]))
            lists++;
        else
            singles++;
    return left < singles ? 0 : (left - singles) / lists;
}

/* Sets the attributes that the dtypes and the number of the inputs decide. */
static void set_types(struct tare_lowering *l, struct tare_node *node) {
    const struct tare_op_def *def = node->def;
    int dtypes[256];
    size_t at = 0;
    if (!def || node->n_inputs > sizeof dtypes / sizeof *dtypes) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "op '%s' with %zu inputs", node->op, node->n_inputs);
        return;
    }
    for (size_t i = 0; i < node->n_inputs; i++)
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
    for (size_t a = 0; a < def->n_inputs; a++) {
        const struct tare_op_arg *arg = &def->inputs[a];
        const size_t many = inputs_of(def, a, node->n_inputs - at);
        if (at + many > node->n_inputs) break;
        if (arg->type_list_attr && !tare_node_find_attr(node, arg->type_list_attr))
            check(l, tare_node_set_type_list(node, arg->type_list_attr, dtypes + at, many));
        if (arg->number_attr) check(l, tare_node_set_int(node, arg->number_attr, (int64_t)many));
        if (arg->type_attr && many) check(l, tare_node_set_type(node, arg->type_attr, dtypes[at]));
        at += many;
    }
}

/* Parts of JAX's names that are not modules: transformations, which have parentheses, and bodies of loops. */
static bool is_module(const char *part, size_t size) {
    static const char *const others[] = { "while",       "body",       "cond",  "scan",
                                          "closed_call", "checkpoint", "remat", "core_call" };
    if (!size || memchr(part, '(', size)) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == size && memcmp(part, others[i], size) == 0) return false;
    return true;
}

/* "Block_0/Dense_0/dot_general" of the location "jit(apply)/while/body/Block_0/Dense_0/dot_general"; NULL: it names no
 * module. */
static const char *layer_name(struct tare_lowering *l) {
    const char *at = l->op ? l->op->location : NULL;
    char *name = at ? tare_arena_alloc(&l->graph->model->arena, strlen(at) + 1) : NULL;
    size_t size = 0, parts = 0;
    while (name && *at) {
        size_t part = 0, depth = 0;
        for (; at[part] && (at[part] != '/' || depth); part++)
            depth += (at[part] == '(') - (at[part] == ')' && depth);
        if (is_module(at, part)) {
            if (parts++) name[size++] = '/';
            memcpy(name + size, at, part);
            size += part;
        }
        at += part + (at[part] == '/');
    }
    if (parts < 2) return NULL;
    name[size] = '\0';
    return name;
}

struct tare_node *tare_lower_begin(struct tare_lowering *l, const char *op, const struct tare_edge *inputs,
                                   size_t count) {
    struct tare_node *node = NULL;
    for (size_t i = 0; i < count && l->status == TARE_OK; i++)
        if (!inputs[i].node) tare_lower_fail(l, TARE_INTERNAL, "op '%s': input %zu was not lowered", op, i);
    if (l->status != TARE_OK) return NULL;
    const char *name = layer_name(l);
    node = tare_graph_add(l->graph, op, name ? name : l->op ? strchr(l->op->name, '.') + 1 : op);
    if (!node) l->status = TARE_NO_MEMORY;
    for (size_t i = 0; i < count && l->status == TARE_OK; i++)
        check(l, tare_node_add_input(node, inputs[i]));
    if (l->status == TARE_OK) set_types(l, node);
    return l->status == TARE_OK ? node : NULL;
}

void tare_lower_attr_type(struct tare_lowering *l, struct tare_node *node, const char *name, int dtype) {
    if (node) check(l, tare_node_set_type(node, name, dtype));
}
void tare_lower_attr_int(struct tare_lowering *l, struct tare_node *node, const char *name, int64_t value) {
    if (node) check(l, tare_node_set_int(node, name, value));
}
void tare_lower_attr_bool(struct tare_lowering *l, struct tare_node *node, const char *name, bool value) {
    if (node) check(l, tare_node_set_bool(node, name, value));
}
void tare_lower_attr_bytes(struct tare_lowering *l, struct tare_node *node, const char *name, const void *data,
                           size_t size) {
    if (node) check(l, tare_node_set_string(node, name, data, size));
}
void tare_lower_attr_ints(struct tare_lowering *l, struct tare_node *node, const char *name, const int64_t *values,
                          size_t count) {
    if (node) check(l, tare_node_set_int_list(node, name, values, count));
}
void tare_lower_attr_func(struct tare_lowering *l, struct tare_node *node, const char *name, struct tare_graph *graph) {
    if (node && graph) check(l, tare_node_set_func(node, name, graph->name));
}

/* A module whose types do not fit its ops gives nodes of which TensorFlow has no form: reported with the op's place. */
static tare_status check_node(struct tare_node *node) {
    TARE_TRY(tare_node_resolve(node));
    TARE_TRY(tare_opdef_check_attrs(node));
    return tare_opdef_check_inputs(node);
}

struct tare_edge tare_lower_end(struct tare_lowering *l, struct tare_node *node) {
    if (!node || l->status != TARE_OK) return no_edge;
    check(l, check_node(node));
    return l->status == TARE_OK ? (struct tare_edge){ node, 0 } : no_edge;
}

size_t tare_lower_leaves(const struct tare_shlo_type *type) {
    return type->kind == TARE_SHLO_TUPLE ? type->inputs.count : 1;
}

void tare_lower_spread(struct tare_lowering *l, struct tare_node *node) {
    size_t at = 0;
    for (size_t i = 0; i < l->op->n_results && node && l->status == TARE_OK; i++) {
        l->outputs[i] = (struct tare_edge){ node, (int)at };
        at += tare_lower_leaves(tare_lower_out_type(l, i));
    }
}

void tare_lower_set_all(struct tare_lowering *l, struct tare_node *node) {
    tare_lower_end(l, node);
    tare_lower_spread(l, node);
}

struct tare_edge tare_lower_unary(struct tare_lowering *l, const char *op, struct tare_edge x) {
    return tare_lower_end(l, tare_lower_begin(l, op, &x, 1));
}

struct tare_edge tare_lower_binary(struct tare_lowering *l, const char *op, struct tare_edge x, struct tare_edge y) {
    const struct tare_edge inputs[] = { x, y };
    return tare_lower_end(l, tare_lower_begin(l, op, inputs, 2));
}

struct tare_edge tare_lower_select(struct tare_lowering *l, struct tare_edge condition, struct tare_edge yes,
                                   struct tare_edge no) {
    const struct tare_edge inputs[] = { condition, yes, no };
    return tare_lower_end(l, tare_lower_begin(l, "SelectV2", inputs, 3));
}

struct tare_edge tare_lower_cast(struct tare_lowering *l, struct tare_edge x, int dtype) {
    if (l->status != TARE_OK || tare_edge_dtype(x) == dtype) return x;
    struct tare_node *node = tare_lower_begin(l, "Cast", &x, 1);
    tare_lower_attr_type(l, node, "DstT", dtype);
    return tare_lower_end(l, node);
}

struct tare_edge tare_lower_bitcast(struct tare_lowering *l, struct tare_edge x, int dtype) {
    if (l->status != TARE_OK || tare_edge_dtype(x) == dtype) return x;
    struct tare_node *node = tare_lower_begin(l, "Bitcast", &x, 1);
    tare_lower_attr_type(l, node, "type", dtype);
    return tare_lower_end(l, node);
}

/* ---- constants ---- */

struct tare_edge tare_lower_tensor(struct tare_lowering *l, const struct tare_tensor *value) {
    struct tare_node *node;
    if (l->status != TARE_OK) return no_edge;
    node = tare_graph_add_const(l->graph, "constant", value);
    if (!node) l->status = TARE_NO_MEMORY;
    return (struct tare_edge){ node, 0 };
}

struct tare_edge tare_lower_string(struct tare_lowering *l, const char *text, size_t size) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor tensor;
    struct tare_edge edge = no_edge;
    if (l->status == TARE_OK) l->status = tare_tensor_new(&tensor, TARE_DT_STRING, &scalar);
    if (l->status != TARE_OK) return edge;
    l->status = tare_tensor_set_string(&tensor, 0, text, size);
    if (l->status == TARE_OK) edge = tare_lower_tensor(l, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

struct tare_edge tare_lower_scalar(struct tare_lowering *l, int dtype, double value) {
    const struct tare_shape scalar = { .rank = 0 };
    struct tare_tensor wide;
    struct tare_edge edge;
    if (l->status != TARE_OK) return no_edge;
    check(l, tare_tensor_new(&wide, dtype == TARE_DT_BOOL ? TARE_DT_BOOL : TARE_DT_DOUBLE, &scalar));
    if (l->status != TARE_OK) return no_edge;
    if (dtype == TARE_DT_BOOL)
        TARE_DATA(uint8_t, &wide)[0] = value != 0;
    else
        TARE_DATA(double, &wide)[0] = value;
    edge = tare_lower_tensor(l, &wide);
    tare_tensor_reset(&wide);
    return tare_lower_cast(l, edge, dtype);
}

struct tare_edge tare_lower_longs_of(struct tare_lowering *l, const int64_t *values, const int64_t *dims, size_t rank) {
    struct tare_shape shape;
    struct tare_tensor tensor;
    struct tare_edge edge;
    if (l->status != TARE_OK) return no_edge;
    check(l, tare_shape_from_dims(&shape, (int)rank, dims));
    if (l->status == TARE_OK) check(l, tare_tensor_new(&tensor, TARE_DT_INT64, &shape));
    if (l->status != TARE_OK) return no_edge;
    if (tensor.elements) memcpy(TARE_DATA(int64_t, &tensor), values, (size_t)tensor.elements * sizeof *values);
    edge = tare_lower_tensor(l, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

struct tare_edge tare_lower_longs(struct tare_lowering *l, const int64_t *values, size_t count) {
    const int64_t dim = (int64_t)count;
    return tare_lower_longs_of(l, values, &dim, 1);
}

struct tare_edge tare_lower_dims(struct tare_lowering *l, const struct tare_shlo_type *type) {
    for (size_t i = 0; i < type->rank; i++)
        if (type->dims[i] < 0) tare_lower_fail(l, TARE_UNSUPPORTED, "the result has a dynamic dimension");
    return tare_lower_longs(l, type->dims, type->rank);
}

struct tare_edge tare_lower_reshape(struct tare_lowering *l, struct tare_edge x, struct tare_edge shape) {
    return tare_lower_binary(l, "Reshape", x, shape);
}

/* ---- side effects ---- */

void tare_lower_effect(struct tare_lowering *l, struct tare_node *node) {
    if (l->status != TARE_OK) return;
    l->graph->is_stateful = true;
    l->status = tare_graph_add_control_return(l->graph, node->name, node);
}

/* ---- functions ---- */

struct tare_graph *tare_lower_called(struct tare_lowering *l) {
    const struct tare_shlo_attr *called = tare_shlo_op_attr(l->op, "called_computations");
    const struct tare_shlo_attr *name =
        called && called->kind == TARE_SHLO_ATTR_ARRAY && called->n_items == 1 ? called->items[0] : NULL;
    if (name && (name->kind == TARE_SHLO_ATTR_STRING || name->kind == TARE_SHLO_ATTR_SYMBOL))
        return tare_lower_function(l, name->text.data);
    tare_lower_fail(l, TARE_CORRUPT, "a custom call without its function");
    return NULL;
}

int64_t tare_lower_partitions(const struct tare_lowering *l) {
    const struct tare_shlo_attr *count = tare_shlo_find(tare_lower_module(l)->root->extra, "mhlo.num_partitions");
    return count && count->kind == TARE_SHLO_ATTR_INTEGER ? (int64_t)count->bits : 1;
}

struct tare_node *tare_lower_call(struct tare_lowering *l, struct tare_graph *function, const struct tare_edge *inputs,
                                  size_t count) {
    struct tare_node *node =
        tare_lower_begin(l, function->is_stateful ? "StatefulPartitionedCall" : "PartitionedCall", inputs, count);
    int *dtypes;
    if (!node) return NULL;
    dtypes = TARE_NEW_ARRAY(&l->graph->model->arena, int, function->n_returns + 1);
    if (!dtypes) {
        l->status = TARE_NO_MEMORY;
        return NULL;
    }
    for (size_t i = 0; i < function->n_returns; i++)
        dtypes[i] = function->returns[i].dtype;
    l->status = tare_node_set_type_list(node, "Tout", dtypes, function->n_returns);
    tare_lower_attr_func(l, node, "f", function);
    tare_lower_end(l, node);
    if (function->is_stateful) tare_lower_effect(l, node);
    return l->status == TARE_OK ? node : NULL;
}
