/* Drafts of specs. */
#include "datasets/spec_draft.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LEAST_RAW = 16 }; /* bytes: shorter strings of one length are codes rather than numbers */

static void put_text(struct tare_strbuf *out, const char *text) {
    tare_strbuf_putc(out, '"');
    tare_strbuf_escape(out, text, strlen(text));
    tare_strbuf_putc(out, '"');
}

static bool is_single(const struct tare_survey_key *key) {
    return key->shape.rank == 1 && key->shape.dims[0] == 1;
}

static bool is_label(const struct tare_survey_key *key) {
    const char *slash = strrchr(key->name, '/'), *name = slash ? slash + 1 : key->name;
    return is_single(key) && key->dtype == TARE_DT_INT64 && !key->mixed &&
           (strcmp(name, "label") == 0 || strcmp(name, "class") == 0 || strcmp(name, "target") == 0);
}

/* The side of a square picture of so many bytes, 0 when it is none. */
static int64_t side_of(size_t pixels) {
    int64_t side = (int64_t)sqrt((double)pixels);
    return side > 1 && (size_t)(side * side) == pixels ? side : 0;
}

static void put_bytes(struct tare_strbuf *out, const struct tare_survey_key *key) {
    int64_t colour = key->longest % 3 == 0 ? side_of(key->longest / 3) : 0, gray = side_of(key->longest);
    if (key->pictures == key->elements && is_single(key)) {
        tare_strbuf_puts(out, "  image { channels: 3 step { resize { height: 224 width: 224 } } }\n"
                              "  # mean: 127.5 std: 127.5   for a model that takes -1 … 1\n");
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

/* Lists of any length get the longest one's. */
static void put_numbers(struct tare_strbuf *out, const struct tare_survey *survey, const struct tare_survey_key *key) {
    const struct tare_shape *shape = &key->shape;
    int64_t row = shape->rank == 2 && shape->dims[1] > 0 ? shape->dims[1] : 1;
    int64_t rows = shape->dims[0] >= 0 ? shape->dims[0] : key->largest / row;
    if (shape->dims[0] < 0) tare_strbuf_printf(out, "  length { rows: %" PRId64 " }\n", rows > 0 ? rows : 1);
    tare_strbuf_printf(out, "  shape: [%" PRId64, rows > 0 || shape->dims[0] == 0 ? rows : 1);
    if (shape->rank == 2) tare_strbuf_printf(out, ", %" PRId64, shape->dims[1]);
    tare_strbuf_puts(out, "]\n");
    if (key->records < survey->records || shape->dims[0] < 0) tare_strbuf_puts(out, "  default_value: 0\n");
}

/* What no spec can say without its author. */
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
                       "# A first DatasetSpec for %" PRId64
                       " records (%s). Change names, shapes and numbers to those of the\n"
                       "# model's inputs (tare inspect MODEL) and take away what it does not need.\n",
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
