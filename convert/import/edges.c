/* Names of tensors -> edges.
 *
 * The main graph names a tensor "node" or "node:2". A function names it "argument", or "node:output:0" by the name of
 * the op's output and the index within it, so resolving one needs the op's definition, the called function's returns,
 * or, for an op without a definition, the output names that the file uses (tare_unknown_outputs). */
#include "convert/import/edges.h"
#include "convert/import/import.h"
#include "graph/definitions/opdef.h"

#include <stdlib.h>
#include <string.h>

/* Marks a node whose outputs are unknown, because its op or its attributes are invalid and were reported: edges from it
 * are not checked. A graph with such nodes is never used. */
static const char without_outputs;

void tare_import_mark_without_outputs(struct tare_node *node) {
    node->origin = &without_outputs;
}

static bool has_outputs(const struct tare_node *node) {
    return node->origin != &without_outputs;
}

const char *const *tare_unknown_outputs(const struct tare_graph_model *model, const char *op, size_t *count) {
    const struct tare_name_list *list = tare_map_get(&model->unknown_outputs, op);
    *count = list ? list->count : 0;
    return list ? (const char *const *)list->names : NULL;
}

static tare_status parse_index(size_t *out, const char *text) {
    char *end;
    unsigned long value;
    if (*text < '0' || *text > '9') return TARE_FAIL(TARE_CORRUPT, "'%s' is not an output index", text);
    value = strtoul(text, &end, 10);
    if (*end || value > 1000000) return TARE_FAIL(TARE_CORRUPT, "'%s' is not an output index", text);
    *out = value;
    return TARE_OK;
}

static tare_status set_edge(struct tare_edge *out, struct tare_node *node, size_t index, const char *text) {
    if (index >= node->n_outputs && has_outputs(node))
        return TARE_FAIL(TARE_CORRUPT, "input %s: the node has %zu outputs", text, node->n_outputs);
    *out = (struct tare_edge){ node, (int)index };
    return TARE_OK;
}

static struct tare_node *find_node(const struct tare_graph *graph, const char *name, size_t size) {
    return tare_map_get_n(&graph->by_name, name, size);
}

/* Main graph: "node" or "node:k". */
tare_status tare_import_main_edge(struct tare_edge *out, const struct tare_graph *graph, const char *text) {
    const char *colon = strrchr(text, ':');
    size_t index = 0;
    struct tare_node *node;
    if (colon && parse_index(&index, colon + 1) != TARE_OK) {
        tare_error_clear();
        colon = NULL;
    }
    node = find_node(graph, text, colon ? (size_t)(colon - text) : strlen(text));
    if (!node) return TARE_FAIL(TARE_CORRUPT, "Unknown input node '%s'", text);
    return set_edge(out, node, index, text);
}

/* Position of output argument `name` among the outputs of a node: from the op's definition, the called function, or the
 * output names collected for an op without a definition. */
static tare_status output_by_name(size_t *first, size_t *count, const struct tare_node *node, const char *name,
                                  size_t size) {
    const struct tare_graph *callee = node->def ? NULL : tare_model_find_function(node->graph->model, node->op);
    const char *const *names;
    size_t n_names;
    if (node->def) {
        for (size_t a = 0; a < node->def->n_outputs; a++)
            if (strlen(node->def->outputs[a].name) == size && memcmp(node->def->outputs[a].name, name, size) == 0)
                return tare_node_output_range(node, a, first, count);
    }
    *count = 1;
    for (size_t a = 0; callee && a < callee->n_returns; a++)
        if (strlen(callee->returns[a].name) == size && memcmp(callee->returns[a].name, name, size) == 0)
            return *first = a, TARE_OK;
    if (!node->def && !callee) {
        names = tare_unknown_outputs(node->graph->model, node->op, &n_names);
        for (size_t a = 0; a < n_names; a++)
            if (names[a] && strlen(names[a]) == size && memcmp(names[a], name, size) == 0) return *first = a, TARE_OK;
    }
    return TARE_FAIL(TARE_CORRUPT, "%s has no output '%.*s'", node->op, (int)size, name);
}

/* Function: "arg", "arg:0" or "node:out:k". */
tare_status tare_import_function_edge(struct tare_edge *out, const struct tare_graph *graph, const char *text) {
    const char *colon = strchr(text, ':'), *second;
    size_t name_size = colon ? (size_t)(colon - text) : strlen(text), index = 0, first, count;
    struct tare_node *node = find_node(graph, text, name_size);
    if (!node) return TARE_FAIL(TARE_CORRUPT, "Unknown input node '%s'", text);
    if (tare_node_is_arg(node)) {
        if (colon && strcmp(colon, ":0") != 0)
            return TARE_FAIL(TARE_CORRUPT, "input %s: an argument has one output", text);
        *out = (struct tare_edge){ node, 0 };
        return TARE_OK;
    }
    if (!colon) return TARE_FAIL(TARE_CORRUPT, "input %s is not node:output:index", text);
    second = strchr(colon + 1, ':');
    if (second) TARE_TRY(parse_index(&index, second + 1));
    if (!has_outputs(node)) return set_edge(out, node, index, text);
    TARE_TRY(tare_error_prefix(
        output_by_name(&first, &count, node, colon + 1, second ? (size_t)(second - colon - 1) : strlen(colon + 1)),
        "input %s", text));
    if (index >= count) return TARE_FAIL(TARE_CORRUPT, "input %s: index out of range (%zu outputs)", text, count);
    return set_edge(out, node, first + index, text);
}

tare_status tare_import_tensor_name(struct tare_edge *out, const struct tare_graph_model *model, const char *name) {
    return tare_import_main_edge(out, model->main, name);
}
