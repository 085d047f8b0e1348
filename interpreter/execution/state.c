/* The state of a session that its files share: records of graphs and nodes, resources by name, counters, random
 * numbers. */
#include "interpreter/execution/state.h"
#include "base/alloc.h"
#include "base/thread.h"

#include <string.h>

/* ---- records ---- */

struct tare_exec_graph *tare_exec_graph_of(struct tare_session *session, const struct tare_graph *graph) {
    struct tare_exec_graph *record = tare_graph_table_get(&session->graphs, graph);
    if (record) return record;
    record = TARE_NEW(&session->arena, struct tare_exec_graph);
    if (!record) return NULL;
    record->graph = graph;
    record->n_nodes = graph->n_nodes;
    record->nodes = TARE_NEW_ARRAY(&session->arena, struct tare_node_state, graph->n_nodes + 1);
    if (!record->nodes || !TARE_GROW(session->graph_list, session->n_graphs, session->graphs_capacity)) return NULL;
    for (size_t i = 0; i < graph->n_nodes; i++)
        record->nodes[i].node = graph->nodes[i];
    if (!tare_graph_table_set(&session->graphs, graph, record)) return NULL;
    session->graph_list[session->n_graphs++] = record;
    return record;
}

tare_status tare_exec_locate(struct tare_session *session, const struct tare_node *node, tare_status status) {
    const char *function = node->graph ? node->graph->name : "";
    if (session->located || status == TARE_OK) return status;
    session->located = true;
    return tare_error_prefix(status, "%s%s%s (%s)", function, *function ? "/" : "", node->name, node->op);
}

void tare_exec_take_input(struct tare_kernel *kernel, size_t i, struct tare_tensor *out) {
    struct tare_tensor *slot = kernel->session && kernel->session->last_use ? kernel->session->last_use[i] : NULL;
    if (!slot) {
        tare_tensor_share(out, &kernel->inputs[i]);
        return;
    }
    *out = *slot;
    memset(slot, 0, sizeof *slot);
}

int64_t tare_session_function_runs(const struct tare_session *session, const struct tare_graph *function) {
    const struct tare_exec_graph *record = tare_graph_table_get(&session->graphs, function);
    return record ? record->runs : 0;
}

/* Room for `count` sides and as many again. */
static struct tare_exec_sides *grow_sides(struct tare_arena *arena, const struct tare_exec_sides *sides, size_t count) {
    struct tare_exec_sides *grown = tare_arena_calloc(arena, 1, sizeof *grown + 2 * count * sizeof grown->runs[0]);
    if (!grown) return NULL;
    grown->count = 2 * count;
    for (size_t i = 0; sides && i < sides->count; i++)
        grown->runs[i] = sides->runs[i];
    return grown;
}

tare_status tare_exec_count_side(struct tare_session *session, const struct tare_node *node, size_t side) {
    struct tare_exec_graph *record = tare_exec_graph_of(session, node->graph);
    if (!record) return TARE_NO_MEMORY;
    struct tare_exec_sides **sides = &record->nodes[node->position].sides;
    if (!*sides || side >= (*sides)->count) {
        struct tare_exec_sides *grown = grow_sides(&session->arena, *sides, side + 1);
        if (!grown) return TARE_NO_MEMORY;
        *sides = grown;
    }
    (*sides)->runs[side]++;
    return TARE_OK;
}

int64_t tare_session_side_runs(const struct tare_session *session, const struct tare_node *node, size_t side) {
    const struct tare_exec_graph *record = tare_graph_table_get(&session->graphs, node->graph);
    const struct tare_exec_sides *sides = record ? record->nodes[node->position].sides : NULL;
    return sides && side < sides->count ? sides->runs[side] : 0;
}

/* ---- resources ---- */

static struct tare_resource_kind *find_kind(const struct tare_session *session, const char *kind) {
    struct tare_resource_kind *found = session->kinds;
    while (found && strcmp(found->name, kind) != 0)
        found = found->next;
    return found;
}

struct tare_object *tare_session_find_resource(struct tare_session *session, const char *kind, const char *name) {
    const struct tare_resource_kind *found = find_kind(session, kind);
    return found ? tare_map_get(&found->by_name, name) : NULL;
}

static struct tare_resource_kind *make_kind(struct tare_session *session, const char *kind) {
    struct tare_resource_kind *made = TARE_NEW(&session->arena, struct tare_resource_kind);
    if (!made) return NULL;
    made->name = tare_arena_strdup(&session->arena, kind);
    if (!made->name) return NULL;
    made->next = session->kinds;
    return session->kinds = made;
}

tare_status tare_session_add_resource(struct tare_session *session, const char *kind, const char *name,
                                      struct tare_object *object) {
    struct tare_resource_kind *in = find_kind(session, kind);
    const char *key = tare_arena_strdup(&session->arena, name);
    if (!in) in = make_kind(session, kind);
    if (!key || !in || !TARE_GROW(session->resource_list, session->n_resources, session->resources_capacity) ||
        !tare_map_set(&in->by_name, key, object)) {
        tare_object_unref(object);
        return TARE_NO_MEMORY;
    }
    session->resource_list[session->n_resources++] = object; /* a replaced one stays until the session is freed */
    return TARE_OK;
}

tare_status tare_session_add_run_object(size_t *number, struct tare_session *session, struct tare_object *object) {
    if (!TARE_GROW(session->run_objects, session->n_run_objects, session->run_objects_capacity)) {
        tare_object_unref(object);
        return TARE_NO_MEMORY;
    }
    *number = session->n_run_objects++;
    session->run_objects[*number] = object;
    return TARE_OK;
}

struct tare_object *tare_session_find_run_object(const struct tare_session *session, int64_t number) {
    return number >= 0 && (uint64_t)number < session->n_run_objects ? session->run_objects[number] : NULL;
}

void tare_session_drop_run_objects(struct tare_session *session) {
    for (size_t i = 0; i < session->n_run_objects; i++)
        tare_object_unref(session->run_objects[i]);
    session->n_run_objects = 0;
}

/* ---- threads and random numbers ---- */

struct tare_pool *tare_session_op_pool(struct tare_session *session) {
    if (!session || session->options.op_threads <= 1) return NULL;
    if (!session->op_pool) session->op_pool = tare_pool_new(session->options.op_threads);
    return session->op_pool;
}

struct tare_arena *tare_session_arena(struct tare_session *session) {
    return &session->arena;
}

void tare_session_set_op_threads(struct tare_session *session, int threads) {
    if (threads == session->options.op_threads) return;
    tare_pool_free(session->op_pool);
    session->op_pool = NULL;
    session->options.op_threads = threads;
}

/* The stream is reset in each run, so that results do not depend on previous runs. */
uint64_t tare_session_next_random(struct tare_session *session) {
    uint64_t z = session->options.seed * 0xd1342543de82ef95u + ++session->random * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
