/* The whole conversion of a loaded model, as `tare convert` and the public functions do it: calibration where the
 * options ask for it, quantization, the TPU half. Writing the model is the caller's. */
#ifndef TARE_WORKFLOW_CONVERT_H
#define TARE_WORKFLOW_CONVERT_H

#include "base/log.h"
#include "convert/options.h"
#include "convert/pipeline.h"
#include "convert/prepared.h"
#include "eval/explain.h"

#include <signal.h>

/* Everything in it is borrowed. */
struct tare_convert_options {
    const struct tare_converter_options *converter;
    const char *calibration_file;         /* quantize with these statistics … */
    struct tare_calibration *calibration; /* … or these; both NULL: representative_datasets are calibrated with */
    void (*step)(void *arg);              /* called after each of TARE_WORKFLOW_CONVERT_STEPS steps; NULL: not */
    void *step_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

enum { TARE_WORKFLOW_CONVERT_STEPS = 3 };

/* What became of it. Arena memory, but for what `conversion` says of its own. */
struct tare_converted {
    struct tare_conversion conversion;
    struct tare_pass_count prepared[TARE_PIPELINE_STEPS]; /* where the model was quantized */
    bool was_quantized;
    struct tare_quant_report quantized;  /* when it was */
    struct tare_explanation_list layers; /* the same in detail */
};

/* Changes the model; after a failure it is of no more use, and `out` holds what a TPU would refuse
 * (conversion.findings). */
tare_status tare_workflow_convert_run(struct tare_converted *out, struct tare_arena *arena, struct tare_model *model,
                                      const struct tare_convert_options *options) TARE_WARN_UNUSED;

/* What a person should know of it, a line each: warnings, and notes on what was fused, batched and dropped. After a
 * failure only warnings; what a TPU would refuse begins with "error: ", and is left out where it is the text of the
 * failure. */
void tare_workflow_convert_log(const struct tare_log *log, const struct tare_converted *converted,
                               const struct tare_converter_options *converter, tare_status status);

#endif
