/* Calibration of samples that the caller pushes. A bounded queue connects the caller's thread with a thread that runs
 * the calibration engine, which reads from the queue as it reads from a file. */
#include "base/alloc.h"
#include "base/control.h"
#include "base/thread.h"
#include "datasets/sequence.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"
#include "api/calibrating.h"

#include <string.h>

/* A producer that finds the queue full waits until it is half empty, and consumers that find it empty wait for some
 * samples (or one large one, or the end): with many small samples, most pushes then cost no system call. */
enum { QUEUE_ITEMS = 256, QUEUE_BYTES = 1 << 20, LARGE_BYTES = 1 << 16 };

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct item {
        struct tare_tensor *values; /* in feed order */
        int64_t sequence;           /* of the record */
    } * items;                      /* ring buffer of samples */
    size_t first, count;
    size_t bytes;   /* of the samples in it */
    size_t minimum; /* full from here on if the samples have QUEUE_BYTES, else at QUEUE_ITEMS */
    bool waiting;   /* the producer waits until the queue is half empty */
    int idle;       /* consumers that wait */
    bool closed;    /* no more samples will be added */
    bool ended;     /* the engine has ended */
};

struct tare_calibrator_handle {
    struct tare_context_handle *context;
    uint64_t family;         /* of the model */
    struct tare_control own; /* of the engine's thread, if not the context's flag cancels it */
    struct tare_public_calibrating work;
    struct tare_calibrate_job calibrating;
    struct tare_calibration *calibration;
    const struct tare_signature *signature;
    size_t n_feeds;
    struct tare_sample_source source;
    int64_t taken;
    struct tare_sequences sequences; /* of the samples that were pushed */
    struct queue queue;
    pthread_t thread;
    bool running;
    bool stateful; /* the model keeps state, so that its calibration cannot be continued; valid once queue.ended is set
                    */
    tare_status status; /* of the engine's thread; valid once queue.ended is set */
    char *text;
};

static size_t sample_bytes(const tare_calibrator *c, const struct tare_tensor *sample) {
    size_t bytes = 0;
    for (size_t i = 0; i < c->n_feeds; i++)
        bytes += tare_tensor_bytes(&sample[i]);
    return bytes;
}

static bool is_full(const struct queue *q) {
    return q->count == QUEUE_ITEMS || (q->count >= q->minimum && q->bytes >= QUEUE_BYTES);
}

static bool has_room(const struct queue *q) {
    return q->count <= q->minimum / 2 || (q->count <= QUEUE_ITEMS / 2 && q->bytes <= QUEUE_BYTES / 2);
}

/* ---- consumer: the engine's thread ---- */

/* The next sample of the queue with its record; NULL at the end. */
static struct tare_tensor *take(tare_calibrator *c, struct tare_record *record) {
    struct queue *q = &c->queue;
    struct tare_tensor *sample = NULL;
    pthread_mutex_lock(&q->lock);
    q->idle++;
    while (!q->count && !q->closed)
        pthread_cond_wait(&q->changed, &q->lock);
    q->idle--;
    if (q->count) {
        sample = q->items[q->first].values;
        *record = (struct tare_record){
            .file = 0, .number = c->taken, .index = c->taken, .sequence = q->items[q->first].sequence
        };
        q->first = (q->first + 1) % QUEUE_ITEMS;
        q->count--;
        q->bytes -= sample_bytes(c, sample);
        c->taken++;
    }
    if (q->waiting && has_room(q)) pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return sample;
}

static void free_sample(tare_calibrator *c, struct tare_tensor *sample) {
    for (size_t i = 0; i < c->n_feeds; i++)
        tare_tensor_reset(&sample[i]);
    tare_free(sample);
}

/* Skips the samples that the saved state contains. */
static tare_status next(void *arg, struct tare_tensor *inputs, struct tare_record *record, bool *end,
                        bool (*wanted)(void *wanted_arg, const struct tare_record *record), void *wanted_arg) {
    tare_calibrator *c = arg;
    struct tare_tensor *sample;
    while ((sample = take(c, record)) && wanted && !wanted(wanted_arg, record))
        free_sample(c, sample);
    *end = !sample;
    if (sample) memcpy(inputs, sample, c->n_feeds * sizeof *inputs);
    tare_free(sample);
    return TARE_OK;
}

static struct tare_control *control_of(tare_calibrator *c) {
    const volatile sig_atomic_t *flag = c->work.options.interrupted;
    if (c->context && flag == &c->context->cancelled) return &c->context->control;
    c->own.cancelled = flag;
    return flag ? &c->own : NULL;
}

static void *work(void *arg) {
    tare_calibrator *c = arg;
    struct tare_calibrate_outcome outcome = { 0 };
    tare_status status;
    tare_control_begin(control_of(c), c->family);
    status = tare_control_conclude(tare_workflow_calibrate_run(c->calibration, &outcome, &c->calibrating));
    tare_control_end();
    pthread_mutex_lock(&c->queue.lock);
    c->status = status;
    c->stateful = outcome.stateful;
    if (status != TARE_OK) c->text = tare_strdup(tare_error_text());
    c->queue.ended = true;
    pthread_cond_broadcast(&c->queue.changed);
    pthread_mutex_unlock(&c->queue.lock);
    return NULL;
}

/* ---- producer: the caller's thread ---- */

static tare_status failure(const tare_calibrator *c) {
    tare_error_set(c->text ? c->text : "");
    return c->status;
}

static tare_status start(tare_calibrator *c, const tare_model *model, const char *options) {
    const char **files;
    TARE_TRY(tare_public_calibrating_read(&c->work, model, options));
    if (c->work.hessians)
        return TARE_FAIL(TARE_UNSUPPORTED, "hessians need a second pass over the samples (calibrate from files)");
    if (c->work.how.function)
        return TARE_FAIL(TARE_UNSUPPORTED, "a function is selected by the first sample (calibrate from files)");
    TARE_TRY(tare_pick_signature(&c->signature, c->work.prepared, c->work.how.signature));
    TARE_TRY(tare_session_check_ops(c->work.prepared, c->signature));
    files = TARE_NEW_ARRAY(&c->work.arena, const char *, 1);
    if (!files) return TARE_NO_MEMORY;
    files[0] = c->work.name;
    c->n_feeds = c->signature->n_inputs;
    c->source = (struct tare_sample_source){ .arg = c, .files = files, .n_files = 1, .remaining = -1, .next = next };
    c->work.options.samples = &c->source;
    TARE_TRY(tare_workflow_calibrate_open(&c->calibrating, c->work.prepared, &c->work.options));
    TARE_TRY(tare_public_calibrating_start(&c->calibration, &c->work, &c->calibrating));
    c->queue.minimum = 4 * (size_t)(c->work.options.threads > 0 ? c->work.options.threads : tare_cpu_count());
    if (c->queue.minimum > QUEUE_ITEMS) c->queue.minimum = QUEUE_ITEMS;
    c->queue.items = tare_calloc(QUEUE_ITEMS, sizeof *c->queue.items);
    if (!c->queue.items) return TARE_NO_MEMORY;
    c->running = pthread_create(&c->thread, NULL, work, c) == 0;
    return c->running ? TARE_OK : TARE_FAIL(TARE_NO_MEMORY, "cannot start a thread");
}

tare_status tare_calibrator_open(tare_calibrator **out, const tare_model *model, const char *options) {
    tare_calibrator *c = tare_calloc(1, sizeof *c);
    tare_status status;
    tare_public_begin(model->context, model->family);
    *out = NULL;
    if (!c) return tare_public_end(TARE_NO_MEMORY);
    c->context = model->context;
    c->family = model->family;
    pthread_mutex_init(&c->queue.lock, NULL);
    pthread_cond_init(&c->queue.changed, NULL);
    status = start(c, model, options);
    if (status == TARE_OK)
        *out = c;
    else
        tare_calibrator_close(c);
    return tare_public_end(status);
}

static tare_status bind_sample(struct item *out, tare_calibrator *c, const struct tare_sample *sample, bool record) {
    const struct tare_feedback *feedback = c->work.options.feedback;
    struct tare_record where = { 0 };
    if (feedback->sequence) TARE_TRY(tare_sequences_number(&where, &c->sequences, sample, feedback->sequence));
    out->sequence = where.sequence;
    if (record || feedback->sequence) return tare_bind_record(out->values, c->signature, sample, feedback);
    return tare_bind_inputs(out->values, c->signature, sample, feedback);
}

static tare_status bind(struct item *out, tare_calibrator *c, const tare_array *inputs, size_t n_inputs, bool record) {
    struct tare_sample sample;
    tare_status status;
    *out = (struct item){ .values = tare_calloc(c->n_feeds + 1, sizeof *out->values) };
    if (!out->values) return TARE_NO_MEMORY;
    status = tare_public_sample(&sample, inputs, n_inputs);
    if (status == TARE_OK) status = bind_sample(out, c, &sample, record);
    tare_sample_reset(&sample);
    if (status != TARE_OK) tare_free(out->values);
    return status;
}

/* Takes ownership of the sample, also on failure. */
static tare_status enqueue(tare_calibrator *c, struct item sample) {
    struct queue *q = &c->queue;
    tare_status status = TARE_OK;
    pthread_mutex_lock(&q->lock);
    if (is_full(q)) {
        q->waiting = true;
        while (!has_room(q) && !q->ended)
            pthread_cond_wait(&q->changed, &q->lock);
        q->waiting = false;
    }
    if (q->ended || q->closed) {
        status = c->status != TARE_OK
                     ? failure(c)
                     : TARE_FAIL(TARE_INVALID_ARGUMENT, "the calibrator is finished and accepts no more samples");
    } else {
        q->items[(q->first + q->count++) % QUEUE_ITEMS] = sample;
        q->bytes += sample_bytes(c, sample.values);
        if (q->idle && (q->count >= q->minimum / 2 || q->bytes >= LARGE_BYTES)) pthread_cond_broadcast(&q->changed);
        sample.values = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    if (sample.values) free_sample(c, sample.values);
    return status;
}

tare_status tare_public_calibrator_push(tare_calibrator *c, const tare_array *inputs, size_t n_inputs, bool record) {
    const volatile sig_atomic_t *interrupted = c->work.options.interrupted;
    struct item sample;
    TARE_TRY(tare_flag_check(interrupted));
    TARE_TRY(bind(&sample, c, inputs, n_inputs, record));
    return enqueue(c, sample);
}

tare_status tare_calibrator_push(tare_calibrator *c, const tare_array *inputs, size_t n_inputs) {
    tare_public_begin(c->context, c->family);
    return tare_public_end(tare_public_calibrator_push(c, inputs, n_inputs, false));
}

static void end_work(tare_calibrator *c) {
    if (!c->running) return;
    pthread_mutex_lock(&c->queue.lock);
    c->queue.closed = true;
    pthread_cond_broadcast(&c->queue.changed);
    pthread_mutex_unlock(&c->queue.lock);
    pthread_join(c->thread, NULL);
    c->running = false;
}

static tare_status finish(tare_calibration **out, tare_calibrator *c) {
    struct tare_calibration *made = c->calibration;
    *out = NULL;
    end_work(c);
    if (c->status != TARE_OK) return failure(c);
    if (!made) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the calibrator is already finished");
    c->calibration = NULL;
    tare_public_calibrating_end(&c->work);
    return tare_public_calibrated(out, made, c->work.context);
}

tare_status tare_calibrator_finish(tare_calibration **out, tare_calibrator *calibrator) {
    tare_public_begin(calibrator->context, calibrator->family);
    return tare_public_end(finish(out, calibrator));
}

/* After a cancellation the engine itself has saved the state. */
static void save_unfinished(tare_calibrator *c) {
    if (!c->work.state || !c->calibration || c->status != TARE_OK || c->stateful) return;
    if (tare_workflow_calibrate_save_state(c->calibration, &c->calibrating) != TARE_OK) tare_error_clear();
}

void tare_calibrator_close(tare_calibrator *c) {
    if (!c) return;
    if (c->running) {
        end_work(c);
        save_unfinished(c);
    }
    for (; c->queue.count; c->queue.count--, c->queue.first++)
        free_sample(c, c->queue.items[c->queue.first % QUEUE_ITEMS].values);
    tare_free(c->queue.items);
    tare_sequences_free(&c->sequences);
    pthread_cond_destroy(&c->queue.changed);
    pthread_mutex_destroy(&c->queue.lock);
    tare_workflow_calibrate_close(&c->calibrating);
    tare_calibration_free(c->calibration);
    tare_public_calibrating_free(&c->work);
    tare_free(c->text);
    tare_free(c);
}
