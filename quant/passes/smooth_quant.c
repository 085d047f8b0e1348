/* SmoothQuant: activation channels with outliers are divided, and the corresponding rows of the weights multiplied, by
 *
 *     s_c = max|x_c|^alpha / max|w_c|^(1 - alpha)
 *
 * so that the per-tensor scale of the activation does not leave few codes for the other channels (Xiao et al.,
 * "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models", ICML 2023). All layers
 * that read the same activation share s. The division is free where it can be folded into a quantized layer that
 * computes the activation, or into constants of the sums and products that compute it (the gamma and beta of a
 * LayerNorm); otherwise a Mul by 1 / s stays in the graph. Layers whose activations stay float gain nothing and are not
 * changed. */
#include "calib/statistics.h"
#include "quant/emit.h"
#include "quant/layer.h"
#include "quant/pass.h"
#include "quant/selection/emit_selection.h"
#include "quant/selection/entries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALPHA };                           /* parameters */
enum { MOST_DEPTH = 8, MOST_NODES = 32 }; /* of the ops between constants and the activation */
static const double MOST = 1e5;           /* bound of s and 1 / s */

/* An activation and the layers that read it. */
struct group {
    struct tare_quant_work *work;
    struct tare_edge edge;
    const struct tare_statistics *statistics;
    int64_t entries; /* of the layers' loop, each with s of its own; 1: one for all */
    int64_t channels;
    double *scale;                                     /* s by entry and channel */
    double *reach;                                     /* greatest magnitude of a channel's weights, likewise */
    size_t n_layers;                                   /* that take part */
    struct tare_edge from[MOST_NODES], to[MOST_NODES]; /* copied nodes whose channels were divided */
    size_t n_copies;
};

/* ---- participating layers ---- */

static bool takes_part(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const struct tare_statistics *s;
    if (layer->refused || !layer->weight || !layer->setting.method->integer_inputs ||
        layer->kind == TARE_KIND_DEPTHWISE || tare_quant_shares_variable(work, layer))
        return false;
    s = tare_quant_input_statistics(work, layer);
    return s && tare_quant_has_input_channels(layer, s->channels);
}

static bool is_member(const struct group *group, const struct tare_quant_layer *layer) {
    return tare_edge_equal(layer->input, group->edge) && takes_part(group->work, layer) &&
           tare_quant_has_input_channels(layer, group->channels);
}

/* The first member stands for its group. */
static bool leads(const struct group *group, const struct tare_quant_layer *layer) {
    for (const struct tare_quant_layer *l = group->work->layers; l < layer; l++)
        if (is_member(group, l)) return false;
    return true;
}

/* ---- factors ---- */

/* Where the values of the entry begin that a matrix of the layer's weight belongs to. */
static int64_t first_of(const struct group *group, const struct tare_quant_layer *layer, int64_t matrix) {
    return group->entries > 1 ? matrix / (layer->product.batches / group->entries) * group->channels : 0;
}

static void widen_reach(struct group *group, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const float *w = TARE_CONST_DATA(float, &layer->real);
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t k = 0; k < p->columns; k++, w++) {
                double *reach =
                    &group->reach[first_of(group, layer, b) + tare_quant_input_channel(layer, group->channels, r, k)];
                *reach = fmax(*reach, fabs((double)*w));
            }
}

/* The statistics of an entry: those of all where no sample reached it. */
static const struct tare_statistics *statistics_of(const struct group *group, const struct tare_quant_layer *layer,
                                                   int64_t entry) {
    const struct tare_quant_ranges *ranges = group->work->ranges;
    const struct tare_statistics *s =
        group->entries > 1 ? ranges->entry_statistics(ranges->arg, layer->observed, entry) : NULL;
    return s && s->channels == group->channels && tare_statistics_elements(s) ? s : group->statistics;
}

static double seen_magnitude(const struct tare_statistics *s, const struct tare_quant_layer *leader, int64_t c) {
    if (!(s->channel_low[c] <= s->channel_high[c])) return 0;
    return fmax(fabs((double)s->channel_low[c]), fabs((double)s->channel_high[c])) /
           (leader->input_scale ? leader->input_scale[c] : 1);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median magnitude of the channels that are not always zero; 0 without any. `scratch`: one per channel. */
static double median_magnitude(double *scratch, const struct group *group, const struct tare_statistics *s,
                               const struct tare_quant_layer *leader) {
    size_t count = 0;
    for (int64_t c = 0; c < group->channels; c++) {
        const double seen = seen_magnitude(s, leader, c);
        if (seen > 0) scratch[count++] = seen;
    }
    qsort(scratch, count, sizeof *scratch, by_value);
    return count ? scratch[count / 2] : 0;
}

/* A channel that is zero in all samples (a rare category, a pixel at the border) counts as large as the median channel:
 * in other data it takes ordinary values, which a factor of another size would clip. 1 for channels that no weight
 * reads, and where all are zero. */
static void choose_factors(struct group *group, const struct tare_quant_layer *leader, int64_t entry, double alpha) {
    const struct tare_statistics *s = statistics_of(group, leader, entry);
    double *scale = group->scale + entry * group->channels;
    const double *reach = group->reach + entry * group->channels;
    const double median = median_magnitude(scale, group, s, leader);
    for (int64_t c = 0; c < group->channels; c++) {
        const double seen = seen_magnitude(s, leader, c), most = seen > 0 ? seen : median;
        const double factor = pow(most, alpha) / pow(reach[c], 1 - alpha);
        scale[c] = most > 0 && reach[c] > 0 && isfinite(factor) ? fmin(fmax(factor, 1 / MOST), MOST) : 1;
    }
}

static void multiply_rows(const struct group *group, struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    float *w = TARE_DATA(float, &layer->real);
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t k = 0; k < p->columns; k++, w++)
                *w = (float)((double)*w * group->scale[first_of(group, layer, b) +
                                                       tare_quant_input_channel(layer, group->channels, r, k)]);
}

/* ---- dividing where the activation is made ---- */

/* The quantized layer whose output is the activation, if only members use it and the method rewrites the bias. */
static struct tare_quant_layer *maker_of(const struct group *group) {
    const struct tare_quant_work *work = group->work;
    if (tare_graph_count_uses(group->edge.node->graph, group->edge, NULL) != group->n_layers) return NULL;
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *l = &work->layers[i];
        if (tare_edge_equal(l->output, group->edge) && !l->refused && l->weight && l->kind != TARE_KIND_GATHER &&
            l->setting.method->takes_bias && l->activation != TARE_ACTIVATION_RELU6 && !l->product.moves &&
            l->product.batches == 1 && l->product.columns == group->channels && !tare_quant_shares_variable(work, l))
            return l;
    }
    return NULL;
}

static tare_status divide_columns(struct group *group, struct tare_quant_layer *maker) {
    const struct tare_quant_product *p = &maker->product;
    float *w;
    TARE_TRY(tare_quant_own_real(maker));
    TARE_TRY(tare_quant_own_bias(group->work->arena, maker));
    w = TARE_DATA(float, &maker->real);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t k = 0; k < p->columns; k++, w++)
            *w = (float)((double)*w / group->scale[k]);
    for (int64_t k = 0; k < p->columns && maker->bias_real; k++)
        maker->bias_real[k] /= group->scale[k];
    return TARE_OK;
}

static bool is_op(const struct tare_edge edge, const char *const *ops) {
    return edge.index == 0 && edge.node->n_inputs > 0 && tare_op_is_one_of(edge.node->op, ops);
}

static const char *const products[] = { "Mul", NULL };
static const char *const sums[] = { "AddV2", "Add", "Sub", "BiasAdd", NULL };
static const char *const homogeneous[] = { "Relu", "LeakyRelu", "Identity", NULL };

/* One number for all places takes no room in a file. */
static bool is_one_number(const struct tare_tensor *value) {
    for (int64_t i = 1; i < value->elements; i++)
        if (tare_tensor_get_f64(value, i) != tare_tensor_get_f64(value, 0)) return false;
    return true;
}

/* A constant that does not become larger than a value per channel, or than it is. */
static bool is_channel_constant(struct tare_edge edge, int64_t channels) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    const int64_t last = value && value->shape.rank ? value->shape.dims[value->shape.rank - 1] : 1;
    if (!value || value->dtype != TARE_DT_FLOAT || (last != channels && last != 1)) return false;
    return value->elements <= last || (last == channels && !is_one_number(value));
}

/* True if the channels can be divided in constants only. */
static bool can_divide(const struct group *group, struct tare_edge edge, int depth) {
    const struct tare_edge *in = edge.node->inputs;
    if (depth > MOST_DEPTH) return false;
    if (is_channel_constant(edge, group->channels)) return true;
    if (edge.node->n_controls) return false;
    if (is_op(edge, products)) return can_divide(group, in[0], depth + 1) || can_divide(group, in[1], depth + 1);
    if (is_op(edge, sums) && strcmp(tare_node_string(edge.node, "data_format", "NHWC"), "NHWC") == 0)
        return can_divide(group, in[0], depth + 1) && can_divide(group, in[1], depth + 1);
    return is_op(edge, homogeneous) && can_divide(group, in[0], depth + 1);
}

static struct tare_edge fail(struct tare_emit *emit, tare_status status) {
    if (emit->status == TARE_OK) emit->status = status;
    return (struct tare_edge){ NULL, 0 };
}

/* A scalar, or one value for all channels, becomes one value per channel. */
static struct tare_edge divided_constant(struct group *group, struct tare_emit *emit, struct tare_edge edge) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    struct tare_shape shape = value->shape;
    int64_t each; /* elements of the constant in a run of channels */
    struct tare_tensor divided;
    struct tare_edge out;
    tare_status status;
    if (shape.rank == 0) shape = tare_shape_make(1, 1);
    each = shape.dims[shape.rank - 1];
    shape.dims[shape.rank - 1] = group->channels;
    status = tare_tensor_new(&divided, TARE_DT_FLOAT, &shape);
    if (status != TARE_OK) return fail(emit, status);
    for (int64_t i = 0; i < divided.elements; i++) {
        const int64_t from = each == 1 ? i / group->channels : i;
        TARE_DATA(float, &divided)[i] = (float)(tare_tensor_get_f64(value, from) / group->scale[i % group->channels]);
    }
    out = tare_emit_const(emit, "smooth/constant", &divided);
    tare_tensor_reset(&divided);
    return out;
}

static struct tare_edge divided(struct group *group, struct tare_emit *emit, struct tare_edge edge);

/* A copy of the node whose channels are divided. */
static struct tare_edge divided_node(struct group *group, struct tare_emit *emit, const struct tare_node *node) {
    const bool product = strcmp(node->op, "Mul") == 0;
    const size_t only = product && !can_divide(group, node->inputs[0], 1) ? 1 : 0;
    struct tare_node *copy;
    const char *name = tare_arena_printf(&emit->graph->model->arena, "%s/smooth", node->name);
    struct tare_edge inputs[2] = { node->inputs[0], node->inputs[node->n_inputs > 1 ? 1 : 0] };
    for (size_t i = 0; i < node->n_inputs && i < 2; i++)
        if (!product || i == only) inputs[i] = divided(group, emit, node->inputs[i]);
    copy = name && emit->status == TARE_OK ? tare_graph_add(emit->graph, node->op, name) : NULL;
    if (!copy) return fail(emit, TARE_NO_MEMORY);
    for (size_t i = 0; i < node->n_inputs && i < 2 && emit->status == TARE_OK; i++)
        emit->status = tare_node_add_input(copy, inputs[i]);
    if (emit->status == TARE_OK) emit->status = tare_node_copy_attrs(copy, node);
    if (emit->status == TARE_OK) emit->status = tare_node_resolve(copy);
    return (struct tare_edge){ copy, 0 };
}

/* Reuses earlier copies: a LayerNorm uses gamma twice. */
static struct tare_edge divided(struct group *group, struct tare_emit *emit, struct tare_edge edge) {
    struct tare_edge out;
    for (size_t i = 0; i < group->n_copies; i++)
        if (tare_edge_equal(group->from[i], edge)) return group->to[i];
    out = is_channel_constant(edge, group->channels) ? divided_constant(group, emit, edge)
                                                     : divided_node(group, emit, edge.node);
    if (group->n_copies < MOST_NODES) {
        group->from[group->n_copies] = edge;
        group->to[group->n_copies++] = out;
    }
    return out;
}

static struct tare_edge multiplied(struct group *group, const struct tare_quant_layer *leader, struct tare_emit *emit) {
    const struct tare_shape one = tare_shape_make(1, (int)group->channels),
                            all = tare_shape_make(2, group->entries, group->channels);
    double *inverse = TARE_NEW_ARRAY(group->work->arena, double, (size_t)(group->entries * group->channels));
    struct tare_edge scale;
    if (!inverse) return fail(emit, TARE_NO_MEMORY);
    for (int64_t c = 0; c < group->entries * group->channels; c++)
        inverse[c] = 1 / group->scale[c];
    scale = tare_emit_floats(emit, "smooth/scale", group->entries > 1 ? &all : &one, inverse);
    if (group->entries > 1) scale = tare_emit_chosen(emit, "smooth/scale/chosen", leader->loop, scale);
    return tare_emit_binary(emit, "Mul", "smooth", tare_emit_float(emit, "smooth/float", group->edge), scale);
}

/* ---- a group ---- */

static tare_status replace_input(struct group *group, struct tare_quant_layer *leader, struct tare_edge *out) {
    struct tare_emit emit = { .graph = group->edge.node->graph, .prefix = leader->op->name };
    const bool folds = group->entries == 1 && can_divide(group, group->edge, 0) && !tare_edge_constant(group->edge);
    *out = folds ? divided(group, &emit, group->edge) : multiplied(group, leader, &emit);
    return emit.status;
}

static tare_status change_members(struct group *group, struct tare_quant_layer *maker, struct tare_edge input) {
    struct tare_quant_work *work = group->work;
    const struct tare_edge old = group->edge;
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        bool found;
        if (!tare_edge_equal(layer->input, old) || !takes_part(work, layer)) continue;
        work->changes++;
        multiply_rows(group, layer);
        TARE_TRY(tare_quant_scale_input(work->arena, layer, group->scale, group->entries, group->channels));
        if (layer->setting.method->needs_ranges) {
            TARE_TRY(tare_quant_input_params(&found, &layer->left_params, work, layer));
            TARE_TRY(tare_quant_scale_entries(work, layer));
        }
        if (maker) {
            maker->output_params = layer->left_params;
        } else {
            tare_node_set_input(layer->op, layer->left, input);
            layer->input = input;
        }
    }
    return TARE_OK;
}

/* The entries of a loop that all members choose their weights by: a factor may then differ from entry to entry. */
static int64_t count_entries(const struct group *group, const struct tare_quant_layer *leader) {
    const struct tare_quant_work *work = group->work;
    if (!leader->loop || work->plan->shared_ranges || !work->ranges->entry_statistics) return 1;
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *layer = &work->layers[i];
        if (is_member(group, layer) && (layer->input_scale || !layer->selection || layer->loop != layer->selection ||
                                        layer->loop->count != leader->loop->count))
            return 1;
    }
    return leader->loop->count;
}

static tare_status smooth(struct group *group, struct tare_quant_layer *leader, double alpha) {
    struct tare_quant_work *work = group->work;
    struct tare_quant_layer *maker;
    struct tare_edge input = group->edge;
    group->entries = count_entries(group, leader);
    group->scale = TARE_NEW_ARRAY(work->arena, double, 2 * (size_t)(group->entries * group->channels));
    if (!group->scale) return TARE_NO_MEMORY;
    group->reach = group->scale + group->entries * group->channels;
    for (size_t i = 0; i < work->n_layers; i++) {
        if (!is_member(group, &work->layers[i])) continue;
        TARE_TRY(tare_quant_own_real(&work->layers[i]));
        widen_reach(group, &work->layers[i]);
        group->n_layers++;
    }
    for (int64_t entry = 0; entry < group->entries; entry++)
        choose_factors(group, leader, entry, alpha);
    maker = group->entries == 1 ? maker_of(group) : NULL;
    if (maker)
        TARE_TRY(divide_columns(group, maker));
    else
        TARE_TRY(replace_input(group, leader, &input));
    return change_members(group, maker, input);
}

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        struct group group = { .work = work, .edge = layer->input };
        if (!takes_part(work, layer)) continue;
        group.statistics = tare_quant_input_statistics(work, layer);
        group.channels = group.statistics->channels;
        if (leads(&group, layer))
            TARE_TRY(tare_error_prefix(smooth(&group, layer, self->parameters[ALPHA].value), "%s", layer->op->name));
    }
    return TARE_OK;
}

const struct tare_quant_pass tare_quant_pass_smooth_quant = {
    .name = "smooth_quant",
    .help = "outlying channels of activations made smaller, and their weights larger",
    .needs_channels = true,
    .scales_inputs = true,
    .idle = "no quantized layer has an activation with statistics of channels that weights of their own multiply",
    .parameters = { { .name = "alpha", .value = 0.5, .least = 0, .most = 1 } },
    .run = run,
};
