/* Cross-layer equalization: if a layer's output is used by one other layer only, through nothing but ReLU, channel c of
 * the first layer may be divided by s_c, and the second layer's weights for it multiplied by s_c, without changing the
 * function. With s_c = sqrt(r1_c / r2_c), r the largest magnitude of the channel's weights, both have the range
 * sqrt(r1_c · r2_c), and a channel's share of the tensor's grid grows (Nagel et al., "Data-Free Quantization Through
 * Weight Equalization and Bias Correction", ICCV 2019, section 4.1). The range of the activation between them is
 * updated from its channels' extremes. For methods that rewrite the bias; ReLU6 is not positively homogeneous and ends
 * a chain. A depthwise layer that stays float takes part as well, with new constants: it would separate every pair of
 * the other layers of a MobileNet. */
#include "calib/statistics.h"
#include "quant/emit.h"
#include "quant/layer.h"
#include "quant/pass.h"

#include <math.h>

enum { SWEEPS = 20 };
static const double MOST = 256; /* bound of s and 1/s: larger factors would amplify the activations of dead channels */

struct pair {
    struct tare_quant_layer *first, *second;
    const struct tare_statistics *between;
    int64_t channels;
    double *factors;                           /* s by channel, over all sweeps */
    double *step, *first_range, *second_range; /* of the current sweep */
};

/* ---- channels ---- */

/* The columns of the first layer and the input channels of the second are channels of the activation between them. */
static bool has_columns(const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    if (p->batches != 1 || !layer->weight || p->moves) return false;
    return layer->kind == TARE_KIND_DEPTHWISE || (p->spatial && p->groups == 1) || layer->kind == TARE_KIND_MATMUL;
}

/* ---- pairs ---- */

/* A depthwise layer in float, whose weight and bias are constants of its own graph. */
static bool is_float_depthwise(const struct tare_quant_layer *layer) {
    return layer->refused && layer->kind == TARE_KIND_DEPTHWISE && layer->weight && !layer->variable &&
           !layer->selection && layer->weight->dtype == TARE_DT_FLOAT && layer->product.columns > 0;
}

static bool takes_part(const struct tare_quant_layer *layer) {
    if (is_float_depthwise(layer)) return true;
    return !layer->refused && has_columns(layer) && layer->setting.method->takes_bias;
}

static struct tare_quant_layer *only_user(const struct tare_quant_work *work, const struct tare_quant_layer *first) {
    struct tare_quant_layer *found = NULL;
    if (tare_graph_count_uses(first->op->graph, first->output, NULL) != 1) return NULL;
    for (size_t i = 0; i < work->n_layers; i++)
        if (tare_edge_equal(work->layers[i].input, first->output)) found = &work->layers[i];
    return found && takes_part(found) ? found : NULL;
}

/* Why the first layer that could begin a pair does not. */
static tare_status explain(struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const struct tare_node *user = NULL;
    const size_t uses = tare_graph_count_uses(layer->op->graph, layer->output, NULL);
    for (size_t i = 0; i < layer->op->graph->n_nodes; i++) {
        const struct tare_node *node = layer->op->graph->nodes[i];
        for (size_t k = 0; k < node->n_inputs && !node->dead; k++)
            if (tare_edge_equal(node->inputs[k], layer->output)) user = node;
    }
    if (layer->activation == TARE_ACTIVATION_RELU6)
        work->idle =
            tare_arena_printf(work->arena, "Relu6 follows layer '%s' (only Relu keeps scales)", layer->op->name);
    else if (uses == 1 && user)
        work->idle = tare_arena_printf(work->arena, "the output of layer '%s' goes to %s '%s' (expected another layer)",
                                       layer->op->name, user->op, user->name);
    else
        work->idle = tare_arena_printf(work->arena, "the output of layer '%s' has %zu uses (expected one other layer)",
                                       layer->op->name, uses);
    return work->idle ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status find_pairs(struct pair **out, size_t *count, struct tare_quant_work *work) {
    struct pair *pairs = TARE_NEW_ARRAY(work->arena, struct pair, work->n_layers + 1);
    const char *const idle = work->idle;
    *count = 0;
    if (!(*out = pairs)) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++) {
        struct pair *pair = &pairs[*count];
        pair->first = &work->layers[i];
        if (!takes_part(pair->first)) continue;
        pair->second = pair->first->activation == TARE_ACTIVATION_RELU6 ? NULL : only_user(work, pair->first);
        if (!pair->second) {
            if (work->idle == idle) TARE_TRY(explain(work, pair->first));
            continue;
        }
        pair->between = work->ranges->statistics(work->ranges->arg, pair->first->output);
        pair->channels = pair->first->product.columns;
        if (!pair->between || pair->between->channels != pair->channels ||
            !tare_quant_has_input_channels(pair->second, pair->channels))
            continue;
        pair->factors = TARE_NEW_ARRAY(work->arena, double, 4 * (size_t)pair->channels);
        if (!pair->factors) return TARE_NO_MEMORY;
        pair->step = pair->factors + pair->channels;
        pair->first_range = pair->step + pair->channels;
        pair->second_range = pair->first_range + pair->channels;
        for (int64_t c = 0; c < pair->channels; c++)
            pair->factors[c] = 1;
        (*count)++;
    }
    return TARE_OK;
}

/* ---- weights ---- */

/* Largest magnitudes by output channel of the first and input channel of the second. */
static void find_ranges(struct pair *pair) {
    const struct tare_quant_product *p = &pair->first->product, *q = &pair->second->product;
    const float *first = TARE_CONST_DATA(float, &pair->first->real),
                *second = TARE_CONST_DATA(float, &pair->second->real);
    for (int64_t c = 0; c < pair->channels; c++)
        pair->first_range[c] = pair->second_range[c] = 0;
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t k = 0; k < p->columns; k++)
            pair->first_range[k] = fmax(pair->first_range[k], fabs((double)first[r * p->columns + k]));
    for (int64_t r = 0; r < q->rows; r++)
        for (int64_t k = 0; k < q->columns; k++) {
            double *range = &pair->second_range[tare_quant_input_channel(pair->second, pair->channels, r, k)];
            *range = fmax(*range, fabs((double)second[r * q->columns + k]));
        }
}

/* s by channel, 1 for channels that one side does not use; the product of all sweeps stays within MOST. */
static void choose_steps(struct pair *pair) {
    for (int64_t c = 0; c < pair->channels; c++) {
        const double first = pair->first_range[c], second = pair->second_range[c];
        double s = 1;
        if (first > 0 && second > 0)
            s = fmin(fmax(sqrt(first / second) * pair->factors[c], 1 / MOST), MOST) / pair->factors[c];
        pair->step[c] = s;
        pair->factors[c] *= s;
    }
}

static void equalize(struct pair *pair) {
    const struct tare_quant_product *p = &pair->first->product, *q = &pair->second->product;
    float *first = TARE_DATA(float, &pair->first->real), *second = TARE_DATA(float, &pair->second->real);
    find_ranges(pair);
    choose_steps(pair);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t k = 0; k < p->columns; k++)
            first[r * p->columns + k] = (float)((double)first[r * p->columns + k] / pair->step[k]);
    for (int64_t c = 0; c < pair->channels && pair->first->bias_real; c++)
        pair->first->bias_real[c] /= pair->step[c];
    for (int64_t r = 0; r < q->rows; r++)
        for (int64_t k = 0; k < q->columns; k++) {
            const double s = pair->step[tare_quant_input_channel(pair->second, pair->channels, r, k)];
            second[r * q->columns + k] = (float)((double)second[r * q->columns + k] * s);
        }
}

/* ---- the activation between ---- */

static tare_status range_between(struct tare_quant_work *work, struct pair *pair) {
    struct tare_qparams params;
    bool found;
    if (pair->second->refused) return TARE_OK;
    TARE_TRY(tare_quant_scale_input(work->arena, pair->second, pair->factors, 1, pair->channels));
    TARE_TRY(tare_quant_input_params(&found, &params, work, pair->second));
    if (!found) return TARE_OK;
    pair->first->output_params = params;
    pair->second->left_params = params;
    return TARE_OK;
}

/* ---- layers in float ---- */

/* Puts the new weight and bias into the graph. */
static tare_status store_float(struct tare_quant_layer *layer) {
    const struct tare_shape shape = { .rank = 1, .dims = { layer->product.columns } };
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    struct tare_tensor weight;
    if (!layer->refused || layer->real.dtype == TARE_DT_INVALID) return TARE_OK;
    TARE_TRY(tare_quant_restore(&weight, &layer->product, &layer->real, &layer->weight->shape));
    const struct tare_edge edge = tare_emit_const(&emit, "equalized", &weight);
    tare_tensor_reset(&weight);
    tare_tensor_reset(&layer->real);
    TARE_TRY(emit.status);
    tare_node_set_input(layer->op, layer->right, edge);
    if (!layer->bias_real) return TARE_OK;
    const struct tare_edge bias = tare_emit_floats(&emit, "equalized_bias", &shape, layer->bias_real);
    TARE_TRY(emit.status);
    tare_node_set_input(layer->bias, 1, bias);
    return TARE_OK;
}

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    struct pair *pairs;
    size_t count;
    (void)self;
    if (!work->ranges || !work->ranges->statistics) return TARE_OK;
    TARE_TRY(find_pairs(&pairs, &count, work));
    for (size_t i = 0; i < count; i++) {
        TARE_TRY(tare_quant_own_real(pairs[i].first));
        TARE_TRY(tare_quant_own_real(pairs[i].second));
        TARE_TRY(tare_quant_own_bias(work->arena, pairs[i].first));
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t i = 0; i < count; i++)
            equalize(&pairs[i]);
    for (size_t i = 0; i < count; i++)
        TARE_TRY(range_between(work, &pairs[i]));
    for (size_t i = 0; i < work->n_layers; i++)
        TARE_TRY(store_float(&work->layers[i]));
    work->changes = count;
    return TARE_OK;
}

const struct tare_quant_pass tare_quant_pass_equalization = {
    .name = "equalization",
    .help = "channels of neighbouring layers scaled so that their weights use the grid alike",
    .needs_channels = true,
    .scales_inputs = true,
    .idle = "no layer's output goes to one other layer alone, through nothing but Relu",
    .run = run,
};
