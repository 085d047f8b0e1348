/* Explains the error of each quantized layer from its calibration statistics and weights: rounding and clipping error
 * of the activation on its grid, unused integer codes, spread of the weight's channels, and the remedy with the largest
 * effect. */
#include "eval/explain.h"
#include "base/strbuf.h"
#include "base/text_table.h"
#include "calib/quantization_error.h"
#include "quant/advice.h"
#include "quant/layer.h"

#include <math.h>
#include <string.h>

/* ---- activations ---- */

/* Number of grid integers that no value rounds to. */
static int unused_codes(const struct tare_qparams *grid, const struct tare_bins *bins) {
    int unused = 0;
    if (grid->format) return 0; /* codes near zero are far from every value */
    for (double q = grid->qmin; q <= grid->qmax; q++) {
        size_t from = q == grid->qmin ? 0 : tare_bins_below(bins, (q - grid->zero_point - 0.5) * grid->scale);
        size_t to = q == grid->qmax ? bins->count : tare_bins_below(bins, (q - grid->zero_point + 0.5) * grid->scale);
        unused += bins->counts[to] <= bins->counts[from];
    }
    return unused;
}

struct activation {
    const struct tare_statistics *statistics;
    const struct tare_bins *bins;
    const struct tare_qscheme *scheme;
    bool advise;
};

static tare_status quality(struct tare_range_quality *out, struct tare_range *range, const struct activation *a,
                           const struct tare_algorithm_choice *choice) {
    TARE_TRY(tare_algorithm_range_of_bins(range, choice, a->statistics, a->bins, a->scheme));
    *out = tare_range_quality_of(range, a->bins, a->scheme);
    return TARE_OK;
}

/* The algorithm whose grid has the highest SQNR for the activation. */
static tare_status best_algorithm(const char **best, double *sqnr_db, const struct activation *a) {
    size_t count;
    const struct tare_algorithm *const *rows = tare_algorithm_list(&count);
    *best = NULL;
    for (size_t i = 0; i < count; i++) {
        struct tare_algorithm_choice choice;
        struct tare_range_quality q;
        struct tare_range range;
        tare_status status = tare_algorithm_parse(&choice, rows[i]->name);
        if (status == TARE_OK) status = quality(&q, &range, a, &choice);
        TARE_TRY(tare_error_dismiss(status));
        if (status != TARE_OK || (*best && !(q.sqnr_db > *sqnr_db))) continue;
        *best = rows[i]->name;
        *sqnr_db = q.sqnr_db;
    }
    return TARE_OK;
}

static tare_status explain_activation(struct tare_explanation *e, struct tare_strbuf *remedy,
                                      const struct activation *a, const struct tare_algorithm_choice *choice) {
    struct tare_range_quality q;
    struct tare_range range;
    struct tare_qparams grid;
    double best_db = -INFINITY;
    const char *best = NULL;
    TARE_TRY(quality(&q, &range, a, choice));
    grid = tare_qparams_of_range(range.low, range.high, a->scheme);
    if (grid.scale != e->input.scale) return TARE_OK; /* an accuracy pass changed the activation */
    e->has_input = true;
    e->rounding_mse = q.rounding_mse;
    e->clipping_mse = q.clipping_mse;
    e->clipped = q.clipped;
    e->input_sqnr_db = q.sqnr_db;
    e->unused_codes = unused_codes(&grid, a->bins);
    if (a->advise) TARE_TRY(best_algorithm(&best, &best_db, a));
    if (best && best_db >= q.sqnr_db + TARE_WORTH_DB)
        tare_strbuf_printf(remedy, "%s%s: %.1f dB instead of %.1f", remedy->size ? "; " : "", best, best_db, q.sqnr_db);
    return TARE_OK;
}

static tare_status explain_input(struct tare_explanation *e, struct tare_strbuf *remedy,
                                 const struct tare_quant_outcome *o, const struct tare_calibration *calibration,
                                 bool advise) {
    const struct tare_calibration_tensor *tensor =
        calibration && o->input_node ? tare_calibration_find(calibration, o->function, o->input_node, o->input_output)
                                     : NULL;
    const struct tare_qscheme scheme = tare_quant_activation_scheme(&o->setting);
    struct tare_bins bins;
    tare_status status;
    e->input = o->input;
    if (tensor) {
        e->input_node = o->input_node;
        e->input_output = o->input_output;
    }
    if (!tensor || o->input.scale <= 0) return TARE_OK;
    status = tare_bins_make(&bins, &tensor->statistics);
    if (status == TARE_NO_MEMORY) return status;
    if (status != TARE_OK) { /* no finite value was observed */
        tare_error_clear();
        return TARE_OK;
    }
    status = explain_activation(e, remedy, &(struct activation){ &tensor->statistics, &bins, &scheme, advise },
                                &o->setting.algorithm);
    tare_bins_free(&bins);
    return status;
}

/* ---- weights ---- */

static void explain_weight(struct tare_explanation *e, struct tare_strbuf *remedy, const struct tare_quant_outcome *o) {
    const bool per_tensor = o->setting.granularity == TARE_PER_TENSOR;
    e->bits = o->bits;
    e->weight_elements = o->weight_elements;
    e->weight_sqnr_db = o->weight_sqnr_db;
    e->spread = o->channel_spread;
    if (!o->weight_elements) return;
    if (per_tensor && e->spread >= TARE_WIDE_SPREAD) {
        tare_strbuf_printf(remedy,
                           "%sthe widest channel is %.1f times the median one: one scale a channel (per_channel)",
                           remedy->size ? "; " : "", e->spread);
        return;
    }
    if (!tare_quant_weight_is_poor(o)) return;
    tare_strbuf_printf(remedy, "%sweight has %.1f dB: %s", remedy->size ? "; " : "", o->weight_sqnr_db,
                       per_tensor                     ? "one scale a channel (per_channel)"
                       : o->bits < 8                  ? "8 bits, or blocks (per_block:32)"
                       : e->spread > TARE_WIDE_SPREAD ? "equalize the channels"
                                                      : "leave it in float");
}

/* The report is released before the explanations. */
static tare_status copy_scales(struct tare_explanation *e, struct tare_arena *arena,
                               const struct tare_quant_outcome *o) {
    double *scales;
    if (!o->weight_scales) return TARE_OK;
    scales = TARE_NEW_ARRAY(arena, double, (size_t)o->n_weight_scales + 1);
    if (!scales) return TARE_NO_MEMORY;
    memcpy(scales, o->weight_scales, (size_t)o->n_weight_scales * sizeof *scales);
    e->weight_scales = scales;
    e->n_weight_scales = o->n_weight_scales;
    return TARE_OK;
}

/* ---- the list ---- */

static tare_status explain(struct tare_explanation *e, struct tare_arena *arena, const struct tare_quant_outcome *o,
                           const struct tare_calibration *calibration, bool advise) {
    struct tare_strbuf remedy = { 0 };
    tare_status status;
    *e = (struct tare_explanation){ .function = tare_arena_strdup(arena, o->function),
                                    .node = tare_arena_strdup(arena, o->node),
                                    .op = tare_arena_strdup(arena, o->op),
                                    .method = o->method,
                                    .setting = o->setting };
    if (!e->function || !e->node || !e->op) return TARE_NO_MEMORY;
    if (o->refused) {
        e->refused = tare_arena_strdup(arena, o->refused);
        return e->refused ? TARE_OK : TARE_NO_MEMORY;
    }
    TARE_TRY(copy_scales(e, arena, o));
    status = explain_input(e, &remedy, o, calibration, advise);
    explain_weight(e, &remedy, o);
    if (remedy.size) e->remedy = tare_arena_strdup(arena, tare_strbuf_text(&remedy));
    const char *input = e->input_node; /* of the report, which is released before the explanations */
    if (input) e->input_node = tare_arena_strdup(arena, input);
    if ((remedy.size && !e->remedy) || (input && !e->input_node)) status = TARE_NO_MEMORY;
    tare_strbuf_free(&remedy);
    return status;
}

tare_status tare_explain(struct tare_explanation_list *out, struct tare_arena *arena,
                         const struct tare_quant_report *report, const struct tare_calibration *calibration,
                         bool advise) {
    out->count = 0;
    out->items = TARE_NEW_ARRAY(arena, struct tare_explanation, report->count + 1);
    if (!out->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < report->count; i++)
        TARE_TRY(explain(&out->items[out->count++], arena, &report->outcomes[i], calibration, advise));
    return TARE_OK;
}

double tare_explanation_db(const struct tare_explanation *e) {
    double noise = 0;
    if (e->refused) return INFINITY;
    if (e->has_input) noise += pow(10, -e->input_sqnr_db / 10);
    if (e->weight_elements) noise += pow(10, -e->weight_sqnr_db / 10);
    return noise > 0 ? -10 * log10(noise) : INFINITY;
}

/* ---- table ---- */

static const struct tare_text_table_column columns[] = {
    { .heading = "layer", .left = true },
    { .heading = "op", .left = true },
    { .heading = "input dB" },
    { .heading = "clipping" },
    { .heading = "clipped" },
    { .heading = "unused codes" },
    { .heading = "weight dB" },
    { .heading = "spread" },
    { .heading = "what would help", .left = true },
    { 0 },
};

void tare_explanations_table(struct tare_strbuf *out, const struct tare_explanation_list *list, size_t width) {
    struct tare_text_table *table = tare_text_table_new(columns);
    for (size_t i = 0; i < list->count; i++) {
        const struct tare_explanation *e = &list->items[i];
        double error = e->rounding_mse + e->clipping_mse;
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s", e->node);
        tare_text_table_cell(table, "%s", e->op);
        if (e->has_input) {
            tare_text_table_cell(table, "%.1f", e->input_sqnr_db);
            tare_text_table_cell(table, "%.0f%%", error > 0 ? 100 * e->clipping_mse / error : 0);
            tare_text_table_cell(table, "%.3g%%", 100 * e->clipped);
            tare_text_table_cell(table, "%d", e->unused_codes);
        } else {
            for (int k = 0; k < 4; k++)
                tare_text_table_skip(table);
        }
        if (e->weight_elements) {
            tare_text_table_cell(table, "%.1f", e->weight_sqnr_db);
            tare_text_table_cell(table, "%.1f", e->spread);
        } else {
            tare_text_table_skip(table);
            tare_text_table_skip(table);
        }
        if (e->refused)
            tare_text_table_cell(table, "stays float: %s", e->refused);
        else if (e->remedy)
            tare_text_table_cell(table, "%s", e->remedy);
    }
    tare_text_table_fit(table, width);
    tare_text_table_print(out, table);
    tare_text_table_free(table);
}
