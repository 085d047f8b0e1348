/* The pipeline: which passes run, in which order. */
#ifndef TARE_CONVERT_PIPELINE_H
#define TARE_CONVERT_PIPELINE_H

#include "base/strbuf.h"
#include "convert/composites/composites.h"
#include "convert/options.h"
#include "convert/pass.h"
#include "graph/self_assignments.h"
#include "quant/quantize.h"
#include "tpu/bfloat16.h"
#include "tpu/compatibility.h"
#include "tpu/cost/cost.h"
#include "tpu/strip_asserts.h"
#include "tpu/detect_converted.h"
#include "tpu/io_shapes.h"
#include "tpu/cost/memory.h"
#include "tpu/split.h"

/* Runs before calibration and quantization, in this order; ends with NULL. */
extern const struct tare_pass *const tare_prepare_passes[];

/* Changes made by one pass, for reports. */
struct tare_pass_count {
    const char *name;
    size_t changes;
};

/* Converts a model to the form that is calibrated and quantized: pruned to its signatures, variables frozen, constants
 * and batch normalisation folded. Calibration files belong to this form. counts (NULL: not requested) receives one
 * entry per pass and must have space for all of them. */
tare_status tare_pipeline_prepare(struct tare_graph_model *model, struct tare_pass_count *counts);

struct tare_calibration; /* calib/calibration.h */
/* Builds the model of a plan from a prepared one, with the statistics of a calibration (NULL: none; layers that need
 * ranges then stay float). The report is in arena memory. */
tare_status tare_pipeline_quantize(struct tare_quant_report *report, struct tare_arena *arena,
                                   struct tare_graph_model *model, const struct tare_quant_plan *plan,
                                   const struct tare_calibration *calibration);

enum { TARE_PIPELINE_STEPS = 32 };

/* What a conversion did. */
struct tare_conversion {
    struct tare_tpu_placed *placed;
    size_t n_placed;
    struct tare_tpu_finding *findings; /* what the TPU would refuse; for the user to know, also after a failure */
    size_t n_findings;
    struct tare_composites composites;  /* annotated functions, as they are in the model, to which they belong */
    struct tare_tpu_converted existing; /* TPU and batching ops that the model brought */
    struct tare_dropped_seeds seeds;    /* states that are not assigned any more */
    struct tare_tpu_split split;        /* the functions that were found or made, where the user named none */
    struct tare_tpu_stripped stripped;
    const char *bfloat16; /* a node that is bfloat16 already, for which the rest stays float32; NULL: there is none */
    bool keeps_modules;   /* the filterlist names XlaCallModule, and the model has modules: all stays float32 */
    struct tare_bf16_kept_list kept;                    /* what stays float32 for the sake of exact values, and why */
    struct tare_pass_count counts[TARE_PIPELINE_STEPS]; /* changes, pass by pass (convert/tpu_passes.h) */
    size_t n_counts;
    struct tare_batching_result batching;
    struct tare_cost_report cost;         /* of one row */
    struct tare_cost_report full;         /* of the largest batch that the options allow */
    struct tare_tpu_memory before, after; /* of the TPU functions, at that batch */
    const char **advice;                  /* lines on the choice of functions */
    size_t n_advice;
};

/* Changes reported under that name; 0 when no pass reported any. */
size_t tare_conversion_changes(const struct tare_conversion *conversion, const char *count);

/* Every step of a conversion with the changes that it made, in order; returns how many. `prepared` are the counts of
 * tare_pipeline_prepare, NULL when it did not run. */
size_t tare_pipeline_counts(struct tare_pass_count out[static TARE_PIPELINE_STEPS],
                            const struct tare_conversion *conversion, const struct tare_pass_count *prepared);

/* Whether the model has functions that a TPU could run; a TensorFlow 1 model has none and cannot be converted. */
bool tare_pipeline_can_place(const struct tare_graph_model *model);
/* TARE_UNSUPPORTED if functions are to be placed and there are none. */
tare_status tare_pipeline_refuse_tf1(const struct tare_graph_model *model,
                                     const struct tare_converter_options *options) TARE_WARN_UNUSED;
/* Memory that the functions of the options need in the current model; to compare before and after quantization. */
tare_status tare_pipeline_memory(struct tare_tpu_memory *out, struct tare_arena *arena,
                                 const struct tare_graph_model *model, const struct tare_converter_options *options);

/* The TPU half of a conversion, on a quantized or float model: bfloat16, placement, shapes,
 * batching, cost. Arena memory. TARE_UNSUPPORTED if the TPU does not support a function and the options do not allow
 * that. `before`: the memory of the functions before quantization; NULL: it is measured before placement.
 */
tare_status tare_pipeline_place(struct tare_conversion *out, struct tare_arena *arena, struct tare_graph_model *model,
                                const struct tare_converter_options *options, const struct tare_tpu_memory *before);
/* The part of tare_pipeline_place that changes what is computed: chooses the functions and computes them in bfloat16,
 * but does not place them. */
tare_status tare_pipeline_compute(struct tare_conversion *out, struct tare_arena *arena, struct tare_graph_model *model,
                                  const struct tare_converter_options *options) TARE_WARN_UNUSED;

/* Releases the pages of a large weight after a pass over it; they are read from the checkpoint again when needed. */
void tare_pipeline_forget(const struct tare_tensor *weight);

#endif
