/* Writes of initialisers and of the restore function do not count: they run before a TPU copies the variables. */
#include "tpu/written_variables.h"
#include "graph/calls.h"
#include "tpu/closure.h"
#include "tpu/functions.h"

#include <string.h>

bool tare_tpu_assigns(const struct tare_node *node) {
    return strncmp(node->op, "Assign", strlen("Assign")) == 0 ||
           strncmp(node->op, "ResourceScatter", strlen("ResourceScatter")) == 0 ||
           strncmp(node->op, "ResourceApply", strlen("ResourceApply")) == 0 ||
           strcmp(node->op, "ResourceStridedSliceAssign") == 0;
}

bool tare_tpu_reads(const struct tare_node *node) {
    static const char *const ops[] = { "ReadVariableOp", "ResourceGather", "ResourceGatherNd", NULL };
    return tare_op_is_one_of(node->op, ops) && node->n_inputs > 0;
}

/* ---- the functions of signatures that run on the CPU ---- */

struct search {
    struct tare_tpu_written *out;
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    struct tare_graph_table placed, seen;
};

static tare_status add_placed(struct search *s, struct tare_graph *const *placed, size_t n_placed) {
    struct tare_tpu_closure closure = { 0 };
    if (!n_placed) return TARE_OK;
    TARE_TRY(tare_tpu_closure(&closure, s->arena, placed, n_placed));
    for (size_t i = 0; i < closure.count; i++)
        if (!tare_graph_table_set(&s->placed, closure.members[i].graph, closure.members[i].graph))
            return TARE_NO_MEMORY;
    return TARE_OK;
}

/* The first node that writes a variable. */
struct write {
    const struct tare_variable *variable; /* its bytes are the key */
    const struct tare_node *node;
};

static tare_status add_write(struct search *s, const struct tare_variable *variable, const struct tare_node *node) {
    struct write *write;
    if (!variable || tare_map_get_n(&s->out->by_variable, (const char *)&variable, sizeof variable)) return TARE_OK;
    write = TARE_NEW(s->arena, struct write);
    if (!write) return TARE_NO_MEMORY;
    *write = (struct write){ variable, node };
    return tare_map_set_n(&s->out->by_variable, (const char *)&write->variable, sizeof write->variable, write)
               ? TARE_OK
               : TARE_NO_MEMORY;
}

static tare_status add_writes(struct search *s, const struct tare_node *node) {
    struct tare_tpu_written *out = s->out;
    if (!out->bindings) TARE_TRY(tare_bindings_new(&out->bindings, s->model));
    for (size_t i = 0; i < node->n_inputs; i++)
        if (tare_edge_dtype(node->inputs[i]) == TARE_DT_RESOURCE)
            TARE_TRY(add_write(s, tare_bindings_variable(out->bindings, node->inputs[i], NULL), node));
    return TARE_OK;
}

static tare_status search_function(struct search *s, struct tare_graph *first) {
    struct tare_tpu_closure closure = { 0 };
    if (tare_graph_table_get(&s->seen, first)) return TARE_OK;
    TARE_TRY(tare_tpu_closure(&closure, s->arena, &first, 1));
    for (size_t k = 0; k < closure.count; k++) {
        const struct tare_graph *graph = closure.members[k].graph;
        if (tare_graph_table_get(&s->seen, graph) || tare_graph_table_get(&s->placed, graph)) continue;
        if (!tare_graph_table_set(&s->seen, graph, closure.members[k].graph)) return TARE_NO_MEMORY;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead && tare_tpu_assigns(graph->nodes[i])) TARE_TRY(add_writes(s, graph->nodes[i]));
    }
    return TARE_OK;
}

static tare_status search_signatures(struct search *s) {
    for (size_t i = 0; i < s->model->n_signatures; i++) {
        struct tare_graph *function = tare_signature_function(&s->model->signatures[i]);
        if (function) TARE_TRY(search_function(s, function));
    }
    return TARE_OK;
}

tare_status tare_tpu_written_find(struct tare_tpu_written *out, struct tare_arena *arena,
                                  const struct tare_graph_model *model, struct tare_graph *const *placed,
                                  size_t n_placed) {
    struct search search = { .out = out, .arena = arena, .model = model };
    tare_status status;
    memset(out, 0, sizeof *out);
    status = add_placed(&search, placed, n_placed);
    if (status == TARE_OK) status = search_signatures(&search);
    tare_graph_table_free(&search.placed);
    tare_graph_table_free(&search.seen);
    if (status != TARE_OK) tare_tpu_written_free(out);
    return status;
}

void tare_tpu_written_free(struct tare_tpu_written *written) {
    tare_bindings_free(written->bindings);
    tare_map_free(&written->by_variable);
    written->bindings = NULL;
}

const struct tare_node *tare_tpu_writer_of(const struct tare_tpu_written *written, const struct tare_node *read) {
    const struct tare_variable *variable;
    const struct write *write;
    if (!written->bindings || !tare_tpu_reads(read)) return NULL;
    variable = tare_bindings_variable(written->bindings, read->inputs[0], NULL);
    write = tare_map_get_n(&written->by_variable, (const char *)&variable, sizeof variable);
    return write ? write->node : NULL;
}
