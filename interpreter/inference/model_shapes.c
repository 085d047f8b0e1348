/* Shapes down the call graph: a graph is inferred when all of its callers are, so callers come first. */
#include "interpreter/inference/model_shapes.h"
#include "base/alloc.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "graph/graphs.h"
#include "interpreter/inference/infer.h"

struct graph_shapes {
    const struct tare_graph *graph;
    struct tare_shape *args;   /* merged over call sites */
    bool *seen;                /* some call site passed argument i */
    struct tare_shape **nodes; /* [position][output]; NULL until inferred */
    size_t n_nodes;
    size_t callers; /* call sites not inferred yet */
};

struct tare_model_shapes {
    struct tare_arena arena;
    struct tare_graph_table by_graph; /* -> struct graph_shapes */
    struct graph_shapes *graphs;      /* [0] is main */
    size_t count;
    struct graph_shapes **ready; /* while building: those whose callers are all inferred, in the order of inference */
    size_t n_ready;
    struct tare_bindings *bindings;   /* while building: which variables the arguments are */
    struct tare_inference *inference; /* while building: of all graphs */
};

static struct graph_shapes *find(const struct tare_model_shapes *shapes, const struct tare_graph *graph) {
    return tare_graph_table_get(&shapes->by_graph, graph);
}

struct tare_shape tare_model_shape(const struct tare_model_shapes *shapes, struct tare_edge edge) {
    const struct graph_shapes *entry = edge.node ? find(shapes, edge.node->graph) : NULL;
    if (!entry) return tare_shape_unknown();
    if (tare_node_is_arg(edge.node)) {
        size_t i = edge.node->position;
        return entry->args && entry->seen[i] ? entry->args[i] : tare_shape_unknown();
    }
    if (!entry->nodes || edge.node->position >= entry->n_nodes) return tare_shape_unknown(); /* a node made since */
    return entry->nodes[edge.node->position][edge.index];
}

/* What two call sites pass has in common. */
static struct tare_shape common(const struct tare_shape *a, const struct tare_shape *b) {
    struct tare_shape out = *a;
    if (a->rank != b->rank) return tare_shape_unknown();
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) out.dims[i] = TARE_UNKNOWN_DIM;
    return out;
}

/* ---- loops ---- */

static struct tare_shape shape_in(const struct tare_shape *args, struct tare_shape *const *nodes,
                                  struct tare_edge edge) {
    if (tare_node_is_arg(edge.node)) return args[edge.node->position];
    return nodes[edge.node->position] ? nodes[edge.node->position][edge.index] : tare_shape_unknown();
}

/* The shapes that the variables of a loop have in every turn. Each is assumed to be that of the initial value. If the
 * body returns another one for these, it is unknown, and the body is inferred again: what remains is true for the first
 * turn, and for each turn if it is true for the one before it. */
static tare_status settle_loop(struct tare_model_shapes *shapes, struct tare_shape *args,
                               const struct tare_graph *body) {
    const struct tare_shape **handles = tare_bindings_handles(shapes->bindings, &shapes->arena, body);
    bool changed = body->n_returns == body->n_args, settled = changed;
    if (!handles) return TARE_NO_MEMORY;
    while (changed) {
        struct tare_shape **nodes;
        const tare_status status = tare_graph_infer_shapes_of(&nodes, &shapes->arena, body, args, handles);
        if (status == TARE_NO_MEMORY || status == TARE_INTERRUPTED) return status;
        changed = false;
        settled = status == TARE_OK;
        if (!settled) tare_error_clear(); /* a shape of the first turn that the body does not accept */
        if (!settled) break;
        for (size_t i = 0; i < body->n_args; i++) {
            const struct tare_shape next = shape_in(args, nodes, body->returns[i].edge);
            if (args[i].rank == TARE_UNKNOWN_RANK || tare_shape_equal(&args[i], &next)) continue;
            args[i] = tare_shape_unknown();
            changed = true;
        }
    }
    for (size_t i = 0; !settled && i < body->n_args; i++)
        args[i] = tare_shape_unknown();
    return TARE_OK;
}

/* ---- call sites ---- */

/* Resource arguments have no shape of interest. */
static tare_status pass_shapes(struct tare_model_shapes *shapes, const struct tare_node *node,
                               const struct tare_call_site *site) {
    struct tare_shape *args = TARE_NEW_ARRAY(&shapes->arena, struct tare_shape, site->n_args + 1);
    const struct tare_graph *body = site->kind == TARE_CALL_LOOP && site->n_callees == 2 ? site->callees[1] : NULL;
    if (!args) return TARE_NO_MEMORY;
    for (size_t i = 0; i < site->n_args; i++)
        args[i] = site->kind == TARE_CALL_LOOP && (!body || body->n_args != site->n_args)
                      ? tare_shape_unknown()
                      : tare_model_shape(shapes, node->inputs[site->first + i]);
    if (body && body->n_args == site->n_args) TARE_TRY(settle_loop(shapes, args, body));
    for (size_t c = 0; c < site->n_callees; c++) {
        struct graph_shapes *callee = find(shapes, site->callees[c]);
        for (size_t i = 0; callee && i < site->n_args && i < callee->graph->n_args; i++) {
            callee->args[i] = callee->seen[i] ? common(&callee->args[i], &args[i]) : args[i];
            callee->seen[i] = true;
        }
        if (callee && --callee->callers == 0) shapes->ready[shapes->n_ready++] = callee;
    }
    return TARE_OK;
}

typedef tare_status (*site_fn)(struct tare_model_shapes *shapes, const struct tare_node *node,
                               const struct tare_call_site *site);

static tare_status each_site(struct tare_model_shapes *shapes, const struct tare_graph *graph, site_fn fn) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_call_site site;
        if (graph->nodes[i]->dead) continue;
        TARE_TRY(tare_call_site(&site, &shapes->arena, graph->nodes[i]));
        if (site.kind != TARE_CALL_NONE) TARE_TRY(fn(shapes, graph->nodes[i], &site));
    }
    return TARE_OK;
}

static tare_status count_callers(struct tare_model_shapes *shapes, const struct tare_node *node,
                                 const struct tare_call_site *site) {
    (void)node;
    for (size_t c = 0; c < site->n_callees; c++) {
        struct graph_shapes *callee = find(shapes, site->callees[c]);
        if (callee) callee->callers++;
    }
    return TARE_OK;
}

static tare_status infer(struct tare_model_shapes *shapes, struct graph_shapes *entry) {
    for (size_t i = 0; i < entry->graph->n_args; i++)
        if (!entry->seen[i]) entry->args[i] = tare_shape_unknown();
    const struct tare_shape **handles = tare_bindings_handles(shapes->bindings, &shapes->arena, entry->graph);
    if (!handles) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_infer_shapes_with(shapes->inference, &entry->nodes, &shapes->arena, entry->graph, entry->args,
                                          handles));
    entry->n_nodes = entry->graph->n_nodes;
    return each_site(shapes, entry->graph, pass_shapes);
}

static tare_status add_graph(struct tare_model_shapes *shapes, const struct tare_graph *graph) {
    struct graph_shapes *entry = &shapes->graphs[shapes->count++];
    entry->graph = graph;
    entry->args = TARE_NEW_ARRAY(&shapes->arena, struct tare_shape, graph->n_args + 1);
    entry->seen = TARE_NEW_ARRAY(&shapes->arena, bool, graph->n_args + 1);
    if (!entry->args || !entry->seen || !tare_graph_table_set(&shapes->by_graph, graph, entry)) return TARE_NO_MEMORY;
    return TARE_OK;
}

static tare_status build(struct tare_model_shapes *shapes, const struct tare_graph_model *model) {
    shapes->graphs = TARE_NEW_ARRAY(&shapes->arena, struct graph_shapes, model->n_functions + 1);
    shapes->ready = TARE_NEW_ARRAY(&shapes->arena, struct graph_shapes *, model->n_functions + 1);
    if (!shapes->graphs || !shapes->ready) return TARE_NO_MEMORY;
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(add_graph(shapes, tare_model_graph(model, i)));
    for (size_t i = 0; i < shapes->count; i++)
        TARE_TRY(each_site(shapes, shapes->graphs[i].graph, count_callers));
    for (size_t i = 0; i < shapes->count; i++)
        if (!shapes->graphs[i].callers) shapes->ready[shapes->n_ready++] = &shapes->graphs[i];
    for (size_t i = 0; i < shapes->n_ready; i++) {
        struct graph_shapes *entry = shapes->ready[i];
        TARE_TRY(
            tare_error_prefix(infer(shapes, entry), "%s", *entry->graph->name ? entry->graph->name : "main graph"));
    }
    return TARE_OK;
}

tare_status tare_model_shapes_new(struct tare_model_shapes **out, const struct tare_graph_model *model) {
    struct tare_model_shapes *shapes = tare_calloc(1, sizeof *shapes);
    tare_status status = shapes ? tare_bindings_new(&shapes->bindings, model) : TARE_NO_MEMORY;
    if (status == TARE_OK) {
        shapes->inference = tare_inference_new();
        status = shapes->inference ? build(shapes, model) : TARE_NO_MEMORY;
        tare_inference_free(shapes->inference);
        tare_bindings_free(shapes->bindings);
        shapes->inference = NULL;
        shapes->bindings = NULL;
    }
    if (status == TARE_OK)
        *out = shapes;
    else
        tare_model_shapes_free(shapes);
    return status;
}

void tare_model_shapes_free(struct tare_model_shapes *shapes) {
    if (!shapes) return;
    tare_graph_table_free(&shapes->by_graph);
    tare_arena_free(&shapes->arena);
    tare_free(shapes);
}
