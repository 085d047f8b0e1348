/* Integer weights in variables that stay variables.
 *
 * A variable has one value for all of its readers, so its weight is quantized only where every data use of it is a
 * layer that expects the same integers (tare_quant_check_variables). Reads without a data use are common: Keras reads
 * the weights of a loop in the outer function for a control edge alone. They do not prevent quantization, but their
 * dtype must follow the variable's (tare_quant_retype_reads), or the model does not run. */
#include "quant/variables.h"
#include "quant/layer_index.h"
#include "quant/tied_tables.h"
#include "graph/model.h"
#include "base/tensor/spill.h"

#include <string.h>

/* The number of data uses of a value. An op that keeps the values is not a use; its own uses count instead. */
static size_t count_uses(const struct tare_graph *graph, struct tare_edge edge) {
    size_t count = tare_graph_count_uses(graph, edge, NULL);
    for (const struct tare_use *use = tare_edge_first_use(edge); use; use = tare_edge_next_use(use)) {
        struct tare_node *node = use->user;
        if (node->dead || use->input != 0 || !tare_quant_keeps_numbers(node)) continue;
        count += count_uses(graph, tare_node_output0(node)) - 1;
    }
    return count;
}

/* Ops other than ReadVariableOp that take the value or the shape of the variable at input 0. */
static bool reads_otherwise(const struct tare_node *node) {
    static const char *const ops[] = { "ResourceGather", "ResourceGatherNd", "VariableShape", NULL };
    return tare_op_is_one_of(node->op, ops);
}

/* Number of uses of the values of variables, by variable. */
struct reader_count {
    const struct tare_variable *variable;
    size_t count;
};

static tare_status count_readers(struct tare_map *counts, struct tare_arena *arena, const struct tare_graph *graph,
                                 const struct tare_bindings *bindings) {
    for (size_t n = 0; n < graph->n_nodes; n++) {
        struct tare_node *node = graph->nodes[n];
        const bool is_read = strcmp(node->op, "ReadVariableOp") == 0;
        if (node->dead || !node->n_inputs || (!is_read && !reads_otherwise(node))) continue;
        const struct tare_variable *variable = tare_bindings_variable(bindings, node->inputs[0], NULL);
        if (!variable) continue;
        struct reader_count *count = tare_map_get_n(counts, (const char *)&variable, sizeof variable);
        if (!count) {
            count = TARE_NEW(arena, struct reader_count);
            if (!count) return TARE_NO_MEMORY;
            count->variable = variable;
            if (!tare_map_set_n(counts, (const char *)&count->variable, sizeof count->variable, count))
                return TARE_NO_MEMORY;
        }
        count->count += is_read ? count_uses(graph, tare_node_output0(node)) : 1;
    }
    return TARE_OK;
}

/* Scales belong to batches and columns: a table has one for each entry, a product one for each column. */
static bool alike(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    return tare_quant_same_weight_settings(&a->setting, &b->setting) && a->setting.method == b->setting.method &&
           a->product.batches == b->product.batches && a->product.columns == b->product.columns &&
           tare_quant_same_arrangement(&a->product, &b->product) && !a->bias == !b->bias &&
           !a->selection == !b->selection;
}

/* The variable has one value: every reader must be a layer that expects the same integers. */
static const char *check(const struct tare_quant_work *work, const struct tare_quant_layer *layer,
                         const struct tare_map *counts, const struct tare_bindings *bindings) {
    const struct reader_count *count = tare_map_get_n(counts, (const char *)&layer->variable, sizeof layer->variable);
    const size_t readers = count ? count->count : 0;
    size_t layers = 0;
    for (const struct tare_quant_layer *other = tare_quant_first_reader(work, layer->variable); other;
         other = other->next_reader) {
        if (other->refused || (!alike(other, layer) && !tare_quant_is_tied(work, other, layer)))
            return "its weight is a variable that another layer reads as other integers or in float";
        layers++;
    }
    if (layers > 1 && layer->setting.method->takes_bias && layer->bias)
        return "its weight is a variable that several layers with biases read";
    return layers == readers && !tare_bindings_is_mixed(bindings, layer->variable)
               ? NULL
               : "its weight is a variable that other ops read as well";
}

static void check_layers(struct tare_quant_work *work, const struct tare_map *counts,
                         const struct tare_bindings *bindings) {
    bool changed = true;
    while (changed) { /* refusing a layer may leave another one with an unquantized reader of its variable */
        changed = false;
        for (size_t i = 0; i < work->n_layers; i++) {
            struct tare_quant_layer *layer = &work->layers[i];
            if (layer->refused || !layer->variable) continue;
            layer->refused = check(work, layer, counts, bindings);
            changed |= layer->refused != NULL;
        }
    }
}

tare_status tare_quant_check_variables(struct tare_quant_work *work, const struct tare_bindings *bindings) {
    struct tare_map counts = { 0 };
    tare_status status = count_readers(&counts, work->arena, work->model->main, bindings);
    for (size_t i = 0; i < work->model->n_functions && status == TARE_OK; i++)
        status = count_readers(&counts, work->arena, work->model->functions[i], bindings);
    if (status == TARE_OK) check_layers(work, &counts, bindings);
    tare_map_free(&counts);
    return status;
}

/* Changes the dtype attribute `attr` of a node, and the dtypes that follow from it. */
static tare_status retype(struct tare_node *node, const char *attr, int dtype) {
    if (tare_node_type(node, attr, TARE_DT_INVALID) == dtype) return TARE_OK;
    TARE_TRY(tare_node_set_type(node, attr, dtype));
    tare_node_remove_attr(node, "_output_shapes");
    return tare_node_resolve(node);
}

tare_status tare_quant_store(struct tare_edge *out, struct tare_quant_layer *layer, const struct tare_tensor *value) {
    enum { LARGE = 1 << 20 };
    struct tare_variable *variable = layer->variable;
    struct tare_node *read = layer->read;
    if (variable->value.data == layer->held->data) {
        tare_tensor_reset(&variable->value);
        tare_tensor_share(&variable->value, value);
        if (tare_tensor_bytes(value) >= LARGE) tare_tensor_spill(&variable->value);
        variable->dtype = value->dtype;
        variable->shape = value->shape;
        read->graph->model->retyped = true;
        TARE_TRY(tare_node_set_type(variable->node, "dtype", value->dtype));
        TARE_TRY(tare_node_set_shape(variable->node, "shape", &value->shape));
        tare_node_remove_attr(variable->node, "_output_shapes");
    }
    TARE_TRY(retype(read, "dtype", value->dtype));
    *out = (struct tare_edge){ read, 0 };
    return TARE_OK;
}

/* ---- reads without a data use ---- */

/* Retypes the ops that keep the values of `node`'s output 0: nothing else uses it. A use of another kind, which
 * tare_quant_check_variables excludes, is an internal error. */
static tare_status retype_users(struct tare_node *node, int dtype) {
    struct tare_graph *graph = node->graph;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        struct tare_node *user = graph->nodes[n];
        if (user->dead || !user->n_inputs || user->inputs[0].node != node) continue;
        if (!tare_quant_keeps_numbers(user))
            return TARE_FAIL(TARE_INTERNAL, "%s (%s) reads a quantized variable as float", user->name, user->op);
        if (strcmp(user->op, "Cast") == 0) {
            TARE_TRY(retype(user, "SrcT", dtype));
            continue;
        }
        TARE_TRY(retype(user, "T", dtype));
        TARE_TRY(retype_users(user, dtype));
    }
    return TARE_OK;
}

static bool is_quantized(const struct tare_quant_work *work, const struct tare_variable *variable) {
    for (size_t i = 0; i < work->n_layers; i++)
        if (!work->layers[i].refused && work->layers[i].variable == variable) return true;
    return false;
}

static tare_status retype_reads_in(struct tare_graph *graph, const struct tare_quant_work *work,
                                   const struct tare_bindings *bindings) {
    for (size_t n = 0; n < graph->n_nodes; n++) {
        struct tare_node *node = graph->nodes[n];
        const struct tare_variable *variable;
        if (node->dead || strcmp(node->op, "ReadVariableOp") != 0 || !node->n_inputs) continue;
        variable = tare_bindings_variable(bindings, node->inputs[0], NULL);
        if (!variable || tare_node_type(node, "dtype", TARE_DT_INVALID) == variable->dtype) continue;
        if (!is_quantized(work, variable)) continue;
        TARE_TRY(retype(node, "dtype", variable->dtype));
        TARE_TRY(retype_users(node, variable->dtype));
    }
    return TARE_OK;
}

tare_status tare_quant_retype_reads(const struct tare_quant_work *work) {
    struct tare_bindings *bindings;
    tare_status status;
    bool any = false;
    for (size_t i = 0; i < work->n_layers && !any; i++)
        any = !work->layers[i].refused && work->layers[i].variable;
    if (!any) return TARE_OK;
    TARE_TRY(tare_bindings_new(&bindings, work->model));
    status = retype_reads_in(work->model->main, work, bindings);
    for (size_t i = 0; i < work->model->n_functions && status == TARE_OK; i++)
        status = retype_reads_in(work->model->functions[i], work, bindings);
    tare_bindings_free(bindings);
    return status;
}
