/* Suggests functions to place, and splits of functions that the TPU does not support as a whole. */
#include "tpu/suggest.h"
#include "graph/calls.h"
#include "tpu/closure.h"
#include "tpu/compatibility.h"
#include "tpu/cost/rows.h"
#include "tpu/functions.h"
#include "tpu/partition.h"

#include <stdlib.h>
#include <string.h>

struct search {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    struct tare_tpu_suggestions *out;
    struct tare_map seen;    /* functions looked at */
    struct tare_map covered; /* functions that run inside a suggested one */
    struct tare_map aliases; /* name of a function -> struct tare_alias */
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

/* ---- where the incompatible part is ---- */

/* Nodes on that side only, which could run on the TPU. */
static bool is_part(const struct tare_tpu_partition *split, const struct tare_node *node, enum tare_tpu_place place) {
    return tare_tpu_partition_has(split, node, place) && (tare_tpu_compiles(node->op) || !node->def);
}

static size_t count_part(const struct tare_tpu_partition *split, enum tare_tpu_place place) {
    size_t count = 0;
    for (size_t i = 0; i < split->graph->n_nodes; i++)
        count += is_part(split, split->graph->nodes[i], place) && computes(split->graph->nodes[i]);
    return count;
}

/* Lists the distinct tensors that cross the cut. */
struct crossings {
    char *text; /* "'a' float32, 'b' int64" */
    size_t count;
    struct tare_edge seen[4];
};

static tare_status add_crossing(struct crossings *c, const struct search *s, struct tare_edge edge) {
    enum { SHOWN = sizeof c->seen / sizeof *c->seen };
    if (strcmp(edge.node->op, "Const") == 0) return TARE_OK; /* copied into the part */
    for (size_t i = 0; i < c->count && i < SHOWN; i++)
        if (c->seen[i].node == edge.node && c->seen[i].index == edge.index) return TARE_OK;
    if (c->count < SHOWN) {
        c->seen[c->count] = edge;
        c->text =
            tare_arena_printf(s->arena, edge.index ? "%s%s'%s:%d' %s" : "%s%s'%s'%.0d %s", c->text ? c->text : "",
                              c->text ? ", " : "", edge.node->name, edge.index, tare_dtype_name(tare_edge_dtype(edge)));
    } else if (c->count == SHOWN) {
        c->text = tare_arena_printf(s->arena, "%s, …", c->text);
    }
    c->count++;
    return c->text ? TARE_OK : TARE_NO_MEMORY;
}

/* "(12 ops; takes 'a' float32)": the size of the part, and the tensors at its boundary. */
static tare_status describe_part(const char **out, const struct search *s, const struct tare_tpu_partition *split,
                                 enum tare_tpu_place place) {
    struct crossings crossings = { NULL, 0, { { NULL, 0 } } };
    for (size_t i = 0; i < split->graph->n_nodes; i++) {
        const struct tare_node *node = split->graph->nodes[i];
        for (size_t k = 0; !node->dead && k < node->n_inputs; k++) {
            const struct tare_node *from = node->inputs[k].node;
            const bool inside = is_part(split, node, place), begins = is_part(split, from, place);
            if (place == TARE_TPU_AFTER ? inside && !begins : !inside && begins)
                TARE_TRY(add_crossing(&crossings, s, node->inputs[k]));
        }
    }
    const size_t ops = count_part(split, place);
    *out =
        tare_arena_printf(s->arena, "(%zu op%s; %s %s)", ops, ops == 1 ? "" : "s",
                          place == TARE_TPU_AFTER ? "takes" : "returns", crossings.text ? crossings.text : "nothing");
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

/* Where the incompatible part is, and what to place instead of the whole. */
static tare_status advise(const char **out, const struct search *s, const struct tare_tpu_partition *split) {
    const bool before = count_part(split, TARE_TPU_BEFORE) > 0, behind = count_part(split, TARE_TPU_AFTER) > 0;
    const char *first = "", *last = "";
    if (before) TARE_TRY(describe_part(&first, s, split, TARE_TPU_BEFORE));
    if (behind) TARE_TRY(describe_part(&last, s, split, TARE_TPU_AFTER));
    if (before && behind)
        *out = tare_arena_printf(
            s->arena, "in the middle: split the function into three, and put the first %s and the last %s on the TPU",
            first, last);
    else if (before)
        *out = tare_arena_printf(
            s->arena, "at the end: return what comes before it %s from a function of its own, and put that on the TPU",
            first);
    else if (behind)
        *out = tare_arena_printf(
            s->arena,
            "at the beginning: move what comes after it %s into a function of its own, and put that on the TPU", last);
    else
        *out = "nothing besides: leave it on the CPU";
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

/* Space for one more element of an arena array, whose capacity doubles at every power of two. */
static bool has_room(struct tare_arena *arena, void **items, size_t count, size_t item_size) {
    void *grown;
    if (count & (count - 1)) return true;
    grown = tare_arena_extend(arena, *items, count, count ? count : 1, item_size);
    if (grown) *items = grown;
    return grown;
}

static tare_status add_remark(struct search *s, const struct tare_graph *graph, const char *text) {
    if (!text || !has_room(s->arena, (void **)&s->out->remarks, s->out->n_remarks, sizeof *s->out->remarks))
        return TARE_NO_MEMORY;
    s->out->remarks[s->out->n_remarks++] = (struct tare_tpu_remark){ graph, text };
    return TARE_OK;
}

/* Findings in the function itself; those in its callees are reported for the callees. */
static tare_status remark(struct search *s, const struct tare_graph *graph, const struct tare_tpu_finding *findings,
                          size_t count) {
    bool *bad = TARE_NEW_ARRAY(s->arena, bool, graph->n_nodes + 1);
    struct tare_tpu_partition split = { .graph = graph, .bad = bad };
    const char *advice;
    const struct tare_tpu_finding *first = NULL;
    size_t own = 0;
    if (!bad) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *node = findings[i].node;
        if (!tare_tpu_finding_is_error(findings[i].kind) || findings[i].function != graph) continue;
        if (findings[i].kind == TARE_TPU_BAD_BOUNDARY && count > 1) continue; /* follows from the nodes */
        if (!first) first = &findings[i];
        own++;
        if (node && node->graph == graph && !tare_node_is_arg(node)) bad[node->position] = true;
    }
    if (!own) return TARE_OK;
    TARE_TRY(tare_tpu_partition_find(&split, s->arena));
    TARE_TRY(advise(&advice, s, &split));
    return add_remark(s, graph,
                      tare_arena_printf(s->arena, "%zu thing%s the TPU cannot do, %s; the first: %s", own,
                                        own == 1 ? "" : "s", advice, first->text));
}

/* ---- going down ---- */

static tare_status visit(struct search *s, struct tare_graph *graph);

static tare_status visit_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    bool plain = !node->def || strcmp(node->op, "PartitionedCall") == 0 ||
                 strcmp(node->op, "StatefulPartitionedCall") == 0 || strcmp(node->op, "BatchFunction") == 0;
    return plain ? visit(arg, callee) : TARE_OK; /* branches and loops go with their function */
}

/* Whether the function can be placed and computes all `ops` ops of its caller. */
static tare_status does_it_all(bool *out, struct search *s, struct tare_graph *graph, size_t ops) {
    struct tare_tpu_finding *findings;
    struct tare_tpu_closure closure;
    size_t count;
    TARE_TRY(tare_tpu_closure(&closure, s->arena, &graph, 1));
    TARE_TRY(tare_tpu_check(&findings, &count, s->arena, s->model, &graph, 1));
    *out = count_ops(&closure) == ops;
    for (size_t i = 0; i < count; i++)
        *out &= !tare_tpu_finding_is_error(findings[i].kind);
    return TARE_OK;
}

/* NULL: none. */
static const char *alias_of(const struct search *s, const struct tare_graph *function) {
    const struct tare_alias *alias = tare_map_get(&s->aliases, function->name);
    return alias ? alias->alias : NULL;
}

/* The first alias of each function. */
static tare_status index_aliases(struct search *s) {
    for (size_t i = s->model->n_aliases; i-- > 0;)
        if (!tare_map_set(&s->aliases, s->model->aliases[i].function, &s->model->aliases[i])) return TARE_NO_MEMORY;
    return TARE_OK;
}

/* The function to suggest: one with an alias, if everything is computed by it, because the alias is stable across
 * exports; otherwise the outermost one. */
static tare_status choose(const struct tare_graph **out, struct search *s, const struct tare_tpu_closure *closure,
                          size_t ops) {
    *out = closure->members[0].graph;
    for (size_t m = 0; m < closure->count; m++) {
        struct tare_graph *graph = closure->members[m].graph;
        bool all = false;
        if (alias_of(s, graph)) TARE_TRY(does_it_all(&all, s, graph, ops));
        if (!all) continue;
        *out = graph;
        return TARE_OK;
    }
    return TARE_OK;
}

static tare_status suggest(struct search *s, const struct tare_tpu_closure *closure) {
    struct tare_tpu_suggestions *out = s->out;
    const struct tare_graph *chosen;
    const size_t ops = count_ops(closure);
    if (!ops) return TARE_OK;
    TARE_TRY(choose(&chosen, s, closure, ops));
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].function == chosen) return TARE_OK; /* another signature calls it, too */
    if (!has_room(s->arena, (void **)&out->items, out->count, sizeof *out->items)) return TARE_NO_MEMORY;
    out->items[out->count++] = (struct tare_tpu_suggestion){ chosen, alias_of(s, chosen), ops };
    for (size_t m = 1; m < closure->count; m++)
        if (closure->members[m].graph != chosen &&
            !tare_map_set(&s->covered, closure->members[m].graph->name, closure->members[m].graph))
            return TARE_NO_MEMORY;
    return TARE_OK;
}

static tare_status visit(struct search *s, struct tare_graph *graph) {
    struct tare_tpu_finding *findings;
    struct tare_tpu_closure closure;
    size_t count, errors = 0;
    tare_status status = TARE_OK;
    if (tare_map_get(&s->seen, graph->name)) return TARE_OK;
    if (!tare_map_set(&s->seen, graph->name, graph)) return TARE_NO_MEMORY;
    if (s->depth > TARE_MOST_NESTED_CALLS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    TARE_TRY(tare_tpu_check(&findings, &count, s->arena, s->model, &graph, 1));
    for (size_t i = 0; i < count; i++)
        errors += tare_tpu_finding_is_error(findings[i].kind);
    TARE_TRY(tare_tpu_closure(&closure, s->arena, &graph, 1));
    if (!errors) return suggest(s, &closure);
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

/* Drops functions that were suggested earlier and run inside a later, larger one. */
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

tare_status tare_tpu_suggest(struct tare_tpu_suggestions *out, struct tare_arena *arena,
                             const struct tare_graph_model *model) {
    struct search s = { .arena = arena, .model = model, .out = out };
    struct tare_graph **roots = TARE_NEW_ARRAY(arena, struct tare_graph *, model->n_signatures + 1);
    struct tare_tpu_closure closure;
    size_t n_roots = 0;
    tare_status status = TARE_OK;
    memset(out, 0, sizeof *out);
    if (!roots) return TARE_NO_MEMORY;
    TARE_CHECK(index_aliases(&s));
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
    tare_map_free(&s.aliases);
    return status;
}
