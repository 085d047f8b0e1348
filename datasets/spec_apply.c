/* Applies a spec: converts the features of a record to a sample. */
#include "base/alloc.h"
#include "base/image/image.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "datasets/record_kind.h"
#include "datasets/spec.h"
#include "datasets/spec_input.h"

#include <string.h>

typedef Tare__DatasetInput input_row;

enum { NAMES_SHOWN = 32 };

/* ---- finding ---- */

/* The keys with values, as many as messages show; the rest of the array is NULL. */
static void list_names(const char *names[NAMES_SHOWN + 1], const struct tare_features *features) {
    size_t count = 0;
    memset(names, 0, (NAMES_SHOWN + 1) * sizeof *names);
    for (size_t i = 0; i < features->count && count < NAMES_SHOWN; i++)
        if (features->items[i].values.dtype != TARE_DT_INVALID) names[count++] = features->items[i].key;
}

static bool has_key(const struct tare_features *features, const char *name) {
    for (size_t i = 0; i < features->count; i++)
        if (strcmp(features->items[i].key, name) == 0) return true;
    return false;
}

static tare_status no_feature(const char *name, const struct tare_features *features) {
    const char *names[NAMES_SHOWN + 1], *near;
    struct tare_strbuf list = { 0 };
    tare_status status;
    if (has_key(features, name))
        return TARE_FAIL(TARE_NOT_FOUND, "'%s' has no value in this record (default_value sets one)", name);
    list_names(names, features);
    for (size_t i = 0; names[i]; i++)
        tare_strbuf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    near = tare_nearest_name(name, names);
    status = TARE_FAIL(TARE_NOT_FOUND, "the record has no feature '%s'%s%s%s (it has %s)", name,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                       names[0] ? tare_strbuf_text(&list) : "none");
    tare_strbuf_free(&list);
    return status;
}

/* Samples need no label: it is left out where the record has neither its feature nor one with a similar name. */
static bool is_unlabelled(const struct tare_dataset_spec *spec, const input_row *input,
                          const struct tare_features *features) {
    const char *names[NAMES_SHOWN + 1];
    if (input != spec->label || input->n_column || input->n_default_value || has_key(features, input->feature))
        return false;
    list_names(names, features);
    return input->source != TARE__DATASET_INPUT__SOURCE__RECORD && !tare_nearest_name(input->feature, names);
}

/* Whether a feature that the spec does not name is left out. */
static bool is_not_kept(const struct tare_dataset_spec *spec, size_t i, const struct tare_features *features) {
    if (i < spec->count - spec->kept) return false;
    const struct tare_feature *feature = tare_features_find(features, spec->inputs[i]->feature);
    return !feature || feature->values.dtype == TARE_DT_STRING;
}

static bool is_column_dtype(int dtype) {
    return dtype == TARE_DT_BOOL || tare_dtype_is_integer(dtype) || tare_dtype_is_floating(dtype);
}

/* A column of a CSV file is text as a whole because of one value. */
static tare_status not_numeric(const struct tare_feature *feature) {
    return TARE_FAIL(TARE_TYPE, "column '%s' is %s (expected numbers)%s%s", feature->key,
                     tare_dtype_name(feature->values.dtype), feature->reason ? " because of " : "",
                     feature->reason ? feature->reason : "");
}

/* ---- sources ---- */

static tare_status wrong_kind(const struct tare_feature *feature, const char *expected) {
    const char *is = tare_dtype_name(feature->values.dtype);
    if (feature->from_example)
        is = feature->values.dtype == TARE_DT_STRING  ? "a bytes_list"
             : feature->values.dtype == TARE_DT_FLOAT ? "a float_list"
                                                      : "an int64_list";
    return TARE_FAIL(TARE_TYPE, "feature '%s' is %s (expected %s)", feature->key, is, expected);
}

static tare_status one_string(struct tare_str *out, const struct tare_feature *feature) {
    if (feature->values.dtype != TARE_DT_STRING) return wrong_kind(feature, "a bytes_list");
    if (feature->values.elements != 1)
        return TARE_FAIL(TARE_SHAPE, "feature '%s' has %lld values (expected one image)", feature->key,
                         (long long)feature->values.elements);
    *out = TARE_CONST_DATA(struct tare_str, &feature->values)[0];
    return TARE_OK;
}

static tare_status decode_raw(struct tare_tensor *out, const input_row *input, const struct tare_feature *feature) {
    int dtype = tare__spec_dtype(input->raw_type ? input->raw_type : input->type);
    const struct tare_str *parts = TARE_CONST_DATA(struct tare_str, &feature->values);
    struct tare_shape shape = { .rank = 1 };
    size_t bytes = 0;
    char *at;
    if (feature->values.dtype != TARE_DT_STRING) return wrong_kind(feature, "a bytes_list");
    for (int64_t i = 0; i < feature->values.elements; i++)
        bytes += parts[i].size;
    if (bytes % tare_dtype_size(dtype))
        return TARE_FAIL(TARE_SHAPE, "feature '%s' has %zu bytes (expected a multiple of %zu for %s)", feature->key,
                         bytes, tare_dtype_size(dtype), tare_dtype_name(dtype));
    shape.dims[0] = (int64_t)(bytes / tare_dtype_size(dtype));
    TARE_TRY(tare_tensor_new(out, dtype, &shape));
    at = out->data;
    for (int64_t i = 0; i < feature->values.elements; i++) {
        if (parts[i].size) memcpy(at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    return TARE_OK;
}

/* The dtype that the input asks for where a record has a feature list without steps, whose own is not known. */
static int expected_dtype(const input_row *input) {
    if (input->source == TARE__DATASET_INPUT__SOURCE__INT64_LIST) return TARE_DT_INT64;
    if (input->source == TARE__DATASET_INPUT__SOURCE__BYTES || input->n_class_name) return TARE_DT_STRING;
    const int type = tare__spec_dtype(input->type);
    if (input->source == TARE__DATASET_INPUT__SOURCE__FLOAT_LIST || type == TARE_DT_INVALID) return TARE_DT_FLOAT;
    return type == TARE_DT_STRING || tare_dtype_is_floating(type) ? type : TARE_DT_INT64;
}

static tare_status find_values(struct tare_tensor *out, const input_row *input, const struct tare_feature *feature) {
    struct tare_str file;
    if (feature->is_list && !feature->steps)
        return tare_tensor_new(out, expected_dtype(input), &(struct tare_shape){ .rank = 1, .dims = { 0 } });
    switch (input->source) {
    case TARE__DATASET_INPUT__SOURCE__FLOAT_LIST:
        if (feature->values.dtype != TARE_DT_FLOAT) return wrong_kind(feature, "a float_list");
        break;
    case TARE__DATASET_INPUT__SOURCE__INT64_LIST:
        if (feature->values.dtype != TARE_DT_INT64) return wrong_kind(feature, "an int64_list");
        break;
    case TARE__DATASET_INPUT__SOURCE__BYTES:
        if (feature->values.dtype != TARE_DT_STRING) return wrong_kind(feature, "a bytes_list");
        break;
    case TARE__DATASET_INPUT__SOURCE__RAW:
        return decode_raw(out, input, feature);
    case TARE__DATASET_INPUT__SOURCE__JPEG:
    case TARE__DATASET_INPUT__SOURCE__PNG:
    case TARE__DATASET_INPUT__SOURCE__IMAGE:
        TARE_TRY(one_string(&file, feature));
        return tare_error_prefix(tare__spec_make_image(out, input, file), "feature '%s'", feature->key);
    default:
        if (input->raw_type && feature->values.dtype == TARE_DT_STRING) return decode_raw(out, input, feature);
        if (!input->image || feature->values.dtype != TARE_DT_STRING) break;
        TARE_TRY(one_string(&file, feature));
        return tare_error_prefix(tare__spec_make_image(out, input, file), "feature '%s'", feature->key);
    }
    tare_tensor_share(out, &feature->values);
    return TARE_OK;
}

/* ---- shapes ---- */

static tare_status find_classes(struct tare_tensor *value, const input_row *input) {
    struct tare_tensor out;
    if (value->dtype != TARE_DT_STRING)
        return TARE_FAIL(TARE_TYPE, "%s values (expected class names)", tare_dtype_name(value->dtype));
    TARE_TRY(tare_tensor_new(&out, TARE_DT_INT64, &value->shape));
    for (int64_t i = 0; i < value->elements; i++) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, value)[i];
        size_t k = 0;
        while (k < input->n_class_name && (strlen(input->class_name[k]) != text->size ||
                                           memcmp(input->class_name[k], text->data, text->size) != 0))
            k++;
        if (k == input->n_class_name) {
            tare_tensor_reset(&out);
            return TARE_FAIL(TARE_NOT_FOUND, "'%.*s' is none of the %zu names of class_name",
                             text->size < 100 ? (int)text->size : 100, text->data, input->n_class_name);
        }
        TARE_DATA(int64_t, &out)[i] = (int64_t)k;
    }
    tare_tensor_reset(value);
    *value = out;
    return TARE_OK;
}

/* Elements per row of the first axis: from the spec's shape, or the steps of a list, otherwise 1; -1 if steps differ.
 */
static int64_t row_size(const input_row *input, const struct tare_feature *feature) {
    int64_t size = 1;
    for (size_t i = 1; i < input->n_shape; i++)
        size *= input->shape[i];
    if (input->n_shape > 1) return size;
    if (!feature || !feature->is_list || !feature->steps) return 1;
    for (size_t i = 1; i < feature->steps; i++)
        if (feature->lengths[i] != feature->lengths[0]) return -1;
    return feature->lengths[0];
}

static tare_status fill_rows(struct tare_tensor *out, const struct tare_tensor *value, int64_t skipped, int64_t from,
                             int64_t count, double filler) {
    size_t element = tare_dtype_size(out->dtype);
    struct tare_shape one = tare_shape_scalar();
    struct tare_tensor blank;
    const input_row plain = TARE__DATASET_INPUT__INIT;
    tare_status status;
    if (out->dtype == TARE_DT_STRING) { /* new strings are empty */
        for (int64_t i = 0; i < count; i++) {
            const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, value)[skipped + i];
            TARE_TRY(tare_tensor_set_string(out, from + i, text->data, text->size));
        }
        return TARE_OK;
    }
    if (!tare__spec_number_fits(out->dtype, filler))
        return TARE_FAIL(TARE_TYPE, "the value %g of length does not fit %s", filler, tare_dtype_name(out->dtype));
    TARE_TRY(tare_tensor_from(&blank, TARE_DT_DOUBLE, &one, &filler));
    status = tare__spec_convert(&blank, &plain, out->dtype);
    for (int64_t i = 0; i < out->elements && status == TARE_OK; i++)
        memcpy((char *)out->data + (size_t)i * element, blank.data, element);
    tare_tensor_reset(&blank);
    if (count && status == TARE_OK)
        memcpy((char *)out->data + (size_t)from * element, (const char *)value->data + (size_t)skipped * element,
               (size_t)count * element);
    return status;
}

/* Truncates or pads the value to length->rows rows of `row` elements. */
static tare_status set_length(struct tare_tensor *value, const Tare__DatasetLength *length, int64_t row) {
    struct tare_shape shape = { .rank = 2, .dims = { length->rows, row } };
    struct tare_tensor out;
    int64_t expected, count, extra, missing;
    tare_status status;
    if (row < 1 || value->elements % row)
        return TARE_FAIL(TARE_SHAPE, "%lld elements are not a whole number of rows of %lld", (long long)value->elements,
                         (long long)row);
    TARE_TRY(tare_shape_elements(&expected, &shape));
    count = value->elements < expected ? value->elements : expected;
    extra = length->front ? value->elements - count : 0;
    missing = length->front ? expected - count : 0;
    TARE_TRY(tare_tensor_new(&out, value->dtype, &shape));
    status = fill_rows(&out, value, extra, missing, count, length->value);
    if (status != TARE_OK) {
        tare_tensor_reset(&out);
        return status;
    }
    tare_tensor_reset(value);
    *value = out;
    return TARE_OK;
}

static tare_status reshape(struct tare_tensor *value, const struct tare_shape *shape) {
    struct tare_tensor out;
    TARE_TRY(tare_tensor_share_as(&out, value, shape));
    tare_tensor_reset(value);
    *value = out;
    return TARE_OK;
}

static tare_status wrong_shape(const struct tare_tensor *value, const struct tare_shape *expected) {
    char got[TARE_SHAPE_TEXT_SIZE], text[TARE_SHAPE_TEXT_SIZE];
    return TARE_FAIL(TARE_SHAPE, "the value has shape %s, %lld elements (expected %s)",
                     tare_shape_text(got, &value->shape), (long long)value->elements, tare_shape_text(text, expected));
}

/* Images must have the shape of the spec; lists are reshaped. */
static tare_status set_shape(struct tare_tensor *value, const input_row *input, bool is_image) {
    struct tare_shape shape, expected;
    int64_t known = 1;
    int open = -1;
    TARE_TRY(tare_shape_from_dims(&expected, (int)input->n_shape, input->shape));
    shape = expected;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dims[i] < 0)
            open = i;
        else
            known *= shape.dims[i];
    }
    if (is_image) return tare_shape_compatible(&value->shape, &shape) ? TARE_OK : wrong_shape(value, &expected);
    if (open >= 0 && known > 0 && value->elements % known == 0) shape.dims[open] = value->elements / known;
    if (open >= 0 && shape.dims[open] < 0) return wrong_shape(value, &expected);
    if (open < 0 && known != value->elements) return wrong_shape(value, &expected);
    return reshape(value, &shape);
}

/* Removes the axis of samples, which tensors of samples have. */
static tare_status drop_axis(struct tare_tensor *value) {
    struct tare_shape shape = value->shape;
    if (shape.rank < 1 || shape.dims[0] != 1) return TARE_OK;
    memmove(shape.dims, shape.dims + 1, (size_t)(shape.rank - 1) * sizeof *shape.dims);
    shape.rank--;
    return reshape(value, &shape);
}

static tare_status add_axis(struct tare_tensor *value) {
    struct tare_shape shape = value->shape;
    if (shape.rank == TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "too many dimensions to add the axis of samples");
    memmove(shape.dims + 1, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
    shape.dims[0] = 1;
    shape.rank++;
    return reshape(value, &shape);
}

static tare_status channels_to_front(struct tare_tensor *value) {
    size_t element = tare_dtype_size(value->dtype);
    struct tare_shape shape = value->shape;
    struct tare_tensor out;
    int64_t pixels, channels;
    if (shape.rank != 3 || value->dtype == TARE_DT_STRING)
        return TARE_FAIL(TARE_SHAPE, "channels_first needs numbers [height, width, channels] (got %d dimensions)",
                         shape.rank);
    channels = shape.dims[2];
    pixels = shape.dims[0] * shape.dims[1];
    shape = (struct tare_shape){ .rank = 3, .dims = { channels, shape.dims[0], shape.dims[1] } };
    TARE_TRY(tare_tensor_new(&out, value->dtype, &shape));
    for (int64_t p = 0; p < pixels; p++)
        for (int64_t c = 0; c < channels; c++)
            memcpy((char *)out.data + (size_t)(c * pixels + p) * element,
                   (const char *)value->data + (size_t)(p * channels + c) * element, element);
    tare_tensor_reset(value);
    *value = out;
    return TARE_OK;
}

/* ---- values ---- */

static bool has_ragged_steps(const struct tare_feature *feature) {
    const input_row none = TARE__DATASET_INPUT__INIT;
    return feature->is_list && row_size(&none, feature) < 0;
}

static tare_status ragged_steps(const struct tare_feature *feature) {
    return TARE_FAIL(TARE_SHAPE,
                     "feature list '%s' has steps of different lengths (expected equal lengths, or shape: [ROWS, N], "
                     "which divides all its values, in order, into rows of N)",
                     feature->key);
}

/* Sets the number of rows of an array, whose further axes stay. */
static tare_status set_rows(struct tare_tensor *value, const Tare__DatasetLength *length) {
    struct tare_shape shape = value->shape;
    int64_t row = 1;
    if (shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "a single value has no length (expected an axis of rows)");
    for (int d = 1; d < shape.rank; d++)
        row *= shape.dims[d];
    shape.dims[0] = length->rows;
    TARE_TRY(set_length(value, length, row));
    return reshape(value, &shape);
}

static tare_status shape_value(struct tare_tensor *value, const input_row *input, const struct tare_feature *feature) {
    bool is_list = value->shape.rank == 1 && feature->from_example;
    bool from_sample = !feature->from_example;
    if (from_sample && !input->whole) TARE_TRY(drop_axis(value));
    if (input->length && from_sample && !input->n_shape) return set_rows(value, input->length);
    if (input->length && row_size(input, feature) < 0) return ragged_steps(feature);
    if (input->length) TARE_TRY(set_length(value, input->length, row_size(input, feature)));
    if (input->n_shape) return set_shape(value, input, !is_list && feature->from_example);
    if (!is_list) return TARE_OK;
    if (input->length && row_size(input, feature) == 1 && !feature->is_list)
        return reshape(value, &(struct tare_shape){ .rank = 1, .dims = { input->length->rows } });
    if (input->length || !feature->is_list || value->elements != feature->values.elements) return TARE_OK;
    if (has_ragged_steps(feature)) return ragged_steps(feature);
    if (!feature->steps) return TARE_OK;
    return reshape(value, &(struct tare_shape){ .rank = 2, .dims = { (int64_t)feature->steps, feature->lengths[0] } });
}

/* Processes a decoded image. */
static tare_status run_image_steps(struct tare_tensor *value, const input_row *input) {
    if (value->shape.rank != 3 || (value->dtype != TARE_DT_UINT8 && value->dtype != TARE_DT_FLOAT))
        return TARE_FAIL(TARE_TYPE,
                         "%s of %d dimensions is not an image (expected uint8 or float32 [height, width, channels])",
                         tare_dtype_name(value->dtype), value->shape.rank);
    return tare__spec_edit_image(value, input);
}

/* The values of numeric features, one after another: int64 if all are, otherwise float64, which becomes the type of the
 * input or float32. Absent ones take the default value. Reset out->values also after a failure. */
static tare_status join_columns(struct tare_feature *out, const input_row *input,
                                const struct tare_features *features) {
    const struct tare_feature **found = tare_calloc(input->n_column, sizeof *found);
    struct tare_shape shape = { .rank = 1 };
    int dtype = TARE_DT_INT64;
    tare_status status = found ? TARE_OK : TARE_NO_MEMORY;
    *out = (struct tare_feature){ .key = input->column[0], .from_example = true };
    for (size_t i = 0; i < input->n_column && status == TARE_OK; i++) {
        found[i] = tare_features_find(features, input->column[i]);
        status = tare_features_check(features, input->column[i]);
        if (status != TARE_OK) break;
        if (found[i] && !found[i]->values.elements) found[i] = NULL;
        if (!found[i] && !input->n_default_value)
            status = no_feature(input->column[i], features);
        else if (found[i] && !is_column_dtype(found[i]->values.dtype))
            status = not_numeric(found[i]);
        int is = found[i] ? found[i]->values.dtype : TARE_DT_INVALID;
        if (!found[i] && status == TARE_OK) status = tare__spec_default_dtype(&is, input, features, input->column[i]);
        if (is != TARE_DT_INT64) dtype = TARE_DT_DOUBLE;
        shape.dims[0] += found[i] ? found[i]->values.elements : 1;
    }
    if (status == TARE_OK) status = tare_tensor_new(&out->values, dtype, &shape);
    int64_t *ints = out->values.data; /* or */
    double *numbers = out->values.data;
    for (size_t i = 0, at = 0; i < input->n_column && status == TARE_OK; i++) {
        const int64_t count = found[i] ? found[i]->values.elements : 1;
        for (int64_t k = 0; k < count; k++, at++) {
            if (dtype == TARE_DT_INT64)
                ints[at] = found[i] ? tare_tensor_get_i64(&found[i]->values, k) : (int64_t)input->default_value[0];
            else
                numbers[at] = found[i] ? tare_tensor_get_f64(&found[i]->values, k) : input->default_value[0];
        }
    }
    tare_free(found);
    return status;
}

static tare_status make_from_feature(struct tare_tensor *out, const input_row *input,
                                     const struct tare_feature *feature) {
    TARE_TRY(find_values(out, input, feature));
    if (input->n_class_name) TARE_TRY(find_classes(out, input));
    TARE_TRY(shape_value(out, input, feature));
    if (input->image && feature->values.dtype != TARE_DT_STRING) TARE_TRY(run_image_steps(out, input));
    return TARE_OK;
}

static tare_status make_from_columns(struct tare_tensor *out, const input_row *input,
                                     const struct tare_features *features) {
    struct tare_feature joined;
    tare_status status = join_columns(&joined, input, features);
    if (status == TARE_OK) status = make_from_feature(out, input, &joined);
    tare_tensor_reset(&joined.values);
    return status;
}

/* The whole record as one string. */
static tare_status make_from_record(struct tare_tensor *out, const input_row *input,
                                    const struct tare_features *features) {
    const struct tare_shape one = { .rank = 1, .dims = { 1 } };
    struct tare_feature record = { .key = "record", .from_example = true };
    if (!features->record.data)
        return TARE_FAIL(TARE_TYPE, "source RECORD needs a TFRecord file (images, arrays and CSV rows have no record)");
    TARE_TRY(tare_tensor_wrap(&record.values, TARE_DT_STRING, &one, &features->record, NULL, NULL));
    const tare_status status = make_from_feature(out, input, &record);
    tare_tensor_reset(&record.values);
    return status;
}

static tare_status convert(struct tare_tensor *value, const input_row *input, const struct tare_feature *feature) {
    const tare_status status = tare__spec_convert(value, input, tare__spec_result_dtype(input, value->dtype));
    if (status != TARE_TYPE || !feature || !feature->reason) return status;
    return tare_error_prefix(status, "column '%s' is text because of %s", feature->key, feature->reason);
}

static tare_status make_value(struct tare_tensor *out, const input_row *input, const struct tare_features *features) {
    const struct tare_feature *feature = tare_features_find(features, input->feature);
    if (!input->n_column) TARE_TRY(tare_features_check(features, input->feature));
    if (feature && !feature->values.elements && input->n_default_value) feature = NULL; /* an empty list is absent */
    if (input->source == TARE__DATASET_INPUT__SOURCE__RECORD)
        TARE_TRY(make_from_record(out, input, features));
    else if (input->n_column)
        TARE_TRY(make_from_columns(out, input, features));
    else if (feature)
        TARE_TRY(make_from_feature(out, input, feature));
    else
        TARE_TRY(input->n_default_value ? tare__spec_make_default(out, input, features)
                                        : no_feature(input->feature, features));
    TARE_TRY(convert(out, input, feature));
    if (input->channels_first) TARE_TRY(channels_to_front(out));
    return input->whole ? TARE_OK : add_axis(out);
}

/* Copies elements that belong to the features' arena: samples outlive features. */
static tare_status own(struct tare_tensor *value) {
    struct tare_tensor copy;
    if (tare_tensor_is_exclusive(value)) return TARE_OK;
    TARE_TRY(tare_tensor_copy(&copy, value));
    tare_tensor_reset(value);
    *value = copy;
    return TARE_OK;
}

static void check_rotation(const struct tare_dataset_spec *spec, const input_row *input,
                           const struct tare_features *features) {
    const struct tare_feature *feature = tare_features_find(features, input->feature);
    const struct tare_tensor *value = feature ? &feature->values : NULL;
    const bool decodes = input->image || input->source == TARE__DATASET_INPUT__SOURCE__JPEG ||
                         input->source == TARE__DATASET_INPUT__SOURCE__IMAGE;
    if (!decodes || !value || value->dtype != TARE_DT_STRING || value->elements != 1) return;
    if (tare_image_orientation(TARE_CONST_DATA(struct tare_str, value)[0]) != 1) atomic_store(spec->met_rotated, true);
}

tare_status tare_dataset_spec_apply(struct tare_sample *out, const struct tare_dataset_spec *spec,
                                    const struct tare_features *features) {
    memset(out, 0, sizeof *out);
    out->keys = TARE_NEW_ARRAY(&out->arena, const char *, spec->count);
    out->values = TARE_NEW_ARRAY(&out->arena, struct tare_tensor, spec->count);
    if (!out->keys || !out->values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < spec->count; i++) {
        const size_t k = out->count;
        tare_status status;
        if (is_unlabelled(spec, spec->inputs[i], features) || is_not_kept(spec, i, features)) continue;
        out->keys[k] = tare_arena_strdup(&out->arena, spec->inputs[i]->name);
        if (!out->keys[k]) return TARE_NO_MEMORY;
        out->count++;
        status = make_value(&out->values[k], spec->inputs[i], features);
        if (status == TARE_OK) status = own(&out->values[k]);
        if (status == TARE_OK) check_rotation(spec, spec->inputs[i], features);
        TARE_TRY(tare_error_prefix(status, "input '%s'", spec->inputs[i]->name));
    }
    return TARE_OK;
}

static tare_status decode_features(struct tare_features *out, const void *data, size_t size) {
    enum tare_record_kind kind = tare_record_kind_of(data, size);
    struct tare_sample sample;
    tare_status status;
    if (kind != TARE_RECORD_SAMPLE) return tare_features_decode(out, data, size);
    memset(out, 0, sizeof *out);
    status = tare_sample_decode(&sample, data, size);
    if (status == TARE_OK) status = tare_features_of_sample(out, &sample);
    tare_sample_reset(&sample);
    return status;
}

tare_status tare_dataset_spec_decode(struct tare_sample *out, const struct tare_dataset_spec *spec, const void *data,
                                     size_t size) {
    struct tare_features features;
    tare_status status = decode_features(&features, data, size);
    memset(out, 0, sizeof *out);
    features.record = (struct tare_str){ size ? data : "", size };
    if (status == TARE_OK) status = tare_dataset_spec_apply(out, spec, &features);
    tare_features_reset(&features);
    return status;
}
