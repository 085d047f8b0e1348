/* Binds the tensors of a sample to the inputs of a signature, with checks of keys, dtypes and shapes. */
#include "eval/model_inputs.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/tensor/narrow.h"
#include "datasets/data_file.h"

#include <stdio.h>
#include <string.h>

static tare_status no_signature(const struct tare_graph_model *model, const char *key) {
    struct tare_strbuf names = { 0 };
    tare_status status;
    for (size_t i = 0; i < model->n_signatures; i++)
        tare_strbuf_printf(&names, "%s%s", i ? ", " : "", model->signatures[i].key);
    if (!model->n_signatures)
        status = TARE_FAIL(TARE_NOT_FOUND, "%s: the model has no signatures", model->path);
    else if (key)
        status = TARE_FAIL(TARE_NOT_FOUND, "%s: there is no signature '%s' (the model has %s)", model->path, key,
                           tare_strbuf_text(&names));
    else
        status = TARE_FAIL(TARE_USAGE, "%s: choose one with --signature (the model has %s)", model->path,
                           tare_strbuf_text(&names));
    tare_strbuf_free(&names);
    return status;
}

tare_status tare_pick_signature(const struct tare_signature **out, const struct tare_graph_model *model,
                                const char *key) {
    *out = tare_model_find_signature(model, key ? key : "serving_default");
    if (!*out && !key && model->n_signatures == 1) *out = &model->signatures[0];
    return *out ? TARE_OK : no_signature(model, key);
}

/* An input that the graph also computes from other inputs is optional in a sample. */
static bool may_be_absent(const struct tare_binding *feed) {
    return feed->edge.node && strcmp(feed->edge.node->op, "Placeholder") != 0;
}

/* The line of a DatasetSpec that converts the value, which has the key in the sample, to the input's dtype; empty if
 * there is none. */
static void cast_advice(char *out, size_t size, const struct tare_binding *feed, const struct tare_tensor *value,
                        const char *key) {
    const int dtype = tare_dtype_base(feed->dtype);
    const char *type = tare_dataset_spec_type_name(tare_dtype_stored(dtype));
    const bool has_name = strcmp(key, feed->key) == 0;
    *out = '\0';
    if (type && dtype != TARE_DT_STRING && value->dtype != TARE_DT_STRING)
        snprintf(out, size, " (cast it with --spec FILE: input { name: \"%s\"%s%s%s type: %s })", feed->key,
                 has_name ? "" : " feature: \"", has_name ? "" : key, has_name ? "" : "\"", type);
}

/* Whether the value is rows of an input that takes a fixed number of rows, and another number of them. */
static bool has_other_rows(const struct tare_binding *feed, const struct tare_tensor *value) {
    const struct tare_shape *all = &feed->shape, *some = &value->shape;
    struct tare_shape rest = *some;
    if (all->rank < 1 || some->rank != all->rank || all->dims[0] < 2 || some->dims[0] == all->dims[0]) return false;
    rest.dims[0] = all->dims[0];
    return tare_shape_compatible(all, &rest);
}

static tare_status check_value(const struct tare_binding *feed, const struct tare_tensor *value, const char *key) {
    char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE], advice[600];
    const int dtype = tare_dtype_base(feed->dtype);
    if (dtype && value->dtype != dtype && !tare_dtype_fits_bytes(dtype, value->dtype)) {
        cast_advice(advice, sizeof advice, feed, value, key);
        return TARE_FAIL(TARE_TYPE, "input %s: expected %s, got %s%s", feed->key, tare_dtype_name(dtype),
                         tare_dtype_name(value->dtype), advice);
    }
    if (tare_shape_compatible(&feed->shape, &value->shape)) return TARE_OK;
    tare_shape_text(expected, &feed->shape);
    tare_shape_text(got, &value->shape);
    if (has_other_rows(feed, value) && value->shape.dims[0] == 1)
        return TARE_FAIL(TARE_SHAPE,
                         "input %s: expected shape %s, got %s (a row of an array is a record: give the array the shape "
                         "[N,%s)",
                         feed->key, expected, got, expected + 1);
    if (has_other_rows(feed, value))
        return TARE_FAIL(TARE_SHAPE, "input %s: expected shape %s or a multiple of %lld rows, got %s", feed->key,
                         expected, (long long)feed->shape.dims[0], got);
    return TARE_FAIL(TARE_SHAPE, "input %s: expected shape %s, got %s", feed->key, expected, got);
}

/* The value with the dtype of the input, of which files have no arrays if it is one of 4 or 2 bits. */
static tare_status share_value(struct tare_tensor *out, const struct tare_binding *feed,
                               const struct tare_tensor *value) {
    const int dtype = tare_dtype_base(feed->dtype);
    if (tare_dtype_is_narrow(dtype) && value->dtype != dtype)
        return tare_error_prefix(tare_tensor_share_narrow(out, value, dtype), "input %s", feed->key);
    tare_tensor_share(out, value);
    return TARE_OK;
}

/* The value as the input: a record of shape [1, …] whose rest is the input's shape, as the row of an array, without the
 * first axis. */
static tare_status bind_value(struct tare_tensor *out, const struct tare_binding *feed, const struct tare_tensor *value,
                              const char *key) {
    struct tare_shape row = value->shape;
    struct tare_tensor view;
    row.rank--;
    for (int i = 0; i < row.rank; i++)
        row.dims[i] = value->shape.dims[i + 1];
    if (tare_shape_compatible(&feed->shape, &value->shape) || value->shape.rank != feed->shape.rank + 1 ||
        value->shape.dims[0] != 1 || !tare_shape_compatible(&feed->shape, &row)) {
        TARE_TRY(check_value(feed, value, key));
        return share_value(out, feed, value);
    }
    TARE_TRY(tare_tensor_share_as(&view, value, &row));
    tare_status status = check_value(feed, &view, key);
    if (status == TARE_OK) status = share_value(out, feed, &view);
    tare_tensor_reset(&view);
    return status;
}

static void feed_names(struct tare_strbuf *out, const struct tare_signature *signature) {
    for (size_t i = 0; i < signature->n_inputs; i++)
        tare_strbuf_printf(out, "%s%s", i ? ", " : "", signature->inputs[i].key);
}

static tare_status wrong_keys(const struct tare_signature *signature, const struct tare_sample *sample) {
    struct tare_strbuf expected = { 0 }, got = { 0 };
    tare_status status;
    feed_names(&expected, signature);
    for (size_t i = 0; i < sample->count; i++)
        tare_strbuf_printf(&got, "%s%s", i ? ", " : "", sample->keys[i]);
    status =
        TARE_FAIL(TARE_INVALID_ARGUMENT,
                  "Invalid input keys for representative sample. The function expects input keys of: {%s}. Got: {%s}.",
                  tare_strbuf_text(&expected), tare_strbuf_text(&got));
    tare_strbuf_free(&expected);
    tare_strbuf_free(&got);
    return status;
}

const struct tare_tensor *tare_record_only_value(const struct tare_sample *sample) {
    const struct tare_tensor *found = NULL;
    for (size_t i = 0; i < sample->count; i++) {
        if (strcmp(sample->keys[i], "label") == 0) continue;
        if (found) return NULL;
        found = &sample->values[i];
    }
    return found;
}

tare_status tare_bind_record(struct tare_tensor *values, const struct tare_signature *signature,
                             const struct tare_sample *sample, const struct tare_feedback *feedback) {
    const struct tare_tensor *value;
    if (signature->n_inputs != 1) return tare_bind_sample(values, signature, sample, feedback);
    value = tare_sample_find(sample, signature->inputs[0].key);
    if (!value && !tare_feedback_feeds(feedback, signature->inputs[0].key)) value = tare_record_only_value(sample);
    if (!value) return tare_bind_sample(values, signature, sample, feedback);
    return bind_value(&values[0], &signature->inputs[0], value, sample->keys[value - sample->values]);
}

/* The values of a sample by key, in a map where there are many. */
struct keyed_values {
    const struct tare_sample *sample;
    struct tare_map by_key;
};

static tare_status index_values(struct keyed_values *out, const struct tare_sample *sample) {
    enum { FEW = 16 };
    *out = (struct keyed_values){ .sample = sample };
    for (size_t i = sample->count; i-- > 0 && sample->count > FEW;) /* of equal keys, the first */
        if (!tare_map_set(&out->by_key, sample->keys[i], &sample->values[i])) return TARE_NO_MEMORY;
    return TARE_OK;
}

static const struct tare_tensor *find_value(const struct keyed_values *values, const char *key) {
    return values->by_key.count ? tare_map_get(&values->by_key, key) : tare_sample_find(values->sample, key);
}

static tare_status bind_values(struct tare_tensor *values, size_t *bound, const struct tare_signature *signature,
                               const struct keyed_values *keyed, const struct tare_feedback *feedback) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *feed = &signature->inputs[i];
        const struct tare_tensor *value = find_value(keyed, feed->key);
        if (!value && (may_be_absent(feed) || tare_feedback_feeds(feedback, feed->key))) {
            values[(*bound)++] = (struct tare_tensor){ 0 };
            continue;
        }
        TARE_TRY(value ? bind_value(&values[*bound], feed, value, feed->key) : wrong_keys(signature, keyed->sample));
        ++*bound;
    }
    return TARE_OK;
}

tare_status tare_bind_sample(struct tare_tensor *values, const struct tare_signature *signature,
                             const struct tare_sample *sample, const struct tare_feedback *feedback) {
    struct keyed_values keyed;
    size_t bound = 0;
    tare_status status = index_values(&keyed, sample);
    if (status == TARE_OK) status = bind_values(values, &bound, signature, &keyed, feedback);
    while (status != TARE_OK && bound-- > 0)
        tare_tensor_reset(&values[bound]);
    tare_map_free(&keyed.by_key);
    return status;
}

/* ---- rows of a fixed batch ---- */

int64_t tare_rows_of_sample(int64_t *given, const struct tare_signature *signature, const struct tare_sample *sample) {
    int64_t rows = 1;
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *feed = &signature->inputs[i];
        const struct tare_tensor *value = tare_sample_find(sample, feed->key);
        if (!value && signature->n_inputs == 1) value = tare_record_only_value(sample);
        if (!value) continue;
        if (!has_other_rows(feed, value) ||
            (rows > 1 && (feed->shape.dims[0] != rows || value->shape.dims[0] != *given)))
            return 1;
        rows = feed->shape.dims[0];
        *given = value->shape.dims[0];
    }
    return rows;
}

/* What cannot be read is reported by the run itself. */
tare_status tare_rows_at_a_time(int64_t *rows, const struct tare_signature *signature, const char *const *paths,
                                size_t n_paths, const struct tare_dataset_spec *spec) {
    const struct tare_source_options first = { .limit = 1, .spec = spec };
    struct tare_source *source = NULL;
    struct tare_sample sample = { 0 };
    struct tare_record where;
    bool end = true, has_fixed = false;
    int64_t given = 1;
    *rows = 1;
    for (size_t i = 0; i < signature->n_inputs; i++)
        has_fixed |= signature->inputs[i].shape.rank > 0 && signature->inputs[i].shape.dims[0] > 1;
    if (!has_fixed || !n_paths || tare_data_read_once(paths, n_paths)) return TARE_OK;
    tare_status status = tare_source_new(&source, paths, n_paths, &first);
    if (status == TARE_OK) status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
    if (status == TARE_OK && !end) *rows = tare_rows_of_sample(&given, signature, &sample);
    if (given != 1) *rows = 1;
    tare_sample_reset(&sample);
    tare_source_free(source);
    if (status == TARE_NO_MEMORY) return status;
    tare_error_clear();
    return TARE_OK;
}

static bool is_feed(const struct tare_signature *signature, const char *name) {
    for (size_t i = 0; i < signature->n_inputs; i++)
        if (strcmp(signature->inputs[i].key, name) == 0) return true;
    return false;
}

static tare_status unknown_key(const struct tare_signature *signature, const char *name) {
    struct tare_strbuf names = { 0 };
    tare_status status;
    feed_names(&names, signature);
    status = TARE_FAIL(TARE_INVALID_ARGUMENT, "input %s: unknown input (%s has %s)", name, signature->key,
                       tare_strbuf_text(&names));
    tare_strbuf_free(&names);
    return status;
}

tare_status tare_bind_inputs(struct tare_tensor *values, const struct tare_signature *signature,
                             const struct tare_sample *sample, const struct tare_feedback *feedback) {
    const size_t count = signature->n_inputs;
    size_t used = 0;
    TARE_TRY(tare_bind_sample(values, signature, sample, feedback));
    for (size_t i = 0; i < count; i++)
        used += values[i].dtype != 0;
    for (size_t i = 0; i < sample->count && used < sample->count; i++) {
        if (is_feed(signature, sample->keys[i])) continue;
        for (size_t k = 0; k < count; k++)
            tare_tensor_reset(&values[k]);
        return unknown_key(signature, sample->keys[i]);
    }
    return TARE_OK;
}
