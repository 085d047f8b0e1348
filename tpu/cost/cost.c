/* Costs of graphs and the Conversion Report. */
#include "tpu/cost/cost.h"
#include "base/strbuf.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "interpreter/inference/infer.h"
#include "tpu/cost/fused.h"
#include "tpu/cost/rows.h"
#include "tpu/cost/served.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double OPERATIONS_A_UNIT = 1000;

/* What one call of a function with arguments of these shapes adds to the report. */
struct counted {
    const struct tare_graph *graph;
    const struct tare_cost_share *where;
    const struct tare_shape *args;
    int64_t cpu;
    struct tare_cost_share *shares; /* as many as the report has */
    struct tare_cost_op *lines;     /* the first n_lines of the counter's */
    size_t n_lines;
    struct counted *next; /* of the same function */
};

/* Costs of one walk: functions on the TPU are counted to their own line (`where`; NULL is the CPU). */
struct counter {
    struct tare_arena *arena;
    struct tare_cost_report *report;
    struct tare_bindings *bindings;
    struct tare_inference *inference; /* of all graphs */
    struct tare_map ops[2];           /* op -> its line, on the CPU and on the TPU */
    struct tare_cost_op **lines;      /* in the order of their creation */
    size_t n_ops;
    struct tare_graph_table counted; /* function -> struct counted */
    int depth;
};

/* Costs of a model that calls without end stay at the largest number. */
static void add_to(int64_t *sum, int64_t more) {
    if (__builtin_add_overflow(*sum, more, sum)) *sum = INT64_MAX;
}

static void close_shape(struct tare_shape *shape, int64_t first) {
    if (shape->rank < 0) *shape = tare_shape_scalar();
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) shape->dims[i] = i ? 1 : first;
}

static double bytes_of(int dtype, const struct tare_shape *shape) {
    double bytes = (double)tare_dtype_size(tare_dtype_base(dtype));
    for (int i = 0; i < shape->rank; i++)
        bytes *= (double)shape->dims[i];
    return bytes;
}

/* ---- one node ---- */

static bool is_int8(int dtype) {
    return dtype == TARE_DT_INT8 || dtype == TARE_DT_QINT8;
}

static tare_status node_cost(struct tare_cost *cost, bool *int8, const struct counter *counter,
                             const struct tare_node *node, struct tare_shape *const *shapes,
                             const struct tare_shape *arg_shapes) {
    struct tare_arena *arena = counter->arena;
    struct tare_infer infer = {
        .node = node, .n_inputs = node->n_inputs, .n_outputs = node->n_outputs, .arena = arena
    };
    struct tare_shape *inputs = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_inputs + 1);
    struct tare_shape *outputs = TARE_NEW_ARRAY(arena, struct tare_shape, node->n_outputs + 1);
    int *dtypes = TARE_NEW_ARRAY(arena, int, node->n_inputs + 1);
    if (!inputs || !outputs || !dtypes) return TARE_NO_MEMORY;
    *cost = (struct tare_cost){ 0, 0 };
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_node *from = node->inputs[i].node;
        bool is_arg = tare_node_is_arg(from);
        inputs[i] = is_arg ? arg_shapes[from->position] : shapes[from->position][node->inputs[i].index];
        close_shape(&inputs[i], 1);
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
        cost->bytes += bytes_of(dtypes[i], &inputs[i]);
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        outputs[i] = shapes[node->position][i];
        close_shape(&outputs[i], 1);
        cost->bytes += bytes_of(node->output_dtypes[i], &outputs[i]);
    }
    *int8 = node->n_inputs > 1 && is_int8(dtypes[0]) && is_int8(dtypes[1]);
    infer.inputs = inputs;
    infer.outputs = outputs;
    infer.input_dtypes = dtypes;
    tare_tpu_op_cost(&infer, cost);
    return TARE_OK;
}

static struct tare_cost_op *line_of(struct counter *counter, const char *op, bool on_tpu) {
    struct tare_cost_op *line = tare_map_get(&counter->ops[on_tpu], op), **lines;
    if (line) return line;
    line = TARE_NEW(counter->arena, struct tare_cost_op);
    if (!line) return NULL;
    *line = (struct tare_cost_op){ .op = op, .on_tpu = on_tpu };
    lines = tare_arena_append(counter->arena, counter->lines, counter->n_ops, sizeof *lines);
    if (!lines) return NULL;
    lines[counter->n_ops++] = line;
    counter->lines = lines;
    return tare_map_set(&counter->ops[on_tpu], op, line) ? line : NULL;
}

static tare_status count_node(struct counter *counter, struct tare_cost_share *where, const struct tare_node *node,
                              struct tare_shape *const *shapes, const struct tare_shape *arg_shapes) {
    struct tare_cost_op *line = line_of(counter, node->op, where);
    struct tare_cost cost;
    int64_t units;
    bool int8;
    if (!line) return TARE_NO_MEMORY;
    TARE_TRY(node_cost(&cost, &int8, counter, node, shapes, arg_shapes));
    units = (int64_t)ceil((cost.macs > 0 ? cost.macs : cost.bytes / 4) / OPERATIONS_A_UNIT);
    if (units < 1) units = 1;
    add_to(&line->nodes, 1);
    add_to(&line->cost, units);
    line->macs += cost.macs;
    line->bytes += cost.bytes;
    if (!where) {
        add_to(&counter->report->cpu, units);
        return TARE_OK;
    }
    add_to(&where->cost, units);
    where->macs += cost.macs;
    where->bytes += cost.bytes;
    if (int8) where->int8_macs += cost.macs;
    return TARE_OK;
}

/* ---- functions that were counted before ---- */

static void add_share(struct tare_cost_share *sum, const struct tare_cost_share *more, int sign) {
    add_to(&sum->cost, sign * more->cost);
    sum->macs += sign * more->macs;
    sum->int8_macs += sign * more->int8_macs;
    sum->bytes += sign * more->bytes;
    sum->host_in += sign * more->host_in;
    sum->host_out += sign * more->host_out;
    for (size_t c = 0; c < TARE_TPU_CHIPS; c++)
        sum->seconds[c] += sign * more->seconds[c];
}

static void add_line(struct tare_cost_op *sum, const struct tare_cost_op *more, int sign) {
    add_to(&sum->nodes, sign * more->nodes);
    add_to(&sum->cost, sign * more->cost);
    sum->macs += sign * more->macs;
    sum->bytes += sign * more->bytes;
}

static const struct counted *find_counted(const struct counter *counter, const struct tare_cost_share *where,
                                          const struct tare_graph *graph, const struct tare_shape *args) {
    for (const struct counted *c = tare_graph_table_get(&counter->counted, graph); c; c = c->next) {
        size_t i = 0;
        while (i < graph->n_args && tare_shape_equal(&c->args[i], &args[i]))
            i++;
        if (i == graph->n_args && c->where == where) return c;
    }
    return NULL;
}

static void add_counted(struct counter *counter, const struct counted *c) {
    add_to(&counter->report->cpu, c->cpu);
    for (size_t i = 0; i < counter->report->n_functions; i++)
        add_share(&counter->report->functions[i], &c->shares[i], 1);
    for (size_t i = 0; i < c->n_lines; i++)
        add_line(counter->lines[i], &c->lines[i], 1);
}

/* The sums before the function is counted; end_counted subtracts them. NULL: no memory. */
static struct counted *begin_counted(struct counter *counter, const struct tare_cost_share *where,
                                     const struct tare_graph *graph, const struct tare_shape *args) {
    const struct tare_cost_report *report = counter->report;
    struct counted *c = TARE_NEW(counter->arena, struct counted);
    if (!c) return NULL;
    *c = (struct counted){ .graph = graph, .where = where, .cpu = report->cpu, .n_lines = counter->n_ops };
    c->args = tare_arena_extend(counter->arena, args, graph->n_args, 1, sizeof *args);
    c->shares = tare_arena_extend(counter->arena, report->functions, report->n_functions, 1, sizeof *report->functions);
    c->lines = TARE_NEW_ARRAY(counter->arena, struct tare_cost_op, counter->n_ops + 1);
    for (size_t i = 0; c->lines && i < counter->n_ops; i++)
        c->lines[i] = *counter->lines[i];
    return c->args && c->shares && c->lines ? c : NULL;
}

static tare_status end_counted(struct counter *counter, struct counted *c) {
    const struct tare_cost_report *report = counter->report;
    struct tare_cost_op *lines = TARE_NEW_ARRAY(counter->arena, struct tare_cost_op, counter->n_ops + 1);
    if (!lines) return TARE_NO_MEMORY;
    c->cpu = report->cpu - c->cpu;
    for (size_t i = 0; i < report->n_functions; i++) {
        struct tare_cost_share before = c->shares[i];
        c->shares[i] = report->functions[i];
        add_share(&c->shares[i], &before, -1);
    }
    for (size_t i = 0; i < counter->n_ops; i++) {
        lines[i] = *counter->lines[i];
        if (i < c->n_lines) add_line(&lines[i], &c->lines[i], -1);
    }
    c->lines = lines;
    c->n_lines = counter->n_ops;
    c->next = tare_graph_table_get(&counter->counted, c->graph);
    return tare_graph_table_set(&counter->counted, c->graph, c) ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- graphs ---- */

static tare_status count_graph(struct counter *counter, struct tare_cost_share *where, const struct tare_graph *graph,
                               struct tare_shape *arg_shapes, const bool *needed);

static bool is_on_tpu(const struct tare_cost_share *where, const struct tare_graph *graph) {
    return where && where->graph == graph;
}

static struct tare_cost_share *share_of(const struct tare_cost_report *report, const struct tare_graph *graph) {
    for (size_t i = 0; i < report->n_functions; i++)
        if (report->functions[i].graph == graph) return &report->functions[i];
    return NULL;
}

static void count_boundary(struct tare_cost_share *where, const struct tare_shape *args,
                           struct tare_shape *const *shapes) {
    const struct tare_graph *graph = where->graph;
    for (size_t i = 0; i < graph->n_args; i++) {
        struct tare_shape shape = args[i];
        close_shape(&shape, 1);
        if (graph->args[i]->output_dtypes[0] != TARE_DT_RESOURCE)
            where->host_in += bytes_of(graph->args[i]->output_dtypes[0], &shape);
    }
    for (size_t i = 0; i < graph->n_returns; i++) {
        struct tare_edge edge = graph->returns[i].edge;
        struct tare_shape shape =
            tare_node_is_arg(edge.node) ? args[edge.node->position] : shapes[edge.node->position][edge.index];
        close_shape(&shape, 1);
        where->host_out += bytes_of(graph->returns[i].dtype, &shape);
    }
}

/* Times by groups of fused ops. A graph for which they cannot be told has none. */
static tare_status count_seconds(const struct counter *counter, struct tare_cost_share *where,
                                 const struct tare_shape *args) {
    struct tare_fused_cost cost;
    const tare_status status =
        tare_tpu_fused_graph_cost(&cost, counter->arena, counter->bindings, counter->inference, where->graph, args);
    for (size_t c = 0; c < TARE_TPU_CHIPS; c++)
        where->seconds[c] += status == TARE_OK ? cost.least[c] : NAN;
    return tare_error_dismiss(status);
}

/* Counts a function once for the same shapes, however many call paths lead to it. */
static tare_status count_callee(struct counter *counter, struct tare_cost_share *where, const struct tare_graph *callee,
                                struct tare_shape *args) {
    const struct counted *known = find_counted(counter, where, callee, args);
    struct counted *now;
    if (known) {
        add_counted(counter, known);
        return TARE_OK;
    }
    now = begin_counted(counter, where, callee, args);
    if (!now) return TARE_NO_MEMORY;
    TARE_TRY(count_graph(counter, where, callee, args, NULL));
    return end_counted(counter, now);
}

static tare_status count_call(struct counter *counter, struct tare_cost_share *where, const struct tare_node *node,
                              const struct tare_call_site *site, struct tare_shape *const *shapes,
                              const struct tare_shape *arg_shapes) {
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        struct tare_cost_share *share = share_of(counter->report, callee);
        struct tare_shape *args = TARE_NEW_ARRAY(counter->arena, struct tare_shape, callee->n_args + 1);
        if (!args) return TARE_NO_MEMORY;
        for (size_t i = 0; i < callee->n_args; i++)
            args[i] = tare_shape_unknown();
        for (size_t i = 0; i < callee->n_args && i < site->n_args; i++) {
            struct tare_edge edge = node->inputs[site->first + i];
            args[i] =
                tare_node_is_arg(edge.node) ? arg_shapes[edge.node->position] : shapes[edge.node->position][edge.index];
        }
        TARE_TRY(count_callee(counter, share ? share : where, callee, args));
    }
    return TARE_OK;
}

/* Open dimensions of a function's arguments are closed first, so that the shapes computed from them are known. Where
 * that contradicts the graph (a loop whose tensors grow), shapes stay open; where what was closed outside does (one row
 * split, so no row, for one row of values), those of the arguments are forgotten. */
static tare_status infer_graph(struct tare_shape ***shapes, const struct counter *counter,
                               const struct tare_graph *graph, struct tare_shape *arg_shapes) {
    const struct tare_shape **handles = tare_bindings_handles(counter->bindings, counter->arena, graph);
    struct tare_shape *closed = TARE_NEW_ARRAY(counter->arena, struct tare_shape, graph->n_args + 1);
    if (!handles || !closed) return TARE_NO_MEMORY;
    if (!arg_shapes)
        return tare_graph_infer_shapes_with(counter->inference, shapes, counter->arena, graph, NULL, handles);
    for (size_t i = 0; i < graph->n_args; i++) {
        closed[i] = arg_shapes[i];
        if (closed[i].rank > 0) close_shape(&closed[i], counter->report->batch);
    }
    const tare_status status =
        tare_graph_infer_shapes_with(counter->inference, shapes, counter->arena, graph, closed, handles);
    if (status == TARE_OK) {
        memcpy(arg_shapes, closed, graph->n_args * sizeof *closed);
        return TARE_OK;
    }
    TARE_TRY(tare_error_dismiss(status));
    const tare_status open =
        tare_graph_infer_shapes_with(counter->inference, shapes, counter->arena, graph, arg_shapes, handles);
    if (open == TARE_OK) return TARE_OK;
    TARE_TRY(tare_error_dismiss(open));
    for (size_t i = 0; i < graph->n_args; i++)
        arg_shapes[i] = tare_shape_unknown();
    return tare_graph_infer_shapes_with(counter->inference, shapes, counter->arena, graph, arg_shapes, handles);
}

static tare_status count_graph(struct counter *counter, struct tare_cost_share *where, const struct tare_graph *graph,
                               struct tare_shape *arg_shapes, const bool *needed) {
    struct tare_shape **shapes;
    struct tare_call_site site;
    if (++counter->depth > TARE_MOST_NESTED_CALLS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    TARE_TRY(infer_graph(&shapes, counter, graph, arg_shapes));
    if (is_on_tpu(where, graph)) {
        count_boundary(where, arg_shapes, shapes);
        TARE_TRY(count_seconds(counter, where, arg_shapes));
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead || tare_tpu_op_is_free(node->op) || (needed && !needed[i])) continue;
        TARE_TRY(tare_call_site(&site, counter->arena, node));
        if (site.kind == TARE_CALL_NONE)
            TARE_TRY(count_node(counter, where, node, shapes, arg_shapes));
        else
            TARE_TRY(count_call(counter, where, node, &site, shapes, arg_shapes));
    }
    counter->depth--;
    return TARE_OK;
}

/* ---- the report ---- */

/* The label of a placed function; if several have it (the concrete functions of one alias), with the function's name.
 */
static const char *label_of(struct tare_arena *arena, const struct tare_tpu_placed *placed, size_t n_placed, size_t i) {
    for (size_t k = 0; k < n_placed; k++)
        if (k != i && strcmp(placed[k].label, placed[i].label) == 0)
            return tare_arena_printf(arena, "%s (%s)", placed[i].label, placed[i].stub->name);
    return placed[i].label;
}

/* Functions placed by this conversion, then the computations that were on the TPU before, under their own names. */
static tare_status add_shares(struct tare_cost_report *out, struct tare_arena *arena,
                              const struct tare_graph_model *model, const struct tare_tpu_placed *placed,
                              size_t n_placed) {
    out->functions = TARE_NEW_ARRAY(arena, struct tare_cost_share, n_placed + model->n_functions + 1);
    if (!out->functions) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_placed; i++) {
        const char *label = label_of(arena, placed, n_placed, i);
        if (!label) return TARE_NO_MEMORY;
        out->functions[out->n_functions++] = (struct tare_cost_share){ .label = label, .graph = placed[i].replicated };
    }
    for (size_t f = 0; f <= model->n_functions; f++) {
        const struct tare_graph *graph = f ? model->functions[f - 1] : model->main;
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const struct tare_node *node = graph->nodes[i];
            const struct tare_graph *callee =
                !node->dead && strcmp(node->op, "TPUPartitionedCall") == 0 ? tare_node_function(node, "f") : NULL;
            if (!callee || share_of(out, callee) || out->n_functions == n_placed + model->n_functions) continue;
            out->functions[out->n_functions++] = (struct tare_cost_share){ .label = callee->name, .graph = callee };
        }
    }
    return TARE_OK;
}

/* A function that no signature but a twin's calls was not counted: its name joins that of the one that was. */
static tare_status join_twins(struct tare_cost_report *report, struct tare_arena *arena) {
    struct tare_cost_share *shares = report->functions;
    size_t kept = 0;
    for (size_t i = 0; i < report->n_functions; i++) {
        for (size_t k = 0; k < report->n_functions && !shares[i].bytes && shares[i].label; k++) {
            if (!shares[k].bytes || !tare_functions_are_alike(shares[k].graph, shares[i].graph)) continue;
            shares[k].label = tare_arena_printf(arena, "%s, %s", shares[k].label, shares[i].label);
            if (!shares[k].label) return TARE_NO_MEMORY;
            shares[i].label = NULL;
        }
    }
    for (size_t i = 0; i < report->n_functions; i++)
        if (shares[i].label) shares[kept++] = shares[i];
    report->n_functions = kept;
    return TARE_OK;
}

static int by_cost(const void *a, const void *b) {
    const struct tare_cost_op *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
    return strcmp(x->op, y->op) ? strcmp(x->op, y->op) : x->on_tpu - y->on_tpu;
}

/* Lines are found again by the ops of the graphs: maps have no order of their own. */
static tare_status collect_ops(struct counter *counter, const struct tare_graph_model *model) {
    struct tare_cost_report *report = counter->report;
    report->ops = TARE_NEW_ARRAY(counter->arena, struct tare_cost_op, counter->n_ops + 1);
    if (!report->ops) return TARE_NO_MEMORY;
    for (size_t f = 0; f <= model->n_functions; f++) {
        const struct tare_graph *graph = f ? model->functions[f - 1] : model->main;
        for (size_t i = 0; i < 2 * graph->n_nodes; i++) {
            struct tare_cost_op *line = tare_map_get(&counter->ops[i % 2], graph->nodes[i / 2]->op);
            if (!line || !line->nodes) continue;
            report->ops[report->n_ops++] = *line;
            line->nodes = 0;
        }
    }
    qsort(report->ops, report->n_ops, sizeof *report->ops, by_cost);
    return TARE_OK;
}

tare_status tare_cost_report(struct tare_cost_report *out, struct tare_arena *arena,
                             const struct tare_graph_model *model, const struct tare_tpu_placed *placed,
                             size_t n_placed, int64_t batch) {
    struct counter counter = { .arena = arena, .report = out };
    bool *served;
    tare_status status;
    memset(out, 0, sizeof *out);
    out->batch = batch < 1 ? 1 : batch;
    TARE_TRY(add_shares(out, arena, model, placed, n_placed));
    TARE_TRY(tare_mark_served(&served, arena, model));
    TARE_TRY(tare_bindings_new(&counter.bindings, model));
    counter.inference = tare_inference_new();
    TARE_CHECK(counter.inference ? TARE_OK : TARE_NO_MEMORY);
    TARE_CHECK(count_graph(&counter, NULL, model->main, NULL, served));
    for (size_t i = 0; i < out->n_functions; i++)
        add_to(&out->tpu, out->functions[i].cost);
    out->total = out->cpu;
    add_to(&out->total, out->tpu);
    TARE_CHECK(join_twins(out, arena));
    status = collect_ops(&counter, model);
done:
    tare_graph_table_free(&counter.counted);
    tare_map_free(&counter.ops[0]);
    tare_map_free(&counter.ops[1]);
    tare_inference_free(counter.inference);
    tare_bindings_free(counter.bindings);
    return status;
}

static double percent(int64_t part, int64_t total) {
    return total ? 100.0 * (double)part / (double)total : 0;
}

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
