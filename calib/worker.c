/* Runs a batch in a session and adds what is observed to the statistics, slot by slot. */
#include "calib/worker.h"

#include "base/alloc.h"
#include "calib/coverage.h"
#include "calib/shape_probe.h"
#include "calib/tally.h"

#include <string.h>

void tare_worker_plan_free(struct tare_worker_plan *plan) {
    tare_signature_edges_free(&plan->edges);
    tare_free(plan->layouts);
    tare_free(plan->statistics);
    tare_free(plan->locks);
}

static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    const struct tare_worker *worker = arg;
    const struct tare_observed *observed = worker->plan->observed;
    return tare_observed_find(observed, node, output) >= 0 || tare_observed_counts(observed, node);
}

enum { UNKNOWN = -1 };

/* The values of a counter's terms hold for the tensors of its function until the next ones. */
static void set_counter(struct tare_worker *worker, const struct tare_node *node, const struct tare_tensor *value) {
    const struct tare_observed *observed = worker->plan->observed;
    for (size_t i = 0; i < observed->n_counters; i++)
        for (size_t k = 0; k < observed->counters[i].n_terms; k++) {
            const struct tare_counter_term *term = &observed->counters[i].terms[k];
            if (term->arg == node)
                worker->numbers[i * TARE_COUNTER_TERMS + k] =
                    term->element < value->elements ? tare_tensor_get_i64(value, term->element) : UNKNOWN;
        }
}

/* The current value of a slot's counter; below 0: it has none. */
static int64_t entry_of(const struct tare_worker *worker, size_t slot) {
    const struct tare_observed_counter *counter = &worker->plan->observed->counters[slot];
    const int64_t *numbers = &worker->numbers[slot * TARE_COUNTER_TERMS];
    int64_t entry = counter->offset;
    for (size_t k = 0; k < counter->n_terms; k++) {
        if (numbers[k] < 0 || numbers[k] > INT32_MAX) return UNKNOWN;
        entry += counter->terms[k].factor * numbers[k];
    }
    return counter->n_terms && entry >= 0 && entry < counter->count ? entry : UNKNOWN;
}

static tare_status add(struct tare_worker *worker, size_t slot, const struct tare_tensor *value,
                       enum tare_batch_layout layout) {
    struct tare_statistics *statistics = worker->own ? &worker->own[slot] : worker->plan->statistics[slot];
    pthread_mutex_t *lock = worker->own ? NULL : &worker->plan->locks[slot];
    return tare_statistics_add_shared(statistics, lock, worker->tally, value, worker->places, (int64_t)worker->count,
                                      layout);
}

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct tare_worker *worker = arg;
    ptrdiff_t slot = tare_observed_find(worker->plan->observed, node, output);
    if (slot < 0 && tare_dtype_is_integer(value->dtype)) set_counter(worker, node, value);
    if (slot < 0 || !tare_dtype_is_floating(value->dtype)) return TARE_OK;
    const struct tare_observed_counter *counter = &worker->plan->observed->counters[slot];
    const int64_t entry = entry_of(worker, (size_t)slot);
    if (worker->plan->hessians) return tare_hessians_observe(worker->plan->hessians, node, output, entry, value);
    enum tare_batch_layout layout = TARE_BATCH_SPLIT;
    if (worker->count > 1) {
        if (worker->probe && !tare_shape_probe_layout(worker->probe, (size_t)slot, &value->shape)) return TARE_OK;
        layout = worker->plan->layouts[slot];
    } else if (worker->probe) {
        tare_shape_probe_note(worker->probe, (size_t)slot, &value->shape);
    }
    tare_status status = add(worker, (size_t)slot, value, layout);
    if (status == TARE_OK && entry >= 0)
        status = add(worker, (size_t)(counter->first + entry / counter->step), value, layout);
    return tare_error_prefix(status, "%s '%s' output %zu", node->op, node->name, output);
}

static tare_status make_statistics(struct tare_worker *worker) {
    const size_t n_slots = worker->plan->observed->n_slots;
    worker->own = tare_calloc(n_slots + 1, sizeof *worker->own);
    if (!worker->own) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_slots; i++)
        worker->own[i].per_channel = worker->plan->channels;
    return TARE_OK;
}

tare_status tare_worker_init(struct tare_worker *worker, const struct tare_worker_plan *plan, size_t room, bool alone) {
    const struct tare_observed *observed = plan->observed;
    *worker = (struct tare_worker){ .plan = plan, .room = room };
    if (alone) TARE_TRY(make_statistics(worker));
    worker->tally = tare_tally_new();
    worker->pool = tare_buffer_pool_new();
    worker->reached = tare_calloc(observed->n_functions + 1, sizeof *worker->reached);
    worker->runs = tare_calloc(observed->n_functions + 1, sizeof *worker->runs);
    worker->sides = tare_calloc(observed->n_sides + 1, sizeof *worker->sides);
    worker->side_runs = tare_calloc(observed->n_sides + 1, sizeof *worker->side_runs);
    worker->joined = tare_calloc(plan->edges.n_feeds + 1, sizeof *worker->joined);
    worker->results = tare_calloc(plan->edges.n_outputs + 1, sizeof *worker->results);
    worker->places = tare_calloc(room, sizeof *worker->places);
    worker->numbers = tare_calloc((observed->n_counters + 1) * TARE_COUNTER_TERMS, sizeof *worker->numbers);
    for (size_t i = 0; worker->numbers && i < observed->n_counters * TARE_COUNTER_TERMS; i++)
        worker->numbers[i] = UNKNOWN;
    if (!worker->tally || !worker->pool || !worker->reached || !worker->runs || !worker->sides || !worker->side_runs ||
        !worker->joined || !worker->results || !worker->places || !worker->numbers)
        return TARE_NO_MEMORY;
    TARE_TRY(tare_session_new(&worker->session, plan->model, NULL));
    tare_session_observe(worker->session, observe, accepts, worker);
    return TARE_OK;
}

void tare_worker_free(struct tare_worker *worker) {
    if (!worker->plan) return;
    tare_session_free(worker->session);
    tare_tally_free(worker->tally);
    tare_buffer_pool_free(worker->pool);
    for (size_t i = 0; worker->own && i < worker->plan->observed->n_slots; i++)
        tare_statistics_reset(&worker->own[i]);
    tare_free(worker->own);
    tare_free(worker->reached);
    tare_free(worker->runs);
    tare_free(worker->sides);
    tare_free(worker->side_runs);
    tare_free(worker->joined);
    tare_free(worker->results);
    tare_free(worker->places);
    tare_free(worker->numbers);
    *worker = (struct tare_worker){ 0 };
}

static tare_status run_feeds(struct tare_worker *worker, const struct tare_tensor *feeds) {
    const struct tare_signature_edges *edges = &worker->plan->edges;
    tare_status status = tare_session_run(worker->session, edges->feeds, feeds, edges->n_feeds, edges->fetches,
                                          worker->results, edges->n_outputs, NULL, 0);
    if (worker->plan->loop && status == TARE_OK) status = tare_feedback_take(worker->plan->loop, worker->results);
    for (size_t i = 0; i < edges->n_outputs; i++)
        tare_tensor_reset(&worker->results[i]);
    return status;
}

static void count_sides(struct tare_worker *worker) {
    const struct tare_observed *observed = worker->plan->observed;
    size_t at = 0;
    for (size_t i = 0; i < observed->n_choices; i++) {
        const size_t sides = tare_coverage_side_count(observed->choices[i]);
        for (size_t side = 0; side < sides; side++, at++) {
            const int64_t runs = tare_session_side_runs(worker->session, observed->choices[i], side);
            if (runs > worker->side_runs[at]) worker->sides[at] += (int64_t)worker->count;
            worker->side_runs[at] = runs;
        }
    }
}

/* Every record of the run reached the functions that it entered: where records may differ, they run one by one. */
static void count_functions(struct tare_worker *worker) {
    for (size_t i = 0; i < worker->plan->observed->n_functions; i++) {
        int64_t runs = tare_session_function_runs(worker->session, worker->plan->observed->functions[i]);
        if (runs > worker->runs[i]) worker->reached[i] += (int64_t)worker->count;
        worker->runs[i] = runs;
    }
}

static tare_status run_single(struct tare_worker *worker, const struct tare_batch_sample *sample) {
    struct tare_feedback_loop *loop = worker->plan->loop;
    if (loop) TARE_TRY(tare_feedback_feed(loop, sample->feeds, &sample->record));
    return run_feeds(worker, sample->feeds);
}

tare_status tare_worker_run(struct tare_worker *worker, const struct tare_batch *batch) {
    tare_status status;
    if (worker->count != 0 && worker->count != batch->count) { /* the last records, fewer than the others */
        tare_buffer_pool_trim(worker->pool);
        tare_session_trim(worker->session);
    }
    worker->count = batch->count;
    for (size_t i = 0; i < batch->count; i++) {
        const struct tare_record *record = &batch->samples[i].record;
        worker->places[i] = (struct tare_place){ worker->plan->inputs[record->file], record->number, record->index };
    }
    if (batch->count == 1) {
        status = run_single(worker, &batch->samples[0]);
    } else {
        status = tare_batch_join(worker->joined, batch, worker->pool);
        if (status == TARE_OK) status = run_feeds(worker, worker->joined);
        for (size_t i = 0; i < batch->n_feeds; i++)
            tare_tensor_reset(&worker->joined[i]);
    }
    if (status == TARE_OK) {
        count_functions(worker);
        count_sides(worker);
    }
    return status;
}

tare_status tare_worker_try(struct tare_worker *worker, const struct tare_batch_sample *sample) {
    tare_session_observe(worker->session, NULL, NULL, NULL);
    tare_status status = run_feeds(worker, sample->feeds);
    tare_session_observe(worker->session, observe, accepts, worker);
    return status;
}
