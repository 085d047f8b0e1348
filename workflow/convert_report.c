/* The Conversion Report as JSON. */
#include "workflow/convert_report.h"
#include "eval/report/composites.h"
#include "eval/report/json_text.h"

#include <jansson.h>

/* Whole numbers of bytes and counts are JSON integers. */
static json_t *whole(double value) {
    return json_integer((json_int_t)value);
}

/* ---- costs ---- */

static json_t *times_json(const struct tare_cost_share *share) {
    json_t *times = json_object();
    for (size_t c = 0; c < TARE_TPU_CHIPS; c++)
        json_object_set_new(times, tare_tpu_chips[c].name, tare_json_number(share->seconds[c] * 1e6));
    return times;
}

static json_t *functions_json(const struct tare_conversion *conversion) {
    json_t *functions = json_array();
    for (size_t i = 0; i < conversion->cost.n_functions; i++) {
        const struct tare_cost_share *one = &conversion->cost.functions[i], *full = &conversion->full.functions[i];
        json_array_append_new(functions, json_pack("{s:o, s:I, s:o, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:o}, s:o}", "name",
                                                   tare_json_text(one->label), "cost", (json_int_t)one->cost, "macs",
                                                   whole(one->macs), "int8_macs", whole(one->int8_macs), "bytes",
                                                   whole(one->bytes), "host_bytes", "in", whole(one->host_in), "out",
                                                   whole(one->host_out), "host_bytes_full_batch", "in",
                                                   whole(full->host_in), "out", whole(full->host_out),
                                                   "least_microseconds_full_batch", times_json(full)));
    }
    return functions;
}

static json_t *ops_json(const struct tare_cost_report *cost) {
    json_t *ops = json_array();
    for (size_t i = 0; i < cost->n_ops; i++) {
        const struct tare_cost_op *op = &cost->ops[i];
        json_array_append_new(ops, json_pack("{s:o, s:o, s:I, s:I, s:o, s:o}", "op", tare_json_text(op->op), "where",
                                             tare_json_text(op->on_tpu ? "TPU" : "CPU"), "nodes", (json_int_t)op->nodes,
                                             "cost", (json_int_t)op->cost, "macs", whole(op->macs), "bytes",
                                             whole(op->bytes)));
    }
    return ops;
}

/* ---- memory ---- */

static json_t *memory_json(const struct tare_tpu_memory *memory) {
    return json_pack("{s:o, s:o}", "weights", whole(memory->weights), "activations", whole(memory->activations));
}

static json_t *chips_json(const struct tare_conversion *conversion) {
    double need = conversion->after.weights + conversion->after.activations;
    json_t *chips = json_array();
    for (size_t c = 0; c < TARE_TPU_CHIPS; c++) {
        const struct tare_tpu_chip *chip = &tare_tpu_chips[c];
        double seconds = 0;
        for (size_t i = 0; i < conversion->full.n_functions; i++)
            seconds += conversion->full.functions[i].seconds[c];
        json_array_append_new(chips, json_pack("{s:o, s:o, s:b, s:f, s:o, s:o, s:s*}", "chip",
                                               tare_json_text(chip->name), "hbm_bytes", whole(chip->hbm_bytes), "fits",
                                               need <= chip->hbm_bytes, "share_of_hbm", need / chip->hbm_bytes,
                                               "least_microseconds", tare_json_number(seconds * 1e6), "source",
                                               tare_json_text(chip->source), "unsourced", chip->unsourced));
    }
    return chips;
}

/* ---- batching ---- */

/* Batches of from … size rows are padded to `size`; all sizes are equally likely. */
static json_t *padding_row(int64_t from, int64_t size) {
    double mean = (double)(size - from) / 2;
    return json_pack("{s:I, s:I, s:f, s:f, s:f}", "size", (json_int_t)size, "from", (json_int_t)from,
                     "mean_padding_rows", mean, "mean_waste", mean / (double)size, "worst_waste",
                     (double)(size - from) / (double)size);
}

static json_t *batches_json(const struct tare_converter_options *options) {
    json_t *batches = json_array();
    for (size_t b = 0; b < options->n_batches; b++) {
        const struct tare_batch_options *batch = &options->batches[b];
        json_t *rows = json_array();
        for (size_t i = 0; i < batch->n_allowed; i++)
            json_array_append_new(
                rows, padding_row(i ? batch->allowed_batch_sizes[i - 1] + 1 : 1, batch->allowed_batch_sizes[i]));
        json_array_append_new(batches, json_pack("{s:o, s:i, s:o}", "name", tare_json_text(batch->name),
                                                 "max_batch_size", batch->max_batch_size, "padding", rows));
    }
    return batches;
}

/* ---- passes, findings ---- */

static json_t *passes_json(const struct tare_conversion *conversion, const struct tare_pass_count *prepared) {
    struct tare_pass_count counts[TARE_PIPELINE_STEPS];
    size_t count = tare_pipeline_counts(counts, conversion, prepared);
    json_t *passes = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(passes, json_pack("{s:o, s:I}", "pass", tare_json_text(counts[i].name), "changes",
                                                (json_int_t)counts[i].changes));
    return passes;
}

static json_t *findings_json(const struct tare_conversion *conversion) {
    json_t *findings = json_array();
    for (size_t i = 0; i < conversion->n_findings; i++) {
        const struct tare_tpu_finding *finding = &conversion->findings[i];
        json_array_append_new(findings, json_pack("{s:o, s:b, s:o, s:o, s:o}", "kind",
                                                  tare_json_text(tare_tpu_finding_name(finding->kind)), "error",
                                                  tare_tpu_finding_is_error(finding->kind), "function",
                                                  tare_json_text(finding->function->name), "node",
                                                  tare_json_text(finding->node ? finding->node->name : NULL), "text",
                                                  tare_json_text(finding->text)));
    }
    return findings;
}

static json_t *float32_json(const struct tare_conversion *conversion) {
    json_t *kept = json_array();
    for (size_t i = 0; i < conversion->kept.count; i++) {
        const struct tare_bf16_kept *item = &conversion->kept.items[i];
        json_array_append_new(kept, json_pack("{s:o, s:o, s:o, s:o}", "function", tare_json_text(item->function),
                                              "node", tare_json_text(item->node), "op", tare_json_text(item->op),
                                              "reason", tare_json_text(item->reason)));
    }
    return kept;
}

/* What decided which values are bfloat16. */
static json_t *bfloat16_json(const struct tare_bfloat16_checked *checked,
                             const struct tare_converter_options *options) {
    static const char *const extents[] = { "analysis", "analysis", "all" };
    const bool ran = checked && checked->n_outputs;
    json_t *outputs = json_array();
    for (size_t i = 0; ran && i < checked->n_outputs; i++)
        json_array_append_new(
            outputs, json_pack("{s:o, s:o, s:f}", "signature", tare_json_text(checked->outputs[i].signature), "output",
                               tare_json_text(checked->outputs[i].key), "sqnr_db", checked->outputs[i].sqnr));
    return json_pack("{s:s, s:I, s:I, s:o}", "decided_by",
                     !options->bfloat16 ? "disabled"
                     : ran              ? "records"
                                        : extents[options->extent],
                     "records", (json_int_t)(ran ? checked->records : 0), "nodes",
                     (json_int_t)(ran ? checked->n_nodes : 0), "outputs", outputs);
}

tare_status tare_convert_report_json(char **text, const struct tare_conversion *conversion,
                                     const struct tare_converter_options *options,
                                     const struct tare_pass_count *prepared,
                                     const struct tare_bfloat16_checked *checked,
                                     const struct tare_warnings *warnings) {
    const struct tare_cost_report *cost = &conversion->cost;
    json_t *root =
        json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "total_cost",
                  (json_int_t)cost->total, "cpu_cost", (json_int_t)cost->cpu, "tpu_cost", (json_int_t)cost->tpu,
                  "full_batch", (json_int_t)conversion->full.batch, "functions", functions_json(conversion), "ops",
                  ops_json(cost), "hbm", "before", memory_json(&conversion->before), "after",
                  memory_json(&conversion->after), "chips", chips_json(conversion), "batching", batches_json(options),
                  "passes", passes_json(conversion, prepared), "findings", findings_json(conversion), "composites",
                  tare_composites_json(&conversion->composites), "float32", float32_json(conversion), "bfloat16",
                  bfloat16_json(checked, options), "warnings", tare_json_warnings(warnings));
    *text = tare_json_dump(root, JSON_INDENT(2));
    json_decref(root);
    return *text ? TARE_OK : TARE_NO_MEMORY;
}
