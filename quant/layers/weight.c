#include "quant/layers/weight.h"
#include "base/alloc.h"
#include "graph/op.h"
#include "quant/layers/widened_weight.h"
#include "quant/selection/scaling.h"

#include <string.h>

bool tare_quant_keeps_numbers(const struct tare_node *node) {
    static const char *const shapers[] = { "Identity", "ExpandDims", "Reshape" };
    if (!node->n_inputs) return false;
    if (strcmp(node->op, "Cast") == 0)
        return tare_quant_takes_dtype(tare_edge_dtype(node->inputs[0])) &&
               tare_quant_takes_dtype(node->output_dtypes[0]);
    for (size_t i = 0; i < sizeof shapers / sizeof *shapers; i++)
        if (strcmp(node->op, shapers[i]) == 0) return true;
    return false;
}

/* The output shape of an op that keeps the values; false if it is not known. */
static bool reshape(struct tare_shape *shape, const struct tare_node *node) {
    const struct tare_tensor *how = node->n_inputs > 1 ? tare_edge_constant(node->inputs[1]) : NULL;
    struct tare_shape out = tare_shape_scalar();
    int64_t axis, known = 1, all = 1, open = -1;
    if (strcmp(node->op, "Cast") == 0 || strcmp(node->op, "Identity") == 0) return true;
    if (!how || how->elements > TARE_MAX_RANK) return false;
    for (int i = 0; i < shape->rank; i++)
        all *= shape->dims[i];
    if (strcmp(node->op, "ExpandDims") == 0) {
        axis = how->elements == 1 ? tare_tensor_get_i64(how, 0) : TARE_MAX_RANK;
        if (axis < 0) axis += shape->rank + 1;
        if (axis < 0 || axis > shape->rank || shape->rank == TARE_MAX_RANK) return false;
        memmove(&shape->dims[axis + 1], &shape->dims[axis], (size_t)(shape->rank++ - axis) * sizeof *shape->dims);
        shape->dims[axis] = 1;
        return true;
    }
    for (out.rank = 0; out.rank < (int)how->elements; out.rank++) {
        out.dims[out.rank] = tare_tensor_get_i64(how, out.rank);
        if (out.dims[out.rank] < 0 && open >= 0) return false;
        if (out.dims[out.rank] < 0)
            open = out.rank;
        else if (!tare_mul_i64(&known, known, out.dims[out.rank]))
            return false;
    }
    if (open >= 0) out.dims[open] = known > 0 ? all / known : 0;
    *shape = out;
    return known * (open >= 0 ? out.dims[open] : 1) == all;
}

struct tare_variable *tare_quant_constant_variable(struct tare_node **read, struct tare_shape *shape,
                                                   struct tare_edge edge, const struct tare_bindings *bindings) {
    enum { DEEPEST = 8 };
    const struct tare_node *between[DEEPEST];
    struct tare_variable *variable;
    int depth = 0;
    for (; depth < DEEPEST && edge.index == 0 && tare_quant_keeps_numbers(edge.node); edge = edge.node->inputs[0])
        between[depth++] = edge.node;
    if (strcmp(edge.node->op, "ReadVariableOp") != 0) return NULL;
    *read = edge.node;
    variable = tare_bindings_variable(bindings, edge.node->inputs[0], NULL);
    if (!variable || !variable->constant || variable->value.dtype != tare_edge_dtype(edge)) return NULL;
    *shape = variable->value.shape;
    while (depth-- > 0)
        if (!reshape(shape, between[depth])) return NULL;
    return variable;
}

/* The weight that the layer holds: the value of a variable, or of constants times scales. */
static tare_status hold(struct tare_quant_layer *layer, struct tare_arena *arena, const struct tare_tensor *value,
                        const struct tare_shape *shape) {
    layer->held = TARE_NEW(arena, struct tare_tensor);
    if (!layer->held) return TARE_NO_MEMORY;
    layer->weight = layer->held;
    return tare_tensor_share_as(layer->held, value, shape);
}

static tare_status hold_widened(struct tare_quant_layer *layer, struct tare_arena *arena, struct tare_edge edge) {
    struct tare_tensor value = { 0 };
    tare_status status = tare_quant_widened_weight(&value, edge);
    if (status == TARE_OK && value.dtype != TARE_DT_INVALID) status = hold(layer, arena, &value, &value.shape);
    tare_tensor_reset(&value);
    return status;
}

static tare_status hold_scaled(struct tare_quant_layer *layer, struct tare_arena *arena) {
    struct tare_tensor value = { 0 };
    tare_status status = tare_quant_scaled_stack(&value, layer->selection);
    if (status == TARE_OK && value.dtype != TARE_DT_INVALID) status = hold(layer, arena, &value, &value.shape);
    tare_tensor_reset(&value);
    return status;
}

/* The constant at an input, in the graph or in a variable. */
static tare_status find_constant(struct tare_quant_layer *layer, struct tare_arena *arena, struct tare_edge edge,
                                 const struct tare_bindings *bindings) {
    struct tare_shape shape;
    layer->weight = tare_edge_constant(edge);
    if (layer->weight) return TARE_OK;
    layer->variable = tare_quant_constant_variable(&layer->read, &shape, edge, bindings);
    return layer->variable ? hold(layer, arena, &layer->variable->value, &shape) : hold_widened(layer, arena, edge);
}

/* The constant, or the stack of weights that the operand is chosen from. */
static tare_status find_weight(struct tare_quant_layer *layer, struct tare_arena *arena, size_t input,
                               const struct tare_model_shapes *shapes, const struct tare_bindings *bindings) {
    const struct tare_edge edge = layer->op->inputs[input];
    TARE_TRY(find_constant(layer, arena, edge, bindings));
    if (layer->weight || layer->kind == TARE_KIND_GATHER || !shapes) return TARE_OK;
    TARE_TRY(tare_quant_find_selection(&layer->selection, arena, edge, shapes));
    if (!layer->selection) return TARE_OK;
    TARE_TRY(layer->selection->is_scaled ? hold_scaled(layer, arena)
                                         : find_constant(layer, arena, layer->selection->stack, bindings));
    if (!layer->weight) layer->selection = NULL;
    return TARE_OK;
}

/* Whether constants and variables that nothing assigns determine the edge, *reads of them variables: with frozen
 * variables it would be folded to a constant. *budget bounds the nodes that are visited. */
static bool is_computed(int *reads, int *budget, struct tare_edge edge, const struct tare_bindings *bindings) {
    const struct tare_node *node = edge.node;
    if ((*budget)-- <= 0) return false;
    if (tare_edge_constant(edge)) return true;
    if (strcmp(node->op, "ReadVariableOp") == 0) {
        const struct tare_variable *variable = tare_bindings_variable(bindings, node->inputs[0], NULL);
        *reads += 1;
        return variable && variable->constant;
    }
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!is_computed(reads, budget, node->inputs[i], bindings)) return false;
    return node->n_inputs > 0;
}

static bool is_computed_weight(struct tare_edge edge, const struct tare_bindings *bindings) {
    enum { MOST_VISITED = 64 };
    int reads = 0, budget = MOST_VISITED;
    return is_computed(&reads, &budget, edge, bindings) && reads > 0;
}

/* Control flow of TensorFlow 1 between a weight and a layer; NULL if there is none. The weight is a constant or a
 * variable outside of it. */
static const char *frame_of_weight(struct tare_edge edge) {
    static const char *const enters[] = { "Enter", "RefEnter", NULL }, *const switches[] = { "Switch", "RefSwitch",
                                                                                             NULL };
    static const char *const sources[] = { "VarHandleOp", "Variable", "VariableV2", NULL };
    enum { DEEPEST = 64 };
    const char *frame = NULL;
    for (int depth = 0; depth < DEEPEST && !tare_edge_constant(edge); depth++, edge = edge.node->inputs[0]) {
        const struct tare_node *node = edge.node;
        if (tare_op_is_one_of(node->op, sources)) return frame;
        if (tare_op_is_one_of(node->op, enters))
            frame = "its weight is outside of the TensorFlow 1 loop that the layer is in (export the model with loops "
                    "that are functions: tf.compat.v1.enable_control_flow_v2)";
        else if (tare_op_is_one_of(node->op, switches))
            frame = frame ? frame
                          : "its weight passes through a TensorFlow 1 conditional (export the model with branches that "
                            "are functions: tf.compat.v1.enable_control_flow_v2)";
        else if (strcmp(node->op, "ReadVariableOp") != 0 && !tare_quant_keeps_numbers(node))
            return NULL;
        if (!node->n_inputs) return NULL;
    }
    return tare_edge_constant(edge) ? frame : NULL;
}

static const char *why_no_weight(struct tare_edge edge, const struct tare_bindings *bindings) {
    const char *frame = frame_of_weight(edge);
    if (frame) return frame;
    if (is_computed_weight(edge, bindings))
        return "its weight is computed from a kept variable (omit --keep-variables)";
    if (tare_quant_widens_at_run_time(edge))
        return "its weight is chosen from float8 values and scaled at run time (export the layers outside of a loop: "
               "lax.scan(unroll=True))";
    return NULL;
}

tare_status tare_quant_find_weight(struct tare_quant_layer *layer, struct tare_arena *arena,
                                   const struct tare_model_shapes *shapes, const struct tare_bindings *bindings) {
    const bool either = tare_quant_multiplies_arrays(layer->kind);
    TARE_TRY(find_weight(layer, arena, layer->right, shapes, bindings));
    if (layer->weight) return TARE_OK;
    if (either) TARE_TRY(find_weight(layer, arena, 0, shapes, bindings));
    if (!layer->weight) {
        if (!layer->no_weight) layer->no_weight = why_no_weight(layer->op->inputs[layer->right], bindings);
        if (!layer->no_weight && either) layer->no_weight = why_no_weight(layer->op->inputs[0], bindings);
        return TARE_OK;
    }
    layer->left = 1;
    layer->right = 0;
    return TARE_OK;
}
