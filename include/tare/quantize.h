/* Quantizing a model; the result still runs on a CPU. */
#ifndef TARE_QUANTIZE_H
#define TARE_QUANTIZE_H

#include "calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `method`: "static", "dynamic", "weight_only", or "float" for what a recipe alone says. `calibration`: of this model,
 * for methods that need one, else NULL. `options`: those of `tare quantize`, as in calibration.h: "bits=4
 * granularity=per_block:64", "algorithm=percentile:p=99.9". The model must have been opened from a directory. *out is
 * the caller's: tare_model_close. */
TARE_API tare_status tare_model_quantize(tare_model **out, const tare_model *model, const char *method,
                                         const tare_calibration *calibration, const char *options);

#ifdef __cplusplus
}
#endif

#endif
