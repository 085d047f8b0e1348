/* Shapes of what functions compute: a loader infers them when it imports a function, from the shapes that are written
 * down for the arguments, and refuses a function whose nodes contradict each other or what is written down for them.
 *
 * What is inferred takes more memory than the file's nodes: functions of unusual size are left out, and what was
 * inferred of callees is forgotten from time to time. */
#include "convert/validation/internal.h"
#include "interpreter/inference/infer.h"

#include <string.h>

enum { MOST_NODES = 30000, MOST_KEPT = 4000 };

struct shape_check {
    struct tare_file_validator *v;
    struct tare_inference *inference; /* of the functions since the last renewal */
    size_t n_nodes;                   /* of these */
    struct tare_arena arena;          /* of one function */
};

/* The shapes of `_input_shapes`; a handle's is that of its variable, which the loader does not use. */
static tare_status arg_shapes(struct tare_shape **out, struct shape_check *s, const struct tare_graph *graph) {
    const struct tare_attr *shapes = tare_graph_find_attr(graph, "_input_shapes");
    *out = TARE_NEW_ARRAY(&s->arena, struct tare_shape, graph->n_args + 1);
    if (!*out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_args; i++) {
        const bool listed = shapes && shapes->is_list && shapes->kind == TARE_ATTR_SHAPE && i < shapes->count;
        const bool is_value = graph->args[i]->output_dtypes[0] != TARE_DT_RESOURCE;
        (*out)[i] = listed && is_value ? *shapes->items[i].shape : tare_shape_unknown();
    }
    return TARE_OK;
}

static void check_node(struct shape_check *s, const struct tare_node *node, const struct tare_shape *inferred) {
    const struct tare_attr *shapes = tare_node_find_attr(node, "_output_shapes");
    const char *label = *node->graph->name ? node->graph->name : "graph";
    if (!inferred || !shapes || !shapes->is_list || shapes->kind != TARE_ATTR_SHAPE) return;
    for (size_t i = 0; i < node->n_outputs && i < shapes->count; i++) {
        char written[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
        const char *where;
        if (node->output_dtypes[i] == TARE_DT_RESOURCE || tare_shape_compatible(shapes->items[i].shape, &inferred[i]))
            continue;
        where = tare_arena_printf(&s->arena, "%s/%s (%s)", label, node->name, node->op);
        if (!where) s->v->out_of_memory = true;
        if (where)
            tare_file_fault(s->v, where, "output %zu has shape %s, _output_shapes has %s", i,
                            tare_shape_text(got, &inferred[i]), tare_shape_text(written, shapes->items[i].shape));
    }
}

static tare_status check_function(struct shape_check *s, const struct tare_graph *graph) {
    struct tare_shape *args, **shapes;
    tare_status status;
    TARE_TRY(arg_shapes(&args, s, graph));
    status = tare_graph_infer_shapes_with(s->inference, &shapes, &s->arena, graph, args, NULL);
    if (status == TARE_NO_MEMORY || status == TARE_INTERRUPTED) return status;
    tare_file_check(s->v, graph->name, "", status);
    for (size_t i = 0; status == TARE_OK && i < graph->n_nodes; i++)
        check_node(s, graph->nodes[i], shapes[i]);
    return TARE_OK;
}

static tare_status renew(struct shape_check *s, size_t n_nodes) {
    s->n_nodes += n_nodes;
    if (s->inference && s->n_nodes <= MOST_KEPT) return TARE_OK;
    tare_inference_free(s->inference);
    s->inference = tare_inference_new();
    s->n_nodes = n_nodes;
    return s->inference ? TARE_OK : TARE_NO_MEMORY;
}

void tare_validate_shapes(struct tare_file_validator *v) {
    struct shape_check s = { .v = v };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < v->model->n_functions && status == TARE_OK; i++) {
        const struct tare_graph *function = v->model->functions[i];
        const size_t n_nodes = function->n_nodes + function->n_args;
        if (n_nodes > MOST_NODES) continue;
        status = renew(&s, n_nodes);
        if (status == TARE_OK) status = check_function(&s, function);
        tare_arena_reset(&s.arena);
    }
    if (status != TARE_OK) v->out_of_memory = true;
    tare_inference_free(s.inference);
    tare_arena_free(&s.arena);
}
