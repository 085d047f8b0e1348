/* Shape inference over a graph: each node in order, with what is known of its inputs. */
#include "interpreter/inference/infer.h"
#include "interpreter/inference/infer_walk.h"
#include "graph/definitions/opdef.h"
#include "base/alloc.h"
#include "base/control.h"
#include "graph/model.h"

enum { MOST_CALLEE_NODES = 300000 };

static const struct tare_shape *keep_shape(struct tare_infer_walk *walk, const struct tare_shape *shape) {
    struct tare_shape *kept = TARE_NEW(&walk->root->arena, struct tare_shape);
    if (kept) *kept = *shape;
    return kept;
}

/* What the exporter of the model wrote down, for ops without inference. */
static void use_hints(const struct tare_node *node, struct tare_fact *outputs) {
    const struct tare_attr *hints = tare_node_find_attr(node, "_output_shapes");
    if (!hints) hints = tare_node_find_attr(node, "output_shapes");
    if (!hints || !hints->is_list || hints->kind != TARE_ATTR_SHAPE || hints->count != node->n_outputs) return;
    for (size_t i = 0; i < node->n_outputs; i++)
        outputs[i].shape = *hints->items[i].shape;
}

/* Parts of a variable: the indices' shape, without the axis of index vectors, then that of a part. */
static struct tare_shape gathered_shape(const struct tare_shape *variable, const struct tare_shape *indices,
                                        bool has_vectors) {
    struct tare_shape shape = *indices;
    int64_t depth = 1;
    if (has_vectors && shape.rank > 0) depth = shape.dims[--shape.rank];
    if (!variable || depth < 0 || variable->rank < depth || shape.rank < 0 ||
        shape.rank + variable->rank - depth > TARE_MAX_RANK)
        return tare_shape_unknown();
    for (int i = (int)depth; i < variable->rank; i++)
        shape.dims[shape.rank++] = variable->dims[i];
    return shape;
}

/* Variables: a handle carries the variable's shape, and a read has that shape. True when the node is one of these. */
static bool infer_variable(struct tare_infer_walk *walk, const struct tare_node *node, const struct tare_fact *inputs,
                           struct tare_fact *outputs) {
    struct tare_shape shape;
    if (!node->def || !node->n_outputs) return false;
    if (tare_node_is(node, "VarHandleOp")) {
        outputs[0].shape = tare_shape_scalar();
        if (tare_node_shape(node, "shape", &shape)) outputs[0].handle = keep_shape(walk, &shape);
    } else if (tare_node_is(node, "ReadVariableOp") && node->n_inputs == 1) {
        if (inputs[0].handle) outputs[0].shape = *inputs[0].handle;
        if (!inputs[0].handle) use_hints(node, outputs);
    } else if (tare_node_is(node, "ResourceGather") && node->n_inputs == 2 &&
               tare_node_int(node, "batch_dims", 0) == 0) {
        outputs[0].shape = gathered_shape(inputs[0].handle, &inputs[1].shape, false);
    } else if (tare_node_is(node, "ResourceGatherNd") && node->n_inputs == 2 && inputs[0].handle &&
               inputs[1].shape.rank > 0) {
        outputs[0].shape = gathered_shape(inputs[0].handle, &inputs[1].shape, true);
    } else if ((tare_node_is(node, "Identity") || tare_node_is(node, "Switch") ||
                tare_node_is(node, "TPUReplicatedInput")) &&
               node->n_inputs) {
        for (size_t i = 0; i < node->n_outputs; i++)
            outputs[i].handle = inputs[0].handle;
        return false; /* their shapes are the row's business */
    } else {
        return false;
    }
    return true;
}

static tare_status run_row(struct tare_infer_walk *walk, const struct tare_node *node, const struct tare_fact *inputs,
                           struct tare_fact *outputs) {
    struct tare_arena *arena = &walk->scratch;
    struct tare_infer infer = {
        .node = node, .n_inputs = node->n_inputs, .n_outputs = node->n_outputs, .arena = arena
    };
    int *dtypes = TARE_NEW_ARRAY(arena, int, node->n_inputs + 1);
    struct tare_shape *shapes = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_inputs + 1);
    const struct tare_tensor **values = TARE_NEW_ARRAY(arena, const struct tare_tensor *, node->n_inputs + 1);
    const struct tare_shape **parts = TARE_NEW_ARRAY(arena, const struct tare_shape *, node->n_inputs + 1);
    infer.outputs = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_outputs + 1);
    if (!dtypes || !shapes || !values || !parts || !infer.outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++) {
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
        shapes[i] = inputs[i].shape;
        values[i] = inputs[i].value;
        parts[i] = inputs[i].partial;
    }
    for (size_t i = 0; i < node->n_outputs; i++)
        infer.outputs[i] = tare_shape_unknown();
    infer.input_dtypes = dtypes;
    infer.inputs = shapes;
    infer.input_values = values;
    infer.input_parts = parts;
    TARE_TRY(node->def->row->infer(&infer));
    for (size_t i = 0; i < node->n_outputs; i++)
        outputs[i].shape = infer.outputs[i];
    return TARE_OK;
}

static tare_status check_edges(const struct tare_node *node) {
    if (node->def) return tare_opdef_check_inputs(node);
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_edge edge = node->inputs[i];
        if (!edge.node || edge.index < 0 || (size_t)edge.index >= edge.node->n_outputs)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu is not an output of a node", i);
    }
    return TARE_OK;
}

static tare_status infer_node(struct tare_infer_walk *walk, const struct tare_node *node, struct tare_fact *outputs) {
    struct tare_fact *inputs = TARE_NEW_ARRAY(&walk->scratch, struct tare_fact, node->n_inputs + 1);
    bool called = false;
    if (!inputs) return TARE_NO_MEMORY;
    TARE_TRY(check_edges(node));
    for (size_t i = 0; i < node->n_inputs; i++)
        inputs[i] = tare_infer_fact_of(walk, node->inputs[i]);
    if (infer_variable(walk, node, inputs, outputs)) return TARE_OK;
    TARE_TRY(tare_infer_call(walk, node, inputs, outputs, &called));
    if (called) return TARE_OK;
    if (!node->def || !node->def->row || !node->def->row->infer) {
        use_hints(node, outputs);
        return TARE_OK;
    }
    TARE_TRY(run_row(walk, node, inputs, outputs));
    return tare_infer_node_values(walk, node, inputs, outputs);
}

/* Arrays of the items of a node's outputs, of which readers may expect one. */
static size_t room_for_outputs(const struct tare_node *node) {
    return node->n_outputs ? node->n_outputs : 1;
}

static tare_status infer_in_order(struct tare_infer_walk *walk) {
    const struct tare_graph *graph = walk->graph;
    struct tare_arena *arena = &walk->root->arena;
    struct tare_node **order;
    walk->facts = TARE_NEW_ARRAY(arena, struct tare_fact *, graph->n_nodes + 1);
    if (!walk->facts) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, arena, graph));
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++) {
        const struct tare_node *node = order[i];
        struct tare_fact *outputs = TARE_NEW_ARRAY(arena, struct tare_fact, room_for_outputs(node));
        if (!outputs) return TARE_NO_MEMORY;
        for (size_t k = 0; k < node->n_outputs; k++)
            outputs[k] = tare_fact_unknown();
        TARE_TRY(tare_control_check());
        TARE_TRY(tare_error_prefix(infer_node(walk, node, outputs), "%s '%s'", node->op, node->name));
        walk->facts[node->position] = outputs; /* only now: a Merge sees nothing of its back edge */
        tare_arena_reset(&walk->scratch);
    }
    return TARE_OK;
}

/* Fills walk->facts of every live node. */
static tare_status infer_graph(struct tare_infer_walk *walk) {
    const tare_status status = infer_in_order(walk);
    tare_arena_free(&walk->scratch);
    return status;
}

static struct tare_fact *facts_of_args(struct tare_infer_root *root, const struct tare_graph *graph,
                                       const struct tare_shape *args, const struct tare_shape *const *handles) {
    struct tare_fact *facts = TARE_NEW_ARRAY(&root->arena, struct tare_fact, graph->n_args + 1);
    for (size_t i = 0; facts && i < graph->n_args; i++) {
        facts[i] = tare_fact_unknown();
        if (args)
            facts[i].shape = args[i];
        else
            use_hints(graph->args[i], &facts[i]);
        if (handles) facts[i].handle = handles[i];
    }
    return facts;
}

static tare_status copy_shapes(struct tare_shape ***out, struct tare_arena *arena, const struct tare_infer_walk *walk) {
    const struct tare_graph *graph = walk->graph;
    struct tare_shape **shapes = TARE_NEW_ARRAY(arena, struct tare_shape *, graph->n_nodes + 1);
    if (!shapes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        shapes[i] = TARE_NEW_ARRAY(arena, struct tare_shape, room_for_outputs(node));
        if (!shapes[i]) return TARE_NO_MEMORY;
        for (size_t k = 0; k < node->n_outputs; k++)
            shapes[i][k] = walk->facts[i] ? walk->facts[i][k].shape : tare_shape_unknown();
    }
    *out = shapes;
    return TARE_OK;
}

static void close_root(struct tare_infer_root *root) {
    for (struct tare_kept_value *kept = root->values; kept; kept = kept->next)
        tare_tensor_reset(&kept->tensor);
    tare_map_free(&root->calls);
    tare_arena_free(&root->arena);
}

/* Starts an inference with these facts of the arguments, and leaves all facts in *walk. */
static tare_status infer_from(struct tare_infer_walk *walk, struct tare_infer_root *root,
                              const struct tare_graph *graph, const struct tare_fact *args) {
    *walk = (struct tare_infer_walk){ .root = root, .graph = graph, .args = args };
    root->infer_graph = infer_graph;
    root->nodes_left = MOST_CALLEE_NODES;
    root->depth = 0;
    root->number++;
    return args ? infer_graph(walk) : TARE_NO_MEMORY;
}

static tare_status infer_in(struct tare_infer_walk *walk, struct tare_infer_root *root, const struct tare_graph *graph,
                            const struct tare_shape *args, const struct tare_shape *const *handles) {
    return infer_from(walk, root, graph, facts_of_args(root, graph, args, handles));
}

tare_status tare_graph_infer_shapes(struct tare_shape ***out, struct tare_arena *arena, const struct tare_graph *graph,
                                    const struct tare_shape *args) {
    return tare_graph_infer_shapes_of(out, arena, graph, args, NULL);
}

tare_status tare_graph_infer_shapes_of(struct tare_shape ***out, struct tare_arena *arena,
                                       const struct tare_graph *graph, const struct tare_shape *args,
                                       const struct tare_shape *const *handles) {
    return tare_graph_infer_shapes_with(NULL, out, arena, graph, args, handles);
}

tare_status tare_graph_infer_shapes_given(struct tare_shape ***out, struct tare_arena *arena,
                                          const struct tare_graph *graph, const struct tare_shape *args,
                                          const struct tare_tensor *const *values) {
    struct tare_infer_root root = { 0 };
    struct tare_infer_walk walk = { .root = &root, .graph = graph };
    struct tare_fact *facts = facts_of_args(&root, graph, args, NULL);
    tare_status status = facts ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_args && status == TARE_OK; i++)
        if (values[i]) status = tare_infer_value(&walk, values[i], &facts[i]);
    if (status == TARE_OK) status = infer_from(&walk, &root, graph, facts);
    if (status == TARE_OK) status = copy_shapes(out, arena, &walk);
    close_root(&root);
    return status;
}

tare_status tare_graph_infer_conflicts(tare_infer_conflict_fn conflict, void *arg, const struct tare_graph *graph,
                                       const struct tare_shape *args, const struct tare_shape *const *handles) {
    struct tare_infer_root root = { .conflict = conflict, .conflict_arg = arg };
    struct tare_infer_walk walk;
    const tare_status status = infer_in(&walk, &root, graph, args, handles);
    close_root(&root);
    return status;
}

/* ---- inferences that share what they infer of callees ---- */

struct tare_inference {
    struct tare_infer_root root;
};

struct tare_inference *tare_inference_new(void) {
    return tare_calloc(1, sizeof(struct tare_inference));
}

void tare_inference_free(struct tare_inference *inference) {
    if (!inference) return;
    close_root(&inference->root);
    tare_free(inference);
}

tare_status tare_graph_infer_shapes_with(struct tare_inference *inference, struct tare_shape ***out,
                                         struct tare_arena *arena, const struct tare_graph *graph,
                                         const struct tare_shape *args, const struct tare_shape *const *handles) {
    struct tare_infer_root own = { 0 };
    struct tare_infer_walk walk;
    tare_status status = infer_in(&walk, inference ? &inference->root : &own, graph, args, handles);
    if (status == TARE_OK) status = copy_shapes(out, arena, &walk);
    if (!inference) close_root(&own);
    return status;
}
