/* Suggesting functions, and splits of those that cannot go to the TPU. */
#include "tpu/suggest.h"
#include "graph/calls.h"
#include "tpu/closure.h"
#include "tpu/compatibility.h"
#include "tpu/cost_rows.h"
#include "tpu/functions.h"

#include <stdlib.h>
#include <string.h>

struct search {
    struct tare_arena *arena;
    const struct tare_model *model;
    struct tare_tpu_suggestions *out;
    struct tare_map seen;    /* functions looked at */
    struct tare_map covered; /* functions that run inside a suggested one */
    int depth;
};

/* ---- how much a function computes ---- */

static bool computes(const struct tare_node *node) {
    static const char *const shells[] = { "PartitionedCall", "StatefulPartitionedCall", "Cast", "_Arg" };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(node->op, shells[i]) == 0) return false;
    return !node->dead && node->def && !tare_tpu_op_is_free(node->op);
}

static size_t count_ops(const struct tare_tpu_closure *closure) {
    size_t count = 0;
    for (size_t m = 0; m < closure->count; m++)
        for (size_t i = 0; i < closure->members[m].graph->n_nodes; i++)
            count += computes(closure->members[m].graph->nodes[i]);
    return count;
}

/* ---- where the incompatible part lies ---- */

enum place { BEFORE = 1, BEHIND = 2 };

/* Marks what can be reached from incompatible nodes, forwards or backwards, and says whether anything that computes and
 * could run on the TPU is among it. */
static tare_status computes_beyond(bool *out, const struct search *s, const struct tare_graph *graph, const bool *bad,
                                   enum place place) {
    bool *reached = TARE_NEW_ARRAY(s->arena, bool, graph->n_nodes + 1);
    struct tare_node **order;
    *out = false;
    if (!reached) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, s->arena, graph));
    for (size_t step = 0; step < graph->n_nodes; step++) {
        const struct tare_node *node = order[place == BEHIND ? step : graph->n_nodes - 1 - step];
        if (!node) continue;
        for (size_t k = 0; k < node->n_inputs; k++) {
            const struct tare_node *from = node->inputs[k].node;
            if (strcmp(from->op, "_Arg") == 0) continue;
            if (place == BEHIND)
                reached[node->position] |= bad[from->position] || reached[from->position];
            else
                reached[from->position] |= bad[node->position] || reached[node->position];
        }
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        *out |= reached[i] && !bad[i] && computes(graph->nodes[i]) && tare_tpu_compiles(graph->nodes[i]->op);
    return TARE_OK;
}

static tare_status add_remark(struct search *s, const struct tare_graph *graph, const char *text) {
    struct tare_tpu_remark *grown = tare_arena_extend(s->arena, s->out->remarks, s->out->n_remarks, 1, sizeof *grown);
    if (!grown || !text) return TARE_NO_MEMORY;
    grown[s->out->n_remarks++] = (struct tare_tpu_remark){ graph, text };
    s->out->remarks = grown;
    return TARE_OK;
}

/* Findings in the function itself; those of its callees are said there. */
static tare_status remark(struct search *s, const struct tare_graph *graph, const struct tare_tpu_finding *findings,
                          size_t count) {
    static const char *const advice[] = {
        "nothing besides: leave it on the CPU",
        "at the end: return what comes before it from a function of its own, and put that on the TPU",
        "at the beginning: move what comes behind it into a function of its own, and put that on the TPU",
        "in the middle: split the function into three, and put the first and the last on the TPU",
    };
    bool *bad = TARE_NEW_ARRAY(s->arena, bool, graph->n_nodes + 1), before, behind;
    const struct tare_tpu_finding *first = NULL;
    size_t own = 0;
    if (!bad) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *node = findings[i].node;
        if (!tare_tpu_finding_is_error(findings[i].kind) || findings[i].function != graph) continue;
        if (findings[i].kind == TARE_TPU_BAD_BOUNDARY && count > 1) continue; /* follows from the nodes */
        if (!first) first = &findings[i];
        own++;
        if (node && node->graph == graph && strcmp(node->op, "_Arg") != 0) bad[node->position] = true;
    }
    if (!own) return TARE_OK;
    TARE_TRY(computes_beyond(&before, s, graph, bad, BEFORE));
    TARE_TRY(computes_beyond(&behind, s, graph, bad, BEHIND));
    return add_remark(s, graph,
                      tare_arena_printf(s->arena, "%zu thing%s the TPU cannot do, %s; the first: %s", own,
                                        own == 1 ? "" : "s", advice[(before ? 1 : 0) + (behind ? 2 : 0)], first->text));
}

/* ---- going down ---- */

static tare_status visit(struct search *s, struct tare_graph *graph);

static tare_status visit_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    bool plain = !node->def || strcmp(node->op, "PartitionedCall") == 0 ||
                 strcmp(node->op, "StatefulPartitionedCall") == 0 || strcmp(node->op, "BatchFunction") == 0;
    return plain ? visit(arg, callee) : TARE_OK; /* branches and loops go with their function */
}

static tare_status suggest(struct search *s, const struct tare_graph *graph, const struct tare_tpu_closure *closure) {
    struct tare_tpu_suggestion *grown;
    size_t ops = count_ops(closure);
    if (!ops) return TARE_OK;
    grown = tare_arena_extend(s->arena, s->out->items, s->out->count, 1, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[s->out->count++] =
        (struct tare_tpu_suggestion){ graph, tare_model_alias_of(s->model, graph->name), ops };
    s->out->items = grown;
    for (size_t m = 1; m < closure->count; m++)
        if (!tare_map_set(&s->covered, closure->members[m].graph->name, closure->members[m].graph)) return TARE_NO_MEMORY;
    return TARE_OK;
}

static tare_status visit(struct search *s, struct tare_graph *graph) {
    struct tare_tpu_finding *findings;
    struct tare_tpu_closure closure;
    size_t count, errors = 0;
    tare_status status = TARE_OK;
    if (tare_map_get(&s->seen, graph->name)) return TARE_OK;
    if (!tare_map_set(&s->seen, graph->name, graph)) return TARE_NO_MEMORY;
    if (s->depth > 64) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    TARE_TRY(tare_tpu_check(&findings, &count, s->arena, s->model, &graph, 1));
    for (size_t i = 0; i < count; i++)
        errors += tare_tpu_finding_is_error(findings[i].kind);
    TARE_TRY(tare_tpu_closure(&closure, s->arena, &graph, 1));
    if (!errors) return suggest(s, graph, &closure);
    TARE_TRY(remark(s, graph, findings, count));
    s->depth++;
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++)
        if (!graph->nodes[i]->dead) status = tare_node_each_function(graph->nodes[i], visit_callee, s);
    s->depth--;
    return status;
}

/* ---- the result ---- */

static int by_ops(const void *a, const void *b) {
    const struct tare_tpu_suggestion *x = a, *y = b;
    if (x->ops != y->ops) return x->ops < y->ops ? 1 : -1;
    return strcmp(x->function->name, y->function->name);
}

/* A function that was suggested first and runs inside a later, larger one goes. */
static void drop_covered(struct search *s) {
    struct tare_tpu_suggestions *out = s->out;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        if (tare_map_get(&s->covered, out->items[i].function->name)) continue;
        out->covered += out->items[i].ops;
        out->items[kept++] = out->items[i];
    }
    out->count = kept;
    if (kept) qsort(out->items, kept, sizeof *out->items, by_ops);
}

tare_status tare_tpu_suggest(struct tare_tpu_suggestions *out, struct tare_arena *arena, const struct tare_model *model) {
    struct search s = { .arena = arena, .model = model, .out = out };
    struct tare_graph **roots = TARE_NEW_ARRAY(arena, struct tare_graph *, model->n_signatures + 1);
    struct tare_tpu_closure closure;
    size_t n_roots = 0;
    tare_status status = TARE_OK;
    memset(out, 0, sizeof *out);
    if (!roots) return TARE_NO_MEMORY;
    for (size_t i = 0; i < model->n_signatures; i++) {
        struct tare_graph *function = tare_signature_function(&model->signatures[i]);
        if (!function) continue;
        roots[n_roots++] = function;
        TARE_CHECK(visit(&s, function));
    }
    TARE_CHECK(tare_tpu_closure(&closure, arena, roots, n_roots));
    out->ops = count_ops(&closure);
    drop_covered(&s);
done:
    tare_map_free(&s.seen);
    tare_map_free(&s.covered);
    return status;
}
