/* Composite functions: a function annotated with experimental_implements (attribute _implements: a name, or a name with
 * attributes) or by Keras (api_implements: "lstm_…", "gru_…") says what it computes. Its body is replaced by the fused
 * form of that, with the function's arguments and returns as the interface. What does not fit stays as it is, and says
 * why. */
#ifndef TARE_CONVERT_COMPOSITES_H
#define TARE_CONVERT_COMPOSITES_H

#include "graph/model.h"

/* What became of one annotated function. */
struct tare_composite {
    const char *function;
    const char *implements; /* the annotation's name */
    const char *reason;     /* why it stays composite; NULL: fused */
};

struct tare_composites {
    struct tare_composite *items;
    size_t count, fused;
};

/* Looks at every annotated function that signatures, aliases or concretes reach; arena memory. A fused function loses
 * its annotation, so that neither this nor a runtime takes it for a composite again. Values of look-ups and of Keras'
 * layers stay bit for bit what they were; a layer normalisation may differ by rounding, and an op of the user's
 * computes what its plugin does. */
tare_status tare_composites_fuse(struct tare_composites *out, struct tare_arena *arena, struct tare_model *model);

#endif
