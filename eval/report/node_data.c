/* Model Explorer's direct adapter numbers the nodes of a graph in the order of the file, from 0; in a function, 0 is
 * the node of its arguments. A graph that was loaded has the same order. The main graph is called "main". */
#include "eval/report/node_data.h"
#include "eval/report/json_text.h"
#include "eval/sensitivity.h"
#include "graph/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- places ---- */

static bool has_weight(const struct tare_node *node) {
    return node->def && node->def->row && node->def->row->quant == TARE_QUANT_WEIGHTED;
}

static size_t count_in(const struct tare_graph *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        count += has_weight(graph->nodes[i]);
    return count;
}

static tare_status add_graph(struct tare_comparison *c, const struct tare_graph *graph, bool is_main) {
    const char *name = tare_arena_strdup(&c->arena, graph->name);
    if (!name) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node_place *place = &c->places[c->n_places];
        if (!has_weight(graph->nodes[i])) continue;
        *place = (struct tare_node_place){ .function = name,
                                           .node = tare_arena_strdup(&c->arena, graph->nodes[i]->name),
                                           .number = i + !is_main };
        if (!place->node) return TARE_NO_MEMORY;
        c->n_places++;
    }
    return TARE_OK;
}

tare_status tare_node_places_find(struct tare_comparison *c, const struct tare_graph_model *model) {
    size_t count = count_in(model->main);
    for (size_t i = 0; i < model->n_functions; i++)
        count += count_in(model->functions[i]);
    c->places = TARE_NEW_ARRAY(&c->arena, struct tare_node_place, count + 1);
    if (!c->places) return TARE_NO_MEMORY;
    TARE_TRY(add_graph(c, model->main, true));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(add_graph(c, model->functions[i], false));
    return TARE_OK;
}

static const struct tare_node_place *place_of(const struct tare_comparison *c, const struct tare_explanation *e) {
    for (size_t i = 0; i < c->n_places; i++)
        if (strcmp(c->places[i].node, e->node) == 0 && strcmp(c->places[i].function, e->function) == 0)
            return &c->places[i];
    return NULL;
}

/* ---- JSON ---- */

/* From the layer that loses most to the one that loses least. */
static json_t *gradient(void) {
    return json_pack("[{s:i, s:s}, {s:f, s:s}, {s:i, s:s}]", "stop", 0, "bgColor", "#c62828", "stop", 0.5, "bgColor",
                     "#ffcc80", "stop", 1, "bgColor", "#ffffff");
}

/* The object of the graph, made by its first layer. */
static json_t *graph_of(json_t *root, const char *function) {
    const char *id = *function ? function : "main";
    json_t *graph = json_object_get(root, id);
    if (graph) return graph;
    json_object_set_new(root, id, json_pack("{s:{}, s:o}", "results", "gradient", gradient()));
    return json_object_get(root, id);
}

tare_status tare_comparison_node_data(struct tare_strbuf *out, const struct tare_comparison *c) {
    json_t *root = json_object();
    for (size_t i = 0; i < c->explanations.count; i++) {
        const struct tare_explanation *e = &c->explanations.items[i];
        const struct tare_node_place *place = e->refused ? NULL : place_of(c, e);
        const double db = place ? tare_layer_db(c->sensitivity, e) : INFINITY;
        char number[24];
        if (!isfinite(db)) continue;
        snprintf(number, sizeof number, "%zu", place->number);
        json_object_set_new(json_object_get(graph_of(root, place->function), "results"), number,
                            json_pack("{s:f}", "value", round(100 * db) / 100));
    }
    if (json_object_size(root)) return tare_json_write(out, root);
    json_decref(root);
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "no node data: no quantized layer is a node of the model's file (expected a SavedModel without "
                     "XlaCallModule, and a quantizing method)");
}
