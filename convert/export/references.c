/* What a model says by name about functions and nodes, and what no longer holds once passes changed it.
 *
 * - `_class` colocates a node with another one. TensorFlow refuses a main graph with the name of a node that
 *   is gone.
 * - Custom gradients: their functions capture values inside the functions that they belong to. Nothing that is served
 *   uses them, so they are removed with their names, unless the model is to be trained (graph/gradients.h).
 * - `api_implements` is a name that TensorFlow gives once to each set of functions that compute the same (an LSTM for
 *   the CPU and for the GPU). Of the functions of all models in a process that have one name, the runtime calls
 *   whichever suits the device: a changed function must not have the name of the one that it was.
 * - `_implements` is a name for what a function of values computes. TensorFlow refuses it on a function to which passes
 *   moved the read of a variable. */
#include "convert/export/export.h"

#include "graph/gradients.h"

#include <string.h>

static const char COLOCATED[] = "loc:@";

static bool is_kept_class(const struct tare_graph *graph, const struct tare_str *item) {
    const size_t prefix = sizeof COLOCATED - 1;
    if (item->size < prefix || memcmp(item->data, COLOCATED, prefix) != 0) return true;
    return tare_graph_find(graph, item->data + prefix);
}

static tare_status keep_classes(struct tare_node *node, struct tare_attr *classes) {
    struct tare_graph *graph = node->graph;
    union tare_attr_item *kept = TARE_NEW_ARRAY(&graph->model->arena, union tare_attr_item, classes->count);
    size_t count = 0;
    if (!kept) return TARE_NO_MEMORY;
    for (size_t i = 0; i < classes->count; i++)
        if (is_kept_class(graph, &classes->items[i].s)) kept[count++] = classes->items[i];
    if (count == classes->count) return TARE_OK;
    if (!count) {
        tare_node_remove_attr(node, "_class");
        return TARE_OK;
    }
    classes->items = kept; /* the array may be that of other nodes, too */
    classes->count = count;
    classes->origin = NULL;
    return TARE_OK;
}

static tare_status clean_node(struct tare_node *node) {
    if (!tare_node_keeps_gradient(node)) tare_node_remove_attr(node, "_gradient_op_type");
    for (size_t i = 0; i < node->n_attrs; i++) {
        struct tare_attr *attr = &node->attrs[i];
        if (strcmp(attr->name, "_class") == 0 && attr->kind == TARE_ATTR_STRING && attr->count)
            return keep_classes(node, attr);
    }
    return TARE_OK;
}

static tare_status clean_graph(struct tare_graph *graph) {
    static const char *const names[] = { "api_implements", "api_preferred_device", "forward_function_name",
                                         "backward_function_name" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TARE_TRY(tare_graph_remove_attr(graph, names[i]));
    if (tare_graph_takes_resource(graph)) TARE_TRY(tare_graph_remove_attr(graph, "_implements"));
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead) TARE_TRY(clean_node(graph->nodes[i]));
    return TARE_OK;
}

tare_status tare_export_drop_references(struct tare_graph_model *model) {
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(clean_graph(model->functions[i]));
    return clean_graph(model->main);
}
