/* Converting a model for Cloud TPU inference: quantization when the options ask for it, and the TPU half. */
#ifndef TARE_CONVERT_H
#define TARE_CONVERT_H

#include "calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tare_convert_flags {
    TARE_ALLOW_INCOMPATIBLE = 1, /* convert functions that a TPU cannot compile, with a warning for each reason */
    TARE_FIND_FUNCTIONS = 2,     /* choose the TPU functions automatically; the options must not name any */
    TARE_BFLOAT16_OUTPUTS = 4,   /* round final probabilities and their logits to bfloat16, too */
};

/* `converter_options`: the ConverterOptions message in text format (docs/converter.md), as `tare convert
 * --converter_options_string` takes it. `calibration`: quantize with it; NULL: with the representative_datasets of the
 * options. `flags`: bits of enum tare_convert_flags. The model must have been opened from a directory. *out is the
 * caller's: tare_model_close. *report, unless it is NULL, gets the Conversion Report as JSON, the caller's:
 * tare_text_free. What a TPU would refuse goes to tare_context_on_message, and makes TARE_UNSUPPORTED. */
TARE_API tare_status tare_model_convert(tare_model **out, char **report, const tare_model *model,
                                        const char *converter_options, const tare_calibration *calibration,
                                        unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
