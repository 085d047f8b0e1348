/* Reading and checking a DatasetSpec. */
#include "datasets/spec.h"
#include "base/alloc.h"
#include "base/ascii.h"
#include "base/file.h"
#include "datasets/spec_input.h"
#include "proto/text_format.h"

#include <math.h>
#include <string.h>

enum { LARGEST_SIDE = INT16_MAX, LARGEST_ROWS = INT32_MAX };

typedef Tare__DatasetInput input_row;

int tare__spec_dtype(Tare__DatasetInput__Type type) {
    static const int dtypes[] = {
        [TARE__DATASET_INPUT__TYPE__DEFAULT] = TARE_DT_INVALID,   [TARE__DATASET_INPUT__TYPE__FLOAT32] = TARE_DT_FLOAT,
        [TARE__DATASET_INPUT__TYPE__FLOAT64] = TARE_DT_DOUBLE,    [TARE__DATASET_INPUT__TYPE__FLOAT16] = TARE_DT_HALF,
        [TARE__DATASET_INPUT__TYPE__BFLOAT16] = TARE_DT_BFLOAT16, [TARE__DATASET_INPUT__TYPE__INT8] = TARE_DT_INT8,
        [TARE__DATASET_INPUT__TYPE__INT16] = TARE_DT_INT16,       [TARE__DATASET_INPUT__TYPE__INT32] = TARE_DT_INT32,
        [TARE__DATASET_INPUT__TYPE__INT64] = TARE_DT_INT64,       [TARE__DATASET_INPUT__TYPE__UINT8] = TARE_DT_UINT8,
        [TARE__DATASET_INPUT__TYPE__UINT16] = TARE_DT_UINT16,     [TARE__DATASET_INPUT__TYPE__UINT32] = TARE_DT_UINT32,
        [TARE__DATASET_INPUT__TYPE__UINT64] = TARE_DT_UINT64,     [TARE__DATASET_INPUT__TYPE__BOOL] = TARE_DT_BOOL,
        [TARE__DATASET_INPUT__TYPE__STRING] = TARE_DT_STRING,
    };
    return dtypes[type];
}

const char *tare_dataset_spec_type_name(int dtype) {
    const ProtobufCEnumDescriptor *types = &tare__dataset_input__type__descriptor;
    for (unsigned i = 0; i < types->n_values && dtype != TARE_DT_INVALID; i++)
        if (tare__spec_dtype((Tare__DatasetInput__Type)types->values[i].value) == dtype) return types->values[i].name;
    return NULL;
}

#define INVALID(...) TARE_FAIL(TARE_INVALID_ARGUMENT, __VA_ARGS__)

/* ---- rules ---- */

static tare_status check_shape(const input_row *input) {
    int64_t elements = 1;
    int open = 0;
    if (input->n_shape >= TARE_MAX_RANK)
        return INVALID("shape has %zu dimensions (expected at most %d)", input->n_shape, TARE_MAX_RANK - 1);
    for (size_t i = 0; i < input->n_shape; i++) {
        int64_t dim = input->shape[i];
        open += dim == -1;
        if (dim < -1 || open > 1)
            return INVALID("dimension %lld of shape (expected sizes, and -1 at most once)", (long long)dim);
        if (dim > 0 && !tare_mul_i64(&elements, elements, dim)) return INVALID("shape has too many elements");
    }
    if (!input->n_default_value) return TARE_OK;
    if (!input->n_shape || open) return INVALID("default_value needs a shape without -1");
    if (tare__spec_dtype(input->type) == TARE_DT_STRING) return INVALID("default_value is a number, type is STRING");
    if (input->n_default_value != 1 && (int64_t)input->n_default_value != elements)
        return INVALID("default_value has %zu values (expected 1 or the %lld of shape)", input->n_default_value,
                       (long long)elements);
    return TARE_OK;
}

static bool is_side(int64_t pixels) {
    return pixels >= 1 && pixels <= LARGEST_SIDE;
}

/* PIL's Image.resize has these filters among ours. */
static bool pil_has(Tare__DatasetResize__Method method) {
    return method == TARE__DATASET_RESIZE__METHOD__BILINEAR || method == TARE__DATASET_RESIZE__METHOD__NEAREST ||
           method == TARE__DATASET_RESIZE__METHOD__BICUBIC || method == TARE__DATASET_RESIZE__METHOD__LANCZOS3;
}

static tare_status check_resize(const Tare__DatasetResize *resize) {
    const bool size = resize->height != 0 || resize->width != 0;
    if ((resize->shorter_side != 0) + (resize->longer_side != 0) + size != 1)
        return INVALID("resize takes either height and width or shorter_side or longer_side");
    if (resize->n_pad && !size) return INVALID("pad of resize needs height and width (or use a step pad)");
    if (resize->convention == TARE__DATASET_RESIZE__CONVENTION__PIL && !pil_has(resize->method))
        return INVALID("convention PIL with this method (expected BILINEAR, NEAREST, BICUBIC or LANCZOS)");
    if (resize->convention == TARE__DATASET_RESIZE__CONVENTION__PIL && resize->filter_case && !resize->antialias &&
        resize->method != TARE__DATASET_RESIZE__METHOD__NEAREST)
        return INVALID("convention PIL with antialias: false (PIL always antialiases; remove one of the two)");
    if (resize->method == TARE__DATASET_RESIZE__METHOD__ANTIALIAS && resize->filter_case && !resize->antialias)
        return INVALID("method ANTIALIAS with antialias: false (expected BILINEAR)");
    for (size_t i = 0; i < resize->n_pad; i++)
        if (!isfinite(resize->pad[i])) return INVALID("pad %g (expected a number)", resize->pad[i]);
    if (size && !(is_side(resize->height) && is_side(resize->width)))
        return INVALID("resize to %lld x %lld (expected 1 to %d)", (long long)resize->height, (long long)resize->width,
                       LARGEST_SIDE);
    if (resize->shorter_side && !is_side(resize->shorter_side))
        return INVALID("shorter_side %lld (expected 1 to %d)", (long long)resize->shorter_side, LARGEST_SIDE);
    if (resize->longer_side && !is_side(resize->longer_side))
        return INVALID("longer_side %lld (expected 1 to %d)", (long long)resize->longer_side, LARGEST_SIDE);
    return TARE_OK;
}

static tare_status check_pad(const Tare__DatasetPad *pad) {
    for (size_t i = 0; i < pad->n_value; i++)
        if (!isfinite(pad->value[i])) return INVALID("value %g of pad (expected a number)", pad->value[i]);
    if (!is_side(pad->height) || !is_side(pad->width))
        return INVALID("pad to %lld x %lld (expected 1 to %d)", (long long)pad->height, (long long)pad->width,
                       LARGEST_SIDE);
    return TARE_OK;
}

static tare_status check_crop(const Tare__DatasetCrop *crop) {
    bool part = crop->fraction != 0, size = crop->height != 0 || crop->width != 0;
    if (part == size) return INVALID("crop takes either height and width or fraction");
    if (part && !(crop->fraction > 0 && crop->fraction <= 1))
        return INVALID("fraction %g (expected over 0, up to 1)", crop->fraction);
    if (size && (crop->height < 1 || crop->width < 1))
        return INVALID("crop to %lld x %lld (expected at least 1)", (long long)crop->height, (long long)crop->width);
    return TARE_OK;
}

static tare_status check_image(const input_row *input) {
    const Tare__DatasetImage *image = input->image;
    if (!image) return TARE_OK;
    if ((input->source != TARE__DATASET_INPUT__SOURCE__AUTO && input->source < TARE__DATASET_INPUT__SOURCE__JPEG) ||
        input->source == TARE__DATASET_INPUT__SOURCE__RECORD)
        return INVALID("image cannot be combined with source %s",
                       tare__dataset_input__source__descriptor.values[input->source].name);
    if (image->channels < 0 || image->channels == 2 || image->channels > 4)
        return INVALID("channels %d (expected 1, 3 or 4, or 0 for those of the file)", image->channels);
    if (image->channels == 4 && input->source == TARE__DATASET_INPUT__SOURCE__JPEG)
        return INVALID("channels 4: a JPEG has no alpha channel");
    for (size_t i = 0; i < image->n_step; i++) {
        const Tare__DatasetImageStep *step = image->step[i];
        tare_status status;
        if (step->kind_case == TARE__DATASET_IMAGE_STEP__KIND_RESIZE)
            status = check_resize(step->resize);
        else if (step->kind_case == TARE__DATASET_IMAGE_STEP__KIND_CROP)
            status = check_crop(step->crop);
        else if (step->kind_case == TARE__DATASET_IMAGE_STEP__KIND_PAD)
            status = check_pad(step->pad);
        else
            status = INVALID("no resize, crop or pad");
        TARE_TRY(tare_error_prefix(status, "step %zu", i + 1));
    }
    return TARE_OK;
}

/* Values that stand for others are not clipped to the type. */
static tare_status check_fillers(const input_row *input) {
    const int dtype = tare__spec_dtype(input->type);
    if (dtype == TARE_DT_INVALID) return TARE_OK;
    for (size_t i = 0; i < input->n_default_value; i++)
        if (!tare__spec_number_fits(dtype, input->default_value[i]))
            return INVALID("default_value %g does not fit %s", input->default_value[i], tare_dtype_name(dtype));
    if (input->length && !tare__spec_number_fits(dtype, input->length->value))
        return INVALID("the value %g of length does not fit %s", input->length->value, tare_dtype_name(dtype));
    return TARE_OK;
}

static tare_status check_numbers(const input_row *input) {
    bool scaled = input->scale != 0 || input->n_mean || input->n_std;
    if (!isfinite(input->scale)) return INVALID("scale %g (expected a number)", input->scale);
    for (size_t i = 0; i < input->n_mean; i++)
        if (!isfinite(input->mean[i])) return INVALID("mean %g (expected a number)", input->mean[i]);
    for (size_t i = 0; i < input->n_std; i++)
        if (!isfinite(input->std[i]) || input->std[i] == 0)
            return INVALID("std %g (expected a number other than 0)", input->std[i]);
    if (scaled && tare__spec_dtype(input->type) == TARE_DT_STRING) return INVALID("strings cannot be scaled");
    if (input->truncate && !tare_dtype_is_integer(tare__spec_dtype(input->type)))
        return INVALID("truncate needs type, an integer type");
    if (!scaled) TARE_TRY(check_fillers(input));
    if (input->length && (input->length->rows < 1 || input->length->rows > LARGEST_ROWS))
        return INVALID("length of %lld rows (expected 1 to %d)", (long long)input->length->rows, LARGEST_ROWS);
    return TARE_OK;
}

static tare_status check_source(const input_row *input) {
    bool raw = input->source == TARE__DATASET_INPUT__SOURCE__RAW;
    int dtype = tare__spec_dtype(input->raw_type ? input->raw_type : input->type);
    if (!raw && input->source != TARE__DATASET_INPUT__SOURCE__AUTO && input->raw_type)
        return INVALID("raw_type requires source RAW");
    if (raw && (dtype == TARE_DT_INVALID || dtype == TARE_DT_STRING))
        return INVALID("source RAW needs raw_type, the type of the numbers in the bytes");
    if (input->raw_type == TARE__DATASET_INPUT__TYPE__STRING)
        return INVALID("raw_type STRING (expected a number type)");
    if (input->image && input->raw_type) return INVALID("image cannot be combined with raw_type");
    if (input->n_class_name && input->source != TARE__DATASET_INPUT__SOURCE__AUTO &&
        input->source != TARE__DATASET_INPUT__SOURCE__BYTES)
        return INVALID("class_name requires source BYTES");
    for (size_t i = 0; i < input->n_class_name; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(input->class_name[i], input->class_name[k]) == 0)
                return INVALID("class_name '%s' is duplicated", input->class_name[i]);
    return TARE_OK;
}

static tare_status check_columns(const input_row *input) {
    if (!input->n_column) return TARE_OK;
    if (*input->feature) return INVALID("feature and column exclude each other");
    if (input->source != TARE__DATASET_INPUT__SOURCE__AUTO || input->raw_type || input->image || input->n_class_name)
        return INVALID("column takes numbers as they are (not with source, raw_type, image or class_name)");
    if (input->n_default_value > 1)
        return INVALID("default_value has %zu values (expected 1 with column)", input->n_default_value);
    return TARE_OK;
}

static tare_status check_input(const struct tare_dataset_spec *spec, size_t i) {
    const input_row *input = spec->inputs[i];
    if (!*input->name) return INVALID("input %zu has no name", i + 1);
    for (size_t k = 0; k < i; k++)
        if (strcmp(spec->inputs[k]->name, input->name) == 0) return INVALID("input '%s' is duplicated", input->name);
    TARE_TRY(tare_error_prefix(check_columns(input), "input '%s'", input->name));
    TARE_TRY(tare_error_prefix(check_source(input), "input '%s'", input->name));
    TARE_TRY(tare_error_prefix(check_shape(input), "input '%s'", input->name));
    TARE_TRY(tare_error_prefix(check_image(input), "input '%s'", input->name));
    return tare_error_prefix(check_numbers(input), "input '%s'", input->name);
}

/* ---- places ---- */

/* Skips a token: a whole string or comment, otherwise one character. */
static const char *pass_token(const char *at, const char *end, int *depth) {
    if (*at == '#') {
        while (at < end && *at != '\n')
            at++;
        return at;
    }
    if (*at == '"' || *at == '\'') {
        char quote = *at++;
        while (at < end && *at != quote)
            at += *at == '\\' ? 2 : 1;
        return at + 1;
    }
    *depth += *at == '{' || *at == '<' || *at == '[';
    *depth -= *at == '}' || *at == '>' || *at == ']';
    return at + 1;
}

/* Finds the nth occurrence (from 0) of the field `name` in the outermost message; the beginning of the text if it is
 * written differently. The text is well-formed. */
static const char *find_field(const char *text, const char *end, const char *name, size_t nth) {
    size_t size = strlen(name);
    bool word = false;
    int depth = 0;
    for (const char *at = text; at < end;) {
        if (depth == 0 && !word && (size_t)(end - at) > size && memcmp(at, name, size) == 0 &&
            !tare_is_letter_or_digit(at[size]) && at[size] != '_' && nth-- == 0)
            return at;
        word = tare_is_letter_or_digit(*at) || *at == '_';
        at = pass_token(at, end, &depth);
    }
    return text;
}

static tare_status at_place(tare_status status, const char *what, const char *text, const char *at) {
    int line = 1, column = 1;
    if (status == TARE_OK) return status;
    for (; text < at; text++) {
        column = *text == '\n' ? 1 : column + 1;
        line += *text == '\n';
    }
    return tare_error_prefix(status, "%s:%d:%d", what, line, column);
}

/* ---- reading ---- */

static tare_status list_inputs(struct tare_dataset_spec *spec, const Tare__DatasetSpec *message) {
    spec->inputs = TARE_NEW_ARRAY(&spec->arena, Tare__DatasetInput *, message->n_input + 1);
    if (!spec->inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < message->n_input; i++)
        spec->inputs[spec->count++] = message->input[i];
    if (message->label) {
        spec->label = spec->inputs[spec->count++] = message->label;
        if (!*message->label->name) message->label->name = tare_arena_strdup(&spec->arena, "label");
        if (!message->label->name) return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < spec->count; i++)
        if (!*spec->inputs[i]->feature && !spec->inputs[i]->n_column) spec->inputs[i]->feature = spec->inputs[i]->name;
    return TARE_OK;
}

static tare_status read_spec(struct tare_dataset_spec *spec, const char *text, size_t size, const char *what) {
    ProtobufCMessage *parsed;
    const Tare__DatasetSpec *message;
    TARE_TRY(tare_text_format_read(&parsed, &tare__dataset_spec__descriptor, &spec->arena, text, size, TARE_TEXT_CLOSED,
                                   what));
    message = (const Tare__DatasetSpec *)parsed;
    TARE_TRY(list_inputs(spec, message));
    if (!spec->count) return INVALID("%s: the spec has no inputs (expected input { name: \"…\" … })", what);
    for (size_t i = 0; i < spec->count; i++) {
        bool label = i == message->n_input;
        tare_status status = check_input(spec, i);
        if (status != TARE_OK)
            return at_place(status, what, text,
                            find_field(text, text + size, label ? "label" : "input", label ? 0 : i));
    }
    return TARE_OK;
}

tare_status tare_dataset_spec_parse(struct tare_dataset_spec **out, const char *text, size_t size, const char *what) {
    struct tare_dataset_spec *spec = tare_calloc(1, sizeof *spec);
    const size_t mark = tare_file_mark_size(text, size);
    tare_status status;
    *out = NULL;
    if (!spec) return TARE_NO_MEMORY;
    spec->met_rotated = TARE_NEW(&spec->arena, atomic_bool);
    status = spec->met_rotated ? read_spec(spec, text + mark, size - mark, what) : TARE_NO_MEMORY;
    if (status == TARE_OK)
        *out = spec;
    else
        tare_dataset_spec_free(spec);
    return status;
}

tare_status tare_dataset_spec_load(struct tare_dataset_spec **out, const char *path) {
    char *text;
    size_t size;
    tare_status status;
    *out = NULL;
    TARE_TRY(tare_file_read(&text, &size, path));
    status = tare_dataset_spec_parse(out, text, size, path);
    tare_free(text);
    return status;
}

bool tare_dataset_spec_reads(const struct tare_dataset_spec *spec, const char *feature) {
    for (size_t i = 0; i < spec->count; i++) {
        const input_row *input = spec->inputs[i];
        if (strcmp(input->feature, feature) == 0) return true;
        for (size_t k = 0; k < input->n_column; k++)
            if (strcmp(input->column[k], feature) == 0) return true;
    }
    return false;
}

tare_status tare_dataset_spec_keep(struct tare_dataset_spec *spec, const char *name) {
    Tare__DatasetInput **grown, *input;
    for (size_t i = 0; name && i < spec->count; i++)
        if (strcmp(spec->inputs[i]->name, name) == 0) return TARE_OK;
    if (!name) return TARE_OK;
    grown = TARE_NEW_ARRAY(&spec->arena, Tare__DatasetInput *, spec->count + 1);
    input = TARE_NEW(&spec->arena, Tare__DatasetInput);
    if (!grown || !input) return TARE_NO_MEMORY;
    tare__dataset_input__init(input);
    if (!(input->name = input->feature = tare_arena_strdup(&spec->arena, name))) return TARE_NO_MEMORY;
    memcpy(grown, spec->inputs, spec->count * sizeof *grown);
    grown[spec->count++] = input;
    spec->inputs = grown;
    spec->kept++;
    return TARE_OK;
}

bool tare_dataset_spec_met_rotated(const struct tare_dataset_spec *spec) {
    return spec && atomic_load(spec->met_rotated);
}

void tare_dataset_spec_free(struct tare_dataset_spec *spec) {
    if (!spec) return;
    tare_arena_free(&spec->arena);
    tare_free(spec);
}
