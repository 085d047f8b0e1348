/* Binds records to the feeds of a signature, joins them on axis 0, runs them and splits outputs by records. */
#include "eval/record_batch.h"
#include "base/alloc.h"
#include "base/tensor/concat_rows.h"
#include "eval/model_inputs.h"
#include "interpreter/signature_target.h"

void tare_tensors_reset(struct tare_tensor *tensors, size_t count) {
    for (size_t i = 0; tensors && i < count; i++)
        tare_tensor_reset(&tensors[i]);
}

/* ---- records ---- */

tare_status tare_record_take(struct tare_bound_record *out, const struct tare_signature_edges *edges,
                             struct tare_sample *sample, const struct tare_record *where) {
    struct tare_tensor *values = tare_calloc(edges->n_feeds + edges->n_outputs + 1, sizeof *values);
    tare_status status = values ? tare_bind_record(values, edges->signature, sample, edges->feedback) : TARE_NO_MEMORY;
    if (status != TARE_OK) {
        tare_free(values);
        tare_sample_reset(sample);
        return status;
    }
    *out = (struct tare_bound_record){
        .sample = *sample, .where = *where, .values = values, .outputs = values + edges->n_feeds
    };
    return TARE_OK;
}

void tare_record_reset(struct tare_bound_record *record, const struct tare_signature_edges *edges) {
    tare_tensors_reset(record->values, edges->n_feeds + edges->n_outputs);
    tare_free(record->values);
    tare_sample_reset(&record->sample);
    *record = (struct tare_bound_record){ 0 };
}

/* ---- together ---- */

static int64_t rows_of(const struct tare_bound_record *record) {
    return record->values[0].shape.dims[0];
}

/* Joins the records' values into one tensor per feed with *rows on axis 0. Sets *fits to false when their shapes
 * differ; `joined` (one per feed, zeroed by the caller) may then be partly set. The caller resets it in any case. */
static tare_status records_join(struct tare_tensor *joined, int64_t *rows, bool *fits,
                                const struct tare_bound_record *records, size_t count,
                                const struct tare_signature_edges *edges) {
    const struct tare_tensor **values = tare_calloc(count, sizeof *values);
    tare_status status = values ? TARE_OK : TARE_NO_MEMORY;
    *rows = 0;
    *fits = true;
    for (size_t r = 0; r < count && status == TARE_OK; r++) {
        values[r] = records[r].values;
        for (size_t i = 0; i < edges->n_feeds; i++)
            *fits = *fits && values[r][i].dtype && values[r][i].shape.rank > 0;
        if (*fits) *rows += rows_of(&records[r]);
    }
    for (size_t i = 0; i < edges->n_feeds && *fits && status == TARE_OK; i++)
        status = tare_concat_rows(&joined[i], values, count, i, fits, NULL);
    tare_free(values);
    return status;
}

/* True when every output has `rows` on axis 0. */
static bool records_can_split(const struct tare_tensor *outputs, int64_t rows,
                              const struct tare_signature_edges *edges) {
    for (size_t i = 0; i < edges->n_outputs; i++)
        if (outputs[i].shape.rank < 1 || outputs[i].shape.dims[0] != rows) return false;
    return true;
}

/* Sets each record's outputs to its rows of the joined outputs, without copying. */
static tare_status records_split(struct tare_bound_record *records, size_t count, const struct tare_tensor *outputs,
                                 const struct tare_signature_edges *edges) {
    int64_t first = 0;
    for (size_t r = 0; r < count; r++) {
        int64_t rows = rows_of(&records[r]);
        for (size_t i = 0; i < edges->n_outputs; i++)
            TARE_TRY(tare_tensor_share_rows(&records[r].outputs[i], &outputs[i], first, rows));
        first += rows;
    }
    return TARE_OK;
}

tare_status tare_records_locate(tare_status status, const char *const *files, const struct tare_record *first,
                                const struct tare_record *last) {
    const char *file = files[first->file];
    if (status == TARE_OK || status == TARE_INTERRUPTED) return status;
    if (first->file != last->file)
        return tare_error_prefix(status, "%s: record %lld to %s: record %lld", file, (long long)first->number,
                                 files[last->file], (long long)last->number);
    if (first->number != last->number)
        return tare_error_prefix(status, "%s: records %lld to %lld", file, (long long)first->number,
                                 (long long)last->number);
    return tare_error_prefix(status, "%s: record %lld", file, (long long)first->number);
}

/* ---- runs ---- */

static tare_status run_values(struct tare_session *session, const struct tare_signature_edges *edges,
                              const struct tare_tensor *values, struct tare_tensor *outputs) {
    struct tare_node *target = tare_session_target(session, edges->signature);
    return tare_session_run(session, edges->feeds, values, edges->n_feeds, edges->fetches, outputs, edges->n_outputs,
                            &target, target != NULL);
}

tare_status tare_record_run(struct tare_session *session, const struct tare_signature_edges *edges,
                            struct tare_bound_record *record) {
    return run_values(session, edges, record->values, record->outputs);
}

tare_status tare_records_run_joined(enum tare_batch_verdict *verdict, struct tare_session *session,
                                    const struct tare_signature_edges *edges, struct tare_bound_record *records,
                                    size_t count) {
    struct tare_tensor *joined = tare_calloc(edges->n_feeds + edges->n_outputs + 1, sizeof *joined);
    struct tare_tensor *outputs = joined ? joined + edges->n_feeds : NULL;
    int64_t rows;
    bool fits = false;
    tare_status status = joined ? records_join(joined, &rows, &fits, records, count, edges) : TARE_NO_MEMORY;
    *verdict = TARE_BATCH_UNDECIDED;
    if (status == TARE_OK && fits) {
        status = run_values(session, edges, joined, outputs);
        *verdict = status == TARE_OK && records_can_split(outputs, rows, edges) ? TARE_BATCH_INDEPENDENT
                                                                                : TARE_BATCH_DEPENDENT;
        if (*verdict == TARE_BATCH_INDEPENDENT) status = records_split(records, count, outputs, edges);
    }
    tare_tensors_reset(joined, edges->n_feeds + edges->n_outputs);
    tare_free(joined);
    return status;
}

tare_status tare_records_choose_batch(size_t *batch, size_t most, struct tare_session *session,
                                      const struct tare_signature_edges *edges, struct tare_bound_record *two) {
    int64_t bytes;
    TARE_TRY(tare_record_run(session, edges, &two[0])); /* also creates the plan and packs the weights */
    tare_session_activation_bytes(session);
    TARE_TRY(tare_record_run(session, edges, &two[1]));
    bytes = tare_session_activation_bytes(session);
    *batch = most;
    if (bytes > TARE_BATCH_BYTES / (int64_t)most) *batch = (size_t)(TARE_BATCH_BYTES / bytes);
    if (*batch < 1) *batch = 1;
    return TARE_OK;
}

/* ---- the pair check ---- */

struct trial {
    struct tare_session *session;
    const struct tare_signature_edges *edges;
};

/* `alone` and `batch`: the same two records with separate outputs. */
static tare_status compare(enum tare_batch_verdict *verdict, const struct trial *trial, struct tare_bound_record *alone,
                           struct tare_bound_record *batch) {
    for (size_t r = 0; r < 2; r++)
        TARE_TRY(tare_record_run(trial->session, trial->edges, &alone[r]));
    const tare_status status = tare_records_run_joined(verdict, trial->session, trial->edges, batch, 2);
    if (status != TARE_OK) *verdict = TARE_BATCH_DEPENDENT;
    TARE_TRY(tare_error_dismiss(status));
    for (size_t r = 0; r < 2 && *verdict == TARE_BATCH_INDEPENDENT; r++)
        for (size_t i = 0; i < trial->edges->n_outputs; i++)
            if (!tare_tensor_same_bits(&alone[r].outputs[i], &batch[r].outputs[i])) *verdict = TARE_BATCH_DEPENDENT;
    return TARE_OK;
}

static tare_status try_pair(void *arg, enum tare_batch_verdict *verdict, const struct tare_tensor *const pair[2]) {
    const struct trial *trial = arg;
    const size_t n_outputs = trial->edges->n_outputs;
    struct tare_tensor *outputs = tare_calloc(4 * n_outputs + 1, sizeof *outputs);
    struct tare_bound_record copies[4] = { 0 };
    tare_status status;
    if (!outputs) return TARE_NO_MEMORY;
    for (size_t r = 0; r < 4; r++) {
        copies[r].values = (struct tare_tensor *)pair[r % 2]; /* only read */
        copies[r].outputs = outputs + r * n_outputs;
    }
    status = compare(verdict, trial, copies, copies + 2);
    tare_tensors_reset(outputs, 4 * n_outputs);
    tare_free(outputs);
    return status;
}

tare_status tare_records_check_pair(enum tare_batch_verdict *verdict, struct tare_session *session,
                                    const struct tare_signature_edges *edges, const struct tare_bound_record *two) {
    const struct tare_tensor *const pair[2] = { two[0].values, two[1].values };
    struct trial trial = { session, edges };
    return tare_batch_check_pair(verdict, pair, edges->n_feeds, try_pair, &trial);
}
