/* Prints the automatic choices as a table and as a recipe. */
#include "base/text_table.h"
#include "eval/measure.h"
#include "workflow/autotune/autotune.h"
#include "quant/recipe.h"

#include <math.h>

static const struct tare_text_table_column columns[] = {
    { .heading = "layer", .left = true },
    { .heading = "op", .left = true },
    { .heading = "gets", .left = true, .always = true },
    { .heading = "why", .left = true },
    { 0 },
};

static void put_word(struct tare_strbuf *out, const char *name, const char *value) {
    if (out->size) tare_strbuf_putc(out, ' ');
    tare_strbuf_printf(out, "%s%s", name, value);
}

/* What the layer does not have from the model. */
static void put_settings(struct tare_strbuf *out, const struct tare_autotune_layer *layer) {
    if (layer->method) put_word(out, "", layer->method);
    if (layer->bits) put_word(out, "bits=", layer->bits == 4 ? "4" : "8");
    if (layer->activation_bits) put_word(out, "activation_bits=", layer->activation_bits == 16 ? "16" : "8");
    if (layer->granularity) put_word(out, "granularity=", layer->granularity);
    if (layer->algorithm && !layer->method) put_word(out, "algorithm=", layer->algorithm);
}

/* "top-1 75.20 % instead of 74.80 %, ". */
static void put_measure(struct tare_strbuf *out, const struct tare_autotune *a) {
    if (!a->measure) return;
    tare_strbuf_printf(out, "%s ", a->measure->name);
    tare_measure_put(out, a->measure, a->value);
    tare_strbuf_puts(out, " instead of ");
    tare_measure_put(out, a->measure, a->plain_value);
    tare_strbuf_puts(out, ", ");
}

static void put_db(struct tare_strbuf *out, double db, const char *unit) {
    if (isfinite(db))
        tare_strbuf_printf(out, "%.2f%s", db, unit);
    else
        tare_strbuf_puts(out, isnan(db) ? "not measured" : db > 0 ? "exact" : "none");
}

/* "40.12 dB instead of 35.30 on 64 held-out samples" */
static void put_gain(struct tare_strbuf *out, const struct tare_autotune *a) {
    put_db(out, a->db, " dB");
    tare_strbuf_puts(out, " instead of ");
    put_db(out, a->plain_db, "");
    if (a->n_outputs > 1) tare_strbuf_printf(out, " at the worst of %zu outputs", a->n_outputs);
    tare_strbuf_printf(out, " on %lld %ssample%s", (long long)a->records, a->held_out ? "held-out " : "",
                       a->records == 1 ? "" : "s");
}

static bool has_settings(const struct tare_autotune_layer *layer) {
    struct tare_strbuf settings = { 0 };
    put_settings(&settings, layer);
    const bool has = settings.size > 0;
    tare_strbuf_free(&settings);
    return has;
}

static void put_row(struct tare_text_table *table, const struct tare_autotune_layer *layer) {
    struct tare_strbuf settings = { 0 };
    put_settings(&settings, layer);
    tare_text_table_row(table);
    tare_text_table_cell(table, "%s", layer->node);
    tare_text_table_cell(table, "%s", layer->op);
    tare_text_table_cell(table, "%s", settings.size ? tare_strbuf_text(&settings) : "as all");
    tare_text_table_cell(table, "%s", layer->why);
    tare_strbuf_free(&settings);
}

/* Of the layers that are as all others: how many have a larger error than layer `index`. */
static size_t count_worse(const struct tare_autotune *a, size_t index) {
    const double db = a->layers[index].alone_db;
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++)
        if (!has_settings(&a->layers[i]))
            count += a->layers[i].alone_db < db || (i < index && !(a->layers[i].alone_db > db));
    return count;
}

void tare_workflow_autotune_table(struct tare_strbuf *out, const struct tare_autotune *a) {
    enum { MOST_AS_ALL = 5 }; /* rows, of the layers with the largest errors; no other layer is left out alone */
    struct tare_text_table *table = tare_text_table_new(columns);
    double low = INFINITY, high = -INFINITY;
    size_t left_out = 0, as_all = 0;
    tare_strbuf_printf(out, "\nauto: %s", a->method);
    if (a->algorithm) tare_strbuf_printf(out, ", %s", a->algorithm);
    tare_strbuf_printf(out, ", passes: %s; ", *a->passes ? a->passes : "none");
    put_measure(out, a);
    put_gain(out, a);
    tare_strbuf_printf(out, ", %d models measured\n", a->models);
    for (size_t i = 0; i < a->count; i++)
        as_all += !has_settings(&a->layers[i]);
    for (size_t i = 0; i < a->count; i++) {
        if (has_settings(&a->layers[i]) || as_all <= MOST_AS_ALL + 1 || count_worse(a, i) < MOST_AS_ALL) {
            put_row(table, &a->layers[i]);
            continue;
        }
        left_out++;
        low = fmin(low, a->layers[i].alone_db);
        high = fmax(high, a->layers[i].alone_db);
    }
    tare_text_table_print(out, table);
    tare_text_table_free(table);
    if (left_out == 0) return;
    tare_strbuf_printf(out, "%zu more layers get the same as all", left_out);
    if (isfinite(low) && isfinite(high)) tare_strbuf_printf(out, ": %.1f to %.1f dB alone", low, high);
    tare_strbuf_puts(out, "\n");
}

void tare_workflow_autotune_heading(struct tare_strbuf *out, const struct tare_autotune *a) {
    tare_strbuf_printf(out, "# %s: ", a->method);
    put_gain(out, a);
    tare_strbuf_puts(out, "\n");
}

void tare_workflow_autotune_rules(struct tare_strbuf *out, const struct tare_autotune *a) {
    const struct tare_quant_layer_names names = TARE_QUANT_LAYER_NAMES(a->layers, a->count);
    for (size_t i = 0; i < a->count; i++) {
        struct tare_strbuf settings = { 0 };
        put_settings(&settings, &a->layers[i]);
        if (settings.size) {
            tare_quant_recipe_put_layer(out, &names, i);
            tare_strbuf_printf(out, " -> %s  # %s\n", tare_strbuf_text(&settings), a->layers[i].why);
        } else {
            tare_strbuf_printf(out, "# %s: %s\n", a->layers[i].node, a->layers[i].why);
        }
        tare_strbuf_free(&settings);
    }
}
