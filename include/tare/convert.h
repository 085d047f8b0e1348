/* Conversion for Cloud TPU inference: optional quantization, then placement of functions on the TPU. */
#ifndef TARE_CONVERT_H
#define TARE_CONVERT_H

#include "calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tare_convert_flags {
    /* Convert functions that a TPU cannot compile, with a warning for each reason. */
    TARE_CONVERT_ALLOW_INCOMPATIBLE = 1,
    /* Choose the TPU functions automatically if the options name none. */
    TARE_CONVERT_FIND_FUNCTIONS = 2,
    /* Round the final probabilities and their logits to bfloat16, too; they stay float32 otherwise. */
    TARE_CONVERT_BFLOAT16_OUTPUTS = 4,
    /* Keep the tags of the model; otherwise those of a copy with TPU functions are "serve" and "tpu". */
    TARE_CONVERT_KEEP_TAGS = 8,
    /* Batch functions whose results for a request depend on the requests that are batched with it, with a warning. */
    TARE_CONVERT_ALLOW_DEPENDENT_ROWS = 16,
};

/* Returns a converted copy of the model. `converter_options`: a ConverterOptions message in text format
 * (docs/converter.md), as for `tare convert --converter_options_string`. `calibration`: statistics for quantization;
 * NULL: those of the representative_datasets in the options, if any. `flags`: bits of enum tare_convert_flags. `model`
 * may be a result of tare_model_quantize. Release *out with tare_model_close. *report, unless `report` is NULL, is the
 * Conversion Report as JSON (release: tare_text_free). Functions that a TPU cannot compile fail with
 * TARE_ERROR_UNSUPPORTED; each reason is logged (tare_context_on_log). */
TARE_API TARE_CHECKED tare_status tare_model_convert(tare_model **out, char **report, const tare_model *model,
                                                     const char *converter_options, const tare_calibration *calibration,
                                                     unsigned flags);
/* The same with options of `tare quantize`, written as in calibration.h, which request a quantization: "method=int8
 * passes=gptq", "method=weight_only bits=4", "data=samples.tfrecord auto". quantization_options in `converter_options`
 * override them. NULL: none. */
TARE_API TARE_CHECKED tare_status tare_model_convert_quantized(tare_model **out, char **report, const tare_model *model,
                                                               const char *converter_options,
                                                               const char *quantize_options,
                                                               const tare_calibration *calibration, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
