/* The picture of the network: one line a layer in the order of execution, with lines that connect what is not
 * neighbouring, coloured by the layer's error or time. Opening a line shows what is known of the layer. Without
 * scripts: a line is a <details> element. */
#include "base/alloc.h"
#include "base/format.h"
#include "base/strbuf.h"
#include "base/tensor/float8.h"
#include "eval/report/calibration_report.h"
#include "eval/report/comparison_page.h"
#include "eval/report/page.h"
#include "eval/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LANE = 14,      /* pixels between two lanes */
    MOST_LANES = 9, /* later connections have no line, but are listed where they are read */
    NO_LANE = -1,
    MOST_CHANNELS = 512, /* shown, each the largest of several if there are more */
};

struct picture {
    struct tare_strbuf *out;
    const struct tare_comparison *c;
    const struct tare_network *network;
    const struct tare_sensitivity *sensitivity; /* NULL: not measured */
    int *lane;    /* by unit: the lane of its result; NO_LANE: only the next unit reads it */
    size_t *last; /* by unit: the last unit that reads it */
    int lanes;
    double slowest, total; /* seconds of the slowest unit, and of all ops */
};

/* ---- lanes ---- */

/* A result that is not only read by the next unit has a lane from its unit to its last reader. */
static bool lay_lanes(struct picture *p) {
    const struct tare_network *n = p->network;
    size_t free_from[MOST_LANES] = { 0 };
    p->lane = tare_calloc(n->count + 1, sizeof *p->lane);
    p->last = tare_calloc(n->count + 1, sizeof *p->last);
    if (!p->lane || !p->last) return false;
    for (size_t i = 0; i < n->count; i++)
        for (size_t s = 0; s < n->units[i].n_sources; s++)
            p->last[n->units[i].sources[s]] = i;
    for (size_t i = 0; i < n->count; i++) {
        p->lane[i] = NO_LANE;
        for (int l = 0; p->last[i] > i + 1 && l < MOST_LANES && p->lane[i] == NO_LANE; l++) {
            if (free_from[l] > i) continue;
            p->lane[i] = l;
            free_from[l] = p->last[i] + 1;
            if (l >= p->lanes) p->lanes = l + 1;
        }
    }
    return true;
}

static bool reads(const struct tare_network_unit *unit, size_t source) {
    for (size_t i = 0; i < unit->n_sources; i++)
        if (unit->sources[i] == source) return true;
    return false;
}

static int lane_x(int lane) {
    return 10 + LANE * (lane + 1);
}

/* Lines of the unit's own line, in a box that is stretched to its height: the middle is at 50. */
static void draw_lanes(const struct picture *p, size_t i, const size_t *by_lane) {
    const struct tare_network_unit *units = p->network->units;
    const int width = lane_x(p->lanes);
    tare_strbuf_printf(p->out,
                       "<svg class=\"lanes\" style=\"width:%dpx\" viewBox=\"0 0 %d 100\" "
                       "preserveAspectRatio=\"none\" aria-hidden=\"true\"><path d=\"",
                       width, width);
    if (i > 0 && reads(&units[i], i - 1)) tare_strbuf_puts(p->out, "M10 0V50");
    if (i + 1 < p->network->count && reads(&units[i + 1], i)) tare_strbuf_puts(p->out, "M10 50V100");
    if (p->lane[i] != NO_LANE) tare_strbuf_printf(p->out, "M10 50H%dV100", lane_x(p->lane[i]));
    for (int l = 0; l < p->lanes; l++) {
        const size_t source = by_lane[l];
        if (source >= i || p->lane[source] != l || p->last[source] < i) continue;
        tare_strbuf_printf(p->out, "M%d 0V%d", lane_x(l), p->last[source] > i ? 100 : 50);
        if (reads(&units[i], source)) tare_strbuf_printf(p->out, "M%d 50H10", lane_x(l));
    }
    tare_strbuf_puts(p->out, "\"/></svg>");
}

/* The lines beside an open unit, down to the next one. */
static void draw_passing(const struct picture *p, size_t i, const size_t *by_lane) {
    if (i + 1 < p->network->count && reads(&p->network->units[i + 1], i))
        tare_strbuf_puts(p->out, "<i style=\"left:10px\"></i>");
    for (int l = 0; l < p->lanes; l++) {
        const size_t source = by_lane[l];
        if (source <= i && p->lane[source] == l && p->last[source] > i)
            tare_strbuf_printf(p->out, "<i style=\"left:%dpx\"></i>", lane_x(l));
    }
}

/* ---- figures ---- */

/* How much of a full colour: none from 50 dB, full at 10 dB. */
static double error_share(double db) {
    return isnan(db) ? 0 : fmax(0, fmin(1, (50 - db) / 40));
}

/* What a layer loses. Infinite: nothing. */
static double unit_db(const struct picture *p, const struct tare_network_unit *unit) {
    return unit->layer ? tare_layer_db(p->sensitivity, unit->layer) : INFINITY;
}

static bool has_wide_input(const struct tare_explanation *e) {
    return e->setting.activation_bits == 16;
}

/* "int8", "int4 weights", "16-bit activations": what the layer becomes. */
static void put_method(struct tare_strbuf *out, const struct tare_network_unit *unit) {
    const struct tare_explanation *e = unit->layer;
    if (!e || e->refused) {
        tare_page_element(out, "span", "soft kind", "%s", e ? "float" : "");
        return;
    }
    tare_strbuf_puts(out, "<span class=\"kind\">");
    tare_page_printf(out, "%s %s", e->method, tare_number_format_name(e->setting.format, e->bits));
    if (has_wide_input(e)) tare_page_element(out, "span", "wide", "int16 activations");
    tare_strbuf_puts(out, "</span>");
}

static void put_name(struct tare_strbuf *out, const struct tare_network_unit *unit) {
    const char *prefix = unit->kind == TARE_NETWORK_INPUT    ? "input "
                         : unit->kind == TARE_NETWORK_OUTPUT ? "output "
                                                             : "";
    tare_strbuf_printf(out, "<span class=\"name\" style=\"padding-left:%dpx\">", 16 * unit->depth);
    tare_strbuf_puts(out, prefix);
    tare_page_name(out, unit->node);
    tare_page_element(out, "span", "soft", " %s", unit->op);
    for (size_t i = 0; i < unit->n_followed; i++)
        tare_page_element(out, "span", "soft", " %s%s", i ? "" : "+ ", unit->followed[i]);
    tare_strbuf_puts(out, "</span>");
}

static void put_line(const struct picture *p, size_t i, const size_t *by_lane) {
    const struct tare_network_unit *unit = &p->network->units[i];
    const double db = unit_db(p, unit), time = p->slowest > 0 ? unit->seconds / p->slowest : 0;
    tare_strbuf_puts(p->out, "<summary>");
    draw_lanes(p, i, by_lane);
    tare_strbuf_printf(p->out, "<b class=\"%s\" style=\"--e:%.0f%%;--t:%.0f%%\"></b>",
                       unit->kind == TARE_NETWORK_LAYER ? unit->layer->refused ? "spot float" : "spot" : "spot small",
                       100 * error_share(db), 100 * time);
    tare_strbuf_printf(p->out, "<span class=\"words\" style=\"margin-left:%dpx\">", lane_x(p->lanes));
    put_name(p->out, unit);
    put_method(p->out, unit);
    if (unit->layer && !unit->layer->refused && isfinite(db))
        tare_page_element(p->out, "span", "figure", "%.0f dB", db);
    else
        tare_page_element(p->out, "span", "figure", "%s", unit->layer && !unit->layer->refused ? "exact" : "");
    if (unit->seconds > 0 && p->total > 0)
        tare_page_element(p->out, "span", "figure", "%.0f %%", 100 * unit->seconds / p->total);
    else
        tare_page_element(p->out, "span", "figure", "%s", "");
    tare_strbuf_puts(p->out, "</span></summary>\n");
}

/* ---- an open unit ---- */

static void fact(struct tare_strbuf *out, const char *name, const char *format, ...) TARE_PRINTF(3, 4);
static void fact(struct tare_strbuf *out, const char *name, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    tare_format_va(text, sizeof text, format, args);
    va_end(args);
    tare_page_element(out, "dt", NULL, "%s", name);
    tare_page_element(out, "dd", NULL, "%s", text);
}

static void put_sources(const struct picture *p, const struct tare_network_unit *unit) {
    if (!unit->n_sources) return;
    tare_page_element(p->out, "dt", NULL, "reads");
    tare_strbuf_puts(p->out, "<dd>");
    for (size_t i = 0; i < unit->n_sources; i++) {
        tare_strbuf_printf(p->out, "%s<a href=\"#unit-%zu\">", i ? ", " : "", unit->sources[i]);
        tare_page_text(p->out, p->network->units[unit->sources[i]].node);
        tare_strbuf_puts(p->out, "</a>");
    }
    tare_strbuf_puts(p->out, "</dd>\n");
}

/* The largest magnitude that each channel's scale represents, as a share of the widest channel's. */
static void draw_channels(const struct picture *p, const struct tare_explanation *e) {
    struct tare_plot plot = { .x_low = 0, .x_high = 1, .y_low = 0, .y_high = 1, .height = 56, .bare = true };
    double heights[MOST_CHANNELS] = { 0 }, widest = 0, narrowest = INFINITY;
    const int64_t step = (e->n_weight_scales + MOST_CHANNELS - 1) / MOST_CHANNELS;
    const size_t count = step ? (size_t)((e->n_weight_scales + step - 1) / step) : 0;
    const struct tare_float8 *float8 = tare_number_format_float8(e->setting.format);
    const double largest = float8 ? float8->largest : e->bits == 4 ? 7 : 127;
    if (e->setting.granularity != TARE_PER_CHANNEL || e->n_weight_scales < 2) return;
    for (int64_t i = 0; i < e->n_weight_scales; i++) {
        const double range = fabs(e->weight_scales[i]) * largest;
        heights[i / step] = fmax(heights[i / step], range);
        widest = fmax(widest, range);
        narrowest = fmin(narrowest, range);
    }
    for (size_t i = 0; i < count && widest > 0; i++)
        heights[i] /= widest;
    fact(p->out, "weight channels", "%lld, ranges from ±%.3g to ±%.3g", (long long)e->n_weight_scales, narrowest,
         widest);
    tare_strbuf_puts(p->out, "<dd class=\"channels\">");
    tare_plot_begin(p->out, &plot, "range of each channel of the weight, as a share of the widest");
    tare_plot_columns(p->out, &plot, 0, 1, heights, count);
    tare_plot_letters(p->out);
    tare_plot_end(p->out);
    tare_strbuf_puts(p->out, "</dd>\n");
}

static void put_activation(const struct picture *p, const struct tare_explanation *e) {
    struct tare_strbuf id = { 0 };
    if (e->input.scale > 0)
        fact(p->out, "activation", "%d to %d, scale %.4g, zero point %d", (int)e->input.qmin, (int)e->input.qmax,
             e->input.scale, e->input.zero_point);
    if (e->has_input)
        fact(p->out, "activation on its grid", "%.1f dB, %.2g %% clipped, %d integers unused", e->input_sqnr_db,
             100 * e->clipped, e->unused_codes);
    if (!e->input_node || !p->c->calibration) return;
    tare_calibration_report_put_id(&id, e->function, e->input_node, e->input_output);
    tare_page_element(p->out, "dt", NULL, "histogram");
    tare_strbuf_puts(p->out, "<dd><a href=\"#");
    tare_page_id(p->out, tare_strbuf_text(&id));
    tare_strbuf_puts(p->out, "\">");
    tare_page_text(p->out, e->input_node);
    tare_strbuf_puts(p->out, "</a></dd>\n");
    p->out->failed |= id.failed;
    tare_strbuf_free(&id);
}

static void put_sensitivity(const struct picture *p, const struct tare_explanation *e) {
    const struct tare_sensitive_layer *layer = tare_sensitivity_find(p->sensitivity, e);
    if (!layer) return;
    fact(p->out, "this layer alone quantized", "%.1f dB at the output", layer->alone.sqnr_db);
    if (!isnan(layer->restored.sqnr_db))
        fact(p->out, "all but this layer", "%.1f dB at the output", layer->restored.sqnr_db);
}

static void put_layer(const struct picture *p, const struct tare_explanation *e) {
    if (e->refused) {
        fact(p->out, "stays float", "%s", e->refused);
        return;
    }
    put_activation(p, e);
    if (e->weight_elements)
        fact(p->out, "weight", "%lld values of %d bits, %.1f dB", (long long)e->weight_elements, e->bits,
             e->weight_sqnr_db);
    draw_channels(p, e);
    put_sensitivity(p, e);
    if (e->remedy) fact(p->out, "remedy", "%s", e->remedy);
}

static void put_unit(const struct picture *p, size_t i, const size_t *by_lane) {
    const struct tare_network_unit *unit = &p->network->units[i];
    tare_strbuf_printf(p->out, "<details class=\"unit\" id=\"unit-%zu\">", i);
    put_line(p, i, by_lane);
    tare_strbuf_printf(p->out, "<div class=\"inside\" style=\"padding-left:%dpx\">", lane_x(p->lanes) + 10);
    draw_passing(p, i, by_lane);
    tare_strbuf_puts(p->out, "<dl>\n");
    if (*unit->function) fact(p->out, "function", "%s", unit->function);
    put_sources(p, unit);
    if (unit->layer) put_layer(p, unit->layer);
    if (unit->seconds > 0)
        fact(p->out, "estimated time", "%.2g µs, %.0f %% of the model", 1e6 * unit->seconds,
             p->total > 0 ? 100 * unit->seconds / p->total : 0);
    tare_strbuf_puts(p->out, "</dl></div></details>\n");
}

/* ---- the section ---- */

static void put_legend(const struct picture *p) {
    tare_strbuf_puts(p->out, "<p class=\"legend\">Colour by <label><input type=\"radio\" name=\"heat\" checked> error"
                             "</label> <label><input type=\"radio\" name=\"heat\" class=\"by-time\"> time</label> "
                             "<span class=\"scale\" aria-hidden=\"true\"></span> low to high</p>\n");
    tare_page_element(
        p->out, "p", "soft small",
        "Layers of %s in the order of execution; lines lead to what reads a result later. An empty circle "
        "stays float. Error: %s. Time: share of the estimate for a %s. Open a line for the rest.",
        p->c->slowest_of ? p->c->slowest_of : "the first method",
        p->sensitivity ? "SQNR at the output with this layer alone quantized"
                       : "SQNR of input and weight on their grids, by the calibration",
        tare_comparison_chip_name(p->c));
    if (p->network->cut)
        tare_page_note(p->out, "warning", "The model has more layers; these are the first %zu.", p->network->count);
}

void tare_comparison_network(struct tare_strbuf *out, const struct tare_comparison *c) {
    struct picture p = {
        .out = out, .c = c, .network = &c->network, .sensitivity = c->sensitivity, .total = c->slowest_total
    };
    size_t by_lane[MOST_LANES] = { 0 }; /* the unit whose result has it, or had it last */
    if (!c->network.count) return;
    if (lay_lanes(&p)) {
        for (size_t i = 0; i < c->network.count; i++)
            p.slowest = fmax(p.slowest, c->network.units[i].seconds);
        tare_page_heading(out, "Network");
        tare_strbuf_puts(out, "<section class=\"network\">\n");
        put_legend(&p);
        for (size_t i = 0; i < c->network.count; i++) {
            if (p.lane[i] != NO_LANE) by_lane[p.lane[i]] = i;
            put_unit(&p, i, by_lane);
        }
        tare_strbuf_puts(out, "</section>\n");
    } else {
        out->failed = true;
    }
    tare_free(p.lane);
    tare_free(p.last);
}
