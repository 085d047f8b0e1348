/* Default values: what a feature that is missing becomes has the dtype of the same feature in other records. With a
 * default value that is not whole, integers become float32 in all records. */
#include "datasets/spec_input.h"

#include <math.h>

/* Whole numbers that double represents exactly. */
static bool is_whole(const Tare__DatasetInput *input) {
    for (size_t i = 0; i < input->n_default_value; i++)
        if (input->default_value[i] != rint(input->default_value[i]) || fabs(input->default_value[i]) > 0x1p53)
            return false;
    return true;
}

static bool has_resize(const Tare__DatasetImage *image) {
    for (size_t i = 0; i < image->n_step; i++)
        if (image->step[i]->kind_case == TARE__DATASET_IMAGE_STEP__KIND_RESIZE) return true;
    return false;
}

/* What the spec itself determines; TARE_DT_INVALID: nothing. */
static int dtype_of_source(const Tare__DatasetInput *input) {
    if (input->n_class_name) return TARE_DT_INT64;
    if (input->raw_type) return tare__spec_dtype(input->raw_type);
    if (input->image) return has_resize(input->image) ? TARE_DT_FLOAT : TARE_DT_UINT8;
    switch (input->source) {
    case TARE__DATASET_INPUT__SOURCE__FLOAT_LIST:
        return TARE_DT_FLOAT;
    case TARE__DATASET_INPUT__SOURCE__INT64_LIST:
        return TARE_DT_INT64;
    case TARE__DATASET_INPUT__SOURCE__JPEG:
    case TARE__DATASET_INPUT__SOURCE__PNG:
    case TARE__DATASET_INPUT__SOURCE__IMAGE:
        return TARE_DT_UINT8;
    default:
        return TARE_DT_INVALID;
    }
}

int tare__spec_result_dtype(const Tare__DatasetInput *input, int dtype) {
    const bool is_joined = input->n_column && dtype == TARE_DT_DOUBLE;
    if (!input->type && (is_joined || (tare_dtype_is_integer(dtype) && !is_whole(input)))) return TARE_DT_FLOAT;
    return tare__spec_dtype(input->type);
}

tare_status tare__spec_default_dtype(int *out, const Tare__DatasetInput *input, const struct tare_features *features,
                                     const char *name) {
    int dtype = dtype_of_source(input);
    if (dtype == TARE_DT_INVALID) dtype = tare_features_dtype(features, name);
    if ((dtype == TARE_DT_INVALID || tare_dtype_is_integer(dtype)) && !is_whole(input)) dtype = TARE_DT_FLOAT;
    if (dtype == TARE_DT_INVALID && input->type) dtype = TARE_DT_INT64;
    *out = dtype;
    if (dtype != TARE_DT_INVALID) return TARE_OK;
    return TARE_FAIL(TARE_TYPE,
                     "the record has no feature '%s', and the dtype of default_value is not known (set type to that of "
                     "the model's input, such as FLOAT32)",
                     name);
}

tare_status tare__spec_make_default(struct tare_tensor *out, const Tare__DatasetInput *input,
                                    const struct tare_features *features) {
    const Tare__DatasetInput plain = TARE__DATASET_INPUT__INIT;
    struct tare_shape shape;
    int dtype = TARE_DT_DOUBLE;
    if (!input->type) TARE_TRY(tare__spec_default_dtype(&dtype, input, features, input->feature));
    TARE_TRY(tare_shape_from_dims(&shape, (int)input->n_shape, input->shape));
    TARE_TRY(tare_tensor_new(out, TARE_DT_DOUBLE, &shape));
    for (int64_t i = 0; i < out->elements; i++)
        TARE_DATA(double, out)[i] = input->default_value[input->n_default_value == 1 ? 0 : i];
    return tare__spec_convert(out, &plain, dtype);
}
