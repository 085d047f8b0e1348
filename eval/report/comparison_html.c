/* The comparison as one HTML page: recommendation, accuracy against cost, accuracy and cost of every model, the slowest
 * ops, the layers with their error, activation histograms, and the provenance of the figures. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "eval/report/calibration_report.h"
#include "eval/comparison.h"
#include "eval/report/comparison_columns.h"
#include "eval/report/comparison_page.h"
#include "eval/report/page.h"
#include "eval/sensitivity.h"
#include "eval/verdict.h"
#include "tpu/chips.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

static void text_cell(struct tare_page_table *table, const char *text) {
    if (text)
        tare_page_table_cell(table, "%s", text);
    else
        tare_page_table_skip(table);
}

static void costs(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_page_heading(out, "Cost");
    tare_page_element(
        out, "p", "soft small",
        "Times are estimates for a Cloud TPU %s chip, batch %lld, with the whole signature on it: ops are "
        "fused as its compiler does, with cycles fitted to the compiler's estimates of other networks.",
        tare_comparison_chip_name(c), (long long)tare_comparison_chip_batch(c));
    if (c->compiler)
        tare_page_element(out, "p", "soft small", "Cycles are those of a batch there, as %s compiles the model for it.",
                          c->compiler);
    if (tare_tpu_chips[c->chip].unsourced)
        tare_page_element(out, "p", "soft small", "Figures of the chip that %s does not state: %s.",
                          tare_tpu_chips[c->chip].source, tare_tpu_chips[c->chip].unsourced);
    tare_comparison_put(out, TARE_IN_PAGE, c, TARE_COST_COLUMNS, 0);
}

/* Three digits, without an exponent. */
static void number_cell(struct tare_page_table *table, double value) {
    tare_page_table_cell(table, value < 999.5 ? "%.3g" : "%.0f", value);
}

static void slowest(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = {
        { .heading = "op", .left = true, .wraps = true },
        { .heading = "kind", .left = true },
        { .heading = "share of the time", .left = true, .help = "of the estimated time of the whole model" },
        { .heading = "µs" },
        { .heading = "million MACs" },
        { .heading = "traffic MB" },
        { .heading = "limited by", .left = true },
        { 0 },
    };
    struct tare_page_table table;
    if (!c->n_costs || !(c->slowest_total > 0)) return;
    tare_page_heading(out, "Slowest ops of %s", c->slowest_of);
    tare_page_element(out, "p", "soft small",
                      "Estimated for a %s chip, not measured. An op includes the ops fused into it.",
                      tare_comparison_chip_name(c));
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->n_costs && i < TARE_SLOWEST_OPS; i++) {
        const struct tare_comparison_op *op = &c->costs[i];
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", op->node);
        tare_page_table_cell(&table, "%s", op->op);
        tare_page_table_bar_cell(&table, op->seconds / c->costs[0].seconds, "%.1f %%",
                                 100 * op->seconds / c->slowest_total);
        number_cell(&table, 1e6 * op->seconds);
        number_cell(&table, op->macs / 1e6);
        number_cell(&table, op->bytes / 1e6);
        tare_page_table_cell(&table, "%s", op->compute_bound ? "arithmetic" : "memory");
    }
    tare_page_table_end(&table);
}

/* ---- layers ---- */

/* The bar is the noise in decibels above that of a layer with 60 dB, which is negligible. */
static void layer_cell(struct tare_page_table *table, const struct tare_explanation *e) {
    const double db = tare_explanation_db(e);
    if (e->refused)
        tare_page_table_cell(table, "float");
    else if (isinf(db))
        tare_page_table_cell(table, "exact");
    else
        tare_page_table_bar_cell(table, fmax(0, fmin(1, (60 - db) / 60)), "%.1f dB", db);
}

/* The layer's name, with a link to the card of its activation where the page has one. */
static void layer_name_cell(struct tare_page_table *table, const struct tare_explanation *e, bool linked) {
    struct tare_strbuf id = { 0 };
    if (!linked || !e->input_node) {
        tare_page_table_cell(table, "%s", e->node);
        return;
    }
    tare_calibration_report_put_id(&id, e->function, e->input_node, e->input_output);
    tare_page_table_link_cell(table, tare_strbuf_text(&id), "%s", e->node);
    table->out->failed |= id.failed;
    tare_strbuf_free(&id);
}

static void explanation_row(struct tare_page_table *table, const struct tare_explanation *e, bool linked) {
    double error = e->rounding_mse + e->clipping_mse;
    tare_page_table_row(table);
    layer_name_cell(table, e, linked);
    tare_page_table_cell(table, "%s", e->op);
    layer_cell(table, e);
    if (e->refused)
        tare_page_table_cell(table, "stays float: %s", e->refused);
    else
        text_cell(table, e->remedy);
    if (e->has_input) {
        tare_page_table_cell(table, "%.4g", e->input.scale);
        tare_page_table_cell(table, "%d", e->input.zero_point);
        tare_page_table_cell(table, "%.1f", e->input_sqnr_db);
        tare_page_table_cell(table, "%.0f %%", error > 0 ? 100 * e->clipping_mse / error : 0);
        tare_page_table_cell(table, "%d", e->unused_codes);
    } else {
        for (int i = 0; i < 5; i++)
            tare_page_table_skip(table);
    }
    if (e->weight_elements) {
        tare_page_table_cell(table, "%.1f", e->weight_sqnr_db);
        tare_page_table_cell(table, "%.1f", e->spread);
    } else {
        tare_page_table_skip(table);
        tare_page_table_skip(table);
    }
}

/* ---- the order of the layers ---- */

struct shown_layer {
    const struct tare_explanation *layer; /* explanations in the order of the model */
    size_t place;                         /* among the measured layers; after all of them: not measured */
    double db;
};

static int compare_names(const struct tare_sensitive_layer *layer, const char *function, const char *node) {
    const int order = strcmp(layer->function, function);
    return order ? order : strcmp(layer->node, node);
}

/* Layers of one name, which are steps of a search, in the order of their sensitivity. */
static int by_name(const void *a, const void *b) {
    const struct tare_sensitive_layer *const *x = a, *const *y = b;
    const int order = compare_names(*x, (*y)->function, (*y)->node);
    return order ? order : (*x > *y) - (*x < *y);
}

static int by_place(const void *a, const void *b) {
    const struct shown_layer *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->db != y->db) return x->db < y->db ? -1 : 1;
    return (x->layer > y->layer) - (x->layer < y->layer);
}

/* The place of the first of the measured layers with the name; their number if there is none. */
static size_t place_of(const struct tare_sensitivity *s, const struct tare_sensitive_layer *const *named,
                       const struct tare_explanation *e) {
    size_t low = 0, high = s->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_names(named[middle], e->function, e->node) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && compare_names(named[low], e->function, e->node) == 0 ? (size_t)(named[low] - s->layers)
                                                                                  : s->count;
}

/* The measured layers in the order of their sensitivity, then the others, the noisiest first. NULL: no memory. */
static struct shown_layer *order_layers(const struct tare_comparison *c) {
    static const struct tare_sensitivity none = { 0 };
    const struct tare_sensitivity *s = c->sensitivity ? c->sensitivity : &none;
    const size_t count = c->explanations.count;
    struct shown_layer *shown = tare_calloc(count + 1, sizeof *shown);
    const struct tare_sensitive_layer **named = tare_calloc(s->count + 1, sizeof *named);
    const bool is_complete = shown && named;
    if (is_complete) {
        for (size_t i = 0; i < s->count; i++)
            named[i] = &s->layers[i];
        qsort(named, s->count, sizeof *named, by_name);
        for (size_t i = 0; i < count; i++) {
            const struct tare_explanation *e = &c->explanations.items[i];
            shown[i] = (struct shown_layer){ e, place_of(s, named, e), tare_explanation_db(e) };
        }
        qsort(shown, count, sizeof *shown, by_place);
    }
    if (!is_complete) tare_free(shown);
    tare_free(named);
    return is_complete ? shown : NULL;
}

static void explanations(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = {
        { .heading = "layer", .left = true, .wraps = true },
        { .heading = "op", .left = true },
        { .heading = "own noise",
          .left = true,
          .help = "SQNR of input and weight on their grids, by the calibration; a longer bar is worse" },
        { .heading = "remedy", .left = true, .wraps = true },
        { .heading = "scale", .help = "of the activation" },
        { .heading = "zero point" },
        { .heading = "input dB", .help = "SQNR of the activation on its grid, by the calibration" },
        { .heading = "clipping", .help = "share of the activation error due to clipping; the rest is rounding" },
        { .heading = "unused", .help = "grid integers that no value rounds to" },
        { .heading = "weight dB", .help = "SQNR of the weight" },
        { .heading = "spread", .help = "largest magnitude of a weight channel divided by the median" },
        { 0 },
    };
    struct tare_page_table table;
    struct shown_layer *shown = c->explanations.count ? order_layers(c) : NULL;
    if (!shown) return;
    tare_page_heading(out, "Layers of %s", c->slowest_of ? c->slowest_of : "the first method");
    tare_page_element(out, "p", "soft small", "%s Links lead to the activation of the layer.",
                      c->sensitivity
                          ? "Ordered by the measured sensitivity."
                          : "Ordered by their own noise, the worst first; --sensitivity measures the effect on "
                            "the output.");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->explanations.count; i++)
        explanation_row(&table, shown[i].layer, c->calibration != NULL);
    tare_page_table_end(&table);
    tare_free(shown);
}

/* ---- sensitivity ---- */

static void sensitivity(struct tare_strbuf *out, const struct tare_sensitivity *s) {
    tare_page_heading(out, "Sensitivity to %s", s->method);
    tare_page_element(out, "p", "soft",
                      "Measured on %lld records: %.2f dB with all %zu layers quantized. A longer bar is worse.",
                      (long long)s->records, s->all.sqnr_db, s->count);
    tare_sensitivity_layers(out, TARE_IN_PAGE, s, 0);
}

/* ---- examples whose class changed ---- */

static void put_picture(struct tare_page_table *table, const struct tare_changed_example *e) {
    if (e->picture)
        tare_page_table_picture_cell(table, e->picture, e->picture_width, e->picture_height);
    else
        tare_page_table_skip(table);
}

static void changed_row(struct tare_page_table *table, const struct tare_changed_example *e, bool pictures) {
    const double margins[] = { e->from_margin, e->margin };
    tare_page_table_row(table);
    if (e->row)
        tare_page_table_cell(table, "%lld, row %lld", (long long)e->record, (long long)e->row);
    else
        tare_page_table_cell(table, "%lld", (long long)e->record);
    if (pictures) put_picture(table, e);
    if (e->label >= 0)
        tare_page_table_cell(table, "%lld", (long long)e->label);
    else
        tare_page_table_skip(table);
    tare_page_table_cell(table, "%lld", (long long)e->from);
    tare_page_table_cell(table, "%lld%s", (long long)e->to, e->to == e->label ? " (right)" : "");
    for (size_t i = 0; i < 2; i++) {
        if (isnan(margins[i]))
            tare_page_table_skip(table);
        else
            tare_page_table_cell(table, "%.3g", margins[i]);
    }
}

static void changed_table(struct tare_strbuf *out, const struct tare_changed *changed) {
    static const struct tare_page_column columns[] = {
        { .heading = "record", .left = true },
        { .heading = "input", .left = true },
        { .heading = "label" },
        { .heading = "class of float" },
        { .heading = "class of this model" },
        { .heading = "margin of float", .help = "score of its class less that of the next one" },
        { .heading = "margin of this model" },
        { 0 },
    };
    struct tare_page_column without[sizeof columns / sizeof *columns];
    const bool pictures = changed->examples[0].picture != NULL;
    struct tare_page_table table;
    without[0] = columns[0];
    memcpy(without + 1, columns + 2, sizeof columns - 2 * sizeof *columns);
    tare_page_table_begin(&table, out, pictures ? columns : without);
    for (size_t i = 0; i < changed->count; i++)
        changed_row(&table, &changed->examples[i], pictures);
    tare_page_table_end(&table);
}

/* One folded table a model. */
static void changed(struct tare_strbuf *out, const struct tare_comparison *c) {
    const size_t output = tare_measured_output(c);
    const struct tare_comparison_row *recommended = tare_verdict_of(c).row;
    bool has_heading = false;
    for (size_t r = 1; r < c->n_rows; r++) {
        const struct tare_changed *of_row = c->rows[r].changed ? &c->rows[r].changed[output] : NULL;
        struct tare_strbuf name = { 0 };
        if (!of_row || !of_row->count) continue;
        if (!has_heading) {
            tare_page_heading(out, "Records that change their answer");
            tare_page_element(out, "p", "soft small",
                              "Those that the float model decides most clearly come first, at most %d of each model. "
                              "Records are counted from 0.",
                              TARE_CHANGED_KEPT);
        }
        has_heading = true;
        tare_comparison_put_name(&name, &c->rows[r]);
        tare_strbuf_printf(&name, ": %lld of %lld%s", (long long)of_row->total,
                           (long long)c->rows[r].outputs[output].ranked,
                           &c->rows[r] == recommended ? " (recommended)" : "");
        tare_page_folded_begin(out, tare_strbuf_text(&name), tare_strbuf_text(&name), false);
        changed_table(out, of_row);
        tare_page_folded_end(out);
        out->failed |= name.failed;
        tare_strbuf_free(&name);
    }
}

/* ---- the rest ---- */

enum { MOST_HISTOGRAMS = 60 };

static void histograms(struct tare_strbuf *out, const struct tare_comparison *c) {
    struct tare_calibration_report_options options = { 0 };
    struct tare_calibration_report report;
    if (!c->calibration) return;
    if (tare_calibration_report_make(&report, c->calibration, c->model, &options) == TARE_OK) {
        tare_page_heading(out, "Activations");
        if (report.n_tensors > MOST_HISTOGRAMS)
            tare_page_element(out, "p", "soft", "The first %d of %zu tensors; tare show prints all.", MOST_HISTOGRAMS,
                              report.n_tensors);
        if (report.n_tensors > MOST_HISTOGRAMS) report.n_tensors = MOST_HISTOGRAMS;
        tare_calibration_report_histograms(out, &report);
    } else {
        tare_error_clear();
    }
    tare_calibration_report_free(&report);
}

static void manifest(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = { { .heading = "", .left = true, .wraps = true },
                                                       { .heading = "", .left = true, .wraps = true },
                                                       { 0 } };
    struct tare_page_table table;
    if (!c->n_manifest) return;
    tare_page_heading(out, "Provenance");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->n_manifest; i++) {
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", c->manifest[i].name);
        tare_page_table_cell(&table, "%s", c->manifest[i].value);
    }
    for (size_t r = 0; r < c->n_rows; r++) {
        struct tare_strbuf name = { 0 };
        tare_comparison_put_name(&name, &c->rows[r]);
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "hash of the outputs of %s", tare_strbuf_text(&name));
        tare_page_table_cell(&table, "%s", c->rows[r].answers);
        tare_strbuf_free(&name);
    }
    tare_page_table_end(&table);
}

/* What builds each model. */
static void commands(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = { { .heading = "model", .left = true, .wraps = true },
                                                       { .heading = "command", .left = true, .wraps = true },
                                                       { 0 } };
    struct tare_page_table table;
    tare_page_heading(out, "Commands");
    tare_page_table_begin(&table, out, columns);
    for (size_t r = 0; r < c->n_rows; r++) {
        const char *const texts[] = { c->rows[r].quantize, c->rows[r].convert };
        struct tare_strbuf name = { 0 };
        tare_comparison_put_name(&name, &c->rows[r]);
        for (size_t i = 0; i < 2; i++) {
            if (!texts[i]) continue;
            tare_page_table_row(&table);
            tare_page_table_cell(&table, "%s", tare_strbuf_text(&name));
            tare_page_table_command_cell(&table, texts[i]);
        }
        tare_strbuf_free(&name);
    }
    tare_page_table_end(&table);
}

static void verdict(struct tare_strbuf *out, const struct tare_comparison *c) {
    struct tare_strbuf text = { 0 };
    if (c->n_rows < 2) return;
    tare_verdict_put(&text, c);
    tare_page_note(out, tare_verdict_is_good(c) ? "good" : "warning", "%s.", tare_strbuf_text(&text));
    if (c->next) tare_page_command(out, "Next: ", c->next);
    out->failed |= text.failed;
    tare_strbuf_free(&text);
}

static void skipped(struct tare_strbuf *out, const struct tare_comparison *c) {
    static const struct tare_page_column columns[] = {
        { .heading = "model", .left = true, .wraps = true },
        { .heading = "reason", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_page_table table;
    if (!c->n_skipped) return;
    tare_page_heading(out, "Not measured");
    tare_page_table_begin(&table, out, columns);
    for (size_t i = 0; i < c->n_skipped; i++) {
        const struct tare_comparison_skipped *s = &c->skipped[i];
        struct tare_strbuf name = { 0 };
        tare_comparison_put_skipped(&name, s);
        tare_page_table_row(&table);
        tare_page_table_cell(&table, "%s", tare_strbuf_text(&name));
        tare_page_table_cell(&table, "%s", s->reason);
        out->failed |= name.failed;
        tare_strbuf_free(&name);
    }
    tare_page_table_end(&table);
}

/* The last part of the path, or the last two if the last one is a usual name: saved_model, 1. */
static const char *title_of(const char *path) {
    const char *last = strrchr(path, '/'), *before;
    if (!last || !last[1]) return path;
    for (before = last; before > path && before[-1] != '/';)
        before--;
    return strcmp(last + 1, "saved_model") == 0 || !last[1 + strspn(last + 1, "0123456789")] ? before : last + 1;
}

void tare_comparison_html(struct tare_strbuf *out, const struct tare_comparison *c) {
    tare_page_begin(out, "Comparison of", title_of(c->model));
    tare_page_element(out, "p", "soft", "The float model and %zu other model%s on the same %lld records, signature %s.",
                      c->n_rows - 1, c->n_rows == 2 ? "" : "s", (long long)c->records, c->signature);
    verdict(out, c);
    tare_page_warnings(out, &c->warnings);
    tare_comparison_draw(out, c);
    for (size_t i = 0; i < c->n_outputs; i++) {
        tare_page_heading(out, "Accuracy at output %s", c->output_keys[i]);
        tare_comparison_put(out, TARE_IN_PAGE, c, TARE_MODEL_COLUMNS, i);
    }
    changed(out, c);
    skipped(out, c);
    costs(out, c);
    tare_comparison_network(out, c);
    slowest(out, c);
    if (c->sensitivity) sensitivity(out, c->sensitivity);
    explanations(out, c);
    histograms(out, c);
    commands(out, c);
    manifest(out, c);
    tare_page_end(out);
}
