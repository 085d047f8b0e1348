/* The result of a target search as a table and as a recipe. */
#include "base/text_table.h"
#include "eval/target.h"
#include "quant/recipe.h"

#include <math.h>

static const struct tare_text_table_column columns[] = {
    { .heading = "in float" },
    { .heading = "weights MB" },
    { .heading = "top-1" },
    { .heading = "drop" },
    { .heading = "SQNR dB" },
    { .heading = "agree" },
    { .heading = "Pareto", .left = true },
    { .heading = "target", .left = true },
    { 0 },
};

static void put_target(struct tare_strbuf *out, const struct tare_target *t) {
    const char *between = "";
    if (isfinite(t->max_drop)) {
        tare_strbuf_printf(out, "at most %.4g points of top-1 lost", t->max_drop);
        between = ", ";
    }
    if (isfinite(t->min_sqnr_db)) {
        tare_strbuf_printf(out, "%sat least %.4g dB", between, t->min_sqnr_db);
        between = ", ";
    }
    if (t->max_bytes) tare_strbuf_printf(out, "%sat most %lld bytes of weights", between, (long long)t->max_bytes);
}

static void put_point(struct tare_text_table *table, const struct tare_target_result *r,
                      const struct tare_target_point *p) {
    tare_text_table_row(table);
    tare_text_table_cell(table, "%zu", p->n_kept);
    tare_text_table_cell(table, "%.3f", (double)p->size_bytes / 1e6);
    if (isnan(p->figures.top1)) {
        tare_text_table_skip(table);
        tare_text_table_skip(table);
    } else {
        tare_text_table_cell(table, "%.2f%%", 100 * p->figures.top1);
        tare_text_table_cell(table, "%.2f", 100 * (r->float_top1 - p->figures.top1));
    }
    if (isinf(p->figures.sqnr_db))
        tare_text_table_cell(table, "exact");
    else
        tare_text_table_cell(table, "%.2f", p->figures.sqnr_db);
    if (isnan(p->figures.agreement))
        tare_text_table_skip(table);
    else
        tare_text_table_cell(table, "%.2f%%", 100 * p->figures.agreement);
    tare_text_table_cell(table, "%s", p->pareto ? "yes" : "");
    tare_text_table_cell(table, "%s", p == r->chosen ? "chosen" : p->meets ? "met" : "");
}

void tare_target_table(struct tare_strbuf *out, const struct tare_target_result *r) {
    struct tare_text_table *table = tare_text_table_new(columns);
    tare_strbuf_printf(out, "\n%s", r->sensitivity->method);
    if (r->sensitivity->algorithm) tare_strbuf_printf(out, ", %s", r->sensitivity->algorithm);
    tare_strbuf_printf(out, ", %zu layers; expected: ", r->sensitivity->count);
    put_target(out, &r->target);
    tare_strbuf_puts(out, "\n");
    for (size_t i = 0; i < r->n_points; i++)
        put_point(table, r, &r->points[i]);
    tare_text_table_print(out, table);
    tare_text_table_free(table);
    for (size_t i = 0; r->chosen && i < r->chosen->n_kept; i++)
        tare_strbuf_printf(out, "%s%s", i ? ", " : "in float: ", r->sensitivity->layers[r->chosen->kept[i]].node);
    if (r->chosen && r->chosen->n_kept) tare_strbuf_puts(out, "\n");
}

void tare_target_recipe(struct tare_strbuf *out, const struct tare_target_result *r) {
    tare_strbuf_printf(out, "# %s: ", r->sensitivity->method);
    put_target(out, &r->target);
    tare_strbuf_puts(out, "\n");
    for (size_t i = 0; r->chosen && i < r->chosen->n_kept; i++) {
        const struct tare_sensitive_layer *layer = &r->sensitivity->layers[r->chosen->kept[i]];
        tare_quant_recipe_put_layer(out, layer->node, layer->function);
        tare_strbuf_printf(out, " -> float  # alone %.2f dB\n", layer->alone.sqnr_db);
    }
}
