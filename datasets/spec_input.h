/* Shared by parsing a spec and applying it. */
#ifndef TARE_DATASETS_SPEC_INPUT_H
#define TARE_DATASETS_SPEC_INPUT_H

#include "datasets/features.h"
#include "proto/tare/dataset_spec.pb-c.h"

struct tare_dataset_spec {
    struct tare_arena arena;
    Tare__DatasetInput **inputs; /* checked; the label is last; name and feature are set */
    size_t count;
};

/* The dtype of a type in a spec; TARE_DT_INVALID for the default. */
int tare__spec_dtype(Tare__DatasetInput__Type type);
/* spec_image.c: decodes an image and applies the steps of the input. */
tare_status tare__spec_make_image(struct tare_tensor *out, const Tare__DatasetInput *input,
                                  struct tare_str file) TARE_WARN_UNUSED;
/* Applies the steps to a decoded image. */
tare_status tare__spec_edit_image(struct tare_tensor *image, const Tare__DatasetInput *input) TARE_WARN_UNUSED;
/* spec_number.c: replaces numbers by (x * scale - mean) / std, converted to `dtype` (TARE_DT_INVALID: the same dtype,
 * or float32 if scaled). Shares the elements if nothing changes. */
tare_status tare__spec_convert(struct tare_tensor *value, const Tare__DatasetInput *input, int dtype) TARE_WARN_UNUSED;

#endif
