/* Costs of graphs and the Conversion Report. */
#include "tpu/cost.h"
#include "base/strbuf.h"
#include "graph/calls.h"
#include "graph/op.h"

#include <math.h>
#include <string.h>

static const double OPERATIONS_A_UNIT = 1000;

/* Costs of one walk: functions on the TPU are counted to their own line. */
struct counter {
    struct tare_arena *arena;
    const struct tare_tpu_placed *placed;
    struct tare_cost_share *shares;
    size_t n_placed;
    int depth;
};

static bool is_free(const struct tare_node *node) {
    static const char *const free_ops[] = {
        "Const",       "Identity",           "IdentityN",           "NoOp",           "Placeholder",
        "VarHandleOp", "ReadVariableOp",     "VariableV2",          "TPUOrdinalSelector", "TPUReplicateMetadata",
        "TPUReplicatedInput", "TPUReplicatedOutput", "TPUCompilationResult", "StopGradient", "PlaceholderWithDefault",
        "Reshape", "XlaSharding",
    };
    for (size_t i = 0; i < sizeof free_ops / sizeof *free_ops; i++)
        if (strcmp(node->op, free_ops[i]) == 0) return true;
    return false;
}

static void one_for_unknown(struct tare_shape *shape) {
    if (shape->rank < 0) *shape = tare_shape_scalar();
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) shape->dims[i] = 1;
}

static double bytes_of(int dtype, const struct tare_shape *shape) {
    double bytes = (double)tare_dtype_size(dtype);
    for (int i = 0; i < shape->rank; i++) bytes *= (double)shape->dims[i];
    return bytes;
}

/* Shapes of a node's inputs and outputs with unknown dimensions as one. */
static tare_status node_cost(int64_t *out, struct tare_arena *arena, const struct tare_node *node,
                             struct tare_shape *const *shapes, const struct tare_shape *arg_shapes) {
    struct tare_infer infer = { .node = node, .n_inputs = node->n_inputs, .n_outputs = node->n_outputs, .arena = arena };
    struct tare_shape *inputs = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_inputs + 1);
    struct tare_shape *outputs = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_outputs + 1);
    int *dtypes = TARE_NEW_ARRAY(arena, int, node->n_inputs + 1);
    const struct tare_op *row = node->def ? node->def->row : NULL;
    struct tare_cost cost = { 0, 0 };
    if (!inputs || !outputs || !dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_node *from = node->inputs[i].node;
        bool is_arg = strcmp(from->op, "_Arg") == 0;
        inputs[i] = is_arg ? arg_shapes[from->position] : shapes[from->position][node->inputs[i].index];
        one_for_unknown(&inputs[i]);
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
        cost.bytes += bytes_of(dtypes[i], &inputs[i]);
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        outputs[i] = shapes[node->position][i];
        one_for_unknown(&outputs[i]);
        cost.bytes += bytes_of(tare_dtype_base(node->output_dtypes[i]), &outputs[i]);
    }
    infer.inputs = inputs;
    infer.outputs = outputs;
    infer.input_dtypes = dtypes;
    if (row && row->cost) row->cost(&infer, &cost);
    *out = (int64_t)ceil((cost.macs > 0 ? cost.macs : cost.bytes / 4) / OPERATIONS_A_UNIT);
    if (*out < 1) *out = 1;
    return TARE_OK;
}

static tare_status graph_cost(struct counter *counter, int64_t *sum, const struct tare_graph *graph,
                              const struct tare_shape *arg_shapes, const bool *wanted);

static struct tare_cost_share *share_of(const struct counter *counter, const struct tare_graph *graph) {
    for (size_t i = 0; i < counter->n_placed; i++)
        if (counter->placed[i].replicated == graph) return &counter->shares[i];
    return NULL;
}

static tare_status call_cost(struct counter *counter, int64_t *sum, const struct tare_node *node,
                             const struct tare_call_site *site, struct tare_shape *const *shapes,
                             const struct tare_shape *arg_shapes) {
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        struct tare_cost_share *share = share_of(counter, callee);
        struct tare_shape *args = TARE_NEW_ARRAY(counter->arena, struct tare_shape, callee->n_args + 1);
        if (!args) return TARE_NO_MEMORY;
        for (size_t i = 0; i < callee->n_args; i++) args[i] = tare_shape_unknown();
        for (size_t i = 0; i < callee->n_args && i < site->n_args; i++) {
            struct tare_edge edge = node->inputs[site->first + i];
            args[i] = strcmp(edge.node->op, "_Arg") == 0 ? arg_shapes[edge.node->position]
                                                         : shapes[edge.node->position][edge.index];
        }
        TARE_TRY(graph_cost(counter, share ? &share->cost : sum, callee, args, NULL));
    }
    return TARE_OK;
}

static tare_status graph_cost(struct counter *counter, int64_t *sum, const struct tare_graph *graph,
                              const struct tare_shape *arg_shapes, const bool *wanted) {
    struct tare_shape **shapes;
    struct tare_call_site site;
    if (++counter->depth > 64) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    TARE_TRY(tare_graph_infer_shapes(&shapes, counter->arena, graph, arg_shapes));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        int64_t cost;
        if (node->dead || is_free(node) || (wanted && !wanted[i])) continue;
        TARE_TRY(tare_call_site(&site, counter->arena, node));
        if (site.kind != TARE_CALL_NONE) {
            TARE_TRY(call_cost(counter, sum, node, &site, shapes, arg_shapes));
            continue;
        }
        TARE_TRY(node_cost(&cost, counter->arena, node, shapes, arg_shapes));
        *sum += cost;
    }
    counter->depth--;
    return TARE_OK;
}

/* The main-graph nodes that the signatures' outputs need: neither savers nor initialisers cost anything to a request. */
static tare_status mark_served(bool **out, struct tare_arena *arena, const struct tare_model *model) {
    const struct tare_graph *main = model->main;
    bool *served = TARE_NEW_ARRAY(arena, bool, main->n_nodes + 1);
    struct tare_node **stack = TARE_NEW_ARRAY(arena, struct tare_node *, main->n_nodes + 1);
    size_t depth = 0;
    if (!served || !stack) return TARE_NO_MEMORY;
    for (size_t s = 0; s < model->n_signatures; s++) {
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++) {
            struct tare_node *node = model->signatures[s].outputs[i].edge.node;
            if (!node || served[node->position]) continue;
            served[node->position] = true;
            stack[depth++] = node;
        }
    }
    while (depth) {
        const struct tare_node *node = stack[--depth];
        for (size_t i = 0; i < node->n_inputs; i++) {
            struct tare_node *before = node->inputs[i].node;
            if (served[before->position]) continue;
            served[before->position] = true;
            stack[depth++] = before;
        }
    }
    *out = served;
    return TARE_OK;
}

tare_status tare_cost_report(struct tare_cost_report *out, struct tare_arena *arena, const struct tare_model *model,
                             const struct tare_tpu_placed *placed, size_t n_placed) {
    struct counter counter = { .arena = arena, .placed = placed, .n_placed = n_placed };
    bool *served;
    memset(out, 0, sizeof *out);
    counter.shares = TARE_NEW_ARRAY(arena, struct tare_cost_share, n_placed + 1);
    if (!counter.shares) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_placed; i++) counter.shares[i].label = placed[i].label;
    TARE_TRY(mark_served(&served, arena, model));
    TARE_TRY(graph_cost(&counter, &out->cpu, model->main, NULL, served));
    for (size_t i = 0; i < n_placed; i++) out->tpu += counter.shares[i].cost;
    out->total = out->cpu + out->tpu;
    out->functions = counter.shares;
    out->n_functions = n_placed;
    return TARE_OK;
}

static double percent(int64_t part, int64_t total) { return total ? 100.0 * (double)part / (double)total : 0; }

void tare_cost_report_print(struct tare_strbuf *out, const struct tare_cost_report *report) {
    static const char thick[] = "================================\n", thin[] = "--------------------------------\n";
    tare_strbuf_puts(out, "-------- Conversion Report --------\n");
    tare_strbuf_printf(out, "TPU cost of the model: %5.2f%% (%lld/%lld)\n", percent(report->tpu, report->total),
                       (long long)report->tpu, (long long)report->total);
    tare_strbuf_printf(out, "CPU cost of the model: %5.2f%% (%lld/%lld)\n\n", percent(report->cpu, report->total),
                       (long long)report->cpu, (long long)report->total);
    tare_strbuf_printf(out, "Cost breakdown\n%s%-9s %-7s %s\n%s", thick, "%", "Cost", "Name", thin);
    tare_strbuf_printf(out, "%-9.2f %-7lld [CPU cost]\n", percent(report->cpu, report->total), (long long)report->cpu);
    for (size_t i = 0; i < report->n_functions; i++)
        tare_strbuf_printf(out, "%-9.2f %-7lld %s\n", percent(report->functions[i].cost, report->total),
                           (long long)report->functions[i].cost, report->functions[i].label);
    tare_strbuf_puts(out, thin);
}
