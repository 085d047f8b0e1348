/* Integers in variables. */
#include "quant/variables.h"
#include "graph/model.h"
#include "base/tensor/spill.h"

#include <string.h>

/* Uses of a value but for ops that keep its numbers, whose own uses count instead. */
static size_t count_uses(const struct tare_graph *graph, struct tare_edge edge) {
    size_t count = tare_graph_count_uses(graph, edge, NULL);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        struct tare_node *node = graph->nodes[n];
        if (node->dead || !tare_quant_keeps_numbers(node) || !tare_edge_equal(node->inputs[0], edge)) continue;
        count += count_uses(graph, (struct tare_edge){ node, 0 }) - 1;
    }
    return count;
}

static size_t readers_in(const struct tare_graph *graph, const struct tare_variable *variable,
                         const struct tare_bindings *bindings) {
    size_t count = 0;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        struct tare_node *node = graph->nodes[n];
        if (node->dead || strcmp(node->op, "ReadVariableOp") != 0 || !node->n_inputs) continue;
        if (tare_bindings_variable(bindings, node->inputs[0], NULL) == variable)
            count += count_uses(graph, (struct tare_edge){ node, 0 });
    }
    return count;
}

static bool alike(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    const struct tare_quant_setting *x = &a->setting, *y = &b->setting;
    return x->bits == y->bits && x->granularity == y->granularity && x->block == y->block &&
           x->full_range == y->full_range && x->method == y->method &&
           tare_shape_equal(&a->product.arranged, &b->product.arranged) &&
           memcmp(a->product.order, b->product.order, sizeof a->product.order) == 0 && !a->bias == !b->bias;
}

/* One value serves all: every reader must be a layer that wants this very one. */
static const char *check(const struct tare_quant_work *work, const struct tare_quant_layer *layer,
                         const struct tare_bindings *bindings) {
    size_t readers = readers_in(work->model->main, layer->variable, bindings), layers = 0;
    for (size_t i = 0; i < work->model->n_functions; i++)
        readers += readers_in(work->model->functions[i], layer->variable, bindings);
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *other = &work->layers[i];
        if (other->variable != layer->variable) continue;
        if (other->refused || !alike(other, layer)) return "its weight is a variable that others read otherwise";
        layers++;
    }
    if (layers > 1 && layer->setting.method->takes_bias && layer->bias)
        return "its weight is a variable that several layers with biases read";
    return layers == readers ? NULL : "its weight is a variable that other ops read, too";
}

tare_status tare_quant_check_variables(struct tare_quant_work *work, const struct tare_bindings *bindings) {
    bool changed = true;
    while (changed) { /* a refusal may leave another layer without company */
        changed = false;
        for (size_t i = 0; i < work->n_layers; i++) {
            struct tare_quant_layer *layer = &work->layers[i];
            if (layer->refused || !layer->variable) continue;
            layer->refused = check(work, layer, bindings);
            changed |= layer->refused != NULL;
        }
    }
    return TARE_OK;
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
    if (tare_node_type(read, "dtype", TARE_DT_INVALID) != value->dtype) {
        TARE_TRY(tare_node_set_type(read, "dtype", value->dtype));
        tare_node_remove_attr(read, "_output_shapes");
        TARE_TRY(tare_node_resolve(read));
    }
    *out = (struct tare_edge){ read, 0 };
    return TARE_OK;
}
