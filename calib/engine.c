/* The calibration run: workers take samples under one lock, and all add to the calibration's statistics, so memory does
 * not depend on the number of workers and records. The workers are paused while the state is saved. */
#include "calib/engine.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/output_lock.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "calib/feed.h"
#include "calib/format/file.h"
#include "calib/probe.h"
#include "interpreter/inference/model_shapes.h"
#include "interpreter/batch_check.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static const double LEAST_PAUSE = 5, MOST_PAUSE = 300, PAUSE_PER_SAVE = 100;
/* How long a cancelled run may take to complete its records, which a resumed run would have to repeat. */
static const int64_t PATIENCE_NS = 300000000;

struct engine {
    struct tare_calibration *calibration;
    const struct tare_sample_source *source;
    const struct tare_calibration_options *options;
    struct tare_observed observed;
    struct tare_worker_plan plan;
    int32_t *inputs;                 /* source file -> input */
    struct tare_digest_set *digests; /* of the samples, in the calibration */
    struct tare_feeder feeder;
    struct tare_worker *workers;
    int threads;
    size_t room; /* records in one run */
    bool stateful;
    const char *state_path; /* NULL: the state is not saved */

    pthread_mutex_t lock; /* guards all fields below, the feeder and the calibration */
    /* The barrier at which workers wait while the state is saved. */
    pthread_cond_t released;
    int active, arrived; /* workers that still run; of those, how many wait at the barrier */
    int64_t generation;  /* number of saves made; a change releases the waiting workers */
    bool saving, stop, interrupted;
    int64_t saved_records; /* in the state file; -1: this run has saved none */
    double save_at, save_began;
    int64_t save_tried_records; /* of records, when the state was last saved, or could not be */
    int64_t records;
    double run_seconds;
    /* The failure of the first record among those that failed. */
    tare_status failure;
    char *failure_text;
    int64_t failure_index;
};

/* ---- saving; all workers are paused ---- */

static void collect_sides(struct engine *e, struct tare_worker *worker) {
    int64_t *records = worker->sides;
    for (size_t i = 0; i < e->observed.n_choices; i++) {
        const struct tare_node *node = e->observed.choices[i];
        const size_t sides = tare_coverage_side_count(node);
        for (size_t side = 0; side < sides; side++, records++) {
            tare_coverage_count(&e->calibration->coverage, node->graph->name, node->name, (int32_t)side, *records);
            *records = 0;
        }
    }
}

static tare_status collect(struct engine *e) {
    tare_digest_set_finish(e->digests);
    for (int w = 0; w < e->threads; w++) {
        struct tare_worker *worker = &e->workers[w];
        if (!worker->plan) continue;
        for (size_t i = 0; i < e->observed.n_functions; i++) {
            struct tare_calibration_function *function;
            TARE_TRY(tare_calibration_add_function(e->calibration, e->observed.functions[i]->name, &function));
            function->records += worker->reached[i];
            worker->reached[i] = 0;
        }
        collect_sides(e, worker);
    }
    return TARE_OK;
}

/* The state is also saved when the run is cancelled, but never after an allocation failed. */
static tare_status save_state(struct engine *e) {
    struct tare_control *control;
    tare_status status;
    if (tare_control_verify() == TARE_NO_MEMORY) return TARE_NO_MEMORY;
    control = tare_control_suspend();
    status = tare_calibration_save_state(e->calibration, e->state_path, e->options->task);
    tare_control_resume(control);
    if (status == TARE_OK) e->saved_records = tare_calibration_records(e->calibration);
    return status;
}

/* At the end of an interrupted run. */
static tare_status save(struct engine *e) {
    TARE_TRY(collect(e));
    return e->state_path ? save_state(e) : TARE_OK;
}

/* During the run: a full disk must not end it. */
static tare_status autosave(struct engine *e) {
    tare_status status;
    TARE_TRY(collect(e));
    status = save_state(e);
    if (status == TARE_OK || status == TARE_NO_MEMORY) return status;
    tare_warn(e->options->log, "%s (calibration continues; what was saved before is kept, and saving is tried again)",
              tare_error_text());
    tare_error_clear();
    return TARE_OK;
}

static void keep_failure(struct engine *e, tare_status status, int64_t index) {
    if (status == TARE_OK || (e->failure != TARE_OK && index >= e->failure_index)) return;
    tare_free(e->failure_text);
    e->failure_text = tare_strdup(tare_error_text());
    e->failure = status;
    e->failure_index = index;
}

double tare_calibration_pause(double autosave_seconds, double took) {
    if (autosave_seconds > 0) return autosave_seconds;
    return fmin(fmax(LEAST_PAUSE, PAUSE_PER_SAVE * took), MOST_PAUSE);
}

static void plan_save(struct engine *e, double took) {
    e->save_at = tare_clock_seconds() + tare_calibration_pause(e->options->autosave_seconds, took);
}

/* Waits at the barrier; the last worker to arrive saves the state. Called with the lock held. */
static void join_save(struct engine *e) {
    const int64_t generation = e->generation;
    e->arrived++;
    while (e->saving && e->generation == generation && e->arrived < e->active)
        pthread_cond_wait(&e->released, &e->lock);
    if (e->saving && e->generation == generation) {
        tare_status status = e->failure == TARE_OK ? autosave(e) : TARE_OK;
        keep_failure(e, status, INT64_MAX);
        e->stop = e->stop || status != TARE_OK;
        e->saving = false;
        e->save_tried_records = e->records;
        e->generation++;
        plan_save(e, tare_clock_seconds() - e->save_began);
        pthread_cond_broadcast(&e->released);
    }
    e->arrived--;
}

/* ---- a worker's life ---- */

/* Fills the batch, or leaves it empty at the end. With the lock. */
static void fetch(struct engine *e, struct tare_batch *batch) {
    if (tare_flag_is_set(e->options->interrupted)) e->stop = e->interrupted = true;
    const bool unsaved = e->state_path && e->records > e->save_tried_records;
    if (!e->stop && !e->saving && unsaved && tare_clock_seconds() >= e->save_at) {
        e->saving = true;
        e->save_began = tare_clock_seconds();
    }
    if (e->saving) join_save(e);
    if (e->stop) return;
    int64_t index;
    tare_status status = tare_feeder_fill(&e->feeder, batch, e->room, &index);
    keep_failure(e, status, index);
    e->stop = e->stop || status != TARE_OK;
    if (status != TARE_OK) tare_batch_clear(batch);
}

static tare_status run_batch(struct engine *e, struct tare_worker *worker, struct tare_batch *batch, size_t *at) {
    *at = 0;
    tare_status status = tare_worker_run(worker, batch);
    if (status == TARE_OK || status == TARE_INTERRUPTED) return status;
    char *text = tare_strdup(tare_error_text());
    for (size_t i = 0; batch->count > 1 && i < batch->count; i++) {
        tare_status single = tare_worker_try(worker, &batch->samples[i]);
        if (single == TARE_OK) continue;
        tare_free(text);
        *at = i;
        return tare_feeder_name(&e->feeder, single, &batch->samples[i].record);
    }
    tare_error_set(text ? text : "out of memory");
    tare_free(text);
    return tare_feeder_name(&e->feeder, status, &batch->samples[0].record);
}

/* With the lock. */
static tare_status add_records(struct engine *e, const struct tare_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        const struct tare_record *record = &batch->samples[i].record;
        struct tare_record_set *set = &e->calibration->inputs[e->inputs[record->file]].records;
        TARE_TRY(tare_feeder_name(&e->feeder, tare_record_set_add(set, record->number, record->number + 1), record));
        TARE_TRY(tare_digest_set_add(e->digests, batch->samples[i].digest));
    }
    e->records += (int64_t)batch->count;
    if (e->options->progress) e->options->progress(e->options->progress_arg, e->records);
    return TARE_OK;
}

static void work_with(struct engine *e, struct tare_worker *worker, struct tare_batch *batch) {
    for (;;) {
        tare_batch_clear(batch);
        pthread_mutex_lock(&e->lock);
        fetch(e, batch);
        pthread_mutex_unlock(&e->lock);
        if (batch->count == 0) return;
        size_t at;
        for (size_t i = 0; i < batch->count; i++)
            batch->samples[i].digest = tare_sample_digest(batch->samples[i].feeds, e->plan.edges.n_feeds);
        double start = tare_clock_seconds();
        tare_status status = run_batch(e, worker, batch, &at);
        double seconds = tare_clock_seconds() - start;
        pthread_mutex_lock(&e->lock);
        e->run_seconds += seconds;
        if (status == TARE_OK) status = add_records(e, batch);
        keep_failure(e, status, batch->samples[at].record.index);
        e->stop = e->stop || status != TARE_OK;
        pthread_mutex_unlock(&e->lock);
    }
}

static tare_status work(void *arg, int number) {
    struct engine *e = arg;
    struct tare_worker *worker = &e->workers[number];
    struct tare_batch batch = { 0 };
    tare_control_set_patience(PATIENCE_NS);
    tare_status status = tare_batch_init(&batch, e->room, e->plan.edges.n_feeds);
    if (status == TARE_OK) status = tare_worker_init(worker, &e->plan, e->room, false);
    if (status == TARE_OK) work_with(e, worker, &batch);
    pthread_mutex_lock(&e->lock);
    keep_failure(e, status, INT64_MAX);
    e->stop = e->stop || status != TARE_OK;
    e->active--;
    pthread_cond_broadcast(&e->released); /* a worker at the barrier may now be the last to arrive */
    pthread_mutex_unlock(&e->lock);
    tare_batch_free(&batch);
    tare_control_set_patience(0);
    return TARE_OK;
}

/* ---- setting up ---- */

static tare_status add_inputs(struct engine *e, const char *signature) {
    const struct tare_sample_source *source = e->source;
    e->inputs = tare_calloc(source->n_files + 1, sizeof *e->inputs);
    if (!e->inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < source->n_files; i++)
        TARE_TRY(tare_calibration_add_input(e->calibration, signature, source->files[i], NULL));
    for (size_t i = 0; i < source->n_files; i++)
        e->inputs[i] = tare_calibration_find_input(e->calibration, signature, source->files[i]);
    e->plan.inputs = e->inputs;
    return tare_calibration_add_digests(e->calibration, signature, &e->digests);
}

static tare_status add_tensors(struct engine *e) {
    e->plan.statistics = tare_calloc(e->observed.n_slots + 1, sizeof *e->plan.statistics);
    e->plan.locks = tare_calloc(e->observed.n_slots + 1, sizeof *e->plan.locks);
    for (size_t i = 0; e->plan.locks && i < e->observed.n_slots; i++)
        pthread_mutex_init(&e->plan.locks[i], NULL);
    if (!e->plan.statistics || !e->plan.locks) return TARE_NO_MEMORY;
    for (size_t i = 0; i < e->observed.n_slots; i++) {
        const struct tare_observed_slot *slot = &e->observed.slots[i];
        struct tare_calibration_tensor *tensor;
        TARE_TRY(tare_calibration_add_entry(e->calibration, slot->node->graph->name, slot->node->name,
                                            (int)slot->output, slot->entry, &tensor));
        e->plan.statistics[i] = &tensor->statistics;
    }
    for (size_t i = 0; i < e->observed.n_functions; i++)
        TARE_TRY(tare_calibration_add_function(e->calibration, e->observed.functions[i]->name, NULL));
    for (size_t i = 0; i < e->observed.n_choices; i++)
        TARE_TRY(tare_coverage_add_node(&e->calibration->coverage, e->observed.choices[i]));
    return TARE_OK;
}

/* Values of a tensor that amortize the fixed cost per run of adding it to the statistics. */
enum { ENOUGH_VALUES = 1 << 18 };

static size_t batch_that_pays(const struct engine *e) {
    enum { MOST = 32 };
    if (e->plan.most_elements <= 0) return 1;
    const int64_t batch = ENOUGH_VALUES / e->plan.most_elements;
    return batch < 1 ? 1 : batch > MOST ? MOST : (size_t)batch;
}

/* Values of a record of a tensor, at least ENOUGH_VALUES if they are as many; 0: not known. */
static int64_t values_of(struct tare_shape shape) {
    int64_t values = 1;
    for (int i = 0; i < shape.rank && values < ENOUGH_VALUES; i++) {
        const int64_t size = i == 0 && shape.dims[0] < 0 ? 1 : shape.dims[i];
        if (size <= 0 || !tare_mul_i64(&values, values, size)) return 0;
    }
    return values;
}

/* *found: an inferred shape has so many values for each record that a batch of two does not pay; then no records need
 * to be tried together. */
static tare_status find_large_tensor(bool *found, const struct engine *e) {
    struct tare_model_shapes *shapes = NULL;
    *found = false;
    TARE_TRY(tare_error_dismiss(tare_model_shapes_new(&shapes, e->plan.model)));
    for (size_t i = 0; shapes && i < e->observed.n_slots && !*found; i++) {
        const struct tare_observed_slot *slot = &e->observed.slots[i];
        const struct tare_edge edge = { .node = (struct tare_node *)(uintptr_t)slot->node, .index = (int)slot->output };
        *found = values_of(tare_model_shape(shapes, edge)) > ENOUGH_VALUES / 2;
    }
    tare_model_shapes_free(shapes);
    return TARE_OK;
}

/* Number of records that may run as one batch; *reason if it is fewer than requested. */
static tare_status choose_batch(struct engine *e, const struct tare_signature *signature, const char **reason) {
    e->room = 1;
    *reason = NULL;
    if (e->options->batch == 1 || e->options->hessians) return TARE_OK;
    if (e->plan.loop) *reason = "they are steps of sequences (--feedback)";
    if (e->plan.loop) return TARE_OK;
    TARE_TRY(tare_batch_check_graph(reason, e->plan.model, signature));
    bool is_large = false;
    if (!*reason && e->options->batch == 0) TARE_TRY(find_large_tensor(&is_large, e));
    if (*reason || is_large) return TARE_OK;
    const struct tare_batch_sample *samples[2];
    enum tare_batch_verdict verdict;
    TARE_TRY(tare_feeder_peek(&e->feeder, samples));
    if (!samples[0]) return TARE_OK;
    TARE_TRY(tare_probe_run(&verdict, &e->plan, samples));
    *reason = tare_batch_check_reason(verdict);
    if (!*reason) e->room = e->options->batch > 0 ? (size_t)e->options->batch : batch_that_pays(e);
    return TARE_OK;
}

/* If outputs depend on earlier records, all records must run, in their order. */
static tare_status check_state(struct engine *e, const struct tare_graph_model *model,
                               const struct tare_signature *signature) {
    TARE_TRY(tare_session_state_ops(&e->stateful, model, signature, NULL));
    e->stateful |= e->plan.loop != NULL;
    e->state_path = e->stateful ? NULL : e->options->state_path;
    for (size_t i = 0; i < e->source->n_files && e->stateful; i++) {
        if (e->calibration->inputs[e->inputs[i]].records.count > 0)
            return TARE_FAIL(TARE_UNSUPPORTED,
                             "the model keeps state from record to record, which is lost: records of "
                             "'%s' are counted already",
                             e->source->files[i]);
    }
    return TARE_OK;
}

static tare_status prepare(struct engine *e, const struct tare_graph_model *model,
                           const struct tare_signature *signature, const char **reason) {
    e->plan = (struct tare_worker_plan){
        .model = model, .observed = &e->observed, .channels = e->calibration->channels, .hessians = e->options->hessians
    };
    TARE_TRY(
        tare_observed_make(&e->observed, signature, e->options->accepts, e->options->counter, e->options->accepts_arg));
    TARE_TRY(tare_signature_edges_of(&e->plan.edges, signature));
    TARE_TRY(add_inputs(e, signature->key));
    TARE_TRY(add_tensors(e));
    e->feeder = (struct tare_feeder){ .source = e->source,
                                      .n_feeds = e->plan.edges.n_feeds,
                                      .calibration = e->calibration,
                                      .inputs = e->inputs,
                                      .limit = e->options->limit };
    tare_feeder_begin(&e->feeder);
    if (tare_feedback_is_given(e->options->feedback))
        TARE_TRY(tare_feedback_loop_new(&e->plan.loop, e->options->feedback, signature));
    TARE_TRY(check_state(e, model, signature));
    TARE_TRY(choose_batch(e, signature, reason));
    e->threads = e->options->threads > 0 ? e->options->threads : tare_cpu_count();
    if (e->stateful) e->threads = 1;
    e->active = e->threads;
    e->workers = tare_calloc((size_t)e->threads, sizeof *e->workers);
    plan_save(e, 0);
    return e->workers ? TARE_OK : TARE_NO_MEMORY;
}

static void clean_up(struct engine *e) {
    for (int w = 0; e->workers && w < e->threads; w++)
        tare_worker_free(&e->workers[w]);
    tare_free(e->workers);
    tare_feeder_end(&e->feeder);
    tare_feedback_loop_free(e->plan.loop);
    for (size_t i = 0; e->plan.locks && i < e->observed.n_slots; i++)
        pthread_mutex_destroy(&e->plan.locks[i]);
    tare_worker_plan_free(&e->plan);
    tare_observed_free(&e->observed);
    tare_free(e->inputs);
    tare_free(e->failure_text);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->released);
}

/* A record was left in its middle: the statistics contain a part of it, and only what was saved before counts. */
static tare_status report_abandoned(const struct engine *e) {
    if (e->saved_records < 0)
        return TARE_FAIL(TARE_INTERRUPTED, "%s within a record, before a state was saved", tare_control_reason());
    return TARE_FAIL(TARE_INTERRUPTED, "%s within a record; %lld records are saved in '%s'", tare_control_reason(),
                     (long long)e->saved_records, e->state_path);
}

static tare_status run(struct engine *e) {
    e->saved_records = -1;
    TARE_TRY(tare_threads_run(e->threads, work, e));
    if (e->failure == TARE_INTERRUPTED) return report_abandoned(e);
    if (e->failure != TARE_OK) {
        tare_error_set(e->failure_text ? e->failure_text : "out of memory");
        return e->failure;
    }
    if (!e->interrupted) return collect(e);
    TARE_TRY(save(e));
    return e->state_path ? TARE_FAIL(TARE_INTERRUPTED, "%s; %lld records are saved in '%s'", tare_control_reason(),
                                     (long long)tare_calibration_records(e->calibration), e->state_path)
                         : TARE_FAIL(TARE_INTERRUPTED, "%s after %lld records", tare_control_reason(),
                                     (long long)tare_calibration_records(e->calibration));
}

tare_status tare_calibration_run(struct tare_calibration *calibration, struct tare_calibration_outcome *outcome,
                                 const struct tare_graph_model *model, const struct tare_signature *signature,
                                 const struct tare_sample_source *source,
                                 const struct tare_calibration_options *options) {
    struct engine e = { .calibration = calibration,
                        .source = source,
                        .options = options,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .released = PTHREAD_COND_INITIALIZER };
    struct tare_output_lock state_lock = { .fd = -1 };
    const char *reason = NULL;
    double start = tare_clock_seconds();
    tare_status status = tare_session_check_ops(model, signature);
    if (status == TARE_OK) status = prepare(&e, model, signature, &reason);
    if (status == TARE_OK) status = tare_output_lock(&state_lock, e.state_path);
    if (status == TARE_OK) status = run(&e);
    tare_output_unlock(&state_lock);
    if (outcome)
        *outcome = (struct tare_calibration_outcome){ .records = e.records,
                                                      .threads = e.threads,
                                                      .stateful = e.stateful,
                                                      .batch = (int)e.room,
                                                      .batch_reason = reason,
                                                      .seconds = tare_clock_seconds() - start,
                                                      .run_seconds = e.run_seconds };
    clean_up(&e);
    return status;
}

tare_status tare_calibration_save_state(struct tare_calibration *c, const char *state_path, const char *task) {
    c->unfinished = tare_strdup(task ? task : "");
    if (!c->unfinished) return TARE_NO_MEMORY;
    tare_status status = tare_calibration_save_held(c, state_path);
    tare_free(c->unfinished);
    c->unfinished = NULL;
    return tare_error_prefix(status, "saving the state");
}

tare_status tare_calibration_resume(struct tare_calibration **out, const char *state_path,
                                    const uint64_t fingerprint[2], const char *settings, bool channels,
                                    const char *task) {
    struct tare_calibration *c;
    *out = NULL;
    TARE_TRY(tare_calibration_load(&c, state_path));
    tare_status status = TARE_OK;
    if (!c->unfinished) {
        status =
            TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: this is a finished calibration, not the state of a run", state_path);
    } else if (strcmp(c->unfinished, task) != 0 || strcmp(c->settings, settings) != 0 || c->channels != channels) {
        status = TARE_FAIL(
            TARE_INVALID_ARGUMENT, "%s: this is the state of another run ('%s; %s%s', expected '%s; %s%s')", state_path,
            c->unfinished, c->settings, c->channels ? "; channels" : "", task, settings, channels ? "; channels" : "");
    } else {
        tare_free(c->unfinished);
        c->unfinished = NULL;
        status = tare_calibration_check_model(c, fingerprint, state_path);
    }
    if (status != TARE_OK) {
        tare_calibration_free(c);
        return status;
    }
    *out = c;
    return TARE_OK;
}

static int64_t channels_of(const struct tare_model_shapes *shapes, const struct tare_observed_slot *slot) {
    const struct tare_edge edge = { .node = (struct tare_node *)(uintptr_t)slot->node, .index = (int)slot->output };
    const struct tare_shape shape = tare_model_shape(shapes, edge);
    if (shape.rank == TARE_UNKNOWN_RANK) return TARE_STATISTICS_MAX_CHANNELS;
    if (shape.rank < 2) return 0;
    const int64_t last = shape.dims[shape.rank - 1];
    return last < 0 ? TARE_STATISTICS_MAX_CHANNELS : last;
}

tare_status tare_calibration_bound(size_t *bytes, size_t *tensors, const struct tare_graph_model *model,
                                   const struct tare_signature *signature,
                                   const struct tare_calibration_options *options, bool channels) {
    struct tare_observed observed;
    struct tare_model_shapes *shapes = NULL;
    *bytes = *tensors = 0;
    tare_status status =
        tare_observed_make(&observed, signature, options->accepts, options->counter, options->accepts_arg);
    if (status == TARE_OK && channels) status = tare_model_shapes_new(&shapes, model);
    if (status == TARE_OK) *tensors = observed.n_slots;
    for (size_t i = 0; i < *tensors; i++)
        *bytes += tare_statistics_bound(channels ? channels_of(shapes, &observed.slots[i]) : 0);
    tare_model_shapes_free(shapes);
    tare_observed_free(&observed);
    return status;
}
