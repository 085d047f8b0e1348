/* The models of a comparison: every combination of methods, calibration algorithms and weight granularities.
 *
 * A method is written METHOD[:SETTING=VALUE]…[+ADDITION]…: "static", "weight_only:bits=4:block=32+gptq",
 * "static:activation_bits=16+bfloat16". Settings are options of a plan (quant/plan.h) and block (32, 64, 128, 256);
 * they take precedence over the plan from which all variants are made. Additions are bfloat16 and the accuracy passes.
 */
#ifndef TARE_EVAL_VARIANT_H
#define TARE_EVAL_VARIANT_H

#include "convert/options.h"
#include "convert/prepared_model.h"
#include "quant/quantize.h"

struct tare_variant {
    const char *name; /* printed from the fields below: "float", "weight_only:bits=4:block=32+gptq"; or "auto" */
    struct tare_quant_plan plan; /* setting.method NULL: not quantized */
    bool bfloat16;
    bool sets_granularity; /* by a setting of the method */
    const char *refused;   /* why the combination is not applicable; NULL: it is */
};

struct tare_variant_list {
    struct tare_variant *variants; /* arena memory; the first is float */
    size_t count;
};

/* Parses three comma-separated lists and makes every combination. Float is always first: the others are measured
 * against it. `granularities` NULL: that of the plan, or the default of the op set. `plan`: opened; what the methods do
 * not set. A combination that does not exist, such as static with per_block:32, is listed with `refused` set.
 * TARE_USAGE names an unknown word and the nearest known one. */
tare_status tare_variants_parse(struct tare_variant_list *out, struct tare_arena *arena, const char *methods,
                                const char *algorithms, const char *granularities,
                                const struct tare_quant_plan *plan) TARE_WARN_UNUSED;
/* The methods of a list, each as it was written, and a NULL behind them; checked as above, with the default algorithm
 * where that is NULL. One that does not exist is TARE_USAGE. */
tare_status tare_variant_names(const char *const **out, struct tare_arena *arena, const char *methods,
                               const char *algorithm) TARE_WARN_UNUSED;
/* The variant needs a calibration, for activation ranges or for an accuracy pass. */
bool tare_variant_calibrates(const struct tare_variant *variant);

/* The algorithm and the granularity of the weights as text in the arena, "percentile:p=99.9", "per_block:32"; NULL when
 * the variant needs no ranges, or does not quantize. */
tare_status tare_variant_texts(const char **algorithm, const char **granularity, struct tare_arena *arena,
                               const struct tare_variant *variant) TARE_WARN_UNUSED;

/* The following three ignore refused variants. */
/* A variant needs a calibration. */
bool tare_variants_calibrate(const struct tare_variant_list *list);
/* An accuracy pass needs statistics per channel. */
bool tare_variants_need_channels(const struct tare_variant_list *list);
/* An accuracy pass needs Hessians. */
bool tare_variants_need_hessians(const struct tare_variant_list *list);

/* Turns a prepared model into the variant: quantized and, if requested, computed in bfloat16 as `tare convert
 * --bfloat16 analysis` does. `calibration` may be NULL for variants that need none. */
tare_status tare_variant_apply(struct tare_quant_report *report, struct tare_arena *arena,
                               struct tare_graph_model *model, const struct tare_variant *variant,
                               struct tare_calibration *calibration) TARE_WARN_UNUSED;

#endif
