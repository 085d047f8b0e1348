/* Computes nodes whose inputs are all constants, with the interpreter's own kernels. Large results that are
 * larger than their inputs are not folded: a Fill should not increase the size of the file. */
#include "convert/pass.h"
#include "base/alloc.h"
#include "base/control.h"
#include "base/tensor/float8.h"
#include "interpreter/inference/evaluate.h"

#include <string.h>

enum {
    LARGEST_GROWTH = 64 * 1024,           /* bytes that a folded result may have beyond its inputs */
    LARGEST_EXPANSION = 64 * 1024 * 1024, /* bytes of inputs that one number stands for in the file */
};

static tare_status gather_inputs(bool *constant, const struct tare_node *node, struct tare_tensor *values,
                                 size_t *bytes) {
    size_t expanded = 0;
    *constant = false;
    *bytes = 0;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_tensor *value = tare_edge_constant(node->inputs[i]);
        if (!value) return TARE_OK;
        if (value->splat) expanded += tare_tensor_bytes(value);
    }
    if (expanded > LARGEST_EXPANSION) return TARE_OK;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_tensor *value = tare_edge_constant(node->inputs[i]);
        *bytes += value->splat ? tare_dtype_size(value->dtype) : tare_tensor_bytes(value);
        if (value->splat)
            TARE_TRY(tare_tensor_copy(&values[i], value));
        else
            tare_tensor_share(&values[i], value);
    }
    *constant = true;
    return TARE_OK;
}

static tare_status replace_by_constants(struct tare_node *node, const struct tare_tensor *results) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        struct tare_node *constant = tare_graph_add_const(node->graph, node->name, &results[i]);
        if (!constant) return TARE_NO_MEMORY;
        tare_graph_replace_uses(node->graph, (struct tare_edge){ node, (int)i }, (struct tare_edge){ constant, 0 },
                                NULL);
    }
    tare_node_remove(node);
    return TARE_OK;
}

static tare_status fold(struct tare_node *node, size_t *changes) {
    struct tare_tensor *values = tare_calloc(node->n_inputs + node->n_outputs + 1, sizeof *values);
    struct tare_tensor *results = values ? values + node->n_inputs : NULL;
    tare_status status;
    size_t bytes, result_bytes = 0;
    bool constant;
    if (!values) return TARE_NO_MEMORY;
    TARE_CHECK(gather_inputs(&constant, node, values, &bytes));
    if (!constant) goto done;
    status = tare_node_evaluate(node, values, results);
    if (status != TARE_OK) { /* what fails now fails when it runs, if it ever does */
        status = tare_error_dismiss(status);
        goto done;
    }
    for (size_t i = 0; i < node->n_outputs; i++)
        result_bytes += tare_tensor_bytes(&results[i]);
    if (result_bytes <= bytes + LARGEST_GROWTH) {
        status = replace_by_constants(node, results);
        ++*changes;
    }
done:
    for (size_t i = 0; i < node->n_inputs + node->n_outputs; i++)
        tare_tensor_reset(&values[i]);
    tare_free(values);
    return status;
}

bool tare_widens_float8(const struct tare_node *node) {
    return tare_node_is(node, "Cast") && tare_float8_format(tare_edge_dtype(node->inputs[0]));
}

/* Users of constants skip Identity nodes; nodes with control inputs depend on other nodes. */
static bool is_candidate(const struct tare_node *node) {
    return node->n_inputs && !node->n_controls && tare_node_is_pure(node) && strcmp(node->op, "Identity") != 0 &&
           !tare_widens_float8(node);
}

static tare_status fold_graph(struct tare_graph *graph, size_t *changes) {
    struct tare_arena arena = { 0 };
    struct tare_node **order;
    size_t count = graph->n_nodes;
    tare_status status = tare_graph_order(&order, &arena, graph);
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        if (order[i] && is_candidate(order[i])) {
            status = tare_control_check();
            if (status == TARE_OK) status = fold(order[i], changes);
        }
    tare_graph_sweep(graph);
    tare_arena_free(&arena);
    return status;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    TARE_TRY(fold_graph(model->main, changes));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(fold_graph(model->functions[i], changes));
    return TARE_OK;
}

const struct tare_pass tare_pass_fold_constants = {
    .name = "fold_constants",
    .help = "compute nodes whose inputs are all constants",
    .run = run,
};
