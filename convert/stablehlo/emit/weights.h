/* Weights of a module that are arguments of main, in a file of safetensors next to it: a 64-bit size, a JSON object
 * with the dtype, shape and place of each tensor by name, and the elements. */
#ifndef TARE_CONVERT_STABLEHLO_EMIT_WEIGHTS_H
#define TARE_CONVERT_STABLEHLO_EMIT_WEIGHTS_H

#include "convert/stablehlo/emit/build.h"

struct tare_emit_weight {
    const char *name; /* of its node; unique */
    tare_build_value value;
    const struct tare_tensor *tensor; /* borrowed */
};

/* By name, in the order of bytes: the order of the arguments. */
void tare_emit_sort_weights(struct tare_emit_weight *weights, size_t count);
/* TARE_UNSUPPORTED for dtypes that safetensors does not have. */
tare_status tare_emit_write_weights(const char *path, const struct tare_emit_weight *weights,
                                    size_t count) TARE_WARN_UNUSED;

#endif
