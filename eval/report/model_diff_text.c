/* The difference of two models as tables, as an HTML page and as JSON. */
#include "base/strbuf.h"
#include "eval/report/json_text.h"
#include "eval/model_diff.h"
#include "eval/report/page.h"
#include "eval/report/report_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const change_names[] = { "same", "changed", "other type", "only in the first",
                                            "only in the second" };

/* ---- tables, for a terminal or a page ---- */

static void integers_row(struct tare_report_table *table, const char *name, const int64_t values[2]) {
    tare_report_table_row(table);
    tare_report_table_text(table, name);
    for (int i = 0; i < 2; i++)
        tare_report_table_cell(table, "%" PRId64, values[i]);
    tare_report_table_cell(table, "%+" PRId64, values[1] - values[0]);
    tare_report_table_number(table, "%.3g", values[0] ? (double)values[1] / (double)values[0] : NAN);
}

static void sizes(struct tare_strbuf *out, enum tare_report_form form, const struct tare_model_diff *d) {
    static const struct tare_report_column columns[] = {
        { .heading = "", .left = true, .wraps = true },
        { .heading = "first" },
        { .heading = "second" },
        { .heading = "change" },
        { .heading = "ratio", .help = "the second over the first" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, d->text_width);
    integers_row(table, "bytes of weights", d->weight_bytes);
    integers_row(table, "functions", d->functions);
    integers_row(table, "nodes", d->nodes);
    for (size_t i = 0; i < d->n_ops; i++)
        if (d->ops[i].counts[0] != d->ops[i].counts[1]) integers_row(table, d->ops[i].op, d->ops[i].counts);
    tare_report_table_end(out, table);
}

/* ---- layers ---- */

static bool layer_differs(const struct tare_layer_difference *layer) {
    for (int i = 0; i < 2; i++)
        if (!layer->ops[i] || !layer->weights[i]) return true;
    return strcmp(layer->ops[0], layer->ops[1]) != 0 || strcmp(layer->weights[0], layer->weights[1]) != 0;
}

static size_t differing_layers(const struct tare_model_diff *d) {
    size_t count = 0;
    for (size_t i = 0; i < d->n_layers; i++)
        count += layer_differs(&d->layers[i]);
    return count;
}

/* Layers whose weights have other dtypes, as after quantization. */
static size_t retyped_layers(const struct tare_model_diff *d) {
    size_t count = 0;
    for (size_t i = 0; i < d->n_layers; i++)
        count += d->layers[i].ops[0] && d->layers[i].ops[1] && d->layers[i].dtypes[0] != d->layers[i].dtypes[1];
    return count;
}

/* Prints at most `most` rows (0: all); returns their number. */
static size_t layers(struct tare_strbuf *out, enum tare_report_form form, const struct tare_model_diff *d,
                     size_t most) {
    static const struct tare_report_column columns[] = {
        { .heading = "layer", .left = true, .wraps = true },
        { .heading = "first op", .left = true },
        { .heading = "first weight", .left = true },
        { .heading = "second op", .left = true },
        { .heading = "second weight", .left = true },
        { .heading = "ratio", .help = "bytes of the second weight over the first" },
        { .heading = "SQNR dB", .help = "of the second weight, each output channel scaled to fit the first" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    size_t shown = 0;
    tare_report_table_fit(table, d->text_width);
    tare_report_table_explain(table);
    for (size_t i = 0; i < d->n_layers && !(most && shown == most); i++) {
        const struct tare_layer_difference *layer = &d->layers[i];
        if (!layer_differs(layer)) continue;
        tare_report_table_row(table);
        tare_report_table_text(table, layer->name);
        for (int side = 0; side < 2; side++) {
            tare_report_table_text(table, layer->ops[side]);
            tare_report_table_text(table, layer->weights[side]);
        }
        tare_report_table_number(table, "%.3g",
                                 layer->bytes[0] && layer->bytes[1] ? (double)layer->bytes[1] / (double)layer->bytes[0]
                                                                    : NAN);
        if (!isnan(layer->sqnr_db)) tare_report_table_db(table, layer->sqnr_db);
        shown++;
    }
    tare_report_table_end(out, table);
    return shown;
}

static void signatures(struct tare_strbuf *out, enum tare_report_form form, const struct tare_model_diff *d) {
    static const struct tare_report_column columns[] = {
        { .heading = "signature", .left = true, .wraps = true },
        { .heading = "first", .left = true, .wraps = true },
        { .heading = "second", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, d->text_width);
    for (size_t i = 0; i < d->n_signatures; i++) {
        tare_report_table_row(table);
        tare_report_table_text(table, d->signatures[i].name);
        tare_report_table_text(table, d->signatures[i].texts[0]);
        tare_report_table_text(table, d->signatures[i].texts[1]);
    }
    tare_report_table_end(out, table);
}

static void weight_row(struct tare_report_table *table, const struct tare_weight_difference *w) {
    tare_report_table_row(table);
    tare_report_table_text(table, w->name);
    tare_report_table_text(table, change_names[w->change]);
    tare_report_table_text(table, w->types[0]);
    tare_report_table_text(table, w->types[1]);
    if (isnan(w->max_abs)) return;
    tare_report_table_number(table, "%.4g", w->max_abs);
    tare_report_table_db(table, w->sqnr_db);
}

static size_t differing_weights(const struct tare_model_diff *d) {
    size_t count = 0;
    for (size_t i = 0; i < d->n_weights; i++)
        count += d->weights[i].change != TARE_WEIGHT_SAME;
    return count;
}

/* Prints at most `most` rows (0: all); returns their number. */
static size_t weights(struct tare_strbuf *out, enum tare_report_form form, const struct tare_model_diff *d,
                      size_t most) {
    static const struct tare_report_column columns[] = {
        { .heading = "weight", .left = true, .wraps = true },
        { .heading = "change", .left = true },
        { .heading = "first", .left = true },
        { .heading = "second", .left = true },
        { .heading = "max error", .help = "greatest difference of the second from the first" },
        { .heading = "SQNR dB", .help = "square of the first over that of the difference" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, d->text_width);
    size_t shown = 0;
    for (size_t i = 0; i < d->n_weights && !(most && shown == most); i++) {
        if (d->weights[i].change == TARE_WEIGHT_SAME) continue;
        weight_row(table, &d->weights[i]);
        shown++;
    }
    tare_report_table_end(out, table);
    return shown;
}

static size_t numbers(struct tare_strbuf *out, enum tare_report_form form, const struct tare_model_diff *d,
                      size_t most) {
    static const struct tare_report_column columns[] = {
        { .heading = "scale, zero point or other number", .left = true, .wraps = true },
        { .heading = "first" },
        { .heading = "second" },
        { .heading = "times" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, d->text_width);
    const size_t shown = most && most < d->n_numbers ? most : d->n_numbers;
    for (size_t i = 0; i < shown; i++) {
        const struct tare_number_difference *n = &d->numbers[i];
        tare_report_table_row(table);
        tare_report_table_text(table, n->name);
        for (int side = 0; side < 2; side++) {
            if (n->integers[side])
                tare_report_table_text(table, n->integers[side]);
            else
                tare_report_table_number(table, "%.7g", n->values[side]);
        }
        tare_report_table_number(table, "%.7g", n->values[0] != 0 ? n->values[1] / n->values[0] : NAN);
    }
    tare_report_table_end(out, table);
    return shown;
}

/* ---- sentences ---- */

static void put_changes(struct tare_strbuf *out, const struct tare_model_diff *d, size_t differing) {
    const struct tare_layer_difference *worst = NULL;
    const size_t retyped = retyped_layers(d);
    for (size_t i = 0; i < d->n_layers; i++)
        if (!isnan(d->layers[i].sqnr_db) && (!worst || d->layers[i].sqnr_db < worst->sqnr_db)) worst = &d->layers[i];
    if (!retyped)
        tare_strbuf_printf(out, "%zu of %zu weights differ, and %zu scales or other numbers.", differing, d->n_weights,
                           d->n_numbers);
    else
        tare_strbuf_printf(out, "%zu of %zu layers have weights of another dtype", retyped, d->n_layers);
    if (retyped && worst && isfinite(worst->sqnr_db))
        tare_strbuf_printf(out, "; the least exact is %s (SQNR %.1f dB).", worst->name, worst->sqnr_db);
    else if (retyped)
        tare_strbuf_putc(out, '.');
}

static void put_weight_sizes(struct tare_strbuf *out, const struct tare_model_diff *d) {
    if (d->weight_bytes[0] > 0)
        tare_strbuf_printf(out, "The weights take %.3f MB in the first model and %.3f MB in the second: %.0f %%.",
                           (double)d->weight_bytes[0] / 1e6, (double)d->weight_bytes[1] / 1e6,
                           100 * (double)d->weight_bytes[1] / (double)d->weight_bytes[0]);
}

/* ---- text ---- */

static void put_more(struct tare_strbuf *out, size_t shown, size_t all) {
    if (shown < all) tare_strbuf_printf(out, "… and %zu more (--all shows them)\n", all - shown);
}

void tare_model_diff_text(struct tare_strbuf *out, const struct tare_model_diff *d, size_t most) {
    const size_t differing = differing_weights(d);
    tare_strbuf_printf(out, "first   %s\nsecond  %s\n\n", d->names[0], d->names[1]);
    if (tare_model_diff_is_empty(d)) {
        tare_strbuf_puts(out, "Ops, weights and signatures are the same.\n");
        return;
    }
    put_changes(out, d, differing);
    tare_strbuf_putc(out, '\n');
    put_weight_sizes(out, d);
    tare_strbuf_puts(out, d->n_signatures ? "\nSignatures differ.\n\n" : "\n\n");
    sizes(out, TARE_IN_TEXT, d);
    if (d->n_signatures) tare_strbuf_putc(out, '\n');
    signatures(out, TARE_IN_TEXT, d);
    if (differing_layers(d)) {
        tare_strbuf_printf(out, "\n%zu of %zu layers differ\n", differing_layers(d), d->n_layers);
        put_more(out, layers(out, TARE_IN_TEXT, d, most), differing_layers(d));
    }
    tare_strbuf_printf(out, "\n%zu of %zu weights differ\n", differing, d->n_weights);
    put_more(out, weights(out, TARE_IN_TEXT, d, most), differing);
    if (d->n_numbers) tare_strbuf_printf(out, "\n%zu numbers differ\n", d->n_numbers);
    put_more(out, numbers(out, TARE_IN_TEXT, d, most), d->n_numbers);
}

/* ---- page ---- */

enum { MOST_IN_PAGE = 2000 }; /* rows of a table that a browser lays out without a delay */

static void page_more(struct tare_strbuf *out, size_t shown, size_t all) {
    if (shown < all)
        tare_page_element(out, "p", "soft", "… and %zu more; tare diff --all --json has them all.", all - shown);
}

/* Other dtypes are what quantization does; other values of the same dtype deserve a look. */
static void put_summary(struct tare_strbuf *out, const struct tare_model_diff *d, size_t differing) {
    struct tare_strbuf text = { 0 };
    put_changes(&text, d, differing);
    if (retyped_layers(d))
        tare_page_element(out, "p", NULL, "%s", tare_strbuf_text(&text));
    else
        tare_page_note(out, "warning", "%s", tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    if (d->n_signatures) tare_page_note(out, "warning", "Signatures differ.");
    put_weight_sizes(&text, d);
    if (text.size) tare_page_element(out, "p", NULL, "%s", tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

void tare_model_diff_html(struct tare_strbuf *out, const struct tare_model_diff *d) {
    const size_t differing = differing_weights(d);
    tare_page_begin(out, "Two models side by side", NULL);
    tare_page_sides(out, d->names[0], d->names[1]);
    if (tare_model_diff_is_empty(d)) {
        tare_page_note(out, "good", "Ops, weights and signatures are the same.");
        tare_page_end(out);
        return;
    }
    put_summary(out, d, differing);
    tare_page_heading(out, "Sizes and ops");
    sizes(out, TARE_IN_PAGE, d);
    if (differing_layers(d)) tare_page_heading(out, "Layers");
    page_more(out, layers(out, TARE_IN_PAGE, d, MOST_IN_PAGE), differing_layers(d));
    if (d->n_signatures) tare_page_heading(out, "Signatures");
    signatures(out, TARE_IN_PAGE, d);
    if (differing) tare_page_heading(out, "Weights");
    page_more(out, weights(out, TARE_IN_PAGE, d, MOST_IN_PAGE), differing);
    if (d->n_numbers) tare_page_heading(out, "Scales, zero points and other numbers");
    page_more(out, numbers(out, TARE_IN_PAGE, d, MOST_IN_PAGE), d->n_numbers);
    tare_page_end(out);
}

/* ---- JSON ---- */

static json_t *weight_json(const struct tare_weight_difference *w) {
    json_t *object = json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "name", tare_json_text(w->name), "change",
                               tare_json_text(change_names[w->change]), "first", tare_json_text(w->types[0]), "second",
                               tare_json_text(w->types[1]), "first_bytes", (json_int_t)w->bytes[0], "second_bytes",
                               (json_int_t)w->bytes[1]);
    if (!isnan(w->max_abs)) json_object_set_new(object, "max_abs_error", json_real(w->max_abs));
    if (isfinite(w->sqnr_db)) json_object_set_new(object, "sqnr_db", json_real(w->sqnr_db));
    return object;
}

tare_status tare_model_diff_json(struct tare_strbuf *out, const struct tare_model_diff *d) {
    json_t *ops = json_array(), *texts = json_array(), *values = json_array(), *scalars = json_array();
    json_t *layer_list = json_array(), *root;
    for (size_t i = 0; i < d->n_ops; i++)
        json_array_append_new(ops,
                              json_pack("{s:o, s:I, s:I}", "op", tare_json_text(d->ops[i].op), "first",
                                        (json_int_t)d->ops[i].counts[0], "second", (json_int_t)d->ops[i].counts[1]));
    for (size_t i = 0; i < d->n_signatures; i++)
        json_array_append_new(texts, json_pack("{s:o, s:o, s:o}", "name", tare_json_text(d->signatures[i].name),
                                               "first", tare_json_text(d->signatures[i].texts[0]), "second",
                                               tare_json_text(d->signatures[i].texts[1])));
    for (size_t i = 0; i < d->n_weights; i++)
        json_array_append_new(values, weight_json(&d->weights[i]));
    for (size_t i = 0; i < d->n_numbers; i++)
        json_array_append_new(scalars, json_pack("{s:o, s:o, s:o}", "name", tare_json_text(d->numbers[i].name), "first",
                                                 tare_json_number(d->numbers[i].values[0]), "second",
                                                 tare_json_number(d->numbers[i].values[1])));
    for (size_t i = 0; i < d->n_layers; i++) {
        const struct tare_layer_difference *l = &d->layers[i];
        json_t *layer =
            json_pack("{s:o, s:[o, o], s:[o, o], s:[I, I]}", "name", tare_json_text(l->name), "ops",
                      tare_json_text(l->ops[0]), tare_json_text(l->ops[1]), "weights", tare_json_text(l->weights[0]),
                      tare_json_text(l->weights[1]), "bytes", (json_int_t)l->bytes[0], (json_int_t)l->bytes[1]);
        if (isfinite(l->sqnr_db)) json_object_set_new(layer, "sqnr_db", json_real(l->sqnr_db));
        json_array_append_new(layer_list, layer);
    }
    root = json_pack("{s:o, s:o, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "first", tare_json_text(d->names[0]),
                     "second", tare_json_text(d->names[1]), "same", tare_model_diff_is_empty(d), "first_weight_bytes",
                     (json_int_t)d->weight_bytes[0], "second_weight_bytes", (json_int_t)d->weight_bytes[1], "ops", ops,
                     "signatures", texts, "layers", layer_list, "weights", values, "numbers", scalars);
    return tare_json_write(out, root);
}
