/* Quantizing a model as users put it: the options as rows, for `tare quantize` and for the texts of the public
 * functions, and the work that follows from them. */
#ifndef TARE_WORKFLOW_QUANTIZE_H
#define TARE_WORKFLOW_QUANTIZE_H

#include "convert/pipeline.h"
#include "convert/prepared.h"
#include "eval/explain.h"
#include "workflow/requests.h"

/* A quantization that is to be made. */
struct tare_quantize_job {
    struct tare_quantization quantization;
    struct tare_algorithm_choice algorithm;
};

/* Puts the options into *out, beside what is there; the recipe is read into the arena. */
tare_status tare_workflow_quantize_apply_layers(struct tare_quant_options *out, struct tare_arena *arena,
                                                const struct tare_layer_request *options) TARE_WARN_UNUSED;
/* Reads the options and their recipe. Memory is the arena's and the options'. */
tare_status tare_workflow_quantize_read(struct tare_quantize_job *out, struct tare_arena *arena,
                                        const struct tare_quantize_request *options) TARE_WARN_UNUSED;
/* What was read already, of converter options. */
tare_status tare_workflow_quantize_from_converter(struct tare_quantize_job *out,
                                                  const struct tare_quantization *quantization) TARE_WARN_UNUSED;
/* Some method, rule or accuracy pass asks for a calibration; `channels`: for one with statistics per channel; for one
 * with Hessians, which samples alone give. */
bool tare_workflow_quantize_needs_hessians(const struct tare_quantize_job *quantizing);
bool tare_workflow_quantize_needs_samples(const struct tare_quantize_job *quantizing, bool *channels);
/* Brings a loaded model to the form that is calibrated and quantized. */
tare_status tare_workflow_quantize_prepare(struct tare_model *model, bool keep_variables) TARE_WARN_UNUSED;
/* Quantizes a prepared model. `calibration` may be NULL where none is needed. The report's texts are the arena's. */
tare_status tare_workflow_quantize_run(struct tare_quant_report *report, struct tare_arena *arena,
                                       struct tare_model *model, const struct tare_quantize_job *quantizing,
                                       struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* What became of each layer, by the calibration that it was quantized with (NULL: none). */
tare_status tare_workflow_quantize_explain(struct tare_explanation_list *out, struct tare_arena *arena,
                                           const struct tare_quant_report *report,
                                           const struct tare_quantize_job *quantizing,
                                           const struct tare_calibration *calibration) TARE_WARN_UNUSED;

#endif
