/* The whole conversion of a loaded model, for `tare convert` and the public functions: calibration and quantization if
 * requested, then TPU placement. The caller writes the model. */
#ifndef TARE_WORKFLOW_CONVERT_H
#define TARE_WORKFLOW_CONVERT_H

#include "base/log.h"
#include "convert/options.h"
#include "convert/pipeline.h"
#include "convert/prepared_model.h"
#include "workflow/bfloat16/check.h"
#include "workflow/quantize.h"

/* Everything in it is borrowed. */
struct tare_convert_options {
    const struct tare_converter_options *converter;
    struct tare_quantize_task quantize; /* its plan is that of converter->quantization, whose samples are its data if it
                                           has none */
    void (*step)(void *arg);            /* called after each of the TARE_WORKFLOW_CONVERT_STEPS steps; NULL: none */
    void *step_arg;
};

enum { TARE_WORKFLOW_CONVERT_STEPS = 3 };

/* Result of a conversion. Memory belongs to the arena unless `conversion` documents otherwise. */
struct tare_converted {
    struct tare_conversion conversion;
    const struct tare_pass_count *prepared; /* counts of the preparing passes; NULL: they did not run */
    bool was_quantized;
    struct tare_quantized quantized;                    /* if was_quantized */
    size_t unfolded;                                    /* batch normalizations that stay because variables do */
    struct tare_pass_count folded[TARE_PIPELINE_STEPS]; /* if it was prepared without being quantized */
    struct tare_bfloat16_checked checked;               /* how bfloat16 was checked */
    const char *module_error; /* why a StableHLO module stays as it is (the model's text); NULL: none does */
    const char *module_note;  /* why one has the branches of another platform (likewise) */
    const char *lost_methods; /* convert/lost_methods.h; NULL: none, or quantized.lost_methods has them */
};

/* Without named functions everything would stay on the CPU: requests that functions are found automatically, unless the
 * model has been converted before. Arena memory is for scratch. */
tare_status tare_workflow_convert_find_functions(struct tare_converter_options *converter, struct tare_arena *arena,
                                                 const struct tare_graph_model *model) TARE_WARN_UNUSED;
/* Modifies the model. Release `out` with tare_workflow_quantized_free(&out->quantized), also after a failure. After a
 * failure the model is unusable, and `out` contains what the TPU compiler would reject (conversion.findings). */
tare_status tare_workflow_convert_run(struct tare_converted *out, struct tare_arena *arena,
                                      struct tare_graph_model *model,
                                      const struct tare_convert_options *options) TARE_WARN_UNUSED;

/* Logs warnings, and notes on fused, batched and removed ops, one line each. After a failure, only warnings; findings
 * that the TPU compiler would reject begin with "error: ", except the one that is the text of the failure. */
void tare_workflow_convert_log(const struct tare_log *log, const struct tare_converted *converted,
                               const struct tare_converter_options *converter, tare_status status);

#endif
