#include "eval/batch_check.h"
#include "base/alloc.h"
#include "calib/batch.h"
#include "eval/model_inputs.h"
#include "graph/data_dependence.h"

tare_status tare_records_may_join(bool *may, const struct tare_record_edges *edges) {
    const struct tare_signature *signature = edges->signature;
    bool dependent = true;
    *may = tare_signature_batches(signature, false) && edges->n_outputs > 0 &&
           tare_session_state_ops(edges->fetches[0].node->graph->model, signature, NULL) == 0;
    if (*may) TARE_TRY(tare_signature_is_data_dependent(&dependent, signature));
    *may = !dependent;
    return TARE_OK;
}

static tare_status run_values(struct tare_session *session, const struct tare_record_edges *edges,
                              const struct tare_tensor *values, struct tare_tensor *outputs) {
    return tare_session_run(session, edges->feeds, values, edges->n_feeds, edges->fetches, outputs, edges->n_outputs,
                            NULL, 0);
}

tare_status tare_record_run(struct tare_session *session, const struct tare_record_edges *edges,
                            struct tare_bound_record *record) {
    return run_values(session, edges, record->values, record->outputs);
}

tare_status tare_records_run_together(bool *done, enum tare_together *found, struct tare_session *session,
                                      const struct tare_record_edges *edges, struct tare_bound_record *records,
                                      size_t count) {
    struct tare_tensor *joined = tare_calloc(edges->n_feeds + edges->n_outputs + 1, sizeof *joined);
    struct tare_tensor *outputs = joined ? joined + edges->n_feeds : NULL;
    int64_t rows;
    bool fits = false;
    tare_status status = joined ? tare_records_join(joined, &rows, &fits, records, count, edges) : TARE_NO_MEMORY;
    *done = false;
    *found = TARE_TOGETHER_UNKNOWN;
    if (status == TARE_OK && fits) {
        status = run_values(session, edges, joined, outputs);
        *done = status == TARE_OK && tare_records_can_split(outputs, rows, edges);
        *found = *done ? TARE_TOGETHER_SAME : TARE_TOGETHER_DIFFERS;
        if (*done) status = tare_records_split(records, count, outputs, edges);
    }
    tare_tensors_reset(joined, edges->n_feeds + edges->n_outputs);
    tare_free(joined);
    return status;
}

enum { TWO = 2 };

static bool like(const struct tare_bound_record *two, const struct tare_record_edges *edges) {
    for (size_t i = 0; i < edges->n_feeds; i++)
        if (!tare_tensor_same_bits(&two[0].values[i], &two[1].values[i])) return false;
    return true;
}

/* `alone` and `pair` are copies of two records with outputs of their own. */
static tare_status compare(enum tare_together *found, struct tare_session *session,
                           const struct tare_record_edges *edges, struct tare_bound_record *alone,
                           struct tare_bound_record *pair) {
    bool done;
    for (size_t r = 0; r < TWO; r++)
        TARE_TRY(tare_record_run(session, edges, &alone[r]));
    if (tare_records_run_together(&done, found, session, edges, pair, TWO) != TARE_OK) *found = TARE_TOGETHER_DIFFERS;
    for (size_t r = 0; r < TWO && *found == TARE_TOGETHER_SAME; r++)
        for (size_t i = 0; i < edges->n_outputs; i++)
            if (!tare_tensor_same_bits(&alone[r].outputs[i], &pair[r].outputs[i])) *found = TARE_TOGETHER_DIFFERS;
    return TARE_OK;
}

static tare_status try_pair(enum tare_together *found, struct tare_session *session,
                            const struct tare_record_edges *edges, const struct tare_bound_record *two) {
    struct tare_bound_record copies[2 * TWO] = { two[0], two[1], two[0], two[1] };
    struct tare_tensor *outputs = tare_calloc(2 * TWO * edges->n_outputs + 1, sizeof *outputs);
    tare_status status;
    if (!outputs) return TARE_NO_MEMORY;
    for (size_t r = 0; r < 2 * TWO; r++)
        copies[r].outputs = outputs + r * edges->n_outputs;
    status = compare(found, session, edges, copies, copies + TWO);
    tare_tensors_reset(outputs, 2 * TWO * edges->n_outputs);
    tare_free(outputs);
    return status;
}

/* The pair again with other numbers in its second record: extremes that both happen to share would show nothing. A
 * model that refuses such numbers is believed as it is. */
static tare_status try_contrast(enum tare_together *found, struct tare_session *session,
                                const struct tare_record_edges *edges, const struct tare_bound_record *two) {
    struct tare_bound_record pair[TWO] = { two[0], two[1] };
    tare_status status = TARE_OK;
    pair[1].values = tare_calloc(edges->n_feeds + 1, sizeof *pair[1].values);
    if (!pair[1].values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < edges->n_feeds && status == TARE_OK; i++)
        status = tare_batch_contrast(&pair[1].values[i], &two[1].values[i]);
    if (status == TARE_OK && try_pair(found, session, edges, pair) != TARE_OK) *found = TARE_TOGETHER_SAME;
    tare_tensors_reset(pair[1].values, edges->n_feeds);
    tare_free(pair[1].values);
    return status;
}

tare_status tare_records_try(enum tare_together *found, struct tare_session *session,
                             const struct tare_record_edges *edges, const struct tare_bound_record *two) {
    *found = TARE_TOGETHER_UNKNOWN;
    if (like(two, edges)) return TARE_OK;
    TARE_TRY(try_pair(found, session, edges, two));
    if (*found == TARE_TOGETHER_SAME) TARE_TRY(try_contrast(found, session, edges, two));
    tare_error_clear();
    return TARE_OK;
}
