/* Quantization of a model as requested by a user, for `tare quantize`, `tare convert` and the public functions: read
 * the request into a job, prepare the model, calibrate it (workflow/calibrate.h), run the job. */
#ifndef TARE_WORKFLOW_QUANTIZE_H
#define TARE_WORKFLOW_QUANTIZE_H

#include "convert/pipeline.h"
#include "convert/prepared.h"
#include "eval/explain.h"
#include "eval/variant.h"
#include "workflow/requests.h"

/* The method of a name, NULL for "float"; `option` is named in the error. */
tare_status tare_workflow_quantize_method(const struct tare_quant_method **out, const char *option,
                                          const char *name) TARE_WARN_UNUSED;
/* Sets in *out the options that apply to layers; reads the recipe file. Memory is from the arena. */
tare_status tare_workflow_quantize_apply_layers(struct tare_quant_options *out, struct tare_arena *arena,
                                                const struct tare_layer_request *request) TARE_WARN_UNUSED;
/* Turns a request into options; reads the recipe file. Memory is from the arena. */
tare_status tare_workflow_quantize_read(struct tare_quant_options *out, struct tare_arena *arena,
                                        const struct tare_quantize_request *request) TARE_WARN_UNUSED;
/* Whether an accuracy pass needs Hessians, which only samples provide. */
bool tare_workflow_quantize_needs_hessians(const struct tare_quant_options *options);
/* Whether a method, rule or accuracy pass needs a calibration; *channels: one with statistics per channel. */
bool tare_workflow_quantize_needs_samples(const struct tare_quant_options *options, bool *channels);
/* Prepares a loaded model for calibration and quantization (convert/pipeline.h). */
tare_status tare_workflow_quantize_prepare(struct tare_graph_model *model,
                                           const struct tare_quant_options *options) TARE_WARN_UNUSED;
/* Quantizes a prepared model. `calibration` may be NULL when none is needed. The report is in arena memory; its
 * warnings include one if the result is estimated slower (workflow/speed_estimate.h). */
tare_status tare_workflow_quantize_run(struct tare_quant_report *report, struct tare_arena *arena,
                                       struct tare_graph_model *model, const struct tare_quant_options *options,
                                       const struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* The samples of a quantization as options of `tare quantize`; everything is borrowed. */
struct tare_quantize_samples {
    const char *const *data; /* --data */
    size_t n_data;
    const char *calibration, *spec, *signature; /* NULL: not given */
    int64_t limit;                              /* 0: all */
};

/* Appends the comment "# tare quantize MODEL OUT --method static --bits 4 … --recipe FILE", the command with which a
 * recipe of rules for this variant gives the model: with all settings that are not the default, and with the samples if
 * the variant needs any. `automatic`: the recipe has the accuracy passes, which may need samples, in a line of its own.
 */
void tare_workflow_quantize_command(struct tare_strbuf *out, struct tare_arena *arena,
                                    const struct tare_variant *variant, const struct tare_quantize_samples *samples,
                                    bool automatic);

/* TARE_UNSUPPORTED if no op was quantized, with the reason given for most of the quantizable ops. */
tare_status tare_workflow_quantize_check(const struct tare_quant_report *report) TARE_WARN_UNUSED;

#endif
