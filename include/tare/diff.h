/* Differences of two models, of arrays and of reports. */
#ifndef TARE_DIFF_H
#define TARE_DIFF_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compares two models: sizes, ops, signatures, layers, weights, scales. *text is the output of `tare diff --json`
 * (docs/json.md; release: tare_text_free). `options`, written as in calibration.h: "html" for a page without external
 * references instead, "text" for the tables that `tare diff` prints, "text all" for tables of every weight and number.
 * The contexts of the models may be different ones; that of `first` can cancel the call. */
TARE_API TARE_CHECKED tare_status tare_model_diff(char **text, const tare_model *first, const tare_model *second,
                                                  const char *options);
/* The same for paths of two SavedModels, of two .npy files or folders of them (outputs of `tare run`), or of two JSON
 * reports of comparisons. TARE_ERROR_USAGE if they are not of one kind. */
TARE_API TARE_CHECKED tare_status tare_diff(char **text, tare_context *context, const char *first, const char *second,
                                            const char *options);

#ifdef __cplusplus
}
#endif

#endif
