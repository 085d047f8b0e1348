/* Drafts of DatasetSpecs: which feature becomes which input, with the shape and dtype that the survey or the model has.
 */
#include "datasets/spec_draft.h"
#include "datasets/label.h"
#include "base/alloc.h"
#include "datasets/spec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_RAW = 16 }; /* bytes: shorter strings of equal length are codes rather than raw numbers */

static void put_text(struct tare_strbuf *out, const char *text) {
    tare_strbuf_putc(out, '"');
    tare_strbuf_escape(out, text, strlen(text));
    tare_strbuf_putc(out, '"');
}

static void put_type(struct tare_strbuf *out, int dtype) {
    const char *type = tare_dataset_spec_type_name(dtype);
    if (type) tare_strbuf_printf(out, "  type: %s\n", type);
}

static bool is_single(const struct tare_survey_key *key) {
    return key->shape.rank == 1 && key->shape.dims[0] == 1;
}

static bool is_label(const struct tare_survey_key *key) {
    return is_single(key) && key->dtype == TARE_DT_INT64 && !key->mixed && tare_label_is_name(key->name);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Only the user knows which number the model has for a text, so these lines are comments. In byte order, as class
 * folders and most encoders of labels number them. */
static void put_class_names(struct tare_strbuf *out, const char *indent, const struct tare_survey_key *key) {
    const char *texts[TARE_SURVEY_TEXTS];
    memcpy(texts, key->texts, sizeof texts);
    qsort(texts, key->n_texts, sizeof *texts, by_bytes);
    for (size_t i = 0; i < key->n_texts; i++) {
        tare_strbuf_printf(out, "%sclass_name: ", indent);
        put_text(out, texts[i]);
        tare_strbuf_printf(out, "   # %zu\n", i);
    }
    if (key->has_more_texts) tare_strbuf_printf(out, "%s# … and the other values\n", indent);
}

/* The side of a square image with so many pixels; 0 if there is none. */
static int64_t side_of(size_t pixels) {
    int64_t side = (int64_t)sqrt((double)pixels);
    return side > 1 && (size_t)(side * side) == pixels ? side : 0;
}

static void put_bytes(struct tare_strbuf *out, const struct tare_survey_key *key) {
    int64_t colour = key->longest % 3 == 0 ? side_of(key->longest / 3) : 0, gray = side_of(key->longest);
    if (key->images == key->elements && is_single(key)) {
        tare_strbuf_puts(out, "  image { channels: 3 step { resize { height: 224 width: 224 } } }\n"
                              "  # mean: 127.5 std: 127.5   # if the model expects -1 … 1\n");
    } else if (key->shortest == key->longest && key->longest >= LEAST_RAW && is_single(key)) {
        tare_strbuf_puts(out, "  source: RAW raw_type: UINT8 type: FLOAT32 ");
        if (colour || gray)
            tare_strbuf_printf(out, "shape: [%" PRId64 ", %" PRId64 ", %d]\n", colour ? colour : gray,
                               colour ? colour : gray, colour ? 3 : 1);
        else
            tare_strbuf_printf(out, "shape: [%zu]\n", key->longest);
    } else {
        tare_strbuf_puts(out, "  source: BYTES\n");
        if (is_single(key)) tare_strbuf_puts(out, "  shape: 1 whole: true\n");
    }
}

/* Lists of different lengths get the length of the longest. */
static void put_numbers(struct tare_strbuf *out, const struct tare_survey *survey, const struct tare_survey_key *key) {
    const struct tare_shape *shape = &key->shape;
    int64_t row = shape->rank == 2 && shape->dims[1] > 0 ? shape->dims[1] : 1;
    int64_t rows = shape->dims[0] >= 0 ? shape->dims[0] : key->largest / row;
    if (shape->dims[0] < 0) tare_strbuf_printf(out, "  length { rows: %" PRId64 " }\n", rows > 0 ? rows : 1);
    tare_strbuf_printf(out, "  shape: [%" PRId64, rows > 0 || shape->dims[0] == 0 ? rows : 1);
    if (shape->rank == 2) tare_strbuf_printf(out, ", %" PRId64, shape->dims[1]);
    tare_strbuf_puts(out, "]\n");
    if (key->records == survey->records && shape->dims[0] >= 0) return;
    put_type(out, key->dtype);
    tare_strbuf_puts(out, "  default_value: 0\n");
}

/* Why a feature cannot be drafted; NULL if it can. */
static const char *reason_against(const struct tare_survey *survey, const struct tare_survey_key *key) {
    if (key->mixed) return "of different types";
    if (key->shape.rank < 1 || key->shape.rank > 2 || (key->shape.rank == 2 && key->shape.dims[1] < 0))
        return "of different shapes";
    if (key->dtype == TARE_DT_STRING && key->records < survey->records) return "not in every record";
    return NULL;
}

void tare_dataset_spec_draft(struct tare_strbuf *out, const struct tare_survey *survey) {
    bool labelled = false;
    tare_strbuf_printf(out,
                       "# Draft of a DatasetSpec for %" PRId64
                       " records (%s). Change names, shapes and numbers to those of the\n"
                       "# model's inputs (tare inspect MODEL) and remove what it does not need.\n",
                       survey->records, survey->kind ? survey->kind : "none");
    for (size_t i = 0; i < survey->n_keys; i++) {
        const struct tare_survey_key *key = &survey->keys[i];
        const char *reason = reason_against(survey, key);
        if (reason) {
            tare_strbuf_puts(out, "# feature ");
            put_text(out, key->name);
            tare_strbuf_printf(out, " is %s\n", reason);
            continue;
        }
        if (!labelled && is_label(key)) {
            labelled = true;
            tare_strbuf_puts(out, "label {\n  feature: ");
            put_text(out, key->name);
            tare_strbuf_puts(out, "\n  whole: true\n");
        } else {
            tare_strbuf_puts(out, "input {\n  name: ");
            put_text(out, key->name);
            tare_strbuf_puts(out, "\n  feature: ");
            put_text(out, key->name);
            tare_strbuf_putc(out, '\n');
        }
        if (key->dtype == TARE_DT_STRING)
            put_bytes(out, key);
        else
            put_numbers(out, survey, key);
        tare_strbuf_puts(out, "}\n");
    }
}

/* ---- for a model ---- */

const char *const tare_spec_draft_scale_texts[TARE_SPEC_SCALES] = { "?", "0 … 255", "0 … 1", "-1 … 1" };
static const char *const scale_lines[TARE_SPEC_SCALES] = {
    ("  # scale: 0.00392156862745098   # if the model expects 0 … 1\n"
     "  # mean: 127.5 std: 127.5   # if the model expects -1 … 1\n"),
    "",
    "  scale: 0.00392156862745098\n",
    "  mean: 127.5 std: 127.5\n",
};

struct draft {
    struct tare_strbuf *out;
    struct tare_spec_draft_found *found;
    const struct tare_survey *survey;
    const struct tare_spec_draft_options *options;
    const struct tare_survey_key *label;
    bool *used; /* by key */
};

static bool is_target(const struct draft *d, size_t i) {
    return d->options->target && strcmp(d->survey->keys[i].name, d->options->target) == 0;
}

static bool is_free(const struct draft *d, size_t i) {
    return !d->used[i] && &d->survey->keys[i] != d->label && !is_target(d, i);
}

static bool is_image_key(const struct tare_survey_key *key) {
    return key->dtype == TARE_DT_STRING && key->elements && key->images == key->elements;
}

static bool is_channels(int64_t dim) {
    return dim == 1 || dim == 3 || dim == 4;
}

static bool is_image_input(const struct tare_spec_draft_input *input) {
    return input->shape.rank == 4 && (is_channels(input->shape.dims[3]) || is_channels(input->shape.dims[1])) &&
           input->dtype != TARE_DT_STRING;
}

/* Elements of one sample; -1 if not known. */
static int64_t sample_elements(const struct tare_shape *shape) {
    int64_t count = 1;
    for (int i = 1; i < shape->rank; i++)
        if (shape->dims[i] < 0 || !tare_mul_i64(&count, count, shape->dims[i])) return -1;
    return shape->rank < 0 ? -1 : count;
}

/* Elements of a feature in every record; -1 if they differ. Arrays have an axis of samples of size 1. */
static int64_t key_elements(const struct tare_survey_key *key) {
    int64_t count;
    return tare_shape_is_known(&key->shape) && tare_shape_elements(&count, &key->shape) == TARE_OK ? count : -1;
}

/* The type of the numbers in the strings of a feature: as many bytes as the input has elements, or that many numbers of
 * its dtype. Invalid if the strings are texts. */
static int raw_dtype(const struct tare_spec_draft_input *input, const struct tare_survey_key *key) {
    const int64_t expected = sample_elements(&input->shape), element = (int64_t)tare_dtype_size(input->dtype);
    const int64_t length = key->shortest == key->longest ? (int64_t)key->longest : -1;
    if (!is_single(key) || (key->n_texts && length < LEAST_RAW)) return TARE_DT_INVALID;
    if (expected > 0 && length == expected) return TARE_DT_UINT8;
    if (expected > 0 && expected <= INT64_MAX / 16 && length == expected * element) return input->dtype;
    return key->n_texts ? TARE_DT_INVALID : TARE_DT_UINT8;
}

static bool fits(const struct tare_spec_draft_input *input, const struct tare_survey_key *key) {
    const int64_t expected = sample_elements(&input->shape), got = key_elements(key);
    if (key->mixed) return false;
    if (is_image_key(key)) return is_image_input(input);
    if (key->dtype == TARE_DT_STRING || input->dtype == TARE_DT_STRING)
        return key->dtype == input->dtype ||
               (input->dtype != TARE_DT_STRING && key->dtype == TARE_DT_STRING && key->shortest == key->longest &&
                expected > 0 && raw_dtype(input, key) != TARE_DT_INVALID &&
                (int64_t)key->longest == expected * (int64_t)tare_dtype_size(raw_dtype(input, key)));
    return expected < 0 || got == expected || (got < 0 && input->shape.rank == 2);
}

/* Does the model parse the records itself, to go by the name of its input? */
static bool takes_records(const struct draft *d, const struct tare_spec_draft_input *input) {
    const char *kind = d->survey->kind ? d->survey->kind : "";
    return input->dtype == TARE_DT_STRING && input->shape.rank == 1 &&
           (strcmp(kind, "tf.Example") == 0 || strcmp(kind, "tf.SequenceExample") == 0) &&
           (strstr(input->name, "example") || strstr(input->name, "serialized"));
}

/* The key of an input; n_keys if there is none. */
static size_t find_key(const struct draft *d, const struct tare_spec_draft_input *input) {
    const size_t count = d->survey->n_keys;
    for (size_t i = 0; i < count; i++)
        if (strcmp(d->survey->keys[i].name, input->name) == 0) return i;
    if (takes_records(d, input)) return count;
    for (size_t i = 0; i < count; i++) /* one that needs no padding is preferred */
        if (is_free(d, i) && fits(input, &d->survey->keys[i]) && key_elements(&d->survey->keys[i]) >= 0) return i;
    for (size_t i = 0; i < count; i++)
        if (is_free(d, i) && fits(input, &d->survey->keys[i])) return i;
    return count;
}

static bool is_scalar_number(const struct tare_survey_key *key) {
    return is_single(key) && key->dtype != TARE_DT_STRING && !key->mixed;
}

/* Scalar features that together have the input's elements. */
static bool find_columns(const struct draft *d, const struct tare_spec_draft_input *input) {
    int64_t count = 0;
    for (size_t i = 0; i < d->survey->n_keys; i++)
        count += is_free(d, i) && is_scalar_number(&d->survey->keys[i]);
    return input->dtype != TARE_DT_STRING && count > 1 && sample_elements(&input->shape) == count;
}

static void put_sample_shape(struct tare_strbuf *out, const struct tare_shape *shape) {
    int unknown = 0;
    if (shape->rank < 2) {
        if (shape->rank == 1) tare_strbuf_puts(out, "  shape: 1 whole: true\n");
        return;
    }
    for (int i = 1; i < shape->rank; i++)
        unknown += shape->dims[i] < 0;
    if (unknown > 1) return; /* a spec can leave one dimension open */
    tare_strbuf_puts(out, "  shape: [");
    for (int i = 1; i < shape->rank; i++)
        tare_strbuf_printf(out, "%s%" PRId64, i > 1 ? ", " : "", shape->dims[i] < 0 ? -1 : shape->dims[i]);
    tare_strbuf_puts(out, "]\n");
}

static void put_image_for(const struct draft *d, const struct tare_spec_draft_input *input) {
    struct tare_strbuf *out = d->out;
    const bool first = !is_channels(input->shape.dims[3]);
    const int64_t *dims = input->shape.dims, channels = dims[first ? 1 : 3];
    const int64_t height = dims[first ? 2 : 1], width = dims[first ? 3 : 2];
    tare_strbuf_printf(out, "  image { channels: %" PRId64, channels);
    if (height > 0 && width > 0)
        tare_strbuf_printf(out, " step { resize { height: %" PRId64 " width: %" PRId64 " } }", height, width);
    tare_strbuf_puts(out, " }\n");
    if (first) tare_strbuf_puts(out, "  channels_first: true\n");
    put_type(out, input->dtype);
    if (!tare_dtype_is_floating(input->dtype)) return;
    tare_strbuf_puts(out, scale_lines[d->options->scale]);
    d->found->images++;
}

/* How strings become numbers. */
static void put_strings_for(struct tare_strbuf *out, const struct tare_spec_draft_input *input,
                            const struct tare_survey_key *key) {
    const int dtype = raw_dtype(input, key);
    if (dtype != TARE_DT_INVALID) {
        tare_strbuf_printf(out, "  source: RAW raw_type: %s\n", tare_dataset_spec_type_name(dtype));
        return;
    }
    tare_strbuf_printf(out,
                       "  # The input is %s, but the values are texts. List all of them in the order of the model's "
                       "numbers, from 0:\n",
                       tare_dtype_name(input->dtype));
    put_class_names(out, "  # ", key);
}

static void put_feature_for(const struct draft *d, const struct tare_spec_draft_input *input,
                            const struct tare_survey_key *key) {
    struct tare_strbuf *out = d->out;
    tare_strbuf_puts(out, "  feature: ");
    put_text(out, key->name);
    tare_strbuf_putc(out, '\n');
    if (is_image_key(key) && is_image_input(input)) {
        put_image_for(d, input);
        return;
    }
    if (key->dtype == TARE_DT_STRING && input->dtype != TARE_DT_STRING) put_strings_for(out, input, key);
    if (key_elements(key) < 0 && input->shape.rank == 2 && (key->dtype != TARE_DT_STRING || !is_single(key)))
        tare_strbuf_printf(out, "  length { rows: %" PRId64 " }\n",
                           input->shape.dims[1] > 0 ? input->shape.dims[1] : key->largest);
    put_sample_shape(out, &input->shape);
    const bool by_default =
        key->records < d->survey->records && input->dtype != TARE_DT_STRING && sample_elements(&input->shape) >= 0;
    if (input->dtype != key->dtype || by_default) put_type(out, input->dtype);
    if (by_default) tare_strbuf_puts(out, "  default_value: 0\n");
}

/* What an input takes, for the summary. */
static void note(const struct draft *d, const struct tare_spec_draft_input *input, const char *what, const char *name) {
    struct tare_strbuf *summary = &d->found->summary;
    tare_strbuf_printf(summary, "%s'%s' from %s", summary->size ? ", " : "", input->name, what);
    if (name) tare_strbuf_printf(summary, " '%s'", name);
}

static void put_columns_for(const struct draft *d, const struct tare_spec_draft_input *input) {
    bool has_all = true;
    note(d, input, "all columns of numbers in the order of the data", NULL);
    tare_strbuf_puts(d->out, "  # In the order of the data; the model may expect another one.\n");
    for (size_t i = 0; i < d->survey->n_keys; i++) {
        if (!is_free(d, i) || !is_scalar_number(&d->survey->keys[i])) continue;
        tare_strbuf_puts(d->out, "  column: ");
        put_text(d->out, d->survey->keys[i].name);
        tare_strbuf_putc(d->out, '\n');
        d->used[i] = true;
        has_all &= d->survey->keys[i].records == d->survey->records;
    }
    put_sample_shape(d->out, &input->shape);
    put_type(d->out, input->dtype);
    tare_strbuf_printf(d->out, "  %sdefault_value: 0   # for values that are missing\n", has_all ? "# " : "");
}

/* False if no feature fits. */
static bool put_input_for(const struct draft *d, const struct tare_spec_draft_input *input) {
    const size_t key = find_key(d, input);
    char shape[TARE_SHAPE_TEXT_SIZE];
    const bool by_columns = key == d->survey->n_keys && find_columns(d, input);
    const bool by_record = key == d->survey->n_keys && takes_records(d, input);
    if (key == d->survey->n_keys && !by_columns && !by_record) {
        tare_strbuf_puts(d->out, "# no feature fits the input ");
        put_text(d->out, input->name);
        tare_strbuf_printf(d->out, ", %s %s\n", tare_dtype_name(input->dtype), tare_shape_text(shape, &input->shape));
        return false;
    }
    tare_strbuf_puts(d->out, "input {\n  name: ");
    put_text(d->out, input->name);
    tare_strbuf_putc(d->out, '\n');
    if (by_record) {
        tare_strbuf_puts(d->out, "  source: RECORD shape: 1 whole: true\n");
        note(d, input, "the whole record", NULL);
    } else if (by_columns) {
        put_columns_for(d, input);
    } else {
        d->used[key] = true;
        put_feature_for(d, input, &d->survey->keys[key]);
        if (strcmp(d->survey->keys[key].name, input->name) != 0)
            note(d, input, "feature", d->survey->keys[key].name);
        else
            d->found->named++;
    }
    tare_strbuf_puts(d->out, "}\n");
    return true;
}

static bool is_input_name(const char *name, const struct tare_spec_draft_input *inputs, size_t n_inputs) {
    for (size_t i = 0; i < n_inputs; i++)
        if (strcmp(inputs[i].name, name) == 0) return true;
    return false;
}

static bool is_text(const struct tare_survey_key *key) {
    return key->dtype == TARE_DT_STRING && is_single(key) && !key->mixed && key->n_texts;
}

/* Numbers are preferred to texts. */
static const struct tare_survey_key *find_label(const struct draft *d, const struct tare_spec_draft_input *inputs,
                                                size_t n_inputs) {
    const struct tare_survey *survey = d->survey;
    const struct tare_survey_key *text = NULL;
    for (size_t i = 0; i < survey->n_keys; i++) {
        const struct tare_survey_key *key = &survey->keys[i];
        const bool named =
            d->options->label ? strcmp(key->name, d->options->label) == 0 : tare_label_is_name(key->name);
        if (!named || is_input_name(key->name, inputs, n_inputs)) continue;
        if (is_text(key))
            text = text ? text : key;
        else if (d->options->label || is_label(key))
            return key;
    }
    return text;
}

static void put_label(const struct draft *d) {
    const bool texts = is_text(d->label), decides = d->options->decides && !d->label->has_more_texts;
    const char *indent = texts && !decides ? "# " : "";
    if (texts && !decides)
        tare_strbuf_puts(d->out, "# The labels are texts: list all of them in the order of the model's outputs.\n");
    tare_strbuf_printf(d->out, "%slabel {\n%s  feature: ", indent, indent);
    put_text(d->out, d->label->name);
    tare_strbuf_printf(d->out, "\n%s  whole: true\n", indent);
    if (texts) put_class_names(d->out, decides ? "  " : "#   ", d->label);
    tare_strbuf_printf(d->out, "%s}\n", indent);
    if (texts && !decides) return;
    tare_strbuf_printf(&d->found->summary, "; label '%s'%s", d->label->name,
                       texts ? ", whose texts are numbered in the order of their bytes" : "");
}

/* Expected values of the first output, which the comparison takes from the records by their name; samples need none. */
static void put_target(const struct draft *d) {
    for (size_t i = 0; i < d->survey->n_keys; i++) {
        const struct tare_survey_key *key = &d->survey->keys[i];
        if (!is_target(d, i)) continue;
        tare_strbuf_puts(d->out, "label {\n  name: ");
        put_text(d->out, key->name);
        tare_strbuf_puts(d->out, "\n  feature: ");
        put_text(d->out, key->name);
        tare_strbuf_printf(d->out, "\n%s}\n", is_single(key) ? "  shape: 1 whole: true\n" : "");
        tare_strbuf_printf(&d->found->summary, "; expected values '%s'", key->name);
    }
}

static void put_unused(const struct draft *d) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < d->survey->n_keys; i++) {
        const struct tare_survey_key *key = &d->survey->keys[i];
        if (!is_free(d, i)) continue;
        tare_strbuf_puts(d->out, "# not used: feature ");
        put_text(d->out, key->name);
        tare_strbuf_printf(d->out, ", %s %s\n", tare_dtype_name(key->dtype), tare_shape_text(shape, &key->shape));
    }
}

void tare_dataset_spec_draft_for(struct tare_strbuf *out, struct tare_spec_draft_found *found,
                                 const struct tare_survey *survey, const struct tare_spec_draft_input *inputs,
                                 size_t n_inputs, const struct tare_spec_draft_options *options) {
    struct draft d = { .out = out,
                       .found = found,
                       .survey = survey,
                       .options = options,
                       .used = tare_calloc(survey->n_keys + 1, sizeof *d.used) };
    *found = (struct tare_spec_draft_found){ 0 };
    if (!d.used) {
        out->failed = true;
        return;
    }
    d.label = options->target ? NULL : find_label(&d, inputs, n_inputs);
    tare_strbuf_printf(out, "# Draft of a DatasetSpec for the model's inputs from %" PRId64 " records (%s).\n",
                       survey->records, survey->kind ? survey->kind : "none");
    for (size_t i = 0; i < n_inputs; i++)
        found->missing += !put_input_for(&d, &inputs[i]);
    if (found->named)
        tare_strbuf_printf(&found->summary, "%s%zu input%s by name", found->summary.size ? ", " : "", found->named,
                           found->named == 1 ? "" : "s");
    put_target(&d);
    if (d.label) put_label(&d);
    put_unused(&d);
    tare_free(d.used);
}
