/* Checks evaluation records before anything runs. Leakage compares the tensors that reach the model, not the bytes of
 * the files: an evaluation record has a label in addition, and may come from a file of another format. */
#include "workflow/evaluation_data.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "calib/hash.h"
#include "eval/model_inputs.h"
#include "workflow/calibration_data.h"
#include "workflow/sample_feed.h"

#include <stdlib.h>
#include <string.h>

static bool can_read_again(const char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(paths[i], "-") == 0 || tare_file_kind_of(paths[i]) == TARE_FILE_OTHER) return false;
    return true;
}

static bool is_interrupted(const struct tare_evaluation_data *data) {
    return data->interrupted && *data->interrupted;
}

/* ---- labels ---- */

static bool is_output(const struct tare_signature *signature, const char *key) {
    for (size_t i = 0; i < signature->n_outputs; i++)
        if (strcmp(signature->outputs[i].key, key) == 0) return true;
    return false;
}

static void add_integer_keys(struct tare_strbuf *keys, const struct tare_sample *sample) {
    for (size_t i = 0; i < sample->count; i++)
        if (tare_dtype_is_integer(sample->values[i].dtype))
            tare_strbuf_printf(keys, "%s%s", keys->size ? ", " : "", sample->keys[i]);
}

/* Reads records until one has the label. `keys`: the integer keys of the first record. */
static tare_status search_label(bool *found, struct tare_strbuf *keys, struct tare_source *source,
                                const struct tare_evaluation_data *data) {
    for (int64_t n = 0; !*found && !is_interrupted(data); n++) {
        struct tare_provenance where;
        struct tare_sample sample;
        bool end = false;
        TARE_TRY(tare_source_next(&sample, &where, &end, source, NULL, NULL));
        if (end) return TARE_OK;
        if (n == 0) add_integer_keys(keys, &sample);
        *found = tare_sample_find(&sample, data->label);
        tare_sample_reset(&sample);
    }
    return TARE_OK;
}

tare_status tare_workflow_check_label(const struct tare_evaluation_data *data) {
    const struct tare_source_options options = { .stop = data->limit, .spec = data->spec };
    const struct tare_signature *signature;
    struct tare_source *source = NULL;
    struct tare_strbuf keys = { 0 };
    bool found = false;
    tare_status status;
    if (!data->label || strcmp(data->label, "label") == 0 || !can_read_again(data->paths, data->n_paths))
        return TARE_OK;
    TARE_TRY(tare_pick_signature(&signature, data->model, data->signature));
    if (is_output(signature, data->label)) return TARE_OK;
    TARE_CHECK(tare_source_new(&source, data->paths, data->n_paths, &options));
    TARE_CHECK(search_label(&found, &keys, source, data));
    if (!found && !is_interrupted(data))
        status = TARE_FAIL(TARE_NOT_FOUND, "--label %s: no record has this key (%s%s)", data->label,
                           keys.size ? "integer keys of the first record: " : "the first record has no integer key",
                           tare_strbuf_text(&keys));
done:
    tare_strbuf_free(&keys);
    tare_source_free(source);
    return status;
}

/* ---- leakage ---- */

struct hashes {
    struct hash {
        uint64_t words[2];
    } * items;
    size_t count, capacity;
};

static void add_tensor(struct tare_hash *hash, const struct tare_tensor *tensor) {
    tare_hash_add_u64(hash, (uint64_t)tensor->dtype);
    tare_hash_add_u64(hash, (uint64_t)tensor->shape.rank);
    for (int i = 0; i < tensor->shape.rank; i++)
        tare_hash_add_u64(hash, (uint64_t)tensor->shape.dims[i]);
    if (tensor->dtype != TARE_DT_STRING) {
        tare_hash_add_bytes(hash, tensor->data, tare_tensor_bytes(tensor));
        return;
    }
    const struct tare_str *strings = tensor->data;
    for (int64_t i = 0; i < tensor->elements; i++)
        tare_hash_add_bytes(hash, strings[i].data, strings[i].size);
}

static tare_status add_record(struct hashes *out, const struct tare_tensor *inputs, size_t n_inputs) {
    struct tare_hash hash;
    if (!TARE_GROW(out->items, out->count, out->capacity)) return TARE_NO_MEMORY;
    tare_hash_begin(&hash);
    for (size_t i = 0; i < n_inputs; i++)
        add_tensor(&hash, &inputs[i]);
    tare_hash_end(&hash, out->items[out->count++].words);
    return TARE_OK;
}

static bool every(void *arg, const struct tare_record *record) {
    (void)arg;
    (void)record;
    return true;
}

static tare_status hash_feed(struct hashes *out, struct tare_tensor *inputs, size_t n_inputs,
                             const struct tare_sample_feed *feed, const struct tare_evaluation_data *data) {
    while (!is_interrupted(data)) {
        struct tare_record record = { .number = -1 };
        bool end = false;
        tare_status status;
        TARE_TRY(feed->source.next(feed->source.arg, inputs, &record, &end, every, NULL));
        if (end) return TARE_OK;
        status = add_record(out, inputs, n_inputs);
        for (size_t i = 0; i < n_inputs; i++)
            tare_tensor_reset(&inputs[i]);
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* Appends the hash of each record. Invalid records are skipped: the run itself reports them. */
static tare_status hash_files(struct hashes *out, const struct tare_signature *signature, const char *const *paths,
                              size_t n_paths, int64_t limit, const struct tare_evaluation_data *data) {
    const struct tare_source_options options = { .stop = limit, .max_bad = INT64_MAX, .spec = data->spec };
    const size_t n_inputs = tare_signature_feed_count(signature);
    struct tare_tensor *inputs = tare_calloc(n_inputs + 1, sizeof *inputs);
    struct tare_sample_feed feed;
    tare_status status = TARE_NO_MEMORY;
    if (!inputs) return status;
    status = tare_sample_feed_open(&feed, signature, paths, n_paths, &options);
    if (status == TARE_OK) status = hash_feed(out, inputs, n_inputs, &feed, data);
    tare_sample_feed_close(&feed);
    tare_free(inputs);
    return status;
}

static int by_words(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct hash));
}

/* Hashes the calibration samples of the signature, sorted. *complete is false if some cannot be read twice. */
static tare_status hash_calibration(struct hashes *out, bool *complete, const struct tare_signature *signature,
                                    const struct tare_evaluation_data *data) {
    struct tare_data_groups groups = { 0 };
    tare_status status;
    TARE_CHECK(
        tare_data_groups_make(&groups, data->model, data->calibration_data, data->n_calibration_data, signature));
    for (size_t i = 0; i < groups.count && *complete; i++) {
        const struct tare_data_group *group = &groups.items[i];
        const char *const *paths = (const char *const *)group->files.names;
        if (group->signature != signature) continue;
        *complete = can_read_again(paths, group->files.count);
        if (*complete) TARE_CHECK(hash_files(out, signature, paths, group->files.count, 0, data));
    }
    if (out->count) qsort(out->items, out->count, sizeof *out->items, by_words);
done:
    tare_data_groups_free(&groups);
    return status;
}

tare_status tare_workflow_find_leakage(struct tare_leakage *out, const struct tare_evaluation_data *data) {
    const struct tare_signature *signature;
    struct hashes calibration = { 0 }, evaluation = { 0 };
    bool complete = can_read_again(data->paths, data->n_paths);
    tare_status status;
    *out = (struct tare_leakage){ 0 };
    if (!complete || !data->n_calibration_data) return TARE_OK;
    TARE_TRY(tare_pick_signature(&signature, data->model, data->signature));
    TARE_CHECK(hash_calibration(&calibration, &complete, signature, data));
    if (!complete || !calibration.count) goto done;
    TARE_CHECK(hash_files(&evaluation, signature, data->paths, data->n_paths, data->limit, data));
    out->records = (int64_t)evaluation.count;
    for (size_t i = 0; i < evaluation.count; i++)
        out->shared += bsearch(&evaluation.items[i], calibration.items, calibration.count, sizeof *calibration.items,
                               by_words) != NULL;
done:
    tare_free(calibration.items);
    tare_free(evaluation.items);
    return status;
}
