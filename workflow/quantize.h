/* Quantization of a model as requested by a user, for `tare quantize`, `tare convert` and the public functions: open
 * the request, then quantize a loaded model: prepare it, calibrate it, find what the request leaves to measurement, and
 * build it by the plan (quant/plan.h). */
#ifndef TARE_WORKFLOW_QUANTIZE_H
#define TARE_WORKFLOW_QUANTIZE_H

#include "base/log.h"
#include "convert/pipeline.h"
#include "convert/prepared_model.h"
#include "eval/explain.h"
#include "workflow/autotune/autotune.h"
#include "workflow/check/fastest.h"
#include "workflow/mixed_precision_search.h"
#include "workflow/requests.h"

/* Resolves the plan of the request and opens its spec. Memory is from the arena. Fails for options that exclude each
 * other or lack another one. Release with tare_workflow_quantize_close, also after a failure. */
tare_status tare_workflow_quantize_open(struct tare_quantize_request *request,
                                        struct tare_arena *arena) TARE_WARN_UNUSED;
/* What a quantization takes from samples: statistics, which a calibration file has; those per channel and Hessians. */
struct tare_quantize_needs {
    bool calibration, channels, hessians;
};
struct tare_quantize_needs tare_workflow_quantize_needs(const struct tare_quantize_request *request,
                                                        const struct tare_quant_plan *plan);
/* What can be said of the samples of an opened request without the model, which has a plan of its own in a conversion:
 * TARE_USAGE if there are too many, or if an accuracy pass has none. */
tare_status tare_workflow_quantize_check_samples(const struct tare_quantize_request *request,
                                                 const struct tare_quant_plan *plan) TARE_WARN_UNUSED;
/* Whether an option of the request asks for a quantization, for commands that do not always quantize. */
bool tare_workflow_quantize_requested(const struct tare_quantize_request *request);
void tare_workflow_quantize_close(struct tare_quantize_request *request);

/* Everything is borrowed. */
struct tare_quantize_task {
    const struct tare_quantize_request *request; /* opened */
    const char *path;                            /* of the model, from which candidates are loaded */
    const struct tare_op_registry *ops;          /* NULL: the built-in ones */
    struct tare_calibration *calibration;        /* of the prepared model, instead of the request's; NULL: none */
    const struct tare_log *log;                  /* for warnings; NULL: none */
    const struct tare_log *calibration_log;      /* for those of `calibration`; NULL: the caller has them */
    bool checks_later;                           /* the request's data are also used after quantization */
    bool is_placed_later;                        /* on a TPU, which checks what stays on the CPU */
    bool quiet;                                  /* print no progress */
    bool speed_is_known;                         /* the plan was chosen by its speed on a chip */
    bool without_layers;                         /* the result needs no explanations of layers */
    const volatile sig_atomic_t *interrupted;    /* NULL: never */
};

/* Result of a quantization. Memory belongs to the arena unless noted. */
struct tare_quantized {
    struct tare_quant_plan plan; /* by which the model was built */
    struct tare_pass_count prepared[TARE_PIPELINE_STEPS];
    struct tare_quant_report report;       /* its warnings include one if the result is estimated slower */
    struct tare_composites composites;     /* annotated functions, as they are in the model, to which they belong */
    struct tare_explanation_list layers;   /* empty with task->without_layers */
    int64_t float_bytes, bytes;            /* of the weights, before and after */
    struct tare_autotune automatic;        /* with request->automatic; owned */
    struct tare_mixed_precision targeting; /* with a target; owned */
    struct tare_fastest fastest;           /* for a chip; otherwise its `chip` is NULL */
    const char *lost_methods;              /* convert/lost_methods.h; NULL: none */
};

/* Quantizes a loaded model. Without allow_unquantized, TARE_UNSUPPORTED if something was to be quantized and nothing
 * was. Release `out` with tare_workflow_quantized_free, also after a failure. */
tare_status tare_workflow_quantize(struct tare_quantized *out, struct tare_arena *arena, struct tare_graph_model *model,
                                   const struct tare_quantize_task *task) TARE_WARN_UNUSED;
void tare_workflow_quantized_free(struct tare_quantized *quantized);
/* Logs that Python can no longer call these methods; NULL: none. */
void tare_workflow_lost_log(const struct tare_log *log, const char *methods);
/* Logs the rules that match no layer, the warnings of the report and the methods that are lost. */
void tare_workflow_quantize_log(const struct tare_log *log, const struct tare_quantized *quantized);
/* Appends the tables of what was found by measuring. */
void tare_workflow_quantize_tables(struct tare_strbuf *out, const struct tare_quantized *quantized);

/* The samples of a quantization as options of a command; everything is borrowed. */
struct tare_sample_options {
    const char *const *data; /* --data */
    size_t n_data;
    const char *calibration, *spec, *signature; /* NULL: not given */
    const struct tare_feedback *feedback;       /* NULL: none */
    int64_t limit;                              /* 0: all */
};

/* Appends the options that build the model of a plan, " --data FILE --method static --bits 4 …"; with the samples if
 * the plan needs any. */
void tare_workflow_plan_put(struct tare_strbuf *out, const struct tare_quant_plan *plan,
                            const struct tare_sample_options *samples);
/* Appends a recipe that builds the model: the command to use it with, as a comment, what was found by measuring
 * and chosen for a chip (NULL: nothing), likewise, and the plan. */
void tare_workflow_recipe_put(struct tare_strbuf *out, const struct tare_quant_plan *plan,
                              const struct tare_sample_options *samples, const struct tare_autotune *automatic,
                              const struct tare_target_result *target, const struct tare_fastest *fastest);
/* TARE_UNSUPPORTED if no op was quantized, with the reason given for most of the quantizable ops. */
tare_status tare_workflow_quantize_check(const struct tare_quant_report *report) TARE_WARN_UNUSED;

#endif
