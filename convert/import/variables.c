/* How variables map to checkpoint keys.
 *
 * The names of variables are not unique in real models (two metrics called "total"), so a name decides only when
 * nothing else does. The sources, in order of precedence; a later one never changes what an earlier one found:
 *
 *   1. The restore operation (restores.c): RestoreV2 output -> assignment -> variable. This is what TensorFlow 1 runs.
 *   2. The object graphs. The saved object graph lists variables by number, and the checkpoint's object graph the keys;
 *      both are walked from the root along equal child names. Which node a variable object is follows from captures (a
 *      call in the main graph passes the objects that its function is bound to), then from the key found in 1, then
 * from the name.
 *   3. full_name in the checkpoint's object graph, for variables that the saved object graph does not reach.
 *   4. A checkpoint key equal to the variable's resource name.
 *
 * A variable that none of these finds has no value: the graph initialises it, or nothing does. */
#include "convert/import/import.h"
#include "convert/import/object_twins.h"
#include "convert/import/restores.h"
#include "convert/source.h"
#include "graph/calls.h"

#include <string.h>

enum { LONGEST_WAY = 256 }; /* Identity nodes in a row; a damaged graph may have cycles */

struct mapper {
    struct tare_graph_model *model;
    struct tare_saved_model *source;
    struct tare_map by_node;       /* bytes of the variable node's pointer -> struct tare_variable */
    struct tare_map concretes;     /* function name -> struct tare_concrete */
    struct tare_map by_key, by_id; /* found so far: key, bytes of the object id -> struct tare_variable */
    struct tare_map by_name;       /* name -> the first struct tare_variable with it */
};

/* ---- the variables of the main graph ---- */

static bool is_variable(const struct tare_node *node) {
    return tare_node_is(node, "VarHandleOp") || tare_node_is(node, "VariableV2") || tare_node_is(node, "Variable");
}

static tare_status add_variable(struct mapper *m, struct tare_node *node) {
    struct tare_graph_model *model = m->model;
    struct tare_variable *variable = &model->variables[model->n_variables++];
    const char *shared = tare_node_string(node, "shared_name", "");
    variable->node = node;
    variable->shared_name = *shared ? shared : node->name;
    variable->dtype = tare_node_type(node, "dtype", TARE_DT_INVALID);
    variable->shape = tare_shape_unknown();
    tare_node_shape(node, "shape", &variable->shape);
    variable->object_id = -1;
    return tare_map_set_n(&m->by_node, (const char *)&variable->node, sizeof variable->node, variable) ? TARE_OK
                                                                                                       : TARE_NO_MEMORY;
}

static tare_status list_variables(struct mapper *m) {
    const struct tare_graph *main = m->model->main;
    size_t count = 0;
    for (size_t i = 0; i < main->n_nodes; i++)
        count += is_variable(main->nodes[i]);
    m->model->variables = TARE_NEW_ARRAY(&m->model->arena, struct tare_variable, count + 1);
    if (!m->model->variables) return TARE_NO_MEMORY;
    for (size_t i = 0; i < main->n_nodes; i++)
        if (is_variable(main->nodes[i])) TARE_TRY(add_variable(m, main->nodes[i]));
    return TARE_OK;
}

static struct tare_variable *variable_at(const struct mapper *m, struct tare_edge edge) {
    for (int steps = 0; tare_node_is(edge.node, "Identity") && edge.node->n_inputs && steps < LONGEST_WAY; steps++)
        edge = edge.node->inputs[0];
    return edge.node ? tare_map_get_n(&m->by_node, (const char *)&edge.node, sizeof edge.node) : NULL;
}

/* ---- restore operations ---- */

static void map_variable(struct mapper *m, struct tare_variable *variable, const char *key, const char *slice) {
    if (!variable || variable->key || !key || !tare_bundle_has(m->source->bundle, key)) return;
    variable->key = key;
    variable->slice = slice;
}

static void map_by_restore(struct mapper *m, const struct tare_restores *restores) {
    for (size_t i = 0; i < restores->count; i++) {
        const struct tare_restore *restore = &restores->items[i];
        if (!restore->keys.key)
            map_variable(m, variable_at(m, (struct tare_edge){ restore->target, 0 }), restore->value.key,
                         restore->value.slice);
    }
}

/* ---- object graphs ---- */

struct object_walk {
    const Tensorflow__SavedObjectGraph *saved;
    const Tensorflow__TrackableObjectGraph *trackable;
    int *trackable_of; /* by saved id; -1 */
};

static const char *checkpoint_key(const struct object_walk *walk, size_t id) {
    const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *value =
        walk->trackable_of[id] < 0 ? NULL : tare_object_value(walk->trackable->nodes[walk->trackable_of[id]]);
    return value ? value->checkpoint_key : NULL;
}

/* A call in the main graph passes the objects that its function captured. It assigns object ids to variables
 * independently of names. */
static void map_captures(struct mapper *m, const struct tare_node *call, const Tensorflow__SavedObjectGraph *saved) {
    const struct tare_graph *function = tare_node_function(call, "f");
    const struct tare_concrete *concrete = function ? tare_map_get(&m->concretes, function->name) : NULL;
    if (!concrete || call->n_inputs != function->n_args) return;
    for (size_t i = 0; i < concrete->n_bound; i++) {
        struct tare_variable *variable = variable_at(m, call->inputs[function->n_args - concrete->n_bound + i]);
        int id = concrete->bound[i];
        if (variable && variable->object_id < 0 &&
            saved->nodes[id]->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE)
            variable->object_id = id;
    }
}

/* The variable for a variable object: the one with its id (from captures), else the one restored from its key, else the
 * first of its name without key and id. */
static struct tare_variable *match_variable(struct mapper *m, size_t id, const char *key, const char *name) {
    const int number = (int)id;
    struct tare_variable *variable = tare_map_get_n(&m->by_id, (const char *)&number, sizeof number);
    if (!variable && key) variable = tare_map_get(&m->by_key, key);
    if (variable) return variable;
    variable = tare_map_get(&m->by_name, name);
    if (!variable) return NULL;
    for (; variable < m->model->variables + m->model->n_variables; variable++) /* usually the first */
        if (!variable->key && variable->object_id < 0 && strcmp(variable->shared_name, name) == 0) return variable;
    return NULL;
}

static bool set_first(struct tare_map *map, const char *key, size_t size, struct tare_variable *variable) {
    return tare_map_get_n(map, key, size) || tare_map_set_n(map, key, size, variable);
}

static tare_status index_variables(struct mapper *m) {
    for (size_t i = 0; i < m->model->n_variables; i++) {
        struct tare_variable *v = &m->model->variables[i];
        if (!set_first(&m->by_name, v->shared_name, strlen(v->shared_name), v) ||
            (v->key && !set_first(&m->by_key, v->key, strlen(v->key), v)) ||
            (v->object_id >= 0 && !set_first(&m->by_id, (const char *)&v->object_id, sizeof v->object_id, v)))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status index_concretes(struct mapper *m) {
    for (size_t i = 0; i < m->model->n_concretes; i++) {
        struct tare_concrete *concrete = &m->model->concretes[i];
        if (!tare_map_get(&m->concretes, concrete->graph->name) &&
            !tare_map_set(&m->concretes, concrete->graph->name, concrete))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status map_object(struct mapper *m, const struct object_walk *walk, size_t id) {
    const Tensorflow__SavedObject *object = walk->saved->nodes[id];
    const char *key = walk->trackable ? checkpoint_key(walk, id) : NULL;
    struct tare_variable *variable = match_variable(m, id, key, object->variable->name);
    if (!variable) return TARE_OK;
    if (variable->object_id < 0) {
        variable->object_id = (int)id;
        if (!set_first(&m->by_id, (const char *)&variable->object_id, sizeof variable->object_id, variable))
            return TARE_NO_MEMORY;
    }
    map_variable(m, variable, key, NULL);
    if (variable->key && !set_first(&m->by_key, variable->key, strlen(variable->key), variable)) return TARE_NO_MEMORY;
    return TARE_OK;
}

/* The checkpoint's object graph names the variable of each stored value (full_name): a variable still without a
 * key gets the key stored under its own name. This maps variables that are not reachable in the saved object graph (the
 * step counter of Keras 3's optimizers). */
static void map_by_full_names(struct mapper *m, const Tensorflow__TrackableObjectGraph *trackable) {
    for (size_t i = 0; i < trackable->n_nodes; i++) {
        const Tensorflow__TrackableObjectGraph__TrackableObject *object = trackable->nodes[i];
        for (size_t a = 0; a < object->n_attributes; a++) {
            const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *stored = object->attributes[a];
            struct tare_variable *variable;
            if (strcmp(stored->name, "VARIABLE_VALUE") != 0 || !*stored->full_name) continue;
            variable = tare_map_get(&m->by_name, stored->full_name);
            if (tare_map_get(&m->by_key, stored->checkpoint_key)) continue; /* it is another variable's */
            map_variable(m, variable, stored->checkpoint_key, NULL);
        }
    }
}

static tare_status map_by_objects(struct mapper *m) {
    struct tare_arena arena = { 0 };
    struct object_walk walk = { .saved = m->source->meta->object_graph_def };
    Tensorflow__TrackableObjectGraph *trackable = NULL;
    tare_status status = TARE_OK;
    if (!walk.saved) return TARE_OK;
    TARE_CHECK(tare_source_trackable(&trackable, m->source));
    walk.trackable = trackable;
    if (trackable) /* the validator reports an unknown child */
        TARE_CHECK(tare_object_twins(&walk.trackable_of, &arena, walk.saved, trackable, m->source->faults));
    TARE_CHECK(index_concretes(m));
    for (size_t i = 0; i < m->model->main->n_nodes; i++)
        map_captures(m, m->model->main->nodes[i], walk.saved);
    TARE_CHECK(index_variables(m));
    for (size_t i = 0; i < walk.saved->n_nodes; i++)
        if (walk.saved->nodes[i]->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE)
            TARE_CHECK(map_object(m, &walk, i));
    if (trackable) map_by_full_names(m, trackable);
done:
    tare_arena_free(&arena);
    return status;
}

/* ---- values ---- */

static tare_status check_fit(const struct tare_variable *variable, int dtype, const struct tare_shape *shape) {
    char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    if (dtype != tare_dtype_base(variable->dtype))
        return TARE_FAIL(TARE_TYPE, "the checkpoint has %s (expected %s)", tare_dtype_name(dtype),
                         tare_dtype_name(variable->dtype));
    if (tare_shape_compatible(&variable->shape, shape)) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "the checkpoint has shape %s (expected %s)", tare_shape_text(got, shape),
                     tare_shape_text(expected, &variable->shape));
}

static tare_status read_value(struct mapper *m, struct tare_variable *variable) {
    struct tare_bundle_entry entry;
    if (!variable->key) return TARE_OK; /* initialised by the graph, or not at all */
    TARE_TRY(tare_bundle_check_slice(&entry, m->source->bundle, variable->key, variable->slice));
    TARE_TRY(check_fit(variable, entry.dtype, &entry.shape));
    if (m->source->without_values) return TARE_OK;
    return tare_bundle_read_slice(&variable->value, m->source->bundle, variable->key, variable->slice);
}

static void map_by_names(struct mapper *m) {
    for (size_t i = 0; i < m->model->n_variables && m->source->bundle; i++)
        map_variable(m, &m->model->variables[i], m->model->variables[i].shared_name, NULL);
}

tare_status tare_import_variables(struct tare_graph_model *model, struct tare_saved_model *source) {
    struct mapper m = { .model = model, .source = source };
    struct tare_restores restores = { 0 };
    struct tare_arena arena = { 0 };
    tare_status status;
    TARE_CHECK(list_variables(&m));
    if (source->bundle) TARE_CHECK(tare_restores_find(&restores, &arena, model, source->meta->saver_def));
    map_by_restore(&m, &restores);
    TARE_CHECK(map_by_objects(&m));
    map_by_names(&m);
    TARE_CHECK(tare_import_share_variables(model));
    for (size_t i = 0; i < model->n_variables && source->bundle; i++) {
        struct tare_variable *variable = &model->variables[i];
        status = tare_error_prefix(read_value(&m, variable), "variable %s", variable->shared_name);
        TARE_CHECK(
            tare_import_fault(source->faults, status, "graph/%s (%s)", variable->node->name, variable->node->op));
    }
    TARE_CHECK(tare_import_tables(model, source, &restores));
done:
    tare_arena_free(&arena);
    tare_map_free(&m.by_node);
    tare_map_free(&m.concretes);
    tare_map_free(&m.by_key);
    tare_map_free(&m.by_id);
    tare_map_free(&m.by_name);
    return status;
}
