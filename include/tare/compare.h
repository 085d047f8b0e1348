/* What quantization costs in accuracy: float against each method on the same records. */
#ifndef TARE_COMPARE_H
#define TARE_COMPARE_H

#include "calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the float model and each quantized one over the records of `paths`, labelled or not. `calibration`: of this
 * model; NULL where no method needs one. `options`: those of `tare compare`, as in calibration.h:
 * "methods=static,weight_only algorithms=min_max,mse label=class", "sensitivity". *json, what `tare compare --json`
 * prints (docs/json.md), is the caller's: tare_text_free. The model must have been opened from a directory. */
TARE_API tare_status tare_model_compare(char **json, const tare_model *model, const char *const *paths, size_t n_paths,
                                        const tare_calibration *calibration, const char *options);

#ifdef __cplusplus
}
#endif

#endif
