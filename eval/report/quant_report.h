/* The report of a quantization as JSON, for `tare quantize --json` and the public functions. */
#ifndef TARE_EVAL_REPORT_QUANT_REPORT_H
#define TARE_EVAL_REPORT_QUANT_REPORT_H

#include "base/warnings.h"
#include "eval/explain.h"
#include "graph/model.h"

/* Numbers of ops, the size of all weights in bytes before and after, the warnings of the whole call, the result for
 * each layer, and the composite functions (docs/json.md). */
tare_status tare_quant_report_json(struct tare_strbuf *out, const struct tare_quant_report *report,
                                   const struct tare_explanation_list *layers, int64_t float_bytes, int64_t bytes,
                                   const struct tare_composites *composites,
                                   const struct tare_warnings *warnings) TARE_WARN_UNUSED;

#endif
