/* The report of a quantization as JSON. */
#include "eval/report/quant_report.h"
#include "eval/report/composites.h"
#include "eval/report/json_text.h"

tare_status tare_quant_report_json(struct tare_strbuf *out, const struct tare_quant_report *report,
                                   const struct tare_explanation_list *layers, int64_t float_bytes, int64_t bytes,
                                   const struct tare_composites *composites, const struct tare_warnings *warnings) {
    json_t *rules = json_array(), *notes = json_array();
    for (size_t i = 0; i < report->n_unused_rules; i++)
        json_array_append_new(rules, tare_json_text(report->unused_rules[i]));
    for (size_t i = 0; i < report->n_notes; i++)
        json_array_append_new(notes, tare_json_text(report->notes[i]));
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "quantized_ops", (json_int_t)report->quantized,
        "quantizable_ops", (json_int_t)report->count, "float_weight_bytes", (json_int_t)float_bytes, "weight_bytes",
        (json_int_t)bytes, "unused_rules", rules, "warnings", tare_json_warnings(warnings), "notes", notes,
        "composites", tare_composites_json(composites), "layers", tare_explanations_json(layers));
    return tare_json_write(out, object);
}
