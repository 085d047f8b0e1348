/* Warnings about activation ranges and weights.
 *
 * An activation is judged by the parameters that are deployed, not by the name of the algorithm: squared error on the
 * calibration histogram, against the error of the range that algorithm mse finds for the same integer type. */
#include "quant/quality_warnings.h"
#include "base/format.h"
#include "quant/advice.h"
#include "quant/layer_index.h"
#include "calib/algorithm.h"
#include "calib/range_error.h"
#include "graph/graphs.h"
#include "quant/fake_quant.h"
#include "quant/pass.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static tare_status append(const char ***list, size_t *count, struct tare_arena *arena, const char *format,
                          va_list args) {
    const char **grown = tare_arena_append(arena, *list, *count, sizeof *grown);
    char text[1024];
    if (!grown) return TARE_NO_MEMORY;
    tare_format_va(text, sizeof text, format, args);
    *list = grown;
    grown[*count] = tare_arena_strdup(arena, text);
    return grown[(*count)++] ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_quant_add_warning(struct tare_quant_report *report, struct tare_arena *arena, const char *format,
                                   ...) {
    va_list args;
    va_start(args, format);
    const tare_status status = append(&report->warnings, &report->n_warnings, arena, format, args);
    va_end(args);
    return status;
}

tare_status tare_quant_add_note(struct tare_quant_report *report, struct tare_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const tare_status status = append(&report->notes, &report->n_notes, arena, format, args);
    va_end(args);
    return status;
}

/* ---- activations ---- */

static double sqnr_db(const struct tare_range_error *e) {
    const double whole = e->error.rounding + e->error.clipping;
    return whole > 0 ? 10 * log10(e->squares / whole) : HUGE_VAL;
}

/* The parameters of the range that algorithm mse finds for the layer's integer type. */
static tare_status best_params(struct tare_qparams *out, const struct tare_statistics *statistics,
                               const struct tare_quant_setting *setting) {
    const struct tare_qscheme scheme = tare_quant_activation_scheme(setting);
    struct tare_algorithm_choice choice;
    struct tare_range range;
    TARE_TRY(tare_algorithm_parse(&choice, "mse"));
    TARE_TRY(tare_algorithm_range(&range, &choice, statistics, &scheme));
    *out = tare_qparams_of_range(range.low, range.high, &scheme);
    return TARE_OK;
}

/* *bins is filled where it is needed; the caller frees it. */
static tare_status find_error(struct tare_range_error *out, struct tare_bins *bins, const struct tare_qparams *params,
                              const struct tare_statistics *statistics) {
    if (tare_range_error_find(out, params, statistics)) return TARE_OK;
    if (!bins->bins) TARE_TRY(tare_bins_make(bins, statistics));
    *out = tare_range_error_of(params, statistics, bins);
    return TARE_OK;
}

/* Whether no range of the integer type can have an error that is TARE_ROUNDING_DB smaller, so that none is searched.
 * The rounding error is proportional to the square of the step, so such a range, which contains 0, is narrower by that
 * ratio. It clips at least what lies further from 0 than its width. */
static tare_status is_near_best(bool *out, struct tare_bins *bins, const struct tare_range_error *own,
                                const struct tare_qparams *params, const struct tare_statistics *statistics) {
    const double ratio = pow(10, TARE_ROUNDING_DB / 20), whole = own->error.rounding + own->error.clipping;
    const double most = params->scale * (params->qmax - params->qmin + 1) / ratio;
    *out = false;
    if (params->format || own->error.clipping > own->error.rounding) return TARE_OK;
    if (!bins->bins) TARE_TRY(tare_bins_make(bins, statistics));
    const size_t low = tare_bins_below(bins, -most), high = tare_bins_below(bins, most), n = bins->count;
    const double clipped = bins->squares[low] + bins->squares[n] - bins->squares[high] +
                           2 * most * (bins->sums[low] - bins->sums[n] + bins->sums[high]) +
                           most * most * (bins->counts[low] + bins->counts[n] - bins->counts[high]);
    *out = clipped * ratio * ratio > whole;
    return TARE_OK;
}

/* The errors of the layer's parameters and, unless these are near the best, of the best ones. */
static tare_status find_errors(struct tare_range_error errors[2], bool *near_best, const struct tare_quant_layer *layer,
                               const struct tare_statistics *statistics) {
    struct tare_bins bins = { 0 };
    struct tare_qparams best;
    tare_status status = find_error(&errors[0], &bins, &layer->left_params, statistics);
    if (status == TARE_OK) status = is_near_best(near_best, &bins, &errors[0], &layer->left_params, statistics);
    if (status == TARE_OK && !*near_best) {
        status = best_params(&best, statistics, &layer->setting);
        if (status == TARE_OK) status = find_error(&errors[1], &bins, &best, statistics);
    }
    tare_bins_free(&bins);
    return status;
}

/* Whether no input of the model can change the values: Fill, or ops that repeat one, as the zeros that a recurrent
 * layer begins with. */
static bool is_filled(struct tare_edge edge) {
    static const char *const copies[] = { "Identity", "Reshape", "BroadcastTo", "Tile", "ExpandDims", "Squeeze" };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        if (strcmp(edge.node->op, copies[i]) == 0) return is_filled(edge.node->inputs[0]);
    return strcmp(edge.node->op, "ZerosLike") == 0 || strcmp(edge.node->op, "OnesLike") == 0 ||
           (strcmp(edge.node->op, "Fill") == 0 && tare_edge_constant(edge.node->inputs[1]));
}

/* A range of one value is often that of a state that the samples never fill. */
static tare_status judge_range(struct tare_quant_work *work, const struct tare_quant_layer *layer,
                               const struct tare_statistics *statistics) {
    struct tare_range_error errors[2];
    const struct tare_quantization_error *own = &errors[0].error;
    double own_db, best_db, low, high;
    bool near_best;
    if (is_filled(layer->observed)) return TARE_OK;
    if (tare_statistics_extremes(&low, &high, statistics) && low == high)
        return tare_quant_add_warning(
            work->report, work->arena,
            "layer '%s': its input was %.6g everywhere in all records of the calibration, so "
            "that its range is not representative: "
            "calibrate with values as the model will get them (a state that the model returns: "
            "--feedback OUTPUT=INPUT), or "
            "leave the layer in float with a recipe rule",
            layer->op->name, low);
    TARE_TRY(find_errors(errors, &near_best, layer, statistics));
    if (near_best) return TARE_OK;
    own_db = sqnr_db(&errors[0]);
    best_db = sqnr_db(&errors[1]);
    if (own->clipping > own->rounding && best_db - own_db > TARE_CLIPPING_DB)
        return tare_quant_add_warning(
            work->report, work->arena,
            "layer '%s': clipping leaves its input %.1f dB, algorithm mse %.1f dB (%.2g %% of the values are "
            "clipped): use --algorithm mse, or algorithm=mse in a recipe rule for the layer",
            layer->op->name, own_db, best_db, 100 * own->clipped / errors[0].count);
    if (own->clipping <= own->rounding && best_db - own_db > TARE_ROUNDING_DB)
        return tare_quant_add_warning(
            work->report, work->arena,
            "layer '%s': outliers widen the range of its input, which leaves %.1f dB, algorithm mse %.1f dB: use "
            "--algorithm mse, or algorithm=mse in a recipe rule for the layer",
            layer->op->name, own_db, best_db);
    return TARE_OK;
}

/* Whether the layer's activation has a range from calibration, and no earlier layer has the same activation. */
static tare_status is_judged(bool *out, const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    double low, high;
    bool trained;
    *out = false;
    if (layer->refused || !layer->setting.method->needs_ranges || layer->left_params.scale <= 0 || layer->input_scale)
        return TARE_OK;
    TARE_TRY(tare_quant_fake_range(&trained, &low, &high, work->fakes, layer->observed));
    if (trained) return TARE_OK;
    for (const struct tare_quant_layer *other = tare_quant_first_user(work, layer->observed); other && other < layer;
         other = other->next_user)
        if (!other->refused && other->left_params.scale == layer->left_params.scale) return TARE_OK;
    *out = true;
    return TARE_OK;
}

tare_status tare_quant_warn_of_ranges(struct tare_quant_work *work) {
    if (!work->ranges || !work->ranges->statistics) return TARE_OK;
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *layer = &work->layers[i];
        const struct tare_statistics *statistics;
        bool judged;
        tare_status status;
        TARE_TRY(is_judged(&judged, work, layer));
        statistics = judged ? work->ranges->statistics(work->ranges->arg, layer->observed) : NULL;
        if (!statistics) continue;
        status = judge_range(work, layer, statistics);
        if (status == TARE_NOT_FOUND) { /* no finite value was observed */
            tare_error_clear();
            continue;
        }
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* ---- weights ---- */

/* The option that raises the SQNR of the weight most cheaply. */
static const char *remedy(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const struct tare_quant_setting *setting = &layer->setting;
    const struct tare_quant_pass *const *passes = work->plan->passes;
    if (setting->granularity == TARE_PER_TENSOR && work->plan->op_set != TARE_OP_SET_XLA)
        return "use --op-set xla, which has one scale per channel";
    if (setting->granularity == TARE_PER_TENSOR) return "use --granularity per_channel";
    if (setting->bits == 4 && setting->granularity == TARE_PER_CHANNEL && setting->method->takes_blocks)
        return "use --granularity per_block:32, or --bits 8";
    if (setting->format == TARE_FORMAT_E5M2) return "use --format fp8_e4m3";
    if (setting->bits == 4)
        return tare_quant_passes_have(passes, &tare_quant_pass_gptq)
                   ? "use bits=8 in a recipe rule for the layer"
                   : "use --passes gptq, or bits=8 in a recipe rule for the layer";
    if (tare_quant_passes_have(passes, &tare_quant_pass_weight_clipping)) return "leave it in float with a recipe rule";
    return "leave it in float with a recipe rule, or use --passes weight_clipping";
}

static tare_status warn_of_weight(struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const struct tare_quant_outcome *outcome = layer->outcome;
    if (outcome->weight_vanishes)
        return tare_quant_add_warning(
            work->report, work->arena,
            "layer '%s': its weight becomes 0 everywhere, as all values are less than half a step of the least range "
            "(1e-6) or of the step that its bias needs: leave it in float with a recipe rule",
            outcome->node);
    return tare_quant_add_warning(work->report, work->arena, "layer '%s': its %d-bit weight has only %.1f dB: %s",
                                  outcome->node, outcome->bits, outcome->weight_sqnr_db, remedy(work, layer));
}

tare_status tare_quant_warn_of_weights(struct tare_quant_work *work) {
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *layer = &work->layers[i];
        const struct tare_quant_outcome *outcome = layer->outcome;
        if (layer->refused || !layer->weight || !tare_quant_weight_is_poor(outcome)) continue;
        TARE_TRY(warn_of_weight(work, layer));
    }
    return TARE_OK;
}

/* ---- products of integers ---- */

/* A product of integers that the model has itself, as qwix and AQT write them. */
static bool multiplies_integers(const struct tare_node *node) {
    static const char *const products[] = { "XlaDot", "XlaDotV2", "XlaConv", "XlaConvV2", NULL };
    static const int narrow[] = { TARE_DT_INT8, TARE_DT_UINT8, TARE_DT_INT4, TARE_DT_UINT4 };
    bool are[2] = { false, false };
    if (node->dead || !tare_op_is_one_of(node->op, products)) return false;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++)
            are[i] |= tare_edge_dtype(node->inputs[i]) == narrow[k];
    return are[0] && are[1];
}

tare_status tare_quant_note_integers(struct tare_quant_work *work) {
    const struct tare_graph_model *model = work->model;
    size_t count = 0;
    for (size_t g = 0; g <= model->n_functions; g++) {
        const struct tare_graph *graph = tare_model_graph(model, g);
        for (size_t i = 0; i < graph->n_nodes; i++)
            count += multiplies_integers(graph->nodes[i]);
    }
    work->report->integer_products = count;
    if (!count) return TARE_OK;
    return tare_quant_add_note(work->report, work->arena,
                               "%zu products of the model multiply integers already: they stay as they are", count);
}
