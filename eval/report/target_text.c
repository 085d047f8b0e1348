/* The result of a target search as a table and as a recipe. */
#include "base/text_table.h"
#include "eval/target.h"
#include "quant/recipe.h"

#include <math.h>

static const struct tare_text_table_column columns[] = {
    { .heading = "in float" },
    { .heading = "raised" },
    { .heading = "weights MB" },
    { .heading = "measure" },
    { .heading = "drop" },
    { .heading = "SQNR dB" },
    { .heading = "agree" },
    { .heading = "Pareto", .left = true },
    { .heading = "target", .left = true },
    { 0 },
};

static void put_target(struct tare_strbuf *out, const struct tare_target_result *r) {
    const struct tare_target *t = &r->target;
    const char *between = "";
    if (isfinite(t->max_drop)) {
        tare_strbuf_puts(out, "at most ");
        tare_measure_put_loss(out, r->measured, t->max_drop, 4);
        between = ", ";
    }
    if (t->max_mae > 0) {
        tare_strbuf_printf(out, "%sa mean absolute error of at most %.4g", between, t->max_mae);
        between = ", ";
    }
    if (isfinite(t->min_sqnr_db)) {
        tare_strbuf_printf(out, "%sat least %.4g dB", between, t->min_sqnr_db);
        between = ", ";
    }
    if (t->max_bytes) tare_strbuf_printf(out, "%sat most %lld bytes of weights", between, (long long)t->max_bytes);
}

static bool has_levels(const struct tare_sensitivity *steps) {
    for (size_t i = 0; i < steps->count; i++)
        if (steps->layers[i].quantized) return true;
    return false;
}

/* Layers with more bits than the variant's, but not in float. */
static size_t raised(const struct tare_sensitivity *steps, const struct tare_target_point *p) {
    size_t count = 0;
    for (size_t i = 0; i < steps->count; i++) {
        const struct tare_sensitive_layer *layer = &steps->layers[i], *last;
        if (layer->level > 0) continue;
        last = tare_target_step(steps, p->kept, p->n_kept, layer->function, layer->node);
        count += last && last->quantized;
    }
    return count;
}

/* The measure and its loss, each in its unit. */
static void put_measure(struct tare_text_table *table, const struct tare_target_result *r,
                        const struct tare_target_point *p) {
    const struct tare_measure *measure = r->measured;
    const double points = 100 * (r->float_score - p->figures.score);
    struct tare_strbuf value = { 0 };
    tare_measure_put(&value, measure, p->figures.value);
    tare_text_table_cell(table, "%s", tare_strbuf_text(&value));
    tare_strbuf_free(&value);
    if (measure->lower_is_better)
        tare_text_table_cell(table, "%.2f %%", points);
    else if (!*measure->unit)
        tare_text_table_cell(table, "%.4f", points / 100);
    else
        tare_text_table_cell(table, "%.2f", points);
}

static void put_point(struct tare_text_table *table, const struct tare_target_result *r,
                      const struct tare_target_point *p) {
    size_t in_float;
    tare_target_layers(&in_float, r->sensitivity, p->kept, p->n_kept);
    tare_text_table_row(table);
    tare_text_table_cell(table, "%zu", in_float);
    if (has_levels(r->sensitivity))
        tare_text_table_cell(table, "%zu", raised(r->sensitivity, p));
    else
        tare_text_table_skip(table);
    tare_text_table_cell(table, "%.3f", (double)p->size_bytes / 1e6);
    if (isnan(p->figures.score)) {
        tare_text_table_skip(table);
        tare_text_table_skip(table);
    } else {
        put_measure(table, r, p);
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

static void put_step(struct tare_strbuf *out, const struct tare_sensitive_layer *step) {
    if (!step->quantized) tare_strbuf_puts(out, " float");
    if (step->bits) tare_strbuf_printf(out, " bits=%d", step->bits);
    if (step->activation_bits) tare_strbuf_printf(out, " activation_bits=%d", step->activation_bits);
}

/* The layers of the chosen mix that do not have the variant's own settings. */
static void put_layers(struct tare_strbuf *out, const struct tare_target_result *r) {
    const struct tare_sensitivity *steps = r->sensitivity;
    const char *between = "";
    for (size_t i = 0; r->chosen && i < steps->count; i++) {
        const struct tare_sensitive_layer *layer = &steps->layers[i], *last;
        if (layer->level > 0) continue;
        last = tare_target_step(steps, r->chosen->kept, r->chosen->n_kept, layer->function, layer->node);
        if (!last) continue;
        tare_strbuf_printf(out, "%s%s:", between, layer->node);
        put_step(out, last);
        between = ", ";
    }
    if (*between) tare_strbuf_puts(out, "\n");
}

void tare_target_table(struct tare_strbuf *out, const struct tare_target_result *r) {
    struct tare_text_table *table = tare_text_table_new(columns);
    size_t in_float;
    tare_strbuf_printf(out, "\n%s", r->sensitivity->method);
    if (r->sensitivity->algorithm) tare_strbuf_printf(out, ", %s", r->sensitivity->algorithm);
    tare_strbuf_printf(out, ", %zu layers; expected: ", tare_target_layers(&in_float, r->sensitivity, NULL, 0));
    put_target(out, r);
    tare_strbuf_puts(out, "\n");
    for (size_t i = 0; i < r->n_points; i++)
        put_point(table, r, &r->points[i]);
    tare_text_table_print(out, table);
    tare_text_table_free(table);
    put_layers(out, r);
}

void tare_target_heading(struct tare_strbuf *out, const struct tare_target_result *r) {
    tare_strbuf_printf(out, "# %s: ", r->sensitivity->method);
    put_target(out, r);
    tare_strbuf_puts(out, "\n");
}

void tare_target_recipe(struct tare_strbuf *out, const struct tare_target_result *r) {
    const struct tare_sensitivity *steps = r->sensitivity;
    const struct tare_quant_layer_names names = TARE_QUANT_LAYER_NAMES(steps->layers, steps->count);
    for (size_t i = 0; r->chosen && i < steps->count; i++) {
        const struct tare_sensitive_layer *layer = &steps->layers[i], *last;
        if (layer->level > 0) continue;
        last = tare_target_step(steps, r->chosen->kept, r->chosen->n_kept, layer->function, layer->node);
        if (!last) continue;
        tare_quant_recipe_put_layer(out, &names, i);
        tare_strbuf_puts(out, " ->");
        put_step(out, last);
        if (last->quantized && last->setting) tare_strbuf_puts(out, last->setting);
        tare_strbuf_printf(out, "  # alone %.2f dB\n", layer->alone.sqnr_db);
    }
}
