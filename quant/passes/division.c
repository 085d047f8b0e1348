#include "quant/passes/division.h"
#include "quant/selection/emit_selection.h"
#include "quant/selection/entries.h"

#include <string.h>

enum { MOST_DEPTH = 8 }; /* of the ops between what is divided and the activation */

int64_t tare_quant_first_divisor(const struct tare_quant_division *division, const struct tare_quant_layer *layer,
                                 int64_t matrix) {
    if (division->entries == 1) return 0;
    return matrix / (layer->product.batches / division->entries) * division->channels;
}

/* ---- layers ---- */

/* Whether an edge is what the layer's weights, and the bias that its method rewrites, compute. */
static bool is_output(const struct tare_quant_layer *layer, struct tare_edge edge) {
    if (layer->setting.method->takes_bias) return tare_edge_equal(layer->output, edge);
    return edge.node == layer->op && edge.index == 0;
}

/* Whether the last axis of the output is that of the columns. */
static bool ends_with_columns(const struct tare_quant_product *p) {
    return !p->moves && (!p->spatial || p->dims.output_feature == p->spatial + 1);
}

/* Whether each divisor has columns of its own: the iterations that have divisors choose the layer's weights. */
static bool has_entries(const struct tare_quant_division *d, const struct tare_quant_layer *layer) {
    struct tare_observed_counter counter;
    if (d->entries > 1) return layer->selection && tare_quant_same_counter(layer->selection, d->by);
    return !layer->selection || tare_quant_find_counter(&counter, layer->selection);
}

/* The quantized layer whose output is the edge. The range of an output that ops follow would no longer be its own. */
static struct tare_quant_layer *maker_of(const struct tare_quant_division *d, struct tare_edge edge) {
    const bool is_last = tare_edge_equal(edge, d->edge);
    for (size_t i = 0; i < d->work->n_layers; i++) {
        struct tare_quant_layer *l = &d->work->layers[i];
        if (!l->refused && is_output(l, edge) && l->weight && l->kind != TARE_KIND_GATHER &&
            l->activation != TARE_ACTIVATION_RELU6 && l->product.columns % d->channels == 0 &&
            ends_with_columns(&l->product) && has_entries(d, l) && (is_last || !l->has_output_params) &&
            !tare_quant_shares_variable(d->work, l))
            return l;
    }
    return NULL;
}

static tare_status divide_columns(const struct tare_quant_division *d, struct tare_quant_layer *maker) {
    const struct tare_quant_product *p = &maker->product;
    float *w;
    TARE_TRY(tare_quant_own_real(maker));
    TARE_TRY(tare_quant_own_bias(d->work->arena, maker));
    w = TARE_DATA(float, &maker->real);
    for (int64_t b = 0; b < p->batches; b++) {
        const double *scale = d->scale + tare_quant_first_divisor(d, maker, b);
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t k = 0; k < p->columns; k++, w++)
                *w = (float)((double)*w / scale[k % d->channels]);
    }
    for (int64_t k = 0; k < p->columns && maker->bias_real; k++)
        maker->bias_real[k] /= d->scale[k % d->channels];
    return TARE_OK;
}

/* ---- constants ---- */

/* One number for all places takes no room in a file. */
static bool is_one_number(const struct tare_tensor *value) {
    for (int64_t i = 1; i < value->elements; i++)
        if (tare_tensor_get_f64(value, i) != tare_tensor_get_f64(value, 0)) return false;
    return true;
}

/* A constant that does not become larger than a value per channel of each iteration, or than it is. */
static bool is_channel_constant(const struct tare_quant_division *d, struct tare_edge edge) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    const int64_t last = value && value->shape.rank ? value->shape.dims[value->shape.rank - 1] : 1;
    if (!value || value->dtype != TARE_DT_FLOAT || (last != d->channels && last != 1)) return false;
    return value->elements <= last || (d->entries == 1 && last == d->channels && !is_one_number(value));
}

/* The selection of a constant that a loop chooses: a value per channel, the same as the divisors. NULL: it is something
 * else. */
static struct tare_quant_selection *chosen_constant(struct tare_quant_division *d, struct tare_edge edge) {
    struct tare_quant_selection *s = NULL;
    struct tare_observed_counter counter;
    if (d->status != TARE_OK || tare_edge_dtype(edge) != TARE_DT_FLOAT || tare_edge_constant(edge)) return NULL;
    d->status = tare_quant_find_selection(&s, d->work->arena, edge, d->work->shapes);
    const struct tare_tensor *stack = s ? tare_edge_constant(s->stack) : NULL;
    if (!stack || s->is_scaled || stack->dtype != TARE_DT_FLOAT || !tare_quant_find_counter(&counter, s)) return NULL;
    if (stack->elements != s->count * d->channels || s->operand.rank < 1 ||
        s->operand.dims[s->operand.rank - 1] != d->channels)
        return NULL;
    for (int i = 0; i < s->n_indices; i++)
        if (s->indices[i].axis != i) return NULL; /* the channels of an entry are not next to each other */
    return d->entries == 1 || tare_quant_same_counter(s, d->by) ? s : NULL;
}

static struct tare_edge fail(struct tare_emit *emit, tare_status status) {
    if (emit->status == TARE_OK) emit->status = status;
    return (struct tare_edge){ NULL, 0 };
}

/* What a loop chooses stays a stack of one value per entry and channel, and what it does not choose becomes one if the
 * divisors differ between iterations; `value` has `each` elements in a run of channels. */
static struct tare_edge divided_constant(struct tare_quant_division *d, struct tare_emit *emit,
                                         const struct tare_tensor *value, struct tare_quant_selection *chooser,
                                         const struct tare_shape *shape, int64_t each) {
    const bool repeats = chooser && value->elements <= each; /* the same for all entries */
    struct tare_tensor divided;
    struct tare_edge out;
    const tare_status status = tare_tensor_new(&divided, TARE_DT_FLOAT, shape);
    if (status != TARE_OK) return fail(emit, status);
    for (int64_t i = 0; i < divided.elements; i++) {
        const int64_t channel = i % d->channels, run = i / d->channels, at = each == 1 ? 0 : channel;
        const double divisor = d->scale[(d->entries > 1 ? run * d->channels : 0) + channel];
        TARE_DATA(float, &divided)
        [i] = (float)(tare_tensor_get_f64(value, (repeats ? 0 : run * each) + at) / divisor);
    }
    out = tare_emit_const(emit, "smooth/constant", &divided);
    tare_tensor_reset(&divided);
    return chooser ? tare_emit_chosen(emit, "smooth/chosen", chooser, out) : out;
}

/* A scalar, or one value for all channels, becomes one value per channel. */
static struct tare_edge divided_value(struct tare_quant_division *d, struct tare_emit *emit,
                                      const struct tare_tensor *value) {
    const int64_t each = value->shape.rank ? value->shape.dims[value->shape.rank - 1] : 1;
    struct tare_shape shape = value->shape.rank ? value->shape : tare_shape_make(1, 1);
    shape.dims[shape.rank - 1] = d->channels;
    if (d->entries > 1) shape = tare_shape_make(2, d->entries, d->channels);
    return divided_constant(d, emit, value, d->entries > 1 ? d->by : NULL, &shape, each);
}

static struct tare_edge divided_choice(struct tare_quant_division *d, struct tare_emit *emit,
                                       struct tare_quant_selection *chosen) {
    const struct tare_shape shape = tare_shape_make(2, chosen->count, d->channels);
    return divided_constant(d, emit, tare_edge_constant(chosen->stack), d->entries > 1 ? d->by : chosen, &shape,
                            d->channels);
}

/* ---- ops ---- */

static bool is_op(const struct tare_edge edge, const char *const *ops) {
    return edge.index == 0 && edge.node->n_inputs > 0 && tare_op_is_one_of(edge.node->op, ops);
}

static const char *const products[] = { "Mul", NULL };
static const char *const sums[] = { "AddV2", "Add", "Sub", "BiasAdd", NULL };
static const char *const homogeneous[] = { "Relu", "LeakyRelu", "Identity", NULL };

/* True if the channels can be divided before or at an edge. `alone`: nothing but the activation's readers uses it. */
static bool can_divide(struct tare_quant_division *d, struct tare_edge edge, bool alone, int depth) {
    const struct tare_edge *in = edge.node->inputs;
    if (depth > MOST_DEPTH) return false;
    alone = alone && tare_graph_count_uses(edge.node->graph, edge, NULL) == (depth ? 1 : d->readers);
    if (depth && (is_channel_constant(d, edge) || chosen_constant(d, edge))) return true;
    if (alone && maker_of(d, edge)) return true;
    if (edge.node->n_controls) return false;
    if (is_op(edge, products)) return can_divide(d, in[0], alone, depth + 1) || can_divide(d, in[1], alone, depth + 1);
    if (is_op(edge, sums) && strcmp(tare_node_string(edge.node, "data_format", "NHWC"), "NHWC") == 0)
        return can_divide(d, in[0], alone, depth + 1) && can_divide(d, in[1], alone, depth + 1);
    return is_op(edge, homogeneous) && can_divide(d, in[0], alone, depth + 1);
}

static struct tare_edge divided(struct tare_quant_division *d, struct tare_emit *emit, struct tare_edge edge,
                                bool alone, int depth);

/* A copy of the node whose channels are divided. */
static struct tare_edge divided_node(struct tare_quant_division *d, struct tare_emit *emit,
                                     const struct tare_node *node, bool alone, int depth) {
    const bool product = strcmp(node->op, "Mul") == 0;
    const size_t only = product && !can_divide(d, node->inputs[0], alone, depth + 1) ? 1 : 0;
    struct tare_node *copy;
    const char *name = tare_arena_printf(&emit->graph->model->arena, "%s/smooth", node->name);
    struct tare_edge inputs[2] = { node->inputs[0], node->inputs[node->n_inputs > 1 ? 1 : 0] };
    for (size_t i = 0; i < node->n_inputs && i < 2; i++)
        if (!product || i == only) inputs[i] = divided(d, emit, node->inputs[i], alone, depth + 1);
    copy = name && emit->status == TARE_OK ? tare_graph_add(emit->graph, node->op, name) : NULL;
    if (!copy) return fail(emit, TARE_NO_MEMORY);
    for (size_t i = 0; i < node->n_inputs && i < 2 && emit->status == TARE_OK; i++)
        emit->status = tare_node_add_input(copy, inputs[i]);
    if (emit->status == TARE_OK) emit->status = tare_node_copy_attrs(copy, node);
    if (emit->status == TARE_OK) emit->status = tare_node_resolve(copy);
    return (struct tare_edge){ copy, 0 };
}

/* The edge divided; as can_divide allows it. */
static struct tare_edge divided_edge(struct tare_quant_division *d, struct tare_emit *emit, struct tare_edge edge,
                                     bool alone, int depth) {
    struct tare_quant_selection *chosen;
    struct tare_quant_layer *maker;
    alone = alone && tare_graph_count_uses(edge.node->graph, edge, NULL) == (depth ? 1 : d->readers);
    if (depth && is_channel_constant(d, edge)) return divided_value(d, emit, tare_edge_constant(edge));
    if (depth && (chosen = chosen_constant(d, edge))) return divided_choice(d, emit, chosen);
    if (alone && (maker = maker_of(d, edge))) {
        const tare_status status = divide_columns(d, maker);
        if (!depth) d->maker = maker;
        return status == TARE_OK ? edge : fail(emit, status);
    }
    return divided_node(d, emit, edge.node, alone, depth);
}

/* Reuses earlier copies: a LayerNorm uses gamma twice. */
static struct tare_edge divided(struct tare_quant_division *d, struct tare_emit *emit, struct tare_edge edge,
                                bool alone, int depth) {
    struct tare_edge out;
    for (size_t i = 0; i < d->n_copies; i++)
        if (tare_edge_equal(d->from[i], edge)) return d->to[i];
    out = divided_edge(d, emit, edge, alone, depth);
    if (d->n_copies < TARE_DIVISION_NODES) {
        d->from[d->n_copies] = edge;
        d->to[d->n_copies++] = out;
    }
    return out;
}

tare_status tare_quant_divide(bool *found, struct tare_edge *out, struct tare_quant_division *division,
                              struct tare_emit *emit) {
    *found = can_divide(division, division->edge, true, 0);
    TARE_TRY(division->status);
    if (*found) *out = divided(division, emit, division->edge, true, 0);
    return emit->status;
}
