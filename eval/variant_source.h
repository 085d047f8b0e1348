/* Builds the variants of one model, for comparisons, sensitivity measurements and searches. What variants share is
 * decided here and in two places that this file brings together:
 *
 *   the prepared model       loaded and prepared once; each variant is made from a clone (graph/clone.h), which shares
 *                            the constants
 *   integer weights          by constant and settings, up to 256 MiB (quant/weight_store.h)
 *   activation ranges        by tensor and algorithm, in the calibration (calib/algorithm.h)
 *
 * A variant is the same as one made from the model's files. */
#ifndef TARE_EVAL_VARIANT_SOURCE_H
#define TARE_EVAL_VARIANT_SOURCE_H

#include "eval/variant.h"
#include "quant/weight_store.h"

/* Used by one thread at a time. */
struct tare_variant_source {
    const char *model;                  /* SavedModel directory */
    const struct tare_op_registry *ops; /* NULL: the built-in ops */
    struct tare_graph_model *prepared;  /* NULL until the first variant is made */
    struct tare_quant_weight_store weights;
};

/* The prepared model, which must not be changed; borrowed from the source. */
tare_status tare_variant_source_prepared(const struct tare_graph_model **out,
                                         struct tare_variant_source *source) TARE_WARN_UNUSED;
/* The prepared model as a copy that the caller may change; it must be freed before the source. */
tare_status tare_variant_source_clone(struct tare_graph_model **out,
                                      struct tare_variant_source *source) TARE_WARN_UNUSED;
/* A model quantized as the variant specifies; likewise. `report` is in the memory of the arena and of the model. */
tare_status tare_variant_source_make(struct tare_graph_model **out, struct tare_quant_report *report,
                                     struct tare_arena *arena, struct tare_variant_source *source,
                                     const struct tare_variant *variant,
                                     struct tare_calibration *calibration) TARE_WARN_UNUSED;
void tare_variant_source_close(struct tare_variant_source *source);

#endif
