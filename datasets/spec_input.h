/* What reading a spec and applying it share. */
#ifndef TARE_DATASETS_SPEC_INPUT_H
#define TARE_DATASETS_SPEC_INPUT_H

#include "datasets/features.h"
#include "proto/tare/dataset_spec.pb-c.h"

struct tare_dataset_spec {
    struct tare_arena arena;
    Tare__DatasetInput **inputs; /* checked; the label last; name and feature filled in */
    size_t count;
};

/* The dtype that a type of the spec stands for, TARE_DT_INVALID for the default. */
int tare__spec_dtype(Tare__DatasetInput__Type type);
/* In spec_picture.c: bytes to a picture as the input wants it. */
tare_status tare__spec_make_picture(struct tare_tensor *out, const Tare__DatasetInput *input,
                                    struct tare_str file) TARE_WARN_UNUSED;
/* The steps for a picture that is decoded. */
tare_status tare__spec_edit_picture(struct tare_tensor *picture, const Tare__DatasetInput *input) TARE_WARN_UNUSED;
/* In spec_number.c: replaces numbers by (x * scale - mean) / std in another dtype (TARE_DT_INVALID: the same, but
 * float32 for what is scaled). A dtype without change shares. */
tare_status tare__spec_convert(struct tare_tensor *value, const Tare__DatasetInput *input, int dtype) TARE_WARN_UNUSED;

#endif
