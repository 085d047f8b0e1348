/* The blocks of the accuracy pass reconstruction as text and as JSON. */
#include "base/strbuf.h"
#include "eval/report/json_text.h"
#include "eval/report/quant_report.h"

#include <math.h>
#include <string.h>

static void put_error(struct tare_strbuf *out, const char *what, double db) {
    if (!isnan(db)) tare_strbuf_printf(out, ", %s %.1f dB", what, db);
}

static const char *kept(const struct tare_quant_block_outcome *block) {
    return strcmp(block->result, "block") == 0    ? "rounded together"
           : strcmp(block->result, "layers") == 0 ? "rounded layer by layer"
                                                  : "unchanged";
}

void tare_blocks_text(struct tare_strbuf *out, const struct tare_quant_report *report) {
    if (report->n_blocks) tare_strbuf_puts(out, "reconstruction (SQNR of each block's outputs on held-out samples):\n");
    for (size_t i = 0; i < report->n_blocks; i++) {
        const struct tare_quant_block_outcome *block = &report->blocks[i];
        tare_strbuf_printf(out, "  %s", block->first);
        if (block->n_layers > 1) tare_strbuf_printf(out, " … %s (%zu layers)", block->last, block->n_layers);
        tare_strbuf_printf(out, ": %s", kept(block));
        put_error(out, "before", block->before_db);
        put_error(out, "layer by layer", block->layers_db);
        put_error(out, "together", block->block_db);
        if (block->reason) tare_strbuf_printf(out, "; not trained as a block: %s", block->reason);
        tare_strbuf_puts(out, "\n");
    }
}

static json_t *error_json(double db) {
    return isnan(db) ? json_null() : tare_json_number(db);
}

json_t *tare_blocks_json(const struct tare_quant_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->n_blocks; i++) {
        const struct tare_quant_block_outcome *block = &report->blocks[i];
        json_array_append_new(
            array,
            json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "function", tare_json_text(block->function),
                      "first_layer", tare_json_text(block->first), "last_layer", tare_json_text(block->last), "layers",
                      (json_int_t)block->n_layers, "result", tare_json_text(block->result), "reason",
                      tare_json_text(block->reason), "before_sqnr_db", error_json(block->before_db), "layers_sqnr_db",
                      error_json(block->layers_db), "block_sqnr_db", error_json(block->block_db)));
    }
    return array;
}
