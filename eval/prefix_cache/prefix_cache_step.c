#include "eval/prefix_cache/prefix_cache_run.h"
#include "base/alloc.h"
#include "eval/joined_run.h"

/* Feeds and fetches of one run. */
struct exchange {
    struct tare_edge *edges;     /* feeds: kept values, then inputs; fetches: outputs, then values to keep */
    struct tare_tensor *tensors; /* their tensors */
    size_t n_feeds, n_fetches;
    int64_t rows;
};

static bool runs_together(const struct tare_cached_run *r, size_t count) {
    return r->batch > 1 && count > 0;
}

static tare_status add_inputs(struct exchange *x, const struct tare_prefix_cache_step *step,
                              const struct tare_bound_record *records, size_t count) {
    const struct tare_record_edges *edges = &step->made->edges;
    struct tare_tensor *to = x->tensors + x->n_feeds;
    bool fits;
    for (size_t i = 0; i < edges->n_feeds; i++)
        x->edges[x->n_feeds + i] = edges->feeds[i];
    x->n_feeds += edges->n_feeds;
    if (runs_together(step->r, count)) {
        TARE_TRY(tare_records_join(to, &x->rows, &fits, records, count, edges));
        return fits ? TARE_OK : TARE_FAIL(TARE_INTERNAL, "records that fitted together do so no more");
    }
    for (size_t i = 0; i < edges->n_feeds; i++)
        if (records->values[i].dtype) tare_tensor_share(&to[i], &records->values[i]);
    return TARE_OK;
}

static tare_status set_up(struct exchange *x, const struct tare_prefix_cache_step *step, size_t batch,
                          const struct tare_bound_record *records, size_t count) {
    const struct tare_prefix_cache_route *route = step->route;
    const struct tare_record_edges *edges = &step->made->edges;
    const size_t room = route->n_fed + edges->n_feeds + edges->n_outputs + route->n_left + 1;
    x->edges = tare_calloc(room, sizeof *x->edges);
    x->tensors = tare_calloc(room, sizeof *x->tensors);
    if (!x->edges || !x->tensors) return TARE_NO_MEMORY;
    for (size_t i = 0; i < route->n_fed; i++) {
        x->edges[i] = route->fed[i];
        tare_tensor_share(&x->tensors[i], &route->fed_values[i]->tensors[batch]);
    }
    x->n_feeds = route->n_fed;
    if (route->needs_inputs) TARE_TRY(add_inputs(x, step, records, count));
    for (size_t i = 0; i < edges->n_outputs; i++)
        x->edges[x->n_feeds + i] = edges->fetches[i];
    for (size_t i = 0; i < route->n_left; i++)
        x->edges[x->n_feeds + edges->n_outputs + i] = route->left[i];
    x->n_fetches = edges->n_outputs + route->n_left;
    return TARE_OK;
}

static void tear_down(struct exchange *x) {
    if (x->tensors) tare_tensors_reset(x->tensors, x->n_feeds + x->n_fetches);
    tare_free(x->edges);
    tare_free(x->tensors);
}

/* Copies the value, because buffers of the session's pool end with the session. A value that exceeds the budget is
 * dropped for all batches. */
static tare_status keep(struct tare_prefix_cache_step *step, size_t batch, const struct tare_tensor *left) {
    struct tare_cached_run *r = step->r;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < step->route->n_left && status == TARE_OK; i++) {
        struct tare_prefix_cache_value *value = step->route->left_values[i];
        const int64_t bytes = (int64_t)tare_tensor_bytes(&left[i]);
        bool take;
        pthread_mutex_lock(&r->lock);
        take = !value->refused && r->bytes + bytes <= r->task->memory - r->models_bytes;
        value->refused = !take;
        if (take) {
            r->bytes += bytes;
            value->bytes += bytes;
        }
        pthread_mutex_unlock(&r->lock);
        if (take) status = tare_tensor_copy(&value->tensors[batch], &left[i]);
    }
    return status;
}

static size_t batch_size(const struct tare_cached_run *r, size_t batch) {
    const size_t first = batch * r->batch;
    return r->count - first < r->batch ? r->count - first : r->batch;
}

static tare_status hand_on(struct tare_prefix_cache_step *step, size_t batch, const struct exchange *x) {
    struct tare_cached_run *r = step->r;
    struct tare_bound_record *records = &r->records[batch * r->batch];
    const struct tare_record_edges *edges = &step->made->edges;
    const struct tare_tensor *outputs = x->tensors + x->n_feeds;
    const size_t count = batch_size(r, batch);
    TARE_TRY(keep(step, batch, outputs + edges->n_outputs));
    if (!runs_together(r, count)) {
        for (size_t i = 0; i < edges->n_outputs; i++)
            tare_tensor_share(&records->outputs[i], &outputs[i]);
        return TARE_OK;
    }
    return tare_records_split(records, count, outputs, edges);
}

static int64_t rows_of(const struct tare_bound_record *records, size_t count) {
    int64_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += records[i].values[0].shape.dims[0];
    return rows;
}

tare_status tare_prefix_cache_run_batch(struct tare_prefix_cache_step *step, struct tare_session *session,
                                        size_t batch) {
    struct tare_cached_run *r = step->r;
    const struct tare_bound_record *records = &r->records[batch * r->batch];
    const size_t count = batch_size(r, batch);
    struct exchange x = { 0 };
    tare_status status = set_up(&x, step, batch, records, count);
    if (status == TARE_OK)
        status = tare_session_run(session, x.edges, x.tensors, x.n_feeds, x.edges + x.n_feeds, x.tensors + x.n_feeds,
                                  x.n_fetches, NULL, 0);
    if (status == TARE_OK && runs_together(r, count) &&
        !tare_records_can_split(x.tensors + x.n_feeds, rows_of(records, count), &step->made->edges)) {
        pthread_mutex_lock(&r->lock);
        r->report->unsuited = true;
        pthread_mutex_unlock(&r->lock);
    } else if (status == TARE_OK) {
        status = hand_on(step, batch, &x);
    }
    tear_down(&x);
    return tare_records_locate(status, r->reader.files, &records[0].where, &records[count - 1].where);
}
