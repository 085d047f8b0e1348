/* What a comparison measures: each method with each range algorithm and each granularity of the weights, as far as they
 * make a difference. */
#ifndef TARE_EVAL_VARIANT_H
#define TARE_EVAL_VARIANT_H

#include "convert/options.h"
#include "convert/prepared.h"
#include "quant/rewrite.h"

struct tare_variant {
    const char *name; /* printed from what follows: "float", "static+bias_correction+bfloat16"; or "auto" */
    struct tare_quant_options options; /* setting.method NULL: not quantized */
    bool bfloat16;
};

struct tare_variant_list {
    struct tare_variant *variants; /* arena memory; the first is float */
    size_t count;
};

/* Every combination of the names in three lists with commas between. Float comes first, asked for or not: the others
 * are measured against it. Weights get `bits` bits; methods that know no blocks are left out of per_block:N. TARE_USAGE
 * names what is not known, and the nearest or all known names. */
tare_status tare_variants_parse(struct tare_variant_list *out, struct tare_arena *arena, const char *methods,
                                const char *algorithms, const char *granularities, int bits) TARE_WARN_UNUSED;
/* The algorithm and the weights' granularity as text in the arena, "percentile:p=99.9", "per_block:32"; NULL where the
 * variant has no ranges, or does not quantize. */
const char *tare_variant_algorithm(struct tare_arena *arena, const struct tare_variant *variant);
const char *tare_variant_granularity(struct tare_arena *arena, const struct tare_variant *variant);
/* Some variant needs a calibration, for ranges or for an accuracy pass. */
bool tare_variants_calibrate(const struct tare_variant_list *list);
/* Some accuracy pass among them asks for statistics per channel. */
bool tare_variants_need_channels(const struct tare_variant_list *list);
/* Some accuracy pass asks for Hessians. */
bool tare_variants_need_hessians(const struct tare_variant_list *list);

/* Turns a prepared model into the variant: quantized and, if asked for, computed in bfloat16 wherever that can be. The
 * calibration may be NULL for variants without algorithm. */
tare_status tare_variant_apply(struct tare_quant_report *report, struct tare_arena *arena, struct tare_model *model,
                               const struct tare_variant *variant,
                               struct tare_calibration *calibration) TARE_WARN_UNUSED;

#endif
