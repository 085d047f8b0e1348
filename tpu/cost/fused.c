/* Groups of ops that are fused, their work and their time. */
#include "tpu/cost/fused.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/trips.h"
#include "interpreter/inference/infer.h"
#include "tpu/cost/groups.h"
#include "tpu/cost/rows.h"

static tare_status want(struct tare_fused_graph *g, const struct tare_signature *signature) {
    struct tare_node **stack = TARE_NEW_ARRAY(g->f->arena, struct tare_node *, g->graph->n_nodes + 1);
    size_t depth = 0, n_roots = signature ? signature->n_outputs : g->graph->n_returns;
    if (!stack) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_roots; i++) {
        struct tare_node *node = signature ? signature->outputs[i].edge.node : g->graph->returns[i].edge.node;
        if (!node || tare_node_is_arg(node) || g->needed[node->position]) continue;
        g->needed[node->position] = true;
        stack[depth++] = node;
    }
    while (depth) {
        const struct tare_node *node = stack[--depth];
        for (size_t i = 0; i < node->n_inputs; i++) {
            struct tare_node *before = node->inputs[i].node;
            if (tare_node_is_arg(before) || g->needed[before->position]) continue;
            g->needed[before->position] = true;
            stack[depth++] = before;
        }
    }
    return TARE_OK;
}

/* ---- graphs ---- */

static tare_status add_graph(struct tare_fusing *f, const struct tare_graph *graph,
                             const struct tare_signature *signature, const struct tare_shape *arg_shapes);

static tare_status add_callees(struct tare_fused_graph *g, const struct tare_node *node,
                               const struct tare_call_site *site) {
    const double times = g->f->times;
    const int64_t trips = site->kind == TARE_CALL_LOOP ? tare_loop_trips(node, site) : 1;
    if (trips >= 0) g->f->times *= (double)trips;
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        struct tare_shape *args = TARE_NEW_ARRAY(g->f->arena, struct tare_shape, callee->n_args + 1);
        if (!args) return TARE_NO_MEMORY;
        for (size_t i = 0; i < callee->n_args; i++)
            args[i] = i < site->n_args ? tare_fused_shape(g, node->inputs[site->first + i]) : tare_shape_unknown();
        TARE_TRY(add_graph(g->f, callee, NULL, args));
    }
    g->f->times = times;
    return TARE_OK;
}

static tare_status count_nodes(struct tare_fused_graph *g) {
    for (size_t o = 0; o < g->n_order; o++) {
        const struct tare_node *node = g->order[o];
        struct tare_call_site site;
        if (!tare_fused_is_counted(g, node)) continue;
        TARE_TRY(tare_call_site(&site, g->f->arena, node));
        if (site.kind != TARE_CALL_NONE) TARE_TRY(add_callees(g, node, &site));
        TARE_TRY(tare_fused_count(g, node, site.kind != TARE_CALL_NONE));
    }
    return TARE_OK;
}

static void write_results(struct tare_fused_graph *g, const struct tare_signature *signature) {
    const size_t count = signature ? signature->n_outputs : g->graph->n_returns;
    for (size_t i = 0; i < count; i++) {
        const struct tare_edge edge = tare_fused_result(g, signature, i);
        if (!edge.node || tare_node_is_arg(edge.node)) continue;
        g->written[edge.node->position][edge.index] = true;
        if (!g->leader[edge.node->position]) continue;
        const struct tare_shape shape = tare_fused_shape(g, edge);
        tare_fused_group_of(g, edge.node)->work.amount[TARE_TPU_WRITTEN_TILES] += (float)tare_tpu_tiles(&shape);
    }
    for (size_t o = 0; o < g->n_order; o++) {
        struct tare_node *node = g->order[o];
        const struct tare_node *leader = g->leader[node->position];
        for (size_t k = 0; k < node->n_outputs && leader && !g->constant[node->position]; k++)
            if (g->written[node->position][k])
                tare_fused_group_of(g, leader)->cost.bytes += tare_fused_bytes(g, (struct tare_edge){ node, (int)k });
    }
}

static void add_groups(struct tare_fused_graph *g) {
    struct tare_fused_cost *total = g->f->total;
    for (size_t o = 0; o < g->n_order; o++) {
        struct tare_fused_group *group = &g->groups[g->order[o]->position];
        struct tare_fused_cost *cost = &group->cost;
        if (!(cost->bytes > 0) && !(cost->macs > 0)) continue;
        const enum tare_tpu_rate rate = cost->integer_macs > 0  ? TARE_TPU_INT8
                                        : cost->float8_macs > 0 ? TARE_TPU_FLOAT8
                                                                : TARE_TPU_BFLOAT16;
        for (int c = 0; c < TARE_TPU_CHIPS; c++) {
            cost->least[c] = g->f->times * tare_tpu_chip_seconds(&tare_tpu_chips[c], cost->macs, rate, cost->bytes);
            cost->seconds[c] = g->f->times * tare_tpu_work_seconds(&group->work, c, cost->bytes);
            total->least[c] += cost->least[c];
            total->seconds[c] += cost->seconds[c];
        }
        cost->macs *= g->f->times;
        cost->integer_macs *= g->f->times;
        cost->float8_macs *= g->f->times;
        cost->bytes *= g->f->times;
        for (int w = 0; w < TARE_TPU_WORKS; w++) {
            cost->work[group->work.integer][w] = group->work.amount[w] * g->f->times;
            total->work[group->work.integer][w] += cost->work[group->work.integer][w];
        }
        total->macs += cost->macs;
        total->integer_macs += cost->integer_macs;
        total->float8_macs += cost->float8_macs;
        total->bytes += cost->bytes;
        if (g->f->each) g->f->each(g->f->arg, g->order[o], cost);
    }
}

static tare_status set_up(struct tare_fused_graph *g) {
    struct tare_arena *arena = g->f->arena;
    const size_t n = g->graph->n_nodes + 1;
    const struct tare_shape **handles = tare_bindings_handles(g->f->bindings, arena, g->graph);
    if (!handles) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_infer_shapes_with(g->f->inference, &g->shapes, arena, g->graph, g->arg_shapes, handles));
    TARE_TRY(tare_graph_order(&g->order, arena, g->graph));
    while (g->n_order < g->graph->n_nodes && g->order[g->n_order])
        g->n_order++;
    g->needed = TARE_NEW_ARRAY(arena, bool, n);
    g->constant = TARE_NEW_ARRAY(arena, bool, n);
    g->leader = TARE_NEW_ARRAY(arena, const struct tare_node *, n);
    g->written = TARE_NEW_ARRAY(arena, bool *, n);
    g->groups = TARE_NEW_ARRAY(arena, struct tare_fused_group, n);
    if (!g->needed || !g->constant || !g->leader || !g->written || !g->groups) return TARE_NO_MEMORY;
    for (size_t i = 0; i < g->graph->n_nodes; i++) {
        g->written[i] = TARE_NEW_ARRAY(arena, bool, g->graph->nodes[i]->n_outputs + 1);
        if (!g->written[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status check_visited(const struct tare_fusing *f) {
    if (f->visited <= TARE_FUSED_MOST_NODES) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "with its functions inlined the graph has more than %d nodes",
                     (int)TARE_FUSED_MOST_NODES);
}

static tare_status add_graph(struct tare_fusing *f, const struct tare_graph *graph,
                             const struct tare_signature *signature, const struct tare_shape *arg_shapes) {
    struct tare_fused_graph g = { .f = f, .graph = graph, .arg_shapes = arg_shapes };
    if (f->depth >= TARE_MOST_NESTED_CALLS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    f->visited += graph->n_nodes;
    TARE_TRY(check_visited(f));
    f->depth++;
    TARE_TRY(set_up(&g));
    TARE_TRY(want(&g, signature));
    TARE_TRY(tare_fused_choose(&g));
    TARE_TRY(tare_fused_join(&g, signature));
    TARE_TRY(count_nodes(&g));
    write_results(&g, signature);
    add_groups(&g);
    f->depth--;
    return check_visited(f);
}

tare_status tare_tpu_fused_graph_cost(struct tare_fused_cost *out, struct tare_arena *arena,
                                      struct tare_bindings *bindings, struct tare_inference *inference,
                                      const struct tare_graph *graph, const struct tare_shape *args) {
    struct tare_fusing f = {
        .arena = arena, .bindings = bindings, .inference = inference, .total = out, .batch = 1, .times = 1
    };
    *out = (struct tare_fused_cost){ 0 };
    return add_graph(&f, graph, NULL, args);
}

tare_status
tare_tpu_fused_cost(struct tare_fused_cost *out, struct tare_arena *arena, const struct tare_graph_model *model,
                    const struct tare_signature *signature, int64_t batch,
                    void (*each)(void *arg, const struct tare_node *first, const struct tare_fused_cost *group),
                    void *arg) {
    struct tare_fusing f = { .arena = arena, .total = out, .each = each, .arg = arg, .batch = batch, .times = 1 };
    tare_status status;
    *out = (struct tare_fused_cost){ 0 };
    TARE_TRY(tare_bindings_new(&f.bindings, model));
    f.inference = tare_inference_new();
    status = f.inference ? add_graph(&f, model->main, signature, NULL) : TARE_NO_MEMORY;
    tare_inference_free(f.inference);
    tare_bindings_free(f.bindings);
    return status;
}
