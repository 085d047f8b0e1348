/* From a float model and samples to a quantized or converted model that is verified, in one call. */
#ifndef TARE_AUTO_H
#define TARE_AUTO_H

#include "compare.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does what `tare auto` does: calibrates with the samples of `paths`, compares the float model with quantized ones,
 * builds the recommended one in `directory`, and checks that its outputs are those that were measured. The plan is
 * written to DIRECTORY.recipe, if anything is quantized, and the page of the comparison to DIRECTORY.html; both are
 * replaced. Records that need a DatasetSpec (images, CSV rows, tf.Examples) get one in DIRECTORY.spec, if `options`
 * names none and the file does not exist; a note says what it assumes. `options`: those of `tare auto` except for data
 * and messages, written as in calibration.h: "eval=labelled.tfrecord tpu margin=0.5 overwrite". *report, unless
 * `report` is NULL, is the comparison as JSON (as `tare compare --json`; release: tare_text_free). The command of each
 * step is logged as a note (tare_context_on_log). TARE_ERROR_NOT_FOUND if no model is recommended: then only the page
 * is written. After another failure of the comparison `directory` is unchanged; TARE_ERROR_INTERNAL if the written
 * model has other outputs. Open the model with tare_model_open. */
TARE_API TARE_CHECKED tare_status tare_model_auto(char **report, const tare_model *model, const char *directory,
                                                  const char *const *paths, size_t n_paths, const char *options);

#ifdef __cplusplus
}
#endif

#endif
