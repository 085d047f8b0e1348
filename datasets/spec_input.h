/* Shared by parsing a spec and applying it. */
#ifndef TARE_DATASETS_SPEC_INPUT_H
#define TARE_DATASETS_SPEC_INPUT_H

#include "datasets/features.h"
#include "proto/tare/dataset_spec.pb-c.h"

#include <stdatomic.h>

struct tare_dataset_spec {
    struct tare_arena arena;
    Tare__DatasetInput **inputs;     /* checked; the label is last; name and feature are set */
    const Tare__DatasetInput *label; /* NULL: none */
    size_t count,
        kept; /* the last `kept` inputs are features that no line of the spec names (tare_dataset_spec_keep) */
    atomic_bool *met_rotated; /* from the arena; set by every thread that decodes such an image */
};

/* The dtype of a type in a spec; TARE_DT_INVALID for the default. */
int tare__spec_dtype(Tare__DatasetInput__Type type);
/* spec_image.c: decodes an image and applies the steps of the input. */
tare_status tare__spec_make_image(struct tare_tensor *out, const Tare__DatasetInput *input,
                                  struct tare_str file) TARE_WARN_UNUSED;
/* Applies the steps to a decoded image. */
tare_status tare__spec_edit_image(struct tare_tensor *image, const Tare__DatasetInput *input) TARE_WARN_UNUSED;
/* spec_default.c: the dtype that the feature, which this record lacks, has in others: from the spec, from the record,
 * or float32 for numbers that are not whole. TARE_TYPE if none of these shows it and the spec has no type. */
tare_status tare__spec_default_dtype(int *out, const Tare__DatasetInput *input, const struct tare_features *features,
                                     const char *name) TARE_WARN_UNUSED;
/* The dtype of the input, whose values have `dtype` before; TARE_DT_INVALID: the spec does not set it. */
int tare__spec_result_dtype(const Tare__DatasetInput *input, int dtype);
/* The default value, before it is scaled and converted, in the input's shape. */
tare_status tare__spec_make_default(struct tare_tensor *out, const Tare__DatasetInput *input,
                                    const struct tare_features *features) TARE_WARN_UNUSED;
/* spec_number.c: replaces numbers by (x * scale - mean) / std, converted to `dtype` (TARE_DT_INVALID: the same dtype,
 * or float32 if scaled). Shares the elements if nothing changes. */
tare_status tare__spec_convert(struct tare_tensor *value, const Tare__DatasetInput *input, int dtype) TARE_WARN_UNUSED;
/* False if the dtype is an integer type or bool, and conversion would clip x. */
bool tare__spec_number_fits(int dtype, double x);

#endif
