/* Reverse-mode differentiation.
 *
 * A node is on the way if a wanted edge leads to it. Nodes are visited from the last to the first; all users of a value
 * come after it, so the derivative with respect to it is complete when its node is visited. */
#include "quant/reconstruction/gradient.h"
#include "quant/reconstruction/gradient_rule.h"

#include "base/alloc.h"
#include "graph/model.h"
#include "graph/op.h"

#include <string.h>

struct derivation {
    const struct tare_gradient_task *task;
    struct tare_emit emit;
    size_t n_nodes;             /* before any is added */
    size_t *first;              /* by node: index of its output 0 in the arrays below */
    bool *leads;                /* by node: a wanted edge leads to it */
    struct tare_edge *gradient; /* by output; node NULL: none yet */
};

/* ---- helpers of rules ---- */

struct tare_edge tare_gradient_shape(struct tare_emit *emit, struct tare_edge x) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "out_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    return tare_emit_node(emit, "Shape", "shape", &x, 1, attrs);
}

struct tare_edge tare_gradient_reshape(struct tare_emit *emit, struct tare_edge x, struct tare_edge shape) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "Tshape", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const struct tare_edge inputs[] = { x, shape };
    return tare_emit_node(emit, "Reshape", "reshape", inputs, 2, attrs);
}

struct tare_edge tare_gradient_unbroadcast(struct tare_emit *emit, struct tare_edge dx, struct tare_edge x) {
    const struct tare_emit_attr sum_attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                                { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                { "keep_dims", TARE_EMIT_BOOL, false },
                                                { 0 } };
    const struct tare_edge shape = tare_gradient_shape(emit, x);
    const struct tare_edge shapes[] = { shape, tare_gradient_shape(emit, dx) };
    const struct tare_edge axes = tare_emit_node(emit, "BroadcastGradientArgs", "axes", shapes, 2, NULL);
    const struct tare_edge inputs[] = { dx, axes };
    return tare_gradient_reshape(emit, tare_emit_node(emit, "Sum", "sum", inputs, 2, sum_attrs), shape);
}

struct tare_edge tare_gradient_like(struct tare_gradient_rule_call *call, const char *op,
                                    const struct tare_edge *inputs, size_t n_inputs) {
    static const char *const kept[] = { "strides", "padding", "explicit_paddings", "data_format",        "dilations",
                                        "ksize",   "alpha",   "align_corners",     "half_pixel_centers", "block_size",
                                        "T",       NULL };
    struct tare_emit *emit = call->emit;
    const char *name = tare_arena_printf(&emit->graph->model->arena, "%s/%s", emit->prefix, op);
    struct tare_node *node = name && emit->status == TARE_OK ? tare_graph_add(emit->graph, op, name) : NULL;
    tare_status status = node ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs && status == TARE_OK; i++)
        status = tare_node_add_input(node, inputs[i]);
    if (status == TARE_OK) status = tare_node_copy_attrs(node, call->node);
    for (size_t i = node ? node->n_attrs : 0; status == TARE_OK && i-- > 0;)
        if (!tare_op_is_one_of(node->attrs[i].name, kept)) tare_node_remove_attr(node, node->attrs[i].name);
    if (status == TARE_OK) status = tare_node_resolve(node);
    if (status != TARE_OK && emit->status == TARE_OK) emit->status = status;
    return (struct tare_edge){ node, 0 };
}

/* ---- differentiation ---- */

static const struct tare_gradient_rule *find_rule(const char *op) {
    const struct tare_gradient_rule *const lists[] = { tare_gradient_rules_elementwise, tare_gradient_rules_array,
                                                       tare_gradient_rules_product };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct tare_gradient_rule *rule = lists[i]; rule->op; rule++)
            if (strcmp(rule->op, op) == 0) return rule;
    return NULL;
}

bool tare_gradient_has_rule(const char *op) {
    return find_rule(op) != NULL;
}

static size_t index_of(const struct derivation *d, struct tare_edge edge) {
    return d->first[edge.node->position] + (size_t)edge.index;
}

/* Adds a derivative to the one that an output has. */
static void accumulate(struct derivation *d, struct tare_edge value, struct tare_edge gradient) {
    struct tare_edge *sum = &d->gradient[index_of(d, value)];
    if (!gradient.node) return;
    *sum = sum->node ? tare_emit_binary(&d->emit, "AddV2", "gradient", *sum, gradient) : gradient;
}

static const struct tare_gradient_step *step_of(const struct derivation *d, const struct tare_node *node) {
    for (size_t i = 0; i < d->task->n_steps; i++)
        if (d->task->steps[i].value.node == node) return &d->task->steps[i];
    return NULL;
}

static bool is_wanted(const struct derivation *d, const struct tare_node *node) {
    for (size_t i = 0; i < d->task->n_wanted; i++)
        if (d->task->wanted[i].node == node) return true;
    return false;
}

static bool has_float(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->output_dtypes[i] == TARE_DT_FLOAT) return true;
    return false;
}

/* Ops whose result depends on the shape of the input only. */
static bool ignores_values(const struct tare_node *node) {
    static const char *const ops[] = { "ZerosLike", "OnesLike", NULL };
    return tare_op_is_one_of(node->op, ops);
}

/* Integers and shapes have no derivative. */
static bool carries(const struct derivation *d, struct tare_edge edge) {
    return d->leads[edge.node->position] && tare_edge_dtype(edge) == TARE_DT_FLOAT;
}

static tare_status prepare(struct derivation *d) {
    const struct tare_graph *graph = d->task->graph;
    size_t outputs = 0;
    d->n_nodes = graph->n_nodes;
    d->first = tare_calloc(d->n_nodes + 1, sizeof *d->first);
    d->leads = tare_calloc(d->n_nodes + 1, sizeof *d->leads);
    if (!d->first || !d->leads) return TARE_NO_MEMORY;
    for (size_t i = 0; i < d->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        d->first[i] = outputs;
        outputs += node->n_outputs;
        d->leads[i] = is_wanted(d, node);
        if (ignores_values(node) || !has_float(node)) continue;
        for (size_t k = 0; k < node->n_inputs && !d->leads[i]; k++)
            d->leads[i] = carries(d, node->inputs[k]);
    }
    d->gradient = tare_calloc(outputs + 1, sizeof *d->gradient);
    return d->gradient ? TARE_OK : TARE_NO_MEMORY;
}

static void derive_step(struct derivation *d, const struct tare_gradient_step *step) {
    const struct tare_edge dy = d->gradient[index_of(d, step->value)];
    const struct tare_edge zero = tare_emit_unary(&d->emit, "ZerosLike", "zero", dy);
    const struct tare_edge inputs[] = { step->pass, dy, zero };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT }, { 0 } };
    if (carries(d, step->of)) accumulate(d, step->of, tare_emit_node(&d->emit, "SelectV2", "step", inputs, 3, attrs));
}

/* False: there is no rule. */
static bool derive_node(struct derivation *d, struct tare_node *node) {
    const struct tare_gradient_rule *rule = find_rule(node->op);
    struct tare_gradient_rule_call call = { .emit = &d->emit, .node = node };
    if (!rule || node->n_inputs > TARE_GRADIENT_INPUTS || node->n_outputs > TARE_GRADIENT_OUTPUTS) return false;
    for (size_t i = 0; i < node->n_outputs; i++)
        call.dy[i] = d->gradient[index_of(d, (struct tare_edge){ node, (int)i })];
    for (size_t i = 0; i < node->n_inputs; i++)
        call.wanted[i] = carries(d, node->inputs[i]);
    d->emit.prefix = node->name;
    rule->add(&call);
    for (size_t i = 0; i < node->n_inputs && d->emit.status == TARE_OK; i++) {
        if (!call.wanted[i]) continue;
        if (!call.dx[i].node) return false; /* the rule has no derivative with respect to this input */
        accumulate(d, node->inputs[i], call.dx[i]);
    }
    return true;
}

static bool has_gradient(const struct derivation *d, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (d->gradient[d->first[node->position] + i].node) return true;
    return false;
}

static tare_status derive(struct derivation *d, const char **unsupported) {
    for (size_t i = d->n_nodes; i-- > 0 && d->emit.status == TARE_OK;) {
        struct tare_node *node = d->task->graph->nodes[i];
        const struct tare_gradient_step *step;
        if (!d->leads[i] || !has_gradient(d, node) || is_wanted(d, node)) continue;
        step = step_of(d, node);
        if (step) {
            d->emit.prefix = node->name;
            derive_step(d, step);
        } else if (!derive_node(d, node)) {
            *unsupported = node->op;
            return d->emit.status;
        }
    }
    return d->emit.status;
}

tare_status tare_gradient_add(struct tare_edge *gradients, const char **unsupported,
                              const struct tare_gradient_task *task) {
    struct derivation d = { .task = task, .emit = { .graph = task->graph, .prefix = "gradient" } };
    tare_status status;
    *unsupported = NULL;
    TARE_CHECK(prepare(&d));
    for (size_t i = 0; i < task->n_values; i++)
        if (carries(&d, task->values[i])) accumulate(&d, task->values[i], task->seeds[i]);
    TARE_CHECK(derive(&d, unsupported));
    for (size_t i = 0; i < task->n_wanted; i++)
        gradients[i] = d.gradient[index_of(&d, task->wanted[i])];
done:
    tare_free(d.first);
    tare_free(d.leads);
    tare_free(d.gradient);
    return status;
}
