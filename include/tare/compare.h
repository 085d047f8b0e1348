/* Accuracy comparison: the float model and quantized ones on the same records. */
#ifndef TARE_COMPARE_H
#define TARE_COMPARE_H

#include "calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the float model and each quantized one over the records of `paths`, with or without labels. `calibration`: of
 * this model, or NULL if no method needs one. `options`: the options of `tare compare`, written as in calibration.h:
 * "methods=static,weight_only algorithms=min_max,mse label=class", "sensitivity". *json is the output of `tare compare
 * --json` (docs/json.md; release: tare_text_free). */
TARE_API TARE_CHECKED tare_status tare_model_compare(char **json, const tare_model *model, const char *const *paths,
                                                     size_t n_paths, const tare_calibration *calibration,
                                                     const char *options);

#ifdef __cplusplus
}
#endif

#endif
