/* Flattening and narrowing of the tensors that cross between host and TPU. */
#include "tpu/io_shapes.h"
#include "base/alloc.h"
#include "graph/calls.h"
#include "interpreter/inference/model_shapes.h"

#include <string.h>

enum { TILE_ROWS = 8, TILE_COLUMNS = 128 };

/* One placed function. */
struct crossing {
    struct tare_graph_model *model;
    const struct tare_tpu_placed *placed;
    const struct tare_model_shapes *shapes; /* as they were after placement */
    struct tare_node *call;                 /* TPUPartitionedCall in the stub */
    struct tare_node *pivot;                /* of the cluster */
    bool flattens;
    struct tare_io_shapes_result *result;
};

/* ---- which shapes ---- */

/* A TPU lays out the last two dimensions in tiles; an unknown first dimension of a matrix is assumed to fill them. */
static bool is_padded(const struct tare_shape *shape) {
    int rank = shape->rank;
    if (rank < 2) return false;
    for (int i = 1; i < rank; i++)
        if (shape->dims[i] < 1) return false;
    if (shape->dims[0] == 0) return false;
    if (shape->dims[rank - 1] % TILE_COLUMNS) return true;
    return shape->dims[rank - 2] > 0 && shape->dims[rank - 2] % TILE_ROWS;
}

/* ---- nodes ---- */

static tare_status join(const struct crossing *c, struct tare_node *node) {
    if (node->graph != c->placed->replicated) return TARE_OK;
    if (!node->n_inputs) TARE_TRY(tare_node_add_control(node, c->pivot)); /* begins with the cluster, not before */
    return tare_node_set_string(node, TARE_TPU_CLUSTER_ATTR, c->placed->cluster, strlen(c->placed->cluster));
}

/* reshape(x, dims) as NAME/SIDE/Reshape in the graph of x, in the cluster when that is the TPU's. */
static tare_status add_reshape(struct tare_edge *out, const struct crossing *c, struct tare_graph *graph,
                               struct tare_edge x, const char *name, const char *side, const struct tare_shape *to) {
    struct tare_arena *memory = &c->model->arena;
    const char *path = tare_arena_printf(memory, "%s/%s/Reshape", name, side);
    const char *shape_path = tare_arena_printf(memory, "%s/%s/Reshape/shape", name, side);
    struct tare_shape vector = tare_shape_make(1, to->rank);
    int32_t dims[TARE_MAX_RANK];
    struct tare_tensor value;
    struct tare_node *shape, *node;
    if (!path || !shape_path) return TARE_NO_MEMORY;
    for (int i = 0; i < to->rank; i++) {
        if (to->dims[i] > INT32_MAX) return TARE_FAIL(TARE_SHAPE, "%s: a dimension is too large", name);
        dims[i] = (int32_t)to->dims[i];
    }
    TARE_TRY(tare_tensor_from(&value, TARE_DT_INT32, &vector, dims));
    shape = tare_graph_add_const(graph, shape_path, &value);
    tare_tensor_reset(&value);
    node = shape ? tare_graph_add(graph, "Reshape", path) : NULL;
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(join(c, shape));
    TARE_TRY(tare_node_set_type(node, "T", tare_edge_dtype(x)));
    TARE_TRY(tare_node_set_type(node, "Tshape", TARE_DT_INT32));
    TARE_TRY(tare_node_add_input(node, x));
    TARE_TRY(tare_node_add_input(node, tare_node_output0(shape)));
    TARE_TRY(join(c, node));
    *out = tare_node_output0(node);
    return tare_node_resolve(node);
}

static tare_status add_cast(struct tare_edge *out, struct tare_graph *graph, struct tare_edge x, const char *name,
                            int dtype) {
    const char *path = tare_arena_printf(&graph->model->arena, "%s/Cast", name);
    struct tare_node *node = path ? tare_graph_add(graph, "Cast", path) : NULL;
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "SrcT", tare_edge_dtype(x)));
    TARE_TRY(tare_node_set_type(node, "DstT", dtype));
    TARE_TRY(tare_node_set_bool(node, "Truncate", false));
    TARE_TRY(tare_node_add_input(node, x));
    *out = tare_node_output0(node);
    return tare_node_resolve(node);
}

static tare_status retype(struct tare_node *node, int dtype) {
    TARE_TRY(tare_node_set_type(node, "T", dtype));
    return tare_node_resolve(node);
}

/* The call's type lists follow its function. */
static tare_status retype_call(const struct crossing *c) {
    TARE_TRY(tare_call_set_types(c->call, c->placed->replicated));
    return tare_node_resolve(c->call);
}

/* ---- inputs ---- */

/* The only user of an edge, if it is that op. */
static struct tare_node *only_user(const struct tare_graph *graph, struct tare_edge edge, const char *op) {
    struct tare_node *user;
    return tare_graph_count_uses(graph, edge, &user) == 1 && user && tare_node_is(user, op) ? user : NULL;
}

/* How an argument enters the cluster: TPUReplicatedInput, XlaSharding where it is split between cores, Identity. */
struct entry {
    struct tare_node *input, *sharding, *identity;
};

static bool find_entry(struct entry *entry, const struct tare_graph *body, struct tare_node *arg) {
    entry->input = only_user(body, tare_node_output0(arg), "TPUReplicatedInput");
    entry->sharding = entry->input ? only_user(body, tare_node_output0(entry->input), "XlaSharding") : NULL;
    entry->identity =
        entry->input ? only_user(body, tare_node_output0(entry->sharding ? entry->sharding : entry->input), "Identity")
                     : NULL;
    return entry->identity && tare_node_bool(entry->identity, "_tpu_input_identity", false);
}

static tare_status narrow_input(struct crossing *c, size_t i, const struct entry *entry) {
    struct tare_graph *body = c->placed->replicated;
    struct tare_edge narrowed;
    struct tare_node *identity = entry->identity;
    struct tare_node *arg = body->args[i], *cast = only_user(body, tare_node_output0(identity), "Cast");
    if (!cast || tare_edge_dtype(tare_node_output0(arg)) != TARE_DT_FLOAT || cast->output_dtypes[0] != TARE_DT_BFLOAT16)
        return TARE_OK;
    TARE_TRY(retype(arg, TARE_DT_BFLOAT16));
    TARE_TRY(retype(entry->input, TARE_DT_BFLOAT16));
    if (entry->sharding) TARE_TRY(retype(entry->sharding, TARE_DT_BFLOAT16));
    TARE_TRY(retype(identity, TARE_DT_BFLOAT16));
    tare_graph_replace_uses(body, tare_node_output0(cast), tare_node_output0(identity), NULL);
    tare_node_remove(cast);
    TARE_TRY(add_cast(&narrowed, c->placed->stub, c->call->inputs[i], arg->name, TARE_DT_BFLOAT16));
    tare_node_set_input(c->call, i, narrowed);
    c->result->narrowed++;
    return TARE_OK;
}

static tare_status flatten_input(struct crossing *c, size_t i, struct tare_node *identity,
                                 const struct tare_shape *shape) {
    struct tare_graph *body = c->placed->replicated;
    struct tare_shape flat = tare_shape_make(1, -1);
    const char *name = body->args[i]->name;
    struct tare_edge flattened, recovered;
    if (!is_padded(shape)) return TARE_OK;
    TARE_TRY(add_reshape(&flattened, c, c->placed->stub, c->call->inputs[i], name, "flatten", &flat));
    tare_node_set_input(c->call, i, flattened);
    TARE_TRY(add_reshape(&recovered, c, body, tare_node_output0(identity), name, "recover", shape));
    tare_graph_replace_uses(body, tare_node_output0(identity), recovered, recovered.node);
    c->result->inputs++;
    return TARE_OK;
}

static tare_status change_input(struct crossing *c, size_t i) {
    struct tare_graph *body = c->placed->replicated;
    struct tare_shape shape = tare_model_shape(c->shapes, tare_node_output0(body->args[i]));
    struct entry entry;
    if (!find_entry(&entry, body, body->args[i])) return TARE_OK; /* a variable's handle */
    TARE_TRY(narrow_input(c, i, &entry));
    return entry.sharding || !c->flattens ? TARE_OK : flatten_input(c, i, entry.identity, &shape);
}

/* ---- outputs ---- */

/* The nodes between the cluster and a return: identity in the cluster, TPUReplicatedOutput, identity after it. */
struct exit {
    struct tare_node *identity, *output, *shard;
};

static bool find_exit(struct exit *exit, const struct tare_return *ret) {
    exit->shard = ret->edge.node;
    if (!exit->shard || !tare_node_is(exit->shard, "Identity") || exit->shard->n_inputs != 1) return false;
    exit->output = exit->shard->inputs[0].node;
    if (!tare_node_is(exit->output, "TPUReplicatedOutput") || exit->output->n_inputs != 1) return false;
    exit->identity = exit->output->inputs[0].node;
    return tare_node_is(exit->identity, "Identity") && tare_node_bool(exit->identity, "_tpu_output_identity", false);
}

static tare_status narrow_output(struct crossing *c, size_t i, const struct exit *exit, bool *narrowed) {
    struct tare_graph *body = c->placed->replicated;
    struct tare_node *cast = exit->identity->inputs[0].node;
    *narrowed = tare_node_is(cast, "Cast") && body->returns[i].dtype == TARE_DT_FLOAT &&
                tare_edge_dtype(cast->inputs[0]) == TARE_DT_BFLOAT16;
    if (!*narrowed) return TARE_OK;
    tare_node_set_input(exit->identity, 0, cast->inputs[0]);
    TARE_TRY(retype(exit->identity, TARE_DT_BFLOAT16));
    TARE_TRY(retype(exit->output, TARE_DT_BFLOAT16));
    TARE_TRY(retype(exit->shard, TARE_DT_BFLOAT16));
    tare_graph_set_return_type(body, i, TARE_DT_BFLOAT16);
    if (!tare_graph_count_uses(body, tare_node_output0(cast), NULL)) tare_node_remove(cast);
    c->result->narrowed++;
    return TARE_OK;
}

/* How an output crosses, which the stub reverts. */
struct output_change {
    bool narrowed, flattened;
    struct tare_shape shape;
};

/* The part of the change in the function that runs on the TPU. */
static tare_status change_output(struct output_change *change, struct crossing *c, size_t i) {
    const struct tare_return *ret = &c->placed->replicated->returns[i];
    const struct tare_shape flat = tare_shape_make(1, -1);
    struct exit exit;
    change->shape = tare_model_shape(c->shapes, ret->edge);
    if (!find_exit(&exit, ret)) return TARE_OK;
    TARE_TRY(narrow_output(c, i, &exit, &change->narrowed));
    change->flattened = c->flattens && is_padded(&change->shape);
    if (!change->flattened) return TARE_OK;
    struct tare_edge flattened;
    TARE_TRY(add_reshape(&flattened, c, c->placed->replicated, exit.identity->inputs[0], ret->name, "flatten", &flat));
    tare_node_set_input(exit.identity, 0, flattened);
    c->result->outputs++;
    return TARE_OK;
}

/* The part of the change in the stub: *to is the value of output i as the stub returns it. */
static tare_status revert_output(struct tare_edge *to, const struct output_change *change, struct crossing *c,
                                 size_t i) {
    const char *name = c->placed->replicated->returns[i].name;
    *to = (struct tare_edge){ c->call, (int)i };
    if (change->flattened) TARE_TRY(add_reshape(to, c, c->placed->stub, *to, name, "recover", &change->shape));
    if (change->narrowed) TARE_TRY(add_cast(to, c->placed->stub, *to, name, TARE_DT_FLOAT));
    return TARE_OK;
}

/* The call gets its types once, after the change of all outputs: they are a list as long as the outputs. */
static tare_status cross_outputs(struct crossing *c, struct output_change *changes, struct tare_edge *to) {
    struct tare_graph *stub = c->placed->stub;
    const size_t count = c->placed->replicated->n_returns;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(change_output(&changes[i], c, i));
    TARE_TRY(retype_call(c));
    for (size_t i = 0; i < count; i++)
        TARE_TRY(revert_output(&to[i], &changes[i], c, i));
    for (size_t r = 0; r < stub->n_returns; r++)
        if (stub->returns[r].edge.node == c->call) tare_graph_set_return(stub, r, to[stub->returns[r].edge.index]);
    return TARE_OK;
}

static tare_status change_outputs(struct crossing *c) {
    const size_t count = c->placed->replicated->n_returns;
    struct output_change *changes = tare_calloc(count + 1, sizeof *changes);
    struct tare_edge *to = tare_calloc(count + 1, sizeof *to);
    const tare_status status = changes && to ? cross_outputs(c, changes, to) : TARE_NO_MEMORY;
    tare_free(changes);
    tare_free(to);
    return status;
}

/* ---- all of it ---- */

static struct tare_node *find_op(const struct tare_graph *graph, const char *op) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && tare_node_is(graph->nodes[i], op)) return graph->nodes[i];
    return NULL;
}

static struct tare_node *find_pivot(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && tare_node_find_attr(graph->nodes[i], "_pivot_for_cluster"))
            return graph->nodes[i];
    return NULL;
}

static tare_status change_function(struct crossing *c) {
    struct tare_graph *body = c->placed->replicated, *stub = c->placed->stub;
    c->call = find_op(stub, "TPUPartitionedCall");
    c->pivot = find_pivot(body);
    if (!c->call || !c->pivot) return TARE_FAIL(TARE_INTERNAL, "function %s is not placed", stub->name);
    for (size_t i = 0; i < body->n_args; i++)
        TARE_TRY(change_input(c, i));
    TARE_TRY(change_outputs(c));
    tare_graph_sweep(body);
    return TARE_OK;
}

tare_status tare_tpu_io_shapes(struct tare_io_shapes_result *out, struct tare_graph_model *model,
                               const struct tare_tpu_placed *placed, size_t n_placed, bool flattens) {
    struct tare_model_shapes *shapes = NULL;
    tare_status status;
    memset(out, 0, sizeof *out);
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    for (size_t i = 0; i < n_placed && status == TARE_OK; i++) {
        struct crossing c = {
            .model = model, .placed = &placed[i], .shapes = shapes, .flattens = flattens, .result = out
        };
        status = tare_error_prefix(change_function(&c), "function %s", placed[i].stub->name);
    }
done:
    tare_model_shapes_free(shapes);
    return status;
}
