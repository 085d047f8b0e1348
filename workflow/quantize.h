/* Quantization of a model as requested by a user, for `tare quantize`, `tare convert` and the public functions: read
 * the request into a job, prepare the model, calibrate it (workflow/calibrate.h), run the job. */
#ifndef TARE_WORKFLOW_QUANTIZE_H
#define TARE_WORKFLOW_QUANTIZE_H

#include "convert/pipeline.h"
#include "convert/prepared.h"
#include "eval/explain.h"
#include "workflow/requests.h"

/* A parsed quantization request. */
struct tare_quantize_job {
    struct tare_quantization quantization;
    struct tare_algorithm_choice algorithm;
};

/* Applies the options to *out, keeping its other settings. Reads the recipe into the arena. */
tare_status tare_workflow_quantize_apply_layers(struct tare_quant_options *out, struct tare_arena *arena,
                                                const struct tare_layer_request *options) TARE_WARN_UNUSED;
/* Parses the options and their recipe. The job borrows from the arena and the options. */
tare_status tare_workflow_quantize_read(struct tare_quantize_job *out, struct tare_arena *arena,
                                        const struct tare_quantize_request *options) TARE_WARN_UNUSED;
/* The job for quantization settings already parsed from converter options. */
tare_status tare_workflow_quantize_from_converter(struct tare_quantize_job *out,
                                                  const struct tare_quantization *quantization) TARE_WARN_UNUSED;
/* Whether a method, rule or accuracy pass needs a calibration; *channels: with statistics per channel. Hessians can
 * only be computed from samples, not from a calibration file. */
bool tare_workflow_quantize_needs_hessians(const struct tare_quantize_job *quantizing);
bool tare_workflow_quantize_needs_samples(const struct tare_quantize_job *quantizing, bool *channels);
/* Transforms a loaded model into the form that is calibrated and quantized. */
tare_status tare_workflow_quantize_prepare(struct tare_model *model, bool keep_variables) TARE_WARN_UNUSED;
/* Quantizes a prepared model. `calibration` may be NULL if none is needed. Texts of the report belong to the arena. */
tare_status tare_workflow_quantize_run(struct tare_quant_report *report, struct tare_arena *arena,
                                       struct tare_model *model, const struct tare_quantize_job *quantizing,
                                       struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* The result for each layer; `calibration` is the one it was quantized with (NULL: none). */
tare_status tare_workflow_quantize_explain(struct tare_explanation_list *out, struct tare_arena *arena,
                                           const struct tare_quant_report *report,
                                           const struct tare_quantize_job *quantizing,
                                           const struct tare_calibration *calibration) TARE_WARN_UNUSED;

#endif
