/* What a comparison measures: each method with each range algorithm and each granularity of the weights, as far as they
 * make a difference. */
#ifndef TARE_EVAL_VARIANT_H
#define TARE_EVAL_VARIANT_H

#include "convert/options.h"
#include "convert/prepared.h"
#include "quant/rewrite.h"

struct tare_variant {
    const char *method;      /* "float", "bfloat16", "static", "weight_only" …, "static+bias_correction+bfloat16" */
    const char *algorithm;   /* as it was asked for: "percentile:p=99.9"; NULL: the method looks at no ranges */
    const char *granularity; /* of the weights: "per_channel", "per_tensor"; NULL: nothing is quantized */
    struct tare_quantization quantization; /* without method for float and bfloat16 */
    struct tare_algorithm_choice choice;   /* of `algorithm` */
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
