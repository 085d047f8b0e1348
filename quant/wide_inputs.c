/* Activations of 16 bits where 8 bits are too few.
 *
 * Rounding an activation to a grid of step s adds an error of mean square s²/12 to each element that is not 0. The
 * errors of different elements are nearly independent, so that the output of a layer gets an error of mean square
 * s²/12 ‖W‖² / channels times the share of elements that are not 0, with ‖W‖² the sum of the squares of all weights. It
 * is compared with the variance of the output over the samples, not with its mean square: a mean carries no
 * information. Where a pass has divided the channels of the activation, s is the step of the divided one, and W the
 * weights multiplied accordingly. The ratio is low where the channels of an activation have different scales and large
 * weights belong to the small channels (tables of numbers, sensor data, the concatenated input and state of a recurrent
 * cell). Other layers have 35 to 45 dB.
 *
 * How much noise a model tolerates depends on its output. A class changes only if two scores are close; an error of a
 * predicted number adds to that of the model itself. The limit is therefore higher if the model predicts a number.
 *
 * range-headroom: 16 bits have resolution to spare, and samples do not show the largest values. With n samples, one
 * record in n + 1 exceeds the extremes that they have in a tensor, and what is clipped there is as large as an error
 * can be: with 256 samples of an autoencoder, 94 % of the noise of 16 bits was that of 1 % of the records. Where the
 * rounding of the input remains 60 dB below the output, a tenth of what the rounding of int8 weights adds, the codes
 * therefore reach up to four times as far as the range. */
#include "quant/wide_inputs.h"
#include "base/arena.h"
#include "calib/statistics.h"
#include "graph/calls.h"
#include "quant/advice.h"
#include "quant/fake_quant.h"
#include "quant/product.h"
#include "quant/selection/entries.h"
#include "quant/weight_store.h"

#include <math.h>
#include <string.h>

static const double SPARE_DB = 60; /* what is above it may become headroom, … */
enum { MOST_HEADROOM = 2 };        /* … up to so many bits */

/* ---- what the model predicts ---- */

/* Follows copies and calls from an edge to the op that computes its values. */
static tare_status source_of(struct tare_edge *edge, struct tare_arena *arena) {
    static const char *const copies[] = { "Identity", "IdentityN",  "Reshape",      "Squeeze",
                                          "Cast",     "ExpandDims", "StopGradient", NULL };
    enum { MOST_STEPS = 1000 };
    for (int i = 0; edge->node && i < MOST_STEPS; i++) {
        struct tare_call_site call;
        TARE_TRY(tare_call_site(&call, arena, edge->node));
        if (call.kind == TARE_CALL_PLAIN && (size_t)edge->index < call.callees[0]->n_returns)
            *edge = call.callees[0]->returns[edge->index].edge;
        else if (tare_op_is_one_of(edge->node->op, copies) && (size_t)edge->index < edge->node->n_inputs)
            *edge = edge->node->inputs[edge->index];
        else
            break;
    }
    return TARE_OK;
}

/* Whether an axis of this size is that of the examples: its size is not known or 1, or that of the inputs' first axes.
 */
static bool is_batch(const struct tare_quant_work *work, const struct tare_signature *signature, int64_t size) {
    if (size < 0 || size == 1) return true;
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        const struct tare_shape shape = input->edge.node ? tare_model_shape(work->shapes, input->edge) : input->shape;
        if (shape.rank >= 0 && (shape.rank == 0 || shape.dims[0] != size)) return false;
    }
    return true;
}

/* One floating-point number per example that is neither a probability nor bounded otherwise. */
static tare_status is_number(bool *out, const struct tare_quant_work *work, const struct tare_signature *signature,
                             const struct tare_binding *output) {
    static const char *const bounded[] = { "Softmax", "LogSoftmax", "Sigmoid", "Tanh", NULL };
    const struct tare_shape shape = output->edge.node ? tare_model_shape(work->shapes, output->edge) : output->shape;
    struct tare_edge edge = output->edge;
    *out = false;
    if (output->whole || !edge.node || !tare_dtype_is_floating(output->dtype)) return TARE_OK;
    if (shape.rank < 1 || shape.rank > 2 || (shape.rank == 2 && shape.dims[1] != 1)) return TARE_OK;
    if (!is_batch(work, signature, shape.dims[0])) return TARE_OK;
    TARE_TRY(source_of(&edge, work->arena));
    *out = edge.node && !tare_op_is_one_of(edge.node->op, bounded);
    return TARE_OK;
}

static tare_status predicts_numbers(bool *out, const struct tare_quant_work *work) {
    const struct tare_graph_model *model = work->model;
    *out = false;
    for (size_t s = 0; s < model->n_signatures && !*out; s++)
        for (size_t i = 0; i < model->signatures[s].n_outputs && !*out; i++)
            TARE_TRY(is_number(out, work, &model->signatures[s], &model->signatures[s].outputs[i]));
    return TARE_OK;
}

/* ---- the noise of a layer ---- */

/* The squares of the weights as they multiply the errors of an activation that passes have scaled: an error of channel
 * c is input_scale[c] times as large in the layer's own output. */
static tare_status scaled_squares(double *out, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    struct tare_tensor arranged;
    int64_t i = 0;
    *out = 0;
    TARE_TRY(tare_quant_arrange(&arranged, p, layer->weight));
    for (int64_t b = 0; b < p->batches; b++) {
        const double *scale = tare_quant_input_scale(layer, b);
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t k = 0; k < p->columns; k++, i++) {
                const int64_t channel = tare_quant_input_channel(layer, layer->input_channels, r, k);
                const double w = tare_tensor_get_f64(&arranged, i) * scale[channel];
                *out += w * w;
            }
    }
    tare_tensor_reset(&arranged);
    return TARE_OK;
}

static tare_status squares_of(double *out, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    if (layer->input_scale) return scaled_squares(out, layer);
    if (layer->weight_squares == 0)
        TARE_TRY(tare_quant_weight_store_squares(&layer->weight_squares, work->plan->weights, layer->weight));
    *out = layer->weight_squares;
    return TARE_OK;
}

static double variance(const struct tare_statistics *s) {
    const double count = (double)tare_statistics_elements(s), mean = tare_exact_sum_value(&s->sum) / count;
    return tare_exact_sum_value(&s->sum_of_squares) / count - mean * mean;
}

/* The mean square of the steps of the activation's grid, over the layer's own iterations. */
static double square_step(const struct tare_quant_layer *layer) {
    const struct tare_quant_entries *entries = layer->entries;
    double sum = 0, count = 0;
    for (int64_t i = 0; entries && i < entries->count; i++)
        if (!entries->own || entries->own[i]) {
            sum += entries->left[i].scale * entries->left[i].scale;
            count++;
        }
    return count > 0 ? sum / count : layer->left_params.scale * layer->left_params.scale;
}

/* Sets *db to the ratio of the variance of the layer's output to the error that rounding its input adds, in dB, if it
 * is known. */
static tare_status signal_to_noise(double *db, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const struct tare_quant_ranges *ranges = work->ranges;
    const struct tare_statistics *input = ranges->statistics(ranges->arg, layer->observed);
    const struct tare_statistics *output = ranges->statistics(ranges->arg, layer->output);
    double noise, signal, squares;
    if (!input || !output || !tare_statistics_elements(input) || !tare_statistics_elements(output)) return TARE_OK;
    TARE_TRY(squares_of(&squares, work, layer));
    noise = square_step(layer) / 12 * squares / (double)tare_quant_channels(&layer->product);
    for (int i = 0; i < layer->product.spatial; i++) /* zeros between the elements of the input have no error */
        noise /= (double)layer->product.window[i].base;
    noise *= 1 - (double)input->histogram.zeros / (double)tare_statistics_elements(input);
    signal = variance(output);
    if (signal > 0 && noise > 0) *db = 10 * log10(signal / noise);
    return TARE_OK;
}

/* The same for any layer; infinity also where the range of its input is not from calibration. */
static tare_status output_db(double *db, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const struct tare_quant_ranges *ranges = work->ranges;
    double low, high;
    bool trained;
    *db = INFINITY; /* also of float8, whose steps are not equal */
    if (layer->refused || layer->setting.format || !layer->weight || !layer->setting.method->needs_ranges ||
        !(layer->left_params.scale > 0))
        return TARE_OK;
    if (layer->kind == TARE_KIND_GATHER || !ranges || !ranges->statistics) return TARE_OK;
    TARE_TRY(tare_quant_fake_range(&trained, &low, &high, work->fakes, layer->observed));
    return trained ? TARE_OK : signal_to_noise(db, work, layer);
}

/* ---- the choices ---- */

static bool is_wide(const struct tare_quant_layer *layer) {
    return !layer->refused && layer->setting.method->takes_wide && layer->setting.activation_bits == 16;
}

static tare_status find_headroom(int *bits, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    static const double DB_OF_BIT = 6.02;
    double db;
    TARE_TRY(output_db(&db, work, layer));
    *bits = isfinite(db) ? (int)fmax(0, fmin(MOST_HEADROOM, floor((db - SPARE_DB) / DB_OF_BIT))) : 0;
    return TARE_OK;
}

/* Layers of one activation have the same headroom, so that it is quantized once. */
static tare_status add_headroom(struct tare_quant_work *work) {
    int *bits = TARE_NEW_ARRAY(work->arena, int, work->n_layers + 1);
    if (!bits) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++)
        if (is_wide(&work->layers[i])) TARE_TRY(find_headroom(&bits[i], work, &work->layers[i]));
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        if (!is_wide(layer)) continue;
        layer->setting.headroom = bits[i];
        for (size_t k = 0; k < work->n_layers; k++)
            if (is_wide(&work->layers[k]) && tare_edge_equal(work->layers[k].observed, layer->observed))
                layer->setting.headroom = bits[k] < layer->setting.headroom ? bits[k] : layer->setting.headroom;
        if (layer->setting.headroom) TARE_TRY(layer->setting.method->plan(&layer->refused, work, layer));
    }
    return TARE_OK;
}

tare_status tare_quant_widen_inputs(struct tare_quant_work *work) {
    bool numbers;
    if (work->plan->op_set != TARE_OP_SET_XLA) return TARE_OK;
    TARE_TRY(predicts_numbers(&numbers, work));
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        double db;
        if (layer->refused || layer->setting.activation_bits || !layer->setting.method->takes_wide) continue;
        TARE_TRY(output_db(&db, work, layer));
        if (!(db < (numbers ? TARE_LEAST_DB_OF_NUMBERS : TARE_LEAST_DB))) continue;
        layer->setting.activation_bits = 16;
        TARE_TRY(layer->setting.method->plan(&layer->refused, work, layer));
    }
    return add_headroom(work);
}

tare_status tare_quant_warn_of_noisy_inputs(struct tare_quant_work *work) {
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        double db;
        TARE_TRY(output_db(&db, work, layer));
        if (!(db < TARE_LEAST_DB)) continue;
        TARE_TRY(tare_quant_add_warning(
            work->report, work->arena, "layer '%s': rounding its input to %d bits leaves its output %.1f dB: use %s",
            layer->op->name, is_wide(layer) ? 16 : 8, db,
            layer->setting.method->takes_wide && !is_wide(layer) ? "activation_bits=16 in a recipe rule for the layer"
                                                                 : "a recipe rule that leaves the layer in float"));
    }
    return TARE_OK;
}
