/* Rows of composite functions: look-ups, layer normalisation, ops of plugins. */
#include "convert/composites/build.h"
#include "graph/attr_text.h"
#include "graph/definitions/opdef.h"
#include "graph/op.h"

#include <string.h>

/* ---- embedding ---- */

/* f(table, ids): rows of the table. */
static tare_status check_embedding(struct tare_composing *c) {
    int ids;
    TARE_TRY(tare_composing_verify(c, 2, 1));
    TARE_TRY(tare_composing_expect_arg(c, 0, TARE_DT_FLOAT, 2));
    if (c->reason) return TARE_OK;
    ids = c->graph->args[1]->output_dtypes[0];
    if (ids != TARE_DT_INT32 && ids != TARE_DT_INT64)
        return tare_composing_decline(c, "argument '%s' is %s (expected int32 or int64 ids)", c->graph->args[1]->name,
                                      tare_dtype_name(ids));
    return TARE_OK;
}

static tare_status build_embedding(struct tare_composing *c) {
    struct tare_edge inputs[3] = { tare_composing_arg(c, 0), tare_composing_arg(c, 1) };
    TARE_TRY(tare_composing_int(&inputs[2], c, "axis", 0));
    return tare_composing_op(&c->results[0], c, "GatherV2", "embedding_lookup", 3, inputs);
}

/* ---- layer normalisation ---- */

/* f(x, gamma, beta) with attribute epsilon, over the last axis. */
static tare_status check_layer_norm(struct tare_composing *c) {
    const struct tare_attr *epsilon = tare_composing_attr(c, "epsilon");
    TARE_TRY(tare_composing_want(c, 3, 1));
    TARE_TRY(tare_composing_expect_arg(c, 0, TARE_DT_FLOAT, -1));
    TARE_TRY(tare_composing_expect_arg(c, 1, TARE_DT_FLOAT, 1));
    TARE_TRY(tare_composing_expect_arg(c, 2, TARE_DT_FLOAT, 1));
    if (!c->reason && (!epsilon || epsilon->kind != TARE_ATTR_FLOAT || !epsilon->count))
        return tare_composing_decline(c, "epsilon attribute is not set or not a float");
    return TARE_OK;
}

static tare_status mean(struct tare_edge *out, struct tare_composing *c, const char *name, struct tare_edge x,
                        struct tare_edge axis) {
    struct tare_node *node;
    TARE_TRY(tare_composing_node(&node, c, "Mean", name, 2, (struct tare_edge[]){ x, axis }));
    TARE_TRY(tare_node_set_bool(node, "keep_dims", true));
    *out = (struct tare_edge){ node, 0 };
    return tare_node_resolve(node);
}

static tare_status build_layer_norm(struct tare_composing *c) {
    static const int32_t last[] = { -1 };
    struct tare_edge x = tare_composing_arg(c, 0), axis, center, spread, epsilon, scale, shift, y;
    TARE_TRY(tare_composing_ints(&axis, c, "axis", 1, last));
    TARE_TRY(tare_composing_float(&epsilon, c, "epsilon", tare_composing_attr(c, "epsilon")->items[0].f));
    TARE_TRY(mean(&center, c, "mean", x, axis));
    TARE_TRY(tare_composing_op(&y, c, "SquaredDifference", "deviation", 2, (struct tare_edge[]){ x, center }));
    TARE_TRY(mean(&spread, c, "variance", y, axis));
    TARE_TRY(tare_composing_op(&y, c, "AddV2", "add", 2, (struct tare_edge[]){ spread, epsilon }));
    TARE_TRY(tare_composing_op(&y, c, "Rsqrt", "rsqrt", 1, &y));
    TARE_TRY(tare_composing_op(&scale, c, "Mul", "scale", 2, (struct tare_edge[]){ y, tare_composing_arg(c, 1) }));
    TARE_TRY(tare_composing_op(&y, c, "Mul", "scaled_mean", 2, (struct tare_edge[]){ center, scale }));
    TARE_TRY(tare_composing_op(&shift, c, "Sub", "shift", 2, (struct tare_edge[]){ tare_composing_arg(c, 2), y }));
    TARE_TRY(tare_composing_op(&y, c, "Mul", "scaled", 2, (struct tare_edge[]){ x, scale }));
    return tare_composing_op(&c->results[0], c, "AddV2", "normalized", 2, (struct tare_edge[]){ y, shift });
}

/* ---- non-maximum suppression ---- */

/* tf.image.non_max_suppression_padded: f(boxes, scores, max_output_size, iou_threshold, score_threshold, ...) ->
 * (indices, number of valid ones), without a batch. */
static tare_status check_nms(struct tare_composing *c) {
    if (c->graph->n_args < 5 || c->graph->n_returns != 2)
        return tare_composing_decline(c, "it has %zu arguments and %zu results (expected at least 5, and 2)",
                                      c->graph->n_args, c->graph->n_returns);
    TARE_TRY(tare_composing_expect_arg(c, 0, TARE_DT_FLOAT, 2));
    TARE_TRY(tare_composing_expect_arg(c, 1, TARE_DT_FLOAT, 1));
    TARE_TRY(tare_composing_expect_arg(c, 2, TARE_DT_INT32, -1));
    TARE_TRY(tare_composing_expect_arg(c, 3, TARE_DT_FLOAT, -1));
    TARE_TRY(tare_composing_expect_arg(c, 4, TARE_DT_FLOAT, -1));
    for (size_t i = 0; i < 2 && !c->reason; i++)
        if (c->graph->returns[i].dtype != TARE_DT_INT32)
            return tare_composing_decline(c, "result %zu is %s (expected int32)", i,
                                          tare_dtype_name(c->graph->returns[i].dtype));
    return TARE_OK;
}

static tare_status build_nms(struct tare_composing *c) {
    struct tare_edge inputs[5];
    struct tare_node *node;
    for (size_t i = 0; i < 5; i++)
        inputs[i] = tare_composing_arg(c, i);
    TARE_TRY(tare_composing_node(&node, c, "NonMaxSuppressionV4", "non_max_suppression", 5, inputs));
    TARE_TRY(tare_node_set_bool(node, "pad_to_max_output_size", true));
    TARE_TRY(tare_node_resolve(node));
    c->results[0] = (struct tare_edge){ node, 0 };
    c->results[1] = (struct tare_edge){ node, 1 };
    return TARE_OK;
}

/* ---- ops of the user ---- */

static const struct tare_op_def *find_def(const struct tare_composing *c) {
    const struct tare_graph_model *model = c->graph->model;
    return tare_ops_find(model->custom_ops ? model->custom_ops : model->ops, c->name);
}

static bool is_list(const struct tare_op_arg *arg) {
    return arg->type_list_attr || arg->number_attr;
}

/* Whether so many tensors can be these arguments: each is one, a list any number. */
static bool may_be(const struct tare_op_arg *args, size_t n_args, size_t tensors) {
    size_t lists = 0;
    for (size_t i = 0; i < n_args; i++)
        lists += is_list(&args[i]);
    return lists ? tensors >= n_args - lists : tensors == n_args;
}

static bool is_named(const char *name, const char *other) {
    return other && strcmp(name, other) == 0;
}

/* What the types and the number of the inputs determine. */
static bool follows_from_inputs(const struct tare_op_def *def, const char *attr) {
    for (size_t i = 0; i < def->n_inputs; i++)
        if (is_named(attr, def->inputs[i].type_attr) || is_named(attr, def->inputs[i].type_list_attr) ||
            is_named(attr, def->inputs[i].number_attr))
            return true;
    return false;
}

static tare_status check_attrs(struct tare_composing *c, const struct tare_op_def *def) {
    for (size_t i = 0; i < c->n_attrs; i++) {
        const struct tare_attr *given = &c->attrs[i];
        const struct tare_op_attr *attr = tare_op_def_find_attr(def, given->name, strlen(given->name));
        if (strcmp(given->name, "tfl_fusable_op") == 0) continue;
        if (!attr) return tare_composing_decline(c, "op '%s' has no attribute '%s'", c->name, given->name);
        if (attr->kind != given->kind || attr->is_list != given->is_list)
            return tare_composing_decline(c, "attribute '%s' of op '%s' is %s (expected %s)", given->name, c->name,
                                          tare_attr_kind_name(given->kind, given->is_list),
                                          tare_attr_kind_name(attr->kind, attr->is_list));
    }
    for (size_t i = 0; i < def->n_attrs; i++)
        if (!def->attrs[i].default_value && !tare_composing_attr(c, def->attrs[i].name) &&
            !follows_from_inputs(def, def->attrs[i].name))
            return tare_composing_decline(c, "op '%s' requires the attribute '%s'", c->name, def->attrs[i].name);
    return TARE_OK;
}

/* The attribute as the annotation has it. */
static tare_status copy_attr(struct tare_node *node, const struct tare_attr *attr) {
    const union tare_attr_item *item = attr->items;
    if (!attr->count || attr->is_list)
        return TARE_FAIL(TARE_UNSUPPORTED, "attribute '%s' of %s is a list", attr->name, node->op);
    switch (attr->kind) {
    case TARE_ATTR_INT:
        return tare_node_set_int(node, attr->name, item->i);
    case TARE_ATTR_FLOAT:
        return tare_node_set_float(node, attr->name, item->f);
    case TARE_ATTR_BOOL:
        return tare_node_set_bool(node, attr->name, item->b);
    case TARE_ATTR_TYPE:
        return tare_node_set_type(node, attr->name, item->type);
    case TARE_ATTR_STRING:
        return tare_node_set_string(node, attr->name, item->s.data, item->s.size);
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "attribute '%s' of %s has no plain value", attr->name, node->op);
    }
}

static tare_status add_user_op(struct tare_node **out, struct tare_composing *c) {
    struct tare_edge *inputs = TARE_NEW_ARRAY(c->arena, struct tare_edge, c->graph->n_args + 1);
    if (!inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < c->graph->n_args; i++)
        inputs[i] = tare_composing_arg(c, i);
    TARE_TRY(tare_composing_node(out, c, c->name, c->name, c->graph->n_args, inputs));
    for (size_t i = 0; i < c->n_attrs; i++)
        if (strcmp(c->attrs[i].name, "tfl_fusable_op") != 0) TARE_TRY(copy_attr(*out, &c->attrs[i]));
    TARE_TRY(tare_node_resolve(*out));
    return tare_opdef_check_attrs(*out);
}

static tare_status decline_returns(struct tare_composing *c, const struct tare_node *node) {
    const struct tare_graph *function = c->graph;
    if (node->n_outputs != function->n_returns)
        return tare_composing_decline(c, "op '%s' has %zu outputs, the function %zu", c->name, node->n_outputs,
                                      function->n_returns);
    for (size_t i = 0; i < function->n_returns; i++)
        if (node->output_dtypes[i] != function->returns[i].dtype)
            return tare_composing_decline(c, "output %zu of op '%s' is %s, of the function %s", i, c->name,
                                          tare_dtype_name(node->output_dtypes[i]),
                                          tare_dtype_name(function->returns[i].dtype));
    return TARE_OK;
}

/* Adds the op to a function with the same arguments. */
static tare_status try_in(struct tare_composing *c, struct tare_graph_model *scratch) {
    struct tare_composing trial = *c;
    struct tare_node *node;
    tare_status status;
    trial.graph = tare_model_add_function(scratch, c->graph->name);
    for (size_t i = 0; trial.graph && i < c->graph->n_args; i++)
        if (!tare_graph_add_arg(trial.graph, c->graph->args[i]->name, c->graph->args[i]->output_dtypes[0]))
            return TARE_NO_MEMORY;
    status = trial.graph ? add_user_op(&node, &trial) : TARE_NO_MEMORY;
    if (status == TARE_NO_MEMORY) return status;
    return status == TARE_OK ? decline_returns(c, node) : tare_composing_decline(c, "%s", tare_error_text());
}

static tare_status try_user_op(struct tare_composing *c) {
    const struct tare_graph_model *model = c->graph->model;
    struct tare_graph_model *scratch = tare_model_new(model->custom_ops ? model->custom_ops : model->ops);
    const tare_status status = scratch ? try_in(c, scratch) : TARE_NO_MEMORY;
    tare_model_free(scratch);
    if (status == TARE_OK) tare_error_clear();
    return status;
}

/* Inputs before a list have the positions of the arguments. */
static tare_status check_inputs(struct tare_composing *c, const struct tare_op_def *def) {
    for (size_t i = 0; i < def->n_inputs && i < c->graph->n_args && !is_list(&def->inputs[i]); i++) {
        const int dtype = c->graph->args[i]->output_dtypes[0];
        if (def->inputs[i].dtype && def->inputs[i].dtype != dtype)
            return tare_composing_decline(c, "input %zu of op '%s' is %s, of the function %s", i, c->name,
                                          tare_dtype_name(def->inputs[i].dtype), tare_dtype_name(dtype));
    }
    return TARE_OK;
}

static tare_status check_user_op(struct tare_composing *c) {
    const struct tare_op_def *def = find_def(c);
    if (!def)
        return tare_composing_decline(c, "there is no op '%s' (--plugin loads a library that defines it)", c->name);
    TARE_TRY(check_attrs(c, def));
    if (c->reason) return TARE_OK;
    if (!may_be(def->inputs, def->n_inputs, c->graph->n_args) ||
        !may_be(def->outputs, def->n_outputs, c->graph->n_returns))
        return tare_composing_decline(c, "op '%s' has %zu inputs and %zu outputs, the function %zu and %zu", c->name,
                                      def->n_inputs, def->n_outputs, c->graph->n_args, c->graph->n_returns);
    TARE_TRY(check_inputs(c, def));
    return c->reason ? TARE_OK : try_user_op(c);
}

static tare_status build_user_op(struct tare_composing *c) {
    struct tare_node *node;
    TARE_TRY(add_user_op(&node, c));
    for (size_t i = 0; i < c->graph->n_returns; i++)
        c->results[i] = (struct tare_edge){ node, (int)i };
    return TARE_OK;
}

const struct tare_composite_row tare_composite_rows[] = {
    { "embedding_lookup", false, false, check_embedding, build_embedding },
    { "embedding_matmul", false, false, check_embedding, build_embedding },
    { "layer_norm", false, false, check_layer_norm, build_layer_norm },
    { "layer_normalization", false, false, check_layer_norm, build_layer_norm },
    { "non_max_suppression_padded_v2", false, false, check_nms, build_nms },
    { "LSTMCellSimple", false, false, tare_composite_check_lstm_cell, tare_composite_build_lstm_cell },
    { "LSTMCellSimple,CoupleInputForgetGates", false, false, tare_composite_check_lstm_cell,
      tare_composite_build_lstm_cell },
    { "lstm_", true, true, tare_composite_check_lstm, tare_composite_build_lstm },
    { "standard_lstm", true, false, tare_composite_check_lstm, tare_composite_build_lstm },
    { "gru_", true, true, tare_composite_check_gru, tare_composite_build_gru },
    { "standard_gru", true, false, tare_composite_check_gru, tare_composite_build_gru },
    { NULL, false, false, check_user_op, build_user_op },
    { NULL, false, false, NULL, NULL },
};
