/* Ranges of FakeQuant ops. Between an activation and its FakeQuant there may be ops that preserve values: a Dense layer
 * on rank 3 reshapes its input, a Conv1D expands it. */
#include "quant/fake_quant.h"

#include <math.h>
#include <string.h>

static bool is_fake(const struct tare_node *node) {
    return strncmp(node->op, "FakeQuant", 9) == 0;
}

static bool ends_of(double *low, double *high, const struct tare_node *node) {
    const struct tare_tensor *ends[2];
    if (strcmp(node->op, "FakeQuantWithMinMaxArgs") == 0) {
        *low = (double)tare_node_float(node, "min", -6);
        *high = (double)tare_node_float(node, "max", 6);
        return *low <= *high;
    }
    if (strcmp(node->op, "FakeQuantWithMinMaxVars") != 0 || node->n_inputs != 3) return false;
    for (size_t i = 0; i < 2; i++) {
        ends[i] = tare_edge_constant(node->inputs[i + 1]);
        if (!ends[i] || ends[i]->elements != 1) return false;
    }
    *low = tare_tensor_get_f64(ends[0], 0);
    *high = tare_tensor_get_f64(ends[1], 0);
    return *low <= *high;
}

static bool range_of(double *low, double *high, const struct tare_node *node) {
    return tare_node_int(node, "num_bits", 8) == 8 && ends_of(low, high, node);
}

bool tare_quant_fake_limits(double *low, double *high, const struct tare_node *node) {
    const int64_t bits = tare_node_int(node, "num_bits", 8);
    const double steps = (double)((1 << (bits < 8 ? 8 : bits)) - 1 - tare_node_bool(node, "narrow_range", false));
    if (bits < 8 || bits > 16 || !ends_of(low, high, node)) return false;
    const double scale = (*high - *low) / steps;
    if (!(scale > 0) || !isfinite(scale)) return false;
    const double below = fmin(fmax(round(-*low / scale), 0), steps); /* steps below zero, which is one of them */
    *low = -below * scale;
    *high = (steps - below) * scale;
    return true;
}

enum { MOST_DEPTH = 16 }; /* ops between an activation and its FakeQuant */

/* Ops whose output has the values of input 0 and, for Pad, zeros, which every range contains. They commute with
 * clipping and rounding, so the same range applies before and after them. */
static bool preserves_values(const struct tare_node *node) {
    static const char *const ops[] = { "Identity", "Reshape", "Transpose", "Squeeze", "ExpandDims", "Pad", "MaxPool" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op, ops[i]) == 0) return node->n_inputs > 0;
    return false;
}

static bool is_concat(const struct tare_node *node) {
    return strcmp(node->op, "ConcatV2") == 0 && node->n_inputs > 1;
}

static bool range_upstream(double *low, double *high, struct tare_edge edge, int depth);

/* All inputs must have a range; the result covers them. The last input is the axis. */
static bool range_of_concat(double *low, double *high, const struct tare_node *node, int depth) {
    for (size_t i = 0; i + 1 < node->n_inputs; i++) {
        double from, to;
        if (!range_upstream(&from, &to, node->inputs[i], depth)) return false;
        if (i == 0 || from < *low) *low = from;
        if (i == 0 || to > *high) *high = to;
    }
    return true;
}

static bool range_upstream(double *low, double *high, struct tare_edge edge, int depth) {
    if (depth > MOST_DEPTH) return false;
    if (is_fake(edge.node)) return range_of(low, high, edge.node);
    if (is_concat(edge.node)) return range_of_concat(low, high, edge.node, depth + 1);
    return preserves_values(edge.node) && range_upstream(low, high, edge.node->inputs[0], depth + 1);
}

/* ---- downstream ---- */

struct edge_key {
    const struct tare_node *node;
    size_t index; /* as wide as the pointer, so that the key has no padding */
};

/* What the FakeQuants downstream of an edge cover. */
struct span {
    bool found;
    double low, high;
};

static void widen(struct span *span, struct span other) {
    if (!other.found) return;
    span->low = span->found ? fmin(span->low, other.low) : other.low;
    span->high = span->found ? fmax(span->high, other.high) : other.high;
    span->found = true;
}

static void note(struct tare_quant_fakes *fakes, struct tare_edge edge, struct span span) {
    struct edge_key *key = TARE_NEW(fakes->arena, struct edge_key);
    struct span *kept = TARE_NEW(fakes->arena, struct span);
    if (key) *key = (struct edge_key){ edge.node, (size_t)edge.index };
    if (kept) *kept = span;
    if (!key || !kept || !tare_map_set_n(&fakes->downstream, (const char *)key, sizeof *key, kept))
        fakes->status = TARE_NO_MEMORY;
}

static const struct span *noted(const struct tare_quant_fakes *fakes, struct tare_edge edge) {
    const struct edge_key key = { edge.node, (size_t)edge.index };
    return tare_map_get_n(&fakes->downstream, (const char *)&key, sizeof key);
}

/* An edge is noted only if the search below it was not cut off at the greatest depth. */
static struct span range_downstream(struct tare_quant_fakes *fakes, struct tare_edge edge, int depth, bool *complete) {
    const struct span *known = noted(fakes, edge);
    struct span all = { .found = false };
    bool whole = true;
    if (known) return *known;
    if (depth > MOST_DEPTH) {
        *complete = false;
        return all;
    }
    for (const struct tare_use *use = tare_edge_first_use(edge); use; use = tare_edge_next_use(use)) {
        struct tare_node *node = use->user;
        const bool is_value = is_concat(node) ? use->input + 1 < node->n_inputs : use->input == 0;
        struct span own = { .found = false };
        fakes->visits++;
        if (node->dead || !is_value) continue;
        if (is_fake(node))
            own.found = range_of(&own.low, &own.high, node);
        else if (preserves_values(node) || is_concat(node))
            own = range_downstream(fakes, (struct tare_edge){ node, 0 }, depth + 1, &whole);
        widen(&all, own);
    }
    if (whole) note(fakes, edge, all);
    *complete = *complete && whole;
    return all;
}

tare_status tare_quant_fake_range(bool *found, double *low, double *high, struct tare_quant_fakes *fakes,
                                  struct tare_edge edge) {
    bool complete = true;
    *found = fakes->is_trained && range_upstream(low, high, edge, 0);
    if (!fakes->is_trained || *found) return TARE_OK;
    TARE_TRY(tare_graph_index_uses(edge.node->graph));
    const struct span span = range_downstream(fakes, edge, 0, &complete);
    *found = span.found;
    *low = span.low;
    *high = span.high;
    return fakes->status;
}

/* ---- models ---- */

static bool has_fakes(const struct tare_graph *graph) {
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (!graph->nodes[n]->dead && is_fake(graph->nodes[n])) return true;
    return false;
}

bool tare_quant_is_trained(const struct tare_graph_model *model) {
    bool found = has_fakes(model->main);
    for (size_t i = 0; i < model->n_functions && !found; i++)
        found = has_fakes(model->functions[i]);
    return found;
}

static bool is_integer_matrix(const struct tare_tensor *value) {
    const int dtype = value ? value->dtype : TARE_DT_INVALID;
    const bool is_narrow = dtype == TARE_DT_INT8 || dtype == TARE_DT_QINT8 || dtype == TARE_DT_INT4;
    return is_narrow && value->shape.rank >= 2;
}

static bool has_integer_weights(const struct tare_graph *graph) {
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const struct tare_node *node = graph->nodes[n];
        if (!node->dead && tare_node_is(node, "Const") && is_integer_matrix(tare_node_tensor(node, "value")))
            return true;
    }
    return false;
}

bool tare_quant_has_integer_weights(const struct tare_graph_model *model) {
    bool found = has_integer_weights(model->main);
    for (size_t i = 0; i < model->n_functions && !found; i++)
        found = has_integer_weights(model->functions[i]);
    for (size_t i = 0; i < model->n_variables && !found; i++)
        found = is_integer_matrix(&model->variables[i].value);
    return found;
}

void tare_quant_fakes_open(struct tare_quant_fakes *fakes, struct tare_arena *arena,
                           const struct tare_graph_model *model) {
    *fakes = (struct tare_quant_fakes){ .arena = arena, .is_trained = tare_quant_is_trained(model) };
}

void tare_quant_fakes_close(struct tare_quant_fakes *fakes) {
    tare_map_free(&fakes->downstream);
}
