/* Hashes what each edge of a graph computes. The key of a node is a hash of its op, attributes, constants and the keys
 * of its inputs; function bodies are hashed with their nodes. Names do not enter, so equal computations in two models
 * have equal keys. */
#include "eval/prefix_cache/edge_keys.h"
#include "base/map.h"
#include "calib/attr_hash.h"
#include "graph/calls.h"
#include "graph/op.h"

#include <string.h>

/* Hash of a function's body; recursion was excluded before (tare_model_check_recursion). */
struct body {
    struct tare_edge_key key;
    bool shared;
};

struct keying {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    const size_t *feeds; /* by position in the main graph: 1 + the number of the feed; 0: not fed */
    uint64_t serial;
    struct tare_map bodies;    /* function name -> struct body */
    struct tare_map variables; /* address of a handle's node -> struct tare_variable */
};

static struct tare_edge_key finish(struct tare_hash *hash) {
    struct tare_edge_key key;
    tare_hash_end(hash, key.words);
    return key;
}

static void add_key(struct tare_hash *hash, const struct tare_edge_key *key) {
    tare_hash_add_u64(hash, key->words[0]);
    tare_hash_add_u64(hash, key->words[1]);
}

/* ---- attributes ---- */

static tare_status add_body(struct tare_hash *hash, struct keying *k, const char *name, bool *shared);

struct function_adder {
    struct keying *k;
    bool *shared;
    tare_status status;
};

static void add_function(void *arg, struct tare_hash *hash, const struct tare_func *function) {
    struct function_adder *adder = arg;
    if (adder->status == TARE_OK) adder->status = add_body(hash, adder->k, function->name, adder->shared);
}

/* Objects, such as variants, have no values to hash. */
static bool has_object(const struct tare_attr *attr) {
    for (size_t i = 0; attr->kind == TARE_ATTR_TENSOR && i < attr->count; i++) {
        const struct tare_tensor *tensor = attr->items[i].tensor;
        const struct tare_dtype_info *info = tensor ? tare_dtype_get(tensor->dtype) : NULL;
        if (info && info->class == TARE_CLASS_OBJECT) return true;
    }
    return false;
}

static tare_status add_attrs(struct tare_hash *hash, struct keying *k, const struct tare_node *node, bool *shared) {
    struct function_adder adder = { k, shared, TARE_OK };
    for (size_t a = 0; a < node->n_attrs; a++) {
        if (strcmp(node->attrs[a].name, "_output_shapes") == 0)
            continue; /* notes of the importer, which do not affect the computation */
        *shared = *shared && !has_object(&node->attrs[a]);
        tare_hash_add_attr(hash, &node->attrs[a], add_function, &adder);
    }
    return adder.status;
}

/* ---- nodes ---- */

/* Stateful ops whose result is the same in every model of one file and for every record. */
static bool is_fixed_state(const char *op) {
    static const char *const ops[] = { "VarHandleOp",   "ReadVariableOp",    "ResourceGather",
                                       "HashTableV2",   "LookupTableFindV2", "LookupTableSizeV2",
                                       "CheckNumerics", "CheckNumericsV2",   "Assert",
                                       "Placeholder" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
}

static tare_status is_shareable(bool *out, struct keying *k, const struct tare_node *node) {
    const struct tare_op *row = node->def ? node->def->row : NULL;
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, k->arena, node));
    if (site.kind == TARE_CALL_PLAIN || site.kind == TARE_CALL_BRANCH || site.kind == TARE_CALL_LOOP)
        *out = strcmp(node->op, "BatchFunction") != 0; /* if its function bodies are */
    else
        *out = row && !(row->flags & (TARE_OP_CONTROL | TARE_OP_WRITES)) &&
               ((!node->def->is_stateful && !(row->flags & TARE_OP_STATEFUL)) || is_fixed_state(node->op));
    return TARE_OK;
}

static tare_status index_variables(struct keying *k) {
    for (size_t i = 0; i < k->model->n_variables; i++) {
        struct tare_variable *variable = &k->model->variables[i];
        if (!variable->node || tare_map_get_n(&k->variables, (const char *)&variable->node, sizeof variable->node))
            continue;
        if (!tare_map_set_n(&k->variables, (const char *)&variable->node, sizeof variable->node, variable))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* The key of a handle identifies its resource. */
static void add_variable(struct tare_hash *hash, const struct keying *k, const struct tare_node *node) {
    const struct tare_variable *variable = tare_map_get_n(&k->variables, (const char *)&node, sizeof node);
    if (variable) tare_hash_add_tensor(hash, &variable->value);
}

static bool makes_handle(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->output_dtypes[i] == TARE_DT_RESOURCE || tare_dtype_is_ref(node->output_dtypes[i])) return true;
    return false;
}

static tare_status add_input(struct tare_hash *hash, const struct tare_edge_keys *keys, const struct tare_graph *graph,
                             struct tare_edge edge, size_t position, bool *fed, bool *shared) {
    if (!edge.node) return TARE_OK;
    if (tare_node_is_arg(edge.node)) {
        tare_hash_add_u64(hash, ~(uint64_t)edge.node->position);
        *fed = true;
        return TARE_OK;
    }
    if (edge.node->graph != graph) return TARE_FAIL(TARE_INTERNAL, "input %zu is in another graph", position);
    add_key(hash, &keys->nodes[edge.node->position]);
    tare_hash_add_u64(hash, (uint64_t)edge.index);
    *fed = *fed || keys->fed[edge.node->position];
    *shared = *shared && keys->shared[edge.node->position];
    return TARE_OK;
}

static tare_status key_node(struct tare_edge_keys *keys, struct keying *k, const struct tare_node *node) {
    struct tare_hash hash;
    bool fed = false, shared;
    tare_hash_begin(&hash);
    TARE_TRY(is_shareable(&shared, k, node));
    tare_hash_add_text(&hash, node->op);
    TARE_TRY(add_attrs(&hash, k, node, &shared));
    if (!node->def) TARE_TRY(add_body(&hash, k, node->op, &shared));
    if (makes_handle(node)) {
        tare_hash_add_text(&hash, node->name);
        add_variable(&hash, k, node);
    }
    for (size_t i = 0; i < node->n_inputs; i++)
        TARE_TRY(add_input(&hash, keys, node->graph, node->inputs[i], i, &fed, &shared));
    if (!shared) {
        tare_hash_add_u64(&hash, k->serial);
        tare_hash_add_u64(&hash, node->position);
    }
    keys->nodes[node->position] = finish(&hash);
    keys->fed[node->position] = fed || !shared;
    keys->shared[node->position] = shared;
    return TARE_OK;
}

/* ---- graphs ---- */

static tare_status new_keys(struct tare_edge_keys *out, struct tare_arena *arena, const struct tare_graph *graph) {
    out->nodes = TARE_NEW_ARRAY(arena, struct tare_edge_key, graph->n_nodes + 1);
    out->fed = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    out->shared = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    return out->nodes && out->fed && out->shared ? TARE_OK : TARE_NO_MEMORY;
}

/* The numbers of the fed nodes by position; of several feeds of a node, the first. */
static size_t *number_feeds(struct tare_arena *arena, const struct tare_graph *graph, const struct tare_edge *feeds,
                            size_t n_feeds) {
    size_t *numbers = TARE_NEW_ARRAY(arena, size_t, graph->n_nodes + 1);
    for (size_t i = n_feeds; numbers && i-- > 0;)
        if (feeds[i].node && feeds[i].node->graph == graph) numbers[feeds[i].node->position] = i + 1;
    return numbers;
}

static bool key_feed(struct tare_edge_keys *keys, const struct keying *k, const struct tare_node *node) {
    struct tare_hash hash;
    if (!k->feeds[node->position]) return false;
    tare_hash_begin(&hash);
    tare_hash_add_text(&hash, "feed");
    tare_hash_add_u64(&hash, k->feeds[node->position] - 1);
    keys->nodes[node->position] = finish(&hash);
    keys->fed[node->position] = keys->shared[node->position] = true;
    return true;
}

static tare_status key_nodes(struct tare_edge_keys *keys, struct keying *k, const struct tare_graph *graph) {
    struct tare_node **order;
    size_t count = 0;
    TARE_TRY(new_keys(keys, k->arena, graph));
    TARE_TRY(tare_graph_order(&order, k->arena, graph));
    while (count < graph->n_nodes && order[count])
        count++;
    for (size_t i = 0; i < count; i++)
        if (graph != k->model->main || !key_feed(keys, k, order[i])) TARE_TRY(key_node(keys, k, order[i]));
    return TARE_OK;
}

/* All nodes of a body enter, also those that no result uses. */
static tare_status key_body(struct body *out, struct keying *k, const struct tare_graph *function) {
    struct tare_edge_keys keys;
    struct tare_hash hash;
    bool fed = false;
    out->shared = true;
    TARE_TRY(key_nodes(&keys, k, function));
    tare_hash_begin(&hash);
    for (size_t i = 0; i < function->n_nodes; i++)
        if (!function->nodes[i]->dead) out->shared = out->shared && keys.shared[i];
    for (size_t i = 0; i < function->n_returns; i++)
        TARE_TRY(add_input(&hash, &keys, function, function->returns[i].edge, i, &fed, &out->shared));
    out->key = finish(&hash);
    return TARE_OK;
}

static tare_status add_body(struct tare_hash *hash, struct keying *k, const char *name, bool *shared) {
    const struct tare_graph *function = name ? tare_model_find_function(k->model, name) : NULL;
    struct body *body = function ? tare_map_get(&k->bodies, function->name) : NULL;
    if (!function) {
        tare_hash_add_text(hash, name ? name : "");
        return TARE_OK;
    }
    if (!body) {
        body = TARE_NEW(k->arena, struct body);
        if (!body) return TARE_NO_MEMORY;
        TARE_TRY(key_body(body, k, function));
        if (!tare_map_set(&k->bodies, function->name, body)) return TARE_NO_MEMORY;
    }
    add_key(hash, &body->key);
    *shared = *shared && body->shared;
    return TARE_OK;
}

tare_status tare_edge_keys_of(struct tare_edge_keys *out, struct tare_arena *arena,
                              const struct tare_graph_model *model, const struct tare_edge *feeds, size_t n_feeds,
                              uint64_t serial) {
    struct keying k = {
        .arena = arena, .model = model, .feeds = number_feeds(arena, model->main, feeds, n_feeds), .serial = serial
    };
    tare_status status = k.feeds ? index_variables(&k) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = key_nodes(out, &k, model->main);
    tare_map_free(&k.bodies);
    tare_map_free(&k.variables);
    return status;
}

struct tare_edge_key tare_edge_key_of(const struct tare_edge_keys *keys, struct tare_edge edge) {
    struct tare_edge_key key = keys->nodes[edge.node->position];
    key.words[0] ^= ((uint64_t)edge.index + 1) * 0x9e3779b97f4a7c15;
    return key;
}
