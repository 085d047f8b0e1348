/* SmoothQuant: activation channels with outliers are divided, and the corresponding rows of the weights multiplied, by
 *
 *     s_c = max|x_c|^alpha / max|w_c|^(1 - alpha)
 *
 * so that the per-tensor scale of the activation does not leave few codes for the other channels (Xiao et al.,
 * "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models", ICML 2023). All layers
 * that read the same activation share s; in a loop, each iteration has its own. The division is free where it can be
 * folded into what computes the activation (quant/passes/division.h); otherwise a Mul by 1 / s stays in the graph.
 * Layers whose activations stay float gain nothing and are not changed. */
#include "calib/statistics.h"
#include "quant/pass.h"
#include "quant/passes/division.h"
#include "quant/selection/emit_selection.h"
#include "quant/selection/entries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALPHA };                 /* parameters */
static const double MOST = 1e5; /* bound of s and 1 / s */

/* An activation and the layers that read it. */
struct group {
    struct tare_quant_work *work;
    const struct tare_statistics *statistics;
    double *scale; /* s by entry and channel */
    double *reach; /* greatest magnitude of a channel's weights, likewise */
    struct tare_quant_division division;
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
    return tare_edge_equal(layer->input, group->division.edge) && takes_part(group->work, layer) &&
           tare_quant_has_input_channels(layer, group->division.channels);
}

/* The first member stands for its group. */
static bool leads(const struct group *group, const struct tare_quant_layer *layer) {
    for (const struct tare_quant_layer *l = group->work->layers; l < layer; l++)
        if (is_member(group, l)) return false;
    return true;
}

/* ---- factors ---- */

static void widen_reach(struct group *group, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const float *w = TARE_CONST_DATA(float, &layer->real);
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t k = 0; k < p->columns; k++, w++) {
                double *reach = &group->reach[tare_quant_first_divisor(&group->division, layer, b) +
                                              tare_quant_input_channel(layer, group->division.channels, r, k)];
                *reach = fmax(*reach, fabs((double)*w));
            }
}

/* The statistics of an entry: those of all where no sample reached it. */
static const struct tare_statistics *statistics_of(const struct group *group, const struct tare_quant_layer *layer,
                                                   int64_t entry) {
    const struct tare_quant_ranges *ranges = group->work->ranges;
    const struct tare_statistics *s =
        group->division.entries > 1 ? ranges->entry_statistics(ranges->arg, layer->observed, entry) : NULL;
    return s && s->channels == group->division.channels && tare_statistics_elements(s) ? s : group->statistics;
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
    for (int64_t c = 0; c < group->division.channels; c++) {
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
    double *scale = group->scale + entry * group->division.channels;
    const double *reach = group->reach + entry * group->division.channels;
    const double median = median_magnitude(scale, group, s, leader);
    for (int64_t c = 0; c < group->division.channels; c++) {
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
                *w =
                    (float)((double)*w * group->scale[tare_quant_first_divisor(&group->division, layer, b) +
                                                      tare_quant_input_channel(layer, group->division.channels, r, k)]);
}

/* ---- dividing ---- */

static struct tare_edge multiplied(struct group *group, const struct tare_quant_layer *leader, struct tare_emit *emit) {
    const struct tare_shape one = tare_shape_make(1, (int)group->division.channels),
                            all = tare_shape_make(2, group->division.entries, group->division.channels);
    double *inverse =
        TARE_NEW_ARRAY(group->work->arena, double, (size_t)(group->division.entries * group->division.channels));
    struct tare_edge scale;
    if (!inverse) {
        emit->status = TARE_NO_MEMORY;
        return group->division.edge;
    }
    for (int64_t c = 0; c < group->division.entries * group->division.channels; c++)
        inverse[c] = 1 / group->scale[c];
    scale = tare_emit_floats(emit, "smooth/scale", group->division.entries > 1 ? &all : &one, inverse);
    if (group->division.entries > 1) scale = tare_emit_chosen(emit, "smooth/scale/chosen", leader->loop, scale);
    return tare_emit_binary(emit, "Mul", "smooth", tare_emit_float(emit, "smooth/float", group->division.edge), scale);
}

/* ---- a group ---- */

/* *input: what the members read in place of the activation. */
static tare_status replace_input(struct tare_edge *input, struct group *group, const struct tare_quant_layer *leader) {
    struct tare_emit emit = { .graph = group->division.edge.node->graph, .prefix = leader->op->name };
    bool found;
    TARE_TRY(tare_quant_divide(&found, input, &group->division, &emit));
    if (!found) *input = multiplied(group, leader, &emit);
    return emit.status;
}

static tare_status change_members(struct group *group, struct tare_edge input) {
    struct tare_quant_work *work = group->work;
    struct tare_quant_layer *const maker = group->division.maker;
    const struct tare_edge old = group->division.edge;
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        bool found;
        if (!tare_edge_equal(layer->input, old) || !takes_part(work, layer)) continue;
        work->changes++;
        multiply_rows(group, layer);
        TARE_TRY(tare_quant_scale_input(work->arena, layer, group->scale, group->division.entries,
                                        group->division.channels));
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
    struct tare_edge input;
    group->division.entries = count_entries(group, leader);
    group->division.by = group->division.entries > 1 ? leader->loop : NULL;
    group->scale =
        TARE_NEW_ARRAY(work->arena, double, 2 * (size_t)(group->division.entries * group->division.channels));
    if (!group->scale) return TARE_NO_MEMORY;
    group->division.scale = group->scale;
    group->reach = group->scale + group->division.entries * group->division.channels;
    for (size_t i = 0; i < work->n_layers; i++) {
        if (!is_member(group, &work->layers[i])) continue;
        TARE_TRY(tare_quant_own_real(&work->layers[i]));
        widen_reach(group, &work->layers[i]);
        group->division.readers++;
    }
    for (int64_t entry = 0; entry < group->division.entries; entry++)
        choose_factors(group, leader, entry, alpha);
    TARE_TRY(replace_input(&input, group, leader));
    return change_members(group, input);
}

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        struct group group = { .work = work, .division = { .work = work, .edge = layer->input } };
        if (!takes_part(work, layer)) continue;
        group.statistics = tare_quant_input_statistics(work, layer);
        group.division.channels = group.statistics->channels;
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
