/* The activation of a layer: its channels with the weights that each is multiplied by, the bookkeeping for passes that
 * scale channels, and its parameters. */
#include "calib/statistics.h"
#include "quant/layer.h"
#include "quant/fake_quant.h"
#include "quant/range_cache.h"

#include <math.h>
#include <string.h>

/* Zeros between the elements of a convolution's input, which the statistics of the channels do not contain. */
static bool has_gaps(const struct tare_quant_product *p) {
    for (int i = 0; i < p->spatial; i++)
        if (p->window[i].base > 1) return true;
    return false;
}

bool tare_quant_has_input_channels(const struct tare_quant_layer *layer, int64_t channels) {
    const struct tare_quant_product *p = &layer->product;
    if (!layer->weight || channels <= 0 || layer->kind == TARE_KIND_GATHER) return false;
    if (layer->kind == TARE_KIND_DEPTHWISE) return p->columns % channels == 0;
    if (p->spatial)
        return p->groups == 1 && p->dims.input_feature == p->spatial + 1 && !has_gaps(p) && p->rows % channels == 0;
    return p->n_contracted > 0 && p->rows % channels == 0 &&
           p->left_contracted[p->n_contracted - 1] == p->n_batch + p->n_free_left + p->n_contracted - 1;
}

/* Rows are in the order of the activation's axes, the last one fastest. */
int64_t tare_quant_input_channel(const struct tare_quant_layer *layer, int64_t channels, int64_t row, int64_t column) {
    if (layer->kind == TARE_KIND_DEPTHWISE) return column / (layer->product.columns / channels);
    return row % channels;
}

const double *tare_quant_input_scale(const struct tare_quant_layer *layer, int64_t entry) {
    if (!layer->input_scale) return NULL;
    return layer->input_scale + (layer->input_entries > 1 ? entry * layer->input_channels : 0);
}

tare_status tare_quant_scale_input(struct tare_arena *arena, struct tare_quant_layer *layer, const double *factors,
                                   int64_t entries, int64_t channels) {
    const int64_t count = entries * channels;
    layer->entries = NULL; /* they are those of the activation that is not scaled */
    if (!layer->input_scale) {
        layer->input_scale = TARE_NEW_ARRAY(arena, double, (size_t)count);
        if (!layer->input_scale) return TARE_NO_MEMORY;
        layer->input_channels = channels;
        layer->input_entries = entries;
        for (int64_t c = 0; c < count; c++)
            layer->input_scale[c] = 1;
    }
    for (int64_t c = 0; c < count; c++)
        layer->input_scale[c] *= factors[c];
    return TARE_OK;
}

const struct tare_statistics *tare_quant_input_statistics(const struct tare_quant_work *work,
                                                          const struct tare_quant_layer *layer) {
    const struct tare_quant_ranges *ranges = work->ranges;
    const struct tare_statistics *s =
        ranges && ranges->statistics ? ranges->statistics(ranges->arg, layer->observed) : NULL;
    return s && s->channels > 0 ? s : NULL;
}

static double moved(double chosen, double before, double after) {
    return before != 0 ? chosen * (after / before) : after;
}

static bool set_params(struct tare_qparams *out, double low, double high, const struct tare_quant_setting *setting) {
    const struct tare_qscheme scheme = tare_quant_activation_scheme(setting);
    if (tare_qparams_from_range(out, low, high, &scheme) == TARE_OK) return true;
    tare_error_clear(); /* not finite */
    return false;
}

tare_status tare_quant_scaled_params(bool *found, struct tare_qparams *out, const struct tare_quant_work *work,
                                     struct tare_edge observed, int64_t entry, const struct tare_statistics *s,
                                     const double *scale, const struct tare_quant_setting *setting) {
    double low = 0, high = 0, new_low = 0, new_high = 0, chosen_low, chosen_high;
    for (int64_t c = 0; c < s->channels; c++) {
        if (!(s->channel_low[c] <= s->channel_high[c])) continue; /* saw nothing finite */
        low = fmin(low, (double)s->channel_low[c]);
        high = fmax(high, (double)s->channel_high[c]);
        new_low = fmin(new_low, (double)s->channel_low[c] / scale[c]);
        new_high = fmax(new_high, (double)s->channel_high[c] / scale[c]);
    }
    TARE_TRY(tare_quant_find_entry_range(found, &chosen_low, &chosen_high, work->cache, work->ranges, observed, entry,
                                         setting));
    *found = *found && set_params(out, moved(chosen_low, low, new_low), moved(chosen_high, high, new_high), setting);
    return TARE_OK;
}

/* Ranges from training take precedence over calibration. */
tare_status tare_quant_find_params(bool *found, struct tare_qparams *out, const struct tare_quant_work *work,
                                   struct tare_edge edge, const struct tare_quant_setting *setting) {
    double low, high;
    TARE_TRY(tare_quant_fake_range(found, &low, &high, work->fakes, edge));
    if (!*found) TARE_TRY(tare_quant_find_range(found, &low, &high, work->cache, work->ranges, edge, setting));
    *found = *found && set_params(out, low, high, setting);
    return TARE_OK;
}

tare_status tare_quant_input_params(bool *found, struct tare_qparams *out, const struct tare_quant_work *work,
                                    const struct tare_quant_layer *layer) {
    if (!layer->input_scale) return tare_quant_find_params(found, out, work, layer->observed, &layer->setting);
    return tare_quant_scaled_params(found, out, work, layer->observed, -1, tare_quant_input_statistics(work, layer),
                                    layer->input_scale, &layer->setting);
}

tare_status tare_quant_own_real(struct tare_quant_layer *layer) {
    struct tare_tensor copy = { 0 };
    layer->changed = true;
    TARE_TRY(tare_quant_make_real(layer));
    if (tare_tensor_is_exclusive(&layer->real)) return TARE_OK;
    TARE_TRY(tare_tensor_copy(&copy, &layer->real));
    tare_tensor_reset(&layer->real);
    layer->real = copy;
    return TARE_OK;
}

tare_status tare_quant_own_bias(struct tare_arena *arena, struct tare_quant_layer *layer) {
    if (layer->bias_real || !layer->bias_value) return TARE_OK;
    layer->bias_real = TARE_NEW_ARRAY(arena, double, (size_t)layer->product.columns);
    if (!layer->bias_real) return TARE_NO_MEMORY;
    for (int64_t c = 0; c < layer->product.columns; c++)
        layer->bias_real[c] = tare_tensor_get_f64(layer->bias_value, c);
    return TARE_OK;
}

bool tare_quant_shares_variable(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    for (size_t i = 0; layer->variable && i < work->n_layers; i++)
        if (&work->layers[i] != layer && work->layers[i].variable == layer->variable) return true;
    return false;
}

/* ---- layers of one form ---- */

/* The op that computes an activation, before the ops that only arrange it. */
static const char *producer_of(struct tare_edge edge) {
    static const char *const copies[] = { "Identity", "Reshape", "Squeeze", "Cast", "ExpandDims", "Transpose", NULL };
    while (tare_op_is_one_of(edge.node->op, copies) && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge.node->op;
}

bool tare_quant_has_form_of(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    return a->kind == b->kind && tare_shape_equal(tare_quant_operand(a), tare_quant_operand(b)) &&
           strcmp(producer_of(a->observed), producer_of(b->observed)) == 0;
}

/* A layer that no sample reached has the range that the layers of its form have together, as an iteration of a loop has
 * that of all iterations. */
static tare_status find_range_of_form(bool *found, struct tare_qparams *out, const struct tare_quant_work *work,
                                      const struct tare_quant_layer *layer) {
    double low = 0, high = 0;
    *found = false;
    for (size_t i = 0; i < work->n_layers && layer->weight && !layer->input_scale; i++) {
        const struct tare_quant_layer *other = &work->layers[i];
        double other_low, other_high;
        bool known;
        if (!other->weight || !tare_quant_has_form_of(layer, other)) continue;
        TARE_TRY(tare_quant_find_range(&known, &other_low, &other_high, work->cache, work->ranges, other->observed,
                                       &layer->setting));
        if (!known) continue;
        low = fmin(low, other_low);
        high = fmax(high, other_high);
        *found = true;
    }
    *found = *found && set_params(out, low, high, &layer->setting);
    return TARE_OK;
}

tare_status tare_quant_find_activations(const char **reason, const struct tare_quant_work *work,
                                        struct tare_quant_layer *layer) {
    bool found = true;
    TARE_TRY(tare_quant_input_params(&found, &layer->left_params, work, layer));
    if (!found) TARE_TRY(find_range_of_form(&found, &layer->left_params, work, layer));
    if (!found)
        *reason = work->ranges && work->ranges->find ? "its input was not calibrated (did any sample reach it?)"
                                                     : "no FakeQuant range and no samples";
    if (!found || layer->weight) return TARE_OK;
    TARE_TRY(tare_quant_find_params(&found, &layer->right_params, work, layer->second, &layer->setting));
    if (!found) *reason = "its second input was not calibrated (did any sample reach it?)";
    return TARE_OK;
}
