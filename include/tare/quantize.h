/* Quantization for the CPU and as input of conversion. */
#ifndef TARE_QUANTIZE_H
#define TARE_QUANTIZE_H

#include "calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a quantized copy of the model. `method`: "static", "dynamic", "weight_only", or "float" to quantize only what
 * a recipe selects. `calibration`: of this model, or NULL for methods that need none. `options`: the options of `tare
 * quantize`, written as in calibration.h: "bits=4 granularity=per_block:64", "algorithm=percentile:p=99.9". `model` may
 * itself be a result of quantization or conversion. Release *out with tare_model_close. */
TARE_API TARE_CHECKED tare_status tare_model_quantize(tare_model **out, const tare_model *model, const char *method,
                                                      const tare_calibration *calibration, const char *options);
/* The same with a report: *report is the output of `tare quantize --json` (docs/json.md; release: tare_text_free), with
 * the result for each quantizable layer. `out` may be NULL for the report alone. */
TARE_API TARE_CHECKED tare_status tare_model_quantize_report(tare_model **out, char **report, const tare_model *model,
                                                             const char *method, const tare_calibration *calibration,
                                                             const char *options);

#ifdef __cplusplus
}
#endif

#endif
