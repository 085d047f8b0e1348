/* Hashes the nodes of all graphs in the order of their names. */
#include "calib/fingerprint.h"

#include "base/alloc.h"
#include "calib/attr_hash.h"

#include <stdlib.h>
#include <string.h>

static void hash_edge(struct tare_hash *hash, struct tare_edge edge) {
    tare_hash_add_text(hash, edge.node ? edge.node->name : "");
    tare_hash_add_u64(hash, (uint64_t)edge.index);
}

static void hash_attrs(struct tare_hash *hash, const struct tare_attr *attrs, size_t count);

static void hash_function(void *unused, struct tare_hash *hash, const struct tare_func *function) {
    (void)unused;
    tare_hash_add_text(hash, function->name);
    hash_attrs(hash, function->own ? function->own->attrs : NULL, function->own ? function->own->count : 0);
}

/* Independent of the order of the attributes: the sum of their hashes. */
static void hash_attrs(struct tare_hash *hash, const struct tare_attr *attrs, size_t count) {
    uint64_t sums[2] = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        struct tare_hash own;
        uint64_t result[2];
        tare_hash_begin(&own);
        tare_hash_add_attr(&own, &attrs[i], hash_function, NULL);
        tare_hash_end(&own, result);
        sums[0] += result[0];
        sums[1] += result[1];
    }
    tare_hash_add_u64(hash, count);
    tare_hash_add_u64(hash, sums[0]);
    tare_hash_add_u64(hash, sums[1]);
}

static void hash_node(struct tare_hash *hash, const struct tare_node *node) {
    tare_hash_add_text(hash, node->name);
    tare_hash_add_text(hash, node->op);
    tare_hash_add_u64(hash, node->n_inputs);
    for (size_t i = 0; i < node->n_inputs; i++)
        hash_edge(hash, node->inputs[i]);
    tare_hash_add_u64(hash, node->n_controls);
    for (size_t i = 0; i < node->n_controls; i++)
        tare_hash_add_text(hash, node->controls[i]->name);
    hash_attrs(hash, node->attrs, node->n_attrs);
}

static int by_node_name(const void *a, const void *b) {
    return strcmp((*(const struct tare_node *const *)a)->name, (*(const struct tare_node *const *)b)->name);
}

static tare_status hash_graph(struct tare_hash *hash, const struct tare_graph *graph) {
    const struct tare_node **nodes = tare_calloc(graph->n_nodes + 1, sizeof *nodes);
    if (!nodes) return TARE_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!graph->nodes[i]->dead) nodes[count++] = graph->nodes[i];
    }
    qsort(nodes, count, sizeof *nodes, by_node_name);
    tare_hash_add_text(hash, graph->name);
    tare_hash_add_u64(hash, graph->n_args);
    for (size_t i = 0; i < graph->n_args; i++) {
        tare_hash_add_text(hash, graph->args[i]->name);
        hash_attrs(hash, graph->args[i]->attrs, graph->args[i]->n_attrs);
    }
    tare_hash_add_u64(hash, count);
    for (size_t i = 0; i < count; i++)
        hash_node(hash, nodes[i]);
    tare_hash_add_u64(hash, graph->n_returns);
    for (size_t i = 0; i < graph->n_returns; i++)
        hash_edge(hash, graph->returns[i].edge);
    tare_free(nodes);
    return TARE_OK;
}

static int by_graph_name(const void *a, const void *b) {
    return strcmp((*(const struct tare_graph *const *)a)->name, (*(const struct tare_graph *const *)b)->name);
}

static tare_status hash_functions(struct tare_hash *hash, const struct tare_graph_model *model) {
    const struct tare_graph **graphs = tare_calloc(model->n_functions + 1, sizeof *graphs);
    if (!graphs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_functions; i++)
        graphs[i] = model->functions[i];
    qsort(graphs, model->n_functions, sizeof *graphs, by_graph_name);
    tare_status status = TARE_OK;
    tare_hash_add_u64(hash, model->n_functions);
    for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
        status = hash_graph(hash, graphs[i]);
    tare_free(graphs);
    return status;
}

/* The zeros are a kind and further edges of a binding, which fingerprints of earlier versions contain. */
static void hash_bindings(struct tare_hash *hash, const struct tare_binding *bindings, size_t count) {
    tare_hash_add_u64(hash, count);
    for (size_t i = 0; i < count; i++) {
        tare_hash_add_text(hash, bindings[i].key);
        tare_hash_add_u64(hash, 0);
        hash_edge(hash, bindings[i].edge);
        for (int none = 0; none < 3; none++)
            hash_edge(hash, (struct tare_edge){ NULL, 0 });
    }
}

tare_status tare_model_fingerprint(uint64_t out[2], const struct tare_graph_model *model) {
    return tare_model_fingerprint_forgetting(out, model, NULL);
}

tare_status tare_model_fingerprint_forgetting(uint64_t out[2], const struct tare_graph_model *model,
                                              void (*forget)(const struct tare_tensor *value)) {
    struct tare_hash hash;
    tare_hash_begin(&hash);
    TARE_TRY(hash_graph(&hash, model->main));
    TARE_TRY(hash_functions(&hash, model));
    tare_hash_add_u64(&hash, model->n_signatures);
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *signature = &model->signatures[i];
        tare_hash_add_text(&hash, signature->key);
        hash_bindings(&hash, signature->inputs, signature->n_inputs);
        hash_bindings(&hash, signature->outputs, signature->n_outputs);
    }
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *variable = &model->variables[i];
        if (!variable->node) continue; /* frozen: its constants are hashed where they are used */
        tare_hash_add_text(&hash, variable->shared_name);
        tare_hash_add_tensor(&hash, variable->value.dtype == TARE_DT_INVALID ? NULL : &variable->value);
        if (forget && variable->value.dtype != TARE_DT_INVALID) forget(&variable->value);
    }
    tare_hash_end(&hash, out);
    return TARE_OK;
}
