/* Sensitivity as a table and as a recipe. */
#include "base/strbuf.h"
#include "eval/sensitivity.h"
#include "quant/recipe.h"

#include <math.h>
#include <string.h>

static void figure_cells(struct tare_report_table *table, const struct tare_sensitivity_figures *f) {
    tare_report_table_db(table, f->sqnr_db);
    tare_report_table_share(table, 2, f->top1);
}

void tare_sensitivity_layers(struct tare_strbuf *out, enum tare_report_form form, const struct tare_sensitivity *s,
                             size_t width) {
    static const struct tare_report_column columns[] = {
        { .heading = "layer", .left = true, .wraps = true },
        { .heading = "rank", .only = TARE_IN_PAGE },
        { .heading = "op", .left = true },
        { .heading = "weights" },
        { .heading = "alone dB", .left = true, .help = "SQNR of the worst output with only this layer quantized" },
        { .heading = "top-1" },
        { .heading = "all but it dB" },
        { .heading = "top-1" },
        { .heading = "kept so far dB", .help = "the same with this layer and those above kept in float" },
        { .heading = "top-1" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, width);
    for (size_t i = 0; i < s->count; i++) {
        const struct tare_sensitive_layer *layer = &s->layers[i];
        tare_report_table_row(table);
        tare_report_table_text(table, layer->node);
        tare_report_table_cell(table, "%zu", i + 1);
        tare_report_table_text(table, layer->op);
        tare_report_table_cell(table, "%lld", (long long)layer->weight_elements);
        tare_report_table_db_bar(table, layer->alone.sqnr_db);
        tare_report_table_share(table, 2, layer->alone.top1);
        figure_cells(table, &layer->restored);
        figure_cells(table, &layer->kept);
    }
    tare_report_table_end(out, table);
}

void tare_sensitivity_table(struct tare_strbuf *out, const struct tare_sensitivity *s, size_t width) {
    tare_strbuf_printf(out, "\nsensitivity to %s", s->method);
    if (s->algorithm) tare_strbuf_printf(out, ", %s", s->algorithm);
    if (s->granularity) tare_strbuf_printf(out, ", %s", s->granularity);
    tare_strbuf_printf(out, ", %lld records: %.2f dB%s with all %zu layers quantized", (long long)s->records,
                       s->all.sqnr_db, s->n_outputs > 1 ? " at the worst output" : "", s->count);
    if (!isnan(s->all.top1))
        tare_strbuf_printf(out, " and %.2f%% top-1 (float %.2f%%)", 100 * s->all.top1, 100 * s->float_model.top1);
    tare_strbuf_printf(out, "\n%zu models in %.1f s\n", 3 * s->count + 1, s->seconds);
    tare_sensitivity_layers(out, TARE_IN_TEXT, s, width);
}

void tare_sensitivity_recipe(struct tare_strbuf *out, const struct tare_sensitivity *s, size_t worst) {
    const struct tare_quant_layer_names names = TARE_QUANT_LAYER_NAMES(s->layers, s->count);
    for (size_t i = 0; i < s->count && i < worst; i++) {
        tare_quant_recipe_put_layer(out, &names, i);
        tare_strbuf_printf(out, " -> float  # alone %.2f dB\n", s->layers[i].alone.sqnr_db);
    }
}
