/* Finding annotated functions and giving them their fused bodies. */
#include "convert/composites/composites.h"
#include "convert/composites/build.h"
#include "graph/calls.h"
#include "graph/op.h"
#include "interpreter/plugins/plugin.h"

#include <string.h>

/* ---- annotations ---- */

/* Reads the annotation in the order of precedence; false: the function has none. */
static bool read_annotation(struct tare_composing *c, bool *keras) {
    const struct tare_attr *implements = tare_graph_find_attr(c->graph, "_implements");
    *keras = !implements;
    if (*keras) implements = tare_graph_find_attr(c->graph, "api_implements");
    if (!implements || !implements->count) return false;
    if (implements->kind == TARE_ATTR_STRING) {
        c->name = implements->items[0].s.data;
        return c->name && *c->name;
    }
    if (implements->kind != TARE_ATTR_FUNC || !implements->items[0].func.name) return false;
    c->name = implements->items[0].func.name;
    const struct tare_attr_list *own = implements->items[0].func.own;
    c->attrs = own ? own->attrs : NULL;
    c->n_attrs = own ? own->count : 0;
    return true;
}

static bool is_fusable_op(const struct tare_composing *c) {
    const struct tare_attr *fusable = tare_composing_attr(c, "tfl_fusable_op");
    return fusable && fusable->kind == TARE_ATTR_BOOL && fusable->count && fusable->items[0].b;
}

static const struct tare_composite_row *find_row(const struct tare_composing *c, bool keras) {
    for (const struct tare_composite_row *row = tare_composite_rows; row->check; row++) {
        if (!row->name) return !keras && is_fusable_op(c) ? row : NULL;
        if (row->is_keras != keras) continue;
        if (row->is_prefix ? strncmp(c->name, row->name, strlen(row->name)) == 0 : strcmp(c->name, row->name) == 0)
            return row;
    }
    return NULL;
}

static void drop_annotation(struct tare_graph *graph) {
    static const char *const names[] = { "_implements", "api_implements", "api_preferred_device" };
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_attrs; i++) {
        bool drop = false;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            drop |= strcmp(graph->attrs[i].name, names[k]) == 0;
        if (!drop) graph->attrs[kept++] = graph->attrs[i];
    }
    graph->n_attrs = kept;
}

/* ---- bodies ---- */

/* Makes c->results the returns; the nodes before `old` are those of the old body. */
static tare_status finish(struct tare_composing *c, size_t old) {
    struct tare_graph *graph = c->graph;
    for (size_t i = 0; i < graph->n_returns; i++) {
        if (tare_edge_dtype(c->results[i]) != graph->returns[i].dtype)
            return TARE_FAIL(TARE_INTERNAL, "failed to fuse for op: %s (result %zu)", c->name, i);
        tare_graph_set_return(graph, i, c->results[i]);
    }
    for (size_t i = 0; i < old; i++)
        tare_node_remove(graph->nodes[i]);
    tare_graph_sweep(graph);
    graph->is_stateful = false;
    drop_annotation(graph);
    return TARE_OK;
}

static tare_status replace_body(struct tare_composing *c, const struct tare_composite_row *row) {
    const size_t old = c->graph->n_nodes;
    c->results = TARE_NEW_ARRAY(c->arena, struct tare_edge, c->graph->n_returns + 1);
    if (!c->results) return TARE_NO_MEMORY;
    TARE_TRY(row->build(c));
    return finish(c, old);
}

/* ---- rewrites of libraries ---- */

static tare_status collect_shapes(struct tare_shape **out, const struct tare_composing *c) {
    *out = TARE_NEW_ARRAY(c->arena, struct tare_shape, c->graph->n_args + 1);
    for (size_t i = 0; *out && i < c->graph->n_args; i++)
        (*out)[i] = tare_composing_shape(c, i);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

/* Offers the function to each matching rewrite; *fused when one accepts it. What a declined one added is removed; the
 * reason of the first is kept. */
static tare_status try_plugins(bool *fused, struct tare_composing *c) {
    struct tare_graph *graph = c->graph;
    const struct tare_plugin_composite *at = NULL;
    struct tare_plugin_rewrite rewrite = {
        .graph = graph, .arena = c->arena, .name = c->name, .attrs = c->attrs, .n_attrs = c->n_attrs
    };
    struct tare_shape *shapes = NULL;
    *fused = false;
    while ((at = tare_plugins_next_composite(graph->model->ops, c->name, at))) {
        const size_t old = graph->n_nodes;
        if (!shapes) TARE_TRY(collect_shapes(&shapes, c));
        rewrite.shapes = shapes;
        rewrite.results = TARE_NEW_ARRAY(c->arena, struct tare_edge, graph->n_returns + 1);
        if (!rewrite.results) return TARE_NO_MEMORY;
        TARE_TRY(tare_plugin_composite_run(at, &rewrite));
        if (!rewrite.reason) {
            c->results = rewrite.results;
            c->reason = NULL;
            *fused = true;
            return finish(c, old);
        }
        for (size_t i = old; i < graph->n_nodes; i++)
            tare_node_remove(graph->nodes[i]);
        tare_graph_sweep(graph);
        if (!c->reason) c->reason = rewrite.reason;
    }
    return TARE_OK;
}

/* ---- one function ---- */

static tare_status append(struct tare_composites *to, struct tare_arena *arena, const struct tare_composite *item) {
    struct tare_composite *grown = tare_arena_append(arena, to->items, to->count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[to->count++] = *item;
    to->items = grown;
    to->fused += !item->reason;
    return TARE_OK;
}

/* A function that stayed composite may be looked at again. */
static tare_status remember(struct tare_graph_model *model, const struct tare_composite *item) {
    struct tare_composites *all = &model->composites;
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->items[i].function, item->function) != 0) continue;
        all->fused += !item->reason;
        all->items[i] = *item;
        return TARE_OK;
    }
    return append(all, &model->arena, item);
}

static tare_status add(struct tare_composites *out, struct tare_composing *c) {
    const struct tare_composite item = { c->graph->name, c->name, c->reason };
    TARE_TRY(append(out, c->arena, &item));
    return remember(c->graph->model, &item);
}

/* Gradients and the forward functions of training also carry the annotation, but are not used in serving. */
static bool is_for_training(const struct tare_graph *graph) {
    return strstr(graph->name, "__backward_") || strncmp(graph->name, "__forward_", strlen("__forward_")) == 0;
}

static tare_status fuse_function(struct tare_composites *out, struct tare_graph *graph,
                                 const struct tare_model_shapes *shapes) {
    struct tare_composing c = { .graph = graph, .arena = &graph->model->arena, .shapes = shapes };
    const struct tare_composite_row *row;
    const char *declined;
    bool keras, fused;
    if (is_for_training(graph) || !read_annotation(&c, &keras)) return TARE_OK;
    TARE_TRY(tare_error_prefix(try_plugins(&fused, &c), "function %s", graph->name));
    if (fused) return add(out, &c);
    declined = c.reason;
    c.reason = NULL;
    row = find_row(&c, keras);
    if (row)
        TARE_TRY(tare_error_prefix(row->check(&c), "function %s", graph->name));
    else
        TARE_TRY(
            tare_composing_decline(&c, "'%s' is not a known composite (and has no tfl_fusable_op attribute)", c.name));
    if (c.reason && declined) c.reason = declined;
    if (!c.reason) TARE_TRY(tare_error_prefix(replace_body(&c, row), "function %s", graph->name));
    return add(out, &c);
}

static bool is_annotated(const struct tare_graph *graph) {
    return tare_graph_find_attr(graph, "_implements") || tare_graph_find_attr(graph, "api_implements");
}

tare_status tare_composites_fuse(struct tare_composites *out, struct tare_graph_model *model) {
    struct tare_model_shapes *shapes = NULL;
    const size_t n_functions = model->n_functions; /* fusing adds some: bodies of loops */
    bool *live, any = false;
    tare_status status;
    memset(out, 0, sizeof *out);
    for (size_t f = 0; f < n_functions; f++)
        any |= is_annotated(model->functions[f]);
    if (!any) return TARE_OK;
    TARE_TRY(tare_model_reachable_functions(&live, &model->arena, model, true));
    TARE_TRY(tare_model_shapes_new(&shapes, model));
    status = TARE_OK;
    for (size_t f = 0; f < n_functions && status == TARE_OK; f++)
        if (live[f]) status = fuse_function(out, model->functions[f], shapes);
    tare_model_shapes_free(shapes);
    return status;
}
