/* Runs a set of models that share most of their computation. The records are processed in parts. For each part, model
 * after model runs only from the edges at which it differs from the models before it (eval/prefix_cache_plan.h); the
 * values of shared edges are kept in memory, batch by batch, and fed to later models. Invariant: outputs have the same
 * bits as those of complete runs, because a kept value is the value that the model would compute. */
#include "eval/prefix_cache.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "eval/comparison.h"
#include "eval/model_inputs.h"
#include "eval/prefix_cache_plan.h"
#include "eval/record_store.h"
#include "eval/runner.h"
#include "eval/joined_run.h"
#include "graph/inline.h"
#include "graph/op.h"

#include <pthread.h>
#include <string.h>

enum { MOST_RECORDS = 65536 }; /* of a part */

/* A model of the task with its calls inlined. */
struct made {
    struct tare_graph_model *model;
    const struct tare_signature *signature;
    struct tare_record_edges edges;
};

struct cached_run {
    const struct tare_prefix_cache_task *task;
    struct tare_prefix_cache_report *report;
    struct tare_prefix_cache_plan plan;
    struct made *kept;    /* by model; the models that fit into memory */
    int64_t models_bytes; /* of kept models */
    struct tare_record_reader reader;
    struct tare_record_edges binding;  /* of the first model, whose signature binds the records */
    struct made first;                 /* the model that `binding` refers to */
    struct tare_bound_record *records; /* records of this part */
    size_t count, capacity, part;      /* part: most records of a part */
    size_t batch;                      /* batch size */
    bool at_end;
    int64_t bytes;        /* of kept values, now */
    pthread_mutex_t lock; /* guards `bytes` and the kept values while batches run */
};

/* ---- models ---- */

static void unmake(struct made *made) {
    tare_record_edges_free(&made->edges);
    tare_model_free(made->model);
    *made = (struct made){ 0 };
}

static tare_status make(struct made *out, struct cached_run *r, size_t number) {
    tare_status status;
    *out = (struct made){ 0 };
    TARE_TRY(r->task->make(r->task->arg, &out->model, number));
    status = tare_model_inline_calls(out->model);
    if (status == TARE_UNSUPPORTED) {
        r->report->unsuited = true;
        tare_error_clear();
        unmake(out);
        return TARE_OK;
    }
    if (status != TARE_OK) goto done;
    TARE_CHECK(tare_pick_signature(&out->signature, out->model, r->task->signature));
    TARE_CHECK(tare_record_edges_of(&out->edges, out->signature));
done:
    if (status != TARE_OK) unmake(out);
    return status;
}

/* Plans every model once; the models that fit into memory are kept for the runs. */
static tare_status plan_models(struct cached_run *r) {
    const int64_t room = r->task->memory / 4;
    for (size_t i = 0; i < r->task->n_models && !r->report->unsuited; i++) {
        struct made made;
        int64_t bytes;
        tare_status status;
        TARE_TRY(make(&made, r, i));
        if (r->report->unsuited) return TARE_OK;
        status = tare_prefix_cache_plan_add(&r->plan, made.model, &made.edges, i);
        if (status == TARE_OK) status = tare_model_weight_bytes(&bytes, made.model);
        if (status == TARE_OK && r->models_bytes + bytes <= room) {
            r->models_bytes += bytes;
            r->kept[i] = made;
        } else {
            unmake(&made);
        }
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* ---- one batch of one model ---- */

struct run {
    struct cached_run *r;
    const struct made *made;
    const struct tare_prefix_cache_route *route;
    struct tare_session **sessions;
    int threads;
    size_t n_batches;
};

/* Feeds and fetches of one run. */
struct exchange {
    struct tare_edge *edges;     /* feeds: kept values, then inputs; fetches: outputs, then values to keep */
    struct tare_tensor *tensors; /* their tensors */
    size_t n_feeds, n_fetches;
    int64_t rows;
};

static bool runs_together(const struct cached_run *r, size_t count) {
    return r->batch > 1 && count > 0;
}

static tare_status add_inputs(struct exchange *x, const struct run *run, const struct tare_bound_record *records,
                              size_t count) {
    const struct tare_record_edges *edges = &run->made->edges;
    struct tare_tensor *to = x->tensors + x->n_feeds;
    bool fits;
    for (size_t i = 0; i < edges->n_feeds; i++)
        x->edges[x->n_feeds + i] = edges->feeds[i];
    x->n_feeds += edges->n_feeds;
    if (runs_together(run->r, count)) {
        TARE_TRY(tare_records_join(to, &x->rows, &fits, records, count, edges));
        return fits ? TARE_OK : TARE_FAIL(TARE_INTERNAL, "records that fitted together do so no more");
    }
    for (size_t i = 0; i < edges->n_feeds; i++)
        if (records->values[i].dtype) tare_tensor_share(&to[i], &records->values[i]);
    return TARE_OK;
}

static tare_status set_up(struct exchange *x, const struct run *run, size_t batch,
                          const struct tare_bound_record *records, size_t count) {
    const struct tare_prefix_cache_route *route = run->route;
    const struct tare_record_edges *edges = &run->made->edges;
    const size_t room = route->n_fed + edges->n_feeds + edges->n_outputs + route->n_left + 1;
    x->edges = tare_calloc(room, sizeof *x->edges);
    x->tensors = tare_calloc(room, sizeof *x->tensors);
    if (!x->edges || !x->tensors) return TARE_NO_MEMORY;
    for (size_t i = 0; i < route->n_fed; i++) {
        x->edges[i] = route->fed[i];
        tare_tensor_share(&x->tensors[i], &route->fed_values[i]->tensors[batch]);
    }
    x->n_feeds = route->n_fed;
    if (route->needs_inputs) TARE_TRY(add_inputs(x, run, records, count));
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
static tare_status keep(struct run *run, size_t batch, const struct tare_tensor *left) {
    struct cached_run *r = run->r;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < run->route->n_left && status == TARE_OK; i++) {
        struct tare_prefix_cache_value *value = run->route->left_values[i];
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

static size_t batch_size(const struct cached_run *r, size_t batch) {
    const size_t first = batch * r->batch;
    return r->count - first < r->batch ? r->count - first : r->batch;
}

static tare_status hand_on(struct run *run, size_t batch, const struct exchange *x) {
    struct cached_run *r = run->r;
    struct tare_bound_record *records = &r->records[batch * r->batch];
    const struct tare_record_edges *edges = &run->made->edges;
    const struct tare_tensor *outputs = x->tensors + x->n_feeds;
    const size_t count = batch_size(r, batch);
    TARE_TRY(keep(run, batch, outputs + edges->n_outputs));
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

static tare_status run_batch(struct run *run, struct tare_session *session, size_t batch) {
    struct cached_run *r = run->r;
    const struct tare_bound_record *records = &r->records[batch * r->batch];
    const size_t count = batch_size(r, batch);
    struct exchange x = { 0 };
    tare_status status = set_up(&x, run, batch, records, count);
    if (status == TARE_OK)
        status = tare_session_run(session, x.edges, x.tensors, x.n_feeds, x.edges + x.n_feeds, x.tensors + x.n_feeds,
                                  x.n_fetches, NULL, 0);
    if (status == TARE_OK && runs_together(r, count) &&
        !tare_records_can_split(x.tensors + x.n_feeds, rows_of(records, count), &run->made->edges)) {
        pthread_mutex_lock(&r->lock);
        r->report->unsuited = true;
        pthread_mutex_unlock(&r->lock);
    } else if (status == TARE_OK) {
        status = hand_on(run, batch, &x);
    }
    tear_down(&x);
    return tare_records_locate(status, r->reader.files, &records[0].where, &records[count - 1].where);
}

/* ---- one model over a part of the records ---- */

static tare_status work(void *arg, int worker) {
    struct run *run = arg;
    const struct tare_runner_options *options = run->r->task->runner;
    for (size_t b = (size_t)worker; b < run->n_batches; b += (size_t)run->threads) {
        if (options->interrupted && *options->interrupted) return TARE_FAIL(TARE_INTERRUPTED, "interrupted");
        TARE_TRY(run_batch(run, run->sessions[worker], b));
    }
    return TARE_OK;
}

static void reset_outputs(struct cached_run *r) {
    for (size_t i = 0; i < r->count; i++)
        tare_tensors_reset(r->records[i].outputs, r->binding.n_outputs);
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
static void drop_values(struct cached_run *r, size_t number) {
    for (size_t i = 0; i < r->plan.n_values; i++) {
        struct tare_prefix_cache_value *value = r->plan.values[i];
        if (!value->tensors || (value->last_user > number && !value->refused)) continue;
        r->bytes -= value->bytes;
        tare_prefix_cache_value_drop(value);
    }
}

static tare_status run_sessions(struct run *run) {
    struct cached_run *r = run->r;
    tare_status status;
    TARE_TRY(tare_sessions_new(&run->sessions, run->threads, run->made->model, NULL));
    status = tare_threads_run(run->threads, work, run);
    tare_sessions_free(run->sessions, run->threads);
    if (r->bytes > r->report->kept_bytes) r->report->kept_bytes = r->bytes;
    return status;
}

static tare_status run_model(struct cached_run *r, const struct made *made, size_t number) {
    struct tare_prefix_cache_route route;
    struct run run = { .r = r, .made = made, .route = &route, .n_batches = (r->count + r->batch - 1) / r->batch };
    const double start = tare_clock_seconds();
    tare_status status;
    run.threads = r->task->threads > 1 ? r->task->threads : 1;
    if ((size_t)run.threads > run.n_batches) run.threads = (int)run.n_batches;
    TARE_CHECK(tare_prefix_cache_route_of(&route, &r->plan, made->model, &made->edges, number));
    TARE_CHECK(make_room(&route, run.n_batches));
    TARE_CHECK(run_sessions(&run));
    if (r->task->seconds) r->task->seconds[number] += tare_clock_seconds() - start;
    r->report->nodes += route.nodes * (int64_t)r->count;
    r->report->whole_nodes += route.whole * (int64_t)r->count;
    for (size_t i = 0; i < r->count && !r->report->unsuited && status == TARE_OK; i++)
        status = r->task->record(r->task->arg, number, &r->records[i].sample, r->records[i].outputs);
done:
    reset_outputs(r);
    drop_values(r, number);
    tare_prefix_cache_route_free(&route);
    return status;
}

static tare_status run_part(struct cached_run *r) {
    for (size_t i = 0; i < r->task->n_models && !r->report->unsuited; i++) {
        struct made made = r->kept[i];
        tare_status status = TARE_OK;
        if (!made.model) status = make(&made, r, i);
        if (status == TARE_OK) status = run_model(r, &made, i);
        if (!r->kept[i].model) unmake(&made);
        TARE_TRY(status);
    }
    r->report->parts++;
    return TARE_OK;
}

/* ---- records ---- */

static tare_status read_records(struct cached_run *r, size_t expected) {
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

static void forget_records(struct cached_run *r) {
    for (size_t i = 0; i < r->count; i++)
        tare_record_reset(&r->records[i], &r->binding);
    r->count = 0;
}

static int64_t record_bytes(const struct cached_run *r) {
    int64_t bytes = 0;
    for (size_t i = 0; i < r->binding.n_feeds; i++)
        bytes += (int64_t)tare_tensor_bytes(&r->records[0].values[i]);
    return bytes;
}

/* Trial run of the first model on the first records: finds out whether batches can be split, and how many bytes the
 * kept values of a record take. */
static tare_status probe(struct cached_run *r, const struct made *made) {
    struct tare_prefix_cache_route route;
    struct run run = { .r = r, .made = made, .route = &route, .threads = 1, .n_batches = 1 };
    const size_t all = r->count;
    int64_t bytes;
    tare_status status;
    r->count = all < r->batch ? all : r->batch;
    TARE_CHECK(tare_prefix_cache_route_of(&route, &r->plan, made->model, &made->edges, 0));
    TARE_CHECK(make_room(&route, 1));
    TARE_CHECK(run_sessions(&run));
    bytes = 2 * (r->bytes / (int64_t)r->count + record_bytes(r)); /* the same again for values that later models keep */
    r->part = (size_t)((r->task->memory - r->models_bytes) / (bytes > 0 ? bytes : 1));
    if (r->part < r->batch * (size_t)(r->task->threads > 1 ? r->task->threads : 1))
        r->part = r->batch * (size_t)(r->task->threads > 1 ? r->task->threads : 1);
    if (r->part > MOST_RECORDS) r->part = MOST_RECORDS;
done:
    reset_outputs(r);
    drop_values(r, SIZE_MAX);
    tare_prefix_cache_route_free(&route);
    r->count = all;
    return status;
}

/* ---- batches ----
 *
 * Every model must allow batches, since models share values of whole batches. The check takes eight runs of a record,
 * so it is omitted for a model whose ops have all been checked: one with at most as many nodes of each op that may mix
 * the rows of a batch as a model checked before. Of the models of a sensitivity measurement these are all but a few. */

struct op_count {
    const char *op;
    size_t here, checked; /* nodes of this model; the most in a model that allows batches */
};

struct batch_check {
    struct cached_run *r;
    size_t *batch;
    struct tare_arena arena;
    struct tare_map counts;   /* op -> struct op_count */
    struct op_count **listed; /* all of them */
    size_t n_listed, capacity;
    bool allowed, refused; /* by a model */
};

static tare_status count_node(struct batch_check *check, const struct tare_node *node) {
    struct op_count *count = tare_map_get(&check->counts, node->op);
    if (node->dead || (node->def && node->def->row && node->def->row->flags & TARE_OP_ELEMENTWISE)) return TARE_OK;
    if (!count) {
        count = TARE_NEW(&check->arena, struct op_count);
        if (!count || !TARE_GROW(check->listed, check->n_listed, check->capacity)) return TARE_NO_MEMORY;
        count->op = tare_arena_strdup(&check->arena, node->op);
        if (!count->op || !tare_map_set(&check->counts, count->op, count)) return TARE_NO_MEMORY;
        check->listed[check->n_listed++] = count;
    }
    count->here++;
    return TARE_OK;
}

static tare_status count_nodes(struct batch_check *check, const struct tare_graph_model *model) {
    for (size_t i = 0; i < check->n_listed; i++)
        check->listed[i]->here = 0;
    for (size_t g = 0; g <= model->n_functions; g++) {
        const struct tare_graph *graph = g < model->n_functions ? model->functions[g] : model->main;
        for (size_t i = 0; i < graph->n_nodes; i++)
            TARE_TRY(count_node(check, graph->nodes[i]));
    }
    return TARE_OK;
}

static bool needs_check(const struct batch_check *check) {
    for (size_t i = 0; i < check->n_listed; i++)
        if (check->listed[i]->here > check->listed[i]->checked) return true;
    return false;
}

static void note_checked(struct batch_check *check) {
    for (size_t i = 0; i < check->n_listed; i++)
        if (check->listed[i]->here > check->listed[i]->checked) check->listed[i]->checked = check->listed[i]->here;
}

/* The first model also determines the batch size. */
static tare_status check_model(struct batch_check *check, const struct made *made, size_t number) {
    struct cached_run *r = check->r;
    enum tare_batch_verdict verdict = TARE_BATCH_UNDECIDED;
    struct tare_session **sessions;
    const char *one_by_one;
    tare_status status;
    TARE_TRY(tare_batch_check_graph(&one_by_one, made->model, made->signature));
    if (!one_by_one) {
        TARE_TRY(tare_sessions_new(&sessions, 1, made->model, NULL));
        if (number == 0) {
            status = tare_records_choose_batch(check->batch, *check->batch, sessions[0], &made->edges, r->records);
            reset_outputs(r);
        } else {
            status = TARE_OK;
        }
        if (status == TARE_OK && *check->batch > 1)
            status = tare_records_check_pair(&verdict, sessions[0], &made->edges, NULL, r->records);
        tare_sessions_free(sessions, 1);
        TARE_TRY(tare_records_locate(status, r->reader.files, &r->records[0].where, &r->records[1].where));
    }
    if (verdict == TARE_BATCH_INDEPENDENT) note_checked(check);
    check->allowed |= verdict == TARE_BATCH_INDEPENDENT;
    check->refused |= verdict != TARE_BATCH_INDEPENDENT;
    if (r->task->dependent) r->task->dependent[number] = verdict != TARE_BATCH_INDEPENDENT;
    return TARE_OK;
}

static tare_status check_models(struct batch_check *check) {
    struct cached_run *r = check->r;
    for (size_t i = 0; i<r->task->n_models && * check->batch> 1 && (!check->refused || r->task->dependent); i++) {
        struct made made = r->kept[i];
        tare_status status = TARE_OK;
        if (!made.model) status = make(&made, r, i);
        if (status == TARE_OK) status = count_nodes(check, made.model);
        if (status == TARE_OK && needs_check(check)) status = check_model(check, &made, i);
        if (!r->kept[i].model) unmake(&made);
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* Sets *batch to 1 if the outputs of a model for a record depend on the other records of a batch. */
static tare_status check_batch(struct cached_run *r, size_t *batch) {
    struct batch_check check = { .r = r, .batch = batch };
    tare_status status = TARE_OK;
    if (*batch > 1 && r->count > 1 && r->binding.n_outputs > 0)
        status = check_models(&check);
    else
        check.refused = true;
    if (check.refused && check.allowed && r->task->dependent) r->report->unsuited = true;
    if (check.refused) *batch = 1;
    tare_map_free(&check.counts);
    tare_free(check.listed);
    tare_arena_free(&check.arena);
    return status;
}

/* Records of different shapes run one by one. */
static tare_status choose_batch(struct cached_run *r, size_t expected) {
    struct tare_tensor *joined = tare_calloc(r->binding.n_feeds + 1, sizeof *joined);
    bool fits = expected > 1;
    tare_status status = joined ? TARE_OK : TARE_NO_MEMORY;
    r->batch = expected;
    for (size_t first = 0; first < r->count && fits && status == TARE_OK; first += expected) {
        const size_t count = r->count - first < expected ? r->count - first : expected;
        int64_t rows;
        status = tare_records_join(joined, &rows, &fits, &r->records[first], count, &r->binding);
        tare_tensors_reset(joined, r->binding.n_feeds);
    }
    if (!fits) r->batch = 1;
    tare_free(joined);
    return status;
}

static tare_status run_parts(struct cached_run *r) {
    size_t expected = tare_runner_most_batch(r->task->runner, r->task->threads);
    TARE_TRY(read_records(r, expected));
    if (!r->count) return TARE_OK;
    TARE_TRY(check_batch(r, &expected));
    if (r->report->unsuited) return TARE_OK;
    TARE_TRY(choose_batch(r, expected));
    TARE_TRY(probe(r, &r->first));
    if (r->report->unsuited && r->batch > 1) { /* the outputs cannot be split by records */
        r->report->unsuited = false;
        r->batch = expected = 1;
        TARE_TRY(probe(r, &r->first));
    }
    while (r->count && !r->report->unsuited) {
        TARE_TRY(read_records(r, r->part));
        TARE_TRY(choose_batch(r, expected));
        TARE_TRY(run_part(r));
        forget_records(r);
        TARE_TRY(read_records(r, 1));
    }
    return TARE_OK;
}

/* ---- all of it ---- */

static tare_status plan_shared(struct cached_run *r) {
    for (size_t i = 0; i < r->task->n_models && !r->report->unsuited; i++) {
        struct made made;
        tare_status status = make(&made, r, i);
        if (status == TARE_OK && !r->report->unsuited)
            status = tare_prefix_cache_plan_add(&r->plan, made.model, &made.edges, i);
        unmake(&made);
        TARE_TRY(status);
    }
    return TARE_OK;
}

tare_status tare_prefix_cache_find_shared(bool *shares, const struct tare_prefix_cache_task *task) {
    static const double WORTH = 0.1;
    struct tare_prefix_cache_report report = { 0 };
    struct cached_run r = { .task = task, .report = &report };
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
    struct cached_run r = { .task = task, .report = out, .plan = { .costly_only = task->costly_only } };
    tare_status status;
    *out = (struct tare_prefix_cache_report){ 0 };
    pthread_mutex_init(&r.lock, NULL);
    r.kept = tare_calloc(task->n_models + 1, sizeof *r.kept);
    TARE_CHECK(r.kept ? TARE_OK : TARE_NO_MEMORY);
    TARE_CHECK(plan_models(&r));
    if (out->unsuited) goto done;
    TARE_CHECK(make(&r.first, &r, 0));
    TARE_CHECK(tare_record_edges_of(&r.binding, r.first.signature));
    TARE_CHECK(tare_record_reader_open(&r.reader, task->runner));
    status = run_parts(&r);
done:
    forget_records(&r);
    tare_free(r.records);
    tare_record_reader_close(&r.reader);
    tare_record_edges_free(&r.binding);
    unmake(&r.first);
    for (size_t i = 0; r.kept && i < task->n_models; i++)
        unmake(&r.kept[i]);
    tare_free(r.kept);
    tare_prefix_cache_plan_free(&r.plan);
    pthread_mutex_destroy(&r.lock);
    return status;
}
