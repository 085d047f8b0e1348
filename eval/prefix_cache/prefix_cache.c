/* Runs a set of models that share most of their computation. The records are processed in parts. For each part, model
 * after model runs only from the edges at which it differs from the models before it
 * (eval/prefix_cache/prefix_cache_plan.h); the values of shared edges are kept in memory, batch by batch, and fed to
 * later models. Invariant: outputs have the same bits as those of complete runs, because a kept value is the value that
 * the model would compute. */
#include "eval/prefix_cache/prefix_cache_run.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "eval/comparison.h"
#include "eval/model_inputs.h"
#include "graph/inline.h"

#include <string.h>

enum { MOST_RECORDS = 65536 }; /* of a part */

/* ---- models ---- */

void tare_prefix_cache_unmake(struct tare_prefix_cache_model *made) {
    tare_record_edges_free(&made->edges);
    tare_model_free(made->model);
    *made = (struct tare_prefix_cache_model){ 0 };
}

tare_status tare_prefix_cache_make(struct tare_prefix_cache_model *out, struct tare_cached_run *r, size_t number) {
    tare_status status;
    *out = (struct tare_prefix_cache_model){ 0 };
    TARE_TRY(r->task->make(r->task->arg, &out->model, number));
    status = tare_model_inline_calls(out->model);
    if (status == TARE_UNSUPPORTED) {
        r->report->unsuited = true;
        tare_error_clear();
        tare_prefix_cache_unmake(out);
        return TARE_OK;
    }
    if (status != TARE_OK) goto done;
    TARE_CHECK(tare_pick_signature(&out->signature, out->model, r->task->signature));
    TARE_CHECK(tare_record_edges_of(&out->edges, out->signature));
done:
    if (status != TARE_OK) tare_prefix_cache_unmake(out);
    return status;
}

/* Plans every model once; the models that fit into memory are kept for the runs. */
static tare_status plan_models(struct tare_cached_run *r) {
    const int64_t room = r->task->memory / 4;
    for (size_t i = 0; i < r->task->n_models && !r->report->unsuited; i++) {
        struct tare_prefix_cache_model made;
        int64_t bytes;
        tare_status status;
        TARE_TRY(tare_prefix_cache_make(&made, r, i));
        if (r->report->unsuited) return TARE_OK;
        status = tare_prefix_cache_plan_add(&r->plan, made.model, &made.edges, i);
        if (status == TARE_OK) status = tare_model_weight_bytes(&bytes, made.model);
        if (status == TARE_OK && r->models_bytes + bytes <= room) {
            r->models_bytes += bytes;
            r->kept[i] = made;
        } else {
            tare_prefix_cache_unmake(&made);
        }
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* ---- one model over a part of the records ---- */

void tare_prefix_cache_reset_outputs(struct tare_cached_run *r) {
    for (size_t i = 0; i < r->count; i++)
        tare_tensors_reset(r->records[i].outputs, r->binding.n_outputs);
}

static tare_status work(void *arg, int worker) {
    struct tare_prefix_cache_step *step = arg;
    const struct tare_runner_options *options = step->r->task->runner;
    for (size_t b = (size_t)worker; b < step->n_batches; b += (size_t)step->threads) {
        if (options->interrupted && *options->interrupted) return TARE_FAIL(TARE_INTERRUPTED, "interrupted");
        TARE_TRY(tare_prefix_cache_run_batch(step, step->sessions[worker], b));
    }
    return TARE_OK;
}

static tare_status make_room(struct tare_prefix_cache_route *route, size_t n_batches) {
    for (size_t i = 0; i < route->n_left; i++) {
        struct tare_prefix_cache_value *value = route->left_values[i];
        value->tensors = tare_calloc(n_batches + 1, sizeof *value->tensors);
        if (!value->tensors) return TARE_NO_MEMORY;
        value->n_tensors = n_batches;
    }
    return TARE_OK;
}

/* Frees values that no model after `number` uses, and those that did not fit. */
static void drop_values(struct tare_cached_run *r, size_t number) {
    for (size_t i = 0; i < r->plan.n_values; i++) {
        struct tare_prefix_cache_value *value = r->plan.values[i];
        if (!value->tensors || (value->last_user > number && !value->refused)) continue;
        r->bytes -= value->bytes;
        tare_prefix_cache_value_drop(value);
    }
}

static tare_status run_sessions(struct tare_prefix_cache_step *step) {
    struct tare_cached_run *r = step->r;
    tare_status status;
    TARE_TRY(tare_sessions_new(&step->sessions, step->threads, step->made->model, NULL));
    status = tare_threads_run(step->threads, work, step);
    tare_sessions_free(step->sessions, step->threads);
    if (r->bytes > r->report->kept_bytes) r->report->kept_bytes = r->bytes;
    return status;
}

static tare_status run_model(struct tare_cached_run *r, const struct tare_prefix_cache_model *made, size_t number) {
    struct tare_prefix_cache_route route;
    struct tare_prefix_cache_step step = {
        .r = r, .made = made, .route = &route, .n_batches = (r->count + r->batch - 1) / r->batch
    };
    const double start = tare_clock_seconds();
    tare_status status;
    step.threads = r->task->threads > 1 ? r->task->threads : 1;
    if ((size_t)step.threads > step.n_batches) step.threads = (int)step.n_batches;
    TARE_CHECK(tare_prefix_cache_route_of(&route, &r->plan, made->model, &made->edges, number));
    TARE_CHECK(make_room(&route, step.n_batches));
    TARE_CHECK(run_sessions(&step));
    if (r->task->seconds) r->task->seconds[number] += tare_clock_seconds() - start;
    r->report->nodes += route.nodes * (int64_t)r->count;
    r->report->whole_nodes += route.whole * (int64_t)r->count;
    for (size_t i = 0; i < r->count && !r->report->unsuited && status == TARE_OK; i++)
        status = r->task->record(r->task->arg, number, &r->records[i].sample, r->records[i].outputs);
done:
    tare_prefix_cache_reset_outputs(r);
    drop_values(r, number);
    tare_prefix_cache_route_free(&route);
    return status;
}

static tare_status run_part(struct tare_cached_run *r) {
    for (size_t i = 0; i < r->task->n_models && !r->report->unsuited; i++) {
        struct tare_prefix_cache_model made = r->kept[i];
        tare_status status = TARE_OK;
        if (!made.model) status = tare_prefix_cache_make(&made, r, i);
        if (status == TARE_OK) status = run_model(r, &made, i);
        if (!r->kept[i].model) tare_prefix_cache_unmake(&made);
        TARE_TRY(status);
    }
    r->report->parts++;
    return TARE_OK;
}

/* ---- records ---- */

static tare_status read_records(struct tare_cached_run *r, size_t expected) {
    while (r->count < expected && !r->at_end) {
        struct tare_sample sample;
        struct tare_provenance where;
        TARE_TRY(tare_record_reader_next(&sample, &where, &r->at_end, &r->reader));
        if (r->at_end) break;
        if (!TARE_GROW(r->records, r->count, r->capacity)) {
            tare_sample_reset(&sample);
            return TARE_NO_MEMORY;
        }
        TARE_TRY(tare_records_locate(tare_record_take(&r->records[r->count], &r->binding, &sample, &where),
                                     r->reader.files, &where, &where));
        r->count++;
    }
    return TARE_OK;
}

static void forget_records(struct tare_cached_run *r) {
    for (size_t i = 0; i < r->count; i++)
        tare_record_reset(&r->records[i], &r->binding);
    r->count = 0;
}

static int64_t record_bytes(const struct tare_cached_run *r) {
    int64_t bytes = 0;
    for (size_t i = 0; i < r->binding.n_feeds; i++)
        bytes += (int64_t)tare_tensor_bytes(&r->records[0].values[i]);
    return bytes;
}

/* Trial run of the first model on the first records: finds out whether batches can be split, and how many bytes the
 * kept values of a record take. */
static tare_status probe(struct tare_cached_run *r, const struct tare_prefix_cache_model *made) {
    struct tare_prefix_cache_route route;
    struct tare_prefix_cache_step step = { .r = r, .made = made, .route = &route, .threads = 1, .n_batches = 1 };
    const size_t all = r->count;
    int64_t bytes;
    tare_status status;
    r->count = all < r->batch ? all : r->batch;
    TARE_CHECK(tare_prefix_cache_route_of(&route, &r->plan, made->model, &made->edges, 0));
    TARE_CHECK(make_room(&route, 1));
    TARE_CHECK(run_sessions(&step));
    bytes = 2 * (r->bytes / (int64_t)r->count + record_bytes(r)); /* the same again for values that later models keep */
    r->part = (size_t)((r->task->memory - r->models_bytes) / (bytes > 0 ? bytes : 1));
    if (r->part < r->batch * (size_t)(r->task->threads > 1 ? r->task->threads : 1))
        r->part = r->batch * (size_t)(r->task->threads > 1 ? r->task->threads : 1);
    if (r->part > MOST_RECORDS) r->part = MOST_RECORDS;
done:
    tare_prefix_cache_reset_outputs(r);
    drop_values(r, SIZE_MAX);
    tare_prefix_cache_route_free(&route);
    r->count = all;
    return status;
}

static tare_status run_parts(struct tare_cached_run *r) {
    size_t expected = tare_runner_most_batch(r->task->runner, r->task->threads);
    TARE_TRY(read_records(r, expected));
    if (!r->count) return TARE_OK;
    TARE_TRY(tare_prefix_cache_check_batch(r, &expected));
    if (r->report->unsuited) return TARE_OK;
    TARE_TRY(tare_prefix_cache_choose_batch(r, expected));
    TARE_TRY(probe(r, &r->first));
    if (r->report->unsuited && r->batch > 1) { /* the outputs cannot be split by records */
        r->report->unsuited = false;
        r->batch = expected = 1;
        TARE_TRY(probe(r, &r->first));
    }
    while (r->count && !r->report->unsuited) {
        TARE_TRY(read_records(r, r->part));
        TARE_TRY(tare_prefix_cache_choose_batch(r, expected));
        TARE_TRY(run_part(r));
        forget_records(r);
        TARE_TRY(read_records(r, 1));
    }
    return TARE_OK;
}

/* ---- all of it ---- */

static tare_status plan_shared(struct tare_cached_run *r) {
    for (size_t i = 0; i < r->task->n_models && !r->report->unsuited; i++) {
        struct tare_prefix_cache_model made;
        tare_status status = tare_prefix_cache_make(&made, r, i);
        if (status == TARE_OK && !r->report->unsuited)
            status = tare_prefix_cache_plan_add(&r->plan, made.model, &made.edges, i);
        tare_prefix_cache_unmake(&made);
        TARE_TRY(status);
    }
    return TARE_OK;
}

tare_status tare_prefix_cache_find_shared(bool *shares, const struct tare_prefix_cache_task *task) {
    static const double WORTH = 0.1;
    struct tare_prefix_cache_report report = { 0 };
    struct tare_cached_run r = { .task = task, .report = &report };
    double cost = 0, saved = 0;
    tare_status status = TARE_NO_MEMORY;
    memset(shares, 0, task->n_models * sizeof *shares);
    r.plan.costly_only = task->costly_only;
    r.plan.shares = shares;
    r.plan.cost = TARE_NEW_ARRAY(&r.plan.arena, double, task->n_models + 1);
    r.plan.saved = TARE_NEW_ARRAY(&r.plan.arena, double, task->n_models + 1);
    if (r.plan.cost && r.plan.saved) status = plan_shared(&r);
    for (size_t i = 0; i < task->n_models && status == TARE_OK; i++) {
        cost += shares[i] ? r.plan.cost[i] : 0;
        saved += shares[i] ? r.plan.saved[i] : 0;
    }
    if (report.unsuited || saved < WORTH * cost) memset(shares, 0, task->n_models * sizeof *shares);
    tare_prefix_cache_plan_free(&r.plan);
    return status;
}

tare_status tare_prefix_cache_run(struct tare_prefix_cache_report *out, const struct tare_prefix_cache_task *task) {
    struct tare_cached_run r = { .task = task, .report = out, .plan = { .costly_only = task->costly_only } };
    tare_status status;
    *out = (struct tare_prefix_cache_report){ 0 };
    pthread_mutex_init(&r.lock, NULL);
    r.kept = tare_calloc(task->n_models + 1, sizeof *r.kept);
    TARE_CHECK(r.kept ? TARE_OK : TARE_NO_MEMORY);
    TARE_CHECK(plan_models(&r));
    if (out->unsuited) goto done;
    TARE_CHECK(tare_prefix_cache_make(&r.first, &r, 0));
    TARE_CHECK(tare_record_edges_of(&r.binding, r.first.signature));
    TARE_CHECK(tare_record_reader_open(&r.reader, task->runner));
    status = run_parts(&r);
done:
    forget_records(&r);
    tare_free(r.records);
    tare_record_reader_close(&r.reader);
    tare_record_edges_free(&r.binding);
    tare_prefix_cache_unmake(&r.first);
    for (size_t i = 0; r.kept && i < task->n_models; i++)
        tare_prefix_cache_unmake(&r.kept[i]);
    tare_free(r.kept);
    tare_prefix_cache_plan_free(&r.plan);
    pthread_mutex_destroy(&r.lock);
    return status;
}
