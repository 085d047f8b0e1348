/* Bytes of weights, and of activations by liveness. */
#include "tpu/cost/memory.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "interpreter/inference/model_shapes.h"
#include "interpreter/inference/infer.h"
#include "tpu/closure.h"

#include <string.h>

/* A function that was measured with arguments of these shapes. */
struct peak {
    const struct tare_shape *args;
    double bytes;
    struct peak *next; /* of the same function */
};

struct meter {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    struct tare_bindings *bindings;
    struct tare_inference *inference; /* of all graphs */
    int64_t batch;
    int depth;
    struct tare_graph_table peaks;     /* function -> struct peak */
    struct tare_map constants;         /* object id -> struct tare_object_constant */
    struct tare_graph_table concretes; /* function -> struct listed_concrete: the first one */
};

struct listed_concrete {
    const struct tare_concrete *concrete;
    const struct listed_concrete *next; /* of the same function */
};

static double bytes_of(int dtype, const struct tare_shape *shape, int64_t first) {
    double bytes = (double)tare_dtype_size(tare_dtype_base(dtype));
    if (tare_dtype_base(dtype) == TARE_DT_RESOURCE) return 0;
    for (int i = 0; i < shape->rank; i++)
        bytes *= (double)(shape->dims[i] >= 0 ? shape->dims[i] : i ? 1 : first);
    return bytes;
}

/* ---- weights ---- */

/* Finds the constants that the object graph binds arguments to. */
static tare_status index_constants(struct meter *meter) {
    const struct tare_graph_model *model = meter->model;
    for (size_t i = 0; i < model->n_object_constants; i++) {
        const struct tare_object_constant *constant = &model->object_constants[i];
        const char *key = (const char *)&constant->object_id;
        if (tare_map_get_n(&meter->constants, key, sizeof constant->object_id)) continue;
        if (!tare_map_set_n(&meter->constants, key, sizeof constant->object_id, (void *)(uintptr_t)constant))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status index_concretes(struct meter *meter) {
    const struct tare_graph_model *model = meter->model;
    struct listed_concrete *listed = TARE_NEW_ARRAY(meter->arena, struct listed_concrete, model->n_concretes + 1);
    if (!listed) return TARE_NO_MEMORY;
    for (size_t c = model->n_concretes; c-- > 0;) { /* backwards, so that each list is in order */
        const struct tare_concrete *concrete = &model->concretes[c];
        listed[c] = (struct listed_concrete){ concrete, tare_graph_table_get(&meter->concretes, concrete->graph) };
        if (!tare_graph_table_set(&meter->concretes, concrete->graph, &listed[c])) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static const struct tare_tensor *constant_of_object(const struct meter *meter, const int *object_id) {
    const struct tare_object_constant *constant =
        tare_map_get_n(&meter->constants, (const char *)object_id, sizeof *object_id);
    return constant ? tare_node_tensor(constant->node, "value") : NULL;
}

/* The constants that the object graph binds the graph's arguments to, by argument; NULL: none. They are weights,
 * although they are passed as arguments. The first concrete function that has a constant for an argument counts. */
static const struct tare_tensor **captured(const struct meter *meter, const struct tare_graph *graph) {
    const struct tare_tensor **values = TARE_NEW_ARRAY(meter->arena, const struct tare_tensor *, graph->n_args + 1);
    const struct listed_concrete *listed = tare_graph_table_get(&meter->concretes, graph);
    for (; values && listed; listed = listed->next) {
        const struct tare_concrete *concrete = listed->concrete;
        const size_t first = graph->n_args - concrete->n_bound;
        if (concrete->n_bound > graph->n_args) continue;
        for (size_t i = 0; i < concrete->n_bound; i++)
            if (!values[first + i]) values[first + i] = constant_of_object(meter, &concrete->bound[i]);
    }
    return values;
}

static tare_status add_captured(double *sum, const struct meter *meter, const struct tare_graph *graph) {
    const struct tare_tensor **values = captured(meter, graph);
    for (size_t i = 0; values && i < graph->n_args; i++)
        if (values[i]) *sum += bytes_of(values[i]->dtype, &values[i]->shape, 1);
    return values ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_weights(double *sum, const struct meter *meter, const struct tare_tpu_closure *closure) {
    bool *seen = TARE_NEW_ARRAY(meter->arena, bool, meter->model->n_variables + 1);
    if (!seen) return TARE_NO_MEMORY;
    for (size_t m = 0; m < closure->count; m++) {
        const struct tare_graph *graph = closure->members[m].graph;
        if (closure->members[m].is_entry) TARE_TRY(add_captured(sum, meter, graph));
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const struct tare_tensor *value = tare_node_tensor(graph->nodes[i], "value");
            if (!graph->nodes[i]->dead && strcmp(graph->nodes[i]->op, "Const") == 0 && value)
                *sum += bytes_of(value->dtype, &value->shape, 1);
        }
        for (size_t i = 0; i < graph->n_args; i++) {
            const struct tare_variable *variable =
                tare_bindings_variable(meter->bindings, (struct tare_edge){ graph->args[i], 0 }, NULL);
            if (!variable || seen[variable - meter->model->variables]) continue;
            seen[variable - meter->model->variables] = true;
            *sum += bytes_of(variable->dtype, &variable->shape, 1);
        }
    }
    return TARE_OK;
}

/* ---- activations ---- */

/* Traversal of one graph: the bytes of each node's outputs, and the position of their last user. */
struct timeline {
    struct tare_shape **shapes;
    struct tare_node **order;
    size_t *last_use; /* by position: step of the last user */
    double *bytes;
};

static tare_status prepare(struct timeline *t, const struct meter *meter, const struct tare_graph *graph,
                           struct tare_shape *args) {
    const struct tare_shape **handles = tare_bindings_handles(meter->bindings, meter->arena, graph);
    if (!handles) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_args; i++)
        for (int d = 0; d < args[i].rank; d++)
            if (args[i].dims[d] < 0) args[i].dims[d] = d ? 1 : meter->batch;
    const tare_status status =
        tare_graph_infer_shapes_with(meter->inference, &t->shapes, meter->arena, graph, args, handles);
    TARE_TRY(tare_error_dismiss(status));
    if (status != TARE_OK) { /* closed dimensions that contradict the graph: only shapes known from constants remain */
        for (size_t i = 0; i < graph->n_args; i++)
            args[i] = tare_shape_unknown();
        TARE_TRY(tare_graph_infer_shapes_with(meter->inference, &t->shapes, meter->arena, graph, args, handles));
    }
    TARE_TRY(tare_graph_order(&t->order, meter->arena, graph));
    t->last_use = TARE_NEW_ARRAY(meter->arena, size_t, graph->n_nodes + 1);
    t->bytes = TARE_NEW_ARRAY(meter->arena, double, graph->n_nodes + 1);
    if (!t->last_use || !t->bytes) return TARE_NO_MEMORY;
    for (size_t s = 0; s < graph->n_nodes && t->order[s]; s++) {
        const struct tare_node *node = t->order[s];
        bool weight = strcmp(node->op, "Const") == 0 || strcmp(node->op, "ReadVariableOp") == 0;
        for (size_t k = 0; !weight && k < node->n_outputs; k++)
            t->bytes[node->position] += bytes_of(node->output_dtypes[k], &t->shapes[node->position][k], 1);
        for (size_t k = 0; k < node->n_inputs; k++)
            if (!tare_node_is_arg(node->inputs[k].node)) t->last_use[node->inputs[k].node->position] = s;
    }
    for (size_t i = 0; i < graph->n_returns; i++)
        if (!tare_node_is_arg(graph->returns[i].edge.node))
            t->last_use[graph->returns[i].edge.node->position] = graph->n_nodes;
    return TARE_OK;
}

static tare_status peak_of(double *out, struct meter *meter, const struct tare_graph *graph, struct tare_shape *args);
static tare_status measure_peak(double *out, struct meter *meter, const struct tare_graph *graph,
                                struct tare_shape *args);

/* Memory of a call in addition to its arguments and results. */
static tare_status peak_of_call(double *out, struct meter *meter, const struct tare_node *node, struct timeline *t,
                                const struct tare_shape *args) {
    struct tare_call_site site;
    *out = 0;
    TARE_TRY(tare_call_site(&site, meter->arena, node));
    for (size_t c = 0; c < site.n_callees; c++) {
        struct tare_shape *shapes = TARE_NEW_ARRAY(meter->arena, struct tare_shape, site.callees[c]->n_args + 1);
        double peak;
        if (!shapes) return TARE_NO_MEMORY;
        for (size_t i = 0; i < site.callees[c]->n_args; i++) {
            struct tare_edge edge = i < site.n_args ? node->inputs[site.first + i] : (struct tare_edge){ NULL, 0 };
            shapes[i] = !edge.node                    ? tare_shape_unknown()
                        : tare_node_is_arg(edge.node) ? args[edge.node->position]
                                                      : t->shapes[edge.node->position][edge.index];
        }
        TARE_TRY(peak_of(&peak, meter, site.callees[c], shapes));
        if (peak > *out) *out = peak;
    }
    return TARE_OK;
}

static const struct peak *find_peak(const struct meter *meter, const struct tare_graph *graph,
                                    const struct tare_shape *args) {
    for (const struct peak *p = tare_graph_table_get(&meter->peaks, graph); p; p = p->next) {
        size_t i = 0;
        while (i < graph->n_args && tare_shape_equal(&p->args[i], &args[i]))
            i++;
        if (i == graph->n_args) return p;
    }
    return NULL;
}

/* Each function is measured once for the same shapes, however many call paths lead to it. */
static tare_status peak_of(double *out, struct meter *meter, const struct tare_graph *graph, struct tare_shape *args) {
    const struct peak *known = find_peak(meter, graph, args);
    struct peak *now;
    if (known) {
        *out = known->bytes;
        return TARE_OK;
    }
    now = TARE_NEW(meter->arena, struct peak);
    if (!now) return TARE_NO_MEMORY;
    now->args = tare_arena_extend(meter->arena, args, graph->n_args, 1, sizeof *args);
    if (!now->args) return TARE_NO_MEMORY;
    TARE_TRY(measure_peak(&now->bytes, meter, graph, args));
    *out = now->bytes;
    now->next = tare_graph_table_get(&meter->peaks, graph);
    return tare_graph_table_set(&meter->peaks, graph, now) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status measure_peak(double *out, struct meter *meter, const struct tare_graph *graph,
                                struct tare_shape *args) {
    struct timeline t = { 0 };
    double live = 0;
    *out = 0;
    if (++meter->depth > TARE_MOST_NESTED_CALLS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    TARE_TRY(prepare(&t, meter, graph, args));
    for (size_t s = 0; s < graph->n_nodes && t.order[s]; s++) {
        const struct tare_node *node = t.order[s];
        double inside;
        TARE_TRY(peak_of_call(&inside, meter, node, &t, args));
        live += t.bytes[node->position];
        if (live + inside > *out) *out = live + inside;
        for (size_t k = 0; k < node->n_inputs; k++) {
            const struct tare_node *from = node->inputs[k].node;
            if (tare_node_is_arg(from) || t.last_use[from->position] != s) continue;
            live -= t.bytes[from->position];
            t.bytes[from->position] = 0; /* once, though several inputs may use it */
        }
    }
    meter->depth--;
    return TARE_OK;
}

static tare_status add_activations(double *most, struct meter *meter, const struct tare_graph *graph,
                                   const struct tare_model_shapes *shapes) {
    struct tare_shape *args = TARE_NEW_ARRAY(meter->arena, struct tare_shape, graph->n_args + 1);
    const struct tare_tensor **constants = captured(meter, graph);
    double peak, taken = 0;
    if (!args || !constants) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_args; i++) {
        args[i] = tare_model_shape(shapes, (struct tare_edge){ graph->args[i], 0 });
        if (!constants[i]) taken += bytes_of(graph->args[i]->output_dtypes[0], &args[i], meter->batch);
    }
    TARE_TRY(peak_of(&peak, meter, graph, args));
    if (peak + taken > *most) *most = peak + taken;
    return TARE_OK;
}

tare_status tare_tpu_memory(struct tare_tpu_memory *out, struct tare_arena *arena, const struct tare_graph_model *model,
                            struct tare_graph *const *functions, size_t count, int64_t batch) {
    struct meter meter = { .arena = arena, .model = model, .batch = batch < 1 ? 1 : batch };
    struct tare_model_shapes *shapes = NULL;
    struct tare_tpu_closure closure;
    tare_status status;
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_tpu_closure(&closure, arena, functions, count));
    TARE_TRY(tare_bindings_new(&meter.bindings, model));
    meter.inference = tare_inference_new();
    TARE_CHECK(meter.inference ? TARE_OK : TARE_NO_MEMORY);
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    TARE_CHECK(index_constants(&meter));
    TARE_CHECK(index_concretes(&meter));
    TARE_CHECK(add_weights(&out->weights, &meter, &closure));
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = add_activations(&out->activations, &meter, functions[i], shapes);
done:
    tare_model_shapes_free(shapes);
    tare_graph_table_free(&meter.peaks);
    tare_map_free(&meter.constants);
    tare_graph_table_free(&meter.concretes);
    tare_inference_free(meter.inference);
    tare_bindings_free(meter.bindings);
    return status;
}
