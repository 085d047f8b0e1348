/* Runs a signature over the records of files on several threads. Batches are numbered in reading order, and results are
 * delivered in that order, so that outputs, figures and the first error do not depend on timing. */
#include "eval/runner.h"
#include "eval/model_inputs.h"
#include "base/control.h"
#include "base/alloc.h"
#include "base/thread.h"
#include "eval/record_store.h"
#include "eval/record_batch.h"

#include <pthread.h>
#include <string.h>

/* Shared by all workers. */
struct plan {
    const struct tare_runner_options *options;
    struct tare_signature_edges edges;
    size_t batch;
    const char *const *files;
    struct tare_feedback_loop *loop; /* NULL: no feedback; otherwise there is one worker */
};

struct batch {
    struct tare_bound_record *records;
    size_t count;
    size_t joined;                   /* records to run as one batch if that changes no bit; 0: not chosen yet */
    enum tare_batch_verdict verdict; /* of this worker's last check */
};

/* ---- one batch ---- */

static void empty_batch(struct batch *batch, const struct plan *plan) {
    for (size_t r = 0; r < batch->count; r++)
        tare_record_reset(&batch->records[r], &plan->edges);
    batch->count = 0;
}

static tare_status take(struct batch *batch, const struct plan *plan, struct tare_sample *sample,
                        const struct tare_record *where) {
    TARE_TRY(tare_record_take(&batch->records[batch->count], &plan->edges, sample, where));
    batch->count++;
    return TARE_OK;
}

/* On success the first *done records have outputs. */
static tare_status choose_batch(size_t *done, struct batch *batch, struct tare_session *session,
                                const struct plan *plan) {
    TARE_TRY(tare_records_choose_batch(&batch->joined, plan->batch, session, &plan->edges, batch->records));
    if (batch->joined == 1) *done = 2;
    for (size_t r = *done; r < 2; r++)
        tare_tensors_reset(batch->records[r].outputs, plan->edges.n_outputs);
    return TARE_OK;
}

static tare_status run_one(struct tare_bound_record *record, struct tare_session *session, const struct plan *plan) {
    if (plan->loop) TARE_TRY(tare_feedback_feed(plan->loop, record->values, &record->where));
    TARE_TRY(tare_record_run(session, &plan->edges, record));
    return plan->loop ? tare_feedback_take(plan->loop, record->outputs) : TARE_OK;
}

/* Runs the records from `first` on, at most as many as may be joined, and sets *count to their number. */
static tare_status run_some(size_t *count, struct batch *batch, size_t first, struct tare_session *session,
                            const struct plan *plan) {
    const size_t most = batch->verdict == TARE_BATCH_INDEPENDENT ? batch->joined : 1;
    enum tare_batch_verdict joined;
    *count = batch->count - first < most ? batch->count - first : most;
    if (*count > 1) {
        struct tare_bound_record *records = &batch->records[first];
        TARE_TRY(tare_records_locate(tare_records_run_joined(&joined, session, &plan->edges, records, *count),
                                     plan->files, &records[0].where, &records[*count - 1].where));
        if (joined == TARE_BATCH_INDEPENDENT) return TARE_OK;
        if (joined == TARE_BATCH_DEPENDENT) batch->verdict = joined;
    }
    for (size_t r = first; r < first + *count; r++) {
        const struct tare_record *where = &batch->records[r].where;
        TARE_TRY(tare_records_locate(run_one(&batch->records[r], session, plan), plan->files, where, where));
    }
    return TARE_OK;
}

static tare_status run_batch(struct batch *batch, struct tare_session *session, const struct plan *plan) {
    const struct tare_record *first = &batch->records[0].where, *last = &batch->records[batch->count - 1].where;
    size_t done = 0, count;
    if (plan->options->begin) plan->options->begin(plan->options->begin_arg, plan->files[first->file], first->number);
    if (batch->count > 1 && !batch->joined)
        TARE_TRY(tare_records_locate(choose_batch(&done, batch, session, plan), plan->files, first, last));
    if (batch->count > 1 && batch->joined > 1 && batch->verdict == TARE_BATCH_UNDECIDED)
        TARE_TRY(tare_records_locate(tare_records_check_pair(&batch->verdict, session, &plan->edges, batch->records),
                                     plan->files, first, last));
    for (; done < batch->count; done += count)
        TARE_TRY(run_some(&count, batch, done, session, plan));
    return TARE_OK;
}

/* ---- workers ---- */

/* A record that was read and not run yet. */
struct ahead {
    struct tare_sample sample;
    struct tare_record where;
};

/* Worker w of n reads and runs batch k when k mod n is w, and delivers its outputs after those of all earlier batches.
 * So the first failure in the order of the records is reported, whichever worker ran it. */
struct crew {
    const struct plan *plan;
    struct tare_session *const *sessions;
    int count;
    tare_record_fn fn;
    void *arg;
    struct tare_record_reader reader;
    struct ahead *ahead; /* records that were read before the workers started */
    size_t n_ahead, next_ahead;
    tare_status ahead_status; /* of reading the record after them */
    char *ahead_text;         /* its error text; NULL: none */
    bool ahead_ended;         /* there is no record after them */
    pthread_mutex_t lock;     /* guards the reader and all fields below */
    pthread_cond_t moved;
    uint64_t next_read, next_out;
    bool at_end, failed;
};

/* The next record: first those that were read ahead, then the failure that ended reading ahead. */
static tare_status next_record(struct tare_sample *sample, struct tare_record *where, struct crew *crew) {
    if (crew->next_ahead < crew->n_ahead) {
        struct ahead *ahead = &crew->ahead[crew->next_ahead++];
        *sample = ahead->sample;
        *where = ahead->where;
        memset(&ahead->sample, 0, sizeof ahead->sample);
        return TARE_OK;
    }
    crew->at_end = crew->ahead_ended;
    if (crew->ahead_status != TARE_OK)
        tare_error_set(crew->ahead_text ? crew->ahead_text : tare_status_name(crew->ahead_status));
    if (crew->at_end || crew->ahead_status != TARE_OK) return crew->ahead_status;
    return tare_record_reader_next(sample, where, &crew->at_end, &crew->reader);
}

static tare_status read_batch(struct batch *batch, struct crew *crew) {
    const struct plan *plan = crew->plan;
    while (batch->count < plan->batch && !crew->at_end) {
        struct tare_sample sample;
        struct tare_record where;
        TARE_TRY(tare_flag_check(plan->options->interrupted));
        TARE_TRY(next_record(&sample, &where, crew));
        if (!crew->at_end)
            TARE_TRY(tare_records_locate(take(batch, plan, &sample, &where), plan->files, &where, &where));
    }
    return TARE_OK;
}

/* Waits until this worker may read. False when no records are left or a worker failed. */
static bool wait_to_read(struct crew *crew, int worker) {
    while (!crew->failed && !crew->at_end && crew->next_read % (uint64_t)crew->count != (uint64_t)worker)
        pthread_cond_wait(&crew->moved, &crew->lock);
    return !crew->failed && !crew->at_end;
}

static tare_status hand_out(const struct batch *batch, const struct crew *crew) {
    for (size_t r = 0; r < batch->count; r++) {
        const struct tare_bound_record *record = &batch->records[r];
        TARE_TRY(crew->fn(crew->arg, &record->sample, &record->where, record->outputs));
    }
    return TARE_OK;
}

/* Waits until every earlier batch is delivered. False when one of them failed. */
static bool wait_to_hand_out(struct crew *crew, uint64_t number) {
    bool good;
    pthread_mutex_lock(&crew->lock);
    while (!crew->failed && crew->next_out != number)
        pthread_cond_wait(&crew->moved, &crew->lock);
    good = !crew->failed;
    pthread_mutex_unlock(&crew->lock);
    return good;
}

static void move_on(struct crew *crew, bool failed) {
    pthread_mutex_lock(&crew->lock);
    crew->next_out++;
    crew->failed = crew->failed || failed;
    pthread_cond_broadcast(&crew->moved);
    pthread_mutex_unlock(&crew->lock);
}

/* Runs one batch of this worker; sets *more to false when no batch is left. */
static tare_status next_batch(struct crew *crew, int worker, struct batch *batch, bool *more) {
    uint64_t number;
    tare_status status;
    pthread_mutex_lock(&crew->lock);
    *more = wait_to_read(crew, worker);
    number = crew->next_read;
    status = *more ? read_batch(batch, crew) : TARE_OK;
    if (*more) crew->next_read++;
    if (status != TARE_OK) crew->at_end = true;
    pthread_cond_broadcast(&crew->moved);
    pthread_mutex_unlock(&crew->lock);
    if (!*more) return TARE_OK;
    if (status == TARE_OK && batch->count) status = run_batch(batch, crew->sessions[worker], crew->plan);
    if (!wait_to_hand_out(crew, number)) return TARE_OK;
    if (status == TARE_OK) status = hand_out(batch, crew);
    move_on(crew, status != TARE_OK);
    return status;
}

static tare_status work(void *arg, int worker) {
    struct crew *crew = arg;
    struct batch batch = { .records = tare_calloc(crew->plan->batch, sizeof *batch.records) };
    bool more = true;
    tare_status status = TARE_OK;
    if (!batch.records) {
        move_on(crew, true);
        return TARE_NO_MEMORY;
    }
    while (more && status == TARE_OK) {
        status = next_batch(crew, worker, &batch, &more);
        empty_batch(&batch, crew->plan);
    }
    tare_free(batch.records);
    return status;
}

/* ---- a run ---- */

size_t tare_runner_most_batch(const struct tare_runner_options *options, int threads) {
    const bool is_stored = options->records && options->records->complete && !options->shards;
    const size_t limit = (size_t)options->limit, batches = 2 * (size_t)threads;
    const size_t batch = options->batch > 1 ? (size_t)options->batch : 1;
    size_t records = is_stored ? options->records->count : 0;
    if (limit && (!records || limit < records)) records = limit;
    if (threads < 2 || !records || (records + batches - 1) / batches > batch) return batch;
    return (records + batches - 1) / batches;
}

/* Reads as many records as there are workers, so that one worker more than the records need is not started. */
static tare_status read_ahead(struct crew *crew) {
    crew->ahead = tare_calloc((size_t)crew->count, sizeof *crew->ahead);
    if (!crew->ahead) return TARE_NO_MEMORY;
    while (crew->n_ahead < (size_t)crew->count && crew->ahead_status == TARE_OK && !crew->ahead_ended) {
        struct ahead *next = &crew->ahead[crew->n_ahead];
        crew->ahead_status = tare_record_reader_next(&next->sample, &next->where, &crew->ahead_ended, &crew->reader);
        if (crew->ahead_status != TARE_OK) crew->ahead_text = tare_strdup(tare_error_text());
        if (crew->ahead_status == TARE_OK && !crew->ahead_ended) crew->n_ahead++;
    }
    tare_error_clear();
    return TARE_OK;
}

/* With fewer batches than workers, the threads of the others run inside the ops. */
static void share_threads(struct crew *crew) {
    const size_t batches = (crew->n_ahead + crew->plan->batch - 1) / crew->plan->batch;
    const int threads = crew->count;
    if (!crew->ahead_ended || batches == 0 || batches >= (size_t)threads) return;
    crew->count = (int)batches;
    for (int i = 0; i < crew->count; i++)
        tare_session_set_op_threads(crew->sessions[i], threads / crew->count);
}

static void free_ahead(struct crew *crew) {
    for (size_t i = crew->next_ahead; i < crew->n_ahead; i++)
        tare_sample_reset(&crew->ahead[i].sample);
    tare_free(crew->ahead);
    tare_free(crew->ahead_text);
}

static tare_status run_crew(struct crew *crew) {
    tare_status status;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->moved, NULL);
    status = tare_threads_run(crew->count, work, crew);
    pthread_cond_destroy(&crew->moved);
    pthread_mutex_destroy(&crew->lock);
    return status;
}

static tare_status choose_form(struct plan *plan, struct crew *crew, const struct tare_signature *signature) {
    const struct tare_runner_options *options = plan->options;
    const char *one_by_one = NULL;
    if (tare_feedback_is_given(options->feedback)) {
        plan->edges.feedback = options->feedback;
        if (crew->count > 1) tare_session_set_op_threads(crew->sessions[0], crew->count);
        crew->count = 1;
        return tare_feedback_loop_new(&plan->loop, options->feedback, signature);
    }
    if (options->batch < 2 || !signature->n_outputs) return TARE_OK;
    TARE_TRY(tare_batch_check_graph(&one_by_one, plan->edges.fetches[0].node->graph->model, signature));
    if (!one_by_one) plan->batch = tare_runner_most_batch(options, crew->count);
    return TARE_OK;
}

tare_status tare_runner_find_rows(struct tare_runner_options *options, const struct tare_signature *signature) {
    if (options->rows) return TARE_OK;
    return tare_rows_at_a_time(&options->rows, signature, options->paths, options->n_paths, options->spec);
}

tare_status tare_run_records_on(struct tare_session *const *sessions, int count, const struct tare_signature *signature,
                                const struct tare_runner_options *options, tare_record_fn fn, void *arg) {
    struct tare_runner_options known = *options;
    struct plan plan = { .options = &known, .batch = 1 };
    struct crew crew = { .plan = &plan, .sessions = sessions, .count = count, .fn = fn, .arg = arg };
    tare_status status;
    TARE_CHECK(tare_signature_edges_of(&plan.edges, signature));
    TARE_CHECK(choose_form(&plan, &crew, signature));
    TARE_CHECK(tare_runner_find_rows(&known, signature));
    TARE_CHECK(tare_record_reader_open(&crew.reader, &known));
    plan.files = crew.reader.files;
    if (crew.count > 1) TARE_CHECK(read_ahead(&crew));
    if (crew.count > 1) share_threads(&crew);
    status = run_crew(&crew);
done:
    free_ahead(&crew);
    tare_record_reader_close(&crew.reader);
    tare_signature_edges_free(&plan.edges);
    tare_feedback_loop_free(plan.loop);
    return status;
}

tare_status tare_run_records(struct tare_session *session, const struct tare_signature *signature,
                             const struct tare_runner_options *options, tare_record_fn fn, void *arg) {
    return tare_run_records_on(&session, 1, signature, options, fn, arg);
}

/* ---- sessions ---- */

struct session_maker {
    struct tare_session **sessions;
    const struct tare_graph_model *model;
    const struct tare_session_options *options;
};

static tare_status make_session(void *arg, int worker) {
    const struct session_maker *maker = arg;
    return tare_session_new(&maker->sessions[worker], maker->model, maker->options);
}

tare_status tare_sessions_new(struct tare_session ***out, int count, const struct tare_graph_model *model,
                              const struct tare_session_options *options) {
    struct session_maker maker = { .model = model, .options = options };
    tare_status status;
    *out = NULL;
    maker.sessions = tare_calloc((size_t)count, sizeof *maker.sessions);
    if (!maker.sessions) return TARE_NO_MEMORY;
    status = tare_threads_run(count, make_session, &maker);
    if (status == TARE_OK)
        *out = maker.sessions;
    else
        tare_sessions_free(maker.sessions, count);
    return status;
}

void tare_sessions_free(struct tare_session **sessions, int count) {
    for (int i = 0; sessions && i < count; i++)
        tare_session_free(sessions[i]);
    tare_free(sessions);
}
