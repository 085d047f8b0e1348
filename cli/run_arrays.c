/* Reads the arrays, compares their names and dtypes with the signature, and runs it. */
#include "cli/run_arrays.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/tensor/narrow.h"
#include "datasets/data_file.h"
#include "datasets/npy.h"
#include "eval/function_signature.h"
#include "eval/model_inputs.h"
#include "interpreter/signature_edges.h"
#include "interpreter/signature_target.h"
#include "workflow/data_options.h"

#include <string.h>

void tare_run_arrays_free(struct tare_run_arrays *arrays) {
    for (size_t i = 0; i < arrays->count; i++) {
        tare_free((void *)(uintptr_t)arrays->keys[i]);
        tare_tensor_reset(&arrays->values[i]);
    }
    tare_free(arrays->keys);
    tare_free(arrays->values);
    *arrays = (struct tare_run_arrays){ 0 };
}

tare_status tare_run_arrays_drop_bound(struct tare_run_arrays *arrays, const struct tare_graph *function) {
    for (size_t i = 0; i < arrays->count;) {
        bool bound;
        TARE_TRY(tare_function_binds(&bound, function, arrays->keys[i]));
        if (!bound) {
            i++;
            continue;
        }
        tare_free((void *)(uintptr_t)arrays->keys[i]);
        tare_tensor_reset(&arrays->values[i]);
        arrays->count--;
        arrays->keys[i] = arrays->keys[arrays->count];
        arrays->values[i] = arrays->values[arrays->count];
    }
    return TARE_OK;
}

tare_status tare_run_arrays_read(struct tare_run_arrays *out, const struct tare_option_list *inputs) {
    TARE_TRY(tare_input_files_check(inputs));
    out->keys = tare_calloc(inputs->count + 1, sizeof *out->keys);
    out->values = tare_calloc(inputs->count + 1, sizeof *out->values);
    if (!out->keys || !out->values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < inputs->count; i++) {
        const char *file = tare_data_array_file(inputs->items[i]);
        char *key = tare_strdup(inputs->items[i]);
        if (!key) return TARE_NO_MEMORY;
        key[file - inputs->items[i] - 1] = '\0';
        out->keys[out->count++] = key;
        TARE_TRY(tare_npy_read(&out->values[i], file));
    }
    return TARE_OK;
}

static bool is_fed(const struct tare_binding *feed) {
    return feed->edge.node && strcmp(feed->edge.node->op, "Placeholder") == 0;
}

tare_status tare_run_arrays_missing(const struct tare_signature *signature) {
    struct tare_strbuf options = { 0 }, keys = { 0 };
    tare_status status = TARE_OK;
    for (size_t k = 0; k < signature->n_inputs; k++) {
        const struct tare_binding *feed = &signature->inputs[k];
        if (!is_fed(feed)) continue;
        tare_strbuf_printf(&keys, "%s%s", keys.size ? ", " : "", feed->key);
        tare_strbuf_printf(&options, " --input %s=FILE.npy", feed->key);
    }
    if (keys.size)
        status = TARE_FAIL(TARE_USAGE,
                           "signature %s needs input (give%s, or --data FILE.tfrecord with keys %s, or --data with "
                           "--spec)",
                           signature->key, tare_strbuf_text(&options), tare_strbuf_text(&keys));
    tare_strbuf_free(&options);
    tare_strbuf_free(&keys);
    return status;
}

static tare_status unknown_name(const char *name, const struct tare_signature *signature) {
    struct tare_strbuf names = { 0 };
    for (size_t k = 0; k < signature->n_inputs; k++)
        tare_strbuf_printf(&names, "%s%s", k ? ", " : "", signature->inputs[k].key);
    const tare_status status = TARE_FAIL(TARE_USAGE, "--input %s: unknown input (%s has %s)", name, signature->key,
                                         names.size ? tare_strbuf_text(&names) : "none");
    tare_strbuf_free(&names);
    return status;
}

/* A spec does not apply to --input: the array itself must have the dtype. */
static tare_status check_dtype(const struct tare_binding *feed, const struct tare_tensor *value) {
    const int dtype = tare_dtype_base(feed->dtype);
    if (!dtype || value->dtype == dtype || tare_dtype_fits_bytes(dtype, value->dtype)) return TARE_OK;
    return TARE_FAIL(TARE_TYPE, "--input %s: expected %s, got %s (save the array as %s)", feed->key,
                     tare_dtype_name(dtype), tare_dtype_name(value->dtype), tare_dtype_name(tare_dtype_stored(dtype)));
}

/* `given`: by name, whether the signature has the input. */
static tare_status compare_names(struct tare_map *given, bool *known, const struct tare_run_arrays *arrays,
                                 const struct tare_signature *signature) {
    const struct tare_binding *missing = NULL;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < arrays->count; i++)
        if (!tare_map_set(given, arrays->keys[i], &known[i])) return TARE_NO_MEMORY;
    for (size_t k = 0; k < signature->n_inputs; k++) {
        const struct tare_binding *feed = &signature->inputs[k];
        bool *found = tare_map_get(given, feed->key);
        if (found && status == TARE_OK) status = check_dtype(feed, &arrays->values[found - known]);
        if (found)
            *found = true;
        else if (is_fed(feed) && !missing)
            missing = feed;
    }
    for (size_t i = 0; i < arrays->count; i++)
        if (!*(const bool *)tare_map_get(given, arrays->keys[i])) return unknown_name(arrays->keys[i], signature);
    if (missing) return TARE_FAIL(TARE_USAGE, "--input %s=FILE.npy is missing", missing->key);
    return status;
}

static tare_status check_names(const struct tare_run_arrays *arrays, const struct tare_signature *signature) {
    struct tare_map given = { 0 };
    bool *known = tare_calloc(arrays->count + 1, sizeof *known);
    const tare_status status = known ? compare_names(&given, known, arrays, signature) : TARE_NO_MEMORY;
    tare_map_free(&given);
    tare_free(known);
    return status;
}

/* `tensors`: of the inputs, then of the outputs, zeroed; reset by the caller. */
static tare_status run_sample(struct tare_run_outputs *outputs, struct tare_tensor *tensors,
                              const struct tare_sample *sample, struct tare_session *session,
                              const struct tare_signature_edges *edges) {
    struct tare_node *target = tare_session_target(session, edges->signature);
    TARE_TRY(tare_bind_record(tensors, edges->signature, sample, NULL));
    TARE_TRY(tare_session_run(session, edges->feeds, tensors, edges->n_feeds, edges->fetches, tensors + edges->n_feeds,
                              edges->n_outputs, &target, target != NULL));
    return tare_run_outputs_take(outputs, tensors + edges->n_feeds);
}

static tare_status run_once(struct tare_run_outputs *outputs, const struct tare_sample *sample,
                            struct tare_session *session, const struct tare_signature_edges *edges) {
    const size_t count = edges->n_feeds + edges->n_outputs;
    struct tare_tensor *tensors = tare_calloc(count + 1, sizeof *tensors);
    const tare_status status = tensors ? run_sample(outputs, tensors, sample, session, edges) : TARE_NO_MEMORY;
    for (size_t i = 0; tensors && i < count; i++)
        tare_tensor_reset(&tensors[i]);
    tare_free(tensors);
    return status;
}

/* `part`: with room for as many values, zeroed; reset by the caller. */
static tare_status run_part(struct tare_run_outputs *outputs, struct tare_tensor *part,
                            const struct tare_run_arrays *arrays, int64_t first, int64_t rows,
                            struct tare_session *session, const struct tare_signature_edges *edges) {
    const struct tare_sample sample = { .keys = arrays->keys, .values = part, .count = arrays->count };
    for (size_t i = 0; i < arrays->count; i++)
        TARE_TRY(tare_tensor_share_rows(&part[i], &arrays->values[i], first, rows));
    return run_once(outputs, &sample, session, edges);
}

/* Arrays with several times the rows that the inputs have run in as many parts. */
static tare_status run_parts(struct tare_run_outputs *outputs, const struct tare_run_arrays *arrays, int64_t rows,
                             int64_t given, struct tare_session *session, const struct tare_signature_edges *edges) {
    struct tare_tensor *part = tare_calloc(arrays->count + 1, sizeof *part);
    tare_status status = part ? TARE_OK : TARE_NO_MEMORY;
    tare_run_outputs_join_rows(outputs, rows);
    for (int64_t first = 0; first < given && status == TARE_OK; first += rows) {
        status = run_part(outputs, part, arrays, first, rows, session, edges);
        for (size_t i = 0; i < arrays->count; i++)
            tare_tensor_reset(&part[i]);
    }
    tare_free(part);
    return status;
}

tare_status tare_run_arrays_run(struct tare_run_outputs *outputs, const struct tare_run_arrays *arrays,
                                struct tare_session *session, const struct tare_signature *signature) {
    const struct tare_sample sample = { .keys = arrays->keys, .values = arrays->values, .count = arrays->count };
    struct tare_signature_edges edges = { 0 };
    int64_t given = 0;
    TARE_TRY(check_names(arrays, signature));
    const int64_t rows = tare_rows_of_sample(&given, signature, &sample);
    tare_status status = tare_signature_edges_of(&edges, signature);
    if (status == TARE_OK)
        status = rows > 1 && given > 0 && given % rows == 0 ? run_parts(outputs, arrays, rows, given, session, &edges)
                                                            : run_once(outputs, &sample, session, &edges);
    tare_signature_edges_free(&edges);
    return status;
}
