/* Sessions: creation with variables, tables and initialisers; observation; profile. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/thread.h"
#include "interpreter/execution/step.h"
#include "interpreter/execution/variable.h"
#include "interpreter/ops/state/hash_table.h"

#include <stdlib.h>
#include <string.h>

static const int64_t default_memory_limit = (int64_t)64 << 30;

/* Several variables may have the same name: each node of the main graph then has its own variable, and a lookup by name
 * returns the first. */
static tare_status add_variable(struct tare_session *session, const struct tare_variable *variable) {
    struct tare_variable_object *object =
        tare_variable_object_new(variable->shared_name, variable->dtype, &variable->shape);
    struct tare_tensor value = { 0 };
    tare_status status = TARE_OK;
    if (!object) return TARE_NO_MEMORY;
    if (variable->value.splat)
        status = tare_tensor_copy(&value, &variable->value);
    else if (variable->value.dtype)
        tare_tensor_share(&value, &variable->value);
    object->value = value;
    if (status != TARE_OK) {
        tare_object_unref(&object->object);
        return status;
    }
    if (variable->node &&
        !tare_map_set_n(&session->variables, (const char *)&variable->node, sizeof variable->node, &object->object)) {
        tare_object_unref(&object->object);
        return TARE_NO_MEMORY;
    }
    if (!tare_session_find_resource(session, TARE_VARIABLE_KIND, variable->shared_name))
        return tare_session_add_resource(session, TARE_VARIABLE_KIND, variable->shared_name, &object->object);
    if (!TARE_GROW(session->resource_list, session->n_resources, session->resources_capacity)) {
        tare_object_unref(&object->object);
        return TARE_NO_MEMORY;
    }
    session->resource_list[session->n_resources++] = &object->object;
    return TARE_OK;
}

/* ---- making a session ---- */

static tare_status make_asset_paths(struct tare_session *session) {
    const struct tare_graph_model *model = session->model;
    session->assets = TARE_NEW_ARRAY(&session->arena, struct tare_tensor, model->n_assets + 1);
    if (!session->assets) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_assets; i++) {
        struct tare_shape scalar = tare_shape_scalar();
        const char *path = tare_arena_printf(&session->arena, "%s/assets/%s", model->path ? model->path : ".",
                                             model->assets[i].filename);
        if (!path) return TARE_NO_MEMORY;
        TARE_TRY(tare_tensor_new(&session->assets[i], TARE_DT_STRING, &scalar));
        TARE_TRY(tare_tensor_set_string(&session->assets[i], 0, path, strlen(path)));
    }
    return TARE_OK;
}

/* The table that a node creates when it runs. A reference cannot be fetched (that would read a variable): its node
 * stores the table. */
static tare_status find_table(struct tare_table **out, struct tare_tensor *handle, struct tare_session *session,
                              struct tare_node *node) {
    const struct tare_edge made = { node, 0 };
    const struct tare_exec_graph *main;
    if (!tare_dtype_is_ref(node->output_dtypes[0])) {
        TARE_TRY(tare_session_run(session, NULL, NULL, 0, &made, handle, 1, NULL, 0));
        return tare_table_from_handle(out, handle);
    }
    TARE_TRY(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &node, 1));
    main = tare_exec_graph_of(session, node->graph);
    if (!main || !main->nodes[node->position].kernel) return TARE_FAIL(TARE_INTERNAL, "the node holds no table");
    TARE_TRY(tare_handle_new(handle, tare_object_ref(main->nodes[node->position].kernel)));
    return tare_table_from_handle(out, handle);
}

/* Imports the contents that the restore operation would load into a table. */
static tare_status fill_table(struct tare_session *session, const struct tare_table_content *content) {
    struct tare_tensor handle = { 0 };
    struct tare_table *table;
    tare_status status = find_table(&table, &handle, session, content->node);
    if (status == TARE_OK) {
        tare_table_clear(table);
        status = tare_table_insert(table, &content->keys, &content->values);
        tare_table_set_filled(table);
    }
    tare_tensor_reset(&handle);
    return status;
}

static tare_status fill_tables(struct tare_session *session) {
    for (size_t i = 0; i < session->model->n_tables; i++) {
        const struct tare_table_content *content = &session->model->tables[i];
        if (content->node->dead || content->values.dtype == TARE_DT_INVALID) continue;
        TARE_TRY(tare_error_prefix(fill_table(session, content), "table %s", content->node->name));
    }
    return TARE_OK;
}

static tare_status run_initialisers(struct tare_session *session) {
    const struct tare_graph_model *model = session->model;
    struct tare_plan_request request = { .graph = model->main, .targets = &model->init_node, .n_targets = 1 };
    struct tare_node **order = NULL;
    struct tare_arena scratch = { 0 };
    size_t count = 0;
    tare_status status = TARE_OK;
    if (model->init_node) {
        TARE_CHECK(tare_plan_order(&order, &count, &scratch, &request));
        TARE_CHECK(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &model->init_node, 1));
    }
    for (size_t i = 0; i < model->n_table_inits; i++) {
        bool covered = false;
        for (size_t k = 0; k < count && !covered; k++)
            covered = order[k] == model->table_inits[i];
        if (!covered) TARE_CHECK(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &model->table_inits[i], 1));
    }
done:
    tare_arena_free(&scratch);
    return tare_error_prefix(status, "initialisation");
}

static tare_status start(struct tare_session *session) {
    const struct tare_graph_model *model = session->model;
    session->pool = tare_buffer_pool_new();
    if (!session->pool) return TARE_NO_MEMORY;
    tare_buffer_pool_limit(session->pool, (size_t)session->options.memory_limit);
    for (size_t i = 0; i < model->n_variables; i++)
        TARE_TRY(add_variable(session, &model->variables[i]));
    TARE_TRY(make_asset_paths(session));
    TARE_TRY(fill_tables(session));
    return run_initialisers(session);
}

tare_status tare_session_new(struct tare_session **out, const struct tare_graph_model *model,
                             const struct tare_session_options *options) {
    struct tare_session *session = tare_calloc(1, sizeof *session);
    tare_status status;
    *out = NULL;
    if (!session) return TARE_NO_MEMORY;
    session->model = model;
    session->run_plan = tare_plan_run;
    if (options) session->options = *options;
    if (session->options.max_call_depth <= 0) session->options.max_call_depth = TARE_MOST_NESTED_CALLS;
    if (session->options.memory_limit <= 0)
        session->options.memory_limit = tare_alloc_limit() ? (int64_t)tare_alloc_limit() : default_memory_limit;
    status = start(session);
    if (status != TARE_OK) {
        tare_session_free(session);
        return status;
    }
    *out = session;
    return TARE_OK;
}

static void release_graph(struct tare_exec_graph *record) {
    for (size_t i = 0; i < record->n_nodes; i++) {
        struct tare_node_state *state = &record->nodes[i];
        const struct tare_op *op = state->node->def ? state->node->def->row : NULL;
        if (state->kernel && op && op->release) op->release(state->kernel);
        for (size_t k = 0; k < state->node->n_outputs && state->values; k++)
            tare_tensor_reset(&state->values[k]);
    }
}

void tare_session_free(struct tare_session *session) {
    if (!session) return;
    for (struct tare_plan *plan = session->first_plan; plan; plan = plan->next)
        tare_plan_release(plan);
    for (size_t i = 0; i < session->n_graphs; i++)
        release_graph(session->graph_list[i]);
    for (size_t i = 0; i < session->n_resources; i++)
        tare_object_unref(session->resource_list[i]);
    tare_session_drop_run_objects(session);
    for (size_t i = 0; i < session->model->n_assets && session->assets; i++)
        tare_tensor_reset(&session->assets[i]);
    tare_graph_table_free(&session->graphs);
    tare_map_free(&session->plans);
    for (struct tare_resource_kind *kind = session->kinds; kind; kind = kind->next)
        tare_map_free(&kind->by_name);
    tare_map_free(&session->variables);
    tare_free(session->graph_list);
    tare_free(session->resource_list);
    tare_free(session->run_objects);
    for (size_t i = 0; i < session->n_scratches; i++)
        tare_arena_free(&session->scratches[i]);
    tare_free(session->scratches);
    tare_buffer_pool_free(session->pool);
    tare_pool_free(session->op_pool);
    tare_arena_free(&session->arena);
    tare_free(session);
}

int64_t tare_session_activation_bytes(struct tare_session *session) {
    const size_t most = tare_buffer_pool_watch(session->pool), now = tare_buffer_pool_bytes(session->pool);
    return most > now ? (int64_t)(most - now) : 0;
}

void tare_session_trim(struct tare_session *session) {
    tare_buffer_pool_trim(session->pool);
}

void tare_session_observe(struct tare_session *session, tare_observe_fn fn,
                          bool (*accepts)(void *arg, const struct tare_node *node, size_t output), void *arg) {
    session->observe = fn;
    session->accepts = accepts;
    session->observe_arg = arg;
    session->observe_epoch++;
}

const struct tare_graph_model *tare_session_model(const struct tare_session *session) {
    return session->model;
}

/* ---- profile ---- */

static int by_time(const void *a, const void *b) {
    const struct tare_profile_row *x = a, *y = b;
    return (x->nanoseconds < y->nanoseconds) - (x->nanoseconds > y->nanoseconds);
}

tare_status tare_session_profile(struct tare_profile_row **rows, size_t *count, struct tare_arena *arena,
                                 const struct tare_session *session) {
    size_t total = 0;
    *count = 0;
    for (size_t g = 0; g < session->n_graphs; g++)
        total += session->graph_list[g]->n_nodes;
    *rows = TARE_NEW_ARRAY(arena, struct tare_profile_row, total + 1);
    if (!*rows) return TARE_NO_MEMORY;
    for (size_t g = 0; g < session->n_graphs; g++) {
        const struct tare_exec_graph *record = session->graph_list[g];
        for (size_t i = 0; i < record->n_nodes; i++) {
            const struct tare_node_state *state = &record->nodes[i];
            if (!state->calls) continue;
            (*rows)[(*count)++] = (struct tare_profile_row){ state->node, state->calls, state->nanoseconds };
        }
    }
    qsort(*rows, *count, sizeof **rows, by_time);
    return TARE_OK;
}
