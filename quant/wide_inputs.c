/* Activations of 16 bits where 8 bits are too few.
 *
 * The noise that rounding adds to the output of a layer is that of quant/layers/output_noise.h. It is low where the
 * channels of an activation have different scales and large weights belong to the small channels (tables of numbers,
 * sensor data, the concatenated input and state of a recurrent cell). Other layers have 35 to 45 dB.
 *
 * How much noise a model tolerates depends on its output. A class changes only if two scores are close; an error of a
 * predicted number adds to that of the model itself. The limit is therefore higher if the model predicts a number.
 *
 * range-headroom: 16 bits have resolution to spare, and samples do not show the largest values. With n samples, one
 * record in n + 1 exceeds the extremes that they have in a tensor, and what is clipped there is as large as an error
 * can be: with 256 samples of an autoencoder, 94 % of the noise of 16 bits was that of 1 % of the records. Where the
 * rounding of the input remains 60 dB below the output, a tenth of what the rounding of int8 weights adds, the codes
 * therefore reach up to four times as far as the range.
 *
 * repeated-layers: a stack of layers under a loop has one number of bits, and a model has the same accuracy whether its
 * blocks are under a loop or written out: layers of one form, which repeated blocks have, have 16 bits if one of them
 * needs them. */
#include "quant/wide_inputs.h"
#include "base/arena.h"
#include "graph/calls.h"
#include "quant/advice.h"
#include "quant/layers/output_noise.h"
#include "quant/pass.h"

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

/* ---- the choices ---- */

static bool is_wide(const struct tare_quant_layer *layer) {
    return !layer->refused && layer->setting.method->takes_wide && layer->setting.activation_bits == 16;
}

static tare_status find_headroom(int *bits, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    static const double DB_OF_BIT = 6.02;
    double db;
    TARE_TRY(tare_quant_output_db(&db, work, layer));
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

static bool is_open(const struct tare_quant_layer *layer) {
    return !layer->refused && !layer->setting.activation_bits && layer->setting.method->takes_wide;
}

/* Marks the layers that need 16 bits, then those of their form. */
static tare_status mark_wide(bool *wide, const struct tare_quant_work *work, double least) {
    const struct tare_quant_layer **needing =
        TARE_NEW_ARRAY(work->arena, const struct tare_quant_layer *, work->n_layers + 1);
    size_t n_needing = 0;
    if (!needing) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++) {
        double db;
        if (!is_open(&work->layers[i])) continue;
        TARE_TRY(tare_quant_output_db(&db, work, &work->layers[i]));
        wide[i] = db < least;
        if (wide[i]) needing[n_needing++] = &work->layers[i];
    }
    for (size_t i = 0; i < work->n_layers; i++)
        for (size_t k = 0; k < n_needing && !wide[i] && is_open(&work->layers[i]); k++)
            wide[i] = tare_quant_has_form_of(&work->layers[i], needing[k]);
    return TARE_OK;
}

tare_status tare_quant_widen_inputs(struct tare_quant_work *work) {
    bool numbers, *wide = TARE_NEW_ARRAY(work->arena, bool, work->n_layers + 1);
    if (!wide) return TARE_NO_MEMORY;
    if (work->plan->op_set != TARE_OP_SET_XLA) return TARE_OK;
    TARE_TRY(predicts_numbers(&numbers, work));
    TARE_TRY(mark_wide(wide, work, numbers ? TARE_LEAST_DB_OF_NUMBERS : TARE_LEAST_DB));
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        if (!wide[i]) continue;
        layer->setting.activation_bits = 16;
        TARE_TRY(layer->setting.method->plan(&layer->refused, work, layer));
    }
    return add_headroom(work);
}

/* smooth_quant gives the channels equal scales, so that the layer need not stay float. */
static const char *remedy(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    if (layer->setting.method->takes_wide && !is_wide(layer))
        return "activation_bits=16 in a recipe rule for the layer";
    if (layer->weight && layer->kind != TARE_KIND_DEPTHWISE && !tare_quant_shares_variable(work, layer) &&
        !tare_quant_passes_have(work->plan->passes, &tare_quant_pass_smooth_quant))
        return "--passes smooth_quant, or --auto";
    return "a recipe rule that leaves the layer in float";
}

tare_status tare_quant_warn_of_noisy_inputs(struct tare_quant_work *work) {
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        double db;
        TARE_TRY(tare_quant_output_db(&db, work, layer));
        if (!(db < TARE_LEAST_DB)) continue;
        TARE_TRY(tare_quant_add_warning(work->report, work->arena,
                                        "layer '%s': rounding its input to %d bits leaves its output %.1f dB: use %s",
                                        layer->op->name, is_wide(layer) ? 16 : 8, db, remedy(work, layer)));
    }
    return TARE_OK;
}
