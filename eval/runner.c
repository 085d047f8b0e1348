/* Running a signature over records. */
#include "eval/runner.h"
#include "base/alloc.h"
#include "eval/model_inputs.h"

#include <string.h>

/* A sample waiting for its batch. */
struct waiting {
    struct tare_sample sample;
    struct tare_provenance where;
    struct tare_tensor *values; /* by feed */
};

struct runner {
    struct tare_session *session;
    const struct tare_signature *signature;
    tare_record_fn fn;
    void *arg;
    struct waiting *waiting;
    size_t count;
    size_t n_feeds, n_outputs;
    struct tare_edge *feeds, *fetches;
};

static tare_status run_values(struct runner *r, const struct tare_tensor *values, struct tare_tensor *outputs) {
    return tare_session_run(r->session, r->feeds, values, r->n_feeds, r->fetches, outputs, r->n_outputs, NULL, 0);
}

static void reset_all(struct tare_tensor *tensors, size_t count) {
    for (size_t i = 0; tensors && i < count; i++) tare_tensor_reset(&tensors[i]);
}

static tare_status run_alone(struct runner *r, const struct waiting *one) {
    struct tare_tensor *outputs = tare_calloc(r->n_outputs + 1, sizeof *outputs);
    tare_status status = outputs ? run_values(r, one->values, outputs) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = r->fn(r->arg, &one->sample, &one->where, outputs);
    reset_all(outputs, r->n_outputs);
    tare_free(outputs);
    return status;
}

static int64_t rows_of(const struct waiting *one) { return one->values[0].shape.dims[0]; }

/* Every output has the batch's rows on axis 0. */
static bool can_split(const struct runner *r, const struct tare_tensor *outputs, int64_t rows) {
    for (size_t i = 0; i < r->n_outputs; i++)
        if (outputs[i].shape.rank < 1 || outputs[i].shape.dims[0] != rows) return false;
    return true;
}

static tare_status hand_out(struct runner *r, const struct tare_tensor *outputs) {
    struct tare_tensor *parts = tare_calloc(r->n_outputs + 1, sizeof *parts);
    int64_t first = 0;
    tare_status status = parts ? TARE_OK : TARE_NO_MEMORY;
    for (size_t s = 0; s < r->count && status == TARE_OK; s++) {
        int64_t rows = rows_of(&r->waiting[s]);
        for (size_t i = 0; i < r->n_outputs && status == TARE_OK; i++)
            status = tare_tensor_share_rows(&parts[i], &outputs[i], first, rows);
        if (status == TARE_OK) status = r->fn(r->arg, &r->waiting[s].sample, &r->waiting[s].where, parts);
        reset_all(parts, r->n_outputs);
        first += rows;
    }
    tare_free(parts);
    return status;
}

static tare_status run_together(struct runner *r, bool *done) {
    const struct tare_tensor **rows = tare_calloc(r->count, sizeof *rows);
    struct tare_tensor *joined = tare_calloc(r->n_feeds + r->n_outputs + 1, sizeof *joined);
    struct tare_tensor *outputs = joined ? joined + r->n_feeds : NULL;
    tare_status status = rows && joined ? TARE_OK : TARE_NO_MEMORY;
    int64_t total = 0;
    bool fits = true;
    for (size_t s = 0; s < r->count && status == TARE_OK; s++) {
        rows[s] = r->waiting[s].values;
        total += rows_of(&r->waiting[s]);
    }
    for (size_t i = 0; i < r->n_feeds && fits && status == TARE_OK; i++)
        status = tare_concat_rows(&joined[i], rows, r->count, i, &fits);
    *done = false;
    if (status == TARE_OK && fits) status = run_values(r, joined, outputs);
    if (status == TARE_OK && fits && can_split(r, outputs, total)) {
        *done = true;
        status = hand_out(r, outputs);
    }
    reset_all(joined, r->n_feeds + r->n_outputs);
    tare_free(joined);
    tare_free(rows);
    return status;
}

static void drop_waiting(struct runner *r) {
    for (size_t s = 0; s < r->count; s++) {
        reset_all(r->waiting[s].values, r->n_feeds);
        tare_free(r->waiting[s].values);
        tare_sample_reset(&r->waiting[s].sample);
    }
    r->count = 0;
}

static tare_status flush(struct runner *r) {
    bool done = false;
    tare_status status = TARE_OK;
    if (r->count > 1) status = run_together(r, &done);
    for (size_t s = 0; s < r->count && !done && status == TARE_OK; s++) status = run_alone(r, &r->waiting[s]);
    drop_waiting(r);
    return status;
}

static tare_status take(struct runner *r, struct tare_sample *sample, const struct tare_provenance *where) {
    struct waiting *one = &r->waiting[r->count];
    tare_status status;
    memset(one, 0, sizeof *one);
    one->values = tare_calloc(r->n_feeds + 1, sizeof *one->values);
    status = one->values ? tare_bind_sample(one->values, r->signature, sample, NULL) : TARE_NO_MEMORY;
    if (status != TARE_OK) {
        tare_free(one->values);
        tare_sample_reset(sample);
        return status;
    }
    one->sample = *sample;
    one->where = *where;
    r->count++;
    return TARE_OK;
}

static tare_status list_edges(struct runner *r) {
    r->n_feeds = tare_signature_feed_count(r->signature);
    r->n_outputs = r->signature->n_outputs;
    r->feeds = tare_calloc(r->n_feeds + r->n_outputs + 1, sizeof *r->feeds);
    if (!r->feeds) return TARE_NO_MEMORY;
    r->fetches = r->feeds + r->n_feeds;
    for (size_t i = 0; i < r->n_feeds; i++) {
        struct tare_feed feed;
        tare_signature_feed(&feed, r->signature, i);
        if (!feed.edge.node) return TARE_FAIL(TARE_UNSUPPORTED, "input %s cannot be fed", feed.name);
        r->feeds[i] = feed.edge;
    }
    for (size_t i = 0; i < r->n_outputs; i++) {
        r->fetches[i] = r->signature->outputs[i].edge;
        if (!r->fetches[i].node)
            return TARE_FAIL(TARE_UNSUPPORTED, "output %s cannot be fetched", r->signature->outputs[i].key);
    }
    return TARE_OK;
}

static tare_status run_source(struct runner *r, struct tare_source *source, size_t batch,
                              const volatile sig_atomic_t *interrupted) {
    bool end = false;
    while (!end) {
        struct tare_sample sample;
        struct tare_provenance where;
        size_t n_files;
        if (interrupted && *interrupted) return TARE_FAIL(TARE_INTERRUPTED, "interrupted");
        TARE_TRY(tare_source_next(&sample, &where, &end, source, NULL, NULL));
        if (!end)
            TARE_TRY(tare_error_prefix(take(r, &sample, &where), "%s: record %lld",
                                       tare_source_files(source, &n_files)[where.file], (long long)where.number));
        if (r->count == batch || (end && r->count)) TARE_TRY(flush(r));
    }
    return TARE_OK;
}

tare_status tare_run_records(struct tare_session *session, const struct tare_signature *signature,
                             const struct tare_runner_options *options, tare_record_fn fn, void *arg) {
    struct tare_source_options source_options = { .limit = options->limit };
    struct runner r = { .session = session, .signature = signature, .fn = fn, .arg = arg };
    size_t batch = options->batch > 1 && tare_signature_batches(signature) ? (size_t)options->batch : 1;
    struct tare_source *source = NULL;
    tare_status status;
    r.waiting = tare_calloc(batch, sizeof *r.waiting);
    status = r.waiting ? list_edges(&r) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_source_new(&source, options->paths, options->n_paths, &source_options);
    if (status == TARE_OK) status = run_source(&r, source, batch, options->interrupted);
    if (r.waiting) drop_waiting(&r);
    tare_source_free(source);
    tare_free(r.waiting);
    tare_free(r.feeds);
    return status;
}
