/* What a model costs on a Cloud TPU, without one. */
#ifndef TARE_CHECK_H
#define TARE_CHECK_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiles the computations of the model on the TPU with Google's TPU compiler, as `tare check` does: *report is its
 * JSON (docs/json.md; release: tare_text_free), with cycles, integer products and memory. A model that is not converted
 * is converted for this first; `model` is not changed. Where the compiler is not installed (jax[tpu] of python3, or of
 * the command in the environment variable TARE_TPU_COMPILER), the report has the estimate and the reason. A computation
 * that the compiler rejects has its error in the report. `options`: "chip=v6e batch=32", those of `tare check` except
 * for its output; "page=FILE" also writes its HTML page. */
TARE_API TARE_CHECKED tare_status tare_model_check(char **report, const tare_model *model, const char *options);

#ifdef __cplusplus
}
#endif

#endif
