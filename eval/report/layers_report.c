/* The layers of a quantization as a table and as JSON. */
#include "base/strbuf.h"
#include "base/format.h"
#include "base/text_table.h"
#include "eval/explain.h"
#include "eval/report/json_text.h"
#include "quant/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- table ---- */

static const struct tare_text_table_column columns[] = {
    { .heading = "layer", .left = true },
    { .heading = "op", .left = true },
    { .heading = "method", .left = true },
    { .heading = "scale" },
    { .heading = "zero point" },
    { .heading = "input dB" },
    { .heading = "rounding" },
    { .heading = "clipping" },
    { .heading = "clipped" },
    { .heading = "weight scales", .left = true },
    { .heading = "weight dB" },
    { 0 },
};

/* "static int16, int4 per_block:64": only settings that differ from the defaults are printed. */
static void put_method(struct tare_text_table *table, const struct tare_explanation *e) {
    const struct tare_quant_setting *s = &e->setting;
    char granularity[32] = "";
    if (s->granularity == TARE_PER_BLOCK) snprintf(granularity, sizeof granularity, " per_block:%" PRId64, s->block);
    if (s->granularity == TARE_PER_TENSOR) snprintf(granularity, sizeof granularity, " per_tensor");
    const bool is_plain = !s->format && e->bits != 4;
    tare_text_table_cell(table, "%s%s%s%s%s", e->method, s->activation_bits == 16 ? " int16" : "", is_plain ? "" : " ",
                         is_plain ? "" : tare_number_format_name(s->format, e->bits), granularity);
}

static void put_input(struct tare_text_table *table, const struct tare_explanation *e) {
    if (e->input.scale > 0) {
        tare_text_table_cell(table, "%.6g", e->input.scale);
        tare_text_table_cell(table, "%d", e->input.zero_point);
    } else {
        tare_text_table_skip(table);
        tare_text_table_skip(table);
    }
    if (!e->has_input) {
        for (int i = 0; i < 4; i++)
            tare_text_table_skip(table);
        return;
    }
    tare_text_table_cell(table, "%.1f", e->input_sqnr_db);
    tare_text_table_cell(table, "%.3g", e->rounding_mse);
    tare_text_table_cell(table, "%.3g", e->clipping_mse);
    tare_text_table_cell(table, "%.3g%%", 100 * e->clipped);
}

static void put_weight(struct tare_text_table *table, const struct tare_explanation *e) {
    enum { SHOWN = 3 };
    char text[96];
    int size = 0;
    if (!e->weight_elements) {
        tare_text_table_skip(table);
        tare_text_table_skip(table);
        return;
    }
    for (int64_t i = 0; i < e->n_weight_scales && i < SHOWN; i++)
        size += tare_format(text + size, sizeof text - (size_t)size, "%s%.4g", i ? " " : "", e->weight_scales[i]);
    if (e->n_weight_scales > SHOWN)
        snprintf(text + size, sizeof text - (size_t)size, " … (%" PRId64 ")", e->n_weight_scales);
    tare_text_table_cell(table, "%s", text);
    tare_text_table_cell(table, "%.1f", e->weight_sqnr_db);
}

static bool is_alike(const struct tare_explanation *a, const struct tare_explanation *b) {
    return a->refused && b->refused && strcmp(a->refused, b->refused) == 0 && strcmp(a->op, b->op) == 0;
}

/* One line for all layers of one op and reason, where the first of them is. */
static void put_refused(struct tare_strbuf *out, const struct tare_explanation_list *list) {
    enum { SHOWN = 3 };
    for (size_t i = 0; i < list->count; i++) {
        const struct tare_explanation *first = &list->items[i];
        size_t before = 0, count = 0;
        for (size_t k = 0; k < i; k++)
            before += is_alike(first, &list->items[k]);
        if (!first->refused || before) continue;
        for (size_t k = i; k < list->count; k++) {
            if (!is_alike(first, &list->items[k])) continue;
            if (++count <= SHOWN) tare_strbuf_printf(out, "%s%s", count > 1 ? ", " : "", list->items[k].node);
        }
        if (count > SHOWN) tare_strbuf_printf(out, " and %zu more", count - SHOWN);
        tare_strbuf_printf(out, " (%s): Quantization disabled on this op: %s\n", first->op, first->refused);
    }
}

void tare_layers_table(struct tare_strbuf *out, const struct tare_explanation_list *list, size_t width) {
    struct tare_text_table *table = tare_text_table_new(columns);
    size_t quantized = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct tare_explanation *e = &list->items[i];
        if (e->refused) continue;
        quantized++;
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s", e->node);
        tare_text_table_cell(table, "%s", e->op);
        put_method(table, e);
        put_input(table, e);
        put_weight(table, e);
    }
    tare_text_table_fit(table, width);
    if (quantized) tare_text_table_print(out, table);
    tare_text_table_free(table);
    put_refused(out, list);
}

/* ---- JSON ---- */

static json_t *scales_json(const struct tare_explanation *e) {
    enum { MOST = 8 };
    json_t *array = json_array();
    for (int64_t i = 0; i < e->n_weight_scales && i < MOST; i++)
        json_array_append_new(array, json_real(e->weight_scales[i]));
    return array;
}

static void put_weight_json(json_t *object, const struct tare_explanation *e) {
    json_object_set_new(object, "weight_bits", json_integer(e->bits));
    json_object_set_new(object, "format", tare_json_text(tare_number_format_name(e->setting.format, e->bits)));
    json_object_set_new(object, "granularity", tare_json_text(tare_quant_granularity_name(e->setting.granularity)));
    if (e->setting.granularity == TARE_PER_BLOCK) json_object_set_new(object, "block", json_integer(e->setting.block));
    json_object_set_new(object, "weight_scales", scales_json(e));
    json_object_set_new(object, "n_weight_scales", json_integer(e->n_weight_scales));
    json_object_set_new(object, "weight_sqnr_db", tare_json_number(e->weight_sqnr_db));
    json_object_set_new(object, "channel_spread", tare_json_number(e->spread));
}

static json_t *explanation_json(const struct tare_explanation *e) {
    json_t *object = json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "function", tare_json_text(e->function), "layer",
                               tare_json_text(e->node), "op", tare_json_text(e->op), "quantized",
                               tare_json_text(e->method), "refused", tare_json_text(e->refused), "weight_elements",
                               (json_int_t)e->weight_elements, "remedy", tare_json_text(e->remedy));
    if (!object) return NULL;
    if (e->weight_elements) put_weight_json(object, e);
    if (e->input.scale > 0) {
        json_object_set_new(object, "activation_bits",
                            json_integer(tare_quant_integer_dtype(&e->input) == TARE_DT_INT16 ? 16 : 8));
        json_object_set_new(object, "scale", json_real(e->input.scale));
        json_object_set_new(object, "zero_point", json_integer(e->input.zero_point));
    }
    if (!e->has_input) return object;
    json_object_set_new(object, "input_sqnr_db", tare_json_number(e->input_sqnr_db));
    json_object_set_new(object, "rounding_mse", tare_json_number(e->rounding_mse));
    json_object_set_new(object, "clipping_mse", tare_json_number(e->clipping_mse));
    json_object_set_new(object, "clipped", tare_json_number(e->clipped));
    json_object_set_new(object, "unused_codes", json_integer(e->unused_codes));
    return object;
}

json_t *tare_explanations_json(const struct tare_explanation_list *list) {
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(array, explanation_json(&list->items[i]));
    return array;
}
