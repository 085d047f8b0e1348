/* The forms in which a network is run: as it was built, converted, and quantized by the project's own passes. */
#ifndef TARE_TESTS_DIFFERENTIAL_VARIANT_H
#define TARE_TESTS_DIFFERENTIAL_VARIANT_H

#include "graph/model.h"

struct variant {
    const char *name;
    bool prepares;        /* runs the passes before quantization */
    const char *quantize; /* option text of `tare quantize`; NULL: not quantized */
    bool draws;           /* options of `tare quantize` that follow from the seed, and bfloat16 for some */
    bool to_bfloat16;
    bool mixes; /* ranges are those of the whole batch: the outputs of an example depend on the others */
};
extern const struct variant variants[]; /* ends with a row without a name */

/* Converts a model in place. Ranges are those of a few random examples of the shape, drawn from the seed. */
void variant_apply(const struct variant *variant, struct tare_graph_model *model, const struct tare_shape *shape,
                   uint64_t seed);

/* Values for an input; some are zeros and extremes. The caller resets it. */
struct tare_tensor variant_examples(const struct tare_shape *shape, uint64_t seed);
/* Replaces some of them by NaN, infinities, and numbers whose products are none. */
void variant_spoil(struct tare_tensor *examples, uint64_t seed);

#endif
